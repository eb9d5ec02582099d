/* 17_vectors.c - bits, packed numbers and gaps: each helper against a loop that says what it means, at every level */
#include "private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rng.h"

/* A number of at most `width` bits, the extremes often. */
static uint64_t number(unsigned width) {
  const uint64_t all = width ? UINT64_MAX >> (64 - width) : 0,
                 r = (uint64_t)rnd() << 32 ^ (uint64_t)rnd() << 11 ^ rnd();
  return rnd() % 8 == 0 ? all : rnd() % 8 == 0 ? 0 : r & all;
}

static void test_bits(void **state) {
  uint32_t round;
  (void)state;
  assert_int_equal(gpuir__width32(0), 0);
  assert_int_equal(gpuir__width64(0), 0);
  assert_int_equal(gpuir__low_bits(32), UINT32_MAX);
  assert_true(gpuir__low_bits64(63) == UINT64_MAX >> 1);
  for (round = 0; round < 20000; round++) {
    const uint64_t x = number(round % 65);
    unsigned width = 0, ones = 0, i;
    for (i = 0; i < 64; i++)
      if (x >> i & 1) {
        assert_int_equal(gpuir__select64(x, ones), i);
        if (!ones) assert_int_equal(gpuir__ctz64(x), i);
        if (!ones && x <= UINT32_MAX) assert_int_equal(gpuir__ctz32((uint32_t)x), i);
        ones++;
        width = i + 1;
      }
    assert_int_equal(gpuir__select64(x, ones), 64);
    assert_int_equal(gpuir__ones64(x), ones);
    assert_int_equal(gpuir__popcount64(x), ones);
    assert_int_equal(gpuir__width64(x), width);
    if (x <= UINT32_MAX) assert_int_equal(gpuir__width32((uint32_t)x), width);
    assert_true(gpuir__low_bits64(round % 64) == UINT64_MAX >> 1 >> (63 - round % 64));
  }
}

static void test_mul_high(void **state) {
  uint32_t round;
  (void)state;
  assert_true(gpuir__mul_high(UINT64_MAX, UINT64_MAX) == UINT64_MAX - 1);
  for (round = 0; round < 20000; round++) {
    const uint64_t x = number(round % 65), y = number(below(65));
    uint64_t high = 0, low = 0;
    unsigned i;
    for (i = 0; i < 64; i++) { /* adds x * 2^i for each one of y */
      const uint64_t before = low;
      if (!(y >> i & 1)) continue;
      low += x << i;
      high += (i ? x >> (64 - i) : 0) + (low < before);
    }
    assert_true(gpuir__mul_high(x, y) == high);
  }
}

static void test_loads(void **state) {
  uint8_t bytes[24];
  unsigned at, i;
  (void)state;
  for (i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)rnd();
  for (at = 0; at < 16; at++) {
    uint64_t x = 0;
    for (i = 8; i-- > 0;) x = x << 8 | bytes[at + i];
    assert_true(gpuir__load64(bytes + at) == x);
    assert_int_equal(gpuir__load32(bytes + at), (uint32_t)x);
    gpuir__store64(bytes + at, ~x);
    assert_true(gpuir__load64(bytes + at) == ~x);
    gpuir__store32(bytes + at, 7);
    assert_true(gpuir__load64(bytes + at) == ((~x >> 32 << 32) | 7));
  }
}

static void test_lower_bound(void **state) {
  uint32_t a[100], n, round;
  (void)state;
  for (round = 0; round < 2000; round++) {
    uint32_t i, x = 0, lo, hi, want;
    n = below(100);
    for (i = 0; i < n; i++) a[i] = x += below(4);
    lo = below(n + 1);
    hi = lo + below(n - lo + 1);
    x = below(x + 3);
    for (want = lo; want < hi && a[want] < x;) want++;
    assert_int_equal(gpuir__lower_bound(a, lo, hi, x), want);
  }
}

/* Numbers of every width are packed as the picture says, bit by bit, with nothing behind them, and come back. */
static void test_packed(void **state) {
  unsigned w;
  (void)state;
  for (w = 0; w <= 32; w++) {
    uint32_t values[130], count = 1 + below(130), i;
    uint8_t bytes[130 * 4 + 12];
    uint64_t size = gpuir__packed_size(count, w), bit;
    for (i = 0; i < count; i++) values[i] = (uint32_t)number(32); /* only the low bits count */
    memset(bytes, 0xee, sizeof bytes);
    gpuir__pack(bytes, values, count, w);
    for (bit = 0; bit < size * 8; bit++) {
      const unsigned got = bytes[bit / 8] >> bit % 8 & 1;
      assert_int_equal(got, bit < (uint64_t)count * w ? values[bit / w] >> bit % w & 1 : 0);
    }
    for (i = (uint32_t)size + 4; i < sizeof bytes; i++) assert_int_equal(bytes[i], 0xee);
    for (i = 0; i < count; i++) assert_int_equal(gpuir__packed_value(bytes, w, i), values[i] & gpuir__low_bits(w));
  }
}

