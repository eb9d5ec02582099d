
/* ========
 * [44-inversion]  builder: from documents to sorted runs of postings
 *
 * The adding thread hands documents to the writer and copies their text into packets. Workers
 * analyse packets, each into a table of its own: a hash table of terms whose postings grow as
 * chains of slices in an arena (as in Lucene; the growth of slices after Büttcher and Clarke).
 * A full table is sorted and spilled as a run. At the end [45-merge] merges the runs.
 *
 * Uses      [18-codecs], [28-encoder], [30-analysis], [33-analyzers], [39-writer].
 * Start at  gpuir__worker_packet, gpuir__worker_count, gpuir__worker_spill, gpuir__run_next,
 *           gpuir__item_merge.
 * Tests     tests/unit/44_inversion.c
 * ======*/

/* ---- memory: what is held, and temporary files in place of it */

/* Numbers of temporary files, PATH.tmp.N: of runs and of long lists by worker, and of units. */
#define GPUIR__MOST_WORKERS 256u
#define GPUIR__TMP_RUNS (GPUIR__TMP_SOURCES + 1)
#define GPUIR__TMP_LISTS (GPUIR__TMP_RUNS + GPUIR__MOST_WORKERS)
#define GPUIR__TMP_UNITS (GPUIR__TMP_LISTS + GPUIR__MOST_WORKERS)

/* An allocator that counts what the build holds. */
typedef struct gpuir__counter {
  gpuir_allocator base;
  gpuir__atomic64 now, peak;
} gpuir__counter;

