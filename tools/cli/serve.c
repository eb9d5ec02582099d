/* serve.c - gpuir serve: the line protocol of the search benchmark game, over standard input and output or a socket.
 *
 * Each line is a request, COMMAND, tab, query; each gets one line, in the order of the requests. What cannot be
 * answered exactly is UNSUPPORTED. Source: github.com/quickwit-oss/search-benchmark-game.
 */
#include "serve.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define CLIENTS 64 /* of a socket at a time; further ones wait */

static int is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v'; }

static int parse_command(const char *s, size_t n, serve_request *q) {
  static const struct {
    const char *name;
    size_t k;
    int count;
  } commands[] = {{"TOP_10", 10, 0}, {"TOP_100", 100, 0}, {"TOP_1000", 1000, 0}, {"TOP_10_COUNT", 10, 1},
      {"TOP_100_COUNT", 100, 1}, {"TOP_1000_COUNT", 1000, 1}, {"COUNT", 0, 1}};
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    if (strlen(commands[i].name) == n && !memcmp(commands[i].name, s, n)) {
      q->k = commands[i].k;
      q->count = commands[i].count;
      return 0;
    }
  return -1;
}

/* Whether a word is one that the game's engines take literally, or a phrase of such words. */
static int is_plain(const char *s, size_t n) {
  static const char special[] = "\"()[]{}^~*?:\\+";
  static const char *const operators[] = {"AND", "OR", "NOT", "&&", "||"};
  if (!n || s[0] == '-' || s[0] == '!') return 0;
  if (n > 2 && s[0] == '"' && s[n - 1] == '"') s++, n -= 2;
  for (size_t i = 0; i < n; i++)
    if (!s[i] || strchr(special, s[i])) return 0;
  for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
    if (strlen(operators[i]) == n && !memcmp(operators[i], s, n)) return 0;
  return 1;
}

/* Steps to the next word or "phrase" of [*p, end) and parts it from its sign, 0 if it has none. 0 behind the last
 * word. */
static int next_word(const char **p, const char *end, char *sign, const char **word, size_t *n) {
  while (*p < end && is_space(**p)) ++*p;
  if (*p == end) return 0;
  *sign = **p == '+' || **p == '-' ? *(*p)++ : (char)0;
  *word = *p;
  if (*p < end && **p == '"') {
    const char *close = (const char *)memchr(*p + 1, '"', (size_t)(end - *p - 1));
    if (close) *p = close;
  }
  while (*p < end && !is_space(**p)) ++*p;
  *n = (size_t)(*p - *word);
  return 1;
}

/* 0, or -1 when the query has no exact counterpart here. Of words with and without a plus, only those with one become
 * part of the query: they alone say what matches. */
static int parse_query(const char *s, size_t len, serve_request *q) {
  const char *p = s, *word;
  size_t n, plus = 0, bare = 0;
  char sign;
  while (next_word(&p, s + len, &sign, &word, &n)) {
    if (!is_plain(word, n)) return -1;
    plus += sign == '+';
    bare += !sign;
  }
  if (!plus && !bare) return -1;
  q->mode = plus ? GPUIR_AND : GPUIR_OR;
  q->optional = plus && bare;
  for (p = s; next_word(&p, s + len, &sign, &word, &n);) {
    if (q->optional && !sign) continue;
    if (q->query.n) cli_buf_char(&q->query, ' ');
    if (sign == '-') cli_buf_char(&q->query, '-');
    cli_buf_add(&q->query, word, n);
  }
  return 0;
}

int serve_parse(const char *line, size_t len, serve_request *request) {
  const char *tab = (const char *)memchr(line, '\t', len);
  memset(request, 0, sizeof *request);
  if (!tab || parse_command(line, (size_t)(tab - line), request)) return -1;
  return parse_query(tab + 1, len - (size_t)(tab + 1 - line), request);
}

/* ---- a socket ------------------------------------------------------------------------------------------------ */

