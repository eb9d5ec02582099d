/* 24_postings.c - scores in fixed point and their numeric traps, one test each; cursors */
#include "private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rng.h"
#include "oracle.h"
#include "corpus.h"
#include "fixture.h"

typedef struct scored {
  oracle o;
  gpuir_index *index[3]; /* by SIMD level */
  gpuir_searcher *searcher[6];
  gpuir_hit *hits;
} scored;

static void score_setup(scored *f) {
  char path[4200];
  gpuir_error err;
  int i;
  (void)corpus_path(path, sizeof path, "scores.gpuir");
  if (corpus_write(&f->o, path, NULL, &err)) fail_msg("%s", err.msg);
  for (i = 0; i < 3; i++) {
    gpuir_open_desc od;
    gpuir_searcher_desc sd;
    memset(&od, 0, sizeof od);
    od.simd = GPUIR_SIMD_SCALAR + i;
    if (gpuir_open(path, &od, &f->index[i], &err)) fail_msg("%s", err.msg);
    if (i == 0 && gpuir_verify(f->index[i], &err)) fail_msg("%s", err.msg);
    memset(&sd, 0, sizeof sd);
    assert_int_equal(gpuir_searcher_create(f->index[i], &sd, &f->searcher[i * 2], NULL), GPUIR_OK);
    sd.evaluator = GPUIR_EVAL_EXHAUSTIVE;
    assert_int_equal(gpuir_searcher_create(f->index[i], &sd, &f->searcher[i * 2 + 1], NULL), GPUIR_OK);
  }
  (void)unlink(path);
  f->hits = (gpuir_hit *)oracle_grow(NULL, f->o.ndocs, sizeof *f->hits);
}

static void score_teardown(scored *f) {
  int i;
  for (i = 0; i < 6; i++) gpuir_searcher_destroy(f->searcher[i]);
  for (i = 0; i < 3; i++) gpuir_close(f->index[i]);
  free(f->hits);
  oracle_free(&f->o);
}

static int score_parse(const gpuir_index *ix, const char *text, float k1, float b, gpuir_query **q) {
  gpuir_query_desc desc;
  memset(&desc, 0, sizeof desc);
  desc.mode = GPUIR_OR;
  desc.custom_bm25 = 1;
  desc.k1 = k1;
  desc.b = b;
  return gpuir_query_parse(ix, &desc, text, strlen(text), q, NULL);
}

/* The first k hits of one term; the oracle's ranking is in f->o.hits[1]. Returns the number. */
static size_t check_term(scored *f, const char *word, float k1, float b, size_t k) {
  oracle_query oq;
  size_t n = 0, i, want;
  int s;
  const oracle_hit *right;
  oq.n = 1;
  oq.word[0].term = oracle_find(&f->o, word, strlen(word));
  oq.word[0].negated = 0;
  assert_int_equal(oracle_run(&f->o, &oq, k1, b), 0);
  right = oracle_answer(&f->o, 1, k, &want);
  for (s = 0; s < 6; s++) {
    gpuir_query *q;
    assert_int_equal(score_parse(f->index[s / 2], word, k1, b, &q), GPUIR_OK);
    assert_int_equal(gpuir_search(f->searcher[s], q, f->hits, k, &n), GPUIR_OK);
    assert_int_equal(n, want);
    for (i = 0; i < n; i++)
      if (f->hits[i].docid != right[i].docid || f->hits[i].score != right[i].score)
        fail_msg("%s, %s: hit %lu is (%u, %u), not (%u, %u)", word, s & 1 ? "exhaustive" : "auto", (unsigned long)i,
            (unsigned)f->hits[i].docid, (unsigned)f->hits[i].score, (unsigned)right[i].docid, (unsigned)right[i].score);
    gpuir_query_destroy(q);
  }
  return n;
}