static void *gpuir__counter_resize(void *user, void *ptr, size_t old_size, size_t new_size) {
  gpuir__counter *c = (gpuir__counter *)user;
  void *p;
  if (new_size > old_size) {
    uint64_t now = __atomic_add_fetch(&c->now, new_size - old_size, __ATOMIC_RELAXED);
    uint64_t peak = gpuir__peek(&c->peak);
    while (now > peak && !__atomic_compare_exchange_n(&c->peak, &peak, now, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
  }
  p = c->base.resize(c->base.user, ptr, old_size, new_size);
  if (new_size > old_size) {
    if (!p) (void)__atomic_sub_fetch(&c->now, new_size - old_size, __ATOMIC_RELAXED);
  } else if (p || !new_size) {
    (void)__atomic_sub_fetch(&c->now, old_size - new_size, __ATOMIC_RELAXED);
  }
  return p;
}

/* Bounds the memory that several threads hold: one enters while all within hold `most` bytes together at most. A
 * single holder may hold more. */
typedef struct gpuir__gate {
  pthread_mutex_t mutex;
  pthread_cond_t left;
  uint64_t used, most;
  int made;
} gpuir__gate;

static int gpuir__gate_init(gpuir__gate *g, uint64_t most, gpuir_error *err) {
  g->used = 0;
  g->most = most;
  if (!pthread_mutex_init(&g->mutex, NULL)) {
    g->made = !pthread_cond_init(&g->left, NULL);
    if (g->made) return GPUIR_OK;
    (void)pthread_mutex_destroy(&g->mutex);
  }
  return gpuir__fail(err, GPUIR_E_NOMEM, 0, "cannot create a lock");
}

static void gpuir__gate_free(gpuir__gate *g) {
  if (!g->made) return;
  (void)pthread_cond_destroy(&g->left);
  (void)pthread_mutex_destroy(&g->mutex);
  g->made = 0;
}

static void gpuir__gate_enter(gpuir__gate *g, uint64_t bytes) {
  gpuir__lock(&g->mutex);
  while (g->used && g->used + bytes > g->most) (void)pthread_cond_wait(&g->left, &g->mutex);
  g->used += bytes;
  gpuir__unlock(&g->mutex);
}

static void gpuir__gate_leave(gpuir__gate *g, uint64_t bytes) {
  gpuir__lock(&g->mutex);
  g->used -= bytes;
  (void)pthread_cond_broadcast(&g->left);
  gpuir__unlock(&g->mutex);
}

/* ---- a queue of numbered tasks between the adding thread and the workers */

/* Task s lives in slot s % size of the owner's ring. The adding thread pushes tasks and waits for
 * them in order; workers take them in order and finish them in any. */
typedef struct gpuir__queue {
  pthread_mutex_t mutex;
  pthread_cond_t work, ready;
  uint64_t pushed, taken;
  unsigned size;
  uint8_t *done;
  int closed; /* no more tasks will come */
  int aborted; /* leave the tasks that are not yet taken */
} gpuir__queue;

static int gpuir__queue_init(const gpuir_allocator *a, gpuir__queue *q, unsigned size, gpuir_error *err) {
  int status;
  q->size = size;
  q->done = (uint8_t *)gpuir__alloc_zero(a, size);
  if (!q->done) return gpuir__fail_nomem(err);
  status = pthread_mutex_init(&q->mutex, NULL);
  if (!status) {
    status = pthread_cond_init(&q->work, NULL);
    if (!status) {
      status = pthread_cond_init(&q->ready, NULL);
      if (!status) return GPUIR_OK;
      (void)pthread_cond_destroy(&q->work);
    }
    (void)pthread_mutex_destroy(&q->mutex);
  }
  gpuir__free(a, q->done, size);
  q->done = NULL;
  return gpuir__fail(err, GPUIR_E_NOMEM, 0, "cannot create a lock");
}

static void gpuir__queue_free(const gpuir_allocator *a, gpuir__queue *q) {
  if (!q->done) return;
  (void)pthread_cond_destroy(&q->ready);
  (void)pthread_cond_destroy(&q->work);
  (void)pthread_mutex_destroy(&q->mutex);
  gpuir__free(a, q->done, q->size);
  q->done = NULL;
}

/* Empties the queue for another kind of task; no thread may run. */
static void gpuir__queue_reset(gpuir__queue *q) {
  q->pushed = q->taken = 0;
  q->closed = q->aborted = 0;
}

static void gpuir__queue_push(gpuir__queue *q) {
  gpuir__lock(&q->mutex);
  q->done[q->pushed % q->size] = 0;
  q->pushed++;
  (void)pthread_cond_signal(&q->work);
  gpuir__unlock(&q->mutex);
}

/* Counts a task that the adding thread did itself. No thread may run; those that are started later do not take it. */
static void gpuir__queue_skip(gpuir__queue *q) {
  q->pushed++;
  q->taken++;
}

/* Waits for the next task and returns its slot, or -1 when there will be none. */
static int gpuir__queue_take(gpuir__queue *q) {
  int slot = -1;
  gpuir__lock(&q->mutex);
  while (q->taken == q->pushed && !q->closed && !q->aborted) (void)pthread_cond_wait(&q->work, &q->mutex);
  if (!q->aborted && q->taken < q->pushed) slot = (int)(q->taken++ % q->size);
  gpuir__unlock(&q->mutex);
  return slot;
}

static void gpuir__queue_done(gpuir__queue *q, int slot) {
  gpuir__lock(&q->mutex);
  q->done[slot] = 1;
  (void)pthread_cond_signal(&q->ready);
  gpuir__unlock(&q->mutex);
}

static void gpuir__queue_wait(gpuir__queue *q, unsigned slot) {
  gpuir__lock(&q->mutex);
  while (!q->done[slot]) (void)pthread_cond_wait(&q->ready, &q->mutex);
  gpuir__unlock(&q->mutex);
}

static void gpuir__queue_close(gpuir__queue *q, int abort) {
  gpuir__lock(&q->mutex);
  q->closed = 1;
  q->aborted |= abort;
  (void)pthread_cond_broadcast(&q->work);
  gpuir__unlock(&q->mutex);
}

/* ---- a worker and its table of terms */

/* A term in the arena. The last document's posting is held back, as its tf may still grow; those
 * before it are in the slices, each as (gap << 1 | tf == 1) and, if that bit is 0, tf, in variable bytes. With
 * positions nothing is held back: an occurrence in a further document is (position << 1 | 1) and the gap, one in the
 * same document (position less the one before, less one) << 1. */
typedef struct gpuir__term {
  uint32_t doc, gap;
  uint32_t tf; /* with positions the last position, plus 1 */
  uint32_t df; /* postings in the slices */
  uint32_t head, pos, end; /* first slice; where the next byte goes; where the current slice's bytes end */
  uint8_t level; /* of the next slice */
  uint8_t len;
  uint8_t text[2]; /* len bytes, and zeros up to 8 */
} gpuir__term;

#define GPUIR__TERM_HEAD ((uint32_t)offsetof(gpuir__term, text))
#define GPUIR__SLICE_LEVELS 12u
/* Bytes of postings in a slice; 4 more link to the next one. */
static inline uint32_t gpuir__slice_bytes(uint32_t level) {
  static const uint16_t bytes[GPUIR__SLICE_LEVELS] = {8, 12, 20, 36, 60, 100, 164, 268, 436, 708, 1148, 1852};
  return bytes[level];
}

/* What one token needs of the arena at most: a term of 255 bytes, or two slices. */
#define GPUIR__TOKEN_ROOM 8192u
#define GPUIR__ARENA_MAX 0xffff0000u
#define GPUIR__POSTING_MAX 10u /* bytes: 33 bits and 32 bits in sevens, of an occurrence as well */

/* A run's place in its worker's spool. */
typedef struct gpuir__extent {
  uint64_t start, end;
} gpuir__extent;

/* A token on its way into the table. Looking one up costs three cache misses in a large table, so
 * tokens wait in a ring while what they need is fetched. */
typedef struct gpuir__token {
  uint64_t ends[2]; /* its first 8 bytes, zeros behind the end, and its last 8, if it has so many */
  uint64_t hash;
  uint32_t doc, tf;
  uint32_t position, len;
} gpuir__token;

#define GPUIR__RING 16u

/* The terms of the documents since the last spill. */
typedef struct gpuir__table {
  uint64_t *slots; /* term << 32 | low half of the hash, 0: empty; at most half are taken */
  size_t nslots, nterms;
  uint8_t *arena;
  uint64_t used, cap; /* bytes of the arena */
  uint64_t share; /* bytes of arena and slots together, at most */
  uint64_t seed; /* of the hash */
} gpuir__table;

/* What a worker needs when it encodes lists. */
typedef struct gpuir__encoding {
  gpuir__encoder encoder;
  int made; /* the encoder is */
  gpuir__area raw; /* the docIDs and the frequencies of one list */
  void *heads; /* of gpuir__chain, one a worker */
} gpuir__encoding;

typedef struct gpuir__worker {
  gpuir_builder *builder;
  const gpuir_allocator *a;
  const char *tmp; /* names of temporary files begin with it */
  unsigned number;
  pthread_t thread;
  int status; /* the first failure; err says more when its code is not 0 */
  gpuir_error err;
  gpuir__analyzer *analyzer;
  int positions; /* are kept */
  uint32_t doc;
  uint64_t length, dropped; /* tokens of this document that count; tokens of all documents that were left out */
  unsigned
      shared; /* tokens at the last position, that of the last one that counted; those before it are not looked at */
  uint64_t lost; /* documents that had no others */
  gpuir__token ring[GPUIR__RING];
  uint8_t ring_text[GPUIR__RING][GPUIR_MAX_TERM + 1]; /* of tokens over 16 bytes */
  unsigned ring_in, ring_out;
  gpuir__table table;
  gpuir__spool spool;
  size_t spool_cap;
  gpuir__buf runs; /* gpuir__extent */
  uint64_t postings;
  gpuir__encoding encoding;
} gpuir__worker;

static inline gpuir__term *gpuir__worker_term(const gpuir__worker *w, uint64_t ref) {
  return (gpuir__term *)(void *)(w->table.arena + ref);
}

static inline uint8_t *gpuir__term_text(gpuir__term *t) { return (uint8_t *)t + GPUIR__TERM_HEAD; }

static inline uint8_t *gpuir__put_posting(uint8_t *p, uint32_t gap, uint32_t tf) {
  p = gpuir__vbyte_put(p, (uint64_t)gap << 1 | (tf == 1));
  return tf == 1 ? p : gpuir__vbyte_put(p, tf);
}

/* Appends n <= GPUIR__POSTING_MAX bytes to a term's slices, byte by byte, with a further slice where one ends. */
static void gpuir__term_put(gpuir__worker *w, gpuir__term *t, const uint8_t *bytes, size_t n) {
  size_t i;
  for (i = 0; i < n; i++) {
    if (t->pos == t->end) {
      uint32_t to = (uint32_t)w->table.used, room = gpuir__slice_bytes(t->level);
      w->table.used += room + 4;
      if (t->head) gpuir__store32(w->table.arena + t->end, to);
      else t->head = to;
      t->pos = to;
      t->end = to + room;
      if (t->level + 1u < GPUIR__SLICE_LEVELS) t->level++;
    }
    w->table.arena[t->pos++] = bytes[i];
  }
}

/* Moves the posting that a term holds back into its slices. */
static inline void gpuir__term_flush(gpuir__worker *w, gpuir__term *t) {
  t->df++;
  if (GPUIR__LIKELY(t->end - t->pos >= GPUIR__POSTING_MAX)) {
    t->pos = (uint32_t)(gpuir__put_posting(w->table.arena + t->pos, t->gap, t->tf) - w->table.arena);
  } else {
    uint8_t bytes[GPUIR__POSTING_MAX];
    gpuir__term_put(w, t, bytes, (size_t)(gpuir__put_posting(bytes, t->gap, t->tf) - bytes));
  }
}

static inline uint8_t *gpuir__put_occurrence(uint8_t *p, int further, uint32_t position, uint32_t gap) {
  p = gpuir__vbyte_put(p, (uint64_t)position << 1 | (further != 0));
  return further ? gpuir__vbyte_put(p, gap) : p;
}

/* Appends an occurrence to a term. It stands out of line, so that counting without positions pays nothing for it. */
GPUIR__NOINLINE void gpuir__term_occurs(gpuir__worker *w, gpuir__term *t, const gpuir__token *k) {
  const int further = !t->df || t->doc != k->doc; /* a document of its own */
  const uint32_t gap = t->df ? k->doc - t->doc : k->doc;
  const uint32_t value = further ? k->position : k->position - t->tf;
  t->df += (uint32_t)further;
  t->doc = k->doc;
  t->tf = k->position + 1;
  if (GPUIR__LIKELY(t->end - t->pos >= GPUIR__POSTING_MAX)) {
    t->pos = (uint32_t)(gpuir__put_occurrence(w->table.arena + t->pos, further, value, gap) - w->table.arena);
  } else {
    uint8_t bytes[GPUIR__POSTING_MAX];
    gpuir__term_put(w, t, bytes, (size_t)(gpuir__put_occurrence(bytes, further, value, gap) - bytes));
  }
}

static int gpuir__term_compare(const gpuir__worker *w, uint64_t x, uint64_t y) {
  gpuir__term *a = gpuir__worker_term(w, x), *b = gpuir__worker_term(w, y);
  int c = memcmp(gpuir__term_text(a), gpuir__term_text(b), a->len < b->len ? a->len : b->len);
  return c ? c : (int)a->len - (int)b->len;
}

/* Says which of two pairs comes first: (first 8 bytes of the term as a big-endian number, term). */
static inline int gpuir__pair_less(const gpuir__worker *w, const uint64_t *x, const uint64_t *y) {
  return x[0] != y[0] ? x[0] < y[0] : gpuir__term_compare(w, x[1], y[1]) < 0;
}

static inline void gpuir__pair_swap(uint64_t *x, uint64_t *y) {
  uint64_t prefix = x[0], term = x[1];
  x[0] = y[0];
  x[1] = y[1];
  y[0] = prefix;
  y[1] = term;
}

static void gpuir__pairs_sift(const gpuir__worker *w, uint64_t *p, size_t i, size_t n) {
  for (;;) {
    size_t child = 2 * i + 1;
    if (child >= n) return;
    if (child + 1 < n && gpuir__pair_less(w, p + 2 * child, p + 2 * child + 2)) child++;
    if (!gpuir__pair_less(w, p + 2 * i, p + 2 * child)) return;
    gpuir__pair_swap(p + 2 * i, p + 2 * child);
    i = child;
  }
}

/* Sorts n pairs in place by introsort: quicksort, and heapsort for input that makes it quadratic. */
static void gpuir__pairs_sort(const gpuir__worker *w, uint64_t *p, size_t n, unsigned depth) {
  size_t i, j;
  while (n > 16) {
    uint64_t pivot[2], *mid = p + 2 * (n / 2), *last = p + 2 * (n - 1);
    if (depth-- == 0) {
      for (i = n / 2; i-- > 0;) gpuir__pairs_sift(w, p, i, n);
      for (i = n; --i > 0;) {
        gpuir__pair_swap(p, p + 2 * i);
        gpuir__pairs_sift(w, p, 0, i);
      }
      return;
    }
    if (gpuir__pair_less(w, mid, p)) gpuir__pair_swap(mid, p);
    if (gpuir__pair_less(w, last, mid)) {
      gpuir__pair_swap(last, mid);
      if (gpuir__pair_less(w, mid, p)) gpuir__pair_swap(mid, p);
    }
    pivot[0] = mid[0];
    pivot[1] = mid[1];
    i = 0;
    j = n - 1;
    for (;;) { /* the ends stop both scans */
      while (gpuir__pair_less(w, p + 2 * i, pivot)) i++;
      while (gpuir__pair_less(w, pivot, p + 2 * j)) j--;
      if (i >= j) break;
      gpuir__pair_swap(p + 2 * i++, p + 2 * j--);
    }
    if (i == j) j++; /* both stopped at the pivot's place: it is in order */
    else j = i;
    /* [0, i) <= pivot <= [j, n); recurse into the smaller side */
    if (i < n - j) {
      gpuir__pairs_sort(w, p, i, depth);
      p += 2 * j;
      n -= j;
    } else {
      gpuir__pairs_sort(w, p + 2 * j, n - j, depth);
      n = i;
    }
  }
  for (i = 1; i < n; i++) {
    uint64_t pair[2];
    pair[0] = p[2 * i];
    pair[1] = p[2 * i + 1];
    for (j = i; j > 0 && gpuir__pair_less(w, pair, p + 2 * (j - 1)); j--) {
      p[2 * j] = p[2 * j - 2];
      p[2 * j + 1] = p[2 * j - 1];
    }
    p[2 * j] = pair[0];
    p[2 * j + 1] = pair[1];
  }
}

/* Returns the first 8 bytes, zeros behind the end, as a number that compares as they do. */
static inline uint64_t gpuir__prefix_of(const uint8_t *text, size_t len) {
  uint64_t v = 0;
  memcpy(&v, text, len < 8 ? len : 8);
  return __builtin_bswap64(v);
}

/* Writes one term of a run: bytes shared with the term before, further bytes, postings, bytes of postings. With
 * positions no posting is held back. */
static int gpuir__worker_spill_term(gpuir__worker *w, gpuir__term *t, gpuir__term *before) {
  uint8_t head[2 + GPUIR_MAX_TERM + 32], tail[GPUIR__POSTING_MAX], *p = head;
  uint8_t *text = gpuir__term_text(t);
  size_t tail_len = w->positions ? 0 : (size_t)(gpuir__put_posting(tail, t->gap, t->tf) - tail), shared = 0;
  uint64_t bytes = tail_len;
  uint32_t slice, level = 0, room;
  int status;
  if (before) {
    size_t most = before->len < t->len ? before->len : t->len;
    const uint8_t *other = gpuir__term_text(before);
    while (shared < most && text[shared] == other[shared]) shared++;
  }
  *p++ = (uint8_t)shared;
  *p++ = (uint8_t)(t->len - shared);
  memcpy(p, text + shared, t->len - shared);
  p += t->len - shared;
  for (slice = t->head; slice; slice = gpuir__load32(w->table.arena + slice + room)) {
    room = gpuir__slice_bytes(level);
    if (level + 1u < GPUIR__SLICE_LEVELS) level++;
    if (slice + room == t->end) {
      bytes += t->pos - slice;
      break;
    }
    bytes += room;
  }
  p = gpuir__vbyte_put(p, (uint64_t)t->df + !w->positions);
  p = gpuir__vbyte_put(p, bytes);
  status = gpuir__spool_put(&w->spool, head, (size_t)(p - head), &w->err);
  level = 0;
  for (slice = t->head; slice && !status; slice = gpuir__load32(w->table.arena + slice + room)) {
    room = gpuir__slice_bytes(level);
    if (level + 1u < GPUIR__SLICE_LEVELS) level++;
    if (slice + room == t->end) {
      status = gpuir__spool_put(&w->spool, w->table.arena + slice, t->pos - slice, &w->err);
      break;
    }
    status = gpuir__spool_put(&w->spool, w->table.arena + slice, room, &w->err);
  }
  w->postings += (uint64_t)t->df + !w->positions;
  return status ? status : gpuir__spool_put(&w->spool, tail, tail_len, &w->err);
}

/* Sorts the table, appends it to the spool as a run and empties it. */
static int gpuir__worker_spill(gpuir__worker *w) {
  gpuir__extent run;
  size_t i, n = 0;
  int status;
  if (!w->table.nterms) return GPUIR_OK;
  if (!w->spool.path) gpuir__spool_open(w->a, &w->spool, w->tmp, GPUIR__TMP_RUNS + w->number, w->spool_cap);
  /* The pairs take the slots' place: terms to the front, then spread from the last to the first. */
  for (i = 0; i < w->table.nslots; i++)
    if (w->table.slots[i]) w->table.slots[n++] = w->table.slots[i] >> 32;
  for (i = n; i-- > 0;) {
    uint64_t ref = w->table.slots[i];
    gpuir__term *t = gpuir__worker_term(w, ref);
    w->table.slots[2 * i] = __builtin_bswap64(gpuir__load64(gpuir__term_text(t))); /* padded with zeros */
    w->table.slots[2 * i + 1] = ref;
  }
  gpuir__pairs_sort(w, w->table.slots, n, 2 * gpuir__width64(n));
  run.start = w->spool.len;
  for (i = 0; i < n; i++) {
    gpuir__term *before = i ? gpuir__worker_term(w, w->table.slots[2 * i - 1]) : NULL;
    status = gpuir__worker_spill_term(w, gpuir__worker_term(w, w->table.slots[2 * i + 1]), before);
    if (status) return status;
  }
  run.end = w->spool.len;
  memset(w->table.slots, 0, w->table.nslots * 8);
  w->table.nterms = 0;
  w->table.used = 8;
  return gpuir__buf_put(w->a, &w->runs, &run, sizeof run);
}

/* Makes room in the arena for one token: by growing it, or by a spill. Keeps a table's doubling in reserve. */
static int gpuir__worker_make_room(gpuir__worker *w) {
  uint64_t most = w->table.share > 24 * w->table.nslots ? w->table.share - 24 * w->table.nslots : 0,
           want = w->table.cap * 2;
  if (!w->table.slots) {
    w->table.nslots = 4096;
    w->table.slots = (uint64_t *)gpuir__alloc_zero(w->a, w->table.nslots * 8);
    if (!w->table.slots) return GPUIR_E_NOMEM;
  }
  if (!w->table.arena) {
    w->table.arena = (uint8_t *)gpuir__alloc(w->a, 16 * GPUIR__TOKEN_ROOM);
    if (!w->table.arena) return GPUIR_E_NOMEM;
    w->table.cap = 16 * GPUIR__TOKEN_ROOM;
    w->table.used = 8; /* 0 means nothing */
    return GPUIR_OK;
  }
  if (most > GPUIR__ARENA_MAX) most = GPUIR__ARENA_MAX;
  if (want > most) want = most;
  if (want >= w->table.used + GPUIR__TOKEN_ROOM) {
    void *p = w->a->resize(w->a->user, w->table.arena, (size_t)w->table.cap, (size_t)want);
    if (!p) return GPUIR_E_NOMEM;
    w->table.arena = (uint8_t *)p;
    w->table.cap = want;
    return GPUIR_OK;
  }
  return gpuir__worker_spill(w);
}

/* Doubles the slots, or spills where the share does not allow it. */
static int gpuir__worker_rehash(gpuir__worker *w) {
  size_t n = w->table.nslots * 2, i;
  uint64_t *slots, reserve = 24 * (uint64_t)n; /* for these and their next doubling */
  uint64_t need = w->table.used + w->table.used / 8 + GPUIR__TOKEN_ROOM;
  if (reserve + need > w->table.share) return gpuir__worker_spill(w);
  if (reserve + w->table.cap > w->table.share) { /* the arena took more than it needs */
    void *p = w->a->resize(w->a->user, w->table.arena, (size_t)w->table.cap, (size_t)(w->table.share - reserve));
    if (!p) return GPUIR_E_NOMEM;
    w->table.arena = (uint8_t *)p;
    w->table.cap = w->table.share - reserve;
  }
  slots = (uint64_t *)gpuir__alloc_zero(w->a, n * 8);
  if (!slots) return GPUIR_E_NOMEM;
  for (i = 0; i < w->table.nslots; i++) {
    size_t at = (size_t)(w->table.slots[i] & (n - 1));
    if (!w->table.slots[i]) continue;
    while (slots[at]) at = (at + 1) & (n - 1);
    slots[at] = w->table.slots[i];
  }
  gpuir__free(w->a, w->table.slots, w->table.nslots * 8);
  w->table.slots = slots;
  w->table.nslots = n;
  return GPUIR_OK;
}

static void gpuir__worker_free_table(gpuir__worker *w) {
  gpuir__free(w->a, w->table.slots, w->table.nslots * 8);
  gpuir__free(w->a, w->table.arena, (size_t)w->table.cap);
  w->table.slots = NULL;
  w->table.arena = NULL;
  w->table.nslots = w->table.nterms = 0;
  w->table.used = w->table.cap = 0;
}

static int gpuir__worker_fail(gpuir__worker *w, int status) {
  if (!w->status) w->status = status;
  return w->status;
}

/* Says whether a token is one of a term. */
static inline int gpuir__token_of(const gpuir__token *k, const uint8_t *token, gpuir__term *t) {
  const uint8_t *text = gpuir__term_text(t);
  if (t->len != k->len || gpuir__load64(text) != k->ends[0]) return 0;
  return k->len <= 8 ||
      (gpuir__load64(text + k->len - 8) == k->ends[1] && (k->len <= 16 || !memcmp(text + 8, token + 8, k->len - 16)));
}

/* Takes in a token whose term is new. */
GPUIR__NOINLINE int gpuir__worker_insert(gpuir__worker *w, const gpuir__token *k, const uint8_t *token) {
  const size_t len = k->len;
  gpuir__term *t;
  uint8_t *text;
  size_t at;
  if (GPUIR__UNLIKELY(2 * (w->table.nterms + 1) > w->table.nslots)) {
    int status = gpuir__worker_rehash(w);
    if (status) return gpuir__worker_fail(w, status);
  }
  at = (size_t)(k->hash & (w->table.nslots - 1));
  while (w->table.slots[at]) at = (at + 1) & (w->table.nslots - 1);
  w->table.nterms++;
  w->table.slots[at] = w->table.used << 32 | (uint32_t)k->hash;
  t = gpuir__worker_term(w, w->table.used);
  w->table.used += (GPUIR__TERM_HEAD + (len < 8 ? 8 : len) + 3) & ~(uint64_t)3;
  t->doc = t->gap = k->doc;
  t->tf = k->tf;
  t->df = t->head = t->pos = t->end = 0;
  t->level = 0;
  t->len = (uint8_t)len;
  text = gpuir__term_text(t);
  gpuir__store64(text, k->ends[0]);
  if (len > 16) memcpy(text + 8, token + 8, len - 8);
  else if (len > 8) gpuir__store64(text + len - 8, k->ends[1]);
  if (w->positions) gpuir__term_occurs(w, t, k);
  return GPUIR_OK;
}

/* Counts a token of a term that has been seen before, without positions. */
static inline void gpuir__term_again(gpuir__worker *w, gpuir__term *t, const gpuir__token *k) {
  if (t->doc == k->doc) {
    t->tf += k->tf;
    return;
  }
  gpuir__term_flush(w, t);
  t->gap = k->doc - t->doc;
  t->doc = k->doc;
  t->tf = k->tf;
}

/* Counts the oldest token of the ring. Inlined, by which whole files are indexed in 0.98 of the time: measured. */
GPUIR__INLINE int gpuir__worker_count(gpuir__worker *w) {
  const unsigned i = w->ring_out++ % GPUIR__RING;
  const gpuir__token *k = &w->ring[i];
  const uint64_t *slots;
  uint64_t slot;
  size_t at, mask;
  if (GPUIR__UNLIKELY(w->table.used + GPUIR__TOKEN_ROOM > w->table.cap)) {
    int status = gpuir__worker_make_room(w);
    if (status) return gpuir__worker_fail(w, status);
  }
  slots = w->table.slots;
  mask = w->table.nslots - 1;
  for (at = (size_t)k->hash & mask; (slot = slots[at]) != 0; at = (at + 1) & mask) {
    gpuir__term *t = gpuir__worker_term(w, slot >> 32);
    if ((uint32_t)slot != (uint32_t)k->hash || !gpuir__token_of(k, w->ring_text[i], t)) continue;
    if (w->positions) gpuir__term_occurs(w, t, k);
    else gpuir__term_again(w, t, k);
    return GPUIR_OK;
  }
  return gpuir__worker_insert(w, k, w->ring_text[i]);
}

/* Counts all tokens of the ring. */
static int gpuir__worker_drain(gpuir__worker *w) {
  while (w->ring_out != w->ring_in && !w->status) (void)gpuir__worker_count(w);
  return w->status;
}

/* Fills in the ends of a token and its hash. The ends and the length are all of a token of up to 16 bytes, and hashing
 * two numbers takes no branch on the length. */
GPUIR__FLAT static void gpuir__token_hash(gpuir__token *k, const char *token, size_t len, uint64_t seed) {
  if (len >= 8) {
    k->ends[0] = gpuir__load64(token);
    k->ends[1] = gpuir__load64(token + len - 8);
  } else if (len >= 4) {
    k->ends[0] = gpuir__load32(token) | (uint64_t)gpuir__load32(token + len - 4) << (8 * (len - 4));
    k->ends[1] = 0;
  } else {
    k->ends[0] = (uint8_t)token[0] | (uint64_t)(uint8_t)token[len >> 1] << (8 * (len >> 1)) |
        (uint64_t)(uint8_t)token[len - 1] << (8 * (len - 1));
    k->ends[1] = 0;
  }
  k->hash = GPUIR__LIKELY(len <= 16) ? XXH3_64bits_withSeed(k->ends, sizeof k->ends, seed + len)
                                     : gpuir__hash(token, len, seed);
}

/* Lets the token that was put into the ring, whose hash is known, wait there for its turn. */
GPUIR__INLINE int gpuir__worker_wait(gpuir__worker *w, gpuir__token *k, const char *token, size_t len, uint32_t tf) {
  uint64_t slot;
  if (GPUIR__UNLIKELY(len > 16)) memcpy(w->ring_text[w->ring_in % GPUIR__RING], token, len);
  k->doc = w->doc;
  k->tf = tf;
  k->len = (uint32_t)len;
  __builtin_prefetch(&w->table.slots[k->hash & (w->table.nslots - 1)]);
  w->ring_in++;
  slot = w->table.slots[w->ring[(w->ring_in - GPUIR__RING / 2) % GPUIR__RING].hash & (w->table.nslots - 1)];
  __builtin_prefetch(w->table.arena + (slot >> 32));
  return w->ring_in - w->ring_out == GPUIR__RING ? gpuir__worker_count(w) : GPUIR_OK;
}

/* Says whether the token k, whose term is token[0..k->len), stands at the last position already. The ring still holds
 * the tokens of a position when they were counted: it is larger than GPUIR_MAX_PLACE. */
static int gpuir__worker_repeats(const gpuir__worker *w, const gpuir__token *k, const char *token) {
  unsigned i;
  for (i = 1; i <= w->shared; i++) {
    const unsigned at = (w->ring_in - i) % GPUIR__RING;
    const gpuir__token *x = &w->ring[at];
    if (x->hash == k->hash && x->len == k->len && x->ends[0] == k->ends[0] && x->ends[1] == k->ends[1] &&
        (k->len <= 16 || !memcmp(w->ring_text[at], token, k->len)))
      return 1;
  }
  return 0;
}

/* Takes the token k, which stands at the position of the one before. Without this look for repeated terms a position
 * would not ascend, and a term would count twice where it stands once. */
GPUIR__NOINLINE int gpuir__worker_share(gpuir__worker *w, gpuir__token *k, const char *token, size_t len) {
  if (!w->length) return GPUIR_OK;
  k->len = (uint32_t)len;
  if (gpuir__worker_repeats(w, k, token)) return GPUIR_OK;
  if (w->shared == GPUIR_MAX_PLACE) {
    (void)gpuir__fail(&w->err, GPUIR_E_LIMIT, 0, "document %lu has more than %d terms at a position",
        (unsigned long)w->doc, GPUIR_MAX_PLACE);
    return gpuir__worker_fail(w, GPUIR_E_LIMIT);
  }
  w->shared++;
  k->position = (uint32_t)w->length - 1;
  return gpuir__worker_wait(w, k, token, len, 1);
}

/* Takes a token of the current document, which occurs tf times; 0: it stands where the one before does. The table must
 * exist. Tokens of both kinds come here, so that gpuir__token_hash has one caller and is inlined. */
static int gpuir__worker_token(gpuir__worker *w, const char *token, size_t len, uint32_t tf) {
  gpuir__token *k = &w->ring[w->ring_in % GPUIR__RING];
  if (GPUIR__UNLIKELY(len - 1 >= GPUIR_MAX_TERM)) return GPUIR_OK;
  if (GPUIR__UNLIKELY(w->status)) return w->status; /* a tokenizer that goes on after an error */
  k->position = (uint32_t)w->length;
  w->length += tf;
  if (GPUIR__UNLIKELY(w->length > UINT32_MAX)) return gpuir__worker_fail(w, GPUIR_E_LIMIT);
  gpuir__token_hash(k, token, len, w->table.seed);
  if (GPUIR__UNLIKELY(!tf)) return gpuir__worker_share(w, k, token, len);
  w->shared = 1;
  return gpuir__worker_wait(w, k, token, len, tf);
}

static int gpuir__worker_emit(void *sink, const char *token, size_t len, unsigned advance) {
  return gpuir__worker_token((gpuir__worker *)sink, token, len, advance != 0);
}

/* What a packet has of a document, one behind the other. */
typedef struct gpuir__packet_doc {
  uint64_t size; /* bytes of its text, GPUIR__COUNTED if they are counted terms */
  uint32_t also, defines; /* bytes: see gpuir_doc_desc */
} gpuir__packet_doc;

/* Documents on their way to a worker. */
typedef struct gpuir__packet {
  gpuir__buf text; /* of all documents, one behind the other */
  gpuir__buf sizes; /* gpuir__packet_doc */
  gpuir__buf lengths; /* a uint32_t a document, filled by the worker */
  const char *external; /* the caller's text in place of `text`, for one huge document */
  uint64_t docs, first;
} gpuir__packet;

#define GPUIR__COUNTED ((uint64_t)1 << 63) /* each term: length (1 byte), bytes, tf (4 bytes) */

/* ---- what is searched behind a text */

#define GPUIR__ALSO_WORDS 32u /* of what is searched behind a text, the last ones: a deep path must not outweigh it */

/* Where the words go that are searched behind a text. */
typedef struct gpuir__also {
  gpuir__worker *w;
  uint64_t words, left_out; /* so far; of them */
} gpuir__also;

static int gpuir__also_count(void *sink, const char *token, size_t len, unsigned advance) {
  (void)token, (void)len;
  ((gpuir__also *)sink)->words += advance;
  return GPUIR_OK;
}

static int gpuir__also_emit(void *sink, const char *token, size_t len, unsigned advance) {
  gpuir__also *a = (gpuir__also *)sink;
  a->words += advance;
  return a->words > a->left_out ? gpuir__worker_emit(a->w, token, len, advance) : GPUIR_OK;
}

/* Takes the gap behind a text, over which no phrase goes. */
static int gpuir__worker_gap(gpuir__worker *w) { return gpuir__worker_token(w, "\xffn", 2, 1); }

/* Takes the words that are searched behind a text. They make at least two bytes each, but for a byte of the last. */
static int gpuir__worker_also(gpuir__worker *w, const char *text, size_t len) {
  gpuir__also a;
  int status = gpuir__worker_gap(w);
  a.w = w;
  a.words = a.left_out = 0;
  if (!status && len > 2 * GPUIR__ALSO_WORDS) {
    status = gpuir__analyze(w->analyzer, text, len, gpuir__also_count, &a, NULL);
    a.left_out = a.words > GPUIR__ALSO_WORDS ? a.words - GPUIR__ALSO_WORDS : 0;
    a.words = 0;
  }
  return status ? status : gpuir__analyze(w->analyzer, text, len, gpuir__also_emit, &a, NULL);
}

/* The term of a name that is defined: FF d and the name's segments, parted by FF. */
typedef struct gpuir__defined {
  size_t len; /* 0: it would be too long */
  char term[GPUIR_MAX_TERM];
} gpuir__defined;

static void gpuir__defined_begin(gpuir__defined *d) {
  memcpy(d->term, "\xff\x64", 2);
  d->len = 2;
}

/* Takes a segment of the name: a gpuir_place_fn. */
static int gpuir__defined_take(void *sink, const char *token, size_t len, unsigned advance) {
  gpuir__defined *d = (gpuir__defined *)sink;
  if (!advance || !d->len) return GPUIR_OK;
  if (d->len + len + 1 > sizeof d->term) {
    d->len = 0;
    return GPUIR_OK;
  }
  if (d->len > 2) d->term[d->len++] = (char)0xff;
  memcpy(d->term + d->len, token, len);
  d->len += len;
  return GPUIR_OK;
}

/* Takes the names that a document defines, parted by white space: the term of each, at the last position, or at the
 * next one where that is full. */
static int gpuir__worker_defines(gpuir__worker *w, const char *text, size_t len) {
  gpuir__defined d;
  size_t i = 0, start;
  int status = w->length ? GPUIR_OK : gpuir__worker_gap(w);
  while (!status) {
    while (i < len && gpuir__is_space(text[i])) i++;
    if (i == len) break;
    for (start = i; i < len && !gpuir__is_space(text[i]); i++) {}
    gpuir__defined_begin(&d);
    status = gpuir__analyze(w->analyzer, text + start, i - start, gpuir__defined_take, &d, NULL);
    if (status || d.len <= 2) continue;
    status = gpuir__worker_token(w, d.term, d.len, w->shared == GPUIR_MAX_PLACE);
  }
  return status;
}

/* ---- inverting */

/* Takes counted terms. */
static int gpuir__worker_counted(gpuir__worker *w, const char *text, const char *end) {
  int status = GPUIR_OK;
  while (text < end && !status) {
    size_t len = (uint8_t)*text;
    status = gpuir__worker_token(w, text + 1, len, gpuir__load32(text + 1 + len));
    text += len + 5;
  }
  return status;
}

/* Inverts a document, whose text is at `text` and what is searched behind it at `more`. */
static int gpuir__worker_document(gpuir__worker *w, const gpuir__packet_doc *doc, const char *text, const char *more) {
  int status = GPUIR_OK;
  if (doc->size & GPUIR__COUNTED) return gpuir__worker_counted(w, text, text + (doc->size & ~GPUIR__COUNTED));
  if (doc->size) status = gpuir__analyze(w->analyzer, text, (size_t)doc->size, gpuir__worker_emit, w, &w->dropped);
  if (doc->also && !status) status = gpuir__worker_also(w, more, doc->also);
  if (doc->defines && !status) status = gpuir__worker_defines(w, more + doc->also, doc->defines);
  return status;
}

/* Says why a document cannot be inverted, if gpuir__worker_token has not: a tokenizer's own answer is no code of
 * ours. */
static int gpuir__worker_explain(gpuir__worker *w, int status) {
  if (!w->status && status) {
    w->status = status;
    if (w->analyzer->why) {
      (void)gpuir__fail(&w->err, status, 0, "document %lu: %s", (unsigned long)w->doc, w->analyzer->why);
    } else if (status != GPUIR_E_NOMEM) {
      w->status = GPUIR_E_CANCELLED;
      (void)gpuir__fail(&w->err, w->status, 0, "document %lu: the tokenizer answered %d", (unsigned long)w->doc,
          status);
    }
  }
  if (w->status == GPUIR_E_LIMIT && !w->err.code)
    (void)gpuir__fail(&w->err, w->status, 0, "document %lu has more than %lu tokens", (unsigned long)w->doc,
        (unsigned long)UINT32_MAX);
  return w->status;
}

/* Inverts a packet's documents and notes their lengths. */
static int gpuir__worker_packet(gpuir__worker *w, gpuir__packet *packet) {
  const char *text = packet->external ? packet->external : (const char *)packet->text.data;
  uint64_t i, before;
  if (!w->table.arena) {
    int status = gpuir__worker_make_room(w);
    if (status) return gpuir__worker_fail(w, status);
  }
  for (i = 0; i < packet->docs; i++) {
    gpuir__packet_doc doc;
    const char *more;
    uint32_t length;
    int status;
    memcpy(&doc, packet->sizes.data + sizeof doc * i, sizeof doc);
    more = packet->external ? (const char *)packet->text.data : text + (doc.size & ~GPUIR__COUNTED);
    w->doc = (uint32_t)(packet->first + i);
    w->length = 0;
    before = w->dropped;
    status = gpuir__worker_document(w, &doc, text, more);
    if (status || w->status) return gpuir__worker_explain(w, status);
    w->lost += !w->length && w->dropped > before;
    length = (uint32_t)w->length;
    memcpy(packet->lengths.data + 4 * i, &length, 4);
    if (more) text = more + doc.also + doc.defines;
  }
  return gpuir__worker_drain(w);
}

/* ---- reading a run back */

/* A run that is being read, a term at a time. */
typedef struct gpuir__run {
  uint64_t prefix; /* of term, see gpuir__prefix_of */
  uint64_t at, end; /* in the spool: what is not yet in buf */
  uint8_t *buf;
  size_t pos, fill, cap;
  const gpuir__spool *spool;
  uint32_t worker;
  uint32_t term_len;
  uint64_t df, bytes; /* postings of the term, and their bytes, which come next */
  uint8_t term[GPUIR_MAX_TERM + 1];
} gpuir__run;

#define GPUIR__RUN_HEAD (2u + GPUIR_MAX_TERM + 20u) /* bytes before a term's postings at most */

/* Moves what is left of the buffer to its front and fills it up from the spool. */
static int gpuir__run_fill(gpuir__run *r, gpuir_error *err) {
  size_t n;
  int status;
  memmove(r->buf, r->buf + r->pos, r->fill - r->pos);
  r->fill -= r->pos;
  r->pos = 0;
  n = (size_t)gpuir__min64(r->cap - r->fill, r->end - r->at);
  status = gpuir__spool_get(r->spool, r->buf + r->fill, n, r->at, err);
  if (status) return status;
  r->fill += n;
  r->at += n;
  return GPUIR_OK;
}

/* Reads the next term's head. *more becomes 0 at the end of the run. */
GPUIR__HOT static int gpuir__run_next(gpuir__run *r, int *more, gpuir_error *err) {
  const uint8_t *p;
  size_t shared, rest;
  if (r->fill - r->pos < GPUIR__RUN_HEAD && r->at < r->end) {
    int status = gpuir__run_fill(r, err);
    if (status) return status;
  }
  *more = r->fill > r->pos;
  if (!*more) return GPUIR_OK;
  p = r->buf + r->pos;
  shared = *p++;
  rest = *p++;
  if (shared > r->term_len || shared + rest > GPUIR_MAX_TERM || !rest)
    return gpuir__fail(err, GPUIR_E_IO, 0, "%s: a temporary file was damaged", gpuir__tail(r->spool->path));
  memcpy(r->term + shared, p, rest);
  p += rest;
  r->term_len = (uint32_t)(shared + rest);
  r->prefix = gpuir__prefix_of(r->term, r->term_len);
  r->df = gpuir__vbyte_get(&p);
  r->bytes = gpuir__vbyte_get(&p);
  r->pos = (size_t)(p - r->buf);
  if (r->pos > r->fill || r->bytes > r->fill - r->pos + (r->end - r->at))
    return gpuir__fail(err, GPUIR_E_IO, 0, "%s: a temporary file was damaged", gpuir__tail(r->spool->path));
  return GPUIR_OK;
}

/* Copies the r->bytes bytes of the current term's postings from a run to to[]: what its buffer holds first. A rest that
 * fills a buffer is read straight to its place. */
static int gpuir__run_copy(gpuir__run *r, uint8_t *to, gpuir_error *err) {
  uint64_t n = r->bytes;
  while (n) {
    size_t have = (size_t)gpuir__min64(n, r->fill - r->pos);
    memcpy(to, r->buf + r->pos, have);
    to += have;
    r->pos += have;
    n -= have;
    if (n >= r->cap) {
      int status = gpuir__spool_get(r->spool, to, (size_t)n, r->at, err);
      if (status) return status;
      r->at += n;
      n = 0;
    } else if (n) {
      int status = gpuir__run_fill(r, err);
      if (status) return status;
    }
  }
  return GPUIR_OK;
}

/* Compares the terms of two runs by bytes. */
static int gpuir__run_compare(const gpuir__run *x, const gpuir__run *y) {
  int c;
  if (x->prefix != y->prefix) return x->prefix < y->prefix ? -1 : 1;
  c = memcmp(x->term, y->term, x->term_len < y->term_len ? x->term_len : y->term_len);
  return c ? c : (int)x->term_len - (int)y->term_len;
}

/* ---- one term's postings from several runs */

/* The postings of a term from one run, as they stand there, in a buffer with those of other runs and terms. */
typedef struct gpuir__part {
  uint64_t at, len; /* in the buffer */
  uint32_t worker;
} gpuir__part;

/* The parts that one worker made of a term, which follow one another in docID order. */
typedef struct gpuir__chain {
  const uint8_t *p, *end;
  const gpuir__part *part, *last; /* the current part, and behind the chain's last */
  uint32_t doc;
  uint32_t tf; /* with positions the posting's first position; gpuir__chain_positions reads the others */
} gpuir__chain;

/* Reads the next posting of the current part. */
static inline void gpuir__chain_read(gpuir__chain *c, int positions) {
  uint64_t v = gpuir__vbyte_get(&c->p);
  if (positions) {
    c->tf = (uint32_t)(v >> 1);
    c->doc += (uint32_t)gpuir__vbyte_get(&c->p);
  } else {
    c->doc += (uint32_t)(v >> 1);
    c->tf = v & 1 ? 1 : (uint32_t)gpuir__vbyte_get(&c->p);
  }
}

/* Moves on to the next posting; 0 at the end. */
static inline int gpuir__chain_next(gpuir__chain *c, const uint8_t *bytes, int positions) {
  if (GPUIR__UNLIKELY(c->p >= c->end)) {
    if (c->part == c->last) return 0;
    c->p = bytes + c->part->at;
    c->end = c->p + c->part->len;
    c->part++;
    c->doc = 0;
  }
  gpuir__chain_read(c, positions);
  return 1;
}

/* Writes the positions of the current posting; returns its frequency. */
static inline uint32_t gpuir__chain_positions(gpuir__chain *c, uint32_t *positions) {
  uint32_t n = 0;
  positions[n++] = c->tf;
  while (c->p < c->end) {
    const uint8_t *p = c->p;
    const uint64_t v = gpuir__vbyte_get(&p);
    if (v & 1) break;
    c->p = p;
    positions[n] = positions[n - 1] + 1 + (uint32_t)(v >> 1);
    n++;
  }
  return n;
}

/* Merges an item's parts, which workers wrote, by docID; returns the number of postings. docs[] and tfs[] get one of
 * each, positions[] the positions of all, one posting's after another's; NULL: the parts have none. Every position
 * takes a byte at least in the parts, so their bytes bound positions[]. */
static inline uint64_t gpuir__item_merge(gpuir__chain *chains, const gpuir__part *parts, uint32_t nparts,
    const uint8_t *bytes, uint32_t *docs, uint32_t *tfs, uint32_t *positions) {
  uint64_t n = 0;
  uint32_t live = 0, i = 0, tf;
  while (i < nparts) {
    gpuir__chain *c = &chains[live];
    c->p = c->end = bytes;
    c->part = parts + i;
    while (i < nparts && parts[i].worker == c->part->worker) i++;
    c->last = parts + i;
    live += (uint32_t)gpuir__chain_next(c, bytes, positions != NULL);
  }
  while (live) {
    gpuir__chain *c = chains;
    uint32_t limit = UINT32_MAX; /* the least docID of the other chains */
    int more;
    for (i = 1; i < live; i++) {
      if (chains[i].doc < c->doc) {
        limit = c->doc;
        c = &chains[i];
      } else if (chains[i].doc < limit) {
        limit = chains[i].doc;
      }
    }
    do { /* workers take many documents in a row */
      tf = positions ? gpuir__chain_positions(c, positions) : c->tf;
      if (positions) positions += tf;
      if (GPUIR__UNLIKELY(n && docs[n - 1] == c->doc)) {
        tfs[n - 1] += tf;
      } else {
        docs[n] = c->doc;
        tfs[n++] = tf;
      }
      more = gpuir__chain_next(c, bytes, positions != NULL);
    } while (more && c->doc < limit);
    if (!more) *c = chains[--live];
  }
  return n;
}
