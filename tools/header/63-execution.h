
/* ========
 * [63-execution]  modes, searchers, batches over threads, explanations, public cursors, backends
 *
 * The public functions that search: which evaluator serves which mode, a batch's queries shared out to threads, or
 * handed to a backend such as gpuir_cuda.cu; explanations of one document's score; the cursor that users step.
 *
 * Uses      [18-codecs], [24-postings], [25-positions], [28-encoder], [33-analyzers], [34-fields], [35-keys],
 *           [37-layout], [38-notes], [39-writer], [40-columns], [41-reader], [42-snapshot], [44-inversion],
 *           [45-merge], [46-builder], [50-sieve], [51-query], [53-topk], [54-lookup], [55-methods], [56-engine],
 *           [57-share], [58-and], [59-words], [60-phrases], [61-or], [62-exhaustive].
 * Start at  gpuir_search, gpuir_search_batch; gpuir__engine_mode (which evaluator serves which mode).
 * Size      hits in the order of a column stand between marking, which counts by the modes, and searching, which asks
 *           for them: no room has both of these above it and below it.
 * Tests     tests/unit/63_execution.c
 * ======*/

/* ---- modes */

/* Empties the top-k into hits, best first. */
static int gpuir__engine_hits(gpuir__engine *e, gpuir_hit *hits, size_t *n) {
  *n = e->top.n;
  while (e->top.n) {
    gpuir__topk_pop(&e->top, hits);
    if (e->top.n % 4096 == 4095) {
      int status = gpuir__engine_look(e);
      if (status) return status;
    }
  }
  return GPUIR_OK;
}

/* Returns 1 if a query that is not an OR has a required word that the leaf lacks: it need not be turned to. */
static int gpuir__leaf_lacks(const gpuir__engine *e, const gpuir_query *q, size_t leaf, int mode) {
  unsigned i;
  if (mode == GPUIR_OR || q->nphrases || q->nprefixes || e->ix->nleaves == 1) return 0;
  for (i = 0; i < q->nrequired && gpuir__query_record(q, leaf, i)->df; i++) {}
  return i < q->nrequired;
}

/* Returns 1 if a leaf is to be turned to, and finds the one behind it. */
static int gpuir__leaf_begin(gpuir__engine *e, const gpuir_query *q, size_t leaf, int mode) {
  if (gpuir__leaf_lacks(e, q, leaf, mode)) return 0;
  for (leaf++; leaf < e->ix->nleaves && gpuir__leaf_lacks(e, q, leaf, mode); leaf++) {}
  e->turn.next = leaf;
  return 1;
}

/* Evaluates the query in one leaf, by the method for its mode and terms, and offers the hits to the engine's top-k. A
 * leaf without a required term has none. */
static int gpuir__engine_leaf(gpuir__engine *e, const gpuir_query *q, size_t leaf, int mode, size_t k) {
  unsigned npositive;
  int status;
  e->turn.taken = 0;
  e->turn.leaf_number = (uint32_t)leaf;
  if (!gpuir__leaf_begin(e, q, leaf, mode) || (q->all && e->top.n == e->top.k)) return GPUIR_OK;
#ifndef GPUIR_NO_RANK
  if (e->phrases_required && e->tally) return gpuir__eval_phrases(e, q, leaf, 1, e->tally);
#endif
  if (e->phrases_required) return gpuir__eval_phrases(e, q, leaf, 1, NULL);
  status = gpuir__terms_open(e, q, leaf, &npositive);
#ifndef GPUIR_NO_COLUMNS
  if (!status && q->all) return gpuir__eval_all(e);
#endif
  if (status || !npositive || (mode == GPUIR_AND && npositive - e->turn.noptional < q->nrequired)) return status;
#ifndef GPUIR_NO_LAB
  if (e->evaluator == GPUIR_EVAL_EXHAUSTIVE) return gpuir__eval_exhaustive(e, npositive, mode == GPUIR_AND);
#endif
  if (mode == GPUIR_OR) e->turn.noptional = 0;
  if (e->ncursors == 1 + e->turn.noptional && !e->top.n)
    (void)gpuir__engine_top(e, q, k, gpuir__stored_seed(&e->cursors[0], q, k));
  if (mode == GPUIR_AND || npositive == 1) return gpuir__eval_and(e, npositive, NULL);
  return gpuir__eval_or(e, q, npositive, k);
}

/* Helps with a search of another engine until nothing of it is left or the helper is called away; 0 if it could not.
 * A failure before anything was taken loses nothing: the owner evaluates what nobody takes. */
static int gpuir__engine_help(gpuir__engine *e, gpuir__share *s) {
  const gpuir__limits mine = e->limits;
  const uint64_t since = gpuir__now();
  size_t leaf;
  int status;
  if (!gpuir__share_join(e, s)) return 0;
  e->phrases_required = gpuir__phrases_are_required(e, s->query, s->mode);
  status = gpuir__topk_start(&e->a, &e->top, s->k, 0, NULL); /* hits that collapse are not shared */
  for (leaf = (size_t)(__atomic_load_n(&s->at, __ATOMIC_ACQUIRE) >> 32);
       leaf < e->ix->nleaves && !status && !e->called_away; leaf++)
    status = gpuir__engine_leaf(e, s->query, leaf, s->mode, s->k);
  gpuir__share_leave(e, s, since);
  gpuir__engine_reset(e);
  e->limits = mine;
  return 1;
}

/* Returns 1 if the terms' lists of a query are read where they lie: those of phrases and prefixes that rank beside
 * others are made first, by each engine again. */
static int gpuir__engine_may_share(const gpuir__engine *e, const gpuir_query *q) {
  return e->share && !q->all && !gpuir__query_collapses(q) && !q->nprefixes && (!q->nphrases || e->phrases_required);
}

/* ---- counting */

/* Returns 1 if one word alone decides what matches a query: its count is what the leaves tell of the word's list. */
static int gpuir__query_is_word(const gpuir_query *q) {
  return !q->all && !q->where && q->terms[0].kind == GPUIR__WORD && q->npositive == q->n &&
      (q->n == 1 || (q->mode != GPUIR_OR && q->nrequired == 1));
}

/* Counts the live documents of a leaf that hold the only word of a query. */
static int gpuir__engine_count_word(gpuir__engine *e, const gpuir_query *q, size_t leaf, uint64_t *matches) {
  const uint32_t id = gpuir__query_id(q, leaf, 0);
  gpuir__record r;
  uint32_t df;
  int status;
  if (id == GPUIR__NO_TERM) return GPUIR_OK;
  status = gpuir__leaf_df(&e->ix->leaves[leaf], id, &r, &df);
  if (status) return gpuir__engine_fail(e, status, gpuir_strerror(status));
  *matches += df;
  return GPUIR_OK;
}

/* Says whether the engine marks what it counts. */
static inline int gpuir__engine_marks(const gpuir__engine *e) {
#ifdef GPUIR_NO_COLUMNS
  (void)e;
  return 0;
#else
  return e->marks != NULL;
#endif
}

/* Counts a leaf's documents that match one query in a mode, AND or OR. */
static int gpuir__engine_count_leaf(gpuir__engine *e, const gpuir_query *q, size_t leaf, int mode, uint64_t *matches) {
  unsigned npositive;
  int status;
  if (!gpuir__engine_marks(e) && gpuir__query_is_word(q)) return gpuir__engine_count_word(e, q, leaf, matches);
  if (!gpuir__leaf_begin(e, q, leaf, mode)) return GPUIR_OK;
  if (gpuir__phrases_are_required(e, q, mode)) return gpuir__eval_phrases(e, q, leaf, 0, matches);
  status = gpuir__terms_open(e, q, leaf, &npositive);
  if (!status && q->all) return gpuir__count_windows(e, 0, 0, matches);
  if (status || !npositive || (mode == GPUIR_AND && npositive - e->turn.noptional < q->nrequired)) return status;
  if (mode == GPUIR_OR) e->turn.noptional = 0;
  if (mode == GPUIR_OR && npositive > 1) return gpuir__count_windows(e, npositive, 0, matches);
  if (gpuir__count_is_dense(e, npositive - e->turn.noptional)) return gpuir__count_windows(e, npositive, 1, matches);
  return gpuir__eval_and(e, npositive, matches);
}

#ifndef GPUIR_NO_COLUMNS
/* ---- hits in the order of a column */

/* Marks the live documents of a leaf that match one query in a mode and pass its where, in the engine's `marked`. */
static int gpuir__engine_mark_leaf(gpuir__engine *e, const gpuir_query *q, size_t leaf, int mode, uint64_t *matches) {
  const uint64_t words = e->ix->leaves[leaf].seg->stat.documents / 64 + 1;
  int status;
  e->marked.len = 0;
  e->marks = (uint64_t *)(void *)gpuir__buf_room(&e->a, &e->marked, (size_t)words * 8);
  if (!e->marks) return gpuir__engine_fail(e, GPUIR_E_NOMEM, "out of memory");
  memset(e->marks, 0, (size_t)words * 8);
  e->leaf.deleted = NULL; /* of a leaf that is not turned to nothing is marked */
  e->counts_only = 1;
  status = gpuir__engine_count_leaf(e, q, leaf, mode, matches);
  e->counts_only = 0;
  if (e->leaf.deleted)
    e->kernels->words(e->marks, e->leaf.deleted->bits, (size_t)gpuir__min64(words, e->leaf.deleted->words),
        GPUIR__WORDS_WITHOUT);
  e->marks = NULL;
  gpuir__engine_reset(e);
  return status;
}

/* A leaf's matches on their way to picks. */
typedef struct gpuir__ordering {
  gpuir__engine *e;
  const gpuir_query *q;
  const gpuir__leaf *leaf;
  size_t number; /* of the leaf */
  int mode;
  unsigned column;
  int is_text, falling;
  uint64_t base, step; /* of what kept numbers and ranks are ordered by */
  uint64_t *marks; /* of the matches; if it is lazy, of those in blocks that were looked at */
  int lazy;
  unsigned npositive; /* lists, if it is lazy */
} gpuir__ordering;

