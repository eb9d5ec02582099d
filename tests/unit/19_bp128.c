/* 19_bp128.c - bp128: its bytes are those of its documentation, as few as can be */
#include "private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lists.h"

static const char *const part_codecs[] = {"bp128"};

static uint32_t lane_bp128(const gpuir__stream *s, uint32_t i) {
  const uint32_t block = i / 128, count = gpuir__block_count(s->n, block);
  unsigned b;
  uint64_t left;
  const uint8_t *low = gpuir__bp128_block(s, block, count, &b, &left);
  return gpuir__bp128_get(low, b, left, count, i % 128);
}

static uint32_t lane_value(const gpuir__stream *s, uint32_t i, int *gap) {
  *gap = s->codec->docids;
  return lane_bp128(s, i);
}

#include "codec_properties.h"

/* The fewest bytes that count values can take, over all b and both forms, and the width byte: of equals no exceptions,
 * then the larger b. */
static uint64_t least_bp128(const uint32_t *v, uint32_t count, uint64_t unit, unsigned *width) {
  uint64_t least = UINT64_MAX;
  uint32_t i, all = 0;
  unsigned w = 0, b;
  for (i = 0; i < count; i++) all |= v[i];
  while (w < 32 && all >> w) w++;
  for (b = w + 1; b-- > 0;) {
    uint64_t size = ((uint64_t)count * b + 7) / 8, high = 0;
    if (b < w) {
      for (i = 0; i < count; i++) high += v[i] >> b != 0;
      size += (count + 7) / 8 + 1 + (high * (w - b) + 7) / 8;
    }
    size = (size + unit - 1) / unit * unit;
    if (size < least) {
      least = size;
      *width = b | (b < w ? 128u : 0);
    }
  }
  return least;
}

/* It takes the fewest bytes that the format allows. */
static void test_format(void **state) {
  uint32_t v[400], gaps[400], i, n, c;
  unsigned k, exceptional = 0, plain = 0;
  (void)state;
  failures = 0;
  for (c = 0; c < 2; c++)
    for (n = 1; n <= 400; n += n < 8 || n % 128 > 124 || n % 128 < 3 ? 1 : 7)
      for (k = 0; k < KINDS; k++) {
        const gpuir__codec *codec = gpuir__codec_by_name("bp128", (int)c);
        const char *kind = fill(v, n, codec->docids, k, n % 33);
        uint64_t size = 0;
        list l;
        list_encode(&l, codec, kind, v, n);
        naive_check(&l);
        for (i = 0; i < n; i++) {
          gaps[i] = codec->docids ? v[i] - (i ? v[i - 1] : UINT32_MAX) - 1 : v[i];
          if (i % 128 == 127 || i == n - 1) {
            unsigned width = 0, is = n < 128 ? l.bytes[0] : l.width[i / 128];
            if (n >= 128 && l.offset[i / 128] * 4 != size)
              failed("start of block", codec, kind, n, 0, i, l.offset[i / 128] * 4, size);
            if (n < 128) size++;
            size += least_bp128(gaps + i / 128 * 128, i % 128 + 1, n < 128 ? 1 : 4, &width);
            if (width != is) failed("width", codec, kind, n, 0, i, is, width);
            exceptional += is >= 128;
            plain += is < 128;
          }
        }
        if (l.len != size) failed("size", codec, kind, n, 0, 0, l.len, size);
        list_free(&l);
      }
  assert_int_equal(failures, 0);
  assert_true(exceptional > 500 && plain > 500);
}

/* The example in the comment, byte by byte. */
static void test_example(void **state) {
  static const uint32_t v[5] = {5, 2, 300, 1, 7};
  static const uint8_t bytes[] = {0x80 | 3, 0x15, 0x73, 4, 6, 37};
  list l;
  (void)state;
  failures = 0;
  list_encode(&l, gpuir__codec_by_name("bp128", 0), "example", v, 5);
  assert_int_equal(l.len, sizeof bytes);
  assert_memory_equal(l.bytes, bytes, sizeof bytes);
  list_check(&l, UINT32_MAX);
  list_free(&l);
  assert_int_equal(failures, 0);
}

