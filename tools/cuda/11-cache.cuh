
/* ========================
 * [cuda-11-cache]  host: a cache of lists, for an index that does not fit
 *
 * Ding et al. (WWW 2009, section 5) keep lists in the GPU's memory by their use. Here one slab is cut into units,
 * each a block's directory entry and GC_UNIT bytes of streams or more; a list takes as many in a row as its blocks
 * or its bytes need. A list that a launch uses stays until the launch has ended. To make room, the lists of least worth
 * are evicted; worth: uses while resident plus the worth of the last list that was evicted before it came (so old fame
 * fades); as each list's transfer costs bytes and its place costs the same bytes, they cancel out.
 *
 * The lock is of the slots alone: it is not held while bytes move. A searcher that misses lists takes places for them
 * at once, lets go of the lock, copies the lists to pinned memory of its own and from there on the stream that all
 * transfers share, and tells that they are there. Who wants a list that is coming holds it, goes on planning and waits
 * for it before its launch. As one stream takes all transfers in turn, a place can be given away as soon as the work
 * that fills or reads it is in that stream. A list in another codec is sent to units that it leaves again when it has
 * been recoded; only the first time its size has to be waited for.
 *
 * Uses      [cuda-04-codecs], [cuda-09-memory], [cuda-10-recoder].
 * Start at  gc_cache_open, gc_cache_hold_all, gc_cache_await, gc_cache_release.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_UNIT 32u /* bytes of streams a unit at least, and their granularity */
#define GC_SLOTS (1u << 16) /* lists at most */
#define GC_ENTRY (3 * 4 + 2 + GPUIR__BLOCK_PAIRS * sizeof(gpuir__pair)) /* bytes of a block in the directory */

/* Where a list is on its way. GC_UNPLACED: sent, but what it takes as bp128 is not known; only who brings it holds it.
 * GC_COMING: its place is known, but not all of it is in the stream. GC_LOST: it will not come, and goes with the last
 * one that holds it. */
enum { GC_HERE, GC_COMING, GC_UNPLACED, GC_LOST };

/* A resident list. */
typedef struct gc_slot {
  uint64_t id, worth, bytes;
  uint64_t docs_len, freqs_len;
  uint32_t unit, nunits; /* its place in the slab */
  uint32_t users, state; /* users: launches that hold it */
  uint32_t next; /* the next slot with the same hash, or the next free one, + 1 */
  uint32_t hashed; /* 1: it can be found by its id */
} gc_slot;

struct gc_cache {
  pthread_mutex_t lock; /* of all that follows down to `sizes` */
  pthread_cond_t freed; /* lists were released, or are there */
  int ready; /* 1: the two above are initialized */
  uint64_t unit_bytes, nunits;
  uint64_t clock; /* the worth of the last list that was evicted */
  uint64_t pins, releases; /* lists held, times that any were released or came */
  gc_slot *slots;
  uint32_t *order; /* the nslots used ones, by unit */
  uint32_t nslots, most; /* most: there can be */
  uint32_t *heads, mask; /* the hash table: slot + 1 */
  uint32_t vacant; /* the first free slot + 1 */
  uint2 *sizes; /* in words, of long lists that were recoded before: they are not waited for again */
  uint8_t *streams; /* device */
  cudaStream_t stream; /* of all transfers */
  gc_locked locked;
};

/* What a launch needs to bring lists. */
typedef struct gc_carrier {
  gc_pipe pipe;
  gc_recoder recoder; /* of one list */
} gc_carrier;

/* The lists that a planned launch holds. */
typedef struct gc_holds {
  uint32_t *slots;
  size_t n;
  int coming; /* 1: some were on their way when they were asked for */
  uint64_t releases; /* of the cache, when a list was last asked for in vain */
  uint64_t pins; /* lists that were held then */
} gc_holds;

static uint32_t *gc_cache_head(const gc_cache *k, uint64_t id) {
  return &k->heads[(uint32_t)((id * 0x9e3779b97f4a7c15u) >> 32) & k->mask];
}

/* Returns the slot's index + 1, or 0. */
static uint32_t gc_cache_find(const gc_cache *k, uint64_t id) {
  uint32_t s = *gc_cache_head(k, id);
  while (s && k->slots[s - 1].id != id) s = k->slots[s - 1].next;
  return s;
}

