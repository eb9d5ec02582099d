/* update.c - gpuir update: a live index follows files; gpuir index --live makes one.
 *
 * A file is not read if size, inode and both times are those in the table of files (files.c). If one of them differs,
 * but not the size, its bytes are compared by their hash. They are also if the file was written in the last two seconds
 * before it was read: it may then be written again without a trace in its times ("racily clean", as git calls it). All
 * documents of a file that has changed are replaced, and those of one that has gone are deleted.
 */
#include "cli.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RACY 2000000000u /* nanoseconds */

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
    return 0;
  }
  if (f && drop_source(s, source)) return -1;
  if (f) s->u->changed++;
  else s->u->fresh++;
  if (!f) f = cli_files_add(&s->files, source, strlen(source));
  take_state(s, f, st);
  f->hash = 0;
  f->stale = f->gone = 0;
  f->seen = 1;
  return 1;
}

static void on_read(void *user, const char *source, uint64_t hash) {
  cli_file *f = cli_files_find(&((scan *)user)->files, source);
  if (f) f->hash = hash;
}

/* Notes that a file is to be read again, or that nothing is known of what lies in a folder. */
static void on_unread(void *user, const char *source) {
  scan *s = (scan *)user;
  cli_file *f = cli_files_find(&s->files, source);
  if (f) f->stale = f->seen = 1;
  s->dirty = 1;
  add_path(&s->kept, cli_input_whole(&s->in, source));
}

static const cli_follower follower = {on_file, on_read, on_unread};

static int on_document(void *user, const gpuir_doc_desc *doc, const char *text, size_t len) {
  return cli_live_add(((scan *)user)->live, doc, text, len);
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
  if (gpuir_index_get_info(index, &info)) info.content = CLI_NO_CONTENT, info.filters = "";
  code = cli_filters_agree(&s->u->filters, s->live->path, info.filters);
  if (!code && (s->files.content == CLI_NO_CONTENT || s->files.content != info.content))
    code = take_sources(s, index, info.docids);
  gpuir_close(index);
  s->in.format = s->files.format;
  s->in.chunk_lines = s->files.chunk_lines;
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

/* Commits, then writes the table that goes with the commit. */
static int commit_scan(scan *s) {
  gpuir_index_info info;
  int code = cli_live_commit(s->live);
  if (!code) cli_live_tell_lost(s->live);
  if (!code) code = cli_live_info(s->live, &info);
  if (code) return code;
  s->u->documents = info.documents;
  s->files.content = info.content;
  return s->dirty ? cli_files_write(&s->files, s->live->path) : CLI_OK;
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
  s->in.names_max = 1 << 20;
  s->in.skip_errors = s->u->skip_errors;
  cli_input_home(&s->in, s->live->path);
  cli_input_exclude(&s->in, s->live->path);
  for (int i = 0; !code && i < s->u->noperands; i++) code = scan_operand(s, s->u->operands[i]);
  if (!code) code = drop_gone(s);
  return code ? code : commit_scan(s);
}

/* Says what was found. */
static void report(const cli_update *u) {
  char fresh[27], changed[27], vanished[27], same[CLI_COUNTED], added[CLI_COUNTED], deleted[27], all[27];
  cli_error("%s: %s new, %s changed, %s vanished, %s; %s added, %s deleted, %s in all", u->live.path,
      cli_grouped(u->fresh, fresh), cli_grouped(u->changed, changed), cli_grouped(u->vanished, vanished),
      cli_counted(u->unchanged, "unchanged file", "unchanged files", same),
      cli_counted(u->live.added, "document", "documents", added), cli_grouped(u->live.deleted, deleted),
      cli_grouped(u->documents, all));
}

int cli_update_run(cli_update *u) {
  scan s;
  memset(&s, 0, sizeof s);
  s.u = u;
  s.live = &u->live;
  u->fresh = u->changed = u->vanished = u->unchanged = u->live.added = u->live.deleted = 0;
  int code = u->live.live ? CLI_OK : cli_live_open(&u->live, NULL);
  if (!code) code = run_scan(&s);
  if (!code && !u->keep) code = cli_live_merge(&u->live, 0);
  if (!u->keep) {
    gpuir_live_close(u->live.live);
    u->live.live = NULL;
  }
  cli_files_free(&s.files);
  free_paths(&s.tops);
  free_paths(&s.kept);
  free_paths(&s.had);
  cli_input_free(&s.in);
  const int any = u->fresh || u->changed || u->vanished;
  if (!code && !u->live.quiet && (any || !u->live.patient)) report(u);
  return code;
}

/* ---- the commands ---- */

int cli_update_options(const char *command, int argc, char **argv, cli_args *a, cli_update *u) {
  static const cli_option options[] = {{CLI_OUTPUT, "output", 'o', 1}, {CLI_MEMORY, "memory", 0, 1},
      {CLI_THREADS, "threads", 0, 1}, {CLI_QUIET, "quiet", 'q', 0}, {CLI_IN_SKIP, "skip-errors", 0, 0},
      {CLI_IN_FILTER, "filter", 0, 1}, {0, NULL, 0, 0}};
  int opt, bad = 0;
  memset(u, 0, sizeof *u);
  cli_args_start(a, command, options, argc, argv);
  while (!bad && (opt = cli_next(a)) != CLI_END) {
    if (opt == CLI_HELP) return 1 + cli_help(command);
    if (opt == CLI_IN_SKIP) u->skip_errors = 1;
    else if (opt == CLI_IN_FILTER) bad = cli_filters_add(a, &u->filters);
    else bad = cli_live_option(a, opt, &u->live);
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
    }
  }
  cli_filters_free(&u.filters);
  cli_args_free(&a);
  return code;
}

