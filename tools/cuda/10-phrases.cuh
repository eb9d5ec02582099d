
/* ========================
 * [cuda-10-phrases]  phrases: documents that hold all lists, and where in them the lists' terms stand
 *
 * For queries that require all their terms, some of which are phrases. The lists of the words and of the phrases'
 * tokens are intersected: a warp takes a block of the shortest list and looks its documents up in the others. Then
 * positions are compared, in those documents that could enter the top-k if each phrase stood there as often as the
 * rarest of its tokens. Positions lie as in the file ([25-positions] of gpuir.h). A phrase's frequency is scored as a
 * term's is.
 *
 * Most terms stand in a document a few times. One lane walks their positions, so that 32 lanes work on 32 documents at
 * once. The warp takes other documents one after another: each lane has a gap, and a scan turns the gaps of a chunk
 * into positions.
 *
 * No walk leaves the bytes of its block, which end where the next block's begin, whatever the file says. So all walks
 * of a list together read its bytes at most once for each posting of a block, in a damaged file too.
 *
 * Uses      [cuda-03-bp128], [cuda-09-and].
 * Start at  gc_phrase_all; gc_phrase_tfs (a phrase in 32 documents), gc_phrase_tf (in one of them by the warp).
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_PHRASE_THREADS 128u
#define GC_PHRASE_BLOCKS 6 /* blocks of threads on a multiprocessor at least, of gc_phrase_all */

/* Positions on the device: the section and, for each block of the directory, where in its list they begin. */
typedef struct gc_positions {
  const uint8_t *bytes;
  const uint32_t *offsets;
} gc_positions;

/* Where a list's positions are stored: bytes of the section. */
typedef struct gc_stored_positions {
  uint64_t at, length;
} gc_stored_positions;

/* What a query requires: a list, or a phrase, whose tokens are numbers of the job's lists. */
typedef struct gc_clause {
  float weight;
  uint32_t q, first, n; /* first: among gc_phrases.tokens; n 1: it is a list */
} gc_clause;

/* A job of gc_phrase_all. */
typedef struct gc_phrase_job {
  uint32_t job, first_stored, first_clause, nclauses; /* first_stored: of its first list; those of the others follow */
} gc_phrase_job;

/* The queries with phrases of a launch. */
typedef struct gc_phrases {
  const gc_phrase_job *jobs; /* n */
  const uint32_t *start; /* [n + 1] the first ticket of each; then all tickets. A ticket is a group of driver blocks */
  const gc_clause *clauses;
  const gc_stored_positions *stored;
  const uint8_t *tokens;
  gc_positions positions;
  uint32_t n, tickets, group;
  uint32_t lists; /* required lists of a job at most */
} gc_phrases;

/* The bytes of a list's positions that belong to a block: start .. end - 1; none if end is not behind start. */
typedef struct gc_stretch {
  uint64_t start, end;
} gc_stretch;

/* A walk through a token's positions in a document. All lanes hold the same. */
typedef struct gc_walk {
  uint64_t width, bytes; /* places in the section: of the chunk's width; of its gaps */
  uint64_t end; /* of the block's bytes */
  uint64_t left; /* gaps that are left */
  uint32_t at, next; /* the chunk's next gap; what is added to it */
} gc_walk;

/* The shared memory of a warp. Behind it stand `lists` rows of 128 words, and the walks of a phrase's tokens. */
typedef struct alignas(16) gc_finds {
  uint32_t docs[GPUIR__BLOCK]; /* of gc_probe, and of gc_kth_score */
  uint32_t doc[GPUIR__BLOCK], score[GPUIR__BLOCK]; /* of the driver block's postings */
  uint32_t match[GPUIR__BLOCK]; /* postings that are left, by their number in the block */
} gc_finds;

/* Returns row r behind it: the numbers that the driver block's documents have in list r. */
static __device__ __forceinline__ uint32_t *gc_where(gc_finds *w, uint32_t r) {
  return (uint32_t *)(w + 1) + r * GPUIR__BLOCK;
}

/* Returns the shared memory that a warp needs; the next warp's is aligned too. */
static size_t gc_phrase_bytes(uint32_t lists, uint32_t tokens) {
  const size_t bytes = sizeof(gc_finds) + lists * GPUIR__BLOCK * 4 + tokens * sizeof(gc_walk);
  return (bytes + alignof(gc_finds) - 1) / alignof(gc_finds) * alignof(gc_finds);
}

/* ---- positions ---- */

/* Returns the sum of x over the warp, in all lanes. */
static __device__ __forceinline__ uint64_t gc_sum64(uint64_t x) {
  uint32_t i;
#pragma unroll
  for (i = 16; i; i /= 2) x += __shfl_xor_sync(GC_WARP, x, i);
  return x;
}

