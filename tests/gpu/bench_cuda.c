/* bench_cuda.c - queries a second and latencies on the CUDA device, beside the CPU on the same index and queries
 *
 * bench_cuda [documents=N] [queries=N] [k=N] [clustering=0..1] [path=FILE] [memory=MB] [cpu=N]
 *            [modes=and,or,andor] [ways=pruned,exhaustive] [threads=N] [batch=N] [threshold=MILLIONS]
 *            [codec=C] [freq-codec=C]
 *
 * Generates the index that build/synth makes of these documents and this clustering, unless it is there, takes the
 * first N of its 10,000 queries, then prints a line for each measurement: medians of 7 batches, and of single queries
 * the 50th and 99th percentile host to host. cpu=N answers the first N queries by the CPU too and compares the hits. */
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"

#include "ceilings.h"
#include "synth.h"

static int compare_double(const void *x, const void *y) {
  double a = *(const double *)x, b = *(const double *)y;
  return a < b ? -1 : a > b;
}

static const char *option(int argc, char **argv, const char *name, const char *otherwise) {
  size_t n = strlen(name);
  int i;
  for (i = 1; i < argc; i++)
    if (!strncmp(argv[i], name, n) && argv[i][n] == '=') return argv[i] + n + 1;
  return otherwise;
}

static void die(const char *what, const gpuir_error *err) {
  printf("%s: %s\n", what, err ? err->msg : "");
  exit(1);
}

static double now(void) { return (double)gpuir__now() * 1e-9; }

typedef struct bench {
  gpuir_index *ix;
  gpuir_cuda *cuda;
  gpuir_query **q;
  size_t nq, k, ncpu;
  unsigned threads;
  double postings; /* of a query */
  ceilings most;
  gpuir_hit *hits, *cpu_hits;
  uint32_t *counts, *cpu_counts;
} bench;

static gpuir_searcher *searcher(bench *b, int evaluator, unsigned threads, int cuda) {
  gpuir_searcher_desc d;
  gpuir_searcher *s;
  gpuir_error err;
  memset(&d, 0, sizeof d);
  d.evaluator = evaluator;
  d.threads = threads;
  if (gpuir_searcher_create(b->ix, &d, &s)) die("searcher", NULL);
  if (cuda && gpuir_cuda_attach(s, b->cuda, 0, &err)) die("attach", &err);
  return s;
}

static double run(bench *b, gpuir_searcher *s, size_t nq, gpuir_hit *hits, uint32_t *counts) {
  double t = now();
  gpuir_error err;
  if (gpuir_search_batch(s, (const gpuir_query *const *)b->q, nq, b->k, hits, counts)) {
    gpuir_searcher_error(s, &err);
    die("search", &err);
  }
  return now() - t;
}

static const char *const evaluators[] = {"pruned", "exhaustive"}; /* GPUIR_EVAL_AUTO, GPUIR_EVAL_EXHAUSTIVE */

static void on_cuda(bench *b, const char *mode, int evaluator) {
  gpuir_searcher *s = searcher(b, evaluator, 1, 1);
  double t[7], *one = (double *)calloc(b->nq, sizeof *one);
  size_t i, bad = 0, n = b->nq < 500 ? b->nq : 500;
  (void)run(b, s, b->nq, b->hits, b->counts);
  for (i = 0; i < 7; i++) t[i] = run(b, s, b->nq, b->hits, b->counts);
  qsort(t, 7, sizeof *t, compare_double);
  for (i = 0; i < b->ncpu; i++)
    bad += b->counts[i] != b->cpu_counts[i] ||
           memcmp(b->hits + i * b->k, b->cpu_hits + i * b->k, b->counts[i] * sizeof *b->hits) != 0;
  for (i = 0; i < n; i++) {
    size_t got;
    double start = now();
    if (gpuir_search(s, b->q[i], b->hits, b->k, &got)) die("search", NULL);
    one[i] = now() - start;
  }
  qsort(one, n, sizeof *one, compare_double);
  printf("%-5s cuda %-10s k %-5u %9.0f queries/s (best %.0f)  alone p50 %7.1f us  p99 %8.1f us   %s\n", mode,
         evaluators[evaluator], (unsigned)b->k, (double)b->nq / t[3], (double)b->nq / t[0], one[n / 2] * 1e6,
         one[n * 99 / 100] * 1e6,
         bad       ? "HITS DIFFER FROM THE CPU'S"
         : b->ncpu ? "hits equal the CPU's"
                   : "");
  if (evaluator && b->most.copy > 0) { /* every posting is added once; 4 bytes a document are cleared */
    double second = b->postings * (double)b->nq / t[3];
    printf("      %.1f G postings/s: %.1f %% of the additions, clearing %.1f %% of clearing and looking\n",
           second * 1e-9, 100 * second / b->most.adds,
           100 * (double)b->ix->stat.documents * 4 * (double)b->nq / t[3] / b->most.clears);
  }
  (void)fflush(stdout);
  free(one);
  gpuir_searcher_destroy(s);
}