/* ---- gpuir index --live ---- */

/* Removes an index that was not finished, and its folder. */
static void remove_folder(const char *path) {
  DIR *dir = opendir(path);
  const struct dirent *d;
  while (dir && (d = readdir(dir)) != NULL) {
    const size_t digits = strspn(d->d_name, "0123456789");
    if ((digits >= 6 && !strncmp(d->d_name + digits, ".gpuir", 6)) || !strcmp(d->d_name, "lock") ||
        !strcmp(d->d_name, "manifest") || !strcmp(d->d_name, "manifest.tmp") || !strcmp(d->d_name, "update"))
      (void)unlinkat(dirfd(dir), d->d_name, 0);
  }
  if (dir) (void)closedir(dir);
  (void)rmdir(path);
}

/* Returns whether the folder is one in which a live index was begun: it has the lock. */
static int is_begun(const char *path) {
  cli_buf name = {0};
  struct stat st;
  cli_buf_add(&name, path, strlen(path));
  cli_buf_add(&name, "/lock", 6);
  const int found = !lstat(name.p, &st) && S_ISREG(st.st_mode);
  cli_buf_free(&name);
  return found;
}

/* Makes the folder of a new live index; one that is there must be empty, or have what a killed process began. */
static int make_folder(const char *path) {
  if (cli_is_live(path)) {
    cli_error("%s: a live index already, which 'gpuir update' and 'gpuir add' change", path);
    return CLI_FAIL;
  }
  if (!mkdir(path, 0777) || is_begun(path)) return CLI_OK;
  /* an empty folder can be removed and made again; any other can not */
  if (!rmdir(path) && !mkdir(path, 0777)) return CLI_OK;
  cli_error("%s: %s", path, strerror(errno));
  return CLI_FAIL;
}

/* Writes a table of no files, which has the choices of the command line. */
static int found_table(const char *path, const cli_input *in) {
  cli_files files;
  memset(&files, 0, sizeof files);
  files.format = in->format;
  files.chunk_lines = in->chunk_lines;
  files.hidden = in->hidden;
  files.follow = in->follow;
  files.no_ignore = in->no_ignore;
  files.content = CLI_NO_CONTENT;
  const int code = cli_files_write(&files, path);
  cli_files_free(&files);
  return code;
}

int cli_live_found(cli_build *b, const cli_input *in, char **operands, int n) {
  gpuir_builder_desc settings = b->desc;
  cli_update u;
  memset(&u, 0, sizeof u);
  u.live.path = b->output;
  u.live.megabytes = b->megabytes;
  u.live.threads = b->threads;
  u.live.quiet = b->quiet;
  u.skip_errors = in->skip_errors;
  u.filters = *in->filters; /* which the caller releases */
  u.operands = operands;
  u.noperands = n;
  int code = make_folder(b->output);
  if (code) return code;
  code = cli_live_open(&u.live, &settings);
  gpuir_live_close(u.live.live);
  u.live.live = NULL;
  if (!code) code = found_table(b->output, in);
  if (!code) code = cli_update_run(&u);
  if (!code) return CLI_OK;
  remove_folder(b->output);
  if (!cli_signal) return code;
  cli_error("stopped; %s is not made", b->output);
  return 128 + (int)cli_signal;
}
