
/* ========================
 * [cuda-02-primitives]  what many kernels need of a warp or of a block of threads
 *
 * Functions that many kernels call: on a warp, on a block of threads, on keys.
 *
 * Start at  gc_scan, gc_claim (warps); gc_block_scan, gc_select, gc_sort (blocks of threads); gc_owner (a thread).
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

/* ---- a warp ---- */

/* Returns the number of this thread's lane in its warp. */
static __device__ __forceinline__ uint32_t gc_lane(void) { return threadIdx.x & 31; }

/* Returns n bits that are set, from the lowest on. */
static __device__ __forceinline__ uint32_t gc_mask(uint32_t n) { return n < 32 ? (1u << n) - 1 : ~0u; }

/* Returns how many lower lanes have a bit in `vote`: the lane's place among those that vote. */
static __device__ __forceinline__ uint32_t gc_rank(uint32_t vote) { return __popc(vote & ((1u << gc_lane()) - 1)); }

/* Returns the sum of x over this lane and all lower ones. */
static __device__ __forceinline__ uint32_t gc_scan(uint32_t x) {
  uint32_t lane = gc_lane(), i;
#pragma unroll
  for (i = 1; i < 32; i *= 2) {
    uint32_t other = __shfl_up_sync(GC_WARP, x, i);
    if (lane >= i) x += other;
  }
  return x;
}

/* Takes room for the lanes of `vote`, which is not 0, at the end of an array of *count items. Returns where the lane's
 * item goes. */
static __device__ __forceinline__ uint32_t gc_claim(uint32_t vote, uint32_t *count) {
  uint32_t at = 0;
  if (!gc_lane()) at = atomicAdd(count, __popc(vote));
  return __shfl_sync(GC_WARP, at, 0) + gc_rank(vote);
}

/* Returns the first index of last[lo..hi) whose value is not below doc, or hi. The warp compares 32 values at a
 * time. */
static __device__ __forceinline__ uint32_t gc_find_block(const uint32_t *last, uint32_t lo, uint32_t hi, uint32_t doc) {
  uint32_t lane = gc_lane();
  while (hi - lo > 32) {
    uint32_t step = (hi - lo + 31) / 32;
    uint32_t below = __popc(__ballot_sync(GC_WARP, __ldg(last + min(lo + lane * step + step - 1, hi - 1)) < doc));
    lo = min(lo + below * step, hi);
    hi = min(lo + step, hi);
  }
  return lo + __popc(__ballot_sync(GC_WARP, lo + lane < hi && __ldg(last + min(lo + lane, hi - 1)) < doc));
}

/* Replaces each of 256 counts by the sum of those before it, by a warp. The last lane gets the sum of all. */
static __device__ __forceinline__ uint32_t gc_scan_counts(uint32_t count[256]) {
  uint32_t own[8], sum = 0, scan, before, i;
  for (i = 0; i < 8; i++) {
    own[i] = count[gc_lane() * 8 + i];
    sum += own[i];
  }
  scan = gc_scan(sum);
  before = scan - sum;
  for (i = 0; i < 8; i++) {
    count[gc_lane() * 8 + i] = before;
    before += own[i];
  }
  return scan;
}

/* The bin of a histogram that holds the item of some rank. */
typedef struct gc_bin_found {
  uint32_t bin, above, inside; /* items in the bins above it; items in it */
} gc_bin_found;

/* Finds the bin of the rank-th item, counted from the highest bin down, by a warp. rank must be from 1 to the sum of
 * the counts. One lane writes *found. */
template <uint32_t BINS>
static __device__ __forceinline__ void gc_find_bin(const uint32_t *count, uint32_t rank, gc_bin_found *found) {
  uint32_t own[BINS / 32], sum = 0, above, i;
  for (i = 0; i < BINS / 32; i++) { /* lane 0 has the highest bins */
    own[i] = count[BINS - 1 - (gc_lane() * (BINS / 32) + i)];
    sum += own[i];
  }
  above = gc_scan(sum) - sum;
  if (above < rank && above + sum >= rank)
    for (i = 0; i < BINS / 32; i++) {
      if (above < rank && above + own[i] >= rank) {
        found->bin = BINS - 1 - (gc_lane() * (BINS / 32) + i);
        found->above = above;
        found->inside = own[i];
      }
      above += own[i];
    }
}

/* Does what gc_find_bin does, and returns the bin to all lanes: UINT32_MAX if there are fewer items than rank. */
template <uint32_t BINS>
static __device__ __forceinline__ gc_bin_found gc_bin_of(const uint32_t *count, uint32_t rank) {
  gc_bin_found f = {UINT32_MAX, 0, 0};
  uint32_t who;
  gc_find_bin<BINS>(count, rank, &f);
  who = __ffs((int)__ballot_sync(GC_WARP, f.bin != UINT32_MAX));
  who = who ? who - 1 : 0;
  f.bin = __shfl_sync(GC_WARP, f.bin, who);
  f.above = __shfl_sync(GC_WARP, f.above, who);
  return f;
}

