
/* ========================
 * [cuda-08-sums]  OR without pruning: all slices of a tile are added up
 *
 * A query's lists are cut lists, whose slices are added strip by strip, and sparse ones, whose few postings in a tile
 * are looked up. gc_places finds the sparse lists' postings within each tile. gc_sum_tiles takes the tiles one after
 * another, and each tile for all queries: so the strips that queries share come from the L2 cache.
 *
 * Uses      [cuda-03-bp128], [cuda-05-expand] to [cuda-07-or].
 * Start at  gc_places, gc_sum_tiles.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_SUM_WORKERS 6u /* warps that add strips; one more adds sparse lists, and one schedules */
#define GC_SUM_BLOCKS 3 /* blocks of threads on a multiprocessor */
#define GC_SUM_AHEAD 4u /* strips that a warp loads before it adds the first of them */
#define GC_SUM_THREADS (32u * (GC_SUM_WORKERS + 2u))
#define GC_SUM_ROUND (GC_SUM_WORKERS * GC_SUM_AHEAD) /* strips of a round of all workers */
#define GC_SUM_GRAB 4u /* pairs of a query and a tile that are taken at once */
#define GC_SUM_PARTS 8u /* blocks of threads that share a list in gc_places */

/* Finds the postings of sparse lists within each tile: first[t] becomes the number of the first posting from tile t
 * on. */
static __global__ void __launch_bounds__(256)
    gc_places(const __grid_constant__ gc_view v, const __grid_constant__ gc_launch_view b) {
  gc_chained();
  const gc_term &t = b.terms[b.sums.sparse[blockIdx.x / GC_SUM_PARTS]];
  const uint32_t tile = b.sums.lists.tile, ntiles = b.sums.lists.ntiles, part = blockIdx.x % GC_SUM_PARTS;
  uint32_t *first = b.sums.first + (uint64_t)t.tile_row * (ntiles + 1), i, at;
  const uint32_t from = (uint32_t)((uint64_t)t.df * part / GC_SUM_PARTS),
                 end = (uint32_t)((uint64_t)t.df * (part + 1) / GC_SUM_PARTS);
  const auto note = [&](uint32_t number, uint32_t before, uint32_t doc) {
    uint32_t to = min(doc / tile, ntiles - 1);
    for (at = number ? before / tile + 1 : 0; at <= to; at++) first[at] = number;
    if (number == t.df - 1)
      for (at = to + 1; at <= ntiles; at++) first[at] = t.df;
  };
  if (t.kind == GC_LONG) {
    for (i = from + threadIdx.x; i < end; i += blockDim.x) note(i, i ? gc_doc_at(v, t, i - 1) : 0, gc_doc_at(v, t, i));
  } else if (!part && threadIdx.x < 32) {
    const gc_postings p = gc_decode_both(v, t, 0);
    const uint32_t before = __shfl_up_sync(GC_WARP, p.doc[3], 1);
    for (i = 0; i < 4; i++)
      if (4 * threadIdx.x + i < p.n) note(4 * threadIdx.x + i, i ? p.doc[i - 1] : before, p.doc[i]);
  }
}

/* What is added up: a tile for a query. */
typedef struct gc_sum_item {
  unsigned long long floor;
  uint32_t job, tile; /* job GC_NONE: there is no more work */
  uint32_t first, n; /* its lists in b.sums.rows; n 0: nothing is to be done */
} gc_sum_item;

#define GC_SUM_RING 8u

struct gc_shared_sum {
  enum : uint32_t { KEYS = 1024u, NOTED = 512u };
  unsigned long long keys[KEYS]; /* survivors of the tile */
  gc_sum_item item[GC_SUM_RING]; /* the next items, a ring */
  uint32_t hist[256];
  uint16_t noted[NOTED]; /* noted documents, by their number in the tile */
  uint32_t nkeys[2], nnoted[2]; /* by the parity of the tile */
  uint32_t refine, pushed;
  uint32_t now; /* 1: the floor of the tile's job is to be raised now */
};

/* Where a block of threads stands. */
typedef struct gc_sum_place {
  uint32_t at, side; /* number of the item; parity of the tile */
} gc_sum_place;

