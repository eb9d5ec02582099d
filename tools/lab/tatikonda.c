/* tatikonda.c - how several cores share conjunctive queries (Tatikonda, Cambazoglu, Junqueira: Posting list
 * intersection on multicore architectures, SIGIR 2011, sections 3.1 and 3.2):
 *
 *     t-inter   a query is one thread's
 *     docp-ui   every query is cut into ranges of docIDs, one a thread, of one index; all threads meet after each
 *     docp-pi   the same with an index for each range
 *     fgqp      a query's tasks, each a skip block of its shortest list, wait in a pool that all threads take from
 *
 * What a thread finds of a query it ranks by itself first, without a lock, and adds it to the query's best hits when
 * it is done or has many; threads look for more to do for a while before they sleep. A query takes a millisecond: locks
 * for each of its matches, or threads that are woken for each query, cost what sharing it saves.
 *
 * All intersect with Small Adaptive. Lists are those of the index, in blocks of 128; a skip block is some of them.
 */
#include "load.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define STP_ROOM 4096u /* items of scoring that wait at most */
#define TALLY_ROOM 128u /* scored matches that a thread keeps before it shares them */
#define SPIN_NS 200000u /* threads that share queries look so long for more before they sleep */
#define SPIN_LOCK 100u /* times that a thread looks for the lock before it sleeps */

/* ---- a range of a conjunction ---------------------------------------------------------------------------- */

/* What one task does: the documents [lo, hi] of a conjunction; of list i the blocks from[i] on. */
typedef struct range {
  const lab_and *and_;
  uint32_t lo, hi;
  uint32_t base; /* of the documents of this part */
  uint32_t from[LAB_AND_TERMS];
} range;

typedef struct match {
  uint32_t doc;
  uint32_t where[LAB_AND_TERMS];
} match;

/* Where a thread stands in a list. */
typedef struct place {
  uint32_t block, n, at, number; /* number: of the list, from short to long */
  uint64_t left; /* postings that it still has at most */
  uint32_t docs[LAB_BLOCK_ROOM];
} place;

/* Decodes a block; 0 if there is none. */
static int place_load(const lab_and *a, place *p, uint32_t block) {
  if (block >= a->list[p->number].nblocks) return 0;
  p->block = block;
  p->n = lab_and_block(a, p->number, block, p->docs);
  p->at = 0;
  return 1;
}

/* Moves to the first posting from `doc` on, by doubling steps; 0 if there is none. */
static int place_seek(const lab_and *a, place *p, uint32_t doc) {
  uint32_t step = 1, lo, n;
  if (p->docs[p->n - 1] < doc && !place_load(a, p, lab_and_find_block(a, p->number, p->block + 1, doc))) return 0;
  lo = p->at;
  while (lo + step < p->n && p->docs[lo + step] < doc) {
    lo += step;
    step *= 2;
  }
  n = lo + step < p->n ? lo + step + 1 : p->n;
  while (lo < n) {
    const uint32_t mid = lo + (n - lo) / 2;
    if (p->docs[mid] < doc) lo = mid + 1;
    else n = mid;
  }
  p->at = lo;
  return lo < p->n;
}

static void place_count(const lab_and *a, place *p) {
  p->left = (uint64_t)a->list[p->number].df - (uint64_t)p->block * LAB_BLOCK - p->at;
}

/* Puts the list with the fewest postings left first. */
static void places_sort(place **p, unsigned n) {
  for (unsigned i = 1; i < n; i++)
    for (unsigned j = i; j && p[j]->left < p[j - 1]->left; j--) {
      place *other = p[j];
      p[j] = p[j - 1];
      p[j - 1] = other;
    }
}

/* Small Adaptive (Demaine, Lopez-Ortiz, Munro): the next document of the list with the fewest postings left is looked
 * up in the others, from those with few to those with many, until one lacks it. Calls take for each match. */
static void small_adaptive(const range *r, void (*take)(void *to, const range *r, const match *m), void *to) {
  const lab_and *a = r->and_;
  place places[LAB_AND_TERMS], *p[LAB_AND_TERMS];
  int more = !a->empty && a->n > 0;
  for (unsigned i = 0; i < a->n && more; i++) {
    p[i] = &places[i];
    p[i]->number = i;
    more = place_load(a, p[i], r->from[i]) && place_seek(a, p[i], r->lo);
    if (more) place_count(a, p[i]);
  }
  while (more) {
    unsigned i = 1;
    places_sort(p, a->n);
    uint32_t doc = p[0]->docs[p[0]->at];
    if (doc > r->hi) break;
    while (i < a->n && more && p[i - 1]->docs[p[i - 1]->at] == doc) {
      more = place_seek(a, p[i], doc);
      if (more) place_count(a, p[i++]);
    }
    if (!more) break;
    const uint32_t found = p[i - 1]->docs[p[i - 1]->at];
    if (found == doc) {
      match m;
      m.doc = doc;
      for (unsigned j = 0; j < a->n; j++) m.where[p[j]->number] = p[j]->block * LAB_BLOCK + p[j]->at;
      take(to, r, &m);
      if (doc == UINT32_MAX - 1) break;
    }
    more = place_seek(a, p[0], found == doc ? doc + 1 : found);
    if (more) place_count(a, p[0]);
  }
}