/* A contribution that rounds to 0 is 1: 0 means no match, and the document does match. */
static void test_contribution_is_at_least_one(void **state) {
  scored f;
  uint32_t d;
  size_t n, i, ones = 0;
  float W;
  (void)state;
  oracle_init(&f.o);
  corpus_words(&f.o, 2);
  for (d = 0; d < 20000; d++) {
    oracle_add(&f.o, 0, 1); /* df = N */
    if (d % 2000 == 7) oracle_add(&f.o, 1, 5000 + d);
    oracle_doc(&f.o);
  }
  oracle_invert(&f.o);
  score_setup(&f);
  W = oracle_weight(oracle_idf(20000, 20000), 1000.0f);
  assert_true((double)W / (1 + (double)oracle_norm(1000.0f, 1.0f, f.o.tokens, 20000, f.o.dl[7])) < 0.5);
  n = check_term(&f, "w0", 1000.0f, 1.0f, 20000);
  assert_int_equal(n, 20000);
  for (i = 0; i < n; i++) ones += f.hits[i].score == 1;
  assert_true(ones > 0); /* these would be 0 */
  n = check_term(&f, "w0", 0.9f, 0.4f, 20000);
  assert_int_equal(n, 20000);
  score_teardown(&f);
}

/* With k1 = 0 and tf = 1 the quotient is W itself; where W ends in exactly .5 it goes to the even
 * neighbour. idf in [4, 8) has W in [2^22, 2^23), whose unit is a half. */
static void test_halves_round_to_even(void **state) {
  scored f;
  uint32_t d, t, up = 0, down = 0;
  (void)state;
  oracle_init(&f.o);
  corpus_words(&f.o, 60);
  for (d = 0; d < 4000; d++) {
    for (t = 0; t < 60; t++)
      if (d <= t) oracle_add(&f.o, t, 1); /* df = t + 1 */
    oracle_doc(&f.o);
  }
  oracle_invert(&f.o);
  score_setup(&f);
  for (t = 0; t < 60; t++) {
    double W = (double)oracle_weight(oracle_idf(4000, t + 1), 0.0f), whole = floor(W);
    assert_int_equal(check_term(&f, f.o.name[t], 0.0f, 0.0f, 4000), t + 1);
    if (W - whole < 0.5 || W - whole > 0.5) continue;
    if (fmod(whole, 2.0) > 0.5) {
      assert_int_equal(f.hits[0].score, (uint32_t)whole + 1);
      up++;
    } else {
      assert_int_equal(f.hits[0].score, (uint32_t)whole);
      down++;
    }
  }
  assert_true(up > 3 && down > 3); /* both kinds were seen */
  score_teardown(&f);
}

/* tf and length count up to 2^24 - 1, in every path: beyond it all documents are alike. */
static void test_tf_and_length_are_capped(void **state) {
  static const uint32_t tf[] = {16777214, 16777215, 16777216, 16777217, 33554432, 1073741824, 4294967295u, 3000000000u};
  scored f;
  uint32_t d, filler;
  size_t n, i;
  (void)state;
  for (filler = 0; filler < 2; filler++) { /* a short list, and one with blocks */
    oracle_init(&f.o);
    corpus_words(&f.o, 2);
    for (d = 0; d < 8 + filler * 400; d++) {
      oracle_add(&f.o, 0, d < 8 ? tf[d] : 1 + d);
      oracle_doc(&f.o);
    }
    for (d = 0; d < 200; d++) {
      oracle_add(&f.o, 1, 1);
      oracle_doc(&f.o);
    }
    oracle_invert(&f.o);
    score_setup(&f);
    n = check_term(&f, "w0", 0.9f, 0.4f, 500);
    assert_true(n >= 8);
    for (i = 0; i < n; i++)
      if (f.hits[i].docid >= 1 && f.hits[i].docid < 8) /* equal contributions, whatever lies beyond the cap */
        assert_int_equal(f.hits[i].score,
            oracle_c(oracle_weight(oracle_idf(f.o.ndocs, n), 0.9f),
                oracle_norm(0.9f, 0.4f, f.o.tokens, f.o.ndocs, ORACLE_CAP), ORACLE_CAP));
    (void)check_term(&f, "w0", 400.0f, 1.0f, 500);
    (void)check_term(&f, "w0", 0.0f, 0.0f, 500);
    (void)check_term(&f, "w0", 0.9f, 0.4f, 3);
    score_teardown(&f);
  }
}

