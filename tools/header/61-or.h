
/* ========
 * [61-or]  OR, pruned: MaxScore over docID tiles with block bounds
 *
 * The blocks' bounds become bounds of fixed docID tiles in one pass a list; a tile is scored only if the sum of its
 * bounds reaches the threshold. A few tiles with the greatest sums go first and raise the threshold, which may
 * start from the terms' stored k-th contributions. In a tile, terms whose bounds together stay below the threshold
 * are not essential: their lists are only probed for the candidates of the essential ones. A single essential term
 * gives its postings as candidates; several add up in the tile's accumulators. (MaxScore: Turtle & Flood 1995;
 * block bounds: Ding & Suel, SIGIR 2011; docID windows and partition by window: Lucene 10's MaxScoreBulkScorer;
 * tiles in order of bounds: Mallia et al., "Faster learned sparse retrieval with block-max pruning", SIGIR 2024.)
 *
 * It works on blocks: a block is decoded when a tile wants it, and its postings are added or filtered together.
 *
 * Uses      [18-codecs], [24-postings], [27-bounds], [37-layout], [41-reader], [50-sieve], [51-query], [53-topk],
 *           [54-lookup], [56-engine], [57-share].
 * Start at  gpuir__eval_or, the last function: from there upwards; gpuir__or_tile scores one tile.
 * Tests     tests/unit/61_or.c
 * ======*/

/* Tiles that are scored in order of their bounds, to raise the threshold, before all others. */
#ifndef GPUIR__FIRST_TILES
#define GPUIR__FIRST_TILES 8u
#endif

/* Lists of up to so many postings are decoded and scored up front. */
#ifndef GPUIR__UP_FRONT
#define GPUIR__UP_FRONT GPUIR__WHOLE
#endif

/* One positive term. */
typedef struct gpuir__or_term {
  gpuir__cursor *cursor;
  gpuir__operand *operand; /* of the cursor */
  uint32_t *bound; /* [tile] what the term can contribute there at most; 0: nothing */
  uint32_t *first; /* [tile] the first block, up front the first posting, that may lie in it */
  uint32_t peak; /* not up front: the tile with the greatest bound */
  uint32_t *docs; /* up front: docIDs, and 16 times UINT32_MAX behind them; otherwise NULL */
  uint32_t *values; /* up front: [posting] contribution; otherwise NULL */
} gpuir__or_term;

typedef struct gpuir__or {
  gpuir__engine *e;
  gpuir__tile tile;
  gpuir__or_term terms[GPUIR_MAX_TERMS];
  unsigned n; /* terms */
  uint32_t tiles; /* in the index */
  uint32_t up_front; /* postings of a list that is decoded up front, at most */
  uint32_t *bound; /* [tile] the sum of its terms' bounds; 0: nothing there, or done */
  uint32_t best[GPUIR__FIRST_TILES]; /* the tiles with the greatest bounds, in descending order, */
  unsigned nbest; /* and their number */
#ifndef GPUIR_NO_COLUMNS
  gpuir__sieve *sieve; /* of its leaf; NULL: all documents pass */
#endif
} gpuir__or;

/* A leaf of a query, opened. */
typedef struct gpuir__or_leaf {
  gpuir__or o;
  size_t leaf;
  unsigned first, ncursors; /* its cursors among the engine's */
  unsigned next; /* of o.best */
  uint8_t term_of[GPUIR_MAX_TERMS]; /* [term of the query] which of o.terms it is; UINT8_MAX: none */
  gpuir__deleted *deleted;
} gpuir__or_leaf;

/* ---- bounds of tiles */

/* Decodes a list up front: its frequencies come to values[], for gpuir__or_score_up_front. */
static void gpuir__or_decode_up_front(gpuir__or *o, gpuir__or_term *t) {
  gpuir__cursor *c = t->cursor;
  uint32_t block, n = 0;
  for (block = 0; block < c->list.nblocks; block++) {
    const uint32_t more = gpuir__list_docs(&c->list, block, t->docs + n);
    gpuir__list_freqs(&c->list, block, t->values + n);
    gpuir__prefetch_lengths(c->scorer.lengths, t->docs + n, more);
    n += more;
  }
  c->decoded += block;
  o->e->info.postings_scored += n;
}

/* Scores a list that was decoded up front; its contributions bound its tiles exactly. */
static void gpuir__or_score_up_front(gpuir__or *o, gpuir__or_term *t) {
  const gpuir__cursor *c = t->cursor;
  const uint32_t n = c->list.df;
  uint32_t i;
  c->scorer.score(&c->scorer, t->docs, t->values, n, t->values);
  for (i = 0; i < 16; i++) t->docs[n + i] = UINT32_MAX;
  for (i = n; i-- > 0;) { /* backwards, so that first[] ends at the first posting */
    uint32_t tile = t->docs[i] >> o->tile.shift;
    t->bound[tile] = gpuir__max32(t->bound[tile], t->values[i]);
    t->first[tile] = i;
  }
}

