/* report.c - the rows of gpuir lab: tables on the terminal, and a TSV file that describes the charts drawn from it. */
#include "../cli/cli.h"
#include "../common/text.h"
#include "lab.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- spreads --------------------------------------------------------------------------------------- */

static int compare_double(const void *x, const void *y) {
  double a = *(const double *)x, b = *(const double *)y;
  return a < b ? -1 : a > b;
}

lab_spread lab_spread_of(double *values, size_t n) {
  lab_spread s;
  qsort(values, n, sizeof *values, compare_double);
  s.least = values[0];
  s.median = values[n / 2];
  s.most = values[n - 1];
  s.n = n;
  return s;
}

lab_spread lab_scaled(lab_spread s, double by) {
  s.least *= by;
  s.median *= by;
  s.most *= by;
  return s;
}

lab_spread lab_inverse(lab_spread s, double amount) {
  const double least = s.least;
  s.least = amount / s.most;
  s.median = amount / s.median;
  s.most = amount / least;
  return s;
}

void lab_spread_add(lab_spread *sum, const lab_spread *s, double by) {
  sum->least += by * s->least;
  sum->median += by * s->median;
  sum->most += by * s->most;
  if (!sum->n || s->n < sum->n) sum->n = s->n;
}

#define RESAMPLES 2000u
#define MOST_DRAWS 40000000u /* in all: samples of many values have narrow intervals, and fewer resamples do */
#define LEAST_RESAMPLES 200u

static size_t resamples(size_t n) {
  const size_t fit = n > MOST_DRAWS / RESAMPLES ? MOST_DRAWS / n : RESAMPLES;
  return fit < LEAST_RESAMPLES ? LEAST_RESAMPLES : fit;
}

static double sum_of(const double *values, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += values[i];
  return sum;
}

lab_spread lab_bootstrap_ratio(const double *a, const double *b, size_t n) {
  const size_t times = resamples(n);
  double *ratio = (double *)cli_resize(NULL, times, sizeof *ratio);
  uint64_t state = 1;
  lab_spread s;
  for (size_t t = 0; t < times; t++) {
    double over = 0, under = 0;
    for (size_t i = 0; i < n; i++) {
      const size_t one = (size_t)((cli_random(&state) >> 32) * n >> 32);
      over += a[one];
      under += b ? b[one] : 1;
    }
    ratio[t] = over / under;
  }
  qsort(ratio, times, sizeof *ratio, compare_double);
  s.least = ratio[times * 25 / 1000];
  s.most = ratio[times - 1 - times * 25 / 1000];
  s.median = sum_of(a, n) / (b ? sum_of(b, n) : (double)n);
  s.n = n;
  free(ratio);
  return s;
}

lab_spread lab_bootstrap(const double *values, size_t n) { return lab_bootstrap_ratio(values, NULL, n); }

/* ---- notes and rows ------------------------------------------------------------------------------ */

/* The folder and those above it. */
static int make_folder(const char *dir) {
  char *path = cli_copy(dir, strlen(dir));
  int code = CLI_OK;
  for (char *p = path + 1; code == CLI_OK; p++) {
    char c = *p;
    if (c && c != '/') continue;
    *p = 0;
    if (mkdir(path, 0777) && errno != EEXIST) {
      cli_error("%s: cannot make the folder: %s", path, strerror(errno));
      code = CLI_FAIL;
    }
    *p = c;
    if (!c) break;
  }
  free(path);
  return code;
}

int lab_report_open(lab_report *r, const char *dir, const char *name) {
  memset(r, 0, sizeof *r);
  if (!*dir) {
    cli_error("the folder has no name");
    return CLI_FAIL;
  }
  r->dir = cli_copy(dir, strlen(dir));
  r->name = cli_copy(name, strlen(name));
  return make_folder(dir);
}

/* One line, whatever the text holds. */
static char *one_line(const char *text) {
  size_t n = strlen(text);
  char *line = cli_copy(text, n);
  for (size_t i = 0, len; i < n; i += len) {
    int harmless;
    len = text_next(line + i, n - i, &harmless);
    if (!harmless) memset(line + i, ' ', len);
  }
  return line;
}

void lab_note(lab_report *r, const char *key, const char *fmt, ...) {
  char text[4096];
  size_t n = (size_t)snprintf(text, sizeof text, "%s: ", key);
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text + n, sizeof text - n, fmt, ap);
  va_end(ap);
  r->notes = (char **)cli_resize(r->notes, r->nnotes + 1, sizeof *r->notes);
  r->notes[r->nnotes++] = one_line(text);
}

