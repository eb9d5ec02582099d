/* input.c - turns files, folders and standard input into documents, one piece at a time.
 *
 * Folders are read in byte order of the whole path, so that the same tree always gives the same
 * documents in the same order; only the names within the open folders are held in memory.
 */
#include "cli.h"

#include "../common/source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define BINARY_BYTES 8192u
#define READ_BYTES ((size_t)1 << 20)
#define SHOWN_DUPLICATES 5u
#define SHOWN_UNREAD 10u

/* ---- the reader ----------------------------------------------------------------------------- */

void cli_reader_open(cli_reader *r, int fd, size_t most) {
  memset(r, 0, sizeof *r);
  r->fd = fd;
  r->most = most;
}

void cli_reader_close(cli_reader *r) { free(r->buf); }

/* Waits until there is something to read. 0; -1: errno. */
static int wait_to_read(const cli_reader *r) {
  struct pollfd fds[2] = {{r->fd, POLLIN, 0}, {r->wake, POLLIN, 0}};
  if (poll(fds, 2, -1) < 0) return -1;
  if (!fds[1].revents) return 0;
  errno = ECANCELED;
  return -1;
}

/* Reads more behind what is there. 1; 0 at the end; -1. */
static int fill(cli_reader *r) {
  if (r->eof) return 0;
  if (r->begin && r->begin == r->end) r->begin = r->end = 0;
  if (r->cap - r->end < READ_BYTES / 4) {
    if (r->buf && r->begin > r->cap / 2) {
      memmove(r->buf, r->buf + r->begin, r->end - r->begin);
      r->end -= r->begin;
      r->begin = 0;
    } else {
      if (r->end - r->begin > r->most) {
        errno = EFBIG;
        return -1;
      }
      r->cap = r->cap ? r->cap * 2 : READ_BYTES;
      r->buf = (char *)cli_resize(r->buf, r->cap, 1);
    }
  }
  for (;;) {
    ssize_t n = cli_signal || (r->wake && wait_to_read(r)) ? -1 : read(r->fd, r->buf + r->end, r->cap - r->end);
    if (cli_signal) errno = EINTR;
    if (n > 0) {
      if (r->hash) (void)XXH3_64bits_update((XXH3_state_t *)r->hash, r->buf + r->end, (size_t)n);
      r->end += (size_t)n;
      r->any = 1;
      return 1;
    }
    if (!n) r->eof = 1;
    if (!n) return 0;
    if (errno != EINTR || cli_signal) return -1;
  }
}

const char *cli_reader_why(const cli_reader *r, char *buf) {
  char most[27];
  if (errno != EFBIG) return strerror(errno);
  (void)snprintf(buf, CLI_COUNTED, "a line has more than %s bytes", cli_grouped(r->most, most));
  return buf;
}

int cli_reader_lines(cli_reader *r, uint64_t n, char **text, size_t *len, uint64_t *lines) {
  size_t seen = 0; /* bytes after begin that were searched */
  uint64_t found = 0;
  while (found < n) {
    char *from = r->buf ? r->buf + r->begin + seen : NULL;
    size_t have = r->end - r->begin - seen;
    char *nl = from && have ? (char *)memchr(from, '\n', have) : NULL;
    if (nl) {
      found++;
      seen += (size_t)(nl - from) + 1;
      continue;
    }
    seen += have;
    int got = fill(r);
    if (got < 0) return -1;
    if (!got) {
      /* The last line may lack its end. */
      if (r->buf && seen && r->buf[r->begin + seen - 1] != '\n') found++;
      break;
    }
  }
  if (seen > r->most) {
    errno = EFBIG;
    return -1;
  }
  *text = r->buf + r->begin;
  *len = seen;
  *lines = found;
  r->begin += seen;
  r->passed += seen;
  return seen > 0;
}

/* All that is left. 0; -1: errno. */
static int reader_rest(cli_reader *r, char **text, size_t *len) {
  int got;
  while ((got = fill(r)) > 0)
    if (r->end - r->begin > r->most) {
      errno = EFBIG;
      return -1;
    }
  *text = r->buf ? r->buf + r->begin : r->buf;
  *len = r->end - r->begin;
  r->begin = r->end;
  return got;
}