/* W * tf / (tf + K) in binary32 is not monotone, so a bound taken from (tf, dl) needs slack. */
static void test_division_is_not_monotone(void **state) {
  rng r;
  unsigned long i, violations = 0, rounds = corpus_long_run() ? 20000000 : 2000000;
  (void)state;
  r.s = 201;
  for (i = 0; i < rounds; i++) {
    float k1 = (float)(rng_unit(&r) * (i % 2 ? 1000.0 : 3.0)), b = (float)rng_unit(&r);
    float W = (float)ldexp(1.0 + rng_unit(&r), (int)rng_below(&r, 31));
    uint32_t average = 1 + rng_below(&r, 5000), limit = 1u << (1 + rng_below(&r, 24)), c, least;
    uint32_t tf = 1 + rng_below(&r, limit), dl = tf + rng_below(&r, 100000);
    uint32_t less = rng_below(&r, 2) ? tf - rng_below(&r, tf < 20 ? tf : 20) : 1 + rng_below(&r, tf);
    uint32_t more = rng_below(&r, 3) ? dl : dl + rng_below(&r, 10);
    if (i % 5 == 0) k1 = 0.0f;
    c = oracle_c(W, oracle_norm(k1, b, average, 1, dl), tf);
    least = oracle_c(W, oracle_norm(k1, b, average, 1, more), less);
    violations += least > c;
    assert_true(least <= oracle_bound(c));
    assert_true(c <= oracle_bound((uint32_t)ceil((double)W))); /* what the range rule counts with */
  }
  assert_true(violations > 0); /* the trap is real */
}

/* Lists whose order is decided by roundings alone, with blocks enough to be skipped wrongly. */
static void test_pruning_survives_non_monotone_scores(void **state) {
  static const float k1[] = {0.0f, 0.9f, 1000.0f};
  static const size_t ks[] = {1, 2, 3, 10, 50, 100, 1000};
  scored f;
  unsigned i, j;
  uint32_t t, d, rises = 0;
  size_t n;
  (void)state;
  corpus_saturated(&f.o, 30000, 202);
  score_setup(&f);
  for (i = 0; i < 3; i++)
    for (t = 0; t < 4; t++)
      for (j = 0; j < 7; j++) (void)check_term(&f, f.o.name[t], k1[i], i == 1 ? 0.4f : 0.0f, ks[j]);
  n = check_term(&f, "w0", 1000.0f, 0.0f, 30000);
  for (d = 1; d < n; d++) {
    uint32_t above = oracle_tf(&f.o, 0, f.hits[d - 1].docid), below = oracle_tf(&f.o, 0, f.hits[d].docid);
    rises += f.hits[d - 1].score > f.hits[d].score && above < below;
  }
  assert_true(rises > 0);
  score_teardown(&f);
}

/* One weight of 2^31 or more cannot be held. The border is found in k1, to the last bit. */
static void test_weight_out_of_range(void **state) {
  scored f;
  uint32_t d;
  float low = 1.0f, high = 1000.0f, idf;
  gpuir_query *q;
  (void)state;
  oracle_init(&f.o);
  corpus_words(&f.o, 2);
  for (d = 0; d < 3000; d++) {
    if (d == 1500) oracle_add(&f.o, 0, 3);
    oracle_add(&f.o, 1, 1);
    oracle_doc(&f.o);
  }
  oracle_invert(&f.o);
  score_setup(&f);
  idf = oracle_idf(3000, 1);
  assert_true(oracle_weight(idf, low) < 2147483648.0f && oracle_weight(idf, high) >= 2147483648.0f);
  for (;;) {
    float middle = (low + high) / 2;
    if (!(middle > low && middle < high)) break;
    if (oracle_weight(idf, middle) < 2147483648.0f) low = middle;
    else high = middle;
  }
  assert_int_equal(score_parse(f.index[0], "w0", high, 0.4f, &q), GPUIR_E_RANGE);
  assert_null(q);
  assert_int_equal(score_parse(f.index[0], "w0", 1000.0f, 0.0f, &q), GPUIR_E_RANGE);
  assert_int_equal(score_parse(f.index[0], "w1 -w0", 1000.0f, 0.0f, &q), GPUIR_OK); /* a negated one weighs nothing */
  gpuir_query_destroy(q);
  assert_int_equal(check_term(&f, "w0", low, 0.4f, 10), 1);
  assert_int_equal(check_term(&f, "w0", low, 0.0f, 10), 1);
  assert_int_equal(check_term(&f, "w0", low, 1.0f, 10), 1);
  score_teardown(&f);
}

