
/* ========================
 * [cuda-08b-alone]  one query alone: all of it in one kernel
 *
 * What a query alone takes is mostly the wait for one thing after another: a transfer, kernels in turn, loads that need
 * what others have brought. So there is one kernel, which has the plan among its parameters. Some of its blocks of
 * threads try the query first: with what they find, the last of them sets a floor, for which all of them wait. Then
 * all take those blocks of the driving lists whose bounds reach the floor. The block of threads that ends last writes
 * the hits and rings a bell in the host's memory.
 *
 * Uses      [cuda-03-bp128], [cuda-07-and], [cuda-08-topk].
 * Start at  gc_alone; gc_receive (the plans of other small launches).
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_LETTER 3072u /* bytes of a plan that a kernel takes as a parameter */
#define GC_ALONE_BLOCKS 3 /* the same of gc_alone */

/* The plan of a small launch, as a kernel's parameter: it needs no transfer. */
typedef struct gc_letter {
  uint4 words[GC_LETTER / 16];
} gc_letter;

#define GC_TRIES 264u /* blocks of threads at most that try a query */
#define GC_TRIED 16u /* scores that each of them keeps, of an OR */
#define GC_WORK 512u /* blocks of lists that a block of threads takes at once */
#define GC_TOGETHER 3u /* so many at most are taken by all of its warps, one after another */
#define GC_CLOSE 128u /* candidates whose order is found at once: of more, the best are chosen first */

/* Where the blocks of threads of gc_alone meet. All but the scores is 0 between launches. */
typedef struct gc_desk {
  gc_control control; /* .next_and: blocks of threads that have begun; .ended */
  gc_state state; /* of the job; .opened: blocks of threads that have tried; .level: 1: the floor is set */
  uint32_t score[GC_TRIES * GC_TRIED];
} gc_desk;

/* What a query alone needs besides its plan. */
typedef struct gc_errand {
  gc_desk *desk;
  const uint8_t *from; /* where the batch says that the plan lies */
  uint32_t size; /* of the plan, in units of 16 bytes */
  uint32_t tries; /* blocks of threads that try it; 0: there is no floor */
  uint32_t step; /* of an AND: they take a block each, every so many of the driver; 0: none */
  uint32_t take[GC_LAYERS]; /* of an OR: so many blocks of its first lists are tried */
  gc_bell bell;
} gc_errand;

/* What the warps of a block of threads share. */
typedef struct gc_alone_shared {
  gc_queue queue[GC_GUIDED_THREADS / 32];
  uint4 words[GC_LETTER / 16]; /* the plan */
  gc_batch b;
  uint2 work[GC_WORK]; /* list, block */
  uint32_t nwork, next; /* how many these are; the next part to be taken */
  uint32_t rank; /* which block of threads it is, in the order in which they begin */
  uint32_t last;
  uint32_t hist[256];
  uint32_t doc[GPUIR__BLOCK], sum[GPUIR__BLOCK]; /* of gc_score_block: documents, and their scores */
  uint32_t dead[GPUIR__BLOCK / 32]; /* those that are no candidates */
} gc_alone_shared;

/* Returns where the letter's copy has what the batch says lies at p. */
template <typename T>
static __device__ __forceinline__ const T *gc_posted(const gc_errand &errand, const uint4 *words, const T *p) {
  return (const T *)((const uint8_t *)words + ((const uint8_t *)p - errand.from));
}

/* Takes the plan out of the parameters. */
static __device__ __forceinline__ void gc_open_letter(const gc_batch &given, const gc_letter &letter,
    const gc_errand &errand, gc_alone_shared *s) {
  static_assert(GC_LETTER / 16 <= GC_GUIDED_THREADS && sizeof(gc_batch) / 4 < GC_GUIDED_THREADS, "a word a thread");
  const uint32_t i = threadIdx.x;
  if (i == GC_GUIDED_THREADS - 1) s->rank = errand.tries ? atomicAdd(&errand.desk->control.next_and, 1) : blockIdx.x;
  if (i < errand.size) s->words[i] = letter.words[i];
  if (i < sizeof s->b / 4) ((uint32_t *)&s->b)[i] = ((const uint32_t *)&given)[i];
  __syncthreads();
  if (!i) {
    s->b.terms = gc_posted(errand, s->words, given.terms);
    s->b.jobs = gc_posted(errand, s->words, given.jobs);
    s->b.query_jobs = gc_posted(errand, s->words, given.query_jobs);
    s->nwork = s->next = 0;
  }
  __syncthreads();
}

