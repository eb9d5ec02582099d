/* 30_pool.c - pools: each task completes once, with the hits of gpuir_search; searches shared by several engines;
 * deadlines, cancellation, back-pressure; a device that is late, fails, stalls or is lost; policies of one's own
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

enum { QUERIES = 96, MOST = 200 };

/* An index, queries on it, and what gpuir_search says of them. */
typedef struct world {
  gpuir_index *index;
  gpuir_query *query[QUERIES];
  size_t k[QUERIES], n[QUERIES];
  gpuir_hit *hits[QUERIES];
  uint64_t matches[QUERIES];
} world;

static world large, small; /* some queries of the first take a millisecond; those of the second microseconds */
static char live_folder[4200];

static void ask(world *w, const oracle *o, uint64_t seed, unsigned words) {
  gpuir_searcher *s;
  unsigned i;
  rng r;
  r.s = seed;
  assert_int_equal(gpuir_searcher_create(w->index, NULL, &s, NULL), GPUIR_OK);
  for (i = 0; i < QUERIES; i++) {
    static const size_t ks[] = {1, 10, 10, 100, MOST};
    static char text[8192];
    gpuir_query_desc qd;
    oracle_query oq;
    memset(&qd, 0, sizeof qd);
    qd.mode = (int)(i % 3);
    corpus_query(o, &r, 1 + rng_below(&r, words), 1, &oq);
    assert_int_equal(gpuir_query_parse(w->index, &qd, text, corpus_text(o, &oq, text, sizeof text), &w->query[i], NULL),
        GPUIR_OK);
    w->k[i] = ks[rng_below(&r, 5)];
    w->hits[i] = (gpuir_hit *)oracle_grow(NULL, MOST, sizeof(gpuir_hit));
    assert_int_equal(gpuir_search(s, w->query[i], w->hits[i], w->k[i], &w->n[i]), GPUIR_OK);
    assert_int_equal(gpuir_count(s, w->query[i], &w->matches[i]), GPUIR_OK);
  }
  gpuir_searcher_destroy(s);
}

static void make(world *w, uint32_t documents, uint32_t vocabulary, uint64_t seed, unsigned words) {
  static char path[4200];
  oracle o;
  gpuir_error err;
  corpus_zipf(&o, documents, vocabulary, 10, seed);
  (void)corpus_path(path, sizeof path, "pool.gpuir");
  if (corpus_write(&o, path, NULL, &err) || gpuir_open(path, NULL, &w->index, &err)) fail_msg("%s", err.msg);
  (void)unlink(path);
  ask(w, &o, seed + 1, words);
  oracle_free(&o);
}

static void forget(world *w) {
  unsigned i;
  for (i = 0; i < QUERIES; i++) {
    gpuir_query_destroy(w->query[i]);
    free(w->hits[i]);
  }
  gpuir_close(w->index);
}

static int setup_group(void **state) {
  (void)state;
  make(&large, 60000, 800, 501, 9);
  make(&small, 900, 300, 601, 4);
  return 0;
}

static int teardown_group(void **state) {
  (void)state;
  forget(&large);
  forget(&small);
  return 0;
}

static gpuir_pool *pool_on(const world *w, const char *policy, unsigned threads, size_t queue) {
  gpuir_pool_desc desc;
  gpuir_pool *p;
  gpuir_error err;
  memset(&desc, 0, sizeof desc);
  desc.policy = policy;
  desc.threads = threads;
  desc.queue = queue;
  if (gpuir_pool_create(w->index, &desc, &p, &err)) fail_msg("%s", err.msg);
  return p;
}

/* Whether a task's hits are those of query i. */
static int right(const world *w, unsigned i, const gpuir_task *t) {
  return t->count == w->n[i] && !memcmp(t->hits, w->hits[i], t->count * sizeof *t->hits);
}

/* ---- searches that several engines share ---- */

typedef struct sharing {
  gpuir_index *index;
  gpuir__share share;
  gpuir__atomic64 leave;
  int stop, joined, offered, ripened; /* the last two: of the owner alone */
} sharing;

