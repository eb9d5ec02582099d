/* unpack_zlib.c - gzip (RFC 1952), by zlib. */
#include "unpack.h"

#include <stdlib.h>

/* z_stream of zlib.h, the same since 1.0. */
typedef struct gzip_stream {
  const unsigned char *next_in;
  unsigned avail_in;
  unsigned long total_in;
  unsigned char *next_out;
  unsigned avail_out;
  unsigned long total_out;
  const char *msg;
  void *state;
  void *(*zalloc)(void *, unsigned, unsigned);
  void (*zfree)(void *, void *);
  void *opaque;
  int data_type;
  unsigned long adler, reserved;
} gzip_stream;

enum {
  GZIP_ENDS = 1,
  GZIP_FLUSHES = 0,
  GZIP_FINE = 0,
  GZIP_NO_PROGRESS = -5,
  GZIP_NO_MEMORY = -4,
  GZIP_WINDOW = 15 + 16
};

static int (*gzip_init)(gzip_stream *, int window, const char *version, int size);
static int (*gzip_inflate)(gzip_stream *, int flush);
static int (*gzip_end)(gzip_stream *);

static unpack_result gzip_open_member(void **state) {
  gzip_stream *s = (gzip_stream *)calloc(1, sizeof *s);
  int code;
  *state = s;
  if (!s) return UNPACK_MEMORYLESS;
  code = gzip_init(s, GZIP_WINDOW, "1", (int)sizeof *s);
  if (code == GZIP_FINE) return UNPACK_OK;
  free(s);
  *state = NULL;
  return code == GZIP_NO_MEMORY ? UNPACK_MEMORYLESS : UNPACK_BROKEN;
}

static unpack_result gzip_step(void *state, unpack_step *p) {
  const size_t most = 1u << 30;
  gzip_stream *s = (gzip_stream *)state;
  const size_t in = p->in_n < most ? p->in_n : most, out = p->out_n < most ? p->out_n : most;
  int code;
  s->next_in = (const unsigned char *)p->in;
  s->avail_in = (unsigned)in;
  s->next_out = (unsigned char *)p->out;
  s->avail_out = (unsigned)out;
  code = gzip_inflate(s, GZIP_FLUSHES);
  p->in += in - s->avail_in;
  p->in_n -= in - s->avail_in;
  p->out += out - s->avail_out;
  p->out_n -= out - s->avail_out;
  if (code == GZIP_ENDS) return UNPACK_END;
  if (code == GZIP_FINE || code == GZIP_NO_PROGRESS) return UNPACK_OK;
  return code == GZIP_NO_MEMORY ? UNPACK_MEMORYLESS : UNPACK_BROKEN;
}

static void gzip_close_member(void *state) {
  (void)gzip_end((gzip_stream *)state);
  free(state);
}

static const char *const gzip_names[] = {"inflateInit2_", "inflate", "inflateEnd", NULL};
static void *const gzip_functions[] = {(void *)&gzip_init, (void *)&gzip_inflate, (void *)&gzip_end};

const unpack_library unpack_zlib = {"zlib", "libz.so.1", gzip_names, gzip_functions, "\x1f\x8b\x08", 3,
    gzip_open_member, gzip_step, gzip_close_member};
