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

/* Cuts the suffix off and says what it asks for. */
static size_t take_suffix(const char *name, size_t len, int *format) {
  *format = FORMAT_PLAIN;
  if (has_suffix(name, len, ".tsv")) {
    *format = FORMAT_TSV;
    return len - 4;
  }
  if (has_suffix(name, len, ".json")) {
    *format = FORMAT_JSON;
    return len - 5;
  }
  return len;
}

/* Where a query is being read. */
typedef struct reading {
  char *text;
  size_t len;
  enum { BETWEEN, BARE, MINUS, WORD, PHRASE } at;
} reading;

static void read_put(reading *r, int c) { r->text[r->len++] = (char)c; }

/* Reads the byte that a word or a phrase begins with. An escaped '-' does not negate, and the query syntax has no
 * escape for it. It is left out, and so is what may stand only at the start and comes behind it: no built-in analyzer
 * makes any of them part of a token. */
static void read_start(reading *r, int c, int raw_minus) {
  if ((c == '-' && !raw_minus) || (r->at == BARE && (c == '-' || c == '"'))) {
    r->at = BARE;
    return;
  }
  if (r->len) read_put(r, ' ');
  read_put(r, c);
  r->at = c == '"' ? PHRASE : c == '-' ? MINUS : WORD;
}

static void read_byte(reading *r, int c, int raw_minus) {
  if (r->at == PHRASE) { /* the next '"' closes it, and what follows begins a new word */
    if (!is_space(c))
      read_put(r, c);
    else if (r->text[r->len - 1] != ' ')
      read_put(r, ' ');
    if (c == '"') r->at = BETWEEN;
  } else if (is_space(c)) {
    r->at = BETWEEN;
  } else if (r->at == BETWEEN || r->at == BARE) {
    read_start(r, c, raw_minus);
  } else {
    read_put(r, c);
    r->at = r->at == MINUS && c == '"' ? PHRASE : WORD;
  }
}

int name_query(const char *name, size_t len, char *text, size_t *text_len, int *format) {
  reading r = {text, 0, BETWEEN};
  size_t i = 0;
  if (format) len = take_suffix(name, len, format);
  while (i < len) {
    const int raw_minus = name[i] == '-';
    const int c = next_byte(name, len, &i);
    if (c < 0) return EINVAL;
    read_byte(&r, c, raw_minus);
  }
  *text_len = r.len;
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

/* Reads a decimal number of at most `most` and 19 digits, without leading zeros or sign. */
static int read_number(const char *text, size_t len, uint64_t most, uint64_t *number) {
  uint64_t n = 0;
  size_t i;
  if (len == 0 || len > 19 || (text[0] == '0' && len > 1)) return ENOENT;
  for (i = 0; i < len; i++) {
    if (text[i] < '0' || text[i] > '9') return ENOENT;
    n = n * 10 + (uint64_t)(text[i] - '0');
  }
  if (n > most) return ENOENT;
  *number = n;
  return 0;
}

int name_document(const char *name, size_t len, uint64_t *generation, uint32_t *docid) {
  const char *dot = memchr(name, '.', len);
  uint64_t n, named = 0;
  if (dot) {
    const size_t before = (size_t)(dot - name);
    if (read_number(name, before, UINT64_MAX, &named) != 0 || named == 0) return ENOENT;
    name += before + 1;
    len -= before + 1;
  }
  if (read_number(name, len, UINT32_MAX - 1, &n) != 0) return ENOENT;
  *generation = named;
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

void name_link_target(char out[LINK_TARGET_SIZE], unsigned depth, uint64_t generation, uint32_t docid) {
  size_t n = 0;
  while (depth-- > 0 && n + 3 < LINK_TARGET_SIZE / 2) {
    memcpy(out + n, "../", 3);
    n += 3;
  }
  n += (size_t)snprintf(out + n, LINK_TARGET_SIZE - n, "doc/");
  if (generation)
    n += (size_t)snprintf(out + n, LINK_TARGET_SIZE - n, "%llu.", (unsigned long long)generation);
  snprintf(out + n, LINK_TARGET_SIZE - n, "%lu", (unsigned long)docid);
}
