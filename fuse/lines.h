/* lines.h - lines of an open file, and where in a file they begin.
 *
 * Where lines begin is remembered for a bounded number of files, so that a chunk far into a large file is not
 * reached by reading all that stands before it each time. What is remembered of a file holds for its inode,
 * size and times.
 */
#ifndef GPUIRFS_LINES_H
#define GPUIRFS_LINES_H

#include "common.h"

#include <pthread.h>
#include <sys/stat.h>

enum {
  LINE_FILES = 64,      /* files that are remembered */
  LINE_MARKS = 4096,    /* marks of one file */
  LINE_SPACING = 65536, /* bytes between two marks, which doubles when a file has all its marks */
  LINE_RACY_SECONDS = 2 /* a file may still change under the same time for so long after it was changed */
};

/* The byte at `offset` belongs to line `line`, from 1, or is its first. */
typedef struct line_mark {
  uint64_t line, offset;
} line_mark;

typedef struct line_file {
  dev_t device;
  ino_t inode;
  off_t size;
  struct timespec mtime, ctime;
  uint64_t used;    /* when last, in look-ups; 0: the place is free */
  uint64_t spacing; /* bytes */
  size_t n;
  line_mark *marks;
} line_file;

typedef struct line_memory {
  pthread_mutex_t lock;
  uint64_t now; /* counts look-ups */
  line_file files[LINE_FILES];
} line_memory;

void lines_init(line_memory *m);
void lines_destroy(line_memory *m);

typedef struct line_range {
  uint32_t first, last;   /* from 1, both included */
  uint64_t deadline;      /* nanoseconds of CLOCK_MONOTONIC; 0: none */
  uint64_t max_bytes;     /* that are read of the file */
  int (*stopped)(void *); /* asked before each block; NULL: nobody asks to stop */
  void *stopped_arg;
} line_range;

/* Appends lines of the file behind `fd`, which `st` describes. Bytes after st->st_size are not looked at.
 * Errors: ENODATA when the file has none of the lines; EINTR; ETIMEDOUT; EFBIG beyond range->max_bytes (what
 * was learnt is remembered, and the next call goes on from there) or b->max; what pread(2) says. */
int lines_read(line_memory *m, buf *b, int fd, const struct stat *st, const line_range *range);

#endif
