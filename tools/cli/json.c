/* json.c - reads one JSON object a line, strictly (RFC 8259), and keeps its id, title and contents.
 *
 * Bytes outside ASCII are passed on as they are: text analysis decides what they mean.
 */
#include "cli.h"

#include <string.h>

#define MAX_DEPTH 256

typedef struct parser {
  const char *begin, *p, *end;
  const char *why;
} parser;

static int bad(parser *s, const char *why) {
  if (!s->why) s->why = why;
  return -1;
}

static void skip_space(parser *s) {
  while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r')) s->p++;
}

static int peek(const parser *s) { return s->p < s->end ? (unsigned char)*s->p : -1; }

static int hex4(parser *s, unsigned *out) {
  unsigned v = 0;
  for (int i = 0; i < 4; i++, s->p++) {
    int c = peek(s);
    if (c >= '0' && c <= '9') v = v * 16 + (unsigned)(c - '0');
    else if (c >= 'a' && c <= 'f') v = v * 16 + (unsigned)(c - 'a' + 10);
    else if (c >= 'A' && c <= 'F') v = v * 16 + (unsigned)(c - 'A' + 10);
    else return bad(s, "\\u needs four hexadecimal digits");
  }
  *out = v;
  return 0;
}

/* After the backslash. */
static int escape(parser *s, cli_buf *out) {
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  int c = peek(s);
  if (c == 'u') {
    unsigned u = 0, low = 0;
    s->p++;
    if (hex4(s, &u)) return -1;
    if (u >= 0xdc00 && u <= 0xdfff) return bad(s, "a low surrogate without a high one");
    if (u >= 0xd800 && u <= 0xdbff) {
      if (s->end - s->p < 2 || s->p[0] != '\\' || s->p[1] != 'u') return bad(s, "a high surrogate without a low one");
      s->p += 2;
      if (hex4(s, &low)) return -1;
      if (low < 0xdc00 || low > 0xdfff) return bad(s, "a high surrogate without a low one");
      u = 0x10000 + ((u - 0xd800) << 10) + (low - 0xdc00);
    }
    if (out) cli_buf_utf8(out, u);
    return 0;
  }
  const char *at = c > 0 ? strchr(from, c) : NULL;
  if (!at) return bad(s, "an unknown escape");
  if (out) cli_buf_char(out, to[at - from]);
  s->p++;
  return 0;
}

/* A string, appended to `out` unless that is NULL. */
static int string(parser *s, cli_buf *out) {
  if (peek(s) != '"') return bad(s, "a string is missing");
  s->p++;
  for (;;) {
    const char *from = s->p;
    while (s->p < s->end && *s->p != '"' && *s->p != '\\' && (unsigned char)*s->p >= 32) s->p++;
    if (out) cli_buf_add(out, from, (size_t)(s->p - from));
    if (s->p == s->end) return bad(s, "a string does not end");
    if (*s->p == '"') {
      s->p++;
      return 0;
    }
    if (*s->p != '\\') return bad(s, "a control character in a string");
    s->p++;
    if (escape(s, out)) return -1;
  }
}

static size_t digits(parser *s) {
  const char *from = s->p;
  while (s->p < s->end && *s->p >= '0' && *s->p <= '9') s->p++;
  return (size_t)(s->p - from);
}

static int number(parser *s) {
  if (peek(s) == '-') s->p++;
  if (peek(s) == '0') s->p++;
  else if (!digits(s)) return bad(s, "a value is missing");
  if (peek(s) == '.') {
    s->p++;
    if (!digits(s)) return bad(s, "a number without digits after its point");
  }
  if (peek(s) == 'e' || peek(s) == 'E') {
    s->p++;
    if (peek(s) == '+' || peek(s) == '-') s->p++;
    if (!digits(s)) return bad(s, "a number without digits in its exponent");
  }
  return 0;
}

static int literal(parser *s, const char *word) {
  size_t n = strlen(word);
  if ((size_t)(s->end - s->p) < n || memcmp(s->p, word, n)) return bad(s, "a value is missing");
  s->p += n;
  return 0;
}