/* Makes a list known by its id. */
static void gc_cache_enter(gc_cache *k, uint32_t s, uint64_t id) {
  uint32_t *head = gc_cache_head(k, id);
  k->slots[s].id = id;
  k->slots[s].next = *head;
  k->slots[s].hashed = 1;
  *head = s + 1;
}

static void gc_cache_forget(gc_cache *k, uint32_t s) {
  uint32_t *at = gc_cache_head(k, k->slots[s].id);
  if (!k->slots[s].hashed) return;
  while (*at != s + 1) at = &k->slots[*at - 1].next;
  *at = k->slots[s].next;
  k->slots[s].hashed = 0;
}

/* Returns the place in the order for a list of n units, where the first gap of that size is; or UINT32_MAX. */
static uint32_t gc_cache_gap(const gc_cache *k, uint64_t n, uint64_t *unit) {
  uint32_t i;
  *unit = 0;
  if (k->nslots == k->most) return UINT32_MAX;
  for (i = 0; i < k->nslots; i++) {
    const gc_slot *s = &k->slots[k->order[i]];
    if (s->unit - *unit >= n) return i;
    *unit = (uint64_t)s->unit + s->nunits;
  }
  return k->nunits - *unit >= n ? i : UINT32_MAX;
}

/* Empties the slot at a place in the order. */
static void gc_cache_remove(gpuir_cuda *c, gc_cache *k, uint32_t place) {
  const uint32_t s = k->order[place];
  gc_cache_forget(k, s);
  __atomic_fetch_sub(&c->info.resident_bytes, k->slots[s].bytes, __ATOMIC_RELAXED);
  k->nslots--;
  memmove(&k->order[place], &k->order[place + 1], (k->nslots - place) * sizeof *k->order);
  k->slots[s].next = k->vacant;
  k->vacant = s + 1;
}

/* Evicts the list of least worth that no launch uses; returns 0 if there is none. */
static int gc_cache_evict(gpuir_cuda *c, gc_cache *k) {
  uint32_t i, least = UINT32_MAX;
  uint64_t worth = 0;
  for (i = 0; i < k->nslots; i++) {
    const gc_slot *s = &k->slots[k->order[i]];
    if (s->users || (least != UINT32_MAX && s->worth >= worth)) continue;
    least = i;
    worth = s->worth;
  }
  if (least == UINT32_MAX) return 0;
  k->clock = worth;
  gc_cache_remove(c, k, least);
  return 1;
}

/* Takes a slot and a place for a list of n units, evicting others for it, and holds it. Returns the slot's index + 1;
 * 0: the lists in use leave no room. */
static uint32_t gc_cache_reserve(gpuir_cuda *c, gc_cache *k, uint64_t n) {
  uint64_t unit;
  uint32_t place, i;
  while ((place = gc_cache_gap(k, n, &unit)) == UINT32_MAX && n <= k->nunits && gc_cache_evict(c, k)) {}
  if (place == UINT32_MAX) return 0;
  i = k->vacant - 1;
  k->vacant = k->slots[i].next;
  memset(&k->slots[i], 0, sizeof *k->slots);
  k->slots[i].worth = k->clock + 1;
  k->slots[i].unit = (uint32_t)unit;
  k->slots[i].nunits = (uint32_t)n;
  k->slots[i].users = 1;
  k->pins++;
  memmove(&k->order[place + 1], &k->order[place], (k->nslots - place) * sizeof *k->order);
  k->order[place] = i;
  k->nslots++;
  return i + 1;
}

/* Lets go of a list. One that is lost goes with its last holder. */
static void gc_cache_let_go(gpuir_cuda *c, gc_cache *k, uint32_t s) {
  uint32_t i = 0;
  k->pins--;
  if (--k->slots[s].users || k->slots[s].state != GC_LOST) return;
  while (k->order[i] != s) i++;
  gc_cache_remove(c, k, i);
}

/* Gives a list up that will not come. */
static void gc_cache_lose(gpuir_cuda *c, gc_cache *k, uint32_t s) {
  gc_cache_forget(k, s);
  k->slots[s].state = GC_LOST;
  gc_cache_let_go(c, k, s);
}

