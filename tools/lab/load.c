/* load.c - gpuir lab load: queries arrive at given rates, as users send them, and a pool answers them by a policy. It
 * measures what users wait for, and compares every hit with gpuir_search's.
 */
#include "load.h"
#include "energy.h"
#include "scheduler.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WARM_SECONDS 1.0
#define WARM_MOST 600000u /* where the highest rate is looked for; a pool measures meanwhile what queries cost */
#define CAPACITY_STEPS 24u
#define CAPACITY_LEAST 0.03 /* of what is answered at most: lower rates are not tried */
#define CAPACITY_EXACT 0.01 /* of it the highest rate is known to */
#define MOST_QUERIES 200000
#define VALID_TRIES 3u
#define HOLD_DEADLINES 10.0 /* that a run lasts where a deadline is to hold: a queue that grows then reaches it */
#define HOLD_STEP 1.05 /* from rate to rate */
#define HOLD_SEEDS 5u
#define HOLD_MORE 3 /* steps beyond the rates one step below and above, at most */
#define TAIL_QUERIES 100000u /* below, no percentile of 99.9 */

const lab_figure load_figures[] = {{"load-latency", "Latency from when a query is due, by the rate of arrivals",
                                       "queries a second", "milliseconds", LAB_LINES, LAB_LOG_Y, "p50,p99"},
    {"load-kind", "The same by kind of query", "queries a second", "milliseconds", LAB_LINES, LAB_LOG_Y, NULL},
    {"load-throughput", "Answers by arrivals", "queries a second", "queries a second", LAB_LINES, 0, NULL},
    {"load-processing", "Mean time from when a thread takes a query", "queries a second", "milliseconds", LAB_LINES,
        LAB_LOG_Y, NULL},
    {"load-energy", "Energy of whole processors, idle or not, for 1,000 queries", "queries a second", "joules",
        LAB_LINES, 0, NULL},
    {"load-tasks", "Tasks of FGQP by the size of a skip block", "postings", "see the rows", LAB_POINTS, LAB_LOG_X,
        NULL},
    {"load-divided", "What the division of queries permits, by processor time", "threads", "times one thread", LAB_BARS,
        0, NULL},
    {"load-capacity", "Queries a second by the p99 that is allowed", "milliseconds", "queries a second", LAB_POINTS, 0,
        NULL},
    {"load-hold", "Highest rate without a missed deadline and without a queue that grows, by seed", "seed",
        "queries a second", LAB_POINTS, 0, NULL},
    {"ding-fig7-held", "Highest rate that held: no query missed its deadline, no queue grew (Ding 2009, Fig. 7)",
        "mode", "queries a second", LAB_BARS, 0, NULL},
    {"ding-fig7", "Delay by the rate of arrivals, on CPU and GPU (Ding 2009, Fig. 7)", "queries a second",
        "milliseconds", LAB_LINES, LAB_LOG_X | LAB_LOG_Y,
        "cpu/mean,gpu/mean,serialized/mean,parallel/mean,parallel/p99"},
    {"ding-9-shares", "Who answered, and why (Ding 2009, section 9)", "queries a second", "percent of the queries",
        LAB_LINES, 0, "parallel/CPU,parallel/GPU,parallel/CPU/stolen,parallel/GPU/stolen,parallel/missed"},
    {"ding-9-most", "Queries a second when all are submitted at once", "mode", "queries a second", LAB_BARS, LAB_LOG_Y,
        NULL},
    {"ding-9-model", "What queries cost as a model tree says (Ding 2009, section 9)", "CPU, GPU, the choice of one",
        "percent", LAB_BARS, 0, NULL},
    {"ding-9-error", "How wrong the costs were in service, the mean", "queries a second", "percent", LAB_LINES, 0,
        NULL},
    {"ding-9-cache", "Lists that were in the device's memory when they were asked for (Ding 2009, section 5)",
        "queries a second", "percent", LAB_LINES, 0, NULL},
    {"ding-9-lock", "How long the lock of the queues was held, of the time", "queries a second", "percent", LAB_LINES,
        0, NULL},
    {"ding-84-terms", "Cost of a query by its terms (Ding 2009, section 8.4)", "terms", "milliseconds", LAB_LINES,
        LAB_LOG_Y, NULL},
    {"ding-84-footprint", "Cost of a query by all its postings (Ding 2009, section 8.4)", "postings, at most",
        "milliseconds", LAB_LINES, LAB_LOG_X | LAB_LOG_Y, NULL},
    {"ding-84-shortest", "Cost of a query by its shortest list (Ding 2009, section 8.4)", "postings, at most",
        "milliseconds", LAB_LINES, LAB_LOG_X | LAB_LOG_Y, NULL},
    {"griffin-fig11", "Queries by their terms (Griffin 2018, Fig. 11)", "terms", "percent of the queries", LAB_LINES, 0,
        NULL},
    {"griffin-fig14", "Latency by the terms of a query, the mean (Griffin 2018, Fig. 14)", "terms", "milliseconds",
        LAB_BARS, LAB_LOG_Y, "CPU*,Griffin-GPU*,Griffin/*"},
    {"griffin-fig15", "Latency, the tail (Griffin 2018, Fig. 15)", "percentile", "milliseconds", LAB_BARS, LAB_LOG_Y,
        "CPU*,Griffin-GPU*,Griffin/*"},
    {"griffin-moves", "Queries that begin on the GPU, and that move to the CPU; intersections below the ratio",
        "queries a second", "percent", LAB_LINES, 0, NULL},
    {"ao-throughput", "Whole logs by the threshold of a batch (Ao 2011, Fig. 5), ranked or with documents alone",
        "docIDs", "queries a second", LAB_LINES, LAB_LOG_X, NULL},
    {"ao-response", "Response time of a batch by its threshold (Ao 2011, Fig. 6): CPU, transfers and kernels", "docIDs",
        "milliseconds", LAB_LINES, LAB_LOG_X | LAB_LOG_Y, NULL},
    {"ao-batch", "DocIDs of the shortest lists of a batch by its threshold, the mean", "docIDs", "docIDs", LAB_LINES,
        LAB_LOG_X | LAB_LOG_Y, NULL},
    {"ao-parts", "Parts of that time", "docIDs", "milliseconds", LAB_LINES, LAB_LOG_X | LAB_LOG_Y, NULL},
    {"ao-fig9a", "Speed of kernels by the multiprocessors that they may have (Ao 2011, Fig. 9a)", "multiprocessors",
        "billion docIDs of shortest lists a second", LAB_LINES, LAB_LOG_X | LAB_LOG_Y, NULL},
    {"ao-fig9b", "Share of the GPU in it (Ao 2011, Fig. 9b)", "docIDs", "percent", LAB_LINES, LAB_LOG_X, NULL},
    {"ao-live", "Latency by the rate of arrivals and the threshold of a batch", "queries a second", "milliseconds",
        LAB_LINES, LAB_LOG_Y, NULL},
    {"load-histogram", "Latencies, each bucket", "nanoseconds, at most", "queries", LAB_POINTS, LAB_LOG_X, NULL},
    {NULL, NULL, NULL, NULL, 0, 0, NULL}};

