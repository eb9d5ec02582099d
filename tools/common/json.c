/* json.c - reads objects of JSON. */
#include "json.h"

#include "text.h"

static int bad(json_reader *j, const char *why) {
  if (!j->why) j->why = why;
  return -1;
}

static void skip_space(json_reader *j) {
  while (j->p < j->end && (*j->p == ' ' || *j->p == '\t' || *j->p == '\n' || *j->p == '\r')) j->p++;
}

static int peek(const json_reader *j) { return j->p < j->end ? (unsigned char)*j->p : -1; }

/* ---- strings ----------------------------------------------------------------------------------- */

/* Checks what stands behind a backslash. */
static int check_escape(json_reader *j) {
  const int c = peek(j);
  int i;
  if (c <= 0 || !strchr("\"\\/bfnrtu", c)) return bad(j, "an unknown escape");
  j->p++;
  for (i = 0; c == 'u' && i < 4; i++, j->p++)
    if (text_hex(peek(j)) < 0) return bad(j, "\\u needs four hexadecimal digits");
  return 0;
}

/* Reads a string; *raw gets what is between its quotes. */
static int read_string(json_reader *j, const char **raw, size_t *len) {
  if (peek(j) != '"') return bad(j, "a string is missing");
  *raw = ++j->p;
  for (;;) {
    while (j->p < j->end && *j->p != '"' && *j->p != '\\' && (unsigned char)*j->p >= 32) j->p++;
    if (j->p == j->end) return bad(j, "a string does not end");
    if (*j->p == '"') break;
    if (*j->p == '\n') return bad(j, "a string does not end");
    if (*j->p != '\\') return bad(j, "a control character in a string");
    j->p++;
    if (check_escape(j)) return -1;
  }
  *len = (size_t)(j->p++ - *raw);
  return 0;
}

/* Returns the number of an escape's four digits. */
static unsigned long four_digits(const char *p) {
  unsigned long c = 0;
  int i;
  for (i = 0; i < 4; i++) c = c * 16 + (unsigned long)text_hex(p[i]);
  return c;
}

/* Decodes "\uXXXX" at p, with the low surrogate that follows a high one. Returns its bytes. */
static size_t unicode_escape(const char *p, size_t n, unsigned long *c) {
  unsigned long low;
  *c = four_digits(p + 2);
  if (*c < 0xd800 || *c > 0xdfff) return 6;
  low = n >= 12 && p[6] == '\\' && p[7] == 'u' ? four_digits(p + 8) : 0;
  if (*c > 0xdbff || low < 0xdc00 || low > 0xdfff) {
    *c = 0xfffd;
    return 6;
  }
  *c = 0x10000 + ((*c - 0xd800) << 10) + (low - 0xdc00);
  return 12;
}

void json_unescape(made_text *out, const char *raw, size_t len) {
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  const char *p = raw, *end = raw + len;
  while (p < end) {
    const char *slash = (const char *)memchr(p, '\\', (size_t)(end - p));
    unsigned long c;
    made_add(out, p, (size_t)((slash ? slash : end) - p), p);
    if (!slash) return;
    p = slash;
    if (p[1] == 'u') {
      const size_t n = unicode_escape(p, (size_t)(end - p), &c);
      made_utf8(out, c, p);
      p += n;
    } else {
      made_char(out, to[strchr(from, p[1]) - from], p);
      p += 2;
    }
  }
}

/* ---- numbers and literals ---------------------------------------------------------------------- */

static size_t digits(json_reader *j) {
  const char *from = j->p;
  while (j->p < j->end && *j->p >= '0' && *j->p <= '9') j->p++;
  return (size_t)(j->p - from);
}

static int json_number(json_reader *j) {
  if (peek(j) == '-') j->p++;
  if (peek(j) == '0') j->p++;
  else if (!digits(j)) return bad(j, "a value is missing");
  if (peek(j) == '.') {
    j->p++;
    if (!digits(j)) return bad(j, "a number without digits after its point");
  }
  if (peek(j) == 'e' || peek(j) == 'E') {
    j->p++;
    if (peek(j) == '+' || peek(j) == '-') j->p++;
    if (!digits(j)) return bad(j, "a number without digits in its exponent");
  }
  return 0;
}

static int literal(json_reader *j, const char *word) {
  const size_t n = strlen(word);
  if ((size_t)(j->end - j->p) < n || memcmp(j->p, word, n) != 0) return bad(j, "a value is missing");
  j->p += n;
  return 0;
}