int cli_reader_binary(cli_reader *r) {
  while (r->end - r->begin < BINARY_BYTES) {
    int got = fill(r);
    if (got < 0) return -1;
    if (!got) break;
  }
  size_t n = r->end - r->begin;
  if (n >= 5 && !memcmp(r->buf + r->begin, "%PDF-", 5)) return 2;
  return n && memchr(r->buf + r->begin, 0, n < BINARY_BYTES ? n : BINARY_BYTES) != NULL;
}

/* ---- duplicate names -------------------------------------------------------------------------- */

/* An open-addressing set of 64-bit hashes: two different names meet with probability n^2 / 2^65. */
static int name_is_new(cli_input *in, const char *name, size_t len) {
  uint64_t h = XXH3_64bits(name, len);
  if (!h) h = 1; /* 0 marks a free slot */
  if (in->names_n >= in->names_cap / 4 * 3 && in->names_cap < in->names_max) {
    uint64_t cap = in->names_cap ? in->names_cap * 2 : 1024;
    uint64_t *set = (uint64_t *)cli_resize(NULL, (size_t)cap, sizeof *set);
    memset(set, 0, (size_t)cap * sizeof *set);
    for (uint64_t i = 0; i < in->names_cap; i++) {
      if (!in->names[i]) continue;
      uint64_t j = in->names[i] & (cap - 1);
      while (set[j]) j = (j + 1) & (cap - 1);
      set[j] = in->names[i];
    }
    free(in->names);
    in->names = set;
    in->names_cap = cap;
  }
  uint64_t j = h & (in->names_cap - 1);
  for (; in->names[j]; j = (j + 1) & (in->names_cap - 1))
    if (in->names[j] == h) return 0;
  if (in->names_n >= in->names_cap / 4 * 3) {
    in->names_full = 1;
  } else {
    in->names[j] = h;
    in->names_n++;
  }
  return 1;
}

static void check_name(cli_input *in, const char *what, uint64_t line, const char *name, size_t len) {
  if (name_is_new(in, name, len)) return;
  if (in->duplicates++ >= SHOWN_DUPLICATES) return;
  int shown = len > 200 ? 200 : (int)len;
  if (line) cli_error("%s:%llu: duplicate name '%.*s'", what, (unsigned long long)line, shown, name);
  else cli_error("%s: duplicate name", what);
}

/* ---- the formats ------------------------------------------------------------------------------- */

/* One open file: what it is called, where it stands (NULL: nowhere), and a place for names. */
typedef struct file {
  cli_input *in;
  const char *name;
  const cli_filter *filter; /* that makes a text of it; NULL: it is one */
  char *source;
  cli_reader r;
  cli_buf docname, text;
} file;

/* A document's place in its file: from byte `offset` on, `n` bytes; `raw`: these bytes, if they are not the text. */
typedef struct place {
  uint64_t first, last; /* lines; 0: the whole file */
  uint64_t offset, n;
  const char *raw;
} place;

static int add(file *f, const char *name, size_t name_len, const place *at, const char *text, size_t len) {
  gpuir_doc_desc d;
  memset(&d, 0, sizeof d);
  d.name = name;
  d.name_len = name_len;
  d.source = f->source;
  d.source_len = f->source ? strlen(f->source) : 0;
  /* Lines that a 32-bit number cannot hold are left out: the document then stands for its file. */
  if (at->last <= UINT32_MAX) {
    d.first_line = (uint32_t)at->first;
    d.last_line = (uint32_t)at->last;
  }
  d.source_offset = at->offset;
  d.source_bytes = at->n;
  if (at->raw) d.hash = XXH3_64bits(at->raw, (size_t)at->n);
  f->in->documents++;
  return f->in->add(f->in->user, &d, len ? text : "", len);
}

/* Says whether what cannot be read, as the last of in->failed, is named. */
static int is_named(const cli_input *in) { return in->verbose || in->failed <= SHOWN_UNREAD; }

int cli_input_end(const cli_input *in) {
  char n[27];
  if (!is_named(in)) cli_error("%s more could not be read; -v names all", cli_grouped(in->failed - SHOWN_UNREAD, n));
  return in->failed ? CLI_PARTLY : CLI_OK;
}

/* A failure while reading: counted, and the file is left. */
static int lost(file *f, uint64_t line) {
  const int error = errno;
  if (cli_signal) return CLI_FAIL;
  f->in->failed++;
  if (f->in->follower && f->source) f->in->follower->unread(f->in->user, f->source);
  if (!is_named(f->in)) return 0;
  errno = error;
  if (errno == EFBIG) {
    cli_error("%s: a document or line is larger than %zu MiB", f->name, CLI_MAX_PIECE >> 20);
    return 0;
  }
  if (line) cli_error("%s:%llu: %s", f->name, (unsigned long long)line, strerror(errno));
  else cli_error("%s: %s", f->name, strerror(errno));
  return 0;
}

