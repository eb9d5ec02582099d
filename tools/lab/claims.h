/* claims.h - what five papers found, and how the same is computed from charts of the laboratory.
 *
 * claims.c     the papers, their tables and figures, their claims: tables of texts
 * formula.c    what a formula over charts gives: a number, whether it holds, a text
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

/* A claim, which a test can refute. Texts may have `code`; see formula.c for formulas. */
typedef struct claims_claim {
  const char *place; /* the id of one */
  const char *found; /* in the paper */
  const char *ours; /* a text with formulas in braces */
  const char *test; /* a formula that holds or not; NULL: none yet */
  const char *why;
} claims_claim;

/* Each ends with a row of NULL. */
extern const claims_paper claims_papers[];
extern const claims_place claims_places[];
extern const claims_claim claims_claims[];

/* The charts of one collection. */
typedef struct formula_scope {
  const plot_chart *chart;
  size_t n;
  const char *figure; /* of references that name none: names of charts as in claims_place */
} formula_scope;

struct cli_buf;

/* Returns 1 if the name is one of those parted by commas. */
int formula_names(const char *names, const char *name);
/* Puts the number into *v: NAN if a value that it needs is missing. Returns 0, or the place of a mistake in the
 * formula, from 1. */
size_t formula_value(const formula_scope *s, const char *formula, double *v);
/* Appends the text with its formulas worked out, `-` for missing values. Returns the number of values, or -1 if a
 * formula is wrong. */
int formula_text(const formula_scope *s, const char *text, struct cli_buf *out);

/* gpuir lab report: argv are its arguments. Returns an exit code. */
int report_command(int argc, char **argv, plot_known *known);

#endif