static const char *const kind_names[] = {"sampled", "short", "long", "all"};

/* A load, as it was asked for. */
typedef struct load {
  load_setup setup;
  lab_report report;
  const char *spec; /* the policy with its parameters */
  char variant[96]; /* the name of this one of several variants; "": there is one */
  const char *rates, *fractions, *seeds, *raw, *dir;
  uint64_t n, k, threads, stall_ms;
  load_stall stall;
  load_tasks tasks;
  int mode, mix, closed, hold, lost; /* hold: the highest rate is looked for at which the deadline holds; lost: the
                                      * device, which then is left to the system */
  float deadline_ms, p99_ms; /* p99_ms: the highest rate is looked for at which p99 is at most that; 0: it is not */
  double most; /* queries a second that were answered when all were submitted at once */
  gpuir_hit *hits; /* of all queries */
} load;

/* ---- the workload ------------------------------------------------------------------------------------------ */

static void add_query(load_setup *s, const char *text, size_t len, int mode, int kind) {
  if ((s->nqueries & (s->nqueries - 1)) == 0)
    s->queries = (load_query *)cli_resize(s->queries, s->nqueries ? s->nqueries * 2 : 1, sizeof *s->queries);
  load_query *q = &s->queries[s->nqueries++];
  memset(q, 0, sizeof *q);
  q->text = cli_copy(text, len);
  q->len = len;
  q->mode = mode;
  q->kind = kind;
}

/* The end of the first `words` words of a text. */
static size_t words_end(const char *text, size_t len, unsigned words) {
  size_t i = 0;
  while (words--) {
    while (i < len && text[i] == ' ') i++;
    while (i < len && text[i] != ' ') i++;
  }
  return i;
}

static unsigned count_words(const char *text, size_t len) {
  unsigned n = 0;
  for (size_t i = 0; i < len; i++) n += text[i] != ' ' && (!i || text[i - 1] == ' ');
  return n;
}

/* A long query of the mixed load: the words of so many queries in a row that they are 6 or more, and 16 at most. */
static void add_long(load_setup *s, const cli_queries *qs, size_t from) {
  cli_buf b = {NULL, 0, 0};
  for (size_t i = 0; i < 16 && count_words(b.p, b.n) < 6; i++) {
    if (b.n) cli_buf_char(&b, ' ');
    cli_buf_add(&b, qs->texts[(from + i) % qs->n], qs->lens[(from + i) % qs->n]);
  }
  add_query(s, b.p, words_end(b.p, b.n, 16), GPUIR_OR, LOAD_LONG);
  cli_buf_free(&b);
}

/* Makes the queries of a load: those given or, mixed, of 100 of these 90 their first two words in AND, 9 themselves,
 * and one long one in OR. */
static void make_queries(load *l, const cli_queries *qs) {
  for (size_t i = 0; i < qs->n; i++) {
    const char *text = qs->texts[i];
    const size_t len = qs->lens[i];
    if (!l->mix || i % 100 % 11 == 5) add_query(&l->setup, text, len, l->mode, LOAD_SAMPLED);
    else if (i % 100 == 50) add_long(&l->setup, qs, i);
    else add_query(&l->setup, text, words_end(text, len, 2), GPUIR_AND, LOAD_SHORT);
  }
}

/* Whether the papers' policies can answer a query: a conjunction of words. */
static int is_conjunction(const load_query *q) {
  for (size_t i = 0; i < q->len; i++)
    if (strchr("\"*", q->text[i]) || (q->text[i] == '-' && (!i || q->text[i - 1] == ' '))) return 0;
  return q->mode == GPUIR_AND;
}

/* Parses the queries; those that cannot be asked are left out. */
static void parse_queries(load *l) {
  load_setup *s = &l->setup;
  size_t n = 0;
  for (size_t i = 0; i < s->nqueries && !cli_signal; i++) {
    load_query q = s->queries[i];
    gpuir_query_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.mode = q.mode;
    const unsigned least = s->scheduler ? s->scheduler->conjunctions : load_policy(s->policy) != NULL;
    const int bad = (least && !is_conjunction(&q)) ||
        gpuir_query_parse(s->index, &desc, q.text, q.len, &q.query, NULL) ||
        (least > 1 && gpuir_query_dfs(q.query, NULL, 0) < least);
    if (bad) gpuir_query_destroy(q.query);
    if (bad) free(q.text);
    else s->queries[n++] = q;
  }
  lab_note(&l->report, "queries", "%zu, %zu more cannot be asked; %s", n, s->nqueries - n,
      l->mix ? "of 100 90 are short, 9 as given, one is long" : "as given");
  s->nqueries = n;
}

/* Finds the hits of all queries by all processors. Status. */
static int find_hits(load *l) {
  load_setup *s = &l->setup;
  const size_t n = s->nqueries;
  const gpuir_query **queries = (const gpuir_query **)cli_resize(NULL, n, sizeof *queries);
  uint32_t *counts = (uint32_t *)cli_resize(NULL, n, sizeof *counts);
  gpuir_searcher *searcher;
  gpuir_searcher_desc desc;
  memset(&desc, 0, sizeof desc);
  desc.threads = cli_processors();
  l->hits = (gpuir_hit *)cli_resize(NULL, n * s->k, sizeof *l->hits);
  for (size_t i = 0; i < n; i++) queries[i] = s->queries[i].query;
  int status = gpuir_searcher_create(s->index, &desc, &searcher, NULL);
  if (!status) status = gpuir_search_batch(searcher, queries, n, s->k, l->hits, counts);
  for (size_t i = 0; i < n && !status; i++) {
    load_query *q = &s->queries[i];
    q->hits = l->hits + i * s->k;
    q->n = counts[i];
    if (load_is_served(s->policy)) status = gpuir_count(searcher, q->query, &q->matches);
  }
  gpuir_searcher_destroy(searcher);
  free((void *)(uintptr_t)queries);
  free(counts);
  return status;
}

