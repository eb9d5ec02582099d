/* 59_words.c - AND of dense lists, alone and beside others: kernels by brute force; searches against the oracle and
 * the exhaustive evaluator, in several spans, segments of unlike lengths, deletions; a damaged file
 */
#include "small.h"
#include "private.h"

unsigned small_prefix_postings = 1u << 24;

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "rng.h"
#include "folder.h"
#include "oracle.h"
#include "corpus.h"
#include "fixture.h"

enum { TERMS = 14, DENSE_TERMS = 8, LINES = 9, LISTS = 5 };

/* One in so many documents has the term: with D = 24 the first eight are dense. */
static const uint32_t rarity[TERMS] = {1, 2, 3, 5, 9, 15, 20, 23, 45, 50, 70, 150, 900, 4000};

/* Documents of clustered lengths and frequencies, so that windows differ. */
static void make_corpus(oracle *o, uint32_t ndocs, uint64_t seed) {
  uint32_t d, t;
  rng r;
  char name[8];
  r.s = seed;
  oracle_init(o);
  for (t = 0; t < TERMS; t++) {
    const int len = snprintf(name, sizeof name, "t%u", t);
    (void)oracle_term(o, name, (size_t)len);
  }
  for (d = 0; d < ndocs; d++) {
    const uint32_t rich = d / 300 % 7 == 3 ? 40 : 3;
    for (t = 0; t < TERMS; t++)
      if (rng_below(&r, t >= DENSE_TERMS && d / 1000 % 40 == 1 ? 2 : rarity[t]) == 0)
        oracle_add(o, t, 1 + (rng_below(&r, 5) ? 0 : rng_below(&r, rich)));
    oracle_doc(o);
  }
  oracle_invert(o);
}

/* Adds n terms from `from` to below `to` to a query, none twice. */
static void add_terms(rng *r, unsigned n, uint32_t from, uint32_t to, int negated, oracle_query *q) {
  size_t i;
  while (n > 0) {
    const uint32_t t = from + rng_below(r, to - from);
    for (i = 0; i < q->n && q->word[i].term != t; i++) {}
    if (i < q->n) continue;
    q->word[q->n].term = t;
    q->word[q->n++].negated = negated;
    n--;
  }
}

/* A query of dense lists; of such and excluded ones, of which the others' blocks are read; of both; of any. */
static void make_query(rng *r, unsigned kind, oracle_query *q) {
  q->n = 0;
  if (kind == 3) add_terms(r, 2 + rng_below(r, 4), 0, TERMS, 0, q);
  else add_terms(r, (kind == 2 ? 0 : 2) + rng_below(r, 2), 0, DENSE_TERMS, 0, q);
  if (kind == 1) add_terms(r, 1 + rng_below(r, 2), rng_below(r, 2) ? 0 : DENSE_TERMS, TERMS, 1, q);
  if (kind == 2) add_terms(r, 1, 0, 2, 0, q);
  if (kind == 2) add_terms(r, 2, DENSE_TERMS, DENSE_TERMS + 3, 0, q);
}

/* Lists on both sides of the border, and dense ones alone; documents behind the last line, in several spans. */
static void test_both_sides(void **state) {
  static const uint32_t ndocs[] = {4160, 9023, 70001};
  unsigned i, times;
  rng r;
  (void)state;
  r.s = 77;
  for (i = 0; i < 3; i++) {
    fixture f;
    make_corpus(&f.o, ndocs[i], 900 + i);
    setup_codecs(&f, "both sides", NULL, 3);
    for (times = 0; times < (i == 2 ? 8u : 24u); times++) {
      oracle_query q;
      make_query(&r, times % 4, &q);
      check_query(&f, &q, times % 3 ? NULL : settings[rng_below(&r, SETTINGS)], &r, 1);
    }
    teardown(&f);
  }
}

/* Words that must match before others that only score: dense ones, sparse ones, excluded ones of either. */
static void test_required(void **state) {
  static const uint32_t ndocs[] = {4160, 9023};
  unsigned i, times;
  rng r;
  (void)state;
  r.s = 78;
  for (i = 0; i < 2; i++) {
    fixture f;
    make_corpus(&f.o, ndocs[i], 910 + i);
    setup_codecs(&f, "required", NULL, 3);
    for (times = 0; times < 32; times++) {
      unsigned positive = 0;
      oracle_query q;
      size_t j;
      make_query(&r, times % 4, &q);
      if (times % 4 == 1) add_terms(&r, 1 + rng_below(&r, 2), 0, TERMS, 0, &q); /* behind negated ones */
      for (j = 0; j < q.n; j++) positive += !q.word[j].negated;
      check_required(&f, &q, 1 + rng_below(&r, positive), times % 3 ? NULL : settings[rng_below(&r, SETTINGS)]);
    }
    teardown(&f);
  }
}

