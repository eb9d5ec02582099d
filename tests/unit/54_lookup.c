/* 54_lookup.c - candidates looked up in lists, of which each block has what it likes */
#include "private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tools/lab/isect.h"
#include "sets.h"

#define DAMAGED_CANDIDATES 120u
#define CANARY 0x5aa5c33cu

/* The candidates, or a list of which each block has the same few docIDs again and again. */
static void disorder(const gpuir__stream *d, uint32_t block, uint32_t prev, uint32_t *out) {
  uint32_t i;
  (void)prev;
  for (i = 0; i < GPUIR__BLOCK; i++) out[i] = d->last ? 120 * block + 2 * (i % 7) + 2 : 2 * i;
}

/* Tells anything that may be told. */
static uint32_t disorder_find(const gpuir__stream *d, uint32_t block, uint32_t prev, uint32_t x) {
  (void)d;
  return (x / 2 + block + prev) % (GPUIR__UNTOLD + 1);
}

/* Whatever a list decodes to: no more matches than candidates, and nothing written behind them but what has room. */
static void damaged(void **state) {
  gpuir__codec codec;
  const uint32_t room = DAMAGED_CANDIDATES + 16, nblocks = 2;
  uint32_t last[2], docs[1024], spots[2][1024], *where[2], i;
  const gpuir__list *lists[2];
  gpuir__list l[2];
  gpuir__isect x;
  int simd, round;
  (void)state;
  memset(&codec, 0, sizeof codec);
  codec.name = "disorder";
  codec.docids = codec.unit = 1;
  codec.decode_block = disorder;
  codec.find = disorder_find;
  memset(l, 0, sizeof l);
  for (i = 0; i < nblocks; i++) last[i] = 120 * (i + 1);
  for (i = 0; i < 2; i++) {
    l[i].docs.codec = &codec;
    l[i].df = l[i].docs.n = i ? nblocks * GPUIR__BLOCK : DAMAGED_CANDIDATES;
    l[i].nblocks = i ? nblocks : 1;
    l[i].last = l[i].docs.last = i ? last : NULL;
    lists[i] = &l[i];
    where[i] = spots[i];
  }
  for (simd = GPUIR_SIMD_SCALAR; simd <= GPUIR_SIMD_AVX512; simd++)
    for (round = 0; round < 6; round++) {
      assert_int_equal(gpuir__isect_lists(&x, NULL, gpuir__method_by_name("simd"), lists, 2, simd), GPUIR_OK);
      if (round / 2 == 1) (void)without_pairs(&x);
      if (round / 2 == 2) x.operand[1].n = UINT32_MAX; /* as if the list were very much longer */
      for (i = 0; i < 1024; i++) docs[i] = spots[0][i] = spots[1][i] = CANARY;
      assert_true(gpuir__isect_run(&x, docs, round % 2 ? where : NULL) <= DAMAGED_CANDIDATES);
      for (i = room; i < 1024; i++) assert_true(docs[i] == CANARY && spots[0][i] == CANARY && spots[1][i] == CANARY);
      gpuir__isect_free(&x);
    }
}

/* Any number of candidates in a block, from its first docID, its middle or up to its last: of a list of whole blocks,
 * of one whose last block is short, and of one that is a short block alone. */
static void each_number(void **state) {
  static const uint32_t lengths[] = {5 * GPUIR__BLOCK, 4 * GPUIR__BLOCK + 21, 90};
  const gpuir__method *m = gpuir__method_by_name("simd");
  const gpuir__codec *codec = gpuir__codec_by_name("bp128", 1);
  uint32_t docs[GPUIR__BLOCK], right[GPUIR__BLOCK], n, i, from, l;
  int simd;
  (void)state;
  for (l = 0; l < 3; l++) {
    set sets[2];
    sets[1] = set_make(RANDOM, lengths[l], 3);
    for (n = 1; n <= 100; n++)
      for (from = 0; from < 3; from++) {
        const uint32_t last = (lengths[l] - 1) / GPUIR__BLOCK, block = n % (last + 1);
        const uint32_t low = sets[1].docs[block * GPUIR__BLOCK];
        const uint32_t high = sets[1].docs[gpuir__min32((block + 1) * GPUIR__BLOCK, lengths[l]) - 1];
        const uint32_t first = from == 0 ? low : from == 1 ? low + (high - low) / 2 : high - gpuir__min32(high, n - 1);
        for (i = 0; i < n; i++) docs[i] = first + i;
        sets[0] = set_of(docs, n);
        i = oracle(sets, 2, right);
        for (simd = GPUIR_SIMD_SCALAR; simd <= GPUIR_SIMD_AVX512; simd++)
          check_lists(m, codec, sets, 2, right, i, simd);
        free(sets[0].docs);
      }
    free(sets[1].docs);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_number),
      cmocka_unit_test(damaged),
  };
  return cmocka_run_group_tests_name("54_lookup", tests, NULL, NULL);
}
