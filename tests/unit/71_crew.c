/* 71_crew.c - the order in which threads take tasks, several at a time, who helps with whose search, and an end in
 * between */
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

/* One thread takes tasks in the order of their keys: inter's is that of submission; of auto's the one with a deadline
 * goes first, then what came earlier. */
static void check_order(const char *policy, const unsigned order[4]) {
  gpuir_pool *p = pool_on(&small, policy, 1, 5);
  gpuir_hit hits[5][MOST];
  gpuir_task t[6];
  const uint64_t now = gpuir__now();
  unsigned i;
  memset(t, 0, sizeof t);
  memset(&notes, 0, sizeof notes);
  __atomic_store_n(&gate, 0, __ATOMIC_RELEASE);
  for (i = 0; i < 6; i++) {
    t[i].query = small.query[0];
    t[i].k = 1;
    t[i].hits = hits[i % 5];
    t[i].done = note;
    t[i].user = &t[i];
    t[i].due = now + (i == 1 ? 90000000000u : i);
  }
  t[3].deadline = now + 60000000000u;
  t[3].due = now + 80000000000u;
  assert_int_equal(gpuir_pool_submit(p, &t[0]), GPUIR_OK);
  while (!__atomic_load_n(&notes.n, __ATOMIC_ACQUIRE)) (void)sched_yield();
  for (i = 1; i < 5; i++) assert_int_equal(gpuir_pool_submit(p, &t[i]), GPUIR_OK);
  t[5].query = small.query[1];
  __atomic_store_n(&gate, 1, __ATOMIC_RELEASE);
  gpuir_pool_drain(p);
  for (i = 0; i < 4; i++) assert_ptr_equal(notes.user[1 + i], &t[order[i]]);
  gpuir_pool_destroy(p);
}

static void test_order(void **state) {
  static const unsigned submitted[] = {1, 2, 3, 4}, urgent[] = {2, 4, 3, 1};
  (void)state;
  check_order("inter", submitted);
  check_order("auto", urgent);
}

/* While many tasks wait for each thread, one takes several at a time, in the order of their keys, but the costly ones
 * last; fewer if they take long, and inter takes one. No thread runs. */
static void check_handful(const char *policy, unsigned tasks, uint64_t mean, unsigned taken) {
  gpuir_pool *p = pool_on(&small, policy, 2, 100);
  gpuir__crew *c = (gpuir__crew *)p->state;
  gpuir_task t[100], *next[GPUIR__HANDFUL];
  gpuir_hit hit;
  const int is_auto = policy[0] == 'a';
  uint64_t left = 0;
  unsigned i;
  memset(t, 0, sizeof t);
  __atomic_store_n(&p->running, 1, __ATOMIC_RELEASE);
  c->mean_ns = mean;
  for (i = 0; i < tasks; i++) {
    seem(p, i == 1 || i == 3 ? 10000 : 500);
    t[i].query = small.query[0];
    t[i].k = 1;
    t[i].hits = &hit;
    t[i].due = 1000000 + 10 * i;
    assert_int_equal(gpuir_pool_submit(p, &t[i]), GPUIR_OK);
    if (is_auto && i >= taken) left += t[i].pool_cost;
  }
  (void)pthread_mutex_lock(&c->lock);
  assert_int_equal(gpuir__crew_next(c, next), taken);
  (void)pthread_mutex_unlock(&c->lock);
  gpuir__crew_sort(c, next, taken);
  assert_int_equal(gpuir__crew_waiting(c), tasks - taken);
  if (taken > 3 && mean == 500) {
    assert_ptr_equal(next[0], &t[0]);
    assert_true(next[taken - 1]->pool_cost == 10000 && next[taken - 2]->pool_cost == 10000);
    for (i = 0; i < taken - 2; i++) assert_true(next[i]->pool_cost == 500);
    assert_true(c->backlog == left);
  }
  (void)pthread_mutex_lock(&c->lock);
  while (gpuir__crew_take(c, &c->lane)) {}
  assert_true(!gpuir__crew_waiting(c) && !c->backlog);
  (void)pthread_mutex_unlock(&c->lock);
  gpuir_pool_destroy(p);
}

static void test_handful(void **state) {
  (void)state;
  check_handful("auto", 100, 500, GPUIR__HANDFUL);
  check_handful("auto", 20, 500, 10);
  check_handful("auto", 3, 500, 1);
  check_handful("auto", 20, GPUIR__HANDFUL_NS / 5, 5);
  check_handful("auto", 20, 10 * GPUIR__HANDFUL_NS, 1);
  check_handful("auto", 20, 0, 1); /* nothing was measured */
  check_handful("inter", 100, 0, 1);
}

/* A task that costs more than the mean lets those go first that come within a mean query's time after it; but not while
 * much waits. No thread runs. */
