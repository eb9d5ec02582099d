/* lab.h - what the files of `gpuir lab`, and other programs that measure, share.
 *
 * lab.c        options, the sample of lists and queries, the dispatch
 * report.c     rows, tables and TSV files
 * plot.c       charts as SVG; see plot.h
 * core.c       one list in one codec, one prepared intersection: the library's private parts
 * codecs.c     size and speed of the codecs
 * intersect.c  speed of the intersection methods
 * search.c     whole queries, and the ranking of their candidates
 * device.c     the device, and lists decoded on it
 * linearity.c  how well a line fits the lists
 */
#ifndef GPUIR_LAB_H
#define GPUIR_LAB_H

#include "plot.h"

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)
#define LAB_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define LAB_PRINTF(f, a)
#endif

/* ---- reports (report.c) ---------------------------------------------------------------- */

/* Values of one thing that was measured n times. */
typedef struct lab_spread {
  double least, median, most;
  uint64_t n;
} lab_spread;

/* Sorts values[0..n), n >= 1. */
lab_spread lab_spread_of(double *values, size_t n);
/* Returns the spread of `by` times a value, by >= 0. */
lab_spread lab_scaled(lab_spread s, double by);
/* Returns the spread of amount / value, such as a rate from seconds. */
lab_spread lab_inverse(lab_spread s, double amount);
/* Adds `by` times another thing, by >= 0: least to least, median to median, most to most. */
void lab_spread_add(lab_spread *sum, const lab_spread *s, double by);

/* Returns the mean of values[0..n), n >= 1, as `median`, and as `least` and `most` the ends of its 95 % bootstrap
 * interval (Efron 1979, by percentiles): where 95 of 100 means of n values lie that are drawn from these with
 * replacement. The draws are the same each time. */
lab_spread lab_bootstrap(const double *values, size_t n);

/* The same of sum(a) / sum(b), whose values belong together in pairs: the pairs are drawn. */
lab_spread lab_bootstrap_ratio(const double *a, const double *b, size_t n);

typedef struct lab_item {
  char *figure, *series, *x, *unit;
  lab_spread y;
} lab_item;

/* Rows in memory, until lab_report_close writes them. */
typedef struct lab_report {
  char *dir, *name; /* DIR/NAME.tsv */
  char **notes; /* "key: value" */
  size_t nnotes;
  int json; /* lab_print prints nothing, and lab_report_write prints the report as JSON */
  lab_item *rows;
  size_t n, cap;
} lab_report;

/* Makes the folder. Returns an exit code, after a message. */
int lab_report_open(lab_report *r, const char *dir, const char *name);
/* A fact about all rows, such as machine, corpus, order, command: a comment of the TSV, and a line of the captions. */
void lab_note(lab_report *r, const char *key, const char *fmt, ...) LAB_PRINTF(3, 4);
/* Machine (model, processors, SIMD level) and version of the library, as notes. */
void lab_note_machine(lab_report *r);
/* A row of DIR/NAME.tsv: figure, series, x, y, unit, min, max, n. This one is of a value that is counted or that was
 * measured once: min and max are y, n is 1. Rows of a series that is a line follow each other. Names of series have no
 * blanks. */
void lab_row(lab_report *r, const char *figure, const char *series, const char *x, double y, const char *unit);
/* The same with a number for x. */
void lab_row_at(lab_report *r, const char *figure, const char *series, double x, double y, const char *unit);
/* A row of a value that was measured several times: y is the median. */
void lab_row_of(lab_report *r, const char *figure, const char *series, const char *x, lab_spread y, const char *unit);
void lab_row_of_at(lab_report *r, const char *figure, const char *series, double x, lab_spread y, const char *unit);
/* The rows of a figure as a table on standard output: a line for each x, a column for each series. */
void lab_print(const lab_report *r, const lab_figure *figure);
/* Writes the TSV, with a description of each figure that has rows, and draws these as ID.svg. With `json` it prints a
 * line with the same notes and rows: an object of name, notes and rows. Returns an exit code, after a message. */
int lab_report_write(const lab_report *r, const lab_figure *figures, size_t nfigures);
void lab_report_free(lab_report *r);

