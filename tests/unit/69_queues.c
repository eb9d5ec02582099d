/* 69_queues.c - where tasks wait: what queries cost, lanes, inboxes that many fill, eventcounts that miss nobody */
#include "private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rng.h"

/* What a kind of query hardly exceeds follows what is measured: about a 17th of the queries lies above, or a tenth
 * where they differ little. */
static void test_cost_high(void **state) {
  gpuir__costs c;
  gpuir_query q;
  uint64_t high, above = 0, i;
  rng r;
  (void)state;
  memset(&q, 0, sizeof q);
  r.s = 9;
  memset(&c, 0, sizeof c);
  for (i = 0; i < 40000; i++) {
    const uint64_t ns = 1000 + rng_below(&r, 1000);
    (void)gpuir__cost_estimate(&c, &q, &high);
    if (i >= 20000) above += ns > high;
    gpuir__cost_note(&c, &q, ns);
  }
  assert_in_range(above, 20000 / 25, 20000 / 8);
}

/* Tasks leave a lane from any place; the others keep their order. */
static void test_raise(void **state) {
  enum { TASKS = 40 };
  static gpuir_task tasks[TASKS];
  gpuir__lane_item heap[TASKS];
  unsigned round, i;
  rng r;
  r.s = 5;
  (void)state;
  for (round = 0; round < 2000; round++) {
    gpuir__lane l;
    uint64_t last = 0;
    size_t left;
    const unsigned n = 1 + rng_below(&r, TASKS);
    l.heap = heap;
    l.n = 0;
    for (i = 0; i < n; i++) {
      tasks[i].pool_cost = rng_below(&r, 20);
      gpuir__lane_push(&l, tasks[i].pool_cost, &tasks[i]);
    }
    left = n;
    for (i = 0; i < n; i += 1 + rng_below(&r, 3), left--) {
      assert_true(gpuir__lane_raise(&l, &tasks[i]));
      assert_ptr_equal(gpuir__lane_pop(&l), &tasks[i]);
      assert_false(gpuir__lane_raise(&l, &tasks[i]));
      tasks[i].pool_cost = UINT64_MAX;
    }
    assert_int_equal(l.n, left);
    while (left--) {
      const uint64_t key = l.heap->key;
      const gpuir_task *t = gpuir__lane_pop(&l);
      assert_true(t->pool_cost == key && key >= last);
      last = key;
    }
  }
}

/* ---- threads that put and threads that take ---- */

enum { THREADS = 3, TASKS = 20000, ROOM = 1 << 16 };

/* An inbox whose tasks are taken under a lock, as a crew does it, by threads that rest when they find none. */
typedef struct desk {
  gpuir__inbox inbox;
  gpuir__eventcount eventcount;
  pthread_mutex_t lock;
  gpuir_task tasks[THREADS * TASKS];
  int taken, next, looks;
} desk;

static desk d;

static void *put(void *argument) {
  const int first = TASKS * (int)(intptr_t)argument;
  int i;
  for (i = 0; i < TASKS; i++) {
    const uint64_t at = __atomic_fetch_add(&d.inbox.written, 1, __ATOMIC_RELAXED);
    gpuir__inbox_put(&d.inbox, at, (uint64_t)(first + i), &d.tasks[first + i]);
    gpuir__eventcount_notify(&d.eventcount, 1);
    if (i % 256 == 0) { /* all find nothing, and go to sleep */
      const struct timespec moment = {0, 200000};
      (void)nanosleep(&moment, NULL);
    }
  }
  return NULL;
}

static void *take(void *argument) {
  uint64_t seen = 0, key;
  (void)argument;
  while (__atomic_load_n(&d.taken, __ATOMIC_ACQUIRE) < THREADS * TASKS) {
    gpuir_task *task;
    (void)pthread_mutex_lock(&d.lock);
    task = gpuir__inbox_take(&d.inbox, &key);
    (void)pthread_mutex_unlock(&d.lock);
    if (!task) {
      gpuir__eventcount_wait(&d.eventcount, &seen, d.looks);
      continue;
    }
    gpuir__eventcount_leave(&d.eventcount, &seen);
    if (task != &d.tasks[key]) return argument;
    task->count++;
    if (__atomic_add_fetch(&d.taken, 1, __ATOMIC_ACQ_REL) == THREADS * TASKS)
      gpuir__eventcount_notify(&d.eventcount, THREADS);
  }
  gpuir__eventcount_leave(&d.eventcount, &seen);
  return &d;
}

/* Each task is taken once, with its key, and no thread sleeps on when one has come: or this would never end. */
static void check_eventcounts(int looks) {
  pthread_t thread[2 * THREADS];
  void *ok;
  int i;
  memset(&d, 0, sizeof d);
  d.looks = looks;
  d.inbox.slots = (gpuir__lane_item *)calloc(ROOM, sizeof *d.inbox.slots);
  d.inbox.mask = ROOM - 1;
  d.eventcount.epoch = 1;
  (void)pthread_mutex_init(&d.lock, NULL);
  (void)sem_init(&d.eventcount.semaphore, 0, 0);
  for (i = 0; i < 2 * THREADS; i++)
    assert_int_equal(pthread_create(&thread[i], NULL, i < THREADS ? take : put, (void *)(intptr_t)(i % THREADS)), 0);
  for (i = 0; i < 2 * THREADS; i++) {
    assert_int_equal(pthread_join(thread[i], &ok), 0);
    assert_true(i >= THREADS || ok == &d);
  }
  for (i = 0; i < THREADS * TASKS; i++) assert_int_equal(d.tasks[i].count, 1);
  assert_true(!d.eventcount.listeners && !d.eventcount.sleepers && !d.eventcount.spinners && !d.eventcount.called);
  (void)sem_destroy(&d.eventcount.semaphore);
  (void)pthread_mutex_destroy(&d.lock);
  free(d.inbox.slots);
}

static void test_eventcounts(void **state) {
  (void)state;
  check_eventcounts(0);
  check_eventcounts(1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_cost_high),
      cmocka_unit_test(test_raise),
      cmocka_unit_test(test_eventcounts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
