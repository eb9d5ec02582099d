/* bench.c - gpuir-mpi bench: rates and latencies of all ranks together. */
#include "mpi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct bench {
  mpi_shard shard;
  cli_gpu gpu;
  gpuir_searcher *searcher;
  cli_queries qs; /* the same on all ranks */
  uint64_t k, repeat, threads, alone;
  int modes[3], nmodes, ids, backend;
  const char *times; /* file for what each rank spends on each query alone; NULL: none */
} bench;

static const char *const mode_names[] = {"and", "or", "andor"};

static int by_time(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

/* Returns the nearest-rank percentile of n sorted times. */
static double percentile(const double *times, size_t n, double p) {
  size_t i = (size_t)(p * (double)n / 100);
  return times[i < n ? i : n - 1];
}

/* Answers the whole batch, prepared, and returns the seconds until the first rank had all hits. */
static double time_batch(mpi_search *s, const mpi_batch *b, gpuir_hit *hits) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  mpi_ask(s, b, hits, 0);
  return MPI_Wtime() - begin;
}

/* One batch of a single query of another, which stays its owner. */
static mpi_batch single(const mpi_batch *b, size_t i) {
  mpi_batch one = *b;
  one.n = 1;
  one.texts += i;
  one.lens += i;
  one.statuses += i;
  one.queries += i;
  return one;
}

