/* util.c - messages, memory, options, output and facts about the machine. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* realpath, sched_getaffinity */
#endif
#include "cli.h"

#include "../common/text.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

volatile sig_atomic_t cli_signal;
const char *cli_name = "gpuir", *cli_program = "gpuir";

/* ---- messages ------------------------------------------------------------------------------- */

static int status_shown;

void cli_status(const char *line) {
  if (*line) {
    fprintf(stderr, "\r\033[K%s", line);
    status_shown = 1;
  } else if (status_shown) {
    fputs("\r\033[K", stderr);
    status_shown = 0;
  }
  fflush(stderr);
}

/* Paths and names may hold anything; a terminal gets no control characters from them. */
static void print_message(const char *fmt, va_list ap) {
  char text[8192];
  int n = vsnprintf(text, sizeof text, fmt, ap);
  if (!cli_name) return;
  cli_status("");
  fprintf(stderr, "%s: ", cli_name);
  text_print(stderr, TEXT_MESSAGE, text, strlen(text));
  fputs(n >= (int)sizeof text ? "...\n" : "\n", stderr);
}

void cli_error(const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  print_message(fmt, ap);
  va_end(ap);
}

int cli_fail(const char *file, int status, const gpuir_error *err) {
  const char *cause = err && err->code && err->msg[0] ? err->msg : gpuir_strerror(status);
  const char *named = strstr(cause, file), *behind = named ? named + strlen(file) : "";
  /* Do not name the file twice where the cause does so already, perhaps from the root on. */
  if (named && (named == cause || (cause[0] == '/' && named[-1] == '/')) && (*behind == ':' || *behind == ' '))
    cli_error("%s", named);
  else cli_error("%s: %s", file, cause);
  return CLI_FAIL;
}

void cli_tell_shared(const char *path) {
  const char *slash = strrchr(path, '/');
  cli_error("note: others may write the folder %.*s, and so replace %s", slash ? (int)(slash - path) + 1 : 1,
      slash ? path : ".", path);
}

int cli_misuse(const char *command, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  print_message(fmt, ap);
  va_end(ap);
  if (cli_name) fprintf(stderr, "Try '%s %s --help'.\n", cli_program, command);
  return CLI_USAGE;
}

/* ---- memory --------------------------------------------------------------------------------- */

#define MOST_TEMPORARIES 8

static char temporaries[MOST_TEMPORARIES][4096]; /* not allocated: they are needed when memory is out */

void cli_temporary(const char *name) {
  size_t i = 0;
  const size_t n = name ? strlen(name) + 1 : 0;
  while (name && i < MOST_TEMPORARIES && temporaries[i][0]) i++;
  if (name && i < MOST_TEMPORARIES && n <= sizeof temporaries[i]) memcpy(temporaries[i], name, n);
  for (; !name && i < MOST_TEMPORARIES; i++) temporaries[i][0] = 0;
}

void cli_temporary_index(const char *path) {
  char target[PATH_MAX], name[PATH_MAX + 4]; /* not allocated: the file is there already */
  (void)snprintf(name, sizeof name, "%s.tmp", realpath(path, target) ? target : path);
  cli_temporary(name);
}

void cli_die(const char *fmt, ...) {
  va_list args;
  for (size_t i = 0; i < MOST_TEMPORARIES; i++)
    if (temporaries[i][0]) (void)unlink(temporaries[i]);
  va_start(args, fmt);
  print_message(fmt, args);
  va_end(args);
  exit(CLI_FAIL);
}

void *cli_resize(void *p, size_t n, size_t size) {
  size_t bytes = n * size;
  void *q = size && n > SIZE_MAX / size ? NULL : realloc(p, bytes > 0 ? bytes : 1);
  if (!q) cli_die("out of memory");
  return q;
}

char *cli_buf_room(cli_buf *b, size_t n) {
  if (n > b->cap) {
    b->p = (char *)cli_resize(b->p, n, 1);
    b->cap = n;
  }
  return b->p;
}

void cli_buf_add(cli_buf *b, const void *p, size_t n) {
  if (n > b->cap - b->n) {
    size_t cap = b->cap ? b->cap : 256;
    while (cap - b->n < n) cap += cap / 2;
    b->p = (char *)cli_resize(b->p, cap, 1);
    b->cap = cap;
  }
  if (n) memcpy(b->p + b->n, p, n);
  b->n += n;
}

void cli_buf_char(cli_buf *b, int c) {
  char byte = (char)c;
  cli_buf_add(b, &byte, 1);
}

