/* 21_lab_pfor.c - PForDelta and its kin: slots of one width, and exceptions */
#include "private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lists.h"

static const char *const part_codecs[] = {"pfd", "newpfd", "optpfd", "pfd-list", "parapfor"};

/* The parts of exceptions that a lane patches, as the warp that decodes the block of value i does. */
static uint32_t lane_pfd(const gpuir__stream *s, uint32_t i) {
  const uint32_t block = i / 128, count = gpuir__block_count(s->n, block);
  gpuir__pfd_block v;
  uint32_t k, at, value;
  memset(&v, 0, sizeof v);
  gpuir__pfd_find(s, block, count, &v);
  value = gpuir__packed_value(v.slots, v.b, i % 128);
  if (v.form >= GPUIR__PFD_APART)
    for (k = 0; k < v.number; k++) {
      uint32_t high = gpuir__pfd_apart(&v, k, &at);
      if (at == i % 128) value |= high;
    }
  if (v.form == GPUIR__PFD_LINKED)
    for (k = 0, at = v.first; k < v.number; k++) {
      if (at == i % 128) value = gpuir__pfd_linked(&v, k);
      at += gpuir__packed_value(v.slots, v.b, at) + 1;
    }
  if (value != gpuir__pfd_value(&v, i % 128)) return ~gpuir__pfd_value(&v, i % 128);
  return value;
}

/* Gap i of an open pfd-list. */
static uint32_t lane_pfl(const gpuir__pfl_state *state, uint32_t i) {
  const uint32_t e = gpuir__pfl_first(state, i), slot = gpuir__packed_value(state->top.slots, state->top.b, i);
  return e < state->top.number && state->positions[e] == i ? slot | gpuir__pfl_high(state, e) : slot;
}

/* Gap i of a list of parapfor. */
static uint32_t lane_para(const gpuir__stream *s, uint32_t i) {
  const uint32_t size = gpuir__para_size(s);
  uint64_t at = s->offset ? gpuir__min64(s->offset[i / 128], s->len) : 0;
  uint32_t start = i / 128 * 128 & ~(size - 1); /* of the segment that the block begins in */
  gpuir__para v;
  for (;; start += size) {
    at += gpuir__para_find(s->bytes + at, s->len - at, gpuir__min32(size, s->n - start), &v);
    if (i - start < size) return gpuir__para_value(&v, i - start);
  }
}

static uint32_t lane_value(const gpuir__stream *s, uint32_t i, int *gap) {
  const char *name = s->codec->name;
  *gap = s->codec->docids;
  if (!strcmp(name, "pfd-list")) return lane_pfl((const gpuir__pfl_state *)s->scratch, i);
  if (!strcmp(name, "parapfor")) return lane_para(s, i);
  return lane_pfd(s, i);
}

#include "codec_properties.h"

/* Blocks of all widths of both parts, whether an encoder would choose them or not. */
static void test_made_blocks(void **state) {
  (void)state;
  made_blocks("optpfd");
}

/* A block of pfd-list has so many exceptions before it as the directory says, where the device starts: another number
 * is damage, which opening the list must see. */
static void test_counts(void **state) {
  static uint32_t values[4000];
  const gpuir__codec *codec = gpuir__codec_by_name("pfd-list", 1);
  gpuir__stream s;
  list l;
  uint32_t i, block;
  (void)state;
  for (i = 0; i < 4000; i++) values[i] = (i ? values[i - 1] : 0) + 1 + (i % 9 ? below(4) : 5000 + below(4000));
  list_encode(&l, codec, "gaps with exceptions", values, 4000);
  assert_true(l.offset[l.nblocks - 1] > 0);
  for (block = 0; block < l.nblocks; block++) {
    l.offset[block]++;
    assert_false(list_open(&l, &s, UINT32_MAX - 1, GPUIR_SIMD_SCALAR));
    l.offset[block]--;
  }
  assert_true(list_open(&l, &s, UINT32_MAX - 1, GPUIR_SIMD_SCALAR));
  free(s.scratch);
  list_free(&l);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      CODEC_PROPERTIES,
      cmocka_unit_test(test_parameters),
      cmocka_unit_test(test_made_blocks),
      cmocka_unit_test(test_counts),
  };
  if (argc > 1 && atoi(argv[1]) > 1) rounds = atoi(argv[1]);
  return cmocka_run_group_tests_name("21_lab_pfor", tests, NULL, NULL);
}
