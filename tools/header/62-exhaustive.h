
/* ========
 * [62-exhaustive]  the reference: every posting, no bound; counting by windows of bits
 *
 * The exhaustive evaluator adds up every posting of every list in docID tiles: list by list, what the postings
 * contribute is added to the accumulators of the tile's documents, of which those that reach the threshold are
 * collected. No bound is looked at and nothing is looked up, so that it shares no pruning with [58-and] and [61-or],
 * which must return the same hits: it is of the laboratory, which GPUIR_NO_LAB leaves out. OR is counted in windows of
 * bits, one a document, and so is an AND of dense lists.
 *
 * Both work on cursors, block by block.
 *
 * Uses      [18-codecs], [24-postings], [26-dense], [37-layout], [50-sieve], [53-topk], [56-engine].
 * Start at  gpuir__eval_exhaustive, gpuir__count_windows, gpuir__eval_all (a query of no words).
 * Tests     tests/unit/62_exhaustive.c
 * ======*/

#ifndef GPUIR_NO_LAB
/* Returns 1 if one of 64 accumulators reaches the threshold. */
typedef int (*gpuir__reach)(const uint32_t *scores, uint32_t threshold);

GPUIR__INLINE int gpuir__reach_scalar(const uint32_t *scores, uint32_t threshold) {
  uint32_t reached = 0, i;
  for (i = 0; i < 64; i++) reached |= scores[i] >= threshold;
  return reached != 0;
}

/* Collects from a tile with hardly an accumulator that is 0: touched[] is neither read nor cleared. */
GPUIR__INLINE uint32_t gpuir__collect_dense_by(gpuir__reach reach, gpuir__tile *t, uint32_t low, uint32_t threshold) {
  uint32_t *scores = t->scores, size = 1u << t->shift, at, i, n = 0;
  for (at = 0; at < size; at += 64) {
    if (GPUIR__UNLIKELY(reach(scores + at, threshold)))
      for (i = at; i < at + 64; i++) {
        t->candidates[n] = low + i;
        t->sums[n] = scores[i];
        n += scores[i] >= threshold;
      }
  }
  memset(scores, 0, size * sizeof *scores);
  return n;
}

static uint32_t gpuir__collect_dense_scalar(gpuir__tile *t, uint32_t low, uint32_t threshold) {
  return gpuir__collect_dense_by(gpuir__reach_scalar, t, low, threshold);
}

#if GPUIR__X86
GPUIR__AVX2 GPUIR__INLINE int gpuir__reach_avx2(const uint32_t *scores, uint32_t threshold) {
  __m256i most = gpuir__avx2_load(scores);
  unsigned i;
  for (i = 8; i < 64; i += 8) most = _mm256_max_epu32(most, gpuir__avx2_load(scores + i));
  return gpuir__avx2_reach(most, _mm256_set1_epi32((int)threshold)) != 0;
}

GPUIR__AVX2 static uint32_t gpuir__collect_dense_avx2(gpuir__tile *t, uint32_t low, uint32_t threshold) {
  return gpuir__collect_dense_by(gpuir__reach_avx2, t, low, threshold);
}
#endif

/* See gpuir__search_kernels.collect. */
typedef uint32_t (*gpuir__collect)(gpuir__tile *t, uint32_t low, uint32_t threshold);

/* By SIMD level less GPUIR_SIMD_SCALAR. */
static const gpuir__collect gpuir__collect_dense_of_level[3] = {
    gpuir__collect_dense_scalar,
#if GPUIR__X86
    gpuir__collect_dense_avx2,
    gpuir__collect_dense_avx2,
#endif
};

typedef struct gpuir__exhaustive {
  gpuir__engine *e;
  gpuir__tile tile;
  unsigned n, required; /* lists; those that AND asks for, which come first */
  uint32_t next[GPUIR_MAX_TERMS]; /* [list] its next docID, or GPUIR_END */
  uint8_t *matched; /* AND: [document of the tile] how many required lists hold it; otherwise NULL */
  int dense; /* OR of so many postings that each line of lengths is prefetched, and each accumulator is looked at */
} gpuir__exhaustive;

/* A query is dense if it has a posting in so many documents: as many as there are lengths in a cache line. */
#define GPUIR__DENSE 16u

/* Keeps, for AND, those of n candidates, which any list holds, that every required list holds. */
static uint32_t gpuir__exhaustive_join(gpuir__exhaustive *x, uint32_t n) {
  uint32_t *candidates = x->tile.candidates, *sums = x->tile.sums, mask = (1u << x->tile.shift) - 1, kept = 0, i;
  for (i = 0; i < n; i++) {
    uint32_t doc = candidates[i], at = doc & mask;
    candidates[kept] = doc;
    sums[kept] = sums[i];
    kept += x->matched[at] == x->required;
    x->matched[at] = 0;
  }
  return kept;
}

