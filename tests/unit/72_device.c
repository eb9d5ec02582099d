/* 72_device.c - a device that is late, fails, stalls or is lost, what it is given and what comes back */
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

/* Waits until both of a pool's threads are held, by the first two jobs, and the device is attached or was found
 * wanting. */
static void hold_threads(gpuir_pool *p, job *jobs) {
  gpuir__crew *c = (gpuir__crew *)p->state;
  int state = GPUIR__DEVICE_NONE;
  size_t i;
  held = 0;
  __atomic_store_n(&gate, 0, __ATOMIC_RELEASE);
  for (i = 0; i < 2; i++) {
    jobs[i].task.done = hold;
    assert_int_equal(gpuir_pool_submit(p, &jobs[i].task), GPUIR_OK);
  }
  while (state == GPUIR__DEVICE_NONE || __atomic_load_n(&held, __ATOMIC_ACQUIRE) < 2) {
    (void)sched_yield();
    (void)pthread_mutex_lock(&c->lock);
    state = c->device.state;
    (void)pthread_mutex_unlock(&c->lock);
  }
}

/* Waits until a device that is to be lost is, and another one has answered some batches; then the threads go on. */
static void release_threads(gpuir_pool *p, const fake *f) {
  const int lost = f->wrong || f->hang_after || f->fail_begin == 1;
  gpuir_pool_stats stats;
  do {
    (void)sched_yield();
    gpuir_pool_get_stats(p, &stats);
  } while (lost ? !stats.devices_lost : stats.batches < 6);
  __atomic_store_n(&gate, 1, __ATOMIC_RELEASE);
}

/* Submits tasks to a pool of two threads and a device, which alone works at first. All are completed, with the right
 * hits. */
static gpuir_pool_stats check_device(fake *f, size_t tasks, uint64_t limit_ns) {
  gpuir_pool_desc desc;
  gpuir_pool *p;
  gpuir_pool_stats stats;
  job *jobs = (job *)oracle_grow(NULL, tasks, sizeof *jobs);
  size_t i;
  rng r;
  r.s = 1000 + tasks;
  memset(&desc, 0, sizeof desc);
  desc.threads = 2;
  desc.queue = tasks;
  desc.batch = 32;
  desc.attach = fake_attach;
  desc.attach_user = f;
  desc.device_limit_ns = limit_ns;
  assert_int_equal(gpuir_searcher_create(small.index, NULL, &f->cpu, NULL), GPUIR_OK);
  assert_int_equal(gpuir_pool_create(small.index, &desc, &p, NULL), GPUIR_OK);
  for (i = 0; i < tasks; i++) job_make(&jobs[i], &small, &r);
  hold_threads(p, jobs);
  for (i = 2; i < tasks; i++) {
    if (i % 64 == 2) seem_costly(p);
    assert_int_equal(gpuir_pool_submit(p, &jobs[i].task), GPUIR_OK);
    if (rng_below(&r, 4) == 0) __atomic_store_n(&jobs[rng_below(&r, (uint32_t)i + 1)].cancel, 1, __ATOMIC_RELAXED);
  }
  release_threads(p, f);
  gpuir_pool_drain(p);
  for (i = 0; i < tasks; i++) assert_true(jobs[i].completed == 1 && !jobs[i].wrong);
  gpuir_pool_get_stats(p, &stats);
  assert_int_equal(stats.completed, tasks);
  gpuir_pool_destroy(p);
  gpuir_searcher_destroy(f->cpu);
  free(jobs);
  return stats;
}

static void test_device(void **state) {
  fake f;
  gpuir_pool_stats stats;
  (void)state;
  memset(&f, 0, sizeof f);
  f.delay = 2;
  stats = check_device(&f, 3000, 0);
  assert_true(stats.on_device > 0 && stats.batches > 0 && !stats.returned && !stats.devices_lost);
  assert_int_equal(f.closed, 1);
  assert_int_equal(f.finished, stats.batches);
}

