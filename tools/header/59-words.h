
/* ========
 * [59-words]  AND of dense lists, by words of bits; which form an AND takes
 *
 * Where all lists are dense no list drives. The words of a window, 64 documents, are ANDed; a window in which a bit is
 * left is bounded by its peaks, list by list: at first by a slope, which takes a multiplication a window, and then,
 * where that may reach the threshold, exactly. Matches of such windows are ranked and scored, list by list, 64 or more
 * at a time. A few windows with the greatest bounds go first and raise the threshold.
 *
 *       bits, 8 words a line     AND -> which windows have a match
 *       peaks, 8 bytes a line    slopes -> what a match there may score   -> windows that reach the threshold
 *                                                                         -> their matches: ranks, frequencies, scores
 *
 * (Bounds of fixed docID windows: Dimopoulos, Nepomnyachiy & Suel, "Optimizing top-k document retrieval strategies for
 * block-max indexes", WSDM 2013, section 4.)
 *
 * Uses      [24-postings], [26-dense], [37-layout], [50-sieve], [53-topk], [54-lookup], [56-engine], [57-share],
 *           [58-and].
 * Start at  gpuir__eval_and, the last function; gpuir__words_span.
 * Tests     tests/unit/59_words.c
 * ======*/

/* What windows are bounded by. A slope times a peak, in units of 2^shift, is at least the bound of the peak. */
typedef struct gpuir__slopes {
  unsigned n, nlists; /* lists that must hold a document; with those that must not, which stand behind them */
  const uint64_t *bits[GPUIR_MAX_TERMS + 1]; /* [list]; the last may be what fails the where */
  const uint8_t *peaks[GPUIR_MAX_TERMS]; /* [list < n] */
  uint32_t slope[GPUIR_MAX_TERMS]; /* [list < n] below 2^15 */
  uint32_t shift;
} gpuir__slopes;

/* Bounds the windows of so many lines; 0: no match there. Returns the greatest bound. */
typedef uint32_t (*gpuir__slopes_kernel)(const gpuir__slopes *s, uint64_t line, uint32_t lines, uint32_t *bounds);

/* Returns a bit for each of 64 bounds that is not below `least`, which is below 2^31 as they are. */
typedef uint64_t (*gpuir__reach_kernel)(const uint32_t *bounds, uint32_t least);

static uint32_t gpuir__slopes_scalar(const gpuir__slopes *s, uint64_t line, uint32_t lines, uint32_t *bounds) {
  uint32_t most = 0, i;
  for (i = 0; i < 8 * lines; i++) {
    const uint64_t at = 8 * line + i;
    uint64_t word = s->bits[0][at];
    uint32_t sum = 0;
    unsigned j;
    for (j = 1; j < s->n; j++) word &= s->bits[j][at];
    for (; j < s->nlists; j++) word &= ~s->bits[j][at];
    for (j = 0; word && j < s->n; j++) sum += s->slope[j] * s->peaks[j][at];
    bounds[i] = sum;
    most = gpuir__max32(most, sum);
  }
  return most;
}

static uint64_t gpuir__reach_scalar_64(const uint32_t *bounds, uint32_t least) {
  uint64_t reached = 0;
  uint32_t i;
  for (i = 0; i < 64; i++) reached |= (uint64_t)(bounds[i] >= least) << i;
  return reached;
}

#if GPUIR__X86
/* Bounds a line's windows by the slopes. Slopes and peaks are below 2^15, so that their product is that of their low
 * halves. */
GPUIR__AVX2 GPUIR__INLINE __m256i gpuir__slopes_line(const gpuir__slopes *s, size_t at) {
  __m256i sum = _mm256_setzero_si256();
  unsigned j;
  for (j = 0; j < s->n; j++) {
    const __m256i peaks = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(s->peaks[j] + at)));
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(peaks, _mm256_set1_epi32((int)s->slope[j])));
  }
  return sum;
}

/* Returns the greatest of 8 numbers below 2^31. */
GPUIR__AVX2 GPUIR__INLINE uint32_t gpuir__slopes_most(__m256i v) {
  __m128i x = _mm_max_epu32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  x = _mm_max_epu32(x, _mm_shuffle_epi32(x, 0x4e));
  x = _mm_max_epu32(x, _mm_shuffle_epi32(x, 0xb1));
  return (uint32_t)_mm_cvtsi128_si32(x);
}

