/* input.c - turns files, folders and standard input into documents, one piece at a time.
 *
 * Folders are read in byte order of the whole path, so that the same tree always gives the same
 * documents in the same order; only the names within the open folders are held in memory.
 */
#include "cli.h"

#include "../common/defines.h"
#include "../common/source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define SHOWN_DUPLICATES 5u
#define CHUNK_LINES 50u /* of a long file: what answers a question about code is seldom longer */
#define WHOLE_LINES 200u /* of the longest file that is no long one */
#define SHOWN_UNREAD 10u

void cli_reader_open(text_reader *r, int fd, size_t most) {
  reader_open(r, fd, most);
  r->stop = &cli_signal;
}

const char *cli_reader_why(const text_reader *r, char *buf) {
  char most[27];
  if (errno != EFBIG) return strerror(errno);
  (void)snprintf(buf, CLI_COUNTED, "a line has more than %s bytes", cli_grouped(r->most, most));
  return buf;
}

int cli_records_open(record_reader *r, const char *reading, int topics) {
  const int failed = records_open(r, reading, topics);
  if (failed == -1) (void)cli_resize(NULL, SIZE_MAX, 2);
  if (!failed) return CLI_OK;
  cli_error("more than %u names of members", RECORDS_NAMES);
  return CLI_FAIL;
}

/* ---- duplicate names -------------------------------------------------------------------------- */

/* Makes the set twice as large. */
static void grow_hashes(cli_hashes *set) {
  const uint64_t cap = set->cap ? set->cap * 2 : 1024;
  uint64_t *slots = (uint64_t *)cli_resize(NULL, (size_t)cap, sizeof *slots);
  memset(slots, 0, (size_t)cap * sizeof *slots);
  for (uint64_t i = 0; i < set->cap; i++) {
    if (!set->slots[i]) continue;
    uint64_t j = set->slots[i] & (cap - 1);
    while (slots[j]) j = (j + 1) & (cap - 1);
    slots[j] = set->slots[i];
  }
  free(set->slots);
  set->slots = slots;
  set->cap = cap;
}

/* Returns where the hash is, or the free slot where it would be. */
static uint64_t hash_place(const cli_hashes *set, uint64_t h) {
  uint64_t j = h & (set->cap - 1);
  while (set->slots[j] && set->slots[j] != h) j = (j + 1) & (set->cap - 1);
  return j;
}

/* Returns whether the set does not have the hash yet, and takes it. */
static int hash_is_new(cli_hashes *set, uint64_t h) {
  if (!h) h = 1; /* 0 marks a free slot */
  if (set->n >= set->cap / 4 * 3 && set->cap < set->max) grow_hashes(set);
  const uint64_t j = hash_place(set, h);
  if (set->slots[j]) return 0;
  if (set->n >= set->cap / 4 * 3) {
    set->full = 1;
  } else {
    set->slots[j] = h;
    set->n++;
  }
  return 1;
}

static void check_name(cli_input *in, const char *what, uint64_t line, const char *name, size_t len) {
  if (hash_is_new(&in->names, XXH3_64bits(name, len))) return;
  if (in->duplicates++ >= SHOWN_DUPLICATES) return;
  int shown = len > 200 ? 200 : (int)len;
  if (line) cli_error("%s:%llu: duplicate name '%.*s'", what, (unsigned long long)line, shown, name);
  else cli_error("%s: duplicate name", what);
}

/* ---- documents -------------------------------------------------------------------------------------- */

#define DEFINES_MOST ((size_t)1 << 24) /* bytes of names that a document defines: the library takes no more */

/* One open file: what it is called, and where it stands (NULL: nowhere). */
typedef struct file {
  cli_input *in;
  const char *name;
  const text_filter *filter; /* that makes a text of it; NULL: it is one */
  char *source;
  char *below; /* the words of its path below the operand; NULL: they are not searched, as of records */
  int checked; /* its name was compared with others */
  int named; /* by the command line; a folder has the others */
  const struct stat *st; /* NULL: of standard input */
  cli_buf head; /* its front matter, for all of its chunks */
  heads_kind front; /* which that is */
  text_reader r;
} file;

