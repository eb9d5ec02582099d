/* plot.h - charts as SVG files, drawn from the rows of TSV files.
 *
 * plot.c       a chart in memory to SVG text
 * plot_tsv.c   TSV files to charts, and `gpuir lab plot`
 * page.c       charts and the papers' claims as one HTML file; see claims.h
 */
#ifndef GPUIR_LAB_PLOT_H
#define GPUIR_LAB_PLOT_H

#include <stddef.h>

enum { LAB_BARS, LAB_LINES, LAB_POINTS }; /* bars stand at texts, lines and points over numbers */
enum { LAB_LOG_X = 1, LAB_LOG_Y = 2 }; /* logarithmic axes; y is the axis of the measured values */

/* A table or figure that is redrawn. */
typedef struct lab_figure {
  const char *id; /* in its rows, in the names of its plot, and for --figures */
  const char *title; /* what it shows, and what it redraws */
  const char *x, *y; /* what the axes show, y with the unit */
  int shape, axes; /* LAB_BARS ..., LAB_LOG_ ... */
  const char *shown; /* series in colour: names parted by commas, each with `*` at its end or not; NULL: the first */
} lab_figure;

#define PLOT_SHOWN 5 /* series in colour, at most */

typedef struct plot_point {
  double x; /* of lines and points */
  size_t place; /* of bars: in plot_chart.place */
  double y, lo, hi;
} plot_point;

/* A series named `paper`, or `paper/...`, holds values that a paper printed. */
typedef struct plot_series {
  const char *name;
  plot_point *point;
  size_t n, cap;
} plot_series;

typedef struct plot_chart {
  lab_figure figure;
  plot_series *series; /* each with a point at least */
  size_t nseries;
  const char **place; /* texts at which bars stand, from the top down */
  size_t nplaces;
  const char *caption; /* small, below the plot */
  int inside; /* of a page that has plot_style: the document has no colours and fonts of its own */
} plot_chart;

struct cli_buf;

/* Appends the chart as one SVG document. The same chart gives the same bytes. Every number in the chart is finite, and
 * positive where its axis is logarithmic. */
void plot_svg(const plot_chart *chart, struct cli_buf *out);
/* The style of the charts inside a page: rules of CSS. */
extern const char plot_style[];
/* Writes text[0..n) as text of XML or HTML; what these cannot hold becomes U+FFFD or a blank. */
void plot_escaped(struct cli_buf *out, const char *text, size_t n);
void plot_chart_free(plot_chart *chart);

/* `known` is asked for the description of a figure that its TSV file does not describe; it may return NULL. */
typedef const lab_figure *plot_known(const char *id);

/* A TSV file in memory. */
typedef struct plot_table plot_table;
/* Reads a file. Returns an exit code, after a message. */
int plot_table_open(const char *path, plot_table **opened);
void plot_table_close(plot_table *table);
/* Returns the i-th line of its comments that is no `# plot` line, without #; NULL behind the last one. */
const char *plot_table_comment(const plot_table *table, size_t i);
/* Takes a chart whose texts are the table's. It may keep what is allocated, and then clears *chart. Exit code. */
typedef int plot_sink(void *user, plot_chart *chart);
/* Gives the charts of the figures parted by commas, NULL: of all, to the sink. If `optional`, a file of other columns
 * need not describe any. Returns an exit code, after a message. */
int plot_table_charts(const plot_table *table, const char *figures, plot_known *known, int optional, plot_sink *sink,
    void *user);

/* Draws each figure of a TSV file to DIR/FIGURE.svg; of those parted by commas in `figures`, unless that is NULL.
 * Returns an exit code, after a message. */
int plot_file(const char *path, const char *dir, const char *figures, plot_known *known);

/* gpuir lab plot: argv are its arguments. Returns an exit code. */
int plot_command(int argc, char **argv, plot_known *known);

#endif
