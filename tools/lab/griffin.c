/* griffin.c - a query on both processors (Liu, Wang, Swanson: Griffin: uniting CPU and GPU in information retrieval
 * systems for intra-query parallelism, PPoPP 2018, sections 3.2, 4.4 and 4.5):
 *
 *     griffin:mode=griffin   a query whose two shortest lists are within `ratio` of each other begins on the GPU; after
 *                            each intersection, if the next list is longer by that or more, the CPU does the rest
 *     griffin:mode=gpu       all intersections on the GPU, with skip pointers above the ratio (Griffin-GPU)
 *     griffin:mode=cpu       all on the CPU
 *
 * Several modes and ratios, parted by commas, run one after the other.
 *
 * What is compared are two lists, so queries of one word, for which the paper has no rule, are not asked.
 *
 * The threads of the pool are cores, and behind them drivers, one a stream. A driver looks at the count of what is left
 * where the device writes it, decides, and begins the next query as soon as it has handed one over: what a core gets
 * is a query with its candidates and the lists that are left. Cores rank all queries, as the paper's do; scores of
 * those that end on the GPU are computed there.
 */
#include "probe.h"
#include "scheduler.h"

#include "gpuir_lab.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define USUAL_RATIO 128 /* the paper's */
#define CLASSES 8u /* of queries by their terms; the last one has those of 7 and more */
#define MOST_RATIOS 16u
#define TAIL 10000u /* queries below which there is no percentile of 99.9 here, as many as the paper has */

enum { GRIFFIN, ONLY_GPU, ONLY_CPU };
static const char *const mode_names[] = {"Griffin", "Griffin-GPU", "CPU"};
static const char *const send_names[] = {"resident", "transfer"};

/* What came of a run; under the policy's lock. */
typedef struct tally {
  uint64_t begun[2], moved, rounds, rounds_moved, near_; /* begun: on the CPU, on the GPU */
  double hand_over_ns;
} tally;

typedef struct settings {
  int scored; /* where a query that ends on the device is scored: there, or by a core */
  int mode, sent, modes[3]; /* mode, ratio: this variant's */
  double ratio, ratios[MOST_RATIOS], streams;
  size_t nmodes, nratios;
  load_lists lists;
  gpuir_cuda_lab **labs; /* [streams] NULL: processors stand for the device */
  tally tally;
  load_histogram *latency; /* [CLASSES] of a run, by the terms of a query; the same */
} settings;

/* A query, or the rest of one. */
typedef struct work {
  gpuir_task *task;
  size_t query;
  uint32_t *docs, n; /* what is left of it; NULL: it has not begun */
  unsigned done; /* lists that were intersected */
  gpuir_hit *hits; /* the same documents with their scores, if the device has found them; or NULL */
} work;

typedef struct queue {
  work *at;
  size_t read, n, cap; /* [read..n) wait */
} queue;

typedef struct griffin {
  gpuir_pool *pool;
  gpuir_cuda *cuda; /* scores on the device what ends there; NULL: cores score all */
  settings *set;
  unsigned cores, streams, driving; /* driving: drivers that have not left */
  queue queues[2]; /* of the CPU, of the GPU */
  int stopping;
  pthread_mutex_t lock;
  pthread_cond_t work[2];
} griffin;

enum { CPU, GPU };

/* ---- queues ---------------------------------------------------------------------------------------------------- */

/* Puts work into a queue, what has begun before what has not. The lock is held. */
static void push(griffin *g, int side, const work *w) {
  queue *q = &g->queues[side];
  if (q->n == q->cap) {
    if (q->read > q->n / 2) {
      memmove(q->at, q->at + q->read, (q->n - q->read) * sizeof *q->at);
      q->n -= q->read;
      q->read = 0;
    } else {
      q->cap = q->cap ? 2 * q->cap : 1024;
      q->at = (work *)cli_resize(q->at, q->cap, sizeof *q->at);
    }
  }
  if ((w->docs || w->hits) && q->read) q->at[--q->read] = *w;
  else q->at[q->n++] = *w;
  pthread_cond_signal(&g->work[side]);
}

/* Takes work, waiting for it; 0: the pool stops, and nothing waits or will. The lock is held. */
static int take(griffin *g, int side, work *w) {
  queue *q = &g->queues[side];
  while (q->read == q->n && !(g->stopping && (side == GPU || !g->driving))) pthread_cond_wait(&g->work[side], &g->lock);
  if (q->read == q->n) return 0;
  *w = q->at[q->read++];
  if (!w->docs && !w->hits) w->task->started = cli_nanoseconds();
  return 1;
}

