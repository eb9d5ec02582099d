/* filter.c - turns files of other formats into text by programs: --filter 'pdf=pdftotext - -'.
 *
 * A file whose name has the ending is the standard input of the program, which is run without a shell, sees nothing of
 * the file's name, and writes text. It may take a minute, or what GPUIR_FILTER_SECONDS says, and write
 * CLI_FILTER_BYTES. It is killed otherwise, and when the command is stopped. What it has started is killed when it
 * ends.
 *
 * The index has the filters' words, so that texts can be made again, but no program is ever taken from an index: it is
 * always the command line that names it.
 */
#define _GNU_SOURCE /* ppoll */
#include "cli.h"

#include "../common/source.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
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

/* ---- options ---------------------------------------------------------------------------------- */

/* Returns whether a program is there to be run. */
static int is_program(const char *name) {
  const char *path = getenv("PATH");
  cli_buf b = {NULL, 0, 0};
  int found = 0;
  if (strchr(name, '/')) return !access(name, X_OK);
  for (size_t n; !found && path && *path; path += n + (path[n] == ':')) {
    n = strcspn(path, ":");
    b.n = 0;
    cli_buf_add(&b, path, n);
    cli_buf_text(&b, n ? "/" : "./");
    cli_buf_text(&b, name);
    cli_buf_char(&b, 0);
    found = !access(b.p, X_OK);
  }
  cli_buf_free(&b);
  return found;
}

/* Copies one word from *at to *to, with a NUL behind it, as a shell takes it: quotes of both kinds hold blanks, and a
 * backslash outside of '...' stands before a byte that has no meaning. Moves both on. 0; -1: a quote is not closed. */
static int copy_word(const char **at, char **to) {
  const char *p = *at;
  char quote = 0;
  for (; *p && (quote || *p != ' '); p++) {
    if (*p == '\\' && quote != '\'' && p[1]) *(*to)++ = *++p;
    else if (quote ? *p == quote : *p == '"' || *p == '\'') quote = quote ? 0 : *p;
    else *(*to)++ = *p;
  }
  *(*to)++ = 0;
  *at = p;
  return quote ? -1 : 0;
}

/* Cuts text into words. Returns a list that ends with NULL, or NULL where there is none or a quote is not closed; its
 * first word has the memory of all. */
static char **cut_words(const char *text, size_t *n) {
  char *copy = cli_copy(text, strlen(text) + 1), *to = copy, **list = NULL; /* no word is longer than its text */
  int open = 0;
  *n = 0;
  for (text += strspn(text, " "); *text && !open; text += strspn(text, " ")) {
    list = (char **)cli_resize(list, *n + 2, sizeof *list);
    list[(*n)++] = to;
    list[*n] = NULL;
    open = copy_word(&text, &to);
  }
  if (*n && !open) return list;
  free(list);
  free(copy);
  *n = 0;
  return NULL;
}

int cli_filters_add(const cli_args *a, cli_filters *f) {
  const char *eq = strchr(a->value, '=');
  const size_t n = eq ? (size_t)(eq - a->value) : 0;
  cli_filter filter;
  size_t words;
  if (!n || a->value[0] == '.' || strcspn(a->value, "/ \t\n") < n || strpbrk(a->value, "\t\n\r"))
    return cli_misuse(a->command, "%s: '%s' is no ENDING=PROGRAM, such as 'pdf=pdftotext - -'", a->name, a->value);
  if (cli_filters_find(f, a->value, n, 1))
    return cli_misuse(a->command, "%s: '%.*s' has a filter already", a->name, (int)n, a->value);
  filter.words = cut_words(eq + 1, &words);
  if (!words && eq[1 + strspn(eq + 1, " ")])
    return cli_misuse(a->command, "%s: a quote in '%s' is not closed", a->name, a->value);
  if (!words || !is_program(filter.words[0])) {
    int code = cli_misuse(a->command, "%s: %s: no such program", a->name, words ? filter.words[0] : "''");
    if (words) free(filter.words[0]);
    free(filter.words);
    return code;
  }
  filter.ending = cli_copy(a->value, n);
  f->list = (cli_filter *)cli_resize(f->list, f->n + 1, sizeof *f->list);
  f->list[f->n++] = filter;
  if (f->text.n) f->text.p[f->text.n - 1] = '\t';
  cli_buf_add(&f->text, a->value, strlen(a->value) + 1);
  return 0;
}

const cli_filter *cli_filters_find(const cli_filters *f, const char *name, size_t len, int whole) {
  for (size_t i = 0; f && i < f->n; i++) {
    const char *ending = f->list[i].ending;
    if (whole ? strlen(ending) == len && !memcmp(ending, name, len) : source_ends(name, len, ending, strlen(ending)))
      return &f->list[i];
  }
  return NULL;
}

