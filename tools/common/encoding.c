/* encoding.c - tells encodings apart, and makes UTF-8 of them. */
#include "encoding.h"

#include "text.h"

#define NUL_BYTES 8192u /* a NUL byte among these is not of a text */

/* Windows-1252 where it differs from ISO 8859-1: 0x80 to 0x9f; 0: no character. */
static const unsigned short windows[32] = {0x20ac, 0, 0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030,
    0x0160, 0x2039, 0x0152, 0, 0x017d, 0, 0, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014, 0x02dc, 0x2122,
    0x0161, 0x203a, 0x0153, 0, 0x017e, 0x0178};

/* ---- which one it is --------------------------------------------------------------------------- */

/* Returns whether s[0..256) are ASCII. The loop has no way out, so that compilers unroll it or make vectors of it. */
static int is_ascii_256(const char *s) {
  unsigned long long any[2] = {0, 0}, words[2];
  size_t i;
  for (i = 0; i < 256; i += sizeof words) {
    memcpy(words, s + i, sizeof words);
    any[0] |= words[0];
    any[1] |= words[1];
  }
  return !((any[0] | any[1]) & 0x8080808080808080u);
}

/* Returns how many bytes from s[0..n) on are ASCII. Every file is looked at, so long runs are taken by 256 bytes. */
static size_t ascii_run(const char *s, size_t n) {
  size_t i = 0;
  while (n - i >= 256 && is_ascii_256(s + i)) i += 256;
  while (n - i >= 8) {
    unsigned long long word;
    memcpy(&word, s + i, 8);
    if (word & 0x8080808080808080u) break;
    i += 8;
  }
  while (i < n && !(s[i] & 0x80)) i++;
  return i;
}

/* Returns whether s[0..n) may be a character whose end is missing. It is asked at each byte that begins no character,
 * so it must not look at all that follows. */
static int is_cut(const char *s, size_t n) {
  size_t i = 1;
  if (n >= 4 || (unsigned char)s[0] < 0xc2 || (unsigned char)s[0] > 0xf4) return 0;
  while (i < n && ((unsigned char)s[i] & 0xc0) == 0x80) i++;
  return i == n;
}

/* Returns whether nine tenths of the bytes beyond ASCII belong to well-formed UTF-8. The last character may be cut. */
static int is_mostly_utf8(const char *s, size_t n) {
  size_t good = 0, all = 0, i = ascii_run(s, n);
  while (i < n) {
    const size_t len = text_utf8(s + i, n - i);
    if (!len && is_cut(s + i, n - i)) break;
    good += len;
    all += len ? len : 1;
    i += len ? len : 1;
    i += ascii_run(s + i, n - i);
  }
  return good >= all - all / 10;
}

/* Returns whether 99 of 100 bytes are printable in Windows-1252 and none is a control character that no text has. */
static int is_windows_1252(const char *s, size_t n) {
  size_t strange = 0, i;
  for (i = 0; i < n; i++) {
    const unsigned char c = (unsigned char)s[i];
    if (c <= 8) return 0;
    if (c == 0x7f || (c < 32 && (c < 9 || c > 13)) || (c >= 0x80 && c < 0xa0 && !windows[c - 0x80])) strange++;
  }
  return strange <= n / 100;
}

/* Returns the unit of two bytes at p. */
static unsigned long unit(const char *p, int big) {
  const unsigned char *s = (const unsigned char *)p;
  return big ? (unsigned long)s[0] << 8 | s[1] : (unsigned long)s[1] << 8 | s[0];
}

/* No control characters, no halves of pairs. */
int encoding_is_utf16(const char *s, size_t n, int big) {
  size_t strange = 0, i;
  if (n > NUL_BYTES) n = NUL_BYTES;
  for (i = 0; i + 2 <= n; i += 2) {
    const unsigned long c = unit(s + i, big), next = i + 4 <= n ? unit(s + i + 2, big) : 0xdc00;
    if (c < 9 || (c > 13 && c < 32) || c >= 0xfffe || (c >= 0xdc00 && c < 0xe000)) strange++;
    if (c < 0xd800 || c >= 0xdc00) continue;
    if (next >= 0xdc00 && next < 0xe000) i += 2;
    else strange++;
  }
  return strange <= n / 200;
}