/* Returns the item of this number. */
static __device__ __forceinline__ gc_sum_item *gc_sum_at(gc_shared_sum *sh, uint32_t at) {
  return &sh->item[at % GC_SUM_RING];
}

/* Loads from where they are called. The compiler would move a plain load of memory that nobody writes behind the next
 * barrier, where the warp would wait for it. */
static __device__ __forceinline__ uint2 gc_sum_load2(const void *p) {
  uint2 x;
  asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(x.x), "=r"(x.y) : "l"(p));
  return x;
}

static __device__ __forceinline__ uint4 gc_sum_load4(const void *p) {
  uint4 x;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "l"(p));
  return x;
}

static __device__ __forceinline__ uint32_t gc_sum_load1(const void *p) {
  uint32_t x;
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(x) : "l"(p));
  return x;
}

/* ---- finding a tile's postings ----
 *
 * Each warp does so for itself, one lane per list, in three steps: it loads the lists of item i + 3, their places in
 * the tile of item i + 2, and the postings of item i + 1. So each load has the time of an item to arrive. */

/* A lane's list, and the strips or postings from .. to - 1 that it has in a tile. */
typedef struct gc_sum_cursor {
  uint4 list; /* a gc_sum_list */
  uint32_t from, to;
} gc_sum_cursor;

/* This and gc_sum_load_places load rows of zeros for items that are not there: the compiler would wait for a load under
 * a condition where the paths join. */
template <bool SPARSE>
static __device__ __forceinline__ void gc_sum_load_list(const gc_launch_view &b, const gc_sum_item *item, uint4 &list) {
  const uint4 *p = (const uint4 *)b.sums.rows + item->first + gc_lane();
  if (SPARSE) {
    list = gc_sum_load4(p);
  } else { /* the rest is not needed */
    const uint2 half = gc_sum_load2(p);
    list.x = half.x;
    list.y = half.y;
  }
}

/* Loads where the lane's list begins and ends in the item's tile. */
static __device__ __forceinline__ void gc_sum_load_places(const gc_launch_view &b, const gc_sum_item *item,
    gc_sum_cursor &l) {
  const uint32_t *p = (l.list.y >> 30 ? b.sums.first : b.sums.lists.starts) + l.list.x + item->tile;
  l.from = gc_sum_load1(p);
  l.to = gc_sum_load1(p + 1);
}

/* What a lane's list has in a tile, in units: strips, or 32 postings of a sparse list. */
typedef struct gc_sum_range {
  uint32_t end; /* the units of lower lanes and of this one */
  uint32_t start; /* unit i is number start + i, of strips or of postings */
  uint32_t q, postings, who;
  uint32_t n; /* units of all lanes */
  uint32_t shorts; /* lists without a directory, a bit each */
  bool wipe; /* 1: all sums are cleared. 0: the warps clear those that they have added to */
} gc_sum_range;

/* Finds the ranges: with SPARSE of sparse lists, otherwise of cut ones. */
template <bool SPARSE>
static __device__ __forceinline__ gc_sum_range gc_sum_find(const gc_sum_item *item, const gc_sum_cursor &l) {
  const uint32_t kind = l.list.y >> 30, most = SPARSE ? l.list.w : 1u << 26, live = gc_lane() < item->n;
  const uint32_t count = live && l.to - l.from <= most ? l.to - l.from : 0; /* a damaged list's count may be anything */
  const uint32_t strips = kind == 0 ? count : 0, sparse_units = kind == 1 ? (count + 31) / 32 : 0;
  gc_sum_range r;
  r.end = gc_scan(SPARSE ? sparse_units : strips);
  r.n = __shfl_sync(GC_WARP, r.end, 31);
  r.start = SPARSE ? l.from + l.list.z - 32 * (r.end - sparse_units) : l.from - (r.end - strips);
  r.q = l.list.y & 0x3fffffff;
  r.postings = SPARSE ? count + 32 * (r.end - sparse_units) : 0;
  r.who = l.list.z;
  r.shorts = __ballot_sync(GC_WARP, kind == 2 && count);
  r.wipe = r.shorts || __reduce_add_sync(GC_WARP, strips) > 2 * GC_SUM_ROUND ||
      __reduce_add_sync(GC_WARP, sparse_units) > GC_SUM_AHEAD;
  return r;
}

