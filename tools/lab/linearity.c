/* linearity.c - gpuir lab linearity: how nearly docIDs grow linearly with their index, how far a regression line
 * narrows a search, and how evenly docIDs fall into hash buckets (Ao et al., PVLDB 4(8), 2011, sections 4.3 and 4.4,
 * Figures 1 and 3, Table 1).
 */
#include "../cli/cli.h"
#include "lab.h"

#include <stdlib.h>
#include <string.h>

#define SEGMENT 256u /* docIDs a local line has, as in SegLRC */
#define LEAST_POSTINGS 128u /* shorter lists are one block, which is not searched by a line */
#define SCATTER_LISTS 4
#define SCATTER_POINTS 100u
#define BUCKET_CLASS 12u /* buckets are counted of lists of 4096 to 8191 postings */
#define BUCKET_DIGITS 5u /* leading binary digits of a docID that name its bucket */
#define BUCKET_STEP 16u /* sizes of buckets are counted in steps of so many docIDs */
#define BUCKET_STEPS (8192u / BUCKET_STEP)

const lab_figure lab_linearity_figures[] = {
    {"ao-fig1", "DocIDs by their place in the list (Ao 2011, Fig. 1)", "place in the list, of its length",
        "docID, of the number of documents", LAB_POINTS, 0, "index/*"},
    {"ao-table1", "Contraction ratio and coefficient of determination (Ao 2011, Table 1)", "postings of a list",
        "ratio; R squared", LAB_BARS, 0,
        "index/global/ratio,random/global/ratio,index/local/ratio,index/global/R2,random/global/R2"},
    {"ao-fig3", "Sizes of the hash buckets of lists of 4096 to 8191 postings (Ao 2011, Fig. 3)",
        "docIDs of a bucket, at most", "percent of the buckets that are not empty", LAB_LINES, 0, NULL},
    {NULL, NULL, NULL, NULL, 0, 0, NULL}};

/* How a line fits a list: the width of the safe range over the list's length, 1 at most, and R squared. */
typedef struct fit {
  double ratio, r2;
} fit;

/* The least-squares line through (i, docs[i]), and by its inverse the greatest deviations to either side. Of a list in
 * few clusters these exceed its length: then all of it is searched. */
static fit fit_line(const uint32_t *docs, uint32_t n) {
  const double middle = ((double)n - 1) / 2;
  double mean = 0, sxx = 0, sxy = 0, syy = 0, left = 0, right = 0;
  fit f = {0, 1};
  for (uint32_t i = 0; i < n; i++) mean += docs[i];
  mean /= n;
  for (uint32_t i = 0; i < n; i++) {
    double x = i - middle, y = docs[i] - mean;
    sxx += x * x;
    sxy += x * y;
    syy += y * y;
  }
  if (n < 2) return f;
  for (uint32_t i = 0; i < n; i++) {
    double off = (docs[i] - mean) * sxx / sxy - (i - middle);
    if (off > left) left = off;
    if (-off > right) right = -off;
  }
  f.ratio = left + right < n ? (left + right) / n : 1;
  f.r2 = sxy * sxy / (sxx * syy);
  return f;
}

/* A line for each segment. The range of a docID is then that of its segment, still over the whole list's length. */
static fit fit_segments(const uint32_t *docs, uint32_t n) {
  fit sum = {0, 0};
  for (uint32_t at = 0; at < n; at += SEGMENT) {
    uint32_t count = n - at < SEGMENT ? n - at : SEGMENT;
    fit f = fit_line(docs + at, count);
    sum.ratio += f.ratio * count / n * ((double)count / n);
    sum.r2 += f.r2 * count / n;
  }
  return sum;
}

/* ---- Figure 1 -------------------------------------------------------------------------------------------- */

static void scatter(lab *l, const char *order, const lab_list *list) {
  char series[64];
  uint32_t points = list->n < SCATTER_POINTS ? list->n : SCATTER_POINTS;
  snprintf(series, sizeof series, "%s/%u", order, list->n);
  for (uint32_t p = 0; p < points; p++) {
    uint32_t i = (uint32_t)((uint64_t)p * list->n / points);
    lab_row_at(&l->report, "ao-fig1", series, (double)i / list->n, (double)list->docs[i] / (double)l->documents,
        "share");
  }
}

/* One list of each of the longest classes, in both orders. */
static void draw_scatter(lab *l, const lab_lists *lists, const lab_lists *random) {
  unsigned drawn = 0;
  for (unsigned c = LAB_CLASSES; c-- > 0 && drawn < SCATTER_LISTS;) {
    if (lists->first[c] == lists->first[c + 1]) continue;
    scatter(l, "index", &lists->list[lists->first[c]]);
    scatter(l, "random", &random->list[lists->first[c]]);
    drawn++;
  }
}

