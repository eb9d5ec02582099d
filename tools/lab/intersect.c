/* intersect.c - gpuir lab intersect: speed of the intersection methods, on sorted arrays and on compressed
 * lists (Ding et al., WWW 2009; Ao et al., PVLDB 4(8), 2011; Liu et al., "Griffin", PPoPP 2018). What a method prepares
 * of a list is made before the clock starts. Each result is compared with that of a plain merge.
 *
 * A measurement is a pass over all conjunctions of a point, or over all queries: by a core one after the other, by the
 * device one after the other or batch after batch. Both take the same conjunctions in the same order, equally often.
 */
#include "../cli/cli.h"
#include "lab.h"
#include "gpuir_lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TOP_CLASSES 3u /* the longer lists of pairs are of so many classes */
#define LEAST_SHORT 3u /* least class of the shorter list of a pair */
#define COMPARABLE 16.0 /* Griffin's pairs are of lists that differ in length by less */
#define MOST_METHODS 64 /* in the library's table, and in the device's */
#define GRIFFIN_CLASS 10u /* and of 1024 postings or more */
#define GRIFFIN_LONG 20u /* by ratio, the longer list has 2M postings at most */
#define PAIR_POSTINGS ((uint64_t)1 << 24) /* of the lists of a class that pairs are made of */

enum {
  RATIO_ARRAYS,
  RATIO_LISTS,
  DING_FIG6,
  AO_TABLE3,
  AO_TABLE3_CORE,
  AO_TABLE4,
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
  PAIRS,
  FIGURES
};

const lab_figure lab_intersect_figures[] = {
    {"ratio-arrays", "Intersection of two arrays by the ratio of their lengths", "length ratio",
        "ns a posting of the shorter list", LAB_LINES, LAB_LOG_X | LAB_LOG_Y,
        "simd,mergepath/GPU,hs16/GPU,skip,merge,hs16,gallop"},
    {"ratio-lists", "Intersection of two compressed lists by the ratio of their lengths", "length ratio",
        "ns a posting of the shorter list", LAB_LINES, LAB_LOG_X | LAB_LOG_Y,
        "simd,mergepath/GPU,griffin/GPU,skip,merge,gallop,mergepath"},
    {"ding-fig6", "Intersection of two arrays of like length (Ding 2009, Fig. 6)", "postings of a list, at most",
        "ns a posting of the shorter list", LAB_LINES, LAB_LOG_X | LAB_LOG_Y, "simd,pmf0/GPU,pmf3/GPU,pmf0,pmf3,merge"},
    {"ao-table3", "Speed-up over the skip list in the same form (Ao 2011, Table 3)", "method", "times as fast",
        LAB_BARS, LAB_LOG_Y, "arrays/GPU,arrays,lists/GPU,bp128/GPU,bp128"},
    {"ao-table3-core", "Speed-up over the fastest method of a core in the same form", "method", "times as fast",
        LAB_BARS, LAB_LOG_Y, "arrays/GPU,arrays,lists/GPU,bp128/GPU,bp128"},
    {"ao-table4", "R, what is left of the shortest list over the next list, by stage (Ao 2011, Table 4)", "terms/stage",
        "percent; thousand docIDs", LAB_BARS, 0, "R,left"},
    {"query-time", "Time of a query's intersection", "method", "microseconds a query", LAB_BARS, LAB_LOG_Y,
        "arrays/GPU,arrays,lists/GPU,bp128/GPU,bp128"},
    {"prepared", "What a method prepares, by the bytes of arrays of docIDs (Ao 2011, 6.1)", "method", "percent",
        LAB_BARS, 0, NULL},
    {"ao-fig5", "Throughput by the threshold of a batch, of arrays (Ao 2011, Fig. 5)",
        "postings of the shortest lists of a batch", "queries a second", LAB_LINES, LAB_LOG_X | LAB_LOG_Y,
        "simd,hs16/GPU,lr-local/GPU,binary/GPU,skip"},
    {"ao-fig6", "Response time by the threshold of a batch, of arrays (Ao 2011, Fig. 6)",
        "postings of the shortest lists of a batch", "milliseconds a batch", LAB_LINES, LAB_LOG_X | LAB_LOG_Y,
        "simd,hs16/GPU,lr-local/GPU,binary/GPU,skip"},
    {"ao-table7", "Throughput on compressed lists, by batches of 2^20 postings (Ao 2011, Table 7)", "codec/method",
        "queries a second", LAB_BARS, LAB_LOG_Y, NULL},
    {"ao-table7-ms", "Response time on compressed lists, by batches of 2^20 postings (Ao 2011, Table 7)",
        "codec/method", "milliseconds a batch", LAB_BARS, LAB_LOG_Y, NULL},
    {"griffin-fig8", "Intersection of two lists in ef by the ratio of their lengths (Griffin 2018, Fig. 8)",
        "length ratio", "milliseconds", LAB_LINES, LAB_LOG_X | LAB_LOG_Y,
        "simd,mergepath/GPU,griffin/GPU,skip,skip/GPU,merge,mergepath"},
    {"griffin-table1", "Compression ratio (Griffin 2018, Table 1)", "codec", "compression ratio", LAB_BARS, 0, NULL},
    {"griffin-fig10", "Lengths of the lists (Griffin 2018, Fig. 10)", "postings of a list, at most",
        "percent of the lists", LAB_LINES, LAB_LOG_X, NULL},
    {"griffin-fig12", "Decompression of a list (Griffin 2018, Fig. 12)", "postings of a list, at most", "milliseconds",
        LAB_LINES, LAB_LOG_X | LAB_LOG_Y, "ef/GPU,ef,pfd/GPU,pfd"},
    {"griffin-fig13", "Intersection of arrays that differ in length by less than 16 times (Griffin 2018, Fig. 13)",
        "postings of the longer list, at most", "milliseconds", LAB_LINES, LAB_LOG_X | LAB_LOG_Y,
        "simd,mergepath/GPU,binary/GPU,merge,binary,mergepath"},
    {"pairs", "Pairs of lists that the figures by ratio and by length are means over", "ratio or length", "pairs",
        LAB_LINES, LAB_LOG_X, NULL},
    {NULL, NULL, NULL, NULL, 0, 0, NULL}};