/* Bounds each tile by the blocks that reach into it. Whatever a damaged directory says, a step goes to the next
 * block or the next tile. 0, or why the search has to stop. */
static int gpuir__or_bound_blocks(gpuir__or *o, gpuir__or_term *t) {
  const gpuir__cursor *c = t->cursor;
  const gpuir__list *l = &c->list;
  const gpuir__saturation *table = o->e->saturation;
  uint32_t block = 0, tile;
  float peak = 0;
  for (tile = 0; tile < o->tiles; tile++) {
    uint32_t high = gpuir__tile_high(&o->tile, tile);
    float most = 0;
    t->first[tile] = block;
    if (block >= l->nblocks) continue;
    for (; block < l->nblocks; block++) {
      float s = gpuir__block_saturation(table, l->bounds[block]);
      most = s > most ? s : most;
      if (l->last[block] >= high) break;
      if (block % 65536 == 65535 && gpuir__engine_look(o->e)) return o->e->stopped;
    }
    t->bound[tile] = gpuir__bound(c->scorer.weight, most, c->scorer.q);
    if (most > peak) {
      peak = most;
      t->peak = tile;
    }
    block += block < l->nblocks && l->last[block] == high; /* otherwise the next tile may have some of it */
  }
  return GPUIR_OK;
}

/* Returns the tiles with the greatest bounds, in descending order, and their number. */
static unsigned gpuir__or_first_tiles(const gpuir__or *o, uint32_t *best) {
  unsigned n = 0, j;
  uint32_t t;
  for (t = 0; t < o->tiles; t++) {
    uint32_t v = o->bound[t];
    if (!v || (n == GPUIR__FIRST_TILES && v <= o->bound[best[n - 1]])) continue;
    j = n < GPUIR__FIRST_TILES ? n++ : n - 1;
    for (; j && o->bound[best[j - 1]] < v; j--) best[j] = best[j - 1];
    best[j] = t;
  }
  return n;
}

/* ---- the postings of a term in a tile */

/* Returns the block behind the last one that may reach into a tile. */
static inline uint32_t gpuir__or_block_end(const gpuir__or *o, const gpuir__or_term *t, uint32_t tile) {
  uint32_t n = t->cursor->list.nblocks;
  return tile + 1 < o->tiles ? gpuir__min32(t->first[tile + 1] + 1, n) : n;
}

/* Returns the end of the decoded block's postings in a tile, and in *from their beginning. */
static inline uint32_t gpuir__or_range(const gpuir__or *o, const gpuir__cursor *c, uint32_t tile, uint32_t *from) {
  uint32_t low = gpuir__tile_low(&o->tile, tile), high = gpuir__tile_high(&o->tile, tile);
  *from = c->docs[0] >= low ? 0 : gpuir__lower_bound(c->docs, 0, c->n, low);
  return c->docs[c->n - 1] <= high ? c->n : gpuir__lower_bound(c->docs, *from, c->n, high + 1);
}

/* Counts the postings in a tile of a list decoded up front, from first[tile] on. */
static inline uint32_t gpuir__or_count_up_front(const gpuir__or *o, const gpuir__or_term *t, uint32_t tile) {
  uint32_t from = t->first[tile], i = from, df = t->cursor->list.df;
  while (i < df && t->docs[i] >> o->tile.shift == tile) i++;
  return i - from;
}

/* Scores n postings of a list, docIDs docs[] and frequencies in the tile's freqs[]. */
static void gpuir__or_score(gpuir__or *o, const gpuir__cursor *c, const uint32_t *docs, uint32_t n, uint32_t *values) {
  gpuir__prefetch_lengths(o->e->leaf.seg->lengths, docs, n);
  c->scorer.score(&c->scorer, docs, o->tile.freqs, n, values);
  o->e->info.postings_scored += n;
}

/* Adds the contributions of a list's blocks within a tile, but for blocks that cannot reach the threshold even
 * with all that the other terms can add, `others_bound`. */
static void gpuir__or_add_blocks(gpuir__or *o, gpuir__or_term *t, uint32_t tile, uint32_t others_bound,
    uint32_t threshold) {
  gpuir__cursor *c = t->cursor;
  uint32_t end = gpuir__or_block_end(o, t, tile), block, i, to;
  for (block = t->first[tile]; block < end; block++) {
    if (gpuir__block_bound(o->e, c, block) + others_bound < threshold) continue;
    if (gpuir__engine_worked(o->e, 1)) return;
    gpuir__cursor_load(c, block);
    if (c->kind != GPUIR__VALUES_SCORES) {
      gpuir__prefetch_lengths(o->e->leaf.seg->lengths, c->docs, c->n);
      gpuir__cursor_score(c);
      o->e->info.postings_scored += c->n;
    }
    to = gpuir__or_range(o, c, tile, &i);
    gpuir__tile_add(&o->tile, c->docs + i, c->values + i, to - i);
  }
}

