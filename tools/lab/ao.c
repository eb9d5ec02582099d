/* ao.c - batches for the GPU by a computational threshold (Ao, Zhang, Wu, Stones, Wang, Liu, Liu, Lin: Efficient
 * parallel lists intersection and index compression algorithms using graphics processing units, PVLDB 4(8), 2011,
 * sections 4.1 and 6.1: PARA).
 *
 * Queries are collected until their shortest lists have c docIDs together. One kernel then looks each of these docIDs
 * up in the other lists of its query, a thread a docID, and what is found is compacted and fetched. While a batch runs,
 * the next one is collected. A batch is also closed when its first query has waited for long enough.
 *
 * The paper's answer is the documents: answer=documents. By default cores score and rank them as well, so that hits can
 * be compared, and the time of that is told apart; it then bounds how many queries a second are answered. Thread 0 of
 * the pool drives the device, the others are those cores.
 */
#include "probe.h"
#include "scheduler.h"

#include "gpuir_lab.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What came of a run, ns and counts; under the policy's lock. */
typedef struct tally {
  uint64_t batches, queries, full, postings; /* full: closed by the threshold */
  double collect, plan, send, run, fetch, rank;
  double *ms; /* of each batch, on the device and for it; [batches] */
} tally;

#define MOST_VARIANTS 24u /* thresholds, and methods */

typedef struct settings {
  double thresholds[MOST_VARIANTS], threshold, wait_ms; /* threshold: this variant's */
  char *methods[MOST_VARIANTS], *codec; /* codec NULL: the lists as they are */
  double processors[MOST_VARIANTS]; /* multiprocessors of the device that batches may have; 0: all */
  const char *method; /* this variant's */
  unsigned confined; /* the same */
  size_t nthresholds, nmethods, nprocessors;
  int documents; /* the answer is the documents, which cores do not rank */
  load_lists lists;
  gpuir_cuda_lab *lab; /* NULL: a processor stands for the device */
  tally tally;
} settings;

/* Queries that run together. */
typedef struct batch {
  gpuir_task **tasks;
  size_t n, cap;
  uint64_t postings, since; /* of the shortest lists; when the first query came */
  uint32_t *counts, *docids; /* what was found, query after query */
} batch;

/* A query that was intersected. */
typedef struct found {
  gpuir_task *task;
  uint32_t *docs, n; /* docs NULL: the device failed */
} found;

typedef struct ao {
  gpuir_pool *pool;
  const load_setup *setup;
  settings *set;
  batch filling, *ready; /* ready: closed, [nready] in order */
  size_t nready, capready;
  found *found; /* [read..nfound) wait to be ranked */
  size_t read, nfound, capfound;
  int stopping, over; /* over: the driver has left */
  pthread_mutex_t lock;
  pthread_cond_t work, rank;
} ao;

static size_t query_of(const gpuir_task *t) { return ((const load_job *)t->user)->query; }

/* ---- collecting ------------------------------------------------------------------------------------------------ */

/* Closes the batch that is collected. The lock is held. */
static void close_batch(ao *a, int full) {
  if (a->nready == a->capready) {
    a->capready = a->capready ? 2 * a->capready : 16;
    a->ready = (batch *)cli_resize(a->ready, a->capready, sizeof *a->ready);
  }
  a->set->tally.full += (uint64_t)full;
  a->ready[a->nready++] = a->filling;
  memset(&a->filling, 0, sizeof a->filling);
}

static int ao_submit(void *state, gpuir_task *task) {
  ao *a = (ao *)state;
  const lab_and *and_ = a->set->lists.ands[query_of(task)];
  batch *b = &a->filling;
  pthread_mutex_lock(&a->lock);
  if (b->n == b->cap) {
    b->cap = b->cap ? 2 * b->cap : 64;
    b->tasks = (gpuir_task **)cli_resize(b->tasks, b->cap, sizeof *b->tasks);
  }
  if (!b->n) b->since = cli_nanoseconds();
  b->tasks[b->n++] = task;
  b->postings += and_->empty ? 0 : and_->list[0].df;
  if ((double)b->postings >= a->set->threshold) close_batch(a, 1);
  if (a->nready || b->n == 1) pthread_cond_signal(&a->work); /* from the first query on the driver watches the clock */
  pthread_mutex_unlock(&a->lock);
  return GPUIR_OK;
}