static void test_device_fails(void **state) {
  fake f;
  gpuir_pool_stats stats;
  (void)state;
  memset(&f, 0, sizeof f);
  f.fail_query = 5; /* some queries of a batch */
  stats = check_device(&f, 2000, 0);
  assert_true(stats.returned > 0 && stats.on_device > 0 && !stats.devices_lost);
  assert_int_equal(stats.device_error.code, GPUIR_E_BACKEND);
  memset(&f, 0, sizeof f);
  f.fail_begin = 2; /* some batches */
  stats = check_device(&f, 2000, 0);
  assert_true(stats.returned > 0 && stats.on_device > 0 && !stats.devices_lost);
  memset(&f, 0, sizeof f);
  f.fail_begin = 1; /* all batches */
  stats = check_device(&f, 2000, 0);
  assert_true(stats.returned > 0 && !stats.on_device && stats.devices_lost == 1);
  assert_int_equal(stats.device_error.code, GPUIR_E_BACKEND);
  assert_int_equal(f.begun, 3);
  memset(&f, 0, sizeof f);
  f.wrong = 1; /* there is none */
  stats = check_device(&f, 500, 0);
  assert_true(!stats.returned && !stats.on_device && stats.devices_lost == 1);
  assert_string_equal(stats.device_error.msg, "no such device");
}

/* What a device that does not answer any more was given stays readable and writable. */
static void check_hung(const fake *f) {
  unsigned i;
  for (i = 0; i < f->nhung; i++) {
    const gpuir_batch_desc *d = &f->hung[i];
    memset(d->hits, 0x55, d->nq * d->k * sizeof *d->hits);
    memset(d->counts, 0x55, d->nq * sizeof *d->counts);
    memset(d->statuses, 0x55, d->nq * sizeof *d->statuses);
    assert_true(*f->hung_flags[i] >= 0);
    free(d->hits);
    free(d->counts); /* the others lie behind them */
  }
}

static void test_device_lost(void **state) {
  static fake f; /* what is given up stays reachable by it */
  gpuir_pool_stats stats;
  (void)state;
  memset(&f, 0, sizeof f);
  f.hang_after = 3;
  stats = check_device(&f, 2000, 30000000);
  assert_int_equal(stats.devices_lost, 1);
  assert_true(stats.returned > 0 && stats.on_device > 0 && f.nhung > 0);
  assert_int_equal(stats.device_error.code, GPUIR_E_BACKEND);
  assert_non_null(strstr(stats.device_error.msg, "unanswered for 30 ms"));
  assert_int_equal(f.closed, 0); /* nobody waits for it */
  check_hung(&f);
  memset(&f, 0, sizeof f);
  f.delay = 2000; /* late, but within the limit */
  stats = check_device(&f, 400, 0);
  assert_true(stats.on_device > 0 && !stats.devices_lost && !stats.returned);
}

/* What a device still has when the pool ends, and gives back when the threads have gone, is completed too. */
static void test_device_stop(void **state) {
  static fake f; /* what is given up stays reachable by it */
  gpuir_pool_desc desc;
  gpuir_pool *p;
  gpuir_pool_stats stats;
  gpuir_hit hits[2];
  gpuir_task t[2];
  unsigned i;
  (void)state;
  memset(&desc, 0, sizeof desc);
  memset(&f, 0, sizeof f);
  memset(t, 0, sizeof t);
  f.hang_after = 1;
  desc.threads = 2;
  desc.attach = fake_attach;
  desc.attach_user = &f;
  desc.device_limit_ns = 30000000;
  assert_int_equal(gpuir_searcher_create(small.index, NULL, &f.cpu, NULL), GPUIR_OK);
  assert_int_equal(gpuir_pool_create(small.index, &desc, &p, NULL), GPUIR_OK);
  for (i = 0; i < 2; i++) {
    t[i].query = small.query[0];
    t[i].k = 1;
    t[i].hits = &hits[i];
  }
  while (!t[0].on_device) {
    t[0].on_device = 1;
    assert_int_equal(gpuir_pool_submit(p, &t[0]), GPUIR_OK);
    assert_int_equal(gpuir_pool_wait(p, &t[0]), GPUIR_OK);
  }
  t[1].on_device = 1;
  assert_int_equal(gpuir_pool_submit(p, &t[1]), GPUIR_OK);
  do gpuir_pool_get_stats(p, &stats);
  while (stats.batches < 2);
  gpuir_pool_destroy(p);
  assert_true(t[1].finished && t[1].status == GPUIR_E_CANCELLED && !t[1].on_device);
  check_hung(&f);
  gpuir_searcher_destroy(f.cpu);
}