/* ---- a threshold to begin with */

/* Decodes and scores, of the blocks in a list's peak, the one with the greatest bound; returns the number of its
 * postings, 0 if the bound is below the threshold or the search has to stop. */
static uint32_t gpuir__or_decode_peak(const gpuir__or *o, const gpuir__or_term *t) {
  gpuir__cursor *c = t->cursor;
  const uint32_t end = gpuir__or_block_end(o, t, t->peak);
  uint32_t block = t->first[t->peak], best = block, most = 0;
  for (; block < end; block++) {
    const uint32_t bound = gpuir__block_bound(o->e, c, block);
    if (bound <= most) continue;
    most = bound;
    best = block;
  }
  if (most < gpuir__topk_threshold(&o->e->top) || gpuir__engine_worked(o->e, 1)) return 0;
  gpuir__cursor_load(c, best);
  gpuir__prefetch_lengths(c->scorer.lengths, c->docs, c->n);
  gpuir__cursor_score(c);
  o->e->info.postings_scored += c->n;
  return c->n;
}

/* Pushes a term's contributions to live documents of a leaf into the heap, as if they were scores: all of them, if the
 * term was decoded up front, or those of one block. */
static void gpuir__or_offer(const gpuir__or_leaf *l, const gpuir__or_term *t) {
  const uint32_t n = t->docs ? t->cursor->list.df : gpuir__or_decode_peak(&l->o, t);
  const uint32_t *docs = t->docs ? t->docs : t->cursor->docs, *values = t->docs ? t->values : t->cursor->values;
  uint32_t i;
  for (i = 0; i < n; i++) {
    const uint64_t key = gpuir__key(values[i], docs[i]);
#ifndef GPUIR_NO_COLUMNS
    gpuir__sieve *s = l->o.sieve;
    if (s && (key <= l->o.e->top.threshold_key || !gpuir__engine_passes(l->o.e, s, docs[i]))) continue;
#endif
    gpuir__topk_push_live(&l->o.e->top, key, l->deleted, docs[i]);
  }
}

/* Returns the greater of `least` and a score that at least k documents of n leaves reach by one term of the query: the
 * term's k-th greatest contribution where it is stored, or else that of the postings which are decoded anyhow, found by
 * the heap that the search will use, which is empty. */
static uint32_t gpuir__or_kth(gpuir__engine *e, const gpuir_query *q, const gpuir__or_leaf *leaves, size_t n,
    unsigned term, size_t k, uint32_t least) {
  size_t j;
  if (gpuir__topk_start(&e->a, &e->top, k, least, NULL)) return least;
  for (j = 0; j < n; j++) {
    const gpuir__or_leaf *l = &leaves[j];
    const gpuir__or_term *t;
    uint32_t stored;
    if (l->term_of[term] == UINT8_MAX) continue;
    t = &l->o.terms[l->term_of[term]];
    if (t->cursor->bound <= least) continue;
    stored = t->docs ? 0 : gpuir__stored_seed(t->cursor, q, k);
    if (stored) return gpuir__max32(stored, least);
    gpuir__or_offer(l, t);
  }
  return e->top.n == k ? gpuir__max32((uint32_t)(e->top.heap[0] >> 32), least) : least;
}

/* Returns a score that at least k documents of n leaves reach: some term's k-th greatest contribution, as far as known.
 * The term that weighs most is asked first. 0 if there are negated terms, which may exclude these documents, or if they
 * are collapsed. */
static uint32_t gpuir__or_seed(gpuir__engine *e, const gpuir_query *q, const gpuir__or_leaf *leaves, size_t n,
    size_t k) {
  uint32_t seed;
  unsigned i, first = 0;
  size_t j;
  if (gpuir__query_collapses(q)) return 0;
  for (j = 0; j < n; j++)
    if (leaves[j].ncursors > leaves[j].o.n) return 0;
  for (i = 1; i < q->npositive; i++)
    if (q->terms[i].weight * (float)q->terms[i].q > q->terms[first].weight * (float)q->terms[first].q) first = i;
  seed = gpuir__or_kth(e, q, leaves, n, first, k, 0);
  for (i = 0; i < q->npositive; i++)
    if (i != first) seed = gpuir__or_kth(e, q, leaves, n, i, k, seed);
  return seed;
}

/* ---- a tile's candidates */

