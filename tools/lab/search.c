/* search.c - gpuir lab search: ranked queries by the CPU, by the CUDA backend's engine and by the papers'
 * methods on the device, the steps of the latter, and the ranking of candidates alone (Ding et al., WWW 2009; Liu
 * et al., "Griffin", PPoPP 2018). All hits are compared with the CPU's. */
#include "../cli/cli.h"
#include "lab.h"
#include "gpuir_lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HITS 10u /* of a query */
#define CANDIDATES 8u /* queries of each class of results whose candidates are ranked */
#define CLASS_HITS ((uint64_t)1 << 24) /* of a class' queries, at most */
#define LEAST_RESULTS 5u /* their least class */
#define MOST_RANKINGS 16u /* in the device's table */

enum { DING_TABLE2, DING_TABLE3, GRIFFIN_FIG7, RANKING_BATCH, FIGURES };

const lab_figure lab_search_figures[] = {{"ding-table2", "Ranked queries, ten hits (Ding 2009, Table 2)", "queries",
                                             "milliseconds a query", LAB_BARS, LAB_LOG_Y, NULL},
    {"ding-table3", "Steps of ranked queries on the GPU (Ding 2009, Table 3)", "step", "percent of the time", LAB_BARS,
        0, NULL},
    {"griffin-fig7", "Ranking the candidates of a query (Griffin 2018, Fig. 7)", "candidates, at most", "milliseconds",
        LAB_LINES, LAB_LOG_X | LAB_LOG_Y, "heap/10,heap/1000,tree/GPU/10,bucket-select/GPU/10,radix-select/GPU/1000"},
    {"ranking-batch", "Ranking the candidates of up to 512 queries in one run", "candidates of a query, at most",
        "milliseconds a query", LAB_LINES, LAB_LOG_X | LAB_LOG_Y,
        "heap/10,heap/1000,tree/GPU/10,bucket-select/GPU/10,radix-select/GPU/1000"},
    {NULL, NULL, NULL, NULL, 0, 0, NULL}};

/* ---- queries --------------------------------------------------------------------------------------------- */

static const struct {
  const char *name;
  int mode;
} modes[] = {{"AND", GPUIR_AND}, {"OR", GPUIR_OR}, {"AND+OR", GPUIR_ANDOR}};

typedef struct query_log {
  gpuir_query **query;
  size_t n;
} query_log;

static void log_free(query_log *g) {
  for (size_t i = 0; i < g->n; i++) gpuir_query_destroy(g->query[i]);
  free(g->query);
  memset(g, 0, sizeof *g);
}

/* The terms that a text is analysed to must be these, in this order: a stem may be stemmed again. */
typedef struct term_check {
  const gpuir_index *index;
  const lab_query *query;
  unsigned n;
  int wrong;
} term_check;

static int check_token(void *sink, const char *token, size_t len) {
  term_check *c = (term_check *)sink;
  uint64_t id;
  if (c->n == c->query->k || gpuir_term_find(c->index, token, len, &id) || id != c->query->term[c->n]) c->wrong = 1;
  c->n++;
  return 0;
}

/* Adds a query of these terms, unless no text means them. Exit code. */
static int log_add(const lab *l, const lab_query *q, int mode, query_log *g) {
  term_check c = {l->index, q, 0, 0};
  cli_buf text = {NULL, 0, 0};
  gpuir_query_desc desc;
  gpuir_error err;
  int code = CLI_OK;
  memset(&err, 0, sizeof err);
  memset(&desc, 0, sizeof desc);
  desc.mode = mode;
  for (unsigned i = 0; i < q->k; i++) {
    gpuir_term_info info;
    if (gpuir_term_get_info(l->index, q->term[i], &info) || info.term[0] == '-') c.wrong = 1;
    else cli_buf_add(&text, info.term, info.term_len);
    cli_buf_char(&text, ' ');
  }
  if (!c.wrong && gpuir_analyze(l->index, text.p, text.n, check_token, &c, NULL)) c.wrong = 1;
  if (!c.wrong && c.n == q->k) {
    int status = gpuir_query_parse(l->index, &desc, text.p, text.n, &g->query[g->n], &err);
    if (status) code = cli_fail(l->path, status, &err);
    else g->n++;
  }
  cli_buf_free(&text);
  return code;
}

