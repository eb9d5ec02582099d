
/* ========
 * [56-engine]  the evaluators' common state: kernels, tiles of accumulators, cursors, deadlines
 *
 * An evaluator fills the engine's top-k with the best documents of a query. What each of them works on:
 *
 *     [58-and]         decoded blocks of the shortest list (the driver), looked up in the other lists
 *     [59-words]      words of bits and windows, where all lists are dense
 *     [61-or]          docID tiles, whose bounds come from the block directories; blocks are decoded as needed
 *     [62-exhaustive]  docID tiles and cursors: every posting, no bound; the reference that the others must equal
 *     count of OR      windows of bits and cursors, in [62-exhaustive]
 *
 * Uses      [18-codecs], [24-postings], [27-bounds], [37-layout], [41-reader], [42-snapshot], [50-sieve],
 *           [51-query], [53-topk], [54-lookup], [55-methods].
 * Start at  gpuir__engine, gpuir__engine_open; gpuir__search_of_level (kernels); gpuir__tile.
 * Tests     tests/unit/56_engine.c
 * ======*/

/* ---- filters of candidates */

static uint32_t gpuir__keep_scalar(const uint32_t *docs, const uint32_t *values, uint32_t n, uint32_t threshold,
    uint32_t *to, uint32_t *to_values) {
  uint32_t i, kept = 0;
  for (i = 0; i < n; i++) {
    const uint32_t value = values[i];
    to[kept] = docs[i];
    to_values[kept] = value;
    kept += value >= threshold;
  }
  return kept;
}

#if GPUIR__X86
GPUIR__AVX512 static uint32_t gpuir__keep_avx512(const uint32_t *docs, const uint32_t *values, uint32_t n,
    uint32_t threshold, uint32_t *to, uint32_t *to_values) {
  const __m512i limit = _mm512_set1_epi32((int)threshold);
  uint32_t i, kept = 0;
  for (i = 0; i < n; i += 16) {
    __mmask16 live = (__mmask16)(n - i >= 16 ? 0xffff : (1u << (n - i)) - 1);
    __m512i d = _mm512_maskz_loadu_epi32(live, docs + i), v = _mm512_maskz_loadu_epi32(live, values + i);
    uint32_t over = gpuir__mask_bits(_mm512_mask_cmpge_epu32_mask(live, v, limit));
    gpuir__compress_avx512(to + kept, over, d);
    gpuir__compress_avx512(to_values + kept, over, v);
    kept += (uint32_t)__builtin_popcount(over);
  }
  return kept;
}
#endif

/* Computes the least frequency, less one, with which a posting can contribute `threshold` (q included) in a document
 * not shorter than any of the block: c >= x asks for W tf / (tf + K) >= x but for roundings, so for tf >= x K / (W -
 * x). */
static uint32_t gpuir__least_frequency(const gpuir__scorer *s, uint32_t pairs, uint32_t threshold) {
  uint32_t code = pairs >> 16 ? pairs >> 24 : pairs >> 8 & 255; /* the last pair has the shortest length */
  double k = (double)gpuir__norm_of(s->norm.a, s->norm.b, gpuir__code_value(code)), w = (double)s->weight;
  double x = ((double)threshold / s->q - 1) * (1 - 1e-6), tf;
  if (!(x > 0)) return 0;
  if (!(w > x)) return UINT32_MAX;
  tf = x * k / (w - x) * (1 - 1e-6);
  return tf < (double)GPUIR__CAP ? (uint32_t)ceil(tf) - (tf > 0) : GPUIR__CAP - 1;
}

/* ---- tiles: accumulators for a range of documents */

/* A tile has 2^GPUIR__TILE_SHIFT documents, or more in an index so large that there would be over GPUIR__MAX_TILES. */
#ifndef GPUIR__TILE_SHIFT
#define GPUIR__TILE_SHIFT 13u
#endif
#ifndef GPUIR__MAX_TILES
#define GPUIR__MAX_TILES 65536u
#endif
/* Documents of a tile that share a flag in touched[]: their accumulators are one vector. */
#define GPUIR__TOUCH 16u

/* The accumulators of a tile's documents, and the candidates that were collected from them. Arrays of candidates have
 * room for the tile's documents, a block and a vector. */
typedef struct gpuir__tile {
  uint32_t shift; /* the tile has 2^shift documents */
  uint32_t *scores; /* [document of the tile] its accumulator: what was added up so far; 0 between tiles */
  uint8_t *touched; /* [GPUIR__TOUCH documents] 1 if one of their accumulators may not be 0 */
  uint32_t *candidates; /* docIDs */
  uint32_t *sums; /* [candidate] its score as far as it is known */
  uint32_t *found; /* of one look-up: the candidates found */
  uint32_t *from; /* [found] its index among the candidates */
  uint32_t *where; /* [found] its index in the list */
  uint32_t *freqs; /* [found or candidate] its frequency, less one */
  uint32_t *values; /* [found] its contribution */
} gpuir__tile;

/* Return a tile's first and last docID. */
static inline uint32_t gpuir__tile_low(const gpuir__tile *t, uint32_t tile) { return tile << t->shift; }
static inline uint32_t gpuir__tile_high(const gpuir__tile *t, uint32_t tile) {
  return gpuir__tile_low(t, tile) + ((1u << t->shift) - 1);
}

/* Adds the contributions of n postings to their documents' accumulators. */
static void gpuir__tile_add(gpuir__tile *t, const uint32_t *docs, const uint32_t *values, uint32_t n) {
  uint32_t *scores = t->scores, mask = (1u << t->shift) - 1, i;
  uint8_t *touched = t->touched;
  for (i = 0; i < n; i++) {
    uint32_t at = docs[i] & mask;
    scores[at] += values[i];
    touched[at / GPUIR__TOUCH] = 1;
  }
}