/* A record that is not what its format says. Not 0 ends the reading. */
static int malformed(file *f, uint64_t line, const char *why, size_t where) {
  f->in->malformed++;
  if (where) cli_error("%s:%llu: %s (byte %zu of the line)", f->name, (unsigned long long)line, why, where);
  else cli_error("%s:%llu: %s", f->name, (unsigned long long)line, why);
  return f->in->skip_errors ? 0 : CLI_FAIL;
}

static int read_whole(file *f) {
  char *text;
  size_t len;
  if (reader_rest(&f->r, &text, &len)) return lost(f, 0);
  check_name(f->in, f->name, 0, f->name, strlen(f->name));
  const place whole = {0, 0, 0, len, NULL};
  return add(f, f->name, strlen(f->name), &whole, text, len);
}

static int read_chunks(file *f, uint64_t n) {
  uint64_t first = 1, lines;
  char *text, suffix[64];
  size_t len;
  check_name(f->in, f->name, 0, f->name, strlen(f->name)); /* the chunks of one file differ */
  for (int got; (got = cli_reader_lines(&f->r, n, &text, &len, &lines)) != 0; first += lines) {
    if (got < 0) return lost(f, first);
    uint64_t last = first + lines - 1;
    if (f->in->format == CLI_LINES) snprintf(suffix, sizeof suffix, ":%llu", (unsigned long long)first);
    else snprintf(suffix, sizeof suffix, ":%llu-%llu", (unsigned long long)first, (unsigned long long)last);
    f->docname.n = 0;
    cli_buf_text(&f->docname, f->name);
    cli_buf_text(&f->docname, suffix);
    const place at = {first, last, f->r.passed - len, len, NULL};
    int r = add(f, f->docname.p, f->docname.n, &at, text, len);
    if (r) return r;
  }
  return 0;
}

static size_t without_line_end(const char *text, size_t len) {
  if (len && text[len - 1] == '\n') len--;
  if (len && text[len - 1] == '\r') len--;
  return len;
}

static int tsv_record(file *f, uint64_t line, uint64_t offset, const char *text, size_t len) {
  const char *tab = len ? (const char *)memchr(text, '\t', len) : NULL;
  if (!len) return 0;
  if (!tab) return malformed(f, line, "no tab between id and text", 0);
  if (tab == text) return malformed(f, line, "an empty id", 0);
  check_name(f->in, f->name, line, text, (size_t)(tab - text));
  const size_t skip = (size_t)(tab + 1 - text);
  const place at = {line, line, offset + skip, len - skip, NULL};
  return add(f, text, (size_t)(tab - text), &at, tab + 1, len - skip);
}

static int jsonl_record(file *f, uint64_t line, uint64_t offset, const char *text, size_t len) {
  const char *why;
  size_t where, blank = 0;
  while (blank < len && strchr(" \t\r", text[blank]) && text[blank]) blank++;
  if (blank == len) return 0;
  if (cli_json_record(text, len, 0, &f->docname, &f->text, &why, &where)) return malformed(f, line, why, where);
  check_name(f->in, f->name, line, f->docname.p, f->docname.n);
  const place at = {line, line, offset, len, text};
  return add(f, f->docname.p ? f->docname.p : "", f->docname.n, &at, f->text.p, f->text.n);
}

static int read_records(file *f, int (*record)(file *, uint64_t, uint64_t, const char *, size_t)) {
  uint64_t line = 1, lines;
  char *text;
  size_t len;
  for (int got; (got = cli_reader_lines(&f->r, 1, &text, &len, &lines)) != 0; line++) {
    if (got < 0) return lost(f, line);
    uint64_t offset = f->r.passed - len;
    len = without_line_end(text, len);
    if (line == 1 && len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) /* byte order mark */
      text += 3, len -= 3, offset += 3;
    int r = record(f, line, offset, text, len);
    if (r) return r;
  }
  return 0;
}

/* Returns the position of a tag such as "</doc>" in any case, or NULL. */
static const char *find_tag(const char *p, const char *end, const char *tag) {
  size_t n = strlen(tag);
  while (p < end && (p = (const char *)memchr(p, '<', (size_t)(end - p))) != NULL) {
    if ((size_t)(end - p) < n) return NULL;
    if (!strncasecmp(p, tag, n)) return p;
    p++;
  }
  return NULL;
}

