/* lab.h - what the files of `gpuir lab`, and other programs that measure, share.
 *
 * cli_lab.c            options, the sample of lists and queries, the dispatch
 * cli_lab_report.c     rows, tables, TSV files and plots
 * cli_lab_core.c       one list in one codec, one prepared intersection: the library's private parts
 * cli_lab_codecs.c     size and speed of the codecs
 * cli_lab_intersect.c  speed of the intersection methods
 * cli_lab_linearity.c  how well a line fits the lists
 */
#ifndef GPUIR_LAB_H
#define GPUIR_LAB_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)
#define LAB_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define LAB_PRINTF(f, a)
#endif

/* ---- reports (cli_lab_report.c) ---------------------------------------------------------------- */

enum { LAB_BARS, LAB_LINES, LAB_POINTS }; /* of a plot: bars stand over texts, the others over numbers */
enum { LAB_LOG_X = 1, LAB_LOG_Y = 2 };    /* logarithmic axes */

/* A table or figure that is redrawn. */
typedef struct lab_figure {
  const char *id;    /* in its rows, in the names of its plot, and for --figures */
  const char *title; /* what it shows, and what it redraws */
  const char *x, *y; /* what the axes show, y with the unit */
  int shape, axes;   /* LAB_BARS ..., LAB_LOG_ ... */
} lab_figure;

typedef struct lab_item {
  char *figure, *series, *x, *unit;
  double y;
} lab_item;

/* Rows in memory, until lab_report_close writes them. */
typedef struct lab_report {
  char *dir, *name; /* DIR/NAME.tsv */
  char **notes;     /* "key: value" */
  size_t nnotes;
  lab_item *rows;
  size_t n, cap;
} lab_report;

/* Makes the folder. Returns an exit code, after a message. */
int lab_report_open(lab_report *r, const char *dir, const char *name);
/* A fact about all rows, such as machine, corpus, order, command: a comment of the TSV, and a line of the captions. */
void lab_note(lab_report *r, const char *key, const char *fmt, ...) LAB_PRINTF(3, 4);
/* Machine (model, processors, SIMD level) and version of the library, as notes. */
void lab_note_machine(lab_report *r);
/* A row of DIR/NAME.tsv: figure, series, x, y, unit. Rows of one figure and series follow each other. Names of series
 * have no blanks. */
void lab_row(lab_report *r, const char *figure, const char *series, const char *x, double y,
             const char *unit);
/* The same with a number for x. */
void lab_row_at(lab_report *r, const char *figure, const char *series, double x, double y, const char *unit);
/* The rows of a figure as a table on standard output: a line for each x, a column for each series. */
void lab_print(const lab_report *r, const lab_figure *figure);
/* Writes the TSV, for each figure that has rows the script ID.gp, and by gnuplot, if there is one, ID.svg. Returns an exit
 * code, after a message. */
int lab_report_write(const lab_report *r, const lab_figure *figures, size_t nfigures);
void lab_report_free(lab_report *r);

#endif
