/* lists.h - lists of values, encoded, decoded again at every SIMD level and read by the naive reader; include after an
 * implementation of gpuir.h and cmocka.h
 */
#ifndef TESTS_LISTS_H
#define TESTS_LISTS_H

#include "alloc.h"
#include "naive.h"
#include "rng.h"

static int rounds = 1; /* more of them: longer tests */
static uint64_t choice; /* the parameter that lists are encoded with */
static uint64_t failures; /* of the test that runs */
static uint64_t told; /* docIDs that find has not left to decoding */

/* One line a failure, but not thousands of them. */
static inline void failed(const char *what, const gpuir__codec *c, const char *kind, uint32_t n, int simd, uint32_t i,
    uint64_t got, uint64_t want) {
  if (failures++ < 20)
    print_error("FAIL %s: %s %s, %s, n = %u, simd %d, at %u: got %llu, want %llu\n", what, c->name,
        c->docids ? "docids" : "freqs", kind, n, simd, i, (unsigned long long)got, (unsigned long long)want);
}

typedef struct list {
  const gpuir__codec *codec;
  const char *kind;
  const uint32_t *values;
  uint32_t n, nblocks;
  uint8_t *bytes; /* in an allocation of its own, pad included, so that the sanitizer sees its end */
  uint8_t *allocation;
  uint64_t len;
  uint32_t *offset;
  uint8_t *width;
  uint32_t *last; /* docIDs only: of each block */
} list;

static inline void list_free(list *l) {
  free(l->allocation);
  free(l->offset);
  free(l->width);
  free(l->last);
}

/* Gives the list bytes of its own: a copy at the end of an allocation. A short list may stand anywhere. */
static inline void list_place(list *l, const uint8_t *from, uint64_t len) {
  size_t shift = l->offset ? 0 : below(16);
  uint64_t i;
  uint8_t *allocation = (uint8_t *)malloc(shift + len + GPUIR__STREAM_PAD);
  assert_non_null(allocation);
  if (len) memcpy(allocation + shift, from, len);
  for (i = 0; i < GPUIR__STREAM_PAD; i++) allocation[shift + len + i] = (uint8_t)rnd();
  free(l->allocation);
  l->allocation = allocation;
  l->bytes = allocation + shift;
  l->len = len;
}

static inline void list_encode(list *l, const gpuir__codec *codec, const char *kind, const uint32_t *values,
    uint32_t n) {
  gpuir_allocator a;
  gpuir__buf buf = {NULL, 0, 0}, again = {NULL, 0, 0};
  alloc_book c = {0, 0, 0, 0, 0};
  size_t before = 32;
  gpuir__target to = {&a, &buf, NULL, NULL, choice};
  int status;
  uint8_t *room;
  a = alloc_from(&c);
  memset(l, 0, sizeof *l);
  l->codec = codec;
  l->kind = kind;
  l->values = values;
  l->n = n;
  l->nblocks = n / 128 + (n % 128 != 0);
  if (n >= 128) {
    l->offset = (uint32_t *)malloc(l->nblocks * sizeof *l->offset);
    l->width = (uint8_t *)malloc(l->nblocks);
    assert_non_null(l->offset);
    assert_non_null(l->width);
  }
  if (n >= 128 && codec->docids) {
    uint32_t b;
    l->last = (uint32_t *)malloc(l->nblocks * sizeof *l->last);
    assert_non_null(l->last);
    for (b = 0; b < l->nblocks; b++) l->last[b] = values[b + 1 < l->nblocks ? b * 128 + 127 : n - 1];
  }
  room = gpuir__buf_room(&a, &buf, before);
  assert_non_null(room);
  memset(room, 0x77, before);
  buf.len = before;
  to.offset = l->offset;
  to.width = l->width;
  status = codec->encode(codec, values, n, &to);
  if (status) failed("encode", codec, kind, n, 0, 0, (uint64_t)(int64_t)status, 0);
  if (buf.len < before) failed("encode: length", codec, kind, n, 0, 0, buf.len, before);
  else if (buf.data[0] != 0x77 || buf.data[before - 1] != 0x77) failed("encode: overwrote", codec, kind, n, 0, 0, 0, 0);
  list_place(l, buf.data + before, buf.len - before);
  if (n >= 128 && l->len % codec->unit) failed("encode: padding", codec, kind, n, 0, 0, l->len % codec->unit, 0);

  /* the same bytes the second time */
  to.out = &again;
  status = codec->encode(codec, values, n, &to);
  if (status || again.len != l->len || (l->len && memcmp(again.data, l->bytes, l->len)))
    failed("encode: differs the second time", codec, kind, n, 0, 0, again.len, l->len);
  gpuir__buf_free(&a, &buf);
  gpuir__buf_free(&a, &again);
  if (c.blocks) failed("encode: leak", codec, kind, n, 0, 0, (uint64_t)c.blocks, 0);
}