/* Collects the candidates of a tile whose single essential term was decoded up front. */
static uint32_t gpuir__or_single_up_front(gpuir__or *o, const gpuir__or_term *t, uint32_t tile, uint32_t threshold) {
  gpuir__tile *s = &o->tile;
  const uint32_t first = t->first[tile], n = gpuir__min32(gpuir__or_count_up_front(o, t, tile), 1u << s->shift);
  return o->e->kernels->keep(t->docs + first, t->values + first, n, threshold, s->candidates, s->sums);
}

/* Collects the candidates of a tile with a single essential term: those of its postings that contribute `threshold`.
 * Postings not frequent enough for the shortest document are dropped without a look at the documents' lengths. */
static uint32_t gpuir__or_single_blocks(gpuir__or *o, gpuir__or_term *t, uint32_t tile, uint32_t threshold) {
  gpuir__tile *s = &o->tile;
  gpuir__cursor *c = t->cursor;
  uint32_t end = gpuir__or_block_end(o, t, tile), size = 1u << s->shift, n = 0, block, from, to;
  for (block = t->first[tile]; block < end && n <= size; block++) { /* more only in a damaged file */
    if (gpuir__block_bound(o->e, c, block) < threshold) continue;
    if (gpuir__engine_worked(o->e, 1)) return 0;
    gpuir__cursor_load(c, block);
    gpuir__cursor_freqs(c);
    to = gpuir__or_range(o, c, tile, &from);
    n += o->e->kernels->keep(c->docs + from, c->values + from, to - from,
        gpuir__least_frequency(&c->scorer, c->list.bounds[block], threshold), s->candidates + n, s->freqs + n);
  }
  gpuir__or_score(o, c, s->candidates, n, s->sums);
  return o->e->kernels->keep(s->candidates, s->sums, n, threshold, s->candidates, s->sums);
}

/* Adds what a list decoded up front contributes to n candidates. */
static void gpuir__or_probe_up_front(gpuir__or *o, const gpuir__or_term *t, uint32_t tile, uint32_t n) {
  uint32_t at = t->first[tile], i;
  for (i = 0; i < n; i++) {
    uint32_t doc = o->tile.candidates[i];
    while (t->docs[at] < doc) at++;
    if (t->docs[at] == doc) o->tile.sums[i] += t->values[at];
  }
}

/* Adds what a list of blocks contributes to n candidates. */
static void gpuir__or_probe_blocks(gpuir__or *o, gpuir__or_term *t, uint32_t tile, uint32_t n) {
  gpuir__tile *s = &o->tile;
  const gpuir__pass p = gpuir__tile_pass(s, t->operand, t->first[tile], n);
  uint32_t found = gpuir__engine_lookup(o->e, t->operand, &p), i;
  gpuir__list_freqs_at(&t->cursor->list, s->where, found, s->freqs);
  gpuir__or_score(o, t->cursor, s->found, found, s->values);
  for (i = 0; i < found; i++) s->sums[s->from[i]] += s->values[i];
}

/* The terms of one tile, by bound a posting: cheap bounds on long lists first. */
typedef struct gpuir__or_order {
  unsigned term[GPUIR_MAX_TERMS]; /* term numbers */
  unsigned n; /* terms with postings in the tile */
  unsigned essential; /* the first essential one; those before it together cannot reach the threshold, */
  uint32_t others_bound; /* only this */
} gpuir__or_order;

/* Orders the terms that may contribute to a tile, and divides them into non-essential and essential ones. */
static void gpuir__or_order_terms(const gpuir__or *o, uint32_t tile, uint32_t threshold, gpuir__or_order *x) {
  unsigned i, j;
  x->n = 0;
  for (i = 0; i < o->n; i++) {
    uint64_t bound = o->terms[i].bound[tile], df = o->terms[i].cursor->list.df;
    if (!bound) continue;
    for (j = x->n++; j; j--) {
      const gpuir__or_term *other = &o->terms[x->term[j - 1]];
      if (bound * other->cursor->list.df >= other->bound[tile] * df) break;
      x->term[j] = x->term[j - 1];
    }
    x->term[j] = i;
  }
  x->others_bound = 0;
  for (i = 0; i < x->n && x->others_bound + o->terms[x->term[i]].bound[tile] < threshold; i++)
    x->others_bound += o->terms[x->term[i]].bound[tile];
  x->essential = i;
}

/* Collects the candidates of a tile: documents to which the essential terms contribute so much that the others may make
 * up the threshold. */
static uint32_t gpuir__or_candidates(gpuir__or *o, const gpuir__or_order *x, uint32_t tile, uint32_t threshold) {
  gpuir__or_term *t = &o->terms[x->term[x->essential]];
  unsigned i;
  if (x->n - x->essential == 1)
    return t->docs ? gpuir__or_single_up_front(o, t, tile, threshold - x->others_bound)
                   : gpuir__or_single_blocks(o, t, tile, threshold - x->others_bound);
  for (i = x->essential; i < x->n; i++) {
    t = &o->terms[x->term[i]];
    if (t->docs)
      gpuir__tile_add(&o->tile, t->docs + t->first[tile], t->values + t->first[tile],
          gpuir__or_count_up_front(o, t, tile));
    else gpuir__or_add_blocks(o, t, tile, o->bound[tile] - t->bound[tile], threshold);
  }
  return o->e->kernels->collect(&o->tile, gpuir__tile_low(&o->tile, tile), threshold - x->others_bound);
}

