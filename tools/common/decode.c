/* decode.c - cuts files into documents, and makes texts of documents again. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* as source.h wants it */
#endif
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64
#endif
#include "decode.h"

#include "markup.h"

#include <errno.h>
#include <stdio.h>
#include <strings.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define TAG_MOST 4096u /* bytes of a tag */
#define WHOLE UINT64_MAX /* bytes of a place: up to the end of the file */

/* ---- handing out ------------------------------------------------------------------------------- */

/* What is left of the piece that the reader has handed out last. */
typedef struct piece {
  char *text;
  size_t len;
  uint64_t line; /* in which it begins */
  size_t column; /* how many bytes of the text stand before it in that line */
  uint64_t offset; /* in the file */
} piece;

/* Hands out the next n lines. As reader_lines. */
static int next_piece(const decode_run *d, uint64_t n, piece *p, uint64_t *lines) {
  const int got = reader_lines(d->r, n, &p->text, &p->len, lines);
  p->line = d->line;
  p->column = 0;
  if (got > 0) p->offset = d->r->passed - encoding_size(d->r->form, p->text, p->len);
  return got;
}

static uint64_t count_lines(const char *p, const char *end) {
  uint64_t n = 0;
  while (p < end && (p = (const char *)memchr(p, '\n', (size_t)(end - p))) != NULL) n++, p++;
  return n;
}

/* Hands out all that is left. As reader_rest. */
static int take_rest(const decode_run *d, piece *p) {
  if (reader_rest(d->r, &p->text, &p->len)) return -1;
  p->line = d->line;
  p->column = 0;
  p->offset = d->r->passed - (p->len ? encoding_size(d->r->form, p->text, p->len) : 0);
  return 0;
}

/* Goes on behind n bytes of the piece. Whoever takes many records of one line does so behind each: they would be
 * counted from the line's begin otherwise, which takes the square of its length. */
static void advance(const decode_run *d, piece *p, size_t n) {
  size_t begin = n;
  while (begin && p->text[begin - 1] != '\n') begin--;
  p->column = begin ? n - begin : p->column + n;
  p->line += count_lines(p->text, p->text + begin);
  p->offset += encoding_size(d->r->form, p->text, n);
  p->text += n;
  p->len -= n;
}

/* Sets what a document in piece[at, at + n) has in common with others. */
static void set_place(const decode_run *d, const piece *p, size_t at, size_t n, uint32_t as, decode_document *to) {
  memset(to, 0, sizeof *to);
  to->form = as + DECODE_ENCODING * (uint32_t)(d->r->converted ? d->r->was : d->r->form) +
      DECODE_PACKING * (uint32_t)d->r->packing + DECODE_CONVERSION * (uint32_t)d->r->converted +
      DECODE_NAMED * (uint32_t)d->r->named;
  to->offset = p->offset + encoding_size(d->r->form, p->text, at);
  to->bytes = encoding_size(d->r->form, p->text + at, n);
  if (d->r->packing || reader_has_made(d->r)) to->hash = d->file_hash;
  else if (to->form) to->hash = XXH3_64bits(p->text + at, n);
}

/* Hands out the record in piece[at, at + n), of which d->records has id and text. */
static int put_record(const decode_run *d, const piece *p, size_t at, size_t n, uint32_t as) {
  const record_reader *r = d->records;
  decode_document to;
  set_place(d, p, at, n, as, &to);
  to.is_record = 1;
  to.name = r->id.p ? r->id.p : "";
  to.name_len = r->id.n;
  to.text = r->text.text.p ? r->text.text.p : "";
  to.len = r->text.text.n;
  to.first = p->line + count_lines(p->text, p->text + at);
  to.last = to.first + count_lines(p->text + at, p->text + at + n);
  return d->document(d->user, &to);
}

/* ---- files and lines --------------------------------------------------------------------------- */

static int cut_whole(decode_run *d) {
  piece p;
  decode_document to;
  if (take_rest(d, &p)) return DECODE_LOST;
  set_place(d, &p, 0, p.len, DECODE_AS_TEXT, &to);
  /* half a character at the end is none, but of the file */
  if (d->r->form != ENCODING_UTF8) to.bytes = d->r->taken - to.offset;
  to.name = d->name;
  to.name_len = strlen(d->name);
  to.text = p.len ? p.text : "";
  to.len = p.len;
  return d->document(d->user, &to);
}

static int put_chunk(decode_run *d, const piece *p, uint64_t lines) {
  decode_document to;
  char suffix[64];
  const unsigned long long first = p->line, last = p->line + lines - 1;
  if (d->format == DECODE_LINES) snprintf(suffix, sizeof suffix, ":%llu", first);
  else snprintf(suffix, sizeof suffix, ":%llu-%llu", first, last);
  d->chunk.n = 0;
  bytes_add(&d->chunk, d->name, strlen(d->name));
  bytes_add(&d->chunk, suffix, strlen(suffix));
  if (d->chunk.failed) {
    errno = ENOMEM;
    return DECODE_LOST;
  }
  set_place(d, p, 0, p->len, DECODE_AS_TEXT, &to);
  to.name = d->chunk.p;
  to.name_len = d->chunk.n;
  to.text = p->text;
  to.len = p->len;
  to.first = first;
  to.last = last;
  return d->document(d->user, &to);
}

static int cut_chunks(decode_run *d) {
  const uint64_t most = d->format == DECODE_LINES ? 1 : d->chunk_lines;
  uint64_t lines;
  piece p;
  int got, status = 0;
  while (!status && (got = next_piece(d, most, &p, &lines)) != 0) {
    if (got < 0) return DECODE_LOST;
    status = put_chunk(d, &p, lines);
    d->line += lines;
  }
  return status;
}

