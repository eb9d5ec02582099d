/* lab.c - gpuir lab: the experiments of the papers, redrawn on the lists of an index. This file has what its
 * subcommands share: options, the sample of lists and queries, timing, the dispatch.
 */
#include "../cli/cli.h"
#include "claims.h"
#include "gpuir_lab.h"
#include "lab.h"
#include "load.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LEAST_SECONDS 200e-6 /* of a measurement: shorter work is repeated within it */

/* ---- small services ------------------------------------------------------------------------------------ */

int lab_among(const char *names, const char *name) {
  size_t n = strlen(name);
  if (!names) return 1;
  for (const char *p = names; *p;) {
    size_t m = strcspn(p, ",");
    if (m == n && !strncmp(p, name, n)) return 1;
    p += m + (p[m] == ',');
  }
  return 0;
}

int lab_wants(const lab *l, const char *figure) { return lab_among(l->figures, figure); }

/* The length of the first codec in a list: a comma stands between codecs, and within a parameter such as 64,min. */
static size_t spec_length(const char *p) {
  size_t n = strcspn(p, ",");
  while (p[n] && ((p[n + 1] >= '0' && p[n + 1] <= '9') || !strncmp(p + n + 1, "min", 3)))
    n += 1 + strcspn(p + n + 1, ",");
  return n;
}

/* 1; 0 when there is no i-th codec; -1 when it is wrong, and *err tells why. */
static int codec_at(const lab *l, size_t i, lab_codec *codec, gpuir_error *err) {
  const char *p = l->codecs;
  if (!p) return lab_codec_name(i) && !lab_codec_find(lab_codec_name(i), codec, err);
  for (; *p && i; i--) {
    p += spec_length(p);
    p += *p == ',';
  }
  if (!*p) return 0;
  char *spec = cli_copy(p, spec_length(p));
  int status = lab_codec_find(spec, codec, err);
  free(spec);
  return status ? -1 : 1;
}

int lab_codec_at(const lab *l, size_t i, lab_codec *codec) { return codec_at(l, i, codec, NULL) == 1; }

int lab_codec_wanted(const lab *l, const char *label) {
  lab_codec codec;
  size_t n = strcspn(label, ":");
  for (size_t i = 0; lab_codec_at(l, i, &codec); i++)
    if (strcspn(codec.label, ":") == n && !strncmp(codec.label, label, n)) return 1;
  return 0;
}

void lab_progress(const char *fmt, ...) {
  char line[80];
  va_list ap;
  if (!isatty(STDERR_FILENO)) return;
  va_start(ap, fmt);
  vsnprintf(line, sizeof line, fmt, ap);
  va_end(ap);
  cli_status(line);
}

int lab_stopped(void) { return cli_signal != 0; }

/* In [0, n), n <= 2^32 (Lemire: Fast random integer generation in an interval, TOMACS 2019; without his last step). */
static uint64_t draw(uint64_t *state, uint64_t n) { return (cli_random(state) >> 32) * n >> 32; }

unsigned lab_class(uint32_t n) {
  unsigned c = 0;
  while (n >>= 1) c++;
  return c;
}

/* ---- timing ----------------------------------------------------------------------------------------------- */

/* Time of the processor, not of the clock: other programs take turns on it. */
double lab_processor_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double run_seconds(double (*now)(void), void (*work)(void *), void *arg, uint64_t times) {
  double start = now();
  for (uint64_t i = 0; i < times; i++) work(arg);
  return now() - start;
}

/* Of warm work. */
static lab_spread time_by(const lab *l, double (*now)(void), void (*work)(void *), void *arg) {
  double seconds[LAB_MOST_REPEATS];
  uint64_t times = 1, i = 1;
  seconds[0] = run_seconds(now, work, arg, 1);
  if (seconds[0] < LEAST_SECONDS) {
    times = seconds[0] > LEAST_SECONDS / 10000 ? (uint64_t)(LEAST_SECONDS / seconds[0]) + 1 : 10000;
    i = 0;
  }
  for (; i < l->repeat; i++) seconds[i] = run_seconds(now, work, arg, times) / (double)times;
  return lab_spread_of(seconds, (size_t)l->repeat);
}