struct gpuir_error;
struct gpuir_index;
struct gpuir_query;
struct gpuir_hit;
struct gpuir_cuda_lab;

/* ---- one list in one codec, one intersection (core.c) ------------------------------------- */

/* Functions that return an int return a gpuir status. */

typedef struct lab_codec { /* a codec with its parameter */
  char label[48]; /* NAME[:PARAMETER] */
  const void *codec;
  uint64_t param;
  int host_only; /* the device does not know it */
} lab_codec;

/* Returns the name of the i-th codec of docIDs, NULL behind the last one. */
const char *lab_codec_name(size_t i);
/* Takes NAME or NAME:PARAMETER, as `gpuir index --codec` does, but not auto. */
int lab_codec_find(const char *spec, lab_codec *codec, struct gpuir_error *err);
/* Returns the codec `pfd` or `newpfd` where at most so many percent of a block are exceptions; its label is pfd,20%. */
int lab_codec_given(const char *name, unsigned percent, lab_codec *codec);

typedef struct lab_coded lab_coded;
/* Encodes docs[0..n), n >= 1, of a collection of so many documents. */
int lab_encode(const lab_codec *codec, const uint32_t *docs, uint32_t n, uint64_t documents, lab_coded **coded);
uint64_t lab_coded_bytes(const lab_coded *c); /* of the codec itself */
uint64_t lab_coded_directory(const lab_coded *c); /* last docID, offset and width of each block; 0 for one block */
/* Opens the list and decodes it, block by block to one place; returns something that depends on each block. */
uint32_t lab_decode(lab_coded *c);
/* Returns whether it decodes to docs[0..n). */
int lab_decodes_to(lab_coded *c, const uint32_t *docs);
void lab_coded_free(lab_coded *c);

/* The name of the i-th intersection method is gpuir_intersection_name(i). */
typedef struct lab_intersection lab_intersection;
/* Prepares the intersection of k sorted arrays, or of k coded lists, which stay the caller's. */
int lab_intersect_arrays(const char *method, const uint32_t *const *docs, const uint32_t *n, unsigned k,
    lab_intersection **x);
int lab_intersect_coded(const char *method, lab_coded *const *lists, unsigned k, lab_intersection **x);
/* The search alone: how many docIDs are in all lists. */
uint32_t lab_intersect(lab_intersection *x);
/* Returns the sum of the docIDs that the last search found. */
uint64_t lab_intersection_sum(const lab_intersection *x);
/* These docIDs. */
const uint32_t *lab_intersection_found(const lab_intersection *x);
/* Bytes of what was prepared. */
uint64_t lab_intersection_bytes(const lab_intersection *x);
void lab_intersection_free(lab_intersection *x);

/* The k best of n candidates, by the engine's heap. Their number. */
size_t lab_best(const struct gpuir_hit *candidates, size_t n, size_t k, struct gpuir_hit *hits);
/* The same, collected in parts. A hit's key is greater the better it is. */
typedef struct lab_top lab_top;
uint64_t lab_key(uint32_t score, uint32_t docid);
lab_top *lab_top_open(size_t k); /* k >= 1; NULL: no memory */
/* Offers n keys, and returns the key that a further one has to exceed. */
uint64_t lab_top_offer(lab_top *top, const uint64_t *keys, size_t n);
/* Writes the hits, the best one first, if that is not NULL, and closes. Their number. */
size_t lab_top_close(lab_top *top, struct gpuir_hit *hits);

/* ---- an index's lists, block by block, for any number of threads (core.c) ---------------- */

typedef struct lab_shelf lab_shelf; /* an index of one segment, which stays the caller's */
int lab_shelf_open(const struct gpuir_index *index, lab_shelf **shelf, struct gpuir_error *err);
void lab_shelf_close(lab_shelf *shelf);

#define LAB_AND_TERMS 16u
#define LAB_BLOCK 128u /* postings of a block */
#define LAB_BLOCK_ROOM 160u /* items that decoding a block may write */

/* The lists of a conjunction, from short to long. */
typedef struct lab_and {
  unsigned n;
  int empty; /* a word has no list here */
  struct {
    uint64_t term;
    uint32_t df, nblocks;
    const uint32_t *last; /* [block] last docID; NULL: one block */
  } list[LAB_AND_TERMS];
  struct lab_and_private *own;
} lab_and;