/* A block of matches. */
typedef struct gpuir__sort_block {
  uint64_t bound; /* the best value that a document of it may have */
  uint64_t block;
} gpuir__sort_block;

/* Returns what a number or a rank is ordered by. Numbers compare in all leaves; ranks in one: between two there is room
 * for the values that only other leaves have, see gpuir__sort_turn. */
static inline uint64_t gpuir__sort_value(const gpuir__ordering *s, uint64_t v) {
  const uint64_t x = s->base + v * s->step;
  return s->falling ? ~x : x;
}

/* Makes a pick of document i of a block, or of the best that it may have. */
static gpuir__pick gpuir__sort_pick(const gpuir__ordering *s, uint64_t value, uint64_t block, unsigned i, int none) {
  gpuir__pick x;
  x.value = none ? 0 : value;
  x.group = 0;
  x.docid = s->leaf->base + (uint32_t)(block * GPUIR__BLOCK + i);
  x.none = (uint32_t)none;
  return x;
}

/* Turns to a leaf with picks of those before: a key is ordered by its rank here, or by the rank before which it would
 * come and the order of those that do so too. */
static void gpuir__sort_turn(const gpuir__ordering *s) {
  gpuir__picks *p = &s->e->picks;
  const gpuir__key_texts t = gpuir__column_texts(s->leaf->seg, s->column);
  gpuir__key_walk walk, last;
  uint64_t value = 0, ordinal = 0;
  size_t i;
  gpuir__picks_settle(p);
  last.len = 0;
  for (i = 0; i < p->n; i++) { /* by their texts, rising */
    gpuir__pick *x = &gpuir__picks_all(p)[s->falling ? p->n - 1 - i : i];
    const gpuir__first first = gpuir__first_of(p->ix, s->column, x->docid);
    int found;
    if (x->none) continue;
    (void)gpuir__first_text(&first, s->column, &walk);
    if (walk.len != last.len || memcmp(walk.text, last.text, walk.len) != 0) {
      value = gpuir__key_below(&t, walk.text, walk.len, &found) << 32;
      value += found ? (uint64_t)1 << 32 : ++ordinal;
      memcpy(last.text, walk.text, walk.len);
      last.len = walk.len;
    }
    x->value = s->falling ? ~value : value;
  }
  if (p->full) p->worst = gpuir__picks_all(p)[p->n - 1];
}

static int gpuir__sort_before(const gpuir__sort_block *x, const gpuir__sort_block *y) {
  return x->bound != y->bound ? x->bound < y->bound : x->block < y->block;
}

/* Sifts heap[at] down to its place among n blocks, of which the best one is the first. */
static void gpuir__sort_down(gpuir__sort_block *heap, size_t n, size_t at) {
  const gpuir__sort_block x = heap[at];
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= n) break;
    if (child + 1 < n && gpuir__sort_before(&heap[child + 1], &heap[child])) child++;
    if (!gpuir__sort_before(&heap[child], &x)) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = x;
}

/* Says whether a leaf has matches in a block, or may have them. */
static int gpuir__sort_has(const gpuir__ordering *s, uint64_t block) {
  const uint64_t words = s->leaf->seg->stat.documents / 64 + 1, second = 2 * block + 1;
  return s->lazy || s->marks[2 * block] || (second < words && s->marks[second]);
}

