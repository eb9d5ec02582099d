/* convert_mail.c - the text of a message of mail (RFC 5322, MIME): what its header says to people, and its texts.
 *
 * It is the Subject, then the other fields, each in a line of its own and without its name, and the parts that are
 * texts: plain ones, HTML, messages within the message. Of other parts it is the name of the file. A message has no
 * line of the text that is indexed, so passages have none of the file.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memmem */
#endif
#include "convert.h"

#include "encoding.h"
#include "text.h"

#include <string.h>
#include <strings.h>

#define MAIL_DEPTH 32u /* of parts within parts */
#define MAIL_PARTS 1000u /* of a message */
#define MAIL_FIELD ((size_t)64 << 10) /* bytes of a field in which parameters are looked for */
#define MAIL_WORD 4096 /* bytes of an encoded word */

typedef struct span {
  const char *p, *end;
} span;

typedef struct mail {
  byte_buf *out;
  byte_buf bytes; /* of encoded words, or of a parameter */
  byte_buf text; /* the same as UTF-8 */
  span charset; /* of m->bytes; empty: none was named */
  unsigned parts, depth;
  const char *cut; /* what was left out */
} mail;

/* The fields of a part that say what it is. */
typedef struct mail_entity {
  span type, transfer, disposition, body;
} mail_entity;

/* ---- lines and fields -------------------------------------------------------------------------- */

static size_t span_size(span s) { return (size_t)(s.end - s.p); }

static int span_is(span s, const char *name) {
  return span_size(s) == strlen(name) && !strncasecmp(s.p, name, span_size(s));
}

static int span_begins(span s, const char *name) {
  return span_size(s) >= strlen(name) && !strncasecmp(s.p, name, strlen(name));
}

static int mail_is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

static span span_trim(span s) {
  while (s.p < s.end && mail_is_blank(*s.p)) s.p++;
  while (s.p < s.end && mail_is_blank(s.end[-1])) s.end--;
  return s;
}

/* Takes the next line, without its end. 0: there is none. */
static int mail_next_line(span *rest, span *line) {
  const char *nl = rest->p < rest->end ? (const char *)memchr(rest->p, '\n', span_size(*rest)) : NULL;
  if (rest->p == rest->end) return 0;
  line->p = rest->p;
  line->end = nl ? nl : rest->end;
  rest->p = nl ? nl + 1 : rest->end;
  if (line->end > line->p && line->end[-1] == '\r') line->end--;
  return 1;
}

/* Takes the next field of a header, with the lines that are folded into it. 0: the header ends, and *rest is the body.
 */
static int mail_next_field(span *rest, span *name, span *value) {
  const span before = *rest;
  span line;
  const char *p;
  if (!mail_next_line(rest, &line) || line.p == line.end) return 0;
  for (p = line.p; p<line.end && * p> ' ' && *p < 0x7f && *p != ':'; p++) {}
  name->p = line.p;
  name->end = p;
  while (p < line.end && mail_is_blank(*p)) p++;
  if (name->p == name->end || p == line.end || *p != ':') {
    *rest = before; /* no field: the body begins without an empty line before it */
    return 0;
  }
  value->p = p + 1;
  value->end = line.end;
  while (rest->p < rest->end && (*rest->p == ' ' || *rest->p == '\t') && mail_next_line(rest, &line))
    value->end = line.end;
  return 1;
}

/* ---- transfer encodings (RFC 2045, section 6; RFC 2047, section 4) ----------------------------- */

/* Returns what the two digits behind a sign stand for, or -1. */
static int mail_hex_byte(const char *p, const char *end) {
  const int high = end - p > 2 ? text_hex(p[1]) : -1, low = end - p > 2 ? text_hex(p[2]) : -1;
  return high < 0 || low < 0 ? -1 : high << 4 | low;
}

/* Returns where the line ends that has nothing more behind the '=' at p but blanks, or NULL. */
static const char *mail_soft_break(const char *p, const char *end) {
  for (p++; p < end && (*p == ' ' || *p == '\t' || *p == '\r'); p++) {}
  return p == end ? end : *p == '\n' ? p + 1 : NULL;
}

