
/* ========================
 * [cuda-09-and]  AND; OR by MaxScore: documents of a driving list are looked for in the others
 *
 * There are two ways to look a document up, by what the device has of the lists. Without guides, as in a cached index,
 * gc_and_decoding decodes: a warp decodes a block of the shortest list and, for each further list, the blocks that may
 * hold its documents. With guides, gc_and_guided and gc_max follow documents by marks and peaks, and decode a list's
 * block only if the list is not expanded. tools/results/cuda_notes.txt says what was predicted, counted and measured,
 * and what was tried without gain.
 *
 * Uses      [cuda-03-bp128], [cuda-05-expand].
 * Start at  gc_and_decoding; gc_and_all, which the kernel of [cuda-11-topk] calls; gc_max_plan, gc_max.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_AND_THREADS 256u
#define GC_GUIDED_THREADS 256u /* of gc_and_guided and the kernels of MaxScore */
#define GC_FINAL_THREADS 256u
#define GC_GUIDED_BLOCKS 4 /* blocks of threads on a multiprocessor, of gc_and_guided and gc_max_plan; 5 would spill */
#define GC_MAX_BLOCKS 6 /* the same of gc_max */
#define GC_SIDE 2u /* documents that a lane follows side by side */
#define GC_QUEUE (GPUIR__BLOCK + 32 * GC_SIDE) /* documents that wait in a warp's queue at most */
#define GC_SIFTED (2 * 32 * GC_SIDE) /* documents of an AND at most that wait for look-ups */
#define GC_RAISED_BLOCKS 256u /* blocks from which on an AND's driver is long: a raised floor can spare some of them */
#define GC_RAISE_LEAST 32u /* candidates at least that a floor is raised from */
#define GC_RAISE_READ 512u /* the last candidates, that are read then */
#define GC_RAISE_MOST 1024u /* times k: with more candidates the floor is not raised */
#define GC_FIRST 16u /* blocks of the shortest list in a sample */
#define GC_FIRST_ALONE 4u /* the same where floors are not raised */
#define GC_LAYERS 3u /* lists that add blocks to a sample, each further one half as many */
#define GC_LAYERS_ALONE 1u /* the same where floors are not raised: such a launch would wait for each list */
#define GC_SAMPLED_LISTS 8u /* lists of a sample at most: further ones make up for blocks that shorter ones lack */
#define GC_SAMPLED ((GC_FIRST + GC_FIRST / 2 + GC_FIRST / 4) * GPUIR__BLOCK) /* documents of a sample at most */
#define GC_SCORED 1024u /* documents of a sample that are scored at most */
#define GC_SCORED_LEAST 64u
#define GC_OPENING 8u /* of a long driver, one in so many groups of blocks is taken first: its opening */
#define GC_OPENED_LEAST 128u /* blocks that a driver has at least to have an opening */
/* The cost of following a block's postings through the other lists; the unit is a block that is added to tiles. */
#define GC_PROBE_COST 1u
#define GC_PROBE_ALONE 8u /* the same if lists are decoded, or if all wait for the last block as floors stay */
#define GC_TILE_COST 8u /* of a tile, in the same unit */

/* ---- candidates ---- */

/* Raises a job's floor to about the k-th best of its candidates, by a warp that has brought their number to `level`: so
 * the other warps have fewer documents to follow. A single term's floor is known beforehand, so its job is left out.
 * With very many candidates the floor is not raised, as reading them takes longer than the rest of the kernel. */
static __device__ __forceinline__ void gc_raise_at(const gc_launch_view &b, uint32_t j, uint32_t level,
    uint32_t *count) {
  const uint32_t k = b.jobs[j].k;
  uint32_t some, score;
  if (level < max(2 * k, GC_RAISE_LEAST) || level > min(GC_RAISE_MOST * k, b.room) || b.jobs[j].npositive == 1) return;
  some = level / 2 >= 4 * k ? level / 2 : level; /* the last ones are the best */
  __syncwarp();
  score = gc_kth_score(gc_keys_cand{b.cand + (uint64_t)j * b.room + level - some}, some, k, count);
  if (!gc_lane() && score) atomicMax(&b.states[j].floor, ((unsigned long long)score << 32) - 1);
}

/* Raises the floor of an AND, if its candidates grew from `before` to `now` by enough. An AND has few matches: a floor
 * that is raised only each time their number has doubled would spare little. */
static __device__ __forceinline__ void gc_raise_often(const gc_launch_view &b, uint32_t j, uint32_t before,
    uint32_t now, uint32_t *count) {
  const uint32_t k = b.jobs[j].k, n = now & ~31u;
  const uint32_t step = max(32 - __clz((int)(max(2 * k, GC_RAISE_LEAST) - 1)), 29 - __clz((int)now)); /* log2 */
  uint32_t some, score;
  if (before >> step == now >> step || now > min(GC_RAISE_MOST * k, b.room) || b.jobs[j].npositive == 1) return;
  some = min(n, max(GC_RAISE_READ, 2u << step)); /* the last ones are the best */
  __syncwarp();
  score = gc_kth_score(gc_keys_cand{b.cand + (uint64_t)j * b.room + n - some}, some, k, count);
  if (!gc_lane() && score) atomicMax(&b.states[j].floor, ((unsigned long long)score << 32) - 1);
}

/* When the floor is raised. */
enum { GC_RAISE_NEVER, GC_RAISE_DOUBLED, GC_RAISE_OFTEN };

/* Adds the lane's candidates, those of `live`, to the job's buffer, and raises its floor as `raises` says.
 * GC_RAISE_DOUBLED: each time their number has doubled. It is raised at once, not behind the warp's blocks: later it
 * would spare less. count: 128 words of shared memory. */
template <uint32_t SIDE>
static __device__ __forceinline__ void gc_offer(const gc_launch_view &b, uint32_t j, int raises, uint32_t live,
    const uint32_t doc[SIDE], const uint32_t score[SIDE], uint32_t *count) {
  uint32_t vote[SIDE], n = 0, before = 0, at, level, u;
#pragma unroll
  for (u = 0; u < SIDE; u++) {
    vote[u] = __ballot_sync(GC_WARP, live >> u & 1);
    n += __popc(vote[u]);
  }
  if (!n) return;
  if (!gc_lane()) before = atomicAdd(&b.states[j].count, n);
  if (b.jobs[j].count) return;
  before = at = __shfl_sync(GC_WARP, before, 0);
#pragma unroll
  for (u = 0; u < SIDE; u++) {
    const uint32_t to = at + gc_rank(vote[u]);
    if ((live >> u & 1) && to < b.room) __stcg(b.cand + (uint64_t)j * b.room + to, gpuir__key(score[u], doc[u]));
    at += __popc(vote[u]);
  }
  level = 1u << (31 - __clz((int)at));
  if (raises == GC_RAISE_OFTEN) gc_raise_often(b, j, before, at, count);
  else if (raises && before < level) gc_raise_at(b, j, level, count);
}

/* ---- AND without guides ---- */

/* Returns which live ones of N docIDs per lane a list holds. It decodes the blocks that may hold them, one after
 * another, into shared memory (128 words). where[i]: the posting's number in the list. */
template <uint32_t N>
static __device__ __forceinline__ uint32_t gc_probe(const gc_view &v, const gc_term &t, const uint32_t d[N],
    uint32_t live, uint32_t where[N], uint32_t *docs) {
  uint32_t found = 0, from = 0, lane = gc_lane(), i;
  while (from < t.nblocks) {
    uint32_t least = UINT32_MAX, last = UINT32_MAX, n, e[4];
#pragma unroll
    for (i = 0; i < N; i++)
      if (live >> i & 1) least = min(least, d[i]);
    if (!__any_sync(GC_WARP, live)) break;
    least = __reduce_min_sync(GC_WARP, least);
    if (t.kind == GC_LONG) {
      from = gc_find_block(v.last + t.first_block, from, t.nblocks, least);
      if (from >= t.nblocks) break;
      last = __ldg(v.last + t.first_block + from);
    }
    n = gc_decode_docs(v, t, from, e);
    __syncwarp();
#pragma unroll
    for (i = 0; i < 4; i++) docs[4 * lane + i] = 4 * lane + i < n ? e[i] : UINT32_MAX;
    __syncwarp();
#pragma unroll
    for (i = 0; i < N; i++)
      if ((live >> i & 1) && d[i] <= last) {
        uint32_t at = 0, step;
        for (step = 64; step; step /= 2)
          if (docs[at + step - 1] < d[i]) at += step;
        live &= ~(1u << i);
        if (at < n && docs[at] == d[i]) {
          found |= 1u << i;
          where[i] = from * GPUIR__BLOCK + at;
        }
      }
    from++;
  }
  __syncwarp();
  return found;
}

