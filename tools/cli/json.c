/* json.c - reads one JSON object a line, strictly (RFC 8259), and keeps its id and contents.
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
    if (c >= '0' && c <= '9')
      v = v * 16 + (unsigned)(c - '0');
    else if (c >= 'a' && c <= 'f')
      v = v * 16 + (unsigned)(c - 'a' + 10);
    else if (c >= 'A' && c <= 'F')
      v = v * 16 + (unsigned)(c - 'A' + 10);
    else
      return bad(s, "\\u needs four hexadecimal digits");
  }
  *out = v;
  return 0;
}

static void put_utf8(cli_buf *b, unsigned c) {
  if (c < 0x80) {
    cli_buf_char(b, (int)c);
  } else if (c < 0x800) {
    cli_buf_char(b, (int)(0xc0 | c >> 6));
    cli_buf_char(b, (int)(0x80 | (c & 63)));
  } else if (c < 0x10000) {
    cli_buf_char(b, (int)(0xe0 | c >> 12));
    cli_buf_char(b, (int)(0x80 | (c >> 6 & 63)));
    cli_buf_char(b, (int)(0x80 | (c & 63)));
  } else {
    cli_buf_char(b, (int)(0xf0 | c >> 18));
    cli_buf_char(b, (int)(0x80 | (c >> 12 & 63)));
    cli_buf_char(b, (int)(0x80 | (c >> 6 & 63)));
    cli_buf_char(b, (int)(0x80 | (c & 63)));
  }
}

/* After the backslash. */
static int escape(parser *s, cli_buf *out) {
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  int c = peek(s);
  if (c == 'u') {
    unsigned u, low;
    s->p++;
    if (hex4(s, &u)) return -1;
    if (u >= 0xdc00 && u <= 0xdfff) return bad(s, "a low surrogate without a high one");
    if (u >= 0xd800 && u <= 0xdbff) {
      if (s->end - s->p < 2 || s->p[0] != '\\' || s->p[1] != 'u')
        return bad(s, "a high surrogate without a low one");
      s->p += 2;
      if (hex4(s, &low)) return -1;
      if (low < 0xdc00 || low > 0xdfff) return bad(s, "a high surrogate without a low one");
      u = 0x10000 + ((u - 0xd800) << 10) + (low - 0xdc00);
    }
    if (out) put_utf8(out, u);
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
  if (peek(s) == '0')
    s->p++;
  else if (!digits(s))
    return bad(s, "a value is missing");
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
    } else if (c == '"'   ? string(s, NULL)
               : c == 't' ? literal(s, "true")
               : c == 'f' ? literal(s, "false")
               : c == 'n' ? literal(s, "null")
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

static int members(parser *s, cli_buf *key, cli_buf *id, cli_buf *contents) {
  int has_id = 0, has_contents = 0;
  skip_space(s);
  if (peek(s) != '{') return bad(s, "not a JSON object");
  s->p++;
  skip_space(s);
  if (peek(s) == '}')
    s->p++;
  else
    for (;;) {
      skip_space(s);
      key->n = 0;
      if (string(s, key)) return -1;
      skip_space(s);
      if (peek(s) != ':') return bad(s, "':' is missing");
      s->p++;
      skip_space(s);
      if (key->n == 2 && !memcmp(key->p, "id", 2)) {
        const char *from = s->p;
        id->n = 0; /* of a repeated key the last value counts */
        has_id = 1;
        if (peek(s) == '"') {
          if (string(s, id)) return -1;
        } else if (peek(s) == '-' || (peek(s) >= '0' && peek(s) <= '9')) {
          if (number(s)) return -1;
          cli_buf_add(id, from, (size_t)(s->p - from));
        } else {
          return bad(s, "\"id\" is neither a string nor a number");
        }
      } else if (key->n == 8 && !memcmp(key->p, "contents", 8)) {
        contents->n = 0;
        has_contents = 1;
        if (peek(s) != '"') return bad(s, "\"contents\" is not a string");
        if (string(s, contents)) return -1;
      } else if (skip_value(s)) {
        return -1;
      }
      skip_space(s);
      if (peek(s) == '}') {
        s->p++;
        break;
      }
      if (peek(s) != ',') return bad(s, "',' or '}' is missing");
      s->p++;
    }
  skip_space(s);
  if (s->p != s->end) return bad(s, "something follows the object");
  if (!has_id) return bad(s, "\"id\" is missing");
  if (!has_contents) return bad(s, "\"contents\" is missing");
  return 0;
}

int cli_json_record(const char *text, size_t len, cli_buf *id, cli_buf *contents, const char **why,
                    size_t *where) {
  parser s = {text, text, text + len, NULL};
  cli_buf key = {NULL, 0, 0};
  id->n = contents->n = 0;
  int r = members(&s, &key, id, contents);
  cli_buf_free(&key);
  *why = s.why;
  *where = (size_t)(s.p - s.begin) + 1;
  return r;
}