/* Appends what quoted-printable stands for; `in_word`: '_' is a blank, and no line ends. */
static void mail_put_quoted(byte_buf *out, span s, int in_word) {
  const char *p = s.p;
  while (p < s.end) {
    const char *from = p, *soft;
    int byte;
    while (p < s.end && *p != '=' && !(in_word && *p == '_')) p++;
    bytes_add(out, from, (size_t)(p - from));
    if (p == s.end) return;
    byte = *p == '=' ? mail_hex_byte(p, s.end) : ' ';
    soft = *p == '=' && byte < 0 && !in_word ? mail_soft_break(p, s.end) : NULL;
    if (!soft) bytes_char(out, byte < 0 ? '=' : byte);
    p = soft ? soft : p + (*p == '=' && byte >= 0 ? 3 : 1);
  }
}

/* The value of each byte in base64, also of those of its other alphabet (RFC 4648, section 5), plus 1; 0: none. */
static const unsigned char mail_base64[256] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 63, 0, 63, 0, 64, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62,
    0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
    0, 0, 0, 0, 64, 0, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50,
    51, 52};

/* Takes groups of four characters, which stand for three bytes, while there are no others. Returns what is left. */
static const char *mail_put_groups(const char *p, const char *end, char **to) {
  for (; end - p >= 4; p += 4) {
    const unsigned a = mail_base64[(unsigned char)p[0]], b = mail_base64[(unsigned char)p[1]],
                   c = mail_base64[(unsigned char)p[2]], d = mail_base64[(unsigned char)p[3]];
    unsigned long bits;
    if (!a || !b || !c || !d) break;
    bits = (unsigned long)(a - 1) << 18 | (unsigned long)(b - 1) << 12 | (unsigned long)(c - 1) << 6 | (d - 1);
    (*to)[0] = (char)(bits >> 16);
    (*to)[1] = (char)(bits >> 8 & 0xff);
    (*to)[2] = (char)(bits & 0xff);
    *to += 3;
  }
  return p;
}

/* Appends what base64 stands for. What is none of its characters is passed over; "=" ends one text, and another may
 * follow. */
static void mail_put_base64(byte_buf *out, span s) {
  char *to = bytes_room(out, span_size(s) / 4 * 3 + 3);
  unsigned long bits = 0;
  int n = 0;
  const char *p = s.p;
  if (!to) return;
  while (p < s.end) {
    int value;
    if (!n) p = mail_put_groups(p, s.end, &to);
    if (p == s.end) break;
    value = mail_base64[(unsigned char)*p] - 1;
    if (*p++ == '=') n = 0;
    if (value < 0) continue;
    bits = (bits << 6 | (unsigned long)value) & 0xffff;
    n += 6;
    if (n < 8) continue;
    n -= 8;
    *to++ = (char)(bits >> n & 0xff);
  }
  out->n = (size_t)(to - out->p);
}

/* ---- words of fields --------------------------------------------------------------------------- */

/* Appends raw[0..n) as UTF-8: of the charset that is named, or of the encoding that the bytes look like. 0; -1: it is
 * no text. */
static int mail_put_charset(mail *m, byte_buf *to, span charset, const char *raw, size_t n) {
  const int named = encoding_find(charset.p, span_size(charset));
  const int converted = named < 0 ? ENCODING_OTHER : encoding_convert(named, raw, n, to);
  size_t mark = 0;
  int form;
  if (!converted || to->failed) return 0;
  if (converted == ENCODING_LACKING) m->cut = "the C library does not convert a charset of it: its words are a guess";
  form = encoding_guess(raw, n, &mark);
  if (form < 0) return -1;
  (void)encoding_decode((text_encoding)form, raw + mark, n - mark, 1, to);
  return 0;
}

/* Appends what belongs in one line: where lines are folded their ends go, and others become blanks. */
static void mail_put_line(byte_buf *out, const char *p, size_t n) {
  size_t i, from = 0;
  for (i = 0; i < n; i++) {
    if (p[i] != '\n' && p[i] != '\r') continue;
    bytes_add(out, p + from, i - from);
    if (p[i] == '\n' && i + 1 < n && !mail_is_blank(p[i + 1])) bytes_char(out, ' ');
    from = i + 1;
  }
  bytes_add(out, p + from, n - from);
}