/* Returns whether a document is not deleted. */
static __device__ __forceinline__ bool gc_lives(const gc_view &v, uint32_t doc) {
  return !v.deleted || !(__ldg(v.deleted + doc / 32) >> doc % 32 & 1);
}

/* Offers the documents of one driver block that all lists of the job hold, with their scores. */
static __device__ void gc_and_block(const gc_view &v, const gc_launch_view &b, uint32_t j, uint32_t block,
    uint32_t *docs) {
  const gc_job job = b.jobs[j];
  const gc_term *terms = b.terms + job.first_term;
  uint32_t lane = gc_lane(), d[4], score[4] = {0, 0, 0, 0}, live = 0, i, r, n;
  uint32_t where[4];
  unsigned long long floor = gc_floor(b.states + j);
  const gc_term driver = terms[0];
  n = gc_decode_docs(v, driver, block, d);
#pragma unroll
  for (i = 0; i < 4; i++)
    if (4 * lane + i < n && gc_lives(v, d[i])) live |= 1u << i;
  for (r = 1; r <= job.nterms && __any_sync(GC_WARP, live); r++) { /* the driver comes last */
    const gc_term t = terms[r < job.nterms ? r : 0];
    uint32_t found = live;
    if (r < job.nterms) {
      found = gc_probe<4>(v, t, d, live, where, docs);
    } else {
#pragma unroll
      for (i = 0; i < 4; i++) where[i] = block * GPUIR__BLOCK + 4 * lane + i;
    }
    if (t.negated) {
      live &= ~found;
      continue;
    }
    live &= found;
#pragma unroll
    for (i = 0; i < 4; i++)
      if (live >> i & 1) score[i] += t.q * gc_contribution(t.weight, gc_freq(v, t, where[i]), gc_norm(v, job, d[i]));
  }
#pragma unroll
  for (i = 0; i < 4; i++)
    if (gpuir__key(score[i], d[i]) <= floor) live &= ~(1u << i);
  gc_offer<4>(b, j, driver.nblocks >= GC_RAISED_BLOCKS ? GC_RAISE_OFTEN : GC_RAISE_NEVER, live, d, score, docs);
}

/* The blocks of a ticket. */
typedef struct gc_blocks {
  uint32_t job, from, n; /* n 0: there is no such ticket */
  uint32_t opening; /* of its turn; 0 in the first turn */
  uint32_t opens; /* 1: it belongs to a first turn that the others wait for */
} gc_blocks;

/* Draws the warp's next ticket. A long driver is taken in turns: every 32nd group of its blocks, those midway between,
 * and so on. Each turn of all jobs comes before the next turn of any. So the floor that one turn's matches have raised
 * spares much of the next turn. */
static __device__ __forceinline__ gc_blocks gc_next_blocks(const gc_launch_view &b) {
  gc_blocks x = {0, 0, 0, 0, 0};
  uint32_t at = 0;
  if (!gc_lane()) at = atomicAdd(&b.control->next_and, 1);
  at = __shfl_sync(GC_WARP, at, 0);
  if (at < b.ands.tickets) {
    const uint32_t *start = b.ands.start, n = b.ands.n;
    const uint32_t entry = gc_find_block(start, 0, n, at + 1) - 1;
    const gc_turn turn = b.ands.turns[entry];
    at -= start[entry];
    x.job = turn.job;
    x.from = (turn.first + at * turn.step) * turn.group;
    x.opening = turn.first ? turn.opening : 0;
    x.opens = !turn.first && turn.opening;
    x.n = min(turn.group, b.terms[b.jobs[turn.job].first_term].nblocks - x.from);
  }
  return x;
}

/* Intersects by decoding. */
static __global__ void __launch_bounds__(GC_AND_THREADS, 3)
    gc_and_decoding(const __grid_constant__ gc_view v, const __grid_constant__ gc_launch_view b) {
  __shared__ uint32_t docs[GC_AND_THREADS / 32][GPUIR__BLOCK];
  gc_chained();
  for (;;) {
    const gc_blocks x = gc_next_blocks(b);
    uint32_t i;
    if (!x.n) return;
    if (b.states[x.job].done) continue;
    for (i = 0; i < x.n; i++) gc_and_block(v, b, x.job, x.from + i, docs[threadIdx.x / 32]);
  }
}

/* ---- following documents through lists with guides ----
 *
 * The documents of a driving list wait in the warp's queue until 64 are together. They are followed through the other
 * lists, two per lane, as long as these can still lift them to the floor. Two, because a lane waits for memory most of
 * the time. EXPANDED code is for jobs whose lists are all expanded: it keeps no registers for decoding. Other jobs take
 * one document per lane. A kernel that CALLS has functions for decoding and look-ups, which makes its code shorter;
 * gc_and_guided inlines them, as calls would slow it down.
 *
 * AND: the shortest list drives. A document is dropped when a list lacks it, which that list's peak mostly says: it is
 * 0.
 *
 * OR: list e of the job, by ascending df, drives. It leaves documents that an earlier list holds to that one. Lists
 * whose bounds together stay below the floor drive nothing (Turtle and Flood 1995). A posting is given up as soon as
 * the peaks of the lists behind cannot lift it to the floor. The floor comes from a sample, and rises as documents are
 * found. */

typedef struct alignas(16) gc_queue {
  uint32_t docs[GPUIR__BLOCK]; /* of gc_probe, and of gc_kth_score */
  uint32_t doc[GC_QUEUE], score[GC_QUEUE]; /* documents that wait */
  uint32_t rest[GC_QUEUE]; /* bounds of the lists behind; of an AND before it is sifted, of the second list */
  uint32_t sifted_doc[GC_SIFTED], sifted_score[GC_SIFTED], sifted_rest[GC_SIFTED]; /* of ANDs */
} gc_queue;

/* Returns *p if `yes`, otherwise 0. The load is predicated, not branched over: so several can be in flight at once. */
static __device__ __forceinline__ uint32_t gc_load_if(uint32_t yes, const uint32_t *p) {
  uint32_t x;
  asm("{\n\t.reg .pred yes;\n\tsetp.ne.u32 yes, %1, 0;\n\tmov.u32 %0, 0;\n\t@yes ld.global.nc.u32 %0, [%2];\n\t}"
      : "=&r"(x)
      : "r"(yes), "l"(p));
  return x;
}

/* Loads the word that holds the document's peak if `yes`; otherwise returns 0. */
static __device__ __forceinline__ uint32_t gc_peak_word(const gc_view &v, const gc_term &t, uint32_t doc,
    uint32_t yes) {
  return gc_load_if(yes, gc_peaks_of(v.peaks, t) + (doc >> t.span) / (32 / GC_PEAK_BITS));
}

/* Returns what that word says: the most that the list can add to a document of the span; 0: it holds none of them. */
static __device__ __forceinline__ uint32_t gc_peak_in(const gc_term &t, uint32_t doc, uint32_t word) {
  return t.step * (__funnelshift_r(word, 0, (doc >> t.span) * GC_PEAK_BITS) & GC_PEAK_MOST);
}

/* Finds the most that the list can add to N documents per lane; for those that are not live the result has no
 * meaning. */
template <uint32_t N>
static __device__ __forceinline__ void gc_bounds_at(const gc_view &v, const gc_term &t, const uint32_t doc[N],
    uint32_t live, uint32_t bound[N]) {
  const uint32_t step = t.step;
  uint32_t i;
#pragma unroll
  for (i = 0; i < N; i++) bound[i] = gc_peak_word(v, t, doc[i], step ? live & 1u << i : 0);
#pragma unroll
  for (i = 0; i < N; i++) bound[i] = step ? gc_peak_in(t, doc[i], bound[i]) : t.most;
}

