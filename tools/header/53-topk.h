
/* ========
 * [53-topk]  the best k hits
 *
 * A heap of the best k hits. The worst of them is the threshold, which a document has to exceed to be a hit.
 *
 * Where hits are ordered by a column, or only the best document of each value is one, they are picks instead: an array
 * of up to some 2k, which is now and then sorted and cut to the best k of different values. So no pick ever has to be
 * found and moved, and a value whose best document was cut off comes again with a better one.
 *
 * Uses      [18-codecs], [34-fields], [35-keys], [37-layout], [40-columns], [42-snapshot].
 * Start at  gpuir__topk_push, gpuir__topk_threshold; gpuir__picks_push.
 * Tests     tests/unit/53_topk.c
 * ======*/

typedef struct gpuir__picks gpuir__picks;

#ifndef GPUIR_NO_COLUMNS
/* ---- picks */

/* A hit in an order: the least is the best. */
typedef struct gpuir__pick {
  uint64_t value; /* what it is ordered by */
  uint64_t group; /* a hash of the value that it is collapsed by */
  uint32_t docid; /* in the index */
  uint32_t none; /* 1: it has no value to be ordered by, and comes last */
} gpuir__pick;

/* The best k picks, of a column's values each one. */
struct gpuir__picks {
  gpuir_allocator a;
  const gpuir_index *ix;
  unsigned collapse; /* the column, plus 1; 0: none */
  size_t n, k; /* picks now, wanted */
  gpuir__buf all, table; /* the picks; uint32_t: numbers of picks that stay, plus 1, by their groups */
  gpuir__pick worst; /* of the best k, once there were k */
  int full; /* 1: worse picks than `worst` are not taken */
  int failed; /* 1: there was no memory */
};

static void gpuir__picks_start(gpuir__picks *p, const gpuir_allocator *a, const gpuir_index *ix, unsigned collapse,
    size_t k) {
  p->a = *a;
  p->ix = ix;
  p->collapse = collapse;
  p->n = 0;
  p->k = k;
  p->full = p->failed = 0;
}

/* The first value of a document in a column. */
typedef struct gpuir__first {
  const gpuir__segment *seg;
  uint64_t value; /* a number without a sign, or a rank in the segment */
  int has;
} gpuir__first;

static gpuir__first gpuir__first_of(const gpuir_index *ix, unsigned column, uint32_t docid) {
  const gpuir__leaf *leaf = gpuir__leaf_of(ix, docid);
  const gpuir__column *row = &leaf->seg->columns.rows[column];
  const int is_text = gpuir__is_text_column((int)row->kind);
  gpuir__column_block b;
  gpuir__first x = {leaf->seg, 0, 0};
  docid -= leaf->base;
  gpuir__column_open(x.seg, column, docid / GPUIR__BLOCK, &b);
  x.has = gpuir__column_first(&b, is_text, docid % GPUIR__BLOCK, &x.value);
  if (x.has && !is_text) x.value = gpuir__column_number(row, x.value);
  return x;
}

/* Reads the text of a first value of a key or a path to w; the length, 0 in a damaged file. */
static size_t gpuir__first_text(const gpuir__first *x, unsigned column, gpuir__key_walk *w) {
  const gpuir__key_texts t = gpuir__column_texts(x->seg, column);
  return gpuir__key_get(&t, x->value - 1, w);
}

/* Hashes the first value of a document; one without stands for itself. */
static uint64_t gpuir__first_hash(const gpuir_index *ix, unsigned column, uint32_t docid) {
  const gpuir__first x = gpuir__first_of(ix, column, docid);
  gpuir__key_walk w;
  if (!x.has) return gpuir__hash(&docid, sizeof docid, 1);
  if (!gpuir__is_text_column((int)x.seg->columns.rows[column].kind)) return gpuir__hash(&x.value, sizeof x.value, 0);
  return gpuir__hash(w.text, gpuir__first_text(&x, column, &w), 0);
}