/* ---- a query ------------------------------------------------------------------------------------------------ */

/* A query in flight: what was found of it, and of FGQP its tasks. */
typedef struct asked {
  gpuir_task *task;
  const lab_and *const *ands; /* [part] */
  pthread_mutex_t lock; /* of top */
  lab_top *top; /* the result aggregator; NULL: no memory */
  uint64_t passing; /* matches with keys up to this cannot be among the best: atomic */
  range *tasks; /* [taken..ntasks) wait in the pool ITP */
  size_t ntasks, taken;
  struct asked *next; /* in the pool ITP */
  size_t open; /* tasks, items of scoring, and its creator: atomic */
} asked;

static asked *asked_make(gpuir_task *task, const lab_and *const *ands) {
  asked *q = (asked *)cli_resize(NULL, 1, sizeof *q);
  memset(q, 0, sizeof *q);
  q->task = task;
  q->ands = ands;
  q->open = 1;
  q->top = lab_top_open(task->k);
  pthread_mutex_init(&q->lock, NULL);
  return q;
}

/* Writes the hits, and completes the task. */
static void asked_complete(gpuir_pool *pool, asked *q) {
  gpuir_task *task = q->task;
  const int status = q->top ? GPUIR_OK : GPUIR_E_NOMEM;
  if (q->top) task->count = lab_top_close(q->top, task->hits);
  pthread_mutex_destroy(&q->lock);
  free(q->tasks);
  free(q);
  gpuir_pool_complete(pool, task, status);
}

/* A thread's partial result of a query. */
typedef struct tally {
  asked *query;
  size_t n;
  uint64_t keys[TALLY_ROOM];
} tally;

/* Adds the partial result to the query's. */
static void tally_share(tally *t) {
  asked *q = t->query;
  if (t->n && q->top) {
    pthread_mutex_lock(&q->lock);
    __atomic_store_n(&q->passing, lab_top_offer(q->top, t->keys, t->n), __ATOMIC_RELAXED);
    pthread_mutex_unlock(&q->lock);
  }
  t->n = 0;
}

/* Takes a scored match, unless those that are known are better. */
static void tally_add(tally *t, uint32_t doc, uint32_t score) {
  const uint64_t key = lab_key(score, doc);
  if (key <= __atomic_load_n(&t->query->passing, __ATOMIC_RELAXED)) return;
  if (t->n == TALLY_ROOM) tally_share(t);
  t->keys[t->n++] = key;
}

static void score_at_once(void *to, const range *r, const match *m) {
  tally_add((tally *)to, m->doc + r->base, lab_and_score(r->and_, m->doc, m->where));
}

/* Evaluates a range of a query, with its scores. */
static void asked_range(asked *q, const range *r) {
  tally t;
  t.query = q;
  t.n = 0;
  small_adaptive(r, score_at_once, &t);
  tally_share(&t);
}

/* Why a task need not be begun: its deadline, or its flag. */
static int over(const gpuir_task *t) {
  if (t->cancel && __atomic_load_n(t->cancel, __ATOMIC_RELAXED)) return GPUIR_E_CANCELLED;
  return t->deadline && cli_nanoseconds() > t->deadline ? GPUIR_E_DEADLINE : GPUIR_OK;
}

/* ---- what the policies share --------------------------------------------------------------------------------- */

enum { T_INTER, DOCP_UI, DOCP_PI, FGQP };

/* An item of the pool STP: the matches of a task, or one of them; then, of no query, an item to be used again. */
typedef struct scoring {
  asked *query;
  uint32_t *matches; /* each a document and where it stands in each list */
  size_t n, cap; /* matches, numbers that there is room for */
  struct scoring *next;
} scoring;

/* DOCP: where all threads meet. */
typedef struct meetings {
  asked *current; /* the query that all work on */
  size_t turn, ended, busy; /* queries begun and ended, threads that still work: atomic */
} meetings;

/* FGQP: tasks of intersection and items of scoring that wait, both from old to new. */
typedef struct task_pools {
  asked *itp, *itp_last; /* the queries that have such tasks */
  size_t waiting; /* these tasks */
  scoring *stp, *stp_last, *spare; /* spare: items to be used again */
  size_t nstp;
  int producing; /* thread 0 makes tasks of a query */
} task_pools;

typedef struct shares {
  gpuir_pool *pool;
  const load_setup *setup;
  int kind, stopping;
  unsigned threads, parts;
  uint64_t documents;
  lab_shelf **part; /* [parts] */
  gpuir_index **part_index; /* [parts] those of docp-pi; otherwise NULL */
  const lab_and **ands; /* [query * parts + part] */
  gpuir_task **ring; /* submitted, in order: [read..submitted) wait */
  size_t cap, submitted, read;
  uint64_t spin_ns;
  pthread_mutex_t lock;
  pthread_cond_t arrived, work; /* whoever takes queries waits for one, the others for work */
  size_t news; /* changes when there may be something to do: atomic */
  meetings docp;
  task_pools fgqp;
} shares;

