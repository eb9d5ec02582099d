/* bench_cuda.c - queries a second and latencies on the CUDA device, beside the CPU on the same index and queries
 *
 * bench_cuda [documents=N] [queries=N] [k=N,...] [clustering=0..1] [path=FILE] [memory=MB] [cpu=N] [one=N]
 *            [modes=and,or,andor] [ways=pruned,exhaustive] [threads=N] [batch=N] [threshold=MILLIONS]
 *            [codec=C] [freq-codec=C] [rounds=N] [alone=N] [ceilings=0|1] [call=N] [devices=N,N...] [partition=0|1]
 *            [searchers=N] [planners=N] [topics=FILE] [operators=0|1] [join=N]
 *
 * Generates the index that build/synth makes of these documents and this clustering, unless it is there, and takes the
 * first N of its 10,000 queries (1,000 by default); with join=N, of N in turn makes one each, for long ones. By each
 * evaluator these are answered
 *
 *   cuda   in one batch, `rounds` times (7) after a batch that warms up; as often, four times in a row, in batches of
 *          call=N (not), two of which are in flight; as often by searchers=N threads (none) at once, each of which
 *          answers all of them with a searcher of its own; and one by one, `alone` times (7), each time in another
 *          random order: the 50th and the 99th percentile of their medians, host to host, and the 99th of all times
 *   cpu    the first cpu=N of them (all) on `threads` threads (16) and the first one=N of them (all) on one thread,
 *          each three times, or fewer if that has taken 10 seconds
 *
 * and the hits of the first cpu=N are compared. A searcher on the device has planners=N threads (8) that plan. With
 * topics=FILE the index at `path` is taken as it is, and the queries are the first N of the file's lines (all), a
 * number and a colon before them left out, that have an AND hit; with operators=1 they may have phrases, in quotes.
 * Devices that are named have the whole index each or, with partition=1, a part each; memory=MB is then the bound of
 * one. Prints what it runs on as comments, and rows: mode, processor, evaluator, threads, k, queries, what is measured,
 * median, min, max, n, unit. Ends with status 1 if a hit differs.
 *
 * With another gpuir.h and gpuir_cuda.o, this program measures them in the same way: see tools/scripts/old_new.py. */
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"

#include "ceilings.h"
#include "head.h"
#include "synth.h"

#define MOST_ROUNDS 99
#define MOST_SEARCHERS 64
#define PASSES 4 /* even: see run_in_flight */
#define CPU_ROUNDS 3
#define CPU_SECONDS 10.0 /* once so much time is spent, the CPU answers no more */

static const char *option(int argc, char **argv, const char *name, const char *otherwise) {
  size_t n = strlen(name);
  int i;
  for (i = 1; i < argc; i++)
    if (!strncmp(argv[i], name, n) && argv[i][n] == '=') return argv[i] + n + 1;
  return otherwise;
}

static size_t option_number(int argc, char **argv, const char *name, size_t otherwise) {
  const char *text = option(argc, argv, name, NULL);
  return text ? (size_t)strtoull(text, NULL, 10) : otherwise;
}

static void die(const char *what, const gpuir_error *err) {
  printf("# %s: %s\n", what, err ? err->msg : "failed");
  exit(1);
}

static double now(void) { return (double)gpuir__now() * 1e-9; }

typedef struct bench {
  synth_desc desc;
  synth *web;
  gpuir_index *ix;
  gpuir_cuda *cuda;
  gpuir_query **q;
  char **texts; /* of topics; NULL: the queries are generated */
  int operators; /* of topics: 1: they may have phrases */
  size_t nq, k, ncpu, none, rounds, alone, call, searchers, join;
  unsigned threads, planners;
  double postings; /* of a query */
  ceilings most;
  gpuir_hit *hits, *cpu_hits;
  uint32_t *counts, *cpu_counts;
  size_t wrong; /* queries with other hits than the CPU's */
} bench;