static void ao_stop(void *state) {
  ao *a = (ao *)state;
  pthread_mutex_lock(&a->lock);
  a->stopping = 1;
  pthread_cond_broadcast(&a->work);
  pthread_cond_broadcast(&a->rank);
  pthread_mutex_unlock(&a->lock);
}

/* Waits until the batch that is collected is due, or another event. The lock is held. */
static void wait_for_batch(ao *a) {
  const uint64_t due = a->filling.since + (uint64_t)(a->set->wait_ms * 1e6);
  struct timespec t;
  if (!a->filling.n) {
    pthread_cond_wait(&a->work, &a->lock);
    return;
  }
  t.tv_sec = (time_t)(due / 1000000000u);
  t.tv_nsec = (long)(due % 1000000000u);
  if (cli_nanoseconds() >= due || pthread_cond_timedwait(&a->work, &a->lock, &t))
    if (a->filling.n && cli_nanoseconds() >= due) close_batch(a, 0);
}

/* Takes the next batch; 0: the pool stops, and none is left. The lock is held. */
static int take_batch(ao *a, batch *b) {
  while (!a->nready) {
    if (a->stopping && !a->filling.n) return 0;
    if (a->stopping) close_batch(a, 0);
    else wait_for_batch(a);
  }
  *b = a->ready[0];
  memmove(a->ready, a->ready + 1, --a->nready * sizeof *a->ready);
  return 1;
}

/* ---- the device ------------------------------------------------------------------------------------------------ */

/* A batch as the device takes it: each query with lists of its own. */
typedef struct plan {
  uint32_t *lists, *start;
  size_t nq;
} plan;

static plan plan_batch(const settings *s, const batch *b) {
  plan p;
  p.lists = (uint32_t *)cli_resize(NULL, b->n * LAB_AND_TERMS, sizeof *p.lists);
  p.start = (uint32_t *)cli_resize(NULL, b->n + 1, sizeof *p.start);
  p.start[0] = 0;
  p.nq = 0;
  for (size_t i = 0; i < b->n; i++) {
    const load_members *m = &s->lists.query[query_of(b->tasks[i])];
    if (!m->k) continue;
    memcpy(p.lists + p.start[p.nq], m->member, m->k * sizeof *p.lists);
    p.start[p.nq + 1] = p.start[p.nq] + m->k;
    p.nq++;
  }
  return p;
}

/* A processor stands for the device: the same queries, by the method of the same name. */
static int stand_in(const settings *s, const batch *b, const plan *p) {
  const uint32_t *docs[LAB_AND_TERMS];
  uint32_t n[LAB_AND_TERMS], *to = b->docids;
  int status = GPUIR_OK;
  for (size_t q = 0; q < p->nq && !status; q++) {
    const unsigned k = p->start[q + 1] - p->start[q];
    lab_intersection *x = NULL;
    for (unsigned i = 0; i < k; i++) {
      const lab_list *l = &s->lists.list[p->lists[p->start[q] + i]];
      docs[i] = l->docs;
      n[i] = l->n;
    }
    status = lab_intersect_arrays(s->method, docs, n, k, &x);
    if (status) break;
    b->counts[q] = lab_intersect(x);
    memcpy(to, lab_intersection_found(x), b->counts[q] * sizeof *to);
    to += b->counts[q];
    lab_intersection_free(x);
  }
  return status;
}

/* Runs a batch. A status. */
static int run_batch(settings *s, batch *b, const plan *p, gpuir_cuda_lab_parts *parts) {
  gpuir_cuda_lab_way way;
  gpuir_error err;
  memset(&way, 0, sizeof way);
  memset(parts, 0, sizeof *parts);
  way.method = s->method;
  way.coded = s->codec != NULL;
  b->counts = (uint32_t *)cli_resize(NULL, p->nq + 1, sizeof *b->counts);
  b->docids = (uint32_t *)cli_resize(NULL, (size_t)b->postings + 1, sizeof *b->docids);
  if (!p->nq) return GPUIR_OK;
  if (s->lab)
    return gpuir_cuda_lab_batch(s->lab, p->lists, p->start, p->nq, &way, b->counts, b->docids, b->postings, parts,
        &err);
  const uint64_t since = cli_nanoseconds();
  const int status = stand_in(s, b, p);
  parts->run = (double)(cli_nanoseconds() - since) / 1e6;
  return status;
}