/* Says whether two documents have the same first value; keys of two segments are compared by their bytes. */
static int gpuir__first_same(const gpuir_index *ix, unsigned column, uint32_t a, uint32_t b) {
  const gpuir__first x = gpuir__first_of(ix, column, a), y = gpuir__first_of(ix, column, b);
  gpuir__key_walk v, w;
  if (!x.has || !y.has) return 0;
  if (x.seg == y.seg || !gpuir__is_text_column((int)x.seg->columns.rows[column].kind)) return x.value == y.value;
  return gpuir__first_text(&x, column, &v) == gpuir__first_text(&y, column, &w) && !memcmp(v.text, w.text, v.len);
}

/* Orders picks, for qsort; of a document there is one at most. */
static int gpuir__pick_compare(const void *a, const void *b) {
  const gpuir__pick *x = (const gpuir__pick *)a, *y = (const gpuir__pick *)b;
  if (x->none != y->none) return x->none < y->none ? -1 : 1;
  if (x->value != y->value) return x->value < y->value ? -1 : 1;
  return x->docid < y->docid ? -1 : x->docid > y->docid;
}

static gpuir__pick *gpuir__picks_all(const gpuir__picks *p) { return (gpuir__pick *)(void *)p->all.data; }

/* Notes a pick as number `n` of those that stay, in a table of so many slots; 0 if one of the same value stays. */
static int gpuir__picks_note(const gpuir__picks *p, size_t slots, const gpuir__pick *x, size_t n) {
  uint32_t *table = (uint32_t *)(void *)p->table.data;
  const gpuir__pick *all = gpuir__picks_all(p);
  size_t at = (size_t)x->group & (slots - 1);
  for (; table[at]; at = (at + 1) & (slots - 1)) {
    const gpuir__pick *y = &all[table[at] - 1];
    if (y->group == x->group && gpuir__first_same(p->ix, p->collapse - 1, x->docid, y->docid)) return 0;
  }
  table[at] = (uint32_t)n + 1;
  return 1;
}

/* Sorts the picks, and keeps the best k of different values. */
static void gpuir__picks_settle(gpuir__picks *p) {
  gpuir__pick *all = gpuir__picks_all(p);
  size_t slots = 16, i, kept = 0;
  if (p->n > 1) qsort(all, p->n, sizeof *all, gpuir__pick_compare);
  while (slots < 2 * p->n) slots *= 2;
  p->table.len = 0;
  if (p->collapse && !gpuir__buf_room(&p->a, &p->table, slots * sizeof(uint32_t))) {
    p->failed = 1;
    return;
  }
  if (p->collapse) memset(p->table.data, 0, slots * sizeof(uint32_t));
  for (i = 0; i < p->n && kept < p->k; i++)
    if (!p->collapse || gpuir__picks_note(p, slots, &all[i], kept)) all[kept++] = all[i];
  p->n = kept;
  p->full = kept == p->k;
  if (p->full) p->worst = all[kept - 1];
}

/* Says whether a pick may be one of the best k. */
static inline int gpuir__picks_want(const gpuir__picks *p, const gpuir__pick *x) {
  return !p->full || gpuir__pick_compare(x, &p->worst) < 0;
}

/* Offers a pick, whose group is not known yet. */
static void gpuir__picks_push(gpuir__picks *p, gpuir__pick x) {
  gpuir__pick *to;
  if (p->failed || !gpuir__picks_want(p, &x)) return;
  if (p->collapse) x.group = gpuir__first_hash(p->ix, p->collapse - 1, x.docid);
  p->all.len = p->n * sizeof x;
  to = (gpuir__pick *)(void *)gpuir__buf_room(&p->a, &p->all, sizeof x);
  p->failed = !to;
  if (!to) return;
  *to = x;
  p->n++;
  if (p->n / 2 >= p->k + 4) gpuir__picks_settle(p);
}
#endif

/* ---- the best k, as a min-heap of keys (score << 32 | ~docID) */

typedef struct gpuir__topk {
  uint64_t *heap; /* n keys, the least one first */
  size_t n, k, cap; /* keys now, wanted, allocated */
  uint64_t threshold_key; /* only keys above it are taken */
#ifndef GPUIR_NO_COLUMNS
  gpuir__picks *picks; /* takes the place of the heap, of which only n is kept, 0, 1 or k; NULL: there is none */
#endif
} gpuir__topk;