/* ---- a kernel ---- */

/* Lets the next kernel of the stream start, and waits until the kernel before has ended. Kernels that gc_enqueue chains
 * overlap by this; without it one would read what the kernel before has not written yet. A kernel calls it before all
 * else; in a kernel that is not chained it does nothing. */
static __device__ __forceinline__ void gc_chained(void) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" : : : "memory");
  asm volatile("griddepcontrol.wait;" : : : "memory");
#endif
}

/* ---- a thread ---- */

/* Returns the last i < n whose start(i) is at most x. The starts ascend, and the first one is at most x. */
template <typename Start>
static __device__ __forceinline__ uint32_t gc_owner(const Start &start, uint32_t n, uint64_t x) {
  uint32_t lo = 0, hi = n;
  while (hi - lo > 1) {
    uint32_t mid = lo + (hi - lo) / 2;
    if (start(mid) <= x) lo = mid;
    else hi = mid;
  }
  return lo;
}

/* An array that does not change while the kernel runs. */
struct gc_numbers {
  const uint32_t *p;
  __device__ __forceinline__ uint32_t operator()(uint32_t i) const { return __ldg(p + i); }
};

/* ---- a block of threads: all of them call these ---- */

/* Returns the sum of x over this thread and all lower ones; *all gets the sum of all threads. It takes 3 barriers. */
template <uint32_t THREADS>
static __device__ __forceinline__ uint32_t gc_block_scan(uint32_t x, uint32_t *all) {
  __shared__ uint32_t sums[32];
  x = gc_scan(x);
  __syncthreads(); /* the sums of the previous call have been read */
  if (gc_lane() == 31) sums[threadIdx.x / 32] = x;
  __syncthreads();
  if (threadIdx.x < 32) sums[threadIdx.x] = gc_scan(threadIdx.x < THREADS / 32 ? sums[threadIdx.x] : 0);
  __syncthreads();
  *all = sums[THREADS / 32 - 1];
  return x + (threadIdx.x >= 32 ? sums[threadIdx.x / 32 - 1] : 0);
}

/* Returns the bits with which all of the n keys begin; *width gets how many bits follow them. word: 4 words of shared
 * memory. */
template <typename Keys>
static __device__ __forceinline__ unsigned long long gc_common(const Keys &keys, uint32_t n, uint32_t *width,
    uint32_t *word) {
  unsigned long long first, differ = 0;
  uint32_t i, u, low, high;
  __syncthreads();
  if (!threadIdx.x) {
    first = keys(0); /* once: other threads may be about to write it */
    word[0] = word[1] = 0;
    word[2] = (uint32_t)first;
    word[3] = (uint32_t)(first >> 32);
  }
  __syncthreads();
  first = (unsigned long long)word[3] << 32 | word[2];
  for (i = threadIdx.x; i < n; i += 4 * blockDim.x)
#pragma unroll
    for (u = 0; u < 4; u++) differ |= keys(min(i + u * blockDim.x, n - 1)) ^ first;
  low = __reduce_or_sync(GC_WARP, (uint32_t)differ);
  high = __reduce_or_sync(GC_WARP, (uint32_t)(differ >> 32));
  if (!gc_lane()) {
    atomicOr(word, low);
    atomicOr(word + 1, high);
  }
  __syncthreads();
  *width = 64 - (uint32_t)__clzll((long long)((unsigned long long)word[1] << 32 | word[0]));
  __syncthreads();
  return *width < 64 ? first >> *width << *width : 0;
}

/* Returns a key that at least k of the n keys reach, n >= k >= 1. If limit is k and the keys differ, exactly k reach
 * it; otherwise at most `limit` do where that is possible. It is a radix select by 8 bits per pass. The first pass
 * finds the bits in which the keys differ: so the counts of a pass spread over many bins, whose additions do not wait
 * for each other. hist: 256 words of shared memory. */
