/* unpack_lzma.c - xz, by liblzma. */
#include "unpack.h"

#include <stdlib.h>

/* lzma_stream of lzma/base.h, the same since 5.0. */
typedef struct xz_stream {
  const uint8_t *next_in;
  size_t avail_in;
  uint64_t total_in;
  uint8_t *next_out;
  size_t avail_out;
  uint64_t total_out;
  const void *allocator;
  void *internal;
  void *pointers[4];
  uint64_t position, number;
  size_t sizes[2];
  unsigned enums[2];
} xz_stream;

enum { XZ_FINE = 0, XZ_ENDS = 1, XZ_NO_MEMORY = 5, XZ_LIMIT = 6, XZ_NO_PROGRESS = 10, XZ_RUN = 0 };

static unsigned (*xz_init)(xz_stream *, uint64_t memory, uint32_t flags);
static unsigned (*xz_code)(xz_stream *, unsigned action);
static void (*xz_end)(xz_stream *);

static unpack_result xz_result_of(unsigned said) {
  switch (said) {
  case XZ_FINE:
  case XZ_NO_PROGRESS: return UNPACK_OK;
  case XZ_ENDS: return UNPACK_END;
  case XZ_NO_MEMORY: return UNPACK_MEMORYLESS;
  case XZ_LIMIT: return UNPACK_HUGE;
  default: return UNPACK_BROKEN;
  }
}

static unpack_result xz_open_member(void **state) {
  xz_stream *s = (xz_stream *)calloc(1, sizeof *s);
  unsigned said;
  *state = s;
  if (!s) return UNPACK_MEMORYLESS;
  said = xz_init(s, UNPACK_MEMORY, 0);
  if (said == XZ_FINE) return UNPACK_OK;
  free(s);
  *state = NULL;
  return xz_result_of(said);
}

static unpack_result xz_step(void *state, unpack_step *p) {
  xz_stream *s = (xz_stream *)state;
  unsigned said;
  s->next_in = (const uint8_t *)p->in;
  s->avail_in = p->in_n;
  s->next_out = (uint8_t *)p->out;
  s->avail_out = p->out_n;
  said = xz_code(s, XZ_RUN);
  p->in += p->in_n - s->avail_in;
  p->in_n = s->avail_in;
  p->out += p->out_n - s->avail_out;
  p->out_n = s->avail_out;
  return xz_result_of(said);
}

static void xz_close_member(void *state) {
  xz_end((xz_stream *)state);
  free(state);
}

static const char *const xz_names[] = {"lzma_stream_decoder", "lzma_code", "lzma_end", NULL};
static void *const xz_functions[] = {(void *)&xz_init, (void *)&xz_code, (void *)&xz_end};

static const char xz_magic[] = {(char)0xfd, '7', 'z', 'X', 'Z', 0};

const unpack_library unpack_lzma = {"liblzma", "liblzma.so.5", xz_names, xz_functions, xz_magic, 6, xz_open_member,
    xz_step, xz_close_member};
