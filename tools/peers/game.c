/* game.c INDEX [LEVEL]: gpuir's part of game.py. Reads the search benchmark game's requests, a line each: a command, a
 * tab and a query of words and "phrases", of which those with a plus must match. Answers each by a line: how many
 * documents match if the command counts, else how many hits there are; then the nanoseconds that the thread and the
 * clock took to parse and answer it, parted by tabs. LEVEL: the SIMD level, 1 to 3; 0: the best.
 * game.c INDEX LEVEL work: tells counters instead of times: the blocks of the query's lists, those decoded and the
 * postings scored, and both again where the score of the last hit is known before the search begins.
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

/* Parses a request; NULL when it cannot be. */
static gpuir_query *parse(const gpuir_index *ix, const request *r) {
  gpuir_query_desc desc;
  gpuir_query *query;
  memset(&desc, 0, sizeof desc);
  desc.mode = GPUIR_OR;
  desc.required = r->required;
  return gpuir_query_parse(ix, &desc, r->text, strlen(r->text), &query, NULL) ? NULL : query;
}

/* Answers a request; -1 when it cannot be answered. */
static int64_t answer(const gpuir_index *ix, gpuir_searcher *searcher, const request *r) {
  static gpuir_hit hits[MOST];
  gpuir_query *query = parse(ix, r);
  uint64_t matches = 0;
  size_t n = 0;
  int status;
  if (!query) return -1;
  if (!r->k) status = gpuir_count(searcher, query, &matches);
  else if (r->count) status = gpuir_search_count(searcher, query, hits, r->k, &n, &matches);
  else status = gpuir_search(searcher, query, hits, r->k, &n);
  gpuir_query_destroy(query);
  return status ? -1 : (int64_t)(r->count ? matches : n);
}

/* Answers a request with a threshold, of which *least becomes the score of the last of k hits. -1: it cannot be. */
static int64_t bounded(gpuir_searcher *searcher, const gpuir_query *query, const request *r, uint32_t *least) {
  static gpuir_hit hits[MOST];
  gpuir_batch_desc desc;
  gpuir_batch *batch;
  uint32_t n = 0;
  uint64_t matches = 0;
  memset(&desc, 0, sizeof desc);
  desc.queries = &query;
  desc.nq = 1;
  desc.k = r->k;
  desc.hits = hits;
  desc.counts = &n;
  desc.thresholds = least;
  desc.count = !r->k;
  desc.matches = r->k && r->count ? &matches : NULL;
  if (gpuir_search_begin(searcher, &desc, &batch) || gpuir_search_finish(batch)) return -1;
  *least = r->k && n == r->k ? hits[n - 1].score : 0;
  return desc.matches ? (int64_t)matches : n;
}

/* Tells the answer to a request and its work. -1: it cannot be answered. */
static int tell_work(const gpuir_index *ix, gpuir_searcher *searcher, const request *r) {
  gpuir_query *query = parse(ix, r);
  gpuir_searcher_info info[3];
  uint32_t least = 0;
  int64_t found = -1;
  int i;
  if (!query) return -1;
  for (i = 0; i < 3; i++) {
    gpuir_searcher_get_info(searcher, &info[i]);
    if (i < 2) found = bounded(searcher, query, r, &least);
  }
  gpuir_query_destroy(query);
  if (found < 0) return -1;
  (void)printf("%" PRId64 "\t%" PRIu64, found, info[1].blocks_total - info[0].blocks_total);
  for (i = 0; i < 2; i++)
    (void)printf("\t%" PRIu64 "\t%" PRIu64, info[i + 1].blocks_decoded - info[i].blocks_decoded,
        info[i + 1].postings_scored - info[i].postings_scored);
  (void)puts("");
  return 0;
}

/* Tells the answer to a request and its times. -1: it cannot be answered. */
static int tell_times(const gpuir_index *ix, gpuir_searcher *searcher, const request *r) {
  uint64_t clock = now(CLOCK_MONOTONIC), thread = now(CLOCK_THREAD_CPUTIME_ID);
  const int64_t found = answer(ix, searcher, r);
  thread = now(CLOCK_THREAD_CPUTIME_ID) - thread;
  clock = now(CLOCK_MONOTONIC) - clock;
  if (found < 0) return -1;
  (void)printf("%" PRId64 "\t%" PRIu64 "\t%" PRIu64 "\n", found, thread, clock);
  return 0;
}

static void serve(const gpuir_index *ix, gpuir_searcher *searcher, int work) {
  static char line[LINE_CAP];
  static request r;
  while (fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\n")] = 0;
    if (parse_request(line, &r) || (work ? tell_work : tell_times)(ix, searcher, &r)) (void)puts("UNSUPPORTED");
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
    (void)fputs("usage: game INDEX [LEVEL [work]]\n", stderr);
    return 2;
  }
  desc.simd = argc > 2 ? atoi(argv[2]) : GPUIR_SIMD_AUTO;
  if (gpuir_open(argv[1], &desc, &ix, &err) || gpuir_searcher_create(ix, NULL, &searcher, &err)) {
    (void)fprintf(stderr, "game: %s\n", err.msg);
    return 1;
  }
  serve(ix, searcher, argc > 3);
  gpuir_searcher_destroy(searcher);
  gpuir_close(ix);
  return 0;
}
