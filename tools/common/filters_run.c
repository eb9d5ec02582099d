/* filters_run.c - runs the program of a filter.
 *
 * Between the caller and the program stands a supervisor, a process that takes over what the program starts and leaves
 * behind (prctl(2), PR_SET_CHILD_SUBREAPER). It tells how the program ended, waits until it is let go, and then kills
 * all that is left. A process group alone would not have what called setsid(2). Where there are no subreapers, it is
 * the group.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* ppoll */
#endif
#include "filters.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#define SAID_MOST 200u /* bytes of what a program says of its failure that are shown */
#define SECONDS_MOST 86400ul
#define LOOK_MS 100 /* after which it is asked whether the work is called off */

/* A program at work. */
typedef struct child {
  const text_filter *filter;
  const source_limits *limits;
  pid_t pid; /* of the supervisor */
  unsigned seconds;
  int out, err; /* pipes: what it writes, and what it says; -1: closed */
  int ended; /* a pipe: how the program ended */
  int held[2]; /* a pipe: a byte of it lets the supervisor finish, and so does its end */
  uint64_t end; /* nanoseconds */
  char said[SAID_MOST + 1];
  size_t nsaid;
  char *why; /* [FILTERS_WHY] */
} child;

static uint64_t now_ns(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* Seconds that a program may take for a file: GPUIR_FILTER_SECONDS, or the default; 0: that is no such number. */
static unsigned filter_seconds(void) {
  const char *said = getenv("GPUIR_FILTER_SECONDS");
  char *end;
  unsigned long n;
  if (!said) return FILTERS_SECONDS;
  errno = 0;
  n = strtoul(said, &end, 10);
  return *said < '0' || *said > '9' || *end || errno || n > SECONDS_MOST ? 0 : (unsigned)n;
}

/* ---- the supervisor ---------------------------------------------------------------------------- */

/* Becomes the program. Between fork and exec nothing but system calls is allowed. */
static void run_program(const child *c, int in, int out, int err) {
  const struct rlimit none = {0, 0}, cpu = {c->seconds, c->seconds};
  char **words = c->filter->words;
  sigset_t all;
  (void)setpgid(0, 0);
#ifdef __linux__
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
  (void)sigemptyset(&all);
  (void)sigprocmask(SIG_SETMASK, &all, NULL);
  (void)signal(SIGXFSZ, SIG_DFL);
  (void)signal(SIGPIPE, SIG_DFL);
  (void)signal(SIGCHLD, SIG_DFL);
  (void)setrlimit(RLIMIT_CORE, &none);
  (void)setrlimit(RLIMIT_CPU, &cpu);
  if (dup2(in, 0) == 0 && dup2(out, 1) == 1 && dup2(err, 2) == 2) (void)execvp(c->filter->program, words);
  _exit(127);
}

/* Sends SIGKILL to each child of this process. */
static void kill_children(void) {
#ifdef __linux__
  char list[4096];
  const int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
  const ssize_t n = fd < 0 ? 0 : read(fd, list, sizeof list);
  pid_t pid = 0;
  for (ssize_t i = 0; i < n; i++) { /* numbers, each with a blank behind it; one that is cut comes the next time */
    if (list[i] >= '0' && list[i] <= '9') {
      pid = pid * 10 + (list[i] - '0');
    } else {
      if (pid > 0) (void)kill(pid, SIGKILL);
      pid = 0;
    }
  }
  if (fd >= 0) (void)close(fd);
#endif
}

/* Kills what the program has left, until there is nothing more, for two seconds at most: a process that waits for a
 * disk dies when the disk answers. */
static void end_all(pid_t program, int ended) {
  const struct timespec moment = {0, 1000000};
  pid_t got = 0;
  (void)kill(-program, SIGKILL);
  if (!ended)
    (void)kill(program, SIGKILL); /* it may not have its group yet; of an ended one the number may be another's */
  for (int i = 0; i < 2000 && (got >= 0 || errno == EINTR); i++) {
    kill_children();
    while ((got = waitpid(-1, NULL, WNOHANG)) > 0) {}
    if (!got) (void)nanosleep(&moment, NULL);
  }
}

static void on_child(int number) { (void)number; }

/* Is the supervisor, with its ends of the pipes. */
static void supervise(const child *c, int in, int out, int err, int ended, int held) {
  struct pollfd let_go = {held, POLLIN, 0};
  struct sigaction sa;
  sigset_t none, children;
  int status, is_known = 0, is_lost = 0;
#ifdef __linux__
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
#endif
  (void)setpgid(0, 0); /* a terminal's signals are for the command */
  memset(&sa, 0, sizeof sa);
  sa.sa_handler = on_child;
  (void)sigemptyset(&sa.sa_mask);
  (void)sigemptyset(&none);
  (void)sigemptyset(&children);
  (void)sigaddset(&children, SIGCHLD);
  if (sigaction(SIGCHLD, &sa, NULL) || sigprocmask(SIG_SETMASK, &children, NULL)) /* let in only while it waits: */
    _exit(1); /* none is missed */
  const pid_t program = fork();
  if (!program) run_program(c, in, out, err);
  if (program < 0) _exit(1);
  (void)setpgid(program, program); /* whoever comes first */
  if (close(out) || close(err)) is_lost = 1; /* one that stays open here has no end for the caller */
  while (!is_lost && !let_go.revents) { /* other supervisors may have a copy of the pipe's other end: so a byte comes */
    const pid_t got = is_known ? 0 : waitpid(program, &status, WNOHANG);
    if (got == program) {
      is_known = 1;
      is_lost = write(ended, &status, sizeof status) < 0;
    } else if (got < 0) {
      is_lost = 1; /* its end will not be learnt: the caller would wait for it until the time is over */
    }
    if (!is_lost && ppoll(&let_go, 1, NULL, &none) < 0) {
      is_lost = errno != EINTR;
      let_go.revents = 0;
    }
  }
  end_all(program, is_known);
  _exit(0);
}

/* ---- the caller -------------------------------------------------------------------------------- */

/* Makes a pipe whose ends no other program gets. 0; -1: errno. */
static int make_pipe(int ends[2]) {
  int i;
  if (pipe(ends)) return -1;
  for (i = 0; i < 2; i++)
    if (fcntl(ends[i], F_SETFD, FD_CLOEXEC)) return -1;
  return 0;
}

static int close_end(int *fd) {
  const int failed = *fd >= 0 ? close(*fd) : 0;
  *fd = -1;
  return failed;
}

/* Starts the program on an open file. 0; -1: errno. A pipe's end that cannot be closed here is an error: the pipe would
 * have no end. */
static int start_alone(child *c, int in) {
  enum { OUT, ERR, ENDED, HELD, PIPES };
  int pipes[PIPES][2], made = 0, failed, is_open = 0, i;
  c->pid = -1;
  memset(pipes, -1, sizeof pipes);
  while (made < PIPES && !make_pipe(pipes[made])) made++;
  if (made == PIPES) c->pid = fork();
  failed = errno;
  if (!c->pid) {
    (void)close_end(&pipes[HELD][1]);
    for (i = OUT; i <= ENDED; i++) (void)close_end(&pipes[i][0]);
    supervise(c, in, pipes[OUT][1], pipes[ERR][1], pipes[ENDED][1], pipes[HELD][0]);
  }
  for (i = OUT; i <= ENDED; i++) {
    if (close_end(&pipes[i][1]) && c->pid > 0) {
      failed = errno;
      is_open = 1;
    }
  }
  c->out = pipes[OUT][0];
  c->err = pipes[ERR][0];
  c->ended = pipes[ENDED][0];
  memcpy(c->held, pipes[HELD], sizeof c->held); /* both: whoever writes where nobody can read gets a signal */
  errno = failed;
  return c->pid < 0 || is_open ? -1 : 0;
}

/* The same, one program after the other: a supervisor that another thread makes meanwhile would hold ends of the pipes
 * open, and their end would be waited for until that one is done. */
static int start(child *c, int in) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  int failed;
  (void)pthread_mutex_lock(&lock);
  failed = start_alone(c, in);
  (void)pthread_mutex_unlock(&lock);
  return failed;
}