/* The queries that all figures take. */
static int log_make(const lab *l, int mode, query_log *g) {
  int code = CLI_OK;
  g->n = 0;
  g->query = (gpuir_query **)cli_resize(NULL, l->nqueries, sizeof *g->query);
  for (size_t i = 0; i < l->nqueries && code == CLI_OK; i++) code = log_add(l, &l->queries[i], mode, g);
  if (code) log_free(g);
  return code;
}

/* ---- whole queries: Ding's Tables 2 and 3 -------------------------------------------------------------------- */

/* Who answers: a core or the engine of the CUDA backend, by an evaluator, or the device by the papers' methods, which
 * take an intersection and a ranking. */
static const struct {
  const char *name, *intersection, *ranking;
  int gpu, evaluator;
  int then; /* of AND+OR alone: AND first, and OR by an exhaustive evaluator if that has too few hits */
} ways[] = {{"CPU", NULL, NULL, 0, GPUIR_EVAL_AUTO, 0}, {"CPU/exhaustive", NULL, NULL, 0, GPUIR_EVAL_EXHAUSTIVE, 0},
    {"CPU/skip+exhaustive", NULL, NULL, 0, GPUIR_EVAL_AUTO, 1}, /* the core of Ding et al., section 8.3 */
    {"GPU", NULL, NULL, 1, GPUIR_EVAL_AUTO, 0}, {"GPU/exhaustive", NULL, NULL, 1, GPUIR_EVAL_EXHAUSTIVE, 0},
    {"GPU/pmf3+tree", "pmf3", "tree", 1, GPUIR_EVAL_AUTO, 0}, /* Ding et al. */
    {"GPU/skip+tree", "skip", "tree", 1, GPUIR_EVAL_AUTO, 0},
    {"GPU/mergepath+bucket-select", "mergepath", "bucket-select", 1, GPUIR_EVAL_AUTO, 0}}; /* Griffin */
#define WAYS (sizeof ways / sizeof *ways)

/* The same queries in AND, OR and AND+OR. */
typedef struct logs {
  query_log of[3];
} logs;

typedef struct session {
  gpuir_searcher *searcher, *then; /* then: NULL, or asked `or_` where `log` has too few hits */
  const query_log *log, *or_;
  int alone; /* query by query, not in one batch */
  gpuir_hit *hits;
  uint32_t *counts;
  size_t seconds; /* queries that the second searcher answered in the last pass */
  int status; /* of the first failure */
} session;

/* Answers query i. */
static int search_one(session *s, size_t i) {
  size_t n = 0;
  int status = gpuir_search(s->searcher, s->log->query[i], s->hits + i * HITS, HITS, &n);
  if (!status && s->then && n < HITS) {
    status = gpuir_search(s->then, s->or_->query[i], s->hits + i * HITS, HITS, &n);
    s->seconds++;
  }
  s->counts[i] = (uint32_t)n;
  return status;
}

static void search_batch(void *arg) {
  session *s = (session *)arg;
  const int status =
      gpuir_search_batch(s->searcher, (const gpuir_query *const *)s->log->query, s->log->n, HITS, s->hits, s->counts);
  if (!s->status) s->status = status;
}

static int compare_ns(const void *x, const void *y) {
  const double a = *(const double *)x, b = *(const double *)y;
  return (a > b) - (a < b);
}

/* Seconds of a query that comes alone, by the clock: the mean over the queries of each one's median of `repeat` passes
 * after one that warms up, and its bootstrap interval over the queries. */