lab_spread lab_time_warm(const lab *l, void (*work)(void *), void *arg) {
  return time_by(l, lab_processor_seconds, work, arg);
}

lab_spread lab_time(const lab *l, void (*work)(void *), void *arg) {
  work(arg);
  return lab_time_warm(l, work, arg);
}

lab_spread lab_time_waiting(const lab *l, void (*work)(void *), void *arg) {
  work(arg);
  return time_by(l, cli_seconds, work, arg);
}

/* A chain of additions, of which a processor does one a cycle; the compiler must not see through it. */
static void chain(void *arg) {
  uint64_t x = *(uint64_t *)arg, step = x | 1;
  for (int i = 0; i < 100000; i++) {
#define CHAIN_LINK \
  x += step; \
  __asm__("" : "+r"(x), "+r"(step));
    CHAIN_LINK CHAIN_LINK CHAIN_LINK CHAIN_LINK CHAIN_LINK CHAIN_LINK CHAIN_LINK CHAIN_LINK CHAIN_LINK CHAIN_LINK
        CHAIN_LINK CHAIN_LINK CHAIN_LINK CHAIN_LINK CHAIN_LINK CHAIN_LINK
#undef CHAIN_LINK
  }
  *(uint64_t *)arg = x;
}

/* Cycles a second under load. A timer of the processor would do only if it ran at the core's own clock. */
static double measure_clock(const lab *l) {
  uint64_t x = l->seed;
  return 1600000.0 / lab_time(l, chain, &x).median;
}

/* ---- lists --------------------------------------------------------------------------------------------------- */

int lab_read_list(const lab *l, uint64_t term, uint32_t df, lab_list *list) {
  list->term = term;
  list->n = df;
  list->docs = (uint32_t *)cli_resize(NULL, df, sizeof *list->docs);
  int status = gpuir_term_postings(l->index, term, list->docs, NULL);
  if (!status) return CLI_OK;
  free(list->docs);
  list->docs = NULL;
  return cli_fail(l->path, status, NULL);
}

static void lists_add(lab_lists *lists, const lab_list *list) {
  if ((lists->n & (lists->n - 1)) == 0)
    lists->list = (lab_list *)cli_resize(lists->list, lists->n ? lists->n * 2 : 1, sizeof *lists->list);
  lists->list[lists->n++] = *list;
}

/* Draws up to `sample` without replacement among places[0..n), the candidates of one class. */
static int draw_class(const lab *l, uint64_t sample, uint64_t most, size_t *places, size_t n, uint64_t *state,
    lab_lists *lists, uint64_t *postings) {
  *postings = 0;
  for (size_t i = 0; i < n && i < sample && *postings < most; i++) {
    size_t j = i + (size_t)draw(state, n - i), place = places[j];
    lab_list list;
    places[j] = places[i];
    places[i] = place;
    if (lab_read_list(l, l->terms[place], l->dfs[place], &list)) return CLI_FAIL;
    lists_add(lists, &list);
    *postings += list.n;
  }
  return CLI_OK;
}

int lab_draw_lists(const lab *l, uint64_t sample, uint64_t postings, lab_lists *lists) {
  size_t *places = (size_t *)cli_resize(NULL, l->nterms, sizeof *places);
  uint64_t state = l->seed;
  int code = CLI_OK;
  memset(lists, 0, sizeof *lists);
  for (unsigned c = 0; c < LAB_CLASSES && code == CLI_OK; c++) {
    uint64_t all = 0, drawn;
    size_t n = 0;
    for (size_t i = 0; i < l->nterms; i++)
      if (lab_class(l->dfs[i]) == c) {
        places[n++] = i;
        all += l->dfs[i];
      }
    lists->first[c] = lists->n;
    code = draw_class(l, sample, postings, places, n, &state, lists, &drawn);
    lists->weight[c] = drawn ? (double)all / (double)drawn : 0;
    lists->lists[c] = drawn ? (double)n / (double)(lists->n - lists->first[c]) : 0;
  }
  lists->first[LAB_CLASSES] = lists->n;
  free(places);
  if (code != CLI_OK) lab_lists_free(lists);
  return code;
}

void lab_lists_free(lab_lists *lists) {
  for (size_t i = 0; i < lists->n; i++) free(lists->list[i].docs);
  free(lists->list);
  memset(lists, 0, sizeof *lists);
}

