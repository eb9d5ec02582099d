/* 20_lab_unary.c - Elias-Fano, quasi-succinct and Rice codes: high parts in unary, low ones packed */
#include "private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lists.h"

static const char *const part_codecs[] = {"ef", "qs", "rice"};

/* Value i of a partition or of a list in Elias-Fano or Rice code: each word counts its stop bits, a scan tells
 * whose word the lane's stop stands in. */
static uint64_t lane_stop(const gpuir__unary *u, uint64_t start, uint32_t i) {
  uint64_t byte = start / 8, keep = UINT64_MAX << start % 8;
  for (;; byte += 8, keep = UINT64_MAX) {
    uint64_t x = byte < u->bytes ? gpuir__unary_word(u->bits + byte, u->bytes - byte, u->flip) & keep : 1;
    if (i < gpuir__ones64(x)) return byte * 8 + gpuir__select64(x, i);
    i -= gpuir__ones64(x);
  }
}

static uint32_t lane_halves(const gpuir__stream *s, int rice, uint32_t i) {
  const uint32_t block = i / 128;
  gpuir__halves v;
  uint32_t low, k;
  uint64_t at;
  (void)gpuir__halves_find(s, rice ? GPUIR__RICE_LOG : GPUIR__QS_LOG, rice, &v);
  at = lane_stop(&v.unary, gpuir__halves_start(s, block), i % 128);
  low = gpuir__packed_value(v.low, v.b, i);
  if (rice) {
    low += gpuir__rice_base(&v, block) + i;
    for (k = block * 128; k < i; k++) low += gpuir__packed_value(v.low, v.b, k);
  }
  return gpuir__joined((uint32_t)at, i, v.b, rice ? 0 : low, rice ? low : 0);
}

static uint32_t lane_ef(const gpuir__stream *s, uint32_t i) {
  const uint32_t block = i / 128, base = block ? s->last[block - 1] + 1 : 0;
  gpuir__unary u;
  unsigned b;
  const uint8_t *low = gpuir__ef_find(s, block, gpuir__block_count(s->n, block), &b, &u);
  return gpuir__joined((uint32_t)lane_stop(&u, 0, i % 128), i % 128, b, gpuir__packed_value(low, b, i % 128), base);
}

static uint32_t lane_value(const gpuir__stream *s, uint32_t i, int *gap) {
  const char *name = s->codec->name;
  *gap = 0;
  if (!strcmp(name, "ef")) return lane_ef(s, i);
  return lane_halves(s, !strcmp(name, "rice"), i);
}

#include "codec_properties.h"

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      CODEC_PROPERTIES,
      cmocka_unit_test(test_parameters),
  };
  if (argc > 1 && atoi(argv[1]) > 1) rounds = atoi(argv[1]);
  return cmocka_run_group_tests_name("20_lab_unary", tests, NULL, NULL);
}