/* Files of their own k1 and b, asked with others. */
static void test_parameters(void **state) {
  unsigned i, times;
  rng r;
  (void)state;
  r.s = 5;
  for (i = 0; i < SETTINGS; i++) {
    corpus_build how;
    fixture f;
    memset(&how, 0, sizeof how);
    how.custom_bm25 = 1;
    how.k1 = settings[i][0];
    how.b = settings[i][1];
    make_corpus(&f.o, 3001, 40 + i);
    setup_codecs(&f, "parameters", &how, 2);
    for (times = 0; times < 12; times++) {
      oracle_query q;
      make_query(&r, times % 4, &q);
      check_query(&f, &q, settings[(i + times) % SETTINGS], &r, 1);
    }
    teardown(&f);
  }
}

/* ---- segments of unlike lengths */

enum { SEGMENTS = 8, EACH = 700 };

/* Fills a live index whose segments' average lengths are from 2 to thousands; some documents are deleted. */
static void make_folder(const char *path, float k1, float b) {
  static char text[60000];
  gpuir_live_desc desc;
  gpuir_live *live;
  gpuir_error err;
  unsigned s, d, t;
  rng r;
  r.s = 11;
  memset(&desc, 0, sizeof desc);
  desc.settings.path = path;
  desc.settings.dense = 24;
  desc.settings.custom_bm25 = 1;
  desc.settings.k1 = k1;
  desc.settings.b = b;
  desc.create = 1;
  if (gpuir_live_open(&desc, &live, &err)) fail_msg("%s", err.msg);
  for (s = 0; s < SEGMENTS; s++) {
    const uint32_t longest = (uint32_t)(2 * pow(3.2, s));
    for (d = 0; d < EACH; d++) {
      const uint32_t n = 1 + rng_below(&r, longest);
      gpuir_doc_desc dd;
      char name[16];
      size_t len = 0, i;
      for (t = 0; t < 8; t++)
        for (i = rng_below(&r, 2 + t) > 1 ? 0 : 1 + rng_below(&r, 3); i > 0; i--)
          len += (size_t)snprintf(text + len, 8, "t%u ", t);
      for (i = 0; i < n; i++) {
        text[len++] = (char)120;
        text[len++] = (char)32;
      }
      memset(&dd, 0, sizeof dd);
      dd.name = name;
      dd.name_len = (size_t)snprintf(name, sizeof name, "%u", s * EACH + d);
      if (gpuir_live_add(live, &dd, text, len, &err)) fail_msg("%s", err.msg);
    }
    if (gpuir_live_commit(live, &err)) fail_msg("%s", err.msg);
  }
  for (d = 0; d < SEGMENTS * EACH; d += 9) {
    char name[16];
    const size_t len = (size_t)snprintf(name, sizeof name, "%u", d);
    if (gpuir_live_delete(live, GPUIR_BY_NAME, name, len, NULL, &err)) fail_msg("%s", err.msg);
  }
  if (gpuir_live_commit(live, &err)) fail_msg("%s", err.msg);
  gpuir_live_close(live);
}

