/* tatikonda.c - how several cores share conjunctive queries (Tatikonda, Cambazoglu, Junqueira: Posting list
 * intersection on multicore architectures, SIGIR 2011, sections 3.1 and 3.2):
 *
 *     t-inter   a query is one thread's
 *     docp-ui   every query is cut into ranges of docIDs, one a thread, of one index; all threads meet after each
 *     docp-pi   the same with an index for each range
 *     fgqp      a query's tasks, each a skip block of its shortest list, wait in a pool that all threads take from
 *
 * All intersect with Small Adaptive. Lists are those of the index, in blocks of 128; a skip block is some of them.
 */
#include "load.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STP_ROOM 4096u /* items of scoring that wait at most */
#define KEPT 65536u /* matches of a query that wait to be ranked */

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
  place *places = (place *)cli_resize(NULL, a->n, sizeof *places), *p[LAB_AND_TERMS];
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
  free(places);
}

/* ---- a query ------------------------------------------------------------------------------------------------ */

/* A query in flight: what was found of it. */
typedef struct asked {
  gpuir_task *task;
  const lab_and *const *ands; /* [part] */
  pthread_mutex_t lock; /* of what follows */
  gpuir_hit *found; /* room for KEPT + 1 */
  size_t n;
  size_t open; /* tasks, matches that are not scored, and its creator: read and written atomically */
} asked;

static asked *asked_make(gpuir_task *task, const lab_and *const *ands) {
  asked *q = (asked *)cli_resize(NULL, 1, sizeof *q);
  memset(q, 0, sizeof *q);
  q->task = task;
  q->ands = ands;
  q->open = 1;
  q->found = (gpuir_hit *)cli_resize(NULL, KEPT + 1, sizeof *q->found);
  pthread_mutex_init(&q->lock, NULL);
  return q;
}

/* Adds a scored match. */
static void asked_add(asked *q, uint32_t doc, uint32_t score) {
  pthread_mutex_lock(&q->lock);
  q->found[q->n].docid = doc;
  q->found[q->n++].score = score;
  if (q->n > KEPT) {
    gpuir_hit *best = (gpuir_hit *)cli_resize(NULL, q->task->k, sizeof *best);
    q->n = lab_best(q->found, q->n, q->task->k, best);
    memcpy(q->found, best, q->n * sizeof *best);
    free(best);
  }
  pthread_mutex_unlock(&q->lock);
}

/* Ranks what was found, and completes the task. */
static void asked_complete(gpuir_pool *pool, asked *q, int status) {
  gpuir_task *task = q->task;
  if (!status) task->count = lab_best(q->found, q->n, task->k, task->hits);
  pthread_mutex_destroy(&q->lock);
  free(q->found);
  free(q);
  gpuir_pool_complete(pool, task, status);
}

static void score_at_once(void *to, const range *r, const match *m) {
  asked_add((asked *)to, m->doc + r->base, lab_and_score(r->and_, m->doc, m->where));
}

/* Why a task need not be begun: its deadline, or its flag. */
static int over(const gpuir_task *t) {
  if (t->cancel && __atomic_load_n(t->cancel, __ATOMIC_RELAXED)) return GPUIR_E_CANCELLED;
  return t->deadline && cli_nanoseconds() > t->deadline ? GPUIR_E_DEADLINE : GPUIR_OK;
}

/* ---- what the policies share --------------------------------------------------------------------------------- */

enum { T_INTER, DOCP_UI, DOCP_PI, FGQP };

typedef struct intersecting { /* an item of the pool ITP */
  asked *query;
  range r;
} intersecting;

typedef struct scoring { /* an item of the pool STP: the matches of a task, or one of them */
  asked *query;
  range r;
  match *matches;
  size_t n;
} scoring;

typedef struct shares {
  gpuir_pool *pool;
  const load_setup *setup;
  int kind, stopping, producing; /* producing: thread 0 makes tasks of a query */
  unsigned threads, parts;
  uint64_t documents;
  lab_shelf **part; /* [parts] */
  gpuir_index **part_index; /* [parts] those of docp-pi; otherwise NULL */
  const lab_and **ands; /* [query * parts + part] */
  gpuir_task **ring; /* submitted, in order: [read..submitted) wait */
  size_t cap, submitted, read;
  asked *current; /* DOCP: the query that all work on */
  pthread_barrier_t begin, end;
  intersecting *itp; /* FGQP: [itp_read..itp_n) wait */
  size_t itp_read, itp_n, itp_cap;
  scoring stp[STP_ROOM]; /* a ring: item i is stp[i % STP_ROOM], and [stp_read..stp_n) wait */
  size_t stp_read, stp_n;
  pthread_mutex_t lock;
  pthread_cond_t work;
} shares;

