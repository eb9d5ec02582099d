/* codecs.c - gpuir lab codecs: size and speed of the codecs of docIDs, as the papers have them (Ding et al.,
 * WWW 2009; Ao et al., PVLDB 4(8), 2011; Li's thesis, 2014). Speeds include opening the list and summing up gaps; the
 * output goes to one block in L1; on a GPU it goes to memory. Sizes and speeds over all lists weigh each length class
 * by its postings.
 */
#include "../cli/cli.h"
#include "lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LONG_CLASS 12u /* "long": lists of 4096 postings and more */
#define L1_CLASS 12u /* lists of this class stay in L1 while they are decoded again and again */
#define THEORY_CLASS 10u /* lists of 1024 postings and more are held against the theory of LRC */
#define PARTITION 128u /* docIDs of one of ef's */

enum {
  SIZES,
  CYCLES,
  DING_FIG3,
  DING_TABLE1,
  DING_FIG4,
  AO_TABLE2,
  AO_FIG7,
  AO_FIG8,
  AO_TABLE5,
  QS_TABLE1,
  QS_TABLE2,
  QS_FIG6,
  QS_FIG8,
  QS_FIG10,
  QS_FIG11,
  QS_FIG12,
  QS_FIG13,
  QS_FIG14,
  FIGURES
};

const lab_figure lab_codecs_figures[] = {
    {"sizes", "Size by codec, alone and with the block directory", "codec", "bits a docID", LAB_BARS, 0, NULL},
    {"cycles", "Decoding: cycles a value, in L1, all lists, lists of 4096 postings and more", "codec", "cycles a value",
        LAB_BARS, 0, NULL},
    {"ding-fig3", "Compression by recursion levels of PForDelta (Ding 2009, Fig. 3)", "codec", "bytes a docID",
        LAB_BARS, 0, NULL},
    {"ding-table1", "Decompression speed (Ding 2009, Table 1)", "codec", "million values a second", LAB_BARS, LAB_LOG_Y,
        NULL},
    {"ding-fig4", "Decompression speed by length of list (Ding 2009, Fig. 4)", "postings of a list, at most",
        "million values a second", LAB_LINES, LAB_LOG_X | LAB_LOG_Y,
        "bp128,bp128/GPU,pfd-list,pfd-list/GPU,rice/GPU,rice,vbyte"},
    {"ao-table2", "Best compression ratio over the proportions of exceptions (Ao 2011, Table 2)", "codec",
        "compression ratio", LAB_BARS, 0, NULL},
    {"ao-fig7", "Compression ratio by proportion of exceptions (Ao 2011, Fig. 7)", "proportion of exceptions",
        "compression ratio", LAB_LINES, 0, NULL},
    {"ao-fig8", "Decompression of the queries' shortest lists (Ao 2011, Fig. 8)", "proportion of exceptions",
        "million values a second", LAB_LINES, LAB_LOG_Y,
        "newpfd/GPU,lrc:256/GPU,parapfor:64/GPU,lrc:256,newpfd,parapfor:64"},
    {"ao-table5", "LRC's bits a docID, and what theory expects of a random order (Ao 2011, Table 5)",
        "postings of a list", "bits a docID", LAB_LINES, LAB_LOG_X, NULL},
    {"qs-table1", "Compressed size (Li 2014, Table 1)", "codec", "bits a docID", LAB_BARS, 0, NULL},
    {"qs-table2", "Decompression speed (Li 2014, Table 2)", "codec", "billion values a second", LAB_BARS, LAB_LOG_Y,
        NULL},
    {"qs-fig6", "Decompression of generated lists by the bits of their lower halves (Li 2014, Fig. 6)", "b",
        "billion values a second", LAB_LINES, LAB_LOG_Y, "1048576/GPU,131072/GPU,16384/GPU,1048576,16384"},
    {"qs-fig8", "Steps of the naive method on the GPU (Li 2014, Fig. 8)", "postings of a list, at most",
        "microseconds a list", LAB_LINES, LAB_LOG_X | LAB_LOG_Y, NULL},
    {"qs-fig10", "Steps of the method by words on the GPU (Li 2014, Fig. 10)", "postings of a list, at most",
        "microseconds a list", LAB_LINES, LAB_LOG_X | LAB_LOG_Y, NULL},
    {"qs-fig11", "The methods on the GPU, and all steps in one kernel (Li 2014, Fig. 11)",
        "postings of a list, at most", "billion values a second", LAB_LINES, LAB_LOG_X | LAB_LOG_Y, NULL},
    {"qs-fig12", "Size of qs by its parameter (Li 2014, Fig. 12)", "c", "bits a docID", LAB_LINES, 0, NULL},
    {"qs-fig13", "Decompression speed of qs by its parameter (Li 2014, Fig. 13)", "c", "billion values a second",
        LAB_LINES, LAB_LOG_Y, NULL},
    {"qs-fig14", "The method by words, by threads of a block (Li 2014, Fig. 14)", "postings of a list, at most",
        "billion values a second", LAB_LINES, LAB_LOG_X | LAB_LOG_Y, NULL},
    {NULL, NULL, NULL, NULL, 0, 0, NULL}};

