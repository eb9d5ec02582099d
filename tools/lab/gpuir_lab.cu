/* gpuir_lab.cu - the laboratory on the GPU: the literature's methods of decoding, intersecting and ranking
 *
 * Includes the engine as that includes gpuir.h: a program that wants both links this object instead of gpuir_cuda.o.
 * The interface is gpuir_lab.h; tests/gpu/test_lab.c tests all of it against the CPU.
 *
 * CONTENTS
 *   Search for a tag in brackets to get there. Each part uses only parts above it, and the engine's.
 *
 *     [lab-cuda-01-decode]      lists on the device; decoding to memory     gcl_decode gcl_decode_bp128
 *     [lab-cuda-02-intersect]   PARA, PMF, MergePath, skip pointers         gcl_para_search gcl_block_search
 *     [lab-cuda-03-algorithm1]  search in lists coded by lines              gcl_algorithm1
 *     [lab-cuda-04-rank]        tree, selections, radix sort                gcl_tree gcl_selection
 *     [lab-cuda-05-thesis]      qs as in Li's thesis                        gcl_qs_scan
 *     [lab-cuda-06-lists]       host: lists laid out on the device          gcl_open
 *     [lab-cuda-07-runs]        host: runs of decoding, queries, ranking    gcl_launch_run gcl_time
 *     [lab-cuda-08-search]      a searcher by these methods                 gcl_search
 *     [lab-cuda-09-api]         the C interface                             gpuir_cuda_lab_open
 *
 * The comments above the kernels predict bytes and warp instructions for a block of 128; beside them stands what
 * was measured on an H200 (132 multiprocessors, 1.05 T warp instructions/s, copies at 4.2 TB/s in the same run), and
 * what ncu counted (tools/scripts/ncu_table.py). Two to five times the predicted instructions of decoders are
 * counted, as these were of the arithmetic on values only: in a decoder for any list all lanes take a header apart,
 * with addresses and offsets of 64 bits, look for the block's list, and write 512 bytes. Bytes were predicted rightly.
 */
#include "gpuir_cuda.cu"

#include "gpuir_lab.h"

#include <algorithm>
#include <functional>

/* ========================
 * [lab-cuda-01-decode]  lists on the device; decoding to memory
 *
 * A warp decodes a block of 128 as [cuda-04-codecs] does, and writes its docIDs.
 *
 * Start at  gcl_decode, gcl_decode_bp128; gcl_pfl_node (a pfd-list's exceptions); gcl_verify.
 * ======================*/

#define GCL_THREADS 256u
#define GCL_WARPS (GCL_THREADS / 32)
#define GCL_CHUNK 32u /* blocks that a warp takes at a time, at most */

/* A list on the device. */
struct gcl_list : gc_coded {
  uint32_t shift[6]; /* hash segmentation with buckets of 16, 32, ... 256 on average; lr-local's segments */
  uint32_t buckets[6]; /* how many each of them has */
  const uint32_t *first[5]; /* buckets + 1 indices */
  const void *lines; /* linear regression: of the list, then of each of lr-local's segments */
};

/* Which list a block belongs to: `start` has the blocks before each list, `hint` the list of every 256th block. */
typedef struct gcl_where {
  const uint32_t *start, *hint;
} gcl_where;

#define GCL_HINT 8u /* log2 of the blocks a hint */

static __device__ __forceinline__ uint32_t gcl_list_of(const gcl_where &w, uint32_t g) {
  uint32_t i = __ldg(w.hint + (g >> GCL_HINT));
  while (g >= __ldg(w.start + i + 1)) i++;
  return i;
}

/* Decodes the blocks from .. to - 1 of all blocks to out, 128 words a block. */
template <int CODEC, bool SUM>
static __global__ void __launch_bounds__(GCL_THREADS)
    gcl_decode(const gcl_list *lists, gcl_where where, uint32_t from, uint32_t to, uint32_t chunk, uint32_t *out) {
  __shared__ uint4 room[GCL_WARPS][32];
  const uint32_t warps = gridDim.x * GCL_WARPS;
  uint32_t *sh = (uint32_t *)room[threadIdx.x / 32];
  uint64_t at = from + (uint64_t)(blockIdx.x * GCL_WARPS + threadIdx.x / 32) * chunk;
  for (; at < to; at += (uint64_t)warps * chunk) {
    uint32_t g = (uint32_t)at, end = min(to, g + chunk), i = gcl_list_of(where, g);
    for (; g < end; g++) {
      uint32_t v[4] = {0, 0, 0, 0};
      while (g >= __ldg(where.start + i + 1)) i++;
      gc_decode<CODEC, SUM>(lists[i], g - __ldg(where.start + i), sh, v);
      __stcs((uint4 *)(out + (uint64_t)(g - from) * GPUIR__BLOCK) + gc_lane(), make_uint4(v[0], v[1], v[2], v[3]));
    }
  }
}

/* ---- bp128 to memory ---- */

/* Finds a block's low bits, and its exceptions; without any, h and the marks are 0. */
static __device__ __forceinline__ void gcl_view(const gpuir__stream &s, uint32_t block, uint32_t count,
    gpuir__bp128_view *v) {
  uint64_t left;
  unsigned b;
  const uint8_t *low = gpuir__bp128_block(&s, block, count, &b, &left);
  if (left && gpuir__bp128_open(low, b, left, count, v)) return;
  v->low = v->high = low;
  v->low_bits = b;
  v->high_bits = 0;
  v->marks[0] = v->marks[1] = 0;
}

/* Loads the lane's words of a vertical block, by 16 bytes where the block allows it. */
static __device__ __forceinline__ gc_low gcl_fetch(const uint8_t *low, uint32_t bits) {
  const uint4 *p = (const uint4 *)low + (gc_lane() * bits >> 5);
  if (((uintptr_t)low & 15) == 0) {
    const uint4 x = __ldg(p), y = __ldg(p + 1);
    return {{x.x, x.y, x.z, x.w, y.x, y.y, y.z, y.w}};
  }
  return gc_load_low(low, bits);
}

/* A block that a warp is going to decode, opened; the first 16 bytes say what to load. */
typedef struct __align__(16) gcl_head {
  const uint8_t *low;
  uint32_t form, prev; /* form: low bits | bits of a high part << 8 | values << 16 */
  const uint8_t *high;
  uint32_t limit, zero;
  uint64_t marks[2];
}
gcl_head;

/* Describes block g of all blocks. */
static __device__ __forceinline__ void gcl_open_head(const gcl_list *lists, const gcl_where &where, uint32_t g,
    gcl_head *to) {
  const uint32_t i = gcl_list_of(where, g), block = g - __ldg(where.start + i);
  const gpuir__stream &s = lists[i].s;
  const uint32_t count = gpuir__block_count(s.n, block);
  gpuir__bp128_view view;
  gcl_view(s, block, count, &view);
  to->low = view.low;
  to->form = view.low_bits | view.high_bits << 8 | count << 16;
  to->prev = block ? __ldg(s.last + block - 1) : UINT32_MAX;
  to->high = view.high;
  to->limit = s.limit;
  to->marks[0] = view.marks[0];
  to->marks[1] = view.marks[1];
}

/* Decodes the values of a block whose words have been loaded. */
static __device__ __forceinline__ void gcl_unpack(const gcl_head &head, const gc_low &low, uint32_t v[4]) {
  const uint32_t lane = gc_lane(), b = head.form & 255, h = head.form >> 8 & 255, n = head.form >> 16;
  if (n == GPUIR__BLOCK) gc_low_parts(low, b, v);
  else /* packed otherwise: what was loaded is not used */ gc_packed4(head.low, b, 0, n, v);
  if (h) {
    const uint32_t shift = 4 * lane & 63, skip = (uint32_t)(uintptr_t)head.high & 3;
    const uint64_t word = head.marks[lane / 16];
    const uint32_t before = lane < 16 ? 0 : __popcll(head.marks[0]);
    const gc_highs highs = {(const uint32_t *)(head.high - skip), 8 * skip, h, b};
    gc_add_highs(highs, (uint32_t)(word >> shift) & 15, before + __popcll(word & (((uint64_t)1 << shift) - 1)), v);
  }
}

/* Decodes bp128 to memory. Each lane opens one of 32 blocks, so that their headers are loaded at once, and leaves
 * what it found in shared memory; then the warp takes them one after the other, the next one's two rows of 16 bytes
 * being on their way. The warps of a block of threads take neighbouring blocks at a time, so that memory is written
 * in one front. Bytes a value: b / 8 + 0.07 read and 4 written: bound by memory. Predicted 70 instructions a block,
 * counted 233, most blocks having exceptions. Measured for widths of 2 to 16: 788 to 583 G values/s, 3.4 to 3.6 TB/s,
 * that is 80 to 84 % of the copy's rate, 81.8 % on average. */
template <bool SUM>
static __global__ void __launch_bounds__(GCL_THREADS, 6) gcl_decode_bp128(const gcl_list *lists, gcl_where where,
    uint32_t from, uint32_t to, uint32_t chunk, uint32_t *out) {
  __shared__ gcl_head heads[GCL_WARPS][GCL_CHUNK];
  const uint32_t lane = gc_lane();
  gcl_head *sh = heads[threadIdx.x / 32];
  uint64_t at = from + (uint64_t)blockIdx.x * GCL_WARPS * chunk + threadIdx.x / 32;
  for (; at < to; at += (uint64_t)gridDim.x * GCL_WARPS * chunk) {
    const uint32_t n = (uint32_t)min((uint64_t)chunk, (to - at + GCL_WARPS - 1) / GCL_WARPS);
    uint4 *to4 = (uint4 *)(out + (at - from) * GPUIR__BLOCK) + lane;
    uint32_t j;
    gc_low next;
    __syncwarp();
    if (lane < n) gcl_open_head(lists, where, (uint32_t)at + lane * GCL_WARPS, &sh[lane]);
    __syncwarp();
    next = gcl_fetch(sh[0].low, sh[0].form & 255);
    for (j = 0; j < n; j++, to4 += GCL_WARPS * (GPUIR__BLOCK / 4)) {
      const gc_low low = next;
      uint32_t v[4];
      if (j + 1 < n) next = gcl_fetch(sh[j + 1].low, sh[j + 1].form & 255);
      gcl_unpack(sh[j], low, v);
      if (SUM) gc_sum(v, sh[j].prev, sh[j].limit);
      __stcs(to4, make_uint4(v[0], v[1], v[2], v[3]));
    }
  }
}

/* ---- pfd-list: the exceptions, before the lists ---- */

/* An array of a pfd-list's exceptions: n slots, some of which exceptions of their own patch. */
typedef struct gcl_node {
  const uint8_t *slots;
  uint32_t *out; /* n numbers; NULL: the list itself, of whose gaps the positions are made in place */
  const uint32_t *overflows;
  uint32_t *gaps;
  uint32_t n, number, bits, depth;
} gcl_node;

#define GCL_PFL_THREADS 1024u
#define GCL_PFL_TILE (4 * GCL_PFL_THREADS) /* numbers of a large array that a block of threads takes */

/* Writes the numbers from .. to - 1 of an array, without what exceptions add. */
static __device__ __forceinline__ void gcl_pfl_slots(const gcl_node &node, uint32_t from, uint32_t to) {
  uint32_t i;
  for (i = from + threadIdx.x; i < min(node.n, to) && node.out; i += GCL_PFL_THREADS)
    node.out[i] = gpuir__packed_value(node.slots, node.bits, i);
}

/* Patches an array by its exceptions from .. to - 1: in rounds of as many as threads the sum of the gaps between them,
 * `before` up to there, and their overflows. */
static __device__ __forceinline__ void gcl_pfl_patch(const gcl_node &node, uint32_t from, uint32_t to,
    uint32_t before) {
  uint32_t e;
  for (e = from; e < min(node.number, to); e += GCL_PFL_THREADS) {
    const uint32_t at = e + threadIdx.x, gap = at < node.number ? node.gaps[at] + 1 : 0;
    uint32_t all;
    const uint32_t position = before + gc_block_scan<GCL_PFL_THREADS>(gap, &all) - 1;
    if (at < node.number) {
      if (!node.out) node.gaps[at] = position;
      else if (position < node.n) node.out[position] |= node.overflows[at] << node.bits;
    }
    before += all;
  }
}

/* Returns the sum of x over the threads of the block, in all of them. */
static __device__ __forceinline__ uint32_t gcl_pfl_sum(uint32_t x) {
  __shared__ uint32_t sums[GCL_PFL_THREADS / 32];
  x = __reduce_add_sync(GC_WARP, x);
  if (!gc_lane()) sums[threadIdx.x / 32] = x;
  __syncthreads();
  return __reduce_add_sync(GC_WARP, sums[gc_lane()]);
}

/* Decodes arrays of exceptions, where there are many: a block of threads an array. b / 8 bytes read and 4 written for
 * a number, 8 read and 4 touched for each of its exceptions. */
static __global__ void __launch_bounds__(GCL_PFL_THREADS) gcl_pfl_node(const gcl_node *nodes) {
  const gcl_node node = nodes[blockIdx.x];
  gcl_pfl_slots(node, 0, UINT32_MAX);
  __syncthreads();
  gcl_pfl_patch(node, 0, UINT32_MAX, 0);
}

/* Decodes few arrays of exceptions: a block of threads takes a tile of one, in two steps, before the second of which
 * the sums of all tiles' gaps are known. 4 bytes an exception more than above. Counted: 18 and 17 instructions for
 * 128 values of the list. */
static __global__ void __launch_bounds__(GCL_PFL_THREADS) gcl_pfl_tiles(const gcl_node *nodes, uint32_t *sums) {
  const gcl_node node = nodes[blockIdx.y];
  const uint32_t from = blockIdx.x * GCL_PFL_TILE, to = from + GCL_PFL_TILE;
  uint32_t sum = 0, e;
  gcl_pfl_slots(node, from, to);
  if (from >= node.number) return;
  for (e = from + threadIdx.x; e < min(node.number, to); e += GCL_PFL_THREADS) sum += node.gaps[e] + 1;
  sum = gcl_pfl_sum(sum);
  if (!threadIdx.x) sums[(uint64_t)blockIdx.y * gridDim.x + blockIdx.x] = sum;
}

static __global__ void __launch_bounds__(GCL_PFL_THREADS)
    gcl_pfl_exceptions(const gcl_node *nodes, const uint32_t *sums) {
  const gcl_node node = nodes[blockIdx.y];
  const uint32_t from = blockIdx.x * GCL_PFL_TILE;
  uint32_t sum = 0, i;
  if (from >= node.number) return;
  for (i = threadIdx.x; i < blockIdx.x; i += GCL_PFL_THREADS) sum += sums[(uint64_t)blockIdx.y * gridDim.x + i];
  gcl_pfl_patch(node, from, from + GCL_PFL_TILE, gcl_pfl_sum(sum));
}

/* Compares what was decoded with the lists as they were given: mismatches, and a sum of all docIDs. */
static __global__ void __launch_bounds__(GCL_THREADS) gcl_verify(const gcl_list *lists, gcl_where where, uint32_t from,
    uint32_t to, const uint32_t *out, unsigned long long *sums) {
  const uint32_t warps = gridDim.x * GCL_WARPS;
  uint64_t g = from + blockIdx.x * GCL_WARPS + threadIdx.x / 32;
  unsigned long long sum = 0;
  uint32_t bad = 0, i;
  for (; g < to; g += warps) {
    uint32_t list = gcl_list_of(where, (uint32_t)g), block = (uint32_t)g - __ldg(where.start + list), count;
    count = gpuir__block_count(lists[list].s.n, block);
    for (i = gc_lane(); i < count; i += 32) {
      uint32_t x = out[(g - from) * GPUIR__BLOCK + i];
      bad += x != __ldg(lists[list].docs + (uint64_t)block * GPUIR__BLOCK + i);
      sum += x;
    }
  }
  for (i = 16; i; i /= 2) {
    bad += __shfl_xor_sync(GC_WARP, bad, i);
    sum += __shfl_xor_sync(GC_WARP, sum, i);
  }
  if (!gc_lane()) {
    if (bad) atomicAdd(sums, (unsigned long long)bad);
    atomicAdd(sums + 1, sum);
  }
}

/* ========================
 * [lab-cuda-02-intersect]  the literature's methods of intersecting, over many queries at once
 *
 * A run takes many queries, each of which has its lists by ascending length. The docIDs of the shortest list are the
 * candidates; a query has its place in arrays of candidates, and every 128 of them are a chunk of work that some
 * warps take, whichever query it belongs to: no loop over queries on the host. A search leaves a bit for each
 * candidate; then the marked ones are moved together, in their order. PARA searches all lists at once (Ao et al.
 * 2011, section 4.1); the methods that merge go round by round, from short to long lists (Ding et al. 2009, 8.1).
 *
 * Start at  gcl_para_search; gcl_pmf_level, gcl_pmf_find; gcl_mergepath; gcl_block_search; gcl_offsets, gcl_gather.
 * ======================*/

enum {
  GCL_BINARY,
  GCL_INTERPOLATION,
  GCL_LR_GLOBAL,
  GCL_LR_LOCAL,
  GCL_HS, /* 5 of them: 16 to 256 */
  GCL_PMF = 9, /* 5 of them: 0 to 4 levels */
  GCL_MERGEPATH = 14,
  GCL_SKIP,
  GCL_GRIFFIN,
  GCL_ALGORITHM1,
  GCL_ALGORITHM1_PLAIN, /* without the list of blocks' last docIDs, H(t) */
  GCL_METHODS
};

static const char *const gcl_methods[GCL_METHODS] = {"binary", "interpolation", "lr-global", "lr-local", "hs16", "hs32",
    "hs64", "hs128", "hs256", "pmf0", "pmf1", "pmf2", "pmf3", "pmf4", "mergepath", "skip", "griffin", "algorithm1",
    "algorithm1-without-h"};

#define GCL_LOCAL 5u /* of gcl_list's tables: what lr-local's segments are */
#define GCL_PART 1024u /* docIDs of both lists in a partition of MergePath */
#define GCL_PART_THREADS 128u

typedef struct gcl_query {
  uint32_t first, k; /* its lists in gcl_batch.lists */
  uint64_t base; /* its first candidate's place, a multiple of 128 */
  uint32_t chunk, m; /* its first chunk; candidates at the beginning */
} gcl_query;

typedef struct gcl_batch {
  const gcl_list *all;
  const gcl_query *queries;
  const uint32_t *lists;
  const uint32_t *chunk_query; /* whose each chunk is */
  uint32_t *count; /* candidates of each query that are left */
  uint32_t *cand[2];
  uint32_t *flags; /* a bit a candidate */
  uint32_t *at; /* marked ones of the query before each chunk */
  uint32_t *pos[2]; /* a candidate: where a splitter lies in the longer list */
  uint32_t *where; /* a marked candidate: where it lies in the list of the round; NULL: not told */
  uint32_t *expanded; /* decoded lists of a round */
  uint32_t nq, nchunks;
  float crossover; /* of list lengths: from here on, skip pointers instead of MergePath */
} gcl_batch;

/* A warp's share: 32 candidates of a query, one a lane. */
typedef struct gcl_share {
  const uint32_t *cand;
  uint64_t base;
  uint32_t q, e, m, first, k; /* e: the lane's candidate; m: how many there are */
} gcl_share;

static __device__ __forceinline__ gcl_share gcl_share_of(const gcl_batch &b, uint32_t chunk, uint32_t sub, int side,
    bool plain) {
  gcl_share s;
  gcl_query q;
  s.q = __ldg(b.chunk_query + chunk);
  q = b.queries[s.q];
  s.base = q.base;
  s.first = q.first;
  s.k = q.k;
  s.m = b.count[s.q];
  s.e = (chunk - q.chunk) * GPUIR__BLOCK + sub * 32 + gc_lane();
  s.cand = plain ? b.all[b.lists[q.first]].docs : b.cand[side] + q.base;
  return s;
}

/* Notes which query each chunk belongs to, and how many candidates it has at first. Counted: 1.7 instructions for
 * 128. */
static __global__ void __launch_bounds__(GCL_THREADS)
    gcl_begin(const gcl_query *queries, uint32_t nq, uint32_t *chunk_query, uint32_t *count) {
  uint32_t q, i;
  for (q = blockIdx.x; q < nq; q += gridDim.x) {
    for (i = threadIdx.x; i * GPUIR__BLOCK < queries[q].m; i += blockDim.x) chunk_query[queries[q].chunk + i] = q;
    if (!threadIdx.x) count[q] = queries[q].m;
  }
}

/* Decodes the shortest lists to memory, as gcl_decode does. Counted for 128 candidates: bp128 524 instructions, ef
 * 415, lrc 321, hslrc 652; 0.2 to 0.4 byte read a candidate, as many queries share their shortest list, and 1.5
 * written. */
template <int CODEC>
static __global__ void __launch_bounds__(GCL_THREADS) gcl_seed(const __grid_constant__ gcl_batch b) {
  __shared__ uint4 room[GCL_WARPS][32];
  uint32_t chunk = blockIdx.x * GCL_WARPS + threadIdx.x / 32;
  for (; chunk < b.nchunks; chunk += gridDim.x * GCL_WARPS) {
    const gcl_query q = b.queries[__ldg(b.chunk_query + chunk)];
    const uint32_t block = chunk - q.chunk;
    uint32_t v[4] = {0, 0, 0, 0};
    gc_decode<CODEC, true>(b.all[b.lists[q.first]], block, (uint32_t *)room[threadIdx.x / 32], v);
    ((uint4 *)(b.cand[0] + q.base + (uint64_t)block * GPUIR__BLOCK))[gc_lane()] = make_uint4(v[0], v[1], v[2], v[3]);
  }
}

/* Returns the index of x in a list as it is, or one that has another docID, or n. */
template <int HOW>
static __device__ __forceinline__ uint32_t gcl_find(const gcl_list &l, uint32_t x) {
  uint32_t lo = 0, hi = l.s.n, h;
  if (HOW == GCL_INTERPOLATION) return gpuir__interpolate(l.docs, 0, hi, x);
  if (HOW == GCL_LR_GLOBAL) {
    gpuir__lr_range((const gpuir__lr *)l.lines, x, l.s.n, &lo, &hi);
  } else if (HOW == GCL_LR_LOCAL) {
    h = gpuir__hs_bucket(x, l.shift[GCL_LOCAL]);
    if (h >= l.buckets[GCL_LOCAL]) return l.s.n;
    gpuir__lr_range((const gpuir__lr *)l.lines + 1 + h, x, l.s.n, &lo, &hi);
  } else if (HOW >= GCL_HS && HOW < GCL_PMF) {
    h = gpuir__hs_bucket(x, l.shift[HOW - GCL_HS]);
    if (h >= l.buckets[HOW - GCL_HS]) return l.s.n;
    lo = l.first[HOW - GCL_HS][h];
    hi = l.first[HOW - GCL_HS][h + 1];
  }
  return gpuir__lower_bound(l.docs, lo, hi, x);
}

/* Intersects by PARA: a thread has a candidate, which it looks for in all other lists, each a search by memory of its
 * own: log2(n) loads of 32 bytes by binary search, 1 more and log2(16) by segments of 16. Counted in lists that the
 * L2 cache holds, for 128 candidates of queries of two lists: 1,090 instructions by binary search, 1,970 by
 * interpolation, 810 and 690 by lr-global and lr-local, 630 to 780 by segments of 16 to 256; 1.5 bytes a candidate
 * from memory. Measured in batches of 67 M candidates: 42 G candidates/s by binary search, 66 by segments of 16, 70
 * by lr-local. */
template <int HOW>
static __global__ void __launch_bounds__(GCL_THREADS) gcl_para_search(const __grid_constant__ gcl_batch b, bool plain) {
  uint64_t w = (uint64_t)blockIdx.x * GCL_WARPS + threadIdx.x / 32;
  for (; w < (uint64_t)b.nchunks * 4; w += (uint64_t)gridDim.x * GCL_WARPS) {
    const gcl_share s = gcl_share_of(b, (uint32_t)(w / 4), (uint32_t)w % 4, 0, plain);
    bool found = s.e < s.m;
    uint32_t x = found ? s.cand[s.e] : 0, i, vote;
    for (i = 1; i < s.k && found; i++) {
      const gcl_list &l = b.all[b.lists[s.first + i]];
      uint32_t at = gcl_find<HOW>(l, x);
      found = at < l.s.n && l.docs[at] == x;
    }
    vote = __ballot_sync(GC_WARP, found);
    if (!gc_lane()) b.flags[w] = vote;
  }
}

/* Returns gpuir__pmf_fan, beginning at a root that is near. */
static __device__ __forceinline__ uint32_t gcl_fan(uint32_t m, unsigned levels) {
  uint32_t fan;
  if (!levels) return m;
  fan = (uint32_t)powf((float)m, 1.0f / (float)(levels + 1));
  fan = fan > 2 ? fan - 1 : 1;
  for (;; fan++) {
    uint64_t power = 1;
    unsigned i;
    for (i = 0; i <= levels && power < m; i++) power *= fan;
    if (power >= m) return fan;
  }
}

/* Finds a level of Parallel Merge Find's splitters of the candidates (Ding et al. 2009, 7.2). pos[side] gets where
 * they lie in list `round`, or among the last docIDs of its blocks if it is coded; before: the level above, with
 * `fan` as few segments, or none. Counted, on average of the levels: 1,350 instructions for 128 candidates. */
static __global__ void __launch_bounds__(GCL_THREADS) gcl_pmf_level(const __grid_constant__ gcl_batch b, uint32_t round,
    unsigned level, unsigned levels, int cand, bool plain, bool coded, int side) {
  uint64_t w = (uint64_t)blockIdx.x * GCL_WARPS + threadIdx.x / 32;
  for (; w < (uint64_t)b.nchunks * 4; w += (uint64_t)gridDim.x * GCL_WARPS) {
    const gcl_share s = gcl_share_of(b, (uint32_t)(w / 4), (uint32_t)w % 4, cand, plain);
    uint64_t segments = 1, above;
    uint32_t fan, i, lo = 0, hi;
    if (round >= s.k || !s.m) continue;
    fan = gcl_fan(s.m, levels);
    for (i = 0; i < level; i++) segments *= fan;
    above = segments / fan;
    if (segments >= s.m || s.e >= segments) continue;
    const gcl_list &l = b.all[b.lists[s.first + round]];
    const uint32_t *list = coded ? l.s.last : l.docs;
    hi = coded ? l.nblocks : l.s.n;
    if (coded && l.nblocks == 1) continue;
    if (level > 1) {
      const uint32_t *p = b.pos[side ^ 1] + s.base;
      lo = p[s.e / fan];
      if (s.e / fan + 1 < above) hi = min(hi, p[s.e / fan + 1] + 1);
    }
    b.pos[side][s.base + s.e] =
        gpuir__lower_bound(list, lo, hi, s.cand[gpuir__pmf_splitter(s.m, (uint32_t)segments, s.e)]);
  }
}

/* Narrows the range of a list, or of its directory, to that in which candidate e of m lies, by the last level of
 * splitters. */
static __device__ __forceinline__ void gcl_pmf_range(const uint32_t *pos, uint32_t e, uint32_t m, unsigned levels,
    uint32_t *lo, uint32_t *hi) {
  uint64_t segments = 1;
  uint32_t fan = gcl_fan(m, levels), i, s;
  if (!levels) return;
  for (i = 0; i < levels && segments * fan < m; i++) segments *= fan;
  if (segments == 1) return;
  s = (uint32_t)(((uint64_t)(e + 1) * segments - 1) / m);
  *lo = pos[s];
  if (s + 1 < segments) *hi = min(*hi, pos[s + 1] + 1);
}

/* Returns how many levels have splitters: the last one's positions lie in pos[levels & 1] if levels start with
 * pos[1]. */