/* The sum of q * (W + (W>>21) + 2) must stay below 2^32: the greatest q that fits gives right
 * scores, one more is refused. */
static void test_sum_out_of_range(void **state) {
  static const float k1[] = {0.0f, 0.9f, 50.0f, 200.0f};
  scored f;
  unsigned i;
  uint32_t d;
  (void)state;
  oracle_init(&f.o);
  corpus_words(&f.o, 1);
  for (d = 0; d < 1000; d++) {
    if (d % 100 == 50) oracle_add(&f.o, 0, 1 + d * 1000);
    oracle_doc(&f.o);
  }
  oracle_invert(&f.o);
  score_setup(&f);
  for (i = 0; i < 4; i++) {
    uint64_t each = oracle_bound((uint32_t)ceil((double)oracle_weight(oracle_idf(1000, 10), k1[i])));
    size_t most = (size_t)((((uint64_t)1 << 32) - 1) / each), j, n;
    char *text = (char *)oracle_grow(NULL, (most + 1) * 3 + 1, 1);
    gpuir_query *q;
    gpuir_hit hits[10];
    int s;
    oracle_query one;
    for (j = 0; j <= most; j++) memcpy(text + j * 3, "w0 ", 3);
    text[(most + 1) * 3] = 0;
    assert_int_equal(score_parse(f.index[0], text, k1[i], 0.0f, &q), GPUIR_E_RANGE);
    text[most * 3] = 0;
    one.n = 1;
    one.word[0].term = 0;
    one.word[0].negated = 0;
    assert_int_equal(oracle_run(&f.o, &one, k1[i], 0.0f), 0);
    for (s = 0; s < 6; s++) {
      assert_int_equal(score_parse(f.index[s / 2], text, k1[i], 0.0f, &q), GPUIR_OK);
      assert_int_equal(gpuir_search(f.searcher[s], q, hits, 10, &n), GPUIR_OK);
      assert_int_equal(n, 10);
      for (j = 0; j < n; j++) {
        assert_int_equal(hits[j].docid, f.o.hits[1][j].docid);
        assert_int_equal(hits[j].score, most * f.o.hits[1][j].score);
      }
      gpuir_query_destroy(q);
    }
    free(text);
  }
  score_teardown(&f);
}

/* k1 = 0: K = 0, so every tf weighs about the same; b does not matter. */
static void test_k1_zero(void **state) {
  scored f;
  uint32_t t;
  (void)state;
  corpus_zipf(&f.o, 5000, 30, 12, 203);
  score_setup(&f);
  for (t = 0; t < 30; t++) {
    size_t n = check_term(&f, f.o.name[t], 0.0f, 0.0f, 5000), i;
    oracle_hit *first = (oracle_hit *)oracle_grow(NULL, n, sizeof *first);
    for (i = 0; i < n; i++) {
      first[i].docid = f.hits[i].docid;
      first[i].score = f.hits[i].score;
    }
    assert_int_equal(check_term(&f, f.o.name[t], 0.0f, 1.0f, 5000), n);
    for (i = 0; i < n; i++) assert_true(f.hits[i].docid == first[i].docid && f.hits[i].score == first[i].score);
    free(first);
  }
  score_teardown(&f);
}

