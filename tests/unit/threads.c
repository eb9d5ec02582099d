/* threads.c - an index shared by many threads, each with its own searcher; for ThreadSanitizer
 *
 * The expected hits come from one thread; every other way must return the same. */
#define _POSIX_C_SOURCE 200809L
#include "gpuir.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "oracle.h"
#include "corpus.h"

enum { THREADS = 8, QUERIES = 60, K = 20 };

static char path[4200];
static oracle o;
static gpuir_index *shared;
static char *text[QUERIES];
static gpuir_query *query[QUERIES]; /* immutable once parsed: shared as well */
static gpuir_hit expected[QUERIES][K];
static size_t nexpected[QUERIES];

static int setup_group(void **state) {
  rng r;
  gpuir_error err;
  gpuir_searcher_desc desc;
  gpuir_searcher *s;
  int i;
  (void)state;
  corpus_zipf(&o, 12000, 1500, 10, 301);
  (void)corpus_path(path, sizeof path, "threads.gpuir");
  if (corpus_write(&o, path, NULL, &err) || gpuir_open(path, NULL, &shared, &err)) {
    print_error("%s\n", err.msg);
    return 1;
  }
  memset(&desc, 0, sizeof desc);
  desc.evaluator = GPUIR_EVAL_EXHAUSTIVE;
  if (gpuir_searcher_create(shared, &desc, &s, NULL)) return 1;
  r.s = 302;
  for (i = 0; i < QUERIES; i++) {
    gpuir_query_desc qd;
    oracle_query oq;
    text[i] = (char *)oracle_grow(NULL, 2048, 1);
    corpus_query(&o, &r, 1 + rng_below(&r, 6), 1, &oq);
    (void)corpus_text(&o, &oq, text[i], 2048);
    memset(&qd, 0, sizeof qd);
    qd.mode = i % 3;
    if (gpuir_query_parse(shared, &qd, text[i], strlen(text[i]), &query[i], &err)) return 1;
    if (gpuir_search(s, query[i], expected[i], K, &nexpected[i])) return 1;
  }
  gpuir_searcher_destroy(s);
  return 0;
}

static int teardown_group(void **state) {
  int i;
  (void)state;
  for (i = 0; i < QUERIES; i++) {
    gpuir_query_destroy(query[i]);
    free(text[i]);
  }
  gpuir_close(shared);
  (void)unlink(path);
  oracle_free(&o);
  return 0;
}

static int same(int i, const gpuir_hit *hits, size_t n) {
  size_t j;
  if (n != nexpected[i]) return 0;
  for (j = 0; j < n; j++)
    if (hits[j].docid != expected[i][j].docid || hits[j].score != expected[i][j].score) return 0;
  return 1;
}

/* cmocka's assertions belong to the main thread: workers return their number of failures. */
static void run(void *(*work)(void *), int threads) {
  pthread_t thread[THREADS];
  int number[THREADS], i, failed = 0;
  for (i = 0; i < threads; i++) {
    number[i] = i;
    assert_int_equal(pthread_create(&thread[i], NULL, work, &number[i]), 0);
  }
  for (i = 0; i < threads; i++) {
    void *failures;
    assert_int_equal(pthread_join(thread[i], &failures), 0);
    failed += failures != NULL;
  }
  assert_int_equal(failed, 0);
}

/* Own searchers, shared and own queries, cursors, statistics, analysis. */
static void *work_shared(void *arg) {
  int number = *(int *)arg, round, i;
  size_t failures = 0;
  gpuir_searcher_desc desc;
  gpuir_searcher *s;
  memset(&desc, 0, sizeof desc);
  desc.evaluator = number % 2;
  if (gpuir_searcher_create(shared, &desc, &s, NULL)) return (void *)1;
  for (round = 0; round < 4; round++) {
    for (i = 0; i < QUERIES; i++) {
      int at = (i + number * 7) % QUERIES;
      gpuir_hit hits[K];
      gpuir_query_desc qd;
      gpuir_query *own;
      gpuir_term_info info;
      gpuir_doc doc;
      gpuir_cursor *c;
      size_t n;
      uint64_t count;
      failures += gpuir_search(s, query[at], hits, K, &n) || !same(at, hits, n);
      memset(&qd, 0, sizeof qd);
      qd.mode = at % 3;
      if (gpuir_query_parse(shared, &qd, text[at], strlen(text[at]), &own, NULL)) {
        failures++;
        continue;
      }
      failures += gpuir_search(s, own, hits, K, &n) || !same(at, hits, n);
      failures += gpuir_count(s, own, &count) || count < (at % 3 == 2 ? 0 : n);
      gpuir_query_destroy(own);
      failures += gpuir_query_parse(shared, NULL, "-", 1, &own, NULL) != GPUIR_E_QUERY;
      failures += gpuir_term_get_info(shared, (uint64_t)i, &info) != GPUIR_OK;
      failures += gpuir_doc_get(shared, (uint32_t)i, &doc) != GPUIR_OK;
      failures += gpuir_cursor_open(shared, (uint64_t)i, &c, NULL) != GPUIR_OK;
      for (n = 0; gpuir_cursor_docid(c) != GPUIR_END; n++) (void)gpuir_cursor_next(c);
      failures += n != info.df;
      gpuir_cursor_close(c);
    }
  }
  if (number == 0) failures += gpuir_verify(shared, NULL) != GPUIR_OK;
  gpuir_searcher_destroy(s);
  return failures ? (void *)1 : NULL;
}