static lab_spread time_alone(const lab *l, session *s) {
  const size_t n = s->log->n, repeat = (size_t)l->repeat;
  double *seconds = (double *)cli_resize(NULL, n * repeat, sizeof *seconds);
  for (size_t r = 0; r <= repeat && !lab_stopped() && !s->status; r++) {
    s->seconds = 0;
    for (size_t i = 0; i < n && !s->status; i++) {
      const uint64_t since = cli_nanoseconds();
      s->status = search_one(s, i);
      seconds[i * repeat + (r ? r - 1 : 0)] = (double)(cli_nanoseconds() - since) / 1e9;
    }
  }
  for (size_t i = 0; i < n && !s->status; i++) {
    qsort(seconds + i * repeat, repeat, sizeof *seconds, compare_ns);
    seconds[i] = seconds[i * repeat + repeat / 2];
  }
  lab_spread mean;
  memset(&mean, 0, sizeof mean);
  if (!s->status && !lab_stopped()) mean = lab_bootstrap(seconds, n);
  free(seconds);
  return mean;
}

/* Milliseconds a query. */
static lab_spread time_session(const lab *l, session *s) {
  return s->alone ? lab_scaled(time_alone(l, s), 1e3)
                  : lab_scaled(lab_time_waiting(l, search_batch, s), 1e3 / (double)s->log->n);
}

/* Opens the second searcher of a core that asks for OR where AND has too few hits. */
static int session_then(const lab *l, const logs *g, session *s) {
  gpuir_searcher_desc desc;
  memset(&desc, 0, sizeof desc);
  desc.evaluator = GPUIR_EVAL_EXHAUSTIVE;
  s->log = &g->of[0];
  s->or_ = &g->of[1];
  const int status = gpuir_searcher_create(l->index, &desc, &s->then, NULL);
  return status ? cli_fail(l->path, status, NULL) : CLI_OK;
}

static int session_open(const lab *l, const cli_gpu *gpu, size_t way, const logs *all, size_t mode, int alone,
    session *s) {
  const query_log *g = &all->of[mode];
  gpuir_error err;
  gpuir_searcher_desc desc;
  memset(&err, 0, sizeof err);
  memset(&desc, 0, sizeof desc);
  memset(s, 0, sizeof *s);
  desc.evaluator = ways[way].evaluator;
  s->log = g;
  s->alone = alone;
  s->hits = (gpuir_hit *)cli_resize(NULL, g->n * HITS, sizeof *s->hits);
  s->counts = (uint32_t *)cli_resize(NULL, g->n, sizeof *s->counts);
  memset(s->hits, 0, g->n * HITS * sizeof *s->hits);
  int status = gpuir_searcher_create(l->index, &desc, &s->searcher, NULL);
  if (status) return cli_fail(l->path, status, NULL);
  if (ways[way].then) return session_then(l, all, s);
  if (ways[way].gpu && !ways[way].intersection) {
    cli_gpu strict = *gpu;
    strict.fallback = 0;
    return cli_gpu_attach(&strict, s->searcher);
  }
  if (ways[way].gpu)
    status = gpuir_cuda_lab_attach(s->searcher, gpu->cuda, ways[way].intersection, ways[way].ranking, 0, &err);
  return status ? cli_fail(ways[way].name, status, &err) : CLI_OK;
}

static void session_close(session *s) {
  gpuir_searcher_destroy(s->searcher);
  gpuir_searcher_destroy(s->then);
  free(s->hits);
  free(s->counts);
  memset(s, 0, sizeof *s);
}

static int same_hits(const session *a, const session *b) {
  for (size_t i = 0; i < a->log->n; i++) {
    if (a->counts[i] != b->counts[i]) return 0;
    for (size_t h = i * HITS; h < i * HITS + a->counts[i]; h++)
      if (a->hits[h].docid != b->hits[h].docid || a->hits[h].score != b->hits[h].score) return 0;
  }
  return 1;
}