/* Tells those who wait that lists were released, or came. */
static void gc_cache_tell(gc_cache *k) {
  k->releases++;
  (void)pthread_cond_broadcast(&k->freed);
}

/* Writes the size that a list has as bp128 to its slot; returns the units that it takes. */
static uint64_t gc_cache_size(const gc_cache *k, const gpuir__list *l, uint64_t docs_len, uint64_t freqs_len,
    gc_slot *s) {
  const uint64_t bytes = GC_ALIGN(docs_len) + GC_ALIGN(freqs_len);
  s->docs_len = docs_len;
  s->freqs_len = freqs_len;
  s->bytes = bytes + (l->extent ? l->nblocks * GC_ENTRY : 0);
  return gpuir__max64(l->nblocks, (bytes + k->unit_bytes - 1) / k->unit_bytes);
}

/* Transfers a list that is bp128 already to its units: the streams and their directory. */
static int gc_cache_load_streams(const gpuir_cuda *c, gc_pipe *p, const gc_slot *s, const gpuir__list *l,
    gpuir_error *err) {
  const gc_view *v = &c->view;
  const uint64_t n = l->nblocks;
  uint8_t *at = c->cache->streams + s->unit * c->cache->unit_bytes;
  int status = gc_pipe_put(p, at, l->docs.bytes, l->docs.len, err);
  if (!status) status = gc_pipe_put(p, at + GC_ALIGN(l->docs.len), l->freqs.bytes, l->freqs.len, err);
  if (status || !l->extent) return status;
  status = gc_pipe_put(p, v->last + s->unit, l->last, n * 4, err);
  if (!status) status = gc_pipe_put(p, v->docs_off + s->unit, l->docs.offset, n * 4, err);
  if (!status) status = gc_pipe_put(p, v->freqs_off + s->unit, l->freqs.offset, n * 4, err);
  if (!status) status = gc_pipe_put(p, v->docs_width + s->unit, l->docs.width, n, err);
  if (!status) status = gc_pipe_put(p, v->freqs_width + s->unit, l->freqs.width, n, err);
  return status;
}

/* Sends a list to units where it stays until it has been recoded, and finds out its size as bp128. */
static int gc_cache_measure(gpuir_cuda *c, gc_recoder *r, const gc_slot *area, uint64_t id, gpuir__list *l,
    uint2 *words, gpuir_error *err) {
  gc_cache *k = c->cache;
  uint2 known = {0, 0}, *sizes = l->extent ? &k->sizes[l->extent - c->ix->lists.longs] : NULL;
  int status;
  if (sizes) {
    known.x = __atomic_load_n(&sizes->x, __ATOMIC_ACQUIRE);
    known.y = sizes->y;
  }
  gc_recoder_begin(r, k->streams + area->unit * k->unit_bytes, gc_recoder_bytes(l) + GC_AREA_MORE);
  status = gc_recoder_add(r, c->ix, id, l, err);
  if (!status) status = gc_recoder_measure(c, r, err);
  if (!status && !known.x) {
    status = gc_recoder_wait(c, r, err);
    if (status) return status;
    known.x = (uint32_t)r->words[0];
    known.y = (uint32_t)r->words[1];
    if (sizes) {
      __atomic_store_n(&sizes->y, known.y, __ATOMIC_RELAXED);
      __atomic_store_n(&sizes->x, known.x, __ATOMIC_RELEASE);
    }
  }
  *words = known;
  return status;
}

static int gc_cache_write(gpuir_cuda *c, gc_recoder *r, const gc_slot *s, gpuir_error *err) {
  gc_target *to = r->targets;
  to->part[GC_DOCS] = (uint32_t *)(c->cache->streams + s->unit * c->cache->unit_bytes);
  to->part[GC_FREQS] = to->part[GC_DOCS] + GC_ALIGN(s->docs_len) / 4;
  to->words[GC_DOCS] = (uint32_t)(s->docs_len / 4);
  to->words[GC_FREQS] = (uint32_t)(s->freqs_len / 4);
  to->entry = s->unit;
  return gc_recoder_write(c, r, err);
}