/* Returns whether the query is an AND; otherwise it is an OR. */
static __device__ __forceinline__ bool gc_is_and(const gc_alone_shared *s) { return !s->b.jobs[0].any; }

/* ---- a block of a list, by a block of threads ---- */

/* Finds the documents of a block of list e and what that adds to them, by a warp. */
template <bool EXPANDED>
static __device__ __forceinline__ void gc_open_block(const gc_view &v, const gc_job &job, const gc_term &t,
    uint32_t block, gc_alone_shared *s) {
  const uint32_t n = gc_block_len(t, block);
  uint32_t d[4], c[4], u;
  gc_drive_block<EXPANDED>(v, job, t, block, d, c);
#pragma unroll
  for (u = 0; u < 4; u++) {
    const uint32_t at = gc_posting_of<EXPANDED>(u);
    s->doc[at] = at < n ? min(d[u], v.documents - 1) : 0;
    s->sum[at] = at < n ? c[u] : 0;
  }
  if (gc_lane() < GPUIR__BLOCK / 32) s->dead[gc_lane()] = ~gc_mask(max((int)(n - 32 * gc_lane()), 0));
}

/* Scores the documents of a block of list e. Those are dead that an earlier list or an excluded one holds, or that a
 * list of an AND lacks. Warps look for different documents in different lists, all at once: so it takes as long as one
 * list does. */
template <bool EXPANDED>
static __device__ __forceinline__ void gc_score_block(const gc_view &v, uint32_t e, uint32_t block,
    gc_alone_shared *s) {
  constexpr uint32_t SIDE = EXPANDED ? GC_SIDE : 1, GROUPS = GPUIR__BLOCK / (32 * SIDE);
  const gc_job &job = s->b.jobs[0];
  const gc_term *terms = s->b.terms + job.first_term;
  const uint32_t n = gc_block_len(terms[e], block), lane = gc_lane();
  uint32_t task, u;
  if (threadIdx.x < 32) gc_open_block<EXPANDED>(v, job, terms[e], block, s);
  __syncthreads();
  for (task = threadIdx.x / 32; task < GROUPS * (job.nterms - 1); task += GC_GUIDED_THREADS / 32) {
    const uint32_t first = task % GROUPS * 32 * SIDE, other = task / GROUPS, r = other + (other >= e);
    const bool excludes = r < e || r >= job.npositive;
    uint32_t doc[SIDE], add[SIDE], live = 0;
#pragma unroll
    for (u = 0; u < SIDE; u++) {
      doc[u] = s->doc[first + 32 * u + lane];
      live |= (uint32_t)(first + 32 * u + lane < n) << u;
    }
    live = gc_look_up_as<EXPANDED, true, SIDE>(v, job, terms[r], doc, live, s->queue[threadIdx.x / 32].docs, !excludes,
        add);
#pragma unroll
    for (u = 0; u < SIDE; u++) {
      const bool found = live >> u & 1;
      const uint32_t dead = __ballot_sync(GC_WARP, excludes ? found : !job.any && !found);
      if (dead && !lane) atomicOr(&s->dead[first / 32 + u], dead);
      if (found && !excludes) atomicAdd(&s->sum[first + 32 * u + lane], add[u]);
    }
  }
  __syncthreads();
}

/* Does so by the code that the job's lists allow. */
static __device__ __forceinline__ void gc_score_any_block(const gc_view &v, uint32_t e, uint32_t block,
    gc_alone_shared *s) {
  if (s->b.jobs[0].expanded) gc_score_block<true>(v, e, block, s);
  else gc_score_block<false>(v, e, block, s);
}

/* Offers those of its documents that are above the floor. */
static __device__ __forceinline__ void gc_offer_block(unsigned long long floor, gc_alone_shared *s) {
  if (threadIdx.x < GPUIR__BLOCK) {
    const uint32_t doc[1] = {s->doc[threadIdx.x]}, score[1] = {s->sum[threadIdx.x]};
    const bool dead = s->dead[threadIdx.x / 32] >> gc_lane() & 1;
    gc_offer<1>(s->b, 0, GC_RAISE_NEVER, !dead && gpuir__key(score[0], doc[0]) > floor, doc, score,
        s->queue[threadIdx.x / 32].docs);
  }
  __syncthreads();
}

/* ---- the blocks that are taken ---- */