/* Adds a query's documents to those that wait to be ranked. The lock is held. */
static void hand_on(ao *a, gpuir_task *task, uint32_t *docs, uint32_t n) {
  if (a->nfound == a->capfound) {
    memmove(a->found, a->found + a->read, (a->nfound - a->read) * sizeof *a->found);
    a->nfound -= a->read;
    a->read = 0;
    if (a->nfound > a->capfound / 2 || !a->capfound) {
      a->capfound = a->capfound ? 2 * a->capfound : 1024;
      a->found = (found *)cli_resize(a->found, a->capfound, sizeof *a->found);
    }
  }
  const found f = {task, docs, n};
  a->found[a->nfound++] = f;
}

/* Hands a batch's queries on, each with a copy of its documents. */
static void hand_on_all(ao *a, const batch *b, int status) {
  const uint32_t *from = b->docids;
  size_t q = 0;
  for (size_t i = 0; i < b->n; i++) {
    const int empty = !a->set->lists.query[query_of(b->tasks[i])].k;
    const uint32_t n = status || empty ? 0 : b->counts[q++];
    uint32_t *docs = status ? NULL : (uint32_t *)cli_resize(NULL, (size_t)n + 1, sizeof *docs);
    if (docs) memcpy(docs, from, n * sizeof *docs);
    from += n;
    pthread_mutex_lock(&a->lock);
    hand_on(a, b->tasks[i], docs, n);
    pthread_mutex_unlock(&a->lock);
    pthread_cond_signal(&a->rank);
  }
}

static void add_parts(ao *a, const batch *b, double plan_ns, const gpuir_cuda_lab_parts *parts, uint64_t since) {
  tally *t = &a->set->tally;
  pthread_mutex_lock(&a->lock);
  if ((t->batches & (t->batches - 1)) == 0)
    t->ms = (double *)cli_resize(t->ms, t->batches ? 2 * (size_t)t->batches : 1, sizeof *t->ms);
  t->ms[t->batches++] = plan_ns / 1e6 + parts->plan + parts->send + parts->run + parts->fetch;
  t->queries += b->n;
  t->postings += b->postings;
  t->collect += (double)(since - b->since);
  t->plan += plan_ns + parts->plan * 1e6;
  t->send += parts->send * 1e6;
  t->run += parts->run * 1e6;
  t->fetch += parts->fetch * 1e6;
  pthread_mutex_unlock(&a->lock);
}

static void driver_work(ao *a) {
  for (;;) {
    gpuir_cuda_lab_parts parts;
    batch b;
    pthread_mutex_lock(&a->lock);
    const int more = take_batch(a, &b);
    a->over = !more;
    pthread_mutex_unlock(&a->lock);
    if (!more) break;
    const uint64_t since = cli_nanoseconds();
    for (size_t i = 0; i < b.n; i++) b.tasks[i]->started = since;
    plan p = plan_batch(a->set, &b);
    const double planned = (double)(cli_nanoseconds() - since);
    const int status = run_batch(a->set, &b, &p, &parts);
    add_parts(a, &b, planned, &parts, since);
    hand_on_all(a, &b, status);
    free(p.lists);
    free(p.start);
    free(b.tasks);
    free(b.counts);
    free(b.docids);
  }
  pthread_cond_broadcast(&a->rank);
}

/* ---- cores ----------------------------------------------------------------------------------------------------- */

/* Returns why a query is not ranked: its deadline, or its flag. */
static int overdue(const gpuir_task *t) {
  if (t->cancel && __atomic_load_n(t->cancel, __ATOMIC_RELAXED)) return GPUIR_E_CANCELLED;
  return t->deadline && cli_nanoseconds() > t->deadline ? GPUIR_E_DEADLINE : GPUIR_OK;
}

static int compare_docs(const void *x, const void *y) {
  const uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
  return (a > b) - (a < b);
}

