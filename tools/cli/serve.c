/* serve.c - gpuir serve: the line protocol of the search benchmark game, over standard input and output or a socket.
 *
 * Each line is a request, COMMAND, tab, query, and perhaps a tab and a where; each gets one line, in the order of the
 * requests. What cannot be
 * answered exactly is UNSUPPORTED. Source: github.com/quickwit-oss/search-benchmark-game.
 */
#include "serve.h"

#include <string.h>
#include <unistd.h>

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

/* Adds the words with one of the signs to the query, in their order. */
static void add_words(const char *s, size_t len, const char *signs, size_t nsigns, serve_request *q) {
  const char *p = s, *word;
  size_t n;
  char sign;
  while (next_word(&p, s + len, &sign, &word, &n)) {
    if (!memchr(signs, sign, nsigns)) continue;
    if (q->query.n) cli_buf_char(&q->query, ' ');
    if (sign == '-') cli_buf_char(&q->query, '-');
    cli_buf_add(&q->query, word, n);
  }
}

/* 0, or -1 when the query has no exact counterpart here. Beside words with a plus those without one only rank. */
static int parse_query(const char *s, size_t len, serve_request *q) {
  const char *p = s, *word;
  size_t n;
  unsigned plus = 0, bare = 0;
  char sign;
  while (next_word(&p, s + len, &sign, &word, &n)) {
    if (!is_plain(word, n)) return -1;
    plus += sign == '+';
    bare += !sign;
  }
  if (!plus && !bare) return -1;
  q->mode = plus && !bare ? GPUIR_AND : GPUIR_OR;
  q->required = bare ? plus : 0;
  add_words(s, len, "+", 1, q);
  add_words(s, len, "", 1, q);
  add_words(s, len, "-", 1, q);
  return 0;
}

/* Reads the words of a request with a where, which may have none, or negated ones alone. */
static int parse_where(const char *query, const char *end, serve_request *q) {
  const char *p = query, *word;
  size_t n;
  char sign;
  int words = 0, positive = 0;
  while (next_word(&p, end, &sign, &word, &n)) {
    if (!is_plain(word, n)) return -1;
    words++;
    positive += sign != '-';
  }
  if (positive) return parse_query(query, (size_t)(end - query), q);
  q->all = 1;
  if (words) add_words(query, (size_t)(end - query), "-", 1, q);
  return 0;
}

int serve_parse(const char *line, size_t len, serve_request *request) {
  const char *tab = (const char *)memchr(line, '\t', len);
  memset(request, 0, sizeof *request);
  if (!tab || parse_command(line, (size_t)(tab - line), request)) return -1;
  const char *query = tab + 1, *end = line + len;
  tab = (const char *)memchr(query, '\t', (size_t)(end - query));
  if (!tab) return parse_query(query, (size_t)(end - query), request);
  if (memchr(tab, 0, (size_t)(end - tab)) || parse_where(query, tab, request)) return -1;
  cli_buf_add(&request->where, tab + 1, (size_t)(end - tab - 1));
  cli_buf_char(&request->where, 0);
  return 0;
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
  desc.queue = s->window * (o->socket ? SERVE_CLIENTS : 1);
  desc.attach = gpu.cuda ? cli_gpu_attach_pool : NULL;
  desc.attach_user = &gpu;
  const int status = gpuir_pool_create(s->index, &desc, &s->pool, &err);
  if (status) {
    code = cli_fail(s->name, status, &err);
  } else {
    code = o->socket ? serve_socket(s, o->socket) : serve_stream(s, STDIN_FILENO, STDOUT_FILENO, NULL);
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
