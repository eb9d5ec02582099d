
/* ========
 * [53-topk]  the best k hits
 *
 * A heap of the best k hits. The worst of them is the threshold, which a document has to exceed to be a hit.
 *
 * Uses      [37-layout], [42-snapshot].
 * Start at  gpuir__topk_push, gpuir__topk_threshold.
 * Tests     tests/unit/53_topk.c
 * ======*/

/* ---- the best k, as a min-heap of keys (score << 32 | ~docID) */

typedef struct gpuir__topk {
  uint64_t *heap; /* n keys, the least one first */
  size_t n, k, cap; /* keys now, wanted, allocated */
  uint64_t threshold_key; /* only keys above it are taken */
} gpuir__topk;

/* Returns the key of a hit: greater keys are better hits. */
GPUIR_HD uint64_t gpuir__key(uint32_t score, uint32_t docid) { return (uint64_t)score << 32 | (uint32_t)~docid; }

/* Starts a search for the best k (>= 1) hits whose score is at least `threshold`. 0 or NOMEM. */
static int gpuir__topk_start(const gpuir_allocator *a, gpuir__topk *t, size_t k, uint32_t threshold) {
  if (k > t->cap) {
    void *p = k > SIZE_MAX / 8 ? NULL : a->resize(a->user, t->heap, t->cap * 8, k * 8);
    if (!p) return GPUIR_E_NOMEM;
    t->heap = (uint64_t *)p;
    t->cap = k;
  }
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

/* Offers a key: the best k that were offered stay. */
static void gpuir__topk_push(gpuir__topk *t, uint64_t key) {
  size_t i;
  if (key <= t->threshold_key) return;
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
