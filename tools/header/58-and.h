
/* ========
 * [58-and]  AND: small versus small with block skipping
 *
 * The blocks of the shortest list, the driver, are filtered through the others from short to long (small versus
 * small with block skipping: Ding et al., WWW 2009, section 8.1). Once k hits are there, a driver block is looked
 * up in the others only if its bound and those of their blocks that overlap it reach the threshold (block-max
 * AND: Ding & Suel, SIGIR 2011, section 4), and of its documents only those with the frequency that this takes.
 *
 * It works on decoded blocks and indices in lists, not posting by posting: a match's frequency is fetched, and its
 * length looked up, only while its score may still reach the threshold.
 *
 * Optional terms add to scores, but are not asked for: what holds them is evaluated first, see gpuir__and_step.
 *
 * Of lists that are dense the candidates' bits and the peaks of their windows are looked at first, and before any
 * frequency is read: only what they leave is looked up in blocks, and ranked. Where all lists are dense: [59-words].
 *
 * Uses      [18-codecs], [24-postings], [37-layout], [42-snapshot], [53-topk], [54-lookup], [55-methods] (another
 *           method that was asked for), [56-engine], [57-share].
 * Start at  gpuir__and_blocks, the last function: from there upwards.
 * Tests     tests/unit/58_and.c
 * ======*/

static int gpuir__compare_df(const gpuir__cursor *a, const gpuir__cursor *b) {
  return a->list.df < b->list.df ? -1 : a->list.df > b->list.df;
}

/* Numbers n cursors in their order. */
static void gpuir__order_number(unsigned n, unsigned *order) {
  unsigned i;
  for (i = 0; i < n; i++) order[i] = i;
}

/* Orders n cursor numbers by ascending df. */
static void gpuir__order_by_df(const gpuir__engine *e, unsigned n, unsigned *order) {
  unsigned i, j;
  for (i = 0; i < n; i++) {
    const unsigned at = order[i];
    for (j = i; j && gpuir__compare_df(&e->cursors[at], &e->cursors[order[j - 1]]) < 0; j--) order[j] = order[j - 1];
    order[j] = at;
  }
}

/* At most so many blocks of another list are looked at to bound what it adds within a driver block. Measured. */
#ifndef GPUIR__OVERLAP
#define GPUIR__OVERLAP 16u
#endif

/* So many matches of live and deleted documents wait, until they are counted together: the fewer of them are looked at
 * at a time, the more often the processor mispredicts where they end. */
#ifndef GPUIR__UNCOUNTED
#define GPUIR__UNCOUNTED (8 * GPUIR__BLOCK_ROOM)
#endif

/* Windows of dense lists that are bounded at a time: of 2^21 documents. The best of them come first, and the memory for
 * them, 128 KiB, stays in the cache. */
#ifndef GPUIR__SPAN
#define GPUIR__SPAN 32768u
#endif
#define GPUIR__PART 512u /* windows of which the best one is found: the 64th part of a span */

/* One driver block on its way through the other lists. Lists are numbered from short to long, the driver is 0. All
 * arrays of postings have GPUIR__BLOCK_ROOM items. */
typedef struct gpuir__and {
  unsigned order[GPUIR_MAX_TERMS]; /* [list] cursor number */
  unsigned npositive; /* that are required */
  unsigned indexed; /* the first list whose bits and windows are looked at, as those of all required ones behind it */
  unsigned nscored; /* and those of optional terms, which stand behind them in `order`, those that may add most first */
  unsigned ndone; /* and those of terms whose documents are done: see gpuir__and_step. Behind them: what is excluded */
  uint32_t parts_before; /* of the leaf, see gpuir__engine_part: those of steps before */
  uint32_t bound_after[GPUIR_MAX_TERMS]; /* [list] what all lists behind it can add together, at most */
  uint32_t *peak[GPUIR_MAX_TERMS]; /* [list from `indexed` on][peak] what it adds in such a window at most */
  uint32_t windows; /* what the lists whose windows are looked at can add together anywhere */
  uint32_t others; /* what the lists whose windows are not looked at, and not the driver, can add in its block */
  uint32_t overlap[GPUIR_MAX_TERMS]; /* [list] its first block that may overlap the driver block */
  uint32_t block; /* of the driver */
  const uint32_t *docs; /* the candidates, later the matches */
  uint32_t *chosen; /* candidates that are not all documents of the block */
  uint32_t *chosen_freqs; /* [chosen] frequency, less one */
  int is_chosen; /* the candidates are those of chosen[] */
  uint32_t *where[GPUIR_MAX_TERMS]; /* [list][match] index in the list, in the driver among the candidates; NULL: only
                                     * counted */
  uint32_t *from, *spare, *other[2]; /* of the passes: see gpuir__pass; docs alternates between the two */
  uint32_t *uncounted; /* nuncounted matches of blocks before, then the last list's; NULL: it goes to other[], too */
  uint32_t nuncounted;
  uint32_t *bounds; /* [span] scratch of [59-words]; NULL: a list is not dense */
  uint32_t span; /* items of bounds[] */
} gpuir__and;

#ifndef GPUIR_NO_LAB
static int gpuir__and_look(void *engine) { return gpuir__engine_look((gpuir__engine *)engine); }

