/* bytes.h - a growing piece of memory that notes when there is no more, so that callers look once, at the end. */
#ifndef GPUIR_BYTES_H
#define GPUIR_BYTES_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Zeroed: empty. */
typedef struct byte_buf {
  char *p;
  size_t n, cap;
  int failed; /* there was no memory: it lacks something */
} byte_buf;

/* Makes room for n more bytes. Returns where they go, or NULL. */
static inline char *bytes_room(byte_buf *b, size_t n) {
  size_t cap = b->cap ? b->cap : 256;
  char *bigger;
  if (b->failed) return NULL;
  if (b->p && b->cap - b->n >= n) return b->p + b->n;
  while (cap - b->n < n && cap <= (size_t)-1 / 4) cap *= 2;
  bigger = cap - b->n < n ? NULL : (char *)realloc(b->p, cap);
  if (!bigger) {
    b->failed = 1;
    return NULL;
  }
  b->p = bigger;
  b->cap = cap;
  return b->p + b->n;
}

static inline void bytes_add(byte_buf *b, const void *p, size_t n) {
  char *to = n ? bytes_room(b, n) : NULL;
  if (!to) return;
  memcpy(to, p, n);
  b->n += n;
}

static inline void bytes_char(byte_buf *b, int c) {
  const char byte = (char)c;
  bytes_add(b, &byte, 1);
}

static inline void bytes_free(byte_buf *b) {
  free(b->p);
  memset(b, 0, sizeof *b);
}

#endif
