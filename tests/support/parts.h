/* parts.h - collections that are cut into parts; include after an implementation of gpuir.h and corpus.h */
#ifndef TESTS_PARTS_H
#define TESTS_PARTS_H

static corpus_build plain = {NULL, NULL, 0, 0.9f, 0.4f, 1 << 20, 1, 0};

/* Cuts a collection into n parts at random, empty ones among them, each of which ends behind document ends[i]. */
static inline void cut(const oracle *o, uint32_t *ends, size_t n, rng *r) {
  size_t i, j;
  for (i = 0; i < n; i++) {
    const uint32_t end = i + 1 == n ? o->ndocs : rng_below(r, o->ndocs + 1);
    for (j = i; j && ends[j - 1] > end; j--) ends[j] = ends[j - 1];
    ends[j] = end;
  }
}

static inline void some_corpus(oracle *o, unsigned c, unsigned seed) {
  switch (c) {
  case 0: corpus_df(o, 9001, 31 + seed); break;
  case 1: corpus_zipf(o, 3000, 2000, 40, 7 + seed); break;
  case 2: corpus_huge(o, 600, 8 + seed); break;
  case 3: corpus_saturated(o, 700, 9 + seed); break;
  case 4: corpus_classes(o, 2000, 3, 10 + seed); break;
  case 5: corpus_ramps(o, 20001, 12 + seed); break; /* so many are asked for whole less often */
  default: corpus_tiles(o, 3, 1u << GPUIR__TILE_SHIFT, GPUIR__WHOLE, 13 + seed);
  }
}

#endif