/* Prepares each list but the driver for the method that was asked for. */
static int gpuir__and_prepare_method(gpuir__engine *e, const gpuir__and *x) {
  unsigned i;
  int status = GPUIR_OK;
  for (i = 1; i < x->npositive && e->intersection && !status; i++) {
    gpuir__prepared *made = &e->prepared[x->order[i]];
    if (e->operands[x->order[i]].prepared) continue; /* for a step before */
    made->stopped = gpuir__and_look;
    made->user = e;
    status = gpuir__operand_prepare(&e->a, e->intersection, &e->operands[x->order[i]], made);
    if (status && !e->stopped) status = gpuir__engine_fail(e, status, "out of memory");
    if (!status) status = gpuir__engine_look(e);
  }
  return status;
}
#endif

/* Orders n cursor numbers by what their lists may add, the most first. */
static void gpuir__order_by_bound(const gpuir__engine *e, unsigned n, unsigned *order) {
  unsigned i, j;
  for (i = 0; i < n; i++) {
    const unsigned at = order[i];
    for (j = i; j && e->cursors[at].bound > e->cursors[order[j - 1]].bound; j--) order[j] = order[j - 1];
    order[j] = at;
  }
}

/* What becomes of matches. */
typedef enum gpuir__and_use {
  GPUIR__AND_COUNT, /* they are counted */
  GPUIR__AND_PLACES, /* their indices in all lists are wanted */
  GPUIR__AND_SCORE /* those that may enter the top-k are scored */
} gpuir__and_use;

/* Moves the dense lists among the required ones behind the others, from `first` on, whichever the order of either.
 * Returns the number of the first. */
static unsigned gpuir__order_dense(const gpuir__engine *e, unsigned first, unsigned npositive, unsigned *order) {
  unsigned dense[GPUIR_MAX_TERMS], n = 0, kept = first, i;
#ifndef GPUIR_NO_LAB
  if (e->intersection) return npositive;
#endif
  for (i = first; i < npositive; i++) {
    if (e->cursors[order[i]].list.dense.bits) dense[n++] = order[i];
    else order[kept++] = order[i];
  }
  for (i = 0; i < n; i++) order[kept + i] = dense[i];
  return kept;
}

/* Orders the lists. Bits and windows are looked at of all required lists, or of all but the driver. */
static void gpuir__and_order(const gpuir__engine *e, gpuir__and *x, gpuir__and_use use) {
  gpuir__order_by_df(e, x->npositive, x->order);
  x->indexed = x->npositive;
  if (use != GPUIR__AND_SCORE || x->npositive < 2) return;
  if (!gpuir__order_dense(e, 0, x->npositive, x->order)) x->indexed = 0;
  else {
    gpuir__order_by_df(e, x->npositive, x->order);
    x->indexed = gpuir__order_dense(e, 1, x->npositive, x->order);
  }
}

/* The lists of a query whose first nrequired are required, and how far its evaluation is.
 *
 * Optional terms add to scores, but are not asked for. Where they are rare and the required ones are not, most of what
 * all required lists hold is looked at in vain. So matches that hold the optional term that may add most come first, by
 * an AND that asks for it, too; then those that hold the second and not the first; and so on. What holds none of those
 * comes last, unless it cannot reach the threshold any more, as it mostly cannot. With GPUIR_NO_RANK there is one
 * step. (This is MaxScore's order: Turtle &
 * Flood, "Query evaluation: strategies and optimizations", Information Processing & Management 31(6), 1995.) */
typedef struct gpuir__and_step {
  unsigned nrequired, noptional;
  unsigned optional[GPUIR_MAX_TERMS]; /* cursor numbers of the optional terms: those that may add most first */
  unsigned done; /* terms of optional[] whose matches are done */
  unsigned joins; /* 1: the next one is required in this step */
  uint32_t parts; /* of the leaf, see gpuir__engine_part: those of steps before */
} gpuir__and_step;

/* Begins with all lists of the query whose cursors are open. */
static void gpuir__and_begin(const gpuir__engine *e, gpuir__and_step *s, unsigned nrequired, unsigned noptional) {
  unsigned i;
  s->nrequired = nrequired;
  s->noptional = noptional;
  s->done = s->joins = 0;
  s->parts = 0;
  for (i = 0; i < noptional; i++) s->optional[i] = nrequired + i;
  gpuir__order_by_bound(e, noptional, s->optional);
}

/* Takes the lists of a step, and orders them. */
static void gpuir__and_take(const gpuir__engine *e, gpuir__and *x, const gpuir__and_step *s, gpuir__and_use use) {
  unsigned n = s->nrequired, i;
  gpuir__order_number(e->ncursors, x->order); /* those that exclude are the last, as they stay */
  for (i = 0; i < s->noptional; i++, n++) /* those that are done are the last */
    x->order[n] = s->optional[i + s->done < s->noptional ? i + s->done : i + s->done - s->noptional];
  x->npositive = s->nrequired + s->joins;
  x->nscored = n - s->done;
  x->ndone = n;
  x->parts_before = s->parts;
  gpuir__and_order(e, x, use);
}