/* Returns whether a list with marks may hold the document. Three of each group's four words are marks. */
static __device__ __forceinline__ bool gc_marked(const gc_view &v, const gc_term &t, uint32_t doc) {
  const uint32_t bit = doc >> t.shift, word = bit / 32;
  static_assert(GC_CELLS == 96, "three words of marks");
  return __ldg((const uint32_t *)(v.marks + t.marks) + word + word / 3) >> (bit & 31) & 1;
}

/* Finds the most that a list adds to each live one of N documents per lane; 0: it does not hold the document. All loads
 * start before the first one is waited for. */
template <bool EXPANDED, uint32_t N>
static __device__ __forceinline__ void gc_bound_each(const gc_view &v, const gc_term &t, const uint32_t doc[N],
    uint32_t live, uint32_t bound[N]) {
  uint32_t i;
  if (t.step) {
#pragma unroll
    for (i = 0; i < N; i++) bound[i] = gc_peak_word(v, t, doc[i], live & 1u << i);
#pragma unroll
    for (i = 0; i < N; i++) bound[i] = gc_peak_in(t, doc[i], bound[i]);
  } else {
    const bool marked = EXPANDED || t.kind == GC_LONG;
#pragma unroll
    for (i = 0; i < N; i++) bound[i] = (live >> i & 1) && (!marked || gc_marked(v, t, doc[i])) ? max(t.most, 1u) : 0;
  }
}

/* Finds an expanded list's first posting from *at on whose docID is not below doc; x: the docID of posting *at. Returns
 * whether that docID is doc. */
static __device__ __forceinline__ bool gc_seek(const gc_view &v, const gc_term &t, uint32_t doc, uint32_t x,
    uint32_t *at) {
  uint32_t lo = *at, hi = lo, step;
  for (step = 1; x < doc; step *= 2) {
    lo = hi + 1;
    hi += min(step, t.df - hi);
    x = hi < t.df ? gc_doc_at(v, t, hi) : UINT32_MAX;
  }
  while (lo < hi) {
    const uint32_t mid = lo + (hi - lo) / 2, y = gc_doc_at(v, t, mid);
    if (y < doc) {
      lo = mid + 1;
    } else {
      hi = mid;
      x = y;
    }
  }
  *at = lo;
  return x == doc;
}

/* Looks the live ones of SIDE documents per lane up in an expanded list. Returns those that it holds, a bit each; at:
 * their postings' numbers. A group of 16 bytes has 96 marks and the number of postings before them. So a mark says
 * where in the list the document's posting is: just there if each mark covers one document; otherwise there or a little
 * behind, as several postings may share a mark. A contribution is then the second or third load that waits for another;
 * through the directory it would be the sixth. */
template <uint32_t SIDE>
static __device__ __forceinline__ uint32_t gc_find(const gc_view &v, const gc_term &t, const uint32_t doc[SIDE],
    uint32_t live, uint32_t at[SIDE]) {
  uint32_t u;
  uint4 m[SIDE];
#pragma unroll
  for (u = 0; u < SIDE; u++)
    m[u] = live >> u & 1 ? __ldg(v.marks + t.marks + (doc[u] >> t.shift) / GC_CELLS) : make_uint4(0, 0, 0, 0);
#pragma unroll
  for (u = 0; u < SIDE; u++) {
    const uint32_t cell = (doc[u] >> t.shift) % GC_CELLS, bit = 1u << (cell & 31);
    const uint32_t word = cell < 32 ? m[u].x : cell < 64 ? m[u].y : m[u].z;
    at[u] = m[u].w + __popc(word & (bit - 1)) + (cell < 32 ? 0 : __popc(m[u].x)) + (cell < 64 ? 0 : __popc(m[u].y));
    if (!(word & bit) || at[u] >= t.df) live &= ~(1u << u);
  }
  if (t.shift) {
    uint32_t x[SIDE];
#pragma unroll
    for (u = 0; u < SIDE; u++) x[u] = live >> u & 1 ? gc_doc_at(v, t, at[u]) : 0;
#pragma unroll
    for (u = 0; u < SIDE; u++)
      if ((live >> u & 1) && !gc_seek(v, t, doc[u], x[u], &at[u])) live &= ~(1u << u);
  }
  return live;
}

/* Finds what a list adds to the live ones of SIDE documents per lane, and returns those that it holds. SIDE is 1 unless
 * EXPANDED. asks: 1: contributions are wanted. docs: 128 words of shared memory. */
template <bool EXPANDED, uint32_t SIDE>
static __device__ __forceinline__ uint32_t gc_look_up(const gc_view &v, const gc_job &job, const gc_term &t,
    const uint32_t doc[SIDE], uint32_t live, uint32_t *docs, bool asks, uint32_t add[SIDE]) {
  uint32_t at[SIDE], u;
  if (EXPANDED || (t.kind == GC_LONG && v.impact)) {
    live = gc_find<SIDE>(v, t, doc, live, at);
    if (!asks) return live;
    if (EXPANDED || job.stored) {
#pragma unroll
      for (u = 0; u < SIDE; u++)
        add[u] = live >> u & 1 ? t.q * __ldg(v.impact + t.first_block * GPUIR__BLOCK + at[u]) : 0;
      return live;
    }
  } else {
    if (t.kind == GC_LONG && live && !gc_marked(v, t, doc[0])) live = 0;
    live = gc_probe<1>(v, t, doc, live, at, docs);
    if (!asks) return live;
  }
#pragma unroll
  for (u = 0; u < SIDE; u++)
    add[u] = live >> u & 1 ? t.q * gc_contribution(t.weight, gc_freq(v, t, at[u]), gc_norm(v, job, doc[u])) : 0;
  return live;
}

/* What a list adds to a document; live: 1 if it holds the document. */
typedef struct gc_looked_up {
  uint32_t live, add;
} gc_looked_up;

/* Looks one document per lane up in any list. It is not inlined, as its code is long. */
static __device__ __noinline__ gc_looked_up gc_look_up_any(const gc_view &v, const gc_job &job, const gc_term &t,
    uint32_t doc, uint32_t live, uint32_t *docs, bool asks) {
  gc_looked_up x = {0, 0};
  x.live = gc_look_up<false, 1>(v, job, t, &doc, live, docs, asks, &x.add);
  return x;
}

/* Does what gc_look_up does; if the kernel CALLS and lists may have to be decoded, by a function. */
template <bool EXPANDED, bool CALLS, uint32_t SIDE>
static __device__ __forceinline__ uint32_t gc_look_up_as(const gc_view &v, const gc_job &job, const gc_term &t,
    const uint32_t doc[SIDE], uint32_t live, uint32_t *docs, bool asks, uint32_t add[SIDE]) {
  static_assert(EXPANDED || SIDE == 1, "lists that may have to be decoded take one document a lane");
  if (!EXPANDED && CALLS) {
    const gc_looked_up x = gc_look_up_any(v, job, t, doc[0], live, docs, asks);
    add[0] = x.add;
    return x.live;
  }
  return gc_look_up<EXPANDED, SIDE>(v, job, t, doc, live, docs, asks, add);
}

/* Returns which live ones of two documents per lane a short list holds. It is not inlined: few documents come
 * here, and decoding takes registers. docs: 128 words of shared memory. */
static __device__ __noinline__ uint32_t gc_among(const gc_view &v, const gc_term &t, uint32_t first, uint32_t second,
    uint32_t live, uint32_t *docs) {
  const uint32_t d[2] = {first, second};
  uint32_t where[2];
  return gc_probe<2>(v, t, d, live, where, docs);
}

/* Loads the last of `count` waiting documents, 32 * SIDE at most, with their scores and the bounds of the lists behind.
 * Returns which of them there are, a bit each; of an AND, those that still reach the need, as the floor may have
 * risen. */