/* Renumbers one list; bits has a zero bit for each document, before and after. */
static void shuffle_list(const uint32_t *order, const lab_list *list, lab_list *out, uint64_t *bits,
    uint64_t documents) {
  uint32_t n = 0;
  *out = *list;
  out->docs = (uint32_t *)cli_resize(NULL, list->n, sizeof *out->docs);
  for (uint32_t i = 0; i < list->n; i++) bits[order[list->docs[i]] / 64] |= (uint64_t)1 << order[list->docs[i]] % 64;
  for (uint64_t word = 0; word < (documents + 63) / 64; word++)
    for (; bits[word]; bits[word] &= bits[word] - 1)
      out->docs[n++] = (uint32_t)(word * 64) + (uint32_t)__builtin_ctzll(bits[word]);
}

void lab_shuffle(const lab *l, const lab_lists *lists, lab_lists *out) {
  uint32_t *order = (uint32_t *)cli_resize(NULL, (size_t)l->documents, sizeof *order);
  uint64_t *bits = (uint64_t *)cli_resize(NULL, (size_t)l->documents / 64 + 1, sizeof *bits), state = l->seed;
  memset(bits, 0, ((size_t)l->documents / 64 + 1) * sizeof *bits);
  for (uint32_t i = 0; i < l->documents; i++) order[i] = i;
  for (uint32_t i = (uint32_t)l->documents; i > 1; i--) { /* Fisher & Yates */
    uint32_t j = (uint32_t)draw(&state, i), doc = order[i - 1];
    order[i - 1] = order[j];
    order[j] = doc;
  }
  *out = *lists;
  out->list = (lab_list *)cli_resize(NULL, lists->n, sizeof *out->list);
  for (size_t i = 0; i < lists->n; i++) shuffle_list(order, &lists->list[i], &out->list[i], bits, l->documents);
  free(order);
  free(bits);
}

/* ---- queries --------------------------------------------------------------------------------------------------- */

/* What one query of the file is read to. */
typedef struct query_reader {
  lab *l;
  lab_query query;
  int unknown; /* a term that the index has not, or too many of them */
} query_reader;

static void candidate_add(lab *l, uint64_t term, uint32_t df) {
  if ((l->nterms & (l->nterms - 1)) == 0) {
    size_t cap = l->nterms ? l->nterms * 2 : 1;
    l->terms = (uint64_t *)cli_resize(l->terms, cap, sizeof *l->terms);
    l->dfs = (uint32_t *)cli_resize(l->dfs, cap, sizeof *l->dfs);
  }
  l->terms[l->nterms] = term;
  l->dfs[l->nterms++] = df;
}

static int take_token(void *sink, const char *token, size_t len) {
  query_reader *r = (query_reader *)sink;
  uint64_t id;
  if (gpuir_term_find(r->l->index, token, len, &id) || r->query.k == LAB_TERMS) {
    r->unknown = 1;
    return 0;
  }
  for (unsigned i = 0; i < r->query.k; i++)
    if (r->query.term[i] == id) return 0;
  r->query.term[r->query.k++] = id;
  return 0;
}

/* Keeps the queries that an intersection can be made of, and all their known terms, with duplicates. */
static int read_queries(lab *l, const char *path) {
  cli_queries qs;
  memset(&qs, 0, sizeof qs);
  int code = cli_queries_read(&qs, path, CLI_IDS_AUTO);
  for (size_t i = 0; i < qs.n && code == CLI_OK; i++) {
    query_reader r;
    gpuir_error err;
    memset(&r, 0, sizeof r);
    memset(&err, 0, sizeof err);
    r.l = l;
    int status = gpuir_analyze(l->index, qs.texts[i], qs.lens[i], take_token, &r, &err);
    if (status) code = cli_fail(path, status, &err);
    for (unsigned j = 0; j < r.query.k; j++) candidate_add(l, r.query.term[j], 0);
    if (r.unknown || r.query.k < 2) continue;
    if ((l->nqueries & (l->nqueries - 1)) == 0)
      l->queries = (lab_query *)cli_resize(l->queries, l->nqueries ? l->nqueries * 2 : 1, sizeof *l->queries);
    l->queries[l->nqueries++] = r.query;
  }
  cli_queries_free(&qs);
  return code;
}