static __device__ __forceinline__ unsigned gcl_pmf_used(uint32_t m, unsigned levels) {
  uint64_t segments = 1;
  unsigned i;
  uint32_t fan = gcl_fan(m, levels);
  for (i = 0; i < levels && segments * fan < m; i++) segments *= fan;
  return i;
}

/* Takes the last step of Parallel Merge Find in lists as they are. Counted: 2,560 instructions for 128 candidates,
 * gcl_fan's root among them; 1.7 bytes a candidate. */
static __global__ void __launch_bounds__(GCL_THREADS)
    gcl_pmf_find(const __grid_constant__ gcl_batch b, uint32_t round, unsigned levels, int cand, bool plain) {
  uint64_t w = (uint64_t)blockIdx.x * GCL_WARPS + threadIdx.x / 32;
  for (; w < (uint64_t)b.nchunks * 4; w += (uint64_t)gridDim.x * GCL_WARPS) {
    const gcl_share s = gcl_share_of(b, (uint32_t)(w / 4), (uint32_t)w % 4, cand, plain);
    bool found = s.e < s.m;
    uint32_t vote;
    if (found && round < s.k) {
      const gcl_list &l = b.all[b.lists[s.first + round]];
      uint32_t x = s.cand[s.e], lo = 0, hi = l.s.n, at;
      gcl_pmf_range(b.pos[gcl_pmf_used(s.m, levels) & 1] + s.base, s.e, s.m, levels, &lo, &hi);
      at = gpuir__lower_bound(l.docs, lo, hi, x);
      found = at < l.s.n && l.docs[at] == x;
    }
    vote = __ballot_sync(GC_WARP, found);
    if (!gc_lane()) b.flags[w] = vote;
  }
}

/* Returns whether a query's round is MergePath's. */
static __device__ __forceinline__ bool gcl_merges(const gcl_batch &b, uint32_t n, uint32_t m) {
  return (float)n < b.crossover * (float)m;
}

/* Intersects with coded lists: a warp has a chunk of candidates, finds the blocks that may hold them in the
 * directory, by binary search (skip pointers, Griffin 3.1.2) or within what Parallel Merge Find has left, and decodes
 * just those, one after the other, into shared memory (Ding et al. 2009, 8.1). A block that two chunks need is
 * decoded twice. Per candidate: log2(blocks) loads, 7 shared ones, and its part of a block's decoding: all of it
 * where lists differ much in length. Counted for 128 candidates, in lists of 1,000 to 400,000 of 1.05 M documents:
 * bp128 4,640 instructions, ef 3,920, lrc 3,090, hslrc 4,810; 3.9 to 4.6 bytes a candidate. */
template <int CODEC>
static __global__ void __launch_bounds__(GCL_THREADS) gcl_block_search(const __grid_constant__ gcl_batch b,
    uint32_t round, int how, unsigned levels, int cand, bool plain) {
  __shared__ uint4 room[GCL_WARPS][2][32];
  uint32_t *sh = (uint32_t *)room[threadIdx.x / 32][0], *docs = (uint32_t *)room[threadIdx.x / 32][1];
  uint32_t chunk = blockIdx.x * GCL_WARPS + threadIdx.x / 32, lane = gc_lane(), i;
  for (; chunk < b.nchunks; chunk += gridDim.x * GCL_WARPS) {
    gcl_share s = gcl_share_of(b, chunk, 0, cand, plain);
    const uint32_t first = s.e - lane;
    uint32_t x[4], block[4], live = 0, found = 0;
    if (first >= s.m) {
      if (lane < 4) b.flags[(uint64_t)chunk * 4 + lane] = 0;
      continue;
    }
    if (round >= s.k) {
      if (lane < 4)
        b.flags[(uint64_t)chunk * 4 + lane] = first + 32 * lane < s.m ? gc_mask(s.m - first - 32 * lane) : 0;
      continue;
    }
    const gcl_list &l = b.all[b.lists[s.first + round]];
    if (how == GCL_GRIFFIN && gcl_merges(b, l.s.n, s.m)) continue;
#pragma unroll
    for (i = 0; i < 4; i++) {
      const uint32_t e = first + 32 * i + lane;
      x[i] = block[i] = 0;
      if (e >= s.m) continue;
      x[i] = s.cand[e];
      if (l.nblocks > 1) {
        uint32_t lo = 0, hi = l.nblocks;
        if (how == GCL_PMF) gcl_pmf_range(b.pos[gcl_pmf_used(s.m, levels) & 1] + s.base, e, s.m, levels, &lo, &hi);
        block[i] = gpuir__lower_bound(l.s.last, lo, hi, x[i]);
      }
      if (block[i] < l.nblocks) live |= 1u << i;
    }
    while (__any_sync(GC_WARP, live)) {
      uint32_t least = UINT32_MAX, v[4] = {0, 0, 0, 0}, n;
#pragma unroll
      for (i = 0; i < 4; i++)
        if (live >> i & 1) least = min(least, block[i]);
      least = __reduce_min_sync(GC_WARP, least);
      n = gc_decode<CODEC, true>(l, least, sh, v);
      __syncwarp();
#pragma unroll
      for (i = 0; i < 4; i++)
        if (4 * lane + i >= n) v[i] = UINT32_MAX;
      *(uint4 *)(docs + 4 * lane) = make_uint4(v[0], v[1], v[2], v[3]);
      __syncwarp();
#pragma unroll
      for (i = 0; i < 4; i++)
        if ((live >> i & 1) && block[i] == least) {
          uint32_t at = 0, step;
#pragma unroll
          for (step = 64; step; step /= 2)
            if (docs[at + step - 1] < x[i]) at += step;
          live &= ~(1u << i);
          if (docs[at] != x[i]) continue;
          found |= 1u << i;
          if (b.where) b.where[s.base + first + 32 * i + lane] = least * GPUIR__BLOCK + at;
        }
    }
#pragma unroll
    for (i = 0; i < 4; i++) {
      uint32_t vote = __ballot_sync(GC_WARP, found >> i & 1);
      if (!lane) b.flags[(uint64_t)chunk * 4 + i] = vote;
    }
    __syncwarp();
  }
}

/* Marks the blocks of a round's list that may hold candidates of the only query: a binary search over the skip pointers
 * for each candidate, as the search that follows does it (Griffin, section 3.1.2). */
static __global__ void __launch_bounds__(GCL_THREADS)
    gcl_mark_blocks(const __grid_constant__ gcl_batch b, uint32_t round, int cand, uint8_t *marks) {
  const gcl_query q = b.queries[0];
  const gcl_list &l = b.all[b.lists[q.first + round]];
  const uint32_t m = b.count[0], step = gridDim.x * GCL_THREADS;
  uint32_t i;
  for (i = blockIdx.x * GCL_THREADS + threadIdx.x; i < m; i += step) {
    const uint32_t block = gpuir__lower_bound(l.s.last, 0, l.nblocks, b.cand[cand][q.base + i]);
    if (block < l.nblocks) marks[block] = 1;
  }
}

/* Fetches the marked blocks from pinned memory of the host, a warp a block: the others never cross the bus. image: what
 * lies in the host's memory where slab lies in the device's. */
static __global__ void __launch_bounds__(GCL_THREADS) gcl_pull_blocks(const __grid_constant__ gcl_batch b,
    uint32_t round, const uint8_t *marks, const uint8_t *image, uint8_t *slab) {
  const gcl_list &l = b.all[b.lists[b.queries[0].first + round]];
  const uint64_t base = (uint64_t)(l.s.bytes - slab);
  uint32_t block = blockIdx.x * GCL_WARPS + threadIdx.x / 32;
  for (; block < l.nblocks; block += gridDim.x * GCL_WARPS) {
    uint64_t at = (base + l.s.offset[block]) & ~(uint64_t)15;
    const uint64_t end = base + (block + 1 < l.nblocks ? l.s.offset[block + 1] : l.s.len);
    if (!marks[block]) continue;
    for (at += gc_lane() * 16; at < end; at += 32 * 16) *(uint4 *)(slab + at) = *(const uint4 *)(image + at);
  }
}

/* Decodes a round's lists to memory, where MergePath is going to need them; start: blocks of the queries before.
 * Counted for 128 docIDs: bp128 623 instructions, ef 478; 3.3 bytes a docID written. */
template <int CODEC>
static __global__ void __launch_bounds__(GCL_THREADS)
    gcl_expand(const __grid_constant__ gcl_batch b, uint32_t round, const uint32_t *start) {
  __shared__ uint4 room[GCL_WARPS][32];
  const uint32_t all = start[b.nq];
  uint32_t g = blockIdx.x * GCL_WARPS + threadIdx.x / 32;
  for (; g < all; g += gridDim.x * GCL_WARPS) {
    const uint32_t q = gc_owner(gc_numbers{start}, b.nq, g), m = b.count[q];
    const gcl_list &l = b.all[b.lists[b.queries[q].first + round]];
    uint32_t v[4] = {0, 0, 0, 0};
    if (!m || !gcl_merges(b, l.s.n, m)) continue;
    gc_decode<CODEC, true>(l, g - __ldg(start + q), (uint32_t *)room[threadIdx.x / 32], v);
    ((uint4 *)(b.expanded + (uint64_t)g * GPUIR__BLOCK))[gc_lane()] = make_uint4(v[0], v[1], v[2], v[3]);
  }
}

/* Intersects by MergePath (Griffin, section 3.1.2): a block of threads has a partition of GCL_PART docIDs of both
 * lists, found by two searches along diagonals; in shared memory each thread finds its 8 the same way and merges
 * them. Reads 4 bytes a docID of either list once: counted 2.7, as the L2 cache holds some, and 302 instructions for
 * 128 docIDs of both. parts, starts: partitions and blocks of the queries before; starts NULL: lists as they are. */
static __global__ void __launch_bounds__(GCL_PART_THREADS) gcl_mergepath(const __grid_constant__ gcl_batch b,
    uint32_t round, int cand, bool plain, const uint32_t *parts, const uint32_t *starts) {
  __shared__ uint32_t a[GCL_PART + 8], c[GCL_PART + 8], bits[GCL_PART / 32 + 2], split[4];
  __shared__ uint32_t at[GCL_PART_THREADS + 1][2];
  const uint32_t all = parts[b.nq];
  uint32_t part;
  for (part = blockIdx.x; part < all; part += gridDim.x) {
    const uint32_t of = gc_owner(gc_numbers{parts}, b.nq, part);
    uint32_t m, n, i, j, i1, j1, na, nc;
    uint64_t d;
    const gcl_query q = b.queries[of];
    const gcl_list &l = b.all[b.lists[q.first + round]];
    const uint32_t *left = plain ? b.all[b.lists[q.first]].docs : b.cand[cand] + q.base;
    const uint32_t *right = starts ? b.expanded + (uint64_t)starts[of] * GPUIR__BLOCK : l.docs;
    m = b.count[of];
    n = l.s.n;
    d = (uint64_t)(part - __ldg(parts + of)) * GCL_PART;
    if (!m || !gcl_merges(b, n, m) || d >= (uint64_t)m + n) continue;
    if (threadIdx.x < 2)
      gpuir__mergepath_split(left, m, right, n, min(d + threadIdx.x * GCL_PART, (uint64_t)m + n),
          &split[2 * threadIdx.x], &split[2 * threadIdx.x + 1]);
    if (threadIdx.x < GCL_PART / 32 + 2) bits[threadIdx.x] = 0;
    __syncthreads();
    na = split[2] - split[0];
    nc = split[3] - split[1];
    for (i = threadIdx.x; i < na; i += blockDim.x) a[i] = left[split[0] + i];
    for (i = threadIdx.x; i < nc; i += blockDim.x) c[i] = right[split[1] + i];
    __syncthreads();
    gpuir__mergepath_split(a, na, c, nc, min(threadIdx.x * (GCL_PART / GCL_PART_THREADS), na + nc), &i, &j);
    at[threadIdx.x][0] = i;
    at[threadIdx.x][1] = j;
    if (!threadIdx.x) {
      at[GCL_PART_THREADS][0] = na;
      at[GCL_PART_THREADS][1] = nc;
    }
    __syncthreads();
    i1 = at[threadIdx.x + 1][0];
    j1 = at[threadIdx.x + 1][1];
    while (i < i1 && j < j1) {
      uint32_t x = a[i], y = c[j];
      if (x == y) {
        uint32_t bit = (split[0] & 31) + i;
        atomicOr(&bits[bit / 32], 1u << (bit & 31));
      }
      i += x <= y;
      j += y <= x;
    }
    __syncthreads();
    if (threadIdx.x < GCL_PART / 32 + 2 && bits[threadIdx.x])
      atomicOr(b.flags + (q.base + split[0]) / 32 + threadIdx.x, bits[threadIdx.x]);
    __syncthreads();
  }
}

/* Clears the flags of queries for MergePath; those that have no list of this round keep all their candidates. */
static __global__ void __launch_bounds__(GCL_THREADS) gcl_clear(const __grid_constant__ gcl_batch b, uint32_t round) {
  uint64_t w = (uint64_t)blockIdx.x * GCL_THREADS + threadIdx.x;
  for (; w < (uint64_t)b.nchunks * 4; w += (uint64_t)gridDim.x * GCL_THREADS) {
    const uint32_t q = __ldg(b.chunk_query + w / 4), m = b.count[q];
    const uint32_t first = (uint32_t)(w / 4 - b.queries[q].chunk) * GPUIR__BLOCK + (uint32_t)w % 4 * 32;
    b.flags[w] = round < b.queries[q].k || first >= m ? 0 : gc_mask(m - first);
  }
}

/* Finds where each chunk's marked candidates go: a block of threads a query. Counted: 6.3 instructions for 128
 * candidates. */
static __global__ void __launch_bounds__(GCL_THREADS) gcl_offsets(const __grid_constant__ gcl_batch b) {
  uint32_t q, i;
  for (q = blockIdx.x; q < b.nq; q += gridDim.x) {
    const gcl_query query = b.queries[q];
    const uint32_t chunks = (query.m + GPUIR__BLOCK - 1) / GPUIR__BLOCK;
    uint32_t before = 0;
    for (i = 0; i < chunks; i += blockDim.x) {
      uint32_t n = 0, sum, all;
      if (i + threadIdx.x < chunks) {
        uint4 f = ((const uint4 *)b.flags)[query.chunk + i + threadIdx.x];
        n = __popc(f.x) + __popc(f.y) + __popc(f.z) + __popc(f.w);
      }
      sum = gc_block_scan<GCL_THREADS>(n, &all);
      if (i + threadIdx.x < chunks) b.at[query.chunk + i + threadIdx.x] = before + sum - n;
      before += all;
    }
    if (!threadIdx.x) b.count[q] = before;
  }
}

/* Moves the marked candidates together. Counted: 343 instructions for 128 candidates, 2.5 bytes a candidate. */
static __global__ void __launch_bounds__(GCL_THREADS)
    gcl_gather(const __grid_constant__ gcl_batch b, int cand, bool plain, int to) {
  uint64_t w = (uint64_t)blockIdx.x * GCL_WARPS + threadIdx.x / 32;
  for (; w < (uint64_t)b.nchunks * 4; w += (uint64_t)gridDim.x * GCL_WARPS) {
    const uint32_t flags = b.flags[w];
    uint32_t at, i;
    if (!flags) continue;
    const gcl_share s = gcl_share_of(b, (uint32_t)(w / 4), (uint32_t)w % 4, cand, plain);
    at = b.at[w / 4];
    for (i = 0; i < w % 4; i++) at += __popc(b.flags[w / 4 * 4 + i]);
    if (flags >> gc_lane() & 1) b.cand[to][s.base + at + gc_rank(flags)] = s.cand[s.e];
  }
}

/* ---- scores, list by list ---- */

/* What scoring after each intersection needs (Ding et al. 2009, section 8.2: a term at a time). Lists are numbered as
 * terms are. */
typedef struct gcl_scores {
  const gc_view *view; /* host */
  const gc_term *terms;
  const struct gcl_job *jobs;
  uint32_t *sum[2]; /* a candidate's, beside gcl_batch.cand */
} gcl_scores;

/* A query of a batch. */
typedef struct gcl_job {
  gc_job job; /* only its norm and its terms */
  uint32_t slot, to; /* OR: its accumulators; where its hits go */
} gcl_job;

static __device__ __forceinline__ uint32_t gcl_contribution(const gc_view &v, const gc_term &t, uint32_t where,
    float norm) {
  return t.q * gc_contribution(t.weight, gc_freq(v, t, where), norm);
}

/* Adds what list `round` contributes to the marked candidates' scores, and in the first round the shortest list, in
 * which a candidate lies where it lies among all. One frequency and one division a list and candidate. */
static __global__ void __launch_bounds__(GCL_THREADS) gcl_add_scores(const __grid_constant__ gc_view v,
    const __grid_constant__ gcl_batch b, const __grid_constant__ gcl_scores to, uint32_t round, int cand) {
  uint64_t w = (uint64_t)blockIdx.x * GCL_WARPS + threadIdx.x / 32;
  for (; w < (uint64_t)b.nchunks * 4; w += (uint64_t)gridDim.x * GCL_WARPS) {
    const uint32_t flags = b.flags[w];
    if (!flags) continue;
    const gcl_share s = gcl_share_of(b, (uint32_t)(w / 4), (uint32_t)w % 4, cand, false);
    if (round >= s.k || !(flags >> gc_lane() & 1)) continue;
    uint32_t *sum = to.sum[cand] + s.base + s.e;
    const float norm = gc_norm(v, to.jobs[s.q].job, s.cand[s.e]);
    const uint32_t before = round > 1 ? *sum : gcl_contribution(v, to.terms[b.lists[s.first]], s.e, norm);
    *sum = before + gcl_contribution(v, to.terms[b.lists[s.first + round]], b.where[s.base + s.e], norm);
  }
}

/* Moves the marked candidates' scores together, as gcl_gather moves their docIDs. Queries of one list have none yet. */
static __global__ void __launch_bounds__(GCL_THREADS)
    gcl_gather_scores(const __grid_constant__ gcl_batch b, const uint32_t *from, uint32_t *to) {
  uint64_t w = (uint64_t)blockIdx.x * GCL_WARPS + threadIdx.x / 32;
  for (; w < (uint64_t)b.nchunks * 4; w += (uint64_t)gridDim.x * GCL_WARPS) {
    const uint32_t flags = b.flags[w];
    const gcl_query &query = b.queries[__ldg(b.chunk_query + w / 4)];
    uint32_t at = b.at[w / 4], i;
    if (query.k < 2) continue;
    for (i = 0; i < w % 4; i++) at += __popc(b.flags[w / 4 * 4 + i]);
    if (flags >> gc_lane() & 1) to[query.base + at + gc_rank(flags)] = from[w * 32 + gc_lane()];
  }
}

/* ========================
 * [lab-cuda-03-algorithm1]  Algorithm 1 of Ao et al. 2011: lists coded by lines, searched by element
 *
 * Start at  gcl_algorithm1, gcl_holds.
 * ======================*/

/* A segment that has been found. */
typedef struct gcl_segment {
  gpuir__line line;
  gpuir__para para;
  uint32_t base, count; /* base: the line's argument of value 0 */
} gcl_segment;

/* Returns value i of a segment. */
static __device__ __forceinline__ uint32_t gcl_element(const gcl_segment &g, uint32_t i) {
  return gpuir__para_value(&g.para, i) + gpuir__line_at(&g.line, g.base + i);
}

/* Narrows the range in which x may lie in a segment with a line of its own: deviations are not negative and have at
 * most b + hb bits, so the line is at most x and more than x less 2^(b + hb) there. That is the safe range, and
 * exact. */
static __device__ __forceinline__ void gcl_contract(const gcl_segment &g, uint32_t x, uint32_t *lo, uint32_t *hi) {
  const unsigned w = g.para.b + (g.para.en ? g.para.hb : 0);
  int64_t y, z;
  if (!g.line.slope || *hi - *lo < 8 || g.line.shift > 16) return;
  y = (int64_t)x - (int64_t)g.line.start;
  if (gpuir__para_value(&g.para, 0) + gpuir__line_at(&g.line, g.base) < g.line.start && !g.base)
    y += (int64_t)1 << 32; /* its start is negative */
  if (y < 0) {
    *hi = *lo;
    return;
  }
  z = y - (((int64_t)1 << w) - 1);
  y = (int64_t)(((uint64_t)(y + 1) << g.line.shift) - 1) / g.line.slope + 1;
  if (y < (int64_t)*hi) *hi = (uint32_t)y;
  if (z > 0) {
    z = (int64_t)((((uint64_t)z << g.line.shift) + g.line.slope - 1) / g.line.slope);
    *lo = z < (int64_t)*hi ? gpuir__max32(*lo, (uint32_t)z) : *hi;
  }
}

/* Returns whether a segment's values lo .. hi - 1 have x; own: the segment has a line of its own. */
static __device__ __forceinline__ bool gcl_in_segment(const gcl_segment &g, uint32_t x, uint32_t lo, uint32_t hi,
    bool own) {
  if (own) gcl_contract(g, x, &lo, &hi);
  while (lo < hi) {
    uint32_t mid = (lo + hi) / 2, y = gcl_element(g, mid);
    if (y == x) return true;
    if (y < x) lo = mid + 1;
    else hi = mid;
  }
  return false;
}

/* Finds the segment that has value i of the list; returns the value's index in the segment. */
template <int CODEC>
static __device__ __forceinline__ uint32_t gcl_locate(const gcl_list &l, uint32_t i, gcl_segment *g) {
  const gpuir__stream &s = l.s;
  if (CODEC == GPUIR__ID_HSLRC && s.offset) {
    gpuir__hslrc_list list;
    uint32_t h, first;
    (void)gpuir__hslrc_find(&s, &list);
    h = gpuir__hslrc_bucket(&list, s.offset[i / GPUIR__BLOCK], i);
    first = gpuir__hslrc_first(&list, h);
    g->count = gpuir__hslrc_first(&list, h + 1) - first;
    gpuir__hslrc_segment(&list, h, g->count, i - first, &g->line, &g->para);
    g->base = (i - first) & ~(GPUIR__PARA_MOST - 1);
    g->count = min(g->count - g->base, GPUIR__PARA_MOST);
    return i - first - g->base;
  } else {
    const int kind = CODEC == GPUIR__ID_LRC ? GPUIR__LRC : CODEC == GPUIR__ID_LRCSEG ? GPUIR__LRCSEG : GPUIR__SEGLRC;
    uint64_t at = s.offset ? gpuir__min64(s.offset[i / GPUIR__BLOCK], s.len) : 0;
    gpuir__lrc_list list;
    uint32_t start;
    (void)gpuir__lrc_find(&s, kind, &list);
    start = (i & ~(GPUIR__BLOCK - 1)) & ~(list.size - 1); /* of the segment that the block begins in */
    for (;;) {
      g->count = min(list.size, s.n - start);
      at = gpuir__lrc_segment(&s, kind, &list, at, start, g->count, &g->line, &g->base, &g->para);
      if (i - start < g->count) return i - start;
      start += g->count;
    }
  }
}

/* Returns whether a list holds x, by hash segmentation: the bucket is known from x. */
static __device__ __forceinline__ bool gcl_hashed_holds(const gpuir__stream &s, uint32_t x) {
  gpuir__hslrc_list list;
  gcl_segment g;
  uint32_t h, first, count, lo, hi, k;
  (void)gpuir__hslrc_find(&s, &list);
  h = gpuir__hs_bucket(x, list.shift);
  if (h >= list.buckets) return false;
  first = gpuir__hslrc_first(&list, h);
  count = gpuir__hslrc_first(&list, h + 1) - first;
  if (!count) return false;
  lo = 0;
  hi = (count - 1) / GPUIR__PARA_MOST + 1;
  while (hi - lo > 1) { /* the last segment that does not begin behind x */
    k = (lo + hi) / 2;
    gpuir__hslrc_segment(&list, h, count, k * GPUIR__PARA_MOST, &g.line, &g.para);
    g.base = k * GPUIR__PARA_MOST;
    if (gcl_element(g, 0) <= x) lo = k;
    else hi = k;
  }
  gpuir__hslrc_segment(&list, h, count, lo * GPUIR__PARA_MOST, &g.line, &g.para);
  g.base = lo * GPUIR__PARA_MOST;
  return gcl_in_segment(g, x, 0, min(count - g.base, GPUIR__PARA_MOST), !g.base);
}

/* Returns whether elements lo .. hi - 1 of a list have x, each of which a step finds its segment for. */
template <int CODEC>
static __device__ __forceinline__ bool gcl_has_element(const gcl_list &l, uint32_t x, uint32_t lo, uint32_t hi) {
  while (lo < hi) {
    const uint32_t mid = lo + (hi - lo) / 2;
    gcl_segment g;
    const uint32_t at = gcl_locate<CODEC>(l, mid, &g), y = gcl_element(g, at);
    if (y == x) return true;
    if (y < x) lo = mid + 1;
    else hi = mid;
  }
  return false;
}

/* Returns whether a list holds x. Without hash segmentation: the safe range of the list's line, a search for the block
 * in it (H: by the auxiliary list of that name, else by element throughout), and in the block's segment by element. */
template <int CODEC, bool H>
static __device__ __forceinline__ bool gcl_holds(const gcl_list &l, uint32_t x) {
  const gpuir__stream &s = l.s;
  gcl_segment g;
  uint32_t lo, hi, block, at;
  if (CODEC == GPUIR__ID_HSLRC && s.offset) return gcl_hashed_holds(s, x);
  gpuir__lr_range((const gpuir__lr *)l.lines, x, s.n, &lo, &hi);
  if (!H) return gcl_has_element<CODEC>(l, x, lo, hi);
  if (lo >= hi) return false;
  block = lo / GPUIR__BLOCK;
  if (s.last) {
    block = gpuir__lower_bound(s.last, block, (hi - 1) / GPUIR__BLOCK + 1, x);
    if (block >= l.nblocks) return false;
  }
  lo = gpuir__max32(lo, block * GPUIR__BLOCK);
  hi = min(hi, block * GPUIR__BLOCK + gpuir__block_count(s.n, block));
  while (lo < hi) { /* once, unless segments are shorter than a block */
    uint32_t end;
    at = gcl_locate<CODEC>(l, lo, &g);
    end = min(g.count, at + hi - lo);
    if (end - at == hi - lo || gcl_element(g, end - 1) >= x)
      return gcl_in_segment(g, x, at, end, CODEC == GPUIR__ID_SEGLRC);
    lo += end - at;
  }
  return false;
}

/* Intersects by Algorithm 1: a thread recovers a docID of the shortest list alone, and looks for it in the other
 * lists as they are coded. Counted for 128 candidates: lrc 3,510 instructions, hslrc 5,480. */
template <int CODEC, bool H>
static __global__ void __launch_bounds__(GCL_THREADS) gcl_algorithm1(const __grid_constant__ gcl_batch b) {
  uint64_t w = (uint64_t)blockIdx.x * GCL_WARPS + threadIdx.x / 32;
  for (; w < (uint64_t)b.nchunks * 4; w += (uint64_t)gridDim.x * GCL_WARPS) {
    const gcl_share s = gcl_share_of(b, (uint32_t)(w / 4), (uint32_t)w % 4, 0, false);
    bool found = s.e < s.m;
    uint32_t x = 0, i, vote;
    if (found) {
      gcl_segment g;
      uint32_t at = gcl_locate<CODEC>(b.all[b.lists[s.first]], s.e, &g);
      x = gcl_element(g, at);
      b.cand[0][s.base + s.e] = x;
    }
    for (i = 1; i < s.k && found; i++) found = gcl_holds<CODEC, H>(b.all[b.lists[s.first + i]], x);
    vote = __ballot_sync(GC_WARP, found);
    if (!gc_lane()) b.flags[w] = vote;
  }
}

typedef void (*gcl_chunk_kernel)(gcl_batch);

