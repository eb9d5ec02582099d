/* openloop.c - one run of gpuir lab load: queries arrive by a Poisson process that a seed determines, whether or not
 * those before them are answered, and what users wait for counts from when a query is due. So a system that stalls is
 * not spared the queries that would have come meanwhile.
 */
#define _GNU_SOURCE /* sched_setaffinity */
#include "load.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

/* So long before a query is due the generator stops sleeping, and looks at the clock alone: where it has a processor of
 * its own, and where threads of the pool would use that processor meanwhile. On a virtual machine a sleep may end
 * 200 us late. */
#define SPIN_NS 500000
#define SHARED_SPIN_NS 5000

/* With so many processors or more a device's driver has one of its own too. */
#define DRIVEN_PROCESSORS 8u

/* Where the processors lie that the program may use: those of the generator and of the driver are apart, as neighbours
 * often share a core. */
static int is_for(int what, unsigned i, unsigned n, int device) {
  const int generator = i == n - 1, driver = device && n >= DRIVEN_PROCESSORS && i == n - 4;
  return what == LOAD_GENERATOR ? generator : what == LOAD_DRIVER ? driver : !generator && !driver;
}

void load_pin(int what, int device) {
  static cpu_set_t allowed; /* as the program was started */
  static unsigned n;
  cpu_set_t set;
  if (!n && (sched_getaffinity(0, sizeof allowed, &allowed) || !(n = (unsigned)CPU_COUNT(&allowed)))) return;
  if (n < 2 || (what == LOAD_DRIVER && n < DRIVEN_PROCESSORS)) return;
  CPU_ZERO(&set);
  for (unsigned i = 0, at = 0; at < CPU_SETSIZE; at++)
    if (CPU_ISSET(at, &allowed) && is_for(what, i++, n, device)) CPU_SET(at, &set);
  (void)sched_setaffinity(0, sizeof set, &set); /* where that is not allowed, threads go where they are put */
}

/* In (0, 1]. */
static double draw_unit(uint64_t *state) { return (double)((cli_random(state) >> 11) + 1) / 9007199254740992.0; }

/* Lays the tasks out: which query, and when it is due, in ns from the start. */
static void lay_out(const load_setup *s, const load_run *r, load_job *jobs, gpuir_hit *hits) {
  const size_t n = r->n + r->warm;
  uint64_t state = r->seed;
  double due = 0;
  memset(jobs, 0, n * sizeof *jobs);
  for (size_t i = 0; i < n; i++) {
    load_job *j = &jobs[i];
    j->query = (size_t)((r->offset + i) % s->nqueries);
    j->task.query = s->queries[j->query].query;
    j->task.k = s->k;
    j->task.hits = hits + i * s->k;
    j->task.user = j;
    if (r->rate > 0) due += -log(draw_unit(&state)) / r->rate * 1e9;
    j->task.due = (uint64_t)due;
  }
}

/* Waits until `due`, spinning at the end, and returns what time it is. */
static uint64_t wait_until(uint64_t due, uint64_t spin) {
  uint64_t now = cli_nanoseconds();
  if (due > now + spin) {
    struct timespec t;
    t.tv_sec = (time_t)((due - spin) / 1000000000u);
    t.tv_nsec = (long)((due - spin) % 1000000000u);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) && !cli_signal) {}
    now = cli_nanoseconds();
  }
  while (now < due) now = cli_nanoseconds();
  return now;
}

/* Lets the calling thread run as soon as it wakes, ahead of the pool's threads, or as all others; without the right to
 * do that it stays as it is. */
static void go_first(int first) {
  struct sched_param at;
  memset(&at, 0, sizeof at);
  at.sched_priority = first ? 2 : 0; /* 1 is for whoever runs all of it so */
  (void)sched_setscheduler(0, first ? SCHED_FIFO | SCHED_RESET_ON_FORK : SCHED_OTHER, &at);
}

/* Asks for the memory of tasks that are submitted soon: a program that has just made a task, and parsed its query, has
 * both in its caches. */
static void approach(const load_job *jobs, size_t i, size_t n) {
  if (i + 16 < n) __builtin_prefetch(&jobs[i + 16].task, 1);
  if (i + 16 < n) __builtin_prefetch((const char *)&jobs[i + 16].task + 64, 1);
  if (i + 8 < n) __builtin_prefetch(jobs[i + 8].task.query);
}

/* Tasks that are submitted together at most. */
#define TOGETHER 32u