/* What is measured, beside its value. */
typedef struct measured {
  const char *mode, *who, *evaluator;
  unsigned threads;
  size_t queries;
} measured;

static void row(const bench *b, const measured *m, const char *what, double *values, size_t n, const char *unit) {
  const spread s = spread_of(values, n);
  printf("%s\t%s\t%s\t%u\t%u\t%u\t%s\t%.6g\t%.6g\t%.6g\t%u\t%s\n", m->mode, m->who, m->evaluator, m->threads,
      (unsigned)b->k, (unsigned)m->queries, what, s.median, s.least, s.most, (unsigned)n, unit);
  (void)fflush(stdout);
}

static gpuir_searcher *searcher(bench *b, int evaluator, unsigned threads, int cuda) {
  gpuir_searcher_desc d;
  gpuir_searcher *s;
  gpuir_error err;
  memset(&d, 0, sizeof d);
  d.evaluator = evaluator;
  d.threads = threads;
  if (gpuir_searcher_create(b->ix, &d, &s, NULL)) die("searcher", NULL);
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

#if GPUIR_BACKEND_VERSION >= 2
/* All queries in batches of b->call, the next one begun before one is finished, PASSES times in a row; every other pass
 * writes elsewhere, as two may be in flight. Returns how long a pass takes. */
static double run_in_flight(bench *b, gpuir_searcher *s) {
  const size_t calls = (b->nq + b->call - 1) / b->call;
  gpuir_hit *other_hits = (gpuir_hit *)malloc(b->nq * b->k * sizeof *other_hits);
  uint32_t *other_counts = (uint32_t *)malloc(b->nq * sizeof *other_counts);
  gpuir_batch *batch[2] = {NULL, NULL};
  gpuir_batch_desc d;
  double t, spent;
  size_t i, which = 0;
  memset(other_hits, 1, b->nq * b->k * sizeof *other_hits); /* its pages are there */
  memset(other_counts, 1, b->nq * sizeof *other_counts);
  t = now();
  memset(&d, 0, sizeof d);
  d.k = b->k;
  for (i = 0; i < PASSES * calls || batch[0] || batch[1]; i++, which ^= 1) {
    const size_t from = i % calls * b->call;
    if (batch[which] && gpuir_search_finish(batch[which])) die("search", NULL);
    batch[which] = NULL;
    if (i >= PASSES * calls) continue;
    d.queries = (const gpuir_query *const *)b->q + from;
    d.nq = b->nq - from < b->call ? b->nq - from : b->call;
    d.hits = (i / calls % 2 ? b->hits : other_hits) + from * b->k; /* the last pass's are compared */
    d.counts = (i / calls % 2 ? b->counts : other_counts) + from;
    if (gpuir_search_begin(s, &d, &batch[which])) die("search", NULL);
  }
  spent = (now() - t) / PASSES;
  free(other_hits);
  free(other_counts);
  return spent;
}
#else
static double run_in_flight(bench *b, gpuir_searcher *s) {
  (void)b, (void)s;
  return 0;
}
#endif

static const char *const evaluators[] = {"pruned", "exhaustive"}; /* GPUIR_EVAL_AUTO, GPUIR_EVAL_EXHAUSTIVE */

static void compare(bench *b) {
  size_t i, bad = 0;
  for (i = 0; i < b->ncpu; i++)
    bad += b->counts[i] != b->cpu_counts[i] ||
        memcmp(b->hits + i * b->k, b->cpu_hits + i * b->k, b->counts[i] * sizeof *b->hits) != 0;
  if (bad) printf("# HITS OF %u OF %u QUERIES DIFFER FROM THE CPU'S\n", (unsigned)bad, (unsigned)b->ncpu);
  else if (b->ncpu) printf("# all hits of %u queries equal the CPU's\n", (unsigned)b->ncpu);
  b->wrong += bad;
}

/* Puts 0 to n - 1 into an order that is random, and the same for each seed. */
static void shuffle(size_t *order, size_t n, uint64_t seed) {
  synth_rng r = {seed};
  size_t i;
  for (i = 0; i < n; i++) order[i] = i;
  for (i = n; i > 1; i--) {
    const size_t at = synth_below(&r, (uint32_t)i), last = order[i - 1];
    order[i - 1] = order[at];
    order[at] = last;
  }
}

/* Answers a query alone; returns how long that took, host to host, in us. Its hits are compared with the CPU's. */
static double answer_alone(bench *b, gpuir_searcher *s, size_t i, gpuir_hit *hits, size_t *bad) {
  const double start = now();
  size_t got;
  double spent;
  if (gpuir_search(s, b->q[i], hits, b->k, &got)) die("search", NULL);
  spent = (now() - start) * 1e6;
  if (i < b->ncpu && (got != b->cpu_counts[i] || memcmp(hits, b->cpu_hits + i * b->k, got * sizeof *hits) != 0)) ++*bad;
  return spent;
}

/* Percentiles of single queries, each round of them in another random order: of their medians, and of all times. */
static void alone(bench *b, gpuir_searcher *s, const measured *m) {
  double *all = (double *)calloc(b->nq * b->alone, sizeof *all), *one = (double *)calloc(b->nq, sizeof *one), p;
  size_t *order = (size_t *)calloc(b->nq, sizeof *order), bad = 0, i, r;
  gpuir_hit *hits = (gpuir_hit *)calloc(b->k, sizeof *hits);
  for (r = 0; r < b->alone; r++) {
    shuffle(order, b->nq, r + 1);
    for (i = 0; i < b->nq; i++) all[order[i] * b->alone + r] = answer_alone(b, s, order[i], hits, &bad);
  }
  for (i = 0; i < b->nq; i++) one[i] = spread_of(all + i * b->alone, b->alone).median;
  (void)spread_of(one, b->nq); /* sorts, as below */
  (void)spread_of(all, b->nq * b->alone);
  if (bad) printf("# HITS OF %u QUERIES ALONE DIFFER FROM THE CPU'S\n", (unsigned)bad);
  b->wrong += bad;
  p = one[b->nq / 2];
  row(b, m, "alone-p50", &p, 1, "us");
  p = one[b->nq * 99 / 100];
  row(b, m, "alone-p99", &p, 1, "us");
  p = all[b->nq * b->alone * 99 / 100];
  row(b, m, "alone-all-p99", &p, 1, "us");
  free(all);
  free(one);
  free(order);
  free(hits);
}

/* A thread with a searcher of its own, which answers all queries. */
typedef struct member {
  bench *b;
  gpuir_searcher *s;
  gpuir_hit *hits;
  uint32_t *counts;
} member;

static void *member_run(void *p) {
  const member *m = (const member *)p;
  (void)run(m->b, m->s, m->b->nq, m->hits, m->counts);
  return NULL;
}

/* Queries a second of b->searchers threads at once. */
static void together(bench *b, const char *mode, int evaluator) {
  const measured what = {mode, "cuda", evaluators[evaluator], (unsigned)b->searchers, b->nq};
  member m[MOST_SEARCHERS];
  pthread_t thread[MOST_SEARCHERS];
  double rate[MOST_ROUNDS + 1];
  const size_t n = b->searchers;
  size_t i, r;
  for (i = 0; i < n; i++) {
    m[i].b = b;
    m[i].s = searcher(b, evaluator, b->planners, 1);
    m[i].hits = (gpuir_hit *)calloc(b->nq * b->k, sizeof *b->hits);
    m[i].counts = (uint32_t *)calloc(b->nq, 4);
  }
  for (r = 0; r <= b->rounds; r++) { /* the first one warms up */
    const double start = now();
    for (i = 0; i < n; i++)
      if (pthread_create(&thread[i], NULL, member_run, &m[i])) die("thread", NULL);
    for (i = 0; i < n; i++) (void)pthread_join(thread[i], NULL);
    rate[r] = (double)(b->nq * n) / (now() - start);
  }
  row(b, &what, "together", rate + 1, b->rounds, "queries/s");
  for (i = 0; i < n; i++) {
    gpuir_searcher_destroy(m[i].s);
    free(m[i].hits);
    free(m[i].counts);
  }
}

/* What the caller's thread did since *before, for so many queries. */
static void print_host(const bench *b, const gpuir_cuda_info *before, double queries) {
  gpuir_cuda_info after;
  gpuir_cuda_get_info(b->cuda, &after);
  printf("# host ns a query: plan %.0f send %.0f wait %.0f deliver %.0f\n",
      (double)(after.plan_ns - before->plan_ns) / queries, (double)(after.send_ns - before->send_ns) / queries,
      (double)(after.wait_ns - before->wait_ns) / queries, (double)(after.deliver_ns - before->deliver_ns) / queries);
}

static void on_cuda(bench *b, const char *mode, int evaluator) {
  const measured m = {mode, "cuda", evaluators[evaluator], 1, b->nq};
  gpuir_searcher *s = searcher(b, evaluator, b->planners, 1);
  double rate[MOST_ROUNDS], second;
  gpuir_cuda_info before;
  size_t i;
  (void)run(b, s, b->nq, b->hits, b->counts);
  gpuir_cuda_get_info(b->cuda, &before);
  for (i = 0; i < b->rounds; i++) rate[i] = (double)b->nq / run(b, s, b->nq, b->hits, b->counts);
  compare(b);
  row(b, &m, "batch", rate, b->rounds, "queries/s");
  print_host(b, &before, (double)(b->nq * b->rounds));
  if (b->call && GPUIR_BACKEND_VERSION >= 2) {
    double in_flight[MOST_ROUNDS];
    memset(b->counts, 0, b->nq * sizeof *b->counts);
    for (i = 0; i < b->rounds; i++) in_flight[i] = (double)b->nq / run_in_flight(b, s);
    compare(b);
    row(b, &m, "in-flight", in_flight, b->rounds, "queries/s");
  }
  if (b->searchers > 1) together(b, mode, evaluator);
  second = b->postings * rate[b->rounds / 2];
  if (b->alone) alone(b, s, &m);
  if (evaluator && b->most.copy > 0) /* every posting is added once; 4 bytes a document are cleared */
    printf("# %.1f G postings/s: %.1f %% of the additions, clearing %.1f %% of clearing and looking\n", second * 1e-9,
        100 * second / b->most.adds,
        100 * (double)gpuir__only(b->ix)->stat.documents * 4 * rate[b->rounds / 2] / b->most.clears);
  (void)fflush(stdout);
  gpuir_searcher_destroy(s);
}

/* The first n queries, which are answered once before. */
static void on_cpu(bench *b, const char *mode, int evaluator, unsigned threads, size_t n) {
  const measured m = {mode, "cpu", evaluators[evaluator], threads, n};
  gpuir_searcher *s = searcher(b, evaluator, threads, 0);
  double rate[CPU_ROUNDS], spent = 0;
  size_t i = 0;
  if (threads > 1) (void)run(b, s, n, b->cpu_hits, b->cpu_counts);
  while (i < CPU_ROUNDS && spent < CPU_SECONDS) {
    const double t = run(b, s, n, b->cpu_hits, b->cpu_counts);
    spent += t;
    rate[i++] = (double)n / t;
  }
  row(b, &m, "batch", rate, i, "queries/s");
  gpuir_searcher_destroy(s);
}

static void parse_queries(bench *b, unsigned mode) {
  double df = 0;
  size_t i;
  for (i = 0; i < b->nq; i++) {
    char text[4096];
    const char *asked = text;
    gpuir_query_desc qd;
    gpuir_error err;
    unsigned j;
    size_t at = 0;
    memset(&qd, 0, sizeof qd);
    qd.mode = (int)mode;
    qd.no_operators = b->texts && !b->operators;
    for (j = 0; j < b->join && !b->texts; j++) { /* each leaves room for one more */
      synth_query(b->web, (uint32_t)((i * b->join + j) % b->desc.queries), text + at, 512);
      at += strlen(text + at);
      text[at++] = ' ';
    }
    text[at ? at - 1 : 0] = 0;
    if (b->texts) asked = b->texts[i];
    if (gpuir_query_parse(b->ix, &qd, asked, strlen(asked), &b->q[i], &err)) die("query", &err);
    for (j = 0; j < b->q[i]->n; j++) df += (double)b->q[i]->terms[j].df;
  }
  b->postings = df / (double)b->nq;
}

static void bench_mode(bench *b, unsigned mode, const char *name, const char *ways) {
  int evaluator;
  size_t i;
  parse_queries(b, mode);
  printf("# %s: %u queries, %.2f M postings each\n", name, (unsigned)b->nq, b->postings * 1e-6);
  for (evaluator = GPUIR_EVAL_AUTO; evaluator <= GPUIR_EVAL_EXHAUSTIVE; evaluator++) {
    if (!strstr(ways, evaluators[evaluator]) || (!mode && evaluator)) continue; /* AND's are the same */
    if (b->ncpu) on_cpu(b, name, evaluator, b->threads, b->ncpu);
    if (b->none) on_cpu(b, name, evaluator, 1, b->none);
    on_cuda(b, name, evaluator);
  }
  for (i = 0; i < b->nq; i++) gpuir_query_destroy(b->q[i]);
}

/* All modes for k. */
static void bench_k(bench *b, const char *modes, const char *ways) {
  static const char *const names[] = {"and", "or", "andor"};
  unsigned mode;
  b->q = (gpuir_query **)calloc(b->nq, sizeof *b->q);
  b->hits = (gpuir_hit *)calloc(b->nq * b->k, sizeof *b->hits);
  b->cpu_hits = (gpuir_hit *)calloc(b->nq * b->k, sizeof *b->hits);
  b->counts = (uint32_t *)calloc(b->nq, 4);
  b->cpu_counts = (uint32_t *)calloc(b->nq, 4);
  for (mode = 0; mode < 3; mode++) {
    const char *at = strstr(modes, names[mode]);
    if (at && !(mode == 1 && at > modes && at[-1] == 'd')) bench_mode(b, mode, names[mode], ways);
  }
  free(b->q);
  free(b->hits);
  free(b->cpu_hits);
  free(b->counts);
  free(b->cpu_counts);
}

/* Returns whether all of a text's words are in one document. */
static int has_and_hit(const bench *b, gpuir_searcher *s, const char *text) {
  gpuir_query_desc qd;
  gpuir_query *q;
  gpuir_hit hit;
  size_t n = 0;
  memset(&qd, 0, sizeof qd);
  qd.no_operators = !b->operators;
  if (gpuir_query_parse(b->ix, &qd, text, strlen(text), &q, NULL)) return 0;
  if (gpuir_search(s, q, &hit, 1, &n)) die("search", NULL);
  gpuir_query_destroy(q);
  return n != 0;
}

/* The lines of a file that have an AND hit, at most b->nq. */
static void read_topics(bench *b, const char *path) {
  gpuir_searcher *s = searcher(b, GPUIR_EVAL_AUTO, 1, 0);
  FILE *f = fopen(path, "r");
  char line[4096];
  size_t lines = 0, n = 0, room = 0;
  if (!f) die(path, NULL);
  while (n < b->nq && fgets(line, sizeof line, f)) {
    const size_t digits = strspn(line, "0123456789");
    const char *text = digits && line[digits] == ':' ? line + digits + 1 : line;
    line[strcspn(line, "\r\n")] = 0;
    lines++;
    if (!has_and_hit(b, s, text)) continue;
    if (n == room) b->texts = (char **)realloc(b->texts, (room = 2 * room + 1024) * sizeof *b->texts);
    b->texts[n] = (char *)malloc(strlen(text) + 1);
    strcpy(b->texts[n++], text);
  }
  (void)fclose(f);
  gpuir_searcher_destroy(s);
  printf("# topics: %u of %u lines of %s have an AND hit\n", (unsigned)n, (unsigned)lines, path);
  if (!n) die("no topics", NULL);
  b->nq = n;
}

/* The index of the description, which is generated unless it is at `path`. */
static void open_index(bench *b, const char *path, const char *topics) {
  char description[256];
  gpuir_index_info x;
  gpuir_error err;
  double t = now();
  if (topics) {
    if (gpuir_open(path, NULL, &b->ix, &err)) die("open", &err);
    read_topics(b, topics);
  } else if (synth_open(&b->desc, &b->web, &err)) {
    die("synth", &err);
  } else {
    synth_describe(b->web, description, sizeof description);
  }
  if (topics) {
    b->desc.codec = gpuir__only(b->ix)->meta.codec;
    b->desc.freq_codec = gpuir__only(b->ix)->meta.freq_codec;
  } else if (gpuir_open(path, NULL, &b->ix, &err) || strcmp(gpuir__only(b->ix)->meta.description, description) != 0 ||
      strcmp(gpuir__only(b->ix)->meta.codec, b->desc.codec) != 0 ||
      strcmp(gpuir__only(b->ix)->meta.freq_codec, b->desc.freq_codec) != 0) {
    gpuir_close(b->ix);
    if (synth_write(b->web, path, &err)) die("synth", &err);
    if (gpuir_open(path, NULL, &b->ix, &err)) die("open", &err);
  }
  (void)gpuir_index_get_info(b->ix, &x);
  printf("# index: %llu documents, %llu lists, %llu postings, clustering %g, %s and %s (%.1f s)\n",
      (unsigned long long)x.documents, (unsigned long long)x.terms, (unsigned long long)x.postings, b->desc.clustering,
      b->desc.codec, b->desc.freq_codec, now() - t);
  printf("# bits a posting: docIDs %.2f, frequencies %.2f, directory %.2f\n",
      8.0 * (double)x.docids_bytes / (double)x.postings, 8.0 * (double)x.freqs_bytes / (double)x.postings,
      8.0 * (double)x.directory_bytes / (double)x.postings);
}

#ifdef GPUIR_MAX_DEVICES
/* The devices that "0,1" names. */
static void name_devices(gpuir_cuda_desc *desc, const char *names, int partition) {
  static int devices[GPUIR_MAX_DEVICES];
  for (; *names && desc->ndevices < GPUIR_MAX_DEVICES; names += strcspn(names, ","), names += *names == ',')
    devices[desc->ndevices++] = atoi(names);
  desc->devices = desc->ndevices ? devices : NULL;
  desc->partition = partition;
}
#endif

static void open_device(bench *b, const gpuir_cuda_desc *desc, int measure) {
  gpuir_cuda_info info;
  gpuir_error err;
  double t;
  if (measure && !ceilings_measure(&b->most))
    printf(
        "# ceilings: copy %.0f GB/s read and written, %.2f T warp instructions/s, %.0f G additions/s in "
        "shared memory, %.1f TB/s clearing and looking there\n",
        b->most.copy * 1e-9, b->most.issue * 1e-12, b->most.adds * 1e-9, b->most.clears * 1e-12);
  t = now();
  if (gpuir_cuda_open(b->ix, desc, &b->cuda, &err)) die("cuda", &err);
  gpuir_cuda_get_info(b->cuda, &info);
  printf("# device: %s, driver %d, runtime %d: %.2f GB resident, %.2f GB in all (%.3f s)\n", info.device,
      info.driver_version, info.runtime_version, (double)info.index_bytes * 1e-9, (double)info.used_memory * 1e-9,
      now() - t);
}

/* What the device's list cache did, if the index is not all there. */
static void print_cache(const bench *b) {
  gpuir_cuda_info info;
  gpuir_cuda_get_info(b->cuda, &info);
  if (info.lists_hit + info.lists_missed)
    printf("# list cache: %llu lists found on the device, %llu sent, %.1f %% found\n",
        (unsigned long long)info.lists_hit, (unsigned long long)info.lists_missed,
        100.0 * (double)info.lists_hit / (double)(info.lists_hit + info.lists_missed));
}

int main(int argc, char **argv) {
  const char *modes = option(argc, argv, "modes", "and,or"), *ways = option(argc, argv, "ways", "pruned,exhaustive"),
             *ks = option(argc, argv, "k", "10"), *topics = option(argc, argv, "topics", NULL);
  gpuir_cuda_desc cd;
  bench b;
  memset(&b, 0, sizeof b);
  memset(&cd, 0, sizeof cd);
  b.desc.documents = (uint32_t)option_number(argc, argv, "documents", 25200000);
  b.desc.queries = 10000;
  b.desc.clustering = atof(option(argc, argv, "clustering", "0"));
  b.desc.seed = 1;
  b.desc.codec = option(argc, argv, "codec", "bp128");
  b.desc.freq_codec = option(argc, argv, "freq-codec", "bp128");
  b.threads = b.desc.threads = (unsigned)option_number(argc, argv, "threads", 16);
  b.nq = option_number(argc, argv, "queries", topics ? SIZE_MAX : 1000);
  if (!topics && (!b.nq || b.nq > b.desc.queries)) b.nq = b.desc.queries;
  b.rounds = option_number(argc, argv, "rounds", 7);
  if (!b.rounds || b.rounds > MOST_ROUNDS) b.rounds = 7;
  b.alone = option_number(argc, argv, "alone", 7);
  if (b.alone > MOST_ROUNDS) b.alone = MOST_ROUNDS;
  b.call = option_number(argc, argv, "call", 0);
  b.operators = option_number(argc, argv, "operators", 0) != 0;
  b.join = option_number(argc, argv, "join", 1);
  if (!b.join || b.join > 7) b.join = 1;
  b.searchers = option_number(argc, argv, "searchers", 0);
  if (b.searchers > MOST_SEARCHERS) b.searchers = MOST_SEARCHERS;
  cd.memory = (uint64_t)option_number(argc, argv, "memory", 0) << 20;
  cd.batch = option_number(argc, argv, "batch", 0);
  cd.threshold = (uint64_t)(atof(option(argc, argv, "threshold", "0")) * 1e6);
#ifdef GPUIR_MAX_DEVICES
  name_devices(&cd, option(argc, argv, "devices", ""), option_number(argc, argv, "partition", 0) != 0);
#endif
  b.planners = (unsigned)option_number(argc, argv, "planners", 8);
  print_head(argc, argv);
  open_index(&b, option(argc, argv, "path", "/tmp/gpuir-bench.index"), topics);
  b.ncpu = option_number(argc, argv, "cpu", b.nq);
  b.none = option_number(argc, argv, "one", b.ncpu);
  if (b.ncpu > b.nq) b.ncpu = b.nq;
  if (b.none > b.nq) b.none = b.nq;
  open_device(&b, &cd, option_number(argc, argv, "ceilings", 1) != 0);
  printf("mode\tprocessor\tevaluator\tthreads\tk\tqueries\twhat\tmedian\tmin\tmax\tn\tunit\n");
  for (; *ks; ks += strcspn(ks, ","), ks += *ks == ',') {
    b.k = (size_t)strtoull(ks, NULL, 10);
    if (b.k) bench_k(&b, modes, ways);
  }
  print_cache(&b);
  gpuir_cuda_close(b.cuda);
  gpuir_close(b.ix);
  synth_close(b.web);
  return b.wrong ? 1 : 0;
}
