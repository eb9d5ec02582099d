/* 73_pool.c - pools: each task completes once, with the hits of gpuir_search; deadlines,
 * cancellation, back-pressure, misuse, memory that runs out
 *
 * GPUIR_LONG=1 submits more than a million tasks to each policy. */
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
#include "pool.h"

/* Submits tasks that wait for their turn in a short queue; each completes once, with the right hits. */
static void check_many(const world *w, gpuir_pool *p, size_t tasks, uint64_t seed) {
  enum { JOBS = 700 };
  job *jobs = (job *)oracle_grow(NULL, JOBS, sizeof *jobs);
  gpuir_pool_stats stats;
  uint64_t submitted = 0, refused = 0;
  size_t i;
  rng r;
  r.s = seed;
  for (i = 0; i < JOBS; i++) { /* never submitted */
    jobs[i].completed = -1;
    jobs[i].task.cancel = NULL;
  }
  for (i = 0; i < tasks; i++) {
    job *j = &jobs[rng_below(&r, JOBS)];
    job *called_off = &jobs[rng_below(&r, JOBS)];
    if (rng_below(&r, 4) == 0) __atomic_store_n(&called_off->cancel, 1, __ATOMIC_RELAXED);
    if (rng_below(&r, 4) == 0 && called_off->task.cancel) gpuir_pool_cancel(p, &called_off->task);
    if (__atomic_load_n(&j->completed, __ATOMIC_ACQUIRE) == 0) continue; /* it is the pool's */
    if (j->completed != -1) assert_true(j->completed == 1 && !j->wrong);
    job_make(j, w, &r);
    for (;;) {
      const int status = rng_below(&r, 3) ? gpuir_pool_submit(p, &j->task) : gpuir_pool_run(p, &j->task);
      if (!status) break;
      assert_int_equal(status, GPUIR_E_BUSY);
      refused++;
      (void)sched_yield();
    }
    submitted++;
  }
  gpuir_pool_drain(p);
  for (i = 0; i < JOBS; i++)
    if (jobs[i].completed != -1) assert_true(jobs[i].completed == 1 && !jobs[i].wrong);
  gpuir_pool_get_stats(p, &stats);
  assert_int_equal(stats.submitted, submitted);
  assert_int_equal(stats.completed, submitted);
  assert_int_equal(stats.waiting, 0);
  assert_int_equal(stats.refused, refused);
  assert_true(stats.cancelled > 0 && stats.missed > 0);
  if (getenv("GPUIR_LONG"))
    print_message(
        "%llu tasks, each complete once; %llu were cancelled, %llu missed their deadlines, %llu times the "
        "queue was full\n",
        (unsigned long long)submitted, (unsigned long long)stats.cancelled, (unsigned long long)stats.missed,
        (unsigned long long)refused);
  free(jobs);
}

static void test_many(void **state) {
  const size_t tasks = getenv("GPUIR_LONG") ? 1500000 : 50000;
  static const char *const policies[] = {"inter", "auto"};
  unsigned i;
  (void)state;
  for (i = 0; i < 2; i++) {
    gpuir_pool *p = pool_on(&small, policies[i], 3, 64);
    check_many(&small, p, tasks, 800 + i);
    gpuir_pool_destroy(p);
    p = pool_on(&large, policies[i], 1 + 2 * i, 0);
    check_many(&large, p, tasks / 50, 900 + i);
    gpuir_pool_destroy(p);
  }
}

/* Several threads of a program submit and wait. */
static void *submit_and_wait(void *argument) {
  gpuir_pool *p = (gpuir_pool *)argument;
  gpuir_hit hits[MOST];
  gpuir_task t;
  unsigned i;
  int status;
  for (i = 0; i < 600; i++) {
    memset(&t, 0, sizeof t);
    t.query = small.query[i % QUERIES];
    t.k = small.k[i % QUERIES];
    t.hits = hits;
    while ((status = (i % 3 ? gpuir_pool_submit : gpuir_pool_run)(p, &t)) == GPUIR_E_BUSY) (void)sched_yield();
    if (status || gpuir_pool_wait(p, &t)) return argument;
    if (!right(&small, i % QUERIES, &t)) return argument;
  }
  return NULL;
}