/* Opens the list at a level; 0 if the codec refuses it. */
static inline int list_open(const list *l, gpuir__stream *s, uint32_t limit, int simd) {
  size_t size;
  int status;
  memset(s, 0, sizeof *s);
  s->codec = l->codec;
  s->bytes = l->bytes;
  s->len = l->len;
  s->n = l->n;
  s->limit = limit;
  s->offset = l->offset;
  s->width = l->width;
  s->last = l->last;
  s->kernels = gpuir__codec_kernels_at(simd);
  size = l->codec->scratch_size ? l->codec->scratch_size(s) : 0;
  if (size) {
    s->scratch = malloc(size);
    assert_non_null(s->scratch);
  }
  status = l->codec->open ? l->codec->open(s) : 0;
  if (status && status != GPUIR_E_FORMAT)
    failed("open", l->codec, l->kind, l->n, simd, 0, (uint64_t)(int64_t)status, 0);
  if (!status) return 1;
  free(s->scratch);
  return 0;
}

/* Decodes a block into room of the exact size, and copies count values to out. */
static inline void decode(const gpuir__stream *s, uint32_t block, uint32_t prev, uint32_t count, uint32_t *out) {
  uint32_t *room = (uint32_t *)malloc(GPUIR__BLOCK_ROOM * sizeof *room);
  assert_non_null(room);
  memset(room, 0x5a, GPUIR__BLOCK_ROOM * sizeof *room);
  s->codec->decode_block(s, block, prev, room);
  memcpy(out, room, count * sizeof *out);
  free(room);
}

static inline int level_of(const gpuir__stream *s) {
  return (int)(s->kernels - gpuir__codec_of_level) + GPUIR_SIMD_SCALAR;
}

/* What a block of 128 has is found where it is, and what lies between is not; find may leave it to decoding. */
static inline void find_check(const list *l, const gpuir__stream *s, uint32_t block) {
  const uint32_t *v = l->values + (size_t)block * 128, prev = block ? v[-1] : UINT32_MAX;
  uint32_t i, got;
  for (i = 0; i < 128; i++) {
    const uint32_t between = i ? v[i - 1] + 1 : prev + 1;
    got = l->codec->find(s, block, prev, v[i]);
    if (got != i && got != GPUIR__UNTOLD) failed("find", l->codec, l->kind, l->n, level_of(s), block * 128 + i, got, i);
    told += got == i;
    if (between == v[i]) continue;
    got = l->codec->find(s, block, prev, i % 2 ? between : v[i] - 1);
    if (got != GPUIR__ABSENT && got != GPUIR__UNTOLD)
      failed("find: between", l->codec, l->kind, l->n, level_of(s), block * 128 + i, got, GPUIR__ABSENT);
  }
}

/* Everything comes back, at every level, in any order of blocks, clamped to the limit. */
static inline void list_check(const list *l, uint32_t limit) {
  const int best = gpuir__simd_level(GPUIR_SIMD_AUTO);
  int simd;
  for (simd = GPUIR_SIMD_SCALAR; simd <= best; simd++) {
    uint32_t k, i, out[128];
    gpuir__stream s;
    if (!list_open(l, &s, limit, simd)) {
      failed("open refuses its own", l->codec, l->kind, l->n, simd, 0, 1, 0);
      continue;
    }
    for (k = 0; k < l->nblocks; k++) {
      uint32_t block = k % 2 ? l->nblocks - 1 - k / 2 : k / 2;
      uint32_t count = l->n - block * 128 < 128 ? l->n - block * 128 : 128;
      const uint32_t *want = l->values + (size_t)block * 128;
      decode(&s, block, block ? want[-1] : UINT32_MAX, count, out);
      for (i = 0; i < count; i++) {
        uint32_t w = l->codec->docids && want[i] > limit ? limit : want[i];
        if (out[i] != w) {
          failed("decode", l->codec, l->kind, l->n, simd, block * 128 + i, out[i], w);
          break;
        }
      }
      if (l->codec->find && s.last && count == 128) find_check(l, &s, block);
    }
    if (l->codec->get)
      for (k = 0; k < l->n; k += l->n < 2000 ? 1 : 1 + below(97)) {
        uint32_t got = l->codec->get(&s, k);
        if (got != (l->codec->docids && l->values[k] > limit ? limit : l->values[k])) {
          failed("get", l->codec, l->kind, l->n, simd, k, got, l->values[k]);
          break;
        }
      }
    free(s.scratch);
  }
}

