/* bench_lab.c - decoding to memory, against what a copy reaches: bp128 by width, and every codec on long lists in
 * random and in clustered order. (gpuir lab measures the rest, beside the CPU.) `bench_lab profile` runs each
 * kernel on little data instead, for a profiler: see tools/scripts/ncu_table.py.
 *
 * Writes rows "figure, series, x, y, unit, min, max, n" (TSV), y the median of n, to standard output behind what they
 * were measured on, and a table to standard error. */
#define GPUIR_IMPLEMENTATION
#include "tools/lab/gpuir_lab.h"

#include "head.h"
#include "synth.h"

#include "lists.h"

#define ROUNDS 7 /* after one that warms up */

static const char *const codecs[] = {"bp128", "vbyte", "pfd", "newpfd", "optpfd", "ef", "qs", "rice", "pfd-list",
    "parapfor", "lrc", "lrcseg", "seglrc", "hslrc"};
#define CODECS (sizeof codecs / sizeof codecs[0])

static void row(const char *figure, const char *series, double x, spread y, double by, unsigned n, const char *unit) {
  printf("%s\t%s\t%.10g\t%.6g\t%s\t%.6g\t%.6g\t%u\n", figure, series, x, y.median * by, unit, y.least * by, y.most * by,
      n);
  (void)fflush(stdout);
}

static void die(const gpuir_error *err) {
  (void)fprintf(stderr, "bench_lab: %s\n", err->msg);
  exit(1);
}

static gpuir_cuda_lab *open_room(const lists *l, const char *codec, uint32_t copies, size_t queries, uint64_t room) {
  gpuir_cuda_lab_desc desc;
  gpuir_cuda_lab *lab;
  gpuir_error err;
  memset(&desc, 0, sizeof desc);
  desc.codec = codec;
  desc.lists = (const uint32_t *const *)l->docs;
  desc.lengths = l->n;
  desc.nlists = l->count;
  desc.copies = copies;
  desc.queries = queries;
  desc.terms = (uint32_t)(queries * 8);
  desc.room = room;
  if (gpuir_cuda_lab_open(&desc, &lab, &err)) die(&err);
  return lab;
}

static gpuir_cuda_lab *open_lab(const lists *l, const char *codec, uint32_t copies) {
  return open_room(l, codec, copies, 0, 0);
}

static uint64_t total(const lists *l) {
  uint64_t n = 0;
  size_t i;
  for (i = 0; i < l->count; i++) n += l->n[i];
  return n;
}

/* Decodes all of a lab. *share: the part of the copy's rate that is reached. */
static void decode_all(gpuir_cuda_lab *lab, size_t lists_in_all, const char *figure, const char *series, double x,
    const char *how, double *share) {
  gpuir_cuda_lab_result r, copy;
  gpuir_error err;
  double times[ROUNDS], bytes;
  spread rate; /* of 1/ms */
  unsigned i;
  if (gpuir_cuda_lab_copy(lab, ROUNDS, &copy, &err)) die(&err);
  if (gpuir_cuda_lab_decode(lab, 0, lists_in_all, how, 1, NULL, &r, &err)) die(&err);
  for (i = 0; i < ROUNDS; i++) {
    if (gpuir_cuda_lab_decode(lab, 0, lists_in_all, how, 1, NULL, &r, &err)) die(&err);
    times[i] = 1 / r.ms;
  }
  rate = spread_of(times, ROUNDS);
  bytes = ((double)r.bytes + 4.0 * (double)r.values) / 1e6;
  *share = bytes * rate.median / ((double)copy.bytes / copy.ms / 1e6);
  row(figure, series, x, rate, (double)r.values / 1e6, ROUNDS, "G values/s");
  row(figure, series, x, rate, bytes, ROUNDS, "GB/s read + written");
  row(figure, series, x, rate, 100 * *share / rate.median, ROUNDS, "% of the copy rate");
  (void)fprintf(stderr,
      "%-10s %-9s %5g  %6.2f bits  %4.2f G values  %8.3f ms %7.1f G values/s %7.1f GB/s %5.1f %% of copy%s\n", figure,
      series, x, 8.0 * (double)r.bytes / (double)r.values, (double)r.values / 1e9, 1 / rate.median,
      (double)r.values / 1e6 * rate.median, bytes * rate.median, *share * 100, r.mismatches ? "  WRONG" : "");
}

