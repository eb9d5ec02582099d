/* unpack_zstd.c - Zstandard (RFC 8878), by libzstd. */
#include "unpack.h"

#include <stdlib.h>

/* ZSTD_outBuffer and ZSTD_inBuffer of zstd.h, the same since 1.0. */
typedef struct zstd_out_buffer {
  void *to;
  size_t size, at;
} zstd_out_buffer;

typedef struct zstd_in_buffer {
  const void *from;
  size_t size, at;
} zstd_in_buffer;

static void *(*zstd_create)(void);
static size_t (*zstd_start)(void *);
static size_t (*zstd_decompress)(void *, zstd_out_buffer *, zstd_in_buffer *);
static size_t (*zstd_release)(void *);
static unsigned (*zstd_is_error)(size_t);

/* A frame may ask for a window of 128 MiB, which is the library's own limit. */
static unpack_result zstd_open_member(void **state) {
  *state = zstd_create();
  if (!*state) return UNPACK_MEMORYLESS;
  if (!zstd_is_error(zstd_start(*state))) return UNPACK_OK;
  (void)zstd_release(*state);
  *state = NULL;
  return UNPACK_MEMORYLESS;
}

static unpack_result zstd_step(void *state, unpack_step *p) {
  zstd_out_buffer out = {p->out, p->out_n, 0};
  zstd_in_buffer in = {p->in, p->in_n, 0};
  const size_t said = zstd_decompress(state, &out, &in);
  p->in += in.at;
  p->in_n -= in.at;
  p->out += out.at;
  p->out_n -= out.at;
  if (zstd_is_error(said)) return UNPACK_BROKEN;
  return said ? UNPACK_OK : UNPACK_END;
}

static void zstd_close_member(void *state) { (void)zstd_release(state); }

static const char *const zstd_names[] = {"ZSTD_createDStream", "ZSTD_initDStream", "ZSTD_decompressStream",
    "ZSTD_freeDStream", "ZSTD_isError", NULL};
static void *const zstd_functions[] = {(void *)&zstd_create, (void *)&zstd_start, (void *)&zstd_decompress,
    (void *)&zstd_release, (void *)&zstd_is_error};

const unpack_library unpack_zstd = {"zstd", "libzstd.so.1", zstd_names, zstd_functions, "\x28\xb5\x2f\xfd", 4,
    zstd_open_member, zstd_step, zstd_close_member};