/* The shares of a session's steps. */
static void put_steps(lab *l, const session *s, size_t mode, size_t way) {
  static const char *const names[GPUIR_CUDA_LAB_STEPS] = {"transfer-in", "decode", "intersect", "score", "collect",
      "select-top-k"};
  double ms[2][GPUIR_CUDA_LAB_STEPS], all = 0;
  char series[96];
  for (size_t w = 0; w < way && modes[mode].mode == GPUIR_OR; w++) /* OR does not intersect */
    if (ways[w].ranking && !strcmp(ways[w].ranking, ways[way].ranking)) return;
  if (gpuir_cuda_lab_steps(s->searcher, ms, NULL)) return;
  snprintf(series, sizeof series, "%s/%s%s", modes[mode].name,
      modes[mode].mode == GPUIR_AND ? ways[way].name + strlen("GPU/") : ways[way].ranking,
      s->alone ? "/alone" : "/batch");
  for (int i = 0; i < GPUIR_CUDA_LAB_STEPS; i++) all += ms[mode][i];
  for (int i = 0; i < GPUIR_CUDA_LAB_STEPS && all > 0; i++)
    lab_row(&l->report, "ding-table3", series, names[i], 100 * ms[mode][i] / all, "percent");
}

/* One way over one log; the CPU's session says what is right. */
static int run_way(lab *l, const cli_gpu *gpu, size_t mode, size_t way, const logs *g, const session *right, int alone,
    lab_spread *ms) {
  session s;
  char series[96];
  lab_progress("queries: %s, %s%s", modes[mode].name, ways[way].name, alone ? ", alone" : "");
  if (lab_stopped()) return CLI_FAIL;
  int code = session_open(l, gpu, way, g, mode, alone, &s);
  if (code == CLI_OK) {
    if (ways[way].gpu) lab_gpu_take(l);
    *ms = time_session(l, &s);
    if (ways[way].gpu) lab_gpu_give(l);
    if (ways[way].then)
      lab_note(&l->report, "AND+OR", "%zu of %zu queries have fewer than %u hits in AND, and are asked in OR",
          s.seconds, s.log->n, HITS);
    if (s.status) {
      gpuir_error err;
      memset(&err, 0, sizeof err);
      gpuir_searcher_error(s.searcher, &err);
      code = cli_fail(ways[way].name, s.status, &err);
    } else if (!same_hits(&s, right)) {
      snprintf(series, sizeof series, "%s by %s", modes[mode].name, ways[way].name);
      cli_error("%s has other hits than the CPU", series);
      code = CLI_FAIL;
    } else if (ways[way].intersection && modes[mode].mode != GPUIR_ANDOR && lab_wants(l, "ding-table3")) {
      put_steps(l, &s, mode, way);
    }
  }
  session_close(&s);
  return code;
}

typedef lab_spread way_times[WAYS][2][3]; /* milliseconds a query: in batches or alone, by mode */

/* All ways but the first over the log of a mode. AND has one evaluator. */
static int run_mode(lab *l, const cli_gpu *gpu, size_t m, const logs *g, const session *right, way_times ms) {
  int code = CLI_OK;
  for (size_t w = 1; w < WAYS && code == CLI_OK; w++) {
    if (ways[w].gpu && !gpu->cuda) continue;
    if (ways[w].evaluator == GPUIR_EVAL_EXHAUSTIVE && modes[m].mode == GPUIR_AND) continue;
    if (ways[w].then && modes[m].mode != GPUIR_ANDOR) continue;
    for (int alone = !ways[w].gpu; alone < 2 && code == CLI_OK; alone++)
      code = run_way(l, gpu, m, w, g, right, alone, &ms[w][alone][m]);
  }
  return code;
}

/* A core that prunes, which says what is right, and all other ways over the log of a mode. Exit code. */
static int run_log(lab *l, const cli_gpu *gpu, size_t m, const logs *g, way_times ms) {
  session right;
  lab_progress("queries: %s", modes[m].name);
  int code = session_open(l, gpu, 0, g, m, 1, &right);
  if (code == CLI_OK) ms[0][1][m] = time_session(l, &right);
  if (right.status) code = cli_fail(l->path, right.status, NULL);
  if (code == CLI_OK) code = run_mode(l, gpu, m, g, &right, ms);
  session_close(&right);
  return code;
}