/* The engine's own arithmetic on random and extreme operands, bit by bit. */
static void test_arithmetic(void **state) {
  static const uint32_t edge[] = {1, 2, 3, 127, 16777213, 16777214, 16777215, 16777216, 16777217, 33554431, 2147483648u,
      4294967295u};
  rng r;
  unsigned long i, rounds = corpus_long_run() ? 20000000 : 2000000;
  (void)state;
  r.s = 204;
  for (i = 0; i < rounds; i++) {
    float k1 = (float)(rng_unit(&r) * 1000.0), b = (float)rng_unit(&r), W, K;
    uint64_t docs = 1 + rng_below(&r, 1u << (1 + rng_below(&r, 30)));
    uint64_t tokens = docs * (1 + rng_below(&r, 1000)) + rng_below(&r, 1000);
    uint32_t tf = i % 3 ? 1 + rng_below(&r, 1u << (1 + rng_below(&r, 31))) : edge[rng_below(&r, 12)];
    uint32_t dl = i % 5 ? 1 + rng_below(&r, 1u << (1 + rng_below(&r, 31))) : edge[rng_below(&r, 12)];
    gpuir__norm norm;
    if (i % 7 == 0) k1 = 0.0f;
    if (i % 11 == 0) b = 0.0f;
    if (i % 13 == 0) b = 1.0f;
    W = (float)ldexp(1.0 + rng_unit(&r), (int)rng_below(&r, 50) - 20);
    if (W >= 2147483648.0f) continue;
    K = oracle_norm(k1, b, tokens, docs, dl);
    norm = gpuir__norm_make(k1, b, (double)tokens / (double)docs);
    if (gpuir__norm_of(norm.a, norm.b, dl) != K) fail_msg("K of k1 %g, b %g, length %u", (double)k1, (double)b, dl);
    if (gpuir__contribution(W, tf, K) != oracle_c(W, K, tf))
      fail_msg("c of W %.9g, tf %u, K %.9g is %u, should be %u", (double)W, tf, (double)K,
          gpuir__contribution(W, tf, K), oracle_c(W, K, tf));
  }
}

/* Vectors score any number of postings as one at a time are, and read no docID behind the last. */
static void test_blocks_of_any_length(void **state) {
  enum { DOCS = 5000, MOST = GPUIR__BLOCK };
  static uint32_t lengths[DOCS], freqs[MOST + 16], out[MOST + 16];
  gpuir__scorer scorer;
  rng r;
  uint32_t n, i;
  int level;
  (void)state;
  r.s = 208;
  for (i = 0; i < DOCS; i++) lengths[i] = rng_below(&r, 1u << (1 + rng_below(&r, 31)));
  for (i = 0; i < MOST; i++) freqs[i] = rng_below(&r, 1u << (1 + rng_below(&r, 31)));
  scorer.lengths = lengths;
  scorer.norm = gpuir__norm_make(0.9f, 0.4f, 120);
  scorer.weight = 3456789.0f;
  scorer.q = 3;
  for (level = GPUIR_SIMD_SCALAR; level <= GPUIR_SIMD_AVX512; level++) {
    scorer.score = gpuir__score_of_level[gpuir__simd_level(level) - GPUIR_SIMD_SCALAR];
    for (n = 1; n <= MOST; n++) {
      uint32_t *docs = (uint32_t *)oracle_grow(NULL, n, sizeof *docs);
      for (i = 0; i < n; i++) docs[i] = rng_below(&r, DOCS);
      scorer.score(&scorer, docs, freqs, n, out);
      for (i = 0; i < n; i++)
        assert_int_equal(out[i], gpuir__score_one(&scorer, docs[i], freqs[i] < GPUIR__CAP ? freqs[i] + 1 : GPUIR__CAP));
      free(docs);
    }
  }
}

/* Codes grow with what they stand for; the code below a number and the one above it are its nearest. */
static void test_codes(void **state) {
  uint32_t v, code;
  (void)state;
  for (code = 1; code < 256; code++) assert_true(gpuir__code_value(code) > gpuir__code_value(code - 1));
  assert_int_equal(gpuir__code_value(255), 507904);
  for (v = 0; v < 600000; v++) {
    const uint32_t down = gpuir__code_down(v), up = gpuir__code_up(v);
    if (gpuir__code_value(down) > v || (down < 255 && gpuir__code_value(down + 1) <= v))
      fail_msg("%u has %u below it", v, down);
    if (up < 255 && (gpuir__code_value(up) < v || (up && gpuir__code_value(up - 1) >= v)))
      fail_msg("%u has %u above it", v, up);
  }
  assert_int_equal(gpuir__code_down(UINT32_MAX), 255);
  assert_int_equal(gpuir__code_up(UINT32_MAX), 255);
}