static int compare_u64(const void *x, const void *y) {
  uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
  return a < b ? -1 : a > b;
}

/* Fills in the dfs; drops duplicates and terms of one posting. */
static int finish_candidates(lab *l) {
  size_t n = 0;
  if (l->nterms) qsort(l->terms, l->nterms, sizeof *l->terms, compare_u64);
  for (size_t i = 0; i < l->nterms; i++) {
    gpuir_term_info info;
    if (n && l->terms[n - 1] == l->terms[i]) continue;
    int status = gpuir_term_get_info(l->index, l->terms[i], &info);
    if (status) return cli_fail(l->path, status, NULL);
    if (info.df < 2) continue;
    l->terms[n] = l->terms[i];
    l->dfs[n++] = info.df;
  }
  l->nterms = n;
  if (n) return CLI_OK;
  cli_error("%s: %s", l->path,
      l->from_queries ? "no term of the queries has a list of two postings" : "no list has two postings");
  return CLI_FAIL;
}

static int find_candidates(lab *l, uint64_t terms, const char *queries) {
  lab_progress("reading lists");
  if (queries) {
    if (read_queries(l, queries)) return CLI_FAIL;
  } else {
    for (uint64_t i = 0; i < terms; i++) candidate_add(l, i, 0);
  }
  return finish_candidates(l);
}

/* A set of 2 to 5 lists: queries without a file of them. */
static lab_query invent_query(const lab_lists *lists, uint64_t *state) {
  lab_query q = {{0}, 0};
  unsigned want = 2 + (unsigned)draw(state, 4);
  for (unsigned tries = 0; tries < 64 && q.k < want; tries++) {
    uint64_t term = lists->list[draw(state, lists->n)].term;
    unsigned i = 0;
    while (i < q.k && q.term[i] != term) i++;
    if (i == q.k) q.term[q.k++] = term;
  }
  return q;
}

static size_t find_u64(const uint64_t *a, size_t n, uint64_t x) {
  size_t lo = 0;
  while (n) {
    size_t half = n / 2;
    if (a[lo + half] < x) {
      lo += half + 1;
      n -= half + 1;
    } else {
      n = half;
    }
  }
  return lo;
}

/* Returns the place of a term among the candidates, or nterms. */
static size_t candidate_of(const lab *l, uint64_t term) {
  size_t t = find_u64(l->terms, l->nterms, term);
  return t < l->nterms && l->terms[t] == term ? t : l->nterms;
}

/* Returns whether all lists of a query have two postings or more. */
static int query_usable(const lab *l, const lab_query *q) {
  unsigned i = 0;
  while (i < q->k && candidate_of(l, q->term[i]) < l->nterms) i++;
  return i == q->k && q->k >= 2;
}

void lab_pick_queries(lab *l, const lab_lists *lists) {
  uint64_t state = l->seed;
  size_t n = 0;
  if (!l->from_queries) {
    l->queries = (lab_query *)cli_resize(l->queries, (size_t)l->want, sizeof *l->queries);
    for (uint64_t i = 0; i < l->want; i++) l->queries[i] = invent_query(lists, &state);
    l->nqueries = (size_t)l->want;
  }
  for (size_t i = 0; i < l->nqueries; i++)
    if (query_usable(l, &l->queries[i])) l->queries[n++] = l->queries[i];
  l->nqueries = n;
  for (size_t i = 0; l->from_queries && i < n && i < l->want; i++) { /* Fisher & Yates */
    size_t j = i + (size_t)draw(&state, n - i);
    lab_query q = l->queries[j];
    l->queries[j] = l->queries[i];
    l->queries[i] = q;
  }
  if (l->nqueries > l->want) l->nqueries = (size_t)l->want;
  lab_note(&l->report, "queries", "%zu %s", l->nqueries,
      l->from_queries ? "of those given, each once" : "sets of 2 to 5 lists of the sample");
}