/* Returns whether the next intersection of a query is one for the GPU: `left` candidates with a list of n. */
static int is_near(const settings *s, uint32_t left, uint32_t n) { return (double)n < s->ratio * (double)left; }

static uint32_t length_of(const settings *s, const work *w, unsigned list) {
  return s->lists.list[s->lists.query[w->query].member[list]].n;
}

static int griffin_submit(void *state, gpuir_task *task) {
  griffin *g = (griffin *)state;
  const settings *s = g->set;
  const load_job *j = (const load_job *)task->user;
  work w = {task, j->query, NULL, 0, 1, NULL};
  const unsigned k = s->lists.query[j->query].k;
  int side = s->mode == ONLY_GPU && k ? GPU : CPU;
  if (s->mode == GRIFFIN && k > 1 && is_near(s, length_of(s, &w, 0), length_of(s, &w, 1))) side = GPU;
  pthread_mutex_lock(&g->lock);
  g->set->tally.begun[side]++;
  push(g, side, &w);
  pthread_mutex_unlock(&g->lock);
  return GPUIR_OK;
}

static void griffin_stop(void *state) {
  griffin *g = (griffin *)state;
  pthread_mutex_lock(&g->lock);
  g->stopping = 1;
  for (int i = 0; i < 2; i++) pthread_cond_broadcast(&g->work[i]);
  pthread_mutex_unlock(&g->lock);
}

/* Returns why a query is not gone on with: its deadline, its flag, or that the pool stops. */
static int over(const griffin *g, const gpuir_task *t) {
  if (__atomic_load_n(&g->stopping, __ATOMIC_RELAXED)) return GPUIR_E_CANCELLED;
  if (t->cancel && __atomic_load_n(t->cancel, __ATOMIC_RELAXED)) return GPUIR_E_CANCELLED;
  return t->deadline && cli_nanoseconds() > t->deadline ? GPUIR_E_DEADLINE : GPUIR_OK;
}

/* Completes a query, whose hits are written. */
static void complete(griffin *g, work *w, int status) {
  const unsigned k = g->set->lists.query[w->query].k, class_ = k < CLASSES ? k : CLASSES - 1;
  free(w->docs);
  free(w->hits);
  pthread_mutex_lock(&g->lock);
  load_record(&g->set->latency[class_], cli_nanoseconds() - w->task->due);
  pthread_mutex_unlock(&g->lock);
  gpuir_pool_complete(g->pool, w->task, status);
}

/* ---- cores ----------------------------------------------------------------------------------------------------- */

/* Goes on with a query where it is, to its end. */
static void finish(griffin *g, work *w) {
  const lab_and *a = g->set->lists.ands[w->query];
  const int status = over(g, w->task);
  if (!status && !a->empty && !w->docs && !w->hits) {
    w->n = a->list[0].df;
    w->docs = (uint32_t *)cli_resize(NULL, (size_t)w->n + LAB_BLOCK_ROOM, sizeof *w->docs);
    load_decode(a, 0, w->docs);
  }
  for (; !status && !a->empty && w->done < a->n && w->n; w->done++) w->n = load_filter(a, w->done, w->docs, w->n);
  if (!status && w->hits) w->task->count = w->n ? lab_best(w->hits, w->n, w->task->k, w->task->hits) : 0;
  else if (!status) w->task->count = a->empty ? 0 : load_rank(a, w->docs, w->n, w->task->k, w->task->hits);
  complete(g, w, status);
}

static void core_work(griffin *g) {
  work w;
  for (;;) {
    pthread_mutex_lock(&g->lock);
    const int more = take(g, CPU, &w);
    pthread_mutex_unlock(&g->lock);
    if (!more) return;
    finish(g, &w);
  }
}

/* ---- the device ------------------------------------------------------------------------------------------------ */

/* A query on its way through the device. */
typedef struct passage {
  gpuir_cuda_lab *lab; /* NULL: this thread stands for the device */
  gpuir_cuda *cuda; /* the index on the device, which scores there; NULL: cores do */
  work *w;
  const settings *set;
  uint32_t left;
} passage;

static int passage_begin(passage *p, gpuir_error *err) {
  const load_members *m = &p->set->lists.query[p->w->query];
  const lab_and *a = p->set->lists.ands[p->w->query];
  gpuir_cuda_lab_way way;
  p->left = a->list[0].df;
  memset(&way, 0, sizeof way);
  way.method = p->set->mode == ONLY_GPU ? "griffin" : "mergepath";
  way.coded = 1;
  way.crossover = p->set->ratio;
  if (p->lab) return gpuir_cuda_lab_begin(p->lab, m->member, m->k, &way, err);
  p->w->docs = (uint32_t *)cli_resize(NULL, (size_t)p->left + LAB_BLOCK_ROOM, sizeof *p->w->docs);
  load_decode(a, 0, p->w->docs);
  return GPUIR_OK;
}