static int gpuir__compare_asc64(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

/* Returns the best value that a document of a block may have; UINT64_MAX, which is one too, if none has any. */
static inline uint64_t gpuir__sort_bound(const gpuir__ordering *s, uint64_t block) {
  const gpuir__index_columns *x = &s->leaf->seg->columns;
  const uint64_t at = s->column * x->blocks + block;
  if (x->least[at] > x->most[at]) return UINT64_MAX;
  return gpuir__sort_value(s, s->falling ? x->most[at] : x->least[at]);
}

#define GPUIR__SORT_SAMPLE 256u
#ifndef GPUIR__SORT_SAMPLED
#define GPUIR__SORT_SAMPLED (8 * GPUIR__SORT_SAMPLE) /* blocks of a leaf from which on a sample is drawn */
#endif

/* Returns a bound that some 4 of GPUIR__SORT_SAMPLE blocks do not exceed: most searches look at no others. */
static uint64_t gpuir__sort_sample(const gpuir__ordering *s) {
  const uint64_t blocks = s->leaf->seg->columns.blocks;
  uint64_t bounds[GPUIR__SORT_SAMPLE];
  unsigned i;
  if (blocks < GPUIR__SORT_SAMPLED) return UINT64_MAX;
  for (i = 0; i < GPUIR__SORT_SAMPLE; i++) bounds[i] = gpuir__sort_bound(s, blocks * i / GPUIR__SORT_SAMPLE);
  qsort(bounds, GPUIR__SORT_SAMPLE, sizeof *bounds, gpuir__compare_asc64);
  return bounds[3];
}

/* Collects the blocks with these bounds that may have matches with values as a heap; returns their number. */
static size_t gpuir__sort_blocks(const gpuir__ordering *s, uint64_t low, uint64_t high, gpuir__sort_block *heap) {
  const gpuir__index_columns *x = &s->leaf->seg->columns;
  const uint64_t first = s->column * x->blocks;
  uint64_t block;
  size_t n = 0, i;
  for (block = 0; block < x->blocks; block++) {
    const uint64_t bound = gpuir__sort_bound(s, block);
    if (bound < low || bound > high || !gpuir__sort_has(s, block)) continue;
    if (x->least[first + block] > x->most[first + block]) continue;
    heap[n].bound = bound;
    heap[n++].block = block;
  }
  for (i = n / 2; i-- > 0;) gpuir__sort_down(heap, n, i);
  return n;
}

/* ---- matches of a block, found when its turn comes */

/* Sets a bit for each document of a block that a list holds. */
static void gpuir__sort_list(gpuir__engine *e, gpuir__cursor *c, uint64_t block, uint64_t bits[2]) {
  const uint32_t low = (uint32_t)(block * GPUIR__BLOCK);
  uint32_t at, i;
  bits[0] = bits[1] = 0;
  if (c->list.dense.bits) {
    const uint64_t *words = (const uint64_t *)(const void *)c->list.dense.bits;
    memcpy(bits, words + 2 * block, 16);
    return;
  }
  for (at = gpuir__list_find_block(&c->list, 0, low); at < c->list.nblocks && !gpuir__engine_worked(e, 1); at++) {
    gpuir__cursor_load(c, at);
    for (i = gpuir__lower_bound(c->docs, 0, c->n, low); i < c->n && c->docs[i] - low < GPUIR__BLOCK; i++)
      bits[(c->docs[i] - low) / 64] |= (uint64_t)1 << (c->docs[i] - low) % 64;
    if (i < c->n) break;
  }
}

/* Finds the live documents of a block that match and pass the where. */
static void gpuir__sort_match(const gpuir__ordering *s, uint64_t block, uint64_t to[2]) {
  gpuir__engine *e = s->e;
  const gpuir__deleted *deleted = e->leaf.deleted;
  const int all = s->mode == GPUIR_AND;
  const unsigned noptional = all ? e->turn.noptional : 0;
  uint64_t bits[2], fails[2] = {0, 0};
  unsigned i;
  if (e->sieve) gpuir__engine_fails(e, e->sieve, block, fails);
  if (deleted) fails[0] |= deleted->bits[2 * block];
  if (deleted && 2 * block + 1 < deleted->words) fails[1] |= deleted->bits[2 * block + 1];
  to[0] = all ? ~fails[0] : 0;
  to[1] = all ? ~fails[1] : 0;
  for (i = 0; i < e->ncursors && !e->stopped; i++) {
    if (i < s->npositive && i + noptional >= s->npositive) continue; /* it only adds to scores */
    if (all && !(to[0] | to[1])) return;
    gpuir__sort_list(e, &e->cursors[i], block, bits);
    to[0] = i >= s->npositive ? to[0] & ~bits[0] : all ? to[0] & bits[0] : to[0] | bits[0];
    to[1] = i >= s->npositive ? to[1] & ~bits[1] : all ? to[1] & bits[1] : to[1] | bits[1];
  }
  to[0] &= ~fails[0];
  to[1] &= ~fails[1];
}

/* Marks the matches of a block. */
static void gpuir__sort_mark(const gpuir__ordering *s, uint64_t block) {
  const uint64_t documents = s->leaf->seg->stat.documents, left = documents - block * GPUIR__BLOCK;
  uint64_t bits[2];
  gpuir__sort_match(s, block, bits);
  if (left < 64) bits[0] &= gpuir__low_bits64((unsigned)left); /* a damaged list may hold more */
  s->marks[2 * block] = bits[0];
  if (left >= 64) s->marks[2 * block + 1] = left < 128 ? bits[1] & gpuir__low_bits64((unsigned)left - 64) : bits[1];
}

/* Offers the matches of a block that have a value, or those that have `none`. */
static void gpuir__sort_offer(const gpuir__ordering *s, uint64_t block, int none) {
  const uint64_t words = s->leaf->seg->stat.documents / 64 + 1;
  gpuir__column_block b;
  uint64_t word, v = 0;
  unsigned half;
  gpuir__column_open(s->leaf->seg, s->column, block, &b);
  for (half = 0; half < 2 && 2 * block + half < words; half++)
    for (word = s->marks[2 * block + half]; word; word &= word - 1) {
      const unsigned i = 64 * half + gpuir__ctz64(word);
      if (gpuir__column_first(&b, s->is_text, i, &v) == none) continue;
      gpuir__picks_push(&s->e->picks, gpuir__sort_pick(s, none ? 0 : gpuir__sort_value(s, v), block, i, none));
    }
}

/* Marks all matches of the leaf: its lists are closed then. */
static int gpuir__sort_mark_all(gpuir__ordering *s, uint64_t *matches) {
  const int status = gpuir__engine_mark_leaf(s->e, s->q, s->number, s->mode, matches);
  s->lazy = 0;
  s->marks = (uint64_t *)(void *)s->e->marked.data;
  return status;
}

/* Opens the leaf's lists, if matches are to be found block by block: where as many are there as two in a block. */
static int gpuir__sort_open(gpuir__ordering *s) {
  const gpuir_query *q = s->q;
  gpuir__engine *e = s->e;
  uint64_t few = UINT64_MAX, sum = 0;
  unsigned i;
  int status;
  s->lazy = 0;
  if (q->all || q->nphrases || q->nprefixes || e->evaluator == GPUIR_EVAL_EXHAUSTIVE) return GPUIR_OK;
  if (!gpuir__leaf_begin(e, q, s->number, s->mode)) return GPUIR_OK;
  e->counts_only = 1;
  status = gpuir__terms_open(e, q, s->number, &s->npositive);
  e->counts_only = 0;
  if (status || (s->mode == GPUIR_AND && s->npositive - e->turn.noptional < q->nrequired)) return status;
  for (i = 0; i < s->npositive; i++) {
    const uint32_t df = e->cursors[i].list.df;
    if (s->mode == GPUIR_AND && i + e->turn.noptional >= s->npositive) break;
    few = gpuir__min64(few, df);
    sum += df;
  }
  s->lazy = i && (s->mode == GPUIR_AND ? few : sum) > 2 * s->leaf->seg->columns.blocks;
  return GPUIR_OK;
}

/* Looks at the leaf: all matches are marked, or, if there are many, none yet. *matches is 0 if there are none. */
static int gpuir__sort_begin(gpuir__ordering *s, uint64_t *matches) {
  gpuir__engine *e = s->e;
  const size_t size = (size_t)(s->leaf->seg->stat.documents / 64 + 1) * 8;
  int status = gpuir__sort_open(s);
  *matches = 1;
  if (status) return status;
  if (!s->lazy) {
    *matches = 0;
    return gpuir__sort_mark_all(s, matches);
  }
  e->marked.len = 0;
  s->marks = (uint64_t *)(void *)gpuir__buf_room(&e->a, &e->marked, size);
  if (!s->marks) return gpuir__engine_fail(e, GPUIR_E_NOMEM, "out of memory");
  memset(s->marks, 0, size);
  return GPUIR_OK;
}

#ifndef GPUIR__SORT_PART
#define GPUIR__SORT_PART 16u /* of a leaf's blocks matches are found one by one in this part of them, at most */
#endif

/* Offers the matches with values of blocks in a heap, the best block first, until none can be better than the k-th. If
 * after that part of the leaf's blocks there are still better ones, matches are few, and all are marked at once.
 * *done: no other block can be better. */
static int gpuir__sort_heap(gpuir__ordering *s, gpuir__sort_block *heap, size_t n, uint64_t *looked, int *done) {
  gpuir__engine *e = s->e;
  const uint64_t blocks = s->leaf->seg->columns.blocks;
  uint64_t matches;
  int status = GPUIR_OK;
  for (; n && !status; status = gpuir__engine_worked(e, 1)) {
    const gpuir__pick best = gpuir__sort_pick(s, heap[0].bound, heap[0].block, 0, 0);
    *done = !gpuir__picks_want(&e->picks, &best);
    if (*done) break;
    if (s->lazy && ++*looked > blocks / GPUIR__SORT_PART) status = gpuir__sort_mark_all(s, &matches);
    if (s->lazy) gpuir__sort_mark(s, heap[0].block);
    if (status || e->stopped) return status ? status : e->stopped;
    gpuir__sort_offer(s, heap[0].block, 0);
    heap[0] = heap[--n];
    if (n) gpuir__sort_down(heap, n, 0);
  }
  return status;
}

/* Offers the matches of a leaf: block by block, by the best value that each may have; then those without a value, in
 * their order. */
static int gpuir__sort_leaf(gpuir__ordering *s) {
  gpuir__engine *e = s->e;
  gpuir__picks *p = &e->picks;
  const uint64_t blocks = s->leaf->seg->columns.blocks, sample = gpuir__sort_sample(s);
  gpuir__sort_block *heap;
  uint64_t block, matches, looked = 0;
  int status, done = 0;
  e->made.places.len = 0; /* the scratch memory is that of who marks */
  heap = (gpuir__sort_block *)(void *)gpuir__buf_room(&e->a, &e->made.places, (size_t)blocks * sizeof *heap);
  if (!heap) return gpuir__engine_fail(e, GPUIR_E_NOMEM, "out of memory");
  if (s->is_text) gpuir__sort_turn(s);
  status = gpuir__sort_heap(s, heap, gpuir__sort_blocks(s, 0, sample, heap), &looked, &done);
  if (!status && !done && sample < UINT64_MAX)
    status = gpuir__sort_heap(s, heap, gpuir__sort_blocks(s, sample + 1, UINT64_MAX, heap), &looked, &done);
  gpuir__picks_settle(p);
  for (block = 0; block < blocks && !status; block++) {
    const gpuir__pick best = gpuir__sort_pick(s, 0, block, 0, 1);
    if (!gpuir__picks_want(p, &best)) break;
    if (s->lazy) status = gpuir__sort_mark_all(s, &matches);
    if (status) break;
    gpuir__sort_offer(s, block, 1);
    status = gpuir__engine_worked(e, 1);
  }
  return status;
}

/* Scores a document of the leaf whose lists are open; documents must come in their order. */
static uint32_t gpuir__engine_score_one(gpuir__engine *e, const gpuir_query *q, uint32_t docid) {
  const float norm = gpuir__norm_of(q->norm.a, q->norm.b, e->leaf.seg->lengths[docid]);
  uint32_t score = 0;
  unsigned i;
  for (i = 0; i < q->npositive; i++) {
    const gpuir__query_term *t = &q->terms[i];
    gpuir__cursor *c = e->turn.cursor_of[i] == GPUIR__NO_TERM ? NULL : &e->cursors[e->turn.cursor_of[i]];
    if (!c || gpuir__cursor_seek(c, docid) != docid) continue;
    score += t->q * gpuir__contribution(t->weight, gpuir__list_tf(&c->list, c->block * GPUIR__BLOCK + c->pos), norm);
  }
  return score;
}

/* Scores hits whose documents are known. It goes by docID, since cursors only move forward, and leaves hits in their
 * order. */
static int gpuir__engine_score_hits(gpuir__engine *e, const gpuir_query *q, gpuir_hit *hits, size_t n) {
  const gpuir__leaf *leaf = NULL;
  uint64_t *order;
  unsigned npositive;
  size_t i;
  int status = GPUIR_OK;
  e->marked.len = 0;
  order = (uint64_t *)(void *)gpuir__buf_room(&e->a, &e->marked, n * sizeof *order);
  if (!order) return gpuir__engine_fail(e, GPUIR_E_NOMEM, "out of memory");
  for (i = 0; i < n; i++) order[i] = (uint64_t)hits[i].docid << 32 | i;
  if (n) qsort(order, n, sizeof *order, gpuir__compare_asc64);
  for (i = 0; i < n && !status; i++) {
    const uint32_t docid = (uint32_t)(order[i] >> 32);
    if (!leaf || docid - leaf->base >= leaf->seg->stat.documents) {
      leaf = gpuir__leaf_of(e->ix, docid);
      status = gpuir__terms_open(e, q, (size_t)(leaf - e->ix->leaves), &npositive);
    }
    if (!status) hits[(uint32_t)order[i]].score = gpuir__engine_score_one(e, q, docid - leaf->base);
    if (!status) status = gpuir__engine_worked(e, 1);
  }
  gpuir__engine_reset(e);
  return status;
}

/* Hands out the picks: documents, and what stands in place of a score. */
static int gpuir__picks_hits(gpuir__engine *e, gpuir_hit *hits, size_t *n) {
  gpuir__picks *p = &e->picks;
  size_t i;
  if (!p->failed) gpuir__picks_settle(p);
  if (p->failed) return gpuir__engine_fail(e, GPUIR_E_NOMEM, "out of memory");
  for (i = 0; i < p->n; i++) {
    hits[i].docid = gpuir__picks_all(p)[i].docid;
    hits[i].score = UINT32_MAX - (uint32_t)gpuir__picks_all(p)[i].value;
  }
  *n = p->n;
  return GPUIR_OK;
}

/* Answers a query with a sort in mode AND or OR. */
static int gpuir__engine_sort(gpuir__engine *e, const gpuir_query *q, int mode, size_t k, gpuir_hit *hits, size_t *n) {
  const gpuir__column *row;
  gpuir__ordering s;
  size_t leaf;
  int status = GPUIR_OK;
  s.e = e;
  s.q = q;
  s.mode = mode;
  s.column = q->sort - 1;
  s.falling = q->falling;
  gpuir__picks_start(&e->picks, &e->a, e->ix, q->collapse, k);
  for (leaf = 0; leaf < e->ix->nleaves && !status; leaf++) {
    uint64_t matches = 0;
    s.leaf = &e->ix->leaves[leaf];
    s.number = leaf;
    row = &s.leaf->seg->columns.rows[s.column];
    s.is_text = gpuir__is_text_column((int)row->kind);
    s.base = s.is_text ? 0 : gpuir__unsign(row->least);
    s.step = s.is_text ? (uint64_t)1 << 32 : row->divisor;
    status = gpuir__sort_begin(&s, &matches);
    if (!status && matches) status = gpuir__sort_leaf(&s);
  }
  gpuir__engine_reset(e);
  if (!status) status = gpuir__picks_hits(e, hits, n);
  return status ? status : gpuir__engine_score_hits(e, q, hits, *n);
}
#endif

/* Starts the top-k of a search, and what takes its place. */
static int gpuir__engine_begin(gpuir__engine *e, const gpuir_query *q, size_t k) {
#ifndef GPUIR_NO_COLUMNS
  if (q->collapse) gpuir__picks_start(&e->picks, &e->a, e->ix, q->collapse, k);
#endif
  return gpuir__engine_top(e, q, k, 0) ? gpuir__engine_fail(e, GPUIR_E_NOMEM, "out of memory") : GPUIR_OK;
}

/* Empties the top-k, or the picks, into hits. */
static int gpuir__engine_found(gpuir__engine *e, const gpuir_query *q, gpuir_hit *hits, size_t *n) {
#ifndef GPUIR_NO_COLUMNS
  if (q->collapse) return gpuir__picks_hits(e, hits, n);
#endif
  (void)q;
  return gpuir__engine_hits(e, hits, n);
}

/* ---- one query */

/* Ranks one query in mode AND or OR: all leaves share one top-k, and so its threshold. */
static int gpuir__engine_mode(gpuir__engine *e, const gpuir_query *q, int mode, size_t k, gpuir_hit *hits, size_t *n) {
  gpuir__share *const share = e->share;
  size_t leaf;
  int status;
  *n = 0;
  if ((!q->nknown && !q->all) || (mode == GPUIR_AND && q->nunknown)) return GPUIR_OK;
  gpuir__engine_announce(e, q);
#ifndef GPUIR_NO_COLUMNS
  if (q->sort) {
    e->share = NULL;
    status = gpuir__engine_sort(e, q, mode, k, hits, n);
    e->share = share;
    return status;
  }
#endif
  status = gpuir__engine_begin(e, q, k);
  if (status) return status;
  e->phrases_required = gpuir__phrases_are_required(e, q, mode);
  if (!gpuir__engine_may_share(e, q)) e->share = NULL;
  if (e->share) gpuir__share_open(e, q, mode, k);
  if (mode == GPUIR_OR && gpuir__or_is_joint(e, q)) status = gpuir__eval_or_leaves(e, q, k);
  else
    for (leaf = 0; leaf < e->ix->nleaves && !status; leaf++) status = gpuir__engine_leaf(e, q, leaf, mode, k);
  if (e->share) status = gpuir__share_close(e, status);
  e->share = share;
  if (!status && e->limits.threshold) gpuir__engine_threshold(e);
  if (!status) status = gpuir__engine_found(e, q, hits, n);
  return status;
}

/* Starts the clock of a search. A timeout so long that its end does not fit into 64 bits never ends. */
static void gpuir__engine_start(gpuir__engine *e) {
  const uint64_t now = gpuir__now();
  e->deadline = e->timeout_ns ? now + gpuir__min64(e->timeout_ns, UINT64_MAX - now) : 0;
  if (e->limits.query_deadline && (!e->deadline || e->limits.query_deadline < e->deadline))
    e->deadline = e->limits.query_deadline;
  e->worked = 0;
  e->stopped = GPUIR_OK;
  gpuir__engine_unsieve(e);
  e->error.code = GPUIR_OK;
  e->error.msg[0] = 0;
  e->info.queries++;
}

/* Says whether n documents that match all words of a query are too few of k, so that any word is enough. */
static int gpuir__query_wants_any(const gpuir_query *q, size_t k, size_t n) {
#ifndef GPUIR_NO_RANK
  if (q->enough && q->enough < k) k = q->enough;
#endif
  return q->mode == GPUIR_ANDOR && n < k && !q->all;
}

/* Returns what is asked where any word is enough. */
static const gpuir_query *gpuir__query_any(const gpuir_query *q) {
#ifndef GPUIR_NO_RANK
  if (q->any) return q->any;
#endif
  return q;
}

/* Says whether a query of mode ANDOR for k hits is more than AND, and OR of the same words where that has fewer. */
GPUIR__UNUSED static int gpuir__query_has_two(const gpuir_query *q, size_t k) {
  return q->mode == GPUIR_ANDOR && !q->all && (gpuir__query_any(q) != q || (k && !gpuir__query_wants_any(q, k, k - 1)));
}

/* Answers one query on the CPU. */
static int gpuir__engine_search(gpuir__engine *e, const gpuir_query *q, gpuir_hit *hits, size_t k, size_t *n) {
  int status;
  *n = 0;
  gpuir__engine_start(e);
  if (k > e->ix->documents) k = (size_t)e->ix->documents;
  if (!k) return GPUIR_OK;
  status = gpuir__engine_look(e);
  if (status) return status;
  status = gpuir__engine_mode(e, q, q->mode == GPUIR_OR ? GPUIR_OR : GPUIR_AND, k, hits, n);
#ifndef GPUIR_NO_RANK
  e->tally = NULL; /* of the two, AND is counted */
#endif
  if (!status && gpuir__query_wants_any(q, k, *n))
    status = gpuir__engine_mode(e, gpuir__query_any(q), GPUIR_OR, k, hits, n);
  if (status) *n = 0;
  gpuir__engine_reset(e);
  return status;
}

/* Counts the documents that match one query; the clock runs already. */
GPUIR__NOINLINE int gpuir__engine_tally(gpuir__engine *e, const gpuir_query *q, uint64_t *matches) {
  size_t leaf;
  int status;
  *matches = 0;
  status = gpuir__engine_look(e);
  if (status || (q->mode != GPUIR_OR && q->nunknown)) return status;
  gpuir__engine_announce(e, q);
  e->counts_only = 1;
  for (leaf = 0; leaf < e->ix->nleaves && !status; leaf++)
    status = gpuir__engine_count_leaf(e, q, leaf, q->mode == GPUIR_OR ? GPUIR_OR : GPUIR_AND, matches);
  e->counts_only = 0;
  if (status) *matches = 0;
  gpuir__engine_reset(e);
  return status;
}

/* Counts the documents that match one query. */
static int gpuir__engine_count(gpuir__engine *e, const gpuir_query *q, uint64_t *matches) {
  gpuir__engine_start(e);
  return gpuir__engine_tally(e, q, matches);
}

#ifndef GPUIR_NO_RANK
/* Returns 1 if a query has phrases whose positions a search passes, so that it can count matches, too. */
static int gpuir__engine_counts_phrases(const gpuir__engine *e, const gpuir_query *q) {
  return q->nphrases && !gpuir__query_sorts(q) && !gpuir__query_collapses(q) &&
      gpuir__phrases_are_required(e, q, q->mode == GPUIR_OR ? GPUIR_OR : GPUIR_AND);
}

/* Ranks and counts such a query in one pass. */
static int gpuir__engine_search_phrases(gpuir__engine *e, const gpuir_query *q, gpuir_hit *hits, size_t k, size_t *n,
    uint64_t *matches) {
  int status;
  *matches = 0;
  e->tally = matches;
  e->share = NULL; /* others do not help to count */
  status = gpuir__engine_search(e, q, hits, k, n);
  e->tally = NULL;
  if (status) *matches = 0;
  return status;
}
#endif

/* Answers one query, and counts its matches in the same time unless `matches` is NULL. Hits that are fewer than k are
 * all there are; but where a threshold was given, some may be left out, and AND+OR counts as AND. */
static int gpuir__engine_search_count(gpuir__engine *e, const gpuir_query *q, gpuir_hit *hits, size_t k, size_t *n,
    uint64_t *matches) {
  int status;
#ifndef GPUIR_NO_RANK
  if (matches && k && gpuir__engine_counts_phrases(e, q))
    return gpuir__engine_search_phrases(e, q, hits, k, n, matches);
#endif
  status = gpuir__engine_search(e, q, hits, k, n);
  if (!matches) return status;
  *matches = status ? 0 : *n;
  if (status || (*n < k && q->mode != GPUIR_ANDOR && !gpuir__query_collapses(q) && !e->limits.threshold)) return status;
  e->share = NULL; /* others do not help to count */
  status = gpuir__engine_tally(e, q, matches);
  if (status) *n = 0;
  return status;
}

/* A batch from begin to finish. */
struct gpuir_batch {
  gpuir_searcher *searcher; /* NULL: not in flight */
  gpuir_batch_desc desc; /* with a backend its statuses are the caller's or, without those, `own` */
  void *running; /* the backend's */
  int asked; /* 1: the backend has it */
  int told; /* 1: the caller asks for statuses */
  gpuir_error error; /* the backend's */
  gpuir__buf own; /* int: a status a query */
};

#define GPUIR__IN_FLIGHT 2 /* batches of a searcher at most */

struct gpuir_searcher {
  uint32_t layout; /* gpuir__searcher_layout(), the first member in every version */
  const gpuir_index *ix;
  gpuir__engine engine; /* serves single searches */
  gpuir__engine *workers; /* threads - 1 more for batches */
  unsigned nworkers;
  gpuir_backend backend;
  int has_backend, fallback;
  gpuir_batch batches[GPUIR__IN_FLIGHT];
};

/* As gpuir__index_layout; a backend reads queries too. */
static inline uint32_t gpuir__searcher_layout(void) {
  return GPUIR__LAYOUT(sizeof(gpuir_searcher), sizeof(gpuir_query), sizeof(gpuir__query_term));
}

#ifdef GPUIR_NO_LAB
GPUIR_API const char *gpuir_intersection_name(size_t i) { return i ? NULL : "simd"; }
#else
GPUIR_API const char *gpuir_intersection_name(size_t i) { return i < GPUIR__METHODS ? gpuir__methods[i].name : NULL; }
#endif

/* Returns 1 if there is an intersection method of this name. */
static int gpuir__intersection_exists(const char *name) {
  size_t i = 0;
  while (gpuir_intersection_name(i) && strcmp(gpuir_intersection_name(i), name) != 0) i++;
  return gpuir_intersection_name(i) != NULL;
}

/* Makes the engine of one thread, and chooses its kernels. */
static void gpuir__engine_init(gpuir__engine *e, const gpuir_allocator *a, const gpuir_index *ix,
    const gpuir_searcher_desc *desc) {
  const int level = ix->simd - GPUIR_SIMD_SCALAR;
  memset(e, 0, sizeof *e);
  e->a = *a;
  e->ix = ix;
  e->kernels = &gpuir__search_of_level[level];
  e->lookups = gpuir__lookup_choose(ix->simd);
  e->score = gpuir__score_of_level[level];
  if (!desc) return;
  e->evaluator = desc->evaluator;
#ifndef GPUIR_NO_LAB
  e->intersection = desc->intersection ? gpuir__method_by_name(desc->intersection) : NULL;
#endif
  e->timeout_ns = desc->timeout_ns;
  e->limits.cancel = desc->cancel;
}

/* Returns the status for an intersection method that this build lacks: UNSUPPORTED if others have it, ARGUMENT if it is
 * unknown. */
static int gpuir__no_method(const char *name, gpuir_error *err) {
#ifdef GPUIR_NO_LAB
#define GPUIR__METHOD_NAME(name, title, paper, parameter, needs, functions) name,
  static const char *const left_out[] = {GPUIR__LAB_METHODS(GPUIR__METHOD_NAME)};
  size_t i;
  for (i = 0; i < sizeof left_out / sizeof left_out[0]; i++)
    if (!strcmp(name, left_out[i]))
      return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "the intersection method %s was left out by GPUIR_NO_LAB", name);
#endif
  return gpuir__refuse(err, "no intersection method is called '%.64s'", name);
}