/* Waits until the first of some tasks is due, and collects it and those that are due too by then; their number. */
static size_t collect_due(const load_setup *s, const load_run *r, load_job *jobs, size_t left, uint64_t start,
    uint64_t spin, gpuir_task **tasks) {
  const uint64_t now = r->rate > 0 ? wait_until(jobs->task.due + start, spin) : cli_nanoseconds();
  const size_t most = s->serial ? 1 : left < TOGETHER ? left : TOGETHER;
  size_t n = 0;
  for (; n < most && (r->rate <= 0 || jobs[n].task.due + start <= now); n++) {
    gpuir_task *t = tasks[n] = &jobs[n].task;
    approach(jobs, n, left);
    t->due = r->rate > 0 ? t->due + start : now;
    if (s->deadline_ns) t->deadline = t->due + s->deadline_ns;
    jobs[n].pushed = now;
  }
  return n;
}

/* Submits all tasks when they are due, as a server does it that reads what has come. Exit code. */
static int submit_all(gpuir_pool *pool, const load_setup *s, const load_run *r, load_job *jobs) {
  const uint64_t start = cli_nanoseconds() + 10000000;
  const uint64_t spin = s->threads < cli_processors() ? SPIN_NS : SHARED_SPIN_NS;
  const size_t n = r->n + r->warm;
  (void)prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); /* of this thread, whose sleeps are to be exact */
  if (s->stall_ns) __atomic_store_n(&s->stall->from, start + jobs[r->warm + r->n / 2].task.due, __ATOMIC_RELAXED);
  for (size_t i = 0, together; i < n && !cli_signal; i += together) {
    gpuir_task *tasks[TOGETHER];
    size_t accepted;
    together = collect_due(s, r, jobs + i, n - i, start, spin, tasks);
    const int status = gpuir_pool_submit_many(pool, tasks, together, &accepted);
    if (status) return cli_fail(s->path, status, NULL);
    if (s->serial) (void)gpuir_pool_wait(pool, tasks[0]); /* its status is looked at with all others */
  }
  return CLI_OK;
}

/* The same; a generator without a processor of its own goes first on the one where it wakes, as requests do that a
 * machine's network card announces. */
static int generate(gpuir_pool *pool, const load_setup *s, const load_run *r, load_job *jobs) {
  const int first = r->rate > 0 && s->threads >= cli_processors();
  if (first) go_first(1);
  const int code = submit_all(pool, s, r, jobs);
  if (first) go_first(0);
  return code;
}

/* Whether a task's answer is gpuir_search's. */
static int is_right(const load_setup *s, const load_job *j) {
  const load_query *q = &s->queries[j->query];
  if (load_is_served(s->policy)) return j->matches == q->matches;
  return j->task.count == q->n && !memcmp(j->task.hits, q->hits, q->n * sizeof *q->hits);
}

/* Queries that had come and were not answered at a time. */
static uint64_t backlog_at(const load_run *r, const load_job *jobs, uint64_t when) {
  uint64_t n = 0;
  for (size_t i = 0; i < r->n + r->warm; i++) n += jobs[i].task.due <= when && jobs[i].task.finished > when;
  return n;
}

/* Queries, those that warm up too, that were answered between two times: a policy that takes what costs little first
 * may leave some of those that came first for last. */
static uint64_t answered_between(const load_run *r, const load_job *jobs, uint64_t from, uint64_t to) {
  uint64_t n = 0;
  for (size_t i = 0; i < r->n + r->warm; i++) n += jobs[i].task.finished > from && jobs[i].task.finished <= to;
  return n;
}

/* Counts the queries that came while the device was held up, and those that waited half of that or longer. */
static void count_stalled(const load_setup *s, const gpuir_task *t, load_result *result) {
  const uint64_t from = s->stall_ns ? s->stall->from : 0;
  if (!from || t->due < from || t->due >= from + s->stall_ns) return;
  result->held_up++;
  result->stalled += t->finished - t->due >= s->stall_ns / 2;
}

/* Writes the times of a query, in ns, `due` from when the first one was; jobs: all of the run. */
static void write_raw(const load_run *r, const load_job *jobs, const load_job *j, const load_setup *s) {
  static const char *const kinds[] = {"sampled", "short", "long"};
  const gpuir_task *t = &j->task;
  fprintf(r->raw, "%.6g\t%llu\t%zu\t%s\t%llu\t%llu\t%llu\t%llu\t%s\t%d\n", r->rate,
      (unsigned long long)(r->rate > 0 ? j->task.due - jobs->task.due : 0), j->query, kinds[s->queries[j->query].kind],
      (unsigned long long)(t->finished - t->due), (unsigned long long)(j->pushed - t->due),
      (unsigned long long)(t->started - t->due), (unsigned long long)(t->finished - t->started),
      t->status ? gpuir_strerror(t->status) : "ok", t->on_device);
}

