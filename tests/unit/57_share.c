/* 57_share.c - one search that several engines evaluate: the same hits, whoever joins, leaves and stops */
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

static char live_folder[4200];

typedef struct sharing {
  gpuir_index *index;
  gpuir__share share;
  gpuir__atomic64 leave;
  int stop, joined, offered, ran_long; /* the last two: of the owner alone */
} sharing;

static void count_long(gpuir__share *s) { ((sharing *)s->user)->ran_long++; }

/* Every fourth search waits until another engine has joined it. */
static void wait_for_help(gpuir__share *s) {
  sharing *x = (sharing *)s->user;
  const int before = __atomic_load_n(&x->joined, __ATOMIC_RELAXED);
  unsigned helpers = x->offered++ % 4 != 0;
  while (!helpers && __atomic_load_n(&x->joined, __ATOMIC_RELAXED) == before) {
    (void)sched_yield();
    (void)pthread_mutex_lock(&s->lock);
    helpers = s->helpers;
    (void)pthread_mutex_unlock(&s->lock);
  }
}

static void *helper(void *argument) {
  sharing *x = (sharing *)argument;
  gpuir_searcher *s;
  if (gpuir_searcher_create(x->index, NULL, &s, NULL)) return argument;
  while (!__atomic_load_n(&x->stop, __ATOMIC_RELAXED))
    if (__atomic_load_n(&x->share.open, __ATOMIC_RELAXED) && gpuir__engine_help(&s->engine, &x->share))
      (void)__atomic_fetch_add(&x->joined, 1, __ATOMIC_RELAXED);
    else (void)sched_yield();
  gpuir_searcher_destroy(s);
  return NULL;
}

/* Turns helping on and off. */
static void *disturb(void *argument) {
  sharing *x = (sharing *)argument;
  int on = 0;
  while (!__atomic_load_n(&x->stop, __ATOMIC_RELAXED)) {
    const struct timespec moment = {0, 150000};
    on = !on;
    __atomic_store_n(&x->leave, on ? 3 : 2, __ATOMIC_RELAXED);
    (void)nanosleep(&moment, NULL);
  }
  return NULL;
}

/* Every query of a world, shared by an owner with helpers that come and go at any time. */
static void check_shared(const world *w, int disturbed, unsigned rounds) {
  enum { HELPERS = 2 };
  pthread_t thread[HELPERS + 1];
  static gpuir_hit hits[MOST];
  sharing x;
  gpuir_searcher *s;
  unsigned i, round;
  memset(&x, 0, sizeof x);
  x.index = w->index;
  x.share.backlog = &x.leave;
  x.share.backlog_limit = 2;
  x.share.opened = wait_for_help;
  x.share.ran_long = count_long;
  x.share.user = &x;
  x.share.most = HELPERS;
  (void)pthread_mutex_init(&x.share.lock, NULL);
  (void)pthread_cond_init(&x.share.no_helpers, NULL);
  assert_int_equal(gpuir_searcher_create(w->index, NULL, &s, NULL), GPUIR_OK);
  for (i = 0; i < HELPERS; i++) assert_int_equal(pthread_create(&thread[i], NULL, helper, &x), 0);
  if (disturbed) assert_int_equal(pthread_create(&thread[HELPERS], NULL, disturb, &x), 0);
  for (round = 0; round < rounds; round++)
    for (i = 0; i < QUERIES; i++) {
      const int offered = x.offered, ran_long = x.ran_long;
      size_t n;
      x.share.long_after = 1 + round % 2 * (UINT64_MAX - 1); /* a time that has passed, or never comes */
      s->engine.share = &x.share;
      assert_int_equal(gpuir_search(s, w->query[i], hits, w->k[i], &n), GPUIR_OK);
      s->engine.share = NULL;
      assert_int_equal(n, w->n[i]);
      assert_memory_equal(hits, w->hits[i], n * sizeof *hits);
      assert_true(x.ran_long - ran_long <= (round % 2 ? 0 : x.offered - offered));
    }
  __atomic_store_n(&x.stop, 1, __ATOMIC_RELAXED);
  for (i = 0; i < HELPERS + (unsigned)disturbed; i++) {
    void *failed;
    assert_int_equal(pthread_join(thread[i], &failed), 0);
    assert_null(failed);
  }
  assert_true(x.offered > 0);
  assert_true(x.joined > 0);
  assert_true(x.ran_long > 0);
  (void)s->engine.a.resize(s->engine.a.user, x.share.found.heap, x.share.found.cap * 8, 0);
  gpuir_searcher_destroy(s);
  (void)pthread_mutex_destroy(&x.share.lock);
  (void)pthread_cond_destroy(&x.share.no_helpers);
}

static void test_shared(void **state) {
  const unsigned rounds = getenv("GPUIR_LONG") ? 40 : 4;
  (void)state;
  check_shared(&large, 0, rounds);
  check_shared(&large, 1, rounds);
  check_shared(&small, 1, rounds);
}