/* ---- Table 1 ----------------------------------------------------------------------------------------------- */

typedef struct range {
  const char *name;
  uint32_t from, to; /* postings in [from, to) */
} range;

/* The paper's classes, the first of them also in parts. */
static const range ranges[] = {{"[128,1K)", LEAST_POSTINGS, 1000}, {"[1K,10K)", 1000, 10000},
    {"[10K,100K)", 10000, 100000}, {"[128,100K)", LEAST_POSTINGS, 100000}, {"[100K,200K)", 100000, 200000},
    {"[200K,400K)", 200000, 400000}, {"[400K,600K)", 400000, 600000}, {"[600K,800K)", 600000, 800000},
    {"[800K,1M)", 800000, 1000000}, {"[1M,-)", 1000000, UINT32_MAX}};
#define RANGES (sizeof ranges / sizeof *ranges)

/* Means over the lists of each range. */
static void add_column(lab *l, const char *name, const lab_lists *lists, fit (*how)(const uint32_t *, uint32_t)) {
  fit sums[RANGES];
  double weights[RANGES];
  char series[64];
  memset(sums, 0, sizeof sums);
  memset(weights, 0, sizeof weights);
  for (size_t i = 0; i < lists->n && !lab_stopped(); i++) {
    const lab_list *list = &lists->list[i];
    double weight = lists->lists[lab_class(list->n)];
    if (list->n < LEAST_POSTINGS) continue;
    fit f = how(list->docs, list->n);
    for (size_t r = 0; r < RANGES; r++)
      if (list->n >= ranges[r].from && list->n < ranges[r].to) {
        sums[r].ratio += weight * f.ratio;
        sums[r].r2 += weight * f.r2;
        weights[r] += weight;
      }
  }
  for (int r2 = 0; r2 < 2; r2++)
    for (size_t r = 0; r < RANGES; r++) {
      if (weights[r] <= 0) continue;
      snprintf(series, sizeof series, "%s/%s", name, r2 ? "R2" : "ratio");
      lab_row(&l->report, "ao-table1", series, ranges[r].name, (r2 ? sums[r].r2 : sums[r].ratio) / weights[r], "share");
    }
}

/* ---- Figure 3 ---------------------------------------------------------------------------------------------- */

/* Counts the buckets of a list by size. `shift` leaves the leading digits of a docID. */
static void count_buckets(const lab_list *list, unsigned shift, double *counts, double *all) {
  for (uint32_t i = 0, first = 0; i < list->n; first = i) {
    while (i < list->n && list->docs[i] >> shift == list->docs[first] >> shift) i++;
    counts[(i - first - 1) / BUCKET_STEP]++;
    ++*all;
  }
}

static void draw_buckets(lab *l, const char *series, const lab_lists *lists) {
  double counts[BUCKET_STEPS], all = 0;
  unsigned digits = lab_class((uint32_t)(l->documents - 1)) + 1, last = 0;
  memset(counts, 0, sizeof counts);
  for (size_t i = lists->first[BUCKET_CLASS]; i < lists->first[BUCKET_CLASS + 1]; i++)
    count_buckets(&lists->list[i], digits > BUCKET_DIGITS ? digits - BUCKET_DIGITS : 0, counts, &all);
  for (unsigned s = 0; s < BUCKET_STEPS; s++)
    if (counts[s] > 0) last = s;
  for (unsigned s = 0; s <= last && all > 0; s++)
    lab_row_at(&l->report, "ao-fig3", series, (s + 1.0) * BUCKET_STEP, 100 * counts[s] / all, "percent");
}

int lab_linearity(lab *l) {
  lab_lists lists, random;
  if (lab_draw_lists(l, l->sample, LAB_POSTINGS, &lists)) return CLI_FAIL;
  lab_shuffle(l, &lists, &random);
  if (lab_wants(l, "ao-fig1")) draw_scatter(l, &lists, &random);
  if (lab_wants(l, "ao-table1")) {
    lab_progress("regression lines");
    add_column(l, "index/global", &lists, fit_line);
    add_column(l, "index/local", &lists, fit_segments);
    add_column(l, "random/global", &random, fit_line);
    add_column(l, "random/local", &random, fit_segments);
    lab_progress("%s", "");
    lab_print(&l->report, &lab_linearity_figures[1]);
  }
  if (lab_wants(l, "ao-fig3")) {
    draw_buckets(l, "index", &lists);
    draw_buckets(l, "random", &random);
    lab_print(&l->report, &lab_linearity_figures[2]);
  }
  lab_lists_free(&lists);
  lab_lists_free(&random);
  return CLI_OK;
}
