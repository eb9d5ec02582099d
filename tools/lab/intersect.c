/* intersect.c - gpuir lab intersect: speed of the intersection methods, on sorted arrays and on compressed
 * lists (Ding et al., WWW 2009; Ao et al., PVLDB 4(8), 2011; Liu et al., "Griffin", PPoPP 2018). What a method prepares
 * of a list is made before the clock starts. Each result is compared with that of a plain merge.
 */
#include "../cli/cli.h"
#include "lab.h"
#include "gpuir_lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TOP_CLASSES 3u    /* the longer lists of pairs are of so many classes */
#define LEAST_SHORT 3u    /* least class of the shorter list of a pair */
#define COMPARABLE 16.0   /* Griffin's pairs are of lists that differ in length by less */
#define MOST_METHODS 64   /* in the library's table, and in the device's */
#define GRIFFIN_CLASS 10u /* and of 1024 postings or more */
#define GRIFFIN_LONG 20u  /* by ratio, the longer list has 1M to 2M postings */

enum {
  RATIO_ARRAYS,
  RATIO_LISTS,
  DING_FIG6,
  AO_TABLE3,
  QUERY_TIME,
  PREPARED,
  AO_FIG5,
  AO_FIG6,
  AO_TABLE7,
  AO_TABLE7_MS,
  GRIFFIN_FIG8,
  GRIFFIN_TABLE1,
  GRIFFIN_FIG10,
  GRIFFIN_FIG12,
  GRIFFIN_FIG13,
  FIGURES
};

const lab_figure lab_intersect_figures[] = {
    {"ratio-arrays", "Intersection of two arrays by the ratio of their lengths", "length ratio",
     "ns a posting of the shorter list", LAB_LINES, LAB_LOG_X | LAB_LOG_Y,
     "simd,mergepath/GPU,hs16/GPU,skip,merge,hs16,gallop"},
    {"ratio-lists", "Intersection of two compressed lists by the ratio of their lengths", "length ratio",
     "ns a posting of the shorter list", LAB_LINES, LAB_LOG_X | LAB_LOG_Y,
     "simd,mergepath/GPU,griffin/GPU,skip,merge,gallop,mergepath"},
    {"ding-fig6", "Intersection of two arrays of like length (Ding 2009, Fig. 6)",
     "postings of a list, at most", "ns a posting of the shorter list", LAB_LINES, LAB_LOG_X | LAB_LOG_Y,
     "simd,pmf0/GPU,pmf3/GPU,pmf0,pmf3,merge"},
    {"ao-table3", "Speed-up over the skip list in the same form (Ao 2011, Table 3)", "method",
     "times as fast", LAB_BARS, LAB_LOG_Y, "arrays/GPU,arrays,lists/GPU,bp128/GPU,bp128"},
    {"query-time", "Time of a query's intersection", "method", "microseconds a query", LAB_BARS, LAB_LOG_Y,
     "arrays/GPU,arrays,lists/GPU,bp128/GPU,bp128"},
    {"prepared", "What a method prepares, by the bytes of arrays of docIDs (Ao 2011, 6.1)", "method",
     "percent", LAB_BARS, 0, NULL},
    {"ao-fig5", "Throughput by the threshold of a batch, of arrays (Ao 2011, Fig. 5)",
     "postings of the shortest lists of a batch", "queries a second", LAB_LINES, LAB_LOG_X | LAB_LOG_Y,
     "simd,hs16/GPU,lr-local/GPU,binary/GPU,skip"},
    {"ao-fig6", "Response time by the threshold of a batch, of arrays (Ao 2011, Fig. 6)",
     "postings of the shortest lists of a batch", "milliseconds a batch", LAB_LINES, LAB_LOG_X | LAB_LOG_Y,
     "simd,hs16/GPU,lr-local/GPU,binary/GPU,skip"},
    {"ao-table7", "Throughput on compressed lists, by batches of 2^20 postings (Ao 2011, Table 7)",
     "codec/method", "queries a second", LAB_BARS, LAB_LOG_Y, NULL},
    {"ao-table7-ms", "Response time on compressed lists, by batches of 2^20 postings (Ao 2011, Table 7)",
     "codec/method", "milliseconds a batch", LAB_BARS, LAB_LOG_Y, NULL},
    {"griffin-fig8", "Intersection of two lists in ef by the ratio of their lengths (Griffin 2018, Fig. 8)",
     "length ratio", "milliseconds", LAB_LINES, LAB_LOG_X | LAB_LOG_Y,
     "simd,mergepath/GPU,griffin/GPU,skip,skip/GPU,merge,mergepath"},
    {"griffin-table1", "Compression ratio (Griffin 2018, Table 1)", "codec", "compression ratio", LAB_BARS, 0,
     NULL},
    {"griffin-fig10", "Lengths of the lists (Griffin 2018, Fig. 10)", "postings of a list, at most",
     "percent of the lists", LAB_LINES, LAB_LOG_X, NULL},
    {"griffin-fig12", "Decompression of a list (Griffin 2018, Fig. 12)", "postings of a list, at most",
     "milliseconds", LAB_LINES, LAB_LOG_X | LAB_LOG_Y, "ef/GPU,ef,pfd/GPU,pfd"},
    {"griffin-fig13",
     "Intersection of arrays that differ in length by less than 16 times (Griffin 2018, Fig. 13)",
     "postings of the longer list, at most", "milliseconds", LAB_LINES, LAB_LOG_X | LAB_LOG_Y,
     "simd,mergepath/GPU,binary/GPU,merge,binary,mergepath"},
    {NULL, NULL, NULL, NULL, 0, 0, NULL}};

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