/* Adds a query, and those of its lists that are new; place[t] is 1 + the place of candidate t. */
static int queries_add(const lab *l, const lab_query *q, size_t *place, lab_queries *queries) {
  struct lab_members m;
  m.k = q->k;
  for (unsigned i = 0; i < q->k; i++) {
    size_t t = candidate_of(l, q->term[i]);
    if (!place[t]) {
      if ((queries->nlists & (queries->nlists - 1)) == 0)
        queries->list =
            (lab_list *)cli_resize(queries->list, queries->nlists ? queries->nlists * 2 : 1, sizeof *queries->list);
      if (lab_read_list(l, l->terms[t], l->dfs[t], &queries->list[queries->nlists])) return CLI_FAIL;
      place[t] = ++queries->nlists;
    }
    m.member[i] = place[t] - 1;
    for (unsigned j = i; j && queries->list[m.member[j]].n < queries->list[m.member[j - 1]].n; j--) {
      size_t other = m.member[j];
      m.member[j] = m.member[j - 1];
      m.member[j - 1] = other;
    }
  }
  queries->query[queries->n++] = m;
  return CLI_OK;
}

int lab_read_queries(const lab *l, lab_queries *queries) {
  size_t *place = (size_t *)cli_resize(NULL, l->nterms, sizeof *place);
  int code = CLI_OK;
  memset(queries, 0, sizeof *queries);
  memset(place, 0, l->nterms * sizeof *place);
  queries->query = (struct lab_members *)cli_resize(NULL, l->nqueries, sizeof *queries->query);
  for (size_t i = 0; i < l->nqueries && code == CLI_OK; i++) code = queries_add(l, &l->queries[i], place, queries);
  free(place);
  return code;
}

void lab_queries_free(lab_queries *queries) {
  for (size_t i = 0; i < queries->nlists; i++) free(queries->list[i].docs);
  free(queries->list);
  free(queries->query);
  memset(queries, 0, sizeof *queries);
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static const struct {
  const char *name;
  const lab_figure *figures;
  int (*run)(lab *);
  int device; /* it has work for one */
} experiments[] = {{"codecs", lab_codecs_figures, lab_codecs, 1},
    {"intersect", lab_intersect_figures, lab_intersect_methods, 1}, {"search", lab_search_figures, lab_search, 1},
    {"linearity", lab_linearity_figures, lab_linearity, 0}};

static int check_names(const char *option, const char *names, int (*known)(const void *, const char *),
    const void *of) {
  for (const char *p = names; p && *p;) {
    char *name = cli_copy(p, strcspn(p, ","));
    int ok = known(of, name);
    if (!ok) cli_misuse("lab", "%s: there is no '%s' here", option, name);
    p += strlen(name) + (p[strlen(name)] == ',');
    free(name);
    if (!ok) return CLI_USAGE;
  }
  return names && !*names ? cli_misuse("lab", "%s names nothing", option) : CLI_OK;
}

static int known_figure(const void *of, const char *name) {
  const lab_figure *f = (const lab_figure *)of;
  while (f->id && strcmp(f->id, name) != 0) f++;
  return f->id != NULL;
}

enum { ALL = sizeof experiments / sizeof *experiments }; /* in place of an experiment's number */

/* Returns whether an experiment has one of the figures that are wanted. */
static int has_figures(const lab *l, size_t e) {
  const lab_figure *f = experiments[e].figures;
  while (f->id && !lab_wants(l, f->id)) f++;
  return f->id != NULL;
}

static int known_anywhere(const void *of, const char *name) {
  (void)of;
  for (size_t e = 0; e < ALL; e++)
    if (known_figure(experiments[e].figures, name)) return 1;
  return 0;
}

/* Methods of the CPU, and the device's, which has some more. */
static int known_method(const void *of, const char *name) {
  const char *(*const tables[])(size_t) = {gpuir_intersection_name, gpuir_cuda_lab_method};
  (void)of;
  for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++)
    for (size_t i = 0; tables[t](i); i++)
      if (!strcmp(tables[t](i), name)) return 1;
  return 0;
}

static int check_codecs(const lab *l) {
  lab_codec codec;
  gpuir_error err;
  int got = 1;
  memset(&err, 0, sizeof err);
  for (size_t i = 0; got == 1; i++) got = codec_at(l, i, &codec, &err);
  if (got) return cli_misuse("lab", "--codecs: %s", err.msg);
  return l->codecs && !*l->codecs ? cli_misuse("lab", "--codecs names nothing") : CLI_OK;
}