/* Increasing values below 2^32 - 1 whose gaps are given as far as there is room. */
static inline void from_gaps(uint32_t *v, uint32_t n, uint32_t first) {
  uint64_t next = first, room = UINT32_MAX; /* the next docID at least; behind the last */
  uint32_t i;
  for (i = 0; i < n; i++) {
    uint64_t d = next + v[i];
    if (d > room - (n - i)) d = next > room - (n - i) ? next : room - (n - i);
    v[i] = (uint32_t)d;
    next = d + 1;
  }
}

#define KINDS 16u

/* Values of kind k: docIDs, or frequencies if not. */
static const char *fill(uint32_t *v, uint32_t n, int docids, unsigned k, unsigned w) {
  uint32_t i, first = 0;
  const char *name = "";
  for (i = 0; i < n; i++) v[i] = 0;
  switch (k) {
  case 0: name = "zeros"; break;
  case 1:
    name = "last docIDs";
    first = UINT32_MAX - n;
    break;
  case 2:
    name = "one width";
    for (i = 0; i < n; i++) v[i] = bits(w);
    break;
  case 3:
    name = "a width a block";
    for (i = 0; i < n; i++) {
      if (i % 128 == 0) w = below(33);
      v[i] = bits(w);
    }
    break;
  case 4:
    name = "any widths";
    for (i = 0; i < n; i++) v[i] = bits(below(33));
    break;
  case 5:
    name = "mostly small";
    for (i = 0; i < n; i++) v[i] = bits(below(20) ? 3 : 16);
    break;
  case 6:
    name = "one huge";
    if (n) v[below(n)] = docids ? UINT32_MAX - n : UINT32_MAX;
    break;
  case 7:
    name = "huge at the end";
    if (n) v[n - 1] = docids ? UINT32_MAX - n : UINT32_MAX;
    break;
  case 8:
    name = "regular";
    for (i = 0; i < n; i++) v[i] = n ? UINT32_MAX / n / 2 : 0;
    break;
  case 9:
    name = "powers of two";
    for (i = 0; i < n; i++) v[i] = (uint32_t)1 << (i % 32);
    break;
  case 10:
    name = "around bytes";
    for (i = 0; i < n; i++) v[i] = ((uint32_t)1 << (7 * below(5))) - below(2);
    break;
  case 11:
    name = "bursts";
    for (i = 0; i < n; i++) v[i] = bits(below(12) ? 1 + w % 4 : 17);
    break;
  case 12:
    name = "a quarter large";
    for (i = 0; i < n; i++) v[i] = bits(below(4) ? w / 2 : w);
    break;
  case 13:
    name = "zeros and jumps";
    for (i = 0; i < n; i++) v[i] = below(30) ? 0 : bits(w);
    break;
  case 14: { /* one word of marks is full, or empty */
    uint32_t from = below(3) * 64, to = from + 64 + below(2) * 32;
    name = "jumps together";
    for (i = 0; i < n; i++) v[i] = bits(i % 128 >= from && i % 128 < to ? 14 : 2);
    break;
  }
  default:
    name = "runs";
    for (i = 0; i < n; i++) v[i] = below(40) ? 0 : bits(w);
    break;
  }
  if (docids) from_gaps(v, n, first);
  return name;
}

static inline void check(const gpuir__codec *c, uint32_t *v, uint32_t n, unsigned k, unsigned w) {
  list l;
  const char *kind = fill(v, n, c->docids, k, w);
  list_encode(&l, c, kind, v, n);
  list_check(&l, UINT32_MAX - 1);
  if (c->docids && n) {
    list_check(&l, v[n - 1]); /* tight */
    list_check(&l, v[below(n)]); /* too low: clamps */
    list_check(&l, 0);
  }
  list_free(&l);
}

static inline naive_list naive_of(const list *l) {
  naive_list n;
  n.codec = l->codec->name;
  n.docids = l->codec->docids;
  n.n = l->n;
  n.bytes = l->bytes;
  n.len = l->len;
  n.offset = l->offset;
  n.width = l->width;
  return n;
}

/* The naive reader finds the values in the bytes, and nothing else. */
static inline void naive_check(const list *l) {
  uint32_t *out = (uint32_t *)malloc(((size_t)l->n + 1) * sizeof *out), i;
  naive_list n = naive_of(l);
  const char *wrong = naive_decode(&n, out);
  if (wrong) {
    if (failures < 20) print_error("%s: ", wrong);
    failed("naive reader", l->codec, l->kind, l->n, 0, 0, 0, 0);
  }
  for (i = 0; i < l->n && !wrong; i++)
    if (out[i] != l->values[i]) {
      failed("naive reader", l->codec, l->kind, l->n, 0, i, out[i], l->values[i]);
      break;
    }
  free(out);
}

