
/* ========================
 * [cuda-13-prompt]  an AND alone whose driver is short: by one cluster of blocks of threads
 *
 * Most ANDs have few driver blocks, so they wait for one load after another rather than for work. This kernel waits for
 * nothing else. Its parameters hold all that it needs. A warp looks two documents per lane up in one list, and the
 * warps take all lists at once. Candidates go to the shared memory of the cluster's first block of threads, which ranks
 * them. Each line that the host gets says itself that it has come. So no memory of the device is written. The loads
 * that wait for each other are: the driver's documents; marks; documents and contributions together.
 *
 * Uses      [cuda-03-bp128], [cuda-05-expand], [cuda-09-and], [cuda-12-alone].
 * Start at  gc_prompt.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_PROMPT_WARPS 16u /* that look documents up */
#define GC_PROMPT_THREADS (32 * GC_PROMPT_WARPS + 32) /* one more warp tells the cluster that it may write here */
#define GC_PROMPT_CLUSTER 8u /* blocks of threads at most; a power of two */
#define GC_PROMPT_BLOCKS 32u /* of a driver at most; for longer ones gc_alone's floor and many blocks of threads pay */
#define GC_PROMPT_TERMS 8u
#define GC_PROMPT_ROOM 2048u /* candidates at most; with more, gc_alone answers */
#define GC_PAIRS (32 * GC_SIDE) /* documents of a warp */
/* Documents of a block of threads at most. */
#define GC_PROMPT_OWN \
  (GPUIR__BLOCK * GC_PROMPT_BLOCKS / GC_PROMPT_CLUSTER > GC_PAIRS * GC_PROMPT_WARPS \
          ? GPUIR__BLOCK * GC_PROMPT_BLOCKS / GC_PROMPT_CLUSTER \
          : GC_PAIRS * GC_PROMPT_WARPS)

/* What the host gets: first how many hits there are, or GC_NONE; then the hits. A half of a line is written by one
 * store, and has come as soon as it has the launch's number. */
typedef struct alignas(16) gc_line {
  uint32_t doc, number, score, also;
} gc_line;

/* A query, as a kernel's parameter. */
typedef struct gc_prompt_args {
  gc_job job; /* its first_term is not used */
  gc_line *lines;
  uint32_t number; /* of the launch */
  uint32_t block_groups; /* groups of documents that a block of threads takes */
  gc_term terms[GC_PROMPT_TERMS];
} gc_prompt_args;

/* What the warps of a block of threads share. */
typedef struct gc_prompt_shared {
  unsigned long long keys[GC_PROMPT_ROOM]; /* candidates; of the first block of threads */
  uint32_t doc[GC_PROMPT_OWN], sum[GC_PROMPT_OWN]; /* documents, and what lists add to them */
  uint32_t dead[GC_PROMPT_OWN / 32]; /* documents that are no candidates, a bit each */
  uint32_t hist[256];
  uint32_t count, kept;
} gc_prompt_shared;

/* ---- a cluster ---- */

/* Returns the number of this block of threads in its cluster. */
static __device__ __forceinline__ uint32_t gc_cluster_rank(void) {
  uint32_t rank = 0;
#if __CUDA_ARCH__ >= 900
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
  return rank;
}

/* Tells the cluster that this block of threads has come so far. With `tell`, what this thread has written is visible to
 * those that wait. */
static __device__ __forceinline__ void gc_cluster_arrive(bool tell) {
#if __CUDA_ARCH__ >= 900
  if (tell) asm volatile("fence.acq_rel.cluster;" : : : "memory");
  __syncwarp();
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" : : : "memory");
#endif
}

/* Waits until all blocks of threads of the cluster have arrived. */
static __device__ __forceinline__ void gc_cluster_wait(void) {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire.aligned;" : : : "memory");
#endif
}

/* Returns the address, in the shared memory of the cluster's first block of threads, of what this one has at p. */
template <typename T>
static __device__ __forceinline__ T *gc_in_first(T *p) {
#if __CUDA_ARCH__ >= 900
  T *there;
  asm("mapa.u64 %0, %1, 0;" : "=l"(there) : "l"(p));
  return there;
#else
  return p;
#endif
}

/* ---- look-ups ---- */

/* Loads the docIDs of N postings per lane of an expanded list, and the contributions of one occurrence. All loads start
 * before the first one is waited for. */
