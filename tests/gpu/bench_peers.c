/* bench_peers.c - what other ways to rank on a GPU need to be measured beside gpuir; run by tools/peers/gpu.py
 *
 * bench_peers INDEX QUERIES FOLDER CALL K...
 *
 * Writes the postings of the queries' terms, with what each adds to its document's score, as arrays of integers to
 * FOLDER, and the queries' hits; measures how fast gpuir answers them on the first device, by OR, in calls of CALL
 * queries and one by one. Prints rows: engine, k, what, value.
 *
 * FOLDER gets, in the machine's order of bytes: documents.u32; of the distinct terms starts.u64, and docids.u32 and
 * scores.u32 behind one another; of the queries query_starts.u32 and query_terms.u32 (a term as often as it weighs);
 * hits-K.u32 (docID, score: K times a query, zeros behind the last hit). */
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 7, LINE = 4096 };

static gpuir_error err;
static const char *folder;
static gpuir_query **queries;
static size_t nq;

static void stop(const char *what) {
  (void)fprintf(stderr, "bench_peers: %s: %s\n", what, err.msg);
  exit(1);
}

static FILE *array(const char *name) {
  char path[4096];
  FILE *f;
  (void)snprintf(path, sizeof path, "%s/%s", folder, name);
  f = fopen(path, "wb");
  if (!f) {
    perror(path);
    exit(1);
  }
  return f;
}

static void put(FILE *f, const void *items, size_t size, size_t n) {
  if (fwrite(items, size, n, f) == n) return;
  perror("bench_peers: writing");
  exit(1);
}

static void end(FILE *f) {
  if (!fclose(f)) return;
  perror("bench_peers: writing");
  exit(1);
}

static void read_queries(gpuir_index *ix, const char *path) {
  static char line[LINE];
  FILE *f = fopen(path, "r");
  gpuir_query_desc desc;
  size_t cap = 0;
  if (!f) {
    perror(path);
    exit(1);
  }
  memset(&desc, 0, sizeof desc);
  desc.mode = GPUIR_OR;
  desc.no_operators = 1;
  while (fgets(line, sizeof line, f)) {
    gpuir_query *q;
    if (gpuir_query_parse(ix, &desc, line, strcspn(line, "\n"), &q, &err)) continue; /* without a known term */
    if (nq == cap) {
      cap = cap * 2 + 64;
      queries = (gpuir_query **)realloc(queries, cap * sizeof *queries);
      if (!queries) exit(1);
    }
    queries[nq++] = q;
  }
  (void)fclose(f);
}

/* ---- postings ---- */

/* Writes a list; returns its postings. */
static uint64_t put_list(const gpuir_index *ix, const gpuir__query_term *t, uint32_t id, FILE *docids, FILE *scores) {
  const uint32_t *lengths = gpuir__only(ix)->lengths;
  uint32_t docs[4096], adds[4096], docid;
  uint64_t n = 0;
  size_t have = 0;
  gpuir_cursor *c;
  if (gpuir_cursor_open(ix, id, &c, &err)) stop("a list");
  for (docid = gpuir_cursor_docid(c); docid != GPUIR_END; docid = gpuir_cursor_next(c)) {
    const float norm = gpuir__norm_of(ix->norm.a, ix->norm.b, lengths[docid]);
    docs[have] = docid;
    adds[have++] = gpuir__contribution(t->weight, gpuir_cursor_tf(c), norm);
    n++;
    if (have < 4096) continue;
    put(docids, docs, 4, have);
    put(scores, adds, 4, have);
    have = 0;
  }
  put(docids, docs, 4, have);
  put(scores, adds, 4, have);
  gpuir_cursor_close(c);
  return n;
}

/* Writes the postings and the queries' terms. */
static void put_all(const gpuir_index *ix) {
  gpuir_index_info x;
  FILE *docids = array("docids.u32"), *scores = array("scores.u32"), *starts = array("starts.u64");
  FILE *query_starts = array("query_starts.u32"), *query_terms = array("query_terms.u32"), *f = array("documents.u32");
  uint32_t *number, nterms = 0, at = 0, documents;
  uint64_t postings = 0, asked = 0;
  size_t i;
  (void)gpuir_index_get_info(ix, &x);
  documents = (uint32_t)x.documents;
  put(f, &documents, 4, 1);
  end(f);
  number = (uint32_t *)calloc((size_t)x.terms + 1, sizeof *number);
  if (!number) exit(1);
  put(starts, &postings, 8, 1);
  for (i = 0; i < nq; i++) {
    unsigned t, times;
    put(query_starts, &at, 4, 1);
    for (t = 0; t < queries[i]->n; t++) {
      const gpuir__query_term *term = &queries[i]->terms[t];
      const uint32_t id = gpuir__query_id(queries[i], 0, t);
      uint32_t n;
      if (id == GPUIR__NO_TERM) continue;
      if (!number[id]) {
        postings += put_list(ix, term, id, docids, scores);
        put(starts, &postings, 8, 1);
        number[id] = ++nterms;
      }
      n = number[id] - 1;
      asked += term->df;
      for (times = 0; times < term->q; times++, at++) put(query_terms, &n, 4, 1);
    }
  }
  put(query_starts, &at, 4, 1);
  printf("# %u documents, %u queries, %.3f M postings each, %u lists of %.1f M postings\n", documents, (unsigned)nq,
      (double)asked * 1e-6 / (double)nq, (unsigned)nterms, (double)postings * 1e-6);
  end(docids), end(scores), end(starts), end(query_starts), end(query_terms);
  free(number);
}

