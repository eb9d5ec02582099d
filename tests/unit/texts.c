/* texts.c - blocks of texts, packed and unpacked: any bytes come back, from any beginning; liblz4 reads what is
 * packed here, and what it packs is read here; damaged bytes stay within their bounds
 */
#include "private.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rng.h"

enum {
  BLOCK = GPUIR__TEXT_BLOCK,
  PACKED = GPUIR__TEXT_PACKED_MOST,
  SLACK = GPUIR__TEXT_SLACK,
  AHEAD = GPUIR__TEXT_AHEAD
};

typedef int (*lz4_pack)(const char *, char *, int, int);
typedef int (*lz4_pack_well)(const char *, char *, int, int, int);
typedef int (*lz4_unpack)(const char *, char *, int, int);

/* The reference; its functions are NULL where it is not installed. */
static struct {
  void *library;
  lz4_pack pack;
  lz4_pack_well pack_well;
  lz4_unpack unpack;
} lz4;

static void load_lz4(void) {
  lz4.library = dlopen("liblz4.so.1", RTLD_NOW);
  if (!lz4.library) return;
  *(void **)&lz4.pack = dlsym(lz4.library, "LZ4_compress_default");
  *(void **)&lz4.pack_well = dlsym(lz4.library, "LZ4_compress_HC");
  *(void **)&lz4.unpack = dlsym(lz4.library, "LZ4_decompress_safe");
}

static gpuir__lz_table table;

/* A text of one kind: of few letters or many, of words that come again near or far, of runs. */
static size_t make(rng *r, uint8_t *text) {
  const uint32_t letters = 1 + rng_below(r, rng_below(r, 2) ? 256 : 4), again = rng_below(r, 100);
  const uint32_t reach = 1 + rng_below(r, rng_below(r, 2) ? 20 : BLOCK), most = rng_below(r, 2) ? 8 : 400;
  const size_t n = rng_below(r, 4) ? rng_below(r, BLOCK + 1) : rng_below(r, 40);
  size_t at = 0;
  while (at < n) {
    if (at && rng_below(r, 100) < again) {
      const size_t back = 1 + rng_below(r, (uint32_t)(at < reach ? at : reach));
      size_t len = 1 + rng_below(r, most);
      for (; len && at < n; len--, at++) text[at] = text[at - back];
    } else {
      text[at++] = (uint8_t)rng_below(r, letters);
    }
  }
  return n;
}

/* Unpacks `want` of a block's n bytes from a copy that ends 16 bytes behind, to a place that ends behind its slack. */
static int unpack(const uint8_t *packed, size_t len, size_t want, size_t n, uint8_t *out) {
  uint8_t *in = (uint8_t *)malloc(len + 16), *to = (uint8_t *)malloc(n + SLACK + 1);
  int good;
  assert_non_null(in);
  assert_non_null(to);
  memcpy(in, packed, len);
  memset(in + len, 0, 16);
  to[n + SLACK] = 0xa5;
  good = gpuir__text_unpack(in, len, want, n, to);
  assert_int_equal(to[n + SLACK], 0xa5);
  if (good) memcpy(out, to, want);
  free(in);
  free(to);
  return good;
}

static void test_come_back(void **state) {
  static uint8_t text[BLOCK + AHEAD], packed[PACKED], out[BLOCK];
  rng r = {1};
  unsigned i;
  (void)state;
  for (i = 0; i < 3000; i++) {
    const size_t n = make(&r, text), len = gpuir__text_pack(&table, text, n, packed);
    const size_t want = rng_below(&r, (uint32_t)n + 1);
    assert_true(len <= n);
    if (!unpack(packed, len, n, n, out) || memcmp(out, text, n) != 0) fail_msg("text %u of %zu bytes", i, n);
    if (!unpack(packed, len, want, n, out) || memcmp(out, text, want) != 0) fail_msg("%zu of text %u", want, i);
  }
}

/* The bytes are fixed: an index of today's is one of tomorrow's. */
static void test_bytes(void **state) {
  static const char text[] = "green tea and black tea and green tea and more of the black tea and of the green tea";
  static const char repeat[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
  /* one letter, 34 from one before, five letters */
  static const uint8_t runs[] = {0x1f, 'a', 1, 0, 15, 0x50, 'a', 'a', 'a', 'a', 'a'};
  uint8_t in[128] = {0}, packed[PACKED];
  size_t n;
  (void)state;
  memcpy(in, text, sizeof text - 1);
  n = gpuir__text_pack(&table, in, sizeof text - 1, packed);
  assert_int_equal(gpuir__hash(packed, n, 0), UINT64_C(0xea5f29c6599fe082));
  memcpy(in, repeat, sizeof repeat - 1);
  n = gpuir__text_pack(&table, in, sizeof repeat - 1, packed);
  assert_int_equal(n, sizeof runs);
  assert_memory_equal(packed, runs, sizeof runs);
}

static void test_reference(void **state) {
  static uint8_t text[BLOCK + AHEAD], packed[PACKED], out[BLOCK];
  rng r = {2};
  unsigned i;
  (void)state;
  if (!lz4.library) {
    printf("# SKIP test_reference: there is no liblz4.so.1\n");
    skip();
  }
  assert_true(lz4.pack && lz4.pack_well && lz4.unpack);
  for (i = 0; i < 2000; i++) {
    const size_t n = make(&r, text);
    size_t len = gpuir__lz_pack(&table, text, n, packed);
    assert_true(len <= n + n / 255 + 16);
    assert_int_equal(lz4.unpack((const char *)packed, (char *)out, (int)len, BLOCK), n);
    assert_memory_equal(out, text, n);
    len = (size_t)(i & 1 ? lz4.pack((const char *)text, (char *)packed, (int)n, PACKED)
                         : lz4.pack_well((const char *)text, (char *)packed, (int)n, PACKED, 9));
    if (len >= n) continue;
    assert_true(unpack(packed, len, n, n, out));
    assert_memory_equal(out, text, n);
  }
}

/* What is damaged, cut or longer than its block is refused or gives other bytes. */
static void test_hostile(void **state) {
  static uint8_t text[BLOCK + AHEAD], packed[PACKED], out[BLOCK];
  const unsigned times = getenv("GPUIR_LONG") ? 2000000 : 20000;
  rng r = {3};
  unsigned i, refused = 0;
  (void)state;
  for (i = 0; i < times; i++) {
    size_t n = make(&r, text), len = gpuir__text_pack(&table, text, n, packed), size = n;
    unsigned damage = 1 + rng_below(&r, 4);
    if (rng_below(&r, 8) == 0) len = rng_below(&r, (uint32_t)len + 1);
    if (rng_below(&r, 8) == 0) size = rng_below(&r, BLOCK + 1);
    for (; len && damage; damage--) packed[rng_below(&r, (uint32_t)len)] = (uint8_t)rng_below(&r, 256);
    refused += !unpack(packed, len, size, size, out);
  }
  assert_in_range(refused, times / 20, times - 1);
  assert_false(gpuir__text_unpack(packed, 3, 5, 4, out)); /* more is wanted than there is */
  assert_false(gpuir__text_unpack(packed, 5, 4, 4, out)); /* it takes more than its text does */
  assert_false(gpuir__text_unpack(packed, 0, 1, 4, out));
  assert_true(gpuir__text_unpack(packed, 0, 0, 0, out));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_come_back),
      cmocka_unit_test(test_bytes),
      cmocka_unit_test(test_reference),
      cmocka_unit_test(test_hostile),
  };
  load_lz4();
  return cmocka_run_group_tests_name("texts", tests, NULL, NULL);
}
