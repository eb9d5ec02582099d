/* formula.c - formulas over the charts of a log, in intervals: a figure that was measured is known within bounds alone.
 *
 *   comparison  [SERIES@X] < 0.97 * [ding-fig3#SERIES@X]  also <=, >, >=, and & between comparisons: 1, 0, or 0 to 1
 *               where the intervals of both sides overlap
 *   arithmetic  + - * / ( )
 *   reference   [SERIES@X], the value of a series at x, a number or the text at which a bar stands; `first` and `last`
 *               are the ends of a line. SERIES may end in `*`, and X may be `*` or, on a line, `2 to 8`: many values
 *   functions   min([...]), max([...]) and sum([...]) of many values; below([A], [B]): the least x from which on the
 *               series A is below B, where both have values, for all x that follow; infinite if there is none;
 *               reach([A]): the greatest x of the series A, at most the next one of the series A/...
 *   in texts    {FORMULA} with three digits, {FORMULA;2} with two decimals, and with its interval if it is a ratio;
 *               {least [...]} and {most [...]}: the name of the series, or the x, at which many values have an end
 *
 * The interval of a value is that from the least to the greatest of its repetitions. A value that was measured once has
 * none in its log, and gets FORMULA_ONCE either way; one that is counted is exact.
 */
#include "claims.h"

#include "../cli/cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- references -------------------------------------------------------------------------------------- */

/* What stands between brackets. */
typedef struct reference {
  const char *figure, *series, *x; /* x NULL: the series as a whole */
  size_t figure_len, series_len, x_len;
} reference;

typedef struct value { /* of a reference */
  formula_interval of;
  const char *series, *place; /* place NULL: a number, x */
  double x;
  int ratio; /* its chart shows how many times as much, or as fast */
} value;

static int like(const char *pattern, size_t n, const char *name) {
  if (n && pattern[n - 1] == '*') return !strncmp(name, pattern, n - 1);
  return strlen(name) == n && !strncmp(name, pattern, n);
}

int formula_names(const char *names, const char *name) {
  for (const char *p = names; p && *p;) {
    size_t n = strcspn(p, ",");
    if (like(p, n, name)) return 1;
    p += n + (p[n] == ',');
  }
  return 0;
}

static int is(const char *p, size_t n, const char *word) { return strlen(word) == n && !strncmp(p, word, n); }

/* Returns 1 if point p of a series is among those that the reference means. */
static int means(const reference *r, const plot_chart *c, const plot_series *s, const plot_point *p) {
  char *end;
  if (is(r->x, r->x_len, "*")) return 1;
  if (c->figure.shape == LAB_BARS) return like(r->x, r->x_len, c->place[p->place]);
  const int last = is(r->x, r->x_len, "last");
  if (last || is(r->x, r->x_len, "first")) {
    for (size_t i = 0; i < s->n; i++)
      if (last ? s->point[i].x > p->x : s->point[i].x < p->x) return 0;
    return 1;
  }
  double x = strtod(r->x, &end);
  if (!strncmp(end, " to ", 4)) return p->x >= x && p->x <= strtod(end + 4, NULL);
  return end == r->x + r->x_len && fabs(p->x - x) <= 1e-9 * fabs(x);
}

static formula_interval exactly(double y) {
  const formula_interval v = {y, y, y};
  return v;
}

static formula_interval interval_of(const plot_point *p, int counted) {
  formula_interval v = {p->y, p->lo, p->hi};
  if (p->lo < p->hi) return v;
  if (counted) return exactly(p->y);
  v.lo = p->y - FORMULA_ONCE * fabs(p->y);
  v.hi = p->y + FORMULA_ONCE * fabs(p->y);
  return v;
}

/* Goes to the i-th value of a reference. Returns 0 behind the last one. */
static int value_at(const formula_scope *f, const reference *r, size_t i, value *v) {
  for (size_t c = 0; c < f->n; c++) {
    const plot_chart *chart = &f->chart[c];
    const char *id = chart->figure.id;
    if (r->figure ? !like(r->figure, r->figure_len, id) : !formula_names(f->figure, id)) continue;
    for (size_t s = 0; s < chart->nseries; s++) {
      const plot_series *series = &chart->series[s];
      if (!like(r->series, r->series_len, series->name)) continue;
      for (size_t p = 0; p < series->n; p++) {
        if (!means(r, chart, series, &series->point[p]) || i--) continue;
        v->of = interval_of(&series->point[p], formula_names(f->counted, id));
        v->x = series->point[p].x;
        v->series = series->name;
        v->ratio = !strncmp(chart->figure.y, "times", 5);
        v->place = chart->figure.shape == LAB_BARS ? chart->place[series->point[p].place] : NULL;
        return 1;
      }
    }
  }
  return 0;
}

