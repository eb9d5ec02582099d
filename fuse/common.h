/* common.h - what every file of gpuirfs starts with: feature macros, a growable buffer and messages.
 *
 * Functions that can fail return 0 or a positive errno value, which is what FUSE replies with.
 */
#ifndef GPUIRFS_COMMON_H
#define GPUIRFS_COMMON_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* O_PATH, statx, setfsuid */
#endif
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64
#endif

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gpuir.h"

#define NAME_LIMIT 255 /* bytes of one path component */

/* Text that grows up to `max` bytes. The first failure stays in `error` (ENOMEM, EFBIG) and
 * makes later calls do nothing, so that it is asked for once, at the end. */
typedef struct buf {
  char *data;
  size_t len, cap, max;
  int error;
} buf;

void buf_put(buf *b, const void *bytes, size_t n);
void buf_puts(buf *b, const char *text);
void buf_printf(buf *b, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;
void buf_number(buf *b, uint64_t n); /* decimal; much faster than buf_printf */
void buf_free(buf *b);

/* Prints "gpuirfs: ..." on standard error. What a terminal would act on is escaped. */
void complain(const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 1, 2)))
#endif
    ;

#endif
