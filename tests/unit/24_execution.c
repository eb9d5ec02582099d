/* 24_execution.c - searchers, batches over threads, deadlines and cancellation, backends, bad arguments */
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

static void test_batches(void **state) {
  enum { MOST = 60 };
  static const size_t ks[] = {0, 1, 10, 137, 1000};
  fixture f;
  rng r;
  unsigned threads, round, i;
  (void)state;
  r.s = 101;
  corpus_zipf(&f.o, 30000, 3000, 10, 102);
  setup_codecs(&f, "batches", NULL, 1);
  for (threads = 1; threads <= 4; threads++) {
    gpuir_searcher *s =
        searcher_on(f.index[2], threads % 2 ? GPUIR_EVAL_AUTO : GPUIR_EVAL_EXHAUSTIVE, threads);
    for (round = 0; round < 12; round++) {
      oracle_query *oq = (oracle_query *)oracle_grow(NULL, MOST, sizeof *oq);
      gpuir_query *q[MOST];
      uint32_t counts[MOST];
      static char text[8192];
      size_t k = ks[round % 5], nq = round == 0 ? 0 : 1 + rng_below(&r, MOST);
      gpuir_hit *hits = (gpuir_hit *)oracle_grow(NULL, MOST * k + 1, sizeof *hits);
      hits[nq * k].docid = 0xeeeeeeee;
      for (i = 0; i < nq; i++) {
        int status;
        corpus_query(&f.o, &r, 1 + rng_below(&r, 9), 1, &oq[i]);
        q[i] = parse(f.index[2], text, corpus_text(&f.o, &oq[i], text, sizeof text), (int)(i % 3), NULL,
                     &status);
        assert_int_equal(status, GPUIR_OK);
      }
      assert_int_equal(gpuir_search_batch(s, (const gpuir_query *const *)q, nq, k, hits, counts), GPUIR_OK);
      for (i = 0; i < nq; i++) {
        (void)corpus_text(&f.o, &oq[i], text, sizeof text);
        (void)oracle_run(&f.o, &oq[i], f.k1, f.b);
        equal_hits(&f, f.index[2], text, (int)(i % 3), k, hits + i * k, counts[i], "batch");
        gpuir_query_destroy(q[i]);
      }
      assert_int_equal(hits[nq * k].docid, 0xeeeeeeee);
      free(hits);
      free(oq);
    }
    gpuir_searcher_destroy(s);
  }
  teardown(&f);
}

static void test_deadline_and_cancel(void **state) {
  fixture f;
  oracle_query oq;
  static char text[65536];
  size_t len, n, i;
  uint64_t count;
  int mode, e, status, cancel = 0;
  (void)state;
  corpus_zipf(&f.o, 300000, 100, 9, 112);
  setup_codecs(&f, "deadline", NULL, 1);
  oq.n = 30;
  for (i = 0; i < oq.n; i++) {
    oq.word[i].term = (uint32_t)i;
    oq.word[i].negated = 0;
  }
  len = corpus_text(&f.o, &oq, text, sizeof text);
  assert_int_equal(oracle_run(&f.o, &oq, f.k1, f.b), 0);
  for (mode = 1; mode < 3; mode++) {
    for (e = 0; e < 2; e++) {
      gpuir_searcher_desc desc;
      gpuir_searcher *s;
      gpuir_error err;
      gpuir_query *q = parse(f.index[2], text, len, mode, NULL, &status), *batch[5];
      uint32_t counts[5];
      gpuir_hit *hits = (gpuir_hit *)oracle_grow(NULL, 500, sizeof *hits);
      assert_int_equal(status, GPUIR_OK);
      memset(&desc, 0, sizeof desc);
      desc.evaluator = e ? GPUIR_EVAL_EXHAUSTIVE : GPUIR_EVAL_AUTO;
      desc.timeout_ns = 1;
      desc.cancel = &cancel;
      desc.threads = 2;
      assert_int_equal(gpuir_searcher_create(f.index[2], &desc, &s, NULL), GPUIR_OK);
      n = 7;
      assert_int_equal(gpuir_search(s, q, hits, 100, &n), GPUIR_E_DEADLINE);
      assert_int_equal(n, 0);
      gpuir_searcher_error(s, &err);
      assert_int_equal(err.code, GPUIR_E_DEADLINE);
      assert_true(strlen(err.msg) > 0);
      if (mode == GPUIR_OR) assert_int_equal(gpuir_count(s, q, &count), GPUIR_E_DEADLINE);
      for (i = 0; i < 5; i++) batch[i] = q;
      assert_int_equal(gpuir_search_batch(s, (const gpuir_query *const *)batch, 5, 100, hits, counts),
                       GPUIR_E_DEADLINE);
      gpuir_searcher_set_timeout(s, 0); /* and it works again */
      assert_int_equal(gpuir_search(s, q, hits, 100, &n), GPUIR_OK);
      equal_hits(&f, f.index[2], text, mode, 100, hits, n, "after a deadline");
      cancel = 1;
      n = 7;
      assert_int_equal(gpuir_search(s, q, hits, 100, &n), GPUIR_E_CANCELLED);
      assert_int_equal(n, 0);
      gpuir_searcher_error(s, &err);
      assert_int_equal(err.code, GPUIR_E_CANCELLED);
      if (mode == GPUIR_OR) assert_int_equal(gpuir_count(s, q, &count), GPUIR_E_CANCELLED);
      assert_int_equal(gpuir_search_batch(s, (const gpuir_query *const *)batch, 5, 100, hits, counts),
                       GPUIR_E_CANCELLED);
      cancel = 0;
      gpuir_searcher_set_timeout(s, 600000000000u);
      assert_int_equal(gpuir_search(s, q, hits, 100, &n), GPUIR_OK);
      equal_hits(&f, f.index[2], text, mode, 100, hits, n, "after a cancellation");
      assert_int_equal(gpuir_search_batch(s, (const gpuir_query *const *)batch, 5, 100, hits, counts),
                       GPUIR_OK);
      for (i = 0; i < 5; i++)
        equal_hits(&f, f.index[2], text, mode, 100, hits + i * 100, counts[i], "batch after a cancellation");
      gpuir_searcher_destroy(s);
      gpuir_query_destroy(q);
      free(hits);
    }
  }
  teardown(&f);
}