const char *cli_filters_text(const cli_filters *f) { return f->text.n ? f->text.p : ""; }

/* Appends the options that give filters, as a shell takes them. */
static void quote_options(cli_buf *out, const char *filters) {
  while (*filters) {
    const size_t n = strcspn(filters, "\t");
    cli_buf_text(out, out->n ? " --filter '" : "--filter '");
    for (size_t i = 0; i < n; i++)
      if (filters[i] == '\'') cli_buf_text(out, "'\\''");
      else cli_buf_char(out, filters[i]);
    cli_buf_char(out, '\'');
    filters += n + (filters[n] == '\t');
  }
  cli_buf_char(out, 0);
}

int cli_filters_agree(const cli_filters *f, const char *index, const char *filters) {
  cli_buf b = {NULL, 0, 0};
  if (!strcmp(filters, cli_filters_text(f))) return CLI_OK;
  quote_options(&b, filters);
  if (b.n > 1) cli_error("%s: made with %s; give the same, since no program is taken from an index", index, b.p);
  else cli_error("%s: made without --filter; all of its files are read without one", index);
  cli_buf_free(&b);
  return CLI_FAIL;
}

void cli_filters_free(cli_filters *f) {
  for (size_t i = 0; i < f->n; i++) {
    free(f->list[i].ending);
    free(f->list[i].words[0]);
    free(f->list[i].words);
  }
  free(f->list);
  cli_buf_free(&f->text);
  memset(f, 0, sizeof *f);
}

/* Seconds that a program may take for a file: GPUIR_FILTER_SECONDS, or the default. */
static unsigned filter_seconds(void) {
  const char *said = getenv("GPUIR_FILTER_SECONDS");
  uint64_t n = CLI_FILTER_SECONDS;
  if (said && cli_parse_unsigned(said, 1, 86400, &n))
    cli_error("GPUIR_FILTER_SECONDS: '%s' is not a whole number from 1 to 86400", said);
  return (unsigned)n;
}

/* ---- running ----------------------------------------------------------------------------------
 *
 * Between the command and the program stands a supervisor, a process that takes over what the program starts and leaves
 * behind (prctl(2), PR_SET_CHILD_SUBREAPER). It tells how the program ended, waits until the command lets go, and then
 * kills all that is left. A process group alone would not have what called setsid(2). Where there are no subreapers, it
 * is the group.
 */

/* A program at work. */
typedef struct child {
  const cli_filter *filter;
  const char *name; /* of the file; NULL: nothing is said */
  pid_t pid; /* of the supervisor */
  unsigned seconds;
  int out, err; /* pipes: what it writes, and what it says; -1: closed */
  int ended; /* a pipe: how the program ended */
  int held; /* a pipe: its end lets the supervisor finish */
  uint64_t end; /* nanoseconds */
  char said[SAID_MOST + 1];
  size_t nsaid;
} child;

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
  if (dup2(in, 0) == 0 && dup2(out, 1) == 1 && dup2(err, 2) == 2) (void)execvp(words[0], words);
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
  int status, known = 0;
#ifdef __linux__
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
#endif
  (void)setpgid(0, 0); /* a terminal's signals are for the command */
  memset(&sa, 0, sizeof sa);
  sa.sa_handler = on_child;
  (void)sigemptyset(&sa.sa_mask);
  (void)sigaction(SIGCHLD, &sa, NULL);
  (void)sigemptyset(&none);
  (void)sigemptyset(&children);
  (void)sigaddset(&children, SIGCHLD);
  (void)sigprocmask(SIG_SETMASK, &children, NULL); /* let in only while it waits: none is missed */
  const pid_t program = fork();
  if (!program) run_program(c, in, out, err);
  (void)close(out);
  (void)close(err);
  if (program < 0) _exit(1);
  (void)setpgid(program, program); /* whoever comes first */
  while (!let_go.revents) {
    if (!known && waitpid(program, &status, WNOHANG) == program) {
      known = 1;
      if (write(ended, &status, sizeof status) < 0) break;
    }
    if (ppoll(&let_go, 1, NULL, &none) < 0) let_go.revents = 0;
  }
  end_all(program, known);
  _exit(0);
}

/* Makes a pipe whose ends no other program gets. 0; -1: errno. */
static int make_pipe(int ends[2]) {
  if (pipe(ends)) return -1;
  for (int i = 0; i < 2; i++)
    if (fcntl(ends[i], F_SETFD, FD_CLOEXEC)) return -1;
  return 0;
}

static void close_end(int *fd) {
  if (*fd >= 0) (void)close(*fd);
  *fd = -1;
}