/* Looks whether the file has so few lines that it is one document. -1: it cannot be read. */
static int is_whole(decode_run *d) {
  uint64_t lines;
  char *text;
  size_t len;
  const int got = d->whole_lines ? reader_lines(d->r, d->whole_lines + 1, &text, &len, &lines) : 0;
  if (!d->whole_lines || got < 0) return got;
  if (got) reader_back(d->r, len);
  return !got || lines <= d->whole_lines;
}

/* Cuts a file into chunks, unless it is a short one. */
static int cut_file(decode_run *d) {
  const int whole = is_whole(d);
  return whole < 0 ? DECODE_LOST : whole ? cut_whole(d) : cut_chunks(d);
}

/* ---- TSV --------------------------------------------------------------------------------------- */

static size_t without_line_end(const char *text, size_t len) {
  if (len && text[len - 1] == '\n') len--;
  if (len && text[len - 1] == '\r') len--;
  return len;
}

static int put_tsv(decode_run *d, const piece *p) {
  const size_t len = without_line_end(p->text, p->len);
  const char *tab = len ? (const char *)memchr(p->text, '\t', len) : NULL;
  const size_t skip = tab ? (size_t)(tab - p->text) + 1 : 0;
  decode_document to;
  if (!len) return 0;
  if (!tab) return d->malformed(d->user, p->line, "no tab between id and text", 0);
  if (skip == 1) return d->malformed(d->user, p->line, "an empty id", 0);
  set_place(d, p, skip, len - skip, DECODE_AS_TEXT, &to);
  to.is_record = 1;
  to.name = p->text;
  to.name_len = skip - 1;
  to.text = p->text + skip;
  to.len = len - skip;
  to.first = to.last = p->line;
  return d->document(d->user, &to);
}

static int cut_tsv(decode_run *d) {
  piece p;
  uint64_t lines;
  int got, status = 0;
  for (; !status && (got = next_piece(d, 1, &p, &lines)) != 0; d->line++) {
    if (got < 0) return DECODE_LOST;
    status = put_tsv(d, &p);
  }
  return status;
}

/* ---- JSON -------------------------------------------------------------------------------------- */

/* What may come next: outside of an array an object; in one at its begin, behind a value, behind a comma. */
typedef enum json_state { JSON_OUTSIDE, JSON_FIRST, JSON_BEHIND, JSON_NEXT } json_state;

typedef struct json_cut {
  json_state state;
  int skipping; /* the rest of a broken object, up to a line that begins like it, or farther left */
  size_t column; /* where that began in its line */
  int told; /* that a comma is missing in this array */
} json_cut;

static int is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

/* Gives back what the piece has from byte `at` on. */
static void give_back(const decode_run *d, piece *p, size_t at) {
  reader_back(d->r, p->len - at);
  p->len = at;
}

/* Returns where the line ends in which piece[at] stands. */
static size_t end_of_line(const piece *p, size_t at) {
  const char *nl = at < p->len ? (const char *)memchr(p->text + at, '\n', p->len - at) : NULL;
  return nl ? (size_t)(nl - p->text) + 1 : p->len;
}

/* Says what is wrong at piece[at] with what begins at piece[from]. */
static int json_malformed(const decode_run *d, const piece *p, size_t from, size_t at, const char *why) {
  const uint64_t line = p->line + count_lines(p->text, p->text + from);
  const uint64_t later = count_lines(p->text + from, p->text + at);
  char said[160];
  size_t begin = at, byte;
  while (begin && p->text[begin - 1] != '\n') begin--;
  byte = at - begin + 1 + (begin ? 0 : p->column);
  if (!later) return d->malformed(d->user, line, why, byte);
  (void)snprintf(said, sizeof said, "%s (byte %zu of line %llu)", why, byte, (unsigned long long)(line + later));
  return d->malformed(d->user, line, said, 0);
}

/* Reads the object at piece[at], with as many more lines as it takes. Its bytes; 0: it is none. *failed: DECODE_LOST.
 */
static size_t json_read_object(const decode_run *d, piece *p, size_t at, int *failed) {
  size_t n = records_json(d->records, p->text + at, p->len - at);
  uint64_t lines = 1;
  *failed = 0;
  for (; !n && d->records->short_of; lines *= 2) { /* it is read anew each time: so twice as many */
    const int more = reader_more(d->r, lines, &p->text, &p->len);
    if (more < 0) *failed = DECODE_LOST;
    if (more <= 0) break;
    n = records_json(d->records, p->text + at, p->len - at);
  }
  return n;
}

/* Leaves an object that is none: its first line, and what follows up to a line that begins like it. */
static int json_leave(const decode_run *d, json_cut *c, piece *p, size_t at) {
  const record_reader *r = d->records;
  const size_t line = end_of_line(p, at);
  const int status = r->short_of ? json_malformed(d, p, at, at, "the object that begins here does not end")
                                 : json_malformed(d, p, at, at + r->where - 1, r->why);
  c->skipping = line < p->len;
  c->column = p->column + at;
  if (c->state != JSON_OUTSIDE) c->state = JSON_FIRST;
  give_back(d, p, line);
  return status;
}

/* Takes the object at piece[*at], and moves *at behind it. */
static int json_take(const decode_run *d, json_cut *c, piece *p, size_t *at) {
  const size_t from = *at;
  int failed;
  const size_t n = json_read_object(d, p, from, &failed);
  size_t rest = from + n;
  if (failed) return failed;
  if (!n) {
    *at = end_of_line(p, from);
    return json_leave(d, c, p, from);
  }
  *at = rest;
  if (c->state == JSON_OUTSIDE) {
    const size_t line = end_of_line(p, rest);
    while (rest < line && is_space(p->text[rest])) rest++;
    *at = line;
    if (rest < line) return json_malformed(d, p, rest, rest, "something follows the object");
  } else {
    c->state = JSON_BEHIND;
  }
  if (d->records->why) return d->malformed(d->user, p->line, d->records->why, 0);
  return put_record(d, p, from, n, DECODE_AS_JSON);
}

