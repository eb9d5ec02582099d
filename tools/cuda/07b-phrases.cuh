
/* ========================
 * [cuda-07b-phrases]  phrases: documents that hold all lists, and where in them the lists' terms stand
 *
 * For queries all of whose terms are required, some of them phrases. The lists of the words and of the phrases' tokens
 * are intersected: a warp takes a block of the shortest list and looks its documents up in the others. Of a document
 * that is in all of them, and that could enter the top-k if each phrase stood there as often as the rarest of its
 * tokens, positions are compared then, which lie as in the file ([09b-positions] of gpuir.h). Most terms stand in a
 * document a few times: then one lane walks their positions, and 32 lanes do so in 32 documents at once. The warp takes
 * other documents one after another: a lane has a gap, and a scan makes positions of the gaps of a chunk. A phrase's
 * frequency is scored as a term's is.
 *
 * No walk goes behind the bytes of its block, which end where the next block's begin, whatever the file says: so all
 * walks of a list together read its bytes at most once for each posting of a block.
 *
 * Uses      [cuda-03-bp128], [cuda-07-and].
 * Start at  gc_phrase_all; gc_phrase_tfs (a phrase in 32 documents), gc_phrase_tf (in one of them by the warp).
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_PHRASE_THREADS 128u
#define GC_PHRASE_BLOCKS 6 /* blocks of threads a multiprocessor at least, of gc_phrase_all */

/* Positions on the device: the section, and of each block of the directory where in its list they begin. */
typedef struct gc_positions {
  const uint8_t *bytes;
  const uint32_t *offsets;
} gc_positions;

/* The positions of a list: bytes of the section. */
typedef struct gc_spots {
  uint64_t at, length;
} gc_spots;

/* What a query requires: a list, or a phrase. Its tokens are numbers of the job's lists. */
typedef struct gc_clause {
  float weight;
  uint32_t q, first, n; /* first: among gc_phrases.tokens; n: 1: a list */
} gc_clause;

/* A job of gc_phrase_all. */
typedef struct gc_sought {
  uint32_t job, first_spot, first_clause, nclauses; /* first_spot: of its first list; the others' follow */
} gc_sought;

/* The queries with phrases of a launch. */
typedef struct gc_phrases {
  const gc_sought *jobs; /* n */
  const uint32_t *start; /* first ticket of each, and one more; a ticket is a group of driver blocks */
  const gc_clause *clauses;
  const gc_spots *spots;
  const uint8_t *tokens;
  gc_positions positions;
  uint32_t n, tickets, group;
  uint32_t lists; /* of a job at most, those that exclude apart */
} gc_phrases;

/* The bytes of a list's positions that a block may take: from `start` on, none if `end` is not behind that. */
typedef struct gc_stretch {
  uint64_t start, end;
} gc_stretch;

/* Where a token of a phrase has got to in a document. All lanes have the same. */
typedef struct gc_walk {
  uint64_t width, bytes; /* in the section: of the current chunk, its number of bits and its gaps */
  uint64_t end; /* of the block */
  uint64_t left; /* gaps */
  uint32_t at, next; /* the next gap of the chunk; what it is added to */
} gc_walk;

/* The shared memory of a warp; `lists` rows of 128 words and the walks of a phrase's tokens stand behind it. */
typedef struct alignas(16) gc_finds {
  uint32_t docs[GPUIR__BLOCK]; /* of gc_probe, and of gc_kth_score */
  uint32_t doc[GPUIR__BLOCK], score[GPUIR__BLOCK]; /* of the driver block's postings */
  uint32_t match[GPUIR__BLOCK]; /* those that are left, by their number in the block */
} gc_finds;

/* Returns row r behind it: where in list r the driver block's postings are. */
static __device__ __forceinline__ uint32_t *gc_where(gc_finds *w, uint32_t r) {
  return (uint32_t *)(w + 1) + r * GPUIR__BLOCK;
}

/* Returns the shared memory that a warp needs, such that the next warp's is aligned too. */
static size_t gc_phrase_bytes(uint32_t lists, uint32_t tokens) {
  const size_t bytes = sizeof(gc_finds) + lists * GPUIR__BLOCK * 4 + tokens * sizeof(gc_walk);
  return (bytes + alignof(gc_finds) - 1) / alignof(gc_finds) * alignof(gc_finds);
}

/* ---- positions ---- */

