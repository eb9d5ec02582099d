/* cli_lab_intersect.c - gpuir lab intersect: speed of the intersection methods, on sorted arrays and on compressed
 * lists (Ding et al., WWW 2009; Ao et al., PVLDB 4(8), 2011; Liu et al., "Griffin", PPoPP 2018). What a method prepares
 * of a list is made before the clock starts. Each result is compared with that of a plain merge.
 */
#include "cli.h"
#include "lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TOP_CLASSES 3u    /* the longer lists of pairs are of so many classes */
#define LEAST_SHORT 3u    /* least class of the shorter list of a pair */
#define COMPARABLE 16.0   /* Griffin's pairs are of lists that differ in length by less */
#define MOST_METHODS 64   /* in the library's table */
#define GRIFFIN_CLASS 10u /* and of 1024 postings or more */

enum {
  RATIO_ARRAYS,
  RATIO_LISTS,
  DING_FIG6,
  AO_TABLE3,
  QUERY_TIME,
  PREPARED,
  GRIFFIN_TABLE1,
  GRIFFIN_FIG10,
  GRIFFIN_FIG12,
  GRIFFIN_FIG13,
  FIGURES
};

const lab_figure lab_intersect_figures[] = {
    {"ratio-arrays", "Intersection of two arrays by the ratio of their lengths", "length ratio",
     "ns a posting of the shorter list", LAB_LINES, LAB_LOG_X | LAB_LOG_Y},
    {"ratio-lists", "Intersection of two compressed lists by the ratio of their lengths", "length ratio",
     "ns a posting of the shorter list", LAB_LINES, LAB_LOG_X | LAB_LOG_Y},
    {"ding-fig6", "Intersection of two arrays of like length (Ding 2009, Fig. 6)",
     "postings of a list, at most", "ns a posting of the shorter list", LAB_LINES, LAB_LOG_X | LAB_LOG_Y},
    {"ao-table3", "Speed-up over the skip list in the same form (Ao 2011, Table 3)", "method",
     "times as fast", LAB_BARS, 0},
    {"query-time", "Time of a query's intersection", "method", "microseconds a query", LAB_BARS, LAB_LOG_Y},
    {"prepared", "What a method prepares, by the bytes of arrays of docIDs (Ao 2011, 6.1)", "method",
     "percent", LAB_BARS, 0},
    {"griffin-table1", "Compression ratio (Griffin 2018, Table 1)", "codec", "compression ratio", LAB_BARS,
     0},
    {"griffin-fig10", "Lengths of the lists (Griffin 2018, Fig. 10)", "postings of a list, at most",
     "percent of the lists", LAB_LINES, LAB_LOG_X},
    {"griffin-fig12", "Decompression of a list (Griffin 2018, Fig. 12)", "postings of a list, at most",
     "milliseconds", LAB_LINES, LAB_LOG_X | LAB_LOG_Y},
    {"griffin-fig13",
     "Intersection of arrays that differ in length by less than 16 times (Griffin 2018, Fig. 13)",
     "postings of the longer list, at most", "milliseconds", LAB_LINES, LAB_LOG_X | LAB_LOG_Y},
    {NULL, NULL, NULL, NULL, 0, 0}};

/* ---- conjunctions: of two lists, or of a query ----------------------------------------------------------- */

/* What is intersected. */
typedef struct conjunction {
  const lab_list *list[LAB_TERMS];
  unsigned k;
  uint32_t found; /* by a plain merge */
  uint64_t sum;
} conjunction;

typedef struct conjunctions {
  conjunction *all;
  size_t n;
  double shortest; /* postings of the shortest list of each, in all */
  double postings;
} conjunctions;

static void merge_in(uint32_t *docs, uint32_t *n, const lab_list *list) {
  uint32_t kept = 0, j = 0;
  for (uint32_t i = 0; i < *n; i++) {
    while (j < list->n && list->docs[j] < docs[i]) j++;
    if (j < list->n && list->docs[j] == docs[i]) docs[kept++] = docs[i];
  }
  *n = kept;
}

