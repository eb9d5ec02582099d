/* ding_costs.c - learns what a query costs the CPU and the GPU, as ding_costs.h says.
 *
 * The features are the paper's: the lengths of the shortest and the second-shortest list, the sum of all lengths, and
 * the number of terms. The paper uses Weka's M5Rules; here it is the model tree that such rules are made of, see m5.h.
 * Costs are measured while all processors of both sides work, as in service.
 */
#include "ding_costs.h"

#include "m5.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SHORTEST, SECOND, SUM, TERMS, FEATURES };

struct ding_costs {
  m5_tree *tree[DING_SIDES]; /* NULL: there is no such side */
  double least[DING_SIDES], most[DING_SIDES]; /* costs that it was grown from: lines of leaves go on beyond these */
  int linear;
};

static const char *const side_names[] = {"CPU", "GPU"};

/* ---- features ------------------------------------------------------------------------------------------------- */

static void features_of(const gpuir_query *query, int linear, double *x) {
  uint32_t lengths[GPUIR_MAX_TERMS];
  const size_t n = load_lengths(query, lengths);
  x[SHORTEST] = n ? lengths[0] : 0;
  x[SECOND] = n > 1 ? lengths[1] : x[SHORTEST];
  x[SUM] = 0;
  for (size_t i = 0; i < n; i++) x[SUM] += lengths[i];
  x[TERMS] = (double)n;
  if (linear) return;
  for (unsigned f = SHORTEST; f <= SUM; f++) x[f] = log2(x[f] + 1);
}

static double to_cost(double y, int linear) { return linear ? (y > 1 ? y : 1) : exp2(y); }
static double from_cost(double ns, int linear) { return linear ? ns : log2(ns > 1 ? ns : 1); }

double ding_cost(const ding_costs *c, unsigned side, const gpuir_query *query) {
  double x[FEATURES];
  if (!c->tree[side]) return 1;
  features_of(query, c->linear, x);
  const double cost = to_cost(m5_predict(c->tree[side], x), c->linear);
  return cost < c->least[side] ? c->least[side] : cost > c->most[side] ? c->most[side] : cost;
}

void ding_costs_free(ding_costs *c) {
  for (unsigned s = 0; c && s < DING_SIDES; s++) m5_free(c->tree[s]);
  free(c);
}

/* ---- measuring ------------------------------------------------------------------------------------------------ */

/* What all threads that measure share. */
typedef struct trial {
  const load_setup *setup;
  const ding_learning *how;
  size_t n;
  load_query **queries; /* [n] */
  double *ns[DING_SIDES]; /* [n * passes] */
  unsigned open; /* threads that still measure; read and written atomically */
  int status; /* the first failure; the same */
} trial;

typedef struct measurer {
  trial *trial;
  gpuir_searcher *searcher;
  gpuir_hit *hits;
  unsigned side, number;
  pthread_t thread;
} measurer;

/* Asks each of the thread's queries once, and notes their times or, if not, leaves when nobody measures any more. */
static void measure_pass(const measurer *m, unsigned pass, int note) {
  trial *t = m->trial;
  for (size_t i = m->number; i < t->n && !cli_signal; i += t->how->servers[m->side]) {
    size_t found;
    const uint64_t since = cli_nanoseconds();
    const int status = gpuir_search(m->searcher, t->queries[i]->query, m->hits, t->setup->k, &found);
    if (status) __atomic_store_n(&t->status, status, __ATOMIC_RELAXED);
    if (note) t->ns[m->side][i * t->how->passes + pass] = (double)(cli_nanoseconds() - since) + 1;
    if (!note && !__atomic_load_n(&t->open, __ATOMIC_RELAXED)) return;
  }
}

/* Measures, and then keeps its processor busy until all have. */
static void *measure(void *arg) {
  const measurer *m = (const measurer *)arg;
  for (unsigned pass = 0; pass < m->trial->how->passes; pass++) measure_pass(m, pass, 1);
  (void)__atomic_sub_fetch(&m->trial->open, 1, __ATOMIC_RELAXED);
  while (__atomic_load_n(&m->trial->open, __ATOMIC_RELAXED) && !cli_signal) measure_pass(m, 0, 0);
  return NULL;
}

static int measurer_open(measurer *m, trial *t, unsigned side, unsigned number) {
  gpuir_error err;
  memset(&err, 0, sizeof err);
  m->trial = t;
  m->side = side;
  m->number = number;
  m->hits = (gpuir_hit *)cli_resize(NULL, t->setup->k, sizeof *m->hits);
  int status = gpuir_searcher_create(t->setup->index, NULL, &m->searcher, &err);
  if (!status && side == DING_GPU) status = load_attach((void *)(uintptr_t)t->setup, m->searcher, &err);
  return status ? cli_fail(t->setup->path, status, &err) : CLI_OK;
}

