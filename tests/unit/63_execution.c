/* 63_execution.c - searchers, batches over threads, deadlines and cancellation, backends, bad arguments */
#define _POSIX_C_SOURCE 200809L
#include "gpuir.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
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
    gpuir_searcher *s = searcher_on(f.index[2], threads % 2 ? GPUIR_EVAL_AUTO : GPUIR_EVAL_EXHAUSTIVE, threads);
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
        q[i] = parse(f.index[2], text, corpus_text(&f.o, &oq[i], text, sizeof text), (int)(i % 3), NULL, &status);
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
      n = count = 7;
      assert_int_equal(gpuir_search_count(s, q, hits, 0, &n, &count), mode ? GPUIR_E_DEADLINE : GPUIR_OK);
      assert_int_equal(n + count, 0);
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
      assert_int_equal(gpuir_search_batch(s, (const gpuir_query *const *)batch, 5, 100, hits, counts), GPUIR_OK);
      for (i = 0; i < 5; i++)
        equal_hits(&f, f.index[2], text, mode, 100, hits + i * 100, counts[i], "batch after a cancellation");
      gpuir_searcher_destroy(s);
      gpuir_query_destroy(q);
      free(hits);
    }
  }
  teardown(&f);
}

/* A backend whose device is a thread a batch. */
typedef struct dummy_batch {
  struct dummy *dummy;
  gpuir_batch_desc desc;
  uint64_t deadline;
  const int *cancel;
  gpuir_searcher *cpu; /* does the work */
  pthread_t thread;
  int used, go, done; /* go: the thread may work; both are read and written atomically */
} dummy_batch;

typedef struct dummy {
  gpuir_searcher *cpu[2]; /* one a batch */
  int fails, calls, closed;
  int held; /* 1: batches wait until they are let go */
  int begin_status; /* what begin returns */
  int finish_status; /* what finish returns, without saying whose it is */
  unsigned bad_every; /* each bad_every-th query fails, from the first on; 0: none */
  int bad_status, wordless;
  dummy_batch batch[2];
} dummy;

static const struct timespec moment = {0, 100000};

static int load(const int *p) { return __atomic_load_n(p, __ATOMIC_SEQ_CST); }
static void store(int *p, int value) { __atomic_store_n(p, value, __ATOMIC_SEQ_CST); }