static void note_facts(lab *l, const gpuir_index_info *info, const char *queries, int argc, char **argv) {
  cli_buf line = {NULL, 0, 0};
  lab_note(&l->report, "corpus", "%s, %llu documents, %llu postings",
      info->description[0] ? info->description : l->path, (unsigned long long)info->documents,
      (unsigned long long)info->postings);
  lab_note(&l->report, "order", "%s, as in %s; \"random\": renumbered, seed %llu", info->order, l->path,
      (unsigned long long)l->seed);
  lab_note(&l->report, "lists", "of %s, at most %llu a class of length", queries ? queries : "all terms",
      (unsigned long long)l->sample);
  lab_note_machine(&l->report);
  lab_note(&l->report, "clock",
      "%.2f GHz, measured; times of the CPU are processor time of one core; y is the median of n, at "
      "most %llu",
      l->hertz / 1e9, (unsigned long long)l->repeat);
  for (int i = 0; i < argc; i++) {
    cli_buf_char(&line, ' ');
    cli_buf_text(&line, argv[i]);
  }
  cli_buf_char(&line, 0);
  lab_note(&l->report, "command", "gpuir lab%s", line.p);
  cli_buf_free(&line);
}

static int run(lab *l, size_t experiment, const char *dir, const char *queries, int argc, char **argv) {
  gpuir_index_info info;
  const lab_figure *figures = experiments[experiment].figures;
  size_t nfigures = 0;
  l->index = cli_open_merged(l->path);
  if (!l->index) return CLI_FAIL;
  int status = gpuir_index_get_info(l->index, &info);
  if (status) return cli_fail(l->path, status, NULL);
  l->documents = info.documents;
  l->from_queries = queries != NULL;
  if (!experiments[experiment].device) l->backend = CLI_BACKEND_CPU;
  l->hertz = measure_clock(l);
  int code = lab_report_open(&l->report, dir, experiments[experiment].name);
  l->report.json = l->json;
  note_facts(l, &info, queries, argc, argv);
  if (code == CLI_OK) code = lab_gpu_find(l);
  if (code == CLI_OK) code = find_candidates(l, info.terms, queries);
  if (code == CLI_OK) code = experiments[experiment].run(l);
  while (figures[nfigures].id) nfigures++;
  if (lab_stopped()) lab_note(&l->report, "stopped", "by signal %d; not all figures are whole", (int)cli_signal);
  if (code == CLI_OK || lab_stopped()) code = lab_report_write(&l->report, figures, nfigures);
  lab_progress("%s", "");
  return lab_stopped() ? 128 + (int)cli_signal : code;
}

static void lab_free(lab *l) {
  lab_report_free(&l->report);
  gpuir_close(l->index);
  free(l->terms);
  free(l->dfs);
  free(l->queries);
  if (l->lock >= 0) close(l->lock);
}

/* ---- a collection in CIFF --------------------------------------------------------------------------------------- */

/* An export of another engine, and what makes terms of its topics. */
typedef struct collection {
  const char *ciff, *topics, *analyzer, *stem, *stop; /* NULL: not given */
  char index[4096]; /* made of it */
} collection;

/* Makes DIR/collection.gpuir. */
static int import_collection(collection *c, const char *dir) {
  static char format[] = "--format", ciff[] = "ciff", quiet[] = "--quiet", output[] = "-o";
  static char analyzer[] = "--analyzer", stem[] = "--stem", stop[] = "--stop", dense[] = "--dense", none[] = "0";
  char *argv[16];
  int argc = 0;
  const char *const given[] = {c->analyzer, c->stem, c->stop};
  char *const names[] = {analyzer, stem, stop};
  lab_report folder;
  int code = lab_report_open(&folder, dir, "collection");
  lab_report_free(&folder);
  if (code != CLI_OK) return code;
  snprintf(c->index, sizeof c->index, "%.4000s/collection.gpuir", dir);
  argv[argc++] = format;
  argv[argc++] = ciff;
  argv[argc++] = quiet;
  argv[argc++] = dense; /* what is measured of lists is of their blocks */
  argv[argc++] = none;
  for (size_t i = 0; i < 3; i++)
    if (given[i]) {
      argv[argc++] = names[i];
      argv[argc++] = (char *)(uintptr_t)given[i];
    }
  argv[argc++] = output;
  argv[argc++] = c->index;
  argv[argc++] = (char *)(uintptr_t)c->ciff;
  return cli_import(argc, argv);
}