/* Gives a document that is no record its values. */
static void put_values(file *f, const decode_document *doc, gpuir_doc_desc *d) {
  size_t n = 0;
  if (doc->mail || !cli_fields_of_heads(f->in)) {
    cli_fields_file(f->in, f->source, f->st, doc->mail ? HEADS_MAIL : HEADS_NONE, doc->mail, doc->mail_len, d);
    return;
  }
  if (doc->first <= 1) { /* the first of the file's */
    f->front = heads_front(doc->text, doc->len, &n);
    f->head.n = 0;
    cli_buf_add(&f->head, doc->text, n);
  }
  cli_fields_file(f->in, f->source, f->st, f->front, f->head.p, f->head.n, d);
}

static int on_document(void *user, const decode_document *doc) {
  file *f = (file *)user;
  gpuir_doc_desc d;
  memset(&d, 0, sizeof d);
  if (doc->is_record) check_name(f->in, f->name, doc->first, doc->name, doc->name_len);
  else if (!f->checked++) check_name(f->in, f->name, 0, f->name, strlen(f->name)); /* the chunks of one file differ */
  d.name = doc->name;
  d.name_len = doc->name_len;
  d.source = f->source;
  d.source_len = f->source ? strlen(f->source) : 0;
  /* Lines that a 32-bit number cannot hold are left out: the document then stands for its file. */
  if (doc->last <= UINT32_MAX) {
    d.first_line = (uint32_t)doc->first;
    d.last_line = (uint32_t)doc->last;
  }
  d.source_offset = doc->offset;
  d.source_bytes = doc->bytes;
  d.hash = doc->hash;
  d.form = doc->form;
  if (f->below) {
    d.also = f->below;
    d.also_len = strlen(f->below);
  }
  if (decode_has_members(f->in->format)) cli_fields_values(f->in, &d);
  else if (f->in->nfields && (f->st || cli_fields_of_heads(f->in))) put_values(f, doc, &d);
  f->in->documents++;
  if (!f->in->defines || doc->is_record || f->filter || !gpuir_is_source_name(doc->name, doc->name_len))
    return f->in->add(f->in->user, &d, doc->text, doc->len);
  byte_buf defined = {NULL, 0, 0, 0};
  (void)defines_find(f->name, doc->text, doc->len, &defined);
  if (defined.failed) (void)cli_resize(NULL, SIZE_MAX, 2); /* which ends the command */
  if (defined.n && defined.n <= DEFINES_MOST) {
    d.defines = defined.p;
    d.defines_len = defined.n;
  }
  const int r = f->in->add(f->in->user, &d, doc->text, doc->len);
  bytes_free(&defined);
  return r;
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
  if (errno == ENOMEM) (void)cli_resize(NULL, SIZE_MAX, 2); /* which ends the command */
  f->in->failed++;
  if (f->in->follower && f->source) f->in->follower->unread(f->in->user, f->source);
  if (!is_named(f->in)) return 0;
  errno = error;
  if (errno == EFBIG) {
    cli_error("%s: a document or line is larger than %zu MiB", f->name, f->r.most >> 20);
    return 0;
  }
  const char *why = errno == EBADMSG && f->r.why ? f->r.why : strerror(errno);
  if (line > 1) cli_error("%s:%llu: %s", f->name, (unsigned long long)line, why);
  else cli_error("%s: %s", f->name, why);
  return 0;
}

/* A record that is not what its format says. Not 0 ends the reading. */
static int on_malformed(void *user, uint64_t line, const char *why, size_t where) {
  file *f = (file *)user;
  f->in->malformed++;
  if (where) cli_error("%s:%llu: %s (byte %zu of the line)", f->name, (unsigned long long)line, why, where);
  else cli_error("%s:%llu: %s", f->name, (unsigned long long)line, why);
  return f->in->skip_errors ? 0 : CLI_FAIL;
}

