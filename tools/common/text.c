/* text.c - UTF-8, and escapes of what is not harmless. */
#include "text.h"

#include <string.h>

size_t text_utf8(const char *text, size_t n) {
  const unsigned char *s = (const unsigned char *)text;
  unsigned char low = 0x80, high = 0xbf;
  size_t need, i;
  if (s[0] < 0x80) return 1;
  if (s[0] >= 0xc2 && s[0] <= 0xdf) need = 2;
  else if (s[0] >= 0xe0 && s[0] <= 0xef) need = 3;
  else if (s[0] >= 0xf0 && s[0] <= 0xf4) need = 4;
  else return 0;
  /* The second byte keeps out overlong forms, surrogates and what lies beyond U+10FFFF. */
  if (s[0] == 0xe0) low = 0xa0;
  if (s[0] == 0xed) high = 0x9f;
  if (s[0] == 0xf0) low = 0x90;
  if (s[0] == 0xf4) high = 0x8f;
  if (n < need || s[1] < low || s[1] > high) return 0;
  for (i = 2; i < need; i++)
    if ((s[i] & 0xc0) != 0x80) return 0;
  return need;
}

int text_is_utf8(const char *s, size_t n) {
  size_t i, len;
  for (i = 0; i < n; i += len) {
    while (n - i >= 8) { /* most texts are ASCII for the most part */
      unsigned long long word;
      memcpy(&word, s + i, 8);
      if (word & 0x8080808080808080u) break;
      i += 8;
    }
    if (i == n) break;
    len = text_utf8(s + i, n - i);
    if (!len) return 0;
  }
  return 1;
}

/* Returns the number of a well-formed character of `len` bytes. */
static unsigned long code_point(const char *text, size_t len) {
  static const unsigned char first[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  const unsigned char *s = (const unsigned char *)text;
  unsigned long c = s[0] & first[len];
  size_t i;
  for (i = 1; i < len; i++) c = c << 6 | (s[i] & 0x3fu);
  return c;
}

static int is_harmless(unsigned long c) {
  if (c < 0x20 || (c >= 0x7f && c <= 0x9f)) return 0;
  if (c < 0x061c) return 1;
  return c != 0x061c && c != 0x200e && c != 0x200f && (c < 0x2028 || c > 0x202e) && (c < 0x2066 || c > 0x2069);
}

size_t text_next(const char *s, size_t n, int *harmless) {
  size_t len = text_utf8(s, n);
  *harmless = len && is_harmless(code_point(s, len));
  return len ? len : 1;
}

size_t text_plain(text_form form, const char *s, size_t n) {
  size_t i = 0;
  while (i < n) {
    int harmless;
    size_t len = text_next(s + i, n - i, &harmless);
    if (s[i] == '\t' && form == TEXT_MESSAGE) harmless = 1;
    if (s[i] == '\\' && form != TEXT_MESSAGE) harmless = 0;
    if (s[i] == '"' && form == TEXT_JSON) harmless = 0;
    if (!harmless) break;
    i += len;
  }
  return i;
}

static const char hex[] = "0123456789abcdef";

/* Writes \u and four digits: all that is escaped lies below U+10000. A byte 0xhh that is not UTF-8 becomes the low
 * surrogate U+DChh, as Python's `surrogateescape` writes it: no UTF-8 has one, and no high one is ever written before
 * it, so that each byte comes back. */
static size_t escape_json(const char *s, size_t len, char *out) {
  unsigned long c = len ? code_point(s, len) : 0xdc00u + (unsigned char)*s;
  size_t i;
  if (c == '"' || c == '\\') {
    out[0] = '\\';
    out[1] = (char)c;
    return 2;
  }
  memcpy(out, "\\u", 2);
  for (i = 0; i < 4; i++) out[2 + i] = hex[c >> (12 - 4 * i) & 15];
  return 6;
}

size_t text_escape(text_form form, const char *s, size_t n, char out[TEXT_ESCAPE], size_t *out_len) {
  static const char letters[] = "\tt\nn\rr\\\\";
  size_t len = text_utf8(s, n), i;
  if (form == TEXT_JSON) {
    *out_len = escape_json(s, len, out);
    return len ? len : 1;
  }
  for (i = 0; letters[i]; i += 2)
    if (letters[i] == s[0]) {
      out[0] = '\\';
      out[1] = letters[i + 1];
      *out_len = 2;
      return 1;
    }
  if (!len) len = 1;
  for (i = 0; i < len; i++) {
    memcpy(out + 4 * i, "\\x", 2);
    out[4 * i + 2] = hex[(unsigned char)s[i] >> 4];
    out[4 * i + 3] = hex[(unsigned char)s[i] & 15];
  }
  *out_len = 4 * len;
  return len;
}

void text_write(text_put put, void *sink, text_form form, const char *s, size_t n) {
  while (n) {
    char escape[TEXT_ESCAPE];
    size_t plain = text_plain(form, s, n), len;
    if (plain) put(sink, s, plain);
    s += plain;
    n -= plain;
    if (!n) break;
    plain = text_escape(form, s, n, escape, &len);
    put(sink, escape, len);
    s += plain;
    n -= plain;
  }
}

static void put_file(void *file, const char *bytes, size_t n) { fwrite(bytes, 1, n, (FILE *)file); }

void text_print(FILE *f, text_form form, const char *s, size_t n) { text_write(put_file, f, form, s, n); }

const char *text_grouped(uint64_t n, char out[TEXT_GROUPED]) {
  char digits[24];
  const int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);
  char *to = out;
  for (int i = 0; i < len; i++) {
    if (i && (len - i) % 3 == 0) *to++ = ',';
    *to++ = digits[i];
  }
  *to = 0;
  return out;
}