/* ---- adding to a tile's sums ---- */

/* Where documents are noted whose sums reach the need. */
typedef struct gc_sum_notes {
  uint32_t sums, need; /* sums: their shared address */
  uint16_t *noted;
  uint32_t *count;
} gc_sum_notes;

/* Adds c to the sum at a shared address; returns what it was before. */
static __device__ __forceinline__ uint32_t gc_sum_atomic(uint32_t at, uint32_t c) {
  uint32_t old;
  asm volatile("atom.shared.add.u32 %0, [%1], %2;" : "=r"(old) : "r"(at), "r"(c) : "memory");
  return old;
}

/* Clears the sum at a shared address. */
static __device__ __forceinline__ void gc_sum_clear(uint32_t at) {
  asm volatile("st.shared.u32 [%0], %1;" : : "r"(at), "r"(0) : "memory");
}

/* Clears all sums, by all warps but the scheduling one. */
static __device__ __forceinline__ void gc_sum_wipe(uint32_t sums, uint32_t tile) {
  uint32_t i;
#pragma unroll 4
  for (i = threadIdx.x; i < tile / 4; i += GC_SUM_THREADS - 32)
    asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" : : "r"(sums + 16 * i), "r"(0) : "memory");
}

/* Notes the document at `place`, if adding c to the sum `old` has lifted it to the need. */
static __device__ __forceinline__ void gc_sum_note(const gc_sum_notes &n, uint32_t place, uint32_t old, uint32_t c) {
  if (n.need - 1 - old < c) {
    const uint32_t at = atomicAdd(n.count, 1);
    if (at < gc_shared_sum::NOTED) n.noted[at] = (uint16_t)(place / 4);
  }
}

/* Adds a strip. */
static __device__ __forceinline__ void gc_sum_add(const gc_sum_notes &n, uint2 place, uint4 add, uint32_t q) {
  const uint32_t at[4] = {place.x & 0xffff, place.x >> 16, place.y & 0xffff, place.y >> 16};
  const uint32_t c[4] = {q * add.x, q * add.y, q * add.z, q * add.w};
  uint32_t old[4], most = 0, i;
#pragma unroll
  for (i = 0; i < 4; i++) old[i] = gc_sum_atomic(n.sums + at[i], c[i]);
#pragma unroll
  for (i = 0; i < 4; i++) most = __viaddmax_u32(old[i], c[i], most);
  if (most >= n.need) {
#pragma unroll
    for (i = 0; i < 4; i++) gc_sum_note(n, at[i], old[i], c[i]);
  }
}

/* Decodes a short list and adds it. */
static __device__ __noinline__ void gc_sum_short(const gc_view &v, const gc_launch_view &b, const gc_sum_item *item,
    uint32_t who, const gc_sum_notes &n) {
  const gc_term &t = b.terms[who];
  const uint32_t tile = b.sums.lists.tile, base = item->tile * tile;
  const gc_postings p = gc_decode_both(v, t, 0);
  uint32_t i;
  for (i = 0; i < 4; i++)
    if (4 * gc_lane() + i < p.n && p.doc[i] - base < tile) {
      const uint32_t c = t.q * gc_contribution(t.weight, p.freq[i], gc_norm(v, b.jobs[item->job], p.doc[i]));
      const uint32_t place = 4 * (p.doc[i] - base);
      gc_sum_note(n, place, gc_sum_atomic(n.sums + place, c), c);
    }
}

