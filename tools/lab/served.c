/* served.c - the load for `gpuir serve`, over pipes or a socket: one thread writes requests, another reads the answers,
 * which come in the same order. What is compared is the number of documents that match.
 */
#include "load.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* Tasks that were submitted, in order: ring[read..written) were asked, ring[written..submitted) not yet. */
typedef struct served {
  gpuir_pool *pool;
  const load_setup *setup;
  gpuir_task **ring;
  size_t cap, submitted, written, read;
  int stopping, lost; /* lost: the server is gone */
  int to, from; /* descriptors */
  pid_t server; /* 0: it was there before */
  pthread_mutex_t lock;
  pthread_cond_t work, asked;
} served;

int load_is_served(const char *name) { return !strcmp(name, "serve"); }

/* Becomes a server. */
static void serve_run(const load_setup *setup) {
  static const char *const backends[] = {"cpu", "gpu", "auto"};
  char threads[24], deadline[24];
  const char *arguments[12] = {"gpuir", "serve", "--stdio", "--threads", threads, "--backend"};
  size_t n = 6;
  snprintf(threads, sizeof threads, "%llu", (unsigned long long)setup->threads);
  snprintf(deadline, sizeof deadline, "%llu", (unsigned long long)(setup->deadline_ns / 1000000));
  arguments[n++] = backends[setup->backend];
  if (setup->deadline_ns) arguments[n++] = "--deadline";
  if (setup->deadline_ns) arguments[n++] = deadline;
  arguments[n] = setup->path;
  execv("/proc/self/exe", (char *const *)(uintptr_t)arguments);
  _exit(127);
}

/* Starts a server. 0 or -1 with errno. */
static int serve_start(served *s) {
  int in[2], out[2];
  if (pipe(in)) return -1;
  if (pipe(out)) {
    close(in[0]);
    close(in[1]);
    return -1;
  }
  s->server = fork();
  if (!s->server) {
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    for (int i = 0; i < 2; i++) {
      close(in[i]);
      close(out[i]);
    }
    serve_run(s->setup);
  }
  close(in[0]);
  close(out[1]);
  s->to = in[1];
  s->from = out[0];
  return s->server < 0 ? -1 : 0;
}