static uint32_t gpuir__collect_scalar(gpuir__tile *t, uint32_t low, uint32_t threshold) {
  uint32_t groups = (1u << t->shift) / GPUIR__TOUCH, group, i, n = 0;
  for (group = 0; group < groups; group++) {
    uint32_t first = group * GPUIR__TOUCH;
    if (!t->touched[group]) continue;
    for (i = first; i < first + GPUIR__TOUCH; i++) {
      t->candidates[n] = low + i;
      t->sums[n] = t->scores[i];
      n += t->scores[i] >= threshold;
      t->scores[i] = 0;
    }
    t->touched[group] = 0;
  }
  return n;
}

#if GPUIR__X86
/* Returns a bit for each number of a vector that is not below that of the other. */
GPUIR__AVX2 GPUIR__INLINE uint32_t gpuir__avx2_reach(__m256i v, __m256i limit) {
  return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_max_epu32(v, limit), v)));
}

GPUIR__AVX2 static uint32_t gpuir__collect_avx2(gpuir__tile *t, uint32_t low, uint32_t threshold) {
  const __m256i limit = _mm256_set1_epi32((int)threshold), zero = _mm256_setzero_si256();
  uint32_t groups = (1u << t->shift) / GPUIR__TOUCH, group, n = 0;
  for (group = 0; group < groups; group += 32) {
    const __m256i untouched = _mm256_cmpeq_epi8(gpuir__avx2_load(t->touched + group), zero);
    uint32_t touched = ~(uint32_t)_mm256_movemask_epi8(untouched);
    gpuir__avx2_store(t->touched + group, zero);
    for (; touched; touched &= touched - 1) {
      const uint32_t at = (group + gpuir__ctz64(touched)) * GPUIR__TOUCH;
      uint32_t *v = t->scores + at, over = gpuir__avx2_reach(gpuir__avx2_load(v), limit);
      over |= gpuir__avx2_reach(gpuir__avx2_load(v + 8), limit) << 8;
      for (; over; over &= over - 1, n++) {
        t->candidates[n] = low + at + gpuir__ctz64(over);
        t->sums[n] = v[gpuir__ctz64(over)];
      }
      gpuir__avx2_store(v, zero);
      gpuir__avx2_store(v + 8, zero);
    }
  }
  return n;
}

GPUIR__AVX512 static uint32_t gpuir__collect_avx512(gpuir__tile *t, uint32_t low, uint32_t threshold) {
  const __m512i limit = _mm512_set1_epi32((int)threshold), iota = gpuir__avx512_iota(), zero = _mm512_setzero_si512();
  uint32_t groups = (1u << t->shift) / GPUIR__TOUCH, group, n = 0;
  for (group = 0; group < groups; group += 64) {
    __m512i flags = _mm512_loadu_si512(t->touched + group);
    uint64_t touched = _mm512_test_epi8_mask(flags, flags);
    _mm512_storeu_si512(t->touched + group, zero);
    for (; touched; touched &= touched - 1) {
      uint32_t at = (group + gpuir__ctz64(touched)) * GPUIR__TOUCH, over;
      __m512i v = _mm512_loadu_si512(t->scores + at);
      over = gpuir__mask_bits(_mm512_cmpge_epu32_mask(v, limit));
      gpuir__compress_avx512(t->candidates + n, over, _mm512_add_epi32(iota, _mm512_set1_epi32((int)(low + at))));
      gpuir__compress_avx512(t->sums + n, over, v);
      _mm512_storeu_si512(t->scores + at, zero);
      n += (uint32_t)__builtin_popcount(over);
    }
  }
  return n;
}
#endif

/* ---- words of bits, a bit a document */

/* How words meet those of a dense list. */
enum { GPUIR__WORDS_OR, GPUIR__WORDS_AND, GPUIR__WORDS_WITHOUT };

GPUIR__INLINE uint64_t gpuir__word_meet(uint64_t a, uint64_t b, int how) {
  return how == GPUIR__WORDS_OR ? a | b : how == GPUIR__WORDS_AND ? a & b : a & ~b;
}

static void gpuir__words_scalar(uint64_t *to, const uint64_t *from, size_t n, int how) {
  size_t i;
  for (i = 0; i < n; i++) to[i] = gpuir__word_meet(to[i], from[i], how);
}

static uint64_t gpuir__ones_scalar(const uint64_t *words, size_t n) {
  uint64_t ones = 0;
  size_t i;
  for (i = 0; i < n; i++) ones += gpuir__ones64(words[i]);
  return ones;
}

#if GPUIR__X86
GPUIR__AVX2 static void gpuir__words_avx2(uint64_t *to, const uint64_t *from, size_t n, int how) {
  size_t i;
  for (i = 0; i + 4 <= n; i += 4) {
    const __m256i a = gpuir__avx2_load(to + i), b = gpuir__avx2_load(from + i);
    gpuir__avx2_store(to + i,
        how == GPUIR__WORDS_OR        ? _mm256_or_si256(a, b)
            : how == GPUIR__WORDS_AND ? _mm256_and_si256(a, b)
                                      : _mm256_andnot_si256(b, a));
  }
  for (; i < n; i++) to[i] = gpuir__word_meet(to[i], from[i], how);
}

GPUIR__AVX512 static void gpuir__words_avx512(uint64_t *to, const uint64_t *from, size_t n, int how) {
  size_t i;
  for (i = 0; i + 8 <= n; i += 8) {
    const __m512i a = _mm512_loadu_si512(to + i), b = _mm512_loadu_si512(from + i);
    _mm512_storeu_si512(to + i,
        how == GPUIR__WORDS_OR        ? _mm512_or_si512(a, b)
            : how == GPUIR__WORDS_AND ? _mm512_and_si512(a, b)
                                      : _mm512_andnot_si512(b, a));
  }
  for (; i < n; i++) to[i] = gpuir__word_meet(to[i], from[i], how);
}

GPUIR__AVX2 static uint64_t gpuir__ones_avx2(const uint64_t *words, size_t n) {
  uint64_t ones = 0;
  size_t i;
  for (i = 0; i < n; i++) ones += gpuir__popcount64(words[i]);
  return ones;
}
#endif

