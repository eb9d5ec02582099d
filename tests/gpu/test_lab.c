/* test_lab.c - the laboratory's GPU methods against the CPU, for equality
 *
 * Every codec decodes lists of every edge shape; every way of intersecting and of selecting is compared with a plain
 * merge and a plain sort. Prints TAP. Without a device it says so and succeeds. `test_lab quick` is the reduced set
 * for compute-sanitizer. */
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"

#include "synth.h"

#include "lists.h"

static unsigned tests, failures;

static void report(int ok, const char *what, const char *which) {
  tests++;
  failures += !ok;
  printf("%sok %u - %s %s\n", ok ? "" : "not ", tests, what, which);
  (void)fflush(stdout);
}

/* ---- lists of every shape ---- */

static void make_lists(lists *l, int quick) {
  static const uint32_t lengths[] = {1,   2,   3,   31,  32,  33,  127, 128,  129,  255,
                                     256, 257, 383, 384, 511, 512, 513, 1000, 1025, 5000};
  const unsigned n = sizeof lengths / sizeof lengths[0];
  synth_rng r = {11};
  unsigned i, k;
  uint32_t *d, at;
  for (i = 0; i < n; i++) /* gaps of every width up to what fits */
    for (k = 0; k < 30; k += quick ? 7 : 3)
      if ((uint64_t)lengths[i] << k < UINT32_MAX) lists_add_width(l, lengths[i], k, i * 31 + k);
  for (i = 0; i < n; i++) { /* runs of neighbours between far jumps */
    d = lists_add(l, lengths[i]);
    at = synth_below(&r, 100);
    for (k = 0; k < lengths[i]; k++) {
      d[k] = at;
      at += synth_below(&r, 40) ? 1 : 1 + synth_below(&r, UINT32_MAX / lengths[i]);
    }
  }
  for (i = 0; i < n; i++) { /* the last docID there is, and a progression */
    d = lists_add(l, lengths[i]);
    for (k = 0; k < lengths[i]; k++) d[k] = (UINT32_MAX - 2) / lengths[i] * (k + 1);
    d[lengths[i] - 1] = UINT32_MAX - 1;
  }
  for (i = 0; i < n; i++) { /* strongly curved */
    d = lists_add(l, lengths[i]);
    for (k = 0; k < lengths[i]; k++) d[k] = (uint32_t)(pow((k + 1.0) / lengths[i], 6) * 4e9) + k;
  }
  for (i = 0; i < (quick ? 2u : 12u); i++) {
    lists_add_synth(l, 3000000, quick ? 3000 : 2000 << i % 8, i % 3 * 0.45, 100 + i);
    lists_add_synth(l, 300000, quick ? 8000 : 100000, i % 3 * 0.45, 200 + i);
  }
}

static const char *const codecs[] = {"vbyte",    "bp128", "pfd",    "newpfd", "optpfd",
                                     "ef",       "qs",    "rice",   "pfd-list", "parapfor",
                                     "lrc",      "lrcseg", "seglrc", "hslrc"};
#define CODECS (sizeof codecs / sizeof codecs[0])

/* Parameters to try besides the default. */
static const struct {
  const char *codec;
  uint64_t param;
} params[] = {{"qs", 250},
              {"qs", 4000},
              {"pfd-list", 1},
              {"pfd-list", 3},
              {"pfd-list", 5},
              {"parapfor", 64 + 1024 * 301},
              {"parapfor", 256 + 1024 * 1002},
              {"parapfor", 128 + 1024},
              {"lrc", 64 + 1024 * 201},
              {"lrcseg", 128 + 1024 * 1002},
              {"seglrc", 64 + 1024 * 1002},
              {"seglrc", 256 + 1024 * 101},
              {"hslrc", 32 + 1024 * 1002},
              {"hslrc", 128}};

static void check_decode(const lists *l, const char *codec, uint64_t param) {
  gpuir_cuda_lab_desc desc;
  gpuir_cuda_lab *lab;
  gpuir_cuda_lab_result r;
  gpuir_error err;
  char name[64];
  uint32_t *out;
  size_t i, total = 0, at = 0;
  int ok;
  (void)snprintf(name, sizeof name, "%s:%u", codec, (unsigned)param);
  memset(&desc, 0, sizeof desc);
  desc.codec = codec;
  desc.param = param;
  desc.lists = (const uint32_t *const *)l->docs;
  desc.lengths = l->n;
  desc.nlists = l->count;
  desc.copies = 2;
  for (i = 0; i < l->count; i++) total += l->n[i];
  out = (uint32_t *)malloc(total * 4);
  if (gpuir_cuda_lab_open(&desc, &lab, &err)) {
    printf("# %s\n", err.msg);
    report(0, "open", name);
    free(out);
    return;
  }
  ok = !gpuir_cuda_lab_decode(lab, 0, 2 * l->count, NULL, 1, NULL, &r, &err) && !r.mismatches &&
       r.values == 2 * total;
  if (!ok) printf("# %llu mismatches\n", (unsigned long long)r.mismatches);
  report(ok, "decode all, compared on the device:", name);
  ok = !gpuir_cuda_lab_decode(lab, l->count, l->count, NULL, 1, out, &r, &err);
  for (i = 0; ok && i < l->count; i++) {
    if (memcmp(out + at, l->docs[i], l->n[i] * (size_t)4)) {
      printf("# list %u of %u docIDs differs\n", (unsigned)i, (unsigned)l->n[i]);
      ok = 0;
    }
    at += l->n[i];
  }
  report(ok, "decode all, compared here:", name);
  for (i = 0, ok = 1; ok && i < l->count; i += 7) {
    ok = !gpuir_cuda_lab_decode(lab, i, 1, NULL, 1, out, &r, &err) && !memcmp(out, l->docs[i], l->n[i] * (size_t)4);
    if (!ok) printf("# list %u of %u docIDs\n", (unsigned)i, (unsigned)l->n[i]);
  }
  report(ok, "decode single lists:", name);
  gpuir_cuda_lab_close(lab);
  free(out);
}

int main(int argc, char **argv) {
  const int quick = argc > 1 && !strcmp(argv[1], "quick");
  const uint32_t one = 7, *list = &one, n = 1;
  lists l = {NULL, NULL, 0, 0};
  gpuir_cuda_lab_desc desc;
  gpuir_cuda_lab *lab;
  gpuir_error err;
  unsigned i;
  int status;
  memset(&desc, 0, sizeof desc);
  desc.lists = &list;
  desc.lengths = &n;
  desc.nlists = 1;
  status = gpuir_cuda_lab_open(&desc, &lab, &err);
  if (status == GPUIR_E_BACKEND) {
    printf("1..0 # SKIP no usable CUDA device: %s\n", err.msg);
    return 0;
  }
  report(!status, "open a lab", "of one docID");
  if (!status) gpuir_cuda_lab_close(lab);
  make_lists(&l, quick);
  for (i = 0; i < CODECS; i++) check_decode(&l, codecs[i], 0);
  for (i = 0; i < sizeof params / sizeof params[0] && !quick; i++) check_decode(&l, params[i].codec, params[i].param);
  lists_free(&l);
  printf("1..%u\n", tests);
  return failures != 0;
}