GPUIR__COLD GPUIR_API int gpuir_searcher_create(const gpuir_index *ix, const gpuir_searcher_desc *desc,
    gpuir_searcher **searcher, gpuir_error *err) {
  gpuir_allocator a;
  gpuir_searcher *s;
  unsigned i, n;
  if (searcher) *searcher = NULL;
  if (!ix || !searcher) return gpuir__refuse(err, "gpuir_searcher_create: NULL argument");
  if (desc && (desc->evaluator < GPUIR_EVAL_AUTO || desc->evaluator > GPUIR_EVAL_EXHAUSTIVE))
    return gpuir__refuse(err, "unknown evaluator %d", desc->evaluator);
#ifdef GPUIR_NO_LAB
  if (desc && desc->evaluator == GPUIR_EVAL_EXHAUSTIVE)
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "the exhaustive evaluator was left out by GPUIR_NO_LAB");
#endif
  if (desc && desc->threads > 4096)
    return gpuir__refuse(err, "%u threads: at most 4096 serve a searcher", desc->threads);
  if (desc && desc->intersection && !gpuir__intersection_exists(desc->intersection))
    return gpuir__no_method(desc->intersection, err);
  a = desc && desc->allocator ? gpuir__allocator(desc->allocator) : ix->a;
  s = (gpuir_searcher *)gpuir__alloc_zero(&a, sizeof *s);
  if (!s) return gpuir__fail_nomem(err);
  n = desc && desc->threads > 1 ? desc->threads - 1 : 0;
  s->layout = gpuir__searcher_layout();
  s->ix = ix;
  gpuir__engine_init(&s->engine, &a, ix, desc);
  if (n) {
    s->workers = (gpuir__engine *)gpuir__alloc(&a, n * sizeof *s->workers);
    if (!s->workers) {
      gpuir__free(&a, s, sizeof *s);
      return gpuir__fail_nomem(err);
    }
    for (i = 0; i < n; i++) gpuir__engine_init(&s->workers[i], &a, ix, desc);
    s->nworkers = n;
  }
  *searcher = s;
  return GPUIR_OK;
}