/* The same with a queue so short that its few places go from thread to thread all the time. */
static void test_waiting(void **state) {
  const unsigned rounds = getenv("GPUIR_LONG") ? 200 : 2;
  enum { CALLERS = 6 };
  pthread_t thread[CALLERS];
  unsigned i, round;
  (void)state;
  for (round = 0; round < rounds; round++) {
    gpuir_pool *p = pool_on(&small, round % 4 < 2 ? NULL : "auto", 2, round % 2 ? 4 : 0);
    for (i = 0; i < CALLERS; i++) assert_int_equal(pthread_create(&thread[i], NULL, submit_and_wait, p), 0);
    for (i = 0; i < CALLERS; i++) {
      void *failed;
      assert_int_equal(pthread_join(thread[i], &failed), 0);
      assert_null(failed);
    }
    gpuir_pool_destroy(p);
  }
}

/* Tasks that are submitted together: as many as there is room for; the first one that is wrong ends it. */
static void test_many_together(void **state) {
  static const char *const policies[] = {"inter", "auto"};
  enum { TASKS = 40, ROOM = 24 };
  unsigned round, i;
  (void)state;
  for (round = 0; round < 2; round++) {
    gpuir_pool *p = pool_on(&small, policies[round], 2, ROOM);
    static gpuir_hit hits[TASKS][MOST];
    gpuir_task t[TASKS], *all[TASKS];
    gpuir_pool_stats stats;
    size_t accepted = 7;
    memset(t, 0, sizeof t);
    for (i = 0; i < TASKS; i++) {
      all[i] = &t[i];
      t[i].query = small.query[i];
      t[i].k = small.k[i];
      t[i].hits = hits[i];
    }
    __atomic_store_n(&p->running, 1, __ATOMIC_RELEASE); /* no thread takes one */
    assert_int_equal(gpuir_pool_submit_many(p, all, 10, &accepted), GPUIR_OK);
    assert_int_equal(accepted, 10);
    assert_int_equal(gpuir_pool_submit_many(p, all + 10, TASKS - 10, &accepted), GPUIR_E_BUSY);
    assert_int_equal(accepted, ROOM - 10);
    gpuir_pool_get_stats(p, &stats);
    assert_true(stats.submitted == ROOM && stats.waiting == ROOM && stats.refused == 1 && !stats.completed);
    __atomic_store_n(&p->running, 0, __ATOMIC_RELEASE);
    while (gpuir_pool_submit(p, &t[ROOM])) (void)sched_yield();
    gpuir_pool_drain(p);
    for (i = 0; i <= ROOM; i++) assert_true(right(&small, i, &t[i]) && t[i].pool_state == GPUIR__TASK_COMPLETE);
    t[5].query = NULL;
    assert_int_equal(gpuir_pool_submit_many(p, all, 10, &accepted), GPUIR_E_ARGUMENT);
    assert_int_equal(accepted, 5);
    gpuir_pool_drain(p);
    assert_int_equal(gpuir_pool_submit_many(p, all, 0, &accepted), GPUIR_OK);
    assert_int_equal(gpuir_pool_submit_many(p, all, 1, NULL), GPUIR_E_ARGUMENT);
    assert_int_equal(gpuir_pool_submit_many(p, NULL, 1, &accepted), GPUIR_E_ARGUMENT);
    assert_int_equal(gpuir_pool_submit_many(NULL, all, 1, &accepted), GPUIR_E_ARGUMENT);
    gpuir_pool_destroy(p);
  }
}

static void count_thread(void *threads) { (void)__atomic_fetch_add((int *)threads, 1, __ATOMIC_RELAXED); }

