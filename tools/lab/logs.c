/* logs.c - TSV files of the laboratory, one a log, with the charts that are drawn from them. */
#include "claims.h"

#include "../cli/cli.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- names --------------------------------------------------------------------------------------------- */

/* Returns the path behind its last folder `results`; NULL: it has none. */
static const char *below_results(const char *path) {
  const char *found = NULL;
  for (const char *p = path; (p = strstr(p, "results/")) != NULL; p += 8)
    if (p == path || p[-1] == '/') found = p + 8;
  return found;
}

/* Returns the last two parts of a path. */
static const char *last_two(const char *path) {
  int parts = 0;
  for (const char *p = path + strlen(path); p > path; p--)
    if (p[-1] == '/' && ++parts == 2) return p;
  return path;
}

static char *name_of(const char *path, int *known) {
  const char *name = below_results(path);
  *known = name != NULL;
  if (!name) name = last_two(path);
  return cli_copy(name, strlen(name) - 4);
}

/* The row of a log that claims name; the last row for another log. */
static const claims_label *label_of(const claims_log *log) {
  const claims_label *l = claims_labels;
  while (l->log && (!log->known || !formula_names(l->log, log->name))) l++;
  return l;
}

/* ---- one file ------------------------------------------------------------------------------------------ */

static int keep_chart(void *user, plot_chart *chart) {
  claims_log *log = (claims_log *)user;
  log->chart = (plot_chart *)cli_resize(log->chart, log->ncharts + 1, sizeof *log->chart);
  log->chart[log->ncharts] = *chart;
  log->chart[log->ncharts++].inside = 1;
  memset(chart, 0, sizeof *chart);
  return CLI_OK;
}

/* Adds a log behind those that stand before it in the table of labels, so that the same logs make the same page in
 * whatever order they are given. */
static void add_log(claims_logs *logs, const claims_log *log) {
  size_t i = logs->n;
  logs->log = (claims_log *)cli_resize(logs->log, logs->n + 1, sizeof *logs->log);
  while (i && label_of(&logs->log[i - 1]) > label_of(log)) i--;
  memmove(&logs->log[i + 1], &logs->log[i], (logs->n - i) * sizeof *log);
  logs->log[i] = *log;
  logs->n++;
}

/* Reads a file; `label` NULL: a known log has the one of the table, another one its name. */
static int read_log(claims_logs *logs, const char *path, const char *label, plot_known *known) {
  claims_log log;
  memset(&log, 0, sizeof log);
  log.name = name_of(path, &log.known);
  if (!label) label = label_of(&log)->label;
  if (!label) label = log.name;
  log.label = cli_copy(label, strlen(label));
  int code = plot_table_open(path, &log.table);
  if (code == CLI_OK) code = plot_table_charts(log.table, NULL, known, 1, keep_chart, &log);
  add_log(logs, &log);
  return code;
}

/* ---- a folder ------------------------------------------------------------------------------------------ */

typedef struct paths {
  char **path;
  size_t n;
} paths;

static int compare_paths(const void *x, const void *y) { return strcmp(*(char *const *)x, *(char *const *)y); }

static int is_tsv(const char *name) {
  const size_t n = strlen(name);
  return n > 4 && name[0] != '.' && !strcmp(name + n - 4, ".tsv");
}

/* Finds the TSV files of a folder, by name. */
static int find_files(const char *folder, paths *found) {
  DIR *dir = opendir(folder);
  if (!dir) {
    cli_error("%s: %s", folder, strerror(errno));
    return CLI_FAIL;
  }
  for (struct dirent *e; (e = readdir(dir)) != NULL;) {
    if (!is_tsv(e->d_name)) continue;
    cli_buf path = {NULL, 0, 0};
    cli_buf_text(&path, folder);
    if (folder[strlen(folder) - 1] != '/') cli_buf_char(&path, '/');
    cli_buf_text(&path, e->d_name);
    cli_buf_char(&path, 0);
    found->path = (char **)cli_resize(found->path, found->n + 1, sizeof *found->path);
    found->path[found->n++] = path.p;
  }
  closedir(dir);
  if (found->n) qsort(found->path, found->n, sizeof *found->path, compare_paths);
  else cli_error("%s: no TSV files", folder);
  return found->n ? CLI_OK : CLI_FAIL;
}

int logs_read(claims_logs *logs, const char *operand, plot_known *known) {
  const char *equals = strchr(operand, '='), *slash = strchr(operand, '/');
  const int labelled = equals && equals > operand && (!slash || slash > equals);
  const char *path = labelled ? equals + 1 : operand;
  char *label = labelled ? cli_copy(operand, (size_t)(equals - operand)) : NULL;
  struct stat st;
  paths found = {NULL, 0};
  int code = CLI_OK;
  if (!stat(path, &st) && !S_ISDIR(st.st_mode)) {
    if (!is_tsv(path)) {
      cli_error("%s: the name does not end in .tsv", path);
      code = CLI_FAIL;
    } else {
      code = read_log(logs, path, label, known);
    }
  } else {
    code = find_files(path, &found);
  }
  for (size_t i = 0; i < found.n; i++) {
    if (code == CLI_OK) code = read_log(logs, found.path[i], label, known);
    free(found.path[i]);
  }
  free(found.path);
  free(label);
  return code;
}

void logs_free(claims_logs *logs) {
  for (size_t i = 0; i < logs->n; i++) {
    claims_log *log = &logs->log[i];
    for (size_t c = 0; c < log->ncharts; c++) plot_chart_free(&log->chart[c]);
    free(log->chart);
    plot_table_close(log->table);
    free(log->name);
    free(log->label);
  }
  free(logs->log);
  memset(logs, 0, sizeof *logs);
}

formula_scope logs_scope(const claims_log *log, const claims_place *place) {
  const formula_scope s = {log->chart, log->ncharts, place->charts, claims_counted};
  return s;
}