/* ---- windows of dense lists */

/* Adds to each of n sums what the document's window lets a dense list contribute at most: bound[its peak], see
 * gpuir__peaks_kernel. Documents behind the last one, which are in damaged files, are taken for it. Up to 15 sums more
 * are written, and as many documents read. */
typedef void (*gpuir__windows_kernel)(const gpuir__list *l, const uint32_t *bound, const uint32_t *docs, uint32_t n,
    uint32_t *sums);

/* Returns the peak of a document's window. */
static inline uint32_t gpuir__peak_at(const gpuir__list *l, uint32_t d) {
  return l->dense.peaks[d / GPUIR__DENSE_LINE].of[d / GPUIR__DENSE_WINDOW % 8];
}

static void gpuir__windows_scalar(const gpuir__list *l, const uint32_t *bound, const uint32_t *docs, uint32_t n,
    uint32_t *sums) {
  uint32_t i;
  for (i = 0; i < n; i++) sums[i] += bound[gpuir__peak_at(l, gpuir__min32(docs[i], l->docs.limit))];
}

#if GPUIR__X86
GPUIR__AVX2 static void gpuir__windows_avx2(const gpuir__list *l, const uint32_t *bound, const uint32_t *docs,
    uint32_t n, uint32_t *sums) {
  const int *peaks = (const int *)(const void *)l->dense.peaks, *bounds = (const int *)(const void *)bound;
  const __m256i last = _mm256_set1_epi32((int)l->docs.limit), byte = _mm256_set1_epi32(255);
  const __m256i bits = _mm256_set1_epi32(24);
  uint32_t i;
  for (i = 0; i < n; i += 8) { /* four peaks at a time, of which the shift leaves one */
    const __m256i d = _mm256_min_epu32(gpuir__avx2_load(docs + i), last);
    const __m256i four = _mm256_i32gather_epi32(peaks, _mm256_srli_epi32(d, 8), 4);
    const __m256i peak = _mm256_srlv_epi32(four, _mm256_and_si256(_mm256_srli_epi32(d, 3), bits));
    const __m256i most = _mm256_i32gather_epi32(bounds, _mm256_and_si256(peak, byte), 4);
    gpuir__avx2_store(sums + i, _mm256_add_epi32(gpuir__avx2_load(sums + i), most));
  }
}

GPUIR__AVX512 static void gpuir__windows_avx512(const gpuir__list *l, const uint32_t *bound, const uint32_t *docs,
    uint32_t n, uint32_t *sums) {
  const __m512i last = _mm512_set1_epi32((int)l->docs.limit), byte = _mm512_set1_epi32(255);
  const __m512i bits = _mm512_set1_epi32(24);
  uint32_t i;
  for (i = 0; i < n; i += 16) {
    const __m512i d = _mm512_min_epu32(_mm512_loadu_si512(docs + i), last);
    const __m512i four = _mm512_i32gather_epi32(_mm512_srli_epi32(d, 8), l->dense.peaks, 4);
    const __m512i peak = _mm512_srlv_epi32(four, _mm512_and_si512(_mm512_srli_epi32(d, 3), bits));
    const __m512i most = _mm512_i32gather_epi32(_mm512_and_si512(peak, byte), bound, 4);
    _mm512_storeu_si512(sums + i, _mm512_add_epi32(_mm512_loadu_si512(sums + i), most));
  }
}
#endif

/* ---- the evaluators' kernels */

typedef struct gpuir__search_kernels {
  /* Copies those of n documents whose values reach the threshold, or moves them to the front of the same arrays;
   * returns their number. */
  uint32_t (*keep)(const uint32_t *docs, const uint32_t *values, uint32_t n, uint32_t threshold, uint32_t *to,
      uint32_t *to_values);
  /* Moves the documents whose accumulators reach the threshold from the tile that begins at docID `low` to candidates[]
   * and sums[], and clears all accumulators; returns the number of candidates. */
  uint32_t (*collect)(gpuir__tile *t, uint32_t low, uint32_t threshold);
  /* Lets n words meet others, of any alignment; how: GPUIR__WORDS_. */
  void (*words)(uint64_t *to, const uint64_t *from, size_t n, int how);
  uint64_t (*ones)(const uint64_t *words, size_t n); /* counts the ones of n words */
  gpuir__windows_kernel windows;
  gpuir__peaks_kernel peaks;
} gpuir__search_kernels;

/* By SIMD level less GPUIR_SIMD_SCALAR. Where a level has no kernel of its own, vectors gained nothing. */
static const gpuir__search_kernels gpuir__search_of_level[3] = {
    {gpuir__keep_scalar, gpuir__collect_scalar, gpuir__words_scalar, gpuir__ones_scalar, gpuir__windows_scalar,
        gpuir__peaks_scalar},
#if GPUIR__X86
    {gpuir__keep_scalar, gpuir__collect_avx2, gpuir__words_avx2, gpuir__ones_avx2, gpuir__windows_avx2,
        gpuir__peaks_avx2},
    {gpuir__keep_avx512, gpuir__collect_avx512, gpuir__words_avx512, gpuir__ones_avx2, gpuir__windows_avx512,
        gpuir__peaks_avx2},
#endif
};

/* ---- the engine */

/* Blocks that are decoded between two looks at the deadline: at 1 to 5 us each, less than a millisecond. */
#define GPUIR__LOOK_BLOCKS 64u

/* What ends a search, beside the searcher's timeout. A flag that is not 0 stops it; NULL: there is none. */
typedef struct gpuir__limits {
  const int *cancel; /* the searcher's */
  const int *query_cancel; /* the query's, in a batch */
  uint64_t query_deadline; /* the query's, in a batch, as gpuir__now tells time, in ns; 0: none */
  uint32_t *threshold; /* of the query, see gpuir_batch_desc.thresholds; NULL: none */
} gpuir__limits;