/* Appends m->bytes, and empties them. */
static void mail_put_bytes(mail *m) {
  m->text.n = 0;
  if (m->bytes.n && !mail_put_charset(m, &m->text, m->charset, m->bytes.p, m->bytes.n))
    mail_put_line(m->out, m->text.p, m->text.n);
  m->bytes.n = 0;
}

static void mail_put_plain(mail *m, const char *p, const char *end) {
  bytes_add(&m->bytes, p, (size_t)(end - p));
  m->charset.p = m->charset.end = NULL;
  mail_put_bytes(m);
}

typedef struct mail_word {
  span charset, text;
  int is_base64;
  const char *open; /* no word ends between where it began and here: it is looked for once */
} mail_word;

/* Reads the encoded word that begins at p. Returns what is behind it, or NULL. */
static const char *mail_read_word(const char *p, const char *end, mail_word *w) {
  if (end - p > MAIL_WORD) end = p + MAIL_WORD;
  if (end - p < 8 || p[0] != '=' || p[1] != '?') return NULL;
  w->charset.p = p += 2;
  while (p < end && *p != '?' && *p != '*' && *p > ' ') p++;
  w->charset.end = p;
  while (p < end && *p != '?' && *p > ' ') p++; /* a language, behind a '*' */
  if (end - p < 5 || p[0] != '?' || p[2] != '?' || !strchr("bBqQ", p[1]) || !p[1]) return NULL;
  w->is_base64 = p[1] == 'b' || p[1] == 'B';
  w->text.p = p += 3;
  if (w->open > p) p = w->open < end ? w->open : end;
  while (end - p >= 2 && *p != '\n' && !(p[0] == '?' && p[1] == '=')) p++;
  w->open = p;
  if (end - p < 2 || *p == '\n') return NULL;
  w->text.end = p;
  return p + 2;
}

/* Appends a field's value, in which encoded words are decoded. Blanks between two of these are none, and a character
 * may begin in one and end in the next, as some programs write it. */
static void mail_put_words(mail *m, span s) {
  const char *plain = s.p, *p = s.p;
  int behind_word = 0;
  mail_word w;
  memset(&w, 0, sizeof w);
  m->bytes.n = 0;
  while (p < s.end) {
    const span between = {plain, p};
    const char *behind = *p == '=' ? mail_read_word(p, s.end, &w) : NULL;
    if (!behind) {
      p++;
      continue;
    }
    if (!behind_word || span_size(span_trim(between))) {
      mail_put_bytes(m);
      mail_put_plain(m, plain, p);
    } else if (span_size(m->charset) != span_size(w.charset) ||
        strncasecmp(m->charset.p, w.charset.p, span_size(w.charset)) != 0) {
      mail_put_bytes(m);
    }
    m->charset = w.charset;
    if (w.is_base64) mail_put_base64(&m->bytes, w.text);
    else mail_put_quoted(&m->bytes, w.text, 1);
    behind_word = 1;
    p = plain = behind;
  }
  mail_put_bytes(m);
  mail_put_plain(m, plain, s.end);
}

/* Appends a value in a line of its own. */
static void mail_put_field(mail *m, span value) {
  const size_t before = m->out->n;
  mail_put_words(m, span_trim(value));
  if (m->out->n > before) bytes_char(m->out, '\n');
}

/* ---- parameters (RFC 2045, section 5.1; RFC 2231, sections 3 and 4) ---------------------------- */

/* Takes the next parameter: its name, and in m->bytes its value is appended to what is there, if `wanted` is that name
 * without its asterisks. 0: there is none. */