GPUIR_API void gpuir_searcher_destroy(gpuir_searcher *s) {
  gpuir_allocator a;
  unsigned i;
  if (!s) return;
  a = s->engine.a;
  for (i = 0; i < GPUIR__IN_FLIGHT; i++) {
    gpuir_batch *b = &s->batches[i];
    if (b->searcher && b->asked) (void)s->backend.finish(s->backend.context, b->running, NULL);
    gpuir__buf_free(&a, &b->own);
  }
  if (s->has_backend && s->backend.close) s->backend.close(s->backend.context);
  gpuir__engine_free(&s->engine);
  for (i = 0; i < s->nworkers; i++) gpuir__engine_free(&s->workers[i]);
  gpuir__free(&a, s->workers, s->nworkers * sizeof *s->workers);
  gpuir__free(&a, s, sizeof *s);
}

GPUIR_API int gpuir_searcher_move(gpuir_searcher *s, const gpuir_index *ix) {
  const int level = ix ? ix->simd - GPUIR_SIMD_SCALAR : 0;
  unsigned i;
  if (!s || !ix) return GPUIR_E_ARGUMENT;
  if (ix != s->ix && gpuir_searcher_set_backend(s, NULL, 0)) return GPUIR_E_ARGUMENT;
  s->ix = ix;
  for (i = 0; i <= s->nworkers; i++) {
    gpuir__engine *e = i ? &s->workers[i - 1] : &s->engine;
    gpuir__engine_reset(e);
    e->ix = ix;
    e->kernels = &gpuir__search_of_level[level];
    e->lookups = gpuir__lookup_choose(ix->simd);
    e->score = gpuir__score_of_level[level];
  }
  return GPUIR_OK;
}

GPUIR_API void gpuir_searcher_set_timeout(gpuir_searcher *s, uint64_t timeout_ns) {
  unsigned i;
  if (!s) return;
  s->engine.timeout_ns = timeout_ns;
  for (i = 0; i < s->nworkers; i++) s->workers[i].timeout_ns = timeout_ns;
}

GPUIR_API void gpuir_searcher_error(const gpuir_searcher *s, gpuir_error *err) {
  if (s && err) *err = s->engine.error;
}

GPUIR_API void gpuir_searcher_get_info(const gpuir_searcher *s, gpuir_searcher_info *info) {
  unsigned i;
  if (!s || !info) return;
  *info = s->engine.info;
  for (i = 0; i < s->nworkers; i++) {
    const gpuir_searcher_info *w = &s->workers[i].info;
    info->queries += w->queries;
    info->postings_scored += w->postings_scored;
    info->blocks_decoded += w->blocks_decoded;
    info->blocks_total += w->blocks_total;
    info->tiles_scored += w->tiles_scored;
    info->tiles_total += w->tiles_total;
  }
}

/* ---- batches */

GPUIR_API const char *gpuir_backend_name(const gpuir_searcher *s) {
  return s && s->has_backend ? s->backend.name : "cpu";
}

#define GPUIR__PENDING 1 /* the status of a query that the CPU is yet to answer */

/* A batch, whose queries are taken by whichever thread is free. */
typedef struct gpuir__job {
  const gpuir_batch_desc *desc;
  int *statuses; /* of the pending queries each gets its own; NULL: all are pending, until one fails */
  gpuir__atomic64 next; /* the query that nobody has taken */
  gpuir__atomic64 first; /* the first query that failed; UINT64_MAX: none */
} gpuir__job;

/* One thread of a batch. */
typedef struct gpuir__hand {
  gpuir__engine *engine;
  gpuir__job *job;
  uint64_t failed; /* the first query that failed here, if status is not 0 */
  int status;
  gpuir_error error;
} gpuir__hand;

/* Answers query i of a batch, or only counts one that a device has `ranked`. */
static int gpuir__work_on(gpuir__engine *e, const gpuir_batch_desc *desc, uint64_t i, int ranked) {
  uint64_t matches = 0;
  size_t n = desc->counts[i];
  int status;
  e->limits.query_deadline = desc->deadlines ? desc->deadlines[i] : 0;
  e->limits.query_cancel = desc->cancels ? desc->cancels[i] : NULL;
  if (desc->thresholds && !ranked && desc->queries[i]->mode != GPUIR_ANDOR && !gpuir__query_sorts(desc->queries[i]) &&
      !gpuir__query_collapses(desc->queries[i]) && desc->k <= e->ix->documents)
    e->limits.threshold = &desc->thresholds[i];
  if (desc->count || ranked) {
    status = gpuir__engine_count(e, desc->queries[i], &matches);
    e->info.queries -= ranked != 0; /* the device's are counted already */
    if (desc->count) n = (size_t)matches;
  } else {
    status = gpuir__engine_search_count(e, desc->queries[i], desc->hits + i * desc->k, desc->k, &n,
        desc->matches ? &matches : NULL);
  }
  e->limits.query_deadline = 0;
  e->limits.query_cancel = NULL;
  e->limits.threshold = NULL;
  desc->counts[i] = status ? 0 : (uint32_t)n;
  if (desc->matches) desc->matches[i] = matches;
  return status;
}

/* Answers queries of a batch until none is left or, without statuses, one fails. */
static void *gpuir__work(void *argument) {
  gpuir__hand *hand = (gpuir__hand *)argument;
  gpuir__job *job = hand->job;
  for (;;) {
    uint64_t i = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED);
    int status, ranked;
    if (i >= job->desc->nq || i > gpuir__peek(&job->first)) return NULL;
    ranked = job->statuses && job->statuses[i] != GPUIR__PENDING;
    if (ranked && (job->statuses[i] || !job->desc->matches)) continue;
    status = gpuir__work_on(hand->engine, job->desc, i, ranked);
    if (job->statuses) job->statuses[i] = status;
    if (status && !hand->status) {
      hand->failed = i;
      hand->status = status;
      hand->error = hand->engine->error;
      if (job->statuses) continue;
      gpuir__poke(&job->first, i); /* a hint: later queries need not be tried */
      return NULL;
    }
  }
}