/* Peaks are of each segment's own average length, and queries of the whole's. */
static void test_segments(void **state) {
  static const char *const queries[] = {"t0 t1", "t2 t3", "t1 t4 t5", "t0 t1 t2 t3", "t5 t6", "t7 t3 -t1",
      "t6 t7 -t0 t2"};
  static const float stored[][2] = {{0.9f, 0.4f}, {0, 0.4f}, {1000, 1}, {1.2f, 0}};
  static gpuir_hit hits[SEGMENTS * EACH], right[SEGMENTS * EACH];
  unsigned i, j, t, k, level;
  (void)state;
  for (i = 0; i < 4; i++) {
    char path[4200];
    (void)corpus_path(path, sizeof path, "words");
    make_folder(path, stored[i][0], stored[i][1]);
    for (level = 0; level < LEVELS; level++) {
      gpuir_index *ix = open_at(path, GPUIR_SIMD_SCALAR + (int)level);
      gpuir_searcher *a = searcher_on(ix, GPUIR_EVAL_AUTO, 1), *b = searcher_on(ix, GPUIR_EVAL_EXHAUSTIVE, 1);
      assert_true(ix->nleaves > 4 && ix->leaves[0].seg->dense.n >= 8);
      for (t = 0; t < sizeof queries / sizeof *queries; t++)
        for (j = 0; j <= SETTINGS; j++)
          for (k = 1; k < 1000; k *= 7) {
            int status;
            size_t n, want;
            gpuir_query *q = parse(ix, queries[t], strlen(queries[t]), (int)((t + j) % 2),
                j < SETTINGS ? settings[j] : NULL, &status);
            if (status == GPUIR_E_RANGE) continue;
            assert_int_equal(status, 0);
            assert_int_equal(gpuir_search(a, q, hits, k, &n), 0);
            assert_int_equal(gpuir_search(b, q, right, k, &want), 0);
            assert_int_equal(n, want);
            assert_memory_equal(hits, right, n * sizeof *hits);
            gpuir_query_destroy(q);
          }
      gpuir_searcher_destroy(a);
      gpuir_searcher_destroy(b);
      gpuir_close(ix);
    }
    folder_remove(path);
  }
}

/* ---- kernels */

/* Lines of LISTS lists: bits, peaks, a list's slope. */
static void test_slopes(void **state) {
  static uint64_t bits[LISTS][8 * LINES];
  static uint8_t peaks[LISTS][8 * LINES];
  static uint32_t bounds[3][8 * LINES];
  unsigned times, level, i, w;
  rng r;
  (void)state;
  r.s = 3;
  for (times = 0; times < 400; times++) {
    gpuir__slopes s;
    uint32_t most[3];
    memset(&s, 0, sizeof s);
    s.n = 1 + rng_below(&r, LISTS);
    s.nlists = s.n + rng_below(&r, LISTS - s.n + 1);
    for (i = 0; i < LISTS; i++) {
      for (w = 0; w < 8 * LINES; w++) {
        bits[i][w] = rng_below(&r, 4) ? (uint64_t)1 << rng_below(&r, 64) | rng_next(&r) : 0;
        peaks[i][w] = (uint8_t)rng_below(&r, 256);
      }
      s.bits[i] = bits[i];
      s.peaks[i] = peaks[i];
      s.slope[i] = rng_below(&r, 3) ? rng_below(&r, 32768) : 32767;
    }
    for (level = 0; level < LEVELS; level++) {
      if (gpuir__simd_level(GPUIR_SIMD_SCALAR + (int)level) != GPUIR_SIMD_SCALAR + (int)level) continue;
      most[level] = gpuir__words_of_level[level].slopes(&s, 1, LINES - 1, bounds[level]);
      for (w = 0; w < 8 * (LINES - 1); w++) {
        uint64_t word = UINT64_MAX;
        uint32_t sum = 0;
        for (i = 0; i < s.nlists; i++) word &= i < s.n ? bits[i][8 + w] : ~bits[i][8 + w];
        for (i = 0; word && i < s.n; i++) sum += s.slope[i] * peaks[i][8 + w];
        assert_int_equal(bounds[level][w], sum);
      }
      assert_int_equal(most[level], most[0]);
      for (w = 0; w < 64; w++) {
        const uint32_t least = 1 + bounds[level][rng_below(&r, 64)];
        assert_int_equal(gpuir__words_of_level[level].reach(bounds[level], least) >> w & 1, bounds[level][w] >= least);
        assert_int_equal(gpuir__words_of_level[level].reach(bounds[level], INT32_MAX), 0);
      }
    }
  }
}

/* A slope times a peak is no less than the peak's bound. */
static void test_steepest(void **state) {
  unsigned times, q;
  rng r;
  (void)state;
  r.s = 8;
  for (times = 0; times < 2000; times++) {
    uint32_t bound[256];
    double steep;
    bound[0] = 0;
    for (q = 1; q < 256; q++) bound[q] = (uint32_t)rng_next(&r) >> rng_below(&r, 32);
    steep = gpuir__steepest(bound);
    for (q = 1; q < 256; q++) assert_true(steep * q >= bound[q]);
  }
}

/* Engines that share a search take the same steps, whatever their thresholds are, since parts are numbered through all
 * steps; an engine alone requires the last optional term at once if nothing else reaches the threshold. */