/* Any value that is not kept. Nesting is tracked in bits instead of by recursion. */
static int skip_value(parser *s) {
  unsigned char object[MAX_DEPTH];
  size_t depth = 0;
  for (;;) {
    int c, open = 0;
    skip_space(s);
    c = peek(s);
    if (c == '{' || c == '[') {
      if (depth == MAX_DEPTH) return bad(s, "nested too deeply");
      object[depth++] = c == '{';
      s->p++;
      skip_space(s);
      open = peek(s) != (c == '{' ? '}' : ']');
    } else if (c == '"' ? string(s, NULL)
            : c == 't'  ? literal(s, "true")
            : c == 'f'  ? literal(s, "false")
            : c == 'n'  ? literal(s, "null")
                        : number(s)) {
      return -1;
    }
    /* After a value: close what ends here, or go on with the next member. */
    while (!open) {
      if (!depth) return 0;
      skip_space(s);
      c = peek(s);
      if (c == (object[depth - 1] ? '}' : ']')) {
        depth--;
        s->p++;
      } else if (c == ',') {
        s->p++;
        open = 1;
      } else {
        return bad(s, object[depth - 1] ? "',' or '}' is missing" : "',' or ']' is missing");
      }
    }
    if (object[depth - 1]) {
      skip_space(s);
      if (string(s, NULL)) return -1;
      skip_space(s);
      if (peek(s) != ':') return bad(s, "':' is missing");
      s->p++;
    }
  }
}

/* Returns whether the key is one of the names, which blanks part. */
static int key_is(const cli_buf *key, const char *names) {
  for (size_t n; *names; names += n + (names[n] == ' ')) {
    n = strcspn(names, " ");
    if (key->n == n && !memcmp(key->p, names, n)) return 1;
  }
  return 0;
}

/* Reads an id: a string or a number. */
static int id_value(parser *s, cli_buf *id) {
  const char *from = s->p;
  id->n = 0; /* of a repeated key the last value counts */
  if (peek(s) == '"') return string(s, id);
  if (peek(s) != '-' && (peek(s) < '0' || peek(s) > '9')) return bad(s, "\"id\" is neither a string nor a number");
  if (number(s)) return -1;
  cli_buf_add(id, from, (size_t)(s->p - from));
  return 0;
}

static int text_value(parser *s, cli_buf *text, const char *why) {
  text->n = 0;
  return peek(s) == '"' ? string(s, text) : bad(s, why);
}

/* What is kept of an object. */
typedef struct record {
  int topic; /* a query, not a document */
  int has_id, has_contents;
  cli_buf key, title;
  cli_buf *id, *contents;
} record;

/* Reads the value of the key that was read. */
static int member(parser *s, record *r) {
  if (key_is(&r->key, r->topic ? "id _id qid query_id" : "id _id")) {
    r->has_id = 1;
    return id_value(s, r->id);
  }
  if (key_is(&r->key, r->topic ? "text query" : "contents text")) {
    r->has_contents = 1;
    return text_value(s, r->contents, r->topic ? "\"text\" is not a string" : "\"contents\" is not a string");
  }
  if (!r->topic && key_is(&r->key, "title") && peek(s) == '"') return text_value(s, &r->title, "");
  return skip_value(s);
}

static int members(parser *s, record *r) {
  skip_space(s);
  if (peek(s) != '{') return bad(s, "not a JSON object");
  s->p++;
  skip_space(s);
  int more = peek(s) != '}';
  if (!more) s->p++;
  while (more) {
    skip_space(s);
    r->key.n = 0;
    if (string(s, &r->key)) return -1;
    skip_space(s);
    if (peek(s) != ':') return bad(s, "':' is missing");
    s->p++;
    skip_space(s);
    if (member(s, r)) return -1;
    skip_space(s);
    more = peek(s) == ',';
    if (!more && peek(s) != '}') return bad(s, "',' or '}' is missing");
    s->p++;
  }
  skip_space(s);
  if (s->p != s->end) return bad(s, "something follows the object");
  if (!r->has_id) return bad(s, "\"id\" (or \"_id\") is missing");
  if (!r->has_contents) return bad(s, "\"contents\" (or \"text\") is missing");
  return 0;
}

int cli_json_record(const char *text, size_t len, int topic, cli_buf *id, cli_buf *contents, const char **why,
    size_t *where) {
  parser s = {text, text, text + len, NULL};
  record r = {topic, 0, 0, {NULL, 0, 0}, {NULL, 0, 0}, id, contents};
  id->n = contents->n = 0;
  int failed = members(&s, &r);
  if (!failed && r.title.n) { /* in front of the text, as its first line */
    cli_buf_char(&r.title, '\n');
    cli_buf_add(&r.title, contents->p, contents->n);
    contents->n = 0;
    cli_buf_add(contents, r.title.p, r.title.n);
  }
  cli_buf_free(&r.key);
  cli_buf_free(&r.title);
  *why = s.why;
  *where = (size_t)(s.p - s.begin) + 1;
  return failed;
}