static __device__ __forceinline__ uint64_t gc_sum64(uint64_t x) {
  uint32_t i;
#pragma unroll
  for (i = 16; i; i /= 2) x += __shfl_xor_sync(GC_WARP, x, i);
  return x;
}

/* Returns where the positions of a block of a list lie, within the list's bytes whatever the directory says. */
static __device__ __forceinline__ gc_stretch gc_positions_of(const gc_positions &p, const gc_term &t,
    const gc_spots &spots, uint32_t block) {
  gc_stretch x = {0, spots.length};
  if (t.kind == GC_LONG) {
    const uint32_t *offset = p.offsets + t.first_block + block;
    x.start = (uint64_t)__ldg(offset) * GPUIR__CHUNK_UNIT;
    if (block + 1 < t.nblocks) x.end = min(x.end, (uint64_t)__ldg(offset + 1) * GPUIR__CHUNK_UNIT);
  }
  return x;
}

/* Begins to walk the positions of posting `at` of a list; `left` is its frequency, or 0 where the bytes do not hold
 * what the frequencies promise. About 120 instructions, and 6 for each 1,024 gaps before it in the block. */
static __device__ __noinline__ gc_walk gc_walk_open(const gc_view &v, const gc_positions &p, const gc_term &t,
    const gc_spots &spots, uint32_t at) {
  const uint32_t block = at / GPUIR__BLOCK, posting = at % GPUIR__BLOCK, n = gc_block_len(t, block), lane = gc_lane();
  const gc_stretch x = gc_positions_of(p, t, spots, block);
  uint64_t before = 0, all = 0, own = 0, skip = 0, chunks, c;
  uint32_t f[4], wide = 0, i;
  gc_walk w;
  gc_decode_freqs(v, t, block, f);
#pragma unroll
  for (i = 0; i < 4; i++) {
    const uint64_t tf = 4 * lane + i < n ? (uint64_t)f[i] + 1 : 0;
    all += tf;
    before += 4 * lane + i < posting ? tf : 0;
    own = 4 * lane + i == posting ? tf : own;
  }
  all = gc_sum64(all);
  before = gc_sum64(before);
  w.left = __shfl_sync(GC_WARP, own, posting / 4);
  chunks = (all + GPUIR__CHUNK - 1) / GPUIR__CHUNK;
  if (x.start >= x.end || chunks > x.end - x.start) chunks = w.left = 0;
  for (c = lane; chunks && c < before / GPUIR__CHUNK; c += 32) {
    const uint32_t width = __ldg(p.bytes + spots.at + x.start + c);
    wide |= width > 32;
    skip += width;
  }
  w.width = spots.at + x.start + before / GPUIR__CHUNK;
  w.bytes = spots.at + x.start + chunks + gc_sum64(skip) * GPUIR__CHUNK_UNIT;
  w.end = spots.at + x.end;
  w.at = (uint32_t)(before % GPUIR__CHUNK);
  w.next = 0;
  if (__any_sync(GC_WARP, wide)) w.left = 0;
  return w;
}

/* Takes the next positions of a walk, as many as its chunk has, a lane one; returns how many, 0 behind the last. They
 * ascend, in a damaged file perhaps not. About 40 instructions. */
static __device__ __forceinline__ uint32_t gc_walk_next(const gc_positions &p, gc_walk &w, uint32_t &position) {
  const uint32_t n = (uint32_t)min((uint64_t)(GPUIR__CHUNK - w.at), w.left);
  const uint32_t bits = n ? __ldg(p.bytes + w.width) : 33;
  uint32_t gap = 0, sum;
  if (bits > 32 || w.bytes > w.end || ((w.at + n) * bits + 7) / 8 > w.end - w.bytes) {
    w.left = 0;
    return 0;
  }
  if (gc_lane() < n) gap = gc_packed(p.bytes + w.bytes, bits, w.at + gc_lane()) + 1;
  sum = gc_scan(gap);
  position = w.next + sum - 1;
  w.next += __shfl_sync(GC_WARP, sum, 31);
  w.left -= n;
  w.at += n;
  if (w.at == GPUIR__CHUNK) {
    w.at = 0;
    w.width++;
    w.bytes += GPUIR__CHUNK_UNIT * bits;
  }
  return n;
}

/* Returns whether the lane is live and its target, which ascend, is among the positions of a walk; moves that on to the
 * group of positions that the next targets may still be among. */