static void bench_decode(void) {
  const uint64_t want = (uint64_t)1 << 30;
  double sum = 0, share;
  unsigned b, i, k;
  const spread mean = {1, 1, 1};
  lists l = {NULL, NULL, 0, 0};
  for (b = 2; b <= 16; b++) {
    gpuir_cuda_lab *lab;
    uint32_t copies;
    for (i = 0; i < 8; i++) lists_add_width(&l, b < 12 ? 1u << 19 : 1u << (30 - b), b, b * 100 + i);
    copies = (uint32_t)((want + total(&l) - 1) / total(&l));
    lab = open_lab(&l, "bp128", copies);
    decode_all(lab, l.count * copies, "decode-width", "bp128", b, NULL, &share);
    sum += share;
    gpuir_cuda_lab_close(lab);
    lists_free(&l);
  }
  (void)fprintf(stderr, "bp128, mean of widths 2 to 16: %.1f %% of the copy rate\n", sum / 15 * 100);
  row("decode-width", "bp128 mean", 0, mean, sum / 15 * 100, 1, "% of the copy rate");
  for (k = 0; k < 2; k++) {
    uint32_t copies;
    for (i = 0; i < 12; i++) lists_add_synth(&l, 25200000, 20000u << i % 9, k ? 0.8 : 0, 900 + i);
    copies = (uint32_t)((want + total(&l) - 1) / total(&l));
    for (i = 0; i < CODECS; i++) {
      gpuir_cuda_lab *lab = open_lab(&l, codecs[i], copies);
      decode_all(lab, l.count * copies, k ? "decode-clustered" : "decode-random", codecs[i], 0, NULL, &share);
      gpuir_cuda_lab_close(lab);
    }
    lists_free(&l);
  }
}

/* ---- each kernel, on little data ---- */

/* What a launch of the kernels of that name works on. */
static void per(const char *kernel, double n, const char *unit) {
  printf("# per %s %.0f %s\n", kernel, n, unit);
  (void)fflush(stdout);
}

static void profile_decode(void) {
  lists l = {NULL, NULL, 0, 0};
  gpuir_cuda_lab_result r;
  gpuir_error err;
  unsigned i;
  for (i = 0; i < 7; i++) lists_add_synth(&l, 25200000, 20000u << i, 0, 900 + i);
  per("gcl_decode", (double)total(&l) * 4, "values");
  per("gcl_pfl_node", (double)total(&l) * 4, "values");
  per("gcl_pfl_tiles", (double)l.n[6], "values");
  per("gcl_pfl_exceptions", (double)l.n[6], "values");
  per("gcl_qs_", (double)l.n[4], "values");
  for (i = 0; i < CODECS; i++) {
    gpuir_cuda_lab *lab = open_lab(&l, codecs[i], 4);
    if (gpuir_cuda_lab_decode(lab, 0, l.count * 4, NULL, 1, NULL, &r, &err)) die(&err);
    if (!strcmp(codecs[i], "pfd-list") && gpuir_cuda_lab_decode(lab, 6, 1, NULL, 1, NULL, &r, &err)) die(&err);
    gpuir_cuda_lab_close(lab);
  }
  for (i = 0; i < 2; i++) {
    gpuir_cuda_lab *lab = open_room(&l, "qs", 1, 1, (uint64_t)l.n[6] * 40);
    if (gpuir_cuda_lab_decode(lab, 4, 1, i ? "steps" : "naive", 1, NULL, &r, &err)) die(&err);
    gpuir_cuda_lab_close(lab);
  }
  lists_free(&l);
}