/* Notes a block of a list as work. */
static __device__ __forceinline__ void gc_add_work(gc_alone_shared *s, uint32_t list, uint32_t block) {
  const uint32_t at = atomicAdd(&s->nwork, 1);
  if (at < GC_WORK) s->work[at] = make_uint2(list, block);
}

/* Hands in the best scores of an OR's block that was tried. */
static __device__ __forceinline__ void gc_hand_in(const gc_errand &errand, gc_alone_shared *s) {
  uint32_t *to = errand.desk->score + s->rank * GC_TRIED, o;
  if (threadIdx.x < GPUIR__BLOCK && (s->dead[threadIdx.x / 32] >> gc_lane() & 1)) s->sum[threadIdx.x] = 0;
  __syncthreads();
  if (threadIdx.x < GPUIR__BLOCK) {
    const uint32_t mine = s->sum[threadIdx.x];
    uint32_t rank = 0;
#pragma unroll 8
    for (o = 0; o < GPUIR__BLOCK; o++) rank += (s->sum[o] > mine) | ((s->sum[o] == mine) & (o < threadIdx.x));
    if (rank < GC_TRIED) __stcg(to + rank, mine);
  }
}

/* Does the work that has been noted: a warp a block or, where there is little, all warps one after another. What an OR
 * tries, `tries`, is handed in; all else that is found becomes candidates. */
static __device__ __forceinline__ void gc_do_work(const gc_view &v, const gc_errand &errand, bool tries,
    gc_alone_shared *s) {
  const unsigned long long floor = gc_floor(s->b.states);
  const uint32_t n = s->nwork;
  gc_queue *w = &s->queue[threadIdx.x / 32];
  uint32_t i;
  if (n <= GC_TOGETHER) {
    for (i = 0; i < n; i++) {
      gc_score_any_block(v, s->work[i].x, s->work[i].y, s);
      if (!gc_is_and(s) && tries) gc_hand_in(errand, s);
      else gc_offer_block(floor, s);
    }
  } else {
    for (;;) {
      uint32_t at = 0;
      if (!gc_lane()) at = atomicAdd(&s->next, 1);
      at = __shfl_sync(GC_WARP, at, 0);
      if (at >= n) break;
      if (gc_is_and(s)) gc_drive_from<true, true>(v, s->b, 0, s->work[at].x, s->work[at].y, 1, GC_WARP, w);
      else gc_drive_from<false, true>(v, s->b, 0, s->work[at].x, s->work[at].y, 1, GC_WARP, w);
    }
  }
  __syncthreads();
  if (!threadIdx.x) s->nwork = s->next = 0;
  __syncthreads();
}

/* Returns how many of a job's lists drive it, and in *blocks how many blocks these have. */
static __device__ __forceinline__ uint32_t gc_drivers(const gc_job &job, const gc_term *terms, uint32_t need,
    uint32_t *blocks) {
  uint32_t behind = 0, i;
  *blocks = terms[0].nblocks;
  if (!job.any) return 1;
  *blocks = 0;
  for (i = 0; i < job.npositive; i++) behind += terms[i].most;
  for (i = 0; i < job.npositive && behind >= need; i++) {
    *blocks += terms[i].nblocks;
    behind -= terms[i].most;
  }
  return i;
}

/* Notes number i of the driving lists' blocks as work, if its bound reaches the need and it has not been taken
 * before. */
static __device__ __forceinline__ void gc_look_at_block(const gc_view &v, const gc_job &job, const gc_term *terms,
    const gc_errand &errand, uint32_t need, uint32_t i, gc_alone_shared *s) {
  uint32_t e = 0, behind = 0, r;
  while (i >= terms[e].nblocks) i -= terms[e++].nblocks;
  if (!job.any && errand.step && i % errand.step == 0 && i / errand.step < errand.tries) return;
  if (need > 1) {
    const gc_term &t = terms[e];
    for (r = e + 1; r < job.npositive; r++) behind += terms[r].most;
    if ((t.kind == GC_LONG && job.stored ? t.q * __ldg(v.most + t.first_block + i) : t.most) + behind < need) return;
  }
  gc_add_work(s, e, i);
}

/* Notes a part of this block of threads' share of the driving lists' blocks as work, from number `from` of them on.
 * They are dealt out evenly, as good ones may lie together; where there are many, eight at a time, whose bounds are one
 * load's. */