/* Lays out the arrays of a step, orders the lists and sums their bounds. */
static int gpuir__and_prepare(gpuir__engine *e, gpuir__and *x, const gpuir__and_step *s, gpuir__and_use use) {
  const int indices = use != GPUIR__AND_COUNT;
  const size_t uncounted = !indices && e->leaf.deleted ? GPUIR__UNCOUNTED : 0;
  size_t n;
  int status;
  unsigned i;
  memset(x, 0, sizeof *x);
  gpuir__and_take(e, x, s, use);
  n = x->npositive;
  if (!x->indexed)
    x->span =
        gpuir__min32(GPUIR__SPAN, (uint32_t)((e->leaf.seg->stat.documents - 1) / 64 / GPUIR__PART + 1) * GPUIR__PART);
  status = gpuir__reserve(e, (n + 6) * GPUIR__BLOCK_ROOM + uncounted + 256 * (n - x->indexed) + x->span, 2 * n + 8);
  if (status) return status;
  x->from = gpuir__carve(e, GPUIR__BLOCK_ROOM);
  x->spare = gpuir__carve(e, GPUIR__BLOCK_ROOM);
  x->other[0] = gpuir__carve(e, GPUIR__BLOCK_ROOM);
  x->other[1] = gpuir__carve(e, GPUIR__BLOCK_ROOM);
  x->chosen = gpuir__carve(e, GPUIR__BLOCK_ROOM);
  x->chosen_freqs = gpuir__carve(e, GPUIR__BLOCK_ROOM);
  if (uncounted) x->uncounted = gpuir__carve(e, uncounted);
  if (x->span) x->bounds = gpuir__carve(e, x->span);
  for (i = 0; indices && i < n; i++) x->where[i] = gpuir__carve(e, GPUIR__BLOCK_ROOM);
  for (i = 0; i < e->ncursors; i++) {
    e->operands[x->order[i]].at = 0;
    e->operands[x->order[i]].expected = i == 1 ? e->operands[x->order[0]].n : 0;
  }
  for (i = x->nscored; i-- > 1;) x->bound_after[i - 1] = x->bound_after[i] + e->cursors[x->order[i]].bound;
  for (i = x->indexed; i < n; i++) {
    x->peak[i] = gpuir__carve(e, 256);
    gpuir__engine_peaks(e, &e->cursors[x->order[i]], x->peak[i]);
    x->windows += e->cursors[x->order[i]].bound;
  }
#ifndef GPUIR_NO_LAB
  status = gpuir__and_prepare_method(e, x);
#endif
  return status ? status : gpuir__engine_look(e);
}

/* Returns the one of the two arrays in which the candidates are not. */
static inline uint32_t *gpuir__and_other(const gpuir__and *x) {
  return x->docs == x->other[0] ? x->other[1] : x->other[0];
}

/* Makes the matches those n whose indices are kept[0..n). */
static void gpuir__and_keep(gpuir__and *x, const uint32_t *kept, uint32_t n) {
  uint32_t *docs = gpuir__and_other(x), j;
  unsigned t;
  for (j = 0; j < n; j++) docs[j] = x->docs[kept[j]];
  gpuir__pad(docs + n);
  for (t = 0; x->where[0] && t < x->indexed; t++)
    for (j = 0; j < n; j++) x->where[t][j] = x->where[t][kept[j]];
  x->docs = docs;
}

#if GPUIR__X86
/* Counts those of n documents, which ascend, that are deleted. The bits of 16 that lie close together are taken out of
 * registers, others are gathered. Reads up to 15 documents more. */
GPUIR__AVX512 static uint32_t gpuir__deleted_among_avx512(const gpuir__deleted *d, const uint32_t *docs, uint32_t n) {
  const __m512i one = _mm512_set1_epi32(1);
  const uint32_t *bits = (const uint32_t *)(const void *)d->bits;
  uint32_t count = 0, j;
  for (j = 0; j < n; j += 16) {
    const __mmask16 all = (__mmask16)gpuir__low_bits(gpuir__min32(n - j, 16));
    const uint32_t first = docs[j] / 32, last = docs[gpuir__min32(j + 15, n - 1)] / 32;
    const __m512i x = _mm512_loadu_si512(docs + j), at = _mm512_srli_epi32(x, 5);
    __m512i w;
    if (last - first < 32 && first + 32 <= 2 * d->words)
      w = _mm512_permutex2var_epi32(_mm512_loadu_si512(bits + first),
          _mm512_sub_epi32(at, _mm512_set1_epi32((int)first)), _mm512_loadu_si512(bits + first + 16));
    else w = _mm512_mask_i32gather_epi32(one, all, at, bits, 4);
    w = _mm512_rorv_epi32(w, x);
    count += (uint32_t)__builtin_popcount(gpuir__mask_bits(_mm512_mask_test_epi32_mask(all, w, one)));
  }
  return count;
}
#endif

/* Counts those of n documents, which ascend, that are deleted. There are 15 more that may be read. */
static uint32_t gpuir__and_deleted(const gpuir__engine *e, const uint32_t *docs, uint32_t n) {
  uint32_t count = 0, j;
#if GPUIR__X86
  if (e->ix->simd >= GPUIR_SIMD_AVX512) return gpuir__deleted_among_avx512(e->leaf.deleted, docs, n);
#endif
  for (j = 0; j < n; j++) count += (uint32_t)gpuir__deleted_has(e->leaf.deleted, docs[j]);
  return count;
}

