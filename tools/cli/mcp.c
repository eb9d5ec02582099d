/* mcp.c - gpuir mcp: indexes as tools of language models, by the Model Context Protocol over standard input and output.
 *
 * The calling thread reads messages, one a line, and puts them into a queue; a thread of its own answers them, in
 * order. So a notification that cancels a call is seen while that runs: it sets a flag that searches look at. Where
 * the queue is full, nothing is read until there is room.
 */
#include "mcp.h"

#include "../common/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WAITING 64u /* lines in the queue */

static const char *const versions[] = {"2025-06-18", "2025-03-26", "2024-11-05"};
enum { VERSIONS = 3, WITHOUT_BATCHES = 1 }; /* the first ones have no arrays of messages */

/* ---- indexes -------------------------------------------------------------------------------------------- */

/* Describes the file that changes where the index does. Returns 0, or -1. */
static int look(const char *path, struct stat *st) {
  cli_buf manifest = {NULL, 0, 0};
  if (stat(path, st)) return -1;
  if (!S_ISDIR(st->st_mode)) return 0;
  cli_buf_text(&manifest, path);
  cli_buf_add(&manifest, "/manifest", sizeof "/manifest");
  const int failed = stat(manifest.p, st);
  cli_buf_free(&manifest);
  return failed;
}

