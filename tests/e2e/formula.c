/* formula.c - formulas over charts (tools/lab/formula.c) give what is worked out by hand, and name their mistakes.
 *
 * Exit status 0 if all are right; it prints those that are not.
 */
#define _GNU_SOURCE
#include "tools/lab/formula.c"

/* What formula.c takes from the command. */
void *cli_resize(void *p, size_t n, size_t size) {
  void *q = realloc(p, n * size + 1);
  if (!q) abort();
  return q;
}

char *cli_copy(const char *s, size_t n) {
  char *copy = (char *)cli_resize(NULL, n + 1, 1);
  if (n) memcpy(copy, s, n);
  copy[n] = 0;
  return copy;
}

void cli_buf_add(cli_buf *b, const void *p, size_t n) {
  b->p = (char *)cli_resize(b->p, b->n + n, 1);
  if (n) memcpy(b->p + b->n, p, n);
  b->n += n;
}

void cli_buf_char(cli_buf *b, int c) {
  const char byte = (char)c;
  cli_buf_add(b, &byte, 1);
}

void cli_buf_text(cli_buf *b, const char *s) { cli_buf_add(b, s, strlen(s)); }

/* A chart of lines: fast is below slow from 8 on; never is above slow. A chart of bars: two series at three texts. */
static plot_point slow[] = {{1, 0, 2, 2, 2}, {2, 0, 4, 4, 4}, {4, 0, 8, 8, 8}, {8, 0, 16, 16, 16}, {16, 0, 32, 32, 32}};
static plot_point fast[] = {{2, 0, 3, 3, 3}, {4, 0, 9, 9, 9}, {8, 0, 10, 10, 10}, {16, 0, 11, 11, 11}};
static plot_point never[] = {{1, 0, 100, 100, 100}, {16, 0, 100, 100, 100}};
static plot_point apart[] = {{3, 0, 1, 1, 1}};
static plot_series lines[] = {{"slow", slow, 5, 5}, {"fast/GPU", fast, 4, 4}, {"never", never, 2, 2},
    {"apart", apart, 1, 1}};
static plot_point rates[] = {{10, 0, 1, 1, 1}, {20, 0, 1, 1, 1}}, failed[] = {{30, 0, 9, 9, 9}, {40, 0, 9, 9, 9}};
static plot_point wide[] = {{1, 0, 10, 8, 13}, {2, 0, 10, 10, 10}};
static plot_series more[] = {{"rates", rates, 2, 2}, {"rates/saturated", failed, 2, 2}, {"wide", wide, 2, 2}};
static plot_point cpu[] = {{0, 0, 1234567, 0, 0}, {0, 1, 0.5, 0, 0}};
static plot_point gpu[] = {{0, 0, 5, 0, 0}, {0, 2, 7, 0, 0}};
static plot_series bars[] = {{"CPU", cpu, 2, 2}, {"GPU", gpu, 2, 2}};
static const char *places[] = {"pfd-list:0", "[1K,2K)", "lrc:256,0"};

static plot_chart charts[] = {{{"curves", "", "", "", LAB_LINES, 0, NULL}, lines, 4, NULL, 0, NULL, 0},
    {{"bars-a", "", "", "", LAB_BARS, 0, NULL}, bars, 2, places, 3, NULL, 0},
    {{"spread", "", "", "", LAB_LINES, 0, NULL}, more, 3, NULL, 0, NULL, 0},
    {{"gains", "", "", "times as fast", LAB_LINES, 0, NULL}, more, 3, NULL, 0, NULL, 0}};
static const formula_scope scope = {charts, 4, "none,bars-*", "curves,bars-*"};
static const formula_scope once = {charts, 4, "curves,spread", "none"}; /* whose values were measured, not counted */
static int wrong;

static void number(const char *formula, double expected) {
  formula_interval v = {0, 0, 0};
  size_t at = formula_value(&scope, formula, &v);
  if (!at && (isnan(expected) ? isnan(v.y) : !(v.y < expected) && !(v.y > expected))) return;
  printf("%s: %.17g, mistake at %zu; expected: %.17g\n", formula, v.y, at, expected);
  wrong = 1;
}

static int apart_by(double a, double b) { return isinf(b) ? !isinf(a) : !(fabs(a - b) < 1e-9); }

static void bounds(const char *formula, double y, double lo, double hi) {
  formula_interval v = {0, 0, 0};
  size_t at = formula_value(&once, formula, &v);
  if (!at && !apart_by(v.y, y) && !apart_by(v.lo, lo) && !apart_by(v.hi, hi)) return;
  printf("%s: %.17g (%.17g to %.17g), mistake at %zu; expected: %.17g (%.17g to %.17g)\n", formula, v.y, v.lo, v.hi, at,
      y, lo, hi);
  wrong = 1;
}

/* Of a value that was measured once 12 % either way, of one that was repeated its least and greatest, and what comes of
 * that by arithmetic and comparison. */