/* Intersects with the next list, and looks for its count without sleeping. */
static int passage_round(passage *p, gpuir_error *err) {
  if (!p->lab) {
    p->left = load_filter(p->set->lists.ands[p->w->query], p->w->done, p->w->docs, p->left);
    return GPUIR_OK;
  }
  int status = gpuir_cuda_lab_next(p->lab, err);
  while (!status) {
    const int is = gpuir_cuda_lab_poll(p->lab, &p->left, err);
    if (is > 0) return GPUIR_OK;
    status = is;
  }
  return status;
}

/* Fetches what is left of the query: if its lists are done, with scores. */
static int passage_fetch(passage *p, gpuir_error *err) {
  p->w->n = p->left;
  if (!p->lab) return GPUIR_OK;
  if (p->cuda && p->w->done == p->set->lists.query[p->w->query].k) {
    p->w->hits = (gpuir_hit *)cli_resize(NULL, (size_t)p->left + 1, sizeof *p->w->hits);
    return p->left ? gpuir_cuda_lab_score(p->lab, p->cuda, p->w->task->query, p->w->hits, err) : GPUIR_OK;
  }
  p->w->docs = (uint32_t *)cli_resize(NULL, (size_t)p->left + 1, sizeof *p->w->docs);
  return p->left ? gpuir_cuda_lab_fetch(p->lab, p->w->docs, err) : GPUIR_OK;
}

/* Runs a query on the device until it is done or better gone on with by the CPU. A status. */
static int passage_run(passage *p, tally *t, gpuir_error *err) {
  const unsigned k = p->set->lists.query[p->w->query].k;
  int status = passage_begin(p, err);
  while (!status && p->w->done < k && p->left) {
    const int near_ = is_near(p->set, p->left, length_of(p->set, p->w, p->w->done));
    if (p->set->mode == GRIFFIN && !near_) break;
    status = passage_round(p, err);
    p->w->done++;
    t->rounds++;
    t->near_ += (uint64_t)near_;
  }
  const uint64_t since = cli_nanoseconds();
  if (!status) status = passage_fetch(p, err);
  if (p->w->done < k && p->left) {
    t->moved++;
    t->rounds_moved += p->w->done - 1;
    t->hand_over_ns += (double)(cli_nanoseconds() - since);
  }
  return status;
}

static void driver_work(griffin *g, unsigned stream) {
  const settings *s = g->set;
  for (;;) {
    gpuir_error err;
    tally t;
    work w;
    passage p = {s->labs ? s->labs[stream] : NULL, g->cuda, &w, s, 0};
    memset(&t, 0, sizeof t);
    pthread_mutex_lock(&g->lock);
    const int more = take(g, GPU, &w);
    if (!more) {
      g->driving--;
      pthread_cond_broadcast(&g->work[CPU]);
    }
    pthread_mutex_unlock(&g->lock);
    if (!more) return;
    if (!over(g, w.task) && passage_run(&p, &t, &err)) { /* a core does what the device failed on */
      free(w.docs);
      free(w.hits);
      w.docs = NULL;
      w.hits = NULL;
      w.done = 1;
    }
    pthread_mutex_lock(&g->lock);
    g->set->tally.moved += t.moved;
    g->set->tally.rounds += t.rounds;
    g->set->tally.rounds_moved += t.rounds_moved;
    g->set->tally.near_ += t.near_;
    g->set->tally.hand_over_ns += t.hand_over_ns;
    push(g, CPU, &w);
    pthread_mutex_unlock(&g->lock);
  }
}

static void griffin_work(void *state, unsigned thread) {
  griffin *g = (griffin *)state;
  if (thread < g->cores) core_work(g);
  else driver_work(g, thread - g->cores);
}

/* ---- making and unmaking --------------------------------------------------------------------------------------- */

static void griffin_destroy(void *state) {
  griffin *g = (griffin *)state;
  for (int i = 0; i < 2; i++) {
    free(g->queues[i].at);
    pthread_cond_destroy(&g->work[i]);
  }
  pthread_mutex_destroy(&g->lock);
  free(g);
}

