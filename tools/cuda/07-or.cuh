
/* ========================
 * [cuda-07-or]  OR: docID tiles in shared memory
 *
 * The docIDs are cut into tiles. gc_tiles finds the blocks of each list that reach into a tile, and bounds what they
 * can contribute there. gc_order sorts a job's tiles by descending sum of bounds. gc_or scores tile after tile in that
 * order, until a tile's bound is below the threshold: then no tile behind it can add a hit.
 * tools/results/cuda_notes.txt says what was predicted, counted and measured of each kernel.
 *
 * Uses      [cuda-03-bp128], [cuda-05-expand].
 * Start at  gc_tiles, gc_order, gc_or.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_OR_WORKERS 256u /* threads that score expanded lists; one more warp schedules the tiles */
#define GC_PACKED_WORKERS 384u /* threads that decode lists in place: more of them, as each waits longer for memory */
#define GC_OR_THREADS(EXPANDED) ((EXPANDED) ? GC_OR_WORKERS + 32u : GC_PACKED_WORKERS + 32u)
#define GC_AHEAD 3u /* blocks that a warp loads before it adds the first of them */
#define GC_KEYS 1024u /* survivors of a tile at most that are selected among in shared memory */
#define GC_BOUND_BLOCKS 2048u /* blocks of a list whose bounds one block of threads spreads over tiles */
#define GC_BUCKETS 256u /* of tile bounds */

/* ---- which blocks of a list reach into a tile, and what they can contribute there ----
 *
 * first[t] is twice the number of the first block whose last docID is not below tile t, plus 1 if that block begins in
 * an earlier tile. So tile t has blocks first[t] / 2 up to first[t+1] / 2, and that one too if first[t+1] is odd. */

/* Returns the bound of a block under any k1 and b. It is what gpuir__bound finds by its table. */
static __device__ uint32_t gc_pairs_bound(const gc_term &t, const gc_job &j, const gpuir__pair *pairs) {
  float best = 0;
  uint32_t i;
  for (i = 0; i < GPUIR__BLOCK_PAIRS; i++) {
    uint32_t pair = __ldg(pairs + i), tf = pair & 255, len = pair >> 8;
    if (tf) {
      float f = __uint2float_rn(tf < 255 ? gpuir__code_value(tf) : GPUIR__CAP);
      best = fmaxf(best, __fdiv_rn(f, __fadd_rn(f, gpuir__norm_of(j.norm_a, j.norm_b, gpuir__code_value(len)))));
    }
  }
  return t.q * gpuir__slacken(__float2uint_rn(__fmul_rn(t.weight, best)));
}

/* Spreads the bounds of blocks over tiles: a block of threads takes GC_BOUND_BLOCKS blocks of a list, one thread per
 * block. */
static __global__ void __launch_bounds__(256)
    gc_tiles(const __grid_constant__ gc_view v, const __grid_constant__ gc_launch_view b, int expanded) {
  uint32_t item;
  bool any = false;
  gc_chained();
  for (item = blockIdx.x + threadIdx.x * gridDim.x; item < b.ors.nbound_tasks; item += gridDim.x * blockDim.x)
    any |= !b.states[b.ors.bound_tasks[item].job].followed;
  if (!__syncthreads_or(any)) return; /* in most launches MaxScore takes all jobs */
  for (item = blockIdx.x; item < b.ors.nbound_tasks; item += gridDim.x) {
    const gc_bound_task task = b.ors.bound_tasks[item];
    if (b.states[task.job].followed) continue;
    const gc_term t = b.terms[task.term];
    const gc_job job = b.jobs[task.job];
    uint32_t *first = b.ors.first + (uint64_t)t.tile_row * (v.ntiles + 1),
             *bound = b.ors.bound + (uint64_t)t.tile_row * (v.ntiles + 1);
    if (t.kind == GC_LONG) {
      uint32_t end = min(t.nblocks, task.first + GC_BOUND_BLOCKS), i;
      for (i = task.first + threadIdx.x; i < end; i += blockDim.x) {
        uint64_t g = t.first_block + i;
        uint32_t last = __ldg(v.last + g), start = i ? __ldg(v.last + g - 1) + 1 : 0, tile, most;
        uint32_t to = min(last / v.tile, v.ntiles - 1), from = i ? (start - 1) / v.tile + 1 : 0;
        for (tile = from; tile <= to; tile++) first[tile] = i << 1 | (start < tile * v.tile);
        if (i == t.nblocks - 1)
          for (tile = to + 1; tile <= v.ntiles; tile++) first[tile] = t.nblocks << 1;
        if (t.negated) continue;
        most = expanded && job.stored ? t.q * __ldg(v.most + g)
                                      : gc_pairs_bound(t, job, v.bounds + g * GPUIR__BLOCK_PAIRS);
        for (tile = min(start / v.tile, v.ntiles - 1); tile <= to; tile++) atomicMax(bound + tile, most);
      }
    } else if (threadIdx.x < 32) { /* one block without a bound: its postings themselves */
      const gc_postings p = gc_decode_both(v, b.terms[task.term], 0);
      uint32_t i;
      for (i = 0; i < 4; i++)
        if (4 * threadIdx.x + i < p.n)
          atomicMax(bound + p.doc[i] / v.tile,
              t.negated ? 1 : t.q * gc_contribution(t.weight, p.freq[i], gc_norm(v, job, p.doc[i])));
    }
  }
}

/* Returns a tile's bucket. A greater bound never has a lower bucket, so that gc_next_tile may end a job by its
 * bucket. */