/* ---- tiles of a where */

#ifndef GPUIR_NO_COLUMNS
/* So many postings of essential terms take as long as it takes to look up one document that passes the where in all
 * lists. Measured. */
#ifndef GPUIR__DRIVEN
#define GPUIR__DRIVEN 4u
#endif

/* Counts the postings of the essential terms in a tile, in whole blocks. */
static uint64_t gpuir__or_postings(const gpuir__or *o, const gpuir__or_order *x, uint32_t tile) {
  uint64_t n = 0;
  unsigned i;
  for (i = x->essential; i < x->n; i++) {
    const gpuir__or_term *t = &o->terms[x->term[i]];
    if (t->docs) n += gpuir__or_count_up_front(o, t, tile);
    else n += (uint64_t)(gpuir__or_block_end(o, t, tile) - t->first[tile]) * GPUIR__BLOCK;
  }
  return n;
}

/* Finds the documents of a tile that pass the where, if it is known of enough others that few do; returns how many, or
 * UINT64_MAX where that is not known. */
static uint64_t gpuir__or_passing(gpuir__or *o, uint32_t tile) {
  gpuir__engine *e = o->e;
  const uint64_t low = gpuir__tile_low(&o->tile, tile), high = (uint64_t)gpuir__tile_high(&o->tile, tile) + 1;
  const gpuir__sieve *s = e->sieve;
  uint64_t word, end = gpuir__min64(high / 64, s->words);
  if (!gpuir__sieve_is_known(s)) {
    const uint64_t known = gpuir__peek(&s->known), passing = gpuir__peek(&s->passing);
    if (known * 64 < s->blocks || passing * 16 > known * GPUIR__BLOCK) return UINT64_MAX;
    if (!gpuir__engine_find(e, low, high)) return UINT64_MAX;
  }
  word = low / 64;
  return (end - word) * 64 - e->kernels->ones(s->fails + word, (size_t)(end - word));
}

/* Makes the documents of a tile that pass the where its candidates, of which nothing is known yet. */
static uint32_t gpuir__or_drive(gpuir__or *o, uint32_t tile) {
  gpuir__tile *t = &o->tile;
  const gpuir__sieve *s = o->e->sieve;
  const uint64_t end = gpuir__min64(((uint64_t)gpuir__tile_high(t, tile) + 1) / 64, s->words);
  uint64_t word = gpuir__tile_low(t, tile) / 64, pass;
  uint32_t n = 0;
  for (; word < end; word++)
    for (pass = ~s->fails[word]; pass; pass &= pass - 1) {
      t->sums[n] = 0;
      t->candidates[n++] = (uint32_t)word * 64 + gpuir__ctz64(pass);
    }
  return n;
}
#endif

/* Collects the candidates of a tile that pass the where: those of the essential terms, or, where these are more work,
 * all that pass, and then no term is essential. (A filter that leads: Lucene's conjunction of a scorer and a filter,
 * whose cheaper one leads.) */
static uint32_t gpuir__or_tested(gpuir__or *o, gpuir__or_order *x, uint32_t tile, uint32_t threshold) {
#ifndef GPUIR_NO_COLUMNS
  if (o->e->sieve) {
    const uint64_t passing = gpuir__or_passing(o, tile);
    if (!passing || o->e->stopped) return 0;
    if (passing < UINT64_MAX / GPUIR__DRIVEN && passing * GPUIR__DRIVEN * x->n < gpuir__or_postings(o, x, tile)) {
      x->essential = x->n;
      x->others_bound = o->bound[tile];
      return gpuir__or_drive(o, tile);
    }
  }
#endif
  return gpuir__tile_test(o->e, &o->tile, gpuir__or_candidates(o, x, tile, threshold));
}

/* ---- evaluation */

/* Returns what a candidate must have so far, where the terms to come add so much at most: if a where leads, that may be
 * more than the threshold. */
static inline uint32_t gpuir__or_least(uint32_t threshold, uint32_t others_bound) {
#ifdef GPUIR_NO_COLUMNS
  return threshold - others_bound;
#else
  return threshold > others_bound ? threshold - others_bound : 0;
#endif
}