static int run_queries(lab *l, const cli_gpu *gpu) {
  way_times ms;
  logs g;
  int code = CLI_OK;
  memset(ms, 0, sizeof ms);
  memset(&g, 0, sizeof g);
  lab_note(&l->report, "alone",
      "the mean over the queries of each one's median of %llu passes, by the clock; min and max are the ends of its 95 "
      "%% bootstrap interval over the queries, n of them; CPU/exhaustive of AND+OR scores every posting for the AND as "
      "well, CPU/skip+exhaustive skips there, as Ding's core does",
      (unsigned long long)l->repeat);
  for (size_t m = 0; m < 3 && code == CLI_OK; m++) code = log_make(l, modes[m].mode, &g.of[m]);
  for (size_t m = 0; m < 3 && code == CLI_OK && g.of[m].n; m++) code = run_log(l, gpu, m, &g, ms);
  for (size_t m = 0; m < 3; m++) log_free(&g.of[m]);
  for (size_t w = 0; w < WAYS && code == CLI_OK && lab_wants(l, "ding-table2"); w++)
    for (int alone = 1; alone >= 0; alone--)
      for (size_t m = 0; m < 3; m++) {
        char series[96];
        if (!ms[w][alone][m].n) continue;
        snprintf(series, sizeof series, "%s%s", ways[w].name, !ways[w].gpu ? "" : alone ? "/alone" : "/batch");
        lab_row_of(&l->report, "ding-table2", series, modes[m].name, ms[w][alone][m], "ms/query");
      }
  return code;
}

/* ---- ranking alone: Griffin's Figure 7 ---------------------------------------------------------------------- */

/* The candidates of some queries of each class of results, by docID. */
typedef struct candidates {
  gpuir_hit *hits[LAB_CLASSES][CANDIDATES];
  uint32_t n[LAB_CLASSES][CANDIDATES];
  unsigned queries[LAB_CLASSES];
  uint64_t all[LAB_CLASSES];
} candidates;

static int compare_docid(const void *x, const void *y) {
  const gpuir_hit *a = (const gpuir_hit *)x, *b = (const gpuir_hit *)y;
  return a->docid < b->docid ? -1 : a->docid > b->docid;
}

static void candidates_free(candidates *c) {
  for (unsigned i = 0; i < LAB_CLASSES; i++)
    for (unsigned j = 0; j < c->queries[i]; j++) free(c->hits[i][j]);
}

static int find_candidates(const lab *l, const query_log *g, candidates *c) {
  gpuir_searcher *searcher;
  int status = gpuir_searcher_create(l->index, NULL, &searcher, NULL);
  if (status) return cli_fail(l->path, status, NULL);
  for (size_t i = 0; i < g->n && !status && !lab_stopped(); i++) {
    uint64_t matches = 0;
    size_t n = 0;
    status = gpuir_count(searcher, g->query[i], &matches);
    if (status || !matches) continue;
    unsigned of = lab_class((uint32_t)matches);
    if (of < LEAST_RESULTS || c->queries[of] == CANDIDATES || c->all[of] + matches > CLASS_HITS) continue;
    gpuir_hit *hits = (gpuir_hit *)cli_resize(NULL, (size_t)matches, sizeof *hits);
    status = gpuir_search(searcher, g->query[i], hits, (size_t)matches, &n);
    qsort(hits, n, sizeof *hits, compare_docid);
    c->n[of][c->queries[of]] = (uint32_t)n;
    c->all[of] += n;
    c->hits[of][c->queries[of]++] = hits;
  }
  gpuir_searcher_destroy(searcher);
  return status ? cli_fail(l->path, status, NULL) : CLI_OK;
}

typedef struct ranking {
  const candidates *all;
  unsigned of; /* the class */
  size_t k;
  gpuir_hit *hits;
} ranking;

static void rank_class(void *arg) {
  const ranking *r = (const ranking *)arg;
  for (unsigned i = 0; i < r->all->queries[r->of]; i++)
    lab_best(r->all->hits[r->of][i], r->all->n[r->of][i], r->k, r->hits);
}

/* Adds milliseconds a query of ranking nq queries on the device in one run to *ms, `by` times: the candidates of a
 * class from place `first` on, again and again. The hits are compared with the heap's. */