/* ---- one method of the device over conjunctions ------------------------------------------------------------ */

#define BATCH_ROOM ((uint64_t)1 << 26)  /* docIDs that a run holds */
#define BATCH_QUERIES ((size_t)1 << 16) /* and queries */
#define TABLE_THRESHOLD \
  ((uint64_t)1 << 20)           /* postings of the shortest lists of a batch: 1M, as in the paper */
#define LEAST_THRESHOLD 16384.0 /* of the first batch; each has 4 times as many as the one before */
#define THRESHOLDS 6

/* The lists of conjunctions on the device, and which of them each conjunction takes. */
typedef struct board {
  gpuir_cuda_lab *gpu;
  const lab_list **list;
  size_t n;
  uint32_t *member,
      *start; /* of one conjunction after the other, again and again until there are `queries` */
  size_t queries;
  const conjunctions *of;
} board;

static void board_free(board *b) {
  gpuir_cuda_lab_close(b->gpu);
  free((void *)b->list);
  free(b->member);
  free(b->start);
  memset(b, 0, sizeof *b);
}

/* For batches of up to `queries` conjunctions. Exit code. */
static int board_make(const lab_codec *codec, const conjunctions *s, size_t queries, uint64_t room,
                      board *b) {
  lab_gpu_size size;
  size_t most = 0, n = 0;
  memset(b, 0, sizeof *b);
  memset(&size, 0, sizeof size);
  for (size_t i = 0; i < s->n; i++) most += s->all[i].k;
  b->of = s;
  b->list = (const lab_list **)cli_resize(NULL, most, sizeof *b->list);
  for (size_t i = 0; i < s->n; i++)
    for (unsigned j = 0; j < s->all[i].k; j++) b->list[n++] = s->all[i].list[j];
  qsort(b->list, n, sizeof *b->list, compare_pointer);
  for (size_t i = 0; i < n; i++)
    if (!i || b->list[i] != b->list[b->n - 1]) b->list[b->n++] = b->list[i];
  b->queries = queries;
  b->start = (uint32_t *)cli_resize(NULL, queries + 1, sizeof *b->start);
  b->member = (uint32_t *)cli_resize(NULL, queries * LAB_TERMS, sizeof *b->member);
  b->start[0] = 0;
  for (size_t q = 0; q < queries; q++) {
    const conjunction *c = &s->all[q % s->n];
    b->start[q + 1] = b->start[q] + c->k;
    for (unsigned j = 0; j < c->k; j++) {
      const lab_list *const *at =
          (const lab_list *const *)bsearch(&c->list[j], b->list, b->n, sizeof *b->list, compare_pointer);
      b->member[b->start[q] + j] = (uint32_t)(at - (const lab_list *const *)b->list);
    }
  }
  size.room = room;
  size.queries = queries;
  size.terms = b->start[queries];
  int code = lab_gpu_open(codec, b->list, b->n, &size, &b->gpu);
  if (code) board_free(b);
  return code;
}