/* Makes the table by which a clock that stands for a device finds what it is to answer. */
static void know_queries(load_setup *s) {
  const size_t n = load_known_size(s);
  s->found = (load_query **)cli_resize(NULL, n, sizeof *s->found);
  memset((void *)s->found, 0, n * sizeof *s->found);
  for (size_t i = 0; i < s->nqueries; i++) *load_known(s, s->queries[i].query) = &s->queries[i];
}

/* Exit code. */
static int answer_queries(load *l) {
  parse_queries(l);
  if (!l->setup.nqueries) {
    cli_error("no query can be asked");
    return CLI_FAIL;
  }
  const int status = find_hits(l);
  if (l->setup.device_ns) know_queries(&l->setup);
  return status ? cli_fail(l->setup.path, status, NULL) : CLI_OK;
}

/* ---- a sweep -------------------------------------------------------------------------------------------------- */

/* What names a run: its variant or the policy as it was asked for. */
static const char *name_of(const load *l) { return l->variant[0] ? l->variant : l->spec; }

static void label(double rate, uint64_t seed, const char *what, char *out, size_t cap) {
  if (rate > 0) snprintf(out, cap, "%s@%.6g/%llu", what, rate, (unsigned long long)seed);
  else snprintf(out, cap, "%s@closed/%llu", what, (unsigned long long)seed);
}

/* Writes the rows of one run. */
static void report_run(load *l, const load_run *run, const load_result *x) {
  static const struct {
    const char *name;
    double percent;
  } at[] = {{"p50", 50}, {"p80", 80}, {"p90", 90}, {"p95", 95}, {"p99", 99}, {"p99.9", 99.9}, {"max", 100}};
  const double rate = run->rate;
  const char *variant = l->variant, *slash = variant[0] ? "/" : "";
  char name[224], what[160];
  for (int kind = 0; kind <= LOAD_KINDS; kind++) {
    const load_histogram *h = &x->latency[kind];
    if (!h->n || (kind < LOAD_KINDS && !l->mix)) continue;
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
      if (at[i].percent == 99.9 && h->n < TAIL_QUERIES) continue;
      if (variant[0] && at[i].percent != 50 && at[i].percent != 99) continue; /* a chart takes 200 series */
      snprintf(name, sizeof name, kind < LOAD_KINDS ? "%s%s%s/%s" : "%s%s%s", variant, slash, at[i].name,
          kind_names[kind]);
      lab_row_at(&l->report, kind < LOAD_KINDS ? "load-kind" : "load-latency", name, rate,
          (double)load_percentile(h, at[i].percent) / 1e6, "ms");
    }
    snprintf(name, sizeof name, kind < LOAD_KINDS ? "%s%smean/%s" : "%s%smean", variant, slash, kind_names[kind]);
    lab_row_at(&l->report, kind < LOAD_KINDS ? "load-kind" : "load-latency", name, rate, load_mean(h) / 1e6, "ms");
    snprintf(what, sizeof what, "%s%s%s", variant, slash, kind_names[kind]);
    label(rate, run->seed, what, name, sizeof name);
    for (unsigned b = 0; b < LOAD_BUCKETS && !l->hold; b++) /* there are too many runs */
      if (h->counts[b])
        lab_row_at(&l->report, "load-histogram", name, (double)load_bucket_end(b), (double)h->counts[b], "queries");
  }
  lab_row_at(&l->report, "load-processing", name_of(l), rate, load_mean(x->processing) / 1e6, "ms");
  lab_row_at(&l->report, "load-throughput",
      variant[0]         ? variant
          : x->saturated ? "saturated"
                         : l->setup.policy,
      rate, x->achieved, "queries/s");
}

/* Notes what the pool did, and what came of a device that was held up. */
static void note_pool(load *l, const load_run *run, const load_result *x) {
  const gpuir_pool_stats *p = &x->pool;
  if (p->shared || l->setup.device)
    lab_note(&l->report, "pool",
        "%llu searches could be helped with, %llu times a thread did; %llu batches, %llu queries "
        "answered by the "
        "device, %llu given back, %s",
        (unsigned long long)p->shared, (unsigned long long)p->joined, (unsigned long long)p->batches,
        (unsigned long long)p->on_device, (unsigned long long)p->returned,
        p->devices_lost ? p->device_error.msg : "no device lost");
  if (l->setup.stall_ns)
    lab_note(&l->report, "stall",
        "the device answered nothing for %.6g ms at half time: %llu queries were due then, %llu of them "
        "waited "
        "half of that or longer; rate x half of it is %.6g",
        (double)l->setup.stall_ns / 1e6, (unsigned long long)x->held_up, (unsigned long long)x->stalled,
        run->rate * (double)l->setup.stall_ns / 2e9);
}

/* Writes what FGQP's tasks were like. */
static void report_tasks(load *l, const load_run *run, const load_result *x) {
  const load_tasks *t = &l->tasks;
  const double skip = (double)l->setup.skip;
  const double wall = (double)(run->n + run->warm) / x->achieved * 1e9;
  if (!t->queries || !t->lists || run->rate > 0) return;
  lab_row_at(&l->report, "load-tasks", "skips a list", skip, t->list_skips, "skips");
  lab_row_at(&l->report, "load-tasks", "tasks a query", skip, (double)t->tasks / (double)t->queries, "tasks");
  lab_row_at(&l->report, "load-tasks", "S_avg", skip, (double)t->skips / (double)t->lists, "skips");
  lab_row_at(&l->report, "load-tasks", "O_avg", skip, (double)t->shared / (double)t->lists, "skips");
  lab_row_at(&l->report, "load-tasks", "creation", skip, 100 * (double)t->creation_ns / wall, "% of wall time");
}

/* Writes what a survey found: by how many times throughput grows, and latency falls, if each thread does its part of
 * every query without waiting for anything else. The intervals are over queries. */
