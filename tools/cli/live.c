/* live.c - what writes to live indexes: opening them; gpuir add, delete and merge. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- opening ---- */

int cli_is_live(const char *path) {
  const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* no memory: it is asked where that ran out */
  struct stat st;
  const int live = folder >= 0 && !fstatat(folder, "manifest", &st, 0) && S_ISREG(st.st_mode);
  if (folder >= 0) (void)close(folder);
  return live;
}

int cli_live_open(cli_live *l, const gpuir_builder_desc *settings) {
  gpuir_live_desc desc;
  gpuir_error err;
  struct stat st;
  const struct timespec again = {0, 20000000};
  memset(&desc, 0, sizeof desc);
  memset(&err, 0, sizeof err);
  if (settings) desc.settings = *settings;
  desc.create = settings != NULL;
  desc.on_create = l->on_create;
  desc.user = l->user;
  desc.settings.path = l->path;
  desc.settings.memory = l->megabytes << 20;
  desc.settings.threads = l->threads ? (unsigned)l->threads : cli_processors();
  l->status = GPUIR_OK;
  if (!settings && (stat(l->path, &st) || !S_ISDIR(st.st_mode) || !cli_is_live(l->path))) {
    cli_error("%s: not a live index, which 'gpuir index --live' makes", l->path);
    return CLI_FAIL;
  }
  l->lost = 0;
  while ((l->status = gpuir_live_open(&desc, &l->live, &err)) == GPUIR_E_BUSY && l->wait && !cli_signal)
    (void)nanosleep(&again, NULL);
  if (!l->status) return CLI_OK;
  if (l->status == GPUIR_E_BUSY && l->patient) return CLI_FAIL;
  return cli_fail(l->path, l->status, &err);
}

int cli_live_info(const cli_live *l, gpuir_index_info *info) {
  gpuir_index *index;
  gpuir_error err;
  memset(&err, 0, sizeof err);
  memset(info, 0, sizeof *info);
  int r = gpuir_live_refresh(l->live, &index, &err);
  if (!r) r = gpuir_index_get_info(index, info);
  if (r) return cli_fail(l->path, r, &err);
  gpuir_close(index);
  return CLI_OK;
}

int cli_live_commit(cli_live *l) {
  gpuir_error err;
  memset(&err, 0, sizeof err);
  l->committed = 1;
  const int r = gpuir_live_commit(l->live, &err);
  return r ? cli_fail(l->path, r, &err) : CLI_OK;
}

void cli_live_tell_lost(cli_live *l) {
  const uint64_t all = gpuir_live_lost(l->live);
  cli_tell_lost(all - l->lost);
  l->lost = all;
}

int cli_live_merge(cli_live *l, int all) {
  gpuir_error err;
  int more = 1, r = GPUIR_OK;
  memset(&err, 0, sizeof err);
  while (more && !r && !cli_signal) r = gpuir_live_merge(l->live, all, &more, &err);
  if (r) return cli_fail(l->path, r, &err);
  return cli_live_commit(l);
}

int cli_live_add(void *live, const gpuir_doc_desc *doc, const char *text, size_t len) {
  cli_live *l = (cli_live *)live;
  gpuir_error err;
  memset(&err, 0, sizeof err);
  if (cli_signal) return CLI_FAIL;
  const int r = gpuir_live_add(l->live, doc, text, len, &err);
  if (r) return cli_fail(l->path, r, &err);
  l->added++;
  return CLI_OK;
}

int cli_live_delete(cli_live *l, int by, const char *bytes, size_t len, uint64_t *n) {
  gpuir_error err;
  memset(&err, 0, sizeof err);
  const int r = gpuir_live_delete(l->live, by, bytes, len, n, &err);
  if (r) return cli_fail(l->path, r, &err);
  l->deleted += *n;
  return CLI_OK;
}