static __device__ __forceinline__ uint32_t gc_bucket(uint32_t bound, uint32_t greatest) {
  return min((uint32_t)__fmul_rn(__uint2float_rd(bound), __fdiv_rn(GC_BUCKETS - 1, __uint2float_ru(greatest))),
      GC_BUCKETS - 1);
}

/* Orders the tiles of an OR, one block of threads per OR: it sums up their bounds and sorts them in descending order,
 * by 256 buckets. */
static __global__ void __launch_bounds__(256)
    gc_order(const __grid_constant__ gc_view v, const __grid_constant__ gc_launch_view b) {
  __shared__ uint32_t count[GC_BUCKETS], greatest, live;
  gc_chained();
  const uint32_t j = b.ors.jobs[blockIdx.x];
  const gc_job job = b.jobs[j];
  gc_state *state = b.states + j;
  uint32_t *total = b.ors.total + (uint64_t)j * v.ntiles, *order = b.ors.order + (uint64_t)j * v.ntiles, t, i;
  if (!threadIdx.x) greatest = live = 0;
  for (i = threadIdx.x; i < GC_BUCKETS; i += blockDim.x) count[i] = 0;
  __syncthreads();
  if (!state->followed) {
    for (t = threadIdx.x; t < v.ntiles; t += blockDim.x) {
      uint32_t sum = 0;
      for (i = 0; i < job.npositive; i++)
        sum += b.ors.bound[(uint64_t)b.terms[job.first_term + i].tile_row * (v.ntiles + 1) + t];
      total[t] = sum;
      atomicMax(&greatest, sum);
    }
    __syncthreads();
    for (t = threadIdx.x; t < v.ntiles; t += blockDim.x)
      if (total[t]) atomicAdd(&count[GC_BUCKETS - 1 - (job.prune ? gc_bucket(total[t], greatest) : 0)], 1);
    __syncthreads();
    if (threadIdx.x < 32) {
      const uint32_t all = gc_scan_counts(count);
      if (threadIdx.x == 31) live = all;
    }
    __syncthreads();
    for (t = threadIdx.x; t < v.ntiles; t += blockDim.x)
      if (total[t]) order[atomicAdd(&count[GC_BUCKETS - 1 - (job.prune ? gc_bucket(total[t], greatest) : 0)], 1)] = t;
  }
  if (!threadIdx.x) {
    state->live = live;
    state->greatest = greatest;
  }
}

/* ---- one warp schedules the next tile while the others score ---- */

/* A list's blocks within a tile. */
typedef struct gc_range {
  uint32_t g; /* block i of the tile is block g + i of the directory; of a list without one, nothing */
  uint32_t end; /* its blocks are those below this i */
  uint32_t q;
  uint32_t term; /* its number in the launch; GC_SLOW: it is not expanded, or k1 and b are not the stored ones */
  uint32_t first, full; /* of a list with a directory: its first block, and how many of its blocks are full */
} gc_range;
#define GC_SLOW 0x80000000u

/* A tile to score. */
typedef struct gc_item {
  unsigned long long floor; /* of the job, when the tile was chosen */
  uint32_t job, tile; /* job GC_NONE: there is no more work */
  uint32_t n, blocks; /* lists that reach into the tile, and their blocks there */
  uint32_t npositive; /* how many of the lists are positive */
  __align__(16) gc_range range[GPUIR_MAX_TERMS];
} gc_item;

/* Where the scheduling warp stands. All its lanes hold the same. */
typedef struct gc_schedule {
  uint32_t job; /* whose tiles it hands out; GC_NONE: none yet */
  uint32_t helping; /* 1: all jobs have been begun, so it helps with those of others */
  uint32_t at; /* its place in the list of OR jobs */
  uint32_t pos, end; /* the positions of the job's tile order that it has taken */
} gc_schedule;

/* Returns a job that has tiles left: first one that nobody has begun, then any. GC_NONE: there is none. */
static __device__ uint32_t gc_pick_job(const gc_launch_view &b, gc_schedule &a) {
  uint32_t lane = gc_lane(), s;
  if (!a.helping) {
    uint32_t i = 0;
    if (!lane) i = atomicAdd(&b.control->next_or, 1);
    i = __shfl_sync(GC_WARP, i, 0);
    if (i < b.ors.n) return b.ors.jobs[i];
    a.helping = 1;
    a.at = blockIdx.x % b.ors.n;
  }
  for (s = 0; s < b.ors.n; s += 32) {
    uint32_t i = s + lane, found, j = GC_NONE;
    bool open = false;
    if (i < b.ors.n) {
      i = a.at + i < b.ors.n ? a.at + i : a.at + i - b.ors.n;
      j = b.ors.jobs[i];
      open = *(volatile uint32_t *)&b.states[j].next < b.states[j].live && !b.states[j].done;
    }
    found = __ballot_sync(GC_WARP, open);
    if (found) {
      uint32_t l = __ffs(found) - 1;
      a.at = __shfl_sync(GC_WARP, i, l);
      return __shfl_sync(GC_WARP, j, l);
    }
  }
  return GC_NONE;
}

/* Takes up a job whose tiles are still needed; returns false if there is none. */
static __device__ __forceinline__ bool gc_next_job(const gc_launch_view &b, gc_schedule &a) {
  for (;;) {
    uint32_t after;
    a.job = gc_pick_job(b, a);
    a.pos = a.end = 0;
    if (a.job == GC_NONE) return false;
    if (b.states[a.job].done) continue;
    after = b.jobs[a.job].after;
    if (after == GC_NONE || b.states[after].count < b.jobs[a.job].k) return true;
    if (!gc_lane()) b.states[a.job].next = UINT32_MAX / 2; /* the AND was enough */
  }
}