static __device__ __forceinline__ bool gc_walk_meet(const gc_positions &p, gc_walk *walk, uint32_t target, bool live) {
  const uint32_t vote = __ballot_sync(GC_WARP, live);
  const uint32_t least = __shfl_sync(GC_WARP, target, __ffs((int)vote) - 1);
  const uint32_t most = __shfl_sync(GC_WARP, target, 31 - __clz((int)vote));
  gc_walk w = *walk, before = w;
  uint32_t n, y = 0, last, left;
  bool met = false;
  while ((n = gc_walk_next(p, w, y)) != 0) {
    last = __shfl_sync(GC_WARP, y, n - 1);
    for (left = last < least ? 0 : vote; left; left &= left - 1) {
      const uint32_t lane = __ffs((int)left) - 1, sought = __shfl_sync(GC_WARP, target, lane);
      const uint32_t found = __ballot_sync(GC_WARP, gc_lane() < n && y == sought);
      if (gc_lane() == lane && found) met = true;
    }
    if (last >= most) break;
    before = w;
  }
  __syncwarp();
  if (!gc_lane()) *walk = before;
  __syncwarp();
  return live && met;
}

/* Returns how often a phrase stands in the document of posting `index` of the driver block. The token that is rarest
 * there leads; the others' positions are walked once, beside its. */
static __device__ __noinline__ uint32_t gc_phrase_tf(const gc_view &v, const gc_phrases &p, const gc_term *terms,
    const gc_spots *spots, const gc_clause &clause, uint32_t index, gc_finds *w) {
  gc_walk *walks = (gc_walk *)gc_where(w, p.lists), walk;
  uint64_t least = UINT64_MAX;
  uint32_t lead = 0, met = 0, t, n, x = 0;
  for (t = 0; t < clause.n; t++) {
    const uint32_t r = p.tokens[clause.first + t];
    walk = gc_walk_open(v, p.positions, terms[r], spots[r], gc_where(w, r)[index]);
    if (!walk.left) return 0;
    if (!gc_lane()) walks[t] = walk;
    if (walk.left < least) lead = t;
    least = min(least, walk.left);
  }
  __syncwarp();
  walk = walks[lead];
  while ((n = gc_walk_next(p.positions, walk, x)) != 0) {
    bool live = gc_lane() < n && x >= lead;
    for (t = 0; t < clause.n && __any_sync(GC_WARP, live); t++)
      if (t != lead) live = gc_walk_meet(p.positions, &walks[t], x - lead + t, live);
    met += __popc(__ballot_sync(GC_WARP, live));
  }
  __syncwarp();
  return met;
}

/* ---- positions in 32 documents, one a lane ---- */

#define GC_SPOT_MOST 32u /* gaps of a posting that a lane walks; they lie in two chunks at most */
#define GC_SPOT_CHUNKS 32u /* chunks of a block in which lanes walk: one loads the width of each */

/* Where a lane finds the positions of its posting. */
typedef struct gc_spot {
  const uint8_t *bytes; /* of the first chunk */
  uint32_t tf; /* 0: they are not a lane's to walk */
  uint32_t at, width[2]; /* the first gap in the chunk; bits of a gap in this chunk and in the next one */
} gc_spot;

/* Finds the spots of the lanes, those of `mine`, whose posting `at` lies in a block. They are left as they are, for the
 * warp to walk, where there are too many gaps, or the bytes do not hold what the frequencies promise. About 130
 * instructions. ends: 128 words of shared memory, at a multiple of 16 bytes. */
