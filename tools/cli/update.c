/* update.c - gpuir update: a live index follows files; gpuir index --live makes one.
 *
 * A file is not read if size, inode and both times are those in the table of files (files.c). If one of them differs,
 * but not the size, its bytes are compared by their hash. They are also if the file was written in the last two seconds
 * before it was read: it may then be written again without a trace in its times ("racily clean", as git calls it). All
 * documents of a file that has changed are replaced, and those of one that has gone are deleted. The old documents of a
 * file go when the new ones are there: if it cannot be read to its end, the new ones go instead.
 */
#include "cli.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RACY 2000000000u /* nanoseconds */
#define SECOND 1000000000u

/* Paths that are looked up by what lies below them. */
typedef struct paths {
  char **list;
  size_t n, cap;
  int sorted;
} paths;

typedef struct scan {
  cli_update *u;
  cli_live *live;
  cli_input in;
  cli_files files;
  int64_t start;
  paths tops; /* of the operands */
  paths kept; /* below which nothing counts as gone */
  paths had; /* of the files that the index has; made when it is needed */
  int dirty; /* the table is to be written */
  int told; /* the last time a folder was empty, which was said */
  int failed; /* a deletion has failed, after a message */
  const cli_file *reading; /* the row of the file that is being read; NULL: none */
  cli_file before; /* what it was; source is NULL: there was none */
  uint64_t mark; /* where its new documents begin */
} scan;

/* ---- sets of paths ---- */

/* Adds an absolute path, which is freed with the set. */
static void add_path(paths *p, char *path) {
  if (p->n == p->cap) p->list = (char **)cli_resize(p->list, p->cap = p->cap ? 2 * p->cap : 64, sizeof *p->list);
  p->list[p->n++] = path;
  p->sorted = 0;
}

static void free_paths(paths *p) {
  for (size_t i = 0; i < p->n; i++) free(p->list[i]);
  free(p->list);
}