/* Scores one tile, unless its bounds do not reach the threshold. 0, or why the search has to stop. */
static int gpuir__or_tile(gpuir__or *o, uint32_t tile) {
  gpuir__tile *s = &o->tile;
  uint32_t threshold = gpuir__topk_threshold(&o->e->top), n;
  gpuir__or_order x;
  if (o->bound[tile] < threshold) return GPUIR_OK;
  gpuir__or_order_terms(o, tile, threshold, &x);
  n = gpuir__or_tested(o, &x, tile, threshold);
  while (x.essential-- > 0 && n) {
    gpuir__or_term *t = &o->terms[x.term[x.essential]];
    if (t->docs) gpuir__or_probe_up_front(o, t, tile, n);
    else gpuir__or_probe_blocks(o, t, tile, n);
    x.others_bound -= t->bound[tile];
    n = o->e->kernels->keep(s->candidates, s->sums, n, gpuir__or_least(threshold, x.others_bound), s->candidates,
        s->sums);
  }
  gpuir__tile_offer(o->e, s, gpuir__tile_exclude(o->e, s, o->n, tile, n));
  o->bound[tile] = 0;
  o->e->info.tiles_scored++;
  return gpuir__engine_look(o->e);
}

/* Makes a term of cursor i, and bounds its tiles unless it is decoded up front. 0, or why the search has to stop. */
static int gpuir__or_term_open(gpuir__or *o, unsigned i) {
  gpuir__engine *e = o->e;
  gpuir__or_term *term = &o->terms[i];
  uint32_t df = e->cursors[i].list.df;
  term->cursor = &e->cursors[i];
  term->operand = &e->operands[i];
  term->bound = gpuir__carve(e, o->tiles);
  term->first = gpuir__carve(e, o->tiles);
  term->peak = 0;
  term->docs = term->values = NULL;
  memset(term->bound, 0, o->tiles * 4);
  if (df <= o->up_front) {
    term->docs = gpuir__carve(e, df + GPUIR__BLOCK_ROOM);
    term->values = gpuir__carve(e, df + GPUIR__BLOCK_ROOM);
    gpuir__or_decode_up_front(o, term);
  } else if (gpuir__or_bound_blocks(o, term)) {
    return e->stopped;
  }
  return gpuir__engine_look(e);
}

/* Notes which positive terms of the query have which of the cursors that were opened for a leaf. */
static void gpuir__or_note(gpuir__or_leaf *l, const gpuir__engine *e, const gpuir_query *q) {
  unsigned i;
  l->ncursors = e->ncursors - l->first;
  l->deleted = e->leaf.deleted;
#ifndef GPUIR_NO_COLUMNS
  l->o.sieve = e->sieve;
#endif
  for (i = 0; i < q->npositive; i++) {
    const unsigned cursor = e->turn.cursor_of[i];
    l->term_of[i] = cursor == GPUIR__NO_TERM ? UINT8_MAX : (uint8_t)(cursor - l->first);
  }
}

/* Takes the engine's positive cursors for terms, in tiles of 2^shift documents; returns for how many items there must
 * be room, in how many arrays. */
static size_t gpuir__or_size(gpuir__or *o, gpuir__engine *e, unsigned npositive, uint32_t shift, size_t *arrays) {
  const uint64_t documents = e->leaf.seg->stat.documents;
  size_t up_front = 0;
  unsigned i;
  o->e = e;
  o->n = npositive;
  o->tiles = (uint32_t)((documents - 1) >> shift) + 1;
  /* Lists of several segments are parts of one: of each as much is decoded up front as would be of the whole. */
  o->up_front = gpuir__max32((uint32_t)(documents * GPUIR__UP_FRONT / e->ix->docids), GPUIR__SHORT_MAX);
  for (i = 0; i < npositive; i++)
    if (e->cursors[i].list.df <= o->up_front) up_front += 2 * ((size_t)e->cursors[i].list.df + GPUIR__BLOCK_ROOM);
  *arrays = 4 * (size_t)npositive + 1;
  return o->tiles * (2 * (size_t)npositive + 1) + up_front;
}

/* Lays out the arrays; each positive cursor becomes a term. gpuir__or_bound is due. */
static int gpuir__or_lay(gpuir__or *o, gpuir__engine *e, const gpuir__tile *tile) {
  int status = GPUIR_OK;
  unsigned i;
  o->tile = *tile;
  o->bound = gpuir__carve(e, o->tiles);
  memset(o->bound, 0, o->tiles * 4);
  for (i = 0; i < o->n && !status; i++) status = gpuir__or_term_open(o, i);
  e->info.tiles_total += o->tiles;
  return status;
}