void lab_note_machine(lab_report *r) {
  char model[256], count[CLI_COUNTED];
  cli_cpu_model(model, sizeof model);
  lab_note(r, "machine", "%s, %s, %s", model, cli_counted(cli_processors(), "processor", "processors", count),
      gpuir_simd_name(GPUIR_SIMD_AUTO));
#ifdef GPUIR_COMMIT
  lab_note(r, "version", "gpuir %s, commit %s", gpuir_version(), GPUIR_COMMIT);
#else
  lab_note(r, "version", "gpuir %s", gpuir_version());
#endif
}

void lab_row_of(lab_report *r, const char *figure, const char *series, const char *x, lab_spread y, const char *unit) {
  if (r->n == r->cap) {
    r->cap = r->cap ? r->cap * 2 : 256;
    r->rows = (lab_item *)cli_resize(r->rows, r->cap, sizeof *r->rows);
  }
  lab_item *item = &r->rows[r->n++];
  item->figure = one_line(figure);
  item->series = one_line(series);
  item->x = one_line(x);
  item->unit = one_line(unit);
  item->y = y;
}

void lab_row_of_at(lab_report *r, const char *figure, const char *series, double x, lab_spread y, const char *unit) {
  char text[32];
  snprintf(text, sizeof text, "%.10g", x);
  lab_row_of(r, figure, series, text, y, unit);
}

static lab_spread once(double y) {
  lab_spread s = {y, y, y, 1};
  return s;
}

void lab_row(lab_report *r, const char *figure, const char *series, const char *x, double y, const char *unit) {
  lab_row_of(r, figure, series, x, once(y), unit);
}

void lab_row_at(lab_report *r, const char *figure, const char *series, double x, double y, const char *unit) {
  lab_row_of_at(r, figure, series, x, once(y), unit);
}

/* ---- names of a figure's series and of its places on the x axis, in order of appearance ------------ */

typedef struct names {
  const char **name;
  size_t n;
} names;

static size_t names_find(const names *s, const char *name) {
  size_t i = 0;
  while (i < s->n && strcmp(s->name[i], name) != 0) i++;
  return i;
}

static void names_add(names *s, const char *name) {
  if (names_find(s, name) < s->n) return;
  if ((s->n & (s->n - 1)) == 0) s->name = (const char **)cli_resize(s->name, s->n ? s->n * 2 : 1, sizeof *s->name);
  s->name[s->n++] = name;
}

static void names_free(names *series, names *places) {
  free(series->name);
  free(places->name);
}

/* Returns how many rows the figure has. If any, names_free releases the two. */
static size_t names_of(const lab_report *r, const char *figure, names *series, names *places) {
  size_t n = 0;
  memset(series, 0, sizeof *series);
  memset(places, 0, sizeof *places);
  for (size_t i = 0; i < r->n; i++)
    if (!strcmp(r->rows[i].figure, figure)) {
      names_add(series, r->rows[i].series);
      names_add(places, r->rows[i].x);
      n++;
    }
  return n;
}

/* ---- tables ------------------------------------------------------------------------------------------ */

static void print_cell(const lab_report *r, const char *figure, const char *series, const char *x, int width) {
  for (size_t i = 0; i < r->n; i++) {
    const lab_item *item = &r->rows[i];
    if (strcmp(item->figure, figure) != 0 || strcmp(item->series, series) != 0 || strcmp(item->x, x) != 0) continue;
    printf("  %*.4g", width, item->y.median);
    return;
  }
  printf("  %*s", width, "-");
}

static int longest(const names *s, int least) {
  int most = least;
  for (size_t i = 0; i < s->n; i++)
    if ((int)strlen(s->name[i]) > most) most = (int)strlen(s->name[i]);
  return most;
}

void lab_print(const lab_report *r, const lab_figure *figure) {
  names series, places;
  if (r->json || !names_of(r, figure->id, &series, &places)) return;
  int turned = series.n > places.n; /* a line for each series: what there is more of goes down */
  const names *down = turned ? &series : &places, *across = turned ? &places : &series;
  int first = longest(down, 0);
  printf("%s: %s\n%s, by %s\n%*s", figure->id, figure->title, figure->y, figure->x, first, "");
  for (size_t j = 0; j < across->n; j++) {
    int width = (int)strlen(across->name[j]);
    printf("  %*s", width < 9 ? 9 : width, across->name[j]);
  }
  printf("\n");
  for (size_t i = 0; i < down->n; i++) {
    printf("%-*s", first, down->name[i]);
    for (size_t j = 0; j < across->n; j++) {
      int width = (int)strlen(across->name[j]);
      print_cell(r, figure->id, turned ? down->name[i] : across->name[j], turned ? across->name[j] : down->name[i],
          width < 9 ? 9 : width);
    }
    printf("\n");
  }
  printf("\n");
  cli_flush();
  names_free(&series, &places);
}