/* Returns where the positions of a block of a list lie. They lie within the list's bytes, whatever the directory
 * says. */
static __device__ __forceinline__ gc_stretch gc_positions_of(const gc_positions &p, const gc_term &t,
    const gc_stored_positions &stored, uint32_t block) {
  gc_stretch x = {0, stored.length};
  if (t.kind == GC_LONG) {
    const uint32_t *offset = p.offsets + t.first_block + block;
    x.start = (uint64_t)__ldg(offset) * GPUIR__CHUNK_UNIT;
    if (block + 1 < t.nblocks) x.end = min(x.end, (uint64_t)__ldg(offset + 1) * GPUIR__CHUNK_UNIT);
  }
  return x;
}

/* Begins a walk through the positions of posting `at` of a list. `left` is its frequency, or 0 if the bytes do not hold
 * as many gaps as the frequencies say. */
static __device__ __noinline__ gc_walk gc_walk_open(const gc_view &v, const gc_positions &p, const gc_term &t,
    const gc_stored_positions &stored, uint32_t at) {
  const uint32_t block = at / GPUIR__BLOCK, posting = at % GPUIR__BLOCK, n = gc_block_len(t, block), lane = gc_lane();
  const gc_stretch x = gc_positions_of(p, t, stored, block);
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
    const uint32_t width = __ldg(p.bytes + stored.at + x.start + c);
    wide |= width > 32;
    skip += width;
  }
  w.width = stored.at + x.start + before / GPUIR__CHUNK;
  w.bytes = stored.at + x.start + chunks + gc_sum64(skip) * GPUIR__CHUNK_UNIT;
  w.end = stored.at + x.end;
  w.at = (uint32_t)(before % GPUIR__CHUNK);
  w.next = 0;
  if (__any_sync(GC_WARP, wide)) w.left = 0;
  return w;
}

/* Takes the walk's next positions, up to its chunk's end, one for each lane. Returns how many there are; 0 behind the
 * last. They ascend, except in a damaged file. */
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

/* Returns whether the lane is live and its target is among the walk's positions. Targets ascend over the lanes. The
 * walk moves on to the group of positions that may hold the next targets. */
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

/* Returns how often a phrase stands in the document of posting `index` of the driver block, by the warp. The token that
 * is rarest in the document leads; the positions of each other token are walked once beside it. */