GPUIR__AVX2 static uint32_t gpuir__slopes_avx2(const gpuir__slopes *s, uint64_t line, uint32_t lines,
    uint32_t *bounds) {
  const __m256i zero = _mm256_setzero_si256(), order = _mm256_setr_epi32(0, 1, 4, 5, 2, 3, 6, 7);
  __m256i most = zero;
  uint32_t i;
  for (i = 0; i < lines; i++) {
    const size_t at = (size_t)(8 * (line + i));
    __m256i x = gpuir__avx2_load(s->bits[0] + at), y = gpuir__avx2_load(s->bits[0] + at + 4), sum;
    unsigned j;
    for (j = 1; j < s->n; j++) {
      x = _mm256_and_si256(x, gpuir__avx2_load(s->bits[j] + at));
      y = _mm256_and_si256(y, gpuir__avx2_load(s->bits[j] + at + 4));
    }
    for (; j < s->nlists; j++) {
      x = _mm256_andnot_si256(gpuir__avx2_load(s->bits[j] + at), x);
      y = _mm256_andnot_si256(gpuir__avx2_load(s->bits[j] + at + 4), y);
    }
    x = _mm256_cmpeq_epi64(x, zero);
    y = _mm256_cmpeq_epi64(y, zero);
    x = _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(x), _mm256_castsi256_ps(y), 0x88));
    x = _mm256_permutevar8x32_epi32(x, order); /* the words of x, then those of y */
    sum = _mm256_andnot_si256(x, gpuir__slopes_line(s, at));
    gpuir__avx2_store(bounds + 8 * i, sum);
    most = _mm256_max_epu32(most, sum);
  }
  return gpuir__slopes_most(most);
}

GPUIR__AVX512 static uint32_t gpuir__slopes_avx512(const gpuir__slopes *s, uint64_t line, uint32_t lines,
    uint32_t *bounds) {
  __m256i most = _mm256_setzero_si256();
  uint32_t i;
  for (i = 0; i < lines; i++) {
    const size_t at = (size_t)(8 * (line + i));
    __m512i x = _mm512_loadu_si512(s->bits[0] + at);
    __m256i sum;
    unsigned j;
    for (j = 1; j < s->n; j++) x = _mm512_and_si512(x, _mm512_loadu_si512(s->bits[j] + at));
    for (; j < s->nlists; j++) x = _mm512_andnot_si512(_mm512_loadu_si512(s->bits[j] + at), x);
    sum = _mm256_maskz_mov_epi32(_mm512_test_epi64_mask(x, x), gpuir__slopes_line(s, at));
    _mm256_storeu_si256((__m256i *)(void *)(bounds + 8 * i), sum);
    most = _mm256_max_epu32(most, sum);
  }
  return gpuir__slopes_most(most);
}

GPUIR__AVX2 static uint64_t gpuir__reach_avx2_64(const uint32_t *bounds, uint32_t least) {
  const __m256i below = _mm256_set1_epi32((int)least - 1);
  uint64_t reached = 0;
  unsigned i;
  for (i = 0; i < 64; i += 8) {
    const __m256i over = _mm256_cmpgt_epi32(gpuir__avx2_load(bounds + i), below);
    reached |= (uint64_t)(uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(over)) << i;
  }
  return reached;
}
#endif

/* By SIMD level less GPUIR_SIMD_SCALAR. */
static const struct gpuir__words_kernels {
  gpuir__slopes_kernel slopes;
  gpuir__reach_kernel reach;
} gpuir__words_of_level[3] = {
    {gpuir__slopes_scalar, gpuir__reach_scalar_64},
#if GPUIR__X86
    {gpuir__slopes_avx2, gpuir__reach_avx2_64},
    {gpuir__slopes_avx512, gpuir__reach_avx2_64},
#endif
};

/* ---- windows that may reach the threshold */

typedef struct gpuir__words {
  gpuir__engine *e;
  gpuir__and *x; /* docs[] of matches that wait: other[0] */
  const struct gpuir__words_kernels *kernels;
  gpuir__slopes slopes;
  uint64_t first; /* the window at which the span begins */
  uint32_t most[GPUIR__SPAN / GPUIR__PART]; /* [part of the span] its greatest bound */
  uint32_t waiting; /* matches */
  int in_order; /* lists are looked up in blocks: matches of a look-up must ascend */
  int tests; /* it is not known of all documents whether they pass the where */
} gpuir__words;

