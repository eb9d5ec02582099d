/* verdict.c - the one rule by which a claim holds or does not; the page, the READMEs and the scripts take it from here.
 *
 *   1. A formula is over one log: what differs between two runs cannot be mixed.
 *   2. A value is an interval: from the least to the greatest of its repetitions; if it was measured once, FORMULA_ONCE
 *      either way; if it is counted, a point (formula.c).
 *   3. In a log a claim held if its test is true of all values in the intervals, did not hold if it is true of none,
 *      and is open else.
 *   4. The claim names the logs that decide (claims.c); variants that were run beside do not. If none of these is
 * there, as with logs of a user's own, all decide that have the values.
 *   5. It held in part if it held in one of them and did not in another; else it did not hold if it did not in one;
 * else it is open if it is open in one; else it held. It is not judged if no log has the values, or if the paper gives
 *      none to compare.
 */
#include "claims.h"

#include "../cli/cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const verdict_names[VERDICTS] = {"held", "held in part", "did not hold", "open", "not judged"};
const char *const verdict_marks[VERDICTS] = {"\xe2\x9c\x93", "\xe2\x97\x90", "\xe2\x9c\x97", "?", "\xe2\x80\x93"};

const claims_place *claims_place_of(const claims_claim *claim) {
  const size_t n = strcspn(claim->id, "/");
  const claims_place *p = claims_places;
  while (p->id && (strlen(p->id) != n || strncmp(p->id, claim->id, n) != 0)) p++;
  return p;
}

const claims_claim *claims_find(const char *id) {
  const claims_claim *c = claims_claims;
  while (c->id && strcmp(c->id, id) != 0) c++;
  return c;
}

/* ---- the rule ------------------------------------------------------------------------------------------ */

int verdict_in(const claims_log *log, const claims_claim *claim) {
  const formula_scope s = logs_scope(log, claims_place_of(claim));
  formula_interval v = {NAN, NAN, NAN};
  if (claim->test) formula_value(&s, claim->test, &v);
  return isnan(v.y) ? UNKNOWN : v.lo > 0 ? HELD : v.hi > 0 ? OPEN : REFUTED;
}

static int is_named(const claims_claim *claim, const claims_log *log) {
  return log->known && formula_names(claim->logs, log->name);
}

int verdict_decides(const claims_logs *logs, const claims_claim *claim, const claims_log *log) {
  int named = 0;
  for (size_t i = 0; i < logs->n; i++) named |= is_named(claim, &logs->log[i]);
  return named ? is_named(claim, log) : 1;
}

int verdict_of(const claims_logs *logs, const claims_claim *claim) {
  int any[VERDICTS] = {0};
  for (size_t i = 0; i < logs->n; i++)
    if (verdict_decides(logs, claim, &logs->log[i])) any[verdict_in(&logs->log[i], claim)] = 1;
  if (any[HELD] && any[REFUTED]) return IN_PART;
  return any[REFUTED] ? REFUTED : any[OPEN] ? OPEN : any[HELD] ? HELD : UNKNOWN;
}

/* ---- texts --------------------------------------------------------------------------------------------- */

static int check_text(const char *id, const char *text) {
  const formula_scope none = {NULL, 0, "", ""};
  if (!text) return 0;
  cli_buf out = {NULL, 0, 0};
  const int wrong = formula_text(&none, text, &out) < 0;
  cli_buf_free(&out);
  if (wrong) cli_error("%s: a formula of the text '%.100s' is wrong", id, text);
  return wrong;
}

int verdict_check(void) {
  const formula_scope none = {NULL, 0, "", ""};
  formula_interval v;
  int wrong = 0;
  for (const claims_claim *c = claims_claims; c->id; c++) {
    const size_t at = c->test ? formula_value(&none, c->test, &v) : 0;
    if (at) cli_error("%s: the formula '%s' is wrong at character %zu", c->id, c->test, at);
    wrong |= at || check_text(c->id, c->ours);
  }
  for (const claims_sentence *s = claims_sentences; s->claim; s++) {
    if (!claims_find(s->claim)->id) cli_error("%s: a sentence is of this claim, which there is not", s->claim);
    wrong |= !claims_find(s->claim)->id || check_text(s->claim, s->held) || check_text(s->claim, s->part) ||
        check_text(s->claim, s->refuted) || check_text(s->claim, s->open);
  }
  return wrong ? CLI_FAIL : CLI_OK;
}

