
/* ========================
 * [cuda-16-cache]  host: a cache of lists, for an index that does not fit
 *
 * Ding et al. (WWW 2009, section 5) keep lists in the GPU's memory by their use. Here one slab is cut into units. A
 * unit has a block's directory entry and at least GC_UNIT bytes of streams; a list takes as many units in a row as its
 * blocks or its bytes need. A list that a launch uses stays until the launch has ended. To make room, the lists of
 * least priority are evicted. A list's priority is the number of its uses since it came, plus the priority of the last
 * list that was evicted before it came, so that old fame fades (least frequently used with dynamic aging). Sizes do not
 * count: a list's transfer costs as many bytes as its place.
 *
 * The lock protects the entries only; it is not held while bytes move. A searcher that misses lists takes places for
 * them at once and releases the lock. Then it copies the lists to pinned memory of its own, and from there to the
 * stream that all transfers share, and tells the others that they are there. A searcher that wants a list on its way
 * holds it, goes on planning, and waits for it before its launch. One stream takes all transfers in turn: so a place
 * can be given away as soon as the work that fills or reads it is in that stream. A list in another codec is sent to
 * units that it leaves when it has been recoded; only the first time somebody waits for its size.
 *
 * Uses      [cuda-04-codecs], [cuda-14-memory], [cuda-15-recoder].
 * Start at  gc_cache_open, gc_cache_hold_all, gc_cache_await, gc_cache_release.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_UNIT 32u /* bytes of streams of a unit at least, and their granularity */
#define GC_CACHE_ENTRIES (1u << 16) /* lists at most */
#define GC_DIRECTORY_BYTES \
  (3 * 4 + 2 + GPUIR__BLOCK_PAIRS * sizeof(gpuir__pair)) /* bytes of a block in the directory */

/* States of a list. GC_HERE: all of it is in the stream. GC_COMING: its place is known. GC_UNPLACED: it was sent, but
 * its size as bp128 is not known; only the searcher that loads it holds it. GC_LOST: it will not come, and its entry
 * goes with the last launch that holds it. */
enum { GC_HERE, GC_COMING, GC_UNPLACED, GC_LOST };

/* A resident list. */
typedef struct gc_cache_entry {
  uint64_t id, priority, bytes;
  uint64_t docs_len, freqs_len;
  uint32_t unit, nunits; /* its place in the slab */
  uint32_t users, state; /* users: launches that hold it */
  uint32_t next; /* 1 + the next entry with the same hash, or the next free one */
  uint32_t hashed; /* 1: it can be found by its id */
} gc_cache_entry;

struct gc_cache {
  pthread_mutex_t lock; /* of all members down to `sizes` */
  pthread_cond_t freed; /* lists were released, or have come */
  int ready; /* 1: the two above are initialized */
  uint64_t unit_bytes, nunits;
  uint64_t clock; /* the priority of the last list that was evicted */
  uint64_t pins, releases; /* lists held; how often any were released or came */
  gc_cache_entry *entries;
  uint32_t *order; /* the nentries used ones, by unit */
  uint32_t nentries, most; /* most: there can be */
  uint32_t *heads, mask; /* the hash table: 1 + entry */
  uint32_t vacant; /* 1 + the first free entry */
  uint2 *sizes; /* words of long lists that were recoded before: nobody waits for these sizes again */
  uint8_t *streams; /* device */
  cudaStream_t stream; /* of all transfers */
  gc_locked locked;
};

/* What a launch transfers lists with. */
typedef struct gc_transfer {
  gc_pipe pipe;
  gc_recoder recoder; /* of one list */
} gc_transfer;

/* The lists that a planned launch holds. */
typedef struct gc_holds {
  uint32_t *entries;
  size_t n;
  int coming; /* 1: some were on their way when they were asked for */
  uint64_t releases; /* of the cache, when a list found no room */
  uint64_t pins; /* lists that were held then */
} gc_holds;

/* Returns the head of the hash chain that a list belongs to. */
static uint32_t *gc_cache_head(const gc_cache *k, uint64_t id) {
  return &k->heads[(uint32_t)((id * 0x9e3779b97f4a7c15u) >> 32) & k->mask];
}

/* Returns 1 + the list's entry, or 0. */
static uint32_t gc_cache_find(const gc_cache *k, uint64_t id) {
  uint32_t s = *gc_cache_head(k, id);
  while (s && k->entries[s - 1].id != id) s = k->entries[s - 1].next;
  return s;
}