static void intersect(gpuir_cuda_lab *lab, const uint32_t *q, const uint32_t *start, size_t nq, const char *method,
    int coded, uint32_t *counts) {
  gpuir_cuda_lab_way way;
  gpuir_error err;
  int status;
  memset(&way, 0, sizeof way);
  way.method = method;
  way.coded = coded;
  way.repeat = 1;
  status = gpuir_cuda_lab_intersect(lab, q, start, nq, &way, counts, NULL, NULL, &err);
  if (status && status != GPUIR_E_UNSUPPORTED) die(&err);
}

/* Queries of two lists, so that each method has one round. */
static void profile_intersect(void) {
  static const char *const coded[] = {"bp128", "ef", "hslrc", "lrc"};
  enum { NQ = 512 };
  lists l = {NULL, NULL, 0, 0};
  uint32_t q[2 * NQ], start[NQ + 1], counts[NQ];
  double candidates = 0, both = 0;
  unsigned i, c, m;
  synth_rng r = {9};
  for (i = 0; i < 60; i++)
    lists_add_synth(&l, 1050000, (uint32_t)(1000 * exp(synth_unit(&r) * log(400.0))), 0, 5000 + i);
  for (i = 0; i < NQ; i++) {
    const uint32_t a = synth_below(&r, 60), b = (a + 1 + synth_below(&r, 59)) % 60;
    q[2 * i] = a;
    q[2 * i + 1] = b;
    start[i] = 2 * i;
    candidates += gpuir__min32(l.n[a], l.n[b]);
    both += (double)l.n[a] + l.n[b];
  }
  start[NQ] = 2 * NQ;
  per("gcl_", candidates, "candidates");
  per("gcl_mergepath", both, "docIDs");
  per("gcl_expand", both - candidates, "docIDs");
  for (c = 0; c < sizeof coded / sizeof coded[0]; c++) {
    gpuir_cuda_lab *lab = open_room(&l, coded[c], 1, NQ, NQ * (uint64_t)130000);
    for (m = 0; gpuir_cuda_lab_method(m); m++) {
      const char *method = gpuir_cuda_lab_method(m);
      if (!c) intersect(lab, q, start, NQ, method, 0, counts);
      if (c < 2 || !strcmp(method, "skip") || !strcmp(method, "algorithm1"))
        intersect(lab, q, start, NQ, method, 1, counts);
    }
    gpuir_cuda_lab_close(lab);
  }
  lists_free(&l);
}

static void profile_ranking(void) {
  enum { N = 20000, BATCH = 64, K = 100 };
  const uint32_t one = 7, *list = &one, n1 = 1;
  gpuir_hit *all = (gpuir_hit *)malloc((size_t)N * BATCH * sizeof *all),
            *hits = (gpuir_hit *)malloc((size_t)K * BATCH * sizeof *hits);
  uint32_t start[BATCH + 1], counts[BATCH], i;
  gpuir_cuda_lab_desc desc;
  gpuir_cuda_lab *lab;
  gpuir_cuda_lab_result x;
  gpuir_error err;
  synth_rng r = {4};
  for (i = 0; i < N * BATCH; i++) {
    all[i].docid = i % N;
    all[i].score = 1u << 20 | (uint32_t)(synth_next(&r) >> 41);
  }
  for (i = 0; i <= BATCH; i++) start[i] = i * N;
  memset(&desc, 0, sizeof desc);
  desc.lists = &list;
  desc.lengths = &n1;
  desc.nlists = 1;
  desc.queries = BATCH;
  desc.room = 2 * (uint64_t)BATCH * (N + 10000);
  if (gpuir_cuda_lab_open(&desc, &lab, &err)) die(&err);
  per("gcl_tree", N * BATCH, "keys");
  per("gcl_selection", N * BATCH, "keys");
  per("gcl_radix_sort", N * BATCH, "keys");
  for (i = 0; gpuir_cuda_lab_ranking(i); i++)
    if (gpuir_cuda_lab_topk(lab, all, start, BATCH, K, gpuir_cuda_lab_ranking(i), 1, hits, counts, &x, &err)) die(&err);
  gpuir_cuda_lab_close(lab);
  free(all);
  free(hits);
}