/* Drops those of n matches that are deleted; returns how many stay. */
static uint32_t gpuir__and_live(gpuir__and *x, const gpuir__deleted *deleted, uint32_t n) {
  uint32_t kept[GPUIR__BLOCK_ROOM], live = 0, j;
  for (j = 0; j < n; j++) {
    kept[live] = j;
    live += !gpuir__deleted_has(deleted, x->docs[j]);
  }
  if (live < n) gpuir__and_keep(x, kept, live);
  return live;
}

/* Drops those of n candidates, or matches, that do not pass the where; returns how many stay. */
static uint32_t gpuir__and_test(gpuir__engine *e, gpuir__and *x, uint32_t n) {
  uint32_t kept[GPUIR__BLOCK_ROOM];
  const uint32_t m = gpuir__engine_test(e, x->docs, n, kept);
  if (m < n) gpuir__and_keep(x, kept, m);
  return m;
}

/* Drops those of n matches that negated lists hold; returns how many stay. */
static uint32_t gpuir__and_exclude(gpuir__engine *e, gpuir__and *x, uint32_t n) {
  uint32_t kept[GPUIR__BLOCK_ROOM], held[GPUIR__BLOCK_ROOM], where[GPUIR__BLOCK_ROOM];
  gpuir__pass p;
  unsigned i;
  p.docs = held;
  p.from = x->from;
  p.where = where;
  p.spare = x->spare;
  for (i = x->ndone; i < e->ncursors && n; i++) {
    if (!x->indexed && e->cursors[x->order[i]].list.dense.bits) continue; /* done by words */
    p.candidates = x->docs;
    p.m = n;
    n = gpuir__engine_absent(e, &e->operands[x->order[i]], &p, kept);
    gpuir__and_keep(x, kept, n);
  }
  return n;
}

/* Bounds what a list adds to any document from lo to hi, by its blocks there, which are sought from *at on; *at becomes
 * the first of them. */
static uint32_t gpuir__range_bound(const gpuir__engine *e, const gpuir__cursor *c, uint32_t lo, uint32_t hi,
    uint32_t *at) {
  const gpuir__list *l = &c->list;
  uint32_t block, bound = 0;
  *at = gpuir__list_find_block(l, *at, lo);
  for (block = *at; block < l->nblocks; block++) {
    if (block - *at == GPUIR__OVERLAP) return c->bound;
    bound = gpuir__max32(bound, gpuir__block_bound(e, c, block));
    if (l->last[block] >= hi) break;
  }
  return bound;
}

/* Bounds what the other lists together, but for those whose windows are looked at, add to any document of the driver
 * block. */
static uint32_t gpuir__and_others_bound(const gpuir__engine *e, gpuir__and *x, uint32_t block) {
  const gpuir__list *driver = &e->cursors[x->order[0]].list;
  uint32_t lo = block ? driver->last[block - 1] + 1 : 0, sum = 0;
  unsigned i;
  for (i = 1; i < x->nscored; i++) {
    const gpuir__cursor *c = &e->cursors[x->order[i]];
    if (i >= x->indexed && i < x->npositive) continue;
    if (c->list.bounds && c->list.nblocks / GPUIR__OVERLAP <= driver->nblocks)
      sum += gpuir__range_bound(e, c, lo, driver->last[block], &x->overlap[i]);
    else sum += c->bound;
  }
  return sum;
}

/* Sums what the lists whose windows are looked at can add to each of n documents. */
static void gpuir__and_windows(const gpuir__engine *e, const gpuir__and *x, const uint32_t *docs, uint32_t n,
    uint32_t *sums) {
  unsigned i;
  memset(sums, 0, n * sizeof *sums);
  for (i = x->indexed; i < x->npositive; i++)
    e->kernels->windows(&e->cursors[x->order[i]].list, x->peak[i], docs, n, sums);
}

/* Keeps the candidates among n that all lists hold whose bits are looked at. */
static uint32_t gpuir__and_sift_bits(gpuir__engine *e, gpuir__and *x, uint32_t n) {
  gpuir__pass p;
  unsigned i;
  uint32_t j;
  p.from = x->from;
  p.where = NULL;
  p.spare = x->spare;
  for (i = x->indexed; i < x->npositive && n; i++) {
    p.candidates = x->docs;
    p.m = n;
    p.docs = gpuir__and_other(x);
    n = gpuir__engine_lookup(e, &e->operands[x->order[i]], &p);
    for (j = 0; j < n; j++) x->where[0][j] = x->where[0][p.from[j]];
    gpuir__pad(p.docs + n);
    x->docs = p.docs;
  }
  return n;
}