/* Brings a list in another codec, which is in *slot and becomes what *slot names then. *full: the lists in use leave no
 * room for it. */
static int gc_cache_recode(gpuir_cuda *c, gc_carrier *by, uint32_t *slot, gpuir__list *l, int *full, gpuir_error *err) {
  gc_cache *k = c->cache;
  const uint32_t area = *slot;
  const uint64_t id = k->slots[area].id;
  gc_slot sizes;
  uint2 words;
  uint32_t s;
  int status = gc_cache_measure(c, &by->recoder, &k->slots[area], id, l, &words, err);
  if (status) return status;
  memset(&sizes, 0, sizeof sizes);
  (void)pthread_mutex_lock(&k->lock);
  s = gc_cache_reserve(c, k, gc_cache_size(k, l, (uint64_t)words.x * 4, (uint64_t)words.y * 4, &sizes));
  *full = !s;
  if (s) {
    gc_slot *to = &k->slots[s - 1];
    to->bytes = sizes.bytes;
    to->docs_len = sizes.docs_len;
    to->freqs_len = sizes.freqs_len;
    to->state = GC_COMING;
    __atomic_fetch_add(&c->info.resident_bytes, to->bytes, __ATOMIC_RELAXED);
    gc_cache_forget(k, area);
    gc_cache_enter(k, s - 1, id);
    *slot = s - 1;
  }
  (void)pthread_mutex_unlock(&k->lock);
  if (!s) return GPUIR_OK;
  status = gc_cache_write(c, &by->recoder, &k->slots[s - 1], err);
  (void)pthread_mutex_lock(&k->lock);
  gc_cache_lose(c, k, area); /* who takes its units writes to them behind what has just been put into the stream */
  (void)pthread_mutex_unlock(&k->lock);
  return status;
}

/* Brings a list to the slot that was taken for it. */
static int gc_cache_bring(gpuir_cuda *c, gc_carrier *by, uint32_t *slot, gpuir__list *l, int *full, gpuir_error *err) {
  int status;
  gc_pipe_drop(&by->pipe); /* what a list that failed left */
  status = gc_coded_otherwise(l) ? gc_cache_recode(c, by, slot, l, full, err)
                                 : gc_cache_load_streams(c, &by->pipe, &c->cache->slots[*slot], l, err);
  if (status || *full) return status;
  if (l->extent)
    status = gc_pipe_put(&by->pipe, c->view.bounds + (uint64_t)c->cache->slots[*slot].unit * GPUIR__BLOCK_PAIRS,
        l->bounds, l->nblocks * GPUIR__BLOCK_PAIRS * sizeof(gpuir__pair), err);
  if (!status) status = gc_pipe_flush(&by->pipe, err);
  if (status) return status;
  __atomic_fetch_add(&c->info.lists_missed, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&c->info.bytes_sent, c->cache->slots[*slot].bytes, __ATOMIC_RELAXED);
  return GPUIR_OK;
}

/* Holds a list, or takes a place for it: then *bring becomes 1. Returns the slot's index + 1; 0: it has to wait. */
static uint32_t gc_cache_hold(gpuir_cuda *c, gc_holds *held, uint64_t id, const gpuir__list *l, int *bring) {
  gc_cache *k = c->cache;
  uint32_t i = gc_cache_find(k, id);
  gc_slot sizes, *s;
  uint64_t n;
  *bring = !i;
  if (i) {
    s = &k->slots[i - 1];
    if (s->state == GC_UNPLACED) return 0;
    held->coming |= s->state == GC_COMING;
    __atomic_fetch_add(&c->info.lists_hit, 1, __ATOMIC_RELAXED);
    s->worth++;
    s->users++;
    k->pins++;
    return i;
  }
  memset(&sizes, 0, sizeof sizes);
  sizes.state = gc_coded_otherwise(l) ? GC_UNPLACED : GC_COMING;
  if (sizes.state == GC_UNPLACED) n = (gc_recoder_bytes(l) + GC_AREA_MORE + k->unit_bytes - 1) / k->unit_bytes;
  else n = gc_cache_size(k, l, l->docs.len, l->freqs.len, &sizes);
  i = gc_cache_reserve(c, k, n);
  if (!i) return 0;
  s = &k->slots[i - 1];
  s->bytes = sizes.bytes;
  s->docs_len = sizes.docs_len;
  s->freqs_len = sizes.freqs_len;
  s->state = sizes.state;
  __atomic_fetch_add(&c->info.resident_bytes, s->bytes, __ATOMIC_RELAXED);
  gc_cache_enter(k, i - 1, id);
  return i;
}