/* Takes positions of the job's tile order, if none are left. Returns false, and gives the job up, if it has no more. */
static __device__ __forceinline__ bool gc_next_positions(const gc_launch_view &b, gc_schedule &a) {
  gc_state *state = b.states + a.job;
  if (a.pos != a.end) return true;
  if (!gc_lane()) a.pos = atomicAdd(&state->next, b.ors.grab);
  a.pos = __shfl_sync(GC_WARP, a.pos, 0);
  a.end = min(a.pos + b.ors.grab, state->live);
  if (a.pos < a.end) return true;
  a.job = GC_NONE;
  return false;
}

/* Takes the tile of the next position; returns whether its bound reaches the floor. If the floor's bucket is higher, no
 * tile behind it reaches it either, and the job ends. */
static __device__ __forceinline__ bool gc_next_tile(const gc_view &v, const gc_launch_view &b, gc_schedule &a,
    uint32_t *tile, unsigned long long *floor) {
  const gc_job *job = b.jobs + a.job;
  gc_state *state = b.states + a.job;
  uint32_t total, need;
  *tile = b.ors.order[(uint64_t)a.job * v.ntiles + a.pos++];
  total = b.ors.total[(uint64_t)a.job * v.ntiles + *tile];
  *floor = __shfl_sync(GC_WARP, gc_floor(state), 0);
  need = gc_need(*floor);
  if (total >= need) return true;
  if (job->prune && gc_bucket(total, state->greatest) < gc_bucket(need, state->greatest)) {
    if (!gc_lane()) atomicMax(&state->next, UINT32_MAX / 2);
    a.job = GC_NONE;
  }
  return false;
}

/* Finds the blocks of term number `who` within a tile; returns how many there are. */
template <bool EXPANDED>
static __device__ __forceinline__ uint32_t gc_find_range(const gc_view &v, const gc_launch_view &b, const gc_job *job,
    uint32_t who, uint32_t tile, gc_range *range) {
  const gc_term *t = b.terms + who;
  const uint64_t tile_row = (uint64_t)t->tile_row * (v.ntiles + 1) + tile;
  uint32_t len;
  if (t->kind == GC_LONG) {
    uint32_t x = b.ors.first[tile_row], y = b.ors.first[tile_row + 1], start = x >> 1, end;
    end = min((y >> 1) + (y & 1), t->nblocks);
    len = end > start ? end - start : 0;
    range->first = (uint32_t)t->first_block;
    range->full = t->df / GPUIR__BLOCK;
    range->g = range->first + start;
  } else {
    len = b.ors.bound[tile_row] ? 1 : 0;
  }
  range->q = t->q;
  range->term = who | (EXPANDED && t->kind == GC_LONG && job->stored ? 0 : GC_SLOW);
  return len;
}

/* Describes a tile: the ranges of the lists that reach into it, in the order of the job's terms. Each lane takes a
 * term. */
template <bool EXPANDED>
static __device__ __forceinline__ void gc_fill_item(const gc_view &v, const gc_launch_view &b, uint32_t j,
    uint32_t tile, unsigned long long floor, gc_item *item) {
  const gc_job *job = b.jobs + j;
  const uint32_t lane = gc_lane();
  uint32_t i, n = 0, blocks = 0;
  for (i = 0; i < job->nterms; i += 32) {
    gc_range range = {0, 0, 0, 0, 0, 0};
    uint32_t len = 0, live, scan;
    if (i + lane < job->nterms) len = gc_find_range<EXPANDED>(v, b, job, job->first_term + i + lane, tile, &range);
    live = __ballot_sync(GC_WARP, len > 0);
    scan = gc_scan(len);
    if (len) {
      range.end = blocks + scan;
      range.g -= range.end - len;
      item->range[n + gc_rank(live)] = range;
    }
    blocks += __shfl_sync(GC_WARP, scan, 31);
    n += __popc(live);
    live = __ballot_sync(GC_WARP, len > 0 && i + lane < job->npositive);
    if (!lane) item->npositive = (i ? item->npositive : 0) + __popc(live);
  }
  if (!lane) {
    item->floor = floor;
    item->job = j;
    item->tile = tile;
    item->n = n;
    item->blocks = blocks;
  }
}

/* Finds the next tile that is worth scoring, by the scheduling warp. */
template <bool EXPANDED>
static __device__ void gc_schedule_tile(const gc_view &v, const gc_launch_view &b, gc_schedule &a, gc_item *item) {
  for (;;) {
    unsigned long long floor;
    uint32_t tile;
    if (a.job == GC_NONE && !gc_next_job(b, a)) {
      if (!gc_lane()) item->job = GC_NONE;
      return;
    }
    if (!gc_next_positions(b, a) || !gc_next_tile(v, b, a, &tile, &floor)) continue;
    gc_fill_item<EXPANDED>(v, b, a.job, tile, floor, item);
    return;
  }
}

/* ---- adding blocks to a tile's sums ---- */

/* Where documents are noted whose sums reach the need. All of it lies in shared memory. */
typedef struct gc_notes {
  uint32_t sums; /* shared address of the tile's sums, and of GC_SPARE more */
  uint32_t tile; /* how many sums the tile has */
  uint32_t below; /* the need, less one */
  uint32_t *noted, *count; /* the noted documents, by their number in the tile; how many there are */
} gc_notes;
#define GC_SPARE 32u /* sums behind the tile's, one per lane, for postings that lie outside it */