/* A client of a socket, or a free place. */
typedef struct client {
  const server *s;
  struct listener *of;
  int fd; /* -1: the place is free */
  int done, joinable; /* under the listener's lock */
  pthread_t thread;
} client;

typedef struct listener {
  int fd;
  const char *path;
  struct stat made; /* what `path` names since this server made it */
  client clients[CLIENTS];
  pthread_mutex_t lock;
  int wake[2]; /* a pipe: a byte in it says that a client is gone */
} listener;

static void *client_run(void *argument) {
  client *c = (client *)argument;
  const char byte = 0;
  (void)serve_stream(c->s, c->fd, c->fd); /* a client that fails does not end the server */
  pthread_mutex_lock(&c->of->lock);
  close(c->fd);
  c->fd = -1;
  c->done = 1;
  pthread_mutex_unlock(&c->of->lock);
  (void)!write(c->of->wake[1], &byte, 1);
  return NULL;
}

/* Gives the places of clients that are gone back. Returns a free one, or NULL. */
static client *client_place(listener *l) {
  client *place = NULL;
  for (size_t i = 0; i < CLIENTS; i++) {
    client *c = &l->clients[i];
    pthread_mutex_lock(&l->lock);
    const int done = c->done;
    pthread_mutex_unlock(&l->lock);
    if (done) pthread_join(c->thread, NULL);
    if (done) c->joinable = c->done = 0;
    if (!c->joinable) place = c;
  }
  return place;
}

/* Takes a client on. Where there is no descriptor for it, it waits, and this thread sleeps before it looks again. */
static void client_start(listener *l, const server *s, client *c) {
  const struct timespec moment = {0, 100000000};
  c->fd = accept(l->fd, NULL, NULL);
  c->s = s;
  c->of = l;
  if (c->fd < 0) {
    if (errno != ECONNABORTED) (void)nanosleep(&moment, NULL);
    return;
  }
  const int failed = pthread_create(&c->thread, NULL, client_run, c);
  c->joinable = !failed;
  if (!failed) return;
  cli_error("a client cannot be served: %s", strerror(failed));
  close(c->fd);
  c->fd = -1;
}

/* Ends all clients. */
static void clients_end(listener *l) {
  for (size_t i = 0; i < CLIENTS; i++) {
    client *c = &l->clients[i];
    pthread_mutex_lock(&l->lock);
    if (c->fd >= 0) shutdown(c->fd, SHUT_RDWR);
    pthread_mutex_unlock(&l->lock);
    if (c->joinable) pthread_join(c->thread, NULL);
  }
}

/* Serves clients until a signal comes. All threads leave signals to this one, which takes them while it waits. */
static int serve_clients(listener *l, const server *s) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  while (!cli_signal) {
    client *place = client_place(l);
    char bytes[64];
    fd_set set;
    FD_ZERO(&set);
    FD_SET(l->wake[0], &set);
    if (place) FD_SET(l->fd, &set);
    if (pselect((l->fd > l->wake[0] ? l->fd : l->wake[0]) + 1, &set, NULL, NULL, NULL, &before) <= 0) continue;
    if (FD_ISSET(l->wake[0], &set)) (void)!read(l->wake[0], bytes, sizeof bytes);
    if (FD_ISSET(l->fd, &set)) client_start(l, s, place);
    pthread_sigmask(SIG_SETMASK, &before, NULL); /* pselect lets no signal in while a client waits */
    pthread_sigmask(SIG_SETMASK, &all, NULL);
  }
  clients_end(l);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return 128 + (int)cli_signal;
}

/* Takes the lock of the folder of `path` for a moment, as servers do before they look at what another left there.
 * Returns its descriptor, or -1 where the folder cannot be read, or somebody else keeps the lock for a second. */
static int lock_folder(const char *path) {
  const struct timespec moment = {0, 10000000};
  const char *slash = strrchr(path, '/');
  char *folder = slash ? cli_copy(path, (size_t)(slash - path) + 1) : cli_copy(".", 1);
  const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int tries = 100;
  free(folder);
  while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB)) {
    if (errno != EWOULDBLOCK || cli_signal || !--tries) {
      close(fd);
      return -1;
    }
    (void)nanosleep(&moment, NULL);
  }
  return fd;
}

