/* encoding.h - the encodings of text files, and their bytes as UTF-8. */
#ifndef GPUIR_ENCODING_H
#define GPUIR_ENCODING_H

#include "bytes.h"

/* The numbers are stored in indexes. */
typedef enum text_encoding {
  ENCODING_UTF8, /* as it is: what is no UTF-8 in it stays */
  ENCODING_WINDOWS_1252, /* and so ISO 8859-1, whose printable characters it has */
  ENCODING_UTF16_LE,
  ENCODING_UTF16_BE,
  ENCODING_COUNT
} text_encoding;

/* Says which encoding the text has that begins with s[0..n); -1: it is no text. *mark: bytes of its byte order
 * mark. */
int encoding_guess(const char *s, size_t n, size_t *mark);
/* Appends the text that raw[0..n) is, as far as its characters are whole; with `last` all of it. What is no character
 * becomes U+FFFD. Returns the bytes of raw that were taken. */
size_t encoding_decode(text_encoding e, const char *raw, size_t n, int last, byte_buf *out);
/* Returns whether 99 of 100 units of the begin of a file are those of a text in UTF-16, of either order. */
int encoding_is_utf16(const char *s, size_t n, int big);
/* Returns whether there is no NUL byte in the begin of a file, which no other text has. */
int encoding_lacks_nul(const char *s, size_t n);
/* Returns from how many bytes of the file text[0..n) was made; it is whole characters. */
size_t encoding_size(text_encoding e, const char *text, size_t n);

/* ---- encodings that have a name ---- */

/* Returns the encoding that name[0..n) calls, in letters of either case; -1: none that is known. The numbers are stored
 * in indexes. */
int encoding_find(const char *name, size_t n);
const char *encoding_name(
    int found); /* the preferred one; NULL: there are fewer encodings, and this is the end of them */
int encoding_own(int found); /* the text_encoding that it is; -1: it is another */
/* Returns whether s[0..n), the begin of a file without a byte order mark, may be a text in that encoding. */
int encoding_fits(int found, const char *s, size_t n);
int encoding_is_there(int found); /* whether the C library converts it */
/* Appends all of raw[0..n) as UTF-8. What is no character becomes U+FFFD. 0; ENCODING_LACKING: the C library does not
 * convert it; ENCODING_OTHER: it is said to be UTF-8, and is not. */
enum { ENCODING_LACKING = -1, ENCODING_OTHER = -2 };
int encoding_convert(int found, const char *raw, size_t n, byte_buf *out);

#endif