/* Blocks of all widths of both parts, whether an encoder would choose them or not. */
static void test_made_blocks(void **state) {
  (void)state;
  made_blocks("bp128");
}

#if GPUIR__X86
/* Byte `at` of a shuffle that fetches, in two entries, the byte in which bit `bit` stands and the next one. */
static unsigned byte_of(unsigned bit, unsigned at) { return bit / 8 + at; }

/* What a value of w bits that begins at a bit is multiplied by, to end at the top of 16 bits. */
static unsigned factor(unsigned w, unsigned bit) { return w ? 1u << (16 - w - bit % 8) : 0; }

/* The tables of the vector kernels are what their comments say, computed by loops. */
static void test_tables(void **state) {
  unsigned m, k, w, i;
  (void)state;
  for (m = 0; m < 256; m++) {
    unsigned rank = 0;
    for (k = 0; k < 8; k++) {
      const unsigned marked = m >> k & 1;
      assert_int_equal(gpuir__bp128_expand[m][k], marked ? 2 * rank | (2 * rank + 1) << 8 : 0x8180);
      rank += marked;
    }
  }
  for (w = 0; w <= 8; w++) {
    const gpuir__bp128_fields *f = &gpuir__bp128_horizontal[w];
    const gpuir__bp128_rows *r = &gpuir__bp128_vertical[w];
    for (i = 0; i < 32; i++) assert_int_equal(f->at[i], byte_of(i / 2 * w, i % 2));
    for (i = 0; i < 8; i++) assert_int_equal(f->up[i], factor(w, i * w));
    for (i = 0; i < 8; i++) assert_int_equal(r->byte[i], 4 * i * w / 32 * 16);
    for (k = 0; k < 4; k++)
      for (i = 0; i < 8; i++) { /* words of rows 8 k to 8 k + 3 and 8 k + 4 to 8 k + 7 */
        const unsigned row = 8 * k + i / 4 * 4;
        assert_int_equal(r->down[k][i], row * w % 32);
      }
    for (k = 0; k < 2; k++)
      for (i = 0; i < 8; i++) { /* lane i % 4 of row 2 k + i / 4 */
        const unsigned row = 2 * k + i / 4;
        assert_int_equal(r->at[k][2 * i], byte_of(row * w + i % 4 * 32, 0));
        assert_int_equal(r->at[k][2 * i + 1], byte_of(row * w + i % 4 * 32, 1));
        assert_int_equal(r->up[k][i], factor(w, row * w));
      }
  }
  for (w = 9; w <= 15; w++) {
    const gpuir__bp128_rows15 *r = &gpuir__bp128_vertical15[w - 9];
    for (i = 0; i < 16; i++) assert_int_equal(r->byte[i], 2 * i * w / 32 * 16);
    for (k = 0; k < 8; k++)
      for (i = 0; i < 8; i++) { /* two vectors for each 8 rows: rows 0, 1, 4, 5 and rows 2, 3, 6, 7 */
        const unsigned row = k / 2 * 8 + k % 2 * 2 + i / 4 * 4;
        assert_int_equal(r->down[k][i], row * w % 32);
      }
  }
}
#else
static void test_tables(void **state) {
  (void)state;
  skip();
}
#endif

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      CODEC_PROPERTIES,
      cmocka_unit_test(test_tables),
      cmocka_unit_test(test_format),
      cmocka_unit_test(test_example),
      cmocka_unit_test(test_made_blocks),
  };
  if (argc > 1 && atoi(argv[1]) > 1) rounds = atoi(argv[1]);
  return cmocka_run_group_tests_name("19_bp128", tests, NULL, NULL);
}