/* NULL: it does not search such lists. h: with H(t). */
static gcl_chunk_kernel gcl_algorithm1_of(unsigned codec, bool h) {
  switch (codec) {
  case GPUIR__ID_LRC: return h ? gcl_algorithm1<GPUIR__ID_LRC, true> : gcl_algorithm1<GPUIR__ID_LRC, false>;
  case GPUIR__ID_LRCSEG: return h ? gcl_algorithm1<GPUIR__ID_LRCSEG, true> : gcl_algorithm1<GPUIR__ID_LRCSEG, false>;
  case GPUIR__ID_SEGLRC: return h ? gcl_algorithm1<GPUIR__ID_SEGLRC, true> : gcl_algorithm1<GPUIR__ID_SEGLRC, false>;
  case GPUIR__ID_HSLRC: return h ? gcl_algorithm1<GPUIR__ID_HSLRC, true> : NULL; /* buckets need no H(t) */
  default: return NULL;
  }
}

static bool gcl_is_algorithm1(int how) { return how == GCL_ALGORITHM1 || how == GCL_ALGORITHM1_PLAIN; }

/* ========================
 * [lab-cuda-04-rank]  the k greatest of a query's keys, a block of threads a query
 *
 * Start at  gcl_tree, gcl_selection, gcl_radix_sort.
 * ======================*/

#define GCL_TOPK_THREADS 512u
#define GCL_GROUP 512u /* keys a node of the tree (Ding et al. 2009, 8.2) */
#define GCL_SLOTS 1024u /* buckets of a round of bucket selection */

enum { GCL_TREE, GCL_BUCKET, GCL_RADIX_SELECT, GCL_RADIX_SORT, GCL_PARTIAL_SORT, GCL_RANKINGS };

static const char *const gcl_rankings[GCL_RANKINGS] = {"tree", "bucket-select", "radix-select", "radix-sort",
    "partial-sort"};

typedef struct gcl_topk {
  const unsigned long long *keys;
  const uint32_t *start; /* of each query, and one more unless `count` says how many there are */
  const uint32_t *count;
  unsigned long long *spare, *out; /* spare: as many as keys; out: k a query */
  uint32_t nq, k, size; /* size: k rounded up to a power of two */
} gcl_topk;

static __device__ __forceinline__ unsigned long long gcl_max(unsigned long long a, unsigned long long b) {
  return a > b ? a : b;
}

/* Returns the greatest over a block of threads, in all of them. 10 shuffles, 2 barriers. */
static __device__ unsigned long long gcl_block_max(unsigned long long x) {
  __shared__ unsigned long long part[GCL_TOPK_THREADS / 32];
  uint32_t i;
#pragma unroll
  for (i = 16; i; i /= 2) x = gcl_max(x, __shfl_xor_sync(GC_WARP, x, i));
  if (!gc_lane()) part[threadIdx.x / 32] = x;
  __syncthreads();
  x = part[gc_lane() & (GCL_TOPK_THREADS / 32 - 1)];
#pragma unroll
  for (i = GCL_TOPK_THREADS / 64; i; i /= 2) x = gcl_max(x, __shfl_xor_sync(GC_WARP, x, i));
  __syncthreads();
  return x;
}

/* ---- the tree ---- */

/* A level of the tree: the greatest key of each group of GCL_GROUP of the level below. Level 0: the keys. */
typedef struct gcl_level {
  const unsigned long long *keys;
  uint32_t n;
} gcl_level;

/* Makes a level of the one below: group `first` and every step-th behind it by this warp. */
static __device__ __forceinline__ void gcl_make_level(const gcl_level &below, unsigned long long *to, uint32_t n,
    uint32_t first, uint32_t step) {
  uint32_t i, j;
  for (i = first; i < n; i += step) {
    const uint32_t end = min(below.n, (i + 1) * GCL_GROUP);
    unsigned long long x = 0;
    for (j = i * GCL_GROUP + gc_lane(); j < end; j += 32) x = gcl_max(x, below.keys[j]);
#pragma unroll
    for (j = 16; j; j /= 2) x = gcl_max(x, __shfl_xor_sync(GC_WARP, x, j));
    if (!gc_lane()) to[i] = x;
  }
}

/* Returns the greatest key of a group of a level that is at most `most`, in all threads. */
static __device__ __forceinline__ unsigned long long gcl_group_max(const gcl_level &level, uint32_t group,
    unsigned long long most) {
  const uint32_t j = group * GCL_GROUP + threadIdx.x;
  return gcl_block_max(j < level.n && level.keys[j] <= most ? level.keys[j] : 0);
}

/* Where a query's tree lies, and how large its levels are. */
typedef struct gcl_shape {
  uint32_t from, n, n1, n2; /* its keys; nodes of the two levels above */
  bool two; /* there is the second one: n1 + n2 <= n + 1, or there is none */
} gcl_shape;

static __device__ __forceinline__ gcl_shape gcl_shape_of(const gcl_topk &t, uint32_t q) {
  gcl_shape s;
  s.from = t.start[q];
  s.n = t.count ? t.count[q] : t.start[q + 1] - s.from;
  s.n1 = (s.n + GCL_GROUP - 1) / GCL_GROUP;
  s.n2 = (s.n1 + GCL_GROUP - 1) / GCL_GROUP;
  s.two = s.n1 > GCL_GROUP;
  return s;
}

/* Makes a level of the trees of few queries by the whole device, as the paper does: blockIdx.y is the query. */
static __global__ void __launch_bounds__(GCL_TOPK_THREADS) gcl_tree_level(const gcl_topk t, unsigned level) {
  const gcl_shape s = gcl_shape_of(t, blockIdx.y);
  const uint32_t first = blockIdx.x * (GCL_TOPK_THREADS / 32) + threadIdx.x / 32;
  unsigned long long *one = t.spare + s.from;
  if (level == 1) gcl_make_level(gcl_level{t.keys + s.from, s.n}, one, s.n1, first, gridDim.x * GCL_TOPK_THREADS / 32);
  else if (s.two) gcl_make_level(gcl_level{one, s.n1}, one + s.n1, s.n2, first, gridDim.x * GCL_TOPK_THREADS / 32);
}

/* Ranks by the tree of groups of 512 (Ding et al. 2009, section 8.2): each has its greatest key; the greatest of all
 * is taken, and the groups that it came from get their next one. 8 bytes a key are read once; each of the k steps is
 * 2 to 4 maxima over 512 keys. Keys need no mark of having been taken: those are taken that are not below the last
 * one. Counted, the best 100 of 20,000: 8.0 bytes a key, 1,940 instructions for 128. BUILT: gcl_tree_level has made
 * the levels. */
template <bool BUILT>
static __global__ void __launch_bounds__(GCL_TOPK_THREADS) gcl_tree(const gcl_topk t) {
  __shared__ uint32_t owner;
  uint32_t q, i, j;
  for (q = blockIdx.x; q < t.nq; q += gridDim.x) {
    const gcl_shape s = gcl_shape_of(t, q);
    const uint32_t k = min(t.k, s.n), n1 = s.n1;
    const bool two = s.two;
    unsigned long long *one_keys = t.spare + s.from, *two_keys = one_keys + n1, own = 0;
    const gcl_level keys = {t.keys + s.from, s.n}, one = {one_keys, n1}, top = two ? gcl_level{two_keys, s.n2} : one;
    if (!BUILT) {
      gcl_make_level(keys, one_keys, n1, threadIdx.x / 32, GCL_TOPK_THREADS / 32);
      __syncthreads();
      if (two) gcl_make_level(one, two_keys, s.n2, threadIdx.x / 32, GCL_TOPK_THREADS / 32);
      __syncthreads();
    }
    for (i = threadIdx.x; i < top.n; i += GCL_TOPK_THREADS) own = gcl_max(own, top.keys[i]); /* a thread's share */
    for (i = 0; i < k; i++) {
      const unsigned long long best = gcl_block_max(own);
      uint32_t group, leaf;
      unsigned long long x;
      if (own == best) {
        for (j = threadIdx.x; j < top.n && top.keys[j] != best; j += GCL_TOPK_THREADS) {}
        owner = j;
        t.out[(uint64_t)q * t.k + i] = best;
      }
      __syncthreads();
      leaf = group = owner;
      __syncthreads();
      if (two) { /* which of the group's leaves has it */
        j = group * GCL_GROUP + threadIdx.x;
        if (j < n1 && one.keys[j] == best) owner = j;
        __syncthreads();
        leaf = owner;
      }
      x = gcl_group_max(keys, leaf, best - 1);
      if (!threadIdx.x) one_keys[leaf] = x;
      __syncthreads();
      if (two) {
        x = gcl_group_max(one, group, ~0ull);
        if (!threadIdx.x) two_keys[group] = x;
        __syncthreads();
      }
      if (own == best)
        for (own = 0, j = threadIdx.x; j < top.n; j += GCL_TOPK_THREADS) own = gcl_max(own, top.keys[j]);
      __syncthreads();
    }
  }
}

/* ---- selections ---- */

typedef struct gcl_keys {
  const unsigned long long *keys;
  __device__ unsigned long long operator()(uint32_t i) const { return keys[i]; }
} gcl_keys;

/* Returns a key that exactly k of n keys are not below, by buckets of equal width over what is left of their range,
 * each a power of two wide (bucket selection, Griffin 3.1.3). 8 bytes a key for each round; a round leaves a 512th or
 * less of the range. */
static __device__ unsigned long long gcl_bucket_select(const unsigned long long *keys, uint32_t n, uint32_t k,
    uint32_t *hist) {
  __shared__ gc_bin_found found;
  unsigned long long least = ~0ull, most = 0;
  uint32_t i, remain = k;
  for (i = threadIdx.x; i < n; i += blockDim.x) {
    least = keys[i] < least ? keys[i] : least;
    most = gcl_max(most, keys[i]);
  }
  most = gcl_block_max(most);
  least = ~gcl_block_max(~least);
  for (;;) {
    const unsigned long long span = most - least;
    const uint32_t shift = span >> 10 ? 54 - __clzll((long long)span) : 0; /* span >> shift < GCL_SLOTS */
    for (i = threadIdx.x; i < GCL_SLOTS; i += blockDim.x) hist[i] = 0;
    __syncthreads();
    for (i = threadIdx.x; i < n; i += blockDim.x)
      if (keys[i] >= least && keys[i] <= most) atomicAdd(&hist[(keys[i] - least) >> shift], 1);
    __syncthreads();
    if (threadIdx.x < 32) gc_find_bin<GCL_SLOTS>(hist, remain, &found);
    __syncthreads();
    least += (unsigned long long)found.bin << shift;
    if ((most - least) >> shift) most = least + ((1ull << shift) - 1);
    remain -= found.above;
    i = found.inside;
    __syncthreads();
    if (i == remain || !shift) return least;
  }
}

/* Ranks by selecting, and by sorting in shared memory the keys that were selected. Counted, the best 100 of 20,000:
 * 8.0 bytes a key, though it is read several times, and 370 to 400 instructions for 128. */
template <int HOW>
static __global__ void __launch_bounds__(GCL_TOPK_THREADS) gcl_selection(const gcl_topk t) {
  extern __shared__ unsigned long long gcl_best[];
  __shared__ uint32_t hist[GCL_SLOTS], taken;
  uint32_t q, i;
  for (q = blockIdx.x; q < t.nq; q += gridDim.x) {
    const uint32_t from = t.start[q], n = t.count ? t.count[q] : t.start[q + 1] - from, k = min(t.k, n);
    const unsigned long long *keys = t.keys + from;
    unsigned long long least = 0;
    if (!n) continue;
    if (k < n)
      least = HOW == GCL_BUCKET ? gcl_bucket_select(keys, n, k, hist) : gc_select(gcl_keys{keys}, n, k, k, hist);
    if (!threadIdx.x) taken = 0;
    for (i = threadIdx.x; i < t.size; i += blockDim.x) gcl_best[i] = 0;
    __syncthreads();
    for (i = threadIdx.x; i < n; i += blockDim.x)
      if (keys[i] >= least) {
        uint32_t at = atomicAdd(&taken, 1);
        if (at < t.size) gcl_best[at] = keys[i];
      }
    __syncthreads();
    gc_sort(gcl_best, t.size);
    for (i = threadIdx.x; i < k; i += blockDim.x) t.out[(uint64_t)q * t.k + i] = gcl_best[i];
    __syncthreads();
  }
}

/* Ranks by sorting all keys, 8 bits a pass from the lowest on, of which k are kept (radix sort, Griffin 3.1.3). 8
 * passes, each reading a key twice and writing it once: 192 bytes a key, of which 8.7 reach memory where the L2 cache
 * holds the keys. A tile of keys is ranked by matching digits within warps. Counted: 3,580 instructions for 128 keys.
 */