static __device__ __forceinline__ void gc_spot_block(const gc_view &v, const gc_positions &p, const gc_term &t,
    const gc_spots &spots, uint32_t block, uint32_t at, bool mine, uint32_t *ends, gc_spot *s) {
  const uint32_t n = gc_block_len(t, block), lane = gc_lane(), posting = at % GPUIR__BLOCK;
  const gc_stretch x = gc_positions_of(p, t, spots, block);
  uint32_t f[4], sum = 0, before, chunks, chunk, width, behind, need, i;
  bool whole;
  gc_decode_freqs(v, t, block, f);
#pragma unroll
  for (i = 0; i < 4; i++) f[i] = sum += 4 * lane + i < n ? min(f[i], GC_SPOT_CHUNKS * GPUIR__CHUNK) + 1 : 0;
  before = gc_scan(sum) - sum;
  __syncwarp();
  *(uint4 *)(ends + 4 * lane) = make_uint4(before + f[0], before + f[1], before + f[2], before + f[3]);
  __syncwarp();
  chunks = (ends[GPUIR__BLOCK - 1] + GPUIR__CHUNK - 1) / GPUIR__CHUNK;
  whole = chunks <= GC_SPOT_CHUNKS && x.start < x.end && chunks <= x.end - x.start;
  width = whole && lane < chunks ? __ldg(p.bytes + spots.at + x.start + lane) : 0;
  if (__any_sync(GC_WARP, width > 32)) whole = false;
  behind = chunks + GPUIR__CHUNK_UNIT * (gc_scan(width) - width);
  before = posting ? ends[posting - 1] : 0;
  chunk = before / GPUIR__CHUNK;
  behind = __shfl_sync(GC_WARP, behind, chunk);
  i = __shfl_sync(GC_WARP, width, chunk);
  width = __shfl_sync(GC_WARP, width, chunk + 1); /* that of the first chunk, and unused, behind the last one */
  if (!mine || !whole || ends[posting] - before > GC_SPOT_MOST) return;
  s->at = before % GPUIR__CHUNK;
  need = s->at + ends[posting] - before;
  need = need <= GPUIR__CHUNK ? (need * i + 7) / 8 : GPUIR__CHUNK_UNIT * i + ((need - GPUIR__CHUNK) * width + 7) / 8;
  if (behind + need > x.end - x.start) return;
  s->tf = ends[posting] - before;
  s->width[0] = i;
  s->width[1] = width;
  s->bytes = p.bytes + spots.at + x.start + behind;
}

/* Returns the spots of the live lanes' postings `at` of a list, block after block. */
static __device__ __noinline__ gc_spot gc_spot_find(const gc_view &v, const gc_positions &p, const gc_term &t,
    const gc_spots &spots, uint32_t at, bool live, uint32_t *ends) {
  gc_spot s = {NULL, 0, 0, {0, 0}};
  uint32_t left = __ballot_sync(GC_WARP, live);
  while (left) {
    const uint32_t block = __shfl_sync(GC_WARP, at / GPUIR__BLOCK, __ffs((int)left) - 1);
    const bool mine = live && at / GPUIR__BLOCK == block;
    left &= ~__ballot_sync(GC_WARP, mine);
    gc_spot_block(v, p, t, spots, block, at, mine, ends, &s);
  }
  return s;
}

/* Returns the i-th gap of a spot, and 1. */
static __device__ __forceinline__ uint32_t gc_spot_gap(const gc_spot &s, uint32_t i) {
  const uint32_t at = s.at + i;
  return 1 +
      (at < GPUIR__CHUNK ? gc_packed(s.bytes, s.width[0], at)
                         : gc_packed(s.bytes + GPUIR__CHUNK_UNIT * s.width[0], s.width[1], at - GPUIR__CHUNK));
}

/* Returns, a bit each, which of the lane's positions of token a have one of token b `apart` behind them, or, below 0,
 * before them. Each lane walks alone. */
static __device__ __forceinline__ uint32_t gc_spots_meet(const gc_spot &a, const gc_spot &b, int apart) {
  int64_t x = apart - 1, y = -1; /* of a, moved to where b's are wanted */
  uint32_t i = 0, j = 0, met = 0;
  if (!a.tf || !b.tf) return 0;
  x += gc_spot_gap(a, 0);
  y += gc_spot_gap(b, 0);
  for (;;) {
    const bool on = x <= y, same = x == y;
    if (same) met |= 1u << i;
    if (on) {
      if (++i == a.tf) return met;
      x += gc_spot_gap(a, i);
    }
    if (same || !on) {
      if (++j == b.tf) return met;
      y += gc_spot_gap(b, j);
    }
  }
}

/* Returns how often a phrase stands in the document of each live lane, posting `index` of the driver block. Postings
 * with few positions are walked by a lane each, others by the warp in turn. The token of the shortest list leads. */