static __device__ __noinline__ uint32_t gc_phrase_tf(const gc_view &v, const gc_phrases &p, const gc_term *terms,
    const gc_stored_positions *stored, const gc_clause &clause, uint32_t index, gc_finds *w) {
  gc_walk *walks = (gc_walk *)gc_where(w, p.lists), walk;
  uint64_t least = UINT64_MAX;
  uint32_t lead = 0, met = 0, t, n, x = 0;
  for (t = 0; t < clause.n; t++) {
    const uint32_t r = p.tokens[clause.first + t];
    walk = gc_walk_open(v, p.positions, terms[r], stored[r], gc_where(w, r)[index]);
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

#define GC_LANE_GAPS 32u /* gaps of a posting at most that a lane walks; they lie in two chunks at most */
#define GC_LANE_CHUNKS 32u /* chunks of a block at most in which lanes walk: each lane loads the width of one */

/* Where a lane finds the positions of its posting. */
typedef struct gc_lane_positions {
  const uint8_t *bytes; /* of the first chunk */
  uint32_t tf; /* 0: they are not for a lane to walk */
  uint32_t at, width[2]; /* the first gap in the chunk; bits of a gap in this chunk and in the next one */
} gc_lane_positions;

/* Finds the positions of the lanes of `mine`, whose posting `at` lies in a block. It leaves *s as it is, for the warp
 * to walk, if there are too many gaps, or if the bytes do not hold as many as the frequencies say. ends: 128 words of
 * shared memory, at a multiple of 16 bytes. */
static __device__ __forceinline__ void gc_lane_positions_in(const gc_view &v, const gc_positions &p, const gc_term &t,
    const gc_stored_positions &stored, uint32_t block, uint32_t at, bool mine, uint32_t *ends, gc_lane_positions *s) {
  const uint32_t n = gc_block_len(t, block), lane = gc_lane(), posting = at % GPUIR__BLOCK;
  const gc_stretch x = gc_positions_of(p, t, stored, block);
  uint32_t f[4], sum = 0, before, chunks, chunk, width, behind, need, i;
  bool whole;
  gc_decode_freqs(v, t, block, f);
#pragma unroll
  for (i = 0; i < 4; i++) f[i] = sum += 4 * lane + i < n ? min(f[i], GC_LANE_CHUNKS * GPUIR__CHUNK) + 1 : 0;
  before = gc_scan(sum) - sum;
  __syncwarp();
  *(uint4 *)(ends + 4 * lane) = make_uint4(before + f[0], before + f[1], before + f[2], before + f[3]);
  __syncwarp();
  chunks = (ends[GPUIR__BLOCK - 1] + GPUIR__CHUNK - 1) / GPUIR__CHUNK;
  whole = chunks <= GC_LANE_CHUNKS && x.start < x.end && chunks <= x.end - x.start;
  width = whole && lane < chunks ? __ldg(p.bytes + stored.at + x.start + lane) : 0;
  if (__any_sync(GC_WARP, width > 32)) whole = false;
  behind = chunks + GPUIR__CHUNK_UNIT * (gc_scan(width) - width);
  before = posting ? ends[posting - 1] : 0;
  chunk = before / GPUIR__CHUNK;
  behind = __shfl_sync(GC_WARP, behind, chunk);
  i = __shfl_sync(GC_WARP, width, chunk);
  width = __shfl_sync(GC_WARP, width, chunk + 1); /* behind the last chunk: the first one's, not used */
  if (!mine || !whole || ends[posting] - before > GC_LANE_GAPS) return;
  s->at = before % GPUIR__CHUNK;
  need = s->at + ends[posting] - before;
  need = need <= GPUIR__CHUNK ? (need * i + 7) / 8 : GPUIR__CHUNK_UNIT * i + ((need - GPUIR__CHUNK) * width + 7) / 8;
  if (behind + need > x.end - x.start) return;
  s->tf = ends[posting] - before;
  s->width[0] = i;
  s->width[1] = width;
  s->bytes = p.bytes + stored.at + x.start + behind;
}

/* Returns the positions of the live lanes' postings `at` of a list. It goes through the blocks that hold them. */
static __device__ __noinline__ gc_lane_positions gc_lane_positions_of(const gc_view &v, const gc_positions &p,
    const gc_term &t, const gc_stored_positions &stored, uint32_t at, bool live, uint32_t *ends) {
  gc_lane_positions s = {NULL, 0, 0, {0, 0}};
  uint32_t left = __ballot_sync(GC_WARP, live);
  while (left) {
    const uint32_t block = __shfl_sync(GC_WARP, at / GPUIR__BLOCK, __ffs((int)left) - 1);
    const bool mine = live && at / GPUIR__BLOCK == block;
    left &= ~__ballot_sync(GC_WARP, mine);
    gc_lane_positions_in(v, p, t, stored, block, at, mine, ends, &s);
  }
  return s;
}

/* Returns gap i plus 1. */
static __device__ __forceinline__ uint32_t gc_lane_gap(const gc_lane_positions &s, uint32_t i) {
  const uint32_t at = s.at + i;
  return 1 +
      (at < GPUIR__CHUNK ? gc_packed(s.bytes, s.width[0], at)
                         : gc_packed(s.bytes + GPUIR__CHUNK_UNIT * s.width[0], s.width[1], at - GPUIR__CHUNK));
}

/* Returns which of the lane's positions of token a have a position of token b `apart` behind them, a bit each; a
 * negative `apart` is before them. Each lane walks alone. */
static __device__ __forceinline__ uint32_t gc_lane_positions_meet(const gc_lane_positions &a,
    const gc_lane_positions &b, int apart) {
  int64_t x = apart - 1, y = -1; /* of a, moved to where b's positions are wanted */
  uint32_t i = 0, j = 0, met = 0;
  if (!a.tf || !b.tf) return 0;
  x += gc_lane_gap(a, 0);
  y += gc_lane_gap(b, 0);
  for (;;) {
    const bool on = x <= y, same = x == y;
    if (same) met |= 1u << i;
    if (on) {
      if (++i == a.tf) return met;
      x += gc_lane_gap(a, i);
    }
    if (same || !on) {
      if (++j == b.tf) return met;
      y += gc_lane_gap(b, j);
    }
  }
}

/* Returns how often a phrase stands in the document of each live lane, posting `index` of the driver block. A lane
 * walks postings with few positions, the warp the others in turn. The token of the shortest list leads. */
static __device__ __forceinline__ uint32_t gc_phrase_tfs(const gc_view &v, const gc_phrases &p, const gc_term *terms,
    const gc_stored_positions *stored, const gc_clause &clause, uint32_t index, bool live, gc_finds *w) {
  const uint8_t *tokens = p.tokens + clause.first;
  uint32_t lead = 0, alive, tf, left, t;
  bool slow;
  gc_lane_positions a;
  for (t = 1; t < clause.n; t++)
    if (tokens[t] < tokens[lead]) lead = t;
  a = gc_lane_positions_of(v, p.positions, terms[tokens[lead]], stored[tokens[lead]], gc_where(w, tokens[lead])[index],
      live, w->docs);
  alive = live ? gc_mask(a.tf) : 0;
  slow = live && !a.tf;
  for (t = 0; t < clause.n && __any_sync(GC_WARP, alive); t++) {
    const uint32_t r = tokens[t];
    gc_lane_positions b;
    if (t == lead) continue;
    b = gc_lane_positions_of(v, p.positions, terms[r], stored[r], gc_where(w, r)[index], alive != 0, w->docs);
    slow |= alive && !b.tf;
    if (alive) alive &= gc_lane_positions_meet(a, b, (int)t - (int)lead);
  }
  __syncwarp();
  tf = __popc(alive);
  for (left = __ballot_sync(GC_WARP, slow); left; left &= left - 1) {
    const uint32_t lane = __ffs((int)left) - 1;
    const uint32_t one = gc_phrase_tf(v, p, terms, stored, clause, __shfl_sync(GC_WARP, index, lane), w);
    if (gc_lane() == lane) tf = one;
  }
  return tf;
}

/* ---- documents ---- */

/* Returns which of the live documents a list holds; at: their postings' numbers. */
static __device__ __forceinline__ uint32_t gc_phrase_look_up(const gc_view &v, const gc_term &t, const uint32_t d[4],
    uint32_t live, uint32_t at[4], uint32_t *docs) {
  uint32_t i;
  if (t.kind == GC_LONG && v.impact) return gc_find<4>(v, t, d, live, at);
#pragma unroll
  for (i = 0; i < 4; i++)
    if (t.kind == GC_LONG && v.marks && (live >> i & 1) && !gc_marked(v, t, d[i])) live &= ~(1u << i);
  return gc_probe<4>(v, t, d, live, at, docs);
}

/* Returns which documents of the driver's block all lists hold. It notes the documents, and their postings' numbers in
 * the lists. */
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
    const uint32_t found = gc_phrase_look_up(v, t, d, live, at, w->docs);
    live &= t.negated ? ~found : found;
#pragma unroll
    for (i = 0; i < 4 && r < job.npositive; i++)
      if (live >> i & 1) gc_where(w, r)[first + i] = at[i];
  }
  __syncwarp();
  return live;
}

