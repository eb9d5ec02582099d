/* 62_exhaustive.c - the exhaustive evaluator scores each posting once; documents counted in windows */
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

/* The exhaustive evaluator scores each posting once, whether it looks at all of a tile's documents or at a few; with
 * tiles that hold none. */
static void test_every_posting(void **state) {
  fixture f;
  rng r;
  uint32_t t, u;
  unsigned dense = 0, pairs = 0;
  (void)state;
  corpus_tiles(&f.o, 4, 1u << GPUIR__TILE_SHIFT, GPUIR__WHOLE, 53);
  setup_codecs(&f, "every posting", NULL, 2);
  r.s = 54;
  for (t = 0; t < f.o.nterms; t++)
    for (u = 0; u < t; u++) {
      uint64_t postings = (uint64_t)oracle_df(&f.o, t) + oracle_df(&f.o, u);
      oracle_query oq;
      int mode, x;
      oq.n = 2;
      oq.word[0].term = t;
      oq.word[1].term = u;
      oq.word[0].negated = oq.word[1].negated = 0;
      check_query(&f, &oq, NULL, &r, 0);
      for (mode = 0; mode < 2; mode++)
        for (x = 0; x < f.nindexes; x++) {
          gpuir_searcher_info before, after;
          char text[4096];
          int status;
          size_t len = corpus_text(&f.o, &oq, text, sizeof text), n;
          gpuir_query *q = parse(f.index[x], text, len, mode, NULL, &status);
          assert_int_equal(status, GPUIR_OK);
          memset(&before, 0, sizeof before);
          memset(&after, 0, sizeof after);
          gpuir_searcher_get_info(f.searcher[x * 2 + 1], &before);
          assert_int_equal(gpuir_search(f.searcher[x * 2 + 1], q, f.hits, 10, &n), GPUIR_OK);
          gpuir_searcher_get_info(f.searcher[x * 2 + 1], &after);
          assert_int_equal(after.postings_scored - before.postings_scored, postings);
          gpuir_query_destroy(q);
        }
      dense += postings >= f.o.ndocs / GPUIR__DENSE;
      pairs++;
    }
  assert_true(dense > 0 && dense < pairs);
  teardown(&f);
}

/* OR is counted right in documents of several windows, of which the last is not full, with negated terms that clear
 * bits at both ends of a window. */
static void test_windows(void **state) {
  static const char *const queries[] = {"w0 w1", "w1 w2", "w0 w1 w2", "w1 w2 -w3", "w0 w1 -w3", "w2 w3 -w1"};
  enum { NDOCS = 2 * GPUIR__WINDOW + 77, LISTS = 4 };
  static const uint32_t every[LISTS] = {2, 3, 1000, GPUIR__WINDOW - 1};
  fixture f;
  uint32_t d, t;
  size_t i;
  int x;
  (void)state;
  oracle_init(&f.o);
  corpus_words(&f.o, LISTS);
  for (d = 0; d < NDOCS; d++) {
    for (t = 0; t < LISTS; t++)
      if (d % every[t] == 0) oracle_add(&f.o, t, 1);
    oracle_doc(&f.o);
  }
  oracle_invert(&f.o);
  setup_codecs(&f, "windows", NULL, 1);
  for (i = 0; i < sizeof queries / sizeof *queries; i++) {
    uint64_t want = 0;
    for (d = 0; d < NDOCS; d++) {
      int held = 0, negated = 0;
      for (t = 0; t < LISTS; t++) {
        const char word[3] = {'w', (char)('0' + t), 0}, *at = strstr(queries[i], word);
        if (!at || d % every[t]) continue;
        if (at > queries[i] && at[-1] == '-') negated = 1;
        else held = 1;
      }
      want += held && !negated;
    }
    for (x = 0; x < f.nindexes; x++) {
      uint64_t count = 0;
      int status;
      gpuir_query *q = parse(f.index[x], queries[i], strlen(queries[i]), GPUIR_OR, NULL, &status);
      assert_int_equal(status, GPUIR_OK);
      assert_int_equal(gpuir_count(f.searcher[x * 2], q, &count), GPUIR_OK);
      assert_int_equal(count, want);
      gpuir_query_destroy(q);
      compared++;
    }
  }
  teardown(&f);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_posting),
      cmocka_unit_test(test_windows),
  };
  int failed;
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  failed = cmocka_run_group_tests_name("62_exhaustive", tests, NULL, NULL);
  print_message("%lu comparisons, %lu hits\n", compared, hits_compared);
  return failed;
}