/* The pairs of a front dominate each posting, in few pairs too, and with room for all no pair is greater than it need
 * be; what a front hands on to another dominates as well; taking it empties it. */
static void test_fronts(void **state) {
  unsigned round, most, i, k;
  (void)state;
  for (round = 0; round < 3000; round++) {
    uint8_t tf[200], length[200];
    const unsigned n = 1 + below(200);
    gpuir__pair pairs[2][256];
    gpuir__front front, above;
    gpuir__front_reset(&front);
    gpuir__front_reset(&above);
    most = round % 3 == 0 ? GPUIR__BLOCK_PAIRS : round % 3 == 1 ? GPUIR__LIST_PAIRS : 256;
    for (i = 0; i < n; i++) {
      tf[i] = (uint8_t)(1 + below(1 + below(255)));
      length[i] = (uint8_t)below(1 + below(255));
      gpuir__front_add(&front, tf[i], length[i]);
    }
    gpuir__front_take(&front, &above, pairs[0], most);
    gpuir__front_take(&above, NULL, pairs[1], GPUIR__LIST_PAIRS);
    for (k = 0; k < 2; k++)
      for (i = 0; i < n; i++) {
        const unsigned room = k ? GPUIR__LIST_PAIRS : most;
        unsigned p = 0;
        while (p < room && !(pairs[k][p] && tf[i] <= (pairs[k][p] & 255) && length[i] >= pairs[k][p] >> 8)) p++;
        if (p == room) fail_msg("round %u: tf %u, length %u is above all %u pairs", round, tf[i], length[i], room);
      }
    for (k = 0; most == 256 && k < 256 && pairs[0][k]; k++) { /* each is a posting's */
      for (i = 0; i < n && (tf[i] != (pairs[0][k] & 255) || length[i] != pairs[0][k] >> 8);) i++;
      assert_true(i < n);
    }
    gpuir__front_take(&front, NULL, pairs[0], 1);
    assert_int_equal(pairs[0][0], 0);
  }
}

/* ---- idf ---- */

/* The greatest number of documents, and some others; of the greatest only some df are taken. */
static const uint64_t idf_documents[] = {1, 2, 7, 1000, 65536, 344867, 1000003, GPUIR__MAX_DOCUMENTS};
#define IDF_STEP(documents) ((documents) > 2000000u ? 4099u : 1u)

/* Returns a number that all idf of these documents go into. It must be the same on every machine. */
static uint64_t idf_checksum(void) {
  uint64_t sum = 0, i, df;
  for (i = 0; i < sizeof idf_documents / sizeof *idf_documents; i++)
    for (df = 1; df <= idf_documents[i]; df += IDF_STEP(idf_documents[i])) {
      const float idf = gpuir__idf(idf_documents[i], (uint32_t)df);
      uint32_t bits32;
      memcpy(&bits32, &idf, 4);
      sum = (sum ^ bits32) * 0x9e3779b97f4a7c15u;
      sum ^= sum >> 29;
    }
  return sum;
}

static void test_idf_is_the_same_everywhere(void **state) {
  (void)state;
  assert_int_equal(idf_checksum(), 0x597f73cc62459b4d);
}