template <bool IS_AND, uint32_t SIDE>
static __device__ __forceinline__ uint32_t gc_load_waiting(uint32_t count, uint32_t need, const uint32_t *docs,
    const uint32_t *scores, const uint32_t *rests, uint32_t doc[SIDE], uint32_t score[SIDE], uint32_t rest[SIDE]) {
  const uint32_t lane = gc_lane(), from = count > 32 * SIDE ? count - 32 * SIDE : 0;
  uint32_t live = 0, u;
#pragma unroll
  for (u = 0; u < SIDE; u++) {
    const uint32_t at = from + 32 * u + lane;
    if (at < count) live |= 1u << u;
    doc[u] = at < count ? docs[at] : 0;
    score[u] = at < count ? scores[at] : 0;
    rest[u] = at < count ? rests[at] : 0;
    if (IS_AND && score[u] + rest[u] < need) live &= ~(1u << u);
  }
  return live;
}

/* Adds to the documents' scores what one more list adds, and takes its bounds off the rest. Returns those of the live
 * documents that can still reach the need. */
template <uint32_t SIDE>
static __device__ __forceinline__ uint32_t gc_add_list(uint32_t need, uint32_t live, const uint32_t add[SIDE],
    const uint32_t bound[SIDE], uint32_t score[SIDE], uint32_t rest[SIDE]) {
  uint32_t u;
#pragma unroll
  for (u = 0; u < SIDE; u++) {
    score[u] += add[u];
    if (need > 1) rest[u] -= bound[u];
    if (score[u] + rest[u] < need) live &= ~(1u << u);
  }
  return live;
}

/* Returns when a job's floor is raised by the candidates that a warp adds. */
template <bool IS_AND>
static __device__ __forceinline__ int gc_raise_mode(const gc_launch_view &b, const gc_term &driver) {
  const int raises = IS_AND ? driver.nblocks >= GC_RAISED_BLOCKS : b.raised;
  return raises && !b.alone ? (IS_AND ? GC_RAISE_OFTEN : GC_RAISE_DOUBLED) : GC_RAISE_NEVER;
}

/* Follows the last of `count` waiting documents, 32 * SIDE at most, through the other lists, and offers those that stay
 * above the floor. rest: the bounds of the lists behind; without a floor it has no meaning. The lists behind list e
 * add; the earlier ones and the negated ones exclude. One loop does both: so the code of gc_look_up_as, which is long
 * where lists may have to be decoded, stands in the kernel once. */
template <bool IS_AND, bool EXPANDED, bool CALLS, uint32_t SIDE>
static __device__ __forceinline__ void gc_follow(const gc_view &v, const gc_launch_view &b, uint32_t j, uint32_t e,
    unsigned long long floor, uint32_t count, const uint32_t *docs, const uint32_t *scores, const uint32_t *rests,
    gc_queue *w) {
  const gc_job &job = b.jobs[j];
  const gc_term *terms = b.terms + job.first_term;
  const uint32_t need = gc_need(floor), npositive = job.npositive, nterms = job.nterms;
  uint32_t doc[SIDE], score[SIDE], rest[SIDE], add[SIDE], bound[SIDE], live, pass, found, r, u;
  __syncwarp();
  live = gc_load_waiting<IS_AND, SIDE>(count, need, docs, scores, rests, doc, score, rest);
  __syncwarp();
#pragma unroll EXPANDED ? 2 : 1
  for (pass = 0; pass < 2; pass++) {
    const bool adds = !pass;
    for (r = adds ? e + 1 : 0; r < (adds ? npositive : nterms) && __any_sync(GC_WARP, live); r++) {
      if (!adds && r == e) r = npositive;
      if (r == nterms) break;
      const gc_term &t = terms[r];
      if (adds) gc_bounds_at<SIDE>(v, t, doc, need > 1 ? live : 0, bound);
      if (EXPANDED && !IS_AND && !adds && t.kind != GC_LONG)
        found = gc_among(v, t, doc[0], doc[SIDE - 1], live, w->docs);
      else found = gc_look_up_as<EXPANDED, CALLS, SIDE>(v, job, t, doc, live, w->docs, adds, add);
      if (!adds) {
        live &= ~found;
        continue;
      }
      if (IS_AND) live = found;
      live = gc_add_list<SIDE>(need, live, add, bound, score, rest);
    }
#pragma unroll
    for (u = 0; u < SIDE && adds; u++)
      if (gpuir__key(score[u], doc[u]) <= floor) live &= ~(1u << u);
  }
  gc_offer<SIDE>(b, j, gc_raise_mode<IS_AND>(b, terms[0]), live, doc, score, w->docs);
}

/* Sifts the last of an AND's `count` waiting documents, 32 * SIDE at most: the peaks of the third list and of each
 * further one drop those that cannot reach the need. behind: the greatest contributions of all lists but the driver.
 * Documents that stay wait for their look-ups behind `sifted` others; returns how many these are then. */
template <bool EXPANDED, uint32_t SIDE>
static __device__ __forceinline__ uint32_t gc_sift(const gc_view &v, const gc_job &job, const gc_term *terms,
    uint32_t need, uint32_t behind, uint32_t count, uint32_t sifted, gc_queue *w) {
  const uint32_t lane = gc_lane(), from = count > 32 * SIDE ? count - 32 * SIDE : 0;
  uint32_t doc[SIDE], score[SIDE], rest[SIDE], live = 0, r, u;
  __syncwarp();
#pragma unroll
  for (u = 0; u < SIDE; u++) {
    const uint32_t at = from + 32 * u + lane;
    if (at < count) live |= 1u << u;
    doc[u] = at < count ? w->doc[at] : 0;
    score[u] = at < count ? w->score[at] : 0;
    rest[u] = at < count ? w->rest[at] : 0;
  }
  if (job.npositive > 1) behind -= terms[1].most;
  for (r = 2; r < job.npositive && __any_sync(GC_WARP, live); r++) {
    const gc_term t = terms[r];
    uint32_t bound[SIDE];
    behind -= t.most;
    gc_bound_each<EXPANDED, SIDE>(v, t, doc, live, bound);
#pragma unroll
    for (u = 0; u < SIDE; u++) {
      rest[u] += bound[u];
      if (!bound[u] || score[u] + rest[u] + behind < need) live &= ~(1u << u);
    }
  }
#pragma unroll
  for (u = 0; u < SIDE; u++) {
    const bool stays = (live >> u & 1) && score[u] + rest[u] >= need;
    const uint32_t vote = __ballot_sync(GC_WARP, stays), at = sifted + gc_rank(vote);
    if (stays) {
      w->sifted_doc[at] = doc[u];
      w->sifted_score[at] = score[u];
      w->sifted_rest[at] = rest[u];
    }
    sifted += __popc(vote);
  }
  __syncwarp();
  return sifted;
}

/* Returns the number of the lane's i-th posting in a driver's block. EXPANDED: one load takes 32 consecutive postings,
 * so that their look-ups lie close together. */
template <bool EXPANDED>
static __device__ __forceinline__ uint32_t gc_posting_of(uint32_t i) {
  return EXPANDED ? 32 * i + gc_lane() : 4 * gc_lane() + i;
}

/* Loads an expanded block, as gc_posting_of<true> says. */
static __device__ __forceinline__ void gc_load_expanded(const gc_view &v, uint64_t g, uint32_t q, uint32_t d[4],
    uint32_t c[4]) {
  const uint2 base = __ldg(v.bases + g);
  uint32_t i;
#pragma unroll
  for (i = 0; i < 4; i++) {
    const uint64_t at = g * GPUIR__BLOCK + gc_posting_of<true>(i);
    d[i] = base.x + __ldg(v.narrow + at);
    c[i] = q * __ldg(v.impact + at);
  }
  if (base.y)
    for (i = 0; i < 4; i++) d[i] = __ldg(v.wide + (uint64_t)(base.y - 1) * GPUIR__BLOCK + gc_posting_of<true>(i));
}