static __global__ void __launch_bounds__(GCL_TOPK_THREADS) gcl_radix_sort(const gcl_topk t, unsigned long long *copy) {
  __shared__ uint32_t base[256], counts[GCL_TOPK_THREADS / 32][256];
  uint32_t q, i, w;
  for (q = blockIdx.x; q < t.nq; q += gridDim.x) {
    const uint32_t from = t.start[q], n = t.count ? t.count[q] : t.start[q + 1] - from, k = min(t.k, n),
                   warp = threadIdx.x / 32;
    const unsigned long long *in = t.keys + from;
    unsigned long long *side[2] = {t.spare + from, copy + from};
    uint32_t pass;
    for (pass = 0; pass < 8; pass++) {
      unsigned long long *to = side[pass & 1];
      for (i = threadIdx.x; i < 256; i += blockDim.x) base[i] = 0;
      __syncthreads();
      for (i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(&base[255 - (in[i] >> (8 * pass) & 255)], 1);
      __syncthreads();
      if (threadIdx.x < 32) (void)gc_scan_counts(base); /* to how many keys go before each digit */
      __syncthreads(); /* also where there is no key, before the next pass clears */
      for (i = 0; i < n; i += blockDim.x) {
        const uint32_t at = i + threadIdx.x, digit = at < n ? 255 - (uint32_t)(in[at] >> (8 * pass) & 255) : 256;
        uint32_t same = __match_any_sync(GC_WARP, digit), rank = gc_rank(same);
        for (w = gc_lane(); w < 256; w += 32) counts[warp][w] = 0;
        __syncwarp();
        if (digit < 256 && !rank) counts[warp][digit] = __popc(same);
        __syncthreads();
        if (threadIdx.x < 256) {
          uint32_t sum = base[threadIdx.x];
          for (w = 0; w < GCL_TOPK_THREADS / 32; w++) {
            uint32_t here = counts[w][threadIdx.x];
            counts[w][threadIdx.x] = sum;
            sum += here;
          }
          base[threadIdx.x] = sum;
        }
        __syncthreads();
        if (digit < 256) to[counts[warp][digit] + rank] = in[at];
        __syncthreads();
      }
      in = to;
    }
    for (i = threadIdx.x; i < k; i += blockDim.x) t.out[(uint64_t)q * t.k + i] = in[i];
    __syncthreads();
  }
}

/* ========================
 * [lab-cuda-05-thesis]  qs as in chapter 5 of Li's thesis, a list at a time: the baselines of gc_qs
 *
 * "naive": the upper bits as one number each, a prefix sum over all of them, a gather. "steps": bits are counted
 * in words of 32, the prefix sum is over these counts, and each thread gathers from one word. Both add the lower
 * bits in a last step. (Here ones end numbers; in the thesis zeros do.) THREADS of a block, which the thesis varies.
 *
 * Start at  gcl_qs_count, then in the order of their launch, to gcl_qs_combine.
 * ======================*/

#define GCL_TILE 2048u /* numbers of a prefix sum that a block of threads takes */

typedef struct gcl_qs_work {
  const gcl_list *list;
  uint32_t *in, *out, *sums, *upper, *docs;
  bool words; /* a number of `in` is a word, not a bit */
} gcl_qs_work;

/* Returns how many numbers the prefix sum has. */
static __device__ __forceinline__ uint32_t gcl_qs_open(const gcl_qs_work &w, gpuir__halves *h) {
  (void)gpuir__halves_find(&w.list->s, GPUIR__QS_LOG, 0, h);
  return (uint32_t)(w.words ? (h->unary.bytes + 3) / 4 : h->unary.bytes * 8);
}

/* Returns 32 upper bits; those behind the end are 0. */
static __device__ __forceinline__ uint32_t gcl_qs_word(const gpuir__halves &h, uint32_t i) {
  const uint64_t left = h.unary.bytes - (uint64_t)i * 4;
  return gpuir__load32(h.unary.bits + (uint64_t)i * 4) & (left < 4 ? (1u << (8 * (uint32_t)left)) - 1 : ~0u);
}

/* Counts the bits that do not end a number: 1/8 byte read and 4 written a bit, or 4 and 4 a word. */
template <unsigned THREADS>
static __global__ void __launch_bounds__(THREADS) gcl_qs_count(const gcl_qs_work w) {
  gpuir__halves h;
  const uint32_t n = gcl_qs_open(w, &h);
  uint32_t i = blockIdx.x * THREADS + threadIdx.x;
  for (; i < n; i += gridDim.x * THREADS)
    w.in[i] = w.words ? 32 - __popc(gcl_qs_word(h, i)) : ~gcl_qs_word(h, i / 32) >> (i & 31) & 1;
}

/* Sums up each tile. */
template <unsigned THREADS>
static __global__ void __launch_bounds__(THREADS) gcl_qs_tiles(const gcl_qs_work w) {
  gpuir__halves h;
  const uint32_t n = gcl_qs_open(w, &h), tiles = (n + GCL_TILE - 1) / GCL_TILE;
  uint32_t t, i;
  for (t = blockIdx.x; t < tiles; t += gridDim.x) {
    uint32_t sum = 0, all;
    for (i = t * GCL_TILE + threadIdx.x; i < min(n, (t + 1) * GCL_TILE); i += THREADS) sum += w.in[i];
    (void)gc_block_scan<THREADS>(sum, &all);
    if (!threadIdx.x) w.sums[t] = all;
  }
}

/* Turns the tiles' sums into the sums of the tiles before them. */
template <unsigned THREADS>
static __global__ void __launch_bounds__(THREADS) gcl_qs_sums(const gcl_qs_work w) {
  gpuir__halves h;
  const uint32_t n = gcl_qs_open(w, &h), tiles = (n + GCL_TILE - 1) / GCL_TILE;
  uint32_t t, before = 0, all;
  for (t = 0; t < tiles; t += THREADS) {
    const uint32_t x = t + threadIdx.x < tiles ? w.sums[t + threadIdx.x] : 0;
    const uint32_t sum = gc_block_scan<THREADS>(x, &all);
    if (t + threadIdx.x < tiles) w.sums[t + threadIdx.x] = before + sum - x;
    before += all;
  }
}

/* Writes the sum of the numbers before each. */
template <unsigned THREADS>
static __global__ void __launch_bounds__(THREADS) gcl_qs_scan(const gcl_qs_work w) {
  gpuir__halves h;
  const uint32_t n = gcl_qs_open(w, &h), tiles = (n + GCL_TILE - 1) / GCL_TILE, each = GCL_TILE / THREADS;
  uint32_t t, i, all;
  for (t = blockIdx.x; t < tiles; t += gridDim.x) {
    const uint32_t first = t * GCL_TILE + threadIdx.x * each;
    uint32_t x[each], sum = 0;
    for (i = 0; i < each; i++) sum += x[i] = first + i < n ? w.in[first + i] : 0;
    sum = gc_block_scan<THREADS>(sum, &all) - sum + w.sums[t];
    for (i = 0; i < each; i++) {
      if (first + i < n) w.out[first + i] = sum;
      sum += x[i];
    }
  }
}

/* Gathers each docID's upper part. */
template <unsigned THREADS>
static __global__ void __launch_bounds__(THREADS) gcl_qs_gather(const gcl_qs_work w) {
  gpuir__halves h;
  const uint32_t n = gcl_qs_open(w, &h), most = w.list->s.n;
  uint32_t i = blockIdx.x * THREADS + threadIdx.x;
  for (; i < n; i += gridDim.x * THREADS) {
    uint32_t upper = w.out[i], at;
    if (!w.words) {
      at = i - upper;
      if (!w.in[i] && at < most) w.upper[at] = upper;
    } else {
      uint32_t bits = gcl_qs_word(h, i), k;
      at = 32 * i - upper;
      for (; bits; bits &= bits - 1, at++) {
        k = __ffs((int)bits) - 1;
        if (at < most) w.upper[at] = 32 * i + k - at;
      }
    }
  }
}

/* Joins upper and lower parts. */
template <unsigned THREADS>
static __global__ void __launch_bounds__(THREADS) gcl_qs_combine(const gcl_qs_work w) {
  gpuir__halves h;
  uint32_t i = blockIdx.x * THREADS + threadIdx.x;
  (void)gcl_qs_open(w, &h);
  for (; i < w.list->s.n; i += gridDim.x * THREADS)
    w.docs[i] = (w.upper[i] << h.b) + gpuir__packed_value(h.low, h.b, i);
}

/* ========================
 * [lab-cuda-06-lists]  host: lists laid out on the device
 *
 * A lab holds lists in one codec, and as they are. Everything that a run needs is allocated when the lab is opened.
 *
 * Start at  gcl_open.
 * ======================*/

#define GCL_PFL_FEW 64u /* arrays at most that are taken in tiles */
#define GCL_GROUPS 6u /* of arrays of exceptions: coded to depth 0 to 4; the lists themselves */

/* The clock of the steps of a search: events, and which step ended at each. */
#define GCL_MARKS 256u
typedef struct gcl_clock {
  cudaEvent_t event[GCL_MARKS];
  uint8_t step[GCL_MARKS]; /* GPUIR_CUDA_LAB_; of the first one nothing */
  unsigned n;
} gcl_clock;

/* The arrays of exceptions of a pfd-list's lab. */
typedef struct gcl_nodes {
  gcl_node *node[GCL_GROUPS]; /* device */
  uint32_t *start[GCL_GROUPS]; /* of each list of all: the arrays before, and one more */
  uint32_t tiles[GCL_GROUPS]; /* of the largest array */
  uint32_t *sums; /* device: of GCL_PFL_FEW arrays' tiles */
} gcl_nodes;

/* A runner: a stream, memory, and lists on the device. A lab has one, and a searcher, whose lists are those of a
 * batch of queries. */
typedef struct gcl_runner {
  gpuir_allocator a;
  int device, processors;
  cudaStream_t stream;
  void *memory[96];
  unsigned nmemory;
  unsigned codec; /* GPUIR__ID_ */
  size_t nlists, all; /* lists in one copy; in all copies */
  uint32_t *n; /* of each list of one copy: its values */
  const gcl_list *lists; /* device */
  const gcl_nodes *nodes; /* NULL: the codec is not pfd-list */
  uint64_t room; /* docIDs or candidates of a run */
  uint32_t *out; /* device: `room` docIDs */
  size_t queries, terms; /* of a run at most */
  uint32_t rounds; /* at most */
  gcl_batch batch;
  uint8_t *plan, *plan_device; /* of a run, pinned; its copy */
  size_t plan_size;
  gcl_clock *clock; /* NULL: no steps are told apart */
  const struct gcl_scores *scores; /* NULL: nothing is scored while lists are intersected */
} gcl_runner;

struct gpuir_cuda_lab {
  gcl_runner r;
  gcl_nodes nodes;
  uint32_t *start; /* of each list of all: the blocks before, and one more */
  uint64_t *bytes; /* coded, of each list of one copy */
  void *host; /* these arrays */
  size_t host_size;
  cudaEvent_t before, after; /* a run */
  uint8_t *aux; /* where the next piece of the slab of auxiliary structures goes */
  uint64_t aux_left;
  gcl_where where; /* device */
  unsigned long long *sums; /* device: gcl_verify's */
  uint8_t *slab; /* device: the coded lists */
  int coded; /* as gpuir_cuda_lab_desc.coded */
  uint8_t *image; /* their bytes, pinned; NULL: rounds do not send them */
  uint64_t *image_at; /* where each list begins there, and the end */
  uint8_t *marks; /* device: of each block of a round's list, whether it is sent; NULL: rounds send whole lists */
  void *cold; /* device: written over before each timed run; NULL: it is not */
  size_t cold_size;
  struct gcl_steps *steps; /* of batches and rounds; NULL until the first one */
  struct gcl_guards *guards; /* of multiprocessors that runs may not have; NULL until the first ones */
  int all_processors;
};

/* Ends a step here, as far as the clock has room. */
static void gcl_mark(gcl_runner *r, unsigned step) {
  gcl_clock *c = r->clock;
  if (!c || c->n == GCL_MARKS) return;
  c->step[c->n] = (uint8_t)step;
  (void)cudaEventRecord(c->event[c->n++], r->stream);
}

static int gcl_device_alloc(gcl_runner *r, uint64_t n, void **p, gpuir_error *err) {
  if (r->nmemory == sizeof r->memory / sizeof r->memory[0])
    return gpuir__fail(err, GPUIR_E_BACKEND, 0, "CUDA: too many pieces of memory");
  GC_TRY(cudaMalloc(p, n ? n : 1), "allocating device memory");
  r->memory[r->nmemory++] = *p;
  return GPUIR_OK;
}

static int gcl_device_copy(gcl_runner *r, const void *from, uint64_t n, void **p, gpuir_error *err) {
  int status = gcl_device_alloc(r, n, p, err);
  if (status) return status;
  GC_TRY(cudaMemcpy(*p, from, n, cudaMemcpyHostToDevice), "uploading lists");
  return GPUIR_OK;
}

/* Makes room in a buffer, at a multiple of 16; returns where it begins, or SIZE_MAX without memory. */
static size_t gcl_room(const gpuir_allocator *a, gpuir__buf *buf, size_t n) {
  size_t at = (buf->len + 15) & ~(size_t)15;
  if (!gpuir__buf_room(a, buf, at - buf->len + n + 1)) return SIZE_MAX;
  memset(buf->data + buf->len, 0, at - buf->len + n);
  buf->len = at + n;
  return at;
}

/* One copy of the lists before it is on the device: an image of the bytes, and tables whose addresses are places in
 * it. */
typedef struct gcl_image {
  gpuir__buf bytes, lists, nodes[GCL_GROUPS];
  uint64_t scratch; /* numbers of exceptions */
} gcl_image;

static inline const uint8_t *gcl_place(size_t at) { return (const uint8_t *)(uintptr_t)at; }

/* Plans an array of exceptions, and first those that it has itself; *size: its bytes. */
static int gcl_plan_array(const gpuir_allocator *a, gcl_image *m, size_t at, uint64_t avail, uint32_t n, unsigned depth,
    gcl_node *node, uint64_t *size) {
  gpuir__pfl_level level;
  uint64_t memory;
  memset(node, 0, sizeof *node);
  node->slots = gcl_place(at);
  node->n = n;
  node->bits = 32;
  node->depth = depth;
  node->out = (uint32_t *)(uintptr_t)(m->scratch * 4);
  m->scratch += n;
  *size = gpuir__pfl_size(m->bytes.data + at, avail, n, depth, &memory, depth ? &level : NULL);
  if (*size == GPUIR__PFL_BAD) return GPUIR_E_FORMAT;
  if (depth) {
    node->slots = gcl_place((size_t)(level.slots - m->bytes.data));
    node->bits = level.b;
    node->number = level.number;
    if (level.number) {
      size_t rest = (size_t)(level.rest - m->bytes.data);
      gcl_node child;
      uint64_t used;
      int status = gcl_plan_array(a, m, rest, avail - (rest - at), level.number, depth - 1, &child, &used);
      if (status) return status;
      node->overflows = child.out;
      status = gcl_plan_array(a, m, rest + used, avail - (rest + used - at), level.number, depth - 1, &child, &used);
      if (status) return status;
      node->gaps = child.out;
    }
  }
  return gpuir__buf_put(a, &m->nodes[depth], node, sizeof *node);
}

/* Plans the exceptions of a pfd-list. */
static int gcl_plan_exceptions(const gpuir_allocator *a, gcl_image *m, const gpuir__stream *s, gcl_list *l) {
  gpuir__pfl_level top;
  unsigned depth;
  uint64_t memory, used;
  gcl_node root, child;
  int status = gpuir__pfl_find(s, &top, &depth, &memory);
  if (status) return status;
  l->slots = gcl_place((size_t)(top.slots - m->bytes.data));
  l->bits = top.b;
  l->number = top.number;
  if (!top.number) return GPUIR_OK;
  memset(&root, 0, sizeof root);
  root.number = top.number;
  root.n = s->n;
  {
    size_t rest = (size_t)(top.rest - m->bytes.data);
    uint64_t avail = (uint64_t)(s->bytes + s->len - top.rest);
    status = gcl_plan_array(a, m, rest, avail, top.number, depth - 1, &child, &used);
    if (status) return status;
    l->overflows = root.overflows = child.out;
    status = gcl_plan_array(a, m, rest + used, avail - used, top.number, depth - 1, &child, &used);
    if (status) return status;
    l->positions = root.gaps = child.out;
  }
  return gpuir__buf_put(a, &m->nodes[GCL_GROUPS - 1], &root, sizeof root);
}

/* What a list is made to on the host, by any thread, before it is laid out. */
#define GCL_PREPARES 7u
typedef struct gcl_made {
  gpuir__buf bytes; /* coded, and the padding behind it */
  size_t len; /* without that */
  uint32_t *offset; /* the directory; NULL for a list of one block */
  uint8_t *width;
  size_t size; /* of the memory of these two */
  gpuir__prepared prepared[GCL_PREPARES];
  int status;
} gcl_made;

static void gcl_made_free(const gpuir_allocator *a, gcl_made *m) {
  unsigned i;
  gpuir__buf_free(a, &m->bytes);
  gpuir__free(a, m->offset, m->size);
  for (i = 0; i < GCL_PREPARES; i++) gpuir__prepared_free(a, &m->prepared[i]);
  memset(m, 0, sizeof *m);
}

/* Copies a directory into the image, and makes the list refer to it. */
static void gcl_add_directory(gcl_image *m, const gcl_made *made, size_t place, const uint32_t *docs, gcl_list *l) {
  const uint32_t blocks = l->nblocks, n = l->s.n;
  uint8_t *to = m->bytes.data + place;
  uint32_t k;
  memcpy(to, made->offset, (size_t)blocks * 4);
  for (k = 0; k < blocks; k++)
    gpuir__store32(to + (size_t)(blocks + k) * 4, docs[gpuir__min64((uint64_t)k * GPUIR__BLOCK + GPUIR__BLOCK, n) - 1]);
  memcpy(to + (size_t)blocks * 8, made->width, blocks);
  l->s.offset = (const uint32_t *)(uintptr_t)place;
  l->s.last = l->s.offset + blocks;
  l->s.width = gcl_place(place + (size_t)blocks * 8);
}

/* Lays a list out in the image; *stream: what the CPU would decode it from. */
static int gcl_lay_out(const gpuir_allocator *a, gcl_image *m, gpuir__coding coding, const gcl_made *made, uint32_t n,
    gpuir__stream *stream) {
  const size_t at = gcl_room(a, &m->bytes, made->bytes.len);
  if (at == SIZE_MAX) return GPUIR_E_NOMEM;
  memcpy(m->bytes.data + at, made->bytes.data, made->bytes.len);
  memset(stream, 0, sizeof *stream);
  stream->codec = coding.codec;
  stream->bytes = m->bytes.data + at;
  stream->len = made->len;
  stream->n = n;
  stream->limit = UINT32_MAX;
  stream->offset = made->offset;
  stream->width = made->width;
  return GPUIR_OK;
}

/* Adds list i to the image. */
static int gcl_add_list(gpuir_cuda_lab *lab, gcl_image *m, gpuir__coding coding, const uint32_t *docs, uint32_t n,
    const gcl_made *made, size_t i, uint64_t docs_at) {
  const gpuir_allocator *a = &lab->r.a;
  const uint32_t blocks = (n + GPUIR__BLOCK - 1) / GPUIR__BLOCK;
  const size_t place = made->offset ? gcl_room(a, &m->bytes, (size_t)blocks * 9) : 0;
  gpuir__stream s;
  gcl_list l;
  int status = place == SIZE_MAX ? GPUIR_E_NOMEM : gcl_lay_out(a, m, coding, made, n, &s);
  if (status) return status;
  memset(&l, 0, sizeof l);
  l.s = s;
  l.s.codec = NULL;
  l.s.offset = NULL;
  l.s.width = NULL;
  l.s.bytes = gcl_place((size_t)(s.bytes - m->bytes.data));
  l.nblocks = blocks;
  if (made->offset) gcl_add_directory(m, made, place, docs, &l);
  l.docs = (const uint32_t *)(uintptr_t)(docs_at * 4);
  lab->r.n[i] = n;
  lab->bytes[i] = s.len + (made->offset ? (uint64_t)blocks * 9 : 0);
  if (lab->r.codec == GPUIR__ID_PFL) status = gcl_plan_exceptions(a, m, &s, &l);
  return status ? status : gpuir__buf_put(a, &m->lists, &l, sizeof l);
}

static void gcl_image_free(const gpuir_allocator *a, gcl_image *m) {
  unsigned i;
  gpuir__buf_free(a, &m->bytes);
  gpuir__buf_free(a, &m->lists);
  for (i = 0; i < GCL_GROUPS; i++) gpuir__buf_free(a, &m->nodes[i]);
}

/* Uploads a piece of an auxiliary structure, into one slab that grows by chunks. */
static int gcl_aux(gpuir_cuda_lab *lab, const void *from, uint64_t n, void **p, gpuir_error *err) {
  if (n > lab->aux_left) {
    const uint64_t size = gpuir__max64(n + 64, (uint64_t)64 << 20);
    void *slab;
    int status = gcl_device_alloc(&lab->r, size, &slab, err);
    if (status) return status;
    lab->aux = (uint8_t *)slab;
    lab->aux_left = size;
  }
  *p = lab->aux;
  GC_TRY(cudaMemcpy(*p, from, n, cudaMemcpyHostToDevice), "uploading lists");
  n = gpuir__min64((n + 15) & ~(uint64_t)15, lab->aux_left);
  lab->aux += n;
  lab->aux_left -= n;
  return GPUIR_OK;
}

#define GCL_MOVE(p, type, base) ((p) = (type)((uint64_t)(uintptr_t)(p) + (uint64_t)(uintptr_t)(base)))

/* Where the copies lie on the device. */
typedef struct gcl_copies {
  uint8_t *slab; /* images */
  uint32_t *scratch; /* exceptions */
  uint64_t step; /* bytes from image to image */
  uint32_t n;
} gcl_copies;

/* Uploads the table of all copies' lists, with addresses. */
static int gcl_upload_lists(gpuir_cuda_lab *lab, const gcl_image *m, const gcl_copies *to, const uint32_t *docs,
    gpuir_error *err) {
  gpuir__buf lists = {NULL, 0, 0};
  void *p;
  uint32_t c;
  size_t i;
  int status = GPUIR_OK;
  for (c = 0; c < to->n && !status; c++)
    for (i = 0; i < lab->r.nlists && !status; i++) {
      gcl_list l;
      memcpy(&l, m->lists.data + i * sizeof l, sizeof l);
      GCL_MOVE(l.s.bytes, const uint8_t *, to->slab + to->step * c);
      if (lab->r.n[i] >= GPUIR__BLOCK) {
        GCL_MOVE(l.s.offset, const uint32_t *, to->slab + to->step * c);
        GCL_MOVE(l.s.last, const uint32_t *, to->slab + to->step * c);
        GCL_MOVE(l.s.width, const uint8_t *, to->slab + to->step * c);
      }
      GCL_MOVE(l.docs, const uint32_t *, docs);
      GCL_MOVE(l.slots, const uint8_t *, to->slab + to->step * c);
      GCL_MOVE(l.overflows, const uint32_t *, to->scratch + m->scratch * c);
      GCL_MOVE(l.positions, const uint32_t *, to->scratch + m->scratch * c);
      status = gpuir__buf_put(&lab->r.a, &lists, &l, sizeof l);
    }
  if (!status) status = gcl_device_copy(&lab->r, lists.data, lists.len, &p, err);
  if (!status) lab->r.lists = (const gcl_list *)p;
  gpuir__buf_free(&lab->r.a, &lists);
  return status;
}

/* Uploads a group of arrays of exceptions of all copies, with addresses. */
static int gcl_upload_nodes(gpuir_cuda_lab *lab, const gcl_image *m, unsigned g, const gcl_copies *to,
    gpuir_error *err) {
  const size_t n = m->nodes[g].len / sizeof(gcl_node), nlists = lab->r.nlists;
  gpuir__buf nodes = {NULL, 0, 0};
  uint32_t most = 1, c;
  void *p = NULL;
  size_t i;
  int status = GPUIR_OK;
  for (c = 0; c < to->n && !status; c++)
    for (i = 0; i < n && !status; i++) {
      gcl_node node;
      memcpy(&node, m->nodes[g].data + i * sizeof node, sizeof node);
      most = gpuir__max32(most, g == GCL_GROUPS - 1 ? node.number : node.n);
      GCL_MOVE(node.slots, const uint8_t *, to->slab + to->step * c);
      if (g != GCL_GROUPS - 1) GCL_MOVE(node.out, uint32_t *, to->scratch + m->scratch * c);
      GCL_MOVE(node.overflows, const uint32_t *, to->scratch + m->scratch * c);
      GCL_MOVE(node.gaps, uint32_t *, to->scratch + m->scratch * c);
      status = gpuir__buf_put(&lab->r.a, &nodes, &node, sizeof node);
    }
  if (!status) status = gcl_device_copy(&lab->r, nodes.data, nodes.len, &p, err);
  lab->nodes.node[g] = (gcl_node *)p;
  lab->nodes.tiles[g] = (most - 1) / GCL_PFL_TILE + 1;
  for (c = 0; c < to->n && lab->r.codec == GPUIR__ID_PFL; c++) /* each copy has as many */
    for (i = 0; i < nlists; i++)
      lab->nodes.start[g][(c + 1) * nlists + i] = lab->nodes.start[g][c * nlists + i] + (uint32_t)n;
  gpuir__buf_free(&lab->r.a, &nodes);
  return status;
}

/* Lays out the copies: bytes, and tables with addresses. */
static int gcl_upload(gpuir_cuda_lab *lab, const gcl_image *m, uint32_t copies, const uint32_t *docs,
    gpuir_error *err) {
  gcl_copies to = {NULL, NULL, (m->bytes.len + 255) & ~(uint64_t)255, copies};
  uint32_t c, tiles = 1;
  void *p;
  unsigned g;
  int status = gcl_device_alloc(&lab->r, to.step * copies + GC_PAD, (void **)&to.slab, err);
  if (!status) status = gcl_device_alloc(&lab->r, m->scratch * copies * 4, (void **)&to.scratch, err);
  if (status) return status;
  lab->slab = to.slab;
  GC_TRY(cudaMemset(to.slab, 0, to.step * copies + GC_PAD), "uploading lists");
  GC_TRY(cudaMemcpy(to.slab, m->bytes.data, m->bytes.len, cudaMemcpyHostToDevice), "uploading lists");
  for (c = 1; c < copies; c++)
    GC_TRY(cudaMemcpy(to.slab + to.step * c, to.slab, m->bytes.len, cudaMemcpyDeviceToDevice), "copying lists");
  status = gcl_upload_lists(lab, m, &to, docs, err);
  for (g = 0; g < GCL_GROUPS && !status; g++) {
    status = gcl_upload_nodes(lab, m, g, &to, err);
    tiles = gpuir__max32(tiles, lab->nodes.tiles[g]);
  }
  if (!status) status = gcl_device_alloc(&lab->r, (uint64_t)tiles * GCL_PFL_FEW * 4, &p, err);
  if (!status) lab->nodes.sums = (uint32_t *)p;
  return status;
}

/* Keeps the lists' bytes in pinned memory of the host, from which rounds send them. */
static int gcl_keep(gpuir_cuda_lab *lab, const gcl_image *m, gpuir_error *err) {
  const size_t n = lab->r.nlists;
  size_t i;
  uint32_t blocks = 1;
  int status;
  GC_TRY(cudaMallocHost((void **)&lab->image, m->bytes.len + 16), "allocating pinned memory");
  memcpy(lab->image, m->bytes.data, m->bytes.len);
  memset(lab->image + m->bytes.len, 0, 16); /* blocks are fetched in pieces of 16 bytes */
  GC_TRY(cudaMemset(lab->slab, 0, m->bytes.len), "clearing memory"); /* what a round does not send is not there */
  lab->image_at = (uint64_t *)gpuir__alloc(&lab->r.a, (n + 1) * sizeof *lab->image_at);
  if (!lab->image_at) return gpuir__fail_nomem(err);
  for (i = 0; i < n; i++) {
    gcl_list l;
    memcpy(&l, m->lists.data + i * sizeof l, sizeof l);
    lab->image_at[i] = (uint64_t)(lab->r.n[i] < GPUIR__BLOCK ? (uintptr_t)l.s.bytes : (uintptr_t)l.s.offset);
  }
  lab->image_at[n] = m->bytes.len;
  if (lab->r.codec != GPUIR__ID_EF) return GPUIR_OK; /* blocks of many others do not stand alone */
  for (i = 0; i < n; i++) blocks = gpuir__max32(blocks, (lab->r.n[i] + GPUIR__BLOCK - 1) / GPUIR__BLOCK);
  status = gcl_device_alloc(&lab->r, blocks, (void **)&lab->marks, err);
  return status;
}

/* Makes the memory by which timed runs begin with a cold cache. */
static int gcl_chill(gpuir_cuda_lab *lab, gpuir_error *err) {
  int size = 0;
  GC_TRY(cudaDeviceGetAttribute(&size, cudaDevAttrL2CacheSize, lab->r.device), "looking at the device");
  lab->cold_size = 2 * (size_t)size;
  return gcl_device_alloc(&lab->r, lab->cold_size, &lab->cold, err);
}

/* What searching a list needs beside its codec, as [55-methods] of gpuir.h prepares it: tables of buckets, and lines of
 * segments and of the list. A lab of coded lists has the last one alone, if its codec's lists are searched by lines. */
static const char *const gcl_prepares[GCL_PREPARES] = {"hs16", "hs32", "hs64", "hs128", "hs256", "lr-local",
    "lr-global"};

static unsigned gcl_first_prepared(const gpuir_cuda_lab *lab, const gpuir_cuda_lab_desc *desc) {
  if (!desc->queries) return GCL_PREPARES;
  if (!desc->coded) return 0;
  return gcl_algorithm1_of(lab->r.codec, true) ? GCL_PREPARES - 1 : GCL_PREPARES;
}

/* Uploads what was prepared of a list, for all copies in common. The local lines come first, the global one before them
 * in memory. */
static int gcl_add_prepared(gpuir_cuda_lab *lab, gcl_list *l, const gcl_made *made, unsigned first, gpuir_error *err) {
  gpuir__buf lines = {NULL, 0, 0};
  unsigned i;
  void *p = NULL;
  int status = gpuir__buf_put(&lab->r.a, &lines, made->prepared[GCL_LOCAL + 1].lines, sizeof(gpuir__lr));
  for (i = first; i <= GCL_LOCAL && !status; i++) {
    const gpuir__prepared *m = &made->prepared[i];
    l->shift[i] = m->shift;
    l->buckets[i] = m->buckets;
    if (i == GCL_LOCAL) {
      status = gpuir__buf_put(&lab->r.a, &lines, m->lines, m->buckets * sizeof *m->lines);
    } else {
      status = gcl_aux(lab, m->first, ((uint64_t)m->buckets + 1) * 4, &p, err);
      l->first[i] = (const uint32_t *)p;
    }
  }
  if (!status) status = gcl_aux(lab, lines.data, lines.len, &p, err);
  if (!status) l->lines = p;
  gpuir__buf_free(&lab->r.a, &lines);
  return status;
}

/* Lists that threads make, each the next one that none has taken. */
typedef struct gcl_making {
  const gpuir_cuda_lab *lab;
  const gpuir_cuda_lab_desc *desc;
  gpuir__coding coding;
  gcl_made *made; /* of list `from` and on */
  size_t from, to, next; /* next: taken atomically */
  unsigned first; /* of gcl_prepares */
} gcl_making;

/* Codes a list, and prepares what is needed beside it. */
static int gcl_make_list(const gcl_making *w, size_t i, gcl_made *made) {
  const gpuir_allocator *a = &w->lab->r.a;
  const uint32_t *docs = w->desc->lists[i], n = w->desc->lengths[i], blocks = (n + GPUIR__BLOCK - 1) / GPUIR__BLOCK;
  uint32_t k;
  unsigned p;
  int status;
  for (k = 1; k < n; k++)
    if (docs[k] <= docs[k - 1]) return GPUIR_E_ARGUMENT;
  if (n >= GPUIR__BLOCK) {
    made->size = (size_t)blocks * 5;
    made->offset = (uint32_t *)gpuir__alloc(a, made->size);
    if (!made->offset) return GPUIR_E_NOMEM;
    made->width = (uint8_t *)(made->offset + blocks);
  }
  const gpuir__target to = {a, &made->bytes, made->offset, made->width, w->coding.param};
  status = w->coding.codec->encode(w->coding.codec, docs, n, &to);
  made->len = made->bytes.len;
  if (!status && gcl_room(a, &made->bytes, GPUIR__STREAM_PAD) == SIZE_MAX) status = GPUIR_E_NOMEM;
  for (p = w->first; p < GCL_PREPARES && !status; p++) {
    gpuir__operand o;
    gpuir__operand_init(&o, NULL, gpuir__lookup_choose(GPUIR_SIMD_SCALAR));
    o.docs = docs;
    o.n = n;
    status = gpuir__operand_prepare(a, gpuir__method_by_name(gcl_prepares[p]), &o, &made->prepared[p]);
  }
  return status;
}

static void *gcl_make_lists(void *arg) {
  gcl_making *w = (gcl_making *)arg;
  for (;;) {
    const size_t i = __atomic_fetch_add(&w->next, 1, __ATOMIC_RELAXED);
    if (i >= w->to) return NULL;
    w->made[i - w->from].status = gcl_make_list(w, i, &w->made[i - w->from]);
  }
}

#define GCL_MAKERS 64u

/* Makes lists from .. to - 1 by all processors. */
static void gcl_make_all(gcl_making *w) {
  pthread_t thread[GCL_MAKERS];
  const size_t want = gpuir__min64(gpuir__min64(GCL_MAKERS, gpuir__processors()), w->to - w->from);
  size_t n = 0;
  w->next = w->from;
  while (n + 1 < want && !pthread_create(&thread[n], NULL, gcl_make_lists, w)) n++;
  (void)gcl_make_lists(w);
  while (n) (void)pthread_join(thread[--n], NULL);
}

/* Makes room for a run of so many queries, of so many lists together (0: 8 each). */
static int gcl_open_batch(gcl_runner *r, size_t queries, uint32_t terms, gpuir_error *err) {
  gcl_batch *b = &r->batch;
  const uint64_t room = r->room + GPUIR__BLOCK * (uint64_t)queries, chunks = room / GPUIR__BLOCK;
  void *p;
  unsigned i;
  int status = GPUIR_OK;
  r->queries = queries;
  r->terms = terms ? terms : 8 * queries;
  if (r->queries >> 24 || r->terms >> 28 || room >> 36)
    return gpuir__fail(err, GPUIR_E_LIMIT, 0, "a run of so many queries");
  r->rounds = (uint32_t)gpuir__min64(GPUIR_MAX_TERMS, r->terms) - 1;
  r->plan_size =
      r->queries * sizeof(gcl_query) + r->terms * 4 + 64 + 2 * (size_t)r->rounds * (r->queries + 1) * 4 + 256;
  GC_TRY(cudaMallocHost((void **)&r->plan, r->plan_size), "allocating pinned memory");
  status = gcl_device_alloc(r, r->plan_size, &p, err);
  r->plan_device = (uint8_t *)p;
  for (i = 0; i < 2 && !status; i++) {
    status = gcl_device_alloc(r, room * 4, &p, err);
    b->cand[i] = (uint32_t *)p;
    if (!status) status = gcl_device_alloc(r, room * 4, &p, err);
    b->pos[i] = (uint32_t *)p;
  }
  if (!status) status = gcl_device_alloc(r, chunks * 16, &p, err);
  b->flags = (uint32_t *)p;
  if (!status) status = gcl_device_alloc(r, chunks * 4, &p, err);
  b->at = (uint32_t *)p;
  if (!status) status = gcl_device_alloc(r, chunks * 4, &p, err);
  b->chunk_query = (const uint32_t *)p;
  if (!status) status = gcl_device_alloc(r, r->queries * 4, &p, err);
  b->count = (uint32_t *)p;
  b->all = r->lists;
  b->expanded = r->out;
  return status;
}

/* Starts a runner on a device: its stream and properties. */
static int gcl_start(gcl_runner *r, int device, gpuir_error *err) {
  cudaDeviceProp prop;
  GC_TRY(cudaSetDevice(device), "choosing the device");
  GC_TRY(cudaGetDeviceProperties(&prop, device), "looking at the device");
  r->device = device;
  r->processors = prop.multiProcessorCount;
  GC_TRY(cudaStreamCreateWithFlags(&r->stream, cudaStreamNonBlocking), "creating a stream");
  return GPUIR_OK;
}

/* Adds list i, which was made, to the image, and copies it as it is to docs. */
static int gcl_add_made(gpuir_cuda_lab *lab, const gcl_making *w, size_t i, gcl_image *m, uint32_t *docs, uint64_t at,
    gpuir_error *err) {
  const gcl_made *made = &w->made[i - w->from];
  const uint32_t *list = w->desc->lists[i], n = w->desc->lengths[i];
  unsigned g;
  int status = made->status;
  for (g = 0; g < GCL_GROUPS; g++)
    if (lab->r.codec == GPUIR__ID_PFL) lab->nodes.start[g][i] = (uint32_t)(m->nodes[g].len / sizeof(gcl_node));
  if (!status) status = gcl_add_list(lab, m, w->coding, list, n, made, i, at);
  if (status)
    return gpuir__fail(err, status, 0, "list %llu: %s", (unsigned long long)i,
        status == GPUIR_E_ARGUMENT ? "docIDs must increase" : gpuir_strerror(status));
  GC_TRY(cudaMemcpy(docs + at, list, n * (size_t)4, cudaMemcpyHostToDevice), "uploading lists");
  if (w->first < GCL_PREPARES) {
    gcl_list l;
    memcpy(&l, m->lists.data + i * sizeof l, sizeof l);
    status = gcl_add_prepared(lab, &l, made, w->first, err);
    memcpy(m->lists.data + i * sizeof l, &l, sizeof l);
  }
  return status;
}

#define GCL_WINDOW ((uint64_t)1 << 27) /* docIDs of lists that are made at once */

/* Adds the lists to the image, and copies them as they are to docs. */
static int gcl_add_lists(gpuir_cuda_lab *lab, const gpuir_cuda_lab_desc *desc, gpuir__coding coding, gcl_image *m,
    uint32_t *docs, gpuir_error *err) {
  const gpuir_allocator *a = &lab->r.a;
  gcl_making w = {lab, desc, coding, NULL, 0, 0, 0, gcl_first_prepared(lab, desc)};
  uint64_t at = 0, values;
  size_t i, size = desc->nlists * sizeof *w.made;
  int status = GPUIR_OK;
  w.made = (gcl_made *)gpuir__alloc_zero(a, size);
  if (!w.made) return gpuir__fail_nomem(err);
  for (; w.from < desc->nlists && !status; w.from = w.to) {
    for (values = 0; w.to < desc->nlists && values < GCL_WINDOW;) values += desc->lengths[w.to++];
    gcl_make_all(&w);
    for (i = w.from; i < w.to; i++) {
      if (!status) status = gcl_add_made(lab, &w, i, m, docs, at, err);
      gcl_made_free(a, &w.made[i - w.from]);
      at += (desc->lengths[i] + (uint64_t)GPUIR__BLOCK - 1) / GPUIR__BLOCK * GPUIR__BLOCK;
    }
  }
  gpuir__free(a, w.made, size);
  return status;
}

/* Uploads which list each block belongs to. */
static int gcl_upload_where(gpuir_cuda_lab *lab, gpuir_error *err) {
  gcl_runner *r = &lab->r;
  const uint32_t hints = (lab->start[r->all] >> GCL_HINT) + 1;
  uint32_t *hint, k, list = 0;
  void *p;
  int status = gcl_device_copy(r, lab->start, (r->all + 1) * 4, &p, err);
  if (status) return status;
  lab->where.start = (const uint32_t *)p;
  hint = (uint32_t *)gpuir__alloc(&r->a, (size_t)hints * 4);
  if (!hint) return gpuir__fail_nomem(err);
  for (k = 0; k < hints; k++) {
    while (list + 1 < r->all && lab->start[list + 1] <= k << GCL_HINT) list++;
    hint[k] = list;
  }
  status = gcl_device_copy(r, hint, (uint64_t)hints * 4, &p, err);
  gpuir__free(&r->a, hint, (size_t)hints * 4);
  lab->where.hint = (const uint32_t *)p;
  return status;
}

/* Chooses the codec; pfd, newpfd and optpfd have one block format. */
static int gcl_choose_codec(gcl_runner *r, const char *spec, gpuir__coding *coding, gpuir_error *err) {
  int status = gpuir__coding_parse(spec, 1, coding, err);
  if (status) return status;
  if (!coding->codec) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "codec '%.40s': one codec is wanted", spec);
  r->codec = coding->codec->id;
  if (r->codec == GPUIR__ID_PFD || r->codec == GPUIR__ID_NEWPFD) r->codec = GPUIR__ID_OPTPFD;
  return GPUIR_OK;
}

/* Fills a lab whose host arrays are there. */
static int gcl_open(gpuir_cuda_lab *lab, const gpuir_cuda_lab_desc *desc, gcl_image *m, gpuir_error *err) {
  const uint32_t copies = desc->copies ? desc->copies : 1;
  gcl_runner *r = &lab->r;
  gpuir__coding coding;
  uint64_t blocks = 0;
  uint32_t *docs;
  size_t i;
  int status = gcl_choose_codec(r, desc->codec, &coding, err);
  if (!status) status = gcl_start(r, desc->device, err);
  if (status) return status;
  if (r->codec == GPUIR__ID_PFL) r->nodes = &lab->nodes;
  lab->coded = desc->coded;
  GC_TRY(cudaEventCreate(&lab->before), "creating an event");
  GC_TRY(cudaEventCreate(&lab->after), "creating an event");
  for (i = 0; i < desc->nlists; i++) {
    if (!desc->lengths[i] || !desc->lists[i])
      return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "list %llu is empty", (unsigned long long)i);
    blocks += (desc->lengths[i] + (uint64_t)GPUIR__BLOCK - 1) / GPUIR__BLOCK;
  }
  if (desc->sent && copies > 1) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "lists that are sent are laid out once");
  if (blocks * copies >> 31 || desc->nlists * (uint64_t)copies >> 24)
    return gpuir__fail(err, GPUIR_E_LIMIT, 0, "too many lists");
  r->room = desc->room ? (desc->room + GPUIR__BLOCK - 1) / GPUIR__BLOCK * GPUIR__BLOCK : blocks * copies * GPUIR__BLOCK;
  status = gcl_device_alloc(r, blocks * GPUIR__BLOCK * 4, (void **)&docs, err);
  if (status) return status;
  GC_TRY(cudaMemset(docs, 0, blocks * GPUIR__BLOCK * 4), "uploading lists"); /* the last blocks' rests */
  status = gcl_add_lists(lab, desc, coding, m, docs, err);
  for (i = 0; i < r->all && !status; i++)
    lab->start[i + 1] = lab->start[i] + (r->n[i % r->nlists] + GPUIR__BLOCK - 1) / GPUIR__BLOCK;
  if (!status) status = gcl_upload(lab, m, copies, docs, err);
  if (!status && desc->sent) status = gcl_keep(lab, m, err);
  if (!status && desc->cold) status = gcl_chill(lab, err);
  if (!status) status = gcl_upload_where(lab, err);
  if (!status) status = gcl_device_alloc(r, r->room * 4, (void **)&r->out, err);
  if (!status) status = gcl_device_alloc(r, 64, (void **)&lab->sums, err);
  if (!status && desc->queries) status = gcl_open_batch(r, desc->queries, desc->terms, err);
  return status;
}