/* ---- the command line ------------------------------------------------------------------------------------------- */

enum {
  O_OUTPUT = 2,
  O_SAMPLE,
  O_PAIRS,
  O_QUERIES,
  O_SEED,
  O_REPEAT,
  O_CODECS,
  O_METHODS,
  O_FIGURES,
  O_BACKEND,
  O_COLD,
  O_JSON,
  O_CIFF,
  O_TOPICS,
  O_ANALYZER,
  O_STEM,
  O_STOP
};

static int take_collection(collection *c, const cli_args *a, int opt) {
  switch (opt) {
  case O_CIFF: c->ciff = a->value; return CLI_OK;
  case O_TOPICS: c->topics = a->value; return CLI_OK;
  case O_ANALYZER: c->analyzer = a->value; return CLI_OK;
  case O_STEM: c->stem = a->value; return CLI_OK;
  case O_STOP: c->stop = a->value; return CLI_OK;
  default: return opt == CLI_HELP ? CLI_HELP : CLI_USAGE;
  }
}

static int take_option(lab *l, collection *c, const cli_args *a, int opt, const char **dir) {
  switch (opt) {
  case O_OUTPUT: *dir = a->value; return CLI_OK;
  case O_SAMPLE: return cli_unsigned(a, 1, 1000000, &l->sample);
  case O_PAIRS: return cli_unsigned(a, 1, 1000000, &l->pairs);
  case O_QUERIES: return cli_unsigned(a, 1, 1000000, &l->want);
  case O_SEED: return cli_unsigned(a, 0, UINT64_MAX, &l->seed);
  case O_REPEAT: return cli_unsigned(a, 1, LAB_MOST_REPEATS, &l->repeat);
  case O_CODECS: l->codecs = a->value; return check_codecs(l);
  case O_METHODS: l->methods = a->value; return check_names(a->name, a->value, known_method, NULL);
  case O_FIGURES: l->figures = a->value; return CLI_OK;
  case O_BACKEND: return cli_choice(a, "cpu|gpu|auto", &l->backend);
  case O_COLD: l->cold = 1; return CLI_OK;
  case O_JSON: l->json = 1; return CLI_OK;
  default: return take_collection(c, a, opt);
  }
}

/* Checks the operands, [EXPERIMENT] INDEX [QUERIES], or with --ciff [EXPERIMENT]. Puts the experiment, or ALL. */
static int check_operands(const cli_args *a, const collection *c, size_t *experiment) {
  size_t e = 0;
  const char *const name = a->noperands ? a->operands[0] : "all";
  while (e < ALL && strcmp(experiments[e].name, name) != 0) e++;
  *experiment = e;
  if (!a->noperands && !c->ciff)
    return cli_misuse("lab", "codecs, intersect, search, linearity, all, load, plot or report is missing");
  if (e == ALL && strcmp(name, "all") != 0)
    return cli_misuse("lab", "there is no '%s': codecs, intersect, search, linearity, all, load, plot or report", name);
  if (c->ciff && a->noperands > 1) return cli_misuse("lab", "--ciff is in place of INDEX");
  if (c->ciff && !c->topics) return cli_misuse("lab", "--topics FILE is missing");
  if (c->ciff) return CLI_OK;
  if (c->topics || c->analyzer || c->stem || c->stop)
    return cli_misuse("lab", "--topics, --analyzer, --stem and --stop belong to --ciff");
  if (a->noperands < 2 || a->noperands > 3)
    return cli_misuse("lab", a->noperands < 2 ? "INDEX is missing" : "one INDEX and one file of QUERIES");
  return CLI_OK;
}

/* Checks --figures; of a figure that another experiment has it says so. */
static int check_figures(const lab *l, size_t e) {
  if (e == ALL) return check_names("--figures", l->figures, known_anywhere, NULL);
  for (size_t other = 0; l->figures && other < ALL; other++)
    for (const lab_figure *f = experiments[other].figures; other != e && f->id; f++)
      if (lab_wants(l, f->id) && !known_figure(experiments[e].figures, f->id))
        return cli_misuse("lab", "--figures: '%s' is a figure of %s", f->id, experiments[other].name);
  return check_names("--figures", l->figures, known_figure, experiments[e].figures);
}

