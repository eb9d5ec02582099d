/* stream.c - the requests of one client of `gpuir serve`.
 *
 * The calling thread reads requests and hands them to the pool; a thread of its own writes the answers, in the order of
 * the requests, as many at once as are there. A request waits for its turn in a ring: when the ring is full, nothing is
 * read. A client that sends one request at a time would wait for three threads: what is answered sooner than a thread
 * wakes up, while nothing else waits, the reading thread answers itself.
 */
#include "serve.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AT_ONCE_NS 50000 /* a query that is likely to take less is answered by the reading thread */
#define STALL_NS 30000000000u /* a client of a socket that takes no answers for so long is closed */

struct stream;

/* A request's place in the ring. */
typedef struct job {
  gpuir_task task;
  struct stream *of;
  gpuir_query *query;
  uint64_t number; /* to be answered, if the task's status is 0 */
  int answered;
  gpuir_error error;
  gpuir_hit hits[SERVE_HITS];
} job;

typedef struct stream {
  const server *s;
  serve_client *client; /* NULL: the only one */
  int out;
  int wake[2]; /* a pipe: a byte in it ends the reading */
  text_reader in;
  pthread_t writer;
  gpuir_searcher *searcher; /* of the reading thread */
  pthread_mutex_t lock; /* of what follows, and of job.answered */
  pthread_cond_t answered, freed;
  uint64_t asked, written; /* requests [written..asked) are in flight, number i in jobs[i % window] */
  int ended; /* no further one comes */
  int cancel; /* read and written atomically: of all tasks, and answers are not written any more */
  job *jobs; /* [window] */
} stream;

static job *job_at(const stream *st, uint64_t number) { return &st->jobs[number % st->s->window]; }

/* ---- a client that gets lost ---------------------------------------------------------------------------- */

/* Says why the stream ends, or leaves that to the socket that the client came from. Its first cause counts; the lock is
 * not held. */
static void stream_lost(stream *st, int reason, const char *what, const char *cause) {
  serve_client *c = st->client;
  if (!c) {
    cli_error("%s: %s", what, cause);
    return;
  }
  pthread_mutex_lock(&st->lock);
  if (!c->reason) (void)snprintf(c->cause, sizeof c->cause, "%s", cause);
  if (!c->reason) c->reason = reason;
  pthread_mutex_unlock(&st->lock);
}

/* Notes since when the client is idle: it waits for no answer. The lock is held. */
static void note_idle(stream *st) {
  const uint64_t since = st->asked == st->written ? cli_nanoseconds() : 0;
  if (st->client) __atomic_store_n(&st->client->idle_since, since, __ATOMIC_RELAXED);
}

/* ---- answers ------------------------------------------------------------------------------------------ */

/* Whether the stream ends before its input does. */
static int is_cancelled(const stream *st) { return __atomic_load_n(&st->cancel, __ATOMIC_RELAXED); }

/* Appends the answer of a request. GPUIR_E_UNSUPPORTED, _TERMS, _RANGE and _WHERE: it has none here. -1: the index
 * cannot be
 * read, which is told if `tell`. */
static int put_answer(stream *st, job *j, cli_buf *text, int tell) {
  char number[32];
  int status = j->task.status;
  gpuir_query_destroy(j->query);
  j->query = NULL;
  switch (status) {
  case GPUIR_OK:
    snprintf(number, sizeof number, "%llu\n", (unsigned long long)j->number);
    cli_buf_text(text, number);
    return 0;
  case GPUIR_E_UNSUPPORTED:
  case GPUIR_E_TERMS:
  case GPUIR_E_WHERE:
  case GPUIR_E_RANGE: cli_buf_text(text, "UNSUPPORTED\n"); return 0;
  case GPUIR_E_DEADLINE: cli_buf_text(text, "DEADLINE\n"); return 0;
  default: break;
  }
  if (!tell || is_cancelled(st)) return -1;
  if (st->client) stream_lost(st, SERVE_FAILED, "", j->error.msg[0] ? j->error.msg : gpuir_strerror(status));
  else (void)cli_fail(st->s->name, status, &j->error);
  return -1;
}

/* Ends the stream: what is in flight is called off, and nothing more is read. The lock is held. */
static void stream_fail(stream *st) {
  const char byte = 0;
  if (is_cancelled(st)) return;
  __atomic_store_n(&st->cancel, 1, __ATOMIC_RELAXED);
  (void)!write(st->wake[1], &byte, 1);
}

/* Writes the answers of n requests, the first of which is number `first`: all of them are there. The lock is not
 * held. */