/* Starts the program on an open file. 0; -1 after a message. */
static int start(child *c, int in) {
  enum { OUT, ERR, ENDED, HELD, PIPES };
  int pipes[PIPES][2], made = 0;
  c->pid = -1;
  memset(pipes, -1, sizeof pipes);
  while (made < PIPES && !make_pipe(pipes[made])) made++;
  if (made == PIPES) c->pid = fork();
  if (!c->pid) {
    close_end(&pipes[HELD][1]); /* whose last copy is the command's, as are the ends that it reads */
    for (int i = OUT; i <= ENDED; i++) close_end(&pipes[i][0]);
    supervise(c, in, pipes[OUT][1], pipes[ERR][1], pipes[ENDED][1], pipes[HELD][0]);
  }
  if (c->pid < 0 && c->name) cli_error("%s: cannot run %s: %s", c->name, c->filter->words[0], strerror(errno));
  close_end(&pipes[OUT][1]);
  close_end(&pipes[ERR][1]);
  close_end(&pipes[ENDED][1]);
  close_end(&pipes[HELD][0]);
  c->out = pipes[OUT][0];
  c->err = pipes[ERR][0];
  c->ended = pipes[ENDED][0];
  c->held = pipes[HELD][1];
  return c->pid < 0 ? -1 : 0;
}

/* Reads what is there of one pipe: text goes to *text, or to c->said where text is NULL. 0; -1: it is at its end. */
static int take(child *c, int fd, cli_buf *text) {
  char room[1 << 16];
  const ssize_t n = read(fd, room, sizeof room);
  if (n < 0 && errno == EINTR) return 0;
  if (n <= 0) return -1;
  if (text) {
    cli_buf_add(text, room, (size_t)n);
  } else {
    const size_t left = SAID_MOST - c->nsaid, more = (size_t)n < left ? (size_t)n : left;
    memcpy(c->said + c->nsaid, room, more);
    c->nsaid += more;
  }
  return 0;
}

/* Takes all that the program writes. NULL, or why that was ended. */
static const char *listen(child *c, cli_buf *text) {
  while (c->out >= 0 || c->err >= 0) {
    struct pollfd fds[2] = {{c->out, POLLIN, 0}, {c->err, POLLIN, 0}};
    const uint64_t now = cli_nanoseconds();
    if (cli_signal) return "";
    if (now >= c->end) return "it took too long";
    if (poll(fds, 2, (int)((c->end - now) / 1000000u) + 1) < 0 && errno != EINTR) return strerror(errno);
    if (fds[0].revents && take(c, c->out, text)) close_end(&c->out);
    if (fds[1].revents && take(c, c->err, NULL)) close_end(&c->err);
    if (text->n > CLI_FILTER_BYTES) return "it writes too much text";
  }
  return NULL;
}

/* Waits for the end of the program, which has closed its output. NULL, or why it was not waited for. */
static const char *await(const child *c, int *status) {
  for (;;) {
    struct pollfd ended = {c->ended, POLLIN, 0};
    const uint64_t now = cli_nanoseconds();
    if (cli_signal) return "";
    if (now >= c->end) return "it took too long";
    if (poll(&ended, 1, (int)((c->end - now) / 1000000u) + 1) < 0 && errno != EINTR) return strerror(errno);
    if (!ended.revents) continue;
    return read(c->ended, status, sizeof *status) == (ssize_t)sizeof *status ? NULL : "it could not be started";
  }
}

/* Says that no text came of the file. */
static void tell(child *c, const char *why, int status) {
  char how[64];
  if (!why) {
    if (WIFSIGNALED(status)) (void)snprintf(how, sizeof how, "ended by signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status) == 127) (void)snprintf(how, sizeof how, "cannot be run");
    else (void)snprintf(how, sizeof how, "exit status %d", WEXITSTATUS(status));
    why = how;
  }
  c->said[c->nsaid] = 0;
  c->said[strcspn(c->said, "\n")] = 0;
  if (c->name) cli_error("%s: no text: %s: %s%s%s", c->name, c->filter->words[0], why, c->said[0] ? ": " : "", c->said);
}

int cli_filter_run(const cli_filter *filter, int fd, const char *name, cli_buf *text) {
  const char *why;
  int status = 0;
  child c;
  memset(&c, 0, sizeof c);
  c.filter = filter;
  c.name = name;
  c.seconds = filter_seconds();
  c.end = cli_nanoseconds() + c.seconds * UINT64_C(1000000000);
  text->n = 0;
  const int failed = start(&c, fd);
  why = failed ? NULL : listen(&c, text);
  if (!failed && !why) why = await(&c, &status);
  close_end(&c.out);
  close_end(&c.err);
  close_end(&c.ended);
  close_end(&c.held);
  while (c.pid > 0 && waitpid(c.pid, NULL, 0) < 0 && errno == EINTR) continue;
  if (failed || (!why && !status)) return failed;
  if (!why || *why) tell(&c, why, status);
  return -1;
}
