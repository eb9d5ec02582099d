/* pool.h - for tests of pools: two indexes with queries and their answers, tasks that check themselves, a device that
 * is none */
#ifndef GPUIR_TESTS_POOL_H
#define GPUIR_TESTS_POOL_H

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

/* Draws how many of a query's positive words must match; 0: it has none. */
static inline unsigned required_of(rng *r, const oracle_query *q) {
  unsigned positive = 0;
  size_t i;
  for (i = 0; i < q->n; i++) positive += !q->word[i].negated;
  return positive ? 1 + rng_below(r, positive > 1 ? positive / 2 : 1) : 0;
}

static inline void ask(world *w, const oracle *o, uint64_t seed, unsigned words) {
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
    if (qd.mode == GPUIR_OR && i % 2) qd.required = required_of(&r, &oq);
    assert_int_equal(gpuir_query_parse(w->index, &qd, text, corpus_text(o, &oq, text, sizeof text), &w->query[i], NULL),
        GPUIR_OK);
    w->k[i] = ks[rng_below(&r, 5)];
    w->hits[i] = (gpuir_hit *)oracle_grow(NULL, MOST, sizeof(gpuir_hit));
    assert_int_equal(gpuir_search(s, w->query[i], w->hits[i], w->k[i], &w->n[i]), GPUIR_OK);
    assert_int_equal(gpuir_count(s, w->query[i], &w->matches[i]), GPUIR_OK);
  }
  gpuir_searcher_destroy(s);
}

static inline void make(world *w, uint32_t documents, uint32_t vocabulary, uint64_t seed, unsigned words) {
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

static inline void forget(world *w) {
  unsigned i;
  for (i = 0; i < QUERIES; i++) {
    gpuir_query_destroy(w->query[i]);
    free(w->hits[i]);
  }
  gpuir_close(w->index);
}

static inline int setup_group(void **state) {
  (void)state;
  make(&large, 60000, 800, 501, 9);
  make(&small, 900, 300, 601, 4);
  return 0;
}

static inline int teardown_group(void **state) {
  (void)state;
  forget(&large);
  forget(&small);
  return 0;
}

static inline gpuir_pool *pool_on(const world *w, const char *policy, unsigned threads, size_t queue) {
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
static inline int right(const world *w, unsigned i, const gpuir_task *t) {
  return t->count == w->n[i] && !memcmp(t->hits, w->hits[i], t->count * sizeof *t->hits);
}

typedef struct job {
  gpuir_task task;
  const world *world;
  unsigned query;
  int cancel, completed, wrong;
  uint64_t matches;
  gpuir_error error;
  gpuir_hit hits[MOST];
} job;

static inline void job_done(gpuir_task *t) {
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
static inline void job_make(job *j, const world *w, rng *r) {
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

typedef struct noted {
  unsigned n;
  void *user[16];
} noted;

static noted notes;
static int gate; /* 0: the thread that completes the first task waits here */
static int held; /* threads that wait at the gate */

/* Holds a thread until `held` is more than 1. */
static inline void hold_first(gpuir_task *t) {
  (void)t;
  __atomic_store_n(&held, 1, __ATOMIC_RELEASE);
  while (__atomic_load_n(&held, __ATOMIC_ACQUIRE) < 2) (void)sched_yield();
}

static inline void note(gpuir_task *t) {
  const unsigned before = __atomic_fetch_add(&notes.n, 1, __ATOMIC_ACQ_REL);
  if (!before) {
    while (!__atomic_load_n(&gate, __ATOMIC_ACQUIRE)) (void)sched_yield();
  } else {
    notes.user[before] = t->user;
  }
}

/* Lets every query seem to cost so much. */
static inline void seem(gpuir_pool *p, uint32_t cost) {
  gpuir__costs *c = &((gpuir__crew *)p->state)->costs;
  gpuir__cost *of = &c->of[0][0][0];
  size_t i;
  for (i = 0; i < sizeof c->of / sizeof *of; i++) {
    __atomic_store_n(&of[i].mean, cost, __ATOMIC_RELAXED);
    __atomic_store_n(&of[i].high, cost, __ATOMIC_RELAXED);
  }
}

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

static inline int fake_begin(void *context, const gpuir_batch_desc *desc, uint64_t deadline, const int *cancel,
    void **running, gpuir_error *err) {
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

static inline int fake_poll(void *context, void *running) {
  fake_batch *b = (fake_batch *)running;
  (void)context;
  if (b->looks == UINT32_MAX) return 0;
  return !b->looks || !--b->looks;
}

static inline int fake_finish(void *context, void *running, gpuir_error *err) {
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

static inline void fake_close(void *context) { ((fake *)context)->closed++; }

static inline int fake_attach(void *user, gpuir_searcher *s, gpuir_error *err) {
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
static inline void seem_costly(gpuir_pool *p) { seem(p, 4000000000u); }

static inline void hold(gpuir_task *t) {
  job_done(t);
  (void)__atomic_fetch_add(&held, 1, __ATOMIC_RELEASE);
  while (!__atomic_load_n(&gate, __ATOMIC_ACQUIRE)) (void)sched_yield();
}

#endif
