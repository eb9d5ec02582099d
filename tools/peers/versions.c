/* versions.c - two versions of gpuir.h beside each other in one process, query by query, so that a machine whose speed
 * drifts slows both alike. tools/peers/versions.sh compiles this file three times: with VERSION=old and VERSION=new
 * against the two headers, and without it as the program. */
#ifdef VERSION

#define GPUIR_API static
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"

#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-function"
#endif

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

static gpuir_index *ix;
static gpuir_searcher *searcher;
static gpuir_query **queries;
static gpuir_hit hits[1000];
static size_t wanted;

int JOIN(VERSION, _open)(const char *path, int mode, size_t k, char **lines, size_t n);
uint64_t JOIN(VERSION, _search)(size_t i, int count, uint64_t *sum);

/* Opens the index and parses the queries; one that this version refuses is passed over. Returns 1 if it refuses all, as
 * it does where it lacks the index's analyzer: two versions that answer nothing would be called equal. Otherwise 0. */
int JOIN(VERSION, _open)(const char *path, int mode, size_t k, char **lines, size_t n) {
  gpuir_query_desc desc;
  gpuir_error err;
  size_t i, parsed = 0;
  memset(&desc, 0, sizeof desc);
  desc.mode = mode;
  desc.no_operators = 1;
  wanted = k < sizeof hits / sizeof *hits ? k : sizeof hits / sizeof *hits;
  if (gpuir_open(path, NULL, &ix, &err)) {
    (void)fprintf(stderr, "%s\n", err.msg);
    return 1;
  }
#ifdef SEARCHER_HAS_NO_ERROR /* versions before 29bbaf2 */
  if (gpuir_searcher_create(ix, NULL, &searcher)) return 1;
#else
  if (gpuir_searcher_create(ix, NULL, &searcher, &err)) return 1;
#endif
  queries = (gpuir_query **)calloc(n, sizeof *queries);
  for (i = 0; queries && i < n; i++) {
    if (gpuir_query_parse(ix, &desc, lines[i], strlen(lines[i]), &queries[i], &err)) queries[i] = NULL;
    parsed += queries[i] != NULL;
  }
  if (queries && !parsed) (void)fprintf(stderr, "%s: no query can be asked: %s\n", path, err.msg);
  return !parsed;
}

/* Answers query i, adds a checksum of the answer to *sum and returns the nanoseconds that it took. Ends the program if
 * the search fails: the time of a failure says nothing. */
uint64_t JOIN(VERSION, _search)(size_t i, int count, uint64_t *sum) {
  uint64_t start, matches = 0;
  size_t n = 0;
  int status;
  if (!queries[i]) return 0;
  start = gpuir__now();
  if (count) status = gpuir_count(searcher, queries[i], &matches);
  else status = gpuir_search(searcher, queries[i], hits, wanted, &n);
  start = gpuir__now() - start;
  if (status) {
    (void)fprintf(stderr, "query %zu: %s\n", i + 1, gpuir_strerror(status));
    exit(1);
  }
  *sum += matches + XXH3_64bits(hits, n * sizeof *hits);
  return start;
}

#else

#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int (*opener)(const char *path, int mode, size_t k, char **lines, size_t n);
typedef uint64_t (*answerer)(size_t i, int count, uint64_t *sum);

int old_open(const char *path, int mode, size_t k, char **lines, size_t n);
int new_open(const char *path, int mode, size_t k, char **lines, size_t n);
uint64_t old_search(size_t i, int count, uint64_t *sum);
uint64_t new_search(size_t i, int count, uint64_t *sum);

#define MOST_QUERIES 100000
#define MOST_ROUNDS 1000

static uint64_t least[2][MOST_QUERIES]; /* [version][query] its least time in ns */

static int by_size(const void *x, const void *y) {
  double a = *(const double *)x, b = *(const double *)y;
  return a < b ? -1 : a > b;
}