/* ---- files --------------------------------------------------------------------------------------------- */

static FILE *file_open(const lab_report *r, const char *name, const char *suffix, char *path, size_t cap) {
  snprintf(path, cap, "%s/%s%s", r->dir, name, suffix);
  FILE *f = fopen(path, "w");
  if (!f) cli_error("%s: %s", path, strerror(errno));
  return f;
}

static int file_close(FILE *f, const char *path) {
  int bad = ferror(f);
  if (!fclose(f) && !bad) return CLI_OK;
  cli_error("%s: writing failed: %s", path, strerror(errno));
  return CLI_FAIL;
}

static int has_rows(const lab_report *r, const char *figure) {
  size_t i = 0;
  while (i < r->n && strcmp(r->rows[i].figure, figure) != 0) i++;
  return i < r->n;
}

/* The line by which plot_tsv.c knows how to draw a figure. */
static void put_description(FILE *f, const lab_figure *figure) {
  static const char *const shapes[] = {"bars", "lines", "points"};
  static const char *const axes[] = {"", "log-x", "log-y", "log-x,log-y"};
  fprintf(f, "# plot\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", figure->id, shapes[figure->shape], axes[figure->axes],
      figure->title, figure->x, figure->y, figure->shown ? figure->shown : "");
}

static int write_tsv(const lab_report *r, const lab_figure *figures, size_t nfigures) {
  char path[4096];
  FILE *f = file_open(r, r->name, ".tsv", path, sizeof path);
  if (!f) return CLI_FAIL;
  for (size_t i = 0; i < r->nnotes; i++) fprintf(f, "# %s\n", r->notes[i]);
  for (size_t i = 0; i < nfigures; i++)
    if (has_rows(r, figures[i].id)) put_description(f, &figures[i]);
  fprintf(f, "figure\tseries\tx\ty\tunit\tmin\tmax\tn\n");
  for (size_t i = 0; i < r->n; i++) {
    const lab_item *item = &r->rows[i];
    fprintf(f, "%s\t%s\t%s\t%.6g\t%s\t%.6g\t%.6g\t%llu\n", item->figure, item->series, item->x, item->y.median,
        item->unit, item->y.least, item->y.most, (unsigned long long)item->y.n);
  }
  return file_close(f, path);
}

static void put_string(const char *name, const char *text) {
  printf("%s", name);
  cli_json_string(stdout, text, strlen(text));
}

/* A line of JSON, which `gpuir lab all` prints several of. */
static void print_json(const lab_report *r) {
  put_string("{\"name\":", r->name);
  printf(",\"notes\":[");
  for (size_t i = 0; i < r->nnotes; i++) put_string(i ? "," : "", r->notes[i]);
  printf("],\"rows\":[");
  for (size_t i = 0; i < r->n; i++) {
    const lab_item *item = &r->rows[i];
    put_string(i ? ",{\"figure\":" : "{\"figure\":", item->figure);
    put_string(",\"series\":", item->series);
    put_string(",\"x\":", item->x);
    put_string(",\"unit\":", item->unit);
    const double values[] = {item->y.median, item->y.least, item->y.most};
    static const char *const key[] = {"y", "min", "max"};
    for (size_t v = 0; v < 3; v++) /* JSON has no number that is infinite or none */
      if (values[v] - values[v] == 0) printf(",\"%s\":%.6g", key[v], values[v]);
      else printf(",\"%s\":null", key[v]);
    printf(",\"n\":%llu}", (unsigned long long)item->y.n);
  }
  printf("]}\n");
  cli_flush();
}

int lab_report_write(const lab_report *r, const lab_figure *figures, size_t nfigures) {
  char path[4096];
  int code = write_tsv(r, figures, nfigures);
  if (r->json && code == CLI_OK) print_json(r);
  snprintf(path, sizeof path, "%s/%s.tsv", r->dir, r->name);
  return code == CLI_OK && r->n ? plot_file(path, r->dir, NULL, NULL) : code;
}

void lab_report_free(lab_report *r) {
  for (size_t i = 0; i < r->n; i++) {
    free(r->rows[i].figure);
    free(r->rows[i].series);
    free(r->rows[i].x);
    free(r->rows[i].unit);
  }
  for (size_t i = 0; i < r->nnotes; i++) free(r->notes[i]);
  free(r->notes);
  free(r->rows);
  free(r->dir);
  free(r->name);
  memset(r, 0, sizeof *r);
}