static int is_same(const struct stat *a, const struct stat *b) {
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
      a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

int mcp_index_open(mcp_server *s, mcp_index *x) {
  struct stat now;
  gpuir_index *index = NULL;
  gpuir_searcher *searcher = NULL;
  gpuir_open_desc open;
  gpuir_searcher_desc desc;
  gpuir_error err;
  memset(&now, 0, sizeof now);
  memset(&open, 0, sizeof open);
  memset(&desc, 0, sizeof desc);
  memset(&err, 0, sizeof err);
  if (x->index && (look(x->path, &now) || is_same(&now, &x->file))) return CLI_OK; /* one that is gone stays open */
  if (!x->index) (void)look(x->path, &now);
  open.share = x->index;
  desc.cancel = &s->cancel;
  int status = gpuir_open(x->path, &open, &index, &err);
  if (!status) status = gpuir_searcher_create(index, &desc, &searcher, &err);
  x->file = now; /* of one that is broken, too: it is told of once */
  if (status) {
    (void)cli_fail(x->path, status, &err);
    gpuir_close(index);
    return x->index ? CLI_OK : CLI_FAIL;
  }
  gpuir_searcher_destroy(x->searcher);
  gpuir_close(x->index);
  x->index = index;
  x->searcher = searcher;
  return CLI_OK;
}

void mcp_index_close(mcp_index *x) {
  gpuir_searcher_destroy(x->searcher);
  gpuir_close(x->index);
  cli_passages_free(&x->passages);
  free(x->name);
}

static int is_taken(const mcp_server *s, size_t n, const char *name) {
  for (size_t i = 0; i < n; i++)
    if (!strcmp(s->indexes[i].name, name)) return 1;
  return 0;
}

/* Names an index after its file, without ".gpuir"; of those that are called alike later ones get a number. */
static void name_index(mcp_server *s, size_t number) {
  static const char ending[] = ".gpuir";
  mcp_index *x = &s->indexes[number];
  size_t n = strlen(x->path), from, same = 1;
  char suffix[24] = "";
  cli_buf name = {NULL, 0, 0};
  while (n > 1 && x->path[n - 1] == '/') n--;
  for (from = n; from && x->path[from - 1] != '/';) from--;
  if (n - from >= sizeof ending && !memcmp(x->path + n - (sizeof ending - 1), ending, sizeof ending - 1))
    n -= sizeof ending - 1;
  do {
    name.n = 0;
    text_write(cli_buf_put, &name, TEXT_TSV, x->path + from, n - from); /* it is shown to models */
    cli_buf_add(&name, suffix, strlen(suffix) + 1);
    snprintf(suffix, sizeof suffix, "-%zu", ++same);
  } while (is_taken(s, number, name.p));
  x->name = name.p;
}

/* ---- answers -------------------------------------------------------------------------------------------- */

/* An answer that is being made, and where it goes. */
typedef struct reply {
  mcp_server *s;
  const mcp_message *m;
  cli_buf out; /* of the whole line */
} reply;

/* Appends a value as it stood in the message. */
static void add_value(cli_buf *b, const mcp_value *v) {
  if (v->kind == JSON_STRING) cli_buf_char(b, '"');
  cli_buf_add(b, v->raw, v->len);
  if (v->kind == JSON_STRING) cli_buf_char(b, '"');
}

static int is_id(const mcp_value *v) { return v->raw && (v->kind == JSON_STRING || v->kind == JSON_NUMBER); }

static void begin_answer(reply *r, const char *member) {
  const mcp_value *id = r->m ? &r->m->values[MCP_ID] : NULL;
  cli_buf_text(&r->out, "{\"jsonrpc\":\"2.0\",\"id\":");
  if (id && is_id(id)) add_value(&r->out, id);
  else cli_buf_text(&r->out, "null");
  cli_buf_text(&r->out, member);
}

static void add_error(reply *r, int code, const char *why) {
  char number[32];
  begin_answer(r, ",\"error\":{\"code\":");
  snprintf(number, sizeof number, "%d,\"message\":", code);
  cli_buf_text(&r->out, number);
  cli_buf_json(&r->out, why, strlen(why));
  cli_buf_text(&r->out, "}}");
}

/* Writes a notification of progress at once. */
static void tell_progress(void *arg, size_t done, size_t all) {
  const reply *r = (const reply *)arg;
  const mcp_value *token = &r->m->values[MCP_PROGRESS];
  char numbers[80];
  cli_buf line = {NULL, 0, 0};
  if (!is_id(token)) return;
  cli_buf_text(&line, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":");
  add_value(&line, token);
  snprintf(numbers, sizeof numbers, ",\"progress\":%zu,\"total\":%zu}}\n", done, all);
  cli_buf_text(&line, numbers);
  (void)cli_write_all(STDOUT_FILENO, line.p, line.n, &r->s->stop, 0);
  cli_buf_free(&line);
}

/* ---- methods -------------------------------------------------------------------------------------------- */

static void add_instructions(const mcp_server *s, cli_buf *b) {
  cli_buf text = {NULL, 0, 0};
  cli_buf_text(&text,
      "Ranked text search (BM25) over what is indexed: use `passages` for text that answers a question, "
      "`search` for a list of documents, `read` for more of one. Indexes:");
  for (size_t i = 0; i < s->n; i++) {
    char documents[CLI_COUNTED];
    gpuir_index_info info;
    memset(&info, 0, sizeof info);
    (void)gpuir_index_get_info(s->indexes[i].index, &info);
    cli_buf_text(&text, i ? ", " : " ");
    cli_buf_text(&text, s->indexes[i].name);
    cli_buf_text(&text, " (");
    cli_buf_text(&text, cli_counted(info.documents, "document", "documents", documents));
    cli_buf_char(&text, ')');
  }
  cli_buf_json(b, text.p, text.n);
  cli_buf_free(&text);
}

/* Agrees on the version that is asked for or, where it is not known, on the latest. */
static void initialize(reply *r) {
  const mcp_value *asked = &r->m->values[MCP_VERSION];
  mcp_server *s = r->s;
  cli_buf *b = &r->out;
  if (s->version >= 0) {
    add_error(r, MCP_E_REQUEST, "it is initialized already");
    return;
  }
  if (!asked->raw || asked->kind != JSON_STRING) {
    add_error(r, MCP_E_PARAMS, "protocolVersion must be a string");
    return;
  }
  s->version = 0;
  for (int i = 0; i < VERSIONS; i++)
    if (mcp_is(asked, versions[i])) s->version = i;
  begin_answer(r, ",\"result\":{\"protocolVersion\":\"");
  cli_buf_text(b, versions[s->version]);
  cli_buf_text(b, "\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"gpuir\",\"version\":\"");
  cli_buf_text(b, gpuir_version());
  cli_buf_text(b, "\"},\"instructions\":");
  add_instructions(s, b);
  cli_buf_text(b, "}}");
}

static void call_tool(reply *r) {
  const mcp_value *name = &r->m->values[MCP_NAME], *arguments = &r->m->values[MCP_ARGUMENTS];
  cli_buf text = {NULL, 0, 0};
  if (!mcp_is_tool(name)) {
    add_error(r, MCP_E_PARAMS, "there is no tool of this name");
    return;
  }
  if (arguments->raw && arguments->kind != JSON_OBJECT) {
    add_error(r, MCP_E_PARAMS, "arguments must be an object");
    return;
  }
  const int failed = mcp_call(r->s, r->m, tell_progress, r, &text);
  begin_answer(r, ",\"result\":{\"content\":[{\"type\":\"text\",\"text\":");
  cli_buf_json(&r->out, text.p ? text.p : "", text.n);
  cli_buf_text(&r->out, failed ? "}],\"isError\":true}}" : "}],\"isError\":false}}");
  cli_buf_free(&text);
}

static void list_tools(reply *r) {
  if (r->m->values[MCP_CURSOR].raw) {
    add_error(r, MCP_E_PARAMS, "there is no such page: the first one has all tools");
    return;
  }
  begin_answer(r, ",\"result\":{\"tools\":");
  cli_buf_text(&r->out, mcp_tools());
  cli_buf_text(&r->out, "}}");
}

/* Answers a request. */
static void answer_request(reply *r) {
  const mcp_value *v = r->m->values;
  if (v[MCP_PARAMS].raw && v[MCP_PARAMS].kind != JSON_OBJECT) {
    add_error(r, MCP_E_PARAMS, "params must be an object");
  } else if (mcp_is(&v[MCP_METHOD], "initialize")) {
    initialize(r);
  } else if (mcp_is(&v[MCP_METHOD], "ping")) {
    begin_answer(r, ",\"result\":{}}");
  } else if (r->s->version < 0) {
    add_error(r, MCP_E_REQUEST, "initialize comes first");
  } else if (mcp_is(&v[MCP_METHOD], "tools/list")) {
    list_tools(r);
  } else if (mcp_is(&v[MCP_METHOD], "tools/call")) {
    call_tool(r);
  } else {
    add_error(r, MCP_E_METHOD, "there is no such method");
  }
}

/* Answers a message, unless it needs none. */
static void answer(reply *r) {
  const mcp_value *v = r->m->values;
  const int has_method = v[MCP_METHOD].raw && v[MCP_METHOD].kind == JSON_STRING;
  if (!mcp_is(&v[MCP_JSONRPC], "2.0")) add_error(r, MCP_E_REQUEST, "jsonrpc must be \"2.0\"");
  else if (!v[MCP_METHOD].raw && (v[MCP_RESULT].raw || v[MCP_ERROR].raw)) return; /* an answer */
  else if (!has_method) add_error(r, MCP_E_REQUEST, "method must be a string");
  else if (!v[MCP_ID].raw) return; /* a notification */
  else if (!is_id(&v[MCP_ID])) add_error(r, MCP_E_REQUEST, "id must be a string or a number");
  else answer_request(r);
}

/* Answers one message of a line; of a request that was cancelled meanwhile nothing is left. */
static void answer_message(reply *r, mcp_message *m, int in_batch) {
  mcp_server *s = r->s;
  const size_t before = r->out.n;
  r->m = m;
  pthread_mutex_lock(&s->lock);
  s->current = m;
  __atomic_store_n(&s->cancel, s->stop || m->cancelled, __ATOMIC_RELAXED);
  pthread_mutex_unlock(&s->lock);
  if (in_batch && before > 1) cli_buf_char(&r->out, ',');
  const size_t from = r->out.n;
  answer(r);
  pthread_mutex_lock(&s->lock);
  s->current = NULL;
  if (m->cancelled || r->out.n == from) r->out.n = before;
  pthread_mutex_unlock(&s->lock);
}

/* Answers a line. Returns what cli_write_all does. */
static int answer_job(reply *r, const mcp_job *job) {
  r->out.n = 0;
  r->m = NULL;
  if (job->error) {
    add_error(r, job->error, job->why);
  } else if (job->batch && r->s->version < WITHOUT_BATCHES) {
    add_error(r, MCP_E_REQUEST, "this version of the protocol has no batches");
  } else {
    if (job->batch) cli_buf_char(&r->out, '[');
    for (size_t i = 0; i < job->n; i++) answer_message(r, &job->messages[i], job->batch);
    if (job->batch && r->out.n == 1) r->out.n = 0;
    else if (job->batch) cli_buf_char(&r->out, ']');
  }
  if (!r->out.n) return 0;
  cli_buf_char(&r->out, '\n');
  return cli_write_all(STDOUT_FILENO, r->out.p, r->out.n, &r->s->stop, 0);
}

/* ---- the two threads ------------------------------------------------------------------------------------ */

/* Ends both threads. The lock is held. */
static void stop(mcp_server *s) {
  const char byte = 0;
  __atomic_store_n(&s->cancel, 1, __ATOMIC_RELAXED);
  __atomic_store_n(&s->stop, 1, __ATOMIC_RELAXED);
  pthread_cond_signal(&s->came);
  pthread_cond_signal(&s->taken);
  (void)!write(s->wake[1], &byte, 1);
}

static int is_stopped(const mcp_server *s) { return __atomic_load_n(&s->stop, __ATOMIC_RELAXED); }

/* The life of the thread that answers. */
static void *mcp_answer(void *argument) {
  mcp_server *s = (mcp_server *)argument;
  reply r = {s, NULL, {NULL, 0, 0}};
  pthread_mutex_lock(&s->lock);
  while (!s->stop && (s->first || !s->ended)) {
    mcp_job *job = s->first;
    if (!job) {
      pthread_cond_wait(&s->came, &s->lock);
      continue;
    }
    pthread_mutex_unlock(&s->lock);
    const int failed = answer_job(&r, job);
    if (failed && !cli_signal && !is_stopped(s)) cli_error("standard output: %s", strerror(errno));
    pthread_mutex_lock(&s->lock);
    s->first = job->next;
    if (!s->first) s->last = &s->first;
    s->waiting--;
    mcp_job_free(job);
    pthread_cond_signal(&s->taken);
    if (failed) stop(s);
  }
  pthread_mutex_unlock(&s->lock);
  cli_buf_free(&r.out);
  return NULL;
}

/* Cancels the request of this id, if it waits or is being answered. The lock is held. */
static void cancel(mcp_server *s, const mcp_value *id) {
  for (mcp_job *job = s->first; job; job = job->next)
    for (size_t i = 0; i < job->n; i++)
      if (mcp_equal(&job->messages[i].values[MCP_ID], id)) {
        job->messages[i].cancelled = 1;
        if (s->current == &job->messages[i]) __atomic_store_n(&s->cancel, 1, __ATOMIC_RELAXED);
      }
}

/* Puts a line into the queue, once there is room. */
static void take(mcp_server *s, mcp_job *job) {
  pthread_mutex_lock(&s->lock);
  for (size_t i = 0; i < job->n; i++) {
    const mcp_value *v = job->messages[i].values;
    if (!v[MCP_ID].raw && mcp_is(&v[MCP_METHOD], "notifications/cancelled")) cancel(s, &v[MCP_REQUEST]);
  }
  while (s->waiting == WAITING && !s->stop && !cli_signal) {
    struct timespec until; /* a signal wakes nobody who waits for a condition */
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    (void)pthread_cond_timedwait(&s->taken, &s->lock, &until);
  }
  *s->last = job;
  s->last = &job->next;
  s->waiting++;
  pthread_cond_signal(&s->came);
  pthread_mutex_unlock(&s->lock);
}

/* Reads lines until there are no more. One that is too long is passed over, and said to be. Exit code. */
static int read_lines(mcp_server *s, text_reader *in) {
  char *line, why[CLI_COUNTED];
  size_t len;
  uint64_t lines;
  int got = 1, too_long = 0;
  while (got > 0 && !is_stopped(s)) {
    got = reader_lines(in, 1, &line, &len, &lines);
    if (got < 0 && errno == EFBIG) {
      in->begin = in->end;
      too_long = got = 1;
      continue;
    }
    if (got > 0) len -= line[len - 1] == '\n';
    if (got > 0) len -= len && line[len - 1] == '\r';
    if (got >= 0 && too_long) take(s, mcp_reject("a message of more than 1,048,576 bytes"));
    else if (got > 0 && len) take(s, mcp_read(line, len));
    too_long = 0;
  }
  if (cli_signal) return 128 + (int)cli_signal;
  if (got == 0) return CLI_OK;
  if (!is_stopped(s)) cli_error("a message cannot be read: %s", cli_reader_why(in, why));
  return CLI_FAIL;
}

/* Makes the answering thread, which leaves signals to others. 0 or an errno. */
static int start(mcp_server *s, pthread_t *thread) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int failed = pthread_create(thread, NULL, mcp_answer, s);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return failed;
}