static void pause_a_moment(void) {
#if defined __x86_64__
  __builtin_ia32_pause();
#endif
}

/* Takes the lock of the pool, which nobody holds for long: sleeping and being woken takes longer. */
static void shares_lock(shares *s) {
  for (unsigned i = 0; i < SPIN_LOCK; i++) {
    if (!pthread_mutex_trylock(&s->lock)) return;
    pause_a_moment();
  }
  pthread_mutex_lock(&s->lock);
}

static void shares_unlock(shares *s) { pthread_mutex_unlock(&s->lock); }

/* Waits until *value is not `old`: it looks for a while, if the thread has a processor of its own, and then sleeps.
 * Whoever changes *value then wakes those that wait for `changed`. */
static void shares_await(shares *s, const size_t *value, size_t old, pthread_cond_t *changed) {
  if (s->spin_ns) {
    const uint64_t until = cli_nanoseconds() + s->spin_ns;
    do {
      for (unsigned i = 0; i < 16; i++) {
        if (__atomic_load_n(value, __ATOMIC_ACQUIRE) != old) return;
        pause_a_moment();
      }
      (void)sched_yield(); /* to a program that wants this processor */
    } while (cli_nanoseconds() < until);
  }
  shares_lock(s);
  while (__atomic_load_n(value, __ATOMIC_ACQUIRE) == old) pthread_cond_wait(changed, &s->lock);
  shares_unlock(s);
}

/* Says that there is something new to do. The lock is held. */
static void shares_tell(shares *s) { __atomic_add_fetch(&s->news, 1, __ATOMIC_RELEASE); }

static int shares_submit(void *state, gpuir_task *task) {
  shares *s = (shares *)state;
  shares_lock(s);
  if (s->submitted == s->cap) {
    s->cap = s->cap ? s->cap * 2 : 1024;
    s->ring = (gpuir_task **)cli_resize(s->ring, s->cap, sizeof *s->ring);
  }
  s->ring[s->submitted++] = task;
  shares_tell(s);
  shares_unlock(s);
  pthread_cond_signal(&s->arrived);
  return GPUIR_OK;
}

static void shares_stop(void *state) {
  shares *s = (shares *)state;
  shares_lock(s);
  s->stopping = 1;
  shares_tell(s);
  pthread_cond_broadcast(&s->arrived);
  pthread_cond_broadcast(&s->work);
  shares_unlock(s);
}

/* Takes the next query, waiting for it if `patient`; NULL: there is none, or with `patient`: the pool stops. The lock
 * is held. Queries that are over are completed here. */
static asked *shares_next(shares *s, int patient) {
  for (;;) {
    while (patient && s->read == s->submitted && !s->stopping) pthread_cond_wait(&s->arrived, &s->lock);
    if (s->read == s->submitted) return NULL;
    gpuir_task *task = s->ring[s->read++];
    const int status = s->stopping ? GPUIR_E_CANCELLED : over(task);
    task->started = cli_nanoseconds();
    if (!status) {
      const load_job *j = (const load_job *)task->user;
      return asked_make(task, s->ands + j->query * s->parts);
    }
    shares_unlock(s);
    gpuir_pool_complete(s->pool, task, status);
    shares_lock(s);
  }
}

/* The range of all documents of a part. */
static range whole_range(const lab_and *a) {
  range r;
  memset(&r, 0, sizeof r);
  r.and_ = a;
  r.hi = UINT32_MAX;
  return r;
}

/* ---- INTER and DOCP --------------------------------------------------------------------------------------------- */

static void inter_work(shares *s) {
  asked *q;
  shares_lock(s);
  while ((q = shares_next(s, 1)) != NULL) {
    shares_unlock(s);
    const range r = whole_range(q->ands[0]);
    asked_range(q, &r);
    asked_complete(s->pool, q);
    shares_lock(s);
  }
  shares_unlock(s);
}

/* The first document of a thread's range. */
static uint32_t bound_of(const shares *s, unsigned thread) { return (uint32_t)(s->documents * thread / s->threads); }

/* Puts a thread's range of a query into *r; 0: it has no documents. */
static int docp_range(const shares *s, const asked *q, unsigned thread, range *r) {
  const uint32_t lo = bound_of(s, thread), hi = bound_of(s, thread + 1);
  *r = whole_range(q->ands[s->kind == DOCP_PI ? thread : 0]);
  if (lo == hi) return 0;
  if (s->kind == DOCP_PI) {
    r->base = lo;
  } else {
    r->lo = lo;
    r->hi = hi - 1;
    for (unsigned i = 0; i < r->and_->n; i++) r->from[i] = lab_and_find_block(r->and_, i, 0, lo);
  }
  return 1;
}

/* Evaluates a thread's range of the query that all work on. */
static void docp_evaluate(shares *s, unsigned thread) {
  range r;
  if (docp_range(s, s->docp.current, thread, &r)) asked_range(s->docp.current, &r);
}