static __device__ __forceinline__ uint32_t gc_phrase_tfs(const gc_view &v, const gc_phrases &p, const gc_term *terms,
    const gc_spots *spots, const gc_clause &clause, uint32_t index, bool live, gc_finds *w) {
  const uint8_t *tokens = p.tokens + clause.first;
  uint32_t lead = 0, alive, tf, left, t;
  bool slow;
  gc_spot a;
  for (t = 1; t < clause.n; t++)
    if (tokens[t] < tokens[lead]) lead = t;
  a = gc_spot_find(v, p.positions, terms[tokens[lead]], spots[tokens[lead]], gc_where(w, tokens[lead])[index], live,
      w->docs);
  alive = live ? gc_mask(a.tf) : 0;
  slow = live && !a.tf;
  for (t = 0; t < clause.n && __any_sync(GC_WARP, alive); t++) {
    const uint32_t r = tokens[t];
    gc_spot b;
    if (t == lead) continue;
    b = gc_spot_find(v, p.positions, terms[r], spots[r], gc_where(w, r)[index], alive != 0, w->docs);
    slow |= alive && !b.tf;
    if (alive) alive &= gc_spots_meet(a, b, (int)t - (int)lead);
  }
  __syncwarp();
  tf = __popc(alive);
  for (left = __ballot_sync(GC_WARP, slow); left; left &= left - 1) {
    const uint32_t lane = __ffs((int)left) - 1;
    const uint32_t one = gc_phrase_tf(v, p, terms, spots, clause, __shfl_sync(GC_WARP, index, lane), w);
    if (gc_lane() == lane) tf = one;
  }
  return tf;
}

/* ---- documents ---- */

/* Returns which of the live documents a list holds; at: where. */
static __device__ __forceinline__ uint32_t gc_phrase_look(const gc_view &v, const gc_term &t, const uint32_t d[4],
    uint32_t live, uint32_t at[4], uint32_t *docs) {
  uint32_t i;
  if (t.kind == GC_LONG && v.impact) return gc_find<4>(v, t, d, live, at);
#pragma unroll
  for (i = 0; i < 4; i++)
    if (t.kind == GC_LONG && v.marks && (live >> i & 1) && !gc_marked(v, t, d[i])) live &= ~(1u << i);
  return gc_probe<4>(v, t, d, live, at, docs);
}

/* Returns which documents of the driver's block all lists hold, and notes the documents and where they are. */
static __device__ uint32_t gc_phrase_match(const gc_view &v, const gc_job &job, const gc_term *terms, uint32_t block,
    gc_finds *w) {
  uint32_t d[4], live = 0, at[4], r, i;
  const uint32_t n = gc_decode_docs(v, terms[0], block, d), first = 4 * gc_lane();
#pragma unroll
  for (i = 0; i < 4; i++) {
    if (first + i < n && gc_lives(v, d[i])) live |= 1u << i;
    w->doc[first + i] = d[i];
    gc_where(w, 0)[first + i] = block * GPUIR__BLOCK + first + i;
  }
  for (r = 1; r < job.nterms && __any_sync(GC_WARP, live); r++) {
    const gc_term t = terms[r];
    const uint32_t found = gc_phrase_look(v, t, d, live, at, w->docs);
    live &= t.negated ? ~found : found;
#pragma unroll
    for (i = 0; i < 4 && r < job.npositive; i++)
      if (live >> i & 1) gc_where(w, r)[first + i] = at[i];
  }
  __syncwarp();
  return live;
}

/* Adds up what the words of a query contribute to the lane's documents, and bounds what its phrases may. Returns which
 * of the live ones stay above the floor, if each phrase is as frequent there as the rarest of its tokens. */
static __device__ uint32_t gc_phrase_scores(const gc_view &v, const gc_phrases &p, const gc_sought &s,
    const gc_job &job, const gc_term *terms, unsigned long long floor, uint32_t live, gc_finds *w) {
  uint32_t i, c, t;
#pragma unroll 1
  for (i = 0; i < 4; i++) {
    const uint32_t index = 4 * gc_lane() + i, doc = w->doc[index];
    const float norm = live >> i & 1 ? gc_norm(v, job, doc) : 0;
    uint32_t score = 0, rest = 0;
    for (c = 0; c < s.nclauses && (live >> i & 1); c++) {
      const gc_clause clause = p.clauses[s.first_clause + c];
      uint32_t freq = UINT32_MAX, add;
      for (t = 0; t < clause.n; t++) {
        const uint32_t r = p.tokens[clause.first + t];
        freq = min(freq, gc_freq(v, terms[r], gc_where(w, r)[index]));
      }
      add = clause.q * gc_contribution(clause.weight, freq, norm);
      if (clause.n == 1) score += add;
      else rest += add + (add >> 21) + 2 * clause.q; /* as [21b-phrases] has it */
    }
    w->score[index] = score;
    if (gpuir__key(score + rest, doc) <= floor) live &= ~(1u << i);
  }
  return live;
}

