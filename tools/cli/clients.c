/* clients.c - the socket of `gpuir serve`, and its clients.
 *
 * Each client that is served has a thread. Who comes when all places are taken waits, accepted, because only then it is
 * known whose it is. No client can keep the others out: one user's clients get at most half of the places, served and
 * waiting; while one waits, the client that has been idle for longest has to go; and one that takes no answers is
 * closed (stream.c). Clients that get lost are counted, and told of once a minute, so that they cannot fill a log.
 */
#define _GNU_SOURCE /* ppoll, struct ucred */
#include "serve.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define WAITING 128u /* clients without a place that wait for one, half of them of one user at most */
#define IDLE_NS 10000000000u /* that a client has been idle for at least when it is closed for one that waits */
#define TELL_NS 60000000000u /* between two lines about clients that got lost */
#define LOOK_NS 250000000u /* between two looks for an idle client while one waits */

/* A client that is served, or a free place. */
typedef struct client {
  serve_client shared;
  const server *s;
  struct listener *of;
  uid_t user;
  int fd; /* -1: the place is free */
  int closing; /* it was shut down for one that waits */
  int done, joinable; /* under the listener's lock */
  pthread_t thread;
} client;

typedef struct waiter {
  int fd;
  uid_t user;
} waiter;

typedef struct listener {
  int fd;
  const server *s;
  const char *path;
  struct stat made; /* what `path` names since this server made it */
  client clients[SERVE_CLIENTS];
  waiter waiting[WAITING]; /* who came first stands first */
  size_t nwaiting;
  uint64_t lost[SERVE_REASONS], told; /* clients since they were told of, when that was */
  char cause[SERVE_REASONS][200]; /* of the last one each */
  pthread_mutex_t lock;
  int wake[2]; /* a pipe: a byte in it says that a client is gone */
} listener;

/* ---- clients that get lost ------------------------------------------------------------------------------------- */

static void count_lost(listener *l, int reason, const char *cause) {
  if (reason == SERVE_ENDED) return;
  l->lost[reason]++;
  (void)snprintf(l->cause[reason], sizeof l->cause[reason], "%s", cause);
}

/* When the next line about lost clients is due, in nanoseconds; 0: there is none to tell of. */
static uint64_t tell_at(const listener *l) {
  uint64_t lost = 0;
  for (int i = 0; i < SERVE_REASONS; i++) lost += l->lost[i];
  if (!lost) return 0;
  return l->told ? l->told + TELL_NS : 1;
}

/* Tells of them, all in one line. */
static void tell_lost(listener *l) {
  static const char *const what[SERVE_REASONS] = {"", "went before they had their answers",
      "took no answers for too long", "were idle while others waited", "were too many of one user",
      "sent what cannot be read", "could not be served"};
  cli_buf line = {NULL, 0, 0};
  char number[27];
  for (int i = 0; i < SERVE_REASONS; i++) {
    if (!l->lost[i]) continue;
    if (line.n) cli_buf_text(&line, ", ");
    cli_buf_text(&line, cli_grouped(l->lost[i], number));
    cli_buf_char(&line, ' ');
    cli_buf_text(&line, what[i]);
    if (l->cause[i][0]) {
      cli_buf_text(&line, " (");
      cli_buf_text(&line, l->cause[i]);
      cli_buf_char(&line, ')');
    }
    l->lost[i] = 0;
  }
  if (line.n) cli_error("clients: %.*s", (int)line.n, line.p);
  cli_buf_free(&line);
  l->told = cli_nanoseconds();
}

/* ---- places ---------------------------------------------------------------------------------------------------- */

static void *client_run(void *argument) {
  client *c = (client *)argument;
  const char byte = 0;
  (void)serve_stream(c->s, c->fd, c->fd, &c->shared); /* a client that fails does not end the server */
  pthread_mutex_lock(&c->of->lock);
  close(c->fd);
  c->fd = -1;
  c->done = 1;
  pthread_mutex_unlock(&c->of->lock);
  (void)!write(c->of->wake[1], &byte, 1);
  return NULL;
}