/* ---- gpuir ---- */

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

/* Answers all queries in calls; returns seconds. */
static double answer(gpuir_searcher *s, size_t k, size_t call, gpuir_hit *hits, uint32_t *counts) {
  const uint64_t start = gpuir__now();
  size_t i;
  for (i = 0; i < nq; i += call) {
    const size_t n = nq - i < call ? nq - i : call;
    if (gpuir_search_batch(s, (const gpuir_query *const *)queries + i, n, k, hits + i * k, counts + i)) {
      gpuir_searcher_error(s, &err);
      stop("searching");
    }
  }
  return (double)(gpuir__now() - start) * 1e-9;
}

static void measure(gpuir_index *ix, gpuir_cuda *cuda, int evaluator, size_t k, size_t call) {
  const char *const name = evaluator ? "gpuir exhaustive" : "gpuir pruned";
  gpuir_hit *hits = (gpuir_hit *)calloc(nq * k, sizeof *hits);
  uint32_t *counts = (uint32_t *)calloc(nq, sizeof *counts);
  double times[ROUNDS], *alone = (double *)calloc(nq, sizeof *alone);
  gpuir_searcher_desc desc;
  gpuir_searcher *s;
  char file[40];
  FILE *f;
  size_t i;
  memset(&desc, 0, sizeof desc);
  desc.evaluator = evaluator;
  if (!hits || !counts || !alone || gpuir_searcher_create(ix, &desc, &s, &err) || gpuir_cuda_attach(s, cuda, 0, &err))
    stop(name);
  (void)answer(s, k, call, hits, counts);
  for (i = 0; i < ROUNDS; i++) times[i] = answer(s, k, call, hits, counts);
  qsort(times, ROUNDS, sizeof *times, by_value);
  printf("%s\t%u\tqueries/s\t%.6g\n", name, (unsigned)k, (double)nq / times[ROUNDS / 2]);
  (void)snprintf(file, sizeof file, "hits-%u.u32", (unsigned)k);
  f = array(file);
  put(f, hits, sizeof *hits, nq * k);
  end(f);
  for (i = 0; i < nq; i++) {
    const uint64_t start = gpuir__now();
    size_t n;
    if (gpuir_search(s, queries[i], hits, k, &n)) stop("searching");
    alone[i] = (double)(gpuir__now() - start) * 1e-3;
  }
  qsort(alone, nq, sizeof *alone, by_value);
  printf("%s\t%u\talone p50 us\t%.6g\n", name, (unsigned)k, alone[nq / 2]);
  (void)fflush(stdout);
  gpuir_searcher_destroy(s);
  free(hits);
  free(counts);
  free(alone);
}

int main(int argc, char **argv) {
  gpuir_index *ix;
  gpuir_cuda *cuda = NULL;
  size_t call, i;
  int arg;
  if (argc < 6) {
    (void)fprintf(stderr, "usage: bench_peers INDEX QUERIES FOLDER CALL K...\n");
    return 2;
  }
  folder = argv[3];
  call = (size_t)strtoull(argv[4], NULL, 10);
  if (!call || gpuir_open(argv[1], NULL, &ix, &err)) stop(argv[1]);
  if (!gpuir__only(ix)) {
    (void)fprintf(stderr, "bench_peers: %s: an index of several segments, or with deletions: merge it first\n",
        argv[1]);
    return 1;
  }
  read_queries(ix, argv[2]);
  if (!nq) {
    (void)fprintf(stderr, "bench_peers: %s: no queries\n", argv[2]);
    return 1;
  }
  put_all(ix);
  if (gpuir_cuda_open(ix, NULL, &cuda, &err)) stop("the device");
  for (arg = 5; arg < argc; arg++) {
    const size_t k = (size_t)strtoull(argv[arg], NULL, 10);
    if (!k) continue;
    measure(ix, cuda, GPUIR_EVAL_AUTO, k, call);
    measure(ix, cuda, GPUIR_EVAL_EXHAUSTIVE, k, call);
  }
  gpuir_cuda_close(cuda);
  for (i = 0; i < nq; i++) gpuir_query_destroy(queries[i]);
  free(queries);
  gpuir_close(ix);
  return 0;
}
