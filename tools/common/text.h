/* text.h - writes names and texts of others so that they cannot act on a terminal or break a format.
 *
 * Names, paths, words and messages may hold any bytes. What is not harmless is escaped: bytes that are not
 * UTF-8, the control characters U+0000 to U+001F and U+007F to U+009F, the line and paragraph separators, and
 * the characters that turn the direction of writing (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to
 * U+2069). The command and the mount both write through these functions.
 */
#ifndef GPUIR_TEXT_H
#define GPUIR_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum text_form {
  TEXT_TSV, /* a field: \t \n \r \\, and \xhh for each byte of anything else; gives back every byte */
  TEXT_JSON, /* the inside of a string: \" \\ \u00hh, and \udchh for a byte that is not UTF-8; gives back every byte */
  TEXT_MESSAGE /* a line for people: as TEXT_TSV, but tabs and backslashes stay as they are */
} text_form;

/* Returns the length of the well-formed UTF-8 character at text[0..n), n > 0, or 0 when there is none. */
size_t text_utf8(const char *text, size_t n);
int text_is_utf8(const char *s, size_t n);

/* Writes a character's bytes. Returns their number. */
static inline size_t text_put_utf8(unsigned long c, char out[4]) {
  static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};
  const size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  size_t i;
  for (i = n; i-- > 1; c >>= 6) out[i] = (char)(0x80 | (c & 63));
  out[0] = (char)(first[n] | c);
  return n;
}

/* Returns the value of a hexadecimal digit, or -1. */
static inline int text_hex(int c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Returns the length of the character at s[0..n), n > 0, or 1 for a byte that is none; *harmless says whether
 * it may be printed. */
size_t text_next(const char *s, size_t n, int *harmless);

/* Returns the length of the longest part of s[0..n), from its start, that stands for itself. */
size_t text_plain(text_form form, const char *s, size_t n);

#define TEXT_ESCAPE 16 /* bytes of the longest escape: \xhh of each of four bytes */
/* Writes the escape of the character at s[0..n), where text_plain has ended, and its length to *out_len.
 * Returns how many bytes of s it stands for. */
size_t text_escape(text_form form, const char *s, size_t n, char out[TEXT_ESCAPE], size_t *out_len);

#define TEXT_GROUPED 27 /* bytes of a number with commas */
/* Writes a number, with a comma between each three digits. Returns `out`. */
const char *text_grouped(uint64_t n, char out[TEXT_GROUPED]);

/* Takes the next n bytes of what is written. */
typedef void (*text_put)(void *sink, const char *bytes, size_t n);

/* Writes s[0..n), escaped. */
void text_write(text_put put, void *sink, text_form form, const char *s, size_t n);
void text_print(FILE *f, text_form form, const char *s, size_t n);

#endif