/* Opens the lists of a query's words in `part`, with the weights that the query has, which may be one of another index.
 * UNSUPPORTED: it has an operator, too many words, or a list in a codec that needs scratch memory. */
int lab_and_open(const struct gpuir_query *q, const lab_shelf *part, lab_and **out);
void lab_and_close(lab_and *x);
/* Decodes a block of a list to docs[0..LAB_BLOCK_ROOM); returns how many docIDs it has. */
uint32_t lab_and_block(const lab_and *x, unsigned list, uint32_t block, uint32_t *docs);
/* The first block, from `from` on, whose last docID is `doc` or behind it; the number of blocks if there is none. */
uint32_t lab_and_find_block(const lab_and *x, unsigned list, uint32_t from, uint32_t doc);
/* Returns the score of a document that is posting where[i] of list i. */
uint32_t lab_and_score(const lab_and *x, uint32_t doc, const uint32_t *where);

/* ---- the laboratory (lab.c) --------------------------------------------------------------------- */

struct gpuir_index;

#define LAB_MOST_REPEATS 1000
#define LAB_CLASSES 32u /* class c: lists of 2^c to 2^(c+1) - 1 postings */

typedef struct lab_list {
  uint64_t term;
  uint32_t n;
  uint32_t *docs;
} lab_list;

/* A sample of lists, from short to long by class. */
typedef struct lab_lists {
  lab_list *list;
  size_t n;
  size_t first[LAB_CLASSES + 1]; /* of each class */
  double weight[LAB_CLASSES]; /* postings of all candidates of the class for each one in the sample */
  double lists[LAB_CLASSES]; /* lists, likewise */
} lab_lists;

#define LAB_TERMS LAB_AND_TERMS /* of a query, at most */

/* A query: its distinct terms. */
typedef struct lab_query {
  uint64_t term[LAB_TERMS];
  unsigned k;
} lab_query;

/* Queries, and the lists that they are made of, each once; member[j] are places in `list`, the shortest list first. */
typedef struct lab_queries {
  lab_list *list;
  size_t nlists;
  struct lab_members {
    size_t member[LAB_TERMS];
    unsigned k;
  } * query;
  size_t n;
} lab_queries;

typedef struct lab {
  const char *path; /* of the index */
  struct gpuir_index *index;
  uint64_t documents;
  lab_report report;
  uint64_t sample, pairs, want, seed, repeat; /* want: queries */
  int from_queries; /* QUERIES were given */
  const char *codecs, *methods, *figures; /* names parted by commas; NULL: all */
  uint64_t *terms; /* candidates: the queries' terms, or all, of two postings or more */
  uint32_t *dfs;
  size_t nterms;
  lab_query *queries; /* of two terms or more, all of them known and in two documents or more */
  size_t nqueries;
  double hertz; /* the processor's clock, measured */
  int backend; /* CLI_BACKEND_ */
  int gpu; /* there is a device, which is measured too */
  int json; /* reports are printed as JSON */
  int cold; /* its cache is written over before each run */
  int lock; /* a file that is locked while the device is measured, or -1 */
} lab;

/* Returns whether a name is among those parted by commas, or these are NULL. */
int lab_among(const char *names, const char *name);
/* Returns whether a figure is wanted. */
int lab_wants(const lab *l, const char *figure);
/* The i-th codec that is measured: of --codecs, or all. 0, when there is no more. */
int lab_codec_at(const lab *l, size_t i, lab_codec *codec);
/* Returns whether the codec of this label is among them, whatever the parameters. */
int lab_codec_wanted(const lab *l, const char *label);
/* What is being done, on a terminal. */
void lab_progress(const char *fmt, ...) LAB_PRINTF(1, 2);
/* Not 0: the user stopped the command. */
int lab_stopped(void);
/* Up to `sample` lists of each length class among the candidates, drawn by the seed; no more of a class once they have
 * so many postings. Exit code. */
