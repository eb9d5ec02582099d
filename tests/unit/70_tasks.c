/* 70_tasks.c - a policy of one's own: it answers and completes tasks with the functions that the library's use */
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

/* Answers tasks in the thread that submits them; its thread only waits for the end. */
typedef struct direct {
  gpuir_pool *pool;
  gpuir_searcher *searcher;
  int stop, created, destroyed;
} direct;

static int direct_create(gpuir_pool *p, void **state, gpuir_error *err) {
  direct *d = (direct *)gpuir_pool_user(p);
  d->pool = p;
  d->created++;
  *state = d;
  return gpuir_searcher_create(gpuir_pool_index(p), NULL, &d->searcher, err);
}

static int direct_submit(void *state, gpuir_task *t) {
  direct *d = (direct *)state;
  gpuir_pool_complete(d->pool, t, gpuir_pool_answer(d->searcher, t));
  return GPUIR_OK;
}

static void direct_work(void *state, unsigned thread) {
  (void)thread;
  while (!__atomic_load_n(&((direct *)state)->stop, __ATOMIC_RELAXED)) (void)sched_yield();
}

static void direct_stop(void *state) { __atomic_store_n(&((direct *)state)->stop, 1, __ATOMIC_RELAXED); }

static void direct_destroy(void *state) {
  direct *d = (direct *)state;
  d->destroyed++;
  gpuir_searcher_destroy(d->searcher);
}

static void test_custom(void **state) {
  static const gpuir_policy policy = {"direct", direct_create, direct_submit, direct_work, direct_stop, direct_destroy};
  gpuir_policy lacking = policy;
  gpuir_hit hits[MOST];
  gpuir_pool_desc desc;
  gpuir_pool *p;
  gpuir_task t;
  direct d;
  (void)state;
  memset(&d, 0, sizeof d);
  memset(&desc, 0, sizeof desc);
  desc.threads = 2;
  desc.custom = &policy;
  desc.custom_user = &d;
  assert_int_equal(gpuir_pool_create(small.index, &desc, &p, NULL), GPUIR_OK);
  assert_int_equal(gpuir_pool_threads(p), 2);
  memset(&t, 0, sizeof t);
  t.query = small.query[7];
  t.k = small.k[7];
  t.hits = hits;
  assert_int_equal(gpuir_pool_submit(p, &t), GPUIR_OK);
  assert_int_equal(gpuir_pool_wait(p, &t), GPUIR_OK);
  assert_true(right(&small, 7, &t));
  assert_int_equal(gpuir_pool_run(p, &t), GPUIR_OK); /* the same */
  gpuir_pool_cancel(p, &t); /* nothing: it has a queue of its own */
  assert_int_equal(gpuir_pool_wait(p, &t), GPUIR_OK);
  assert_true(right(&small, 7, &t));
  assert_true(gpuir_pool_estimate(p, small.query[7]) >= 2000); /* a guess */
  gpuir_pool_destroy(p);
  assert_int_equal(d.created, 1);
  assert_int_equal(d.destroyed, 1);
  lacking.work = NULL;
  desc.custom = &lacking;
  assert_int_equal(gpuir_pool_create(small.index, &desc, &p, NULL), GPUIR_E_ARGUMENT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_custom),
  };
  return cmocka_run_group_tests(tests, setup_group, teardown_group);
}