/* Decodes block `block` of the driver: docIDs, and q times their contributions. */
template <bool EXPANDED>
static __device__ __forceinline__ void gc_drive_block(const gc_view &v, const gc_job &job, const gc_term &t,
    uint32_t block, uint32_t d[4], uint32_t c[4]) {
  uint32_t i;
  if (EXPANDED) {
    gc_load_expanded(v, t.first_block + block, t.q, d, c);
    return;
  }
  if (t.kind == GC_LONG && v.impact) {
    const uint64_t g = t.first_block + block;
    const uint4 x = __ldg((const uint4 *)(v.impact + g * GPUIR__BLOCK) + gc_lane());
    gc_expanded_docs(v, g, d);
    if (job.stored) {
      c[0] = t.q * x.x;
      c[1] = t.q * x.y;
      c[2] = t.q * x.z;
      c[3] = t.q * x.w;
      return;
    }
  } else {
    (void)gc_decode_docs(v, t, block, d);
  }
  gc_decode_freqs(v, t, block, c);
  for (i = 0; i < 4; i++) c[i] = t.q * gc_contribution(t.weight, c[i], gc_norm(v, job, min(d[i], v.documents - 1)));
}

/* A lane's postings of a driver's block. */
typedef struct gc_driven {
  uint32_t doc[4], add[4]; /* docIDs, and q times their contributions */
} gc_driven;

/* Decodes a block of any driver. It is not inlined, as its code is long. */
static __device__ __noinline__ gc_driven gc_drive_any(const gc_view &v, const gc_job &job, const gc_term &t,
    uint32_t block) {
  gc_driven x;
  gc_drive_block<false>(v, job, t, block, x.doc, x.add);
  return x;
}

/* Does what gc_drive_block does; if the kernel CALLS and lists may have to be decoded, by a function. */
template <bool EXPANDED, bool CALLS>
static __device__ __forceinline__ void gc_drive_block_as(const gc_view &v, const gc_job &job, const gc_term &t,
    uint32_t block, uint32_t d[4], uint32_t c[4]) {
  if (!EXPANDED && CALLS) {
    const gc_driven x = gc_drive_any(v, job, t, block);
    uint32_t i;
#pragma unroll
    for (i = 0; i < 4; i++) {
      d[i] = x.doc[i];
      c[i] = x.add[i];
    }
    return;
  }
  gc_drive_block<EXPANDED>(v, job, t, block, d, c);
}

/* Adds the bounds of the lists behind list e to rest[0..4), list after list; `behind`: the sum of the greatest ones.
 * Returns those of the live postings (docIDs and contributions) that can still reach the need. */
static __device__ __forceinline__ uint32_t gc_add_bounds(const gc_view &v, const gc_term *terms, uint32_t e,
    uint32_t npositive, uint32_t need, uint32_t behind, const uint32_t d[4], const uint32_t c[4], uint32_t live,
    uint32_t rest[4]) {
  uint32_t r, i;
  for (r = e + 1; r < npositive && __any_sync(GC_WARP, live); r++) {
    const gc_term o = terms[r]; /* a copy: each of its fields is loaded once */
    uint32_t bound[4];
    behind -= o.most;
    gc_bounds_at<4>(v, o, d, live, bound);
#pragma unroll
    for (i = 0; i < 4; i++) rest[i] += bound[i];
#pragma unroll
    for (i = 0; i < 4; i++)
      if (c[i] + rest[i] + behind < need) live &= ~(1u << i);
  }
  return live;
}

/* Returns those of the 32 blocks from `from` on, among those that `which` names, whose bounds reach the need with the
 * greatest contributions of the lists behind. */
template <bool EXPANDED>
static __device__ __forceinline__ uint32_t gc_reaching_blocks(const gc_view &v, const gc_job &job, const gc_term &t,
    uint32_t from, uint32_t which, uint32_t need, uint32_t behind) {
  uint32_t peak = t.most;
  if ((EXPANDED || (t.kind == GC_LONG && job.stored)) && (which >> gc_lane() & 1))
    peak = t.q * __ldg(v.most + t.first_block + from + gc_lane());
  return which & __ballot_sync(GC_WARP, peak + behind >= need);
}

/* Puts the live postings of a block into the queue, behind `count` others; returns how many wait then. */
static __device__ __forceinline__ uint32_t gc_make_wait(gc_queue *w, uint32_t count, uint32_t live, const uint32_t d[4],
    const uint32_t c[4], const uint32_t rest[4]) {
  uint32_t i;
#pragma unroll
  for (i = 0; i < 4; i++) {
    const uint32_t vote = __ballot_sync(GC_WARP, live >> i & 1);
    if (live >> i & 1) {
      const uint32_t at = count + gc_rank(vote);
      w->doc[at] = d[i];
      w->score[at] = c[i];
      w->rest[at] = rest[i];
    }
    count += __popc(vote);
  }
  return count;
}

/* Returns those of a driving block's live postings (docIDs and contributions) that can reach the need by the peaks of
 * their spans, which go to rest[]. An OR takes the peaks of all lists behind list e; an AND those of the second list,
 * which must not be 0. */
template <bool IS_AND, bool EXPANDED>
static __device__ __forceinline__ uint32_t gc_bounded_postings(const gc_view &v, const gc_term *terms, uint32_t e,
    uint32_t npositive, uint32_t need, uint32_t behind, const uint32_t d[4], const uint32_t c[4], uint32_t live,
    uint32_t rest[4]) {
  uint32_t i;
  if (!IS_AND && need > 1) live = gc_add_bounds(v, terms, e, npositive, need, behind, d, c, live, rest);
  if (IS_AND && npositive > 1) {
    const gc_term o = terms[1];
    gc_bound_each<EXPANDED, 4>(v, o, d, live, rest);
#pragma unroll
    for (i = 0; i < 4; i++)
      if (!rest[i] || c[i] + rest[i] + behind - o.most < need) live &= ~(1u << i);
  }
  return live;
}

/* Takes blocks of list e as drivers: those of the 32 blocks from `from` on that `which` names. Postings wait in the
 * queue if bounds and peaks let them reach the floor. Only the postings of `lanes` are taken: in a launch of few
 * queries several warps share a block. */
template <bool IS_AND, bool EXPANDED, bool CALLS>
static __device__ __forceinline__ void gc_drive_some(const gc_view &v, const gc_launch_view &b, uint32_t j, uint32_t e,
    uint32_t from, uint32_t which, uint32_t lanes, gc_queue *w) {
  const gc_job &job = b.jobs[j];
  const gc_term *terms = b.terms + job.first_term, &t = terms[e];
  unsigned long long floor = __shfl_sync(GC_WARP, gc_floor(b.states + j), 0);
  const uint32_t lane = gc_lane(), npositive = job.npositive;
  uint32_t need = gc_need(floor);
  constexpr uint32_t SIDE = EXPANDED ? GC_SIDE : 1;
  uint32_t behind = 0, count = 0, sifted = 0, i, r;
  if (IS_AND || need > 1)
    for (r = e + 1; r < npositive; r++) behind += terms[r].most;
  if (need > 1) which = gc_reaching_blocks<EXPANDED>(v, job, t, from, which, need, behind);
  while (which || count || sifted) { /* all lanes have the same values of these */
    if (IS_AND && (sifted >= 32 * SIDE || !(which || count))) {
      gc_follow<true, EXPANDED, CALLS, SIDE>(v, b, j, e, floor, sifted, w->sifted_doc, w->sifted_score, w->sifted_rest,
          w);
      sifted -= min(sifted, 32 * SIDE);
      continue;
    }
    if (count >= 32 * SIDE || !which) {
      if (IS_AND) sifted = gc_sift<EXPANDED, SIDE>(v, job, terms, need, behind, count, sifted, w);
      else gc_follow<false, EXPANDED, CALLS, SIDE>(v, b, j, e, floor, count, w->doc, w->score, w->rest, w);
      count -= min(count, 32 * SIDE);
      continue;
    }
    const uint32_t block = from + __ffs(which) - 1, n = gc_block_len(t, block);
    uint32_t d[4], c[4], rest[4] = {0, 0, 0, 0}, live = 0;
    which &= which - 1;
    const unsigned long long now = gc_floor(b.states + j);
    gc_drive_block_as<EXPANDED, CALLS>(v, job, t, block, d, c);
    if (IS_AND || need > 1) { /* without a floor, an OR's documents wait without bounds */
      floor = __shfl_sync(GC_WARP, now, 0);
      need = gc_need(floor);
    }
#pragma unroll
    for (i = 0; i < 4; i++) {
      d[i] = min(d[i], v.documents - 1);
      if (gc_posting_of<EXPANDED>(i) < n && (lanes >> lane & 1) && c[i] + behind >= need) live |= 1u << i;
    }
    live = gc_bounded_postings<IS_AND, EXPANDED>(v, terms, e, npositive, need, behind, d, c, live, rest);
    count = gc_make_wait(w, count, live, d, c, rest);
  }
  __syncwarp();
}