/* Adds up what the query's words contribute to the lane's documents, and bounds what its phrases can add. Returns those
 * of the live ones that stay above the floor if each phrase is as frequent as the rarest of its tokens. */
static __device__ uint32_t gc_phrase_scores(const gc_view &v, const gc_phrases &p, const gc_phrase_job &s,
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
      else rest += add + (add >> 21) + 2 * clause.q; /* as in [60-phrases] of gpuir.h */
    }
    w->score[index] = score;
    if (gpuir__key(score + rest, doc) <= floor) live &= ~(1u << i);
  }
  return live;
}

/* Notes the live postings of the block, in their order; returns how many there are. */
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

/* Returns whether each phrase stands in the lane's document, posting `index` of the driver block. It adds what they
 * contribute to *score. */
static __device__ __forceinline__ bool gc_phrase_check(const gc_view &v, const gc_phrases &p, const gc_phrase_job &s,
    const gc_job &job, const gc_term *terms, uint32_t index, bool live, uint32_t *score, gc_finds *w) {
  const float norm = live ? gc_norm(v, job, w->doc[index]) : 0;
  uint32_t c;
  for (c = 0; c < s.nclauses && __any_sync(GC_WARP, live); c++) {
    const gc_clause clause = p.clauses[s.first_clause + c];
    uint32_t tf;
    if (clause.n == 1) continue;
    tf = gc_phrase_tfs(v, p, terms, p.stored + s.first_stored, clause, index, live, w);
    live = tf != 0;
    if (live) *score += clause.q * gc_contribution(clause.weight, tf - 1, norm);
  }
  return live;
}

/* Offers the documents of a driver block that hold all that the query requires. */
static __device__ __forceinline__ void gc_phrase_block(const gc_view &v, const gc_launch_view &b, const gc_phrases &p,
    const gc_phrase_job &s, uint32_t block, gc_finds *w) {
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
    gc_phrase_all(const __grid_constant__ gc_view v, const __grid_constant__ gc_launch_view b,
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
    const gc_phrase_job s = p.jobs[entry];
    if (b.states[s.job].done) continue;
    at = (at - p.start[entry]) * p.group;
    n = min(p.group, b.terms[b.jobs[s.job].first_term].nblocks - at);
    for (i = 0; i < n; i++) gc_phrase_block(v, b, p, s, at + i, w);
  }
}