/* Appends text without its tags; each becomes a blank. */
static void strip_tags(cli_buf *out, const char *p, const char *end) {
  while (p < end) {
    const char *from = p, *close = NULL;
    unsigned c = '&';
    size_t n;
    while (p < end && *p != '<' && *p != '&') p++;
    cli_buf_add(out, from, (size_t)(p - from));
    if (p == end) return;
    if (*p == '&') {
      n = cli_entity(p, (size_t)(end - p), &c);
      cli_buf_utf8(out, n ? c : '&');
      p += n ? n : 1;
      continue;
    }
    /* "a < b" is text: a tag begins with a letter, '/', '!' or '?'. */
    int next = p + 1 < end ? (unsigned char)p[1] : 0;
    int tag = (next >= 'a' && next <= 'z') || (next >= 'A' && next <= 'Z') || (next && strchr("/!?", next));
    if (tag) close = (const char *)memchr(p, '>', (size_t)(end - p));
    cli_buf_char(out, close ? ' ' : '<');
    p = close ? close + 1 : p + 1;
  }
}

/* One record, the `len` bytes between <DOC> and </DOC>. */
static int trec_record(file *f, uint64_t first, uint64_t last, uint64_t offset, const char *p, size_t len) {
  const char *end = p + len, *open = find_tag(p, end, "<docno>"), *close = NULL;
  if (open) close = find_tag(open, end, "</docno>");
  if (!close) return malformed(f, first, "a <DOC> without <DOCNO>...</DOCNO>", 0);
  const char *id = open + 7, *id_end = close;
  while (id < id_end && strchr(" \t\r\n", *id) && *id) id++;
  while (id < id_end && strchr(" \t\r\n", id_end[-1]) && id_end[-1]) id_end--;
  if (id == id_end) return malformed(f, first, "an empty <DOCNO>", 0);
  f->docname.n = 0;
  cli_buf_add(&f->docname, id, (size_t)(id_end - id));
  f->text.n = 0;
  strip_tags(&f->text, p, open);
  cli_buf_char(&f->text, ' ');
  strip_tags(&f->text, close + 8, end);
  check_name(f->in, f->name, first, f->docname.p, f->docname.n);
  const place at = {first, last, offset, len, p};
  return add(f, f->docname.p, f->docname.n, &at, f->text.p, f->text.n);
}

static int read_trec(file *f) {
  uint64_t line = 1, first = 0, lines, offset = 0;
  int r = 0, got = 0, inside = 0, any = 0;
  char *text;
  size_t len;
  cli_buf record = {NULL, 0, 0};
  for (; !r && (got = cli_reader_lines(&f->r, 1, &text, &len, &lines)) > 0; line++) {
    const char *p = text, *end = text + len;
    while (!r && p < end) {
      const char *tag = find_tag(p, end, inside ? "</doc>" : "<doc>");
      if (inside) cli_buf_add(&record, p, (size_t)((tag ? tag : end) - p));
      if (record.n > CLI_MAX_PIECE) {
        errno = EFBIG;
        got = -1;
        break;
      }
      if (!tag) break;
      p = tag + (inside ? 6 : 5);
      if (inside) {
        r = trec_record(f, first, line, offset, record.p ? record.p : "", record.n);
      } else {
        first = line;
        offset = f->r.passed - (uint64_t)(end - p);
        any = 1;
      }
      record.n = 0;
      inside = !inside;
    }
    if (got < 0) break;
  }
  if (!r && got < 0) r = lost(f, line);
  else if (!r && inside) r = malformed(f, first, "a <DOC> without </DOC>", 0);
  else if (!r && !any && line > 1) r = malformed(f, 1, "no <DOC> in this file", 0);
  cli_buf_free(&record);
  return r;
}

/* ---- files and folders --------------------------------------------------------------------------- */

/* Returns the current folder, which relative paths need. One that has no path any more, since it was removed, ends the
 * command: under a wrong path a file would be another document, and the old one would stay for ever. */
static const char *current_folder(cli_input *in) {
  size_t cap = 4096;
  const char *found = in->cwd;
  if (found) return found;
  do in->cwd = (char *)cli_resize(in->cwd, cap, 1), found = getcwd(in->cwd, cap), cap *= 2;
  while (!found && errno == ERANGE);
  if (!found || *found != '/')
    cli_die("the current folder has no path: %s", found ? "it is not below /" : strerror(errno));
  return found;
}