/* Adds the contributions of n postings to their documents' accumulators. */
static void gpuir__exhaustive_add(gpuir__exhaustive *x, int required, const uint32_t *docs, const uint32_t *values,
    uint32_t n) {
  uint32_t *scores = x->tile.scores, mask = (1u << x->tile.shift) - 1, i;
  if (x->dense)
    for (i = 0; i < n; i++) scores[docs[i] & mask] += values[i];
  else gpuir__tile_add(&x->tile, docs, values, n);
  for (i = 0; x->matched && required && i < n; i++) x->matched[docs[i] & mask]++;
}

/* Decodes and scores a block; returns its first docID. */
static uint32_t gpuir__exhaustive_block(gpuir__exhaustive *x, gpuir__cursor *c, uint32_t block) {
  gpuir__engine *e = x->e;
  gpuir__cursor_load(c, block);
  if (!x->dense) gpuir__prefetch_lengths(e->leaf.seg->lengths, c->docs, c->n);
  gpuir__cursor_score(c);
  e->info.postings_scored += c->n;
  c->pos = 0;
  return c->docs[0];
}

/* Adds what a list contributes to the documents up to `high`; returns its next docID, or GPUIR_END behind the last one
 * and when the search has to stop. */
static uint32_t gpuir__exhaustive_list(gpuir__exhaustive *x, gpuir__cursor *c, uint32_t high) {
  for (;;) {
    uint32_t to = c->docs[c->n - 1] <= high ? c->n : gpuir__lower_bound(c->docs, c->pos, c->n, high + 1);
    gpuir__exhaustive_add(x, (size_t)(c - x->e->cursors) < x->required, c->docs + c->pos, c->values + c->pos,
        to - c->pos);
    c->pos = to;
    if (to < c->n) return c->docs[to];
    if (c->block + 1 >= c->list.nblocks || gpuir__engine_worked(x->e, 1)) return GPUIR_END;
    if (gpuir__exhaustive_block(x, c, c->block + 1) > high) return c->docs[0];
  }
}

/* Prefetches the i-th of n parts of the lengths that the tile behind docID `high` needs, so that they arrive while this
 * tile is worked on. */
static void gpuir__exhaustive_prefetch(const gpuir__exhaustive *x, uint32_t high, unsigned i, unsigned n) {
  const gpuir__segment *seg = x->e->leaf.seg;
  uint64_t size = (uint64_t)1 << x->tile.shift, low = (uint64_t)high + 1;
  uint64_t at = low + size * i / n, end = low + size * (i + 1) / n;
  for (; at < end && at < seg->stat.documents; at += GPUIR__DENSE) __builtin_prefetch(seg->lengths + at);
}

/* Scores one tile. 0, or why the search has to stop. */
static int gpuir__exhaustive_tile(gpuir__exhaustive *x, uint32_t tile) {
  gpuir__engine *e = x->e;
  gpuir__tile *t = &x->tile;
  uint32_t low = gpuir__tile_low(t, tile), high = gpuir__tile_high(t, tile), n;
  uint32_t threshold = x->matched ? 1 : gpuir__topk_threshold(&e->top);
  unsigned i;
  for (i = 0; i < x->n; i++) {
    if (x->dense) gpuir__exhaustive_prefetch(x, high, i, x->n);
    if (x->next[i] <= high) x->next[i] = gpuir__exhaustive_list(x, &e->cursors[i], high);
    if (e->stopped) return e->stopped;
  }
  n = x->dense ? gpuir__collect_dense_of_level[e->ix->simd - GPUIR_SIMD_SCALAR](t, low, threshold)
               : e->kernels->collect(t, low, threshold);
  if (x->matched) n = gpuir__exhaustive_join(x, n);
  gpuir__tile_offer(e, t, gpuir__tile_exclude(e, t, x->n, tile, gpuir__tile_test(e, t, n)));
  return gpuir__engine_look(e);
}

