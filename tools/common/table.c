/* table.c - rows of a table with a head. */
#include "table.h"

/* Says what is table_wrong at byte `at` of a row. */
static size_t table_wrong(table_cells *t, const char *why, size_t at) {
  t->why = why;
  t->where = at + 1;
  return 0;
}

/* Returns the bytes of the line end that text[at..len) begins with, 0 where it is none. */
static size_t table_line_end(const table_cells *t, const char *text, size_t at, size_t len) {
  if (t->part) return 0;
  if (at < len && text[at] == '\n') return 1;
  if (at + 1 < len && text[at] == '\r' && text[at + 1] == '\n') return 2;
  return at + 1 == len && text[at] == '\r' ? 1 : 0;
}

/* Finds the end of a field between quotes, the first of which is text[from]. 0: there is none, or something follows. */
static size_t table_quoted_end(table_cells *t, const char *text, size_t from, size_t len) {
  size_t at = from + 1;
  for (;;) {
    const char *quote = at < len ? (const char *)memchr(text + at, '"', len - at) : NULL;
    if (!quote) {
      t->short_of = 1;
      return table_wrong(t, "the quote that opens here is not closed", from);
    }
    at = (size_t)(quote - text) + 1;
    if (at == len || text[at] != '"') break;
    at++;
  }
  if (at == len || text[at] == ',' || table_line_end(t, text, at, len)) return at;
  return table_wrong(t, "something follows the quote that closes a field", at);
}

/* Finds the end of a field without quotes around it. */
static size_t table_plain_end(table_cells *t, int tabs, const char *text, size_t from, size_t len) {
  const char sign = tabs ? '\t' : ',';
  size_t at = from;
  while (at < len && text[at] != sign && text[at] != '"' && !table_line_end(t, text, at, len)) at++;
  while (tabs && at < len && text[at] != sign && !table_line_end(t, text, at, len)) at++;
  if (at == len || text[at] == sign || table_line_end(t, text, at, len)) return at;
  (void)table_wrong(t, "a quote within a field that has none around it", at);
  return at;
}

size_t table_read(table_cells *t, int tabs, const char *text, size_t len) {
  size_t at = 0;
  t->cells.n = t->n = 0;
  t->why = NULL;
  t->short_of = 0;
  for (;;) {
    table_cell c;
    size_t end;
    memset(&c, 0, sizeof c);
    c.quoted = !tabs && at < len && text[at] == '"';
    end = c.quoted ? table_quoted_end(t, text, at, len) : table_plain_end(t, tabs, text, at, len);
    if (t->why) return 0;
    c.raw = text + at;
    c.len = end - at;
    bytes_add(&t->cells, &c, sizeof c);
    if (t->cells.failed) return table_wrong(t, "there is no memory for it", at);
    t->n++;
    at = end;
    if (at == len || table_line_end(t, text, at, len)) return at + table_line_end(t, text, at, len);
    at++;
  }
}

void table_put(const table_cell *cell, made_text *out) {
  const char *p = cell->raw, *end = p + cell->len;
  if (!cell->quoted) {
    made_add(out, p, cell->len, p);
    return;
  }
  for (p++, end--; p < end;) {
    const char *quote = (const char *)memchr(p, '"', (size_t)(end - p));
    const size_t n = quote ? (size_t)(quote - p) + 1 : (size_t)(end - p);
    made_add(out, p, n, p);
    p += quote ? n + 1 : n;
  }
}

/* Returns whether a field holds anything. */
static int table_has_text(const table_cell *cell) { return cell->len > (cell->quoted ? 2u : 0u); }

void table_text(const table_cells *t, size_t first, unsigned mask, made_text *out) {
  for (size_t i = first; i < t->n && i <= first + TABLE_MASK_BITS; i++) {
    const table_cell *c = table_at(t, i);
    const size_t bit = i - first;
    if ((bit && !(mask >> (bit - 1) & 1u)) || !table_has_text(c)) continue;
    if (out->text.n) made_char(out, '\n', c->raw);
    table_put(c, out);
  }
}