/* An absolute path, as far as it can be told from the text alone: ".." may follow a link. */
char *cli_input_path(cli_input *in, const char *path) {
  cli_buf out = {NULL, 0, 0};
  if (*path != '/' && strcmp(current_folder(in), "/") != 0) cli_buf_text(&out, in->cwd);
  while (*path) {
    size_t n = strcspn(path, "/");
    if (n && !(n == 1 && *path == '.')) {
      cli_buf_char(&out, '/');
      cli_buf_add(&out, path, n);
    }
    path += n;
    while (*path == '/') path++;
  }
  cli_buf_char(&out, 0);
  return out.p;
}

void cli_input_home(cli_input *in, const char *index) {
  free(in->home);
  in->home = source_home(index);
}

char *cli_input_source(cli_input *in, const char *path) {
  char *whole = cli_input_path(in, path);
  if (in->home) {
    const char *stored = source_stored(in->home, whole);
    memmove(whole, stored, strlen(stored) + 1);
  }
  return whole;
}

char *cli_input_whole(const cli_input *in, const char *source) {
  cli_buf out = {NULL, 0, 0};
  if (*source != '/' && in->home) {
    cli_buf_text(&out, in->home);
    if (*source) cli_buf_char(&out, '/');
  }
  cli_buf_text(&out, source);
  cli_buf_char(&out, 0);
  return out.p;
}

/* Makes documents of a file. */
static int read_documents(file *f) {
  f->in->files++;
  switch (f->in->format) {
  case CLI_CHUNKS: return read_chunks(f, f->in->chunk_lines);
  case CLI_LINES: return read_chunks(f, 1);
  case CLI_TSV: return read_records(f, tsv_record);
  case CLI_JSONL: return read_records(f, jsonl_record);
  case CLI_TREC: return read_trec(f);
  default: return read_whole(f);
  }
}

/* Lets the filter make a text of the file, which is then read in its place. 0; -1 after a message. */
static int filter_file(file *f) {
  cli_buf text = {NULL, 0, 0};
  f->in->failed++; /* as it is if no text comes */
  const int r = cli_filter_run(f->filter, f->r.fd, is_named(f->in) ? f->name : NULL, &text);
  if (!r) f->in->failed--;
  cli_reader_close(&f->r);
  f->r.buf = text.p;
  f->r.cap = text.cap;
  f->r.end = r ? 0 : text.n;
  f->r.any = f->r.end > 0;
  f->r.eof = 1;
  return r;
}

/* A file of which the filter made no text. */
static int unfiltered(file *f) {
  if (f->in->follower && f->source) f->in->follower->unread(f->in->user, f->source);
  return cli_signal ? CLI_FAIL : 0;
}

/* Reads a file of which the first bytes show whether it is a text. */
static int read_text(file *f, int named) {
  if (f->filter && filter_file(f)) return unfiltered(f);
  const int binary = cli_reader_binary(&f->r);
  if (binary < 0) return lost(f, 0);
  if (!binary) return read_documents(f);
  f->in->binaries++;
  if (named && binary == 2) cli_error("%s: a PDF, of which --filter 'pdf=pdftotext - -' makes a text", f->name);
  else if (named) cli_error("%s: a binary file (it has a NUL byte among its first 8 KiB)", f->name);
  return named ? CLI_FAIL : 0;
}

/* The same, if the follower wants it; it is then told the hash of the bytes, if all were read. Of one that cannot be
 * read to its end the follower was told already. */
static int read_followed(file *f, const struct stat *st, int named) {
  const cli_follower *to = f->in->follower;
  const uint64_t failed = f->in->failed;
  int r = to->file(f->in->user, f->source, st, f->r.fd);
  if (r <= 0) return r ? CLI_FAIL : 0;
  /* what is hashed first may be newer when it is filtered; the next time it then differs, and is read again */
  const uint64_t filtered = f->filter ? cli_hash_file(f->r.fd) : 0;
  XXH3_state_t *state = f->filter ? NULL : XXH3_createState();
  f->r.hash = state;
  if (state) (void)XXH3_64bits_reset(state);
  r = read_text(f, named);
  if (!r && f->in->failed == failed)
    to->read(f->in->user, f->source, state && f->r.eof ? XXH3_64bits_digest(state) : filtered);
  (void)XXH3_freeState(state);
  return r;
}