static int rank_on_device(const lab *l, gpuir_cuda_lab *gpu, const ranking *r, unsigned first, size_t nq,
    const char *how, double by, lab_spread *ms) {
  const candidates *all = r->all;
  const unsigned of = r->of, n = all->queries[of];
  uint32_t *start = (uint32_t *)cli_resize(NULL, nq + 1, sizeof *start),
           *counts = (uint32_t *)cli_resize(NULL, nq, sizeof *counts);
  gpuir_hit *hits = (gpuir_hit *)cli_resize(NULL, nq * r->k, sizeof *hits), *from;
  gpuir_cuda_lab_result result;
  gpuir_error err;
  double times[LAB_MOST_REPEATS];
  int code = CLI_OK;
  memset(&err, 0, sizeof err);
  memset(&result, 0, sizeof result);
  start[0] = 0;
  for (size_t q = 0; q < nq; q++) start[q + 1] = start[q] + all->n[of][(first + q) % n];
  from = (gpuir_hit *)cli_resize(NULL, start[nq], sizeof *from);
  for (size_t q = 0; q < nq; q++)
    memcpy(from + start[q], all->hits[of][(first + q) % n], (start[q + 1] - start[q]) * sizeof *from);
  lab_gpu_take(l);
  for (uint64_t run = 0; run <= l->repeat && code == CLI_OK; run++) { /* the first one warms up */
    int status = gpuir_cuda_lab_topk(gpu, from, start, nq, r->k, how, 1, hits, counts, &result, &err);
    if (status) code = cli_fail(how, status, &err);
    if (run) times[run - 1] = result.ms;
  }
  lab_gpu_give(l);
  for (size_t q = 0; q < nq && code == CLI_OK; q++) {
    size_t right = lab_best(from + start[q], start[q + 1] - start[q], r->k, r->hits);
    if (counts[q] == right && !memcmp(hits + q * r->k, r->hits, right * sizeof *hits)) continue;
    cli_error("%s on the device ranks other documents than the heap", how);
    code = CLI_FAIL;
  }
  if (code == CLI_OK) {
    lab_spread spread = lab_spread_of(times, (size_t)l->repeat);
    lab_spread_add(ms, &spread, by / (double)nq);
  }
  free(start);
  free(counts);
  free(hits);
  free(from);
  return code;
}

#define RANKED_AT_ONCE ((uint64_t)1 << 22) /* candidates of a run with several queries */
#define RANKED_QUERIES 512u

/* Milliseconds a query of a class: each query in a run of its own, and many in one. */
static int rank_class_on_device(const lab *l, gpuir_cuda_lab *gpu, const ranking *r, const char *how, lab_spread *alone,
    lab_spread *batch) {
  const unsigned n = r->all->queries[r->of];
  size_t nq = (size_t)(RANKED_AT_ONCE >> (r->of + 1));
  int code = CLI_OK;
  memset(alone, 0, sizeof *alone);
  memset(batch, 0, sizeof *batch);
  if (nq > RANKED_QUERIES) nq = RANKED_QUERIES;
  for (unsigned i = 0; i < n && code == CLI_OK; i++) code = rank_on_device(l, gpu, r, i, 1, how, 1.0 / n, alone);
  if (code == CLI_OK && nq > 1) code = rank_on_device(l, gpu, r, 0, nq, how, 1, batch);
  return code;
}

/* Milliseconds a query: of k, of the heap and the device's ways, of the class. */
typedef lab_spread ranked[3][1 + MOST_RANKINGS][LAB_CLASSES];

static const size_t ks[] = {10, 100, 1000};

static int rank_all(const lab *l, const candidates *c, gpuir_cuda_lab *gpu, ranked alone, ranked batch) {
  gpuir_hit hits[1000];
  const char *how;
  int code = CLI_OK;
  for (size_t k = 0; k < 3; k++)
    for (unsigned of = 0; of < LAB_CLASSES && code == CLI_OK; of++) {
      ranking r = {c, of, ks[k], hits};
      if (!c->queries[of]) continue;
      lab_progress("ranking: class %u, k %zu", of, ks[k]);
      if (lab_stopped()) code = CLI_FAIL;
      alone[k][0][of] = lab_scaled(lab_time(l, rank_class, &r), 1e3 / c->queries[of]);
      for (size_t i = 0; gpu && i < MOST_RANKINGS && (how = gpuir_cuda_lab_ranking(i)) != NULL; i++)
        if (code == CLI_OK) code = rank_class_on_device(l, gpu, &r, how, &alone[k][1 + i][of], &batch[k][1 + i][of]);
    }
  return code;
}

