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
/* Returns from how many bytes of the file text[0..n) was made; it is whole characters. */
size_t encoding_size(text_encoding e, const char *text, size_t n);

#endif