/* Answers the pending queries of a batch by all threads; the error is the first failed one's. */
static int gpuir__batch_cpu(gpuir_searcher *s, const gpuir_batch_desc *desc, int *statuses) {
  gpuir__job job;
  gpuir__hand mine, *hands = NULL;
  pthread_t *threads = NULL;
  unsigned n = s->nworkers < desc->nq ? s->nworkers : (unsigned)desc->nq, started = 0, i;
  const gpuir_allocator *a = &s->engine.a;
  job.desc = desc;
  job.statuses = statuses;
  job.next = 0;
  job.first = UINT64_MAX;
  memset(&mine, 0, sizeof mine);
  mine.engine = &s->engine;
  mine.job = &job;
  if (n) {
    hands = (gpuir__hand *)gpuir__alloc_zero(a, n * sizeof *hands);
    threads = (pthread_t *)gpuir__alloc(a, n * sizeof *threads);
    for (; hands && threads && started < n; started++) { /* without a thread the others do its work */
      hands[started].engine = &s->workers[started];
      hands[started].job = &job;
      if (pthread_create(&threads[started], NULL, gpuir__work, &hands[started])) break;
    }
  }
  (void)gpuir__work(&mine);
  for (i = 0; i < started; i++) {
    (void)pthread_join(threads[i], NULL);
    if (hands[i].status && (!mine.status || hands[i].failed < mine.failed)) mine = hands[i];
  }
  s->engine.error = mine.error;
  gpuir__free(a, hands, n * sizeof *hands);
  gpuir__free(a, threads, n * sizeof *threads);
  return mine.status;
}

/* Returns the end of a batch's time, 0 if it has none. */
static uint64_t gpuir__batch_deadline(uint64_t timeout_ns, size_t nq) {
  const uint64_t now = gpuir__now();
  if (!timeout_ns || timeout_ns > UINT64_MAX / nq) return 0;
  return now + gpuir__min64(timeout_ns * nq, UINT64_MAX - now);
}

/* Returns whether the CPU is to answer what the backend did not. */
static int gpuir__falls_back(const gpuir_searcher *s, int status) {
  return s->fallback && status != GPUIR_E_CANCELLED && status != GPUIR_E_DEADLINE && status != GPUIR_E_BUSY;
}

/* Says whether a backend takes the queries. */
static int gpuir__batch_is_plain(const gpuir_batch_desc *desc) {
  size_t i;
  for (i = 0; i < desc->nq && gpuir__query_is_plain(desc->queries[i]); i++) {}
  return i == desc->nq;
}

/* Hands a batch to the backend. If that fails, and the CPU is not to answer instead, returns its status. */
static int gpuir__batch_ask(gpuir_searcher *s, gpuir_batch *b) {
  const size_t nq = b->desc.nq;
  int status;
  if (!b->told) {
    b->own.len = 0;
    b->desc.statuses = (int *)(void *)gpuir__buf_room(&s->engine.a, &b->own, nq * sizeof(int));
    if (!b->desc.statuses) return gpuir__engine_fail(&s->engine, GPUIR_E_NOMEM, "out of memory");
  }
  memset(b->desc.statuses, 0, nq * sizeof(int));
  if (gpuir__batch_is_plain(&b->desc))
    status = s->backend.begin(s->backend.context, &b->desc, gpuir__batch_deadline(s->engine.timeout_ns, nq),
        s->engine.limits.cancel, &b->running, &b->error);
  else
    status = gpuir__fail(&b->error, GPUIR_E_UNSUPPORTED, 0,
        "backend %s: it takes no where, no order by fields, and no query without words", s->backend.name);
  b->asked = !status;
  if (!status) return GPUIR_OK;
  if (gpuir__falls_back(s, status)) {
    s->engine.info.backend_failures += nq;
    return GPUIR_OK;
  }
  s->engine.error = b->error;
  if (b->error.code != status)
    (void)gpuir__fail(&s->engine.error, status, 0, "backend %s: %s", s->backend.name, gpuir_strerror(status));
  return status;
}

/* Takes a batch back from the backend; returns how many queries it leaves to the CPU, which become pending. */
static size_t gpuir__batch_take(gpuir_searcher *s, gpuir_batch *b) {
  const gpuir_batch_desc *desc = &b->desc;
  const int status = s->backend.finish(s->backend.context, b->running, &b->error);
  size_t i, failed = 0, left = 0;
  for (i = 0; status && i < desc->nq; i++) failed += desc->statuses[i] != 0;
  for (i = 0; status && i < desc->nq; i++) {
    if (!failed) desc->statuses[i] = status; /* it does not say whose it is */
    if (!desc->statuses[i]) continue;
    desc->counts[i] = 0;
    if (!gpuir__falls_back(s, desc->statuses[i])) continue;
    desc->statuses[i] = GPUIR__PENDING;
    left++;
  }
  s->engine.info.queries += desc->nq - left;
  s->engine.info.backend_failures += left;
  return left;
}

/* Chooses the words for a batch's status: the CPU's, or else those of the backend, even if the CPU made its failure
 * good. */
static void gpuir__batch_words(gpuir_searcher *s, const gpuir_batch *b, int status) {
  gpuir_error *err = &s->engine.error;
  if ((!status || err->code != status) && b->error.code) *err = b->error;
  if (status && err->code != status)
    (void)gpuir__fail(err, status, 0, "%s: %s", gpuir_backend_name(s), gpuir_strerror(status));
}

/* Ends a batch that is in flight. */
GPUIR__COLD static int gpuir__batch_finish(gpuir_batch *b) {
  gpuir_searcher *s = b->searcher;
  const gpuir_batch_desc *desc = &b->desc;
  size_t left = desc->nq, i;
  int status = GPUIR_OK;
  b->searcher = NULL;
  if (b->asked) {
    left = gpuir__batch_take(s, b);
  } else if (desc->statuses) {
    for (i = 0; i < desc->nq; i++) desc->statuses[i] = GPUIR__PENDING;
  }
  memset(&s->engine.error, 0, sizeof s->engine.error);
  if (left || desc->matches) status = gpuir__batch_cpu(s, desc, desc->statuses);
  for (i = 0; desc->statuses && i < desc->nq && !desc->statuses[i]; i++) {}
  if (desc->statuses) status = i < desc->nq ? desc->statuses[i] : GPUIR_OK;
  gpuir__batch_words(s, b, status);
  for (i = 0; status && !b->told && i < desc->nq; i++) {
    desc->counts[i] = 0;
    if (desc->matches) desc->matches[i] = 0;
  }
  return status;
}

/* Checks and copies what a batch asks for. */
static int gpuir__batch_copy(const gpuir_searcher *s, const gpuir_batch_desc *from, gpuir_batch_desc *to) {
  size_t i;
  *to = *from;
  if (to->count) {
    to->k = 0;
    to->thresholds = NULL;
    to->matches = NULL;
  }
  if (to->nq && (!to->queries || !to->counts || (to->k && !to->hits))) return GPUIR_E_ARGUMENT;
  if (to->nq == 1 && to->k > s->ix->documents) {
    to->k = (size_t)s->ix->documents;
    to->thresholds = NULL; /* so few hits are no k */
  }
  if (to->nq > SIZE_MAX / sizeof *to->queries || (to->nq > 1 && to->k > SIZE_MAX / sizeof *to->hits / to->nq))
    return GPUIR_E_ARGUMENT;
  for (i = 0; i < to->nq; i++) {
    if (!to->queries[i] || to->queries[i]->ix != s->ix) return GPUIR_E_ARGUMENT;
    to->counts[i] = 0;
    if (to->matches) to->matches[i] = 0;
  }
  return GPUIR_OK;
}

GPUIR__COLD GPUIR_API int gpuir_search_begin(gpuir_searcher *s, const gpuir_batch_desc *desc, gpuir_batch **batch) {
  gpuir_batch *b;
  int status;
  if (batch) *batch = NULL;
  if (!s || !desc || !batch) return GPUIR_E_ARGUMENT;
  for (b = s->batches; b < s->batches + GPUIR__IN_FLIGHT && b->searcher; b++) {}
  if (b == s->batches + GPUIR__IN_FLIGHT)
    return gpuir__engine_fail(&s->engine, GPUIR_E_BUSY, "two batches of this searcher are in flight");
  status = gpuir__batch_copy(s, desc, &b->desc);
  if (status) return status;
  b->asked = 0;
  b->told = desc->statuses != NULL;
  memset(&b->error, 0, sizeof b->error);
  if (s->has_backend && desc->nq) status = gpuir__batch_ask(s, b);
  if (status) return status;
  b->searcher = s;
  *batch = b;
  return GPUIR_OK;
}

GPUIR_API int gpuir_search_poll(gpuir_batch *b) {
  if (!b || !b->searcher) return GPUIR_E_ARGUMENT;
  return !b->asked || b->searcher->backend.poll(b->searcher->backend.context, b->running) != 0;
}

GPUIR_API int gpuir_search_finish(gpuir_batch *b) {
  return b && b->searcher ? gpuir__batch_finish(b) : GPUIR_E_ARGUMENT;
}

GPUIR_API int gpuir_search_batch(gpuir_searcher *s, const gpuir_query *const *queries, size_t nq, size_t k,
    gpuir_hit *hits, uint32_t *counts) {
  gpuir_batch_desc desc;
  gpuir_batch *b;
  int status;
  memset(&desc, 0, sizeof desc);
  desc.queries = queries;
  desc.nq = nq;
  desc.k = k;
  desc.hits = hits;
  desc.counts = counts;
  status = gpuir_search_begin(s, &desc, &b);
  return status ? status : gpuir__batch_finish(b);
}

/* Ranks one query and, unless `matches` is NULL, counts it. */
static int gpuir__search_one(gpuir_searcher *s, const gpuir_query *query, gpuir_hit *hits, size_t k, size_t *n,
    uint64_t *matches) {
  gpuir_batch_desc desc;
  gpuir_batch *b;
  uint32_t count = 0;
  int status;
  if (!s || !query || (k && !hits) || query->ix != s->ix) return GPUIR_E_ARGUMENT;
  if (!s->has_backend) return gpuir__engine_search_count(&s->engine, query, hits, k, n, matches);
  memset(&desc, 0, sizeof desc);
  desc.queries = &query;
  desc.nq = 1;
  desc.k = k;
  desc.hits = hits;
  desc.counts = &count;
  desc.matches = matches;
  status = gpuir_search_begin(s, &desc, &b);
  if (!status) status = gpuir__batch_finish(b);
  *n = count;
  return status;
}