/* Whether conjunctions first .. first + n - 1 found what a plain merge finds. */
static int board_right(const board *b, size_t first, size_t n, const uint32_t *counts,
                       const uint32_t *docids) {
  for (size_t q = 0, at = first; q < n; q++, at = at + 1 < b->of->n ? at + 1 : 0) {
    const conjunction *c = &b->of->all[at];
    uint64_t sum = 0;
    if (counts[q] != c->found) return 0;
    for (uint32_t i = 0; docids && i < counts[q]; i++) sum += *docids++;
    if (docids && sum != c->sum) return 0;
  }
  return 1;
}

/* Seconds of a run of one conjunction, or of the first n; 0 if the device cannot, by this method or for want of room.
 * The results are compared. */
static int board_run(const lab *l, const board *b, const char *method, int coded, size_t first, size_t n,
                     double *seconds) {
  gpuir_cuda_lab_result r;
  gpuir_cuda_lab_way way;
  gpuir_error err;
  size_t room = 1;
  const uint32_t *member = b->member + b->start[first], one[2] = {0, b->start[first + 1] - b->start[first]},
                 *start = n == 1 ? one : b->start;
  memset(&err, 0, sizeof err);
  memset(&way, 0, sizeof way);
  way.method = method;
  way.coded = coded;
  *seconds = 0;
  for (size_t q = 0; q < n && n <= b->of->n; q++) room += b->of->all[(first + q) % b->of->n].found;
  uint32_t *counts = (uint32_t *)cli_resize(NULL, n, sizeof *counts),
           *docids = n <= b->of->n ? (uint32_t *)cli_resize(NULL, room, sizeof *docids) : NULL;
  int code = CLI_OK,
      status = gpuir_cuda_lab_intersect(b->gpu, member, start, n, &way, counts, NULL, &r, &err);
  if (!status && board_right(b, first, n, counts, NULL)) { /* now the docIDs have room */
    way.repeat = (unsigned)l->repeat;
    status = gpuir_cuda_lab_intersect(b->gpu, member, start, n, &way, counts, docids, &r, &err);
    if (!status && board_right(b, first, n, counts, docids)) *seconds = r.ms / 1e3;
  }
  if (status && status != GPUIR_E_UNSUPPORTED && status != GPUIR_E_LIMIT)
    code = cli_fail(method, status, &err);
  if (!status && *seconds <= 0) {
    cli_error("%s on the device does not find what a plain merge does", method);
    code = CLI_FAIL;
  }
  free(counts);
  free(docids);
  return code;
}

/* Seconds of all conjunctions, one in a run. */
static int board_alone(const lab *l, const board *b, const char *method, int coded, double *seconds) {
  int code = CLI_OK;
  *seconds = 0;
  for (size_t q = 0; q < b->of->n && code == CLI_OK; q++) {
    double one;
    code = board_run(l, b, method, coded, q, 1, &one);
    if (one <= 0) { /* not all: none */
      *seconds = 0;
      break;
    }
    *seconds += one;
  }
  return code;
}

/* How many conjunctions, taken again and again, have so many postings in their shortest lists; at most a batch. */
static size_t batch_of(const conjunctions *s, uint64_t threshold) {
  uint64_t postings = 0;
  size_t n = 0;
  for (; s->n && n < BATCH_QUERIES && postings < threshold; n++) postings += s->all[n % s->n].list[0]->n;
  return n;
}

/* Seconds of a batch of conjunctions, and how many they were: fewer if the device has no room for them, none if it has
 * no such method. */
static int board_batch(const lab *l, const board *b, const char *method, int coded, uint64_t threshold,
                       double *seconds, size_t *n) {
  int code = CLI_OK;
  *seconds = 0;
  for (*n = batch_of(b->of, threshold); *n && code == CLI_OK; *n /= 2) {
    code = board_run(l, b, method, coded, 0, *n, seconds);
    if (*seconds > 0) break;
  }
  return code;
}