/* Lays out the tile's arrays and decodes the lists' first blocks. */
static int gpuir__exhaustive_prepare(gpuir__exhaustive *x, gpuir__engine *e, unsigned npositive, int all) {
  const size_t size = (size_t)1 << GPUIR__TILE_SHIFT;
  uint64_t postings = 0;
  unsigned i;
  int status = gpuir__tile_reserve(e, &x->tile, GPUIR__TILE_SHIFT, size / 4, 1);
  if (status) return status;
  x->e = e;
  x->n = npositive;
  x->required = npositive - e->turn.noptional;
  x->matched = all ? (uint8_t *)(void *)gpuir__carve(e, size / 4) : NULL;
  if (x->matched) memset(x->matched, 0, size);
  for (i = 0; i < npositive; i++) postings += e->cursors[i].list.df;
  x->dense = !all && postings >= e->leaf.seg->stat.documents / GPUIR__DENSE;
  for (i = 0; i < npositive; i++) x->next[i] = gpuir__exhaustive_block(x, &e->cursors[i], 0);
  return GPUIR_OK;
}

/* Evaluates AND (`all`) or OR by scoring every posting. */
static int gpuir__eval_exhaustive(gpuir__engine *e, unsigned npositive, int all) {
  gpuir__exhaustive x;
  uint32_t from = 0;
  int status = gpuir__exhaustive_prepare(&x, e, npositive, all);
  while (!status) {
    uint32_t next = GPUIR_END;
    unsigned i;
    for (i = 0; i < npositive; i++) next = gpuir__min32(next, x.next[i]);
    if (next == GPUIR_END || next >> x.tile.shift < from) break; /* the latter in a damaged file */
    from = next >> x.tile.shift;
    status = gpuir__exhaustive_tile(&x, from++);
  }
  return status;
}
#endif

/* ---- counting by windows: a bit for each document, set by positive lists, cleared by negated ones */

#ifndef GPUIR__WINDOW
#define GPUIR__WINDOW 65536u /* documents; a multiple of 64 */
#endif

/* Sets or clears the bits of a list's documents below `end`, from the cursor on, block by block. 0, or why the search
 * has to stop. */
static int gpuir__count_list(gpuir__engine *e, gpuir__cursor *c, uint64_t end, int positive, uint64_t *bits) {
  while (c->pos < c->n && c->docs[c->pos] < end) {
    uint32_t n = c->n, i;
    if (c->docs[n - 1] >= end) n = gpuir__lower_bound(c->docs, c->pos, n, (uint32_t)end);
    for (i = c->pos; i < n; i++) {
      const uint32_t d = c->docs[i] & (GPUIR__WINDOW - 1);
      const uint64_t bit = (uint64_t)1 << (d & 63);
      bits[d >> 6] = positive ? bits[d >> 6] | bit : bits[d >> 6] & ~bit;
    }
    c->pos = n - 1;
    (void)gpuir__cursor_step(c);
    if (!c->pos && gpuir__engine_worked(e, 1)) return e->stopped; /* another block */
  }
  return GPUIR_OK;
}

/* Lets the words of a window, which begins at document `low`, meet those of a dense list. */
static void gpuir__count_dense(const gpuir__engine *e, gpuir__cursor *c, uint64_t low, int how, uint64_t *bits) {
  const uint64_t words = gpuir__dense_lines(e->leaf.seg->stat.documents) * 8, first = low / 64;
  const size_t n = (size_t)gpuir__min64(GPUIR__WINDOW / 64, words - first);
  e->kernels->words(bits, (const uint64_t *)(const void *)c->list.dense.bits + first, n, how);
  c->decoded += (n + 63) / 64;
}

/* Clears the bits of a window's documents that do not pass the where. */
static void gpuir__count_test(gpuir__engine *e, uint64_t low, uint64_t *bits) {
#ifdef GPUIR_NO_COLUMNS
  (void)e;
  (void)low;
  (void)bits;
#else
  gpuir__sieve *s = e->sieve;
  const uint64_t words = gpuir__min64(GPUIR__WINDOW / 64, s->words - low / 64), blocks = s->blocks;
  uint64_t fails[2], i;
  if (gpuir__sieve_is_known(s)) {
    e->kernels->words(bits, s->fails + low / 64, (size_t)words, GPUIR__WORDS_WITHOUT);
    return;
  }
  for (i = 0; i + 1 < words && low / GPUIR__BLOCK + i / 2 < blocks && !e->stopped; i += 2) {
    if (!(bits[i] | bits[i + 1])) continue;
    gpuir__engine_fails(e, s, low / GPUIR__BLOCK + i / 2, fails);
    bits[i] &= ~fails[0];
    bits[i + 1] &= ~fails[1];
  }
#endif
}

/* Clears the bits of a window's documents that are deleted, and those behind the last document, which a damaged file
 * may have. */