static __device__ __forceinline__ void gc_note_share(const gc_view &v, const gc_errand &errand, uint32_t need,
    uint32_t blocks, uint32_t from, gc_alone_shared *s) {
  const gc_job &job = s->b.jobs[0];
  const gc_term *terms = s->b.terms + job.first_term;
  const uint32_t unit = blocks <= 64 * gridDim.x ? 1 : 8;
  uint32_t u;
  for (u = from + threadIdx.x; u < from + GC_WORK; u += blockDim.x) {
    const uint64_t i = ((uint64_t)(u / unit) * gridDim.x + s->rank) * unit + u % unit;
    if (i < blocks) gc_look_at_block(v, job, terms, errand, need, (uint32_t)i, s);
  }
}

/* ---- trying a query, for a floor ---- */

/* Notes as work what this block of threads tries: of an AND a block of its driver, spread evenly over it; of an OR one
 * of its first lists, spread evenly over them. */
static __device__ __forceinline__ void gc_note_try(const gc_errand &errand, gc_alone_shared *s) {
  const gc_term *terms = s->b.terms + s->b.jobs[0].first_term;
  uint32_t i = s->rank, e = 0;
  if (i >= errand.tries) return;
  if (gc_is_and(s)) {
    if (errand.step && !threadIdx.x) gc_add_work(s, 0, i * errand.step);
  } else {
    while (e < GC_LAYERS && i >= errand.take[e]) i -= errand.take[e++];
    if (e < GC_LAYERS && !threadIdx.x) gc_add_work(s, e, i * (terms[e].nblocks / errand.take[e]));
    if (e == GC_LAYERS && threadIdx.x < GC_TRIED) __stcg(errand.desk->score + s->rank * GC_TRIED + threadIdx.x, 0);
  }
}

/* Scores as keys. */
struct gc_keys_scores {
  const uint32_t *p;
  __device__ unsigned long long operator()(uint32_t i) const { return p[i]; }
};

/* Sets the floor, by the block of threads that was the last to try: to the k-th best score, or nearly, of an OR's
 * documents that were tried, or of an AND's candidates, the first ones if they are many. */
static __device__ __forceinline__ void gc_set_floor(const gc_errand &errand, gc_alone_shared *s) {
  const gc_job &job = s->b.jobs[0];
  const bool is_and = gc_is_and(s);
  const uint32_t room = sizeof s->queue / 4, all = is_and ? __ldcg(&s->b.states->count) : errand.tries * GC_TRIED;
  const uint32_t n = min(min(all, s->b.room), room);
  uint32_t *scores = (uint32_t *)s->queue, score = job.seed, i;
  for (i = threadIdx.x; i < n; i += blockDim.x)
    scores[i] = is_and ? (uint32_t)(__ldcg(s->b.cand + i) >> 32) : __ldcg(errand.desk->score + i);
  __syncthreads();
  if (n >= job.k) score = max(score, (uint32_t)gc_select(gc_keys_scores{scores}, n, job.k, 2 * job.k, s->hist));
  if (!threadIdx.x) {
    if (score) *(volatile unsigned long long *)&s->b.states->floor = ((unsigned long long)score << 32) - 1;
    __threadfence();
    *(volatile uint32_t *)&s->b.states->level = 1;
  }
}

/* Ends the trying, by the first blocks of threads, and has all of them wait for the floor. Those that wait wait for
 * others that run already, as ranks are given in the order of beginning. */
static __device__ __forceinline__ void gc_await_floor(const gc_errand &errand, gc_alone_shared *s) {
  if (s->rank < errand.tries) {
    __threadfence();
    __syncthreads();
    if (!threadIdx.x) s->last = atomicAdd(&s->b.states->opened, 1) == errand.tries - 1;
    __syncthreads();
    if (s->last) {
      __threadfence();
      gc_set_floor(errand, s);
    }
  }
  if (!threadIdx.x)
    while (!*(volatile const uint32_t *)&s->b.states->level) {}
  __threadfence();
  __syncthreads();
}

/* Tries the query, if it is to be tried, and takes this block of threads' share. Both do their work at one place, as
 * its code is long. */
static __device__ __forceinline__ void gc_try_and_take(const gc_view &v, const gc_errand &errand, gc_alone_shared *s) {
  const gc_job &job = s->b.jobs[0];
  bool tries = errand.tries != 0;
  uint32_t need = 0, blocks = 0, from = 0;
#pragma unroll 1
  for (;;) {
    if (tries) {
      gc_note_try(errand, s);
    } else {
      if (!from) {
        need = gc_need(gc_floor(s->b.states));
        if (!gc_drivers(job, s->b.terms + job.first_term, need, &blocks)) break;
      }
      if (from * gridDim.x >= blocks) break;
      gc_note_share(v, errand, need, blocks, from, s);
      from += GC_WORK;
    }
    __syncthreads();
    gc_do_work(v, errand, tries, s);
    if (tries) gc_await_floor(errand, s);
    tries = false;
  }
}