/* Does the same by the code that the job's lists allow. */
template <bool IS_AND, bool CALLS>
static __device__ __forceinline__ void gc_drive_from(const gc_view &v, const gc_launch_view &b, uint32_t j, uint32_t e,
    uint32_t from, uint32_t which, uint32_t lanes, gc_queue *w) {
  const gc_job &job = b.jobs[j];
  if (job.expanded || (!IS_AND && job.mixed && b.terms[job.first_term + e].kind == GC_LONG))
    gc_drive_some<IS_AND, true, CALLS>(v, b, j, e, from, which, lanes, w);
  else gc_drive_some<IS_AND, false, CALLS>(v, b, j, e, from, which, lanes, w);
}

/* Returns the lanes of the i-th of `parts` parts of a block; there are 1 or 4. */
static __device__ __forceinline__ uint32_t gc_lanes(uint32_t i, uint32_t parts) {
  return parts == 1 ? GC_WARP : 0xffu << i % 4 * 8;
}

/* ---- AND with guides ---- */

/* Intersects by guides: a warp takes a ticket for a group of driver blocks at a time. writes_hits: it notes which
 * tickets are done, which gc_and_guided waits for. */
static __device__ __forceinline__ void gc_and_all(const gc_view &v, const gc_launch_view &b, bool writes_hits,
    gc_queue *w) {
  for (;;) {
    const gc_blocks x = gc_next_blocks(b);
    if (!x.n) return;
    if (b.states[x.job].done) continue;
    while (*(volatile const uint32_t *)&b.states[x.job].opened < x.opening) __nanosleep(100);
    gc_drive_from<true, false>(v, b, x.job, 0, x.from, gc_mask(x.n), GC_WARP, w);
    if (x.opens && !gc_lane()) atomicAdd(&b.states[x.job].opened, 1);
    if (writes_hits && !gc_lane()) {
      __threadfence();
      atomicAdd(&b.states[x.job].ended, 1);
    }
  }
}

/* ---- OR by MaxScore ---- */

/* Returns whether the AND that this OR waits for has found enough. */
static __device__ __forceinline__ bool gc_spared(const gc_launch_view &b, uint32_t j) {
  uint32_t after = b.jobs[j].after;
  return after != GC_NONE && b.states[after].count >= b.jobs[j].k;
}

/* ---- the sample ----
 *
 * A sample consists of some blocks of a job's shortest lists. The bounds of each of their documents are summed up, and
 * those with the greatest sums are scored. The k-th best score is a floor that is certain. If one block in w was taken,
 * a document of it stands for w documents. So fewer than k documents of the sample tell, but for a small probability, a
 * score that k documents of the lists reach. That is a better floor; it is a guess, which gc_final checks. */

/* A job's sample. */
typedef struct gc_sample {
  uint32_t count, end[GC_SAMPLED_LISTS]; /* documents: all; up to the end of each list */
  float weight[GC_SAMPLED_LISTS]; /* documents that one document of the list stands for */
  uint32_t scored, sure, guess; /* scored documents; floors as scores, or 0 */
  unsigned long long bound[GC_SAMPLED]; /* sum of a document's bounds, document */
  unsigned long long key[GC_SCORED]; /* list, document; later score, list; or 0 if an earlier list has the document */
} gc_sample;

/* The sample's documents as keys. */
struct gc_keys_sample {
  const unsigned long long *p;
  __device__ unsigned long long operator()(uint32_t i) const { return p[i]; }
};

/* Adds the documents of `take` blocks of list e to the sample, if their bounds reach the floor. */
template <bool EXPANDED>
static __device__ __forceinline__ void gc_sample_list(const gc_view &v, const gc_launch_view &b, uint32_t j, uint32_t e,
    uint32_t take, gc_sample *s) {
  const gc_job &job = b.jobs[j];
  const gc_term *terms = b.terms + job.first_term, &t = terms[e];
  const uint32_t need = gc_need(gc_floor(b.states + j));
  uint32_t behind = 0, i, u;
  for (i = e + 1; i < job.npositive; i++) behind += terms[i].most;
  for (i = threadIdx.x / 32; i < take; i += blockDim.x / 32) {
    const uint32_t block = i * (t.nblocks / take), n = gc_block_len(t, block);
    uint32_t d[4], c[4], rest[4] = {0, 0, 0, 0}, live = 0;
    gc_drive_block_as<EXPANDED, true>(v, job, t, block, d, c);
#pragma unroll
    for (u = 0; u < 4; u++) {
      d[u] = min(d[u], v.documents - 1);
      if (gc_posting_of<EXPANDED>(u) < n && c[u] + behind >= need) live |= 1u << u;
    }
    live = gc_add_bounds(v, terms, e, job.npositive, need, behind, d, c, live, rest);
#pragma unroll
    for (u = 0; u < 4; u++) {
      const uint32_t vote = __ballot_sync(GC_WARP, live >> u & 1);
      if (vote) {
        const uint32_t at = gc_claim(vote, &s->count);
        if (live >> u & 1) s->bound[at] = (unsigned long long)(c[u] + rest[u]) << 32 | d[u];
      }
    }
  }
}

/* Scores the documents that were chosen, a lane each. */
template <bool EXPANDED>
static __device__ __forceinline__ void gc_sample_scores(const gc_view &v, const gc_launch_view &b, uint32_t j,
    gc_sample *s, uint32_t *docs) {
  const gc_job &job = b.jobs[j];
  const gc_term *terms = b.terms + job.first_term;
  uint32_t at = threadIdx.x;
  for (; at - gc_lane() < s->scored; at += blockDim.x) {
    const unsigned long long key = at < s->scored ? s->key[at] : 0;
    const uint32_t doc[1] = {(uint32_t)key}, e = (uint32_t)(key >> 32);
    uint32_t live = at < s->scored, score = 0, add[1], found, r;
    for (r = 0; r < job.nterms && __any_sync(GC_WARP, live); r++) {
      found = gc_look_up_as<EXPANDED, true, 1>(v, job, terms[r], doc, live, docs, true, add);
      if (r < e || r >= job.npositive) live &= ~found;
      else score += add[0];
    }
    if (at < s->scored) s->key[at] = live ? (unsigned long long)score << 32 | e : 0;
  }
}

/* Chooses the documents of the sample to be scored: those with the greatest sums of bounds. */
static __device__ __forceinline__ void gc_sample_choose(uint32_t most, gc_sample *s, uint32_t *hist) {
  const gc_keys_sample keys = {s->bound};
  const uint32_t n = s->count;
  unsigned long long least = 0;
  uint32_t i;
  if (n > most) least = gc_select(keys, n, most, min(most + most / 2, GC_SCORED), hist);
  for (i = threadIdx.x; i < n; i += blockDim.x) {
    const unsigned long long key = keys(i);
    if (key >= least) {
      const uint32_t at = atomicAdd(&s->scored, 1);
      uint32_t e = 0, list;
#pragma unroll
      for (list = 0; list < GC_SAMPLED_LISTS - 1; list++) e += i >= s->end[list];
      if (at < GC_SCORED) s->key[at] = (unsigned long long)e << 32 | (uint32_t)key;
    }
  }
  __syncthreads();
  if (!threadIdx.x) s->scored = min(s->scored, GC_SCORED);
  __syncthreads();
}

/* Returns whether it is as good as certain that the sampled documents stand for at least k. Their weights sum up to
 * `sum`, and each weight is at most `most`. If there were fewer than k documents, a sum so great would come about with
 * a probability of at most exp(-doubt), by Chernoff's bound. */
static __device__ __forceinline__ bool gc_certain(float sum, float most, float k, float doubt) {
  const float fewer = k - 1;
  if (sum < k && doubt > 0) return false;
  return fewer < 1 || sum * logf(sum / fewer) - sum + fewer >= doubt * (most - 1);
}