typedef struct dummy {
  gpuir_searcher *cpu; /* does the work */
  int fails, calls, closed, noisy;
} dummy;

static int dummy_search(void *context, const gpuir_query *const *queries, size_t nq, size_t k,
                        gpuir_hit *hits, uint32_t *counts, gpuir_error *err) {
  dummy *d = (dummy *)context;
  size_t i;
  d->calls++;
  if (d->fails) {
    for (i = 0; i < nq; i++) counts[i] = 77; /* what a failed call left behind must not count */
    for (i = 0; i < nq * k; i++) hits[i].docid = hits[i].score = 123456;
    if (err) {
      err->code = GPUIR_E_BACKEND;
      (void)snprintf(err->msg, sizeof err->msg, "the dummy fails");
    }
    return GPUIR_E_BACKEND;
  }
  return gpuir_search_batch(d->cpu, queries, nq, k, hits, counts);
}

static void dummy_close(void *context) { ((dummy *)context)->closed++; }

static void test_backends(void **state) {
  fixture f;
  rng r;
  gpuir_searcher *s;
  gpuir_searcher_info before, after;
  gpuir_backend backend;
  gpuir_error err;
  oracle_query oq;
  gpuir_query *q, *batch[4];
  gpuir_hit hits[40];
  uint32_t counts[4];
  char text[4096];
  size_t n, i, len;
  dummy d, other;
  int status, threads;
  (void)state;
  r.s = 121;
  corpus_zipf(&f.o, 5000, 200, 10, 122);
  setup_codecs(&f, "backends", NULL, 1);
  corpus_query(&f.o, &r, 4, 0, &oq);
  (void)oracle_run(&f.o, &oq, f.k1, f.b);
  len = corpus_text(&f.o, &oq, text, sizeof text);
  q = parse(f.index[0], text, len, GPUIR_OR, NULL, &status);
  assert_int_equal(status, GPUIR_OK);
  for (i = 0; i < 4; i++) batch[i] = q;
  for (threads = 1; threads < 4; threads += 2) {
    memset(&d, 0, sizeof d);
    memset(&other, 0, sizeof other);
    d.cpu = other.cpu = f.searcher[0];
    s = searcher_on(f.index[0], GPUIR_EVAL_AUTO, (unsigned)threads);
    assert_string_equal(gpuir_backend_name(s), "cpu");
    memset(&backend, 0, sizeof backend);
    backend.version = GPUIR_BACKEND_VERSION;
    backend.name = "dummy";
    backend.context = &d;
    backend.search = dummy_search;
    backend.close = dummy_close;
    backend.version = GPUIR_BACKEND_VERSION + 1;
    assert_int_equal(gpuir_searcher_set_backend(s, &backend, 0), GPUIR_E_VERSION);
    backend.version = GPUIR_BACKEND_VERSION;
    assert_int_equal(gpuir_searcher_set_backend(NULL, &backend, 0), GPUIR_E_ARGUMENT);
    assert_string_equal(gpuir_backend_name(s), "cpu");
    assert_int_equal(gpuir_searcher_set_backend(s, &backend, 0), GPUIR_OK);
    memset(&backend, 0, sizeof backend); /* it was copied */
    assert_string_equal(gpuir_backend_name(s), "dummy");
    assert_int_equal(gpuir_search(s, q, hits, 10, &n), GPUIR_OK);
    equal_hits(&f, f.index[0], text, GPUIR_OR, 10, hits, n, "backend");
    assert_true(d.calls == 1);
    assert_int_equal(gpuir_search_batch(s, (const gpuir_query *const *)batch, 4, 10, hits, counts), GPUIR_OK);
    for (i = 0; i < 4; i++)
      equal_hits(&f, f.index[0], text, GPUIR_OR, 10, hits + i * 10, counts[i], "backend batch");
    assert_true(d.calls >= 2);
    d.fails = 1; /* without fallback its error comes back */
    n = 9;
    assert_int_equal(gpuir_search(s, q, hits, 10, &n), GPUIR_E_BACKEND);
    assert_int_equal(n, 0);
    gpuir_searcher_error(s, &err);
    assert_int_equal(err.code, GPUIR_E_BACKEND);
    assert_non_null(strstr(err.msg, "the dummy fails"));
    assert_int_equal(gpuir_search_batch(s, (const gpuir_query *const *)batch, 4, 10, hits, counts),
                     GPUIR_E_BACKEND);
    assert_int_equal(d.closed, 0);
    backend.version = GPUIR_BACKEND_VERSION; /* another one replaces it; with fallback the CPU answers */
    backend.name = "other";
    backend.context = &other;
    backend.search = dummy_search;
    backend.close = dummy_close;
    other.fails = 1;
    assert_int_equal(gpuir_searcher_set_backend(s, &backend, 1), GPUIR_OK);
    assert_int_equal(d.closed, 1);
    gpuir_searcher_get_info(s, &before);
    assert_int_equal(gpuir_search(s, q, hits, 10, &n), GPUIR_OK);
    equal_hits(&f, f.index[0], text, GPUIR_OR, 10, hits, n, "fallback");
    assert_int_equal(gpuir_search_batch(s, (const gpuir_query *const *)batch, 4, 10, hits, counts), GPUIR_OK);
    for (i = 0; i < 4; i++)
      equal_hits(&f, f.index[0], text, GPUIR_OR, 10, hits + i * 10, counts[i], "fallback batch");
    gpuir_searcher_get_info(s, &after);
    assert_true(after.backend_failures > before.backend_failures);
    assert_true(other.calls >= 2);
    assert_int_equal(gpuir_searcher_set_backend(s, NULL, 0), GPUIR_OK); /* back to the CPU */
    assert_int_equal(other.closed, 1);
    assert_string_equal(gpuir_backend_name(s), "cpu");
    assert_int_equal(gpuir_search(s, q, hits, 10, &n), GPUIR_OK);
    equal_hits(&f, f.index[0], text, GPUIR_OR, 10, hits, n, "cpu again");
    other.closed = 0;
    backend.close = NULL;
    assert_int_equal(gpuir_searcher_set_backend(s, &backend, 1), GPUIR_OK);
    assert_int_equal(gpuir_searcher_set_backend(s, NULL, 0), GPUIR_OK);
    assert_int_equal(other.closed, 0);
    backend.close = dummy_close;
    assert_int_equal(gpuir_searcher_set_backend(s, &backend, 1), GPUIR_OK);
    gpuir_searcher_destroy(s);
    assert_int_equal(other.closed, 1);
  }
  gpuir_query_destroy(q);
  teardown(&f);
}