/* Returns the greatest quotient of a bound and its peak. */
static double gpuir__steepest(const uint32_t bound[256]) {
  double most = 0;
  unsigned q;
  for (q = 1; q < 256; q++) {
    const double x = (double)bound[q] / q;
    if (x > most) most = x;
  }
  return most * (1 + 1e-9); /* a rounding */
}

/* Prepares AND by words of bits: for each list a slope, by which its peaks are multiplied to bound a window. One shift
 * for all makes slopes numbers below 2^15, which vectors multiply fastest. The bits of excluded lists stand last. */
static void gpuir__words_prepare(gpuir__words *w, gpuir__engine *e, gpuir__and *x) {
  double steep[GPUIR_MAX_TERMS], most = 0;
  gpuir__slopes *s = &w->slopes;
  unsigned i;
  w->e = e;
  w->x = x;
  w->kernels = &gpuir__words_of_level[e->ix->simd - GPUIR_SIMD_SCALAR];
  w->waiting = 0;
  w->in_order = 0;
  w->tests = 0;
  s->n = s->nlists = x->npositive;
  for (i = 0; i < x->npositive; i++) {
    const gpuir__dense *d = &e->cursors[x->order[i]].list.dense;
    s->bits[i] = d->bits->word;
    s->peaks[i] = d->peaks->of;
    steep[i] = gpuir__steepest(x->peak[i]);
    if (steep[i] > most) most = steep[i];
  }
  for (s->shift = 0; most >= 32766 * (double)((uint64_t)1 << s->shift); s->shift++) {}
  for (i = 0; i < x->npositive; i++) s->slope[i] = (uint32_t)(steep[i] / (double)((uint64_t)1 << s->shift)) + 1;
  for (i = x->npositive; i < e->ncursors; i++) {
    const gpuir__dense *d = &e->cursors[x->order[i]].list.dense;
    if (!d->bits) w->in_order = 1;
    else if (i >= x->nscored) s->bits[s->nlists++] = d->bits->word;
  }
#ifndef GPUIR_NO_COLUMNS
  w->tests = e->sieve && !gpuir__sieve_is_known(e->sieve);
  if (e->sieve && !w->tests) s->bits[s->nlists++] = e->sieve->fails;
#endif
}

/* Returns the least bound, in units of the slopes, with which a window may have a hit. */
static uint32_t gpuir__words_least(const gpuir__words *w) {
  const uint32_t threshold = gpuir__topk_threshold(&w->e->top), more = w->x->bound_after[w->x->npositive - 1];
  if (threshold <= more) return 1;
  return (uint32_t)gpuir__min64(
      ((uint64_t)(threshold - more) + ((uint64_t)1 << w->slopes.shift) - 1) >> w->slopes.shift, INT32_MAX);
}

/* Returns a bit for each match of a window. */
static uint64_t gpuir__words_of(const gpuir__words *w, uint64_t window) {
  const gpuir__slopes *s = &w->slopes;
  const gpuir__deleted *deleted = w->e->leaf.deleted;
  const uint64_t documents = w->e->leaf.seg->stat.documents;
  uint64_t word = UINT64_MAX;
  unsigned i;
  if (window >= documents / 64) word = window > documents / 64 ? 0 : gpuir__low_bits64((unsigned)(documents % 64));
  for (i = 0; i < s->n; i++) word &= s->bits[i][window];
  for (; i < s->nlists; i++) word &= ~s->bits[i][window];
  if (deleted && window < deleted->words) word &= ~deleted->bits[window];
#ifndef GPUIR_NO_COLUMNS
  if (word && w->tests) {
    uint64_t fails[2];
    gpuir__engine_fails(w->e, w->e->sieve, window / 2, fails);
    word &= ~fails[window % 2];
  }
#endif
  return word;
}

/* Scores the matches that wait. */
static void gpuir__words_flush(gpuir__words *w) {
  gpuir__engine *e = w->e;
  gpuir__and *x = w->x;
  uint32_t n = w->waiting;
  unsigned i;
  w->waiting = 0;
  if (!n) return;
  gpuir__pad(x->other[0] + n);
  x->docs = x->other[0];
  for (i = 0; i < x->npositive; i++) e->cursors[x->order[i]].decoded += (n + 63) / 64;
  if (gpuir__engine_worked(e, (uint64_t)x->npositive * ((n + 63) / 64))) return;
  if (w->in_order) n = gpuir__and_exclude(e, x, n);
  if (n) gpuir__and_score(e, x, n);
}