static void report_divided(load *l, const load_run *run) {
  const load_setup *s = &l->setup;
  double *part[3];
  if (!s->survey || run->rate > 0) return;
  for (int p = 0; p < 3; p++) part[p] = (double *)cli_resize(NULL, s->nqueries, sizeof **part);
  for (size_t i = 0; i < s->nqueries; i++) {
    part[0][i] = s->divided[i].whole;
    part[1][i] = s->divided[i].busy;
    part[2][i] = s->divided[i].latency;
  }
  const double threads = (double)s->threads;
  lab_row_of_at(&l->report, "load-divided", "throughput", threads, lab_bootstrap_ratio(part[0], part[1], s->nqueries),
      "times one thread");
  lab_row_of_at(&l->report, "load-divided", "latency", threads, lab_bootstrap_ratio(part[0], part[2], s->nqueries),
      "times one thread");
  const lab_spread whole = lab_bootstrap(part[0], s->nqueries);
  lab_note(&l->report, "survey",
      "%zu queries by one thread, the median of %llu times each: mean %.4g ms (%.4g to %.4g), processor time",
      s->nqueries, (unsigned long long)s->survey, whole.median * 1e3, whole.least * 1e3, whole.most * 1e3);
  for (int p = 0; p < 3; p++) free(part[p]);
}

/* Prints a line of a run. */
static void print_run(load *l, const load_run *run, const load_result *x) {
  const load_histogram *all = &x->latency[LOAD_KINDS], *slow = &x->latency[LOAD_LONG];
  printf("%-12s %10.6g %10.6g %9.4g %9.4g %9.4g %9.4g", name_of(l), run->rate, x->achieved, load_mean(all) / 1e6,
      (double)load_percentile(all, 50) / 1e6, (double)load_percentile(all, 99) / 1e6,
      (double)load_percentile(slow, 99) / 1e6);
  printf(" %6llu%s%s", (unsigned long long)x->missed, x->saturated ? " saturated" : "", x->late ? " INVALID" : "");
  if (l->setup.stall_ns)
    printf(" held up %llu, waited %llu", (unsigned long long)x->held_up, (unsigned long long)x->stalled);
  printf("\n");
  cli_flush();
  lab_note(&l->report, "run",
      "%s, %.6g queries/s wanted, %.6g achieved, seed %llu, %zu queries behind %zu that warm up, %llu "
      "distinct; "
      "wait p99 %.6g ms, processing mean %.6g ms; generator late by %.3g us at p99%s; backlog %llu at "
      "half time, "
      "%llu at the end%s; %llu missed, %llu failed, %llu wrong",
      name_of(l), run->rate, x->achieved, (unsigned long long)run->seed, run->n, run->warm,
      (unsigned long long)x->distinct, (double)load_percentile(x->wait, 99) / 1e6, load_mean(x->processing) / 1e6,
      (double)x->lateness / 1e3, x->late ? ": NOT VALID" : "", (unsigned long long)x->backlog_half,
      (unsigned long long)x->backlog_end, x->saturated ? ": saturated, a mean says how long it ran" : "",
      (unsigned long long)x->missed, (unsigned long long)x->failed, (unsigned long long)x->wrong);
}

/* A policy that is not the library's; NULL: it is. */
static const gpuir_policy *own_policy(const char *name) {
  if (load_is_served(name)) return &load_served;
  if (load_scheduler_of(name)) return load_scheduler_of(name)->policy;
  return strcmp(name, load_gpu_only.name) ? load_policy(name) : &load_gpu_only;
}

/* How many threads the pool gets: those of a server are its own, and a device has one that drives it. */
static unsigned threads_of(const load *l) {
  if (load_is_served(l->setup.policy)) return 2;
  if (l->setup.scheduler) return l->setup.scheduler->threads(&l->setup);
  return strcmp(l->setup.policy, load_gpu_only.name) ? (unsigned)l->setup.threads : 1;
}

/* How many queries a run measures. Where the highest rate is looked for these are at least those of a second, or
 * MOST_QUERIES, and at low rates those of two, so that no run takes long; or those of ten deadlines. */
static size_t queries_of(const load *l, double rate) {
  const double n = (double)l->n;
  if (l->hold && rate > 0) return (size_t)ceil(rate * HOLD_DEADLINES * (double)l->deadline_ms / 1e3) + 1;
  if (l->p99_ms <= 0 || rate <= 0) return (size_t)n;
  if (rate > n) return (size_t)(rate < MOST_QUERIES ? rate : n > MOST_QUERIES ? n : MOST_QUERIES);
  return (size_t)(2 * rate > n ? n : 2 * rate > 1000 ? 2 * rate : n < 1000 ? n : 1000);
}

/* What a run took of both processors, idle or not, for 1,000 queries. */
static void report_energy(load *l, const load_run *run, const load_energy *before, const load_energy *after) {
  const double n = (double)(run->n + run->warm) / 1e3;
  const int gpu = before->gpu >= 0 && after->gpu >= before->gpu, cpu = before->cpu >= 0 && after->cpu >= before->cpu;
  char name[160];
  snprintf(name, sizeof name, "%s/GPU", name_of(l));
  if (gpu) lab_row_at(&l->report, "load-energy", name, run->rate, (after->gpu - before->gpu) / n, "J");
  snprintf(name, sizeof name, "%s/CPU", name_of(l));
  if (cpu) lab_row_at(&l->report, "load-energy", name, run->rate, (after->cpu - before->cpu) / n, "J");
  lab_note(&l->report, "energy", "GPU: %s%s; CPU: %s%s", gpu ? "" : "not known, ", after->gpu_why,
      cpu ? "" : "not known, ", after->cpu_why);
}