/* ---- parsing ----------------------------------------------------------------------------------------- */

typedef struct parser {
  const formula_scope *scope;
  const char *text, *p;
  const char *wrong; /* where; NULL: nowhere yet */
  int ratio; /* a value was read that is a ratio */
} parser;

static formula_interval compare_all(parser *z);

static void fail(parser *z) {
  if (!z->wrong) z->wrong = z->p;
}

static void blanks(parser *z) { z->p += strspn(z->p, " "); }

static int take(parser *z, const char *word) {
  size_t n = strlen(word);
  blanks(z);
  if (strncmp(z->p, word, n) != 0) return 0;
  z->p += n;
  return 1;
}

static int take_reference(parser *z, reference *r) {
  memset(r, 0, sizeof *r);
  if (!take(z, "[")) return 0;
  const char *end = strchr(z->p, ']');
  if (!end) return 0;
  const char *hash = (const char *)memchr(z->p, '#', (size_t)(end - z->p));
  const char *at = (const char *)memchr(z->p, '@', (size_t)(end - z->p));
  r->series = hash ? hash + 1 : z->p;
  if (hash) {
    r->figure = z->p;
    r->figure_len = (size_t)(hash - z->p);
  }
  if (at && at < r->series) return 0;
  r->series_len = (size_t)((at ? at : end) - r->series);
  if (at) {
    r->x = at + 1;
    r->x_len = (size_t)(end - r->x);
  }
  z->p = end + 1;
  return 1;
}

enum { MEDIANS, SOONEST, LATEST }; /* which ends of the intervals a crossing takes */

static double end_of(const formula_interval *v, int greatest) { return greatest ? v->hi : v->lo; }

/* The least x from which on one series is below the other; infinite if it never is, NAN if they have no x in common. */
static double crossing(const formula_scope *f, const reference *low, const reference *high, int ends) {
  double from = INFINITY, not_yet = -INFINITY;
  int common = 0;
  value a, b;
  for (int pass = 0; pass < 2; pass++)
    for (size_t i = 0; value_at(f, low, i, &a); i++)
      for (size_t j = 0; value_at(f, high, j, &b); j++) {
        if (a.place || b.place || a.x < b.x || a.x > b.x) continue;
        const int below =
            ends == MEDIANS ? a.of.y < b.of.y : end_of(&a.of, ends == LATEST) < end_of(&b.of, ends != LATEST);
        common = 1;
        if (!pass && !below && a.x > not_yet) not_yet = a.x;
        if (pass && a.x > not_yet && a.x < from) from = a.x;
      }
  return common ? from : NAN;
}

static reference whole(reference r) {
  r.x = "*";
  r.x_len = 1;
  return r;
}

static formula_interval crossings(const formula_scope *f, reference low, reference high) {
  low = whole(low);
  high = whole(high);
  const formula_interval v = {crossing(f, &low, &high, MEDIANS), crossing(f, &low, &high, SOONEST),
      crossing(f, &low, &high, LATEST)};
  return v;
}

/* Puts into *v the end of many values: the least one, or the greatest. Its interval is that of the end, which another
 * value may be nearer to. Returns 0 if there is none. */
static int extreme(const formula_scope *f, const reference *r, int most, value *v) {
  value w;
  double lo = NAN, hi = NAN;
  size_t i = 0;
  for (; value_at(f, r, i, &w); i++) {
    if (!i || (most ? w.of.lo > lo : w.of.lo < lo)) lo = w.of.lo;
    if (!i || (most ? w.of.hi > hi : w.of.hi < hi)) hi = w.of.hi;
    if (!i || (most ? w.of.y > v->of.y : w.of.y < v->of.y)) *v = w;
  }
  v->of.lo = lo;
  v->of.hi = hi;
  return i > 0;
}

static formula_interval add(formula_interval a, formula_interval b) {
  const formula_interval v = {a.y + b.y, a.lo + b.lo, a.hi + b.hi};
  return v;
}

static formula_interval subtract(formula_interval a, formula_interval b) {
  const formula_interval v = {a.y - b.y, a.lo - b.hi, a.hi - b.lo};
  return v;
}

static formula_interval of_ends(double y, const double end[4]) {
  formula_interval v = {y, end[0], end[0]};
  for (int i = 1; i < 4; i++) {
    if (end[i] < v.lo) v.lo = end[i];
    if (end[i] > v.hi) v.hi = end[i];
  }
  return v;
}

static formula_interval multiply(formula_interval a, formula_interval b) {
  const double end[4] = {a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi};
  return of_ends(a.y * b.y, end);
}