/* Returns whether the reading goes on at piece[at], which begins a line. */
static int json_resumes(const json_cut *c, const piece *p, size_t at) {
  const size_t column = p->column + at;
  if (p->text[at] == '{') return column <= c->column;
  return c->state != JSON_OUTSIDE && p->text[at] == ']' && column < c->column;
}

/* Takes what may not stand at piece[*at]. An object without a comma before it is read all the same. */
static int json_stray(const decode_run *d, json_cut *c, const piece *p, size_t *at) {
  const size_t from = *at;
  if (c->state == JSON_BEHIND && p->text[from] == '{') {
    c->state = JSON_NEXT;
    return c->told++ ? 0 : json_malformed(d, p, from, from, "',' or ']' is missing");
  }
  if (c->state != JSON_OUTSIDE) c->state = JSON_FIRST;
  *at = end_of_line(p, from);
  return json_malformed(d, p, from, from, "not a JSON object");
}

/* Takes what stands in a line; where an object goes on, further ones. */
static int json_line(const decode_run *d, json_cut *c, piece *p) {
  size_t at = 0, line = end_of_line(p, 0);
  int status = 0;
  while (!status) {
    char sign;
    advance(d, p, at);
    line = line > at ? line - at : 0;
    at = 0;
    while (at < line && is_space(p->text[at])) at++;
    if (at >= line) break;
    sign = p->text[at];
    if (c->skipping && !json_resumes(c, p, at)) break;
    c->skipping = 0;
    if (sign == '[' && c->state == JSON_OUTSIDE) c->state = JSON_FIRST, c->told = 0, at++;
    else if (sign == ']' && (c->state == JSON_FIRST || c->state == JSON_BEHIND)) c->state = JSON_OUTSIDE, at++;
    else if (sign == ',' && c->state == JSON_BEHIND) c->state = JSON_NEXT, at++;
    else if (sign == '{' && c->state != JSON_BEHIND) status = json_take(d, c, p, &at);
    else status = json_stray(d, c, p, &at);
  }
  if (at < p->len) give_back(d, p, at > line ? at : line);
  return status;
}

static int cut_json(decode_run *d) {
  json_cut c = {JSON_OUTSIDE, 0, 0, 0};
  piece p;
  uint64_t lines;
  int got, status = 0;
  while (!status && (got = next_piece(d, 1, &p, &lines)) != 0) {
    if (got < 0) return DECODE_LOST;
    status = json_line(d, &c, &p);
    d->line = p.line + count_lines(p.text, p.text + p.len);
  }
  if (!status && c.state != JSON_OUTSIDE) status = d->malformed(d->user, d->line, "the array does not end", 0);
  return status;
}

/* ---- tables ------------------------------------------------------------------------------------ */

/* Reads the row that the piece begins with, and as many more lines as it takes. Its bytes; 0: it is none. *failed:
 * DECODE_LOST. */
static size_t read_row(const decode_run *d, piece *p, table_cells *row, int *failed) {
  const int tabs = d->format == DECODE_TABS;
  size_t n = table_read(row, tabs, p->text, p->len);
  uint64_t lines = 1;
  *failed = 0;
  for (; !n && row->short_of; lines *= 2) { /* it is read anew each time: so twice as many */
    const int more = reader_more(d->r, lines, &p->text, &p->len);
    if (more < 0) *failed = DECODE_LOST;
    if (more <= 0) break;
    n = table_read(row, tabs, p->text, p->len);
  }
  return n;
}

/* Sets the place of the fields that are the text of a row of n bytes: the only one without quotes itself; if they stand
 * too far apart, the row, of which nobody makes the text again. */
static void set_fields(const decode_run *d, const piece *p, size_t n, const table_cells *row, decode_document *to) {
  const record_reader *r = d->records;
  const table_cell *from = table_at(row, r->first), *last = from;
  const size_t at = (size_t)(from->raw - p->text);
  size_t i;
  uint32_t as = d->format == DECODE_TABS ? DECODE_AS_TABS : DECODE_AS_CSV;
  if (r->mask < 0) {
    set_place(d, p, 0, without_line_end(p->text, n), DECODE_AS_NOTHING, to);
    to->first = p->line;
    to->last = p->line + count_lines(p->text, p->text + without_line_end(p->text, n));
    return;
  }
  for (i = 0; i < TABLE_MASK_BITS; i++)
    if ((unsigned)r->mask >> i & 1u) last = from + i + 1;
  if (last == from && !from->quoted) as = DECODE_AS_TEXT;
  set_place(d, p, at, (size_t)(last->raw + last->len - from->raw), as, to);
  to->form += DECODE_FIELDS * (uint32_t)r->mask;
  to->first = p->line + count_lines(p->text, from->raw);
  to->last = to->first + count_lines(from->raw, last->raw + last->len);
}

/* Hands out a row. Without an id it is called as a line is. */
static int put_row(decode_run *d, const piece *p, size_t n, const table_cells *row) {
  const record_reader *r = d->records;
  decode_document to;
  char suffix[32];
  if (records_row(d->records, row)) return d->malformed(d->user, p->line, r->why, 0);
  set_fields(d, p, n, row, &to);
  to.is_record = r->id.n != 0;
  to.name = r->id.p;
  to.name_len = r->id.n;
  if (!to.is_record) {
    (void)snprintf(suffix, sizeof suffix, ":%llu", (unsigned long long)p->line);
    d->chunk.n = 0;
    bytes_add(&d->chunk, d->name, strlen(d->name));
    bytes_add(&d->chunk, suffix, strlen(suffix));
    if (d->chunk.failed) return errno = ENOMEM, DECODE_LOST;
    to.name = d->chunk.p;
    to.name_len = d->chunk.n;
  }
  to.text = r->text.text.n ? r->text.text.p : "";
  to.len = r->text.text.n;
  return d->document(d->user, &to);
}