/* Returns the bytes of shared memory that a tile of so many documents takes. */
static size_t gc_tile_bytes(uint64_t tile) { return (size_t)(tile + GC_SPARE) * 4; }

/* Notes a document of the tile. Those beyond GC_KEYS are only counted: then all sums are read. */
static __device__ __forceinline__ void gc_note(const gc_notes &n, uint32_t local) {
  uint32_t at = atomicAdd(n.count, 1);
  if (at < GC_KEYS) n.noted[at] = local;
}

/* Adds to four documents' sums. The addition that lifts a sum to the need notes the document. Sums only grow, so
 * exactly one addition does. Postings outside the tile go to a sum that nobody reads, which is cheaper than a
 * branch. */
static __device__ __forceinline__ void gc_add4(const gc_notes &n, const uint32_t local[4], const uint32_t c[4]) {
  const uint32_t spare = n.tile + gc_lane();
  uint32_t old[4], hit = 0, i;
#pragma unroll
  for (i = 0; i < 4; i++)
    asm volatile("atom.shared.add.u32 %0, [%1], %2;"
                 : "=r"(old[i])
                 : "r"(n.sums + 4 * min(local[i], spare)), "r"(c[i])
                 : "memory");
#pragma unroll
  for (i = 0; i < 4; i++) hit |= n.below - old[i] < c[i] ? 1u << i : 0;
  if (hit) { /* one mask: compute-sanitizer takes two predicates for divergence at the next barrier */
#pragma unroll
    for (i = 0; i < 4; i++)
      if (n.below - old[i] < c[i] && local[i] < n.tile) gc_note(n, local[i]);
  }
}

/* Decodes a block of any kind and adds it. */
static __device__ __noinline__ void gc_add_rare(const gc_view &v, const gc_job &job, const gc_term *term,
    uint32_t block, uint32_t base, const gc_notes &notes) {
  uint32_t lane = gc_lane(), d[4], c[4], i, n;
  n = gc_decode_docs(v, *term, block, d);
  gc_decode_freqs(v, *term, block, c);
#pragma unroll
  for (i = 0; i < 4; i++) {
    d[i] -= base;
    if (4 * lane + i >= n) d[i] = UINT32_MAX;
    if (d[i] < v.tile) c[i] = term->q * gc_contribution(term->weight, c[i], gc_norm(v, job, d[i] + base));
  }
  gc_add4(notes, d, c);
}

/* An expanded block in a lane's registers. */
typedef struct gc_block_regs {
  uint4 c;
  uint2 base, s;
} gc_block_regs;

/* Loads block g of the directory, which is expanded, into registers. */
static __device__ __forceinline__ gc_block_regs gc_load_regs(const gc_view &v, uint32_t g) {
  uint64_t at = (uint64_t)g * 32 + gc_lane();
  gc_block_regs h;
  h.c = __ldg((const uint4 *)v.impact + at);
  h.s = __ldg((const uint2 *)v.narrow + at);
  h.base = __ldg(v.bases + g);
  return h;
}

/* Adds an expanded block's postings to the tile's sums. */
static __device__ __forceinline__ void gc_add_regs(const gc_view &v, const gc_block_regs &h, uint32_t q, uint32_t base,
    const gc_notes &notes) {
  uint32_t d[4] = {h.s.x & 0xffff, h.s.x >> 16, h.s.y & 0xffff, h.s.y >> 16}, from = h.base.x - base, i;
  uint32_t c[4] = {q * h.c.x, q * h.c.y, q * h.c.z, q * h.c.w};
  if (h.base.y) {
    uint4 w = __ldg((const uint4 *)(v.wide + (uint64_t)(h.base.y - 1) * GPUIR__BLOCK) + gc_lane());
    d[0] = w.x;
    d[1] = w.y;
    d[2] = w.z;
    d[3] = w.w;
    from = 0 - base;
  }
#pragma unroll
  for (i = 0; i < 4; i++) d[i] += from;
  gc_add4(notes, d, c);
}

/* Blocks of a tile that a warp has loaded and not yet added. With more of them the compiler would spill registers, and
 * a spill waits for the load. */
typedef struct gc_round {
  gc_block_regs h[GC_AHEAD];
  uint32_t q[GC_AHEAD], term[GC_AHEAD], g[GC_AHEAD]; /* term: GC_NONE if there is no such block */
} gc_round;

/* Loads blocks i, i + 8 and i + 16 of a tile, those of them below `end`. `at`: the range that holds block i. For a
 * block that is not there it loads block 0: the compiler would wait for a load under a condition where the paths
 * join. */
static __device__ __forceinline__ void gc_fetch(const gc_view &v, const gc_item *item, uint32_t i, uint32_t end,
    uint32_t &at, gc_round &round) {
  uint32_t u;
  gc_range r = item->range[at];
#pragma unroll
  for (u = 0; u < GC_AHEAD; u++) {
    uint32_t to = i + u * (GC_OR_WORKERS / 32);
    while (to < end && to >= r.end) r = item->range[++at];
    round.q[u] = r.q;
    round.term[u] = to < end ? r.term : GC_NONE;
    round.g[u] = r.g + to;
    round.h[u] = gc_load_regs(v, round.term[u] & GC_SLOW ? 0 : round.g[u]);
  }
}

/* Prefetches `bytes` bytes from p on into the L2 cache. */
static __device__ __forceinline__ void gc_prefetch(const void *p, uint32_t bytes) {
  uint32_t i;
  for (i = 0; i < bytes; i += 128) asm volatile("prefetch.global.L2 [%0];" : : "l"((const uint8_t *)p + i) : "memory");
}

