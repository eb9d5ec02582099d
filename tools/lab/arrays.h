/* arrays.h - the intersection methods of [55-methods] for plain, sorted arrays in place of compressed lists.
 *
 *     gpuir__array_search_of   the search in arrays that belongs to a method
 *     gpuir__array_prepare     prepares an array for a method
 *
 * An array is an operand without a cursor: docs and n are set. Only the laboratory has them, so that this is no part of
 * gpuir.h; it is included behind an implementation of the header.
 */
#ifndef GPUIR_LAB_ARRAYS_H
#define GPUIR_LAB_ARRAYS_H

/* ---- element by element ---- */

/* Finds the lower bound of x in a[lo, hi), skipping groups of 128 by their last docID: SvS with blocks (Ding et al.
 * 2009, section 8.1). */
static inline uint32_t gpuir__svs(const uint32_t *a, uint32_t lo, uint32_t hi, uint32_t x) {
  uint32_t end, step = GPUIR__BLOCK;
  while (hi - lo > step && a[lo + step - 1] < x) {
    lo += step;
    step *= 2;
  }
  end = hi - lo > step ? lo + step : hi; /* the answer is in [lo, end] */
  while (end - lo > GPUIR__BLOCK) {
    uint32_t half = (end - lo) / GPUIR__BLOCK / 2 * GPUIR__BLOCK;
    if (!half) half = GPUIR__BLOCK;
    if (a[lo + half - 1] < x) lo += half;
    else end = lo + half;
  }
  return gpuir__lower_bound(a, lo, end, x);
}

/* Looks for the candidates in an array, one by one. */
GPUIR__INLINE uint32_t gpuir__each_array(int how, int indices, gpuir__operand *o, const gpuir__pass *p) {
  uint32_t i, found = 0, at = o->at;
  const uint32_t *docs = o->docs, n = o->n;
  for (i = 0; i < p->m; i++) {
    uint32_t x = p->candidates[i], lo, hi, pos;
    gpuir__contract(how, o, x, &lo, &hi);
    if (how == GPUIR__FIND_GALLOP || how == GPUIR__FIND_SKIP || how == GPUIR__FIND_SVS) lo = at;
    if (how == GPUIR__FIND_SKIP) pos = gpuir__skip(o->prepared, lo, x);
    else if (how == GPUIR__FIND_SVS) pos = gpuir__svs(docs, lo, hi, x);
    else pos = gpuir__find(how, docs, lo, hi, x);
    at = pos;
    if (pos >= n) {
      if (how == GPUIR__FIND_LR || how == GPUIR__FIND_LOCAL || how == GPUIR__FIND_HS) continue;
      break; /* all that follow are greater, too */
    }
    found = gpuir__pass_put(p, indices, found, i, x, pos, docs[pos] == x);
  }
  o->at = at;
  return found;
}

#define GPUIR__EACH_ARRAY(name, how) \
  static uint32_t gpuir__##name##_array(gpuir__operand *o, const gpuir__pass *p) { \
    return p->from ? gpuir__each_array(how, 1, o, p) : gpuir__each_array(how, 0, o, p); \
  }
GPUIR__EACH_ARRAY(gallop, GPUIR__FIND_GALLOP)
GPUIR__EACH_ARRAY(binary, GPUIR__FIND_BINARY)
GPUIR__EACH_ARRAY(interpolation, GPUIR__FIND_INTERPOLATION)
GPUIR__EACH_ARRAY(skip, GPUIR__FIND_SKIP)
GPUIR__EACH_ARRAY(svs, GPUIR__FIND_SVS)
GPUIR__EACH_ARRAY(lr, GPUIR__FIND_LR)
GPUIR__EACH_ARRAY(local, GPUIR__FIND_LOCAL)
GPUIR__EACH_ARRAY(hs, GPUIR__FIND_HS)
#undef GPUIR__EACH_ARRAY

/* ---- merge, Parallel Merge Find, MergePath, Algorithm 1 ---- */

static uint32_t gpuir__merge_array(gpuir__operand *o, const gpuir__pass *p) {
  gpuir__merge m = gpuir__merge_of(p, o->docs, o->n, 0);
  uint32_t found;
  m.right = o->at;
  found = gpuir__merge_to(&m, p->m, 0);
  o->at = m.right;
  return found;
}

