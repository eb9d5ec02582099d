/* notice.c - says of a query that holds what is an operator elsewhere that here it is a word. */
#include "cli.h"

#include <string.h>

static int is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static int is_digit(char c) { return c >= '0' && c <= '9'; }

/* Whether a word is `field:word`; not `std::string`, `12:30`, `http://host` or `note:`. */
static int is_field(const char *s, size_t n) {
  size_t i = 0;
  if (!n || !is_letter(s[0])) return 0;
  while (i < n && (is_letter(s[i]) || is_digit(s[i]) || s[i] == '.' || s[i] == '-')) i++;
  return i + 1 < n && s[i] == ':' && s[i + 1] != ':' && s[i + 1] != '/';
}

/* Whether a word ends as `word~`, `word~2` or `word^1.5` do. */
static int has_suffix(const char *s, size_t n) {
  const size_t all = n;
  while (n && (is_digit(s[n - 1]) || s[n - 1] == '.')) n--;
  if (n < 2 || (s[n - 1] != '~' && s[n - 1] != '^')) return 0;
  return is_letter(s[n - 2]) && (s[n - 1] == '~' || n < all);
}

static int is_operator(const char *s, size_t n) {
  static const char *const operators[] = {"AND", "OR", "NOT", "NEAR", "&&", "||"};
  for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
    if (strlen(operators[i]) == n && !memcmp(operators[i], s, n)) return 1;
  if (n > 1 && s[0] == '+' && (is_letter(s[1]) || is_digit(s[1]) || s[1] == '"')) return 1;
  if (n > 1 && s[0] == '-') s++, n--;
  return is_field(s, n) || has_suffix(s, n);
}

static int is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

void cli_notice_operators(const gpuir_query_desc *qd, const char *text, size_t len) {
  static int told;
  const char *p = text, *end = text + len;
  while (!told && !qd->no_operators && p < end) {
    const char *word = p;
    if (is_space(*p)) {
      p++;
      continue;
    }
    if (*p == '-' && p + 1 < end && p[1] == '"') p++;
    if (*p == '"') { /* a phrase: all in it is words */
      p = (const char *)memchr(p + 1, '"', (size_t)(end - p - 1));
      if (!p) return;
      p++;
      continue;
    }
    while (p < end && !is_space(*p)) p++;
    if (!is_operator(word, (size_t)(p - word))) continue;
    told = 1;
    cli_error(
        "note: '%.*s' is no operator, but words like all others: there are -word, \"a phrase\" and prefix*, "
        "and "
        "--mode says whether all words must match",
        p - word > 60 ? 60 : (int)(p - word), word);
  }
}