/* The master takes a query and gives it to all; NULL: the pool stops. */
static asked *docp_begin(shares *s) {
  shares_lock(s);
  s->docp.current = shares_next(s, 1);
  __atomic_store_n(&s->docp.busy, s->threads - 1, __ATOMIC_RELAXED);
  __atomic_add_fetch(&s->docp.turn, 1, __ATOMIC_RELEASE);
  shares_unlock(s);
  pthread_cond_broadcast(&s->work);
  return s->docp.current;
}

/* One of the others is done with the query; the last one tells the master. */
static void docp_end(shares *s) {
  if (__atomic_sub_fetch(&s->docp.busy, 1, __ATOMIC_ACQ_REL)) return;
  shares_lock(s);
  __atomic_add_fetch(&s->docp.ended, 1, __ATOMIC_RELEASE);
  pthread_cond_broadcast(&s->arrived); /* the master waits for it, and for nothing else meanwhile */
  shares_unlock(s);
}

/* Thread 0 is the master: it takes a query, and all meet when it is answered, before the next. */
static void docp_work(shares *s, unsigned thread) {
  for (size_t turn = 0;; turn++) {
    if (!thread) (void)docp_begin(s);
    else shares_await(s, &s->docp.turn, turn, &s->work);
    if (!s->docp.current) return;
    docp_evaluate(s, thread);
    if (thread) {
      docp_end(s);
      continue;
    }
    if (s->threads > 1) shares_await(s, &s->docp.ended, turn, &s->arrived);
    asked_complete(s->pool, s->docp.current);
  }
}

/* ---- FGQP -------------------------------------------------------------------------------- */

/* Takes `n` off what a query waits for; the last one completes it. */
static void fgqp_release(shares *s, asked *q, size_t n) {
  if (!__atomic_sub_fetch(&q->open, n, __ATOMIC_ACQ_REL)) asked_complete(s->pool, q);
}

/* An item without matches: one that was used, or a new one. The lock is held. */
static scoring *fgqp_spare(shares *s, asked *q) {
  scoring *item = s->fgqp.spare;
  if (item) {
    s->fgqp.spare = item->next;
  } else {
    item = (scoring *)cli_resize(NULL, 1, sizeof *item);
    memset(item, 0, sizeof *item);
  }
  item->query = q;
  item->n = 0;
  return item;
}

/* Keeps an item, to be used again. The lock is held. */
static void fgqp_keep(shares *s, scoring *item) {
  item->next = s->fgqp.spare;
  s->fgqp.spare = item;
}

/* Adds the n matches at `matches`, of lists so many that each takes `each` numbers. */
static void fgqp_gather(scoring *item, const uint32_t *matches, size_t n, size_t each) {
  const size_t want = (item->n + n) * each;
  if (want > item->cap) {
    item->cap = want < 1024 ? 1024 : want * 2;
    item->matches = (uint32_t *)cli_resize(item->matches, item->cap, sizeof *item->matches);
  }
  memcpy(item->matches + item->n * each, matches, n * each * sizeof *matches);
  item->n += n;
}

static void gather(void *to, const range *r, const match *m) { fgqp_gather((scoring *)to, &m->doc, 1, r->and_->n + 1); }

/* Scores the matches of an item, and keeps it. The lock is held, but for that. */
static void fgqp_score(shares *s, scoring *item) {
  const lab_and *a = item->query->ands[0];
  const uint32_t *m = item->matches;
  tally t;
  shares_unlock(s);
  t.query = item->query;
  t.n = 0;
  for (size_t i = 0; i < item->n; i++, m += a->n + 1) tally_add(&t, *m, lab_and_score(a, *m, m + 1));
  tally_share(&t);
  fgqp_release(s, item->query, 1);
  shares_lock(s);
  fgqp_keep(s, item);
}

/* Hands an item to the pool STP or, if it is full, scores it here. The lock is held. */
static void fgqp_push(shares *s, scoring *item) {
  if (s->fgqp.nstp == STP_ROOM) {
    fgqp_score(s, item);
    return;
  }
  item->next = NULL;
  *(s->fgqp.nstp++ ? &s->fgqp.stp_last->next : &s->fgqp.stp) = item;
  s->fgqp.stp_last = item;
  shares_tell(s); /* this thread scores it next, unless another one that is awake comes first */
}

/* Hands on the matches of a task, which takes the task off what the query waits for. The lock is held. */
static void fgqp_hand_on(shares *s, scoring *item) {
  asked *q = item->query;
  const size_t each = q->ands[0]->n + 1, n = item->n;
  if (n && s->setup->per_task) {
    fgqp_push(s, item); /* the item is open instead of the task */
    return;
  }
  __atomic_add_fetch(&q->open, n, __ATOMIC_ACQ_REL);
  for (size_t i = 0; i < n; i++) {
    scoring *one = fgqp_spare(s, q);
    fgqp_gather(one, item->matches + i * each, 1, each);
    fgqp_push(s, one);
  }
  fgqp_keep(s, item);
  shares_unlock(s);
  fgqp_release(s, q, 1);
  shares_lock(s);
}