/* Answers with documents that nobody ranks. The best ones are known, and must be among them, and no more documents may
 * be there where the best ones are all; the query then gets these for its hits, else one too many. */
static void take_documents(const ao *a, const found *f) {
  const load_query *q = &a->setup->queries[query_of(f->task)];
  int right = f->n >= q->n && (f->n == q->n || q->n == f->task->k);
  for (size_t i = 0; i < q->n && right; i++)
    right = bsearch(&q->hits[i].docid, f->docs, f->n, sizeof *f->docs, compare_docs) != NULL;
  if (right) memcpy(f->task->hits, q->hits, q->n * sizeof *q->hits);
  f->task->count = q->n + !right;
}

/* Ranks a query; one that the device failed on is intersected here. */
static void rank(ao *a, found *f) {
  const lab_and *and_ = a->set->lists.ands[query_of(f->task)];
  const uint64_t since = cli_nanoseconds();
  const int status = overdue(f->task);
  if (!status && !f->docs && !and_->empty) {
    f->n = and_->list[0].df;
    f->docs = (uint32_t *)cli_resize(NULL, (size_t)f->n + LAB_BLOCK_ROOM, sizeof *f->docs);
    load_decode(and_, 0, f->docs);
    for (unsigned i = 1; i < and_->n; i++) f->n = load_filter(and_, i, f->docs, f->n);
  }
  if (!status && a->set->documents) take_documents(a, f);
  else if (!status) f->task->count = load_rank(and_, f->docs, f->n, f->task->k, f->task->hits);
  free(f->docs);
  pthread_mutex_lock(&a->lock);
  a->set->tally.rank += (double)(cli_nanoseconds() - since);
  pthread_mutex_unlock(&a->lock);
  gpuir_pool_complete(a->pool, f->task, status);
}

static void core_work(ao *a) {
  for (;;) {
    found f;
    pthread_mutex_lock(&a->lock);
    while (a->read == a->nfound && !a->over) pthread_cond_wait(&a->rank, &a->lock);
    const int more = a->read < a->nfound;
    if (more) f = a->found[a->read++];
    pthread_mutex_unlock(&a->lock);
    if (!more) return;
    rank(a, &f);
  }
}

static void ao_work(void *state, unsigned thread) {
  if (thread) core_work((ao *)state);
  else driver_work((ao *)state);
}

/* ---- making and unmaking --------------------------------------------------------------------------------------- */

static void ao_destroy(void *state) {
  ao *a = (ao *)state;
  free(a->filling.tasks);
  free(a->ready);
  free(a->found);
  pthread_cond_destroy(&a->work);
  pthread_cond_destroy(&a->rank);
  pthread_mutex_destroy(&a->lock);
  free(a);
}

static int ao_create(gpuir_pool *pool, void **state, gpuir_error *err) {
  const load_setup *setup = (const load_setup *)gpuir_pool_user(pool);
  settings *set = (settings *)setup->scheduling;
  pthread_condattr_t clock;
  if (set->lab && (set->confined || set->nprocessors > 1)) {
    const int status = gpuir_cuda_lab_confine(set->lab, set->confined, err);
    if (status) return status;
  }
  ao *a = (ao *)cli_resize(NULL, 1, sizeof *a);
  memset(a, 0, sizeof *a);
  a->pool = pool;
  a->setup = setup;
  a->set = set;
  free(a->set->tally.ms);
  memset(&a->set->tally, 0, sizeof a->set->tally);
  pthread_mutex_init(&a->lock, NULL);
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_cond_init(&a->work, &clock);
  pthread_condattr_destroy(&clock);
  pthread_cond_init(&a->rank, NULL);
  *state = a;
  return GPUIR_OK;
}

/* ---- the scheduler --------------------------------------------------------------------------------------------- */

static void *ao_make(void) {
  settings *s = (settings *)cli_resize(NULL, 1, sizeof *s);
  memset(s, 0, sizeof *s);
  s->thresholds[0] = 1 << 20;
  s->wait_ms = 10;
  s->methods[0] = cli_copy("hs16", 4);
  s->nthresholds = s->nmethods = s->nprocessors = 1;
  return s;
}