/* Prefetches into the L2 cache those blocks of the tile that gc_fetch does not load first, one thread per block. */
static __device__ __forceinline__ void gc_prefetch_blocks(const gc_view &v, const gc_item *item, uint32_t end) {
  uint32_t i = GC_AHEAD * (GC_OR_WORKERS / 32) + threadIdx.x, at = 0;
  if (i >= end) return;
  while (i >= item->range[at].end) at++;
  if (item->range[at].term & GC_SLOW) return;
  i += item->range[at].g;
  gc_prefetch((const uint4 *)v.impact + (uint64_t)i * 32, GPUIR__BLOCK * 4);
  gc_prefetch((const uint2 *)v.narrow + (uint64_t)i * 32, GPUIR__BLOCK * 2);
  gc_prefetch(v.bases + i, 1);
}

/* Returns how many blocks of positive lists a tile has. */
static __device__ __forceinline__ uint32_t gc_positive_blocks(const gc_item *item) {
  return item->npositive ? item->range[item->npositive - 1].end : 0;
}

/* ---- full blocks decoded in place ---- */

/* Where a block of a tile is found. */
typedef struct alignas(16) gc_head {
  const uint8_t *docs; /* a full block's low parts. NULL: it is block number `forms` of the launch's term `q` */
  const uint8_t *freqs; /* the same of its frequencies */
  uint32_t prev; /* the docID before it */
  uint32_t forms; /* of docIDs; << 16 of frequencies: bits of low parts, << 6 bytes that its high parts may take */
  uint32_t q;
  float weight;
} gc_head;
#define GC_HEADS 128u /* blocks of a tile whose heads shared memory holds at once */

/* Finds a full block of a list's stream; returns its form. */
static __device__ __forceinline__ uint32_t gc_find_full(const uint8_t *list, uint64_t length, uint32_t at,
    uint32_t width, const uint8_t **low) {
  const gc_block p = gc_block_at(list, length, true, at, width, GPUIR__BLOCK);
  *low = p.low;
  return p.bits | p.room << 6;
}

/* Loads what a lane needs of a full block of that form. */
static __device__ __forceinline__ gc_rows gc_load_form(const uint8_t *low, uint32_t form) {
  return gc_load_rows(low, form & 63, form >> 6);
}

/* Finds the heads of a tile's blocks `from` to `end`, GC_HEADS at most, one thread per block. */
static __device__ __forceinline__ void gc_find_heads(const gc_view &v, const gc_launch_view &b, const gc_item *item,
    uint32_t from, uint32_t end, gc_head *heads) {
  const uint32_t i = from + threadIdx.x;
  uint32_t at = 0, g, block;
  gc_head h;
  if (threadIdx.x >= GC_HEADS || i >= end) return;
  while (i >= item->range[at].end) at++;
  const gc_range r = item->range[at];
  const gc_term &t = b.terms[r.term & ~GC_SLOW];
  g = r.g + i;
  block = g - r.first;
  h.docs = h.freqs = NULL;
  h.prev = UINT32_MAX;
  h.forms = block;
  h.q = r.term & ~GC_SLOW;
  h.weight = 0;
  if (block < r.full && b.jobs[item->job].fused) {
    h.forms = gc_find_full((const uint8_t *)v.docids + t.docs, t.docs_len, __ldg(v.docs_off + g),
        __ldg(v.docs_width + g), &h.docs);
    h.forms |= gc_find_full((const uint8_t *)v.freqs + t.freqs, t.freqs_len, __ldg(v.freqs_off + g),
                   __ldg(v.freqs_width + g), &h.freqs)
        << 16;
    h.q = t.q;
    h.weight = t.weight;
    if (block) h.prev = __ldg(v.last + g - 1);
  }
  heads[threadIdx.x] = h;
}

/* Returns gpuir__norm_of for a `fused` job, by one multiply-add. Its one rounding is the only one there too, so the
 * bits are the same. */
static __device__ __forceinline__ float gc_fused_norm(float a, float b, uint32_t length) {
  return __fmaf_rn(b, __uint2float_rn(min(length, GPUIR__CAP)), a);
}

/* Decodes a full block and adds it. */
static __device__ __forceinline__ void gc_add_packed(const gc_view &v, float norm_a, float norm_b, const gc_head &h,
    uint32_t base, const gc_notes &notes) {
  const gc_rows docs = gc_load_form(h.docs, h.forms & 0xffff), freqs = gc_load_form(h.freqs, h.forms >> 16);
  uint32_t d[4], c[4], length[4], i;
  gc_unpack_rows(docs, d);
  gc_sum(d, h.prev - base, UINT32_MAX);
#pragma unroll
  for (i = 0; i < 4; i++) length[i] = gc_length(v, base + min(d[i], v.documents - 1 - base));
  gc_unpack_rows(freqs, c);
#pragma unroll
  for (i = 0; i < 4; i++) c[i] = h.q * gc_contribution(h.weight, c[i], gc_fused_norm(norm_a, norm_b, length[i]));
  gc_add4(notes, d, c);
}

/* Waits for the other workers. The scheduling warp is not among them, so __syncthreads would wait forever. */
static __device__ __forceinline__ void gc_workers_wait(void) {
  asm volatile("bar.sync 1, %0;" : : "n"(GC_PACKED_WORKERS) : "memory");
}

/* ---- the work of one tile ---- */

/* Adds a tile's expanded blocks, by the workers: each warp takes every eighth. The first ones have been loaded into
 * `round`. */