void cli_buf_utf8(cli_buf *b, unsigned c) {
  char bytes[4];
  cli_buf_add(b, bytes, text_put_utf8(c, bytes));
}

void cli_buf_text(cli_buf *b, const char *s) { cli_buf_add(b, s, strlen(s)); }

void cli_buf_put(void *buf, const char *bytes, size_t n) { cli_buf_add((cli_buf *)buf, bytes, n); }

void cli_buf_json(cli_buf *b, const char *s, size_t n) {
  cli_buf_char(b, '"');
  text_write(cli_buf_put, b, TEXT_JSON, s, n);
  cli_buf_char(b, '"');
}

void cli_buf_free(cli_buf *b) {
  free(b->p);
  memset(b, 0, sizeof *b);
}

const char *cli_doc_name(cli_buf *b, const gpuir_doc *doc) {
  if (b->cap <= doc->name_len) {
    b->p = (char *)cli_resize(b->p, doc->name_len + 64, 1);
    b->cap = doc->name_len + 64;
  }
  b->n = gpuir_doc_name(doc, b->p, b->cap);
  return b->p;
}

char *cli_copy(const char *s, size_t n) {
  char *p = (char *)cli_resize(NULL, n + 1, 1);
  if (n) memcpy(p, s, n);
  p[n] = 0;
  return p;
}

/* ---- options -------------------------------------------------------------------------------- */

void cli_args_start(cli_args *a, const char *command, const cli_option *options, int argc, char **argv) {
  memset(a, 0, sizeof *a);
  a->command = command;
  a->options = options;
  a->argc = argc;
  a->argv = argv;
}

static int no_value(const cli_args *a) {
  cli_misuse(a->command, "%s needs a value", a->name);
  return CLI_BAD;
}

static int long_option(cli_args *a, const char *arg) {
  const char *eq = strchr(arg + 2, '=');
  size_t n = eq ? (size_t)(eq - arg - 2) : strlen(arg + 2);
  a->name = arg;
  if (n == 4 && !strncmp(arg + 2, "help", 4) && !eq) return CLI_HELP;
  for (const cli_option *o = a->options; o->id; o++) {
    if (strncmp(o->name, arg + 2, n) || o->name[n]) continue;
    if (!o->value && eq) {
      cli_misuse(a->command, "--%s takes no value", o->name);
      return CLI_BAD;
    }
    a->value = eq ? eq + 1 : NULL;
    if (o->value && !eq) {
      if (a->next == a->argc) return no_value(a);
      a->value = a->argv[a->next++];
    }
    return o->id;
  }
  cli_misuse(a->command, "unknown option '%.*s'", (int)(n + 2), arg);
  return CLI_BAD;
}

static int short_option(cli_args *a, const char *arg) {
  a->name = arg;
  if (!strcmp(arg, "-h")) return CLI_HELP;
  for (const cli_option *o = a->options; o->id; o++) {
    if (!o->letter || o->letter != arg[1] || (arg[2] && !o->value)) continue;
    a->value = arg[2] ? arg + 2 : NULL;
    if (o->value && !arg[2]) {
      if (a->next == a->argc) return no_value(a);
      a->value = a->argv[a->next++];
    }
    return o->id;
  }
  cli_misuse(a->command, "unknown option '%s'", arg);
  return CLI_BAD;
}

/* What is taken as an option among the words of a query, of which `-word` is negated. */
static int looks_like_option(const cli_args *a, const char *arg) {
  if (arg[0] != '-' || !arg[1]) return 0;
  if (arg[1] == '-' || !strcmp(arg, "-h")) return 1;
  for (const cli_option *o = a->options; o->id; o++)
    if (o->letter && arg[1] == o->letter && !arg[2]) return 1;
  return 0;
}

int cli_next(cli_args *a) {
  if (!a->operands) a->operands = (char **)cli_resize(NULL, (size_t)a->argc + 1, sizeof *a->operands);
  while (a->next < a->argc) {
    char *arg = a->argv[a->next++];
    if (!strcmp(arg, "--")) break;
    if (a->leading && a->noperands ? looks_like_option(a, arg) : arg[0] == '-' && arg[1])
      return arg[1] == '-' ? long_option(a, arg) : short_option(a, arg);
    a->operands[a->noperands++] = arg;
  }
  while (a->next < a->argc) a->operands[a->noperands++] = a->argv[a->next++];
  return CLI_END;
}