/* idf falls or stays as df rises, and lies in (0, 64). */
static void test_idf_falls(void **state) {
  uint64_t i, df, round;
  (void)state;
  for (i = 0; i < sizeof idf_documents / sizeof *idf_documents; i++) {
    const uint64_t documents = idf_documents[i];
    float before = 64;
    for (df = 1; df <= documents; df += IDF_STEP(documents)) {
      const float idf = gpuir__idf(documents, (uint32_t)df);
      assert_true(idf > 0 && idf < 64 && idf <= before);
      before = idf;
    }
  }
  for (round = 0; round < 2000; round++) { /* neighbours, of many documents */
    const uint64_t documents = GPUIR__MAX_DOCUMENTS - below(1000);
    const uint32_t from = (uint32_t)(documents >> below(32));
    uint32_t x = from > 1000 ? from - 1000 : 1;
    float before = 64;
    for (; x <= from; x++) {
      const float idf = gpuir__idf(documents, x);
      assert_true(idf > 0 && idf <= before);
      before = idf;
    }
  }
  assert_true(gpuir__idf(GPUIR__MAX_DOCUMENTS, 0) < 64); /* what only a damaged file has */
  assert_true(gpuir_idf(30, 20) > 0.41f && gpuir_idf(30, 20) < 0.42f); /* ln(62 / 41) */
  assert_true(gpuir_idf(30, 31) <= 0 && gpuir_idf(UINT64_MAX, 0) > 22 && gpuir_idf(UINT64_MAX, 0) < 23);
  assert_true(gpuir__idf(10, 11) == 0 && gpuir__idf(0, UINT32_MAX) == 0);
}

/* Checks that gpuir__idf lies within half a unit in the last place of ln((2N + 2) / (2 df + 1)), and a bit: its own
 * error before rounding, 2^-50 of at least 2^-34 where idf is that small and 2^-50 elsewhere, is below 2^-24 units of
 * binary32, and that of the logarithm here, three roundings to LDBL_EPSILON, below 2^-26 of them with 53 bits. */
static void check_idf(uint64_t documents, uint32_t df) {
  const float idf = gpuir__idf(documents, df);
  const long double exact = log1pl((long double)(2 * (documents - df) + 1) / (long double)(2 * (uint64_t)df + 1));
  const float next = nextafterf(idf, 64.0f), last = nextafterf(idf, 0.0f);
  const long double slack = 1.0L / 8388608; /* 2^-23 of a unit */
  const long double up = ((long double)next - idf) * (0.5L + slack), down = (idf - (long double)last) * (0.5L + slack);
  if (exact - idf > up || idf - exact > down)
    fail_msg("idf of df %u of %llu is %.9g, not %.9Lg", (unsigned)df, (unsigned long long)documents, (double)idf,
        exact);
  if (idf != oracle_idf(documents, df))
    fail_msg("idf of df %u of %llu is %.9g, the oracle's %.9g", (unsigned)df, (unsigned long long)documents,
        (double)idf, (double)oracle_idf(documents, df));
}

static void test_idf_is_right(void **state) {
  uint64_t documents, round;
  uint32_t df;
  (void)state;
  for (documents = 1; documents <= 500; documents++)
    for (df = 1; df <= documents; df++) check_idf(documents, df);
  for (round = 0; round < 300000; round++) { /* df of every size, near 1, near N and between */
    documents = 1 + (uint64_t)(rnd() % GPUIR__MAX_DOCUMENTS >> below(32));
    df = 1 + (uint32_t)((rnd() >> below(32)) % documents);
    check_idf(documents, df);
    check_idf(documents, (uint32_t)(documents - (df - 1)));
  }
}