/* A query's lists, as many as it has known terms. */
typedef struct gc_wanted {
  uint64_t id[GPUIR_MAX_TERMS];
  gpuir__list list[GPUIR_MAX_TERMS];
  uint32_t slot[GPUIR_MAX_TERMS]; /* + 1; 0: none, as the list is in its term */
  int bring[GPUIR_MAX_TERMS];
  uint32_t n;
} gc_wanted;

/* Lets go of a query's first n lists. Those that were to be brought from number `from` on will not come. */
static void gc_cache_undo(gpuir_cuda *c, const gc_wanted *w, uint32_t n, uint32_t from) {
  uint32_t i;
  for (i = 0; i < n; i++) {
    if (!w->slot[i]) continue;
    if (w->bring[i] && i >= from) gc_cache_lose(c, c->cache, w->slot[i] - 1);
    else gc_cache_let_go(c, c->cache, w->slot[i] - 1);
  }
}

/* Notes in vain: what has to change before it is worth asking again. */
static void gc_cache_note(const gc_cache *k, gc_holds *held) {
  held->releases = k->releases;
  held->pins = k->pins;
}

/* Brings the lists that were wanted and are missing, without the lock, and tells that they are there. */
static int gc_cache_bring_all(gpuir_cuda *c, gc_holds *held, gc_carrier *by, gc_wanted *w, int *full,
    gpuir_error *err) {
  gc_cache *k = c->cache;
  uint32_t done, i;
  int status = GPUIR_OK;
  for (done = 0; done < w->n; done++) {
    uint32_t slot = w->slot[done] - 1;
    if (!w->bring[done]) continue;
    status = gc_cache_bring(c, by, &slot, &w->list[done], full, err);
    w->slot[done] = slot + 1;
    if (status || *full) break;
  }
  (void)pthread_mutex_lock(&k->lock);
  for (i = 0; i < done; i++)
    if (w->bring[i]) k->slots[w->slot[i] - 1].state = GC_HERE;
  if (status || *full) {
    gc_cache_undo(c, w, w->n, done);
    gc_cache_tell(k);
    gc_cache_note(k, held);
  } else {
    gc_cache_tell(k);
  }
  (void)pthread_mutex_unlock(&k->lock);
  return status;
}

/* Makes a query's lists resident and holds them until they are released; those that are not in their terms. *full: the
 * lists in use leave no room for them. */
static int gc_cache_hold_all(gpuir_cuda *c, gc_holds *held, gc_carrier *by, gc_wanted *w, gc_term *terms, int *full,
    gpuir_error *err) {
  gc_cache *k = c->cache;
  uint32_t i;
  int bring = 0, status = GPUIR_OK;
  (void)pthread_mutex_lock(&k->lock);
  for (i = 0; i < w->n && !*full; i++) {
    w->bring[i] = 0;
    w->slot[i] = terms[i].kind == GC_INLINE ? 0 : gc_cache_hold(c, held, w->id[i], &w->list[i], &w->bring[i]);
    *full = !w->slot[i] && terms[i].kind != GC_INLINE;
    bring |= w->bring[i];
  }
  if (*full) {
    gc_cache_undo(c, w, i - 1, 0);
    gc_cache_note(k, held);
  }
  (void)pthread_mutex_unlock(&k->lock);
  if (bring && !*full) status = gc_cache_bring_all(c, held, by, w, full, err);
  if (status || *full) return status;
  for (i = 0; i < w->n; i++) { /* what is held does not move */
    const gc_slot *s = &k->slots[w->slot[i] - 1];
    gc_term *t = &terms[i];
    if (!w->slot[i]) {
      __atomic_fetch_add(&c->info.lists_hit, 1, __ATOMIC_RELAXED);
      continue;
    }
    if (t->kind == GC_LONG) t->first_block = s->unit;
    t->docs = s->unit * k->unit_bytes;
    t->docs_len = s->docs_len;
    t->freqs = t->docs + GC_ALIGN(s->docs_len);
    t->freqs_len = s->freqs_len;
    held->slots[held->n++] = w->slot[i] - 1;
  }
  return GPUIR_OK;
}