/* Each thread calls what it is to call first; a flag of the pool ends what it has and what comes. */
static void test_flag(void **state) {
  gpuir_pool_desc desc;
  gpuir_pool *p;
  gpuir_task t;
  gpuir_hit hits[MOST];
  fake f;
  int flag = 0, threads = 0;
  (void)state;
  memset(&desc, 0, sizeof desc);
  memset(&f, 0, sizeof f);
  memset(&t, 0, sizeof t);
  desc.threads = 3;
  desc.cancel = &flag;
  desc.thread = count_thread;
  desc.thread_user = &threads;
  desc.attach = fake_attach;
  desc.attach_user = &f;
  assert_int_equal(gpuir_pool_create(large.index, &desc, &p, NULL), GPUIR_OK);
  t.query = large.query[1];
  t.k = 10;
  t.hits = hits;
  assert_int_equal(threads, 0); /* none was started */
  assert_int_equal(gpuir_pool_submit(p, &t), GPUIR_OK);
  assert_int_equal(gpuir_pool_wait(p, &t), GPUIR_OK);
  while (__atomic_load_n(&threads, __ATOMIC_RELAXED) < 4) (void)sched_yield();
  __atomic_store_n(&flag, 1, __ATOMIC_RELAXED);
  assert_int_equal(gpuir_pool_submit(p, &t), GPUIR_OK);
  assert_int_equal(gpuir_pool_wait(p, &t), GPUIR_E_CANCELLED);
  assert_int_equal(gpuir_pool_run(p, &t), GPUIR_OK);
  assert_int_equal(gpuir_pool_wait(p, &t), GPUIR_E_CANCELLED);
  __atomic_store_n(&flag, 0, __ATOMIC_RELAXED);
  assert_int_equal(gpuir_pool_run(p, &t), GPUIR_OK);
  assert_int_equal(gpuir_pool_wait(p, &t), GPUIR_OK);
  gpuir_pool_destroy(p);
  assert_int_equal(threads, 4);
}

static void test_misuse(void **state) {
  gpuir_pool_desc desc;
  gpuir_pool *p = (gpuir_pool *)1;
  gpuir_error err;
  gpuir_task t;
  gpuir_hit hit;
  (void)state;
  memset(&desc, 0, sizeof desc);
  memset(&t, 0, sizeof t);
  assert_int_equal(gpuir_pool_create(NULL, NULL, &p, &err), GPUIR_E_ARGUMENT);
  assert_null(p);
  assert_int_equal(gpuir_pool_create(small.index, NULL, NULL, &err), GPUIR_E_ARGUMENT);
  desc.policy = "fifo";
  assert_int_equal(gpuir_pool_create(small.index, &desc, &p, &err), GPUIR_E_ARGUMENT);
  assert_string_equal(err.msg, "no policy is called 'fifo'");
  desc.policy = NULL;
  desc.threads = 4097;
  assert_int_equal(gpuir_pool_create(small.index, &desc, &p, &err), GPUIR_E_ARGUMENT);
  desc.threads = 1;
  desc.queue = SIZE_MAX / 8;
  assert_int_equal(gpuir_pool_create(small.index, &desc, &p, &err), GPUIR_E_ARGUMENT);
  desc.queue = 0;
  assert_int_equal(gpuir_pool_create(small.index, &desc, &p, &err), GPUIR_OK);
  assert_int_equal(gpuir_pool_submit(NULL, &t), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_pool_run(NULL, &t), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_pool_run(p, &t), GPUIR_E_ARGUMENT);
  gpuir_pool_cancel(NULL, &t);
  gpuir_pool_cancel(p, &t); /* which was never submitted */
  assert_int_equal(gpuir_pool_submit(p, NULL), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_pool_submit(p, &t), GPUIR_E_ARGUMENT); /* no query */
  t.query = large.query[0];
  assert_int_equal(gpuir_pool_submit(p, &t), GPUIR_E_ARGUMENT); /* another index's */
  t.query = small.query[0];
  t.k = 1;
  assert_int_equal(gpuir_pool_submit(p, &t), GPUIR_E_ARGUMENT); /* no room for hits */
  t.hits = &hit;
  assert_int_equal(gpuir_pool_wait(p, &t), GPUIR_E_ARGUMENT); /* not submitted */
  assert_int_equal(gpuir_pool_wait(NULL, &t), GPUIR_E_ARGUMENT);
  t.done = job_done;
  t.pool_state = 1;
  assert_int_equal(gpuir_pool_wait(p, &t), GPUIR_E_ARGUMENT); /* may be gone */
  assert_int_equal(gpuir_pool_answer(NULL, &t), GPUIR_E_ARGUMENT);
  gpuir_pool_drain(p);
  gpuir_pool_drain(NULL);
  gpuir_pool_destroy(p);
  gpuir_pool_destroy(NULL);
  gpuir_pool_get_stats(NULL, NULL);
  assert_null(gpuir_pool_index(NULL));
  assert_int_equal(gpuir_pool_estimate(NULL, small.query[0]), 0);
}