typedef struct gpuir__share gpuir__share; /* see [57-share] */

/* The leaf that an engine evaluates, and how far it is. */
typedef struct gpuir__turn {
  size_t next; /* the leaf behind this one; its lists are prefetched meanwhile */
  uint32_t leaf_number;
  uint32_t taken; /* of a shared search: the end of the parts that the engine has taken */
  unsigned noptional; /* open cursors of optional terms, which are the last of the positive ones */
  unsigned cursor_of[GPUIR_MAX_TERMS]; /* [term of the query] its cursor; GPUIR__NO_TERM: none in this leaf */
} gpuir__turn;

/* Lists that phrases and prefixes make of others, see [60-phrases]: the memory stays for the next query. */
typedef struct gpuir__made_lists {
  gpuir__buf *lists; /* [term of the query]; NULL: none was needed */
  gpuir__buf sums, places; /* scratch memory */
  uint32_t chunks; /* of positions that were read since the last look at the deadline */
} gpuir__made_lists;

/* What one thread needs to evaluate queries: scratch memory, which grows, and what stops it. */
typedef struct gpuir__engine {
  gpuir_allocator a;
  const gpuir_index *ix;
  gpuir__leaf leaf; /* a copy of the one that is evaluated */
  int evaluator; /* GPUIR_EVAL_ */
#ifndef GPUIR_NO_LAB
  const gpuir__method *intersection; /* NULL: the engine's own, [54-lookup] */
  gpuir__prepared *prepared; /* one a cursor, if a method is asked for */
#endif
  const gpuir__search_kernels *kernels; /* of the index's SIMD level */
  const gpuir__lookup_kernels *lookups;
  gpuir__score_kernel score;
  uint64_t timeout_ns; /* of each search from its start; 0: none */
  uint64_t deadline; /* of the running search, as gpuir__now tells time, in ns; 0: none */
  gpuir__limits limits;
  uint32_t worked; /* blocks decoded since the last look at the deadline */
  int stopped; /* the status that ends the running search; 0: it goes on */
  gpuir_searcher_info info;
  gpuir_error error;
  const gpuir__saturation *saturation; /* of the query's k1 and b */
  gpuir__saturation *own_saturation; /* of other k1 and b than the index's; NULL: none was needed */
  gpuir__peaks peaks; /* of the leaf's own K and the query's, once a window was bounded */
  gpuir__turn turn;
  gpuir__made_lists made;
  gpuir__share *share; /* the search that it owns or helps with; NULL: it evaluates alone */
  int helps, called_away; /* of a shared search: it is not the owner; it takes nothing more */
  int counts_only; /* it counts: neither frequencies nor bounds are read */
  int phrases_required; /* of the running search, see gpuir__phrases_are_required */
#ifndef GPUIR_NO_RANK
  uint64_t *tally; /* of such a search: where its matches are counted, too; NULL: nowhere */
#endif
  int unsieved; /* it explains: documents that fail the where are looked at, too */
  gpuir__cursor *cursors; /* ncursors of the query's known terms, positive ones first */
  gpuir__operand *operands; /* one a cursor, for look-ups */
  unsigned ncursors, cap; /* opened; allocated */
  gpuir__topk top;
#ifndef GPUIR_NO_COLUMNS
  gpuir__buf sieves; /* [leaf] gpuir__sieve *: of the query's where; NULL: not open; len 0: none is */
  gpuir__sieve *sieve; /* that of the leaf; NULL: all documents pass */
  gpuir__picks picks; /* hits of a search with sort or collapse */
  gpuir__buf marked; /* scratch memory: bits of a leaf's matches */
  uint64_t *marks; /* where what is counted is marked, too; NULL: nowhere */
#endif
  gpuir__buf scratch; /* arrays of one search, carved by gpuir__carve */
  size_t carved; /* bytes of scratch in use */
} gpuir__engine;

/* Closes the sieves of the last query. */
static void gpuir__engine_unsieve(gpuir__engine *e) {
#ifdef GPUIR_NO_COLUMNS
  (void)e;
#else
  gpuir__sieve **sieves = (gpuir__sieve **)(void *)e->sieves.data;
  size_t i;
  for (i = 0; i < e->sieves.len / sizeof *sieves; i++) gpuir__sieve_close(sieves[i]);
  e->sieves.len = 0;
  e->sieve = NULL;
#endif
}

/* Closes the lists of the last query. */
static void gpuir__engine_reset(gpuir__engine *e) {
  unsigned i;
  for (i = 0; i < e->ncursors; i++) {
    e->info.blocks_decoded += e->cursors[i].decoded;
    gpuir__list_close(&e->a, &e->cursors[i].list);
#ifndef GPUIR_NO_LAB
    if (e->prepared) gpuir__prepared_free(&e->a, &e->prepared[i]);
#endif
  }
  e->ncursors = 0;
}

static void gpuir__engine_free_cursors(gpuir__engine *e) {
  gpuir__engine_reset(e);
  gpuir__free(&e->a, e->cursors, e->cap * sizeof *e->cursors);
  gpuir__free(&e->a, e->operands, e->cap * sizeof *e->operands);
  e->cursors = NULL;
  e->operands = NULL;
#ifndef GPUIR_NO_LAB
  gpuir__free(&e->a, e->prepared, e->cap * sizeof *e->prepared);
  e->prepared = NULL;
#endif
  e->cap = 0;
}

GPUIR__COLD static void gpuir__engine_free(gpuir__engine *e) {
  unsigned i;
  gpuir__engine_free_cursors(e);
  gpuir__free(&e->a, e->own_saturation, sizeof *e->own_saturation);
  for (i = 0; e->made.lists && i < GPUIR_MAX_TERMS; i++) gpuir__buf_free(&e->a, &e->made.lists[i]);
  gpuir__free(&e->a, e->made.lists, GPUIR_MAX_TERMS * sizeof *e->made.lists);
  gpuir__buf_free(&e->a, &e->made.sums);
  gpuir__buf_free(&e->a, &e->made.places);
#ifndef GPUIR_NO_COLUMNS
  gpuir__engine_unsieve(e);
  gpuir__buf_free(&e->a, &e->sieves);
  gpuir__buf_free(&e->a, &e->marked);
  gpuir__buf_free(&e->a, &e->picks.all);
  gpuir__buf_free(&e->a, &e->picks.table);
#endif
  if (e->top.heap) (void)e->a.resize(e->a.user, e->top.heap, e->top.cap * 8, 0);
  gpuir__buf_free(&e->a, &e->scratch);
}