static void gpuir__count_live(const gpuir__engine *e, uint64_t low, uint64_t *bits) {
  const gpuir__deleted *deleted = e->leaf.deleted;
  const uint64_t left = e->leaf.seg->stat.documents - low;
  if (deleted && low / 64 < deleted->words)
    e->kernels->words(bits, deleted->bits + low / 64,
        (size_t)gpuir__min64(GPUIR__WINDOW / 64, deleted->words - low / 64), GPUIR__WORDS_WITHOUT);
  if (left >= GPUIR__WINDOW) return;
  bits[left / 64] &= gpuir__low_bits64((unsigned)(left % 64));
  memset(bits + left / 64 + 1, 0, (GPUIR__WINDOW / 64 - (size_t)(left / 64) - 1) * sizeof *bits);
}

/* Fills the bits of a window; without a positive list, all documents are there that no negated one holds. 0, or why the
 * search has to stop. */
static int gpuir__count_window(gpuir__engine *e, unsigned npositive, int all, uint64_t low, uint64_t *bits) {
  unsigned i;
  int status = GPUIR_OK;
  memset(bits, npositive ? 0 : 255, GPUIR__WINDOW / 8);
  for (i = 0; i < e->ncursors && !status; i++) {
    gpuir__cursor *c = &e->cursors[i];
    if (i < npositive && i + e->turn.noptional >= npositive) continue; /* it only adds to scores */
    if (!c->list.dense.bits) status = gpuir__count_list(e, c, low + GPUIR__WINDOW, i < npositive, bits);
    else if (i >= npositive) gpuir__count_dense(e, c, low, GPUIR__WORDS_WITHOUT, bits);
    else gpuir__count_dense(e, c, low, all && i ? GPUIR__WORDS_AND : GPUIR__WORDS_OR, bits);
  }
  gpuir__count_live(e, low, bits);
  if (gpuir__engine_tests(e)) gpuir__count_test(e, low, bits);
  return status ? status : e->stopped;
}

/* Returns 1 if every positive list is dense: then AND is counted by words. */
static int gpuir__count_is_dense(const gpuir__engine *e, unsigned npositive) {
  unsigned i;
#ifndef GPUIR_NO_LAB
  if (e->intersection) return 0;
#endif
  for (i = 0; i < npositive; i++)
    if (!e->cursors[i].list.dense.bits) return 0;
  return 1;
}

/* Lays out a window's bits, and places the cursors before the first document. *bits: NULL without memory. */
static int gpuir__windows_open(gpuir__engine *e, uint64_t **bits) {
  unsigned i;
  const int status = gpuir__reserve(e, GPUIR__WINDOW / 32, 1);
  if (status) return status;
  *bits = (uint64_t *)(void *)gpuir__carve(e, GPUIR__WINDOW / 32);
  for (i = 0; i < e->ncursors; i++)
    if (!e->cursors[i].list.dense.bits) (void)gpuir__cursor_seek(&e->cursors[i], 0);
  return GPUIR_OK;
}

/* Counts the live documents that any positive list holds, or `all` required ones, which are dense then, and no negated
 * one. */
static int gpuir__count_windows(gpuir__engine *e, unsigned npositive, int all, uint64_t *count) {
  const uint64_t documents = e->leaf.seg->stat.documents;
  uint64_t low, *bits = NULL;
  int status = gpuir__windows_open(e, &bits);
  for (low = 0; !status && low < documents; low += GPUIR__WINDOW) {
    if ((status = gpuir__engine_look(e)) != 0) return status;
    status = gpuir__count_window(e, npositive, all, low, bits);
    if (!status) *count += e->kernels->ones(bits, GPUIR__WINDOW / 64);
#ifndef GPUIR_NO_COLUMNS
    if (e->marks) memcpy(e->marks + low / 64, bits, (size_t)gpuir__min64(GPUIR__WINDOW, documents - low + 63) / 64 * 8);
#endif
  }
  return status;
}

#ifndef GPUIR_NO_COLUMNS
/* Offers the live documents of a leaf that no negated list holds, all with score 0, until there are k: those behind
 * have greater numbers. */
static int gpuir__eval_all(gpuir__engine *e) {
  const uint64_t documents = e->leaf.seg->stat.documents;
  uint64_t low, word, *bits = NULL;
  size_t i;
  int status = gpuir__windows_open(e, &bits);
  for (low = 0; !status && low < documents && e->top.n < e->top.k; low += GPUIR__WINDOW) {
    if ((status = gpuir__engine_look(e)) != 0) return status;
    status = gpuir__count_window(e, 0, 0, low, bits);
    for (i = 0; !status && i < GPUIR__WINDOW / 64; i++)
      for (word = bits[i]; word && e->top.n < e->top.k; word &= word - 1)
        gpuir__topk_push(&e->top, gpuir__key(0, (uint32_t)(low + 64 * i) + gpuir__ctz64(word) + e->leaf.base));
  }
  return status;
}
#endif