/* A warp's strips of a tile: those that it has loaded. */
struct gc_sum_strips {
  enum : uint32_t { STEP = GC_SUM_WORKERS, ROUND = GC_SUM_ROUND };
  static const bool SPARSE = false;
  uint2 place[GC_SUM_AHEAD];
  uint4 add[GC_SUM_AHEAD];
  uint32_t q[GC_SUM_AHEAD];
  struct done {
    uint2 place[GC_SUM_AHEAD];
  };
  /* Loads the strips from number i on that are below r.n. For others it loads the first strip of all. */
  __device__ __forceinline__ void fetch(const gc_view &, const gc_launch_view &b, const gc_sum_range &r, uint32_t i) {
    uint32_t u;
#pragma unroll
    for (u = 0; u < GC_SUM_AHEAD; u++, i += STEP) {
      const uint32_t of = __popc(__ballot_sync(GC_WARP, r.end <= i)) & 31;
      const uint32_t number = __shfl_sync(GC_WARP, r.start, of) + i;
      const uint8_t *p = b.sums.lists.strips + (uint64_t)(i < r.n ? number : 0) * GC_STRIP;
      q[u] = __shfl_sync(GC_WARP, r.q, of);
      place[u] = gc_sum_load2(p + 8 * gc_lane());
      add[u] = gc_sum_load4(p + 2 * GPUIR__BLOCK + 16 * gc_lane());
    }
  }
  __device__ __forceinline__ void sum(const gc_view &, const gc_sum_notes &notes, uint32_t, uint32_t, uint32_t i,
      uint32_t n, done &d) {
    uint32_t u;
#pragma unroll
    for (u = 0; u < GC_SUM_AHEAD; u++, i += STEP) {
      d.place[u] = place[u];
      if (i < n) gc_sum_add(notes, place[u], add[u], q[u]);
    }
  }
  static __device__ __forceinline__ void undo(uint32_t sums, uint32_t i, uint32_t n, const done &d) {
    uint32_t u;
#pragma unroll
    for (u = 0; u < GC_SUM_AHEAD; u++, i += STEP)
      if (i < n) {
        gc_sum_clear(sums + (d.place[u].x & 0xffff));
        gc_sum_clear(sums + (d.place[u].x >> 16));
        gc_sum_clear(sums + (d.place[u].y & 0xffff));
        gc_sum_clear(sums + (d.place[u].y >> 16));
      }
  }
};

/* A tile's postings of sparse lists, one lane per posting: those that the warp has loaded. */
struct gc_sum_sparse {
  enum : uint32_t { STEP = 1, ROUND = GC_SUM_AHEAD };
  static const bool SPARSE = true;
  uint2 base[GC_SUM_AHEAD];
  uint32_t narrow[GC_SUM_AHEAD], add[GC_SUM_AHEAD], q[GC_SUM_AHEAD], at[GC_SUM_AHEAD]; /* at: the posting's number */
  struct done {
    uint32_t place[GC_SUM_AHEAD];
  };
  __device__ __forceinline__ void fetch(const gc_view &v, const gc_launch_view &, const gc_sum_range &r, uint32_t i) {
    uint32_t u;
#pragma unroll
    for (u = 0; u < GC_SUM_AHEAD; u++, i++) {
      const uint32_t of = __popc(__ballot_sync(GC_WARP, r.end <= i)) & 31;
      const uint32_t start = __shfl_sync(GC_WARP, r.start, of), all = __shfl_sync(GC_WARP, r.postings, of);
      const bool is = i < r.n && 32 * i + gc_lane() < all;
      const uint32_t posting = is ? start + 32 * i + gc_lane() : 0;
      const uint32_t times = __shfl_sync(GC_WARP, r.q, of);
      q[u] = is ? times : 0;
      narrow[u] = gc_sum_load1((const uint32_t *)v.narrow + posting / 2);
      add[u] = gc_sum_load1(v.impact + posting);
      base[u] = gc_sum_load2(v.bases + posting / GPUIR__BLOCK);
      at[u] = posting;
    }
  }
  __device__ __forceinline__ void sum(const gc_view &v, const gc_sum_notes &notes, uint32_t first, uint32_t tile,
      uint32_t i, uint32_t n, done &d) {
    uint32_t u;
#pragma unroll
    for (u = 0; u < GC_SUM_AHEAD; u++, i++) {
      uint32_t doc = base[u].x + (narrow[u] >> at[u] % 2 * 16 & 0xffff);
      d.place[u] = GC_NONE;
      if (i >= n || !q[u]) continue;
      if (base[u].y) doc = __ldg(v.wide + (uint64_t)(base[u].y - 1) * GPUIR__BLOCK + at[u] % GPUIR__BLOCK);
      doc -= first;
      if (doc >= tile) continue;
      d.place[u] = 4 * doc;
      gc_sum_note(notes, 4 * doc, gc_sum_atomic(notes.sums + 4 * doc, q[u] * add[u]), q[u] * add[u]);
    }
    __syncwarp();
  }
  static __device__ __forceinline__ void undo(uint32_t sums, uint32_t i, uint32_t n, const done &d) {
    uint32_t u;
#pragma unroll
    for (u = 0; u < GC_SUM_AHEAD; u++, i++)
      if (i < n && d.place[u] != GC_NONE) gc_sum_clear(sums + d.place[u]);
  }
};