/* Bounds the tiles. */
static void gpuir__or_bound(gpuir__or *o) {
  unsigned i;
  uint32_t tile;
  for (i = 0; i < o->n; i++) {
    gpuir__or_term *t = &o->terms[i];
    if (t->docs) gpuir__or_score_up_front(o, t);
    for (tile = 0; tile < o->tiles; tile++) o->bound[tile] += t->bound[tile];
  }
#ifdef GPUIR_NO_COLUMNS
  o->nbest = gpuir__or_first_tiles(o, o->best);
#else
  /* Engines that share a search number its steps alike. What is known of the where differs from one to the other, so it
   * must not choose the first tiles then: tiles would be scored twice, and others never. */
  if (o->e->share) o->nbest = gpuir__or_first_tiles(o, o->best);
  for (tile = 0; tile < o->tiles && o->sieve; tile++) /* where nothing passes there is nothing to do */
    if (gpuir__sieve_is_empty(o->sieve, gpuir__tile_low(&o->tile, tile),
            (uint64_t)gpuir__tile_high(&o->tile, tile) + 1))
      o->bound[tile] = 0;
  if (!o->e->share) o->nbest = gpuir__or_first_tiles(o, o->best);
#endif
}

/* Returns the shift of the tiles of a segment of so many documents. */
static uint32_t gpuir__or_shift(uint64_t documents) {
  uint32_t shift = GPUIR__TILE_SHIFT;
  while ((documents - 1) >> shift >= GPUIR__MAX_TILES) shift++;
  return shift;
}

/* Returns the tile that is scored in step i: the n best first, then all in turn. Of a query that is shared others may
 * have scored the best ones. */
static uint32_t gpuir__or_step(const gpuir__or *o, const uint32_t *best, unsigned n, uint32_t i) {
  unsigned j;
  if (i < n) return best[i];
  for (j = 0; o->e->share && j < n; j++) o->bound[best[j]] = 0;
  return i - n;
}

/* Starts the top-k with a seed. */
static int gpuir__or_start(gpuir__engine *e, const gpuir_query *q, const gpuir__or_leaf *leaves, size_t n, size_t k) {
  const int known =
      (e->limits.threshold && gpuir__peek(e->limits.threshold)) || (e->share && gpuir__peek(&e->share->threshold));
  const uint32_t seed = known ? 0 : gpuir__or_seed(e, q, leaves, n, k); /* that of other parts is better */
  return gpuir__engine_top(e, q, k, seed) ? gpuir__engine_fail(e, GPUIR_E_NOMEM, "out of memory") : e->stopped;
}

/* Evaluates OR over at least two positive terms. */
static int gpuir__eval_or(gpuir__engine *e, const gpuir_query *q, unsigned npositive, size_t k) {
  const uint32_t shift = gpuir__or_shift(e->leaf.seg->stat.documents);
  size_t arrays, items;
  uint32_t i, steps;
  gpuir__tile tile;
  gpuir__or_leaf l;
  gpuir__or *o = &l.o;
  int status;
  l.first = 0;
  gpuir__or_note(&l, e, q);
  items = gpuir__or_size(o, e, npositive, shift, &arrays);
  status = gpuir__tile_reserve(e, &tile, shift, items, arrays);
  if (!status) status = gpuir__or_lay(o, e, &tile);
  if (status) return status;
  gpuir__or_bound(o);
  if (!e->top.n) /* the first segment with a hit: afterwards the heap has the threshold, and is no scratch */
    status = gpuir__or_start(e, q, &l, 1, k);
  steps = o->nbest + o->tiles;
  for (i = 0; !status; i++) {
    i = gpuir__engine_part(e, i, steps, GPUIR__TAKEN_TILES);
    if (i >= steps) break;
    status = gpuir__or_tile(o, gpuir__or_step(o, o->best, o->nbest, i));
  }
  return status;
}

/* ---- several leaves: the tiles with the greatest bounds of all come first */

/* Lists that are open at a time, at most. */
#ifndef GPUIR__JOINT_LISTS
#define GPUIR__JOINT_LISTS 1024u
#endif

/* Turns the engine, whose cursors begin at these, to a leaf that is open. */
GPUIR__NOINLINE void gpuir__or_enter(gpuir__engine *e, const gpuir__or_leaf *l, gpuir__cursor *cursors,
    gpuir__operand *operands) {
  e->leaf = e->ix->leaves[l->leaf];
  e->leaf.deleted = l->deleted;
#ifndef GPUIR_NO_COLUMNS
  e->sieve = l->o.sieve;
#endif
  e->cursors = cursors + l->first;
  e->operands = operands + l->first;
  e->ncursors = l->ncursors;
}

/* Scores the tiles of n leaves: first the few with the highest bounds of all leaves, which raise the threshold at
 * once, then all others in turn, most of which are then passed over. */
