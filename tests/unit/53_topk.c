/* 53_topk.c - the best k of equal scores, and the bounds of scores under all parameters */
#include "private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "alloc.h"
#include "rng.h"
#include "oracle.h"
#include "corpus.h"
#include "fixture.h"

static void test_identical_documents(void **state) {
  fixture f;
  (void)state;
  corpus_classes(&f.o, 20000, 1, 0);
  setup(&f, "identical");
  random_queries(&f, 30, 6, 0);
  single_terms(&f, 1, NULL, 0);
  teardown(&f);
}

static void test_ties(void **state) {
  fixture f;
  (void)state;
  corpus_classes(&f.o, 70000, 5, 21);
  setup(&f, "five kinds of documents");
  random_queries(&f, 24, 7, 0);
  single_terms(&f, 1, NULL, 0);
  teardown(&f);
}

static void test_huge_frequencies(void **state) {
  fixture f;
  unsigned i;
  (void)state;
  corpus_huge(&f.o, 3000, 41);
  setup(&f, "huge tf");
  random_queries(&f, 60, 10, 0);
  for (i = 0; i < SETTINGS; i++) single_terms(&f, 1, settings[i], 0);
  teardown(&f);
}

static void test_saturated_frequencies(void **state) {
  fixture f;
  unsigned i;
  (void)state;
  corpus_saturated(&f.o, 20000, 42);
  setup_codecs(&f, "saturated tf", NULL, 6);
  for (i = 0; i < SETTINGS; i++) single_terms(&f, 1, settings[i], 0);
  random_queries(&f, 15, 11, 0);
  teardown(&f);
}

static void test_settings_stored(void **state) {
  unsigned i;
  (void)state;
  for (i = 0; i < SETTINGS; i++) {
    fixture f;
    corpus_build how;
    memset(&how, 0, sizeof how);
    how.custom_bm25 = 1;
    how.k1 = settings[i][0];
    how.b = settings[i][1];
    corpus_zipf(&f.o, 3000, 40, 10, 12 + i);
    setup_codecs(&f, "stored k1 and b", &how, 1u << i % 4);
    random_queries(&f, 20, 5 + i, 1);
    teardown(&f);
  }
}

static void test_settings_of_queries(void **state) {
  fixture f;
  unsigned i;
  (void)state;
  corpus_zipf(&f.o, 9000, 60, 10, 13);
  setup_codecs(&f, "custom k1 and b", NULL, 5);
  for (i = 0; i < SETTINGS; i++) single_terms(&f, 4, settings[i], 0);
  teardown(&f);
}

static int worse_key(const void *x, const void *y) {
  uint64_t a, b;
  memcpy(&a, x, 8);
  memcpy(&b, y, 8);
  return a > b ? -1 : a < b;
}

/* The best k of keys in any order, with a threshold and without, come out as sorting gives them. */
static void test_heap(void **state) {
  enum { MOST = 600 };
  static uint64_t keys[MOST];
  static gpuir_hit hits[MOST];
  alloc_book book;
  gpuir_allocator a = alloc_from(&book);
  gpuir__topk t;
  unsigned round;
  (void)state;
  memset(&book, 0, sizeof book);
  memset(&t, 0, sizeof t);
  for (round = 0; round < 4000; round++) {
    const size_t n = below(MOST), k = 1 + below(round % 2 ? 20 : MOST);
    const uint32_t threshold = round % 3 ? 0 : 1 + below(60);
    size_t i, want = 0;
    assert_int_equal(gpuir__topk_start(&a, &t, k, threshold, NULL), GPUIR_OK);
    assert_int_equal(gpuir__topk_threshold(&t), threshold ? threshold : 1);
    for (i = 0; i < n; i++) {
      keys[i] = gpuir__key(1 + below(round % 5 ? 50 : 1000), (uint32_t)i);
      gpuir__topk_push(&t, keys[i]);
    }
    qsort(keys, n, sizeof *keys, worse_key);
    while (want < n && want < k && keys[want] >> 32 >= threshold) want++;
    assert_int_equal(t.n, want);
    if (want == k) assert_int_equal(gpuir__topk_threshold(&t), (keys[k - 1] + 1) >> 32);
    while (t.n) gpuir__topk_pop(&t, hits);
    for (i = 0; i < want; i++) assert_true(gpuir__key(hits[i].score, hits[i].docid) == keys[i]);
  }
  book.fail_at = book.calls + 1;
  assert_int_equal(gpuir__topk_start(&a, &t, MOST + 1, 0, NULL), GPUIR_E_NOMEM);
  assert_int_equal(gpuir__topk_start(&a, &t, SIZE_MAX / 4, 0, NULL), GPUIR_E_NOMEM);
  gpuir__free(&a, t.heap, t.cap * sizeof *t.heap);
  assert_int_equal(book.blocks, 0);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_heap),
      cmocka_unit_test(test_identical_documents),
      cmocka_unit_test(test_ties),
      cmocka_unit_test(test_huge_frequencies),
      cmocka_unit_test(test_saturated_frequencies),
      cmocka_unit_test(test_settings_stored),
      cmocka_unit_test(test_settings_of_queries),
  };
  int failed;
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  failed = cmocka_run_group_tests_name("53_topk", tests, NULL, NULL);
  print_message("%lu comparisons, %lu hits\n", compared, hits_compared);
  return failed;
}