GPUIR_API int gpuir_search(gpuir_searcher *s, const gpuir_query *query, gpuir_hit *hits, size_t k, size_t *n) {
  if (!n) return GPUIR_E_ARGUMENT;
  *n = 0;
  return gpuir__search_one(s, query, hits, k, n, NULL);
}

GPUIR_API int gpuir_search_count(gpuir_searcher *s, const gpuir_query *query, gpuir_hit *hits, size_t k, size_t *n,
    uint64_t *matches) {
  if (n) *n = 0;
  if (matches) *matches = 0;
  return n && matches ? gpuir__search_one(s, query, hits, k, n, matches) : GPUIR_E_ARGUMENT;
}

GPUIR_API int gpuir_count(gpuir_searcher *s, const gpuir_query *query, uint64_t *matches) {
  gpuir_batch_desc desc;
  gpuir_batch *b;
  uint32_t count = 0;
  int status;
  if (matches) *matches = 0;
  if (!s || !query || !matches || query->ix != s->ix) return GPUIR_E_ARGUMENT;
  if (!s->has_backend) return gpuir__engine_count(&s->engine, query, matches);
  memset(&desc, 0, sizeof desc);
  desc.queries = &query;
  desc.nq = 1;
  desc.counts = &count;
  desc.count = 1;
  status = gpuir_search_begin(s, &desc, &b);
  if (!status) status = gpuir__batch_finish(b);
  *matches = count;
  return status;
}

/* ---- explanations */

/* Writes how AND will be evaluated over at least two lists. */
static void gpuir__explain_and(const gpuir__engine *e, const gpuir_query *q, const unsigned *order, unsigned npositive,
    char *plan, size_t cap) {
  const uint32_t least = e->cursors[order[0]].list.df, most = e->cursors[order[npositive - 1]].list.df;
  const uint32_t ratio = e->cursors[order[1]].list.df / least; /* of the first intersection, the costliest one */
  const char *how = ratio <= GPUIR__BLOCK / GPUIR__MANY ? "blocks meet register by register"
      : ratio < GPUIR__BLOCK                            ? "candidates are looked up in most blocks"
                                                        : "most blocks are skipped";
  const char *method = "simd";
  unsigned by_words[GPUIR_MAX_TERMS];
  gpuir__order_number(npositive, by_words);
#ifndef GPUIR_NO_LAB
  if (e->intersection) {
    method = e->intersection->name;
    how = "as asked for";
  }
#endif
  if (npositive - e->turn.noptional > 1 && !gpuir__order_dense(e, 0, npositive - e->turn.noptional, by_words)) {
    (void)snprintf(plan, cap, "%s by words of bits, bounds from windows, %u lists of df %u to %u (%s)",
        q->mode == GPUIR_AND ? "AND" : "AND, then OR if fewer than k match", npositive, (unsigned)least, (unsigned)most,
        gpuir_simd_name(e->ix->simd));
    return;
  }
  (void)snprintf(plan, cap, "%s, driven by the shortest list (df %u of up to %u, first ratio %u): %s, %s (%s)",
      q->mode == GPUIR_AND ? "AND" : "AND, then OR if fewer than k match", (unsigned)least, (unsigned)most,
      (unsigned)ratio, method, how, gpuir_simd_name(e->ix->simd));
}

/* Writes how a query will be evaluated. */
static void gpuir__explain_plan(const gpuir__engine *e, const gpuir_query *q, unsigned npositive, char *plan,
    size_t cap) {
  unsigned order[GPUIR_MAX_TERMS];
  const char *simd = gpuir_simd_name(e->ix->simd);
  if (q->all) {
    (void)snprintf(plan, cap, "all documents, in their order");
    return;
  }
  if (!npositive || (q->mode == GPUIR_AND && npositive - e->turn.noptional < q->nrequired)) {
    (void)snprintf(plan, cap, "nothing to do: %s",
        !q->nknown                                ? "no known term"
            : q->mode == GPUIR_AND && q->nunknown ? "AND with a term that no document holds"
                                                  : "the document's segment lacks a term");
    return;
  }
  gpuir__order_number(npositive, order);
  gpuir__order_by_df(e, npositive, order);
  if (e->evaluator == GPUIR_EVAL_EXHAUSTIVE) (void)snprintf(plan, cap, "exhaustive: every posting, in docID tiles");
  else if (npositive == 1)
    (void)snprintf(plan, cap, "one list, of whose blocks (%u) those below the threshold are passed over (%s)",
        (unsigned)e->cursors[order[0]].list.nblocks, simd);
  else if (q->mode == GPUIR_OR)
    (void)snprintf(plan, cap, "OR by MaxScore over docID tiles, bounds from blocks, %u lists of df %u to %u (%s)",
        npositive, (unsigned)e->cursors[order[0]].list.df, (unsigned)e->cursors[order[npositive - 1]].list.df, simd);
  else gpuir__explain_and(e, q, order, npositive, plan, cap);
}

/* Explains what each term adds to document `docid`, whose leaf is open; returns 1 if the document matches. */
static int gpuir__explain_terms(gpuir__engine *e, const gpuir_query *q, uint32_t docid, gpuir_explanation *x) {
  unsigned i, matched = 0, required = 0, excluded = 0;
  x->nterms = q->n;
  for (i = 0; i < q->n; i++) {
    const gpuir__query_term *t = &q->terms[i];
    gpuir_explain_term *o = &x->terms[i];
    const unsigned c = e->turn.cursor_of[i];
    gpuir__cursor *cursor;
    o->term = gpuir__query_term_name(q, t, &o->term_len);
    o->q = t->q;
    o->negated = t->negated;
    o->tokens = t->tokens ? t->tokens : 1;
    o->optional = t->optional != 0;
    o->members = t->members;
    o->df = t->tokens ? 0 : t->df;
    o->idf = t->idf;
    o->weight = t->weight;
    o->norm = gpuir__norm_of(q->norm.a, q->norm.b, x->length);
    if (c == GPUIR__NO_TERM) continue;
    cursor = &e->cursors[c];
    if (gpuir__cursor_seek(cursor, docid) != docid) continue;
    o->tf = gpuir__list_tf(&cursor->list, cursor->block * GPUIR__BLOCK + cursor->pos);
    if (t->negated) {
      excluded++;
    } else {
      o->contribution = gpuir__contribution(t->weight, o->tf, o->norm);
      x->score += t->q * o->contribution;
      matched++;
      required += i < q->nrequired;
    }
  }
  return !excluded && (q->mode == GPUIR_OR && !q->all ? matched > 0 : required == q->nrequired);
}

#ifndef GPUIR_NO_COLUMNS
/* Writes behind the plan whether candidates of the words are tested by a where, or those that pass it are looked up in
 * the words' lists: what most tiles do, as far as it is known how many pass. */
static void gpuir__explain_leads(const gpuir__engine *e, const gpuir_query *q, const gpuir__sieve *s,
    unsigned npositive, char *plan, size_t cap) {
  const uint64_t known = gpuir__peek(&s->known) * GPUIR__BLOCK;
  const double passing = known ? (double)gpuir__peek(&s->passing) / (double)known : 1;
  const size_t len = strlen(plan);
  double postings = 0;
  unsigned i;
  for (i = 0; i < npositive; i++) postings += e->cursors[i].list.df;
  (void)snprintf(plan + len, cap - len, "; where: %s",
      q->mode == GPUIR_OR && npositive > 1 && e->evaluator != GPUIR_EVAL_EXHAUSTIVE &&
              passing * (double)e->leaf.seg->stat.documents * GPUIR__DRIVEN * npositive < postings
          ? "list"
          : "test");
}
#endif

/* Tells which predicate a document of a leaf fails, and how the where is evaluated. 0 or NOMEM. */
static int gpuir__explain_where(const gpuir__engine *e, const gpuir_query *q, const gpuir__leaf *leaf,
    unsigned npositive, uint32_t docid, gpuir_explanation *x) {
#ifdef GPUIR_NO_COLUMNS
  (void)e;
  (void)npositive;
  (void)q;
  (void)leaf;
  (void)docid;
  (void)x;
#else
  gpuir__sieve *sieve;
  unsigned failed;
  if (!q->where) return GPUIR_OK;
  sieve = gpuir__sieve_open(leaf->seg, q->where);
  if (!sieve) return GPUIR_E_NOMEM;
  failed = gpuir__sieve_failed(sieve, docid);
  gpuir__explain_leads(e, q, sieve, npositive, x->plan, sizeof x->plan);
  gpuir__sieve_close(sieve);
  if (failed == q->where->n) return GPUIR_OK;
  x->failed = q->where->text + q->where->predicates[failed].at;
  x->failed_len = q->where->predicates[failed].len;
  x->matches = 0;
#endif
  return GPUIR_OK;
}

/* Explains a document of a leaf by one query. */
static int gpuir__explain_by(gpuir__engine *e, const gpuir_query *q, const gpuir__leaf *leaf, uint32_t docid,
    gpuir_explanation *x) {
  unsigned npositive;
  int status;
  memset(x, 0, sizeof *x);
  gpuir__engine_start(e);
  e->unsieved = 1;
  status = gpuir__terms_open(e, q, (size_t)(leaf - e->ix->leaves), &npositive);
  e->unsieved = 0;
  if (status) return status;
  gpuir__explain_plan(e, q, npositive, x->plan, sizeof x->plan);
  x->length = leaf->seg->lengths[docid];
  x->k1 = q->k1;
  x->b = q->b;
  x->average_length = e->ix->average_length;
  x->matches = gpuir__explain_terms(e, q, docid, x);
  status = gpuir__explain_where(e, q, leaf, npositive, docid, x);
  if (!x->matches) x->score = 0;
  gpuir__engine_reset(e);
  return status ? gpuir__engine_fail(e, status, "out of memory") : GPUIR_OK;
}