static int griffin_create(gpuir_pool *pool, void **state, gpuir_error *err) {
  const load_setup *setup = (const load_setup *)gpuir_pool_user(pool);
  griffin *g = (griffin *)cli_resize(NULL, 1, sizeof *g);
  (void)err;
  memset(g, 0, sizeof *g);
  g->pool = pool;
  g->set = (settings *)setup->scheduling;
  g->cuda = g->set->scored ? NULL : setup->gpu.cuda;
  memset(&g->set->tally, 0, sizeof g->set->tally);
  memset(g->set->latency, 0, CLASSES * sizeof *g->set->latency);
  g->cores = (unsigned)setup->threads;
  g->streams = g->driving = gpuir_pool_threads(pool) - g->cores;
  pthread_mutex_init(&g->lock, NULL);
  for (int i = 0; i < 2; i++) pthread_cond_init(&g->work[i], NULL);
  *state = g;
  return GPUIR_OK;
}

/* ---- the scheduler --------------------------------------------------------------------------------------------- */

static void *griffin_make(void) {
  settings *s = (settings *)cli_resize(NULL, 1, sizeof *s);
  memset(s, 0, sizeof *s);
  s->ratios[0] = USUAL_RATIO;
  s->nmodes = s->nratios = 1;
  s->streams = 1;
  s->latency = (load_histogram *)cli_resize(NULL, CLASSES, sizeof *s->latency);
  return s;
}

static int griffin_param(void *settings_, const char *p) {
  settings *s = (settings *)settings_;
  return load_choices(p, "mode", "griffin|gpu|cpu", s->modes, &s->nmodes) ||
          load_choice(p, "lists", "resident|transfer", &s->sent) ||
          load_choice(p, "scores", "device|core", &s->scored) ||
          load_numbers(p, "ratio", 1, 1e9, s->ratios, MOST_RATIOS, &s->nratios) ||
          load_number(p, "streams", 1, 16, &s->streams)
      ? 0
      : -1;
}

static unsigned griffin_threads(const load_setup *setup) {
  const settings *s = (const settings *)setup->scheduling;
  return (unsigned)setup->threads + (s->mode == ONLY_CPU ? 0 : (unsigned)s->streams);
}

/* Returns whether any of the modes needs the device. */
static int griffin_device(const void *set, uint64_t *memory) {
  const settings *s = (const settings *)set;
  int needed = 0;
  (void)memory;
  for (size_t i = 0; i < s->nmodes; i++) needed |= s->modes[i] != ONLY_CPU;
  return needed;
}

static size_t griffin_vary(void *set, size_t i, char *name, size_t cap) {
  settings *s = (settings *)set;
  s->mode = s->modes[i / s->nratios];
  s->ratio = s->ratios[i % s->nratios];
  const int n = snprintf(name, cap, "griffin/%s/%s", mode_names[s->mode], send_names[s->sent]);
  if (s->ratio != USUAL_RATIO) snprintf(name + n, cap - (size_t)n, "/%.6g", s->ratio);
  return s->nmodes * s->nratios;
}

/* Figure 11: how many terms queries have. */
static void tell_terms(const settings *s, lab_report *report) {
  for (unsigned k = 1; k <= LAB_AND_TERMS; k++) {
    size_t n = 0;
    for (size_t q = 0; q < s->lists.nqueries; q++) n += s->lists.query[q].k == k;
    if (n) lab_row_at(report, "griffin-fig11", "queries", k, 100 * (double)n / (double)s->lists.nqueries, "percent");
  }
}

static int griffin_prepare(load_setup *setup, lab_report *report) {
  settings *s = (settings *)setup->scheduling;
  uint64_t memory;
  const int device = griffin_device(s, &memory) && setup->gpu.cuda;
  lab_gpu_size size;
  int code = load_lists_read(setup, device, &s->lists);
  lab_note(report, "griffin",
      "lists %s, from the GPU to the CPU at a ratio of %.6g%s, %.0f streams, whose drivers spin; what ends on the GPU "
      "is "
      "scored by %s; queries have two lists or more, as the rule compares two",
      s->sent ? "sent for each query, whole for MergePath, and for a search by skip pointers these and the blocks that "
                "may hold candidates"
              : "resident",
      s->ratios[0], s->nratios > 1 ? " and others" : "", s->streams,
      s->scored ? "a core" : "it, with frequencies and lengths that are resident");
  memset(&size, 0, sizeof size);
  size.room = s->lists.longest + 2 * (uint64_t)LAB_BLOCK;
  size.queries = 1;
  size.terms = LAB_AND_TERMS;
  if (code == CLI_OK) tell_terms(s, report);
  if (code != CLI_OK || !device || !s->lists.n) return code;
  s->labs = (gpuir_cuda_lab **)cli_resize(NULL, (size_t)s->streams, sizeof *s->labs);
  memset((void *)s->labs, 0, (size_t)s->streams * sizeof *s->labs);
  for (unsigned i = 0; i < (unsigned)s->streams && code == CLI_OK; i++)
    code = load_lists_send(&s->lists, "ef", &size, s->sent, &s->labs[i]);
  return code;
}