static uint64_t nanoseconds(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The status of query i, 0 if it is to be answered. */
static int dummy_status(const dummy_batch *b, size_t i) {
  const dummy *d = b->dummy;
  const gpuir_batch_desc *desc = &b->desc;
  if (b->cancel && load(b->cancel)) return GPUIR_E_CANCELLED;
  if (desc->cancels && desc->cancels[i] && load(desc->cancels[i])) return GPUIR_E_CANCELLED;
  if (b->deadline && nanoseconds() > b->deadline) return GPUIR_E_DEADLINE;
  if (desc->deadlines && desc->deadlines[i] && nanoseconds() > desc->deadlines[i]) return GPUIR_E_DEADLINE;
  if (d->fails) return GPUIR_E_BACKEND;
  return d->bad_every && i % d->bad_every == 0 ? d->bad_status : GPUIR_OK;
}

static void *dummy_work(void *argument) {
  dummy_batch *b = (dummy_batch *)argument;
  const gpuir_batch_desc *desc = &b->desc;
  size_t i, h, n;
  while (!load(&b->go)) (void)nanosleep(&moment, NULL);
  for (i = 0; i < desc->nq; i++) {
    gpuir_hit *hits = desc->hits + i * desc->k;
    desc->statuses[i] = dummy_status(b, i);
    if (!desc->statuses[i] && desc->count) {
      uint64_t matches;
      desc->statuses[i] = gpuir_count(b->cpu, desc->queries[i], &matches);
      desc->counts[i] = (uint32_t)matches;
      continue;
    }
    if (!desc->statuses[i]) {
      desc->statuses[i] = gpuir_search(b->cpu, desc->queries[i], hits, desc->k, &n);
      desc->counts[i] = (uint32_t)n;
      continue;
    }
    desc->counts[i] = 77; /* what a failed query left behind must not count */
    for (h = 0; h < desc->k; h++) hits[h].docid = hits[h].score = 123456;
  }
  store(&b->done, 1);
  return NULL;
}

static int dummy_begin(void *context, const gpuir_batch_desc *desc, uint64_t deadline, const int *cancel,
    void **running, gpuir_error *err) {
  dummy *d = (dummy *)context;
  dummy_batch *b = &d->batch[d->batch[0].used];
  size_t i;
  (void)err;
  d->calls++;
  if (d->begin_status) return d->begin_status;
  assert_false(b->used); /* the searcher sees to it that there are no more */
  for (i = 0; i < desc->nq; i++) assert_true(desc->statuses[i] == 0 && desc->counts[i] == 0);
  memset(b, 0, sizeof *b);
  b->dummy = d;
  b->desc = *desc;
  b->deadline = deadline;
  b->cancel = cancel;
  b->cpu = d->cpu[b - d->batch];
  b->used = 1;
  b->go = !d->held;
  *running = b;
  return pthread_create(&b->thread, NULL, dummy_work, b) ? GPUIR_E_BACKEND : GPUIR_OK;
}

static int dummy_poll(void *context, void *running) {
  (void)context;
  return load(&((dummy_batch *)running)->done);
}

static int dummy_finish(void *context, void *running, gpuir_error *err) {
  dummy *d = (dummy *)context;
  dummy_batch *b = (dummy_batch *)running;
  int status = GPUIR_OK;
  size_t i;
  assert_true(b->used);
  (void)pthread_join(b->thread, NULL);
  b->used = 0;
  for (i = b->desc.nq; i--;)
    if (b->desc.statuses[i]) status = b->desc.statuses[i];
  if (d->finish_status) {
    memset(b->desc.statuses, 0, b->desc.nq * sizeof(int));
    return d->finish_status;
  }
  if (status == GPUIR_E_BACKEND && err && !d->wordless) {
    err->code = status;
    (void)snprintf(err->msg, sizeof err->msg, "the dummy fails");
  }
  return status;
}

static void dummy_close(void *context) { ((dummy *)context)->closed++; }

/* Counts a query alone and in a batch of four; returns the status, which is the same by both ways. */
static int count_both(gpuir_searcher *s, gpuir_query **batch, uint64_t *matches) {
  gpuir_batch_desc desc;
  gpuir_batch *b;
  uint32_t counts[4] = {9, 9, 9, 9};
  size_t i;
  const int status = gpuir_count(s, batch[0], matches);
  memset(&desc, 0, sizeof desc);
  desc.queries = (const gpuir_query *const *)batch;
  desc.nq = 4;
  desc.k = 1000; /* not looked at, as there are no hits */
  desc.counts = counts;
  desc.count = 1;
  assert_int_equal(gpuir_search_begin(s, &desc, &b), GPUIR_OK);
  assert_int_equal(gpuir_search_finish(b), status);
  for (i = 0; i < 4; i++) assert_int_equal(counts[i], *matches);
  return status;
}

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
  uint64_t expected, counted;
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
  assert_int_equal(count_both(f.searcher[0], batch, &expected), GPUIR_OK);
  assert_true(expected > 0);
  for (threads = 1; threads < 4; threads += 2) {
    memset(&d, 0, sizeof d);
    memset(&other, 0, sizeof other);
    d.cpu[0] = other.cpu[0] = f.searcher[0];
    s = searcher_on(f.index[0], GPUIR_EVAL_AUTO, (unsigned)threads);
    assert_string_equal(gpuir_backend_name(s), "cpu");
    memset(&backend, 0, sizeof backend);
    backend.version = GPUIR_BACKEND_VERSION;
    backend.name = "dummy";
    backend.context = &d;
    backend.begin = dummy_begin;
    backend.poll = dummy_poll;
    backend.finish = dummy_finish;
    backend.close = dummy_close;
    backend.version = GPUIR_BACKEND_VERSION + 1;
    assert_int_equal(gpuir_searcher_set_backend(s, &backend, 0), GPUIR_E_VERSION);
    backend.version = 1; /* its table was another one */
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
    for (i = 0; i < 4; i++) equal_hits(&f, f.index[0], text, GPUIR_OR, 10, hits + i * 10, counts[i], "backend batch");
    assert_true(d.calls >= 2);
    n = (size_t)d.calls;
    assert_int_equal(count_both(s, batch, &counted), GPUIR_OK);
    assert_true(counted == expected && d.calls == (int)n + 2);
    d.fails = 1; /* without fallback its error comes back */
    n = 9;
    assert_int_equal(gpuir_search(s, q, hits, 10, &n), GPUIR_E_BACKEND);
    assert_int_equal(n, 0);
    gpuir_searcher_error(s, &err);
    assert_int_equal(err.code, GPUIR_E_BACKEND);
    assert_non_null(strstr(err.msg, "the dummy fails"));
    assert_int_equal(gpuir_search_batch(s, (const gpuir_query *const *)batch, 4, 10, hits, counts), GPUIR_E_BACKEND);
    assert_int_equal(count_both(s, batch, &counted), GPUIR_E_BACKEND);
    assert_int_equal(counted, 0);
    assert_int_equal(d.closed, 0);
    backend.version = GPUIR_BACKEND_VERSION; /* another one replaces it; with fallback the CPU answers */
    backend.name = "other";
    backend.context = &other;
    backend.begin = dummy_begin;
    backend.poll = dummy_poll;
    backend.finish = dummy_finish;
    backend.close = dummy_close;
    other.fails = 1;
    assert_int_equal(gpuir_searcher_set_backend(s, &backend, 1), GPUIR_OK);
    assert_int_equal(d.closed, 1);
    gpuir_searcher_get_info(s, &before);
    assert_int_equal(gpuir_search(s, q, hits, 10, &n), GPUIR_OK);
    equal_hits(&f, f.index[0], text, GPUIR_OR, 10, hits, n, "fallback");
    assert_int_equal(gpuir_search_batch(s, (const gpuir_query *const *)batch, 4, 10, hits, counts), GPUIR_OK);
    for (i = 0; i < 4; i++) equal_hits(&f, f.index[0], text, GPUIR_OR, 10, hits + i * 10, counts[i], "fallback batch");
    gpuir_searcher_get_info(s, &after);
    assert_true(after.backend_failures == before.backend_failures + 5);
    gpuir_searcher_error(s, &err); /* it stays to be read */
    assert_int_equal(err.code, GPUIR_E_BACKEND);
    assert_non_null(strstr(err.msg, "the dummy fails"));
    assert_true(other.calls >= 2);
    assert_int_equal(count_both(s, batch, &counted), GPUIR_OK);
    assert_true(counted == expected);
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

/* Batches that are begun, polled and finished: 8 queries, of which each has its own words. */
enum { FLIGHT = 8, FLIGHT_K = 10 };

typedef struct flight {
  fixture f;
  gpuir_query *q[FLIGHT];
  oracle_query oq[FLIGHT];
  gpuir_searcher *s, *cpu[2];
  dummy d;
  gpuir_backend backend;
  gpuir_hit hits[2][FLIGHT * FLIGHT_K];
  uint32_t counts[2][FLIGHT];
  int statuses[2][FLIGHT];
  uint64_t matches[2][FLIGHT];
} flight;

static void flight_open(flight *x, const char *name, unsigned threads) {
  rng r;
  int status;
  size_t i;
  memset(x, 0, sizeof *x);
  r.s = 151;
  corpus_zipf(&x->f.o, 3000, 200, 10, 152);
  setup_codecs(&x->f, name, NULL, 1);
  for (i = 0; i < FLIGHT; i++) {
    char text[4096];
    corpus_query(&x->f.o, &r, 2 + i % 3, 0, &x->oq[i]);
    x->q[i] = parse(x->f.index[0], text, corpus_text(&x->f.o, &x->oq[i], text, sizeof text), GPUIR_OR, NULL, &status);
    assert_int_equal(status, GPUIR_OK);
  }
  x->s = searcher_on(x->f.index[0], GPUIR_EVAL_AUTO, threads);
  for (i = 0; i < 2; i++) x->d.cpu[i] = x->cpu[i] = searcher_on(x->f.index[0], GPUIR_EVAL_AUTO, 1);
  x->backend.version = GPUIR_BACKEND_VERSION;
  x->backend.name = "dummy";
  x->backend.context = &x->d;
  x->backend.begin = dummy_begin;
  x->backend.poll = dummy_poll;
  x->backend.finish = dummy_finish;
  x->backend.close = dummy_close;
}

static void flight_close(flight *x) {
  size_t i;
  gpuir_searcher_destroy(x->s);
  for (i = 0; i < FLIGHT; i++) gpuir_query_destroy(x->q[i]);
  for (i = 0; i < 2; i++) gpuir_searcher_destroy(x->cpu[i]);
  teardown(&x->f);
}

/* The batch with arrays of number `which`, filled with what must not stay. */
static gpuir_batch_desc flight_desc(flight *x, int which) {
  gpuir_batch_desc desc;
  memset(&desc, 0, sizeof desc);
  desc.queries = (const gpuir_query *const *)x->q;
  desc.nq = FLIGHT;
  desc.k = FLIGHT_K;
  desc.hits = x->hits[which];
  desc.counts = x->counts[which];
  desc.statuses = x->statuses[which];
  memset(x->hits[which], 0xee, sizeof x->hits[which]);
  memset(x->counts[which], 0xee, sizeof x->counts[which]);
  memset(x->statuses[which], 0xee, sizeof x->statuses[which]);
  memset(x->matches[which], 0xee, sizeof x->matches[which]);
  return desc;
}

/* Query i was answered, with the oracle's hits. */
static void answered(flight *x, int which, size_t i) {
  char text[4096];
  (void)corpus_text(&x->f.o, &x->oq[i], text, sizeof text);
  (void)oracle_run(&x->f.o, &x->oq[i], x->f.k1, x->f.b);
  equal_hits(&x->f, x->f.index[0], text, GPUIR_OR, FLIGHT_K, x->hits[which] + i * FLIGHT_K, x->counts[which][i],
      "a batch in flight");
}

/* Each bad_every-th query failed with `bad`, the others were answered. */
static void all_but(flight *x, int which, unsigned bad_every, int bad) {
  size_t i;
  for (i = 0; i < FLIGHT; i++) {
    if (bad_every && i % bad_every == 0) {
      assert_int_equal(x->statuses[which][i], bad);
      assert_int_equal(x->counts[which][i], 0);
      continue;
    }
    assert_int_equal(x->statuses[which][i], GPUIR_OK);
    answered(x, which, i);
  }
}

static void wait_done(gpuir_batch *b) {
  while (!gpuir_search_poll(b)) (void)nanosleep(&moment, NULL);
}

/* Without a backend and with one: late, in any order, two in flight, a third is refused. */
static void test_in_flight(void **state) {
  flight x;
  int backend;
  (void)state;
  flight_open(&x, "inflight", 2);
  for (backend = 0; backend < 2; backend++) {
    gpuir_batch *b[2], *third = (gpuir_batch *)&x;
    gpuir_batch_desc desc[2];
    gpuir_error err;
    gpuir_hit hits[FLIGHT_K];
    size_t n;
    int last;
    if (backend) assert_int_equal(gpuir_searcher_set_backend(x.s, &x.backend, 0), GPUIR_OK);
    for (last = 0; last < 2; last++) {
      x.d.held = 1;
      desc[0] = flight_desc(&x, 0);
      desc[1] = flight_desc(&x, 1);
      assert_int_equal(gpuir_search_begin(x.s, &desc[0], &b[0]), GPUIR_OK);
      assert_int_equal(gpuir_search_poll(b[0]), !backend); /* the CPU's work is finish's */
      if (!backend) { /* a search goes on beside one */
        assert_int_equal(gpuir_search(x.s, x.q[0], hits, FLIGHT_K, &n), GPUIR_OK);
        assert_true(n > 0);
      }
      assert_int_equal(gpuir_search_begin(x.s, &desc[1], &b[1]), GPUIR_OK);
      assert_true(b[0] != b[1]);
      assert_int_equal(gpuir_search_begin(x.s, &desc[0], &third), GPUIR_E_BUSY);
      assert_null(third);
      gpuir_searcher_error(x.s, &err);
      assert_int_equal(err.code, GPUIR_E_BUSY);
      assert_int_equal(gpuir_search_batch(x.s, desc[0].queries, 1, 1, hits, x.counts[0]), GPUIR_E_BUSY);
      assert_int_equal(gpuir_searcher_set_backend(x.s, NULL, 0), GPUIR_E_BUSY);
      if (backend) store(&x.d.batch[last].go, 1);
      wait_done(b[last]);
      if (backend) assert_int_equal(gpuir_search_poll(b[!last]), 0);
      assert_int_equal(gpuir_search_finish(b[last]), GPUIR_OK);
      all_but(&x, last, 0, 0);
      assert_int_equal(gpuir_search_finish(b[last]), GPUIR_E_ARGUMENT);
      assert_int_equal(gpuir_search_poll(b[last]), GPUIR_E_ARGUMENT);
      x.d.held = 0; /* its place is free again */
      desc[last] = flight_desc(&x, last);
      assert_int_equal(gpuir_search_begin(x.s, &desc[last], &b[last]), GPUIR_OK);
      assert_int_equal(gpuir_search_finish(b[last]), GPUIR_OK);
      all_but(&x, last, 0, 0);
      if (backend) store(&x.d.batch[!last].go, 1);
      assert_int_equal(gpuir_search_finish(b[!last]), GPUIR_OK);
      all_but(&x, !last, 0, 0);
    }
  }
  flight_close(&x);
}

/* Single queries that fail: without fallback alone, with it the CPU answers them and no others. */
static void test_failing_queries(void **state) {
  static const int bad[] = {GPUIR_E_BACKEND, GPUIR_E_NOMEM, GPUIR_E_DEADLINE, GPUIR_E_CANCELLED};
  flight x;
  size_t i, j;
  int fallback, wordless;
  (void)state;
  flight_open(&x, "failing", 3);
  for (fallback = 0; fallback < 2; fallback++) {
    assert_int_equal(gpuir_searcher_set_backend(x.s, &x.backend, fallback), GPUIR_OK);
    for (i = 0; i < 4; i++)
      for (wordless = 0; wordless < 2; wordless++) {
        const int good = fallback && i < 2;
        gpuir_searcher_info before, after;
        gpuir_batch_desc desc = flight_desc(&x, 0);
        gpuir_batch *b;
        gpuir_error err;
        x.d.bad_every = 3;
        x.d.bad_status = bad[i];
        x.d.wordless = wordless;
        gpuir_searcher_get_info(x.s, &before);
        assert_int_equal(gpuir_search_begin(x.s, &desc, &b), GPUIR_OK);
        assert_int_equal(gpuir_search_finish(b), good ? GPUIR_OK : bad[i]);
        all_but(&x, 0, good ? 0 : 3, bad[i]);
        gpuir_searcher_get_info(x.s, &after);
        assert_int_equal(after.backend_failures - before.backend_failures, good ? 3 : 0);
        assert_int_equal(after.queries - before.queries, FLIGHT);
        gpuir_searcher_error(x.s, &err);
        if (!good || (!wordless && !i)) assert_int_equal(err.code, bad[i]);
        if (!good || (!wordless && !i)) assert_true(strlen(err.msg) > 0);
        desc = flight_desc(&x, 1); /* without statuses a failure empties all */
        desc.statuses = NULL;
        assert_int_equal(gpuir_search_begin(x.s, &desc, &b), GPUIR_OK);
        assert_int_equal(gpuir_search_finish(b), good ? GPUIR_OK : bad[i]);
        for (j = 0; j < FLIGHT; j++)
          if (good) answered(&x, 1, j);
          else assert_int_equal(x.counts[1][j], 0);
      }
    x.d.bad_every = 0;
  }
  for (fallback = 0; fallback < 2; fallback++) { /* begin fails; finish does, without saying whose failure it is */
    gpuir_batch_desc desc = flight_desc(&x, 0);
    gpuir_batch *b = (gpuir_batch *)&x;
    assert_int_equal(gpuir_searcher_set_backend(x.s, &x.backend, fallback), GPUIR_OK);
    x.d.begin_status = GPUIR_E_UNSUPPORTED;
    assert_int_equal(gpuir_search_begin(x.s, &desc, &b), fallback ? GPUIR_OK : GPUIR_E_UNSUPPORTED);
    if (fallback) {
      assert_int_equal(gpuir_search_poll(b), 1);
      assert_int_equal(gpuir_search_finish(b), GPUIR_OK);
      all_but(&x, 0, 0, 0);
    } else {
      assert_null(b);
    }
    x.d.begin_status = GPUIR_E_BUSY; /* is the caller's, fallback or not */
    assert_int_equal(gpuir_search_begin(x.s, &desc, &b), GPUIR_E_BUSY);
    x.d.begin_status = 0;
    x.d.finish_status = GPUIR_E_BACKEND;
    desc = flight_desc(&x, 0);
    assert_int_equal(gpuir_search_begin(x.s, &desc, &b), GPUIR_OK);
    assert_int_equal(gpuir_search_finish(b), fallback ? GPUIR_OK : GPUIR_E_BACKEND);
    all_but(&x, 0, !fallback, GPUIR_E_BACKEND);
    x.d.finish_status = 0;
  }
  flight_close(&x);
}

/* Each query that was answered was counted too, whatever k and the thresholds; one that failed counts 0. */
static void all_counted(flight *x, int which) {
  size_t i;
  for (i = 0; i < FLIGHT; i++) {
    (void)oracle_run(&x->f.o, &x->oq[i], x->f.k1, x->f.b);
    assert_int_equal(x->matches[which][i], x->statuses[which][i] ? 0 : x->f.o.nhits[1]);
  }
}

/* Hits and counts of a batch: by threads; by a device, which ranks some; with thresholds. */
static void test_matches(void **state) {
  static uint32_t thresholds[FLIGHT];
  int backend;
  flight x;
  (void)state;
  flight_open(&x, "matches", 3);
  for (backend = 0; backend < 4; backend++) { /* none; one; one that fails some queries, then made good */
    gpuir_batch_desc desc = flight_desc(&x, 0);
    gpuir_searcher_info before, after;
    gpuir_batch *b;
    uint64_t matches = 7;
    gpuir_hit hits[FLIGHT_K];
    size_t i, n;
    if (backend) assert_int_equal(gpuir_searcher_set_backend(x.s, &x.backend, backend == 3), GPUIR_OK);
    x.d.bad_every = backend > 1 ? 3 : 0;
    x.d.bad_status = GPUIR_E_BACKEND;
    desc.matches = x.matches[0];
    gpuir_searcher_get_info(x.s, &before);
    assert_int_equal(gpuir_search_begin(x.s, &desc, &b), GPUIR_OK);
    assert_int_equal(gpuir_search_finish(b), backend == 2 ? GPUIR_E_BACKEND : GPUIR_OK);
    gpuir_searcher_get_info(x.s, &after);
    assert_int_equal(after.queries - before.queries, FLIGHT);
    all_but(&x, 0, backend == 2 ? 3 : 0, GPUIR_E_BACKEND);
    all_counted(&x, 0);
    desc.statuses = NULL; /* without statuses a failure empties all */
    assert_int_equal(gpuir_search_begin(x.s, &desc, &b), GPUIR_OK);
    assert_int_equal(gpuir_search_finish(b), backend == 2 ? GPUIR_E_BACKEND : GPUIR_OK);
    for (i = 0; backend == 2 && i < FLIGHT; i++) assert_int_equal(x.matches[0][i] + x.counts[0][i], 0);
    if (backend != 2) all_counted(&x, 0);
    assert_int_equal(gpuir_search_count(x.s, x.q[1], hits, FLIGHT_K, &n, &matches),
        backend == 2 ? GPUIR_E_BACKEND : GPUIR_OK);
    (void)oracle_run(&x.f.o, &x.oq[1], x.f.k1, x.f.b);
    assert_int_equal(matches, backend == 2 ? 0 : x.f.o.nhits[1]);
    assert_int_equal(n, backend == 2 ? 0 : FLIGHT_K);
    desc = flight_desc(&x, 1); /* only counted: matches are not looked at */
    desc.matches = x.matches[1];
    desc.count = 1;
    assert_int_equal(gpuir_search_begin(x.s, &desc, &b), GPUIR_OK);
    assert_int_equal(gpuir_search_finish(b), backend == 2 ? GPUIR_E_BACKEND : GPUIR_OK);
    assert_true(x.matches[1][1] == UINT64_MAX / 0xff * 0xee);
  }
  assert_int_equal(gpuir_searcher_set_backend(x.s, NULL, 0), GPUIR_OK);
  {
    gpuir_batch_desc desc = flight_desc(&x, 0); /* hits are left out, but all are counted */
    gpuir_batch *b;
    size_t i;
    for (i = 0; i < FLIGHT; i++) thresholds[i] = UINT32_MAX;
    desc.matches = x.matches[0];
    desc.thresholds = thresholds;
    assert_int_equal(gpuir_search_begin(x.s, &desc, &b), GPUIR_OK);
    assert_int_equal(gpuir_search_finish(b), GPUIR_OK);
    for (i = 0; i < FLIGHT; i++) assert_int_equal(x.counts[0][i], 0);
    all_counted(&x, 0);
  }
  flight_close(&x);
}

/* Deadlines and cancelling, of single queries and of all, by the CPU and by a backend: neither is made good. */
static void test_stopped_queries(void **state) {
  static const int yes = 1, no = 0;
  flight x;
  gpuir_searcher_desc sd;
  int backend, cancel = 0;
  size_t i;
  (void)state;
  flight_open(&x, "stopped", 1);
  gpuir_searcher_destroy(x.s);
  memset(&sd, 0, sizeof sd);
  sd.cancel = &cancel;
  sd.threads = 2;
  assert_int_equal(gpuir_searcher_create(x.f.index[0], &sd, &x.s, NULL), GPUIR_OK);
  for (backend = 0; backend < 2; backend++) {
    uint64_t deadlines[FLIGHT];
    const int *cancels[FLIGHT];
    gpuir_batch_desc desc = flight_desc(&x, 0);
    gpuir_batch *b;
    if (backend) assert_int_equal(gpuir_searcher_set_backend(x.s, &x.backend, 1), GPUIR_OK);
    for (i = 0; i < FLIGHT; i++) {
      deadlines[i] = i % 2 ? 0 : i % 4 ? 1 : UINT64_MAX; /* none, over, never */
      cancels[i] = i % 4 == 3 ? &yes : i % 4 == 1 ? &no : NULL;
    }
    desc.deadlines = deadlines;
    desc.cancels = cancels;
    assert_int_equal(gpuir_search_begin(x.s, &desc, &b), GPUIR_OK);
    assert_int_equal(gpuir_search_finish(b), GPUIR_E_DEADLINE); /* the first one's */
    for (i = 0; i < FLIGHT; i++) {
      assert_int_equal(x.statuses[0][i], i % 4 == 2 ? GPUIR_E_DEADLINE : i % 4 == 3 ? GPUIR_E_CANCELLED : GPUIR_OK);
      if (i % 4 < 2) answered(&x, 0, i);
    }
    desc = flight_desc(&x, 0); /* the limits were of that batch alone */
    assert_int_equal(gpuir_search_begin(x.s, &desc, &b), GPUIR_OK);
    assert_int_equal(gpuir_search_finish(b), GPUIR_OK);
    all_but(&x, 0, 0, 0);
    x.d.held = 1; /* cancelled while it is in flight */
    desc = flight_desc(&x, 0);
    assert_int_equal(gpuir_search_begin(x.s, &desc, &b), GPUIR_OK);
    store(&cancel, 1);
    if (backend) store(&x.d.batch[0].go, 1);
    assert_int_equal(gpuir_search_finish(b), GPUIR_E_CANCELLED);
    all_but(&x, 0, 1, GPUIR_E_CANCELLED);
    store(&cancel, 0);
    x.d.held = 0;
    gpuir_searcher_set_timeout(x.s, 1);
    desc = flight_desc(&x, 0);
    assert_int_equal(gpuir_search_begin(x.s, &desc, &b), GPUIR_OK);
    assert_int_equal(gpuir_search_finish(b), GPUIR_E_DEADLINE);
    all_but(&x, 0, 1, GPUIR_E_DEADLINE);
    gpuir_searcher_set_timeout(x.s, UINT64_MAX / FLIGHT + 1); /* times the queries it would wrap around, to 0 */
    desc = flight_desc(&x, 0);
    assert_int_equal(gpuir_search_begin(x.s, &desc, &b), GPUIR_OK);
    assert_int_equal(gpuir_search_finish(b), GPUIR_OK);
    all_but(&x, 0, 0, 0);
    gpuir_searcher_set_timeout(x.s, 0);
  }
  flight_close(&x);
}

static void *let_go(void *argument) {
  static const struct timespec while_waiting = {0, 30000000};
  dummy *d = (dummy *)argument;
  (void)nanosleep(&while_waiting, NULL);
  store(&d->batch[0].go, 1);
  (void)nanosleep(&while_waiting, NULL);
  store(&d->batch[1].go, 1);
  return NULL;
}

/* A searcher that is destroyed waits for what is in flight. */
static void test_destroyed_in_flight(void **state) {
  flight x;
  gpuir_batch *b[2];
  gpuir_batch_desc desc[2];
  pthread_t thread;
  int i;
  (void)state;
  flight_open(&x, "destroyed", 2);
  for (i = 0; i < 2; i++) { /* by the CPU: nothing has been done, and need not be */
    desc[i] = flight_desc(&x, i);
    assert_int_equal(gpuir_search_begin(x.s, &desc[i], &b[i]), GPUIR_OK);
  }
  gpuir_searcher_destroy(x.s);
  x.s = searcher_on(x.f.index[0], GPUIR_EVAL_AUTO, 2);
  assert_int_equal(gpuir_searcher_set_backend(x.s, &x.backend, 1), GPUIR_OK);
  x.d.held = 1;
  for (i = 0; i < 2; i++) {
    desc[i] = flight_desc(&x, i);
    assert_int_equal(gpuir_search_begin(x.s, &desc[i], &b[i]), GPUIR_OK);
  }
  assert_int_equal(pthread_create(&thread, NULL, let_go, &x.d), 0);
  gpuir_searcher_destroy(x.s);
  assert_true(x.d.batch[0].done && x.d.batch[1].done && !x.d.batch[0].used && !x.d.batch[1].used);
  assert_int_equal(x.d.closed, 1);
  (void)pthread_join(thread, NULL);
  x.s = NULL;
  flight_close(&x);
}

/* What begin refuses, and what it does not. */
static void test_batch_arguments(void **state) {
  flight x;
  gpuir_batch_desc desc, wrong;
  gpuir_batch *b = (gpuir_batch *)&x;
  const gpuir_query *none[FLIGHT] = {NULL};
  int backend;
  (void)state;
  flight_open(&x, "batchargs", 1);
  desc = flight_desc(&x, 0);
  assert_int_equal(gpuir_search_begin(NULL, &desc, &b), GPUIR_E_ARGUMENT);
  assert_null(b);
  assert_int_equal(gpuir_search_begin(x.s, NULL, &b), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_search_begin(x.s, &desc, NULL), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_search_poll(NULL), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_search_finish(NULL), GPUIR_E_ARGUMENT);
  for (backend = 0; backend < 2; backend++) {
    if (backend) assert_int_equal(gpuir_searcher_set_backend(x.s, &x.backend, 0), GPUIR_OK);
    wrong = desc;
    wrong.queries = NULL;
    assert_int_equal(gpuir_search_begin(x.s, &wrong, &b), GPUIR_E_ARGUMENT);
    wrong = desc;
    wrong.queries = none;
    assert_int_equal(gpuir_search_begin(x.s, &wrong, &b), GPUIR_E_ARGUMENT);
    wrong = desc;
    wrong.counts = NULL;
    assert_int_equal(gpuir_search_begin(x.s, &wrong, &b), GPUIR_E_ARGUMENT);
    wrong = desc;
    wrong.hits = NULL;
    assert_int_equal(gpuir_search_begin(x.s, &wrong, &b), GPUIR_E_ARGUMENT);
    wrong.k = 0; /* is allowed */
    assert_int_equal(gpuir_search_begin(x.s, &wrong, &b), GPUIR_OK);
    assert_int_equal(gpuir_search_finish(b), GPUIR_OK);
    assert_int_equal(x.counts[0][0], 0);
    wrong = desc;
    wrong.k = SIZE_MAX / 2;
    assert_int_equal(gpuir_search_begin(x.s, &wrong, &b), GPUIR_E_ARGUMENT);
    memset(&wrong, 0, sizeof wrong); /* no query at all */
    assert_int_equal(gpuir_search_begin(x.s, &wrong, &b), GPUIR_OK);
    assert_int_equal(gpuir_search_poll(b), 1);
    assert_int_equal(gpuir_search_finish(b), GPUIR_OK);
  }
  assert_int_equal(gpuir_searcher_set_backend(x.s, NULL, 0), GPUIR_OK);
  x.backend.poll = NULL;
  assert_int_equal(gpuir_searcher_set_backend(x.s, &x.backend, 0), GPUIR_E_ARGUMENT);
  x.backend.poll = dummy_poll;
  x.backend.finish = NULL;
  assert_int_equal(gpuir_searcher_set_backend(x.s, &x.backend, 0), GPUIR_E_ARGUMENT);
  x.backend.finish = dummy_finish;
  x.backend.begin = NULL;
  assert_int_equal(gpuir_searcher_set_backend(x.s, &x.backend, 0), GPUIR_E_ARGUMENT);
  flight_close(&x);
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
  d.cpu[0] = f.searcher[0];
  memset(&backend, 0, sizeof backend);
  backend.version = GPUIR_BACKEND_VERSION;
  backend.name = "dummy";
  backend.context = &d;
  backend.begin = dummy_begin;
  backend.poll = dummy_poll;
  backend.finish = dummy_finish;
  for (i = 0; i < 2 * sizeof huge / sizeof *huge; i++) {
    const size_t k = huge[i / 2];
    assert_int_equal(gpuir_searcher_set_backend(s, i % 2 ? &backend : NULL, 0), GPUIR_OK);
    assert_int_equal(gpuir_search(s, q, hits, k, &n), GPUIR_OK);
    assert_int_equal(n, want);
    assert_int_equal(gpuir_search_batch(s, (const gpuir_query *const *)batch, 1, k, hits, counts), GPUIR_OK);
    assert_int_equal(counts[0], want);
    assert_int_equal(gpuir_search_batch(s, (const gpuir_query *const *)batch, 2, k, hits, counts), GPUIR_E_ARGUMENT);
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
      cmocka_unit_test(test_batches),
      cmocka_unit_test(test_deadline_and_cancel),
      cmocka_unit_test(test_backends),
      cmocka_unit_test(test_limits),
      cmocka_unit_test(test_in_flight),
      cmocka_unit_test(test_failing_queries),
      cmocka_unit_test(test_matches),
      cmocka_unit_test(test_stopped_queries),
      cmocka_unit_test(test_destroyed_in_flight),
      cmocka_unit_test(test_batch_arguments),
      cmocka_unit_test(test_arguments),
  };
  int failed;
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  failed = cmocka_run_group_tests_name("63_execution", tests, NULL, NULL);
  print_message("%lu comparisons, %lu hits\n", compared, hits_compared);
  return failed;
}