/* Adds up what came of the queries behind the warm-up. */
static void add_up(const load_setup *s, const load_run *r, const load_job *jobs, load_result *result) {
  load_histogram *late = (load_histogram *)cli_resize(NULL, 1, sizeof *late);
  char *seen = (char *)cli_resize(NULL, s->nqueries, 1);
  uint64_t begun = UINT64_MAX, last = 0;
  memset(late, 0, sizeof *late);
  memset(seen, 0, s->nqueries);
  for (size_t i = r->warm; i < r->warm + r->n; i++) {
    const load_job *j = &jobs[i];
    const gpuir_task *t = &j->task;
    const uint64_t latency = t->finished - t->due;
    if (r->raw) write_raw(r, jobs, j, s);
    result->distinct += !seen[j->query];
    seen[j->query] = 1;
    load_record(late, j->pushed - t->due);
    count_stalled(s, t, result);
    if (t->status == GPUIR_E_DEADLINE || (!t->status && s->deadline_ns && latency > s->deadline_ns)) result->missed++;
    else if (t->status) result->failed++;
    else if (!is_right(s, j)) result->wrong++;
    load_record(&result->latency[s->queries[j->query].kind], latency);
    load_record(&result->latency[LOAD_KINDS], latency);
    load_record(result->wait, t->started > t->due ? t->started - t->due : 0);
    load_record(result->processing, t->started ? t->finished - t->started : 0);
    if (t->finished > last) last = t->finished;
    if (t->started && t->started < begun) begun = t->started;
  }
  const uint64_t first = jobs[r->warm].task.due, end = jobs[r->warm + r->n - 1].task.due;
  if (begun < first || begun == UINT64_MAX) begun = first; /* later, when those that warm up still waited */
  result->achieved = (double)answered_between(r, jobs, begun, last) / ((double)(last - begun) / 1e9);
  const double offered = end > first ? (double)(r->n - 1) / ((double)(end - first) / 1e9) : r->rate;
  result->backlog_half = backlog_at(r, jobs, first + (end - first) / 2);
  result->backlog_end = backlog_at(r, jobs, end);
  result->lateness = load_percentile(late, 99);
  const double allowed = 0.05 * (double)load_percentile(&result->latency[LOAD_KINDS], 99);
  const double least = (double)s->allowed_late_ns;
  result->late = r->rate > 0 && (double)result->lateness > (allowed > least ? allowed : least);
  result->saturated = r->rate > 0 &&
      ((double)result->backlog_end > (double)result->backlog_half + 0.05 * (double)r->n ||
          result->achieved < 0.98 * offered);
  free(late);
  free(seen);
}

/* Waits until the pool's device takes batches. A status, after a message. */
static int wait_for_device(gpuir_pool *pool) {
  const struct timespec moment = {0, 1000000};
  gpuir_pool_stats stats;
  do {
    (void)nanosleep(&moment, NULL);
    gpuir_pool_get_stats(pool, &stats);
  } while (!stats.devices && !stats.devices_lost);
  if (stats.devices) return GPUIR_OK;
  cli_error("no device: %s", stats.device_error.msg);
  return GPUIR_E_BACKEND;
}

int load_wake(gpuir_pool *pool, const load_setup *s) {
  gpuir_hit *hits = (gpuir_hit *)cli_resize(NULL, s->k, sizeof *hits);
  load_job job;
  memset(&job, 0, sizeof job);
  job.task.query = s->queries[0].query;
  job.task.k = s->k;
  job.task.hits = hits;
  job.task.user = &job;
  int status = gpuir_pool_submit(pool, &job.task);
  if (!status) status = gpuir_pool_wait(pool, &job.task);
  if (status == GPUIR_E_DEADLINE) status = GPUIR_OK; /* a server may have a short one */
  if (!status && s->device && !strcmp(s->policy, "auto")) status = wait_for_device(pool);
  free(hits);
  return status ? cli_fail(s->path, status, NULL) : CLI_OK;
}

int load_go(gpuir_pool *pool, const load_setup *s, const load_run *r, load_result *result) {
  const size_t n = r->n + r->warm;
  load_job *jobs = (load_job *)cli_resize(NULL, n, sizeof *jobs);
  gpuir_hit *hits = (gpuir_hit *)cli_resize(NULL, n * s->k, sizeof *hits);
  memset(result, 0, sizeof *result);
  memset(hits, 0xee, n * s->k * sizeof *hits); /* the memory is there before the clock runs */
  result->latency = (load_histogram *)cli_resize(NULL, LOAD_KINDS + 3, sizeof *result->latency);
  memset(result->latency, 0, (LOAD_KINDS + 3) * sizeof *result->latency);
  result->wait = result->latency + LOAD_KINDS + 1;
  result->processing = result->wait + 1;
  lay_out(s, r, jobs, hits);
  int code = generate(pool, s, r, jobs);
  gpuir_pool_drain(pool);
  gpuir_pool_get_stats(pool, &result->pool);
  if (code == CLI_OK && cli_signal) code = 128 + (int)cli_signal;
  if (code == CLI_OK) add_up(s, r, jobs, result);
  free(hits);
  free(jobs);
  return code;
}

void load_result_free(load_result *result) {
  free(result->latency);
  memset(result, 0, sizeof *result);
}