static void test_shared_index(void **state) {
  (void)state;
  run(work_shared, THREADS);
}

/* Every thread has a searcher whose batches have threads of their own. */
static void *work_batches(void *arg) {
  int number = *(int *)arg, round, i;
  size_t failures = 0;
  gpuir_hit *hits = (gpuir_hit *)oracle_grow(NULL, QUERIES * K, sizeof *hits);
  uint32_t counts[QUERIES];
  gpuir_searcher_desc desc;
  gpuir_searcher *s;
  gpuir_searcher_info info = {0};
  memset(&desc, 0, sizeof desc);
  desc.threads = 1 + (unsigned)number;
  desc.evaluator = number % 2;
  if (gpuir_searcher_create(shared, &desc, &s, NULL)) return (void *)1;
  for (round = 0; round < 6; round++) {
    size_t from = (size_t)(round % 3) * 7, nq = QUERIES - from - (size_t)round;
    failures += gpuir_search_batch(s, (const gpuir_query *const *)query + from, nq, K, hits, counts) != GPUIR_OK;
    for (i = 0; i < (int)nq; i++) failures += !same(i + (int)from, hits + i * K, counts[i]);
  }
  gpuir_searcher_get_info(s, &info);
  failures += info.queries == 0;
  gpuir_searcher_destroy(s);
  free(hits);
  return failures ? (void *)1 : NULL;
}

static void test_batches_with_threads(void **state) {
  (void)state;
  run(work_batches, 4);
}

/* Opening and closing beside it. */
static void *work_open(void *arg) {
  int number = *(int *)arg, round, i;
  size_t failures = 0;
  for (round = 0; round < 12; round++) {
    gpuir_open_desc desc;
    gpuir_index *ix;
    gpuir_searcher *s;
    memset(&desc, 0, sizeof desc);
    desc.simd = (round + number) % 4;
    if (gpuir_open(path, &desc, &ix, NULL)) return (void *)1;
    if (gpuir_searcher_create(ix, NULL, &s, NULL)) return (void *)1;
    for (i = number; i < QUERIES; i += THREADS) {
      gpuir_query_desc qd;
      gpuir_query *q;
      gpuir_hit hits[K];
      size_t n;
      memset(&qd, 0, sizeof qd);
      qd.mode = i % 3;
      if (gpuir_query_parse(ix, &qd, text[i], strlen(text[i]), &q, NULL)) {
        failures++;
        continue;
      }
      failures += gpuir_search(s, q, hits, K, &n) || !same(i, hits, n);
      gpuir_query_destroy(q);
    }
    gpuir_searcher_destroy(s);
    gpuir_close(ix);
  }
  return failures ? (void *)1 : NULL;
}

static void test_open_and_close(void **state) {
  (void)state;
  run(work_open, THREADS);
}

/* One thread cancels the searches of another, again and again; none is wrong. */
typedef struct canceller {
  int flag;
  int done; /* both read and written atomically */
} canceller;

static void *work_cancel(void *arg) {
  canceller *c = (canceller *)arg;
  while (!__atomic_load_n(&c->done, __ATOMIC_ACQUIRE)) {
    int i;
    __atomic_store_n(&c->flag, 1, __ATOMIC_RELAXED);
    for (i = 0; i < 300; i++) (void)__atomic_load_n(&c->done, __ATOMIC_RELAXED);
    __atomic_store_n(&c->flag, 0, __ATOMIC_RELAXED);
    for (i = 0; i < 3000; i++) (void)__atomic_load_n(&c->done, __ATOMIC_RELAXED);
  }
  return NULL;
}

