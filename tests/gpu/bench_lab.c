/* bench_lab.c - measures the laboratory's GPU methods, with the CPU's beside them
 *
 *     bench_lab [SECTION...]      decode lengths exceptions intersect pairs ranking search; all without arguments
 *
 * Writes rows "figure, series, x, y, unit" (TSV) to standard output and a table to standard error. */
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"

#include "synth.h"

#include "lists.h"

static const char *const codecs[] = {"bp128", "vbyte",    "pfd",      "newpfd", "optpfd", "ef",     "qs",
                                     "rice",  "pfd-list", "parapfor", "lrc",    "lrcseg", "seglrc", "hslrc"};
#define CODECS (sizeof codecs / sizeof codecs[0])

static void row(const char *figure, const char *series, double x, double y, const char *unit) {
  printf("%s\t%s\t%.10g\t%.6g\t%s\n", figure, series, x, y, unit);
  (void)fflush(stdout);
}

static void die(const gpuir_error *err) {
  (void)fprintf(stderr, "bench_lab: %s\n", err->msg);
  exit(1);
}

static gpuir_cuda_lab *open_desc(const lists *l, const char *codec, uint64_t param, uint32_t copies,
                                 size_t queries, uint64_t room) {
  gpuir_cuda_lab_desc desc;
  gpuir_cuda_lab *lab;
  gpuir_error err;
  memset(&desc, 0, sizeof desc);
  desc.codec = codec;
  desc.param = param;
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

static gpuir_cuda_lab *open_lab(const lists *l, const char *codec, uint64_t param, uint32_t copies) {
  return open_desc(l, codec, param, copies, 0, 0);
}

static gpuir_cuda_lab *open_room(const lists *l, const char *codec, uint64_t param, size_t queries,
                                 uint64_t room) {
  return open_desc(l, codec, param, 0, queries, room);
}

static uint64_t total(const lists *l) {
  uint64_t n = 0;
  size_t i;
  for (i = 0; i < l->count; i++) n += l->n[i];
  return n;
}

/* Decodes all of a lab; returns the part of the copy's rate that is reached. */
static double decode_all(gpuir_cuda_lab *lab, size_t lists_in_all, const char *figure, const char *series,
                         double x, const char *how, double *share) {
  gpuir_cuda_lab_result r, copy;
  gpuir_error err;
  double rate, bytes;
  if (gpuir_cuda_lab_copy(lab, 7, &copy, &err)) die(&err);
  if (gpuir_cuda_lab_decode(lab, 0, lists_in_all, how, 7, NULL, &r, &err)) die(&err);
  rate = (double)r.values / r.ms / 1e6;
  bytes = ((double)r.bytes + 4.0 * (double)r.values) / r.ms / 1e6;
  *share = bytes / ((double)copy.bytes / copy.ms / 1e6);
  row(figure, series, x, rate, "G values/s");
  row(figure, series, x, bytes, "GB/s read + written");
  row(figure, series, x, *share * 100, "% of the copy rate");
  (void)fprintf(
      stderr,
      "%-10s %-9s %5g  %6.2f bits  %4.2f G values  %8.3f ms %7.1f G values/s %7.1f GB/s %5.1f %% of copy%s\n",
      figure, series, x, 8.0 * (double)r.bytes / (double)r.values, (double)r.values / 1e9, r.ms, rate, bytes,
      *share * 100, r.mismatches ? "  WRONG" : "");
  return rate;
}

static void bench_decode(void) {
  const uint64_t want = (uint64_t)1 << 30;
  double sum = 0, share;
  unsigned b, i, k;
  lists l = {NULL, NULL, 0, 0};
  for (b = 2; b <= 16; b++) {
    gpuir_cuda_lab *lab;
    uint32_t copies;
    for (i = 0; i < 8; i++) lists_add_width(&l, b < 12 ? 1u << 19 : 1u << (30 - b), b, b * 100 + i);
    copies = (uint32_t)((want + total(&l) - 1) / total(&l));
    lab = open_lab(&l, "bp128", 0, copies);
    (void)decode_all(lab, l.count * copies, "decode-width", "bp128", b, NULL, &share);
    sum += share;
    gpuir_cuda_lab_close(lab);
    lists_free(&l);
  }
  (void)fprintf(stderr, "bp128, mean of widths 2 to 16: %.1f %% of the copy rate\n", sum / 15 * 100);
  row("decode-width", "bp128 mean", 0, sum / 15 * 100, "% of the copy rate");
  for (k = 0; k < 2; k++) {
    uint32_t copies;
    for (i = 0; i < 12; i++) lists_add_synth(&l, 25200000, 20000u << i % 9, k ? 0.8 : 0, 900 + i);
    copies = (uint32_t)((want + total(&l) - 1) / total(&l));
    for (i = 0; i < CODECS; i++) {
      gpuir_cuda_lab *lab = open_lab(&l, codecs[i], 0, copies);
      (void)decode_all(lab, l.count * copies, k ? "decode-clustered" : "decode-random", codecs[i], 0, NULL,
                       &share);
      gpuir_cuda_lab_close(lab);
    }
    lists_free(&l);
  }
}

/* ---- the CPU, one core, on the same lists ---- */

static double best_seconds(uint64_t since, double best) {
  double t = (double)(gpuir__now() - since) / 1e9;
  return t < best ? t : best;
}

/* G values/s of decoding a list block by block, the best of some runs; 0 if the codec cannot. */
static double cpu_decode(const uint32_t *docs, uint32_t n, const char *name, uint64_t param) {
  const gpuir__codec *codec = gpuir__codec_by_name(name, 1);
  gpuir_allocator a = gpuir__allocator(NULL);
  const uint32_t blocks = (n + GPUIR__BLOCK - 1) / GPUIR__BLOCK;
  uint32_t *offset = (uint32_t *)malloc((size_t)blocks * 4), *last = (uint32_t *)malloc((size_t)blocks * 4),
           i, run;
  uint8_t *width = (uint8_t *)malloc(blocks);
  uint32_t out[GPUIR__BLOCK_ROOM], sum = 0;
  gpuir__buf buf = {NULL, 0, 0};
  gpuir__stream s;
  double best = 1e9;
  size_t scratch;
  int status = codec->encode(&a, docs, n, &buf, n >= GPUIR__BLOCK ? offset : NULL,
                             n >= GPUIR__BLOCK ? width : NULL, &param);
  memset(&s, 0, sizeof s);
  if (!status && gpuir__buf_room(&a, &buf, GPUIR__STREAM_PAD)) {
    memset(buf.data + buf.len, 0, GPUIR__STREAM_PAD);
    for (i = 0; i < blocks; i++)
      last[i] = docs[gpuir__min64((uint64_t)i * GPUIR__BLOCK + GPUIR__BLOCK, n) - 1];
    s.codec = codec;
    s.bytes = buf.data;
    s.len = buf.len;
    s.n = n;
    s.limit = UINT32_MAX;
    if (n >= GPUIR__BLOCK) {
      s.offset = offset;
      s.width = width;
      s.last = last;
    }
    s.simd = gpuir__simd_level(GPUIR_SIMD_AUTO);
    scratch = codec->scratch_size ? codec->scratch_size(&s) : 0;
    s.scratch = scratch ? malloc(scratch) : NULL;
    for (run = 0; run < 7; run++) {
      uint64_t t = gpuir__now();
      if (codec->open && codec->open(&s)) break;
      for (i = 0; i < blocks; i++) {
        codec->decode_block(&s, i, i ? last[i - 1] : UINT32_MAX, out);
        sum += out[0];
      }
      best = best_seconds(t, best);
    }
    free(s.scratch);
  }
  gpuir__buf_free(&a, &buf);
  free(offset);
  free(width);
  free(last);
  return sum == 0xdeadbeef ? 0 : n / best / 1e9;
}

/* Seconds of an intersection of arrays by one of part 9's methods, without its preparation. */
static double cpu_intersect(const char *name, const uint32_t *const *docs, const uint32_t *n, unsigned k,
                            uint32_t *count) {
  const gpuir__method *method = gpuir__method_by_name(name);
  gpuir__isect *x = (gpuir__isect *)malloc(sizeof *x);
  uint32_t *out, i, most = 0;
  double best = 1e9, all = 0;
  unsigned run;
  for (i = 0; i < k; i++) most = n[i] > most ? n[i] : most;
  out = (uint32_t *)malloc((size_t)most * 4 + 256);
  if (gpuir__isect_arrays(x, NULL, method, docs, n, k, GPUIR_SIMD_AUTO)) exit(1);
  for (run = 0; run < 9 && all < 0.3; run++) {
    uint64_t t = gpuir__now();
    *count = gpuir__isect_run(x, out, NULL);
    best = best_seconds(t, best);
    all += (double)(gpuir__now() - t) / 1e9;
  }
  gpuir__isect_free(x);
  free(x);
  free(out);
  return best;
}

/* ---- decoding by the papers' tables ---- */

/* Ding 2009, Table 1 and Fig. 4; Griffin 2018, Fig. 12; Li 2014, Table 2: one list a launch, by its length. */
static void bench_lengths(void) {
  static const struct {
    const char *figure, *codec, *how;
  } ways[] = {{"ding-fig4", "pfd-list", NULL}, {"ding-fig4", "pfd-list", "gaps"},
              {"ding-table1", "rice", NULL},   {"griffin-fig12", "ef", NULL},
              {"griffin-fig12", "pfd", NULL},  {"thesis-table2", "qs", NULL},
              {"thesis-fig10", "qs", "naive"}, {"thesis-fig10", "qs", "steps"},
              {"gpuir", "bp128", NULL},        {"gpuir", "optpfd", NULL}};
  unsigned i, k;
  uint32_t df;
  for (df = 1000; df <= 10000000; df *= 10) {
    lists l = {NULL, NULL, 0, 0};
    lists_add_synth(&l, 25200000, df, 0, df);
    for (i = 0; i < sizeof ways / sizeof ways[0]; i++) {
      gpuir_cuda_lab *lab = open_room(&l, ways[i].codec, 0, 1, (uint64_t)df * 40);
      gpuir_cuda_lab_result r;
      gpuir_error err;
      char series[64];
      double cpu = ways[i].how ? 0 : cpu_decode(l.docs[0], l.n[0], ways[i].codec, 0);
      if (gpuir_cuda_lab_decode(lab, 0, 1, ways[i].how, 21, NULL, &r, &err)) die(&err);
      (void)snprintf(series, sizeof series, "%s%s%s GPU", ways[i].codec, ways[i].how ? " " : "",
                     ways[i].how ? ways[i].how : "");
      row(ways[i].figure, series, l.n[0], (double)r.values / r.ms / 1e6, "G values/s");
      (void)fprintf(stderr, "%-14s %-16s n %8u %8.4f ms %8.3f G values/s", ways[i].figure, series,
                    (unsigned)l.n[0], r.ms, (double)r.values / r.ms / 1e6);
      if (cpu > 0) {
        (void)snprintf(series, sizeof series, "%s CPU", ways[i].codec);
        row(ways[i].figure, series, l.n[0], cpu, "G values/s");
        (void)fprintf(stderr, "   one core %7.3f", cpu);
      }
      if (r.step_ms[0] > 0) {
        static const char *const steps[] = {"count", "sum", "gather", "combine"};
        for (k = 0; k < 4; k++) {
          double ms = (k < 3 ? r.step_ms[k] : r.ms) - (k ? r.step_ms[k - 1] : 0);
          (void)snprintf(series, sizeof series, "qs %s: %s", ways[i].how, steps[k]);
          row(k < 3 ? "thesis-fig8-10" : "thesis-fig8-10", series, l.n[0], ms, "ms");
          (void)fprintf(stderr, "  %s %.4f", steps[k], ms);
        }
      }
      (void)fprintf(stderr, "%s\n", r.mismatches ? "  WRONG" : "");
      gpuir_cuda_lab_close(lab);
    }
    lists_free(&l);
  }
}

/* Ao 2011, Fig. 8: decoding by the proportion of exceptions. */
static void bench_exceptions(void) {
  static const struct {
    const char *codec;
    uint32_t segment;
  } ways[] = {{"parapfor", 64}, {"lrc", 256}, {"lrcseg", 256}, {"seglrc", 256}, {"hslrc", 256}};
  unsigned i, e;
  lists l = {NULL, NULL, 0, 0};
  for (i = 0; i < 6; i++) lists_add_synth(&l, 25200000, 60000u << i, 0, 300 + i);
  for (i = 0; i < 5; i++)
    for (e = 0; e <= 6; e += 1) {
      const uint64_t param = ways[i].segment + 1024 * (e * 100 + 1);
      gpuir_cuda_lab *lab = open_lab(&l, ways[i].codec, param, 32);
      gpuir_cuda_lab_result r;
      gpuir_error err;
      double cpu = cpu_decode(l.docs[3], l.n[3], ways[i].codec, param);
      char series[64];
      if (gpuir_cuda_lab_decode(lab, 0, l.count * 32, NULL, 7, NULL, &r, &err)) die(&err);
      (void)snprintf(series, sizeof series, "%s GPU", ways[i].codec);
      row("ao-fig8", series, e * 0.1, (double)r.values / r.ms / 1e6, "G values/s");
      row("ao-fig7", ways[i].codec, e * 0.1, 32.0 * (double)r.values / (8.0 * (double)r.bytes),
          "compression ratio");
      (void)snprintf(series, sizeof series, "%s CPU", ways[i].codec);
      row("ao-fig8", series, e * 0.1, cpu, "G values/s");
      (void)fprintf(stderr,
                    "ao-fig8 %-9s exceptions %.1f  %6.2f bits  GPU %7.1f G values/s  one core %6.3f%s\n",
                    ways[i].codec, e * 0.1, 8.0 * (double)r.bytes / (double)r.values,
                    (double)r.values / r.ms / 1e6, cpu, r.mismatches ? "  WRONG" : "");
      gpuir_cuda_lab_close(lab);
    }
  lists_free(&l);
}

/* ---- intersection ---- */

/* Queries of 2 to 5 lists, the lists' lengths log-uniform as in a log of queries. */
static void make_log(const lists *l, uint32_t *q, uint32_t *start, size_t nq, uint64_t seed) {
  synth_rng r = {seed};
  size_t i, at = 0;
  for (i = 0; i < nq; i++) {
    uint32_t k = 2 + synth_below(&r, 4), j, t;
    for (j = 0; j < k; j++) {
      do q[at + j] = synth_below(&r, (uint32_t)l->count);
      while (0);
      for (t = 0; t < j; t++)
        if (q[at + t] == q[at + j]) {
          j--;
          break;
        }
    }
    at += k;
    start[i + 1] = (uint32_t)at;
  }
}

static double gpu_run(gpuir_cuda_lab *lab, const uint32_t *q, const uint32_t *start, size_t nq,
                      const char *method, int coded, uint32_t *counts, gpuir_cuda_lab_result *r) {
  gpuir_cuda_lab_way way;
  gpuir_error err;
  int status;
  memset(&way, 0, sizeof way);
  way.method = method;
  way.coded = coded;
  way.repeat = 7;
  status = gpuir_cuda_lab_intersect(lab, q, start, nq, &way, counts, NULL, r, &err);
  if (status == GPUIR_E_UNSUPPORTED) return 0;
  if (status) die(&err);
  return r->ms / 1e3;
}

/* Ao 2011, Figs. 5 and 6, Tables 3 and 7; Ding 2009, section 7: batches of queries. */
static void bench_batches(double clustering, const char *order) {
  static const char *const coded[] = {"parapfor", "bp128", "ef", "lrc", "lrcseg", "seglrc", "hslrc"};
  enum { NQ = 16384 };
  const uint32_t documents = 1050000; /* as GOV has */
  lists l = {NULL, NULL, 0, 0};
  uint32_t *q = (uint32_t *)malloc(NQ * 8 * 4), *start = (uint32_t *)calloc(NQ + 1, 4),
           *counts = (uint32_t *)malloc(NQ * 4);
  uint32_t *want = (uint32_t *)malloc(NQ * 4);
  gpuir_cuda_lab *lab;
  gpuir_cuda_lab_result r;
  double skip_seconds = 0, seconds, simd_seconds = 0;
  const size_t cpu_queries = 300;
  size_t i, nq;
  unsigned m, c;
  char series[64];
  synth_rng rng = {9};
  for (i = 0; i < 400; i++)
    lists_add_synth(&l, documents, (uint32_t)(1000 * exp(synth_unit(&rng) * log(400.0))), clustering,
                    (uint32_t)(5000 + i));
  make_log(&l, q, start, NQ, 21);
  for (i = 0; i < cpu_queries; i++) { /* one core */
    const uint32_t *docs[8];
    uint32_t n[8], k = start[i + 1] - start[i], j;
    for (j = 0; j < k; j++) {
      docs[j] = l.docs[q[start[i] + j]];
      n[j] = l.n[q[start[i] + j]];
    }
    skip_seconds += cpu_intersect("skip", docs, n, k, &want[i]);
    simd_seconds += cpu_intersect("simd", docs, n, k, &want[i]);
  }
  (void)snprintf(series, sizeof series, "skip CPU %s", order);
  row("ao-table3", series, 0, (double)cpu_queries / skip_seconds, "queries/s");
  (void)snprintf(series, sizeof series, "simd CPU %s", order);
  row("ao-table3", series, 0, (double)cpu_queries / simd_seconds, "queries/s");
  (void)fprintf(stderr, "ao-table3 %s: one core: skip list %.0f queries/s, vectors %.0f queries/s\n", order,
                (double)cpu_queries / skip_seconds, (double)cpu_queries / simd_seconds);
  for (c = 0; c < sizeof coded / sizeof coded[0]; c++) {
    lab = open_room(&l, coded[c], !strcmp(coded[c], "parapfor") ? 64 + 1024 * 201 : 0, NQ,
                    (uint64_t)NQ * 130000);
    for (m = 0; gpuir_cuda_lab_method(m); m++) {
      const char *method = gpuir_cuda_lab_method(m);
      const int plain = c == 0;
      int form;
      for (form = plain ? 0 : 1; form < 2; form++) {
        uint64_t threshold, sum, most;
        if (form && (!strcmp(method, "mergepath") || !strcmp(method, "griffin")) &&
            strcmp(coded[c], "ef") != 0)
          continue;
        for (threshold = (uint64_t)1 << 16; threshold <= (uint64_t)1 << 26; threshold *= 4) {
          most = threshold;
          for (nq = 0, sum = 0; nq < NQ && sum < most; nq++) {
            uint32_t least = UINT32_MAX, j;
            for (j = start[nq]; j < start[nq + 1]; j++) least = gpuir__min32(least, l.n[q[j]]);
            sum += least;
          }
          if (form && (!strcmp(method, "mergepath") || !strcmp(method, "griffin")) && nq > 4000) nq = 4000;
          memset(counts, 0xff, NQ * 4);
          seconds = gpu_run(lab, q, start, nq, method, form, counts, &r);
          if (!(seconds > 0)) break;
          for (i = 0; i < nq && i < cpu_queries; i++)
            if (counts[i] != want[i])
              (void)fprintf(stderr, "WRONG: query %u: %u, not %u\n", (unsigned)i, (unsigned)counts[i],
                            (unsigned)want[i]);
          (void)snprintf(series, sizeof series, "%s%s%s %s", method, form ? " in " : "", form ? coded[c] : "",
                         order);
          row("ao-fig5", series, (double)threshold, (double)nq / seconds, "queries/s");
          row("ao-fig6", series, (double)threshold, seconds * 1e3, "ms a batch");
          if (threshold == (uint64_t)1 << 26) {
            row("ao-table3", series, (double)threshold,
                (double)nq / seconds * skip_seconds / (double)cpu_queries, "times the skip list on one core");
            (void)fprintf(stderr,
                          "ao-table3 %-8s %-13s %-12s %6u queries %9.3f ms %10.0f queries/s  %7.1f G "
                          "candidates/s  %7.0f x skip list\n",
                          order, method, form ? coded[c] : "as they are", (unsigned)nq, seconds * 1e3,
                          (double)nq / seconds, (double)r.values / seconds / 1e9,
                          (double)nq / seconds * skip_seconds / (double)cpu_queries);
          }
          if (form && threshold == (uint64_t)1 << 20) {
            row("ao-table7", series, 0, (double)nq / seconds, "queries/s");
            row("ao-table7", series, 1, seconds * 1e3, "ms a batch");
          }
        }
      }
    }
    gpuir_cuda_lab_close(lab);
  }
  lists_free(&l);
  free(q);
  free(start);
  free(counts);
  free(want);
}

/* Griffin 2018, Fig. 13 (lists of like length) and Fig. 8 (by ratio, the longer one of 1 to 2 M): one pair a launch. */
static void bench_pairs(void) {
  static const char *const gpu[] = {"mergepath", "binary", "pmf0", "pmf2", "hs16", "skip"};
  static const char *const cpu[] = {"merge", "binary", "svs", "simd"};
  unsigned i, step;
  for (step = 0; step < 5 + 8; step++) {
    const int ratio = step >= 5;
    uint32_t n1 = 1000, n2, counts[1], start[2] = {0, 2}, q[2] = {0, 1}, want = 0;
    const uint32_t *docs[2];
    lists l = {NULL, NULL, 0, 0};
    gpuir_cuda_lab *lab;
    const char *figure = ratio ? "griffin-fig8" : "griffin-fig13";
    double x, seconds;
    gpuir_cuda_lab_result r;
    char series[64];
    for (i = 0; i < step && !ratio; i++) n1 *= 10;
    n2 = ratio ? 1500000 : n1 * 2;
    if (ratio) n1 = n2 >> (step - 5 + 2);
    lists_add_synth(&l, n2 > 12000000 ? 60000000 : 25200000, n1, 0, 1 + step);
    lists_add_synth(&l, n2 > 12000000 ? 60000000 : 25200000, n2, 0, 100 + step);
    docs[0] = l.docs[0];
    docs[1] = l.docs[1];
    x = ratio ? (double)l.n[1] / l.n[0] : l.n[0];
    (void)fprintf(stderr, "%s x %.0f (%u, %u):", figure, x, (unsigned)l.n[0], (unsigned)l.n[1]);
    for (i = 0; i < 4; i++) {
      seconds = cpu_intersect(cpu[i], docs, l.n, 2, &want);
      (void)snprintf(series, sizeof series, "%s CPU", cpu[i]);
      row(figure, series, x, seconds * 1e3, "ms");
      (void)fprintf(stderr, " %s %.4f", series, seconds * 1e3);
    }
    lab = open_room(&l, "ef", 0, 1, ((uint64_t)l.n[0] + l.n[1]) * 2);
    for (i = 0; i < 12; i++) {
      seconds = gpu_run(lab, q, start, 1, gpu[i % 6], i >= 6, counts, &r);
      if (!(seconds > 0)) continue;
      (void)snprintf(series, sizeof series, "%s%s GPU", gpu[i % 6], i >= 6 ? " in ef" : "");
      row(figure, series, x, seconds * 1e3, "ms");
      (void)fprintf(stderr, " %s %.4f%s", series, seconds * 1e3, counts[0] != want ? " WRONG" : "");
    }
    (void)fprintf(stderr, " ms\n");
    gpuir_cuda_lab_close(lab);
    lists_free(&l);
  }
}

/* Griffin 2018, Fig. 7, and Ding 2009, 8.2: ranking of one query's results, and of a batch of 512. */
static void bench_ranking(void) {
  const uint32_t one = 7, *list = &one, n1 = 1;
  uint32_t n, k, batch, i;
  synth_rng r = {4};
  for (batch = 1; batch <= 512; batch *= 512)
    for (n = 1000; n <= (batch > 1 ? 100000u : 1000000u); n *= 10) {
      gpuir_hit *all = (gpuir_hit *)malloc((size_t)n * batch * 8),
                *hits = (gpuir_hit *)malloc((size_t)10000 * batch * 8);
      uint32_t *start = (uint32_t *)malloc((batch + 1) * 4), *counts = (uint32_t *)malloc(batch * 4);
      gpuir_cuda_lab_desc desc;
      gpuir_cuda_lab *lab;
      gpuir_error err;
      for (i = 0; i < n * batch; i++) {
        all[i].docid = i % n;
        all[i].score = 1u << 20 | (uint32_t)(synth_next(&r) >> 41);
      }
      for (i = 0; i <= batch; i++) start[i] = i * n;
      memset(&desc, 0, sizeof desc);
      desc.lists = &list;
      desc.lengths = &n1;
      desc.nlists = 1;
      desc.queries = batch;
      desc.room = 2 * (uint64_t)batch * (n + 10000);
      if (gpuir_cuda_lab_open(&desc, &lab, &err)) die(&err);
      for (k = 10; k <= 10000; k *= 10) {
        (void)fprintf(stderr, "griffin-fig7 batch %3u n %7u k %5u:", (unsigned)batch, (unsigned)n,
                      (unsigned)k);
        for (i = 0; gpuir_cuda_lab_ranking(i); i++) {
          gpuir_cuda_lab_result x;
          char series[64];
          if (gpuir_cuda_lab_topk(lab, all, start, batch, k, gpuir_cuda_lab_ranking(i), batch > 1 ? 3 : 9,
                                  hits, counts, &x, &err))
            die(&err);
          (void)snprintf(series, sizeof series, "%s k %u batch %u", gpuir_cuda_lab_ranking(i), (unsigned)k,
                         (unsigned)batch);
          row("griffin-fig7", series, n, x.ms, "ms");
          (void)fprintf(stderr, "  %s %.4f", gpuir_cuda_lab_ranking(i), x.ms);
        }
        (void)fprintf(stderr, " ms\n");
      }
      gpuir_cuda_lab_close(lab);
      free(all);
      free(hits);
      free(start);
      free(counts);
    }
}

/* Ding 2009, Table 2: top-10 queries of two to four terms, by one core, the engine, and the methods of the paper. */
static void bench_search(void) {
  static const char *const modes[] = {"AND", "OR", "AND+OR"}, *const ways[] = {
                                                                  "one core", "engine GPU", "skip + tree GPU",
                                                                  "pmf2 + tree GPU",
                                                                  "mergepath + radix-select GPU"};
  enum { NQ = 256, K = 10 };
  gpuir_query *q[NQ];
  gpuir_hit *hits = (gpuir_hit *)calloc(2 * NQ * K, sizeof *hits);
  uint32_t *counts = (uint32_t *)calloc(2 * NQ, 4);
  char folder[] = "/tmp/gpuir-lab-XXXXXX", path[64], series[64];
  gpuir_index *ix;
  gpuir_cuda *cuda;
  gpuir_error err;
  synth_desc d;
  unsigned m, w, i, run;
  memset(&d, 0, sizeof d);
  d.documents = 3000000;
  d.terms = 300;
  d.queries = 1000;
  d.zipf = 14;
  d.postings = 0.7 * d.documents;
  d.threads = 16;
  d.seed = 12;
  if (!mkdtemp(folder)) exit(1);
  (void)snprintf(path, sizeof path, "%s/index", folder);
  if (synth_generate(&d, path, &err) || gpuir_open(path, NULL, &ix, &err) ||
      gpuir_cuda_open(ix, NULL, &cuda, &err))
    die(&err);
  for (m = 0; m < 3; m++) {
    synth_rng r = {33};
    for (i = 0; i < NQ; i++) {
      char text[64];
      gpuir_query_desc desc;
      size_t at = 0;
      uint32_t k = 2 + synth_below(&r, 3);
      memset(&desc, 0, sizeof desc);
      desc.mode = m == 0 ? GPUIR_AND : m == 1 ? GPUIR_OR : GPUIR_ANDOR;
      while (k--)
        at += (size_t)snprintf(text + at, sizeof text - at, "t%u ", (unsigned)synth_below(&r, d.terms));
      if (gpuir_query_parse(ix, &desc, text, at, &q[i], &err)) die(&err);
    }
    for (w = 0; w < sizeof ways / sizeof ways[0]; w++) {
      gpuir_searcher *s;
      double best = 1e9;
      gpuir_hit *to = hits + (w ? NQ * K : 0);
      if (gpuir_searcher_create(ix, NULL, &s)) exit(1);
      if (w == 1 && gpuir_cuda_attach(s, cuda, 0, &err)) die(&err);
      if (w > 1 && gpuir_cuda_lab_attach(s, cuda,
                                         w == 2   ? "skip"
                                         : w == 3 ? "pmf2"
                                                  : "mergepath",
                                         w == 4 ? "radix-select" : "tree", 0, &err))
        die(&err);
      for (run = 0; run < 4; run++) {
        uint64_t t = gpuir__now();
        if (gpuir_search_batch(s, (const gpuir_query *const *)q, NQ, K, to, counts + (w ? NQ : 0))) {
          gpuir_searcher_error(s, &err);
          die(&err);
        }
        best = best_seconds(t, best);
      }
      (void)snprintf(series, sizeof series, "%s by %s", modes[m], ways[w]);
      row("ding-table2", series, m, best * 1e3 / NQ, "ms a query");
      (void)fprintf(stderr, "ding-table2 %-7s %-30s %9.4f ms a query%s\n", modes[m], ways[w], best * 1e3 / NQ,
                    w && (memcmp(counts, counts + NQ, NQ * 4) || memcmp(hits, to, NQ * K * sizeof *hits))
                        ? "  WRONG"
                        : "");
      gpuir_searcher_destroy(s);
    }
    for (i = 0; i < NQ; i++) gpuir_query_destroy(q[i]);
  }
  gpuir_cuda_close(cuda);
  gpuir_close(ix);
  (void)unlink(path);
  (void)rmdir(folder);
  free(hits);
  free(counts);
}

static void bench_intersect(void) {
  bench_batches(0, "random");
  bench_batches(0.8, "clustered");
}

int main(int argc, char **argv) {
  int i, all = argc < 2;
  printf("figure\tseries\tx\ty\tunit\n");
#define SECTION(name, run)                      \
  for (i = 1; i < argc || (all && i == 1); i++) \
    if (all || !strcmp(argv[i], name)) run()
  SECTION("decode", bench_decode);
  SECTION("lengths", bench_lengths);
  SECTION("exceptions", bench_exceptions);
  SECTION("intersect", bench_intersect);
  SECTION("pairs", bench_pairs);
  SECTION("ranking", bench_ranking);
  SECTION("search", bench_search);
  return 0;
}
