
/* ========================
 * [cuda-11-topk]  the hits of a query out of its candidates
 *
 * The kernels above leave each job's candidates in its buffer. The best k of them become the query's hits. If
 * candidates were lost, or a guessed floor was too high, the host runs the launch's kernels again.
 *
 * Uses      [cuda-09-and].
 * Start at  gc_final.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_RANKED 512u /* candidates at most whose order gc_final finds by counting */
#define GC_K_WRITTEN 2048u /* hits of a query at most that gc_and_guided itself writes */

/* Returns the job whose candidates are the query's hits. In mode ANDOR that is the AND if it found k documents;
 * otherwise the OR, and then *other is the AND. GC_NONE: the query is done. */
static __device__ __forceinline__ uint32_t gc_final_job(const gc_launch_view &b, uint2 jobs, uint32_t *other) {
  *other = GC_NONE;
  if (b.states[jobs.x].done) return GC_NONE;
  if (jobs.y == GC_NONE || b.states[jobs.x].count >= b.jobs[jobs.x].k) return jobs.x;
  *other = jobs.x;
  return jobs.y;
}

/* Clears the n candidates of a job for the next launch. */
static __device__ __forceinline__ void gc_clear_candidates(const gc_launch_view &b, uint32_t j, uint32_t n) {
  uint32_t i;
  for (i = threadIdx.x; i < n; i += blockDim.x) b.cand[(uint64_t)j * b.room + i] = 0;
}

/* Asks for another run above `floor`, as candidates were lost, or as the floor was guessed too high. */
static __device__ __forceinline__ void gc_ask_again(const gc_launch_view &b, uint32_t j, uint32_t other,
    unsigned long long floor, uint32_t *out) {
  gc_clear_candidates(b, j, b.room);
  if (!threadIdx.x) {
    b.states[j].floor = floor;
    b.states[j].count = b.states[j].level = b.states[j].next = b.states[j].safe = 0;
    b.states[j].opened = b.states[j].ended = 0;
    if (other != GC_NONE) b.states[other].count = 0; /* it runs again too, with the same outcome */
    out[0] = GC_NONE;
  }
  if (other != GC_NONE) gc_clear_candidates(b, other, b.room);
}

/* Writes a query's i-th hit by one store, as the hit goes to the host's memory. */
static __device__ __forceinline__ void gc_put_hit(const gc_view &v, unsigned long long key, uint32_t i, uint32_t *out) {
  *(uint2 *)(out + 2 + 2 * i) = make_uint2(min(~(uint32_t)key, v.documents - 1), (uint32_t)(key >> 32));
}

/* Writes the best k of the n <= GC_RANKED candidates, and clears the buffer. It counts, for each, how many have greater
 * keys: that is its rank. For so few this is faster than sorting. keys: n items of shared memory. */
static __device__ __forceinline__ void gc_rank_hits(const gc_view &v, unsigned long long *cand, uint32_t n, uint32_t k,
    unsigned long long *keys, uint32_t *out) {
  uint32_t i, o;
  for (i = threadIdx.x; i < n; i += blockDim.x) {
    keys[i] = __ldcg(cand + i);
    cand[i] = 0;
  }
  __syncthreads();
  for (i = threadIdx.x; i < n; i += blockDim.x) {
    const unsigned long long key = keys[i];
    uint32_t rank = 0;
#pragma unroll 4
    for (o = 0; o < n; o++)
      rank += (keys[o] > key) | ((keys[o] == key) & (o < i)); /* without a branch, on which lanes would part */
    if (rank >= k) continue;
    gc_put_hit(v, key, rank, out);
  }
}

/* Writes the best k of the n candidates, and clears the buffer; `kth` is the k-th best key. It gathers them in shared
 * memory and sorts them there. best: the power of two from k on. */
static __device__ __forceinline__ void gc_sort_hits(const gc_view &v, unsigned long long *cand, uint32_t n, uint32_t k,
    unsigned long long kth, unsigned long long *best, uint32_t *out) {
  __shared__ uint32_t taken;
  uint32_t size, i;
  for (size = 1; size < k; size *= 2) {}
  if (!threadIdx.x) taken = 0;
  for (i = threadIdx.x; i < size; i += blockDim.x) best[i] = 0;
  __syncthreads();
  for (i = threadIdx.x; i < n; i += 4 * blockDim.x) { /* four loads in flight */
    unsigned long long key[4];
    uint32_t u;
#pragma unroll
    for (u = 0; u < 4; u++) key[u] = __ldcg(cand + min(i + u * blockDim.x, n - 1));
#pragma unroll
    for (u = 0; u < 4; u++) {
      if (i + u * blockDim.x >= n) break;
      if (key[u] >= kth) {
        uint32_t at = atomicAdd(&taken, 1);
        if (at < k) best[at] = key[u];
      }
      cand[i + u * blockDim.x] = 0;
    }
  }
  __syncthreads();
  gc_sort(best, size);
  for (i = threadIdx.x; i < k; i += blockDim.x) {
    gc_put_hit(v, best[i], i, out);
  }
}

/* A word in the host's memory that tells it that a small launch has ended. The host sees it sooner than it would by
 * asking the stream. */
typedef struct gc_done_flag {
  uint32_t *word; /* NULL: the host asks the stream */
  uint32_t number; /* what the word is set to */
} gc_done_flag;