/* Timeouts and numbers of hits up to the greatest that their types hold. */
static void test_limits(void **state) {
  static const uint64_t endless[] = {UINT64_MAX, UINT64_MAX - 1, (uint64_t)1 << 63, UINT64_MAX - 1000000000u};
  static const size_t huge[] = {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX / 2, SIZE_MAX / 2 + 1,
                                SIZE_MAX / sizeof(gpuir_hit) / 2 + 1};
  fixture f;
  gpuir_query *q, *batch[2];
  gpuir_hit *hits;
  uint32_t counts[2];
  gpuir_backend backend;
  gpuir_searcher *s;
  dummy d;
  size_t n, i, want;
  int status;
  (void)state;
  corpus_zipf(&f.o, 500, 20, 10, 124);
  setup_codecs(&f, "limits", NULL, 1);
  hits = (gpuir_hit *)oracle_grow(NULL, f.o.ndocs, sizeof *hits);
  s = searcher_on(f.index[0], GPUIR_EVAL_AUTO, 2);
  q = parse(f.index[0], "w0 w1", 5, GPUIR_OR, NULL, &status);
  assert_int_equal(status, GPUIR_OK);
  assert_int_equal(gpuir_search(s, q, hits, f.o.ndocs, &want), GPUIR_OK);
  assert_true(want > 0);
  batch[0] = batch[1] = q;
  for (i = 0; i < sizeof endless / sizeof *endless; i++) { /* none of them is over at once */
    gpuir_searcher_set_timeout(s, endless[i]);
    assert_int_equal(gpuir_search(s, q, hits, 10, &n), GPUIR_OK);
    assert_int_equal(gpuir_search_batch(s, (const gpuir_query *const *)batch, 2, 10, hits, counts), GPUIR_OK);
  }
  memset(&d, 0, sizeof d);
  d.cpu = f.searcher[0];
  memset(&backend, 0, sizeof backend);
  backend.version = GPUIR_BACKEND_VERSION;
  backend.name = "dummy";
  backend.context = &d;
  backend.search = dummy_search;
  for (i = 0; i < 2 * sizeof huge / sizeof *huge; i++) {
    const size_t k = huge[i / 2];
    assert_int_equal(gpuir_searcher_set_backend(s, i % 2 ? &backend : NULL, 0), GPUIR_OK);
    assert_int_equal(gpuir_search(s, q, hits, k, &n), GPUIR_OK);
    assert_int_equal(n, want);
    assert_int_equal(gpuir_search_batch(s, (const gpuir_query *const *)batch, 1, k, hits, counts), GPUIR_OK);
    assert_int_equal(counts[0], want);
    assert_int_equal(gpuir_search_batch(s, (const gpuir_query *const *)batch, 2, k, hits, counts),
                     GPUIR_E_ARGUMENT);
  }
  gpuir_query_destroy(q);
  gpuir_searcher_destroy(s);
  free(hits);
  teardown(&f);
}

