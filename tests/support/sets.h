/* sets.h - sets of docIDs, and intersections of them by any method, as arrays and as lists of any codec, held against a
 * plain look-up; include after an implementation of gpuir.h, tools/lab/isect.h and cmocka.h
 */
#ifndef TESTS_SETS_H
#define TESTS_SETS_H

#include "rng.h"

static unsigned long compared;

typedef struct set {
  uint32_t *docs; /* of its exact size */
  uint32_t n;
} set;

static inline set set_of(const uint32_t *docs, uint32_t n) {
  set s;
  s.n = n;
  s.docs = (uint32_t *)malloc(n ? n * sizeof *docs : 1);
  assert_non_null(s.docs);
  if (n) memcpy(s.docs, docs, n * sizeof *docs);
  return s;
}

/* n docIDs, or as many as fit below 2^32 - 1, with gaps of at least 1. */
enum { RANDOM, CLUSTERED, DENSE, STEPS, CURVED, LATE, SHAPES };
static const char *const shape_name[] = {"random", "clustered", "dense", "steps", "curved", "late"};

static inline set set_make(int shape, uint32_t n, uint32_t spread) {
  uint32_t *docs = (uint32_t *)malloc((n + 1) * sizeof *docs), i;
  uint64_t doc = shape == LATE ? UINT32_MAX - 1 - (uint64_t)n * 2 : below(spread + 1);
  set s;
  assert_non_null(docs);
  for (i = 0; i < n && doc < UINT32_MAX; i++) {
    docs[i] = (uint32_t)doc;
    switch (shape) {
    case RANDOM: doc += 1 + below(2 * spread); break;
    case CLUSTERED: doc += below(64) ? 1 + below(3) : 1 + below(100 * spread); break;
    case DENSE: doc += below(8) ? 1 : 2; break;
    case STEPS: doc += spread + 1; break;
    case CURVED: doc += 1 + (uint64_t)i * i / 64; break;
    default: doc += 1 + (uint64_t)below(2); break;
    }
  }
  s = set_of(docs, i);
  free(docs);
  return s;
}

/* Half of the docIDs of s, and as many others. */
static inline set set_relative(const set *s) {
  uint32_t *docs = (uint32_t *)malloc((2 * (size_t)s->n + 1) * sizeof *docs), i, n = 0;
  set r;
  assert_non_null(docs);
  for (i = 0; i < s->n; i++) {
    if (below(2)) docs[n++] = s->docs[i];
    if (below(2) && s->docs[i] + 1 < UINT32_MAX && (i + 1 == s->n || s->docs[i] + 1 < s->docs[i + 1]))
      docs[n++] = s->docs[i] + 1;
  }
  r = set_of(docs, n);
  free(docs);
  return r;
}

static inline int compare32(const void *x, const void *y) {
  uint32_t a, b;
  memcpy(&a, x, 4);
  memcpy(&b, y, 4);
  return a < b ? -1 : a > b;
}

static inline uint32_t oracle(const set *sets, unsigned k, uint32_t *docs) {
  uint32_t i, n = 0;
  unsigned t;
  for (i = 0; i < sets[0].n; i++) {
    for (t = 1; t < k; t++)
      if (!sets[t].n || !bsearch(&sets[0].docs[i], sets[t].docs, sets[t].n, 4, compare32)) break;
    if (t == k) docs[n++] = sets[0].docs[i];
  }
  return n;
}

typedef struct coded {
  gpuir__list list;
  uint8_t *bytes;
  uint32_t *offset, *last;
  uint8_t *width;
  void *scratch;
} coded;

static inline void coded_free(coded *c) {
  free(c->bytes);
  free(c->offset);
  free(c->last);
  free(c->width);
  free(c->scratch);
}

/* Encodes a set as the index would and opens it as a list. */
static inline void coded_make(coded *c, const gpuir__codec *codec, const set *s, int simd) {
  const gpuir_allocator a = gpuir__allocator(NULL);
  gpuir__buf buf = {NULL, 0, 0};
  gpuir__list *l = &c->list;
  gpuir__stream *d = &l->docs;
  gpuir__target to = {&a, &buf, NULL, NULL, 0};
  uint32_t b, nblocks = s->n ? (s->n - 1) / GPUIR__BLOCK + 1 : 0;
  memset(c, 0, sizeof *c);
  l->df = s->n;
  l->nblocks = nblocks;
  if (s->n == 1) {
    l->one_docid = s->docs[0];
    return;
  }
  if (s->n > GPUIR__SHORT_MAX) {
    c->offset = (uint32_t *)malloc(nblocks * 4);
    c->last = (uint32_t *)malloc(nblocks * 4);
    c->width = (uint8_t *)malloc(nblocks);
    assert_true(c->offset && c->last && c->width);
    for (b = 0; b < nblocks; b++) c->last[b] = s->docs[b + 1 < nblocks ? b * 128 + 127 : s->n - 1];
  }
  to.offset = c->offset;
  to.width = c->width;
  if (s->n) assert_int_equal(codec->encode(codec, s->docs, s->n, &to), GPUIR_OK);
  c->bytes = (uint8_t *)malloc(buf.len + GPUIR__STREAM_PAD);
  assert_non_null(c->bytes);
  if (buf.len) memcpy(c->bytes, buf.data, buf.len);
  memset(c->bytes + buf.len, 0xa5, GPUIR__STREAM_PAD);
  d->codec = codec;
  d->bytes = c->bytes;
  d->len = buf.len;
  d->n = s->n;
  d->limit = UINT32_MAX - 1;
  d->offset = c->offset;
  d->width = c->width;
  d->last = l->last = c->last;
  d->kernels = gpuir__codec_kernels_at(gpuir__simd_level(simd));
  gpuir__buf_free(&a, &buf);
  if (codec->scratch_size) {
    c->scratch = malloc(codec->scratch_size(d) + 1);
    assert_non_null(c->scratch);
    d->scratch = c->scratch;
  }
  if (codec->open && s->n) assert_int_equal(codec->open(d), GPUIR_OK);
}