/* Returns the encoding if the text behind a mark of two bytes is one, or -1. */
static int guess_utf16(const char *s, size_t n, int big, size_t *mark) {
  *mark = 2;
  if (!encoding_is_utf16(s + 2, n - 2, big)) return -1;
  return big ? ENCODING_UTF16_BE : ENCODING_UTF16_LE;
}

int encoding_lacks_nul(const char *s, size_t n) { return !n || !memchr(s, 0, n < NUL_BYTES ? n : NUL_BYTES); }

int encoding_guess(const char *s, size_t n, size_t *mark) {
  *mark = n >= 3 && !memcmp(s, "\xef\xbb\xbf", 3) ? 3 : 0;
  if (n >= 2 && !memcmp(s, "\xff\xfe", 2) && (n < 4 || s[2] || s[3])) return guess_utf16(s, n, 0, mark);
  if (n >= 2 && !memcmp(s, "\xfe\xff", 2)) return guess_utf16(s, n, 1, mark);
  if (!encoding_lacks_nul(s, n)) return -1;
  if (*mark || is_mostly_utf8(s, n)) return ENCODING_UTF8;
  return is_windows_1252(s, n) ? ENCODING_WINDOWS_1252 : -1;
}

/* ---- decoding ---------------------------------------------------------------------------------- */

static size_t decode_windows(const char *raw, size_t n, byte_buf *out) {
  size_t i = 0;
  while (i < n) {
    const size_t run = ascii_run(raw + i, n - i);
    unsigned long c;
    char to[4];
    bytes_add(out, raw + i, run);
    i += run;
    if (i == n) break;
    c = (unsigned char)raw[i++];
    if (c < 0xa0) c = windows[c - 0x80] ? windows[c - 0x80] : 0xfffd;
    bytes_add(out, to, text_put_utf8(c, to));
  }
  return n;
}

static size_t decode_utf16(const char *raw, size_t n, int big, int last, byte_buf *out) {
  size_t i = 0;
  char *to = bytes_room(out, n / 2 * 3 + 3);
  if (!to) return n;
  while (n - i >= 2) {
    unsigned long c = unit(raw + i, big), low = 0;
    if (c >= 0xd800 && c < 0xdc00 && n - i < 4 && !last) break;
    if (c >= 0xd800 && c < 0xdc00 && n - i >= 4) low = unit(raw + i + 2, big);
    i += 2;
    if (low >= 0xdc00 && low < 0xe000) {
      c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
      i += 2;
    } else if (c >= 0xd800 && c < 0xe000) {
      c = 0xfffd;
    }
    to += text_put_utf8(c, to);
  }
  out->n = (size_t)(to - out->p);
  return last ? n : i; /* a byte that is left over at the end is half a unit, and nothing */
}

size_t encoding_decode(text_encoding e, const char *raw, size_t n, int last, byte_buf *out) {
  switch (e) {
  case ENCODING_WINDOWS_1252: return decode_windows(raw, n, out);
  case ENCODING_UTF16_LE:
  case ENCODING_UTF16_BE: return decode_utf16(raw, n, e == ENCODING_UTF16_BE, last, out);
  default: bytes_add(out, raw, n); return n;
  }
}

size_t encoding_size(text_encoding e, const char *text, size_t n) {
  size_t characters = 0, pairs = 0, i;
  if (e == ENCODING_UTF8) return n;
  for (i = 0; i < n; i++) {
    characters += ((unsigned char)text[i] & 0xc0) != 0x80;
    pairs += (unsigned char)text[i] >= 0xf0;
  }
  return e == ENCODING_WINDOWS_1252 ? characters : 2 * (characters + pairs);
}