static int filter_fails(const child *c, const char *why) {
  (void)snprintf(c->why, FILTERS_WHY, "%s: %s", c->filter->words[0], why);
  return FILTERS_FAILED;
}

/* Reads what is there of one pipe, and closes it at its end: text goes to *text, or to c->said where text is NULL.
 * 0, or FILTERS_FAILED: what has been read is not the whole. */
static int take_output(child *c, int *fd, byte_buf *text) {
  char room[1 << 16];
  const ssize_t n = read(*fd, room, sizeof room);
  if (n < 0) return errno == EINTR ? 0 : filter_fails(c, strerror(errno));
  if (!n) (void)close_end(fd);
  if (text) {
    bytes_add(text, room, (size_t)n);
  } else {
    const size_t left = SAID_MOST - c->nsaid, more = (size_t)n < left ? (size_t)n : left;
    memcpy(c->said + c->nsaid, room, more);
    c->nsaid += more;
  }
  return 0;
}

/* Waits until there is something to read. 0, EINTR, ETIMEDOUT, or FILTERS_FAILED. */
static int wait_for(const child *c, struct pollfd *fds, nfds_t n) {
  int stopped, got = 0;
  while (!got) {
    const uint64_t now = now_ns();
    const uint64_t left = now < c->end ? (c->end - now) / 1000000u + 1 : 0;
    stopped = source_must_end(c->limits);
    if (stopped) return stopped;
    if (!left) return filter_fails(c, "it took too long");
    got = poll(fds, n, left < LOOK_MS ? (int)left : LOOK_MS);
    if (got < 0 && errno != EINTR) return filter_fails(c, strerror(errno));
    if (got < 0) got = 0;
  }
  return 0;
}