/* Takes the oldest task of the pool ITP, and its query. The lock is held, and there is one. */
static const range *fgqp_take(shares *s, asked **query) {
  asked *q = *query = s->fgqp.itp;
  const range *r = &q->tasks[q->taken++];
  if (q->taken == q->ntasks) s->fgqp.itp = q->next;
  s->fgqp.waiting--;
  return r;
}

/* Consumes one item (Algorithm 3): one of scoring, so that queries that were begun end, or a task of intersection. The
 * lock is held. 0: there is none. */
static int fgqp_consume(shares *s) {
  asked *q;
  if (s->fgqp.nstp) {
    scoring *item = s->fgqp.stp;
    s->fgqp.stp = item->next;
    s->fgqp.nstp--;
    fgqp_score(s, item);
    return 1;
  }
  if (!s->fgqp.waiting) return 0;
  const range *r = fgqp_take(s, &q);
  scoring *found = fgqp_spare(s, q);
  shares_unlock(s);
  small_adaptive(r, gather, found);
  shares_lock(s);
  fgqp_hand_on(s, found);
  return 1;
}

/* Makes the tasks of a query (Algorithm 4): each has a skip block of the shortest list, and the blocks of the others
 * that may hold the same documents, which are searched from those of the task before on. Returns their number. */
static size_t fgqp_tasks(const shares *s, const lab_and *a, range **tasks) {
  const uint32_t group = (uint32_t)(s->setup->skip / LAB_BLOCK), blocks = a->empty ? 0 : a->list[0].nblocks;
  const size_t most = (blocks + group - 1) / group;
  range r = whole_range(a);
  size_t n = 0;
  *tasks = NULL;
  if (!blocks) return 0;
  *tasks = (range *)cli_resize(NULL, most, sizeof **tasks);
  for (uint32_t block = 0; block < blocks; block += group) {
    const uint32_t *last = a->list[0].last;
    int within = 1;
    r.lo = last && block ? last[block - 1] + 1 : 0;
    r.hi = last && block + group < blocks ? last[block + group - 1] : UINT32_MAX;
    r.from[0] = block;
    for (unsigned i = 1; i < a->n; i++) {
      r.from[i] = lab_and_find_block(a, i, r.from[i], r.lo);
      within = within && r.from[i] < a->list[i].nblocks;
    }
    if (!within) break;
    (*tasks)[n++] = r;
  }
  return n;
}

/* Adds up what a query's tasks are like: of each list but the shortest, which skip blocks a task may touch, and which
 * of these the task before may touch too. */
static void fgqp_survey_query(const load_setup *setup, const range *tasks, size_t n, load_tasks *sum) {
  const uint32_t group = (uint32_t)(setup->skip / LAB_BLOCK);
  for (size_t t = 0; t < n; t++) {
    const range *r = &tasks[t];
    for (unsigned i = 1; i < r->and_->n; i++) {
      const uint32_t blocks = r->and_->list[i].nblocks, first = r->from[i] / group;
      const uint32_t end = lab_and_find_block(r->and_, i, r->from[i], r->hi);
      const uint32_t last = (end < blocks ? end : blocks - 1) / group;
      sum->lists++;
      sum->skips += last - first + 1;
      if (t + 1 < n) sum->shared += tasks[t + 1].from[i] / group <= last;
    }
  }
}

/* Makes the tasks of each query once, and adds up what they are like. */
static void fgqp_survey(shares *s) {
  load_tasks *sum = s->setup->tasks;
  uint64_t skips = 0, lists = 0;
  memset(sum, 0, sizeof *sum);
  for (size_t i = 0; i < s->setup->nqueries; i++) {
    const lab_and *a = s->ands[i];
    range *tasks;
    const size_t n = fgqp_tasks(s, a, &tasks);
    fgqp_survey_query(s->setup, tasks, n, sum);
    for (unsigned j = 0; j < a->n && !a->empty; j++, lists++)
      skips += (a->list[j].df + s->setup->skip - 1) / s->setup->skip;
    sum->queries++;
    sum->tasks += n;
    free(tasks);
  }
  sum->list_skips = lists ? (double)skips / (double)lists : 0;
}

/* Makes the tasks of one query, and puts them all into the pool ITP. The lock is held. */
static void fgqp_produce(shares *s, asked *q) {
  shares_unlock(s);
  const uint64_t since = cli_nanoseconds();
  const size_t n = q->ntasks = fgqp_tasks(s, q->ands[0], &q->tasks);
  s->setup->tasks->creation_ns += cli_nanoseconds() - since; /* by thread 0 alone */
  __atomic_add_fetch(&q->open, n, __ATOMIC_ACQ_REL);
  shares_lock(s);
  if (n) {
    *(s->fgqp.itp ? &s->fgqp.itp_last->next : &s->fgqp.itp) = q;
    s->fgqp.itp_last = q;
    s->fgqp.waiting += n;
    shares_tell(s);
  }
  s->fgqp.producing = 0;
  shares_unlock(s);
  if (n) pthread_cond_broadcast(&s->work);
  fgqp_release(s, q, 1); /* a query without tasks is complete here */
  shares_lock(s);
}