/* Where tasks go, by what the crew has measured: to the side that is likely to answer first. No thread runs. */
static void test_device_choice(void **state) {
  gpuir_pool_desc desc;
  gpuir_pool *p;
  gpuir__crew *c;
  gpuir_task t;
  gpuir_hit hit;
  uint64_t matches, now = 1000000000u;
  fake f;
  (void)state;
  memset(&desc, 0, sizeof desc);
  memset(&t, 0, sizeof t);
  desc.threads = 4;
  desc.batch = 100;
  desc.attach = fake_attach;
  desc.attach_user = &f;
  assert_int_equal(gpuir_pool_create(small.index, &desc, &p, NULL), GPUIR_OK);
  c = (gpuir__crew *)p->state;
  t.query = small.query[0];
  t.k = 1;
  t.hits = &hit;
  assert_false(gpuir__crew_prefers_device(c, &t, 1000000000u, now)); /* there is none */
  c->device.state = GPUIR__DEVICE_GOOD;
  c->device.batch_ns = 1000;
  assert_true(gpuir__crew_prefers_device(c, &t, 1001, now));
  assert_false(gpuir__crew_prefers_device(c, &t, 1000, now));
  c->device.waiting = 250; /* two full batches go before it */
  assert_false(gpuir__crew_prefers_device(c, &t, 3000, now));
  assert_true(gpuir__crew_prefers_device(c, &t, 3001, now));
  c->device.waiting = 0;
  c->device.free_at = now + 500;
  assert_false(gpuir__crew_prefers_device(c, &t, 1500, now));
  assert_true(gpuir__crew_prefers_device(c, &t, 1501, now));
  c->device.free_at = now - 7000; /* it is late, and will be for as long */
  assert_false(gpuir__crew_prefers_device(c, &t, 8000, now));
  assert_true(gpuir__crew_prefers_device(c, &t, 8001, now));
  c->device.free_at = 0;
  c->backlog = 4 * 400; /* for four threads */
  assert_false(gpuir__crew_prefers_device(c, &t, 600, now));
  assert_true(gpuir__crew_prefers_device(c, &t, 601, now));
  t.matches = &matches;
  assert_false(gpuir__crew_prefers_device(c, &t, 1000000000u, now)); /* it counts nothing */
  t.matches = NULL;
  t.on_device = 1;
  assert_true(gpuir__crew_prefers_device(c, &t, 0, now));
  c->backlog = 0;
  gpuir_pool_destroy(p);
}

/* A pool with a device but without threads, where `queue` tasks may wait (0: the default) and queries seem to cost a
 * thread a second; and its tasks. */
static gpuir_pool *pool_at_rest(unsigned queue, fake *f, gpuir_task t[8], gpuir_hit *hit) {
  gpuir_pool_desc desc;
  gpuir_pool *p;
  gpuir__crew *c;
  unsigned i;
  memset(&desc, 0, sizeof desc);
  desc.threads = 2;
  desc.batch = 4;
  desc.queue = queue;
  desc.attach = fake_attach;
  desc.attach_user = f;
  assert_int_equal(gpuir_pool_create(small.index, &desc, &p, NULL), GPUIR_OK);
  c = (gpuir__crew *)p->state;
  for (i = 0; i < 2; i++) assert_int_equal(gpuir__device_batch_make(p, &c->device.batches[i]), GPUIR_OK);
  __atomic_store_n(&p->running, 1, __ATOMIC_RELEASE);
  c->device.state = GPUIR__DEVICE_GOOD;
  seem(p, 1000000000);
  memset(t, 0, 8 * sizeof *t);
  for (i = 0; i < 8; i++) {
    t[i].query = small.query[0];
    t[i].k = 1;
    t[i].hits = hit;
    t[i].due = 1 + i;
  }
  return p;
}

