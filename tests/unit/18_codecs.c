/* 18_codecs.c - vbyte: its bytes, and the properties of every codec */
#include "private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lists.h"

static const char *const part_codecs[] = {"vbyte"};

static uint32_t lane_value(const gpuir__stream *s, uint32_t i, int *gap) {
  *gap = s->codec->docids;
  return gpuir__vbyte_freqs_get(s, i);
}

#include "codec_properties.h"

/* It takes the fewest bytes that the format allows: seven bits a byte. */
static void test_format(void **state) {
  uint32_t v[400], i, n;
  unsigned k, docids;
  (void)state;
  failures = 0;
  for (docids = 0; docids < 2; docids++)
    for (n = 1; n <= 400; n += n < 8 || n % 128 > 124 || n % 128 < 3 ? 1 : 7)
      for (k = 0; k < KINDS; k++) {
        const gpuir__codec *codec = gpuir__codec_by_name("vbyte", (int)docids);
        const char *kind = fill(v, n, (int)docids, k, n % 33);
        uint64_t size = 0;
        list l;
        list_encode(&l, codec, kind, v, n);
        naive_check(&l);
        for (i = 0; i < n; i++) {
          uint32_t x = docids ? v[i] - (i ? v[i - 1] : UINT32_MAX) - 1 : v[i];
          for (size++; x >= 128; x >>= 7) size++;
        }
        if (l.len != size) failed("size", codec, kind, n, 0, 0, l.len, size);
        list_free(&l);
      }
  assert_int_equal(failures, 0);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      CODEC_PROPERTIES,
      cmocka_unit_test(test_format),
  };
  if (argc > 1 && atoi(argv[1]) > 1) rounds = atoi(argv[1]);
  return cmocka_run_group_tests_name("18_codecs", tests, NULL, NULL);
}
