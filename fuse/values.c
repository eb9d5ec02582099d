/* values.c - names that say something of fields. Nothing here looks at an index or at FUSE. */
#include "values.h"

#include "path.h"

#include "../tools/common/text.h"

#include <stdio.h>

/* ---- predicates ---------------------------------------------------------------------------------------- */

/* A name that is being read as values. */
typedef struct value_reader {
  const char *name;
  size_t len, at;
  char *text;
  size_t n;
} value_reader;

static int is_dots(const value_reader *r) {
  return r->at + 1 < r->len && r->name[r->at] == '.' && r->name[r->at + 1] == '.';
}

static int is_end(const value_reader *r) { return r->at >= r->len || r->name[r->at] == ',' || is_dots(r); }

/* Says whether a where takes a byte for syntax, so that its value must stand in quotes. */
static int is_special(int c) { return strchr(" \t\n\v\f\r\",|.", c) != NULL; }

/* Writes a value, in quotes where a byte of it would be syntax otherwise. */
static void put_value(value_reader *r, const char *value, size_t n, int quoted) {
  size_t i;
  if (quoted) r->text[r->n++] = '"';
  for (i = 0; i < n; i++) {
    if (quoted && value[i] == '"') r->text[r->n++] = '"';
    r->text[r->n++] = value[i];
  }
  if (quoted) r->text[r->n++] = '"';
}

/* Reads a value up to ',', '..' or the end; one that begins with '"' up to the quote that closes it. */
static int read_value(value_reader *r) {
  const int in_quotes = r->at < r->len && r->name[r->at] == '"';
  char value[NAME_LIMIT];
  int quoted = in_quotes;
  size_t n = 0;
  r->at += (size_t)in_quotes;
  while (in_quotes ? r->at < r->len : !is_end(r)) {
    const int raw = (unsigned char)r->name[r->at], c = name_byte(r->name, r->len, &r->at);
    if (c <= 0) return EINVAL;
    if (in_quotes && raw == '"') {
      if (r->at >= r->len || r->name[r->at] != '"') break;
      r->at++;
    }
    quoted |= is_special(c) && (raw != c || c <= ' ');
    value[n++] = (char)c;
  }
  if (in_quotes && (r->name[r->at - 1] != '"' || !is_end(r))) return EINVAL;
  put_value(r, value, n, quoted);
  return 0;
}

int values_predicate(const char *column, size_t column_len, const char *name, size_t len, char *text) {
  value_reader r = {name, len, 0, text, column_len + 1};
  int rc;
  if (column_len > NAME_LIMIT || len > NAME_LIMIT || memchr(column, 0, column_len) || memchr(name, 0, len))
    return EINVAL;
  memcpy(text, column, column_len);
  text[column_len] = '=';
  do {
    rc = read_value(&r);
    while (!rc && is_dots(&r)) { /* that there are not two, says the library */
      r.at += 2;
      memcpy(text + r.n, "..", 2);
      r.n += 2;
      rc = read_value(&r);
    }
    if (!rc && r.at < len) text[r.n++] = name[r.at++]; /* ',' */
    else break;
  } while (!rc);
  text[r.n] = 0;
  return rc;
}

/* ---- joining ------------------------------------------------------------------------------------------- */

/* A group of a where: text[0..len), without the blanks around it. */
typedef struct where_group {
  const char *text;
  size_t len;
} where_group;

/* Takes the next group: up to a '|' outside of quotes, or the NUL. 0 behind the last. */
static int next_group(const char **where, where_group *g) {
  int quoted = 0;
  const char *p = *where;
  if (!p) return 0;
  while (*p == ' ') p++;
  for (g->text = p; *p && (quoted || *p != '|'); p++) quoted ^= *p == '"';
  *where = *p ? p + 1 : NULL;
  while (p > g->text && p[-1] == ' ') p--;
  g->len = (size_t)(p - g->text);
  return 1;
}

/* (a | b) (c | d) is a c | a d | b c | b d: a where has groups at its top alone. */
int values_join(const char *a, const char *b, char out[WHERE_LIMIT + 1]) {
  where_group x, y;
  size_t n = 0;
  out[0] = 0;
  while (next_group(&a, &x)) {
    const char *rest = b;
    while (next_group(&rest, &y)) {
      const int m = snprintf(out + n, WHERE_LIMIT + 1 - n, "%s%.*s%s%.*s", n ? " | " : "", (int)x.len, x.text,
          x.len && y.len ? " " : "", (int)y.len, y.text);
      if (m < 0 || (size_t)m > WHERE_LIMIT - n) return E2BIG;
      n += (size_t)m;
    }
  }
  return 0;
}

/* ---- values as names ----------------------------------------------------------------------------------- */

static int is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

size_t values_name(char out[NAME_LIMIT + 1], const char *text, size_t len) {
  size_t n = 0, i;
  for (i = 0; i < len;) {
    int harmless;
    const size_t next = text_next(text + i, len - i, &harmless);
    const int dot = text[i] == '.' && i && text[i - 1] != '.'; /* no dotfile, and no range */
    const int kept = is_plain(text[i]) || dot || (harmless && (unsigned char)text[i] >= 0x80);
    const size_t bytes = kept ? next : 1;
    if (n + (kept || text[i] == ' ' ? bytes : 3) > NAME_LIMIT) return 0;
    if (kept) memcpy(out + n, text + i, bytes);
    else if (text[i] == ' ') out[n] = '+';
    else snprintf(out + n, NAME_LIMIT + 1 - n, "%%%02X", (unsigned)(unsigned char)text[i]);
    n += kept || text[i] == ' ' ? bytes : 3;
    i += bytes;
  }
  out[n] = 0;
  return n;
}