int cli_live_delete_before(cli_live *l, uint64_t mark, int by, const char *bytes, size_t len) {
  gpuir_error err;
  uint64_t n;
  memset(&err, 0, sizeof err);
  const int r = gpuir_live_delete_before(l->live, mark, by, bytes, len, &n, &err);
  if (r) return cli_fail(l->path, r, &err);
  l->deleted += n;
  return CLI_OK;
}

int cli_live_take_back(cli_live *l, uint64_t mark) {
  gpuir_error err;
  uint64_t n;
  memset(&err, 0, sizeof err);
  const int r = gpuir_live_delete_since(l->live, mark, &n, &err);
  if (r) return cli_fail(l->path, r, &err);
  l->added -= n;
  return CLI_OK;
}

void cli_live_note_name(cli_live *l, const char *name, size_t len) {
  const uint64_t head[2] = {gpuir_live_mark(l->live), len};
  if (!len) return;
  cli_buf_add(&l->names, head, sizeof head);
  cli_buf_add(&l->names, name, len);
}

int cli_live_replace_noted(cli_live *l) {
  uint64_t head[2];
  for (size_t at = 0; at < l->names.n; at += (size_t)head[1]) {
    memcpy(head, l->names.p + at, sizeof head);
    at += sizeof head;
    if (cli_live_delete_before(l, head[0], GPUIR_BY_NAME, l->names.p + at, (size_t)head[1])) return CLI_FAIL;
  }
  l->names.n = 0;
  return CLI_OK;
}

int cli_live_option(const cli_args *a, int id, cli_live *l) {
  switch (id) {
  case CLI_MEMORY: return cli_unsigned(a, 1, (uint64_t)1 << 32, &l->megabytes);
  case CLI_THREADS: return cli_unsigned(a, 0, 1024, &l->threads);
  case CLI_QUIET: l->quiet = 1; return 0;
  case CLI_WAIT: l->wait = 1; return 0;
  case CLI_OUTPUT: l->path = a->value; return 0;
  default: return 1;
  }
}

/* Commits and says what was done. */
static int finish_live(cli_live *l) {
  gpuir_index_info info;
  char added[CLI_COUNTED], deleted[27], documents[27];
  int code = cli_live_commit(l);
  if (!code) cli_live_tell_lost(l);
  if (!code) code = cli_live_merge(l, 0);
  if (!code) code = cli_live_info(l, &info);
  if (!code && !l->quiet)
    cli_error("%s: %s added, %s deleted, %s in all", l->path, cli_counted(l->added, "document", "documents", added),
        cli_grouped(l->deleted, deleted), cli_grouped(info.documents, documents));
  return code;
}

/* Returns the exit code of a command that a signal may have stopped before its commit. */
static int end_live(cli_live *l, int code) {
  gpuir_live_close(l->live);
  l->live = NULL;
  if (!code || !cli_signal) return code;
  cli_error("stopped; %s is as it was", l->path);
  return 128 + (int)cli_signal;
}

/* ---- add ---- */

typedef struct adding {
  cli_live live;
  cli_input in;
  text_filters filters;
  const char *name; /* of the documents, or NULL */
  int replace;
  int in_file, failed; /* a file is being read; an addition or deletion behind one has failed */
  uint64_t mark; /* where its documents begin */
  uint64_t content; /* of the index before */
  cli_buf sources; /* paths of files that were read, each with a NUL behind it */
} adding;

static int add_file(void *user, const char *source, const struct stat *st, int fd) {
  adding *a = (adding *)user;
  (void)st, (void)fd;
  a->in_file = 1;
  a->live.names.n = 0;
  cli_buf_add(&a->sources, source, strlen(source) + 1);
  a->mark = gpuir_live_mark(a->live.live);
  return 1;
}

static void add_read(void *user, const char *source, uint64_t hash) {
  adding *a = (adding *)user;
  (void)source, (void)hash;
  a->in_file = 0;
  if (!a->failed && a->replace) a->failed = cli_live_replace_noted(&a->live);
}