/* One run on a pool of its own. Exit code; CLI_FAIL too when a hit is wrong. */
static int run_once(load *l, double rate, uint64_t seed, FILE *raw, load_result *x) {
  const gpuir_policy *own = own_policy(l->setup.policy);
  gpuir_pool_desc desc;
  gpuir_pool *pool;
  gpuir_error err;
  load_energy before, after;
  load_run run;
  memset(&run, 0, sizeof run);
  run.rate = rate;
  run.seed = seed;
  run.n = queries_of(l, rate);
  run.warm = (size_t)(rate * WARM_SECONDS > 0.1 * (double)run.n ? rate * WARM_SECONDS : 0.1 * (double)run.n);
  if (l->p99_ms > 0 && run.warm > WARM_MOST) run.warm = WARM_MOST;
  if (l->hold && rate > 0) run.warm = run.n / (size_t)HOLD_DEADLINES; /* a deadline's */
  run.offset = seed * 7919;
  run.raw = raw;
  memset(&desc, 0, sizeof desc);
  memset(&err, 0, sizeof err);
  desc.threads = threads_of(l);
  desc.queue = run.n + run.warm;
  desc.policy = l->setup.policy;
  desc.custom = own;
  desc.custom_user = &l->setup;
  desc.attach = l->setup.device ? load_attach_driver : NULL;
  desc.attach_user = &l->setup;
  desc.batch = (size_t)l->setup.batch;
  l->stall.from = 0;
  memset(x, 0, sizeof *x);
  if (l->setup.survey)
    l->setup.divided = (load_divided *)cli_resize(l->setup.divided, l->setup.nqueries, sizeof *l->setup.divided);
  const int apart = desc.threads < cli_processors(); /* otherwise the generator has no processor of its own */
  if (apart) load_pin(LOAD_OTHERS, l->setup.device); /* threads of the pool inherit this */
  int status = gpuir_pool_create(l->setup.index, &desc, &pool, &err);
  if (status) return cli_fail(l->setup.path, status, &err);
  int code = load_wake(pool, &l->setup);
  if (apart) load_pin(LOAD_GENERATOR, 0);
  load_energy_read(&before, l->setup.gpu.cuda != NULL);
  if (code == CLI_OK) code = load_go(pool, &l->setup, &run, x);
  load_energy_read(&after, l->setup.gpu.cuda != NULL);
  gpuir_pool_destroy(pool);
  if (code != CLI_OK) return code;
  report_run(l, &run, x);
  report_energy(l, &run, &before, &after);
  print_run(l, &run, x);
  note_pool(l, &run, x);
  report_tasks(l, &run, x);
  report_divided(l, &run);
  if (l->setup.scheduler) l->setup.scheduler->tell(&l->setup, &l->report, &run, x);
  l->lost |= x->pool.devices_lost != 0;
  if (x->wrong || x->failed) {
    cli_error("%s: %llu answers are not those of gpuir_search, and %llu queries failed", name_of(l),
        (unsigned long long)x->wrong, (unsigned long long)x->failed);
    return CLI_FAIL;
  }
  return CLI_OK;
}

/* The i-th number of a list parted by commas; 0 behind the last one, -1 if one is none. */
static int number_at(const char *list, size_t i, double *out) {
  char *end;
  for (; i && *list; i--) {
    list += strcspn(list, ",");
    list += *list == ',';
  }
  if (!*list) return 0;
  *out = strtod(list, &end);
  return end == list || (*end && *end != ',') || !(*out > 0 && *out < 1e9) ? -1 : 1;
}

static int check_numbers(const char *option, const char *list) {
  double x;
  int got = 1;
  if (!*list) return cli_misuse("lab", "%s names nothing", option);
  for (size_t i = 0; got == 1; i++) got = number_at(list, i, &x);
  return got ? cli_misuse("lab", "%s: '%s' is no list of positive numbers", option, list) : CLI_OK;
}

/* What the highest rate is looked for under: the p99 that is allowed or the deadline, ms. */
static double limit_ms(const load *l) { return l->hold ? (double)l->deadline_ms : (double)l->p99_ms; }

/* A run of a rate; one that is not valid, which says nothing of the policy, is tried again with other seeds. Exit
 * code. */
static int run_valid(load *l, double rate, uint64_t seed, FILE *raw, load_result *x) {
  int code = run_once(l, rate, seed, raw, x);
  for (unsigned i = 1; i < VALID_TRIES && code == CLI_OK && x->late && !x->saturated; i++) {
    const double p99 = (double)load_percentile(&x->latency[LOAD_KINDS], 99) - (double)x->lateness;
    if (p99 > limit_ms(l) * 1e6) break; /* it does not hold even without what the generator was late */
    load_result_free(x);
    code = run_once(l, rate, seed + i * 1000, raw, x);
  }
  return code;
}

/* Runs a rate, and says whether it holds: the queue does not grow, and the p99 is as low as is allowed or no query
 * misses its deadline. Exit code. */
static int try_rate(load *l, double rate, uint64_t seed, FILE *raw, int *holds, double *p99) {
  load_result x;
  const int code = run_valid(l, rate, seed, raw, &x);
  if (code != CLI_OK) return code;
  *p99 = (double)load_percentile(&x.latency[LOAD_KINDS], 99) / 1e6;
  *holds = !x.saturated && !x.late && (l->hold ? !x.missed : *p99 <= limit_ms(l));
  load_result_free(&x);
  return CLI_OK;
}

/* A rate that holds, one that does not, and the p99 of the former, ms. */
typedef struct bounds {
  double good, bad, p99;
} bounds;

/* Finds the highest rate that holds, by halving what lies between one that does and one that does not, until that is
 * no more than a part `exact` of it. What is answered when all is submitted at once says where to begin; the bound
 * above is tried, and raised while it holds. No rate that is low beside that is tried: 0 then. Exit code. */
static int find_bounds(load *l, double exact, FILE *raw, bounds *b) {
  int code = CLI_OK, tried = 0;
  memset(b, 0, sizeof *b);
  b->bad = 1.2 * l->most;
  for (unsigned i = 0; i < CAPACITY_STEPS && code == CLI_OK && (!tried || b->bad - b->good > exact * b->bad); i++) {
    const double rate = b->good > 0 && !tried ? b->bad : (b->good + b->bad) / 2;
    double p99 = 0;
    int holds = 0;
    if (rate < CAPACITY_LEAST * l->most) break;
    code = try_rate(l, rate, i + 1, raw, &holds, &p99);
    if (code != CLI_OK) break;
    if (!holds) tried = 1;
    if (holds) b->p99 = p99;
    *(holds ? &b->good : &b->bad) = rate;
    if (b->good >= b->bad) b->bad *= 1.3;
  }
  return code;
}

