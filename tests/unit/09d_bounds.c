/* 09d_bounds.c - no posting contributes more than its block's pairs bound, under any k1 and b */
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
      if (!(pair & 255) || (pair & 255) == 255) continue; /* no pair; the cap, which 17_topk tests */
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_pairs),
      cmocka_unit_test(test_prepare),
  };
  return cmocka_run_group_tests_name("09d_bounds", tests, NULL, NULL);
}