/* list[0] is the shortest of k. */
static void conjunctions_add(conjunctions *s, const lab_list *const *list, unsigned k) {
  if (!k) return;
  if ((s->n & (s->n - 1)) == 0)
    s->all = (conjunction *)cli_resize(s->all, s->n ? s->n * 2 : 1, sizeof *s->all);
  conjunction *c = &s->all[s->n++];
  uint32_t *docs = (uint32_t *)cli_resize(NULL, list[0]->n, sizeof *docs);
  memset(c, 0, sizeof *c);
  c->k = k;
  c->found = list[0]->n;
  memcpy(docs, list[0]->docs, list[0]->n * sizeof *docs);
  for (unsigned i = 0; i < k; i++) {
    c->list[i] = list[i];
    if (i) merge_in(docs, &c->found, list[i]);
    s->postings += list[i]->n;
  }
  for (uint32_t i = 0; i < c->found; i++) c->sum += docs[i];
  s->shortest += list[0]->n;
  free(docs);
}

static void conjunctions_free(conjunctions *s) {
  free(s->all);
  memset(s, 0, sizeof *s);
}

/* ---- compressed lists: those of the conjunctions, each once ---------------------------------------------- */

typedef struct library {
  const lab_list *const *list;
  lab_coded **coded;
  size_t n;
} library;

static void library_free(library *b) {
  for (size_t i = 0; i < b->n; i++) lab_coded_free(b->coded[i]);
  free((void *)b->list);
  free(b->coded);
  memset(b, 0, sizeof *b);
}

static int compare_pointer(const void *x, const void *y) {
  const lab_list *a = *(const lab_list *const *)x, *b = *(const lab_list *const *)y;
  return a < b ? -1 : a > b;
}

/* Exit code. */
static int library_make(const lab *l, const char *label, const conjunctions *s, library *b) {
  lab_codec codec;
  gpuir_error err;
  size_t most = 0, n = 0;
  memset(&err, 0, sizeof err);
  memset(b, 0, sizeof *b);
  int status = lab_codec_find(label, &codec, &err), code = CLI_OK;
  if (status) return cli_fail(label, status, &err);
  for (size_t i = 0; i < s->n; i++) most += s->all[i].k;
  const lab_list **list = (const lab_list **)cli_resize(NULL, most, sizeof *list);
  for (size_t i = 0; i < s->n; i++)
    for (unsigned j = 0; j < s->all[i].k; j++) list[n++] = s->all[i].list[j];
  if (n) qsort(list, n, sizeof *list, compare_pointer);
  b->list = list;
  b->coded = (lab_coded **)cli_resize(NULL, most, sizeof(lab_coded *));
  for (size_t i = 0; i < n && code == CLI_OK; i++) {
    if (b->n && list[b->n - 1] == list[i]) continue;
    list[b->n] = list[i];
    status = lab_encode(&codec, list[i]->docs, list[i]->n, l->documents, &b->coded[b->n]);
    if (status)
      code = cli_fail(label, status, NULL);
    else
      b->n++;
  }
  if (code) library_free(b);
  return code;
}

static lab_coded *library_find(const library *b, const lab_list *list) {
  const lab_list *const *at =
      (const lab_list *const *)bsearch(&list, b->list, b->n, sizeof *b->list, compare_pointer);
  return at ? b->coded[at - b->list] : NULL;
}

/* ---- one method over conjunctions ------------------------------------------------------------------------ */

typedef struct prepared {
  lab_intersection **x;
  size_t n;
} prepared;

static volatile uint32_t sink; /* what is found must be seen to be used */

static void search_all(void *arg) {
  const prepared *p = (const prepared *)arg;
  uint32_t sum = 0;
  for (size_t i = 0; i < p->n; i++) sum += lab_intersect(p->x[i]);
  sink = sum;
}

/* Of arrays, or of the lists in a library. */
static int prepare(const char *method, const conjunction *c, const library *coded, lab_intersection **x) {
  const uint32_t *docs[LAB_TERMS];
  uint32_t n[LAB_TERMS];
  lab_coded *lists[LAB_TERMS];
  for (unsigned i = 0; i < c->k; i++) {
    docs[i] = c->list[i]->docs;
    n[i] = c->list[i]->n;
    lists[i] = coded ? library_find(coded, c->list[i]) : NULL;
  }
  return coded ? lab_intersect_coded(method, lists, c->k, x) : lab_intersect_arrays(method, docs, n, c->k, x);
}