void cli_args_free(cli_args *a) {
  free(a->operands);
  a->operands = NULL;
}

int cli_parse_unsigned(const char *text, uint64_t min, uint64_t max, uint64_t *out) {
  uint64_t v = 0;
  if (!*text) return -1;
  for (const char *p = text; *p; p++) {
    if (*p < '0' || *p > '9') return -1;
    unsigned digit = (unsigned)(*p - '0');
    if (v > (UINT64_MAX - digit) / 10) return -1;
    v = v * 10 + digit;
  }
  if (v < min || v > max) return -1;
  *out = v;
  return 0;
}

int cli_unsigned(const cli_args *a, uint64_t min, uint64_t max, uint64_t *out) {
  if (!cli_parse_unsigned(a->value, min, max, out)) return 0;
  return cli_misuse(a->command, "%s: '%s' is not a whole number from %llu to %llu", a->name, a->value,
      (unsigned long long)min, (unsigned long long)max);
}

int cli_real(const cli_args *a, double min, double max, float *out) {
  /* Plain decimal notation only: strtod would also take blanks, hexadecimal, inf and nan. */
  size_t plain = strspn(a->value, "0123456789.eE+-");
  char *end = NULL;
  double v = 0;
  if (a->value[0] && !a->value[plain] && !isspace((unsigned char)a->value[0])) v = strtod(a->value, &end);
  if (end && !*end && end != a->value && v >= min && v <= max) {
    *out = (float)v;
    return 0;
  }
  return cli_misuse(a->command, "%s: '%s' is not a number from %g to %g", a->name, a->value, min, max);
}

int cli_choice(const cli_args *a, const char *names, int *out) {
  size_t n = strlen(a->value);
  int i = 0;
  for (const char *p = names; *p; i++) {
    size_t m = strcspn(p, "|");
    if (m == n && !strncmp(p, a->value, n)) {
      *out = i;
      return 0;
    }
    p += m;
    if (*p) p++;
  }
  return cli_misuse(a->command, "%s: '%s' is none of %s", a->name, a->value, names);
}

int cli_intersection(const cli_args *a, const char **name) {
  cli_buf names = {NULL, 0, 0};
  int bad = 0;
  size_t i = 0;
  for (; gpuir_intersection_name(i) && strcmp(gpuir_intersection_name(i), a->value); i++) {
    if (i) cli_buf_char(&names, '|');
    cli_buf_text(&names, gpuir_intersection_name(i));
  }
  cli_buf_char(&names, 0);
  *name = gpuir_intersection_name(i);
  if (!*name) bad = cli_misuse(a->command, "%s: '%s' is none of %s", a->name, a->value, names.p);
  cli_buf_free(&names);
  return bad;
}

/* ---- output --------------------------------------------------------------------------------- */

static int flush_errno; /* of the first flush that failed; stdio remembers only that one did */

void cli_flush(void) {
  errno = 0;
  if (fflush(stdout) && !flush_errno) flush_errno = errno;
}

int cli_finish(int code) {
  cli_flush();
  if (!ferror(stdout) && !flush_errno) return code;
  cli_error("standard output: %s", flush_errno ? strerror(flush_errno) : "writing failed");
  return CLI_FAIL;
}

#define LOOK_MS 100 /* between two looks at whether a reader that takes nothing is still to be waited for */

/* Waits until something can be written. 0; -1: errno as of cli_write_all. */
static int wait_to_write(int fd, const int *cancel, uint64_t most_ns) {
  struct pollfd ready = {fd, POLLOUT, 0};
  const uint64_t begun = cli_nanoseconds();
  int n = 0;
  while (n == 0 || (n < 0 && errno == EINTR)) {
    if (cli_signal || __atomic_load_n(cancel, __ATOMIC_RELAXED)) {
      errno = EINTR;
      return -1;
    }
    if (most_ns && cli_nanoseconds() - begun > most_ns) {
      errno = ETIMEDOUT;
      return -1;
    }
    n = poll(&ready, 1, LOOK_MS);
  }
  return n < 0 ? -1 : 0;
}

/* Writes in parts of which a pipe that can be written takes each whole: a reader that takes nothing holds nobody. */
int cli_write_all(int fd, const char *p, size_t n, const int *cancel, uint64_t most_ns) {
  while (n) {
    ssize_t got;
    if (wait_to_write(fd, cancel, most_ns)) return -1;
    got = write(fd, p, n < PIPE_BUF ? n : PIPE_BUF);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) return -1;
    p += got;
    n -= (size_t)got;
  }
  return 0;
}

