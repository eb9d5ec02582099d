/* ding.c - whole queries on the CPU or on the GPU, by three queues (Ding, He, Yan, Suel: Using graphics processors for
 * high performance IR query processing, WWW 2009, sections 5 and 9):
 *
 *     ding:mode=parallel     both work, each on what suits it, on what neither is much better at, and on what it steals
 *     ding:mode=cpu, gpu     one of them alone
 *     ding:mode=serialized   the better one, a query at a time
 *
 * Several modes, parted by commas, run one after the other with the same costs.
 *
 * What a query costs either is learned before (ding_costs.c), the order is that of ding_queues.c. A thread of the pool
 * is a core of the CPU or drives a stream of the GPU: with two streams the lists that one query lacks are sent while
 * another query runs, as the cache of the backend holds no lock meanwhile.
 */
#include "ding_costs.h"
#include "flight.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#define USUAL_DEADLINE 500e6 /* ns, the paper's */

/* What a side did. */
typedef struct tally {
  uint64_t jobs, why[DING_WHYS]; /* why: DING_OWN ... */
  double error; /* of the costs that were predicted, relative, added up */
} tally;

typedef struct settings {
  ding_rules rules;
  ding_learning learning;
  ding_costs *costs;
  double streams, batch, train, passes, memory; /* memory: MiB of the device for lists; 0: as many as there are */
  int scale, paper, modes[4]; /* paper: the device goes by the paper's methods; modes: of the variants */
  size_t nmodes;
  /* Of a run, under its lock. */
  tally side[DING_SIDES];
  uint64_t locked, waited, looked; /* ns that somebody held the lock, that servers waited for it; see ding_looked */
  gpuir_cuda_info before;
  int cached; /* `before` is filled */
} settings;

static const char *const mode_names[] = {"parallel", "cpu", "gpu", "serialized"};

/* ---- a pool's threads ------------------------------------------------------------------------------------------ */

typedef struct job {
  gpuir_task *task;
  double cost; /* where it runs */
} job;

typedef struct server {
  unsigned side;
  gpuir_searcher *searcher, *cpu; /* cpu: of a stream's, answers what the device failed on */
  load_flight flight; /* of a stream */
  job *jobs; /* [most], [n] of them it has, which took it `ns` each */
  size_t n, most;
  double ns;
} server;

/* A query that came and stands in no queue yet. */
typedef struct arrival {
  struct arrival *next; /* that came before it */
  gpuir_task *task;
  double cost[DING_SIDES];
} arrival;

typedef struct ding {
  gpuir_pool *pool;
  const load_setup *setup;
  settings *set;
  ding_queues *queues;
  server *servers; /* [n] those of the CPU first */
  unsigned n;
  int stopping; /* atomic */
  uint64_t since; /* when the lock was taken */
  pthread_mutex_t lock;
  arrival *come; /* the last one first; atomic, as whoever submits must not wait for the lock */
  int idle[DING_SIDES]; /* atomic: servers that wait, or are about to, and that nobody has woken */
  sem_t work[DING_SIDES];
} ding;