static inline void check(gpuir__isect *x, const set *sets, unsigned k, const uint32_t *right, uint32_t nright,
    const char *form, const char *kind) {
  uint32_t least = UINT32_MAX, *docs, *where[GPUIR_MAX_TERMS], n, i;
  unsigned t, round;
  for (t = 0; t < k; t++)
    if (sets[t].n < least) least = sets[t].n;
  docs = (uint32_t *)malloc((least + 16) * sizeof *docs);
  for (t = 0; t < k; t++) where[t] = (uint32_t *)malloc((least + 16) * 4);
  for (round = 0; round < 3; round++) { /* docIDs alone, with indices, and once more */
    n = gpuir__isect_run(x, docs, round ? where : NULL);
    compared++;
    if (n != nright || (n && memcmp(docs, right, n * 4)))
      fail_msg("%s, %s, %s, k = %u, lengths %u and %u, simd %d, round %u: %u docIDs, %u are right", x->method->name,
          form, kind, k, (unsigned)sets[0].n, (unsigned)(k > 1 ? sets[1].n : 0), (int)x->operand[0].kernels->level,
          round, (unsigned)n, (unsigned)nright);
    for (t = 0; round && t < k; t++)
      for (i = 0; i < n; i++)
        if (where[t][i] >= sets[t].n || sets[t].docs[where[t][i]] != docs[i])
          fail_msg("%s, %s, %s: match %u stands at a wrong index of operand %u", x->method->name, form, kind,
              (unsigned)i, t);
  }
  free(docs);
  for (t = 0; t < k; t++) free(where[t]);
}

/* Makes the intersection do without an instruction that few processors have; 0: it has done without it. */
static inline int without_pairs(gpuir__isect *x) {
  unsigned t, had = 0;
  for (t = 0; t < x->k; t++) {
    if (x->operand[t].kernels->level != GPUIR__LOOKUP_VP2INTERSECT) continue;
    x->operand[t].kernels = &gpuir__lookup_of_level[GPUIR__LOOKUP_AVX512];
    had = 1;
  }
  return had && !strcmp(x->method->name, "simd");
}

static inline void check_arrays(const gpuir__method *m, const set *sets, unsigned k, const uint32_t *right,
    uint32_t nright, int simd, const char *kind) {
  const uint32_t *docs[GPUIR_MAX_TERMS];
  uint32_t n[GPUIR_MAX_TERMS];
  gpuir__isect x;
  unsigned t;
  for (t = 0; t < k; t++) {
    docs[t] = sets[t].docs;
    n[t] = sets[t].n;
  }
  assert_int_equal(gpuir__isect_arrays(&x, NULL, m, docs, n, k, simd), GPUIR_OK);
  check(&x, sets, k, right, nright, "arrays", kind);
  if (without_pairs(&x)) check(&x, sets, k, right, nright, "arrays, without VP2INTERSECT", kind);
  gpuir__isect_free(&x);
}

static inline void check_lists(const gpuir__method *m, const gpuir__codec *codec, const set *sets, unsigned k,
    const uint32_t *right, uint32_t nright, int simd) {
  const gpuir__list *lists[GPUIR_MAX_TERMS] = {NULL};
  coded c[GPUIR_MAX_TERMS];
  gpuir__isect x;
  unsigned t;
  for (t = 0; t < k; t++) {
    coded_make(&c[t], codec, &sets[t], simd);
    lists[t] = &c[t].list;
  }
  assert_int_equal(gpuir__isect_lists(&x, NULL, m, lists, k, simd), GPUIR_OK);
  check(&x, sets, k, right, nright, "lists", codec->name);
  if (without_pairs(&x)) check(&x, sets, k, right, nright, "lists, without VP2INTERSECT", codec->name);
  gpuir__isect_free(&x);
  for (t = 0; t < k; t++) coded_free(&c[t]);
}

/* Every method on arrays, and on lists: of each codec with `all_codecs`, otherwise of one of them in turn. */
static inline void check_all(const set *sets, unsigned k, int all_codecs, const char *kind) {
  static unsigned turn;
  uint32_t *right = (uint32_t *)malloc(sets[0].n * sizeof *right + 1), n = oracle(sets, k, right);
  const gpuir__method *m;
  size_t i, c;
  int simd;
  for (i = 0, m = gpuir__methods; i < GPUIR__METHODS; i++, m++)
    for (simd = GPUIR_SIMD_SCALAR; simd <= GPUIR_SIMD_AVX512; simd++) {
      check_arrays(m, sets, k, right, n, simd, kind);
      for (c = 0; c < GPUIR__DOCID_CODECS; c++)
        if (all_codecs || c == turn % GPUIR__DOCID_CODECS)
          check_lists(m, &gpuir__docid_codecs[c], sets, k, right, n, simd);
      turn++;
    }
  free(right);
}

#endif