/* The highest rate at a p99. Exit code. */
static int find_capacity(load *l, FILE *raw) {
  bounds b;
  const int code = find_bounds(l, CAPACITY_EXACT, raw, &b);
  if (code != CLI_OK) return code;
  lab_row_at(&l->report, "load-capacity", name_of(l), (double)l->p99_ms, b.good, "queries/s");
  lab_note(&l->report, "capacity", "%.6g queries/s at p99 of at most %.6g ms (%.4g), not at %.6g", b.good,
      (double)l->p99_ms, b.p99, b.bad);
  printf("capacity %s %.6g\n", name_of(l), b.good);
  cli_flush();
  return CLI_OK;
}

/* Finds the highest rate that holds with a seed: from one step below `rate` upwards until one does not hold, or
 * downwards until one does. 0: none. Exit code. */
static int climb(load *l, double rate, uint64_t seed, FILE *raw, double *held) {
  double p99;
  int code = CLI_OK, holds = 0;
  *held = 0;
  for (int step = -1; step <= 1 + HOLD_MORE && (step < 0 || holds) && code == CLI_OK; step++) {
    const double at = rate * pow(HOLD_STEP, step);
    code = try_rate(l, at, seed, raw, &holds, &p99);
    if (holds) *held = at;
  }
  for (int step = -2; step >= -1 - HOLD_MORE && !(*held > 0) && code == CLI_OK; step--) {
    code = try_rate(l, rate * pow(HOLD_STEP, step), seed, raw, &holds, &p99);
    if (holds) *held = rate * pow(HOLD_STEP, step);
  }
  return code;
}

/* The highest rate at which the deadline holds: by halving with one seed, then about that with others. Exit code. */
static int find_held(load *l, FILE *raw) {
  const char *slash = strchr(name_of(l), '/');
  double held[HOLD_SEEDS];
  bounds b;
  int code = find_bounds(l, HOLD_STEP - 1, raw, &b);
  for (unsigned i = 0; i < HOLD_SEEDS && code == CLI_OK; i++) {
    held[i] = 0;
    if (b.good > 0) code = climb(l, b.good, 101 + i, raw, &held[i]);
    lab_row_at(&l->report, "load-hold", name_of(l), 101 + i, held[i], "queries/s");
  }
  if (code != CLI_OK) return code;
  const lab_spread mean = lab_bootstrap(held, HOLD_SEEDS);
  lab_row_of(&l->report, "ding-fig7-held", "held", slash ? slash + 1 : name_of(l), mean, "queries/s");
  lab_note(&l->report, "held",
      "%s: %.6g queries/s, the mean of the highest rates that %u seeds hold, 95 %% bootstrap interval over the seeds "
      "%.6g to %.6g; runs of %.0f deadlines of %.6g ms behind one that warms up, rates in steps of %.0f %%",
      name_of(l), mean.median, HOLD_SEEDS, mean.least, mean.most, HOLD_DEADLINES, (double)l->deadline_ms,
      100 * (HOLD_STEP - 1));
  printf("held %s %.6g [%.6g, %.6g]\n", name_of(l), mean.median, mean.least, mean.most);
  cli_flush();
  return CLI_OK;
}

/* All rates with all seeds. Exit code. */
static int sweep(load *l, FILE *raw) {
  const char *const list = l->rates ? l->rates : l->fractions;
  double rate, seed;
  load_result x;
  int code = CLI_OK;
  printf("%-12s %10s %10s %9s %9s %9s %9s %6s\n", "policy", "wanted", "answered", "mean ms", "p50", "p99", "p99 long",
      "missed");
  if (!l->rates || l->p99_ms > 0 || l->hold) {
    const uint64_t deadline = l->setup.deadline_ns;
    if (!l->closed) l->setup.deadline_ns = 0; /* of rates: most queries wait long when all come at once */
    code = run_once(l, 0, 1, NULL, &x);
    l->setup.deadline_ns = deadline;
    l->most = x.achieved;
    load_result_free(&x);
    lab_note(&l->report, "most", "%.6g queries/s when all are submitted at once", l->most);
  }
  if (code == CLI_OK && l->hold) return find_held(l, raw);
  if (code == CLI_OK && l->p99_ms > 0) return find_capacity(l, raw);
  for (size_t i = 0; code == CLI_OK && !l->closed && number_at(list, i, &rate) == 1; i++)
    for (size_t j = 0; code == CLI_OK && number_at(l->seeds, j, &seed) == 1; j++) {
      code = run_once(l, l->rates ? rate : rate * l->most, (uint64_t)seed, raw, &x);
      load_result_free(&x);
    }
  return code;
}

/* A sweep for each variant of the policy. Exit code. */
static int sweep_variants(load *l, FILE *raw) {
  const load_scheduler *s = l->setup.scheduler;
  size_t n = 1;
  int code = CLI_OK;
  for (size_t i = 0; i < n && code == CLI_OK; i++) {
    if (s) n = s->vary(l->setup.scheduling, i, l->variant, sizeof l->variant);
    if (n == 1) l->variant[0] = 0;
    code = sweep(l, raw);
  }
  return code;
}

/* ---- the command ------------------------------------------------------------------------------------------------ */

/* Takes the parameters of one of the papers' schedulers. */
static int take_scheduler(load_setup *s, const char *spec) {
  s->scheduling = s->scheduler->make();
  for (const char *p = spec + strcspn(spec, ":"); *p;) {
    const size_t m = strcspn(++p, ":");
    char *option = cli_copy(p, m);
    const int bad = s->scheduler->take(s->scheduling, option);
    free(option);
    if (bad) return cli_misuse("lab", "'%s': %s", spec, s->scheduler->parameters);
    p += m;
  }
  return CLI_OK;
}