static void intervals(void) {
  bounds("[wide@1]", 10, 8, 13);
  bounds("[wide@2]", 10, 8.8, 11.2);
  bounds("0 - [wide@2]", -10, -11.2, -8.8);
  bounds("[wide@1] + 2 * [wide@2]", 30, 25.6, 35.4);
  bounds("[wide@1] - [wide@2]", 0, -3.2, 4.2);
  bounds("[wide@1] / [wide@2]", 1, 8 / 11.2, 13 / 8.8);
  bounds("sum([wide@*])", 20, 16.8, 24.2);
  bounds("min([wide@*])", 10, 8, 11.2);
  bounds("max([wide@*])", 10, 8.8, 13);
  bounds("reach([rates])", 20, 20, 30);
  bounds("reach([rates/saturated])", 40, 40, INFINITY);
  bounds("[wide@1] > 7", 1, 1, 1);
  bounds("[wide@1] > 8", 1, 0, 1); /* the least is no more than that */
  bounds("[wide@1] >= 8", 1, 1, 1);
  bounds("[wide@1] > 9", 1, 0, 1);
  bounds("[wide@1] > 11", 0, 0, 1);
  bounds("[wide@1] > 13", 0, 0, 0);
  bounds("[wide@1] < 13", 1, 0, 1);
  bounds("[wide@1] <= 13", 1, 1, 1);
  bounds("[wide@1] > 9 & [wide@1] > 13", 0, 0, 0);
  bounds("[wide@1] > 9 & [wide@2] > 1", 1, 0, 1);
  bounds("below([fast/GPU], [slow])", 8, 2, 8); /* at 2 and 4, 12 % may turn it */
}

static void mistake(const char *formula, size_t expected) {
  formula_interval v = {0, 0, 0};
  size_t at = formula_value(&scope, formula, &v);
  if (at == expected) return;
  printf("%s: mistake at %zu; expected: %zu\n", formula, at, expected);
  wrong = 1;
}

static void text(const char *of, int count, const char *expected) {
  cli_buf out = {NULL, 0, 0};
  int values = formula_text(&scope, of, &out);
  cli_buf_char(&out, 0);
  if (values != count || (values >= 0 && strcmp(out.p, expected) != 0)) {
    printf("%s: %d values, '%s'; expected: %d, '%s'\n", of, values, out.p, count, expected);
    wrong = 1;
  }
  free(out.p);
}

static void numbers(void) {
  number("1 + 2 * 3 - 8 / 4", 5);
  number("(1 + 2) * 3", 9);
  number("[CPU@[1K,2K)]", 0.5);
  number("[GPU@lrc:256,0] - [bars-a#GPU@pfd-list:0]", 2);
  number("[curves#slow@first] + [curves#slow@last]", 34);
  number("[curves#slow@8]", 16);
  number("[curves#fast*@2]", 3);
  number("min([curves#*@*])", 1);
  number("max([curves#slow@*])", 32);
  number("sum([curves#slow@2 to 8])", 28);
  number("below([curves#fast/GPU], [curves#slow])", 8);
  number("below([curves#never], [curves#slow])", INFINITY);
  number("below([curves#apart], [curves#slow])", NAN);
  number("reach([curves#fast/GPU])", 16);
  number("reach([curves#none])", NAN);
  number("reach([CPU])", NAN); /* bars stand at texts */
  number("[CPU@lrc:256,0]", NAN);
  number("[slow@1]", NAN); /* of another chart than the scope's */
  number("1 < 2 & 2 <= 2 & 3 > 2 & 2 >= 2", 1);
  number("1 < 2 & 2 < 2", 0);
  number("[GPU@none] < 1", NAN);
  number("1 < 2 & [GPU@none] < 1", NAN);
}

static void mistakes(void) {
  mistake("1 +", 4);
  mistake("1 2", 3);
  mistake("(1", 3);
  mistake("[GPU", 2);
  mistake("[GPU]", 6);
  mistake("min([GPU])", 10);
  mistake("below([curves#slow@1], [curves#slow])", 22);
  mistake("below([curves#slow], [curves#slow@1])", 37);
  mistake("below([curves#slow])", 20);
  mistake("reach([curves#slow@1])", 22);
  mistake("least([curves#slow])", 1);
  mistake("max([CPU@*]", 12);
  mistake("[curves@1#slow]", 2);
}

static void texts(void) {
  text("no value", 0, "no value");
  text("a {[GPU@pfd-list:0]} b {1/3;2} c {[CPU@pfd-list:0];0}", 3, "a 5.00 b 0.33 c 1,234,567");
  text("{1234.5;1} {0 - 12345;0} {99.96} {0.00123}", 4, "1,234.5 -12,345 100 0.00123");
  text("{[GPU@none]} {below([curves#never], [curves#slow])}", 1, "- \xe2\x88\x9e");
  text("{least [curves#*@16]} {most [CPU@*]} {most [curves#slow@*]} {least [GPU@none]}", 3, "fast/GPU pfd-list:0 16 -");
  text("{[gains#wide@1];0} {[spread#wide@1];0} {[gains#wide@1] + 1;0}", 3, "10 (8 to 13) 10 11 (9 to 14)");
  text("{1 +}", -1, "");
  text("{1", -1, "");
  text("{least 1}", -1, "");
  text("{most [slow]}", -1, "");
}

int main(void) {
  numbers();
  intervals();
  mistakes();
  texts();
  return wrong;
}