static int mail_next_parameter(span *rest, span *name, span *value, int *quoted) {
  const char *p = rest->p, *end = rest->end;
  int in_quotes = 0;
  for (; p < end && (in_quotes || *p != ';'); p++) {
    if (*p == '\\' && in_quotes && p + 1 < end) p++;
    else if (*p == '"') in_quotes = !in_quotes;
  }
  if (p == end) return 0;
  for (p++; p < end && mail_is_blank(*p); p++) {}
  name->p = p;
  while (p < end && *p != '=' && *p != ';' && !mail_is_blank(*p)) p++;
  name->end = p;
  while (p < end && mail_is_blank(*p)) p++;
  value->p = value->end = rest->p = p;
  *quoted = 0;
  if (p == end || *p != '=') return 1;
  for (p++; p < end && mail_is_blank(*p); p++) {}
  rest->p = p; /* quotes are looked for from here again */
  *quoted = p < end && *p == '"';
  value->p = p += *quoted;
  while (p < end && (*quoted ? *p != '"' : *p != ';' && !mail_is_blank(*p)))
    p += *p == '\\' && *quoted && p + 1 < end ? 2 : 1;
  value->end = p;
  return 1;
}

/* Appends a value to m->bytes: without its quotes' backslashes, or with what its percent signs stand for. */
static void mail_add_value(mail *m, span value, int quoted, int percents) {
  const char *p;
  for (p = value.p; p < value.end; p++) {
    const int byte = percents && *p == '%' ? mail_hex_byte(p, value.end) : -1;
    if (quoted && *p == '\\' && p + 1 < value.end) p++;
    bytes_char(&m->bytes, byte < 0 ? *p : byte);
    p += byte < 0 ? 0 : 2;
  }
}

/* Takes "charset'language'" off a value. */
static span mail_take_charset(span *value) {
  const char *first = (const char *)memchr(value->p, '\'', span_size(*value));
  const char *second = first ? (const char *)memchr(first + 1, '\'', (size_t)(value->end - first - 1)) : NULL;
  span charset = {NULL, NULL};
  if (!second) return charset;
  charset.p = value->p;
  charset.end = first;
  value->p = second + 1;
  return charset;
}

/* Puts the value of a field's parameter in m->bytes and m->charset. It may be cut into several, which are taken as they
 * come. Returns whether there is one; *is_plain: it has no charset. */
static int mail_find_parameter(mail *m, span field, const char *wanted, int *is_plain) {
  const size_t n = strlen(wanted);
  span rest = field, name, value;
  int quoted, any = 0;
  *is_plain = 1;
  m->bytes.n = 0;
  m->charset.p = m->charset.end = NULL;
  if (span_size(rest) > MAIL_FIELD) rest.end = rest.p + MAIL_FIELD;
  while (mail_next_parameter(&rest, &name, &value, &quoted)) {
    const int percents = name.end > name.p && name.end[-1] == '*';
    if (!span_begins(name, wanted) || (span_size(name) > n && name.p[n] != '*')) continue;
    if (span_size(name) == n && any) continue; /* the first one holds */
    if (percents && !any) m->charset = mail_take_charset(&value);
    if (percents) *is_plain = 0;
    mail_add_value(m, value, quoted, percents);
    any = 1;
  }
  return any && !m->bytes.failed;
}

/* Appends the name of a part's file, if it has one. */
static void mail_put_file_name(mail *m, const mail_entity *e) {
  byte_buf name;
  int is_plain;
  span s;
  if (!mail_find_parameter(m, e->disposition, "filename", &is_plain) &&
      !mail_find_parameter(m, e->type, "name", &is_plain))
    return;
  if (is_plain) { /* many programs put encoded words here */
    name = m->bytes;
    memset(&m->bytes, 0, sizeof m->bytes);
    s.p = name.p;
    s.end = name.p + name.n;
    mail_put_words(m, s);
    bytes_free(&name);
  } else {
    mail_put_bytes(m);
  }
  bytes_char(m->out, '\n');
}

/* ---- parts ------------------------------------------------------------------------------------- */

static void mail_put_message(mail *m, span s);
static void mail_put_entity(mail *m, const mail_entity *e, int in_digest);

/* Returns where the line begins that parts two parts, or NULL. *behind: where the line ends; *is_last. */
static const char *mail_find_boundary(span s, span boundary, const char **behind, int *is_last) {
  const char *p = s.p, *q;
  while ((p = (const char *)memmem(p, (size_t)(s.end - p), boundary.p, span_size(boundary))) != NULL) {
    q = p + span_size(boundary);
    *is_last = s.end - q >= 2 && q[0] == '-' && q[1] == '-';
    if (*is_last) q += 2;
    if ((p == s.p || p[-1] == '\n') && (q == s.end || mail_is_blank(*q))) {
      const char *nl = q < s.end ? (const char *)memchr(q, '\n', (size_t)(s.end - q)) : NULL;
      *behind = nl ? nl + 1 : s.end;
      return p;
    }
    p++;
  }
  return NULL;
}