/* Keeps the candidates among n whose windows, with `more` and what else may be added, reach the threshold. */
static uint32_t gpuir__and_sift_windows(gpuir__engine *e, gpuir__and *x, uint32_t n, uint32_t more) {
  const uint32_t threshold = gpuir__topk_threshold(&e->top);
  uint32_t sums[GPUIR__BLOCK_ROOM], kept[GPUIR__BLOCK_ROOM], all[GPUIR__BLOCK_ROOM], m, j;
  if (more + x->others >= threshold) return n;
  gpuir__and_windows(e, x, x->docs, n, sums);
  for (j = 0; j < n; j++) all[j] = j;
  m = e->kernels->keep(all, sums, n, threshold - more - x->others, kept, sums);
  if (m < n) gpuir__and_keep(x, kept, m);
  return m;
}

/* Keeps the candidates among n whose frequency in the driver block lets them contribute `least`. */
static uint32_t gpuir__and_sift_freqs(gpuir__engine *e, gpuir__and *x, uint32_t n, uint32_t least) {
  const gpuir__cursor *driver = &e->cursors[x->order[0]];
  uint32_t freqs[GPUIR__BLOCK_ROOM], kept[GPUIR__BLOCK_ROOM], at[GPUIR__BLOCK_ROOM], m, j;
  for (j = 0; j < n; j++) at[j] = x->block * GPUIR__BLOCK + x->where[0][j];
  gpuir__list_freqs_at(&driver->list, at, n, freqs);
  for (j = 0; j < n; j++) at[j] = j;
  m = e->kernels->keep(at, freqs, n, gpuir__least_frequency(&driver->scorer, driver->list.bounds[x->block], least),
      kept, freqs);
  if (m < n) gpuir__and_keep(x, kept, m);
  return m;
}

/* Chooses candidates of the decoded driver block by bits, by windows, and by frequencies that contributing `least`
 * takes: these where a list is looked up in blocks, which costs more than to read them. */
static uint32_t gpuir__and_sift(gpuir__engine *e, gpuir__and *x, uint32_t least) {
  const gpuir__cursor *driver = &e->cursors[x->order[0]];
  const uint32_t bound = driver->list.bounds ? gpuir__block_bound(e, driver, x->block) : driver->bound;
  uint32_t n = driver->n, j;
  for (j = 0; j < n; j++) x->where[0][j] = j;
  n = gpuir__and_sift_bits(e, x, n);
  if (n) n = gpuir__and_sift_windows(e, x, n, bound);
  if (n && least && x->indexed > 1) n = gpuir__and_sift_freqs(e, x, n, least);
  return n;
}

/* Decodes a driver block and returns how many candidates it has: all its documents, or, with a threshold above 0, those
 * with the frequency that contributing as much takes. */
static uint32_t gpuir__and_candidates(gpuir__engine *e, gpuir__and *x, uint32_t block, uint32_t threshold) {
  gpuir__cursor *driver = &e->cursors[x->order[0]];
  uint32_t n;
  gpuir__list_prefetch_docs(&driver->list, block);
  gpuir__cursor_load(driver, block);
  x->block = block;
  x->docs = driver->docs;
  x->is_chosen = threshold > 0 && x->indexed == x->npositive;
  if (x->indexed < x->npositive) return gpuir__and_sift(e, x, threshold);
  if (!threshold) return driver->n;
  gpuir__cursor_freqs(driver);
  n = e->kernels->keep(driver->docs, driver->values, driver->n,
      gpuir__least_frequency(&driver->scorer, driver->list.bounds[block], threshold), x->chosen, x->chosen_freqs);
  gpuir__pad(x->chosen + n);
  x->docs = x->chosen;
  return n;
}

#ifndef GPUIR_NO_LAB
/* Finds the matches among n candidates by a method that takes all lists at once. */
static uint32_t gpuir__and_match_all(gpuir__engine *e, gpuir__and *x, uint32_t n) {
  gpuir__operand *o[GPUIR_MAX_TERMS], first;
  unsigned i;
  gpuir__operand_init(&first, NULL, e->lookups);
  first.docs = x->docs;
  first.n = n;
  o[0] = &first;
  for (i = 1; i < x->npositive; i++) o[i] = &e->operands[x->order[i]];
  n = e->intersection->all(o, x->npositive, x->other[0], x->where[0] ? x->where : NULL);
  (void)gpuir__engine_worked(e, GPUIR__LOOK_BLOCKS); /* each block of any list may have been decoded */
  gpuir__pad(x->other[0] + n);
  x->docs = x->other[0];
  return n;
}
#endif

/* Filters the candidates of a pass through one list, by vectors or by the method that was asked for. */
static uint32_t gpuir__and_filter(gpuir__engine *e, gpuir__operand *o, const gpuir__pass *p) {
#ifndef GPUIR_NO_LAB
  if (e->intersection) {
    const uint64_t before = o->cursor->decoded;
    const uint32_t found = e->intersection->list(o, p);
    (void)gpuir__engine_worked(e, o->cursor->decoded - before);
    return found;
  }
#endif
  return gpuir__engine_lookup(e, o, p);
}

