/* filter.c - turns files of other formats into text by programs: --filter 'pdf=pdftotext - -'.
 *
 * A file whose name has the ending is the standard input of the program, which is run without a shell, sees nothing of
 * the file's name, and writes text. It may take a minute, or what GPUIR_FILTER_SECONDS says, and write
 * CLI_FILTER_BYTES. It is killed otherwise, and when the command is stopped. What it has started is killed when it
 * ends.
 *
 * No program is ever taken from an index. It has the names of filters of a list that is compiled in, and hashes of
 * others, by which the command line or the user's file must give them again.
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
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#define XXH_INLINE_ALL
#include <xxhash.h>

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

/* Returns whether a mark is one of those that tabs part. */
static int has_mark(const char *marks, const char *mark) {
  for (; *marks; marks += strcspn(marks, "\t"), marks += *marks == '\t')
    if (strcspn(marks, "\t") == strlen(mark) && !strncmp(marks, mark, strlen(mark))) return 1;
  return 0;
}

/* Adds a filter: its words are those of the line behind the ending and a sign. */
static void add_filter(cli_filters *f, const char *line, size_t ending, const char *mark, char **words) {
  cli_filter *filter;
  f->list = (cli_filter *)cli_resize(f->list, f->n + 1, sizeof *f->list);
  filter = &f->list[f->n++];
  filter->words = words;
  filter->ending = cli_copy(line, ending);
  filter->line = cli_copy(line, strlen(line));
  filter->mark = cli_copy(mark, strlen(mark));
  if (f->text.n) f->text.p[f->text.n - 1] = '\t';
  cli_buf_add(&f->text, mark, strlen(mark) + 1);
}

/* Adds a filter of the user's own. An index keeps a hash of it, by which another one is told, and never the program:
 * whoever makes an index would choose what others run. NULL, or what is wrong. */
static const char *add_own(cli_filters *f, const char *line) {
  const char *eq = strchr(line, '=');
  const size_t n = eq ? (size_t)(eq - line) : 0;
  char mark[300];
  size_t count;
  if (!n || n > 200 || line[0] == '.' || strcspn(line, "/ \t\n") < n || strpbrk(line, "\t\n\r"))
    return "this is no ENDING=PROGRAM, such as 'pdf=pdftotext - -'";
  if (cli_filters_find(f, line, n, 1)) return "the ending has a filter already";
  char **words = cut_words(eq + 1, &count);
  if (!words) return eq[1 + strspn(eq + 1, " ")] ? "a quote is not closed" : "'': no such program";
  if (!is_program(words[0])) {
    free(words[0]);
    free(words);
    return "no such program";
  }
  (void)snprintf(mark, sizeof mark, "%.*s=#%016llx", (int)n, line, (unsigned long long)XXH3_64bits(eq, strlen(eq)));
  add_filter(f, line, n, mark, words);
  return NULL;
}

int cli_filters_add(const cli_args *a, cli_filters *f) {
  const char *why;
  if (!strcmp(a->value, "auto")) return f->automatic = 1, 0;
  why = add_own(f, a->value);
  return why ? cli_misuse(a->command, "%s: '%s': %s", a->name, a->value, why) : 0;
}

/* ---- filters that are known ---- */

/* The name of each is what an index keeps, so a name always means the same program. Each reads standard input, and
 * writes UTF-8. */
static const struct {
  const char *ending, *name, *program;
} known[] = {{"pdf", "pdftotext", "/usr/bin/pdftotext -q -enc UTF-8 - -"},
    {"docx", "docx2txt", "/usr/bin/docx2txt - -"}, {"odt", "odt2txt", "/usr/bin/odt2txt --encoding=UTF-8 /dev/stdin"},
    {"doc", "catdoc", "/usr/bin/catdoc -d utf-8"}, {"rtf", "catdoc", "/usr/bin/catdoc -d utf-8"}};
#define KNOWN (sizeof known / sizeof *known)