/* ---- conjunctions: of two lists, or of a query ----------------------------------------------------------- */

/* What is intersected. */
typedef struct conjunction {
  const lab_list *list[LAB_TERMS];
  unsigned k;
  uint32_t left[LAB_TERMS]; /* left[i]: how many docIDs are in lists 0 to i, by a plain merge */
  uint32_t found; /* in all */
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
  if ((s->n & (s->n - 1)) == 0) s->all = (conjunction *)cli_resize(s->all, s->n ? s->n * 2 : 1, sizeof *s->all);
  conjunction *c = &s->all[s->n++];
  uint32_t *docs = (uint32_t *)cli_resize(NULL, list[0]->n, sizeof *docs);
  memset(c, 0, sizeof *c);
  c->k = k;
  c->found = list[0]->n;
  memcpy(docs, list[0]->docs, list[0]->n * sizeof *docs);
  for (unsigned i = 0; i < k; i++) {
    c->list[i] = list[i];
    if (i) merge_in(docs, &c->found, list[i]);
    c->left[i] = c->found;
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
    if (status) code = cli_fail(label, status, NULL);
    else b->n++;
  }
  if (code) library_free(b);
  return code;
}

static lab_coded *library_find(const library *b, const lab_list *list) {
  const lab_list *const *at = (const lab_list *const *)bsearch(&list, b->list, b->n, sizeof *b->list, compare_pointer);
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

static void prepared_free(prepared *p) {
  for (size_t i = 0; i < p->n; i++) lab_intersection_free(p->x[i]);
  free(p->x);
}

/* Prepares all searches, does each once, and counts the bytes of what was prepared. Exit code. */
static int prepare_all(const char *method, const conjunctions *s, const library *coded, prepared *p, double *bytes) {
  int code = CLI_OK;
  p->x = (lab_intersection **)cli_resize(NULL, s->n, sizeof(lab_intersection *));
  p->n = 0;
  *bytes = 0;
  for (size_t i = 0; i < s->n && code == CLI_OK; i++) {
    int status = prepare(method, &s->all[i], coded, &p->x[p->n]);
    if (status) {
      code = cli_fail(method, status, NULL);
      break;
    }
    lab_intersection *x = p->x[p->n++];
    uint32_t found = lab_intersect(x);
    *bytes += (double)lab_intersection_bytes(x);
    if (found != s->all[i].found || lab_intersection_sum(x) != s->all[i].sum) {
      cli_error("%s finds %u docIDs; by a plain merge they are %u", method, found, s->all[i].found);
      code = CLI_FAIL;
    }
  }
  if (code) prepared_free(p);
  return code;
}

/* Seconds of a pass over all conjunctions, and bytes of what was prepared for them. Exit code. */
static int time_method(const lab *l, const char *method, const conjunctions *s, const library *coded,
    lab_spread *seconds, double *bytes) {
  prepared p;
  int code = prepare_all(method, s, coded, &p, bytes);
  if (code) return code;
  *seconds = lab_time_warm(l, search_all, &p);
  prepared_free(&p);
  return CLI_OK;
}

/* Returns the i-th method that is measured, or NULL. */
static const char *method_at(const lab *l, size_t i) {
  for (size_t all = 0; gpuir_intersection_name(all); all++)
    if (lab_among(l->methods, gpuir_intersection_name(all)) && !i--) return gpuir_intersection_name(all);
  return NULL;
}

/* The codec of compressed lists where all methods are held against each other. */
static void common_codec(const lab *l, lab_codec *codec) {
  if (!l->codecs || !lab_codec_at(l, 0, codec)) (void)lab_codec_find("bp128", codec, NULL);
}

/* ---- batches --------------------------------------------------------------------------------------------- */

#define BATCH_ROOM ((uint64_t)1 << 28) /* docIDs that a run holds, at most */
#define BATCH_QUERIES ((size_t)1 << 16) /* and queries */
#define BLOCK_REST 127u /* by which lists grow, at most, where they are decoded in whole blocks */
#define TABLE_THRESHOLD ((uint64_t)1 << 20) /* postings of the shortest lists of a batch: 1M, as in the paper */
#define LEAST_THRESHOLD 16384.0 /* of the first batch; each has 4 times as many as the one before */
#define THRESHOLDS 6

/* Conjunctions cut into successive batches: batch i is [end[i - 1], end[i]). */
typedef struct batches {
  size_t *end, n;
  size_t full; /* of them, have the postings that were asked for; all, if there is one alone */
} batches;

/* Until the shortest lists of a batch have so many postings; 0: each conjunction is a batch. */
static void batches_cut(const conjunctions *s, uint64_t threshold, batches *b) {
  uint64_t postings = 0;
  b->n = b->full = 0;
  b->end = (size_t *)cli_resize(NULL, s->n, sizeof *b->end);
  for (size_t i = 0; i < s->n; i++) {
    const size_t first = b->n ? b->end[b->n - 1] : 0;
    postings += s->all[i].list[0]->n;
    if (postings < threshold && i + 1 - first < BATCH_QUERIES && i + 1 < s->n) continue;
    if (postings >= threshold) b->full++;
    b->end[b->n++] = i + 1;
    postings = 0;
  }
  if (b->n == 1) b->full = 1;
}

/* What passes over batches took. */
typedef struct pass_times {
  lab_spread pass; /* seconds of all batches, one after the other; n is 0 if it cannot be done */
  lab_spread batch; /* seconds of a full batch, of all passes */
} pass_times;

/* Does conjunctions first .. first + n - 1. *seconds is 0 if it cannot be done. Exit code. */
typedef int batch_function(void *of, size_t first, size_t n, double *seconds);

/* `repeat` passes after one that warms up. Exit code. */
static int run_passes(const lab *l, const batches *b, batch_function *run, void *of, pass_times *t) {
  double pass[LAB_MOST_REPEATS], *batch = (double *)cli_resize(NULL, b->n * (size_t)l->repeat, sizeof *batch);
  size_t n = 0;
  int code = CLI_OK, can = 1;
  memset(t, 0, sizeof *t);
  for (uint64_t r = 0; r <= l->repeat && code == CLI_OK && can; r++) {
    double sum = 0;
    for (size_t i = 0; i < b->n && code == CLI_OK && can; i++) {
      const size_t first = i ? b->end[i - 1] : 0;
      double seconds = 0;
      code = lab_stopped() ? CLI_FAIL : run(of, first, b->end[i] - first, &seconds);
      can = seconds > 0;
      sum += seconds;
      if (r && i < b->full) batch[n++] = seconds; /* only the last one is not full */
    }
    if (r) pass[r - 1] = sum;
  }
  if (code == CLI_OK && can) {
    t->pass = lab_spread_of(pass, (size_t)l->repeat);
    t->batch = lab_spread_of(batch, n);
  }
  free(batch);
  return code;
}

static int batch_on_cpu(void *of, size_t first, size_t n, double *seconds) {
  const prepared *all = (const prepared *)of;
  prepared some = {all->x + first, n};
  const double start = lab_processor_seconds();
  search_all(&some);
  *seconds = lab_processor_seconds() - start;
  return CLI_OK;
}

/* ---- one method of the device over conjunctions ------------------------------------------------------------ */

/* The lists of conjunctions on the device, and which of them each conjunction takes. */
typedef struct board {
  gpuir_cuda_lab *gpu;
  const lab_list **list;
  size_t n;
  uint32_t *member, *start; /* of one conjunction after the other */
  const conjunctions *of;
} board;

static void board_free(board *b) {
  gpuir_cuda_lab_close(b->gpu);
  free((void *)b->list);
  free(b->member);
  free(b->start);
  memset(b, 0, sizeof *b);
}

/* The lists of all conjunctions, each once. */
static void board_lists(board *b) {
  const conjunctions *s = b->of;
  size_t most = 0, n = 0;
  for (size_t i = 0; i < s->n; i++) most += s->all[i].k;
  b->list = (const lab_list **)cli_resize(NULL, most, sizeof *b->list);
  for (size_t i = 0; i < s->n; i++)
    for (unsigned j = 0; j < s->all[i].k; j++) b->list[n++] = s->all[i].list[j];
  qsort(b->list, n, sizeof *b->list, compare_pointer);
  for (size_t i = 0; i < n; i++)
    if (!i || b->list[i] != b->list[b->n - 1]) b->list[b->n++] = b->list[i];
}

/* For batches of these threshold or less. Exit code. */
static int board_make(const lab *l, const lab_codec *codec, const conjunctions *s, uint64_t threshold, board *b) {
  lab_gpu_size size;
  batches cut;
  memset(b, 0, sizeof *b);
  memset(&size, 0, sizeof size);
  size.cold = l->cold;
  b->of = s;
  board_lists(b);
  b->start = (uint32_t *)cli_resize(NULL, s->n + 1, sizeof *b->start);
  b->member = (uint32_t *)cli_resize(NULL, s->n * LAB_TERMS, sizeof *b->member);
  b->start[0] = 0;
  for (size_t q = 0; q < s->n; q++) {
    const conjunction *c = &s->all[q];
    b->start[q + 1] = b->start[q] + c->k;
    for (unsigned j = 0; j < c->k; j++) {
      const lab_list *const *at =
          (const lab_list *const *)bsearch(&c->list[j], b->list, b->n, sizeof *b->list, compare_pointer);
      b->member[b->start[q] + j] = (uint32_t)(at - (const lab_list *const *)b->list);
    }
  }
  batches_cut(s, threshold, &cut);
  for (size_t i = 0; i < cut.n; i++) {
    const size_t first = i ? cut.end[i - 1] : 0;
    uint64_t postings = 0;
    for (size_t q = first; q < cut.end[i]; q++)
      for (unsigned j = 0; j < s->all[q].k; j++) postings += s->all[q].list[j]->n + BLOCK_REST;
    if (postings > size.room) size.room = postings;
    if (cut.end[i] - first > size.queries) size.queries = cut.end[i] - first;
    if (b->start[cut.end[i]] - b->start[first] > size.terms) size.terms = b->start[cut.end[i]] - b->start[first];
  }
  free(cut.end);
  if (size.room > BATCH_ROOM) size.room = BATCH_ROOM;
  int code = lab_gpu_open(codec, b->list, b->n, &size, &b->gpu);
  if (code) board_free(b);
  return code;
}

/* Returns whether conjunctions first .. first + n - 1 found what a plain merge finds. */
static int board_right(const board *b, size_t first, size_t n, const uint32_t *counts, const uint32_t *docids) {
  for (size_t q = 0; q < n; q++) {
    const conjunction *c = &b->of->all[first + q];
    uint64_t sum = 0;
    if (counts[q] != c->found) return 0;
    for (uint32_t i = 0; i < counts[q]; i++) sum += *docids++;
    if (sum != c->sum) return 0;
  }
  return 1;
}

/* A method of the device over a board. */
typedef struct play {
  const board *board;
  const char *method;
  int coded;
} play;

/* The device's time of one run. Its results are fetched and compared. *seconds is 0 if the device cannot, by this
 * method or for want of room. */
static int batch_on_device(void *of, size_t first, size_t n, double *seconds) {
  const play *p = (const play *)of;
  const board *b = p->board;
  gpuir_cuda_lab_result r;
  gpuir_cuda_lab_way way;
  gpuir_error err;
  size_t room = 1;
  uint32_t *start = (uint32_t *)cli_resize(NULL, n + 1, sizeof *start),
           *counts = (uint32_t *)cli_resize(NULL, n, sizeof *counts), *docids;
  int code = CLI_OK;
  memset(&err, 0, sizeof err);
  memset(&way, 0, sizeof way);
  way.method = p->method;
  way.coded = p->coded;
  way.repeat = 1;
  for (size_t q = 0; q <= n; q++) start[q] = b->start[first + q] - b->start[first];
  for (size_t q = 0; q < n; q++) room += b->of->all[first + q].list[0]->n;
  docids = (uint32_t *)cli_resize(NULL, room, sizeof *docids);
  int status = gpuir_cuda_lab_intersect(b->gpu, b->member + b->start[first], start, n, &way, counts, docids, &r, &err);
  *seconds = status ? 0 : r.ms / 1e3;
  if (status && status != GPUIR_E_UNSUPPORTED && status != GPUIR_E_LIMIT) {
    code = cli_fail(p->method, status, &err);
  } else if (!status && !board_right(b, first, n, counts, docids)) {
    cli_error("%s on the device does not find what a plain merge does", p->method);
    code = CLI_FAIL;
  }
  free(start);
  free(counts);
  free(docids);
  return code;
}

/* Passes of a method of the device by batches of a threshold. */
static int board_passes(const lab *l, const board *b, const char *method, int coded, uint64_t threshold,
    pass_times *t) {
  play p = {b, method, coded};
  batches cut;
  batches_cut(b->of, threshold, &cut);
  lab_gpu_take(l);
  int code = run_passes(l, &cut, batch_on_device, &p, t);
  lab_gpu_give(l);
  free(cut.end);
  return code;
}

/* Returns the i-th method of the device that is measured, or NULL. */
static const char *device_method_at(const lab *l, size_t i) {
  for (size_t all = 0; gpuir_cuda_lab_method(all); all++)
    if (lab_among(l->methods, gpuir_cuda_lab_method(all)) && !i--) return gpuir_cuda_lab_method(all);
  return NULL;
}

/* ---- pairs of lists -------------------------------------------------------------------------------------- */

/* Up to `want` different pairs of a list of class `longer` and one of class `shorter`, so that each list is in as
 * few as can be. */
static void add_pairs(const lab_lists *lists, unsigned shorter, unsigned longer, uint64_t want, conjunctions *s) {
  const size_t nlong = lists->first[longer + 1] - lists->first[longer],
               nshort = lists->first[shorter + 1] - lists->first[shorter],
               all = shorter == longer ? nlong * (nlong - (nlong > 0)) / 2 : nlong * nshort;
  for (size_t t = 0; t < all && t < want; t++) {
    const size_t i = t % nlong, j = (i + t / nlong + (shorter == longer)) % nshort;
    const lab_list *pair[2] = {&lists->list[lists->first[shorter] + j], &lists->list[lists->first[longer] + i]};
    if (pair[0]->n > pair[1]->n) {
      const lab_list *other = pair[0];
      pair[0] = pair[1];
      pair[1] = other;
    }
    conjunctions_add(s, pair, 2);
  }
}

static unsigned top_class(const lab_lists *lists) { return lists->n ? lab_class(lists->list[lists->n - 1].n) : 0; }

/* The class of the longest lists of pairs by ratio. */
static unsigned long_class(const lab_lists *lists) {
  return top_class(lists) < GRIFFIN_LONG ? top_class(lists) : GRIFFIN_LONG;
}

/* Lists of the three longest classes against lists of a 2^r-th of their length. */
static void pairs_of_ratio(const lab *l, const lab_lists *lists, unsigned r, conjunctions *s) {
  const unsigned top = long_class(lists);
  for (unsigned i = 0; i < TOP_CLASSES && top >= i + r + LEAST_SHORT; i++) {
    const uint64_t left = TOP_CLASSES - i, lack = l->pairs - s->n;
    add_pairs(lists, top - i - r, top - i, (lack + left - 1) / left, s);
  }
}

/* Lists of one class. */
static void pairs_of_length(const lab *l, const lab_lists *lists, unsigned c, conjunctions *s) {
  if (c >= LEAST_SHORT) add_pairs(lists, c, c, l->pairs, s);
}

/* Lists of one class with those of the three classes below, and with each other. */
static void pairs_comparable(const lab *l, const lab_lists *lists, unsigned c, conjunctions *s) {
  unsigned left = lab_class((uint32_t)COMPARABLE);
  for (unsigned r = 0; c >= GRIFFIN_CLASS && left; r++, left--)
    add_pairs(lists, c - r, c, (l->pairs - s->n + left - 1) / left, s);
}

/* Lists of 2^20 to 2^21 - 1 postings, or the longest ones, against lists of a 2^r-th of their length. */
static void pairs_of_griffin(const lab *l, const lab_lists *lists, unsigned r, conjunctions *s) {
  const unsigned c = long_class(lists);
  if (c >= r + LEAST_SHORT) add_pairs(lists, c - r, c, l->pairs, s);
}

typedef void (*pairs_function)(const lab *, const lab_lists *, unsigned, conjunctions *);

/* What a method took at each point of an axis; n is 0 where there are no pairs. */
typedef lab_spread by_point[MOST_METHODS][LAB_CLASSES];

/* Of a figure, a method and a point: nanoseconds a posting of the shorter lists, or milliseconds a pair. */
static lab_spread sweep_value(int figure, const conjunctions *s, lab_spread seconds) {
  return lab_scaled(seconds,
      figure == GRIFFIN_FIG13 || figure == GRIFFIN_FIG8 ? 1e3 / (double)s->n : 1e9 / s->shortest);
}

/* The device's methods at one point, each pair in a run of its own. Exit code. */
static int sweep_device(const lab *l, int figure, const lab_codec *codec, const conjunctions *s, unsigned point,
    by_point y) {
  board b;
  const char *method;
  int code = board_make(l, codec, s, 0, &b);
  for (size_t i = 0; code == CLI_OK && (method = device_method_at(l, i)) != NULL; i++) {
    pass_times t;
    lab_progress("%s: %s, point %u, on the device", lab_intersect_figures[figure].id, method, point);
    code = board_passes(l, &b, method, codec != NULL, 0, &t);
    if (code == CLI_OK) y[i][point] = sweep_value(figure, s, t.pass);
  }
  board_free(&b);
  return code;
}

/* All methods over the pairs of each point of an axis, by the CPU and by the device. Exit code. */
static int sweep(const lab *l, const lab_lists *lists, int figure, const lab_codec *codec, pairs_function pairs,
    by_point y, by_point device, size_t *npairs) {
  const char *method;
  int code = CLI_OK;
  for (unsigned point = 0; point < LAB_CLASSES && code == CLI_OK; point++) {
    conjunctions s;
    library coded;
    memset(&s, 0, sizeof s);
    memset(&coded, 0, sizeof coded);
    pairs(l, lists, point, &s);
    npairs[point] = s.n;
    if (s.n && codec) code = library_make(l, codec->label, &s, &coded);
    for (size_t i = 0; s.n && code == CLI_OK && (method = method_at(l, i)) != NULL; i++) {
      lab_spread seconds;
      double bytes;
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
    by_point y) {
  const char *method, *unit = figure == GRIFFIN_FIG13 || figure == GRIFFIN_FIG8 ? "ms" : "ns";
  char series[64];
  for (size_t i = 0; (method = at(l, i)) != NULL; i++)
    for (int p = 0; p < (int)LAB_CLASSES; p++) {
      if (!y[i][p].n) continue;
      snprintf(series, sizeof series, "%s%s", method, suffix);
      lab_row_of_at(&l->report, lab_intersect_figures[figure].id, series, ldexp(1, p + up), y[i][p], unit);
    }
}

static int draw_sweep(lab *l, const lab_lists *lists, int figure, const lab_codec *codec, pairs_function pairs,
    int up) {
  static by_point y, device;
  size_t npairs[LAB_CLASSES] = {0};
  const char *id = lab_intersect_figures[figure].id;
  memset(y, 0, sizeof y);
  memset(device, 0, sizeof device);
  int code = sweep(l, lists, figure, codec, pairs, y, device, npairs);
  if (code) return code;
  sweep_rows(l, figure, up, method_at, "", y);
  sweep_rows(l, figure, up, device_method_at, "/GPU", device);
  for (int p = 0; p < (int)LAB_CLASSES; p++)
    if (npairs[p] && lab_wants(l, "pairs"))
      lab_row_at(&l->report, "pairs", id, ldexp(1, p + up), (double)npairs[p], "pairs");
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
} coded_columns[] = {{"parapfor:64,0.2", "binary"}, {"parapfor:64,0", "binary"}, {"lrc:256,0", "algorithm1"},
    {"lrcseg:256,0", "algorithm1"}, {"seglrc:256,0", "algorithm1"}, {"hslrc:256,0", "algorithm1"},
    {"hslrc:128,0", "algorithm1"}, {"lrc:256,0", "algorithm1-without-h"}}; /* the last one by the device alone */

/* Seconds of passes over all queries, by series and method, in one form: the rows of Table 3 divide by one another, so
 * they are written when all are there. */
typedef struct timed {
  char series[32], method[64];
  lab_spread seconds;
} timed;

typedef struct times {
  timed *at;
  size_t n;
  const char *form; /* the series of the core's methods: "arrays", or a codec */
  double queries;
} times;

/* A method that is measured twice has the mean of both medians, and the extremes of both, and stands where the second
 * one does. Returns 1 if it is. */
static int times_add(times *t, const char *series, const char *method, lab_spread seconds) {
  timed x;
  size_t i = 0;
  memset(&x, 0, sizeof x);
  snprintf(x.series, sizeof x.series, "%s", series);
  snprintf(x.method, sizeof x.method, "%s", method);
  x.seconds = seconds;
  while (i < t->n && (strcmp(t->at[i].series, series) != 0 || strcmp(t->at[i].method, method) != 0)) i++;
  const int twice = i < t->n;
  if (twice) {
    const lab_spread *s = &t->at[i].seconds;
    x.seconds.median = (s->median + seconds.median) / 2;
    x.seconds.least = seconds.least < s->least ? seconds.least : s->least;
    x.seconds.most = seconds.most > s->most ? seconds.most : s->most;
    x.seconds.n = seconds.n + s->n;
    memmove(&t->at[i], &t->at[i + 1], (--t->n - i) * sizeof *t->at);
  } else if ((t->n & (t->n - 1)) == 0) {
    t->at = (timed *)cli_resize(t->at, t->n ? 2 * t->n : 1, sizeof *t->at);
  }
  t->at[t->n++] = x;
  return twice;
}

/* The time of a core's method in the form, or of its fastest if that is NULL. NULL: there is none. */
static const timed *times_of_core(const times *t, const char *method) {
  const timed *best = NULL;
  for (size_t i = 0; i < t->n; i++) {
    const timed *x = &t->at[i];
    if (strcmp(x->series, t->form) != 0 || (method && strcmp(x->method, method) != 0)) continue;
    if (!best || x->seconds.median < best->seconds.median) best = x;
  }
  return best;
}

/* Rows of one time over another, whose extremes are those of both. */
static void put_ratio(lab *l, const char *figure, const timed *x, const timed *base) {
  lab_spread r;
  r.least = base->seconds.least / x->seconds.most;
  r.median = base->seconds.median / x->seconds.median;
  r.most = base->seconds.most / x->seconds.least;
  r.n = x->seconds.n;
  if (lab_wants(l, figure)) lab_row_of(&l->report, figure, x->series, x->method, r, "speedup");
}

/* Writes what times were added, and releases them. Table 3 is over the skip list as it was measured before and among
 * the other methods: its first passes by themselves have made all factors a quarter too high. */
static void times_end(lab *l, times *t) {
  const timed *skip = times_of_core(t, "skip"), *best = times_of_core(t, NULL);
  for (size_t i = 0; i < t->n; i++) {
    const timed *x = &t->at[i];
    if (lab_wants(l, "query-time"))
      lab_row_of(&l->report, "query-time", x->series, x->method, lab_scaled(x->seconds, 1e6 / t->queries), "us/query");
    if (skip) put_ratio(l, "ao-table3", x, skip);
    if (best) put_ratio(l, "ao-table3-core", x, best);
  }
  if (best)
    lab_note(&l->report, "fastest", "of a core's methods on %s: %s, %.4g us a query", t->form, best->method,
        1e6 * best->seconds.median / t->queries);
  free(t->at);
}

/* One method of a core in one form. */
static int query_method(lab *l, const char *method, const conjunctions *s, const library *coded, times *t) {
  lab_spread seconds;
  double bytes;
  lab_progress("queries: %s, %s", method, t->form);
  if (lab_stopped()) return CLI_FAIL;
  const int code = time_method(l, method, s, coded, &seconds, &bytes);
  if (code) return code;
  const int twice = times_add(t, t->form, method, seconds);
  if (!coded && !twice && lab_wants(l, "prepared"))
    lab_row(&l->report, "prepared", t->form, method, bytes / (4 * (s->postings - s->shortest)) * 100, "percent");
  return CLI_OK;
}

/* All methods of a core in one form. */
static int query_methods(lab *l, const conjunctions *s, const library *coded, times *t) {
  const char *method;
  int code = CLI_OK;
  for (size_t i = 0; code == CLI_OK && (method = method_at(l, i)) != NULL; i++)
    code = query_method(l, method, s, coded, t);
  return code;
}

/* Throughput of passes over n queries, and response time of their batches. */
static void put_table7(lab *l, const char *series, const char *name, const pass_times *t, size_t n) {
  if (lab_wants(l, "ao-table7"))
    lab_row_of(&l->report, "ao-table7", series, name, lab_inverse(t->pass, (double)n), "queries/s");
  if (lab_wants(l, "ao-table7-ms"))
    lab_row_of(&l->report, "ao-table7-ms", series, name, lab_scaled(t->batch, 1e3), "ms/batch");
}

/* Passes of a method of one core by batches of a threshold. */
static int core_passes(const lab *l, const char *method, const conjunctions *s, const library *coded,
    uint64_t threshold, pass_times *t) {
  prepared p;
  batches cut;
  double bytes;
  int code = prepare_all(method, s, coded, &p, &bytes);
  if (code) return code;
  batches_cut(s, threshold, &cut);
  code = run_passes(l, &cut, batch_on_cpu, &p, t);
  free(cut.end);
  prepared_free(&p);
  return code;
}

/* Returns whether a core has a method of this name. */
static int is_method(const char *name) {
  size_t i = 0;
  while (gpuir_intersection_name(i) && strcmp(gpuir_intersection_name(i), name) != 0) i++;
  return gpuir_intersection_name(i) != NULL;
}

/* The paper's columns by a core, each of which takes minutes where lists are long: it recovers single docIDs. */
static int query_codecs(lab *l, const conjunctions *s, times *all) {
  int code = CLI_OK;
  for (size_t i = 0; code == CLI_OK && i < sizeof coded_columns / sizeof *coded_columns; i++) {
    library coded;
    char name[64];
    pass_times t;
    if (!lab_codec_wanted(l, coded_columns[i].codec) || !lab_among(l->methods, coded_columns[i].method) ||
        !is_method(coded_columns[i].method))
      continue;
    snprintf(name, sizeof name, "%s/%s", coded_columns[i].codec, coded_columns[i].method);
    lab_progress("queries: %s", name);
    code = lab_stopped() ? CLI_FAIL : library_make(l, coded_columns[i].codec, s, &coded);
    if (code) break;
    code = core_passes(l, coded_columns[i].method, s, &coded, TABLE_THRESHOLD, &t);
    if (code == CLI_OK) {
      (void)times_add(all, "lists", name, t.pass);
      put_table7(l, "CPU", name, &t, s->n);
    }
    library_free(&coded);
  }
  return code;
}

/* The same columns on the device, as in the paper. */
static int query_device_codecs(lab *l, const conjunctions *s, times *all) {
  int code = CLI_OK;
  for (size_t i = 0; code == CLI_OK && i < sizeof coded_columns / sizeof *coded_columns; i++) {
    lab_codec codec;
    board b;
    char name[64];
    pass_times t;
    const char *method = coded_columns[i].method;
    if (!lab_codec_wanted(l, coded_columns[i].codec) || !lab_among(l->methods, method)) continue;
    snprintf(name, sizeof name, "%s/%s", coded_columns[i].codec, method);
    lab_progress("queries: %s, on the device", name);
    (void)lab_codec_find(coded_columns[i].codec, &codec, NULL);
    code = lab_stopped() ? CLI_FAIL : board_make(l, &codec, s, TABLE_THRESHOLD, &b);
    if (code) break;
    code = board_passes(l, &b, method, 1, TABLE_THRESHOLD, &t);
    if (code == CLI_OK && t.pass.n) {
      (void)times_add(all, "lists/GPU", name, t.pass);
      put_table7(l, "GPU", name, &t, s->n);
    }
    board_free(&b);
  }
  return code;
}

/* All the device's methods in one form, by batches. */
static int query_device(lab *l, const char *series, const board *b, int coded, times *all) {
  const char *method;
  int code = CLI_OK;
  for (size_t i = 0; code == CLI_OK && (method = device_method_at(l, i)) != NULL; i++) {
    pass_times t;
    lab_progress("queries: %s, %s, on the device", method, series);
    code = board_passes(l, b, method, coded, TABLE_THRESHOLD, &t);
    if (code == CLI_OK && t.pass.n) (void)times_add(all, series, method, t.pass);
  }
  return code;
}

static void put_thresholds(lab *l, const char *series, double threshold, const pass_times *t, size_t n) {
  if (lab_wants(l, "ao-fig5"))
    lab_row_of_at(&l->report, "ao-fig5", series, threshold, lab_inverse(t->pass, (double)n), "queries/s");
  if (lab_wants(l, "ao-fig6"))
    lab_row_of_at(&l->report, "ao-fig6", series, threshold, lab_scaled(t->batch, 1e3), "ms/batch");
}

/* Returns the i-th threshold; 0: the one before took all queries in one batch. */
static uint64_t threshold_at(const conjunctions *s, int i) {
  const double t = ldexp(LEAST_THRESHOLD, 2 * i);
  return i < THRESHOLDS && (!i || t / 4 < s->shortest) ? (uint64_t)t : 0;
}

/* Throughput and response time by threshold: of a method of one core, or of the device's if there is a board. */
static int thresholds(lab *l, const conjunctions *s, const board *b, const char *method) {
  char series[64];
  uint64_t threshold;
  int code = CLI_OK;
  snprintf(series, sizeof series, "%s%s", method, b ? "/GPU" : "");
  for (int i = 0; code == CLI_OK && (threshold = threshold_at(s, i)) != 0; i++) {
    pass_times t;
    lab_progress("thresholds: %s", series);
    if (lab_stopped()) return CLI_FAIL;
    code = b ? board_passes(l, b, method, 0, threshold, &t) : core_passes(l, method, s, NULL, threshold, &t);
    if (code == CLI_OK && t.pass.n) put_thresholds(l, series, (double)threshold, &t, s->n);
  }
  return code;
}

static int query_thresholds(lab *l, const conjunctions *s, const board *b) {
  static const char *const cpu[] = {"skip", "simd"};
  const char *method;
  int code = CLI_OK;
  if (!lab_wants(l, "ao-fig5") && !lab_wants(l, "ao-fig6")) return CLI_OK;
  for (size_t i = 0; i < sizeof cpu / sizeof *cpu && code == CLI_OK; i++)
    if (lab_among(l->methods, cpu[i])) code = thresholds(l, s, NULL, cpu[i]);
  for (size_t i = 0; b && code == CLI_OK && (method = device_method_at(l, i)) != NULL; i++)
    code = thresholds(l, s, b, method);
  return code;
}

/* Returns the greatest threshold of a batch. */
static uint64_t most_threshold(const conjunctions *s) {
  uint64_t most = TABLE_THRESHOLD;
  for (int i = 0; threshold_at(s, i); i++)
    if (threshold_at(s, i) > most) most = threshold_at(s, i);
  return most;
}

#define MOST_STAGES 6u /* terms of a query whose stages are told */

/* Means over the queries of 2 to 6 terms. */
static void ao_table4(lab *l, const conjunctions *s) {
  double ratio[MOST_STAGES + 1][MOST_STAGES], left[MOST_STAGES + 1][MOST_STAGES];
  uint64_t n[MOST_STAGES + 1];
  memset(ratio, 0, sizeof ratio);
  memset(left, 0, sizeof left);
  memset(n, 0, sizeof n);
  for (size_t q = 0; q < s->n; q++) {
    const conjunction *c = &s->all[q];
    if (c->k < 2 || c->k > MOST_STAGES) continue;
    n[c->k]++;
    for (unsigned stage = 1; stage < c->k; stage++) {
      ratio[c->k][stage] += (double)c->left[stage - 1] / c->list[stage]->n;
      left[c->k][stage] += c->left[stage - 1];
    }
  }
  for (int of_left = 0; of_left < 2; of_left++)
    for (unsigned k = 2; k <= MOST_STAGES; k++)
      for (unsigned stage = 1; stage < k && n[k]; stage++) {
        char x[32];
        snprintf(x, sizeof x, "%u/%u", k, stage);
        lab_row(&l->report, "ao-table4", of_left ? "left" : "R", x,
            of_left ? left[k][stage] / 1e3 / (double)n[k] : 100 * ratio[k][stage] / (double)n[k],
            of_left ? "thousand" : "percent");
      }
}

/* Returns whether one of the figures from `first` to `last` is wanted. */
static int wants_some(const lab *l, int first, int last) {
  for (int f = first; f <= last; f++)
    if (lab_wants(l, lab_intersect_figures[f].id)) return 1;
  return 0;
}

/* Returns whether a figure shows every method: Table 7 shows the paper's columns alone. */
static int wants_methods(const lab *l) {
  return lab_wants(l, "ao-table3") || lab_wants(l, "ao-table3-core") || lab_wants(l, "query-time");
}

/* The device comes first, here and below: it takes seconds where a core takes minutes, so that what is stopped has all
 * of its figures. */
static int query_arrays(lab *l, const conjunctions *s) {
  times t = {NULL, 0, "arrays", (double)s->n};
  board b;
  memset(&b, 0, sizeof b);
  int code = wants_methods(l) ? query_method(l, "skip", s, NULL, &t) : CLI_OK;
  if (code == CLI_OK && l->gpu) code = board_make(l, NULL, s, most_threshold(s), &b);
  if (code == CLI_OK && l->gpu && wants_methods(l)) code = query_device(l, "arrays/GPU", &b, 0, &t);
  if (code == CLI_OK) code = query_thresholds(l, s, l->gpu ? &b : NULL);
  board_free(&b);
  if (code == CLI_OK && (wants_methods(l) || lab_wants(l, "prepared"))) code = query_methods(l, s, NULL, &t);
  times_end(l, &t);
  return code;
}

/* The device's methods on lists in the common codec, and the paper's columns. */
static int query_device_lists(lab *l, const conjunctions *s, const lab_codec *codec, times *t) {
  char series[64];
  board b;
  int code = query_device_codecs(l, s, t);
  if (code || !wants_methods(l)) return code;
  snprintf(series, sizeof series, "%s/GPU", codec->label);
  code = board_make(l, codec, s, TABLE_THRESHOLD, &b);
  if (code == CLI_OK) code = query_device(l, series, &b, 1, t);
  board_free(&b);
  return code;
}

static int query_lists(lab *l, const conjunctions *s) {
  const int methods = wants_methods(l);
  library coded;
  lab_codec codec;
  memset(&coded, 0, sizeof coded);
  common_codec(l, &codec);
  times t = {NULL, 0, codec.label, (double)s->n};
  int code = methods ? library_make(l, codec.label, s, &coded) : CLI_OK;
  if (code) return code;
  if (methods) code = query_method(l, "skip", s, &coded, &t);
  if (code == CLI_OK && l->gpu) code = query_device_lists(l, s, &codec, &t);
  if (code == CLI_OK && methods) code = query_methods(l, s, &coded, &t);
  library_free(&coded);
  if (code == CLI_OK) code = query_codecs(l, s, &t);
  times_end(l, &t);
  return code;
}

/* Fills the figures of queries at once. */
static int query_figures(lab *l, const lab_lists *lists) {
  lab_queries queries;
  conjunctions s;
  const int arrays = wants_methods(l) || wants_some(l, PREPARED, AO_FIG6);
  const int coded = wants_methods(l) || wants_some(l, AO_TABLE7, AO_TABLE7_MS);
  memset(&s, 0, sizeof s);
  (void)lists;
  int code = lab_read_queries(l, &queries);
  for (size_t i = 0; i < queries.n; i++) {
    const lab_list *list[LAB_TERMS] = {NULL};
    for (unsigned j = 0; j < queries.query[i].k; j++) list[j] = &queries.list[queries.query[i].member[j]];
    conjunctions_add(&s, list, queries.query[i].k);
  }
  if (code == CLI_OK && lab_wants(l, "ao-table4")) ao_table4(l, &s);
  if (code == CLI_OK && s.n && arrays) code = query_arrays(l, &s);
  if (code == CLI_OK && s.n && coded) code = query_lists(l, &s);
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
      lab_row_at(&l->report, "griffin-fig10", "lists", ldexp(1, (int)c + 1), 100 * n / (double)l->nterms, "percent");
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
      if (m.seconds[c].n)
        lab_row_of_at(&l->report, "griffin-fig12", griffin_codecs[i], ldexp(1, (int)c + 1),
            lab_scaled(m.seconds[c], 1e3 / (double)(lists->first[c + 1] - lists->first[c])), "ms");
    snprintf(series, sizeof series, "%s/GPU", griffin_codecs[i]);
    for (unsigned c = GRIFFIN_CLASS; c < LAB_CLASSES; c++)
      if (m.alone[c].n)
        lab_row_of_at(&l->report, "griffin-fig12", series, ldexp(1, (int)c + 1),
            lab_scaled(m.alone[c], 1e3 / (double)(lists->first[c + 1] - lists->first[c])), "ms");
  }
  return CLI_OK;
}

/* ---- the subcommand -------------------------------------------------------------------------------------- */

int lab_intersect_methods(lab *l) {
  static int (*const draw[PAIRS])(lab *, const lab_lists *) = {ratio_arrays, ratio_lists, ding_fig6, query_figures,
      query_figures, query_figures, query_figures, query_figures, query_figures, query_figures, query_figures,
      query_figures, griffin_fig8, griffin_table1, griffin_fig10, griffin_fig12, griffin_fig13};
  lab_lists lists, more; /* `more`: of which pairs are made */
  int code = lab_draw_lists(l, l->sample, LAB_POSTINGS, &lists), queries = 0;
  if (code == CLI_OK) {
    lab_pick_queries(l, &lists);
    lab_note(&l->report, "pairs", "at most %llu a point, of up to as many lists of a class",
        (unsigned long long)l->pairs);
    code = lab_draw_lists(l, l->pairs, PAIR_POSTINGS, &more);
  } else {
    memset(&more, 0, sizeof more);
  }
  for (int f = 0; f < PAIRS && code == CLI_OK && !lab_stopped(); f++) {
    const int of_pairs = f <= DING_FIG6 || f == GRIFFIN_FIG8 || f == GRIFFIN_FIG13;
    if (!lab_wants(l, lab_intersect_figures[f].id)) continue;
    if (draw[f] != query_figures || !queries) code = draw[f](l, of_pairs ? &more : &lists);
    if (draw[f] == query_figures) queries = 1;
    lab_progress("%s", "");
    if (code == CLI_OK) lab_print(&l->report, &lab_intersect_figures[f]);
  }
  lab_print(&l->report, &lab_intersect_figures[PAIRS]);
  lab_lists_free(&lists);
  lab_lists_free(&more);
  return code;
}