/* ---- tile after tile ---- */

/* Waits for all threads. Each role waits at instructions of its own. barrier.sync allows that; bar.sync and
 * __syncthreads demand that all threads wait at the same one. */
static __device__ __forceinline__ void gc_sum_wait(void) {
  asm volatile("barrier.sync 1, %0;" : : "n"(GC_SUM_THREADS) : "memory");
}

/* Waits until a tile's sums are complete. Returns how many documents were noted, or GC_SUM_STOP if there are so many
 * that all threads have to collect them. */
#define GC_SUM_STOP 0x80000000u
static __device__ __forceinline__ uint32_t gc_sum_complete(const gc_shared_sum *sh, uint32_t side) {
  gc_sum_wait();
  const uint32_t noted = sh->nnoted[side];
  return noted > 32 ? GC_SUM_STOP : noted;
}

/* Moves the noted documents of a tile, 32 at most, to the job's buffer, by one warp. It waits for all threads once it
 * has read their sums, so that the others may clear these. */
static __device__ __forceinline__ void gc_sum_push(const gc_launch_view &b, const gc_sum_item *item, uint32_t noted,
    uint32_t side, gc_shared_sum *sh, uint32_t sums) {
  const uint32_t lane = gc_lane(), j = item->job, base = item->tile * b.sums.lists.tile;
  gc_state *state = b.states + j;
  unsigned long long key = 0;
  uint32_t vote, at = 0, step;
  if (lane < noted) {
    uint32_t sum;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(sum) : "r"(sums + 4 * sh->noted[lane]) : "memory");
    key = gpuir__key(sum, base + sh->noted[lane]);
  }
  gc_sum_wait();
  if (!lane) sh->nnoted[side] = 0;
  vote = __ballot_sync(GC_WARP, key > item->floor);
  if (!vote) return;
  if (!lane) at = atomicAdd(&state->count, __popc(vote));
  at = __shfl_sync(GC_WARP, at, 0);
  if (key > item->floor && at + gc_rank(vote) < b.room) __stcg(b.cand + (uint64_t)j * b.room + at + gc_rank(vote), key);
  step = (at + __popc(vote)) / max(2 * b.jobs[j].k, 64u);
  if (!lane && step && 32 - __clz(step) > *(volatile uint32_t *)&state->level) sh->now = 1;
}