static __device__ __forceinline__ void gc_add_tile_expanded(const gc_view &v, const gc_launch_view &b,
    const gc_job &job, const gc_item *item, uint32_t base, const gc_notes &notes, gc_round &round, uint32_t at) {
  const uint32_t end = gc_positive_blocks(item);
  uint32_t i = threadIdx.x / 32, u;
  while (i < end) {
#pragma unroll
    for (u = 0; u < GC_AHEAD; u++) {
      if (!(round.term[u] & GC_SLOW)) {
        gc_add_regs(v, round.h[u], round.q[u], base, notes);
      } else if (round.term[u] != GC_NONE) {
        const gc_term *t = b.terms + (round.term[u] & ~GC_SLOW);
        gc_add_rare(v, job, t, round.g[u] - (uint32_t)t->first_block, base, notes);
      }
    }
    i += GC_AHEAD * (GC_OR_WORKERS / 32);
    if (i < end) gc_fetch(v, item, i, end, at, round);
  }
}

/* Decodes a tile's blocks and adds them, by the workers. The heads of the first ones have been found. */
static __device__ __forceinline__ void gc_add_tile_packed(const gc_view &v, const gc_launch_view &b, const gc_job &job,
    const gc_item *item, uint32_t base, const gc_notes &notes, gc_head *heads) {
  const uint32_t end = gc_positive_blocks(item);
  const float norm_a = (float)job.norm_a, norm_b = (float)job.norm_b;
  uint32_t at, i;
  for (at = 0;;) {
    for (i = threadIdx.x / 32; i < min(end - at, GC_HEADS); i += GC_PACKED_WORKERS / 32) {
      const gc_head h = heads[i];
      if (h.docs) gc_add_packed(v, norm_a, norm_b, h, base, notes);
      else gc_add_rare(v, job, b.terms + h.q, h.forms, base, notes);
    }
    at += GC_HEADS;
    if (at >= end) return;
    gc_workers_wait();
    gc_find_heads(v, b, item, at, end, heads);
    gc_workers_wait();
  }
}

/* Clears the sums of documents of a negated list's block, which has n postings: four of them are the lane's. */
static __device__ __forceinline__ void gc_clear4(uint32_t tile, const uint32_t d[4], uint32_t n, uint32_t base,
    uint32_t *sums) {
  uint32_t i;
  for (i = 0; i < 4; i++)
    if (4 * gc_lane() + i < n && d[i] - base < tile) sums[d[i] - base] = 0;
}

/* Clears those of a block of any kind, which it decodes. */
static __device__ __noinline__ void gc_clear_rare(const gc_view &v, const gc_term *term, uint32_t block, uint32_t base,
    uint32_t *sums) {
  const gc_postings p = gc_decode_both(v, *term, block);
  gc_clear4(v.tile, p.doc, p.n, base, sums);
}

/* Clears those of a block, by the code that its list allows. */
template <bool EXPANDED>
static __device__ __forceinline__ void gc_clear_block(const gc_view &v, const gc_term *t, uint32_t block, uint32_t base,
    uint32_t *sums) {
  if (EXPANDED && t->kind == GC_LONG) {
    uint32_t d[4];
    gc_expanded_docs(v, t->first_block + block, d);
    gc_clear4(v.tile, d, gc_block_len(*t, block), base, sums);
  } else {
    gc_clear_rare(v, t, block, base, sums);
  }
}

/* The sums of a tile as keys. A key is 0 if it is not above the floor. */
struct gc_keys_sums {
  const uint32_t *sums;
  uint32_t base;
  unsigned long long floor;
  __device__ unsigned long long operator()(uint32_t i) const {
    unsigned long long key = sums[i] ? gpuir__key(sums[i], base + i) : 0;
    return key > floor ? key : 0;
  }
};

template <bool EXPANDED>
struct gc_shared_heads {
  gc_head heads[GC_HEADS];
};
template <>
struct gc_shared_heads<true> {
  gc_head heads[1]; /* not used */
};

struct gc_shared_or {
  enum : uint32_t { KEYS = GC_KEYS };
  unsigned long long keys[GC_KEYS]; /* survivors of the tile */
  gc_item item[2]; /* by the parity of the tile, as are nkeys and nnoted */
  uint32_t hist[256], noted[GC_KEYS];
  uint32_t nkeys[2], nnoted[2];
  uint32_t refine, pushed;
  unsigned long long kth;
};

/* Starts the first loads of the next tile's blocks. They arrive while this tile is finished. */
template <bool EXPANDED>
static __device__ __forceinline__ void gc_start_tile(const gc_view &v, const gc_launch_view &b, const gc_item *next,
    gc_round &round, uint32_t &at, gc_head *heads, bool prefetch) {
  if (next->job == GC_NONE) return;
  if (EXPANDED) {
    gc_fetch(v, next, threadIdx.x / 32, gc_positive_blocks(next), at, round);
    if (prefetch) gc_prefetch_blocks(v, next, gc_positive_blocks(next));
  } else {
    gc_find_heads(v, b, next, 0, gc_positive_blocks(next), heads);
  }
}

/* Excludes the documents of the tile's negated blocks, by the workers. */
template <bool EXPANDED>
static __device__ __forceinline__ void gc_exclude(const gc_view &v, const gc_launch_view &b, const gc_item *item,
    uint32_t base, uint32_t *sums) {
  const uint32_t workers = (GC_OR_THREADS(EXPANDED) - 32) / 32;
  uint32_t n = item->npositive, i = gc_positive_blocks(item) + threadIdx.x / 32;
  for (; i < item->blocks; i += workers) {
    while (i >= item->range[n].end) n++;
    const gc_term *t = b.terms + (item->range[n].term & ~GC_SLOW);
    gc_clear_block<EXPANDED>(v, t, item->range[n].g + i - (uint32_t)t->first_block, base, sums);
  }
}