uint64_t cli_hash_file(int fd) {
  XXH3_state_t *state = XXH3_createState();
  char *room = (char *)cli_resize(NULL, (size_t)1 << 16, 1);
  uint64_t hash = 0;
  off_t at = 0;
  ssize_t n = -1;
  if (state && !XXH3_64bits_reset(state))
    while ((n = pread(fd, room, (size_t)1 << 16, at)) > 0) {
      (void)XXH3_64bits_update(state, room, (size_t)n);
      at += n;
    }
  if (!n) hash = XXH3_64bits_digest(state);
  (void)XXH3_freeState(state);
  free(room);
  return hash;
}

/* Reads a file that is open; of one that is followed *st tells the state. One that was named must have documents,
 * unless it has no bytes at all: an empty file among others loses nothing. */
static int read_open_file(cli_input *in, int fd, const char *name, const char *path, const struct stat *st, int named) {
  const uint64_t before = in->documents;
  file f;
  int r;
  memset(&f, 0, sizeof f);
  f.in = in;
  f.name = name;
  f.source = path ? cli_input_source(in, path) : NULL;
  f.filter = path ? cli_filters_find(in->filters, name, strlen(name), 0) : NULL;
  cli_reader_open(&f.r, fd, CLI_MAX_PIECE);
  r = in->follower && path ? read_followed(&f, st, named) : read_text(&f, named);
  if (named && !r && f.r.any && in->documents == before) {
    cli_error("%s: no document could be made of it", name);
    r = CLI_FAIL;
  }
  cli_reader_close(&f.r);
  cli_buf_free(&f.docname);
  cli_buf_free(&f.text);
  free(f.source);
  return r;
}

static int is_output(const cli_input *in, const struct stat *st) {
  for (int i = 0; i < in->onum; i++)
    if ((uint64_t)st->st_dev == in->odev[i] && (uint64_t)st->st_ino == in->oino[i]) return 1;
  return 0;
}

/* Reads an open file of a folder (named 0) or of the command line (named 1). */
static int read_file(cli_input *in, int fd, const struct stat *st, const char *path, int named) {
  const uint64_t failed = in->failed;
  const int r = read_open_file(in, fd, path, path, st, named);
  return named && !r && in->failed > failed ? CLI_FAIL : r; /* half a file is not what was asked for */
}

/* ---- the walk ---- */

/* Says that a file or folder cannot be read, and why. What a follower has of it stays. One that has gone since it was
 * listed is none; a follower does not tell it from a link that leads nowhere. */
static void unreadable(cli_input *in, const char *path, int error) {
  in->missing = error == ENOENT || error == ENOTDIR ? error : 0;
  if (in->missing && (in->follower || !in->follow)) return;
  in->failed++;
  if (is_named(in))
    cli_error("%s: %s", path, error == ESTALE ? "it was replaced again and again while it was read" : strerror(error));
  if (in->follower) {
    char *source = cli_input_source(in, path);
    in->follower->unread(in->user, source);
    free(source);
  }
}

static void on_skipped(void *user, const char *path, int why, int error) {
  cli_input *in = (cli_input *)user;
  switch (why) {
  case GPUIR_SKIPPED_HIDDEN: in->hidden_skipped++; break;
  case GPUIR_SKIPPED_IGNORED: in->ignored++; break;
  case GPUIR_SKIPPED_CIRCLE:
    cli_error("%s: skipped: a link to a folder above it", path);
    in->links_skipped++;
    break;
  case GPUIR_SKIPPED_LINK: in->links_skipped++; break;
  case GPUIR_SKIPPED_INDEX: in->indexes_skipped++; break;
  case GPUIR_SKIPPED_UNREADABLE: unreadable(in, path, error); break;
  default: in->special_skipped++; break;
  }
}

/* Ends the walk with an exit code. */
static int end_walk(cli_input *in, int code) {
  in->code = code;
  return GPUIR_E_CANCELLED;
}

/* Reads what the walk has opened. What this process writes is left out, since it would grow while it is read, and so are
 * mounts of gpuirfs, which show what is indexed already. */