static int by_bytes(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Returns where text[0..n) stands in the set, or would: what begins with it comes behind it. */
static size_t place_of(paths *p, const char *text, size_t n) {
  size_t low = 0, high = p->n;
  if (!p->sorted && p->n) qsort(p->list, p->n, sizeof *p->list, by_bytes);
  p->sorted = 1;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (strncmp(p->list[middle], text, n) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* Returns whether the set has the path, or a folder that it lies in; "" is the root. */
static int covers(paths *p, const char *path) {
  for (size_t n = 0;; n++) {
    if (path[n] && path[n] != '/') continue;
    const size_t at = place_of(p, path, n);
    if (at < p->n && !strncmp(p->list[at], path, n) && !p->list[at][n]) return 1;
    if (!path[n]) return 0;
  }
}

/* Returns whether the set has a path below the folder. */
static int has_inside(paths *p, const char *folder) {
  cli_buf prefix = {NULL, 0, 0};
  cli_buf_text(&prefix, folder);
  cli_buf_char(&prefix, '/');
  const size_t at = place_of(p, prefix.p, prefix.n);
  const int found = at < p->n && !strncmp(p->list[at], prefix.p, prefix.n);
  cli_buf_free(&prefix);
  return found;
}

/* ---- what a file was, and is ---- */

static uint64_t nanoseconds(const struct timespec *t) {
  return (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec;
}

/* Returns whether times of a file are so young that it may be written again without a change of them. */
static int is_racy(const scan *s, const struct stat *st) {
  const int64_t least = s->start - (int64_t)RACY;
  return (int64_t)nanoseconds(&st->st_mtim) >= least || (int64_t)nanoseconds(&st->st_ctim) >= least;
}

static int has_state(const cli_file *f, const struct stat *st) {
  return f->size == (uint64_t)st->st_size && f->inode == (uint64_t)st->st_ino &&
      f->mtime == nanoseconds(&st->st_mtim) && f->ctime == nanoseconds(&st->st_ctim);
}

/* Notes the state in which a file is read. */
static void take_state(scan *s, cli_file *f, const struct stat *st) {
  f->size = (uint64_t)st->st_size;
  f->inode = (uint64_t)st->st_ino;
  f->mtime = nanoseconds(&st->st_mtim);
  f->ctime = nanoseconds(&st->st_ctim);
  f->racy = is_racy(s, st);
  s->dirty = 1;
}

/* Returns whether a file has the bytes that the index knows. */
static int is_unchanged(scan *s, cli_file *f, const struct stat *st, int fd) {
  const int same = has_state(f, st);
  if (f->stale || f->gone) return 0;
  if (same && !f->racy) return 1;
  if (f->size != (uint64_t)st->st_size || !f->hash || cli_hash_file(fd) != f->hash) return 0;
  if (f->mtime / SECOND != nanoseconds(&st->st_mtim) / SECOND && cli_fields_of_files(&s->in, "mtime")) {
    s->u->touched++; /* the index has its time, which is another */
    return 0;
  }
  if (!same || !is_racy(s, st)) take_state(s, f, st);
  return 1;
}

/* Deletes the documents of a source. */
static int drop_source(scan *s, const char *source) {
  uint64_t n;
  return cli_live_delete(s->live, GPUIR_BY_SOURCE, source, strlen(source), &n);
}

static int on_file(void *user, const char *source, const struct stat *st, int fd) {
  scan *s = (scan *)user;
  cli_file *f = cli_files_find(&s->files, source);
  if (f && f->seen) return 0;
  if (f && is_unchanged(s, f, st, fd)) {
    f->seen = 1;
    s->u->unchanged++;
    if (f->kind) cli_skip_again(&s->in, f->kind);
    return 0;
  }
  memset(&s->before, 0, sizeof s->before);
  if (f) s->before = *f;
  if (!f) f = cli_files_add(&s->files, source, strlen(source));
  s->reading = f;
  s->mark = gpuir_live_mark(s->live->live);
  s->live->names.n = 0;
  take_state(s, f, st);
  f->hash = 0;
  f->kind = READER_TEXT;
  f->stale = f->gone = 0;
  f->seen = 1;
  return s->failed ? -1 : 1;
}

/* Deletes what the index had of a file that was read to its end. */
static void on_read(void *user, const char *source, uint64_t hash) {
  scan *s = (scan *)user;
  cli_file *f = cli_files_find(&s->files, source);
  if (f) {
    f->hash = hash;
    f->kind = s->in.left_out;
  }
  if (s->before.source && !s->failed)
    s->failed = cli_live_delete_before(s->live, s->mark, GPUIR_BY_SOURCE, source, strlen(source));
  if (!s->failed) s->failed = cli_live_replace_noted(s->live);
  if (s->before.source) s->u->changed++;
  else s->u->fresh++;
  s->reading = NULL;
}

/* Notes that a file is to be read again, or that nothing is known of what lies in a folder. What was added of it goes.
 */
static void on_unread(void *user, const char *source) {
  scan *s = (scan *)user;
  cli_file *f = cli_files_find(&s->files, source);
  if (f && f == s->reading) {
    if (!s->failed) s->failed = cli_live_take_back(s->live, s->mark);
    if (s->before.source) *f = s->before;
    else f->gone = 1;
  }
  if (f) f->stale = f->seen = 1;
  s->reading = NULL;
  s->dirty = 1;
  add_path(&s->kept, cli_input_whole(&s->in, source));
}

static const cli_follower follower = {on_file, on_read, on_unread};

static int on_document(void *user, const gpuir_doc_desc *doc, const char *text, size_t len) {
  const scan *s = (const scan *)user;
  if (s->u->replace) cli_live_note_name(s->live, doc->name, doc->name_len);
  return cli_live_add(s->live, doc, text, len);
}

/* ---- what has gone ---- */

/* Returns whether a file lies below an operand, and could be looked for. */
static int is_missed(scan *s, const cli_file *f) {
  if (f->seen || f->gone) return 0;
  char *path = cli_input_whole(&s->in, f->source);
  const int missed = covers(&s->tops, path) && !covers(&s->kept, path);
  free(path);
  return missed;
}

/* Deletes the documents of files below the operands that were not there. */
static int drop_gone(scan *s) {
  int code = CLI_OK;
  for (size_t i = 0; i < s->files.n && !code; i++) {
    cli_file *f = &s->files.list[i];
    if (!is_missed(s, f)) continue;
    code = drop_source(s, f->source);
    f->gone = s->dirty = 1;
    s->u->vanished++;
  }
  return code;
}

/* ---- the scan ---- */

/* Makes rows, which are to be read again, of the sources that the index has. */
static int take_sources(scan *s, const gpuir_index *index, uint64_t docids) {
  gpuir_doc doc;
  const char *last = NULL;
  for (size_t i = 0; i < s->files.n; i++) s->files.list[i].stale = 1;
  for (uint64_t i = 0; i < docids; i++) {
    const int r = gpuir_doc_get(index, (uint32_t)i, &doc);
    if (r == GPUIR_E_NOT_FOUND) continue;
    if (r) return cli_fail(s->live->path, r, NULL);
    if (doc.source == last || !doc.source_len || memchr(doc.source, 0, doc.source_len)) continue;
    last = doc.source;
    char *source = cli_copy(doc.source, doc.source_len);
    if (!cli_files_find(&s->files, source)) cli_files_add(&s->files, source, doc.source_len)->stale = 1;
    free(source);
  }
  s->dirty = 1;
  return CLI_OK;
}

int cli_update_settings(const cli_update *u, const cli_files *f) {
  const struct {
    const char *name;
    int said, kept;
  } all[] = {{" --hidden", u->hidden, f->hidden}, {" --follow", u->follow, f->follow},
      {" --no-ignore", u->no_ignore, f->no_ignore}};
  cli_buf missing = {NULL, 0, 0};
  int code = CLI_OK;
  for (size_t i = 0; i < sizeof all / sizeof *all && !code; i++) {
    if (all[i].kept && !all[i].said) cli_buf_text(&missing, all[i].name);
    if (!all[i].said || all[i].kept) continue;
    cli_error("%s:%s: it was made without, and that stays; nothing is changed", u->live.path, all[i].name);
    code = CLI_FAIL;
  }
  if (!code && missing.n && !u->trust && !cli_trusted(u->live.path)) {
    cli_error(
        "%s: others may have written its settings, by which more is read: say%.*s, or --trust-settings; nothing "
        "is changed",
        u->live.path, (int)missing.n, missing.p);
    code = CLI_FAIL;
  }
  cli_buf_free(&missing);
  return code;
}

/* Reads the table of files, and holds it against the index. */
static int take_table(scan *s) {
  gpuir_index *index;
  gpuir_index_info info;
  gpuir_error err;
  int code = cli_files_read(&s->files, s->live->path);
  if (code) return code;
  memset(&err, 0, sizeof err);
  const int r = gpuir_live_refresh(s->live->live, &index, &err);
  if (r) return cli_fail(s->live->path, r, &err);
  if (gpuir_index_get_info(index, &info))
    info.content = CLI_NO_CONTENT, info.filters = info.reading = info.analyzer = "";
  code = cli_filters_agree(&s->u->filters, s->live->path, info.filters);
  if (!code && (s->files.content == CLI_NO_CONTENT || s->files.content != info.content))
    code = take_sources(s, index, info.docids);
  cli_input_take_reading(&s->in, info.reading);
  cli_fields_take(&s->in, index);
  s->in.no_names = s->files.no_names;
  cli_input_names(&s->in, info.analyzer);
  gpuir_close(index);
  if (!code) code = cli_update_settings(s->u, &s->files);
  s->in.format = s->files.format;
  s->in.chunk_lines = s->files.chunk_lines;
  s->in.whole_lines = s->files.whole_lines;
  s->in.hidden = s->files.hidden;
  s->in.follow = s->files.follow;
  s->in.no_ignore = s->files.no_ignore;
  return code;
}

/* Returns whether the index has files below `top`. */
static int has_below(scan *s, const char *top) {
  for (size_t i = 0; !s->had.sorted && i < s->files.n; i++)
    if (!s->files.list[i].gone) add_path(&s->had, cli_input_whole(&s->in, s->files.list[i].source));
  return has_inside(&s->had, top);
}

/* Returns whether an operand is a folder without any entry. */
static int is_empty(const char *operand) {
  const struct dirent *d = NULL;
  DIR *dir = opendir(operand);
  if (!dir) return 0;
  errno = 0;
  while ((d = readdir(dir)) != NULL && (!strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))) continue;
  const int empty = !d && !errno;
  (void)closedir(dir);
  return empty;
}

/* An empty folder may be one on which no disk is mounted just now. Then nothing is deleted, and nothing read. It is
 * told of once. */
static int check_emptied(scan *s) {
  for (int i = 0; i < s->u->noperands && !s->u->emptied && !s->u->yes_all_gone; i++) {
    char *top = cli_input_path(&s->in, s->u->operands[i]);
    s->u->emptied = is_empty(s->u->operands[i]) && has_below(s, top);
    free(top);
    if (s->u->emptied && !(s->told && s->live->patient))
      cli_error("%s: the folder is empty, and the index has files of it: nothing is changed%s", s->u->operands[i],
          s->live->patient ? " until it is filled" : "; --yes-all-gone deletes their documents");
  }
  return s->u->emptied ? CLI_FAIL : CLI_OK;
}

/* Reads what an operand names. One that is not there any more must be a file that the index has; but where it comes
 * and goes while it is watched, the index need not have it. That a folder has gone is no reason to delete all of it. */
static int scan_operand(scan *s, const char *operand) {
  char *top = cli_input_path(&s->in, operand);
  char *source = cli_input_source(&s->in, operand);
  int code = cli_input_read(&s->in, operand);
  if (code && s->in.missing) {
    const int known = cli_files_find(&s->files, source) || (s->live->patient && !has_below(s, top));
    if (!known) cli_error("%s: %s", operand, strerror(s->in.missing));
    code = known ? CLI_OK : CLI_FAIL;
  }
  if (!code && cli_signal) code = CLI_FAIL;
  add_path(&s->tops, top);
  free(source);
  return code;
}

/* Writes what was left out, if it is not what the index has. */
static int keep_skipped(scan *s, const gpuir_index_info *info) {
  byte_buf now, before;
  skipped_counts has, had;
  int code = CLI_OK;
  memset(&now, 0, sizeof now);
  memset(&before, 0, sizeof before);
  cli_input_count_skipped(&s->in, &has);
  has.n[SKIPPED_CUT] = has.n[SKIPPED_MALFORMED] = 0; /* they are only counted in files that were read this time */
  skipped_keep(&has, &now);
  skipped_of(&had, s->live->path, info);
  skipped_keep(&had, &before);
  if (now.n != before.n || (now.n && memcmp(now.p, before.p, now.n) != 0))
    code = cli_files_write_skipped(s->live->path, now.p, now.n);
  bytes_free(&now);
  bytes_free(&before);
  return code;
}

/* Commits, then writes the table that goes with the commit, and what was left out. */
static int commit_scan(scan *s) {
  gpuir_index_info info;
  int code = cli_live_commit(s->live);
  if (!code) cli_live_tell_lost(s->live);
  if (!code) code = cli_live_info(s->live, &info);
  if (code) return code;
  s->u->documents = info.documents;
  s->files.content = info.content;
  if (s->dirty) code = cli_files_write(&s->files, s->live->path);
  return code ? code : keep_skipped(s, &info);
}

/* Brings the open live index up to date. */
static int run_scan(scan *s) {
  struct timespec now;
  int code = take_table(s);
  if (code) return code;
  (void)clock_gettime(CLOCK_REALTIME, &now);
  s->start = (int64_t)nanoseconds(&now);
  s->in.add = on_document;
  s->in.user = s;
  s->in.follower = &follower;
  s->in.filters = &s->u->filters;
  s->in.names.max = 1 << 20;
  s->in.skip_errors = s->u->skip_errors;
  s->in.verbose = s->u->verbose;
  cli_input_home(&s->in, s->live->path);
  cli_input_exclude(&s->in, s->live->path);
  code = check_emptied(s);
  cli_input_nest(&s->in, s->u->operands, s->u->noperands);
  for (int i = 0; !code && i < s->u->noperands; i++) code = scan_operand(s, s->u->operands[i]);
  if (!code) code = drop_gone(s);
  s->u->partly = cli_input_end(&s->in) != CLI_OK;
  if (s->failed) code = CLI_FAIL;
  return code ? code : commit_scan(s);
}

/* Says what was found. */
static void report(const cli_update *u) {
  char fresh[27], changed[27], vanished[27], same[CLI_COUNTED], added[CLI_COUNTED], deleted[27], all[27];
  char touched[27], only[64];
  only[0] = 0;
  if (u->touched) (void)snprintf(only, sizeof only, " (%s in its time alone)", cli_grouped(u->touched, touched));
  cli_error("%s: %s new, %s changed%s, %s vanished, %s; %s added, %s deleted, %s in all", u->live.path,
      cli_grouped(u->fresh, fresh), cli_grouped(u->changed, changed), only, cli_grouped(u->vanished, vanished),
      cli_counted(u->unchanged, "unchanged file", "unchanged files", same),
      cli_counted(u->live.added, "document", "documents", added), cli_grouped(u->live.deleted, deleted),
      cli_grouped(u->documents, all));
}

/* Says what was left out, where it is not what was said before: watch looks often. */
static void tell_skipped(cli_update *u, const cli_input *in) {
  const uint64_t n = cli_input_skipped(in);
  if (!u->live.quiet && n != u->told) cli_input_tell_skipped(in);
  u->told = n;
}

int cli_update_run(cli_update *u) {
  scan s;
  memset(&s, 0, sizeof s);
  s.u = u;
  s.live = &u->live;
  s.told = u->emptied;
  u->emptied = 0;
  u->fresh = u->changed = u->touched = u->vanished = u->unchanged = u->live.added = u->live.deleted = 0;
  int code = u->live.live ? CLI_OK : cli_live_open(&u->live, NULL);
  if (!code) code = run_scan(&s);
  if (!code && !u->keep) code = cli_live_merge(&u->live, 0);
  if (!u->keep) {
    gpuir_live_close(u->live.live);
    u->live.live = NULL;
  }
  cli_buf_free(&u->live.names);
  cli_files_free(&s.files);
  free_paths(&s.tops);
  free_paths(&s.kept);
  free_paths(&s.had);
  tell_skipped(u, &s.in);
  if (!u->live.quiet) cli_fields_tell(&s.in);
  cli_input_free(&s.in);
  const int any = u->fresh || u->changed || u->vanished;
  if (!code && !u->live.quiet && (any || !u->live.patient)) report(u);
  return code;
}

/* ---- the commands ---- */

int cli_update_options(const char *command, int argc, char **argv, cli_args *a, cli_update *u) {
  enum { O_TRUST = 2, O_GONE, O_REPLACE };
  static const cli_option options[] = {{O_GONE, "yes-all-gone", 0, 0}, {CLI_WAIT, "wait", 0, 0},
      {CLI_OUTPUT, "output", 'o', 1}, {CLI_MEMORY, "memory", 0, 1}, {CLI_THREADS, "threads", 0, 1},
      {CLI_QUIET, "quiet", 'q', 0}, {CLI_IN_SKIP, "skip-errors", 0, 0}, {CLI_IN_FILTER, "filter", 0, 1},
      {CLI_IN_VERBOSE, "verbose", 'v', 0}, {CLI_IN_HIDDEN, "hidden", 0, 0}, {CLI_IN_FOLLOW, "follow", 0, 0},
      {CLI_IN_NO_IGNORE, "no-ignore", 0, 0}, {O_TRUST, "trust-settings", 0, 0}, {O_REPLACE, "replace", 0, 0},
      {0, NULL, 0, 0}};
  int opt, bad = 0;
  memset(u, 0, sizeof *u);
  cli_args_start(a, command, strcmp(command, "watch") ? options : options + 2 /* it waits */, argc, argv);
  while (!bad && (opt = cli_next(a)) != CLI_END) {
    switch (opt) {
    case CLI_HELP: return 1 + cli_help(command);
    case CLI_IN_SKIP: u->skip_errors = 1; break;
    case CLI_IN_FILTER: bad = cli_filters_add(a, &u->filters); break;
    case CLI_IN_VERBOSE: u->verbose = 1; break;
    case CLI_IN_HIDDEN: u->hidden = 1; break;
    case CLI_IN_FOLLOW: u->follow = 1; break;
    case CLI_IN_NO_IGNORE: u->no_ignore = 1; break;
    case O_TRUST: u->trust = 1; break;
    case O_GONE: u->yes_all_gone = 1; break;
    case O_REPLACE: u->replace = 1; break;
    default: bad = cli_live_option(a, opt, &u->live); break;
    }
  }
  if (bad) return 1 + CLI_USAGE;
  if (!u->live.path) return 1 + cli_misuse(command, "-o FOLDER is missing");
  if (!a->noperands) return 1 + cli_misuse(command, "an INPUT is missing");
  for (int i = 0; i < a->noperands; i++)
    if (!strcmp(a->operands[i], "-"))
      return 1 + cli_misuse(command, "standard input is no file that could change; 'gpuir add' takes it");
  u->operands = a->operands;
  u->noperands = a->noperands;
  return 0;
}

int cli_update_command(int argc, char **argv) {
  cli_update u;
  cli_args a;
  int code = cli_update_options("update", argc, argv, &a, &u);
  if (code) {
    code--;
  } else {
    cli_catch_signals();
    code = cli_update_run(&u);
    if (code && cli_signal) {
      cli_error("stopped; %s is as it was", u.live.path);
      code = 128 + (int)cli_signal;
    } else if (!code && u.partly) {
      code = CLI_PARTLY;
    }
  }
  filters_free(&u.filters);
  cli_args_free(&a);
  return code;
}

/* ---- gpuir index --live ---- */

/* What gpuir index --live makes. */
typedef struct founding {
  const char *path;
  cli_files settings; /* a table of no files, which has the choices of the command line */
  int made_folder, wrote_table;
} founding;

/* Writes the settings: they are there before the index is, so that no later update goes without them. */
static int found_table(void *user) {
  founding *f = (founding *)user;
  f->wrote_table = 1;
  return cli_files_write(&f->settings, f->path);
}

/* Returns whether a name in a folder is what an index that was begun has before its first commit. The library looks at
 * all but the table. */
static int is_begun(int folder, const char *name) {
  if (!strcmp(name, "update") || !strcmp(name, "update.tmp")) return cli_files_is_table(folder, name, name[6] != 0);
  return !strcmp(name, "lock") || !strcmp(name, "manifest.tmp") || !strncmp(name, "000001.gpuir", 12);
}

/* Checks that an open folder has nothing, or what a killed process began; a file system's lost+found does not count. */
static int check_folder(const char *path, DIR *dir) {
  const struct dirent *d;
  struct stat st;
  int begun = 0;
  while (errno = 0, (d = readdir(dir)) != NULL) {
    if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, "..")) continue;
    if (!strcmp(d->d_name, "lost+found") && !fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
        S_ISDIR(st.st_mode))
      continue;
    if (!is_begun(dirfd(dir), d->d_name)) {
      cli_error("%s: the folder has other files, such as '%s'", path, d->d_name);
      return CLI_FAIL;
    }
    begun = 1;
  }
  if (errno) return cli_error("%s: %s", path, strerror(errno)), CLI_FAIL;
  if (!begun || !fstatat(dirfd(dir), "lock", &st, AT_SYMLINK_NOFOLLOW)) return CLI_OK;
  cli_error("%s: the folder has other files, which are named like those of a live index", path);
  return CLI_FAIL;
}

/* Makes the folder of a new live index; one that is there stays as it is. */
static int make_folder(founding *f) {
  if (cli_is_live(f->path)) {
    cli_error("%s: a live index already, which 'gpuir update' and 'gpuir add' change", f->path);
    return CLI_FAIL;
  }
  f->made_folder = !mkdir(f->path, 0777);
  if (f->made_folder) return CLI_OK;
  DIR *dir = errno == EEXIST ? opendir(f->path) : NULL;
  if (!dir) {
    cli_error("%s: %s", f->path, strerror(errno));
    return CLI_FAIL;
  }
  const int code = check_folder(f->path, dir);
  (void)closedir(dir);
  return code;
}

/* Removes what this process made of an index, and nothing else. is_open: the index has its first commit, which has no
 * document, and is locked. */
static void remove_begun(const founding *f, int is_open) {
  static const char *const names[] = {"manifest", "000001.gpuir", "update", "lock"};
  const int folder = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* opendir would ask for memory */
  if (folder < 0) return;
  if (is_open)
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) (void)unlinkat(folder, names[i], 0);
  else if (f->wrote_table) (void)unlinkat(folder, "update", 0);
  (void)close(folder);
}