static int serve_connect(served *s) {
  struct sockaddr_un at;
  memset(&at, 0, sizeof at);
  at.sun_family = AF_UNIX;
  if (strlen(s->setup->socket) >= sizeof at.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  memcpy(at.sun_path, s->setup->socket, strlen(s->setup->socket));
  s->to = socket(AF_UNIX, SOCK_STREAM, 0);
  if (s->to < 0 || connect(s->to, (const struct sockaddr *)&at, sizeof at)) return -1;
  s->from = dup(s->to);
  return s->from < 0 ? -1 : 0;
}

static void served_destroy(void *state) {
  served *s = (served *)state;
  if (s->to >= 0) close(s->to);
  if (s->from >= 0) close(s->from);
  if (s->server > 0) (void)waitpid(s->server, NULL, 0);
  pthread_mutex_destroy(&s->lock);
  pthread_cond_destroy(&s->work);
  pthread_cond_destroy(&s->asked);
  free(s->ring);
  free(s);
}

static int served_create(gpuir_pool *pool, void **state, gpuir_error *err) {
  served *s = (served *)cli_resize(NULL, 1, sizeof *s);
  memset(s, 0, sizeof *s);
  s->pool = pool;
  s->setup = (const load_setup *)gpuir_pool_user(pool);
  s->to = s->from = -1;
  pthread_mutex_init(&s->lock, NULL);
  pthread_cond_init(&s->work, NULL);
  pthread_cond_init(&s->asked, NULL);
  if (s->setup->socket ? serve_connect(s) : serve_start(s)) {
    err->code = GPUIR_E_IO;
    snprintf(err->msg, sizeof err->msg, "%.80s: no server: %s", s->setup->socket ? s->setup->socket : "gpuir serve",
        strerror(errno));
    served_destroy(s);
    return GPUIR_E_IO;
  }
  *state = s;
  return GPUIR_OK;
}

static int served_submit(void *state, gpuir_task *task) {
  served *s = (served *)state;
  pthread_mutex_lock(&s->lock);
  if (s->submitted == s->cap) {
    s->cap = s->cap ? s->cap * 2 : 1024;
    s->ring = (gpuir_task **)cli_resize(s->ring, s->cap, sizeof *s->ring);
  }
  s->ring[s->submitted++] = task;
  pthread_cond_signal(&s->work);
  pthread_mutex_unlock(&s->lock);
  return GPUIR_OK;
}

/* Appends the request of a query: of AND each word with a plus. */
static void put_request(const load_setup *s, const load_query *q, cli_buf *line) {
  cli_buf_text(line, s->k <= 10 ? "TOP_10_COUNT\t" : s->k <= 100 ? "TOP_100_COUNT\t" : "TOP_1000_COUNT\t");
  for (size_t i = 0; i < q->len; i++) {
    const int word = q->text[i] != ' ' && (!i || q->text[i - 1] == ' ');
    if (word && q->mode == GPUIR_AND && q->text[i] != '-') cli_buf_char(line, '+');
    cli_buf_char(line, q->text[i]);
  }
  cli_buf_char(line, '\n');
}

static int write_all(int fd, const char *p, size_t n) {
  while (n) {
    const ssize_t got = write(fd, p, n);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    p += got;
    n -= (size_t)got;
  }
  return 0;
}

/* Writes requests, as many at once as were submitted, until the pool stops. */
static void write_requests(served *s) {
  cli_buf lines = {NULL, 0, 0};
  pthread_mutex_lock(&s->lock);
  for (;;) {
    while (s->written == s->submitted && !s->stopping) pthread_cond_wait(&s->work, &s->lock);
    if (s->written == s->submitted) break;
    lines.n = 0;
    const size_t from = s->written, to = s->submitted;
    for (size_t i = from; i < to; i++) {
      const load_job *j = (const load_job *)s->ring[i]->user;
      s->ring[i]->started = cli_nanoseconds();
      put_request(s->setup, &s->setup->queries[j->query], &lines);
    }
    pthread_mutex_unlock(&s->lock);
    const int bad = write_all(s->to, lines.p, lines.n);
    pthread_mutex_lock(&s->lock);
    s->lost |= bad;
    s->written = to;
    pthread_cond_signal(&s->asked);
  }
  pthread_mutex_unlock(&s->lock);
  close(s->to); /* the server ends when it has read all */
  s->to = -1;
  cli_buf_free(&lines);
}

/* What came of a request whose answer is `line`, of which a number ends at `end`. */
static int status_of(const char *line, const char *end) {
  if (end != line) return *end == '\n' ? GPUIR_OK : GPUIR_E_IO;
  return strcmp(line, "DEADLINE\n") ? GPUIR_E_IO : GPUIR_E_DEADLINE;
}

/* Reads an answer for each request, in order. */
static void read_answers(served *s) {
  FILE *in = fdopen(s->from, "r");
  char line[64];
  pthread_mutex_lock(&s->lock);
  for (;;) {
    while (s->read == s->written && !(s->stopping && s->read == s->submitted)) pthread_cond_wait(&s->asked, &s->lock);
    if (s->read == s->written) break;
    gpuir_task *task = s->ring[s->read++];
    const int lost = s->lost;
    pthread_mutex_unlock(&s->lock);
    load_job *j = (load_job *)task->user;
    char *end = line;
    line[0] = 0;
    if (in && !lost && fgets(line, sizeof line, in)) j->matches = strtoull(line, &end, 10);
    const int status = status_of(line, end);
    gpuir_pool_complete(s->pool, task, status);
    pthread_mutex_lock(&s->lock);
    s->lost |= status == GPUIR_E_IO && (!in || feof(in));
  }
  pthread_mutex_unlock(&s->lock);
  if (in) {
    fclose(in);
    s->from = -1;
  }
}

static void served_work(void *state, unsigned thread) {
  if (thread == 0) write_requests((served *)state);
  if (thread == 1) read_answers((served *)state);
}

static void served_stop(void *state) {
  served *s = (served *)state;
  pthread_mutex_lock(&s->lock);
  s->stopping = 1;
  pthread_cond_broadcast(&s->work);
  pthread_cond_broadcast(&s->asked);
  pthread_mutex_unlock(&s->lock);
}

const gpuir_policy load_served = {"serve", served_create, served_submit, served_work, served_stop, served_destroy};