static formula_interval divide(formula_interval a, formula_interval b) {
  const double end[4] = {a.lo / b.lo, a.lo / b.hi, a.hi / b.lo, a.hi / b.hi};
  return of_ends(a.y / b.y, end);
}

static formula_interval total(const formula_scope *f, const reference *r) {
  formula_interval all = exactly(0);
  value v;
  size_t n = 0;
  for (; value_at(f, r, n, &v); n++) all = add(all, v.of);
  return n ? all : exactly(NAN);
}

/* Returns the greatest x of a series, which is less than the next one at which the same did not hold: rates are tried
 * in steps, and those that failed are in series of that name with `/` and the cause behind it. */
static formula_interval reach(const formula_scope *f, reference r) {
  formula_interval most = exactly(NAN);
  char failed[128];
  value v;
  r = whole(r);
  for (size_t i = 0; value_at(f, &r, i, &v); i++)
    if (!v.place && !(v.x < most.y)) most = exactly(v.x);
  snprintf(failed, sizeof failed, "%.*s/*", (int)r.series_len, r.series);
  r.series = failed;
  r.series_len = strlen(failed);
  most.hi = most.y > 0 ? INFINITY : most.y;
  for (size_t i = 0; value_at(f, &r, i, &v); i++)
    if (v.x > most.y && v.x < most.hi) most.hi = v.x;
  return most;
}

enum { MIN, MAX, SUM, BELOW, REACH, FUNCTIONS };

static formula_interval call(parser *z) {
  static const char *const names[FUNCTIONS] = {"min(", "max(", "sum(", "below(", "reach("};
  reference r, other;
  value v;
  int of = 0;
  while (of < FUNCTIONS && !take(z, names[of])) of++;
  if (of == FUNCTIONS || !take_reference(z, &r) || !r.x != (of >= BELOW)) fail(z);
  else if (of == BELOW && (!take(z, ",") || !take_reference(z, &other) || other.x)) fail(z);
  else if (!take(z, ")")) fail(z);
  if (z->wrong) return exactly(NAN);
  if (of == BELOW) return crossings(z->scope, r, other);
  if (of == REACH) return reach(z->scope, r);
  if (of == SUM) return total(z->scope, &r);
  return extreme(z->scope, &r, of == MAX, &v) ? v.of : exactly(NAN);
}

static formula_interval primary(parser *z) {
  reference r;
  value v;
  blanks(z);
  if (*z->p == '[') {
    if (!take_reference(z, &r) || !r.x) fail(z);
    if (z->wrong || !value_at(z->scope, &r, 0, &v)) return exactly(NAN);
    z->ratio |= v.ratio;
    return v.of;
  }
  if (take(z, "(")) {
    const formula_interval inner = compare_all(z);
    if (!take(z, ")")) fail(z);
    return inner;
  }
  if ((*z->p >= '0' && *z->p <= '9') || *z->p == '.') {
    char *end;
    double number = strtod(z->p, &end);
    z->p = end;
    return exactly(number);
  }
  return call(z);
}

static formula_interval product(parser *z) {
  formula_interval a = primary(z);
  for (;;) {
    if (z->wrong) return exactly(NAN);
    if (take(z, "*")) a = multiply(a, primary(z));
    else if (take(z, "/")) a = divide(a, primary(z));
    else return a;
  }
}

static formula_interval sum(parser *z) {
  formula_interval a = product(z);
  for (;;) {
    if (z->wrong) return exactly(NAN);
    if (take(z, "+")) a = add(a, product(z));
    else if (take(z, "-")) a = subtract(a, product(z));
    else return a;
  }
}

/* Whether a < b, or with `equal` a <= b: by the medians, surely, and possibly. */
static formula_interval less(formula_interval a, formula_interval b, int equal) {
  if (isnan(a.y) || isnan(b.y)) return exactly(NAN);
  const formula_interval v = {equal ? a.y <= b.y : a.y < b.y, equal ? a.hi <= b.lo : a.hi < b.lo,
      equal ? a.lo <= b.hi : a.lo < b.hi};
  return v;
}

static formula_interval compare(parser *z) {
  const formula_interval a = sum(z);
  if (z->wrong) return exactly(NAN);
  if (take(z, "<=")) return less(a, sum(z), 1);
  if (take(z, ">=")) return less(sum(z), a, 1);
  if (take(z, "<")) return less(a, sum(z), 0);
  if (take(z, ">")) return less(sum(z), a, 0);
  return a;
}