static uint32_t gpuir__pmf_array(gpuir__operand *o, const gpuir__pass *p) {
  uint32_t i, found = 0;
  gpuir__pmf_find(p->candidates, p->m, o->docs, 0, o->n, (unsigned)o->prepared->param, p->spare);
  for (i = 0; i < p->m; i++) {
    uint32_t x = p->candidates[i], at = p->spare[i];
    if (at == o->n) break;
    found = gpuir__pass_put(p, p->from != NULL, found, i, x, at, o->docs[at] == x);
  }
  return found;
}

static uint32_t gpuir__mergepath_array(gpuir__operand *o, const gpuir__pass *p) {
  gpuir__merge m = gpuir__merge_of(p, o->docs, o->n, 0);
  return gpuir__mergepath(&m, p->m, o->prepared->param, 0);
}

/* ---- simd on arrays: as in [54-lookup], or, in a much longer array, a probe a candidate ----
 *
 * Longer arrays have hash segments (Ao et al. 2011, section 4.4) so short that one or two registers mostly take a whole
 * one: a probe is a look-up and a comparison, and those of many candidates overlap. */

#define GPUIR__PROBE_MEAN 8u /* docIDs a segment at most, on average */

/* Prepares segments for arrays so long that probes are faster: from these ratios on, measured with random docIDs. */
static int gpuir__simd_prepare(const gpuir_allocator *a, gpuir__operand *o, const uint32_t *docs) {
  static const uint32_t probe_ratio[4] = {3, 5, 5, 8}; /* by GPUIR__LOOKUP_ level */
  gpuir__prepared *made = o->prepared;
  uint64_t span;
  if (o->n < 64 || o->n / probe_ratio[o->kernels->level] < o->expected) return GPUIR_OK;
  if (o->kernels->level == GPUIR__LOOKUP_SCALAR) {
    made->param = 16;
    return gpuir__hs_prepare(a, o, docs);
  }
  span = (uint64_t)docs[o->n - 1] + 1;
  for (made->shift = 0; made->shift < 31 && (uint64_t)o->n << (made->shift + 1) <= span * GPUIR__PROBE_MEAN;)
    made->shift++;
  return gpuir__hs_table(a, o, docs);
}

static uint32_t gpuir__simd_array_scalar(gpuir__operand *o, const gpuir__pass *p) {
  return o->prepared->first ? gpuir__hs_array(o, p) : gpuir__merge_array(o, p);
}

#if GPUIR__X86

/* Finds 16 indices in [lo, hi), a segment with more docIDs than that, which have x if the segment has; returns the
 * first of them. */
static inline uint32_t gpuir__crowd(const uint32_t *a, uint32_t lo, uint32_t hi, uint32_t x) {
  uint32_t len = hi - lo;
  while (len > 16) {
    uint32_t half = len / 2;
    lo = a[lo + half - 1] < x ? lo + half : lo;
    len -= half;
  }
  return lo;
}

/* Looks up each candidate by a probe of its segment; o->n >= 16. */
GPUIR__AVX2 GPUIR__INLINE uint32_t gpuir__probe_avx2(int indices, const gpuir__operand *o, const gpuir__pass *p) {
  const gpuir__pass pass = *p;
  const gpuir__prepared *made = o->prepared;
  const uint32_t *docs = o->docs, *first = made->first, buckets = made->buckets, n = o->n;
  const unsigned shift = made->shift;
  uint32_t i, found = 0;
  for (i = 0; i < pass.m; i++) {
    uint32_t x = pass.candidates[i], h = gpuir__hs_bucket(x, shift), at, end, hit;
    const __m256i v = _mm256_set1_epi32((int)x);
    __m256i lo, hi;
    if (h >= buckets) break;
    at = first[h];
    end = first[h + 1];
    if (GPUIR__UNLIKELY(end - at > 16)) at = gpuir__crowd(docs, at, end, x);
    at = gpuir__min32(at, n - 16);
    lo = _mm256_cmpeq_epi32(_mm256_loadu_si256((const __m256i *)(const void *)(docs + at)), v);
    hi = _mm256_cmpeq_epi32(_mm256_loadu_si256((const __m256i *)(const void *)(docs + at + 8)), v);
    hit = (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(indices ? lo : _mm256_or_si256(lo, hi)));
    if (indices) hit |= (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(hi)) << 8;
    found = gpuir__pass_put(&pass, indices, found, i, x, at + gpuir__ctz32(hit | 0x10000u), hit != 0);
  }
  return found;
}