/* Excludes the deleted documents of a tile, by the first `threads` threads. */
static __device__ __forceinline__ void gc_exclude_deleted(const gc_view &v, uint32_t base, uint32_t threads,
    uint32_t *sums) {
  uint32_t i;
  for (i = threadIdx.x; i < v.tile / 32 && base + 32 * i < v.documents; i += threads) {
    uint32_t left = __ldg(v.deleted + base / 32 + i);
    for (; left; left &= left - 1) sums[32 * i + __ffs((int)left) - 1] = 0;
  }
}

/* Collects the survivors among the documents that were noted. */
template <typename Shared>
static __device__ __forceinline__ void gc_survivors_noted(const uint32_t *sums, uint32_t base, unsigned long long floor,
    uint32_t side, Shared *sh) {
  const uint32_t noted = sh->nnoted[side], need = gc_need(floor);
  uint32_t i;
  for (i = threadIdx.x; i < noted; i += blockDim.x) {
    uint32_t local = sh->noted[i];
    unsigned long long key = gpuir__key(sums[local], base + local);
    if (sums[local] >= need && key > floor) sh->keys[atomicAdd(&sh->nkeys[side], 1)] = key;
  }
}

/* Collects the survivors among all documents of the tile: GC_KEYS of them at most in shared memory. For a larger k they
 * go straight into the job's buffer. */
template <typename Shared>
static __device__ __forceinline__ void gc_survivors_all(uint32_t tile, const gc_launch_view &b, uint32_t j,
    const uint4 *sums4, uint32_t base, unsigned long long floor, uint32_t side, Shared *sh) {
  const uint32_t need = gc_need(floor), k = b.jobs[j].k;
  uint32_t i;
  for (i = threadIdx.x; i < tile / 4; i += blockDim.x) {
    uint4 s = sums4[i];
    uint32_t sum[4] = {s.x, s.y, s.z, s.w}, l;
    if (max(max(s.x, s.y), max(s.z, s.w)) < need) continue;
    for (l = 0; l < 4; l++) {
      unsigned long long key = gpuir__key(sum[l], base + 4 * i + l);
      if (sum[l] < need || key <= floor) continue;
      if (k > Shared::KEYS) {
        uint32_t to = atomicAdd(&b.states[j].count, 1);
        if (to < b.room) __stcg(b.cand + (uint64_t)j * b.room + to, key);
      } else {
        uint32_t to = atomicAdd(&sh->nkeys[side], 1);
        if (to < Shared::KEYS) sh->keys[to] = key;
      }
    }
  }
}

/* Keeps the best k survivors, or somewhat more, where shared memory does not hold all of them; returns how many. It
 * raises the floor. */
template <typename Shared>
static __device__ __forceinline__ uint32_t gc_keep_survivors(uint32_t tile, gc_state *state, uint32_t k,
    const gc_keys_sums &keys, uint32_t side, Shared *sh) {
  const unsigned long long kth = gc_select(keys, tile, k, Shared::KEYS, sh->hist);
  uint32_t i;
  if (!threadIdx.x) {
    sh->nkeys[side] = 0;
    if (kth > 1) atomicMax(&state->floor, kth - 1);
  }
  __syncthreads();
  for (i = threadIdx.x; i < tile; i += blockDim.x) {
    unsigned long long key = keys(i);
    if (key && key >= kth) {
      uint32_t to = atomicAdd(&sh->nkeys[side], 1);
      if (to < Shared::KEYS) sh->keys[to] = key;
    }
  }
  __syncthreads();
  return min(sh->nkeys[side], (uint32_t)Shared::KEYS);
}

/* Raises a job's floor to the k-th best candidate of its buffer, each time their number has doubled. */
template <typename Shared>
static __device__ void gc_refine(const gc_launch_view &b, uint32_t j, uint32_t k, Shared *sh) {
  gc_state *state = b.states + j;
  if (!threadIdx.x) {
    uint32_t count = *(volatile uint32_t *)&state->count, step = max(2 * k, 64u), level;
    sh->refine = 0;
    if (count >= step) {
      level = 32 - __clz(count / step);
      if (atomicMax(&state->level, level) < level) sh->refine = min(count, b.room);
    }
  }
  __syncthreads();
  if (sh->refine >= k && sh->refine) {
    gc_keys_cand keys = {b.cand + (uint64_t)j * b.room};
    unsigned long long kth = gc_select(keys, sh->refine, k, k, sh->hist);
    if (!threadIdx.x && kth > 1) atomicMax(&state->floor, kth - 1);
  }
  __syncthreads();
}

/* Moves the n <= GC_KEYS survivors in sh->keys to the job's buffer; if there are more than k, the best k of them. */
template <typename Shared>
static __device__ void gc_push(const gc_launch_view &b, uint32_t j, uint32_t k, uint32_t n, Shared *sh) {
  gc_state *state = b.states + j;
  unsigned long long *cand = b.cand + (uint64_t)j * b.room;
  uint32_t i, o;
  if (!threadIdx.x) sh->pushed = atomicAdd(&state->count, min(n, k));
  __syncthreads();
  for (i = threadIdx.x; i < n; i += blockDim.x) {
    unsigned long long key = sh->keys[i];
    uint32_t rank = 0;
    if (n > k) {
      for (o = 0; o < n; o++) rank += sh->keys[o] > key;
      if (rank == k - 1) atomicMax(&state->floor, key - 1);
    } else {
      rank = i;
    }
    if (rank < k && sh->pushed + rank < b.room) __stcg(cand + sh->pushed + rank, key);
  }
}

