/* common.c - the growable buffer, and messages. */
#include "common.h"

#include "../tools/common/text.h"

#include <stdarg.h>
#include <stdio.h>

static int buf_reserve(buf *b, size_t n) {
  size_t cap;
  char *data;
  if (b->error) return b->error;
  if (n > b->max || b->len > b->max - n) return b->error = EFBIG;
  if (b->len + n <= b->cap) return 0;
  cap = b->cap ? b->cap : 256;
  while (cap < b->len + n) cap = cap > SIZE_MAX / 2 ? b->len + n : cap * 2;
  data = realloc(b->data, cap);
  if (!data) return b->error = ENOMEM;
  b->data = data;
  b->cap = cap;
  return 0;
}

void buf_put(buf *b, const void *bytes, size_t n) {
  if (!n || buf_reserve(b, n)) return;
  memcpy(b->data + b->len, bytes, n);
  b->len += n;
}

void buf_puts(buf *b, const char *text) { buf_put(b, text, strlen(text)); }

void buf_printf(buf *b, const char *format, ...) {
  char line[1024]; /* longer texts go through buf_put */
  va_list args;
  int n;
  va_start(args, format);
  n = vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (n > 0) buf_put(b, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

void buf_number(buf *b, uint64_t n) {
  char digits[20];
  size_t i = sizeof digits;
  do digits[--i] = (char)('0' + n % 10);
  while (n /= 10);
  buf_put(b, digits + i, sizeof digits - i);
}

void buf_free(buf *b) {
  free(b->data);
  b->data = NULL;
  b->len = b->cap = 0;
}

void complain(const char *format, ...) {
  char text[8192];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  flockfile(stderr);
  fputs("gpuirfs: ", stderr);
  text_print(stderr, TEXT_MESSAGE, text, strlen(text));
  fputc('\n', stderr);
  funlockfile(stderr);
}