/* Takes the head of a table, the first line that is not blank. *found: there is one, of which rows can be read. */
static int take_head(decode_run *d, table_cells *row, int *found) {
  piece p;
  uint64_t lines;
  int got, failed;
  *found = 0;
  for (; (got = next_piece(d, 1, &p, &lines)) > 0; d->line++)
    if (without_line_end(p.text, p.len)) break;
  if (got <= 0) return got ? DECODE_LOST : 0;
  const size_t n = read_row(d, &p, row, &failed);
  if (failed) return failed;
  if (!n) return json_malformed(d, &p, 0, row->where - 1, row->why);
  if (records_head(d->records, row)) return d->malformed(d->user, d->line, d->records->why, 0);
  d->line += count_lines(p.text, p.text + n);
  give_back(d, &p, n);
  *found = 1;
  return 0;
}

/* Takes the row that the piece begins with; of what is none the first line is left out. */
static int take_row(decode_run *d, piece *p, table_cells *row) {
  int failed, status = 0;
  size_t n = read_row(d, p, row, &failed);
  if (failed) return failed;
  if (!n) {
    status = json_malformed(d, p, row->short_of ? row->where - 1 : 0, row->where - 1, row->why);
    n = end_of_line(p, 0);
  } else if (without_line_end(p->text, n)) {
    status = put_row(d, p, n, row);
  }
  d->line += count_lines(p->text, p->text + n);
  give_back(d, p, n);
  return status;
}

static int cut_table(decode_run *d) {
  table_cells row;
  piece p;
  uint64_t lines;
  int got = 1, head, status;
  memset(&row, 0, sizeof row);
  status = take_head(d, &row, &head);
  while (!status && head && (got = next_piece(d, 1, &p, &lines)) > 0) status = take_row(d, &p, &row);
  table_free(&row);
  return got < 0 ? DECODE_LOST : status;
}

/* ---- TREC -------------------------------------------------------------------------------------- */

/* Returns where in piece[at, len) the first "<doc" or "</doc" stands as the name of a tag; len: nowhere. */
static size_t find_doc(const piece *p, size_t at, int *close) {
  const char *end = p->text + p->len, *found = p->text + at, *name;
  for (; found < end && (found = (const char *)memchr(found, '<', (size_t)(end - found))) != NULL; found++) {
    *close = end - found > 1 && found[1] == '/';
    name = found + 1 + *close;
    if (end - name < 3 || strncasecmp(name, "doc", 3) != 0) continue;
    if (name + 3 == end || name[3] == '>' || is_space(name[3])) return (size_t)(found - p->text);
  }
  return p->len;
}

/* Finds the '>' of the tag at piece[at], which may stand in a line behind it. Returns where it stands, or 0. */
static size_t find_close(const decode_run *d, piece *p, size_t at, int *failed) {
  size_t from = at;
  *failed = 0;
  for (;;) {
    const size_t most = at + TAG_MOST < p->len ? at + TAG_MOST : p->len;
    const char *close = (const char *)memchr(p->text + from, '>', most - from);
    int more;
    if (close) return (size_t)(close - p->text);
    from = most;
    if (from < p->len || from == at + TAG_MOST) return 0;
    more = reader_more(d->r, 1, &p->text, &p->len);
    if (more < 0) *failed = DECODE_LOST;
    if (more <= 0) return 0;
  }
}

/* Finds where the element ends whose text begins at piece[at]: before its end, or before the next one. *end gets that
 * place; *next where to go on, the same if the element has no end. */
static int find_end(const decode_run *d, piece *p, size_t at, size_t *end, size_t *next) {
  size_t from = at;
  for (;;) {
    int close, failed, more;
    *end = *next = find_doc(p, from, &close);
    if (*end < p->len && !close) return 0;
    if (*end < p->len) {
      const size_t sign = find_close(d, p, *end, &failed);
      if (sign) *next = sign + 1;
      return failed;
    }
    from = p->len;
    more = reader_more(d->r, 1, &p->text, &p->len);
    if (more < 0) return DECODE_LOST;
    if (!more) return 0;
  }
}

/* Takes the element whose tag begins at piece[tag], if it is one. *next: where to go on. */
static int take_element(const decode_run *d, piece *p, size_t tag, size_t *next) {
  const uint64_t line = p->line + count_lines(p->text, p->text + tag);
  size_t end, sign;
  int failed;
  *next = tag + 1;
  sign = find_close(d, p, tag, &failed);
  if (failed || !sign) return failed;
  failed = find_end(d, p, sign + 1, &end, next);
  if (failed) return failed;
  if (*next == end) return d->malformed(d->user, line, "a <DOC> without </DOC>", 0);
  if (records_trec(d->records, p->text + tag + 4, sign - tag - 4, p->text + sign + 1, end - sign - 1))
    return d->malformed(d->user, line, d->records->why, 0);
  return put_record(d, p, sign + 1, end - sign - 1, DECODE_AS_TREC);
}

static int cut_trec(decode_run *d) {
  piece p;
  uint64_t lines;
  int got, status = 0, any = 0, read = 0;
  while (!status && (got = next_piece(d, 1, &p, &lines)) != 0) {
    if (got < 0) return DECODE_LOST;
    read = 1;
    while (p.len && !status) {
      int close;
      const size_t tag = find_doc(&p, 0, &close);
      size_t next = tag < p.len ? tag + 1 : tag;
      if (tag < p.len && !close) any = 1, status = take_element(d, &p, tag, &next);
      advance(d, &p, next);
    }
    d->line = p.line;
  }
  if (!status && read && !any) status = d->malformed(d->user, 1, "no <DOC> in this file", 0);
  return status;
}

/* ---- mail -------------------------------------------------------------------------------------- */

/* Hands out the message at piece[0, n), which ends before line `behind` of the file; 0: it is the whole file. Its name
 * is that of the file, by which it can be opened. */
