/* fuzz_codecs.c - decodes any bytes by every codec, and encodes any list
 *
 *   make build/fuzz/fuzz_codecs && mkdir -p build/corpus-codecs
 *   build/fuzz/fuzz_codecs -max_total_time=60 -max_len=4096 -timeout=10 build/corpus-codecs
 *
 * The first byte says what the rest is: a stream with its directory; or gaps, which are encoded, and come back
 * through the library's decoders and the naive reader; or gaps that are encoded and then damaged by the last bytes.
 * Damaged or not, all SIMD levels must agree, and no docID may be over the limit. */
#include "private.h"

#include "naive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 2000, RAW = 0, SOUND, DAMAGED };

typedef struct input {
  const uint8_t *p, *end;
} input;

static uint32_t take(input *in, unsigned bytes) {
  uint32_t v = 0;
  unsigned i;
  for (i = 0; i < bytes && in->p < in->end; i++) v |= (uint32_t)*in->p++ << (8 * i);
  return v;
}

static const char *const specs[] = {"qs:0.25", "qs:4", "pfd-list:0", "pfd-list:4", "parapfor:64", "parapfor:256,min",
    "lrc:64,0.1", "lrc:,min", "lrcseg:64", "lrcseg:,0.3", "seglrc:128", "seglrc:64,min", "hslrc:32", "hslrc:64,min"};

/* All codecs with their defaults, then the parameters. */
static gpuir__coding coding_of(unsigned which, int *docids) {
  const unsigned nd = GPUIR__DOCID_CODECS, nf = GPUIR__FREQ_CODECS, ns = sizeof specs / sizeof *specs;
  gpuir__coding c;
  which %= nd + nf + ns;
  c.param = 0;
  *docids = which < nd || which >= nd + nf;
  if (which < nd) c.codec = &gpuir__docid_codecs[which];
  else if (which < nd + nf) c.codec = &gpuir__freq_codecs[which - nd];
  else if (gpuir__coding_parse(specs[which - nd - nf], 1, &c, NULL)) abort();
  return c;
}

/* A list in allocations of the exact sizes. */
typedef struct list {
  gpuir__coding coding;
  uint32_t n, nblocks, limit;
  uint32_t *values, *offset, *last;
  uint8_t *width, *bytes;
  size_t len;
} list;

static void *exactly(size_t n) {
  void *p = calloc(n ? n : 1, 1);
  if (!p) abort();
  return p;
}

static void place(list *l, const uint8_t *bytes, size_t len) {
  uint8_t *p = (uint8_t *)exactly(len + GPUIR__STREAM_PAD);
  if (len) memcpy(p, bytes, len);
  free(l->bytes);
  l->bytes = p;
  l->len = len;
}

static void read_values(list *l, input *in, int docids) {
  uint64_t next = 0;
  uint32_t i;
  for (i = 0; i < l->n; i++) {
    uint32_t how = take(in, 1), v = how < 252 ? how : take(in, how - 251);
    if (docids) { /* a gap, as far as there is room */
      const uint64_t most = UINT32_MAX - (uint64_t)(l->n - i);
      next = gpuir__min64(next + v, most);
      v = (uint32_t)next++;
    }
    l->values[i] = v;
  }
  for (i = 0; i < l->nblocks && l->last; i++) l->last[i] = l->values[gpuir__min32(i * 128 + 127, l->n - 1)];
}

static void encode(list *l) {
  gpuir_allocator a = gpuir__allocator(NULL);
  gpuir__buf out = {NULL, 0, 0};
  const gpuir__target to = {&a, &out, l->offset, l->width, l->coding.param};
  if (l->coding.codec->encode(l->coding.codec, l->values, l->n, &to)) abort();
  place(l, out.data, out.len);
  gpuir__buf_free(&a, &out);
}

/* Some bytes of the stream, offsets or widths, or its length. */
static void damage(list *l, input *in) {
  unsigned times;
  for (times = 0; times < 8 && in->p < in->end; times++) {
    const uint32_t what = take(in, 1), at = take(in, 2), v = take(in, 1 + what / 64);
    if (what % 4 == 0 && l->nblocks && l->offset) l->offset[at % l->nblocks] = v;
    if (what % 4 == 1 && l->nblocks && l->width) l->width[at % l->nblocks] = (uint8_t)v;
    if (what % 4 == 2) place(l, l->bytes, gpuir__min32((uint32_t)l->len, at));
    if (what % 4 == 3 && l->len) l->bytes[at % l->len] = (uint8_t)v;
  }
}