/* What waits for the device goes to it, and to the threads when it is lost or has failed on it. */
static void test_device_moves(void **state) {
  gpuir_pool *p;
  gpuir__crew *c;
  gpuir_task t[8];
  gpuir_hit hit;
  gpuir__device_batch *l;
  gpuir_task *next[GPUIR__HANDFUL];
  unsigned i;
  fake f;
  (void)state;
  p = pool_at_rest(0, &f, t, &hit);
  c = (gpuir__crew *)p->state;
  c->device.batch_ns = 4000000000u;
  for (i = 0; i < 8; i++) assert_int_equal(gpuir_pool_submit(p, &t[i]), GPUIR_OK);
  assert_int_equal(c->device.waiting, 1); /* 7 wait for two threads: the 8th would be answered in 3.5 s + 1 s */
  assert_true(c->backlog == 7000000000u);
  (void)pthread_mutex_lock(&c->lock);
  gpuir__crew_collect(c, &c->inbox, &c->lane);
  assert_true(c->lane.n == 7 && c->device_inbox.written == 1);
  (void)pthread_mutex_unlock(&c->lock);
  l = gpuir__device_form(c);
  (void)pthread_mutex_lock(&c->lock);
  assert_int_equal(l->n, 1);
  assert_ptr_equal(l->tasks[0], &t[7]);
  assert_true(c->backlog == 7000000000u && gpuir__crew_waiting(c) == 7);
  gpuir__device_batch_return(c, l); /* what a device failed on is the threads' for good */
  assert_true(c->lane.n == 8 && !c->device_lane.n && c->backlog == 8000000000u);
  for (i = 0; i < 8; i++) (void)gpuir__crew_take(c, &c->lane);
  t[0].pool_state = GPUIR__TASK_FOR_DEVICE;
  gpuir__crew_came(c, 1, 0);
  c->device.waiting++;
  gpuir__crew_queue(c, &c->device_lane, 1, &t[0]);
  assert_int_equal(gpuir__crew_next(c, next), 0);
  c->device.state = GPUIR__DEVICE_LOST;
  assert_int_equal(gpuir__crew_next(c, next), 1);
  assert_ptr_equal(next[0], &t[0]);
  gpuir__crew_sort(c, next, 1);
  assert_true(!gpuir__crew_waiting(c) && !c->device.waiting && !c->backlog);
  (void)pthread_mutex_unlock(&c->lock);
  gpuir_pool_destroy(p);
}

/* A task that asks for a device and is called off, or refused, was not answered by one; a refused one still asks. */
static void test_device_cancel(void **state) {
  gpuir_pool *p;
  gpuir__crew *c;
  gpuir_task t[8];
  gpuir_hit hit;
  gpuir__device_batch *l;
  unsigned i;
  fake f;
  (void)state;
  p = pool_at_rest(4, &f, t, &hit);
  c = (gpuir__crew *)p->state;
  for (i = 0; i < 8; i++) t[i].on_device = 1;
  for (i = 0; i < 4; i++) assert_int_equal(gpuir_pool_submit(p, &t[i]), GPUIR_OK);
  assert_int_equal(gpuir_pool_submit(p, &t[4]), GPUIR_E_BUSY);
  assert_int_equal(t[4].on_device, 1);
  gpuir_pool_cancel(p, &t[0]);
  assert_true(t[0].status == GPUIR_E_CANCELLED && t[0].finished && !t[0].on_device);
  l = gpuir__device_form(c);
  assert_true(l && l->n == 3);
  for (i = 0; i < 3; i++) {
    static const int statuses[] = {GPUIR_OK, GPUIR_E_CANCELLED, GPUIR_E_DEADLINE};
    gpuir_task *task = l->tasks[i];
    l->statuses[i] = statuses[i];
    l->counts[i] = 0;
    assert_int_equal(gpuir__device_batch_settle(c, l, i), 1);
    assert_int_equal(task->status, statuses[i]);
    assert_int_equal(task->on_device, !statuses[i]);
  }
  gpuir__pool_end(p, 3);
  l->n = 0;
  gpuir_pool_destroy(p);
}