/* Thread 0 makes tasks while at most beta wait, and consumes while more do (Algorithm 2); the others consume. */
static void fgqp_work(shares *s, unsigned thread) {
  asked *q;
  shares_lock(s);
  for (;;) {
    if (!thread && s->fgqp.waiting <= s->setup->beta) {
      s->fgqp.producing = 1;
      q = shares_next(s, 0);
      if (q) fgqp_produce(s, q);
      s->fgqp.producing = 0;
      if (q) continue;
    }
    if (fgqp_consume(s)) continue;
    if (s->stopping && s->read == s->submitted && !s->fgqp.producing) break;
    const size_t seen = __atomic_load_n(&s->news, __ATOMIC_RELAXED);
    shares_unlock(s);
    shares_await(s, &s->news, seen, thread ? &s->work : &s->arrived);
    shares_lock(s);
  }
  shares_tell(s); /* the others look again, and end too */
  pthread_cond_broadcast(&s->work);
  pthread_cond_broadcast(&s->arrived);
  shares_unlock(s);
}

/* ---- what a division permits --------------------------------------------------------------------------------- */

/* Time of this thread's processor. */
static double thread_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* What looking at that clock takes by itself. */
static double clock_seconds(void) {
  double least = 1;
  for (int i = 0; i < 1000; i++) {
    const double start = thread_seconds(), took = thread_seconds() - start;
    if (took < least) least = took;
  }
  return least;
}

/* The time of a range, evaluated by this thread; `clock` is what looking at the clock takes. */
static double range_seconds(asked *q, const range *r, double clock) {
  const double start = thread_seconds();
  asked_range(q, r);
  const double took = thread_seconds() - start - clock;
  return took > 0 ? took : 0;
}

/* Times r[0..n) of a query as often as the survey asks, one after the other each time, so that none is in a cache
 * because it came just before. Puts the median of each into took[0..n). */
static void ranges_seconds(const shares *s, asked *q, const range *r, size_t n, double clock, double *took) {
  const size_t times = (size_t)s->setup->survey;
  double *all = (double *)cli_resize(NULL, n * times + 1, sizeof *all);
  for (size_t i = 0; i < n; i++) (void)range_seconds(q, &r[i], clock);
  for (size_t t = 0; t < times; t++)
    for (size_t i = 0; i < n; i++) all[i * times + t] = range_seconds(q, &r[i], clock);
  for (size_t i = 0; i < n; i++) took[i] = lab_spread_of(all + i * times, times).median;
  free(all);
}

/* A query by DOCP takes until its longest range is evaluated, and the threads are not free for another one before. */
static void survey_docp(const shares *s, asked *q, double clock, load_divided *d) {
  range *r = (range *)cli_resize(NULL, s->threads, sizeof *r);
  double *took = (double *)cli_resize(NULL, s->threads, sizeof *took);
  size_t n = 0;
  for (unsigned t = 0; t < s->threads; t++) n += docp_range(s, q, t, &r[n]) != 0;
  ranges_seconds(s, q, r, n, clock, took);
  for (size_t i = 0; i < n; i++)
    if (took[i] > d->latency) d->latency = took[i];
  d->busy = d->latency;
  free(r);
  free(took);
}

/* Gives a task to the thread that is free first. */
static void give_out(double *free_at, unsigned threads, double took, double *last) {
  unsigned first = 0;
  for (unsigned t = 1; t < threads; t++)
    if (free_at[t] < free_at[first]) first = t;
  free_at[first] += took;
  if (free_at[first] > *last) *last = free_at[first];
}

/* A query by FGQP takes, if it has the threads to itself, until its last task ends, each taken by the thread that is
 * free first. Threads that are free before that do tasks of other queries: it keeps them busy for its work alone. */
static void survey_fgqp(const shares *s, asked *q, double clock, load_divided *d) {
  double *free_at = (double *)cli_resize(NULL, s->threads, sizeof *free_at);
  range *tasks;
  const double start = thread_seconds();
  const size_t n = fgqp_tasks(s, q->ands[0], &tasks);
  const double made = thread_seconds() - start - clock;
  double *took = (double *)cli_resize(NULL, n + 1, sizeof *took);
  for (unsigned t = 0; t < s->threads; t++) free_at[t] = made > 0 ? made : 0; /* no task is taken before */
  d->busy = d->latency = free_at[0];
  ranges_seconds(s, q, tasks, n, clock, took);
  for (size_t i = 0; i < n; i++) {
    d->busy += took[i];
    give_out(free_at, s->threads, took[i], &d->latency);
  }
  d->busy /= s->threads;
  free(took);
  free(tasks);
  free(free_at);
}

/* Times each query by one thread, whole and in its ranges or tasks. What threads wait for locks, memory and one another
 * is not in it: it is what the division permits at most. */