/* The i-th method of the device that is measured, or NULL. */
static const char *device_method_at(const lab *l, size_t i) {
  for (size_t all = 0; gpuir_cuda_lab_method(all); all++)
    if (lab_among(l->methods, gpuir_cuda_lab_method(all)) && !i--) return gpuir_cuda_lab_method(all);
  return NULL;
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

/* Lists of 2^20 to 2^21 - 1 postings, or the longest ones, against lists of a 2^r-th of their length. */
static void pairs_of_griffin(const lab *l, const lab_lists *lists, unsigned r, conjunctions *s) {
  unsigned c = top_class(lists) < GRIFFIN_LONG ? top_class(lists) : GRIFFIN_LONG;
  if (c >= r + LEAST_SHORT) add_pairs(l, lists, c - r, c, s);
}

typedef void (*pairs_function)(const lab *, const lab_lists *, unsigned, conjunctions *);

/* Of a figure, a method and a point: nanoseconds a posting of the shorter lists, or milliseconds a pair. */
static double sweep_value(int figure, const conjunctions *s, double seconds) {
  return figure == GRIFFIN_FIG13 || figure == GRIFFIN_FIG8 ? seconds * 1e3 / (double)s->n
                                                           : seconds * 1e9 / s->shortest;
}

/* The device's methods at one point: y[method][point]. Exit code. */
static int sweep_device(const lab *l, int figure, const lab_codec *codec, const conjunctions *s,
                        unsigned point, double (*y)[LAB_CLASSES]) {
  board b;
  const char *method;
  int code = board_make(codec, s, s->n, 0, &b);
  for (size_t i = 0; code == CLI_OK && (method = device_method_at(l, i)) != NULL; i++) {
    double seconds = 0;
    lab_progress("%s: %s, point %u, on the device", lab_intersect_figures[figure].id, method, point);
    code = lab_stopped() ? CLI_FAIL : board_alone(l, &b, method, codec != NULL, &seconds);
    y[i][point] = sweep_value(figure, s, seconds);
  }
  board_free(&b);
  return code;
}

/* All methods over the pairs of each point of an axis, by the CPU and by the device. y[method][point] is 0 where there
 * are no pairs. Exit code. */
static int sweep(const lab *l, const lab_lists *lists, int figure, const lab_codec *codec,
                 pairs_function pairs, double (*y)[LAB_CLASSES], double (*device)[LAB_CLASSES]) {
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
      if (code == CLI_OK) y[i][point] = sweep_value(figure, &s, seconds);
    }
    if (s.n && l->gpu && code == CLI_OK) code = sweep_device(l, figure, codec, &s, point, device);
    library_free(&coded);
    conjunctions_free(&s);
  }
  return code;
}

/* A line for each method; at point p, x is 2^(p + up). */
static void sweep_rows(lab *l, int figure, int up, const char *(*at)(const lab *, size_t), const char *suffix,
                       double (*y)[LAB_CLASSES]) {
  const char *method, *unit = figure == GRIFFIN_FIG13 || figure == GRIFFIN_FIG8 ? "ms" : "ns";
  char series[64];
  for (size_t i = 0; (method = at(l, i)) != NULL; i++)
    for (int p = 0; p < (int)LAB_CLASSES; p++) {
      if (y[i][p] <= 0) continue;
      snprintf(series, sizeof series, "%s%s", method, suffix);
      lab_row_at(&l->report, lab_intersect_figures[figure].id, series, ldexp(1, p + up), y[i][p], unit);
    }
}

