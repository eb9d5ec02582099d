
/* ========================
 * [cuda-06-slices]  long lists cut at tiles of documents, for adding up all of them
 *
 * An OR without pruning adds up all postings, tile after tile. A slice holds a list's postings within one tile of
 * documents. Sums need no order, so a slice has none: there are no prefix sums, no bounds to test, and no blocks that
 * reach into two tiles. A posting is the place of its document's sum, in bytes, and its contribution. Slices consist of
 * strips of 128 postings:
 *
 *     place  u16 [128]      four times the document's number within the tile
 *     add    u32 [128]      the contribution under the stored k1 and b; 0: no posting
 *
 * Lane t of a warp takes postings 4t to 4t + 3 of a strip, so that the warp's i-th addition takes the postings numbered
 * i modulo 4. As far as the slice allows, these lie in different banks of shared memory: otherwise additions to one
 * bank would wait for each other. Round r of a slice takes the r-th posting of each bank.
 *
 * Uses      [cuda-05-expand].
 * Start at  gc_cut_lists.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_STRIP 768u /* bytes */
#define GC_CUT_MOST 16384u /* documents of a tile at most: their places are below 2^16 */
#define GC_CUT_THREADS 128u

/* How the postings of one slice are dealt out to places. */
typedef struct gc_dealing {
  uint32_t count[32], next[32]; /* [bank] postings; postings that have a place already */
  uint32_t before[GC_CUT_MOST / 32], banks[GC_CUT_MOST / 32]; /* [round] earlier postings; banks */
  uint32_t from, end; /* blocks that reach into the tile */
} gc_dealing;

/* Calls take(place, contribution) for each posting of list `t` within a tile, by all threads. */
template <typename Take>
static __device__ __forceinline__ void gc_each_in_tile(const gc_view &v, const gc_term &t, const gc_slices &to,
    uint32_t tile, gc_dealing *sh, const Take &take) {
  const uint32_t base = tile * to.tile, *last = v.last + t.first_block;
  uint32_t block, d[4], i;
  if (threadIdx.x < 32) {
    const uint32_t from = gc_find_block(last, 0, t.nblocks, base);
    const uint32_t end = gc_find_block(last, from, t.nblocks, base + to.tile - 1);
    if (!threadIdx.x) {
      sh->from = from;
      sh->end = min(end + 1, t.nblocks);
    }
  }
  __syncthreads();
  for (block = sh->from + threadIdx.x / 32; block < sh->end; block += GC_CUT_THREADS / 32) {
    const uint64_t g = t.first_block + block;
    const uint4 c = __ldg((const uint4 *)(v.impact + g * GPUIR__BLOCK) + gc_lane());
    const uint32_t add[4] = {c.x, c.y, c.z, c.w};
    gc_expanded_docs(v, g, d);
    for (i = 0; i < 4; i++)
      if (add[i] && d[i] - base < to.tile) take(4 * (d[i] - base), add[i]);
  }
  __syncthreads();
}

/* Calls work(row, tile) for each slice of the lists that are cut, one block of threads per slice. */
template <typename Work>
static __device__ __forceinline__ void gc_each_slice(uint32_t ncut, const gc_slices &to, const Work &work) {
  uint64_t item;
  for (item = blockIdx.x; item < (uint64_t)ncut * to.ntiles; item += gridDim.x)
    work((uint32_t)(item / to.ntiles), (uint32_t)(item % to.ntiles));
}

/* Counts the strips of slices. */
static __global__ void __launch_bounds__(GC_CUT_THREADS) gc_count_strips(const __grid_constant__ gc_view v,
    const gc_term *lists, const uint32_t *cut, uint32_t ncut, const __grid_constant__ gc_slices to, uint32_t *strips) {
  __shared__ gc_dealing sh;
  __shared__ uint32_t n;
  gc_each_slice(ncut, to, [&](uint32_t row, uint32_t tile) {
    uint32_t mine = 0;
    if (!threadIdx.x) n = 0;
    __syncthreads();
    gc_each_in_tile(v, lists[cut[row]], to, tile, &sh, [&](uint32_t, uint32_t) { mine++; });
    mine = __reduce_add_sync(GC_WARP, mine);
    if (!gc_lane() && mine) atomicAdd(&n, mine);
    __syncthreads();
    if (!threadIdx.x) strips[(uint64_t)row * (to.ntiles + 1) + tile] = (n + GPUIR__BLOCK - 1) / GPUIR__BLOCK;
    __syncthreads();
  });
}

/* Finds the banks of each round and the postings before it, by a warp. Returns how many postings there are. */
static __device__ __forceinline__ uint32_t gc_deal(gc_dealing *sh) {
  const uint32_t mine = sh->count[gc_lane()];
  const uint32_t most = min(__reduce_max_sync(GC_WARP, mine), GC_CUT_MOST / 32); /* more: damaged */
  uint32_t before = 0, r;
  for (r = 0; r < most; r++) {
    const uint32_t banks = __ballot_sync(GC_WARP, mine > r);
    if (!gc_lane()) {
      sh->before[r] = before;
      sh->banks[r] = banks;
    }
    before += __popc(banks);
  }
  return before;
}

/* Returns where posting number n of a slice goes: 128 times its strip, and its place there. */
static __device__ __forceinline__ uint32_t gc_dealt(uint32_t n) { return n & ~127u | (n & 31) << 2 | (n >> 5 & 3); }

/* Fills the strips of slices. What is left of the last strip adds 0. */
static __global__ void __launch_bounds__(GC_CUT_THREADS) gc_cut_lists(const __grid_constant__ gc_view v,
    const gc_term *lists, const uint32_t *cut, uint32_t ncut, const __grid_constant__ gc_slices to, uint8_t *strips) {
  __shared__ gc_dealing sh;
  __shared__ uint32_t n;
  gc_each_slice(ncut, to, [&](uint32_t row, uint32_t tile) {
    const uint32_t *start = to.starts + (uint64_t)row * (to.ntiles + 1) + tile;
    const uint32_t room = (start[1] - start[0]) * GPUIR__BLOCK;
    uint8_t *out = strips + (uint64_t)start[0] * GC_STRIP;
    uint32_t i;
    const auto put = [&](uint32_t number, uint32_t place, uint32_t add) {
      const uint32_t at = gc_dealt(number);
      uint8_t *strip = out + (uint64_t)(at / GPUIR__BLOCK) * GC_STRIP;
      if (number >= room) return;
      ((uint16_t *)strip)[at % GPUIR__BLOCK] = (uint16_t)place;
      ((uint32_t *)(strip + 2 * GPUIR__BLOCK))[at % GPUIR__BLOCK] = add;
    };
    if (!room) return;
    if (threadIdx.x < 32) sh.count[threadIdx.x] = sh.next[threadIdx.x] = 0;
    __syncthreads();
    gc_each_in_tile(v, lists[cut[row]], to, tile, &sh,
        [&](uint32_t place, uint32_t) { atomicAdd(&sh.count[place / 4 & 31], 1); });
    if (threadIdx.x < 32) n = gc_deal(&sh);
    __syncthreads();
    gc_each_in_tile(v, lists[cut[row]], to, tile, &sh, [&](uint32_t place, uint32_t add) {
      const uint32_t bank = place / 4 & 31, r = atomicAdd(&sh.next[bank], 1);
      if (r < GC_CUT_MOST / 32) put(sh.before[r] + __popc(sh.banks[r] & ((1u << bank) - 1)), place, add);
    });
    for (i = n + threadIdx.x; i < room; i += GC_CUT_THREADS) put(i, 4 * (i & 31), 0);
    __syncthreads();
  });
}