/* Seconds of all searches, and bytes of what was prepared for them. Exit code. */
static int time_method(const lab *l, const char *method, const conjunctions *s, const library *coded,
                       double *seconds, double *bytes) {
  prepared p = {(lab_intersection **)cli_resize(NULL, s->n, sizeof(lab_intersection *)), 0};
  int code = CLI_OK;
  *bytes = 0;
  for (size_t i = 0; i < s->n && code == CLI_OK; i++) {
    int status = prepare(method, &s->all[i], coded, &p.x[p.n]);
    if (status) {
      code = cli_fail(method, status, NULL);
      break;
    }
    lab_intersection *x = p.x[p.n++];
    uint32_t found = lab_intersect(x);
    *bytes += (double)lab_intersection_bytes(x);
    if (found != s->all[i].found || lab_intersection_sum(x) != s->all[i].sum) {
      cli_error("%s finds %u docIDs; by a plain merge they are %u", method, found, s->all[i].found);
      code = CLI_FAIL;
    }
  }
  if (code == CLI_OK) *seconds = lab_time(l, search_all, &p);
  for (size_t i = 0; i < p.n; i++) lab_intersection_free(p.x[i]);
  free(p.x);
  return code;
}

/* The i-th method that is measured, or NULL. */
static const char *method_at(const lab *l, size_t i) {
  for (size_t all = 0; gpuir_intersection_name(all); all++)
    if (lab_among(l->methods, gpuir_intersection_name(all)) && !i--) return gpuir_intersection_name(all);
  return NULL;
}

/* The codec of compressed lists where all methods are held against each other. */
static void common_codec(const lab *l, lab_codec *codec) {
  if (!l->codecs || !lab_codec_at(l, 0, codec)) (void)lab_codec_find("bp128", codec, NULL);
}

/* ---- pairs of lists -------------------------------------------------------------------------------------- */

/* Pairs of a list of class `longer` and one of class `shorter`, each list in one pair if there are enough. */
static void add_pairs(const lab *l, const lab_lists *lists, unsigned shorter, unsigned longer,
                      conjunctions *s) {
  size_t nlong = lists->first[longer + 1] - lists->first[longer],
         nshort = lists->first[shorter + 1] - lists->first[shorter];
  for (size_t i = 0; i < nlong && i < (l->sample + 7) / 8 && nshort; i++) {
    const lab_list *pair[2] = {&lists->list[lists->first[shorter] + (nshort - 1 - i % nshort)],
                               &lists->list[lists->first[longer] + i]};
    if (pair[0] == pair[1]) continue;
    if (pair[0]->n > pair[1]->n) {
      const lab_list *other = pair[0];
      pair[0] = pair[1];
      pair[1] = other;
    }
    conjunctions_add(s, pair, 2);
  }
}

static unsigned top_class(const lab_lists *lists) {
  return lists->n ? lab_class(lists->list[lists->n - 1].n) : 0;
}

/* The longest lists against lists of a 2^r-th of their length. */
static void pairs_of_ratio(const lab *l, const lab_lists *lists, unsigned r, conjunctions *s) {
  unsigned top = top_class(lists);
  for (unsigned c = top; c >= r + LEAST_SHORT && c + TOP_CLASSES > top; c--) add_pairs(l, lists, c - r, c, s);
}

/* Lists of one class. */
static void pairs_of_length(const lab *l, const lab_lists *lists, unsigned c, conjunctions *s) {
  if (c >= LEAST_SHORT) add_pairs(l, lists, c, c, s);
}

/* Lists of one class with those of the four classes below, and with each other. */
static void pairs_comparable(const lab *l, const lab_lists *lists, unsigned c, conjunctions *s) {
  for (unsigned r = 0; c >= GRIFFIN_CLASS && ldexp(1, (int)r) < COMPARABLE; r++)
    add_pairs(l, lists, c - r, c, s);
}

typedef void (*pairs_function)(const lab *, const lab_lists *, unsigned, conjunctions *);

/* All methods over the pairs of each point of an axis. y[method][point] is 0 where there are no pairs. Exit code. */
static int sweep(const lab *l, const lab_lists *lists, int figure, const lab_codec *codec,
                 pairs_function pairs, double (*y)[LAB_CLASSES]) {
  const char *method;
  int code = CLI_OK;
  for (unsigned point = 0; point < LAB_CLASSES && code == CLI_OK; point++) {
    conjunctions s;
    library coded;
    memset(&s, 0, sizeof s);
    memset(&coded, 0, sizeof coded);
    pairs(l, lists, point, &s);
    if (s.n && codec) code = library_make(l, codec->label, &s, &coded);
    for (size_t i = 0; s.n && code == CLI_OK && (method = method_at(l, i)) != NULL; i++) {
      double seconds, bytes;
      lab_progress("%s: %s, point %u", lab_intersect_figures[figure].id, method, point);
      code = lab_stopped() ? CLI_FAIL : time_method(l, method, &s, codec ? &coded : NULL, &seconds, &bytes);
      if (code == CLI_OK)
        y[i][point] = figure == GRIFFIN_FIG13 ? seconds * 1e3 / (double)s.n : seconds * 1e9 / s.shortest;
    }
    library_free(&coded);
    conjunctions_free(&s);
  }
  return code;
}