/* Waits until the lists that are held are in the stream, which takes others no longer than to copy a query's lists.
 * Returns 0 if one of them will not come. */
static int gc_cache_await(gc_cache *k, gc_holds *held) {
  size_t i;
  int come = 1;
  if (!k || !held->coming) return 1;
  held->coming = 0;
  (void)pthread_mutex_lock(&k->lock);
  for (i = 0; i < held->n; i++) {
    const gc_slot *s = &k->slots[held->slots[i]];
    while (s->state == GC_COMING) (void)pthread_cond_wait(&k->freed, &k->lock);
    come = come && s->state == GC_HERE;
  }
  (void)pthread_mutex_unlock(&k->lock);
  return come;
}

/* Releases lists: the launch that used them has ended, or was not made. */
static void gc_cache_release(gpuir_cuda *c, gc_holds *held) {
  gc_cache *k = c->cache;
  size_t i;
  if (!k || !held->n) return;
  (void)pthread_mutex_lock(&k->lock);
  for (i = 0; i < held->n; i++) gc_cache_let_go(c, k, held->slots[i]);
  gc_cache_tell(k);
  (void)pthread_mutex_unlock(&k->lock);
  held->n = 0;
  held->coming = 0;
}

/* Waits until lists are released or come, none is held, or `ns` are over; returns 0 then. */
static int gc_cache_wait(gc_cache *k, uint64_t releases, uint64_t ns) {
  const uint64_t end = gpuir__now() + ns;
  struct timespec until;
  int late = 0, changed;
  until.tv_sec = (time_t)(end / 1000000000u);
  until.tv_nsec = (long)(end % 1000000000u);
  (void)pthread_mutex_lock(&k->lock);
  while (k->pins && k->releases == releases && !late) late = pthread_cond_timedwait(&k->freed, &k->lock, &until) != 0;
  changed = !k->pins || k->releases != releases;
  (void)pthread_mutex_unlock(&k->lock);
  return changed;
}

static void gc_cache_close(gpuir_cuda *c) {
  gc_cache *k = c->cache;
  if (!k) return;
  gc_stream_close(k->stream);
  if (k->locked.file) (void)cudaHostUnregister(k->locked.file);
  gpuir__free(&c->a, k->sizes, (size_t)c->ix->stat.longs * sizeof *k->sizes);
  gpuir__free(&c->a, k->slots, k->most * sizeof *k->slots);
  gpuir__free(&c->a, k->order, k->most * sizeof *k->order);
  gpuir__free(&c->a, k->heads, ((size_t)k->mask + 1) * sizeof *k->heads);
  if (k->ready) {
    (void)pthread_cond_destroy(&k->freed);
    (void)pthread_mutex_destroy(&k->lock);
  }
  gpuir__free(&c->a, k, sizeof *k);
  c->cache = NULL;
}

/* Cuts the slab into its arrays. */
static void gc_cache_lay_out(gc_cache *k, gc_view *v, uint8_t *at) {
  k->streams = at;
  v->docids = v->freqs = (const uint32_t *)at;
  at += (k->nunits * k->unit_bytes + GC_PAD + 255) & ~(uint64_t)255;
  v->last = (const uint32_t *)at;
  v->docs_off = v->last + k->nunits;
  v->freqs_off = v->docs_off + k->nunits;
  v->bounds = (const gpuir__pair *)(v->freqs_off + k->nunits);
  v->docs_width = (const uint8_t *)(v->bounds + k->nunits * GPUIR__BLOCK_PAIRS);
  v->freqs_width = v->docs_width + k->nunits;
}

