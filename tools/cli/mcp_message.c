/* mcp_message.c - reads a line of JSON-RPC: a message, or an array of them. */
#include "mcp.h"

#include <stdlib.h>
#include <string.h>

/* Where the values stand, and in how many objects. */
static const struct {
  const char *path;
  unsigned depth;
} places[MCP_VALUES] = {{"jsonrpc", 1}, {"id", 1}, {"method", 1}, {"result", 1}, {"error", 1}, {"params", 1},
    {"params.protocolVersion", 2}, {"params.name", 2}, {"params.cursor", 2}, {"params.requestId", 2},
    {"params._meta.progressToken", 3}, {"params.arguments", 2}, {"params.arguments.query", 3},
    {"params.arguments.index", 3}, {"params.arguments.mode", 3}, {"params.arguments.k", 3},
    {"params.arguments.offset", 3}, {"params.arguments.tokens", 3}, {"params.arguments.document", 3},
    {"params.arguments.path", 3}};

/* Returns the number of the place, or MCP_VALUES. A name with a dot in it is no path: it lies less deep. */
static size_t find_place(const json_event *e, unsigned depth) {
  size_t i;
  for (i = 0; i < MCP_VALUES; i++)
    if (places[i].depth == depth && strlen(places[i].path) == e->path_len &&
        !memcmp(places[i].path, e->path, e->path_len))
      break;
  return i;
}

static int is_argument(const json_event *e) {
  static const char before[] = "params.arguments.";
  return e->depth == 3 && e->path_len >= sizeof before - 1 && !memcmp(e->path, before, sizeof before - 1);
}

static int take_event(void *user, const json_event *e) {
  mcp_message *m = (mcp_message *)user;
  const int begins = e->kind == JSON_OBJECT || e->kind == JSON_ARRAY;
  const size_t i = find_place(e, e->depth - (unsigned)begins);
  mcp_value *v = i < MCP_VALUES ? &m->values[i] : NULL;
  if (e->kind == JSON_MEMBER) v = i == MCP_VALUES && is_argument(e) ? &m->unknown : NULL;
  if (!v) return 0;
  v->kind = e->kind;
  v->raw = e->raw;
  v->len = e->len;
  return 0;
}

/* The messages of an array: where they begin. */
typedef struct batch {
  const char *at[MCP_BATCH];
  size_t n, names;
  int wrong; /* something in it is no object, there are too many, or it is no array */
} batch;

/* Takes what stands in the only member of an object that was written around the line. */
static int take_batch(void *user, const json_event *e) {
  batch *b = (batch *)user;
  const unsigned within = e->depth - (e->kind == JSON_OBJECT || e->kind == JSON_ARRAY);
  if (e->kind == JSON_MEMBER) b->names += e->depth == 1;
  else if (within == 1) b->wrong |= e->kind != JSON_ARRAY;
  else if (within == 2 && e->kind == JSON_OBJECT && b->n < MCP_BATCH) b->at[b->n++] = e->raw;
  else if (within == 2) b->wrong = 1;
  return 0;
}

static mcp_job *new_job(size_t n) {
  mcp_job *job = (mcp_job *)cli_resize(NULL, 1, sizeof *job);
  memset(job, 0, sizeof *job);
  job->messages = (mcp_message *)cli_resize(NULL, n, sizeof *job->messages);
  memset(job->messages, 0, n * sizeof *job->messages);
  return job;
}

static mcp_job *fail_job(mcp_job *job, int error, const char *why) {
  job->n = 0;
  job->error = error;
  job->why = why;
  return job;
}

/* Reads one message at text[0..len). Returns its bytes, or 0. */
static size_t read_message(mcp_message *m, const char *text, size_t len) {
  json_reader j;
  memset(&j, 0, sizeof j);
  j.take = take_event;
  j.user = m;
  const size_t n = json_object(&j, text, len);
  json_free(&j);
  return n;
}

/* Reads a line that does not begin as an object does. It is put into one, so that the reader of objects checks it. */
static mcp_job *read_batch(const char *line, size_t len) {
  static const char before[] = "{\"a\":";
  const size_t all = len + sizeof before;
  batch *b = (batch *)cli_resize(NULL, 1, sizeof *b);
  json_reader j;
  memset(b, 0, sizeof *b);
  memset(&j, 0, sizeof j);
  j.take = take_batch;
  j.user = b;
  mcp_job *job = new_job(MCP_BATCH);
  job->line = (char *)cli_resize(NULL, all, 1);
  memcpy(job->line, before, sizeof before - 1);
  memcpy(job->line + sizeof before - 1, line, len);
  job->line[all - 1] = '}';
  job->batch = 1;
  if (json_object(&j, job->line, all) != all || b->names != 1) (void)fail_job(job, MCP_E_PARSE, "not JSON");
  else if (b->wrong || !b->n) (void)fail_job(job, MCP_E_REQUEST, "neither a message nor up to 100 of them");
  else
    for (; job->n < b->n; job->n++)
      (void)read_message(&job->messages[job->n], b->at[job->n], all - (size_t)(b->at[job->n] - job->line));
  json_free(&j);
  free(b);
  return job;
}

mcp_job *mcp_read(const char *line, size_t len) {
  size_t at = 0;
  while (at < len && strchr(" \t\r", line[at]) && line[at]) at++;
  if (!cli_is_utf8(line, len)) return mcp_reject("not UTF-8");
  if (at < len && line[at] != '{') return read_batch(line + at, len - at);
  mcp_job *job = new_job(1);
  job->line = cli_copy(line, len);
  at = read_message(job->messages, job->line, len);
  while (at && at < len && strchr(" \t\r", line[at]) && line[at]) at++;
  job->n = 1;
  return at && at == len ? job : fail_job(job, MCP_E_PARSE, "not JSON");
}

mcp_job *mcp_reject(const char *why) { return fail_job(new_job(1), MCP_E_PARSE, why); }

void mcp_job_free(mcp_job *job) {
  free(job->line);
  free(job->messages);
  free(job);
}

int mcp_is(const mcp_value *v, const char *text) {
  made_text whole;
  if (!v->raw || v->kind != JSON_STRING) return 0;
  if (!memchr(v->raw, '\\', v->len)) return v->len == strlen(text) && !memcmp(v->raw, text, v->len);
  memset(&whole, 0, sizeof whole);
  json_unescape(&whole, v->raw, v->len); /* some write "tools\/call" */
  const int is = whole.text.n == strlen(text) && !whole.text.failed && !memcmp(whole.text.p, text, whole.text.n);
  made_free(&whole);
  return is;
}

int mcp_equal(const mcp_value *a, const mcp_value *b) {
  return a->raw && b->raw && a->kind == b->kind && a->len == b->len && !memcmp(a->raw, b->raw, a->len);
}
