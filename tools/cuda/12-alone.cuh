
/* ========================
 * [cuda-12-alone]  one query alone: all of it in one kernel
 *
 * Most of the time of a query alone passes in waiting: for a transfer, for kernels in turn, for loads that need what
 * other loads have brought. So one kernel answers it, which has the plan among its parameters. Some of its blocks of
 * threads sample the query first. The last of them sets a floor by what they found; all others wait for it. Then all
 * take those blocks of the driving lists whose bounds reach the floor. The block of threads that ends last writes the
 * hits and sets the done flag in the host's memory.
 *
 * Uses      [cuda-03-bp128], [cuda-09-and], [cuda-11-topk].
 * Start at  gc_alone; gc_receive (the plans of other small launches).
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_PLAN_ARGS_BYTES 3072u /* bytes of a plan at most that a kernel takes as a parameter */
#define GC_ALONE_BLOCKS 3 /* blocks of threads of gc_alone on a multiprocessor */

/* The plan of a small launch, as a kernel's parameter: it needs no transfer. */
typedef struct gc_plan_args {
  uint4 words[GC_PLAN_ARGS_BYTES / 16];
} gc_plan_args;

#define GC_SAMPLERS 264u /* blocks of threads at most that sample a query */
#define GC_SAMPLER_SCORES 16u /* scores that each of them keeps, of an OR */
#define GC_WORK 512u /* blocks of lists that a block of threads takes at once */
#define GC_TOGETHER 3u /* blocks of lists at most that all its warps take together, one block after another */
#define GC_CLOSE 128u /* candidates at most that are ranked at once: of more, the best are selected first */

/* What the blocks of threads of gc_alone share. All but the scores is 0 between launches. */
typedef struct gc_alone_state {
  gc_control control; /* .next_and: blocks of threads that have begun; .ended: that have ended */
  gc_state state; /* of the job; .opened: blocks of threads that have sampled; .level 1: the floor is set */
  uint32_t score[GC_SAMPLERS * GC_SAMPLER_SCORES];
} gc_alone_state;

/* What a query alone needs besides its plan. */
typedef struct gc_alone_args {
  gc_alone_state *state;
  const uint8_t *from; /* the address at which gc_launch_view says that the plan lies */
  uint32_t size; /* of the plan, in units of 16 bytes */
  uint32_t samplers; /* blocks of threads that sample; 0: the query has no floor */
  uint32_t step; /* of an AND: every step-th block of its driver is sampled; 0: none */
  uint32_t take[GC_LAYERS]; /* of an OR: so many blocks of its first lists are sampled */
  gc_done_flag flag;
} gc_alone_args;

/* What the warps of a block of threads share. */
typedef struct gc_alone_shared {
  gc_queue queue[GC_GUIDED_THREADS / 32];
  uint4 words[GC_PLAN_ARGS_BYTES / 16]; /* the plan */
  gc_launch_view b;
  uint2 work[GC_WORK]; /* list, block */
  uint32_t nwork, next; /* how many there are; the next that a warp takes */
  uint32_t rank; /* its number, in the order in which blocks of threads begin */
  uint32_t last;
  uint32_t hist[256];
  uint32_t doc[GPUIR__BLOCK], sum[GPUIR__BLOCK]; /* of gc_score_block: documents and their scores */
  uint32_t dead[GPUIR__BLOCK / 32]; /* documents that are no candidates, a bit each */
} gc_alone_shared;

/* Returns where the plan's copy in shared memory has what gc_launch_view says lies at p. */
template <typename T>
static __device__ __forceinline__ const T *gc_in_plan_args(const gc_alone_args &args, const uint4 *words, const T *p) {
  return (const T *)((const uint8_t *)words + ((const uint8_t *)p - args.from));
}

