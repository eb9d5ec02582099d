/* bench_lab.c - decoding to memory, against what a copy reaches: bp128 by width, and every codec on long lists in random
 * and in clustered order. (gpuir lab measures the rest, beside the CPU.)
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

static gpuir_cuda_lab *open_lab(const lists *l, const char *codec, uint32_t copies) {
  gpuir_cuda_lab_desc desc;
  gpuir_cuda_lab *lab;
  gpuir_error err;
  memset(&desc, 0, sizeof desc);
  desc.codec = codec;
  desc.lists = (const uint32_t *const *)l->docs;
  desc.lengths = l->n;
  desc.nlists = l->count;
  desc.copies = copies;
  if (gpuir_cuda_lab_open(&desc, &lab, &err)) die(&err);
  return lab;
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
    lab = open_lab(&l, "bp128", copies);
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
      gpuir_cuda_lab *lab = open_lab(&l, codecs[i], copies);
      (void)decode_all(lab, l.count * copies, k ? "decode-clustered" : "decode-random", codecs[i], 0, NULL,
                       &share);
      gpuir_cuda_lab_close(lab);
    }
    lists_free(&l);
  }
}

int main(void) {
  printf("figure\tseries\tx\ty\tunit\n");
  bench_decode();
  return 0;
}