/* Finds the matches among n candidates, list by list; returns their number. */
static uint32_t gpuir__and_match_each(gpuir__engine *e, gpuir__and *x, uint32_t n) {
  gpuir__pass p;
  unsigned i, t;
  uint32_t j;
  p.from = x->where[0] ? x->from : NULL;
  p.spare = x->spare;
  for (i = 1; i < x->indexed && n; i++) {
    p.candidates = x->docs;
    p.m = n;
    p.docs = x->uncounted && i + 1 == x->npositive ? x->uncounted + x->nuncounted : gpuir__and_other(x);
    p.where = x->where[i];
    n = gpuir__and_filter(e, &e->operands[x->order[i]], &p);
    if (e->stopped) return 0;
    gpuir__pad(p.docs + n);
    for (t = 0; p.from && t < i; t++)
      for (j = 0; j < n; j++) x->where[t][j] = x->where[t][p.from[j]];
    x->docs = p.docs;
  }
  return n;
}

/* Finds the matches among n candidates: documents that every list holds and no negated one does, and that pass the
 * where; deleted ones too. Where it is known which documents pass, candidates are tested, otherwise matches, which are
 * fewer. */
static uint32_t gpuir__and_match(gpuir__engine *e, gpuir__and *x, uint32_t n) {
  uint32_t *where = x->indexed == x->npositive ? x->where[0] : NULL, j;
  const int tests = gpuir__engine_tests(e), first = tests && gpuir__engine_knows(e);
  for (j = 0; where && j < n; j++) where[j] = j;
  if (first) n = gpuir__and_test(e, x, n);
  if (!n) return 0;
#ifndef GPUIR_NO_LAB
  if (x->npositive > 1 && e->intersection && e->intersection->all) n = gpuir__and_match_all(e, x, n);
  else
#endif
    n = gpuir__and_match_each(e, x, n);
  if (n && x->ndone < e->ncursors) n = gpuir__and_exclude(e, x, n);
  return n && tests && !first ? gpuir__and_test(e, x, n) : n;
}

/* Finds the matches likewise, without deleted documents, which stay in docs[] if matches are only counted. */
static uint32_t gpuir__and_match_live(gpuir__engine *e, gpuir__and *x, uint32_t n) {
  n = gpuir__and_match(e, x, n);
  if (!n || !e->leaf.deleted) return n;
  return x->where[0] ? gpuir__and_live(x, e->leaf.deleted, n) : n - gpuir__and_deleted(e, x->docs, n);
}

/* Counts the live ones of the matches that wait. */
static uint32_t gpuir__and_count_rest(gpuir__engine *e, gpuir__and *x) {
  const uint32_t n = x->nuncounted;
  x->nuncounted = 0;
  return n ? n - gpuir__and_deleted(e, x->uncounted, n) : 0;
}

/* Counts the live ones of n matches; those that the last list's pass put where matches wait do so while there is room
 * for another block's. */
static uint32_t gpuir__and_count(gpuir__engine *e, gpuir__and *x, uint32_t n) {
  if (!n || !e->leaf.deleted) return n;
  if (x->docs != x->uncounted + x->nuncounted) return n - gpuir__and_deleted(e, x->docs, n);
  x->nuncounted += n;
  return x->nuncounted + GPUIR__BLOCK_ROOM <= GPUIR__UNCOUNTED ? 0 : gpuir__and_count_rest(e, x);
}

/* Matches while they are scored: n documents. */
typedef struct gpuir__and_scored {
  uint32_t n;
  uint32_t docs[GPUIR__BLOCK_ROOM], matches[GPUIR__BLOCK_ROOM]; /* matches: their numbers */
  uint32_t sums[GPUIR__BLOCK_ROOM]; /* what was added up so far */
  uint32_t rest[GPUIR__BLOCK_ROOM]; /* what the lists to come can add at most, where windows are looked at */
} gpuir__and_scored;

/* Fetches the frequencies, less one, of matches in list i. */
static void gpuir__and_freqs(gpuir__engine *e, const gpuir__and *x, unsigned i, const gpuir__and_scored *s,
    uint32_t *freqs) {
  gpuir__cursor *c = &e->cursors[x->order[i]];
  uint32_t at[GPUIR__BLOCK_ROOM], base = i ? 0 : x->block * GPUIR__BLOCK, j;
  if (!i && x->is_chosen) {
    for (j = 0; j < s->n; j++) freqs[j] = x->chosen_freqs[x->where[0][s->matches[j]]];
    return;
  }
  if (i >= x->indexed) e->lookups->ranks(&c->list, s->docs, s->n, at);
  else
    for (j = 0; j < s->n; j++) at[j] = base + x->where[i][s->matches[j]];
  gpuir__list_freqs_at(&c->list, at, s->n, freqs);
}

/* Prefetches the frequencies of n matches, most of which are not in the cache. To be inlined: see
 * gpuir__list_prefetch. */
GPUIR__INLINE void gpuir__and_prefetch_freqs(const gpuir__engine *e, const gpuir__and *x, uint32_t n) {
  unsigned i;
  for (i = 1; i < x->indexed; i++) {
    const gpuir__list *l = &e->cursors[x->order[i]].list;
    uint32_t before = UINT32_MAX, j;
    for (j = 0; j < n; j++) {
      const uint32_t block = x->where[i][j] / GPUIR__BLOCK;
      if (block != before) gpuir__list_prefetch_freqs(l, block);
      before = block;
    }
  }
}