/* Returns whether the library has a method of this name, which processors use that stand for the device. */
static int is_method(const char *name) {
  for (size_t i = 0; gpuir_intersection_name(i); i++)
    if (!strcmp(gpuir_intersection_name(i), name)) return 1;
  return 0;
}

/* Takes a name of a list into one variant of the methods or thresholds. 0; -1: it is no such one. */
static int take_variant(settings *s, int method, const char *text, size_t len) {
  size_t *n = method ? &s->nmethods : &s->nthresholds;
  char *one = cli_copy(text, len), *end = one;
  const double c = method ? 0 : strtod(one, &end);
  const int good = *n < MOST_VARIANTS && (method ? is_method(one) : end != one && !*end && c >= 1 && c <= 1e12);
  if (good && method) s->methods[*n] = one;
  if (good && !method) s->thresholds[*n] = c;
  *n += (size_t)good;
  if (!good || !method) free(one);
  return good ? 0 : -1;
}

static void forget_methods(settings *s) {
  while (s->nmethods) free(s->methods[--s->nmethods]);
}

/* Takes thresholds or methods, parted by commas. */
static int take_variants(settings *s, int method, const char *list) {
  if (method) forget_methods(s);
  else s->nthresholds = 0;
  for (;;) {
    const size_t n = strcspn(list, ",");
    if (take_variant(s, method, list, n)) return -1;
    if (!list[n]) return 0;
    list += n + 1;
  }
}

static int ao_param(void *settings_, const char *p) {
  settings *s = (settings *)settings_;
  if (!strncmp(p, "method=", 7)) return take_variants(s, 1, p + 7);
  if (!strncmp(p, "c=", 2)) return take_variants(s, 0, p + 2);
  if (!strncmp(p, "codec=", 6)) {
    free(s->codec);
    s->codec = cli_copy(p + 6, strlen(p + 6));
    return 0;
  }
  if (load_choice(p, "answer", "hits|documents", &s->documents)) return 0;
  if (load_numbers(p, "processors", 0, 4096, s->processors, MOST_VARIANTS, &s->nprocessors)) return 0;
  return load_number(p, "wait", 0.001, 1e6, &s->wait_ms) ? 0 : -1;
}

static size_t ao_vary(void *settings_, size_t i, char *name, size_t cap) {
  settings *s = (settings *)settings_;
  s->threshold = s->thresholds[i % s->nthresholds];
  s->method = s->methods[i / s->nthresholds % s->nmethods];
  s->confined = (unsigned)s->processors[i / s->nthresholds / s->nmethods];
  const int n =
      snprintf(name, cap, "ao/%s%s%s/%.0f", s->method, s->codec ? "/" : "", s->codec ? s->codec : "", s->threshold);
  if (s->confined) snprintf(name + n, cap - (size_t)n, "/%u", s->confined);
  return s->nthresholds * s->nmethods * s->nprocessors;
}

static unsigned ao_threads(const load_setup *setup) { return (unsigned)setup->threads + 1; }

static int ao_device(const void *set, uint64_t *memory) {
  (void)set, (void)memory;
  return 1;
}

/* Returns the largest batch that the queries may make in any order: the threshold, and one that passes it. */
static lab_gpu_size largest(const load_setup *setup, const settings *s) {
  lab_gpu_size size;
  double most = 1;
  memset(&size, 0, sizeof size);
  for (size_t i = 0; i < s->nthresholds; i++) most = s->thresholds[i] > most ? s->thresholds[i] : most;
  size.room = (uint64_t)most + s->lists.longest + 2 * (uint64_t)LAB_BLOCK;
  size.queries = (size_t)(most < 1e6 ? most : 1e6) + 1; /* one of an empty list counts nothing */
  if (size.queries > setup->nqueries * 16) size.queries = setup->nqueries * 16;
  size.terms = size.queries * 8;
  return size;
}