/* Appends a part of several: its fields say what it is. */
static void mail_put_part(mail *m, span s, int in_digest) {
  mail_entity e;
  span name, value;
  memset(&e, 0, sizeof e);
  if (s.p < s.end && s.end[-1] == '\n') s.end--; /* the line's end before a boundary belongs to that */
  if (s.p < s.end && s.end[-1] == '\r') s.end--;
  while (mail_next_field(&s, &name, &value)) {
    if (span_is(name, "content-type")) e.type = span_trim(value);
    else if (span_is(name, "content-transfer-encoding")) e.transfer = span_trim(value);
    else if (span_is(name, "content-disposition")) e.disposition = value;
    else if (span_is(name, "content-description")) mail_put_field(m, value);
  }
  e.body = s;
  mail_put_entity(m, &e, in_digest);
}

/* Appends the parts between lines of a boundary. What stands before the first of these is for programs that know no
 * parts; where there is none, it is the text. */
static void mail_put_parts(mail *m, span body, span boundary, int are_digest) {
  const char *behind = NULL;
  int is_last = 0;
  const char *p = mail_find_boundary(body, boundary, &behind, &is_last);
  mail_entity whole;
  if (!p) {
    memset(&whole, 0, sizeof whole);
    whole.body = body;
    mail_put_entity(m, &whole, 0);
  }
  while (p && !is_last) {
    span part = {behind, body.end}, rest = {behind, body.end};
    p = mail_find_boundary(rest, boundary, &behind, &is_last);
    if (p) part.end = p;
    if (m->parts++ == MAIL_PARTS) {
      m->cut = "a message of more than 1,000 parts: the others are left out";
      return;
    }
    mail_put_part(m, part, are_digest);
  }
}

/* Returns the body as it was before it was encoded for its way. */
static span mail_decode_body(const mail_entity *e, byte_buf *room) {
  span s = e->body;
  if (span_begins(e->transfer, "quoted-printable")) mail_put_quoted(room, s, 0);
  else if (span_begins(e->transfer, "base64")) mail_put_base64(room, s);
  else return s;
  s.p = room->p ? room->p : e->body.p;
  s.end = s.p + room->n;
  return s;
}

/* Appends a text, and ends its line. */
static void mail_put_text(mail *m, const mail_entity *e, int is_html) {
  byte_buf room, text, charset;
  int is_plain;
  const char *why = NULL;
  span raw, named = {NULL, NULL};
  memset(&room, 0, sizeof room);
  memset(&text, 0, sizeof text);
  memset(&charset, 0, sizeof charset);
  raw = mail_decode_body(e, &room);
  if (mail_find_parameter(m, e->type, "charset", &is_plain)) {
    charset = m->bytes;
    memset(&m->bytes, 0, sizeof m->bytes);
    named.p = charset.p;
    named.end = charset.p + charset.n;
  }
  if (mail_put_charset(m, &text, named, raw.p, span_size(raw))) text.n = 0; /* it is no text, whatever is said of it */
  if (is_html && text.n) why = convert_html(text.p, text.n, m->out);
  else bytes_add(m->out, text.p, text.n);
  if (text.n && !why) bytes_char(m->out, '\n');
  if (room.failed || text.failed) m->out->failed = 1;
  bytes_free(&room);
  bytes_free(&text);
  bytes_free(&charset);
}

/* Appends a message that is a part of another. */
static void mail_put_inner(mail *m, const mail_entity *e) {
  byte_buf room;
  memset(&room, 0, sizeof room);
  mail_put_message(m, mail_decode_body(e, &room));
  if (room.failed) m->out->failed = 1;
  bytes_free(&room);
}