/* ========================
 * [lab-cuda-07-runs]  host: runs of decoding, of queries, of ranking; and their time
 *
 * Start at  gcl_launch_decode, gcl_launch_thesis; gcl_plan_run, gcl_launch_run; gcl_launch_topk; gcl_time.
 * ======================*/

/* ---- decoding ---- */

typedef void (*gcl_decoder)(const gcl_list *, gcl_where, uint32_t, uint32_t, uint32_t, uint32_t *);

template <bool SUM>
static gcl_decoder gcl_decoder_of(unsigned codec) {
  switch (codec) {
  case GPUIR__ID_VBYTE: return gcl_decode<GPUIR__ID_VBYTE, SUM>;
  case GPUIR__ID_BP128: return gcl_decode_bp128<SUM>;
  case GPUIR__ID_OPTPFD: return gcl_decode<GPUIR__ID_OPTPFD, SUM>;
  case GPUIR__ID_EF: return gcl_decode<GPUIR__ID_EF, true>;
  case GPUIR__ID_QS: return gcl_decode<GPUIR__ID_QS, true>;
  case GPUIR__ID_RICE: return gcl_decode<GPUIR__ID_RICE, SUM>;
  case GPUIR__ID_PFL: return gcl_decode<GPUIR__ID_PFL, SUM>;
  case GPUIR__ID_PARA: return gcl_decode<GPUIR__ID_PARA, SUM>;
  case GPUIR__ID_LRC: return gcl_decode<GPUIR__ID_LRC, true>;
  case GPUIR__ID_LRCSEG: return gcl_decode<GPUIR__ID_LRCSEG, true>;
  case GPUIR__ID_SEGLRC: return gcl_decode<GPUIR__ID_SEGLRC, true>;
  case GPUIR__ID_HSLRC: return gcl_decode<GPUIR__ID_HSLRC, true>;
  default: return NULL;
  }
}

/* Launches what decodes the arrays of exceptions of lists lo .. hi - 1, the innermost first. */
static void gcl_launch_nodes(const gcl_runner *r, size_t lo, size_t hi) {
  const gcl_nodes *nodes = r->nodes;
  unsigned g;
  for (g = 0; nodes && g < GCL_GROUPS; g++) {
    const uint32_t from = nodes->start[g][lo], n = nodes->start[g][hi] - from;
    if (n && (n > GCL_PFL_FEW || nodes->tiles[g] == 1)) {
      gcl_pfl_node<<<n, GCL_PFL_THREADS, 0, r->stream>>>(nodes->node[g] + from);
    } else if (n) {
      const dim3 grid(nodes->tiles[g], n);
      gcl_pfl_tiles<<<grid, GCL_PFL_THREADS, 0, r->stream>>>(nodes->node[g] + from, nodes->sums);
      gcl_pfl_exceptions<<<grid, GCL_PFL_THREADS, 0, r->stream>>>(nodes->node[g] + from, nodes->sums);
    }
  }
}

/* Decodes lists lo .. hi - 1 to `out`. */
static int gcl_launch_decode(gpuir_cuda_lab *lab, size_t lo, size_t hi, int sum, uint32_t *out, gpuir_error *err) {
  gcl_decoder kernel = sum ? gcl_decoder_of<true>(lab->r.codec) : gcl_decoder_of<false>(lab->r.codec);
  const uint32_t from = lab->start[lo], to = lab->start[hi];
  uint32_t grid, chunk;
  int each = 0;
  GC_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, GCL_THREADS, 0), "sizing a launch");
  grid = (uint32_t)(lab->r.processors * (each ? each : 1));
  chunk = gpuir__max32(1, gpuir__min32(GCL_CHUNK, (to - from) / (grid * GCL_WARPS)));
  grid = gpuir__min32(grid * 4, ((to - from + chunk - 1) / chunk + GCL_WARPS - 1) / GCL_WARPS);
  gcl_launch_nodes(&lab->r, lo, hi);
  kernel<<<grid, GCL_THREADS, 0, lab->r.stream>>>(lab->r.lists, lab->where, from, to, chunk, out);
  GC_TRY(cudaGetLastError(), "decoding");
  return GPUIR_OK;
}

template <unsigned THREADS>
static void gcl_launch_steps(cudaStream_t stream, unsigned processors, const gcl_qs_work &w, unsigned stop) {
  const unsigned grid = processors * (2048 / THREADS);
  gcl_qs_count<THREADS><<<grid, THREADS, 0, stream>>>(w);
  if (stop > 1) {
    gcl_qs_tiles<THREADS><<<grid, THREADS, 0, stream>>>(w);
    gcl_qs_sums<THREADS><<<1, THREADS, 0, stream>>>(w);
    gcl_qs_scan<THREADS><<<grid, THREADS, 0, stream>>>(w);
  }
  if (stop > 2) gcl_qs_gather<THREADS><<<grid, THREADS, 0, stream>>>(w);
  if (stop > 3) gcl_qs_combine<THREADS><<<grid, THREADS, 0, stream>>>(w);
}

/* The ways of the thesis: over bits, and over words by blocks of 256, 512 and 1024 threads. */
static const struct {
  const char *name;
  bool words;
  void (*launch)(cudaStream_t, unsigned, const gcl_qs_work &, unsigned);
} gcl_thesis[] = {{"naive", false, gcl_launch_steps<256>}, {"steps", true, gcl_launch_steps<256>},
    {"steps-512", true, gcl_launch_steps<512>}, {"steps-1024", true, gcl_launch_steps<1024>}};
#define GCL_THESIS (sizeof gcl_thesis / sizeof *gcl_thesis)

/* Decodes qs by the thesis' kernels. `stop`: steps after which to leave off, for measuring them: 1 counts, 2 sums too,
 * 3 gathers too. */
static int gcl_launch_thesis(gpuir_cuda_lab *lab, size_t lo, size_t hi, size_t way, unsigned stop, gpuir_error *err) {
  gcl_qs_work w;
  size_t i;
  w.in = lab->r.batch.cand[0];
  w.out = lab->r.batch.cand[1];
  w.sums = lab->r.batch.pos[0];
  w.upper = lab->r.batch.pos[1];
  w.words = gcl_thesis[way].words;
  for (i = lo; i < hi; i++) {
    w.list = lab->r.lists + i;
    w.docs = lab->r.out + (size_t)(lab->start[i] - lab->start[lo]) * GPUIR__BLOCK;
    gcl_thesis[way].launch(lab->r.stream, (unsigned)lab->r.processors, w, stop);
  }
  GC_TRY(cudaGetLastError(), "decoding");
  return GPUIR_OK;
}

static int gcl_compare_ms(const void *a, const void *b) {
  const float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

#define GCL_REPEAT 64u

/* Runs `work` `repeat` times and takes the median of the times. */
template <typename Work>
static int gcl_time(gpuir_cuda_lab *lab, unsigned repeat, double *ms, const Work &work, gpuir_error *err) {
  float times[GCL_REPEAT];
  unsigned i;
  repeat = repeat < 1 ? 1 : repeat > GCL_REPEAT ? GCL_REPEAT : repeat;
  for (i = 0; i < repeat; i++) {
    int status;
    if (lab->cold) GC_TRY(cudaMemsetAsync(lab->cold, (int)i, lab->cold_size, lab->r.stream), "clearing the cache");
    GC_TRY(cudaEventRecord(lab->before, lab->r.stream), "timing");
    status = work();
    if (status) return status;
    GC_TRY(cudaEventRecord(lab->after, lab->r.stream), "timing");
    GC_TRY(cudaStreamSynchronize(lab->r.stream), "running kernels");
    GC_TRY(cudaEventElapsedTime(&times[i], lab->before, lab->after), "timing");
  }
  qsort(times, repeat, sizeof *times, gcl_compare_ms);
  *ms = (double)times[repeat / 2];
  return GPUIR_OK;
}

/* ---- runs of many queries ---- */

typedef void (*gcl_block_kernel)(gcl_batch, uint32_t, int, unsigned, int, bool);
typedef void (*gcl_expand_kernel)(gcl_batch, uint32_t, const uint32_t *);
typedef void (*gcl_para_kernel)(gcl_batch, bool);

#define GCL_EACH_CODEC(of) \
  switch (codec) { \
  case GPUIR__ID_VBYTE: return of(GPUIR__ID_VBYTE); \
  case GPUIR__ID_BP128: return of(GPUIR__ID_BP128); \
  case GPUIR__ID_OPTPFD: return of(GPUIR__ID_OPTPFD); \
  case GPUIR__ID_EF: return of(GPUIR__ID_EF); \
  case GPUIR__ID_QS: return of(GPUIR__ID_QS); \
  case GPUIR__ID_RICE: return of(GPUIR__ID_RICE); \
  case GPUIR__ID_PFL: return of(GPUIR__ID_PFL); \
  case GPUIR__ID_PARA: return of(GPUIR__ID_PARA); \
  case GPUIR__ID_LRC: return of(GPUIR__ID_LRC); \
  case GPUIR__ID_LRCSEG: return of(GPUIR__ID_LRCSEG); \
  case GPUIR__ID_SEGLRC: return of(GPUIR__ID_SEGLRC); \
  case GPUIR__ID_HSLRC: return of(GPUIR__ID_HSLRC); \
  default: return of(GC_PLAIN); \
  }

static gcl_block_kernel gcl_block_search_of(unsigned codec) {
#define GCL_OF(c) gcl_block_search<c>
  GCL_EACH_CODEC(GCL_OF)
#undef GCL_OF
}

static gcl_chunk_kernel gcl_seed_of(unsigned codec) {
#define GCL_OF(c) gcl_seed<c>
  GCL_EACH_CODEC(GCL_OF)
#undef GCL_OF
}

static gcl_expand_kernel gcl_expand_of(unsigned codec) {
#define GCL_OF(c) gcl_expand<c>
  GCL_EACH_CODEC(GCL_OF)
#undef GCL_OF
}

static gcl_para_kernel gcl_para_of(int how) {
  switch (how) {
  case GCL_INTERPOLATION: return gcl_para_search<GCL_INTERPOLATION>;
  case GCL_LR_GLOBAL: return gcl_para_search<GCL_LR_GLOBAL>;
  case GCL_LR_LOCAL: return gcl_para_search<GCL_LR_LOCAL>;
  case GCL_HS: return gcl_para_search<GCL_HS>;
  case GCL_HS + 1: return gcl_para_search<GCL_HS + 1>;
  case GCL_HS + 2: return gcl_para_search<GCL_HS + 2>;
  case GCL_HS + 3: return gcl_para_search<GCL_HS + 3>;
  case GCL_HS + 4: return gcl_para_search<GCL_HS + 4>;
  default: return gcl_para_search<GCL_BINARY>;
  }
}

/* How a run goes, on the host. */
typedef struct gcl_run {
  int how; /* method */
  unsigned levels, rounds;
  int coded;
  const uint32_t *parts, *starts; /* device; of each round: nq + 1 */
  size_t plan; /* bytes */
  int side; /* which of batch.cand has the results */
  cudaEvent_t sent; /* recorded when the queries are on the device; NULL: nothing is */
} gcl_run;

static uint32_t gcl_grid(const gcl_runner *r, uint64_t items, uint32_t each) {
  return (uint32_t)gpuir__max64(1, gpuir__min64((items + each - 1) / each, (uint64_t)r->processors * 64));
}

/* Sorts a query's lists by length, into `sorted`, and gives it a place for its candidates. */
static int gcl_plan_one(const gcl_runner *r, const uint32_t *lists, size_t k, uint32_t *sorted, uint64_t *chunks,
    gcl_query *query, gpuir_error *err) {
  size_t i;
  if (!k || k > r->rounds + 1) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "a query of no lists, or too many");
  for (i = 0; i < k; i++) {
    const uint32_t list = lists[i];
    size_t j = i;
    if (list >= r->all) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "there is no such list");
    for (; j && r->n[sorted[j - 1] % r->nlists] > r->n[list % r->nlists]; j--) sorted[j] = sorted[j - 1];
    sorted[j] = list;
  }
  query->k = (uint32_t)k;
  query->m = r->n[sorted[0] % r->nlists];
  query->chunk = (uint32_t)*chunks;
  query->base = *chunks * GPUIR__BLOCK;
  *chunks += (query->m + (uint64_t)GPUIR__BLOCK - 1) / GPUIR__BLOCK;
  return GPUIR_OK;
}

/* Finds where each query's partitions and blocks of a round begin. */
static int gcl_plan_round(const gcl_runner *r, const gcl_run *run, const gcl_query *queries, size_t nq,
    const uint32_t *sorted, size_t round, uint32_t *parts, uint32_t *starts, gpuir_error *err) {
  const bool merges = run->how == GCL_MERGEPATH || run->how == GCL_GRIFFIN;
  uint64_t part = 0, block = 0;
  size_t q;
  for (q = 0; q < nq; q++) {
    parts[q] = (uint32_t)part;
    starts[q] = (uint32_t)block;
    if (round + 1 < queries[q].k) {
      uint32_t n = r->n[sorted[queries[q].first + round + 1] % r->nlists];
      part += ((uint64_t)queries[q].m + n + GCL_PART - 1) / GCL_PART;
      block += ((uint64_t)n + GPUIR__BLOCK - 1) / GPUIR__BLOCK;
    }
  }
  parts[nq] = (uint32_t)part;
  starts[nq] = (uint32_t)block;
  if (part >> 32 || block >> 32 || (run->coded && merges && block * GPUIR__BLOCK > r->room))
    return gpuir__fail(err, GPUIR_E_LIMIT, 0, "the lists of a round do not fit into the lab's room");
  return GPUIR_OK;
}

/* Plans the queries: lists by length, places, partitions and blocks of every round. */
static int gcl_plan_run(gcl_runner *r, const uint32_t *lists, const uint32_t *start, size_t nq, gcl_run *run,
    gpuir_error *err) {
  gcl_batch *b = &r->batch;
  gcl_query *queries = (gcl_query *)(void *)r->plan;
  uint32_t *sorted = (uint32_t *)(void *)(queries + nq), *parts, *starts;
  uint64_t chunks = 0;
  size_t q, k, most = 1, terms = start[nq];
  int status = GPUIR_OK;
  if (nq > r->queries || terms > r->terms)
    return gpuir__fail(err, GPUIR_E_LIMIT, 0, "more queries or lists than the lab was opened for");
  for (q = 0; q < nq && !status; q++) {
    k = start[q + 1] - start[q];
    if (k > most) most = k;
    queries[q].first = start[q];
    status = gcl_plan_one(r, lists + start[q], k, sorted + start[q], &chunks, &queries[q], err);
  }
  if (status) return status;
  if (chunks * GPUIR__BLOCK > r->room + GPUIR__BLOCK * (uint64_t)r->queries)
    return gpuir__fail(err, GPUIR_E_LIMIT, 0, "more candidates than the lab has room for");
  run->rounds = (unsigned)most - 1;
  parts = sorted + terms;
  starts = parts + run->rounds * (nq + 1);
  for (k = 0; k < run->rounds && !status; k++)
    status = gcl_plan_round(r, run, queries, nq, sorted, k, parts + k * (nq + 1), starts + k * (nq + 1), err);
  if (status) return status;
  run->plan = (size_t)((uint8_t *)(starts + run->rounds * (nq + 1)) - r->plan);
  b->queries = (const gcl_query *)(const void *)r->plan_device;
  b->lists = (const uint32_t *)(r->plan_device + ((uint8_t *)sorted - r->plan));
  run->parts = (const uint32_t *)(r->plan_device + ((uint8_t *)parts - r->plan));
  run->starts = (const uint32_t *)(r->plan_device + ((uint8_t *)starts - r->plan));
  b->nq = (uint32_t)nq;
  b->nchunks = (uint32_t)chunks;
  return GPUIR_OK;
}

/* Moves the marked candidates from one side to the other, and their scores, if there are any. */
static void gcl_launch_gather(gcl_runner *r, int cand, bool plain, int to) {
  const gcl_batch *b = &r->batch;
  const uint32_t warps = gcl_grid(r, (uint64_t)b->nchunks * 4, GCL_WARPS);
  gcl_offsets<<<gcl_grid(r, b->nq, 1), GCL_THREADS, 0, r->stream>>>(*b);
  gcl_gather<<<warps, GCL_THREADS, 0, r->stream>>>(*b, cand, plain, to);
  if (r->scores) gcl_gather_scores<<<warps, GCL_THREADS, 0, r->stream>>>(*b, r->scores->sum[cand], r->scores->sum[to]);
}

/* Intersects the candidates with the lists of a round. */
static int gcl_launch_round(gcl_runner *r, const gcl_run *run, uint32_t round, int cand, bool plain) {
  const gcl_batch *b = &r->batch;
  const unsigned codec = run->coded ? r->codec : GC_PLAIN;
  const uint32_t warps = gcl_grid(r, (uint64_t)b->nchunks * 4, GCL_WARPS), chunks = gcl_grid(r, b->nchunks, GCL_WARPS);
  const bool pmf = run->how >= GCL_PMF && run->how < GCL_MERGEPATH;
  const size_t row = (size_t)(round - 1) * (b->nq + 1);
  unsigned level;
  if (pmf) {
    for (level = 1; level <= run->levels; level++)
      gcl_pmf_level<<<warps, GCL_THREADS, 0, r->stream>>>(*b, round, level, run->levels, cand, plain, run->coded != 0,
          (int)level & 1);
    if (!run->coded) {
      gcl_pmf_find<<<warps, GCL_THREADS, 0, r->stream>>>(*b, round, run->levels, cand, plain);
      return GPUIR_OK;
    }
  }
  if (run->how == GCL_MERGEPATH || run->how == GCL_GRIFFIN) {
    gcl_clear<<<gcl_grid(r, (uint64_t)b->nchunks * 4, GCL_THREADS), GCL_THREADS, 0, r->stream>>>(*b, round);
    if (run->coded)
      gcl_expand_of(codec)<<<(uint32_t)r->processors * 16, GCL_THREADS, 0, r->stream>>>(*b, round, run->starts + row);
    gcl_mark(r, GPUIR_CUDA_LAB_DECODE);
    gcl_mergepath<<<(uint32_t)r->processors * 16, GCL_PART_THREADS, 0, r->stream>>>(*b, round, cand, plain,
        run->parts + row, run->coded ? run->starts + row : NULL);
  }
  if (run->how != GCL_MERGEPATH)
    gcl_block_search_of(codec)<<<chunks, GCL_THREADS, 0, r->stream>>>(*b, round,
        pmf                           ? (int)GCL_PMF
            : run->how == GCL_GRIFFIN ? (int)GCL_GRIFFIN
                                      : (int)GCL_SKIP,
        run->levels, cand, plain);
  return GPUIR_OK;
}

/* Adds what a round's list contributes to the scores of the marked candidates. */
static void gcl_launch_scores(gcl_runner *r, uint32_t round, int cand) {
  const gcl_batch *b = &r->batch;
  const gcl_scores *s = r->scores;
  const uint32_t warps = gcl_grid(r, (uint64_t)b->nchunks * 4, GCL_WARPS);
  gcl_add_scores<<<warps, GCL_THREADS, 0, r->stream>>>(*s->view, *b, *s, round, cand);
  gcl_mark(r, GPUIR_CUDA_LAB_SCORE);
}

/* Runs what was planned. */
static int gcl_launch_run(gcl_runner *r, gcl_run *run, gpuir_error *err) {
  gcl_batch *b = &r->batch;
  const uint32_t warps = gcl_grid(r, (uint64_t)b->nchunks * 4, GCL_WARPS);
  uint32_t round;
  int cand = 0;
  bool plain = !run->coded;
  GC_TRY(cudaMemcpyAsync(r->plan_device, r->plan, run->plan, cudaMemcpyHostToDevice, r->stream), "sending queries");
  if (run->sent) GC_TRY(cudaEventRecord(run->sent, r->stream), "timing");
  gcl_mark(r, GPUIR_CUDA_LAB_SEND);
  gcl_begin<<<gcl_grid(r, b->nq, 1), GCL_THREADS, 0, r->stream>>>(b->queries, b->nq, (uint32_t *)b->chunk_query,
      b->count);
  if (run->coded && r->codec == GPUIR__ID_PFL) gcl_launch_nodes(r, 0, r->all);
  if (run->coded && !gcl_is_algorithm1(run->how))
    gcl_seed_of(r->codec)<<<gcl_grid(r, b->nchunks, GCL_WARPS), GCL_THREADS, 0, r->stream>>>(*b);
  gcl_mark(r, GPUIR_CUDA_LAB_DECODE);
  if (gcl_is_algorithm1(run->how)) {
    gcl_algorithm1_of(r->codec, run->how == GCL_ALGORITHM1)<<<warps, GCL_THREADS, 0, r->stream>>>(*b);
    gcl_launch_gather(r, 0, false, 1);
    run->side = 1;
  } else if (run->how < GCL_PMF && !run->coded) {
    gcl_para_of(run->how)<<<warps, GCL_THREADS, 0, r->stream>>>(*b, plain);
    gcl_launch_gather(r, 0, plain, 1);
    run->side = 1;
  } else {
    for (round = 1; round <= run->rounds; round++) {
      (void)gcl_launch_round(r, run, round, cand, plain);
      gcl_mark(r, GPUIR_CUDA_LAB_INTERSECT);
      if (r->scores) gcl_launch_scores(r, round, cand);
      gcl_launch_gather(r, cand, plain, plain ? 0 : cand ^ 1);
      gcl_mark(r, GPUIR_CUDA_LAB_INTERSECT);
      if (!plain) cand ^= 1;
      plain = false;
    }
    if (!run->rounds && plain) { /* queries of one list */
      gcl_clear<<<gcl_grid(r, (uint64_t)b->nchunks * 4, GCL_THREADS), GCL_THREADS, 0, r->stream>>>(*b, UINT32_MAX);
      gcl_launch_gather(r, 0, true, 0);
    }
    run->side = cand;
  }
  gcl_mark(r, GPUIR_CUDA_LAB_INTERSECT);
  GC_TRY(cudaGetLastError(), "intersecting");
  return GPUIR_OK;
}

/* ---- ranking ---- */

static int gcl_launch_topk(gcl_runner *r, const gcl_topk *t, int how, unsigned long long *copy, gpuir_error *err) {
  const uint32_t grid = gpuir__min32(t->nq, (uint32_t)r->processors * 8);
  if (how == GCL_TREE && t->nq * 8 <= (uint32_t)r->processors) {
    const dim3 all((uint32_t)r->processors * 4 / t->nq, t->nq);
    gcl_tree_level<<<all, GCL_TOPK_THREADS, 0, r->stream>>>(*t, 1);
    gcl_tree_level<<<all, GCL_TOPK_THREADS, 0, r->stream>>>(*t, 2);
    gcl_tree<true><<<grid, GCL_TOPK_THREADS, 0, r->stream>>>(*t);
  } else if (how == GCL_TREE) gcl_tree<false><<<grid, GCL_TOPK_THREADS, 0, r->stream>>>(*t);
  else if (how == GCL_BUCKET) gcl_selection<GCL_BUCKET><<<grid, GCL_TOPK_THREADS, t->size * 8, r->stream>>>(*t);
  else if (how == GCL_RADIX_SELECT)
    gcl_selection<GCL_RADIX_SELECT><<<grid, GCL_TOPK_THREADS, t->size * 8, r->stream>>>(*t);
  else gcl_radix_sort<<<grid, GCL_TOPK_THREADS, 0, r->stream>>>(*t, copy);
  GC_TRY(cudaGetLastError(), "ranking");
  return GPUIR_OK;
}

/* Ranks as Griffin does instead: the keys go to the CPU, which sorts the first k of them. The transfer counts. */
static int gcl_partial_sort(gcl_runner *r, const gcl_topk *t, const uint32_t *start, unsigned repeat,
    unsigned long long *work, unsigned long long *out, double *ms, gpuir_error *err) {
  float times[GCL_REPEAT];
  unsigned i;
  size_t q;
  repeat = repeat < 1 ? 1 : repeat > GCL_REPEAT ? GCL_REPEAT : repeat;
  for (i = 0; i < repeat; i++) {
    uint64_t before = gpuir__now();
    GC_TRY(cudaMemcpyAsync(work, t->keys, (size_t)start[t->nq] * 8, cudaMemcpyDeviceToHost, r->stream),
        "fetching keys");
    GC_TRY(cudaStreamSynchronize(r->stream), "fetching keys");
    for (q = 0; q < t->nq; q++) {
      unsigned long long *keys = work + start[q];
      const size_t n = start[q + 1] - start[q], k = (size_t)gpuir__min64(n, t->k);
      std::partial_sort(keys, keys + k, keys + n, std::greater<unsigned long long>());
      memcpy(out + q * t->k, keys, k * 8);
    }
    times[i] = (float)((double)(gpuir__now() - before) / 1e6);
  }
  qsort(times, repeat, sizeof *times, gcl_compare_ms);
  *ms = (double)times[repeat / 2];
  return GPUIR_OK;
}

/* ========================
 * [lab-cuda-08-search]  a searcher by the laboratory's methods
 *
 * Its AND is one of the methods above, its OR has an accumulator for each document in memory (Ding et al. 2009,
 * section 8.3), both ranked by one of the ways above: the baselines of the engine, with the same hits.
 *
 * Start at  gcl_search, gcl_attach.
 * ======================*/

#define GCL_QUERIES 1024u /* of a batch at most */
#define GCL_TERMS 8192u
#define GCL_OUT (1u << 21) /* hits of a batch at most */

/* A batch on the host, pinned. */
typedef struct gcl_host_arrays {
  gc_term *terms;
  gcl_job *jobs;
  gcl_list *lists;
  uint32_t *query_lists, *query_start;
  uint32_t *blocks; /* of OR's terms: the blocks before each, and one more */
  uint32_t *starts; /* of each query's keys */
  uint8_t *inlined; /* lists of one docID, coded: 16 bytes each */
  unsigned long long *out; /* k keys a query */
  void *memory;
  size_t size;
} gcl_host_arrays;

/* A batch on the device. */
typedef struct gcl_sent {
  gc_term *terms;
  gcl_job *jobs;
  gcl_list *lists;
  uint32_t *blocks, *starts, *counts, *sums; /* sums: the accumulators */
  uint8_t *inlined;
  unsigned long long *keys[4], *out; /* keys; moved together; two for sorting */
} gcl_sent;

/* Lists as the index codes them, for methods that search them so; each is put there when a query first has it. The
 * engine's own are coded as bp128. */
typedef struct gcl_shelf {
  gpuir__coding coding; /* codec NULL: lists are searched as the engine has them */
  uint32_t *place; /* [terms] in `lists`, from 1; 0: not there */
  size_t terms;
  gpuir__buf lists; /* gcl_list, device addresses */
  uint8_t *at; /* where the next piece goes */
  uint64_t left;
} gcl_shelf;

typedef struct gcl_searcher {
  gpuir_cuda *cuda;
  gpuir_allocator a;
  gcl_runner r; /* its lists are a batch's */
  int how, ranking;
  uint64_t stride, slots; /* documents, rounded up; accumulators of so many queries */
  gcl_host_arrays host;
  gcl_sent sent;
  gcl_clock clock;
  gcl_scores scores; /* of methods that score after each intersection */
  gcl_shelf shelf; /* of lists in the index's codec */
  double ms[2][GPUIR_CUDA_LAB_STEPS]; /* AND, OR */
  gc_batch batches[2]; /* in flight */
} gcl_searcher;