/* Measures all queries of a trial on all sides at once. Exit code. */
static int measure_all(trial *t) {
  unsigned n = 0, started = 0;
  int code = CLI_OK;
  for (unsigned s = 0; s < DING_SIDES; s++) n += t->how->sides[s] ? t->how->servers[s] : 0;
  measurer *m = (measurer *)cli_resize(NULL, n, sizeof *m);
  memset(m, 0, n * sizeof *m);
  n = 0;
  for (unsigned s = 0; s < DING_SIDES; s++)
    for (unsigned i = 0; t->how->sides[s] && i < t->how->servers[s] && code == CLI_OK; i++)
      code = measurer_open(&m[n++], t, s, i);
  t->open = n;
  for (; code == CLI_OK && started < n; started++)
    if (pthread_create(&m[started].thread, NULL, measure, &m[started])) {
      code = cli_fail(t->setup->path, GPUIR_E_NOMEM, NULL);
      __atomic_store_n(&t->open, 0, __ATOMIC_RELAXED); /* those that run leave when they have measured */
      break;
    }
  for (unsigned i = 0; i < started; i++) pthread_join(m[i].thread, NULL);
  if (code == CLI_OK && t->status) code = cli_fail(t->setup->path, t->status, NULL);
  for (unsigned i = 0; i < n; i++) {
    gpuir_searcher_destroy(m[i].searcher);
    free(m[i].hits);
  }
  free(m);
  return code;
}