/* ---- the answer ---- */

/* Leaves only the best of many candidates, by a block of threads: gathers their scores in shared memory, and chooses
 * there. */
static __device__ __forceinline__ void gc_thin_out(gc_alone_shared *s) {
  const uint32_t count = __ldcg(&s->b.states->count), k = s->b.jobs[0].k;
  unsigned long long *cand = s->b.cand, *best = (unsigned long long *)s->work, key;
  uint32_t *scores = (uint32_t *)s->queue, mine = 0, kth, i;
  if (s->b.jobs[0].count || count <= max(k, GC_CLOSE) || count > min(s->b.room, (uint32_t)(sizeof s->queue / 4)))
    return;
  static_assert(sizeof s->work / 8 == GC_RANKED, "the best ones");
#pragma unroll 4
  for (i = threadIdx.x; i < count; i += blockDim.x) scores[i] = (uint32_t)(__ldcg(cand + i) >> 32);
  __syncthreads();
  kth = (uint32_t)gc_select(gc_keys_scores{scores}, count, k, max(k, GC_CLOSE), s->hist);
  for (i = threadIdx.x; i < count; i += blockDim.x) mine += scores[i] >= kth;
  mine = __reduce_add_sync(GC_WARP, mine);
  if (!gc_lane()) atomicAdd(&s->next, mine);
  __syncthreads();
  if (s->next > GC_RANKED) return; /* many have one score */
  for (i = threadIdx.x; i < count; i += blockDim.x) {
    if (scores[i] >= kth) {
      key = __ldcg(cand + i);
      best[atomicAdd(&s->nwork, 1)] = key;
    }
    cand[i] = 0;
  }
  __syncthreads();
  for (i = threadIdx.x; i < s->nwork; i += blockDim.x) cand[i] = best[i];
  if (!threadIdx.x) s->b.states->count = s->nwork;
  __syncthreads();
}

/* Answers a query whose plan is open: an AND, or an OR by MaxScore. */
static __device__ __forceinline__ void gc_answer(const gc_view &v, const gc_errand &errand, gc_alone_shared *s) {
  gc_try_and_take(v, errand, s);
  __threadfence();
  __syncthreads();
  if (!threadIdx.x) s->last = atomicAdd(&errand.desk->control.ended, 1) == gridDim.x - 1;
  __syncthreads();
  if (!s->last) return;
  __threadfence();
  gc_thin_out(s);
  gc_final_query(v, s->b, 0, (unsigned long long *)s->queue);
  __syncthreads();
  if (threadIdx.x < (sizeof(gc_control) + sizeof(gc_state)) / 4) ((uint32_t *)errand.desk)[threadIdx.x] = 0;
  gc_ring(errand.bell);
}

/* Answers it by one launch. On an H200, 25.2 million documents, the median OR takes 34 us from call to hits, of which
 * the kernel takes 23: 1 to open the plan, 11 until its floor is set, 9 to take the blocks, 2 to write the hits. 5 pass
 * until the kernel begins and the bell is heard, 5 in the host's calls. */
static __global__ void __launch_bounds__(GC_GUIDED_THREADS, GC_ALONE_BLOCKS)
    gc_alone(const __grid_constant__ gc_view v, const __grid_constant__ gc_batch given,
        const __grid_constant__ gc_letter letter, const __grid_constant__ gc_errand errand) {
  __shared__ gc_alone_shared s;
  gc_open_letter(given, letter, errand, &s);
  gc_answer(v, errand, &s);
}

/* Puts the plan of another small launch where its kernels look for it, and clears the tiles' bounds: by one more kernel
 * of theirs rather than by transfers, for which each would wait longer. */
static __global__ void __launch_bounds__(256)
    gc_receive(const __grid_constant__ gc_letter letter, uint4 *to, uint32_t size, uint32_t *bounds, uint64_t nbounds) {
  uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
  gc_chained();
  if (i < size) to[i] = letter.words[i];
  for (; i < nbounds; i += (uint64_t)gridDim.x * blockDim.x) bounds[i] = 0;
}