/* Starts the clock of a batch. */
static void gcl_clock_start(gcl_searcher *x) {
  x->clock.n = 0;
  gcl_mark(&x->r, GPUIR_CUDA_LAB_SEND);
}

/* Adds up the steps of a batch that is done. */
static int gcl_clock_read(gcl_searcher *x, int or_, gpuir_error *err) {
  unsigned i;
  for (i = 1; i < x->clock.n; i++) {
    float ms = 0;
    GC_TRY(cudaEventElapsedTime(&ms, x->clock.event[i - 1], x->clock.event[i]), "timing");
    x->ms[or_][x->clock.step[i]] += (double)ms;
  }
  return GPUIR_OK;
}

/* ---- kernels ---- */

/* Scores a chunk of AND's candidates, and marks those that no negated list holds. Per term: what gcl_block_search
 * does for it, one frequency and one division a candidate. Counted, 256 queries of two lists with 577 matches each:
 * 323 instructions and 79 bytes a match, as most are alone in their block. sums: what gcl_add_scores has added up of
 * queries with two lists and more, so that only negated lists are left; NULL: nothing. */
static __global__ void __launch_bounds__(GCL_THREADS)
    gcl_score(const __grid_constant__ gc_view v, const __grid_constant__ gcl_batch b, const gc_term *terms,
        const gcl_job *jobs, int cand, const uint32_t *sums, unsigned long long *keys) {
  __shared__ uint32_t docs[GCL_WARPS][GPUIR__BLOCK];
  uint32_t chunk = blockIdx.x * GCL_WARPS + threadIdx.x / 32, lane = gc_lane(), i, r;
  for (; chunk < b.nchunks; chunk += gridDim.x * GCL_WARPS) {
    const uint32_t q = __ldg(b.chunk_query + chunk), m = b.count[q];
    const uint32_t first = (chunk - b.queries[q].chunk) * GPUIR__BLOCK;
    const uint64_t base = b.queries[q].base + first;
    const gc_job job = jobs[q].job;
    const bool added = sums && b.queries[q].k > 1;
    uint32_t d[4], live = 0, score[4] = {0, 0, 0, 0};
    uint32_t where[4];
#pragma unroll
    for (i = 0; i < 4; i++) {
      d[i] = 0;
      if (first + 4 * lane + i < m) {
        live |= 1u << i;
        d[i] = b.cand[cand][base + 4 * lane + i];
        if (added) score[i] = sums[base + 4 * lane + i];
      }
    }
    for (r = added ? job.npositive : 0; r < job.nterms && __any_sync(GC_WARP, live); r++) {
      const gc_term t = terms[job.first_term + r];
      uint32_t found = gc_probe<4>(v, t, d, live, where, docs[threadIdx.x / 32]);
      live &= t.negated ? ~found : found;
#pragma unroll
      for (i = 0; i < 4; i++)
        if (!t.negated && (live >> i & 1))
          score[i] += t.q * gc_contribution(t.weight, gc_freq(v, t, where[i]), gc_norm(v, job, d[i]));
    }
#pragma unroll
    for (i = 0; i < 4; i++)
      if (live >> i & 1) keys[base + 4 * lane + i] = gpuir__key(score[i], d[i]);
    for (i = 0; i < 4; i++) { /* word i has the candidates of lanes 8i to 8i + 7 */
      uint32_t word = lane / 8 == i ? live << (lane % 8 * 4) : 0;
      word = __reduce_or_sync(GC_WARP, word);
      if (!lane) b.flags[(uint64_t)chunk * 4 + i] = word;
    }
    __syncwarp();
  }
}

/* Moves the keys of the marked candidates together. Counted there: 63 instructions and 13 bytes a match. */
static __global__ void __launch_bounds__(GCL_THREADS)
    gcl_gather_keys(const __grid_constant__ gcl_batch b, const unsigned long long *from, unsigned long long *to) {
  uint64_t w = (uint64_t)blockIdx.x * GCL_WARPS + threadIdx.x / 32;
  for (; w < (uint64_t)b.nchunks * 4; w += (uint64_t)gridDim.x * GCL_WARPS) {
    const uint32_t flags = b.flags[w];
    const gcl_query q = b.queries[__ldg(b.chunk_query + w / 4)];
    const uint64_t place = w * 32 + gc_lane();
    uint32_t at = b.at[w / 4], i;
    for (i = 0; i < w % 4; i++) at += __popc(b.flags[w / 4 * 4 + i]);
    if (flags >> gc_lane() & 1) to[q.base + at + gc_rank(flags)] = from[place];
  }
}

/* The first terms of jobs. */
struct gcl_first_terms {
  const gcl_job *jobs;
  __device__ __forceinline__ uint32_t operator()(uint32_t i) const { return jobs[i].job.first_term; }
};

/* Adds lists to accumulators in memory: a warp a block. 1 to 1.5 bytes a posting read, and 32 touched for its
 * addition, which is what bounds it: counted 54 bytes, and 7.4 warp instructions a posting. With `negated`, the
 * negated lists clear theirs, once all others are in. */
static __global__ void __launch_bounds__(GCL_THREADS)
    gcl_accumulate(const __grid_constant__ gc_view v, const gc_term *terms, const gcl_job *jobs, uint32_t njobs,
        const uint32_t *blocks, uint32_t nterms, uint32_t *sums, uint64_t stride, bool negated) {
  const uint32_t all = blocks[nterms];
  uint32_t g = blockIdx.x * GCL_WARPS + threadIdx.x / 32, lane = gc_lane(), i;
  for (; g < all; g += gridDim.x * GCL_WARPS) {
    const uint32_t who = gc_owner(gc_numbers{blocks}, nterms, g), block = g - __ldg(blocks + who);
    const gc_term t = terms[who];
    uint32_t d[4], f[4], n;
    if ((t.negated != 0) != negated) continue;
    const gcl_job job = jobs[gc_owner(gcl_first_terms{jobs}, njobs, who)];
    n = gc_decode_docs(v, t, block, d);
    if (!negated) gc_decode_freqs(v, t, block, f);
#pragma unroll
    for (i = 0; i < 4; i++)
      if (4 * lane + i < n) {
        uint32_t *sum = sums + job.slot * stride + d[i];
        if (negated) *sum = 0;
        else atomicAdd(sum, t.q * gc_contribution(t.weight, f[i], gc_norm(v, job.job, d[i])));
      }
  }
}

/* Collects the keys of documents that have a score; clears their accumulators. 4 bytes a document and 12 a key;
 * counted 4.0 bytes and 1.4 warp instructions a document, one in 28 with a score. */
static __global__ void __launch_bounds__(GCL_THREADS) gcl_collect(uint32_t *sums, uint32_t documents, uint64_t stride,
    uint32_t slots, unsigned long long *keys, uint32_t *counts) {
  const uint32_t warps = gridDim.x * GCL_WARPS, lane = gc_lane();
  uint32_t slot;
  for (slot = 0; slot < slots; slot++) {
    uint64_t at = ((uint64_t)blockIdx.x * GCL_WARPS + threadIdx.x / 32) * 32;
    for (; at < documents; at += (uint64_t)warps * 32) {
      const uint32_t sum = at + lane < documents ? sums[slot * stride + at + lane] : 0;
      const uint32_t vote = __ballot_sync(GC_WARP, sum != 0);
      uint32_t to;
      if (!vote) continue;
      to = gc_claim(vote, counts + slot);
      if (sum) {
        keys[slot * stride + to] = gpuir__key(sum, (uint32_t)at + lane);
        sums[slot * stride + at + lane] = 0;
      }
    }
  }
}

/* ---- batches ---- */

/* Copies to the shelf's memory, which grows by slabs. */
static int gcl_shelf_put(gcl_searcher *x, const void *from, uint64_t n, const void **p, gpuir_error *err) {
  gcl_shelf *s = &x->shelf;
  const uint64_t need = (n + GC_PAD + 15) & ~(uint64_t)15;
  if (need > s->left) {
    void *slab;
    const uint64_t size = gpuir__max64(need, (uint64_t)256 << 20);
    int status = gcl_device_alloc(&x->r, size, &slab, err);
    if (status) return status;
    GC_TRY(cudaMemset(slab, 0, size), "sending lists");
    s->at = (uint8_t *)slab;
    s->left = size;
  }
  GC_TRY(cudaMemcpy(s->at, from, n, cudaMemcpyHostToDevice), "sending lists");
  *p = s->at;
  s->at += (n + 15) & ~(uint64_t)15;
  s->left -= (n + 15) & ~(uint64_t)15;
  return GPUIR_OK;
}

/* Codes the posting of a list that has only this one, which the index keeps in its record. */
static int gcl_shelf_one(gcl_searcher *x, uint32_t doc, gcl_list *to, gpuir_error *err) {
  const gpuir_allocator *a = &x->a;
  gpuir__buf bytes = {NULL, 0, 0};
  const gpuir__target target = {a, &bytes, NULL, NULL, x->shelf.coding.param};
  int status = x->shelf.coding.codec->encode(x->shelf.coding.codec, &doc, 1, &target);
  to->s.len = bytes.len;
  if (!status) status = gcl_shelf_put(x, bytes.data, bytes.len, (const void **)&to->s.bytes, err);
  gpuir__buf_free(a, &bytes);
  return status;
}

/* Fits a line to a list, as Algorithm 1 contracts its searches by one (Ao et al. 2011, 4.3). */
static int gcl_shelf_line(gcl_searcher *x, gpuir__list *l, gcl_list *to, gpuir_error *err) {
  const size_t size = ((size_t)l->nblocks * GPUIR__BLOCK + GPUIR__BLOCK_ROOM) * 4;
  uint32_t *docs = (uint32_t *)gpuir__alloc(&x->a, size), b;
  gpuir__operand o;
  gpuir__prepared made;
  int status;
  if (!docs) return gpuir__fail_nomem(err);
  for (b = 0; b < l->nblocks; b++) (void)gpuir__list_docs(l, b, docs + (size_t)b * GPUIR__BLOCK);
  memset(&made, 0, sizeof made);
  gpuir__operand_init(&o, NULL, gpuir__lookup_choose(GPUIR_SIMD_SCALAR));
  o.docs = docs;
  o.n = l->df;
  status = gpuir__operand_prepare(&x->a, gpuir__method_by_name("lr-global"), &o, &made);
  if (!status) status = gcl_shelf_put(x, made.lines, sizeof *made.lines, &to->lines, err);
  gpuir__prepared_free(&x->a, &made);
  gpuir__free(&x->a, docs, size);
  return status;
}

/* Puts a list on the shelf. */
static int gcl_shelf_add(gcl_searcher *x, uint32_t id, gpuir__list *l, gpuir_error *err) {
  gcl_shelf *s = &x->shelf;
  gcl_list to;
  int status;
  memset(&to, 0, sizeof to);
  to.s.n = l->df;
  to.s.limit = x->cuda->view.documents - 1;
  to.nblocks = l->nblocks;
  if (l->df == 1) {
    status = gcl_shelf_one(x, l->one_docid, &to, err);
  } else {
    if (l->docs.codec->id != s->coding.codec->id)
      return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "CUDA: lists of several codecs in one index");
    status = gpuir__list_open_codecs(&x->a, l);
    to.s.len = l->docs.len;
    if (!status) status = gcl_shelf_put(x, l->docs.bytes, l->docs.len, (const void **)&to.s.bytes, err);
    if (!status && l->docs.offset) /* a short list has no directory */
      status = gcl_shelf_put(x, l->docs.offset, (uint64_t)l->nblocks * 4, (const void **)&to.s.offset, err);
    if (!status && l->docs.width) status = gcl_shelf_put(x, l->docs.width, l->nblocks, (const void **)&to.s.width, err);
    if (!status && l->last)
      status = gcl_shelf_put(x, l->last, (uint64_t)l->nblocks * 4, (const void **)&to.s.last, err);
  }
  if (!status && gcl_algorithm1_of(x->r.codec, true)) status = gcl_shelf_line(x, l, &to, err);
  gpuir__list_close(&x->a, l);
  if (!status) status = gpuir__buf_put(&x->a, &s->lists, &to, sizeof to);
  if (!status) s->place[id] = (uint32_t)(s->lists.len / sizeof to);
  return status;
}

/* Describes the list of term i of a batch as the shelf has it. */
static int gcl_shelf_list(gcl_searcher *x, uint32_t i, uint32_t id, gpuir__list *l, gpuir_error *err) {
  const gcl_shelf *s = &x->shelf;
  const int status = s->place[id] ? GPUIR_OK : gcl_shelf_add(x, id, l, err);
  if (status) return status;
  memcpy(&x->host.lists[i], s->lists.data + (s->place[id] - 1) * sizeof(gcl_list), sizeof(gcl_list));
  x->r.n[i] = l->df;
  return GPUIR_OK;
}

/* Opens the shelf, if the index has a codec that a method of the literature searches as it is. */
static int gcl_shelf_open(gcl_searcher *x, gpuir_error *err) {
  const gpuir__segment *ix = x->cuda->ix;
  gcl_shelf *s = &x->shelf;
  if (!x->cuda->places || gpuir__coding_parse(ix->meta.codec, 1, &s->coding, NULL) || !s->coding.codec ||
      s->coding.codec->id == GPUIR__ID_PFL) {
    memset(&s->coding, 0, sizeof s->coding);
    return GPUIR_OK;
  }
  x->r.codec = s->coding.codec->id;
  if (x->r.codec == GPUIR__ID_PFD || x->r.codec == GPUIR__ID_NEWPFD) x->r.codec = GPUIR__ID_OPTPFD;
  s->terms = ix->stat.terms;
  s->place = (uint32_t *)gpuir__alloc_zero(&x->a, (s->terms + 1) * sizeof *s->place);
  return s->place ? GPUIR_OK : gpuir__fail_nomem(err);
}

/* Describes term i of a query, and opens its list. NOT_FOUND: the index has no such term. */
static int gcl_describe_term(const gpuir_cuda *c, const gpuir_query *q, unsigned i, gc_term *t, gpuir__list *l,
    uint32_t *id, gpuir_error *err) {
  gpuir__record record;
  int status;
  *id = gpuir__query_id(q, 0, i);
  if (*id == GPUIR__NO_TERM) return GPUIR_E_NOT_FOUND;
  gpuir__record_get(c->ix, *id, &record);
  status = gc_describe(c, *id, &record, t, l, err);
  t->q = q->terms[i].q;
  t->weight = q->terms[i].weight;
  t->negated = q->terms[i].negated != 0;
  return status;
}

static void gcl_describe_norm(const gpuir_query *q, gcl_job *job) {
  memset(job, 0, sizeof *job);
  job->job.norm_a = q->norm.a;
  job->job.norm_b = q->norm.b;
  job->job.stored = q->stored_bm25 != 0;
}

/* Describes the terms of a query, the positive ones in front. */
static int gcl_describe(gcl_searcher *x, const gpuir_query *q, uint32_t *nterms, gcl_job *job, gpuir_error *err) {
  unsigned i, negated;
  gcl_describe_norm(q, job);
  job->job.first_term = *nterms;
  for (negated = 0; negated < 2; negated++)
    for (i = 0; i < q->n; i++) {
      gpuir__list l;
      uint32_t id;
      int status;
      if ((q->terms[i].negated != 0) != (negated != 0)) continue;
      status = gcl_describe_term(x->cuda, q, i, &x->host.terms[*nterms], &l, &id, err);
      if (status == GPUIR_E_NOT_FOUND) continue;
      if (!status && x->shelf.place) status = gcl_shelf_list(x, *nterms, id, &l, err);
      if (status) return status;
      ++*nterms;
      job->job.nterms++;
      job->job.npositive += !negated;
    }
  return GPUIR_OK;
}

/* Describes the list of a term as the runs take it. */
static void gcl_list_of_term(gcl_searcher *x, uint32_t i) {
  const gc_view *v = &x->cuda->view;
  const gc_term *t = &x->host.terms[i];
  gcl_list *l = &x->host.lists[i];
  memset(l, 0, sizeof *l);
  l->s.n = t->df;
  l->s.limit = v->documents - 1;
  l->nblocks = t->nblocks;
  x->r.n[i] = t->df;
  if (t->kind == GC_INLINE) { /* a block of one value, 32 bits wide */
    uint8_t *to = x->host.inlined + (size_t)i * 16;
    memset(to, 0, 16);
    to[0] = 32;
    gpuir__store32(to + 1, gpuir__min32((uint32_t)t->docs, l->s.limit));
    l->s.bytes = x->sent.inlined + (size_t)i * 16;
    l->s.len = 5;
    l->nblocks = 1;
    return;
  }
  l->s.bytes = (const uint8_t *)v->docids + t->docs;
  l->s.len = t->docs_len;
  if (t->kind == GC_LONG) {
    l->s.offset = v->docs_off + t->first_block;
    l->s.width = v->docs_width + t->first_block;
    l->s.last = v->last + t->first_block;
  }
}

/* Ranks nq queries' keys and hands out their hits. */
static int gcl_rank(gcl_searcher *x, const unsigned long long *keys, const uint32_t *counts, size_t nq, uint32_t k,
    const gcl_job *jobs, size_t stride, gpuir_hit *hits, uint32_t *found, gpuir_error *err) {
  gcl_topk t;
  uint32_t *n = x->host.query_start;
  size_t q, i;
  int status;
  memset(&t, 0, sizeof t);
  t.keys = keys;
  t.start = x->sent.starts;
  t.count = counts;
  t.spare = x->sent.keys[2];
  t.out = x->sent.out;
  t.nq = (uint32_t)nq;
  t.k = k;
  for (t.size = 2; t.size < k; t.size *= 2) {}
  GC_TRY(cudaMemsetAsync(x->sent.out, 0, nq * k * 8, x->r.stream), "clearing hits"); /* some queries have fewer */
  status = gcl_launch_topk(&x->r, &t, x->ranking, x->sent.keys[3], err);
  if (status) return status;
  GC_TRY(cudaMemcpyAsync(x->host.out, x->sent.out, nq * k * 8, cudaMemcpyDeviceToHost, x->r.stream), "fetching hits");
  GC_TRY(cudaMemcpyAsync(n, counts, nq * 4, cudaMemcpyDeviceToHost, x->r.stream), "fetching hits");
  gcl_mark(&x->r, GPUIR_CUDA_LAB_SELECT);
  GC_TRY(cudaStreamSynchronize(x->r.stream), "running kernels");
  for (q = 0; q < nq; q++) {
    gpuir_hit *to = hits + jobs[q].to * stride;
    found[jobs[q].to] = gpuir__min32(n[q], k);
    for (i = 0; i < found[jobs[q].to]; i++) {
      to[i].docid = gpuir__min32(~(uint32_t)x->host.out[q * k + i], x->cuda->view.documents - 1);
      to[i].score = (uint32_t)(x->host.out[q * k + i] >> 32);
    }
  }
  return GPUIR_OK;
}

static int gcl_send_terms(gcl_searcher *x, uint32_t nterms, size_t njobs, gpuir_error *err) {
  cudaStream_t s = x->r.stream;
  GC_TRY(cudaMemcpyAsync(x->sent.terms, x->host.terms, nterms * sizeof *x->host.terms, cudaMemcpyHostToDevice, s),
      "sending queries");
  GC_TRY(cudaMemcpyAsync(x->sent.jobs, x->host.jobs, njobs * sizeof *x->host.jobs, cudaMemcpyHostToDevice, s),
      "sending queries");
  return GPUIR_OK;
}

/* Searches the first n jobs as AND. */
static int gcl_search_and(gcl_searcher *x, uint32_t nterms, size_t n, uint32_t k, size_t stride, gpuir_hit *hits,
    uint32_t *found, gpuir_error *err) {
  gcl_runner *r = &x->r;
  const gcl_batch *b = &r->batch;
  uint32_t i, at = 0;
  size_t q;
  gcl_run run;
  int status;
  if (!n) return GPUIR_OK;
  memset(&run, 0, sizeof run);
  run.how = x->how;
  run.coded = 1;
  run.levels = x->how >= GCL_PMF && x->how < GCL_MERGEPATH ? (unsigned)(x->how - GCL_PMF) : 0;
  for (i = 0; i < nterms && !x->shelf.place; i++) gcl_list_of_term(x, i);
  for (q = 0; q < n; q++) {
    x->host.query_start[q] = at;
    for (i = 0; i < x->host.jobs[q].job.npositive; i++) x->host.query_lists[at++] = x->host.jobs[q].job.first_term + i;
  }
  x->host.query_start[n] = at;
  r->nlists = r->all = nterms;
  status = gcl_plan_run(r, x->host.query_lists, x->host.query_start, n, &run, err);
  if (status) return status;
  for (q = 0; q < n; q++) x->host.starts[q] = (uint32_t)((const gcl_query *)(const void *)r->plan)[q].base;
  gcl_clock_start(x);
  status = gcl_send_terms(x, nterms, n, err);
  if (status) return status;
  GC_TRY(
      cudaMemcpyAsync(x->sent.lists, x->host.lists, nterms * sizeof *x->host.lists, cudaMemcpyHostToDevice, r->stream),
      "sending queries");
  GC_TRY(cudaMemcpyAsync(x->sent.inlined, x->host.inlined, (size_t)nterms * 16, cudaMemcpyHostToDevice, r->stream),
      "sending queries");
  GC_TRY(cudaMemcpyAsync(x->sent.starts, x->host.starts, n * 4, cudaMemcpyHostToDevice, r->stream), "sending queries");
  status = gcl_launch_run(r, &run, err);
  if (status) return status;
  gcl_score<<<gcl_grid(r, b->nchunks, GCL_WARPS), GCL_THREADS, 0, r->stream>>>(x->cuda->view, *b, x->sent.terms,
      x->sent.jobs, run.side, r->scores ? x->scores.sum[run.side] : NULL, x->sent.keys[0]);
  gcl_offsets<<<gcl_grid(r, b->nq, 1), GCL_THREADS, 0, r->stream>>>(*b);
  gcl_gather_keys<<<gcl_grid(r, (uint64_t)b->nchunks * 4, GCL_WARPS), GCL_THREADS, 0, r->stream>>>(*b, x->sent.keys[0],
      x->sent.keys[1]);
  GC_TRY(cudaGetLastError(), "scoring");
  gcl_mark(r, GPUIR_CUDA_LAB_SCORE);
  status = gcl_rank(x, x->sent.keys[1], b->count, n, k, x->host.jobs, stride, hits, found, err);
  return status ? status : gcl_clock_read(x, 0, err);
}

/* Searches the first n jobs, n <= slots, as OR. */
static int gcl_search_or(gcl_searcher *x, uint32_t nterms, size_t n, uint32_t k, size_t stride, gpuir_hit *hits,
    uint32_t *found, gpuir_error *err) {
  gcl_runner *r = &x->r;
  const gc_view *v = &x->cuda->view;
  const unsigned grid = (unsigned)r->processors * 8;
  uint64_t all = 0;
  uint32_t i;
  int status, negated, any_negated = 0;
  for (i = 0; i < nterms; i++) {
    x->host.blocks[i] = (uint32_t)all;
    all += gpuir__max32(1, x->host.terms[i].nblocks);
    any_negated |= x->host.terms[i].negated != 0;
  }
  if (all >> 32) return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "CUDA: the lists of a query have too many blocks");
  x->host.blocks[nterms] = (uint32_t)all;
  for (i = 0; i < n; i++) {
    x->host.jobs[i].slot = i;
    x->host.starts[i] = (uint32_t)(i * x->stride);
  }
  gcl_clock_start(x);
  status = gcl_send_terms(x, nterms, n, err);
  if (status) return status;
  GC_TRY(cudaMemcpyAsync(x->sent.blocks, x->host.blocks, (nterms + 1) * 4, cudaMemcpyHostToDevice, r->stream),
      "sending queries");
  GC_TRY(cudaMemcpyAsync(x->sent.starts, x->host.starts, n * 4, cudaMemcpyHostToDevice, r->stream), "sending queries");
  GC_TRY(cudaMemsetAsync(x->sent.counts, 0, n * 4, r->stream), "clearing counters");
  gcl_mark(r, GPUIR_CUDA_LAB_SEND);
  for (negated = 0; negated <= any_negated; negated++)
    gcl_accumulate<<<grid, GCL_THREADS, 0, r->stream>>>(*v, x->sent.terms, x->sent.jobs, (uint32_t)n, x->sent.blocks,
        nterms, x->sent.sums, x->stride, negated != 0);
  gcl_mark(r, GPUIR_CUDA_LAB_SCORE);
  gcl_collect<<<grid, GCL_THREADS, 0, r->stream>>>(x->sent.sums, v->documents, x->stride, (uint32_t)n, x->sent.keys[0],
      x->sent.counts);
  GC_TRY(cudaGetLastError(), "scoring");
  gcl_mark(r, GPUIR_CUDA_LAB_COLLECT);
  status = gcl_rank(x, x->sent.keys[0], x->sent.counts, n, k, x->host.jobs, stride, hits, found, err);
  return status ? status : gcl_clock_read(x, 1, err);
}

/* How a query is evaluated. */
enum { GCL_NO_HITS, GCL_AND_FIRST, GCL_OR_AT_ONCE };

static int gcl_mode(const gpuir_query *q) {
  unsigned i, positive = 0;
  for (i = 0; i < q->n; i++) positive += q->terms[i].df && !q->terms[i].negated;
  if (!positive || (q->mode == GPUIR_AND && q->nunknown)) return GCL_NO_HITS;
  return q->mode == GPUIR_OR || (q->mode == GPUIR_ANDOR && q->nunknown) ? GCL_OR_AT_ONCE : GCL_AND_FIRST;
}

/* Returns whether a query takes part in a pass, AND (0) or OR (1), `count` being how many hits AND has found. */
static int gcl_takes_part(const gpuir_query *q, int pass, uint32_t count, size_t k) {
  const int mode = gcl_mode(q);
  if (!pass) return mode == GCL_AND_FIRST;
  return mode == GCL_OR_AT_ONCE || (mode == GCL_AND_FIRST && q->mode == GPUIR_ANDOR && count != k);
}

/* Fills a batch with the queries from *done on that take part in a pass, and searches it. */
static int gcl_search_some(gcl_searcher *x, const gpuir_query *const *queries, size_t nq, int pass, uint32_t k,
    size_t *done, size_t stride, gpuir_hit *hits, uint32_t *counts, gpuir_error *err) {
  const size_t most = (size_t)gpuir__min64(pass ? x->slots : GCL_QUERIES, GCL_OUT / k);
  uint64_t postings = 0;
  uint32_t nterms = 0;
  size_t n = 0;
  int status = GPUIR_OK;
  for (; *done < nq && n < most && !status; ++*done) {
    const gpuir_query *q = queries[*done];
    uint32_t longest = 0;
    unsigned i;
    if (!gcl_takes_part(q, pass, counts[*done], k)) continue;
    for (i = 0; i < q->n; i++) longest = gpuir__max32(longest, q->terms[i].df);
    if (n && (nterms + q->n > GCL_TERMS || (!pass && postings + longest + GPUIR__BLOCK > x->r.room))) break;
    postings += longest + GPUIR__BLOCK;
    status = gcl_describe(x, q, &nterms, &x->host.jobs[n], err);
    x->host.jobs[n++].to = (uint32_t)*done;
  }
  if (!status && n)
    status = pass ? gcl_search_or(x, nterms, n, k, stride, hits, counts, err)
                  : gcl_search_and(x, nterms, n, k, stride, hits, counts, err);
  __atomic_fetch_add(&x->cuda->info.batches, 1, __ATOMIC_RELAXED);
  return status;
}