/* Appends a line a query to the file of times: the mode, and the microseconds of processor time of each rank. */
static void write_times(const bench *x, int mode, const double *spent, size_t n) {
  double *all = (double *)cli_resize(NULL, n * (size_t)mpi_ranks, sizeof *all);
  FILE *f = mpi_rank ? NULL : fopen(x->times, "a");
  MPI_Gather(spent, (int)n, MPI_DOUBLE, all, (int)n, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  if (!mpi_rank && !f) cli_error("%s: %s", x->times, strerror(errno));
  for (size_t i = 0; f && i < n; i++) {
    fprintf(f, "%s", mode_names[mode]);
    for (size_t r = 0; r < (size_t)mpi_ranks; r++) fprintf(f, "\t%.2f", 1e6 * all[r * n + i]);
    fputc('\n', f);
  }
  if (f && fclose(f)) cli_error("%s: %s", x->times, strerror(errno));
  free(all);
}

/* Measures one mode. ANDOR is asked for as AND, and those that have too few hits as OR. */
static void bench_mode(bench *x, int mode) {
  mpi_search s;
  mpi_batch b, or_batch;
  const size_t n = x->qs.n, k = (size_t)x->k;
  double *times = (double *)cli_resize(NULL, (size_t)(x->repeat > x->alone ? x->repeat : x->alone), sizeof *times);
  memset(&s, 0, sizeof s);
  memset(&b, 0, sizeof b);
  s.k = k;
  s.desc.no_operators = 1;
  s.threads = (unsigned)x->threads;
  if (mpi_search_open(&s, &x->shard, x->searcher)) return;
  b.n = n;
  b.texts = x->qs.texts;
  b.lens = x->qs.lens;
  or_batch = b;
  double begin = MPI_Wtime();
  mpi_parse(&s, &b, mode == GPUIR_OR ? GPUIR_OR : GPUIR_AND, NULL);
  const double parsing = MPI_Wtime() - begin;
  gpuir_hit *hits = (gpuir_hit *)cli_resize(NULL, n * s.k, sizeof *hits);
  if (mode == GPUIR_ANDOR) { /* which of them go on is the same each time */
    mpi_ask(&s, &b, hits, 1);
    mpi_parse(&s, &or_batch, GPUIR_OR, NULL);
    for (size_t i = 0; i < n; i++) {
      if (!hits[(i + 1) * s.k - 1].score) continue;
      gpuir_query_destroy(or_batch.queries[i]);
      or_batch.queries[i] = NULL;
    }
  }
  for (uint64_t i = 0; i <= x->repeat; i++) { /* once to warm up */
    double spent = time_batch(&s, &b, hits);
    if (mode == GPUIR_ANDOR) spent += time_batch(&s, &or_batch, hits);
    if (i) times[i - 1] = spent;
    if (!i) s.spent = s.busy = 0;
  }
  double own[2] = {s.spent, s.busy}, work[2] = {0, 0}, most = 0;
  MPI_Reduce(own, work, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Reduce(&s.busy, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  const double asked = (double)x->repeat * (double)n;
  qsort(times, (size_t)x->repeat, sizeof *times, by_time);
  const double median = times[x->repeat / 2];
  const size_t alone = mode == GPUIR_ANDOR ? 0 : x->alone < n ? (size_t)x->alone : n;
  double *spent = (double *)cli_resize(NULL, alone, sizeof *spent);
  for (size_t i = 0; i < alone; i++) {
    const mpi_batch one = single(&b, i);
    s.spent = 0;
    times[i] = time_batch(&s, &one, hits);
    spent[i] = s.spent;
  }
  if (alone && x->times) write_times(x, mode, spent, alone);
  free(spent);
  if (alone) qsort(times, alone, sizeof *times, by_time);
  if (!mpi_rank) {
    printf("%s\t%zu\t%d\t%llu\t%zu\t%.2f\t%.1f\t%.2f\t%.2f\t%.2f", mode_names[mode], s.k, mpi_ranks,
        (unsigned long long)x->threads, n, 1e6 * parsing / (double)n, (double)n / median, 1e6 * work[0] / asked,
        1e6 * work[1] / asked / mpi_ranks, 1e6 * most / asked);
    if (alone) printf("\t%.1f\t%.1f\n", 1e6 * percentile(times, alone, 50), 1e6 * percentile(times, alone, 99));
    else printf("\t-\t-\n");
    cli_flush();
  }
  if (mode == GPUIR_ANDOR) mpi_batch_free(&or_batch);
  mpi_batch_free(&b);
  mpi_search_close(&s);
  free(hits);
  free(times);
}

enum { O_MODES = 2, O_K, O_REPEAT, O_THREADS, O_BACKEND, O_ALONE, O_TIMES, O_IDS, O_NO_IDS };

/* "and,or": fills the modes. */
static int read_modes(const cli_args *a, bench *x) {
  char *list = cli_copy(a->value, strlen(a->value));
  cli_args one = *a;
  int bad = 0;
  x->nmodes = 0;
  for (char *p = list; !bad;) {
    const size_t len = strcspn(p, ",");
    const int more = p[len] == ',';
    p[len] = 0;
    one.value = p;
    if (x->nmodes == 3) bad = cli_misuse("bench", "--modes: at most three");
    else bad = cli_choice(&one, "and|or|andor", &x->modes[x->nmodes]);
    x->nmodes += !bad;
    if (!more) break;
    p += len + 1;
  }
  free(list);
  return bad;
}

/* Opens this rank's shard with a searcher, and reads the queries, on every rank. */
static int open_bench(bench *x, const cli_args *a) {
  gpuir_searcher_desc sd;
  gpuir_error err;
  const cli_devices device = mpi_device(x->backend);
  int code = mpi_open(&x->shard, a->operands[0]), status;
  if (code) return code;
  memset(&sd, 0, sizeof sd);
  memset(&err, 0, sizeof err);
  sd.threads = (unsigned)x->threads;
  mpi_all_speak();
  status = gpuir_searcher_create(x->shard.index, &sd, &x->searcher, &err);
  code = status ? cli_fail(a->operands[0], status, &err) : CLI_OK;
  if (!code && (cli_gpu_open(&x->gpu, x->backend, &device, x->shard.index) || cli_gpu_attach(&x->gpu, x->searcher)))
    code = CLI_FAIL;
  if (!code) code = cli_queries_read(&x->qs, a->operands[1], x->ids);
  if (!code && !x->qs.n) {
    cli_error("%s: no queries", a->operands[1]);
    code = CLI_FAIL;
  }
  if (!code && x->qs.n * x->k > (size_t)1 << 27) {
    cli_error("%s: %zu queries times -k %llu: too many hits", a->operands[1], x->qs.n, (unsigned long long)x->k);
    code = CLI_FAIL;
  }
  code = mpi_agree(code);
  mpi_first_speaks();
  return code;
}

int mpi_bench(int argc, char **argv) {
  static const cli_option options[] = {{O_MODES, "modes", 0, 1}, {O_K, "k", 'k', 1}, {O_REPEAT, "repeat", 0, 1},
      {O_THREADS, "threads", 0, 1}, {O_BACKEND, "backend", 0, 1}, {O_ALONE, "alone", 0, 1}, {O_TIMES, "times", 0, 1},
      {O_IDS, "ids", 0, 0}, {O_NO_IDS, "no-ids", 0, 0}, {0, NULL, 0, 0}};
  bench x;
  cli_args a;
  int opt, bad = 0, code;
  memset(&x, 0, sizeof x);
  x.k = 10;
  x.repeat = 3;
  x.threads = 1;
  x.alone = 100;
  x.modes[x.nmodes++] = GPUIR_AND;
  x.modes[x.nmodes++] = GPUIR_OR;
  cli_args_start(&a, "bench", options, argc, argv);
  while (!bad && (opt = cli_next(&a)) != CLI_END) {
    switch (opt) {
    case CLI_HELP: cli_args_free(&a); return mpi_help();
    case O_MODES: bad = read_modes(&a, &x); break;
    case O_K: bad = cli_unsigned(&a, 1, 1000000, &x.k); break;
    case O_REPEAT: bad = cli_unsigned(&a, 1, 1000, &x.repeat); break;
    case O_THREADS: bad = cli_unsigned(&a, 1, 1024, &x.threads); break;
    case O_BACKEND: bad = cli_choice(&a, "cpu|gpu|auto", &x.backend); break;
    case O_ALONE: bad = cli_unsigned(&a, 0, 1000000, &x.alone); break;
    case O_TIMES: x.times = a.value; break;
    case O_IDS: x.ids = CLI_IDS_YES; break;
    case O_NO_IDS: x.ids = CLI_IDS_NO; break;
    default: bad = 1; break;
    }
  }
  code = bad ? CLI_USAGE : CLI_OK;
  if (!code && a.noperands != 2) code = cli_misuse("bench", "SHARDS and a file of QUERIES");
  if (!code) code = open_bench(&x, &a);
  if (!code) {
    if (!mpi_rank)
      printf(
          "# "
          "mode\tk\tranks\tthreads\tqueries\tparse_us\tqueries_per_s\twork_us\tbusy_us\tbusiest_us\talone_p50_us\t"
          "alone_p99_us\n");
    for (int i = 0; i < x.nmodes; i++) bench_mode(&x, x.modes[i]);
    code = cli_finish(code);
  }
  gpuir_searcher_destroy(x.searcher);
  cli_gpu_close(&x.gpu);
  mpi_close(&x.shard);
  cli_queries_free(&x.qs);
  cli_args_free(&a);
  return code;
}