/* Half a file is not added, and what its documents were to replace stays. */
static void add_unread(void *user, const char *source) {
  adding *a = (adding *)user;
  (void)source;
  if (a->in_file && !a->failed) a->failed = cli_live_take_back(&a->live, a->mark);
  a->in_file = 0;
}

static const cli_follower add_follower = {add_file, add_read, add_unread};

static int add_document(void *user, const gpuir_doc_desc *doc, const char *text, size_t len) {
  adding *a = (adding *)user;
  gpuir_doc_desc named = *doc;
  uint64_t n;
  if (a->failed) return CLI_FAIL;
  if (a->name) {
    named.name = a->name;
    named.name_len = strlen(a->name);
  }
  if (a->replace && a->in_file) cli_live_note_name(&a->live, named.name, named.name_len);
  else if (a->replace && named.name_len && cli_live_delete(&a->live, GPUIR_BY_NAME, named.name, named.name_len, &n))
    return CLI_FAIL;
  return cli_live_add(&a->live, &named, text, len);
}

/* Lets paths be searched as those of the index's other files are. */
static int take_names(adding *a, const char *analyzer) {
  cli_files settings;
  cli_input_names(&a->in, analyzer);
  if (!a->in.paths) return CLI_OK;
  if (cli_files_read(&settings, a->live.path)) return CLI_FAIL;
  a->in.paths = !settings.no_names;
  cli_files_free(&settings);
  return CLI_OK;
}

/* Lets documents be made as those that the index has, and checks that files among the operands can be. */
static int take_settings(adding *a, const cli_args *args) {
  gpuir_index *index;
  gpuir_index_info info;
  gpuir_error err;
  int files = 0, code = CLI_OK;
  for (int i = 0; i < args->noperands; i++) files += strcmp(args->operands[i], "-") != 0;
  memset(&err, 0, sizeof err);
  int r = gpuir_live_refresh(a->live.live, &index, &err);
  if (r) return cli_fail(a->live.path, r, &err);
  r = gpuir_index_get_info(index, &info);
  if (r) code = cli_fail(a->live.path, r, NULL);
  else if (files) code = cli_filters_agree(&a->filters, a->live.path, info.filters);
  a->content = info.content;
  if (!r) cli_input_take_reading(&a->in, info.reading);
  if (!r) cli_fields_take(&a->in, index);
  if (!r) cli_input_chunks(&a->in, info.analyzer);
  if (!r && !code && files && !a->name) code = take_names(a, info.analyzer);
  gpuir_close(index);
  return code;
}

/* Lets the table of files go with the commit: without it the next update would read all files, and bring back what
 * --replace has deleted of those that are as they were. */
static int keep_table(const adding *a) {
  gpuir_index_info info;
  const int code = cli_live_info(&a->live, &info);
  return code ? code : cli_files_carry(a->live.path, a->content, info.content, a->sources.p, a->sources.n);
}

/* Adds what the operands hold. */
static int run_add(adding *a, const cli_args *args) {
  int code = cli_live_open(&a->live, NULL);
  if (code) return code;
  code = take_settings(a, args);
  if (code) return end_live(&a->live, code);
  a->in.add = add_document;
  a->in.user = a;
  a->in.follower = &add_follower;
  a->in.names.max = 1 << 20;
  cli_input_home(&a->in, a->live.path);
  cli_input_exclude(&a->in, a->live.path);
  cli_input_nest(&a->in, args->operands, args->noperands);
  for (int i = 0; !code && i < args->noperands; i++) {
    code = cli_input_read(&a->in, args->operands[i]);
    if (code && a->in.missing) cli_error("%s: %s", args->operands[i], strerror(a->in.missing));
  }
  if (!code && (cli_signal || a->failed)) code = CLI_FAIL;
  if (!code && a->name && a->in.documents > 1) {
    cli_error("--name: %llu documents cannot have one name; %s is as it was", (unsigned long long)a->in.documents,
        a->live.path);
    code = CLI_FAIL;
  }
  const int partly = cli_input_end(&a->in);
  cli_fields_tell(&a->in);
  if (!code && !a->live.added) {
    cli_error("no document was found; %s is as it was", a->live.path);
    code = CLI_FAIL;
  }
  if (!code) code = finish_live(&a->live);
  if (!code) code = keep_table(a);
  code = end_live(&a->live, code);
  return code ? code : partly;
}