static int write_answers(stream *st, uint64_t first, uint64_t n, cli_buf *text) {
  int bad = 0;
  text->n = 0;
  for (uint64_t i = first; i < first + n; i++) bad |= put_answer(st, job_at(st, i), text, !bad);
  if (is_cancelled(st)) return -1;
  if (cli_write_all(st->out, text->p, text->n, &st->cancel, st->client ? STALL_NS : 0)) {
    if (!cli_signal && !is_cancelled(st))
      stream_lost(st, errno == ETIMEDOUT ? SERVE_STALLED : SERVE_GONE, "the client does not take answers",
          errno == ETIMEDOUT ? "" : strerror(errno));
    bad = -1;
  }
  return bad;
}

/* How many answers can be written. The lock is held. */
static uint64_t count_answered(const stream *st) {
  uint64_t n = 0;
  while (st->written + n < st->asked && job_at(st, st->written + n)->answered) n++;
  return n;
}

/* The life of the thread that writes. */
static void *stream_write(void *argument) {
  stream *st = (stream *)argument;
  cli_buf text = {NULL, 0, 0};
  pthread_mutex_lock(&st->lock);
  for (;;) {
    const uint64_t n = count_answered(st);
    if (!n && st->ended && st->written == st->asked) break;
    if (!n) {
      pthread_cond_wait(&st->answered, &st->lock);
      continue;
    }
    pthread_mutex_unlock(&st->lock);
    const int bad = write_answers(st, st->written, n, &text);
    pthread_mutex_lock(&st->lock);
    if (bad) stream_fail(st);
    st->written += n;
    note_idle(st);
    pthread_cond_signal(&st->freed);
  }
  pthread_mutex_unlock(&st->lock);
  cli_buf_free(&text);
  return NULL;
}

/* Called by a thread of the pool. */
static void job_done(gpuir_task *t) {
  job *j = (job *)t->user;
  stream *st = j->of;
  pthread_mutex_lock(&st->lock);
  j->answered = 1;
  if (j == job_at(st, st->written)) pthread_cond_signal(&st->answered);
  pthread_mutex_unlock(&st->lock);
}

/* ---- requests ------------------------------------------------------------------------------------------- */

/* Says once that queries have more words than are looked for. */
static void note_shortened(const gpuir_query *query) {
  static int said;
  const char *word;
  size_t len;
  if (gpuir_query_left_out(query, 0, &word, &len) || __atomic_exchange_n(&said, 1, __ATOMIC_RELAXED)) return;
  cli_error("note: a query has more than %d different words: such queries are ranked by the rarest", GPUIR_MAX_TERMS);
}

/* Makes a task of a line; its status is not 0, or its query is NULL, if the answer is known already. */
static void job_make(const stream *st, job *j, const char *line, size_t len) {
  gpuir_query_desc desc;
  serve_request request;
  memset(j, 0, offsetof(job, hits));
  j->of = (stream *)(uintptr_t)st;
  j->task.status = serve_parse(line, len, &request) ? GPUIR_E_UNSUPPORTED : GPUIR_OK;
  memset(&desc, 0, sizeof desc);
  desc.mode = request.mode;
  desc.required = request.required;
  desc.where = request.where.n ? request.where.p : NULL;
  desc.all = request.all;
  desc.keep_rarest = !request.count; /* of some words there is a ranking, but no count of all of them */
  if (!j->task.status)
    j->task.status = gpuir_query_parse(st->s->index, &desc, request.query.p, request.query.n, &j->query, &j->error);
  if (j->query) note_shortened(j->query);
  cli_buf_free(&request.query);
  cli_buf_free(&request.where);
  j->number = !request.count;
  if (j->task.status == GPUIR_E_QUERY) j->task.status = GPUIR_OK; /* stop words only: nothing matches */
  if (!j->query) return;
  j->task.query = j->query;
  j->task.k = request.k;
  j->task.hits = j->hits;
  j->task.matches = request.count ? &j->number : NULL;
  j->task.deadline = st->s->deadline_ns ? cli_nanoseconds() + st->s->deadline_ns : 0;
  j->task.cancel = &st->cancel;
  j->task.error = &j->error;
  j->task.done = job_done;
  j->task.user = j;
}

/* Whether a request is best answered here: nothing else waits, and it takes no time. */
static int is_for_here(const stream *st, const job *j, int alone) {
  return alone && st->in.begin == st->in.end && gpuir_pool_estimate(st->s->pool, j->query) < AT_ONCE_NS;
}

