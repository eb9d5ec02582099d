/* path.c - the names of the tree. Nothing here looks at an index or at FUSE. */
#include "path.h"

#include "../tools/common/text.h"

#include <stdio.h>

static int is_text(const char *name, size_t len, const char *text) {
  return len == strlen(text) && memcmp(name, text, len) == 0;
}

int name_mode(const char *text, size_t len, int *mode) {
  if (is_text(text, len, "and")) *mode = GPUIR_AND;
  else if (is_text(text, len, "or")) *mode = GPUIR_OR;
  else if (is_text(text, len, "andor")) *mode = GPUIR_ANDOR;
  else return EINVAL;
  return 0;
}

int name_is_never(const char *name, size_t len) {
  return (len > 0 && name[0] == '.') || is_text(name, len, "autorun.inf");
}

/* What servers, editors and builds look for by whole name, unless it is a plain word, which somebody may ask for. */
static const char *const probes[] = {
    "AGENTS.md",
    "BUILD.bazel",
    "CMakeLists.txt",
    "Thumbs.db",
    "_FOSSIL_",
    "_MTN",
    "_darcs",
    "compile_commands.json",
    "go.mod",
    "package.json",
    "setup.py",
    "tsconfig.json",
    "{arch}",
};
/* And by the end of a name: what is set up by such files, the pages of servers, what editors leave beside a file, and
 * forms of answers that there are not. */
static const char *const probe_ends[] = {
    ".conf",
    ".cfg",
    ".inf",
    ".ini",
    ".toml",
    ".yaml",
    ".yml",
    ".lock",
    ".html",
    ".htm",
    ".php",
    ".cgi",
    ".asp",
    ".aspx",
    ".jsp",
    ".ico",
    ".swp",
    ".swo",
    ".bak",
    ".orig",
    ".tmp",
    ",v",
    "~",
    ".csv",
    ".xml",
    ".txt",
    ".jsonl",
};

static int has_suffix(const char *name, size_t len, const char *suffix) {
  size_t n = strlen(suffix);
  return len >= n && memcmp(name + len - n, suffix, n) == 0;
}

int name_is_probe(const char *name, size_t len) {
  size_t i;
  for (i = 0; i < sizeof probes / sizeof *probes; i++)
    if (is_text(name, len, probes[i])) return 1;
  for (i = 0; i < sizeof probe_ends / sizeof *probe_ends; i++)
    if (has_suffix(name, len, probe_ends[i])) return 1;
  return 0;
}

/* Reads a decimal number of at most `most` behind a prefix of the name. */
static int option_number(const char *name, size_t len, const char *prefix, uint64_t most, uint64_t *number) {
  const size_t start = strlen(prefix);
  uint64_t n = 0;
  size_t i;
  if (len <= start || memcmp(name, prefix, start) != 0) return EINVAL;
  for (i = start; i < len; i++) {
    if (name[i] < '0' || name[i] > '9') return EINVAL;
    n = n * 10 + (uint64_t)(name[i] - '0');
    if (n > most) return EINVAL;
  }
  *number = n;
  return 0;
}

#define BUDGET_MOST UINT64_C(1000000000000)
#define CONTEXT_MOST 1000000

/* Reads one option into *with and returns its kind, or 0. */
static unsigned read_option(const char *name, size_t len, uint32_t max_k, name_options *with) {
  uint64_t n;
  if (name_mode(name, len, &with->mode) == 0) return OPTION_MODE;
  if (is_text(name, len, "cpu") || is_text(name, len, "gpu")) {
    with->backend = name[0] == 'g' ? BACKEND_GPU : BACKEND_CPU;
    return OPTION_BACKEND;
  }
  if (is_text(name, len, "rank=code") || is_text(name, len, "rank=plain")) {
    with->rank = name[5] == 'c' ? RANK_CODE : RANK_PLAIN;
    return OPTION_RANK;
  }
  if (option_number(name, len, "k=", max_k, &n) == 0) {
    with->k = (uint32_t)n;
    return OPTION_K;
  }
  if (option_number(name, len, "tokens=", BUDGET_MOST, &with->tokens) == 0) return OPTION_TOKENS;
  if (option_number(name, len, "bytes=", BUDGET_MOST, &with->bytes) == 0) return OPTION_BYTES;
  if (option_number(name, len, "context=", CONTEXT_MOST, &n) == 0) {
    with->context = n ? (uint32_t)n : GPUIR_NO_CONTEXT;
    return OPTION_CONTEXT;
  }
  return 0;
}

int name_option(const char *name, size_t len, unsigned allowed, uint32_t max_k, name_options *options) {
  name_options with = *options;
  unsigned kind;
  if (!name_is_option(name, len)) return EINVAL;
  kind = read_option(name + 1, len - 1, max_k, &with);
  if (!(kind & allowed) || with.given & kind) return EINVAL;
  with.given |= kind;
  *options = with;
  return 0;
}

int name_is_reserved(const char *name, size_t len) {
  static const char *const kinds[] = {"@rank=", "@k=", "@tokens=", "@bytes=", "@context="};
  size_t i;
  for (i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (len >= strlen(kinds[i]) && !memcmp(name, kinds[i], strlen(kinds[i]))) return 1;
  return 0;
}

int name_byte(const char *name, size_t len, size_t *i) {
  int high, low;
  char c = name[(*i)++];
  if (c == '+') return ' ';
  if (c != '%') return (unsigned char)c;
  if (len - *i < 2) return -1;
  high = text_hex(name[*i]);
  low = text_hex(name[*i + 1]);
  if (high < 0 || low < 0) return -1;
  *i += 2;
  return high * 16 + low;
}

static int is_space(int c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Cuts the suffix off and says what it asks for. */
static size_t take_suffix(const char *name, size_t len, int *format) {
  static const char *const suffixes[] = {NULL, ".tsv", ".json", ".paths"}; /* by FORMAT_ */
  for (*format = FORMAT_PATHS; *format > FORMAT_PLAIN; (*format)--)
    if (has_suffix(name, len, suffixes[*format])) return len - strlen(suffixes[*format]);
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
    if (!is_space(c)) read_put(r, c);
    else if (r->text[r->len - 1] != ' ') read_put(r, ' ');
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
    const int c = name_byte(name, len, &i);
    if (c < 0) return EINVAL;
    read_byte(&r, c, raw_minus);
  }
  *text_len = r.len;
  return 0;
}

int name_unescape(const char *name, size_t len, char *text, size_t *text_len) {
  size_t i = 0, out = 0;
  while (i < len) {
    int c = name_byte(name, len, &i);
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
    if (harmless && name[i] != '/') memcpy(out + n, name + i, next);
    else out[n] = '_';
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
  if (depth > NAME_DEPTH) depth = NAME_DEPTH;
  while (depth-- > 0) {
    memcpy(out + n, "../", 3);
    n += 3;
  }
  n += (size_t)snprintf(out + n, LINK_TARGET_SIZE - n, "doc/");
  if (generation) n += (size_t)snprintf(out + n, LINK_TARGET_SIZE - n, "%llu.", (unsigned long long)generation);
  snprintf(out + n, LINK_TARGET_SIZE - n, "%lu", (unsigned long)docid);
}