static void check_cursor(fixture *f, const gpuir_index *ix, uint32_t term, rng *r) {
  const oracle *o = &f->o;
  const oracle_posting *p = o->inv + o->inv_start[term], *end = o->inv + o->inv_start[term + 1];
  gpuir_cursor *c;
  gpuir_error err;
  gpuir_term_info info;
  uint64_t id, cf = 0;
  const char *name = o->name[term];
  int round;
  if (p == end) {
    assert_int_equal(gpuir_term_find(ix, name, strlen(name), &id), GPUIR_E_NOT_FOUND);
    return;
  }
  assert_int_equal(gpuir_term_find(ix, name, strlen(name), &id), GPUIR_OK);
  assert_int_equal(gpuir_term_lower_bound(ix, name, strlen(name)), id);
  assert_int_equal(gpuir_term_get_info(ix, id, &info), GPUIR_OK);
  assert_int_equal(info.df, end - p);
  assert_memory_equal(info.term, name, info.term_len);
  if (info.idf != oracle_idf(o->ndocs, info.df))
    fail_msg("%s: idf of df %u is %.9g, should be %.9g", f->name, (unsigned)info.df, (double)info.idf,
        (double)oracle_idf(o->ndocs, info.df));
  for (round = 0; round < 5; round++) {
    const oracle_posting *at = p;
    uint32_t doc;
    if (gpuir_cursor_open(ix, id, &c, &err)) fail_msg("%s", err.msg);
    doc = gpuir_cursor_docid(c);
    while (at < end) {
      compared++;
      if (doc != at->doc) fail_msg("%s: cursor of %s on %u, should be %u", f->name, name, doc, at->doc);
      assert_int_equal(gpuir_cursor_docid(c), doc);
      if (round == 0 || rng_below(r, 3) == 0) assert_int_equal(gpuir_cursor_tf(c), at->tf);
      if (round == 0) cf += at->tf;
      if (round == 0 || (round < 3 && rng_below(r, 4))) {
        doc = gpuir_cursor_next(c);
        at++;
      } else {
        uint32_t reach = rng_below(r, 3) ? 1u + rng_below(r, 40) : 1 + o->ndocs / (1u + rng_below(r, 50));
        uint32_t target = at->doc + rng_below(r, reach + 1);
        if (rng_below(r, 8) == 0) target = at->doc - rng_below(r, at->doc + 1); /* never back */
        while (at < end && at->doc < target) at++;
        doc = gpuir_cursor_next_geq(c, target);
      }
    }
    assert_int_equal(doc, GPUIR_END);
    assert_int_equal(gpuir_cursor_docid(c), GPUIR_END);
    assert_int_equal(gpuir_cursor_tf(c), 0);
    assert_int_equal(gpuir_cursor_next(c), GPUIR_END);
    assert_int_equal(gpuir_cursor_next_geq(c, 0), GPUIR_END);
    gpuir_cursor_close(c);
  }
  assert_int_equal(info.cf, cf);
}

static void test_cursors(void **state) {
  fixture f;
  rng r;
  uint32_t t;
  int x, which;
  (void)state;
  r.s = 91;
  for (which = 0; which < 4; which++) {
    if (which == 0) corpus_df(&f.o, 9001, 31);
    if (which == 1) corpus_huge(&f.o, 3000, 41);
    if (which == 2) corpus_sparse(&f.o, 1500000, 61);
    if (which == 3) corpus_zipf(&f.o, 20000, 500, 12, 92);
    setup_codecs(&f,
        which == 0       ? "chosen df"
            : which == 1 ? "huge tf"
            : which == 2 ? "wide gaps"
                         : "zipf",
        NULL, which == 2 ? 3 : 15);
    for (x = 0; x < f.nindexes; x++) {
      gpuir_cursor *c;
      for (t = 0; t < f.o.nterms; t += which == 3 ? 7 : 1) check_cursor(&f, f.index[x], t, &r);
      assert_int_equal(gpuir_cursor_open(f.index[x], f.o.nterms, &c, NULL), GPUIR_E_NOT_FOUND);
    }
    teardown(&f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_contribution_is_at_least_one),
      cmocka_unit_test(test_halves_round_to_even),
      cmocka_unit_test(test_tf_and_length_are_capped),
      cmocka_unit_test(test_division_is_not_monotone),
      cmocka_unit_test(test_pruning_survives_non_monotone_scores),
      cmocka_unit_test(test_weight_out_of_range),
      cmocka_unit_test(test_sum_out_of_range),
      cmocka_unit_test(test_k1_zero),
      cmocka_unit_test(test_arithmetic),
      cmocka_unit_test(test_idf_is_the_same_everywhere),
      cmocka_unit_test(test_idf_falls),
      cmocka_unit_test(test_idf_is_right),
      cmocka_unit_test(test_blocks_of_any_length),
      cmocka_unit_test(test_codes),
      cmocka_unit_test(test_fronts),
      cmocka_unit_test(test_cursors),
  };
  return cmocka_run_group_tests_name("24_postings", tests, NULL, NULL);
}