GPUIR__COLD GPUIR_API int gpuir_explain(gpuir_searcher *s, const gpuir_query *q, uint32_t docid, gpuir_explanation *x) {
  const gpuir__leaf *leaf;
  int status;
  if (!s || !q || !x || q->ix != s->ix) return GPUIR_E_ARGUMENT;
  memset(x, 0, sizeof *x);
  if (docid >= s->ix->docids) return GPUIR_E_NOT_FOUND;
  leaf = gpuir__leaf_of(s->ix, docid);
  if (leaf->deleted && gpuir__deleted_has(leaf->deleted, docid - leaf->base)) return GPUIR_E_NOT_FOUND;
  status = gpuir__explain_by(&s->engine, q, leaf, docid - leaf->base, x);
  if (status || x->matches || gpuir__query_any(q) == q) return status;
  return gpuir__explain_by(&s->engine, gpuir__query_any(q), leaf, docid - leaf->base, x);
}

/* ---- public cursors */

struct gpuir_cursor {
  gpuir_allocator a;
  const uint32_t *lengths; /* of all documents */
  gpuir__cursor c;
};

GPUIR__COLD GPUIR_API int gpuir_cursor_open(const gpuir_index *ix, uint64_t term_id, gpuir_cursor **cursor,
    gpuir_error *err) {
  const gpuir__segment *seg;
  gpuir_cursor *p;
  int status;
  if (cursor) *cursor = NULL;
  if (!ix || !cursor) return gpuir__refuse(err, "gpuir_cursor_open: NULL argument");
  seg = gpuir__only(ix);
  if (!seg) return gpuir__fail_unmerged(ix, err);
  if (term_id >= seg->stat.terms) return gpuir__fail(err, GPUIR_E_NOT_FOUND, 0, "%s: no such term", ix->path);
  p = (gpuir_cursor *)gpuir__alloc_zero(&ix->a, sizeof *p);
  if (!p) return gpuir__fail_nomem(err);
  p->a = ix->a;
  p->lengths = seg->lengths;
  gpuir__cursor_reset(&p->c);
  status = gpuir__list_open(seg, &ix->a, term_id, &p->c.list);
  if (status) {
    gpuir__free(&ix->a, p, sizeof *p);
    return gpuir__fail(err, status, 0, "%s: cannot open a list: %s", ix->path, gpuir__list_why(seg, term_id, status));
  }
  (void)gpuir__cursor_seek(&p->c, 0);
  *cursor = p;
  return GPUIR_OK;
}

GPUIR_API void gpuir_cursor_close(gpuir_cursor *cursor) {
  if (cursor) {
    gpuir_allocator a = cursor->a;
    gpuir__list_close(&a, &cursor->c.list);
    gpuir__free(&a, cursor, sizeof *cursor);
  }
}

GPUIR_API uint32_t gpuir_cursor_docid(const gpuir_cursor *cursor) {
  return cursor && cursor->c.pos < cursor->c.n ? cursor->c.docs[cursor->c.pos] : GPUIR_END;
}

GPUIR_API uint32_t gpuir_cursor_next(gpuir_cursor *cursor) {
  return cursor ? gpuir__cursor_step(&cursor->c) : GPUIR_END;
}

GPUIR_API uint32_t gpuir_cursor_next_geq(gpuir_cursor *cursor, uint32_t docid) {
  uint32_t here = gpuir_cursor_docid(cursor);
  return here == GPUIR_END || here >= docid ? here : gpuir__cursor_seek(&cursor->c, docid);
}

GPUIR_API uint32_t gpuir_cursor_tf(gpuir_cursor *cursor) {
  const gpuir__cursor *c = cursor ? &cursor->c : NULL;
  return c && c->pos < c->n ? gpuir__list_tf(&c->list, c->block * GPUIR__BLOCK + c->pos) : 0;
}

GPUIR_API int gpuir_cursor_positions(gpuir_cursor *cursor, uint32_t *positions, uint32_t cap, uint32_t *n) {
  gpuir__cursor *c = cursor ? &cursor->c : NULL;
  gpuir__positions block;
  gpuir__occurrences walk;
  uint32_t i;
  if (n) *n = 0;
  if (!c || !n || (!positions && cap)) return GPUIR_E_ARGUMENT;
  if (!c->list.positions) return GPUIR_E_UNSUPPORTED;
  if (c->pos >= c->n) return GPUIR_E_NOT_FOUND;
  gpuir__cursor_freqs(c);
  gpuir__positions_open(&block, &c->list, c->block, c->values, c->n);
  gpuir__positions_find(&block, c->values, c->pos, cursor->lengths[c->docs[c->pos]], &walk);
  cap = gpuir__min32(cap, gpuir_cursor_tf(cursor));
  for (i = 0; i < cap; i++) {
    positions[i] = gpuir__occurrences_next(&walk);
    if (positions[i] == GPUIR_END || (i && positions[i] <= positions[i - 1])) return GPUIR_E_FORMAT;
  }
  *n = i;
  return GPUIR_OK;
}

/* ---- backends */

GPUIR_API int gpuir_searcher_set_backend(gpuir_searcher *s, const gpuir_backend *backend, int fallback) {
  unsigned i;
  if (!s) return GPUIR_E_ARGUMENT;
  if (backend && backend->version != GPUIR_BACKEND_VERSION) return GPUIR_E_VERSION;
  if (backend && (!backend->begin || !backend->poll || !backend->finish || !backend->name)) return GPUIR_E_ARGUMENT;
  for (i = 0; i < GPUIR__IN_FLIGHT; i++)
    if (s->batches[i].searcher) return gpuir__engine_fail(&s->engine, GPUIR_E_BUSY, "a batch is in flight");
  if (s->has_backend && s->backend.close) s->backend.close(s->backend.context);
  s->has_backend = backend != NULL;
  s->fallback = fallback;
  if (backend) s->backend = *backend;
  return GPUIR_OK;
}

/* What gpuir_cuda.cu calls of the program's copy of the implementation, by each index that it is given: its own copy of
 * these would be large, and without SIMD. */
struct gpuir__calls {
  uint32_t layout; /* GPUIR__CALLS_LAYOUT, the first member in every version */
  int (*list_of)(const gpuir__segment *, const gpuir__record *, gpuir__list *);
  int (*term_find)(const gpuir__segment *, const char *, size_t, uint64_t *);
  int (*segment_open)(const gpuir_allocator *, int, const char *, const gpuir_open_desc *, gpuir__segment **,
      gpuir_error *);
  void (*segment_close)(gpuir__segment *);
  int (*index_make)(const gpuir_allocator *, const char *, const gpuir_open_desc *, const gpuir__leaf *, size_t,
      gpuir__analyzers *, gpuir_index **, gpuir_error *);
  void (*index_close)(gpuir_index *);
  int (*builder_create)(const gpuir_builder_desc *, gpuir_builder **, gpuir_error *);
  int (*builder_add_doc)(gpuir_builder *, const gpuir_doc_desc *, uint32_t, const char *, size_t, gpuir_error *);
  int (*builder_open_lists)(gpuir_builder *, gpuir_error *);
  int (*encode_list)(gpuir__encoder *, gpuir__batch *, const void *, size_t, const uint32_t *, const uint32_t *,
      uint32_t, const uint32_t *);
  int (*put_batch)(gpuir__writer *, const gpuir__batch *, gpuir_error *);
  int (*builder_write)(gpuir_builder *, gpuir_build_report *, gpuir_error *);
  void (*builder_destroy)(gpuir_builder *);
  int (*searcher_create)(const gpuir_index *, const gpuir_searcher_desc *, gpuir_searcher **, gpuir_error *);
  void (*searcher_destroy)(gpuir_searcher *);
  int (*search_begin)(gpuir_searcher *, const gpuir_batch_desc *, gpuir_batch **);
  int (*search_poll)(gpuir_batch *);
  int (*search_finish)(gpuir_batch *);
};

/* As gpuir__index_layout; the CUDA backend fills batches of lists, and knows where a builder has its encoders. */
#define GPUIR__CALLS_LAYOUT \
  GPUIR__LAYOUT(sizeof(gpuir__calls) + sizeof(gpuir_builder) + sizeof(gpuir__worker), \
      offsetof(gpuir__worker, encoding), sizeof(gpuir__batch))

/* Makes an index as gpuir__index_make does, which the CUDA backend may be given. */
GPUIR__COLD static int gpuir__index_open(const gpuir_allocator *a, const char *path, const gpuir_open_desc *desc,
    const gpuir__leaf *from, size_t n, gpuir__analyzers *pool, gpuir_index **index, gpuir_error *err) {
  const int status = gpuir__index_make(a, path, desc, from, n, pool, index, err);
#ifndef GPUIR_NO_CUDA
  static const gpuir__calls calls = {GPUIR__CALLS_LAYOUT, gpuir__list_of, gpuir__term_find, gpuir__segment_open,
      gpuir__segment_close, gpuir__index_make, gpuir_close, gpuir_builder_create, gpuir_builder_add_doc,
      gpuir__builder_open_lists, gpuir__encode_list, gpuir__writer_put_batch, gpuir_builder_write,
      gpuir_builder_destroy, gpuir_searcher_create, gpuir_searcher_destroy, gpuir_search_begin, gpuir_search_poll,
      gpuir_search_finish};
  size_t i;
  if (status) return status;
  (*index)->calls = &calls;
  for (i = 0; (*index)->alone && i < n; i++) (*index)->alone[i].calls = &calls;
#endif
  return status;
}