template <uint32_t N>
static __device__ __forceinline__ void gc_load_postings(const gc_view &v, const gc_term &t, const uint32_t at[N],
    uint32_t doc[N], uint32_t add[N]) {
  const uint64_t first = t.first_block * GPUIR__BLOCK;
  uint32_t i;
#pragma unroll
  for (i = 0; i < N; i++) add[i] = __ldg(v.impact + first + at[i]);
  if (t.wide) {
#pragma unroll
    for (i = 0; i < N; i++) doc[i] = __ldg(v.wide + (uint64_t)(t.wide - 1) * GPUIR__BLOCK + at[i]);
  } else {
    uint2 base[N];
#pragma unroll
    for (i = 0; i < N; i++) {
      doc[i] = __ldg(v.narrow + first + at[i]);
      base[i] = __ldg(v.bases + t.first_block + at[i] / GPUIR__BLOCK);
    }
#pragma unroll
    for (i = 0; i < N; i++) {
      doc[i] += base[i].x;
      if (base[i].y) doc[i] = __ldg(v.wide + (uint64_t)(base[i].y - 1) * GPUIR__BLOCK + at[i] % GPUIR__BLOCK);
    }
  }
}

/* Looks for a document behind posting `at`, whose docID x is below it. Returns what the list adds to the document; 0:
 * the list does not hold it. It is not inlined, as few documents come here. */
static __device__ __noinline__ uint32_t gc_look_behind(const gc_view &v, const gc_term &t, uint32_t doc, uint32_t x,
    uint32_t at) {
  return gc_seek(v, t, doc, x, &at) ? __ldg(v.impact + t.first_block * GPUIR__BLOCK + at) : 0;
}

/* Does what gc_find does, and loads the contributions too. Where a mark covers several documents, it loads two postings
 * at once. */
template <uint32_t SIDE>
static __device__ __forceinline__ uint32_t gc_find_now(const gc_view &v, const gc_term &t, const uint32_t doc[SIDE],
    uint32_t live, uint32_t add[SIDE]) {
  const uint32_t shift = t.shift, df = t.df;
  uint4 m[SIDE];
  uint32_t at[2 * SIDE], x[2 * SIDE], c[2 * SIDE], u;
#pragma unroll
  for (u = 0; u < SIDE; u++) m[u] = __ldg(v.marks + t.marks + (doc[u] >> shift) / GC_CELLS);
#pragma unroll
  for (u = 0; u < SIDE; u++) {
    const uint32_t cell = (doc[u] >> shift) % GC_CELLS, bit = 1u << (cell & 31);
    const uint32_t word = cell < 32 ? m[u].x : cell < 64 ? m[u].y : m[u].z;
    at[u] = m[u].w + __popc(word & (bit - 1)) + (cell < 32 ? 0 : __popc(m[u].x)) + (cell < 64 ? 0 : __popc(m[u].y));
    if (!(word & bit) || at[u] >= df) live &= ~(1u << u);
    if (!(live >> u & 1)) at[u] = 0; /* no branch: all lanes load */
    at[SIDE + u] = min(at[u] + 1, df - 1);
    add[u] = 0;
  }
  if (!__any_sync(GC_WARP, live)) return 0;
  if (!shift) {
#pragma unroll
    for (u = 0; u < SIDE; u++) add[u] = t.q * __ldg(v.impact + t.first_block * GPUIR__BLOCK + at[u]);
    return live;
  }
  gc_load_postings<2 * SIDE>(v, t, at, x, c);
#pragma unroll
  for (u = 0; u < SIDE; u++) {
    const bool behind = x[u] < doc[u];
    const uint32_t there = behind ? x[SIDE + u] : x[u];
    add[u] = there == doc[u] ? behind ? c[SIDE + u] : c[u] : 0;
    if (there < doc[u] && (live >> u & 1)) add[u] = gc_look_behind(v, t, doc[u], x[SIDE + u], at[SIDE + u]);
    if (!add[u]) live &= ~(1u << u);
    add[u] *= t.q;
  }
  return live;
}

/* Does so in any list, one document per lane. docs: 128 words of shared memory. */
static __device__ __forceinline__ uint32_t gc_find_any(const gc_view &v, const gc_job &job, const gc_term &t,
    uint32_t doc, uint32_t live, uint32_t *docs, uint32_t *add) {
  uint32_t at;
  if (t.kind == GC_LONG) return gc_find_now<1>(v, t, &doc, live, add);
  live = gc_probe<1>(v, t, &doc, live, &at, docs);
  *add = live ? t.q * gc_contribution(t.weight, gc_freq(v, t, at), gc_norm(v, job, doc)) : 0;
  return live;
}

/* Notes what a warp has found in a list: adds it to SIDE documents per lane from `first` on, and marks those as dead
 * that the list excludes or lacks. */
template <uint32_t SIDE>
static __device__ __forceinline__ void gc_note_found(gc_prompt_shared *s, uint32_t first, bool excludes, uint32_t live,
    uint32_t found, const uint32_t add[SIDE]) {
  uint32_t u;
#pragma unroll
  for (u = 0; u < SIDE; u++) {
    const bool is = found >> u & 1;
    const uint32_t dead = __ballot_sync(GC_WARP, !(live >> u & 1) || is == excludes);
    if (dead && !gc_lane()) atomicOr(&s->dead[first / 32 + u], dead);
    if (is && !excludes) atomicAdd(&s->sum[first + 32 * u + gc_lane()], add[u]);
  }
}