/* Gives the places of clients that are gone back. */
static void free_places(listener *l) {
  for (size_t i = 0; i < SERVE_CLIENTS; i++) {
    client *c = &l->clients[i];
    pthread_mutex_lock(&l->lock);
    const int done = c->done;
    pthread_mutex_unlock(&l->lock);
    if (!done) continue;
    pthread_join(c->thread, NULL);
    count_lost(l, c->closing ? SERVE_IDLE : c->shared.reason, c->closing ? "" : c->shared.cause);
    c->joinable = c->done = 0;
  }
}

/* Returns a free place for a user's client, or NULL; *full: the user has as many as one may have. */
static client *find_place(listener *l, uid_t user, int *full) {
  client *place = NULL;
  size_t own = 0;
  for (size_t i = 0; i < SERVE_CLIENTS; i++) {
    client *c = &l->clients[i];
    if (!c->joinable) place = c;
    else own += c->user == user;
  }
  *full = own >= SERVE_CLIENTS / 2;
  return *full ? NULL : place;
}

/* Gives a client a place. */
static void start_client(listener *l, client *c, const waiter *w) {
  memset(&c->shared, 0, sizeof c->shared);
  c->shared.idle_since = cli_nanoseconds();
  c->s = l->s;
  c->of = l;
  c->fd = w->fd;
  c->user = w->user;
  c->closing = 0;
  const int failed = pthread_create(&c->thread, NULL, client_run, c);
  c->joinable = !failed;
  if (!failed) return;
  count_lost(l, SERVE_FAILED, strerror(failed));
  close(c->fd);
  c->fd = -1;
}

/* Forgets clients that left while they waited. */
static void forget_gone(listener *l) {
  struct pollfd fds[WAITING];
  size_t kept = 0;
  for (size_t i = 0; i < l->nwaiting; i++) {
    fds[i].fd = l->waiting[i].fd;
    fds[i].events = fds[i].revents = 0; /* POLLHUP and POLLERR are told of all the same */
  }
  if (poll(fds, (nfds_t)l->nwaiting, 0) <= 0) return;
  for (size_t i = 0; i < l->nwaiting; i++) {
    if (fds[i].revents) close(l->waiting[i].fd);
    else l->waiting[kept++] = l->waiting[i];
  }
  l->nwaiting = kept;
}

/* Gives free places to those who wait. */
static void admit(listener *l) {
  size_t kept = 0;
  for (size_t i = 0; i < l->nwaiting; i++) {
    int full;
    client *place = find_place(l, l->waiting[i].user, &full);
    if (place) start_client(l, place, &l->waiting[i]);
    else l->waiting[kept++] = l->waiting[i];
  }
  l->nwaiting = kept;
}

/* Returns the client that has been idle for longest, and for IDLE_NS at least; NULL: there is none. `user` is the one
 * whose clients are looked at, where `own`. */
static client *find_idle(listener *l, uid_t user, int own) {
  const uint64_t now = cli_nanoseconds();
  uint64_t longest = now > IDLE_NS ? now - IDLE_NS : 0;
  client *idle = NULL;
  for (size_t i = 0; i < SERVE_CLIENTS; i++) {
    client *c = &l->clients[i];
    if (!c->joinable || c->closing || (own && c->user != user)) continue;
    const uint64_t since = __atomic_load_n(&c->shared.idle_since, __ATOMIC_RELAXED);
    if (!since || since > longest) continue;
    longest = since;
    idle = c;
  }
  return idle;
}

static void close_idle(listener *l, client *c) {
  if (!c) return;
  pthread_mutex_lock(&l->lock);
  c->closing = c->fd >= 0;
  if (c->closing) shutdown(c->fd, SHUT_RDWR);
  pthread_mutex_unlock(&l->lock);
}

/* Closes an idle client for the first of those who wait that can have its place: a user who has half of the places gets
 * one of them only. One at a time: it gives its place back before the next is looked for. */
static void make_place(listener *l) {
  client *idle = NULL;
  for (size_t i = 0; i < SERVE_CLIENTS; i++)
    if (l->clients[i].joinable && l->clients[i].closing) return;
  for (size_t i = 0; i < l->nwaiting && !idle; i++) {
    int full;
    (void)find_place(l, l->waiting[i].user, &full);
    idle = find_idle(l, l->waiting[i].user, full);
  }
  close_idle(l, idle);
}

/* Returns how many of those who wait are a user's. */
static size_t count_waiting(const listener *l, uid_t user) {
  size_t n = 0;
  for (size_t i = 0; i < l->nwaiting; i++) n += l->waiting[i].user == user;
  return n;
}

