/* source.h - documents that are not in the index: lines of a file on disk. */
#ifndef GPUIRFS_SOURCE_H
#define GPUIRFS_SOURCE_H

#include "common.h"

#include <sys/stat.h>
#include <sys/types.h>

/* Makes an absolute path of `path`: a relative one starts from `base`. ENAMETOOLONG; ENOENT for an empty path
 * or one with a NUL byte; ELOOP when it leads into `forbidden`: the mount, which would wait for itself. */
int source_path(const char *base, const char *forbidden, const char *path, size_t len, char *out, size_t cap);

/* stat of a regular file; EINVAL for anything else, so that a pipe cannot hang the daemon. */
int source_stat(const char *path, struct stat *st);

/* Appends lines [first, last] of the file, from 1. ENODATA when it has none of them. */
int source_lines(buf *b, const char *path, uint32_t first, uint32_t last);

#endif