/* A device gives a batch back while as many tasks wait as may: there is room for both. */
static void test_device_full(void **state) {
  gpuir_pool *p;
  gpuir__crew *c;
  gpuir_task t[8];
  gpuir_hit hit;
  gpuir__device_batch *l = NULL;
  unsigned i;
  fake f;
  (void)state;
  p = pool_at_rest(4, &f, t, &hit);
  c = (gpuir__crew *)p->state;
  for (i = 0; i < 8; i++) {
    if (i == 4) {
      assert_int_equal(gpuir_pool_submit(p, &t[i]), GPUIR_E_BUSY);
      l = gpuir__device_form(c);
      assert_true(l && l->n == 4 && !gpuir__crew_waiting(c));
    }
    assert_int_equal(gpuir_pool_submit(p, &t[i]), GPUIR_OK);
  }
  assert_int_equal(gpuir_pool_submit(p, &t[0]), GPUIR_E_BUSY);
  (void)pthread_mutex_lock(&c->lock);
  gpuir__device_batch_return(c, l);
  gpuir__device_lose(c);
  assert_true(c->lane.n == 8 && gpuir__crew_waiting(c) == 8 && !c->device.waiting);
  for (i = 0; i < 8; i++) assert_non_null(gpuir__crew_take(c, &c->lane));
  (void)pthread_mutex_unlock(&c->lock);
  gpuir_pool_destroy(p);
}

/* A task that asks for a device gets it, whatever it costs, and says so; no other small one does. */
static void test_wanted_device(void **state) {
  gpuir_pool_desc desc;
  gpuir_pool *p;
  gpuir_pool_stats stats;
  gpuir_hit hits[MOST];
  gpuir_task t;
  uint64_t matches;
  fake f;
  unsigned i;
  (void)state;
  memset(&desc, 0, sizeof desc);
  memset(&f, 0, sizeof f);
  memset(&t, 0, sizeof t);
  desc.threads = 2;
  desc.attach = fake_attach;
  desc.attach_user = &f;
  assert_int_equal(gpuir_searcher_create(small.index, NULL, &f.cpu, NULL), GPUIR_OK);
  assert_int_equal(gpuir_pool_create(small.index, &desc, &p, NULL), GPUIR_OK);
  t.hits = hits;
  t.query = small.query[2];
  t.k = small.k[2];
  do {
    assert_int_equal(gpuir_pool_run(p, &t), GPUIR_OK);
    assert_int_equal(gpuir_pool_wait(p, &t), GPUIR_OK);
    gpuir_pool_get_stats(p, &stats);
  } while (!stats.devices);
  for (i = 0; i < 20; i++) {
    seem(p, 1);
    t.on_device = i % 2;
    t.matches = i % 4 == 3 ? &matches : NULL; /* a device counts nothing */
    assert_int_equal((i < 10 ? gpuir_pool_run : gpuir_pool_submit)(p, &t), GPUIR_OK);
    assert_int_equal(gpuir_pool_wait(p, &t), GPUIR_OK);
    assert_int_equal(t.on_device, i % 4 == 1);
    assert_true(right(&small, 2, &t));
    if (t.matches) assert_int_equal(matches, small.matches[2]);
  }
  gpuir_pool_destroy(p);
  gpuir_searcher_destroy(f.cpu);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_device),
      cmocka_unit_test(test_device_fails),
      cmocka_unit_test(test_device_lost),
      cmocka_unit_test(test_device_stop),
      cmocka_unit_test(test_device_choice),
      cmocka_unit_test(test_device_moves),
      cmocka_unit_test(test_device_cancel),
      cmocka_unit_test(test_device_full),
      cmocka_unit_test(test_wanted_device),
  };
  return cmocka_run_group_tests(tests, setup_group, teardown_group);
}