/* Excludes the documents of negated lists and deleted ones from a tile, if there are any. All threads call it. */
template <bool EXPANDED>
static __device__ __forceinline__ void gc_exclude_all(const gc_view &v, const gc_launch_view &b, const gc_item *item,
    uint32_t base, bool scheduler, uint32_t *sums) {
  if (item->npositive < item->n || (!EXPANDED && v.deleted)) {
    if (!scheduler) gc_exclude<EXPANDED>(v, b, item, base, sums);
    if (!EXPANDED && !scheduler && v.deleted) gc_exclude_deleted(v, base, GC_OR_THREADS(EXPANDED) - 32, sums);
    __syncthreads();
  }
}

/* Collects a tile's survivors in sh->keys, or counts them for a job that counts. Returns how many are to be pushed.
 * all: no documents were noted, so that all sums are read. All threads call it. */
template <typename Shared>
static __device__ __forceinline__ uint32_t gc_collect_survivors(const gc_view &v, const gc_launch_view &b,
    const gc_job &job, uint32_t j, uint32_t base, unsigned long long floor, bool all, uint4 *sums4, uint32_t side,
    Shared *sh) {
  uint32_t *sums = (uint32_t *)sums4, n;
  const uint32_t noted = sh->nnoted[side];
  if (!all && noted <= Shared::KEYS) gc_survivors_noted(sums, base, floor, side, sh);
  else gc_survivors_all(v.tile, b, j, sums4, base, floor, side, sh);
  if (all || noted) __syncthreads();
  n = sh->nkeys[side];
  if (job.count) {
    if (!threadIdx.x) atomicAdd(&b.states[j].count, n);
    n = 0;
  }
  if (n > Shared::KEYS) n = gc_keep_survivors(v.tile, b.states + j, job.k, gc_keys_sums{sums, base, floor}, side, sh);
  return n;
}

/* Scores tiles. The workers add the postings of a tile to its sums in shared memory, and note the documents that reach
 * the floor. One more warp schedules the next tile meanwhile. Without a floor, and for a large k, nothing is noted, and
 * all sums are read. The counts of its instructions and bytes stand in tools/results/ncu_cuda.txt. */
template <bool EXPANDED>
static __global__ void __launch_bounds__(GC_OR_THREADS(EXPANDED), 2)
    gc_or(const __grid_constant__ gc_view v, const __grid_constant__ gc_launch_view b) {
  extern __shared__ uint4 gc_dynamic[];
  __shared__ gc_shared_or sh;
  __shared__ gc_shared_heads<EXPANDED> packed;
  uint32_t *sums = (uint32_t *)gc_dynamic;
  uint32_t i, side = 0, at = 0;
  gc_round round;
  const uint32_t threads = GC_OR_THREADS(EXPANDED);
  const bool scheduler = threadIdx.x >= threads - 32;
  gc_schedule schedule = {GC_NONE, 0, 0, 0, 0};
  gc_chained();
  for (i = threadIdx.x; i < v.tile / 4; i += blockDim.x) gc_dynamic[i] = make_uint4(0, 0, 0, 0);
  if (threadIdx.x < 2) sh.nkeys[threadIdx.x] = sh.nnoted[threadIdx.x] = 0;
  if (scheduler) gc_schedule_tile<EXPANDED>(v, b, schedule, &sh.item[0]);
  __syncthreads();
  if (!scheduler) gc_start_tile<EXPANDED>(v, b, &sh.item[0], round, at, packed.heads, false);
  if (!EXPANDED) __syncthreads();
  for (;; side ^= 1) {
    const gc_item *item = &sh.item[side], *next = &sh.item[side ^ 1];
    const uint32_t j = item->job, base = item->tile * v.tile;
    const unsigned long long floor = item->floor; /* the same for all threads: noting relies on it */
    if (j == GC_NONE) return;
    const gc_job &job = b.jobs[j];
    const uint32_t k = job.k;
    const bool all = k > GC_KEYS || !floor; /* nothing is noted; all sums are read */
    if (scheduler) {
      gc_schedule_tile<EXPANDED>(v, b, schedule, &sh.item[side ^ 1]);
    } else {
      const gc_notes notes = {(uint32_t)__cvta_generic_to_shared(sums), v.tile, (all ? UINT32_MAX : gc_need(floor)) - 1,
          sh.noted, &sh.nnoted[side]};
      if (EXPANDED) gc_add_tile_expanded(v, b, job, item, base, notes, round, at);
      else gc_add_tile_packed(v, b, job, item, base, notes, packed.heads);
    }
    __syncthreads();
    at = 0;
    if (!scheduler) gc_start_tile<EXPANDED>(v, b, next, round, at, packed.heads, true);
    gc_exclude_all<EXPANDED>(v, b, item, base, scheduler, sums);
    if (!threadIdx.x) sh.nkeys[side ^ 1] = sh.nnoted[side ^ 1] = 0;
    i = gc_collect_survivors(v, b, job, j, base, floor, all, gc_dynamic, side, &sh);
#pragma unroll 8
    for (uint32_t o = threadIdx.x; o < v.tile / 4; o += threads) gc_dynamic[o] = make_uint4(0, 0, 0, 0);
    if (i) gc_push(b, j, k, i, &sh);
    __syncthreads();
    if (i || k > GC_KEYS) gc_refine(b, j, k, &sh);
  }
}