static void test_arguments(void **state) {
  fixture f;
  gpuir_query *q = NULL;
  gpuir_query_desc desc;
  gpuir_hit hit;
  gpuir_error err;
  static gpuir_explanation x;
  size_t n = 5;
  uint64_t count;
  int status;
  (void)state;
  corpus_zipf(&f.o, 100, 20, 5, 131);
  setup_codecs(&f, "arguments", NULL, 1);
  q = parse(f.index[0], "w1 w2", 5, GPUIR_OR, NULL, &status);
  assert_int_equal(status, GPUIR_OK);
  assert_int_equal(gpuir_search(NULL, q, &hit, 1, &n), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_search(f.searcher[0], NULL, &hit, 1, &n), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_search(f.searcher[0], q, NULL, 1, &n), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_search(f.searcher[0], q, NULL, 0, &n), GPUIR_OK);
  assert_int_equal(n, 0);
  assert_int_equal(gpuir_count(f.searcher[0], NULL, &count), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_explain(f.searcher[0], q, 100, &x), GPUIR_E_NOT_FOUND);
  assert_int_equal(gpuir_explain(f.searcher[0], q, UINT32_MAX, &x), GPUIR_E_NOT_FOUND);
  gpuir_query_destroy(q);
  memset(&desc, 0, sizeof desc);
  desc.mode = 3;
  assert_int_equal(gpuir_query_parse(f.index[0], &desc, "w1", 2, &q, &err), GPUIR_E_ARGUMENT);
  desc.mode = 0;
  desc.custom_bm25 = 1;
  desc.k1 = -0.5f;
  assert_int_equal(gpuir_query_parse(f.index[0], &desc, "w1", 2, &q, &err), GPUIR_E_RANGE);
  desc.k1 = 1000.5f;
  assert_int_equal(gpuir_query_parse(f.index[0], &desc, "w1", 2, &q, &err), GPUIR_E_RANGE);
  desc.k1 = (float)NAN;
  assert_int_equal(gpuir_query_parse(f.index[0], &desc, "w1", 2, &q, &err), GPUIR_E_RANGE);
  desc.k1 = 1.0f;
  desc.b = 1.5f;
  assert_int_equal(gpuir_query_parse(f.index[0], &desc, "w1", 2, &q, &err), GPUIR_E_RANGE);
  desc.b = (float)NAN;
  assert_int_equal(gpuir_query_parse(f.index[0], &desc, "w1", 2, &q, &err), GPUIR_E_RANGE);
  assert_int_equal(gpuir_query_parse(NULL, NULL, "w1", 2, &q, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_query_parse(f.index[0], NULL, NULL, 2, &q, &err), GPUIR_E_ARGUMENT);
  gpuir_query_destroy(NULL);
  gpuir_searcher_destroy(NULL);
  gpuir_cursor_close(NULL);
  gpuir_close(NULL);
  gpuir_builder_destroy(NULL);
  teardown(&f);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_batches),   cmocka_unit_test(test_deadline_and_cancel),
      cmocka_unit_test(test_backends),  cmocka_unit_test(test_limits),
      cmocka_unit_test(test_arguments),
  };
  int failed;
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  failed = cmocka_run_group_tests_name("24_execution", tests, NULL, NULL);
  print_message("%lu comparisons, %lu hits\n", compared, hits_compared);
  return failed;
}
