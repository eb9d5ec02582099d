/* game.c INDEX [LEVEL]: gpuir's part of game.py. Reads the search benchmark game's requests, a line each: a command, a
 * tab and a query of words and "phrases", of which those with a plus must match. Answers each by a line: how many
 * documents match if the command counts, else how many hits there are; then the nanoseconds that the thread and the
 * clock took to parse and answer it, parted by tabs. LEVEL: the SIMD level, 1 to 3; 0: the best.
 */
#define _POSIX_C_SOURCE 200809L
#define GPUIR_STATIC
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-function"
#endif

enum { MOST = 1000, LINE_CAP = 1 << 16 };

typedef struct request {
  size_t k; /* hits; 0: only counted */
  int count;
  unsigned required; /* words and phrases, from the first on */
  char text[LINE_CAP]; /* those with a plus, which is left out, then the others */
} request;

static int parse_command(const char *name, request *r) {
  static const struct {
    const char *name;
    size_t k;
    int count;
  } commands[] = {{"COUNT", 0, 1}, {"TOP_10", 10, 0}, {"TOP_100", 100, 0}, {"TOP_1000", 1000, 0},
      {"TOP_10_COUNT", 10, 1}, {"TOP_100_COUNT", 100, 1}, {"TOP_1000_COUNT", 1000, 1}};
  size_t i;
  for (i = 0; i < sizeof commands / sizeof *commands; i++)
    if (!strcmp(commands[i].name, name)) {
      r->k = commands[i].k;
      r->count = commands[i].count;
      return 0;
    }
  return -1;
}

/* Appends the words and phrases with a plus, or those without. Returns how many there are. */
static unsigned append(request *r, const char *s, int plus) {
  unsigned n = 0;
  while (*s) {
    const int has_plus = *s == '+';
    size_t len;
    s += has_plus;
    len = *s == '"' ? strcspn(s + 1, "\"") + 2 : strcspn(s, " ");
    if (has_plus == plus) {
      if (*r->text) strcat(r->text, " ");
      strncat(r->text, s, len);
      n++;
    }
    s += len;
    s += strspn(s, " ");
  }
  return n;
}

/* Splits a line; 0, or -1 for what is no request. */
static int parse_request(char *line, request *r) {
  char *tab = strchr(line, '\t');
  if (!tab) return -1;
  *tab = 0;
  *r->text = 0;
  r->required = append(r, tab + 1, 1);
  (void)append(r, tab + 1, 0);
  return parse_command(line, r);
}

static uint64_t now(clockid_t clock) {
  struct timespec t;
  (void)clock_gettime(clock, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Answers a request; -1 when it cannot be answered. */
static int64_t answer(const gpuir_index *ix, gpuir_searcher *searcher, const request *r) {
  static gpuir_hit hits[MOST];
  gpuir_query_desc desc;
  gpuir_query *query;
  uint64_t matches = 0;
  size_t n = 0;
  int status;
  memset(&desc, 0, sizeof desc);
  desc.mode = GPUIR_OR;
  desc.required = r->required;
  if (gpuir_query_parse(ix, &desc, r->text, strlen(r->text), &query, NULL)) return -1;
  if (!r->k) status = gpuir_count(searcher, query, &matches);
  else if (r->count) status = gpuir_search_count(searcher, query, hits, r->k, &n, &matches);
  else status = gpuir_search(searcher, query, hits, r->k, &n);
  gpuir_query_destroy(query);
  return status ? -1 : (int64_t)(r->count ? matches : n);
}

static void serve(const gpuir_index *ix, gpuir_searcher *searcher) {
  static char line[LINE_CAP];
  static request r;
  while (fgets(line, sizeof line, stdin)) {
    int64_t found = -1;
    uint64_t thread, clock;
    line[strcspn(line, "\n")] = 0;
    if (!parse_request(line, &r)) {
      clock = now(CLOCK_MONOTONIC);
      thread = now(CLOCK_THREAD_CPUTIME_ID);
      found = answer(ix, searcher, &r);
      thread = now(CLOCK_THREAD_CPUTIME_ID) - thread;
      clock = now(CLOCK_MONOTONIC) - clock;
      if (found >= 0) (void)printf("%" PRId64 "\t%" PRIu64 "\t%" PRIu64 "\n", found, thread, clock);
    }
    if (found < 0) (void)puts("UNSUPPORTED");
    (void)fflush(stdout);
  }
}

int main(int argc, char **argv) {
  gpuir_open_desc desc;
  gpuir_index *ix;
  gpuir_searcher *searcher;
  gpuir_error err;
  memset(&desc, 0, sizeof desc);
  if (argc < 2) {
    (void)fputs("usage: game INDEX [LEVEL]\n", stderr);
    return 2;
  }
  desc.simd = argc > 2 ? atoi(argv[2]) : GPUIR_SIMD_AUTO;
  if (gpuir_open(argv[1], &desc, &ix, &err) || gpuir_searcher_create(ix, NULL, &searcher, &err)) {
    (void)fprintf(stderr, "game: %s\n", err.msg);
    return 1;
  }
  serve(ix, searcher);
  gpuir_searcher_destroy(searcher);
  gpuir_close(ix);
  return 0;
}