/* Returns the description of a figure of any subcommand; NULL: there is none of this name. */
static const lab_figure *find_figure(const char *id) {
  for (size_t i = 0; i < sizeof experiments / sizeof *experiments; i++)
    for (const lab_figure *f = experiments[i].figures; f->id; f++)
      if (!strcmp(f->id, id)) return f;
  for (const lab_figure *f = load_figures; f->id; f++)
    if (!strcmp(f->id, id)) return f;
  return NULL;
}

/* Runs one experiment after the other, each from the same settings, and makes a page of them. */
static int run_all(const lab *settings, const char *dir, const char *queries, int argc, char **argv) {
  char page[4096];
  char *report[] = {(char *)(uintptr_t) "-o", page, (char *)(uintptr_t)dir};
  int code = CLI_OK;
  for (size_t e = 0; e < ALL && code == CLI_OK; e++) {
    lab l = *settings;
    if (!has_figures(&l, e)) continue;
    code = run(&l, e, dir, queries, argc, argv);
    lab_free(&l);
  }
  snprintf(page, sizeof page, "%.4000s/report.html", dir);
  return code == CLI_OK ? report_command(3, report, find_figure) : code;
}

/* What is asked for, once the options are read. Exit code. */
static int work(lab *l, collection *c, const cli_args *a, const char *dir, int argc, char **argv) {
  size_t e;
  int code = check_operands(a, c, &e);
  if (code == CLI_OK) code = check_figures(l, e);
  if (code != CLI_OK) return code;
  cli_catch_signals();
  if (c->ciff) code = import_collection(c, dir);
  if (code != CLI_OK) return code;
  l->path = c->ciff ? c->index : a->operands[1];
  const char *const queries = c->ciff ? c->topics : a->noperands == 3 ? a->operands[2] : NULL;
  return e == ALL ? run_all(l, dir, queries, argc, argv) : run(l, e, dir, queries, argc, argv);
}

int cli_lab(int argc, char **argv) {
  static const cli_option options[] = {{O_OUTPUT, "output", 'o', 1}, {O_SAMPLE, "sample", 0, 1},
      {O_PAIRS, "pairs", 0, 1}, {O_QUERIES, "queries", 0, 1}, {O_SEED, "seed", 0, 1}, {O_REPEAT, "repeat", 0, 1},
      {O_CODECS, "codecs", 0, 1}, {O_METHODS, "methods", 0, 1}, {O_FIGURES, "figures", 0, 1},
      {O_BACKEND, "backend", 0, 1}, {O_COLD, "cold", 0, 0}, {O_JSON, "json", 0, 0}, {O_CIFF, "ciff", 0, 1},
      {O_TOPICS, "topics", 0, 1}, {O_ANALYZER, "analyzer", 0, 1}, {O_STEM, "stem", 0, 1}, {O_STOP, "stop", 0, 1},
      {0, NULL, 0, 0}};
  const char *dir = "build/lab";
  cli_args a;
  collection c;
  lab l;
  int opt, code = CLI_OK;
  if (argc && !strcmp(argv[0], "load")) return load_command(argc - 1, argv + 1);
  if (argc && !strcmp(argv[0], "plot")) return plot_command(argc - 1, argv + 1, find_figure);
  if (argc && !strcmp(argv[0], "report")) return report_command(argc - 1, argv + 1, find_figure);
  memset(&l, 0, sizeof l);
  memset(&c, 0, sizeof c);
  l.sample = 16;
  l.pairs = 100;
  l.want = 1000;
  l.lock = -1;
  l.seed = 1;
  l.repeat = 5;
  l.backend = CLI_BACKEND_AUTO;
  cli_args_start(&a, "lab", options, argc, argv);
  while (code == CLI_OK && (opt = cli_next(&a)) != CLI_END) code = take_option(&l, &c, &a, opt, &dir);
  if (code == CLI_HELP) code = cli_help("lab");
  else if (code == CLI_OK) code = work(&l, &c, &a, dir, argc, argv);
  lab_free(&l);
  cli_args_free(&a);
  return cli_finish(code);
}