/* Lets a list be found by its id. */
static void gc_cache_enter(gc_cache *k, uint32_t s, uint64_t id) {
  uint32_t *head = gc_cache_head(k, id);
  k->entries[s].id = id;
  k->entries[s].next = *head;
  k->entries[s].hashed = 1;
  *head = s + 1;
}

/* Lets a list be found no longer. */
static void gc_cache_forget(gc_cache *k, uint32_t s) {
  uint32_t *at = gc_cache_head(k, k->entries[s].id);
  if (!k->entries[s].hashed) return;
  while (*at != s + 1) at = &k->entries[*at - 1].next;
  *at = k->entries[s].next;
  k->entries[s].hashed = 0;
}

/* Returns the place in the order for a list of n units, at the first gap that is large enough; or UINT32_MAX. */
static uint32_t gc_cache_gap(const gc_cache *k, uint64_t n, uint64_t *unit) {
  uint32_t i;
  *unit = 0;
  if (k->nentries == k->most) return UINT32_MAX;
  for (i = 0; i < k->nentries; i++) {
    const gc_cache_entry *s = &k->entries[k->order[i]];
    if (s->unit - *unit >= n) return i;
    *unit = (uint64_t)s->unit + s->nunits;
  }
  return k->nunits - *unit >= n ? i : UINT32_MAX;
}

/* Frees the entry at a place in the order. */
static void gc_cache_remove(gpuir_cuda *c, gc_cache *k, uint32_t place) {
  const uint32_t s = k->order[place];
  gc_cache_forget(k, s);
  __atomic_fetch_sub(&c->info.resident_bytes, k->entries[s].bytes, __ATOMIC_RELAXED);
  k->nentries--;
  memmove(&k->order[place], &k->order[place + 1], (k->nentries - place) * sizeof *k->order);
  k->entries[s].next = k->vacant;
  k->vacant = s + 1;
}

/* Evicts the list of least priority that no launch holds; returns 0 if there is none. */
static int gc_cache_evict(gpuir_cuda *c, gc_cache *k) {
  uint32_t i, least = UINT32_MAX;
  uint64_t priority = 0;
  for (i = 0; i < k->nentries; i++) {
    const gc_cache_entry *s = &k->entries[k->order[i]];
    if (s->users || (least != UINT32_MAX && s->priority >= priority)) continue;
    least = i;
    priority = s->priority;
  }
  if (least == UINT32_MAX) return 0;
  k->clock = priority;
  gc_cache_remove(c, k, least);
  return 1;
}

/* Takes an entry and a place for a list of n units, and holds it; evicts others if it must. Returns 1 + the entry; 0:
 * the lists in use leave no room. */
static uint32_t gc_cache_reserve(gpuir_cuda *c, gc_cache *k, uint64_t n) {
  uint64_t unit;
  uint32_t place, i;
  while ((place = gc_cache_gap(k, n, &unit)) == UINT32_MAX && n <= k->nunits && gc_cache_evict(c, k)) {}
  if (place == UINT32_MAX) return 0;
  i = k->vacant - 1;
  k->vacant = k->entries[i].next;
  memset(&k->entries[i], 0, sizeof *k->entries);
  k->entries[i].priority = k->clock + 1;
  k->entries[i].unit = (uint32_t)unit;
  k->entries[i].nunits = (uint32_t)n;
  k->entries[i].users = 1;
  k->pins++;
  memmove(&k->order[place + 1], &k->order[place], (k->nentries - place) * sizeof *k->order);
  k->order[place] = i;
  k->nentries++;
  return i + 1;
}

/* Ends one hold of a list. A lost one goes with its last holder. */
static void gc_cache_let_go(gpuir_cuda *c, gc_cache *k, uint32_t s) {
  uint32_t i = 0;
  k->pins--;
  if (--k->entries[s].users || k->entries[s].state != GC_LOST) return;
  while (k->order[i] != s) i++;
  gc_cache_remove(c, k, i);
}

/* Marks a list as one that will not come, and ends its hold. */
static void gc_cache_lose(gpuir_cuda *c, gc_cache *k, uint32_t s) {
  gc_cache_forget(k, s);
  k->entries[s].state = GC_LOST;
  gc_cache_let_go(c, k, s);
}

/* Tells those that wait that lists were released, or came. */
static void gc_cache_tell(gc_cache *k) {
  k->releases++;
  (void)pthread_cond_broadcast(&k->freed);
}