static int put_mail(decode_run *d, const piece *p, size_t n, uint64_t behind) {
  decode_document to;
  byte_buf text;
  const char *cut;
  int status = DECODE_LOST;
  memset(&text, 0, sizeof text);
  cut = convert_text(CONVERT_MAIL, p->text, n, &text);
  if (text.failed) {
    errno = ENOMEM;
  } else {
    if (cut) d->cut(d->user, p->line, cut);
    set_place(d, p, 0, n, DECODE_AS_TEXT, &to);
    to.name = d->name;
    to.name_len = strlen(d->name);
    to.mail = p->text;
    to.mail_len = n;
    to.text = text.p;
    to.len = text.n;
    to.first = behind ? p->line : 0;
    to.last = behind ? behind - 1 : 0;
    status = d->document(d->user, &to);
  }
  bytes_free(&text);
  return status;
}

/* Reads the rest of a message of an mbox, up to the line that begins the next one. Too much of it is not kept: *n gets
 * the bytes of what is, or 0. 1; 0: at the end of the file; DECODE_LOST. */
static int read_message(decode_run *d, piece *p, size_t *n) {
  int after_empty = 0, more, kept = 1;
  uint64_t lines = 1;
  for (;;) {
    const size_t had = kept ? p->len : 0;
    const char *line;
    d->line++;
    more = kept ? reader_more(d->r, 1, &p->text, &p->len) : reader_lines(d->r, 1, &p->text, &p->len, &lines);
    if (more < 0) return DECODE_LOST;
    *n = kept ? had : 0;
    if (!more) return 0;
    line = p->text + had;
    if (after_empty && convert_begins_mail(line, p->len - had)) {
      reader_back(d->r, p->len - had);
      p->len = had;
      return 1;
    }
    after_empty = *line == '\n' || (*line == '\r' && p->len - had == 2);
    if (p->len > CONVERT_MOST) kept = 0;
  }
}

/* Hands out the messages of an mbox. */
static int cut_mbox(decode_run *d) {
  piece p;
  uint64_t lines;
  int got, more = 1, status = 0;
  while (!status && more && (got = next_piece(d, 1, &p, &lines)) != 0) {
    size_t n;
    if (got < 0) return DECODE_LOST;
    more = read_message(d, &p, &n);
    if (more < 0) return more;
    if (n) status = put_mail(d, &p, n, d->line);
    else d->cut(d->user, p.line, "a message larger than 64 MiB is left out");
  }
  return status;
}

/* Hands out what a file of mail has: the messages of an mbox, or the one that it is. */
static int cut_mail(decode_run *d) {
  piece p;
  uint64_t lines;
  int got;
  d->r->most = 2 * CONVERT_MOST;
  got = next_piece(d, 1, &p, &lines);
  if (got < 0) return DECODE_LOST;
  reader_back(d->r, p.len);
  if (convert_begins_mail(p.text, p.len)) return cut_mbox(d);
  d->r->most = CONVERT_MOST;
  if (take_rest(d, &p)) return DECODE_LOST;
  return put_mail(d, &p, p.len, 0);
}

static int cut_format(decode_run *d) {
  if (d->r->converted == CONVERT_MAIL) return cut_mail(d);
  switch (d->format) {
  case DECODE_CHUNKS: return cut_file(d);
  case DECODE_LINES: return cut_chunks(d);
  case DECODE_TSV: return cut_tsv(d);
  case DECODE_JSON: return cut_json(d);
  case DECODE_TREC: return cut_trec(d);
  case DECODE_CSV:
  case DECODE_TABS: return cut_table(d);
  default: return cut_whole(d);
  }
}

int decode_file(decode_run *d, text_reader *r) {
  int status;
  d->r = r;
  d->line = 1;
  memset(&d->chunk, 0, sizeof d->chunk);
  if (decode_has_members(d->format) && r->most > DECODE_JSON_MOST) r->most = DECODE_JSON_MOST;
  status = cut_format(d);
  bytes_free(&d->chunk);
  return status;
}

/* ---- texts, made again ------------------------------------------------------------------------- */

static text_encoding encoding_of(const gpuir_doc *doc) { return (text_encoding)(doc->form / DECODE_ENCODING % 16); }

static unpack_kind packing_of(const gpuir_doc *doc) { return (unpack_kind)(doc->form / DECODE_PACKING % 16); }

static convert_kind conversion_of(const gpuir_doc *doc) { return (convert_kind)(doc->form / DECODE_CONVERSION % 256); }

/* Returns the encoding by its name, plus 1; 0: it has none. */
static int named_of(const gpuir_doc *doc) { return (int)(doc->form / DECODE_NAMED % 64); }

/* Turns what was read into UTF-8. `named`: 1 and the encoding that has a name, or 0. 0 or an errno value. */
static int to_utf8(text_encoding form, int named, decoded *d) {
  byte_buf text;
  int lacks = 0;
  if (form == ENCODING_UTF8 && !named) return 0;
  if (form >= ENCODING_COUNT) return ENOTSUP;
  memset(&text, 0, sizeof text);
  if (!bytes_room(&text, 1)) return ENOMEM; /* a text of no bytes is one too */
  if (!named) (void)encoding_decode(form, d->text, d->len, 1, &text);
  else if (encoding_convert(named - 1, d->text, d->len, &text)) lacks = 1;
  if (text.failed || lacks) {
    bytes_free(&text);
    return lacks ? ENOPKG : ENOMEM;
  }
  free(d->text);
  d->text = text.p;
  d->len = text.n;
  return 0;
}

/* Makes the text of the fields of a row. Not 0: they are none, or there is no memory. */
static int make_row(int tabs, unsigned mask, const decoded *d, made_text *out) {
  table_cells row;
  int bad;
  memset(&row, 0, sizeof row);
  row.part = 1;
  bad = table_read(&row, tabs, d->text, d->len) != d->len;
  if (!bad) table_text(&row, 0, mask, out);
  table_free(&row);
  return bad;
}