static int gpuir__or_leaves_score(gpuir__engine *e, gpuir__or_leaf *leaves, size_t n, gpuir__cursor *cursors,
    gpuir__operand *operands) {
  unsigned step;
  size_t j;
  uint32_t tile;
  int status = GPUIR_OK;
  for (step = 0; step < GPUIR__FIRST_TILES && !status; step++) {
    gpuir__or_leaf *best = NULL;
    uint32_t most = 0;
    for (j = 0; j < n; j++) {
      gpuir__or_leaf *l = &leaves[j];
      if (l->next == l->o.nbest || l->o.bound[l->o.best[l->next]] <= most) continue;
      most = l->o.bound[l->o.best[l->next]];
      best = l;
    }
    if (!best) break;
    gpuir__or_enter(e, best, cursors, operands);
    status = gpuir__or_tile(&best->o, best->o.best[best->next++]);
  }
  for (j = 0; j < n && !status; j++) {
    gpuir__or_enter(e, &leaves[j], cursors, operands);
    for (tile = 0; tile < leaves[j].o.tiles && !status; tile++) status = gpuir__or_tile(&leaves[j].o, tile);
  }
  return status;
}

/* Opens the leaves that have a positive term, with their cursors one behind the other; *n is their number. */
static int gpuir__or_leaves_open(gpuir__engine *e, const gpuir_query *q, gpuir__or_leaf *leaves, size_t *n) {
  size_t leaf;
  int status;
  for (leaf = 0; leaf < e->ix->nleaves; leaf++) gpuir__engine_prefetch(e, q, leaf, 1);
  status = gpuir__engine_turn(e, q, 0, q->n * (unsigned)e->ix->nleaves);
  for (leaf = 0; leaf < e->ix->nleaves && !status; leaf++) {
    gpuir__or_leaf *l = &leaves[*n];
    e->leaf = e->ix->leaves[leaf];
    l->leaf = leaf;
    l->first = e->ncursors;
    l->next = 0;
    status = gpuir__engine_where(e, q, leaf);
    if (!status) status = gpuir__engine_open_words(e, q, leaf, &l->o.n);
    if (status) break;
    gpuir__or_note(l, e, q);
    *n += l->o.n > 0;
  }
  return status;
}

/* Lays out and bounds the tiles of n leaves, which share one tile's accumulators. */
static int gpuir__or_leaves_lay(gpuir__engine *e, gpuir__or_leaf *leaves, size_t n, gpuir__cursor *cursors,
    gpuir__operand *operands) {
  size_t items = 0, arrays = 0, more, j;
  uint32_t shift = GPUIR__TILE_SHIFT;
  gpuir__tile tile;
  int status;
  for (j = 0; j < n; j++)
    shift = gpuir__max32(shift, gpuir__or_shift(e->ix->leaves[leaves[j].leaf].seg->stat.documents));
  for (j = 0; j < n; j++) {
    gpuir__or_enter(e, &leaves[j], cursors, operands);
    items += gpuir__or_size(&leaves[j].o, e, leaves[j].o.n, shift, &more);
    arrays += more;
  }
  status = gpuir__tile_reserve(e, &tile, shift, items, arrays);
  for (j = 0; j < n && !status; j++) {
    gpuir__or_enter(e, &leaves[j], cursors, operands);
    status = gpuir__or_lay(&leaves[j].o, e, &tile);
  }
  for (j = 0; j < n && !status; j++) gpuir__or_bound(&leaves[j].o);
  return status;
}

/* Evaluates OR in all leaves at once. */
static int gpuir__eval_or_leaves(gpuir__engine *e, const gpuir_query *q, size_t k) {
  gpuir__buf *buf = &e->made.places;
  gpuir__or_leaf *leaves;
  size_t n = 0;
  int status;
  buf->len = 0;
  leaves = (gpuir__or_leaf *)(void *)gpuir__buf_room(&e->a, buf, e->ix->nleaves * sizeof *leaves);
  if (!leaves) return gpuir__engine_fail(e, GPUIR_E_NOMEM, "out of memory");
  status = gpuir__or_leaves_open(e, q, leaves, &n);
  if (!status) {
    gpuir__cursor *const cursors = e->cursors;
    gpuir__operand *const operands = e->operands;
    const unsigned ncursors = e->ncursors;
    status = gpuir__or_leaves_lay(e, leaves, n, cursors, operands);
    if (!status) status = gpuir__or_start(e, q, leaves, n, k);
    if (!status) status = gpuir__or_leaves_score(e, leaves, n, cursors, operands);
    e->cursors = cursors;
    e->operands = operands;
    e->ncursors = ncursors;
  }
  return status;
}

/* Returns 1 if OR is evaluated in all leaves at once: a thread alone, whose lists are read where they lie. */
static int gpuir__or_is_joint(const gpuir__engine *e, const gpuir_query *q) {
#ifndef GPUIR_NO_LAB
  if (e->prepared) return 0;
#endif
  return e->ix->nleaves > 1 && !e->share && e->evaluator != GPUIR_EVAL_EXHAUSTIVE && !q->nphrases && !q->nprefixes &&
      q->nknown > 1 && e->ix->nleaves <= GPUIR__JOINT_LISTS / q->n;
}