/* Returns whether there are parts, and their boundary with the signs before it, in *boundary. */
static int mail_has_parts(mail *m, const mail_entity *e, byte_buf *boundary) {
  int is_plain;
  memset(boundary, 0, sizeof *boundary);
  if (!span_begins(e->type, "multipart/") || !mail_find_parameter(m, e->type, "boundary", &is_plain) || !m->bytes.n)
    return 0;
  bytes_add(boundary, "--", 2);
  bytes_add(boundary, m->bytes.p, m->bytes.n);
  if (boundary->failed) m->out->failed = 1;
  return !boundary->failed;
}

static void mail_put_entity(mail *m, const mail_entity *e, int in_digest) {
  const int is_named = memchr(e->type.p ? e->type.p : "", '/', span_size(e->type)) != NULL;
  const int is_message =
      span_begins(e->type, "message/rfc822") || span_begins(e->type, "message/global") || (!is_named && in_digest);
  byte_buf boundary;
  mail_put_file_name(m, e);
  if (m->depth == MAIL_DEPTH) {
    m->cut = "parts within parts, more than 32 deep, are left out";
    return;
  }
  m->depth++;
  if (mail_has_parts(m, e, &boundary)) {
    const span line = {boundary.p, boundary.p + boundary.n};
    mail_put_parts(m, e->body, line, span_begins(e->type, "multipart/digest"));
  } else if (is_message) {
    mail_put_inner(m, e);
  } else if (span_begins(e->type, "text/html") || span_begins(e->type, "application/xhtml")) {
    mail_put_text(m, e, 1);
  } else if (!is_named || span_begins(e->type, "text/") || span_begins(e->type, "message/") ||
      span_begins(e->type, "multipart/")) {
    mail_put_text(m, e, 0);
  }
  bytes_free(&boundary);
  m->depth--;
}

/* ---- messages ---------------------------------------------------------------------------------- */

/* Returns whether a field is one that programs write for programs. Any other is indexed, also one of an own name. */
static int mail_is_for_programs(span name) {
  static const char *const begins[] = {"arc-", "content-", "dkim-", "domainkey-", "received", "list-", "x-"};
  static const char *const whole[] = {"authentication-results", "autocrypt", "auto-submitted", "bytes", "cancel-lock",
      "delivered-to", "envelope-to", "errors-to", "face", "feedback-id", "in-reply-to", "lines", "mime-version",
      "nntp-posting-date", "nntp-posting-host", "original-recipient", "path", "precedence", "references", "return-path",
      "status", "thread-index", "user-agent", "xref"};
  size_t i;
  if (span_is(name, "list-id") || span_is(name, "x-label") || span_is(name, "x-keywords") ||
      span_is(name, "content-description"))
    return 0;
  for (i = 0; i < sizeof begins / sizeof *begins; i++)
    if (span_begins(name, begins[i])) return 1;
  for (i = 0; i < sizeof whole / sizeof *whole; i++)
    if (span_is(name, whole[i])) return 1;
  return 0;
}

static void mail_put_message(mail *m, span s) {
  mail_entity e;
  span rest = s, name, value;
  memset(&e, 0, sizeof e);
  while (mail_next_field(&rest, &name, &value))
    if (span_is(name, "subject")) mail_put_field(m, value);
  rest = s;
  while (mail_next_field(&rest, &name, &value)) {
    if (span_is(name, "content-type")) e.type = span_trim(value);
    else if (span_is(name, "content-transfer-encoding")) e.transfer = span_trim(value);
    else if (span_is(name, "content-disposition")) e.disposition = value;
    else if (!span_is(name, "subject") && !mail_is_for_programs(name)) mail_put_field(m, value);
  }
  bytes_char(m->out, '\n');
  e.body = rest;
  mail_put_entity(m, &e, 0);
}

/* Takes the line off a message that begins it in an mbox (RFC 4155, appendix A). */
static span mail_without_from(span s) {
  span line, rest = s;
  return mail_next_line(&rest, &line) && convert_begins_mail(line.p, span_size(line)) ? rest : s;
}

const char *convert_mail(const char *text, size_t n, byte_buf *out) {
  const span all = {text, text + n};
  mail m;
  memset(&m, 0, sizeof m);
  m.out = out;
  mail_put_message(&m, mail_without_from(all));
  if (m.bytes.failed || m.text.failed) out->failed = 1;
  bytes_free(&m.bytes);
  bytes_free(&m.text);
  return m.cut;
}