static void count_ripe(gpuir__share *s) { ((sharing *)s->user)->ripened++; }

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
  x.share.patience = 2;
  x.share.opened = wait_for_help;
  x.share.ripened = count_ripe;
  x.share.user = &x;
  x.share.most = HELPERS;
  (void)pthread_mutex_init(&x.share.lock, NULL);
  (void)pthread_cond_init(&x.share.left, NULL);
  assert_int_equal(gpuir_searcher_create(w->index, NULL, &s, NULL), GPUIR_OK);
  for (i = 0; i < HELPERS; i++) assert_int_equal(pthread_create(&thread[i], NULL, helper, &x), 0);
  if (disturbed) assert_int_equal(pthread_create(&thread[HELPERS], NULL, disturb, &x), 0);
  for (round = 0; round < rounds; round++)
    for (i = 0; i < QUERIES; i++) {
      const int offered = x.offered, ripened = x.ripened;
      size_t n;
      x.share.ripe = 1 + round % 2 * (UINT64_MAX - 1); /* a time that has passed, or never comes */
      s->engine.rare.share = &x.share;
      assert_int_equal(gpuir_search(s, w->query[i], hits, w->k[i], &n), GPUIR_OK);
      s->engine.rare.share = NULL;
      assert_int_equal(n, w->n[i]);
      assert_memory_equal(hits, w->hits[i], n * sizeof *hits);
      assert_true(x.ripened - ripened <= (round % 2 ? 0 : x.offered - offered));
    }
  __atomic_store_n(&x.stop, 1, __ATOMIC_RELAXED);
  for (i = 0; i < HELPERS + (unsigned)disturbed; i++) {
    void *failed;
    assert_int_equal(pthread_join(thread[i], &failed), 0);
    assert_null(failed);
  }
  assert_true(x.offered > 0);
  assert_true(x.joined > 0);
  assert_true(x.ripened > 0);
  (void)s->engine.a.resize(s->engine.a.user, x.share.found.heap, x.share.found.cap * 8, 0);
  gpuir_searcher_destroy(s);
  (void)pthread_mutex_destroy(&x.share.lock);
  (void)pthread_cond_destroy(&x.share.left);
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

/* ---- many tasks ---- */

typedef struct job {
  gpuir_task task;
  const world *world;
  unsigned query;
  int cancel, completed, wrong;
  uint64_t matches;
  gpuir_error error;
  gpuir_hit hits[MOST];
} job;

static void job_done(gpuir_task *t) {
  job *j = (job *)t->user;
  int ok;
  switch (t->status) {
  case GPUIR_OK: ok = right(j->world, j->query, t) && (!t->matches || j->matches == j->world->matches[j->query]); break;
  case GPUIR_E_DEADLINE: ok = t->deadline && !t->count && j->error.code == t->status; break;
  case GPUIR_E_CANCELLED: ok = t->cancel && !t->count && j->error.code == t->status; break;
  default: ok = 0; break;
  }
  j->wrong = !ok || t->finished < t->started;
  (void)__atomic_fetch_add(&j->completed, 1, __ATOMIC_RELEASE);
}

/* Makes a task of a random query; one in eight has a deadline, one in eight is cancelled at some time. */
static void job_make(job *j, const world *w, rng *r) {
  gpuir_task *t = &j->task;
  memset(j, 0, offsetof(job, hits));
  j->world = w;
  j->query = rng_below(r, QUERIES);
  t->query = w->query[j->query];
  t->k = w->k[j->query];
  t->hits = j->hits;
  t->done = job_done;
  t->user = j;
  t->error = &j->error;
  if (rng_below(r, 4) == 0) t->matches = &j->matches;
  if (rng_below(r, 8) == 0) t->deadline = gpuir__now() + rng_below(r, 200000);
  if (rng_below(r, 8) == 0) t->cancel = &j->cancel;
}

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

/* ---- order ---- */

typedef struct noted {
  unsigned n;
  void *user[16];
} noted;

static noted notes;
static int gate; /* 0: the thread that completes the first task waits here */
static int held; /* threads that wait at the gate */

/* Holds a thread until `held` is more than 1. */
static void hold_first(gpuir_task *t) {
  (void)t;
  __atomic_store_n(&held, 1, __ATOMIC_RELEASE);
  while (__atomic_load_n(&held, __ATOMIC_ACQUIRE) < 2) (void)sched_yield();
}

static void note(gpuir_task *t) {
  const unsigned before = __atomic_fetch_add(&notes.n, 1, __ATOMIC_ACQ_REL);
  if (!before) {
    while (!__atomic_load_n(&gate, __ATOMIC_ACQUIRE)) (void)sched_yield();
  } else {
    notes.user[before] = t->user;
  }
}

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