/* Fills the engine's error; returns its code. */
static int gpuir__engine_fail(gpuir__engine *e, int code, const char *what) {
  return gpuir__fail(&e->error, code, 0, "%s", what);
}

/* Tells those who search other parts of a collection the least score of the best k here, or learns a greater one from
 * them. A document with just that score stays: which of equal scores ranks first is decided by docIDs, and those of
 * other parts are not known here. */
static void gpuir__engine_threshold(gpuir__engine *e) {
  uint32_t *const shared = e->limits.threshold;
  uint32_t greatest = gpuir__peek(shared);
  const uint32_t own = e->top.n && e->top.n == e->top.k ? (uint32_t)(e->top.heap[0] >> 32) : 0;
  while (
      own > greatest && !__atomic_compare_exchange_n(shared, &greatest, own, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
  if (greatest && ((uint64_t)greatest << 32) - 1 > e->top.threshold_key)
    e->top.threshold_key = ((uint64_t)greatest << 32) - 1;
}

/* Returns where the hits of a query go; NULL: to the heap. */
static inline gpuir__picks *gpuir__engine_picks(gpuir__engine *e, const gpuir_query *q) {
#ifdef GPUIR_NO_COLUMNS
  (void)e;
  (void)q;
  return NULL;
#else
  return q->collapse ? &e->picks : NULL;
#endif
}

/* Starts the top-k for the best k hits whose score is at least `threshold`, or what is known of other parts. */
static int gpuir__engine_top(gpuir__engine *e, const gpuir_query *q, size_t k, uint32_t threshold) {
  const int status = gpuir__topk_start(&e->a, &e->top, k, threshold, gpuir__engine_picks(e, q));
  if (!status && e->limits.threshold) gpuir__engine_threshold(e);
  return status;
}

/* Looks whether the search has to stop: 0, DEADLINE or CANCELLED. */
static int gpuir__engine_look(gpuir__engine *e) {
  if (e->limits.threshold) gpuir__engine_threshold(e);
  if ((e->limits.cancel && gpuir__peek(e->limits.cancel)) ||
      (e->limits.query_cancel && gpuir__peek(e->limits.query_cancel)))
    e->stopped = gpuir__engine_fail(e, GPUIR_E_CANCELLED, "the search was cancelled");
  else if (e->deadline && gpuir__now() > e->deadline)
    e->stopped = gpuir__engine_fail(e, GPUIR_E_DEADLINE, "the search exceeded its time limit");
  return e->stopped;
}

/* Counts decoded blocks and looks after each GPUIR__LOOK_BLOCKS of them whether the search has to stop. */
static inline int gpuir__engine_worked(gpuir__engine *e, uint64_t blocks) {
  if (GPUIR__LIKELY(e->worked + blocks < GPUIR__LOOK_BLOCKS)) {
    e->worked += (uint32_t)blocks;
    return e->stopped;
  }
  e->worked = 0;
  return gpuir__engine_look(e);
}

/* Looks up candidates as gpuir__lookup does, and counts the blocks that were decoded for it. */
static uint32_t gpuir__engine_lookup(gpuir__engine *e, gpuir__operand *o, const gpuir__pass *p) {
  const uint64_t before = o->cursor->decoded;
  const uint32_t found = gpuir__lookup(o, p);
  (void)gpuir__engine_worked(e, o->cursor->decoded - before);
  return found;
}

/* Takes n items of 4 bytes from the scratch memory, which must have been reserved. */
static uint32_t *gpuir__carve(gpuir__engine *e, size_t n) {
  uint32_t *p = (uint32_t *)(void *)(e->scratch.data + e->carved);
  e->carved += ((n + 15) & ~(size_t)15) * 4; /* whole cache lines */
  return p;
}

/* Makes room for `arrays` arrays of n items in all. Earlier carvings are gone. */
static int gpuir__reserve(gpuir__engine *e, size_t n, size_t arrays) {
  e->scratch.len = 0;
  if (n > SIZE_MAX / 8 || !gpuir__buf_room(&e->a, &e->scratch, (n + 16 * arrays) * 4 + 64))
    return gpuir__engine_fail(e, GPUIR_E_NOMEM, "out of memory");
  e->carved = (64 - (uintptr_t)e->scratch.data % 64) % 64; /* vectors that cross cache lines take twice as long */
  return GPUIR_OK;
}

/* Makes room for the cursors of a query of n terms. */
GPUIR__COLD static int gpuir__engine_grow(gpuir__engine *e, unsigned n) {
  int complete;
  gpuir__engine_free_cursors(e);
  e->cap = n;
  e->cursors = (gpuir__cursor *)gpuir__alloc(&e->a, n * sizeof *e->cursors);
  e->operands = (gpuir__operand *)gpuir__alloc(&e->a, n * sizeof *e->operands);
  complete = e->cursors && e->operands;
#ifndef GPUIR_NO_LAB
  if (e->intersection) {
    e->prepared = (gpuir__prepared *)gpuir__alloc_zero(&e->a, n * sizeof *e->prepared);
    complete = complete && e->prepared;
  }
#endif
  if (complete) return GPUIR_OK;
  gpuir__engine_free_cursors(e);
  return gpuir__engine_fail(e, GPUIR_E_NOMEM, "out of memory");
}

/* Opens the list of a term that the engine's leaf has, with this number in the query, behind the cursors that are open;
 * gpuir__engine_add is due. */
static int gpuir__engine_open_list(gpuir__engine *e, const gpuir_query *q, size_t leaf, unsigned number,
    const gpuir__query_term *t) {
  const gpuir__record *r = gpuir__query_record(q, leaf, number);
  const uint32_t *id = &q->ids[leaf * GPUIR__IDS + number]; /* read where it must be: it is seldom in the cache */
  gpuir__list *l = &e->cursors[e->ncursors].list;
  const int status = r->df ? gpuir__list_open_record(e->leaf.seg, &e->a, r, l)
                           : gpuir__list_open(e->leaf.seg, &e->a, *id, l); /* the only term of a prefix */
  if (!status) return GPUIR_OK;
  return gpuir__fail(&e->error, status, 0, "%s: cannot open the list of \"%.*s\": %s", e->leaf.seg->path,
      t->len < 32 ? (int)t->len : 32, t->text, gpuir__list_why(e->leaf.seg, *id, status));
}

/* Makes a cursor and an operand of the list that stands behind the open cursors, with the weight of a term. */
static void gpuir__engine_add(gpuir__engine *e, const gpuir_query *q, const gpuir__query_term *t) {
  gpuir__cursor *c = &e->cursors[e->ncursors];
  gpuir__operand_init(&e->operands[e->ncursors], c, e->lookups);
#ifndef GPUIR_NO_LAB
  if (e->prepared) memset(&e->prepared[e->ncursors], 0, sizeof *e->prepared);
#endif
  e->ncursors++;
  e->info.blocks_total += c->list.nblocks;
  c->scorer.lengths = e->leaf.seg->lengths;
  c->scorer.norm = q->norm;
  c->scorer.weight = t->weight;
  c->scorer.q = t->q;
  c->scorer.score = e->score;
  c->bound =
      t->negated || e->counts_only ? 0 : gpuir__bound(t->weight, gpuir__list_saturation(e->saturation, &c->list), t->q);
  gpuir__cursor_reset(c);
}

/* Chooses the table of saturations: the index's, or one of the query's own k1 and b. 0 or NOMEM. */
static int gpuir__engine_saturate(gpuir__engine *e, const gpuir_query *q) {
  if (q->stored_bm25) {
    e->saturation = gpuir__index_saturation(e->ix);
  } else {
    gpuir__saturation **own = &e->own_saturation;
    if (!*own) {
      *own = (gpuir__saturation *)gpuir__alloc(&e->a, sizeof **own);
      if (*own) (*own)->valid = 0;
    }
    e->saturation = *own;
    if (*own) gpuir__saturation_prepare(*own, q->norm);
  }
  return e->saturation ? GPUIR_OK : gpuir__engine_fail(e, GPUIR_E_NOMEM, "out of memory");
}

/* Prefetches what the query's lists in a leaf are opened from; `start`: what these begin with, once that has come. */
GPUIR__INLINE void gpuir__engine_prefetch(const gpuir__engine *e, const gpuir_query *q, size_t leaf, int start) {
  const gpuir__segment *seg;
  unsigned i;
  if (leaf >= e->ix->nleaves) return;
  seg = e->ix->leaves[leaf].seg;
  for (i = 0; i < q->nrecords; i++) {
    if (start) gpuir__list_prefetch_start(seg, &q->records[leaf * q->nrecords + i], e->counts_only);
    else gpuir__list_prefetch(seg, &q->records[leaf * q->nrecords + i]);
  }
}

/* Prefetches what all lists are opened from, and what those of the first leaf begin with: a search of rare words would
 * wait for the memory of one list after the other's. To be inlined, as what it calls. */
GPUIR__INLINE void gpuir__engine_announce(const gpuir__engine *e, const gpuir_query *q) {
  size_t leaf;
  for (leaf = 0; leaf < e->ix->nleaves; leaf++) gpuir__engine_prefetch(e, q, leaf, 0);
  gpuir__engine_prefetch(e, q, 0, 1);
}

/* Opens the sieve of the query's where for the engine's leaf, which has just been copied. */
static int gpuir__engine_where(gpuir__engine *e, const gpuir_query *q, size_t leaf) {
#ifdef GPUIR_NO_COLUMNS
  (void)e;
  (void)q;
  (void)leaf;
#else
  const size_t size = e->ix->nleaves * sizeof e->sieve;
  gpuir__sieve **sieves;
  e->sieve = NULL;
  if (!q->where || e->unsieved) return GPUIR_OK;
  if (!e->sieves.len) {
    if (!gpuir__buf_room(&e->a, &e->sieves, size)) return gpuir__engine_fail(e, GPUIR_E_NOMEM, "out of memory");
    memset(e->sieves.data, 0, size);
    e->sieves.len = size;
  }
  sieves = (gpuir__sieve **)(void *)e->sieves.data;
  if (!sieves[leaf]) sieves[leaf] = gpuir__sieve_open(e->leaf.seg, q->where);
  if (!sieves[leaf]) return gpuir__engine_fail(e, GPUIR_E_NOMEM, "out of memory");
  e->sieve = sieves[leaf];
#endif
  return GPUIR_OK;
}

/* Says whether the leaf's documents are tested by a where. */
static inline int gpuir__engine_tests(const gpuir__engine *e) {
#ifdef GPUIR_NO_COLUMNS
  (void)e;
  return 0;
#else
  return e->sieve != NULL;
#endif
}

/* Says whether it is known of all the leaf's documents whether they pass the where. */
static inline int gpuir__engine_knows(const gpuir__engine *e) {
#ifdef GPUIR_NO_COLUMNS
  (void)e;
  return 0;
#else
  return gpuir__sieve_is_known(e->sieve);
#endif
}

/* Says whether it is known that none of the leaf's documents [from, to) passes the where. */
static inline int gpuir__engine_is_empty(const gpuir__engine *e, uint64_t from, uint64_t to) {
#ifdef GPUIR_NO_COLUMNS
  (void)e;
  (void)from;
  (void)to;
  return 0;
#else
  return e->sieve && gpuir__sieve_is_empty(e->sieve, from, to);
#endif
}

#ifndef GPUIR_NO_COLUMNS
/* Gets the bits of a block of the leaf that fails the where; see gpuir__sieve_get. Ranks that are read are work. */
static inline void gpuir__engine_fails(gpuir__engine *e, gpuir__sieve *s, uint64_t block, uint64_t fails[2]) {
  const uint64_t read = gpuir__sieve_get(s, block, fails);
  if (GPUIR__UNLIKELY(read > 0)) (void)gpuir__engine_worked(e, read / 1024);
}

/* Says whether a document passes a sieve; one behind the last, which damaged files have, does not. */
static int gpuir__engine_passes(gpuir__engine *e, gpuir__sieve *s, uint32_t docid) {
  uint64_t fails[2];
  if (docid / GPUIR__BLOCK >= s->blocks) return 0;
  gpuir__engine_fails(e, s, docid / GPUIR__BLOCK, fails);
  return !(fails[docid % GPUIR__BLOCK / 64] >> docid % 64 & 1);
}

/* Finds all bits of the blocks that documents [from, to) lie in. Returns 1 if they are known then: not if another
 * thread is at one of them, or the search has to stop. */
static int gpuir__engine_find(gpuir__engine *e, uint64_t from, uint64_t to) {
  const uint64_t end = gpuir__min64((to + GPUIR__BLOCK - 1) / GPUIR__BLOCK, e->sieve->blocks);
  uint64_t block, fails[2];
  for (block = from / GPUIR__BLOCK; block < end && !e->stopped; block++) {
    gpuir__engine_fails(e, e->sieve, block, fails);
    if (__atomic_load_n(&e->sieve->state[block], __ATOMIC_ACQUIRE) != GPUIR__BLOCK_KNOWN) return 0;
  }
  return !e->stopped;
}
#endif

/* Writes the numbers of those of n documents of the leaf that pass the where to kept[0..n); returns how many. */
static uint32_t gpuir__engine_test(gpuir__engine *e, const uint32_t *docs, uint32_t n, uint32_t *kept) {
  uint32_t j, m = 0;
#ifdef GPUIR_NO_COLUMNS
  (void)e;
  (void)docs;
  for (j = 0; j < n; j++) kept[m++] = j;
#else
  gpuir__sieve *s = e->sieve;
  uint64_t fails[2] = {0, 0}, block = UINT64_MAX;
  if (gpuir__sieve_is_known(s)) {
    const uint64_t behind = s->words * 64;
    for (j = 0; j < n; j++) {
      kept[m] = j;
      m += docs[j] < behind && !(s->fails[docs[j] / 64] >> docs[j] % 64 & 1);
    }
    return m;
  }
  for (j = 0; j < n && !e->stopped; j++) {
    if (docs[j] / GPUIR__BLOCK != block) {
      block = docs[j] / GPUIR__BLOCK;
      fails[0] = fails[1] = UINT64_MAX;
      if (block < s->blocks) gpuir__engine_fails(e, s, block, fails);
    }
    kept[m] = j;
    m += !(fails[docs[j] % GPUIR__BLOCK / 64] >> docs[j] % 64 & 1);
  }
#endif
  return m;
}

/* Turns to a leaf with room for n cursors, of which none is open. 0, NOMEM, or why the search has to stop. */
static int gpuir__engine_turn(gpuir__engine *e, const gpuir_query *q, size_t leaf, unsigned n) {
  int status;
  gpuir__engine_reset(e);
  e->leaf = e->ix->leaves[leaf];
  gpuir__engine_prefetch(e, q, e->turn.next, 1); /* it arrives while this leaf is evaluated */
  status = gpuir__engine_where(e, q, leaf);
  if (!status && e->cap < n) status = gpuir__engine_grow(e, n);
  return status ? status : gpuir__engine_saturate(e, q);
}

/* Opens a cursor on each word of the query that the engine's leaf has, positive ones first (in the query's order),
 * behind those that are open; *npositive is their number, and that of the optional ones is kept. */
static int gpuir__engine_open_words(gpuir__engine *e, const gpuir_query *q, size_t leaf, unsigned *npositive) {
  unsigned i;
  int status = GPUIR_OK;
  *npositive = e->turn.noptional = 0;
  for (i = 0; i < q->n && !status; i++) {
    const int held = gpuir__query_record(q, leaf, i)->df > 0;
    e->turn.cursor_of[i] = held ? e->ncursors : GPUIR__NO_TERM;
    if (!held) continue;
    status = gpuir__engine_open_list(e, q, leaf, GPUIR__ID_TERMS + i, &q->terms[i]);
    if (status) break;
    gpuir__engine_add(e, q, &q->terms[i]);
    *npositive += !q->terms[i].negated;
    e->turn.noptional += q->terms[i].optional != 0;
  }
  return status;
}

/* Turns to a leaf and opens its words' cursors. For queries without phrases and prefixes: see gpuir__terms_open. */
static int gpuir__engine_open(gpuir__engine *e, const gpuir_query *q, size_t leaf, unsigned *npositive) {
  const int status = gpuir__engine_turn(e, q, leaf, q->n);
  *npositive = 0;
  return status ? status : gpuir__engine_open_words(e, q, leaf, npositive);
}

/* Returns a score that at least k documents reach by this term alone, as far as the index has it stored; else 0. It is
 * stored for the idf and the lengths of one segment alone, and of all its documents. */
static uint32_t gpuir__stored_seed(const gpuir__cursor *c, const gpuir_query *q, size_t k) {
  unsigned s = 0;
  if (!q->stored_bm25 || !c->list.seeds || !gpuir__only(q->ix) || q->where || gpuir__query_collapses(q)) return 0;
  while (s < GPUIR__SEEDS && gpuir__seed_ranks[s] < k) s++;
  return s < GPUIR__SEEDS ? c->scorer.q * c->list.seeds[s] : 0;
}

/* Bounds the contribution of a block's postings. */
static inline uint32_t gpuir__block_bound(const gpuir__engine *e, const gpuir__cursor *c, uint32_t block) {
  float s = gpuir__block_saturation(e->saturation, c->list.bounds[block]);
  return gpuir__bound(c->scorer.weight, s, c->scorer.q);
}

/* Bounds what a dense list of the leaf contributes by each peak. */
static void gpuir__engine_peaks(gpuir__engine *e, const gpuir__cursor *c, uint32_t bound[256]) {
  const gpuir__stat *stat = &e->leaf.seg->stat;
  const gpuir__norm own = gpuir__norm_make(stat->k1, stat->b, gpuir__mean(stat->tokens, stat->documents));
  gpuir__peaks_prepare(&e->peaks, gpuir__norm_ratio(own, c->scorer.norm));
  e->kernels->peaks(&e->peaks, c->scorer.weight, c->scorer.q, bound);
}

/* Marks n matches of the leaf, where the engine marks what it counts. */
static inline void gpuir__engine_mark(const gpuir__engine *e, const uint32_t *docs, uint32_t n) {
#ifdef GPUIR_NO_COLUMNS
  (void)e;
  (void)docs;
  (void)n;
#else
  const uint64_t documents = e->leaf.seg->stat.documents;
  uint32_t i;
  if (!e->marks) return;
  for (i = 0; i < n; i++)
    if (docs[i] < documents) e->marks[docs[i] / 64] |= (uint64_t)1 << docs[i] % 64; /* not so in damaged files */
#endif
}

/* Writes the indices of the candidates that a negated list does not hold to kept[0..p->m); returns their number. */
static uint32_t gpuir__engine_absent(gpuir__engine *e, gpuir__operand *o, const gpuir__pass *p, uint32_t *kept) {
  const uint32_t found = gpuir__engine_lookup(e, o, p);
  uint32_t i, j = 0, n = 0;
  for (i = 0; i < p->m; i++) {
    if (j < found && p->from[j] == i) j++;
    else kept[n++] = i;
  }
  return n;
}

/* ---- what an engine does with a tile */

/* Reserves `more` items in that many further arrays, and lays out those of a tile of 2^shift documents. */
static int gpuir__tile_reserve(gpuir__engine *e, gpuir__tile *t, uint32_t shift, size_t more, size_t arrays) {
  const size_t size = (size_t)1 << shift;
  const size_t room = size + GPUIR__BLOCK_ROOM + 16; /* whole blocks and vectors may be written at the end */
  int status = gpuir__reserve(e, size + size / 64 + 7 * room + more, 9 + arrays);
  if (status) return status;
  t->shift = shift;
  t->scores = gpuir__carve(e, size);
  t->touched = (uint8_t *)(void *)gpuir__carve(e, size / 64);
  t->candidates = gpuir__carve(e, room);
  t->sums = gpuir__carve(e, room);
  t->from = gpuir__carve(e, room);
  t->where = gpuir__carve(e, room);
  t->found = gpuir__carve(e, room);
  t->freqs = gpuir__carve(e, room);
  t->values = gpuir__carve(e, room);
  memset(t->scores, 0, size * 4);
  memset(t->touched, 0, (size / GPUIR__TOUCH + 63) & ~(size_t)63); /* vectors read whole cache lines */
  return GPUIR_OK;
}

/* Makes the pass that looks n candidates up in a list, from block `from` on. */
static gpuir__pass gpuir__tile_pass(gpuir__tile *t, gpuir__operand *list, uint32_t from, uint32_t n) {
  gpuir__pass p;
  gpuir__pad(t->candidates + n);
  p.candidates = t->candidates;
  p.m = n;
  p.docs = t->found;
  p.from = t->from;
  p.where = t->where;
  p.spare = t->values;
  list->at = from * GPUIR__BLOCK;
  return p;
}

/* Drops those of n candidates of a tile that do not pass the where; returns how many stay. */
static uint32_t gpuir__tile_test(gpuir__engine *e, gpuir__tile *t, uint32_t n) {
  uint32_t i, *kept = t->freqs;
  if (!gpuir__engine_tests(e)) return n;
  n = gpuir__engine_test(e, t->candidates, n, kept);
  for (i = 0; i < n; i++) {
    t->candidates[i] = t->candidates[kept[i]];
    t->sums[i] = t->sums[kept[i]];
  }
  return n;
}

/* Drops those of n candidates of a tile that negated lists hold, the cursors from npositive on; returns how many
 * stay. */
static uint32_t gpuir__tile_exclude(gpuir__engine *e, gpuir__tile *t, unsigned npositive, uint32_t tile, uint32_t n) {
  uint32_t i, *kept = t->freqs;
  unsigned j;
  for (j = npositive; j < e->ncursors && n; j++) {
    gpuir__operand *list = &e->operands[j];
    const uint32_t from = gpuir__list_find_block(&list->cursor->list, 0, gpuir__tile_low(t, tile));
    const gpuir__pass p = gpuir__tile_pass(t, list, from, n);
    n = gpuir__engine_absent(e, list, &p, kept);
    for (i = 0; i < n; i++) {
      t->candidates[i] = t->candidates[kept[i]];
      t->sums[i] = t->sums[kept[i]];
    }
  }
  return n;
}

/* Offers those of n candidates that are not deleted to the top-k. In a damaged file some may lie behind the last
 * document. */
static void gpuir__tile_offer(gpuir__engine *e, const gpuir__tile *t, uint32_t n) {
  const uint64_t documents = e->leaf.seg->stat.documents;
  const gpuir__deleted *deleted = e->leaf.deleted;
  const uint32_t base = e->leaf.base;
  uint32_t i;
  for (i = 0; i < n; i++)
    if (t->candidates[i] < documents)
      gpuir__topk_push_live(&e->top, gpuir__key(t->sums[i], t->candidates[i] + base), deleted, t->candidates[i]);
}