/* Searches a batch: a pass of AND, then one of OR where it is asked for or needed. Looks between launches whether it is
 * to stop, for single queries too, which then stop it for all. */
static int gcl_search(gcl_searcher *x, const gc_batch *r, gpuir_error *err) {
  const gpuir_batch_desc *d = &r->desc;
  size_t done, i;
  int status = GPUIR_OK, pass;
  GC_TRY(cudaSetDevice(x->cuda->device), "choosing the device");
  memset(d->counts, 0, d->nq * sizeof *d->counts);
  for (pass = 0; pass < 2 && !status && r->k; pass++)
    for (done = 0; done < d->nq && !status;) {
      for (i = done; i < d->nq && !status; i++) status = gc_stopped(r, i, gc_now(r), err);
      if (!status) status = gcl_search_some(x, d->queries, d->nq, pass, r->k, &done, d->k, d->hits, d->counts, err);
    }
  if (status) { /* accumulators may be left over */
    (void)cudaMemsetAsync(x->sent.sums, 0, x->slots * x->stride * 4, x->r.stream);
    (void)cudaStreamSynchronize(x->r.stream);
  }
  __atomic_fetch_add(&x->cuda->info.queries, d->nq, __ATOMIC_RELAXED);
  return status;
}

/* ---- the backend, see gpuir_backend: finish does all the work, as steps are timed one by one ---- */

static int gcl_begin(void *context, const gpuir_batch_desc *batch, uint64_t deadline, const int *cancel, void **running,
    gpuir_error *err) {
  gcl_searcher *x = (gcl_searcher *)context;
  gc_batch *r = x->batches[0].number ? &x->batches[1] : &x->batches[0];
  const uint64_t k = gpuir__min64(batch->k, x->cuda->ix->stat.documents);
  size_t i;
  if (r->number) return gpuir__fail(err, GPUIR_E_BUSY, 0, "two batches are in flight");
  if (k > GC_K_MOST)
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "the CUDA backend ranks at most %u hits a query", GC_K_MOST);
  for (i = 0; i < batch->nq; i++)
    if (batch->queries[i]->nphrases || batch->queries[i]->nprefixes)
      return gpuir__fail(err, GPUIR_E_BACKEND, 0, "the CUDA backend answers neither phrases nor prefixes");
  r->desc = *batch;
  r->k = (uint32_t)k;
  r->deadline = deadline;
  r->cancel = cancel;
  r->number = 1;
  *running = r;
  return GPUIR_OK;
}

static int gcl_poll(void *context, void *running) {
  (void)context;
  (void)running;
  return 1;
}

static int gcl_finish(void *context, void *running, gpuir_error *err) {
  gc_batch *r = (gc_batch *)running;
  r->number = 0;
  return gcl_search((gcl_searcher *)context, r, err);
}

/* ---- attaching ---- */

/* The backend's close, see gpuir_backend. */
static void gcl_detach(void *context) {
  gcl_searcher *x = (gcl_searcher *)context;
  gpuir_allocator a;
  unsigned i;
  if (!x) return;
  a = x->a;
  (void)cudaSetDevice(x->cuda->device);
  if (x->r.stream) {
    (void)cudaStreamSynchronize(x->r.stream);
    (void)cudaStreamDestroy(x->r.stream);
  }
  while (x->r.nmemory) (void)cudaFree(x->r.memory[--x->r.nmemory]);
  for (i = 0; i < GCL_MARKS; i++)
    if (x->clock.event[i]) (void)cudaEventDestroy(x->clock.event[i]);
  (void)cudaFreeHost(x->r.plan);
  (void)cudaFreeHost(x->host.memory);
  (void)cudaGetLastError();
  gpuir__free(&a, x->shelf.place, (x->shelf.terms + 1) * sizeof *x->shelf.place);
  gpuir__buf_free(&a, &x->shelf.lists);
  gpuir__free(&a, x, sizeof *x);
}

/* Allocates a batch on the host. */
static int gcl_host_arrays_open(gcl_searcher *x, gpuir_error *err) {
  gcl_host_arrays *d = &x->host;
  uint8_t *at;
  d->size = GCL_TERMS * (sizeof *d->terms + sizeof *d->lists + 16 + 3 * 4) + GCL_QUERIES * (sizeof *d->jobs + 8) +
      (size_t)GCL_OUT * 8 + 2048;
  GC_TRY(cudaMallocHost(&d->memory, d->size), "allocating pinned memory");
  at = (uint8_t *)d->memory;
  d->terms = (gc_term *)gc_carve(&at, GCL_TERMS * sizeof *d->terms);
  d->lists = (gcl_list *)gc_carve(&at, GCL_TERMS * sizeof *d->lists);
  d->inlined = (uint8_t *)gc_carve(&at, GCL_TERMS * 16);
  d->query_lists = (uint32_t *)gc_carve(&at, GCL_TERMS * 4);
  d->blocks = (uint32_t *)gc_carve(&at, (GCL_TERMS + 1) * 4);
  x->r.n = (uint32_t *)gc_carve(&at, GCL_TERMS * 4);
  d->jobs = (gcl_job *)gc_carve(&at, GCL_QUERIES * sizeof *d->jobs);
  d->query_start = (uint32_t *)gc_carve(&at, (GCL_QUERIES + 1) * 4);
  d->starts = (uint32_t *)gc_carve(&at, GCL_QUERIES * 4);
  d->out = (unsigned long long *)at;
  return GPUIR_OK;
}

/* Allocates a batch on the device. */
static int gcl_sent_open(gcl_searcher *x, gpuir_error *err) {
  gcl_sent *d = &x->sent;
  gcl_runner *r = &x->r;
  unsigned i;
  int s = gcl_device_alloc(r, GCL_TERMS * sizeof *d->terms, (void **)&d->terms, err);
  if (!s) s = gcl_device_alloc(r, GCL_QUERIES * sizeof *d->jobs, (void **)&d->jobs, err);
  if (!s) s = gcl_device_alloc(r, GCL_TERMS * 16 + GC_PAD, (void **)&d->inlined, err);
  if (!s) s = gcl_device_alloc(r, (GCL_TERMS + 1) * 4, (void **)&d->blocks, err);
  if (!s) s = gcl_device_alloc(r, GCL_QUERIES * 4, (void **)&d->starts, err);
  if (!s) s = gcl_device_alloc(r, GCL_QUERIES * 4, (void **)&d->counts, err);
  if (!s) s = gcl_device_alloc(r, x->slots * x->stride * 4, (void **)&d->sums, err);
  for (i = 0; i < 4 && !s; i++)
    s = gcl_device_alloc(r, (r->room + GPUIR__BLOCK * (uint64_t)GCL_QUERIES) * 8, (void **)&d->keys[i], err);
  if (!s) s = gcl_device_alloc(r, (uint64_t)GCL_OUT * 8, (void **)&d->out, err);
  if (s) return s;
  GC_TRY(cudaMemset(d->sums, 0, x->slots * x->stride * 4), "clearing memory");
  GC_TRY(cudaMemset(d->inlined, 0, GCL_TERMS * 16 + GC_PAD), "clearing memory");
  GC_TRY(cudaDeviceSynchronize(), "clearing memory"); /* the searcher's stream does not wait for this one */
  return GPUIR_OK;
}

/* Lets the selections take the shared memory that the greatest k needs. */
static int gcl_shape_selections(gpuir_error *err) {
  GC_TRY(cudaFuncSetAttribute(gcl_selection<GCL_BUCKET>, cudaFuncAttributeMaxDynamicSharedMemorySize, 16384 * 8),
      "sizing a launch");
  GC_TRY(cudaFuncSetAttribute(gcl_selection<GCL_RADIX_SELECT>, cudaFuncAttributeMaxDynamicSharedMemorySize, 16384 * 8),
      "sizing a launch");
  return GPUIR_OK;
}

/* Lets a searcher score after each intersection. Keys are not there yet then, so sums and places take their room. */
static void gcl_score_by_list(gcl_searcher *x) {
  x->scores.view = &x->cuda->view;
  x->scores.terms = x->sent.terms;
  x->scores.jobs = x->sent.jobs;
  x->scores.sum[0] = (uint32_t *)x->sent.keys[2];
  x->scores.sum[1] = x->scores.sum[0] + x->r.room + GPUIR__BLOCK * (uint64_t)GCL_QUERIES;
  x->r.batch.where = (uint32_t *)x->sent.keys[3];
  x->r.scores = &x->scores;
}

/* Gives a searcher its stream and memory. What fails is freed by gcl_detach. */
static int gcl_attach(gcl_searcher *x, gpuir_error *err) {
  gcl_runner *r = &x->r;
  unsigned i;
  int s;
  r->a = x->a;
  if (!x->shelf.coding.codec) r->codec = GPUIR__ID_BP128;
  r->clock = &x->clock;
  for (i = 0; i < GCL_MARKS; i++) GC_TRY(cudaEventCreate(&x->clock.event[i]), "creating an event");
  s = gcl_start(r, x->cuda->device, err);
  if (s) return s;
  x->stride = (x->cuda->view.documents + (uint64_t)GPUIR__BLOCK - 1) / GPUIR__BLOCK * GPUIR__BLOCK;
  r->room = gpuir__max64(gpuir__max64(x->stride, 1u << 20), gpuir__min64(8 * x->stride, 1u << 26));
  x->slots = gpuir__min64(GCL_QUERIES, gpuir__min64(r->room, UINT32_MAX) / x->stride);
  s = gcl_host_arrays_open(x, err);
  if (!s) s = gcl_device_alloc(r, r->room * 4, (void **)&r->out, err);
  if (!s) s = gcl_device_alloc(r, GCL_TERMS * sizeof *x->sent.lists, (void **)&x->sent.lists, err);
  r->lists = x->sent.lists;
  if (!s) s = gcl_open_batch(r, GCL_QUERIES, GCL_TERMS, err);
  if (!s) s = gcl_sent_open(x, err);
  if (!s) s = gcl_shape_selections(err);
  r->batch.crossover = x->how == GCL_MERGEPATH ? 1e30f : 128.0f;
  if (!s && x->how != GCL_MERGEPATH && x->how != GCL_GRIFFIN && !gcl_is_algorithm1(x->how)) gcl_score_by_list(x);
  return s;
}

/* ========================
 * [lab-cuda-08b-rounds]  host: a batch and where its time goes; a query round by round
 *
 * Start at  gcl_batch_run; gcl_rounds_begin, gcl_rounds_next, gcl_rounds_poll.
 * ======================*/

/* What batches and rounds keep. The device tells how many candidates a round has left by a word that is mapped from the
 * host's memory: the round's number in its upper half. */
typedef struct gcl_steps {
  gcl_run run;
  cudaEvent_t mark[4]; /* of a batch: its beginning; queries are there; kernels have ended; results are fetched */
  volatile unsigned long long *told; /* pinned */
  unsigned long long *told_device;
  uint32_t *fetched; /* pinned: what is fetched */
  uint64_t landing_room;
  gc_term *terms; /* pinned: of a query that is scored, and its job behind them; NULL until the first one */
  gc_term *terms_device;
  unsigned long long *keys, *keys_device; /* as many as the lab has room for */
  uint32_t sequence, polls, round, left;
  int waiting; /* a round was launched, and not polled to its end */
  bool plain;
} gcl_steps;

static void gcl_steps_close(gpuir_cuda_lab *lab) {
  gcl_steps *s = lab->steps;
  unsigned i;
  if (!s) return;
  for (i = 0; i < 4; i++)
    if (s->mark[i]) (void)cudaEventDestroy(s->mark[i]);
  (void)cudaFreeHost((void *)(uintptr_t)s->told);
  (void)cudaFreeHost(s->fetched);
  (void)cudaFreeHost(s->terms);
  (void)cudaFreeHost(s->keys);
  gpuir__free(&lab->r.a, s, sizeof *s);
  lab->steps = NULL;
}

/* Makes what batches and rounds keep, as far as it comes: on failure gcl_steps_close is due. */
static int gcl_steps_make(gpuir_cuda_lab *lab, gpuir_error *err) {
  gcl_steps *s = lab->steps = (gcl_steps *)gpuir__alloc_zero(&lab->r.a, sizeof *s);
  unsigned i;
  if (!s) return gpuir__fail_nomem(err);
  GC_TRY(cudaHostAlloc((void **)(uintptr_t)&s->told, 64, cudaHostAllocMapped), "allocating pinned memory");
  *s->told = 0;
  GC_TRY(cudaHostGetDevicePointer((void **)&s->told_device, (void *)(uintptr_t)s->told, 0), "mapping memory");
  for (i = 0; i < 4; i++) GC_TRY(cudaEventCreate(&s->mark[i]), "creating an event");
  return GPUIR_OK;
}

/* Makes what batches and rounds keep, once, with room to fetch so many docIDs. */
static int gcl_steps_open(gpuir_cuda_lab *lab, uint64_t room, gpuir_error *err) {
  gcl_steps *s;
  const int status = lab->steps ? GPUIR_OK : gcl_steps_make(lab, err);
  if (status) {
    gcl_steps_close(lab);
    return status;
  }
  s = lab->steps;
  if (room <= s->landing_room) return GPUIR_OK;
  room += room / 2; /* the next batch may be larger */
  (void)cudaFreeHost(s->fetched);
  s->fetched = NULL;
  s->landing_room = 0;
  GC_TRY(cudaMallocHost((void **)&s->fetched, room * 4), "allocating pinned memory");
  s->landing_room = room;
  return GPUIR_OK;
}

/* ---- a part of the device ---- */

#define GCL_GUARD_NS 60000000000ull /* after which they leave by themselves */

/* Blocks that each take a multiprocessor, so that runs are confined to the others (Ao et al. 2011, Figure 9a). They and
 * the host talk by words that one side alone writes, with plain stores: many devices have no atomics on the host's
 * memory. */
typedef struct gcl_guards {
  cudaStream_t stream;
  uint32_t *words; /* pinned, mapped: the number of the guards that are to go; of each block, that of its guard */
  uint32_t *words_device;
  uint32_t number; /* of the last guards, from 1 on: words need no clearing */
} gcl_guards;

/* Takes a multiprocessor, all of whose shared memory the block has, and sleeps until it is told to go. */
static __global__ void gcl_guard(uint32_t *words, uint32_t number) {
  volatile uint32_t *told = words;
  unsigned long long since, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(since));
  told[1 + blockIdx.x] = number;
  __threadfence_system();
  do {
    __nanosleep(500000);
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (told[0] != number && now - since < GCL_GUARD_NS);
}

/* Returns whether n guards have come. */
static int gcl_guards_stand(const gcl_guards *g, unsigned n) {
  unsigned i;
  for (i = 1; i <= n; i++)
    if (__atomic_load_n(g->words + i, __ATOMIC_ACQUIRE) != g->number) return 0;
  return 1;
}

static void gcl_guards_leave(gpuir_cuda_lab *lab) {
  gcl_guards *g = lab->guards;
  if (!g || !g->stream || !g->words) return;
  __atomic_store_n(g->words, g->number, __ATOMIC_RELEASE);
  (void)cudaStreamSynchronize(g->stream);
  lab->r.processors = lab->all_processors;
}

static void gcl_guards_close(gpuir_cuda_lab *lab) {
  gcl_guards *g = lab->guards;
  if (!g) return;
  gcl_guards_leave(lab);
  if (g->stream) (void)cudaStreamDestroy(g->stream);
  (void)cudaFreeHost(g->words);
  gpuir__free(&lab->r.a, g, sizeof *g);
  lab->guards = NULL;
}

/* Makes what guards need, as far as it comes: on failure gcl_guards_close is due. */
static int gcl_guards_make(gpuir_cuda_lab *lab, gpuir_error *err) {
  const size_t size = ((size_t)lab->r.processors + 1) * sizeof(uint32_t);
  gcl_guards *g;
  lab->all_processors = lab->r.processors;
  lab->guards = g = (gcl_guards *)gpuir__alloc_zero(&lab->r.a, sizeof *g);
  if (!g) return gpuir__fail_nomem(err);
  GC_TRY(cudaStreamCreateWithFlags(&g->stream, cudaStreamNonBlocking), "creating a stream");
  GC_TRY(cudaHostAlloc((void **)&g->words, size, cudaHostAllocMapped), "allocating pinned memory");
  memset(g->words, 0, size);
  GC_TRY(cudaHostGetDevicePointer((void **)&g->words_device, g->words, 0), "mapping memory");
  return GPUIR_OK;
}

/* Makes what guards need, once. */
static int gcl_guards_open(gpuir_cuda_lab *lab, gpuir_error *err) {
  const int status = lab->guards ? GPUIR_OK : gcl_guards_make(lab, err);
  if (status) gcl_guards_close(lab);
  return status;
}

/* Lets n blocks, fewer than there are multiprocessors, take one each, and waits until they have. */
static int gcl_guards_come(gpuir_cuda_lab *lab, unsigned n, gpuir_error *err) {
  gcl_guards *g = lab->guards;
  uint64_t since;
  int most = 0;
  GC_TRY(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, lab->r.device),
      "looking at the device");
  GC_TRY(cudaFuncSetAttribute(gcl_guard, cudaFuncAttributeMaxDynamicSharedMemorySize, most), "sizing a launch");
  gcl_guard<<<n, 1, (size_t)most, g->stream>>>(g->words_device, ++g->number);
  GC_TRY(cudaGetLastError(), "taking multiprocessors");
  since = gpuir__now(); /* the first launch may load the kernel */
  while (!gcl_guards_stand(g, n))
    if (gpuir__now() - since > 2000000000u) {
      gcl_guards_leave(lab);
      return gpuir__fail(err, GPUIR_E_LIMIT, 0, "CUDA: only some of %u multiprocessors are free", n);
    }
  lab->r.processors = lab->all_processors - (int)n;
  return GPUIR_OK;
}

/* ---- a batch ---- */

/* Finds where each query's results go: one block of threads. */
static __global__ void __launch_bounds__(GCL_THREADS) gcl_starts(const uint32_t *count, uint32_t nq, uint32_t *start) {
  uint32_t before = 0, i;
  for (i = 0; i < nq; i += GCL_THREADS) {
    const uint32_t q = i + threadIdx.x, n = q < nq ? count[q] : 0;
    uint32_t all;
    const uint32_t sum = gc_block_scan<GCL_THREADS>(n, &all);
    if (q < nq) start[q] = before + sum - n;
    before += all;
  }
  if (!threadIdx.x) start[nq] = before;
}

/* Moves each query's results behind those of the one before. */
static __global__ void __launch_bounds__(GCL_THREADS)
    gcl_pack(const __grid_constant__ gcl_batch b, const uint32_t *start, int side) {
  uint32_t q, i;
  for (q = blockIdx.x; q < b.nq; q += gridDim.x)
    for (i = threadIdx.x; i < b.count[q]; i += blockDim.x)
      b.cand[side ^ 1][start[q] + i] = b.cand[side][b.queries[q].base + i];
}

/* Launches a batch, and fetches its counts and where the results of each query begin. */
static int gcl_batch_run(gpuir_cuda_lab *lab, gcl_run *run, uint32_t *counts, uint32_t *all, gpuir_error *err) {
  gcl_runner *r = &lab->r;
  gcl_steps *s = lab->steps;
  const uint32_t nq = r->batch.nq;
  uint32_t *start = r->batch.pos[0]; /* free behind the run */
  int status;
  GC_TRY(cudaEventRecord(s->mark[0], r->stream), "timing");
  run->sent = s->mark[1];
  status = gcl_launch_run(r, run, err);
  if (status) return status;
  gcl_starts<<<1, GCL_THREADS, 0, r->stream>>>(r->batch.count, nq, start);
  gcl_pack<<<gcl_grid(r, nq, 1), GCL_THREADS, 0, r->stream>>>(r->batch, start, run->side);
  GC_TRY(cudaGetLastError(), "packing results");
  GC_TRY(cudaEventRecord(s->mark[2], r->stream), "timing");
  GC_TRY(cudaMemcpyAsync(s->fetched, r->batch.count, (size_t)nq * 4, cudaMemcpyDeviceToHost, r->stream),
      "fetching counts");
  GC_TRY(cudaMemcpyAsync(s->fetched + nq, start + nq, 4, cudaMemcpyDeviceToHost, r->stream), "fetching counts");
  GC_TRY(cudaStreamSynchronize(r->stream), "running kernels");
  memcpy(counts, s->fetched, (size_t)nq * 4);
  *all = s->fetched[nq];
  return GPUIR_OK;
}

/* Fetches all results of a batch, and the times of its parts. */
static int gcl_batch_fetch(gpuir_cuda_lab *lab, const gcl_run *run, uint32_t all, uint32_t *docids,
    gpuir_cuda_lab_parts *parts, gpuir_error *err) {
  gcl_steps *s = lab->steps;
  float ms[3];
  unsigned i;
  GC_TRY(cudaMemcpyAsync(s->fetched, lab->r.batch.cand[run->side ^ 1], (size_t)all * 4, cudaMemcpyDeviceToHost,
             lab->r.stream),
      "fetching docIDs");
  GC_TRY(cudaEventRecord(s->mark[3], lab->r.stream), "timing");
  GC_TRY(cudaStreamSynchronize(lab->r.stream), "fetching docIDs");
  memcpy(docids, s->fetched, (size_t)all * 4);
  for (i = 0; i < 3; i++) GC_TRY(cudaEventElapsedTime(&ms[i], s->mark[i], s->mark[i + 1]), "timing");
  parts->send = (double)ms[0];
  parts->run = (double)ms[1];
  parts->fetch = (double)ms[2];
  return GPUIR_OK;
}

/* ---- a query in rounds ---- */

/* Tells the host how many candidates a round has left. */
static __global__ void gcl_tell(const uint32_t *count, unsigned long long *told, uint32_t sequence) {
  *(volatile unsigned long long *)told = (unsigned long long)sequence << 32 | *count;
  __threadfence_system();
}

/* Returns the list of a round. */
static uint32_t gcl_list_of(const gpuir_cuda_lab *lab, uint32_t round) {
  const uint32_t *sorted = (const uint32_t *)(const void *)((const gcl_query *)(const void *)lab->r.plan + 1);
  return sorted[round];
}

/* Returns whether a round needs some blocks of its list: it goes by skip pointers, and these stand alone. */
static bool gcl_needs_blocks(const gpuir_cuda_lab *lab, uint32_t round) {
  const gcl_steps *s = lab->steps;
  const uint32_t n = lab->r.n[gcl_list_of(lab, round)];
  if (!lab->marks || !round || n < GPUIR__BLOCK || s->run.how == GCL_MERGEPATH) return false;
  return s->run.how != GCL_GRIFFIN || !((float)n < lab->r.batch.crossover * (float)s->left);
}

/* Sends a list's skip pointers, and fetches the blocks in which they say that candidates may be. */
static int gcl_send_blocks(gpuir_cuda_lab *lab, uint32_t round, gpuir_error *err) {
  gcl_runner *r = &lab->r;
  const uint32_t list = gcl_list_of(lab, round), blocks = (r->n[list] + GPUIR__BLOCK - 1) / GPUIR__BLOCK;
  const uint64_t at = lab->image_at[list];
  GC_TRY(cudaMemcpyAsync(lab->slab + at, lab->image + at, (size_t)blocks * 9, cudaMemcpyHostToDevice, r->stream),
      "sending skip pointers");
  GC_TRY(cudaMemsetAsync(lab->marks, 0, blocks, r->stream), "clearing marks");
  gcl_mark_blocks<<<gcl_grid(r, lab->steps->left, GCL_THREADS), GCL_THREADS, 0, r->stream>>>(r->batch, round,
      lab->steps->run.side, lab->marks);
  gcl_pull_blocks<<<gcl_grid(r, blocks, GCL_WARPS), GCL_THREADS, 0, r->stream>>>(r->batch, round, lab->marks,
      lab->image, lab->slab);
  GC_TRY(cudaGetLastError(), "sending blocks");
  return GPUIR_OK;
}

/* Sends a list of the query, if lists are sent: all of it, or what the round needs. */
static int gcl_send_list(gpuir_cuda_lab *lab, uint32_t round, gpuir_error *err) {
  uint64_t at, end;
  if (!lab->image) return GPUIR_OK;
  if (gcl_needs_blocks(lab, round)) return gcl_send_blocks(lab, round, err);
  at = lab->image_at[gcl_list_of(lab, round)];
  end = lab->image_at[gcl_list_of(lab, round) + 1];
  GC_TRY(cudaMemcpyAsync(lab->slab + at, lab->image + at, end - at, cudaMemcpyHostToDevice, lab->r.stream),
      "sending a list");
  return GPUIR_OK;
}

/* Sends the query and its shortest list, whose docIDs are the candidates. */
static int gcl_rounds_begin(gpuir_cuda_lab *lab, gpuir_error *err) {
  gcl_runner *r = &lab->r;
  gcl_steps *s = lab->steps;
  gcl_batch *b = &r->batch;
  int status;
  GC_TRY(cudaMemcpyAsync(r->plan_device, r->plan, s->run.plan, cudaMemcpyHostToDevice, r->stream), "sending queries");
  status = gcl_send_list(lab, 0, err);
  if (status) return status;
  gcl_begin<<<1, GCL_THREADS, 0, r->stream>>>(b->queries, b->nq, (uint32_t *)b->chunk_query, b->count);
  if (s->run.coded) gcl_seed_of(r->codec)<<<gcl_grid(r, b->nchunks, GCL_WARPS), GCL_THREADS, 0, r->stream>>>(*b);
  GC_TRY(cudaGetLastError(), "beginning a query");
  s->left = ((const gcl_query *)(const void *)r->plan)->m;
  s->plain = !s->run.coded;
  return GPUIR_OK;
}

static int gcl_rounds_next(gpuir_cuda_lab *lab, gpuir_error *err) {
  gcl_runner *r = &lab->r;
  gcl_steps *s = lab->steps;
  const int status = gcl_send_list(lab, ++s->round, err);
  if (status) return status;
  (void)gcl_launch_round(r, &s->run, s->round, s->run.side, s->plain);
  gcl_launch_gather(r, s->run.side, s->plain, s->plain ? 0 : s->run.side ^ 1);
  if (!s->plain) s->run.side ^= 1;
  s->plain = false;
  gcl_tell<<<1, 1, 0, r->stream>>>(r->batch.count, s->told_device, ++s->sequence);
  GC_TRY(cudaGetLastError(), "intersecting");
  s->waiting = 1;
  return GPUIR_OK;
}

#define GCL_POLLS 4096u /* looks at the word, after which the stream is asked whether it failed */

static int gcl_rounds_poll(gpuir_cuda_lab *lab, uint32_t *left, gpuir_error *err) {
  gcl_steps *s = lab->steps;
  const unsigned long long told = *s->told;
  cudaError_t e;
  if ((uint32_t)(told >> 32) == s->sequence) {
    *left = s->left = (uint32_t)told;
    s->waiting = 0;
    return 1;
  }
  if (++s->polls % GCL_POLLS) return 0;
  e = cudaStreamQuery(lab->r.stream);
  if (e == cudaErrorNotReady) (void)cudaGetLastError();
  else GC_TRY(e, "intersecting");
  return 0;
}

/* ---- its scores ---- */

#define GCL_QUERY_SIZE (GPUIR_MAX_TERMS * sizeof(gc_term) + sizeof(gcl_job))

/* Makes room to score a query's candidates, once; where it failed before, what is missing of it. */
static int gcl_scoring_open(gpuir_cuda_lab *lab, gpuir_error *err) {
  gcl_steps *s = lab->steps;
  const uint64_t room = (lab->r.room + GPUIR__BLOCK) * 8;
  int status = GPUIR_OK;
  if (s->keys) return GPUIR_OK;
  if (!s->terms) GC_TRY(cudaMallocHost((void **)&s->terms, GCL_QUERY_SIZE), "allocating pinned memory");
  if (!s->terms_device) status = gcl_device_alloc(&lab->r, GCL_QUERY_SIZE, (void **)&s->terms_device, err);
  if (!status && !s->keys_device) status = gcl_device_alloc(&lab->r, room, (void **)&s->keys_device, err);
  if (!status) GC_TRY(cudaMallocHost((void **)&s->keys, room), "allocating pinned memory");
  return status;
}

