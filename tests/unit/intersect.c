/* intersect.c - every intersection method equals brute force, on arrays and on lists of every codec
 *
 * The oracle looks each docID of the first set up in all others by bsearch. Comparisons are for equality, of the
 * docIDs and of their indices in every operand. Arrays are heap blocks of their exact size, so that a sanitizer sees
 * their ends. A method that is added to the table is tested without a change here. */
#define GPUIR_IMPLEMENTATION
#define GPUIR_STATIC
#include "gpuir.h"
#include "tools/lab/isect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static uint64_t rng_state = 88172645463325252u;
static unsigned long compared;

static uint32_t rnd(void) {
  rng_state ^= rng_state << 13;
  rng_state ^= rng_state >> 7;
  rng_state ^= rng_state << 17;
  return (uint32_t)(rng_state >> 16);
}

static uint32_t below(uint32_t n) { return (uint32_t)((uint64_t)rnd() * n >> 32); }

/* ---- sets ---- */

typedef struct set {
  uint32_t *docs; /* of its exact size */
  uint32_t n;
} set;

static set set_of(const uint32_t *docs, uint32_t n) {
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

static set set_make(int shape, uint32_t n, uint32_t spread) {
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
static set set_relative(const set *s) {
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

/* ---- the oracle ---- */

static int compare32(const void *x, const void *y) {
  uint32_t a, b;
  memcpy(&a, x, 4);
  memcpy(&b, y, 4);
  return a < b ? -1 : a > b;
}

static uint32_t oracle(const set *sets, unsigned k, uint32_t *docs) {
  uint32_t i, n = 0;
  unsigned t;
  for (i = 0; i < sets[0].n; i++) {
    for (t = 1; t < k; t++)
      if (!sets[t].n || !bsearch(&sets[0].docs[i], sets[t].docs, sets[t].n, 4, compare32)) break;
    if (t == k) docs[n++] = sets[0].docs[i];
  }
  return n;
}

/* ---- lists ---- */

typedef struct coded {
  gpuir__list list;
  uint8_t *bytes;
  uint32_t *offset, *last;
  uint8_t *width;
  void *scratch;
} coded;

static void coded_free(coded *c) {
  free(c->bytes);
  free(c->offset);
  free(c->last);
  free(c->width);
  free(c->scratch);
}

/* Encodes a set as the index would and opens it as a list. */
static void coded_make(coded *c, const gpuir__codec *codec, const set *s, int simd) {
  const gpuir_allocator a = gpuir__allocator(NULL);
  gpuir__buf buf = {NULL, 0, 0};
  gpuir__list *l = &c->list;
  gpuir__stream *d = &l->docs;
  uint64_t param = 0;
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
  if (s->n) assert_int_equal(codec->encode(&a, s->docs, s->n, &buf, c->offset, c->width, &param), GPUIR_OK);
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
  d->simd = gpuir__simd_level(simd);
  gpuir__buf_free(&a, &buf);
  if (codec->scratch_size) {
    c->scratch = malloc(codec->scratch_size(d) + 1);
    assert_non_null(c->scratch);
    d->scratch = c->scratch;
  }
  if (codec->open && s->n) assert_int_equal(codec->open(d), GPUIR_OK);
}

/* ---- comparing ---- */

static void check(gpuir__isect *x, const set *sets, unsigned k, const uint32_t *right, uint32_t nright,
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
      fail_msg("%s, %s, %s, k = %u, lengths %u and %u, simd %d, round %u: %u docIDs, %u are right",
               x->method->name, form, kind, k, (unsigned)sets[0].n, (unsigned)(k > 1 ? sets[1].n : 0),
               x->operand[0].simd, round, (unsigned)n, (unsigned)nright);
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
static int without_pairs(gpuir__isect *x) {
  unsigned t, had = 0;
  for (t = 0; t < x->k; t++) {
    had |= x->operand[t].pairs && x->operand[t].simd == GPUIR_SIMD_AVX512;
    x->operand[t].pairs = 0;
  }
  return had && !strcmp(x->method->name, "simd");
}

static void check_arrays(const gpuir__method *m, const set *sets, unsigned k, const uint32_t *right,
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

static void check_lists(const gpuir__method *m, const gpuir__codec *codec, const set *sets, unsigned k,
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

/* ---- damaged lists ---- */

#define DAMAGED_CANDIDATES 120u
#define CANARY 0x5aa5c33cu

/* The candidates, or a list of which each block has the same few docIDs again and again. */
static void disorder(const gpuir__stream *d, uint32_t block, uint32_t prev, uint32_t *out) {
  uint32_t i;
  (void)prev;
  for (i = 0; i < GPUIR__BLOCK; i++) out[i] = d->last ? 120 * block + 2 * (i % 7) + 2 : 2 * i;
}

/* Tells anything that may be told. */
static uint32_t disorder_find(const gpuir__stream *d, uint32_t block, uint32_t prev, uint32_t x) {
  (void)d;
  return (x / 2 + block + prev) % (GPUIR__UNTOLD + 1);
}

/* Whatever a list decodes to: no more matches than candidates, and nothing written behind them but what has room. */
static void damaged(void **state) {
  const gpuir__codec codec = {"disorder", 0, 1, 1, 0, 0, NULL, NULL, NULL, disorder, NULL, disorder_find};
  const uint32_t room = DAMAGED_CANDIDATES + 16, nblocks = 2;
  uint32_t last[2], docs[1024], spots[2][1024], *where[2], i;
  const gpuir__list *lists[2];
  gpuir__list l[2];
  gpuir__isect x;
  int simd, round;
  (void)state;
  memset(l, 0, sizeof l);
  for (i = 0; i < nblocks; i++) last[i] = 120 * (i + 1);
  for (i = 0; i < 2; i++) {
    l[i].docs.codec = &codec;
    l[i].df = l[i].docs.n = i ? nblocks * GPUIR__BLOCK : DAMAGED_CANDIDATES;
    l[i].nblocks = i ? nblocks : 1;
    l[i].last = l[i].docs.last = i ? last : NULL;
    lists[i] = &l[i];
    where[i] = spots[i];
  }
  for (simd = GPUIR_SIMD_SCALAR; simd <= GPUIR_SIMD_AVX512; simd++)
    for (round = 0; round < 6; round++) {
      assert_int_equal(gpuir__isect_lists(&x, NULL, gpuir__method_by_name("simd"), lists, 2, simd), GPUIR_OK);
      if (round / 2 == 1) (void)without_pairs(&x);
      if (round / 2 == 2) x.operand[1].n = UINT32_MAX; /* as if the list were very much longer */
      for (i = 0; i < 1024; i++) docs[i] = spots[0][i] = spots[1][i] = CANARY;
      assert_true(gpuir__isect_run(&x, docs, round % 2 ? where : NULL) <= DAMAGED_CANDIDATES);
      for (i = room; i < 1024; i++)
        assert_true(docs[i] == CANARY && spots[0][i] == CANARY && spots[1][i] == CANARY);
      gpuir__isect_free(&x);
    }
}

/* Every method on arrays, and on lists: of each codec with `all_codecs`, otherwise of one of them in turn. */
static void check_all(const set *sets, unsigned k, int all_codecs, const char *kind) {
  static unsigned turn;
  uint32_t *right = (uint32_t *)malloc(sets[0].n * sizeof *right + 1), n = oracle(sets, k, right);
  const gpuir__method *m;
  size_t i, c;
  int simd;
  for (i = 0; (m = gpuir__method_at(i)) != NULL; i++)
    for (simd = GPUIR_SIMD_SCALAR; simd <= GPUIR_SIMD_AVX512; simd++) {
      check_arrays(m, sets, k, right, n, simd, kind);
      for (c = 0; c < GPUIR__DOCID_CODECS; c++)
        if (all_codecs || c == turn % GPUIR__DOCID_CODECS)
          check_lists(m, &gpuir__docid_codecs[c], sets, k, right, n, simd);
      turn++;
    }
  free(right);
}

/* ---- tests ---- */

static void edges(void **state) {
  static const uint32_t zero[] = {0}, most[] = {UINT32_MAX - 1}, both[] = {0, UINT32_MAX - 1};
  static const uint32_t run[] = {5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21};
  set pool[7];
  unsigned i, j;
  (void)state;
  pool[0] = set_of(NULL, 0);
  pool[1] = set_of(zero, 1);
  pool[2] = set_of(most, 1);
  pool[3] = set_of(both, 2);
  pool[4] = set_of(run, 17);
  pool[5] = set_make(DENSE, 1000, 1);
  pool[6] = set_make(LATE, 700, 1);
  pool[6].docs[pool[6].n - 1] = UINT32_MAX - 1;
  for (i = 0; i < 7; i++)
    for (j = 0; j < 7; j++) {
      set s[2];
      s[0] = pool[i];
      s[1] = pool[j];
      check_all(s, 2, 1, "edges");
    }
  for (i = 0; i < 7; i++) check_all(&pool[i], 1, 1, "alone");
  for (i = 0; i < 7; i++) free(pool[i].docs);
}

/* Every length up to a few registers and blocks, against every kind of partner. */
static void lengths(void **state) {
  uint32_t n;
  (void)state;
  for (n = 0; n < 300; n += 1 + n / 24) {
    set s[2];
    unsigned shape;
    for (shape = 0; shape < SHAPES; shape++) {
      s[0] = set_make((int)shape, n, 1 + below(4));
      s[1] = set_relative(&s[0]);
      check_all(s, 2, 0, shape_name[shape]);
      free(s[1].docs);
      s[1] = set_make((int)shape, n + below(40), 1 + below(4));
      check_all(s, 2, 0, shape_name[shape]);
      free(s[1].docs);
      free(s[0].docs);
    }
  }
}

static void shapes(void **state) {
  unsigned a, b;
  (void)state;
  for (a = 0; a < SHAPES; a++)
    for (b = 0; b < SHAPES; b++) {
      set s[2];
      s[0] = set_make((int)a, 200 + below(3000), 1 + below(20));
      s[1] = set_make((int)b, 200 + below(9000), 1 + below(6));
      check_all(s, 2, (a * SHAPES + b) % 4 == 0, shape_name[a]);
      free(s[1].docs);
      s[1] = set_of(s[0].docs, s[0].n);
      if (a == b) check_all(s, 2, 1, "equal");
      free(s[0].docs);
      free(s[1].docs);
    }
}

/* Ratios from 1 to 10^5, drawn from the long list and beside it. */
static void ratios(void **state) {
  uint32_t ratio;
  (void)state;
  for (ratio = 1; ratio <= 131072; ratio *= 2) {
    set s[2];
    uint32_t i, n = 0, want = 200000 / ratio < 400 ? 200000 / ratio + 1 : 400, *docs;
    s[0] = set_make(ratio % 3 ? RANDOM : CLUSTERED, want * ratio, 3);
    docs = (uint32_t *)malloc((s[0].n + 1) * 4);
    for (i = below(ratio); i < s[0].n; i += 1 + below(2 * ratio)) {
      uint32_t doc = s[0].docs[i] + below(2);
      if (!n || doc > docs[n - 1]) docs[n++] = doc;
    }
    s[1] = set_of(docs, n);
    check_all(s, 2, 0, "ratio");
    free(docs);
    free(s[0].docs);
    free(s[1].docs);
  }
}

/* Up to `most` docIDs of s or beside them: alone, a few in a block, at both ends. */
static set set_sparse(const set *s, uint32_t most, unsigned round) {
  uint32_t docs[16], n = 0, i = round % 4 ? below(s->n) : 0;
  while (n < most && i < s->n) {
    uint32_t doc = s->docs[i] + below(2);
    if (!n || doc > docs[n - 1]) docs[n++] = doc;
    i += 1 + (below(3) ? below(s->n / most) : below(40));
    if (n + 1 == most && round % 3 == 0) i = s->n - 1;
  }
  return set_of(docs, n);
}

/* Candidates so few that blocks are searched as they are: blocks of each width, with exceptions and without, and some
 * of too wide a span. */
static void sparse(void **state) {
  static const uint32_t spreads[] = {1, 3, 40, 700, 9000};
  const gpuir__method *simds = gpuir__method_by_name("simd");
  unsigned shape, spread, round;
  size_t c;
  int simd;
  (void)state;
  for (shape = 0; shape < SHAPES; shape++)
    for (spread = 0; spread < sizeof spreads / sizeof *spreads; spread++) {
      set s[2];
      s[1] = set_make((int)shape, GPUIR__SPARSE * 12 + below(300), spreads[spread]);
      for (round = 0; round < 12; round++) {
        uint32_t right[16], n, most = s[1].n / GPUIR__SPARSE;
        s[0] = set_sparse(&s[1], most < 2 ? 1 : 1 + below(most), round);
        n = oracle(s, 2, right);
        for (c = 0; c < GPUIR__DOCID_CODECS; c++)
          for (simd = GPUIR_SIMD_SCALAR; simd <= GPUIR_SIMD_AVX512; simd++)
            if (gpuir__docid_codecs[c].find || (c + round) % GPUIR__DOCID_CODECS == 0)
              check_lists(simds, &gpuir__docid_codecs[c], s, 2, right, n, simd);
        free(s[0].docs);
      }
      free(s[1].docs);
    }
}

static void apart(void **state) {
  set s[2];
  uint32_t i;
  (void)state;
  s[0] = set_make(DENSE, 5000, 1); /* before, behind, and alternating */
  s[1] = set_make(LATE, 3000, 1);
  check_all(s, 2, 0, "before");
  for (i = 0; i < s[0].n; i++) s[0].docs[i] = 2 * i;
  for (i = 0; i < s[1].n; i++) s[1].docs[i] = 2 * i + 1;
  check_all(s, 2, 0, "alternating");
  for (i = 0; i < s[0].n; i++) s[0].docs[i] = i / 1000 * 100000 + i % 1000;
  for (i = 0; i < s[1].n; i++) s[1].docs[i] = i / 500 * 100000 + 50000 + i % 500;
  check_all(s, 2, 0, "turns");
  free(s[0].docs);
  free(s[1].docs);
}

static void many(void **state) {
  static const unsigned ks[] = {3, 4, 7, 33, 64};
  unsigned i, t;
  (void)state;
  for (i = 0; i < sizeof ks / sizeof *ks; i++) {
    set s[GPUIR_MAX_TERMS];
    for (t = 0; t < ks[i]; t++) {
      uint32_t j, n = 0, *docs = (uint32_t *)malloc(20000 * 4);
      uint32_t step = t % 5 + 1; /* all have the multiples of 60, and by chance more */
      for (j = 0; j < 20000; j++)
        if (j % 60 == 0 || (j % step == 0 && below(8))) docs[n++] = j;
      s[t] = set_of(docs, n);
      free(docs);
    }
    check_all(s, ks[i], i == 0, "many");
    for (t = 0; t < ks[i]; t++) free(s[t].docs);
  }
}

/* Any number of MergePath's partitions gives the same; the arithmetic that cuts them parts no equal docIDs. */
static void partitions(void **state) {
  static const uint64_t parts[] = {1, 2, 3, 7, 64, 1000, 5000, 100000};
  const gpuir__method *m = gpuir__method_by_name("mergepath");
  uint32_t *right, nright;
  set s[2];
  size_t i;
  (void)state;
  s[0] = set_make(DENSE, 1500, 1);
  s[1] = set_make(DENSE, 2500, 1);
  right = (uint32_t *)malloc(s[0].n * sizeof *right);
  nright = oracle(s, 2, right);
  for (i = 0; i < sizeof parts / sizeof *parts; i++) {
    const uint32_t *docs[2], n[2] = {s[0].n, s[1].n};
    gpuir__isect x;
    docs[0] = s[0].docs;
    docs[1] = s[1].docs;
    assert_int_equal(gpuir__isect_arrays(&x, NULL, m, docs, n, 2, 0), GPUIR_OK);
    x.operand[1].param = parts[i];
    check(&x, s, 2, right, nright, "arrays", "partitions");
    gpuir__isect_free(&x);
  }
  free(right);
  free(s[0].docs);
  free(s[1].docs);
}

/* ---- searchers ---- */

/* Words by chance: the greater their number, the rarer, and more so in some stretches of docIDs than in others. */
static void build(const char *codec, const char *path) {
  gpuir_builder_desc bd;
  gpuir_builder *b;
  gpuir_error err;
  unsigned d, w;
  memset(&bd, 0, sizeof bd);
  bd.path = path;
  bd.codec = codec;
  if (gpuir_builder_create(&bd, &b, &err)) fail_msg("%s", err.msg);
  for (d = 0; d < 6000; d++) {
    char text[1024];
    size_t n = 0;
    for (w = 0; w < 40; w++)
      if (!below(w * w / 8 + 1 + (d / 500 % 3) * w))
        n += (size_t)snprintf(text + n, sizeof text - n, "w%u %s", w, below(3) ? "" : "w1 ");
    if (gpuir_builder_add_text(b, NULL, text, n, &err)) fail_msg("%s", err.msg);
  }
  if (gpuir_builder_write(b, NULL, &err)) fail_msg("%s", err.msg);
  gpuir_builder_destroy(b);
}

static gpuir_searcher *searcher_by(gpuir_index *ix, const char *intersection, int evaluator) {
  gpuir_searcher_desc sd;
  gpuir_searcher *s = NULL;
  memset(&sd, 0, sizeof sd);
  sd.intersection = intersection;
  sd.evaluator = evaluator;
  assert_int_equal(gpuir_searcher_create(ix, &sd, &s), GPUIR_OK);
  return s;
}

static void compare_searchers(gpuir_index *ix, gpuir_searcher *s, gpuir_searcher *reference, const char *text,
                              const char *method) {
  static gpuir_hit hits[2][6000];
  gpuir_query *q = NULL;
  gpuir_error err;
  uint64_t count;
  size_t n[2], k;
  if (gpuir_query_parse(ix, NULL, text, strlen(text), &q, &err)) fail_msg("%s", err.msg);
  for (k = 1; k <= 6000; k *= 20) {
    assert_int_equal(gpuir_search(s, q, hits[0], k, &n[0]), GPUIR_OK);
    assert_int_equal(gpuir_search(reference, q, hits[1], k, &n[1]), GPUIR_OK);
    if (n[0] != n[1] || memcmp(hits[0], hits[1], n[0] * sizeof hits[0][0]))
      fail_msg("%s, simd %s, k = %u: other hits for \"%s\"", method, gpuir_simd_name(ix->simd), (unsigned)k,
               text);
  }
  assert_int_equal(gpuir_search(reference, q, hits[1], 6000, &n[1]), GPUIR_OK);
  assert_int_equal(gpuir_count(s, q, &count), GPUIR_OK);
  if (count != n[1])
    fail_msg("%s counts %u, not %u, for \"%s\"", method, (unsigned)count, (unsigned)n[1], text);
  compared++;
  gpuir_query_destroy(q);
}

/* AND and count by every method equal the exhaustive evaluator, which intersects nothing. */
static void searchers(void **state) {
  static const char *const codecs[] = {"bp128", "vbyte", "hslrc", "ef"};
  static const char *const queries[] = {
      "w0",          "w1 w2",          "w2 w1 w3",       "w9 w1",    "w39 w1 w0",
      "w3 w4 w5 w6", "w2 -w3",         "w1 w2 -w9 -w39", "w4 w4 w1", "w30 w31",
      "w1 w0 w2 w3", "w12 w2 nothing", "w20 w5 w1 -w0",  "w39 -w38"};
  const char *tmp = getenv("TMPDIR");
  char folder[4096], file[4200];
  size_t c, i, t;
  int simd;
  (void)state;
  (void)snprintf(folder, sizeof folder, "%s/intersect-XXXXXX", tmp ? tmp : "/tmp");
  assert_non_null(mkdtemp(folder));
  (void)snprintf(file, sizeof file, "%s/x.gpuir", folder);
  for (c = 0; c < sizeof codecs / sizeof *codecs; c++) {
    build(codecs[c], file);
    for (simd = GPUIR_SIMD_SCALAR; simd <= GPUIR_SIMD_AVX512; simd++) {
      gpuir_open_desc od;
      gpuir_index *ix;
      gpuir_searcher *reference;
      gpuir_error err;
      memset(&od, 0, sizeof od);
      od.simd = simd;
      if (gpuir_open(file, &od, &ix, &err)) fail_msg("%s", err.msg);
      reference = searcher_by(ix, NULL, GPUIR_EVAL_EXHAUSTIVE);
      for (i = 0; i <= GPUIR__METHODS; i++) { /* the last one is the engine's choice */
        gpuir_searcher *s = searcher_by(ix, gpuir_intersection_name(i), GPUIR_EVAL_AUTO);
        for (t = 0; t < sizeof queries / sizeof *queries; t++)
          compare_searchers(ix, s, reference, queries[t],
                            i < GPUIR__METHODS ? gpuir_intersection_name(i) : "auto");
        gpuir_searcher_destroy(s);
      }
      gpuir_searcher_destroy(reference);
      if (simd == GPUIR_SIMD_SCALAR) {
        gpuir_searcher_desc sd;
        gpuir_searcher *s;
        memset(&sd, 0, sizeof sd);
        sd.intersection = "mergesort";
        assert_int_equal(gpuir_searcher_create(ix, &sd, &s), GPUIR_E_ARGUMENT);
        assert_null(s);
      }
      gpuir_close(ix);
    }
    assert_int_equal(unlink(file), 0);
  }
  assert_int_equal(rmdir(folder), 0);
}

static void names(void **state) {
  size_t i;
  (void)state;
  for (i = 0; gpuir__method_at(i); i++) {
    assert_string_equal(gpuir_intersection_name(i), gpuir__method_at(i)->name);
    assert_ptr_equal(gpuir__method_by_name(gpuir_intersection_name(i)), gpuir__method_at(i));
  }
  assert_null(gpuir_intersection_name(i));
  assert_null(gpuir__method_by_name("mergesort"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names),   cmocka_unit_test(edges),      cmocka_unit_test(lengths),
      cmocka_unit_test(shapes),  cmocka_unit_test(ratios),     cmocka_unit_test(apart),
      cmocka_unit_test(many),    cmocka_unit_test(partitions), cmocka_unit_test(searchers),
      cmocka_unit_test(damaged), cmocka_unit_test(sparse),
  };
  int failed = cmocka_run_group_tests_name("intersect", tests, NULL, NULL);
  print_message("%lu intersections compared\n", compared);
  return failed;
}