/* Copies the plan and the launch's view from the parameters to shared memory, where both can be indexed. */
static __device__ __forceinline__ void gc_open_plan(const gc_launch_view &given, const gc_plan_args &plan,
    const gc_alone_args &args, gc_alone_shared *s) {
  static_assert(GC_PLAN_ARGS_BYTES / 16 <= GC_GUIDED_THREADS && sizeof(gc_launch_view) / 4 < GC_GUIDED_THREADS,
      "a word a thread");
  const uint32_t i = threadIdx.x;
  if (i == GC_GUIDED_THREADS - 1) s->rank = args.samplers ? atomicAdd(&args.state->control.next_and, 1) : blockIdx.x;
  if (i < args.size) s->words[i] = plan.words[i];
  if (i < sizeof s->b / 4) ((uint32_t *)&s->b)[i] = ((const uint32_t *)&given)[i];
  __syncthreads();
  if (!i) {
    s->b.terms = gc_in_plan_args(args, s->words, given.terms);
    s->b.jobs = gc_in_plan_args(args, s->words, given.jobs);
    s->b.query_jobs = gc_in_plan_args(args, s->words, given.query_jobs);
    s->nwork = s->next = 0;
  }
  __syncthreads();
}

/* Returns whether the query is an AND; otherwise it is an OR. */
static __device__ __forceinline__ bool gc_is_and(const gc_alone_shared *s) { return !s->b.jobs[0].any; }

/* ---- a block of a list, by a block of threads ---- */

/* Finds the documents of a block of a list, and what the list adds to them, by a warp. */
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

/* Scores the documents of a block of list e. Those become dead that an earlier or an excluded list holds, or that a
 * list of an AND lacks. The warps look different documents up in different lists at the same time: so it takes as long
 * as one list does. */
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

/* Writes the best scores of an OR's sampled block to the shared state. */
static __device__ __forceinline__ void gc_put_sample_scores(const gc_alone_args &args, gc_alone_shared *s) {
  uint32_t *to = args.state->score + s->rank * GC_SAMPLER_SCORES, o;
  if (threadIdx.x < GPUIR__BLOCK && (s->dead[threadIdx.x / 32] >> gc_lane() & 1)) s->sum[threadIdx.x] = 0;
  __syncthreads();
  if (threadIdx.x < GPUIR__BLOCK) {
    const uint32_t mine = s->sum[threadIdx.x];
    uint32_t rank = 0;
#pragma unroll 8
    for (o = 0; o < GPUIR__BLOCK; o++) rank += (s->sum[o] > mine) | ((s->sum[o] == mine) & (o < threadIdx.x));
    if (rank < GC_SAMPLER_SCORES) __stcg(to + rank, mine);
  }
}

/* Does the work that has been noted: a warp takes a block; where there are few blocks, all warps take one after
 * another. An OR's sample yields scores; everything else yields candidates. */