/* Finds the floors that the sample's sorted scores tell, by a warp. */
static __device__ __forceinline__ void gc_sample_floors(uint32_t k, float doubt, gc_sample *s) {
  float sum = 0, most = 1;
  uint32_t from, i;
  if (s->scored >= k && !gc_lane()) s->sure = (uint32_t)(s->key[k - 1] >> 32);
  for (from = 0; from < s->scored; from += 32) {
    const unsigned long long key = from + gc_lane() < s->scored ? s->key[from + gc_lane()] : 0;
    const float one = key ? s->weight[(uint32_t)key] : 0;
    float w = one, m = one;
    uint32_t vote;
#pragma unroll
    for (i = 1; i < 32; i *= 2) {
      const float x = __shfl_up_sync(GC_WARP, w, i), y = __shfl_up_sync(GC_WARP, m, i);
      if (gc_lane() >= i) {
        w += x;
        m = fmaxf(m, y);
      }
    }
    w += sum;
    m = fmaxf(m, most);
    vote = __ballot_sync(GC_WARP, key && gc_certain(w, m, (float)k, doubt));
    if (vote) {
      if (gc_lane() + 1 == (uint32_t)__ffs((int)vote)) s->guess = (uint32_t)(key >> 32);
      return;
    }
    sum = __shfl_sync(GC_WARP, w, 31);
    most = __shfl_sync(GC_WARP, m, 31);
  }
}

/* Takes a job's sample and raises its floor by it. */
static __device__ __forceinline__ void gc_take_sample(const gc_view &v, const gc_launch_view &b, uint32_t j,
    gc_sample *s, uint32_t *docs, uint32_t *hist) {
  const gc_job &job = b.jobs[j];
  const gc_term *terms = b.terms + job.first_term;
  gc_state *state = b.states + j;
  const uint32_t lists = min(job.npositive, b.raised ? GC_SAMPLED_LISTS : GC_LAYERS_ALONE);
  uint32_t left = 0, most, size, e, i;
  if (!threadIdx.x) s->count = s->scored = s->sure = s->guess = 0;
  __syncthreads();
  for (e = 0; e < lists; e++) {
    uint32_t take;
    if (e < GC_LAYERS) left += (b.raised ? GC_FIRST : GC_FIRST_ALONE) >> e;
    if (!left) break;
    take = min(terms[e].nblocks, left);
    left -= take;
    if (!threadIdx.x) s->weight[e] = (float)terms[e].nblocks / (float)take;
    if (job.expanded) gc_sample_list<true>(v, b, j, e, take, s);
    else gc_sample_list<false>(v, b, j, e, take, s);
    __syncthreads();
    if (!threadIdx.x)
      for (i = e; i < GC_SAMPLED_LISTS; i++) s->end[i] = s->count;
    __syncthreads();
  }
  most = min(GC_SCORED, GC_SCORED_LEAST + (uint32_t)(2.0f * (float)job.k / s->weight[0]));
  gc_sample_choose(most, s, hist);
  if (job.expanded) gc_sample_scores<true>(v, b, j, s, docs);
  else gc_sample_scores<false>(v, b, j, s, docs);
  for (size = 32; size < s->scored; size *= 2) {}
  __syncthreads();
  for (i = s->scored + threadIdx.x; i < size; i += blockDim.x) s->key[i] = 0;
  __syncthreads();
  gc_sort(s->key, size);
  if (threadIdx.x < 32) gc_sample_floors(job.k, b.maxs.doubt[0], s);
  __syncthreads();
  if (!threadIdx.x) {
    const uint32_t sure = max(s->sure, job.seed), score = max(sure, s->guess);
    if (s->guess > sure) state->safe = 1 + sure;
    if (score) state->floor = max(state->floor, ((unsigned long long)score << 32) - 1);
  }
  __syncthreads();
}

/* ---- which lists drive ---- */

#define GC_LOOKED 2048u /* blocks of a list at most whose bounds are read to estimate how many have to be taken */

/* Returns about how many blocks of the first `drivers` lists can lift a document to the need. All threads of the block
 * call it. */
static __device__ uint32_t gc_blocks_to_take(const gc_view &v, const gc_job &job, const gc_term *terms,
    uint32_t drivers, uint32_t need) {
  __shared__ uint32_t sum;
  uint32_t behind = 0, mine = 0, i, block;
  if (!threadIdx.x) sum = 0;
  __syncthreads();
  for (i = 0; i < job.npositive; i++) behind += terms[i].most;
  for (i = 0; i < drivers; i++) {
    const gc_term &t = terms[i];
    const uint32_t step = 1 + t.nblocks / GC_LOOKED;
    uint32_t n = 0;
    behind -= t.most;
    if (job.stored && t.kind == GC_LONG) {
#pragma unroll 4
      for (block = threadIdx.x * step; block < t.nblocks; block += blockDim.x * step)
        n += t.q * __ldg(v.most + t.first_block + block) + behind >= need;
      mine += n * step;
    } else if (!threadIdx.x) {
      mine += t.nblocks;
    }
  }
  mine = __reduce_add_sync(GC_WARP, mine);
  if (!gc_lane()) atomicAdd(&sum, mine);
  __syncthreads();
  return sum;
}

/* Returns how many of a list's groups of blocks its opening takes: at most one in GC_OPENING. */
static __device__ __forceinline__ uint32_t gc_opening_of(uint32_t groups) { return groups / GC_OPENING; }

/* Adds blocks of a list to those that drive in a round, by one thread. */
static __device__ void gc_add_drive(const gc_launch_view &b, uint32_t round, const gc_drive &drive) {
  const uint32_t all = (drive.end - drive.from + drive.group - 1) / drive.group, first = gc_opening_of(all);
  const uint32_t groups = drive.part == GC_PART_ALL ? all : drive.part == GC_PART_OPENING ? first : all - first;
  const unsigned long long at = atomicAdd(&b.control->drives[round], 1ull << 40 | groups);
  const uint32_t entry = round * b.maxs.most + (uint32_t)(at >> 40);
  b.maxs.drives[entry] = drive;
  b.maxs.drive_start[entry] = (uint32_t)at; /* groups stay below 2^32 */
}

/* Lets a job's first lists drive. Their blocks are taken in rounds, each round of all jobs before the next: the
 * openings of long lists, then the rest of the first list, of the second, and of the others. By what the opening finds,
 * gc_end_opening guesses how many documents reach a score. A floor that one round has raised spares much of the
 * next. */
static __device__ void gc_add_drives(const gc_launch_view &b, uint32_t j, const gc_term *terms, uint32_t drivers,
    int rerun) {
  const uint32_t group = b.raised && b.jobs[j].npositive == 1 ? 32 : b.maxs.group; /* hardly a block of it is decoded */
  const bool opens = b.raised && !rerun;
  uint32_t opening = 0, i;
  for (i = 0; i < drivers && opens; i++)
    if (terms[i].nblocks >= GC_OPENED_LEAST)
      opening += gc_opening_of((terms[i].nblocks + group - 1) / group) * b.maxs.parts;
  for (i = 0; i < drivers; i++) {
    const bool first = opens && terms[i].nblocks >= GC_OPENED_LEAST;
    gc_drive drive = {j, i, 0, terms[i].nblocks, group, GC_PART_OPENING, opening};
    if (first) gc_add_drive(b, 0, drive);
    drive.part = first ? GC_PART_REST : GC_PART_ALL;
    gc_add_drive(b, min(i + 1, GC_ROUNDS - 1), drive);
  }
}

/* Returns how many of a job's lists drive, by ascending df: a document that only later lists hold cannot reach the
 * need. *driving: their blocks; *all: the cost of the tiles. */
static __device__ __forceinline__ uint32_t gc_count_drivers(const gc_job &job, const gc_term *terms, uint32_t ntiles,
    uint32_t need, uint32_t *driving, uint64_t *all) {
  uint32_t behind = 0, drivers = 0, i;
  *driving = 0;
  *all = (uint64_t)GC_TILE_COST * ntiles;
  for (i = 0; i < job.npositive; i++) behind += terms[i].most;
  for (i = 0; i < job.npositive; i++) {
    *all += terms[i].nblocks;
    if (behind >= need) {
      drivers = i + 1;
      *driving += terms[i].nblocks; /* below 2^30: see gc_plan_query */
    }
    behind -= terms[i].most;
  }
  return drivers;
}

