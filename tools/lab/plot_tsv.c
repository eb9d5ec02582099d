/* plot_tsv.c - charts from TSV files, and `gpuir lab plot`.
 *
 * A file has comments, which begin with #, a line with the names of the columns, and rows. The columns of the
 * laboratory are figure, series, x, y, unit, and min, max, n behind them or not: each figure is a chart. A comment
 *
 *   # plot<TAB>ID<TAB>bars|lines|points<TAB>[log-x][,][log-y]<TAB>TITLE<TAB>X<TAB>Y<TAB>SHOWN[<TAB>x<TAB>y<TAB>series]
 *
 * describes the figure ID: title, names of the axes, the series in colour (see plot.h). With the names of three columns
 * at its end it makes a chart of all rows of a file whose columns are others. All other comments become the caption.
 */
#include "plot.h"

#include "../cli/cli.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MOST_BYTES ((size_t)64 << 20) /* of a file */
#define CAPTION_ROOM 400u /* bytes: three lines */
#define MOST_COLUMNS 64
#define MOST_SERIES 200 /* of a chart */
#define MOST_PLACES 500
#define MOST_FIGURES 1000 /* of a file */

typedef struct cell_row {
  char **cell; /* as many as there are columns */
  unsigned long line;
} cell_row;

typedef struct spec { /* of a `# plot` line */
  lab_figure figure;
  const char *column[3]; /* x, y, series; NULL: those of the laboratory */
  unsigned long line;
} spec;

struct plot_table {
  const char *path;
  char *text; /* the whole file, cut into cells */
  char *columns[MOST_COLUMNS];
  size_t ncolumns;
  cell_row *row;
  size_t nrows;
  spec *spec;
  size_t nspecs;
  cli_buf caption;
  const char **comment;
  size_t ncomments;
};

typedef struct plot_table table;

/* ---- reading ------------------------------------------------------------------------------------------- */

/* Reports what is wrong with a line. Returns CLI_FAIL. */
static int wrong(const table *t, unsigned long line, const char *fmt, ...) CLI_PRINTF(3, 4);

static int wrong(const table *t, unsigned long line, const char *fmt, ...) {
  char text[256];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  for (char *p = text; *p; p++)
    if ((unsigned char)*p < 32 || *p == 127) *p = '?';
  cli_error("%s: line %lu: %s", t->path, line, text);
  return CLI_FAIL;
}

static int read_whole(const char *path, char **text, size_t *len) {
  FILE *f = fopen(path, "rb");
  cli_buf b = {NULL, 0, 0};
  char part[65536];
  size_t n;
  if (!f) {
    cli_error("%s: %s", path, strerror(errno));
    return CLI_FAIL;
  }
  while (b.n <= MOST_BYTES && (n = fread(part, 1, sizeof part, f)) > 0) cli_buf_add(&b, part, n);
  int bad = ferror(f), cause = errno;
  fclose(f);
  if (bad || b.n > MOST_BYTES) {
    cli_error("%s: %s", path, bad ? strerror(cause) : "the file is larger than 64 MB");
    cli_buf_free(&b);
    return CLI_FAIL;
  }
  *len = b.n;
  cli_buf_char(&b, 0);
  *text = b.p;
  return CLI_OK;
}

/* Cuts a line at its tabs. Returns the number of cells, most + 1 if there are more than `most`. */
static size_t cut(char *line, char **cell, size_t most) {
  size_t n = 0;
  for (;;) {
    if (n == most) return most + 1;
    cell[n++] = line;
    line = strchr(line, '\t');
    if (!line) return n;
    *line++ = 0;
  }
}

/* Returns 1 if the text can name a file: letters, digits, `-`, `_`, `.` and `+`, with no dot first. */
static int is_id(const char *text) {
  size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.+");
  return n && n <= 100 && !text[n] && text[0] != '.';
}

static int read_shape(const char *text) {
  return !strcmp(text, "bars")  ? LAB_BARS
      : !strcmp(text, "lines")  ? LAB_LINES
      : !strcmp(text, "points") ? LAB_POINTS
                                : -1;
}

static int read_axes(const char *text) {
  static const char *const names[] = {"", "log-x", "log-y", "log-x,log-y"};
  for (int i = 0; i < 4; i++)
    if (!strcmp(text, names[i])) return i;
  return -1;
}