/* Looks this block of threads' documents up: `groups` groups of the driver's postings, from posting `from` on. The
 * driver is expanded. */
static __device__ __forceinline__ void gc_look_up_all(const gc_view &v, const gc_prompt_args &x, uint32_t from,
    uint32_t groups, gc_prompt_shared *s) {
  const gc_term &driver = x.terms[0];
  const uint32_t warp = threadIdx.x / 32;
  uint32_t task, u;
#pragma unroll 1
  for (task = warp; task < groups * (x.job.nterms - 1) && warp < GC_PROMPT_WARPS; task += GC_PROMPT_WARPS) {
    const uint32_t first = task % groups * GC_PAIRS + gc_lane(), r = 1 + task / groups;
    uint32_t at[GC_SIDE], doc[GC_SIDE], own[GC_SIDE], add[GC_SIDE], live = 0, found;
#pragma unroll
    for (u = 0; u < GC_SIDE; u++) {
      at[u] = min(from + first + 32 * u, driver.df - 1);
      live |= (uint32_t)(from + first + 32 * u < driver.df) << u;
    }
    gc_load_postings<GC_SIDE>(v, driver, at, doc, own);
#pragma unroll
    for (u = 0; u < GC_SIDE; u++) doc[u] = min(doc[u], v.documents - 1);
    found = gc_find_now<GC_SIDE>(v, x.terms[r], doc, live, add);
    gc_note_found<GC_SIDE>(s, first & ~31u, r >= x.job.npositive, live, found, add);
#pragma unroll
    for (u = 0; u < GC_SIDE; u++) {
      if (r != 1) break;
      s->doc[first + 32 * u] = doc[u];
      atomicAdd(&s->sum[first + 32 * u], driver.q * own[u]);
    }
  }
}

/* Does the same for a driver without a directory, of 128 postings at most. One warp decodes docIDs, another one
 * frequencies. */
static __device__ __forceinline__ void gc_look_up_few(const gc_view &v, const gc_prompt_args &x, gc_prompt_shared *s) {
  const gc_term &driver = x.terms[0];
  const uint32_t groups = (driver.df + 31) / 32, warp = threadIdx.x / 32, lane = gc_lane();
  uint32_t *freq = (uint32_t *)s->keys, *docs = freq + (1 + warp) * GPUIR__BLOCK, d[4], task, i;
  static_assert((1 + GC_PROMPT_WARPS) * GPUIR__BLOCK * 4 <= GC_PROMPT_ROOM * 8, "gc_probe's memory");
  if (warp < 2) { /* both run the same code */
    if (driver.kind == GC_INLINE) d[0] = d[1] = d[2] = d[3] = (uint32_t)(warp ? driver.freqs - 1 : driver.docs);
    else gc_unpack(gc_part_block(v, driver, 0, warp == 1), d);
    if (!warp && driver.kind != GC_INLINE) gc_sum(d, UINT32_MAX, v.documents - 1);
    for (i = 0; i < 4; i++) (warp ? freq : s->doc)[4 * lane + i] = warp ? d[i] : min(d[i], v.documents - 1);
  }
  __syncthreads();
  for (task = warp; task < groups * x.job.nterms && warp < GC_PROMPT_WARPS; task += GC_PROMPT_WARPS) {
    const uint32_t at = task % groups * 32 + lane, r = task / groups, live = at < driver.df, doc = s->doc[at];
    uint32_t found = live, add = 0;
    if (r) found = gc_find_any(v, x.job, x.terms[r], doc, live, docs, &add);
    else add = driver.q * gc_contribution(driver.weight, freq[at], gc_norm(v, x.job, doc));
    gc_note_found<1>(s, at & ~31u, r >= x.job.npositive, live, found, &add);
  }
}

/* ---- candidates and hits ---- */

/* Writes the candidates among this block's n documents to the cluster's first block of threads. Returns whether this
 * thread has written any. */
static __device__ __forceinline__ bool gc_hand_over(uint32_t n, gc_prompt_shared *s) {
  bool any = false;
  uint32_t *count = gc_in_first(&s->count), i;
  unsigned long long *keys = gc_in_first(s->keys);
  for (i = threadIdx.x; i < n; i += GC_PROMPT_THREADS) {
    const bool lives = !(s->dead[i / 32] >> gc_lane() & 1);
    const uint32_t vote = __ballot_sync(GC_WARP, lives);
    if (!vote) continue;
    const uint32_t to = gc_claim(vote, count);
    if (lives && to < GC_PROMPT_ROOM) keys[to] = gpuir__key(s->sum[i], s->doc[i]);
    any = true; /* the first lane has counted */
  }
  return any;
}