/* Returns whether `at` names a socket to which nobody listens: a server was killed. */
static int is_left(const struct sockaddr_un *at) {
  struct stat st;
  if (lstat(at->sun_path, &st) || !S_ISSOCK(st.st_mode)) return 0;
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  const int flags = fd < 0 ? -1 : fcntl(fd, F_GETFL);
  int left = 0;
  if (flags >= 0 && !fcntl(fd, F_SETFL, flags | O_NONBLOCK))
    left = connect(fd, (const struct sockaddr *)at, sizeof *at) && errno == ECONNREFUSED;
  if (fd >= 0) close(fd);
  return left;
}

/* Gives the socket its name, in place of one that a killed server left. 0, or -1 with errno. */
static int take_name(const listener *l, const struct sockaddr_un *at) {
  const struct sockaddr *name = (const struct sockaddr *)at;
  const int lock = lock_folder(l->path);
  int failed = bind(l->fd, name, sizeof *at), cause = errno;
  if (failed && cause == EADDRINUSE && lock >= 0 && is_left(at) && !unlink(at->sun_path)) {
    failed = bind(l->fd, name, sizeof *at);
    cause = errno;
  }
  if (!failed) {
    failed = listen(l->fd, CLIENTS);
    cause = errno;
  }
  if (lock >= 0) close(lock);
  errno = cause;
  return failed;
}