/* Hands a request to the pool, which has no thread if none could be started. */
static void stream_submit(const stream *st, job *j) {
  const struct timespec moment = {0, 1000000};
  int status;
  while ((status = gpuir_pool_submit(st->s->pool, &j->task)) == GPUIR_E_BUSY) /* by other clients' requests */
    (void)nanosleep(&moment, NULL);
  if (!status) return;
  snprintf(j->error.msg, sizeof j->error.msg, "no thread can be started");
  j->task.status = j->error.code = status;
  job_done(&j->task);
}

/* Takes a line: answers it, or hands it to the pool. */
static void stream_take(stream *st, const char *line, size_t len, cli_buf *text) {
  pthread_mutex_lock(&st->lock);
  while (st->asked - st->written == st->s->window) pthread_cond_wait(&st->freed, &st->lock);
  const int alone = st->asked == st->written;
  job *j = job_at(st, st->asked);
  if (st->client) __atomic_store_n(&st->client->idle_since, 0, __ATOMIC_RELAXED);
  pthread_mutex_unlock(&st->lock);
  job_make(st, j, line, len);
  const int here = j->query && is_for_here(st, j, alone);
  if (here) j->task.status = gpuir_pool_answer(st->searcher, &j->task);
  const int known = here || !j->query;
  const int bad = known && alone && write_answers(st, st->asked, 1, text);
  pthread_mutex_lock(&st->lock);
  j->answered = known;
  st->asked++;
  if (known && alone) st->written++;
  note_idle(st);
  if (known && !alone) pthread_cond_signal(&st->answered);
  if (bad) stream_fail(st);
  pthread_mutex_unlock(&st->lock);
  if (known) return;
  stream_submit(st, j);
}

/* Reads requests until there are no more. Exit code. */
static int stream_read(stream *st) {
  cli_buf text = {NULL, 0, 0};
  char *line, why[CLI_COUNTED];
  size_t len;
  uint64_t lines;
  int got = 0, code = CLI_OK;
  while (!is_cancelled(st) && (got = reader_lines(&st->in, 1, &line, &len, &lines)) > 0)
    stream_take(st, line, len - (line[len - 1] == '\n'), &text);
  if (cli_signal) {
    code = 128 + (int)cli_signal;
  } else if (got < 0 && errno != ECANCELED) {
    stream_lost(st, errno == ECONNRESET ? SERVE_GONE : SERVE_UNREADABLE, "a request cannot be read",
        cli_reader_why(&st->in, why));
    code = CLI_FAIL;
  }
  cli_buf_free(&text);
  return code;
}

/* ---- a stream ----------------------------------------------------------------------------------------------- */

static void stream_free(stream *st) {
  reader_close(&st->in);
  gpuir_searcher_destroy(st->searcher);
  for (int i = 0; i < 2; i++)
    if (st->wake[i] >= 0) close(st->wake[i]);
  pthread_mutex_destroy(&st->lock);
  pthread_cond_destroy(&st->answered);
  pthread_cond_destroy(&st->freed);
  free(st->jobs);
  free(st);
}

/* Makes the writing thread, which leaves signals to others. 0 or an errno. */
static int start_writer(stream *st) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int failed = pthread_create(&st->writer, NULL, stream_write, st);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return failed;
}

int serve_stream(const server *s, int in, int out, serve_client *client) {
  stream *st = (stream *)cli_resize(NULL, 1, sizeof *st);
  int code = CLI_OK, cause = 0;
  memset(st, 0, sizeof *st);
  st->s = s;
  st->client = client;
  st->out = out;
  st->wake[0] = st->wake[1] = -1;
  pthread_mutex_init(&st->lock, NULL);
  pthread_cond_init(&st->answered, NULL);
  pthread_cond_init(&st->freed, NULL);
  st->jobs = (job *)cli_resize(NULL, s->window, sizeof *st->jobs);
  cli_reader_open(&st->in, in, CLI_MAX_LINE);
  if (gpuir_searcher_create(s->index, NULL, &st->searcher, NULL)) cause = ENOMEM;
  else if (pipe(st->wake)) cause = errno;
  else cause = start_writer(st);
  if (cause) {
    stream_lost(st, SERVE_FAILED, "a client cannot be served", strerror(cause));
    stream_free(st);
    return CLI_FAIL;
  }
  st->in.wake = st->wake[0];
  code = stream_read(st);
  pthread_mutex_lock(&st->lock);
  st->ended = 1;
  if (cli_signal) stream_fail(st);
  pthread_cond_signal(&st->answered);
  pthread_mutex_unlock(&st->lock);
  pthread_join(st->writer, NULL);
  if (is_cancelled(st) && code == CLI_OK) code = CLI_FAIL;
  stream_free(st);
  return code;
}
