/* path.c - the names of the tree. Nothing here looks at an index or at FUSE. */
#include "path.h"

#include "../tools/common/text.h"

#include <stdio.h>

unsigned name_options_depth(const name_options *options) {
  unsigned given = options->given;
  return (given & 1u) + (given >> 1 & 1u) + (given >> 2 & 1u);
}

static int is_text(const char *name, size_t len, const char *text) {
  return len == strlen(text) && memcmp(name, text, len) == 0;
}

int name_mode(const char *text, size_t len, int *mode) {
  if (is_text(text, len, "and"))
    *mode = GPUIR_AND;
  else if (is_text(text, len, "or"))
    *mode = GPUIR_OR;
  else if (is_text(text, len, "andor"))
    *mode = GPUIR_ANDOR;
  else
    return EINVAL;
  return 0;
}

int name_is_never(const char *name, size_t len) {
  return (len > 0 && name[0] == '.') || is_text(name, len, "autorun.inf");
}

int name_option(const char *name, size_t len, uint32_t max_k, name_options *options) {
  name_options with = *options;
  unsigned kind;
  if (!name_is_option(name, len)) return EINVAL;
  name++, len--;
  if (name_mode(name, len, &with.mode) == 0) {
    kind = OPTION_MODE;
  } else if (len > 2 && memcmp(name, "k=", 2) == 0) {
    uint64_t k = 0;
    size_t i;
    for (i = 2; i < len; i++) {
      if (name[i] < '0' || name[i] > '9') return EINVAL;
      k = k * 10 + (uint64_t)(name[i] - '0');
      if (k > max_k) return EINVAL;
    }
    with.k = (uint32_t)k;
    kind = OPTION_K;
  } else if (is_text(name, len, "cpu") || is_text(name, len, "gpu")) {
    with.backend = name[0] == 'g' ? BACKEND_GPU : BACKEND_CPU;
    kind = OPTION_BACKEND;
  } else {
    return EINVAL;
  }
  if (with.given & kind) return EINVAL;
  with.given |= kind;
  *options = with;
  return 0;
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/* The byte that stands at name[*i], which moves past it; -1 for a bad escape. */
static int next_byte(const char *name, size_t len, size_t *i) {
  int high, low;
  char c = name[(*i)++];
  if (c == '+') return ' ';
  if (c != '%') return (unsigned char)c;
  if (len - *i < 2) return -1;
  high = hex_digit(name[*i]);
  low = hex_digit(name[*i + 1]);
  if (high < 0 || low < 0) return -1;
  *i += 2;
  return high * 16 + low;
}

static int is_space(int c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static int has_suffix(const char *name, size_t len, const char *suffix) {
  size_t n = strlen(suffix);
  return len >= n && memcmp(name + len - n, suffix, n) == 0;
}

int name_query(const char *name, size_t len, char *text, size_t *text_len, int *format) {
  size_t i = 0, out = 0;
  int in_word = 0;
  if (format) {
    *format = FORMAT_PLAIN;
    if (has_suffix(name, len, ".tsv"))
      *format = FORMAT_TSV, len -= 4;
    else if (has_suffix(name, len, ".json"))
      *format = FORMAT_JSON, len -= 5;
  }
  while (i < len) {
    int raw_minus = name[i] == '-';
    int c = next_byte(name, len, &i);
    if (c < 0) return EINVAL;
    if (is_space(c)) {
      in_word = 0;
      continue;
    }
    if (!in_word) {
      /* An escaped '-' does not negate, and the query syntax has no escape for it. It is left out:
       * no built-in analyzer makes it part of a token. */
      if (c == '-' && !raw_minus) continue;
      if (out) text[out++] = ' ';
      in_word = 1;
    }
    text[out++] = (char)c;
  }
  *text_len = out;
  return 0;
}

int name_unescape(const char *name, size_t len, char *text, size_t *text_len) {
  size_t i = 0, out = 0;
  while (i < len) {
    int c = next_byte(name, len, &i);
    if (c < 0) return EINVAL;
    text[out++] = (char)c;
  }
  *text_len = out;
  return 0;
}

int name_docid(const char *name, size_t len, uint32_t *docid) {
  uint64_t n = 0;
  size_t i;
  if (len == 0 || len > 10 || (name[0] == '0' && len > 1)) return ENOENT;
  for (i = 0; i < len; i++) {
    if (name[i] < '0' || name[i] > '9') return ENOENT;
    n = n * 10 + (uint64_t)(name[i] - '0');
  }
  if (n >= UINT32_MAX) return ENOENT;
  *docid = (uint32_t)n;
  return 0;
}

size_t name_link(char out[NAME_LIMIT + 1], uint32_t rank, uint32_t docid, const char *name, size_t len) {
  size_t n = (size_t)snprintf(out, NAME_LIMIT + 1, "%06lu-", (unsigned long)rank), i;
  if (len == 0) return n + (size_t)snprintf(out + n, NAME_LIMIT + 1 - n, "%lu", (unsigned long)docid);
  for (i = 0; i < len;) {
    int harmless;
    size_t next = text_next(name + i, len - i, &harmless);
    size_t bytes = harmless && name[i] != '/' ? next : 1;
    if (n + bytes > NAME_LIMIT) break; /* a name that is cut does not end in half a character */
    if (harmless && name[i] != '/')
      memcpy(out + n, name + i, next);
    else
      out[n] = '_';
    n += bytes;
    i += next;
  }
  out[n] = 0;
  return n;
}

uint32_t name_link_rank(const char *name, size_t len) {
  uint64_t rank = 0;
  size_t i;
  for (i = 0; i < len && name[i] >= '0' && name[i] <= '9'; i++) {
    rank = rank * 10 + (uint64_t)(name[i] - '0');
    if (rank > UINT32_MAX) return 0;
  }
  return i >= 6 && i < len && name[i] == '-' ? (uint32_t)rank : 0;
}

void name_link_target(char out[LINK_TARGET_SIZE], unsigned depth, uint32_t docid) {
  size_t n = 0;
  while (depth-- > 0 && n + 3 < LINK_TARGET_SIZE / 2) {
    memcpy(out + n, "../", 3);
    n += 3;
  }
  snprintf(out + n, LINK_TARGET_SIZE - n, "doc/%lu", (unsigned long)docid);
}