int cli_is_utf8(const char *s, size_t n) { return text_is_utf8(s, n); }

void cli_json_string(FILE *f, const char *s, size_t n) {
  fputc('"', f);
  text_print(f, TEXT_JSON, s, n);
  fputc('"', f);
}

void cli_tsv_string(FILE *f, const char *s, size_t n) { text_print(f, TEXT_TSV, s, n); }

const char *cli_grouped(uint64_t n, char *buf) { return text_grouped(n, buf); }

const char *cli_counted(uint64_t n, const char *one, const char *many, char *buf) {
  char number[27];
  (void)snprintf(buf, CLI_COUNTED, "%s %s", cli_grouped(n, number), n == 1 ? one : many);
  return buf;
}

const char *cli_size(uint64_t bytes, char *buf) {
  int mega = bytes >= 1000000;
  (void)snprintf(buf, 27, "%.1f %s", (double)bytes / (mega ? 1e6 : 1e3), mega ? "MB" : "KB");
  return buf;
}

const char *cli_shortest(double x, int is_float, char *buf) {
  for (int digits = 6; digits <= 17; digits++) {
    (void)snprintf(buf, 32, "%.*g", digits, x);
    const double back = is_float ? (double)strtof(buf, NULL) : strtod(buf, NULL);
    if (!(back < x) && !(back > x)) break;
  }
  return buf;
}

void cli_tell_lost(uint64_t n) {
  char buf[CLI_COUNTED];
  if (n)
    cli_error("%s no words but some of more than %d bytes, which are dropped, and cannot be found",
        cli_counted(n, "document has", "documents have", buf), GPUIR_MAX_TERM);
}

/* ---- the machine ---------------------------------------------------------------------------- */

uint64_t cli_nanoseconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

double cli_seconds(void) { return (double)cli_nanoseconds() / 1e9; }

unsigned cli_processors(void) {
  static unsigned found; /* a thread may be kept to fewer later */
  const unsigned before = __atomic_load_n(&found, __ATOMIC_RELAXED);
  if (before) return before;
  long n = sysconf(_SC_NPROCESSORS_ONLN);
#ifdef CPU_COUNT
  cpu_set_t set;
  if (!sched_getaffinity(0, sizeof set, &set) && CPU_COUNT(&set) > 0) n = CPU_COUNT(&set);
#endif
  n = n < 1 ? 1 : n > 1024 ? 1024 : n;
  __atomic_store_n(&found, (unsigned)n, __ATOMIC_RELAXED);
  return (unsigned)n;
}

void cli_cpu_model(char *out, size_t cap) {
  char line[512];
  FILE *f = fopen("/proc/cpuinfo", "r");
  snprintf(out, cap, "unknown processor");
  while (f && fgets(line, sizeof line, f)) {
    char *colon = strchr(line, ':');
    if (strncmp(line, "model name", 10) || !colon) continue;
    colon += strspn(colon, ": \t");
    colon[strcspn(colon, "\n")] = 0;
    snprintf(out, cap, "%s", colon);
    break;
  }
  if (f) fclose(f);
}

uint64_t cli_peak_resident(void) {
  struct rusage u;
  if (getrusage(RUSAGE_SELF, &u)) return 0;
#ifdef __APPLE__
  return (uint64_t)u.ru_maxrss;
#else
  return (uint64_t)u.ru_maxrss * 1024;
#endif
}

/* Notes a signal. One that comes half a second later, or more, ends the program at once; sooner it counts as the same
 * one, which timeout(1) sends to the program and to its group. */
static void on_signal(int number) {
  static uint64_t first;
  const uint64_t now = cli_nanoseconds();
  if (!cli_signal) {
    first = now;
    cli_signal = number;
  } else if (now - first > 500000000u) {
    (void)signal(number, SIG_DFL);
    (void)raise(number);
  }
}

void cli_catch_signals(void) {
  static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    struct sigaction now, sa;
    memset(&sa, 0, sizeof sa);
    sa.sa_handler = on_signal; /* without SA_RESTART, so that a blocked read ends */
    sigemptyset(&sa.sa_mask);
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) sigaddset(&sa.sa_mask, numbers[k]);
    if (sigaction(numbers[i], NULL, &now) || now.sa_handler == SIG_IGN) continue; /* nohup */
    sigaction(numbers[i], &sa, NULL);
  }
}

/* ---- random numbers ------------------------------------------------------------------- */

uint64_t cli_random(uint64_t *state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}