static int on_entry(void *user, const gpuir_walk_entry *e) {
  cli_input *in = (cli_input *)user;
  if (cli_signal) return end_walk(in, CLI_FAIL);
  if (is_output(in, e->st)) {
    if (!e->is_named) return GPUIR_WALK_LEAVE;
    cli_error("%s: it is what this command writes", e->path);
    return end_walk(in, CLI_FAIL);
  }
  if (e->is_folder) {
    if (!e->is_mount || !source_is_gpuirfs(e->fd)) return GPUIR_WALK_TAKE;
    in->indexes_skipped++;
    return GPUIR_WALK_LEAVE;
  }
  const int code = read_file(in, e->fd, e->st, e->path, e->is_named);
  return code ? end_walk(in, code) : GPUIR_WALK_LEAVE;
}

int cli_input_format(const cli_args *a, int id, cli_input *in) {
  static const cli_format formats[] = {CLI_CHUNKS, CLI_LINES, CLI_TSV, CLI_JSONL, CLI_TREC};
  if (id == CLI_IN_HIDDEN) return in->hidden = 1, 0;
  if (id == CLI_IN_FOLLOW) return in->follow = 1, 0;
  if (id == CLI_IN_NO_IGNORE) return in->no_ignore = 1, 0;
  if (id == CLI_IN_SKIP) return in->skip_errors = 1, 0;
  if (id == CLI_IN_VERBOSE) return in->verbose = 1, 0;
  if (id == CLI_IN_FILTER) return cli_filters_add(a, in->filters);
  if (id < CLI_IN_CHUNK || id > CLI_IN_TREC) return 1;
  const cli_format format = formats[id - CLI_IN_CHUNK];
  if (in->format != CLI_FILES && in->format != format)
    return cli_misuse(a->command, "%s: another format was given before", a->name);
  in->format = format;
  return id == CLI_IN_CHUNK ? cli_unsigned(a, 1, 1000000000, &in->chunk_lines) : 0;
}

int cli_input_check(const char *command, char **operands, int n) {
  struct stat st;
  int dashes = 0;
  for (int i = 0; i < n; i++) {
    if (!strcmp(operands[i], "-")) {
      if (dashes++) return cli_misuse(command, "standard input can be given once");
      continue;
    }
    if (stat(operands[i], &st) || access(operands[i], R_OK)) {
      cli_error("%s: %s", operands[i], strerror(errno));
      return CLI_FAIL;
    }
  }
  return CLI_OK;
}

/* Leaves a file or folder out. */
static void leave_out(cli_input *in, const struct stat *st) {
  in->odev[in->onum] = (uint64_t)st->st_dev;
  in->oino[in->onum++] = (uint64_t)st->st_ino;
}

void cli_input_exclude(cli_input *in, const char *output) {
  struct stat st;
  for (int i = 0; i < 2; i++) {
    cli_buf path = {NULL, 0, 0};
    cli_buf_text(&path, output);
    cli_buf_text(&path, i ? ".tmp" : "");
    cli_buf_char(&path, 0);
    if (!stat(path.p, &st) && (S_ISREG(st.st_mode) || (!i && S_ISDIR(st.st_mode)))) leave_out(in, &st);
    cli_buf_free(&path);
  }
  for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
    if (!fstat(fd, &st) && S_ISREG(st.st_mode)) leave_out(in, &st);
}

int cli_input_read(cli_input *in, const char *operand) {
  gpuir_walk_desc how;
  gpuir_error err;
  if (!strcmp(operand, "-")) {
    uint64_t failed = in->failed;
    int r = read_open_file(in, STDIN_FILENO, "-", NULL, NULL, 1);
    return !r && in->failed > failed ? CLI_FAIL : r;
  }
  memset(&how, 0, sizeof how);
  how.hidden = in->hidden;
  how.follow = in->follow;
  how.no_ignore = in->no_ignore;
  how.open = on_entry;
  how.skipped = on_skipped;
  how.user = in;
  in->code = CLI_OK;
  const int status = gpuir_walk(operand, &how, &err);
  if (status != GPUIR_E_NOT_FOUND) in->missing = 0;
  else if (!in->follower && !in->follow) cli_error("%s: %s", operand, strerror(in->missing));
  if (in->code || !status) return in->code;
  /* what cannot be opened was said, or is a follower's matter */
  return status == GPUIR_E_IO || status == GPUIR_E_NOT_FOUND ? CLI_FAIL : cli_fail(operand, status, &err);
}

void cli_input_free(cli_input *in) {
  free(in->names);
  free(in->cwd);
  free(in->home);
  in->names = NULL;
  in->cwd = in->home = NULL;
}