/* The first log that decides and has the values. */
static const claims_log *first_log(const claims_logs *logs, const claims_claim *claim) {
  for (size_t i = 0; i < logs->n; i++)
    if (verdict_decides(logs, claim, &logs->log[i]) && verdict_in(&logs->log[i], claim) != UNKNOWN)
      return &logs->log[i];
  return NULL;
}

int verdict_sentence(const claims_logs *logs, const claims_sentence *sentence, cli_buf *out) {
  const claims_claim *claim = claims_find(sentence->claim);
  const claims_log *log = first_log(logs, claim);
  const int verdict = verdict_of(logs, claim);
  const char *const text[] = {sentence->held, sentence->part, sentence->refuted, sentence->open};
  if (!log || verdict == UNKNOWN) return UNKNOWN;
  const formula_scope s = logs_scope(log, claims_place_of(claim));
  if (text[verdict]) {
    formula_text(&s, text[verdict], out);
    return verdict;
  }
  cli_buf_text(out, claim->found);
  cli_buf_text(out, " Here: ");
  cli_buf_text(out, verdict_names[verdict]);
  cli_buf_char(out, '.');
  return verdict;
}

/* ---- the table ----------------------------------------------------------------------------------------- */

static const claims_paper *paper_of(const claims_place *place) {
  const claims_paper *p = claims_papers;
  while (p->key && strcmp(p->key, place->paper) != 0) p++;
  return p;
}

static void put_row(const claims_claim *claim, int verdict, const char *log, const char *label, const char *here,
    const char *measured, cli_buf *out) {
  const claims_place *place = claims_place_of(claim);
  const char *const cell[] = {claim->id, place->paper, paper_of(place)->name, place->where,
      claim->of == SETUP ? "setup" : "method", verdict_names[verdict], log, label, here, measured, claim->found,
      claim->why};
  for (size_t i = 0; i < sizeof cell / sizeof *cell; i++) {
    if (i) cli_buf_char(out, '\t');
    cli_buf_text(out, cell[i]);
  }
  cli_buf_char(out, '\n');
}

/* A row for each log that decides a claim; one for a claim of which no log has the values. */
static void put_claim(const claims_logs *logs, const claims_claim *claim, cli_buf *out) {
  const int verdict = verdict_of(logs, claim);
  int any = 0;
  for (size_t i = 0; i < logs->n; i++) {
    const claims_log *log = &logs->log[i];
    const formula_scope s = logs_scope(log, claims_place_of(claim));
    const int here = verdict_in(log, claim);
    cli_buf text = {NULL, 0, 0};
    if (!verdict_decides(logs, claim, log) || (here == UNKNOWN && verdict != UNKNOWN)) continue;
    const int values = formula_text(&s, claim->ours, &text);
    cli_buf_char(&text, 0);
    if (values) put_row(claim, verdict, log->name, log->label, verdict_names[here], text.p, out);
    any |= values;
    cli_buf_free(&text);
  }
  if (!any) put_row(claim, verdict, "-", "-", verdict_names[UNKNOWN], "-", out);
}

void verdict_table(const claims_logs *logs, cli_buf *out) {
  cli_buf_text(out,
      "# verdicts of the rule in tools/lab/verdict.c over the logs beside this file, by `make figures`\n"
      "claim\tkey\tpaper\tplace\tof\tverdict\tlog\tlabel\there\tmeasured\tfound\twhy\n");
  for (const claims_claim *c = claims_claims; c->id; c++) put_claim(logs, c, out);
  for (const claims_sentence *s = claims_sentences; s->claim; s++) {
    cli_buf text = {NULL, 0, 0};
    const int verdict = verdict_sentence(logs, s, &text);
    cli_buf_char(&text, 0);
    if (verdict != UNKNOWN) {
      cli_buf_text(out, "sentence\t-\t-\t-\t-\t");
      cli_buf_text(out, verdict_names[verdict]);
      cli_buf_text(out, "\t-\t-\t-\t");
      cli_buf_text(out, text.p);
      cli_buf_text(out, "\t");
      cli_buf_text(out, s->claim);
      cli_buf_text(out, "\t-\n");
    }
    cli_buf_free(&text);
  }
}