int lab_draw_lists(const lab *l, uint64_t sample, uint64_t postings, lab_lists *lists);
#define LAB_POSTINGS ((uint64_t)1 << 21) /* of a class' sample, where each list stands for itself */
/* Leaves `want` of the queries, drawn by the seed, each at most once; without a file of queries it makes sets of 2 to 5
 * of `lists`, or fewer if these are so few. All figures then take l->queries in this order. */
void lab_pick_queries(lab *l, const lab_lists *lists);
/* Reads the lists of l->queries. Exit code. */
int lab_read_queries(const lab *l, lab_queries *queries);
void lab_queries_free(lab_queries *queries);
/* The same lists after a random renumbering of the documents, which the seed determines. */
void lab_shuffle(const lab *l, const lab_lists *lists, lab_lists *out);
void lab_lists_free(lab_lists *lists);
unsigned lab_class(uint32_t n);
/* Processor seconds of work(arg), measured `repeat` times after one run that warms up. */
lab_spread lab_time(const lab *l, void (*work)(void *), void *arg);
/* The same of work that was done once already. */
lab_spread lab_time_warm(const lab *l, void (*work)(void *), void *arg);
/* Seconds by the clock, for work that waits for a device. */
lab_spread lab_time_waiting(const lab *l, void (*work)(void *), void *arg);
/* Seconds of the processor until now. */
double lab_processor_seconds(void);

/* ---- the GPU (device.c) ------------------------------------------------------------------------- */

/* Finds the device that --backend asks for, and notes it, or that there is none. Exit code. */
int lab_gpu_find(lab *l);
/* Several processes that measure take turns on the device, if GPUIR_LAB_LOCK names a file for that. */
void lab_gpu_take(const lab *l);
void lab_gpu_give(const lab *l);

typedef struct lab_gpu_size { /* as in gpuir_cuda_lab_desc */
  uint32_t copies;
  uint64_t room;
  size_t queries, terms;
  int cold;
} lab_gpu_size;

/* Lays lists out on the device, coded as well (NULL: as whatever codec). Exit code. */
int lab_gpu_open(const lab_codec *codec, const lab_list *const *list, size_t n, const lab_gpu_size *size,
    struct gpuir_cuda_lab **gpu);

/* Seconds of decoding each of some lists once. */
typedef struct lab_gpu_times {
  lab_spread together; /* with so many copies of them in one run that the device is busy */
  lab_spread alone; /* one list in a run */
  lab_spread steps[3]; /* alone, up to the counts, the prefix sums and the gather of the thesis' ways */
} lab_gpu_times;

/* Decodes lists on the device, and compares. how: NULL, or as in gpuir_cuda_lab_decode, and then only alone. Exit code.
 */
int lab_gpu_decode(const lab *l, const lab_codec *codec, const lab_list *lists, size_t n, const char *how,
    lab_gpu_times *t);

/* ---- codecs over a sample of lists (codecs.c) ------------------------------------------------ */

/* A codec over a sample of lists, by class. */
typedef struct lab_measurement {
  char label[48];
  const lab_lists *lists;
  int timed;
  double postings[LAB_CLASSES], bytes[LAB_CLASSES], directory[LAB_CLASSES];
  lab_spread seconds[LAB_CLASSES]; /* of decoding each list of the class once; n is 0 unless timed */
  lab_spread together[LAB_CLASSES],
      alone[LAB_CLASSES]; /* on the device, see lab_gpu_times; n is 0 unless timed there */
} lab_measurement;

/* Encodes the lists, checks that they decode, and if `timed` measures that, on the device too. The label is that of a
 * codec, also one of lab_codec_given. Exit code. */
int lab_measure(const lab *l, const char *label, const lab_lists *lists, int timed, lab_measurement *m);
/* Mean bits a docID over all candidates, with the directory or without. */
double lab_bits(const lab_measurement *m, int directory);

/* What a subcommand adds: its figures, and the work, which prints tables and adds rows. Both return an exit code. */
extern const lab_figure lab_codecs_figures[], lab_intersect_figures[], lab_search_figures[],
    lab_linearity_figures[]; /* end with id NULL */
int lab_codecs(lab *l);
int lab_intersect_methods(lab *l);
int lab_search(lab *l);
int lab_linearity(lab *l);

#endif