/* Writes the list's size as bp128 to its entry; returns the units that it takes. */
static uint64_t gc_cache_size(const gc_cache *k, const gpuir__list *l, uint64_t docs_len, uint64_t freqs_len,
    gc_cache_entry *s) {
  const uint64_t bytes = GC_ALIGN(docs_len) + GC_ALIGN(freqs_len);
  s->docs_len = docs_len;
  s->freqs_len = freqs_len;
  s->bytes = bytes + (l->extent ? l->nblocks * GC_DIRECTORY_BYTES : 0);
  return gpuir__max64(l->nblocks, (bytes + k->unit_bytes - 1) / k->unit_bytes);
}

/* Transfers a list that is bp128 already to its units: streams and directory. */
static int gc_cache_load_streams(const gpuir_cuda *c, gc_pipe *p, const gc_cache_entry *s, const gpuir__list *l,
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

/* Sends a list to units where it stays until it has been recoded, and finds its size as bp128. */
static int gc_cache_measure(gpuir_cuda *c, gc_recoder *r, const gc_cache_entry *area, uint64_t id, gpuir__list *l,
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

/* Recodes a sent list to the units of its entry. */
static int gc_cache_write(gpuir_cuda *c, gc_recoder *r, const gc_cache_entry *s, gpuir_error *err) {
  gc_target *to = r->targets;
  to->part[GC_DOCS] = (uint32_t *)(c->cache->streams + s->unit * c->cache->unit_bytes);
  to->part[GC_FREQS] = to->part[GC_DOCS] + GC_ALIGN(s->docs_len) / 4;
  to->words[GC_DOCS] = (uint32_t)(s->docs_len / 4);
  to->words[GC_FREQS] = (uint32_t)(s->freqs_len / 4);
  to->entry = s->unit;
  return gc_recoder_write(c, r, err);
}

/* Loads a list of another codec. *entry has where it was sent, and gets its new entry. *full: the lists in use leave no
 * room for that. */
static int gc_cache_recode(gpuir_cuda *c, gc_transfer *transfer, uint32_t *entry, gpuir__list *l, int *full,
    gpuir_error *err) {
  gc_cache *k = c->cache;
  const uint32_t area = *entry;
  const uint64_t id = k->entries[area].id;
  gc_cache_entry sizes;
  uint2 words;
  uint32_t s;
  int status = gc_cache_measure(c, &transfer->recoder, &k->entries[area], id, l, &words, err);
  if (status) return status;
  memset(&sizes, 0, sizeof sizes);
  (void)pthread_mutex_lock(&k->lock);
  s = gc_cache_reserve(c, k, gc_cache_size(k, l, (uint64_t)words.x * 4, (uint64_t)words.y * 4, &sizes));
  *full = !s;
  if (s) {
    gc_cache_entry *to = &k->entries[s - 1];
    to->bytes = sizes.bytes;
    to->docs_len = sizes.docs_len;
    to->freqs_len = sizes.freqs_len;
    to->state = GC_COMING;
    __atomic_fetch_add(&c->info.resident_bytes, to->bytes, __ATOMIC_RELAXED);
    gc_cache_forget(k, area);
    gc_cache_enter(k, s - 1, id);
    *entry = s - 1;
  }
  (void)pthread_mutex_unlock(&k->lock);
  if (!s) return GPUIR_OK;
  status = gc_cache_write(c, &transfer->recoder, &k->entries[s - 1], err);
  (void)pthread_mutex_lock(&k->lock);
  gc_cache_lose(c, k, area); /* its next user's writes come behind the recoding, in the same stream */
  (void)pthread_mutex_unlock(&k->lock);
  return status;
}

/* Loads a list to the entry that was taken for it. */
static int gc_cache_load(gpuir_cuda *c, gc_transfer *transfer, uint32_t *entry, gpuir__list *l, int *full,
    gpuir_error *err) {
  int status;
  gc_pipe_drop(&transfer->pipe); /* of a list that failed */
  status = gc_coded_otherwise(l) ? gc_cache_recode(c, transfer, entry, l, full, err)
                                 : gc_cache_load_streams(c, &transfer->pipe, &c->cache->entries[*entry], l, err);
  if (status || *full) return status;
  if (l->extent)
    status =
        gc_pipe_put(&transfer->pipe, c->view.bounds + (uint64_t)c->cache->entries[*entry].unit * GPUIR__BLOCK_PAIRS,
            l->bounds, l->nblocks * GPUIR__BLOCK_PAIRS * sizeof(gpuir__pair), err);
  if (!status) status = gc_pipe_flush(&transfer->pipe, err);
  if (status) return status;
  __atomic_fetch_add(&c->info.lists_missed, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&c->info.bytes_sent, c->cache->entries[*entry].bytes, __ATOMIC_RELAXED);
  return GPUIR_OK;
}

/* Holds a list, or takes a place for it: then *missing becomes 1. Returns 1 + its entry; 0: the list has to wait. */
static uint32_t gc_cache_hold(gpuir_cuda *c, gc_holds *held, uint64_t id, const gpuir__list *l, int *missing) {
  gc_cache *k = c->cache;
  uint32_t i = gc_cache_find(k, id);
  gc_cache_entry sizes, *s;
  uint64_t n;
  *missing = !i;
  if (i) {
    s = &k->entries[i - 1];
    if (s->state == GC_UNPLACED) return 0;
    held->coming |= s->state == GC_COMING;
    __atomic_fetch_add(&c->info.lists_hit, 1, __ATOMIC_RELAXED);
    s->priority++;
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
  s = &k->entries[i - 1];
  s->bytes = sizes.bytes;
  s->docs_len = sizes.docs_len;
  s->freqs_len = sizes.freqs_len;
  s->state = sizes.state;
  __atomic_fetch_add(&c->info.resident_bytes, s->bytes, __ATOMIC_RELAXED);
  gc_cache_enter(k, i - 1, id);
  return i;
}

/* The lists of a query's known terms. */
typedef struct gc_wanted {
  uint64_t id[GPUIR_MAX_TERMS];
  gpuir__list list[GPUIR_MAX_TERMS];
  uint32_t entry[GPUIR_MAX_TERMS]; /* 1 + entry; 0: none, as the list is in its term */
  int missing[GPUIR_MAX_TERMS];
  uint32_t n;
} gc_wanted;

/* Ends the holds of a query's first n lists. Those from number `from` on that were to be loaded will not come. */
static void gc_cache_undo(gpuir_cuda *c, const gc_wanted *w, uint32_t n, uint32_t from) {
  uint32_t i;
  for (i = 0; i < n; i++) {
    if (!w->entry[i]) continue;
    if (w->missing[i] && i >= from) gc_cache_lose(c, c->cache, w->entry[i] - 1);
    else gc_cache_let_go(c, c->cache, w->entry[i] - 1);
  }
}

/* Notes what has to change before asking again can succeed. */
static void gc_cache_note(const gc_cache *k, gc_holds *held) {
  held->releases = k->releases;
  held->pins = k->pins;
}

/* Loads the missing lists, without the lock, and tells that they are there. */
static int gc_cache_load_all(gpuir_cuda *c, gc_holds *held, gc_transfer *transfer, gc_wanted *w, int *full,
    gpuir_error *err) {
  gc_cache *k = c->cache;
  uint32_t done, i;
  int status = GPUIR_OK;
  for (done = 0; done < w->n; done++) {
    uint32_t entry = w->entry[done] - 1;
    if (!w->missing[done]) continue;
    status = gc_cache_load(c, transfer, &entry, &w->list[done], full, err);
    w->entry[done] = entry + 1;
    if (status || *full) break;
  }
  (void)pthread_mutex_lock(&k->lock);
  for (i = 0; i < done; i++)
    if (w->missing[i]) k->entries[w->entry[i] - 1].state = GC_HERE;
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

/* Makes a query's lists resident, and holds them until they are released. Lists that stand in their terms need no
 * place. *full: the lists in use leave no room for them. */
static int gc_cache_hold_all(gpuir_cuda *c, gc_holds *held, gc_transfer *transfer, gc_wanted *w, gc_term *terms,
    int *full, gpuir_error *err) {
  gc_cache *k = c->cache;
  uint32_t i;
  int missing = 0, status = GPUIR_OK;
  (void)pthread_mutex_lock(&k->lock);
  for (i = 0; i < w->n && !*full; i++) {
    w->missing[i] = 0;
    w->entry[i] = terms[i].kind == GC_INLINE ? 0 : gc_cache_hold(c, held, w->id[i], &w->list[i], &w->missing[i]);
    *full = !w->entry[i] && terms[i].kind != GC_INLINE;
    missing |= w->missing[i];
  }
  if (*full) {
    gc_cache_undo(c, w, i - 1, 0);
    gc_cache_note(k, held);
  }
  (void)pthread_mutex_unlock(&k->lock);
  if (missing && !*full) status = gc_cache_load_all(c, held, transfer, w, full, err);
  if (status || *full) return status;
  for (i = 0; i < w->n; i++) { /* held lists do not move */
    const gc_cache_entry *s = &k->entries[w->entry[i] - 1];
    gc_term *t = &terms[i];
    if (!w->entry[i]) {
      __atomic_fetch_add(&c->info.lists_hit, 1, __ATOMIC_RELAXED);
      continue;
    }
    if (t->kind == GC_LONG) t->first_block = s->unit;
    t->docs = s->unit * k->unit_bytes;
    t->docs_len = s->docs_len;
    t->freqs = t->docs + GC_ALIGN(s->docs_len);
    t->freqs_len = s->freqs_len;
    held->entries[held->n++] = w->entry[i] - 1;
  }
  return GPUIR_OK;
}

/* Waits until the held lists are in the stream; other searchers take no longer for that than to copy a query's lists.
 * Returns 0 if one of them will not come. */
static int gc_cache_await(gc_cache *k, gc_holds *held) {
  size_t i;
  int come = 1;
  if (!k || !held->coming) return 1;
  held->coming = 0;
  (void)pthread_mutex_lock(&k->lock);
  for (i = 0; i < held->n; i++) {
    const gc_cache_entry *s = &k->entries[held->entries[i]];
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
  for (i = 0; i < held->n; i++) gc_cache_let_go(c, k, held->entries[i]);
  gc_cache_tell(k);
  (void)pthread_mutex_unlock(&k->lock);
  held->n = 0;
  held->coming = 0;
}

/* Waits until lists are released or come, or none is held; returns 0 if that did not happen within `ns`. */
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

/* Frees a cache. All transfers are waited for first. */
static void gc_cache_close(gpuir_cuda *c) {
  gc_cache *k = c->cache;
  if (!k) return;
  gc_stream_close(k->stream);
  if (k->locked.file) (void)cudaHostUnregister(k->locked.file);
  gpuir__free(&c->a, k->sizes, (size_t)c->ix->stat.longs * sizeof *k->sizes);
  gpuir__free(&c->a, k->entries, k->most * sizeof *k->entries);
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

/* Makes the lock and its condition, which uses the clock of gpuir__now. */
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
  k->nunits = gpuir__min64((room - 8192) / (GC_DIRECTORY_BYTES + k->unit_bytes), UINT32_MAX / 2);
  k->most = (uint32_t)gpuir__min64(gpuir__min64(k->nunits, GC_CACHE_ENTRIES), ix->stat.terms);
  k->entries = (gc_cache_entry *)gpuir__alloc_zero(&c->a, k->most * sizeof *k->entries);
  k->order = (uint32_t *)gpuir__alloc_zero(&c->a, k->most * sizeof *k->order);
  for (k->mask = 1; k->mask < k->most; k->mask = 2 * k->mask + 1) {}
  k->heads = (uint32_t *)gpuir__alloc_zero(&c->a, ((size_t)k->mask + 1) * sizeof *k->heads);
  k->sizes = (uint2 *)gpuir__alloc_zero(&c->a, (size_t)ix->stat.longs * sizeof *k->sizes);
  if (!k->entries || !k->order || !k->heads || !k->sizes) return gpuir__fail_nomem(err);
  for (i = k->most; i--;) {
    k->entries[i].next = k->vacant;
    k->vacant = i + 1;
  }
  return gc_cache_make_lock(k, err);
}

/* Opens an empty cache with a slab of `room` bytes. */
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
  size = (size_t)(k->nunits * (GC_DIRECTORY_BYTES + k->unit_bytes) + 8192);
  s = gc_device_alloc(c, size, &slab, err);
  if (s) return s;
  GC_TRY(cudaMemset(slab, 0, size), "clearing the slab");
  gc_cache_lay_out(k, &c->view, (uint8_t *)slab);
  s = gc_stream_open(&k->stream, 0, err);
  if (!s) gc_lock(&k->locked, c);
  return s;
}

/* Makes what a launch transfers lists with. */
static int gc_transfer_open(const gpuir_cuda *c, gc_transfer *transfer, gpuir_error *err) {
  int status = gc_pipe_open(&transfer->pipe, c->cache->stream, err);
  transfer->pipe.locked = c->cache->locked;
  return status ? status : gc_recoder_open(&transfer->recoder, &c->a, &transfer->pipe, 1, err);
}

/* Frees what a launch transfers lists with. */
static void gc_transfer_close(const gpuir_cuda *c, gc_transfer *transfer) {
  gc_pipe_close(&transfer->pipe);
  gc_recoder_close(&transfer->recoder, &c->a);
}

/* What follows opens indexes: the host compiler optimizes it less, as said at the end of [cuda-13-prompt]. */
#pragma GCC push_options
#pragma nv_diag_suppress 1675
#pragma GCC optimize("Og")
#pragma nv_diag_default 1675