/* Milliseconds. Queries of one client do not wait for each other, so their 95 % interval is told. */
static lab_spread latency_of(const load_run *run, const load_histogram *h, double percent) {
  lab_spread s = lab_scaled(load_interval(h, percent), 1e-6);
  if (run->rate > 0) {
    s.least = s.most = s.median;
    s.n = 1;
  }
  return s;
}

/* Figures 14 and 15: of one client, or under a rate of arrivals, which is then in the name of the series. */
static void tell_latencies(const settings *s, lab_report *report, const load_run *run, const load_result *x) {
  static const double percent[] = {80, 90, 95, 99, 99.9};
  const load_histogram *all = &x->latency[LOAD_KINDS];
  char name[96], at[16];
  const int n = snprintf(name, sizeof name, "%s/%s", mode_names[s->mode], send_names[s->sent]);
  const int m = s->ratio == USUAL_RATIO ? 0 : snprintf(name + n, sizeof name - (size_t)n, "/%.6g", s->ratio);
  if (run->rate > 0) snprintf(name + n + m, sizeof name - (size_t)(n + m), "@%.6g", run->rate);
  for (unsigned k = 1; k < CLASSES; k++) {
    snprintf(at, sizeof at, k < CLASSES - 1 ? "%u" : ">%u", k < CLASSES - 1 ? k : k - 1);
    if (s->latency[k].n) lab_row_of(report, "griffin-fig14", name, at, latency_of(run, &s->latency[k], -1), "ms");
  }
  lab_row_of(report, "griffin-fig14", name, "all", latency_of(run, all, -1), "ms");
  for (size_t i = 0; i < sizeof percent / sizeof *percent; i++) {
    if (percent[i] > 99 && all->n < TAIL) continue;
    snprintf(at, sizeof at, "%.6g", percent[i]);
    lab_row_of(report, "griffin-fig15", name, at, latency_of(run, all, percent[i]), "ms");
  }
}

static void griffin_tell(const load_setup *setup, lab_report *report, const load_run *run, const load_result *x) {
  const settings *s = (const settings *)setup->scheduling;
  const tally *t = &s->tally;
  const double n = (double)(t->begun[CPU] + t->begun[GPU]), moved = (double)t->moved;
  if (setup->serial || run->rate > 0) tell_latencies(s, report, run, x);
  lab_row_at(report, "griffin-moves", "begun/GPU", run->rate, 100 * (double)t->begun[GPU] / n, "percent");
  lab_row_at(report, "griffin-moves", "moved", run->rate, 100 * moved / n, "percent");
  if (t->rounds)
    lab_row_at(report, "griffin-moves", "near", run->rate, 100 * (double)t->near_ / (double)t->rounds, "percent");
  lab_note(report, "griffin run",
      "%llu queries begun on the GPU, %llu on the CPU, %llu moved; %llu intersections on the "
      "GPU, %llu of them below the ratio; %.4g rounds before a move, %.4g us to hand one over",
      (unsigned long long)t->begun[GPU], (unsigned long long)t->begun[CPU], (unsigned long long)t->moved,
      (unsigned long long)t->rounds, (unsigned long long)t->near_, moved > 0 ? (double)t->rounds_moved / moved : 0,
      moved > 0 ? t->hand_over_ns / moved / 1e3 : 0);
}

static void griffin_free(void *settings_) {
  settings *s = (settings *)settings_;
  if (!s) return;
  for (unsigned i = 0; s->labs && i < (unsigned)s->streams; i++) gpuir_cuda_lab_close(s->labs[i]);
  free((void *)s->labs);
  load_lists_free(&s->lists);
  free(s->latency);
  free(s);
}

static const gpuir_policy policy = {"griffin", griffin_create, griffin_submit, griffin_work, griffin_stop,
    griffin_destroy};

const load_scheduler load_griffin = {&policy,
    "mode=griffin|gpu|cpu,..., lists=resident|transfer, scores=device|core, ratio=X,..., "
    "streams=N",
    2, griffin_make, griffin_param, griffin_threads, griffin_device, griffin_prepare, griffin_vary, griffin_tell,
    griffin_free};