/* The same with several segments and deleted documents. */
static void test_shared_segments(void **state) {
  gpuir_live_desc desc;
  gpuir_live *live;
  gpuir_error err;
  world w;
  oracle o;
  uint32_t d;
  size_t i;
  (void)state;
  memset(&desc, 0, sizeof desc);
  (void)corpus_path(live_folder, sizeof live_folder, "pool-live");
  desc.settings.path = live_folder;
  desc.settings.dense = 24;
  desc.create = 1;
  if (gpuir_live_open(&desc, &live, &err)) fail_msg("%s", err.msg);
  corpus_zipf(&o, 24000, 800, 10, 701);
  for (d = 0; d < o.ndocs; d++) {
    static char text[65536];
    gpuir_doc_desc doc;
    char name[16];
    size_t n = 0;
    for (i = o.doc_start[d]; i < o.doc_start[d + 1]; i++) {
      const char *word = o.name[o.post[i].term];
      uint32_t tf;
      for (tf = 0; tf < o.post[i].tf && n + 300 < sizeof text; tf++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s ", word);
    }
    memset(&doc, 0, sizeof doc);
    doc.name = name;
    doc.name_len = (size_t)snprintf(name, sizeof name, "d%u", (unsigned)d);
    if (gpuir_live_add(live, &doc, text, n, &err)) fail_msg("%s", err.msg);
    if (d % 6000 == 5999 && gpuir_live_commit(live, &err)) fail_msg("%s", err.msg);
  }
  for (d = 0; d < o.ndocs; d += 17) {
    char name[16];
    const size_t n = (size_t)snprintf(name, sizeof name, "d%u", (unsigned)d);
    if (gpuir_live_delete(live, GPUIR_BY_NAME, name, n, NULL, &err)) fail_msg("%s", err.msg);
  }
  if (gpuir_live_refresh(live, &w.index, &err)) fail_msg("%s", err.msg);
  assert_true(w.index->nleaves > 1);
  ask(&w, &o, 702, 7);
  check_shared(&w, 0, 2);
  check_shared(&w, 1, 2);
  forget(&w);
  gpuir_live_close(live);
  oracle_free(&o);
}

/* Makes a world of documents of few words, most of whose lists are dense where the builder is asked for them. */
static void make_frequent(world *w, int dense) {
  static char path[4200];
  corpus_build how;
  gpuir_error err;
  oracle o;
  memset(&how, 0, sizeof how);
  how.dense = dense;
  corpus_zipf(&o, 66000, 70, 10, 711); /* enough for dense lists */
  (void)corpus_path(path, sizeof path, "pool-dense.gpuir");
  if (corpus_write(&o, path, &how, &err) || gpuir_open(path, NULL, &w->index, &err)) fail_msg("%s", err.msg);
  (void)unlink(path);
  ask(w, &o, 712, 5);
  oracle_free(&o);
}

/* The same with dense lists: alone, when words of bits are shared, and beside others. The hits are those without. */
static void test_shared_dense(void **state) {
  world w, plain;
  size_t i;
  (void)state;
  make_frequent(&w, 24);
  make_frequent(&plain, GPUIR_DENSE_NONE);
  assert_true(w.index->leaves[0].seg->dense.n > 20 && !plain.index->leaves[0].seg->dense.n);
  for (i = 0; i < QUERIES; i++) {
    assert_true(w.n[i] == plain.n[i] && w.matches[i] == plain.matches[i]);
    assert_memory_equal(w.hits[i], plain.hits[i], w.n[i] * sizeof *w.hits[i]);
  }
  check_shared(&w, 0, 4);
  check_shared(&w, 1, 4);
  forget(&w);
  forget(&plain);
}

/* A search that is stopped while others help ends with the status that stopped it. */
static void test_shared_stop(void **state) {
  gpuir_pool *p = pool_on(&large, "auto", 3, 0);
  gpuir_hit hits[MOST];
  gpuir_task t;
  unsigned i;
  (void)state;
  for (i = 0; i < 300; i++) {
    int cancel = 0;
    memset(&t, 0, sizeof t);
    t.query = large.query[i % QUERIES];
    t.k = large.k[i % QUERIES];
    t.hits = hits;
    t.cancel = &cancel;
    if (i % 3 == 1) t.deadline = gpuir__now() + 1000 * (i % 50);
    assert_int_equal(gpuir_pool_submit(p, &t), GPUIR_OK);
    if (i % 3 == 2) __atomic_store_n(&cancel, 1, __ATOMIC_RELAXED);
    switch (gpuir_pool_wait(p, &t)) {
    case GPUIR_OK: assert_true(right(&large, i % QUERIES, &t)); break;
    case GPUIR_E_DEADLINE: assert_true(i % 3 == 1 && !t.count); break;
    case GPUIR_E_CANCELLED: assert_true(i % 3 == 2 && !t.count); break;
    default: fail_msg("status %d", t.status);
    }
  }
  gpuir_pool_destroy(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shared),
      cmocka_unit_test(test_shared_segments),
      cmocka_unit_test(test_shared_dense),
      cmocka_unit_test(test_shared_stop),
  };
  return cmocka_run_group_tests(tests, setup_group, teardown_group);
}