/* Adds what the list of an optional term, number i, contributes to n scored documents, which ascend and have room for
 * padding; drops those that cannot enter the top-k any more; returns how many stay. */
static uint32_t gpuir__and_add_optional(gpuir__engine *e, const gpuir__and *x, unsigned i, uint32_t *docs,
    uint32_t *sums, uint32_t n) {
  uint32_t found[GPUIR__BLOCK_ROOM], from[GPUIR__BLOCK_ROOM], where[GPUIR__BLOCK_ROOM], spare[GPUIR__BLOCK_ROOM];
  const uint32_t threshold = gpuir__topk_threshold(&e->top);
  gpuir__operand *o = &e->operands[x->order[i]];
  const gpuir__scorer *scorer = &o->cursor->scorer;
  uint32_t held, kept, j;
  gpuir__pass p;
  gpuir__pad(docs + n);
  p.candidates = docs;
  p.m = n;
  p.docs = found;
  p.from = from;
  p.where = where;
  p.spare = spare;
  held = gpuir__engine_lookup(e, o, &p);
  if (held) {
    uint32_t freqs[GPUIR__BLOCK_ROOM], values[GPUIR__BLOCK_ROOM];
    gpuir__pad(found + held);
    gpuir__list_freqs_at(&o->cursor->list, where, held, freqs);
    scorer->score(scorer, found, freqs, held, values);
    e->info.postings_scored += held;
    for (j = 0; j < held; j++) sums[from[j]] += values[j];
  }
  for (j = kept = 0; j < n; j++) {
    docs[kept] = docs[j];
    sums[kept] = sums[j];
    kept += sums[j] + x->bound_after[i] >= threshold;
  }
  return kept;
}

#ifndef GPUIR_NO_RANK
/* Drops those of n scored documents that steps before have offered, since a list holds them whose matches are done. Few
 * get so far: to look all matches up would cost more. Returns how many stay. */
static uint32_t gpuir__and_drop_done(gpuir__engine *e, const gpuir__and *x, uint32_t *docs, uint32_t *sums,
    uint32_t n) {
  uint32_t kept[GPUIR__BLOCK_ROOM], held[GPUIR__BLOCK_ROOM], where[GPUIR__BLOCK_ROOM], j;
  gpuir__pass p;
  unsigned i;
  p.candidates = docs;
  p.docs = held;
  p.from = x->from;
  p.where = where;
  p.spare = x->spare;
  for (i = x->nscored; i < x->ndone && n; i++) {
    if (!x->indexed && e->cursors[x->order[i]].list.dense.bits) continue; /* done by words */
    gpuir__pad(docs + n);
    p.m = n;
    n = gpuir__engine_absent(e, &e->operands[x->order[i]], &p, kept);
    for (j = 0; j < n; j++) {
      docs[j] = docs[kept[j]];
      sums[j] = sums[kept[j]];
    }
  }
  return n;
}
#endif

/* Adds what list i contributes to matches, and drops those that cannot reach the threshold even with all that the lists
 * to come may add. */
static void gpuir__and_add(const gpuir__and *x, unsigned i, uint32_t threshold, gpuir__and_scored *s,
    const uint32_t *values) {
  const uint32_t n = s->n, rest = x->bound_after[i];
  uint32_t kept = 0, j;
  for (j = 0; j < n; j++) {
    const uint32_t sum = s->sums[j] + values[j];
    if (sum + rest < threshold) continue;
    s->sums[kept] = sum;
    s->matches[kept] = s->matches[j];
    s->docs[kept++] = s->docs[j];
  }
  s->n = kept;
}

/* Does the same where the windows of lists are looked at: they bound what is to come. */
static void gpuir__and_add_by_windows(const gpuir__engine *e, const gpuir__and *x, unsigned i, uint32_t threshold,
    gpuir__and_scored *s, const uint32_t *values) {
  const gpuir__cursor *c = &e->cursors[x->order[i]];
  const uint32_t n = s->n;
  uint32_t kept = 0, j;
  for (j = 0; j < n; j++) {
    const uint32_t sum = s->sums[j] + values[j];
    const uint32_t own = i >= x->indexed ? x->peak[i][gpuir__peak_at(&c->list, s->docs[j])] : i ? c->bound : 0;
    const uint32_t rest = s->rest[j] - own;
    s->sums[kept] = sum;
    s->rest[kept] = rest;
    s->matches[kept] = s->matches[j];
    s->docs[kept] = s->docs[j];
    kept += sum + rest >= threshold;
  }
  s->n = kept;
}

/* Begins to score the n matches in x->docs: their sums are 0, and s->rest[j] becomes what the lists after the driver
 * can add to match j at most. That comes from windows where a list has them, elsewhere from the list's bound.
 * Frequencies and lengths are fetched ahead, since every match needs them. */
