
/* ========
 * [57-share]  one search that several threads evaluate
 *
 * The engine that was asked owns the search; engines that have nothing else to do help. A leaf of the index falls into
 * parts: blocks of the driver, or tiles. An engine takes the next parts, evaluates them with cursors and a top-k of its
 * own, and hands over what it found. The threshold of all is that of the best k of all, so that each prunes as if it
 * had evaluated everything. A helper may come late, and leave between parts: what it has not taken is left for others.
 *
 *       owner   open -> take part, evaluate, hand over -> ... -> close (waits for helpers)
 *       helper          join -> take part, evaluate, hand over -> ... -> leave
 *
 * Uses      [51-query], [53-topk], [56-engine].
 * Start at  gpuir__engine_part, gpuir__share_open, gpuir__share_join.
 * Tests     tests/unit/57_share.c
 * ======*/

/* A search that several engines evaluate: see the head of this part. */
struct gpuir__share {
  /* read and written atomically */
  gpuir__atomic64 at; /* leaf << 32 | its first part that nobody has taken */
  gpuir__atomic64 threshold; /* the greatest threshold_key that an engine had */
  int open; /* 1 while engines may join */
  int exhausted; /* 1 once every part is taken: who joins finds nothing */
  uint64_t backlog_limit; /* helpers stay while the backlog, in ns, does not exceed it; 0: the search is not heavy */
  /* of the owner alone */
  const gpuir__atomic64 *backlog; /* what the tasks that wait are estimated to cost, in ns */
  uint64_t long_after; /* when the owner calls `ran_long`, as gpuir__now tells time; 0: never */
  /* set while it opens */
  const gpuir_query *query;
  size_t k;
  int mode; /* GPUIR_AND or GPUIR_OR */
  uint64_t deadline;
  gpuir__limits limits; /* of the owner's search, as the deadline */
  /* under the lock */
  unsigned helpers, most; /* engines that help now; at most */
  int status; /* what stopped a helper within a part; 0: nothing */
  uint64_t helped; /* ns that helpers have worked */
  gpuir__topk found; /* by all engines, but for what each has found in the part that it evaluates */
  pthread_mutex_t lock;
  pthread_cond_t no_helpers; /* signalled when the last helper leaves */
  void (*opened)(gpuir__share *share); /* tells those who could help */
  void (*ran_long)(gpuir__share *share); /* tells that it runs for long */
  void *user;
};

/* Moves an engine's hits to those of the whole search. The caller holds the lock. */
static void gpuir__share_give(gpuir__engine *e, gpuir__share *s) {
  size_t i;
  for (i = 0; i < e->top.n; i++) gpuir__topk_push(&s->found, e->top.heap[i]);
  e->top.n = 0;
}

/* Moves the engine's hits to those of the whole search, raises the common threshold to that of all engines' best k,
 * and takes it over. An engine that prunes by its own hits alone would score many documents in vain. */