/* Returns the key of a hit: greater keys are better hits. */
GPUIR_HD uint64_t gpuir__key(uint32_t score, uint32_t docid) { return (uint64_t)score << 32 | (uint32_t)~docid; }

/* Starts a search for the best k (>= 1) hits whose score is at least `threshold`. They go to `picks`, or to the heap if
 * that is NULL: said anew by each start, so that no search hands hits to where one before it had them. 0 or NOMEM. */
static int gpuir__topk_start(const gpuir_allocator *a, gpuir__topk *t, size_t k, uint32_t threshold,
    gpuir__picks *picks) {
  if (k > t->cap) {
    void *p = k > SIZE_MAX / 8 ? NULL : a->resize(a->user, t->heap, t->cap * 8, k * 8);
    if (!p) return GPUIR_E_NOMEM;
    t->heap = (uint64_t *)p;
    t->cap = k;
  }
#ifdef GPUIR_NO_COLUMNS
  (void)picks;
#else
  t->picks = picks;
#endif
  t->n = 0;
  t->k = k;
  t->threshold_key = threshold ? ((uint64_t)threshold << 32) - 1 : 0;
  return GPUIR_OK;
}

/* Returns the least score with which a document may still enter; at least 1, since all scores are. */
static inline uint32_t gpuir__topk_threshold(const gpuir__topk *t) {
  uint64_t threshold = (t->threshold_key + 1) >> 32;
  return threshold ? (uint32_t)threshold : 1;
}

/* Sifts heap[at] down to its place among n keys. */
static void gpuir__heap_down(uint64_t *heap, size_t n, size_t at) {
  uint64_t key = heap[at];
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= n) break;
    if (child + 1 < n && heap[child + 1] < heap[child]) child++;
    if (heap[child] >= key) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = key;
}

#ifndef GPUIR_NO_COLUMNS
/* Makes a pick of a key: a document and its score. */
static void gpuir__topk_pick(gpuir__topk *t, uint64_t key) {
  gpuir__picks *p = t->picks;
  const gpuir__pick x = {UINT32_MAX - (key >> 32), 0, ~(uint32_t)key, 0};
  gpuir__picks_push(p, x);
  t->n = p->full ? t->k : 1;
  if (p->full) t->threshold_key = gpuir__key(UINT32_MAX - (uint32_t)p->worst.value, p->worst.docid);
}
#endif

/* Offers a key: the best k that were offered stay. */
static void gpuir__topk_push(gpuir__topk *t, uint64_t key) {
  size_t i;
  if (key <= t->threshold_key) return;
#ifndef GPUIR_NO_COLUMNS
  if (GPUIR__UNLIKELY(t->picks != NULL)) {
    gpuir__topk_pick(t, key);
    return;
  }
#endif
  if (t->n < t->k) {
    for (i = t->n++; i && t->heap[(i - 1) / 2] > key; i = (i - 1) / 2) t->heap[i] = t->heap[(i - 1) / 2];
    t->heap[i] = key;
  } else {
    t->heap[0] = key;
    gpuir__heap_down(t->heap, t->n, 0);
  }
  if (t->n == t->k && t->heap[0] > t->threshold_key) t->threshold_key = t->heap[0];
}

/* Offers the key of a document, unless it is deleted. */
static inline void gpuir__topk_push_live(gpuir__topk *t, uint64_t key, const gpuir__deleted *deleted, uint32_t docid) {
  if (key > t->threshold_key && !(deleted && gpuir__deleted_has(deleted, docid))) gpuir__topk_push(t, key);
}

/* Moves the worst entry to hits[n - 1], where n is the number of entries left. */
static void gpuir__topk_pop(gpuir__topk *t, gpuir_hit *hits) {
  uint64_t key = t->heap[0];
  hits[--t->n].score = (uint32_t)(key >> 32);
  hits[t->n].docid = ~(uint32_t)key;
  t->heap[0] = t->heap[t->n];
  gpuir__heap_down(t->heap, t->n ? t->n : 1, 0);
}