static int shares_submit(void *state, gpuir_task *task) {
  shares *s = (shares *)state;
  pthread_mutex_lock(&s->lock);
  if (s->submitted == s->cap) {
    s->cap = s->cap ? s->cap * 2 : 1024;
    s->ring = (gpuir_task **)cli_resize(s->ring, s->cap, sizeof *s->ring);
  }
  s->ring[s->submitted++] = task;
  if (s->kind == T_INTER) pthread_cond_signal(&s->work);
  else pthread_cond_broadcast(&s->work); /* thread 0 is the one that takes queries */
  pthread_mutex_unlock(&s->lock);
  return GPUIR_OK;
}

static void shares_stop(void *state) {
  shares *s = (shares *)state;
  pthread_mutex_lock(&s->lock);
  s->stopping = 1;
  pthread_cond_broadcast(&s->work);
  pthread_mutex_unlock(&s->lock);
}

/* Takes the next query, waiting for it if `patient`; NULL: there is none, or with `patient`: the pool stops. The lock
 * is held. Queries that are over are completed here. */
static asked *shares_next(shares *s, int patient) {
  for (;;) {
    while (patient && s->read == s->submitted && !s->stopping) pthread_cond_wait(&s->work, &s->lock);
    if (s->read == s->submitted) return NULL;
    gpuir_task *task = s->ring[s->read++];
    const int status = s->stopping ? GPUIR_E_CANCELLED : over(task);
    task->started = cli_nanoseconds();
    if (!status) {
      const load_job *j = (const load_job *)task->user;
      return asked_make(task, s->ands + j->query * s->parts);
    }
    pthread_mutex_unlock(&s->lock);
    gpuir_pool_complete(s->pool, task, status);
    pthread_mutex_lock(&s->lock);
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
  pthread_mutex_lock(&s->lock);
  while ((q = shares_next(s, 1)) != NULL) {
    pthread_mutex_unlock(&s->lock);
    const range r = whole_range(q->ands[0]);
    small_adaptive(&r, score_at_once, q);
    asked_complete(s->pool, q, GPUIR_OK);
    pthread_mutex_lock(&s->lock);
  }
  pthread_mutex_unlock(&s->lock);
}

/* The first document of a thread's range. */
static uint32_t bound_of(const shares *s, unsigned thread) { return (uint32_t)(s->documents * thread / s->threads); }

/* Evaluates a thread's range of the query that all work on. */
static void docp_range(shares *s, unsigned thread) {
  asked *q = s->current;
  range r = whole_range(q->ands[s->kind == DOCP_PI ? thread : 0]);
  const uint32_t lo = bound_of(s, thread), hi = bound_of(s, thread + 1);
  if (lo == hi) return;
  if (s->kind == DOCP_PI) {
    r.base = lo;
  } else {
    r.lo = lo;
    r.hi = hi - 1;
    for (unsigned i = 0; i < r.and_->n; i++) r.from[i] = lab_and_find_block(r.and_, i, 0, lo);
  }
  small_adaptive(&r, score_at_once, q);
}

/* Thread 0 is the master: it takes a query, and all work on it between two barriers. */
static void docp_work(shares *s, unsigned thread) {
  for (;;) {
    if (!thread) {
      pthread_mutex_lock(&s->lock);
      s->current = shares_next(s, 1);
      pthread_mutex_unlock(&s->lock);
    }
    pthread_barrier_wait(&s->begin);
    if (!s->current) return;
    docp_range(s, thread);
    pthread_barrier_wait(&s->end);
    if (!thread) asked_complete(s->pool, s->current, GPUIR_OK);
  }
}

/* ---- FGQP -------------------------------------------------------------------------------- */

/* Takes `n` off what a query waits for; the last one completes it. */
static void fgqp_release(shares *s, asked *q, size_t n) {
  if (!__atomic_sub_fetch(&q->open, n, __ATOMIC_ACQ_REL)) asked_complete(s->pool, q, GPUIR_OK);
}

static void fgqp_score(shares *s, scoring *item) {
  for (size_t i = 0; i < item->n; i++)
    asked_add(item->query, item->matches[i].doc,
        lab_and_score(item->r.and_, item->matches[i].doc, item->matches[i].where));
  free(item->matches);
  fgqp_release(s, item->query, item->n);
}

/* The matches of a task, until they are handed on. */
typedef struct gathered {
  match *matches;
  size_t n, cap;
} gathered;

static void gather(void *to, const range *r, const match *m) {
  gathered *g = (gathered *)to;
  (void)r;
  if (g->n == g->cap) {
    g->cap = g->cap ? g->cap * 2 : 64;
    g->matches = (match *)cli_resize(g->matches, g->cap, sizeof *g->matches);
  }
  g->matches[g->n++] = *m;
}

/* Hands a task's matches to the pool STP or, if it is full, scores them here. */
static void fgqp_hand_on(shares *s, const intersecting *task, gathered *g) {
  const size_t each = s->setup->per_task ? g->n : 1;
  size_t i = 0;
  __atomic_add_fetch(&task->query->open, g->n, __ATOMIC_ACQ_REL); /* before the task is released */
  while (i < g->n) {
    scoring item;
    item.query = task->query;
    item.r = task->r;
    item.n = each;
    item.matches = (match *)cli_resize(NULL, each, sizeof *item.matches);
    memcpy(item.matches, g->matches + i, each * sizeof *item.matches);
    i += each;
    pthread_mutex_lock(&s->lock);
    const int full = s->stp_n - s->stp_read == STP_ROOM;
    if (!full) {
      s->stp[s->stp_n++ % STP_ROOM] = item;
      pthread_cond_signal(&s->work);
    }
    pthread_mutex_unlock(&s->lock);
    if (full) fgqp_score(s, &item);
  }
  free(g->matches);
}

/* Consumes one item (Algorithm 3): one of scoring, so that queries that were begun end, or a task of intersection. The
 * lock is held. 0: there is none. */
static int fgqp_consume(shares *s) {
  if (s->stp_read < s->stp_n) {
    scoring item = s->stp[s->stp_read++ % STP_ROOM];
    pthread_mutex_unlock(&s->lock);
    fgqp_score(s, &item);
  } else if (s->itp_read < s->itp_n) {
    intersecting task = s->itp[s->itp_read++];
    gathered g = {NULL, 0, 0};
    if (s->itp_read == s->itp_n) s->itp_read = s->itp_n = 0;
    pthread_mutex_unlock(&s->lock);
    small_adaptive(&task.r, gather, &g);
    fgqp_hand_on(s, &task, &g);
    fgqp_release(s, task.query, 1);
  } else {
    return 0;
  }
  pthread_mutex_lock(&s->lock);
  return 1;
}

/* Makes the tasks of a query (Algorithm 4): each has a skip block of the shortest list, and the blocks of the others
 * that may hold the same documents, which are searched from those of the task before on. Returns their number. */
static size_t fgqp_tasks(const shares *s, asked *q, intersecting **tasks) {
  const lab_and *a = q->ands[0];
  const uint32_t group = (uint32_t)(s->setup->skip / LAB_BLOCK), blocks = a->empty ? 0 : a->list[0].nblocks;
  const size_t most = (blocks + group - 1) / group;
  range r = whole_range(a);
  size_t n = 0;
  *tasks = NULL;
  if (!blocks) return 0;
  *tasks = (intersecting *)cli_resize(NULL, most, sizeof **tasks);
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
    (*tasks)[n].query = q;
    (*tasks)[n++].r = r;
  }
  return n;
}