static void gpuir__share_threshold(gpuir__engine *e, gpuir__share *s) {
  uint64_t own = e->top.threshold_key, greatest = gpuir__peek(&s->threshold);
  if (e->top.n) {
    gpuir__lock(&s->lock);
    gpuir__share_give(e, s);
    own = gpuir__max64(own, s->found.threshold_key);
    gpuir__unlock(&s->lock);
  }
  while (own > greatest &&
      !__atomic_compare_exchange_n(&s->threshold, &greatest, own, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
  e->top.threshold_key = gpuir__max64(own, greatest);
}

/* Takes up to `most` parts of the n that the leaf has: those from the one returned to e->turn.taken. Returns n if there
 * is none for this engine. It takes few at first, when what others find raises the threshold most. An engine that only
 * helps takes no more once its thread has other tasks; the owner calls for help when its search has taken long. */
static uint32_t gpuir__share_take(gpuir__engine *e, uint32_t n, uint32_t most) {
  gpuir__share *s = e->share;
  uint64_t at = __atomic_load_n(&s->at, __ATOMIC_ACQUIRE), end;
  uint32_t first, size = gpuir__min32(n / 32 + 1, most);
  if (!e->helps && s->long_after && gpuir__now() >= s->long_after) {
    s->long_after = 0;
    s->ran_long(s);
  }
  if (e->helps &&
      (e->called_away || gpuir__peek(s->backlog) > gpuir__peek(&s->backlog_limit) || !gpuir__peek(&s->open))) {
    e->called_away = 1;
    return n;
  }
  gpuir__share_threshold(e, s);
  do { /* an engine turns to a leaf only when all of those before are taken */
    if (at >> 32 > e->turn.leaf_number) return n;
    first = at >> 32 < e->turn.leaf_number ? 0 : (uint32_t)at;
    if (first >= n) return n;
    end = gpuir__min64((uint64_t)first + gpuir__min32(size, first / 4 + 1), n);
  } while (!__atomic_compare_exchange_n(&s->at, &at, (uint64_t)e->turn.leaf_number << 32 | end, 0, __ATOMIC_ACQ_REL,
      __ATOMIC_ACQUIRE));
  e->turn.taken = (uint32_t)end;
  return first;
}

/* Returns the first part of the leaf's n, from `next` on, that this engine is to evaluate: alone it is the next one; n
 * if there is none. Parts are taken up to `most` at a time. */
static inline uint32_t gpuir__engine_part(gpuir__engine *e, uint32_t next, uint32_t n, uint32_t most) {
  if (GPUIR__LIKELY(!e->share)) return next;
  if (next >= e->turn.taken) return gpuir__share_take(e, n, most);
  gpuir__share_threshold(e, e->share);
  return next;
}

/* Blocks, and tiles, that are taken at a time at most: they take some tenths of a millisecond. */
#define GPUIR__TAKEN_BLOCKS 64u
#define GPUIR__TAKEN_TILES 8u

/* Lets other engines help with the search that begins. If there is no memory for their hits, nobody is asked, and
 * the owner searches alone. */
GPUIR__COLD static void gpuir__share_open(gpuir__engine *e, const gpuir_query *q, int mode, size_t k) {
  gpuir__share *s = e->share;
  gpuir__lock(&s->lock);
  s->query = q;
  s->mode = mode;
  s->k = k;
  s->deadline = e->deadline;
  s->limits = e->limits;
  s->status = GPUIR_OK;
  s->at = s->threshold = 0;
  gpuir__poke(&s->exhausted, 0);
  __atomic_store_n(&s->open, !gpuir__topk_start(&e->a, &s->found, k, 0, NULL), __ATOMIC_SEQ_CST);
  gpuir__unlock(&s->lock);
  if (gpuir__peek(&s->open)) s->opened(s);
  else e->share = NULL;
}

/* Waits for those who help, who stop within a part if the search has failed, and adds what they found. */
GPUIR__COLD static int gpuir__share_close(gpuir__engine *e, int status) {
  gpuir__share *s = e->share;
  size_t i;
  gpuir__lock(&s->lock);
  gpuir__poke(&s->open, 0);
  while (s->helpers) (void)pthread_cond_wait(&s->no_helpers, &s->lock);
  gpuir__unlock(&s->lock);
  if (!status && s->status)
    status = gpuir__engine_fail(e, s->status,
        s->status == GPUIR_E_DEADLINE ? "the search exceeded its time limit" : "the search was cancelled");
  e->top.threshold_key = e->top.n == e->top.k ? e->top.heap[0] : 0; /* forgets others' key: that hit follows */
  for (i = 0; i < s->found.n; i++) gpuir__topk_push(&e->top, s->found.heap[i]);
  s->found.n = 0;
  return status;
}

/* Joins a search that is shared. 0 if it is over, or enough engines help. */
static int gpuir__share_join(gpuir__engine *e, gpuir__share *s) {
  int joined;
  gpuir__lock(&s->lock);
  joined = gpuir__peek(&s->open) && s->helpers < s->most;
  s->helpers += joined != 0;
  if (joined) {
    e->deadline = s->deadline;
    e->limits = s->limits;
  }
  gpuir__unlock(&s->lock);
  e->helps = joined;
  e->share = joined ? s : NULL;
  e->called_away = 0;
  gpuir__engine_unsieve(e);
  e->top.n = 0;
  e->worked = 0;
  e->stopped = GPUIR_OK;
  return joined;
}

/* Leaves a search that is shared, and hands over what was found. */
static void gpuir__share_leave(gpuir__engine *e, gpuir__share *s, uint64_t since) {
  gpuir__lock(&s->lock);
  s->helped += gpuir__now() - since;
  gpuir__share_give(e, s);
  if (e->stopped && !s->status) s->status = e->stopped;
  if (!e->called_away) gpuir__poke(&s->exhausted, 1);
  if (!--s->helpers) (void)pthread_cond_signal(&s->no_helpers);
  gpuir__unlock(&s->lock);
  e->share = NULL;
  e->helps = 0;
}