/* Makes the text of the record that was read; `mask`: of the fields of a row. 0 or an errno value. */
static int make_record(uint32_t as, unsigned mask, const char *reading, decoded *d) {
  record_reader r;
  int bad;
  if (as == DECODE_AS_NOTHING) return ENODATA;
  bad = records_open(&r, reading, 0) ? -1 : 0;
  if (bad) {
    records_close(&r);
    return ENOMEM;
  }
  r.text.base = d->text;
  if (as == DECODE_AS_JSON) bad = !records_json(&r, d->text, d->len) || (r.why && !r.text.text.n);
  else if (as == DECODE_AS_TREC) bad = records_trec(&r, NULL, 0, d->text, d->len);
  else bad = as > DECODE_AS_TABS || make_row(as == DECODE_AS_TABS, mask, d, &r.text);
  if (!bad && bytes_room(&r.text.text, 1)) {
    d->record = d->text;
    d->record_len = d->len;
    d->made = r.text;
    d->text = d->made.text.p;
    d->len = d->made.text.n;
    memset(&r.text, 0, sizeof r.text);
  } else {
    bad = r.text.text.failed ? ENOMEM : ENOTSUP;
  }
  records_close(&r);
  return bad;
}

/* Returns whether the document's place is one in the text that was made of the file. */
static int is_part_of_made(const gpuir_doc *doc) {
  return named_of(doc) || (conversion_of(doc) && conversion_of(doc) != CONVERT_MAIL);
}

/* Returns the line in which its text begins; lines of a mail are those of its text. */
static uint32_t first_line_of(const gpuir_doc *doc) {
  return doc->first_line && conversion_of(doc) != CONVERT_MAIL ? doc->first_line : 1;
}

/* Begins with a text that is not read yet. *place gets where its bytes are, and their hash if it is of these. */
static int begin_text(const gpuir_doc *doc, gpuir_doc *place, decoded *out) {
  memset(out, 0, sizeof *out);
  out->first_line = out->line = first_line_of(doc);
  out->lineless = conversion_of(doc) != CONVERT_NONE;
  out->is_message = conversion_of(doc) == CONVERT_MAIL && doc->first_line;
  *place = *doc;
  if (is_part_of_made(doc)) { /* all of the file is needed */
    place->source_offset = 0;
    place->source_bytes = packing_of(doc) ? WHOLE : 0;
    place->first_line = place->last_line = 0;
  } else if (!packing_of(doc) && encoding_of(doc) != ENCODING_UTF8) {
    place->hash = 0; /* it is that of the text */
  }
  return (doc->form & DECODE_AS) > DECODE_AS_NOTHING || packing_of(doc) >= UNPACK_KINDS ||
          conversion_of(doc) >= CONVERT_KINDS || (named_of(doc) && !encoding_name(named_of(doc) - 1))
      ? ENOTSUP
      : 0;
}

/* Converts what was read. 0 or an errno value. */
static int convert_read(const gpuir_doc *doc, decoded *out) {
  byte_buf text;
  const char *why;
  const int is_marked =
      is_part_of_made(doc) && !named_of(doc) && out->len >= 3 && !memcmp(out->text, "\xef\xbb\xbf", 3);
  const size_t mark = is_marked ? 3 : 0; /* the reader passes over it, too */
  memset(&text, 0, sizeof text);
  why = convert_text(conversion_of(doc), out->text + mark, out->len - mark, &text);
  free(out->text);
  out->text = text.p;
  out->len = text.n;
  if (text.failed) return ENOMEM;
  return why && is_part_of_made(doc) ? ESTALE : 0; /* of mail there is a text, whatever was left out */
}

/* Puts the document's place of the text that was made of the file, or was packed in it, in *out. 0 or an errno value.
 */
static int cut_place(const gpuir_doc *doc, const char *text, size_t len, decoded *out) {
  const uint64_t at = doc->source_offset, n = doc->source_bytes;
  if (at > len || n > len - at || (source_is_whole(doc) && at + n != len)) return ESTALE;
  if (out->text) {
    memmove(out->text, text + at, (size_t)n);
  } else {
    out->text = (char *)malloc((size_t)n + 1);
    if (!out->text) return ENOMEM;
    memcpy(out->text, text + at, (size_t)n);
  }
  out->len = (size_t)n;
  return 0;
}

/* Makes the text of a file of its bytes, of which documents are parts. 0 or an errno value. */
static int make_file(const gpuir_doc *doc, decoded *out) {
  int rc = 0;
  if (!packing_of(doc) && doc->hash && XXH3_64bits(out->text, out->len) != doc->hash) rc = ESTALE;
  if (!rc) rc = to_utf8(encoding_of(doc), named_of(doc), out);
  if (!rc && conversion_of(doc)) rc = convert_read(doc, out);
  return rc;
}

/* Makes the text of the document's own bytes. 0 or an errno value. */
static int make_part(const gpuir_doc *doc, decoded *out) {
  const text_encoding form = encoding_of(doc);
  const int is_hashed = form != ENCODING_UTF8 && !packing_of(doc) && doc->hash;
  int rc = to_utf8(form, 0, out);
  if (!rc && is_hashed && XXH3_64bits(out->text, out->len) != doc->hash) rc = ESTALE;
  if (!rc && conversion_of(doc)) rc = convert_read(doc, out);
  return rc;
}

/* Makes the text of the bytes that were read. */
static int end_text(const gpuir_doc *doc, const char *reading, decoded *out) {
  const uint32_t as = doc->form & DECODE_AS;
  int rc;
  if (is_part_of_made(doc)) {
    rc = make_file(doc, out);
    if (!rc) rc = cut_place(doc, out->text, out->len, out);
  } else {
    rc = make_part(doc, out);
  }
  if (!rc && as != DECODE_AS_TEXT) rc = make_record(as, doc->form / DECODE_FIELDS, reading, out);
  return rc;
}

/* What is read of a file that is packed. */
typedef struct packed_file {
  XXH3_state_t hash; /* of its bytes */
  const source_limits *limits;
  off_t at;
  int fd;
} packed_file;

