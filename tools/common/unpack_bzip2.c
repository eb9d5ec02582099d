/* unpack_bzip2.c - bzip2, by libbz2. */
#include "unpack.h"

#include <stdlib.h>

/* bz_stream of bzlib.h, the same since 1.0. */
typedef struct bzip2_stream {
  char *next_in;
  unsigned avail_in, total_in_low, total_in_high;
  char *next_out;
  unsigned avail_out, total_out_low, total_out_high;
  void *state;
  void *(*bzalloc)(void *, int, int);
  void (*bzfree)(void *, void *);
  void *opaque;
} bzip2_stream;

enum { BZIP2_ENDS = 4, BZIP2_FINE = 0, BZIP2_NO_MEMORY = -3 };

static int (*bzip2_init)(bzip2_stream *, int verbosity, int small);
static int (*bzip2_decompress)(bzip2_stream *);
static int (*bzip2_end)(bzip2_stream *);

static unpack_result bzip2_open_member(void **state) {
  bzip2_stream *s = (bzip2_stream *)calloc(1, sizeof *s);
  *state = s;
  if (!s) return UNPACK_MEMORYLESS;
  if (bzip2_init(s, 0, 0) == BZIP2_FINE) return UNPACK_OK;
  free(s);
  *state = NULL;
  return UNPACK_MEMORYLESS;
}

static unpack_result bzip2_step(void *state, unpack_step *p) {
  const size_t most = 1u << 30;
  bzip2_stream *s = (bzip2_stream *)state;
  const size_t in = p->in_n < most ? p->in_n : most, out = p->out_n < most ? p->out_n : most;
  int bzip2_code;
  s->next_in = (char *)(uintptr_t)p->in; /* which is only read */
  s->avail_in = (unsigned)in;
  s->next_out = p->out;
  s->avail_out = (unsigned)out;
  bzip2_code = bzip2_decompress(s);
  p->in += in - s->avail_in;
  p->in_n -= in - s->avail_in;
  p->out += out - s->avail_out;
  p->out_n -= out - s->avail_out;
  if (bzip2_code == BZIP2_ENDS) return UNPACK_END;
  if (bzip2_code == BZIP2_FINE) return UNPACK_OK;
  return bzip2_code == BZIP2_NO_MEMORY ? UNPACK_MEMORYLESS : UNPACK_BROKEN;
}

static void bzip2_close_member(void *state) {
  (void)bzip2_end((bzip2_stream *)state);
  free(state);
}

static const char *const bzip2_names[] = {"BZ2_bzDecompressInit", "BZ2_bzDecompress", "BZ2_bzDecompressEnd", NULL};
static void *const bzip2_functions[] = {(void *)&bzip2_init, (void *)&bzip2_decompress, (void *)&bzip2_end};

const unpack_library unpack_bzip2 = {"bzip2", "libbz2.so.1.0", bzip2_names, bzip2_functions, "BZh", 3,
    bzip2_open_member, bzip2_step, bzip2_close_member};