static int take_spec(table *t, char *text, unsigned long line) {
  char *cell[11];
  spec s;
  size_t n = cut(text, cell, 11);
  memset(&s, 0, sizeof s);
  if (n != 8 && n != 11) return wrong(t, line, "a '# plot' line has 8 or 11 fields");
  if (!is_id(cell[1])) return wrong(t, line, "'%.60s' cannot name a file", cell[1]);
  s.figure.id = cell[1];
  s.figure.shape = read_shape(cell[2]);
  s.figure.axes = read_axes(cell[3]);
  if (s.figure.shape < 0) return wrong(t, line, "'%.60s' is none of bars, lines, points", cell[2]);
  if (s.figure.axes < 0) return wrong(t, line, "'%.60s' is none of log-x, log-y and log-x,log-y", cell[3]);
  s.figure.title = cell[4];
  s.figure.x = cell[5];
  s.figure.y = cell[6];
  s.figure.shown = *cell[7] ? cell[7] : NULL;
  s.line = line;
  for (size_t i = 8; i < n; i++) s.column[i - 8] = cell[i];
  if (t->nspecs == MOST_FIGURES) return wrong(t, line, "more than %d figures", MOST_FIGURES);
  t->spec = (spec *)cli_resize(t->spec, t->nspecs + 1, sizeof *t->spec);
  t->spec[t->nspecs++] = s;
  return CLI_OK;
}

/* Returns 1 if a comment begins with a key, such as `machine:`, and does not continue the sentence before it. */
static int has_key(const char *text) {
  size_t n = strcspn(text, ":\t.");
  return n < 24 && (text[n] == ':' || text[n] == '\t');
}

/* Returns 1 for what a caption tells: which lists, where, and of which code. The rest stands in the file, which it
 * names: commands of a log that joins several runs would be longer than its chart. */
static int is_told(const table *t, const char *text) {
  static const char *const keys[] = {"corpus:", "machine:", "version:", "device:"};
  int told = !has_key(text) && !t->ncomments;
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) told |= !strncmp(text, keys[i], strlen(keys[i]));
  for (size_t i = 0; i < t->ncomments; i++) told = told && strcmp(t->comment[i], text) != 0;
  return told && strlen(text) < CAPTION_ROOM;
}

static int take_comment(table *t, char *text, unsigned long line) {
  if (!strncmp(text, "# plot\t", 7)) return take_spec(t, text, line);
  text += 1 + strspn(text + 1, " ");
  if (is_told(t, text) && t->caption.n + strlen(text) < CAPTION_ROOM) {
    cli_buf_text(&t->caption, text);
    cli_buf_text(&t->caption, " \xc2\xb7 ");
  }
  t->comment = (const char **)cli_resize(t->comment, t->ncomments + 1, sizeof *t->comment);
  t->comment[t->ncomments++] = text;
  return CLI_OK;
}

static int take_row(table *t, char *text, unsigned long line) {
  char *cell[MOST_COLUMNS];
  size_t n = cut(text, cell, MOST_COLUMNS);
  if (!t->ncolumns) {
    if (n > MOST_COLUMNS) return wrong(t, line, "more than %d columns", MOST_COLUMNS);
    memcpy(t->columns, cell, n * sizeof *cell);
    t->ncolumns = n;
    return CLI_OK;
  }
  if (n != t->ncolumns)
    return wrong(t, line, "%zu columns, not %zu as in the first line", n > MOST_COLUMNS ? MOST_COLUMNS + 1 : n,
        t->ncolumns);
  if ((t->nrows & (t->nrows - 1)) == 0)
    t->row = (cell_row *)cli_resize(t->row, t->nrows ? t->nrows * 2 : 1, sizeof *t->row);
  cell_row *r = &t->row[t->nrows++];
  r->line = line;
  r->cell = (char **)cli_resize(NULL, n, sizeof *r->cell);
  memcpy(r->cell, cell, n * sizeof *cell);
  return CLI_OK;
}