static __device__ __forceinline__ void gc_do_work(const gc_view &v, const gc_alone_args &args, bool sampling,
    gc_alone_shared *s) {
  const unsigned long long floor = gc_floor(s->b.states);
  const uint32_t n = s->nwork;
  gc_queue *w = &s->queue[threadIdx.x / 32];
  uint32_t i;
  if (n <= GC_TOGETHER) {
    for (i = 0; i < n; i++) {
      gc_score_any_block(v, s->work[i].x, s->work[i].y, s);
      if (!gc_is_and(s) && sampling) gc_put_sample_scores(args, s);
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

/* Returns how many of a job's lists drive it; *blocks: how many blocks these have. */
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

/* Notes number i of the driving lists' blocks as work, if its bound reaches the need and no sample has taken it. */
static __device__ __forceinline__ void gc_look_at_block(const gc_view &v, const gc_job &job, const gc_term *terms,
    const gc_alone_args &args, uint32_t need, uint32_t i, gc_alone_shared *s) {
  uint32_t e = 0, behind = 0, r;
  while (i >= terms[e].nblocks) i -= terms[e++].nblocks;
  if (!job.any && args.step && i % args.step == 0 && i / args.step < args.samplers) return;
  if (need > 1) {
    const gc_term &t = terms[e];
    for (r = e + 1; r < job.npositive; r++) behind += terms[r].most;
    if ((t.kind == GC_LONG && job.stored ? t.q * __ldg(v.most + t.first_block + i) : t.most) + behind < need) return;
  }
  gc_add_work(s, e, i);
}

/* Notes blocks of the driving lists as work, of those that are this block of threads' to take, from number `from` of
 * these on. Blocks are dealt out evenly, as good ones may lie together. Where there are many, eight in a row are dealt
 * out together, as one load fetches their bounds. */
static __device__ __forceinline__ void gc_note_share(const gc_view &v, const gc_alone_args &args, uint32_t need,
    uint32_t blocks, uint32_t from, gc_alone_shared *s) {
  const gc_job &job = s->b.jobs[0];
  const gc_term *terms = s->b.terms + job.first_term;
  const uint32_t unit = blocks <= 64 * gridDim.x ? 1 : 8;
  uint32_t u;
  for (u = from + threadIdx.x; u < from + GC_WORK; u += blockDim.x) {
    const uint64_t i = ((uint64_t)(u / unit) * gridDim.x + s->rank) * unit + u % unit;
    if (i < blocks) gc_look_at_block(v, job, terms, args, need, (uint32_t)i, s);
  }
}

/* ---- sampling a query for a floor ---- */

/* Notes as work what this block of threads samples: a block of an AND's driver, or of an OR's first lists. The blocks
 * are spread evenly over the lists. */
static __device__ __forceinline__ void gc_note_sample(const gc_alone_args &args, gc_alone_shared *s) {
  const gc_term *terms = s->b.terms + s->b.jobs[0].first_term;
  uint32_t i = s->rank, e = 0;
  if (i >= args.samplers) return;
  if (gc_is_and(s)) {
    if (args.step && !threadIdx.x) gc_add_work(s, 0, i * args.step);
  } else {
    while (e < GC_LAYERS && i >= args.take[e]) i -= args.take[e++];
    if (e < GC_LAYERS && !threadIdx.x) gc_add_work(s, e, i * (terms[e].nblocks / args.take[e]));
    if (e == GC_LAYERS && threadIdx.x < GC_SAMPLER_SCORES)
      __stcg(args.state->score + s->rank * GC_SAMPLER_SCORES + threadIdx.x, 0);
  }
}

/* Scores as keys. */
struct gc_keys_scores {
  const uint32_t *p;
  __device__ unsigned long long operator()(uint32_t i) const { return p[i]; }
};

/* Sets the floor, by the last block of threads to sample. It is about the k-th best score of an OR's sampled documents,
 * or of an AND's candidates; of many candidates the first ones are used. */
static __device__ __forceinline__ void gc_set_floor(const gc_alone_args &args, gc_alone_shared *s) {
  const gc_job &job = s->b.jobs[0];
  const bool is_and = gc_is_and(s);
  const uint32_t room = sizeof s->queue / 4,
                 all = is_and ? __ldcg(&s->b.states->count) : args.samplers * GC_SAMPLER_SCORES;
  const uint32_t n = min(min(all, s->b.room), room);
  uint32_t *scores = (uint32_t *)s->queue, score = job.seed, i;
  for (i = threadIdx.x; i < n; i += blockDim.x)
    scores[i] = is_and ? (uint32_t)(__ldcg(s->b.cand + i) >> 32) : __ldcg(args.state->score + i);
  __syncthreads();
  if (n >= job.k) score = max(score, (uint32_t)gc_select(gc_keys_scores{scores}, n, job.k, 2 * job.k, s->hist));
  if (!threadIdx.x) {
    if (score) *(volatile unsigned long long *)&s->b.states->floor = ((unsigned long long)score << 32) - 1;
    __threadfence();
    *(volatile uint32_t *)&s->b.states->level = 1;
  }
}

/* Ends the sampling; all blocks of threads wait for the floor. They wait only for such that run already, as ranks
 * follow the order of beginning: otherwise the kernel could wait forever. */
static __device__ __forceinline__ void gc_await_floor(const gc_alone_args &args, gc_alone_shared *s) {
  if (s->rank < args.samplers) {
    __threadfence();
    __syncthreads();
    if (!threadIdx.x) s->last = atomicAdd(&s->b.states->opened, 1) == args.samplers - 1;
    __syncthreads();
    if (s->last) {
      __threadfence();
      gc_set_floor(args, s);
    }
  }
  if (!threadIdx.x)
    while (!*(volatile const uint32_t *)&s->b.states->level) {}
  __threadfence();
  __syncthreads();
}

/* Samples the query, if it is to be sampled, and takes this block of threads' blocks. Both call gc_do_work at one
 * place, as its code is long. */
static __device__ __forceinline__ void gc_sample_and_take(const gc_view &v, const gc_alone_args &args,
    gc_alone_shared *s) {
  const gc_job &job = s->b.jobs[0];
  bool sampling = args.samplers != 0;
  uint32_t need = 0, blocks = 0, from = 0;
#pragma unroll 1
  for (;;) {
    if (sampling) {
      gc_note_sample(args, s);
    } else {
      if (!from) {
        need = gc_need(gc_floor(s->b.states));
        if (!gc_drivers(job, s->b.terms + job.first_term, need, &blocks)) break;
      }
      if (from * gridDim.x >= blocks) break;
      gc_note_share(v, args, need, blocks, from, s);
      from += GC_WORK;
    }
    __syncthreads();
    gc_do_work(v, args, sampling, s);
    if (sampling) gc_await_floor(args, s);
    sampling = false;
  }
}

/* ---- the answer ---- */

/* Leaves only the best of many candidates, by a block of threads. It gathers their scores in shared memory and selects
 * there. */
static __device__ __forceinline__ void gc_keep_candidates(gc_alone_shared *s) {
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
static __device__ __forceinline__ void gc_answer(const gc_view &v, const gc_alone_args &args, gc_alone_shared *s) {
  gc_sample_and_take(v, args, s);
  __threadfence();
  __syncthreads();
  if (!threadIdx.x) s->last = atomicAdd(&args.state->control.ended, 1) == gridDim.x - 1;
  __syncthreads();
  if (!s->last) return;
  __threadfence();
  gc_keep_candidates(s);
  gc_final_query(v, s->b, 0, (unsigned long long *)s->queue);
  __syncthreads();
  if (threadIdx.x < (sizeof(gc_control) + sizeof(gc_state)) / 4) ((uint32_t *)args.state)[threadIdx.x] = 0;
  gc_set_done_flag(args.flag);
}

/* Answers one query by one launch. tools/results/cuda_notes.txt says where its time goes. */
static __global__ void __launch_bounds__(GC_GUIDED_THREADS, GC_ALONE_BLOCKS)
    gc_alone(const __grid_constant__ gc_view v, const __grid_constant__ gc_launch_view given,
        const __grid_constant__ gc_plan_args plan, const __grid_constant__ gc_alone_args args) {
  __shared__ gc_alone_shared s;
  gc_open_plan(given, plan, args, &s);
  gc_answer(v, args, &s);
}

/* Puts the plan of another small launch where its kernels look for it, and clears the tiles' bounds. One more kernel
 * does so sooner than a transfer and a memset, which each kernel would wait for. */
static __global__ void __launch_bounds__(256) gc_receive(const __grid_constant__ gc_plan_args plan, uint4 *to,
    uint32_t size, uint32_t *bounds, uint64_t nbounds) {
  uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
  gc_chained();
  if (i < size) to[i] = plan.words[i];
  for (; i < nbounds; i += (uint64_t)gridDim.x * blockDim.x) bounds[i] = 0;
}
