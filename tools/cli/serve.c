/* serve.c - gpuir serve: the line protocol of the search benchmark game.
 *
 * Each line of standard input is a request, COMMAND, tab, query; each gets one line on standard output at once. What
 * cannot be answered exactly is UNSUPPORTED. Source: github.com/quickwit-oss/search-benchmark-game.
 */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct server {
  const char *name; /* of the index */
  gpuir_index *index;
  gpuir_searcher *searcher;
  gpuir_hit hits[1000];
} server;

/* A request, understood. */
typedef struct request {
  size_t k; /* 0: nothing is ranked */
  int count;
  int mode;
  int optional;  /* words without a plus beside words with one: they rank, but need not be there */
  cli_buf query; /* in gpuir's own syntax */
} request;

static int is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v'; }

static int parse_command(const char *s, size_t n, request *q) {
  static const struct {
    const char *name;
    size_t k;
    int count;
  } commands[] = {{"TOP_10", 10, 0},       {"TOP_100", 100, 0},       {"TOP_1000", 1000, 0},
                  {"TOP_10_COUNT", 10, 1}, {"TOP_100_COUNT", 100, 1}, {"TOP_1000_COUNT", 1000, 1},
                  {"COUNT", 0, 1}};
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
  if (n > 2 && s[0] == '"') s++, n -= 2;
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
static int parse_query(const char *s, size_t len, request *q) {
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

/* Runs it. GPUIR_E_UNSUPPORTED, _TERMS and _RANGE: it has no answer here; another status is a failure. */
static int answer(server *s, const request *q, uint64_t *number) {
  gpuir_query_desc qd;
  gpuir_query *query = NULL;
  size_t n;
  int status;
  *number = 1;
  if (q->optional && q->k) return GPUIR_E_UNSUPPORTED;
  memset(&qd, 0, sizeof qd);
  qd.mode = q->mode;
  status = gpuir_query_parse(s->index, &qd, q->query.p, q->query.n, &query, NULL);
  if (status == GPUIR_E_QUERY) { /* stop words only: nothing matches */
    *number = q->count ? 0 : 1;
    return GPUIR_OK;
  }
  if (!status && q->k) status = gpuir_search(s->searcher, query, s->hits, q->k, &n);
  if (!status && q->count) status = gpuir_count(s->searcher, query, number);
  gpuir_query_destroy(query);
  return status;
}

static int serve_line(server *s, const char *line, size_t len) {
  const char *tab = (const char *)memchr(line, '\t', len);
  int status = GPUIR_E_UNSUPPORTED;
  uint64_t number = 0;
  request q;
  memset(&q, 0, sizeof q);
  if (tab && !parse_command(line, (size_t)(tab - line), &q) &&
      !parse_query(tab + 1, len - (size_t)(tab + 1 - line), &q))
    status = answer(s, &q, &number);
  cli_buf_free(&q.query);
  if (!status)
    printf("%llu\n", (unsigned long long)number);
  else if (status == GPUIR_E_UNSUPPORTED || status == GPUIR_E_TERMS || status == GPUIR_E_RANGE)
    puts("UNSUPPORTED");
  else {
    gpuir_error err;
    gpuir_searcher_error(s->searcher, &err);
    return cli_fail(s->name, status, &err);
  }
  cli_flush();
  return ferror(stdout) ? CLI_FAIL : CLI_OK;
}

static int serve(server *s) {
  cli_reader in;
  char *line;
  size_t len;
  uint64_t lines;
  int got, code = CLI_OK;
  cli_reader_open(&in, STDIN_FILENO, CLI_MAX_LINE);
  while (!code && (got = cli_reader_lines(&in, 1, &line, &len, &lines)) != 0) {
    if (got < 0) {
      if (!cli_signal) cli_error("standard input: %s", strerror(errno));
      code = cli_signal ? 128 + (int)cli_signal : CLI_FAIL;
      break;
    }
    if (line[len - 1] == '\n') len--;
    code = serve_line(s, line, len);
  }
  cli_reader_close(&in);
  return cli_finish(code);
}

enum { O_STDIO = 2 };

int cli_serve(int argc, char **argv) {
  static const cli_option options[] = {{O_STDIO, "stdio", 0, 0}, {0, NULL, 0, 0}};
  server *s;
  cli_args a;
  int opt, bad = 0, stdio = 0, code;
  cli_args_start(&a, "serve", options, argc, argv);
  while (!bad && (opt = cli_next(&a)) != CLI_END) {
    switch (opt) {
      case CLI_HELP: cli_args_free(&a); return cli_help("serve");
      case O_STDIO: stdio = 1; break;
      default: bad = 1; break;
    }
  }
  code = bad ? CLI_USAGE : CLI_OK;
  if (!code && !stdio) code = cli_misuse("serve", "--stdio is missing");
  if (!code && a.noperands != 1)
    code = cli_misuse("serve", a.noperands ? "one INDEX only" : "INDEX is missing");
  if (!code) {
    s = (server *)cli_resize(NULL, 1, sizeof *s);
    s->name = a.operands[0];
    s->searcher = NULL;
    s->index = cli_open(s->name);
    code = s->index ? CLI_OK : CLI_FAIL;
    if (!code && gpuir_searcher_create(s->index, NULL, &s->searcher, NULL))
      code = cli_fail(s->name, GPUIR_E_NOMEM, NULL);
    cli_catch_signals();
    if (!code) code = serve(s);
    gpuir_searcher_destroy(s->searcher);
    gpuir_close(s->index);
    free(s);
  }
  cli_args_free(&a);
  return code;
}