static int read_table(const char *path, table *t) {
  size_t len;
  unsigned long line = 0;
  memset(t, 0, sizeof *t);
  t->path = path;
  int code = read_whole(path, &t->text, &len);
  for (char *p = t->text, *end = p + (p ? len : 0); code == CLI_OK && p < end;) {
    char *stop = (char *)memchr(p, '\n', (size_t)(end - p));
    if (!stop) stop = end;
    line++;
    *stop = 0;
    if (strlen(p) != (size_t)(stop - p)) code = wrong(t, line, "a NUL byte");
    else code = *p == '#' ? take_comment(t, p, line) : take_row(t, p, line);
    p = stop + 1;
  }
  if (code == CLI_OK && !t->nrows) {
    cli_error("%s: no rows", path);
    code = CLI_FAIL;
  }
  cli_buf_text(&t->caption, "commands and more: ");
  cli_buf_text(&t->caption, strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
  cli_buf_char(&t->caption, 0);
  return code;
}

static void free_table(table *t) {
  for (size_t i = 0; i < t->nrows; i++) free(t->row[i].cell);
  free(t->row);
  free(t->spec);
  free((void *)t->comment);
  free(t->text);
  cli_buf_free(&t->caption);
}

/* ---- a chart of some rows ------------------------------------------------------------------------------ */

enum { X, Y, SERIES, LEAST, MOST, FIGURE, COLUMNS }; /* what a chart takes from a row */

typedef struct picker {
  size_t at[COLUMNS]; /* places of the columns; t->ncolumns: there is none */
  const char *figure; /* of the rows, NULL: all */
} picker;

static size_t column(const table *t, const char *name) {
  size_t i = 0;
  while (i < t->ncolumns && strcmp(t->columns[i], name) != 0) i++;
  return i;
}

static int read_number(const char *text, double *v) {
  char *end;
  if (!*text || strspn(text, "0123456789+-.eE") != strlen(text)) return 0;
  *v = strtod(text, &end);
  return !*end && isfinite(*v);
}

/* Reads one number of a row. It must be finite, and positive if its axis is logarithmic. */
static int row_number(const table *t, const cell_row *r, size_t at, int log, double *v) {
  const char *text = r->cell[at];
  if (!read_number(text, v)) return wrong(t, r->line, "%.60s '%.60s' is no number", t->columns[at], text);
  if (log && *v <= 0)
    return wrong(t, r->line, "%.60s %.60s is not positive, as its logarithmic axis needs", t->columns[at], text);
  return CLI_OK;
}

static int find_series(const table *t, const cell_row *r, const char *name, plot_chart *c, plot_series **found) {
  size_t i = 0;
  while (i < c->nseries && strcmp(c->series[i].name, name) != 0) i++;
  if (i == MOST_SERIES) return wrong(t, r->line, "more than %d series in a chart", MOST_SERIES);
  if (i == c->nseries) {
    c->series = (plot_series *)cli_resize(c->series, c->nseries + 1, sizeof *c->series);
    memset(&c->series[c->nseries], 0, sizeof *c->series);
    c->series[c->nseries++].name = name;
  }
  *found = &c->series[i];
  return CLI_OK;
}

static int find_place(const table *t, const cell_row *r, const char *name, plot_chart *c, size_t *place) {
  size_t i = 0;
  while (i < c->nplaces && strcmp(c->place[i], name) != 0) i++;
  if (i == MOST_PLACES) return wrong(t, r->line, "more than %d texts on the axis of a chart", MOST_PLACES);
  if (i == c->nplaces) {
    c->place = (const char **)cli_resize(c->place, c->nplaces + 1, sizeof *c->place);
    c->place[c->nplaces++] = name;
  }
  *place = i;
  return CLI_OK;
}

static void add_point(plot_series *s, const plot_point *p) {
  if (s->n == s->cap) {
    s->cap = s->cap ? s->cap * 2 : 8;
    s->point = (plot_point *)cli_resize(s->point, s->cap, sizeof *s->point);
  }
  s->point[s->n++] = *p;
}

static int take_point(const table *t, const cell_row *r, const picker *k, plot_chart *c) {
  const int log_x = c->figure.axes & LAB_LOG_X, log_y = c->figure.axes & LAB_LOG_Y;
  plot_series *s = NULL;
  plot_point p = {0, 0, 0, 0, 0};
  int code = row_number(t, r, k->at[Y], log_y, &p.y);
  p.lo = p.hi = p.y;
  if (code == CLI_OK && k->at[LEAST] < t->ncolumns) code = row_number(t, r, k->at[LEAST], log_y, &p.lo);
  if (code == CLI_OK && k->at[MOST] < t->ncolumns) code = row_number(t, r, k->at[MOST], log_y, &p.hi);
  if (code == CLI_OK && (p.lo > p.y || p.hi < p.y)) code = wrong(t, r->line, "y is not between min and max");
  if (code == CLI_OK && c->figure.shape == LAB_BARS) code = find_place(t, r, r->cell[k->at[X]], c, &p.place);
  else if (code == CLI_OK) code = row_number(t, r, k->at[X], log_x, &p.x);
  if (code == CLI_OK) code = find_series(t, r, r->cell[k->at[SERIES]], c, &s);
  if (code == CLI_OK) add_point(s, &p);
  return code;
}

void plot_chart_free(plot_chart *c) {
  for (size_t i = 0; i < c->nseries; i++) free(c->series[i].point);
  free(c->series);
  free((void *)c->place);
}

static int write_svg(const char *dir, const char *id, const cli_buf *svg) {
  cli_buf path = {NULL, 0, 0};
  cli_buf_text(&path, dir);
  cli_buf_char(&path, '/');
  cli_buf_text(&path, id);
  cli_buf_add(&path, ".svg", 5);
  FILE *f = fopen(path.p, "wb");
  int bad = !f || fwrite(svg->p, 1, svg->n, f) != svg->n;
  if (f && fclose(f)) bad = 1;
  if (bad) cli_error("%s: %s", path.p, strerror(errno));
  cli_buf_free(&path);
  return bad ? CLI_FAIL : CLI_OK;
}

static int compare_x(const void *x, const void *y) {
  const plot_point *a = (const plot_point *)x, *b = (const plot_point *)y;
  return (a->x > b->x) - (a->x < b->x);
}

/* Makes one point of those of one x, such as the runs of several seeds at a rate: their mean, from the least to the
 * most. A line through each of them would go up and down in one place. */
static void merge_points(plot_series *s) {
  size_t n = 0;
  for (size_t i = 0, end; i < s->n; i = end) {
    plot_point p = s->point[i];
    double sum = 0;
    for (end = i; end < s->n && !compare_x(&s->point[i], &s->point[end]); end++) {
      sum += s->point[end].y;
      if (s->point[end].lo < p.lo) p.lo = s->point[end].lo;
      if (s->point[end].hi > p.hi) p.hi = s->point[end].hi;
    }
    if (end > i + 1) p.y = sum / (double)(end - i);
    s->point[n++] = p;
  }
  s->n = n;
}

/* Lines go from left to right, in whatever order a search for the highest rate came to its points. */
static void sort_lines(plot_chart *c) {
  for (size_t i = 0; c->figure.shape == LAB_LINES && i < c->nseries; i++) {
    qsort(c->series[i].point, c->series[i].n, sizeof *c->series[i].point, compare_x);
    merge_points(&c->series[i]);
  }
}

/* Where charts go. */
typedef struct drain {
  plot_sink *sink;
  void *user;
} drain;

/* Makes a chart of the rows that the picker takes. In a file of other columns, an empty y or `-` is no value. */
static int draw(const table *t, const picker *k, const lab_figure *figure, const drain *to) {
  plot_chart c;
  int code = CLI_OK;
  memset(&c, 0, sizeof c);
  c.figure = *figure;
  c.caption = t->caption.p;
  for (size_t i = 0; i < t->nrows && code == CLI_OK; i++) {
    const cell_row *r = &t->row[i];
    const char *y = r->cell[k->at[Y]];
    if (k->figure ? !strcmp(r->cell[k->at[FIGURE]], k->figure) : *y && strcmp(y, "-") != 0)
      code = take_point(t, r, k, &c);
  }
  if (code == CLI_OK && !c.nseries) {
    cli_error("%s: no values for %s", t->path, figure->id);
    code = CLI_FAIL;
  }
  sort_lines(&c);
  if (code == CLI_OK) code = to->sink(to->user, &c);
  plot_chart_free(&c);
  return code;
}

/* Draws a chart to a file of the folder. */
static int draw_svg(void *folder, plot_chart *c) {
  cli_buf svg = {NULL, 0, 0};
  plot_svg(c, &svg);
  int code = write_svg((const char *)folder, c->figure.id, &svg);
  cli_buf_free(&svg);
  return code;
}

/* ---- the charts of a file ------------------------------------------------------------------------------ */

static int wanted(const char *figures, const char *id) {
  size_t n = strlen(id);
  if (!figures) return 1;
  for (const char *p = figures; *p; p += strcspn(p, ","), p += *p == ',')
    if (strcspn(p, ",") == n && !strncmp(p, id, n)) return 1;
  return 0;
}

/* Describes a figure: by a `# plot` line of its file, by the tables of the laboratory, or else by its rows alone. */
static lab_figure describe(const table *t, const cell_row *first, const picker *k, plot_known *known) {
  lab_figure f;
  double number;
  memset(&f, 0, sizeof f);
  f.id = k->figure;
  for (size_t i = 0; i < t->nspecs; i++)
    if (!strcmp(t->spec[i].figure.id, f.id) && !t->spec[i].column[0]) return t->spec[i].figure;
  if (known && known(f.id)) return *known(f.id);
  f.title = f.id;
  f.x = "x";
  f.y = first->cell[column(t, "unit")];
  f.shape = read_number(first->cell[k->at[X]], &number) ? LAB_LINES : LAB_BARS;
  return f;
}

/* Draws the figures of the laboratory's columns, in the order of their first rows. */
static int draw_figures(const table *t, const drain *to, const char *figures, plot_known *known) {
  picker k = {{column(t, "x"), column(t, "y"), column(t, "series"), column(t, "min"), column(t, "max"), 0}, NULL};
  const char **done = (const char **)cli_resize(NULL, MOST_FIGURES, sizeof *done);
  size_t ndone = 0;
  int code = CLI_OK;
  for (size_t i = 0; i < t->nrows && code == CLI_OK; i++) {
    const cell_row *r = &t->row[i];
    size_t j = ndone;
    while (j && strcmp(done[j - 1], r->cell[0]) != 0) j--; /* most often the last one */
    if (j) continue;
    if (!is_id(r->cell[0])) {
      code = wrong(t, r->line, "the figure '%.60s' cannot name a file", r->cell[0]);
    } else if (ndone == MOST_FIGURES) {
      code = wrong(t, r->line, "more than %d figures", MOST_FIGURES);
    } else {
      done[ndone++] = k.figure = r->cell[0];
      lab_figure f = describe(t, r, &k, known);
      if (wanted(figures, f.id)) code = draw(t, &k, &f, to);
    }
  }
  free(done);
  return code;
}

/* Draws the charts of other columns, one for each description that names some. */
static int draw_specs(const table *t, const drain *to, const char *figures, int optional) {
  int code = CLI_OK, any = 0;
  for (size_t i = 0; i < t->nspecs && code == CLI_OK; i++) {
    const spec *s = &t->spec[i];
    picker k = {{0, 0, 0, t->ncolumns, t->ncolumns, t->ncolumns}, NULL};
    for (size_t j = 0; j < 3 && code == CLI_OK; j++) {
      if (!s->column[j]) return wrong(t, s->line, "the columns of the chart are missing");
      k.at[j] = column(t, s->column[j]);
      if (k.at[j] == t->ncolumns) code = wrong(t, s->line, "there is no column '%.60s'", s->column[j]);
    }
    any = 1;
    if (code == CLI_OK && wanted(figures, s->figure.id)) code = draw(t, &k, &s->figure, to);
  }
  if (any || optional || code != CLI_OK) return code;
  return wrong(t, 1, "the columns are not figure, series, x, y, unit, and no '# plot' line names others");
}

int plot_table_charts(const table *t, const char *figures, plot_known *known, int optional, plot_sink *sink,
    void *user) {
  static const char *const own[] = {"figure", "series", "x", "y", "unit", "min", "max", "n"};
  const drain to = {sink, user};
  int ours = t->ncolumns == 5 || t->ncolumns == 8;
  for (size_t i = 0; i < t->ncolumns && i < 8; i++) ours &= !strcmp(t->columns[i], own[i]);
  return ours ? draw_figures(t, &to, figures, known) : draw_specs(t, &to, figures, optional);
}

int plot_table_open(const char *path, plot_table **opened) {
  table *t = (table *)cli_resize(NULL, 1, sizeof *t);
  int code = read_table(path, t);
  *opened = t;
  if (code == CLI_OK) return code;
  plot_table_close(t);
  *opened = NULL;
  return code;
}

void plot_table_close(plot_table *t) {
  if (!t) return;
  free_table(t);
  free(t);
}

const char *plot_table_comment(const plot_table *t, size_t i) { return i < t->ncomments ? t->comment[i] : NULL; }

/* Draws the charts of one file. If `optional`, a file of other columns need not describe any. */
static int draw_file(const char *path, const char *dir, const char *figures, plot_known *known, int optional) {
  plot_table *t;
  char *to = cli_copy(dir, strlen(dir));
  int code = plot_table_open(path, &t);
  if (code == CLI_OK) code = plot_table_charts(t, figures, known, optional, draw_svg, to);
  plot_table_close(t);
  free(to);
  return code;
}

int plot_file(const char *path, const char *dir, const char *figures, plot_known *known) {
  return draw_file(path, dir, figures, known, 0);
}

/* ---- gpuir lab plot ------------------------------------------------------------------------------------ */

static int compare_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Draws each TSV file of a folder that describes charts, in the order of their names. */
static int plot_folder(const char *path, const char *to, const char *figures, plot_known *known) {
  DIR *dir = opendir(path);
  char **name = NULL;
  size_t n = 0;
  int code = CLI_OK;
  if (!dir) {
    cli_error("%s: %s", path, strerror(errno));
    return CLI_FAIL;
  }
  for (struct dirent *e; (e = readdir(dir)) != NULL;) {
    size_t len = strlen(e->d_name);
    if (len < 5 || e->d_name[0] == '.' || strcmp(e->d_name + len - 4, ".tsv") != 0) continue;
    cli_buf b = {NULL, 0, 0};
    cli_buf_text(&b, path);
    cli_buf_char(&b, '/');
    cli_buf_add(&b, e->d_name, len + 1);
    name = (char **)cli_resize(name, n + 1, sizeof *name);
    name[n++] = b.p;
  }
  closedir(dir);
  if (n) qsort(name, n, sizeof *name, compare_text);
  if (!n) cli_error("%s: no TSV files", path);
  for (size_t i = 0; i < n && code == CLI_OK; i++) code = draw_file(name[i], to ? to : path, figures, known, 1);
  for (size_t i = 0; i < n; i++) free(name[i]);
  free(name);
  return n ? code : CLI_FAIL;
}

static int plot_path(const char *path, const char *to, const char *figures, plot_known *known) {
  struct stat st;
  if (!stat(path, &st) && S_ISDIR(st.st_mode)) return plot_folder(path, to, figures, known);
  const char *slash = strrchr(path, '/');
  char *dir = slash ? cli_copy(path, slash > path ? (size_t)(slash - path) : 1) : cli_copy(".", 1);
  int code = plot_file(path, to ? to : dir, figures, known);
  free(dir);
  return code;
}

enum { O_OUTPUT = 2, O_FIGURES };

int plot_command(int argc, char **argv, plot_known *known) {
  static const cli_option options[] = {{O_OUTPUT, "output", 'o', 1}, {O_FIGURES, "figures", 0, 1}, {0, NULL, 0, 0}};
  const char *to = NULL, *figures = NULL;
  cli_args a;
  int opt, code = CLI_OK;
  cli_args_start(&a, "lab", options, argc, argv);
  while (code == CLI_OK && (opt = cli_next(&a)) != CLI_END) {
    if (opt == O_OUTPUT) to = a.value;
    else if (opt == O_FIGURES) figures = a.value;
    else code = opt == CLI_HELP ? CLI_HELP : CLI_USAGE;
  }
  if (code == CLI_HELP) {
    code = cli_help("lab");
  } else if (code == CLI_OK) {
    if (to && mkdir(to, 0777) && errno != EEXIST) {
      cli_error("%s: cannot make the folder: %s", to, strerror(errno));
      code = CLI_FAIL;
    }
    for (int i = 0; i < a.noperands && code == CLI_OK; i++) code = plot_path(a.operands[i], to, figures, known);
    if (code == CLI_OK && !a.noperands) code = plot_path("build/lab", to, figures, known);
  }
  cli_args_free(&a);
  return cli_finish(code);
}