#define LIVE_OPTIONS \
  {CLI_OUTPUT, "output", 'o', 1}, {CLI_MEMORY, "memory", 0, 1}, {CLI_THREADS, "threads", 0, 1}, \
      {CLI_WAIT, "wait", 0, 0}, { \
    CLI_QUIET, "quiet", 'q', 0 \
  }

int cli_add(int argc, char **argv) {
  enum { O_NAME = 2, O_REPLACE };
  static const cli_option options[] = {{O_NAME, "name", 0, 1}, {O_REPLACE, "replace", 0, 0}, CLI_INPUT_OPTIONS,
      LIVE_OPTIONS, {0, NULL, 0, 0}};
  adding add;
  cli_args a;
  int opt, bad = 0, code;
  memset(&add, 0, sizeof add);
  add.in.filters = &add.filters;
  cli_args_start(&a, "add", options, argc, argv);
  while (!bad && (opt = cli_next(&a)) != CLI_END) {
    switch (opt) {
    case CLI_HELP: cli_args_free(&a); return cli_help("add");
    case O_NAME:
      add.name = a.value;
      if (!*add.name) bad = cli_misuse("add", "--name: the name is empty");
      break;
    case O_REPLACE: add.replace = 1; break;
    default: bad = cli_live_option(&a, opt, &add.live) && cli_input_format(&a, opt, &add.in); break;
    }
  }
  code = bad ? CLI_USAGE : CLI_OK;
  if (!code && !a.noperands) code = cli_misuse("add", "an INPUT is missing ('-' is standard input)");
  if (!code && !add.live.path) code = cli_misuse("add", "-o FOLDER is missing");
  if (!code) code = cli_input_check("add", a.operands, a.noperands);
  if (!code) {
    cli_catch_signals();
    code = run_add(&add, &a);
  }
  cli_buf_free(&add.live.names);
  cli_buf_free(&add.sources);
  cli_input_free(&add.in);
  filters_free(&add.filters);
  cli_args_free(&a);
  return code;
}

/* ---- delete ---- */

/* Deletes the documents of one name or source. *missing: there is none. */
static int delete_one(cli_live *l, int by, const char *text, size_t len, int *missing) {
  static cli_input in; /* knows the current folder, and the index's */
  char *source = NULL;
  uint64_t n = 0;
  int code = CLI_OK;
  if (!len) return CLI_OK;
  if (by == GPUIR_BY_SOURCE) {
    char *path = cli_copy(text, len);
    if (!in.home) cli_input_home(&in, l->path);
    source = cli_input_source(&in, path);
    free(path);
  }
  if (source) code = cli_live_delete(l, by, source, strlen(source), &n);
  else code = cli_live_delete(l, by, text, len, &n);
  if (!code && !n) {
    *missing = 1;
    cli_error("%s: no document %s '%.*s'", l->path, source ? "from" : "has the name", len > 200 ? 200 : (int)len, text);
  }
  free(source);
  return code;
}

/* Deletes what the lines of standard input name. */
static int delete_lines(cli_live *l, int by, int *missing) {
  char why[CLI_COUNTED];
  text_reader r;
  uint64_t lines;
  char *text;
  size_t len;
  int got, code = CLI_OK;
  cli_reader_open(&r, STDIN_FILENO, CLI_MAX_LINE);
  while (!code && (got = reader_lines(&r, 1, &text, &len, &lines)) != 0) {
    if (got < 0) {
      if (!cli_signal) cli_error("standard input: %s", cli_reader_why(&r, why));
      code = CLI_FAIL;
    } else {
      code = delete_one(l, by, text, len - (text[len - 1] == '\n'), missing);
    }
  }
  reader_close(&r);
  return code;
}