static ssize_t read_packed(void *file, char *to, size_t n) {
  packed_file *p = (packed_file *)file;
  const int why = source_must_end(p->limits);
  ssize_t got = -1;
  errno = why;
  if (why) return -1;
  do got = pread(p->fd, to, n, p->at);
  while (got < 0 && errno == EINTR);
  if (got <= 0) return got;
  (void)XXH3_64bits_update(&p->hash, to, (size_t)got);
  p->at += got;
  return got;
}

/* Appends what of the n bytes at `from` of the unpacked ones lies in the document's place. 0 or an errno value. */
static int take_part(const gpuir_doc *doc, uint64_t from, const char *bytes, size_t n, size_t most, byte_buf *out) {
  const uint64_t begin = doc->source_offset, end = doc->source_bytes == WHOLE ? WHOLE : begin + doc->source_bytes;
  const uint64_t first = from > begin ? from : begin, last = from + n < end ? from + n : end;
  if (first >= last) return 0;
  if (out->n + (size_t)(last - first) > most) return EFBIG;
  bytes_add(out, bytes + (first - from), (size_t)(last - first));
  return out->failed ? ENOMEM : 0;
}

/* Unpacks all of the file, of which the document's place is kept. 0 or an errno value. */
static int unpack_place(packed_file *p, const gpuir_doc *doc, byte_buf *out) {
  char room[1 << 16];
  unpacker u;
  uint64_t at = 0;
  ssize_t got;
  int rc = 0;
  if (unpack_open(&u, packing_of(doc), read_packed, p, "", 0)) return errno;
  while (!rc && (got = unpack_read(&u, room, sizeof room)) != 0) {
    if (got < 0) rc = errno;
    else rc = take_part(doc, at, room, (size_t)got, p->limits->most, out);
    at += got > 0 ? (uint64_t)got : 0;
  }
  unpack_close(&u);
  if (!rc && doc->source_bytes != WHOLE &&
      (out->n != doc->source_bytes || (source_is_whole(doc) && at != doc->source_offset + doc->source_bytes)))
    rc = ESTALE;
  return rc == EBADMSG ? ESTALE : rc; /* it was whole when it was indexed */
}

/* Reads the text of a document in a packed file. 0 or an errno value. */
static int read_packed_text(int fd, const gpuir_doc *doc, const source_limits *limits, decoded *out) {
  packed_file p;
  byte_buf text;
  const char *missing = unpack_missing(packing_of(doc));
  int rc = missing ? (missing == unpack_no_memory ? ENOMEM : ENOPKG) : 0;
  memset(&text, 0, sizeof text);
  p.fd = fd;
  p.limits = limits;
  p.at = 0;
  XXH3_INITSTATE(&p.hash);
  (void)XXH3_64bits_reset(&p.hash);
  if (!rc && !bytes_room(&text, 1)) rc = ENOMEM;
  if (!rc) rc = unpack_place(&p, doc, &text);
  if (!rc && doc->hash && XXH3_64bits_digest(&p.hash) != doc->hash) rc = ESTALE;
  out->text = text.p;
  out->len = text.n;
  return rc;
}

/* ---- texts of whole files, which are kept ------------------------------------------------------ */

/* Reads all that is packed in the file, or makes the text of it. Too much of what is packed is not kept: then there is
 * a text that says so. 0 or an errno value. */
static int make_whole(int fd, const struct stat *st, const gpuir_doc *doc, const source_limits *limits,
    const cached_text **whole) {
  const size_t most = text_cache_most(limits->cache);
  source_limits less = *limits;
  gpuir_doc place = *doc;
  decoded out;
  int rc;
  memset(&out, 0, sizeof out);
  place.source_offset = 0;
  place.source_bytes = packing_of(doc) ? WHOLE : 0;
  place.first_line = place.last_line = 0;
  if (!is_part_of_made(doc) && less.most > most) less.most = most;
  if (packing_of(doc)) rc = read_packed_text(fd, &place, &less, &out);
  else rc = source_read_text(fd, st, &place, &less, &out.text, &out.len);
  if (!rc && is_part_of_made(doc)) rc = make_file(doc, &out);
  if (rc) free(out.text);
  if (rc == EFBIG && less.most < limits->most) rc = 0, out.text = NULL, out.len = 0;
  if (rc) return rc;
  *whole = text_cache_put(limits->cache, st, doc->form / (DECODE_AS + 1), doc->hash, out.text, out.len, 0);
  return *whole ? 0 : ENOMEM;
}

/* Takes the document's place of the text of the file, which is made where it is not kept. 0; -1: the file is too large
 * for that; an errno value. */
static int take_kept(int fd, const struct stat *st, const gpuir_doc *doc, const char *reading,
    const source_limits *limits, decoded *out) {
  const cached_text *whole = text_cache_get(limits->cache, st, doc->form / (DECODE_AS + 1), doc->hash);
  const uint32_t as = doc->form & DECODE_AS;
  int rc = whole ? 0 : make_whole(fd, st, doc, limits, &whole);
  if (!rc && !whole->text) rc = -1;
  if (!rc && doc->source_bytes > limits->most) rc = EFBIG;
  if (!rc) rc = cut_place(doc, whole->text, whole->len, out);
  text_cache_release(limits->cache, whole);
  if (!rc && !is_part_of_made(doc)) rc = make_part(doc, out);
  if (!rc && as != DECODE_AS_TEXT) rc = make_record(as, doc->form / DECODE_FIELDS, reading, out);
  return rc;
}

int decode_open_source(int fd, const struct stat *st, const gpuir_doc *doc, const char *reading,
    const source_limits *limits, decoded *out) {
  gpuir_doc place;
  int rc = begin_text(doc, &place, out), kept = -1;
  if (!rc && limits->cache && (packing_of(doc) || is_part_of_made(doc)))
    kept = rc = take_kept(fd, st, doc, reading, limits, out);
  if (kept < 0 && rc <= 0) {
    rc = packing_of(doc) ? read_packed_text(fd, &place, limits, out)
                         : source_read_text(fd, st, &place, limits, &out->text, &out->len);
    if (!rc) rc = end_text(doc, reading, out);
  }
  if (rc) decoded_free(out);
  return rc;
}