static void gpuir__and_score_begin(const gpuir__engine *e, const gpuir__and *x, gpuir__and_scored *s, uint32_t n) {
  const unsigned last = x->npositive - 1;
  uint32_t more = x->bound_after[last], j; /* of lists whose windows are not looked at, and not the driver */
  unsigned i;
  gpuir__and_prefetch_freqs(e, x, n);
  gpuir__prefetch_lengths(e->leaf.seg->lengths, x->docs, n);
  s->n = n;
  for (j = 0; j < n; j++) {
    s->matches[j] = j;
    s->docs[j] = x->docs[j];
    s->sums[j] = 0;
  }
  if (x->indexed == x->npositive) return;
  gpuir__pad(s->docs + n);
  gpuir__and_windows(e, x, s->docs, n, s->rest);
  for (i = 1; i < x->indexed; i++) more += e->cursors[x->order[i]].bound;
  for (j = 0; j < n; j++) s->rest[j] += more;
}

/* Scores n matches of a driver block, list by list, and offers them to the top-k. A match that cannot enter even with
 * all that the lists to come may add is dropped before its frequencies there are fetched. */
static void gpuir__and_score(gpuir__engine *e, const gpuir__and *x, uint32_t n) {
  uint32_t freqs[GPUIR__BLOCK_ROOM], values[GPUIR__BLOCK_ROOM], j;
  const uint32_t threshold = gpuir__topk_threshold(&e->top);
  gpuir__and_scored s;
  unsigned i;
  gpuir__and_score_begin(e, x, &s, n);
  for (i = 0; i < x->npositive && s.n; i++) {
    const gpuir__scorer *scorer = &e->cursors[x->order[i]].scorer;
    gpuir__and_freqs(e, x, i, &s, freqs);
    scorer->score(scorer, s.docs, freqs, s.n, values);
    e->info.postings_scored += s.n;
    if (x->indexed == x->npositive) gpuir__and_add(x, i, threshold, &s, values);
    else gpuir__and_add_by_windows(e, x, i, threshold, &s, values);
  }
  n = s.n;
  for (; i < x->nscored && n; i++) n = gpuir__and_add_optional(e, x, i, s.docs, s.sums, n);
#ifndef GPUIR_NO_RANK
  n = gpuir__and_drop_done(e, x, s.docs, s.sums, n);
#endif
  for (j = 0; j < n; j++)
    gpuir__topk_push_live(&e->top, gpuir__key(s.sums[j], s.docs[j] + e->leaf.base), e->leaf.deleted, s.docs[j]);
}

/* Returns 1 if a driver block may hold a document of the top-k; *driver_threshold: what such a document's posting there
 * contributes at least. */
static int gpuir__and_is_wanted(const gpuir__engine *e, gpuir__and *x, uint32_t block, uint32_t *driver_threshold) {
  const gpuir__cursor *driver = &e->cursors[x->order[0]];
  uint32_t threshold = gpuir__topk_threshold(&e->top), bound, others;
  *driver_threshold = 0;
  x->others = x->bound_after[0] - x->windows;
  if (!driver->list.bounds) return 1;
  bound = gpuir__block_bound(e, driver, block);
  if (bound + x->bound_after[0] < threshold) return 0;
  x->others = gpuir__and_others_bound(e, x, block);
  others = x->others + x->windows;
  if (threshold > others) *driver_threshold = threshold - others;
  return bound >= *driver_threshold;
}

/* Says whether it is known that no document of a driver block passes the where. */
static int gpuir__and_is_empty(const gpuir__engine *e, const gpuir__and *x, uint32_t block) {
  const uint32_t *last = e->cursors[x->order[0]].list.last;
  return last && gpuir__engine_is_empty(e, block ? (uint64_t)last[block - 1] + 1 : 0, (uint64_t)last[block] + 1);
}

/* Returns what gpuir__engine_part does, of the n parts of a step. */
static inline uint32_t gpuir__and_part(gpuir__engine *e, const gpuir__and *x, uint32_t next, uint32_t n,
    uint32_t most) {
#ifdef GPUIR_NO_RANK
  (void)x;
  return gpuir__engine_part(e, next, n, most);
#else
  return gpuir__engine_part(e, x->parts_before + next, x->parts_before + n, most) - x->parts_before;
#endif
}

/* Evaluates AND by the blocks of the driver; with `count`, only counts its matches, for which optional terms do not
 * matter. A driver block whose bound, with all that the overlapping blocks of the other lists can add, does not reach
 * the threshold is skipped, and so are its postings that are not frequent enough. */
static int gpuir__and_blocks(gpuir__engine *e, gpuir__and *x, uint64_t *count) {
  const uint32_t nblocks = e->cursors[x->order[0]].list.nblocks;
  uint32_t block, threshold = 0, n;
  for (block = 0;; block++) {
    block = gpuir__and_part(e, x, block, nblocks, GPUIR__TAKEN_BLOCKS);
    if (block >= nblocks) break;
    if (gpuir__engine_worked(e, 1)) return e->stopped;
    if (!count && !gpuir__and_is_wanted(e, x, block, &threshold)) continue;
    if (gpuir__and_is_empty(e, x, block)) continue;
    n = gpuir__and_candidates(e, x, block, threshold);
    if (n) n = gpuir__and_match(e, x, n);
    if (e->stopped) return e->stopped;
    if (count) {
      gpuir__engine_mark(e, x->docs, n);
      *count += gpuir__and_count(e, x, n);
    } else if (n) gpuir__and_score(e, x, n);
  }
  if (x->uncounted) *count += gpuir__and_count_rest(e, x);
  return GPUIR_OK;
}
