/* claims.h - what five papers found, and how the same is computed from charts of the laboratory.
 *
 * claims.c     the papers, their tables and figures, their claims: tables of texts
 * formula.c    what a formula over charts gives: an interval, whether it holds, a text
 * logs.c       TSV files, one a log, with the charts that are drawn from them
 * verdict.c    the one rule of verdicts, and the table that the READMEs take them from
 * page.c       `gpuir lab report`: charts and claims as one HTML file
 */
#ifndef GPUIR_LAB_CLAIMS_H
#define GPUIR_LAB_CLAIMS_H

#include "plot.h"

typedef struct claims_paper {
  const char *key; /* as in the names of its figures */
  const char *name, *title;
} claims_paper;

/* A table or figure of a paper. */
typedef struct claims_place {
  const char *id, *paper; /* paper: its key */
  const char *where; /* Figure 3 */
  const char *title;
  const char *charts; /* names parted by commas, each with `*` at its end or not */
  const char *missing; /* why there may be no chart, and what measures it */
} claims_place;

enum {
  METHOD,
  SETUP
}; /* what a claim is of: a method; or its collection, queries or machine, which others differ in */

/* A claim, which a test can refute. Texts may have `code`; see formula.c for formulas. */
typedef struct claims_claim {
  const char *id; /* the id of a place, `/`, a word */
  const char *found; /* in the paper */
  const char *ours; /* a text with formulas in braces */
  const char *test; /* a formula that holds or not; NULL: none yet */
  const char *why;
  const char *logs; /* those that decide: names parted by commas, each with `*` at its end or not; see claims_log */
  int of; /* METHOD or SETUP */
} claims_claim;

/* What opens the page: a sentence for each verdict that a claim can have, with formulas over the first log that
 * decides. */
typedef struct claims_sentence {
  const char *claim; /* its id */
  const char *held, *part, *refuted, *open; /* NULL: what the paper found, with the verdict */
} claims_sentence;

/* Names of logs in words. */
typedef struct claims_label {
  const char *log, *label; /* log may end in `*` */
} claims_label;

/* Each ends with a row of NULL. */
extern const claims_paper claims_papers[];
extern const claims_place claims_places[];
extern const claims_claim claims_claims[];
extern const claims_sentence claims_sentences[];
extern const claims_label claims_labels[];
/* The charts whose values are counted, so that the same index and queries give the same ones again. */
extern const char claims_counted[];

/* Returns the place of a claim. */
const claims_place *claims_place_of(const claims_claim *claim);
/* Returns the row of a name, or the last row. */
const claims_claim *claims_find(const char *id);

/* The charts of one log. */
typedef struct formula_scope {
  const plot_chart *chart;
  size_t n;
  const char *figure; /* of references that name none: names of charts as in claims_place */
  const char *counted; /* charts whose values are counted, as these: they are exact */
} formula_scope;

/* What a value is, and within which bounds it lies. */
typedef struct formula_interval {
  double y, lo, hi;
} formula_interval;

/* The part of a value by which it may be off either way if it was measured once. Of 6,021 times and rates that
 * lab-web/, lab-dict/ and schedulers/ding-tables.tsv have of three runs each, 90 % spread by at most 0.123. */
#define FORMULA_ONCE 0.12

struct cli_buf;

/* Returns 1 if the name is one of those parted by commas. */
int formula_names(const char *names, const char *name);
/* Puts the value into *v: y is NAN if a value that it needs is missing. A comparison is 1 or 0, with lo 0 and hi 1 if
 * the intervals of its sides overlap. Returns 0, or the place of a mistake in the formula, from 1. */
size_t formula_value(const formula_scope *s, const char *formula, formula_interval *v);
/* Appends the text with its formulas worked out, `-` for missing values. Returns the number of values, or -1 if a
 * formula is wrong. */
int formula_text(const formula_scope *s, const char *text, struct cli_buf *out);

/* ---- logs ---------------------------------------------------------------------------------------------- */

/* A TSV file. */
typedef struct claims_log {
  char
      *name; /* below a folder `results`, its path from there without .tsv, by which claims name it; else FOLDER/FILE */
  char *label; /* in words, or what the user gave */
  int known; /* whether it is below a folder `results`: other logs may have the same names by chance */
  plot_table *table;
  plot_chart *chart;
  size_t ncharts;
} claims_log;

typedef struct claims_logs {
  claims_log *log;
  size_t n;
} claims_logs;

/* Reads the TSV files of [LABEL=]FOLDER, or [LABEL=]FILE. Returns an exit code, after a message. */
int logs_read(claims_logs *logs, const char *operand, plot_known *known);
void logs_free(claims_logs *logs);
/* What formulas of this place are over. */
formula_scope logs_scope(const claims_log *log, const claims_place *place);

/* ---- verdicts ------------------------------------------------------------------------------------------ */

enum { HELD, IN_PART, REFUTED, OPEN, UNKNOWN, VERDICTS };

extern const char *const verdict_names[VERDICTS];
extern const char *const verdict_marks[VERDICTS]; /* a character each */

/* Returns the verdict of one log: HELD, REFUTED, OPEN or UNKNOWN. It takes no formula that is wrong. */
int verdict_in(const claims_log *log, const claims_claim *claim);
/* Returns whether the log is one of those that decide. */
int verdict_decides(const claims_logs *logs, const claims_claim *claim, const claims_log *log);
/* Returns the verdict of all logs that decide. */
int verdict_of(const claims_logs *logs, const claims_claim *claim);
/* Returns CLI_FAIL, after a message, if the formula or a text of a claim or sentence is wrong. */
int verdict_check(void);
/* Appends the sentence of a claim. Returns its verdict. */
int verdict_sentence(const claims_logs *logs, const claims_sentence *sentence, struct cli_buf *out);
/* Appends the table of all verdicts as TSV. */
void verdict_table(const claims_logs *logs, struct cli_buf *out);

/* gpuir lab report: argv are its arguments. Returns an exit code. */
int report_command(int argc, char **argv, plot_known *known);

#endif