/* Lets every query seem to cost so much. */
static void seem(gpuir_pool *p, uint32_t cost) {
  gpuir__costs *c = &((gpuir__crew *)p->state)->costs;
  gpuir__cost *of = &c->of[0][0][0];
  size_t i;
  for (i = 0; i < sizeof c->of / sizeof *of; i++) {
    __atomic_store_n(&of[i].mean, cost, __ATOMIC_RELAXED);
    __atomic_store_n(&of[i].high, cost, __ATOMIC_RELAXED);
  }
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
static void test_ripe(void **state) {
  const uint64_t mean = GPUIR__SHARE_NS, heavy = GPUIR__SHARE_HEAVY * mean;
  gpuir_pool *p = pool_on(&small, "auto", 2, 0);
  gpuir__crew *c = (gpuir__crew *)p->state;
  gpuir__mate *m = &c->mates[0];
  gpuir_task t;
  uint64_t before;
  (void)state;
  memset(&t, 0, sizeof t);
  t.k = 1;
  c->mean_ns = mean;
  t.pool_cost = heavy - 1;
  c->backlog = 2 * heavy + 1; /* nobody would come, nor when it is heavy */
  assert_int_equal(gpuir__mate_wants(m, &t), 0);
  assert_int_equal(c->heavy, 0);
  c->backlog = 2 * heavy;
  before = gpuir__now();
  assert_int_equal(gpuir__mate_wants(m, &t), 1);
  assert_true(m->share.ripe >= before + GPUIR__SHARE_RIPE * mean);
  assert_true(m->share.ripe <= gpuir__now() + GPUIR__SHARE_RIPE * mean);
  assert_true(!c->heavy && !m->share.patience);
  m->share.open = 1;
  m->share.most = 1;
  assert_null(gpuir__mate_offer(&c->mates[1]));
  m->share.ripened(&m->share);
  assert_int_equal(c->heavy, 1);
  assert_int_equal(m->share.patience, 2 * heavy);
  assert_ptr_equal(gpuir__mate_offer(&c->mates[1]), &m->share);
  c->backlog = 2 * heavy + 1;
  assert_null(gpuir__mate_offer(&c->mates[1]));
  m->share.open = c->heavy = 0;
  t.pool_cost = heavy; /* from the start */
  c->backlog = 0;
  assert_int_equal(gpuir__mate_wants(m, &t), 1);
  assert_true(c->heavy == 1 && !m->share.ripe);
  assert_int_equal(m->share.patience, 2 * heavy);
  c->mean_ns = 0; /* nothing was measured */
  assert_int_equal(gpuir__mate_wants(m, &t), 1);
  assert_true(!m->share.ripe && !m->share.patience);
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

/* ---- devices ---- */

enum { FAKES = 64 };

typedef struct fake_batch {
  gpuir_batch_desc desc;
  unsigned looks; /* polls until it is ready */
  int used;
} fake_batch;

/* A device that answers by a searcher of its own when it is asked to finish. */
typedef struct fake {
  gpuir_searcher *cpu;
  unsigned delay; /* polls until a batch is ready */
  unsigned fail_begin; /* every so many calls of begin fail; 0: none */
  unsigned fail_query; /* every so many queries fail; 0: none */
  unsigned hang_after; /* batches; later ones are never ready. 0: all are */
  int wrong; /* attach fails */
  unsigned begun, queries, closed, nhung, finished;
  fake_batch batch[2];
  gpuir_batch_desc hung[2];
  const int *hung_flags[2];
} fake;

static int fake_begin(void *context, const gpuir_batch_desc *desc, uint64_t deadline, const int *cancel, void **running,
    gpuir_error *err) {
  fake *f = (fake *)context;
  fake_batch *b = &f->batch[f->batch[0].used];
  (void)deadline;
  (void)cancel;
  (void)err;
  f->begun++;
  if (f->fail_begin && f->begun % f->fail_begin == 0) return GPUIR_E_BACKEND;
  b->desc = *desc;
  b->looks = f->hang_after && f->begun > f->hang_after ? UINT32_MAX : f->delay;
  if (b->looks == UINT32_MAX) {
    f->hung_flags[f->nhung] = desc->cancels[0];
    f->hung[f->nhung++] = *desc;
  }
  b->used = 1;
  *running = b;
  return GPUIR_OK;
}

static int fake_poll(void *context, void *running) {
  fake_batch *b = (fake_batch *)running;
  (void)context;
  if (b->looks == UINT32_MAX) return 0;
  return !b->looks || !--b->looks;
}

static int fake_finish(void *context, void *running, gpuir_error *err) {
  fake *f = (fake *)context;
  fake_batch *b = (fake_batch *)running;
  const gpuir_batch_desc *d = &b->desc;
  size_t i, n;
  int status = GPUIR_OK;
  (void)err;
  f->finished++;
  for (i = 0; i < d->nq; i++) {
    d->statuses[i] = GPUIR_E_BACKEND;
    if (d->cancels[i] && __atomic_load_n(d->cancels[i], __ATOMIC_RELAXED)) d->statuses[i] = GPUIR_E_CANCELLED;
    else if (d->deadlines[i] && gpuir__now() > d->deadlines[i]) d->statuses[i] = GPUIR_E_DEADLINE;
    else if (!f->fail_query || ++f->queries % f->fail_query)
      d->statuses[i] = gpuir_search(f->cpu, d->queries[i], d->hits + i * d->k, d->k, &n);
    else memset(d->hits + i * d->k, 0x55, d->k * sizeof *d->hits);
    d->counts[i] = d->statuses[i] ? 77 : (uint32_t)n;
    if (!status) status = d->statuses[i];
  }
  b->used = 0;
  return status;
}

static void fake_close(void *context) { ((fake *)context)->closed++; }

static int fake_attach(void *user, gpuir_searcher *s, gpuir_error *err) {
  fake *f = (fake *)user;
  gpuir_backend b;
  memset(&b, 0, sizeof b);
  if (f->wrong) return gpuir__fail(err, GPUIR_E_BACKEND, 0, "no such device");
  b.version = GPUIR_BACKEND_VERSION;
  b.name = "fake";
  b.context = f;
  b.begin = fake_begin;
  b.poll = fake_poll;
  b.finish = fake_finish;
  b.close = fake_close;
  return gpuir_searcher_set_backend(s, &b, 0);
}

/* Lets every query seem so costly that it is one for the device. */
static void seem_costly(gpuir_pool *p) { seem(p, 4000000000u); }

static void hold(gpuir_task *t) {
  job_done(t);
  (void)__atomic_fetch_add(&held, 1, __ATOMIC_RELEASE);
  while (!__atomic_load_n(&gate, __ATOMIC_ACQUIRE)) (void)sched_yield();
}

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
  for (i = 0; i < 2; i++) assert_int_equal(gpuir__load_make(p, &c->device.load[i]), GPUIR_OK);
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
  gpuir__load *l;
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
  gpuir__load_return(c, l); /* what a device failed on is the threads' for good */
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
  gpuir__load *l;
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
    assert_int_equal(gpuir__load_settle(c, l, i), 1);
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
  gpuir__load *l = NULL;
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
  gpuir__load_return(c, l);
  gpuir__device_lose(c);
  assert_true(c->lane.n == 8 && gpuir__crew_waiting(c) == 8 && !c->device.waiting);
  for (i = 0; i < 8; i++) assert_non_null(gpuir__crew_take(c, &c->lane));
  (void)pthread_mutex_unlock(&c->lock);
  gpuir_pool_destroy(p);
}

/* ---- the calling thread answers ---- */

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

/* ---- what a pool is made with ---- */

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

/* ---- a policy of one's own ---- */

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

/* ---- misuse, and memory that runs out ---- */

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
      cmocka_unit_test(test_shared),
      cmocka_unit_test(test_shared_segments),
      cmocka_unit_test(test_shared_stop),
      cmocka_unit_test(test_many),
      cmocka_unit_test(test_waiting),
      cmocka_unit_test(test_many_together),
      cmocka_unit_test(test_order),
      cmocka_unit_test(test_handful),
      cmocka_unit_test(test_crowd),
      cmocka_unit_test(test_ripe),
      cmocka_unit_test(test_handful_stop),
      cmocka_unit_test(test_destroy),
      cmocka_unit_test(test_device),
      cmocka_unit_test(test_device_fails),
      cmocka_unit_test(test_device_lost),
      cmocka_unit_test(test_device_stop),
      cmocka_unit_test(test_device_choice),
      cmocka_unit_test(test_device_moves),
      cmocka_unit_test(test_device_cancel),
      cmocka_unit_test(test_device_full),
      cmocka_unit_test(test_run),
      cmocka_unit_test(test_run_helped),
      cmocka_unit_test(test_flag),
      cmocka_unit_test(test_wanted_device),
      cmocka_unit_test(test_custom),
      cmocka_unit_test(test_misuse),
      cmocka_unit_test(test_memory),
      cmocka_unit_test(test_memory_of_tasks),
      cmocka_unit_test(test_estimate),
  };
  return cmocka_run_group_tests(tests, setup_group, teardown_group);
}