/* Keeps why a filter makes no text of a file. Without memory it is not kept. */
static void keep_failure(const text_filter *filter, const struct stat *st, const source_limits *limits,
    const char *why) {
  const uint64_t how = XXH3_64bits(filter->mark, strlen(filter->mark));
  char *said = strdup(why);
  if (said) text_cache_release(limits->cache, text_cache_put(limits->cache, st, how, 0, said, strlen(said), 1));
}

/* Finds the text that the filter makes of an open file, or makes it. 0, an errno value, or FILTERS_FAILED. */
static int filter_whole(const text_filter *filter, int fd, const struct stat *st, const source_limits *limits,
    const cached_text **whole, char *why) {
  const uint64_t how = XXH3_64bits(filter->mark, strlen(filter->mark));
  byte_buf text;
  int rc;
  *whole = text_cache_get(limits->cache, st, how, 0);
  if (*whole && (*whole)->failed) (void)snprintf(why, FILTERS_WHY, "%s", (*whole)->text);
  if (*whole) return (*whole)->failed ? FILTERS_FAILED : 0;
  memset(&text, 0, sizeof text);
  rc = filters_run(filter, fd, limits, &text, why);
  if (rc == FILTERS_FAILED) keep_failure(filter, st, limits, why);
  if (!rc && !bytes_room(&text, 1)) rc = ENOMEM;
  if (rc) {
    bytes_free(&text);
    return rc;
  }
  *whole = text_cache_put(limits->cache, st, how, 0, text.p, text.n, 0);
  return *whole ? 0 : ENOMEM;
}

/* Makes text[0..len) the document's, and its owner *d. */
static void decoded_take_text(decoded *d, const gpuir_doc *doc, char *text, size_t len) {
  memset(d, 0, sizeof *d);
  d->lineless = conversion_of(doc) != CONVERT_NONE;
  d->is_message = conversion_of(doc) == CONVERT_MAIL && doc->first_line;
  d->text = text;
  d->len = len;
  d->first_line = d->line = first_line_of(doc);
  /* a record whose line ends are all in its text has each line where it was; of another that is not known */
  d->flat = doc->source_bytes && doc->source_bytes != len &&
      count_lines(text, text + len) != (uint64_t)(doc->last_line - doc->first_line);
}

int decode_filtered(const text_filter *filter, int fd, const struct stat *st, const gpuir_doc *doc,
    const source_limits *limits, decoded *out, char *why) {
  const cached_text *whole = NULL;
  size_t at, n;
  char *text = NULL;
  int rc = filter_whole(filter, fd, st, limits, &whole, why);
  memset(out, 0, sizeof *out);
  if (!rc) rc = source_part(doc, whole->text, whole->len, &at, &n);
  if (!rc && !(text = (char *)malloc(n + 1))) rc = ENOMEM;
  if (!rc) {
    memcpy(text, whole->text + at, n);
    decoded_take_text(out, doc, text, n);
  }
  text_cache_release(limits->cache, whole);
  return rc;
}

int decode_source(const char *path, const gpuir_doc *doc, const char *reading, const source_limits *limits,
    decoded *out, struct stat *st) {
  int fd, rc;
  memset(out, 0, sizeof *out);
  memset(st, 0, sizeof *st);
  rc = source_open(path, limits->mount, &fd, st);
  if (rc) return rc;
  rc = decode_open_source(fd, st, doc, reading, limits, out);
  close(fd);
  return rc;
}

int decoded_stored(decoded *d, const gpuir_index *index, const gpuir_doc *doc, uint32_t docid) {
  const size_t n = (size_t)doc->stored_bytes;
  char *text = (char *)malloc(n + 1);
  int rc = text ? 0 : ENOMEM;
  memset(d, 0, sizeof *d);
  if (!rc && gpuir_doc_text(index, docid, 0, text, n)) rc = EIO;
  if (rc) free(text);
  else decoded_take_text(d, doc, text, n);
  return rc;
}

void decoded_own_lines(decoded *d) {
  d->lineless = d->flat = 0;
  d->first_line = d->line = 1;
  d->seen = 0;
}

char *decoded_take(decoded *d) {
  char *text = d->text;
  d->text = NULL;
  d->made.text.p = NULL;
  decoded_free(d);
  return text;
}

void decoded_free(decoded *d) {
  if (d->record) {
    free(d->record);
    made_free(&d->made);
  } else {
    free(d->text);
  }
  memset(d, 0, sizeof *d);
}

uint32_t decoded_line(decoded *d, size_t at) {
  const char *record = d->record ? d->record : d->text;
  size_t to = d->record ? made_record(&d->made, at) : at;
  if (d->flat) return d->first_line;
  if (d->record && to > d->record_len) to = d->record_len;
  if (to < d->seen) {
    d->seen = 0;
    d->line = d->first_line;
  }
  const uint64_t line = d->line + count_lines(record + d->seen, record + to);
  d->line = line < UINT32_MAX ? (uint32_t)line : UINT32_MAX;
  d->seen = to;
  return d->line;
}

size_t decoded_line_end(decoded *d, size_t at, size_t end) {
  const made_run *runs = (const made_run *)(const void *)d->made.runs.p;
  const size_t n = d->made.runs.n / sizeof *runs;
  const uint32_t line = decoded_line(d, at);
  size_t low = 0, high = n;
  if (!d->record) return end;
  while (low < high) { /* the first run behind `at` */
    const size_t middle = low + (high - low) / 2;
    if (runs[middle].text <= at) low = middle + 1;
    else high = middle;
  }
  for (; low < n && runs[low].text < end; low++)
    if (decoded_line(d, runs[low].text) != line) return runs[low].text;
  return end;
}