/* What a batch of queries works on: matches of AND, postings of OR. */
static double work_of(gpuir_index *ix, gpuir_query *const *q, size_t nq) {
  gpuir_searcher *s;
  double work = 0;
  size_t i;
  if (gpuir_searcher_create(ix, NULL, &s, NULL)) exit(1);
  for (i = 0; i < nq; i++) {
    uint64_t n = 0;
    int t;
    if (q[i]->mode == GPUIR_AND && gpuir_count(s, q[i], &n)) exit(1);
    work += (double)n;
    for (t = 0; t < (int)q[i]->n && q[i]->mode == GPUIR_OR; t++) {
      gpuir_term_info info;
      if (gpuir_term_get_info(ix, gpuir__query_id(q[i], 0, (unsigned)t), &info)) exit(1);
      work += (double)info.df;
    }
  }
  gpuir_searcher_destroy(s);
  return work;
}

/* Ranked queries by the laboratory's kernels: of two terms, 256 as AND in one batch, 4 as OR. */
static void profile_search(void) {
  static const struct {
    int mode;
    size_t n;
  } batches[] = {{GPUIR_AND, 256}, {GPUIR_OR, 4}};
  enum { K = 10, MOST = 256 };
  char path[] = "/tmp/bench_lab-XXXXXX";
  gpuir_query *q[MOST];
  gpuir_hit *hits = (gpuir_hit *)malloc(sizeof *hits * K * MOST);
  uint32_t counts[MOST];
  gpuir_query_desc desc;
  gpuir_searcher *s;
  gpuir_index *ix;
  gpuir_cuda *cuda;
  gpuir_error err;
  synth_desc d;
  synth_rng r = {21};
  size_t b, i;
  const int fd = mkstemp(path);
  if (fd < 0) exit(1);
  (void)close(fd);
  memset(&d, 0, sizeof d);
  d.documents = 1050000;
  d.terms = 400;
  d.queries = 1;
  if (synth_generate(&d, path, &err) || gpuir_open(path, NULL, &ix, &err)) die(&err);
  (void)unlink(path);
  if (gpuir_cuda_open(ix, NULL, &cuda, &err)) die(&err);
  if (gpuir_searcher_create(ix, NULL, &s, NULL)) exit(1);
  if (gpuir_cuda_lab_attach(s, cuda, "skip", "bucket-select", 0, &err)) die(&err);
  memset(&desc, 0, sizeof desc);
  for (b = 0; b < sizeof batches / sizeof batches[0]; b++) {
    const size_t n = batches[b].n;
    desc.mode = batches[b].mode;
    for (i = 0; i < n; i++) {
      char text[40];
      const uint32_t one = synth_below(&r, d.terms), two = (one + 1 + synth_below(&r, d.terms - 1)) % d.terms;
      (void)snprintf(text, sizeof text, "t%u t%u", one, two);
      if (gpuir_query_parse(ix, &desc, text, strlen(text), &q[i], &err)) die(&err);
    }
    if (desc.mode == GPUIR_AND) {
      per("gcl_score", work_of(ix, q, n), "matches");
      per("gcl_gather_keys", work_of(ix, q, n), "matches");
    } else {
      per("gcl_accumulate", work_of(ix, q, n), "postings");
      per("gcl_collect", (double)d.documents * (double)n, "documents");
    }
    if (gpuir_search_batch(s, (const gpuir_query *const *)q, n, K, hits, counts)) {
      gpuir_searcher_error(s, &err);
      die(&err);
    }
    for (i = 0; i < n; i++) gpuir_query_destroy(q[i]);
  }
  gpuir_searcher_destroy(s);
  gpuir_cuda_close(cuda);
  gpuir_close(ix);
  free(hits);
}

static void bench_profile(void) {
  profile_decode();
  profile_intersect();
  profile_ranking();
  profile_search();
}

int main(int argc, char **argv) {
  print_head(argc, argv);
  if (argc == 2 && !strcmp(argv[1], "profile")) {
    bench_profile();
    return 0;
  }
  printf("figure\tseries\tx\ty\tunit\tmin\tmax\tn\n");
  bench_decode();
  return 0;
}