/* Takes NAME[:param=value...]: beta, skip, scoring=document or task, batch, and survey. */
static int take_policy(load *l, const char *spec) {
  load_setup *s = &l->setup;
  const size_t n = strcspn(spec, ":");
  l->spec = spec;
  s->policy = cli_copy(spec, n);
  s->scheduler = load_scheduler_of(s->policy);
  if (s->scheduler) return take_scheduler(s, spec);
  s->beta = 5;
  s->skip = 512;
  s->per_task = 1;
  s->batch = 1024;
  for (const char *p = spec + n; *p;) {
    const size_t m = strcspn(++p, ":");
    char *option = cli_copy(p, m);
    int bad = 0;
    if (!strncmp(option, "beta=", 5)) bad = cli_parse_unsigned(option + 5, 1, 1000000, &s->beta);
    else if (!strncmp(option, "skip=", 5))
      bad = cli_parse_unsigned(option + 5, 128, 1 << 20, &s->skip) || s->skip % 128;
    else if (!strncmp(option, "survey=", 7))
      bad = cli_parse_unsigned(option + 7, 1, LAB_MOST_REPEATS, &s->survey) ||
          (strcmp(s->policy, "fgqp") != 0 && strcmp(s->policy, "docp-ui") != 0);
    else if (!strncmp(option, "batch=", 6)) bad = cli_parse_unsigned(option + 6, 1, 65536, &s->batch);
    else if (!strcmp(option, "scoring=task") || !strcmp(option, "scoring=document")) s->per_task = option[8] == 't';
    else bad = 1;
    free(option);
    if (bad)
      return cli_misuse("lab",
          "'%s': beta=N, skip=N (of 128), scoring=task or scoring=document; batch=N; survey=N of fgqp and docp-ui",
          spec);
    p += m;
  }
  if (!strcmp(s->policy, "inter") || !strcmp(s->policy, "auto") || own_policy(s->policy)) return CLI_OK;
  return cli_misuse("lab",
      "there is no policy '%s': inter, auto, gpu, t-inter, docp-ui, docp-pi, fgqp, serve, ding, griffin or ao",
      s->policy);
}

/* What the device is, if the policy has one. */
static void note_device(load *l) {
  gpuir_cuda_info info;
  if (cli_gpu_stats(&l->setup.gpu, &info))
    lab_note(&l->report, "device", "%s, driver %d.%d", info.device, info.driver_version / 1000,
        info.driver_version % 1000 / 10);
  else if (l->setup.device)
    lab_note(&l->report, "device", "a %s stands for it: nothing here is a figure of a GPU",
        l->setup.device_ns ? "clock" : "processor");
}

static void note_facts(load *l, const char *queries, int argc, char **argv) {
  char threads[CLI_COUNTED];
  gpuir_index_info info;
  cli_buf line = {NULL, 0, 0};
  if (!gpuir_index_get_info(l->setup.index, &info))
    lab_note(&l->report, "corpus", "%s, %llu documents, %llu postings, codec %s",
        info.description[0] ? info.description : l->setup.path, (unsigned long long)info.documents,
        (unsigned long long)info.postings, info.codec);
  lab_note(&l->report, "load",
      "Poisson arrivals, latency from the due time; one pass of %s in order, again from its beginning when "
      "it ends; those that are due together are submitted together, at most 32; %s; the generator "
      "spins before each arrival, for %s",
      queries, cli_counted(l->setup.threads, "thread answers", "threads answer", threads),
      l->setup.threads < cli_processors()
          ? "500 us on the last processor, which they keep off, as they do of a driver's"
          : "5 us on no processor of its own, ahead of them if it may");
  lab_note(&l->report, "saturated",
      "backlog at the end over that at half time by 5 %% of the queries, or answered at less than 0.98 "
      "of the "
      "rate at which they came");
  lab_note(&l->report, "valid", "the generator's lateness at p99 is at most max(%.6g us, 5 %% of the p99 latency)",
      (double)l->setup.allowed_late_ns / 1e3);
  lab_note_machine(&l->report);
  note_device(l);
  for (int i = 0; i < argc; i++) {
    cli_buf_char(&line, ' ');
    cli_buf_text(&line, argv[i]);
  }
  cli_buf_char(&line, 0);
  lab_note(&l->report, "command", "gpuir lab load%s", line.p);
  cli_buf_free(&line);
}

/* Opens the device that is asked for, if no processor stands for it. A server opens its own. */
static int open_device(load *l) {
  load_setup *s = &l->setup;
  if (s->device || load_is_served(s->policy)) return CLI_OK;
  if (!strcmp(s->policy, load_gpu_only.name)) s->backend = CLI_BACKEND_GPU;
  static const cli_devices first; /* of the devices */
  if (s->scheduler && s->scheduler->device(s->scheduling, &s->gpu.memory)) s->backend = CLI_BACKEND_GPU;
  const int code = cli_gpu_open(&s->gpu, s->backend, &first, s->index);
  s->device = s->gpu.cuda != NULL;
  return code;
}

static int run(load *l, const char *queries, int argc, char **argv) {
  cli_queries qs;
  char name[160];
  FILE *raw = NULL;
  size_t nfigures = 0;
  memset(&qs, 0, sizeof qs);
  l->setup.index = cli_open(l->setup.path);
  if (!l->setup.index) return CLI_FAIL;
  snprintf(name, sizeof name, "load-%s", l->spec);
  for (char *p = name; *p; p++) *p = *p == ':' || *p == '=' || *p == '/' ? '-' : *p;
  int code = open_device(l);
  if (code == CLI_OK) code = cli_queries_read(&qs, queries, CLI_IDS_AUTO);
  if (code == CLI_OK) code = lab_report_open(&l->report, l->dir, name);
  if (code == CLI_OK) {
    note_facts(l, queries, argc, argv);
    make_queries(l, &qs);
    code = answer_queries(l);
  }
  if (code == CLI_OK && l->setup.scheduler) code = l->setup.scheduler->prepare(&l->setup, &l->report);
  cli_queries_free(&qs);
  if (code == CLI_OK && l->raw && !(raw = fopen(l->raw, "w"))) {
    cli_error("%s: %s", l->raw, strerror(errno));
    code = CLI_FAIL;
  }
  if (raw) fputs("rate\tdue\tquery\tkind\tlatency\tlate\twait\tprocessing\tstatus\ton device\n", raw);
  if (code == CLI_OK) code = sweep_variants(l, raw);
  if (raw && (ferror(raw) | fclose(raw)) && code == CLI_OK) {
    cli_error("%s: %s", l->raw, strerror(errno));
    code = CLI_FAIL;
  }
  while (load_figures[nfigures].id) nfigures++;
  if (l->report.n) {
    const int wrote = lab_report_write(&l->report, load_figures, nfigures);
    if (code == CLI_OK) code = wrote;
  }
  return cli_signal ? 128 + (int)cli_signal : code;
}

