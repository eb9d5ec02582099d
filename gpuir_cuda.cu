/* gpuir_cuda.cu - the CUDA backend of gpuir.h
 *
 * Answers batches of ranked queries on an NVIDIA GPU with the same bits as the CPU. Compile it with nvcc
 * against the same gpuir.h and link the object from C:
 *
 *     nvcc -O3 -arch=sm_90 \
 *          -Xcompiler -fno-exceptions,-fno-rtti,-fno-threadsafe-statics -c gpuir_cuda.cu -o gpuir_cuda.o
 *     cc main.o gpuir_cuda.o -lcudart_static -ldl -lrt -lpthread -lm
 *
 * The declarations stand in [api-backends] of gpuir.h. The kernels of the literature stand apart, in
 * tools/lab/gpuir_lab.cu, which includes this file.
 *
 * CONTENTS
 *   Search for a tag in brackets to get there. Each part uses only parts above it; within a part, what is called
 *   stands above what calls it, so read a part from its entry points, which stand last. All parts are tested by
 *   tests/gpu/test_cuda.c, part 4 also by tests/gpu/test_lab.c, parts 15 to 15d also by tests/gpu/test_team.c.
 *
 *     [cuda-01-shared]      what host and kernels share               gc_term gc_job gc_view gc_batch
 *     [cuda-02-primitives]  scans, owner search, selection, sort      gc_scan gc_block_scan gc_select
 *     [cuda-03-bp128]       a block by a warp; one value; its score   gc_decode_docs gc_freq gc_contribution
 *     [cuda-04-codecs]      blocks of other codecs; recoding          gc_decode gc_recode
 *     [cuda-05-expand]      expanded lists and guides                 gc_expand
 *     [cuda-05b-slices]     long lists cut at tiles of documents      gc_cut_lists
 *     [cuda-06-or]          OR: docID tiles in shared memory          gc_tiles gc_order gc_or
 *     [cuda-06b-sums]       OR without pruning: slices are added up   gc_places gc_sum_tiles
 *     [cuda-07-and]         AND; OR by MaxScore                       gc_and_decoding gc_and_guided gc_max
 *     [cuda-07b-phrases]    phrases: where in documents terms stand   gc_phrase_all gc_phrase_tfs
 *     [cuda-08-topk]        hits out of candidates                    gc_final
 *     [cuda-08b-alone]      one query alone, in one kernel            gc_alone
 *     [cuda-08c-prompt]     an AND alone with a short driver          gc_prompt
 *     [cuda-09-memory]      host: device memory, sending bytes        gc_take gc_pipe_put
 *     [cuda-10-recoder]     host: recoding lists                      gc_recode_all gc_recoder_measure
 *     [cuda-11-cache]       host: lists of an index that is too big   gc_cache_hold_all gc_cache_open
 *     [cuda-12-open]        host: the index on the device             gc_open
 *     [cuda-13-plan]        host: queries become a launch             gc_plan_query gc_stage_plan
 *     [cuda-14-launch]      host: launches, some at a time, to hits   gc_begin gc_finish gc_attach
 *     [cuda-15-partition]   host: several devices, each with a part   gt_open gt_part
 *     [cuda-15b-members]    host: a member's tasks and its thread     gt_take_some gt_member_main
 *     [cuda-15c-merge]      host: rounds of a batch, merged hits      gt_begin gt_advance gt_merge_query
 *     [cuda-15d-live]       host: snapshots of several segments       gl_open
 *     [cuda-16-api]         the C interface                           gpuir_cuda_open gpuir_cuda_attach
 *
 * WHERE THE INDEX LIES. The sections of the index are uploaded as they lie in the file. If a list is in another codec
 * than bp128, all lists are sent as they are and become bp128 on the device ([cuda-04-codecs]), the same bytes that
 * the builder would have made of them, so that no other kernel knows of codecs. From the long lists three further
 * structures are made once, when the device is opened, as far as the memory bound allows, in this order:
 *   guides: a list's marks, 1.4 to 2.8 bytes a posting (a bit for some documents: may the list hold one of these? and
 *     for each 96 bits, how many postings stand before them), and its peaks (for spans of documents, the greatest
 *     contribution there, in 4 bits). Spans are as short as the bound allows: 2 to 4 bytes a posting, where there is
 *     enough. AND passes over most postings by marks, MaxScore by peaks;
 *   expanded lists, 6.1 bytes a posting more: docIDs of 16 bits relative to their block, and contributions under the
 *     stored k1 and b. Adding a posting then takes about a third of the instructions that decoding it in place does.
 *   slices, 6 to 8 bytes a posting of the lists that are cut: the same postings once more, cut at tiles of 16,384
 *     documents and dealt out over the banks of shared memory, for OR without pruning.
 * An index that does not fit stays in its file, and lists are transferred when they are needed ([cuda-11-cache]).
 * Everything on the device counts against the bound, the memory of attached searchers too.
 *
 * WHAT OF gpuir.h IS HERE. Kernels, planning and walks through an index call functions of gpuir.h that are compiled
 * here once more, without SIMD. Whatever is large is called in the program's copy, by gpuir_index.calls: what opens
 * segments and lists, the builder that makes parts, the searchers of a team's members.
 *
 * WHY THE BITS ARE THE CPU'S. A contribution is one multiplication, one addition, one division and one rounding in
 * binary32, each rounded as IEEE 754 says; scores are integer sums, which have no order.
 */
#define GPUIR_STATIC
#define GPUIR_NO_SIMD
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"

#include <cuda_runtime.h>
#include <sys/statvfs.h>

/* ========================
 * [cuda-01-shared]  what the host and the kernels share
 *
 * Start at  gc_batch: one launch; its jobs, their terms.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

static_assert(GPUIR__BLOCK == 4 * 32, "a lane of a warp has four values of a block");
static_assert(GPUIR__BLOCK_PAIRS * sizeof(gpuir__pair) % 4 == 0, "bounds are read as words");

#define GC_NONE UINT32_MAX
#define GC_WARP 0xffffffffu /* all lanes of a warp */
#define GC_ROUNDS 4u /* of driver blocks of MaxScore: see gc_max_plan */

/* Kinds of lists: one posting, in the term itself; one block, without a directory; blocks with a directory. */
enum { GC_INLINE, GC_SHORT, GC_LONG };

/* A list, and how a query uses it. */
typedef struct gc_term {
  uint64_t docs, docs_len, freqs, freqs_len; /* bytes in the sections; GC_INLINE: docID and frequency */
  uint64_t first_block; /* GC_LONG: index of its first block in the directory */
  uint32_t df, nblocks, kind;
  uint32_t q; /* occurrences in the query */
  float weight;
  uint32_t negated;
  uint32_t slot; /* its row in the tile arrays of gc_ors */
  uint32_t most; /* the most that a posting contributes, q times */
  /* of a list with guides: */
  uint32_t row, span; /* its first line of peaks; documents a peak, log2 */
  uint32_t step; /* score a unit of its peaks, q times; 0: the peaks are not to be used */
  uint32_t shift; /* documents a mark, log2 */
  uint64_t marks; /* its first group of marks */
  uint32_t cut; /* 1 and its number among the lists that are cut into slices; 0: it is not */
  uint32_t wide; /* of an expanded list with all blocks in gc_view.wide: 1 + its first one's place there; or 0 */
} gc_term;

/* One evaluation of a query as AND or as OR. */
typedef struct gc_job {
  double norm_a, norm_b;
  uint32_t first_term, npositive, nterms; /* terms: positive ones by ascending df, then negated ones */
  uint32_t k;
  uint32_t stored; /* 1: k1 and b are the index's */
  uint32_t any; /* 1: OR */
  uint32_t after; /* of an OR: the AND job that makes it needless by finding k; or GC_NONE */
  uint32_t seed; /* a score that at least k documents reach, or 0 */
  uint32_t prune; /* 0: exhaustive */
  uint32_t follow; /* of an OR: 1 if MaxScore may answer it */
  uint32_t fused; /* 1: norm_a + norm_b * length has no more than 53 bits, so that one rounding is left */
  uint32_t expanded; /* 1: all of its lists are expanded, and stored is 1 */
  uint32_t count; /* 1: its documents are counted, not ranked */
  uint32_t tickets; /* of an AND: groups of its driver's blocks */
  uint32_t mixed; /* 1: its long lists are expanded, and stored is 1; but it has short ones */
} gc_job;

/* How far a running job has got. */
typedef struct gc_state {
  unsigned long long floor; /* only keys above it are of interest */
  uint32_t count; /* candidates that were pushed; those beyond the buffer's room are lost */
  uint32_t level; /* how often the floor was raised from the buffer */
  uint32_t next, live; /* next position in the tile order; tiles that any term touches */
  uint32_t greatest; /* tile bound */
  uint32_t done; /* 1: its hits are written */
  uint32_t followed; /* 1: an OR that MaxScore answers, not tiles */
  uint32_t opened; /* tickets of an AND's first turn or of an OR's opening that are done */
  uint32_t safe; /* the floor is a guess: 1 + a score that at least k documents are known to reach, or 1; otherwise 0 */
  uint32_t ended; /* tickets of an AND that are done, if the same kernel settles it */
} gc_state;

/* Some blocks of a job's list whose bounds are spread over tiles. */
typedef struct gc_chunk {
  uint32_t job, term, first, zero; /* term: index in the batch; first: block */
} gc_chunk;

/* Work counters of a launch. */
typedef struct gc_control {
  uint32_t next_or, next_drive, next_and, ended, next_sum, next_phrase; /* ended: blocks of threads of gc_alone */
  uint32_t next_query, zero;
  unsigned long long drives[GC_ROUNDS]; /* of each: entries of gc_maxs.drives << 40 | groups of blocks */
} gc_control;

/* Blocks of a list whose postings drive a MaxScore evaluation. */
typedef struct gc_drive {
  uint32_t job, term; /* term: of the job */
  uint32_t from, end; /* its blocks from .. end - 1 */
  uint32_t group; /* of which a warp takes so many at once */
  uint32_t part; /* which of the groups: GC_PART_ALL, GC_PART_OPENING, GC_PART_REST */
  uint32_t opening; /* tickets of the job's opening; 0: it has none */
} gc_drive;

enum { GC_PART_ALL, GC_PART_OPENING, GC_PART_REST };

/* The index on the device. */
typedef struct gc_view {
  const uint32_t *docids, *freqs; /* the streams, as words; NULL: terms hold addresses */
  const uint32_t *last, *docs_off, *freqs_off; /* the directory, an item a block */
  const uint8_t *docs_width, *freqs_width;
  const gpuir__pair *bounds; /* GPUIR__BLOCK_PAIRS a block */
  const uint32_t *lengths; /* of the documents; NULL: */
  const uint16_t *brief; /* the same, if all are below 65536 */
  const uint32_t *deleted; /* a bit a document; NULL: none is deleted. Only kernels that decode in place look at it */
  const uint2 *bases; /* of an expanded block: what its 16-bit docIDs are relative to; its place in wide + 1, or 0 */
  const uint16_t *narrow; /* expanded docIDs */
  const uint32_t *wide; /* docIDs of expanded blocks that 16 bits do not hold */
  const uint32_t *impact; /* expanded contributions, under the stored k1 and b */
  const uint32_t *most; /* guides: the greatest contribution of a block */
  const uint4 *marks; /* guides: which documents a list may hold, in groups; see gc_find */
  const uint32_t *peaks; /* guides: the greatest contribution within a span, in steps, GC_PEAK_BITS each */
  uint32_t documents, tile, ntiles; /* tile: documents each */
} gc_view;

/* Groups of an AND's driver blocks that are taken one after another: first, first + step, and so on. */
typedef struct gc_turn {
  uint32_t job, first, step;
  uint32_t opening; /* tickets of the job's first turn, for which the others wait; 0: they do not */
  uint32_t group; /* blocks a group */
} gc_turn;

/* The ANDs of a batch: their driver blocks, in groups that a warp takes at once. */
typedef struct gc_ands {
  const gc_turn *turns; /* n */
  const uint32_t *start; /* first ticket of each, and one more */
  uint32_t n, tickets; /* tickets: of all turns, one for each group */
} gc_ands;

/* The ORs of a batch that tiles may answer. */
typedef struct gc_ors {
  const uint32_t *jobs; /* n job numbers */
  const gc_chunk *chunks;
  uint32_t *first, *bound; /* [slot][ntiles + 1]: see gc_tiles */
  uint32_t *order, *total; /* [job][ntiles]: tiles by descending bound; the sum of a tile's bounds */
  uint32_t n, nchunks, grab; /* grab: tiles that a warp takes from the order at once */
} gc_ors;

/* The ORs of a batch that MaxScore may answer. */
typedef struct gc_maxs {
  const uint32_t *jobs; /* n job numbers */
  gc_drive *drives; /* what drives them, of round r from r * most on */
  uint32_t *drive_start; /* first group of blocks of each, in its round */
  uint32_t n, most, group, parts; /* most: drives of a round; parts: warps that share a block */
  float doubt[2]; /* a guess, from the sample or the opening, fails with a probability of at most exp(-doubt) */
} gc_maxs;

/* The lists that are cut into slices: see gc_cut_lists. */
typedef struct gc_slices {
  const uint8_t *strips;
  const uint32_t *starts; /* [list][ntiles + 1]: the first strip of each slice */
  uint32_t tile, ntiles; /* documents of a tile, a power of two; 0: no list is cut */
} gc_slices;

/* A list as gc_sum_tiles sees it. */
typedef struct gc_sum_list {
  uint32_t at; /* of its row, in gc_slices.starts or in gc_sums.first */
  uint32_t kind_q; /* 0: it is cut; 1: it is expanded; 2: short; << 30 how often the query has it */
  uint32_t from; /* of an expanded list: its first posting; of a short one: the term */
  uint32_t most; /* strips or postings of it within a tile at most */
} gc_sum_list;

/* A job of gc_sum_tiles: its lists are rows first .. first + n - 1. */
typedef struct gc_sum_job {
  uint32_t job, first, n, after; /* after: as in gc_job */
} gc_sum_job;

/* The ORs of a batch whose postings are all added up: see gc_sum_tiles. */
typedef struct gc_sums {
  const struct gc_sum_job *jobs; /* n of them */
  const struct gc_sum_list *rows; /* of the jobs, and 32 of zeros */
  const uint32_t *thin; /* nthin terms whose lists are not cut */
  uint32_t *first; /* [slot][lists.ntiles + 1]: see gc_places */
  uint32_t n, nthin;
  gc_slices lists;
} gc_sums;

/* A batch on the device. */
typedef struct gc_batch {
  const gc_term *terms;
  const gc_job *jobs;
  gc_state *states; /* of the jobs */
  gc_control *control;
  unsigned long long *cand; /* [job][room]: keys of candidates; 0: none yet */
  uint32_t room; /* candidates a job */
  uint32_t raised; /* 1: floors are raised while documents are followed; see GC_UNRAISED */
  uint32_t alone; /* 1: a query of gc_alone, which has its floor beforehand */
  uint32_t out_stride; /* words a query of `out` */
  uint32_t *out; /* of each query its count, a gap, then its hits (docID, score) */
  const uint2 *query_jobs; /* of each query its jobs, the second or GC_NONE */
  gc_ands ands;
  gc_ors ors;
  gc_maxs maxs;
  gc_sums sums;
} gc_batch;

/* ========================
 * [cuda-02-primitives]  what many kernels need of a warp or of a block of threads
 *
 * Start at  gc_scan, gc_claim (warps); gc_block_scan, gc_select, gc_sort (blocks of threads); gc_owner (a thread).
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

/* ---- a warp ---- */

static __device__ __forceinline__ uint32_t gc_lane(void) { return threadIdx.x & 31; }

/* Returns the n lowest bits, set. */
static __device__ __forceinline__ uint32_t gc_mask(uint32_t n) { return n < 32 ? (1u << n) - 1 : ~0u; }

/* Returns how many of the lanes before this one have a bit in `vote`. */
static __device__ __forceinline__ uint32_t gc_rank(uint32_t vote) { return __popc(vote & ((1u << gc_lane()) - 1)); }

/* Returns the sum of x over the lanes up to this one. */
static __device__ __forceinline__ uint32_t gc_scan(uint32_t x) {
  uint32_t lane = gc_lane(), i;
#pragma unroll
  for (i = 1; i < 32; i *= 2) {
    uint32_t other = __shfl_up_sync(GC_WARP, x, i);
    if (lane >= i) x += other;
  }
  return x;
}

/* Takes room for the lanes of `vote`, which is not 0, at the end of an array of *count items; returns the lane's place
 * there. */
static __device__ __forceinline__ uint32_t gc_claim(uint32_t vote, uint32_t *count) {
  uint32_t at = 0;
  if (!gc_lane()) at = atomicAdd(count, __popc(vote));
  return __shfl_sync(GC_WARP, at, 0) + gc_rank(vote);
}

/* Returns the first of last[lo..hi) that is not below doc, or hi; looks at 32 at a time. */
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

/* Turns 256 counts into how many stand before each, by a warp; returns their sum in the last lane. */
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

/* Where a histogram's item of a given rank lies. */
typedef struct gc_slot_found {
  uint32_t slot, above, inside; /* items in slots above it, and in it */
} gc_slot_found;

/* Finds, by a warp, the slot of the rank-th item from the highest slot down; rank is at least 1 and at most the sum of
 * the counts. One lane writes *found. */
template <uint32_t SLOTS>
static __device__ __forceinline__ void gc_find_slot(const uint32_t *count, uint32_t rank, gc_slot_found *found) {
  uint32_t own[SLOTS / 32], sum = 0, above, i;
  for (i = 0; i < SLOTS / 32; i++) { /* lane 0 has the highest slots */
    own[i] = count[SLOTS - 1 - (gc_lane() * (SLOTS / 32) + i)];
    sum += own[i];
  }
  above = gc_scan(sum) - sum;
  if (above < rank && above + sum >= rank)
    for (i = 0; i < SLOTS / 32; i++) {
      if (above < rank && above + own[i] >= rank) {
        found->slot = SLOTS - 1 - (gc_lane() * (SLOTS / 32) + i);
        found->above = above;
        found->inside = own[i];
      }
      above += own[i];
    }
}

/* Returns to all lanes where the item of a rank lies, as gc_find_slot does; its slot is UINT32_MAX if there are fewer
 * items. */
template <uint32_t SLOTS>
static __device__ __forceinline__ gc_slot_found gc_slot_of(const uint32_t *count, uint32_t rank) {
  gc_slot_found f = {UINT32_MAX, 0, 0};
  uint32_t who;
  gc_find_slot<SLOTS>(count, rank, &f);
  who = __ffs((int)__ballot_sync(GC_WARP, f.slot != UINT32_MAX));
  who = who ? who - 1 : 0;
  f.slot = __shfl_sync(GC_WARP, f.slot, who);
  f.above = __shfl_sync(GC_WARP, f.above, who);
  return f;
}

/* ---- a kernel ---- */

/* Waits until the kernel before in the stream has ended, and lets the next one start meanwhile, which comes as far as
 * its own call of this. It matters in kernels that gc_start chains; in others it does nothing. A kernel calls it
 * before all else. */
static __device__ __forceinline__ void gc_chained(void) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" : : : "memory");
  asm volatile("griddepcontrol.wait;" : : : "memory");
#endif
}

/* ---- a thread ---- */

/* Returns the last i < n whose start(i) is at most x; starts ascend, the first one is at most x. */
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

/* The numbers of an array that does not change while the kernel runs. */
struct gc_numbers {
  const uint32_t *p;
  __device__ __forceinline__ uint32_t operator()(uint32_t i) const { return __ldg(p + i); }
};

/* ---- a block of threads: all of them call these ---- */

/* Returns the sum of x over the threads up to this one; *all gets the sum over all. 3 barriers. */
template <uint32_t THREADS>
static __device__ __forceinline__ uint32_t gc_block_scan(uint32_t x, uint32_t *all) {
  __shared__ uint32_t sums[32];
  x = gc_scan(x);
  __syncthreads(); /* the sums of the call before have been read */
  if (gc_lane() == 31) sums[threadIdx.x / 32] = x;
  __syncthreads();
  if (threadIdx.x < 32) sums[threadIdx.x] = gc_scan(threadIdx.x < THREADS / 32 ? sums[threadIdx.x] : 0);
  __syncthreads();
  *all = sums[THREADS / 32 - 1];
  return x + (threadIdx.x >= 32 ? sums[threadIdx.x / 32 - 1] : 0);
}

/* Returns what all of the n keys begin with, and in *width how many bits follow that. word: 4 words of shared
 * memory. */
template <typename Keys>
static __device__ __forceinline__ unsigned long long gc_common(const Keys &keys, uint32_t n, uint32_t *width,
    uint32_t *word) {
  unsigned long long first, differ = 0;
  uint32_t i, u, low, high;
  __syncthreads();
  if (!threadIdx.x) {
    first = keys(0); /* once: others may be about to write it */
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

/* Returns a key such that at least k of the n keys are not below it: exactly k if limit is k and the keys differ,
 * otherwise at most `limit` of them where that is possible. n >= k >= 1. Passes over the keys nine times at most: once
 * for the bits in which they differ, then for 8 of these each from the highest on; so the counts of a pass are of many
 * values, and its additions do not wait for each other. hist: 256 words of shared memory. */
template <typename Keys>
static __device__ unsigned long long gc_select(const Keys &keys, uint32_t n, uint32_t k, uint32_t limit,
    uint32_t *hist) {
  __shared__ gc_slot_found digit;
  uint32_t remain = k, above, shift, i; /* keys of interest begin with the prefix, down to bit `above` */
  unsigned long long prefix = gc_common(keys, n, &above, hist);
  for (;; above = shift) {
    shift = above > 8 ? above - 8 : 0;
    for (i = threadIdx.x; i < 256; i += blockDim.x) hist[i] = 0;
    if (!threadIdx.x) memset(&digit, 0, sizeof digit); /* keys that others just wrote may be wider, and not counted */
    __syncthreads();
    for (i = threadIdx.x; i < n; i += 4 * blockDim.x) { /* four keys on their way at once */
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
    if (threadIdx.x < 32) gc_find_slot<256>(hist, remain, &digit);
    __syncthreads();
    prefix |= (unsigned long long)digit.slot << shift;
    remain -= digit.above;
    i = k - remain + digit.inside; /* keys >= prefix */
    __syncthreads();
    if (i <= limit || !shift) return prefix;
  }
}

/* Sorts keys[0..size) in shared memory into descending order; size: a power of two. Bitonic. Pairs at most 32 apart
 * are the same warp's in every pass over them, so that only passes over wider ones end at a barrier: of 1,024 keys 11
 * of 55 do. */
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

/* Returns the least score that can enter above a floor. */
static __device__ __forceinline__ uint32_t gc_need(unsigned long long floor) {
  return max((uint32_t)((floor + 1) >> 32), 1u);
}

static __device__ __forceinline__ unsigned long long gc_floor(const gc_state *s) {
  return *(volatile const unsigned long long *)&s->floor;
}

/* A job's candidates. Those that other blocks of threads are about to write are still 0. */
struct gc_keys_cand {
  const unsigned long long *p;
  __device__ unsigned long long operator()(uint32_t i) const { return __ldcg(p + i); }
};

/* Returns a score that at least k of the n keys reach, by a warp, n being a multiple of 32: of the k-th best one its
 * highest 14 bits below those that are 0 in all scores. 3 passes over the keys. count: 128 words of shared memory. */
static __device__ __noinline__ uint32_t gc_kth_score(const gc_keys_cand keys, uint32_t n, uint32_t k, uint32_t *count) {
  uint32_t greatest = 0, slot = 0, shift = 0, pass, i, u;
  for (pass = 0; pass < 3; pass++) { /* the greatest; slots of 2^shift scores each; those of one of them */
    const uint32_t fine = pass == 1 ? shift : shift > 7 ? shift - 7 : 0, mask = (1u << (shift - fine)) - 1;
    gc_slot_found f;
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
          atomicAdd(count + min(score[u] >> fine, 127u), 1); /* others may just have written a greater one */
        else if (score[u] >> shift == slot) atomicAdd(count + (score[u] >> fine & mask), 1);
      }
    }
    __syncwarp();
    if (!pass) {
      greatest = __reduce_max_sync(GC_WARP, greatest);
      if (greatest >> 7) shift = 25 - __clz((int)greatest);
      continue;
    }
    f = gc_slot_of<128>(count, k);
    if (f.slot == UINT32_MAX) break;
    k -= f.above;
    slot = slot << (shift - fine) | f.slot;
    shift = fine;
  }
  __syncwarp();
  return slot << shift;
}

/* ========================
 * [cuda-03-bp128]  bp128 on the device; the postings of a term and their scores
 *
 * The format stands in [04-bp128] of gpuir.h, whose functions say here too where a block's parts are and which of them
 * are believed. There are two ways of decoding. A warp decodes a block, lane t its values 4t to 4t + 3: gc_unpack, of
 * a full block by gc_load_rows and gc_unpack_rows, between which a warp may have other loads on their way. A lane
 * decodes one value: gc_value.
 *
 * Start at  gc_decode_docs, gc_decode_freqs, gc_freq, gc_contribution.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

/* Returns what gpuir__packed_value does, of a value that begins less than 2^32 bits behind p: 2 words and a funnel
 * shift. */
static __device__ __forceinline__ uint32_t gc_packed(const uint8_t *p, unsigned w, uint32_t i) {
  const uint32_t bit = ((uint32_t)(uintptr_t)p & 3) * 8 + i * w;
  const uint32_t *words = (const uint32_t *)((uintptr_t)p & ~(uintptr_t)3) + (bit >> 5);
  return __funnelshift_r(words[0], words[1], bit) & gc_mask(w);
}

/* Returns values 4t to 4t + 3, t being the lane, of `count` values of w bits from value `from` on; those behind them
 * are 0. Four values of up to 14 bits are one load of 8 bytes: 3 words and 2 funnel shifts. `from` is a multiple of 8
 * if w is more. */
static __device__ __forceinline__ void gc_packed4(const uint8_t *p, unsigned w, uint64_t from, uint32_t count,
    uint32_t v[4]) {
  const uint32_t first = 4 * gc_lane();
  uint32_t i;
  if (w <= 14) {
    const uint64_t bit = (from + first) * w;
    uint64_t x = first < count ? gpuir__load64(p + bit / 8) >> bit % 8 : 0;
#pragma unroll
    for (i = 0; i < 4; i++) {
      v[i] = first + i < count ? (uint32_t)x & gpuir__low_bits(w) : 0;
      x >>= w;
    }
    return;
  }
  p += from / 8 * w;
#pragma unroll
  for (i = 0; i < 4; i++) v[i] = first + i < count ? gc_packed(p, w, (uint32_t)(from & 7) + first + i) : 0;
}

/* ---- a block ---- */

/* A block within its list's stream. */
typedef struct gc_block {
  const uint8_t *low; /* its low parts, as gpuir__bp128_low finds them */
  uint32_t bits, n; /* of a low part; values */
  uint32_t room; /* bytes of the stream that its high parts may take, 512 at most; 0: it has no exceptions */
} gc_block;

/* Returns the room for high parts, of `left` bytes behind the low parts of n values: the marks and the high parts'
 * width come first. */
static __device__ __forceinline__ uint32_t gc_high_room(uint64_t left, uint32_t n) {
  const uint32_t before = (n + 7) / 8 + 1;
  return left > before ? (uint32_t)min(left - before, (uint64_t)512) : 0;
}

/* The high parts of a block. */
typedef struct gc_highs {
  const uint32_t *words; /* they begin at bit `skip` */
  uint32_t skip, bits, low_bits;
} gc_highs;

/* Returns high part number i, where it belongs in its value. */
static __device__ __forceinline__ uint32_t gc_high_part(const gc_highs &h, uint32_t i) {
  const uint32_t bit = h.skip + i * h.bits;
  const uint32_t *p = h.words + (bit >> 5);
  return (__funnelshift_r(__ldg(p), __ldg(p + 1), bit & 31) & gc_mask(h.bits)) << h.low_bits;
}

/* Adds the high parts from number `rank` on to those of the lane's values that are marked. */
static __device__ __forceinline__ void gc_add_highs(const gc_highs &h, uint32_t mine, uint32_t rank, uint32_t v[4]) {
  uint32_t l;
#pragma unroll
  for (l = 0; l < 4; l++)
    if (mine >> l & 1) v[l] |= gc_high_part(h, rank++);
}

/* The words in which the low parts of a lane's four values lie: two rows of four lanes. */
typedef struct gc_low {
  uint32_t word[8];
} gc_low;

/* Loads the lane's words of a full block at `low`, a multiple of 4. */
static __device__ __forceinline__ gc_low gc_load_low(const uint8_t *low, uint32_t bits) {
  const uint32_t *p = (const uint32_t *)((uintptr_t)low & ~(uintptr_t)3) + gpuir__bp128_word(bits, 4 * gc_lane());
  gc_low r;
  uint32_t l;
#pragma unroll
  for (l = 0; l < 8; l++) r.word[l] = __ldg(p + l);
  return r;
}

/* Returns the low parts of the lane's four values: 4 funnel shifts. */
static __device__ __forceinline__ void gc_low_parts(const gc_low &low, uint32_t bits, uint32_t v[4]) {
  uint32_t l;
#pragma unroll
  for (l = 0; l < 4; l++) v[l] = __funnelshift_r(low.word[l], low.word[4 + l], gc_lane() * bits) & gc_mask(bits);
}

/* Adds a block's exceptions to the lane's values. If the high parts do not all lie in the stream, there are none, as
 * gpuir__bp128_open has it. */
static __device__ __forceinline__ void gc_add_exceptions(const gc_block &p, uint32_t v[4]) {
  const uint8_t *marks = p.low + (p.n * p.bits + 7) / 8, *high = marks + (p.n + 7) / 8;
  const gc_highs h = {(const uint32_t *)((uintptr_t)high & ~(uintptr_t)3), 8 * ((uint32_t)(uintptr_t)high & 3) + 8,
      __ldg(high), p.bits};
  const uint32_t first = 4 * gc_lane();
  uint32_t mine = 0, rank = 0, n = 0, i;
  if (h.bits > 32 - p.bits) return;
  if (first < p.n) mine = gc_packed(marks, 4, gc_lane()) & gc_mask(p.n - first);
#pragma unroll
  for (i = 0; i < 4; i++) {
    const uint32_t vote = __ballot_sync(GC_WARP, mine >> i & 1);
    rank += gc_rank(vote);
    n += __popc(vote);
  }
  if (n * h.bits <= 8 * p.room) gc_add_highs(h, mine, rank, v);
}

/* Decodes a block by a warp: 8 loads of 4 bytes and about 40 instructions, 50 more with exceptions. Values behind p.n
 * are unspecified. */
static __device__ __forceinline__ void gc_unpack(const gc_block &p, uint32_t v[4]) {
  uint32_t i;
  if (p.n == GPUIR__BLOCK) {
    gc_low_parts(gc_load_low(p.low, p.bits), p.bits, v);
  } else {
#pragma unroll
    for (i = 0; i < 4; i++) {
      const uint32_t at = 4 * gc_lane() + i;
      v[i] = at < p.n ? gc_packed(p.low, p.bits, at) : 0;
    }
  }
  if (p.room) gc_add_exceptions(p, v); /* the same for all lanes */
}

/* ---- a full block in two steps: its words are loaded, and are on their way while other work is done ---- */

/* What a lane needs of a full block. */
typedef struct gc_rows {
  gc_low low;
  uint32_t bits; /* of a low part */
  uint32_t high_bits; /* of a high part; 0: no exceptions */
  uint32_t room; /* as in gc_block */
  uint32_t marks; /* the word of the marks in which its four stand */
  const uint32_t *high; /* the byte that says high_bits, then the high parts */
} gc_rows;

static __device__ __forceinline__ gc_rows gc_load_rows(const uint8_t *low, uint32_t bits, uint32_t room) {
  gc_rows r;
  r.low = gc_load_low(low, bits);
  r.bits = bits;
  r.high = (const uint32_t *)((uintptr_t)low & ~(uintptr_t)3) + 4 * bits + 4;
  r.room = room;
  r.marks = r.high_bits = 0;
  if (room) {
    r.marks = __ldg(r.high - 4 + gc_lane() / 8);
    r.high_bits = __ldg(r.high) & 255;
    if (r.high_bits > 32 - bits) r.high_bits = 0;
  }
  return r;
}

/* Decodes it: about 20 instructions, 60 more with exceptions. Up to 32 high parts are loaded by a lane each and handed
 * out by shuffles. */
static __device__ __forceinline__ void gc_unpack_rows(const gc_rows &r, uint32_t v[4]) {
  gc_low_parts(r.low, r.bits, v);
  if (r.high_bits) { /* the same for all lanes */
    const gc_highs h = {r.high, 8, r.high_bits, r.bits};
    const uint32_t lane = gc_lane(), mine = r.marks >> lane % 8 * 4, sum = __popc(r.marks);
    uint32_t rank = __popc(r.marks & ((1u << lane % 8 * 4) - 1)), n = 0, l;
#pragma unroll
    for (l = 0; l < 4; l++) { /* exceptions of the words before the lane's, and of all */
      const uint32_t of = __shfl_sync(GC_WARP, sum, 8 * l);
      rank += lane >= 8 * (l + 1) ? of : 0;
      n += of;
    }
    if (n * h.bits > 8 * r.room) return; /* as in gc_add_exceptions */
    if (n <= 32) {
      const uint32_t part = lane < n ? gc_high_part(h, lane) : 0;
#pragma unroll
      for (l = 0; l < 4; l++) {
        const uint32_t high = __shfl_sync(GC_WARP, part, rank), is = mine >> l & 1;
        v[l] |= high & (0 - is);
        rank += is;
      }
    } else {
      gc_add_highs(h, mine, rank, v);
    }
  }
}

/* ---- one value ---- */

/* Returns the high part of value i, which is marked; of 32 marks a step. */
static __device__ __forceinline__ uint32_t gc_value_high(const gc_block &p, const uint8_t *marks, uint32_t i) {
  const uint8_t *high = marks + (p.n + 7) / 8;
  const uint32_t bits = __ldg(high);
  uint32_t rank = 0, n = 0, j;
  if (!bits || bits > 32 - p.bits) return 0;
#pragma unroll 1
  for (j = 0; j < p.n; j += 32) {
    const uint32_t word = gpuir__load32(marks + j / 8) & gc_mask(p.n - j);
    n += __popc(word);
    rank += j + 32 <= i ? __popc(word) : j <= i ? __popc(word & gc_mask(i - j)) : 0;
  }
  return n * bits <= 8 * p.room ? gc_packed(high + 1, bits, rank) << p.bits : 0;
}

/* Returns value i < p.n alone; each lane may have its own block. */
static __device__ __forceinline__ uint32_t gc_value(const gc_block &p, uint32_t i) {
  const uint8_t *marks = p.low + (p.n * p.bits + 7) / 8;
  uint32_t v;
  if (p.n == GPUIR__BLOCK) {
    const uint32_t *w = (const uint32_t *)((uintptr_t)p.low & ~(uintptr_t)3) + gpuir__bp128_word(p.bits, i);
    v = __funnelshift_r(__ldg(w), __ldg(w + 4), i / 4 * p.bits) & gc_mask(p.bits);
  } else {
    v = gc_packed(p.low, p.bits, i);
  }
  return p.room && (__ldg(marks + i / 8) >> i % 8 & 1) ? v | gc_value_high(p, marks, i) : v;
}

/* Turns gaps into docIDs: 4 additions, a scan of 5 shuffles. */
static __device__ __forceinline__ void gc_sum(uint32_t v[4], uint32_t prev, uint32_t limit) {
  uint32_t i;
  v[0] += 1;
  v[1] += v[0] + 1;
  v[2] += v[1] + 1;
  v[3] += v[2] + 1;
  prev += gc_scan(v[3]) - v[3];
#pragma unroll
  for (i = 0; i < 4; i++) v[i] = min(prev + v[i], limit);
}

/* ---- the postings of a term ---- */

static __device__ __forceinline__ uint32_t gc_block_len(const gc_term &t, uint32_t block) {
  return min(GPUIR__BLOCK, t.df - block * GPUIR__BLOCK);
}

/* Finds a block of n values in the stream list[0..length): the one `at` words behind its beginning, or, of a list
 * without a directory, the one behind the width byte. */
static __device__ __forceinline__ gc_block gc_block_at(const uint8_t *list, uint64_t length, bool directory,
    uint32_t at, uint32_t width, uint32_t n) {
  gc_block p;
  uint64_t left;
  p.n = n;
  if (!directory) width = length ? __ldg(list) : 0;
  p.low = gpuir__bp128_low(list, length, directory ? (uint64_t)at * 4 : 1, width, n, &p.bits, &left);
  p.room = gc_high_room(left, n);
  return p;
}

/* Finds a block of a list's frequencies or of its docIDs. */
static __device__ __forceinline__ gc_block gc_part_block(const gc_view &v, const gc_term &t, uint32_t block,
    bool freqs) {
  const uint64_t g = t.first_block + block;
  const bool directory = t.kind == GC_LONG;
  const uint8_t *list = freqs ? (const uint8_t *)v.freqs + t.freqs : (const uint8_t *)v.docids + t.docs;
  return gc_block_at(list, freqs ? t.freqs_len : t.docs_len, directory,
      directory ? __ldg((freqs ? v.freqs_off : v.docs_off) + g) : 0,
      directory ? __ldg((freqs ? v.freqs_width : v.docs_width) + g) : 0, gc_block_len(t, block));
}

/* Decodes the docIDs of a block by a warp, below `documents` whatever the file says; those behind its n are of no use.
 * Returns n. */
static __device__ uint32_t gc_decode_docs(const gc_view &v, const gc_term &t, uint32_t block, uint32_t d[4]) {
  uint32_t prev = UINT32_MAX, most = v.documents - 1;
  if (t.kind == GC_INLINE) {
    d[0] = d[1] = d[2] = d[3] = min((uint32_t)t.docs, most);
    return 1;
  }
  if (block) prev = __ldg(v.last + t.first_block + block - 1);
  gc_unpack(gc_part_block(v, t, block, false), d);
  gc_sum(d, prev, most);
  return gc_block_len(t, block);
}

/* Decodes the frequencies of a block by a warp, each less one. */
static __device__ __forceinline__ void gc_decode_freqs(const gc_view &v, const gc_term &t, uint32_t block,
    uint32_t f[4]) {
  if (t.kind == GC_INLINE) f[0] = f[1] = f[2] = f[3] = (uint32_t)t.freqs - 1;
  else gc_unpack(gc_part_block(v, t, block, true), f);
}

/* The lane's postings of a block. */
typedef struct gc_postings {
  uint32_t doc[4], freq[4]; /* a frequency less one */
  uint32_t n; /* of the block, as gc_decode_docs returns it */
} gc_postings;

/* Decodes both. Not inline: it is called where few blocks are decoded, and the code is long. */
static __device__ __noinline__ gc_postings gc_decode_both(const gc_view &v, const gc_term &t, uint32_t block) {
  gc_postings p;
  p.n = gc_decode_docs(v, t, block, p.doc);
  gc_decode_freqs(v, t, block, p.freq);
  return p;
}

/* Returns the frequency of posting i, less one. */
static __device__ uint32_t gc_freq(const gc_view &v, const gc_term &t, uint32_t i) {
  if (t.kind == GC_INLINE) return (uint32_t)t.freqs - 1;
  return gc_value(gc_part_block(v, t, i / GPUIR__BLOCK, true), i % GPUIR__BLOCK);
}

/* ---- scores ---- */

/* Returns x / y as IEEE 754 rounds it, for 0 or 2^-60 < x < 2^60 and 2^-30 < y < 2^60, where nothing can overflow or
 * vanish on the way: the steps of __fdiv_rn without its test for other operands. 8 instructions. */
static __device__ __forceinline__ float gc_divide(float x, float y) {
  float r, q;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(y));
  r = __fmaf_rn(r, __fmaf_rn(-y, r, 1), r);
  q = __fmul_rn(x, r);
  q = __fmaf_rn(__fmaf_rn(-y, q, x), r, q);
  return __fmaf_rn(__fmaf_rn(-y, q, x), r, q);
}

/* Returns c = max(1, round(W * tf / (tf + K))), see gpuir__contribution: 4 roundings, in its order. */
static __device__ __forceinline__ uint32_t gc_contribution(float weight, uint32_t tf_less_1, float norm) {
  float f = __uint2float_rn(min(tf_less_1, GPUIR__CAP - 1) + 1);
  uint32_t c = __float2uint_rn(gc_divide(__fmul_rn(weight, f), __fadd_rn(f, norm)));
  return c ? c : 1;
}

static __device__ __forceinline__ uint32_t gc_length(const gc_view &v, uint32_t doc) {
  return v.brief ? __ldg(v.brief + doc) : __ldg(v.lengths + doc);
}

static __device__ __forceinline__ float gc_norm(const gc_view &v, const gc_job &j, uint32_t doc) {
  return gpuir__norm_of(j.norm_a, j.norm_b, gc_length(v, doc));
}

/* ========================
 * [cuda-04-codecs]  blocks of any codec, by a warp; recoding as bp128
 *
 * Decoding uses the functions of gpuir.h by which the CPU decodes (GPUIR_HD): one definition of each format. Lane t
 * has values 4t to 4t + 3 of a block; a unary vector is taken apart by 16 bits a lane, exceptions are patched in
 * shared memory. The engine decodes other codecs only to recode them; the laboratory decodes all of them. The comments
 * predict warp instructions for a block of 128 and say what was counted, in the laboratory's kernels.
 *
 * Uses      [cuda-03-bp128].
 * Start at  gc_decode (a block), gc_recode (a batch of lists).
 * Tests     tests/gpu/test_lab.c, and test_cuda.c on indexes in other codecs
 * ======================*/

#define GC_PLAIN 99u /* beside the codecs' ids: a list that is not coded */

/* A list on the device, in any codec. */
typedef struct gc_coded {
  gpuir__stream s; /* device addresses; without codec and scratch */
  const uint32_t *docs; /* GC_PLAIN: its docIDs */
  uint32_t nblocks, number;
  const uint8_t *slots; /* pfd-list: its first level, `number` exceptions, */
  const uint32_t *overflows, *positions; /* which have been decoded before */
  uint32_t bits; /* of a slot */
} gc_coded;

/* Clears the 128 words of shared memory in which high parts of exceptions are gathered. */
static __device__ __forceinline__ void gc_patch_begin(uint32_t *sh) {
  __syncwarp();
  *(uint4 *)(sh + 4 * gc_lane()) = make_uint4(0, 0, 0, 0);
  __syncwarp();
}

/* Adds the high parts that were gathered to the lane's values. */
static __device__ __forceinline__ void gc_patch_end(const uint32_t *sh, uint32_t v[4]) {
  uint4 x;
  __syncwarp();
  x = *(const uint4 *)(sh + 4 * gc_lane());
  v[0] |= x.x;
  v[1] |= x.y;
  v[2] |= x.z;
  v[3] |= x.w;
}

/* gpuir__unary_stops by a warp: 16 bits a lane, whose marks each lane writes behind those of the lanes before. 64
 * bytes a round; about 40 instructions and 6 for each mark of the fullest lane. */
static __device__ __forceinline__ void gc_unary_marks(const gpuir__unary &u, uint64_t start, uint64_t rank,
    uint32_t count, uint32_t *pos) {
  uint64_t at = start / 8;
  uint32_t got = 0, lane = gc_lane(), empty = 0, i;
  __syncwarp();
  while (got < count && at < u.bytes && empty < 8) {
    const uint64_t byte = at + 2 * lane;
    uint32_t x = 0, n, before, total;
    if (byte < u.bytes) {
      x = (gpuir__load32(u.bits + byte) ^ (uint32_t)u.flip) & (u.bytes - byte == 1 ? 0xffu : 0xffffu);
      if (byte * 8 < start) x &= ~0u << (start & 7);
    }
    n = __popc(x);
    before = gc_scan(n);
    total = __shfl_sync(GC_WARP, before, 31);
    before += got - n;
    for (; x; x &= x - 1, before++)
      if (before < count) pos[before] = (uint32_t)(byte * 8 - start) + __ffs((int)x) - 1;
    got += total;
    at += 64;
    empty = total ? 0 : empty + 1;
    if (!total && u.sums) { /* a long gap: where the next mark is, the sums say */
      uint64_t c = at * 8 >> u.log;
      if (c >= u.nsums) break;
      c = gpuir__unary_piece(&u, c, u.nsums, rank + got);
      at = gpuir__max64(at, (c << u.log) / 8);
    }
  }
  for (i = got + lane; i < count; i += 32) pos[i] = 0;
  __syncwarp();
}

/* Decodes vbyte: each lane looks at 4 bytes and notes where values end. 1 to 1.3 bytes a value; predicted 160
 * instructions, counted 462, the scans of ends and the loop over them among them. Measured to memory: 259 G values/s.
 */
static __device__ __forceinline__ void gc_vbyte(const gpuir__stream &s, uint32_t block, uint32_t count, uint32_t *ends,
    uint32_t v[4]) {
  const uint64_t begin = s.offset ? gpuir__min64(s.offset[block], s.len) : 0, avail = s.len - begin;
  const uint8_t *p = s.bytes + begin;
  uint32_t got = 0, base = 0, lane = gc_lane(), i;
  __syncwarp();
  while (got < count && base < avail) {
    uint32_t byte = base + 4 * lane, e = 0, n, before, total;
    if (byte < avail) {
      e = ~gpuir__load32(p + byte) & 0x80808080u;
      if (avail - byte < 4) e &= (1u << (8 * (uint32_t)(avail - byte))) - 1;
    }
    n = __popc(e);
    before = gc_scan(n);
    total = __shfl_sync(GC_WARP, before, 31);
    if (!total) break; /* damaged: no value is that long */
    base += 128;
    before += got - n;
    got += total;
    for (; e; e &= e - 1, before++)
      if (before < count) ends[before] = byte + (uint32_t)__ffs((int)e) / 8;
  }
  got = min(got, count);
  __syncwarp();
#pragma unroll
  for (i = 0; i < 4; i++) {
    uint32_t at = 4 * lane + i, start = at && at < got ? ends[at - 1] : 0;
    v[i] = at < got ? gpuir__vbyte_value(p + start, ends[at] - start) : 0;
  }
}

/* Returns which of a lane's values a chain of linked exceptions visits, a bit each: value `first`, then each time the
 * value that lies as far ahead as the slot of the one before says, plus one. Short chains are followed, which takes a
 * shared load for each link. In long ones each value learns where 1, 2, 4, ... links lead to, while visited values
 * mark the values that they lead to: 7 rounds at most, of 40 instructions. Values that are marked behind the chain's
 * end have a rank beyond its length. */
static __device__ __forceinline__ uint32_t gc_chain(uint32_t first, uint32_t number, uint32_t count,
    const uint32_t v[4], uint32_t *sh) {
  const uint32_t mark = 1u << 31, end = GPUIR__BLOCK, own = 4 * gc_lane();
  uint32_t e, i, next[4], seen = 0;
  __syncwarp();
#pragma unroll
  for (i = 0; i < 4; i++) {
    next[i] = v[i] < end ? min(own + i + v[i] + 1, end) : end;
    sh[own + i] = next[i] | (own + i == first ? mark : 0);
  }
  __syncwarp();
  if (number <= 12) {
    for (e = 0; e < number && first < count; e++) {
      if (first / 4 == gc_lane()) seen |= 1u << (first & 3);
      first = sh[first] & ~mark;
    }
    return seen;
  }
  for (e = 1; e < number; e *= 2) {
    seen = 0;
#pragma unroll
    for (i = 0; i < 4; i++)
      if (next[i] < end && (sh[own + i] & mark)) seen |= 1u << i;
    __syncwarp();
#pragma unroll
    for (i = 0; i < 4; i++)
      if (seen >> i & 1) atomicOr(sh + next[i], mark);
    __syncwarp();
#pragma unroll
    for (i = 0; i < 4; i++)
      if (next[i] < end) next[i] = sh[next[i]] & ~mark;
    __syncwarp();
#pragma unroll
    for (i = 0; i < 4; i++) sh[own + i] = (sh[own + i] & mark) | next[i];
    __syncwarp();
  }
  seen = 0;
#pragma unroll
  for (i = 0; i < 4; i++)
    if (own + i < count && (sh[own + i] & mark)) seen |= 1u << i;
  return seen;
}

/* Decodes pfd, newpfd and optpfd. Linked exceptions are a chain: gc_chain finds them, then each lane fetches its own.
 * Predicted: 60 instructions without exceptions, 100 with exceptions apart, 130 with marked ones, 12 more for each
 * linked one; counted 360 on average of the three. Measured to memory, random and clustered docIDs: pfd 266 and 145 G
 * values/s, newpfd 346 and 364, optpfd 288 and 320. */
static __device__ __forceinline__ void gc_pfd(const gpuir__stream &s, uint32_t block, uint32_t count, uint32_t *sh,
    uint32_t v[4]) {
  uint32_t lane = gc_lane(), i, e;
  gpuir__pfd_block p;
  gpuir__pfd_find(&s, block, count, &p);
  gc_packed4(p.slots, p.b, 0, count, v);
  if (p.form == GPUIR__PFD_LINKED) {
    const uint32_t mine = gc_chain(p.first, p.number, count, v, sh);
    uint32_t rank = gc_scan(__popc(mine)) - __popc(mine);
#pragma unroll
    for (i = 0; i < 4; i++) {
      if ((mine >> i & 1) && rank < p.number) v[i] = gpuir__pfd_linked(&p, rank);
      rank += mine >> i & 1;
    }
  } else if (p.form == GPUIR__PFD_APART && p.b < 32) {
    gc_patch_begin(sh);
    for (e = lane; e < p.number; e += 32)
      atomicOr(sh + gpuir__packed_value(p.positions, 7, e), gpuir__packed_value(p.overflows, p.h, e) << p.b);
    gc_patch_end(sh, v);
  } else if (p.form == GPUIR__PFD_MARKED) {
#pragma unroll
    for (i = 0; i < 4; i++) v[i] |= gpuir__bp128_high_of(&p.marked, 4 * lane + i);
  }
}

/* Decodes values from .. from + take - 1 of a segment, which become the values from `done` on of the block. */
static __device__ __forceinline__ void gc_para(const gpuir__para &p, uint32_t from, uint32_t done, uint32_t take,
    uint32_t *sh, uint32_t x[4]) {
  const uint32_t lane = gc_lane(), first = 4 * lane - done;
  uint32_t i, e;
  if (p.b <= 14) { /* as in gc_packed4, but the first of the four may lie before */
    const uint32_t a = 4 * lane < done ? 0 : first, bit = (from + a) * p.b;
    uint64_t y = a < take ? gpuir__load64(p.slots + bit / 8) >> bit % 8 : 0;
#pragma unroll
    for (i = 0; i < 4; i++) {
      const bool in = first + i < take;
      x[i] = in ? (uint32_t)y & gc_mask(p.b) : 0;
      y >>= in ? p.b : 0;
    }
  } else {
#pragma unroll
    for (i = 0; i < 4; i++) x[i] = first + i < take ? gc_packed(p.slots, p.b, from + first + i) : 0;
  }
  if (p.en && p.b < 32) {
    gc_patch_begin(sh);
    for (e = lane; e - lane < p.en; e += 32) { /* indices increase: at most one round reaches behind */
      const uint32_t at = e < p.en ? gc_packed(p.indices, p.ib, e) : UINT32_MAX;
      if (at - from < take) atomicOr(sh + done + at - from, gc_packed(p.overflows, p.hb, e) << p.b);
      if (__any_sync(GC_WARP, at >= from + take)) break;
    }
    gc_patch_end(sh, x);
  }
}

/* Decodes parapfor. Predicted 90 instructions, 60 more with exceptions; counted 355. Measured to memory, random and
 * clustered docIDs: 285 and 282 G values/s. */
static __device__ __forceinline__ void gc_parapfor(const gpuir__stream &s, uint32_t block, uint32_t count, uint32_t *sh,
    uint32_t v[4]) {
  uint32_t lane = gc_lane(), first = block * GPUIR__BLOCK, done = 0, i, start = 0, from = 0, size = 256;
  uint64_t at = 0;
  if (s.offset) {
    size = 1u << (s.len && s.bytes[0] >= 6 && s.bytes[0] <= 8 ? s.bytes[0] : 8);
    at = gpuir__min64(s.offset[block], s.len);
    start = first & ~(size - 1);
    from = first - start;
  }
  while (done < count) {
    uint32_t length = min(size, s.n - start), take = min(length - from, count - done), x[4];
    gpuir__para p;
    at += gpuir__para_find(s.bytes + at, s.len - at, length, &p);
    gc_para(p, from, done, take, sh, x);
#pragma unroll
    for (i = 0; i < 4; i++)
      if (4 * lane + i - done < take) v[i] = x[i];
    done += take;
    start += length;
    from = 0;
  }
}

/* Decodes a piece of a block: deviations, added to their line. */
static __device__ __forceinline__ void gc_line_piece(const gpuir__line &line, uint32_t base, const gpuir__para &p,
    uint32_t from, uint32_t done, uint32_t take, uint32_t limit, uint32_t *sh, uint32_t v[4]) {
  uint32_t x[4], i;
  gc_para(p, from, done, take, sh, x);
#pragma unroll
  for (i = 0; i < 4; i++) {
    uint32_t at = 4 * gc_lane() + i - done;
    if (at < take) v[i] = min(x[i] + gpuir__line_at(&line, base + at), limit);
  }
}

/* Returns which of them a codec is. */
static __device__ __forceinline__ int gc_lrc_kind(uint32_t codec) {
  return codec == GPUIR__ID_LRC ? GPUIR__LRC : codec == GPUIR__ID_LRCSEG ? GPUIR__LRCSEG : GPUIR__SEGLRC;
}

/* Decodes lrc, lrcseg and seglrc: there is no sum to wait for. Predicted 110 instructions, 40 of them for headers;
 * counted 323, 343 and 306. Measured to memory: 296, 285 and 313 G values/s. */
static __device__ __forceinline__ void gc_lrc(const gpuir__stream &s, int kind, uint32_t block, uint32_t count,
    uint32_t *sh, uint32_t v[4]) {
  uint32_t first = block * GPUIR__BLOCK, start, from, done = 0;
  uint64_t at = s.offset ? gpuir__min64(s.offset[block], s.len) : 0;
  gpuir__lrc_list list;
  (void)gpuir__lrc_find(&s, kind, &list);
  start = first & ~(list.size - 1);
  from = first - start;
  while (done < count) {
    uint32_t length = min(list.size, s.n - start), take = min(length - from, count - done), base;
    gpuir__line line;
    gpuir__para p;
    at = gpuir__lrc_segment(&s, kind, &list, at, start, length, &line, &base, &p);
    gc_line_piece(line, base + from, p, from, done, take, s.limit, sh, v);
    done += take;
    start += length;
    from = 0;
  }
}

/* Decodes hslrc of a list with a directory; without one it is seglrc. A block reaches over 1 to 2 buckets, more where
 * docIDs crowd unevenly; predicted 130 instructions each, counted 669 a block. Each lane fetches where one of the next
 * 32 buckets begins. Measured to memory, random and clustered docIDs: 153 and 142 G values/s; 107 to 136 where
 * exceptions are forced on six tenths or none. */
static __device__ __forceinline__ void gc_hslrc(const gpuir__stream &s, uint32_t block, uint32_t count, uint32_t *sh,
    uint32_t v[4]) {
  const uint32_t start = block * GPUIR__BLOCK, lane = gc_lane();
  uint32_t done = 0, h, begins;
  gpuir__hslrc_list list;
  v[0] = v[1] = v[2] = v[3] = 0;
  (void)gpuir__hslrc_find(&s, &list);
  h = s.offset[block];
  if (h >= list.buckets) return; /* damaged */
  begins = gpuir__hslrc_first(&list, min(h + lane, list.buckets));
  while (done < count) {
    const uint32_t i = start + done;
    uint32_t behind = __ballot_sync(GC_WARP, begins > i), k, first, size, take;
    gpuir__line line;
    gpuir__para p;
    if (!behind || behind & 1) { /* more than 31 empty ones, or damaged */
      h = gpuir__hslrc_bucket(&list, h, i);
      if (h >= list.buckets) return;
      begins = gpuir__hslrc_first(&list, min(h + lane, list.buckets));
      behind = 2;
    }
    k = __ffs((int)behind) - 2;
    first = __shfl_sync(GC_WARP, begins, k);
    size = __shfl_sync(GC_WARP, begins, k + 1) - first;
    gpuir__hslrc_segment(&list, h + k, size, i - first, &line, &p);
    take = min(min(size - (i - first), count - done), GPUIR__PARA_MOST - (i - first) % GPUIR__PARA_MOST);
    gc_line_piece(line, i - first, p, (i - first) % GPUIR__PARA_MOST, done, take, s.limit, sh, v);
    done += take;
  }
}

/* Decodes ef, as gc_qs decodes qs: 12 bits a lane would do for a partition's unary part. Predicted 150 instructions;
 * counted 414 and 508, as gc_unary_marks takes the unary part apart bit by bit. Measured to memory, random and
 * clustered docIDs: ef 272 and 292 G values/s, qs 212 and 192. */
static __device__ __forceinline__ void gc_ef(const gpuir__stream &s, uint32_t block, uint32_t count, uint32_t prev,
    uint32_t *sh, uint32_t v[4]) {
  uint32_t i, first = 4 * gc_lane();
  gpuir__unary u;
  unsigned b;
  const uint8_t *low = gpuir__ef_find(&s, block, count, &b, &u);
  gc_packed4(low, b, 0, count, v);
  gc_unary_marks(u, 0, 0, count, sh);
#pragma unroll
  for (i = 0; i < 4; i++)
    v[i] = min(gpuir__joined(first + i < count ? sh[first + i] : 0, first + i, b, v[i], prev + 1), s.limit);
}

static __device__ __forceinline__ void gc_qs(const gpuir__stream &s, uint32_t block, uint32_t count, uint32_t *sh,
    uint32_t v[4]) {
  const uint64_t at = (uint64_t)block * GPUIR__BLOCK;
  uint32_t i, first = 4 * gc_lane();
  gpuir__halves h;
  (void)gpuir__halves_find(&s, GPUIR__QS_LOG, 0, &h);
  gc_packed4(h.low, h.b, at, count, v);
  gc_unary_marks(h.unary, gpuir__halves_start(&s, block), at, count, sh);
#pragma unroll
  for (i = 0; i < 4; i++)
    v[i] = min(gpuir__joined(first + i < count ? sh[first + i] : 0, first + i, h.b, v[i],
                   (s.offset ? s.offset[block] : 0) << h.b),
        s.limit);
}

/* Decodes rice: ef's instructions and a scan; counted 566. 190 G values/s, 175 of clustered docIDs. The two prefix
 * sums are localized by the directory (Ding et al. 2009, 6.1). */
static __device__ __forceinline__ void gc_rice(const gpuir__stream &s, uint32_t block, uint32_t count, uint32_t prev,
    bool sum, uint32_t *sh, uint32_t v[4]) {
  const uint64_t at = (uint64_t)block * GPUIR__BLOCK;
  uint32_t i, first = 4 * gc_lane();
  gpuir__halves h;
  (void)gpuir__halves_find(&s, GPUIR__RICE_LOG, 1, &h);
  gc_packed4(h.low, h.b, at, count, v);
  gc_unary_marks(h.unary, gpuir__halves_start(&s, block), at, count, sh);
  if (sum) gc_sum(v, prev, UINT32_MAX);
#pragma unroll
  for (i = 0; i < 4; i++)
    v[i] = min(gpuir__joined(first + i < count ? sh[first + i] : 0, first + i, h.b, 0, v[i]), s.limit);
}

/* Decodes pfd-list: one width for all. Its exceptions have been decoded before (gcl_pfl_node, or gcl_pfl_tiles and
 * gcl_pfl_exceptions: 35 instructions for 128 values of the list); counted without that 200. Measured with it: 365
 * and 259 G values/s in many lists; in a single one 40 of 1 M docIDs, 144 of 10 M. */
static __device__ __forceinline__ void gc_pfl(const gc_coded &l, uint32_t block, uint32_t count, uint32_t *sh,
    uint32_t v[4]) {
  const uint32_t first = block * GPUIR__BLOCK;
  uint32_t e, end;
  gc_packed4(l.slots, l.bits, first, count, v);
  if (!l.number) return;
  e = l.s.offset ? min(l.s.offset[block], l.number) : 0;
  end = l.s.offset && block + 1 < l.nblocks ? min(l.s.offset[block + 1], l.number) : l.number;
  end = min(end, e + GPUIR__BLOCK); /* whatever the directory says */
  gc_patch_begin(sh);
  for (e += gc_lane(); e < end; e += 32) {
    uint32_t at = l.positions[e] - first;
    if (at < count) atomicOr(sh + at, l.overflows[e] << l.bits);
  }
  gc_patch_end(sh, v);
}

/* Decodes bp128 from a stream. */
static __device__ __forceinline__ void gc_bp128(const gpuir__stream &s, uint32_t block, uint32_t count, uint32_t v[4]) {
  gc_block p;
  uint64_t left;
  p.n = count;
  p.low = gpuir__bp128_block(&s, block, count, &p.bits, &left);
  p.room = gc_high_room(left, count);
  gc_unpack(p, v);
}

/* Decodes the docIDs of a block, or without SUM its gaps where the codec has gaps; sh: 128 words of the warp's own.
 * Returns how many there are; v[] behind them is unspecified. */
template <int CODEC, bool SUM>
static __device__ __forceinline__ uint32_t gc_decode(const gc_coded &l, uint32_t block, uint32_t *sh, uint32_t v[4]) {
  const gpuir__stream &s = l.s;
  const uint32_t count = gpuir__block_count(s.n, block);
  const uint32_t prev = block ? s.last[block - 1] : UINT32_MAX;
  if (CODEC == GC_PLAIN) {
    uint4 x = __ldg((const uint4 *)(l.docs + (uint64_t)block * GPUIR__BLOCK) + gc_lane());
    v[0] = x.x;
    v[1] = x.y;
    v[2] = x.z;
    v[3] = x.w;
  } else if (CODEC == GPUIR__ID_VBYTE) {
    gc_vbyte(s, block, count, sh, v);
  } else if (CODEC == GPUIR__ID_BP128) {
    gc_bp128(s, block, count, v);
  } else if (CODEC == GPUIR__ID_OPTPFD) { /* and pfd and newpfd */
    gc_pfd(s, block, count, sh, v);
  } else if (CODEC == GPUIR__ID_EF) {
    gc_ef(s, block, count, prev, sh, v);
  } else if (CODEC == GPUIR__ID_QS) {
    gc_qs(s, block, count, sh, v);
  } else if (CODEC == GPUIR__ID_RICE) {
    gc_rice(s, block, count, prev, SUM, sh, v);
  } else if (CODEC == GPUIR__ID_PFL) {
    gc_pfl(l, block, count, sh, v);
  } else if (CODEC == GPUIR__ID_PARA) {
    gc_parapfor(s, block, count, sh, v);
  } else if (CODEC == GPUIR__ID_HSLRC) {
    if (s.offset) gc_hslrc(s, block, count, sh, v);
    else gc_lrc(s, GPUIR__SEGLRC, block, count, sh, v);
  } else {
    gc_lrc(s, gc_lrc_kind(CODEC), block, count, sh, v);
  }
  if (SUM &&
      (CODEC == GPUIR__ID_VBYTE || CODEC == GPUIR__ID_BP128 || CODEC == GPUIR__ID_OPTPFD || CODEC == GPUIR__ID_PFL ||
          CODEC == GPUIR__ID_PARA))
    gc_sum(v, prev, s.limit);
  return count;
}

/* ---- recoding as bp128: what the index holds in other codecs, on its way to the kernels ----
 * A warp decodes a block and packs it as gpuir__bp128_encode would, so that all parts below have one codec to deal
 * with. Twice: first for the blocks' sizes, of which gc_recode_offsets makes offsets, then to write them. */

enum { GC_DOCS, GC_FREQS }; /* a list's two streams */

/* A list as the index has it, on the device. */
typedef struct gc_source {
  gc_coded part[2];
  uint32_t codec[2];
} gc_source;

/* Where a list's bp128 goes: two streams of so many words, and the place of its first block in the directory, if it
 * has one. */
typedef struct gc_target {
  uint32_t *part[2];
  uint32_t words[2];
  uint64_t entry;
} gc_target;

typedef struct gc_recoding {
  const gc_source *sources;
  const uint32_t *start; /* of each list: the blocks before it; and one more */
  const gc_target *targets;
  uint32_t nlists, nblocks, chunk; /* chunk: blocks that a warp takes at a time */
  uint32_t *off[2]; /* of each block: its words, then where they begin in the list */
  uint8_t *width[2];
  unsigned long long *words; /* of each list: of its docIDs, of its frequencies */
  uint32_t *to_last, *to_off[2]; /* the directory */
  uint8_t *to_width[2];
} gc_recoding;

/* Decodes a block in whichever codec: docIDs, or frequencies, each less one; those behind its n are unspecified.
 * Returns n. There is one place that decodes both, as its code is long. */
static __device__ __forceinline__ uint32_t gc_any_values(const gc_source &s, uint32_t part, uint32_t block,
    uint32_t *sh, uint32_t v[4]) {
  const gc_coded &l = s.part[part];
  const uint32_t codec = s.codec[part], count = gpuir__block_count(l.s.n, block);
  switch (codec) {
  case GPUIR__ID_VBYTE: gc_decode<GPUIR__ID_VBYTE, false>(l, block, sh, v); break;
  case GPUIR__ID_PFD:
  case GPUIR__ID_NEWPFD:
  case GPUIR__ID_OPTPFD: gc_decode<GPUIR__ID_OPTPFD, false>(l, block, sh, v); break;
  case GPUIR__ID_PFL: gc_decode<GPUIR__ID_PFL, false>(l, block, sh, v); break;
  case GPUIR__ID_PARA: gc_decode<GPUIR__ID_PARA, false>(l, block, sh, v); break;
  case GPUIR__ID_EF: return gc_decode<GPUIR__ID_EF, true>(l, block, sh, v);
  case GPUIR__ID_QS: return gc_decode<GPUIR__ID_QS, true>(l, block, sh, v);
  case GPUIR__ID_RICE: return gc_decode<GPUIR__ID_RICE, true>(l, block, sh, v);
  case GPUIR__ID_HSLRC:
    if (l.s.offset) {
      gc_hslrc(l.s, block, count, sh, v);
      return count;
    } /* fall through */
  case GPUIR__ID_LRC:
  case GPUIR__ID_LRCSEG:
  case GPUIR__ID_SEGLRC: gc_lrc(l.s, gc_lrc_kind(codec), block, count, sh, v); return count;
  default: gc_decode<GPUIR__ID_BP128, false>(l, block, sh, v);
  }
  if (part == GC_DOCS) gc_sum(v, block ? l.s.last[block - 1] : UINT32_MAX, l.s.limit);
  return count;
}

/* How a block is packed: low bits, bits of the high parts (0: no exceptions), bytes in all. */
typedef struct gc_form {
  uint32_t bits, high, bytes;
} gc_form;

/* Chooses a block's form as gpuir__bp128_choose does: lane b looks at b low bits. Values behind count are 0. sh: 33
 * words. About 80 instructions. */
static __device__ __forceinline__ gc_form gc_choose(const uint32_t v[4], uint32_t count, uint32_t unit, uint32_t *sh) {
  const uint32_t lane = gc_lane(), up = unit - 1, fixed = (count + 7) / 8 + 1;
  const uint32_t w = gpuir__width32(__reduce_or_sync(GC_WARP, v[0] | v[1] | v[2] | v[3]));
  uint32_t least = (((count * w + 7) / 8 + up) & ~up) << 6, high, i; /* of bytes << 6 | bits of high parts */
  gc_form form;
  __syncwarp();
  sh[lane] = 0;
  if (!lane) sh[32] = 0;
  __syncwarp();
#pragma unroll
  for (i = 0; i < 4; i++) atomicAdd(sh + gpuir__width32(v[i]), 1);
  __syncwarp();
  high = sh[lane + 1]; /* becomes: how many are wider than the lane's number */
#pragma unroll
  for (i = 1; i < 32; i *= 2) {
    uint32_t other = __shfl_down_sync(GC_WARP, high, i);
    if (lane + i < 32) high += other;
  }
  if (lane < w) {
    const uint32_t bytes = (count * lane + 7) / 8 + fixed + (high * (w - lane) + 7) / 8;
    least = min(least, ((bytes + up) & ~up) << 6 | (w - lane));
  }
  least = __reduce_min_sync(GC_WARP, least);
  form.high = least & 63;
  form.bits = w - form.high;
  form.bytes = least >> 6;
  return form;
}

/* Writes n <= 32 bits into zeroed words. */
static __device__ __forceinline__ void gc_put_bits(uint32_t *sh, uint32_t bit, uint32_t value, uint32_t n) {
  const uint32_t shift = bit & 31;
  if (!value) return;
  atomicOr(sh + (bit >> 5), value << shift);
  if (shift + n > 32) atomicOr(sh + (bit >> 5) + 1, value >> (32 - shift));
}

/* Writes a block of at most 128 words, gathered in shared memory; `brief`: its width byte comes first. */
static __device__ __forceinline__ void gc_pack(const uint32_t v[4], uint32_t count, const gc_form &form, bool brief,
    uint32_t *to, uint32_t words, uint32_t *sh) {
  const uint32_t lane = gc_lane(), b = form.bits, mask = gc_mask(b), start = brief ? 8 : 0;
  uint32_t i, bit;
  __syncwarp();
  *(uint4 *)(sh + 4 * lane) = make_uint4(0, 0, 0, 0);
  __syncwarp();
  if (brief && !lane) gc_put_bits(sh, 0, b | (form.high ? GPUIR__BP128_EXCEPTIONS : 0), 8);
#pragma unroll
  for (i = 0; i < 4; i++) {
    const uint32_t low = v[i] & mask;
    if (count < GPUIR__BLOCK) {
      if (4 * lane + i < count) gc_put_bits(sh, start + (4 * lane + i) * b, low, b);
    } else if (low) {
      const uint32_t shift = lane * b & 31;
      uint32_t *word = sh + (lane * b >> 5) * 4 + i;
      atomicOr(word, low << shift);
      if (shift + b > 32) atomicOr(word + 4, low >> (32 - shift));
    }
  }
  if (form.high) {
    const uint32_t below = (1u << lane) - 1;
    uint32_t rank = 0, mine = 0;
#pragma unroll
    for (i = 0; i < 4; i++) {
      const uint32_t vote = __ballot_sync(GC_WARP, v[i] >> b);
      rank += __popc(vote & below);
      mine |= (vote >> lane & 1) << i;
    }
    bit = start + (count * b + 7) / 8 * 8;
    gc_put_bits(sh, bit + 4 * lane, mine, 4);
    bit += (count + 7) / 8 * 8;
    if (!lane) gc_put_bits(sh, bit, form.high, 8);
    bit += 8;
#pragma unroll
    for (i = 0; i < 4; i++)
      if (mine >> i & 1) gc_put_bits(sh, bit + rank++ * form.high, v[i] >> b, form.high);
  }
  __syncwarp();
  for (i = lane; i < words; i += 32) to[i] = sh[i];
}

/* Packs the values of block g: notes its size and width or, if `to` is not NULL, writes its words behind that, where
 * the list has room for `room` words. Values behind count become 0. */
static __device__ __forceinline__ void gc_recode_values(uint32_t v[4], uint32_t count, bool brief, uint64_t g,
    uint32_t *off, uint8_t *width, uint32_t *to, uint32_t room, uint32_t *sh) {
  const uint32_t lane = gc_lane();
  gc_form form;
  uint32_t i, words;
#pragma unroll
  for (i = 0; i < 4; i++)
    if (4 * lane + i >= count) v[i] = 0;
  form = gc_choose(v, count, brief ? 1 : 4, sh);
  words = (form.bytes + brief + 3) / 4;
  if (to) {
    if (off[g] <= room && words <= room - off[g]) gc_pack(v, count, form, brief, to + off[g], words, sh);
  } else if (!lane) {
    off[g] = words;
    width[g] = (uint8_t)(form.bits | (form.high ? GPUIR__BP128_EXCEPTIONS : 0));
  }
}

/* Recodes a block's docIDs or frequencies, by a warp: block `block` of list `list`, block g of the batch. */
static __device__ __forceinline__ void gc_recode_part(const gc_recoding &r, uint32_t part, uint32_t list,
    uint32_t block, uint32_t g, bool writes, uint32_t *sh) {
  const uint32_t lane = gc_lane();
  const gc_source &s = r.sources[list];
  const gpuir__stream &docs = s.part[GC_DOCS].s;
  const bool brief = !docs.offset;
  const gc_target *to = writes ? r.targets + list : NULL;
  uint32_t v[4], count, i, before;
  count = gc_any_values(s, part, block, sh, v);
  if (part == GC_DOCS) {
    before = __shfl_up_sync(GC_WARP, v[3], 1); /* docIDs to gaps */
    if (!lane) before = block ? docs.last[block - 1] : UINT32_MAX;
#pragma unroll
    for (i = 3; i > 0; i--) v[i] -= v[i - 1] + 1;
    v[0] -= before + 1;
  }
  gc_recode_values(v, count, brief, g, r.off[part], r.width[part], to ? to->part[part] : NULL, to ? to->words[part] : 0,
      sh);
  if (to && !brief && !lane) {
    if (part == GC_DOCS) r.to_last[to->entry + block] = docs.last[block];
    r.to_off[part][to->entry + block] = r.off[part][g];
    r.to_width[part][to->entry + block] = r.width[part][g];
  }
}

/* Recodes blocks, docIDs and frequencies, a warp a block: finds their sizes, or writes them. It takes the decoders'
 * instructions and about 400 for choosing and packing. Measured with ef and newpfd, 1.2 G postings in 0.7 M lists, 2^14
 * lists or 64 MB at once, by a kernel for each: sizes 58 G postings/s, writing 40 G; with what lies between 20 G.
 * Reading the index's bytes and sending them takes five times as long. */
static __global__ void __launch_bounds__(256) gc_recode(const __grid_constant__ gc_recoding r, bool writes) {
  __shared__ uint4 room[8][32];
  const uint32_t warps = gridDim.x * 8;
  uint32_t *sh = (uint32_t *)room[threadIdx.x / 32];
  uint64_t at = (uint64_t)(blockIdx.x * 8 + threadIdx.x / 32) * r.chunk;
  for (; at < r.nblocks; at += (uint64_t)warps * r.chunk) {
    const uint32_t end = (uint32_t)min((uint64_t)r.nblocks, at + r.chunk);
    uint32_t list = gc_owner(gc_numbers{r.start}, r.nlists, at), g, part;
    for (g = (uint32_t)at; g < end; g++) {
      while (g >= __ldg(r.start + list + 1)) list++;
#pragma unroll 1
      for (part = 0; part < 2; part++) gc_recode_part(r, part, list, g - __ldg(r.start + list), g, writes, sh);
    }
  }
}

/* Turns a list's sizes into offsets. A block of threads for its docIDs, one for its frequencies: 4 bytes read and
 * written a block of 128 postings. */
static __global__ void __launch_bounds__(1024) gc_recode_offsets(const __grid_constant__ gc_recoding r) {
  const uint32_t first = r.start[blockIdx.x], n = r.start[blockIdx.x + 1] - first;
  uint32_t *sizes = r.off[blockIdx.y] + first, at, k;
  unsigned long long all = 0;
  for (at = 4 * threadIdx.x; at - 4 * threadIdx.x < n; at += 4096) {
    uint32_t x[4], sum = 0, before, these;
#pragma unroll
    for (k = 0; k < 4; k++) {
      x[k] = at + k < n ? sizes[at + k] : 0;
      sum += x[k];
    }
    before = (uint32_t)all - sum + gc_block_scan<1024>(sum, &these);
#pragma unroll
    for (k = 0; k < 4; k++) {
      if (at + k < n) sizes[at + k] = before;
      before += x[k];
    }
    all += these;
  }
  if (!threadIdx.x) r.words[2 * blockIdx.x + blockIdx.y] = all;
}

/* ========================
 * [cuda-05-expand]  the long lists' guides and expanded form, under the stored k1 and b
 *
 * Uses      [cuda-03-bp128].
 * Start at  gc_expand, gc_expanded_docs.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_PEAK_BITS 4u
#define GC_PEAK_MOST ((1u << GC_PEAK_BITS) - 1)
#define GC_PEAK_LINE 64u /* peaks; a list begins with a line */
#define GC_PEAK_BYTES (GC_PEAK_LINE * GC_PEAK_BITS / 8) /* of a line */
#define GC_CELLS 96u /* bits of a group of marks */

/* Raises a peak of a row to x. */
static __device__ void gc_raise_peak(uint32_t *row, uint32_t peak, uint32_t x) {
  uint32_t *word = row + peak / (32 / GC_PEAK_BITS), shift = peak % (32 / GC_PEAK_BITS) * GC_PEAK_BITS;
  uint32_t now = *(volatile uint32_t *)word, seen;
  while ((now >> shift & GC_PEAK_MOST) < x) {
    seen = atomicCAS(word, now, (now & ~(GC_PEAK_MOST << shift)) | x << shift);
    if (seen == now) return;
    now = seen;
  }
}

/* Returns a list's peaks. */
template <typename Word>
static __device__ __forceinline__ Word *gc_peaks_of(Word *peaks, const gc_term &t) {
  return peaks + (uint64_t)t.row * (GC_PEAK_BYTES / 4);
}

/* The guides of all lists: marks, and peaks for spans of documents. */
typedef struct gc_guide {
  uint4 *marks;
  uint32_t *peaks;
} gc_guide;

/* Makes the guides of a block: each posting sets its mark, raises its span's peak, and ranks the groups that begin
 * behind the posting before it. Only the groups between the last docIDs of the block and of the one before are
 * ranked, whatever a damaged block holds. */
static __device__ void gc_note_block(const gc_view &v, const gc_guide &to, const gc_term &t, uint32_t block,
    const uint32_t d[4], const uint32_t c[4]) {
  const uint32_t *last = v.last + t.first_block + block;
  const uint32_t first = block ? (__ldg(last - 1) >> t.shift) / GC_CELLS + 1 : 0,
                 end = (__ldg(last) >> t.shift) / GC_CELLS;
  uint4 *marks = to.marks + t.marks;
  uint32_t prev = __shfl_up_sync(GC_WARP, d[3], 1), next = first, i; /* the first group without a rank */
  if (gc_lane()) next = max(first, (prev >> t.shift) / GC_CELLS + 1);
  for (i = 0; i < 4; i++)
    if (c[i]) {
      const uint32_t bit = d[i] >> t.shift, group = bit / GC_CELLS, cell = bit % GC_CELLS;
      atomicOr((uint32_t *)(marks + group) + cell / 32, 1u << (cell & 31));
      gc_raise_peak(gc_peaks_of(to.peaks, t), d[i] >> t.span, min(GC_PEAK_MOST, (c[i] - 1) / t.step + 1));
      for (; next <= min(group, end); next++) marks[next].w = block * GPUIR__BLOCK + 4 * gc_lane() + i;
    }
}

/* Where gc_expand writes: guides, and, unless impact is NULL, the expanded lists. */
typedef struct gc_expansion {
  gc_guide guide;
  uint32_t *most; /* the greatest contribution of a block */
  const uint2 *bases;
  uint16_t *narrow;
  uint32_t *wide, *impact;
} gc_expansion;

/* The first blocks of the long lists. */
struct gc_first_blocks {
  const gc_term *lists;
  __device__ __forceinline__ uint64_t operator()(uint32_t i) const { return lists[i].first_block; }
};

/* Makes guides and expanded lists, a warp a block, once an index. Predicted: reads 1 to 1.5 bytes a posting and its
 * K, writes 6; about 256 warp instructions a block. Counted: 25.5 bytes read, 8.6 written, 3,390 instructions: each
 * posting's mark and peak is an atomic operation on a sector of its own, and the latter one a loop. 68 ms for 1.2 G
 * postings. */
static __global__ void __launch_bounds__(256) gc_expand(gc_view v, const gc_term *lists, uint32_t nlists,
    uint64_t nblocks, const gc_expansion to, double norm_a, double norm_b) {
  uint64_t g = ((uint64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32, step = (uint64_t)gridDim.x * blockDim.x / 32;
  uint32_t lane = gc_lane();
  for (; g < nblocks; g += step) {
    const gc_term &t = lists[gc_owner(gc_first_blocks{lists}, nlists, g)];
    uint32_t c[4], i, best, block;
    gc_postings p;
    uint2 base;
    ushort4 s;
    if (g < t.first_block || g - t.first_block >= t.nblocks) continue; /* no list's block */
    block = (uint32_t)(g - t.first_block);
    p = gc_decode_both(v, t, block);
    best = 0;
    for (i = 0; i < 4; i++) {
      bool live = 4 * lane + i < p.n;
      c[i] = live ? gc_contribution(t.weight, p.freq[i], gpuir__norm_of(norm_a, norm_b, gc_length(v, p.doc[i]))) : 0;
      if (!live) p.doc[i] = UINT32_MAX;
      best = max(best, c[i]);
    }
    gc_note_block(v, to.guide, t, block, p.doc, c);
    best = __reduce_max_sync(GC_WARP, best);
    if (!lane) to.most[g] = best;
    if (!to.impact) continue;
    base = to.bases[g];
    *(uint4 *)(to.impact + g * GPUIR__BLOCK + 4 * lane) = make_uint4(c[0], c[1], c[2], c[3]);
    if (base.y)
      *(uint4 *)(to.wide + (uint64_t)(base.y - 1) * GPUIR__BLOCK + 4 * lane) =
          make_uint4(p.doc[0], p.doc[1], p.doc[2], p.doc[3]);
    for (i = 0; i < 4; i++) p.doc[i] = min(p.doc[i] - base.x, 65535u); /* padding: 65535, of contribution 0 */
    s.x = (uint16_t)p.doc[0]; /* of a wide block these are loaded, but not used */
    s.y = (uint16_t)p.doc[1];
    s.z = (uint16_t)p.doc[2];
    s.w = (uint16_t)p.doc[3];
    *(ushort4 *)(to.narrow + g * GPUIR__BLOCK + 4 * lane) = s;
  }
}

/* DocIDs of an expanded block; padding gives docIDs of contribution 0 that may lie anywhere. */
static __device__ __forceinline__ void gc_expanded_docs(const gc_view &v, uint64_t g, uint32_t d[4]) {
  uint32_t lane = gc_lane();
  uint2 base = __ldg(v.bases + g);
  ushort4 s = __ldg((const ushort4 *)(v.narrow + g * GPUIR__BLOCK) + lane);
  if (base.y) {
    uint4 w = __ldg((const uint4 *)(v.wide + (uint64_t)(base.y - 1) * GPUIR__BLOCK) + lane);
    d[0] = w.x;
    d[1] = w.y;
    d[2] = w.z;
    d[3] = w.w;
  } else {
    d[0] = base.x + s.x;
    d[1] = base.x + s.y;
    d[2] = base.x + s.z;
    d[3] = base.x + s.w;
  }
}

/* Returns posting i's docID in an expanded list. */
static __device__ __forceinline__ uint32_t gc_doc_at(const gc_view &v, const gc_term &t, uint32_t i) {
  const uint64_t at = t.first_block * GPUIR__BLOCK + i;
  const uint32_t x = __ldg(v.narrow + at);
  const uint2 base = __ldg(v.bases + at / GPUIR__BLOCK);
  return base.y ? __ldg(v.wide + (uint64_t)(base.y - 1) * GPUIR__BLOCK + at % GPUIR__BLOCK) : base.x + x;
}

/* ========================
 * [cuda-05b-slices]  long lists cut at tiles of documents, for adding up all of them
 *
 * A list's postings within a tile of documents are a slice. It has no order, as sums have none, and so needs no
 * prefix sums, no bounds to be checked and no blocks that reach into two tiles: a posting is its document's place in
 * the tile's sums, in bytes, and what it contributes. Slices are made of strips of 128 postings:
 *
 *     place  u16 [128]      four times the document's number within the tile
 *     add    u32 [128]      the contribution under the stored k1 and b; 0: no posting
 *
 * Lane t of a warp takes the postings 4t to 4t + 3 of a strip, so the i-th addition of a warp is to the places
 * numbered i modulo 4. They are dealt out such that these stand in different banks of shared memory, as far as the
 * slice allows: round r of a slice takes the r-th posting of each bank.
 *
 * Uses      [cuda-05-expand].
 * Start at  gc_cut_lists.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_STRIP 768u /* bytes */
#define GC_CUT_MOST 16384u /* documents of a tile: their places are below 2^16 */
#define GC_CUT_THREADS 128u

/* Places of the postings of one slice. */
typedef struct gc_dealing {
  uint32_t count[32], next[32]; /* postings of a bank; those that have a place */
  uint32_t before[GC_CUT_MOST / 32], banks[GC_CUT_MOST / 32]; /* of a round: postings before it; its banks */
  uint32_t from, end; /* blocks that reach into the tile */
} gc_dealing;

/* Calls take(place, c) for each posting of list `t` within a tile, by all threads. */
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

/* Counts the strips of slices: one block of threads a slice. */
static __global__ void __launch_bounds__(GC_CUT_THREADS) gc_count_strips(const __grid_constant__ gc_view v,
    const gc_term *lists, const uint32_t *cut, uint32_t ncut, const __grid_constant__ gc_slices to, uint32_t *strips) {
  __shared__ gc_dealing sh;
  __shared__ uint32_t n;
  uint64_t item;
  for (item = blockIdx.x; item < (uint64_t)ncut * to.ntiles; item += gridDim.x) {
    const uint32_t row = (uint32_t)(item / to.ntiles), tile = (uint32_t)(item % to.ntiles);
    uint32_t mine = 0;
    if (!threadIdx.x) n = 0;
    __syncthreads();
    gc_each_in_tile(v, lists[cut[row]], to, tile, &sh, [&](uint32_t, uint32_t) { mine++; });
    mine = __reduce_add_sync(GC_WARP, mine);
    if (!gc_lane() && mine) atomicAdd(&n, mine);
    __syncthreads();
    if (!threadIdx.x) strips[(uint64_t)row * (to.ntiles + 1) + tile] = (n + GPUIR__BLOCK - 1) / GPUIR__BLOCK;
    __syncthreads();
  }
}

/* Finds for each round its banks and the postings before it, by a warp; returns how many postings there are. */
static __device__ __forceinline__ uint32_t gc_deal(gc_dealing *sh) {
  const uint32_t mine = sh->count[gc_lane()];
  const uint32_t most = min(__reduce_max_sync(GC_WARP, mine), GC_CUT_MOST / 32); /* more: documents twice */
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

/* Returns where posting number n of a slice lies: its strip, and its number there. */
static __device__ __forceinline__ uint32_t gc_dealt(uint32_t n) { return n & ~127u | (n & 31) << 2 | (n >> 5 & 3); }

/* Fills the strips of slices, one block of threads a slice; what is left of the last one adds 0. */
static __global__ void __launch_bounds__(GC_CUT_THREADS) gc_cut_lists(const __grid_constant__ gc_view v,
    const gc_term *lists, const uint32_t *cut, uint32_t ncut, const __grid_constant__ gc_slices to, uint8_t *strips) {
  __shared__ gc_dealing sh;
  __shared__ uint32_t n;
  uint64_t item;
  for (item = blockIdx.x; item < (uint64_t)ncut * to.ntiles; item += gridDim.x) {
    const uint32_t row = (uint32_t)(item / to.ntiles), tile = (uint32_t)(item % to.ntiles);
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
    if (!room) continue;
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
  }
}

/* ========================
 * [cuda-06-or]  OR: docID tiles in shared memory
 *
 * The docIDs are cut into tiles. gc_tiles finds which blocks of each list reach into a tile and bounds what they can
 * contribute there; gc_order sorts a job's tiles by descending sum of bounds; gc_or scores tile after tile, until the
 * next one's bound is below the threshold.
 *
 * Uses      [cuda-03-bp128], [cuda-05-expand].
 * Start at  gc_tiles, gc_order, gc_or.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_OR_WORKERS 256u /* threads that score expanded lists; one warp more looks ahead */
#define GC_PACKED_WORKERS 384u /* threads that score lists in place: more of them, as each waits longer */
#define GC_OR_THREADS(EXPANDED) ((EXPANDED) ? GC_OR_WORKERS + 32u : GC_PACKED_WORKERS + 32u)
#define GC_AHEAD 3u /* blocks that a warp has on their way at once */
#define GC_KEYS 1024u /* survivors of a tile that are selected among in shared memory */
#define GC_CHUNK 2048u /* blocks of a list whose bounds one block of threads spreads over tiles */
#define GC_BUCKETS 256u /* of tile bounds */

/* ---- which blocks of a list reach into a tile, and what they can contribute there ----
 * first[t] is twice the first block whose last docID is not below tile t, plus 1 if that block starts in an
 * earlier tile; so tile t's blocks are first[t] / 2 up to first[t+1] / 2, and that one too if first[t+1] is odd. */

/* Returns the bound of a block under any k1 and b, as gpuir__bound does by its table. */
static __device__ uint32_t gc_pairs_bound(const gc_term &t, const gc_job &j, const gpuir__pair *pairs) {
  float best = 0;
  uint32_t i;
  for (i = 0; i < GPUIR__BLOCK_PAIRS; i++) {
    uint32_t pair = __ldg(pairs + i), tf = pair & 255, len = pair >> 8;
    if (tf) {
      float f = __uint2float_rn(tf < 255 ? gpuir__code_value(tf) : GPUIR__CAP);
      best = fmaxf(best, __fdiv_rn(f, __fadd_rn(f, gpuir__norm_of(j.norm_a, j.norm_b, gpuir__code_value(len)))));
    }
  }
  return t.q * gpuir__slacken(__float2uint_rn(__fmul_rn(t.weight, best)));
}

/* Spreads blocks over tiles: one block of threads takes GC_CHUNK blocks of a list, a thread a block. Predicted: reads
 * 8 to 12 bytes a block of 128 postings, 36 more where bounds are made of pairs; writes 8 bytes a tile. Counted
 * there: 46 bytes of the L2 cache, 3.3 of them from memory, and 7.4 warp instructions. */
static __global__ void __launch_bounds__(256)
    gc_tiles(const __grid_constant__ gc_view v, const __grid_constant__ gc_batch b, int expanded) {
  uint32_t item;
  bool any = false;
  gc_chained();
  for (item = blockIdx.x + threadIdx.x * gridDim.x; item < b.ors.nchunks; item += gridDim.x * blockDim.x)
    any |= !b.states[b.ors.chunks[item].job].followed;
  if (!__syncthreads_or(any)) return; /* as in most launches: MaxScore takes all jobs */
  for (item = blockIdx.x; item < b.ors.nchunks; item += gridDim.x) {
    const gc_chunk chunk = b.ors.chunks[item];
    if (b.states[chunk.job].followed) continue;
    const gc_term t = b.terms[chunk.term];
    const gc_job job = b.jobs[chunk.job];
    uint32_t *first = b.ors.first + (uint64_t)t.slot * (v.ntiles + 1),
             *bound = b.ors.bound + (uint64_t)t.slot * (v.ntiles + 1);
    if (t.kind == GC_LONG) {
      uint32_t end = min(t.nblocks, chunk.first + GC_CHUNK), i;
      for (i = chunk.first + threadIdx.x; i < end; i += blockDim.x) {
        uint64_t g = t.first_block + i;
        uint32_t last = __ldg(v.last + g), start = i ? __ldg(v.last + g - 1) + 1 : 0, tile, most;
        uint32_t to = min(last / v.tile, v.ntiles - 1), from = i ? (start - 1) / v.tile + 1 : 0;
        for (tile = from; tile <= to; tile++) first[tile] = i << 1 | (start < tile * v.tile);
        if (i == t.nblocks - 1)
          for (tile = to + 1; tile <= v.ntiles; tile++) first[tile] = t.nblocks << 1;
        if (t.negated) continue;
        most = expanded && job.stored ? t.q * __ldg(v.most + g)
                                      : gc_pairs_bound(t, job, v.bounds + g * GPUIR__BLOCK_PAIRS);
        for (tile = min(start / v.tile, v.ntiles - 1); tile <= to; tile++) atomicMax(bound + tile, most);
      }
    } else if (threadIdx.x < 32) { /* one block: its postings themselves */
      const gc_postings p = gc_decode_both(v, b.terms[chunk.term], 0);
      uint32_t i;
      for (i = 0; i < 4; i++)
        if (4 * threadIdx.x + i < p.n)
          atomicMax(bound + p.doc[i] / v.tile,
              t.negated ? 1 : t.q * gc_contribution(t.weight, p.freq[i], gc_norm(v, job, p.doc[i])));
    }
  }
}

/* Returns where a tile stands in the order: monotone in its bound. */
static __device__ __forceinline__ uint32_t gc_bucket(uint32_t bound, uint32_t greatest) {
  return min((uint32_t)__fmul_rn(__uint2float_rd(bound), __fdiv_rn(GC_BUCKETS - 1, __uint2float_ru(greatest))),
      GC_BUCKETS - 1);
}

/* Orders the tiles of an OR, a block of threads an OR: sums up their bounds and sorts them in descending order, as
 * far as 256 steps tell them apart. Reads 4 bytes a term and tile, writes 8 a tile: predicted 21 KB for three terms
 * and 1,070 tiles. Counted, all tiles to be scored: 17 KB from memory and 5,000 warp instructions an OR. */
static __global__ void __launch_bounds__(256)
    gc_order(const __grid_constant__ gc_view v, const __grid_constant__ gc_batch b) {
  __shared__ uint32_t count[GC_BUCKETS], greatest, live;
  gc_chained();
  const uint32_t j = b.ors.jobs[blockIdx.x];
  const gc_job job = b.jobs[j];
  gc_state *state = b.states + j;
  uint32_t *total = b.ors.total + (uint64_t)j * v.ntiles, *order = b.ors.order + (uint64_t)j * v.ntiles, t, i;
  if (!threadIdx.x) greatest = live = 0;
  for (i = threadIdx.x; i < GC_BUCKETS; i += blockDim.x) count[i] = 0;
  __syncthreads();
  if (!state->followed) {
    for (t = threadIdx.x; t < v.ntiles; t += blockDim.x) {
      uint32_t sum = 0;
      for (i = 0; i < job.npositive; i++)
        sum += b.ors.bound[(uint64_t)b.terms[job.first_term + i].slot * (v.ntiles + 1) + t];
      total[t] = sum;
      atomicMax(&greatest, sum);
    }
    __syncthreads();
    for (t = threadIdx.x; t < v.ntiles; t += blockDim.x)
      if (total[t]) atomicAdd(&count[GC_BUCKETS - 1 - (job.prune ? gc_bucket(total[t], greatest) : 0)], 1);
    __syncthreads();
    if (threadIdx.x < 32) {
      const uint32_t all = gc_scan_counts(count);
      if (threadIdx.x == 31) live = all;
    }
    __syncthreads();
    for (t = threadIdx.x; t < v.ntiles; t += blockDim.x)
      if (total[t]) order[atomicAdd(&count[GC_BUCKETS - 1 - (job.prune ? gc_bucket(total[t], greatest) : 0)], 1)] = t;
  }
  if (!threadIdx.x) {
    state->live = live;
    state->greatest = greatest;
  }
}

/* ---- the next tile, found by one warp while the others score ---- */

/* A list's blocks within a tile. */
typedef struct gc_range {
  uint32_t g; /* the i-th block of the tile is block g + i of the index, or of a list without a directory */
  uint32_t end; /* i is below it */
  uint32_t q;
  uint32_t term; /* in the batch; GC_SLOW: not expanded, or under other k1 and b */
  uint32_t first, full; /* of a list with a directory: its first block, and how many of its blocks are full */
} gc_range;
#define GC_SLOW 0x80000000u

/* A tile to score. */
typedef struct gc_item {
  unsigned long long floor; /* of the job, when the tile was chosen */
  uint32_t job, tile; /* job GC_NONE: no more work */
  uint32_t n, blocks; /* lists that reach into the tile, and their blocks there */
  uint32_t npositive; /* of the n */
  __align__(16) gc_range range[GPUIR_MAX_TERMS];
} gc_item;

/* Where the warp that looks ahead stands; the same in all its lanes. */
typedef struct gc_ahead {
  uint32_t job; /* whose tiles it hands out; GC_NONE: none yet */
  uint32_t helping; /* 1: all jobs have been begun */
  uint32_t at; /* in the list of OR jobs */
  uint32_t pos, end; /* the positions in the job's tile order that it has taken */
} gc_ahead;

/* Returns a job with tiles left, first one that nobody has begun, then any; GC_NONE: there is none. */
static __device__ uint32_t gc_pick_job(const gc_batch &b, gc_ahead &a) {
  uint32_t lane = gc_lane(), s;
  if (!a.helping) {
    uint32_t i = 0;
    if (!lane) i = atomicAdd(&b.control->next_or, 1);
    i = __shfl_sync(GC_WARP, i, 0);
    if (i < b.ors.n) return b.ors.jobs[i];
    a.helping = 1;
    a.at = blockIdx.x % b.ors.n;
  }
  for (s = 0; s < b.ors.n; s += 32) {
    uint32_t i = s + lane, found, j = GC_NONE;
    bool open = false;
    if (i < b.ors.n) {
      i = a.at + i < b.ors.n ? a.at + i : a.at + i - b.ors.n;
      j = b.ors.jobs[i];
      open = *(volatile uint32_t *)&b.states[j].next < b.states[j].live && !b.states[j].done;
    }
    found = __ballot_sync(GC_WARP, open);
    if (found) {
      uint32_t l = __ffs(found) - 1;
      a.at = __shfl_sync(GC_WARP, i, l);
      return __shfl_sync(GC_WARP, j, l);
    }
  }
  return GC_NONE;
}

/* Makes a job that still needs its tiles the current one; returns false if there is none. */
static __device__ __forceinline__ bool gc_next_job(const gc_batch &b, gc_ahead &a) {
  for (;;) {
    uint32_t after;
    a.job = gc_pick_job(b, a);
    a.pos = a.end = 0;
    if (a.job == GC_NONE) return false;
    if (b.states[a.job].done) continue;
    after = b.jobs[a.job].after;
    if (after == GC_NONE || b.states[after].count < b.jobs[a.job].k) return true;
    if (!gc_lane()) b.states[a.job].next = UINT32_MAX / 2; /* AND was enough */
  }
}

/* Takes positions of the job's tile order, if none are left; returns false, and forgets the job, if it has no more. */
static __device__ __forceinline__ bool gc_next_positions(const gc_batch &b, gc_ahead &a) {
  gc_state *state = b.states + a.job;
  if (a.pos != a.end) return true;
  if (!gc_lane()) a.pos = atomicAdd(&state->next, b.ors.grab);
  a.pos = __shfl_sync(GC_WARP, a.pos, 0);
  a.end = min(a.pos + b.ors.grab, state->live);
  if (a.pos < a.end) return true;
  a.job = GC_NONE;
  return false;
}

/* Takes the next position's tile; returns whether its bound reaches the floor. If no tile behind it does either, the
 * job is ended. */
static __device__ __forceinline__ bool gc_next_tile(const gc_view &v, const gc_batch &b, gc_ahead &a, uint32_t *tile,
    unsigned long long *floor) {
  const gc_job *job = b.jobs + a.job;
  gc_state *state = b.states + a.job;
  uint32_t total, need;
  *tile = b.ors.order[(uint64_t)a.job * v.ntiles + a.pos++];
  total = b.ors.total[(uint64_t)a.job * v.ntiles + *tile];
  *floor = __shfl_sync(GC_WARP, gc_floor(state), 0);
  need = gc_need(*floor);
  if (total >= need) return true;
  if (job->prune && gc_bucket(total, state->greatest) < gc_bucket(need, state->greatest)) {
    if (!gc_lane()) atomicMax(&state->next, UINT32_MAX / 2);
    a.job = GC_NONE;
  }
  return false;
}

/* Finds the blocks of term number `who` within a tile; returns how many there are. */
template <bool EXPANDED>
static __device__ __forceinline__ uint32_t gc_find_range(const gc_view &v, const gc_batch &b, const gc_job *job,
    uint32_t who, uint32_t tile, gc_range *range) {
  const gc_term *t = b.terms + who;
  const uint64_t slot = (uint64_t)t->slot * (v.ntiles + 1) + tile;
  uint32_t len;
  if (t->kind == GC_LONG) {
    uint32_t x = b.ors.first[slot], y = b.ors.first[slot + 1], start = x >> 1, end;
    end = min((y >> 1) + (y & 1), t->nblocks);
    len = end > start ? end - start : 0;
    range->first = (uint32_t)t->first_block;
    range->full = t->df / GPUIR__BLOCK;
    range->g = range->first + start;
  } else {
    len = b.ors.bound[slot] ? 1 : 0;
  }
  range->q = t->q;
  range->term = who | (EXPANDED && t->kind == GC_LONG && job->stored ? 0 : GC_SLOW);
  return len;
}

/* Describes a tile: the ranges of the lists that reach into it, in the order of the job's terms, a lane a term. */
template <bool EXPANDED>
static __device__ __forceinline__ void gc_fill_item(const gc_view &v, const gc_batch &b, uint32_t j, uint32_t tile,
    unsigned long long floor, gc_item *item) {
  const gc_job *job = b.jobs + j;
  const uint32_t lane = gc_lane();
  uint32_t i, n = 0, blocks = 0;
  for (i = 0; i < job->nterms; i += 32) {
    gc_range range = {0, 0, 0, 0, 0, 0};
    uint32_t len = 0, live, scan;
    if (i + lane < job->nterms) len = gc_find_range<EXPANDED>(v, b, job, job->first_term + i + lane, tile, &range);
    live = __ballot_sync(GC_WARP, len > 0);
    scan = gc_scan(len);
    if (len) {
      range.end = blocks + scan;
      range.g -= range.end - len;
      item->range[n + gc_rank(live)] = range;
    }
    blocks += __shfl_sync(GC_WARP, scan, 31);
    n += __popc(live);
    live = __ballot_sync(GC_WARP, len > 0 && i + lane < job->npositive);
    if (!lane) item->npositive = (i ? item->npositive : 0) + __popc(live);
  }
  if (!lane) {
    item->floor = floor;
    item->job = j;
    item->tile = tile;
    item->n = n;
    item->blocks = blocks;
  }
}

/* Finds the next tile that is worth scoring, by one warp. */
template <bool EXPANDED>
static __device__ void gc_look_ahead(const gc_view &v, const gc_batch &b, gc_ahead &a, gc_item *item) {
  for (;;) {
    unsigned long long floor;
    uint32_t tile;
    if (a.job == GC_NONE && !gc_next_job(b, a)) {
      if (!gc_lane()) item->job = GC_NONE;
      return;
    }
    if (!gc_next_positions(b, a) || !gc_next_tile(v, b, a, &tile, &floor)) continue;
    gc_fill_item<EXPANDED>(v, b, a.job, tile, floor, item);
    return;
  }
}

/* ---- adding blocks to a tile's sums ---- */

/* Where the documents are noted that reach the need, in shared memory. */
typedef struct gc_notes {
  uint32_t sums; /* shared address of the tile's sums, and of GC_SPARE more */
  uint32_t tile; /* how many there are of the former */
  uint32_t below; /* the need, less one */
  uint32_t *spots, *count; /* the noted documents, of the tile; how many they are */
} gc_notes;
#define GC_SPARE 32u /* sums of a lane's own, for what lies outside the tile */

/* Returns the bytes of shared memory that a tile of so many documents takes. */
static size_t gc_tile_bytes(uint64_t tile) { return (size_t)(tile + GC_SPARE) * 4; }

static __device__ __forceinline__ void gc_note(const gc_notes &n, uint32_t local) {
  uint32_t at = atomicAdd(n.count, 1);
  if (at < GC_KEYS) n.spots[at] = local;
}

/* Adds to four documents' sums. The addition that lifts a sum to the need notes the document: sums only grow, so
 * exactly one does. What lies outside the tile goes to a sum that nobody reads. 7 instructions each. */
static __device__ __forceinline__ void gc_add4(const gc_notes &n, const uint32_t local[4], const uint32_t c[4]) {
  const uint32_t spare = n.tile + gc_lane();
  uint32_t old[4], hit = 0, i;
#pragma unroll
  for (i = 0; i < 4; i++)
    asm volatile("atom.shared.add.u32 %0, [%1], %2;"
                 : "=r"(old[i])
                 : "r"(n.sums + 4 * min(local[i], spare)), "r"(c[i])
                 : "memory");
#pragma unroll
  for (i = 0; i < 4; i++) hit |= n.below - old[i] < c[i] ? 1u << i : 0;
  if (hit) { /* one mask: synccheck takes branches on two predicates for divergence at the next barrier */
#pragma unroll
    for (i = 0; i < 4; i++)
      if (n.below - old[i] < c[i] && local[i] < n.tile) gc_note(n, local[i]);
  }
}

/* Adds a block of any kind, decoding it. */
static __device__ __noinline__ void gc_add_rare(const gc_view &v, const gc_job &job, const gc_term *term,
    uint32_t block, uint32_t base, const gc_notes &notes) {
  uint32_t lane = gc_lane(), d[4], c[4], i, n;
  n = gc_decode_docs(v, *term, block, d);
  gc_decode_freqs(v, *term, block, c);
#pragma unroll
  for (i = 0; i < 4; i++) {
    d[i] -= base;
    if (4 * lane + i >= n) d[i] = UINT32_MAX;
    if (d[i] < v.tile) c[i] = term->q * gc_contribution(term->weight, c[i], gc_norm(v, job, d[i] + base));
  }
  gc_add4(notes, d, c);
}

/* What a lane holds of an expanded block. */
typedef struct gc_held {
  uint4 c;
  uint2 base, s;
} gc_held;

static __device__ __forceinline__ gc_held gc_hold(const gc_view &v, uint32_t g) {
  uint64_t at = (uint64_t)g * 32 + gc_lane();
  gc_held h;
  h.c = __ldg((const uint4 *)v.impact + at);
  h.s = __ldg((const uint2 *)v.narrow + at);
  h.base = __ldg(v.bases + g);
  return h;
}

/* Adds an expanded block's postings to the tile's sums: 6 bytes a posting. Predicted 60 warp instructions a block, 4
 * of them shared additions; in the machine code 60, and 37 for what gc_fetch does. */
static __device__ __forceinline__ void gc_add_held(const gc_view &v, const gc_held &h, uint32_t q, uint32_t base,
    const gc_notes &notes) {
  uint32_t d[4] = {h.s.x & 0xffff, h.s.x >> 16, h.s.y & 0xffff, h.s.y >> 16}, from = h.base.x - base, i;
  uint32_t c[4] = {q * h.c.x, q * h.c.y, q * h.c.z, q * h.c.w};
  if (h.base.y) {
    uint4 w = __ldg((const uint4 *)(v.wide + (uint64_t)(h.base.y - 1) * GPUIR__BLOCK) + gc_lane());
    d[0] = w.x;
    d[1] = w.y;
    d[2] = w.z;
    d[3] = w.w;
    from = 0 - base;
  }
#pragma unroll
  for (i = 0; i < 4; i++) d[i] += from;
  gc_add4(notes, d, c);
}

/* Some of a warp's blocks in a tile, loaded and not yet added. More of them would be spilled, and a spill waits for
 * the load. */
typedef struct gc_round {
  gc_held h[GC_AHEAD];
  uint32_t q[GC_AHEAD], term[GC_AHEAD], g[GC_AHEAD]; /* term: GC_NONE if there is none */
} gc_round;

/* Loads the blocks i, i + 8 and i + 16 of a tile, of those below `end`. `at`: the range that i is in. A block that is
 * not there loads block 0 instead: a load under a condition would be waited for where the paths join. */
static __device__ __forceinline__ void gc_fetch(const gc_view &v, const gc_item *item, uint32_t i, uint32_t end,
    uint32_t &at, gc_round &round) {
  uint32_t u;
  gc_range r = item->range[at];
#pragma unroll
  for (u = 0; u < GC_AHEAD; u++) {
    uint32_t to = i + u * (GC_OR_WORKERS / 32);
    while (to < end && to >= r.end) r = item->range[++at];
    round.q[u] = r.q;
    round.term[u] = to < end ? r.term : GC_NONE;
    round.g[u] = r.g + to;
    round.h[u] = gc_hold(v, round.term[u] & GC_SLOW ? 0 : round.g[u]);
  }
}

static __device__ __forceinline__ void gc_prefetch(const void *p, uint32_t bytes) {
  uint32_t i;
  for (i = 0; i < bytes; i += 128) asm volatile("prefetch.global.L2 [%0];" : : "l"((const uint8_t *)p + i) : "memory");
}

/* Prefetches to the L2 cache the tile's blocks that gc_fetch does not load at first, a thread a block. */
static __device__ __forceinline__ void gc_prefetch_blocks(const gc_view &v, const gc_item *item, uint32_t end) {
  uint32_t i = GC_AHEAD * (GC_OR_WORKERS / 32) + threadIdx.x, at = 0;
  if (i >= end) return;
  while (i >= item->range[at].end) at++;
  if (item->range[at].term & GC_SLOW) return;
  i += item->range[at].g;
  gc_prefetch((const uint4 *)v.impact + (uint64_t)i * 32, GPUIR__BLOCK * 4);
  gc_prefetch((const uint2 *)v.narrow + (uint64_t)i * 32, GPUIR__BLOCK * 2);
  gc_prefetch(v.bases + i, 1);
}

static __device__ __forceinline__ uint32_t gc_positive_blocks(const gc_item *item) {
  return item->npositive ? item->range[item->npositive - 1].end : 0;
}

/* ---- full blocks decoded in place ---- */

/* Where a block of a tile stands. */
typedef struct alignas(16) gc_head {
  const uint8_t *docs; /* a full block's low parts; NULL: it is block `forms` of term `q`, in the batch */
  const uint8_t *freqs; /* the same of its frequencies */
  uint32_t prev; /* the docID before it */
  uint32_t forms; /* of docIDs, << 16 of frequencies: low bits, << 6 the room for high parts */
  uint32_t q;
  float weight;
} gc_head;
#define GC_HEADS 128u /* blocks of a tile whose heads are in shared memory at once */

/* Finds a full block of a list's stream; returns its form. */
static __device__ __forceinline__ uint32_t gc_find_full(const uint8_t *list, uint64_t length, uint32_t at,
    uint32_t width, const uint8_t **low) {
  const gc_block p = gc_block_at(list, length, true, at, width, GPUIR__BLOCK);
  *low = p.low;
  return p.bits | p.room << 6;
}

/* Loads what a lane needs of a full block of that form. */
static __device__ __forceinline__ gc_rows gc_load_form(const uint8_t *low, uint32_t form) {
  return gc_load_rows(low, form & 63, form >> 6);
}

/* Finds the heads of a tile's blocks `from` to `end`, GC_HEADS at most, a thread a block: about 100 instructions for
 * 32. */
static __device__ __forceinline__ void gc_find_heads(const gc_view &v, const gc_batch &b, const gc_item *item,
    uint32_t from, uint32_t end, gc_head *heads) {
  const uint32_t i = from + threadIdx.x;
  uint32_t at = 0, g, block;
  gc_head h;
  if (threadIdx.x >= GC_HEADS || i >= end) return;
  while (i >= item->range[at].end) at++;
  const gc_range r = item->range[at];
  const gc_term &t = b.terms[r.term & ~GC_SLOW];
  g = r.g + i;
  block = g - r.first;
  h.docs = h.freqs = NULL;
  h.prev = UINT32_MAX;
  h.forms = block;
  h.q = r.term & ~GC_SLOW;
  h.weight = 0;
  if (block < r.full && b.jobs[item->job].fused) {
    h.forms = gc_find_full((const uint8_t *)v.docids + t.docs, t.docs_len, __ldg(v.docs_off + g),
        __ldg(v.docs_width + g), &h.docs);
    h.forms |= gc_find_full((const uint8_t *)v.freqs + t.freqs, t.freqs_len, __ldg(v.freqs_off + g),
                   __ldg(v.freqs_width + g), &h.freqs)
        << 16;
    h.q = t.q;
    h.weight = t.weight;
    if (block) h.prev = __ldg(v.last + g - 1);
  }
  heads[threadIdx.x] = h;
}

/* Returns gpuir__norm_of for a `fused` job, whose only rounding there is the only one here too. 2 instructions, none
 * of 64 bits. */
static __device__ __forceinline__ float gc_fused_norm(float a, float b, uint32_t length) {
  return __fmaf_rn(b, __uint2float_rn(min(length, GPUIR__CAP)), a);
}

/* Adds a full block: 1 to 1.5 bytes a posting, and 2 of its document's length. Predicted 220 warp instructions,
 * 60 more for each of its streams that has exceptions; in the machine code 280 and 67. */
static __device__ __forceinline__ void gc_add_packed(const gc_view &v, float norm_a, float norm_b, const gc_head &h,
    uint32_t base, const gc_notes &notes) {
  const gc_rows docs = gc_load_form(h.docs, h.forms & 0xffff), freqs = gc_load_form(h.freqs, h.forms >> 16);
  uint32_t d[4], c[4], length[4], i;
  gc_unpack_rows(docs, d);
  gc_sum(d, h.prev - base, UINT32_MAX);
#pragma unroll
  for (i = 0; i < 4; i++) length[i] = gc_length(v, base + min(d[i], v.documents - 1 - base));
  gc_unpack_rows(freqs, c);
#pragma unroll
  for (i = 0; i < 4; i++) c[i] = h.q * gc_contribution(h.weight, c[i], gc_fused_norm(norm_a, norm_b, length[i]));
  gc_add4(notes, d, c);
}

/* Waits for the other workers of packed tiles, not for the warp that looks ahead. */
static __device__ __forceinline__ void gc_workers_wait(void) {
  asm volatile("bar.sync 1, %0;" : : "n"(GC_PACKED_WORKERS) : "memory");
}

/* ---- the work of one tile ---- */

/* Adds a tile's expanded blocks by the workers: each warp takes every eighth. The first ones are on their way already,
 * in `round`. */
static __device__ __forceinline__ void gc_add_tile_expanded(const gc_view &v, const gc_batch &b, const gc_job &job,
    const gc_item *item, uint32_t base, const gc_notes &notes, gc_round &round, uint32_t at) {
  const uint32_t end = gc_positive_blocks(item);
  uint32_t i = threadIdx.x / 32, u;
  while (i < end) {
#pragma unroll
    for (u = 0; u < GC_AHEAD; u++) {
      if (!(round.term[u] & GC_SLOW)) {
        gc_add_held(v, round.h[u], round.q[u], base, notes);
      } else if (round.term[u] != GC_NONE) {
        const gc_term *t = b.terms + (round.term[u] & ~GC_SLOW);
        gc_add_rare(v, job, t, round.g[u] - (uint32_t)t->first_block, base, notes);
      }
    }
    i += GC_AHEAD * (GC_OR_WORKERS / 32);
    if (i < end) gc_fetch(v, item, i, end, at, round);
  }
}

/* Adds a tile's blocks by the workers, decoding them; the heads of the first ones are known already. */
static __device__ __forceinline__ void gc_add_tile_packed(const gc_view &v, const gc_batch &b, const gc_job &job,
    const gc_item *item, uint32_t base, const gc_notes &notes, gc_head *heads) {
  const uint32_t end = gc_positive_blocks(item);
  const float norm_a = (float)job.norm_a, norm_b = (float)job.norm_b;
  uint32_t at, i;
  for (at = 0;;) {
    for (i = threadIdx.x / 32; i < min(end - at, GC_HEADS); i += GC_PACKED_WORKERS / 32) {
      const gc_head h = heads[i];
      if (h.docs) gc_add_packed(v, norm_a, norm_b, h, base, notes);
      else gc_add_rare(v, job, b.terms + h.q, h.forms, base, notes);
    }
    at += GC_HEADS;
    if (at >= end) return;
    gc_workers_wait();
    gc_find_heads(v, b, item, at, end, heads);
    gc_workers_wait();
  }
}

/* Clears the sums of n documents of a negated list's block, four of them the lane's. */
static __device__ __forceinline__ void gc_clear4(uint32_t tile, const uint32_t d[4], uint32_t n, uint32_t base,
    uint32_t *sums) {
  uint32_t i;
  for (i = 0; i < 4; i++)
    if (4 * gc_lane() + i < n && d[i] - base < tile) sums[d[i] - base] = 0;
}

/* Clears those of a block of any kind, decoding it. */
static __device__ __noinline__ void gc_clear_rare(const gc_view &v, const gc_term *term, uint32_t block, uint32_t base,
    uint32_t *sums) {
  const gc_postings p = gc_decode_both(v, *term, block);
  gc_clear4(v.tile, p.doc, p.n, base, sums);
}

/* Clears those of a block, by the code that its list allows. */
template <bool EXPANDED>
static __device__ __forceinline__ void gc_clear_block(const gc_view &v, const gc_term *t, uint32_t block, uint32_t base,
    uint32_t *sums) {
  if (EXPANDED && t->kind == GC_LONG) {
    uint32_t d[4];
    gc_expanded_docs(v, t->first_block + block, d);
    gc_clear4(v.tile, d, gc_block_len(*t, block), base, sums);
  } else {
    gc_clear_rare(v, t, block, base, sums);
  }
}

/* The sums of a tile as keys; 0: not above the floor. */
struct gc_keys_sums {
  const uint32_t *sums;
  uint32_t base;
  unsigned long long floor;
  __device__ unsigned long long operator()(uint32_t i) const {
    unsigned long long key = sums[i] ? gpuir__key(sums[i], base + i) : 0;
    return key > floor ? key : 0;
  }
};

template <bool EXPANDED>
struct gc_shared_heads {
  gc_head heads[GC_HEADS];
};
template <>
struct gc_shared_heads<true> {
  gc_head heads[1]; /* not used */
};

struct gc_shared_or {
  enum : uint32_t { KEYS = GC_KEYS };
  unsigned long long keys[GC_KEYS]; /* survivors of the tile */
  gc_item item[2]; /* by the parity of the tile, as are the numbers below */
  uint32_t hist[256], spots[GC_KEYS];
  uint32_t nkeys[2], nspots[2];
  uint32_t refine, pushed;
  unsigned long long kth;
};

/* Starts the first loads of the next tile's blocks, which travel while this tile is finished. */
template <bool EXPANDED>
static __device__ __forceinline__ void gc_start_tile(const gc_view &v, const gc_batch &b, const gc_item *next,
    gc_round &round, uint32_t &at, gc_head *heads, bool prefetch) {
  if (next->job == GC_NONE) return;
  if (EXPANDED) {
    gc_fetch(v, next, threadIdx.x / 32, gc_positive_blocks(next), at, round);
    if (prefetch) gc_prefetch_blocks(v, next, gc_positive_blocks(next));
  } else {
    gc_find_heads(v, b, next, 0, gc_positive_blocks(next), heads);
  }
}

/* Excludes the documents of the tile's negated blocks, by the workers. */
template <bool EXPANDED>
static __device__ __forceinline__ void gc_exclude(const gc_view &v, const gc_batch &b, const gc_item *item,
    uint32_t base, uint32_t *sums) {
  const uint32_t workers = (GC_OR_THREADS(EXPANDED) - 32) / 32;
  uint32_t n = item->npositive, i = gc_positive_blocks(item) + threadIdx.x / 32;
  for (; i < item->blocks; i += workers) {
    while (i >= item->range[n].end) n++;
    const gc_term *t = b.terms + (item->range[n].term & ~GC_SLOW);
    gc_clear_block<EXPANDED>(v, t, item->range[n].g + i - (uint32_t)t->first_block, base, sums);
  }
}

/* Excludes the deleted documents of a tile, by the first `threads` threads. */
static __device__ __forceinline__ void gc_exclude_deleted(const gc_view &v, uint32_t base, uint32_t threads,
    uint32_t *sums) {
  uint32_t i;
  for (i = threadIdx.x; i < v.tile / 32 && base + 32 * i < v.documents; i += threads) {
    uint32_t left = __ldg(v.deleted + base / 32 + i);
    for (; left; left &= left - 1) sums[32 * i + __ffs((int)left) - 1] = 0;
  }
}

/* Collects the survivors among the documents that were noted. */
template <typename Shared>
static __device__ __forceinline__ void gc_survivors_noted(const uint32_t *sums, uint32_t base, unsigned long long floor,
    uint32_t side, Shared *sh) {
  const uint32_t spots = sh->nspots[side], need = gc_need(floor);
  uint32_t i;
  for (i = threadIdx.x; i < spots; i += blockDim.x) {
    uint32_t local = sh->spots[i];
    unsigned long long key = gpuir__key(sums[local], base + local);
    if (sums[local] >= need && key > floor) sh->keys[atomicAdd(&sh->nkeys[side], 1)] = key;
  }
}

/* Collects the survivors among all documents of the tile: of them GC_KEYS at most, or, for a large k, straight into
 * the job's buffer. */
template <typename Shared>
static __device__ __forceinline__ void gc_survivors_all(uint32_t tile, const gc_batch &b, uint32_t j,
    const uint4 *sums4, uint32_t base, unsigned long long floor, uint32_t side, Shared *sh) {
  const uint32_t need = gc_need(floor), k = b.jobs[j].k;
  uint32_t i;
  for (i = threadIdx.x; i < tile / 4; i += blockDim.x) {
    uint4 s = sums4[i];
    uint32_t sum[4] = {s.x, s.y, s.z, s.w}, l;
    if (max(max(s.x, s.y), max(s.z, s.w)) < need) continue;
    for (l = 0; l < 4; l++) {
      unsigned long long key = gpuir__key(sum[l], base + 4 * i + l);
      if (sum[l] < need || key <= floor) continue;
      if (k > Shared::KEYS) {
        uint32_t to = atomicAdd(&b.states[j].count, 1);
        if (to < b.room) __stcg(b.cand + (uint64_t)j * b.room + to, key);
      } else {
        uint32_t to = atomicAdd(&sh->nkeys[side], 1);
        if (to < Shared::KEYS) sh->keys[to] = key;
      }
    }
  }
}

/* Keeps the best k survivors or some more, where shared memory does not hold all of them; returns how many. Raises
 * the floor. */
template <typename Shared>
static __device__ __forceinline__ uint32_t gc_thin(uint32_t tile, gc_state *state, uint32_t k, const gc_keys_sums &keys,
    uint32_t side, Shared *sh) {
  const unsigned long long kth = gc_select(keys, tile, k, Shared::KEYS, sh->hist);
  uint32_t i;
  if (!threadIdx.x) {
    sh->nkeys[side] = 0;
    if (kth > 1) atomicMax(&state->floor, kth - 1);
  }
  __syncthreads();
  for (i = threadIdx.x; i < tile; i += blockDim.x) {
    unsigned long long key = keys(i);
    if (key && key >= kth) {
      uint32_t to = atomicAdd(&sh->nkeys[side], 1);
      if (to < Shared::KEYS) sh->keys[to] = key;
    }
  }
  __syncthreads();
  return min(sh->nkeys[side], (uint32_t)Shared::KEYS);
}

/* Raises a job's floor to the k-th best candidate of its buffer, after each doubling of their number. */
template <typename Shared>
static __device__ void gc_refine(const gc_batch &b, uint32_t j, uint32_t k, Shared *sh) {
  gc_state *state = b.states + j;
  if (!threadIdx.x) {
    uint32_t count = *(volatile uint32_t *)&state->count, step = max(2 * k, 64u), level;
    sh->refine = 0;
    if (count >= step) {
      level = 32 - __clz(count / step);
      if (atomicMax(&state->level, level) < level) sh->refine = min(count, b.room);
    }
  }
  __syncthreads();
  if (sh->refine >= k && sh->refine) {
    gc_keys_cand keys = {b.cand + (uint64_t)j * b.room};
    unsigned long long kth = gc_select(keys, sh->refine, k, k, sh->hist);
    if (!threadIdx.x && kth > 1) atomicMax(&state->floor, kth - 1);
  }
  __syncthreads();
}

/* Takes the survivors in sh->keys, n <= GC_KEYS, to the job's buffer: the best k of them, if there are more. */
template <typename Shared>
static __device__ void gc_push(const gc_batch &b, uint32_t j, uint32_t k, uint32_t n, Shared *sh) {
  gc_state *state = b.states + j;
  unsigned long long *cand = b.cand + (uint64_t)j * b.room;
  uint32_t i, o;
  if (!threadIdx.x) sh->pushed = atomicAdd(&state->count, min(n, k));
  __syncthreads();
  for (i = threadIdx.x; i < n; i += blockDim.x) {
    unsigned long long key = sh->keys[i];
    uint32_t rank = 0;
    if (n > k) {
      for (o = 0; o < n; o++) rank += sh->keys[o] > key;
      if (rank == k - 1) atomicMax(&state->floor, key - 1);
    } else {
      rank = i;
    }
    if (rank < k && sh->pushed + rank < b.room) __stcg(cand + sh->pushed + rank, key);
  }
}

/* Scores tiles. The workers add the postings of a tile into its sums in shared memory, noting the documents that
 * reach the floor, while one warp, the scout, finds the next tile. Traffic: that of the blocks (6 bytes a posting
 * expanded, 60 warp instructions for 128), and 4 bytes of shared memory a document of each tile for clearing it (2
 * instructions for 128 documents). Without a floor yet, and for a large k, all sums are looked at instead: 8 bytes,
 * 12 instructions. Counted by ncu on an H200, 3.8 M postings a query over 25.2 M documents: 5.9 bytes and 1.4 warp
 * instructions a posting, clearing and the blocks that straddle two tiles included; 36 % of issue slots, 32 % of
 * memory bandwidth. Decoded in place: 3.1 bytes and 4.5 warp instructions a posting, 48 % of issue slots. */
template <bool EXPANDED>
static __global__ void __launch_bounds__(GC_OR_THREADS(EXPANDED), 2)
    gc_or(const __grid_constant__ gc_view v, const __grid_constant__ gc_batch b) {
  extern __shared__ uint4 gc_dynamic[];
  __shared__ gc_shared_or sh;
  __shared__ gc_shared_heads<EXPANDED> packed;
  uint32_t *sums = (uint32_t *)gc_dynamic;
  uint32_t i, side = 0, at = 0;
  gc_round round;
  const uint32_t threads = GC_OR_THREADS(EXPANDED);
  const bool scout = threadIdx.x >= threads - 32;
  gc_ahead ahead = {GC_NONE, 0, 0, 0, 0};
  gc_chained();
  for (i = threadIdx.x; i < v.tile / 4; i += blockDim.x) gc_dynamic[i] = make_uint4(0, 0, 0, 0);
  if (threadIdx.x < 2) sh.nkeys[threadIdx.x] = sh.nspots[threadIdx.x] = 0;
  if (scout) gc_look_ahead<EXPANDED>(v, b, ahead, &sh.item[0]);
  __syncthreads();
  if (!scout) gc_start_tile<EXPANDED>(v, b, &sh.item[0], round, at, packed.heads, false);
  if (!EXPANDED) __syncthreads();
  for (;; side ^= 1) {
    const gc_item *item = &sh.item[side], *next = &sh.item[side ^ 1];
    const uint32_t j = item->job, base = item->tile * v.tile;
    const unsigned long long floor = item->floor; /* the same for all threads, which noting relies on */
    if (j == GC_NONE) return;
    const gc_job &job = b.jobs[j];
    const uint32_t k = job.k;
    const bool all = k > GC_KEYS || !floor; /* nothing is noted, all sums are looked at */
    if (scout) {
      gc_look_ahead<EXPANDED>(v, b, ahead, &sh.item[side ^ 1]);
    } else {
      const gc_notes notes = {(uint32_t)__cvta_generic_to_shared(sums), v.tile, (all ? UINT32_MAX : gc_need(floor)) - 1,
          sh.spots, &sh.nspots[side]};
      if (EXPANDED) gc_add_tile_expanded(v, b, job, item, base, notes, round, at);
      else gc_add_tile_packed(v, b, job, item, base, notes, packed.heads);
    }
    __syncthreads();
    at = 0;
    if (!scout) gc_start_tile<EXPANDED>(v, b, next, round, at, packed.heads, true);
    if (item->npositive < item->n || (!EXPANDED && v.deleted)) {
      if (!scout) gc_exclude<EXPANDED>(v, b, item, base, sums);
      if (!EXPANDED && !scout && v.deleted) gc_exclude_deleted(v, base, threads - 32, sums);
      __syncthreads();
    }
    if (!threadIdx.x) sh.nkeys[side ^ 1] = sh.nspots[side ^ 1] = 0;
    const uint32_t spots = sh.nspots[side];
    if (!all && spots <= GC_KEYS) gc_survivors_noted(sums, base, floor, side, &sh);
    else gc_survivors_all(v.tile, b, j, gc_dynamic, base, floor, side, &sh);
    if (all || spots) __syncthreads();
    i = sh.nkeys[side];
    if (job.count) {
      if (!threadIdx.x) atomicAdd(&b.states[j].count, i);
      i = 0;
    }
    if (i > GC_KEYS) i = gc_thin(v.tile, b.states + j, k, gc_keys_sums{sums, base, floor}, side, &sh);
#pragma unroll 8
    for (uint32_t o = threadIdx.x; o < v.tile / 4; o += threads) gc_dynamic[o] = make_uint4(0, 0, 0, 0);
    if (i) gc_push(b, j, k, i, &sh);
    __syncthreads();
    if (i || k > GC_KEYS) gc_refine(b, j, k, &sh);
  }
}

/* ========================
 * [cuda-06b-sums]  OR without pruning: all slices of a tile are added up
 *
 * A query's lists are cut lists, whose slices are added strip by strip, and thin ones, whose few postings in a tile are
 * looked up. gc_places finds where a thin list's postings within each tile are. gc_sum_tiles takes the tiles one after
 * another, and for each of them all queries, so that what the queries share comes from the L2 cache.
 *
 * Uses      [cuda-03-bp128], [cuda-05-expand] to [cuda-06-or].
 * Start at  gc_places, gc_sum_tiles.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_SUM_WORKERS 6u /* warps that add strips; one more adds thin lists, and one looks ahead */
#define GC_SUM_BLOCKS 3 /* blocks of threads a multiprocessor */
#define GC_SUM_SLOTS 4u /* strips that a warp has on their way at once */
#define GC_SUM_THREADS (32u * (GC_SUM_WORKERS + 2u))
#define GC_SUM_ROUND (GC_SUM_WORKERS * GC_SUM_SLOTS) /* strips of a round of all workers */
#define GC_SUM_GRAB 4u /* tiles of queries that are taken at once */
#define GC_SUM_PARTS 8u /* blocks of threads that share a list in gc_places */

/* Finds the postings of thin lists within each tile: first[t] is the number of the first posting from tile t on. */
static __global__ void __launch_bounds__(256)
    gc_places(const __grid_constant__ gc_view v, const __grid_constant__ gc_batch b) {
  gc_chained();
  const gc_term &t = b.terms[b.sums.thin[blockIdx.x / GC_SUM_PARTS]];
  const uint32_t tile = b.sums.lists.tile, ntiles = b.sums.lists.ntiles, part = blockIdx.x % GC_SUM_PARTS;
  uint32_t *first = b.sums.first + (uint64_t)t.slot * (ntiles + 1), i, at;
  const uint32_t from = (uint32_t)((uint64_t)t.df * part / GC_SUM_PARTS),
                 end = (uint32_t)((uint64_t)t.df * (part + 1) / GC_SUM_PARTS);
  const auto note = [&](uint32_t number, uint32_t before, uint32_t doc) {
    uint32_t to = min(doc / tile, ntiles - 1);
    for (at = number ? before / tile + 1 : 0; at <= to; at++) first[at] = number;
    if (number == t.df - 1)
      for (at = to + 1; at <= ntiles; at++) first[at] = t.df;
  };
  if (t.kind == GC_LONG) {
    for (i = from + threadIdx.x; i < end; i += blockDim.x) note(i, i ? gc_doc_at(v, t, i - 1) : 0, gc_doc_at(v, t, i));
  } else if (!part && threadIdx.x < 32) {
    const gc_postings p = gc_decode_both(v, t, 0);
    const uint32_t before = __shfl_up_sync(GC_WARP, p.doc[3], 1);
    for (i = 0; i < 4; i++)
      if (4 * threadIdx.x + i < p.n) note(4 * threadIdx.x + i, i ? p.doc[i - 1] : before, p.doc[i]);
  }
}

/* What is added up: a tile for a query. */
typedef struct gc_sum_item {
  unsigned long long floor;
  uint32_t job, tile; /* job GC_NONE: no more work */
  uint32_t first, n; /* its lists in b.sums.lists; n 0: nothing is to be done */
} gc_sum_item;

#define GC_SUM_RING 8u

struct gc_shared_sum {
  enum : uint32_t { KEYS = 1024u, SPOTS = 512u };
  unsigned long long keys[KEYS]; /* survivors of the tile */
  gc_sum_item item[GC_SUM_RING]; /* the next ones, by their number modulo that of places */
  uint32_t hist[256];
  uint16_t spots[SPOTS]; /* noted documents, of the tile */
  uint32_t nkeys[2], nspots[2]; /* by the parity of the tile */
  uint32_t refine, pushed;
  uint32_t now; /* 1: the floor of the tile's job is to be raised now */
};

/* Where a block of threads stands. */
typedef struct gc_sum_place {
  uint32_t at, side; /* number of the item; parity of the tile */
} gc_sum_place;

static __device__ __forceinline__ gc_sum_item *gc_sum_at(gc_shared_sum *sh, uint32_t at) {
  return &sh->item[at % GC_SUM_RING];
}

/* Load from where they are called. Plain loads of memory that nobody writes the compiler moves behind the next barrier,
 * as late as possible, and then they are waited for. */
static __device__ __forceinline__ uint2 gc_sum_load2(const void *p) {
  uint2 x;
  asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(x.x), "=r"(x.y) : "l"(p));
  return x;
}

static __device__ __forceinline__ uint4 gc_sum_load4(const void *p) {
  uint4 x;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "l"(p));
  return x;
}

static __device__ __forceinline__ uint32_t gc_sum_load1(const void *p) {
  uint32_t x;
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(x) : "l"(p));
  return x;
}

/* ---- finding a tile's postings, by each warp for itself, a lane a list; in three steps, so that no load is waited
 * for: the lists of item i + 3, their places in the tile of item i + 2, the postings of item i + 1 ---- */

/* A lane's list, and where its postings of a tile begin and end: numbers of strips, or of postings. */
typedef struct gc_sum_look {
  uint4 list; /* a gc_sum_list */
  uint32_t from, to;
} gc_sum_look;

/* Both look for items that are not there too, in rows of zeros: a load under a condition would be waited for where the
 * paths join. */
template <bool THIN>
static __device__ __forceinline__ void gc_sum_look_list(const gc_batch &b, const gc_sum_item *item, uint4 &list) {
  const uint4 *p = (const uint4 *)b.sums.rows + item->first + gc_lane();
  if (THIN) {
    list = gc_sum_load4(p);
  } else { /* the rest is not needed */
    const uint2 half = gc_sum_load2(p);
    list.x = half.x;
    list.y = half.y;
  }
}

static __device__ __forceinline__ void gc_sum_look_tile(const gc_batch &b, const gc_sum_item *item, gc_sum_look &l) {
  const uint32_t *p = (l.list.y >> 30 ? b.sums.first : b.sums.lists.starts) + l.list.x + item->tile;
  l.from = gc_sum_load1(p);
  l.to = gc_sum_load1(p + 1);
}

/* What a lane's list has in a tile. */
typedef struct gc_sum_range {
  uint32_t end; /* its units among those of its kind end here; */
  uint32_t start; /* unit i of them is number start + i, of strips or of postings */
  uint32_t q, postings, who;
  uint32_t n; /* units of the kind, of all lists */
  uint32_t shorts; /* lists without a directory */
  bool wipe; /* all sums are to be cleared, not only those that the warps remember */
} gc_sum_range;

/* Finds the ranges; THIN: of thin lists in units of 32 postings, otherwise of strips. */
template <bool THIN>
static __device__ __forceinline__ gc_sum_range gc_sum_find(const gc_sum_item *item, const gc_sum_look &l) {
  const uint32_t kind = l.list.y >> 30, most = THIN ? l.list.w : 1u << 26, live = gc_lane() < item->n;
  const uint32_t count = live && l.to - l.from <= most ? l.to - l.from : 0; /* a damaged list's may be anything */
  const uint32_t strips = kind == 0 ? count : 0, thins = kind == 1 ? (count + 31) / 32 : 0;
  gc_sum_range r;
  r.end = gc_scan(THIN ? thins : strips);
  r.n = __shfl_sync(GC_WARP, r.end, 31);
  r.start = THIN ? l.from + l.list.z - 32 * (r.end - thins) : l.from - (r.end - strips);
  r.q = l.list.y & 0x3fffffff;
  r.postings = THIN ? count + 32 * (r.end - thins) : 0;
  r.who = l.list.z;
  r.shorts = __ballot_sync(GC_WARP, kind == 2 && count);
  r.wipe = r.shorts || __reduce_add_sync(GC_WARP, strips) > 2 * GC_SUM_ROUND ||
      __reduce_add_sync(GC_WARP, thins) > GC_SUM_SLOTS;
  return r;
}

/* ---- adding to a tile's sums ---- */

/* Where documents are noted whose sums reach the need. */
typedef struct gc_sum_notes {
  uint32_t sums, need; /* shared address of the sums */
  uint16_t *spots;
  uint32_t *count;
} gc_sum_notes;

static __device__ __forceinline__ uint32_t gc_sum_atomic(uint32_t at, uint32_t c) {
  uint32_t old;
  asm volatile("atom.shared.add.u32 %0, [%1], %2;" : "=r"(old) : "r"(at), "r"(c) : "memory");
  return old;
}

static __device__ __forceinline__ void gc_sum_clear(uint32_t at) {
  asm volatile("st.shared.u32 [%0], %1;" : : "r"(at), "r"(0) : "memory");
}

/* Clears all sums, by all warps but the scout. */
static __device__ __forceinline__ void gc_sum_wipe(uint32_t sums, uint32_t tile) {
  uint32_t i;
#pragma unroll 4
  for (i = threadIdx.x; i < tile / 4; i += GC_SUM_THREADS - 32)
    asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" : : "r"(sums + 16 * i), "r"(0) : "memory");
}

static __device__ __forceinline__ void gc_sum_note(const gc_sum_notes &n, uint32_t place, uint32_t old, uint32_t c) {
  if (n.need - 1 - old < c) {
    const uint32_t at = atomicAdd(n.count, 1);
    if (at < gc_shared_sum::SPOTS) n.spots[at] = (uint16_t)(place / 4);
  }
}

/* Adds a strip: 28 instructions, and 2 loads. */
static __device__ __forceinline__ void gc_sum_add(const gc_sum_notes &n, uint2 place, uint4 add, uint32_t q) {
  const uint32_t at[4] = {place.x & 0xffff, place.x >> 16, place.y & 0xffff, place.y >> 16};
  const uint32_t c[4] = {q * add.x, q * add.y, q * add.z, q * add.w};
  uint32_t old[4], most = 0, i;
#pragma unroll
  for (i = 0; i < 4; i++) old[i] = gc_sum_atomic(n.sums + at[i], c[i]);
#pragma unroll
  for (i = 0; i < 4; i++) most = __viaddmax_u32(old[i], c[i], most);
  if (most >= n.need) {
#pragma unroll
    for (i = 0; i < 4; i++) gc_sum_note(n, at[i], old[i], c[i]);
  }
}

/* Adds a short list, decoding it. */
static __device__ __noinline__ void gc_sum_short(const gc_view &v, const gc_batch &b, const gc_sum_item *item,
    uint32_t who, const gc_sum_notes &n) {
  const gc_term &t = b.terms[who];
  const uint32_t tile = b.sums.lists.tile, base = item->tile * tile;
  const gc_postings p = gc_decode_both(v, t, 0);
  uint32_t i;
  for (i = 0; i < 4; i++)
    if (4 * gc_lane() + i < p.n && p.doc[i] - base < tile) {
      const uint32_t c = t.q * gc_contribution(t.weight, p.freq[i], gc_norm(v, b.jobs[item->job], p.doc[i]));
      const uint32_t place = 4 * (p.doc[i] - base);
      gc_sum_note(n, place, gc_sum_atomic(n.sums + place, c), c);
    }
}

/* A warp's part of a tile's strips, and the first of them, which it has on their way. */
struct gc_sum_strips {
  enum : uint32_t { STEP = GC_SUM_WORKERS, ROUND = GC_SUM_ROUND };
  static const bool THIN = false;
  uint2 place[GC_SUM_SLOTS];
  uint4 add[GC_SUM_SLOTS];
  uint32_t q[GC_SUM_SLOTS];
  struct done {
    uint2 place[GC_SUM_SLOTS];
  };
  /* Loads strips from number i on, of those below r.n; instead of others the first one of all. */
  __device__ __forceinline__ void fetch(const gc_view &, const gc_batch &b, const gc_sum_range &r, uint32_t i) {
    uint32_t u;
#pragma unroll
    for (u = 0; u < GC_SUM_SLOTS; u++, i += STEP) {
      const uint32_t of = __popc(__ballot_sync(GC_WARP, r.end <= i)) & 31;
      const uint32_t number = __shfl_sync(GC_WARP, r.start, of) + i;
      const uint8_t *p = b.sums.lists.strips + (uint64_t)(i < r.n ? number : 0) * GC_STRIP;
      q[u] = __shfl_sync(GC_WARP, r.q, of);
      place[u] = gc_sum_load2(p + 8 * gc_lane());
      add[u] = gc_sum_load4(p + 2 * GPUIR__BLOCK + 16 * gc_lane());
    }
  }
  __device__ __forceinline__ void sum(const gc_view &, const gc_sum_notes &notes, uint32_t, uint32_t, uint32_t i,
      uint32_t n, done &d) {
    uint32_t u;
#pragma unroll
    for (u = 0; u < GC_SUM_SLOTS; u++, i += STEP) {
      d.place[u] = place[u];
      if (i < n) gc_sum_add(notes, place[u], add[u], q[u]);
    }
  }
  static __device__ __forceinline__ void undo(uint32_t sums, uint32_t i, uint32_t n, const done &d) {
    uint32_t u;
#pragma unroll
    for (u = 0; u < GC_SUM_SLOTS; u++, i += STEP)
      if (i < n) {
        gc_sum_clear(sums + (d.place[u].x & 0xffff));
        gc_sum_clear(sums + (d.place[u].x >> 16));
        gc_sum_clear(sums + (d.place[u].y & 0xffff));
        gc_sum_clear(sums + (d.place[u].y >> 16));
      }
  }
};

/* A tile's postings of thin lists, a lane a posting, and the first of them, which are on their way. */
struct gc_sum_thins {
  enum : uint32_t { STEP = 1, ROUND = GC_SUM_SLOTS };
  static const bool THIN = true;
  uint2 base[GC_SUM_SLOTS];
  uint32_t narrow[GC_SUM_SLOTS], add[GC_SUM_SLOTS], q[GC_SUM_SLOTS], at[GC_SUM_SLOTS]; /* at: of the posting */
  struct done {
    uint32_t place[GC_SUM_SLOTS];
  };
  __device__ __forceinline__ void fetch(const gc_view &v, const gc_batch &, const gc_sum_range &r, uint32_t i) {
    uint32_t u;
#pragma unroll
    for (u = 0; u < GC_SUM_SLOTS; u++, i++) {
      const uint32_t of = __popc(__ballot_sync(GC_WARP, r.end <= i)) & 31;
      const uint32_t start = __shfl_sync(GC_WARP, r.start, of), all = __shfl_sync(GC_WARP, r.postings, of);
      const bool is = i < r.n && 32 * i + gc_lane() < all;
      const uint32_t posting = is ? start + 32 * i + gc_lane() : 0;
      const uint32_t times = __shfl_sync(GC_WARP, r.q, of);
      q[u] = is ? times : 0;
      narrow[u] = gc_sum_load1((const uint32_t *)v.narrow + posting / 2);
      add[u] = gc_sum_load1(v.impact + posting);
      base[u] = gc_sum_load2(v.bases + posting / GPUIR__BLOCK);
      at[u] = posting;
    }
  }
  __device__ __forceinline__ void sum(const gc_view &v, const gc_sum_notes &notes, uint32_t first, uint32_t tile,
      uint32_t i, uint32_t n, done &d) {
    uint32_t u;
#pragma unroll
    for (u = 0; u < GC_SUM_SLOTS; u++, i++) {
      uint32_t doc = base[u].x + (narrow[u] >> at[u] % 2 * 16 & 0xffff);
      d.place[u] = GC_NONE;
      if (i >= n || !q[u]) continue;
      if (base[u].y) doc = __ldg(v.wide + (uint64_t)(base[u].y - 1) * GPUIR__BLOCK + at[u] % GPUIR__BLOCK);
      doc -= first;
      if (doc >= tile) continue;
      d.place[u] = 4 * doc;
      gc_sum_note(notes, 4 * doc, gc_sum_atomic(notes.sums + 4 * doc, q[u] * add[u]), q[u] * add[u]);
    }
    __syncwarp();
  }
  static __device__ __forceinline__ void undo(uint32_t sums, uint32_t i, uint32_t n, const done &d) {
    uint32_t u;
#pragma unroll
    for (u = 0; u < GC_SUM_SLOTS; u++, i++)
      if (i < n && d.place[u] != GC_NONE) gc_sum_clear(sums + d.place[u]);
  }
};

/* ---- tile after tile ---- */

/* Waits for all threads. Each role waits at instructions of its own, which barrier.sync allows; bar.sync, and so
 * __syncthreads too, demands that all of them wait at the same one. */
static __device__ __forceinline__ void gc_sum_wait(void) {
  asm volatile("barrier.sync 1, %0;" : : "n"(GC_SUM_THREADS) : "memory");
}

/* Waits until a tile's sums are complete; returns GC_SUM_STOP, if all threads are needed, otherwise the number of
 * documents that were noted. */
#define GC_SUM_STOP 0x80000000u
static __device__ __forceinline__ uint32_t gc_sum_complete(const gc_shared_sum *sh, uint32_t side) {
  gc_sum_wait();
  const uint32_t spots = sh->nspots[side];
  return spots > 32 ? GC_SUM_STOP : spots;
}

/* Takes the noted documents of a tile, 32 at most, to the job's buffer, by a warp, once their sums have been read and
 * may be cleared. */
static __device__ __forceinline__ void gc_sum_push(const gc_batch &b, const gc_sum_item *item, uint32_t spots,
    uint32_t side, gc_shared_sum *sh, uint32_t sums) {
  const uint32_t lane = gc_lane(), j = item->job, base = item->tile * b.sums.lists.tile;
  gc_state *state = b.states + j;
  unsigned long long key = 0;
  uint32_t vote, at = 0, step;
  if (lane < spots) {
    uint32_t sum;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(sum) : "r"(sums + 4 * sh->spots[lane]) : "memory");
    key = gpuir__key(sum, base + sh->spots[lane]);
  }
  gc_sum_wait();
  if (!lane) sh->nspots[side] = 0;
  vote = __ballot_sync(GC_WARP, key > item->floor);
  if (!vote) return;
  if (!lane) at = atomicAdd(&state->count, __popc(vote));
  at = __shfl_sync(GC_WARP, at, 0);
  if (key > item->floor && at + gc_rank(vote) < b.room) __stcg(b.cand + (uint64_t)j * b.room + at + gc_rank(vote), key);
  step = (at + __popc(vote)) / max(2 * b.jobs[j].k, 64u);
  if (!lane && step && 32 - __clz(step) > *(volatile uint32_t *)&state->level) sh->now = 1;
}

/* Adds up tiles by a warp, number `warp` of those that share the units, until all threads are needed. */
template <typename Units>
static __device__ __forceinline__ void gc_sum_work(const gc_view &v, const gc_batch &b, gc_shared_sum *sh,
    uint32_t sums, uint32_t warp, gc_sum_place &to) {
  const uint32_t tile = b.sums.lists.tile;
  Units units;
  gc_sum_look l1, l2; /* of item to.at + 1, to.at + 2 */
  gc_sum_range r;
  uint4 list; /* of item to.at + 3 */
  l2.list = list = make_uint4(0, 0, 0, 0);
  l2.from = l2.to = 0;
  gc_sum_look_list<Units::THIN>(b, gc_sum_at(sh, to.at), l2.list);
  gc_sum_look_tile(b, gc_sum_at(sh, to.at), l2);
  r = gc_sum_find<Units::THIN>(gc_sum_at(sh, to.at), l2);
  units.fetch(v, b, r, warp);
  l1 = l2;
  gc_sum_look_list<Units::THIN>(b, gc_sum_at(sh, to.at + 1), l1.list);
  gc_sum_look_tile(b, gc_sum_at(sh, to.at + 1), l1);
  gc_sum_look_list<Units::THIN>(b, gc_sum_at(sh, to.at + 2), list);
  for (;;) {
    const gc_sum_item *item = gc_sum_at(sh, to.at);
    if (item->job == GC_NONE) return;
    const gc_sum_notes notes = {sums, gc_need(item->floor), sh->spots, &sh->nspots[to.side]};
    const uint32_t n = r.n, first = item->tile * tile;
    const bool wipe = r.wipe;
    typename Units::done done, then; /* what the first two rounds added; after two of thin lists, all is wiped */
    uint32_t i, what;
    units.sum(v, notes, first, tile, warp, n, done);
    if (warp + Units::ROUND < n) {
      units.fetch(v, b, r, warp + Units::ROUND);
      units.sum(v, notes, first, tile, warp + Units::ROUND, n, then);
      for (i = warp + 2 * Units::ROUND; i < n; i += Units::ROUND) {
        typename Units::done forgotten;
        units.fetch(v, b, r, i);
        units.sum(v, notes, first, tile, i, n, forgotten);
      }
    }
    if (Units::THIN)
      for (i = r.shorts; i; i &= i - 1) gc_sum_short(v, b, item, __shfl_sync(GC_WARP, r.who, __ffs(i) - 1), notes);
    r = gc_sum_find<Units::THIN>(gc_sum_at(sh, to.at + 1), l1);
    units.fetch(v, b, r, warp);
    l1.list = list;
    gc_sum_look_tile(b, gc_sum_at(sh, to.at + 2), l1);
    gc_sum_look_list<Units::THIN>(b, gc_sum_at(sh, to.at + 3), list);
    what = gc_sum_complete(sh, to.side);
    if (what == GC_SUM_STOP) return;
    if (what && Units::THIN) gc_sum_push(b, item, what, to.side, sh, sums);
    else if (what) gc_sum_wait();
    if (wipe) {
      gc_sum_wipe(sums, tile);
    } else {
      Units::undo(sums, warp, n, done);
      if (!Units::THIN && warp + Units::ROUND < n) Units::undo(sums, warp + Units::ROUND, n, then);
    }
    to.side ^= 1;
    gc_sum_wait();
    if (sh->now) return;
    to.at++;
  }
}

/* What the scout has on its way: the number that it has taken, whose job it is; what is known of that job. */
typedef struct gc_sum_ahead {
  uint32_t pos, end; /* the queries' tiles that it has taken and not handed out */
  uint32_t tile;
  uint4 head; /* a gc_sum_job; x GC_NONE: no more work */
} gc_sum_ahead;

/* Looks up the next query's tile. */
static __device__ __forceinline__ void gc_sum_take(const gc_batch &b, gc_sum_ahead &a) {
  const uint64_t all = (uint64_t)b.sums.n * b.sums.lists.ntiles;
  if (a.pos == a.end) {
    if (!gc_lane()) a.pos = atomicAdd(&b.control->next_sum, GC_SUM_GRAB);
    a.pos = __shfl_sync(GC_WARP, a.pos, 0);
    a.end = a.pos + GC_SUM_GRAB;
  }
  a.head = make_uint4(GC_NONE, 0, 0, GC_NONE); /* with lists of zeros */
  if (a.pos < all) {
    a.tile = a.pos / b.sums.n;
    a.head = __ldg((const uint4 *)b.sums.jobs + a.pos % b.sums.n);
    a.pos++;
  } else {
    a.end = a.pos;
  }
}

/* Describes the item that a.head is about, and takes the next one. */
static __device__ __forceinline__ void gc_sum_describe(const gc_batch &b, gc_sum_ahead &a, gc_sum_item *item) {
  const uint4 head = a.head;
  const uint32_t tile = a.tile;
  uint32_t n = head.z;
  unsigned long long floor = 0;
  if (head.x != GC_NONE) {
    const gc_state *state = b.states + head.x;
    floor = gc_floor(state);
    if (state->done || (head.w != GC_NONE && b.states[head.w].count >= b.jobs[head.x].k)) n = 0;
  }
  gc_sum_take(b, a);
  if (!gc_lane()) {
    item->floor = floor;
    item->job = head.x;
    item->tile = tile;
    item->first = head.y;
    item->n = n;
  }
}

/* Describes the items ahead, until all threads are needed. */
static __device__ __forceinline__ void gc_sum_scout(const gc_batch &b, gc_shared_sum *sh, uint32_t sums,
    gc_sum_ahead &ahead, gc_sum_place &to) {
  while (gc_sum_at(sh, to.at)->job != GC_NONE) {
    uint32_t what;
    gc_sum_describe(b, ahead, gc_sum_at(sh, to.at + 4));
    what = gc_sum_complete(sh, to.side);
    if (what == GC_SUM_STOP) return;
    if (what) gc_sum_wait();
    to.side ^= 1;
    gc_sum_wait();
    if (sh->now) return;
    to.at++;
  }
}

/* Collects the survivors of a tile and takes them to the job's buffer, and clears all sums, by all threads. */
static __device__ __noinline__ void gc_sum_survivors(const gc_batch &b, const gc_sum_item *item, uint32_t side,
    gc_shared_sum *sh, uint4 *sums4) {
  uint32_t *sums = (uint32_t *)sums4;
  const uint32_t j = item->job, tile = b.sums.lists.tile, base = item->tile * tile, k = b.jobs[j].k;
  const unsigned long long floor = item->floor;
  uint32_t i;
  if (sh->nspots[side] <= gc_shared_sum::SPOTS) gc_survivors_noted(sums, base, floor, side, sh);
  else gc_survivors_all(tile, b, j, sums4, base, floor, side, sh);
  __syncthreads();
  i = sh->nkeys[side];
  if (i > gc_shared_sum::KEYS) i = gc_thin(tile, b.states + j, k, gc_keys_sums{sums, base, floor}, side, sh);
  if (i) gc_push(b, j, k, i, sh);
  __syncthreads();
  if (i) gc_refine(b, j, k, sh);
  for (i = threadIdx.x; i < tile / 4; i += GC_SUM_THREADS) sums4[i] = make_uint4(0, 0, 0, 0);
  if (!threadIdx.x) sh->nkeys[side] = sh->nspots[side] = 0;
}

/* Adds up tiles, each of them for all queries, in three roles: workers add strips, a warp adds thin lists, and the
 * scout chooses what is next. A document is noted by the addition that lifts its sum to the need. What was added is
 * cleared place by place, as the warps remember where they added; only if that was too much all sums are cleared.
 *
 * Predicted for 128 postings: 768 bytes of the L2 cache, 28 warp instructions to add them, 9 to clear, and 1,000 a tile
 * of a query, which holds 19 strips of the queries below: 90 in all. Counted by ncu on an H200, 500 queries of 3.8 M
 * postings each over 25.2 M documents: 145 warp instructions, of which finding and loading strips takes a third,
 * 4.55 ms, 45 % of issue slots, 36 % of the L2 cache's and 17 % of the memory's bandwidth. gc_or takes 184 there. That
 * was with aligned barriers; with those of gc_sum_wait it answers 4 % less. */
static __global__ void __launch_bounds__(GC_SUM_THREADS, GC_SUM_BLOCKS)
    gc_sum_tiles(const __grid_constant__ gc_view v, const __grid_constant__ gc_batch b) {
  extern __shared__ uint4 gc_dynamic[];
  __shared__ gc_shared_sum sh;
  __shared__ gc_sum_ahead ahead;
  const uint32_t warp = __shfl_sync(GC_WARP, threadIdx.x / 32, 0),
                 sums = (uint32_t)__cvta_generic_to_shared(gc_dynamic);
  gc_sum_place to = {0, 0};
  gc_chained();
  gc_sum_wipe(sums, b.sums.lists.tile);
  if (threadIdx.x < 2) sh.nkeys[threadIdx.x] = sh.nspots[threadIdx.x] = 0;
  if (warp == GC_SUM_WORKERS + 1) {
    gc_sum_ahead a = {0, 0, 0, {0, 0, 0, 0}};
    gc_sum_take(b, a);
    for (uint32_t i = 0; i < 4; i++) gc_sum_describe(b, a, gc_sum_at(&sh, i));
    if (!gc_lane()) {
      ahead = a;
      sh.now = 0;
    }
  }
  __syncthreads();
  for (;;) {
    if (warp < GC_SUM_WORKERS) {
      gc_sum_work<gc_sum_strips>(v, b, &sh, sums, warp, to);
    } else if (warp == GC_SUM_WORKERS) {
      gc_sum_work<gc_sum_thins>(v, b, &sh, sums, 0, to);
    } else {
      gc_sum_ahead a = ahead;
      gc_sum_scout(b, &sh, sums, a, to);
      __syncwarp(); /* all lanes have read it */
      if (!gc_lane()) ahead = a;
    }
    const gc_sum_item *item = gc_sum_at(&sh, to.at);
    if (item->job == GC_NONE) return;
    if (sh.now) {
      const uint32_t j = item->job;
      __syncthreads();
      if (!threadIdx.x) sh.now = 0;
      gc_refine(b, j, b.jobs[j].k, &sh);
    } else {
      gc_sum_survivors(b, item, to.side, &sh, gc_dynamic);
      to.side ^= 1;
    }
    __syncthreads();
    to.at++;
  }
}

/* ========================
 * [cuda-07-and]  AND; OR by MaxScore: documents of a driving list are looked for in the others
 *
 * Two ways of looking, by what the device has of the lists. gc_and_decoding, where there are no guides, as in a
 * cached index: a warp decodes a block of the shortest list and, for each further list, the candidate blocks.
 * gc_and_guided and gc_max, where there are: documents are followed by marks and peaks, and a list's block is decoded
 * only if it is not expanded.
 *
 * Uses      [cuda-03-bp128], [cuda-05-expand].
 * Start at  gc_and_decoding; gc_and_all, which the kernel of [cuda-08-topk] calls; gc_max_plan, gc_max.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_AND_THREADS 256u
#define GC_GUIDED_THREADS 256u /* of gc_and_guided and the kernels of MaxScore */
#define GC_FINAL_THREADS 256u
#define GC_GUIDED_BLOCKS 4 /* blocks of threads a multiprocessor at least, of gc_and_guided and gc_max_plan; 5 spill */
#define GC_MAX_BLOCKS 6 /* the same of gc_max */
#define GC_SIDE 2u /* documents that a lane follows side by side */
#define GC_QUEUE (GPUIR__BLOCK + 32 * GC_SIDE) /* documents that a warp has waiting */
#define GC_SIFTED (2 * 32 * GC_SIDE) /* documents that a warp has waiting for an AND's look-ups */
#define GC_RAISED_BLOCKS 256u /* blocks of an AND's driver that is long enough for a floor to spare some of them */
#define GC_RAISE_LEAST 32u /* candidates by which a floor is raised at least */
#define GC_RAISE_READ 512u /* the last ones, that are looked at then */
#define GC_RAISE_MOST 1024u /* the same at most, times k */
#define GC_FIRST 16u /* blocks of the shortest list in a sample */
#define GC_FIRST_ALONE 4u /* the same where floors are not raised */
#define GC_LAYERS 3u /* lists that add blocks to a sample, half as many each further one */
#define GC_LAYERS_ALONE 1u /* the same there, where a launch waits for each: three take 7 us more, alone */
#define GC_SAMPLED_LISTS 8u /* lists of a sample at most: further ones make up for blocks that short ones lack */
#define GC_SAMPLED ((GC_FIRST + GC_FIRST / 2 + GC_FIRST / 4) * GPUIR__BLOCK) /* documents of a sample at most */
#define GC_SCORED 1024u /* of which are scored at most */
#define GC_SCORED_LEAST 64u
#define GC_OPENING 8u /* one in so many groups of blocks of a long driver is taken before the rest */
#define GC_OPENED_LEAST 128u /* blocks of such a driver at least */
/* What it costs to follow a block's postings through the other lists, in blocks added to tiles. */
#define GC_PROBE_COST 1u
#define GC_PROBE_ALONE 8u /* the same where floors are not raised, which waits for the last block, or by decoding */
#define GC_TILE_COST 8u /* of a tile, in blocks added to it */

/* ---- candidates ---- */

/* Raises a job's floor to about the k-th best of its candidates, by a warp that has lifted their number to `level`: so
 * what the other warps have yet to follow becomes less. Not for single terms, whose floor is known, and only as long as
 * the candidates are few: reading many takes longer than the rest of the kernel. */
static __device__ __forceinline__ void gc_raise_at(const gc_batch &b, uint32_t j, uint32_t level, uint32_t *count) {
  const uint32_t k = b.jobs[j].k;
  uint32_t some, score;
  if (level < max(2 * k, GC_RAISE_LEAST) || level > min(GC_RAISE_MOST * k, b.room) || b.jobs[j].npositive == 1) return;
  some = level / 2 >= 4 * k ? level / 2 : level; /* the last ones are the best */
  __syncwarp();
  score = gc_kth_score(gc_keys_cand{b.cand + (uint64_t)j * b.room + level - some}, some, k, count);
  if (!gc_lane() && score) atomicMax(&b.states[j].floor, ((unsigned long long)score << 32) - 1);
}

/* Raises the floor of an AND, whose candidates a warp has lifted from `before` to `now`, if there are enough new ones.
 * An AND has few matches: a floor that is raised only whenever their number has doubled would spare little. */
static __device__ __forceinline__ void gc_raise_often(const gc_batch &b, uint32_t j, uint32_t before, uint32_t now,
    uint32_t *count) {
  const uint32_t k = b.jobs[j].k, n = now & ~31u;
  const uint32_t step = max(32 - __clz((int)(max(2 * k, GC_RAISE_LEAST) - 1)), 29 - __clz((int)now)); /* log2 */
  uint32_t some, score;
  if (before >> step == now >> step || now > min(GC_RAISE_MOST * k, b.room) || b.jobs[j].npositive == 1) return;
  some = min(n, max(GC_RAISE_READ, 2u << step)); /* the last ones are the best */
  __syncwarp();
  score = gc_kth_score(gc_keys_cand{b.cand + (uint64_t)j * b.room + n - some}, some, k, count);
  if (!gc_lane() && score) atomicMax(&b.states[j].floor, ((unsigned long long)score << 32) - 1);
}

/* When floors are raised. */
enum { GC_RAISE_NEVER, GC_RAISE_DOUBLED, GC_RAISE_OFTEN };

/* Adds the lane's candidates, those of `live`, to the job's. With GC_RAISE_DOUBLED the floor is raised as often as
 * their number has doubled; done later, at the end of the warp's blocks, that made ORs slower by a tenth. count: 128
 * words of shared memory. */
template <uint32_t SIDE>
static __device__ __forceinline__ void gc_offer(const gc_batch &b, uint32_t j, int raises, uint32_t live,
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

/* Returns which of the live ones of N docIDs a lane a list holds, by decoding the candidate blocks one after another
 * into shared memory, 128 words; where[i]: index in the list. */
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

/* Pushes the matches of one driver block with all lists of the job, with their scores. */
static __device__ void gc_and_block(const gc_view &v, const gc_batch &b, uint32_t j, uint32_t block, uint32_t *docs) {
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
  uint32_t job, from, n; /* n: 0: there is no such ticket */
  uint32_t opening; /* of its turn; 0 in the first one */
  uint32_t opens; /* 1: it is of a first turn, for which the others wait */
} gc_blocks;

/* Draws the warp's next ticket. A long driver is taken in turns, which are spread evenly over it: every 32nd group of
 * its blocks, those in the middle between, and so on, each turn of all jobs before the next turn of any. So the floor
 * that a job's matches have raised in one turn spares much of the next. */
static __device__ __forceinline__ gc_blocks gc_next_blocks(const gc_batch &b) {
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
    gc_and_decoding(const __grid_constant__ gc_view v, const __grid_constant__ gc_batch b) {
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
 * The documents of a driving list wait in a queue of the warp until 64 are together, which are then followed through
 * the lists behind it, two a lane, as long as what these can add still lifts them to the floor. Two, as a lane waits
 * for memory most of the time: side by side they made ANDs 11 % faster. EXPANDED code is for jobs whose lists are all
 * expanded: no registers are kept for decoding there, which made them 12 % faster. Other jobs take one document a lane;
 * where a kernel CALLS, they decode and look up by functions: that makes gc_alone an eighth shorter and costs it and
 * gc_max_plan nothing, but would cost gc_and_guided 5 %.
 * AND: the shortest list drives; a document that a list lacks is dropped, mostly by that list's peaks: 0 says so.
 * OR: of a job's lists by ascending df, list e drives, and a document that an earlier list holds is left to that one.
 * Lists whose bounds together stay below the floor drive nothing (Turtle and Flood 1995). A posting is given up as soon
 * as the peaks of the lists behind, looked at one after the other, cannot lift it to the floor: in 4 bits and of spans
 * that have mostly one posting or none, they leave one in 200 of the documents that peaks of 1024 documents left. The
 * floor comes from a sample, and rises as documents are found. */

typedef struct alignas(16) gc_queue {
  uint32_t docs[GPUIR__BLOCK]; /* of gc_probe, and of gc_kth_score */
  uint32_t doc[GC_QUEUE], score[GC_QUEUE]; /* those that wait */
  uint32_t rest[GC_QUEUE]; /* bounds of the lists behind; of an AND's that wait to be sifted, of the second one */
  uint32_t sifted_doc[GC_SIFTED], sifted_score[GC_SIFTED], sifted_rest[GC_SIFTED]; /* of ANDs */
} gc_queue;

/* Returns *p, or 0 unless `yes`: by a load that is predicated and not branched over, so that several are on their way
 * at once. */
static __device__ __forceinline__ uint32_t gc_load_if(uint32_t yes, const uint32_t *p) {
  uint32_t x;
  asm("{\n\t.reg .pred yes;\n\tsetp.ne.u32 yes, %1, 0;\n\tmov.u32 %0, 0;\n\t@yes ld.global.nc.u32 %0, [%2];\n\t}"
      : "=&r"(x)
      : "r"(yes), "l"(p));
  return x;
}

/* Loads the word in which the document's peak stands, or 0 unless `yes`. */
static __device__ __forceinline__ uint32_t gc_peak_word(const gc_view &v, const gc_term &t, uint32_t doc,
    uint32_t yes) {
  return gc_load_if(yes, gc_peaks_of(v.peaks, t) + (doc >> t.span) / (32 / GC_PEAK_BITS));
}

/* Returns what that word says: the most that the list can add to a document of the span; 0: it holds none. */
static __device__ __forceinline__ uint32_t gc_peak_in(const gc_term &t, uint32_t doc, uint32_t word) {
  return t.step * (__funnelshift_r(word, 0, (doc >> t.span) * GC_PEAK_BITS) & GC_PEAK_MOST);
}

/* Finds the most that the list can add to the live ones of N documents a lane; of the others, anything. */
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

/* Returns whether a list with marks may hold the document: three of each group's four words are marks. */
static __device__ __forceinline__ bool gc_marked(const gc_view &v, const gc_term &t, uint32_t doc) {
  const uint32_t bit = doc >> t.shift, word = bit / 32;
  static_assert(GC_CELLS == 96, "three words of marks");
  return __ldg((const uint32_t *)(v.marks + t.marks) + word + word / 3) >> (bit & 31) & 1;
}

/* Finds, of N documents a lane, those of `live`, the most that a list adds to each; 0: it does not hold it. All loads
 * are on their way before the first one is waited for. */
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

/* Finds, of an expanded list's postings from *at on, the first that is not below doc; x: the docID of posting *at.
 * Returns whether it is doc's. */
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

/* Looks SIDE documents a lane up in an expanded list, those of `live`, a bit each. Returns those that are there; at:
 * where in the list. A group of 16 bytes has 96 marks and the number of postings before them: the marks turn away 7
 * of 8 documents that the list does not hold, and say where in the list the document would be: there, if each mark is
 * of one document; otherwise there or, as postings may share a mark, a little behind. So a contribution is the second
 * or third load in turn. By way of the block and a search in it it was the sixth; with that, and with gc_drive_some
 * asking for marks one after another, ANDs took 1.36 times as long. */
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

/* Finds what a list adds to the live ones of SIDE documents a lane (SIDE is 1 unless EXPANDED); returns those that it
 * holds. asks: whether contributions are asked for. docs: 128 words of shared memory. */
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

/* What a list adds to a document; live: 1 if it holds it. */
typedef struct gc_looked_up {
  uint32_t live, add;
} gc_looked_up;

/* Looks one document a lane up in any list. Not inline: the code is long. */
static __device__ __noinline__ gc_looked_up gc_look_up_any(const gc_view &v, const gc_job &job, const gc_term &t,
    uint32_t doc, uint32_t live, uint32_t *docs, bool asks) {
  gc_looked_up x = {0, 0};
  x.live = gc_look_up<false, 1>(v, job, t, &doc, live, docs, asks, &x.add);
  return x;
}

/* Does what gc_look_up does, by a function if the kernel CALLS and lists may have to be decoded. */
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

/* Returns which of the live ones of two documents a lane a short list holds. Not inline: few documents come here, and
 * decoding takes registers. docs: 128 words of shared memory. */
static __device__ __noinline__ uint32_t gc_among(const gc_view &v, const gc_term &t, uint32_t first, uint32_t second,
    uint32_t live, uint32_t *docs) {
  const uint32_t d[2] = {first, second};
  uint32_t where[2];
  return gc_probe<2>(v, t, d, live, where, docs);
}

/* Takes the last of `count` waiting documents, at most 32 * SIDE, through the other lists, and offers those that stay
 * above the floor. rest: of each document the bounds of the lists behind, or, without a floor, anything. */
template <bool IS_AND, bool EXPANDED, bool CALLS, uint32_t SIDE>
static __device__ __forceinline__ void gc_follow(const gc_view &v, const gc_batch &b, uint32_t j, uint32_t e,
    unsigned long long floor, uint32_t count, const uint32_t *docs, const uint32_t *scores, const uint32_t *rests,
    gc_queue *w) {
  const gc_job &job = b.jobs[j];
  const gc_term *terms = b.terms + job.first_term;
  const uint32_t lane = gc_lane(), need = gc_need(floor), npositive = job.npositive, nterms = job.nterms;
  const uint32_t from = count > 32 * SIDE ? count - 32 * SIDE : 0;
  uint32_t doc[SIDE], score[SIDE], rest[SIDE], add[SIDE], bound[SIDE], live = 0, turn, found, r, u;
  __syncwarp();
#pragma unroll
  for (u = 0; u < SIDE; u++) {
    const uint32_t at = from + 32 * u + lane;
    if (at < count) live |= 1u << u;
    doc[u] = at < count ? docs[at] : 0;
    score[u] = at < count ? scores[at] : 0;
    rest[u] = at < count ? rests[at] : 0;
    if (IS_AND && score[u] + rest[u] < need) live &= ~(1u << u); /* the floor has risen while it waited */
  }
  __syncwarp();
#pragma unroll EXPANDED ? 2 : 1 /* the code that decodes is long */
  for (turn = 0; turn < 2; turn++) { /* the lists behind; then the e earlier ones and the negated ones */
    const bool adds = !turn;
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
#pragma unroll
      for (u = 0; u < SIDE; u++) {
        score[u] += add[u];
        if (need > 1) rest[u] -= bound[u];
        if (score[u] + rest[u] < need) live &= ~(1u << u);
      }
    }
#pragma unroll
    for (u = 0; u < SIDE && adds; u++)
      if (gpuir__key(score[u], doc[u]) <= floor) live &= ~(1u << u);
  }
  gc_offer<SIDE>(b, j,
      b.alone                                    ? GC_RAISE_NEVER
          : !IS_AND                              ? (b.raised ? GC_RAISE_DOUBLED : GC_RAISE_NEVER)
          : terms[0].nblocks >= GC_RAISED_BLOCKS ? GC_RAISE_OFTEN
                                                 : GC_RAISE_NEVER,
      live, doc, score, w->docs);
}

/* Sifts the last of an AND's `count` waiting documents, at most 32 * SIDE, by what the peaks of the third and the
 * further lists say, one after another; behind: the greatest contributions of all lists but the driver. Those that are
 * left wait behind `sifted` others for being looked up; returns how many these are then. */
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

/* Returns which posting of a driver's block the lane has as its i-th. EXPANDED: 32 postings in turn are one load's, so
 * that what is looked up for them lies close together. */
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

/* Decodes the postings of block `block` of the driver: docIDs, and q times their contributions. */
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

/* Decodes a block of any driver. Not inline: the code is long. */
static __device__ __noinline__ gc_driven gc_drive_any(const gc_view &v, const gc_job &job, const gc_term &t,
    uint32_t block) {
  gc_driven x;
  gc_drive_block<false>(v, job, t, block, x.doc, x.add);
  return x;
}

/* Does what gc_drive_block does, by a function if the kernel CALLS and lists may have to be decoded. */
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

/* Adds to rest[0..4) the bounds of the lists behind list e, which sum up to `behind`, one list after the other. Returns
 * those of the `live` postings (docIDs and contributions) that reach the need with them. */
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

/* Takes those of the 32 blocks from `from` on that `which` names, of list e. Each: 4 bytes for its bound; then 6
 * bytes a posting. Postings wait that reach the floor with the greatest contributions of the lists behind and do so
 * too with their spans' bounds, of an OR of all these lists, of an AND of the second one, which has to have one there.
 * Only the postings of `lanes` are taken: for few queries, several warps share a block. */
template <bool IS_AND, bool EXPANDED, bool CALLS>
static __device__ __forceinline__ void gc_drive_some(const gc_view &v, const gc_batch &b, uint32_t j, uint32_t e,
    uint32_t from, uint32_t which, uint32_t lanes, gc_queue *w) {
  const gc_job &job = b.jobs[j];
  const gc_term *terms = b.terms + job.first_term, &t = terms[e];
  unsigned long long floor = __shfl_sync(GC_WARP, gc_floor(b.states + j), 0);
  const uint32_t lane = gc_lane(), npositive = job.npositive;
  uint32_t need = gc_need(floor);
  constexpr uint32_t SIDE = EXPANDED ? GC_SIDE : 1;
  uint32_t behind = 0, count = 0, sifted = 0, i, r, peak = t.most;
  if (IS_AND || need > 1)
    for (r = e + 1; r < npositive; r++) behind += terms[r].most;
  if (need > 1) {
    if ((EXPANDED || (t.kind == GC_LONG && job.stored)) && (which >> lane & 1))
      peak = t.q * __ldg(v.most + t.first_block + from + lane);
    which &= __ballot_sync(GC_WARP, peak + behind >= need);
  }
  while (which || count || sifted) { /* all of these are the same in all lanes */
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
    if (IS_AND || need > 1) { /* without a floor, what waits of an OR has no bounds */
      floor = __shfl_sync(GC_WARP, now, 0);
      need = gc_need(floor);
    }
#pragma unroll
    for (i = 0; i < 4; i++) {
      d[i] = min(d[i], v.documents - 1);
      if (gc_posting_of<EXPANDED>(i) < n && (lanes >> lane & 1) && c[i] + behind >= need) live |= 1u << i;
    }
    if (!IS_AND && need > 1) live = gc_add_bounds(v, terms, e, npositive, need, behind, d, c, live, rest);
    if (IS_AND && npositive > 1) {
      const gc_term o = terms[1];
      gc_bound_each<EXPANDED, 4>(v, o, d, live, rest);
#pragma unroll
      for (i = 0; i < 4; i++)
        if (!rest[i] || c[i] + rest[i] + behind - o.most < need) live &= ~(1u << i);
    }
#pragma unroll
    for (i = 0; i < 4; i++) {
      uint32_t vote = __ballot_sync(GC_WARP, live >> i & 1);
      if (live >> i & 1) {
        uint32_t at = count + __popc(vote & ((1u << lane) - 1));
        w->doc[at] = d[i];
        w->score[at] = c[i];
        w->rest[at] = rest[i];
      }
      count += __popc(vote);
    }
  }
  __syncwarp();
}

/* Does the same by the code that the job's lists allow. */
template <bool IS_AND, bool CALLS>
static __device__ __forceinline__ void gc_drive_from(const gc_view &v, const gc_batch &b, uint32_t j, uint32_t e,
    uint32_t from, uint32_t which, uint32_t lanes, gc_queue *w) {
  const gc_job &job = b.jobs[j];
  if (job.expanded || (!IS_AND && job.mixed && b.terms[job.first_term + e].kind == GC_LONG))
    gc_drive_some<IS_AND, true, CALLS>(v, b, j, e, from, which, lanes, w);
  else gc_drive_some<IS_AND, false, CALLS>(v, b, j, e, from, which, lanes, w);
}

/* Returns the lanes of the i-th of `parts` (1 or 4) parts of a block. */
static __device__ __forceinline__ uint32_t gc_lanes(uint32_t i, uint32_t parts) {
  return parts == 1 ? GC_WARP : 0xffu << i % 4 * 8;
}

/* ---- AND with guides ---- */

/* Intersects by guides: a warp takes a ticket for a group of driver blocks at a time. settles: notes which tickets are
 * done. Predicted, by counting on the CPU 250 ANDs of 3.7 M postings with a floor that is raised at once: 0.28 M warp
 * instructions and 1.5 MB each. Counted on the device, hits included: 0.33 M and 1.9 MB, that is 11 instructions for
 * 128 postings and 0.5 byte a posting of all lists; 38 % of the issue slots, 45 % of the memory's bandwidth: it waits.
 * Before peaks took the place of marks, which say less: 0.37 M, 2.1 MB, and 1.25 times the time. Without gain: tickets
 * drawn ahead (1.1 times the time: floors that they begin with are older); the next driver block loaded ahead, into
 * registers or the L2 cache; 16 blocks a ticket, or one in the first turn; three, five or six blocks of threads a
 * multiprocessor, also with the code for lists that are not expanded in a function of its own; one document a lane for
 * that; half as many marks; marks in place of peaks while there is no floor; lists' postings asked for beforehand, or
 * not kept in caches; the L2 cache's granularity; where both of the first two lists are dense, comparing their peaks,
 * four to a word, instead of taking the driver's postings: one span in 50 passed, and what these needed then made it
 * 1.5 times the time. */
static __device__ __forceinline__ void gc_and_all(const gc_view &v, const gc_batch &b, bool settles, gc_queue *w) {
  for (;;) {
    const gc_blocks x = gc_next_blocks(b);
    if (!x.n) return;
    if (b.states[x.job].done) continue;
    while (*(volatile const uint32_t *)&b.states[x.job].opened < x.opening) __nanosleep(100);
    gc_drive_from<true, false>(v, b, x.job, 0, x.from, gc_mask(x.n), GC_WARP, w);
    if (x.opens && !gc_lane()) atomicAdd(&b.states[x.job].opened, 1);
    if (settles && !gc_lane()) {
      __threadfence();
      atomicAdd(&b.states[x.job].ended, 1);
    }
  }
}

/* ---- OR by MaxScore ---- */

/* Returns whether the AND that this OR waits for has found enough. */
static __device__ __forceinline__ bool gc_spared(const gc_batch &b, uint32_t j) {
  uint32_t after = b.jobs[j].after;
  return after != GC_NONE && b.states[after].count >= b.jobs[j].k;
}

/* ---- the sample ----
 * Some blocks of a job's shortest lists. For all their documents the bounds are summed up, and those with the greatest
 * sums are scored. The k-th best of these is a floor that is sure to hold. But a document of one block in w stands for
 * w documents; so fewer than k of the sample tell of a score that k documents of the lists reach, but for a small
 * probability: a better floor, which is a guess that gc_final checks. */

/* A job's sample. */
typedef struct gc_sample {
  uint32_t count, end[GC_SAMPLED_LISTS]; /* documents: all; up to the end of each list */
  float weight[GC_SAMPLED_LISTS]; /* documents that one of the list stands for */
  uint32_t scored, sure, guess; /* scored documents; floors as scores, 0: none */
  unsigned long long bound[GC_SAMPLED]; /* sum of a document's bounds, document */
  unsigned long long key[GC_SCORED]; /* list, document; then score, list, 0: it is another list's */
} gc_sample;

/* The sample's documents as keys. */
struct gc_keys_sample {
  const unsigned long long *p;
  __device__ unsigned long long operator()(uint32_t i) const { return p[i]; }
};

/* Adds the documents of `take` blocks of list e to the sample, unless their bounds do not reach the floor. */
template <bool EXPANDED>
static __device__ __forceinline__ void gc_sample_list(const gc_view &v, const gc_batch &b, uint32_t j, uint32_t e,
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
static __device__ __forceinline__ void gc_sample_scores(const gc_view &v, const gc_batch &b, uint32_t j, gc_sample *s,
    uint32_t *docs) {
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

/* Returns whether k documents are as good as certain to be among those that documents of a sample stand for: the
 * weights of these sum up to `sum`, `most` at most each. If there were fewer than k, so great a sum would come about
 * with a probability of at most exp(-doubt) (Chernoff's bound). */
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

/* Takes a job's sample, and raises its floor to what that tells. */
static __device__ __forceinline__ void gc_take_sample(const gc_view &v, const gc_batch &b, uint32_t j, gc_sample *s,
    uint32_t *docs, uint32_t *hist) {
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

#define GC_LOOKED 2048u /* blocks of a list at most whose bounds are looked at, to know how many have to be taken */

/* Returns about how many blocks of the first `drivers` lists can lift a document to the need; for a block of threads.
 */
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

/* Returns how many of a list's groups of blocks are taken in its opening: not more than one in GC_OPENING. */
static __device__ __forceinline__ uint32_t gc_opening_of(uint32_t groups) { return groups / GC_OPENING; }

/* Has blocks of a list drive in a round; by a thread. */
static __device__ void gc_add_drive(const gc_batch &b, uint32_t round, const gc_drive &drive) {
  const uint32_t all = (drive.end - drive.from + drive.group - 1) / drive.group, first = gc_opening_of(all);
  const uint32_t groups = drive.part == GC_PART_ALL ? all : drive.part == GC_PART_OPENING ? first : all - first;
  const unsigned long long at = atomicAdd(&b.control->drives[round], 1ull << 40 | groups);
  const uint32_t entry = round * b.maxs.most + (uint32_t)(at >> 40);
  b.maxs.drives[entry] = drive;
  b.maxs.drive_start[entry] = (uint32_t)at; /* groups stay below 2^32 */
}

/* Has a job's first lists drive. Their blocks are taken in rounds, each of all jobs: the opening, which is one in
 * GC_OPENING groups of blocks of each long list; the rest of the first list, of the second, of the others. What the
 * opening finds tells how many documents there are above a score: see gc_end_opening. So a floor that one round has
 * raised spares much of the next; within a round all blocks of a job are taken at about the same time. */
static __device__ void gc_add_drives(const gc_batch &b, uint32_t j, const gc_term *terms, uint32_t drivers, int rerun) {
  const uint32_t group = b.raised && b.jobs[j].npositive == 1 ? 32 : b.maxs.group; /* hardly a block is decoded */
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

/* Plans MaxScore, a block of threads a job: takes a sample for a floor, and decides which lists drive, or that tiles
 * cost less. In a rerun the floor is known, and what was followed is followed again. Predicted for the 28 blocks of a
 * sample: 21 KB and a sector of 32 bytes for each peak of their 3,584 postings, 2.4 on average, 300 KB in all; 17,000
 * warp instructions with k = 10, 240 of them a block, twice that in choosing among the postings. Counted a query: 337
 * KB of the L2 cache and 28,600 instructions; with k = 1,000, when 1,024 documents are scored and sorted, 524 KB and
 * 56,600. 20 to 26 % of the issue slots: it waits for memory, in few steps. */
static __global__ void __launch_bounds__(GC_FINAL_THREADS, GC_GUIDED_BLOCKS)
    gc_max_plan(const __grid_constant__ gc_view v, const __grid_constant__ gc_batch b, int rerun) {
  __shared__ uint32_t hist[256];
  __shared__ gc_sample sample;
  __shared__ uint32_t docs[GC_FINAL_THREADS / 32][GPUIR__BLOCK];
  gc_chained();
  const uint32_t j = b.maxs.jobs[blockIdx.x];
  const gc_job &job = b.jobs[j];
  const gc_term *terms = b.terms + job.first_term;
  gc_state *state = b.states + j;
  const uint32_t cost = (job.expanded || job.mixed) && b.raised ? GC_PROBE_COST : GC_PROBE_ALONE;
  uint32_t need, behind = 0, drivers = 0, driving = 0, i;
  uint64_t all = (uint64_t)GC_TILE_COST * v.ntiles;
  bool follow;
  if (rerun && (state->done || !state->followed)) return;
  if (gc_spared(b, j)) { /* in a rerun too: nobody would clear what it found */
    if (!threadIdx.x) state->followed = 1;
    return;
  }
  if (!rerun && (job.npositive > 1 || !job.seed)) gc_take_sample(v, b, j, &sample, docs[threadIdx.x / 32], hist);
  need = gc_need(gc_floor(state));
  for (i = 0; i < job.npositive; i++) behind += terms[i].most;
  for (i = 0; i < job.npositive; i++) {
    all += terms[i].nblocks;
    if (behind >= need) {
      drivers = i + 1;
      driving += terms[i].nblocks; /* below 2^30: see gc_plan_query */
    }
    behind -= terms[i].most;
  }
  follow = rerun || job.npositive == 1 || (uint64_t)driving * cost <= all;
  if (!follow && need > 1 && b.raised) /* the same for all threads */
    follow = (uint64_t)gc_blocks_to_take(v, job, terms, drivers, need) * cost <= all;
  if (need == 1 && !rerun) follow = (uint64_t)driving * GPUIR__BLOCK <= b.room; /* no candidate is lost */
  if (!threadIdx.x && follow) {
    state->followed = 1;
    gc_add_drives(b, j, terms, drivers, rerun);
  }
}

/* Finds the blocks of ticket number `ticket`, the rounds being copied from b.control->drives; returns whether there are
 * any. */
static __device__ __forceinline__ bool gc_find_drive(const gc_batch &b, const unsigned long long *rounds,
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

/* Returns the least number of documents, each of one in `weight`, that make as good as certain that there are k; or
 * weight 1. */
static __device__ __forceinline__ uint32_t gc_certain_rank(float weight, uint32_t k, float doubt) {
  uint32_t lo = 0, hi = 2 * k + 64; /* lo is too few */
  while (hi - lo > 1) {
    const uint32_t mid = (lo + hi) / 2;
    if (gc_certain(weight * (float)mid, weight, (float)k, doubt)) hi = mid;
    else lo = mid;
  }
  return hi;
}

/* Notes that a ticket of a job's opening is done, by its warp. The last one guesses a floor: documents that the
 * opening has found stand for GC_OPENING each. gc_final checks it, as it does the sample's. */
static __device__ __forceinline__ void gc_end_opening(const gc_batch &b, uint32_t j, uint32_t opening,
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

/* Bytes of a warp's queue that gc_max has: not the last array, which is of ANDs. With it, 28 KB of the multiprocessor's
 * memory are left to the first-level cache in place of 60, and gc_max takes 1.15 times the time. */
#define GC_OR_QUEUE offsetof(gc_queue, sifted_rest)
static_assert(GC_OR_QUEUE % 16 == 0, "a queue is aligned");

/* Follows the documents of the driving lists: a warp takes a ticket for a group of blocks at a time. Counted on
 * the CPU, 96 ORs of 3.7 M postings, k = 10 and 1,000: 780 and 1,780 driver blocks a query, 41,000 and 131,000
 * postings that the lists' bounds let pass, 55,000 and 185,000 peaks looked at, 210 and 3,900 documents left; without
 * what the opening tells 58,000 and 206,000 postings. That predicts 0.27 M and 0.75 M warp instructions and, a sector a
 * peak, 2.4 and 8.5 MB of the L2 cache. Counted: 0.55 M and 1.3 M, 3.0 and 9.1 MB, of these 2.0 and 6.5 MB from memory:
 * 18 and 44 instructions for 128 postings, 0.54 and 1.7 bytes a posting; 72 and 59 % of the issue slots, 57 and 67 % of
 * the memory's bandwidth. A lane's four peaks asked for one after another, behind branches, took 1.4 times the time. A
 * tenth of the queries, of long lists alone, makes up two thirds of the blocks. Without gain: a lane for each document
 * that is left and list; code for lists that are not expanded in a function of its own (1.3 times the time, as
 * registers are spilled); 16 blocks a ticket; five blocks of threads a multiprocessor; peaks half or twice as fine;
 * blocks fetched ahead to the L2 cache; a contribution loaded before it is known that its posting is the document's;
 * an opening of a sixteenth. */
static __global__ void __launch_bounds__(GC_GUIDED_THREADS, GC_MAX_BLOCKS)
    gc_max(const __grid_constant__ gc_view v, const __grid_constant__ gc_batch b) {
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

/* ========================
 * [cuda-08-topk]  the hits of a query out of its candidates
 *
 * Uses      [cuda-07-and].
 * Start at  gc_final.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_RANKED 512u /* candidates at most whose order gc_final finds by counting */
#define GC_K_SETTLED 2048u /* hits of a query at most that gc_and_guided itself writes */

/* Returns the job whose candidates are a query's hits, of the two of AND+OR: AND's if it found k, otherwise OR's, and
 * then *other is AND's. GC_NONE: the query is done. */
static __device__ __forceinline__ uint32_t gc_final_job(const gc_batch &b, uint2 jobs, uint32_t *other) {
  *other = GC_NONE;
  if (b.states[jobs.x].done) return GC_NONE;
  if (jobs.y == GC_NONE || b.states[jobs.x].count >= b.jobs[jobs.x].k) return jobs.x;
  *other = jobs.x;
  return jobs.y;
}

/* Clears the n candidates of a job, for the next launch. */
static __device__ __forceinline__ void gc_clear_candidates(const gc_batch &b, uint32_t j, uint32_t n) {
  uint32_t i;
  for (i = threadIdx.x; i < n; i += blockDim.x) b.cand[(uint64_t)j * b.room + i] = 0;
}

/* Candidates were lost, or the floor was guessed too high: asks for another run above `floor`. */
static __device__ __forceinline__ void gc_ask_again(const gc_batch &b, uint32_t j, uint32_t other,
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

/* Writes a query's i-th hit: in one piece, as it goes to the host's memory. */
static __device__ __forceinline__ void gc_put_hit(const gc_view &v, unsigned long long key, uint32_t i, uint32_t *out) {
  *(uint2 *)(out + 2 + 2 * i) = make_uint2(min(~(uint32_t)key, v.documents - 1), (uint32_t)(key >> 32));
}

/* Writes the best k of the n <= GC_RANKED candidates, which are not selected or sorted, but counted: as many hits stand
 * before each as have greater keys. Empties the buffer. keys: n items of shared memory. */
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
      rank += (keys[o] > key) | ((keys[o] == key) & (o < i)); /* no branches: a tenth of the time */
    if (rank >= k) continue;
    gc_put_hit(v, key, rank, out);
  }
}

/* Writes the best k of the n candidates, of which the k-th best is `kth`: gathers them in shared memory and sorts them
 * there. Empties the buffer. best: the power of two from k on. */
static __device__ __forceinline__ void gc_sort_hits(const gc_view &v, unsigned long long *cand, uint32_t n, uint32_t k,
    unsigned long long kth, unsigned long long *best, uint32_t *out) {
  __shared__ uint32_t taken;
  uint32_t size, i;
  for (size = 1; size < k; size *= 2) {}
  if (!threadIdx.x) taken = 0;
  for (i = threadIdx.x; i < size; i += blockDim.x) best[i] = 0;
  __syncthreads();
  for (i = threadIdx.x; i < n; i += 4 * blockDim.x) { /* four keys on their way at once */
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

/* How the host learns that a small launch has ended, sooner than from its stream: from a word in its memory. */
typedef struct gc_bell {
  uint32_t *word; /* NULL: it asks the stream */
  uint32_t number; /* which the word gets */
} gc_bell;

/* Rings it, by the last block of threads of a launch, when that has written all. */
static __device__ __forceinline__ void gc_ring(const gc_bell &bell) {
  __threadfence_system();
  __syncthreads();
  if (!threadIdx.x) *(volatile uint32_t *)bell.word = bell.number;
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

/* Writes a query's hits, by a block of threads, and empties the buffer: ranks the keys if they are few, otherwise
 * selects the best k of them and sorts these. When candidates were lost, it asks for another run instead. Reads 8 bytes
 * a candidate, up to 8 times. best: GC_RANKED items of shared memory, or the power of two from k on if that is more. */
static __device__ __forceinline__ void gc_final_query(const gc_view &v, const gc_batch &b, uint32_t query,
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
  if (count > b.room) { /* nothing will check a guess in the rerun: the floor has to be known */
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

/* Writes the hits of all queries, a block of threads each. Counted: 3,500 warp instructions and 0.8 KB an OR, 6,700
 * and 5.9 KB an AND; of 500 ANDs 47 us, where selecting alone, with one key of a thread on its way at a time, took 72
 * us. */
static __global__ void __launch_bounds__(GC_FINAL_THREADS)
    gc_final(const __grid_constant__ gc_view v, const __grid_constant__ gc_batch b, const gc_bell bell) {
  extern __shared__ uint4 gc_dynamic[];
  gc_chained();
  gc_final_query(v, b, blockIdx.x, (unsigned long long *)gc_dynamic);
  if (bell.word) gc_ring(bell);
}

/* ---- ANDs: to their hits in one kernel ---- */

/* Intersects by guides, and then, if the launch is of `queries` that have one job each, writes the hits of all: a block
 * of threads that finds no more tickets takes query after query, each as soon as its tickets are done. Kernels of their
 * own would wait until the next launch's blocks of threads leave room: these come as soon as the first ones here end.
 */
static __global__ void __launch_bounds__(GC_GUIDED_THREADS, GC_GUIDED_BLOCKS)
    gc_and_guided(const __grid_constant__ gc_view v, const __grid_constant__ gc_batch b, uint32_t queries) {
  __shared__ gc_queue kept[GC_GUIDED_THREADS / 32];
  __shared__ uint32_t next;
  static_assert(sizeof kept >= GC_K_SETTLED * 8 && GC_K_SETTLED >= GC_RANKED, "the best of a query's candidates");
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

/* ========================
 * [cuda-08c-prompt]  an AND alone whose driver is short: by one cluster of blocks of threads
 *
 * Most ANDs have few driver blocks, so that they wait for one load after another rather than for work. Here nothing
 * else is waited for. What the kernel needs is all among its parameters; a warp looks two documents a lane up in one
 * list, all lists at once; candidates go to the shared memory of the cluster's first block of threads, which ranks
 * them; and each line that the host gets says itself that it has come. So no memory of the device is written, and the
 * loads in turn are: the driver's documents; marks; documents and contributions, as one.
 *
 * Uses      [cuda-03-bp128], [cuda-05-expand], [cuda-07-and], [cuda-08b-alone].
 * Start at  gc_prompt.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_PROMPT_WARPS 16u /* that look documents up */
#define GC_PROMPT_THREADS (32 * GC_PROMPT_WARPS + 32) /* and one warp that tells the cluster that it may write here */
#define GC_PROMPT_CLUSTER 8u /* blocks of threads at most; a power of two */
#define GC_PROMPT_BLOCKS 32u /* of a driver at most: of more, gc_alone's many blocks of threads and its floor gain */
#define GC_PROMPT_TERMS 8u
#define GC_PROMPT_ROOM 2048u /* candidates; if there are more, gc_alone answers */
#define GC_PROMPT_K 128u
#define GC_PAIRS (32 * GC_SIDE) /* documents of a warp */
/* Documents of a block of threads at most. */
#define GC_PROMPT_OWN \
  (GPUIR__BLOCK * GC_PROMPT_BLOCKS / GC_PROMPT_CLUSTER > GC_PAIRS * GC_PROMPT_WARPS \
          ? GPUIR__BLOCK * GC_PROMPT_BLOCKS / GC_PROMPT_CLUSTER \
          : GC_PAIRS * GC_PROMPT_WARPS)

/* What the host gets: the first line, how many hits or GC_NONE; then hits. Each half of a line is written at once, and
 * has come as soon as it has the launch's number. */
typedef struct alignas(16) gc_line {
  uint32_t doc, number, score, also;
} gc_line;

/* A query, as a kernel's parameter. */
typedef struct gc_request {
  gc_job job; /* its first_term is not used */
  gc_line *lines;
  uint32_t number; /* of the launch */
  uint32_t share; /* groups of documents of a block of threads */
  gc_term terms[GC_PROMPT_TERMS];
} gc_request;

/* What the warps of a block of threads share. */
typedef struct gc_prompt_shared {
  unsigned long long keys[GC_PROMPT_ROOM]; /* candidates; of the first block of threads */
  uint32_t doc[GC_PROMPT_OWN], sum[GC_PROMPT_OWN]; /* the documents, and what lists add to them */
  uint32_t dead[GC_PROMPT_OWN / 32]; /* those that are no candidates */
  uint32_t hist[256];
  uint32_t count, kept;
} gc_prompt_shared;

/* ---- a cluster ---- */

static __device__ __forceinline__ uint32_t gc_cluster_rank(void) {
  uint32_t rank = 0;
#if __CUDA_ARCH__ >= 900
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
  return rank;
}

/* Says that this block of threads has come so far. What a thread does `tell` is there for those that wait. */
static __device__ __forceinline__ void gc_cluster_arrive(bool tell) {
#if __CUDA_ARCH__ >= 900
  if (tell) asm volatile("fence.acq_rel.cluster;" : : : "memory");
  __syncwarp();
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" : : : "memory");
#endif
}

static __device__ __forceinline__ void gc_cluster_wait(void) {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire.aligned;" : : : "memory");
#endif
}

/* Returns where the cluster's first block of threads has what this one has at p, in shared memory. */
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

/* Finds the docIDs of N postings a lane of an expanded list, and the contributions of one occurrence: all loads are on
 * their way before the first one is waited for. */
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

/* Looks for a document from posting `at` on, whose docID x is below it. Returns what the list adds to it; 0: it does
 * not hold it. Not inline: few documents come here. */
static __device__ __noinline__ uint32_t gc_look_behind(const gc_view &v, const gc_term &t, uint32_t doc, uint32_t x,
    uint32_t at) {
  return gc_seek(v, t, doc, x, &at) ? __ldg(v.impact + t.first_block * GPUIR__BLOCK + at) : 0;
}

/* Does what gc_find does and finds the contributions too, loading two postings at once where marks leave it open which
 * one it is. */
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
    if (!(live >> u & 1)) at[u] = 0; /* where all lanes load, there are no branches */
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

/* Does so in any list, one document a lane. docs: 128 words of shared memory. */
static __device__ __forceinline__ uint32_t gc_find_any(const gc_view &v, const gc_job &job, const gc_term &t,
    uint32_t doc, uint32_t live, uint32_t *docs, uint32_t *add) {
  uint32_t at;
  if (t.kind == GC_LONG) return gc_find_now<1>(v, t, &doc, live, add);
  live = gc_probe<1>(v, t, &doc, live, &at, docs);
  *add = live ? t.q * gc_contribution(t.weight, gc_freq(v, t, at), gc_norm(v, job, doc)) : 0;
  return live;
}

/* Notes what a warp has found in a list: adds what it adds to SIDE documents a lane from `first` on, and drops those of
 * which it says so. */
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

/* Looks the documents of this block of threads up, those of the driver's postings from `from` on, of `groups` groups:
 * the driver is expanded. */
static __device__ __forceinline__ void gc_look_up_all(const gc_view &v, const gc_request &x, uint32_t from,
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

/* Does the same of a driver that has no directory, 128 postings at most: a warp decodes docIDs, another one
 * frequencies. */
static __device__ __forceinline__ void gc_look_up_few(const gc_view &v, const gc_request &x, gc_prompt_shared *s) {
  const gc_term &driver = x.terms[0];
  const uint32_t groups = (driver.df + 31) / 32, warp = threadIdx.x / 32, lane = gc_lane();
  uint32_t *freq = (uint32_t *)s->keys, *docs = freq + (1 + warp) * GPUIR__BLOCK, d[4], task, i;
  static_assert((1 + GC_PROMPT_WARPS) * GPUIR__BLOCK * 4 <= GC_PROMPT_ROOM * 8, "gc_probe's memory");
  if (warp < 2) { /* each runs the same code */
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

/* Hands the candidates among this block's n documents to the cluster's first block of threads. Returns whether this
 * thread had any. */
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

/* Leaves the best of n > GC_CLOSE candidates, GC_CLOSE of them or little more than k; returns how many. */
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
static __device__ __forceinline__ void gc_write_hits(const gc_request &x, gc_prompt_shared *s) {
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

/* Answers an AND whose driver is short. SHORT: it has no directory; otherwise all lists are expanded. On an H200, 25.2
 * million documents, the kernel takes 4.6 us of those, and of others 4.5 with 1 to 4 driver blocks, 6.2 with 5 to 16;
 * by gc_alone it took 13. So the median AND takes 16 to 18 us from call to hits, 25 by gc_alone: 4 pass until the
 * kernel begins and its lines are seen, 5 in the host's calls, most of that in the launch. With one block of threads or
 * two, the median took 22: loads of many documents wait for each other there. */
template <bool SHORT>
static __global__ void __launch_bounds__(GC_PROMPT_THREADS, 1)
    gc_prompt(const __grid_constant__ gc_view v, const __grid_constant__ gc_request x) {
  __shared__ gc_prompt_shared s;
  const uint32_t rank = gc_cluster_rank(), all = (x.terms[0].df + GC_PAIRS - 1) / GC_PAIRS;
  const uint32_t groups = SHORT ? all : min(x.share, all - min(all, rank * x.share));
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
  else gc_look_up_all(v, x, rank * x.share * GC_PAIRS, groups, &s);
  gc_cluster_wait();
  __syncthreads();
  gc_cluster_arrive(gc_hand_over(SHORT ? (x.terms[0].df + 31) / 32 * 32 : groups * GC_PAIRS, &s) && rank);
  if (rank) return;
  gc_cluster_wait();
  __syncthreads();
  gc_write_hits(x, &s);
}

/* The host compiler spends less on what opens an index, which mostly waits for calls of CUDA, than on what plans,
 * launches and merges. */
#pragma GCC push_options
#pragma nv_diag_suppress 1675 /* nvcc does not know the next one, but hands it on */
#pragma GCC optimize("Og")
#pragma nv_diag_default 1675

/* ========================
 * [cuda-09-memory]  host: the backend's structure, device memory within the bound, sending bytes
 *
 * Uses      [cuda-07b-phrases].
 * Start at  gpuir_cuda; gc_take, gc_upload, gc_describe; gc_pipe_put.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_PAD 1024u /* bytes of zeros behind each section: what a damaged block may read there */

/* Where a long list's guides are; see gc_term. */
typedef struct gc_aid {
  uint64_t marks;
  uint32_t row, span, shift, most;
  uint32_t cut, wide; /* as in gc_term */
} gc_aid;

/* Where a list that was coded otherwise lies as bp128: docIDs, then frequencies at the next multiple of 16. */
typedef struct gc_place {
  uint64_t docs; /* address */
  uint32_t docs_words, freqs_words;
} gc_place;

/* What of a long list's term does not depend on the query, in two lines of the processor's cache. */
typedef struct gc_known {
  gc_term term; /* df is 0 where nothing is known */
  uint32_t seeds[GPUIR__SEEDS]; /* 0: none */
  uint8_t pad[128 - sizeof(gc_term) - GPUIR__SEEDS * 4];
} gc_known;

typedef struct gc_cache gc_cache;
typedef struct gt_team gt_team;

/* The launch shapes of the kernels that fill the device: blocks of threads. */
typedef struct gc_grids {
  unsigned sums; /* gc_sum_tiles */
  unsigned ors, ands, guided, maxs; /* gc_or, gc_and_decoding, gc_and_guided, gc_max */
  unsigned alone; /* gc_alone */
} gc_grids;

struct gpuir_cuda {
  gpuir_allocator a;
  const gpuir_index *index;
  const gpuir__segment *ix; /* its only segment */
  int device, processors, expanded;
  gc_view view;
  void *memory[32]; /* device memory that the view points to */
  unsigned nmemory;
  gc_place *places; /* of all terms, if lists were recoded; NULL: they lie as in the file */
  gpuir__buf recoded; /* void *: the memory of those */
  gc_term *lists; /* long lists, in the order of their blocks */
  size_t nlists;
  const gc_term *lists_there; /* the same on the device */
  gc_slices slices;
  gc_aid *aids; /* of all long lists, by their number in the index; NULL: there are no guides */
  gc_known *known; /* likewise; NULL: they are described anew for each query */
  gc_cache *cache; /* NULL: the whole index is on the device */
  gc_positions positions; /* with bytes NULL: they are not on the device */
  size_t phrase_room; /* shared memory of a block of threads of gc_phrase_all at most */
  uint64_t room; /* the bound, in bytes */
  uint64_t threshold;
  int refused; /* 1: the bound left no memory for something */
  uint32_t k_most;
  size_t batch; /* queries a launch at most */
  int by_itself; /* 1: the backend has chosen that, and may take fewer */
  int ahead; /* the greatest priority of kernels */
  gc_grids grids;
  gpuir_cuda_info info; /* counters: atomic */
  gt_team *team; /* several devices, of which this is the handle alone; or NULL */
};

/* Reports a failed CUDA call as a status, with words. */
static int gc_fail(gpuir_error *err, cudaError_t e, const char *what) {
  (void)cudaGetLastError(); /* forget it, if it can be forgotten */
  if (e == cudaErrorMemoryAllocation) return gpuir__fail(err, GPUIR_E_NOMEM, 0, "CUDA: %s: out of device memory", what);
  return gpuir__fail(err, GPUIR_E_BACKEND, 0, "CUDA: %s: %s", what, cudaGetErrorString(e));
}

/* Tests count CUDA calls, and let one of them fail without being made. */
#ifdef GPUIR_CUDA_SEAM
long gpuir_cuda_seam_calls, gpuir_cuda_seam_fail;
int gpuir_cuda_seam_error;
#define GC_CALL(call) (++gpuir_cuda_seam_calls == gpuir_cuda_seam_fail ? (cudaError_t)gpuir_cuda_seam_error : (call))
#else
#define GC_CALL(call) (call)
#endif

/* Evaluates a CUDA call; leaves the function with its error. */
#define GC_TRY(call, what) \
  do { \
    cudaError_t gc_e = GC_CALL(call); \
    if (gc_e != cudaSuccess) return gc_fail(err, gc_e, what); \
  } while (0)

/* Allocates device memory within the bound; all of it counts. */
static int gc_take(gpuir_cuda *c, size_t n, void **p, gpuir_error *err) {
  uint64_t used;
  *p = NULL;
  n = n ? n : 1;
  used = __atomic_add_fetch(&c->info.used_memory, n, __ATOMIC_RELAXED);
  if (used > c->room) {
    __atomic_fetch_sub(&c->info.used_memory, n, __ATOMIC_RELAXED);
    __atomic_store_n(&c->refused, 1, __ATOMIC_RELAXED);
    return gpuir__fail(err, GPUIR_E_NOMEM, 0, "CUDA: %llu MB of device memory are needed, %llu MB are allowed",
        (unsigned long long)(used >> 20), (unsigned long long)(c->room >> 20));
  }
  {
    cudaError_t e = GC_CALL(cudaMalloc(p, n));
    if (e == cudaSuccess) return GPUIR_OK;
    *p = NULL;
    __atomic_fetch_sub(&c->info.used_memory, n, __ATOMIC_RELAXED);
    return gc_fail(err, e, "allocating device memory");
  }
}

/* Frees memory that gc_take gave. */
static void gc_give(gpuir_cuda *c, void *p, size_t n) {
  if (!p) return;
  (void)cudaFree(p);
  __atomic_fetch_sub(&c->info.used_memory, n ? n : 1, __ATOMIC_RELAXED);
}

/* Allocates device memory that lives as long as the index on the device. */
static int gc_device_alloc(gpuir_cuda *c, size_t n, void **p, gpuir_error *err) {
  int status = gc_take(c, n, p, err);
  if (!status) c->memory[c->nmemory++] = *p;
  return status;
}

/* Uploads a section, and zeros behind it. */
static int gc_upload(gpuir_cuda *c, const void *from, size_t n, const void **to, gpuir_error *err) {
  void *p;
  int status = gc_device_alloc(c, n + GC_PAD, &p, err);
  if (status) return status;
  GC_TRY(cudaMemcpy(p, from, n, cudaMemcpyHostToDevice), "uploading the index");
  GC_TRY(cudaMemset((uint8_t *)p + n, 0, GC_PAD), "uploading the index");
  c->info.resident_bytes += n;
  *to = p;
  return GPUIR_OK;
}

#define GC_ALIGN(n) (((uint64_t)(n) + 15) & ~(uint64_t)15)

/* Returns the next piece of n bytes of an area, at a multiple of 64 behind the one before. */
static void *gc_carve(uint8_t **at, size_t n) {
  void *p = *at;
  *at += (n + 63) & ~(size_t)63;
  return p;
}

/* Describes the list of term `id`, whose record is *r, for the kernels; q and what follows stay 0. Its codecs are not
 * looked at. */
static int gc_describe(const gpuir_cuda *c, uint64_t id, const gpuir__record *r, gc_term *t, gpuir__list *l,
    gpuir_error *err) {
  const gpuir__segment *ix = c->ix;
  int status = c->index->calls->list_of(ix, r, l);
  if (status) return gpuir__fail(err, status, 0, "%s: cannot open a list: %s", ix->path, gpuir_strerror(status));
  memset(t, 0, sizeof *t);
  t->df = l->df;
  t->nblocks = l->nblocks;
  if (l->df == 1) {
    t->kind = GC_INLINE;
    t->docs = l->one_docid;
    t->freqs = l->one_tf;
    return GPUIR_OK;
  }
  t->kind = l->extent ? GC_LONG : GC_SHORT;
  if (l->extent) t->first_block = l->extent->first_block;
  if (c->places) {
    const gc_place *p = &c->places[id];
    t->docs = p->docs;
    t->docs_len = (uint64_t)p->docs_words * 4;
    t->freqs = p->docs + GC_ALIGN(t->docs_len);
    t->freqs_len = (uint64_t)p->freqs_words * 4;
  } else {
    t->docs = (uint64_t)(l->docs.bytes - ix->lists.docids);
    t->docs_len = l->docs.len;
    t->freqs = (uint64_t)(l->freqs.bytes - ix->lists.freqs);
    t->freqs_len = l->freqs.len;
  }
  return GPUIR_OK;
}

/* ---- sending lists: from the index's file, if it is locked in memory, or by pinned memory on its way, twice ---- */

#define GC_STAGE (1u << 20) /* bytes */

/* The index's file, locked in memory, so that the device reads it at the bus's rate. */
typedef struct gc_locked {
  uint8_t *file; /* NULL: it is not */
  uint64_t size;
} gc_locked;

/* One thread's way to the device. Several may share a stream. */
typedef struct gc_pipe {
  cudaStream_t stream;
  cudaEvent_t sent[2]; /* what stage[side] held has gone */
  uint8_t *stage[2], *to;
  size_t from, fill; /* the bytes from .. fill - 1 of stage[side] wait; they go to `to` */
  unsigned side;
  gc_locked locked;
} gc_pipe;

static int gc_stream_open(cudaStream_t *stream, int priority, gpuir_error *err) {
  GC_TRY(cudaStreamCreateWithPriority(stream, cudaStreamNonBlocking, priority), "creating a stream");
  return GPUIR_OK;
}

static void gc_stream_close(cudaStream_t stream) {
  if (!stream) return;
  (void)cudaStreamSynchronize(stream);
  (void)cudaStreamDestroy(stream);
}

static int gc_pipe_open(gc_pipe *p, cudaStream_t stream, gpuir_error *err) {
  unsigned i;
  p->stream = stream;
  for (i = 0; i < 2; i++) {
    GC_TRY(cudaEventCreateWithFlags(&p->sent[i], cudaEventDisableTiming), "creating an event");
    GC_TRY(cudaMallocHost((void **)&p->stage[i], GC_STAGE), "allocating pinned memory");
  }
  return GPUIR_OK;
}

/* Locks the index's file in memory where the system can do that and has twice as much memory. */
static void gc_lock(gc_locked *l, const gpuir_cuda *c) {
  const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
  int can = 0;
  l->size = c->ix->size;
  if (cudaDeviceGetAttribute(&can, cudaDevAttrHostRegisterReadOnlySupported, c->device) == cudaSuccess && can &&
      pages > 0 && bytes > 0 && l->size / (uint64_t)bytes < (uint64_t)pages / 2 &&
      cudaHostRegister((void *)(uintptr_t)c->ix->map, (size_t)l->size, cudaHostRegisterReadOnly) == cudaSuccess)
    l->file = (uint8_t *)(uintptr_t)c->ix->map;
  else (void)cudaGetLastError();
}

/* Waits for what is on its way. */
static void gc_pipe_close(gc_pipe *p) {
  unsigned i;
  if (p->stream) (void)cudaStreamSynchronize(p->stream);
  for (i = 0; i < 2; i++) {
    if (p->sent[i]) (void)cudaEventDestroy(p->sent[i]);
    (void)cudaFreeHost(p->stage[i]);
  }
}

/* Forgets what waits. */
static void gc_pipe_drop(gc_pipe *p) { p->fill = p->from; }

/* Sends what waits. */
static int gc_pipe_flush(gc_pipe *p, gpuir_error *err) {
  const size_t from = p->from, n = p->fill - from;
  p->from = p->fill = (p->fill + 15) & ~(size_t)15;
  if (n)
    GC_TRY(cudaMemcpyAsync(p->to, p->stage[p->side] + from, n, cudaMemcpyHostToDevice, p->stream), "sending a list");
  return GPUIR_OK;
}

/* Goes over to the other stage, once all that it held has gone. */
static int gc_pipe_turn(gc_pipe *p, gpuir_error *err) {
  int status = gc_pipe_flush(p, err);
  if (status) return status;
  GC_TRY(cudaEventRecord(p->sent[p->side], p->stream), "sending a list");
  p->side ^= 1;
  p->from = p->fill = 0;
  GC_TRY(cudaEventSynchronize(p->sent[p->side]), "sending a list");
  return GPUIR_OK;
}

/* Sends n bytes to the device, behind all that was sent before, once the stage is full or flushed. Bytes that go
 * closely behind those that wait go with them. */
static int gc_pipe_put(gc_pipe *p, const void *to, const void *from, uint64_t n, gpuir_error *err) {
  const uint8_t *source = (const uint8_t *)from;
  uint8_t *target = (uint8_t *)(uintptr_t)to;
  int status = GPUIR_OK;
  if (p->locked.file && (uint64_t)((uintptr_t)source - (uintptr_t)p->locked.file) < p->locked.size) {
    status = gc_pipe_flush(p, err);
    if (status) return status;
    GC_TRY(cudaMemcpyAsync(target, source, n, cudaMemcpyHostToDevice, p->stream), "sending a list");
    return GPUIR_OK;
  }
  while (n && !status) {
    const size_t waiting = p->fill - p->from;
    size_t gap = waiting && target >= p->to + waiting ? (size_t)(target - p->to) - waiting : SIZE_MAX, part;
    if (gap > 64) {
      status = gc_pipe_flush(p, err);
      p->to = target;
      gap = 0;
    }
    if (!status && p->fill + gap >= GC_STAGE) {
      status = gc_pipe_turn(p, err);
      p->to = target;
      gap = 0;
    }
    if (status) break;
    p->fill += gap;
    part = (size_t)gpuir__min64(n, GC_STAGE - p->fill);
    memcpy(p->stage[p->side] + p->fill, source, part);
    p->fill += part;
    source += part;
    target += part;
    n -= part;
  }
  return status;
}

/* ========================
 * [cuda-10-recoder]  host: lists of other codecs become bp128 on the device
 *
 * Lists in other codecs are sent as they are to an area of the device, as many at once as it holds, and written from
 * there as bp128 by gc_recode. The exceptions of a pfd-list, which only its beginning leads to, are decoded by the CPU.
 *
 * Uses      [cuda-04-codecs], [cuda-09-memory].
 * Start at  gc_recode_all (an index), gc_recoder_add, _measure, _write (some lists).
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_AREA (64u << 20) /* bytes, or one list */
#define GC_LISTS (1u << 14) /* lists at once */
#define GC_AREA_MORE (GC_PAD + 16 * 16) /* padding of an area's tables */

typedef struct gc_recoder {
  gc_pipe *pipe;
  gc_recoding work;
  gc_source *sources; /* of `most` lists, as are the arrays below */
  gc_target *targets;
  uint32_t *start, most;
  uint64_t *ids;
  unsigned long long *words; /* pinned: sizes that the device tells */
  uint8_t *area;
  uint64_t size, fill, need; /* bytes; need: of the lists until now, with their tables */
} gc_recoder;

static int gc_coded_otherwise(const gpuir__list *l) {
  return l->df > 1 && (l->docs.codec->id != GPUIR__ID_BP128 || l->freqs.codec->id != GPUIR__ID_BP128);
}

static int gc_recoder_open(gc_recoder *r, const gpuir_allocator *a, gc_pipe *pipe, uint32_t most, gpuir_error *err) {
  r->pipe = pipe;
  r->most = most;
  r->sources = (gc_source *)gpuir__alloc_zero(a, most * sizeof *r->sources);
  r->targets = (gc_target *)gpuir__alloc_zero(a, most * sizeof *r->targets);
  r->start = (uint32_t *)gpuir__alloc_zero(a, ((size_t)most + 1) * sizeof *r->start);
  r->ids = (uint64_t *)gpuir__alloc_zero(a, most * sizeof *r->ids);
  if (!r->sources || !r->targets || !r->start || !r->ids) return gpuir__fail_nomem(err);
  GC_TRY(cudaHostAlloc((void **)&r->words, (size_t)most * 16, cudaHostAllocMapped), "allocating pinned memory");
  GC_TRY(cudaHostGetDevicePointer((void **)&r->work.words, r->words, 0), "mapping pinned memory");
  return GPUIR_OK;
}

static void gc_recoder_close(gc_recoder *r, const gpuir_allocator *a) {
  (void)cudaFreeHost(r->words);
  gpuir__free(a, r->sources, r->most * sizeof *r->sources);
  gpuir__free(a, r->targets, r->most * sizeof *r->targets);
  gpuir__free(a, r->start, ((size_t)r->most + 1) * sizeof *r->start);
  gpuir__free(a, r->ids, r->most * sizeof *r->ids);
}

/* Starts collecting lists in an area, empty. */
static void gc_recoder_begin(gc_recoder *r, void *area, uint64_t size) {
  r->area = (uint8_t *)area;
  r->size = size;
  r->fill = r->need = r->work.nlists = r->work.nblocks = 0;
  gc_pipe_drop(r->pipe); /* what a list that failed left */
}

/* Clears n bytes: what stands between streams, and behind them, may be read. */
static int gc_recoder_clear(const gc_recoder *r, void *p, uint64_t n, gpuir_error *err) {
  GC_TRY(cudaMemsetAsync(p, 0, n, r->pipe->stream), "recoding lists");
  return GPUIR_OK;
}

/* Returns the bytes that a list takes of the area. */
static uint64_t gc_recoder_bytes(const gpuir__list *l) {
  const uint64_t n = l->nblocks;
  uint64_t bytes = GC_ALIGN(l->docs.len) + GC_ALIGN(l->freqs.len) + sizeof(gc_source) + sizeof(gc_target) + 4 + 10 * n;
  if (l->extent) bytes += 3 * GC_ALIGN(4 * n) + 2 * GC_ALIGN(n);
  if (l->docs.codec->id == GPUIR__ID_PFL) {
    gpuir__pfl_level top;
    unsigned depth;
    uint64_t memory;
    (void)gpuir__pfl_find(&l->docs, &top, &depth, &memory);
    bytes += 2 * GC_ALIGN((uint64_t)top.number * 4);
  }
  return bytes;
}

/* Sends n bytes to the area; *to: where they will be. */
static int gc_recoder_put(gc_recoder *r, const void *from, uint64_t n, const void **to, gpuir_error *err) {
  *to = r->area + r->fill;
  r->fill += GC_ALIGN(n);
  return gc_pipe_put(r->pipe, *to, from, n, err);
}

static int gc_recoder_put_stream(gc_recoder *r, const gpuir__stream *s, uint64_t nblocks, gpuir__stream *to,
    gpuir_error *err) {
  int status = gc_recoder_put(r, s->bytes, s->len, (const void **)&to->bytes, err);
  to->len = s->len;
  to->n = s->n;
  to->limit = s->limit;
  if (!status && s->offset) status = gc_recoder_put(r, s->offset, nblocks * 4, (const void **)&to->offset, err);
  if (!status && s->width) status = gc_recoder_put(r, s->width, nblocks, (const void **)&to->width, err);
  return status;
}

/* Adds a list for which there is room; its place in the directory is the index's. */
static int gc_recoder_add(gc_recoder *r, const gpuir__segment *ix, uint64_t id, gpuir__list *l, gpuir_error *err) {
  gc_source *s = &r->sources[r->work.nlists];
  gc_coded *docs = &s->part[GC_DOCS];
  int status = gpuir__list_open_codecs(&ix->a, l);
  if (status) return gpuir__fail(err, status, 0, "%s: cannot open a list: %s", ix->path, gpuir_strerror(status));
  memset(s, 0, sizeof *s);
  s->codec[GC_DOCS] = l->docs.codec->id;
  s->codec[GC_FREQS] = l->freqs.codec->id;
  docs->nblocks = l->nblocks;
  status = gc_recoder_put_stream(r, &l->docs, l->nblocks, &docs->s, err);
  if (!status) status = gc_recoder_put_stream(r, &l->freqs, l->nblocks, &s->part[GC_FREQS].s, err);
  if (!status && l->extent)
    status = gc_recoder_put(r, l->last, (uint64_t)l->nblocks * 4, (const void **)&docs->s.last, err);
  s->part[GC_FREQS].s.last = docs->s.last;
  if (!status && l->docs.codec->id == GPUIR__ID_PFL) {
    const gpuir__pfl_state *state = (const gpuir__pfl_state *)l->docs.scratch;
    const uint64_t n = (uint64_t)state->top.number * 4;
    docs->slots = docs->s.bytes + (state->top.slots - l->docs.bytes);
    docs->bits = state->top.b;
    docs->number = state->top.number;
    status = gc_recoder_put(r, state->overflows, n, (const void **)&docs->overflows, err);
    if (!status) status = gc_recoder_put(r, state->positions, n, (const void **)&docs->positions, err);
  }
  gpuir__list_close(&ix->a, l);
  r->need += gc_recoder_bytes(l);
  r->ids[r->work.nlists] = id;
  r->targets[r->work.nlists].entry = l->extent ? l->extent->first_block : 0;
  r->start[r->work.nlists++] = r->work.nblocks;
  r->work.nblocks += l->nblocks;
  return status;
}

/* Returns room for a table of the area, which the kernels write. */
static void *gc_recoder_table(gc_recoder *r, uint64_t n) {
  void *p = r->area + r->fill;
  r->fill += GC_ALIGN(n);
  return p;
}

static unsigned gc_recoder_grid(const gpuir_cuda *c, const gc_recoder *r) {
  const uint64_t warps = ((uint64_t)r->work.nblocks + r->work.chunk - 1) / r->work.chunk;
  return (unsigned)gpuir__min64((warps + 7) / 8, (uint64_t)c->processors * 8);
}

/* Has the device find out how many words the lists take as bp128. */
GPUIR__COLD static int gc_recoder_measure(const gpuir_cuda *c, gc_recoder *r, gpuir_error *err) {
  const gc_view *v = &c->view;
  gc_recoding *w = &r->work;
  int status, part;
  r->start[w->nlists] = w->nblocks;
  status = gc_recoder_put(r, r->sources, w->nlists * sizeof *r->sources, (const void **)&w->sources, err);
  if (!status) status = gc_recoder_put(r, r->start, (w->nlists + 1) * 4, (const void **)&w->start, err);
  if (!status) status = gc_pipe_flush(r->pipe, err);
  if (status) return status;
  w->targets = (const gc_target *)gc_recoder_table(r, w->nlists * sizeof *r->targets);
  for (part = 0; part < 2; part++) {
    w->off[part] = (uint32_t *)gc_recoder_table(r, (uint64_t)w->nblocks * 4);
    w->width[part] = (uint8_t *)gc_recoder_table(r, w->nblocks);
  }
  w->chunk = gpuir__max32(1, gpuir__min32(8, w->nblocks / ((uint32_t)c->processors * 64)));
  w->to_last = (uint32_t *)(uintptr_t)v->last;
  w->to_off[GC_DOCS] = (uint32_t *)(uintptr_t)v->docs_off;
  w->to_off[GC_FREQS] = (uint32_t *)(uintptr_t)v->freqs_off;
  w->to_width[GC_DOCS] = (uint8_t *)(uintptr_t)v->docs_width;
  w->to_width[GC_FREQS] = (uint8_t *)(uintptr_t)v->freqs_width;
  gc_recode<<<gc_recoder_grid(c, r), 256, 0, r->pipe->stream>>>(*w, false);
  gc_recode_offsets<<<dim3(w->nlists, 2), 1024, 0, r->pipe->stream>>>(*w);
  GC_TRY(cudaGetLastError(), "recoding lists");
  return GPUIR_OK;
}

/* Waits for the sizes that gc_recoder_measure asked for. */
static int gc_recoder_wait(const gpuir_cuda *c, gc_recoder *r, gpuir_error *err) {
  uint32_t i;
  GC_TRY(cudaStreamSynchronize(r->pipe->stream), "recoding lists");
  for (i = 0; i < 2 * r->work.nlists; i++)
    if (r->words[i] > UINT32_MAX)
      return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "%s: as bp128 a list takes more than 16 GB", c->ix->path);
  return GPUIR_OK;
}

/* Writes the lists to their targets. */
static int gc_recoder_write(const gpuir_cuda *c, gc_recoder *r, gpuir_error *err) {
  int status = gc_pipe_put(r->pipe, r->work.targets, r->targets, r->work.nlists * sizeof *r->targets, err);
  if (!status) status = gc_pipe_flush(r->pipe, err);
  if (status) return status;
  gc_recode<<<gc_recoder_grid(c, r), 256, 0, r->pipe->stream>>>(r->work, true);
  GC_TRY(cudaGetLastError(), "recoding lists");
  return GPUIR_OK;
}

/* Takes device memory for the lists that were collected, as bp128, and makes it their target. */
static int gc_recode_place(gpuir_cuda *c, gc_recoder *r, gpuir_error *err) {
  uint64_t bytes = 0;
  uint32_t i, part;
  void *p;
  int status;
  for (i = 0; i < r->work.nlists; i++) bytes += GC_ALIGN(r->words[2 * i] * 4) + GC_ALIGN(r->words[2 * i + 1] * 4);
  status = gc_take(c, bytes + GC_PAD, &p, err);
  if (status) return status;
  status = gpuir__buf_put(&c->a, &c->recoded, &p, sizeof p);
  if (status) {
    gc_give(c, p, bytes + GC_PAD);
    return gpuir__fail_nomem(err);
  }
  status = gc_recoder_clear(r, p, bytes + GC_PAD, err);
  if (status) return status;
  c->info.resident_bytes += bytes;
  bytes = 0;
  for (i = 0; i < r->work.nlists; i++) {
    gc_place *place = &c->places[r->ids[i]];
    gc_target *to = &r->targets[i];
    for (part = 0; part < 2; part++) {
      to->words[part] = (uint32_t)r->words[2 * i + part];
      to->part[part] = (uint32_t *)((uint8_t *)p + bytes);
      bytes += GC_ALIGN((uint64_t)to->words[part] * 4);
    }
    place->docs_words = to->words[GC_DOCS];
    place->freqs_words = to->words[GC_FREQS];
    place->docs = (uint64_t)(uintptr_t)to->part[GC_DOCS];
  }
  return GPUIR_OK;
}

/* Recodes the lists that were collected into memory of their own, and empties the area. */
GPUIR__COLD static int gc_recode_some(gpuir_cuda *c, gc_recoder *r, gpuir_error *err) {
  int status;
  if (!r->work.nlists) return GPUIR_OK;
  status = gc_recoder_measure(c, r, err);
  if (!status) status = gc_recoder_wait(c, r, err);
  if (!status) status = gc_recode_place(c, r, err);
  if (status) return status;
  status = gc_recoder_write(c, r, err);
  gc_recoder_begin(r, r->area, r->size);
  return status;
}

/* Sums up the bytes of the area that all lists need, and that the greatest one does. Refuses lists that share bytes:
 * so the time that recoding takes is bounded by the file's size. */
static int gc_recode_needs(const gpuir_cuda *c, uint64_t *all, uint64_t *most, gpuir_error *err) {
  const gpuir__segment *ix = c->ix;
  uint64_t docs = 0, freqs = 0, blocks = 0;
  gpuir__walk w;
  *all = *most = 0;
  for (gpuir__walk_start(&w, ix); gpuir__walk_next(&w);) {
    gpuir__list l;
    uint64_t need;
    int status = c->index->calls->list_of(ix, &w.record, &l);
    if (status) return gpuir__fail(err, status, 0, "%s: cannot open a list: %s", ix->path, gpuir_strerror(status));
    if (l.df == 1) continue;
    docs += l.docs.len;
    freqs += l.freqs.len;
    if (l.extent) blocks += l.nblocks;
    if (docs > ix->section[GPUIR__S_DOCIDS]->length || freqs > ix->section[GPUIR__S_FREQS]->length ||
        blocks > ix->stat.blocks)
      return gpuir__bad(ix, err, 0, "lists share bytes");
    need = gc_recoder_bytes(&l);
    *all += need;
    *most = gpuir__max64(*most, need);
  }
  return GPUIR_OK;
}

/* Sends all lists and recodes them. */
static int gc_recode_lists(gpuir_cuda *c, gc_recoder *r, gpuir_error *err) {
  const gpuir__segment *ix = c->ix;
  gpuir__walk w;
  int status = GPUIR_OK;
  for (gpuir__walk_start(&w, ix); !status && gpuir__walk_next(&w);) {
    gpuir__list l;
    if (w.record.df == 1) continue;
    status = c->index->calls->list_of(ix, &w.record, &l);
    if (status) return gpuir__fail(err, status, 0, "%s: cannot open a list", ix->path);
    if (r->work.nlists == r->most || r->need + gc_recoder_bytes(&l) + GC_AREA_MORE > r->size)
      status = gc_recode_some(c, r, err);
    if (!status) status = gc_recoder_add(r, ix, w.id, &l, err);
  }
  if (!status) status = gc_recode_some(c, r, err);
  if (!status) GC_TRY(cudaStreamSynchronize(r->pipe->stream), "recoding lists");
  return status;
}

/* Fills the index's streams on the device, and the parts of the directory that follow from them. */
static int gc_recode_all(gpuir_cuda *c, gpuir_error *err) {
  const gpuir__segment *ix = c->ix;
  const uint64_t blocks = ix->stat.blocks;
  gc_view *v = &c->view;
  cudaStream_t stream = NULL;
  gc_pipe pipe;
  gc_recoder r;
  uint64_t all, most, size = 0;
  void *area = NULL;
  int s = gc_recode_needs(c, &all, &most, err);
  if (s) return s;
  c->places = (gc_place *)gpuir__alloc_zero(&c->a, (size_t)ix->stat.terms * sizeof *c->places);
  if (!c->places) return gpuir__fail_nomem(err);
  s = gc_device_alloc(c, blocks * 4, (void **)&v->last, err);
  if (!s) s = gc_device_alloc(c, blocks * 4, (void **)&v->docs_off, err);
  if (!s) s = gc_device_alloc(c, blocks * 4, (void **)&v->freqs_off, err);
  if (!s) s = gc_device_alloc(c, blocks, (void **)&v->docs_width, err);
  if (!s) s = gc_device_alloc(c, blocks, (void **)&v->freqs_width, err);
  if (s) return s;
  c->info.resident_bytes += blocks * 14;
  memset(&pipe, 0, sizeof pipe);
  memset(&r, 0, sizeof r);
  size = gpuir__min64(all, gpuir__max64(most, gpuir__min64(GC_AREA, c->room / 16))) + GC_AREA_MORE;
  s = gc_stream_open(&stream, 0, err);
  if (!s) s = gc_pipe_open(&pipe, stream, err);
  if (!s) s = gc_recoder_open(&r, &c->a, &pipe, GC_LISTS, err);
  if (!s) s = gc_take(c, size, &area, err);
  if (!s) {
    gc_recoder_begin(&r, area, size);
    s = gc_recoder_clear(&r, area, size, err);
    if (!s) s = gc_recode_lists(c, &r, err);
  }
  gc_pipe_close(&pipe);
  gc_stream_close(stream);
  gc_recoder_close(&r, &c->a);
  gc_give(c, area, size);
  return s;
}

#pragma GCC pop_options

/* ========================
 * [cuda-11-cache]  host: a cache of lists, for an index that does not fit
 *
 * Ding et al. (WWW 2009, section 5) keep lists in the GPU's memory by their use. Here one slab is cut into units,
 * each a block's directory entry and GC_UNIT bytes of streams or more; a list takes as many in a row as its blocks
 * or its bytes need. A list that a launch uses stays until the launch has ended. To make room, the lists of least worth
 * are evicted; worth: uses while resident plus the worth of the last list that was evicted before it came (so old fame
 * fades); as each list's transfer costs bytes and its place costs the same bytes, they cancel out.
 *
 * The lock is of the slots alone: it is not held while bytes move. A searcher that misses lists takes places for them
 * at once, lets go of the lock, copies the lists to pinned memory of its own and from there on the stream that all
 * transfers share, and tells that they are there. Who wants a list that is coming holds it, goes on planning and waits
 * for it before its launch. As one stream takes all transfers in turn, a place can be given away as soon as the work
 * that fills or reads it is in that stream. A list in another codec is sent to units that it leaves again when it has
 * been recoded; only the first time its size has to be waited for.
 *
 * Uses      [cuda-04-codecs], [cuda-09-memory], [cuda-10-recoder].
 * Start at  gc_cache_open, gc_cache_hold_all, gc_cache_await, gc_cache_release.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_UNIT 32u /* bytes of streams a unit at least, and their granularity */
#define GC_SLOTS (1u << 16) /* lists at most */
#define GC_ENTRY (3 * 4 + 2 + GPUIR__BLOCK_PAIRS * sizeof(gpuir__pair)) /* bytes of a block in the directory */

/* Where a list is on its way. GC_UNPLACED: sent, but what it takes as bp128 is not known; only who brings it holds it.
 * GC_COMING: its place is known, but not all of it is in the stream. GC_LOST: it will not come, and goes with the last
 * one that holds it. */
enum { GC_HERE, GC_COMING, GC_UNPLACED, GC_LOST };

/* A resident list. */
typedef struct gc_slot {
  uint64_t id, worth, bytes;
  uint64_t docs_len, freqs_len;
  uint32_t unit, nunits; /* its place in the slab */
  uint32_t users, state; /* users: launches that hold it */
  uint32_t next; /* the next slot with the same hash, or the next free one, + 1 */
  uint32_t hashed; /* 1: it can be found by its id */
} gc_slot;

struct gc_cache {
  pthread_mutex_t lock; /* of all that follows down to `sizes` */
  pthread_cond_t freed; /* lists were released, or are there */
  int ready; /* 1: the two above are initialized */
  uint64_t unit_bytes, nunits;
  uint64_t clock; /* the worth of the last list that was evicted */
  uint64_t pins, releases; /* lists held, times that any were released or came */
  gc_slot *slots;
  uint32_t *order; /* the nslots used ones, by unit */
  uint32_t nslots, most; /* most: there can be */
  uint32_t *heads, mask; /* the hash table: slot + 1 */
  uint32_t vacant; /* the first free slot + 1 */
  uint2 *sizes; /* in words, of long lists that were recoded before: they are not waited for again */
  uint8_t *streams; /* device */
  cudaStream_t stream; /* of all transfers */
  gc_locked locked;
};

/* What a launch needs to bring lists. */
typedef struct gc_carrier {
  gc_pipe pipe;
  gc_recoder recoder; /* of one list */
} gc_carrier;

/* The lists that a planned launch holds. */
typedef struct gc_holds {
  uint32_t *slots;
  size_t n;
  int coming; /* 1: some were on their way when they were asked for */
  uint64_t releases; /* of the cache, when a list was last asked for in vain */
  uint64_t pins; /* lists that were held then */
} gc_holds;

static uint32_t *gc_cache_head(const gc_cache *k, uint64_t id) {
  return &k->heads[(uint32_t)((id * 0x9e3779b97f4a7c15u) >> 32) & k->mask];
}

/* Returns the slot's index + 1, or 0. */
static uint32_t gc_cache_find(const gc_cache *k, uint64_t id) {
  uint32_t s = *gc_cache_head(k, id);
  while (s && k->slots[s - 1].id != id) s = k->slots[s - 1].next;
  return s;
}

/* Makes a list known by its id. */
static void gc_cache_enter(gc_cache *k, uint32_t s, uint64_t id) {
  uint32_t *head = gc_cache_head(k, id);
  k->slots[s].id = id;
  k->slots[s].next = *head;
  k->slots[s].hashed = 1;
  *head = s + 1;
}

static void gc_cache_forget(gc_cache *k, uint32_t s) {
  uint32_t *at = gc_cache_head(k, k->slots[s].id);
  if (!k->slots[s].hashed) return;
  while (*at != s + 1) at = &k->slots[*at - 1].next;
  *at = k->slots[s].next;
  k->slots[s].hashed = 0;
}

/* Returns the place in the order for a list of n units, where the first gap of that size is; or UINT32_MAX. */
static uint32_t gc_cache_gap(const gc_cache *k, uint64_t n, uint64_t *unit) {
  uint32_t i;
  *unit = 0;
  if (k->nslots == k->most) return UINT32_MAX;
  for (i = 0; i < k->nslots; i++) {
    const gc_slot *s = &k->slots[k->order[i]];
    if (s->unit - *unit >= n) return i;
    *unit = (uint64_t)s->unit + s->nunits;
  }
  return k->nunits - *unit >= n ? i : UINT32_MAX;
}

/* Empties the slot at a place in the order. */
static void gc_cache_remove(gpuir_cuda *c, gc_cache *k, uint32_t place) {
  const uint32_t s = k->order[place];
  gc_cache_forget(k, s);
  __atomic_fetch_sub(&c->info.resident_bytes, k->slots[s].bytes, __ATOMIC_RELAXED);
  k->nslots--;
  memmove(&k->order[place], &k->order[place + 1], (k->nslots - place) * sizeof *k->order);
  k->slots[s].next = k->vacant;
  k->vacant = s + 1;
}

/* Evicts the list of least worth that no launch uses; returns 0 if there is none. */
static int gc_cache_evict(gpuir_cuda *c, gc_cache *k) {
  uint32_t i, least = UINT32_MAX;
  uint64_t worth = 0;
  for (i = 0; i < k->nslots; i++) {
    const gc_slot *s = &k->slots[k->order[i]];
    if (s->users || (least != UINT32_MAX && s->worth >= worth)) continue;
    least = i;
    worth = s->worth;
  }
  if (least == UINT32_MAX) return 0;
  k->clock = worth;
  gc_cache_remove(c, k, least);
  return 1;
}

/* Takes a slot and a place for a list of n units, evicting others for it, and holds it. Returns the slot's index + 1;
 * 0: the lists in use leave no room. */
static uint32_t gc_cache_reserve(gpuir_cuda *c, gc_cache *k, uint64_t n) {
  uint64_t unit;
  uint32_t place, i;
  while ((place = gc_cache_gap(k, n, &unit)) == UINT32_MAX && n <= k->nunits && gc_cache_evict(c, k)) {}
  if (place == UINT32_MAX) return 0;
  i = k->vacant - 1;
  k->vacant = k->slots[i].next;
  memset(&k->slots[i], 0, sizeof *k->slots);
  k->slots[i].worth = k->clock + 1;
  k->slots[i].unit = (uint32_t)unit;
  k->slots[i].nunits = (uint32_t)n;
  k->slots[i].users = 1;
  k->pins++;
  memmove(&k->order[place + 1], &k->order[place], (k->nslots - place) * sizeof *k->order);
  k->order[place] = i;
  k->nslots++;
  return i + 1;
}

/* Lets go of a list. One that is lost goes with its last holder. */
static void gc_cache_let_go(gpuir_cuda *c, gc_cache *k, uint32_t s) {
  uint32_t i = 0;
  k->pins--;
  if (--k->slots[s].users || k->slots[s].state != GC_LOST) return;
  while (k->order[i] != s) i++;
  gc_cache_remove(c, k, i);
}

/* Gives a list up that will not come. */
static void gc_cache_lose(gpuir_cuda *c, gc_cache *k, uint32_t s) {
  gc_cache_forget(k, s);
  k->slots[s].state = GC_LOST;
  gc_cache_let_go(c, k, s);
}

/* Tells those who wait that lists were released, or came. */
static void gc_cache_tell(gc_cache *k) {
  k->releases++;
  (void)pthread_cond_broadcast(&k->freed);
}

/* Writes the size that a list has as bp128 to its slot; returns the units that it takes. */
static uint64_t gc_cache_size(const gc_cache *k, const gpuir__list *l, uint64_t docs_len, uint64_t freqs_len,
    gc_slot *s) {
  const uint64_t bytes = GC_ALIGN(docs_len) + GC_ALIGN(freqs_len);
  s->docs_len = docs_len;
  s->freqs_len = freqs_len;
  s->bytes = bytes + (l->extent ? l->nblocks * GC_ENTRY : 0);
  return gpuir__max64(l->nblocks, (bytes + k->unit_bytes - 1) / k->unit_bytes);
}

/* Transfers a list that is bp128 already to its units: the streams and their directory. */
static int gc_cache_load_streams(const gpuir_cuda *c, gc_pipe *p, const gc_slot *s, const gpuir__list *l,
    gpuir_error *err) {
  const gc_view *v = &c->view;
  const uint64_t n = l->nblocks;
  uint8_t *at = c->cache->streams + s->unit * c->cache->unit_bytes;
  int status = gc_pipe_put(p, at, l->docs.bytes, l->docs.len, err);
  if (!status) status = gc_pipe_put(p, at + GC_ALIGN(l->docs.len), l->freqs.bytes, l->freqs.len, err);
  if (status || !l->extent) return status;
  status = gc_pipe_put(p, v->last + s->unit, l->last, n * 4, err);
  if (!status) status = gc_pipe_put(p, v->docs_off + s->unit, l->docs.offset, n * 4, err);
  if (!status) status = gc_pipe_put(p, v->freqs_off + s->unit, l->freqs.offset, n * 4, err);
  if (!status) status = gc_pipe_put(p, v->docs_width + s->unit, l->docs.width, n, err);
  if (!status) status = gc_pipe_put(p, v->freqs_width + s->unit, l->freqs.width, n, err);
  return status;
}

/* Sends a list to units where it stays until it has been recoded, and finds out its size as bp128. */
static int gc_cache_measure(gpuir_cuda *c, gc_recoder *r, const gc_slot *area, uint64_t id, gpuir__list *l,
    uint2 *words, gpuir_error *err) {
  gc_cache *k = c->cache;
  uint2 known = {0, 0}, *sizes = l->extent ? &k->sizes[l->extent - c->ix->lists.longs] : NULL;
  int status;
  if (sizes) {
    known.x = __atomic_load_n(&sizes->x, __ATOMIC_ACQUIRE);
    known.y = sizes->y;
  }
  gc_recoder_begin(r, k->streams + area->unit * k->unit_bytes, gc_recoder_bytes(l) + GC_AREA_MORE);
  status = gc_recoder_add(r, c->ix, id, l, err);
  if (!status) status = gc_recoder_measure(c, r, err);
  if (!status && !known.x) {
    status = gc_recoder_wait(c, r, err);
    if (status) return status;
    known.x = (uint32_t)r->words[0];
    known.y = (uint32_t)r->words[1];
    if (sizes) {
      __atomic_store_n(&sizes->y, known.y, __ATOMIC_RELAXED);
      __atomic_store_n(&sizes->x, known.x, __ATOMIC_RELEASE);
    }
  }
  *words = known;
  return status;
}

static int gc_cache_write(gpuir_cuda *c, gc_recoder *r, const gc_slot *s, gpuir_error *err) {
  gc_target *to = r->targets;
  to->part[GC_DOCS] = (uint32_t *)(c->cache->streams + s->unit * c->cache->unit_bytes);
  to->part[GC_FREQS] = to->part[GC_DOCS] + GC_ALIGN(s->docs_len) / 4;
  to->words[GC_DOCS] = (uint32_t)(s->docs_len / 4);
  to->words[GC_FREQS] = (uint32_t)(s->freqs_len / 4);
  to->entry = s->unit;
  return gc_recoder_write(c, r, err);
}

/* Brings a list in another codec, which is in *slot and becomes what *slot names then. *full: the lists in use leave no
 * room for it. */
static int gc_cache_recode(gpuir_cuda *c, gc_carrier *by, uint32_t *slot, gpuir__list *l, int *full, gpuir_error *err) {
  gc_cache *k = c->cache;
  const uint32_t area = *slot;
  const uint64_t id = k->slots[area].id;
  gc_slot sizes;
  uint2 words;
  uint32_t s;
  int status = gc_cache_measure(c, &by->recoder, &k->slots[area], id, l, &words, err);
  if (status) return status;
  memset(&sizes, 0, sizeof sizes);
  (void)pthread_mutex_lock(&k->lock);
  s = gc_cache_reserve(c, k, gc_cache_size(k, l, (uint64_t)words.x * 4, (uint64_t)words.y * 4, &sizes));
  *full = !s;
  if (s) {
    gc_slot *to = &k->slots[s - 1];
    to->bytes = sizes.bytes;
    to->docs_len = sizes.docs_len;
    to->freqs_len = sizes.freqs_len;
    to->state = GC_COMING;
    __atomic_fetch_add(&c->info.resident_bytes, to->bytes, __ATOMIC_RELAXED);
    gc_cache_forget(k, area);
    gc_cache_enter(k, s - 1, id);
    *slot = s - 1;
  }
  (void)pthread_mutex_unlock(&k->lock);
  if (!s) return GPUIR_OK;
  status = gc_cache_write(c, &by->recoder, &k->slots[s - 1], err);
  (void)pthread_mutex_lock(&k->lock);
  gc_cache_lose(c, k, area); /* who takes its units writes to them behind what has just been put into the stream */
  (void)pthread_mutex_unlock(&k->lock);
  return status;
}

/* Brings a list to the slot that was taken for it. */
static int gc_cache_bring(gpuir_cuda *c, gc_carrier *by, uint32_t *slot, gpuir__list *l, int *full, gpuir_error *err) {
  int status;
  gc_pipe_drop(&by->pipe); /* what a list that failed left */
  status = gc_coded_otherwise(l) ? gc_cache_recode(c, by, slot, l, full, err)
                                 : gc_cache_load_streams(c, &by->pipe, &c->cache->slots[*slot], l, err);
  if (status || *full) return status;
  if (l->extent)
    status = gc_pipe_put(&by->pipe, c->view.bounds + (uint64_t)c->cache->slots[*slot].unit * GPUIR__BLOCK_PAIRS,
        l->bounds, l->nblocks * GPUIR__BLOCK_PAIRS * sizeof(gpuir__pair), err);
  if (!status) status = gc_pipe_flush(&by->pipe, err);
  if (status) return status;
  __atomic_fetch_add(&c->info.lists_missed, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&c->info.bytes_sent, c->cache->slots[*slot].bytes, __ATOMIC_RELAXED);
  return GPUIR_OK;
}

/* Holds a list, or takes a place for it: then *bring becomes 1. Returns the slot's index + 1; 0: it has to wait. */
static uint32_t gc_cache_hold(gpuir_cuda *c, gc_holds *held, uint64_t id, const gpuir__list *l, int *bring) {
  gc_cache *k = c->cache;
  uint32_t i = gc_cache_find(k, id);
  gc_slot sizes, *s;
  uint64_t n;
  *bring = !i;
  if (i) {
    s = &k->slots[i - 1];
    if (s->state == GC_UNPLACED) return 0;
    held->coming |= s->state == GC_COMING;
    __atomic_fetch_add(&c->info.lists_hit, 1, __ATOMIC_RELAXED);
    s->worth++;
    s->users++;
    k->pins++;
    return i;
  }
  memset(&sizes, 0, sizeof sizes);
  sizes.state = gc_coded_otherwise(l) ? GC_UNPLACED : GC_COMING;
  if (sizes.state == GC_UNPLACED) n = (gc_recoder_bytes(l) + GC_AREA_MORE + k->unit_bytes - 1) / k->unit_bytes;
  else n = gc_cache_size(k, l, l->docs.len, l->freqs.len, &sizes);
  i = gc_cache_reserve(c, k, n);
  if (!i) return 0;
  s = &k->slots[i - 1];
  s->bytes = sizes.bytes;
  s->docs_len = sizes.docs_len;
  s->freqs_len = sizes.freqs_len;
  s->state = sizes.state;
  __atomic_fetch_add(&c->info.resident_bytes, s->bytes, __ATOMIC_RELAXED);
  gc_cache_enter(k, i - 1, id);
  return i;
}

/* A query's lists, as many as it has known terms. */
typedef struct gc_wanted {
  uint64_t id[GPUIR_MAX_TERMS];
  gpuir__list list[GPUIR_MAX_TERMS];
  uint32_t slot[GPUIR_MAX_TERMS]; /* + 1; 0: none, as the list is in its term */
  int bring[GPUIR_MAX_TERMS];
  uint32_t n;
} gc_wanted;

/* Lets go of a query's first n lists. Those that were to be brought from number `from` on will not come. */
static void gc_cache_undo(gpuir_cuda *c, const gc_wanted *w, uint32_t n, uint32_t from) {
  uint32_t i;
  for (i = 0; i < n; i++) {
    if (!w->slot[i]) continue;
    if (w->bring[i] && i >= from) gc_cache_lose(c, c->cache, w->slot[i] - 1);
    else gc_cache_let_go(c, c->cache, w->slot[i] - 1);
  }
}

/* Notes in vain: what has to change before it is worth asking again. */
static void gc_cache_note(const gc_cache *k, gc_holds *held) {
  held->releases = k->releases;
  held->pins = k->pins;
}

/* Brings the lists that were wanted and are missing, without the lock, and tells that they are there. */
static int gc_cache_bring_all(gpuir_cuda *c, gc_holds *held, gc_carrier *by, gc_wanted *w, int *full,
    gpuir_error *err) {
  gc_cache *k = c->cache;
  uint32_t done, i;
  int status = GPUIR_OK;
  for (done = 0; done < w->n; done++) {
    uint32_t slot = w->slot[done] - 1;
    if (!w->bring[done]) continue;
    status = gc_cache_bring(c, by, &slot, &w->list[done], full, err);
    w->slot[done] = slot + 1;
    if (status || *full) break;
  }
  (void)pthread_mutex_lock(&k->lock);
  for (i = 0; i < done; i++)
    if (w->bring[i]) k->slots[w->slot[i] - 1].state = GC_HERE;
  if (status || *full) {
    gc_cache_undo(c, w, w->n, done);
    gc_cache_tell(k);
    gc_cache_note(k, held);
  } else {
    gc_cache_tell(k);
  }
  (void)pthread_mutex_unlock(&k->lock);
  return status;
}

/* Makes a query's lists resident and holds them until they are released; those that are not in their terms. *full: the
 * lists in use leave no room for them. */
static int gc_cache_hold_all(gpuir_cuda *c, gc_holds *held, gc_carrier *by, gc_wanted *w, gc_term *terms, int *full,
    gpuir_error *err) {
  gc_cache *k = c->cache;
  uint32_t i;
  int bring = 0, status = GPUIR_OK;
  (void)pthread_mutex_lock(&k->lock);
  for (i = 0; i < w->n && !*full; i++) {
    w->bring[i] = 0;
    w->slot[i] = terms[i].kind == GC_INLINE ? 0 : gc_cache_hold(c, held, w->id[i], &w->list[i], &w->bring[i]);
    *full = !w->slot[i] && terms[i].kind != GC_INLINE;
    bring |= w->bring[i];
  }
  if (*full) {
    gc_cache_undo(c, w, i - 1, 0);
    gc_cache_note(k, held);
  }
  (void)pthread_mutex_unlock(&k->lock);
  if (bring && !*full) status = gc_cache_bring_all(c, held, by, w, full, err);
  if (status || *full) return status;
  for (i = 0; i < w->n; i++) { /* what is held does not move */
    const gc_slot *s = &k->slots[w->slot[i] - 1];
    gc_term *t = &terms[i];
    if (!w->slot[i]) {
      __atomic_fetch_add(&c->info.lists_hit, 1, __ATOMIC_RELAXED);
      continue;
    }
    if (t->kind == GC_LONG) t->first_block = s->unit;
    t->docs = s->unit * k->unit_bytes;
    t->docs_len = s->docs_len;
    t->freqs = t->docs + GC_ALIGN(s->docs_len);
    t->freqs_len = s->freqs_len;
    held->slots[held->n++] = w->slot[i] - 1;
  }
  return GPUIR_OK;
}

/* Waits until the lists that are held are in the stream, which takes others no longer than to copy a query's lists.
 * Returns 0 if one of them will not come. */
static int gc_cache_await(gc_cache *k, gc_holds *held) {
  size_t i;
  int come = 1;
  if (!k || !held->coming) return 1;
  held->coming = 0;
  (void)pthread_mutex_lock(&k->lock);
  for (i = 0; i < held->n; i++) {
    const gc_slot *s = &k->slots[held->slots[i]];
    while (s->state == GC_COMING) (void)pthread_cond_wait(&k->freed, &k->lock);
    come = come && s->state == GC_HERE;
  }
  (void)pthread_mutex_unlock(&k->lock);
  return come;
}

/* Releases lists: the launch that used them has ended, or was not made. */
static void gc_cache_release(gpuir_cuda *c, gc_holds *held) {
  gc_cache *k = c->cache;
  size_t i;
  if (!k || !held->n) return;
  (void)pthread_mutex_lock(&k->lock);
  for (i = 0; i < held->n; i++) gc_cache_let_go(c, k, held->slots[i]);
  gc_cache_tell(k);
  (void)pthread_mutex_unlock(&k->lock);
  held->n = 0;
  held->coming = 0;
}

/* Waits until lists are released or come, none is held, or `ns` are over; returns 0 then. */
static int gc_cache_wait(gc_cache *k, uint64_t releases, uint64_t ns) {
  const uint64_t end = gpuir__now() + ns;
  struct timespec until;
  int late = 0, changed;
  until.tv_sec = (time_t)(end / 1000000000u);
  until.tv_nsec = (long)(end % 1000000000u);
  (void)pthread_mutex_lock(&k->lock);
  while (k->pins && k->releases == releases && !late) late = pthread_cond_timedwait(&k->freed, &k->lock, &until) != 0;
  changed = !k->pins || k->releases != releases;
  (void)pthread_mutex_unlock(&k->lock);
  return changed;
}

static void gc_cache_close(gpuir_cuda *c) {
  gc_cache *k = c->cache;
  if (!k) return;
  gc_stream_close(k->stream);
  if (k->locked.file) (void)cudaHostUnregister(k->locked.file);
  gpuir__free(&c->a, k->sizes, (size_t)c->ix->stat.longs * sizeof *k->sizes);
  gpuir__free(&c->a, k->slots, k->most * sizeof *k->slots);
  gpuir__free(&c->a, k->order, k->most * sizeof *k->order);
  gpuir__free(&c->a, k->heads, ((size_t)k->mask + 1) * sizeof *k->heads);
  if (k->ready) {
    (void)pthread_cond_destroy(&k->freed);
    (void)pthread_mutex_destroy(&k->lock);
  }
  gpuir__free(&c->a, k, sizeof *k);
  c->cache = NULL;
}

/* Cuts the slab into its arrays. */
static void gc_cache_lay_out(gc_cache *k, gc_view *v, uint8_t *at) {
  k->streams = at;
  v->docids = v->freqs = (const uint32_t *)at;
  at += (k->nunits * k->unit_bytes + GC_PAD + 255) & ~(uint64_t)255;
  v->last = (const uint32_t *)at;
  v->docs_off = v->last + k->nunits;
  v->freqs_off = v->docs_off + k->nunits;
  v->bounds = (const gpuir__pair *)(v->freqs_off + k->nunits);
  v->docs_width = (const uint8_t *)(v->bounds + k->nunits * GPUIR__BLOCK_PAIRS);
  v->freqs_width = v->docs_width + k->nunits;
}

/* Makes the lock, and the condition, whose times are gpuir__now's. */
static int gc_cache_make_lock(gc_cache *k, gpuir_error *err) {
  pthread_condattr_t how;
  int failed;
  if (pthread_mutex_init(&k->lock, NULL)) return gpuir__fail_nomem(err);
  failed = pthread_condattr_init(&how);
  if (!failed) {
    failed = pthread_condattr_setclock(&how, CLOCK_MONOTONIC) || pthread_cond_init(&k->freed, &how);
    (void)pthread_condattr_destroy(&how);
  }
  k->ready = !failed;
  if (!failed) return GPUIR_OK;
  (void)pthread_mutex_destroy(&k->lock);
  return gpuir__fail_nomem(err);
}

/* Makes the host's part of a cache whose slab has `room` bytes. */
static int gc_cache_make(gpuir_cuda *c, gc_cache *k, uint64_t room, gpuir_error *err) {
  const gpuir__segment *ix = c->ix;
  const uint64_t streams = ix->section[GPUIR__S_DOCIDS]->length + ix->section[GPUIR__S_FREQS]->length;
  uint32_t i;
  k->unit_bytes = GC_UNIT;
  if (ix->stat.blocks) k->unit_bytes = gpuir__max64(GC_UNIT, streams / ix->stat.blocks & ~(uint64_t)(GC_UNIT - 1));
  k->nunits = gpuir__min64((room - 8192) / (GC_ENTRY + k->unit_bytes), UINT32_MAX / 2);
  k->most = (uint32_t)gpuir__min64(gpuir__min64(k->nunits, GC_SLOTS), ix->stat.terms);
  k->slots = (gc_slot *)gpuir__alloc_zero(&c->a, k->most * sizeof *k->slots);
  k->order = (uint32_t *)gpuir__alloc_zero(&c->a, k->most * sizeof *k->order);
  for (k->mask = 1; k->mask < k->most; k->mask = 2 * k->mask + 1) {}
  k->heads = (uint32_t *)gpuir__alloc_zero(&c->a, ((size_t)k->mask + 1) * sizeof *k->heads);
  k->sizes = (uint2 *)gpuir__alloc_zero(&c->a, (size_t)ix->stat.longs * sizeof *k->sizes);
  if (!k->slots || !k->order || !k->heads || !k->sizes) return gpuir__fail_nomem(err);
  for (i = k->most; i--;) {
    k->slots[i].next = k->vacant;
    k->vacant = i + 1;
  }
  return gc_cache_make_lock(k, err);
}

/* Opens a cache with a slab of `room` bytes, empty. */
static int gc_cache_open(gpuir_cuda *c, uint64_t room, gpuir_error *err) {
  gc_cache *k = (gc_cache *)gpuir__alloc_zero(&c->a, sizeof *k);
  size_t size;
  void *slab;
  int s;
  if (!k) return gpuir__fail_nomem(err);
  c->cache = k;
  if (room < 64 * 1024)
    return gpuir__fail(err, GPUIR_E_NOMEM, 0, "CUDA: %llu bytes of device memory are too few to hold lists",
        (unsigned long long)room);
  s = gc_cache_make(c, k, room, err);
  if (s) return s;
  size = (size_t)(k->nunits * (GC_ENTRY + k->unit_bytes) + 8192);
  s = gc_device_alloc(c, size, &slab, err);
  if (s) return s;
  GC_TRY(cudaMemset(slab, 0, size), "clearing the slab");
  gc_cache_lay_out(k, &c->view, (uint8_t *)slab);
  s = gc_stream_open(&k->stream, 0, err);
  if (!s) gc_lock(&k->locked, c);
  return s;
}

/* Makes what a launch brings lists with. */
static int gc_carrier_open(const gpuir_cuda *c, gc_carrier *by, gpuir_error *err) {
  int status = gc_pipe_open(&by->pipe, c->cache->stream, err);
  by->pipe.locked = c->cache->locked;
  return status ? status : gc_recoder_open(&by->recoder, &c->a, &by->pipe, 1, err);
}

static void gc_carrier_close(const gpuir_cuda *c, gc_carrier *by) {
  gc_pipe_close(&by->pipe);
  gc_recoder_close(&by->recoder, &c->a);
}

#pragma GCC push_options
#pragma nv_diag_suppress 1675
#pragma GCC optimize("Og")
#pragma nv_diag_default 1675

/* ========================
 * [cuda-12-open]  host: the index on the device
 *
 * Uses      [cuda-05-expand] to [cuda-11-cache].
 * Start at  gc_open: gc_open_whole, or gc_open_cached where the index does not fit.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_TILE_MOST 24576u /* documents a tile at most: two blocks of threads share 227 KB */
#define GC_MARKS 8u /* bits of marks a posting at least */
#define GC_PEAKS 64u /* eighths of a peak that a posting has at most, with memory for that; half as many at least */
#define GC_TURNS 6u /* of a long AND's driver blocks, each of as many as those before it together */
#define GC_K_MOST 10000u

/* ---- the sections ---- */

/* Collects the long lists; their blocks must lie in the same order, one list's after another's. */
static int gc_collect(gpuir_cuda *c, gpuir_error *err) {
  const gpuir__segment *ix = c->ix;
  gpuir__walk w;
  uint64_t end = 0;
  size_t n = 0;
  c->nlists = (size_t)ix->stat.longs;
  c->lists = (gc_term *)gpuir__alloc_zero(&c->a, c->nlists * sizeof *c->lists);
  if (!c->lists) return gpuir__fail_nomem(err);
  for (gpuir__walk_start(&w, ix); gpuir__walk_next(&w);) {
    gpuir__list l;
    int status;
    if (w.record.df <= GPUIR__SHORT_MAX) continue;
    if (n == c->nlists) return gpuir__bad(ix, err, 0, "more long lists than extents");
    status = gc_describe(c, w.id, &w.record, &c->lists[n], &l, err);
    if (status) return status;
    if (c->lists[n].first_block < end) return gpuir__bad(ix, err, 0, "long lists share blocks");
    end = c->lists[n].first_block + c->lists[n].nblocks;
    c->lists[n].weight =
        gpuir__weight(gpuir__idf(gpuir__segment_collection(ix), gpuir__segment_df(ix, w.id, l.df)), ix->stat.k1);
    c->lists[n].slot = (uint32_t)(l.extent - ix->lists.longs);
    c->lists[n++].q = 1;
  }
  c->nlists = n;
  return GPUIR_OK;
}

/* Returns the bytes that a document's length takes on the device: 2 if all lengths are below 65536. */
static unsigned gc_length_bytes(const gpuir__segment *ix) {
  size_t n = (size_t)ix->stat.documents, i;
  uint32_t most = 0;
  for (i = 0; i < n; i++) most = gpuir__max32(most, ix->lengths[i]);
  return most < 65536 ? 2 : 4;
}

/* Uploads the documents' lengths, in 16 bits if they fit. */
static int gc_upload_lengths(gpuir_cuda *c, gpuir_error *err) {
  const gpuir__segment *ix = c->ix;
  size_t n = (size_t)ix->stat.documents, i;
  uint16_t *brief;
  int s;
  if (gc_length_bytes(ix) == 4) return gc_upload(c, ix->lengths, n * 4, (const void **)&c->view.lengths, err);
  brief = (uint16_t *)gpuir__alloc(&c->a, n * 2 + 2);
  if (!brief) return gpuir__fail_nomem(err);
  for (i = 0; i < n; i++) brief[i] = (uint16_t)ix->lengths[i];
  s = gc_upload(c, brief, n * 2, (const void **)&c->view.brief, err);
  gpuir__free(&c->a, brief, n * 2 + 2);
  return s;
}

/* Uploads the streams and their directory as they lie in the file, all being bp128. */
static int gc_upload_streams(gpuir_cuda *c, gpuir_error *err) {
  const gpuir__segment *ix = c->ix;
  uint64_t blocks = ix->stat.blocks;
  gc_view *v = &c->view;
  int s = gc_upload(c, ix->lists.docids, ix->section[GPUIR__S_DOCIDS]->length, (const void **)&v->docids, err);
  if (!s) s = gc_upload(c, ix->lists.freqs, ix->section[GPUIR__S_FREQS]->length, (const void **)&v->freqs, err);
  if (!s) s = gc_upload(c, ix->lists.last, blocks * 4, (const void **)&v->last, err);
  if (!s) s = gc_upload(c, ix->lists.docs_off, blocks * 4, (const void **)&v->docs_off, err);
  if (!s) s = gc_upload(c, ix->lists.freqs_off, blocks * 4, (const void **)&v->freqs_off, err);
  if (!s) s = gc_upload(c, ix->lists.docs_width, blocks, (const void **)&v->docs_width, err);
  if (!s) s = gc_upload(c, ix->lists.freqs_width, blocks, (const void **)&v->freqs_width, err);
  return s;
}

static int gc_upload_all(gpuir_cuda *c, int coded, gpuir_error *err) {
  const gpuir__segment *ix = c->ix;
  uint64_t blocks = ix->stat.blocks;
  gc_view *v = &c->view;
  int s = coded ? gc_recode_all(c, err) : gc_upload_streams(c, err);
  if (!s)
    s = gc_upload(c, ix->lists.bounds, blocks * GPUIR__BLOCK_PAIRS * sizeof(gpuir__pair), (const void **)&v->bounds,
        err);
  return s ? s : gc_upload_lengths(c, err);
}

/* Uploads the positions, if the index has any and `room` bytes hold them, and shapes the kernel that reads them. */
static int gc_upload_positions(gpuir_cuda *c, uint64_t room, gpuir_error *err) {
  const gpuir__index_lists *lists = &c->ix->lists;
  const uint64_t offsets = c->ix->stat.blocks * 4;
  uint64_t bytes;
  cudaFuncAttributes at;
  int shared, s;
  if (!lists->positions) return GPUIR_OK;
  bytes = c->ix->section[GPUIR__S_POSITIONS]->length;
  if (bytes > room || offsets + 2 * GC_PAD > room - bytes) return GPUIR_OK;
  GC_TRY(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, c->device),
      "asking for the device's properties");
  GC_TRY(cudaFuncGetAttributes(&at, gc_phrase_all), "loading the kernels");
  c->phrase_room = (size_t)shared - at.sharedSizeBytes;
  GC_TRY(cudaFuncSetAttribute(gc_phrase_all, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)c->phrase_room),
      "shaping a kernel");
  s = gc_upload(c, lists->positions_off, offsets, (const void **)&c->positions.offsets, err);
  return s ? s : gc_upload(c, lists->positions, bytes, (const void **)&c->positions.bytes, err);
}

/* Returns the bytes that the sections take on the device. */
static uint64_t gc_plain_bytes(const gpuir__segment *ix) {
  return ix->section[GPUIR__S_DOCIDS]->length + ix->section[GPUIR__S_FREQS]->length + ix->stat.blocks * GC_ENTRY +
      ix->stat.documents * gc_length_bytes(ix) + 16 * 1024;
}

/* ---- guides and expanded lists ---- */

/* Chooses where each long list's marks go: 8 to 16 bits a posting, or one a document, and a third of that for ranks.
 * Returns the bytes that they take, or 0 without memory. */
static uint64_t gc_lay_marks(gpuir_cuda *c, uint64_t *marks, gpuir_error *err) {
  const gpuir__segment *ix = c->ix;
  const uint32_t top = c->view.documents - 1;
  gpuir__saturation *table;
  size_t i;
  *marks = 0;
  c->aids = (gc_aid *)gpuir__alloc_zero(&c->a, (size_t)ix->stat.longs * sizeof *c->aids);
  table = (gpuir__saturation *)gpuir__alloc_zero(&c->a, sizeof *table);
  if (!c->aids || !table) {
    gpuir__free(&c->a, table, sizeof *table);
    (void)gpuir__fail_nomem(err);
    return 0;
  }
  gpuir__saturation_prepare(table, c->index->norm);
  for (i = 0; i < c->nlists; i++) {
    gc_term *t = &c->lists[i];
    gc_aid *aid = &c->aids[t->slot];
    gpuir__list l;
    memset(&l, 0, sizeof l);
    l.extent = &ix->lists.longs[t->slot];
    while (top >> aid->shift >= 2 * (uint64_t)GC_MARKS * t->df) aid->shift++;
    aid->most = gpuir__bound(t->weight, gpuir__list_saturation(table, &l), 1);
    aid->marks = *marks;
    *marks += (top >> aid->shift) / GC_CELLS + 1;
    t->marks = aid->marks;
    t->shift = aid->shift;
    t->most = aid->most;
    t->step = aid->most / GC_PEAK_MOST + 1;
  }
  gpuir__free(&c->a, table, sizeof *table);
  return *marks * sizeof(uint4) + 64;
}

/* Chooses where each long list's peaks go: at most `grain` eighths of one a posting, and at least half as many, or one
 * a document. Returns the lines that they take. */
static uint64_t gc_lay_peaks(gpuir_cuda *c, uint32_t grain) {
  const uint32_t top = c->view.documents - 1;
  uint64_t lines = 0;
  size_t i;
  for (i = 0; i < c->nlists; i++) {
    gc_term *t = &c->lists[i];
    gc_aid *aid = &c->aids[t->slot];
    aid->span = 0;
    while ((uint64_t)(top >> aid->span) * 8 >= (uint64_t)grain * t->df) aid->span++;
    aid->row = t->row = (uint32_t)lines;
    t->span = aid->span;
    lines += (top >> aid->span) / GC_PEAK_LINE + 1;
  }
  return lines;
}

/* Blocks of a list that begin and end this many times at other documents are damaged: expanding them would go through
 * all documents for each of them. */
#define GC_DAMAGED 8

/* What is known of the long lists' blocks before they are expanded. */
typedef struct gc_shapes {
  uint2 *bases; /* as in gc_view */
  uint64_t wide;
  int damaged;
} gc_shapes;

/* Finds what each block's docIDs are relative to. */
static int gc_find_bases(gpuir_cuda *c, gc_shapes *shapes, gpuir_error *err) {
  const gpuir__segment *ix = c->ix;
  uint64_t g;
  size_t i;
  memset(shapes, 0, sizeof *shapes);
  shapes->bases = (uint2 *)gpuir__alloc_zero(&c->a, (size_t)ix->stat.blocks * sizeof(uint2));
  if (!shapes->bases) return gpuir__fail_nomem(err);
  for (i = 0; i < c->nlists; i++) {
    gc_term *t = &c->lists[i];
    const uint64_t before = shapes->wide;
    uint32_t start = 0;
    uint64_t documents = 0;
    for (g = t->first_block; g < t->first_block + t->nblocks; g++) {
      shapes->bases[g].x = start;
      if (ix->lists.last[g] - start > 65535) shapes->bases[g].y = (uint32_t)++shapes->wide;
      if (ix->lists.last[g] >= start) documents += ix->lists.last[g] - start;
      start = ix->lists.last[g] + 1;
    }
    shapes->damaged |= documents > GC_DAMAGED * ix->stat.documents;
    t->wide = shapes->wide == before + t->nblocks && shapes->wide < UINT32_MAX ? (uint32_t)before + 1 : 0;
    c->aids[t->slot].wide = t->wide;
  }
  return GPUIR_OK;
}

/* Allocates the guides and, with `full`, the expanded lists, and has the device fill them. */
static int gc_expand_to(gpuir_cuda *c, const gc_shapes *shapes, uint64_t marks, uint64_t lines, int full,
    gpuir_error *err) {
  const gpuir__segment *ix = c->ix;
  const size_t blocks = (size_t)ix->stat.blocks;
  gc_view *v = &c->view;
  gc_expansion to;
  const void *lists;
  int s;
  memset(&to, 0, sizeof to);
  s = gc_upload(c, c->lists, c->nlists * sizeof *c->lists, &lists, err);
  if (!s) s = gc_device_alloc(c, blocks * 4, (void **)&to.most, err);
  if (!s) s = gc_device_alloc(c, (size_t)marks * sizeof(uint4), (void **)&to.guide.marks, err);
  if (!s) s = gc_device_alloc(c, (size_t)lines * GC_PEAK_BYTES, (void **)&to.guide.peaks, err);
  if (!s && full) s = gc_upload(c, shapes->bases, blocks * sizeof(uint2), (const void **)&to.bases, err);
  if (!s && full) s = gc_device_alloc(c, blocks * GPUIR__BLOCK * 2, (void **)&to.narrow, err);
  if (!s && full) s = gc_device_alloc(c, (size_t)shapes->wide * GPUIR__BLOCK * 4, (void **)&to.wide, err);
  if (!s && full) s = gc_device_alloc(c, blocks * GPUIR__BLOCK * 4, (void **)&to.impact, err);
  if (s) return s;
  GC_TRY(cudaMemset(to.guide.marks, 0, (size_t)marks * sizeof(uint4)), "expanding the lists");
  GC_TRY(cudaMemset(to.guide.peaks, 0, (size_t)lines * GC_PEAK_BYTES), "expanding the lists");
  gc_expand<<<(unsigned)c->processors * 8, 256>>>(*v, (const gc_term *)lists, (uint32_t)c->nlists, blocks, to,
      c->index->norm.a, c->index->norm.b);
  GC_TRY(cudaGetLastError(), "expanding the lists");
  GC_TRY(cudaDeviceSynchronize(), "expanding the lists");
  v->narrow = to.narrow;
  v->wide = to.wide;
  v->impact = to.impact;
  v->most = to.most;
  v->bases = to.bases;
  v->marks = to.guide.marks;
  v->peaks = to.guide.peaks;
  c->expanded = full;
  c->lists_there = (const gc_term *)lists;
  return GPUIR_OK;
}

/* Expands the long lists if `room` bytes hold them, or makes only their guides if it holds those. Their peaks become as
 * fine as half of what is left then allows. */
static int gc_expand_all(gpuir_cuda *c, uint64_t room, gpuir_error *err) {
  const uint64_t blocks = c->ix->stat.blocks;
  uint64_t marks, lines, guides, expanded;
  uint32_t grain = GC_PEAKS;
  gc_shapes shapes;
  int full, s;
  if (!c->nlists) return GPUIR_OK;
  guides = gc_lay_marks(c, &marks, err);
  if (!guides) return GPUIR_E_NOMEM;
  s = gc_find_bases(c, &shapes, err);
  if (s) return s;
  guides += 8192 + blocks * 4 + c->nlists * sizeof(gc_term);
  expanded = blocks * (sizeof(uint2) + GPUIR__BLOCK * 6) + shapes.wide * GPUIR__BLOCK * 4;
  lines = gc_lay_peaks(c, 1);
  if (guides + lines * GC_PEAK_BYTES > room || shapes.damaged) {
    gpuir__free(&c->a, c->aids, (size_t)c->ix->stat.longs * sizeof *c->aids);
    c->aids = NULL;
  } else {
    full = expanded + guides + lines * GC_PEAK_BYTES <= room && shapes.wide < UINT32_MAX - 1;
    room -= guides + (full ? expanded : 0);
    while ((lines = gc_lay_peaks(c, grain)) * GC_PEAK_BYTES > room / 2 && grain > 1) grain /= 2;
    s = gc_expand_to(c, &shapes, marks, lines, full, err);
  }
  gpuir__free(&c->a, shapes.bases, (size_t)blocks * sizeof(uint2));
  return s;
}

/* ---- the device's limits and the kernels' shapes ---- */

/* Fills in what a device is: its name, versions, capability and memory. Refuses one that is not there or too old. */
static int gc_look(int device, cudaDeviceProp *p, gpuir_cuda_info *info, gpuir_error *err) {
  int devices = 0;
  GC_TRY(cudaGetDeviceCount(&devices), "counting devices");
  if (device < 0 || device >= devices)
    return gpuir__fail(err, GPUIR_E_BACKEND, 0, "CUDA: there is no device %d among %d", device, devices);
  GC_TRY(cudaGetDeviceProperties(p, device), "asking for the device's properties");
  if (p->major < 8)
    return gpuir__fail(err, GPUIR_E_BACKEND, 0, "CUDA: %s has compute capability %d.%d, 8.0 is needed", p->name,
        p->major, p->minor);
  (void)snprintf(info->device, sizeof info->device, "%.63s", p->name);
  info->compute_capability = p->major * 10 + p->minor;
  info->device_memory = p->totalGlobalMem;
  GC_TRY(cudaDriverGetVersion(&info->driver_version), "asking for the driver's version");
  GC_TRY(cudaRuntimeGetVersion(&info->runtime_version), "asking for the runtime's version");
  return GPUIR_OK;
}

typedef void (*gc_or_kernel)(gc_view, gc_batch);

/* Chooses the size of tiles, such that two blocks of threads share a multiprocessor. */
static int gc_shape_or(gpuir_cuda *c, int expanded, gpuir_error *err) {
  const gc_or_kernel kernel = expanded ? gc_or<true> : gc_or<false>;
  const uint64_t n = c->view.documents;
  cudaFuncAttributes at;
  uint64_t tile, most;
  int blocks = 0, processor, block;
  GC_TRY(cudaDeviceGetAttribute(&processor, cudaDevAttrMaxSharedMemoryPerMultiprocessor, c->device),
      "asking for the device's properties");
  GC_TRY(cudaDeviceGetAttribute(&block, cudaDevAttrMaxSharedMemoryPerBlockOptin, c->device),
      "asking for the device's properties");
  GC_TRY(cudaFuncGetAttributes(&at, kernel), "loading the kernels (is this GPU among those it was compiled for?)");
  most = gpuir__min64((uint64_t)processor / 2 - 1024, (uint64_t)block) - at.sharedSizeBytes;
  tile = (n / 512 + 1023) / 1024 * 1024; /* enough tiles for all processors, but large ones cost less each */
  tile = gpuir__max64(2048, gpuir__min64(tile, GC_TILE_MOST));
  while (gc_tile_bytes(tile) > most) tile -= 1024;
  c->view.tile = (uint32_t)tile;
  c->view.ntiles = (uint32_t)((n + tile - 1) / tile);
  /* The kernel may take all shared memory: it serves the device's other indexes too, with tiles of other sizes. */
  GC_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most), "shaping a kernel");
  GC_TRY(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, (int)GC_OR_THREADS(expanded), gc_tile_bytes(tile)),
      "shaping a kernel");
  c->grids.ors = (unsigned)(c->processors * (blocks > 0 ? blocks : 1));
  return GPUIR_OK;
}

/* Returns how many blocks of threads of a kernel fill the device. */
static int gc_grid_of(const gpuir_cuda *c, const void *kernel, unsigned threads, size_t shared, unsigned *grid,
    gpuir_error *err) {
  int blocks = 0;
  GC_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, (int)threads, shared), "shaping a kernel");
  *grid = (unsigned)(c->processors * (blocks > 0 ? blocks : 1));
  return GPUIR_OK;
}

/* Finds out the device's limits and the other kernels' shapes. */
static int gc_shape(gpuir_cuda *c, gpuir_error *err) {
  cudaDeviceProp p;
  cudaFuncAttributes at;
  int most, s = gc_look(c->device, &p, &c->info, err);
  if (s) return s;
  GC_TRY(cudaDeviceGetStreamPriorityRange(NULL, &c->ahead), "asking for priorities");
  c->processors = p.multiProcessorCount;
  c->view.documents = (uint32_t)c->ix->stat.documents;
  s = gc_grid_of(c, (const void *)gc_and_decoding, GC_AND_THREADS, 0, &c->grids.ands, err);
  if (!s) s = gc_grid_of(c, (const void *)gc_and_guided, GC_GUIDED_THREADS, 0, &c->grids.guided, err);
  if (!s) s = gc_grid_of(c, (const void *)gc_max, GC_GUIDED_THREADS, 0, &c->grids.maxs, err);
  if (!s) s = gc_grid_of(c, (const void *)gc_alone, GC_GUIDED_THREADS, 0, &c->grids.alone, err);
  if (s) return s;
  if (c->info.compute_capability >= 90) { /* or the first queries would wait for them */
    GC_TRY(cudaFuncGetAttributes(&at, gc_prompt<false>), "loading the kernels");
    GC_TRY(cudaFuncGetAttributes(&at, gc_prompt<true>), "loading the kernels");
  }
  GC_TRY(cudaFuncGetAttributes(&at, gc_final), "loading the kernels");
  most = (int)p.sharedMemPerBlockOptin - (int)at.sharedSizeBytes;
  for (c->k_most = 1024; c->k_most < 16384 && (int)c->k_most * 16 <= most; c->k_most *= 2) {}
  GC_TRY(cudaFuncSetAttribute(gc_final, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)c->k_most * 8),
      "shaping a kernel");
  if (c->k_most > GC_K_MOST) c->k_most = GC_K_MOST;
  return GPUIR_OK;
}

/* ---- how much of everything a searcher needs ---- */

/* The sizes of launches of so many queries. */
typedef struct gc_sizes {
  size_t queries, njobs, nterms, nslots, nchunks; /* at most in a launch; slots: rows of the tile arrays */
  size_t ndrives; /* entries of gc_maxs.drives */
  size_t ntokens; /* of phrases; 0: the index has no positions */
  uint64_t ncand; /* candidates */
  uint64_t tiles; /* of the index, and one more */
  uint64_t host, staging, device; /* bytes */
} gc_sizes;

static gc_sizes gc_sizes_of(const gpuir_cuda *c, size_t queries) {
  const gc_view *v = &c->view;
  const uint64_t chunks = v->documents / (GPUIR__BLOCK * GC_CHUNK);
  gc_sizes z;
  uint64_t each;
  z.tiles = (uint64_t)v->ntiles + 1;
  each = 8 * z.tiles;
  z.queries = queries;
  z.njobs = (size_t)gpuir__max64(2, gpuir__min64(2 * (uint64_t)queries, (1u << 30) / each));
  z.nslots = z.nterms = (size_t)gpuir__max64(2 * GPUIR_MAX_TERMS, 8 * (uint64_t)queries);
  z.nslots = (size_t)gpuir__max64(GPUIR_MAX_TERMS, gpuir__min64(z.nslots, (1u << 30) / each));
  z.nchunks = (size_t)gpuir__max64(z.nslots + gpuir__max64(GPUIR_MAX_TERMS, 8 * (uint64_t)queries) * (1 + chunks / 4),
      GPUIR_MAX_TERMS * (2 + chunks));
  z.ncand = gpuir__max64(2 * 16 * GC_K_MOST, (uint64_t)z.njobs * 8192);
  z.host = z.nterms * (sizeof(gc_term) + 8 + sizeof(gc_sum_list)) +
      z.njobs * (sizeof(gc_job) + 16 + sizeof(gc_sum_job) + GC_TURNS * (sizeof(gc_turn) + 4)) +
      z.nchunks * sizeof(gc_chunk) + queries * (sizeof(uint2) + 4) + sizeof(gc_wanted) + 4096;
  z.ntokens = c->ix->lists.positions ? 2 * z.nterms + (GPUIR_MAX_TERMS + 2) * GPUIR_MAX_TERMS : 0;
  if (z.ntokens)
    z.host += z.ntokens + z.nterms * (sizeof(gc_spots) + sizeof(gc_clause)) + z.njobs * (sizeof(gc_sought) + 4);
  z.staging = z.host + z.njobs * sizeof(gc_state);
  z.ndrives = GC_ROUNDS * z.nterms;
  z.device = z.staging + z.nslots * each + z.njobs * each + z.ncand * 8 + z.ndrives * (sizeof(gc_drive) + 4) +
      sizeof(gc_desk) + 4096;
  if (c->slices.ntiles) z.device += z.nslots * ((uint64_t)c->slices.ntiles + 1) * 4;
  return z;
}

/* Returns the sizes of the largest launch whose memory takes at most half of what is left, if that is possible. A
 * searcher has memory for one or two launches: as long as it never needs a second one, for one. */
static gc_sizes gc_sizes_within(const gpuir_cuda *c, uint64_t left) {
  size_t queries = c->batch;
  gc_sizes z = gc_sizes_of(c, queries);
  while (queries > 1 && z.device > left / 2) z = gc_sizes_of(c, queries /= 2);
  return z;
}

/* Returns the device memory that the bound leaves. */
static uint64_t gc_left(const gpuir_cuda *c) {
  uint64_t used = __atomic_load_n(&c->info.used_memory, __ATOMIC_RELAXED);
  return used < c->room ? c->room - used : 0;
}

/* ---- slices ---- */

#define GC_CUT_LEAST 64u /* postings a tile at least, of a list that is cut */

/* Chooses the tiles of slices and the lists to be cut: those with GC_CUT_LEAST postings a tile. Returns how many. */
static uint32_t gc_choose_cut(gpuir_cuda *c, uint32_t *cut) {
  gc_slices *to = &c->slices;
  uint32_t n = 0;
  size_t i;
  for (to->tile = 2048; to->tile < GC_CUT_MOST && c->view.documents / 512 > to->tile; to->tile *= 2) {}
  to->ntiles = (c->view.documents - 1) / to->tile + 1;
  for (i = 0; i < c->nlists; i++)
    if (c->lists[i].df / GC_CUT_LEAST >= to->ntiles) {
      cut[n++] = (uint32_t)i;
      c->lists[i].cut = c->aids[c->lists[i].slot].cut = n;
    }
  return n;
}

/* Turns the counts of strips, [list][ntiles + 1] on the device with 0 at the end of each row, into where each slice
 * begins; *total: how many strips there are. */
static int gc_place_strips(gpuir_cuda *c, uint32_t *there, size_t ncut, uint64_t *total, gpuir_error *err) {
  const size_t n = ncut * ((size_t)c->slices.ntiles + 1);
  uint32_t *starts = (uint32_t *)gpuir__alloc(&c->a, n * 4);
  cudaError_t e;
  size_t i;
  *total = 0;
  if (!starts) return gpuir__fail_nomem(err);
  e = GC_CALL(cudaMemcpy(starts, there, n * 4, cudaMemcpyDeviceToHost));
  for (i = 0; e == cudaSuccess && i < n; i++) {
    const uint32_t count = starts[i];
    starts[i] = (uint32_t)*total;
    *total += count;
  }
  if (e == cudaSuccess) e = GC_CALL(cudaMemcpy(there, starts, n * 4, cudaMemcpyHostToDevice));
  gpuir__free(&c->a, starts, n * 4);
  return e == cudaSuccess ? GPUIR_OK : gc_fail(err, e, "cutting lists");
}

/* Has the device fill the slices. */
static int gc_fill_slices(gpuir_cuda *c, const uint32_t *cut, uint32_t ncut, uint8_t *strips, gpuir_error *err) {
  gc_cut_lists<<<(unsigned)c->processors * 16, GC_CUT_THREADS>>>(c->view, c->lists_there, cut, ncut, c->slices, strips);
  GC_TRY(cudaGetLastError(), "cutting lists");
  GC_TRY(cudaDeviceSynchronize(), "cutting lists");
  c->slices.strips = strips;
  GC_TRY(cudaFuncSetAttribute(gc_sum_tiles, cudaFuncAttributeMaxDynamicSharedMemorySize, GC_CUT_MOST * 4),
      "shaping a kernel");
  return gc_grid_of(c, (const void *)gc_sum_tiles, GC_SUM_THREADS, (size_t)c->slices.tile * 4, &c->grids.sums, err);
}

/* Cuts the lists that are chosen, if `room` bytes hold their slices. */
static int gc_cut_chosen(gpuir_cuda *c, const uint32_t *chosen, uint32_t ncut, uint64_t room, gpuir_error *err) {
  const size_t table = (size_t)ncut * (c->slices.ntiles + 1) * 4, more = table + ncut * 4 + 4096;
  void *cut, *starts, *strips;
  uint64_t n;
  int s;
  if (more > room || table / 4 >= UINT32_MAX || c->ix->stat.blocks >= UINT32_MAX / GPUIR__BLOCK) return GPUIR_OK;
  s = gc_device_alloc(c, ncut * 4, &cut, err);
  if (!s) s = gc_device_alloc(c, table, &starts, err);
  if (s) return s;
  GC_TRY(cudaMemcpy(cut, chosen, ncut * 4, cudaMemcpyHostToDevice), "cutting lists");
  GC_TRY(cudaMemset(starts, 0, table), "cutting lists"); /* the end of each row too */
  gc_count_strips<<<(unsigned)c->processors * 16, GC_CUT_THREADS>>>(c->view, c->lists_there, (const uint32_t *)cut,
      ncut, c->slices, (uint32_t *)starts);
  GC_TRY(cudaGetLastError(), "cutting lists");
  s = gc_place_strips(c, (uint32_t *)starts, ncut, &n, err);
  if (s) return s;
  if (n >= UINT32_MAX || n * GC_STRIP + more > room) {
    gc_give(c, starts, table);
    gc_give(c, cut, ncut * 4);
    c->nmemory -= 2;
    return GPUIR_OK;
  }
  s = gc_device_alloc(c, (size_t)n * GC_STRIP, &strips, err);
  if (s) return s;
  c->slices.starts = (const uint32_t *)starts;
  return gc_fill_slices(c, (const uint32_t *)cut, ncut, (uint8_t *)strips, err);
}

#ifdef GPUIR_CUDA_SEAM
int gpuir_cuda_seam_uncut; /* 1: no list is cut into slices */
#define GC_UNCUT gpuir_cuda_seam_uncut
#else
#define GC_UNCUT 0
#endif

/* Cuts long lists into slices, if all of them are expanded and what the bound leaves holds the slices too. */
static int gc_cut_all(gpuir_cuda *c, gpuir_error *err) {
  uint32_t *chosen;
  uint64_t searcher, left;
  uint32_t n;
  int s = GPUIR_OK;
  if (!c->expanded || !c->nlists || GC_UNCUT) return GPUIR_OK;
  chosen = (uint32_t *)gpuir__alloc(&c->a, c->nlists * 4);
  if (!chosen) return gpuir__fail_nomem(err);
  n = gc_choose_cut(c, chosen);
  left = gc_left(c);
  searcher = gc_sizes_of(c, c->batch).device;
  if (n && left > searcher) s = gc_cut_chosen(c, chosen, n, left - searcher, err);
  if (!c->slices.strips) {
    memset(&c->slices, 0, sizeof c->slices);
    while (n--) c->lists[chosen[n]].cut = c->aids[c->lists[chosen[n]].slot].cut = 0;
  }
  gpuir__free(&c->a, chosen, c->nlists * 4);
  return s;
}

/* ---- opening ---- */

/* Gathers what is known of the long lists beforehand, as far as there is memory for it. */
static void gc_know(gpuir_cuda *c) {
  const gpuir__index_lists *lists = &c->ix->lists;
  size_t i;
  c->known = (gc_known *)gpuir__alloc_zero(&c->a, (size_t)c->ix->stat.longs * sizeof *c->known);
  for (i = 0; c->known && i < c->nlists; i++) {
    gc_known *k = &c->known[c->lists[i].slot];
    const uint64_t seeds = lists->longs[c->lists[i].slot].seeds;
    k->term = c->lists[i];
    k->term.slot = 0;
    if (seeds && seeds <= lists->nseeds) memcpy(k->seeds, lists->seeds + (seeds - 1) * GPUIR__SEEDS, sizeof k->seeds);
  }
}

/* Returns whether any list is in another codec than bp128. */
static int gc_any_coded(const gpuir__segment *ix) {
  gpuir__walk w;
  for (gpuir__walk_start(&w, ix); gpuir__walk_next(&w);) {
    const gpuir__record *r = &w.record;
    if (r->df > 1 && (r->codec != GPUIR__ID_BP128 || r->freq_codec != GPUIR__ID_BP128)) return 1;
  }
  return 0;
}

/* Puts all of the index on the device. */
static int gc_open_whole(gpuir_cuda *c, int coded, gpuir_error *err) {
  uint64_t searcher = gc_sizes_of(c, c->batch).device, left;
  int status = gc_upload_all(c, coded, err);
  if (!status) status = gc_collect(c, err);
  if (status) return status;
  left = gc_left(c);
  if (coded && left < gc_sizes_of(c, 1).device) {
    c->refused = 1;
    return gpuir__fail(err, GPUIR_E_NOMEM, 0, "CUDA: the index leaves no memory for a searcher");
  }
  if (left > searcher) status = gc_upload_positions(c, left - searcher, err);
  if (status) return status;
  left = gc_left(c);
  c->info.index_bytes = c->info.resident_bytes;
  if (left > searcher) status = gc_expand_all(c, left - searcher, err);
  if (!status && !c->expanded) status = gc_shape_or(c, 0, err);
  if (!status) status = gc_cut_all(c, err);
  c->info.resident_bytes = c->info.index_bytes; /* what was made of it does not count */
  if (!status) gc_know(c);
  if (!status) GC_TRY(cudaDeviceSynchronize(), "uploading the index");
  return status;
}

/* Puts the documents' lengths on the device, and a cache of lists. */
static int gc_open_cached(gpuir_cuda *c, gpuir_error *err) {
  uint64_t left, searcher;
  int status = gc_shape_or(c, 0, err);
  if (!status) status = gc_upload_lengths(c, err);
  if (status) return status;
  c->info.index_bytes = c->info.resident_bytes + c->ix->stat.blocks * GC_ENTRY +
      c->ix->section[GPUIR__S_DOCIDS]->length + c->ix->section[GPUIR__S_FREQS]->length;
  left = gc_left(c);
  searcher = gc_sizes_within(c, left / 4).device;
  if (searcher <= left / 4) searcher *= searcher <= left / 32 ? 5 : 2; /* for two of them, with two launches each */
  status = gc_cache_open(c, left - gpuir__min64(left, searcher), err);
  if (status) return status;
  GC_TRY(cudaDeviceSynchronize(), "clearing the slab"); /* searchers' streams do not wait for the default one */
  return GPUIR_OK;
}

/* Frees all that has been made of the index. */
GPUIR__COLD static void gc_forget(gpuir_cuda *c) {
  const gpuir__segment *ix = c->ix;
  size_t i;
  gc_cache_close(c);
  while (c->nmemory) (void)cudaFree(c->memory[--c->nmemory]);
  for (i = 0; i < c->recoded.len / sizeof(void *); i++) {
    void *p;
    memcpy(&p, c->recoded.data + i * sizeof p, sizeof p);
    (void)cudaFree(p);
  }
  (void)cudaGetLastError();
  gpuir__buf_free(&c->a, &c->recoded);
  gpuir__free(&c->a, c->places, (size_t)ix->stat.terms * sizeof *c->places);
  gpuir__free(&c->a, c->lists, (size_t)ix->stat.longs * sizeof *c->lists);
  gpuir__free(&c->a, c->aids, (size_t)ix->stat.longs * sizeof *c->aids);
  gpuir__free(&c->a, c->known, (size_t)ix->stat.longs * sizeof *c->known);
  c->places = NULL;
  c->lists = NULL;
  c->aids = NULL;
  c->known = NULL;
  memset(&c->positions, 0, sizeof c->positions);
  memset(&c->slices, 0, sizeof c->slices);
  c->info.used_memory = c->info.resident_bytes = 0;
}

GPUIR__COLD static int gc_open(gpuir_cuda *c, const gpuir_cuda_desc *desc, gpuir_error *err) {
  uint64_t plain = gc_plain_bytes(c->ix), room = desc ? desc->memory : 0;
  size_t free_bytes, all_bytes;
  int status, coded = gc_any_coded(c->ix);
  GC_TRY(cudaSetDevice(c->device), "choosing the device");
  GC_TRY(cudaFree(NULL), "starting the device");
  status = gc_shape(c, err);
  if (!status) status = gc_shape_or(c, 1, err);
  if (status) return status;
  if (c->ix->stat.blocks >= UINT32_MAX)
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "CUDA: more than 2^32-2 blocks");
  GC_TRY(cudaMemGetInfo(&free_bytes, &all_bytes), "asking for free memory");
  if (!room || room > free_bytes / 10 * 9) room = free_bytes / 10 * 9;
  c->room = room;
  c->info.index_bytes = plain;
  if (plain + gc_sizes_of(c, 1).device <= room) {
    status = gc_open_whole(c, coded, err);
    if (!status || !coded || !c->refused) return status;
    gc_forget(c); /* as bp128 it does not fit */
  }
  return gc_open_cached(c, err);
}

#pragma GCC pop_options

/* ========================
 * [cuda-13-plan]  host: queries become jobs, terms and chunks; the lists that they need are held
 *
 * Planning is reading: of each query's terms, their records and what is known of their lists, which lie anywhere in
 * memory; it prefetches them. Where a searcher has several threads, they plan sheets of a large batch's queries ahead,
 * each into a draft of its own, and launches take sheets in order. On 25.2 million documents (8 planners of an Intel
 * Xeon beside an H200) planning a query of 3.6 terms keeps the caller's thread 0.06 to 0.09 us, alone 0.4 to 0.5.
 *
 * Uses      [cuda-05-expand], [cuda-06-or] to [cuda-07b-phrases], [cuda-08b-alone] to [cuda-09-memory],
 *           [cuda-11-cache], [cuda-12-open].
 * Start at  gc_plan_query (a query), gc_plan_some (a draft), gc_fill_by_crew, gc_stage_plan (all of a launch).
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_SMALL 16u /* queries of a small launch at most: what counts are the gaps between its kernels */
/* Queries at most of a launch that takes all blocks of a job at once: floors that are raised meanwhile come too late,
 * and what counts is the wait for the last block; with many hits to find they pay sooner. Measured on an H100, 25.2
 * million documents, two calls of n ORs in flight, in us a call, without raising and with it: k = 10, n = 4: 71 and 84,
 * n = 8: 97 and 107, n = 12: 122 and 119, n = 16: 145 and 138; k = 1,000, n = 2: 116 and 130, n = 4: 167 and 161,
 * n = 16: 374 and 278; one call of 16, of which one is costly: 476 and 201 (tools/results/bench_cuda-small.txt). */
#define GC_UNRAISED(k) ((k) < 100 ? 8u : 3u)
#define GC_GROUP 8 /* driver blocks that a warp takes at once: few, or the last ones to end keep all waiting */
#define GC_TURNS_LEAST 32u /* groups of blocks of a driver that is taken in turns */
#define GC_OPENED 1024u /* blocks of a driver at least, where the turns of few ANDs wait for the first one */

/* The arrays of a plan, on the host; gc_batch has the same on the device. */
typedef struct gc_draft {
  gc_term *terms;
  gc_job *jobs;
  gc_chunk *chunks;
  gc_turn *turns;
  uint32_t *and_jobs, *and_start, *or_jobs, *max_jobs, *sum_jobs;
  gc_sum_job *sums; /* of sum_jobs, when the launch is staged */
  gc_sum_list *rows;
  uint32_t *thin;
  uint2 *query_jobs;
  gc_sought *sought; /* NULL: the index has no positions */
  uint32_t *sought_start;
  gc_clause *clauses;
  gc_spots *spots;
  uint8_t *tokens;
  gc_wanted *wanted; /* of the query that is being planned */
  int *outcomes; /* of each of its queries, from `first` on: GC_SETTLED, GC_HAS_JOBS, or why it failed */
  void *memory; /* all of the arrays */
  size_t size;
  size_t first, next, end; /* of the batch: queries before `next` are planned, those before `end` are to be */
  gpuir_error error; /* of the first of them that failed */
} gc_draft;

/* A query has no hits, or has had its outcome before; or waits for the device. */
enum { GC_SETTLED, GC_HAS_JOBS };

/* How much of everything a plan has until now. */
typedef struct gc_plan {
  size_t nsum, nthin; /* jobs of gc_sum_tiles; their lists that are not cut */
  size_t nq, njobs, nterms, nslots, nchunks, nand, nor, nmax; /* nq: queries that have jobs */
  uint64_t nand_blocks, max_blocks; /* driver blocks of ANDs, of MaxScore */
  size_t nsought, nspots, nclauses, ntokens; /* jobs of gc_phrase_all, and what they have of everything */
  uint64_t sought_blocks; /* driver blocks of theirs */
  uint32_t lists, tokens; /* of one of them at most: lists, those that exclude apart; tokens of a phrase */
} gc_plan;

typedef struct gc_crew gc_crew;

/* A batch from begin to finish. */
typedef struct gc_run {
  gpuir_batch_desc desc; /* .k: the hits of a query that there is room for; */
  uint32_t k; /* that many, or as many as there are documents */
  uint64_t deadline; /* of all queries; 0: none */
  const int *cancel; /* of all queries; or NULL */
  uint64_t number; /* batches are served by it; 0: not in use */
  size_t next; /* the first query that no launch has taken */
  size_t seen; /* those before it have been planned, some of them to be planned again */
  size_t piece; /* queries a launch at most */
  gc_crew *crew; /* several threads that plan it, or NULL: */
  size_t sheet, nsheets; /* queries that one of them plans at once; into how many of these a launch is cut */
  size_t left; /* queries whose outcome is open */
  size_t bad, failed; /* how many failed; the first of them */
  gpuir_error error; /* its */
} gc_run;

/* What a launch is about: queries from `first` to `end` - 1 of a batch, those whose count is GC_NONE. */
typedef struct gc_flight {
  gc_run *run; /* NULL: nothing is in flight */
  gc_plan plan;
  size_t first, end;
  uint64_t number; /* launches are waited for by it */
  unsigned tries;
  int count; /* 1: its queries are counted */
  int idle; /* 1: the searcher had nothing else in flight when it was planned */
} gc_flight;

/* What queries are planned with and by. */
typedef struct gc_planner {
  gpuir_cuda *cuda;
  gpuir_allocator a;
  gpuir__engine *engine; /* the searcher's */
  gc_sizes most; /* of a launch */
  gc_draft draft;
  gc_plan plan; /* of the draft */
  int count; /* 1: the queries are counted */
  int few; /* 1: they are a small batch */
  gc_holds held;
  gc_carrier by;
} gc_planner;

/* What one launch needs: a stream and memory. */
typedef struct gc_track : gc_planner {
  gc_flight flight;
  gc_batch batch; /* its device memory, from attaching on; the rest anew for each launch */
  cudaStream_t stream;
  cudaEvent_t sent; /* the lists that the launch uses are on the device */
  uint8_t *staging, *input; /* the plan in pinned memory and on the device */
  uint32_t *out; /* pinned: batch.out */
  size_t out_size;
  uint64_t device_bytes;
  int dirty; /* 1: a launch failed, the candidates are to be cleared */
  int chained; /* 1: a kernel of the launch starts while the one before ends */
  int alone; /* 1: the launch is one of gc_alone */
  size_t letter; /* bytes of the staged plan that it needs */
  int rings; /* 1: its last kernel rings the bell */
  uint32_t rung; /* number of the last launch that does */
  gc_phrases phrases; /* of the launch */
  gc_desk *desk; /* device memory of gc_alone */
  int prompt; /* 1: the launch is one of gc_prompt */
  gc_line *lines, *device_lines; /* pinned memory in which gc_prompt writes, behind the bell; as the device sees it */
} gc_track;

/* Allocates the plan's arrays on the host. */
static int gc_draft_open(gc_planner *x, gpuir_error *err) {
  const gc_sizes *z = &x->most;
  gc_draft *d = &x->draft;
  uint8_t *at;
  d->size = (size_t)z->host;
  d->memory = gpuir__alloc(&x->a, d->size);
  if (!d->memory) return gpuir__fail_nomem(err);
  at = (uint8_t *)(((uintptr_t)d->memory + 63) & ~(uintptr_t)63);
  d->terms = (gc_term *)gc_carve(&at, z->nterms * sizeof *d->terms);
  d->jobs = (gc_job *)gc_carve(&at, z->njobs * sizeof *d->jobs);
  d->chunks = (gc_chunk *)gc_carve(&at, z->nchunks * sizeof *d->chunks);
  d->query_jobs = (uint2 *)gc_carve(&at, z->queries * sizeof *d->query_jobs);
  d->and_jobs = (uint32_t *)gc_carve(&at, z->njobs * 4);
  d->turns = (gc_turn *)gc_carve(&at, z->njobs * GC_TURNS * sizeof *d->turns);
  d->and_start = (uint32_t *)gc_carve(&at, (z->njobs * GC_TURNS + 1) * 4);
  d->or_jobs = (uint32_t *)gc_carve(&at, z->njobs * 4);
  d->max_jobs = (uint32_t *)gc_carve(&at, z->njobs * 4);
  d->sum_jobs = (uint32_t *)gc_carve(&at, z->njobs * 4);
  d->sums = (gc_sum_job *)gc_carve(&at, z->njobs * sizeof *d->sums);
  d->rows = (gc_sum_list *)gc_carve(&at, (z->nterms + 32) * sizeof *d->rows);
  d->thin = (uint32_t *)gc_carve(&at, z->nterms * 4);
  if (z->ntokens) {
    d->sought = (gc_sought *)gc_carve(&at, z->njobs * sizeof *d->sought);
    d->sought_start = (uint32_t *)gc_carve(&at, (z->njobs + 1) * 4);
    d->clauses = (gc_clause *)gc_carve(&at, z->nterms * sizeof *d->clauses);
    d->spots = (gc_spots *)gc_carve(&at, z->nterms * sizeof *d->spots);
    d->tokens = (uint8_t *)gc_carve(&at, z->ntokens);
  }
  d->wanted = (gc_wanted *)gc_carve(&at, sizeof *d->wanted);
  d->outcomes = (int *)gc_carve(&at, z->queries * sizeof *d->outcomes);
  x->held.slots = (uint32_t *)gc_carve(&at, z->nterms * 4);
  return GPUIR_OK;
}

/* ---- planning ---- */

/* Fills in where a long list's guides are. */
static void gc_aid_term(const gpuir_cuda *c, const gpuir__list *l, gc_term *t) {
  if (l->extent && c->aids) {
    const gc_aid *aid = &c->aids[l->extent - c->ix->lists.longs];
    t->marks = aid->marks;
    t->shift = aid->shift;
    t->row = aid->row;
    t->span = aid->span;
    t->most = aid->most;
    t->cut = aid->cut;
    t->wide = aid->wide;
  }
}

/* Returns what is known of a list beforehand, or NULL. */
static const gc_known *gc_known_list(const gpuir_cuda *c, const gpuir__record *r) {
  if (!c->known || r->df <= GPUIR__SHORT_MAX || r->docs >= c->ix->stat.longs) return NULL;
  return c->known[r->docs].term.df == r->df ? &c->known[r->docs] : NULL;
}

/* Describes a term's list; *seeds: its seeds, or NULL. */
static int gc_plan_list(const gpuir_cuda *c, const gpuir_query *q, unsigned term, gpuir__list *l, gc_term *t,
    const uint32_t **seeds, gpuir_error *err) {
  const gpuir__record *r = gpuir__query_record(q, 0, GPUIR__ID_TERMS + term);
  const gc_known *known = gc_known_list(c, r);
  int status;
  if (known) {
    *t = known->term;
    *seeds = known->seeds;
    return GPUIR_OK;
  }
  status = gc_describe(c, gpuir__query_id(q, 0, term), r, t, l, err);
  if (status) return status;
  gc_aid_term(c, l, t);
  *seeds = l->seeds;
  return GPUIR_OK;
}

/* Fills in how a query uses a list, and the most that it adds to a document. */
static void gc_plan_use(const gpuir_query *q, unsigned term, gc_term *t) {
  const gpuir__query_term *from = &q->terms[term];
  const uint32_t most = t->most; /* by guides, under the stored k1 and b; or 0 */
  const uint64_t step = (uint64_t)from->q * (most / GC_PEAK_MOST + 1);
  t->q = from->q;
  t->weight = from->weight;
  t->negated = from->negated != 0;
  t->step = 0;
  if (q->stored_bm25 && most) {
    t->most = t->q * most;
    if (step * GC_PEAK_MOST <= UINT32_MAX) t->step = (uint32_t)step;
  } else {
    t->most = gpuir__bound(t->weight, 1, t->q);
  }
}

/* Notes what a term says about its query's job. */
static void gc_plan_note(const gpuir_query *q, const uint32_t *seeds, const gc_term *t, gc_job *job) {
  uint32_t s;
  job->expanded = job->expanded && t->kind == GC_LONG;
  job->nterms++;
  if (t->negated) return;
  job->npositive++;
  if (!q->stored_bm25 || !seeds) return;
  for (s = 0; s < GPUIR__SEEDS && gpuir__seed_ranks[s] < job->k; s++) {}
  if (s < GPUIR__SEEDS) job->seed = gpuir__max32(job->seed, t->q * seeds[s]);
}

/* Appends the query's known terms: positive ones by ascending df, then negated ones. *full: they have to wait. */
static int gc_plan_terms(gc_planner *x, const gc_plan *p, const gpuir_query *q, gc_job *job, int *full,
    gpuir_error *err) {
  gpuir_cuda *c = x->cuda;
  gc_wanted *w = x->draft.wanted;
  gc_term *terms = x->draft.terms + p->nterms;
  uint32_t n = 0, i, j;
  job->expanded = c->expanded && q->stored_bm25;
  for (i = 0; i < q->n; i++) {
    const uint32_t *seeds;
    int status;
    if (!gpuir__query_record(q, 0, GPUIR__ID_TERMS + i)->df && gpuir__query_id(q, 0, i) == GPUIR__NO_TERM) continue;
    if (c->cache) w->id[n] = gpuir__query_id(q, 0, i);
    status = gc_plan_list(c, q, i, &w->list[c->cache ? n : 0], &terms[n], &seeds, err);
    if (status) return status;
    gc_plan_use(q, i, &terms[n]);
    gc_plan_note(q, seeds, &terms[n++], job);
  }
  if (!job->npositive) return GPUIR_OK; /* no list is needed */
  if (c->cache) {
    int status;
    w->n = n;
    status = gc_cache_hold_all(c, &x->held, &x->by, w, terms, full, err);
    if (status || *full) return status;
  }
  for (i = 1; i < job->npositive; i++) { /* positive ones come first */
    const gc_term t = terms[i];
    for (j = i; j && terms[j - 1].df > t.df; j--) terms[j] = terms[j - 1];
    terms[j] = t;
  }
  job->first_term = (uint32_t)p->nterms;
  job->mixed = c->expanded && q->stored_bm25 && !job->expanded;
  if (n != job->npositive || x->engine->evaluator == GPUIR_EVAL_EXHAUSTIVE || job->count) job->seed = 0;
  return GPUIR_OK;
}

/* Returns whether MaxScore is certain to be the way, by the threshold that is known beforehand; gc_max_plan decides
 * likewise. */
static int gc_plan_sure(const gc_planner *x, const gc_job *job) {
  const gc_term *terms = x->draft.terms + job->first_term;
  uint64_t all = (uint64_t)GC_TILE_COST * x->cuda->view.ntiles, driving = 0, behind = 0;
  uint32_t i;
  for (i = job->npositive; i--;) {
    behind += terms[i].most;
    all += terms[i].nblocks;
    if (behind >= job->seed) driving += terms[i].nblocks;
  }
  return job->seed > 1 && (job->npositive == 1 || driving * GC_PROBE_ALONE <= all);
}

/* Appends an AND job. */
static void gc_plan_and(gc_planner *x, gc_plan *p, const gc_job *job) {
  gc_draft *d = &x->draft;
  const gc_term *driver = &d->terms[job->first_term];
  d->and_jobs[p->nand++] = (uint32_t)p->njobs;
  p->nand_blocks += driver->nblocks;
  d->jobs[p->njobs++] = *job;
}

#define GC_SUM_TERMS 32u /* terms of a query at most */

/* Appends an OR job to those that gc_sum_tiles answers, if it is one of them. One alone takes 197 us there at the
 * median, by gc_or 148: tile after tile for all queries keeps the device busy only with many of them. */
static int gc_plan_sum(gc_planner *x, gc_plan *p, const gc_job *job) {
  gc_draft *d = &x->draft;
  uint32_t i;
  if (!x->cuda->slices.ntiles || x->few || job->prune || job->count || !job->stored || job->nterms > GC_SUM_TERMS ||
      job->npositive < job->nterms || job->k > gc_shared_sum::KEYS)
    return 0;
  for (i = 0; i < job->nterms; i++) p->nthin += !d->terms[job->first_term + i].cut;
  d->sum_jobs[p->nsum++] = (uint32_t)p->njobs;
  d->jobs[p->njobs++] = *job;
  return 1;
}

/* Appends an OR job: for MaxScore, if there are guides, and for tiles, unless MaxScore is certain to be the way. */
static void gc_plan_or(gc_planner *x, gc_plan *p, gc_job *job) {
  gc_draft *d = &x->draft;
  uint32_t i, first;
  job->any = 1;
  if (gc_plan_sum(x, p, job)) return;
  job->follow = x->cuda->aids && job->prune;
  if (job->follow) {
    d->max_jobs[p->nmax++] = (uint32_t)p->njobs;
    for (i = 0; i < job->npositive; i++) p->max_blocks += d->terms[job->first_term + i].nblocks;
    if (gc_plan_sure(x, job)) {
      d->jobs[p->njobs++] = *job;
      return;
    }
  }
  for (i = 0; i < job->nterms; i++) {
    gc_term *t = &d->terms[job->first_term + i];
    t->slot = (uint32_t)p->nslots++;
    for (first = 0; first < t->nblocks; first += GC_CHUNK) {
      gc_chunk *c = &d->chunks[p->nchunks++];
      c->job = (uint32_t)p->njobs;
      c->term = job->first_term + i;
      c->first = first;
      c->zero = 0;
    }
  }
  d->or_jobs[p->nor++] = (uint32_t)p->njobs;
  d->jobs[p->njobs++] = *job;
}

/* Returns whether a job of one positive term goes the way of ANDs: if its list is short, or a threshold is known beside
 * which hardly a block of it is decoded. gc_alone begins without one. */
static int gc_plan_driven(const gc_planner *x, const gc_job *job) {
  return x->draft.terms[job->first_term].df <= 4096 || (x->cuda->aids && job->seed > 1 && !x->few);
}

/* Appends the jobs of a query whose terms have been appended: AND, OR, or both. A query of one positive term has the
 * same answer by either, and goes the cheaper way. */
static uint2 gc_plan_jobs(gc_planner *x, gc_plan *p, const gpuir_query *q, gc_job *job) {
  const uint32_t seed = job->seed;
  int mode = job->count && q->mode == GPUIR_ANDOR ? GPUIR_AND : q->mode;
  uint2 jobs = {GC_NONE, GC_NONE};
  if (mode == GPUIR_ANDOR && gpuir__query_absent(q, 0)) mode = GPUIR_OR;
  if (job->npositive == 1 && job->count) mode = GPUIR_AND;
  else if (job->npositive == 1) mode = gc_plan_driven(x, job) ? GPUIR_AND : GPUIR_OR;
  if (mode != GPUIR_OR) {
    jobs.x = (uint32_t)p->njobs;
    if (job->npositive > 1) job->seed = 0;
    gc_plan_and(x, p, job);
    job->after = jobs.x;
    job->seed = seed;
  }
  if (mode != GPUIR_AND) {
    *(mode == GPUIR_OR ? &jobs.x : &jobs.y) = (uint32_t)p->njobs;
    gc_plan_or(x, p, job);
  }
  p->nterms += job->nterms;
  return jobs;
}

/* Returns the chunks that a query's lists may be cut into. */
static size_t gc_chunks_of(const gpuir_query *q) {
  size_t n = 0;
  unsigned i;
  for (i = 0; i < q->n; i++) n += q->terms[i].df / (GPUIR__BLOCK * GC_CHUNK) + 1;
  return n;
}

/* Returns whether the sum of a and b * length is exact in binary64, whatever the length below 2^24, so that
 * gc_fused_norm rounds as gpuir__norm_of does: from its first bit, at 2^(1 + the greater exponent), to the last one of
 * both, 23 below the lesser exponent, there are no more than 53. */
static int gc_fused(double a, double b) {
  int ea, eb;
  if ((double)(float)a < a || (double)(float)a > a || (double)(float)b < b || (double)(float)b > b) return 0;
  if (!(a > 0) || !(b > 0)) return a >= 0 && b >= 0;
  (void)frexp(a, &ea);
  (void)frexp(b, &eb);
  if (ea < -64 || ea > 64 || eb < -64 || eb > 64) return 0;
  return (ea > eb + 24 ? ea : eb + 24) + 1 - ((ea < eb ? ea : eb) - 23) + 1 <= 53;
}

/* ---- queries with phrases ---- */

/* Returns which of a query's phrases or prefixes the device leaves to the CPU; NULL: none. */
static const char *gc_why_not(const gpuir_cuda *c, const gpuir_query *q, int count) {
  unsigned i;
  if (q->nprefixes) return "prefixes";
  if (!c->positions.bytes) return "phrases: the index's positions are not on the device";
  for (i = q->npositive; i < q->n; i++)
    if (q->terms[i].tokens) return "phrases that exclude";
  if (q->npositive > 1 && q->mode != GPUIR_AND && (!count || q->mode == GPUIR_OR))
    return "phrases beside words that are not required";
  return NULL;
}

/* Returns whether a plan has room for a query with phrases. */
static int gc_phrases_fit(const gc_plan *p, const gpuir_query *q, const gc_sizes *most) {
  return p->nterms + q->n + q->phrases->nmembers <= most->nterms &&
      p->ntokens + q->n + q->phrases->ntokens <= most->ntokens && !(p->sought_blocks >> 30);
}

/* The lists that a query with phrases requires, each once, and then those that exclude. */
typedef struct gc_mix {
  const gpuir_query *query;
  gc_term *terms;
  gc_spots *spots;
  uint32_t n;
  uint32_t id[2 * GPUIR_MAX_TERMS]; /* [list] the term's number in the index */
  uint8_t rank[2 * GPUIR_MAX_TERMS]; /* [list as it was added] its number when they are sorted */
} gc_mix;

/* Describes the list of what has this number in the query, GPUIR__ID_TERMS or GPUIR__ID_MEMBERS and more, as list
 * number m->n. */
static int gc_mix_describe(const gpuir_cuda *c, gc_mix *m, unsigned number, gpuir_error *err) {
  const gpuir__record *r = gpuir__query_record(m->query, 0, number);
  const gc_known *known = gc_known_list(c, r);
  const uint64_t most = c->ix->section[GPUIR__S_POSITIONS]->length;
  gc_term *t = &m->terms[m->n];
  gc_spots *s = &m->spots[m->n];
  gpuir__list l;
  if (known) {
    *t = known->term;
  } else {
    const int status = gc_describe(c, m->query->ids[number], r, t, &l, err);
    if (status) return status;
    gc_aid_term(c, &l, t);
  }
  t->q = 1;
  s->at = r->positions;
  s->length = r->positions_len;
  if (s->at > most || s->length > most - s->at) return gpuir__bad(c->ix, err, 0, "a list's positions lie outside");
  return GPUIR_OK;
}

/* Adds a list, unless it is there; *list: which it is. NOT_FOUND: the index has no such list. */
static int gc_mix_add(const gpuir_cuda *c, gc_mix *m, unsigned number, uint8_t *list, gpuir_error *err) {
  const uint32_t id = m->query->ids[number];
  uint32_t i;
  int status;
  if (id == GPUIR__NO_TERM || !gpuir__query_record(m->query, 0, number)->df) return GPUIR_E_NOT_FOUND;
  for (i = 0; i < m->n && m->id[i] != id; i++) {}
  *list = (uint8_t)i;
  if (i < m->n) return GPUIR_OK;
  status = gc_mix_describe(c, m, number, err);
  m->id[m->n++] = id;
  return status;
}

/* Adds the lists of the words and phrases that the query requires. tokens[]: those of each, one behind the other. */
static int gc_mix_require(const gpuir_cuda *c, gc_mix *m, uint8_t *tokens, gpuir_error *err) {
  const gpuir_query *q = m->query;
  unsigned i, j;
  for (i = 0; i < q->npositive; i++) {
    const gpuir__query_term *t = &q->terms[i];
    const unsigned n = t->kind == GPUIR__PHRASE ? t->tokens : 1;
    for (j = 0; j < n; j++) {
      const unsigned number = t->kind == GPUIR__PHRASE ? GPUIR__ID_MEMBERS + q->phrases->tokens[t->first + j] : i;
      const int status = gc_mix_add(c, m, number, tokens++, err);
      if (status) return status;
    }
  }
  return GPUIR_OK;
}

/* Sorts the lists by ascending df. */
static void gc_mix_sort(gc_mix *m) {
  uint8_t order[2 * GPUIR_MAX_TERMS];
  uint32_t i, j;
  for (i = 0; i < m->n; i++) {
    const gc_term t = m->terms[i];
    const gc_spots s = m->spots[i];
    for (j = i; j && m->terms[j - 1].df > t.df; j--) {
      m->terms[j] = m->terms[j - 1];
      m->spots[j] = m->spots[j - 1];
      order[j] = order[j - 1];
    }
    m->terms[j] = t;
    m->spots[j] = s;
    order[j] = (uint8_t)i;
  }
  for (i = 0; i < m->n; i++) m->rank[order[i]] = (uint8_t)i;
}

/* Adds the lists of the words that exclude, as far as the index has them. */
static int gc_mix_exclude(const gpuir_cuda *c, gc_mix *m, gpuir_error *err) {
  const gpuir_query *q = m->query;
  unsigned i;
  for (i = q->npositive; i < q->n; i++) {
    int status;
    if (q->ids[i] == GPUIR__NO_TERM || !gpuir__query_record(q, 0, i)->df) continue;
    status = gc_mix_describe(c, m, i, err);
    if (status) return status;
    m->terms[m->n++].negated = 1;
  }
  return GPUIR_OK;
}

/* Describes what the query requires, by lists as they are sorted now; returns how many tokens that are. */
static size_t gc_plan_clauses(const gc_planner *x, gc_plan *p, const gc_mix *m) {
  const gpuir_query *q = m->query;
  size_t n = p->ntokens, i, j;
  for (i = 0; i < q->npositive; i++) {
    gc_clause *c = &x->draft.clauses[p->nclauses + i];
    c->weight = q->terms[i].weight;
    c->q = q->terms[i].q;
    c->n = q->terms[i].kind == GPUIR__PHRASE ? q->terms[i].tokens : 1;
    c->first = (uint32_t)n;
    for (j = 0; j < c->n; j++, n++) x->draft.tokens[n] = m->rank[x->draft.tokens[n]];
    p->tokens = gpuir__max32(p->tokens, c->n);
  }
  return n - p->ntokens;
}

/* Appends the job of a query with phrases, unless it can have no hits. */
static int gc_plan_phrases(gc_planner *x, gc_plan *p, const gpuir_query *q, gc_job *job, gpuir_error *err) {
  gc_draft *d = &x->draft;
  const gc_sought sought = {(uint32_t)p->njobs, (uint32_t)p->nspots, (uint32_t)p->nclauses, q->npositive};
  const uint2 jobs = {(uint32_t)p->njobs, GC_NONE};
  uint32_t tokens = 0;
  unsigned i;
  gc_mix m;
  int status;
  memset(&m, 0, sizeof m);
  m.query = q;
  m.terms = d->terms + p->nterms;
  m.spots = d->spots + p->nspots;
  status = gc_mix_require(x->cuda, &m, d->tokens + p->ntokens, err);
  if (status) return status == GPUIR_E_NOT_FOUND ? GPUIR_OK : status;
  for (i = 0; i < q->npositive; i++) tokens = gpuir__max32(tokens, q->terms[i].tokens);
  if (GC_PHRASE_THREADS / 32 * gc_phrase_bytes(gpuir__max32(p->lists, m.n), gpuir__max32(p->tokens, tokens)) >
      x->cuda->phrase_room)
    return gpuir__fail(err, GPUIR_E_BACKEND, 0, "the CUDA backend does not answer phrases of so many words");
  gc_mix_sort(&m);
  job->first_term = (uint32_t)p->nterms;
  job->npositive = m.n;
  p->lists = gpuir__max32(p->lists, m.n);
  status = gc_mix_exclude(x->cuda, &m, err);
  if (status) return status;
  job->nterms = m.n;
  p->ntokens += gc_plan_clauses(x, p, &m);
  p->nclauses += q->npositive;
  p->nspots += m.n;
  p->nterms += m.n;
  p->sought_blocks += m.terms[0].nblocks;
  d->sought[p->nsought++] = sought;
  d->jobs[p->njobs++] = *job;
  d->query_jobs[p->nq++] = jobs;
  return GPUIR_OK;
}

/* Adds a query, if it can have hits; *full: it has to wait for the next launch. */
static int gc_plan_query(gc_planner *x, gc_plan *p, const gpuir_query *q, uint32_t k, size_t most_jobs, int *full,
    gpuir_error *err) {
  const gc_sizes *most = &x->most;
  gc_job job;
  int status;
  const int phrases = q->nphrases || q->nprefixes;
  if (q->nrequired < q->npositive && q->mode != GPUIR_OR)
    return gpuir__fail(err, GPUIR_E_BACKEND, 0, "the CUDA backend does not answer optional terms beside required ones");
  if (phrases) {
    const char *why = gc_why_not(x->cuda, q, x->count);
    if (why) return gpuir__fail(err, GPUIR_E_BACKEND, 0, "the CUDA backend does not answer %s", why);
  }
  *full = (phrases && !gc_phrases_fit(p, q, most)) || p->nq == most->queries || p->njobs + 2 > most_jobs ||
      p->nterms + q->n > most->nterms || p->nslots + q->n > most->nslots || p->nthin + q->n > most->nslots ||
      p->nchunks + gc_chunks_of(q) > most->nchunks || p->nand_blocks >> 30 || p->max_blocks >> 30;
  if (*full) return GPUIR_OK;
  memset(&job, 0, sizeof job);
  job.k = k;
  job.norm_a = q->norm.a;
  job.norm_b = q->norm.b;
  job.fused = gc_fused(q->norm.a, q->norm.b) != 0;
  job.stored = q->stored_bm25 != 0;
  job.count = x->count != 0;
  job.prune = x->engine->evaluator != GPUIR_EVAL_EXHAUSTIVE && !job.count;
  job.after = GC_NONE;
  if (phrases) return gc_plan_phrases(x, p, q, &job, err);
  if (q->mode == GPUIR_OR || (q->mode == GPUIR_ANDOR && !job.count) || !gpuir__query_absent(q, 0)) {
    status = gc_plan_terms(x, p, q, &job, full, err);
    if (status || *full) return status;
  }
  if (job.npositive) x->draft.query_jobs[p->nq++] = gc_plan_jobs(x, p, q, &job);
  return GPUIR_OK;
}

/* ---- the queries of a batch, until a draft is full ---- */

/* Notes that a query failed. */
static void gc_fail_query(gc_run *r, size_t i, int status, const gpuir_error *err) {
  r->desc.statuses[i] = status;
  r->desc.counts[i] = 0;
  r->left--;
  r->bad++;
  if (i >= r->failed) return;
  r->failed = i;
  r->error = *err;
}

/* Returns whether a flag, if there is one, says stop. */
static int gc_flagged(const int *flag) { return flag && __atomic_load_n(flag, __ATOMIC_RELAXED); }

/* Returns the status of a query that has been cancelled or is out of time. */
static int gc_stopped(const gc_run *r, size_t i, uint64_t now, gpuir_error *err) {
  const uint64_t own = r->desc.deadlines ? r->desc.deadlines[i] : 0;
  if (gc_flagged(r->cancel) || (r->desc.cancels && gc_flagged(r->desc.cancels[i])))
    return gpuir__fail(err, GPUIR_E_CANCELLED, 0, "the search was cancelled");
  if ((r->deadline && now > r->deadline) || (own && now > own))
    return gpuir__fail(err, GPUIR_E_DEADLINE, 0, "the search exceeded its time limit");
  return GPUIR_OK;
}

static uint64_t gc_now(const gc_run *r) { return r->deadline || r->desc.deadlines ? gpuir__now() : 0; }

#define GC_AHEAD_OF_PLAN 16u /* queries */

/* Prefetches what planning a draft's queries will read, each thing when what leads to it has come: query number i, the
 * records of one before it, the long lists of another. Planned without it, a query took 1.1 us, nearly all of which
 * were some 25 misses of the caches, one after another. */
static void gc_expect(const gpuir_cuda *c, const gpuir_batch_desc *desc, const gc_draft *d, size_t i) {
  unsigned t;
  if (i < d->end) {
    const gpuir_query *q = desc->queries[i];
    __builtin_prefetch(q);
    __builtin_prefetch(&q->ids);
    for (t = 0; t < 4; t++) __builtin_prefetch(&q->terms[t]);
  }
  if (i >= d->next + 6 && i - 6 < d->end) {
    const gpuir_query *q = desc->queries[i - 6];
    for (t = 0; t < q->n; t++) {
      __builtin_prefetch(&q->terms[t]);
      __builtin_prefetch(gpuir__query_record(q, 0, GPUIR__ID_TERMS + t));
    }
  }
  if (i >= d->next + 10 && i - 10 < d->end) {
    const gpuir_query *q = desc->queries[i - 10];
    for (t = 0; t < q->n; t++) {
      const gpuir__record *r = gpuir__query_record(q, 0, GPUIR__ID_TERMS + t);
      if (r->df <= GPUIR__SHORT_MAX || r->docs >= c->ix->stat.longs) continue;
      if (c->known) {
        __builtin_prefetch(&c->known[r->docs]);
        __builtin_prefetch(&c->known[r->docs].seeds);
      } else {
        __builtin_prefetch(&c->ix->lists.longs[r->docs]);
      }
    }
  }
}

/* Returns the jobs that a launch of a batch has at most, such that there is room for their candidates. */
static size_t gc_most_jobs(const gc_sizes *z, const gc_run *r) {
  const uint64_t least = gpuir__max64(8192, 16 * (uint64_t)r->k);
  return (size_t)gpuir__min64(z->njobs, gpuir__max64(2, z->ncand / least));
}

/* Plans queries of a batch from draft.next on until the draft is full. *full: the next query found no room for its
 * lists. Writes nothing of the batch: gc_settle does. */
static void gc_plan_some(gc_planner *x, const gc_run *r, int *full) {
  const gpuir_batch_desc *desc = &r->desc;
  const uint64_t now = gc_now(r), threshold = x->cuda->threshold;
  const size_t jobs = gc_most_jobs(&x->most, r);
  gc_draft *d = &x->draft;
  uint64_t postings = 0;
  unsigned t;
  memset(&x->plan, 0, sizeof x->plan);
  x->count = desc->count;
  x->few = desc->nq <= GC_SMALL;
  d->first = d->next;
  d->error.code = 0;
  for (t = 0; t < GC_AHEAD_OF_PLAN; t++) gc_expect(x->cuda, desc, d, d->next + t);
  for (; d->next < d->end && postings < threshold; d->next++) {
    const size_t i = d->next, had = x->plan.nq;
    const gpuir_query *q = desc->queries[i];
    int *outcome = &d->outcomes[i - d->first];
    gpuir_error error;
    int status;
    gc_expect(x->cuda, desc, d, i + GC_AHEAD_OF_PLAN);
    *outcome = GC_SETTLED;
    if (i < r->seen && desc->counts[i] != GC_NONE) continue;
    error.code = 0;
    status = gc_stopped(r, i, now, &error);
    if (!status) status = gc_plan_query(x, &x->plan, q, r->k, jobs, full, &error);
    if (*full) break;
    if (status && !d->error.code) d->error = error;
    *outcome = status ? status : x->plan.nq == had ? GC_SETTLED : GC_HAS_JOBS;
    if (*outcome != GC_HAS_JOBS) continue;
    for (t = 0; t < q->n; t++) postings += q->terms[t].df;
  }
}

/* Tells the batch what has become of a draft's queries. */
static void gc_settle(const gc_planner *x, gc_run *r) {
  const gc_draft *d = &x->draft;
  size_t i;
  for (i = d->first; i < d->next; i++) {
    const int outcome = d->outcomes[i - d->first];
    if (outcome == GC_HAS_JOBS) {
      r->desc.counts[i] = GC_NONE;
    } else if (outcome) {
      gc_fail_query(r, i, outcome, &d->error);
    } else if (i >= r->seen || r->desc.counts[i] == GC_NONE) { /* it has no hits */
      r->desc.counts[i] = 0;
      r->left--;
    }
  }
  r->next = d->next;
  if (x->cuda->cache) r->seen = gpuir__max64(r->seen, r->next);
  else __atomic_fetch_add(&x->cuda->info.lists_hit, x->plan.nterms, __ATOMIC_RELAXED);
}

/* ---- several threads: sheets of a batch's queries are planned ahead, and taken by launches in order ---- */

#define GC_CREW 8u /* threads at most, the caller's among them */
#define GC_SHEET 64u /* queries of a sheet at most */
#define GC_SHEETS 96u /* so many sheets are planned ahead at most */
#define GC_FIRST_SHEETS 4u /* a batch's first launch has no more than these, for which the device waits */
#define GC_ROUSED_NS 1500000u /* so long planners look for the next batch's sheets before they sleep */

/* A searcher's threads that plan. They sleep while there is nothing to plan, but for a moment at the end of a batch:
 * to wake a thread can take 200 us, and the caller's 10 us for each that it wakes. Sheets are numbered over all
 * batches. */
struct gc_crew {
  gpuir_allocator a;
  pthread_mutex_t lock; /* of all that follows but what the sheet of a number holds, which is its planner's */
  pthread_cond_t work, done; /* for the threads; for the caller */
  int stop;
  unsigned n;
  pthread_t threads[GC_CREW - 1];
  const gc_run *runs[2]; /* the batches of these sheets, */
  uint64_t from[2]; /* and the first one of each */
  unsigned batches; /* that were announced; the last one is in place (batches - 1) % 2 */
  uint64_t begun, claimed, taken; /* sheets that there are (atomic), that somebody plans, that launches have taken */
  uint64_t roused; /* times that more sheets were soon to be expected */
  gc_planner sheets[GC_SHEETS]; /* number i is in place i % GC_SHEETS */
  int planned[GC_SHEETS];
};

/* Claims the next sheet for a thread; NULL: there is none, or no place for it. The lock is held. */
static gc_planner *gc_claim(gc_crew *w, const gc_run **run) {
  const uint64_t number = w->claimed;
  gc_planner *sheet = &w->sheets[number % GC_SHEETS];
  const unsigned last = (w->batches - 1) % 2, which = number < w->from[last] ? 1 - last : last;
  const gc_run *r = w->runs[which];
  size_t launch;
  if (number == w->begun || number == w->taken + GC_SHEETS) return NULL;
  w->claimed++;
  w->planned[number % GC_SHEETS] = 0;
  launch = (size_t)(number - w->from[which]) / r->nsheets * r->piece;
  sheet->draft.next = launch + (size_t)(number - w->from[which]) % r->nsheets * r->sheet;
  sheet->draft.end = (size_t)gpuir__min64(gpuir__min64(sheet->draft.next + r->sheet, launch + r->piece), r->desc.nq);
  *run = r;
  return sheet;
}

/* Plans a sheet that was claimed; the lock is held, but not meanwhile. */
static void gc_plan_sheet(gc_crew *w, gc_planner *sheet, const gc_run *r) {
  int full = 0;
  (void)pthread_mutex_unlock(&w->lock);
  gc_plan_some(sheet, r, &full);
  (void)pthread_mutex_lock(&w->lock);
  w->planned[sheet - w->sheets] = 1;
}

/* Looks for sheets of the next batch before the thread sleeps. The lock is held, but not meanwhile. */
static void gc_look_out(gc_crew *w) {
  const uint64_t begun = w->begun, until = gpuir__now() + GC_ROUSED_NS;
  (void)pthread_mutex_unlock(&w->lock);
  while (__atomic_load_n(&w->begun, __ATOMIC_RELAXED) == begun && gpuir__now() < until) (void)sched_yield();
  (void)pthread_mutex_lock(&w->lock);
}

/* Each thread that finds more than one sheet wakes another. */
static void *gc_crew_main(void *argument) {
  gc_crew *w = (gc_crew *)argument;
  uint64_t roused = 0;
  (void)pthread_mutex_lock(&w->lock);
  while (!w->stop) {
    const gc_run *r;
    gc_planner *sheet = gc_claim(w, &r);
    if (sheet) {
      if (w->claimed < w->begun) (void)pthread_cond_signal(&w->work);
      gc_plan_sheet(w, sheet, r);
      (void)pthread_cond_signal(&w->done);
    } else if (roused != w->roused) {
      roused = w->roused;
      gc_look_out(w);
    } else {
      (void)pthread_cond_wait(&w->work, &w->lock);
    }
  }
  (void)pthread_mutex_unlock(&w->lock);
  return NULL;
}

/* Wakes all threads, as the last launch of a batch is on its way and another batch may come. */
static void gc_rouse(gc_crew *w) {
  (void)pthread_mutex_lock(&w->lock);
  w->roused++;
  (void)pthread_cond_broadcast(&w->work);
  (void)pthread_mutex_unlock(&w->lock);
}

/* Returns the next sheet, planned: by the caller, if nobody else has begun to. While it waits for another thread, it
 * plans further ones. */
static gc_planner *gc_next_sheet(gc_crew *w) {
  const size_t place = w->taken % GC_SHEETS;
  (void)pthread_mutex_lock(&w->lock);
  while (w->claimed == w->taken || !w->planned[place]) {
    const gc_run *r;
    gc_planner *sheet = gc_claim(w, &r);
    if (sheet) gc_plan_sheet(w, sheet, r);
    else (void)pthread_cond_wait(&w->done, &w->lock);
  }
  (void)pthread_mutex_unlock(&w->lock);
  return &w->sheets[place];
}

/* Leaves a sheet, all of whose queries launches have taken. */
static void gc_leave_sheet(gc_crew *w) {
  (void)pthread_mutex_lock(&w->lock);
  w->taken++;
  if (w->claimed < w->begun) (void)pthread_cond_signal(&w->work);
  (void)pthread_mutex_unlock(&w->lock);
}

/* Announces a batch to the crew. */
static void gc_announce(gc_crew *w, gc_run *r) {
  r->crew = w;
  (void)pthread_mutex_lock(&w->lock);
  w->runs[w->batches % 2] = r;
  w->from[w->batches++ % 2] = w->begun;
  (void)__atomic_add_fetch(&w->begun,
      r->desc.nq / r->piece * r->nsheets + (r->desc.nq % r->piece + r->sheet - 1) / r->sheet, __ATOMIC_RELAXED);
  (void)pthread_mutex_unlock(&w->lock);
  (void)pthread_cond_signal(&w->work);
}

static void gc_crew_close(gc_crew *w) {
  const gpuir_allocator a = w->a;
  unsigned i;
  (void)pthread_mutex_lock(&w->lock);
  w->stop = 1;
  (void)pthread_cond_broadcast(&w->work);
  (void)pthread_mutex_unlock(&w->lock);
  for (i = 0; i < w->n; i++) (void)pthread_join(w->threads[i], NULL);
  for (i = 0; i < GC_SHEETS; i++) gpuir__free(&a, w->sheets[i].draft.memory, w->sheets[i].draft.size);
  (void)pthread_cond_destroy(&w->done);
  (void)pthread_cond_destroy(&w->work);
  (void)pthread_mutex_destroy(&w->lock);
  gpuir__free(&a, w, sizeof *w);
}

/* Makes a crew of `threads` for launches as `like` plans them. Returns NULL without memory, or threads. */
GPUIR__COLD static gc_crew *gc_crew_open(const gc_planner *like, unsigned threads) {
  gc_crew *w = (gc_crew *)gpuir__alloc_zero(&like->a, sizeof *w);
  gpuir_error error;
  unsigned i;
  if (!w) return NULL;
  w->a = like->a;
  if (pthread_mutex_init(&w->lock, NULL) || pthread_cond_init(&w->work, NULL) || pthread_cond_init(&w->done, NULL)) {
    gpuir__free(&like->a, w, sizeof *w);
    return NULL;
  }
  for (i = 0; i < GC_SHEETS; i++) {
    w->sheets[i].cuda = like->cuda;
    w->sheets[i].a = like->a;
    w->sheets[i].engine = like->engine;
    w->sheets[i].most = gc_sizes_of(like->cuda, GC_SHEET);
    if (gc_draft_open(&w->sheets[i], &error)) break;
  }
  for (; i == GC_SHEETS && w->n + 1 < threads && w->n + 1 < GC_CREW; w->n++)
    if (pthread_create(&w->threads[w->n], NULL, gc_crew_main, w)) break;
  if (w->n) return w;
  gc_crew_close(w);
  return NULL;
}

/* Appends a sheet's queries with phrases to a launch's draft; its other numbers stand as they were before. */
static void gc_append_phrases(gc_planner *to, const gc_planner *from) {
  const gc_draft *d = &from->draft;
  const gc_plan *more = &from->plan;
  gc_plan *p = &to->plan;
  gc_draft *all = &to->draft;
  size_t i;
  for (i = 0; i < more->nsought; i++) {
    gc_sought *s = &all->sought[p->nsought + i];
    *s = d->sought[i];
    s->job += (uint32_t)p->njobs;
    s->first_spot += (uint32_t)p->nspots;
    s->first_clause += (uint32_t)p->nclauses;
  }
  for (i = 0; i < more->nclauses; i++) {
    all->clauses[p->nclauses + i] = d->clauses[i];
    all->clauses[p->nclauses + i].first += (uint32_t)p->ntokens;
  }
  memcpy(all->spots + p->nspots, d->spots, more->nspots * sizeof *d->spots);
  memcpy(all->tokens + p->ntokens, d->tokens, more->ntokens);
  p->nsought += more->nsought;
  p->nspots += more->nspots;
  p->nclauses += more->nclauses;
  p->ntokens += more->ntokens;
  p->sought_blocks += more->sought_blocks;
  p->lists = gpuir__max32(p->lists, more->lists);
  p->tokens = gpuir__max32(p->tokens, more->tokens);
}

/* Appends what a sheet has planned to a launch's draft. */
static void gc_append(gc_planner *to, const gc_planner *from) {
  const gc_draft *d = &from->draft;
  const gc_plan *more = &from->plan;
  gc_plan *p = &to->plan;
  gc_draft *all = &to->draft;
  size_t i;
  uint32_t t;
  memcpy(all->terms + p->nterms, d->terms, more->nterms * sizeof *d->terms);
  for (i = 0; i < more->njobs; i++) {
    gc_job *job = &all->jobs[p->njobs + i];
    *job = d->jobs[i];
    job->first_term += (uint32_t)p->nterms;
    if (job->after != GC_NONE) job->after += (uint32_t)p->njobs;
  }
  for (i = 0; i < more->nchunks; i++) {
    gc_chunk *c = &all->chunks[p->nchunks + i];
    *c = d->chunks[i];
    c->job += (uint32_t)p->njobs;
    c->term += (uint32_t)p->nterms;
  }
  for (i = 0; i < more->nq; i++) {
    uint2 *jobs = &all->query_jobs[p->nq + i];
    *jobs = d->query_jobs[i];
    jobs->x += (uint32_t)p->njobs;
    if (jobs->y != GC_NONE) jobs->y += (uint32_t)p->njobs;
  }
  for (i = 0; i < more->nand; i++) all->and_jobs[p->nand + i] = d->and_jobs[i] + (uint32_t)p->njobs;
  for (i = 0; i < more->nor; i++) {
    const gc_job *job = &all->jobs[p->njobs + d->or_jobs[i]];
    all->or_jobs[p->nor + i] = d->or_jobs[i] + (uint32_t)p->njobs;
    for (t = 0; t < job->nterms; t++) all->terms[job->first_term + t].slot += (uint32_t)p->nslots;
  }
  for (i = 0; i < more->nsum; i++) all->sum_jobs[p->nsum + i] = d->sum_jobs[i] + (uint32_t)p->njobs;
  for (i = 0; i < more->nmax; i++) all->max_jobs[p->nmax + i] = d->max_jobs[i] + (uint32_t)p->njobs;
  if (more->nsought) gc_append_phrases(to, from);
  p->nq += more->nq;
  p->njobs += more->njobs;
  p->nterms += more->nterms;
  p->nslots += more->nslots;
  p->nchunks += more->nchunks;
  p->nand += more->nand;
  p->nor += more->nor;
  p->nmax += more->nmax;
  p->nsum += more->nsum;
  p->nthin += more->nthin;
  p->nand_blocks += more->nand_blocks;
  p->max_blocks += more->max_blocks;
}

/* Returns whether a launch can take a sheet too. */
static int gc_fits(const gc_planner *x, const gc_plan *more, size_t most_jobs) {
  const gc_sizes *z = &x->most;
  const gc_plan *p = &x->plan;
  return p->nq + more->nq <= z->queries && p->njobs + more->njobs <= most_jobs &&
      p->nterms + more->nterms <= z->nterms && p->ntokens + more->ntokens <= z->ntokens &&
      p->nslots + more->nslots <= z->nslots && p->nthin + more->nthin <= z->nslots &&
      p->nchunks + more->nchunks <= z->nchunks && !((p->nand_blocks + more->nand_blocks) >> 30) &&
      !((p->max_blocks + more->max_blocks) >> 30) && !((p->sought_blocks + more->sought_blocks) >> 30);
}

/* Returns whether the next sheet is planned. */
static int gc_sheet_is_ready(gc_crew *w) {
  int ready;
  (void)pthread_mutex_lock(&w->lock);
  ready = w->claimed > w->taken && w->planned[w->taken % GC_SHEETS];
  (void)pthread_mutex_unlock(&w->lock);
  return ready;
}

/* Plans a launch of at most `most` queries of a batch by a crew. If the device is idle, it has to do with the sheets
 * that are ready when two have been taken; the batch's first launch with few, so that the device starts. */
static void gc_fill_by_crew(gc_planner *x, gc_run *r, size_t most, int idle) {
  const size_t first = r->next, jobs = gc_most_jobs(&x->most, r);
  gc_crew *w = r->crew;
  memset(&x->plan, 0, sizeof x->plan);
  while (r->next < r->desc.nq) {
    gc_planner *sheet;
    gc_draft *d;
    int full = 0;
    if (idle && r->next - first >= 2 * r->sheet && !gc_sheet_is_ready(w)) break;
    if (idle && !first && r->next >= GC_FIRST_SHEETS * r->sheet) break;
    sheet = gc_next_sheet(w);
    d = &sheet->draft;
    if (r->next > first && (d->next - first > most || !gc_fits(x, &sheet->plan, jobs))) break;
    gc_append(x, sheet);
    gc_settle(sheet, r);
    if (d->next == d->end) gc_leave_sheet(w);
    else gc_plan_some(sheet, r, &full); /* it was full: the rest */
  }
}

/* ---- sending a plan ---- */

/* Copies an array into the staging memory; returns where it will lie on the device. */
static void *gc_stage(gc_track *x, size_t *at, const void *from, size_t n) {
  size_t start = *at;
  memcpy(x->staging + start, from, n);
  *at = (start + n + 15) & ~(size_t)15;
  return x->input + start;
}

/* Appends the AND jobs' turns of one round to the draft: round 0 of the long drivers, all of the others in round 1, and
 * the further rounds of the long ones behind them. */
static void gc_take_turns(const gc_track *x, const gc_plan *p, uint32_t round, uint32_t group, gc_ands *ands) {
  const gc_draft *d = &x->draft;
  const uint32_t first = round > 1 ? 1u << (GC_TURNS - round) : 0;
  const uint32_t step = round ? 1u << (GC_TURNS - round + 1) : 1u << (GC_TURNS - 1);
  size_t i;
  for (i = 0; i < p->nand; i++) {
    gc_job *job = &d->jobs[d->and_jobs[i]];
    const uint32_t some = job->npositive == 1 && job->seed ? 32 : group; /* hardly a block is decoded */
    const uint32_t groups = (d->terms[job->first_term].nblocks - 1) / some + 1;
    const int at_once = groups < GC_TURNS_LEAST || job->npositive == 1;
    gc_turn turn = {d->and_jobs[i], first, step, 0, some};
    if (at_once) turn.first = 0, turn.step = 1;
    else if (some == 1 && groups >= GC_OPENED) turn.opening = ((groups - 1) >> (GC_TURNS - 1)) + 1;
    if (at_once != (round == 1) || turn.first >= groups) continue;
    d->turns[ands->n] = turn;
    d->and_start[ands->n++] = ands->tickets;
    job->tickets = (round > 1 ? job->tickets : 0) + (groups - turn.first - 1) / turn.step + 1;
    ands->tickets += (groups - turn.first - 1) / turn.step + 1;
  }
}

/* Cuts the ANDs' driver blocks into groups, a ticket each. */
static void gc_group_ands(const gc_track *x, const gc_plan *p, gc_ands *ands) {
  const gpuir_cuda *c = x->cuda;
  uint32_t round;
  const uint32_t group = (uint32_t)gpuir__max64(1, gpuir__min64(GC_GROUP, p->nand_blocks / (c->grids.maxs * 64)));
  ands->n = ands->tickets = 0;
  for (round = 0; round <= GC_TURNS; round++) gc_take_turns(x, p, round, group, ands);
  x->draft.and_start[ands->n] = ands->tickets;
}

/* Describes the lists of gc_sum_tiles and stages them; its terms get their slots. */
static void gc_stage_sums(gc_track *x, const gc_plan *p, size_t *at) {
  const gc_slices *to = &x->cuda->slices;
  gc_draft *d = &x->draft;
  gc_sums *b = &x->batch.sums;
  size_t rows = 0, thin = 0, i;
  uint32_t n;
  for (i = 0; i < p->nsum; i++) {
    const gc_job *job = &d->jobs[d->sum_jobs[i]];
    const gc_sum_job sum = {d->sum_jobs[i], (uint32_t)rows, job->nterms, job->after};
    d->sums[i] = sum;
    for (n = job->first_term; n < job->first_term + job->nterms; n++) {
      gc_term *t = &d->terms[n];
      gc_sum_list *row = &d->rows[rows++];
      const uint32_t cut = t->cut, is_long = t->kind == GC_LONG;
      t->slot = cut ? cut - 1 : (uint32_t)thin;
      if (!cut) d->thin[thin++] = n;
      row->at = t->slot * (to->ntiles + 1);
      row->kind_q = t->q | (cut ? 0 : is_long ? 1u << 30 : 2u << 30);
      row->from = is_long ? (uint32_t)(t->first_block * GPUIR__BLOCK) : n;
      row->most = cut ? to->tile : t->df;
    }
  }
  memset(d->rows + rows, 0, 32 * sizeof *d->rows);
  b->jobs = (const gc_sum_job *)gc_stage(x, at, d->sums, p->nsum * sizeof *d->sums);
  b->rows = (const gc_sum_list *)gc_stage(x, at, d->rows, (rows + 32) * sizeof *d->rows);
  b->thin = (const uint32_t *)gc_stage(x, at, d->thin, thin * 4);
  b->n = (uint32_t)p->nsum;
  b->nthin = (uint32_t)thin;
  b->lists = *to;
}

/* Stages the queries with phrases. */
static void gc_stage_phrases(gc_track *x, const gc_plan *p, size_t *at) {
  const gc_draft *d = &x->draft;
  gc_phrases *b = &x->phrases;
  size_t i;
  b->group = (uint32_t)gpuir__max64(1, gpuir__min64(GC_GROUP, p->sought_blocks / (x->cuda->grids.maxs * 64)));
  b->tickets = 0;
  for (i = 0; i < p->nsought; i++) {
    d->sought_start[i] = b->tickets;
    b->tickets += (d->terms[d->jobs[d->sought[i].job].first_term].nblocks - 1) / b->group + 1;
  }
  d->sought_start[i] = b->tickets;
  b->jobs = (const gc_sought *)gc_stage(x, at, d->sought, p->nsought * sizeof *d->sought);
  b->start = (const uint32_t *)gc_stage(x, at, d->sought_start, (p->nsought + 1) * 4);
  b->clauses = (const gc_clause *)gc_stage(x, at, d->clauses, p->nclauses * sizeof *d->clauses);
  b->spots = (const gc_spots *)gc_stage(x, at, d->spots, p->nspots * sizeof *d->spots);
  b->tokens = (const uint8_t *)gc_stage(x, at, d->tokens, p->ntokens);
  b->positions = x->cuda->positions;
  b->n = (uint32_t)p->nsought;
  b->lists = p->lists;
}

#define GC_DOUBT 9.0f /* see gc_maxs */
#ifdef GPUIR_CUDA_SEAM
float gpuir_cuda_seam_doubt[2] = {GC_DOUBT, GC_DOUBT};
#define GC_DOUBT_NOW(i) gpuir_cuda_seam_doubt[i]
#else
#define GC_DOUBT_NOW(i) GC_DOUBT
#endif

/* Stages the plan and the states that jobs begin with, and makes x->batch describe it. Returns the bytes to be
 * sent. */
static size_t gc_stage_plan(gc_track *x, const gc_plan *p, uint32_t k) {
  const gpuir_cuda *c = x->cuda;
  const gc_draft *d = &x->draft;
  gc_batch *b = &x->batch;
  gc_state *states;
  size_t at = 0, i;
  gc_group_ands(x, p, &b->ands);
  if (p->nsum) gc_stage_sums(x, p, &at);
  if (p->nsought) gc_stage_phrases(x, p, &at);
  b->terms = (const gc_term *)gc_stage(x, &at, d->terms, p->nterms * sizeof *d->terms);
  b->jobs = (const gc_job *)gc_stage(x, &at, d->jobs, p->njobs * sizeof *d->jobs);
  b->query_jobs = (const uint2 *)gc_stage(x, &at, d->query_jobs, p->nq * sizeof *d->query_jobs);
  x->letter = at;
  b->ands.turns = (const gc_turn *)gc_stage(x, &at, d->turns, b->ands.n * sizeof *d->turns);
  b->ands.start = (const uint32_t *)gc_stage(x, &at, d->and_start, ((size_t)b->ands.n + 1) * 4);
  b->ors.chunks = (const gc_chunk *)gc_stage(x, &at, d->chunks, p->nchunks * sizeof *d->chunks);
  b->ors.jobs = (const uint32_t *)gc_stage(x, &at, d->or_jobs, p->nor * 4);
  b->ors.n = (uint32_t)p->nor;
  b->ors.nchunks = (uint32_t)p->nchunks;
  b->ors.grab = p->nor >= 64 ? 4 : 1;
  b->maxs.jobs = (const uint32_t *)gc_stage(x, &at, d->max_jobs, p->nmax * 4);
  b->maxs.n = (uint32_t)p->nmax;
  b->maxs.most = (uint32_t)p->nterms;
  b->maxs.parts = p->max_blocks < c->grids.maxs * 64 ? 4 : 1;
  b->maxs.doubt[0] = GC_DOUBT_NOW(0);
  b->maxs.doubt[1] = GC_DOUBT_NOW(1);
  b->raised = p->nq > GC_UNRAISED(k);
  b->alone = 0;
  b->maxs.group = (uint32_t)gpuir__max64(1, gpuir__min64(GC_GROUP, p->max_blocks / (c->grids.maxs * 64)));
  b->room = (uint32_t)gpuir__min64(x->most.ncand / p->njobs, gpuir__max64(65536, 16 * (uint64_t)k)) & ~1u;
  b->out_stride = 2 + 2 * k;
  memset(x->staging + at, 0, sizeof(gc_control) + p->njobs * sizeof(gc_state));
  b->control = (gc_control *)(x->input + at);
  at += sizeof(gc_control);
  b->states = (gc_state *)(x->input + at);
  states = (gc_state *)(x->staging + at);
  for (i = 0; i < p->njobs; i++)
    if (d->jobs[i].seed) states[i].floor = ((unsigned long long)d->jobs[i].seed << 32) - 1;
  return at + p->njobs * sizeof(gc_state);
}

/* ========================
 * [cuda-14-launch]  host: launches, some at a time in a searcher, and their hits
 *
 * A searcher has three tracks, each with a stream and memory for one launch. A batch is cut into launches, as many as
 * its size asks for; each is planned, sent in one transfer and run by the kernels, all without waiting; while some are
 * in flight the next is planned, of the same batch or of the next one. gc_max is most of an OR's launch and takes the
 * whole device: the kernels around it go ahead of another launch's, so that of three launches one is prepared when it
 * ends. Batches are served in the order in which they began. Only gc_finish waits.
 *
 * Uses      [cuda-06-or] to [cuda-09-memory], [cuda-11-cache] to [cuda-13-plan].
 * Start at  gc_begin, gc_poll, gc_finish; gc_fly (fills free tracks), gc_land (hands out hits); gc_attach.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_BRIEF 2u /* queries at most whose plan is a kernel's parameter: see gc_letter */
#define GC_BATCH 1024u /* queries a launch at most, unless the program says otherwise */
#define GC_TRACKS 3u /* launches of a searcher in flight at most; */
#define GC_TRACKS_FEW 2u /* of a team's member, as what it takes later is levelled better, and of one beside a cache */

/* What an attached searcher owns. */
typedef struct gc_context {
  gpuir_cuda *cuda;
  gpuir_allocator a;
  gc_track tracks[GC_TRACKS];
  unsigned ntracks; /* those behind the first are made when they are first needed, */
  unsigned most_tracks; /* but no more than these */
  unsigned threads; /* that may plan */
  gc_crew *crew; /* made when it is first needed */
  gc_run runs[2];
  uint64_t batches, launches; /* begun */
} gc_context;

/* ---- kernels of a launch ---- */

/* Puts a kernel into a track's stream. In a small launch the gaps between kernels are much of the time: there each
 * starts while the one before ends, and waits in gc_chained. In a large one, or in one of ORs beside another, it would
 * take the place of others (16 ORs, two such calls in flight: 203 us a call, not 145); there it has a priority. */
template <typename... Parameters>
static void gc_start_at(const gc_track *x, int priority, void (*kernel)(Parameters...), size_t grid, unsigned threads,
    size_t shared, Parameters... parameters) {
  cudaLaunchConfig_t how;
  cudaLaunchAttribute attribute;
  memset(&how, 0, sizeof how);
  memset(&attribute, 0, sizeof attribute);
  if (x->chained) {
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
  } else {
    attribute.id = cudaLaunchAttributePriority;
    attribute.val.priority = priority;
  }
  how.gridDim = dim3((unsigned)grid);
  how.blockDim = dim3(threads);
  how.dynamicSmemBytes = shared;
  how.stream = x->stream;
  how.attrs = &attribute;
  how.numAttrs = 1;
  (void)cudaLaunchKernelEx(&how, kernel, parameters...);
}

/* Likewise, ahead of other launches' gc_max. */
template <typename... Parameters>
static void gc_start(const gc_track *x, void (*kernel)(Parameters...), size_t grid, unsigned threads, size_t shared,
    Parameters... parameters) {
  gc_start_at(x, x->cuda->ahead, kernel, grid, threads, shared, parameters...);
}

/* Returns whether gc_and_guided also writes the hits of all queries of a launch. */
static int gc_settles(const gc_track *x, const gc_plan *p, uint32_t k) {
  return p->nand && p->nq == p->njobs && p->nq > GC_SMALL && k <= GC_K_SETTLED && x->cuda->aids;
}

/* Launches the kernel of the ANDs; queries: 0, or of how many it writes the hits. */
static void gc_launch_ands(const gc_track *x, size_t queries) {
  const gpuir_cuda *c = x->cuda;
  const gc_batch *b = &x->batch;
  const uint64_t blocks = gpuir__max64(((uint64_t)b->ands.tickets + 7) / 8, queries);
  if (c->aids)
    gc_start(x, gc_and_guided, gpuir__min64(blocks, c->grids.guided), GC_GUIDED_THREADS, 0, c->view, *b,
        (uint32_t)queries);
  else gc_start(x, gc_and_decoding, gpuir__min64(blocks, c->grids.ands), GC_AND_THREADS, 0, c->view, *b);
}

/* Launches the kernels of MaxScore; of a rerun the floors are known already. */
static void gc_launch_maxs(const gc_track *x, const gc_plan *p, int rerun) {
  const gpuir_cuda *c = x->cuda;
  const gc_batch *b = &x->batch;
  const uint64_t most = c->grids.maxs, warps = GC_GUIDED_THREADS / 32;
  gc_start(x, gc_max_plan, p->nmax, GC_FINAL_THREADS, 0, c->view, *b, rerun);
  gc_start_at(x, 0, gc_max, gpuir__min64((p->max_blocks * b->maxs.parts + warps - 1) / warps, most), GC_GUIDED_THREADS,
      0, c->view, *b);
}

/* Launches the kernels of the tiles; of a rerun their bounds and order are known already. */
static void gc_launch_ors(const gc_track *x, const gc_plan *p, int rerun) {
  const gpuir_cuda *c = x->cuda;
  const gc_view *v = &c->view;
  const gc_batch *b = &x->batch;
  if (!rerun) {
    gc_start(x, gc_tiles, gpuir__min64(p->nchunks, (uint64_t)c->processors * 8), 256, 0, *v, *b, c->expanded);
    gc_start(x, gc_order, p->nor, 256, 0, *v, *b);
  }
  gc_start(x, c->expanded ? gc_or<true> : gc_or<false>, gpuir__min64((uint64_t)p->nor * v->ntiles, c->grids.ors),
      GC_OR_THREADS(c->expanded), gc_tile_bytes(v->tile), *v, *b);
}

/* Returns the word of a track's bell, behind its pinned memory for hits. */
static uint32_t *gc_bell_word(const gc_track *x) { return x->out + x->out_size / 4; }

/* Has the next kernel ring the bell. */
static gc_bell gc_hang_bell(gc_track *x) {
  const gc_bell bell = {x->batch.out + x->out_size / 4, ++x->rung};
  x->rings = 1;
  return bell;
}

/* Starts gc_receive, with a staged plan of `size` bytes. */
static void gc_post(gc_track *x, size_t size, uint64_t nbounds) {
  gc_letter letter;
  const uint64_t threads = gpuir__max64(nbounds / 4, size / 16 + 1);
  memcpy(&letter, x->staging, size);
  gc_start(x, gc_receive, gpuir__min64((threads + 255) / 256, x->cuda->processors), 256, 0, letter, (uint4 *)x->input,
      (uint32_t)((size + 15) / 16), x->batch.ors.bound, nbounds);
}

/* Returns whether gc_alone can answer a launch whose plan has been staged. */
static int gc_is_alone(const gc_track *x, const gc_plan *p, uint32_t k) {
  return p->njobs == 1 && p->nq == 1 && p->nand + p->nmax == 1 && !p->nsought && k <= GC_RANKED && x->cuda->aids &&
      !x->cuda->cache && x->letter <= GC_LETTER;
}

#define GC_TRIED_BLOCKS 512u /* of an AND's driver that is worth trying */

/* Chooses how an AND is tried. A floor out of x of the m matches that are likely leaves k * m / x of them: with x near
 * the root of k * m the fewest are kept in all. An eighth of the driver's documents may match, however few would if
 * terms came by chance. */
static void gc_try_some_ands(const gc_track *x, unsigned grid, gc_errand *errand) {
  const gc_job *job = x->draft.jobs;
  const gc_term *terms = x->draft.terms + job->first_term;
  const double blocks = terms[0].nblocks;
  double matches = terms[0].df;
  uint32_t i;
  errand->tries = job->seed != 0;
  if (job->count || job->npositive == 1 || terms[0].nblocks < GC_TRIED_BLOCKS) return;
  for (i = 1; i < job->npositive; i++) matches *= (double)terms[i].df / x->cuda->view.documents;
  if (matches < terms[0].df / 8.0) matches = terms[0].df / 8.0;
  errand->tries = (uint32_t)gpuir__min64(grid, (uint64_t)(blocks * sqrt(job->k / matches)) + 1);
  errand->tries = gpuir__min32(errand->tries, terms[0].nblocks / 2);
  errand->step = terms[0].nblocks / errand->tries;
}

/* Chooses how an OR is tried: half as many blocks of each further list at most. */
static void gc_try_some_ors(const gc_track *x, unsigned grid, gc_errand *errand) {
  const gc_job *job = x->draft.jobs;
  const gc_term *terms = x->draft.terms + job->first_term;
  uint32_t share = (uint32_t)gpuir__min64(GC_TRIES, gpuir__min64((uint64_t)x->cuda->processors, grid)) / 2, i;
  for (i = 0; i < GC_LAYERS && i < job->npositive && (job->npositive > 1 || !job->seed); i++, share /= 2)
    errand->tries += errand->take[i] = gpuir__min32(terms[i].nblocks, share);
  if (!errand->tries) errand->tries = 1;
}

/* Describes a query alone to a kernel of so many blocks of threads. */
static gc_errand gc_errand_of(gc_track *x, const gc_plan *p, unsigned grid) {
  gc_batch *b = &x->batch;
  gc_errand errand;
  memset(&errand, 0, sizeof errand);
  errand.desk = x->desk;
  errand.from = x->input;
  errand.size = (uint32_t)((x->letter + 15) / 16);
  errand.bell = gc_hang_bell(x);
  if (p->nand) gc_try_some_ands(x, grid, &errand);
  else gc_try_some_ors(x, grid, &errand);
  b->control = &x->desk->control;
  b->states = &x->desk->state;
  b->alone = 1;
  return errand;
}

/* Starts gc_alone. */
static int gc_launch_alone(gc_track *x, const gc_plan *p, gpuir_error *err) {
  const unsigned most = x->cuda->grids.alone;
  const gc_errand errand = gc_errand_of(x, p, most);
  const uint64_t blocks = gpuir__max64(p->nand ? p->nand_blocks : p->max_blocks, errand.tries);
  gc_letter letter;
  static_assert(sizeof(gc_view) + sizeof(gc_batch) + sizeof letter + sizeof errand <= 4096, "parameters");
  x->chained = 0;
  memcpy(&letter, x->staging, x->letter);
  gc_start(x, gc_alone, gpuir__min64(blocks, most), GC_GUIDED_THREADS, 0, x->cuda->view, x->batch, letter, errand);
  GC_TRY(cudaGetLastError(), "launching kernels");
  return GPUIR_OK;
}

/* Returns whether gc_prompt can answer a launch. */
static int gc_is_prompt(const gc_track *x, const gc_plan *p, uint32_t k) {
  const gc_job *job = x->draft.jobs;
  const gc_term *driver = x->draft.terms + job->first_term;
  const gpuir_cuda *c = x->cuda;
  if (p->njobs != 1 || p->nq != 1 || p->nand != 1 || p->nsought || k > GC_PROMPT_K || !c->expanded || c->cache)
    return 0;
  if (job->count || !job->stored || job->nterms < 2 || job->nterms > GC_PROMPT_TERMS) return 0;
  if (c->info.compute_capability < 90) return 0;
  return job->expanded ? driver->nblocks <= GC_PROMPT_BLOCKS : driver->kind != GC_LONG;
}

/* Starts gc_prompt, by as many blocks of threads as have work for their warps. */
static void gc_start_prompt(const gc_track *x) {
  gc_request request;
  cudaLaunchConfig_t how;
  cudaLaunchAttribute cluster;
  const gc_job *job = x->draft.jobs;
  const gc_term *terms = x->draft.terms + job->first_term;
  const uint32_t groups = (terms->df + GC_PAIRS - 1) / GC_PAIRS;
  unsigned blocks = 1;
  while (job->expanded && blocks < GC_PROMPT_CLUSTER && blocks * GC_PROMPT_WARPS < groups * (job->nterms - 1))
    blocks *= 2;
  request.job = *job;
  request.lines = x->device_lines;
  request.number = x->rung;
  request.share = (groups + blocks - 1) / blocks;
  memcpy(request.terms, terms, job->nterms * sizeof *terms);
  memset(&how, 0, sizeof how);
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = blocks;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  how.gridDim = dim3(blocks);
  how.blockDim = dim3(GC_PROMPT_THREADS);
  how.stream = x->stream;
  how.attrs = &cluster;
  how.numAttrs = blocks > 1;
  (void)cudaLaunchKernelEx(&how, job->expanded ? gc_prompt<false> : gc_prompt<true>, x->cuda->view, request);
}

#ifdef GPUIR_CUDA_SEAM
long gpuir_cuda_seam_prompts; /* launches of gc_prompt */
#define GC_COUNT_PROMPT() ((void)++gpuir_cuda_seam_prompts)
#else
#define GC_COUNT_PROMPT() ((void)0)
#endif

static int gc_launch_prompt(gc_track *x, gpuir_error *err) {
  x->rings = 1;
  x->alone = x->chained = 0;
  x->rung++;
  GC_COUNT_PROMPT();
  gc_start_prompt(x);
  GC_TRY(cudaGetLastError(), "launching kernels");
  return GPUIR_OK;
}

/* Returns whether both halves of a line have come. */
static int gc_line_there(const gc_line *line, uint32_t number) {
  return __atomic_load_n(&line->number, __ATOMIC_ACQUIRE) == number &&
      __atomic_load_n(&line->also, __ATOMIC_ACQUIRE) == number;
}

/* Returns whether all that gc_prompt writes has come. */
static int gc_lines_there(const gc_track *x) {
  uint32_t n, i;
  if (!gc_line_there(x->lines, x->rung)) return 0;
  n = x->lines->doc == GC_NONE ? 0 : x->lines->doc;
  for (i = 1; i <= n; i++)
    if (!gc_line_there(x->lines + i, x->rung)) return 0;
  return 1;
}

/* Puts the hits where other launches' kernels do. */
static void gc_take_lines(gc_track *x) {
  uint32_t i;
  x->out[0] = x->lines->doc;
  for (i = 0; x->out[0] != GC_NONE && i < x->out[0]; i++) {
    x->out[2 + 2 * i] = x->lines[1 + i].doc;
    x->out[3 + 2 * i] = x->lines[1 + i].score;
  }
}

/* Launches the kernels of the ORs whose postings are all added up. */
static void gc_launch_sums(const gc_track *x, const gc_plan *p, int rerun) {
  const gpuir_cuda *c = x->cuda;
  if (!rerun && p->nthin) gc_start(x, gc_places, p->nthin * GC_SUM_PARTS, 256, 0, c->view, x->batch);
  gc_start(x, gc_sum_tiles, gpuir__min64((uint64_t)p->nsum * c->slices.ntiles, c->grids.sums), GC_SUM_THREADS,
      (size_t)c->slices.tile * 4, c->view, x->batch);
}

/* Launches the kernel of the queries with phrases. */
static void gc_launch_phrases(const gc_track *x, const gc_plan *p) {
  const uint32_t bytes = (uint32_t)gc_phrase_bytes(p->lists, p->tokens), warps = GC_PHRASE_THREADS / 32;
  const uint64_t most = gpuir__max64(1, gpuir__min64(x->cuda->phrase_room / (warps * bytes + 1024), 16));
  gc_start(x, gc_phrase_all, gpuir__min64((x->phrases.tickets + warps - 1) / warps, most * x->cuda->processors),
      GC_PHRASE_THREADS, warps * bytes, x->cuda->view, x->batch, x->phrases, bytes);
}

/* Puts all kernels of a plan into the stream. */
static int gc_launch(gc_track *x, const gc_plan *p, uint32_t k, int rerun, gpuir_error *err) {
  const gc_bell none = {NULL, 0};
  const int settles = gc_settles(x, p, k);
  size_t size = GC_RANKED;
  x->rings = 0;
  if (rerun) GC_TRY(cudaMemsetAsync(x->batch.control, 0, sizeof(gc_control), x->stream), "clearing counters");
  if (p->nand && !settles) gc_launch_ands(x, 0);
  if (p->nmax) gc_launch_maxs(x, p, rerun);
  if (p->nor) gc_launch_ors(x, p, rerun);
  if (p->nsum) gc_launch_sums(x, p, rerun);
  if (p->nsought) gc_launch_phrases(x, p);
  while (size < k) size *= 2;
  if (settles) gc_launch_ands(x, p->nq);
  else
    gc_start(x, gc_final, p->nq, GC_FINAL_THREADS, size * 8, x->cuda->view, x->batch,
        p->nq == 1 ? gc_hang_bell(x) : none);
  GC_TRY(cudaGetLastError(), "launching kernels");
  return GPUIR_OK;
}

/* ---- tracks ---- */

GPUIR__COLD static void gc_track_close(gc_track *x) {
  const gpuir_allocator a = x->a;
  gc_stream_close(x->stream);
  if (x->cuda->cache) gc_carrier_close(x->cuda, &x->by);
  if (x->sent) (void)cudaEventDestroy(x->sent);
  __atomic_fetch_sub(&x->cuda->info.used_memory, x->device_bytes, __ATOMIC_RELAXED);
  (void)cudaFree(x->input);
  (void)cudaFree(x->desk);
  (void)cudaFree(x->batch.ors.first);
  (void)cudaFree(x->batch.ors.bound);
  (void)cudaFree(x->batch.ors.order);
  (void)cudaFree(x->batch.ors.total);
  (void)cudaFree(x->batch.cand);
  (void)cudaFree(x->batch.sums.first);
  (void)cudaFree(x->batch.maxs.drives);
  (void)cudaFree(x->batch.maxs.drive_start);
  (void)cudaFreeHost(x->staging);
  (void)cudaFreeHost(x->out);
  (void)cudaGetLastError();
  gpuir__free(&a, x->draft.memory, x->draft.size);
  memset(x, 0, sizeof *x);
}

/* Allocates device memory of a track's own. */
static int gc_track_take(gc_track *x, size_t n, void **p, gpuir_error *err) {
  int status = gc_take(x->cuda, n, p, err);
  if (!status) x->device_bytes += n ? n : 1;
  return status;
}

#define GC_LINES (1 + GC_PROMPT_K)

/* Gives a track its stream and memory, for launches of at most these sizes. What fails is freed by gc_track_close. */
GPUIR__COLD static int gc_track_open(gc_track *x, const gc_sizes *most, gpuir_error *err) {
  gc_batch *b = &x->batch;
  const gc_sizes *z = &x->most;
  size_t slots, jobs, lines;
  int s;
  x->most = *most;
  s = gc_draft_open(x, err);
  if (!s) s = gc_stream_open(&x->stream, x->cuda->ahead, err);
  if (!s && x->cuda->cache) s = gc_carrier_open(x->cuda, &x->by, err);
  if (s) return s;
  x->out_size = (size_t)gpuir__max64((2 + 2 * (uint64_t)GC_K_MOST) * 4, gpuir__min64(z->queries * 8192, 16u << 20));
  GC_TRY(cudaMallocHost((void **)&x->staging, (size_t)z->staging), "allocating pinned memory");
  lines = (x->out_size + 64 + 127) / 128 * 128;
  GC_TRY(cudaHostAlloc((void **)&x->out, lines + GC_LINES * sizeof *x->lines, cudaHostAllocMapped),
      "allocating pinned memory");
  GC_TRY(cudaHostGetDevicePointer((void **)&b->out, x->out, 0), "mapping pinned memory");
  x->lines = (gc_line *)(x->out + lines / 4);
  x->device_lines = (gc_line *)(b->out + lines / 4);
  memset(x->lines, 0, GC_LINES * sizeof *x->lines);
  GC_TRY(cudaEventCreateWithFlags(&x->sent, cudaEventDisableTiming), "creating an event");
  slots = (size_t)(z->nslots * z->tiles * 4);
  jobs = (size_t)(z->njobs * z->tiles * 4);
  *gc_bell_word(x) = 0;
  s = gc_track_take(x, (size_t)z->staging, (void **)&x->input, err);
  if (!s) s = gc_track_take(x, sizeof *x->desk, (void **)&x->desk, err);
  if (!s) s = gc_track_take(x, slots, (void **)&b->ors.first, err);
  if (!s) s = gc_track_take(x, slots, (void **)&b->ors.bound, err);
  if (!s) s = gc_track_take(x, jobs, (void **)&b->ors.order, err);
  if (!s && x->cuda->slices.ntiles)
    s = gc_track_take(x, (size_t)z->nslots * (x->cuda->slices.ntiles + 1) * 4, (void **)&b->sums.first, err);
  if (!s) s = gc_track_take(x, jobs, (void **)&b->ors.total, err);
  if (!s) s = gc_track_take(x, (size_t)z->ncand * 8, (void **)&b->cand, err);
  if (!s) s = gc_track_take(x, z->ndrives * sizeof *b->maxs.drives, (void **)&b->maxs.drives, err);
  if (!s) s = gc_track_take(x, z->ndrives * 4, (void **)&b->maxs.drive_start, err);
  if (s) return s;
  x->dirty = 1;
  return GPUIR_OK;
}

/* Makes a searcher's next track, if the bound leaves as much again beside all of them. Returns 0 if that is not so, or
 * a call fails: then those that there are do. */
static int gc_add_track(gc_context *x) {
  const gc_track *first = &x->tracks[0];
  gc_track *track = &x->tracks[x->ntracks];
  gpuir_error error;
  if (first->most.device > gc_left(x->cuda) / (2 * x->ntracks)) return 0;
  track->cuda = x->cuda;
  track->a = x->a;
  track->engine = first->engine;
  if (gc_track_open(track, &first->most, &error)) {
    gc_track_close(track);
    return 0;
  }
  x->ntracks++;
  return 1;
}

/* ---- landing a launch ---- */

#ifdef GPUIR_CUDA_SEAM
int gpuir_cuda_seam_looks; /* 1: launches are looked at when they have ended */
uint64_t gpuir_cuda_seam_left; /* candidates that they have left in their buffers */

/* Counts the candidates that a launch has left in its buffer, if a test wants to know. */
static void gc_look_for_left(const gc_track *x) {
  const size_t n = x->most.ncand;
  unsigned long long *cand = gpuir_cuda_seam_looks ? (unsigned long long *)gpuir__alloc(&x->a, n * 8) : NULL;
  size_t i;
  if (!cand) return;
  (void)cudaMemcpyAsync(cand, x->batch.cand, n * 8, cudaMemcpyDeviceToHost, x->stream);
  (void)cudaStreamSynchronize(x->stream);
  for (i = 0; i < n; i++) gpuir_cuda_seam_left += cand[i] != 0;
  gpuir__free(&x->a, cand, n * 8);
}
#else
#define gc_look_for_left(x) ((void)0)
#endif

/* Ends a launch: the queries that wait for it fail with a status, if that is not 0. */
static void gc_end(gc_track *x, int status, const gpuir_error *err) {
  gc_flight *f = &x->flight;
  gc_run *r = f->run;
  size_t i;
  if (status) { /* it may still use the lists */
    (void)cudaStreamSynchronize(x->stream);
    (void)cudaGetLastError();
  } else {
    x->dirty = 0;
    gc_look_for_left(x);
  }
  for (i = f->first; status && i < f->end; i++)
    if (r->desc.counts[i] == GC_NONE) gc_fail_query(r, i, status, err);
  gc_cache_release(x->cuda, &x->held);
  __atomic_fetch_add(&x->cuda->info.batches, 1, __ATOMIC_RELAXED);
  f->run = NULL;
}

/* ---- taking off ---- */

#define GC_FIRST_QUERIES (GC_FIRST_SHEETS * GC_SHEET) /* of a batch's first launch, for which the device waits */

/* Returns how many of such queries fill the device, of ANDs fewer than of others, by a look at some of them. */
static size_t gc_piece_most(const gpuir_query *const *queries, size_t n) {
  const size_t some = (size_t)gpuir__min64(n, 16);
  size_t ands = 0, i;
  for (i = 0; i < some; i++) ands += queries[i]->mode == GPUIR_AND;
  return 2 * ands > some ? GC_BATCH / 2 : GC_BATCH;
}

/* Returns the track whose launch began first; NULL: nothing is in flight. */
static gc_track *gc_first_track(gc_context *x) {
  gc_track *first = NULL;
  unsigned i;
  for (i = 0; i < x->ntracks; i++) {
    gc_track *t = &x->tracks[i];
    if (t->flight.run && (!first || t->flight.number < first->flight.number)) first = t;
  }
  return first;
}

/* Returns whether several threads may plan. Batches of a cache are planned by one: they take places in it in turn. */
static int gc_may_hire(const gc_context *x) {
  return x->threads > 1 && !x->cuda->cache && x->cuda->threshold == UINT64_MAX;
}

/* Chooses how many queries a launch of a batch takes: all launches of it about as many. Unless the next batch is there
 * to be planned, a large one is halved, so that its second half is planned while the first one runs. Of ANDs fewer fill
 * the device. Measured on an H200, 8.84 million documents, in thousands of queries/s, by launches of 256, 512 and
 * 1,024: batches of 8,000: AND 808, 823, 719, pruned OR 287, 344, 381; of 1,000: AND 718, 789, 641, pruned OR (not
 * measured), 318, 310. With the ANDs' later kernels and 25.2 million documents, batches of 8,000 by launches of 512,
 * 1,000 and 2,048: AND 1,086, 1,082, 1,058. */
static size_t gc_piece(gc_context *x, const gpuir_batch_desc *d) {
  const gpuir_cuda *c = x->cuda;
  const int idle = !gc_first_track(x);
  const size_t most = gc_piece_most(d->queries, d->nq);
  const size_t n =
      d->nq - (idle && d->nq > most && gc_may_hire(x) ? GC_FIRST_QUERIES : 0); /* behind the first launch */
  size_t pieces = (n + most - 1) / most;
  if (!c->by_itself) return c->batch;
  if (pieces == 1 && idle && n > c->batch / 2) pieces = 2;
  return (n + pieces - 1) / pieces;
}

/* Adds the time since `start` to a counter of what a caller's thread spends; returns what time it is. start 0: a small
 * batch, which is not timed. */
static uint64_t gc_spent(uint64_t *counter, uint64_t start) {
  uint64_t now;
  if (!start) return 0;
  now = gpuir__now();
  __atomic_fetch_add(counter, now - start, __ATOMIC_RELAXED);
  return now;
}

static uint64_t gc_timed(const gc_run *r) { return r->desc.nq > GC_SMALL ? gpuir__now() : 0; }

/* Plans the next launch of a batch; idle: 1 if the device waits for it. *full: the next query found no room for its
 * lists. */
static void gc_fill(gc_track *x, gc_run *r, int idle, int *full) {
  const size_t room = (size_t)gpuir__min64(r->piece, x->out_size / ((2 + 2 * (size_t)r->k) * 4));
  const size_t left = r->desc.nq - r->next, grain = r->crew ? r->sheet : 1;
  const size_t even = (left - 1) / ((left - 1) / room + 1) + 1; /* all launches of what is left about as many */
  const size_t most = (size_t)gpuir__min64(room, (even - 1) / grain * grain + grain);
  gc_flight *f = &x->flight;
  memset(f, 0, sizeof *f);
  f->first = r->next;
  f->count = r->desc.count;
  f->idle = idle;
  if (r->crew) {
    gc_fill_by_crew(x, r, most, idle);
  } else {
    x->draft.next = r->next;
    x->draft.end = r->next + (size_t)gpuir__min64(left, most);
    gc_plan_some(x, r, full);
    gc_settle(x, r);
  }
  f->plan = x->plan;
  f->end = r->next;
}

/* Sends the plan of a track and starts its kernels, or the one kernel that does if it may be `alone`. */
static int gc_send(gc_track *x, const gc_run *r, int alone, gpuir_error *err) {
  const gc_plan *p = &x->flight.plan;
  gc_cache *cache = x->cuda->cache;
  size_t size;
  x->prompt = alone && gc_is_prompt(x, p, r->k);
  if (x->prompt && !x->dirty) return gc_launch_prompt(x, err);
  x->prompt = 0;
  size = gc_stage_plan(x, p, r->k);
  x->chained = x->cuda->info.compute_capability >= 90 && p->nq <= GC_SMALL && (x->flight.idle || !p->nmax);
  x->alone = alone && gc_is_alone(x, p, r->k);
  if (cache) { /* the launch waits for the lists that are on their way */
    GC_TRY(cudaEventRecord(x->sent, cache->stream), "waiting for lists");
    GC_TRY(cudaStreamWaitEvent(x->stream, x->sent, 0), "waiting for lists");
  }
  if (x->dirty) {
    GC_TRY(cudaMemsetAsync(x->batch.cand, 0, x->most.ncand * 8, x->stream), "clearing candidates");
    GC_TRY(cudaMemsetAsync(x->desk, 0, sizeof *x->desk, x->stream), "clearing states");
  }
  x->dirty = 1;
  if (x->alone) return gc_launch_alone(x, p, err);
  if (p->nq <= GC_BRIEF && size <= sizeof(gc_letter)) {
    gc_post(x, size, p->nor ? p->nslots * (x->cuda->view.ntiles + 1) : 0);
    return gc_launch(x, p, r->k, 0, err);
  }
  if (p->nor)
    GC_TRY(cudaMemsetAsync(x->batch.ors.bound, 0, p->nslots * (x->cuda->view.ntiles + 1) * 4, x->stream),
        "clearing bounds");
  GC_TRY(cudaMemcpyAsync(x->input, x->staging, size, cudaMemcpyHostToDevice, x->stream), "sending queries");
  return gc_launch(x, p, r->k, 0, err);
}

/* Plans and starts a launch in a free track. Returns 0 if the next query found no room for its lists, beside those that
 * are held. */
static int gc_take_off(gc_context *x, gc_track *track, gc_run *r) {
  uint64_t start = gc_timed(r);
  gpuir_error error;
  int full = 0, status;
  gc_fill(track, r, !gc_first_track(x), &full);
  start = gc_spent(&x->cuda->info.plan_ns, start);
  if (!track->flight.plan.nq) {
    gc_cache_release(x->cuda, &track->held);
    return !full;
  }
  if (!gc_cache_await(x->cuda->cache, &track->held)) { /* once more: now this searcher will bring it */
    gc_cache_release(x->cuda, &track->held);
    r->next = track->flight.first;
    return 1;
  }
  track->flight.run = r;
  track->flight.number = ++x->launches;
  status = gc_send(track, r, 1, &error);
  if (r->crew && r->next == r->desc.nq) gc_rouse(r->crew);
  (void)gc_spent(&x->cuda->info.send_ns, start);
  if (status) gc_end(track, status, &error);
  return 1;
}

/* Returns the batch whose turn it is to be planned; NULL: none has queries left. */
static gc_run *gc_next_run(gc_context *x) {
  gc_run *a = &x->runs[0], *b = &x->runs[1];
  if (!a->number || a->next == a->desc.nq) a = NULL;
  if (!b->number || b->next == b->desc.nq) b = NULL;
  return a && b ? (a->number < b->number ? a : b) : a ? a : b;
}

/* Returns a track that is free, or NULL. */
static gc_track *gc_free_track(gc_context *x) {
  unsigned i;
  for (i = 0; i < x->ntracks; i++)
    if (!x->tracks[i].flight.run) return &x->tracks[i];
  if (x->ntracks == x->most_tracks) return NULL;
  if (gc_add_track(x)) return &x->tracks[i];
  x->most_tracks = x->ntracks;
  return NULL;
}

/* Returns the number of lists that this searcher holds. */
static uint64_t gc_own_holds(const gc_context *x) {
  uint64_t n = 0;
  unsigned i;
  for (i = 0; i < x->ntracks; i++) n += x->tracks[i].held.n;
  return n;
}

/* Fills free tracks with what waits. Returns NULL, or the batch whose next query finds no room, as long as other
 * searchers hold lists; *held: what to wait for. */
static gc_run *gc_fly(gc_context *x, const gc_holds **held) {
  gc_run *r;
  gc_track *track;
  while ((r = gc_next_run(x)) && (track = gc_free_track(x))) {
    gpuir_error error;
    if (gc_take_off(x, track, r)) continue;
    *held = &track->held;
    if (gc_own_holds(x)) return NULL; /* its own launch will make room */
    if (track->held.pins) return r;
    (void)gpuir__fail(&error, GPUIR_E_NOMEM, 0, "CUDA: the lists of a query need more memory than is allowed");
    gc_fail_query(r, r->next++, GPUIR_E_NOMEM, &error);
  }
  return NULL;
}

/* ---- landing ---- */

/* Hands out the hits of a launch; queries that have asked for another run, but shall have none, get `status`. */
static void gc_deliver(gc_track *x, int status, const gpuir_error *err) {
  const gc_flight *f = &x->flight;
  gc_run *r = f->run;
  const uint32_t *out = x->out;
  size_t i;
  for (i = f->first; i < f->end; i++) {
    if (r->desc.counts[i] != GC_NONE) continue;
    if (out[0] == GC_NONE) {
      gc_fail_query(r, i, status, err);
    } else {
      r->desc.counts[i] = r->desc.count ? out[1] : gpuir__min32(out[0], r->k);
      if (!r->desc.count)
        memcpy(r->desc.hits + i * r->desc.k, out + 2, (size_t)r->desc.counts[i] * sizeof *r->desc.hits);
      r->left--;
    }
    out += x->batch.out_stride;
  }
}

/* Returns what stops all queries of a launch that ask for another run; 0: some may go on. */
static int gc_all_stopped(const gc_track *x, gpuir_error *err) {
  const gc_run *r = x->flight.run;
  const uint64_t now = gc_now(r);
  const uint32_t *out = x->out;
  int status = GPUIR_OK;
  size_t i;
  for (i = x->flight.first; i < x->flight.end; i++) {
    if (r->desc.counts[i] != GC_NONE) continue;
    if (out[0] == GC_NONE) {
      status = gc_stopped(r, i, now, err);
      if (!status) return GPUIR_OK;
    }
    out += x->batch.out_stride;
  }
  return status;
}

/* Starts a launch again whose queries have lost candidates. Returns 0 if none did, or there shall be no other run: then
 * *status and *err say why. */
static int gc_again(gc_track *x, int *status, gpuir_error *err) {
  gc_flight *f = &x->flight;
  size_t i;
  *status = GPUIR_OK;
  for (i = 0; i < f->plan.nq && x->out[i * x->batch.out_stride] != GC_NONE; i++) {}
  if (i == f->plan.nq) return 0;
  *status = gc_all_stopped(x, err);
  if (!*status && ++f->tries == 64)
    *status = gpuir__fail(err, GPUIR_E_BACKEND, 0, "CUDA: too many candidates share one score");
  (void)cudaSetDevice(x->cuda->device);
  if (!*status && (x->alone || x->prompt)) *status = gc_send(x, f->run, 0, err); /* the long way, from the beginning */
  else if (!*status) *status = gc_launch(x, &f->plan, f->run->k, 1, err);
  return !*status;
}

/* Returns whether a launch has ended, as CUDA does; `wait`: waits for it. If a bell rings, the stream is asked only now
 * and then, as a kernel that fails rings none. */
static cudaError_t gc_ended(const gc_track *x, int wait) {
  cudaError_t e;
  if (!x->rings) return GC_CALL(wait ? cudaStreamSynchronize(x->stream) : cudaStreamQuery(x->stream));
  do {
    uint32_t left;
    for (left = wait ? 10000 : 1; left; left--)
      if (x->prompt ? gc_lines_there(x) : __atomic_load_n(gc_bell_word(x), __ATOMIC_ACQUIRE) == x->rung)
        return cudaSuccess;
    e = GC_CALL(cudaStreamQuery(x->stream));
  } while (wait && e == cudaErrorNotReady);
  return e;
}

/* Looks whether a launch has ended, or waits until it has; then hands out its hits. */
static void gc_land(gc_track *x, int wait) {
  uint64_t start = gc_timed(x->flight.run);
  gpuir_error error;
  int status;
  do {
    const cudaError_t e = gc_ended(x, wait);
    if (e == cudaErrorNotReady) return;
    if (e != cudaSuccess) {
      status = gc_fail(&error, e, "running kernels");
      gc_end(x, status, &error);
      return;
    }
    if (x->prompt) gc_take_lines(x);
    if (!gc_again(x, &status, &error)) break;
  } while (1);
  start = gc_spent(&x->cuda->info.wait_ns, start);
  gc_deliver(x, status, &error);
  gc_end(x, status, &error);
  (void)gc_spent(&x->cuda->info.deliver_ns, start);
}

#define GC_SHEET_LEAST 16u /* queries of a sheet at least */

/* Lets several threads plan a batch of which they will have to plan much at once. */
static void gc_hire(gc_context *x, gc_run *r) {
  const gc_track *first = &x->tracks[0];
  gc_sizes most;
  most = gc_sizes_of(x->cuda, GC_SHEET);
  most.queries = (size_t)gpuir__min64(GC_SHEET, gc_most_jobs(&most, r) / 2);
  if (most.queries < GC_SHEET_LEAST || r->piece < 4 * most.queries || first->most.queries < 4 * most.queries) return;
  r->nsheets = (r->piece + most.queries - 1) / most.queries;
  r->sheet = (r->piece + r->nsheets - 1) / r->nsheets;
  r->nsheets = (r->piece + r->sheet - 1) / r->sheet;
  if (!x->crew) x->crew = gc_crew_open(first, x->threads);
  if (x->crew) gc_announce(x->crew, r);
  else x->threads = 1;
}

/* ---- the backend, see gpuir_backend ---- */

#define GC_PATIENCE 1000000000u /* ns: so long other searchers may hold lists without releasing one */

static int gc_begin(void *context, const gpuir_batch_desc *batch, uint64_t deadline, const int *cancel, void **running,
    gpuir_error *err) {
  gc_context *x = (gc_context *)context;
  const gc_holds *held;
  gc_run *r = x->runs[0].number ? &x->runs[1] : &x->runs[0];
  const size_t k = batch->count ? 1 : (size_t)gpuir__min64(batch->k, x->cuda->ix->stat.documents);
  if (r->number) return gpuir__fail(err, GPUIR_E_BUSY, 0, "two batches are in flight");
  if (k > x->cuda->k_most)
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "the CUDA backend ranks at most %u hits a query",
        (unsigned)x->cuda->k_most);
  GC_TRY(cudaSetDevice(x->cuda->device), "choosing the device");
  memset(r, 0, sizeof *r);
  r->desc = *batch;
  r->k = (uint32_t)k;
  r->deadline = deadline;
  r->cancel = cancel;
  r->number = ++x->batches;
  r->next = k ? 0 : batch->nq;
  r->left = batch->nq - r->next;
  r->failed = SIZE_MAX;
  r->piece = gc_piece(x, batch);
  if (r->left && gc_may_hire(x)) gc_hire(x, r);
  *running = r;
  (void)gc_fly(x, &held);
  return GPUIR_OK;
}

static int gc_poll(void *context, void *running) {
  gc_context *x = (gc_context *)context;
  const gc_run *r = (const gc_run *)running;
  const gc_holds *held;
  unsigned i;
  for (i = 0; i < x->ntracks; i++)
    if (x->tracks[i].flight.run) gc_land(&x->tracks[i], 0);
  if (gc_next_run(x)) (void)cudaSetDevice(x->cuda->device);
  (void)gc_fly(x, &held);
  return !r->left;
}

/* Waits for other searchers to release lists; fails the query that needs them if they do not. */
static void gc_yield(gc_context *x, gc_run *r, const gc_holds *held) {
  const uint64_t slice = 1000000;
  gpuir_error error;
  uint64_t waited;
  int status = GPUIR_OK;
  for (waited = 0; !status && waited < GC_PATIENCE; waited += slice) {
    if (gc_cache_wait(x->cuda->cache, held->releases, slice)) return;
    status = gc_stopped(r, r->next, gc_now(r), &error);
  }
  if (!status) status = gpuir__fail(&error, GPUIR_E_NOMEM, 0, "CUDA: lists that other searchers hold leave no room");
  gc_fail_query(r, r->next++, status, &error);
}

static int gc_finish(void *context, void *running, gpuir_error *err) {
  gc_context *x = (gc_context *)context;
  gc_run *r = (gc_run *)running;
  int status;
  while (r->left) {
    const gc_holds *held;
    gc_run *stuck;
    gc_track *track;
    if (gc_next_run(x)) (void)cudaSetDevice(x->cuda->device); /* kernels are launched on the current one */
    stuck = gc_fly(x, &held);
    track = gc_first_track(x);
    if (track) gc_land(track, 1);
    else if (stuck) gc_yield(x, stuck, held);
  }
  __atomic_fetch_add(&x->cuda->info.queries, r->desc.nq - r->bad, __ATOMIC_RELAXED);
  status = r->bad ? r->desc.statuses[r->failed] : GPUIR_OK;
  if (status && err) *err = r->error;
  r->number = 0;
  return status;
}

/* ---- attaching ---- */

/* The backend's close. */
static void gc_detach(void *context) {
  gc_context *x = (gc_context *)context;
  gpuir_allocator a;
  if (!x) return;
  a = x->a;
  (void)cudaSetDevice(x->cuda->device);
  if (x->crew) gc_crew_close(x->crew);
  while (x->ntracks) gc_track_close(&x->tracks[--x->ntracks]);
  gpuir__free(&a, x, sizeof *x);
}

/* Gives a searcher its first track. */
static int gc_attach(gc_context *x, gpuir__engine *engine, gpuir_error *err) {
  const gc_sizes most = gc_sizes_within(x->cuda, gc_left(x->cuda));
  gc_track *track = &x->tracks[0];
  track->cuda = x->cuda;
  track->a = x->a;
  track->engine = engine;
  x->ntracks = 1;
  return gc_track_open(track, &most, err);
}

/* ---- one device ---- */

/* Refuses a structure of the program's copy of the implementation that this copy would misread. */
static int gc_refuse(gpuir_error *err, const char *function) {
  return gpuir__fail(err, GPUIR_E_VERSION, 0,
      "%s: gpuir_cuda.cu and the program were compiled from different versions of gpuir.h", function);
}

/* Gives a searcher a backend with a context, unless `status` says that this was not made. What fails is closed. */
static int gc_set_backend(gpuir_searcher *s, const gpuir_backend *table, void *context, int status, int fallback,
    gpuir_error *err) {
  gpuir_backend backend = *table;
  backend.context = context;
  if (!status) {
    status = gpuir_searcher_set_backend(s, &backend, fallback);
    if (status) (void)gpuir__fail(err, status, 0, "attaching %s: %s", backend.name, gpuir_strerror(status));
  }
  if (status) backend.close(context);
  return status;
}

static void gc_close_device(gpuir_cuda *c) {
  gpuir_allocator a;
  if (!c) return;
  a = c->a;
  (void)cudaSetDevice(c->device);
  gc_forget(c);
  gpuir__free(&a, c, sizeof *c);
}

/* Puts an index of one segment on desc->device. */
static int gc_open_device(const gpuir_index *ix, const gpuir_cuda_desc *desc, gpuir_cuda **cuda, gpuir_error *err) {
  gpuir_cuda *c = (gpuir_cuda *)gpuir__alloc_zero(&ix->a, sizeof *c);
  int status;
  if (!c) return gpuir__fail_nomem(err);
  c->a = ix->a;
  c->index = ix;
  c->ix = gpuir__only(ix);
  c->device = desc ? desc->device : 0;
  c->by_itself = !desc || !desc->batch;
  c->batch = c->by_itself ? GC_BATCH : desc->batch;
  c->threshold = desc && desc->threshold ? desc->threshold : UINT64_MAX;
  status = gc_open(c, desc, err);
  if (status) gc_close_device(c);
  else *cuda = c;
  return status;
}

static void gc_device_info(const gpuir_cuda *c, gpuir_cuda_info *info) {
  *info = c->info;
  info->used_memory = __atomic_load_n(&c->info.used_memory, __ATOMIC_RELAXED);
  info->queries = __atomic_load_n(&c->info.queries, __ATOMIC_RELAXED);
  info->batches = __atomic_load_n(&c->info.batches, __ATOMIC_RELAXED);
  info->lists_hit = __atomic_load_n(&c->info.lists_hit, __ATOMIC_RELAXED);
  info->lists_missed = __atomic_load_n(&c->info.lists_missed, __ATOMIC_RELAXED);
  info->bytes_sent = __atomic_load_n(&c->info.bytes_sent, __ATOMIC_RELAXED);
  info->resident_bytes = __atomic_load_n(&c->info.resident_bytes, __ATOMIC_RELAXED);
  info->plan_ns = __atomic_load_n(&c->info.plan_ns, __ATOMIC_RELAXED);
  info->send_ns = __atomic_load_n(&c->info.send_ns, __ATOMIC_RELAXED);
  info->wait_ns = __atomic_load_n(&c->info.wait_ns, __ATOMIC_RELAXED);
  info->deliver_ns = __atomic_load_n(&c->info.deliver_ns, __ATOMIC_RELAXED);
  info->devices = 1;
}

/* Lets a searcher be answered by a device. */
GPUIR__COLD static int gc_attach_device(gpuir_searcher *s, gpuir_cuda *cuda, unsigned tracks, int fallback,
    gpuir_error *err) {
  static const gpuir_backend backend = {GPUIR_BACKEND_VERSION, "cuda", NULL, gc_begin, gc_poll, gc_finish, gc_detach};
  gc_context *x;
  GC_TRY(cudaSetDevice(cuda->device), "choosing the device");
  x = (gc_context *)gpuir__alloc_zero(&s->engine.a, sizeof *x);
  if (!x) return gpuir__fail_nomem(err);
  x->a = s->engine.a;
  x->cuda = cuda;
  x->threads = s->nworkers + 1;
  x->most_tracks = cuda->cache ? GC_TRACKS_FEW : tracks;
  return gc_set_backend(s, &backend, x, gc_attach(x, &s->engine, err), fallback, err);
}

/* ========================
 * [cuda-15-partition]  host: several devices of one host: the index is cut into parts and opened
 *
 * A team answers one searcher's batches by several devices, its members. Either each of them holds the whole index and
 * every query is answered by one: see [cuda-15b-members]. Or each holds a part, the documents of a range as an index of
 * its own, and every query is answered by all: see [cuda-15c-merge]. A part weighs its terms by the whole's N, df and
 * average length, as a shard does, and has the whole's seeds, thresholds that all parts share. So its scores are the
 * whole's, bit for bit, and a hit that it leaves out has k better ones in the whole.
 *
 * Uses      [cuda-09-memory], [cuda-14-launch].
 * Start at  gt_open (gt_part: the index of a range).
 * Tests     tests/gpu/test_team.c, which needs no device
 * ======================*/

#define GT_MEMBERS ((unsigned)GPUIR_MAX_DEVICES)

/* A segment on a device: see [cuda-15d-live]. */
typedef struct gl_resident {
  uint64_t refs; /* snapshots that have it, counted atomically */
  uint64_t hash, size; /* of its file: the header's checksum */
  gpuir_index *alone; /* the segment as an index without deletions */
  gpuir_cuda *cuda;
} gl_resident;

/* A device of an open team. */
typedef struct gt_device {
  gpuir_cuda *cuda;
  gpuir_index *part; /* NULL: it has the whole index */
  uint32_t first, end; /* the documents of its part */
  uint32_t *ids; /* a term's number in the part, by its number in the whole; or GPUIR__NO_TERM */
  uint32_t *dfs; /* by a term's number in the part: the whole's df */
  gpuir__record *records; /* likewise: its record, out of the part's dictionary, as a query needs it soon */
  uint32_t *seeds;
  uint64_t nids, ndfs, nrecords, nseeds; /* room of these; in GPUIR__SEEDS */
  size_t leaf; /* of a snapshot: the segment's number, and what it has on the device */
  gl_resident *resident;
  int weighed; /* 1: contributions and bounds are under the snapshot's N, df and lengths; then it has its own: */
  gc_term *lists;
  gc_aid *aids;
  gc_known *known;
  gpuir__shard shard;
} gt_device;

struct gt_team {
  gpuir_allocator a;
  const gpuir_index *ix;
  unsigned n, parts; /* parts: n, or 0 if each member has the whole index */
  int live; /* 1: the parts are segments of a snapshot, see [cuda-15d-live] */
  uint32_t lost; /* members that failed, of any searcher */
  gt_device devices[GT_MEMBERS];
};

/* ---- parts: the documents of a range as an index of their own ---- */

/* Cuts documents into `parts` ranges with about as many tokens each, of one document at least: range i begins at
 * starts[i]. */
static void gt_cut_documents(const uint32_t *lengths, uint64_t n, uint64_t tokens, unsigned parts, uint32_t *starts) {
  uint64_t sum = 0, at = 0;
  unsigned i;
  for (i = 0; i < parts; i++) {
    const uint64_t share = tokens / parts * i + tokens % parts * i / parts;
    while (at < n - (parts - i) && (sum < share || (i && at == starts[i - 1]))) sum += lengths[at++];
    starts[i] = (uint32_t)at;
  }
}

/* Opens a list, whose decoders are those of the program's engine. */
static int gt_open_list(const gpuir__calls *calls, const gpuir__segment *from, const gpuir_allocator *a,
    const gpuir__record *record, gpuir__list *l) {
  const int status = calls->list_of(from, record, l);
  return status || l->df == 1 ? status : gpuir__list_open_codecs(a, l);
}

/* Makes an index of a leaf, as gpuir__index_make does, with the settings of another one. */
static int gt_make_index(const gpuir_index *like, const char *path, const gpuir__leaf *leaf, gpuir_index **index,
    gpuir_error *err) {
  const int status = like->calls->index_make(&like->a, path, NULL, leaf, 1, like->analysis.pool, index, err);
  if (!status) (*index)->calls = like->calls;
  return status;
}

/* What a part is made from, and how far it is. */
typedef struct gt_cutter {
  const gpuir__segment *from;
  const gpuir__calls *calls;
  gt_device *to;
  gpuir_builder *builder;
  gpuir_allocator a;
  pthread_mutex_t lock; /* of all that follows */
  pthread_cond_t turn; /* the next run may be appended */
  gpuir__walk walk;
  uint64_t claimed, appended; /* runs of terms */
  uint32_t terms; /* of the part */
  int status;
  gpuir_error error;
} gt_cutter;

#define GT_RUN_POSTINGS (1u << 18) /* of the whole that a thread cuts at once, or one list, */
#define GT_RUN_TERMS 1024u /* of so many terms at most */

/* A term of a run. */
typedef struct gt_cut_term {
  uint64_t id; /* in the whole */
  gpuir__record record; /* likewise */
  uint32_t at, len; /* its bytes in gt_knife.text */
} gt_cut_term;

/* One of the threads that make a part. */
typedef struct gt_knife {
  gt_cutter *cutter;
  gpuir__encoder *encoder;
  pthread_t thread;
  uint64_t run; /* that it cuts */
  gt_cut_term terms[GT_RUN_TERMS];
  unsigned nterms;
  gpuir__buf text, postings; /* postings: the docIDs of a list, then its tfs */
  gpuir__batch batch; /* the run's lists of the part */
  uint32_t kept[GT_RUN_TERMS]; /* which terms have one */
} gt_knife;

/* Claims the next run of terms for a thread. 0: there is none. The lock is held. */
static int gt_claim_terms(gt_knife *k, gpuir_error *err) {
  gt_cutter *x = k->cutter;
  uint64_t postings = 0;
  k->nterms = 0;
  k->text.len = 0;
  while (!x->status && postings < GT_RUN_POSTINGS && k->nterms < GT_RUN_TERMS && gpuir__walk_next(&x->walk)) {
    gt_cut_term *t = &k->terms[k->nterms++];
    t->id = x->walk.id;
    t->record = x->walk.record;
    t->at = (uint32_t)k->text.len;
    t->len = (uint32_t)x->walk.len;
    postings += t->record.df;
    if (gpuir__buf_put(&x->a, &k->text, x->walk.term, x->walk.len)) x->status = gpuir__fail_nomem(err);
  }
  k->run = x->claimed;
  x->claimed += k->nterms && !x->status;
  return k->nterms && !x->status;
}

/* Takes the postings of a list in the part's range; *n: how many there are. */
static int gt_cut_list(gt_knife *k, const gpuir__record *record, uint32_t *n, gpuir_error *err) {
  const gt_cutter *x = k->cutter;
  const uint32_t first = x->to->first, end = x->to->end, room = gpuir__min32(record->df, end - first);
  uint32_t docs[GPUIR__BLOCK_ROOM], freqs[GPUIR__BLOCK_ROOM], *docids, *tfs, block, i, in;
  gpuir__list l;
  int status = gt_open_list(x->calls, x->from, &x->a, record, &l);
  if (status) return gpuir__fail(err, status, 0, "%s: cannot open a list: %s", x->from->path, gpuir_strerror(status));
  k->postings.len = *n = 0;
  docids = (uint32_t *)(void *)gpuir__buf_room(&x->a, &k->postings, (size_t)room * 8);
  tfs = docids + room;
  if (!docids) status = gpuir__fail_nomem(err);
  for (block = gpuir__list_find_block(&l, 0, first); !status && block < l.nblocks; block++) {
    in = gpuir__list_docs(&l, block, docs);
    if (docs[0] >= end) break;
    if (docs[in - 1] < first) continue;
    gpuir__list_freqs(&l, block, freqs);
    for (i = 0; i < in && !status; i++) {
      if (docs[i] < first || docs[i] >= end) continue;
      if (*n == room || !(freqs[i] + 1) || (*n && docs[i] - first <= docids[*n - 1])) {
        status = gpuir__bad(x->from, err, 0, "a damaged list"); /* no builder has made it */
        break;
      }
      docids[*n] = docs[i] - first;
      tfs[(*n)++] = freqs[i] + 1;
    }
  }
  gpuir__list_close(&x->a, &l);
  return status;
}

/* Cuts a run's lists and encodes what of them is in the part. */
static int gt_cut_run(gt_knife *k, gpuir_error *err) {
  const gt_cutter *x = k->cutter;
  unsigned i;
  gpuir__batch_clear(NULL, &k->batch);
  for (i = 0; i < k->nterms; i++) {
    const gt_cut_term *t = &k->terms[i];
    const uint32_t *docids, room = gpuir__min32(t->record.df, x->to->end - x->to->first);
    uint32_t n = 0;
    int status = gt_cut_list(k, &t->record, &n, err);
    if (status) return status;
    if (!n) continue;
    docids = (const uint32_t *)(const void *)k->postings.data;
    k->kept[k->batch.nterms] = i;
    status = x->calls->encode_list(k->encoder, &k->batch, k->text.data + t->at, t->len, docids, docids + room, n, NULL);
    if (status) return gpuir__fail(err, status, 0, "%s: a list of a part: %s", x->from->path, gpuir_strerror(status));
  }
  return GPUIR_OK;
}

/* Appends a run's lists to the part, and notes its terms: one thread at a time does, in the order of the runs. */
static int gt_append_run(const gt_knife *k, gpuir_error *err) {
  gt_cutter *x = k->cutter;
  gpuir_builder *b = x->builder;
  uint64_t i;
  for (i = 0; i < k->batch.nterms; i++) {
    const gt_cut_term *t = &k->terms[k->kept[i]];
    x->to->ids[t->id] = x->terms;
    x->to->dfs[x->terms++] = gpuir__segment_df(x->from, t->id, t->record.df);
  }
  b->merge.terms += k->batch.nterms;
  b->merge.postings += k->batch.postings;
  return x->calls->put_batch(b->writer, &k->batch, err);
}

/* Cuts runs and appends each when those before it have been. */
static void *gt_knife_main(void *argument) {
  gt_knife *k = (gt_knife *)argument;
  gt_cutter *x = k->cutter;
  gpuir_error error;
  (void)pthread_mutex_lock(&x->lock);
  while (gt_claim_terms(k, &x->error)) {
    int status;
    (void)pthread_mutex_unlock(&x->lock);
    status = gt_cut_run(k, &error);
    (void)pthread_mutex_lock(&x->lock);
    while (x->appended != k->run) (void)pthread_cond_wait(&x->turn, &x->lock);
    if (!status && !x->status) {
      (void)pthread_mutex_unlock(&x->lock); /* it is this thread's turn */
      status = gt_append_run(k, &error);
      (void)pthread_mutex_lock(&x->lock);
    }
    if (status && !x->status) {
      x->status = status;
      x->error = error;
    }
    x->appended++;
    (void)pthread_cond_broadcast(&x->turn);
  }
  (void)pthread_mutex_unlock(&x->lock);
  return NULL;
}

/* Puts the lists into the part's builder, by as many threads as it has workers. */
static int gt_cut_lists(gt_cutter *x, gpuir_error *err) {
  gpuir_builder *b = x->builder;
  const unsigned n = b->threads.nworkers;
  gt_knife *knives = (gt_knife *)gpuir__alloc_zero(&x->a, n * sizeof *knives);
  unsigned started, i;
  if (!knives) return gpuir__fail_nomem(err);
  memset(x->to->ids, 0xff, (size_t)x->from->stat.terms * sizeof *x->to->ids); /* GPUIR__NO_TERM */
  gpuir__walk_start(&x->walk, x->from);
  for (i = 0; i < n; i++) {
    knives[i].cutter = x;
    knives[i].encoder = &b->threads.workers[i].encoding.encoder;
  }
  for (started = 1; started < n; started++)
    if (pthread_create(&knives[started].thread, NULL, gt_knife_main, &knives[started])) break;
  (void)gt_knife_main(&knives[0]);
  for (i = 0; i < n; i++) {
    if (i && i < started) (void)pthread_join(knives[i].thread, NULL);
    gpuir__buf_free(&x->a, &knives[i].text);
    gpuir__buf_free(&x->a, &knives[i].postings);
    gpuir__batch_clear(&b->a, &knives[i].batch);
  }
  gpuir__free(&x->a, knives, n * sizeof *knives);
  if (x->status && err) *err = x->error;
  return x->status;
}

/* Puts the part's documents and lists into its builder. */
static int gt_cut_all(gt_cutter *x, gpuir_error *err) {
  const gt_device *to = x->to;
  gpuir_builder *b = x->builder;
  uint32_t i;
  int status = GPUIR_OK;
  for (i = to->first; i < to->end && !status; i++)
    status = x->calls->builder_add_doc(b, NULL, x->from->lengths[i], NULL, 0, err);
  if (!status) status = x->calls->builder_open_lists(b, err);
  if (status) return status;
  b->phase = GPUIR__FROM_LISTS;
  if (pthread_mutex_init(&x->lock, NULL)) return gpuir__fail_nomem(err);
  if (pthread_cond_init(&x->turn, NULL)) {
    (void)pthread_mutex_destroy(&x->lock);
    return gpuir__fail_nomem(err);
  }
  status = gt_cut_lists(x, err);
  (void)pthread_cond_destroy(&x->turn);
  (void)pthread_mutex_destroy(&x->lock);
  return status;
}

/* Writes the index of a part. */
static int gt_cut(gt_cutter *x, const gpuir_index *ix, const char *path, unsigned threads, gpuir_error *err) {
  gpuir_builder_desc desc;
  int status;
  memset(&desc, 0, sizeof desc);
  desc.path = path;
  desc.allocator = &x->a;
  desc.codec = desc.freq_codec = "bp128";
  desc.threads = threads;
  desc.like = ix;
  status = x->calls->builder_create(&desc, &x->builder, err);
  if (status) return status;
  status = gt_cut_all(x, err);
  if (!status) status = x->calls->builder_write(x->builder, NULL, err);
  x->calls->builder_destroy(x->builder);
  return status;
}

/* Gives a part the whole's seeds: scores that k documents of the whole reach. */
static int gt_seed(gt_device *d, const gpuir_index *ix, gpuir__segment *part) {
  const gpuir__segment *from = gpuir__only(ix);
  gpuir__walk w;
  if (!part->lists.nseeds) return GPUIR_OK;
  d->seeds = (uint32_t *)gpuir__alloc_zero(&ix->a, (size_t)part->lists.nseeds * GPUIR__SEEDS * 4);
  if (!d->seeds) return GPUIR_E_NOMEM;
  d->nseeds = part->lists.nseeds;
  for (gpuir__walk_start(&w, from); gpuir__walk_next(&w);) {
    gpuir__record record;
    gpuir__list whole, l;
    if (w.record.df <= GPUIR__WHOLE || d->ids[w.id] == GPUIR__NO_TERM) continue;
    gpuir__record_get(part, d->ids[w.id], &record);
    if (ix->calls->list_of(from, &w.record, &whole) || ix->calls->list_of(part, &record, &l)) continue;
    if (!whole.seeds || !l.seeds) continue;
    memcpy(d->seeds + (l.seeds - part->lists.seeds), whole.seeds, GPUIR__SEEDS * 4);
  }
  part->lists.seeds = d->seeds;
  return GPUIR_OK;
}

/* Takes the records of a part's terms out of its dictionary. */
static int gt_take_records(gt_device *d, const gpuir_allocator *a, const gpuir__segment *part) {
  gpuir__walk w;
  d->records = (gpuir__record *)gpuir__alloc(a, (size_t)part->stat.terms * sizeof *d->records);
  if (!d->records) return GPUIR_E_NOMEM;
  d->nrecords = part->stat.terms;
  for (gpuir__walk_start(&w, part); gpuir__walk_next(&w);) d->records[w.id] = w.record;
  return GPUIR_OK;
}

/* Opens the file of a part as an index that knows of the whole. */
static int gt_open_part(gt_device *d, const gpuir_index *ix, const char *path, gpuir_error *err) {
  const gpuir__segment *from = gpuir__only(ix);
  gpuir__leaf leaf = {NULL, NULL, 0};
  int status = ix->calls->segment_open(&ix->a, AT_FDCWD, path, NULL, &leaf.seg, err);
  if (status) return status;
  memset(&d->shard, 0, sizeof d->shard);
  d->shard.documents = ix->collection;
  d->shard.tokens = from->shard ? from->shard->tokens : from->stat.tokens;
  d->shard.shards = 1;
  leaf.seg->shard = &d->shard;
  leaf.seg->dfs = d->dfs;
  status = gt_seed(d, ix, leaf.seg);
  if (!status) status = gt_take_records(d, &ix->a, leaf.seg);
  if (status) {
    ix->calls->segment_close(leaf.seg);
    return gpuir__fail_nomem(err);
  }
  return gt_make_index(ix, path, &leaf, &d->part, err);
}

/* Makes the part of a device: its file lies in a folder of its own until it is open. */
static int gt_part(gt_device *d, const gpuir_index *ix, const char *folder, unsigned threads, gpuir_error *err) {
  const gpuir__segment *from = gpuir__only(ix);
  char path[256], own[240];
  gt_cutter x;
  int status;
  memset(&x, 0, sizeof x);
  x.from = from;
  x.calls = ix->calls;
  x.to = d;
  x.a = ix->a;
  d->nids = from->stat.terms;
  d->ndfs = gpuir__min64(from->stat.terms, from->stat.postings);
  d->ids = (uint32_t *)gpuir__alloc_zero(&ix->a, (size_t)d->nids * 4 + 4);
  d->dfs = (uint32_t *)gpuir__alloc_zero(&ix->a, (size_t)d->nids * 4 + 4);
  if (!d->ids || !d->dfs) return gpuir__fail_nomem(err);
  if (snprintf(own, sizeof own, "%s/gpuir-part-XXXXXX", folder) >= (int)sizeof own)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_open: the name of the folder is too long");
  if (!mkdtemp(own)) return gpuir__fail_errno(err, own, "cannot make a folder for a part of the index");
  (void)snprintf(path, sizeof path, "%s/part", own);
  status = gt_cut(&x, ix, path, threads, err);
  if (!status) status = gt_open_part(d, ix, path, err);
  (void)unlink(path);
  (void)rmdir(own);
  return status;
}

/* ---- opening a team ---- */

#ifdef GPUIR_CUDA_SEAM
/* Tests of teams without devices: gives a member's searcher another backend. NULL: the device is attached. */
int (*gpuir_cuda_seam_member)(unsigned member, gpuir_searcher *searcher);
#define GT_DEVICES (!gpuir_cuda_seam_member)
#else
#define GT_DEVICES 1
#endif

/* What opens one device, in a thread of its own. */
typedef struct gt_opening {
  gt_team *team;
  unsigned member, threads;
  const char *folder;
  gpuir_cuda_desc desc;
  int status, threaded;
  pthread_t thread;
  gpuir_error error;
} gt_opening;

GPUIR__COLD static void *gt_opening_main(void *argument) {
  gt_opening *o = (gt_opening *)argument;
  gt_device *d = &o->team->devices[o->member];
  if (o->team->parts) o->status = gt_part(d, o->team->ix, o->folder, o->threads, &o->error);
  if (!o->status && GT_DEVICES)
    o->status = gc_open_device(d->part ? d->part : o->team->ix, &o->desc, &d->cuda, &o->error);
  return NULL;
}

static void gt_close(gt_team *t) {
  gpuir_allocator a = t->a;
  unsigned i;
  for (i = 0; i < t->n; i++) {
    gt_device *d = &t->devices[i];
    gc_close_device(d->cuda);
    if (d->part) d->part->calls->index_close(d->part);
    gpuir__free(&a, d->ids, (size_t)d->nids * 4 + 4);
    gpuir__free(&a, d->dfs, (size_t)d->nids * 4 + 4);
    gpuir__free(&a, d->records, (size_t)d->nrecords * sizeof *d->records);
    gpuir__free(&a, d->seeds, (size_t)d->nseeds * GPUIR__SEEDS * 4);
  }
  gpuir__free(&a, t, sizeof *t);
}

/* Returns where the parts of an index can be written: in memory, if that holds twice as much as they take. */
static const char *gt_folder(const gpuir_index *ix) {
  struct statvfs fs;
  if (access("/dev/shm", W_OK | X_OK) || statvfs("/dev/shm", &fs)) return "/tmp";
  return fs.f_bavail * (uint64_t)fs.f_frsize / 2 > gpuir__only(ix)->size ? "/dev/shm" : "/tmp";
}

/* Opens all devices side by side; the error is the first one's. */
static int gt_open_all(gt_team *t, const gpuir_cuda_desc *desc, gpuir_error *err) {
  const long processors = sysconf(_SC_NPROCESSORS_ONLN);
  gt_opening *opening = (gt_opening *)gpuir__alloc_zero(&t->a, t->n * sizeof *opening);
  unsigned i;
  int status = GPUIR_OK;
  if (!opening) return gpuir__fail_nomem(err);
  for (i = 0; i < t->n; i++) {
    gt_opening *o = &opening[i];
    o->team = t;
    o->member = i;
    o->threads = processors > 2 * (long)t->n ? (unsigned)processors / t->n : 2;
    o->folder = desc->folder ? desc->folder : gt_folder(t->ix);
    o->desc = *desc;
    o->desc.device = desc->devices[i];
    o->threaded = !pthread_create(&o->thread, NULL, gt_opening_main, o);
    if (!o->threaded) (void)gt_opening_main(o);
  }
  for (i = 0; i < t->n; i++) {
    if (opening[i].threaded) (void)pthread_join(opening[i].thread, NULL);
    if (!opening[i].status || status) continue;
    status = opening[i].status;
    if (err) *err = opening[i].error;
  }
  gpuir__free(&t->a, opening, t->n * sizeof *opening);
  return status;
}

/* Opens an index on several devices. */
static int gt_open(const gpuir_index *ix, const gpuir_cuda_desc *desc, gt_team **team, gpuir_error *err) {
  const gpuir__segment *from = gpuir__only(ix);
  uint32_t starts[GT_MEMBERS];
  gt_team *t;
  unsigned i;
  int status;
  if (desc->ndevices > GT_MEMBERS)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_open: more than %u devices", GT_MEMBERS);
  for (i = 0; i < desc->ndevices; i++)
    if (desc->devices[i] < 0) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_open: bad device");
  if (desc->partition && from->stat.documents < desc->ndevices)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_open: more devices than documents");
  t = (gt_team *)gpuir__alloc_zero(&ix->a, sizeof *t);
  if (!t) return gpuir__fail_nomem(err);
  t->a = ix->a;
  t->ix = ix;
  t->n = (unsigned)desc->ndevices;
  t->parts = desc->partition ? t->n : 0;
  if (t->parts) gt_cut_documents(from->lengths, from->stat.documents, from->stat.tokens, t->n, starts);
  for (i = 0; i < t->parts; i++) {
    t->devices[i].first = starts[i];
    t->devices[i].end = i + 1 < t->n ? starts[i + 1] : (uint32_t)from->stat.documents;
  }
  status = gt_open_all(t, desc, err);
  if (status) gt_close(t);
  else *team = t;
  return status;
}

/* Sums up what the devices are and did. */
static void gt_info(const gt_team *t, gpuir_cuda_info *sum) {
  unsigned i;
  memset(sum, 0, sizeof *sum);
  for (i = 0; i < t->n && t->devices[i].cuda; i++) {
    gpuir_cuda_info one;
    gc_device_info(t->devices[i].cuda, &one);
    if (!i && t->live) (void)snprintf(sum->device, sizeof sum->device, "%s", one.device);
    else if (!i) (void)snprintf(sum->device, sizeof sum->device, "%u x %.50s", t->n, one.device);
    sum->driver_version = one.driver_version;
    sum->runtime_version = one.runtime_version;
    sum->compute_capability = one.compute_capability;
    sum->device_memory = one.device_memory + (t->live ? 0 : sum->device_memory);
    sum->used_memory += one.used_memory;
    if (t->live) sum->used_memory += t->devices[i].resident->cuda->info.used_memory;
    sum->resident_bytes += one.resident_bytes;
    sum->index_bytes += one.index_bytes;
    sum->lists_hit += one.lists_hit;
    sum->lists_missed += one.lists_missed;
    sum->bytes_sent += one.bytes_sent;
    sum->queries += one.queries;
    sum->batches += one.batches;
    sum->plan_ns += one.plan_ns;
    sum->send_ns += one.send_ns;
    sum->wait_ns += one.wait_ns;
    sum->deliver_ns += one.deliver_ns;
  }
  sum->devices = t->live ? 1 : t->n;
  sum->lost = __atomic_load_n(&t->lost, __ATOMIC_RELAXED);
}

/* ========================
 * [cuda-15b-members]  host: a batch becomes tasks of a team's members, and their threads answer these
 *
 * Attached, a member is a thread with a searcher: the thread plans and waits, so that devices do not wait for each
 * other's planning, and has two tasks in flight, as a searcher may have batches.
 *
 * Where each member has the whole index, members have shares of a batch, two by two with a border between them, and
 * take from them half of what is left at a time, in launches that fill a device, since smaller ones take longer. The
 * border is where both will end at once, by what their queries cost and how far each of them is. One that has nothing
 * left takes from the others, also what a device that fails leaves.
 *
 * Uses      [cuda-09-memory], [cuda-14-launch], [cuda-15-partition].
 * Start at  gt_member_main (a member's thread), gt_take_some (a task of its share), gt_translate (a query for a part).
 * Tests     tests/gpu/test_team.c, which needs no device
 * ======================*/

#define GT_LEAST 64u /* queries of a share at least */
#define GT_AND_COST 322000u /* see gt_cost */
#define GT_OR_COST 473000u
#define GT_OR_DRIVING 20u
#define GT_LOOK_NS 500000u /* so long a member looks for work before it sleeps: to be woken can take 200 us; */
#define GT_PIECES 8u /* tasks that a batch of parts becomes for each member at most, */
#define GT_TASKS (GT_PIECES * GT_MEMBERS) /* of a round at most */

/* ---- what a searcher asks of a team ---- */

typedef struct gt_run gt_run;

/* A member's queries of a round, as long as they are in no task. Members of even number take theirs from the
 * beginning on, and those of odd number from the end, so that the border between two shares can be moved. */
typedef struct gt_share {
  size_t at, end;
  size_t begin; /* where its member began, */
  size_t ended; /* how many of those from there on it has answered, */
  uint64_t when; /* and when the last of them, as gpuir__now tells time */
} gt_share;

/* What one round of a batch asks of one member. Its results go to the batch's arrays, or to its own. */
typedef struct gt_task {
  struct gt_task *next; /* in the member's queue */
  gt_share *share; /* its member's own, of which it was taken; or NULL */
  gt_run *run; /* NULL: it is not in use */
  const gpuir_query *const *queries; /* of the whole index */
  gpuir_batch_desc desc;
  gpuir_batch *batch; /* of the member's searcher, while it is in flight */
  const int *cancel;
  uint64_t deadline;
  int as_or, and_first; /* 1: its queries are asked as OR; ANDOR ones as AND */
  int ended; /* atomic; 1: its outcome is there */
  int status;
  gpuir_error error; /* of its first query that failed */
  gpuir__buf results, deadlines; /* hits, counts, statuses; deadlines of each query */
} gt_task;

/* A batch from begin to finish. */
struct gt_run {
  gpuir_batch_desc desc; /* .k is the batch's, at which its hits lie; */
  size_t k; /* how many of them there may be */
  uint64_t deadline;
  const int *cancel;
  int used, ready, again; /* ready: the outcome is there; again: the round is not the first */
  int failed; /* 1: some query did, in any round; written atomically */
  uint64_t open; /* tasks that are not done, and 1 more while there are queries to take; atomic */
  uint64_t batch; /* batches are served by it */
  size_t n, taken; /* queries of the round, and how many of them are in tasks, or were failed: */
  uint32_t *numbers; /* which ones, if it is not the first */
  gpuir__buf gathered; /* that and pointers to them */
  gt_share shares[GT_MEMBERS]; /* of members with the whole index */
  size_t grain; /* queries of a launch of theirs */
  uint64_t since; /* when they were shared out */
  gpuir__buf costs; /* [i] what the queries before number i cost, see gt_cost; */
  const uint64_t *sums; /* these; NULL: they are not known */
  size_t ntasks; /* of the round; */
  size_t merged; /* of parts: so many of them, from the first on, have had their hits merged */
  gt_task tasks[GT_TASKS]; /* of parts those of one piece, by member, behind one another */
  gpuir_error error;
  int status;
};

typedef struct gt_context gt_context;

/* A member of a searcher's team. */
typedef struct gt_member {
  gt_context *context;
  const gt_device *device;
  gpuir_searcher *searcher;
  pthread_t thread;
  int threaded;
  int lost; /* 1: its device failed, and gets no further queries; under the lock */
  gt_task *first, *last; /* those that wait; under the lock */
  gt_task *flown[2]; /* those in flight, the older one first; its thread's, as what follows */
  gt_task *next; /* translated while two are in flight; or NULL */
  gpuir__buf asked[3]; /* a part's queries, of these three tasks, */
  unsigned asks; /* taken in turn: tasks that have been in flight */
} gt_member;

/* What a searcher with a team has. */
struct gt_context {
  gpuir_allocator a;
  gt_team *team;
  pthread_mutex_t lock;
  pthread_cond_t work, done; /* for members; for who waits for a run */
  int ready, stop; /* ready: the three above are initialized */
  uint64_t posted; /* times that something came for members to do; written under the lock, atomic */
  unsigned n;
  gt_member *members;
  gt_run runs[2];
  uint64_t batches; /* begun */
};

/* ---- tasks ---- */

/* Returns the number in the batch of the round's query i. */
static size_t gt_number(const gt_run *r, size_t i) { return r->again ? r->numbers[i] : i; }

/* Returns the round's queries. */
static const gpuir_query *const *gt_queries(const gt_run *r) {
  return r->again ? (const gpuir_query *const *)(void *)r->gathered.data : r->desc.queries;
}

/* Ends a query with a status. */
static void gt_fail_query(gt_run *r, size_t i, int status, const gpuir_error *err) {
  r->desc.statuses[i] = status;
  r->desc.counts[i] = 0;
  gpuir__poke(&r->failed, 1);
  if (r->status) return;
  r->status = status;
  if (err) r->error = *err;
}

/* Describes the round's queries from .. from + n - 1 to a task. Returns NOMEM if it is to have results of its own, and
 * there is no memory for them. */
static int gt_describe(const gt_context *x, const gt_run *r, gt_task *t, size_t from, size_t n, int own) {
  const gpuir_batch_desc *d = &r->desc;
  const size_t hits = GC_ALIGN(n * r->k * sizeof(gpuir_hit));
  uint8_t *at;
  memset(&t->desc, 0, sizeof t->desc);
  t->queries = gt_queries(r) + from;
  t->desc.queries = t->queries;
  t->desc.nq = n;
  t->desc.k = own ? r->k : d->k;
  t->desc.count = d->count;
  if (!r->again && d->deadlines) t->desc.deadlines = d->deadlines + from;
  if (!r->again && d->cancels) t->desc.cancels = d->cancels + from;
  if (!own) {
    t->desc.hits = d->hits + from * d->k;
    t->desc.counts = d->counts + from;
    t->desc.statuses = d->statuses + from;
    return GPUIR_OK;
  }
  at = gpuir__buf_room(&x->a, &t->results, hits + n * 8 + 16);
  if (!at) return GPUIR_E_NOMEM;
  t->desc.hits = (gpuir_hit *)(void *)at;
  t->desc.counts = (uint32_t *)(void *)(at + hits);
  t->desc.statuses = (int *)(void *)(at + hits + n * 4);
  return GPUIR_OK;
}

/* Returns how many members are there. The lock is held. */
static unsigned gt_alive(const gt_context *x) {
  unsigned alive = 0, i;
  for (i = 0; i < x->n; i++) alive += !x->members[i].lost;
  return alive;
}

/* Makes a task one of the run's. The lock is held. */
static void gt_open_task(gt_run *r, gt_task *t) {
  t->run = r;
  t->next = NULL;
  t->share = NULL;
  t->cancel = r->cancel;
  t->deadline = r->deadline;
  t->ended = 0;
  t->status = GPUIR_OK;
  t->error.code = 0;
  (void)__atomic_add_fetch(&r->open, 1, __ATOMIC_ACQ_REL);
}

/* Takes one from what a run waits for. The lock is held. */
static void gt_close_one(gt_context *x, gt_run *r) {
  if (!__atomic_sub_fetch(&r->open, 1, __ATOMIC_ACQ_REL)) (void)pthread_cond_broadcast(&x->done);
}

/* Tells members that something came for them to do. The lock is held. */
static void gt_post(gt_context *x) {
  (void)__atomic_add_fetch(&x->posted, 1, __ATOMIC_RELEASE);
  (void)pthread_cond_broadcast(&x->work);
}

/* Gives a member a task. The lock is held. */
static void gt_give(gt_context *x, gt_member *m, gt_run *r, gt_task *t) {
  gt_open_task(r, t);
  if (m->last) m->last->next = t;
  else m->first = t;
  m->last = t;
  gt_post(x);
}

/* Notes that n of the round's queries are in tasks, or were failed. The lock is held. */
static void gt_took(gt_context *x, gt_run *r, size_t n) {
  r->taken += n;
  if (r->taken == r->n) gt_close_one(x, r);
}

/* Fails the round's queries from .. from + n - 1, which are in no task. The lock is held. */
static void gt_drop(gt_context *x, gt_run *r, size_t from, size_t n, int status) {
  size_t i;
  for (i = from; i < from + n; i++) gt_fail_query(r, gt_number(r, i), status, NULL);
  gt_took(x, r, n);
}

/* Shares a round's queries out among the members that are there, or some of them if they are few. The lock is held. */
static void gt_share_out(const gt_context *x, gt_run *r) {
  const gpuir_cuda *c = x->team->devices[0].cuda;
  const size_t shares = (size_t)gpuir__max64(1, gpuir__min64(gt_alive(x), r->n / GT_LEAST));
  const unsigned first =
      shares < x->n ? (unsigned)(r->batch % x->n) : 0; /* not always the same one for small batches */
  size_t given = 0;
  unsigned i;
  memset(r->shares, 0, sizeof r->shares);
  r->since = gpuir__now();
  r->sums = NULL;
  for (i = 0; i < x->n && given < shares; i++) {
    const unsigned to = (first + i) % x->n;
    if (x->members[to].lost) continue;
    r->shares[to].at = r->n * given / shares;
    r->shares[to].end = r->n * ++given / shares;
    r->shares[to].begin = to & 1 ? r->shares[to].end : r->shares[to].at;
  }
  r->grain = c && !c->by_itself ? c->batch : gc_piece_most(gt_queries(r), r->n);
}

/* Moves the border between the shares of two members to where both will end at once, as far as neither has taken
 * queries beyond it: each goes on from where it last ended some, both at the pace of both. The lock is held. */
static void gt_move_border(const gt_context *x, gt_run *r, unsigned even) {
  gt_share *a = &r->shares[even], *b = a + 1;
  const uint64_t *sums = r->sums;
  size_t lo = a->at, hi = b->end;
  double middle;
  if (!sums || even + 1 >= x->n || a->end != b->at || x->members[even].lost || x->members[even + 1].lost) return;
  middle = ((double)sums[a->begin] + (double)sums[b->begin]) / 2;
  if (a->ended && b->ended) {
    const uint64_t first = sums[a->begin + a->ended], last = sums[b->begin - b->ended];
    const uint64_t gone = first - sums[a->begin] + sums[b->begin] - last;
    const double spent = (double)(a->when - r->since) + (double)(b->when - r->since);
    const double ahead = (double)b->when - (double)a->when; /* so long a has worked since, while b had not ended */
    middle = ((double)first + (double)last + ahead * (double)gone / (spent > 1 ? spent : 1)) / 2;
  }
  while (lo < hi) {
    const size_t mid = lo + (hi - lo) / 2;
    if ((double)sums[mid] < middle) lo = mid + 1;
    else hi = mid;
  }
  a->end = b->at = lo;
}

/* Moves the border of a member's share, and returns the share of a run from which it takes next: its own one; or, if it
 * has nothing else to do, or the owner was lost, the largest. NULL: there is none. The lock is held. */
static gt_share *gt_choose_share(const gt_member *m, gt_run *r) {
  const gt_context *x = m->context;
  gt_share *best = &r->shares[m - x->members];
  unsigned i;
  gt_move_border(x, r, (unsigned)(m - x->members) & ~1u);
  if (best->at < best->end) return best;
  for (i = 0; i < x->n; i++) {
    gt_share *s = &r->shares[i];
    if ((!m->flown[0] || x->members[i].lost) && s->end - s->at > best->end - best->at) best = s;
  }
  return best->at < best->end ? best : NULL;
}

/* Returns how many queries a member takes of its own share, of which `left` are left: half of the launches that these
 * are, and first, if its device waits, what a batch's first launch has then. A launch fills the device; all have as
 * many where the last one would have next to nothing. */
static size_t gt_own_cut(const gt_run *r, size_t left, int waits) {
  const size_t begin = waits && left > r->grain ? GC_FIRST_QUERIES : 0, rest = left - begin;
  const size_t launches = (rest + r->grain - 1) / r->grain, last = rest - (launches - 1) * r->grain;
  const size_t each = last < r->grain / 4 ? (rest + launches - 1) / launches : r->grain;
  return begin + each * ((launches + 1) / 2);
}

/* Cuts the queries of a task from a share, the member's own or not; waits: 1 if its device has nothing to do. Returns
 * the first, and how many in *n. */
static size_t gt_cut_share(const gt_run *r, gt_share *s, int own, int waits, size_t *n) {
  const size_t left = s->end - s->at;
  const int odd = (s - r->shares) & 1, at_end = odd == own;
  *n = own ? gt_own_cut(r, left, waits) : gpuir__max64(left / 2, GT_LEAST);
  if (*n + (own ? 0 : GT_LEAST / 2) > left || r->ntasks + GT_MEMBERS >= GT_TASKS) *n = left;
  if (at_end) s->end -= *n;
  else s->at += *n;
  return at_end ? s->end : s->at - *n;
}

/* Makes a task of queries of the oldest batch that has some for a member. NULL: there are none. The lock is held. */
static gt_task *gt_take_some(gt_member *m) {
  gt_context *x = m->context;
  gt_run *r = &x->runs[x->runs[1].used && (!x->runs[0].used || x->runs[1].batch < x->runs[0].batch)];
  gt_share *s = r->used && r->taken < r->n ? gt_choose_share(m, r) : NULL;
  gt_task *t;
  size_t from, n;
  int own;
  if (!s) {
    r = &x->runs[r == x->runs];
    s = r->used && r->taken < r->n ? gt_choose_share(m, r) : NULL;
  }
  if (!s) return NULL;
  own = s == &r->shares[m - x->members];
  from = gt_cut_share(r, s, own, !m->flown[0], &n);
  t = &r->tasks[r->ntasks];
  if (gt_describe(x, r, t, from, n, r->again)) {
    gt_drop(x, r, from, n, GPUIR_E_NOMEM);
    return NULL;
  }
  r->ntasks++;
  gt_open_task(r, t);
  if (own) t->share = s;
  gt_took(x, r, n);
  return t;
}

/* Fails what nobody can take, as no member is there. The lock is held. */
static void gt_give_up(gt_context *x) {
  unsigned i, j;
  for (i = 0; i < 2 && !gt_alive(x); i++) {
    gt_run *r = &x->runs[i];
    for (j = 0; j < x->n && r->used && r->taken < r->n; j++) {
      gt_share *s = &r->shares[j];
      const size_t n = s->end - s->at;
      s->end = s->at;
      if (n) gt_drop(x, r, s->at, n, GPUIR_E_BACKEND);
    }
  }
}

/* Returns how many postings the lists have through which MaxScore drives: beyond the others' documents, the longest
 * lists', some may reach the threshold that is known beforehand. Of a list with seeds that is about its weight. */
static uint64_t gt_driving(const gpuir_query *q) {
  float threshold = 0;
  uint64_t sum = 0;
  unsigned i, j;
  for (i = 0; i < q->npositive; i++) {
    const float weight = (float)q->terms[i].q * q->terms[i].weight;
    if (q->terms[i].df > GPUIR__WHOLE && weight > threshold) threshold = weight;
  }
  for (i = 0; i < q->npositive; i++) {
    float most = 0; /* of a document that is in no shorter list */
    for (j = 0; j < q->npositive; j++)
      if (q->terms[j].df >= q->terms[i].df) most += (float)q->terms[j].q * q->terms[j].weight;
    if (most >= threshold) sum += q->terms[i].df;
  }
  return sum;
}

/* Returns about how long a device takes for a query, in look-ups: of each posting of the shortest list in all of them,
 * and of OR, of one of twenty that drive in all others. A line through the times of 2,500 calls of 1,000 random queries
 * each, on 25.2 million documents and an H100: what is left is 1.9 % of a call's time for AND and 2.6 % for OR, while
 * calls differ by 6.8 %. By the shortest list alone it is 3.2 and 4.5 %; by that and more of 20 properties of a query
 * 1.8 and 2.4 %. */
static uint64_t gt_cost(const gpuir_query *q) {
  const uint64_t n = q->npositive;
  const int all = q->mode == GPUIR_AND;
  uint32_t least = UINT32_MAX;
  unsigned i;
  for (i = 0; i < n; i++)
    if (all || q->terms[i].df) least = gpuir__min32(least, q->terms[i].df);
  if (!least || least == UINT32_MAX) return 0; /* it has no hits */
  return n * least + (all ? GT_AND_COST : (n - 1) * gt_driving(q) / GT_OR_DRIVING + GT_OR_COST);
}

/* Adds up what a batch's queries cost, while members begin with the first of them, and moves the borders between their
 * shares by it. */
static void gt_level(gt_context *x, gt_run *r) {
  const gpuir_query *const *q = gt_queries(r);
  uint64_t *sums = (uint64_t *)(void *)gpuir__buf_room(&x->a, &r->costs, (r->n + 1) * sizeof *sums);
  size_t i;
  if (!sums) return;
  for (sums[0] = 0, i = 0; i < r->n; i++) sums[i + 1] = sums[i] + gt_cost(q[i]);
  (void)pthread_mutex_lock(&x->lock);
  r->sums = sums;
  for (i = 0; i < x->n; i += 2) gt_move_border(x, r, (unsigned)i);
  (void)pthread_mutex_unlock(&x->lock);
}

/* ---- a member's thread ---- */

static const gpuir__calls *gt_calls(const gt_member *m) { return m->context->team->ix->calls; }

static int gt_unanswerable(const gpuir_query *q) { return q->nphrases || q->nprefixes; }

/* Returns whether parts do not answer a query: only those that are segments have positions. */
static int gt_refuses(const gt_team *t, const gpuir_query *q) {
  if (q->nrequired < q->npositive && q->mode != GPUIR_OR) return 1; /* optional terms */
  return t->live ? q->nprefixes > 0 : gt_unanswerable(q);
}

/* Returns how many members of phrases parts are told of. */
static unsigned gt_members_of(const gt_team *t, const gpuir_query *q) {
  return t->live && q->nphrases ? q->phrases->nmembers : 0;
}

/* Finds what has this number in a query, of a term or of a phrase's member, in a part. */
static void gt_translate_id(const gt_device *d, const gpuir_query *q, gpuir_query *to, unsigned number) {
  uint32_t id = q->ids[d->leaf * GPUIR__IDS + number];
  gpuir__record *r = gpuir__query_record(to, 0, number);
  memset(r, 0, sizeof *r);
  if (number < GPUIR__ID_MEMBERS && q->terms[number].tokens) id = GPUIR__NO_TERM;
  if (id != GPUIR__NO_TERM && d->ids) id = d->ids[id];
  to->ids[number] = id;
  if (id == GPUIR__NO_TERM) return;
  if (d->records) *r = d->records[id];
  else gpuir__record_get(d->part->leaves[0].seg, id, r);
}

/* Copies a query for a part of the index: its terms have other numbers there, or none. Of one that devices do not
 * answer nothing is asked: gt_merge_query fails it. */
static gpuir_query *gt_translate(const gt_task *t, const gt_member *m, const gpuir_query *q, uint8_t **at) {
  const gt_device *d = m->device;
  const gt_team *team = m->context->team;
  const unsigned members = gt_members_of(team, q);
  const size_t each = members ? sizeof q->terms[0] : offsetof(gpuir__query_term, text); /* a text that nobody reads */
  gpuir_query *to = (gpuir_query *)(void *)*at;
  unsigned i;
  memcpy((void *)to, q, offsetof(gpuir_query, terms));
  *at += GC_ALIGN(offsetof(gpuir_query, terms) + q->n * sizeof q->terms[0]);
  to->ids = (uint32_t *)(void *)*at;
  *at += GC_ALIGN((GPUIR__ID_MEMBERS + members) * sizeof(uint32_t));
  to->records = (gpuir__record *)(void *)*at;
  *at += GC_ALIGN((q->n + members) * sizeof(gpuir__record));
  to->ix = d->part;
  to->nrecords = q->n + members;
  if (team->live) to->stored_bm25 = q->stored_bm25 && d->weighed; /* or else it is as under other k1 and b */
  if (t->as_or) to->mode = GPUIR_OR;
  else if (t->and_first && q->mode == GPUIR_ANDOR) to->mode = GPUIR_AND;
  for (i = 0; i < q->n; i++) {
    memcpy((void *)&to->terms[i], &q->terms[i], each);
    if (!members) to->terms[i].len = 0;
    gt_translate_id(d, q, to, i);
  }
  for (i = 0; i < members; i++) gt_translate_id(d, q, to, GPUIR__ID_MEMBERS + i);
  if (gt_refuses(team, q))
    to->n = to->npositive = to->nrequired = to->nunknown = to->nknown = to->nphrases = to->nprefixes = 0;
  return to;
}

/* Prefetches what translating a query for a part of a team will read, each thing when what leads to it has come: number
 * i of n queries, and those behind it. */
static void gt_expect(const gt_device *d, const gpuir_query *const *queries, size_t i, size_t n) {
  enum { HEAD = 20, TERMS = 14, IDS = 10, RECORDS = 5 }; /* so many queries ahead */
  unsigned t;
  if (!d->records) return;
  if (i + HEAD < n)
    for (t = 0; t < offsetof(gpuir_query, terms); t += 64) __builtin_prefetch((const char *)queries[i + HEAD] + t);
  if (i + TERMS < n) {
    __builtin_prefetch(queries[i + TERMS]->ids);
    for (t = 0; t < queries[i + TERMS]->n; t++) __builtin_prefetch(&queries[i + TERMS]->terms[t]);
  }
  for (t = 0; i + IDS < n && t < queries[i + IDS]->n; t++) {
    const uint32_t id = gpuir__query_id(queries[i + IDS], 0, t);
    if (id != GPUIR__NO_TERM) __builtin_prefetch(&d->ids[id]);
  }
  for (t = 0; i + RECORDS < n && t < queries[i + RECORDS]->n; t++) {
    const uint32_t id = gpuir__query_id(queries[i + RECORDS], 0, t);
    if (id != GPUIR__NO_TERM && d->ids[id] != GPUIR__NO_TERM) __builtin_prefetch(&d->records[d->ids[id]]);
  }
}

/* Makes a part's queries of a task's, and has the task in flight go on meanwhile. */
static int gt_translate_all(gt_member *m, gt_task *t, gpuir_error *err) {
  gpuir__buf *asked = &m->asked[m->asks % 3];
  const gpuir_query **to;
  uint8_t *at;
  size_t size = t->desc.nq * sizeof *to, i;
  for (i = 0; i < t->desc.nq; i++) {
    const gpuir_query *q = t->queries[i];
    const unsigned members = gt_members_of(m->context->team, q);
    size += GC_ALIGN(offsetof(gpuir_query, terms) + q->n * sizeof q->terms[0]) +
        GC_ALIGN((GPUIR__ID_MEMBERS + members) * sizeof(uint32_t)) + GC_ALIGN((q->n + members) * sizeof(gpuir__record));
  }
  to = (const gpuir_query **)(void *)gpuir__buf_room(&m->context->a, asked, size + 16);
  if (!to) return gpuir__fail_nomem(err);
  at = (uint8_t *)to + GC_ALIGN(t->desc.nq * sizeof *to);
  for (i = 0; i < t->desc.nq; i++) {
    gt_expect(m->device, t->queries, i, t->desc.nq);
    to[i] = gt_translate(t, m, t->queries[i], &at);
    if (i % 64 == 63 && m->flown[0]) (void)gt_calls(m)->search_poll(m->flown[0]->batch);
  }
  t->desc.queries = to;
  return GPUIR_OK;
}

/* Gives each query of a task its time limit, which is the batch's too. */
static int gt_limit(const gt_member *m, gt_task *t, gpuir_error *err) {
  uint64_t *to;
  size_t i;
  if (!t->deadline) return GPUIR_OK;
  to = (uint64_t *)(void *)gpuir__buf_room(&m->context->a, &t->deadlines, t->desc.nq * sizeof *to);
  if (!to) return gpuir__fail_nomem(err);
  for (i = 0; i < t->desc.nq; i++) {
    const uint64_t own = t->desc.deadlines ? t->desc.deadlines[i] : 0;
    to[i] = own && own < t->deadline ? own : t->deadline;
  }
  t->desc.deadlines = to;
  return GPUIR_OK;
}

/* Fails all queries of a task. */
static void gt_fail_task(gt_task *t, int status) {
  size_t i;
  t->status = status;
  for (i = 0; i < t->desc.nq; i++) {
    t->desc.statuses[i] = status;
    t->desc.counts[i] = 0;
  }
}

/* Prepares a task for its member: it has then a status. */
static void gt_prepare(gt_member *m, gt_task *t) {
  t->status = gt_limit(m, t, &t->error);
  if (!t->status && m->device->part) t->status = gt_translate_all(m, t, &t->error);
}

/* Begins a task that is prepared; 0 if it is not in flight. */
static int gt_task_begin(gt_member *m, gt_task *t) {
  int status = t->status;
  if (!status) {
    m->searcher->engine.limits.cancel = t->cancel;
    status = gt_calls(m)->search_begin(m->searcher, &t->desc, &t->batch);
    if (status) gpuir_searcher_error(m->searcher, &t->error);
  }
  if (status) gt_fail_task(t, status);
  return !status;
}

static void gt_task_finish(gt_member *m, gt_task *t) {
  m->searcher->engine.limits.cancel = t->cancel;
  t->status = gt_calls(m)->search_finish(t->batch);
  if (t->status) gpuir_searcher_error(m->searcher, &t->error);
}

/* Returns whether a query's failure means that the device has failed, not that it cannot answer that query. */
static int gt_is_lost(const gpuir_query *q, int status) { return status == GPUIR_E_BACKEND && !gt_unanswerable(q); }

/* Notes that a task is done. The lock is held. */
static void gt_task_done(gt_member *m, gt_task *t) {
  gt_context *x = m->context;
  size_t i;
  if (t->status) gpuir__poke(&t->run->failed, 1);
  for (i = 0; t->status && !m->lost && i < t->desc.nq; i++) {
    m->lost = gt_is_lost(t->queries[i], t->desc.statuses[i]);
    if (m->lost) (void)__atomic_add_fetch(&x->team->lost, 1, __ATOMIC_RELAXED);
  }
  if (m->lost) gt_give_up(x);
  if (t->share) {
    t->share->ended += t->desc.nq;
    t->share->when = gpuir__now();
  }
  __atomic_store_n(&t->ended, 1, __ATOMIC_RELEASE);
  gt_close_one(x, t->run);
}

/* Takes the next task that waits, or queries that do. NULL: nothing does. The lock is held. */
static gt_task *gt_take(gt_member *m) {
  gt_task *t = m->first;
  if (!t) return m->lost ? NULL : gt_take_some(m);
  m->first = t->next;
  if (!m->first) m->last = NULL;
  return t;
}

/* Begins a task, or without one waits for the older of those in flight. Returns the task that has ended, or NULL. */
static gt_task *gt_work(gt_member *m, gt_task *t) {
  if (t) {
    if (t != m->next) gt_prepare(m, t);
    m->next = NULL;
    if (!gt_task_begin(m, t)) return t;
    m->asks++;
    m->flown[m->flown[0] != NULL] = t;
    return NULL;
  }
  if (m->next) gt_prepare(m, m->next);
  t = m->flown[0];
  gt_task_finish(m, t);
  m->flown[0] = m->flown[1];
  m->flown[1] = NULL;
  return t;
}

/* Looks for work that has come since `posted`, as long as a member may. */
static void gt_look(const gt_context *x, uint64_t posted) {
  const uint64_t until = gpuir__now() + GT_LOOK_NS;
  while (__atomic_load_n(&x->posted, __ATOMIC_ACQUIRE) == posted && gpuir__now() < until) (void)sched_yield();
}

static void *gt_member_main(void *argument) {
  gt_member *m = (gt_member *)argument;
  gt_context *x = m->context;
  int looked = 0; /* 1: since its last task, in vain */
  (void)pthread_mutex_lock(&x->lock);
  for (;;) {
    gt_task *t = NULL;
    if (!m->flown[1]) t = m->next ? m->next : gt_take(m);
    else if (m->device->part) m->next = gt_take(m); /* one with the whole index takes as late as it can */
    if (t || m->flown[0]) {
      (void)pthread_mutex_unlock(&x->lock);
      t = gt_work(m, t);
      (void)pthread_mutex_lock(&x->lock);
      if (t) gt_task_done(m, t);
      looked = 0;
    } else if (x->stop) {
      break;
    } else if (!looked) {
      const uint64_t posted = x->posted;
      (void)pthread_mutex_unlock(&x->lock);
      gt_look(x, posted);
      (void)pthread_mutex_lock(&x->lock);
      looked = 1;
    } else {
      (void)pthread_cond_wait(&x->work, &x->lock);
    }
  }
  (void)pthread_mutex_unlock(&x->lock);
  return NULL;
}

/* ========================
 * [cuda-15c-merge]  host: rounds of a batch, whose hits are merged; the team as a backend
 *
 * A batch takes rounds: the first asks for all queries; another, where it is needed, asks other members for what a lost
 * one left, or, of parts, for OR of those ANDOR queries whose AND has fewer than k hits in all. The hits that parts
 * have of a query are merged by score and docID.
 *
 * Uses      [cuda-09-memory], [cuda-14-launch] to [cuda-15b-members].
 * Start at  gt_begin, gt_poll, gt_finish; gt_advance (rounds), gt_merge_query (hits); gt_attach_searcher.
 * Tests     tests/gpu/test_team.c, which needs no device
 * ======================*/

#define GT_PIECE 1024u /* of so many queries at least: while the device answers some, the next are translated; */
#define GT_FIRST_PIECE 256u /* but the first of several has so many, for which the device waits */
#define GT_WATCH_NS 20000000u /* and so long who waits for a batch looks, as it does with one device */

/* ---- rounds ---- */

/* Asks all members for all queries of a round; each has a part. */
static void gt_ask_all(gt_context *x, gt_run *r) {
  size_t from, piece, j, n = 0;
  unsigned i;
  piece = r->n > GT_PIECE ? GT_FIRST_PIECE : r->n;
  for (from = 0; from < r->n; from += piece) {
    if (from == GT_FIRST_PIECE) piece = gpuir__max64(GT_PIECE, (r->n - from + GT_PIECES - 2) / (GT_PIECES - 1));
    for (i = 0; i < x->n; i++, n++) {
      gt_task *t = &r->tasks[n];
      if (gt_describe(x, r, t, from, gpuir__min64(piece, r->n - from), 1)) break;
      t->as_or = r->again;
      t->and_first = !r->again;
    }
    if (i < x->n) break;
  }
  r->taken = r->n;
  if (from >= r->n) {
    r->ntasks = n;
    for (j = 0; j < n; j++) gt_give(x, &x->members[j % x->n], r, &r->tasks[j]);
    return;
  }
  for (j = 0; j < r->n; j++) gt_fail_query(r, gt_number(r, j), GPUIR_E_NOMEM, NULL);
  r->n = 0;
}

/* Begins a round of the queries whose numbers are there, if there are any; 0 if not. The lock is held. */
static int gt_round(gt_context *x, gt_run *r) {
  if (!r->n) return 0;
  r->ntasks = r->merged = r->taken = 0;
  if (x->team->parts) {
    gt_ask_all(x, r);
    return 1;
  }
  gt_share_out(x, r);
  (void)__atomic_add_fetch(&r->open, 1, __ATOMIC_ACQ_REL);
  gt_post(x);
  return 1;
}

/* Collects the queries of the batch for which `wanted` is true for another round. Returns how many there are. Without
 * memory it returns 0, and those of them that have not failed yet fail with NOMEM. */
static size_t gt_gather(const gt_context *x, gt_run *r, int (*wanted)(const gt_run *r, size_t i)) {
  const size_t nq = r->desc.nq;
  const gpuir_query **q;
  size_t i, n = 0;
  for (i = 0; i < nq; i++) n += wanted(r, i) != 0;
  if (!n) return 0;
  q = (const gpuir_query **)(void *)gpuir__buf_room(&x->a, &r->gathered, n * (sizeof *q + sizeof *r->numbers));
  for (i = 0; !q && i < nq; i++)
    if (wanted(r, i) && !r->desc.statuses[i]) gt_fail_query(r, i, GPUIR_E_NOMEM, NULL);
  if (!q) return 0;
  r->numbers = (uint32_t *)(void *)(q + n);
  for (n = i = 0; i < nq; i++) {
    if (!wanted(r, i)) continue;
    r->numbers[n] = (uint32_t)i;
    q[n++] = r->desc.queries[i];
  }
  return n;
}

/* Returns the most significant of what orders hits: greater ones come first. */
static inline uint64_t gt_key(gpuir_hit h) { return (uint64_t)h.score << 32 | (uint32_t)~h.docid; }

/* A member's hits of a query, as they are merged. */
typedef struct gt_source {
  const gpuir_hit *at, *end;
  uint32_t first; /* the whole's number of the part's first document */
} gt_source;

/* Merges sources of hits, best first, to the k best ones. Returns how many there are. */
static uint32_t gt_merge(gt_source *from, unsigned n, size_t k, gpuir_hit *to) {
  uint32_t got = 0;
  while (got < k) {
    gpuir_hit hit = {0, 0};
    gt_source *best = NULL;
    unsigned i;
    for (i = 0; i < n; i++) {
      gpuir_hit h;
      if (from[i].at == from[i].end) continue;
      h = *from[i].at;
      h.docid += from[i].first;
      if (best && gt_key(h) < gt_key(hit)) continue;
      best = &from[i];
      hit = h;
    }
    if (!best) break;
    best->at++;
    to[got++] = hit;
  }
  return got;
}

/* Fails a query that no device answers. */
static void gt_refuse(gt_run *r, size_t i) {
  gpuir_error error;
  const int status = gpuir__fail(&error, GPUIR_E_BACKEND, 0, "the CUDA backend answers neither phrases nor prefixes");
  gt_fail_query(r, i, status, &error);
}

/* Merges the parts' hits of a query, number i of the tasks that have it, one a member. It fails if it has in one. */
static void gt_merge_query(const gt_context *x, gt_run *r, const gt_task *tasks, size_t i) {
  const size_t number = gt_number(r, (size_t)(tasks[0].queries - gt_queries(r)) + i);
  gt_source from[GT_MEMBERS];
  const gt_task *bad = NULL;
  uint32_t sum = 0;
  unsigned m;
  for (m = 0; m < x->n; m++) {
    const gpuir_batch_desc *d = &tasks[m].desc;
    from[m].at = d->hits + i * r->k;
    from[m].end = from[m].at + d->counts[i];
    from[m].first = x->members[m].device->first;
    sum += d->counts[i];
    if (d->statuses[i] && !bad) bad = &tasks[m];
  }
  if (gt_refuses(x->team, r->desc.queries[number])) gt_refuse(r, number);
  else if (bad) gt_fail_query(r, number, bad->desc.statuses[i], &bad->error);
  else if (r->desc.count) r->desc.counts[number] = sum;
  else r->desc.counts[number] = gt_merge(from, x->n, r->k, r->desc.hits + number * r->desc.k);
}

/* Merges the hits of those queries of a round that all parts have answered. */
static void gt_merge_some(const gt_context *x, gt_run *r) {
  for (; r->merged < r->ntasks; r->merged += x->n) {
    const gt_task *tasks = &r->tasks[r->merged];
    size_t i;
    for (i = 0; i < x->n; i++)
      if (!__atomic_load_n(&tasks[i].ended, __ATOMIC_ACQUIRE)) return;
    for (i = 0; i < tasks[0].desc.nq; i++) gt_merge_query(x, r, tasks, i);
  }
}

/* Copies the outcome of a round that was not the first, of members that have the whole index. */
static void gt_copy_all(gt_run *r) {
  size_t i, m;
  for (m = 0; m < r->ntasks; m++) {
    const gt_task *t = &r->tasks[m];
    const size_t from = (size_t)(t->queries - (const gpuir_query *const *)(void *)r->gathered.data);
    for (i = 0; i < t->desc.nq; i++) {
      const size_t number = gt_number(r, from + i);
      r->desc.statuses[number] = t->desc.statuses[i];
      r->desc.counts[number] = t->desc.counts[i];
      if (!r->desc.count)
        memcpy(r->desc.hits + number * r->desc.k, t->desc.hits + i * r->k, t->desc.counts[i] * sizeof(gpuir_hit));
    }
  }
}

static int gt_wants_other(const gt_run *r, size_t i) { return gt_is_lost(r->desc.queries[i], r->desc.statuses[i]); }

static int gt_wants_or(const gt_run *r, size_t i) {
  return r->desc.queries[i]->mode == GPUIR_ANDOR && !r->desc.count && !r->desc.statuses[i] && r->desc.counts[i] < r->k;
}

/* Chooses the words for a run's status, its first query's that failed. */
static void gt_conclude(gt_run *r) {
  size_t i, m;
  for (i = 0; r->failed && i < r->desc.nq && !r->desc.statuses[i]; i++) {}
  r->status = r->failed && i < r->desc.nq ? r->desc.statuses[i] : GPUIR_OK;
  for (m = 0; m < r->ntasks && r->status && r->error.code != r->status; m++)
    if (r->tasks[m].status == r->status) r->error = r->tasks[m].error;
  r->ready = 1;
}

/* Goes on with a run none of whose tasks is open: to another round, or to its outcome. The lock is held. */
static void gt_advance(gt_context *x, gt_run *r) {
  size_t more = 0;
  if (x->team->parts) {
    gt_merge_some(x, r);
    if (!r->again) more = gt_gather(x, r, gt_wants_or);
  } else {
    if (r->again) gt_copy_all(r);
    if (r->failed && gt_alive(x)) more = gt_gather(x, r, gt_wants_other);
  }
  r->n = more;
  r->again = 1;
  if (!gt_round(x, r)) gt_conclude(r);
}

/* ---- the backend, see gpuir_backend ---- */

/* Returns whether there are members enough to answer queries. The lock is held. */
static int gt_can(const gt_context *x) { return gt_alive(x) >= (x->team->parts ? x->n : 1); }

static int gt_begin(void *context, const gpuir_batch_desc *batch, uint64_t deadline, const int *cancel, void **running,
    gpuir_error *err) {
  gt_context *x = (gt_context *)context;
  gt_run *r = x->runs[0].used ? &x->runs[1] : &x->runs[0];
  size_t i;
  if (r->used) return gpuir__fail(err, GPUIR_E_BUSY, 0, "two batches are in flight");
  if (batch->nq >= UINT32_MAX) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "too many queries");
  (void)pthread_mutex_lock(&x->lock);
  if (!gt_can(x)) {
    (void)pthread_mutex_unlock(&x->lock);
    return gpuir__fail(err, GPUIR_E_BACKEND, 0,
        x->team->parts ? "a device of several was lost" : "all devices were lost");
  }
  r->desc = *batch;
  r->desc.thresholds = NULL;
  r->k = (size_t)gpuir__min64(batch->k, x->team->ix->documents);
  r->deadline = deadline;
  r->cancel = cancel;
  r->used = 1;
  r->batch = ++x->batches;
  r->ready = r->again = r->failed = r->status = 0;
  r->error.code = 0;
  r->n = r->k || r->desc.count ? batch->nq : 0;
  for (i = 0; i < batch->nq; i++) batch->counts[i] = 0;
  if (!gt_round(x, r)) gt_conclude(r);
  (void)pthread_mutex_unlock(&x->lock);
  if (!x->team->parts && r->n / x->n > r->grain) gt_level(x, r);
  *running = r;
  return GPUIR_OK;
}

static int gt_poll(void *context, void *running) {
  gt_context *x = (gt_context *)context;
  gt_run *r = (gt_run *)running;
  if (r->ready) return 1;
  if (__atomic_load_n(&r->open, __ATOMIC_ACQUIRE)) {
    if (x->team->parts) gt_merge_some(x, r);
    return 0;
  }
  (void)pthread_mutex_lock(&x->lock);
  gt_advance(x, r);
  (void)pthread_mutex_unlock(&x->lock);
  return r->ready;
}

/* Looks at how many tasks of a run are open, until there are none, as long as it may; merges meanwhile what parts have
 * answered. */
static void gt_watch(const gt_context *x, gt_run *r) {
  const uint64_t until = gpuir__now() + GT_WATCH_NS;
  while (__atomic_load_n(&r->open, __ATOMIC_ACQUIRE) && gpuir__now() < until) {
    if (x->team->parts) gt_merge_some(x, r);
    (void)sched_yield();
  }
}

static int gt_finish(void *context, void *running, gpuir_error *err) {
  gt_context *x = (gt_context *)context;
  gt_run *r = (gt_run *)running;
  (void)pthread_mutex_lock(&x->lock);
  while (!r->ready) {
    (void)pthread_mutex_unlock(&x->lock);
    gt_watch(x, r);
    (void)pthread_mutex_lock(&x->lock);
    while (__atomic_load_n(&r->open, __ATOMIC_ACQUIRE)) (void)pthread_cond_wait(&x->done, &x->lock);
    gt_advance(x, r);
  }
  r->used = 0;
  (void)pthread_mutex_unlock(&x->lock);
  if (r->status && err) *err = r->error;
  return r->status;
}

/* ---- attaching ---- */

/* The backend's close. */
static void gt_detach(void *context) {
  gt_context *x = (gt_context *)context;
  gpuir_allocator a;
  unsigned i, j;
  if (!x) return;
  a = x->a;
  if (x->ready) {
    (void)pthread_mutex_lock(&x->lock);
    x->stop = 1;
    (void)pthread_cond_broadcast(&x->work);
    (void)pthread_mutex_unlock(&x->lock);
  }
  for (i = 0; x->members && i < x->n; i++) {
    if (x->members[i].threaded) (void)pthread_join(x->members[i].thread, NULL);
    x->team->ix->calls->searcher_destroy(x->members[i].searcher);
    for (j = 0; j < 3; j++) gpuir__buf_free(&a, &x->members[i].asked[j]);
  }
  for (i = 0; i < 2; i++) {
    for (j = 0; j < GT_TASKS; j++) {
      gpuir__buf_free(&a, &x->runs[i].tasks[j].results);
      gpuir__buf_free(&a, &x->runs[i].tasks[j].deadlines);
    }
    gpuir__buf_free(&a, &x->runs[i].gathered);
    gpuir__buf_free(&a, &x->runs[i].costs);
  }
  if (x->ready) {
    (void)pthread_cond_destroy(&x->done);
    (void)pthread_cond_destroy(&x->work);
    (void)pthread_mutex_destroy(&x->lock);
  }
  gpuir__free(&a, x->members, x->n * sizeof *x->members);
  gpuir__free(&a, x, sizeof *x);
}

/* Gives a member its searcher, and the device to that. */
static int gt_member_open(gt_member *m, const gpuir_searcher *like, unsigned number, gpuir_error *err) {
  const gt_team *t = m->context->team;
  gpuir_index *ix = m->device->part ? m->device->part : (gpuir_index *)(uintptr_t)t->ix;
  gpuir_searcher_desc desc;
  int status;
  memset(&desc, 0, sizeof desc);
  desc.evaluator = like->engine.evaluator;
  desc.threads = (like->nworkers + 1) / t->n; /* that plan */
  status = ix->calls->searcher_create(ix, &desc, &m->searcher, err);
  if (status) return status;
#ifdef GPUIR_CUDA_SEAM
  if (!GT_DEVICES) return gpuir_cuda_seam_member(number, m->searcher);
#endif
  (void)number;
  return gc_attach_device(m->searcher, m->device->cuda, GC_TRACKS_FEW, 0, err);
}

static int gt_attach(gt_context *x, const gpuir_searcher *like, gpuir_error *err) {
  unsigned i;
  x->n = x->team->n;
  x->ready =
      !pthread_mutex_init(&x->lock, NULL) && !pthread_cond_init(&x->work, NULL) && !pthread_cond_init(&x->done, NULL);
  x->members = (gt_member *)gpuir__alloc_zero(&x->a, x->n * sizeof *x->members);
  if (!x->ready || !x->members) return gpuir__fail_nomem(err);
  for (i = 0; i < x->n; i++) {
    gt_member *m = &x->members[i];
    int status;
    m->context = x;
    m->device = &x->team->devices[i];
    status = gt_member_open(m, like, i, err);
    if (status) return status;
    m->threaded = !pthread_create(&m->thread, NULL, gt_member_main, m);
    if (!m->threaded) return gpuir__fail(err, GPUIR_E_NOMEM, 0, "no thread could be started");
  }
  return GPUIR_OK;
}

/* Lets a searcher be answered by a team. */
static int gt_attach_searcher(gpuir_searcher *s, gt_team *team, int fallback, gpuir_error *err) {
  static const gpuir_backend backend = {GPUIR_BACKEND_VERSION, "cuda", NULL, gt_begin, gt_poll, gt_finish, gt_detach};
  gt_context *x = (gt_context *)gpuir__alloc_zero(&s->engine.a, sizeof *x);
  if (!x) return gpuir__fail_nomem(err);
  x->a = s->engine.a;
  x->team = team;
  return gc_set_backend(s, &backend, x, gt_attach(x, s, err), fallback, err);
}

#pragma GCC push_options
#pragma nv_diag_suppress 1675
#pragma GCC optimize("Og")
#pragma nv_diag_default 1675

/* ========================
 * [cuda-15d-live]  host: snapshots of several segments, or with deletions, on one device
 *
 * What lies on the device of a segment does not depend on a snapshot: it is made once, and a later snapshot that has
 * the same segment takes it over, so that only new segments are uploaded. A snapshot is answered as the parts of a team
 * are, one for each segment that has documents; their queries bring N, df and average length of the snapshot in their
 * weights and norms. Contributions and bounds of the segment's own are of no use then: the device computes them anew
 * for each snapshot, where that is cheap; otherwise queries are asked as under other k1 and b than the stored ones. A
 * segment's seeds are never looked at. Deleted documents are a bitmap of the snapshot's; where a segment has one, its
 * lists are decoded in place, and a document's bit is looked at before it is scored.
 *
 * Uses      [cuda-05-expand], [cuda-09-memory], [cuda-12-open], [cuda-14-launch], [cuda-15-partition].
 * Start at  gl_open.
 * Tests     tests/gpu/test_team.c (without a device), tests/gpu/test_cuda.c
 * ======================*/

#define GL_LEAST ((uint64_t)256 << 20) /* bytes that a segment may take, where there are so many */

static void gl_leave(gl_resident *r) {
  gpuir_allocator a;
  if (!r || __atomic_sub_fetch(&r->refs, 1, __ATOMIC_ACQ_REL)) return;
  a = r->alone->a;
  gc_close_device(r->cuda);
  r->alone->calls->index_close(r->alone);
  gpuir__free(&a, r, sizeof *r);
}

/* Frees what the members of a live team have; gt_close frees the rest. */
static void gl_let_go(gt_team *t) {
  unsigned i;
  for (i = 0; i < t->n; i++) {
    gt_device *d = &t->devices[i];
    if (d->cuda) {
      const size_t longs = (size_t)d->cuda->ix->stat.longs;
      (void)cudaSetDevice(d->cuda->device);
      while (d->cuda->nmemory) (void)cudaFree(d->cuda->memory[--d->cuda->nmemory]);
      gpuir__free(&t->a, d->lists, longs * sizeof *d->lists);
      gpuir__free(&t->a, d->aids, longs * sizeof *d->aids);
      gpuir__free(&t->a, d->known, longs * sizeof *d->known);
      gpuir__free(&t->a, d->cuda, sizeof *d->cuda);
    }
    gl_leave(d->resident);
    d->cuda = NULL;
    d->resident = NULL;
  }
}

/* Makes an index of a leaf, with the snapshot's deletions or without. */
static int gl_index(const gpuir_index *ix, const gpuir__leaf *leaf, int deletions, gpuir_index **index,
    gpuir_error *err) {
  gpuir__leaf one = {gpuir__segment_retain(leaf->seg), deletions ? gpuir__deleted_retain(leaf->deleted) : NULL, 0};
  return gt_make_index(ix, ix->path, &one, index, err);
}

/* Finds a segment among those that another snapshot has on the device; NULL: it is not there. */
static gl_resident *gl_find(const gpuir_cuda *share, const gpuir__segment *seg, int device) {
  const gt_team *t = share ? share->team : NULL;
  unsigned i;
  for (i = 0; t && t->live && i < t->n; i++) {
    gl_resident *r = t->devices[i].resident;
    if (!r || !r->cuda || r->hash != gpuir__segment_hash(seg) || r->size != seg->size || r->cuda->device != device)
      continue;
    (void)__atomic_add_fetch(&r->refs, 1, __ATOMIC_RELAXED);
    return r;
  }
  return NULL;
}

/* Puts a segment on the device, in `memory` bytes at most. */
static int gl_upload(const gpuir_index *ix, const gpuir__leaf *leaf, const gpuir_cuda_desc *desc, uint64_t memory,
    gl_resident **resident, gpuir_error *err) {
  gl_resident *r = (gl_resident *)gpuir__alloc_zero(&ix->a, sizeof *r);
  gpuir_cuda_desc one = *desc;
  int status;
  if (!r) return gpuir__fail_nomem(err);
  r->refs = 1;
  r->hash = gpuir__segment_hash(leaf->seg);
  r->size = leaf->seg->size;
  status = gl_index(ix, leaf, 0, &r->alone, err);
  if (status) {
    gpuir__free(&ix->a, r, sizeof *r);
    return status;
  }
  one.memory = memory;
  if (GT_DEVICES) status = gc_open_device(r->alone, &one, &r->cuda, err);
  if (!status && r->cuda && r->cuda->cache)
    status = gpuir__fail(err, GPUIR_E_NOMEM, 0, "CUDA: a segment of the snapshot needs more memory than is allowed");
  if (status) gl_leave(r);
  else *resident = r;
  return status;
}

/* ---- contributions under a snapshot's statistics ---- */

#define GL_LOOKUPS ((uint64_t)4 << 20) /* of terms in other segments, at most; */
#define GL_COUNTED ((uint64_t)64 << 20) /* postings that are decoded, to count those of deleted documents */

#ifdef GPUIR_CUDA_SEAM
int gpuir_cuda_seam_unweighed; /* 1: no list is weighed by a snapshot */
#define GC_UNWEIGHED gpuir_cuda_seam_unweighed
#else
#define GC_UNWEIGHED 0
#endif

/* Returns whether weighing all long lists of a segment by the snapshot is worth its time; otherwise their postings'
 * contributions are computed for each query. */
static int gl_is_cheap(const gpuir_index *ix, const gpuir_cuda *c) {
  uint64_t counted = 0;
  size_t i;
  for (i = 0; i < ix->nleaves; i++)
    if (ix->leaves[i].deleted) counted += ix->leaves[i].seg->stat.postings;
  return c->nlists * (uint64_t)ix->nleaves <= GL_LOOKUPS && counted <= GL_COUNTED && !GC_UNWEIGHED;
}

/* Adds the live documents of a leaf that hold a term to *df. */
static int gl_count(const gpuir__calls *calls, const gpuir__leaf *leaf, const char *term, size_t len, uint64_t *df) {
  const gpuir__segment *seg = leaf->seg;
  gpuir__record r;
  gpuir__list l;
  uint64_t id;
  uint32_t held;
  int status;
  if (calls->term_find(seg, term, len, &id)) return GPUIR_OK;
  gpuir__record_get(seg, id, &r);
  if (!leaf->deleted) {
    *df += gpuir__min64(r.df, seg->stat.documents);
    return GPUIR_OK;
  }
  status = gt_open_list(calls, seg, &seg->a, &r, &l);
  if (status) return status;
  held = gpuir__deleted_count(leaf->deleted, &l);
  *df += l.df - gpuir__min32(held, l.df);
  gpuir__list_close(&seg->a, &l);
  return GPUIR_OK;
}

/* Weighs the long lists of a member's segment by the snapshot, and bounds what their postings contribute. */
static int gl_weigh(const gpuir_index *ix, gpuir_cuda *c, const gpuir__saturation *table) {
  gpuir__walk w;
  size_t n = 0, i;
  for (gpuir__walk_start(&w, c->ix); gpuir__walk_next(&w) && n < c->nlists;) {
    uint64_t df = 0;
    gpuir__list l;
    gc_term *t;
    gc_aid *aid;
    int status = GPUIR_OK;
    if (w.record.df <= GPUIR__SHORT_MAX) continue;
    for (i = 0; i < ix->nleaves && !status; i++)
      status = gl_count(ix->calls, &ix->leaves[i], (const char *)w.term, w.len, &df);
    if (status) return status;
    t = &c->lists[n++];
    aid = &c->aids[t->slot];
    memset(&l, 0, sizeof l);
    l.extent = &c->ix->lists.longs[t->slot];
    t->weight = gpuir__weight(gpuir__idf(ix->collection, (uint32_t)gpuir__min64(df, ix->collection)), c->ix->stat.k1);
    t->most = aid->most = gpuir__bound(t->weight, gpuir__list_saturation(table, &l), 1);
    t->step = aid->most / GC_PEAK_MOST + 1;
    t->cut = aid->cut = 0;
  }
  return GPUIR_OK;
}

/* Has the device compute contributions and peaks of a member anew; marks and docIDs, which the segment's own have, are
 * written once more as they are. */
static int gl_expand(const gpuir_index *ix, gpuir_cuda *c, gpuir_error *err) {
  const gc_term *end = &c->lists[c->nlists - 1];
  const uint64_t blocks = c->ix->stat.blocks,
                 lines = end->row + ((c->view.documents - 1) >> end->span) / GC_PEAK_LINE + 1;
  gc_view *v = &c->view;
  gc_expansion to;
  const void *lists;
  int s;
  memset(&to, 0, sizeof to);
  to.guide.marks = (uint4 *)v->marks;
  to.bases = v->bases;
  to.narrow = (uint16_t *)v->narrow;
  to.wide = (uint32_t *)v->wide;
  s = gc_upload(c, c->lists, c->nlists * sizeof *c->lists, &lists, err);
  if (!s) s = gc_device_alloc(c, (size_t)blocks * 4, (void **)&to.most, err);
  if (!s) s = gc_device_alloc(c, (size_t)lines * GC_PEAK_BYTES, (void **)&to.guide.peaks, err);
  if (!s && c->expanded) s = gc_device_alloc(c, (size_t)blocks * GPUIR__BLOCK * 4, (void **)&to.impact, err);
  if (s) return s;
  GC_TRY(cudaMemset(to.guide.peaks, 0, (size_t)lines * GC_PEAK_BYTES), "expanding the lists");
  gc_expand<<<(unsigned)c->processors * 8, 256>>>(*v, (const gc_term *)lists, (uint32_t)c->nlists, blocks, to,
      ix->norm.a, ix->norm.b);
  GC_TRY(cudaGetLastError(), "expanding the lists");
  GC_TRY(cudaDeviceSynchronize(), "expanding the lists");
  v->impact = to.impact;
  v->most = to.most;
  v->peaks = to.guide.peaks;
  c->lists_there = (const gc_term *)lists;
  return GPUIR_OK;
}

/* Returns whether the bound leaves a member memory for that beside two launches. */
static int gl_has_room(const gpuir_cuda *c) {
  const gc_term *end = &c->lists[c->nlists - 1];
  const uint64_t lines = end->row + ((c->view.documents - 1) >> end->span) / GC_PEAK_LINE + 1;
  const uint64_t bytes = c->ix->stat.blocks * (4 + (c->expanded ? GPUIR__BLOCK * 4 : 0)) + lines * GC_PEAK_BYTES +
      c->nlists * sizeof *c->lists + 4096;
  const uint64_t left = gc_left(c);
  return left > bytes && left - bytes > 2 * gc_sizes_of(c, c->batch).device;
}

/* Forgets the seeds, which are the segment's own. */
static void gl_forget_seeds(gpuir_cuda *c) {
  size_t i;
  for (i = 0; i < c->nlists; i++) {
    gc_known *k = &c->known[c->lists[i].slot];
    memset(k->seeds, 0, sizeof k->seeds);
  }
}

/* Gives a member of a segment without deletions contributions, bounds and weights of its lists under the snapshot's
 * statistics, if that is cheap; then d->weighed is 1. */
static int gl_derive(const gpuir_index *ix, gt_device *d, gpuir_error *err) {
  gpuir_cuda *c = d->cuda;
  const size_t longs = (size_t)c->ix->stat.longs;
  gpuir__saturation *table;
  int status;
  if (c->view.deleted || !c->aids || !c->nlists || !gl_is_cheap(ix, c) || !gl_has_room(c)) return GPUIR_OK;
  table = (gpuir__saturation *)gpuir__alloc_zero(&c->a, sizeof *table);
  d->lists = (gc_term *)gpuir__alloc(&c->a, longs * sizeof *d->lists);
  d->aids = (gc_aid *)gpuir__alloc(&c->a, longs * sizeof *d->aids);
  if (!table || !d->lists || !d->aids) {
    gpuir__free(&c->a, table, sizeof *table);
    return gpuir__fail_nomem(err);
  }
  memcpy(d->lists, c->lists, longs * sizeof *d->lists);
  memcpy(d->aids, c->aids, longs * sizeof *d->aids);
  c->lists = d->lists;
  c->aids = d->aids;
  gpuir__saturation_prepare(table, ix->norm);
  status = gl_weigh(ix, c, table);
  gpuir__free(&c->a, table, sizeof *table);
  if (status) return gpuir__fail(err, status, 0, "%s: cannot open a list: %s", ix->path, gpuir_strerror(status));
  status = gl_expand(ix, c, err);
  if (status) return status;
  c->info.resident_bytes = c->info.index_bytes; /* what was made of it does not count */
  gc_know(c);
  d->known = c->known;
  if (!c->known) return gpuir__fail_nomem(err);
  gl_forget_seeds(c);
  memset(&c->slices, 0, sizeof c->slices);
  d->weighed = 1;
  return GPUIR_OK;
}

/* ---- opening ---- */

/* Gives a member what it answers with: the segment on the device, less the snapshot's deletions. */
static int gl_member(const gpuir_index *ix, gt_device *d, uint64_t room, gpuir_error *err) {
  const gpuir__deleted *deleted = d->part->leaves[0].deleted;
  gpuir_cuda *c;
  size_t n;
  int status;
  if (!d->resident->cuda) return GPUIR_OK;
  c = (gpuir_cuda *)gpuir__alloc(&d->part->a, sizeof *c);
  if (!c) return gpuir__fail_nomem(err);
  *c = *d->resident->cuda;
  d->cuda = c;
  c->index = d->part;
  c->room = room;
  c->info.used_memory = c->info.queries = c->info.batches = c->info.lists_hit = 0;
  c->info.plan_ns = c->info.send_ns = c->info.wait_ns = c->info.deliver_ns = 0;
  c->nmemory = 0;
  GC_TRY(cudaSetDevice(c->device), "choosing the device");
  if (!deleted) return gl_derive(ix, d, err);
  n = (size_t)deleted->words * 8;
  status = gc_upload(c, deleted->bits, n, (const void **)&c->view.deleted, err);
  if (status) return status;
  c->aids = NULL;
  c->expanded = 0;
  memset(&c->slices, 0, sizeof c->slices);
  return gc_shape_or(c, 0, err);
}

/* Finds the bytes of the device that a snapshot may take, those of segments that it takes over among them. */
static int gl_room(const gt_team *t, const gpuir_cuda_desc *desc, uint64_t *room, uint64_t *used, gpuir_error *err) {
  size_t free_bytes, all_bytes;
  unsigned i;
  *used = 0;
  for (i = 0; i < t->n; i++)
    if (t->devices[i].resident) *used += t->devices[i].resident->cuda->info.used_memory;
  GC_TRY(cudaSetDevice(desc->device), "choosing the device");
  GC_TRY(cudaMemGetInfo(&free_bytes, &all_bytes), "asking for free memory");
  *room = *used + free_bytes / 10 * 9;
  if (desc->memory && desc->memory < *room) *room = desc->memory;
  return GPUIR_OK;
}

/* Uploads the segments that are not there. Each may take a part of the memory as its file is of the files, or more,
 * where there is much. */
static int gl_upload_all(gt_team *t, const gpuir_cuda_desc *desc, gpuir_error *err) {
  uint64_t files = 0, room = 0, used = 0;
  unsigned i;
  int status = GT_DEVICES ? gl_room(t, desc, &room, &used, err) : GPUIR_OK;
  for (i = 0; i < t->n; i++)
    if (!t->devices[i].resident) files += t->devices[i].part->leaves[0].seg->size;
  for (i = 0; i < t->n && !status; i++) {
    gt_device *d = &t->devices[i];
    const gpuir__leaf *leaf = &d->part->leaves[0];
    const uint64_t left = used < room ? room - used : 0;
    if (d->resident) continue;
    status = gl_upload(t->ix, leaf, desc,
        gpuir__max64(gpuir__min64(GL_LEAST, left / 2),
            (uint64_t)((double)left * (double)leaf->seg->size / (double)files)),
        &d->resident, err);
    if (status) break;
    files -= leaf->seg->size;
    if (d->resident->cuda) used += d->resident->cuda->info.used_memory;
  }
  for (i = 0; i < t->n && !status; i++)
    status = gl_member(t->ix, &t->devices[i], (room > used ? room - used : 0) / t->n, err);
  return status;
}

/* Makes the members of a snapshot: its segments that have documents. */
static int gl_members(gt_team *t, const gpuir_cuda_desc *desc, gpuir_error *err) {
  const gpuir_index *ix = t->ix;
  size_t i;
  for (i = 0; i < ix->nleaves; i++) {
    const gpuir__leaf *leaf = &ix->leaves[i];
    gt_device *d = &t->devices[t->n];
    int status;
    if (!leaf->seg->stat.documents) continue;
    if (t->n == GT_MEMBERS)
      return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "%s: more than %u segments: merge them", ix->path, GT_MEMBERS);
    status = gl_index(ix, leaf, 1, &d->part, err);
    if (status) return status;
    d->leaf = i;
    d->first = leaf->base;
    d->end = leaf->base + (uint32_t)leaf->seg->stat.documents;
    d->resident = gl_find(desc->share, leaf->seg, desc->device);
    t->n++;
  }
  if (t->n) return GPUIR_OK;
  return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "%s: no segment has documents", ix->path);
}

/* Puts a snapshot on desc->device. */
static int gl_open(const gpuir_index *ix, const gpuir_cuda_desc *desc, gt_team **team, gpuir_error *err) {
  gpuir_cuda_desc one;
  gt_team *t = (gt_team *)gpuir__alloc_zero(&ix->a, sizeof *t);
  int status;
  if (!t) return gpuir__fail_nomem(err);
  memset(&one, 0, sizeof one);
  if (desc) one = *desc;
  if (one.ndevices) one.device = one.devices[0];
  t->a = ix->a;
  t->ix = ix;
  t->live = 1;
  status = gl_members(t, &one, err);
  t->parts = t->n;
  if (!status) status = gl_upload_all(t, &one, err);
  if (!status) {
    *team = t;
    return GPUIR_OK;
  }
  gl_let_go(t);
  gt_close(t);
  return status;
}

/* ========================
 * [cuda-16-api]  the C interface, declared in [api-backends] of gpuir.h
 *
 * Uses      [cuda-09-memory], [cuda-12-open], [cuda-14-launch], [cuda-15-partition], [cuda-15c-merge], [cuda-15d-live].
 * Start at  gpuir_cuda_open, gpuir_cuda_attach.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

extern "C" {

int gpuir_cuda_device(int device, gpuir_cuda_info *info, gpuir_error *err) {
  cudaDeviceProp p;
  if (!info) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_device: NULL");
  memset(info, 0, sizeof *info);
  return gc_look(device, &p, info, err);
}

void gpuir_cuda_close(gpuir_cuda *c) {
  gpuir_allocator a;
  if (!c || !c->team) {
    gc_close_device(c);
    return;
  }
  a = c->a;
  if (c->team->live) gl_let_go(c->team);
  gt_close(c->team);
  gpuir__free(&a, c, sizeof *c);
}

/* Opens several devices, or the segments of a snapshot, as one. */
GPUIR__COLD static int gc_open_team(const gpuir_index *ix, const gpuir_cuda_desc *desc, gpuir_cuda **cuda,
    gpuir_error *err) {
  gpuir_cuda *c = (gpuir_cuda *)gpuir__alloc_zero(&ix->a, sizeof *c);
  int status;
  if (!c) return gpuir__fail_nomem(err);
  c->a = ix->a;
  c->index = ix;
  status = gpuir__only(ix) ? gt_open(ix, desc, &c->team, err) : gl_open(ix, desc, &c->team, err);
  if (status) gpuir__free(&ix->a, c, sizeof *c);
  else *cuda = c;
  return status;
}

int gpuir_cuda_open(const gpuir_index *ix, const gpuir_cuda_desc *desc, gpuir_cuda **cuda, gpuir_error *err) {
  gpuir_cuda_desc one;
  if (cuda) *cuda = NULL;
  if (!ix || !cuda) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_open: index or cuda is NULL");
  if (ix->layout != gpuir__index_layout()) return gc_refuse(err, "gpuir_cuda_open");
  if (!ix->calls)
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "gpuir_cuda_open: the program was compiled with GPUIR_NO_CUDA");
  if (ix->calls->layout != GPUIR__CALLS_LAYOUT) return gc_refuse(err, "gpuir_cuda_open");
  if (desc && (desc->device < 0 || desc->batch > 65536 || !desc->devices != !desc->ndevices))
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_open: bad device or batch");
  if (!gpuir__only(ix) && desc && desc->ndevices > 1) return gpuir__fail_unmerged(ix, err);
  if (!gpuir__only(ix)) return gc_open_team(ix, desc, cuda, err);
  if (!desc || !desc->ndevices) return gc_open_device(ix, desc, cuda, err);
  if (desc->ndevices > 1) return gc_open_team(ix, desc, cuda, err);
  one = *desc;
  one.device = desc->devices[0];
  return gc_open_device(ix, &one, cuda, err);
}

void gpuir_cuda_get_info(const gpuir_cuda *c, gpuir_cuda_info *info) {
  if (!c || !info) return;
  if (c->team) gt_info(c->team, info);
  else gc_device_info(c, info);
}

int gpuir_cuda_attach(gpuir_searcher *s, gpuir_cuda *cuda, int fallback, gpuir_error *err) {
  if (!s || !cuda) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_attach: NULL");
  if (s->layout != gpuir__searcher_layout()) return gc_refuse(err, "gpuir_cuda_attach");
  if (s->ix != cuda->index)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_attach: a searcher of another index");
  if (cuda->team) return gt_attach_searcher(s, cuda->team, fallback, err);
  return gc_attach_device(s, cuda, GC_TRACKS, fallback, err);
}

} /* extern "C" */

#pragma GCC pop_options