static int open_at(const list *l, int simd, gpuir__stream *s) {
  const gpuir__codec *c = l->coding.codec;
  size_t scratch;
  memset(s, 0, sizeof *s);
  s->codec = c;
  s->bytes = l->bytes;
  s->len = l->len;
  s->n = l->n;
  s->limit = l->limit;
  s->offset = l->offset;
  s->width = l->width;
  s->last = l->last;
  s->kernels = gpuir__codec_kernels_at(simd);
  scratch = c->scratch_size ? c->scratch_size(s) : 0;
  s->scratch = scratch ? exactly(scratch) : NULL;
  return !c->open || !c->open(s);
}

static void decode(const list *l, int sound) {
  const gpuir__codec *c = l->coding.codec;
  uint32_t first[128], block, i;
  int simd, opens = 0;
  for (block = 0; block < l->nblocks; block++) {
    const uint32_t count = gpuir__block_count(l->n, block);
    const uint32_t prev = block ? l->last ? l->last[block - 1] : 7 : UINT32_MAX;
    for (simd = GPUIR_SIMD_SCALAR; simd <= gpuir__simd_level(GPUIR_SIMD_AUTO); simd++) {
      gpuir__stream s;
      const int opened = open_at(l, simd, &s);
      if (simd == GPUIR_SIMD_SCALAR) opens = opened;
      if (opened != opens || (sound && !opened)) abort();
      if (opened) {
        uint32_t *out = (uint32_t *)exactly(GPUIR__BLOCK_ROOM * sizeof *out);
        c->decode_block(&s, block, prev, out);
        if (simd == GPUIR_SIMD_SCALAR) memcpy(first, out, sizeof first);
        for (i = 0; i < count; i++) {
          const uint32_t k = block * 128 + i;
          if (out[i] != first[i] || (c->docids && out[i] > l->limit)) abort();
          if (sound && out[i] != l->values[k]) abort();
          if (c->get) {
            const uint32_t got = c->get(&s, k);
            if (sound ? got != l->values[k] : c->docids && got > l->limit) abort();
          }
          if (c->find && l->last && count == 128) {
            const uint32_t at = c->find(&s, block, prev, sound ? l->values[k] : out[i]);
            if (at > GPUIR__UNTOLD || (sound && at != i && at != GPUIR__UNTOLD)) abort();
          }
        }
        free(out);
      }
      free(s.scratch);
    }
  }
}

static void naive(const list *l) {
  uint32_t *out = (uint32_t *)exactly(l->n * sizeof *out);
  naive_list n;
  n.codec = l->coding.codec->name;
  n.docids = l->coding.codec->docids;
  n.n = l->n;
  n.bytes = l->bytes;
  n.len = l->len;
  n.offset = l->offset;
  n.width = l->width;
  if (naive_decode(&n, out) || memcmp(out, l->values, l->n * sizeof *out)) abort();
  free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  input in;
  list l;
  int docids;
  uint32_t mode, i;
  in.p = data;
  in.end = data + size;
  memset(&l, 0, sizeof l);
  mode = take(&in, 1) % 3;
  l.coding = coding_of(take(&in, 1), &docids);
  l.n = take(&in, 2) % MOST + 1;
  l.limit = mode == SOUND ? UINT32_MAX - 1 : UINT32_MAX >> take(&in, 1) % 32;
  l.nblocks = (l.n + 127) / 128;
  l.values = (uint32_t *)exactly(l.n * sizeof *l.values);
  if (l.n >= 128) {
    l.offset = (uint32_t *)exactly(l.nblocks * sizeof *l.offset);
    l.width = (uint8_t *)exactly(l.nblocks);
    if (docids) l.last = (uint32_t *)exactly(l.nblocks * sizeof *l.last);
  }
  if (mode == RAW) {
    for (i = 0; i < l.nblocks && l.offset; i++) {
      l.offset[i] = take(&in, 4);
      l.width[i] = (uint8_t)take(&in, 1);
      if (l.last) l.last[i] = take(&in, 4);
    }
    place(&l, in.p, (size_t)(in.end - in.p));
  } else {
    read_values(&l, &in, docids);
    encode(&l);
    if (mode == DAMAGED) damage(&l, &in);
  }
  decode(&l, mode == SOUND);
  if (mode == SOUND) naive(&l);
  free(l.values);
  free(l.offset);
  free(l.width);
  free(l.last);
  free(l.bytes);
  return 0;
}
