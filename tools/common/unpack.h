/* unpack.h - the bytes that are packed in a file: gzip, bzip2, xz and Zstandard.
 *
 * The libraries are loaded when the first such file comes, and never if none does: a query starts as fast without them,
 * and a build needs neither their headers nor themselves. Each stands in a file of its own (unpack_*.c), which declares
 * what it calls as the library's first stable release has it; its soname promises that.
 */
#ifndef GPUIR_UNPACK_H
#define GPUIR_UNPACK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The numbers are stored in indexes. */
typedef enum unpack_kind { UNPACK_NONE, UNPACK_GZIP, UNPACK_BZIP2, UNPACK_XZ, UNPACK_ZSTD, UNPACK_KINDS } unpack_kind;

/* What a step of a library has come to. */
typedef enum unpack_result {
  UNPACK_OK,
  UNPACK_END, /* of a member: another may follow */
  UNPACK_BROKEN, /* the bytes are not what they should be */
  UNPACK_HUGE, /* it wants more memory than UNPACK_MEMORY */
  UNPACK_MEMORYLESS
} unpack_result;

#define UNPACK_MEMORY \
  ((uint64_t)128 << 20) /* what a file may ask for: all that the programs write unless asked for more */

/* Bytes that go in and come out; each step moves both on. */
typedef struct unpack_step {
  const char *in;
  size_t in_n;
  char *out;
  size_t out_n;
} unpack_step;

/* A library. All functions may be called by any thread, each state by one at a time. */
typedef struct unpack_library {
  const char *name, *soname;
  const char *const *names; /* of its functions, NULL behind the last one */
  void *const *functions; /* where pointers to these go */
  const char *magic; /* with which a member begins */
  size_t magic_n;
  unpack_result (*open)(void **state); /* of a member */
  unpack_result (*step)(void *state, unpack_step *s);
  void (*close)(void *state);
} unpack_library;

extern const unpack_library unpack_zlib, unpack_bzip2, unpack_lzma, unpack_zstd;

/* Gives bytes of the file, as read(2). */
typedef ssize_t (*unpack_fill)(void *from, char *to, size_t n);

/* Zeroed and opened. */
typedef struct unpacker {
  const char *why; /* what is wrong with the file, when reading has failed with EBADMSG */
  /* private */
  const unpack_library *library;
  unpack_fill fill;
  void *from;
  void *state; /* NULL: between two members */
  char *in;
  size_t begin, end;
  int eof;
  uint64_t packed, unpacked;
} unpacker;

/* Says what is packed in a file that begins with s[0..n). */
unpack_kind unpack_kind_of(const char *s, size_t n);
/* Returns NULL if files of the kind can be read; otherwise why not: unpack_no_memory may not last. The library is
 * loaded. */
const char *unpack_missing(unpack_kind kind);
extern const char unpack_no_memory[];
const char *unpack_name(unpack_kind kind); /* of the library */
/* Begins with first[0..n), which was read already. The library is there. 0; -1: errno. */
int unpack_open(unpacker *u, unpack_kind kind, unpack_fill take, void *from, const char *first, size_t n);
/* Writes at most n bytes, which is not 0. Returns their number; 0 at the end; -1: errno, EBADMSG with u->why where the
 * file is broken, ends too soon, or unpacks to far more than a text does. All of the file is read before the end is
 * told. */
ssize_t unpack_read(unpacker *u, char *to, size_t n);
void unpack_close(unpacker *u);

#endif