/* Lets the matches of a window wait, unless its peaks bound them below the threshold. */
static void gpuir__words_take(gpuir__words *w, uint64_t window) {
  const gpuir__and *x = w->x;
  const uint32_t *lengths = w->e->leaf.seg->lengths;
  uint32_t sum = x->bound_after[x->npositive - 1], *docs = x->other[0];
  uint64_t word;
  unsigned i;
  for (i = 0; i < x->npositive; i++) sum += x->peak[i][w->slopes.peaks[i][window]];
  if (sum < gpuir__topk_threshold(&w->e->top)) return;
  for (word = gpuir__words_of(w, window); word; word &= word - 1) {
    const uint32_t d = (uint32_t)window * 64 + gpuir__ctz64(word);
    __builtin_prefetch(lengths + d);
    docs[w->waiting++] = d;
  }
  if (w->waiting >= 64) gpuir__words_flush(w);
}

/* Takes the best window of each part of the span, the greatest first, while they may reach the threshold. */
static void gpuir__words_best(gpuir__words *w, uint32_t parts) {
  uint32_t order[GPUIR__SPAN / GPUIR__PART], i, j;
  for (i = 0; i < parts; i++) {
    for (j = i; j && w->most[order[j - 1]] < w->most[i]; j--) order[j] = order[j - 1];
    order[j] = i;
  }
  for (i = 0; i < parts && w->most[order[i]] >= gpuir__words_least(w) && !w->e->stopped; i++) {
    uint32_t *bounds = w->x->bounds + order[i] * GPUIR__PART;
    for (j = 0; bounds[j] != w->most[order[i]]; j++) {}
    bounds[j] = 0; /* done */
    gpuir__words_take(w, w->first + order[i] * GPUIR__PART + j);
    if (w->in_order || w->waiting >= 16) gpuir__words_flush(w);
  }
  gpuir__words_flush(w);
}

/* Looks up from the beginning of the lists again: smaller documents follow. */
static void gpuir__words_rewind(gpuir__words *w) {
  unsigned i;
  for (i = w->x->npositive; i < w->e->ncursors; i++) w->e->operands[w->x->order[i]].at = 0;
}

/* Evaluates so many lines from `line` on. 0, or why the search has to stop. */
static int gpuir__words_span(gpuir__words *w, uint64_t line, uint32_t lines) {
  const uint32_t parts = (8 * lines + GPUIR__PART - 1) / GPUIR__PART;
  gpuir__engine *e = w->e;
  uint32_t part, i, *bounds = w->x->bounds;
  w->first = 8 * line;
  memset(bounds + 8 * (size_t)lines, 0, ((size_t)parts * GPUIR__PART - 8 * (size_t)lines) * sizeof *bounds);
  for (part = 0; part < parts; part++) {
    const uint32_t first = part * (GPUIR__PART / 8), n = gpuir__min32(lines - first, GPUIR__PART / 8);
    w->most[part] = w->kernels->slopes(&w->slopes, line + first, n, bounds + part * GPUIR__PART);
    for (i = 0; i < w->slopes.n; i++) e->cursors[w->x->order[i]].decoded += (n + 7) / 8;
    if (gpuir__engine_worked(e, (uint64_t)w->slopes.nlists * ((n + 7) / 8))) return e->stopped;
  }
  if (!e->share) {
    gpuir__words_best(w, parts);
    gpuir__words_rewind(w);
  }
  for (part = 0; part < parts && !e->stopped; part++) {
    const uint32_t least = gpuir__words_least(w);
    for (i = 0; w->most[part] >= least && i < GPUIR__PART; i += 64) {
      const uint32_t at = part * GPUIR__PART + i;
      uint64_t reached = w->kernels->reach(bounds + at, least);
      for (; reached && !e->stopped; reached &= reached - 1)
        gpuir__words_take(w, w->first + at + gpuir__ctz64(reached));
    }
  }
  if (!e->stopped) gpuir__words_flush(w);
  return e->stopped;
}

#define GPUIR__PART_LINES 16u /* 8,192 documents, of which engines that share a search take parts */