/* ---- objects ----------------------------------------------------------------------------------- */

/* An object or array that is open, and how long the path was where it began. */
typedef struct json_level {
  int object;
  size_t path;
} json_level;

static int json_tell(json_reader *j, json_kind kind, unsigned depth, const char *raw, size_t len) {
  json_event e;
  e.kind = kind;
  e.depth = depth;
  e.path = j->path.p ? j->path.p : "";
  e.path_len = j->path.n;
  e.raw = raw;
  e.len = len;
  if (j->path.failed) return bad(j, "there is no memory for its name");
  return j->take(j->user, &e) ? bad(j, "it was refused") : 0;
}

/* Reads a value that is neither an object nor an array. */
static int scalar(json_reader *j, unsigned depth) {
  const char *raw = j->p;
  size_t len = 0;
  const int c = peek(j);
  if (c == '"') return read_string(j, &raw, &len) ? -1 : json_tell(j, JSON_STRING, depth, raw, len);
  if (c == 't' || c == 'f' || c == 'n') {
    if (literal(j, c == 't' ? "true" : c == 'f' ? "false" : "null")) return -1;
    return json_tell(j, JSON_LITERAL, depth, raw, (size_t)(j->p - raw));
  }
  return json_number(j) ? -1 : json_tell(j, JSON_NUMBER, depth, raw, (size_t)(j->p - raw));
}

/* Reads a member's name, which ends the path from then on. */
static int read_name(json_reader *j, const json_level *in, unsigned depth) {
  const char *raw;
  size_t len;
  made_text whole;
  skip_space(j);
  if (read_string(j, &raw, &len)) return -1;
  skip_space(j);
  if (peek(j) != ':') return bad(j, "':' is missing");
  j->p++;
  j->path.n = in->path;
  if (j->path.n) bytes_char(&j->path, '.');
  if (!memchr(raw, '\\', len)) {
    bytes_add(&j->path, raw, len);
  } else {
    memset(&whole, 0, sizeof whole);
    whole.text = j->path;
    json_unescape(&whole, raw, len);
    j->path = whole.text;
  }
  return json_tell(j, JSON_MEMBER, depth, raw, len);
}

/* Opens an object or array. Returns whether something stands in it; -1: an error. */
static int open_level(json_reader *j, json_level *levels, unsigned *depth) {
  const int object = peek(j) == '{';
  if (*depth == JSON_DEPTH) return bad(j, "nested too deeply");
  levels[*depth].object = object;
  levels[*depth].path = j->path.n;
  ++*depth;
  j->p++;
  if (json_tell(j, object ? JSON_OBJECT : JSON_ARRAY, *depth, j->p - 1, 1)) return -1;
  skip_space(j);
  return peek(j) != (object ? '}' : ']');
}

/* Goes on behind a value: closes what ends there. Returns 1 before the next value or name, 0 behind the whole. */
static int close_levels(json_reader *j, const json_level *levels, unsigned *depth) {
  for (; *depth; --*depth) {
    const json_level *in = &levels[*depth - 1];
    int c;
    skip_space(j);
    c = peek(j);
    if (c == ',') {
      j->p++;
      return 1;
    }
    if (c != (in->object ? '}' : ']')) return bad(j, in->object ? "',' or '}' is missing" : "',' or ']' is missing");
    j->p++;
    j->path.n = in->path;
  }
  return 0;
}

/* Reads a value with all that is in it. */
static int read_value(json_reader *j) {
  json_level levels[JSON_DEPTH];
  unsigned depth = 0;
  for (;;) {
    int more = 0;
    skip_space(j);
    if (peek(j) == '{' || peek(j) == '[') more = open_level(j, levels, &depth);
    else if (scalar(j, depth)) return -1;
    if (!more) more = close_levels(j, levels, &depth);
    if (more <= 0) return more;
    if (levels[depth - 1].object && read_name(j, &levels[depth - 1], depth)) return -1;
  }
}

size_t json_object(json_reader *j, const char *text, size_t len) {
  int failed;
  j->begin = j->p = text;
  j->end = text + len;
  j->why = NULL;
  j->short_of = 0;
  j->path.n = 0;
  skip_space(j);
  failed = peek(j) != '{' ? bad(j, "not a JSON object") : read_value(j);
  j->where = (size_t)(j->p - j->begin) + 1;
  if (!failed) return (size_t)(j->p - j->begin);
  j->short_of = j->p == j->end;
  return 0;
}

void json_free(json_reader *j) { bytes_free(&j->path); }