/* Adds up what a query's tasks are like: of each list but the shortest, which skip blocks a task may touch, and which
 * of these the task before may touch too. */
static void fgqp_survey_query(const load_setup *setup, const intersecting *tasks, size_t n, load_tasks *sum) {
  const uint32_t group = (uint32_t)(setup->skip / LAB_BLOCK);
  for (size_t t = 0; t < n; t++) {
    const range *r = &tasks[t].r;
    for (unsigned i = 1; i < r->and_->n; i++) {
      const uint32_t blocks = r->and_->list[i].nblocks, first = r->from[i] / group;
      const uint32_t end = lab_and_find_block(r->and_, i, r->from[i], r->hi);
      const uint32_t last = (end < blocks ? end : blocks - 1) / group;
      sum->lists++;
      sum->skips += last - first + 1;
      if (t + 1 < n) sum->shared += tasks[t + 1].r.from[i] / group <= last;
    }
  }
}

/* Makes the tasks of each query once, and adds up what they are like. */
static void fgqp_survey(shares *s) {
  load_tasks *sum = s->setup->tasks;
  uint64_t skips = 0, lists = 0;
  memset(sum, 0, sizeof *sum);
  for (size_t i = 0; i < s->setup->nqueries; i++) {
    asked q;
    intersecting *tasks;
    memset(&q, 0, sizeof q);
    q.ands = s->ands + i;
    const size_t n = fgqp_tasks(s, &q, &tasks);
    fgqp_survey_query(s->setup, tasks, n, sum);
    for (unsigned j = 0; j < q.ands[0]->n && !q.ands[0]->empty; j++, lists++)
      skips += (q.ands[0]->list[j].df + s->setup->skip - 1) / s->setup->skip;
    sum->queries++;
    sum->tasks += n;
    free(tasks);
  }
  sum->list_skips = lists ? (double)skips / (double)lists : 0;
}