static const char *const proportions[] = {"0", "0.05", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6"};
static const char *const exceptional[] = {"parapfor:64", "lrc:256", "lrcseg:256", "seglrc:256", "hslrc:256"};
static const char *const cs[] = {"0.25", "0.5", "0.75", "1", "1.25", "1.5", "2", "3", "4"};
#define COUNT(a) (sizeof(a) / sizeof *(a))

/* ---- one codec over a sample of lists ------------------------------------------------------------------ */

/* All that were made: figures share them. */
typedef struct bench {
  lab *l;
  lab_lists index, random;
  lab_lists shortest; /* of the queries; its docIDs belong to `queries` */
  lab_queries queries;
  lab_measurement **made;
  size_t n;
} bench;

typedef struct batch {
  lab_coded **list;
  size_t n;
} batch;

static volatile uint32_t sink; /* what is decoded must be seen to be used */

static void decode_batch(void *arg) {
  const batch *b = (const batch *)arg;
  uint32_t sum = 0;
  for (size_t i = 0; i < b->n; i++) sum += lab_decode(b->list[i]);
  sink = sum;
}

static void batch_free(batch *b) {
  for (size_t i = 0; i < b->n; i++) lab_coded_free(b->list[i]);
  free(b->list);
}

/* Encodes the lists of a class, and checks that they decode. Exit code. */
static int batch_make(const lab *l, const lab_codec *codec, const lab_lists *lists, unsigned c, batch *b) {
  b->n = 0;
  b->list = (lab_coded **)cli_resize(NULL, lists->first[c + 1] - lists->first[c], sizeof(lab_coded *));
  for (size_t i = lists->first[c]; i < lists->first[c + 1]; i++) {
    const lab_list *list = &lists->list[i];
    int status = lab_encode(codec, list->docs, list->n, l->documents, &b->list[b->n]);
    if (status) return cli_fail(codec->label, status, NULL);
    if (!lab_decodes_to(b->list[b->n++], list->docs)) {
      cli_error("%s: a list of %u postings does not decode to what was encoded", codec->label, list->n);
      return CLI_FAIL;
    }
  }
  return CLI_OK;
}

static int measure_class(const lab *l, const lab_codec *codec, lab_measurement *m, unsigned c) {
  batch b;
  int code = batch_make(l, codec, m->lists, c, &b);
  for (size_t i = 0; i < b.n && code == CLI_OK; i++) {
    m->postings[c] += m->lists->list[m->lists->first[c] + i].n;
    m->bytes[c] += (double)lab_coded_bytes(b.list[i]);
    m->directory[c] += (double)lab_coded_directory(b.list[i]);
  }
  if (code == CLI_OK && m->timed && b.n) m->seconds[c] = lab_time(l, decode_batch, &b);
  if (code == CLI_OK && m->timed && b.n && l->gpu && !codec->host_only) {
    lab_gpu_times t;
    code = lab_gpu_decode(l, codec, &m->lists->list[m->lists->first[c]], b.n, NULL, &t);
    m->together[c] = t.together;
    m->alone[c] = t.alone;
  }
  batch_free(&b);
  return code;
}

/* Finds a codec by its label, also one of lab_codec_given. */
static int find_labelled(const char *label, lab_codec *codec, gpuir_error *err) {
  const char *comma = strchr(label, ','), *end = label + strlen(label);
  if (!comma || end[-1] != '%') return lab_codec_find(label, codec, err);
  char *name = cli_copy(label, (size_t)(comma - label));
  int status = lab_codec_given(name, (unsigned)strtoul(comma + 1, NULL, 10), codec);
  free(name);
  return status;
}

int lab_measure(const lab *l, const char *label, const lab_lists *lists, int timed, lab_measurement *m) {
  lab_codec codec;
  gpuir_error err;
  memset(&err, 0, sizeof err);
  memset(m, 0, sizeof *m);
  snprintf(m->label, sizeof m->label, "%s", label);
  m->lists = lists;
  m->timed = timed;
  int status = find_labelled(label, &codec, &err), code = CLI_OK;
  if (status) return cli_fail(label, status, &err);
  for (unsigned c = 0; c < LAB_CLASSES && code == CLI_OK; c++)
    code = lab_stopped() ? CLI_FAIL : measure_class(l, &codec, m, c);
  return code;
}

/* The same, kept for other figures. NULL after a message, or when the user stopped the command. */
static const lab_measurement *measure(bench *b, const char *label, const lab_lists *lists, int timed) {
  for (size_t i = 0; i < b->n; i++)
    if (!strcmp(b->made[i]->label, label) && b->made[i]->lists == lists && b->made[i]->timed >= timed)
      return b->made[i];
  lab_progress("%s%s", label, lists == &b->random ? ", random order" : "");
  b->made = (lab_measurement **)cli_resize(b->made, b->n + 1, sizeof *b->made);
  b->made[b->n++] = (lab_measurement *)cli_resize(NULL, 1, sizeof **b->made);
  return lab_measure(b->l, label, lists, timed, b->made[b->n - 1]) ? NULL : b->made[b->n - 1];
}

/* Sums over the classes from `least` on, weighed. */
static double weigh(const lab_measurement *m, const double *values, unsigned least) {
  double sum = 0;
  for (unsigned c = least; c < LAB_CLASSES; c++) sum += m->lists->weight[c] * values[c];
  return sum;
}

double lab_bits(const lab_measurement *m, int directory) {
  double bytes = weigh(m, m->bytes, 0) + (directory ? weigh(m, m->directory, 0) : 0);
  return 8 * bytes / weigh(m, m->postings, 0);
}

/* Of docIDs of 32 bits to all that is stored, as Ao et al. count. */
static double ratio(const lab_measurement *m) { return 32 / lab_bits(m, 1); }

/* Seconds of the classes from `least` on, weighed. */
static lab_spread weigh_times(const lab_measurement *m, const lab_spread *seconds, unsigned least) {
  lab_spread sum = {0, 0, 0, 0};
  for (unsigned c = least; c < LAB_CLASSES; c++)
    if (seconds[c].n) lab_spread_add(&sum, &seconds[c], m->lists->weight[c]);
  return sum;
}

/* Values a second. */
static lab_spread speed_of(const lab_measurement *m, const lab_spread *seconds, unsigned least) {
  return lab_inverse(weigh_times(m, seconds, least), weigh(m, m->postings, least));
}

static lab_spread speed(const lab_measurement *m, unsigned least) { return speed_of(m, m->seconds, least); }

/* ---- all codecs --------------------------------------------------------------------------------------------- */

static void row(bench *b, int figure, const char *series, const char *x, double y, const char *unit) {
  lab_row(&b->l->report, lab_codecs_figures[figure].id, series, x, y, unit);
}

static void row_of(bench *b, int figure, const char *series, const char *x, lab_spread y, const char *unit) {
  lab_row_of(&b->l->report, lab_codecs_figures[figure].id, series, x, y, unit);
}

/* Bits of a list in the best code of ef's partitions in which the size of one depends only on n and U, the distance of
 * its last docID from the first possible one: if U is known, the others are any n - 1 of U numbers. */
static double list_bound(const lab_list *list) {
  double bits = 0;
  for (uint32_t at = 0; at < list->n; at += PARTITION) {
    uint32_t n = list->n - at < PARTITION ? list->n - at : PARTITION;
    uint32_t u = list->docs[at + n - 1] - (at ? list->docs[at - 1] + 1 : 0);
    for (uint32_t k = 1; k < n; k++) bits += log2((double)(u - (k - 1)) / k);
  }
  return bits;
}

/* The same of all lists, a docID. */
static double bound(const lab_lists *lists) {
  double bits = 0, postings = 0;
  for (unsigned c = 0; c < LAB_CLASSES; c++)
    for (size_t i = lists->first[c]; i < lists->first[c + 1]; i++) {
      bits += lists->weight[c] * list_bound(&lists->list[i]);
      postings += lists->weight[c] * lists->list[i].n;
    }
  return bits / postings;
}

/* Sums what the bits, ranks and peaks of dense lists take beside all lists of the index, in bits a docID, by the border
 * N of `gpuir index --dense N`: a list of 128 documents or more, at least one of N, has 76 bytes for 512 documents. */
static int dense_aid(bench *b) {
  static const unsigned borders[] = {12, 16, 20, 32};
  const lab *l = b->l;
  gpuir_index_info all;
  uint64_t lists[COUNT(borders)] = {0}, postings = 0;
  char x[16];
  gpuir_index_get_info(l->index, &all);
  for (uint64_t id = 0; id < all.terms; id++) {
    gpuir_term_info info;
    int status = gpuir_term_get_info(l->index, id, &info);
    if (status) return cli_fail(l->path, status, NULL);
    postings += info.df;
    for (size_t i = 0; i < COUNT(borders); i++)
      lists[i] += info.df > 127 && (uint64_t)info.df * borders[i] >= l->documents;
  }
  for (size_t i = 0; i < COUNT(borders); i++) {
    const double bytes = (double)lists[i] * (4 + 76 * ceil((double)l->documents / 512));
    snprintf(x, sizeof x, "1/%u", borders[i]);
    row(b, SIZES, "dense", x, 8 * bytes / (double)postings, "bits/docID");
  }
  return CLI_OK;
}

static int sizes(bench *b) {
  lab_codec codec;
  for (int directory = 0; directory < 2; directory++)
    for (size_t i = 0; lab_codec_at(b->l, i, &codec); i++) {
      const lab_measurement *m = measure(b, codec.label, &b->index, 1);
      if (!m) return CLI_FAIL;
      row(b, SIZES, directory ? "with-directory" : "codec", codec.label, lab_bits(m, directory), "bits/docID");
    }
  if (lab_codec_wanted(b->l, "ef")) row(b, SIZES, "bound", "ef", bound(&b->index), "bits/docID");
  return dense_aid(b);
}

/* Returns the longest class up to L1_CLASS that has lists. */
static unsigned l1_class(const lab_lists *lists) {
  unsigned c = L1_CLASS;
  while (c && lists->first[c] == lists->first[c + 1]) c--;
  return c;
}

/* Seconds a value of lists that are decoded one by one, each many times. */
static int l1_seconds(bench *b, const lab_codec *codec, lab_spread *seconds) {
  unsigned c = l1_class(&b->index);
  lab_spread sum = {0, 0, 0, 0};
  double postings = 0;
  batch all;
  int code = batch_make(b->l, codec, &b->index, c, &all);
  for (size_t i = 0; i < all.n && code == CLI_OK; i++) {
    batch one = {&all.list[i], 1};
    lab_spread t = lab_time(b->l, decode_batch, &one);
    lab_spread_add(&sum, &t, 1);
    postings += b->index.list[b->index.first[c] + i].n;
  }
  batch_free(&all);
  *seconds = lab_scaled(sum, 1 / postings);
  return code;
}

static int cycles(bench *b) {
  lab_codec codec;
  const double hertz = b->l->hertz;
  for (size_t i = 0; lab_codec_at(b->l, i, &codec); i++) {
    lab_spread seconds;
    if (l1_seconds(b, &codec, &seconds)) return CLI_FAIL;
    row_of(b, CYCLES, "L1", codec.label, lab_scaled(seconds, hertz), "cycles/value");
  }
  for (int all = 0; all < 2; all++)
    for (size_t i = 0; lab_codec_at(b->l, i, &codec); i++) {
      const lab_measurement *m = measure(b, codec.label, &b->index, 1);
      if (!m) return CLI_FAIL;
      lab_spread seconds = weigh_times(m, m->seconds, all ? 0 : LONG_CLASS);
      if (!seconds.n) continue; /* an index without long lists */
      row_of(b, CYCLES, all ? "all" : "long", codec.label,
          lab_scaled(seconds, hertz / weigh(m, m->postings, all ? 0 : LONG_CLASS)), "cycles/value");
    }
  return CLI_OK;
}

/* ---- Ding et al. ------------------------------------------------------------------------------------------------ */

static int ding_fig3(bench *b) {
  static const char *const labels[] = {"rice", "pfd", "pfd-list:0", "pfd-list:1", "pfd-list:2", "pfd-list:3",
      "pfd-list:4"};
  for (size_t i = 0; i < COUNT(labels); i++) {
    if (!lab_codec_wanted(b->l, labels[i])) continue;
    const lab_measurement *m = measure(b, labels[i], &b->index, 1);
    if (!m) return CLI_FAIL;
    row(b, DING_FIG3, "size", labels[i], lab_bits(m, 0) / 8, "bytes/docID");
  }
  return CLI_OK;
}

/* Rows of the device: all lists in one run, and list by list. */
static void device_rows(bench *b, int figure, const lab_measurement *m, double unit, const char *name) {
  if (!b->l->gpu) return;
  row_of(b, figure, "GPU", m->label, lab_scaled(speed_of(m, m->together, 0), 1 / unit), name);
  row_of(b, figure, "GPU/list", m->label, lab_scaled(speed_of(m, m->alone, 0), 1 / unit), name);
}

static int ding_table1(bench *b) {
  lab_codec codec;
  for (size_t i = 0; lab_codec_at(b->l, i, &codec); i++) {
    const lab_measurement *m = measure(b, codec.label, &b->index, 1);
    if (!m) return CLI_FAIL;
    row_of(b, DING_TABLE1, "CPU", codec.label, lab_scaled(speed(m, 0), 1e-6), "Mvalues/s");
    device_rows(b, DING_TABLE1, m, 1e6, "Mvalues/s");
  }
  for (size_t i = 0; lab_codec_at(b->l, i, &codec); i++) {
    lab_spread seconds;
    if (l1_seconds(b, &codec, &seconds)) return CLI_FAIL;
    row_of(b, DING_TABLE1, "CPU/L1", codec.label, lab_inverse(seconds, 1e-6), "Mvalues/s");
  }
  return CLI_OK;
}

/* By class: what a figure calls it, and values a second in that unit. */
static void class_rows(bench *b, int figure, const char *series, const double *values, const lab_spread *seconds,
    double unit, const char *name) {
  for (unsigned c = 1; c < LAB_CLASSES; c++)
    if (seconds[c].n)
      lab_row_of_at(&b->l->report, lab_codecs_figures[figure].id, series, ldexp(1, (int)c + 1),
          lab_inverse(seconds[c], values[c] / unit), name);
}

/* Seconds of each class' lists on the device, one in a run, by a way of gpuir_cuda_lab_decode; of its steps too. */
static int by_way(bench *b, const char *label, const char *how, double *values, lab_spread *seconds,
    lab_spread (*steps)[LAB_CLASSES]) {
  lab_codec codec;
  int code = CLI_OK;
  (void)lab_codec_find(label, &codec, NULL);
  lab_progress("%s, %s", label, how);
  for (unsigned c = 0; c < LAB_CLASSES && code == CLI_OK; c++) {
    const lab_list *list = &b->index.list[b->index.first[c]];
    const size_t n = b->index.first[c + 1] - b->index.first[c];
    lab_gpu_times t;
    values[c] = 0;
    memset(&seconds[c], 0, sizeof seconds[c]);
    if (!n) continue;
    code = lab_stopped() ? CLI_FAIL : lab_gpu_decode(b->l, &codec, list, n, how, &t);
    if (code) break;
    for (size_t i = 0; i < n; i++) values[c] += list[i].n;
    seconds[c] = t.alone;
    for (int s = 0; steps && s < 3; s++) steps[s][c] = t.steps[s];
  }
  return code;
}

static int ding_fig4(bench *b) {
  lab_codec codec;
  char series[64];
  for (size_t i = 0; lab_codec_at(b->l, i, &codec); i++) {
    const lab_measurement *m = measure(b, codec.label, &b->index, 1);
    if (!m) return CLI_FAIL;
    class_rows(b, DING_FIG4, codec.label, m->postings, m->seconds, 1e6, "Mvalues/s");
  }
  for (size_t i = 0; b->l->gpu && lab_codec_at(b->l, i, &codec); i++) {
    const lab_measurement *m = measure(b, codec.label, &b->index, 1);
    if (!m) return CLI_FAIL;
    snprintf(series, sizeof series, "%s/GPU", codec.label);
    class_rows(b, DING_FIG4, series, m->postings, m->alone, 1e6, "Mvalues/s");
  }
  if (b->l->gpu && lab_codec_wanted(b->l, "pfd-list")) { /* the paper's other line: without the prefix sums */
    double values[LAB_CLASSES];
    lab_spread seconds[LAB_CLASSES];
    if (by_way(b, "pfd-list", "gaps", values, seconds, NULL)) return CLI_FAIL;
    class_rows(b, DING_FIG4, "pfd-list/GPU/gaps", values, seconds, 1e6, "Mvalues/s");
  }
  return CLI_OK;
}

/* ---- Ao et al. ------------------------------------------------------------------------------------------------- */

/* Codec i of those with exceptions, at proportion p, over some lists. */
static const lab_measurement *with_exceptions(bench *b, size_t i, size_t p, const lab_lists *lists, int timed) {
  char label[48];
  snprintf(label, sizeof label, "%s,%s", exceptional[i], proportions[p]);
  return measure(b, label, lists, timed);
}

/* pfd and newpfd; the library's choose the proportion themselves, so here they are given it. */
static const char *const given[] = {"pfd", "newpfd"};

static const lab_measurement *with_given(bench *b, size_t i, size_t p, const lab_lists *lists, int timed) {
  char label[48];
  snprintf(label, sizeof label, "%s,%.0f%%", given[i], 100 * strtod(proportions[p], NULL));
  return measure(b, label, lists, timed);
}

static int ao_fig7(bench *b) {
  for (size_t i = 0; i < COUNT(given); i++)
    for (size_t p = 0; p < COUNT(proportions) && lab_codec_wanted(b->l, given[i]); p++) {
      const lab_measurement *m = with_given(b, i, p, &b->index, 0);
      if (!m) return CLI_FAIL;
      row(b, AO_FIG7, given[i], proportions[p], ratio(m), "ratio");
    }
  for (size_t i = 0; i < COUNT(exceptional); i++)
    for (size_t p = 0; p < COUNT(proportions) && lab_codec_wanted(b->l, exceptional[i]); p++) {
      const lab_measurement *m = with_exceptions(b, i, p, &b->index, 0);
      if (!m) return CLI_FAIL;
      row(b, AO_FIG7, exceptional[i], proportions[p], ratio(m), "ratio");
    }
  return CLI_OK;
}

/* Codecs that choose their exceptions themselves stand for the others' best proportion. */
static int ao_table2_column(bench *b, const char *series, const lab_lists *lists) {
  static const char *const plain[] = {"pfd", "newpfd", "optpfd"};
  for (size_t i = 0; i < COUNT(plain); i++) {
    if (!lab_codec_wanted(b->l, plain[i])) continue;
    const lab_measurement *m = measure(b, plain[i], lists, 0);
    if (!m) return CLI_FAIL;
    row(b, AO_TABLE2, series, plain[i], ratio(m), "ratio");
  }
  for (size_t i = 0; i < COUNT(exceptional); i++) {
    double best = 0;
    if (!lab_codec_wanted(b->l, exceptional[i])) continue;
    for (size_t p = 0; p < COUNT(proportions); p++) {
      const lab_measurement *m = with_exceptions(b, i, p, lists, 0);
      if (!m) return CLI_FAIL;
      if (ratio(m) > best) best = ratio(m);
    }
    row(b, AO_TABLE2, series, exceptional[i], best, "ratio");
  }
  return CLI_OK;
}

static int ao_table2(bench *b) {
  int code = ao_table2_column(b, "index", &b->index);
  return code ? code : ao_table2_column(b, "random", &b->random);
}

static int compare_lists(const void *x, const void *y) {
  const lab_list *a = (const lab_list *)x, *b = (const lab_list *)y;
  return a->n < b->n ? -1 : a->n > b->n;
}

/* The shortest list of each query, as often as it is one. */
static int find_shortest(bench *b) {
  lab_lists *s = &b->shortest;
  if (b->queries.n) return CLI_OK;
  int code = lab_read_queries(b->l, &b->queries);
  s->n = b->queries.n;
  s->list = (lab_list *)cli_resize(NULL, s->n, sizeof *s->list);
  for (size_t q = 0; q < s->n; q++) s->list[q] = b->queries.list[b->queries.query[q].member[0]];
  if (s->n) qsort(s->list, s->n, sizeof *s->list, compare_lists);
  size_t i = 0;
  for (unsigned c = 0; c <= LAB_CLASSES; c++) {
    while (i < s->n && lab_class(s->list[i].n) < c) i++;
    s->first[c] = i;
    if (c < LAB_CLASSES) s->weight[c] = 1;
  }
  return code;
}

static int ao_fig8(bench *b) {
  char series[64];
  if (find_shortest(b)) return CLI_FAIL;
  for (int gpu = 0; gpu <= b->l->gpu; gpu++)
    for (size_t i = 0; i < COUNT(given) + COUNT(exceptional) && b->shortest.n; i++) {
      const char *codec = i < COUNT(given) ? given[i] : exceptional[i - COUNT(given)];
      for (size_t p = 0; p < COUNT(proportions) && lab_codec_wanted(b->l, codec); p++) {
        const lab_measurement *m = i >= COUNT(given) ? with_exceptions(b, i - COUNT(given), p, &b->shortest, 1)
            : gpu ? measure(b, codec, &b->shortest, 1) /* a level line: the device has the library's alone */
                  : with_given(b, i, p, &b->shortest, 1);
        if (!m) return CLI_FAIL;
        snprintf(series, sizeof series, "%s%s", codec, gpu ? "/GPU" : "");
        row_of(b, AO_FIG8, series, proportions[p], lab_scaled(speed_of(m, gpu ? m->together : m->seconds, 0), 1e-6),
            "Mvalues/s");
      }
    }
  return CLI_OK;
}

/* Bits of the least deviation t from the line with P(|X - E X| >= t) < 1e-5 at the middle of a list of n docIDs drawn
 * from m, by the 22nd moment (Ao et al., Appendix E). The variance is their equation (6); the moment is that of a
 * normal distribution, 21!! times the variance to the 11th, which for m = 2^24 gives all figures of their Table 5. */
static double theory(double n, double m) {
  const double i = floor((n + 1) / 2), moment = 13749310575.0 /* 21!! */;
  const double variance = i * (1 + m) * (1 - i + n) * (m - n) / ((1 + n) * (1 + n) * (2 + n));
  return ceil(log2(sqrt(variance) * pow(moment / 1e-5, 1.0 / 22)) + 1);
}

static int ao_table5_column(bench *b, const char *series, const lab_lists *lists) {
  const lab_measurement *m = measure(b, "lrc", lists, 0);
  if (!m) return CLI_FAIL;
  for (unsigned c = THEORY_CLASS; c < LAB_CLASSES; c++) {
    double count = (double)(lists->first[c + 1] - lists->first[c]);
    if (count > 0)
      lab_row_at(&b->l->report, "ao-table5", series, floor(m->postings[c] / count), 8 * m->bytes[c] / m->postings[c],
          "bits/docID");
  }
  return CLI_OK;
}

static int ao_table5(bench *b) {
  if (!lab_codec_wanted(b->l, "lrc")) return CLI_OK;
  for (unsigned c = THEORY_CLASS; c < LAB_CLASSES; c++) {
    double n = 0, count = (double)(b->index.first[c + 1] - b->index.first[c]);
    for (size_t i = b->index.first[c]; i < b->index.first[c + 1]; i++) n += b->index.list[i].n;
    if (count > 0)
      lab_row_at(&b->l->report, "ao-table5", "theory", floor(n / count),
          theory(floor(n / count), (double)b->l->documents), "bits/docID");
  }
  int code = ao_table5_column(b, "lrc/random", &b->random);
  return code ? code : ao_table5_column(b, "lrc/index", &b->index);
}

/* ---- Li --------------------------------------------------------------------------------------------------- */

static int qs_table1(bench *b) {
  static const char *const labels[] = {"rice", "pfd", "pfd-list", "qs"};
  for (size_t i = 0; i < COUNT(labels); i++) {
    if (!lab_codec_wanted(b->l, labels[i])) continue;
    const lab_measurement *m = measure(b, labels[i], &b->index, 1);
    if (!m) return CLI_FAIL;
    row(b, QS_TABLE1, "size", labels[i], lab_bits(m, 0), "bits/docID");
  }
  return CLI_OK;
}

static int qs_table2(bench *b) {
  static const char *const labels[] = {"rice", "pfd", "pfd-list", "qs"};
  for (size_t i = 0; i < COUNT(labels); i++) {
    if (!lab_codec_wanted(b->l, labels[i])) continue;
    const lab_measurement *m = measure(b, labels[i], &b->index, 1);
    if (!m) return CLI_FAIL;
    row_of(b, QS_TABLE2, "CPU", labels[i], lab_scaled(speed(m, 0), 1e-9), "Gvalues/s");
    device_rows(b, QS_TABLE2, m, 1e9, "Gvalues/s");
  }
  return CLI_OK;
}

/* A list of n docIDs of which qs codes b bits each and the rest in unary: the gaps average 1.5 times 2^b. */
static void generate_list(unsigned b, uint32_t n, uint64_t seed, lab_list *list) {
  uint32_t doc = 0;
  list->term = 0;
  list->n = n;
  list->docs = (uint32_t *)cli_resize(NULL, n, sizeof *list->docs);
  for (uint32_t i = 0; i < n; i++) {
    doc += 1 + (uint32_t)((cli_random(&seed) >> 32) * (((uint64_t)3 << b) - 1) >> 32);
    list->docs[i] = doc;
  }
}

#define MOST_LOWER 10u /* bits: lists of 2^20 docIDs stay below 2^32 */

static int qs_fig6(bench *b) {
  static const uint32_t lengths[] = {1 << 14, 1 << 17, 1 << 20};
  lab_spread speed[2][COUNT(lengths)][MOST_LOWER + 1];
  lab_codec codec;
  int code = CLI_OK;
  if (!lab_codec_wanted(b->l, "qs")) return CLI_OK;
  memset(speed, 0, sizeof speed);
  (void)lab_codec_find("qs", &codec, NULL);
  for (size_t i = 0; i < COUNT(lengths); i++)
    for (unsigned bits = 0; bits <= MOST_LOWER && code == CLI_OK; bits++) {
      lab one = *b->l; /* its collection ends with the list */
      lab_list list;
      lab_coded *coded;
      batch alone = {&coded, 1};
      lab_gpu_times t;
      lab_progress("qs: %u docIDs, b %u", lengths[i], bits);
      generate_list(bits, lengths[i], b->l->seed + bits, &list);
      one.documents = (uint64_t)list.docs[list.n - 1] + 1;
      int status = lab_encode(&codec, list.docs, list.n, one.documents, &coded);
      if (status) code = cli_fail("qs", status, NULL);
      if (code == CLI_OK) speed[0][i][bits] = lab_inverse(lab_time(&one, decode_batch, &alone), list.n * 1e-9);
      if (code == CLI_OK && one.gpu) {
        code = lab_stopped() ? CLI_FAIL : lab_gpu_decode(&one, &codec, &list, 1, NULL, &t);
        if (code == CLI_OK) speed[1][i][bits] = lab_inverse(t.alone, list.n * 1e-9);
      }
      lab_coded_free(coded);
      free(list.docs);
    }
  for (int gpu = 0; gpu < 2; gpu++)
    for (size_t i = 0; i < COUNT(lengths); i++)
      for (unsigned bits = 0; bits <= MOST_LOWER; bits++) {
        char series[32];
        snprintf(series, sizeof series, "%u%s", lengths[i], gpu ? "/GPU" : "");
        if (speed[gpu][i][bits].n)
          lab_row_of_at(&b->l->report, "qs-fig6", series, bits, speed[gpu][i][bits], "Gvalues/s");
      }
  return code;
}

/* Microseconds a list of each step of one of the thesis' ways. */
static int qs_steps(bench *b, int figure, const char *how) {
  static const char *const names[] = {"count", "prefix-sum", "gather", "combine", "all"};
  double values[LAB_CLASSES];
  lab_spread seconds[LAB_CLASSES], upto[3][LAB_CLASSES];
  if (!b->l->gpu || !lab_codec_wanted(b->l, "qs")) return CLI_OK;
  if (by_way(b, "qs", how, values, seconds, upto)) return CLI_FAIL;
  for (int s = 0; s < 5; s++)
    for (unsigned c = 1; c < LAB_CLASSES; c++) {
      const double n = (double)(b->index.first[c + 1] - b->index.first[c]);
      const double end = s < 3 ? upto[s][c].median : seconds[c].median, before = s && s < 4 ? upto[s - 1][c].median : 0;
      if (n > 0)
        lab_row_at(&b->l->report, lab_codecs_figures[figure].id, names[s], ldexp(1, (int)c + 1),
            end > before ? (end - before) * 1e6 / n : 0, "us/list");
    }
  return CLI_OK;
}

static int qs_fig8(bench *b) { return qs_steps(b, QS_FIG8, "naive"); }
static int qs_fig10(bench *b) { return qs_steps(b, QS_FIG10, "steps"); }

/* Speed of ways of the thesis by length of list. */
static int qs_ways(bench *b, int figure, const char *const *ways, const char *const *names, size_t n) {
  double values[LAB_CLASSES];
  lab_spread seconds[LAB_CLASSES];
  for (size_t i = 0; i < n && b->l->gpu && lab_codec_wanted(b->l, "qs"); i++) {
    if (by_way(b, "qs", ways[i], values, seconds, NULL)) return CLI_FAIL;
    class_rows(b, figure, names[i], values, seconds, 1e9, "Gvalues/s");
  }
  return CLI_OK;
}

static int qs_fig11(bench *b) {
  static const char *const ways[] = {"naive", "steps"};
  if (qs_ways(b, QS_FIG11, ways, ways, COUNT(ways))) return CLI_FAIL;
  if (!b->l->gpu || !lab_codec_wanted(b->l, "qs")) return CLI_OK;
  const lab_measurement *m = measure(b, "qs", &b->index, 1);
  if (!m) return CLI_FAIL;
  class_rows(b, QS_FIG11, "one-kernel", m->postings, m->alone, 1e9, "Gvalues/s");
  return CLI_OK;
}

static int qs_fig14(bench *b) {
  static const char *const ways[] = {"steps", "steps-512", "steps-1024"}, *const names[] = {"256", "512", "1024"};
  return qs_ways(b, QS_FIG14, ways, names, COUNT(ways));
}

static int qs_by_c(bench *b, int figure) {
  for (size_t i = 0; i < COUNT(cs) && lab_codec_wanted(b->l, "qs"); i++) {
    char label[48];
    snprintf(label, sizeof label, "qs:%s", cs[i]);
    const lab_measurement *m = measure(b, label, &b->index, 1);
    if (!m) return CLI_FAIL;
    if (figure == QS_FIG12) row(b, figure, "qs", cs[i], lab_bits(m, 0), "bits/docID");
    else row_of(b, figure, "qs", cs[i], lab_scaled(speed(m, 0), 1e-9), "Gvalues/s");
  }
  for (size_t i = 0; i < COUNT(cs) && figure == QS_FIG13 && b->l->gpu && lab_codec_wanted(b->l, "qs"); i++) {
    char label[48];
    snprintf(label, sizeof label, "qs:%s", cs[i]);
    const lab_measurement *m = measure(b, label, &b->index, 1);
    if (!m) return CLI_FAIL;
    row_of(b, figure, "qs/GPU", cs[i], lab_scaled(speed_of(m, m->together, 0), 1e-9), "Gvalues/s");
  }
  return CLI_OK;
}

static int qs_fig12(bench *b) { return qs_by_c(b, QS_FIG12); }
static int qs_fig13(bench *b) { return qs_by_c(b, QS_FIG13); }

/* ---- the subcommand ---------------------------------------------------------------------------------------- */

int lab_codecs(lab *l) {
  static int (*const draw[FIGURES])(bench *) = {sizes, cycles, ding_fig3, ding_table1, ding_fig4, ao_table2, ao_fig7,
      ao_fig8, ao_table5, qs_table1, qs_table2, qs_fig6, qs_fig8, qs_fig10, qs_fig11, qs_fig12, qs_fig13, qs_fig14};
  bench b;
  memset(&b, 0, sizeof b);
  b.l = l;
  int code = lab_draw_lists(l, l->sample, LAB_POSTINGS, &b.index);
  if (code == CLI_OK) lab_pick_queries(l, &b.index);
  if (code == CLI_OK) lab_shuffle(l, &b.index, &b.random);
  for (int f = 0; f < FIGURES && code == CLI_OK && !lab_stopped(); f++) {
    if (!lab_wants(l, lab_codecs_figures[f].id)) continue;
    code = draw[f](&b);
    lab_progress("%s", "");
    if (code == CLI_OK) lab_print(&l->report, &lab_codecs_figures[f]);
  }
  for (size_t i = 0; i < b.n; i++) free(b.made[i]);
  free(b.made);
  free(b.shortest.list);
  lab_queries_free(&b.queries);
  lab_lists_free(&b.random);
  lab_lists_free(&b.index);
  return code;
}