/* Scores the candidates that are left of the query, whose lists are those of q's terms, and fetches their keys. */
static int gcl_rounds_score(gpuir_cuda_lab *lab, const gpuir_cuda *c, const gpuir_query *q, gpuir_error *err) {
  gcl_steps *s = lab->steps;
  gcl_job *job = (gcl_job *)(void *)(s->terms + GPUIR_MAX_TERMS);
  const cudaStream_t stream = lab->r.stream;
  unsigned i;
  gcl_describe_norm(q, job);
  for (i = 0; i < q->n; i++) {
    gpuir__list l;
    uint32_t id;
    const int status = gcl_describe_term(c, q, i, &s->terms[i], &l, &id, err);
    if (status) return status;
  }
  job->job.nterms = job->job.npositive = q->n;
  GC_TRY(cudaMemcpyAsync(s->terms_device, s->terms, GCL_QUERY_SIZE, cudaMemcpyHostToDevice, stream), "sending a query");
  gcl_score<<<gcl_grid(&lab->r, lab->r.batch.nchunks, GCL_WARPS), GCL_THREADS, 0, stream>>>(c->view, lab->r.batch,
      s->terms_device, (const gcl_job *)(const void *)(s->terms_device + GPUIR_MAX_TERMS), s->run.side, NULL,
      s->keys_device);
  GC_TRY(cudaGetLastError(), "scoring");
  GC_TRY(cudaMemcpyAsync(s->keys, s->keys_device, (size_t)s->left * 8, cudaMemcpyDeviceToHost, stream),
      "fetching keys");
  GC_TRY(cudaStreamSynchronize(stream), "scoring");
  return GPUIR_OK;
}

/* ========================
 * [lab-cuda-09-api]  the C interface, declared in gpuir_lab.h
 * ======================*/

/* Finds a way of the thesis by its name, and refuses a list of another codec, or without room. */
static int gcl_find_thesis(const gpuir_cuda_lab *lab, size_t first, size_t n, const char *how, size_t *way,
    gpuir_error *err) {
  size_t i;
  for (*way = 0; *way < GCL_THESIS && strcmp(how, gcl_thesis[*way].name) != 0; ++*way) {}
  if (lab->r.codec != GPUIR__ID_QS || *way == GCL_THESIS)
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "no list of this codec is decoded by a way named \"%s\"", how);
  if (!lab->r.queries)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "the thesis' way needs a lab with room for queries");
  for (i = first; i < first + n; i++)
    if (lab->bytes[i % lab->r.nlists] * 8 > lab->r.room)
      return gpuir__fail(err, GPUIR_E_LIMIT, 0, "the list's bits are more than the lab's room");
  return GPUIR_OK;
}

/* Refuses a lab whose lists are on the device in rounds alone. */
static int gcl_refuse_sent(const gpuir_cuda_lab *lab, gpuir_error *err) {
  return lab->image ? gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "the lab's lists are sent, which rounds alone do")
                    : GPUIR_OK;
}

/* Compares what was decoded with the lists as they were given. */
static int gcl_compare(gpuir_cuda_lab *lab, size_t first, size_t n, gpuir_cuda_lab_result *result, gpuir_error *err) {
  const gcl_runner *r = &lab->r;
  unsigned long long sums[2] = {0, 0};
  GC_TRY(cudaMemsetAsync(lab->sums, 0, sizeof sums, r->stream), "clearing memory");
  gcl_verify<<<(unsigned)r->processors * 8, GCL_THREADS, 0, r->stream>>>(r->lists, lab->where, lab->start[first],
      lab->start[first + n], r->out, lab->sums);
  GC_TRY(cudaGetLastError(), "comparing");
  GC_TRY(cudaMemcpyAsync(sums, lab->sums, sizeof sums, cudaMemcpyDeviceToHost, r->stream), "comparing");
  GC_TRY(cudaStreamSynchronize(r->stream), "comparing");
  result->mismatches = sums[0];
  result->checksum = sums[1];
  return GPUIR_OK;
}

/* Fetches the docIDs of lists that were decoded. */
static int gcl_fetch_docs(const gpuir_cuda_lab *lab, size_t first, size_t n, uint32_t *out, gpuir_error *err) {
  size_t i;
  for (i = first; i < first + n; i++) {
    const uint32_t length = lab->r.n[i % lab->r.nlists];
    GC_TRY(cudaMemcpy(out, lab->r.out + (size_t)(lab->start[i] - lab->start[first]) * GPUIR__BLOCK, (size_t)length * 4,
               cudaMemcpyDeviceToHost),
        "fetching docIDs");
    out += length;
  }
  return GPUIR_OK;
}

/* Sends the keys of candidates, and where each query's begin. */
static int gcl_send_keys(gcl_runner *r, const gcl_topk *t, const unsigned long long *keys, const uint32_t *start,
    gpuir_error *err) {
  GC_TRY(cudaMemcpy((void *)t->keys, keys, (size_t)start[t->nq] * 8, cudaMemcpyHostToDevice), "sending keys");
  GC_TRY(cudaMemset(t->out, 0, (size_t)t->nq * t->k * 8), "clearing keys"); /* some queries fill fewer */
  GC_TRY(cudaMemcpy((void *)t->start, start, ((size_t)t->nq + 1) * 4, cudaMemcpyHostToDevice), "sending keys");
  (void)r;
  return gcl_shape_selections(err);
}

/* Ranks keys that are in host memory, and leaves the best of each query behind them. */
static int gcl_rank_keys(gpuir_cuda_lab *lab, gcl_topk *t, int how, unsigned repeat, const uint32_t *start,
    unsigned long long *keys, double *ms, gpuir_error *err) {
  gcl_runner *r = &lab->r;
  unsigned long long *best = keys + start[t->nq], *copy = (unsigned long long *)r->batch.cand[1];
  int status;
  t->keys = (const unsigned long long *)r->out; /* room for half as many keys as docIDs */
  t->spare = (unsigned long long *)r->batch.cand[0];
  t->out = (unsigned long long *)r->batch.pos[0];
  t->start = (const uint32_t *)r->batch.pos[1];
  t->count = NULL;
  for (t->size = 2; t->size < t->k; t->size *= 2) {}
  status = gcl_send_keys(r, t, keys, start, err);
  if (status) return status;
  if (how == GCL_PARTIAL_SORT) return gcl_partial_sort(r, t, start, repeat, keys, best, ms, err);
  status = gcl_time(
      lab, repeat, ms, [&] { return gcl_launch_topk(r, t, how, copy, err); }, err);
  if (status) return status;
  GC_TRY(cudaMemcpy(best, t->out, (size_t)t->nq * t->k * 8, cudaMemcpyDeviceToHost), "fetching keys");
  return GPUIR_OK;
}

/* Makes a lab's arrays on the host. */
static int gcl_make_arrays(gpuir_cuda_lab *lab, const gpuir_cuda_lab_desc *desc) {
  gcl_runner *r = &lab->r;
  uint8_t *at;
  unsigned g;
  r->nlists = desc->nlists;
  r->all = desc->nlists * (desc->copies ? desc->copies : 1);
  lab->host_size = r->nlists * 12 + (r->all + 1) * 4 * (1 + GCL_GROUPS) + r->nlists * 4 * GCL_GROUPS + 1024;
  lab->host = gpuir__alloc_zero(&r->a, lab->host_size);
  if (!lab->host) return GPUIR_E_NOMEM;
  at = (uint8_t *)(((uintptr_t)lab->host + 63) & ~(uintptr_t)63);
  lab->bytes = (uint64_t *)gc_carve(&at, r->nlists * 8);
  r->n = (uint32_t *)gc_carve(&at, r->nlists * 4);
  lab->start = (uint32_t *)gc_carve(&at, (r->all + 1) * 4);
  for (g = 0; g < GCL_GROUPS; g++) lab->nodes.start[g] = (uint32_t *)gc_carve(&at, (r->all + r->nlists) * 4);
  return GPUIR_OK;
}

/* Finds a name in a table; returns n if it is not there. */
static int gcl_index_of(const char *const *names, int n, const char *name) {
  int i = 0;
  while (i < n && strcmp(names[i], name) != 0) i++;
  return i;
}

/* Fills a run's method. */
static int gcl_choose_way(const gpuir_cuda_lab *lab, const gpuir_cuda_lab_way *way, gcl_run *run, gpuir_error *err) {
  run->how = gcl_index_of(gcl_methods, GCL_METHODS, way->method);
  if (run->how == GCL_METHODS)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "the device knows no intersection named \"%s\"", way->method);
  run->coded = way->coded;
  run->levels = run->how >= GCL_PMF && run->how < GCL_MERGEPATH ? (unsigned)(run->how - GCL_PMF) : 0;
  if (gcl_is_algorithm1(run->how) && (!run->coded || !gcl_algorithm1_of(lab->r.codec, run->how == GCL_ALGORITHM1)))
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "%s searches lists coded as lrc, lrcseg, seglrc%s", way->method,
        run->how == GCL_ALGORITHM1 ? " or hslrc" : "");
  if (run->coded && run->how > GCL_BINARY && run->how < GCL_PMF)
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "%s searches lists that are not coded", way->method);
  if (lab->coded && !run->coded) return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "the lab has coded lists alone");
  return GPUIR_OK;
}

extern "C" {

void gpuir_cuda_lab_close(gpuir_cuda_lab *lab) {
  gpuir_allocator a;
  if (!lab) return;
  a = lab->r.a;
  (void)cudaSetDevice(lab->r.device);
  gcl_guards_close(lab);
  if (lab->r.stream) (void)cudaStreamSynchronize(lab->r.stream);
  gcl_steps_close(lab);
  (void)cudaFreeHost(lab->image);
  if (lab->image_at) gpuir__free(&a, lab->image_at, (lab->r.nlists + 1) * sizeof *lab->image_at);
  while (lab->r.nmemory) (void)cudaFree(lab->r.memory[--lab->r.nmemory]);
  (void)cudaFreeHost(lab->r.plan);
  if (lab->before) (void)cudaEventDestroy(lab->before);
  if (lab->after) (void)cudaEventDestroy(lab->after);
  if (lab->r.stream) (void)cudaStreamDestroy(lab->r.stream);
  (void)cudaGetLastError();
  gpuir__free(&a, lab->host, lab->host_size);
  gpuir__free(&a, lab, sizeof *lab);
}

int gpuir_cuda_lab_open(const gpuir_cuda_lab_desc *desc, gpuir_cuda_lab **out, gpuir_error *err) {
  const gpuir_allocator a = gpuir__allocator(NULL);
  gpuir_cuda_lab *lab;
  gcl_image image;
  int status;
  if (!out) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_lab_open: NULL");
  *out = NULL;
  if (!desc || !desc->nlists || !desc->lists || !desc->lengths || desc->nlists >> 24)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_lab_open: no lists, or too many");
  lab = (gpuir_cuda_lab *)gpuir__alloc_zero(&a, sizeof *lab);
  if (!lab) return gpuir__fail_nomem(err);
  lab->r.a = a;
  memset(&image, 0, sizeof image);
  if (gcl_make_arrays(lab, desc)) status = gpuir__fail_nomem(err);
  else status = gcl_open(lab, desc, &image, err);
  gcl_image_free(&a, &image);
  if (status) gpuir_cuda_lab_close(lab);
  else *out = lab;
  return status;
}

int gpuir_cuda_lab_decode(gpuir_cuda_lab *lab, size_t first, size_t n, const char *how, unsigned repeat, uint32_t *out,
    gpuir_cuda_lab_result *result, gpuir_error *err) {
  const int sum = !how || strcmp(how, "gaps") != 0, thesis = how && sum;
  gpuir_cuda_lab_result r;
  size_t way = 0, i, blocks;
  int status = GPUIR_OK;
  memset(&r, 0, sizeof r);
  if (!lab || first > lab->r.all || n > lab->r.all - first || !n)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_lab_decode: no such lists");
  status = gcl_refuse_sent(lab, err);
  if (status) return status;
  if (thesis) status = gcl_find_thesis(lab, first, n, how, &way, err);
  if (status) return status;
  blocks = lab->start[first + n] - lab->start[first];
  if ((uint64_t)blocks * GPUIR__BLOCK > lab->r.room)
    return gpuir__fail(err, GPUIR_E_LIMIT, 0, "the lists are longer than the lab's room");
  GC_TRY(cudaSetDevice(lab->r.device), "choosing the device");
  GC_TRY(cudaMemsetAsync(lab->r.out, 0xff, blocks * GPUIR__BLOCK * 4, lab->r.stream), "clearing memory");
  for (i = 0; thesis && i < 3 && !status; i++)
    status = gcl_time(
        lab, repeat, &r.step_ms[i], [&] { return gcl_launch_thesis(lab, first, first + n, way, (unsigned)i + 1, err); },
        err);
  if (!status)
    status = gcl_time(
        lab, repeat, &r.ms,
        [&] {
          return thesis ? gcl_launch_thesis(lab, first, first + n, way, 4, err)
                        : gcl_launch_decode(lab, first, first + n, sum, lab->r.out, err);
        },
        err);
  for (i = first; i < first + n; i++) {
    r.values += lab->r.n[i % lab->r.nlists];
    r.bytes += lab->bytes[i % lab->r.nlists];
  }
  if (!status && sum) status = gcl_compare(lab, first, n, &r, err);
  if (!status && out) status = gcl_fetch_docs(lab, first, n, out, err);
  if (!status && result) *result = r;
  return status;
}

int gpuir_cuda_lab_copy(gpuir_cuda_lab *lab, unsigned repeat, gpuir_cuda_lab_result *result, gpuir_error *err) {
  gpuir_cuda_lab_result r;
  size_t half;
  int status;
  if (!lab || !result) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_lab_copy: NULL");
  memset(&r, 0, sizeof r);
  half = (size_t)(lab->r.room / 2) * 4;
  GC_TRY(cudaSetDevice(lab->r.device), "choosing the device");
  status = gcl_time(
      lab, repeat, &r.ms,
      [&] {
        GC_TRY(cudaMemcpyAsync(lab->r.out, lab->r.out + lab->r.room / 2, half, cudaMemcpyDeviceToDevice, lab->r.stream),
            "copying");
        return (int)GPUIR_OK;
      },
      err);
  r.values = r.bytes = 2 * (uint64_t)half;
  if (!status) *result = r;
  return status;
}

const char *gpuir_cuda_lab_method(size_t i) { return i < GCL_METHODS ? gcl_methods[i] : NULL; }

int gpuir_cuda_lab_intersect(gpuir_cuda_lab *lab, const uint32_t *lists, const uint32_t *start, size_t nq,
    const gpuir_cuda_lab_way *way, uint32_t *counts, uint32_t *docids, gpuir_cuda_lab_result *result,
    gpuir_error *err) {
  gpuir_cuda_lab_result r;
  gcl_run run;
  size_t q;
  int status;
  memset(&r, 0, sizeof r);
  memset(&run, 0, sizeof run);
  if (!lab || !lab->r.queries || !lists || !start || !nq || !way || !way->method)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_lab_intersect: nothing to do, or no room for queries");
  status = gcl_refuse_sent(lab, err);
  if (!status) status = gcl_choose_way(lab, way, &run, err);
  if (status) return status;
  GC_TRY(cudaSetDevice(lab->r.device), "choosing the device");
  lab->r.batch.crossover = run.how == GCL_MERGEPATH ? 1e30f : way->crossover > 0 ? (float)way->crossover : 128.0f;
  status = gcl_plan_run(&lab->r, lists, start, nq, &run, err);
  if (!status)
    status = gcl_time(
        lab, way->repeat, &r.ms, [&] { return gcl_launch_run(&lab->r, &run, err); }, err);
  if (status) return status;
  for (q = 0; q < nq; q++) r.values += ((const gcl_query *)(const void *)lab->r.plan)[q].m;
  GC_TRY(cudaMemcpy(counts, lab->r.batch.count, nq * 4, cudaMemcpyDeviceToHost), "fetching counts");
  for (q = 0; q < nq; q++) {
    const gcl_query *query = (const gcl_query *)(const void *)lab->r.plan + q;
    r.checksum += counts[q];
    if (!docids) continue;
    GC_TRY(cudaMemcpy(docids, lab->r.batch.cand[run.side] + query->base, (size_t)counts[q] * 4, cudaMemcpyDeviceToHost),
        "fetching docIDs");
    docids += counts[q];
  }
  if (result) *result = r;
  return GPUIR_OK;
}

int gpuir_cuda_lab_batch(gpuir_cuda_lab *lab, const uint32_t *lists, const uint32_t *start, size_t nq,
    const gpuir_cuda_lab_way *way, uint32_t *counts, uint32_t *docids, uint64_t room, gpuir_cuda_lab_parts *parts,
    gpuir_error *err) {
  const uint64_t since = gpuir__now();
  uint32_t all = 0;
  gcl_run run;
  int status;
  memset(&run, 0, sizeof run);
  if (!lab || !lab->r.queries || !lists || !start || !nq || !way || !way->method || !counts || !docids || !parts)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_lab_batch: nothing to do, or no room for queries");
  status = gcl_refuse_sent(lab, err);
  if (!status) status = gcl_choose_way(lab, way, &run, err);
  if (status) return status;
  GC_TRY(cudaSetDevice(lab->r.device), "choosing the device");
  status = gcl_steps_open(lab, gpuir__max64(gpuir__max64(room, nq + 1), lab->r.room), err);
  lab->r.batch.crossover = run.how == GCL_MERGEPATH ? 1e30f : way->crossover > 0 ? (float)way->crossover : 128.0f;
  if (!status) status = gcl_plan_run(&lab->r, lists, start, nq, &run, err);
  parts->plan = (double)(gpuir__now() - since) / 1e6;
  if (!status) status = gcl_batch_run(lab, &run, counts, &all, err);
  if (!status && all > room) status = gpuir__fail(err, GPUIR_E_LIMIT, 0, "more results than there is room for");
  return status ? status : gcl_batch_fetch(lab, &run, all, docids, parts, err);
}

int gpuir_cuda_lab_confine(gpuir_cuda_lab *lab, unsigned processors, gpuir_error *err) {
  int status;
  if (!lab) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_lab_confine: NULL");
  GC_TRY(cudaSetDevice(lab->r.device), "choosing the device");
  GC_TRY(cudaStreamSynchronize(lab->r.stream), "running kernels");
  status = gcl_steps_open(lab, lab->r.room, err); /* allocating would wait for the guards */
  if (!status) status = gcl_guards_open(lab, err);
  gcl_guards_leave(lab);
  if (status || !processors || processors >= (unsigned)lab->r.processors) return status;
  return gcl_guards_come(lab, (unsigned)lab->r.processors - processors, err);
}

int gpuir_cuda_lab_begin(gpuir_cuda_lab *lab, const uint32_t *lists, size_t k, const gpuir_cuda_lab_way *way,
    gpuir_error *err) {
  const uint32_t start[2] = {0, (uint32_t)k};
  gcl_steps *s;
  int status;
  if (!lab || !lab->r.queries || !lists || !k || k > GPUIR_MAX_TERMS || !way || !way->method)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_lab_begin: nothing to do, or no room for queries");
  GC_TRY(cudaSetDevice(lab->r.device), "choosing the device");
  status = gcl_steps_open(lab, 1, err);
  if (status) return status;
  s = lab->steps;
  if (s->waiting) GC_TRY(cudaStreamSynchronize(lab->r.stream), "dropping a query"); /* its plan may be on its way */
  s->waiting = 0;
  s->round = 0;
  memset(&s->run, 0, sizeof s->run);
  status = gcl_choose_way(lab, way, &s->run, err);
  if (!status && (s->run.how < GCL_MERGEPATH || s->run.how > GCL_GRIFFIN || lab->r.codec == GPUIR__ID_PFL))
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "rounds are of mergepath, griffin or skip, not in pfd-list");
  lab->r.batch.crossover = s->run.how == GCL_MERGEPATH ? 1e30f : way->crossover > 0 ? (float)way->crossover : 128.0f;
  if (!status) status = gcl_plan_run(&lab->r, lists, start, 1, &s->run, err);
  return status ? status : gcl_rounds_begin(lab, err);
}

int gpuir_cuda_lab_next(gpuir_cuda_lab *lab, gpuir_error *err) {
  if (!lab || !lab->steps || lab->steps->waiting || lab->steps->round >= lab->steps->run.rounds)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_lab_next: there is no further list");
  return gcl_rounds_next(lab, err);
}

int gpuir_cuda_lab_poll(gpuir_cuda_lab *lab, uint32_t *left, gpuir_error *err) {
  if (!lab || !lab->steps || !lab->steps->waiting || !left)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_lab_poll: no round runs");
  return gcl_rounds_poll(lab, left, err);
}

int gpuir_cuda_lab_fetch(gpuir_cuda_lab *lab, uint32_t *docids, gpuir_error *err) {
  const uint32_t *from;
  gcl_steps *s;
  int status;
  if (!lab || !lab->steps || lab->steps->waiting || !docids)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_lab_fetch: no query, or a round that runs");
  status = gcl_steps_open(lab, lab->steps->left, err);
  if (status) return status;
  s = lab->steps;
  if (s->plain) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_lab_fetch: lists as they are, and no round");
  from = lab->r.batch.cand[s->run.side];
  GC_TRY(cudaMemcpyAsync(s->fetched, from, (size_t)s->left * 4, cudaMemcpyDeviceToHost, lab->r.stream),
      "fetching docIDs");
  GC_TRY(cudaStreamSynchronize(lab->r.stream), "fetching docIDs");
  memcpy(docids, s->fetched, (size_t)s->left * 4);
  return GPUIR_OK;
}

int gpuir_cuda_lab_score(gpuir_cuda_lab *lab, gpuir_cuda *cuda, const gpuir_query *query, gpuir_hit *hits,
    gpuir_error *err) {
  uint32_t i;
  int status;
  if (!lab || !cuda || !query || !hits || !lab->steps || lab->steps->waiting || lab->steps->plain)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_lab_score: no query, or a round that runs");
  if (cuda->team || cuda->cache)
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "CUDA: the index is not all on one device");
  for (i = 0; i < query->n; i++)
    if (query->terms[i].negated)
      return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "gpuir_cuda_lab_score: not a conjunction of terms");
  GC_TRY(cudaSetDevice(lab->r.device), "choosing the device");
  status = gcl_scoring_open(lab, err);
  if (!status) status = gcl_rounds_score(lab, cuda, query, err);
  for (i = 0; !status && i < lab->steps->left; i++) {
    hits[i].docid = ~(uint32_t)lab->steps->keys[i];
    hits[i].score = (uint32_t)(lab->steps->keys[i] >> 32);
  }
  return status;
}

const char *gpuir_cuda_lab_ranking(size_t i) { return i < GCL_RANKINGS ? gcl_rankings[i] : NULL; }

int gpuir_cuda_lab_topk(gpuir_cuda_lab *lab, const gpuir_hit *candidates, const uint32_t *start, size_t nq, size_t k,
    const char *ranking, unsigned repeat, gpuir_hit *hits, uint32_t *counts, gpuir_cuda_lab_result *result,
    gpuir_error *err) {
  gpuir_cuda_lab_result r;
  gcl_topk t;
  unsigned long long *keys;
  uint64_t n;
  size_t q, i;
  int how, status;
  memset(&r, 0, sizeof r);
  if (!lab || !lab->r.queries || !candidates || !start || !nq || !k || !ranking || !hits || !counts)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_lab_topk: nothing to do, or no room for queries");
  how = gcl_index_of(gcl_rankings, GCL_RANKINGS, ranking);
  if (how == GCL_RANKINGS)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "the device knows no ranking named \"%s\"", ranking);
  n = start[nq];
  if (nq > lab->r.queries || k > GC_K_MOST || n > lab->r.room / 2 || nq * (uint64_t)k > lab->r.room / 2)
    return gpuir__fail(err, GPUIR_E_LIMIT, 0, "more candidates or hits than the lab has room for");
  GC_TRY(cudaSetDevice(lab->r.device), "choosing the device");
  keys = (unsigned long long *)gpuir__alloc(&lab->r.a, (size_t)(n + nq * k + 1) * 8);
  if (!keys) return gpuir__fail_nomem(err);
  for (i = 0; i < n; i++) keys[i] = gpuir__key(candidates[i].score, candidates[i].docid);
  t.nq = (uint32_t)nq;
  t.k = (uint32_t)k;
  status = gcl_rank_keys(lab, &t, how, repeat, start, keys, &r.ms, err);
  for (q = 0; q < nq && !status; q++) {
    counts[q] = (uint32_t)gpuir__min64(k, start[q + 1] - start[q]);
    for (i = 0; i < counts[q]; i++) {
      const unsigned long long key = keys[n + q * k + i];
      hits[q * k + i].docid = ~(uint32_t)key;
      hits[q * k + i].score = (uint32_t)(key >> 32);
    }
  }
  gpuir__free(&lab->r.a, keys, (size_t)(n + nq * k + 1) * 8);
  r.values = n;
  if (!status && result) *result = r;
  return status;
}

int gpuir_cuda_lab_attach(gpuir_searcher *s, gpuir_cuda *cuda, const char *intersection, const char *ranking,
    int fallback, gpuir_error *err) {
  static const gpuir_backend backend = {GPUIR_BACKEND_VERSION, "cuda-lab", NULL, gcl_begin, gcl_poll, gcl_finish,
      gcl_detach};
  gcl_searcher *x;
  int how, rank, status;
  if (!s || !cuda) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_lab_attach: NULL");
  if (s->layout != gpuir__searcher_layout()) return gc_refuse(err, "gpuir_cuda_lab_attach");
  if (s->ix != cuda->index)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_lab_attach: a searcher of another index");
  how = gcl_index_of(gcl_methods, GCL_METHODS, intersection ? intersection : "skip");
  rank = gcl_index_of(gcl_rankings, GCL_PARTIAL_SORT, ranking ? ranking : "tree");
  if (how == GCL_METHODS || rank == GCL_PARTIAL_SORT)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "the device knows no such intersection or ranking");
  if (cuda->team) return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "CUDA: the index is on several devices");
  if (cuda->cache) return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "CUDA: the index is not all on the device");
  GC_TRY(cudaSetDevice(cuda->device), "choosing the device");
  x = (gcl_searcher *)gpuir__alloc_zero(&s->engine.a, sizeof *x);
  if (!x) return gpuir__fail_nomem(err);
  x->a = s->engine.a;
  x->cuda = cuda;
  x->how = how;
  x->ranking = rank;
  status = gcl_shelf_open(x, err);
  if (!status &&
      ((how > GCL_BINARY && how < GCL_PMF) ||
          (gcl_is_algorithm1(how) && !gcl_algorithm1_of(x->r.codec, how == GCL_ALGORITHM1))))
    status = gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "%s does not search lists coded as %s", gcl_methods[how],
        x->shelf.coding.codec ? x->shelf.coding.codec->name : "bp128");
  if (!status) status = gcl_attach(x, err);
  return gc_set_backend(s, &backend, x, status, fallback, err);
}

int gpuir_cuda_lab_steps(const gpuir_searcher *s, double ms[2][GPUIR_CUDA_LAB_STEPS], gpuir_error *err) {
  if (s && s->layout != gpuir__searcher_layout()) return gc_refuse(err, "gpuir_cuda_lab_steps");
  if (!s || !ms || !s->has_backend || s->backend.finish != gcl_finish)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_lab_steps: not a searcher of the laboratory");
  memcpy(ms, ((const gcl_searcher *)s->backend.context)->ms, sizeof(double[2][GPUIR_CUDA_LAB_STEPS]));
  return GPUIR_OK;
}

} /* extern "C" */