static void test_crowd(void **state) {
  static const uint32_t costs[] = {10000, 10, 2 * 500 * GPUIR__CROWD, 10000, 10};
  static const unsigned order[] = {1, 0, 2, 3, 4};
  gpuir_pool *p = pool_on(&small, "auto", 2, 100);
  gpuir__crew *c = (gpuir__crew *)p->state;
  gpuir_task t[5];
  gpuir_hit hit;
  unsigned i;
  (void)state;
  memset(t, 0, sizeof t);
  __atomic_store_n(&p->running, 1, __ATOMIC_RELEASE);
  c->mean_ns = 500;
  for (i = 0; i < 5; i++) {
    seem(p, costs[i]);
    t[i].query = small.query[0];
    t[i].k = 1;
    t[i].hits = &hit;
    t[i].due = 1000000 + 300 * i;
    assert_int_equal(gpuir_pool_submit(p, &t[i]), GPUIR_OK);
  }
  (void)pthread_mutex_lock(&c->lock);
  gpuir__crew_collect(c, &c->inbox, &c->lane);
  for (i = 0; i < 5; i++) assert_ptr_equal(gpuir__crew_take(c, &c->lane), &t[order[i]]);
  (void)pthread_mutex_unlock(&c->lock);
  gpuir_pool_destroy(p);
}

/* A search that is not expected to be heavy is so when it has run for long: then others help though something waits. No
 * thread runs. */
static void test_long(void **state) {
  const uint64_t mean = GPUIR__SHARE_NS, heavy = GPUIR__SHARE_HEAVY * mean;
  gpuir_pool *p = pool_on(&small, "auto", 2, 0);
  gpuir__crew *c = (gpuir__crew *)p->state;
  gpuir__member *m = &c->members[0];
  gpuir_task t;
  uint64_t before;
  (void)state;
  memset(&t, 0, sizeof t);
  t.k = 1;
  c->mean_ns = mean;
  t.pool_cost = heavy - 1;
  c->backlog = 2 * heavy + 1; /* nobody would come, nor when it is heavy */
  assert_int_equal(gpuir__member_helpers(m, &t), 0);
  assert_int_equal(c->heavy, 0);
  c->backlog = 2 * heavy;
  before = gpuir__now();
  assert_int_equal(gpuir__member_helpers(m, &t), 1);
  assert_true(m->share.long_after >= before + GPUIR__SHARE_LONG * mean);
  assert_true(m->share.long_after <= gpuir__now() + GPUIR__SHARE_LONG * mean);
  assert_true(!c->heavy && !m->share.backlog_limit);
  m->share.open = 1;
  m->share.most = 1;
  assert_null(gpuir__member_joinable(&c->members[1]));
  m->share.ran_long(&m->share);
  assert_int_equal(c->heavy, 1);
  assert_int_equal(m->share.backlog_limit, 2 * heavy);
  assert_ptr_equal(gpuir__member_joinable(&c->members[1]), &m->share);
  c->backlog = 2 * heavy + 1;
  assert_null(gpuir__member_joinable(&c->members[1]));
  m->share.open = c->heavy = 0;
  t.pool_cost = heavy; /* from the start */
  c->backlog = 0;
  assert_int_equal(gpuir__member_helpers(m, &t), 1);
  assert_true(c->heavy == 1 && !m->share.long_after);
  assert_int_equal(m->share.backlog_limit, 2 * heavy);
  c->mean_ns = 0; /* nothing was measured */
  assert_int_equal(gpuir__member_helpers(m, &t), 1);
  assert_true(!m->share.long_after && !m->share.backlog_limit);
  gpuir_pool_destroy(p);
}

/* Fills in tasks for one query, and submits the first one, at which the gate then holds a pool's only thread. */
static void hold_at_first(gpuir_pool *p, gpuir_task *t, unsigned n, gpuir_hit *hits) {
  unsigned i;
  memset(t, 0, n * sizeof *t);
  memset(&notes, 0, sizeof notes);
  __atomic_store_n(&gate, 0, __ATOMIC_RELEASE);
  for (i = 0; i < n; i++) {
    t[i].query = small.query[0];
    t[i].k = 1;
    t[i].hits = hits;
    t[i].done = note;
    t[i].user = &t[i];
    t[i].due = 1 + i;
  }
  assert_int_equal(gpuir_pool_submit(p, &t[0]), GPUIR_OK);
  while (!__atomic_load_n(&notes.n, __ATOMIC_ACQUIRE)) (void)sched_yield();
}

/* Tasks that a thread has taken with one at which it is held are cancelled when the pool ends. */
static void test_handful_stop(void **state) {
  gpuir_pool *p = pool_on(&small, "auto", 1, 0);
  gpuir_hit hits[MOST];
  gpuir_task t[9];
  unsigned i;
  (void)state;
  hold_at_first(p, t, 9, hits);
  held = 0;
  seem(p, 1000);
  ((gpuir__crew *)p->state)->mean_ns = 1000;
  for (i = 1; i < 9; i++) {
    t[i].done = i == 1 ? hold_first : NULL;
    assert_int_equal(gpuir_pool_submit(p, &t[i]), GPUIR_OK);
  }
  __atomic_store_n(&gate, 1, __ATOMIC_RELEASE); /* the thread takes the others */
  while (!__atomic_load_n(&held, __ATOMIC_ACQUIRE)) (void)sched_yield();
  assert_int_equal(gpuir__crew_waiting((gpuir__crew *)p->state), 0);
  p->policy.stop(p->state);
  __atomic_store_n(&held, 2, __ATOMIC_RELEASE);
  gpuir_pool_destroy(p);
  assert_int_equal(t[1].status, GPUIR_OK);
  for (i = 2; i < 9; i++) assert_int_equal(t[i].status, GPUIR_E_CANCELLED);
}