static void survey(shares *s) {
  const load_setup *setup = s->setup;
  gpuir_hit *hits = (gpuir_hit *)cli_resize(NULL, setup->k, sizeof *hits);
  const double clock = clock_seconds();
  for (size_t i = 0; i < setup->nqueries; i++) {
    gpuir_task task;
    load_divided *d = &setup->divided[i];
    memset(&task, 0, sizeof task);
    memset(d, 0, sizeof *d);
    task.k = (uint32_t)setup->k;
    asked *q = asked_make(&task, s->ands + i);
    const range all = whole_range(q->ands[0]);
    if (q->top) {
      ranges_seconds(s, q, &all, 1, clock, &d->whole);
      if (s->kind == FGQP) survey_fgqp(s, q, clock, d);
      else survey_docp(s, q, clock, d);
      (void)lab_top_close(q->top, hits);
    }
    pthread_mutex_destroy(&q->lock);
    free(q);
  }
  free(hits);
}

/* ---- making and unmaking -------------------------------------------------------------------------------- */

static void shares_work(void *state, unsigned thread) {
  shares *s = (shares *)state;
  if (s->kind == T_INTER) inter_work(s);
  else if (s->kind == FGQP) fgqp_work(s, thread);
  else docp_work(s, thread);
}

static void shares_destroy(void *state) {
  shares *s = (shares *)state;
  for (size_t i = 0; s->ands && i < s->setup->nqueries * s->parts; i++) lab_and_close((lab_and *)(uintptr_t)s->ands[i]);
  for (unsigned i = 0; i < s->parts; i++) {
    lab_shelf_close(s->part[i]);
    gpuir_close(s->part_index[i]);
  }
  free(s->part_index);
  free(s->ands);
  free(s->part);
  free(s->ring);
  for (scoring *item = s->fgqp.spare, *next; item; item = next) {
    next = item->next;
    free(item->matches);
    free(item);
  }
  pthread_mutex_destroy(&s->lock);
  pthread_cond_destroy(&s->arrived);
  pthread_cond_destroy(&s->work);
  free(s);
}

/* What the terms of the queries are marked in. */
typedef struct marks {
  const gpuir_index *index;
  uint8_t *wanted; /* [term id] */
} marks;

static int mark_term(void *sink, const char *token, size_t len) {
  const marks *m = (const marks *)sink;
  uint64_t id;
  if (!gpuir_term_find(m->index, token, len, &id)) m->wanted[id] = 1;
  return 0;
}

/* Adds one list of the documents [lo, hi). */
static int part_list(gpuir_builder *b, const gpuir_index *from, uint64_t id, uint32_t lo, uint32_t hi,
    gpuir_error *err) {
  gpuir_term_info info;
  uint32_t n = 0;
  int status = gpuir_term_get_info(from, id, &info);
  if (status) return status;
  uint32_t *docs = (uint32_t *)cli_resize(NULL, info.df, sizeof *docs);
  uint32_t *tfs = (uint32_t *)cli_resize(NULL, info.df, sizeof *tfs);
  status = gpuir_term_postings(from, id, docs, tfs);
  for (uint32_t i = 0; !status && i < info.df; i++)
    if (docs[i] >= lo && docs[i] < hi) {
      docs[n] = docs[i] - lo;
      tfs[n++] = tfs[i];
    }
  if (!status && n) status = gpuir_builder_add_list(b, info.term, info.term_len, docs, tfs, NULL, n, err);
  free(docs);
  free(tfs);
  return status;
}

/* Makes an index of the documents [lo, hi), with the lists of the marked terms: it is written, opened and removed. */
static int make_part(const marks *m, uint64_t terms, uint32_t lo, uint32_t hi, const char *path, gpuir_index **part,
    gpuir_error *err) {
  gpuir_builder_desc desc;
  gpuir_builder *b = NULL;
  gpuir_doc doc;
  memset(&desc, 0, sizeof desc);
  desc.path = path;
  desc.like = m->index;
  desc.dense = GPUIR_DENSE_NONE;
  desc.threads = 1;
  int status = gpuir_builder_create(&desc, &b, err);
  for (uint32_t d = lo; d < hi && !status; d++) {
    status = gpuir_doc_get(m->index, d, &doc);
    if (!status) status = gpuir_builder_add_doc(b, NULL, doc.length, NULL, 0, err);
  }
  for (uint64_t id = 0; id < terms && !status; id++)
    if (m->wanted[id]) status = part_list(b, m->index, id, lo, hi, err);
  if (!status) status = gpuir_builder_write(b, NULL, err);
  gpuir_builder_destroy(b);
  if (!status) status = gpuir_open(path, NULL, part, err);
  (void)unlink(path);
  return status;
}

/* The making of all parts, which threads share. */
typedef struct making {
  shares *s;
  const marks *m;
  uint64_t terms;
  unsigned next; /* the part that is made next: atomic */
  int status; /* of the first one that failed; with it, err. Under the lock of the shares */
  gpuir_error *err;
} making;

/* Makes parts until none is left. */
static void *making_run(void *state) {
  making *w = (making *)state;
  shares *s = w->s;
  for (unsigned i; (i = __atomic_fetch_add(&w->next, 1, __ATOMIC_RELAXED)) < s->parts;) {
    const uint32_t lo = bound_of(s, i), hi = bound_of(s, i + 1);
    char path[4096];
    gpuir_error err;
    memset(&err, 0, sizeof err);
    snprintf(path, sizeof path, "%.4000s.part-%u", s->setup->path, i);
    if (lo == hi) continue;
    int status = make_part(w->m, w->terms, lo, hi, path, &s->part_index[i], &err);
    if (!status) status = lab_shelf_open(s->part_index[i], &s->part[i], &err);
    shares_lock(s);
    if (status && !w->status) {
      w->status = status;
      *w->err = err;
    }
    shares_unlock(s);
  }
  return NULL;
}