/* Sets the done flag, by a launch's last block of threads. The fence makes all hits visible before the flag: without it
 * the host could read hits of an earlier launch. */
static __device__ __forceinline__ void gc_set_done_flag(const gc_done_flag &flag) {
  __threadfence_system();
  __syncthreads();
  if (!threadIdx.x) *(volatile uint32_t *)flag.word = flag.number;
}

/* Returns how many of the n candidates are above the floor. */
static __device__ __forceinline__ uint32_t gc_above(const unsigned long long *cand, uint32_t n,
    unsigned long long floor) {
  __shared__ uint32_t above;
  uint32_t mine = 0, i;
  if (!threadIdx.x) above = 0;
  __syncthreads();
  for (i = threadIdx.x; i < n; i += blockDim.x) mine += __ldcg(cand + i) > floor;
  mine = __reduce_add_sync(GC_WARP, mine);
  if (!gc_lane()) atomicAdd(&above, mine);
  __syncthreads();
  return above;
}

/* Writes a query's hits, by a block of threads, and clears the buffer. It ranks the keys if they are few; otherwise it
 * selects the best k and sorts these. If candidates were lost it asks for another run. best: shared memory for
 * GC_RANKED keys, or for the power of two from k on if that is more. */
static __device__ __forceinline__ void gc_final_query(const gc_view &v, const gc_launch_view &b, uint32_t query,
    unsigned long long *best) {
  __shared__ uint32_t hist[256];
  const uint2 jobs = b.query_jobs[query];
  uint32_t *out = b.out + (uint64_t)query * b.out_stride;
  unsigned long long *cand, kth = 0, known;
  uint32_t other, k, n, count, safe;
  const uint32_t j = gc_final_job(b, jobs, &other);
  if (j == GC_NONE) return;
  cand = b.cand + (uint64_t)j * b.room;
  count = b.states[j].count;
  safe = b.states[j].safe;
  known = !safe ? b.states[j].floor : safe > 1 ? ((unsigned long long)(safe - 1) << 32) - 1 : 0;
  if (b.jobs[j].count) {
    if (!threadIdx.x) {
      out[1] = count;
      out[0] = 0;
      b.states[j].done = 1;
    }
    return;
  }
  n = min(count, b.room);
  k = min(b.jobs[j].k, n);
  if (n > k && (n > GC_RANKED || count > b.room)) kth = gc_select(gc_keys_cand{cand}, n, k, k, hist);
  __syncthreads();
  if (count > b.room) { /* nothing checks a guess in the rerun: this floor must be certain */
    gc_ask_again(b, j, other, max(known, kth - 1), out);
    return;
  }
  if (safe && gc_above(cand, n, b.states[j].floor) < b.jobs[j].k) {
    gc_ask_again(b, j, other, known, out);
    return;
  }
  if (n <= GC_RANKED) gc_rank_hits(v, cand, n, k, best, out);
  else gc_sort_hits(v, cand, n, k, kth, best, out);
  if (other != GC_NONE) gc_clear_candidates(b, other, min(b.states[other].count, b.room));
  if (!threadIdx.x) {
    out[0] = k;
    b.states[j].done = 1;
    b.states[jobs.x].done = 1;
    if (jobs.y != GC_NONE) b.states[jobs.y].done = 1;
  }
}

/* Writes the hits of all queries, a block of threads each. */
static __global__ void __launch_bounds__(GC_FINAL_THREADS)
    gc_final(const __grid_constant__ gc_view v, const __grid_constant__ gc_launch_view b, const gc_done_flag flag) {
  extern __shared__ uint4 gc_dynamic[];
  gc_chained();
  gc_final_query(v, b, blockIdx.x, (unsigned long long *)gc_dynamic);
  if (flag.word) gc_set_done_flag(flag);
}

/* ---- ANDs: to their hits in one kernel ---- */

/* Intersects by guides; then, if the launch is of `queries` with one job each, writes their hits. A block of threads
 * that finds no more tickets takes query after query, as soon as the query's tickets are done. A kernel of its own
 * would wait until the next launch's blocks of threads leave room. */
static __global__ void __launch_bounds__(GC_GUIDED_THREADS, GC_GUIDED_BLOCKS)
    gc_and_guided(const __grid_constant__ gc_view v, const __grid_constant__ gc_launch_view b, uint32_t queries) {
  __shared__ gc_queue kept[GC_GUIDED_THREADS / 32];
  __shared__ uint32_t next;
  static_assert(sizeof kept >= GC_K_WRITTEN * 8 && GC_K_WRITTEN >= GC_RANKED, "the best of a query's candidates");
  gc_chained();
  gc_and_all(v, b, queries != 0, &kept[threadIdx.x / 32]);
  while (queries) {
    __syncthreads();
    if (!threadIdx.x) {
      next = atomicAdd(&b.control->next_query, 1);
      if (next < queries) {
        const uint32_t j = b.query_jobs[next].x;
        const volatile gc_state *state = b.states + j;
        while (!state->done && state->ended < b.jobs[j].tickets) __nanosleep(200);
        __threadfence();
      }
    }
    __syncthreads();
    if (next >= queries) return;
    gc_final_query(v, b, next, (unsigned long long *)kept);
  }
}
