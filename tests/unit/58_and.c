/* 58_and.c - AND: lists of chosen lengths beside each other, lists with wide gaps, optional terms */
#define _POSIX_C_SOURCE 200809L
#include "gpuir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rng.h"
#include "oracle.h"
#include "corpus.h"
#include "fixture.h"

static void test_document_frequencies(void **state) {
  fixture f;
  (void)state;
  corpus_df(&f.o, 9001, 31);
  setup(&f, "chosen df");
  single_terms(&f, 1, NULL, 1);
  random_queries(&f, 80, 8, 0);
  teardown(&f);
}

static void test_document_frequencies_dense(void **state) {
  static const uint32_t n[] = {1, 2, 127, 128, 129, 256, 300, 4096};
  unsigned i;
  (void)state;
  for (i = 0; i < sizeof n / sizeof *n; i++) {
    fixture f;
    corpus_df(&f.o, n[i], 32 + i);
    setup(&f, "df up to N");
    single_terms(&f, n[i] > 300 ? 5 : 3, NULL, 1);
    random_queries(&f, 20, 9 + i, 1);
    teardown(&f);
  }
}

static void test_wide_gaps(void **state) {
  fixture f;
  (void)state;
  corpus_sparse(&f.o, 2000000, 61);
  setup_codecs(&f, "wide gaps", NULL, 3);
  single_terms(&f, 1, NULL, 0);
  random_queries(&f, 10, 13, 0);
  teardown(&f);
}

/* Words that must match, and others that only add to scores, frequent and rare ones in any order: what holds an
 * optional term is evaluated before what does not. */
static void test_optional(void **state) {
  const unsigned times = corpus_long_run() ? 2000 : 60;
  unsigned i, j;
  rng r;
  (void)state;
  r.s = 35;
  for (i = 0; i < 2; i++) {
    fixture f;
    if (i) corpus_zipf(&f.o, 3001, 400, 20, 36);
    else corpus_df(&f.o, 9001, 37);
    setup_codecs(&f, "optional", NULL, 2);
    for (j = 0; j < times; j++) {
      unsigned positive = 0;
      oracle_query q;
      size_t w;
      corpus_query(&f.o, &r, 2 + rng_below(&r, j % 8 ? 5 : 40), j % 4 == 0, &q);
      for (w = 0; w < q.n; w++) positive += !q.word[w].negated;
      if (!positive) continue;
      check_required(&f, &q, 1 + rng_below(&r, positive < 3 ? positive : 3),
          j % 3 ? NULL : settings[rng_below(&r, SETTINGS)]);
    }
    teardown(&f);
  }
}

/* Blocks of which a frequent word that is required has hundreds are decoded only where a rare optional one is, since no
 * other document is among the best. */
static void test_optional_work(void **state) {
  enum { NDOCS = 40000, RARE = 80 };
  gpuir_searcher_info before, after;
  fixture f;
  int status, x;
  uint32_t d;
  (void)state;
  oracle_init(&f.o);
  corpus_words(&f.o, 2);
  for (d = 0; d < NDOCS; d++) {
    oracle_add(&f.o, 0, 1 + d % 3);
    if (d % (NDOCS / RARE) == 7) oracle_add(&f.o, 1, 1);
    oracle_doc(&f.o);
  }
  oracle_invert(&f.o);
  setup_codecs(&f, "work", NULL, 1);
  required = 1;
  for (x = 0; x < f.nindexes; x++) {
    static char text[600];
    gpuir_hit hits[10];
    const int len = snprintf(text, sizeof text, "%s %s", f.o.name[0], f.o.name[1]);
    gpuir_query *q = parse(f.index[x], text, (size_t)len, GPUIR_OR, NULL, &status);
    size_t n;
    (void)gpuir_searcher_get_info(f.searcher[2 * x], &before);
    assert_int_equal(gpuir_search(f.searcher[2 * x], q, hits, 10, &n), GPUIR_OK);
    (void)gpuir_searcher_get_info(f.searcher[2 * x], &after);
    assert_int_equal(n, 10);
    assert_true(after.blocks_decoded - before.blocks_decoded < 2 * RARE);
    gpuir_query_destroy(q);
  }
  required = 0;
  teardown(&f);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_document_frequencies),
      cmocka_unit_test(test_document_frequencies_dense),
      cmocka_unit_test(test_wide_gaps),
      cmocka_unit_test(test_optional),
      cmocka_unit_test(test_optional_work),
  };
  int failed;
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  failed = cmocka_run_group_tests_name("58_and", tests, NULL, NULL);
  print_message("%lu comparisons, %lu hits\n", compared, hits_compared);
  return failed;
}