static void ranking_rows(lab *l, int figure, ranked y) {
  const char *id = lab_search_figures[figure].id;
  for (size_t i = 0; lab_wants(l, id) && i < 1 + MOST_RANKINGS && (!i || gpuir_cuda_lab_ranking(i - 1)); i++)
    for (size_t k = 0; k < 3; k++)
      for (unsigned of = 0; of < LAB_CLASSES; of++) {
        char series[64];
        if (!y[k][i][of].n) continue;
        snprintf(series, sizeof series, "%s%s/%zu", i ? gpuir_cuda_lab_ranking(i - 1) : "heap", i ? "/GPU" : "", ks[k]);
        lab_row_of_at(&l->report, id, series, ldexp(1, (int)of + 1), y[k][i][of], "ms/query");
      }
}

static int rank_candidates(lab *l, const candidates *c) {
  static ranked alone, batch;
  uint32_t doc = 0;
  uint64_t most = RANKED_AT_ONCE;
  lab_list one = {0, 1, &doc};
  const lab_list *list = &one;
  lab_gpu_size size;
  gpuir_cuda_lab *gpu = NULL;
  int code = CLI_OK;
  memset(alone, 0, sizeof alone);
  memset(batch, 0, sizeof batch);
  memset(&size, 0, sizeof size);
  for (unsigned of = 0; of < LAB_CLASSES; of++)
    for (unsigned i = 0; i < c->queries[of]; i++)
      if (c->n[of][i] > most) most = c->n[of][i];
  size.room = 2 * most;
  size.queries = RANKED_QUERIES;
  if (l->gpu) code = lab_gpu_open(NULL, &list, 1, &size, &gpu);
  if (code == CLI_OK) code = rank_all(l, c, gpu, alone, batch);
  gpuir_cuda_lab_close(gpu);
  if (code) return code;
  ranking_rows(l, GRIFFIN_FIG7, alone);
  for (size_t k = 0; k < 3 && l->gpu; k++) memcpy(batch[k][0], alone[k][0], sizeof batch[k][0]);
  ranking_rows(l, RANKING_BATCH, batch);
  return CLI_OK;
}

static int griffin_fig7(lab *l) {
  candidates c;
  int code = CLI_OK;
  memset(&c, 0, sizeof c);
  for (size_t m = 0; m < 2 && code == CLI_OK; m++) {
    query_log g;
    lab_progress("candidates: %s", modes[m].name);
    code = log_make(l, modes[m].mode, &g);
    if (code) break;
    code = find_candidates(l, &g, &c);
    log_free(&g);
  }
  if (code == CLI_OK) code = rank_candidates(l, &c);
  candidates_free(&c);
  return code;
}

/* ---- the subcommand -------------------------------------------------------------------------------------- */

int lab_search(lab *l) {
  lab_lists lists;
  static const cli_devices first; /* of the devices */
  cli_gpu gpu = {NULL, 0, 0};
  int code = lab_draw_lists(l, l->sample, LAB_POSTINGS, &lists);
  if (code == CLI_OK) lab_pick_queries(l, &lists);
  if (code == CLI_OK && (lab_wants(l, "ding-table2") || lab_wants(l, "ding-table3"))) {
    if (l->gpu) code = cli_gpu_open(&gpu, l->backend, &first, l->index);
    if (code == CLI_OK) code = run_queries(l, &gpu);
    cli_gpu_close(&gpu);
  }
  if (code == CLI_OK && (lab_wants(l, "griffin-fig7") || lab_wants(l, "ranking-batch"))) code = griffin_fig7(l);
  lab_progress("%s", "");
  for (int f = 0; f < FIGURES && code == CLI_OK; f++) lab_print(&l->report, &lab_search_figures[f]);
  lab_lists_free(&lists);
  return code;
}