static size_t read_lines(const char *path, char **lines) {
  char *line = NULL;
  size_t cap = 0, n = 0;
  FILE *f = fopen(path, "r");
  while (f && n < MOST_QUERIES && getline(&line, &cap, f) > 0) {
    line[strcspn(line, "\n")] = 0;
    if ((lines[n] = strdup(line)) != NULL) n++;
  }
  if (f) (void)fclose(f);
  free(line);
  return n;
}

/* The processor time of this thread, in ns: what other programs take of a busy machine does not count. */
static uint64_t processor_ns(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* One round over all queries: the total time of both versions, which take turns in going first, and the least time of
 * each query so far. */
static void one_round(size_t n, int round, int count, uint64_t total[2], uint64_t sum[2]) {
  static const answerer search[2] = {old_search, new_search};
  unsigned turn;
  size_t i;
  total[0] = total[1] = 0;
  for (i = 0; i < n; i++)
    for (turn = 0; turn < 2; turn++) {
      const unsigned v = (unsigned)((size_t)round + i + turn) & 1;
      uint64_t ns = processor_ns();
      (void)search[v](i, count, &sum[v]);
      ns = processor_ns() - ns;
      total[v] += ns;
      if (!round || ns < least[v][i]) least[v][i] = ns;
    }
}

static double mean_us(const uint64_t *ns, size_t n) {
  double total = 0;
  size_t i;
  for (i = 0; i < n; i++) total += (double)ns[i];
  return total / (double)n / 1e3;
}

static int by_time(const void *x, const void *y) {
  const uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
  return a < b ? -1 : a > b;
}

/* Prints the median and the 99th percentile of both versions' least times, in microseconds. Sorts them. */
static void print_percentiles(size_t n) {
  const size_t half = n / 2, most = n * 99 / 100;
  unsigned v;
  for (v = 0; v < 2; v++) {
    qsort(least[v], n, sizeof **least, by_time);
    (void)printf("\t%.2f\t%.2f", (double)least[v][half] / 1e3, (double)least[v][most] / 1e3);
  }
}

int main(int argc, char **argv) {
  static const char *const names[5] = {"and", "or", "andor", "count-and", "count-or"};
  static const int modes[5] = {0, 1, 2, 0, 1};
  static char *lines[MOST_QUERIES];
  static double ratio[MOST_ROUNDS];
  int rounds, r, m = 0;
  size_t n, k;
  uint64_t sum[2] = {0, 0}, total[2];
  if (argc != 7) {
    (void)fprintf(stderr, "usage: versions OLD_INDEX NEW_INDEX QUERIES MODE K ROUNDS\n");
    return 2;
  }
  while (m < 4 && strcmp(argv[4], names[m]) != 0) m++;
  k = (size_t)strtoul(argv[5], NULL, 10);
  rounds = (int)strtol(argv[6], NULL, 10);
  if (rounds < 1) rounds = 1;
  if (rounds > MOST_ROUNDS) rounds = MOST_ROUNDS;
  n = read_lines(argv[3], lines);
  if (!n || old_open(argv[1], modes[m], k, lines, n) || new_open(argv[2], modes[m], k, lines, n)) return 1;
  one_round(n, 0, m > 2, total, sum); /* warms up */
  for (r = 0; r < rounds; r++) {
    one_round(n, r, m > 2, total, sum);
    ratio[r] = (double)total[0] / (double)total[1];
  }
  qsort(ratio, (size_t)rounds, sizeof *ratio, by_size);
  (void)printf("%s\t%zu\t%zu\t%d\t%.2f\t%.2f\t%.4f\t%.4f\t%.4f\t%.4f\t%s", names[m], k, n, rounds, mean_us(least[0], n),
      mean_us(least[1], n), mean_us(least[0], n) / mean_us(least[1], n), ratio[rounds / 2], ratio[0], ratio[rounds - 1],
      sum[0] == sum[1] ? "equal" : "differ");
  print_percentiles(n);
  (void)printf("\n");
  return 0;
}
#endif