/* Fills a new index, which is locked until it is done. */
static int found_index(cli_update *u, const gpuir_builder_desc *settings, founding *f) {
  int code = cli_live_open(&u->live, settings);
  if (!code) code = cli_update_run(u);
  if (!code) code = cli_live_merge(&u->live, 0);
  const int kept = u->live.committed || (!u->live.live && cli_is_live(f->path));
  if (code && !kept) remove_begun(f, u->live.live != NULL);
  gpuir_live_close(u->live.live);
  u->live.live = NULL;
  if (code && !kept && f->made_folder) (void)rmdir(f->path);
  if (code && kept && !cli_signal) cli_error("%s: it is made, and 'gpuir update' brings it up to date", f->path);
  return code;
}

int cli_live_found(cli_build *b, const cli_input *in, char **operands, int n) {
  gpuir_builder_desc settings = b->desc;
  founding f;
  cli_update u;
  memset(&f, 0, sizeof f);
  f.path = b->output;
  f.settings.format = in->format;
  f.settings.chunk_lines = in->chunk_lines;
  f.settings.whole_lines = in->whole_lines;
  f.settings.hidden = in->hidden;
  f.settings.follow = in->follow;
  f.settings.no_ignore = in->no_ignore;
  f.settings.no_names = in->no_names;
  f.settings.content = CLI_NO_CONTENT;
  memset(&u, 0, sizeof u);
  u.live.path = b->output;
  u.live.megabytes = b->megabytes;
  u.live.threads = b->threads;
  u.live.quiet = b->quiet;
  u.live.on_create = found_table;
  u.live.user = &f;
  u.skip_errors = in->skip_errors;
  u.verbose = in->verbose;
  u.hidden = in->hidden;
  u.follow = in->follow;
  u.no_ignore = in->no_ignore;
  u.filters = *in->filters; /* which the caller releases */
  u.filters.automatic = 0; /* they were taken */
  u.operands = operands;
  u.noperands = n;
  u.keep = 1;
  int code = make_folder(&f);
  if (!code) code = found_index(&u, &settings, &f);
  if (!code) return u.partly ? CLI_PARTLY : CLI_OK;
  if (!cli_signal) return code;
  cli_error("stopped; %s is %s", b->output, u.live.committed ? "made, and 'gpuir update' goes on" : "not made");
  return 128 + (int)cli_signal;
}
