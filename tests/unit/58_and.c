/* 58_and.c - AND: lists of chosen lengths beside each other, and lists with wide gaps */
#define _POSIX_C_SOURCE 200809L
#include "gpuir.h"

#include <setjmp.h>
#include <stdarg.h>
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

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_document_frequencies),
      cmocka_unit_test(test_document_frequencies_dense),
      cmocka_unit_test(test_wide_gaps),
  };
  int failed;
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  failed = cmocka_run_group_tests_name("58_and", tests, NULL, NULL);
  print_message("%lu comparisons, %lu hits\n", compared, hits_compared);
  return failed;
}