template <typename Keys>
static __device__ unsigned long long gc_select(const Keys &keys, uint32_t n, uint32_t k, uint32_t limit,
    uint32_t *hist) {
  __shared__ gc_bin_found digit;
  uint32_t remain = k, above, shift, i; /* keys of interest equal the prefix down to bit `above` */
  unsigned long long prefix = gc_common(keys, n, &above, hist);
  for (;; above = shift) {
    shift = above > 8 ? above - 8 : 0;
    for (i = threadIdx.x; i < 256; i += blockDim.x) hist[i] = 0;
    if (!threadIdx.x) memset(&digit, 0, sizeof digit); /* keys that other threads have just written may match no bin */
    __syncthreads();
    for (i = threadIdx.x; i < n; i += 4 * blockDim.x) { /* four loads in flight */
      unsigned long long key[4];
      uint32_t u;
#pragma unroll
      for (u = 0; u < 4; u++) key[u] = keys(min(i + u * blockDim.x, n - 1));
#pragma unroll
      for (u = 0; u < 4; u++)
        if (i + u * blockDim.x < n && (above == 64 || (key[u] ^ prefix) >> above == 0))
          atomicAdd(&hist[key[u] >> shift & 255], 1);
    }
    __syncthreads();
    if (threadIdx.x < 32) gc_find_bin<256>(hist, remain, &digit);
    __syncthreads();
    prefix |= (unsigned long long)digit.bin << shift;
    remain -= digit.above;
    i = k - remain + digit.inside; /* keys that reach the prefix */
    __syncthreads();
    if (i <= limit || !shift) return prefix;
  }
}

/* Sorts keys[0..size) in shared memory in descending order, by a bitonic network. size is a power of two. Pairs at most
 * 32 apart belong to the same warp in each pass over them, so those passes need no barrier. */
static __device__ __forceinline__ void gc_sort(unsigned long long *keys, uint32_t size) {
  uint32_t step, half, i;
  for (step = 2; step <= size; step *= 2)
    for (half = step / 2; half; half /= 2) {
      for (i = threadIdx.x; i < size / 2; i += blockDim.x) {
        const uint32_t low = 2 * i - (i & (half - 1));
        const unsigned long long x = keys[low], y = keys[low + half];
        if ((x < y) == !(low & step)) {
          keys[low] = y;
          keys[low + half] = x;
        }
      }
      if (half > 32 || (half == 1 ? step : half / 2) > 32) __syncthreads();
      else __syncwarp();
    }
  __syncthreads();
}

/* ---- keys: score << 32 | ~docID, so that their descending order is that of hits ---- */

/* Returns the least score that is above a floor. */
static __device__ __forceinline__ uint32_t gc_need(unsigned long long floor) {
  return max((uint32_t)((floor + 1) >> 32), 1u);
}

/* Reads a job's floor anew: other warps raise it, and without `volatile` the compiler would keep an old value. */
static __device__ __forceinline__ unsigned long long gc_floor(const gc_state *s) {
  return *(volatile const unsigned long long *)&s->floor;
}

/* A job's candidates. Those that other blocks of threads are about to write are still 0. */
struct gc_keys_cand {
  const unsigned long long *p;
  __device__ unsigned long long operator()(uint32_t i) const { return __ldcg(p + i); }
};

/* Returns a score that at least k of the n keys reach, by a warp; n is a multiple of 32. It is the k-th best score
 * without its low bits: of the bits that the greatest score has, the highest 14 stay. Keys are read 3 times. count: 128
 * words of shared memory. */
static __device__ __noinline__ uint32_t gc_kth_score(const gc_keys_cand keys, uint32_t n, uint32_t k, uint32_t *count) {
  uint32_t greatest = 0, bin = 0, shift = 0, pass, i, u;
  for (pass = 0; pass < 3; pass++) { /* find the greatest; the bin of 2^shift scores; the finer bin within it */
    const uint32_t fine = pass == 1 ? shift : shift > 7 ? shift - 7 : 0, mask = (1u << (shift - fine)) - 1;
    gc_bin_found f;
    if (pass == 2 && !shift) break;
    __syncwarp();
    *(uint4 *)(count + 4 * gc_lane()) = make_uint4(0, 0, 0, 0);
    __syncwarp();
    for (i = gc_lane(); i < n; i += 32 * 8) {
      uint32_t score[8];
#pragma unroll
      for (u = 0; u < 8; u++) score[u] = i + 32 * u < n ? (uint32_t)(keys(i + 32 * u) >> 32) : 0;
#pragma unroll
      for (u = 0; u < 8; u++) {
        if (!pass) greatest = max(greatest, score[u]);
        else if (pass == 1)
          atomicAdd(count + min(score[u] >> fine, 127u), 1); /* other warps may just have written a greater one */
        else if (score[u] >> shift == bin) atomicAdd(count + (score[u] >> fine & mask), 1);
      }
    }
    __syncwarp();
    if (!pass) {
      greatest = __reduce_max_sync(GC_WARP, greatest);
      if (greatest >> 7) shift = 25 - __clz((int)greatest);
      continue;
    }
    f = gc_bin_of<128>(count, k);
    if (f.bin == UINT32_MAX) break;
    k -= f.above;
    bin = bin << (shift - fine) | f.bin;
    shift = fine;
  }
  __syncwarp();
  return bin << shift;
}