/* Adds a filter of the list, if its program is installed and the ending has none. 1: it was added. */
static int add_known(cli_filters *f, size_t i) {
  char line[200], mark[80];
  size_t count;
  char **words;
  if (cli_filters_find(f, known[i].ending, strlen(known[i].ending), 1)) return 0;
  words = cut_words(known[i].program, &count);
  if (access(words[0], X_OK)) {
    free(words[0]);
    free(words);
    return 0;
  }
  (void)snprintf(line, sizeof line, "%s=%s", known[i].ending, known[i].program);
  (void)snprintf(mark, sizeof mark, "%s=@%s", known[i].ending, known[i].name);
  add_filter(f, line, strlen(known[i].ending), mark, words);
  return 1;
}

/* Appends the path of the user's file; 0: there is none. */
static int put_config(cli_buf *path, const char *behind) {
  const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
  const int has_config = config && *config == '/';
  if (!has_config && !(home && *home == '/')) return 0;
  path->n = 0;
  cli_buf_text(path, has_config ? config : home);
  cli_buf_text(path, has_config ? "/gpuir" : "/.config/gpuir");
  cli_buf_text(path, behind);
  cli_buf_char(path, 0);
  return 1;
}

/* Returns whether only the caller and root can have written what is open, or stands at the path. */
static int is_trusted(const struct stat *st) {
  return (st->st_uid == geteuid() || !st->st_uid) && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* Opens the user's file, which names programs that run: so nobody else may write there. -1: there is none, or after a
 * message, which sets *failed. */
static int open_config(cli_buf *path, int *failed) {
  struct stat st, folder;
  int fd;
  if (!put_config(path, "") || stat(path->p, &folder)) return -1;
  (void)put_config(path, "/filters");
  fd = open(path->p, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return -1;
  *failed = 1;
  if (fd < 0 || fstat(fd, &st)) {
    cli_error("%s: %s", path->p, strerror(errno));
  } else if (!S_ISREG(st.st_mode) || !is_trusted(&st) || !is_trusted(&folder)) {
    cli_error(
        "%s: it names programs that run, so it and its folder must belong to you or root, and nobody else may "
        "write there",
        path->p);
  } else {
    *failed = 0;
    return fd;
  }
  if (fd >= 0) (void)close(fd);
  return -1;
}

/* Returns whether the filter of a line is one of `marks`; NULL: all are. */
static int is_wanted(const char *marks, const char *line) {
  char mark[300];
  const char *eq = strchr(line, '=');
  if (!marks || !eq) return !marks;
  (void)snprintf(mark, sizeof mark, "%.*s=#%016llx", (int)(eq - line), line,
      (unsigned long long)XXH3_64bits(eq, strlen(eq)));
  return has_mark(marks, mark);
}

/* Adds the filters of the user's file, a line each; '#' begins a comment. Of `marks` those that they name; NULL: all.
 * CLI_OK, or CLI_FAIL after a message. */
static int add_config(cli_filters *f, const char *marks) {
  cli_buf path = {NULL, 0, 0};
  char *text = NULL;
  size_t len;
  uint64_t lines, line = 0;
  text_reader r;
  int failed = 0;
  const int fd = open_config(&path, &failed);
  cli_reader_open(&r, fd, 1 << 16);
  while (fd >= 0 && !failed && reader_lines(&r, 1, &text, &len, &lines) > 0) {
    const char *why = NULL;
    char *copy;
    line++;
    while (len && strchr(" \t\r\n", text[len - 1])) len--;
    copy = cli_copy(text, len);
    if (*copy && *copy != '#' && is_wanted(marks, copy)) why = add_own(f, copy);
    free(copy);
    failed = why != NULL && strcmp(why, "the ending has a filter already") != 0;
    if (failed) cli_error("%s:%llu: %s", path.p, (unsigned long long)line, why);
  }
  reader_close(&r);
  if (fd >= 0) (void)close(fd);
  cli_buf_free(&path);
  return failed ? CLI_FAIL : CLI_OK;
}

int cli_filters_install(cli_filters *f, int quiet) {
  cli_buf b = {NULL, 0, 0};
  if (!f->automatic) return CLI_OK;
  if (add_config(f, NULL)) return CLI_FAIL;
  for (size_t i = 0; i < KNOWN; i++) (void)add_known(f, i);
  for (size_t i = 0; i < f->n; i++) {
    cli_buf_text(&b, i ? ", " : "");
    cli_buf_text(&b, f->list[i].ending);
    cli_buf_text(&b, " by ");
    cli_buf_text(&b, f->list[i].words[0]);
  }
  if (!quiet && b.n) cli_error("filters: %.*s", (int)b.n, b.p);
  else if (!quiet) cli_error("filters: no program is installed that is known (pdftotext, docx2txt, odt2txt, catdoc)");
  cli_buf_free(&b);
  return CLI_OK;
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

/* Appends the options that make the filters that an index names, whose own ones only their maker knows. */
static void put_options(cli_buf *out, const char *filters) {
  int automatic = 0;
  for (; *filters; filters += strcspn(filters, "\t"), filters += *filters == '\t') {
    const size_t n = strcspn(filters, "\t"), ending = strcspn(filters, "=\t");
    if (ending + 1 < n && filters[ending + 1] == '@') {
      if (!automatic++) cli_buf_text(out, out->n ? " --filter auto" : "--filter auto");
      continue;
    }
    cli_buf_text(out, out->n ? " --filter '" : "--filter '");
    cli_buf_add(out, filters, ending);
    cli_buf_text(out, "=PROGRAM'");
  }
}

/* Takes for --filter auto those that the index names and that are there. CLI_OK, or CLI_FAIL after a message. */
static int take_named(cli_filters *f, const char *filters) {
  char mark[80];
  for (size_t i = 0; i < KNOWN; i++) {
    (void)snprintf(mark, sizeof mark, "%s=@%s", known[i].ending, known[i].name);
    if (has_mark(filters, mark)) (void)add_known(f, i);
  }
  return add_config(f, filters);
}

/* Returns whether the index names the filters, and no others. An index of an earlier version has the whole lines. */
static int are_those(const cli_filters *f, const char *filters) {
  size_t n = 0;
  for (const char *p = filters; *p; p += strcspn(p, "\t"), p += *p == '\t') n++;
  for (size_t i = 0; i < f->n; i++)
    if (!has_mark(filters, f->list[i].mark) && !has_mark(filters, f->list[i].line)) return 0;
  return n == f->n;
}

char *cli_filters_hint(const char *filters) {
  cli_buf b = {NULL, 0, 0};
  put_options(&b, filters);
  cli_buf hint = {NULL, 0, 0};
  cli_buf_text(&hint, "; ");
  cli_buf_add(&hint, b.p ? b.p : "", b.n);
  cli_buf_text(&hint, b.n ? " makes it again" : "--filter makes it again");
  cli_buf_char(&hint, 0);
  cli_buf_free(&b);
  return hint.p;
}

int cli_filters_agree(cli_filters *f, const char *index, const char *filters) {
  cli_buf b = {NULL, 0, 0};
  if (f->automatic && take_named(f, filters)) return CLI_FAIL;
  if (are_those(f, filters)) return CLI_OK;
  put_options(&b, filters);
  if (b.n)
    cli_error("%s: made with %.*s; give the same, since no program is taken from an index", index, (int)b.n, b.p);
  else cli_error("%s: made without --filter; all of its files are read without one", index);
  cli_buf_free(&b);
  return CLI_FAIL;
}

void cli_filters_free(cli_filters *f) {
  for (size_t i = 0; i < f->n; i++) {
    free(f->list[i].ending);
    free(f->list[i].line);
    free(f->list[i].mark);
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
  int status, is_known = 0;
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
    if (!is_known && waitpid(program, &status, WNOHANG) == program) {
      is_known = 1;
      if (write(ended, &status, sizeof status) < 0) break;
    }
    if (ppoll(&let_go, 1, NULL, &none) < 0) let_go.revents = 0;
  }
  end_all(program, is_known);
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