/* A line for each method; at point p, x is 2^(p + up). */
static int draw_sweep(lab *l, const lab_lists *lists, int figure, const lab_codec *codec,
                      pairs_function pairs, int up) {
  double y[MOST_METHODS][LAB_CLASSES];
  const char *method;
  memset(y, 0, sizeof y);
  int code = sweep(l, lists, figure, codec, pairs, y);
  for (size_t i = 0; code == CLI_OK && (method = method_at(l, i)) != NULL; i++)
    for (int p = 0; p < (int)LAB_CLASSES; p++)
      if (y[i][p] > 0)
        lab_row_at(&l->report, lab_intersect_figures[figure].id, method, ldexp(1, p + up), y[i][p],
                   figure == GRIFFIN_FIG13 ? "ms" : "ns");
  return code;
}

static int ratio_arrays(lab *l, const lab_lists *lists) {
  return draw_sweep(l, lists, RATIO_ARRAYS, NULL, pairs_of_ratio, 0);
}

static int ratio_lists(lab *l, const lab_lists *lists) {
  lab_codec codec;
  common_codec(l, &codec);
  return draw_sweep(l, lists, RATIO_LISTS, &codec, pairs_of_ratio, 0);
}

static int ding_fig6(lab *l, const lab_lists *lists) {
  return draw_sweep(l, lists, DING_FIG6, NULL, pairs_of_length, 1);
}

static int griffin_fig13(lab *l, const lab_lists *lists) {
  return draw_sweep(l, lists, GRIFFIN_FIG13, NULL, pairs_comparable, 1);
}

/* ---- queries: Ao's Table 3 ------------------------------------------------------------------------------- */

/* The paper's columns of compressed lists: what its GPU does with them, by a CPU. */
static const struct {
  const char *codec, *method;
} coded_columns[] = {{"parapfor:64,0.2", "binary"},  {"parapfor:64,0", "binary"},
                     {"lrc:256,0", "algorithm1"},    {"lrcseg:256,0", "algorithm1"},
                     {"seglrc:256,0", "algorithm1"}, {"hslrc:256,0", "algorithm1"},
                     {"hslrc:128,0", "algorithm1"}};

static void put_query_time(lab *l, const char *series, const char *method, double seconds, double base,
                           double n) {
  if (lab_wants(l, "query-time"))
    lab_row(&l->report, "query-time", series, method, seconds * 1e6 / n, "us/query");
  if (lab_wants(l, "ao-table3") && base > 0)
    lab_row(&l->report, "ao-table3", series, method, base / seconds, "speedup");
}

/* All methods in one form. *base is the skip list's time. */
static int query_methods(lab *l, const char *series, const conjunctions *s, const library *coded,
                         double *base) {
  double bytes;
  const char *method;
  int code = time_method(l, "skip", s, coded, base, &bytes);
  for (size_t i = 0; code == CLI_OK && (method = method_at(l, i)) != NULL; i++) {
    double seconds;
    lab_progress("queries: %s, %s", method, series);
    if (lab_stopped()) return CLI_FAIL;
    code = time_method(l, method, s, coded, &seconds, &bytes);
    if (code) break;
    put_query_time(l, series, method, seconds, *base, (double)s->n);
    if (!coded && lab_wants(l, "prepared"))
      lab_row(&l->report, "prepared", series, method, bytes / (4 * (s->postings - s->shortest)) * 100,
              "percent");
  }
  return code;
}

static int query_codecs(lab *l, const conjunctions *s, double base) {
  int code = CLI_OK;
  for (size_t i = 0; code == CLI_OK && i < sizeof coded_columns / sizeof *coded_columns; i++) {
    library coded;
    char name[64];
    double seconds, bytes;
    if (!lab_codec_wanted(l, coded_columns[i].codec) || !lab_among(l->methods, coded_columns[i].method))
      continue;
    snprintf(name, sizeof name, "%s/%s", coded_columns[i].codec, coded_columns[i].method);
    lab_progress("queries: %s", name);
    code = lab_stopped() ? CLI_FAIL : library_make(l, coded_columns[i].codec, s, &coded);
    if (code) break;
    code = time_method(l, coded_columns[i].method, s, &coded, &seconds, &bytes);
    if (code == CLI_OK) put_query_time(l, "lists", name, seconds, base, (double)s->n);
    library_free(&coded);
  }
  return code;
}