/* The first n queries. */
static void on_cpu(bench *b, const char *mode, int evaluator, unsigned threads, size_t n) {
  gpuir_searcher *s = searcher(b, evaluator, threads, 0);
  double t;
  (void)run(b, s, n < 64 ? n : 64, b->cpu_hits, b->cpu_counts);
  t = run(b, s, n, b->cpu_hits, b->cpu_counts);
  printf("%-5s cpu  %-10s k %-5u %9.0f queries/s on %u threads\n", mode, evaluators[evaluator],
         (unsigned)b->k, (double)n / t, threads);
  (void)fflush(stdout);
  gpuir_searcher_destroy(s);
}

int main(int argc, char **argv) {
  static const char *const names[] = {"and", "or", "andor"};
  const char *path = option(argc, argv, "path", "/tmp/gpuir-bench.index"),
             *modes = option(argc, argv, "modes", "and,or"),
             *ways = option(argc, argv, "ways", "pruned,exhaustive");
  char description[256];
  synth_desc d;
  synth *web;
  bench b;
  gpuir_error err;
  gpuir_cuda_desc cd;
  gpuir_cuda_info info;
  double t = now();
  const char *ks = option(argc, argv, "k", "10");
  unsigned mode;
  int evaluator;
  uint64_t df = 0;
  memset(&d, 0, sizeof d);
  memset(&b, 0, sizeof b);
  memset(&cd, 0, sizeof cd);
  d.documents = (uint32_t)atol(option(argc, argv, "documents", "25200000"));
  d.queries = 10000;
  d.clustering = atof(option(argc, argv, "clustering", "0"));
  d.seed = 1;
  d.codec = option(argc, argv, "codec", "bp128");
  d.freq_codec = option(argc, argv, "freq-codec", "bp128");
  b.nq = (size_t)atol(option(argc, argv, "queries", "1000"));
  if (b.nq > d.queries) b.nq = d.queries;
  b.ncpu = (size_t)atol(option(argc, argv, "cpu", "64"));
  b.threads = d.threads = (unsigned)atol(option(argc, argv, "threads", "16"));
  cd.memory = (uint64_t)atol(option(argc, argv, "memory", "0")) << 20;
  cd.batch = (size_t)atol(option(argc, argv, "batch", "0"));
  cd.threshold = (uint64_t)(atof(option(argc, argv, "threshold", "0")) * 1e6);
  if (synth_open(&d, &web, &err)) die("synth", &err);
  synth_describe(web, description, sizeof description);
  if (gpuir_open(path, NULL, &b.ix, &err) || strcmp(b.ix->description, description) != 0 ||
      strcmp(b.ix->codec, d.codec) != 0 || strcmp(b.ix->freq_codec, d.freq_codec) != 0) {
    gpuir_close(b.ix);
    if (synth_write(web, path, &err)) die("synth", &err);
    if (gpuir_open(path, NULL, &b.ix, &err)) die("open", &err);
  } else {
    printf("%s: used as it stands\n", path);
  }
  printf("index: %llu documents, %llu lists, %llu postings, clustering %g, %s and %s (%.1f s)\n",
         (unsigned long long)b.ix->stat.documents, (unsigned long long)b.ix->stat.terms,
         (unsigned long long)b.ix->stat.postings, d.clustering, d.codec, d.freq_codec, now() - t);
  {
    gpuir_index_info x;
    (void)gpuir_index_stats(b.ix, &x);
    printf("bits a posting: docIDs %.2f, frequencies %.2f, directory %.2f\n",
           8.0 * (double)x.docids_bytes / (double)x.postings,
           8.0 * (double)x.freqs_bytes / (double)x.postings,
           8.0 * (double)x.directory_bytes / (double)x.postings);
  }
  if (!ceilings_measure(&b.most))
    printf(
        "ceilings: copy %.0f GB/s read and written, %.2f T warp instructions/s, %.0f G additions/s in shared "
        "memory, "
        "%.1f TB/s clearing and looking there\n",
        b.most.copy * 1e-9, b.most.issue * 1e-12, b.most.adds * 1e-9, b.most.clears * 1e-12);
  t = now();
  if (gpuir_cuda_open(b.ix, &cd, &b.cuda, &err)) die("cuda", &err);
  gpuir_cuda_stats(b.cuda, &info);
  printf("%s, driver %d, runtime %d: %.2f GB resident, %.2f GB in all (%.3f s)\n", info.device,
         info.driver_version, info.runtime_version, (double)info.index_bytes * 1e-9,
         (double)info.used_memory * 1e-9, now() - t);
  for (; *ks; ks += strcspn(ks, ","), ks += *ks == ',') {
    b.k = (size_t)atol(ks);
    b.q = (gpuir_query **)calloc(b.nq, sizeof *b.q);
    b.hits = (gpuir_hit *)calloc(b.nq * b.k, sizeof *b.hits);
    b.cpu_hits = (gpuir_hit *)calloc(b.nq * b.k, sizeof *b.hits);
    b.counts = (uint32_t *)calloc(b.nq, 4);
    b.cpu_counts = (uint32_t *)calloc(b.nq, 4);
    for (mode = 0; mode < 3; mode++) {
      size_t i;
      const char *at = strstr(modes, names[mode]);
      if (!at || (mode == 1 && at > modes && at[-1] == 'd')) continue;
      for (i = 0, df = 0; i < b.nq; i++) {
        char text[512];
        gpuir_query_desc qd;
        unsigned j;
        memset(&qd, 0, sizeof qd);
        qd.mode = (int)mode;
        synth_query(web, (uint32_t)i, text, sizeof text);
        if (gpuir_query_parse(b.ix, &qd, text, strlen(text), &b.q[i], &err)) die("query", &err);
        for (j = 0; j < b.q[i]->n; j++) df += b.q[i]->terms[j].df;
      }
      b.postings = (double)df / (double)b.nq;
      printf("%s: %u queries, %.2f M postings each\n", names[mode], (unsigned)b.nq,
             (double)df / (double)b.nq * 1e-6);
      if (b.ncpu > b.nq) b.ncpu = b.nq;
      for (evaluator = GPUIR_EVAL_AUTO; evaluator <= GPUIR_EVAL_EXHAUSTIVE; evaluator++) {
        if (!strstr(ways, evaluators[evaluator]) || (!mode && evaluator)) continue; /* AND's are the same */
        if (b.ncpu) on_cpu(&b, names[mode], evaluator, b.threads, b.ncpu);
        if (b.ncpu) on_cpu(&b, names[mode], evaluator, 1, b.ncpu < 32 ? b.ncpu : 32);
        on_cuda(&b, names[mode], evaluator);
      }
      for (i = 0; i < b.nq; i++) gpuir_query_destroy(b.q[i]);
    }
    free(b.q);
    free(b.hits);
    free(b.cpu_hits);
    free(b.counts);
    free(b.cpu_counts);
  }
  gpuir_cuda_close(b.cuda);
  gpuir_close(b.ix);
  synth_close(web);
  return 0;
}
