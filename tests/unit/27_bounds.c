/* 27_bounds.c - no posting contributes more than its block's pairs bound, under any k1 and b */
#include "private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rng.h"

static const float settings[][3] = {{1.2f, 0.75f, 100}, {0.9f, 0.4f, 3000}, {0, 0, 10}, {2, 1, 1}, {100, 0.5f, 7}};

/* A posting has at most the frequency of a pair, in a document that is at least as long. */
static void test_pairs(void **state) {
  gpuir__saturation *t = (gpuir__saturation *)calloc(1, sizeof *t);
  unsigned i;
  rng r;
  (void)state;
  assert_non_null(t);
  r.s = 9;
  for (i = 0; i < sizeof settings / sizeof *settings; i++) {
    const gpuir__norm norm = gpuir__norm_make(settings[i][0], settings[i][1], settings[i][2]);
    uint32_t pair;
    gpuir__saturation_prepare(t, norm);
    for (pair = 0; pair < 65536; pair++) {
      const float weight = (float)(1 + rng_below(&r, 1 << 20));
      const uint32_t most = gpuir__code_value(pair & 255), least = gpuir__code_value(pair >> 8);
      const uint32_t tf = rng_below(&r, 2) ? most : 1 + rng_below(&r, most ? most : 1);
      const uint32_t length = least + (rng_below(&r, 2) ? 0 : rng_below(&r, 1000)), q = 1 + rng_below(&r, 3);
      if (!(pair & 255) || (pair & 255) == 255) continue; /* no pair; the cap, which 53_topk tests */
      assert_true(q * gpuir__contribution(weight, tf, gpuir__norm_of(norm.a, norm.b, length)) <=
          gpuir__bound(weight, t->of[pair], q));
    }
  }
  free(t);
}

/* A table is filled again for other parameters only, and an unused pair bounds nothing. */
static void test_prepare(void **state) {
  gpuir__saturation *t = (gpuir__saturation *)calloc(1, sizeof *t);
  (void)state;
  assert_non_null(t);
  gpuir__saturation_prepare(t, gpuir__norm_make(1.2f, 0.75f, 100));
  t->of[0x0101] = 42;
  gpuir__saturation_prepare(t, gpuir__norm_make(1.2f, 0.75f, 100));
  assert_true(t->of[0x0101] > 41);
  gpuir__saturation_prepare(t, gpuir__norm_make(1.2f, 0.5f, 100));
  assert_true(t->of[0x0101] < 1);
  assert_true(t->of[0x4200] <= 0);
  assert_true(gpuir__block_saturation(t, 0x01010000u | 0x0108u) >= t->of[0x0108]);
  assert_true(gpuir__block_saturation(t, 0x01080000u | 0x0101u) >= t->of[0x0108]);
  free(t);
}

/* No posting contributes more than its peak's bound, whatever the file's k1, b and average length, and the query's: the
 * corners, and at random. A peak that is taken as it is bounds some too low. */
static void test_peaks(void **state) {
  static const float corner[] = {0, 1e-20f, 0.9f, 1000}, shares[] = {0, 1e-30f, 0.4f, 1}, means[] = {0, 1, 300, 1e4f};
  const unsigned times = 1000000;
  gpuir__peaks own, asked, unmapped;
  unsigned i, j, low = 0;
  rng r;
  (void)state;
  r.s = 12;
  memset(&asked, 0, sizeof asked);
  memset(&unmapped, 0, sizeof unmapped);
  gpuir__peaks_prepare(&unmapped, 1);
  for (i = 0; i < times / 100; i++) {
    float p[6];
    uint32_t bound[256], fast[256], plain[256];
    const float weight = (float)(1 + rng_below(&r, 1u << (1 + rng_below(&r, 30))));
    const uint32_t q = 1 + rng_below(&r, 2);
    gpuir__norm a, b;
    for (j = 0; j < 6; j++) {
      const float *of = j % 3 == 0 ? corner : j % 3 == 1 ? shares : means;
      p[j] = of[i < 4096 ? i >> 2 * j & 3 : rng_below(&r, 4)];
      if (i >= 4096 && rng_below(&r, 2)) p[j] = (float)rng_unit(&r) * of[3];
    }
    a = gpuir__norm_make(p[0], p[1], (double)p[2]);
    b = gpuir__norm_make(p[3], p[4], (double)p[5]);
    gpuir__peaks_prepare(&asked, gpuir__norm_ratio(a, b));
    gpuir__peaks_scalar(&asked, weight, q, bound);
    gpuir__peaks_scalar(&unmapped, weight, q, plain);
#if GPUIR__X86
    if (gpuir__simd_level(GPUIR_SIMD_AVX2) == GPUIR_SIMD_AVX2) {
      gpuir__peaks_avx2(&asked, weight, q, fast);
      assert_memory_equal(bound, fast, sizeof bound);
    }
#endif
    for (j = 0; j < 100; j++) {
      const uint32_t tf = 1 + rng_below(&r, 1u << rng_below(&r, 25)),
                     length = (uint32_t)rng_next(&r) >> rng_below(&r, 32);
      const uint32_t peak = gpuir__dense_peak(tf, gpuir__norm_of(a.a, a.b, length));
      const uint32_t c =
          q * gpuir__contribution(weight, tf < GPUIR__CAP ? tf : GPUIR__CAP, gpuir__norm_of(b.a, b.b, length));
      assert_true(c <= bound[peak]);
      low += c > plain[peak];
    }
  }
  memset(&own, 0, sizeof own);
  gpuir__peaks_prepare(&own, 1);
  for (i = 1; i < 256; i++) assert_true(own.of[i] >= (float)i / 255 * (1 - 1e-6f) && own.of[i] <= 1);
  assert_true(low > times / 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_pairs),
      cmocka_unit_test(test_prepare),
      cmocka_unit_test(test_peaks),
  };
  return cmocka_run_group_tests_name("27_bounds", tests, NULL, NULL);
}
