/* advice.c - what is said of a query. */
#include "advice.h"

#include <stdio.h>
#include <string.h>

/* ---- what is an operator elsewhere ------------------------------------------------------------ */

static int is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static int is_digit(char c) { return c >= '0' && c <= '9'; }

/* Returns whether a word is `field:word`; not `std::string`, `12:30`, `http://host` or `note:`. */
static int is_field(const char *s, size_t n) {
  size_t i = 0;
  if (!n || !is_letter(s[0])) return 0;
  while (i < n && (is_letter(s[i]) || is_digit(s[i]) || s[i] == '.' || s[i] == '-')) i++;
  return i + 1 < n && s[i] == ':' && s[i + 1] != ':' && s[i + 1] != '/';
}

/* Returns whether a word ends as `word~2` or `word^1.5` do. */
static int has_suffix(const char *s, size_t n) {
  const size_t all = n;
  while (n && (is_digit(s[n - 1]) || s[n - 1] == '.')) n--;
  if (n < 2 || (s[n - 1] != '~' && s[n - 1] != '^')) return 0;
  return is_letter(s[n - 2]) && n < all;
}

int advice_is_word_operator(const char *word, size_t len) {
  static const char *const operators[] = {"AND", "OR", "NOT", "NEAR", "&&", "||"};
  size_t i;
  for (i = 0; i < sizeof operators / sizeof *operators; i++)
    if (strlen(operators[i]) == len && !memcmp(operators[i], word, len)) return 1;
  return 0;
}

static int is_operator(const char *s, size_t n) {
  if (advice_is_word_operator(s, n)) return 1;
  if (n > 1 && s[0] == '+' && (is_letter(s[1]) || is_digit(s[1]) || s[1] == '"')) return 1;
  if (n > 1 && s[0] == '-') s++, n--;
  return is_field(s, n) || has_suffix(s, n);
}

static int is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'; }

const char *advice_operator(const char *text, size_t len, size_t *word_len) {
  const char *p = text, *end = text + len;
  while (p < end) {
    const char *word = p;
    if (is_space(*p)) {
      p++;
      continue;
    }
    if (*p == '-' && p + 1 < end && p[1] == '"') p++;
    if (*p == '"') { /* a phrase: all in it is words */
      p = (const char *)memchr(p + 1, '"', (size_t)(end - p - 1));
      if (!p) return NULL;
      p++;
      continue;
    }
    while (p < end && !is_space(*p)) p++;
    *word_len = (size_t)(p - word);
    if (is_operator(word, *word_len)) return word;
  }
  return NULL;
}

/* ---- words that no document has --------------------------------------------------------------- */

#define UNKNOWN_MOST 5 /* words that are told of */
#define NEAR_MOST 3

/* A line that is put together; what does not fit is left out. */
typedef struct advice_line {
  char text[(NEAR_MOST + 1) * (GPUIR_MAX_TERM + 4) + 64];
  size_t n;
} advice_line;

static void add(advice_line *line, const char *bytes, size_t n) {
  if (n > sizeof line->text - line->n) n = sizeof line->text - line->n;
  memcpy(line->text + line->n, bytes, n);
  line->n += n;
}

static void add_text(advice_line *line, const char *text) { add(line, text, strlen(text)); }

/* Says of word i of those that no document has which ones are written nearly so. */
static void tell(const gpuir_query *query, size_t number, const char *term, size_t len, advice_put put, void *arg) {
  gpuir_near_term near[NEAR_MOST];
  advice_line line;
  size_t n = 0, i;
  line.n = 0;
  add_text(&line, "no document has '");
  add(&line, term, len);
  add_text(&line, "'");
  if (gpuir_query_near(query, number, near, NEAR_MOST, &n)) n = 0;
  for (i = 0; i < n && near[i].distance == near[0].distance; i++) {
    add_text(&line, i ? ", " : "; it has ");
    add(&line, near[i].word, near[i].word_len);
  }
  put(arg, line.text, line.n);
}