/* Serves until the input ends, or a signal comes. Exit code. */
static int serve(mcp_server *s) {
  pthread_t thread;
  text_reader in;
  int cause;
  memset(&thread, 0, sizeof thread);
  cause = pipe(s->wake) ? errno : start(s, &thread);
  if (cause) {
    cli_error("%s", strerror(cause));
    return CLI_FAIL;
  }
  cli_reader_open(&in, STDIN_FILENO, CLI_MAX_LINE);
  in.wake = s->wake[0];
  const int code = read_lines(s, &in);
  pthread_mutex_lock(&s->lock);
  s->ended = 1;
  if (code) stop(s);
  pthread_cond_signal(&s->came);
  pthread_mutex_unlock(&s->lock);
  pthread_join(thread, NULL);
  reader_close(&in);
  for (mcp_job *next; s->first; s->first = next) {
    next = s->first->next;
    mcp_job_free(s->first);
  }
  close(s->wake[0]);
  close(s->wake[1]);
  return code || !is_stopped(s) ? code : CLI_FAIL;
}

/* ---- the command ---------------------------------------------------------------------------------------- */

static int serve_indexes(char **paths, size_t n) {
  mcp_server s;
  int code = CLI_OK;
  memset(&s, 0, sizeof s);
  s.version = -1;
  s.last = &s.first;
  pthread_mutex_init(&s.lock, NULL);
  pthread_cond_init(&s.came, NULL);
  pthread_cond_init(&s.taken, NULL);
  s.indexes = (mcp_index *)cli_resize(NULL, n, sizeof *s.indexes);
  memset(s.indexes, 0, n * sizeof *s.indexes);
  for (; s.n < n && !code; s.n++) {
    mcp_index *x = &s.indexes[s.n];
    x->path = paths[s.n];
    name_index(&s, s.n);
    code = mcp_index_open(&s, x);
    if (!code) code = cli_passages_open(&x->passages, x->path, NULL);
    x->passages.how.filter = NULL; /* no program is run for a model */
    x->passages.how.filter_hint = NULL;
  }
  cli_catch_signals();
  (void)signal(SIGPIPE, SIG_IGN);
  if (!code) code = serve(&s);
  for (size_t i = 0; i < s.n; i++) mcp_index_close(&s.indexes[i]);
  free(s.indexes);
  pthread_cond_destroy(&s.taken);
  pthread_cond_destroy(&s.came);
  pthread_mutex_destroy(&s.lock);
  return code;
}

int cli_mcp(int argc, char **argv) {
  enum { O_INSTALL = 2 };
  static const cli_option options[] = {{O_INSTALL, "install", 0, 0}, {0, NULL, 0, 0}};
  cli_args a;
  int opt, install = 0, code = CLI_OK;
  cli_args_start(&a, "mcp", options, argc, argv);
  while (!code && (opt = cli_next(&a)) != CLI_END) {
    if (opt == CLI_HELP) {
      cli_args_free(&a);
      return cli_help("mcp");
    }
    if (opt == O_INSTALL) install = 1;
    else code = CLI_USAGE;
  }
  if (!code && !a.noperands) code = cli_misuse("mcp", "INDEX is missing");
  if (!code)
    code = install ? mcp_install(a.operands, (size_t)a.noperands) : serve_indexes(a.operands, (size_t)a.noperands);
  cli_args_free(&a);
  return cli_finish(code);
}