static formula_interval both(formula_interval a, formula_interval b) {
  const formula_interval v = {a.y > 0 && b.y > 0, a.lo > 0 && b.lo > 0, a.hi > 0 && b.hi > 0};
  return isnan(a.y) || isnan(b.y) ? exactly(NAN) : v;
}

static formula_interval compare_all(parser *z) {
  formula_interval a = compare(z);
  while (!z->wrong && take(z, "&")) a = both(a, compare(z));
  return a;
}

/* As formula_value; *ratio is set to whether a value of the formula is a ratio. */
static size_t evaluate(const formula_scope *s, const char *formula, formula_interval *v, int *ratio) {
  parser z = {s, formula, formula, NULL, 0};
  *v = compare_all(&z);
  blanks(&z);
  if (*z.p) fail(&z);
  *ratio = z.ratio;
  return z.wrong ? (size_t)(z.wrong - formula) + 1 : 0;
}

size_t formula_value(const formula_scope *s, const char *formula, formula_interval *v) {
  int ratio;
  return evaluate(s, formula, v, &ratio);
}

/* ---- texts ------------------------------------------------------------------------------------------- */

/* Appends a number that has its decimals, with commas between groups of three digits. */
static void put_grouped(const char *number, cli_buf *out) {
  size_t sign = number[0] == '-', digits = strspn(number + sign, "0123456789");
  for (size_t i = 0; number[i]; i++) {
    if (i > sign && i < sign + digits && (sign + digits - i) % 3 == 0) cli_buf_char(out, ',');
    cli_buf_char(out, number[i]);
  }
}

static void put_number(double v, const char *format, cli_buf *out) {
  char text[64];
  int decimals = 0;
  if (isinf(v)) {
    cli_buf_text(out, "\xe2\x88\x9e");
    return;
  }
  if (!format[0]) {
    double a = fabs(v);
    while (decimals < 9 && a > 0 && a < 99.95) {
      a *= 10;
      decimals++;
    }
  } else {
    decimals = (int)strtol(format, NULL, 10);
  }
  snprintf(text, sizeof text, "%.*f", decimals, v);
  put_grouped(text, out);
}

/* Appends the name of where many values have their end. Returns 1; 0 if there is none; -1 if the formula is wrong. */
static int put_name(const formula_scope *s, const char *formula, int most, cli_buf *out) {
  parser z = {s, formula, formula, NULL, 0};
  reference r;
  value v;
  char x[32];
  if (!take_reference(&z, &r) || !r.x || *z.p) return -1;
  if (!extreme(s, &r, most, &v)) return 0;
  snprintf(x, sizeof x, "%.10g", v.x);
  cli_buf_text(out, r.series_len && r.series[r.series_len - 1] == '*' ? v.series : v.place ? v.place : x);
  return 1;
}

/* Returns 1 if the formula is a quotient or finds an x, whose interval a reader cannot see in a chart. Of a value that
 * is
 * a ratio itself the interval is shown as well: ratios are what claims are about. */
static int is_derived(const char *formula) {
  int inside = 0;
  for (const char *p = formula; *p; p++) {
    inside += (*p == '[') - (*p == ']');
    if (!inside && *p == '/') return 1;
  }
  return !strncmp(formula, "below(", 6) || !strncmp(formula, "reach(", 6);
}

/* What put_name does, or a number with its interval. */
static int put_value(const formula_scope *s, const char *formula, const char *format, cli_buf *out) {
  formula_interval v;
  int ratio;
  if (!strncmp(formula, "least ", 6)) return put_name(s, formula + 6, 0, out);
  if (!strncmp(formula, "most ", 5)) return put_name(s, formula + 5, 1, out);
  if (evaluate(s, formula, &v, &ratio)) return -1;
  if (isnan(v.y)) return 0;
  put_number(v.y, format, out);
  if (v.lo < v.hi && (ratio || is_derived(formula))) {
    cli_buf_text(out, " (");
    put_number(v.lo, format, out);
    cli_buf_text(out, " to ");
    put_number(v.hi, format, out);
    cli_buf_text(out, ")");
  }
  return 1;
}

int formula_text(const formula_scope *s, const char *text, cli_buf *out) {
  int values = 0;
  for (const char *p = text; *p;) {
    size_t n = strcspn(p, "{");
    cli_buf_add(out, p, n);
    p += n;
    if (!*p) break;
    n = strcspn(++p, "}");
    char *formula = cli_copy(p, n), *format = strchr(formula, ';');
    if (format) *format++ = 0;
    int got = put_value(s, formula, format ? format : "", out);
    free(formula);
    if (got < 0 || p[n] != '}') return -1;
    if (!got) cli_buf_char(out, '-');
    values += got;
    p += n + 1;
  }
  return values;
}