/* Lets a client wait. Where there is no descriptor for it, an idle one has to go, and this thread sleeps before it
 * looks again. */
static void accept_client(listener *l) {
  const struct timespec moment = {0, 100000000};
  struct ucred who;
  socklen_t size = sizeof who;
  waiter w;
  w.fd = accept(l->fd, NULL, NULL);
  if (w.fd < 0) {
    if (errno == ECONNABORTED || errno == EINTR) return;
    close_idle(l, find_idle(l, 0, 0));
    (void)nanosleep(&moment, NULL);
    return;
  }
  w.user = getsockopt(w.fd, SOL_SOCKET, SO_PEERCRED, &who, &size) ? (uid_t)-1 : who.uid;
  if (count_waiting(l, w.user) >= WAITING / 2) {
    count_lost(l, SERVE_REFUSED, "");
    close(w.fd);
    return;
  }
  l->waiting[l->nwaiting++] = w;
}

/* Ends all clients. */
static void clients_end(listener *l) {
  for (size_t i = 0; i < SERVE_CLIENTS; i++) {
    client *c = &l->clients[i];
    pthread_mutex_lock(&l->lock);
    if (c->fd >= 0) shutdown(c->fd, SHUT_RDWR);
    pthread_mutex_unlock(&l->lock);
    if (c->joinable) pthread_join(c->thread, NULL);
  }
  for (size_t i = 0; i < l->nwaiting; i++) close(l->waiting[i].fd);
  if (tell_at(l)) tell_lost(l);
}

/* Returns how long nothing may have to be done unless somebody comes or goes: NULL, for ever, or *time. */
static const struct timespec *time_left(const listener *l, struct timespec *time) {
  const uint64_t due = tell_at(l), now = cli_nanoseconds();
  uint64_t left = l->nwaiting ? LOOK_NS : UINT64_MAX;
  if (due && due <= now) left = 0;
  else if (due && due - now < left) left = due - now;
  time->tv_sec = (time_t)(left / 1000000000u);
  time->tv_nsec = (long)(left % 1000000000u);
  return left == UINT64_MAX ? NULL : time;
}

/* Serves clients until a signal comes. All threads leave signals to this one, which takes them while it waits. */
static int serve_clients(listener *l) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  while (!cli_signal) {
    char bytes[64];
    struct pollfd fds[2] = {{l->wake[0], POLLIN, 0}, {l->nwaiting < WAITING ? l->fd : -1, POLLIN, 0}};
    struct timespec time;
    if (ppoll(fds, 2, time_left(l, &time), &before) < 0) continue;
    if (fds[0].revents) (void)!read(l->wake[0], bytes, sizeof bytes);
    if (fds[1].revents) accept_client(l);
    free_places(l);
    admit(l);
    if (l->nwaiting) forget_gone(l);
    if (l->nwaiting) make_place(l);
    if (tell_at(l) && tell_at(l) <= cli_nanoseconds()) tell_lost(l);
    pthread_sigmask(SIG_SETMASK, &before, NULL); /* ppoll lets no signal in while a client waits */
    pthread_sigmask(SIG_SETMASK, &all, NULL);
  }
  clients_end(l);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return 128 + (int)cli_signal;
}

/* ---- the socket ------------------------------------------------------------------------------------------------ */

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
    failed = listen(l->fd, SERVE_CLIENTS);
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

int serve_socket(const server *s, const char *path) {
  listener *l = (listener *)cli_resize(NULL, 1, sizeof *l);
  int code = CLI_FAIL;
  memset(l, 0, sizeof *l);
  l->s = s;
  l->path = path;
  l->fd = l->wake[0] = l->wake[1] = -1;
  for (size_t i = 0; i < SERVE_CLIENTS; i++) l->clients[i].fd = -1;
  pthread_mutex_init(&l->lock, NULL);
  if (listen_at(l)) {
    cli_error("%s: %s", path, strerror(errno));
  } else {
    code = serve_clients(l);
    remove_name(l);
  }
  if (l->fd >= 0) close(l->fd);
  for (int i = 0; i < 2; i++)
    if (l->wake[i] >= 0) close(l->wake[i]);
  pthread_mutex_destroy(&l->lock);
  free(l);
  return code;
}