static void test_cancel_from_another_thread(void **state) {
  canceller c = {0, 0};
  pthread_t thread;
  gpuir_searcher_desc desc;
  gpuir_searcher *s;
  int round, i, wrong = 0;
  unsigned long answered = 0, cancelled = 0;
  (void)state;
  memset(&desc, 0, sizeof desc);
  desc.cancel = &c.flag;
  desc.threads = 2;
  assert_int_equal(gpuir_searcher_create(shared, &desc, &s, NULL), GPUIR_OK);
  assert_int_equal(pthread_create(&thread, NULL, work_cancel, &c), 0);
  for (round = 0; round < 20; round++) {
    gpuir_hit hits[QUERIES * K];
    uint32_t counts[QUERIES];
    int status;
    for (i = 0; i < QUERIES; i++) {
      size_t n = 5;
      status = gpuir_search(s, query[i], hits, K, &n);
      if (status == GPUIR_OK) {
        answered++;
        wrong += !same(i, hits, n);
      } else {
        cancelled++;
        wrong += status != GPUIR_E_CANCELLED || n;
      }
    }
    status = gpuir_search_batch(s, (const gpuir_query *const *)query, QUERIES, K, hits, counts);
    if (status == GPUIR_OK)
      for (i = 0; i < QUERIES; i++) wrong += !same(i, hits + i * K, counts[i]);
    else wrong += status != GPUIR_E_CANCELLED;
  }
  __atomic_store_n(&c.done, 1, __ATOMIC_RELEASE);
  (void)pthread_join(thread, NULL);
  gpuir_searcher_destroy(s);
  assert_int_equal(wrong, 0);
  print_message("%lu answered, %lu cancelled\n", answered, cancelled);
}

/* Builders run side by side, each with threads of its own, and write the same bytes. */
static void *work_build(void *arg) {
  char mine[4300];
  corpus_build how;
  gpuir_error err;
  gpuir_index *ix = NULL;
  gpuir_index_info info, reference;
  size_t failures = 0;
  memset(&how, 0, sizeof how);
  how.threads = 1 + (unsigned)*(int *)arg;
  how.memory = 4 << 20;
  (void)snprintf(mine, sizeof mine, "%s.%d", path, *(int *)arg);
  failures += corpus_write(&o, mine, &how, &err) != GPUIR_OK;
  failures += gpuir_open(mine, NULL, &ix, NULL) != GPUIR_OK;
  if (!failures) {
    failures += gpuir_verify(ix, NULL) != GPUIR_OK;
    failures += gpuir_index_get_info(ix, &info) != GPUIR_OK || gpuir_index_get_info(shared, &reference) != GPUIR_OK;
    failures += info.file_bytes != reference.file_bytes || info.postings != reference.postings;
  }
  gpuir_close(ix);
  (void)unlink(mine);
  return failures ? (void *)1 : NULL;
}

static void test_builders(void **state) {
  (void)state;
  run(work_build, 4);
}

/* Two builders of one path: the second is told so. */
static void test_builder_is_busy(void **state) {
  gpuir_builder_desc desc;
  gpuir_builder *a, *b = NULL;
  gpuir_error err;
  char busy[4300];
  (void)state;
  (void)snprintf(busy, sizeof busy, "%s.busy", path);
  memset(&desc, 0, sizeof desc);
  desc.path = busy;
  assert_int_equal(gpuir_builder_create(&desc, &a, &err), GPUIR_OK);
  assert_int_equal(gpuir_builder_create(&desc, &b, &err), GPUIR_E_BUSY);
  assert_null(b);
  assert_non_null(strstr(err.msg, "threads.gpuir.busy"));
  gpuir_builder_destroy(a);
  assert_int_equal(gpuir_builder_create(&desc, &a, &err), GPUIR_OK);
  gpuir_builder_destroy(a);
  assert_int_not_equal(access(busy, F_OK), 0); /* nothing is left */
  (void)snprintf(busy, sizeof busy, "%s.busy.tmp", path);
  assert_int_not_equal(access(busy, F_OK), 0);
}

/* ---- snapshots of different age ---- */

enum { READERS = 16, AGES = 30, LIVE = 12000, A_TIME = 40 };

static gpuir_index *ages[AGES]; /* from the one with all documents on, each with A_TIME fewer */
static unsigned published;

/* Counts documents of "part<part>" that a snapshot has: one in part + 2 has it, and of each age the first A_TIME are
 * deleted. */