/* Fills three figures at once. */
static int query_figures(lab *l, const lab_lists *lists) {
  lab_queries queries;
  conjunctions s;
  library coded;
  lab_codec codec;
  double base;
  memset(&s, 0, sizeof s);
  memset(&coded, 0, sizeof coded);
  common_codec(l, &codec);
  int code = lab_draw_queries(l, lists, (size_t)l->sample * LAB_QUERIES, &queries);
  for (size_t i = 0; i < queries.n; i++) {
    const lab_list *list[LAB_TERMS] = {NULL};
    for (unsigned j = 0; j < queries.query[i].k; j++) list[j] = &queries.list[queries.query[i].member[j]];
    conjunctions_add(&s, list, queries.query[i].k);
  }
  if (code == CLI_OK && s.n) code = query_methods(l, "arrays", &s, NULL, &base);
  if (code == CLI_OK && s.n) code = library_make(l, codec.label, &s, &coded);
  if (code == CLI_OK && s.n) code = query_methods(l, codec.label, &s, &coded, &base);
  library_free(&coded);
  if (code == CLI_OK && s.n) code = query_codecs(l, &s, base);
  conjunctions_free(&s);
  lab_queries_free(&queries);
  return code;
}

/* ---- Griffin: compression, lengths, decompression -------------------------------------------------------- */

static const char *const griffin_codecs[] = {"pfd", "newpfd", "optpfd", "ef"};
#define GRIFFIN_CODECS (sizeof griffin_codecs / sizeof *griffin_codecs)

static int griffin_table1(lab *l, const lab_lists *lists) {
  lab_measurement m;
  for (size_t i = 0; i < GRIFFIN_CODECS; i++) {
    if (!lab_codec_wanted(l, griffin_codecs[i])) continue;
    if (lab_measure(l, griffin_codecs[i], lists, 0, &m)) return CLI_FAIL;
    lab_row(&l->report, "griffin-table1", "index", griffin_codecs[i], 32 / lab_bits(&m, 1), "ratio");
  }
  return CLI_OK;
}

/* Of all candidates. */
static int griffin_fig10(lab *l, const lab_lists *lists) {
  for (unsigned c = 0; c < LAB_CLASSES; c++) {
    double n = lists->lists[c] * (double)(lists->first[c + 1] - lists->first[c]);
    if (n > 0)
      lab_row_at(&l->report, "griffin-fig10", "lists", ldexp(1, (int)c + 1), 100 * n / (double)l->nterms,
                 "percent");
  }
  return CLI_OK;
}

static int griffin_fig12(lab *l, const lab_lists *lists) {
  lab_measurement m;
  for (size_t i = 0; i < GRIFFIN_CODECS; i++) {
    if (!lab_codec_wanted(l, griffin_codecs[i])) continue;
    lab_progress("decompression: %s", griffin_codecs[i]);
    if (lab_measure(l, griffin_codecs[i], lists, 1, &m)) return CLI_FAIL;
    for (unsigned c = GRIFFIN_CLASS; c < LAB_CLASSES; c++)
      if (m.seconds[c] > 0)
        lab_row_at(&l->report, "griffin-fig12", griffin_codecs[i], ldexp(1, (int)c + 1),
                   m.seconds[c] * 1e3 / (double)(lists->first[c + 1] - lists->first[c]), "ms");
  }
  return CLI_OK;
}

/* ---- the subcommand -------------------------------------------------------------------------------------- */

int lab_intersect_methods(lab *l) {
  static int (*const draw[FIGURES])(lab *, const lab_lists *) = {
      ratio_arrays,  ratio_lists,    ding_fig6,     query_figures, query_figures,
      query_figures, griffin_table1, griffin_fig10, griffin_fig12, griffin_fig13};
  lab_lists lists;
  int code = lab_draw_lists(l, &lists), queries = 0;
  for (int f = 0; f < FIGURES && code == CLI_OK && !lab_stopped(); f++) {
    if (!lab_wants(l, lab_intersect_figures[f].id)) continue;
    if (draw[f] != query_figures || !queries) code = draw[f](l, &lists);
    if (draw[f] == query_figures) queries = 1;
    lab_progress("%s", "");
    if (code == CLI_OK) lab_print(&l->report, &lab_intersect_figures[f]);
  }
  lab_lists_free(&lists);
  return code;
}