/* Returns whether following the drivers' postings costs less than the tiles do. All threads of the block call it. */
static __device__ __forceinline__ bool gc_follows(const gc_view &v, const gc_launch_view &b, const gc_job &job,
    const gc_term *terms, uint32_t need, uint32_t drivers, uint32_t driving, uint32_t cost, uint64_t all, int rerun) {
  bool follow = rerun || job.npositive == 1 || (uint64_t)driving * cost <= all;
  if (!follow && need > 1 && b.raised) /* the same for all threads */
    follow = (uint64_t)gc_blocks_to_take(v, job, terms, drivers, need) * cost <= all;
  if (need == 1 && !rerun) follow = (uint64_t)driving * GPUIR__BLOCK <= b.room; /* no candidate is lost */
  return follow;
}

/* Plans MaxScore, one block of threads per job: it takes a sample for a floor, and decides which lists drive, or that
 * the tiles cost less. In a rerun the floor is known, and jobs that were followed are followed again. */
static __global__ void __launch_bounds__(GC_FINAL_THREADS, GC_GUIDED_BLOCKS)
    gc_max_plan(const __grid_constant__ gc_view v, const __grid_constant__ gc_launch_view b, int rerun) {
  __shared__ uint32_t hist[256];
  __shared__ gc_sample sample;
  __shared__ uint32_t docs[GC_FINAL_THREADS / 32][GPUIR__BLOCK];
  gc_chained();
  const uint32_t j = b.maxs.jobs[blockIdx.x];
  const gc_job &job = b.jobs[j];
  const gc_term *terms = b.terms + job.first_term;
  gc_state *state = b.states + j;
  const uint32_t cost = (job.expanded || job.mixed) && b.raised ? GC_PROBE_COST : GC_PROBE_ALONE;
  uint32_t need, drivers, driving;
  uint64_t all;
  if (rerun && (state->done || !state->followed)) return;
  if (gc_spared(b, j)) { /* in a rerun too: nobody would clear what it found */
    if (!threadIdx.x) state->followed = 1;
    return;
  }
  if (!rerun && (job.npositive > 1 || !job.seed)) gc_take_sample(v, b, j, &sample, docs[threadIdx.x / 32], hist);
  need = gc_need(gc_floor(state));
  drivers = gc_count_drivers(job, terms, v.ntiles, need, &driving, &all);
  const bool follow = gc_follows(v, b, job, terms, need, drivers, driving, cost, all, rerun);
  if (!threadIdx.x && follow) {
    state->followed = 1;
    gc_add_drives(b, j, terms, drivers, rerun);
  }
}

/* Finds the blocks of ticket number `ticket`; returns whether there are any. rounds: a copy of b.control->drives. */
static __device__ __forceinline__ bool gc_find_drive(const gc_launch_view &b, const unsigned long long *rounds,
    uint32_t ticket, gc_drive *drive) {
  uint32_t round;
  for (round = 0; round < GC_ROUNDS; round++) {
    const uint32_t groups = (uint32_t)rounds[round], first = round * b.maxs.most;
    if (ticket < groups) {
      const uint32_t entries = (uint32_t)(rounds[round] >> 40);
      const uint32_t entry = gc_find_block(b.maxs.drive_start + first, 0, entries, ticket + 1) - 1 + first;
      *drive = b.maxs.drives[entry];
      ticket -= b.maxs.drive_start[entry];
      if (drive->part == GC_PART_OPENING) ticket = ticket * GC_OPENING + GC_OPENING - 1;
      else if (drive->part == GC_PART_REST) ticket += ticket / (GC_OPENING - 1);
      drive->from += ticket * drive->group;
      drive->end = min(drive->end, drive->from + drive->group);
      return true;
    }
    ticket -= groups;
  }
  return false;
}

/* Returns the least number of documents, each standing for `weight` others, that makes it as good as certain that there
 * are k; or if each stands for itself, k. */
static __device__ __forceinline__ uint32_t gc_certain_rank(float weight, uint32_t k, float doubt) {
  uint32_t lo = 0, hi = 2 * k + 64; /* lo is too few */
  while (hi - lo > 1) {
    const uint32_t mid = (lo + hi) / 2;
    if (gc_certain(weight * (float)mid, weight, (float)k, doubt)) hi = mid;
    else lo = mid;
  }
  return hi;
}

/* Notes that a ticket of a job's opening is done, by its warp. The last warp guesses a floor: each document that the
 * opening has found stands for GC_OPENING. gc_final checks it, as it checks the sample's. */
static __device__ __forceinline__ void gc_end_opening(const gc_launch_view &b, uint32_t j, uint32_t opening,
    uint32_t *count) {
  gc_state *state = b.states + j;
  const uint32_t k = b.jobs[j].k;
  uint32_t done = 0, n, rank, score = 0;
  __threadfence(); /* the candidates, before the count */
  __syncwarp();
  if (!gc_lane()) done = atomicAdd(&state->opened, 1) + 1;
  if (__shfl_sync(GC_WARP, done, 0) != opening) return;
  __threadfence();
  n = min(__shfl_sync(GC_WARP, *(volatile uint32_t *)&state->count, 0), b.room);
  rank = gc_certain_rank(GC_OPENING, k, b.maxs.doubt[1]);
  if (n >= rank && b.jobs[j].npositive > 1 && !b.jobs[j].count)
    score = gc_kth_score(gc_keys_cand{b.cand + (uint64_t)j * b.room}, n, rank, count);
  if (!gc_lane()) {
    const unsigned long long floor = gc_floor(state);
    if (score > gc_need(floor)) {
      if (!state->safe) state->safe = floor ? 1 + gc_need(floor) : 1;
      __threadfence();
      atomicMax(&state->floor, ((unsigned long long)score << 32) - 1);
    }
    __threadfence();
    atomicAdd(&state->opened, 1);
  }
  __syncwarp();
}

/* Bytes of a warp's queue that gc_max needs: the last array is only for ANDs. With it the multiprocessor would have
 * less than half of the first-level cache left. */
#define GC_OR_QUEUE offsetof(gc_queue, sifted_rest)
static_assert(GC_OR_QUEUE % 16 == 0, "a queue is aligned");

/* Follows the documents of the driving lists: a warp takes a ticket for a group of blocks at a time. Tickets of later
 * rounds wait until the job's opening is done. */
static __global__ void __launch_bounds__(GC_GUIDED_THREADS, GC_MAX_BLOCKS)
    gc_max(const __grid_constant__ gc_view v, const __grid_constant__ gc_launch_view b) {
  __shared__ __align__(16) uint8_t kept[GC_GUIDED_THREADS / 32][GC_OR_QUEUE];
  __shared__ unsigned long long rounds[GC_ROUNDS];
  gc_queue *w = (gc_queue *)kept[threadIdx.x / 32];
  gc_chained();
  if (threadIdx.x < GC_ROUNDS) rounds[threadIdx.x] = b.control->drives[threadIdx.x];
  __syncthreads();
  for (;;) {
    uint32_t ticket = 0;
    gc_drive drive;
    if (!gc_lane()) ticket = atomicAdd(&b.control->next_drive, 1);
    ticket = __shfl_sync(GC_WARP, ticket, 0);
    if (!gc_find_drive(b, rounds, ticket / b.maxs.parts, &drive)) return;
    if (b.states[drive.job].done) continue;
    if (drive.opening && drive.part != GC_PART_OPENING)
      while (*(volatile const uint32_t *)&b.states[drive.job].opened <= drive.opening) __nanosleep(100);
    gc_drive_from<false, false>(v, b, drive.job, drive.term, drive.from, gc_mask(drive.end - drive.from),
        gc_lanes(ticket, b.maxs.parts), w);
    if (drive.part == GC_PART_OPENING) gc_end_opening(b, drive.job, drive.opening, w->docs);
  }
}