#if GPUIR__X86
/* 8 and 16 numbers that begin at any bit of a byte, as vectors take them. */
GPUIR__AVX2 static void eight(const uint8_t *p, unsigned w, unsigned skip, uint32_t *out) {
  const gpuir__packed8 f = gpuir__avx2_packed_of(w, skip);
  gpuir__avx2_store(out, gpuir__avx2_packed(p, &f));
}

GPUIR__AVX512 static void sixteen(const uint8_t *p, unsigned w, unsigned skip, uint32_t *out) {
  const gpuir__packed16 f = gpuir__avx512_packed_of(w, skip);
  _mm512_storeu_si512(out, gpuir__avx512_packed(p, &f));
}
#endif

static void test_packed_vectors(void **state) {
#if GPUIR__X86
  const int best = gpuir__simd_level(GPUIR_SIMD_AUTO);
  uint8_t bytes[72];
  unsigned w, first, i;
  (void)state;
  if (best < GPUIR_SIMD_AVX2) skip();
  for (i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)rnd();
  for (w = 1; w <= 32; w++)
    for (first = 0; first < (w < 32 ? 8u : 1u); first++) {
      uint32_t out[16];
      unsigned n = best >= GPUIR_SIMD_AVX512 ? 16 : 8;
      eight(bytes, w, first, out);
      if (n == 16) {
        uint32_t half[8];
        memcpy(half, out, sizeof half);
        sixteen(bytes, w, first, out);
        assert_memory_equal(half, out, sizeof half);
      }
      for (i = 0; i < n; i++) {
        const unsigned bit = i * w + first;
        assert_int_equal(out[i], (uint32_t)(gpuir__load64(bytes + bit / 8) >> bit % 8) & gpuir__low_bits(w));
      }
    }
#else
  (void)state;
  skip();
#endif
}

/* Gaps are taken and summed up again at every level, clamped; sums that wrap are alike everywhere. */
static void test_gaps(void **state) {
  const int best = gpuir__simd_level(GPUIR_SIMD_AUTO);
  uint32_t round;
  (void)state;
  for (round = 0; round < 3000; round++) {
    uint32_t docs[GPUIR__BLOCK_ROOM], gaps[GPUIR__BLOCK_ROOM], out[GPUIR__BLOCK_ROOM];
    const uint32_t count = 1 + below(128), prev = below(2) ? UINT32_MAX : below(1000);
    const uint32_t limit = below(2) ? UINT32_MAX - 1 : below(5000);
    uint32_t i, at = prev;
    int level;
    memset(gaps, 0, sizeof gaps);
    for (i = 0; i < count; i++) docs[i] = at += 1 + (uint32_t)number(round % 24);
    gpuir__take_gaps(docs, count, prev, gaps);
    for (i = 0; i < count; i++) assert_int_equal(gaps[i], docs[i] - (i ? docs[i - 1] : prev) - 1);
    for (level = GPUIR_SIMD_SCALAR; level <= best; level++) {
      memcpy(out, gaps, sizeof out);
      gpuir__codec_kernels_at(level)->sum_gaps(out, count, prev, limit);
      for (i = 0; i < count; i++) assert_int_equal(out[i], docs[i] < limit ? docs[i] : limit);
    }
  }
}

static void test_levels(void **state) {
  const int best = gpuir__simd_level(GPUIR_SIMD_AUTO);
  int asked;
  (void)state;
  assert_true(best >= GPUIR_SIMD_SCALAR && best <= GPUIR_SIMD_AVX512);
  for (asked = GPUIR_SIMD_SCALAR; asked <= GPUIR_SIMD_AVX512; asked++)
    assert_int_equal(gpuir__simd_level(asked), asked < best ? asked : best);
  assert_string_equal(gpuir_simd_name(GPUIR_SIMD_SCALAR), "scalar");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bits),
      cmocka_unit_test(test_mul_high),
      cmocka_unit_test(test_loads),
      cmocka_unit_test(test_lower_bound),
      cmocka_unit_test(test_packed),
      cmocka_unit_test(test_packed_vectors),
      cmocka_unit_test(test_gaps),
      cmocka_unit_test(test_levels),
  };
  return cmocka_run_group_tests_name("17_vectors", tests, NULL, NULL);
}