/* Notes the live postings of the block, in their order; returns how many. */
static __device__ __forceinline__ uint32_t gc_phrase_keep(uint32_t live, gc_finds *w) {
  const uint32_t upto = gc_scan(__popc(live));
  uint32_t at = upto - __popc(live), i;
  __syncwarp();
#pragma unroll
  for (i = 0; i < 4; i++) {
    if (live >> i & 1) w->match[at++] = 4 * gc_lane() + i;
  }
  __syncwarp();
  return __shfl_sync(GC_WARP, upto, 31);
}

/* Returns whether each phrase stands in the lane's document, posting `index` of the driver block, and adds what they
 * contribute to *score. */
static __device__ __forceinline__ bool gc_phrase_check(const gc_view &v, const gc_phrases &p, const gc_sought &s,
    const gc_job &job, const gc_term *terms, uint32_t index, bool live, uint32_t *score, gc_finds *w) {
  const float norm = live ? gc_norm(v, job, w->doc[index]) : 0;
  uint32_t c;
  for (c = 0; c < s.nclauses && __any_sync(GC_WARP, live); c++) {
    const gc_clause clause = p.clauses[s.first_clause + c];
    uint32_t tf;
    if (clause.n == 1) continue;
    tf = gc_phrase_tfs(v, p, terms, p.spots + s.first_spot, clause, index, live, w);
    live = tf != 0;
    if (live) *score += clause.q * gc_contribution(clause.weight, tf - 1, norm);
  }
  return live;
}

/* Offers the documents of a driver block in which all stands that a query requires. */
static __device__ __forceinline__ void gc_phrase_block(const gc_view &v, const gc_batch &b, const gc_phrases &p,
    const gc_sought &s, uint32_t block, gc_finds *w) {
  const gc_job &job = b.jobs[s.job];
  const gc_term *terms = b.terms + job.first_term;
  const int raises = terms[0].nblocks >= GC_RAISED_BLOCKS ? GC_RAISE_OFTEN : GC_RAISE_NEVER;
  uint32_t left = gc_phrase_match(v, job, terms, block, w), count, from;
  const unsigned long long floor = __shfl_sync(GC_WARP, gc_floor(b.states + s.job), 0);
  if (!job.count && __any_sync(GC_WARP, left)) left = gc_phrase_scores(v, p, s, job, terms, floor, left, w);
  count = gc_phrase_keep(left, w);
  for (from = 0; from < count; from += 32) {
    const bool live = from + gc_lane() < count;
    const uint32_t index = live ? w->match[from + gc_lane()] : 0;
    uint32_t doc[1] = {w->doc[index]}, score[1] = {job.count ? 0 : w->score[index]}, found;
    found = gc_phrase_check(v, p, s, job, terms, index, live, score, w);
    if (!job.count && gpuir__key(score[0], doc[0]) <= floor) found = 0;
    __syncwarp();
    gc_offer<1>(b, s.job, raises, found, doc, score, w->docs);
  }
  __syncwarp();
}

/* Answers queries with phrases: a warp takes a ticket for a group of driver blocks at a time. */
static __global__ void __launch_bounds__(GC_PHRASE_THREADS, GC_PHRASE_BLOCKS)
    gc_phrase_all(const __grid_constant__ gc_view v, const __grid_constant__ gc_batch b,
        const __grid_constant__ gc_phrases p, const uint32_t bytes) {
  extern __shared__ uint4 gc_dynamic[];
  gc_finds *w = (gc_finds *)((uint8_t *)gc_dynamic + threadIdx.x / 32 * bytes);
  gc_chained();
  for (;;) {
    uint32_t at = 0, entry, i, n;
    if (!gc_lane()) at = atomicAdd(&b.control->next_phrase, 1);
    at = __shfl_sync(GC_WARP, at, 0);
    if (at >= p.tickets) return;
    entry = gc_find_block(p.start, 0, p.n, at + 1) - 1;
    const gc_sought s = p.jobs[entry];
    if (b.states[s.job].done) continue;
    at = (at - p.start[entry]) * p.group;
    n = min(p.group, b.terms[b.jobs[s.job].first_term].nblocks - at);
    for (i = 0; i < n; i++) gc_phrase_block(v, b, p, s, at + i, w);
  }
}