/* Makes the lock, and the condition, whose times are gpuir__now's. */
static int gc_cache_make_lock(gc_cache *k, gpuir_error *err) {
  pthread_condattr_t how;
  int failed;
  if (pthread_mutex_init(&k->lock, NULL)) return gpuir__fail_nomem(err);
  failed = pthread_condattr_init(&how);
  if (!failed) {
    failed = pthread_condattr_setclock(&how, CLOCK_MONOTONIC) || pthread_cond_init(&k->freed, &how);
    (void)pthread_condattr_destroy(&how);
  }
  k->ready = !failed;
  if (!failed) return GPUIR_OK;
  (void)pthread_mutex_destroy(&k->lock);
  return gpuir__fail_nomem(err);
}

/* Makes the host's part of a cache whose slab has `room` bytes. */
static int gc_cache_make(gpuir_cuda *c, gc_cache *k, uint64_t room, gpuir_error *err) {
  const gpuir__segment *ix = c->ix;
  const uint64_t streams = ix->section[GPUIR__S_DOCIDS]->length + ix->section[GPUIR__S_FREQS]->length;
  uint32_t i;
  k->unit_bytes = GC_UNIT;
  if (ix->stat.blocks) k->unit_bytes = gpuir__max64(GC_UNIT, streams / ix->stat.blocks & ~(uint64_t)(GC_UNIT - 1));
  k->nunits = gpuir__min64((room - 8192) / (GC_ENTRY + k->unit_bytes), UINT32_MAX / 2);
  k->most = (uint32_t)gpuir__min64(gpuir__min64(k->nunits, GC_SLOTS), ix->stat.terms);
  k->slots = (gc_slot *)gpuir__alloc_zero(&c->a, k->most * sizeof *k->slots);
  k->order = (uint32_t *)gpuir__alloc_zero(&c->a, k->most * sizeof *k->order);
  for (k->mask = 1; k->mask < k->most; k->mask = 2 * k->mask + 1) {}
  k->heads = (uint32_t *)gpuir__alloc_zero(&c->a, ((size_t)k->mask + 1) * sizeof *k->heads);
  k->sizes = (uint2 *)gpuir__alloc_zero(&c->a, (size_t)ix->stat.longs * sizeof *k->sizes);
  if (!k->slots || !k->order || !k->heads || !k->sizes) return gpuir__fail_nomem(err);
  for (i = k->most; i--;) {
    k->slots[i].next = k->vacant;
    k->vacant = i + 1;
  }
  return gc_cache_make_lock(k, err);
}

/* Opens a cache with a slab of `room` bytes, empty. */
static int gc_cache_open(gpuir_cuda *c, uint64_t room, gpuir_error *err) {
  gc_cache *k = (gc_cache *)gpuir__alloc_zero(&c->a, sizeof *k);
  size_t size;
  void *slab;
  int s;
  if (!k) return gpuir__fail_nomem(err);
  c->cache = k;
  if (room < 64 * 1024)
    return gpuir__fail(err, GPUIR_E_NOMEM, 0, "CUDA: %llu bytes of device memory are too few to hold lists",
        (unsigned long long)room);
  s = gc_cache_make(c, k, room, err);
  if (s) return s;
  size = (size_t)(k->nunits * (GC_ENTRY + k->unit_bytes) + 8192);
  s = gc_device_alloc(c, size, &slab, err);
  if (s) return s;
  GC_TRY(cudaMemset(slab, 0, size), "clearing the slab");
  gc_cache_lay_out(k, &c->view, (uint8_t *)slab);
  s = gc_stream_open(&k->stream, 0, err);
  if (!s) gc_lock(&k->locked, c);
  return s;
}

/* Makes what a launch brings lists with. */
static int gc_carrier_open(const gpuir_cuda *c, gc_carrier *by, gpuir_error *err) {
  int status = gc_pipe_open(&by->pipe, c->cache->stream, err);
  by->pipe.locked = c->cache->locked;
  return status ? status : gc_recoder_open(&by->recoder, &c->a, &by->pipe, 1, err);
}

static void gc_carrier_close(const gpuir_cuda *c, gc_carrier *by) {
  gc_pipe_close(&by->pipe);
  gc_recoder_close(&by->recoder, &c->a);
}

#pragma GCC push_options
#pragma nv_diag_suppress 1675
#pragma GCC optimize("Og")
#pragma nv_diag_default 1675