/* ---- fields as values -------------------------------------------------------------------------- */

static int mail_has_addresses(span name) {
  static const char *const names[] = {"from", "to", "cc", "bcc", "reply-to", "sender", "resent-from", "resent-to"};
  size_t i;
  for (i = 0; i < sizeof names / sizeof *names; i++)
    if (span_is(name, names[i])) return 1;
  return 0;
}

/* Steps over a string in quotes or a comment that begins at p; returns p where neither does. */
static const char *mail_pass(const char *p, const char *end) {
  unsigned depth = 0;
  if (p < end && *p == '"') {
    for (p++; p < end && *p != '"'; p++)
      if (*p == '\\' && p + 1 < end) p++;
    return p < end ? p + 1 : end;
  }
  if (p == end || *p != '(') return p;
  for (; p < end; p++) {
    if (*p == '\\' && p + 1 < end) p++;
    else if (*p == '(') depth++;
    else if (*p == ')' && !--depth) return p + 1;
  }
  return end;
}

/* Takes the next address of a list (RFC 5322, section 3.4): what stands in angles, or all without comments; the name of
 * a group is none. 0: there are no more. */
static int mail_next_address(span *rest, byte_buf *out) {
  const size_t before = out->n;
  const char *p = rest->p;
  int angles = 0, done = 0;
  while (p < rest->end && *p != ',' && *p != ';') {
    const char *behind = mail_pass(p, rest->end);
    if (behind > p && *p == '(') {
      p = behind;
      continue;
    }
    if (behind == p) behind++;
    if (*p == '<') out->n = before, angles = 1;
    else if (*p == '>' && angles) done = 1;
    else if (*p == ':' && !angles) out->n = before;
    else if (!done && !mail_is_blank(*p)) bytes_add(out, p, (size_t)(behind - p));
    p = behind;
  }
  if (p == rest->p && p == rest->end) return 0;
  rest->p = p < rest->end ? p + 1 : p;
  return 1;
}

int convert_mail_field(const char *text, size_t n, const char *field, size_t i, byte_buf *out) {
  const span all = {text, text + n};
  const size_t before = out->n;
  span rest = mail_without_from(all), name, value;
  mail m;
  int found = 0;
  memset(&m, 0, sizeof m);
  m.out = out;
  while (!found && mail_next_field(&rest, &name, &value)) {
    if (!span_is(name, field)) continue;
    if (!mail_has_addresses(name)) {
      found = !i;
      if (!i--) mail_put_words(&m, span_trim(value));
      continue;
    }
    while (!found && mail_next_address(&value, out)) {
      if (out->n > before) found = !i--;
      if (!found) out->n = before;
    }
  }
  if (m.bytes.failed || m.text.failed) out->failed = 1;
  bytes_free(&m.bytes);
  bytes_free(&m.text);
  return found;
}

/* ---- what is mail ------------------------------------------------------------------------------ */

int convert_begins_mail(const char *line, size_t n) {
  size_t i;
  if (n < 5 || memcmp(line, "From ", 5) != 0) return 0;
  for (i = 6; i + 3 <= n; i++) /* it has the time of a clock */
    if (line[i] == ':' && line[i - 1] >= '0' && line[i - 1] <= '9' && line[i + 1] >= '0' && line[i + 1] <= '9' &&
        line[i + 2] >= '0' && line[i + 2] <= '9')
      return 1;
  return 0;
}

int convert_is_mail(const char *text, size_t n) {
  static const char *const names[] = {"from", "to", "cc", "subject", "date", "message-id", "received", "return-path",
      "delivered-to", "mime-version", "sender", "newsgroups"};
  const span all = {text, text + n};
  span rest = mail_without_from(all), name, value;
  unsigned found = 0, count = 0;
  size_t i;
  while (mail_next_field(&rest, &name, &value))
    for (i = 0; i < sizeof names / sizeof *names; i++)
      if (span_is(name, names[i]) && !(found >> i & 1)) found |= 1u << i, count++;
  return count >= 2 || (count && rest.p > text && convert_begins_mail(text, n < 1000 ? n : 1000));
}