/* Keys in shared memory. */
struct gc_keys_there {
  const unsigned long long *p;
  __device__ __forceinline__ unsigned long long operator()(uint32_t i) const { return p[i]; }
};

/* Keeps the best of n > GC_CLOSE candidates: GC_CLOSE of them, or little more than k. Returns how many. */
static __device__ __noinline__ uint32_t gc_keep_best(uint32_t n, uint32_t k, gc_prompt_shared *s) {
  const unsigned long long kth = gc_select(gc_keys_there{s->keys}, n, k, max(k, GC_CLOSE), s->hist);
  constexpr uint32_t EACH = (GC_PROMPT_ROOM + GC_PROMPT_THREADS - 1) / GC_PROMPT_THREADS;
  unsigned long long mine[EACH];
  uint32_t u;
  for (u = 0; u < EACH; u++) {
    const uint32_t i = u * GC_PROMPT_THREADS + threadIdx.x;
    mine[u] = i < n ? s->keys[i] : 0;
  }
  __syncthreads();
  for (u = 0; u < EACH; u++)
    if (mine[u] && mine[u] >= kth) s->keys[atomicAdd(&s->kept, 1)] = mine[u];
  __syncthreads();
  return s->kept;
}

/* Writes a line. */
static __device__ __forceinline__ void gc_write_line(gc_line *to, uint32_t doc, uint32_t score, uint32_t number) {
  asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %2};"
               :
               : "l"(to), "r"(doc), "r"(number), "r"(score)
               : "memory");
}

/* Writes the hits, by the cluster's first block of threads. */
static __device__ __forceinline__ void gc_write_hits(const gc_prompt_args &x, gc_prompt_shared *s) {
  uint32_t n = s->count, k = min(x.job.k, n), i, o;
  if (n > GC_PROMPT_ROOM) {
    if (!threadIdx.x) gc_write_line(x.lines, GC_NONE, 0, x.number);
    return;
  }
  if (!threadIdx.x) gc_write_line(x.lines, k, 0, x.number);
  if (n > GC_CLOSE) n = gc_keep_best(n, k, s);
  for (i = threadIdx.x; i < n; i += GC_PROMPT_THREADS) {
    const unsigned long long key = s->keys[i];
    uint32_t rank = 0;
#pragma unroll 4
    for (o = 0; o < n; o++) rank += (s->keys[o] > key) | ((s->keys[o] == key) & (o < i));
    if (rank < k) gc_write_line(x.lines + 1 + rank, ~(uint32_t)key, (uint32_t)(key >> 32), x.number);
  }
}

/* Answers an AND whose driver is short. SHORT: it has no directory; otherwise all lists are expanded.
 * tools/results/cuda_notes.txt says where its time goes, and why more than two blocks of threads share the work. */
template <bool SHORT>
static __global__ void __launch_bounds__(GC_PROMPT_THREADS, 1)
    gc_prompt(const __grid_constant__ gc_view v, const __grid_constant__ gc_prompt_args x) {
  __shared__ gc_prompt_shared s;
  const uint32_t rank = gc_cluster_rank(), all = (x.terms[0].df + GC_PAIRS - 1) / GC_PAIRS;
  const uint32_t groups = SHORT ? all : min(x.block_groups, all - min(all, rank * x.block_groups));
  uint32_t i;
  if (threadIdx.x == GC_PROMPT_THREADS - 1) s.count = s.kept = 0;
#pragma unroll 1
  for (i = threadIdx.x; i < groups * GC_PAIRS; i += GC_PROMPT_THREADS) {
    s.sum[i] = 0;
    if (i % 32 == 0) s.dead[i / 32] = 0;
  }
  __syncthreads();
  gc_cluster_arrive(!rank && gridDim.x > 1 && threadIdx.x == GC_PROMPT_THREADS - 1); /* the first one's count is 0 */
  if (SHORT) gc_look_up_few(v, x, &s);
  else gc_look_up_all(v, x, rank * x.block_groups * GC_PAIRS, groups, &s);
  gc_cluster_wait();
  __syncthreads();
  gc_cluster_arrive(gc_hand_over(SHORT ? (x.terms[0].df + 31) / 32 * 32 : groups * GC_PAIRS, &s) && rank);
  if (rank) return;
  gc_cluster_wait();
  __syncthreads();
  gc_write_hits(x, &s);
}

/* The host compiler optimizes the code that opens an index less than the code that plans, launches and merges: opening
 * mostly waits for CUDA, and the program gets smaller. */
#pragma GCC push_options
#pragma nv_diag_suppress 1675 /* nvcc warns of the next pragma, but passes it on */
#pragma GCC optimize("Og")
#pragma nv_diag_default 1675