static int ao_prepare(load_setup *setup, lab_report *report) {
  settings *s = (settings *)setup->scheduling;
  lab_note(report, "ao",
      "a batch closes at a sum of its shortest lists or after %.6g ms; lists %s; a core drives the "
      "device, %llu %s; ao-response has the mean over the batches and its 95 %% bootstrap interval",
      s->wait_ms, s->codec ? s->codec : "as arrays", (unsigned long long)setup->threads,
      s->documents ? "compare the documents and do not rank them" : "rank");
  const int code = load_lists_read(setup, 1, &s->lists);
  if (code != CLI_OK || !setup->gpu.cuda || !s->lists.n) return code;
  const lab_gpu_size size = largest(setup, s);
  return load_lists_send(&s->lists, s->codec, &size, 0, &s->lab);
}

static void ao_tell(const load_setup *setup, lab_report *report, const load_run *run, const load_result *x) {
  const settings *s = (const settings *)setup->scheduling;
  const tally *t = &s->tally;
  const double n = t->batches ? (double)t->batches : 1, device = t->plan + t->send + t->run + t->fetch;
  const struct {
    const char *name;
    double ns;
  } parts[] = {{"plan", t->plan}, {"send", t->send}, {"GPU", t->run}, {"fetch", t->fetch}};
  char name[96];
  snprintf(name, sizeof name, "%s%s%s", s->method, s->codec ? "/" : "", s->codec ? s->codec : "");
  if (!(run->rate > 0) && s->confined && s->lab && t->run > 0) {
    lab_row_at(report, "ao-fig9a", name, s->confined, (double)t->postings / t->run, "billion docIDs/s");
  } else if (!(run->rate > 0)) { /* collecting takes what generating does then */
    char answer[112];
    snprintf(answer, sizeof answer, "%s%s", name, s->documents ? "/documents" : "");
    lab_row_at(report, "ao-throughput", answer, s->threshold, x->achieved, "queries/s");
    if (t->batches)
      lab_row_of_at(report, "ao-response", name, s->threshold, lab_bootstrap(t->ms, (size_t)t->batches), "ms");
    lab_row_at(report, "ao-batch", name, s->threshold, (double)t->postings / n, "docIDs");
    if (device > 0) lab_row_at(report, "ao-fig9b", name, s->threshold, 100 * t->run / device, "percent");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
      if (!(parts[i].ns > 0)) continue;
      snprintf(name, sizeof name, "%s%s%s/%s", s->method, s->codec ? "/" : "", s->codec ? s->codec : "", parts[i].name);
      lab_row_at(report, "ao-parts", name, s->threshold, parts[i].ns / n / 1e6, "ms");
    }
  } else {
    snprintf(name, sizeof name, "%s/%.0f/mean", s->method, s->threshold);
    lab_row_at(report, "ao-live", name, run->rate, load_mean(&x->latency[LOAD_KINDS]) / 1e6, "ms");
    snprintf(name, sizeof name, "%s/%.0f/p99", s->method, s->threshold);
    lab_row_at(report, "ao-live", name, run->rate, (double)load_percentile(&x->latency[LOAD_KINDS], 99) / 1e6, "ms");
  }
  lab_note(report, "ao run",
      "%s, c %.0f: %llu batches of %.6g queries and %.6g docIDs, %llu closed by the threshold; ms a batch: "
      "collecting %.4g, planning %.4g, sending %.4g, kernels %.4g, fetching %.4g; ranking %.4g ms of cores a batch",
      s->method, s->threshold, (unsigned long long)t->batches, (double)t->queries / n, (double)t->postings / n,
      (unsigned long long)t->full, t->collect / n / 1e6, t->plan / n / 1e6, t->send / n / 1e6, t->run / n / 1e6,
      t->fetch / n / 1e6, t->rank / n / 1e6);
}

static void ao_free(void *settings_) {
  settings *s = (settings *)settings_;
  if (!s) return;
  gpuir_cuda_lab_close(s->lab);
  load_lists_free(&s->lists);
  forget_methods(s);
  free(s->codec);
  free(s->tally.ms);
  free(s);
}

static const gpuir_policy policy = {"ao", ao_create, ao_submit, ao_work, ao_stop, ao_destroy};

const load_scheduler load_ao = {&policy,
    "c=N,..., wait=MS, method=NAME,..., codec=NAME, processors=N,..., answer=hits|documents", 1, ao_make, ao_param,
    ao_threads, ao_device, ao_prepare, ao_vary, ao_tell, ao_free};