int cli_delete(int argc, char **argv) {
  enum { O_SOURCE = 2 };
  static const cli_option options[] = {{O_SOURCE, "source", 0, 0}, {CLI_WAIT, "wait", 0, 0},
      {CLI_QUIET, "quiet", 'q', 0}, {0, NULL, 0, 0}};
  cli_live l;
  cli_args a;
  int opt, bad = 0, by = GPUIR_BY_NAME, missing = 0, code;
  memset(&l, 0, sizeof l);
  cli_args_start(&a, "delete", options, argc, argv);
  while (!bad && (opt = cli_next(&a)) != CLI_END) {
    switch (opt) {
    case CLI_HELP: cli_args_free(&a); return cli_help("delete");
    case O_SOURCE: by = GPUIR_BY_SOURCE; break;
    default: bad = cli_live_option(&a, opt, &l); break;
    }
  }
  code = bad ? CLI_USAGE : CLI_OK;
  if (!code && a.noperands < 2)
    code = cli_misuse("delete", a.noperands ? "a NAME is missing ('-' reads them)" : "FOLDER is missing");
  if (!code) {
    cli_catch_signals();
    l.path = a.operands[0];
    code = cli_live_open(&l, NULL);
    for (int i = 1; i < a.noperands && !code; i++)
      code = strcmp(a.operands[i], "-") ? delete_one(&l, by, a.operands[i], strlen(a.operands[i]), &missing)
                                        : delete_lines(&l, by, &missing);
    if (!code && cli_signal) code = CLI_FAIL;
    if (!code) code = finish_live(&l);
    code = end_live(&l, code);
    if (!code && missing) code = CLI_FAIL;
  }
  cli_args_free(&a);
  return code;
}

/* ---- merge ---- */

/* Merges one live index, and says what it is then. */
static int run_merge(cli_live *l, int all) {
  gpuir_index_info before, after;
  char n[CLI_COUNTED], from[27], to[CLI_COUNTED];
  int code = cli_live_open(l, NULL);
  if (!code) code = cli_live_info(l, &before);
  if (!code) code = cli_live_merge(l, all);
  if (!code) code = cli_live_info(l, &after);
  if (!code && !l->quiet)
    cli_error("%s: %s, %s before; %s left", l->path, cli_counted(after.segments, "segment", "segments", to),
        cli_grouped(before.segments, from),
        cli_counted(after.docids - after.documents, "deleted document is", "deleted documents are", n));
  if (!code && cli_signal) code = CLI_FAIL;
  return code;
}

int cli_merge(int argc, char **argv) {
  enum { O_ALL = 2 };
  static const cli_option options[] = {{O_ALL, "all", 0, 0}, {CLI_MEMORY, "memory", 0, 1},
      {CLI_THREADS, "threads", 0, 1}, {CLI_WAIT, "wait", 0, 0}, {CLI_QUIET, "quiet", 'q', 0}, {0, NULL, 0, 0}};
  cli_live l;
  cli_args a;
  int opt, bad = 0, all = 0, code;
  memset(&l, 0, sizeof l);
  cli_args_start(&a, "merge", options, argc, argv);
  while (!bad && (opt = cli_next(&a)) != CLI_END) {
    switch (opt) {
    case CLI_HELP: cli_args_free(&a); return cli_help("merge");
    case O_ALL: all = 1; break;
    default: bad = cli_live_option(&a, opt, &l); break;
    }
  }
  code = bad ? CLI_USAGE : CLI_OK;
  if (!code && a.noperands != 1) code = cli_misuse("merge", a.noperands ? "one FOLDER only" : "FOLDER is missing");
  if (!code) {
    cli_catch_signals();
    l.path = a.operands[0];
    code = run_merge(&l, all);
    gpuir_live_close(l.live);
    if (code && cli_signal) code = 128 + (int)cli_signal;
  }
  cli_args_free(&a);
  return code;
}