size_t advice_unknown(const gpuir_query *query, advice_put put, void *arg) {
  const char *term;
  size_t len, n = 0;
  for (; n < UNKNOWN_MOST && !gpuir_query_unknown(query, n, &term, &len); n++) tell(query, n, term, len, put, arg);
  return n;
}

size_t advice_spelled(const gpuir_query *query, advice_write write, void *write_arg, advice_put put, void *arg) {
  const char *word, *instead;
  advice_line line;
  size_t len, instead_len, n = 0;
  for (; !gpuir_query_spelled(query, n, &word, &len, &instead, &instead_len); n++) {
    size_t written_len = 0;
    const char *written = write(write_arg, instead, instead_len, &written_len);
    if (written) {
      instead = written;
      instead_len = written_len;
    }
    line.n = 0;
    add_text(&line, "no document has '");
    add(&line, word, len);
    add_text(&line, "'; '");
    add(&line, instead, instead_len);
    add_text(&line, "' is searched in its place");
    put(arg, line.text, line.n);
  }
  return n;
}

size_t advice_holders(const gpuir_index *index, const char *instead, size_t len, gpuir_hit hits[ADVICE_HOLDERS]) {
  gpuir_query_desc desc;
  gpuir_searcher *searcher = NULL;
  gpuir_query *query = NULL;
  size_t n = 0;
  memset(&desc, 0, sizeof desc);
  desc.mode = GPUIR_OR;
  desc.no_operators = 1;
  desc.spell = GPUIR_EXACT;
  if (gpuir_query_parse(index, &desc, instead, len, &query, NULL) ||
      gpuir_searcher_create(index, NULL, &searcher, NULL) || gpuir_search(searcher, query, hits, ADVICE_HOLDERS, &n))
    n = 0;
  gpuir_searcher_destroy(searcher);
  gpuir_query_destroy(query);
  return n;
}

/* A term, and whether a text is that and no other. */
typedef struct advice_term {
  char bytes[GPUIR_MAX_TERM];
  size_t len, n; /* n: terms that came */
} advice_term;

static int take_term(void *sink, const char *term, size_t len) {
  advice_term *t = (advice_term *)sink;
  memcpy(t->bytes, term, len);
  t->len = len;
  t->n++;
  return GPUIR_OK;
}

/* Finds the only term of a text. Returns whether there is one. */
static int only_term(const gpuir_index *index, const char *text, size_t len, advice_term *t) {
  t->n = 0;
  return !gpuir_analyze(index, text, len, take_term, t, NULL) && t->n == 1;
}

const char *advice_surface(const gpuir_index *index, const char *instead, size_t len, const char *text, size_t text_len,
    size_t *word_len) {
  const char *end = text + text_len;
  advice_term want, got;
  if (!len || !only_term(index, instead, len, &want)) return NULL;
  for (const char *p = text; p < end;) {
    const char *word = p;
    while (p < end && (is_letter(*p) || is_digit(*p) || (*p & 0x80))) p++;
    *word_len = (size_t)(p - word);
    if (*word_len && *word_len <= GPUIR_MAX_TERM && ((*word ^ *instead) & 0xdf) == 0 &&
        only_term(index, word, *word_len, &got) && got.len == want.len && !memcmp(got.bytes, want.bytes, got.len))
      return word;
    p += p == word;
  }
  return NULL;
}

size_t advice_stopped(const gpuir_query *query, advice_put put, void *arg) {
  const char *word;
  advice_line line;
  size_t len, n = 0;
  line.n = 0;
  add_text(&line, "left out, for they say little: ");
  for (; !gpuir_query_stopped(query, n, &word, &len); n++) {
    if (n) add_text(&line, " ");
    add(&line, word, len);
  }
  if (n) put(arg, line.text, line.n);
  return n;
}