/* What auto measures becomes its estimate, which inter has none of. */
static void test_estimate(void **state) {
  static const char *const policies[] = {"inter", "auto"};
  gpuir_hit hits[MOST];
  unsigned i;
  (void)state;
  for (i = 0; i < 2; i++) {
    gpuir_pool *p = pool_on(&small, policies[i], 1, 0);
    gpuir_task t;
    seem_costly(p);
    assert_int_equal(gpuir_pool_estimate(p, small.query[3]), 4000000000u);
    assert_int_equal(gpuir_pool_estimate(p, NULL), 0);
    memset(&t, 0, sizeof t);
    t.query = small.query[3];
    t.k = small.k[3];
    t.hits = hits;
    assert_int_equal(gpuir_pool_submit(p, &t), GPUIR_OK);
    assert_int_equal(gpuir_pool_wait(p, &t), GPUIR_OK);
    assert_int_equal(gpuir_pool_estimate(p, small.query[3]) < 4000000000u, i);
    gpuir_pool_destroy(p);
  }
}

/* Whatever call for memory fails, creation reports it and leaves nothing behind. */
static void test_memory(void **state) {
  alloc_book book;
  gpuir_pool_desc desc;
  int64_t at;
  int status = GPUIR_E_NOMEM;
  fake f;
  (void)state;
  memset(&f, 0, sizeof f);
  for (at = 1; status; at++) {
    gpuir_allocator a = alloc_from(&book);
    gpuir_pool *p;
    gpuir_error err;
    memset(&book, 0, sizeof book);
    memset(&desc, 0, sizeof desc);
    desc.allocator = &a;
    desc.threads = 2;
    desc.attach = fake_attach;
    desc.attach_user = &f;
    book.fail_at = at;
    status = gpuir_pool_create(small.index, &desc, &p, &err);
    if (status) {
      assert_int_equal(status, GPUIR_E_NOMEM);
      assert_int_equal(err.code, GPUIR_E_NOMEM);
      assert_null(p);
    }
    gpuir_pool_destroy(p);
    assert_int_equal(book.blocks, 0);
  }
  assert_true(at > 5);
}

/* Memory that a search lacks ends its task with NOMEM, and that of helpers is made good. */
static void test_memory_of_tasks(void **state) {
  alloc_book book;
  int64_t at;
  unsigned failed = 0;
  (void)state;
  for (at = 1; at < 60; at++) {
    gpuir_allocator a = alloc_from(&book);
    gpuir_pool_desc desc;
    gpuir_pool *p;
    gpuir_hit hits[MOST];
    gpuir_task t;
    const unsigned q = (unsigned)at % QUERIES;
    memset(&book, 0, sizeof book);
    memset(&desc, 0, sizeof desc);
    memset(&t, 0, sizeof t);
    desc.allocator = &a;
    desc.threads = 2;
    assert_int_equal(gpuir_pool_create(large.index, &desc, &p, NULL), GPUIR_OK);
    seem_costly(p);
    book.fail_at = book.calls + 1 + at % 12;
    t.query = large.query[q];
    t.k = large.k[q];
    t.hits = hits;
    assert_int_equal(gpuir_pool_submit(p, &t), GPUIR_OK);
    if (gpuir_pool_wait(p, &t)) {
      assert_int_equal(t.status, GPUIR_E_NOMEM);
      failed++;
    } else {
      assert_true(right(&large, q, &t));
    }
    gpuir_pool_destroy(p);
    assert_int_equal(book.blocks, 0);
  }
  assert_true(failed > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_many),
      cmocka_unit_test(test_waiting),
      cmocka_unit_test(test_many_together),
      cmocka_unit_test(test_flag),
      cmocka_unit_test(test_misuse),
      cmocka_unit_test(test_estimate),
      cmocka_unit_test(test_memory),
      cmocka_unit_test(test_memory_of_tasks),
  };
  return cmocka_run_group_tests(tests, setup_group, teardown_group);
}