static void test_steps(void **state) {
  gpuir__share share;
  gpuir__cursor cursors[2];
  gpuir__and_step s;
  gpuir__engine e;
  uint32_t df;
  int shared;
  (void)state;
  memset(&e, 0, sizeof e);
  memset(&share, 0, sizeof share);
  memset(cursors, 0, sizeof cursors);
  e.cursors = cursors;
  e.ncursors = 2;
  cursors[0].bound = 1000;
  cursors[1].bound = 100;
  for (df = 100; df <= 1000; df += 900)
    for (shared = 0; shared < 2; shared++) {
      const int frequent = df == 1000;
      e.share = shared ? &share : NULL;
      cursors[1].list.df = df;
      gpuir__and_begin(&e, &s, 1, 1);
      assert_int_equal(s.optional[0], 1);
      e.top.threshold_key = 0;
      assert_int_equal(gpuir__and_steps(&e, &s, 200, 1100), !frequent);
      e.top.threshold_key = ((uint64_t)1001 << 32) - 1;
      assert_int_equal(gpuir__topk_threshold(&e.top), 1001);
      assert_int_equal(gpuir__and_steps(&e, &s, 200, 1100), !frequent || !shared);
      s.done = 1;
      assert_int_equal(gpuir__and_steps(&e, &s, 200, 1000), 0);
    }
}

/* Peaks far too low, and bits of no document: whatever is found is in the file. */
static void test_damaged(void **state) {
  gpuir_open_desc desc;
  gpuir_index *ix;
  gpuir_error err;
  corpus_build how;
  char path[4200];
  uint8_t *bytes;
  long size;
  unsigned times;
  oracle o;
  FILE *f;
  rng r;
  (void)state;
  r.s = 2;
  memset(&how, 0, sizeof how);
  how.dense = 24;
  make_corpus(&o, 3000, 4);
  (void)corpus_path(path, sizeof path, "damaged.gpuir");
  assert_int_equal(corpus_write(&o, path, &how, &err), 0);
  f = fopen(path, "rb");
  assert_non_null(f);
  (void)fseek(f, 0, SEEK_END);
  size = ftell(f);
  rewind(f);
  bytes = (uint8_t *)malloc((size_t)size);
  assert_int_equal(fread(bytes, 1, (size_t)size, f), (size_t)size);
  (void)fclose(f);
  (void)unlink(path);
  memset(&desc, 0, sizeof desc);
  desc.data = bytes;
  desc.size = (size_t)size;
  for (times = 0; times < 60; times++) {
    const unsigned lines = GPUIR__S_DENSE_BITS + times % 3;
    gpuir_searcher *s;
    uint64_t at;
    desc.simd = GPUIR_SIMD_SCALAR + (int)(times % 2 + 1) * (int)(times % 5 > 0);
    assert_int_equal(gpuir_open(NULL, &desc, &ix, &err), 0);
    for (at = 0; at < gpuir__only(ix)->section[lines]->length; at++)
      if (rng_below(&r, 3) == 0) bytes[gpuir__only(ix)->section[lines]->offset + at] = (uint8_t)rng_below(&r, 256);
    s = searcher_on(ix, GPUIR_EVAL_AUTO, 1);
    for (at = 0; at < 8; at++) {
      static const char *const queries[] = {"t0 t1", "t1 t2 t3", "t4 t5 -t2", "t0 t1 -t11", "t10 t0", "t11 t9 t1 t2"};
      gpuir_hit hits[50];
      int status;
      size_t n, i;
      gpuir_query *q = parse(ix, queries[at % 6], strlen(queries[at % 6]), 0, NULL, &status);
      assert_int_equal(status, 0);
      assert_int_equal(gpuir_search(s, q, hits, 50, &n), 0);
      for (i = 0; i < n; i++) assert_true(hits[i].docid < 3000);
      gpuir_query_destroy(q);
    }
    gpuir_searcher_destroy(s);
    gpuir_close(ix);
  }
  free(bytes);
  oracle_free(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_both_sides), cmocka_unit_test(test_required),
      cmocka_unit_test(test_parameters), cmocka_unit_test(test_segments), cmocka_unit_test(test_slopes),
      cmocka_unit_test(test_steepest), cmocka_unit_test(test_steps), cmocka_unit_test(test_damaged)};
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  print_message("%lu comparisons, %lu hits\n", compared, hits_compared);
  return failed;
}