static uint32_t left_at(unsigned age, unsigned part) {
  uint32_t d, n = 0;
  for (d = age * A_TIME; d < LIVE; d++) n += d % (part + 2) == 0;
  return n;
}

/* Parses the same long terms on whichever snapshot there is, and counts their documents. */
static void *work_parse(void *argument) {
  static const char asked[] = "every part0 part1 -part2 par*";
  const unsigned me = *(const unsigned *)argument;
  uintptr_t failures = 0;
  unsigned i, age, n;
  for (i = 0; i < 200; i++) {
    gpuir_query_desc qd;
    gpuir_query *q;
    uint32_t df;
    char part[8];
    do n = __atomic_load_n(&published, __ATOMIC_ACQUIRE);
    while (!n);
    age = (i * 7 + me * 5) % 3 ? n - 1 : (i * 13 + me) % n;
    (void)snprintf(part, sizeof part, "part%u", (i + me) % 4);
    failures += gpuir_term_count(ages[age], part, 5, &df, NULL) != GPUIR_OK || df != left_at(age, (i + me) % 4);
    failures += gpuir_term_count(ages[age], "every", 5, &df, NULL) != GPUIR_OK || df != LIVE - age * A_TIME;
    memset(&qd, 0, sizeof qd);
    qd.mode = (int)(i % 3);
    if (gpuir_query_parse(ages[age], &qd, asked, strlen(asked), &q, NULL)) return (void *)(failures + 1);
    gpuir_query_destroy(q);
  }
  return (void *)failures;
}

/* Adds all documents. Each holds "every" and some parts. */
static void add_live(gpuir_live *l) {
  gpuir_error err;
  uint32_t d;
  for (d = 0; d < LIVE; d++) {
    char name[16], words[64];
    gpuir_doc_desc doc;
    unsigned i;
    int len = snprintf(words, sizeof words, "every");
    memset(&doc, 0, sizeof doc);
    doc.name = name;
    doc.name_len = (size_t)snprintf(name, sizeof name, "n%u", (unsigned)d);
    for (i = 0; i < 4; i++)
      if (d % (i + 2) == 0) len += snprintf(words + len, sizeof words - (size_t)len, " part%u", i);
    if (gpuir_live_add(l, &doc, words, (size_t)len, &err)) fail_msg("%s", err.msg);
  }
}

/* While 16 threads count documents of the same terms, each snapshot's count is its own. */
static void test_ages(void **state) {
  pthread_t threads[READERS];
  unsigned number[READERS], i, age;
  gpuir_live_desc desc;
  gpuir_live *l;
  gpuir_error err;
  char folder[4300], command[4400];
  void *failures;
  (void)state;
  (void)snprintf(folder, sizeof folder, "%s.live", path);
  memset(&desc, 0, sizeof desc);
  desc.settings.path = folder;
  desc.create = 1;
  if (gpuir_live_open(&desc, &l, &err)) fail_msg("%s", err.msg);
  add_live(l);
  for (i = 0; i < READERS; i++) {
    number[i] = i;
    assert_int_equal(pthread_create(&threads[i], NULL, work_parse, &number[i]), 0);
  }
  for (age = 0; age < AGES; age++) {
    for (i = 0; age && i < A_TIME; i++) {
      char name[16];
      const int len = snprintf(name, sizeof name, "n%u", (age - 1) * A_TIME + i);
      assert_int_equal(gpuir_live_delete(l, GPUIR_BY_NAME, name, (size_t)len, NULL, &err), GPUIR_OK);
    }
    if (gpuir_live_refresh(l, &ages[age], &err)) fail_msg("%s", err.msg);
    __atomic_store_n(&published, age + 1, __ATOMIC_RELEASE);
  }
  for (i = 0; i < READERS; i++) {
    assert_int_equal(pthread_join(threads[i], &failures), 0);
    assert_null(failures);
  }
  for (age = 0; age < AGES; age++) gpuir_close(ages[age]);
  gpuir_live_close(l);
  (void)snprintf(command, sizeof command, "rm -r '%s'", folder);
  assert_int_equal(system(command), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shared_index),
      cmocka_unit_test(test_batches_with_threads),
      cmocka_unit_test(test_open_and_close),
      cmocka_unit_test(test_cancel_from_another_thread),
      cmocka_unit_test(test_builders),
      cmocka_unit_test(test_builder_is_busy),
      cmocka_unit_test(test_ages),
  };
  return cmocka_run_group_tests(tests, setup_group, teardown_group);
}