/* Merges registers of 8, and of 16, as the functions of these names in [54-lookup] do for lists. */
GPUIR__AVX2 GPUIR__NOINLINE uint32_t gpuir__merge_bare_avx2(gpuir__merge *m, uint32_t found) {
  return gpuir__merge_any(gpuir__match_avx2, 8, 0, m, found);
}

GPUIR__AVX512 GPUIR__NOINLINE uint32_t gpuir__merge_bare_avx512(gpuir__merge *m, uint32_t found) {
  return gpuir__merge_any(gpuir__match_avx512, 16, 0, m, found);
}

/* Begins where the last pass ended: o->at. */
static uint32_t gpuir__merge_whole(gpuir__merge_kernel merge, gpuir__operand *o, const gpuir__pass *p) {
  gpuir__merge m = gpuir__merge_of(p, o->docs, o->n, 0);
  uint32_t found;
  m.right = o->at;
  found = merge(&m, 0);
  o->at = m.right;
  return found;
}

GPUIR__AVX2 static uint32_t gpuir__simd_array_avx2(gpuir__operand *o, const gpuir__pass *p) {
  if (o->prepared->first) return p->from ? gpuir__probe_avx2(1, o, p) : gpuir__probe_avx2(0, o, p);
  return gpuir__merge_whole(gpuir__merge_bare_avx2, o, p);
}

GPUIR__AVX512 static uint32_t gpuir__simd_array_vp2intersect(gpuir__operand *o, const gpuir__pass *p) {
  return o->prepared->first ? gpuir__simd_array_avx2(o, p) : gpuir__merge_whole(gpuir__merge_bare_avx512, o, p);
}

#endif

static uint32_t gpuir__simd_array(gpuir__operand *o, const gpuir__pass *p) {
  static const gpuir__lookup_kernel of_level[4] = { /* by GPUIR__LOOKUP_ */
    gpuir__simd_array_scalar,
#if GPUIR__X86
    gpuir__simd_array_avx2,
    gpuir__simd_array_avx2,
    gpuir__simd_array_vp2intersect,
#endif
  };
  return of_level[o->kernels->level](o, p);
}

/* ---- which search belongs to which method ---- */

typedef struct gpuir__array_search {
  const char *method; /* its name */
  gpuir__lookup_kernel search;
  int (*prepare)(const gpuir_allocator *a, gpuir__operand *o, const uint32_t *docs); /* of arrays alone, or NULL */
} gpuir__array_search;

/* Returns the search in arrays of a method; NULL for one that takes all operands at once. */
GPUIR__UNUSED static const gpuir__array_search *gpuir__array_search_of(const gpuir__method *m) {
  static const gpuir__array_search searches[] = {
      {"merge", gpuir__merge_array, NULL},
      {"gallop", gpuir__gallop_array, NULL},
      {"binary", gpuir__binary_array, NULL},
      {"interpolation", gpuir__interpolation_array, NULL},
      {"skip", gpuir__skip_array, NULL},
      {"svs", gpuir__svs_array, NULL},
      {"pmf0", gpuir__pmf_array, NULL},
      {"pmf1", gpuir__pmf_array, NULL},
      {"pmf2", gpuir__pmf_array, NULL},
      {"pmf3", gpuir__pmf_array, NULL},
      {"pmf4", gpuir__pmf_array, NULL},
      {"lr-global", gpuir__lr_array, NULL},
      {"lr-local", gpuir__local_array, NULL},
      {"hs16", gpuir__hs_array, NULL},
      {"hs32", gpuir__hs_array, NULL},
      {"hs64", gpuir__hs_array, NULL},
      {"hs128", gpuir__hs_array, NULL},
      {"hs256", gpuir__hs_array, NULL},
      {"mergepath", gpuir__mergepath_array, NULL},
      {"algorithm1", gpuir__algorithm1_list, NULL}, /* it searches what was prepared, whatever of */
      {"simd", gpuir__simd_array, gpuir__simd_prepare},
  };
  size_t i;
  for (i = 0; i < sizeof searches / sizeof *searches; i++)
    if (!strcmp(searches[i].method, m->name)) return &searches[i];
  return NULL;
}

/* Prepares an array as gpuir__operand_prepare does a list. */
GPUIR__UNUSED static int gpuir__array_prepare(const gpuir_allocator *a, const gpuir__method *m, gpuir__operand *o,
    gpuir__prepared *made) {
  const gpuir__array_search *search = gpuir__array_search_of(m);
  int status = gpuir__operand_prepare(a, m, o, made);
  if (!status && search && search->prepare) status = search->prepare(a, o, o->docs);
  return status;
}

#endif
