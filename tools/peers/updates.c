/* updates FOLDER STREAM QUERIES BASE RATE REFRESH_MS COMMIT_MS: gpuir's part of updates.py,
 * which defines GPUIR_IMPLEMENTATION.
 *
 * Makes a live index in FOLDER of the first BASE lines of STREAM, then plays the others at RATE a second. A line is A,
 * R or D (add, replace, delete), a tab, a name and, but for D, a tab and the text. A thread asks the QUERIES, one a
 * line, again and again meanwhile, and another one merges. Prints lines: `v` and the milliseconds from the moment when
 * a change was due until a snapshot had it; `q` and the microseconds of a query with its parsing; in the end
 * `documents`, `matches` of all queries, and the bytes written by system calls and to the disk. */
#define _GNU_SOURCE
#include "gpuir.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A snapshot with the number of threads that use it. */
typedef struct snapshot {
  gpuir_index *index;
  int users;
} snapshot;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards `newest`, and the users of snapshots */
static snapshot *newest;
static atomic_int stop;
static gpuir_live *live;
static char **queries;
static size_t nqueries;
static double *latencies;
static size_t nlatencies, room;

static double now(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void die(const char *what, int status, const gpuir_error *err) {
  (void)fprintf(stderr, "updates: %s: %s\n", what, err->code ? err->msg : gpuir_strerror(status));
  exit(1);
}

static void check(const char *what, int status, const gpuir_error *err) {
  if (status) die(what, status, err);
}

static void sleep_until(double when) {
  const double left = when - now();
  const struct timespec wait = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
  if (left > 0) (void)nanosleep(&wait, NULL);
}

/* ---- snapshots ---- */

static void release(snapshot *s) {
  int last;
  if (!s) return;
  (void)pthread_mutex_lock(&mutex);
  last = !--s->users;
  (void)pthread_mutex_unlock(&mutex);
  if (!last) return;
  gpuir_close(s->index);
  free(s);
}

static snapshot *acquire(void) {
  snapshot *s;
  (void)pthread_mutex_lock(&mutex);
  s = newest;
  s->users++;
  (void)pthread_mutex_unlock(&mutex);
  return s;
}

/* Makes what was changed visible to the thread that asks. */
static void refresh(void) {
  snapshot *s = (snapshot *)calloc(1, sizeof *s), *before;
  gpuir_error err = {0, 0, ""};
  if (!s) exit(1);
  check("refresh", gpuir_live_refresh(live, &s->index, &err), &err);
  s->users = 1;
  (void)pthread_mutex_lock(&mutex);
  before = newest;
  newest = s;
  (void)pthread_mutex_unlock(&mutex);
  release(before);
}

/* ---- threads ---- */

static void keep(double microseconds) {
  if (nlatencies == room) {
    room = room ? 2 * room : 1 << 16;
    latencies = (double *)realloc(latencies, room * sizeof *latencies);
    if (!latencies) exit(1);
  }
  latencies[nlatencies++] = microseconds;
}

static void *ask(void *unused) {
  gpuir_error err = {0, 0, ""};
  gpuir_searcher *searcher = NULL;
  snapshot *mine = NULL;
  gpuir_hit hits[10];
  (void)unused;
  for (size_t i = 0; !stop; i = (i + 1) % nqueries) {
    snapshot *s = acquire();
    gpuir_query *query;
    double begin;
    size_t n;
    if (!searcher) check("searcher", gpuir_searcher_create(s->index, NULL, &searcher, &err), &err);
    check("move", gpuir_searcher_move(searcher, s->index), &err);
    release(mine);
    mine = s;
    begin = now();
    check("parse", gpuir_query_parse(s->index, NULL, queries[i], strlen(queries[i]), &query, &err), &err);
    check("search", gpuir_search(searcher, query, hits, 10, &n), &err);
    gpuir_query_destroy(query);
    keep((now() - begin) * 1e6);
  }
  gpuir_searcher_destroy(searcher);
  release(mine);
  return NULL;
}

static void *merge(void *unused) {
  gpuir_error err = {0, 0, ""};
  (void)unused;
  while (!stop) {
    int more;
    check("merge", gpuir_live_merge(live, 0, &more, &err), &err);
    if (!more) sleep_until(now() + 0.02);
  }
  return NULL;
}

/* ---- the stream ---- */

/* Reads a file and cuts it into lines. */
static char **read_lines(const char *path, size_t *n) {
  FILE *f = fopen(path, "r");
  char **lines, *text;
  long size;
  if (!f || fseek(f, 0, SEEK_END) || (size = ftell(f)) < 0 || fseek(f, 0, SEEK_SET)) exit(1);
  text = (char *)malloc((size_t)size + 1);
  if (!text || fread(text, 1, (size_t)size, f) != (size_t)size) exit(1);
  (void)fclose(f);
  text[size] = 0;
  *n = 0;
  for (long i = 0; i < size; i++) *n += text[i] == '\n';
  lines = (char **)malloc((*n + 1) * sizeof *lines);
  if (!lines) exit(1);
  for (size_t i = 0; i < *n; i++) {
    char *end = strchr(text, '\n');
    lines[i] = text;
    *end = 0;
    text = end + 1;
  }
  lines[*n] = NULL;
  return lines;
}

static void play(const char *line) {
  const char *name = line + 2, *tab = strchr(name, '\t');
  const size_t len = tab ? (size_t)(tab - name) : strlen(name);
  gpuir_error err = {0, 0, ""};
  gpuir_doc_desc doc;
  if (*line != 'A') check("delete", gpuir_live_delete(live, GPUIR_BY_NAME, name, len, NULL, &err), &err);
  if (*line == 'D') return;
  memset(&doc, 0, sizeof doc);
  doc.name = name;
  doc.name_len = len;
  check("add", gpuir_live_add(live, &doc, tab + 1, strlen(tab + 1), &err), &err);
}

/* Plays lines[0..n) at their times. */
static void stream(char **lines, size_t n, double rate, double refresh_s, double commit_s) {
  gpuir_error err = {0, 0, ""};
  const double begin = now();
  double refreshed = begin, committed = begin;
  size_t done = 0, seen = 0;
  while (seen < n) {
    while (done < n && begin + (double)done / rate <= now() && done - seen < 100000) play(lines[done++]);
    if (done > seen && (now() - refreshed >= refresh_s || done == n)) {
      double visible;
      refreshed = now();
      refresh();
      visible = now();
      for (; seen < done; seen++) (void)printf("v %.4f\n", (visible - begin - (double)seen / rate) * 1e3);
    }
    if (now() - committed >= commit_s) {
      committed = now();
      check("commit", gpuir_live_commit(live, &err), &err);
    }
    if (done < n) {
      const double due = begin + (double)done / rate, again = refreshed + refresh_s;
      sleep_until(done > seen && again < due ? again : due);
    } else {
      sleep_until(refreshed + refresh_s);
    }
  }
}

/* Prints how many bytes the process wrote so far. */
static void print_written(void) {
  char line[128];
  FILE *io = fopen("/proc/self/io", "r");
  (void)fflush(stdout);
  while (io && fgets(line, sizeof line, io))
    if (!strncmp(line, "wchar", 5) || !strncmp(line, "write_bytes", 11)) (void)fputs(line, stdout);
  if (io) (void)fclose(io);
}

/* Prints what there is in the end, and what the queries match in all. */
static void print_end(void) {
  gpuir_error err = {0, 0, ""};
  gpuir_searcher *searcher;
  gpuir_index_info info;
  uint64_t matches = 0, n;
  check("searcher", gpuir_searcher_create(newest->index, NULL, &searcher, &err), &err);
  for (size_t i = 0; i < nqueries; i++) {
    gpuir_query *query;
    check("parse", gpuir_query_parse(newest->index, NULL, queries[i], strlen(queries[i]), &query, &err), &err);
    check("count", gpuir_count(searcher, query, &n), &err);
    matches += n;
    gpuir_query_destroy(query);
  }
  gpuir_searcher_destroy(searcher);
  (void)gpuir_index_get_info(newest->index, &info);
  (void)printf("documents %llu\nmatches %llu\n", (unsigned long long)info.documents, (unsigned long long)matches);
  for (size_t i = 0; i < nlatencies; i++) (void)printf("q %.3f\n", latencies[i]);
}

int main(int argc, char **argv) {
  gpuir_live_desc desc;
  gpuir_error err = {0, 0, ""};
  pthread_t asking, merging;
  char **lines;
  size_t n, base, i;
  int more = 1;
  if (argc != 8) return 2;
  lines = read_lines(argv[2], &n);
  queries = read_lines(argv[3], &nqueries);
  base = (size_t)strtoul(argv[4], NULL, 10);
  memset(&desc, 0, sizeof desc);
  desc.settings.path = argv[1];
  desc.settings.analyzer.analyzer = "ascii";
  desc.create = 1;
  check(argv[1], gpuir_live_open(&desc, &live, &err), &err);
  for (i = 0; i < base; i++) play(lines[i]);
  check("commit", gpuir_live_commit(live, &err), &err);
  while (more) check("merge", gpuir_live_merge(live, 0, &more, &err), &err);
  refresh();
  if (pthread_create(&asking, NULL, ask, NULL) || pthread_create(&merging, NULL, merge, NULL))
    die("cannot start a thread", GPUIR_E_NOMEM, &err);
  stream(lines + base, n - base, strtod(argv[5], NULL), strtod(argv[6], NULL) / 1e3, strtod(argv[7], NULL) / 1e3);
  stop = 1;
  (void)pthread_join(asking, NULL);
  (void)pthread_join(merging, NULL);
  check("commit", gpuir_live_commit(live, &err), &err);
  print_written();
  print_end();
  release(newest);
  gpuir_live_close(live);
  free(lines);
  return 0;
}