/* Adds up tiles until all threads are needed. It is warp number `warp` of those that share the units. */
template <typename Units>
static __device__ __forceinline__ void gc_sum_work(const gc_view &v, const gc_launch_view &b, gc_shared_sum *sh,
    uint32_t sums, uint32_t warp, gc_sum_place &to) {
  const uint32_t tile = b.sums.lists.tile;
  Units units;
  gc_sum_cursor l1, l2; /* of item to.at + 1, of item to.at + 2 */
  gc_sum_range r;
  uint4 list; /* of item to.at + 3 */
  l2.list = list = make_uint4(0, 0, 0, 0);
  l2.from = l2.to = 0;
  gc_sum_load_list<Units::SPARSE>(b, gc_sum_at(sh, to.at), l2.list);
  gc_sum_load_places(b, gc_sum_at(sh, to.at), l2);
  r = gc_sum_find<Units::SPARSE>(gc_sum_at(sh, to.at), l2);
  units.fetch(v, b, r, warp);
  l1 = l2;
  gc_sum_load_list<Units::SPARSE>(b, gc_sum_at(sh, to.at + 1), l1.list);
  gc_sum_load_places(b, gc_sum_at(sh, to.at + 1), l1);
  gc_sum_load_list<Units::SPARSE>(b, gc_sum_at(sh, to.at + 2), list);
  for (;;) {
    const gc_sum_item *item = gc_sum_at(sh, to.at);
    if (item->job == GC_NONE) return;
    const gc_sum_notes notes = {sums, gc_need(item->floor), sh->noted, &sh->nnoted[to.side]};
    const uint32_t n = r.n, first = item->tile * tile;
    const bool wipe = r.wipe;
    typename Units::done done, then; /* places of the first two rounds; with more rounds, all sums are cleared */
    uint32_t i, what;
    units.sum(v, notes, first, tile, warp, n, done);
    if (warp + Units::ROUND < n) {
      units.fetch(v, b, r, warp + Units::ROUND);
      units.sum(v, notes, first, tile, warp + Units::ROUND, n, then);
      for (i = warp + 2 * Units::ROUND; i < n; i += Units::ROUND) {
        typename Units::done forgotten;
        units.fetch(v, b, r, i);
        units.sum(v, notes, first, tile, i, n, forgotten);
      }
    }
    if (Units::SPARSE)
      for (i = r.shorts; i; i &= i - 1) gc_sum_short(v, b, item, __shfl_sync(GC_WARP, r.who, __ffs(i) - 1), notes);
    r = gc_sum_find<Units::SPARSE>(gc_sum_at(sh, to.at + 1), l1);
    units.fetch(v, b, r, warp);
    l1.list = list;
    gc_sum_load_places(b, gc_sum_at(sh, to.at + 2), l1);
    gc_sum_load_list<Units::SPARSE>(b, gc_sum_at(sh, to.at + 3), list);
    what = gc_sum_complete(sh, to.side);
    if (what == GC_SUM_STOP) return;
    if (what && Units::SPARSE) gc_sum_push(b, item, what, to.side, sh, sums);
    else if (what) gc_sum_wait();
    if (wipe) {
      gc_sum_wipe(sums, tile);
    } else {
      Units::undo(sums, warp, n, done);
      if (!Units::SPARSE && warp + Units::ROUND < n) Units::undo(sums, warp + Units::ROUND, n, then);
    }
    to.side ^= 1;
    gc_sum_wait();
    if (sh->now) return;
    to.at++;
  }
}

/* What the scheduling warp has taken: its place, and the job of the next item. */
typedef struct gc_sum_ahead {
  uint32_t pos, end; /* pairs of a tile and a query that it has taken and not handed out */
  uint32_t tile;
  uint4 head; /* a gc_sum_job; x GC_NONE: there is no more work */
} gc_sum_ahead;

/* Takes the next pair of a tile and a query. */
static __device__ __forceinline__ void gc_sum_take(const gc_launch_view &b, gc_sum_ahead &a) {
  const uint64_t all = (uint64_t)b.sums.n * b.sums.lists.ntiles;
  if (a.pos == a.end) {
    if (!gc_lane()) a.pos = atomicAdd(&b.control->next_sum, GC_SUM_GRAB);
    a.pos = __shfl_sync(GC_WARP, a.pos, 0);
    a.end = a.pos + GC_SUM_GRAB;
  }
  a.head = make_uint4(GC_NONE, 0, 0, GC_NONE); /* with lists of zeros */
  if (a.pos < all) {
    a.tile = a.pos / b.sums.n;
    a.head = __ldg((const uint4 *)b.sums.jobs + a.pos % b.sums.n);
    a.pos++;
  } else {
    a.end = a.pos;
  }
}

/* Describes the item of a.head, and takes the next pair. */
static __device__ __forceinline__ void gc_sum_describe(const gc_launch_view &b, gc_sum_ahead &a, gc_sum_item *item) {
  const uint4 head = a.head;
  const uint32_t tile = a.tile;
  uint32_t n = head.z;
  unsigned long long floor = 0;
  if (head.x != GC_NONE) {
    const gc_state *state = b.states + head.x;
    floor = gc_floor(state);
    if (state->done || (head.w != GC_NONE && b.states[head.w].count >= b.jobs[head.x].k)) n = 0;
  }
  gc_sum_take(b, a);
  if (!gc_lane()) {
    item->floor = floor;
    item->job = head.x;
    item->tile = tile;
    item->first = head.y;
    item->n = n;
  }
}

/* Schedules items until all threads are needed. */
static __device__ __forceinline__ void gc_sum_schedule(const gc_launch_view &b, gc_shared_sum *sh, uint32_t sums,
    gc_sum_ahead &ahead, gc_sum_place &to) {
  while (gc_sum_at(sh, to.at)->job != GC_NONE) {
    uint32_t what;
    gc_sum_describe(b, ahead, gc_sum_at(sh, to.at + 4));
    what = gc_sum_complete(sh, to.side);
    if (what == GC_SUM_STOP) return;
    if (what) gc_sum_wait();
    to.side ^= 1;
    gc_sum_wait();
    if (sh->now) return;
    to.at++;
  }
}