/* Returns how many parts the engine's leaf has for them. */
static uint32_t gpuir__words_parts(const gpuir__engine *e) {
  return (uint32_t)((gpuir__dense_lines(e->leaf.seg->stat.documents) + GPUIR__PART_LINES - 1) / GPUIR__PART_LINES);
}

/* Evaluates AND where all lists are dense: span by span, or, of a search that is shared, part by part. */
static int gpuir__and_words(gpuir__engine *e, gpuir__and *x) {
  const uint64_t lines = gpuir__dense_lines(e->leaf.seg->stat.documents);
  const uint32_t parts = gpuir__words_parts(e);
  const uint32_t step = e->share ? 1 : GPUIR__SPAN / 8 / GPUIR__PART_LINES;
  gpuir__words w;
  uint32_t part;
  int status = GPUIR_OK;
  gpuir__words_prepare(&w, e, x);
  for (part = 0; !status; part += step) {
    const uint64_t line = (uint64_t)(part = gpuir__and_part(e, x, part, parts, GPUIR__TAKEN_TILES)) * GPUIR__PART_LINES;
    if (part >= parts) break;
    status = gpuir__words_span(&w, line, (uint32_t)gpuir__min64(step * GPUIR__PART_LINES, lines - line));
  }
  return status;
}

/* ---- AND, of optional terms step by step */

/* Evaluates a step of AND; with `count`, only counts matches, for which optional terms do not matter. */
static int gpuir__and_evaluate(gpuir__engine *e, gpuir__and_step *s, uint64_t *count) {
  gpuir__and x;
  int status = gpuir__and_prepare(e, &x, s, count ? GPUIR__AND_COUNT : GPUIR__AND_SCORE);
  if (status) return status;
  status = x.indexed ? gpuir__and_blocks(e, &x, count) : gpuir__and_words(e, &x);
#ifndef GPUIR_NO_RANK
  s->parts += x.indexed ? e->cursors[x.order[0]].list.nblocks : gpuir__words_parts(e);
#endif
  return status;
}

#ifndef GPUIR_NO_RANK
/* An optional term's step is worth it if its list is at most so many times as long as the shortest required one:
 * otherwise it takes about as long as all steps together without it. Measured. */
#ifndef GPUIR__STEP_LENGTH
#define GPUIR__STEP_LENGTH 4u
#endif

/* Returns 1 if matches that hold the next optional term have a step of their own. `least`: the postings of the shortest
 * required list. What does not hold the term may be out of the threshold's reach: then this is the last step; but
 * engines that share a search must take the same steps, whatever their thresholds are. */
static int gpuir__and_steps(const gpuir__engine *e, const gpuir__and_step *s, uint32_t least, uint32_t bound) {
  const gpuir__cursor *c = s->done < s->noptional ? &e->cursors[s->optional[s->done]] : NULL;
  if (!c) return 0;
  if (c->list.df / GPUIR__STEP_LENGTH < least) return 1;
  return !e->share && bound - c->bound < gpuir__topk_threshold(&e->top);
}

/* Evaluates the steps of optional terms that have one. Returns what is left: an upper bound of the scores. */
static uint32_t gpuir__and_optional(gpuir__engine *e, gpuir__and_step *s, int *status) {
  uint32_t least = UINT32_MAX, bound = 0;
  unsigned i;
  for (i = 0; i < s->nrequired; i++) least = gpuir__min32(least, e->cursors[i].list.df);
  for (i = 0; i < s->nrequired + s->noptional; i++) bound += e->cursors[i].bound;
  s->joins = 1;
  while (!*status && bound >= gpuir__topk_threshold(&e->top) && gpuir__and_steps(e, s, least, bound)) {
    *status = gpuir__and_evaluate(e, s, NULL);
    bound -= e->cursors[s->optional[s->done++]].bound;
  }
  s->joins = 0;
  return bound;
}
#endif

/* Evaluates AND; with `count`, only counts its matches. */
static int gpuir__eval_and(gpuir__engine *e, unsigned npositive, uint64_t *count) {
  gpuir__and_step s;
  int status = GPUIR_OK;
  gpuir__and_begin(e, &s, npositive - e->turn.noptional, e->turn.noptional);
#ifndef GPUIR_NO_RANK
  if (!count && s.noptional && gpuir__and_optional(e, &s, &status) < gpuir__topk_threshold(&e->top)) return status;
#endif
  return status ? status : gpuir__and_evaluate(e, &s, count);
}