/* Takes one of those that wait off their number. Returns 0 if there is none. */
static int claim_idle(ding *d, unsigned side) {
  int n = __atomic_load_n(&d->idle[side], __ATOMIC_SEQ_CST);
  while (n > 0)
    if (__atomic_compare_exchange_n(&d->idle[side], &n, n - 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return 1;
  return 0;
}

/* Wakes a server of a side, if one waits. */
static void wake(ding *d, unsigned side) {
  if (claim_idle(d, side)) sem_post(&d->work[side]);
}

/* Leaves a query to the server that looks for work next: costs and queues are no business of the thread that submits,
 * which would come late with the next one. */
static int ding_submit(void *state, gpuir_task *task) {
  ding *d = (ding *)state;
  arrival *a = (arrival *)cli_resize(NULL, 1, sizeof *a);
  a->task = task;
  a->next = __atomic_load_n(&d->come, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&d->come, &a->next, a, 1, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) continue;
  for (unsigned s = 0; s < DING_SIDES; s++) wake(d, s);
  return GPUIR_OK;
}

/* The lock says how long it is held and waited for: where queries take microseconds, it bounds what is answered. */
static void lock(ding *d) {
  const uint64_t since = cli_nanoseconds();
  pthread_mutex_lock(&d->lock);
  d->since = cli_nanoseconds();
  d->set->waited += d->since - since;
}

static void unlock(ding *d) {
  d->set->locked += cli_nanoseconds() - d->since;
  pthread_mutex_unlock(&d->lock);
}

/* Takes the queries that came, the first one first, with their costs. The lock is not held: costs take longer than
 * queues. */
static arrival *take_arrivals(ding *d) {
  arrival *a = __atomic_exchange_n(&d->come, NULL, __ATOMIC_SEQ_CST), *first = NULL, *next;
  for (; a; a = next) {
    next = a->next;
    a->next = first;
    first = a;
    for (unsigned s = 0; s < DING_SIDES; s++) a->cost[s] = ding_cost(d->set->costs, s, a->task->query);
  }
  return first;
}

/* Puts arrivals into the queues. The lock is held. Returns how many they are. */
static size_t sort_in(ding *d, const arrival *a) {
  size_t n = 0;
  for (; a; a = a->next, n++) ding_add(d->queues, a->task, a->cost, a->task->due);
  return n;
}

static void free_arrivals(arrival *a) {
  for (arrival *next; a; a = next) {
    next = a->next;
    free(a);
  }
}

static void ding_stop(void *state) {
  ding *d = (ding *)state;
  __atomic_store_n(&d->stopping, 1, __ATOMIC_SEQ_CST);
  for (unsigned s = 0; s < DING_SIDES; s++)
    while (claim_idle(d, s)) sem_post(&d->work[s]);
}

/* Completes what waits when the pool stops. */
static void cancel_all(ding *d) {
  gpuir_task *task;
  do {
    arrival *a = take_arrivals(d);
    lock(d);
    sort_in(d, a);
    task = (gpuir_task *)ding_take_any(d->queues);
    unlock(d);
    free_arrivals(a);
    if (task) gpuir_pool_complete(d->pool, task, GPUIR_E_CANCELLED);
  } while (task);
}

/* Notes what a server's jobs have cost; it has none then. The lock is held. Returns how many they were. */
static size_t note_jobs(ding *d, server *s) {
  const size_t n = s->n;
  for (size_t i = 0; i < n; i++) {
    ding_done(d->queues, s->side, s->jobs[i].cost);
    d->set->side[s->side].error += fabs(s->jobs[i].cost - s->ns) / (s->ns > 1 ? s->ns : 1);
  }
  s->n = 0;
  return n;
}

/* Takes jobs for a server that has none. The lock is held. */
static void choose_jobs(ding *d, server *s) {
  for (; s->n < s->most; s->n++) {
    job *j = &s->jobs[s->n];
    int why;
    j->task = (gpuir_task *)ding_take(d->queues, s->side, cli_nanoseconds(), &j->cost, &why);
    if (!j->task) break;
    d->set->side[s->side].jobs++;
    d->set->side[s->side].why[why]++;
  }
  d->set->looked = ding_looked(d->queues);
}

/* Whether a server of a side waits that has something to do. The lock is held. */
static int may_wake(ding *d, unsigned side) {
  return __atomic_load_n(&d->idle[side], __ATOMIC_SEQ_CST) > 0 && ding_has(d->queues, side, cli_nanoseconds());
}

static int stops(const ding *d) { return __atomic_load_n(&d->stopping, __ATOMIC_SEQ_CST); }

/* Notes the jobs that a server did, sorts in what came, and takes its next jobs, all in one turn under the lock; a
 * server that gets none counts as idle. Returns how many it has. Who was woken by an arrival may have looked before
 * that stood in a queue, and one at a time may run the next one: so this wakes who has something to do now. */
static size_t take_jobs(ding *d, server *s) {
  arrival *a = take_arrivals(d);
  int wakes[DING_SIDES];
  lock(d);
  const size_t noted = note_jobs(d, s), came = sort_in(d, a);
  const size_t news = came + (d->set->rules.mode == DING_SERIALIZED ? noted : 0);
  if (!stops(d)) choose_jobs(d, s);
  for (unsigned side = 0; side < DING_SIDES; side++) wakes[side] = news && may_wake(d, side);
  if (!s->n) __atomic_add_fetch(&d->idle[s->side], 1, __ATOMIC_SEQ_CST);
  unlock(d);
  for (unsigned side = 0; side < DING_SIDES; side++)
    for (size_t i = 0; wakes[side] && i < news; i++) wake(d, side);
  free_arrivals(a);
  return s->n;
}

/* Waits for jobs. 0: the pool stops. */
static size_t take_patiently(ding *d, server *s) {
  while (!take_jobs(d, s)) {
    if (stops(d)) {
      cancel_all(d);
      return 0;
    }
    /* What came before it counted as idle may have woken nobody. */
    if (__atomic_load_n(&d->come, __ATOMIC_SEQ_CST) && claim_idle(d, s->side)) continue;
    while (sem_wait(&d->work[s->side])) continue;
  }
  return s->n;
}

/* The life of a core. */
static void core_work(ding *d, server *s) {
  while (take_patiently(d, s)) {
    const uint64_t since = cli_nanoseconds();
    const int status = gpuir_pool_answer(s->searcher, s->jobs[0].task);
    s->ns = (double)(cli_nanoseconds() - since);
    gpuir_pool_complete(d->pool, s->jobs[0].task, status);
  }
}

/* The life of a stream's driver, which looks whether its batch is done without sleeping. */
static void stream_work(ding *d, server *s) {
  while (take_patiently(d, s)) {
    s->flight.n = 0;
    for (size_t i = 0; i < s->n; i++) load_flight_add(&s->flight, s->jobs[i].task);
    const uint64_t since = cli_nanoseconds();
    load_flight_begin(&s->flight, s->searcher, d->pool, s->cpu);
    while (s->flight.batch && !load_flight_look(&s->flight, d->pool, s->cpu)) sched_yield();
    s->ns = (double)(cli_nanoseconds() - since) / (double)s->n;
  }
}

static void ding_work(void *state, unsigned thread) {
  ding *d = (ding *)state;
  if (thread >= d->n) return;
  if (d->servers[thread].side == DING_CPU) core_work(d, &d->servers[thread]);
  else stream_work(d, &d->servers[thread]);
}

/* ---- making and unmaking --------------------------------------------------------------------------------------- */

static void ding_destroy(void *state) {
  ding *d = (ding *)state;
  for (unsigned i = 0; i < d->n; i++) {
    gpuir_searcher_destroy(d->servers[i].searcher);
    gpuir_searcher_destroy(d->servers[i].cpu);
    load_flight_free(&d->servers[i].flight);
    free(d->servers[i].jobs);
  }
  ding_close(d->queues);
  free(d->servers);
  pthread_mutex_destroy(&d->lock);
  for (unsigned s = 0; s < DING_SIDES; s++) sem_destroy(&d->work[s]);
  free(d);
}

static int server_open(const ding *d, server *s, unsigned side, gpuir_error *err) {
  s->side = side;
  s->most = side == DING_CPU ? 1 : (size_t)d->set->batch;
  s->jobs = (job *)cli_resize(NULL, s->most, sizeof *s->jobs);
  int status = gpuir_searcher_create(d->setup->index, NULL, &s->searcher, err);
  if (status || side == DING_CPU) return status;
  load_flight_make(&s->flight, s->most, d->setup->k);
  status = gpuir_searcher_create(d->setup->index, NULL, &s->cpu, err);
  return status ? status : load_attach((void *)(uintptr_t)d->setup, s->searcher, err);
}

static int ding_create(gpuir_pool *pool, void **state, gpuir_error *err) {
  ding *d = (ding *)cli_resize(NULL, 1, sizeof *d);
  int status = GPUIR_OK;
  memset(d, 0, sizeof *d);
  d->pool = pool;
  d->setup = (const load_setup *)gpuir_pool_user(pool);
  d->set = (settings *)d->setup->scheduling;
  memset(d->set->side, 0, sizeof d->set->side);
  d->set->locked = d->set->waited = d->set->looked = 0;
  d->set->cached = cli_gpu_stats(&d->setup->gpu, &d->set->before);
  d->queues = ding_open(&d->set->rules);
  d->servers = (server *)cli_resize(NULL, gpuir_pool_threads(pool), sizeof *d->servers);
  memset(d->servers, 0, gpuir_pool_threads(pool) * sizeof *d->servers);
  pthread_mutex_init(&d->lock, NULL);
  for (unsigned s = 0; s < DING_SIDES; s++) sem_init(&d->work[s], 0, 0);
  for (unsigned s = 0; s < DING_SIDES; s++)
    for (unsigned i = 0; i < d->set->rules.servers[s] && !status; i++)
      status = server_open(d, &d->servers[d->n++], s, err);
  if (status) ding_destroy(d);
  else *state = d;
  return status;
}

/* ---- the scheduler --------------------------------------------------------------------------------------------- */

static void *ding_make(void) {
  settings *s = (settings *)cli_resize(NULL, 1, sizeof *s);
  memset(s, 0, sizeof *s);
  s->rules.theta = 0.2;
  s->rules.urgent = 0.5;
  s->rules.weight[0] = s->rules.weight[1] = 1;
  s->rules.weight[2] = 0.5;
  s->nmodes = 1;
  s->streams = 2;
  s->batch = 1;
  s->train = 3000;
  s->passes = 5;
  return s;
}

static int ding_param(void *settings_, const char *p) {
  settings *s = (settings *)settings_;
  ding_rules *r = &s->rules;
  if (!strcmp(p, "adaptive")) return r->adaptive = 1, 0;
  const int known = load_choices(p, "mode", "parallel|cpu|gpu|serialized", s->modes, &s->nmodes) ||
      load_choice(p, "steal", "fair|plain", &r->plain) || load_choice(p, "scale", "log|linear", &s->scale) ||
      load_choice(p, "gpu", "engine|pmf3+tree", &s->paper) || load_number(p, "theta", 0, 10, &r->theta) ||
      load_number(p, "urgent", 0, 1, &r->urgent) || load_number(p, "cost", 0, 1000, &r->weight[0]) ||
      load_number(p, "slack", 0, 1000, &r->weight[1]) || load_number(p, "affinity", 0, 1000, &r->weight[2]) ||
      load_number(p, "streams", 1, 64, &s->streams) || load_number(p, "batch", 1, 65536, &s->batch) ||
      load_number(p, "train", 1, 1e6, &s->train) || load_number(p, "passes", 1, 99, &s->passes) ||
      load_number(p, "memory", 1, 1e6, &s->memory);
  return known ? 0 : -1;
}

/* Serialized, a core and a stream are enough. */
static unsigned servers_of(const load_setup *setup, int mode, unsigned side) {
  const settings *s = (const settings *)setup->scheduling;
  if (mode == (side == DING_CPU ? DING_ONLY_GPU : DING_ONLY_CPU)) return 0;
  if (mode == DING_SERIALIZED) return 1;
  return side == DING_CPU ? (unsigned)setup->threads : (unsigned)s->streams;
}

/* Returns how many servers a side has in the mode in which it has most. */
static unsigned most_servers(const load_setup *setup, unsigned side) {
  const settings *s = (const settings *)setup->scheduling;
  unsigned most = 0;
  for (size_t i = 0; i < s->nmodes; i++) {
    const unsigned n = servers_of(setup, s->modes[i], side);
    most = n > most ? n : most;
  }
  return most;
}

static unsigned ding_threads(const load_setup *setup) {
  settings *s = (settings *)setup->scheduling;
  unsigned n = 0;
  for (unsigned i = 0; i < DING_SIDES; i++) n += s->rules.servers[i] = servers_of(setup, s->rules.mode, i);
  return n;
}

static size_t ding_vary(void *set, size_t i, char *name, size_t cap) {
  settings *s = (settings *)set;
  s->rules.mode = s->modes[i];
  snprintf(name, cap, "ding/%s", mode_names[s->modes[i]]);
  return s->nmodes;
}

static int ding_device(const void *set, uint64_t *memory) {
  const settings *s = (const settings *)set;
  int needed = 0;
  for (size_t i = 0; i < s->nmodes; i++) needed |= s->modes[i] != DING_ONLY_CPU;
  *memory = (uint64_t)(s->memory * 1048576);
  return needed;
}

static int ding_prepare(load_setup *setup, lab_report *report) {
  settings *s = (settings *)setup->scheduling;
  ding_rules *r = &s->rules;
  r->deadline = setup->deadline_ns ? (double)setup->deadline_ns : USUAL_DEADLINE;
  setup->intersection = s->paper ? "pmf3" : NULL;
  setup->ranking = s->paper ? "tree" : NULL;
  s->learning.train = (size_t)s->train;
  s->learning.passes = (unsigned)s->passes;
  s->learning.linear = s->scale;
  for (unsigned i = 0; i < DING_SIDES; i++) {
    s->learning.servers[i] = most_servers(setup, i);
    s->learning.sides[i] = s->learning.servers[i] != 0;
  }
  lab_note(report, "ding",
      "theta %.3g%s, steals %s; a deadline of %.6g ms, urgent after %.3g of it; an own "
      "queue goes by %.3g cost + %.3g slack + %.3g affinity; %u cores, %u streams of batches of %.0f, whose drivers "
      "spin; costs learned from %.0f queries, medians of %.0f, all processors at work, %s; the GPU answers by %s",
      r->theta, r->adaptive ? " at first, adaptive" : "", r->plain ? "always" : "unless the owner is sooner",
      r->deadline / 1e6, r->urgent, r->weight[0], r->weight[1], r->weight[2], s->learning.servers[DING_CPU],
      s->learning.servers[DING_GPU], s->batch, s->train, s->passes, s->scale ? "as they are" : "as logarithms",
      s->paper ? "Parallel Merge Find and a tree of maxima, as the paper's does" : "the library's engine");
  return ding_learn(setup, &s->learning, report, &s->costs);
}

/* ---- what came of a run ---------------------------------------------------------------------------------------- */

/* Who answered how many queries, and why. */
static void tell_shares(const settings *s, lab_report *report, const load_run *run, const load_result *x) {
  static const char *const sides[] = {"CPU", "GPU"}, *const whys[] = {"own", "middle", "stolen", "urgent"};
  const char *mode = mode_names[s->rules.mode];
  const double n = (double)(s->side[DING_CPU].jobs + s->side[DING_GPU].jobs);
  char name[64];
  for (unsigned i = 0; i < DING_SIDES; i++) {
    const tally *t = &s->side[i];
    snprintf(name, sizeof name, "%s/%s", mode, sides[i]);
    lab_row_at(report, "ding-9-shares", name, run->rate, 100 * (double)t->jobs / n, "percent");
    if (t->jobs) lab_row_at(report, "ding-9-error", name, run->rate, 100 * t->error / (double)t->jobs, "percent");
    for (unsigned w = DING_MIDDLE; w < DING_WHYS; w++) {
      snprintf(name, sizeof name, "%s/%s/%s", mode, sides[i], whys[w]);
      lab_row_at(report, "ding-9-shares", name, run->rate, 100 * (double)t->why[w] / n, "percent");
    }
    lab_note(report, "ding side", "%s: %llu queries, %llu own, %llu of the middle, %llu stolen, %llu urgent", sides[i],
        (unsigned long long)t->jobs, (unsigned long long)t->why[DING_OWN], (unsigned long long)t->why[DING_MIDDLE],
        (unsigned long long)t->why[DING_STOLEN], (unsigned long long)t->why[DING_URGENT]);
  }
  snprintf(name, sizeof name, "%s/missed", mode);
  lab_row_at(report, "ding-9-shares", name, run->rate, 100 * (double)x->missed / (double)run->n, "percent");
}

/* Whether the one lock of the queues bounds what is answered. */
static void tell_lock(const settings *s, lab_report *report, const load_run *run, const load_result *x) {
  const double n = (double)(s->side[DING_CPU].jobs + s->side[DING_GPU].jobs);
  if (!(n > 0)) return;
  const double held = (double)s->locked / n, rate = x->achieved;
  lab_row_at(report, "ding-9-lock", mode_names[s->rules.mode], run->rate, held * rate / 1e7, "percent");
  lab_note(report, "ding lock",
      "held for %.4g us a query, %.3g %% of the time at this rate; waited for %.4g us a query; %.4g jobs a query were "
      "looked at before stealing",
      held / 1e3, held * rate / 1e7, (double)s->waited / n / 1e3, (double)s->looked / n);
}

/* What the cache of the device did in a run. */
static void tell_cache(const load_setup *setup, lab_report *report, const load_run *run) {
  const settings *s = (const settings *)setup->scheduling;
  gpuir_cuda_info now;
  if (!s->cached || !cli_gpu_stats(&setup->gpu, &now)) return;
  const double hit = (double)(now.lists_hit - s->before.lists_hit);
  const double missed = (double)(now.lists_missed - s->before.lists_missed);
  if (hit + missed > 0)
    lab_row_at(report, "ding-9-cache", mode_names[s->rules.mode], run->rate, 100 * hit / (hit + missed), "percent");
  lab_note(report, "device cache", "%.0f lists were there, %.0f were sent first, %llu bytes; %llu of %llu bytes fit",
      hit, missed, (unsigned long long)(now.bytes_sent - s->before.bytes_sent), (unsigned long long)now.resident_bytes,
      (unsigned long long)now.index_bytes);
}

static void ding_tell(const load_setup *setup, lab_report *report, const load_run *run, const load_result *x) {
  const settings *s = (const settings *)setup->scheduling;
  const char *mode = mode_names[s->rules.mode];
  const char *how = x->missed ? "/failed" : x->saturated ? "/saturated" : x->late ? "/late" : "";
  const load_histogram *all = &x->latency[LOAD_KINDS];
  char name[64];
  if (!(run->rate > 0)) lab_row(report, "ding-9-most", "at once", mode, x->achieved, "queries/s");
  if (run->rate > 0) {
    snprintf(name, sizeof name, "%s/mean%s", mode, how);
    lab_row_at(report, "ding-fig7", name, run->rate, load_mean(all) / 1e6, "ms");
    snprintf(name, sizeof name, "%s/p99%s", mode, how);
    lab_row_at(report, "ding-fig7", name, run->rate, (double)load_percentile(all, 99) / 1e6, "ms");
  }
  tell_shares(s, report, run, x);
  tell_lock(s, report, run, x);
  tell_cache(setup, report, run);
}

static void ding_free(void *settings_) {
  settings *s = (settings *)settings_;
  if (s) ding_costs_free(s->costs);
  free(s);
}

static const gpuir_policy policy = {"ding", ding_create, ding_submit, ding_work, ding_stop, ding_destroy};

const load_scheduler load_ding = {&policy,
    "mode=parallel|cpu|gpu|serialized,..., theta=X, adaptive, steal=fair|plain, urgent=X, cost=X, slack=X, affinity=X, "
    "streams=N, batch=N, train=N, passes=N, scale=log|linear, memory=MiB, gpu=engine|pmf3+tree",
    0, ding_make, ding_param, ding_threads, ding_device, ding_prepare, ding_vary, ding_tell, ding_free};