/* Takes all that the program writes. As wait_for; ENOMEM. */
static int listen_to(child *c, byte_buf *text) {
  while (c->out >= 0 || c->err >= 0) {
    struct pollfd fds[2] = {{c->out, POLLIN, 0}, {c->err, POLLIN, 0}};
    int rc = wait_for(c, fds, 2);
    if (!rc && fds[0].revents) rc = take_output(c, &c->out, text);
    if (!rc && fds[1].revents) rc = take_output(c, &c->err, NULL);
    if (rc) return rc;
    if (text->failed) return ENOMEM;
    if (text->n > c->limits->most) return filter_fails(c, "it writes too much text");
  }
  return 0;
}

/* Says how the program ended, if that was not well. */
static int judge(child *c, int status) {
  char how[64], whole[SAID_MOST + 80];
  if (!status) return 0;
  if (WIFSIGNALED(status)) (void)snprintf(how, sizeof how, "ended by signal %d", WTERMSIG(status));
  else if (WEXITSTATUS(status) == 127) (void)snprintf(how, sizeof how, "cannot be run");
  else (void)snprintf(how, sizeof how, "exit status %d", WEXITSTATUS(status));
  c->said[c->nsaid] = 0;
  c->said[strcspn(c->said, "\n")] = 0;
  (void)snprintf(whole, sizeof whole, "%s%s%s", how, c->said[0] ? ": " : "", c->said);
  return filter_fails(c, whole);
}

/* Waits for the end of the program, which has closed its output. As wait_for. */
static int await(child *c) {
  struct pollfd ended = {c->ended, POLLIN, 0};
  int status, rc = wait_for(c, &ended, 1);
  if (rc) return rc;
  if (read(c->ended, &status, sizeof status) != (ssize_t)sizeof status)
    return filter_fails(c, "it could not be started, or not be watched");
  return judge(c, status);
}

/* Lets the supervisor finish, and waits for that. */
static void end_run(child *c) {
  const ssize_t told = c->held[1] >= 0 ? write(c->held[1], "", 1) : 0;
  (void)told; /* where it has ended nobody listens */
  (void)close_end(&c->out);
  (void)close_end(&c->err);
  (void)close_end(&c->ended);
  (void)close_end(&c->held[0]);
  (void)close_end(&c->held[1]);
  while (c->pid > 0 && waitpid(c->pid, NULL, 0) < 0 && errno == EINTR) {}
}

int filters_run(const text_filter *filter, int fd, const source_limits *limits, byte_buf *text, char *why) {
  child c;
  int rc;
  memset(&c, 0, sizeof c);
  c.filter = filter;
  c.limits = limits;
  c.why = why;
  c.seconds = filter_seconds();
  c.end = now_ns() + c.seconds * UINT64_C(1000000000);
  text->n = 0;
  text->failed = 0;
  why[0] = 0;
  if (!c.seconds) {
    (void)snprintf(why, FILTERS_WHY, "GPUIR_FILTER_SECONDS: '%.100s' is not a whole number from 1 to %lu",
        getenv("GPUIR_FILTER_SECONDS"), SECONDS_MOST);
    return FILTERS_FAILED;
  }
  if (start(&c, fd)) {
    (void)snprintf(why, FILTERS_WHY, "%s: cannot be started: %s", filter->words[0], strerror(errno));
    rc = FILTERS_FAILED;
  } else {
    rc = listen_to(&c, text);
    if (!rc) rc = await(&c);
  }
  end_run(&c);
  return rc;
}