/* Makes the tasks of one query, and puts them all into the pool ITP. The lock is held. */
static void fgqp_produce(shares *s, asked *q) {
  intersecting *tasks;
  pthread_mutex_unlock(&s->lock);
  const uint64_t since = cli_nanoseconds();
  const size_t n = fgqp_tasks(s, q, &tasks);
  s->setup->tasks->creation_ns += cli_nanoseconds() - since; /* by thread 0 alone */
  __atomic_add_fetch(&q->open, n, __ATOMIC_ACQ_REL);
  pthread_mutex_lock(&s->lock);
  if (s->itp_read > s->itp_n / 2) { /* what was taken makes room */
    memmove(s->itp, s->itp + s->itp_read, (s->itp_n - s->itp_read) * sizeof *s->itp);
    s->itp_n -= s->itp_read;
    s->itp_read = 0;
  }
  if (s->itp_n + n > s->itp_cap) {
    s->itp_cap = (s->itp_n + n) * 2;
    s->itp = (intersecting *)cli_resize(s->itp, s->itp_cap, sizeof *s->itp);
  }
  if (n) memcpy(s->itp + s->itp_n, tasks, n * sizeof *tasks);
  s->itp_n += n;
  pthread_cond_broadcast(&s->work);
  pthread_mutex_unlock(&s->lock);
  free(tasks);
  fgqp_release(s, q, 1); /* a query without tasks is complete here */
  pthread_mutex_lock(&s->lock);
}

/* Thread 0 makes tasks while at most beta wait, and consumes while more do (Algorithm 2); the others consume. */
static void fgqp_work(shares *s, unsigned thread) {
  asked *q;
  pthread_mutex_lock(&s->lock);
  for (;;) {
    if (!thread && s->itp_n - s->itp_read <= s->setup->beta) {
      s->producing = 1;
      q = shares_next(s, 0);
      if (q) fgqp_produce(s, q);
      s->producing = 0;
      if (q) continue;
    }
    if (fgqp_consume(s)) continue;
    if (s->stopping && s->read == s->submitted && !s->producing) break;
    pthread_cond_wait(&s->work, &s->lock);
  }
  pthread_cond_broadcast(&s->work);
  pthread_mutex_unlock(&s->lock);
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
  free(s->itp);
  pthread_barrier_destroy(&s->begin);
  pthread_barrier_destroy(&s->end);
  pthread_mutex_destroy(&s->lock);
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

/* Makes an index for each thread's range of documents, with the lists of the queries' terms. */
static int make_parts(shares *s, uint64_t terms, gpuir_error *err) {
  const load_setup *setup = s->setup;
  marks m = {setup->index, (uint8_t *)cli_resize(NULL, (size_t)terms + 1, 1)};
  int status = GPUIR_OK;
  memset(m.wanted, 0, (size_t)terms + 1);
  for (size_t i = 0; i < setup->nqueries && !status; i++)
    status = gpuir_analyze(setup->index, setup->queries[i].text, setup->queries[i].len, mark_term, &m, err);
  for (unsigned i = 0; i < s->parts && !status; i++) {
    const uint32_t lo = bound_of(s, i), hi = bound_of(s, i + 1);
    char path[4096];
    snprintf(path, sizeof path, "%.4000s.part-%u", setup->path, i);
    if (lo == hi) continue;
    status = make_part(&m, terms, lo, hi, path, &s->part_index[i], err);
    if (!status) status = lab_shelf_open(s->part_index[i], &s->part[i], err);
  }
  free(m.wanted);
  return status;
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
  pthread_cond_init(&s->work, NULL);
  pthread_barrier_init(&s->begin, NULL, s->threads);
  pthread_barrier_init(&s->end, NULL, s->threads);
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