/* A mail of which not all is read. */
static void on_cut(void *user, uint64_t line, const char *why) {
  file *f = (file *)user;
  if (f->in->cut++ < SHOWN_UNREAD || f->in->verbose) cli_error("%s:%llu: %s", f->name, (unsigned long long)line, why);
}

/* Prepares to read records, when the first file of them comes. */
static int open_records(cli_input *in) {
  if (in->records || (!decode_has_members(in->format) && in->format != DECODE_TREC)) return CLI_OK;
  in->records = (record_reader *)cli_resize(NULL, 1, sizeof *in->records);
  if (cli_records_open(in->records, in->reading.n ? in->reading.p : "", 0)) return CLI_FAIL;
  if (decode_has_members(in->format)) cli_fields_read(in, in->records);
  in->records->see = in->see;
  in->records->see_user = in->user;
  return CLI_OK;
}

/* Makes documents of a file. */
static int read_documents(file *f) {
  decode_run d;
  memset(&d, 0, sizeof d);
  if (open_records(f->in)) return CLI_FAIL;
  f->in->files++;
  f->in->unpacked[f->r.packing]++;
  f->in->converted[f->r.converted]++;
  d.format = f->named && f->in->whole_lines ? DECODE_FILES : f->in->format;
  d.chunk_lines = f->in->chunk_lines;
  d.whole_lines = f->in->whole_lines;
  d.name = f->name;
  d.records = f->in->records;
  const int by_file = f->r.packing || reader_has_made(&f->r);
  if (by_file && f->source && !(d.file_hash = cli_hash_file(f->r.fd))) return lost(f, 0);
  d.document = on_document;
  d.malformed = on_malformed;
  d.cut = on_cut;
  d.user = f;
  const int r = decode_file(&d, &f->r);
  return r == DECODE_LOST ? lost(f, d.line) : r;
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

static int is_text_analyzer(const char *analyzer) {
  return !strncmp(analyzer, "text", 4) && (!analyzer[4] || analyzer[4] == ' ');
}

void cli_input_names(cli_input *in, const char *analyzer) {
  in->defines = is_text_analyzer(analyzer);
  in->paths = !in->no_names && in->defines;
}

void cli_input_chunks(cli_input *in, const char *analyzer) {
  if (in->whole_files || in->format != DECODE_FILES || !is_text_analyzer(analyzer)) return;
  in->format = DECODE_CHUNKS;
  in->chunk_lines = CHUNK_LINES;
  in->whole_lines = WHOLE_LINES;
}

void cli_input_home(cli_input *in, const char *index) {
  free(in->home);
  in->home = source_home(index);
}

void cli_input_fields_home(cli_input *in, const char *index) {
  free(in->fields_home);
  in->fields_home = source_home(index);
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

/* Lets the filter make a text of the file, which is then read in its place. 0; -1 after a message. */
static int filter_file(file *f) {
  byte_buf text = {NULL, 0, 0, 0};
  f->in->failed++; /* as it is if no text comes */
  const int r = cli_filter_run(f->filter, f->r.fd, is_named(f->in) ? f->name : NULL, &text);
  if (!r) f->in->failed--;
  reader_close(&f->r);
  f->r.buf = text.p;
  f->r.cap = text.cap;
  f->r.end = r ? 0 : text.n;
  f->r.any = f->r.end > 0;
  f->r.eof = f->r.as_it_is = 1;
  return r;
}

/* A file of which the filter made no text. */
static int unfiltered(file *f) {
  if (f->in->follower && f->source) f->in->follower->unread(f->in->user, f->source);
  return cli_signal ? CLI_FAIL : 0;
}

/* Returns whether markup is taken out of the file: tables and records have none for people, and a filter has made a
 * text. */
static int may_convert(const file *f) { return !f->filter && !f->in->raw && f->in->format < DECODE_TSV; }

/* Returns whether mail is looked for: lines of a file that are to be documents are those of the file. */
static int may_be_mail(const file *f) { return may_convert(f) && f->in->format != DECODE_LINES; }

/* Reads a file of which the first bytes show whether it is a text. */
static int read_text(file *f, int named) {
  if (f->filter && filter_file(f)) return unfiltered(f);
  reader_kind kind;
  f->r.mails = may_be_mail(f);
  f->r.said = f->filter ? 0 : f->in->encoding;
  if (reader_begin(&f->r, &kind)) return lost(f, 0);
  f->in->left_out = kind;
  if (kind == READER_TEXT && may_convert(f) && reader_convert(&f->r, f->name)) return lost(f, 0);
  if (kind == READER_TEXT) return read_documents(f);
  return cli_skip_file(f->in, kind, f->name, named);
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
  if (!state) errno = ENOMEM;
  if (!n) hash = XXH3_64bits_digest(state);
  (void)XXH3_freeState(state);
  free(room);
  return hash;
}

/* Returns a path as words, to be freed: what lies below the operand, or the name of a file that was named. */
static char *path_words(const cli_input *in, const char *path, int named) {
  const char *slash = strrchr(path, '/');
  size_t n = strlen(in->operand);
  while (n && in->operand[n - 1] == '/') n--;
  if (named) path = slash ? slash + 1 : path;
  else if (n && !strncmp(path, in->operand, n) && path[n] == '/') path += n + 1;
  char *words = cli_copy(path, strlen(path));
  for (char *p = words; *p; p++)
    if (*p == '/') *p = ' '; /* a connector would make one word of all folders */
  return words;
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
  f.named = named;
  f.st = path ? st : NULL;
  f.source = path ? cli_input_source(in, path) : NULL;
  f.below = path && in->paths && in->format <= DECODE_CHUNKS ? path_words(in, path, named) : NULL;
  f.filter = path ? filters_find(in->filters, name, strlen(name), 0) : NULL;
  cli_reader_open(&f.r, fd, DECODE_MOST);
  f.r.as_it_is = in->raw;
  r = in->follower && path ? read_followed(&f, st, named) : read_text(&f, named);
  if (named && !r && f.r.any && in->documents == before) {
    cli_error("%s: no document could be made of it", name);
    r = CLI_FAIL;
  }
  reader_close(&f.r);
  cli_buf_free(&f.head);
  free(f.source);
  free(f.below);
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

/* ---- operands that lie in one another ---- */

/* Returns whether the set has a folder that the absolute path lies in. */
static int has_above(const cli_hashes *set, const char *path) {
  for (size_t n = strlen(path); n-- > 0;)
    if (path[n] == '/' && set->slots[hash_place(set, XXH3_64bits(path, n))]) return 1;
  return 0;
}

static int is_folder(const char *path) {
  struct stat st;
  return !stat(path, &st) && S_ISDIR(st.st_mode);
}

void cli_input_nest(cli_input *in, char **operands, int n) {
  cli_hashes set;
  memset(&set, 0, sizeof set);
  set.max = in->paths_read.max = (uint64_t)1 << 40;
  for (int turn = 0; turn < 2; turn++) {
    for (int i = 0; i < n && !in->nested; i++) {
      if (!strcmp(operands[i], "-")) continue;
      char *path = cli_input_path(in, operands[i]);
      if (turn) in->nested = has_above(&set, path);
      else in->nested = !hash_is_new(&set, XXH3_64bits(path, strlen(path))) && is_folder(operands[i]);
      free(path);
    }
  }
  free(set.slots);
}

/* Returns whether an operand before this one had the path. kind: 0 for what is read, 1 for what is left out, which an
 * operand may name all the same. */
static int was_met(cli_input *in, const char *path, int kind) {
  if (!in->nested) return 0;
  char *whole = cli_input_path(in, path);
  const int is_new = hash_is_new(&in->paths_read, XXH3_64bits_withSeed(whole, strlen(whole), (XXH64_hash_t)kind));
  free(whole);
  return !is_new;
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
  if (why != GPUIR_SKIPPED_UNREADABLE && was_met(in, path, 1)) return;
  switch (why) {
  case GPUIR_SKIPPED_HIDDEN: cli_skip_entry(in, &in->hidden_skipped, path, "hidden"); break;
  case GPUIR_SKIPPED_IGNORED: cli_skip_entry(in, &in->ignored, path, "ignored"); break;
  case GPUIR_SKIPPED_CIRCLE:
    cli_error("%s: skipped: a link to a folder above it", path);
    in->links_skipped++;
    break;
  case GPUIR_SKIPPED_LINK: cli_skip_entry(in, &in->links_skipped, path, "link"); break;
  case GPUIR_SKIPPED_INDEX: cli_skip_entry(in, &in->indexes_skipped, path, "index"); break;
  case GPUIR_SKIPPED_UNREADABLE: unreadable(in, path, error); break;
  default: cli_skip_entry(in, &in->special_skipped, path, "no regular file"); break;
  }
}

/* Ends the walk with an exit code. */
static int end_walk(cli_input *in, int code) {
  in->code = code;
  return GPUIR_E_CANCELLED;
}

/* Reads what the walk has opened. What this process writes is left out, since it would grow while it is read, and so
 * are mounts of gpuirfs, which show what is indexed already. */
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
  if (was_met(in, e->path, 0)) return GPUIR_WALK_LEAVE;
  const int code = read_file(in, e->fd, e->st, e->path, e->is_named);
  return code ? end_walk(in, code) : GPUIR_WALK_LEAVE;
}

/* Takes the encoding that texts are said to have. Not 0 after a message. */
static int take_encoding(const cli_args *a, cli_input *in) {
  const int found = encoding_find(a->value, strlen(a->value));
  cli_buf b = {NULL, 0, 0};
  if (found >= 0 && encoding_is_there(found)) return in->encoding = found + 1, 0;
  for (int i = 0; found < 0 && encoding_name(i); i++) {
    cli_buf_text(&b, i ? ", " : "");
    cli_buf_text(&b, encoding_name(i));
  }
  const int code = found < 0
      ? cli_misuse(a->command, "%s: '%s' is none of %.*s", a->name, a->value, (int)b.n, b.p)
      : cli_misuse(a->command, "%s: the C library here does not convert %s", a->name, encoding_name(found));
  cli_buf_free(&b);
  return code;
}

int cli_input_format(const cli_args *a, int id, cli_input *in) {
  static const decode_format formats[] = {DECODE_CHUNKS, DECODE_LINES, DECODE_TSV, DECODE_JSON, DECODE_TREC, DECODE_CSV,
      DECODE_TABS};
  if (id == CLI_IN_HIDDEN) return in->hidden = 1, 0;
  if (id == CLI_IN_FOLLOW) return in->follow = 1, 0;
  if (id == CLI_IN_NO_IGNORE) return in->no_ignore = 1, 0;
  if (id == CLI_IN_VERBOSE) return in->verbose = 1, 0;
  if (id == CLI_IN_RAW) return in->raw = 1, 0;
  if (id == CLI_IN_ENCODING) return take_encoding(a, in);
  if (id == CLI_IN_SKIP) return in->skip_errors = 1, 0;
  if (id == CLI_IN_NO_NAMES) return in->no_names = 1, 0;
  if (id == CLI_IN_WHOLE) return in->whole_files = 1, 0;
  if (id == CLI_IN_FILTER) return cli_filters_add(a, in->filters);
  if (id < CLI_IN_CHUNK || id > CLI_IN_TSV_HEAD) return 1;
  const decode_format format = formats[id - CLI_IN_CHUNK];
  if (in->format != DECODE_FILES && in->format != format)
    return cli_misuse(a->command, "%s: another format was given before", a->name);
  in->format = format;
  return id == CLI_IN_CHUNK ? cli_unsigned(a, 1, 1000000000, &in->chunk_lines) : 0;
}

/* Appends a part of in->reading, of which tabs part them. */
static void add_reading(cli_input *in, const char *name, const char *value) {
  if (in->reading.n) in->reading.p[in->reading.n - 1] = '\t';
  cli_buf_text(&in->reading, name);
  cli_buf_add(&in->reading, value, strlen(value) + 1);
}

const char *cli_input_reading(cli_input *in) {
  if (in->raw) add_reading(in, "raw", "");
  if (in->encoding) add_reading(in, "encoding=", encoding_name(in->encoding - 1));
  return in->reading.p; /* NULL: nothing was chosen */
}

void cli_input_take_reading(cli_input *in, const char *reading) {
  in->reading.n = 0;
  if (*reading) cli_buf_add(&in->reading, reading, strlen(reading) + 1);
  for (; *reading; reading += strcspn(reading, "\t"), reading += *reading == '\t') {
    const size_t n = strcspn(reading, "\t");
    if (n == 3 && !memcmp(reading, "raw", n)) in->raw = 1;
    if (n > 9 && !memcmp(reading, "encoding=", 9)) in->encoding = encoding_find(reading + 9, n - 9) + 1;
  }
}

int cli_input_members(const cli_args *a, int role, cli_input *in) {
  static const char *const roles[] = {"id=", "title=", "text="};
  if (!*a->value || strpbrk(a->value, "\t\n\r") || (role != RECORDS_TEXT && strchr(a->value, ',')))
    return cli_misuse(a->command, "%s: '%s' is no name of %s", a->name, a->value,
        role == RECORDS_TEXT ? "members, with commas between them" : "a member");
  if (in->reading.n && strstr(in->reading.p, roles[role]))
    return cli_misuse(a->command, "%s: another name was given before", a->name);
  add_reading(in, roles[role], a->value);
  return 0;
}

/* Appends the names of the members that had this role. */
static void put_members(cli_buf *b, const record_reader *r, int role, const char *what) {
  const char *name;
  size_t n;
  for (size_t i = 0; (name = records_used(r, role, i, &n)) != NULL; i++) {
    cli_buf_text(b, i ? ", " : what);
    cli_buf_add(b, name, n);
  }
}

void cli_input_tell_members(const cli_input *in) {
  const record_reader *r = in->records;
  cli_buf b = {NULL, 0, 0};
  if (!r || !decode_has_members(in->format)) return;
  put_members(&b, r, RECORDS_ID, "id from ");
  put_members(&b, r, RECORDS_TITLE, "; title from ");
  put_members(&b, r, RECORDS_TEXT, "; text from ");
  for (size_t at = 0; at < r->dropped.n; at += strlen(r->dropped.p + at) + 1) {
    cli_buf_text(&b, at ? ", " : "; other members are not kept: ");
    cli_buf_text(&b, r->dropped.p + at);
  }
  for (size_t i = 0; i < in->nfields; i++) {
    cli_buf_text(&b, i ? ", " : "; fields ");
    cli_buf_text(&b, in->fields[i].name);
  }
  if (b.n) cli_error("members: %.*s", (int)b.n, b.p + (b.p[0] == ';' ? 2 : 0));
  cli_buf_free(&b);
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
  in->operand = operand;
  const int status = gpuir_walk(operand, &how, &err);
  if (status != GPUIR_E_NOT_FOUND) in->missing = 0;
  else if (!in->follower && !in->follow) cli_error("%s: %s", operand, strerror(in->missing));
  if (in->code || !status) return in->code;
  /* what cannot be opened was said, or is a follower's matter */
  return status == GPUIR_E_IO || status == GPUIR_E_NOT_FOUND ? CLI_FAIL : cli_fail(operand, status, &err);
}

void cli_input_free(cli_input *in) {
  free(in->names.slots);
  free(in->paths_read.slots);
  free(in->cwd);
  free(in->home);
  free(in->fields_home);
  cli_buf_free(&in->reading);
  if (in->records) records_close(in->records);
  free(in->records);
  cli_fields_free(in);
  in->records = NULL;
  in->names.slots = in->paths_read.slots = NULL;
  in->cwd = in->home = in->fields_home = NULL;
}