/* A task whose thread is held is not given up by destroy; those behind it end with CANCELLED. */
static void test_destroy(void **state) {
  gpuir_pool *p = pool_on(&small, "inter", 1, 3);
  gpuir_hit hits[MOST];
  gpuir_task t[5];
  unsigned i;
  (void)state;
  hold_at_first(p, t, 5, hits);
  for (i = 1; i < 4; i++) assert_int_equal(gpuir_pool_submit(p, &t[i]), GPUIR_OK);
  assert_int_equal(gpuir_pool_submit(p, &t[4]), GPUIR_E_BUSY); /* the queue is full */
  p->policy.stop(p->state);
  __atomic_store_n(&gate, 1, __ATOMIC_RELEASE);
  gpuir_pool_destroy(p);
  assert_int_equal(notes.n, 4);
  assert_int_equal(t[0].status, GPUIR_OK);
  for (i = 1; i < 4; i++) assert_int_equal(t[i].status, GPUIR_E_CANCELLED);
}

static pthread_t completed_by;
static int completed_ok;

static void note_thread(gpuir_task *t) {
  completed_by = pthread_self();
  completed_ok = t->status;
}

/* A thread that submits to an idle pool answers its task itself, with helpers if it is long; where there is nothing to
 * work with it waits as others do, and may be called off there. */
static void test_run(void **state) {
  static const char *const policies[] = {"inter", "auto"};
  unsigned i;
  (void)state;
  for (i = 0; i < 2; i++) {
    gpuir_pool *p = pool_on(&small, policies[i], 1, 1);
    gpuir_pool_stats stats;
    gpuir_hit hits[MOST];
    job first;
    gpuir_task t;
    rng r;
    r.s = 77;
    memset(&t, 0, sizeof t);
    t.query = small.query[5];
    t.k = small.k[5];
    t.hits = hits;
    t.done = note_thread;
    assert_int_equal(gpuir_pool_run(p, &t), GPUIR_OK);
    assert_true(pthread_equal(completed_by, pthread_self()) && right(&small, 5, &t));
    job_make(&first, &small, &r);
    first.task.done = hold;
    held = 0;
    __atomic_store_n(&gate, 0, __ATOMIC_RELEASE);
    assert_int_equal(gpuir_pool_submit(p, &first.task), GPUIR_OK);
    while (!__atomic_load_n(&held, __ATOMIC_ACQUIRE)) (void)sched_yield();
    completed_ok = 1;
    assert_int_equal(gpuir_pool_run(p, &t), GPUIR_OK);
    gpuir_pool_get_stats(p, &stats);
    assert_int_equal(stats.waiting, 1);
    assert_int_equal(gpuir_pool_run(p, &first.task), GPUIR_E_BUSY);
    assert_int_equal(completed_ok, 1);
    gpuir_pool_cancel(p, &t);
    assert_int_equal(completed_ok, GPUIR_E_CANCELLED);
    gpuir_pool_cancel(p, &t); /* it is complete */
    assert_int_equal(gpuir_pool_run(p, &t), GPUIR_OK);
    __atomic_store_n(&gate, 1, __ATOMIC_RELEASE);
    gpuir_pool_drain(p);
    assert_true(!completed_ok && !pthread_equal(completed_by, pthread_self()) && right(&small, 5, &t));
    gpuir_pool_get_stats(p, &stats);
    assert_true(stats.completed == 4 && stats.cancelled == 1 && stats.refused == 1 && !stats.waiting);
    gpuir_pool_destroy(p);
  }
}

/* Long tasks that their own thread answers get helpers, also while the pool's threads come and go. */
static void test_run_helped(void **state) {
  gpuir_pool *p = pool_on(&large, "auto", 3, 0);
  gpuir_pool_stats stats;
  gpuir_hit hits[MOST];
  unsigned i = 0;
  (void)state;
  do {
    gpuir_task t;
    memset(&t, 0, sizeof t);
    t.query = large.query[i % QUERIES];
    t.k = large.k[i % QUERIES];
    t.hits = hits;
    seem_costly(p);
    assert_int_equal(gpuir_pool_run(p, &t), GPUIR_OK);
    assert_int_equal(gpuir_pool_wait(p, &t), GPUIR_OK);
    assert_true(right(&large, i % QUERIES, &t));
    gpuir_pool_get_stats(p, &stats);
  } while (++i < 3 * QUERIES || !stats.joined);
  gpuir_pool_destroy(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_order),
      cmocka_unit_test(test_handful),
      cmocka_unit_test(test_crowd),
      cmocka_unit_test(test_long),
      cmocka_unit_test(test_handful_stop),
      cmocka_unit_test(test_destroy),
      cmocka_unit_test(test_run),
      cmocka_unit_test(test_run_helped),
  };
  return cmocka_run_group_tests(tests, setup_group, teardown_group);
}