static void load_free(load *l) {
  load_setup *s = &l->setup;
  for (size_t i = 0; i < s->nqueries + s->apart; i++) {
    gpuir_query_destroy(s->queries[i].query);
    free(s->queries[i].text);
  }
  free(s->queries);
  free(l->hits);
  free(s->divided);
  free((void *)s->found);
  free((void *)(uintptr_t)s->policy);
  if (s->scheduler) s->scheduler->free(s->scheduling);
  if (!l->lost) cli_gpu_close(&s->gpu);
  gpuir_close(s->index);
  lab_report_free(&l->report);
}

enum {
  O_OUTPUT = 2,
  O_MODE,
  O_K,
  O_THREADS,
  O_RATE,
  O_LOAD,
  O_QUERIES,
  O_SEED,
  O_DEADLINE,
  O_MIX,
  O_RAW,
  O_CLOSED,
  O_SOCKET,
  O_BACKEND,
  O_STAND_IN,
  O_DEVICE_TIME,
  O_STALL,
  O_P99,
  O_SERIAL,
  O_HOLD
};

/* Takes the microseconds of a batch and of a query in it. */
static int take_device_time(load *l, const cli_args *a) {
  double batch, query;
  if (number_at(a->value, 0, &batch) != 1 || number_at(a->value, 1, &query) != 1 || number_at(a->value, 2, &query))
    return cli_misuse("lab", "%s: '%s' is not BATCH,QUERY", a->name, a->value);
  (void)number_at(a->value, 1, &query);
  l->setup.device = 1;
  l->setup.device_ns = (uint64_t)(batch * 1e3);
  l->setup.device_query_ns = (uint64_t)(query * 1e3);
  return CLI_OK;
}

static int take_option(load *l, const cli_args *a, int opt) {
  switch (opt) {
  case O_OUTPUT: l->dir = a->value; return CLI_OK;
  case O_MODE: return cli_choice(a, "and|or|andor", &l->mode);
  case O_K: return cli_unsigned(a, 1, 1000, &l->k);
  case O_THREADS: return cli_unsigned(a, 1, 4096, &l->threads);
  case O_RATE: l->rates = a->value; return check_numbers(a->name, a->value);
  case O_LOAD: l->fractions = a->value; return check_numbers(a->name, a->value);
  case O_QUERIES: return cli_unsigned(a, 10, 10000000, &l->n);
  case O_SEED: l->seeds = a->value; return check_numbers(a->name, a->value);
  case O_DEADLINE: return cli_real(a, 0.001, 1000000, &l->deadline_ms);
  case O_P99: return cli_real(a, 0.001, 1000000, &l->p99_ms);
  case O_MIX: l->mix = 1; return CLI_OK;
  case O_RAW: l->raw = a->value; return CLI_OK;
  case O_CLOSED: l->closed = 1; return CLI_OK;
  case O_HOLD: l->hold = 1; return CLI_OK;
  case O_SOCKET: l->setup.socket = a->value; return CLI_OK;
  case O_BACKEND: return cli_choice(a, "cpu|gpu|auto", &l->setup.backend);
  case O_STAND_IN: l->setup.device = 1; return CLI_OK;
  case O_DEVICE_TIME: return take_device_time(l, a);
  case O_SERIAL: l->setup.serial = l->closed = 1; return CLI_OK;
  case O_STALL: return cli_unsigned(a, 1, 100000, &l->stall_ms);
  default: return opt == CLI_HELP ? CLI_HELP : CLI_USAGE;
  }
}

int load_command(int argc, char **argv) {
  static const cli_option options[] = {{O_OUTPUT, "output", 'o', 1}, {O_MODE, "mode", 'm', 1}, {O_K, "hits", 'k', 1},
      {O_THREADS, "threads", 0, 1}, {O_RATE, "rate", 0, 1}, {O_LOAD, "load", 0, 1}, {O_QUERIES, "queries", 0, 1},
      {O_SEED, "seed", 0, 1}, {O_DEADLINE, "deadline", 0, 1}, {O_MIX, "mix", 0, 0}, {O_RAW, "raw", 0, 1},
      {O_CLOSED, "closed", 0, 0}, {O_SOCKET, "socket", 0, 1}, {O_BACKEND, "backend", 0, 1},
      {O_STAND_IN, "stand-in", 0, 0}, {O_DEVICE_TIME, "device-time", 0, 1}, {O_STALL, "stall", 0, 1},
      {O_P99, "p99", 0, 1}, {O_SERIAL, "serial", 0, 0}, {O_HOLD, "hold", 0, 0}, {0, NULL, 0, 0}};
  cli_args a;
  load l;
  int opt, code = CLI_OK;
  memset(&l, 0, sizeof l);
  l.dir = "build/lab";
  l.n = 10000;
  l.k = 10;
  l.threads = cli_processors() > 1 ? cli_processors() - 1 : 1;
  l.fractions = "0.3,0.6,0.9,1.1";
  l.seeds = "1";
  cli_args_start(&a, "lab", options, argc, argv);
  while (code == CLI_OK && (opt = cli_next(&a)) != CLI_END) code = take_option(&l, &a, opt);
  if (code == CLI_OK && a.noperands != 3)
    code =
        cli_misuse("lab", a.noperands < 3 ? "load needs POLICY, INDEX and QUERIES" : "one POLICY, INDEX and QUERIES");
  if (code == CLI_OK && l.hold && !(l.deadline_ms > 0)) code = cli_misuse("lab", "--hold needs --deadline");
  if (code == CLI_OK && l.hold && (l.p99_ms > 0 || l.closed || l.rates))
    code = cli_misuse("lab", "--hold looks for the rate itself: not with --p99, --rate, --closed or --serial");
  if (code == CLI_OK) code = take_policy(&l, a.operands[0]);
  if (code == CLI_OK) {
    cli_catch_signals();
    l.setup.path = a.operands[1];
    l.setup.k = (size_t)l.k;
    l.setup.threads = l.threads;
    l.setup.deadline_ns = (uint64_t)((double)l.deadline_ms * 1e6);
    l.setup.allowed_late_ns = l.hold ? l.setup.deadline_ns / 100 : 20000;
    l.setup.stall_ns = l.stall_ms * 1000000;
    l.setup.stall = &l.stall;
    l.setup.tasks = &l.tasks;
    code = run(&l, a.operands[2], argc, argv);
  } else if (code == CLI_HELP) {
    code = cli_help("lab");
  }
  load_free(&l);
  cli_args_free(&a);
  return cli_finish(code);
}