static int compare_doubles(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Returns the median time of query i. */
static double median(const trial *t, unsigned side, size_t i) {
  double *ns = t->ns[side] + i * t->how->passes;
  qsort(ns, t->how->passes, sizeof *ns, compare_doubles);
  return ns[t->how->passes / 2];
}

/* ---- learning ------------------------------------------------------------------------------------------------- */

/* Grows a side's tree from the queries `from` and on. -1: no memory. */
static int grow_tree(ding_costs *c, const trial *t, unsigned side, size_t from, const double *cost) {
  const size_t n = t->n - from;
  double *x = (double *)cli_resize(NULL, n * FEATURES, sizeof *x), *y = (double *)cli_resize(NULL, n, sizeof *y);
  m5_desc desc;
  memset(&desc, 0, sizeof desc);
  desc.features = FEATURES;
  for (size_t i = 0; i < n; i++) {
    features_of(t->queries[from + i]->query, c->linear, x + i * FEATURES);
    y[i] = from_cost(cost[from + i], c->linear);
    if (!i || cost[from + i] < c->least[side]) c->least[side] = cost[from + i];
    if (!i || cost[from + i] > c->most[side]) c->most[side] = cost[from + i];
  }
  c->tree[side] = m5_grow(&desc, x, y, n);
  free(x);
  free(y);
  return c->tree[side] ? 0 : -1;
}

/* Returns the mean relative error of what is said of queries [from, to), in percent. */
static double mean_error(const ding_costs *c, const trial *t, unsigned side, size_t from, size_t to,
    const double *cost) {
  double sum = 0;
  for (size_t i = from; i < to; i++) sum += fabs(ding_cost(c, side, t->queries[i]->query) - cost[i]) / cost[i];
  return to > from ? 100 * sum / (double)(to - from) : 0;
}

/* Tells how well costs are known: of the queries before `from`, which the trees have not seen, and of the others. */
static void tell_errors(const ding_costs *c, const trial *t, size_t from, double *const *cost, lab_report *r) {
  size_t right = 0, gpu = 0;
  for (unsigned s = 0; s < DING_SIDES; s++) {
    if (!c->tree[s] || !cost[s]) continue;
    const double seen = mean_error(c, t, s, from, t->n, cost[s]), error = mean_error(c, t, s, 0, from, cost[s]);
    lab_row(r, "ding-9-model", side_names[s], "error/others", error, "percent");
    lab_row(r, "ding-9-model", side_names[s], "error/learned", seen, "percent");
    lab_note(r, "cost model",
        "%s: %zu leaves; mean relative error %.3g %% of %zu other queries, %.3g %% of the %zu it "
        "was grown from",
        side_names[s], m5_leaves(c->tree[s]), error, from, seen, t->n - from);
  }
  if (!cost[DING_CPU] || !cost[DING_GPU] || !from) return;
  for (size_t i = 0; i < from; i++) {
    const gpuir_query *q = t->queries[i]->query;
    const int is = cost[DING_GPU][i] < cost[DING_CPU][i];
    gpu += (size_t)is;
    right += (ding_cost(c, DING_GPU, q) < ding_cost(c, DING_CPU, q)) == is;
  }
  lab_row(r, "ding-9-model", "choice", "right", 100 * (double)right / (double)from, "percent");
  lab_row(r, "ding-9-model", "choice", "GPU/cheaper", 100 * (double)gpu / (double)from, "percent");
  lab_note(r, "cost model", "the cheaper side is predicted for %zu of %zu other queries; it is the GPU for %zu", right,
      from, gpu);
}

/* Section 8.4: mean cost by the number of terms, the sum of the lists' lengths, and the shortest one's. */
static void tell_properties(const trial *t, double *const *cost, lab_report *r) {
  static const struct {
    const char *figure;
    unsigned feature;
  } by[] = {{"ding-84-terms", TERMS}, {"ding-84-footprint", SUM}, {"ding-84-shortest", SHORTEST}};
  for (size_t b = 0; b < sizeof by / sizeof *by; b++)
    for (unsigned s = 0; s < DING_SIDES; s++)
      for (unsigned class_ = 0; class_ < 34 && cost[s]; class_++) {
        double sum = 0, x[FEATURES];
        size_t n = 0;
        for (size_t i = 0; i < t->n; i++) {
          features_of(t->queries[i]->query, 1, x);
          const double v = x[by[b].feature];
          if ((by[b].feature == TERMS ? (unsigned)v : (unsigned)log2(v + 1)) != class_) continue;
          sum += cost[s][i];
          n++;
        }
        if (n)
          lab_row_at(r, by[b].figure, side_names[s], by[b].feature == TERMS ? class_ : exp2(class_ + 1.0) - 1,
              sum / (double)n / 1e6, "ms");
      }
}

/* Takes the queries to learn from off the end of the load's; `from` others, at its beginning, test the trees. */
static size_t set_apart(load_setup *setup, const ding_learning *how, trial *t) {
  size_t train = how->train, from;
  if (train > setup->nqueries / 2) train = setup->nqueries / 2;
  if (!train) train = setup->nqueries; /* a single query */
  else {
    setup->nqueries -= train;
    setup->apart = train;
  }
  from = train / 3 < setup->nqueries ? train / 3 : setup->nqueries;
  t->n = from + train;
  t->queries = (load_query **)cli_resize(NULL, t->n, sizeof *t->queries);
  for (size_t i = 0; i < from; i++) t->queries[i] = &setup->queries[i];
  for (size_t i = 0; i < train; i++)
    t->queries[from + i] = &setup->queries[(setup->nqueries + i) % (setup->nqueries + setup->apart)];
  return from;
}

int ding_learn(load_setup *setup, const ding_learning *how, lab_report *report, ding_costs **costs) {
  ding_costs *c = (ding_costs *)cli_resize(NULL, 1, sizeof *c);
  double *cost[DING_SIDES] = {NULL, NULL};
  trial t;
  memset(c, 0, sizeof *c);
  memset(&t, 0, sizeof t);
  c->linear = how->linear;
  t.setup = setup;
  t.how = how;
  const size_t from = set_apart(setup, how, &t);
  for (unsigned s = 0; s < DING_SIDES; s++) t.ns[s] = (double *)cli_resize(NULL, t.n * how->passes, sizeof(double));
  int code = measure_all(&t);
  for (unsigned s = 0; s < DING_SIDES && code == CLI_OK && !cli_signal; s++) {
    if (!how->sides[s]) continue;
    cost[s] = (double *)cli_resize(NULL, t.n, sizeof *cost[s]);
    for (size_t i = 0; i < t.n; i++) cost[s][i] = median(&t, s, i);
    if (grow_tree(c, &t, s, from, cost[s])) code = cli_fail(setup->path, GPUIR_E_NOMEM, NULL);
  }
  if (cli_signal) code = 128 + (int)cli_signal;
  if (code == CLI_OK) {
    tell_errors(c, &t, from, cost, report);
    tell_properties(&t, cost, report);
  }
  for (unsigned s = 0; s < DING_SIDES; s++) {
    free(t.ns[s]);
    free(cost[s]);
  }
  free(t.queries);
  if (code == CLI_OK) *costs = c;
  else ding_costs_free(c);
  return code;
}
