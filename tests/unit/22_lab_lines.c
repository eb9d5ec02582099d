/* 22_lab_lines.c - deviations from regression lines */
#include "private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lists.h"

static const char *const part_codecs[] = {"lrc", "lrcseg", "seglrc", "hslrc"};

static uint32_t lane_value(const gpuir__stream *s, uint32_t i, int *gap) {
  *gap = 0;
  return s->codec->get(s, i); /* a lane computes what element access does */
}

#include "codec_properties.h"

/* A block of hslrc is of the bucket that the directory names: another one is damage, which verifying must see. */
static void test_buckets(void **state) {
  static uint32_t values[4000], out[GPUIR__BLOCK];
  const gpuir__codec *codec = gpuir__codec_by_name("hslrc", 1);
  gpuir__stream s;
  list l;
  uint32_t i, block, kept;
  (void)state;
  for (i = 0; i < 4000; i++) values[i] = 7 * i + below(7);
  list_encode(&l, codec, "steady", values, 4000);
  for (block = 0; block < l.nblocks; block++) {
    const uint32_t count = gpuir__block_count(4000, block);
    assert_true(list_open(&l, &s, UINT32_MAX - 1, GPUIR_SIMD_SCALAR));
    decode(&s, block, 0, count, out);
    assert_memory_equal(out, values + block * GPUIR__BLOCK, count * sizeof *out);
    kept = l.offset[block];
    l.offset[block] = kept ? kept - 1 : 1u << 31;
    decode(&s, block, 0, count, out);
    assert_int_not_equal(memcmp(out, values + block * GPUIR__BLOCK, count * sizeof *out), 0);
    l.offset[block] = kept + 1;
    decode(&s, block, 0, count, out);
    assert_int_not_equal(memcmp(out, values + block * GPUIR__BLOCK, count * sizeof *out), 0);
    l.offset[block] = kept;
    free(s.scratch);
  }
  list_free(&l);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      CODEC_PROPERTIES,
      cmocka_unit_test(test_parameters),
      cmocka_unit_test(test_buckets),
  };
  if (argc > 1 && atoi(argv[1]) > 1) rounds = atoi(argv[1]);
  return cmocka_run_group_tests_name("22_lab_lines", tests, NULL, NULL);
}