/* Puts a number of w bits at bit `at`. */
static inline void put_bits(uint8_t *bytes, size_t at, unsigned w, uint32_t v) {
  unsigned i;
  for (i = 0; i < w; i++) bytes[(at + i) / 8] |= (uint8_t)((v >> i & 1) << ((at + i) % 8));
}

/* One block of count values of b low bits, x of them with h more, in the form of bp128 or in the marked one of optpfd
 * (plain for h = 0), is decoded to those values. All are as large as can be, if `most`. The limit is often among
 * them. */
static inline void made_block(const gpuir__codec *c, uint32_t count, unsigned b, unsigned h, uint32_t x, int most) {
  const int vertical = count == 128 && !strcmp(c->name, "bp128"), best = gpuir__simd_level(GPUIR_SIMD_AUTO);
  const size_t low = (count * b + 7) / 8, marks = h ? (count + 7) / 8 + 1 : 0, start = count < 128;
  const size_t size = start + low + marks + (x * h + 7) / 8;
  const uint32_t prev = below(2) ? UINT32_MAX : bits(32);
  const uint32_t limit = below(2) ? UINT32_MAX - 1 : below(2) ? bits(32) : prev + bits(b + h < 25 ? b + h + 7 : 32);
  uint8_t *bytes = (uint8_t *)calloc(size + GPUIR__STREAM_PAD, 1);
  uint8_t width = (uint8_t)(h == 0 ? b : !strcmp(c->name, "bp128") ? b | 128 : b | 192);
  uint32_t v[128], out[GPUIR__BLOCK_ROOM], offset = 0, i, rank = 0, sum = prev;
  int simd;
  assert_non_null(bytes);
  for (i = 0; i < GPUIR__STREAM_PAD; i++) bytes[size + i] = (uint8_t)rnd();
  if (start) bytes[0] = width;
  if (h) bytes[start + low + marks - 1] = (uint8_t)h;
  for (i = 0; i < count; i++) {
    const uint32_t part = most ? gpuir__low_bits(b) : bits(b);
    unsigned k;
    v[i] = part;
    if (vertical) /* bit k of a value is bit i / 4 * b + k of its lane */
      for (k = 0; k < b; k++) {
        const size_t bit = i / 4 * b + k;
        put_bits(bytes, bit / 32 * 128 + i % 4 * 32 + bit % 32, 1, part >> k & 1);
      }
    else put_bits(bytes + start, i * b, b, part);
    if (below(count - i) < x - rank) { /* x of the count values, any of them */
      const uint32_t high = most ? gpuir__low_bits(h) : bits(h);
      put_bits(bytes + start + low, i, 1, 1);
      put_bits(bytes + start + low + marks, rank++ * h, h, high);
      v[i] |= high << b;
    }
  }
  assert_int_equal(rank, x);
  for (i = 0; c->docids && i < count; i++) {
    sum += v[i] + 1;
    v[i] = sum < limit ? sum : limit;
  }
  for (simd = GPUIR_SIMD_SCALAR; simd <= best; simd++) {
    gpuir__stream s;
    memset(&s, 0, sizeof s);
    s.codec = c;
    s.bytes = bytes;
    s.len = size;
    s.n = count;
    s.limit = limit;
    s.offset = start ? NULL : &offset;
    s.width = start ? NULL : &width;
    s.kernels = gpuir__codec_kernels_at(simd);
    memset(out, 0x55, sizeof out);
    c->decode_block(&s, 0, prev, out);
    for (i = 0; i < count && out[i] == v[i]; i++) continue;
    if (i < count) failed("made block", c, most ? "largest" : "random", count, simd, i, out[i], v[i]);
    for (i = 0; c->get && i < count; i++)
      if (c->get(&s, i) != v[i]) failed("made block: get", c, "", count, simd, i, c->get(&s, i), v[i]);
  }
  free(bytes);
}

/* Blocks of all widths of both parts, whether an encoder would choose them or not: of few bits with each number of
 * exceptions, of more with some. */
static inline void made_blocks(const char *name) {
  unsigned k, b, h;
  uint32_t x, count;
  failures = 0;
  for (k = 0; k < 2; k++)
    for (b = 0; b <= 32; b++)
      for (h = 0; h <= 32 - b; h++) {
        const gpuir__codec *c = gpuir__codec_by_name(name, (int)k);
        const int few = b <= 9 && b + h <= 17;
        for (x = 0; x <= (h ? 128u : 0u); x += few ? 1 : 1 + below(32)) {
          made_block(c, 128, b, h, x, (int)below(2));
          if (few && x % 8 == 0) made_block(c, 128, b, h, x, 1);
          count = 1 + below(127);
          made_block(c, count, b, h, x < count ? x : count, (int)below(2));
        }
      }
  assert_int_equal(failures, 0);
}

#endif