/* Collects the survivors of a tile, moves them to the job's buffer, and clears all sums. All threads call it. */
static __device__ __noinline__ void gc_sum_survivors(const gc_launch_view &b, const gc_sum_item *item, uint32_t side,
    gc_shared_sum *sh, uint4 *sums4) {
  uint32_t *sums = (uint32_t *)sums4;
  const uint32_t j = item->job, tile = b.sums.lists.tile, base = item->tile * tile, k = b.jobs[j].k;
  const unsigned long long floor = item->floor;
  uint32_t i;
  if (sh->nnoted[side] <= gc_shared_sum::NOTED) gc_survivors_noted(sums, base, floor, side, sh);
  else gc_survivors_all(tile, b, j, sums4, base, floor, side, sh);
  __syncthreads();
  i = sh->nkeys[side];
  if (i > gc_shared_sum::KEYS) i = gc_keep_survivors(tile, b.states + j, k, gc_keys_sums{sums, base, floor}, side, sh);
  if (i) gc_push(b, j, k, i, sh);
  __syncthreads();
  if (i) gc_refine(b, j, k, sh);
  for (i = threadIdx.x; i < tile / 4; i += GC_SUM_THREADS) sums4[i] = make_uint4(0, 0, 0, 0);
  if (!threadIdx.x) sh->nkeys[side] = sh->nnoted[side] = 0;
}

/* Adds up tiles, each of them for all queries. The warps have three roles: workers add strips, one warp adds sparse
 * lists, and one schedules the items. The addition that lifts a sum to the need notes the document. The warps remember
 * where they have added, and clear these sums only, unless there were too many. */
static __global__ void __launch_bounds__(GC_SUM_THREADS, GC_SUM_BLOCKS)
    gc_sum_tiles(const __grid_constant__ gc_view v, const __grid_constant__ gc_launch_view b) {
  extern __shared__ uint4 gc_dynamic[];
  __shared__ gc_shared_sum sh;
  __shared__ gc_sum_ahead ahead;
  const uint32_t warp = __shfl_sync(GC_WARP, threadIdx.x / 32, 0),
                 sums = (uint32_t)__cvta_generic_to_shared(gc_dynamic);
  gc_sum_place to = {0, 0};
  gc_chained();
  gc_sum_wipe(sums, b.sums.lists.tile);
  if (threadIdx.x < 2) sh.nkeys[threadIdx.x] = sh.nnoted[threadIdx.x] = 0;
  if (warp == GC_SUM_WORKERS + 1) {
    gc_sum_ahead a = {0, 0, 0, {0, 0, 0, 0}};
    gc_sum_take(b, a);
    for (uint32_t i = 0; i < 4; i++) gc_sum_describe(b, a, gc_sum_at(&sh, i));
    if (!gc_lane()) {
      ahead = a;
      sh.now = 0;
    }
  }
  __syncthreads();
  for (;;) {
    if (warp < GC_SUM_WORKERS) {
      gc_sum_work<gc_sum_strips>(v, b, &sh, sums, warp, to);
    } else if (warp == GC_SUM_WORKERS) {
      gc_sum_work<gc_sum_sparse>(v, b, &sh, sums, 0, to);
    } else {
      gc_sum_ahead a = ahead;
      gc_sum_schedule(b, &sh, sums, a, to);
      __syncwarp(); /* all lanes have read it */
      if (!gc_lane()) ahead = a;
    }
    const gc_sum_item *item = gc_sum_at(&sh, to.at);
    if (item->job == GC_NONE) return;
    if (sh.now) {
      const uint32_t j = item->job;
      __syncthreads();
      if (!threadIdx.x) sh.now = 0;
      gc_refine(b, j, b.jobs[j].k, &sh);
    } else {
      gc_sum_survivors(b, item, to.side, &sh, gc_dynamic);
      to.side ^= 1;
    }
    __syncthreads();
    to.at++;
  }
}