static int draw_sweep(lab *l, const lab_lists *lists, int figure, const lab_codec *codec,
                      pairs_function pairs, int up) {
  double y[MOST_METHODS][LAB_CLASSES], device[MOST_METHODS][LAB_CLASSES];
  memset(y, 0, sizeof y);
  memset(device, 0, sizeof device);
  int code = sweep(l, lists, figure, codec, pairs, y, device);
  if (code) return code;
  sweep_rows(l, figure, up, method_at, "", y);
  sweep_rows(l, figure, up, device_method_at, "/GPU", device);
  return CLI_OK;
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

/* Griffin's choice of methods, unless others are asked for. */
static int griffin_fig8(lab *l, const lab_lists *lists) {
  const char *methods = l->methods;
  lab_codec codec;
  if (!lab_codec_wanted(l, "ef")) return CLI_OK;
  (void)lab_codec_find("ef", &codec, NULL);
  if (!methods) l->methods = "merge,binary,skip,simd,mergepath,griffin";
  int code = draw_sweep(l, lists, GRIFFIN_FIG8, &codec, pairs_of_griffin, 0);
  l->methods = methods;
  return code;
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

/* Throughput and response time of a batch; seconds of one that has n queries. */
static void put_table7(lab *l, const char *series, const char *name, double seconds, size_t n) {
  if (lab_wants(l, "ao-table7"))
    lab_row(&l->report, "ao-table7", series, name, (double)n / seconds, "queries/s");
  if (lab_wants(l, "ao-table7-ms"))
    lab_row(&l->report, "ao-table7-ms", series, name, seconds * 1e3, "ms/batch");
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
    if (code == CLI_OK) {
      size_t n = batch_of(s, TABLE_THRESHOLD);
      put_query_time(l, "lists", name, seconds, base, (double)s->n);
      put_table7(l, "CPU", name, seconds * (double)n / (double)s->n, n);
    }
    library_free(&coded);
  }
  return code;
}

/* The same columns on the device, as in the paper. */
static int query_device_codecs(lab *l, const conjunctions *s, double base) {
  int code = CLI_OK;
  for (size_t i = 0; code == CLI_OK && i < sizeof coded_columns / sizeof *coded_columns; i++) {
    lab_codec codec;
    board b;
    char name[64];
    double seconds;
    size_t n;
    const char *method = coded_columns[i].method;
    if (!lab_codec_wanted(l, coded_columns[i].codec) || !lab_among(l->methods, method)) continue;
    snprintf(name, sizeof name, "%s/%s", coded_columns[i].codec, method);
    lab_progress("queries: %s, on the device", name);
    (void)lab_codec_find(coded_columns[i].codec, &codec, NULL);
    code = lab_stopped() ? CLI_FAIL : board_make(&codec, s, BATCH_QUERIES, BATCH_ROOM, &b);
    if (code) break;
    code = board_batch(l, &b, method, 1, TABLE_THRESHOLD, &seconds, &n);
    if (code == CLI_OK && n) {
      put_query_time(l, "lists/GPU", name, seconds * (double)s->n / (double)n, base, (double)s->n);
      put_table7(l, "GPU", name, seconds, n);
    }
    board_free(&b);
  }
  return code;
}

/* All the device's methods in one form, by batches. */
static int query_device(lab *l, const char *series, const board *b, int coded, double base) {
  const char *method;
  int code = CLI_OK;
  for (size_t i = 0; code == CLI_OK && (method = device_method_at(l, i)) != NULL; i++) {
    double seconds;
    size_t n;
    lab_progress("queries: %s, %s, on the device", method, series);
    code = lab_stopped() ? CLI_FAIL : board_batch(l, b, method, coded, TABLE_THRESHOLD, &seconds, &n);
    if (code == CLI_OK && n)
      put_query_time(l, series, method, seconds * (double)b->of->n / (double)n, base, (double)b->of->n);
  }
  return code;
}

/* Throughput and response time by threshold, of a method of one core that takes `seconds` for the conjunctions, or, if
 * that is 0, of the device's. */
static int thresholds(lab *l, const board *b, const char *method, const char *series, double seconds) {
  double t[THRESHOLDS], batch[THRESHOLDS];
  size_t n[THRESHOLDS];
  for (int i = 0; i < THRESHOLDS; i++) {
    t[i] = ldexp(LEAST_THRESHOLD, 2 * i);
    if (seconds > 0) {
      n[i] = batch_of(b->of, (uint64_t)t[i]);
      batch[i] = seconds * (double)n[i] / (double)b->of->n;
    } else if (lab_stopped() || board_batch(l, b, method, 0, (uint64_t)t[i], &batch[i], &n[i])) {
      return CLI_FAIL;
    }
  }
  for (int figure = AO_FIG5; figure <= AO_FIG6; figure++)
    for (int i = 0; i < THRESHOLDS && lab_wants(l, lab_intersect_figures[figure].id); i++)
      if (n[i])
        lab_row_at(&l->report, lab_intersect_figures[figure].id, series, t[i],
                   figure == AO_FIG5 ? (double)n[i] / batch[i] : batch[i] * 1e3,
                   figure == AO_FIG5 ? "queries/s" : "ms/batch");
  return CLI_OK;
}

static int query_thresholds(lab *l, const conjunctions *s, const board *b) {
  static const char *const cpu[] = {"skip", "simd"};
  const char *method;
  char series[64];
  double seconds, bytes;
  int code = CLI_OK;
  if (!lab_wants(l, "ao-fig5") && !lab_wants(l, "ao-fig6")) return CLI_OK;
  for (size_t i = 0; i < sizeof cpu / sizeof *cpu && code == CLI_OK; i++) {
    if (!lab_among(l->methods, cpu[i])) continue;
    code = time_method(l, cpu[i], s, NULL, &seconds, &bytes);
    if (code == CLI_OK) code = thresholds(l, b, cpu[i], cpu[i], seconds);
  }
  for (size_t i = 0; code == CLI_OK && (method = device_method_at(l, i)) != NULL; i++) {
    lab_progress("thresholds: %s", method);
    snprintf(series, sizeof series, "%s/GPU", method);
    code = thresholds(l, b, method, series, 0);
  }
  return code;
}

static int query_arrays(lab *l, const conjunctions *s) {
  double base = 0;
  board b;
  memset(&b, 0, sizeof b);
  int code = query_methods(l, "arrays", s, NULL, &base);
  if (code || !l->gpu) return code;
  code = board_make(NULL, s, BATCH_QUERIES, BATCH_ROOM, &b);
  if (code == CLI_OK) code = query_device(l, "arrays/GPU", &b, 0, base);
  if (code == CLI_OK) code = query_thresholds(l, s, &b);
  board_free(&b);
  return code;
}

static int query_lists(lab *l, const conjunctions *s) {
  double base = 0;
  library coded;
  board b;
  lab_codec codec;
  char series[64];
  memset(&b, 0, sizeof b);
  common_codec(l, &codec);
  int code = library_make(l, codec.label, s, &coded);
  if (code) return code;
  code = query_methods(l, codec.label, s, &coded, &base);
  library_free(&coded);
  if (code == CLI_OK) code = query_codecs(l, s, base);
  if (code || !l->gpu) return code;
  snprintf(series, sizeof series, "%s/GPU", codec.label);
  code = board_make(&codec, s, BATCH_QUERIES, BATCH_ROOM, &b);
  if (code == CLI_OK) code = query_device(l, series, &b, 1, base);
  board_free(&b);
  return code ? code : query_device_codecs(l, s, base);
}

/* Fills the figures of queries at once. */
static int query_figures(lab *l, const lab_lists *lists) {
  lab_queries queries;
  conjunctions s;
  memset(&s, 0, sizeof s);
  int code = lab_draw_queries(l, lists, (size_t)l->sample * LAB_QUERIES, &queries);
  for (size_t i = 0; i < queries.n; i++) {
    const lab_list *list[LAB_TERMS] = {NULL};
    for (unsigned j = 0; j < queries.query[i].k; j++) list[j] = &queries.list[queries.query[i].member[j]];
    conjunctions_add(&s, list, queries.query[i].k);
  }
  if (code == CLI_OK && s.n) code = query_arrays(l, &s);
  if (code == CLI_OK && s.n) code = query_lists(l, &s);
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
  char series[64];
  for (size_t i = 0; i < GRIFFIN_CODECS; i++) {
    if (!lab_codec_wanted(l, griffin_codecs[i])) continue;
    lab_progress("decompression: %s", griffin_codecs[i]);
    if (lab_measure(l, griffin_codecs[i], lists, 1, &m)) return CLI_FAIL;
    for (unsigned c = GRIFFIN_CLASS; c < LAB_CLASSES; c++)
      if (m.seconds[c] > 0)
        lab_row_at(&l->report, "griffin-fig12", griffin_codecs[i], ldexp(1, (int)c + 1),
                   m.seconds[c] * 1e3 / (double)(lists->first[c + 1] - lists->first[c]), "ms");
    snprintf(series, sizeof series, "%s/GPU", griffin_codecs[i]);
    for (unsigned c = GRIFFIN_CLASS; c < LAB_CLASSES; c++)
      if (m.alone[c] > 0)
        lab_row_at(&l->report, "griffin-fig12", series, ldexp(1, (int)c + 1),
                   m.alone[c] * 1e3 / (double)(lists->first[c + 1] - lists->first[c]), "ms");
  }
  return CLI_OK;
}

/* ---- the subcommand -------------------------------------------------------------------------------------- */

int lab_intersect_methods(lab *l) {
  static int (*const draw[FIGURES])(lab *, const lab_lists *) = {
      ratio_arrays,  ratio_lists,    ding_fig6,     query_figures, query_figures,
      query_figures, query_figures,  query_figures, query_figures, query_figures,
      griffin_fig8,  griffin_table1, griffin_fig10, griffin_fig12, griffin_fig13};
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