/* Makes the socket. 0, or -1 with errno. */
static int listen_at(listener *l) {
  struct sockaddr_un at;
  memset(&at, 0, sizeof at);
  at.sun_family = AF_UNIX;
  if (strlen(l->path) >= sizeof at.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  memcpy(at.sun_path, l->path, strlen(l->path));
  l->fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (l->fd < 0 || pipe(l->wake)) return -1;
  return take_name(l, &at) ? -1 : lstat(l->path, &l->made);
}

/* Removes the socket, unless another took its name. */
static void remove_name(const listener *l) {
  struct stat st;
  if (!lstat(l->path, &st) && st.st_dev == l->made.st_dev && st.st_ino == l->made.st_ino) (void)unlink(l->path);
}

static int serve_socket(const server *s, const char *path) {
  listener *l = (listener *)cli_resize(NULL, 1, sizeof *l);
  int code = CLI_FAIL;
  memset(l, 0, sizeof *l);
  l->path = path;
  l->fd = l->wake[0] = l->wake[1] = -1;
  for (size_t i = 0; i < CLIENTS; i++) l->clients[i].fd = -1;
  pthread_mutex_init(&l->lock, NULL);
  if (listen_at(l)) {
    cli_error("%s: %s", path, strerror(errno));
  } else {
    code = serve_clients(l, s);
    remove_name(l);
  }
  if (l->fd >= 0) close(l->fd);
  for (int i = 0; i < 2; i++)
    if (l->wake[i] >= 0) close(l->wake[i]);
  pthread_mutex_destroy(&l->lock);
  free(l);
  return code;
}

/* ---- the command ------------------------------------------------------------------------------------------ */

enum { O_STDIO = 2, O_SOCKET, O_THREADS, O_POLICY, O_BACKEND, O_DEVICES, O_PARTITION, O_DEADLINE, O_WINDOW };

typedef struct serve_options {
  int stdio, policy, backend;
  cli_devices devices;
  const char *socket;
  uint64_t threads, deadline_ms, window;
} serve_options;

static int take_option(serve_options *o, const cli_args *a, int opt) {
  switch (opt) {
  case O_STDIO: o->stdio = 1; return CLI_OK;
  case O_SOCKET: o->socket = a->value; return CLI_OK;
  case O_THREADS: return cli_unsigned(a, 1, 4096, &o->threads);
  case O_POLICY: return cli_choice(a, "auto|inter", &o->policy);
  case O_BACKEND: return cli_choice(a, "cpu|gpu|auto", &o->backend);
  case O_DEVICES: return cli_devices_read(a, &o->devices);
  case O_PARTITION: o->devices.partition = 1; return CLI_OK;
  case O_DEADLINE: return cli_unsigned(a, 1, 1000000, &o->deadline_ms);
  case O_WINDOW: return cli_unsigned(a, 1, 65536, &o->window);
  default: return CLI_USAGE;
  }
}

/* Says what came of the device, if it was lost. Returns whether it was. */
static int tell_lost(gpuir_pool *pool) {
  gpuir_pool_stats stats;
  gpuir_pool_get_stats(pool, &stats);
  if (stats.devices_lost) cli_error("the CPU answered: %s", stats.device_error.msg);
  return stats.devices_lost != 0;
}

/* Serves with a pool as it was asked for. */
static int serve(server *s, const serve_options *o) {
  static const char *const policies[] = {"auto", "inter"};
  cli_gpu gpu = {NULL, 0, 0};
  gpuir_pool_desc desc;
  gpuir_error err;
  int code = cli_gpu_open(&gpu, o->backend, &o->devices, s->index), lost = 0;
  if (code) return code;
  memset(&desc, 0, sizeof desc);
  memset(&err, 0, sizeof err);
  desc.threads = (unsigned)o->threads;
  desc.policy = policies[o->policy];
  desc.queue = s->window * (o->socket ? CLIENTS : 1);
  desc.attach = gpu.cuda ? cli_gpu_attach_pool : NULL;
  desc.attach_user = &gpu;
  const int status = gpuir_pool_create(s->index, &desc, &s->pool, &err);
  if (status) {
    code = cli_fail(s->name, status, &err);
  } else {
    code = o->socket ? serve_socket(s, o->socket) : serve_stream(s, STDIN_FILENO, STDOUT_FILENO);
    lost = tell_lost(s->pool);
    gpuir_pool_destroy(s->pool);
  }
  if (!lost) cli_gpu_close(&gpu); /* one that does not answer is left to the system */
  return code;
}

int cli_serve(int argc, char **argv) {
  static const cli_option options[] = {{O_STDIO, "stdio", 0, 0}, {O_SOCKET, "socket", 0, 1},
      {O_THREADS, "threads", 0, 1}, {O_POLICY, "policy", 0, 1}, {O_BACKEND, "backend", 0, 1},
      {O_DEVICES, "devices", 0, 1}, {O_PARTITION, "partition", 0, 0}, {O_DEADLINE, "deadline", 0, 1},
      {O_WINDOW, "in-flight", 0, 1}, {0, NULL, 0, 0}};
  serve_options o;
  server s;
  cli_args a;
  int opt, code = CLI_OK;
  memset(&s, 0, sizeof s);
  memset(&o, 0, sizeof o);
  o.window = 256;
  cli_args_start(&a, "serve", options, argc, argv);
  while (code == CLI_OK && (opt = cli_next(&a)) != CLI_END) {
    if (opt == CLI_HELP) {
      cli_args_free(&a);
      return cli_help("serve");
    }
    code = take_option(&o, &a, opt);
  }
  if (code) code = CLI_USAGE;
  if (!code && o.stdio == (o.socket != NULL))
    code = cli_misuse("serve", o.stdio ? "--stdio or --socket, not both" : "--stdio or --socket PATH is missing");
  if (!code && a.noperands != 1) code = cli_misuse("serve", a.noperands ? "one INDEX only" : "INDEX is missing");
  if (!code) {
    s.name = a.operands[0];
    s.window = (size_t)o.window;
    s.deadline_ns = o.deadline_ms * 1000000;
    s.index = cli_open(s.name);
    code = s.index ? CLI_OK : CLI_FAIL;
    cli_catch_signals();
    (void)signal(SIGPIPE, SIG_IGN);
    if (!code) code = serve(&s, &o);
    gpuir_close(s.index);
  }
  cli_args_free(&a);
  return cli_finish(code);
}