/* Makes an index for each thread's range of documents, with the lists of the queries' terms. */
static int make_parts(shares *s, uint64_t terms, gpuir_error *err) {
  const load_setup *setup = s->setup;
  marks m = {setup->index, (uint8_t *)cli_resize(NULL, (size_t)terms + 1, 1)};
  making w = {s, &m, terms, 0, GPUIR_OK, err};
  pthread_t *thread = (pthread_t *)cli_resize(NULL, s->parts, sizeof *thread);
  unsigned started = 0;
  int status = GPUIR_OK;
  memset(m.wanted, 0, (size_t)terms + 1);
  for (size_t i = 0; i < setup->nqueries && !status; i++)
    status = gpuir_analyze(setup->index, setup->queries[i].text, setup->queries[i].len, mark_term, &m, err);
  while (!status && started + 1 < s->parts && !pthread_create(&thread[started], NULL, making_run, &w)) started++;
  if (!status) (void)making_run(&w);
  while (started) (void)pthread_join(thread[--started], NULL);
  free(thread);
  free(m.wanted);
  return status ? status : w.status;
}

/* Opens the lists of all queries. */
static int open_queries(shares *s, gpuir_error *err) {
  const size_t n = s->setup->nqueries * s->parts;
  int status = GPUIR_OK;
  s->ands = (const lab_and **)cli_resize(NULL, n, sizeof *s->ands);
  memset((void *)s->ands, 0, n * sizeof *s->ands);
  for (size_t i = 0; i < n && !status; i++) {
    const load_query *q = &s->setup->queries[i / s->parts];
    const lab_shelf *part = s->part[i % s->parts];
    if (part) status = lab_and_open(q->query, part, (lab_and **)(uintptr_t)&s->ands[i]);
  }
  if (status) {
    err->code = status;
    snprintf(err->msg, sizeof err->msg, "a query's lists cannot be opened: %s", gpuir_strerror(status));
  }
  return status;
}

static int shares_make(gpuir_pool *pool, int kind, void **state, gpuir_error *err) {
  gpuir_index_info info;
  shares *s = (shares *)cli_resize(NULL, 1, sizeof *s);
  memset(s, 0, sizeof *s);
  s->pool = pool;
  s->setup = (const load_setup *)gpuir_pool_user(pool);
  s->kind = kind;
  s->threads = gpuir_pool_threads(pool);
  s->parts = kind == DOCP_PI ? s->threads : 1;
  pthread_mutex_init(&s->lock, NULL);
  pthread_cond_init(&s->arrived, NULL);
  pthread_cond_init(&s->work, NULL);
  s->spin_ns = s->threads <= cli_processors() ? SPIN_NS : 0;
  s->part = (lab_shelf **)cli_resize(NULL, s->parts, sizeof *s->part);
  memset(s->part, 0, s->parts * sizeof *s->part);
  s->part_index = (gpuir_index **)cli_resize(NULL, s->parts, sizeof *s->part_index);
  memset((void *)s->part_index, 0, s->parts * sizeof *s->part_index);
  int status = gpuir_index_get_info(s->setup->index, &info);
  s->documents = info.docids;
  if (!status && kind == DOCP_PI) status = make_parts(s, info.terms, err);
  if (!status && kind != DOCP_PI) status = lab_shelf_open(s->setup->index, &s->part[0], err);
  if (!status) status = open_queries(s, err);
  if (!status && kind == FGQP) fgqp_survey(s);
  if (!status && s->setup->survey) survey(s);
  if (status) shares_destroy(s);
  else *state = s;
  return status;
}

static int inter_create(gpuir_pool *p, void **state, gpuir_error *err) { return shares_make(p, T_INTER, state, err); }
static int ui_create(gpuir_pool *p, void **state, gpuir_error *err) { return shares_make(p, DOCP_UI, state, err); }
static int pi_create(gpuir_pool *p, void **state, gpuir_error *err) { return shares_make(p, DOCP_PI, state, err); }
static int fgqp_create(gpuir_pool *p, void **state, gpuir_error *err) { return shares_make(p, FGQP, state, err); }

const gpuir_policy *load_policy(const char *name) {
  static const gpuir_policy policies[] = {
      {"t-inter", inter_create, shares_submit, shares_work, shares_stop, shares_destroy},
      {"docp-ui", ui_create, shares_submit, shares_work, shares_stop, shares_destroy},
      {"docp-pi", pi_create, shares_submit, shares_work, shares_stop, shares_destroy},
      {"fgqp", fgqp_create, shares_submit, shares_work, shares_stop, shares_destroy}};
  for (size_t i = 0; i < sizeof policies / sizeof *policies; i++)
    if (!strcmp(policies[i].name, name)) return &policies[i];
  return NULL;
}
