/* gpuir_cuda.cu - the CUDA backend of gpuir.h
 *
 * Answers batches of ranked queries on an NVIDIA GPU with the same bits as the CPU. Compile it with nvcc
 * against the same gpuir.h and link the object from C:
 *
 *     nvcc -O3 -arch=sm_90 \
 *          -Xcompiler -fno-exceptions,-fno-rtti,-fno-threadsafe-statics -c gpuir_cuda.cu -o gpuir_cuda.o
 *     cc main.o gpuir_cuda.o -lcudart_static -ldl -lrt -lpthread -lm
 *
 * The declarations stand in [api-cuda] of gpuir.h. The kernels of the literature stand apart, in
 * tools/lab/gpuir_lab.cu, which includes this file.
 *
 * CONTENTS
 *   Search for a tag in brackets to get there. Each part uses only parts above it; within a part, what is called
 *   stands above what calls it, so read a part from its entry points, which stand last. All parts are tested by
 *   tests/gpu/test_cuda.c, part 4 also by tests/gpu/test_lab.c, parts 15 to 15d also by tests/gpu/test_team.c.
 *
 *     [cuda-01-shared]      what host and kernels share               gc_term gc_job gc_view gc_launch_view
 *     [cuda-02-primitives]  scans, owner search, selection, sort      gc_scan gc_block_scan gc_select
 *     [cuda-03-bp128]       a block by a warp; one value; its score   gc_decode_docs gc_freq gc_contribution
 *     [cuda-04-codecs]      blocks of other codecs; recoding          gc_decode gc_recode
 *     [cuda-05-expand]      expanded lists and guides                 gc_expand
 *     [cuda-06-slices]     long lists cut at tiles of documents      gc_cut_lists
 *     [cuda-07-or]          OR: docID tiles in shared memory          gc_tiles gc_order gc_or
 *     [cuda-08-sums]       OR without pruning: slices are added up   gc_places gc_sum_tiles
 *     [cuda-09-and]         AND; OR by MaxScore                       gc_and_decoding gc_max_plan gc_max
 *     [cuda-10-phrases]    phrases: where in documents terms stand   gc_phrase_all gc_phrase_tfs
 *     [cuda-11-topk]        hits out of candidates                    gc_final gc_and_guided
 *     [cuda-12-alone]      one query alone, in one kernel            gc_alone
 *     [cuda-13-prompt]     an AND alone with a short driver          gc_prompt
 *     [cuda-14-memory]      host: device memory, sending bytes        gc_malloc gc_pipe_put
 *     [cuda-15-recoder]     host: recoding lists                      gc_recode_all gc_recoder_measure
 *     [cuda-16-cache]       host: lists of an index that is too big   gc_cache_hold_all gc_cache_open
 *     [cuda-17-open]        host: the index on the device             gc_open
 *     [cuda-18-plan]        host: queries become a launch             gc_plan_query gc_stage_plan
 *     [cuda-19-launch]      host: launches, some at a time, to hits   gc_begin gc_finish gc_attach
 *     [cuda-20-partition]   host: several devices, each with a part   gt_open gt_make_part
 *     [cuda-21-members]    host: a member's tasks and its thread     gt_take_queries gt_member_main
 *     [cuda-22-merge]      host: rounds of a batch, merged hits      gt_begin gt_advance gt_merge_query
 *     [cuda-23-live]       host: snapshots of several segments       gl_open
 *     [cuda-24-api]         the C interface                           gpuir_cuda_open gpuir_cuda_attach
 *
 * [cuda-glossary]  WORDS beside those of [glossary] in gpuir.h. In the code a block is 128 postings; CUDA's blocks are
 * called "blocks of threads", its shared memory "shared memory".
 *     batch        the queries of one call, as a program gives them: gc_batch, from begin to finish
 *     launch       some queries of a batch that the device answers together, by kernels in turn: gc_launch
 *     launch slot  a stream and the memory of one launch (gc_slot); a searcher has up to 3, so launches overlap
 *     plan         the arrays that the kernels of a launch read, as the host makes them: gc_plan
 *     job          one evaluation of a query, as AND or as OR
 *     packet       a unit of work that one thread takes: up to 64 queries to plan, or terms to put into a part
 *     planner      what plans queries: a launch slot's own, or those of the planner pool, which plan packets ahead
 *     plan args    a small plan that is a kernel's parameter, so that it needs no transfer
 *     enqueue      to put a kernel into a launch slot's stream
 *     done flag    host memory that a small launch's last kernel sets: read at once, so that no call to CUDA has to
 *     floor        a job's threshold as a key: score << 32 | ~docID; only greater keys are of interest
 *     need         the least score above the floor
 *     offer        to append a document's key to its job's buffer of candidates
 *     ticket       a group of driver blocks, which a warp draws from a counter
 *     turn, round  driver blocks that come before others, so that the floor they raise spares some of these
 *     opening      the blocks of a long driver that come first; a floor is guessed from what they find
 *     sample       blocks of a job's shortest lists, scored before all else for a floor
 *     guides       marks and peaks of a long list. A mark is a bit: may the list hold this document? A peak is the
 *                  greatest contribution within a span of documents, in 4 bits
 *     expanded     a list that lies decoded on the device: docIDs in 16 bits, contributions under the stored k1 and b
 *     slice, strip a list's postings within a tile, in strips of 128, for OR without pruning; lists without are sparse
 *     resident     on the device: a cached list, or a segment. A launch holds its lists, so that none is evicted
 *     transfer     how missing lists reach the device: pinned memory, or the locked file, and a stream
 *     team, member several devices that answer as one; each is a member, and has all documents or a part of them
 *     task         what a member is asked for: some queries of a batch, in one call of its searcher
 *
 * WHERE THE INDEX LIES. The sections of the index are uploaded as they lie in the file. If a list is in another codec
 * than bp128, all lists are sent as they are and become bp128 on the device ([cuda-04-codecs]): the same bytes that the
 * builder would have made. So no other kernel knows of codecs. When the device is opened, three more structures are
 * made of the long lists, as far as the memory bound allows, in this order:
 *   guides: 1.4 to 2.8 bytes of marks per posting, and peaks whose spans are as short as the bound allows: 2 to 4 bytes
 *     a posting where there is enough. AND skips most postings by marks, MaxScore by peaks;
 *   expanded lists: 6.1 bytes per posting more. Adding a posting takes a third of the instructions then;
 *   slices: 6 to 8 bytes per posting of the lists that are cut. They hold the same postings once more, cut at tiles of
 *     16,384 documents and dealt out over the banks of shared memory.
 * An index that does not fit stays in its file, and lists are transferred when they are needed ([cuda-16-cache]).
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
 * Structures that the host fills and the kernels read. A launch is one call of kernels on the device: gc_launch_view
 * describes it, gc_view the index that it searches.
 *
 * Start at  gc_launch_view: one launch; its jobs, their terms.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

static_assert(GPUIR__BLOCK == 4 * 32, "a lane of a warp has four values of a block");
static_assert(GPUIR__BLOCK_PAIRS * sizeof(gpuir__pair) % 4 == 0, "bounds are read as words");

#define GC_NONE UINT32_MAX
#define GC_WARP 0xffffffffu /* all lanes of a warp */
#define GC_ROUNDS 4u /* rounds in which MaxScore takes driver blocks: see gc_add_drives */

/* Kinds of lists. GC_INLINE: its one posting stands in the term itself. GC_SHORT: one block, without a directory.
 * GC_LONG: blocks with a directory. */
enum { GC_INLINE, GC_SHORT, GC_LONG };

/* A list, and how a query uses it. */
typedef struct gc_term {
  uint64_t docs, docs_len, freqs, freqs_len; /* bytes in the streams; GC_INLINE: docID and tf */
  uint64_t first_block; /* GC_LONG: its first block's number in the directory */
  uint32_t df, nblocks, kind;
  uint32_t q; /* how often the query has the term */
  float weight;
  uint32_t negated;
  uint32_t tile_row; /* its row in the tile arrays; in gpuir_cuda.lists: its number among the index's long lists */
  uint32_t most; /* the most that a posting contributes, times q */
  /* the guides of a long list: */
  uint32_t row, span; /* its first line of peaks; documents that a peak covers, log2 */
  uint32_t step; /* the score that one unit of a peak stands for, times q; 0: peaks are not valid for this query */
  uint32_t shift; /* documents that a mark covers, log2 */
  uint64_t marks; /* its first group of marks */
  uint32_t cut; /* 1 + its number among the lists that are cut into slices; 0: it is not cut */
  uint32_t wide; /* if all its blocks have 32-bit docIDs: 1 + its first block's number in gc_view.wide; otherwise 0 */
} gc_term;

/* A query, evaluated as AND or as OR. A query in mode ANDOR becomes two jobs. */
typedef struct gc_job {
  double norm_a, norm_b;
  uint32_t first_term, npositive, nterms; /* positive terms by ascending df, then negated ones */
  uint32_t k;
  uint32_t stored; /* 1: the query has the index's own k1 and b */
  uint32_t any; /* 1: OR; 0: AND */
  uint32_t after; /* of an OR: the AND job whose k hits make this one needless; or GC_NONE */
  uint32_t seed; /* a score that at least k documents are known to reach; or 0 */
  uint32_t prune; /* 1: bounds may spare work; 0: all postings are scored */
  uint32_t follow; /* of an OR: 1 if MaxScore may answer it */
  uint32_t fused; /* 1: norm_a + norm_b * length is exact in 53 bits: see gc_fused */
  uint32_t expanded; /* 1: all its lists are expanded, and `stored` is 1 */
  uint32_t count; /* 1: its documents are counted, not ranked */
  uint32_t tickets; /* of an AND: the groups of its driver's blocks */
  uint32_t mixed; /* 1: `stored` is 1 and its long lists are expanded, but it has short lists too */
} gc_job;

/* The progress of a running job. */
typedef struct gc_state {
  unsigned long long floor; /* the threshold as a key: only greater keys are of interest */
  uint32_t count; /* candidates that were offered; the buffer has lost those beyond its room */
  uint32_t level; /* how often the floor was raised from the buffer */
  uint32_t next, live; /* the next position in the tile order; tiles that have postings */
  uint32_t greatest; /* the greatest bound of a tile */
  uint32_t done; /* 1: its hits are written */
  uint32_t followed; /* 1: MaxScore answers this OR; the kernels of the tiles skip it */
  uint32_t opened; /* finished tickets of an AND's first turn, or of an OR's opening */
  uint32_t safe; /* 0: the floor is certain; otherwise it is a guess, and this is 1 + a certain score, or 1 */
  uint32_t ended; /* finished tickets of an AND whose hits the same kernel writes */
} gc_state;

/* A task of gc_tiles: up to GC_BOUND_BLOCKS blocks of a list, whose bounds it spreads over tiles. */
typedef struct gc_bound_task {
  uint32_t job, term, first, zero; /* term: its number in the launch; first: block */
} gc_bound_task;

/* Counters from which warps and blocks of threads draw their work. */
typedef struct gc_control {
  uint32_t next_or, next_drive, next_and, ended, next_sum, next_phrase; /* ended: blocks of threads of gc_alone */
  uint32_t next_query, zero;
  unsigned long long drives[GC_ROUNDS]; /* [round] entries of gc_maxs.drives << 40 | their groups of blocks */
} gc_control;

/* Blocks of a list whose postings drive a MaxScore evaluation. */
typedef struct gc_drive {
  uint32_t job, term; /* term: its number in the job */
  uint32_t from, end; /* blocks from .. end - 1 */
  uint32_t group; /* blocks that a warp takes at once */
  uint32_t part; /* which groups of them: GC_PART_ALL, GC_PART_OPENING or GC_PART_REST */
  uint32_t opening; /* tickets of the job's opening; 0: it has none */
} gc_drive;

enum { GC_PART_ALL, GC_PART_OPENING, GC_PART_REST };

/* The index on the device. */
typedef struct gc_view {
  const uint32_t *docids, *freqs; /* the streams, as words; NULL: terms hold addresses */
  const uint32_t *last, *docs_off, *freqs_off; /* the directory: an item per block */
  const uint8_t *docs_width, *freqs_width;
  const gpuir__pair *bounds; /* GPUIR__BLOCK_PAIRS per block */
  const uint32_t *lengths; /* of the documents; NULL: they are in lengths16 */
  const uint16_t *lengths16; /* of the documents, if all are below 65536; otherwise NULL */
  const uint32_t *deleted; /* a bit per document; NULL: none is deleted. Only kernels that decode in place test it */
  const uint2 *bases; /* of an expanded block: x is added to its 16-bit docIDs; y is 1 + its place in `wide`, or 0 */
  const uint16_t *narrow; /* docIDs of expanded blocks, in 16 bits */
  const uint32_t *wide; /* docIDs of those expanded blocks that span more than 65536 documents */
  const uint32_t *impact; /* contributions of expanded blocks, under the stored k1 and b */
  const uint32_t *most; /* the greatest contribution of a block */
  const uint4 *marks; /* guides: bits for the documents that a list may hold, with ranks; see gc_find */
  const uint32_t *peaks; /* guides: the greatest contribution within a span, in units of gc_term.step */
  uint32_t documents, tile, ntiles; /* tile: documents of a tile */
} gc_view;

/* Some groups of an AND's driver blocks: numbers first, first + step, and so on. All turns of an AND cover its
 * driver. */
typedef struct gc_turn {
  uint32_t job, first, step;
  uint32_t opening; /* tickets of the job's first turn, which the others wait for; 0: they do not wait */
  uint32_t group; /* blocks of a group */
} gc_turn;

/* The ANDs of a launch. A ticket stands for one group of driver blocks, which a warp takes at once. */
typedef struct gc_ands {
  const gc_turn *turns; /* n */
  const uint32_t *start; /* [n + 1] the first ticket of each turn; then the number of tickets */
  uint32_t n, tickets; /* tickets: of all turns */
} gc_ands;

/* The ORs of a launch that tiles may answer. */
typedef struct gc_ors {
  const uint32_t *jobs; /* n job numbers */
  const gc_bound_task *bound_tasks;
  uint32_t *first, *bound; /* [tile_row][ntiles + 1]: see gc_tiles */
  uint32_t *order, *total; /* [job][ntiles] tiles by descending bound; the sum of a tile's bounds */
  uint32_t n, nbound_tasks, grab; /* grab: positions of the tile order that a warp takes at once */
} gc_ors;

/* The ORs of a launch that MaxScore may answer. */
typedef struct gc_maxs {
  const uint32_t *jobs; /* n job numbers */
  gc_drive *drives; /* [round][most] the blocks that drive */
  uint32_t *drive_start; /* [round][most] the first group of each among those of its round */
  uint32_t n, most, group, parts; /* most: entries of a round; parts: warps that share a block */
  float doubt[2]; /* of samples, of openings: their guess is too high with a probability of at most exp(-doubt) */
} gc_maxs;

/* Lists that are cut into slices: see gc_cut_lists. */
typedef struct gc_slices {
  const uint8_t *strips;
  const uint32_t *starts; /* [list][ntiles + 1] the first strip of each slice */
  uint32_t tile, ntiles; /* tile: documents of a tile, a power of two; 0: no list is cut */
} gc_slices;

/* A list as gc_sum_tiles reads it. */
typedef struct gc_sum_list {
  uint32_t at; /* where its row begins in gc_slices.starts or in gc_sums.first */
  uint32_t kind_q; /* occurrences in the query; << 30: 0: it is cut, 1: it is expanded, 2: it is short */
  uint32_t from; /* an expanded list's first posting; a short list's term */
  uint32_t most; /* its strips or postings within a tile at most */
} gc_sum_list;

/* A job of gc_sum_tiles, with lists first .. first + n - 1. */
typedef struct gc_sum_job {
  uint32_t job, first, n, after; /* after: as in gc_job */
} gc_sum_job;

/* The ORs of a launch whose postings are all added up: see gc_sum_tiles. */
typedef struct gc_sums {
  const struct gc_sum_job *jobs; /* n of them */
  const struct gc_sum_list *rows; /* of all jobs; then 32 of zeros, for jobs with fewer than 32 lists */
  const uint32_t *sparse; /* nsparse terms whose lists are not cut */
  uint32_t *first; /* [tile_row][lists.ntiles + 1]: see gc_places */
  uint32_t n, nsparse;
  gc_slices lists;
} gc_sums;

/* A launch on the device. */
typedef struct gc_launch_view {
  const gc_term *terms;
  const gc_job *jobs;
  gc_state *states; /* of the jobs */
  gc_control *control;
  unsigned long long *cand; /* [job][room] keys of candidates; 0: not written yet */
  uint32_t room; /* candidates that a job's buffer holds */
  uint32_t raised; /* 1: floors are raised while documents are followed; see GC_UNRAISED */
  uint32_t alone; /* 1: the query is gc_alone's, which sets the floor before it takes blocks */
  uint32_t out_stride; /* words of a query in `out` */
  uint32_t *out; /* of each query: hits, documents if they are counted, then pairs of docID and score */
  const uint2 *query_jobs; /* of each query its jobs; the second may be GC_NONE */
  gc_ands ands;
  gc_ors ors;
  gc_maxs maxs;
  gc_sums sums;
} gc_launch_view;

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

/* ========================
 * [cuda-03-bp128]  bp128 on the device; the postings of a term and their scores
 *
 * [19-bp128] of gpuir.h defines the format. Its functions also find a block's parts here, and check which of them can
 * be believed. There are two ways to decode. A warp decodes a block: lane t gets values 4t to 4t + 3 (gc_unpack; of a
 * full block gc_load_rows and gc_unpack_rows, between which a warp may start other loads). Or a lane decodes one value
 * (gc_value).
 *
 * Start at  gc_decode_docs, gc_decode_freqs, gc_freq, gc_contribution.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

/* Returns what gpuir__packed_value does, of a value that begins less than 2^32 bits behind p, by 2 loads and a funnel
 * shift. */
static __device__ __forceinline__ uint32_t gc_packed(const uint8_t *p, unsigned w, uint32_t i) {
  const uint32_t bit = ((uint32_t)(uintptr_t)p & 3) * 8 + i * w;
  const uint32_t *words = (const uint32_t *)((uintptr_t)p & ~(uintptr_t)3) + (bit >> 5);
  return __funnelshift_r(words[0], words[1], bit) & gc_mask(w);
}

/* Returns values 4t to 4t + 3 of lane t, out of `count` values of w bits from value `from` on; values behind them are
 * 0. Four values of up to 14 bits take one load of 8 bytes. `from` is a multiple of 8 if w is more than 14. */
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
  uint32_t bits, n; /* bits of a low part; values */
  uint32_t room; /* bytes of the stream that its high parts may take, 512 at most; 0: it has no exceptions */
} gc_block;

/* Returns the room for high parts, where `left` bytes follow the low parts of n values. The marks and the width of the
 * high parts come first. */
static __device__ __forceinline__ uint32_t gc_high_room(uint64_t left, uint32_t n) {
  const uint32_t before = (n + 7) / 8 + 1;
  return left > before ? (uint32_t)min(left - before, (uint64_t)512) : 0;
}

/* The high parts of a block. */
typedef struct gc_highs {
  const uint32_t *words; /* they begin at bit `skip` */
  uint32_t skip, bits, low_bits;
} gc_highs;

/* Returns high part number i, shifted to its place in the value. */
static __device__ __forceinline__ uint32_t gc_high_part(const gc_highs &h, uint32_t i) {
  const uint32_t bit = h.skip + i * h.bits;
  const uint32_t *p = h.words + (bit >> 5);
  return (__funnelshift_r(__ldg(p), __ldg(p + 1), bit & 31) & gc_mask(h.bits)) << h.low_bits;
}

/* Adds high parts, from number `rank` on, to those of the lane's values that are marked. */
static __device__ __forceinline__ void gc_add_highs(const gc_highs &h, uint32_t mine, uint32_t rank, uint32_t v[4]) {
  uint32_t l;
#pragma unroll
  for (l = 0; l < 4; l++)
    if (mine >> l & 1) v[l] |= gc_high_part(h, rank++);
}

/* The words that hold the low parts of a lane's four values: two rows of four. */
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

/* Returns the low parts of the lane's four values, by 4 funnel shifts. */
static __device__ __forceinline__ void gc_low_parts(const gc_low &low, uint32_t bits, uint32_t v[4]) {
  uint32_t l;
#pragma unroll
  for (l = 0; l < 4; l++) v[l] = __funnelshift_r(low.word[l], low.word[4 + l], gc_lane() * bits) & gc_mask(bits);
}

/* Adds a block's exceptions to the lane's values. If the high parts do not all lie in the stream, the block counts as
 * one without exceptions, as in gpuir__bp128_open. */
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

/* Decodes a block by a warp. Values behind p.n are unspecified. */
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

/* ---- a full block in two steps: a warp loads its words, does other work, and then decodes ---- */

/* What a lane needs of a full block. */
typedef struct gc_rows {
  gc_low low;
  uint32_t bits; /* of a low part */
  uint32_t high_bits; /* of a high part; 0: no exceptions */
  uint32_t room; /* as in gc_block */
  uint32_t marks; /* the word that holds the marks of its four values */
  const uint32_t *high; /* the byte that says high_bits, then the high parts */
} gc_rows;

/* Loads what the lane needs of a full block at `low`; room: as in gc_block. */
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

/* Decodes a block that gc_load_rows has loaded. If it has up to 32 exceptions, each lane loads one high part, and
 * shuffles hand them out. */
static __device__ __forceinline__ void gc_unpack_rows(const gc_rows &r, uint32_t v[4]) {
  gc_low_parts(r.low, r.bits, v);
  if (r.high_bits) { /* the same for all lanes */
    const gc_highs h = {r.high, 8, r.high_bits, r.bits};
    const uint32_t lane = gc_lane(), mine = r.marks >> lane % 8 * 4, sum = __popc(r.marks);
    uint32_t rank = __popc(r.marks & ((1u << lane % 8 * 4) - 1)), n = 0, l;
#pragma unroll
    for (l = 0; l < 4; l++) { /* count the exceptions of earlier words, and all */
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

/* Returns the high part of value i, which is marked. It counts the marks before it, 32 at a time. */
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

/* Returns value i < p.n alone. Each lane may have a block of its own. */
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

/* Turns gaps into docIDs, by a scan over the warp. */
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

/* Returns how many postings a block has. */
static __device__ __forceinline__ uint32_t gc_block_len(const gc_term &t, uint32_t block) {
  return min(GPUIR__BLOCK, t.df - block * GPUIR__BLOCK);
}

/* Finds a block of n values in the stream list[0..length). If the list has a directory, the block begins `at` words
 * behind the stream's beginning; otherwise behind the byte of its width. */
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

/* Finds a block of a list's frequencies, or of its docIDs. */
static __device__ __forceinline__ gc_block gc_part_block(const gc_view &v, const gc_term &t, uint32_t block,
    bool freqs) {
  const uint64_t g = t.first_block + block;
  const bool directory = t.kind == GC_LONG;
  const uint8_t *list = freqs ? (const uint8_t *)v.freqs + t.freqs : (const uint8_t *)v.docids + t.docs;
  return gc_block_at(list, freqs ? t.freqs_len : t.docs_len, directory,
      directory ? __ldg((freqs ? v.freqs_off : v.docs_off) + g) : 0,
      directory ? __ldg((freqs ? v.freqs_width : v.docs_width) + g) : 0, gc_block_len(t, block));
}

/* Decodes the docIDs of a block by a warp, and returns how many it has; docIDs behind these are unspecified. All are
 * below `documents`, whatever the file says: otherwise a damaged file would make kernels write outside their arrays. */
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
  uint32_t doc[4], freq[4]; /* frequencies less one */
  uint32_t n; /* of the block, as gc_decode_docs returns it */
} gc_postings;

/* Decodes both. It is not inlined, as the code is long and its callers decode few blocks. */
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

/* Returns x / y rounded as IEEE 754 says, for 0 or 2^-60 < x < 2^60 and 2^-30 < y < 2^60. Nothing overflows or vanishes
 * for these, so that it does without __fdiv_rn's test for other operands. */
static __device__ __forceinline__ float gc_divide(float x, float y) {
  float r, q;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(y));
  r = __fmaf_rn(r, __fmaf_rn(-y, r, 1), r);
  q = __fmul_rn(x, r);
  q = __fmaf_rn(__fmaf_rn(-y, q, x), r, q);
  return __fmaf_rn(__fmaf_rn(-y, q, x), r, q);
}

/* Returns max(1, round(W * tf / (tf + K))), as gpuir__contribution does. It rounds the same 4 times in the same order:
 * otherwise scores would not be the CPU's. */
static __device__ __forceinline__ uint32_t gc_contribution(float weight, uint32_t tf_less_1, float norm) {
  float f = __uint2float_rn(min(tf_less_1, GPUIR__CAP - 1) + 1);
  uint32_t c = __float2uint_rn(gc_divide(__fmul_rn(weight, f), __fadd_rn(f, norm)));
  return c ? c : 1;
}

/* Returns a document's length. */
static __device__ __forceinline__ uint32_t gc_length(const gc_view &v, uint32_t doc) {
  return v.lengths16 ? __ldg(v.lengths16 + doc) : __ldg(v.lengths + doc);
}

/* Returns a document's K of BM25 under the job's k1 and b. */
static __device__ __forceinline__ float gc_norm(const gc_view &v, const gc_job &j, uint32_t doc) {
  return gpuir__norm_of(j.norm_a, j.norm_b, gc_length(v, doc));
}

/* ========================
 * [cuda-04-codecs]  blocks of any codec, by a warp; recoding as bp128
 *
 * Kernels decode by the functions of gpuir.h by which the CPU decodes (GPUIR_HD), so that each format is defined once.
 * Lane t has values 4t to 4t + 3 of a block. A unary vector is read 16 bits per lane; exceptions are gathered in shared
 * memory. The engine decodes other codecs only to recode them; the laboratory decodes all of them.
 * tools/results/cuda_notes.txt says what was predicted, counted and measured of each decoder.
 *
 * Uses      [cuda-03-bp128].
 * Start at  gc_decode (a block), gc_recode (a batch of lists).
 * Tests     tests/gpu/test_lab.c, and test_cuda.c on indexes in other codecs
 * ======================*/

#define GC_PLAIN 99u /* beside the codecs' ids: a list that is not coded */

/* A list on the device, in any codec. */
typedef struct gc_coded {
  gpuir__stream s; /* device addresses; it has neither codec nor scratch */
  const uint32_t *docs; /* GC_PLAIN: its docIDs */
  uint32_t nblocks, number;
  const uint8_t *slots; /* pfd-list: its low parts, and `number` exceptions, */
  const uint32_t *overflows, *positions; /* which have been decoded before */
  uint32_t bits; /* of a low part */
} gc_coded;

/* Clears the 128 words of shared memory in which exceptions' high parts are gathered. */
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

/* Does what gpuir__unary_stops does, by a warp: each lane reads 16 bits, and writes the places of its marks behind
 * those of lower lanes. */
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
    if (!total && u.sums) { /* a long gap: the sums say where the next mark is */
      uint64_t c = at * 8 >> u.log;
      if (c >= u.nsums) break;
      c = gpuir__unary_piece(&u, c, u.nsums, rank + got);
      at = gpuir__max64(at, (c << u.log) / 8);
    }
  }
  for (i = got + lane; i < count; i += 32) pos[i] = 0;
  __syncwarp();
}

/* Decodes vbyte: each lane reads 4 bytes and notes where values end. */
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

/* Returns which of a lane's values a chain of linked exceptions visits, a bit each. The chain begins at value `first`;
 * each value says how far ahead the next one is, less one. Short chains are followed, link by link. In a long chain
 * each value finds where 1, 2, 4, ... links lead, while visited values mark those that they lead to: this takes 7
 * rounds at most. Values that are marked behind the chain's end have a rank beyond its length. */
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

/* Decodes pfd, newpfd and optpfd. Linked exceptions form a chain: gc_chain finds them, then each lane fetches its
 * own. */
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

/* Decodes values from .. from + take - 1 of a segment. They become the block's values from `done` on. */
static __device__ __forceinline__ void gc_para(const gpuir__para &p, uint32_t from, uint32_t done, uint32_t take,
    uint32_t *sh, uint32_t x[4]) {
  const uint32_t lane = gc_lane(), first = 4 * lane - done;
  uint32_t i, e;
  if (p.b <= 14) { /* as in gc_packed4, but the first of the four may lie before them */
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

/* Decodes parapfor. */
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

/* Decodes a piece of a block: deviations, which are added to their line. */
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

/* Returns which of the codecs by lines `codec` is. */
static __device__ __forceinline__ int gc_lrc_kind(uint32_t codec) {
  return codec == GPUIR__ID_LRC ? GPUIR__LRC : codec == GPUIR__ID_LRCSEG ? GPUIR__LRCSEG : GPUIR__SEGLRC;
}

/* Decodes lrc, lrcseg and seglrc. No value waits for a sum of those before it. */
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

/* Decodes hslrc of a list with a directory; without one it is seglrc. A block reaches over several buckets: each lane
 * fetches where one of the next 32 buckets begins. */
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

/* Decodes ef. gc_qs decodes qs in the same way. */
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

/* Decodes qs. */
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

/* Decodes rice. The directory makes both of its prefix sums local to the block (Ding et al. 2009, 6.1). */
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

/* Decodes pfd-list, which has one width for all values. Its exceptions have been decoded before: by gcl_pfl_node, or by
 * gcl_pfl_tiles and gcl_pfl_exceptions. */
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

/* Decodes the docIDs of a block; without SUM, the gaps of a codec that stores gaps. Returns how many there are; v[]
 * behind them is unspecified. sh: 128 words of the warp's own. */
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

/* ---- recoding lists of other codecs as bp128, for the kernels ----
 *
 * A warp decodes a block and packs it as gpuir__bp128_encode would, so that all later parts know one codec. It does so
 * twice: first to find the blocks' sizes, which gc_recode_offsets turns into offsets; then to write the blocks. */

enum { GC_DOCS, GC_FREQS }; /* a list's two streams */

/* A list as the index stores it, on the device. */
typedef struct gc_source {
  gc_coded part[2];
  uint32_t codec[2];
} gc_source;

/* Where a list's bp128 goes: two streams with room for so many words, and its first block's place in the directory, if
 * it has one. */
typedef struct gc_target {
  uint32_t *part[2];
  uint32_t words[2];
  uint64_t entry;
} gc_target;

typedef struct gc_recoding {
  const gc_source *sources;
  const uint32_t *start; /* [list] the blocks of the lists before it; then all blocks */
  const gc_target *targets;
  uint32_t nlists, nblocks, grain; /* grain: blocks that a warp takes at a time */
  uint32_t *off[2]; /* of each block: its words, later where they begin in the list */
  uint8_t *width[2];
  unsigned long long *words; /* of each list: words of its docIDs, words of its frequencies */
  uint32_t *to_last, *to_off[2]; /* the directory */
  uint8_t *to_width[2];
} gc_recoding;

/* Decodes a block in whichever codec: docIDs, or frequencies less one. Returns how many; values behind them are
 * unspecified. Both are decoded at one place, as the code is long. */
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

/* How a block is packed: bits of low parts, bits of high parts (0: no exceptions), bytes in all. */
typedef struct gc_form {
  uint32_t bits, high, bytes;
} gc_form;

/* Chooses a block's form as gpuir__bp128_choose does. Lane b computes the size with b low bits. Values behind count are
 * 0. sh: 33 words. */
static __device__ __forceinline__ gc_form gc_choose(const uint32_t v[4], uint32_t count, uint32_t unit, uint32_t *sh) {
  const uint32_t lane = gc_lane(), up = unit - 1, fixed = (count + 7) / 8 + 1;
  const uint32_t w = gpuir__width32(__reduce_or_sync(GC_WARP, v[0] | v[1] | v[2] | v[3]));
  uint32_t least = (((count * w + 7) / 8 + up) & ~up) << 6, high, i; /* bytes << 6 | bits of high parts */
  gc_form form;
  __syncwarp();
  sh[lane] = 0;
  if (!lane) sh[32] = 0;
  __syncwarp();
#pragma unroll
  for (i = 0; i < 4; i++) atomicAdd(sh + gpuir__width32(v[i]), 1);
  __syncwarp();
  high = sh[lane + 1]; /* becomes: how many values have more bits than the lane's number */
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

/* Writes a block of at most 128 words, which it gathers in shared memory. is_short: the byte of its width comes
 * first. */
static __device__ __forceinline__ void gc_pack(const uint32_t v[4], uint32_t count, const gc_form &form, bool is_short,
    uint32_t *to, uint32_t words, uint32_t *sh) {
  const uint32_t lane = gc_lane(), b = form.bits, mask = gc_mask(b), start = is_short ? 8 : 0;
  uint32_t i, bit;
  __syncwarp();
  *(uint4 *)(sh + 4 * lane) = make_uint4(0, 0, 0, 0);
  __syncwarp();
  if (is_short && !lane) gc_put_bits(sh, 0, b | (form.high ? GPUIR__BP128_EXCEPTIONS : 0), 8);
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

/* Packs the values of block g. With `to` NULL it notes the block's size and width; otherwise it writes the block's
 * words there, where the list has room for `room` words. Values behind count become 0. */
static __device__ __forceinline__ void gc_recode_values(uint32_t v[4], uint32_t count, bool is_short, uint64_t g,
    uint32_t *off, uint8_t *width, uint32_t *to, uint32_t room, uint32_t *sh) {
  const uint32_t lane = gc_lane();
  gc_form form;
  uint32_t i, words;
#pragma unroll
  for (i = 0; i < 4; i++)
    if (4 * lane + i >= count) v[i] = 0;
  form = gc_choose(v, count, is_short ? 1 : 4, sh);
  words = (form.bytes + is_short + 3) / 4;
  if (to) {
    if (off[g] <= room && words <= room - off[g]) gc_pack(v, count, form, is_short, to + off[g], words, sh);
  } else if (!lane) {
    off[g] = words;
    width[g] = (uint8_t)(form.bits | (form.high ? GPUIR__BP128_EXCEPTIONS : 0));
  }
}

/* Recodes a block's docIDs or frequencies, by a warp: block `block` of list `list`, number g of all blocks. */
static __device__ __forceinline__ void gc_recode_part(const gc_recoding &r, uint32_t part, uint32_t list,
    uint32_t block, uint32_t g, bool writes, uint32_t *sh) {
  const uint32_t lane = gc_lane();
  const gc_source &s = r.sources[list];
  const gpuir__stream &docs = s.part[GC_DOCS].s;
  const bool is_short = !docs.offset;
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
  gc_recode_values(v, count, is_short, g, r.off[part], r.width[part], to ? to->part[part] : NULL,
      to ? to->words[part] : 0, sh);
  if (to && !is_short && !lane) {
    if (part == GC_DOCS) r.to_last[to->entry + block] = docs.last[block];
    r.to_off[part][to->entry + block] = r.off[part][g];
    r.to_width[part][to->entry + block] = r.width[part][g];
  }
}

/* Recodes blocks, docIDs and frequencies, one warp per block. It finds their sizes, or with `writes` writes them. */
static __global__ void __launch_bounds__(256) gc_recode(const __grid_constant__ gc_recoding r, bool writes) {
  __shared__ uint4 room[8][32];
  const uint32_t warps = gridDim.x * 8;
  uint32_t *sh = (uint32_t *)room[threadIdx.x / 32];
  uint64_t at = (uint64_t)(blockIdx.x * 8 + threadIdx.x / 32) * r.grain;
  for (; at < r.nblocks; at += (uint64_t)warps * r.grain) {
    const uint32_t end = (uint32_t)min((uint64_t)r.nblocks, at + r.grain);
    uint32_t list = gc_owner(gc_numbers{r.start}, r.nlists, at), g, part;
    for (g = (uint32_t)at; g < end; g++) {
      while (g >= __ldg(r.start + list + 1)) list++;
#pragma unroll 1
      for (part = 0; part < 2; part++) gc_recode_part(r, part, list, g - __ldg(r.start + list), g, writes, sh);
    }
  }
}

/* Turns a list's sizes into offsets. One block of threads takes its docIDs, another its frequencies. */
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
 * Kernels decode a list faster if its postings lie there decoded, and they look documents up faster with guides. Both
 * are made once for each long list, under the stored k1 and b.
 *
 * Uses      [cuda-03-bp128].
 * Start at  gc_expand, gc_expanded_docs.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_PEAK_BITS 4u
#define GC_PEAK_MOST ((1u << GC_PEAK_BITS) - 1)
#define GC_PEAK_LINE 64u /* peaks; each list begins with a new line */
#define GC_PEAK_BYTES (GC_PEAK_LINE * GC_PEAK_BITS / 8) /* of a line */
#define GC_CELLS 96u /* bits of marks in a group */

/* Raises a peak of a row to x, if it is lower. */
static __device__ void gc_raise_peak(uint32_t *row, uint32_t peak, uint32_t x) {
  uint32_t *word = row + peak / (32 / GC_PEAK_BITS), shift = peak % (32 / GC_PEAK_BITS) * GC_PEAK_BITS;
  uint32_t now = *(volatile uint32_t *)word, seen;
  while ((now >> shift & GC_PEAK_MOST) < x) {
    seen = atomicCAS(word, now, (now & ~(GC_PEAK_MOST << shift)) | x << shift);
    if (seen == now) return;
    now = seen;
  }
}

/* Returns where a list's peaks are. */
template <typename Word>
static __device__ __forceinline__ Word *gc_peaks_of(Word *peaks, const gc_term &t) {
  return peaks + (uint64_t)t.row * (GC_PEAK_BYTES / 4);
}

/* The guides of all lists: marks, and the peaks of spans of documents. */
typedef struct gc_guide_arrays {
  uint4 *marks;
  uint32_t *peaks;
} gc_guide_arrays;

/* Makes the guides of a block. Each posting sets its mark, raises its span's peak, and writes the ranks of those groups
 * that begin between the posting before it and itself. Ranks are written only for groups between the last docIDs of the
 * block and of the one before: otherwise a damaged block would write outside its list's groups. */
static __device__ void gc_note_block(const gc_view &v, const gc_guide_arrays &to, const gc_term &t, uint32_t block,
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

/* Where gc_expand writes: guides and, unless impact is NULL, expanded lists. */
typedef struct gc_expansion {
  gc_guide_arrays guide;
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

/* Makes guides and expanded lists, one warp per block. It runs once for an index, or for a snapshot's statistics. Each
 * posting's mark and peak is an atomic operation of its own, which is most of the time
 * (tools/results/cuda_notes.txt). */
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
    for (i = 0; i < 4; i++) p.doc[i] = min(p.doc[i] - base.x, 65535u); /* padding: 65535, with contribution 0 */
    s.x = (uint16_t)p.doc[0]; /* kernels load these for a wide block too, but do not use them */
    s.y = (uint16_t)p.doc[1];
    s.z = (uint16_t)p.doc[2];
    s.w = (uint16_t)p.doc[3];
    *(ushort4 *)(to.narrow + g * GPUIR__BLOCK + 4 * lane) = s;
  }
}

/* Loads the docIDs of an expanded block. Padding has contribution 0, and its docIDs may lie anywhere. */
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

/* Returns the docID of posting i of an expanded list. */
static __device__ __forceinline__ uint32_t gc_doc_at(const gc_view &v, const gc_term &t, uint32_t i) {
  const uint64_t at = t.first_block * GPUIR__BLOCK + i;
  const uint32_t x = __ldg(v.narrow + at);
  const uint2 base = __ldg(v.bases + at / GPUIR__BLOCK);
  return base.y ? __ldg(v.wide + (uint64_t)(base.y - 1) * GPUIR__BLOCK + at % GPUIR__BLOCK) : base.x + x;
}

/* ========================
 * [cuda-06-slices]  long lists cut at tiles of documents, for adding up all of them
 *
 * An OR without pruning adds up all postings, tile after tile. A slice holds a list's postings within one tile of
 * documents. Sums need no order, so a slice has none: there are no prefix sums, no bounds to test, and no blocks that
 * reach into two tiles. A posting is the place of its document's sum, in bytes, and its contribution. Slices consist of
 * strips of 128 postings:
 *
 *     place  u16 [128]      four times the document's number within the tile
 *     add    u32 [128]      the contribution under the stored k1 and b; 0: no posting
 *
 * Lane t of a warp takes postings 4t to 4t + 3 of a strip, so that the warp's i-th addition takes the postings numbered
 * i modulo 4. As far as the slice allows, these lie in different banks of shared memory: otherwise additions to one
 * bank would wait for each other. Round r of a slice takes the r-th posting of each bank.
 *
 * Uses      [cuda-05-expand].
 * Start at  gc_cut_lists.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_STRIP 768u /* bytes */
#define GC_CUT_MOST 16384u /* documents of a tile at most: their places are below 2^16 */
#define GC_CUT_THREADS 128u

/* How the postings of one slice are dealt out to places. */
typedef struct gc_dealing {
  uint32_t count[32], next[32]; /* [bank] postings; postings that have a place already */
  uint32_t before[GC_CUT_MOST / 32], banks[GC_CUT_MOST / 32]; /* [round] earlier postings; banks */
  uint32_t from, end; /* blocks that reach into the tile */
} gc_dealing;

/* Calls take(place, contribution) for each posting of list `t` within a tile, by all threads. */
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

/* Calls work(row, tile) for each slice of the lists that are cut, one block of threads per slice. */
template <typename Work>
static __device__ __forceinline__ void gc_each_slice(uint32_t ncut, const gc_slices &to, const Work &work) {
  uint64_t item;
  for (item = blockIdx.x; item < (uint64_t)ncut * to.ntiles; item += gridDim.x)
    work((uint32_t)(item / to.ntiles), (uint32_t)(item % to.ntiles));
}

/* Counts the strips of slices. */
static __global__ void __launch_bounds__(GC_CUT_THREADS) gc_count_strips(const __grid_constant__ gc_view v,
    const gc_term *lists, const uint32_t *cut, uint32_t ncut, const __grid_constant__ gc_slices to, uint32_t *strips) {
  __shared__ gc_dealing sh;
  __shared__ uint32_t n;
  gc_each_slice(ncut, to, [&](uint32_t row, uint32_t tile) {
    uint32_t mine = 0;
    if (!threadIdx.x) n = 0;
    __syncthreads();
    gc_each_in_tile(v, lists[cut[row]], to, tile, &sh, [&](uint32_t, uint32_t) { mine++; });
    mine = __reduce_add_sync(GC_WARP, mine);
    if (!gc_lane() && mine) atomicAdd(&n, mine);
    __syncthreads();
    if (!threadIdx.x) strips[(uint64_t)row * (to.ntiles + 1) + tile] = (n + GPUIR__BLOCK - 1) / GPUIR__BLOCK;
    __syncthreads();
  });
}

/* Finds the banks of each round and the postings before it, by a warp. Returns how many postings there are. */
static __device__ __forceinline__ uint32_t gc_deal(gc_dealing *sh) {
  const uint32_t mine = sh->count[gc_lane()];
  const uint32_t most = min(__reduce_max_sync(GC_WARP, mine), GC_CUT_MOST / 32); /* more: damaged */
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

/* Returns where posting number n of a slice goes: 128 times its strip, and its place there. */
static __device__ __forceinline__ uint32_t gc_dealt(uint32_t n) { return n & ~127u | (n & 31) << 2 | (n >> 5 & 3); }

/* Fills the strips of slices. What is left of the last strip adds 0. */
static __global__ void __launch_bounds__(GC_CUT_THREADS) gc_cut_lists(const __grid_constant__ gc_view v,
    const gc_term *lists, const uint32_t *cut, uint32_t ncut, const __grid_constant__ gc_slices to, uint8_t *strips) {
  __shared__ gc_dealing sh;
  __shared__ uint32_t n;
  gc_each_slice(ncut, to, [&](uint32_t row, uint32_t tile) {
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
    if (!room) return;
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
  });
}

/* ========================
 * [cuda-07-or]  OR: docID tiles in shared memory
 *
 * The docIDs are cut into tiles. gc_tiles finds the blocks of each list that reach into a tile, and bounds what they
 * can contribute there. gc_order sorts a job's tiles by descending sum of bounds. gc_or scores tile after tile in that
 * order, until a tile's bound is below the threshold: then no tile behind it can add a hit.
 * tools/results/cuda_notes.txt says what was predicted, counted and measured of each kernel.
 *
 * Uses      [cuda-03-bp128], [cuda-05-expand].
 * Start at  gc_tiles, gc_order, gc_or.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_OR_WORKERS 256u /* threads that score expanded lists; one more warp schedules the tiles */
#define GC_PACKED_WORKERS 384u /* threads that decode lists in place: more of them, as each waits longer for memory */
#define GC_OR_THREADS(EXPANDED) ((EXPANDED) ? GC_OR_WORKERS + 32u : GC_PACKED_WORKERS + 32u)
#define GC_AHEAD 3u /* blocks that a warp loads before it adds the first of them */
#define GC_KEYS 1024u /* survivors of a tile at most that are selected among in shared memory */
#define GC_BOUND_BLOCKS 2048u /* blocks of a list whose bounds one block of threads spreads over tiles */
#define GC_BUCKETS 256u /* of tile bounds */

/* ---- which blocks of a list reach into a tile, and what they can contribute there ----
 *
 * first[t] is twice the number of the first block whose last docID is not below tile t, plus 1 if that block begins in
 * an earlier tile. So tile t has blocks first[t] / 2 up to first[t+1] / 2, and that one too if first[t+1] is odd. */

/* Returns the bound of a block under any k1 and b. It is what gpuir__bound finds by its table. */
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

/* Spreads the bounds of blocks over tiles: a block of threads takes GC_BOUND_BLOCKS blocks of a list, one thread per
 * block. */
static __global__ void __launch_bounds__(256)
    gc_tiles(const __grid_constant__ gc_view v, const __grid_constant__ gc_launch_view b, int expanded) {
  uint32_t item;
  bool any = false;
  gc_chained();
  for (item = blockIdx.x + threadIdx.x * gridDim.x; item < b.ors.nbound_tasks; item += gridDim.x * blockDim.x)
    any |= !b.states[b.ors.bound_tasks[item].job].followed;
  if (!__syncthreads_or(any)) return; /* in most launches MaxScore takes all jobs */
  for (item = blockIdx.x; item < b.ors.nbound_tasks; item += gridDim.x) {
    const gc_bound_task task = b.ors.bound_tasks[item];
    if (b.states[task.job].followed) continue;
    const gc_term t = b.terms[task.term];
    const gc_job job = b.jobs[task.job];
    uint32_t *first = b.ors.first + (uint64_t)t.tile_row * (v.ntiles + 1),
             *bound = b.ors.bound + (uint64_t)t.tile_row * (v.ntiles + 1);
    if (t.kind == GC_LONG) {
      uint32_t end = min(t.nblocks, task.first + GC_BOUND_BLOCKS), i;
      for (i = task.first + threadIdx.x; i < end; i += blockDim.x) {
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
    } else if (threadIdx.x < 32) { /* one block without a bound: its postings themselves */
      const gc_postings p = gc_decode_both(v, b.terms[task.term], 0);
      uint32_t i;
      for (i = 0; i < 4; i++)
        if (4 * threadIdx.x + i < p.n)
          atomicMax(bound + p.doc[i] / v.tile,
              t.negated ? 1 : t.q * gc_contribution(t.weight, p.freq[i], gc_norm(v, job, p.doc[i])));
    }
  }
}

/* Returns a tile's bucket. A greater bound never has a lower bucket, so that gc_next_tile may end a job by its
 * bucket. */
static __device__ __forceinline__ uint32_t gc_bucket(uint32_t bound, uint32_t greatest) {
  return min((uint32_t)__fmul_rn(__uint2float_rd(bound), __fdiv_rn(GC_BUCKETS - 1, __uint2float_ru(greatest))),
      GC_BUCKETS - 1);
}

/* Orders the tiles of an OR, one block of threads per OR: it sums up their bounds and sorts them in descending order,
 * by 256 buckets. */
static __global__ void __launch_bounds__(256)
    gc_order(const __grid_constant__ gc_view v, const __grid_constant__ gc_launch_view b) {
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
        sum += b.ors.bound[(uint64_t)b.terms[job.first_term + i].tile_row * (v.ntiles + 1) + t];
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

/* ---- one warp schedules the next tile while the others score ---- */

/* A list's blocks within a tile. */
typedef struct gc_range {
  uint32_t g; /* block i of the tile is block g + i of the directory; of a list without one, nothing */
  uint32_t end; /* its blocks are those below this i */
  uint32_t q;
  uint32_t term; /* its number in the launch; GC_SLOW: it is not expanded, or k1 and b are not the stored ones */
  uint32_t first, full; /* of a list with a directory: its first block, and how many of its blocks are full */
} gc_range;
#define GC_SLOW 0x80000000u

/* A tile to score. */
typedef struct gc_item {
  unsigned long long floor; /* of the job, when the tile was chosen */
  uint32_t job, tile; /* job GC_NONE: there is no more work */
  uint32_t n, blocks; /* lists that reach into the tile, and their blocks there */
  uint32_t npositive; /* how many of the lists are positive */
  __align__(16) gc_range range[GPUIR_MAX_TERMS];
} gc_item;

/* Where the scheduling warp stands. All its lanes hold the same. */
typedef struct gc_schedule {
  uint32_t job; /* whose tiles it hands out; GC_NONE: none yet */
  uint32_t helping; /* 1: all jobs have been begun, so it helps with those of others */
  uint32_t at; /* its place in the list of OR jobs */
  uint32_t pos, end; /* the positions of the job's tile order that it has taken */
} gc_schedule;

/* Returns a job that has tiles left: first one that nobody has begun, then any. GC_NONE: there is none. */
static __device__ uint32_t gc_pick_job(const gc_launch_view &b, gc_schedule &a) {
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

/* Takes up a job whose tiles are still needed; returns false if there is none. */
static __device__ __forceinline__ bool gc_next_job(const gc_launch_view &b, gc_schedule &a) {
  for (;;) {
    uint32_t after;
    a.job = gc_pick_job(b, a);
    a.pos = a.end = 0;
    if (a.job == GC_NONE) return false;
    if (b.states[a.job].done) continue;
    after = b.jobs[a.job].after;
    if (after == GC_NONE || b.states[after].count < b.jobs[a.job].k) return true;
    if (!gc_lane()) b.states[a.job].next = UINT32_MAX / 2; /* the AND was enough */
  }
}

/* Takes positions of the job's tile order, if none are left. Returns false, and gives the job up, if it has no more. */
static __device__ __forceinline__ bool gc_next_positions(const gc_launch_view &b, gc_schedule &a) {
  gc_state *state = b.states + a.job;
  if (a.pos != a.end) return true;
  if (!gc_lane()) a.pos = atomicAdd(&state->next, b.ors.grab);
  a.pos = __shfl_sync(GC_WARP, a.pos, 0);
  a.end = min(a.pos + b.ors.grab, state->live);
  if (a.pos < a.end) return true;
  a.job = GC_NONE;
  return false;
}

/* Takes the tile of the next position; returns whether its bound reaches the floor. If the floor's bucket is higher, no
 * tile behind it reaches it either, and the job ends. */
static __device__ __forceinline__ bool gc_next_tile(const gc_view &v, const gc_launch_view &b, gc_schedule &a,
    uint32_t *tile, unsigned long long *floor) {
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
static __device__ __forceinline__ uint32_t gc_find_range(const gc_view &v, const gc_launch_view &b, const gc_job *job,
    uint32_t who, uint32_t tile, gc_range *range) {
  const gc_term *t = b.terms + who;
  const uint64_t tile_row = (uint64_t)t->tile_row * (v.ntiles + 1) + tile;
  uint32_t len;
  if (t->kind == GC_LONG) {
    uint32_t x = b.ors.first[tile_row], y = b.ors.first[tile_row + 1], start = x >> 1, end;
    end = min((y >> 1) + (y & 1), t->nblocks);
    len = end > start ? end - start : 0;
    range->first = (uint32_t)t->first_block;
    range->full = t->df / GPUIR__BLOCK;
    range->g = range->first + start;
  } else {
    len = b.ors.bound[tile_row] ? 1 : 0;
  }
  range->q = t->q;
  range->term = who | (EXPANDED && t->kind == GC_LONG && job->stored ? 0 : GC_SLOW);
  return len;
}

/* Describes a tile: the ranges of the lists that reach into it, in the order of the job's terms. Each lane takes a
 * term. */
template <bool EXPANDED>
static __device__ __forceinline__ void gc_fill_item(const gc_view &v, const gc_launch_view &b, uint32_t j,
    uint32_t tile, unsigned long long floor, gc_item *item) {
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

/* Finds the next tile that is worth scoring, by the scheduling warp. */
template <bool EXPANDED>
static __device__ void gc_schedule_tile(const gc_view &v, const gc_launch_view &b, gc_schedule &a, gc_item *item) {
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

/* Where documents are noted whose sums reach the need. All of it lies in shared memory. */
typedef struct gc_notes {
  uint32_t sums; /* shared address of the tile's sums, and of GC_SPARE more */
  uint32_t tile; /* how many sums the tile has */
  uint32_t below; /* the need, less one */
  uint32_t *noted, *count; /* the noted documents, by their number in the tile; how many there are */
} gc_notes;
#define GC_SPARE 32u /* sums behind the tile's, one per lane, for postings that lie outside it */

/* Returns the bytes of shared memory that a tile of so many documents takes. */
static size_t gc_tile_bytes(uint64_t tile) { return (size_t)(tile + GC_SPARE) * 4; }

/* Notes a document of the tile. Those beyond GC_KEYS are only counted: then all sums are read. */
static __device__ __forceinline__ void gc_note(const gc_notes &n, uint32_t local) {
  uint32_t at = atomicAdd(n.count, 1);
  if (at < GC_KEYS) n.noted[at] = local;
}

/* Adds to four documents' sums. The addition that lifts a sum to the need notes the document. Sums only grow, so
 * exactly one addition does. Postings outside the tile go to a sum that nobody reads, which is cheaper than a
 * branch. */
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
  if (hit) { /* one mask: compute-sanitizer takes two predicates for divergence at the next barrier */
#pragma unroll
    for (i = 0; i < 4; i++)
      if (n.below - old[i] < c[i] && local[i] < n.tile) gc_note(n, local[i]);
  }
}

/* Decodes a block of any kind and adds it. */
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

/* An expanded block in a lane's registers. */
typedef struct gc_block_regs {
  uint4 c;
  uint2 base, s;
} gc_block_regs;

/* Loads block g of the directory, which is expanded, into registers. */
static __device__ __forceinline__ gc_block_regs gc_load_regs(const gc_view &v, uint32_t g) {
  uint64_t at = (uint64_t)g * 32 + gc_lane();
  gc_block_regs h;
  h.c = __ldg((const uint4 *)v.impact + at);
  h.s = __ldg((const uint2 *)v.narrow + at);
  h.base = __ldg(v.bases + g);
  return h;
}

/* Adds an expanded block's postings to the tile's sums. */
static __device__ __forceinline__ void gc_add_regs(const gc_view &v, const gc_block_regs &h, uint32_t q, uint32_t base,
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

/* Blocks of a tile that a warp has loaded and not yet added. With more of them the compiler would spill registers, and
 * a spill waits for the load. */
typedef struct gc_round {
  gc_block_regs h[GC_AHEAD];
  uint32_t q[GC_AHEAD], term[GC_AHEAD], g[GC_AHEAD]; /* term: GC_NONE if there is no such block */
} gc_round;

/* Loads blocks i, i + 8 and i + 16 of a tile, those of them below `end`. `at`: the range that holds block i. For a
 * block that is not there it loads block 0: the compiler would wait for a load under a condition where the paths
 * join. */
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
    round.h[u] = gc_load_regs(v, round.term[u] & GC_SLOW ? 0 : round.g[u]);
  }
}

/* Prefetches `bytes` bytes from p on into the L2 cache. */
static __device__ __forceinline__ void gc_prefetch(const void *p, uint32_t bytes) {
  uint32_t i;
  for (i = 0; i < bytes; i += 128) asm volatile("prefetch.global.L2 [%0];" : : "l"((const uint8_t *)p + i) : "memory");
}

/* Prefetches into the L2 cache those blocks of the tile that gc_fetch does not load first, one thread per block. */
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

/* Returns how many blocks of positive lists a tile has. */
static __device__ __forceinline__ uint32_t gc_positive_blocks(const gc_item *item) {
  return item->npositive ? item->range[item->npositive - 1].end : 0;
}

/* ---- full blocks decoded in place ---- */

/* Where a block of a tile is found. */
typedef struct alignas(16) gc_head {
  const uint8_t *docs; /* a full block's low parts. NULL: it is block number `forms` of the launch's term `q` */
  const uint8_t *freqs; /* the same of its frequencies */
  uint32_t prev; /* the docID before it */
  uint32_t forms; /* of docIDs; << 16 of frequencies: bits of low parts, << 6 bytes that its high parts may take */
  uint32_t q;
  float weight;
} gc_head;
#define GC_HEADS 128u /* blocks of a tile whose heads shared memory holds at once */

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

/* Finds the heads of a tile's blocks `from` to `end`, GC_HEADS at most, one thread per block. */
static __device__ __forceinline__ void gc_find_heads(const gc_view &v, const gc_launch_view &b, const gc_item *item,
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

/* Returns gpuir__norm_of for a `fused` job, by one multiply-add. Its one rounding is the only one there too, so the
 * bits are the same. */
static __device__ __forceinline__ float gc_fused_norm(float a, float b, uint32_t length) {
  return __fmaf_rn(b, __uint2float_rn(min(length, GPUIR__CAP)), a);
}

/* Decodes a full block and adds it. */
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

/* Waits for the other workers. The scheduling warp is not among them, so __syncthreads would wait forever. */
static __device__ __forceinline__ void gc_workers_wait(void) {
  asm volatile("bar.sync 1, %0;" : : "n"(GC_PACKED_WORKERS) : "memory");
}

/* ---- the work of one tile ---- */

/* Adds a tile's expanded blocks, by the workers: each warp takes every eighth. The first ones have been loaded into
 * `round`. */
static __device__ __forceinline__ void gc_add_tile_expanded(const gc_view &v, const gc_launch_view &b,
    const gc_job &job, const gc_item *item, uint32_t base, const gc_notes &notes, gc_round &round, uint32_t at) {
  const uint32_t end = gc_positive_blocks(item);
  uint32_t i = threadIdx.x / 32, u;
  while (i < end) {
#pragma unroll
    for (u = 0; u < GC_AHEAD; u++) {
      if (!(round.term[u] & GC_SLOW)) {
        gc_add_regs(v, round.h[u], round.q[u], base, notes);
      } else if (round.term[u] != GC_NONE) {
        const gc_term *t = b.terms + (round.term[u] & ~GC_SLOW);
        gc_add_rare(v, job, t, round.g[u] - (uint32_t)t->first_block, base, notes);
      }
    }
    i += GC_AHEAD * (GC_OR_WORKERS / 32);
    if (i < end) gc_fetch(v, item, i, end, at, round);
  }
}

/* Decodes a tile's blocks and adds them, by the workers. The heads of the first ones have been found. */
static __device__ __forceinline__ void gc_add_tile_packed(const gc_view &v, const gc_launch_view &b, const gc_job &job,
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

/* Clears the sums of documents of a negated list's block, which has n postings: four of them are the lane's. */
static __device__ __forceinline__ void gc_clear4(uint32_t tile, const uint32_t d[4], uint32_t n, uint32_t base,
    uint32_t *sums) {
  uint32_t i;
  for (i = 0; i < 4; i++)
    if (4 * gc_lane() + i < n && d[i] - base < tile) sums[d[i] - base] = 0;
}

/* Clears those of a block of any kind, which it decodes. */
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

/* The sums of a tile as keys. A key is 0 if it is not above the floor. */
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
  gc_item item[2]; /* by the parity of the tile, as are nkeys and nnoted */
  uint32_t hist[256], noted[GC_KEYS];
  uint32_t nkeys[2], nnoted[2];
  uint32_t refine, pushed;
  unsigned long long kth;
};

/* Starts the first loads of the next tile's blocks. They arrive while this tile is finished. */
template <bool EXPANDED>
static __device__ __forceinline__ void gc_start_tile(const gc_view &v, const gc_launch_view &b, const gc_item *next,
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
static __device__ __forceinline__ void gc_exclude(const gc_view &v, const gc_launch_view &b, const gc_item *item,
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
  const uint32_t noted = sh->nnoted[side], need = gc_need(floor);
  uint32_t i;
  for (i = threadIdx.x; i < noted; i += blockDim.x) {
    uint32_t local = sh->noted[i];
    unsigned long long key = gpuir__key(sums[local], base + local);
    if (sums[local] >= need && key > floor) sh->keys[atomicAdd(&sh->nkeys[side], 1)] = key;
  }
}

/* Collects the survivors among all documents of the tile: GC_KEYS of them at most in shared memory. For a larger k they
 * go straight into the job's buffer. */
template <typename Shared>
static __device__ __forceinline__ void gc_survivors_all(uint32_t tile, const gc_launch_view &b, uint32_t j,
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

/* Keeps the best k survivors, or somewhat more, where shared memory does not hold all of them; returns how many. It
 * raises the floor. */
template <typename Shared>
static __device__ __forceinline__ uint32_t gc_keep_survivors(uint32_t tile, gc_state *state, uint32_t k,
    const gc_keys_sums &keys, uint32_t side, Shared *sh) {
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

/* Raises a job's floor to the k-th best candidate of its buffer, each time their number has doubled. */
template <typename Shared>
static __device__ void gc_refine(const gc_launch_view &b, uint32_t j, uint32_t k, Shared *sh) {
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

/* Moves the n <= GC_KEYS survivors in sh->keys to the job's buffer; if there are more than k, the best k of them. */
template <typename Shared>
static __device__ void gc_push(const gc_launch_view &b, uint32_t j, uint32_t k, uint32_t n, Shared *sh) {
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

/* Excludes the documents of negated lists and deleted ones from a tile, if there are any. All threads call it. */
template <bool EXPANDED>
static __device__ __forceinline__ void gc_exclude_all(const gc_view &v, const gc_launch_view &b, const gc_item *item,
    uint32_t base, bool scheduler, uint32_t *sums) {
  if (item->npositive < item->n || (!EXPANDED && v.deleted)) {
    if (!scheduler) gc_exclude<EXPANDED>(v, b, item, base, sums);
    if (!EXPANDED && !scheduler && v.deleted) gc_exclude_deleted(v, base, GC_OR_THREADS(EXPANDED) - 32, sums);
    __syncthreads();
  }
}

/* Collects a tile's survivors in sh->keys, or counts them for a job that counts. Returns how many are to be pushed.
 * all: no documents were noted, so that all sums are read. All threads call it. */
template <typename Shared>
static __device__ __forceinline__ uint32_t gc_collect_survivors(const gc_view &v, const gc_launch_view &b,
    const gc_job &job, uint32_t j, uint32_t base, unsigned long long floor, bool all, uint4 *sums4, uint32_t side,
    Shared *sh) {
  uint32_t *sums = (uint32_t *)sums4, n;
  const uint32_t noted = sh->nnoted[side];
  if (!all && noted <= Shared::KEYS) gc_survivors_noted(sums, base, floor, side, sh);
  else gc_survivors_all(v.tile, b, j, sums4, base, floor, side, sh);
  if (all || noted) __syncthreads();
  n = sh->nkeys[side];
  if (job.count) {
    if (!threadIdx.x) atomicAdd(&b.states[j].count, n);
    n = 0;
  }
  if (n > Shared::KEYS) n = gc_keep_survivors(v.tile, b.states + j, job.k, gc_keys_sums{sums, base, floor}, side, sh);
  return n;
}

/* Scores tiles. The workers add the postings of a tile to its sums in shared memory, and note the documents that reach
 * the floor. One more warp schedules the next tile meanwhile. Without a floor, and for a large k, nothing is noted, and
 * all sums are read. The counts of its instructions and bytes stand in tools/results/ncu_cuda.txt. */
template <bool EXPANDED>
static __global__ void __launch_bounds__(GC_OR_THREADS(EXPANDED), 2)
    gc_or(const __grid_constant__ gc_view v, const __grid_constant__ gc_launch_view b) {
  extern __shared__ uint4 gc_dynamic[];
  __shared__ gc_shared_or sh;
  __shared__ gc_shared_heads<EXPANDED> packed;
  uint32_t *sums = (uint32_t *)gc_dynamic;
  uint32_t i, side = 0, at = 0;
  gc_round round;
  const uint32_t threads = GC_OR_THREADS(EXPANDED);
  const bool scheduler = threadIdx.x >= threads - 32;
  gc_schedule schedule = {GC_NONE, 0, 0, 0, 0};
  gc_chained();
  for (i = threadIdx.x; i < v.tile / 4; i += blockDim.x) gc_dynamic[i] = make_uint4(0, 0, 0, 0);
  if (threadIdx.x < 2) sh.nkeys[threadIdx.x] = sh.nnoted[threadIdx.x] = 0;
  if (scheduler) gc_schedule_tile<EXPANDED>(v, b, schedule, &sh.item[0]);
  __syncthreads();
  if (!scheduler) gc_start_tile<EXPANDED>(v, b, &sh.item[0], round, at, packed.heads, false);
  if (!EXPANDED) __syncthreads();
  for (;; side ^= 1) {
    const gc_item *item = &sh.item[side], *next = &sh.item[side ^ 1];
    const uint32_t j = item->job, base = item->tile * v.tile;
    const unsigned long long floor = item->floor; /* the same for all threads: noting relies on it */
    if (j == GC_NONE) return;
    const gc_job &job = b.jobs[j];
    const uint32_t k = job.k;
    const bool all = k > GC_KEYS || !floor; /* nothing is noted; all sums are read */
    if (scheduler) {
      gc_schedule_tile<EXPANDED>(v, b, schedule, &sh.item[side ^ 1]);
    } else {
      const gc_notes notes = {(uint32_t)__cvta_generic_to_shared(sums), v.tile, (all ? UINT32_MAX : gc_need(floor)) - 1,
          sh.noted, &sh.nnoted[side]};
      if (EXPANDED) gc_add_tile_expanded(v, b, job, item, base, notes, round, at);
      else gc_add_tile_packed(v, b, job, item, base, notes, packed.heads);
    }
    __syncthreads();
    at = 0;
    if (!scheduler) gc_start_tile<EXPANDED>(v, b, next, round, at, packed.heads, true);
    gc_exclude_all<EXPANDED>(v, b, item, base, scheduler, sums);
    if (!threadIdx.x) sh.nkeys[side ^ 1] = sh.nnoted[side ^ 1] = 0;
    i = gc_collect_survivors(v, b, job, j, base, floor, all, gc_dynamic, side, &sh);
#pragma unroll 8
    for (uint32_t o = threadIdx.x; o < v.tile / 4; o += threads) gc_dynamic[o] = make_uint4(0, 0, 0, 0);
    if (i) gc_push(b, j, k, i, &sh);
    __syncthreads();
    if (i || k > GC_KEYS) gc_refine(b, j, k, &sh);
  }
}

/* ========================
 * [cuda-08-sums]  OR without pruning: all slices of a tile are added up
 *
 * A query's lists are cut lists, whose slices are added strip by strip, and sparse ones, whose few postings in a tile
 * are looked up. gc_places finds the sparse lists' postings within each tile. gc_sum_tiles takes the tiles one after
 * another, and each tile for all queries: so the strips that queries share come from the L2 cache.
 *
 * Uses      [cuda-03-bp128], [cuda-05-expand] to [cuda-07-or].
 * Start at  gc_places, gc_sum_tiles.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_SUM_WORKERS 6u /* warps that add strips; one more adds sparse lists, and one schedules */
#define GC_SUM_BLOCKS 3 /* blocks of threads on a multiprocessor */
#define GC_SUM_AHEAD 4u /* strips that a warp loads before it adds the first of them */
#define GC_SUM_THREADS (32u * (GC_SUM_WORKERS + 2u))
#define GC_SUM_ROUND (GC_SUM_WORKERS * GC_SUM_AHEAD) /* strips of a round of all workers */
#define GC_SUM_GRAB 4u /* pairs of a query and a tile that are taken at once */
#define GC_SUM_PARTS 8u /* blocks of threads that share a list in gc_places */

/* Finds the postings of sparse lists within each tile: first[t] becomes the number of the first posting from tile t
 * on. */
static __global__ void __launch_bounds__(256)
    gc_places(const __grid_constant__ gc_view v, const __grid_constant__ gc_launch_view b) {
  gc_chained();
  const gc_term &t = b.terms[b.sums.sparse[blockIdx.x / GC_SUM_PARTS]];
  const uint32_t tile = b.sums.lists.tile, ntiles = b.sums.lists.ntiles, part = blockIdx.x % GC_SUM_PARTS;
  uint32_t *first = b.sums.first + (uint64_t)t.tile_row * (ntiles + 1), i, at;
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
  uint32_t job, tile; /* job GC_NONE: there is no more work */
  uint32_t first, n; /* its lists in b.sums.rows; n 0: nothing is to be done */
} gc_sum_item;

#define GC_SUM_RING 8u

struct gc_shared_sum {
  enum : uint32_t { KEYS = 1024u, NOTED = 512u };
  unsigned long long keys[KEYS]; /* survivors of the tile */
  gc_sum_item item[GC_SUM_RING]; /* the next items, a ring */
  uint32_t hist[256];
  uint16_t noted[NOTED]; /* noted documents, by their number in the tile */
  uint32_t nkeys[2], nnoted[2]; /* by the parity of the tile */
  uint32_t refine, pushed;
  uint32_t now; /* 1: the floor of the tile's job is to be raised now */
};

/* Where a block of threads stands. */
typedef struct gc_sum_place {
  uint32_t at, side; /* number of the item; parity of the tile */
} gc_sum_place;

/* Returns the item of this number. */
static __device__ __forceinline__ gc_sum_item *gc_sum_at(gc_shared_sum *sh, uint32_t at) {
  return &sh->item[at % GC_SUM_RING];
}

/* Loads from where they are called. The compiler would move a plain load of memory that nobody writes behind the next
 * barrier, where the warp would wait for it. */
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

/* ---- finding a tile's postings ----
 *
 * Each warp does so for itself, one lane per list, in three steps: it loads the lists of item i + 3, their places in
 * the tile of item i + 2, and the postings of item i + 1. So each load has the time of an item to arrive. */

/* A lane's list, and the strips or postings from .. to - 1 that it has in a tile. */
typedef struct gc_sum_cursor {
  uint4 list; /* a gc_sum_list */
  uint32_t from, to;
} gc_sum_cursor;

/* This and gc_sum_load_places load rows of zeros for items that are not there: the compiler would wait for a load under
 * a condition where the paths join. */
template <bool SPARSE>
static __device__ __forceinline__ void gc_sum_load_list(const gc_launch_view &b, const gc_sum_item *item, uint4 &list) {
  const uint4 *p = (const uint4 *)b.sums.rows + item->first + gc_lane();
  if (SPARSE) {
    list = gc_sum_load4(p);
  } else { /* the rest is not needed */
    const uint2 half = gc_sum_load2(p);
    list.x = half.x;
    list.y = half.y;
  }
}

/* Loads where the lane's list begins and ends in the item's tile. */
static __device__ __forceinline__ void gc_sum_load_places(const gc_launch_view &b, const gc_sum_item *item,
    gc_sum_cursor &l) {
  const uint32_t *p = (l.list.y >> 30 ? b.sums.first : b.sums.lists.starts) + l.list.x + item->tile;
  l.from = gc_sum_load1(p);
  l.to = gc_sum_load1(p + 1);
}

/* What a lane's list has in a tile, in units: strips, or 32 postings of a sparse list. */
typedef struct gc_sum_range {
  uint32_t end; /* the units of lower lanes and of this one */
  uint32_t start; /* unit i is number start + i, of strips or of postings */
  uint32_t q, postings, who;
  uint32_t n; /* units of all lanes */
  uint32_t shorts; /* lists without a directory, a bit each */
  bool wipe; /* 1: all sums are cleared. 0: the warps clear those that they have added to */
} gc_sum_range;

/* Finds the ranges: with SPARSE of sparse lists, otherwise of cut ones. */
template <bool SPARSE>
static __device__ __forceinline__ gc_sum_range gc_sum_find(const gc_sum_item *item, const gc_sum_cursor &l) {
  const uint32_t kind = l.list.y >> 30, most = SPARSE ? l.list.w : 1u << 26, live = gc_lane() < item->n;
  const uint32_t count = live && l.to - l.from <= most ? l.to - l.from : 0; /* a damaged list's count may be anything */
  const uint32_t strips = kind == 0 ? count : 0, sparse_units = kind == 1 ? (count + 31) / 32 : 0;
  gc_sum_range r;
  r.end = gc_scan(SPARSE ? sparse_units : strips);
  r.n = __shfl_sync(GC_WARP, r.end, 31);
  r.start = SPARSE ? l.from + l.list.z - 32 * (r.end - sparse_units) : l.from - (r.end - strips);
  r.q = l.list.y & 0x3fffffff;
  r.postings = SPARSE ? count + 32 * (r.end - sparse_units) : 0;
  r.who = l.list.z;
  r.shorts = __ballot_sync(GC_WARP, kind == 2 && count);
  r.wipe = r.shorts || __reduce_add_sync(GC_WARP, strips) > 2 * GC_SUM_ROUND ||
      __reduce_add_sync(GC_WARP, sparse_units) > GC_SUM_AHEAD;
  return r;
}

/* ---- adding to a tile's sums ---- */

/* Where documents are noted whose sums reach the need. */
typedef struct gc_sum_notes {
  uint32_t sums, need; /* sums: their shared address */
  uint16_t *noted;
  uint32_t *count;
} gc_sum_notes;

/* Adds c to the sum at a shared address; returns what it was before. */
static __device__ __forceinline__ uint32_t gc_sum_atomic(uint32_t at, uint32_t c) {
  uint32_t old;
  asm volatile("atom.shared.add.u32 %0, [%1], %2;" : "=r"(old) : "r"(at), "r"(c) : "memory");
  return old;
}

/* Clears the sum at a shared address. */
static __device__ __forceinline__ void gc_sum_clear(uint32_t at) {
  asm volatile("st.shared.u32 [%0], %1;" : : "r"(at), "r"(0) : "memory");
}

/* Clears all sums, by all warps but the scheduling one. */
static __device__ __forceinline__ void gc_sum_wipe(uint32_t sums, uint32_t tile) {
  uint32_t i;
#pragma unroll 4
  for (i = threadIdx.x; i < tile / 4; i += GC_SUM_THREADS - 32)
    asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" : : "r"(sums + 16 * i), "r"(0) : "memory");
}

/* Notes the document at `place`, if adding c to the sum `old` has lifted it to the need. */
static __device__ __forceinline__ void gc_sum_note(const gc_sum_notes &n, uint32_t place, uint32_t old, uint32_t c) {
  if (n.need - 1 - old < c) {
    const uint32_t at = atomicAdd(n.count, 1);
    if (at < gc_shared_sum::NOTED) n.noted[at] = (uint16_t)(place / 4);
  }
}

/* Adds a strip. */
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

/* Decodes a short list and adds it. */
static __device__ __noinline__ void gc_sum_short(const gc_view &v, const gc_launch_view &b, const gc_sum_item *item,
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

/* A warp's strips of a tile: those that it has loaded. */
struct gc_sum_strips {
  enum : uint32_t { STEP = GC_SUM_WORKERS, ROUND = GC_SUM_ROUND };
  static const bool SPARSE = false;
  uint2 place[GC_SUM_AHEAD];
  uint4 add[GC_SUM_AHEAD];
  uint32_t q[GC_SUM_AHEAD];
  struct done {
    uint2 place[GC_SUM_AHEAD];
  };
  /* Loads the strips from number i on that are below r.n. For others it loads the first strip of all. */
  __device__ __forceinline__ void fetch(const gc_view &, const gc_launch_view &b, const gc_sum_range &r, uint32_t i) {
    uint32_t u;
#pragma unroll
    for (u = 0; u < GC_SUM_AHEAD; u++, i += STEP) {
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
    for (u = 0; u < GC_SUM_AHEAD; u++, i += STEP) {
      d.place[u] = place[u];
      if (i < n) gc_sum_add(notes, place[u], add[u], q[u]);
    }
  }
  static __device__ __forceinline__ void undo(uint32_t sums, uint32_t i, uint32_t n, const done &d) {
    uint32_t u;
#pragma unroll
    for (u = 0; u < GC_SUM_AHEAD; u++, i += STEP)
      if (i < n) {
        gc_sum_clear(sums + (d.place[u].x & 0xffff));
        gc_sum_clear(sums + (d.place[u].x >> 16));
        gc_sum_clear(sums + (d.place[u].y & 0xffff));
        gc_sum_clear(sums + (d.place[u].y >> 16));
      }
  }
};

/* A tile's postings of sparse lists, one lane per posting: those that the warp has loaded. */
struct gc_sum_sparse {
  enum : uint32_t { STEP = 1, ROUND = GC_SUM_AHEAD };
  static const bool SPARSE = true;
  uint2 base[GC_SUM_AHEAD];
  uint32_t narrow[GC_SUM_AHEAD], add[GC_SUM_AHEAD], q[GC_SUM_AHEAD], at[GC_SUM_AHEAD]; /* at: the posting's number */
  struct done {
    uint32_t place[GC_SUM_AHEAD];
  };
  __device__ __forceinline__ void fetch(const gc_view &v, const gc_launch_view &, const gc_sum_range &r, uint32_t i) {
    uint32_t u;
#pragma unroll
    for (u = 0; u < GC_SUM_AHEAD; u++, i++) {
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
    for (u = 0; u < GC_SUM_AHEAD; u++, i++) {
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
    for (u = 0; u < GC_SUM_AHEAD; u++, i++)
      if (i < n && d.place[u] != GC_NONE) gc_sum_clear(sums + d.place[u]);
  }
};

/* ---- tile after tile ---- */

/* Waits for all threads. Each role waits at instructions of its own. barrier.sync allows that; bar.sync and
 * __syncthreads demand that all threads wait at the same one. */
static __device__ __forceinline__ void gc_sum_wait(void) {
  asm volatile("barrier.sync 1, %0;" : : "n"(GC_SUM_THREADS) : "memory");
}

/* Waits until a tile's sums are complete. Returns how many documents were noted, or GC_SUM_STOP if there are so many
 * that all threads have to collect them. */
#define GC_SUM_STOP 0x80000000u
static __device__ __forceinline__ uint32_t gc_sum_complete(const gc_shared_sum *sh, uint32_t side) {
  gc_sum_wait();
  const uint32_t noted = sh->nnoted[side];
  return noted > 32 ? GC_SUM_STOP : noted;
}

/* Moves the noted documents of a tile, 32 at most, to the job's buffer, by one warp. It waits for all threads once it
 * has read their sums, so that the others may clear these. */
static __device__ __forceinline__ void gc_sum_push(const gc_launch_view &b, const gc_sum_item *item, uint32_t noted,
    uint32_t side, gc_shared_sum *sh, uint32_t sums) {
  const uint32_t lane = gc_lane(), j = item->job, base = item->tile * b.sums.lists.tile;
  gc_state *state = b.states + j;
  unsigned long long key = 0;
  uint32_t vote, at = 0, step;
  if (lane < noted) {
    uint32_t sum;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(sum) : "r"(sums + 4 * sh->noted[lane]) : "memory");
    key = gpuir__key(sum, base + sh->noted[lane]);
  }
  gc_sum_wait();
  if (!lane) sh->nnoted[side] = 0;
  vote = __ballot_sync(GC_WARP, key > item->floor);
  if (!vote) return;
  if (!lane) at = atomicAdd(&state->count, __popc(vote));
  at = __shfl_sync(GC_WARP, at, 0);
  if (key > item->floor && at + gc_rank(vote) < b.room) __stcg(b.cand + (uint64_t)j * b.room + at + gc_rank(vote), key);
  step = (at + __popc(vote)) / max(2 * b.jobs[j].k, 64u);
  if (!lane && step && 32 - __clz(step) > *(volatile uint32_t *)&state->level) sh->now = 1;
}

/* Adds up tiles until all threads are needed. It is warp number `warp` of those that share the units. */
template <typename Units>
static __device__ __forceinline__ void gc_sum_work(const gc_view &v, const gc_launch_view &b, gc_shared_sum *sh,
    uint32_t sums, uint32_t warp, gc_sum_place &to) {
  const uint32_t tile = b.sums.lists.tile;
  Units units;
  gc_sum_cursor l1, l2; /* of item to.at + 1, of item to.at + 2 */
  gc_sum_range r;
  uint4 list; /* of item to.at + 3 */
  l2.list = list = make_uint4(0, 0, 0, 0);
  l2.from = l2.to = 0;
  gc_sum_load_list<Units::SPARSE>(b, gc_sum_at(sh, to.at), l2.list);
  gc_sum_load_places(b, gc_sum_at(sh, to.at), l2);
  r = gc_sum_find<Units::SPARSE>(gc_sum_at(sh, to.at), l2);
  units.fetch(v, b, r, warp);
  l1 = l2;
  gc_sum_load_list<Units::SPARSE>(b, gc_sum_at(sh, to.at + 1), l1.list);
  gc_sum_load_places(b, gc_sum_at(sh, to.at + 1), l1);
  gc_sum_load_list<Units::SPARSE>(b, gc_sum_at(sh, to.at + 2), list);
  for (;;) {
    const gc_sum_item *item = gc_sum_at(sh, to.at);
    if (item->job == GC_NONE) return;
    const gc_sum_notes notes = {sums, gc_need(item->floor), sh->noted, &sh->nnoted[to.side]};
    const uint32_t n = r.n, first = item->tile * tile;
    const bool wipe = r.wipe;
    typename Units::done done, then; /* places of the first two rounds; with more rounds, all sums are cleared */
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
    if (Units::SPARSE)
      for (i = r.shorts; i; i &= i - 1) gc_sum_short(v, b, item, __shfl_sync(GC_WARP, r.who, __ffs(i) - 1), notes);
    r = gc_sum_find<Units::SPARSE>(gc_sum_at(sh, to.at + 1), l1);
    units.fetch(v, b, r, warp);
    l1.list = list;
    gc_sum_load_places(b, gc_sum_at(sh, to.at + 2), l1);
    gc_sum_load_list<Units::SPARSE>(b, gc_sum_at(sh, to.at + 3), list);
    what = gc_sum_complete(sh, to.side);
    if (what == GC_SUM_STOP) return;
    if (what && Units::SPARSE) gc_sum_push(b, item, what, to.side, sh, sums);
    else if (what) gc_sum_wait();
    if (wipe) {
      gc_sum_wipe(sums, tile);
    } else {
      Units::undo(sums, warp, n, done);
      if (!Units::SPARSE && warp + Units::ROUND < n) Units::undo(sums, warp + Units::ROUND, n, then);
    }
    to.side ^= 1;
    gc_sum_wait();
    if (sh->now) return;
    to.at++;
  }
}

/* What the scheduling warp has taken: its place, and the job of the next item. */
typedef struct gc_sum_ahead {
  uint32_t pos, end; /* pairs of a tile and a query that it has taken and not handed out */
  uint32_t tile;
  uint4 head; /* a gc_sum_job; x GC_NONE: there is no more work */
} gc_sum_ahead;

/* Takes the next pair of a tile and a query. */
static __device__ __forceinline__ void gc_sum_take(const gc_launch_view &b, gc_sum_ahead &a) {
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

/* Describes the item of a.head, and takes the next pair. */
static __device__ __forceinline__ void gc_sum_describe(const gc_launch_view &b, gc_sum_ahead &a, gc_sum_item *item) {
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

/* Schedules items until all threads are needed. */
static __device__ __forceinline__ void gc_sum_schedule(const gc_launch_view &b, gc_shared_sum *sh, uint32_t sums,
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

/* Collects the survivors of a tile, moves them to the job's buffer, and clears all sums. All threads call it. */
static __device__ __noinline__ void gc_sum_survivors(const gc_launch_view &b, const gc_sum_item *item, uint32_t side,
    gc_shared_sum *sh, uint4 *sums4) {
  uint32_t *sums = (uint32_t *)sums4;
  const uint32_t j = item->job, tile = b.sums.lists.tile, base = item->tile * tile, k = b.jobs[j].k;
  const unsigned long long floor = item->floor;
  uint32_t i;
  if (sh->nnoted[side] <= gc_shared_sum::NOTED) gc_survivors_noted(sums, base, floor, side, sh);
  else gc_survivors_all(tile, b, j, sums4, base, floor, side, sh);
  __syncthreads();
  i = sh->nkeys[side];
  if (i > gc_shared_sum::KEYS) i = gc_keep_survivors(tile, b.states + j, k, gc_keys_sums{sums, base, floor}, side, sh);
  if (i) gc_push(b, j, k, i, sh);
  __syncthreads();
  if (i) gc_refine(b, j, k, sh);
  for (i = threadIdx.x; i < tile / 4; i += GC_SUM_THREADS) sums4[i] = make_uint4(0, 0, 0, 0);
  if (!threadIdx.x) sh->nkeys[side] = sh->nnoted[side] = 0;
}

/* Adds up tiles, each of them for all queries. The warps have three roles: workers add strips, one warp adds sparse
 * lists, and one schedules the items. The addition that lifts a sum to the need notes the document. The warps remember
 * where they have added, and clear these sums only, unless there were too many. */
static __global__ void __launch_bounds__(GC_SUM_THREADS, GC_SUM_BLOCKS)
    gc_sum_tiles(const __grid_constant__ gc_view v, const __grid_constant__ gc_launch_view b) {
  extern __shared__ uint4 gc_dynamic[];
  __shared__ gc_shared_sum sh;
  __shared__ gc_sum_ahead ahead;
  const uint32_t warp = __shfl_sync(GC_WARP, threadIdx.x / 32, 0),
                 sums = (uint32_t)__cvta_generic_to_shared(gc_dynamic);
  gc_sum_place to = {0, 0};
  gc_chained();
  gc_sum_wipe(sums, b.sums.lists.tile);
  if (threadIdx.x < 2) sh.nkeys[threadIdx.x] = sh.nnoted[threadIdx.x] = 0;
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
      gc_sum_work<gc_sum_sparse>(v, b, &sh, sums, 0, to);
    } else {
      gc_sum_ahead a = ahead;
      gc_sum_schedule(b, &sh, sums, a, to);
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

/* ========================
 * [cuda-14-memory]  host: the backend's structure, device memory within the bound, sending bytes
 *
 * gpuir_cuda is an index on a device. All device memory is allocated here, so that it counts against the bound that the
 * program gave. Lists that are sent later go through a gc_pipe.
 *
 * Uses      [cuda-10-phrases].
 * Start at  gpuir_cuda; gc_malloc, gc_upload, gc_describe; gc_pipe_put.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_PAD 1024u /* bytes of zeros behind each section: kernels may read these in a damaged block */

/* Where a long list's guides are; see gc_term. */
typedef struct gc_list_guide {
  uint64_t marks;
  uint32_t row, span, shift, most;
  uint32_t cut, wide; /* as in gc_term */
} gc_list_guide;

/* Where a list of another codec lies as bp128: docIDs, then frequencies from the next multiple of 16 on. */
typedef struct gc_place {
  uint64_t docs; /* address */
  uint32_t docs_words, freqs_words;
} gc_place;

/* The part of a long list's term that does not depend on the query, in two lines of the processor's cache. */
typedef struct gc_known {
  gc_term term; /* df 0: it has not been prepared */
  uint32_t seeds[GPUIR__SEEDS]; /* 0: none */
  uint8_t pad[128 - sizeof(gc_term) - GPUIR__SEEDS * 4];
} gc_known;

typedef struct gc_cache gc_cache;
typedef struct gt_team gt_team;

/* How many blocks of threads fill the device, of each kernel. */
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
  gpuir__buf recoded; /* void *: the device memory of recoded lists */
  gc_term *lists; /* long lists, in the order of their blocks */
  size_t nlists;
  const gc_term *lists_there; /* the same on the device */
  gc_slices slices;
  gc_list_guide *guides; /* [number among the index's long lists]; NULL: there are no guides */
  gc_known *known; /* likewise; NULL: each query describes its lists anew */
  gc_cache *cache; /* NULL: the whole index is on the device */
  gc_positions positions; /* with bytes NULL: they are not on the device */
  size_t phrase_room; /* shared memory that a block of threads of gc_phrase_all may take */
  uint64_t room; /* the bound, in bytes */
  uint64_t threshold;
  int refused; /* 1: the bound left no memory for something */
  uint32_t k_most;
  size_t batch; /* queries of a launch at most */
  int by_itself; /* 1: the backend has chosen `batch`, and may take fewer */
  int ahead; /* the greatest priority of kernels */
  gc_grids grids;
  gpuir_cuda_info info; /* counters: atomic */
  gt_team *team; /* several devices, of which this is only the handle; or NULL */
};

/* Reports a failed CUDA call as a status with its cause in words. */
static int gc_fail(gpuir_error *err, cudaError_t e, const char *what) {
  (void)cudaGetLastError(); /* otherwise the next call would report it again */
  if (e == cudaErrorMemoryAllocation) return gpuir__fail(err, GPUIR_E_NOMEM, 0, "CUDA: %s: out of device memory", what);
  return gpuir__fail(err, GPUIR_E_BACKEND, 0, "CUDA: %s: %s", what, cudaGetErrorString(e));
}

/* Tests count CUDA calls, and let one of them fail without making it. */
#ifdef GPUIR_CUDA_SEAM
long gpuir_cuda_seam_calls, gpuir_cuda_seam_fail;
int gpuir_cuda_seam_error;
#define GC_CALL(call) (++gpuir_cuda_seam_calls == gpuir_cuda_seam_fail ? (cudaError_t)gpuir_cuda_seam_error : (call))
#else
#define GC_CALL(call) (call)
#endif

/* Evaluates a CUDA call; returns from the function with its error. */
#define GC_TRY(call, what) \
  do { \
    cudaError_t gc_e = GC_CALL(call); \
    if (gc_e != cudaSuccess) return gc_fail(err, gc_e, what); \
  } while (0)

/* Allocates device memory within the bound. */
static int gc_malloc(gpuir_cuda *c, size_t n, void **p, gpuir_error *err) {
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

/* Frees memory of gc_malloc. */
static void gc_free(gpuir_cuda *c, void *p, size_t n) {
  if (!p) return;
  (void)cudaFree(p);
  __atomic_fetch_sub(&c->info.used_memory, n ? n : 1, __ATOMIC_RELAXED);
}

/* Allocates device memory that lives as long as the index on the device. */
static int gc_device_alloc(gpuir_cuda *c, size_t n, void **p, gpuir_error *err) {
  int status = gc_malloc(c, n, p, err);
  if (!status) c->memory[c->nmemory++] = *p;
  return status;
}

/* Uploads a section, with zeros behind it. */
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

/* Returns the next n bytes of an area. Pieces begin at multiples of 64, so that no two share a line of the cache. */
static void *gc_carve(uint8_t **at, size_t n) {
  void *p = *at;
  *at += (n + 63) & ~(size_t)63;
  return p;
}

/* Describes the list of term `id` for the kernels; its record is *r. q and the later members stay 0. Its codecs do not
 * matter. */
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

/* ---- sending lists ----
 *
 * If the index's file is locked in memory, the device reads it there. Otherwise lists are copied to pinned memory
 * first, which has two halves: one is filled while the other is sent. */

#define GC_STAGE (1u << 20) /* bytes */

/* The index's file, locked in memory, so that the device reads it at the bus's rate. */
typedef struct gc_locked {
  uint8_t *file; /* NULL: it is not locked */
  uint64_t size;
} gc_locked;

/* A thread's way to the device. Several may share a stream. */
typedef struct gc_pipe {
  cudaStream_t stream;
  cudaEvent_t sent[2]; /* stage[side] has been sent */
  uint8_t *stage[2], *to;
  size_t from, fill; /* bytes from .. fill - 1 of stage[side] wait to be sent to `to` */
  unsigned side;
  gc_locked locked;
} gc_pipe;

/* Makes a stream that does not wait for the default one. */
static int gc_stream_open(cudaStream_t *stream, int priority, gpuir_error *err) {
  GC_TRY(cudaStreamCreateWithPriority(stream, cudaStreamNonBlocking, priority), "creating a stream");
  return GPUIR_OK;
}

/* Waits for what is in a stream, and frees it. NULL is accepted. */
static void gc_stream_close(cudaStream_t stream) {
  if (!stream) return;
  (void)cudaStreamSynchronize(stream);
  (void)cudaStreamDestroy(stream);
}

/* Gives a pipe its pinned memory. If it fails, gc_pipe_close frees what there is. */
static int gc_pipe_open(gc_pipe *p, cudaStream_t stream, gpuir_error *err) {
  unsigned i;
  p->stream = stream;
  for (i = 0; i < 2; i++) {
    GC_TRY(cudaEventCreateWithFlags(&p->sent[i], cudaEventDisableTiming), "creating an event");
    GC_TRY(cudaMallocHost((void **)&p->stage[i], GC_STAGE), "allocating pinned memory");
  }
  return GPUIR_OK;
}

/* Locks the index's file in memory, if the system can do that and the machine has twice as much memory. */
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

/* Waits until all that was sent has arrived. */
static void gc_pipe_close(gc_pipe *p) {
  unsigned i;
  if (p->stream) (void)cudaStreamSynchronize(p->stream);
  for (i = 0; i < 2; i++) {
    if (p->sent[i]) (void)cudaEventDestroy(p->sent[i]);
    (void)cudaFreeHost(p->stage[i]);
  }
}

/* Drops what waits. */
static void gc_pipe_drop(gc_pipe *p) { p->fill = p->from; }

/* Sends what waits. */
static int gc_pipe_flush(gc_pipe *p, gpuir_error *err) {
  const size_t from = p->from, n = p->fill - from;
  p->from = p->fill = (p->fill + 15) & ~(size_t)15;
  if (n)
    GC_TRY(cudaMemcpyAsync(p->to, p->stage[p->side] + from, n, cudaMemcpyHostToDevice, p->stream), "sending a list");
  return GPUIR_OK;
}

/* Changes to the other half, once all that it held has been sent. */
static int gc_pipe_turn(gc_pipe *p, gpuir_error *err) {
  int status = gc_pipe_flush(p, err);
  if (status) return status;
  GC_TRY(cudaEventRecord(p->sent[p->side], p->stream), "sending a list");
  p->side ^= 1;
  p->from = p->fill = 0;
  GC_TRY(cudaEventSynchronize(p->sent[p->side]), "sending a list");
  return GPUIR_OK;
}

/* Sends n bytes to the device, behind all that was sent before. They leave when the half is full or flushed. Bytes that
 * go closely behind those that wait are sent together with them. */
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
 * [cuda-15-recoder]  host: lists of other codecs become bp128 on the device
 *
 * Lists of other codecs are sent as they are to an area of the device, as many at once as it holds. gc_recode reads
 * them there and writes them as bp128. A pfd-list's exceptions can be found only from its beginning, so the CPU decodes
 * them.
 *
 * Uses      [cuda-04-codecs], [cuda-14-memory].
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
  unsigned long long *words; /* pinned: sizes that the device finds */
  uint8_t *area;
  uint64_t size, fill, need; /* bytes; need: of the lists so far, with their tables */
} gc_recoder;

/* Returns whether a list has to be recoded. */
static int gc_coded_otherwise(const gpuir__list *l) {
  return l->df > 1 && (l->docs.codec->id != GPUIR__ID_BP128 || l->freqs.codec->id != GPUIR__ID_BP128);
}

/* Allocates a recoder's arrays for `most` lists. If it fails, gc_recoder_close frees what there is. */
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

/* Frees a recoder's arrays. */
static void gc_recoder_close(gc_recoder *r, const gpuir_allocator *a) {
  (void)cudaFreeHost(r->words);
  gpuir__free(a, r->sources, r->most * sizeof *r->sources);
  gpuir__free(a, r->targets, r->most * sizeof *r->targets);
  gpuir__free(a, r->start, ((size_t)r->most + 1) * sizeof *r->start);
  gpuir__free(a, r->ids, r->most * sizeof *r->ids);
}

/* Begins to collect lists in an empty area. */
static void gc_recoder_begin(gc_recoder *r, void *area, uint64_t size) {
  r->area = (uint8_t *)area;
  r->size = size;
  r->fill = r->need = r->work.nlists = r->work.nblocks = 0;
  gc_pipe_drop(r->pipe); /* of a list that failed */
}

/* Clears n bytes, as decoders may read what stands between streams and behind them. */
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

/* Sends n bytes to the area; *to: where they arrive. */
static int gc_recoder_put(gc_recoder *r, const void *from, uint64_t n, const void **to, gpuir_error *err) {
  *to = r->area + r->fill;
  r->fill += GC_ALIGN(n);
  return gc_pipe_put(r->pipe, *to, from, n, err);
}

/* Sends a stream, with its offsets and widths if it has any; *to: what the kernels read there. */
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

/* Adds a list, for which there must be room. Its place in the directory is the index's. */
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

/* Returns room in the area for a table that the kernels write. */
static void *gc_recoder_table(gc_recoder *r, uint64_t n) {
  void *p = r->area + r->fill;
  r->fill += GC_ALIGN(n);
  return p;
}

/* Returns how many blocks of threads recode the collected lists. */
static unsigned gc_recoder_grid(const gpuir_cuda *c, const gc_recoder *r) {
  const uint64_t warps = ((uint64_t)r->work.nblocks + r->work.grain - 1) / r->work.grain;
  return (unsigned)gpuir__min64((warps + 7) / 8, (uint64_t)c->processors * 8);
}

/* Lets the device find how many words the lists take as bp128. */
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
  w->grain = gpuir__max32(1, gpuir__min32(8, w->nblocks / ((uint32_t)c->processors * 64)));
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

/* Waits for the sizes of gc_recoder_measure. */
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

/* Allocates device memory for the collected lists as bp128, and makes it their target. */
static int gc_recode_place(gpuir_cuda *c, gc_recoder *r, gpuir_error *err) {
  uint64_t bytes = 0;
  uint32_t i, part;
  void *p;
  int status;
  for (i = 0; i < r->work.nlists; i++) bytes += GC_ALIGN(r->words[2 * i] * 4) + GC_ALIGN(r->words[2 * i + 1] * 4);
  status = gc_malloc(c, bytes + GC_PAD, &p, err);
  if (status) return status;
  status = gpuir__buf_put(&c->a, &c->recoded, &p, sizeof p);
  if (status) {
    gc_free(c, p, bytes + GC_PAD);
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

/* Recodes the collected lists into memory of their own, and empties the area. */
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

/* Adds up the bytes of the area that all lists need, and finds the greatest need. It refuses lists that share bytes: so
 * the file's size bounds the time of recoding. */
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

/* Fills the index's streams on the device, and the parts of the directory that depend on them. */
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
  if (!s) s = gc_malloc(c, size, &area, err);
  if (!s) {
    gc_recoder_begin(&r, area, size);
    s = gc_recoder_clear(&r, area, size, err);
    if (!s) s = gc_recode_lists(c, &r, err);
  }
  gc_pipe_close(&pipe);
  gc_stream_close(stream);
  gc_recoder_close(&r, &c->a);
  gc_free(c, area, size);
  return s;
}

#pragma GCC pop_options

/* ========================
 * [cuda-16-cache]  host: a cache of lists, for an index that does not fit
 *
 * Ding et al. (WWW 2009, section 5) keep lists in the GPU's memory by their use. Here one slab is cut into units. A
 * unit has a block's directory entry and at least GC_UNIT bytes of streams; a list takes as many units in a row as its
 * blocks or its bytes need. A list that a launch uses stays until the launch has ended. To make room, the lists of
 * least priority are evicted. A list's priority is the number of its uses since it came, plus the priority of the last
 * list that was evicted before it came, so that old fame fades (least frequently used with dynamic aging). Sizes do not
 * count: a list's transfer costs as many bytes as its place.
 *
 * The lock protects the entries only; it is not held while bytes move. A searcher that misses lists takes places for
 * them at once and releases the lock. Then it copies the lists to pinned memory of its own, and from there to the
 * stream that all transfers share, and tells the others that they are there. A searcher that wants a list on its way
 * holds it, goes on planning, and waits for it before its launch. One stream takes all transfers in turn: so a place
 * can be given away as soon as the work that fills or reads it is in that stream. A list in another codec is sent to
 * units that it leaves when it has been recoded; only the first time somebody waits for its size.
 *
 * Uses      [cuda-04-codecs], [cuda-14-memory], [cuda-15-recoder].
 * Start at  gc_cache_open, gc_cache_hold_all, gc_cache_await, gc_cache_release.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_UNIT 32u /* bytes of streams of a unit at least, and their granularity */
#define GC_CACHE_ENTRIES (1u << 16) /* lists at most */
#define GC_DIRECTORY_BYTES \
  (3 * 4 + 2 + GPUIR__BLOCK_PAIRS * sizeof(gpuir__pair)) /* bytes of a block in the directory */

/* States of a list. GC_HERE: all of it is in the stream. GC_COMING: its place is known. GC_UNPLACED: it was sent, but
 * its size as bp128 is not known; only the searcher that loads it holds it. GC_LOST: it will not come, and its entry
 * goes with the last launch that holds it. */
enum { GC_HERE, GC_COMING, GC_UNPLACED, GC_LOST };

/* A resident list. */
typedef struct gc_cache_entry {
  uint64_t id, priority, bytes;
  uint64_t docs_len, freqs_len;
  uint32_t unit, nunits; /* its place in the slab */
  uint32_t users, state; /* users: launches that hold it */
  uint32_t next; /* 1 + the next entry with the same hash, or the next free one */
  uint32_t hashed; /* 1: it can be found by its id */
} gc_cache_entry;

struct gc_cache {
  pthread_mutex_t lock; /* of all members down to `sizes` */
  pthread_cond_t freed; /* lists were released, or have come */
  int ready; /* 1: the two above are initialized */
  uint64_t unit_bytes, nunits;
  uint64_t clock; /* the priority of the last list that was evicted */
  uint64_t pins, releases; /* lists held; how often any were released or came */
  gc_cache_entry *entries;
  uint32_t *order; /* the nentries used ones, by unit */
  uint32_t nentries, most; /* most: there can be */
  uint32_t *heads, mask; /* the hash table: 1 + entry */
  uint32_t vacant; /* 1 + the first free entry */
  uint2 *sizes; /* words of long lists that were recoded before: nobody waits for these sizes again */
  uint8_t *streams; /* device */
  cudaStream_t stream; /* of all transfers */
  gc_locked locked;
};

/* What a launch transfers lists with. */
typedef struct gc_transfer {
  gc_pipe pipe;
  gc_recoder recoder; /* of one list */
} gc_transfer;

/* The lists that a planned launch holds. */
typedef struct gc_holds {
  uint32_t *entries;
  size_t n;
  int coming; /* 1: some were on their way when they were asked for */
  uint64_t releases; /* of the cache, when a list found no room */
  uint64_t pins; /* lists that were held then */
} gc_holds;

/* Returns the head of the hash chain that a list belongs to. */
static uint32_t *gc_cache_head(const gc_cache *k, uint64_t id) {
  return &k->heads[(uint32_t)((id * 0x9e3779b97f4a7c15u) >> 32) & k->mask];
}

/* Returns 1 + the list's entry, or 0. */
static uint32_t gc_cache_find(const gc_cache *k, uint64_t id) {
  uint32_t s = *gc_cache_head(k, id);
  while (s && k->entries[s - 1].id != id) s = k->entries[s - 1].next;
  return s;
}

/* Lets a list be found by its id. */
static void gc_cache_enter(gc_cache *k, uint32_t s, uint64_t id) {
  uint32_t *head = gc_cache_head(k, id);
  k->entries[s].id = id;
  k->entries[s].next = *head;
  k->entries[s].hashed = 1;
  *head = s + 1;
}

/* Lets a list be found no longer. */
static void gc_cache_forget(gc_cache *k, uint32_t s) {
  uint32_t *at = gc_cache_head(k, k->entries[s].id);
  if (!k->entries[s].hashed) return;
  while (*at != s + 1) at = &k->entries[*at - 1].next;
  *at = k->entries[s].next;
  k->entries[s].hashed = 0;
}

/* Returns the place in the order for a list of n units, at the first gap that is large enough; or UINT32_MAX. */
static uint32_t gc_cache_gap(const gc_cache *k, uint64_t n, uint64_t *unit) {
  uint32_t i;
  *unit = 0;
  if (k->nentries == k->most) return UINT32_MAX;
  for (i = 0; i < k->nentries; i++) {
    const gc_cache_entry *s = &k->entries[k->order[i]];
    if (s->unit - *unit >= n) return i;
    *unit = (uint64_t)s->unit + s->nunits;
  }
  return k->nunits - *unit >= n ? i : UINT32_MAX;
}

/* Frees the entry at a place in the order. */
static void gc_cache_remove(gpuir_cuda *c, gc_cache *k, uint32_t place) {
  const uint32_t s = k->order[place];
  gc_cache_forget(k, s);
  __atomic_fetch_sub(&c->info.resident_bytes, k->entries[s].bytes, __ATOMIC_RELAXED);
  k->nentries--;
  memmove(&k->order[place], &k->order[place + 1], (k->nentries - place) * sizeof *k->order);
  k->entries[s].next = k->vacant;
  k->vacant = s + 1;
}

/* Evicts the list of least priority that no launch holds; returns 0 if there is none. */
static int gc_cache_evict(gpuir_cuda *c, gc_cache *k) {
  uint32_t i, least = UINT32_MAX;
  uint64_t priority = 0;
  for (i = 0; i < k->nentries; i++) {
    const gc_cache_entry *s = &k->entries[k->order[i]];
    if (s->users || (least != UINT32_MAX && s->priority >= priority)) continue;
    least = i;
    priority = s->priority;
  }
  if (least == UINT32_MAX) return 0;
  k->clock = priority;
  gc_cache_remove(c, k, least);
  return 1;
}

/* Takes an entry and a place for a list of n units, and holds it; evicts others if it must. Returns 1 + the entry; 0:
 * the lists in use leave no room. */
static uint32_t gc_cache_reserve(gpuir_cuda *c, gc_cache *k, uint64_t n) {
  uint64_t unit;
  uint32_t place, i;
  while ((place = gc_cache_gap(k, n, &unit)) == UINT32_MAX && n <= k->nunits && gc_cache_evict(c, k)) {}
  if (place == UINT32_MAX) return 0;
  i = k->vacant - 1;
  k->vacant = k->entries[i].next;
  memset(&k->entries[i], 0, sizeof *k->entries);
  k->entries[i].priority = k->clock + 1;
  k->entries[i].unit = (uint32_t)unit;
  k->entries[i].nunits = (uint32_t)n;
  k->entries[i].users = 1;
  k->pins++;
  memmove(&k->order[place + 1], &k->order[place], (k->nentries - place) * sizeof *k->order);
  k->order[place] = i;
  k->nentries++;
  return i + 1;
}

/* Ends one hold of a list. A lost one goes with its last holder. */
static void gc_cache_let_go(gpuir_cuda *c, gc_cache *k, uint32_t s) {
  uint32_t i = 0;
  k->pins--;
  if (--k->entries[s].users || k->entries[s].state != GC_LOST) return;
  while (k->order[i] != s) i++;
  gc_cache_remove(c, k, i);
}

/* Marks a list as one that will not come, and ends its hold. */
static void gc_cache_lose(gpuir_cuda *c, gc_cache *k, uint32_t s) {
  gc_cache_forget(k, s);
  k->entries[s].state = GC_LOST;
  gc_cache_let_go(c, k, s);
}

/* Tells those that wait that lists were released, or came. */
static void gc_cache_tell(gc_cache *k) {
  k->releases++;
  (void)pthread_cond_broadcast(&k->freed);
}

/* Writes the list's size as bp128 to its entry; returns the units that it takes. */
static uint64_t gc_cache_size(const gc_cache *k, const gpuir__list *l, uint64_t docs_len, uint64_t freqs_len,
    gc_cache_entry *s) {
  const uint64_t bytes = GC_ALIGN(docs_len) + GC_ALIGN(freqs_len);
  s->docs_len = docs_len;
  s->freqs_len = freqs_len;
  s->bytes = bytes + (l->extent ? l->nblocks * GC_DIRECTORY_BYTES : 0);
  return gpuir__max64(l->nblocks, (bytes + k->unit_bytes - 1) / k->unit_bytes);
}

/* Transfers a list that is bp128 already to its units: streams and directory. */
static int gc_cache_load_streams(const gpuir_cuda *c, gc_pipe *p, const gc_cache_entry *s, const gpuir__list *l,
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

/* Sends a list to units where it stays until it has been recoded, and finds its size as bp128. */
static int gc_cache_measure(gpuir_cuda *c, gc_recoder *r, const gc_cache_entry *area, uint64_t id, gpuir__list *l,
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

/* Recodes a sent list to the units of its entry. */
static int gc_cache_write(gpuir_cuda *c, gc_recoder *r, const gc_cache_entry *s, gpuir_error *err) {
  gc_target *to = r->targets;
  to->part[GC_DOCS] = (uint32_t *)(c->cache->streams + s->unit * c->cache->unit_bytes);
  to->part[GC_FREQS] = to->part[GC_DOCS] + GC_ALIGN(s->docs_len) / 4;
  to->words[GC_DOCS] = (uint32_t)(s->docs_len / 4);
  to->words[GC_FREQS] = (uint32_t)(s->freqs_len / 4);
  to->entry = s->unit;
  return gc_recoder_write(c, r, err);
}

/* Loads a list of another codec. *entry has where it was sent, and gets its new entry. *full: the lists in use leave no
 * room for that. */
static int gc_cache_recode(gpuir_cuda *c, gc_transfer *transfer, uint32_t *entry, gpuir__list *l, int *full,
    gpuir_error *err) {
  gc_cache *k = c->cache;
  const uint32_t area = *entry;
  const uint64_t id = k->entries[area].id;
  gc_cache_entry sizes;
  uint2 words;
  uint32_t s;
  int status = gc_cache_measure(c, &transfer->recoder, &k->entries[area], id, l, &words, err);
  if (status) return status;
  memset(&sizes, 0, sizeof sizes);
  (void)pthread_mutex_lock(&k->lock);
  s = gc_cache_reserve(c, k, gc_cache_size(k, l, (uint64_t)words.x * 4, (uint64_t)words.y * 4, &sizes));
  *full = !s;
  if (s) {
    gc_cache_entry *to = &k->entries[s - 1];
    to->bytes = sizes.bytes;
    to->docs_len = sizes.docs_len;
    to->freqs_len = sizes.freqs_len;
    to->state = GC_COMING;
    __atomic_fetch_add(&c->info.resident_bytes, to->bytes, __ATOMIC_RELAXED);
    gc_cache_forget(k, area);
    gc_cache_enter(k, s - 1, id);
    *entry = s - 1;
  }
  (void)pthread_mutex_unlock(&k->lock);
  if (!s) return GPUIR_OK;
  status = gc_cache_write(c, &transfer->recoder, &k->entries[s - 1], err);
  (void)pthread_mutex_lock(&k->lock);
  gc_cache_lose(c, k, area); /* its next user's writes come behind the recoding, in the same stream */
  (void)pthread_mutex_unlock(&k->lock);
  return status;
}

/* Loads a list to the entry that was taken for it. */
static int gc_cache_load(gpuir_cuda *c, gc_transfer *transfer, uint32_t *entry, gpuir__list *l, int *full,
    gpuir_error *err) {
  int status;
  gc_pipe_drop(&transfer->pipe); /* of a list that failed */
  status = gc_coded_otherwise(l) ? gc_cache_recode(c, transfer, entry, l, full, err)
                                 : gc_cache_load_streams(c, &transfer->pipe, &c->cache->entries[*entry], l, err);
  if (status || *full) return status;
  if (l->extent)
    status =
        gc_pipe_put(&transfer->pipe, c->view.bounds + (uint64_t)c->cache->entries[*entry].unit * GPUIR__BLOCK_PAIRS,
            l->bounds, l->nblocks * GPUIR__BLOCK_PAIRS * sizeof(gpuir__pair), err);
  if (!status) status = gc_pipe_flush(&transfer->pipe, err);
  if (status) return status;
  __atomic_fetch_add(&c->info.lists_missed, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&c->info.bytes_sent, c->cache->entries[*entry].bytes, __ATOMIC_RELAXED);
  return GPUIR_OK;
}

/* Holds a list, or takes a place for it: then *missing becomes 1. Returns 1 + its entry; 0: the list has to wait. */
static uint32_t gc_cache_hold(gpuir_cuda *c, gc_holds *held, uint64_t id, const gpuir__list *l, int *missing) {
  gc_cache *k = c->cache;
  uint32_t i = gc_cache_find(k, id);
  gc_cache_entry sizes, *s;
  uint64_t n;
  *missing = !i;
  if (i) {
    s = &k->entries[i - 1];
    if (s->state == GC_UNPLACED) return 0;
    held->coming |= s->state == GC_COMING;
    __atomic_fetch_add(&c->info.lists_hit, 1, __ATOMIC_RELAXED);
    s->priority++;
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
  s = &k->entries[i - 1];
  s->bytes = sizes.bytes;
  s->docs_len = sizes.docs_len;
  s->freqs_len = sizes.freqs_len;
  s->state = sizes.state;
  __atomic_fetch_add(&c->info.resident_bytes, s->bytes, __ATOMIC_RELAXED);
  gc_cache_enter(k, i - 1, id);
  return i;
}

/* The lists of a query's known terms. */
typedef struct gc_wanted {
  uint64_t id[GPUIR_MAX_TERMS];
  gpuir__list list[GPUIR_MAX_TERMS];
  uint32_t entry[GPUIR_MAX_TERMS]; /* 1 + entry; 0: none, as the list is in its term */
  int missing[GPUIR_MAX_TERMS];
  uint32_t n;
} gc_wanted;

/* Ends the holds of a query's first n lists. Those from number `from` on that were to be loaded will not come. */
static void gc_cache_undo(gpuir_cuda *c, const gc_wanted *w, uint32_t n, uint32_t from) {
  uint32_t i;
  for (i = 0; i < n; i++) {
    if (!w->entry[i]) continue;
    if (w->missing[i] && i >= from) gc_cache_lose(c, c->cache, w->entry[i] - 1);
    else gc_cache_let_go(c, c->cache, w->entry[i] - 1);
  }
}

/* Notes what has to change before asking again can succeed. */
static void gc_cache_note(const gc_cache *k, gc_holds *held) {
  held->releases = k->releases;
  held->pins = k->pins;
}

/* Loads the missing lists, without the lock, and tells that they are there. */
static int gc_cache_load_all(gpuir_cuda *c, gc_holds *held, gc_transfer *transfer, gc_wanted *w, int *full,
    gpuir_error *err) {
  gc_cache *k = c->cache;
  uint32_t done, i;
  int status = GPUIR_OK;
  for (done = 0; done < w->n; done++) {
    uint32_t entry = w->entry[done] - 1;
    if (!w->missing[done]) continue;
    status = gc_cache_load(c, transfer, &entry, &w->list[done], full, err);
    w->entry[done] = entry + 1;
    if (status || *full) break;
  }
  (void)pthread_mutex_lock(&k->lock);
  for (i = 0; i < done; i++)
    if (w->missing[i]) k->entries[w->entry[i] - 1].state = GC_HERE;
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

/* Makes a query's lists resident, and holds them until they are released. Lists that stand in their terms need no
 * place. *full: the lists in use leave no room for them. */
static int gc_cache_hold_all(gpuir_cuda *c, gc_holds *held, gc_transfer *transfer, gc_wanted *w, gc_term *terms,
    int *full, gpuir_error *err) {
  gc_cache *k = c->cache;
  uint32_t i;
  int missing = 0, status = GPUIR_OK;
  (void)pthread_mutex_lock(&k->lock);
  for (i = 0; i < w->n && !*full; i++) {
    w->missing[i] = 0;
    w->entry[i] = terms[i].kind == GC_INLINE ? 0 : gc_cache_hold(c, held, w->id[i], &w->list[i], &w->missing[i]);
    *full = !w->entry[i] && terms[i].kind != GC_INLINE;
    missing |= w->missing[i];
  }
  if (*full) {
    gc_cache_undo(c, w, i - 1, 0);
    gc_cache_note(k, held);
  }
  (void)pthread_mutex_unlock(&k->lock);
  if (missing && !*full) status = gc_cache_load_all(c, held, transfer, w, full, err);
  if (status || *full) return status;
  for (i = 0; i < w->n; i++) { /* held lists do not move */
    const gc_cache_entry *s = &k->entries[w->entry[i] - 1];
    gc_term *t = &terms[i];
    if (!w->entry[i]) {
      __atomic_fetch_add(&c->info.lists_hit, 1, __ATOMIC_RELAXED);
      continue;
    }
    if (t->kind == GC_LONG) t->first_block = s->unit;
    t->docs = s->unit * k->unit_bytes;
    t->docs_len = s->docs_len;
    t->freqs = t->docs + GC_ALIGN(s->docs_len);
    t->freqs_len = s->freqs_len;
    held->entries[held->n++] = w->entry[i] - 1;
  }
  return GPUIR_OK;
}

/* Waits until the held lists are in the stream; other searchers take no longer for that than to copy a query's lists.
 * Returns 0 if one of them will not come. */
static int gc_cache_await(gc_cache *k, gc_holds *held) {
  size_t i;
  int come = 1;
  if (!k || !held->coming) return 1;
  held->coming = 0;
  (void)pthread_mutex_lock(&k->lock);
  for (i = 0; i < held->n; i++) {
    const gc_cache_entry *s = &k->entries[held->entries[i]];
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
  for (i = 0; i < held->n; i++) gc_cache_let_go(c, k, held->entries[i]);
  gc_cache_tell(k);
  (void)pthread_mutex_unlock(&k->lock);
  held->n = 0;
  held->coming = 0;
}

/* Waits until lists are released or come, or none is held; returns 0 if that did not happen within `ns`. */
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

/* Frees a cache. All transfers are waited for first. */
static void gc_cache_close(gpuir_cuda *c) {
  gc_cache *k = c->cache;
  if (!k) return;
  gc_stream_close(k->stream);
  if (k->locked.file) (void)cudaHostUnregister(k->locked.file);
  gpuir__free(&c->a, k->sizes, (size_t)c->ix->stat.longs * sizeof *k->sizes);
  gpuir__free(&c->a, k->entries, k->most * sizeof *k->entries);
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

/* Makes the lock and its condition, which uses the clock of gpuir__now. */
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
  k->nunits = gpuir__min64((room - 8192) / (GC_DIRECTORY_BYTES + k->unit_bytes), UINT32_MAX / 2);
  k->most = (uint32_t)gpuir__min64(gpuir__min64(k->nunits, GC_CACHE_ENTRIES), ix->stat.terms);
  k->entries = (gc_cache_entry *)gpuir__alloc_zero(&c->a, k->most * sizeof *k->entries);
  k->order = (uint32_t *)gpuir__alloc_zero(&c->a, k->most * sizeof *k->order);
  for (k->mask = 1; k->mask < k->most; k->mask = 2 * k->mask + 1) {}
  k->heads = (uint32_t *)gpuir__alloc_zero(&c->a, ((size_t)k->mask + 1) * sizeof *k->heads);
  k->sizes = (uint2 *)gpuir__alloc_zero(&c->a, (size_t)ix->stat.longs * sizeof *k->sizes);
  if (!k->entries || !k->order || !k->heads || !k->sizes) return gpuir__fail_nomem(err);
  for (i = k->most; i--;) {
    k->entries[i].next = k->vacant;
    k->vacant = i + 1;
  }
  return gc_cache_make_lock(k, err);
}

/* Opens an empty cache with a slab of `room` bytes. */
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
  size = (size_t)(k->nunits * (GC_DIRECTORY_BYTES + k->unit_bytes) + 8192);
  s = gc_device_alloc(c, size, &slab, err);
  if (s) return s;
  GC_TRY(cudaMemset(slab, 0, size), "clearing the slab");
  gc_cache_lay_out(k, &c->view, (uint8_t *)slab);
  s = gc_stream_open(&k->stream, 0, err);
  if (!s) gc_lock(&k->locked, c);
  return s;
}

/* Makes what a launch transfers lists with. */
static int gc_transfer_open(const gpuir_cuda *c, gc_transfer *transfer, gpuir_error *err) {
  int status = gc_pipe_open(&transfer->pipe, c->cache->stream, err);
  transfer->pipe.locked = c->cache->locked;
  return status ? status : gc_recoder_open(&transfer->recoder, &c->a, &transfer->pipe, 1, err);
}

/* Frees what a launch transfers lists with. */
static void gc_transfer_close(const gpuir_cuda *c, gc_transfer *transfer) {
  gc_pipe_close(&transfer->pipe);
  gc_recoder_close(&transfer->recoder, &c->a);
}

/* What follows opens indexes: the host compiler optimizes it less, as said at the end of [cuda-13-prompt]. */
#pragma GCC push_options
#pragma nv_diag_suppress 1675
#pragma GCC optimize("Og")
#pragma nv_diag_default 1675

/* ========================
 * [cuda-17-open]  host: the index on the device
 *
 * Opening uploads the index's sections, makes guides, expanded lists and slices as far as the memory bound allows, and
 * finds how many blocks of threads of each kernel fill the device. An index that does not fit gets a cache.
 *
 * Uses      [cuda-05-expand] to [cuda-16-cache].
 * Start at  gc_open: gc_open_whole, or gc_open_cached where the index does not fit.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_TILE_MOST 24576u /* documents of a tile at most: two blocks of threads share a multiprocessor */
#define GC_MARKS 8u /* bits of marks for a posting at least */
#define GC_PEAKS 64u /* eighths of a peak for a posting at most, if memory allows it; half as many at least */
#define GC_TURNS 6u /* turns of a long AND's driver: each has as many blocks as all turns before it together */
#define GC_K_MOST 10000u

/* ---- the sections ---- */

/* Collects the long lists. It refuses lists whose blocks are not in the same order or overlap: kernels would write to
 * one place from several blocks. */
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
    c->lists[n].tile_row = (uint32_t)(l.extent - ix->lists.longs);
    c->lists[n++].q = 1;
  }
  c->nlists = n;
  return GPUIR_OK;
}

/* Returns the bytes of a document's length on the device: 2 if all lengths are below 65536, otherwise 4. */
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
  uint16_t *lengths16;
  int s;
  if (gc_length_bytes(ix) == 4) return gc_upload(c, ix->lengths, n * 4, (const void **)&c->view.lengths, err);
  lengths16 = (uint16_t *)gpuir__alloc(&c->a, n * 2 + 2);
  if (!lengths16) return gpuir__fail_nomem(err);
  for (i = 0; i < n; i++) lengths16[i] = (uint16_t)ix->lengths[i];
  s = gc_upload(c, lengths16, n * 2, (const void **)&c->view.lengths16, err);
  gpuir__free(&c->a, lengths16, n * 2 + 2);
  return s;
}

/* Uploads streams and directory as they lie in the file, where all are bp128. */
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

/* Uploads all sections that the kernels read; coded: some lists have to be recoded. */
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
  return ix->section[GPUIR__S_DOCIDS]->length + ix->section[GPUIR__S_FREQS]->length +
      ix->stat.blocks * GC_DIRECTORY_BYTES + ix->stat.documents * gc_length_bytes(ix) + 16 * 1024;
}

/* ---- guides and expanded lists ---- */

/* Chooses where each long list's marks go: 8 to 16 bits for a posting, or one for a document, and a third of that for
 * ranks. Returns the bytes that they take; 0: there is no memory. */
static uint64_t gc_lay_marks(gpuir_cuda *c, uint64_t *marks, gpuir_error *err) {
  const gpuir__segment *ix = c->ix;
  const uint32_t top = c->view.documents - 1;
  gpuir__saturation *table;
  size_t i;
  *marks = 0;
  c->guides = (gc_list_guide *)gpuir__alloc_zero(&c->a, (size_t)ix->stat.longs * sizeof *c->guides);
  table = (gpuir__saturation *)gpuir__alloc_zero(&c->a, sizeof *table);
  if (!c->guides || !table) {
    gpuir__free(&c->a, table, sizeof *table);
    (void)gpuir__fail_nomem(err);
    return 0;
  }
  gpuir__saturation_prepare(table, c->index->norm);
  for (i = 0; i < c->nlists; i++) {
    gc_term *t = &c->lists[i];
    gc_list_guide *guide = &c->guides[t->tile_row];
    gpuir__list l;
    memset(&l, 0, sizeof l);
    l.extent = &ix->lists.longs[t->tile_row];
    while (top >> guide->shift >= 2 * (uint64_t)GC_MARKS * t->df) guide->shift++;
    guide->most = gpuir__bound(t->weight, gpuir__list_saturation(table, &l), 1);
    guide->marks = *marks;
    *marks += (top >> guide->shift) / GC_CELLS + 1;
    t->marks = guide->marks;
    t->shift = guide->shift;
    t->most = guide->most;
    t->step = guide->most / GC_PEAK_MOST + 1;
  }
  gpuir__free(&c->a, table, sizeof *table);
  return *marks * sizeof(uint4) + 64;
}

/* Chooses where each long list's peaks go: at most `grain` eighths of one for a posting, and at least half as many, or
 * one for a document. Returns the lines that they take. */
static uint64_t gc_lay_peaks(gpuir_cuda *c, uint32_t grain) {
  const uint32_t top = c->view.documents - 1;
  uint64_t lines = 0;
  size_t i;
  for (i = 0; i < c->nlists; i++) {
    gc_term *t = &c->lists[i];
    gc_list_guide *guide = &c->guides[t->tile_row];
    guide->span = 0;
    while ((uint64_t)(top >> guide->span) * 8 >= (uint64_t)grain * t->df) guide->span++;
    guide->row = t->row = (uint32_t)lines;
    t->span = guide->span;
    lines += (top >> guide->span) / GC_PEAK_LINE + 1;
  }
  return lines;
}

/* If a list's blocks together span this many times all documents, the list is damaged: expanding it would walk through
 * all documents for each block. */
#define GC_DAMAGED 8

/* What is known of the long lists' blocks before they are expanded. */
typedef struct gc_shapes {
  uint2 *bases; /* as in gc_view */
  uint64_t wide;
  int damaged;
} gc_shapes;

/* Finds the base that each block's docIDs are relative to. */
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
    c->guides[t->tile_row].wide = t->wide;
  }
  return GPUIR_OK;
}

/* Allocates the guides and, with `full`, the expanded lists, and lets the device fill them. */
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

/* Expands the long lists if `room` bytes hold them; otherwise makes only their guides, if it holds those. Half of what
 * is left goes into finer peaks. */
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
    gpuir__free(&c->a, c->guides, (size_t)c->ix->stat.longs * sizeof *c->guides);
    c->guides = NULL;
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

/* Fills in a device's name, versions, capability and memory. It refuses a device that is not there or too old. */
static int gc_device_info(int device, cudaDeviceProp *p, gpuir_cuda_info *info, gpuir_error *err) {
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

typedef void (*gc_or_kernel)(gc_view, gc_launch_view);

/* Chooses the size of tiles, such that two blocks of threads fit on a multiprocessor. */
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
  tile = (n / 512 + 1023) / 1024 * 1024; /* enough tiles for all multiprocessors; but each costs less if it is large */
  tile = gpuir__max64(2048, gpuir__min64(tile, GC_TILE_MOST));
  while (gc_tile_bytes(tile) > most) tile -= 1024;
  c->view.tile = (uint32_t)tile;
  c->view.ntiles = (uint32_t)((n + tile - 1) / tile);
  /* The kernel may take all shared memory: it serves the device's other indexes too, whose tiles have other sizes. */
  GC_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most), "shaping a kernel");
  GC_TRY(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, (int)GC_OR_THREADS(expanded), gc_tile_bytes(tile)),
      "shaping a kernel");
  c->grids.ors = (unsigned)(c->processors * (blocks > 0 ? blocks : 1));
  return GPUIR_OK;
}

/* Finds how many blocks of threads of a kernel fill the device. */
static int gc_grid_of(const gpuir_cuda *c, const void *kernel, unsigned threads, size_t shared, unsigned *grid,
    gpuir_error *err) {
  int blocks = 0;
  GC_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, (int)threads, shared), "shaping a kernel");
  *grid = (unsigned)(c->processors * (blocks > 0 ? blocks : 1));
  return GPUIR_OK;
}

/* Finds the device's limits, and the shapes of the other kernels. */
static int gc_shape(gpuir_cuda *c, gpuir_error *err) {
  cudaDeviceProp p;
  cudaFuncAttributes at;
  int most, s = gc_device_info(c->device, &p, &c->info, err);
  if (s) return s;
  GC_TRY(cudaDeviceGetStreamPriorityRange(NULL, &c->ahead), "asking for priorities");
  c->processors = p.multiProcessorCount;
  c->view.documents = (uint32_t)c->ix->stat.documents;
  s = gc_grid_of(c, (const void *)gc_and_decoding, GC_AND_THREADS, 0, &c->grids.ands, err);
  if (!s) s = gc_grid_of(c, (const void *)gc_and_guided, GC_GUIDED_THREADS, 0, &c->grids.guided, err);
  if (!s) s = gc_grid_of(c, (const void *)gc_max, GC_GUIDED_THREADS, 0, &c->grids.maxs, err);
  if (!s) s = gc_grid_of(c, (const void *)gc_alone, GC_GUIDED_THREADS, 0, &c->grids.alone, err);
  if (s) return s;
  if (c->info.compute_capability >= 90) { /* loads them now: otherwise the first queries would wait for that */
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
  size_t queries, njobs, nterms, ntile_rows, nbound_tasks; /* at most in a launch; ntile_rows: of the tile arrays */
  size_t ndrives; /* entries of gc_maxs.drives */
  size_t ntokens; /* of phrases; 0: the index has no positions */
  uint64_t ncand; /* candidates */
  uint64_t tiles; /* of the index, plus one */
  uint64_t host, staging, device; /* bytes */
} gc_sizes;

/* Returns the sizes of launches of so many queries. */
static gc_sizes gc_sizes_of(const gpuir_cuda *c, size_t queries) {
  const gc_view *v = &c->view;
  const uint64_t bound_tasks = v->documents / (GPUIR__BLOCK * GC_BOUND_BLOCKS);
  gc_sizes z;
  uint64_t each;
  z.tiles = (uint64_t)v->ntiles + 1;
  each = 8 * z.tiles;
  z.queries = queries;
  z.njobs = (size_t)gpuir__max64(2, gpuir__min64(2 * (uint64_t)queries, (1u << 30) / each));
  z.ntile_rows = z.nterms = (size_t)gpuir__max64(2 * GPUIR_MAX_TERMS, 8 * (uint64_t)queries);
  z.ntile_rows = (size_t)gpuir__max64(GPUIR_MAX_TERMS, gpuir__min64(z.ntile_rows, (1u << 30) / each));
  z.nbound_tasks =
      (size_t)gpuir__max64(z.ntile_rows + gpuir__max64(GPUIR_MAX_TERMS, 8 * (uint64_t)queries) * (1 + bound_tasks / 4),
          GPUIR_MAX_TERMS * (2 + bound_tasks));
  z.ncand = gpuir__max64(2 * 16 * GC_K_MOST, (uint64_t)z.njobs * 8192);
  z.host = z.nterms * (sizeof(gc_term) + 8 + sizeof(gc_sum_list)) +
      z.njobs * (sizeof(gc_job) + 16 + sizeof(gc_sum_job) + GC_TURNS * (sizeof(gc_turn) + 4)) +
      z.nbound_tasks * sizeof(gc_bound_task) + queries * (sizeof(uint2) + 4) + sizeof(gc_wanted) + 4096;
  z.ntokens = c->ix->lists.positions ? 2 * z.nterms + (GPUIR_MAX_TERMS + 2) * GPUIR_MAX_TERMS : 0;
  if (z.ntokens)
    z.host += z.ntokens + z.nterms * (sizeof(gc_stored_positions) + sizeof(gc_clause)) +
        z.njobs * (sizeof(gc_phrase_job) + 4);
  z.staging = z.host + z.njobs * sizeof(gc_state);
  z.ndrives = GC_ROUNDS * z.nterms;
  z.device = z.staging + z.ntile_rows * each + z.njobs * each + z.ncand * 8 + z.ndrives * (sizeof(gc_drive) + 4) +
      sizeof(gc_alone_state) + 4096;
  if (c->slices.ntiles) z.device += z.ntile_rows * ((uint64_t)c->slices.ntiles + 1) * 4;
  return z;
}

/* Returns the sizes of the largest launch whose memory takes at most half of what is left, if there is one. A searcher
 * has memory for one launch until it needs a second one. */
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

#define GC_CUT_LEAST 64u /* postings for a tile at least, of a list that is cut */

/* Chooses the tiles of slices, and the lists to be cut: those with GC_CUT_LEAST postings for a tile. Returns how
 * many. */
static uint32_t gc_choose_cut(gpuir_cuda *c, uint32_t *cut) {
  gc_slices *to = &c->slices;
  uint32_t n = 0;
  size_t i;
  for (to->tile = 2048; to->tile < GC_CUT_MOST && c->view.documents / 512 > to->tile; to->tile *= 2) {}
  to->ntiles = (c->view.documents - 1) / to->tile + 1;
  for (i = 0; i < c->nlists; i++)
    if (c->lists[i].df / GC_CUT_LEAST >= to->ntiles) {
      cut[n++] = (uint32_t)i;
      c->lists[i].cut = c->guides[c->lists[i].tile_row].cut = n;
    }
  return n;
}

/* Turns the counts of strips into where each slice begins. Both are [list][ntiles + 1] on the device, with 0 at the end
 * of each row. *total: how many strips there are. */
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

/* Lets the device fill the slices. */
static int gc_fill_slices(gpuir_cuda *c, const uint32_t *cut, uint32_t ncut, uint8_t *strips, gpuir_error *err) {
  gc_cut_lists<<<(unsigned)c->processors * 16, GC_CUT_THREADS>>>(c->view, c->lists_there, cut, ncut, c->slices, strips);
  GC_TRY(cudaGetLastError(), "cutting lists");
  GC_TRY(cudaDeviceSynchronize(), "cutting lists");
  c->slices.strips = strips;
  GC_TRY(cudaFuncSetAttribute(gc_sum_tiles, cudaFuncAttributeMaxDynamicSharedMemorySize, GC_CUT_MOST * 4),
      "shaping a kernel");
  return gc_grid_of(c, (const void *)gc_sum_tiles, GC_SUM_THREADS, (size_t)c->slices.tile * 4, &c->grids.sums, err);
}

/* Cuts the chosen lists, if `room` bytes hold their slices. */
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
    gc_free(c, starts, table);
    gc_free(c, cut, ncut * 4);
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

/* Cuts long lists into slices, if all of them are expanded and the bound leaves room for the slices. */
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
    while (n--) c->lists[chosen[n]].cut = c->guides[c->lists[chosen[n]].tile_row].cut = 0;
  }
  gpuir__free(&c->a, chosen, c->nlists * 4);
  return s;
}

/* ---- opening ---- */

/* Prepares the terms of long lists, as far as there is memory: a query then copies them, and opens no list. */
static void gc_know(gpuir_cuda *c) {
  const gpuir__index_lists *lists = &c->ix->lists;
  size_t i;
  c->known = (gc_known *)gpuir__alloc_zero(&c->a, (size_t)c->ix->stat.longs * sizeof *c->known);
  for (i = 0; c->known && i < c->nlists; i++) {
    gc_known *k = &c->known[c->lists[i].tile_row];
    const uint64_t seeds = lists->longs[c->lists[i].tile_row].seeds;
    k->term = c->lists[i];
    k->term.tile_row = 0;
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
  c->info.resident_bytes = c->info.index_bytes; /* guides, expanded lists and slices do not count */
  if (!status) gc_know(c);
  if (!status) GC_TRY(cudaDeviceSynchronize(), "uploading the index");
  return status;
}

/* Puts the documents' lengths on the device, and makes a cache of lists. */
static int gc_open_cached(gpuir_cuda *c, gpuir_error *err) {
  uint64_t left, searcher;
  int status = gc_shape_or(c, 0, err);
  if (!status) status = gc_upload_lengths(c, err);
  if (status) return status;
  c->info.index_bytes = c->info.resident_bytes + c->ix->stat.blocks * GC_DIRECTORY_BYTES +
      c->ix->section[GPUIR__S_DOCIDS]->length + c->ix->section[GPUIR__S_FREQS]->length;
  left = gc_left(c);
  searcher = gc_sizes_within(c, left / 4).device;
  if (searcher <= left / 4) searcher *= searcher <= left / 32 ? 5 : 2; /* for two searchers, with two launches each */
  status = gc_cache_open(c, left - gpuir__min64(left, searcher), err);
  if (status) return status;
  GC_TRY(cudaDeviceSynchronize(), "clearing the slab"); /* searchers' streams do not wait for the default one */
  return GPUIR_OK;
}

/* Frees all that was made of the index. */
GPUIR__COLD static void gc_release_index(gpuir_cuda *c) {
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
  gpuir__free(&c->a, c->guides, (size_t)ix->stat.longs * sizeof *c->guides);
  gpuir__free(&c->a, c->known, (size_t)ix->stat.longs * sizeof *c->known);
  c->places = NULL;
  c->lists = NULL;
  c->guides = NULL;
  c->known = NULL;
  memset(&c->positions, 0, sizeof c->positions);
  memset(&c->slices, 0, sizeof c->slices);
  c->info.used_memory = c->info.resident_bytes = 0;
}

/* Puts the index on the device, or as much of it as the memory bound allows. */
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
    gc_release_index(c); /* it does not fit as bp128 */
  }
  return gc_open_cached(c, err);
}

#pragma GCC pop_options

/* ========================
 * [cuda-18-plan]  host: queries become jobs, terms and tasks of kernels; the lists that they need are held
 *
 * Planning mostly reads: a query's terms, their records, and what is known of their lists. These lie anywhere in
 * memory, so planning prefetches them. If a searcher has several threads, the planner pool plans packets of a large
 * batch's queries ahead, each packet into a plan of its own. Launches take packets in order. How long planning takes
 * stands in tools/results/bench_cuda-planners.txt.
 *
 * Uses      [cuda-05-expand], [cuda-07-or] to [cuda-10-phrases], [cuda-12-alone] to [cuda-14-memory],
 *           [cuda-16-cache], [cuda-17-open].
 * Start at  gc_plan_query (a query), gc_plan_some (a plan), gc_plan_by_pool, gc_stage_plan (all of a launch).
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_SMALL 16u /* queries of a small launch at most: most of its time passes between its kernels */
/* Queries at most of a launch that takes all blocks of a job at once. Floors that are raised meanwhile would come too
 * late, and all wait for the last block. With many hits to find, raising pays sooner. The limits were chosen by
 * tools/results/bench_cuda-small.txt. */
#define GC_UNRAISED(k) ((k) < 100 ? 8u : 3u)
#define GC_GROUP 8 /* driver blocks that a warp takes at once: with more, all would wait longer for the last warp */
#define GC_TURNS_LEAST 32u /* groups of blocks from which on a driver is taken in turns */
#define GC_OPENED 1024u /* blocks from which on a driver's later turns wait for the first one, if ANDs are few */

/* The arrays of a plan, on the host; gc_launch_view has the same on the device. */
typedef struct gc_plan {
  gc_term *terms;
  gc_job *jobs;
  gc_bound_task *bound_tasks;
  gc_turn *turns;
  uint32_t *and_jobs, *and_start, *or_jobs, *max_jobs, *sum_jobs;
  gc_sum_job *sums; /* of sum_jobs, when the launch is staged */
  gc_sum_list *rows;
  uint32_t *sparse;
  uint2 *query_jobs;
  gc_phrase_job *phrase_jobs; /* NULL: the index has no positions */
  uint32_t *phrase_start;
  gc_clause *clauses;
  gc_stored_positions *stored;
  uint8_t *tokens;
  gc_wanted *wanted; /* of the query that is being planned */
  int *outcomes; /* of each query, from `first` on: GC_NO_JOBS, GC_HAS_JOBS, or why it failed */
  void *memory; /* of all the arrays */
  size_t size;
  size_t first, next, end; /* numbers in the batch: queries before `next` are planned, those before `end` will be */
  gpuir_error error; /* of the first query that failed */
} gc_plan;

/* A query without jobs has no hits, or had its outcome before; one with jobs waits for the device. */
enum { GC_NO_JOBS, GC_HAS_JOBS };

/* How much of everything a plan has so far. */
typedef struct gc_plan_counts {
  size_t nsum, nsparse; /* jobs of gc_sum_tiles; their lists that are not cut */
  size_t nq, njobs, nterms, ntile_rows, nbound_tasks, nand, nor, nmax; /* nq: queries that have jobs */
  uint64_t nand_blocks, max_blocks; /* driver blocks of ANDs, of MaxScore */
  size_t nphrase_jobs, nstored, nclauses, ntokens; /* jobs of gc_phrase_all, and what they have of everything */
  uint64_t phrase_blocks; /* driver blocks of these */
  uint32_t lists, tokens; /* the greatest of any: required lists of a job, tokens of a phrase */
} gc_plan_counts;

typedef struct gc_planner_pool gc_planner_pool;

/* A batch, from begin to finish. */
typedef struct gc_batch {
  gpuir_batch_desc desc; /* its .k is the hits of a query that there is room for */
  uint32_t k; /* so many hits, or as many as there are documents */
  uint64_t deadline; /* of all queries; 0: none */
  const int *cancel; /* of all queries; or NULL */
  uint64_t number; /* batches are served in this order; 0: not in use */
  size_t next; /* the first query that no launch has taken */
  size_t seen; /* queries before it were planned; some will be planned again */
  size_t launch_size; /* queries of a launch at most */
  gc_planner_pool *pool; /* several threads that plan it; or NULL */
  size_t packet, npackets; /* queries of a packet; packets of a launch */
  size_t left; /* queries whose outcome is open */
  size_t bad, failed; /* how many failed; the first of them */
  gpuir_error error; /* of the first that failed */
} gc_batch;

/* A launch: queries first .. end - 1 of a batch, those whose count is GC_NONE. */
typedef struct gc_launch {
  gc_batch *batch; /* NULL: nothing is in flight */
  gc_plan_counts counts;
  size_t first, end;
  uint64_t number; /* launches are waited for in this order */
  unsigned reruns;
  int count; /* 1: its queries are counted */
  int idle; /* 1: the searcher had nothing else in flight when it was planned */
} gc_launch;

/* What plans queries, into a plan of its own. */
typedef struct gc_planner {
  gpuir_cuda *cuda;
  gpuir_allocator a;
  gpuir__engine *engine; /* the searcher's */
  gc_sizes most; /* of a launch */
  gc_plan plan;
  gc_plan_counts counts; /* of the plan */
  int count; /* 1: the queries are counted */
  int few; /* 1: they are a small batch */
  gc_holds held;
  gc_transfer transfer;
} gc_planner;

/* A launch slot: a stream and the memory of one launch. */
typedef struct gc_slot : gc_planner {
  gc_launch launch;
  gc_launch_view view; /* its device memory stays; the rest is new for each launch */
  cudaStream_t stream;
  cudaEvent_t sent; /* the lists that the launch uses are on the device */
  uint8_t *staging, *input; /* the plan in pinned memory; on the device */
  uint32_t *out; /* pinned: view.out */
  size_t out_size;
  uint64_t device_bytes;
  int dirty; /* 1: a launch failed, so candidates must be cleared */
  int chained; /* 1: each kernel of the launch starts while the one before ends */
  int alone; /* 1: gc_alone answers the launch */
  size_t alone_bytes; /* bytes of the staged plan that gc_alone needs */
  int sets_flag; /* 1: its last kernel sets the done flag */
  uint32_t flag_number; /* what the flag is set to */
  gc_phrases phrases; /* of the launch */
  gc_alone_state *alone_state; /* device memory of gc_alone */
  int prompt; /* 1: gc_prompt answers the launch */
  gc_line *lines, *device_lines; /* pinned memory behind the done flag that gc_prompt writes; as the device sees it */
} gc_slot;

/* Allocates the plan's arrays on the host. */
static int gc_plan_open(gc_planner *x, gpuir_error *err) {
  const gc_sizes *z = &x->most;
  gc_plan *d = &x->plan;
  uint8_t *at;
  d->size = (size_t)z->host;
  d->memory = gpuir__alloc(&x->a, d->size);
  if (!d->memory) return gpuir__fail_nomem(err);
  at = (uint8_t *)(((uintptr_t)d->memory + 63) & ~(uintptr_t)63);
  d->terms = (gc_term *)gc_carve(&at, z->nterms * sizeof *d->terms);
  d->jobs = (gc_job *)gc_carve(&at, z->njobs * sizeof *d->jobs);
  d->bound_tasks = (gc_bound_task *)gc_carve(&at, z->nbound_tasks * sizeof *d->bound_tasks);
  d->query_jobs = (uint2 *)gc_carve(&at, z->queries * sizeof *d->query_jobs);
  d->and_jobs = (uint32_t *)gc_carve(&at, z->njobs * 4);
  d->turns = (gc_turn *)gc_carve(&at, z->njobs * GC_TURNS * sizeof *d->turns);
  d->and_start = (uint32_t *)gc_carve(&at, (z->njobs * GC_TURNS + 1) * 4);
  d->or_jobs = (uint32_t *)gc_carve(&at, z->njobs * 4);
  d->max_jobs = (uint32_t *)gc_carve(&at, z->njobs * 4);
  d->sum_jobs = (uint32_t *)gc_carve(&at, z->njobs * 4);
  d->sums = (gc_sum_job *)gc_carve(&at, z->njobs * sizeof *d->sums);
  d->rows = (gc_sum_list *)gc_carve(&at, (z->nterms + 32) * sizeof *d->rows);
  d->sparse = (uint32_t *)gc_carve(&at, z->nterms * 4);
  if (z->ntokens) {
    d->phrase_jobs = (gc_phrase_job *)gc_carve(&at, z->njobs * sizeof *d->phrase_jobs);
    d->phrase_start = (uint32_t *)gc_carve(&at, (z->njobs + 1) * 4);
    d->clauses = (gc_clause *)gc_carve(&at, z->nterms * sizeof *d->clauses);
    d->stored = (gc_stored_positions *)gc_carve(&at, z->nterms * sizeof *d->stored);
    d->tokens = (uint8_t *)gc_carve(&at, z->ntokens);
  }
  d->wanted = (gc_wanted *)gc_carve(&at, sizeof *d->wanted);
  d->outcomes = (int *)gc_carve(&at, z->queries * sizeof *d->outcomes);
  x->held.entries = (uint32_t *)gc_carve(&at, z->nterms * 4);
  return GPUIR_OK;
}

/* ---- planning ---- */

/* Fills in where a long list's guides are. */
static void gc_add_guide(const gpuir_cuda *c, const gpuir__list *l, gc_term *t) {
  if (l->extent && c->guides) {
    const gc_list_guide *guide = &c->guides[l->extent - c->ix->lists.longs];
    t->marks = guide->marks;
    t->shift = guide->shift;
    t->row = guide->row;
    t->span = guide->span;
    t->most = guide->most;
    t->cut = guide->cut;
    t->wide = guide->wide;
  }
}

/* Returns the prepared term of a list, or NULL. */
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
  gc_add_guide(c, l, t);
  *seeds = l->seeds;
  return GPUIR_OK;
}

/* Fills in how a query uses a list, and the most that the list adds to a document. */
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

/* Notes in the job what a term tells of it. */
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

/* Appends the query's known terms: positive ones by ascending df, then negated ones. *full: their lists have to
 * wait. */
static int gc_plan_terms(gc_planner *x, const gc_plan_counts *p, const gpuir_query *q, gc_job *job, int *full,
    gpuir_error *err) {
  gpuir_cuda *c = x->cuda;
  gc_wanted *w = x->plan.wanted;
  gc_term *terms = x->plan.terms + p->nterms;
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
    status = gc_cache_hold_all(c, &x->held, &x->transfer, w, terms, full, err);
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

/* Returns whether the threshold that is known beforehand makes it certain that MaxScore answers the job. gc_max_plan
 * decides by the same rule. */
static int gc_plan_sure(const gc_planner *x, const gc_job *job) {
  const gc_term *terms = x->plan.terms + job->first_term;
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
static void gc_plan_and(gc_planner *x, gc_plan_counts *p, const gc_job *job) {
  gc_plan *d = &x->plan;
  const gc_term *driver = &d->terms[job->first_term];
  d->and_jobs[p->nand++] = (uint32_t)p->njobs;
  p->nand_blocks += driver->nblocks;
  d->jobs[p->njobs++] = *job;
}

#define GC_SUM_TERMS 32u /* terms of a query at most */

/* Appends an OR job to those of gc_sum_tiles, if it can answer it. Small batches stay with gc_or: tile after tile for
 * all queries keeps the device busy only if there are many. */
static int gc_plan_sum(gc_planner *x, gc_plan_counts *p, const gc_job *job) {
  gc_plan *d = &x->plan;
  uint32_t i;
  if (!x->cuda->slices.ntiles || x->few || job->prune || job->count || !job->stored || job->nterms > GC_SUM_TERMS ||
      job->npositive < job->nterms || job->k > gc_shared_sum::KEYS)
    return 0;
  for (i = 0; i < job->nterms; i++) p->nsparse += !d->terms[job->first_term + i].cut;
  d->sum_jobs[p->nsum++] = (uint32_t)p->njobs;
  d->jobs[p->njobs++] = *job;
  return 1;
}

/* Appends an OR job: for MaxScore, if there are guides; and for tiles, unless MaxScore is certain to answer it. */
static void gc_plan_or(gc_planner *x, gc_plan_counts *p, gc_job *job) {
  gc_plan *d = &x->plan;
  uint32_t i, first;
  job->any = 1;
  if (gc_plan_sum(x, p, job)) return;
  job->follow = x->cuda->guides && job->prune;
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
    t->tile_row = (uint32_t)p->ntile_rows++;
    for (first = 0; first < t->nblocks; first += GC_BOUND_BLOCKS) {
      gc_bound_task *c = &d->bound_tasks[p->nbound_tasks++];
      c->job = (uint32_t)p->njobs;
      c->term = job->first_term + i;
      c->first = first;
      c->zero = 0;
    }
  }
  d->or_jobs[p->nor++] = (uint32_t)p->njobs;
  d->jobs[p->njobs++] = *job;
}

/* Returns whether a job of one positive term goes the way of ANDs: its list is short, or a known threshold spares
 * nearly all its blocks. gc_alone begins without that threshold. */
static int gc_plan_driven(const gc_planner *x, const gc_job *job) {
  return x->plan.terms[job->first_term].df <= 4096 || (x->cuda->guides && job->seed > 1 && !x->few);
}

/* Appends the jobs of a query whose terms have been appended: AND, OR, or both. A query of one positive term has the
 * same answer by either, and goes the cheaper way. */
static uint2 gc_plan_jobs(gc_planner *x, gc_plan_counts *p, const gpuir_query *q, gc_job *job) {
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

/* Returns how many tasks of gc_tiles a query's lists may need. */
static size_t gc_bound_tasks_of(const gpuir_query *q) {
  size_t n = 0;
  unsigned i;
  for (i = 0; i < q->n; i++) n += q->terms[i].df / (GPUIR__BLOCK * GC_BOUND_BLOCKS) + 1;
  return n;
}

/* Returns whether a + b * length is exact in binary64 for every length below 2^24, so that gc_fused_norm rounds as
 * gpuir__norm_of does. The sum's first bit is at most 2^(1 + the greater exponent); its last one is 23 below the lesser
 * exponent. It is exact if these are at most 53 bits. */
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

/* Returns which phrases or prefixes of a query the device leaves to the CPU; NULL: none. */
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
static int gc_phrases_fit(const gc_plan_counts *p, const gpuir_query *q, const gc_sizes *most) {
  return p->nterms + q->n + q->phrases->nmembers <= most->nterms &&
      p->ntokens + q->n + q->phrases->ntokens <= most->ntokens && !(p->phrase_blocks >> 30);
}

/* The lists that a query with phrases requires, each once; then those that exclude. */
typedef struct gc_phrase_lists {
  const gpuir_query *query;
  gc_term *terms;
  gc_stored_positions *stored;
  uint32_t n;
  uint32_t id[2 * GPUIR_MAX_TERMS]; /* [list] the term's number in the index */
  uint8_t rank[2 * GPUIR_MAX_TERMS]; /* [list as it was added] its number when they are sorted */
} gc_phrase_lists;

/* Describes, as list number m->n, the list of what has this number in the query: GPUIR__ID_TERMS or GPUIR__ID_MEMBERS
 * and more. */
static int gc_phrase_lists_describe(const gpuir_cuda *c, gc_phrase_lists *m, unsigned number, gpuir_error *err) {
  const gpuir__record *r = gpuir__query_record(m->query, 0, number);
  const gc_known *known = gc_known_list(c, r);
  const uint64_t most = c->ix->section[GPUIR__S_POSITIONS]->length;
  gc_term *t = &m->terms[m->n];
  gc_stored_positions *s = &m->stored[m->n];
  gpuir__list l;
  if (known) {
    *t = known->term;
  } else {
    const int status = gc_describe(c, m->query->ids[number], r, t, &l, err);
    if (status) return status;
    gc_add_guide(c, &l, t);
  }
  t->q = 1;
  s->at = r->positions;
  s->length = r->positions_len;
  if (s->at > most || s->length > most - s->at) return gpuir__bad(c->ix, err, 0, "a list's positions lie outside");
  return GPUIR_OK;
}

/* Adds a list, unless it is there; *list: its number. NOT_FOUND: the index has no such list. */
static int gc_phrase_lists_add(const gpuir_cuda *c, gc_phrase_lists *m, unsigned number, uint8_t *list,
    gpuir_error *err) {
  const uint32_t id = m->query->ids[number];
  uint32_t i;
  int status;
  if (id == GPUIR__NO_TERM || !gpuir__query_record(m->query, 0, number)->df) return GPUIR_E_NOT_FOUND;
  for (i = 0; i < m->n && m->id[i] != id; i++) {}
  *list = (uint8_t)i;
  if (i < m->n) return GPUIR_OK;
  status = gc_phrase_lists_describe(c, m, number, err);
  m->id[m->n++] = id;
  return status;
}

/* Adds the lists of the words and phrases that the query requires; tokens[] gets their numbers, one word or phrase
 * behind the other. */
static int gc_phrase_lists_require(const gpuir_cuda *c, gc_phrase_lists *m, uint8_t *tokens, gpuir_error *err) {
  const gpuir_query *q = m->query;
  unsigned i, j;
  for (i = 0; i < q->npositive; i++) {
    const gpuir__query_term *t = &q->terms[i];
    const unsigned n = t->kind == GPUIR__PHRASE ? t->tokens : 1;
    for (j = 0; j < n; j++) {
      const unsigned number = t->kind == GPUIR__PHRASE ? GPUIR__ID_MEMBERS + q->phrases->tokens[t->first + j] : i;
      const int status = gc_phrase_lists_add(c, m, number, tokens++, err);
      if (status) return status;
    }
  }
  return GPUIR_OK;
}

/* Sorts the lists by ascending df. */
static void gc_phrase_lists_sort(gc_phrase_lists *m) {
  uint8_t order[2 * GPUIR_MAX_TERMS];
  uint32_t i, j;
  for (i = 0; i < m->n; i++) {
    const gc_term t = m->terms[i];
    const gc_stored_positions s = m->stored[i];
    for (j = i; j && m->terms[j - 1].df > t.df; j--) {
      m->terms[j] = m->terms[j - 1];
      m->stored[j] = m->stored[j - 1];
      order[j] = order[j - 1];
    }
    m->terms[j] = t;
    m->stored[j] = s;
    order[j] = (uint8_t)i;
  }
  for (i = 0; i < m->n; i++) m->rank[order[i]] = (uint8_t)i;
}

/* Adds the lists of the words that exclude, as far as the index has them. */
static int gc_phrase_lists_exclude(const gpuir_cuda *c, gc_phrase_lists *m, gpuir_error *err) {
  const gpuir_query *q = m->query;
  unsigned i;
  for (i = q->npositive; i < q->n; i++) {
    int status;
    if (q->ids[i] == GPUIR__NO_TERM || !gpuir__query_record(q, 0, i)->df) continue;
    status = gc_phrase_lists_describe(c, m, i, err);
    if (status) return status;
    m->terms[m->n++].negated = 1;
  }
  return GPUIR_OK;
}

/* Describes what the query requires, by the sorted lists; returns how many tokens it has. */
static size_t gc_plan_clauses(const gc_planner *x, gc_plan_counts *p, const gc_phrase_lists *m) {
  const gpuir_query *q = m->query;
  size_t n = p->ntokens, i, j;
  for (i = 0; i < q->npositive; i++) {
    gc_clause *c = &x->plan.clauses[p->nclauses + i];
    c->weight = q->terms[i].weight;
    c->q = q->terms[i].q;
    c->n = q->terms[i].kind == GPUIR__PHRASE ? q->terms[i].tokens : 1;
    c->first = (uint32_t)n;
    for (j = 0; j < c->n; j++, n++) x->plan.tokens[n] = m->rank[x->plan.tokens[n]];
    p->tokens = gpuir__max32(p->tokens, c->n);
  }
  return n - p->ntokens;
}

/* Appends the job of a query with phrases, unless it can have no hits. */
static int gc_plan_phrase_query(gc_planner *x, gc_plan_counts *p, const gpuir_query *q, gc_job *job, gpuir_error *err) {
  gc_plan *d = &x->plan;
  const gc_phrase_job phrase_job = {(uint32_t)p->njobs, (uint32_t)p->nstored, (uint32_t)p->nclauses, q->npositive};
  const uint2 jobs = {(uint32_t)p->njobs, GC_NONE};
  uint32_t tokens = 0;
  unsigned i;
  gc_phrase_lists m;
  int status;
  memset(&m, 0, sizeof m);
  m.query = q;
  m.terms = d->terms + p->nterms;
  m.stored = d->stored + p->nstored;
  status = gc_phrase_lists_require(x->cuda, &m, d->tokens + p->ntokens, err);
  if (status) return status == GPUIR_E_NOT_FOUND ? GPUIR_OK : status;
  for (i = 0; i < q->npositive; i++) tokens = gpuir__max32(tokens, q->terms[i].tokens);
  if (GC_PHRASE_THREADS / 32 * gc_phrase_bytes(gpuir__max32(p->lists, m.n), gpuir__max32(p->tokens, tokens)) >
      x->cuda->phrase_room)
    return gpuir__fail(err, GPUIR_E_BACKEND, 0, "the CUDA backend does not answer phrases of so many words");
  gc_phrase_lists_sort(&m);
  job->first_term = (uint32_t)p->nterms;
  job->npositive = m.n;
  p->lists = gpuir__max32(p->lists, m.n);
  status = gc_phrase_lists_exclude(x->cuda, &m, err);
  if (status) return status;
  job->nterms = m.n;
  p->ntokens += gc_plan_clauses(x, p, &m);
  p->nclauses += q->npositive;
  p->nstored += m.n;
  p->nterms += m.n;
  p->phrase_blocks += m.terms[0].nblocks;
  d->phrase_jobs[p->nphrase_jobs++] = phrase_job;
  d->jobs[p->njobs++] = *job;
  d->query_jobs[p->nq++] = jobs;
  return GPUIR_OK;
}

/* Appends a query, if it can have hits; *full: it has to wait for the next launch. */
static int gc_plan_query(gc_planner *x, gc_plan_counts *p, const gpuir_query *q, uint32_t k, size_t most_jobs,
    int *full, gpuir_error *err) {
  const gc_sizes *most = &x->most;
  gc_job job;
  int status;
  const int phrases = q->nphrases || q->nprefixes;
  if (q->nrequired < q->npositive && q->mode != GPUIR_OR)
    return gpuir__fail(err, GPUIR_E_BACKEND, 0, "the CUDA backend does not answer optional terms beside required ones");
  if (!x->count && gpuir__query_has_two(q, k))
    return gpuir__fail(err, GPUIR_E_BACKEND, 0, "the CUDA backend does not answer AND and an OR of other words");
  if (phrases) {
    const char *why = gc_why_not(x->cuda, q, x->count);
    if (why) return gpuir__fail(err, GPUIR_E_BACKEND, 0, "the CUDA backend does not answer %s", why);
  }
  *full = (phrases && !gc_phrases_fit(p, q, most)) || p->nq == most->queries || p->njobs + 2 > most_jobs ||
      p->nterms + q->n > most->nterms || p->ntile_rows + q->n > most->ntile_rows ||
      p->nsparse + q->n > most->ntile_rows || p->nbound_tasks + gc_bound_tasks_of(q) > most->nbound_tasks ||
      p->nand_blocks >> 30 || p->max_blocks >> 30;
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
  if (phrases) return gc_plan_phrase_query(x, p, q, &job, err);
  if (q->mode == GPUIR_OR || (q->mode == GPUIR_ANDOR && !job.count) || !gpuir__query_absent(q, 0)) {
    status = gc_plan_terms(x, p, q, &job, full, err);
    if (status || *full) return status;
  }
  if (job.npositive) x->plan.query_jobs[p->nq++] = gc_plan_jobs(x, p, q, &job);
  return GPUIR_OK;
}

/* ---- the queries of a batch, until a plan is full ---- */

/* Notes that a query failed. */
static void gc_fail_query(gc_batch *r, size_t i, int status, const gpuir_error *err) {
  r->desc.statuses[i] = status;
  r->desc.counts[i] = 0;
  r->left--;
  r->bad++;
  if (i >= r->failed) return;
  r->failed = i;
  r->error = *err;
}

/* Returns whether there is a cancel flag and it is set. */
static int gc_cancel_is_set(const int *flag) { return flag && __atomic_load_n(flag, __ATOMIC_RELAXED); }

/* Returns the status of a query that was cancelled or is out of time; otherwise OK. */
static int gc_stopped(const gc_batch *r, size_t i, uint64_t now, gpuir_error *err) {
  const uint64_t own = r->desc.deadlines ? r->desc.deadlines[i] : 0;
  if (gc_cancel_is_set(r->cancel) || (r->desc.cancels && gc_cancel_is_set(r->desc.cancels[i])))
    return gpuir__fail(err, GPUIR_E_CANCELLED, 0, "the search was cancelled");
  if ((r->deadline && now > r->deadline) || (own && now > own))
    return gpuir__fail(err, GPUIR_E_DEADLINE, 0, "the search exceeded its time limit");
  return GPUIR_OK;
}

/* Returns the time, if any query of the batch has a limit; otherwise 0. */
static uint64_t gc_now(const gc_batch *r) { return r->deadline || r->desc.deadlines ? gpuir__now() : 0; }

#define GC_AHEAD_OF_PLAN 16u /* queries */

/* Prefetches what planning will read: query number i, the records of an earlier one, the long lists of one before that.
 * Each is asked for when what leads to it has come. Without this, planning waits for some 25 cache misses of a query,
 * one after another. */
static void gc_expect(const gpuir_cuda *c, const gpuir_batch_desc *desc, const gc_plan *d, size_t i) {
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
static size_t gc_most_jobs(const gc_sizes *z, const gc_batch *r) {
  const uint64_t least = gpuir__max64(8192, 16 * (uint64_t)r->k);
  return (size_t)gpuir__min64(z->njobs, gpuir__max64(2, z->ncand / least));
}

/* Plans queries of a batch, from plan.next on, until the plan is full. *full: the next query found no room for its
 * lists. It writes nothing to the batch, as other threads may plan too; gc_report_outcomes does. */
static void gc_plan_some(gc_planner *x, const gc_batch *r, int *full) {
  const gpuir_batch_desc *desc = &r->desc;
  const uint64_t now = gc_now(r), threshold = x->cuda->threshold;
  const size_t jobs = gc_most_jobs(&x->most, r);
  gc_plan *d = &x->plan;
  uint64_t postings = 0;
  unsigned t;
  memset(&x->counts, 0, sizeof x->counts);
  x->count = desc->count;
  x->few = desc->nq <= GC_SMALL;
  d->first = d->next;
  d->error.code = 0;
  for (t = 0; t < GC_AHEAD_OF_PLAN; t++) gc_expect(x->cuda, desc, d, d->next + t);
  for (; d->next < d->end && postings < threshold; d->next++) {
    const size_t i = d->next, had = x->counts.nq;
    const gpuir_query *q = desc->queries[i];
    int *outcome = &d->outcomes[i - d->first];
    gpuir_error error;
    int status;
    gc_expect(x->cuda, desc, d, i + GC_AHEAD_OF_PLAN);
    *outcome = GC_NO_JOBS;
    if (i < r->seen && desc->counts[i] != GC_NONE) continue;
    error.code = 0;
    status = gc_stopped(r, i, now, &error);
    if (!status) status = gc_plan_query(x, &x->counts, q, r->k, jobs, full, &error);
    if (*full) break;
    if (status && !d->error.code) d->error = error;
    *outcome = status ? status : x->counts.nq == had ? GC_NO_JOBS : GC_HAS_JOBS;
    if (*outcome != GC_HAS_JOBS) continue;
    for (t = 0; t < q->n; t++) postings += q->terms[t].df;
  }
}

/* Reports to the batch what became of a plan's queries. */
static void gc_report_outcomes(const gc_planner *x, gc_batch *r) {
  const gc_plan *d = &x->plan;
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
  else __atomic_fetch_add(&x->cuda->info.lists_hit, x->counts.nterms, __ATOMIC_RELAXED);
}

/* ---- the planner pool: packets are planned ahead, and launches take them in order ---- */

#define GC_PLANNER_THREADS 8u /* threads at most, the caller's among them */
#define GC_PACKET 64u /* queries of a packet at most */
#define GC_PACKETS 96u /* packets that are planned ahead at most */
#define GC_FIRST_PACKETS 4u /* packets of a batch's first launch at most, which the device waits for */
#define GC_PLANNER_SPIN_NS 1500000u /* time that planners look for the next batch's packets before they sleep */

/* Threads of a searcher that plan. They sleep while there is nothing to plan. At the end of a batch they look for the
 * next one for a while first, as waking a thread takes longer than planning a packet. Packets are numbered over all
 * batches. */
struct gc_planner_pool {
  gpuir_allocator a;
  pthread_mutex_t lock; /* of all that follows; a packet's contents belong to the thread that plans it */
  pthread_cond_t work, done; /* for the threads; for the caller */
  int stop;
  unsigned n;
  pthread_t threads[GC_PLANNER_THREADS - 1];
  const gc_batch *batches[2]; /* the batches of these packets */
  uint64_t from[2]; /* the first packet of each */
  unsigned nbatches; /* announced; the last one is in place (nbatches - 1) % 2 */
  uint64_t begun, claimed, taken; /* packets that there are (atomic); that were claimed; that launches took */
  uint64_t wakeups; /* how often another batch was soon to be expected */
  gc_planner packets[GC_PACKETS]; /* packet i is in place i % GC_PACKETS */
  int planned[GC_PACKETS];
};

/* Claims the next packet for a thread; NULL: there is none, or no place for it. The lock is held. */
static gc_planner *gc_claim_packet(gc_planner_pool *w, const gc_batch **batch) {
  const uint64_t number = w->claimed;
  gc_planner *packet = &w->packets[number % GC_PACKETS];
  const unsigned last = (w->nbatches - 1) % 2, which = number < w->from[last] ? 1 - last : last;
  const gc_batch *r = w->batches[which];
  size_t launch;
  if (number == w->begun || number == w->taken + GC_PACKETS) return NULL;
  w->claimed++;
  w->planned[number % GC_PACKETS] = 0;
  launch = (size_t)(number - w->from[which]) / r->npackets * r->launch_size;
  packet->plan.next = launch + (size_t)(number - w->from[which]) % r->npackets * r->packet;
  packet->plan.end =
      (size_t)gpuir__min64(gpuir__min64(packet->plan.next + r->packet, launch + r->launch_size), r->desc.nq);
  *batch = r;
  return packet;
}

/* Plans a packet that was claimed. The lock is held before and after, but not meanwhile. */
static void gc_plan_packet(gc_planner_pool *w, gc_planner *packet, const gc_batch *r) {
  int full = 0;
  (void)pthread_mutex_unlock(&w->lock);
  gc_plan_some(packet, r, &full);
  (void)pthread_mutex_lock(&w->lock);
  w->planned[packet - w->packets] = 1;
}

/* Looks for packets of the next batch before the thread sleeps. The lock is held before and after, but not
 * meanwhile. */
static void gc_spin_for_packets(gc_planner_pool *w) {
  const uint64_t begun = w->begun, until = gpuir__now() + GC_PLANNER_SPIN_NS;
  (void)pthread_mutex_unlock(&w->lock);
  while (__atomic_load_n(&w->begun, __ATOMIC_RELAXED) == begun && gpuir__now() < until) (void)sched_yield();
  (void)pthread_mutex_lock(&w->lock);
}

/* Each thread that sees more than one packet wakes another. */
static void *gc_planner_main(void *argument) {
  gc_planner_pool *w = (gc_planner_pool *)argument;
  uint64_t wakeups = 0;
  (void)pthread_mutex_lock(&w->lock);
  while (!w->stop) {
    const gc_batch *r;
    gc_planner *packet = gc_claim_packet(w, &r);
    if (packet) {
      if (w->claimed < w->begun) (void)pthread_cond_signal(&w->work);
      gc_plan_packet(w, packet, r);
      (void)pthread_cond_signal(&w->done);
    } else if (wakeups != w->wakeups) {
      wakeups = w->wakeups;
      gc_spin_for_packets(w);
    } else {
      (void)pthread_cond_wait(&w->work, &w->lock);
    }
  }
  (void)pthread_mutex_unlock(&w->lock);
  return NULL;
}

/* Wakes all threads: the last launch of a batch has started, and another batch may come. */
static void gc_wake_planners(gc_planner_pool *w) {
  (void)pthread_mutex_lock(&w->lock);
  w->wakeups++;
  (void)pthread_cond_broadcast(&w->work);
  (void)pthread_mutex_unlock(&w->lock);
}

/* Returns the next packet, planned. The caller plans it if no thread has begun to. While it waits for another thread,
 * it plans further packets. */
static gc_planner *gc_next_packet(gc_planner_pool *w) {
  const size_t place = w->taken % GC_PACKETS;
  (void)pthread_mutex_lock(&w->lock);
  while (w->claimed == w->taken || !w->planned[place]) {
    const gc_batch *r;
    gc_planner *packet = gc_claim_packet(w, &r);
    if (packet) gc_plan_packet(w, packet, r);
    else (void)pthread_cond_wait(&w->done, &w->lock);
  }
  (void)pthread_mutex_unlock(&w->lock);
  return &w->packets[place];
}

/* Gives a packet up, all of whose queries launches have taken. */
static void gc_leave_packet(gc_planner_pool *w) {
  (void)pthread_mutex_lock(&w->lock);
  w->taken++;
  if (w->claimed < w->begun) (void)pthread_cond_signal(&w->work);
  (void)pthread_mutex_unlock(&w->lock);
}

/* Announces a batch to the pool. */
static void gc_announce(gc_planner_pool *w, gc_batch *r) {
  r->pool = w;
  (void)pthread_mutex_lock(&w->lock);
  w->batches[w->nbatches % 2] = r;
  w->from[w->nbatches++ % 2] = w->begun;
  (void)__atomic_add_fetch(&w->begun,
      r->desc.nq / r->launch_size * r->npackets + (r->desc.nq % r->launch_size + r->packet - 1) / r->packet,
      __ATOMIC_RELAXED);
  (void)pthread_mutex_unlock(&w->lock);
  (void)pthread_cond_signal(&w->work);
}

/* Ends the pool's threads and frees it. */
static void gc_planner_pool_close(gc_planner_pool *w) {
  const gpuir_allocator a = w->a;
  unsigned i;
  (void)pthread_mutex_lock(&w->lock);
  w->stop = 1;
  (void)pthread_cond_broadcast(&w->work);
  (void)pthread_mutex_unlock(&w->lock);
  for (i = 0; i < w->n; i++) (void)pthread_join(w->threads[i], NULL);
  for (i = 0; i < GC_PACKETS; i++) gpuir__free(&a, w->packets[i].plan.memory, w->packets[i].plan.size);
  (void)pthread_cond_destroy(&w->done);
  (void)pthread_cond_destroy(&w->work);
  (void)pthread_mutex_destroy(&w->lock);
  gpuir__free(&a, w, sizeof *w);
}

/* Makes a pool of `threads` for launches as `like` plans them. Returns NULL without memory or threads. */
GPUIR__COLD static gc_planner_pool *gc_planner_pool_open(const gc_planner *like, unsigned threads) {
  gc_planner_pool *w = (gc_planner_pool *)gpuir__alloc_zero(&like->a, sizeof *w);
  gpuir_error error;
  unsigned i;
  if (!w) return NULL;
  w->a = like->a;
  if (pthread_mutex_init(&w->lock, NULL) || pthread_cond_init(&w->work, NULL) || pthread_cond_init(&w->done, NULL)) {
    gpuir__free(&like->a, w, sizeof *w);
    return NULL;
  }
  for (i = 0; i < GC_PACKETS; i++) {
    w->packets[i].cuda = like->cuda;
    w->packets[i].a = like->a;
    w->packets[i].engine = like->engine;
    w->packets[i].most = gc_sizes_of(like->cuda, GC_PACKET);
    if (gc_plan_open(&w->packets[i], &error)) break;
  }
  for (; i == GC_PACKETS && w->n + 1 < threads && w->n + 1 < GC_PLANNER_THREADS; w->n++)
    if (pthread_create(&w->threads[w->n], NULL, gc_planner_main, w)) break;
  if (w->n) return w;
  gc_planner_pool_close(w);
  return NULL;
}

/* Appends a packet's queries with phrases to a launch's plan, whose other counts have not been raised yet. */
static void gc_append_phrases(gc_planner *to, const gc_planner *from) {
  const gc_plan *d = &from->plan;
  const gc_plan_counts *more = &from->counts;
  gc_plan_counts *p = &to->counts;
  gc_plan *all = &to->plan;
  size_t i;
  for (i = 0; i < more->nphrase_jobs; i++) {
    gc_phrase_job *s = &all->phrase_jobs[p->nphrase_jobs + i];
    *s = d->phrase_jobs[i];
    s->job += (uint32_t)p->njobs;
    s->first_stored += (uint32_t)p->nstored;
    s->first_clause += (uint32_t)p->nclauses;
  }
  for (i = 0; i < more->nclauses; i++) {
    all->clauses[p->nclauses + i] = d->clauses[i];
    all->clauses[p->nclauses + i].first += (uint32_t)p->ntokens;
  }
  memcpy(all->stored + p->nstored, d->stored, more->nstored * sizeof *d->stored);
  memcpy(all->tokens + p->ntokens, d->tokens, more->ntokens);
  p->nphrase_jobs += more->nphrase_jobs;
  p->nstored += more->nstored;
  p->nclauses += more->nclauses;
  p->ntokens += more->ntokens;
  p->phrase_blocks += more->phrase_blocks;
  p->lists = gpuir__max32(p->lists, more->lists);
  p->tokens = gpuir__max32(p->tokens, more->tokens);
}

/* Appends what a packet has planned to a launch's plan. */
static void gc_append(gc_planner *to, const gc_planner *from) {
  const gc_plan *d = &from->plan;
  const gc_plan_counts *more = &from->counts;
  gc_plan_counts *p = &to->counts;
  gc_plan *all = &to->plan;
  size_t i;
  uint32_t t;
  memcpy(all->terms + p->nterms, d->terms, more->nterms * sizeof *d->terms);
  for (i = 0; i < more->njobs; i++) {
    gc_job *job = &all->jobs[p->njobs + i];
    *job = d->jobs[i];
    job->first_term += (uint32_t)p->nterms;
    if (job->after != GC_NONE) job->after += (uint32_t)p->njobs;
  }
  for (i = 0; i < more->nbound_tasks; i++) {
    gc_bound_task *c = &all->bound_tasks[p->nbound_tasks + i];
    *c = d->bound_tasks[i];
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
    for (t = 0; t < job->nterms; t++) all->terms[job->first_term + t].tile_row += (uint32_t)p->ntile_rows;
  }
  for (i = 0; i < more->nsum; i++) all->sum_jobs[p->nsum + i] = d->sum_jobs[i] + (uint32_t)p->njobs;
  for (i = 0; i < more->nmax; i++) all->max_jobs[p->nmax + i] = d->max_jobs[i] + (uint32_t)p->njobs;
  if (more->nphrase_jobs) gc_append_phrases(to, from);
  p->nq += more->nq;
  p->njobs += more->njobs;
  p->nterms += more->nterms;
  p->ntile_rows += more->ntile_rows;
  p->nbound_tasks += more->nbound_tasks;
  p->nand += more->nand;
  p->nor += more->nor;
  p->nmax += more->nmax;
  p->nsum += more->nsum;
  p->nsparse += more->nsparse;
  p->nand_blocks += more->nand_blocks;
  p->max_blocks += more->max_blocks;
}

/* Returns whether a launch has room for a packet. */
static int gc_fits(const gc_planner *x, const gc_plan_counts *more, size_t most_jobs) {
  const gc_sizes *z = &x->most;
  const gc_plan_counts *p = &x->counts;
  return p->nq + more->nq <= z->queries && p->njobs + more->njobs <= most_jobs &&
      p->nterms + more->nterms <= z->nterms && p->ntokens + more->ntokens <= z->ntokens &&
      p->ntile_rows + more->ntile_rows <= z->ntile_rows && p->nsparse + more->nsparse <= z->ntile_rows &&
      p->nbound_tasks + more->nbound_tasks <= z->nbound_tasks && !((p->nand_blocks + more->nand_blocks) >> 30) &&
      !((p->max_blocks + more->max_blocks) >> 30) && !((p->phrase_blocks + more->phrase_blocks) >> 30);
}

/* Returns whether the next packet is planned. */
static int gc_packet_is_ready(gc_planner_pool *w) {
  int ready;
  (void)pthread_mutex_lock(&w->lock);
  ready = w->claimed > w->taken && w->planned[w->taken % GC_PACKETS];
  (void)pthread_mutex_unlock(&w->lock);
  return ready;
}

/* Plans a launch of at most `most` queries of a batch by the pool. If the device is idle, the launch does not wait for
 * further packets once it has two; and a batch's first launch takes only few, so that the device starts. */
static void gc_plan_by_pool(gc_planner *x, gc_batch *r, size_t most, int idle) {
  const size_t first = r->next, jobs = gc_most_jobs(&x->most, r);
  gc_planner_pool *w = r->pool;
  memset(&x->counts, 0, sizeof x->counts);
  while (r->next < r->desc.nq) {
    gc_planner *packet;
    gc_plan *d;
    int full = 0;
    if (idle && r->next - first >= 2 * r->packet && !gc_packet_is_ready(w)) break;
    if (idle && !first && r->next >= GC_FIRST_PACKETS * r->packet) break;
    packet = gc_next_packet(w);
    d = &packet->plan;
    if (r->next > first && (d->next - first > most || !gc_fits(x, &packet->counts, jobs))) break;
    gc_append(x, packet);
    gc_report_outcomes(packet, r);
    if (d->next == d->end) gc_leave_packet(w);
    else gc_plan_some(packet, r, &full); /* the packet's plan was full: the rest */
  }
}

/* ---- sending a plan ---- */

/* Copies an array into the staging memory; returns where it will lie on the device. */
static void *gc_stage(gc_slot *x, size_t *at, const void *from, size_t n) {
  size_t start = *at;
  memcpy(x->staging + start, from, n);
  *at = (start + n + 15) & ~(size_t)15;
  return x->input + start;
}

/* Appends the AND jobs' turns of one round: round 0 of the long drivers; in round 1 all blocks of the others; then the
 * further rounds of the long ones. */
static void gc_take_turns(const gc_slot *x, const gc_plan_counts *p, uint32_t round, uint32_t group, gc_ands *ands) {
  const gc_plan *d = &x->plan;
  const uint32_t first = round > 1 ? 1u << (GC_TURNS - round) : 0;
  const uint32_t step = round ? 1u << (GC_TURNS - round + 1) : 1u << (GC_TURNS - 1);
  size_t i;
  for (i = 0; i < p->nand; i++) {
    gc_job *job = &d->jobs[d->and_jobs[i]];
    const uint32_t some = job->npositive == 1 && job->seed ? 32 : group; /* hardly a block of it is decoded */
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

/* Cuts the ANDs' driver blocks into groups, one ticket for each. */
static void gc_group_ands(const gc_slot *x, const gc_plan_counts *p, gc_ands *ands) {
  const gpuir_cuda *c = x->cuda;
  uint32_t round;
  const uint32_t group = (uint32_t)gpuir__max64(1, gpuir__min64(GC_GROUP, p->nand_blocks / (c->grids.maxs * 64)));
  ands->n = ands->tickets = 0;
  for (round = 0; round <= GC_TURNS; round++) gc_take_turns(x, p, round, group, ands);
  x->plan.and_start[ands->n] = ands->tickets;
}

/* Describes the lists of gc_sum_tiles and stages them. Its terms get their rows. */
static void gc_stage_sums(gc_slot *x, const gc_plan_counts *p, size_t *at) {
  const gc_slices *to = &x->cuda->slices;
  gc_plan *d = &x->plan;
  gc_sums *b = &x->view.sums;
  size_t rows = 0, sparse = 0, i;
  uint32_t n;
  for (i = 0; i < p->nsum; i++) {
    const gc_job *job = &d->jobs[d->sum_jobs[i]];
    const gc_sum_job sum = {d->sum_jobs[i], (uint32_t)rows, job->nterms, job->after};
    d->sums[i] = sum;
    for (n = job->first_term; n < job->first_term + job->nterms; n++) {
      gc_term *t = &d->terms[n];
      gc_sum_list *row = &d->rows[rows++];
      const uint32_t cut = t->cut, is_long = t->kind == GC_LONG;
      t->tile_row = cut ? cut - 1 : (uint32_t)sparse;
      if (!cut) d->sparse[sparse++] = n;
      row->at = t->tile_row * (to->ntiles + 1);
      row->kind_q = t->q | (cut ? 0 : is_long ? 1u << 30 : 2u << 30);
      row->from = is_long ? (uint32_t)(t->first_block * GPUIR__BLOCK) : n;
      row->most = cut ? to->tile : t->df;
    }
  }
  memset(d->rows + rows, 0, 32 * sizeof *d->rows);
  b->jobs = (const gc_sum_job *)gc_stage(x, at, d->sums, p->nsum * sizeof *d->sums);
  b->rows = (const gc_sum_list *)gc_stage(x, at, d->rows, (rows + 32) * sizeof *d->rows);
  b->sparse = (const uint32_t *)gc_stage(x, at, d->sparse, sparse * 4);
  b->n = (uint32_t)p->nsum;
  b->nsparse = (uint32_t)sparse;
  b->lists = *to;
}

/* Stages the queries with phrases. */
static void gc_stage_phrases(gc_slot *x, const gc_plan_counts *p, size_t *at) {
  const gc_plan *d = &x->plan;
  gc_phrases *b = &x->phrases;
  size_t i;
  b->group = (uint32_t)gpuir__max64(1, gpuir__min64(GC_GROUP, p->phrase_blocks / (x->cuda->grids.maxs * 64)));
  b->tickets = 0;
  for (i = 0; i < p->nphrase_jobs; i++) {
    d->phrase_start[i] = b->tickets;
    b->tickets += (d->terms[d->jobs[d->phrase_jobs[i].job].first_term].nblocks - 1) / b->group + 1;
  }
  d->phrase_start[i] = b->tickets;
  b->jobs = (const gc_phrase_job *)gc_stage(x, at, d->phrase_jobs, p->nphrase_jobs * sizeof *d->phrase_jobs);
  b->start = (const uint32_t *)gc_stage(x, at, d->phrase_start, (p->nphrase_jobs + 1) * 4);
  b->clauses = (const gc_clause *)gc_stage(x, at, d->clauses, p->nclauses * sizeof *d->clauses);
  b->stored = (const gc_stored_positions *)gc_stage(x, at, d->stored, p->nstored * sizeof *d->stored);
  b->tokens = (const uint8_t *)gc_stage(x, at, d->tokens, p->ntokens);
  b->positions = x->cuda->positions;
  b->n = (uint32_t)p->nphrase_jobs;
  b->lists = p->lists;
}

#define GC_DOUBT 9.0f /* of gc_maxs.doubt: one guess in exp(9) = 8,100 may fail */
#ifdef GPUIR_CUDA_SEAM
float gpuir_cuda_seam_doubt[2] = {GC_DOUBT, GC_DOUBT};
#define GC_DOUBT_NOW(i) gpuir_cuda_seam_doubt[i]
#else
#define GC_DOUBT_NOW(i) GC_DOUBT
#endif

/* Stages the plan and the states that jobs begin with, and makes x->view describe it. Returns the bytes to be sent. */
static size_t gc_stage_plan(gc_slot *x, const gc_plan_counts *p, uint32_t k) {
  const gpuir_cuda *c = x->cuda;
  const gc_plan *d = &x->plan;
  gc_launch_view *b = &x->view;
  gc_state *states;
  size_t at = 0, i;
  gc_group_ands(x, p, &b->ands);
  if (p->nsum) gc_stage_sums(x, p, &at);
  if (p->nphrase_jobs) gc_stage_phrases(x, p, &at);
  b->terms = (const gc_term *)gc_stage(x, &at, d->terms, p->nterms * sizeof *d->terms);
  b->jobs = (const gc_job *)gc_stage(x, &at, d->jobs, p->njobs * sizeof *d->jobs);
  b->query_jobs = (const uint2 *)gc_stage(x, &at, d->query_jobs, p->nq * sizeof *d->query_jobs);
  x->alone_bytes = at;
  b->ands.turns = (const gc_turn *)gc_stage(x, &at, d->turns, b->ands.n * sizeof *d->turns);
  b->ands.start = (const uint32_t *)gc_stage(x, &at, d->and_start, ((size_t)b->ands.n + 1) * 4);
  b->ors.bound_tasks =
      (const gc_bound_task *)gc_stage(x, &at, d->bound_tasks, p->nbound_tasks * sizeof *d->bound_tasks);
  b->ors.jobs = (const uint32_t *)gc_stage(x, &at, d->or_jobs, p->nor * 4);
  b->ors.n = (uint32_t)p->nor;
  b->ors.nbound_tasks = (uint32_t)p->nbound_tasks;
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
 * [cuda-19-launch]  host: launches, some at a time in a searcher, and their hits
 *
 * A searcher has up to three launch slots. A batch is cut into launches, as many as its size asks for. Each is planned,
 * sent by one transfer and answered by kernels, and the caller waits for none of this: while some are in flight it
 * plans the next, of the same batch or of the next one. gc_max is most of an OR's launch and takes the whole device;
 * the kernels around it have a higher priority than another launch's gc_max. So of three launches one is ready when
 * gc_max ends. Batches are served in the order in which they began. Only gc_finish waits.
 *
 * Uses      [cuda-07-or] to [cuda-14-memory], [cuda-16-cache] to [cuda-18-plan].
 * Start at  gc_begin, gc_poll, gc_finish; gc_start_launches, gc_finish_launch; gc_attach.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_ARGS_QUERIES 2u /* queries at most whose plan is a kernel's parameter: see gc_plan_args */
#define GC_BATCH 1024u /* queries of a launch at most, unless the program says otherwise */
#define GC_SLOTS 3u /* launches of a searcher in flight at most */
#define GC_SLOTS_FEW 2u /* of a team's member, which then takes queries later, and of a cached index */

/* What an attached searcher owns. */
typedef struct gc_context {
  gpuir_cuda *cuda;
  gpuir_allocator a;
  gc_slot slots[GC_SLOTS];
  unsigned nslots; /* those behind the first are made when they are needed */
  unsigned most_slots; /* no more are made */
  unsigned threads; /* that may plan */
  gc_planner_pool *pool; /* made when it is first needed */
  gc_batch batches[2];
  uint64_t nbatches, nlaunches; /* begun */
} gc_context;

/* ---- kernels of a launch ---- */

/* Enqueues a kernel. In a small launch much of the time passes between kernels: each one there starts while the one
 * before ends, and waits in gc_chained. In a large launch, or beside another launch of ORs, it would hold a place that
 * other kernels need; there it has a priority instead. */
template <typename... Parameters>
static void gc_enqueue_at(const gc_slot *x, int priority, void (*kernel)(Parameters...), size_t grid, unsigned threads,
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

/* Does the same, ahead of other launches' gc_max. */
template <typename... Parameters>
static void gc_enqueue(const gc_slot *x, void (*kernel)(Parameters...), size_t grid, unsigned threads, size_t shared,
    Parameters... parameters) {
  gc_enqueue_at(x, x->cuda->ahead, kernel, grid, threads, shared, parameters...);
}

/* Returns whether gc_and_guided also writes the hits of all queries of a launch. */
static int gc_writes_hits(const gc_slot *x, const gc_plan_counts *p, uint32_t k) {
  return p->nand && p->nq == p->njobs && p->nq > GC_SMALL && k <= GC_K_WRITTEN && x->cuda->guides;
}

/* Enqueues the kernel of the ANDs; queries: of how many it writes the hits, or 0. */
static void gc_enqueue_ands(const gc_slot *x, size_t queries) {
  const gpuir_cuda *c = x->cuda;
  const gc_launch_view *b = &x->view;
  const uint64_t blocks = gpuir__max64(((uint64_t)b->ands.tickets + 7) / 8, queries);
  if (c->guides)
    gc_enqueue(x, gc_and_guided, gpuir__min64(blocks, c->grids.guided), GC_GUIDED_THREADS, 0, c->view, *b,
        (uint32_t)queries);
  else gc_enqueue(x, gc_and_decoding, gpuir__min64(blocks, c->grids.ands), GC_AND_THREADS, 0, c->view, *b);
}

/* Enqueues the kernels of MaxScore. In a rerun the floors are known already. */
static void gc_enqueue_maxs(const gc_slot *x, const gc_plan_counts *p, int rerun) {
  const gpuir_cuda *c = x->cuda;
  const gc_launch_view *b = &x->view;
  const uint64_t most = c->grids.maxs, warps = GC_GUIDED_THREADS / 32;
  gc_enqueue(x, gc_max_plan, p->nmax, GC_FINAL_THREADS, 0, c->view, *b, rerun);
  gc_enqueue_at(x, 0, gc_max, gpuir__min64((p->max_blocks * b->maxs.parts + warps - 1) / warps, most),
      GC_GUIDED_THREADS, 0, c->view, *b);
}

/* Enqueues the kernels of the tiles. In a rerun their bounds and order are known already. */
static void gc_enqueue_ors(const gc_slot *x, const gc_plan_counts *p, int rerun) {
  const gpuir_cuda *c = x->cuda;
  const gc_view *v = &c->view;
  const gc_launch_view *b = &x->view;
  if (!rerun) {
    gc_enqueue(x, gc_tiles, gpuir__min64(p->nbound_tasks, (uint64_t)c->processors * 8), 256, 0, *v, *b, c->expanded);
    gc_enqueue(x, gc_order, p->nor, 256, 0, *v, *b);
  }
  gc_enqueue(x, c->expanded ? gc_or<true> : gc_or<false>, gpuir__min64((uint64_t)p->nor * v->ntiles, c->grids.ors),
      GC_OR_THREADS(c->expanded), gc_tile_bytes(v->tile), *v, *b);
}

/* Returns the word of a launch slot's done flag, behind its pinned memory for hits. */
static uint32_t *gc_done_word(const gc_slot *x) { return x->out + x->out_size / 4; }

/* Returns the done flag for the next kernel to set. */
static gc_done_flag gc_next_done_flag(gc_slot *x) {
  const gc_done_flag flag = {x->view.out + x->out_size / 4, ++x->flag_number};
  x->sets_flag = 1;
  return flag;
}

/* Enqueues gc_receive, with a staged plan of `size` bytes. */
static void gc_enqueue_receive(gc_slot *x, size_t size, uint64_t nbounds) {
  gc_plan_args plan_args;
  const uint64_t threads = gpuir__max64(nbounds / 4, size / 16 + 1);
  memcpy(&plan_args, x->staging, size);
  gc_enqueue(x, gc_receive, gpuir__min64((threads + 255) / 256, x->cuda->processors), 256, 0, plan_args,
      (uint4 *)x->input, (uint32_t)((size + 15) / 16), x->view.ors.bound, nbounds);
}

/* Returns whether gc_alone can answer a launch whose plan has been staged. */
static int gc_is_alone(const gc_slot *x, const gc_plan_counts *p, uint32_t k) {
  return p->njobs == 1 && p->nq == 1 && p->nand + p->nmax == 1 && !p->nphrase_jobs && k <= GC_RANKED &&
      x->cuda->guides && !x->cuda->cache && x->alone_bytes <= GC_PLAN_ARGS_BYTES;
}

#define GC_SAMPLED_DRIVER 512u /* blocks from which on an AND's driver is sampled */

/* Chooses how gc_alone samples an AND. If x of about m matches are sampled, their floor leaves k * m / x candidates:
 * the fewest are kept in all if x is near the root of k * m. Terms may occur together more often than by chance: so m
 * is at least an eighth of the driver's documents. */
static void gc_sample_and(const gc_slot *x, unsigned grid, gc_alone_args *args) {
  const gc_job *job = x->plan.jobs;
  const gc_term *terms = x->plan.terms + job->first_term;
  const double blocks = terms[0].nblocks;
  double matches = terms[0].df;
  uint32_t i;
  args->samplers = job->seed != 0;
  if (job->count || job->npositive == 1 || terms[0].nblocks < GC_SAMPLED_DRIVER) return;
  for (i = 1; i < job->npositive; i++) matches *= (double)terms[i].df / x->cuda->view.documents;
  if (matches < terms[0].df / 8.0) matches = terms[0].df / 8.0;
  args->samplers = (uint32_t)gpuir__min64(grid, (uint64_t)(blocks * sqrt(job->k / matches)) + 1);
  args->samplers = gpuir__min32(args->samplers, terms[0].nblocks / 2);
  args->step = terms[0].nblocks / args->samplers;
}

/* Chooses how gc_alone samples an OR: at most half as many blocks of each further list. */
static void gc_sample_or(const gc_slot *x, unsigned grid, gc_alone_args *args) {
  const gc_job *job = x->plan.jobs;
  const gc_term *terms = x->plan.terms + job->first_term;
  uint32_t share = (uint32_t)gpuir__min64(GC_SAMPLERS, gpuir__min64((uint64_t)x->cuda->processors, grid)) / 2, i;
  for (i = 0; i < GC_LAYERS && i < job->npositive && (job->npositive > 1 || !job->seed); i++, share /= 2)
    args->samplers += args->take[i] = gpuir__min32(terms[i].nblocks, share);
  if (!args->samplers) args->samplers = 1;
}

/* Describes a query alone to a kernel of so many blocks of threads. */
static gc_alone_args gc_alone_args_of(gc_slot *x, const gc_plan_counts *p, unsigned grid) {
  gc_launch_view *b = &x->view;
  gc_alone_args args;
  memset(&args, 0, sizeof args);
  args.state = x->alone_state;
  args.from = x->input;
  args.size = (uint32_t)((x->alone_bytes + 15) / 16);
  args.flag = gc_next_done_flag(x);
  if (p->nand) gc_sample_and(x, grid, &args);
  else gc_sample_or(x, grid, &args);
  b->control = &x->alone_state->control;
  b->states = &x->alone_state->state;
  b->alone = 1;
  return args;
}

/* Enqueues gc_alone. */
static int gc_enqueue_alone(gc_slot *x, const gc_plan_counts *p, gpuir_error *err) {
  const unsigned most = x->cuda->grids.alone;
  const gc_alone_args args = gc_alone_args_of(x, p, most);
  const uint64_t blocks = gpuir__max64(p->nand ? p->nand_blocks : p->max_blocks, args.samplers);
  gc_plan_args plan_args;
  static_assert(sizeof(gc_view) + sizeof(gc_launch_view) + sizeof plan_args + sizeof args <= 4096, "parameters");
  x->chained = 0;
  memcpy(&plan_args, x->staging, x->alone_bytes);
  gc_enqueue(x, gc_alone, gpuir__min64(blocks, most), GC_GUIDED_THREADS, 0, x->cuda->view, x->view, plan_args, args);
  GC_TRY(cudaGetLastError(), "launching kernels");
  return GPUIR_OK;
}

#define GC_PROMPT_K 128u /* hits at most of a query that gc_prompt answers */

/* Returns whether gc_prompt can answer a launch. */
static int gc_is_prompt(const gc_slot *x, const gc_plan_counts *p, uint32_t k) {
  const gc_job *job = x->plan.jobs;
  const gc_term *driver = x->plan.terms + job->first_term;
  const gpuir_cuda *c = x->cuda;
  if (p->njobs != 1 || p->nq != 1 || p->nand != 1 || p->nphrase_jobs || k > GC_PROMPT_K || !c->expanded || c->cache)
    return 0;
  if (job->count || !job->stored || job->nterms < 2 || job->nterms > GC_PROMPT_TERMS) return 0;
  if (c->info.compute_capability < 90) return 0;
  return job->expanded ? driver->nblocks <= GC_PROMPT_BLOCKS : driver->kind != GC_LONG;
}

/* Enqueues gc_prompt, with as many blocks of threads as have work for their warps. */
static void gc_enqueue_cluster(const gc_slot *x) {
  gc_prompt_args args;
  cudaLaunchConfig_t how;
  cudaLaunchAttribute cluster;
  const gc_job *job = x->plan.jobs;
  const gc_term *terms = x->plan.terms + job->first_term;
  const uint32_t groups = (terms->df + GC_PAIRS - 1) / GC_PAIRS;
  unsigned blocks = 1;
  while (job->expanded && blocks < GC_PROMPT_CLUSTER && blocks * GC_PROMPT_WARPS < groups * (job->nterms - 1))
    blocks *= 2;
  args.job = *job;
  args.lines = x->device_lines;
  args.number = x->flag_number;
  args.block_groups = (groups + blocks - 1) / blocks;
  memcpy(args.terms, terms, job->nterms * sizeof *terms);
  memset(&how, 0, sizeof how);
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = blocks;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  how.gridDim = dim3(blocks);
  how.blockDim = dim3(GC_PROMPT_THREADS);
  how.stream = x->stream;
  how.attrs = &cluster;
  how.numAttrs = blocks > 1;
  (void)cudaLaunchKernelEx(&how, job->expanded ? gc_prompt<false> : gc_prompt<true>, x->cuda->view, args);
}

#ifdef GPUIR_CUDA_SEAM
long gpuir_cuda_seam_prompts; /* launches of gc_prompt */
#define GC_COUNT_PROMPT() ((void)++gpuir_cuda_seam_prompts)
#else
#define GC_COUNT_PROMPT() ((void)0)
#endif

/* Enqueues gc_prompt and notes that its lines say when it has ended. */
static int gc_enqueue_prompt(gc_slot *x, gpuir_error *err) {
  x->sets_flag = 1;
  x->alone = x->chained = 0;
  x->flag_number++;
  GC_COUNT_PROMPT();
  gc_enqueue_cluster(x);
  GC_TRY(cudaGetLastError(), "launching kernels");
  return GPUIR_OK;
}

/* Returns whether both halves of a line have come. */
static int gc_line_there(const gc_line *line, uint32_t number) {
  return __atomic_load_n(&line->number, __ATOMIC_ACQUIRE) == number &&
      __atomic_load_n(&line->also, __ATOMIC_ACQUIRE) == number;
}

/* Returns whether all lines of gc_prompt have come. */
static int gc_lines_there(const gc_slot *x) {
  uint32_t n, i;
  if (!gc_line_there(x->lines, x->flag_number)) return 0;
  n = x->lines->doc == GC_NONE ? 0 : x->lines->doc;
  for (i = 1; i <= n; i++)
    if (!gc_line_there(x->lines + i, x->flag_number)) return 0;
  return 1;
}

/* Copies the hits to where other launches' kernels write them. */
static void gc_take_lines(gc_slot *x) {
  uint32_t i;
  x->out[0] = x->lines->doc;
  for (i = 0; x->out[0] != GC_NONE && i < x->out[0]; i++) {
    x->out[2 + 2 * i] = x->lines[1 + i].doc;
    x->out[3 + 2 * i] = x->lines[1 + i].score;
  }
}

/* Enqueues the kernels of the ORs whose postings are all added up. */
static void gc_enqueue_sums(const gc_slot *x, const gc_plan_counts *p, int rerun) {
  const gpuir_cuda *c = x->cuda;
  if (!rerun && p->nsparse) gc_enqueue(x, gc_places, p->nsparse * GC_SUM_PARTS, 256, 0, c->view, x->view);
  gc_enqueue(x, gc_sum_tiles, gpuir__min64((uint64_t)p->nsum * c->slices.ntiles, c->grids.sums), GC_SUM_THREADS,
      (size_t)c->slices.tile * 4, c->view, x->view);
}

/* Enqueues the kernel of the queries with phrases. */
static void gc_enqueue_phrases(const gc_slot *x, const gc_plan_counts *p) {
  const uint32_t bytes = (uint32_t)gc_phrase_bytes(p->lists, p->tokens), warps = GC_PHRASE_THREADS / 32;
  const uint64_t most = gpuir__max64(1, gpuir__min64(x->cuda->phrase_room / (warps * bytes + 1024), 16));
  gc_enqueue(x, gc_phrase_all, gpuir__min64((x->phrases.tickets + warps - 1) / warps, most * x->cuda->processors),
      GC_PHRASE_THREADS, warps * bytes, x->cuda->view, x->view, x->phrases, bytes);
}

/* Enqueues all kernels of a launch. */
static int gc_enqueue_all(gc_slot *x, const gc_plan_counts *p, uint32_t k, int rerun, gpuir_error *err) {
  const gc_done_flag none = {NULL, 0};
  const int writes_hits = gc_writes_hits(x, p, k);
  size_t size = GC_RANKED;
  x->sets_flag = 0;
  if (rerun) GC_TRY(cudaMemsetAsync(x->view.control, 0, sizeof(gc_control), x->stream), "clearing counters");
  if (p->nand && !writes_hits) gc_enqueue_ands(x, 0);
  if (p->nmax) gc_enqueue_maxs(x, p, rerun);
  if (p->nor) gc_enqueue_ors(x, p, rerun);
  if (p->nsum) gc_enqueue_sums(x, p, rerun);
  if (p->nphrase_jobs) gc_enqueue_phrases(x, p);
  while (size < k) size *= 2;
  if (writes_hits) gc_enqueue_ands(x, p->nq);
  else
    gc_enqueue(x, gc_final, p->nq, GC_FINAL_THREADS, size * 8, x->cuda->view, x->view,
        p->nq == 1 ? gc_next_done_flag(x) : none);
  GC_TRY(cudaGetLastError(), "launching kernels");
  return GPUIR_OK;
}

/* ---- launch slots ---- */

/* Waits for a launch slot's stream, and frees the slot's memory. */
GPUIR__COLD static void gc_slot_close(gc_slot *x) {
  const gpuir_allocator a = x->a;
  gc_stream_close(x->stream);
  if (x->cuda->cache) gc_transfer_close(x->cuda, &x->transfer);
  if (x->sent) (void)cudaEventDestroy(x->sent);
  __atomic_fetch_sub(&x->cuda->info.used_memory, x->device_bytes, __ATOMIC_RELAXED);
  (void)cudaFree(x->input);
  (void)cudaFree(x->alone_state);
  (void)cudaFree(x->view.ors.first);
  (void)cudaFree(x->view.ors.bound);
  (void)cudaFree(x->view.ors.order);
  (void)cudaFree(x->view.ors.total);
  (void)cudaFree(x->view.cand);
  (void)cudaFree(x->view.sums.first);
  (void)cudaFree(x->view.maxs.drives);
  (void)cudaFree(x->view.maxs.drive_start);
  (void)cudaFreeHost(x->staging);
  (void)cudaFreeHost(x->out);
  (void)cudaGetLastError();
  gpuir__free(&a, x->plan.memory, x->plan.size);
  memset(x, 0, sizeof *x);
}

/* Allocates device memory of a launch slot. */
static int gc_slot_alloc(gc_slot *x, size_t n, void **p, gpuir_error *err) {
  int status = gc_malloc(x->cuda, n, p, err);
  if (!status) x->device_bytes += n ? n : 1;
  return status;
}

#define GC_LINES (1 + GC_PROMPT_K)

/* Gives a launch slot its stream and memory, for launches of at most these sizes. If it fails, gc_slot_close frees what
 * there is. */
GPUIR__COLD static int gc_slot_open(gc_slot *x, const gc_sizes *most, gpuir_error *err) {
  gc_launch_view *b = &x->view;
  const gc_sizes *z = &x->most;
  size_t rows, jobs, lines;
  int s;
  x->most = *most;
  s = gc_plan_open(x, err);
  if (!s) s = gc_stream_open(&x->stream, x->cuda->ahead, err);
  if (!s && x->cuda->cache) s = gc_transfer_open(x->cuda, &x->transfer, err);
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
  rows = (size_t)(z->ntile_rows * z->tiles * 4);
  jobs = (size_t)(z->njobs * z->tiles * 4);
  *gc_done_word(x) = 0;
  s = gc_slot_alloc(x, (size_t)z->staging, (void **)&x->input, err);
  if (!s) s = gc_slot_alloc(x, sizeof *x->alone_state, (void **)&x->alone_state, err);
  if (!s) s = gc_slot_alloc(x, rows, (void **)&b->ors.first, err);
  if (!s) s = gc_slot_alloc(x, rows, (void **)&b->ors.bound, err);
  if (!s) s = gc_slot_alloc(x, jobs, (void **)&b->ors.order, err);
  if (!s && x->cuda->slices.ntiles)
    s = gc_slot_alloc(x, (size_t)z->ntile_rows * (x->cuda->slices.ntiles + 1) * 4, (void **)&b->sums.first, err);
  if (!s) s = gc_slot_alloc(x, jobs, (void **)&b->ors.total, err);
  if (!s) s = gc_slot_alloc(x, (size_t)z->ncand * 8, (void **)&b->cand, err);
  if (!s) s = gc_slot_alloc(x, z->ndrives * sizeof *b->maxs.drives, (void **)&b->maxs.drives, err);
  if (!s) s = gc_slot_alloc(x, z->ndrives * 4, (void **)&b->maxs.drive_start, err);
  if (s) return s;
  x->dirty = 1;
  return GPUIR_OK;
}

/* Makes a searcher's next launch slot, if the bound leaves as much again beside all of them. Returns 0 if it does not,
 * or if a call fails: then the slots that there are must do. */
static int gc_add_slot(gc_context *x) {
  const gc_slot *first = &x->slots[0];
  gc_slot *slot = &x->slots[x->nslots];
  gpuir_error error;
  if (first->most.device > gc_left(x->cuda) / (2 * x->nslots)) return 0;
  slot->cuda = x->cuda;
  slot->a = x->a;
  slot->engine = first->engine;
  if (gc_slot_open(slot, &first->most, &error)) {
    gc_slot_close(slot);
    return 0;
  }
  x->nslots++;
  return 1;
}

/* ---- ending a launch ---- */

#ifdef GPUIR_CUDA_SEAM
int gpuir_cuda_seam_looks; /* 1: finished launches are inspected */
uint64_t gpuir_cuda_seam_left; /* candidates that they have left in their buffers */

/* Counts the candidates that a launch has left in its buffer, if a test asks for it. */
static void gc_look_for_left(const gc_slot *x) {
  const size_t n = x->most.ncand;
  unsigned long long *cand = gpuir_cuda_seam_looks ? (unsigned long long *)gpuir__alloc(&x->a, n * 8) : NULL;
  size_t i;
  if (!cand) return;
  (void)cudaMemcpyAsync(cand, x->view.cand, n * 8, cudaMemcpyDeviceToHost, x->stream);
  (void)cudaStreamSynchronize(x->stream);
  for (i = 0; i < n; i++) gpuir_cuda_seam_left += cand[i] != 0;
  gpuir__free(&x->a, cand, n * 8);
}
#else
#define gc_look_for_left(x) ((void)0)
#endif

/* Ends a launch. If `status` is not 0, the queries that wait for it fail with it. */
static void gc_end_launch(gc_slot *x, int status, const gpuir_error *err) {
  gc_launch *f = &x->launch;
  gc_batch *r = f->batch;
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
  f->batch = NULL;
}

/* ---- starting launches ---- */

#define GC_FIRST_QUERIES (GC_FIRST_PACKETS * GC_PACKET) /* of a batch's first launch, which the device waits for */

/* Returns how many of such queries fill the device, by the modes of some of them: fewer ANDs than others do. */
static size_t gc_launch_most(const gpuir_query *const *queries, size_t n) {
  const size_t some = (size_t)gpuir__min64(n, 16);
  size_t ands = 0, i;
  for (i = 0; i < some; i++) ands += queries[i]->mode == GPUIR_AND;
  return 2 * ands > some ? GC_BATCH / 2 : GC_BATCH;
}

/* Returns the launch slot whose launch began first; NULL: nothing is in flight. */
static gc_slot *gc_oldest_slot(gc_context *x) {
  gc_slot *first = NULL;
  unsigned i;
  for (i = 0; i < x->nslots; i++) {
    gc_slot *t = &x->slots[i];
    if (t->launch.batch && (!first || t->launch.number < first->launch.number)) first = t;
  }
  return first;
}

/* Returns whether several threads may plan. Batches of a cached index are planned by one, as queries take places in the
 * cache in turn. */
static int gc_may_use_pool(const gc_context *x) {
  return x->threads > 1 && !x->cuda->cache && x->cuda->threshold == UINT64_MAX;
}

/* Chooses how many queries a launch of a batch takes, such that all its launches take about as many. A large batch is
 * halved, unless the next batch is there to be planned: so its second half is planned while the first one runs. Fewer
 * ANDs than ORs fill the device. The sizes come from measurements in
 * tools/results/cuda_notes.txt. */
static size_t gc_launch_size(gc_context *x, const gpuir_batch_desc *d) {
  const gpuir_cuda *c = x->cuda;
  const int idle = !gc_oldest_slot(x);
  const size_t most = gc_launch_most(d->queries, d->nq);
  const size_t n =
      d->nq - (idle && d->nq > most && gc_may_use_pool(x) ? GC_FIRST_QUERIES : 0); /* behind the first launch */
  size_t launches = (n + most - 1) / most;
  if (!c->by_itself) return c->batch;
  if (launches == 1 && idle && n > c->batch / 2) launches = 2;
  return (n + launches - 1) / launches;
}

/* Adds the time since `start` to a counter; returns the time now. start 0: the batch is small and is not timed. */
static uint64_t gc_spent(uint64_t *counter, uint64_t start) {
  uint64_t now;
  if (!start) return 0;
  now = gpuir__now();
  __atomic_fetch_add(counter, now - start, __ATOMIC_RELAXED);
  return now;
}

/* Returns the time, or 0 for a small batch, which is not timed: reading the clock would count there. */
static uint64_t gc_timed(const gc_batch *r) { return r->desc.nq > GC_SMALL ? gpuir__now() : 0; }

/* Plans the next launch of a batch; idle: 1 if the device waits for it. *full: the next query found no room for its
 * lists. */
static void gc_plan_launch(gc_slot *x, gc_batch *r, int idle, int *full) {
  const size_t room = (size_t)gpuir__min64(r->launch_size, x->out_size / ((2 + 2 * (size_t)r->k) * 4));
  const size_t left = r->desc.nq - r->next, grain = r->pool ? r->packet : 1;
  const size_t even = (left - 1) / ((left - 1) / room + 1) + 1; /* all launches of the rest have about as many */
  const size_t most = (size_t)gpuir__min64(room, (even - 1) / grain * grain + grain);
  gc_launch *f = &x->launch;
  memset(f, 0, sizeof *f);
  f->first = r->next;
  f->count = r->desc.count;
  f->idle = idle;
  if (r->pool) {
    gc_plan_by_pool(x, r, most, idle);
  } else {
    x->plan.next = r->next;
    x->plan.end = r->next + (size_t)gpuir__min64(left, most);
    gc_plan_some(x, r, full);
    gc_report_outcomes(x, r);
  }
  f->counts = x->counts;
  f->end = r->next;
}

/* Sends the plan of a launch slot and enqueues its kernels. If it may be `alone`, one kernel answers it where that is
 * possible. */
static int gc_send_launch(gc_slot *x, const gc_batch *r, int alone, gpuir_error *err) {
  const gc_plan_counts *p = &x->launch.counts;
  gc_cache *cache = x->cuda->cache;
  size_t size;
  x->prompt = alone && gc_is_prompt(x, p, r->k);
  if (x->prompt && !x->dirty) return gc_enqueue_prompt(x, err);
  x->prompt = 0;
  size = gc_stage_plan(x, p, r->k);
  x->chained = x->cuda->info.compute_capability >= 90 && p->nq <= GC_SMALL && (x->launch.idle || !p->nmax);
  x->alone = alone && gc_is_alone(x, p, r->k);
  if (cache) { /* the launch waits for its lists */
    GC_TRY(cudaEventRecord(x->sent, cache->stream), "waiting for lists");
    GC_TRY(cudaStreamWaitEvent(x->stream, x->sent, 0), "waiting for lists");
  }
  if (x->dirty) {
    GC_TRY(cudaMemsetAsync(x->view.cand, 0, x->most.ncand * 8, x->stream), "clearing candidates");
    GC_TRY(cudaMemsetAsync(x->alone_state, 0, sizeof *x->alone_state, x->stream), "clearing states");
  }
  x->dirty = 1;
  if (x->alone) return gc_enqueue_alone(x, p, err);
  if (p->nq <= GC_ARGS_QUERIES && size <= sizeof(gc_plan_args)) {
    gc_enqueue_receive(x, size, p->nor ? p->ntile_rows * (x->cuda->view.ntiles + 1) : 0);
    return gc_enqueue_all(x, p, r->k, 0, err);
  }
  if (p->nor)
    GC_TRY(cudaMemsetAsync(x->view.ors.bound, 0, p->ntile_rows * (x->cuda->view.ntiles + 1) * 4, x->stream),
        "clearing bounds");
  GC_TRY(cudaMemcpyAsync(x->input, x->staging, size, cudaMemcpyHostToDevice, x->stream), "sending queries");
  return gc_enqueue_all(x, p, r->k, 0, err);
}

/* Plans and starts a launch in a free slot. Returns 0 if the next query found no room for its lists beside those that
 * are held. */
static int gc_start_launch(gc_context *x, gc_slot *slot, gc_batch *r) {
  uint64_t start = gc_timed(r);
  gpuir_error error;
  int full = 0, status;
  gc_plan_launch(slot, r, !gc_oldest_slot(x), &full);
  start = gc_spent(&x->cuda->info.plan_ns, start);
  if (!slot->launch.counts.nq) {
    gc_cache_release(x->cuda, &slot->held);
    return !full;
  }
  if (!gc_cache_await(x->cuda->cache, &slot->held)) { /* once more: now this searcher loads the list */
    gc_cache_release(x->cuda, &slot->held);
    r->next = slot->launch.first;
    return 1;
  }
  slot->launch.batch = r;
  slot->launch.number = ++x->nlaunches;
  status = gc_send_launch(slot, r, 1, &error);
  if (r->pool && r->next == r->desc.nq) gc_wake_planners(r->pool);
  (void)gc_spent(&x->cuda->info.send_ns, start);
  if (status) gc_end_launch(slot, status, &error);
  return 1;
}

/* Returns the batch that is to be planned next; NULL: none has queries left. */
static gc_batch *gc_next_batch(gc_context *x) {
  gc_batch *a = &x->batches[0], *b = &x->batches[1];
  if (!a->number || a->next == a->desc.nq) a = NULL;
  if (!b->number || b->next == b->desc.nq) b = NULL;
  return a && b ? (a->number < b->number ? a : b) : a ? a : b;
}

/* Returns a free launch slot, or NULL. */
static gc_slot *gc_free_slot(gc_context *x) {
  unsigned i;
  for (i = 0; i < x->nslots; i++)
    if (!x->slots[i].launch.batch) return &x->slots[i];
  if (x->nslots == x->most_slots) return NULL;
  if (gc_add_slot(x)) return &x->slots[i];
  x->most_slots = x->nslots;
  return NULL;
}

/* Returns how many lists this searcher holds. */
static uint64_t gc_own_holds(const gc_context *x) {
  uint64_t n = 0;
  unsigned i;
  for (i = 0; i < x->nslots; i++) n += x->slots[i].held.n;
  return n;
}

/* Starts launches in free slots, as long as queries wait. Returns NULL; or the batch whose next query finds no room
 * while other searchers hold lists; *held: what to wait for. */
static gc_batch *gc_start_launches(gc_context *x, const gc_holds **held) {
  gc_batch *r;
  gc_slot *slot;
  while ((r = gc_next_batch(x)) && (slot = gc_free_slot(x))) {
    gpuir_error error;
    if (gc_start_launch(x, slot, r)) continue;
    *held = &slot->held;
    if (gc_own_holds(x)) return NULL; /* its own launch will make room */
    if (slot->held.pins) return r;
    (void)gpuir__fail(&error, GPUIR_E_NOMEM, 0, "CUDA: the lists of a query need more memory than is allowed");
    gc_fail_query(r, r->next++, GPUIR_E_NOMEM, &error);
  }
  return NULL;
}

/* ---- finishing launches ---- */

/* Hands out the hits of a launch. Queries that asked for another run, but get none, fail with `status`. */
static void gc_deliver(gc_slot *x, int status, const gpuir_error *err) {
  const gc_launch *f = &x->launch;
  gc_batch *r = f->batch;
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
    out += x->view.out_stride;
  }
}

/* Returns why all queries of a launch that ask for another run have to stop; 0: some may go on. */
static int gc_all_stopped(const gc_slot *x, gpuir_error *err) {
  const gc_batch *r = x->launch.batch;
  const uint64_t now = gc_now(r);
  const uint32_t *out = x->out;
  int status = GPUIR_OK;
  size_t i;
  for (i = x->launch.first; i < x->launch.end; i++) {
    if (r->desc.counts[i] != GC_NONE) continue;
    if (out[0] == GC_NONE) {
      status = gc_stopped(r, i, now, err);
      if (!status) return GPUIR_OK;
    }
    out += x->view.out_stride;
  }
  return status;
}

/* Runs a launch again if queries have asked for it. Returns 0 if none has, or if there must be no other run: *status
 * and *err say why. */
static int gc_rerun(gc_slot *x, int *status, gpuir_error *err) {
  gc_launch *f = &x->launch;
  size_t i;
  *status = GPUIR_OK;
  for (i = 0; i < f->counts.nq && x->out[i * x->view.out_stride] != GC_NONE; i++) {}
  if (i == f->counts.nq) return 0;
  *status = gc_all_stopped(x, err);
  if (!*status && ++f->reruns == 64)
    *status = gpuir__fail(err, GPUIR_E_BACKEND, 0, "CUDA: too many candidates share one score");
  (void)cudaSetDevice(x->cuda->device);
  if (!*status && (x->alone || x->prompt))
    *status = gc_send_launch(x, f->batch, 0, err); /* with all its kernels, from the beginning */
  else if (!*status) *status = gc_enqueue_all(x, &f->counts, f->batch->k, 1, err);
  return !*status;
}

/* Returns whether a launch has ended, as CUDA does; wait: waits for it. With a done flag it asks the stream only now
 * and then: a kernel that fails sets no flag. */
static cudaError_t gc_has_ended(const gc_slot *x, int wait) {
  cudaError_t e;
  if (!x->sets_flag) return GC_CALL(wait ? cudaStreamSynchronize(x->stream) : cudaStreamQuery(x->stream));
  do {
    uint32_t left;
    for (left = wait ? 10000 : 1; left; left--)
      if (x->prompt ? gc_lines_there(x) : __atomic_load_n(gc_done_word(x), __ATOMIC_ACQUIRE) == x->flag_number)
        return cudaSuccess;
    e = GC_CALL(cudaStreamQuery(x->stream));
  } while (wait && e == cudaErrorNotReady);
  return e;
}

/* Tests whether a launch has ended, or waits for it; then hands out its hits. */
static void gc_finish_launch(gc_slot *x, int wait) {
  uint64_t start = gc_timed(x->launch.batch);
  gpuir_error error;
  int status;
  do {
    const cudaError_t e = gc_has_ended(x, wait);
    if (e == cudaErrorNotReady) return;
    if (e != cudaSuccess) {
      status = gc_fail(&error, e, "running kernels");
      gc_end_launch(x, status, &error);
      return;
    }
    if (x->prompt) gc_take_lines(x);
    if (!gc_rerun(x, &status, &error)) break;
  } while (1);
  start = gc_spent(&x->cuda->info.wait_ns, start);
  gc_deliver(x, status, &error);
  gc_end_launch(x, status, &error);
  (void)gc_spent(&x->cuda->info.deliver_ns, start);
}

#define GC_PACKET_LEAST 16u /* queries of a packet at least */

/* Lets several threads plan a batch, if it has enough to plan at once. */
static void gc_use_pool(gc_context *x, gc_batch *r) {
  const gc_slot *first = &x->slots[0];
  gc_sizes most;
  most = gc_sizes_of(x->cuda, GC_PACKET);
  most.queries = (size_t)gpuir__min64(GC_PACKET, gc_most_jobs(&most, r) / 2);
  if (most.queries < GC_PACKET_LEAST || r->launch_size < 4 * most.queries || first->most.queries < 4 * most.queries)
    return;
  r->npackets = (r->launch_size + most.queries - 1) / most.queries;
  r->packet = (r->launch_size + r->npackets - 1) / r->npackets;
  r->npackets = (r->launch_size + r->packet - 1) / r->packet;
  if (!x->pool) x->pool = gc_planner_pool_open(first, x->threads);
  if (x->pool) gc_announce(x->pool, r);
  else x->threads = 1;
}

/* ---- the backend, see gpuir_backend ---- */

#define GC_HOLD_TIMEOUT_NS 1000000000u /* ns that other searchers may hold lists without releasing one */

/* Begins a batch: plans and starts as many launches as there are free slots. */
static int gc_begin(void *context, const gpuir_batch_desc *batch, uint64_t deadline, const int *cancel, void **running,
    gpuir_error *err) {
  gc_context *x = (gc_context *)context;
  const gc_holds *held;
  gc_batch *r = x->batches[0].number ? &x->batches[1] : &x->batches[0];
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
  r->number = ++x->nbatches;
  r->next = k ? 0 : batch->nq;
  r->left = batch->nq - r->next;
  r->failed = SIZE_MAX;
  r->launch_size = gc_launch_size(x, batch);
  if (r->left && gc_may_use_pool(x)) gc_use_pool(x, r);
  *running = r;
  (void)gc_start_launches(x, &held);
  return GPUIR_OK;
}

/* Hands out what has ended, and starts further launches. Returns whether the batch is done. */
static int gc_poll(void *context, void *running) {
  gc_context *x = (gc_context *)context;
  const gc_batch *r = (const gc_batch *)running;
  const gc_holds *held;
  unsigned i;
  for (i = 0; i < x->nslots; i++)
    if (x->slots[i].launch.batch) gc_finish_launch(&x->slots[i], 0);
  if (gc_next_batch(x)) (void)cudaSetDevice(x->cuda->device);
  (void)gc_start_launches(x, &held);
  return !r->left;
}

/* Waits for other searchers to release lists. If they do not, the query that needs them fails. */
static void gc_yield(gc_context *x, gc_batch *r, const gc_holds *held) {
  const uint64_t slice = 1000000;
  gpuir_error error;
  uint64_t waited;
  int status = GPUIR_OK;
  for (waited = 0; !status && waited < GC_HOLD_TIMEOUT_NS; waited += slice) {
    if (gc_cache_wait(x->cuda->cache, held->releases, slice)) return;
    status = gc_stopped(r, r->next, gc_now(r), &error);
  }
  if (!status) status = gpuir__fail(&error, GPUIR_E_NOMEM, 0, "CUDA: lists that other searchers hold leave no room");
  gc_fail_query(r, r->next++, status, &error);
}

/* Waits for a batch; meanwhile it starts and finishes launches of the other one too, in their order. */
static int gc_finish(void *context, void *running, gpuir_error *err) {
  gc_context *x = (gc_context *)context;
  gc_batch *r = (gc_batch *)running;
  int status;
  while (r->left) {
    const gc_holds *held;
    gc_batch *stuck;
    gc_slot *slot;
    if (gc_next_batch(x)) (void)cudaSetDevice(x->cuda->device); /* kernels are enqueued on the current device */
    stuck = gc_start_launches(x, &held);
    slot = gc_oldest_slot(x);
    if (slot) gc_finish_launch(slot, 1);
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
  if (x->pool) gc_planner_pool_close(x->pool);
  while (x->nslots) gc_slot_close(&x->slots[--x->nslots]);
  gpuir__free(&a, x, sizeof *x);
}

/* Gives a searcher its first launch slot. */
static int gc_attach(gc_context *x, gpuir__engine *engine, gpuir_error *err) {
  const gc_sizes most = gc_sizes_within(x->cuda, gc_left(x->cuda));
  gc_slot *slot = &x->slots[0];
  slot->cuda = x->cuda;
  slot->a = x->a;
  slot->engine = engine;
  x->nslots = 1;
  return gc_slot_open(slot, &most, err);
}

/* ---- one device ---- */

/* Refuses a structure of the program's copy of gpuir.h that this copy would misread. */
static int gc_refuse(gpuir_error *err, const char *function) {
  return gpuir__fail(err, GPUIR_E_VERSION, 0,
      "%s: gpuir_cuda.cu and the program were compiled from different versions of gpuir.h", function);
}

/* Gives a searcher a backend with a context, unless `status` says that the context was not made. If it fails, the
 * context is closed. */
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

/* Frees an index on a device. NULL is accepted. */
static void gc_close_device(gpuir_cuda *c) {
  gpuir_allocator a;
  if (!c) return;
  a = c->a;
  (void)cudaSetDevice(c->device);
  gc_release_index(c);
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

/* Copies what is known of an index on a device. Other threads may be counting. */
static void gc_get_info(const gpuir_cuda *c, gpuir_cuda_info *info) {
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

/* Lets a device answer a searcher's queries. */
GPUIR__COLD static int gc_attach_device(gpuir_searcher *s, gpuir_cuda *cuda, unsigned slots, int fallback,
    gpuir_error *err) {
  static const gpuir_backend backend = {GPUIR_BACKEND_VERSION, "cuda", NULL, gc_begin, gc_poll, gc_finish, gc_detach};
  gc_context *x;
  GC_TRY(cudaSetDevice(cuda->device), "choosing the device");
  x = (gc_context *)gpuir__alloc_zero(&s->engine.a, sizeof *x);
  if (!x) return gpuir__fail_nomem(err);
  x->a = s->engine.a;
  x->cuda = cuda;
  x->threads = s->nworkers + 1;
  x->most_slots = cuda->cache ? GC_SLOTS_FEW : slots;
  return gc_set_backend(s, &backend, x, gc_attach(x, &s->engine, err), fallback, err);
}

/* ========================
 * [cuda-20-partition]  host: several devices of one host: the index is cut into parts and opened
 *
 * A team answers one searcher's batches by several devices, its members. Each member may hold the whole index: then one
 * member answers each query, see [cuda-21-members]. Or each holds a part, the documents of a range as an index of its
 * own: then all members answer each query, see [cuda-22-merge]. A part weighs its terms by the whole's N, df and
 * average length, as a shard does. It also has the whole's seeds, thresholds that all parts share. So its scores are
 * the whole's, bit for bit, and a hit that it leaves out has k better ones in the whole.
 *
 * Uses      [cuda-14-memory], [cuda-19-launch].
 * Start at  gt_open (gt_make_part: the index of a range).
 * Tests     tests/gpu/test_team.c, which needs no device
 * ======================*/

#define GT_MEMBERS ((unsigned)GPUIR_MAX_DEVICES)

/* A segment on a device: see [cuda-23-live]. */
typedef struct gl_resident {
  uint64_t refs; /* snapshots that have it, counted atomically */
  uint64_t hash, size; /* of its file; the hash is the header's checksum */
  gpuir_index *alone; /* the segment as an index without deletions */
  gpuir_cuda *cuda;
} gl_resident;

/* A device of an open team. */
typedef struct gt_device {
  gpuir_cuda *cuda;
  gpuir_index *part; /* NULL: it has the whole index */
  uint32_t first, end; /* the documents of its part */
  uint32_t *ids; /* [number in the whole] the term's number in the part, or GPUIR__NO_TERM */
  uint32_t *dfs; /* [number in the part] the whole's df */
  gpuir__record *records; /* likewise: the record out of the part's dictionary, which each query needs */
  uint32_t *seeds;
  uint64_t nids, ndfs, nrecords, nseeds; /* room of these; nseeds: in GPUIR__SEEDS */
  size_t leaf; /* of a snapshot: the segment's number, and what it has on the device */
  gl_resident *resident;
  int weighed; /* 1: contributions and bounds are under the snapshot's N, df and lengths, in these three */
  gc_term *lists;
  gc_list_guide *guides;
  gc_known *known;
  gpuir__shard shard;
} gt_device;

struct gt_team {
  gpuir_allocator a;
  const gpuir_index *ix;
  unsigned n, parts; /* parts: n, or 0 if each member has the whole index */
  int live; /* 1: the parts are segments of a snapshot, see [cuda-23-live] */
  uint32_t lost; /* members that failed, of any searcher */
  gt_device devices[GT_MEMBERS];
};

/* ---- parts: the documents of a range as an index of their own ---- */

/* Cuts the documents into `parts` ranges, each with at least one document and about as many tokens as the others. Range
 * i begins at starts[i]. */
static void gt_choose_ranges(const uint32_t *lengths, uint64_t n, uint64_t tokens, unsigned parts, uint32_t *starts) {
  uint64_t sum = 0, at = 0;
  unsigned i;
  for (i = 0; i < parts; i++) {
    const uint64_t share = tokens / parts * i + tokens % parts * i / parts;
    while (at < n - (parts - i) && (sum < share || (i && at == starts[i - 1]))) sum += lengths[at++];
    starts[i] = (uint32_t)at;
  }
}

/* Opens a list with the decoders of the program's engine. */
static int gt_open_list(const gpuir__calls *calls, const gpuir__segment *from, const gpuir_allocator *a,
    const gpuir__record *record, gpuir__list *l) {
  const int status = calls->list_of(from, record, l);
  return status || l->df == 1 ? status : gpuir__list_open_codecs(a, l);
}

/* Makes an index of a leaf, as gpuir__index_make does, with the settings of another index. */
static int gt_make_index(const gpuir_index *like, const char *path, const gpuir__leaf *leaf, gpuir_index **index,
    gpuir_error *err) {
  const int status = like->calls->index_make(&like->a, path, NULL, leaf, 1, like->analysis.pool, index, err);
  if (!status) (*index)->calls = like->calls;
  return status;
}

/* What makes a part: its source, its builder, and how far the workers are. */
typedef struct gt_partitioner {
  const gpuir__segment *from;
  const gpuir__calls *calls;
  gt_device *to;
  gpuir_builder *builder;
  gpuir_allocator a;
  pthread_mutex_t lock; /* of all that follows */
  pthread_cond_t turn; /* the next packet may be appended */
  gpuir__walk walk;
  uint64_t claimed, appended; /* packets of terms */
  uint32_t terms; /* of the part */
  int status;
  gpuir_error error;
} gt_partitioner;

#define GT_PACKET_POSTINGS (1u << 18) /* postings of the whole that a packet has at most, or one list */
#define GT_PACKET_TERMS 1024u /* terms of a packet at most */

/* A term of a packet. */
typedef struct gt_packet_term {
  uint64_t id; /* in the whole */
  gpuir__record record; /* in the whole */
  uint32_t at, len; /* its bytes in gt_part_worker.text */
} gt_packet_term;

/* One of the threads that make a part. */
typedef struct gt_part_worker {
  gt_partitioner *partitioner;
  gpuir__encoder *encoder;
  pthread_t thread;
  uint64_t packet; /* the number of its packet */
  gt_packet_term terms[GT_PACKET_TERMS];
  unsigned nterms;
  gpuir__buf text, postings; /* postings: the docIDs of a list, then its tfs */
  gpuir__batch batch; /* the packet's lists, as the part has them */
  uint32_t kept[GT_PACKET_TERMS]; /* which terms have one */
} gt_part_worker;

/* Claims the next packet of terms for a thread; 0: there is none. The lock is held. */
static int gt_claim_packet(gt_part_worker *k, gpuir_error *err) {
  gt_partitioner *x = k->partitioner;
  uint64_t postings = 0;
  k->nterms = 0;
  k->text.len = 0;
  while (!x->status && postings < GT_PACKET_POSTINGS && k->nterms < GT_PACKET_TERMS && gpuir__walk_next(&x->walk)) {
    gt_packet_term *t = &k->terms[k->nterms++];
    t->id = x->walk.id;
    t->record = x->walk.record;
    t->at = (uint32_t)k->text.len;
    t->len = (uint32_t)x->walk.len;
    postings += t->record.df;
    if (gpuir__buf_put(&x->a, &k->text, x->walk.term, x->walk.len)) x->status = gpuir__fail_nomem(err);
  }
  k->packet = x->claimed;
  x->claimed += k->nterms && !x->status;
  return k->nterms && !x->status;
}

/* Decodes the postings of a list that lie in the part's range; *n: how many there are. */
static int gt_select_postings(gt_part_worker *k, const gpuir__record *record, uint32_t *n, gpuir_error *err) {
  const gt_partitioner *x = k->partitioner;
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

/* Encodes what the packet's lists have in the part. */
static int gt_encode_packet(gt_part_worker *k, gpuir_error *err) {
  const gt_partitioner *x = k->partitioner;
  unsigned i;
  gpuir__batch_clear(NULL, &k->batch);
  for (i = 0; i < k->nterms; i++) {
    const gt_packet_term *t = &k->terms[i];
    const uint32_t *docids, room = gpuir__min32(t->record.df, x->to->end - x->to->first);
    uint32_t n = 0;
    int status = gt_select_postings(k, &t->record, &n, err);
    if (status) return status;
    if (!n) continue;
    docids = (const uint32_t *)(const void *)k->postings.data;
    k->kept[k->batch.nterms] = i;
    status = x->calls->encode_list(k->encoder, &k->batch, k->text.data + t->at, t->len, docids, docids + room, n, NULL);
    if (status) return gpuir__fail(err, status, 0, "%s: a list of a part: %s", x->from->path, gpuir_strerror(status));
  }
  return GPUIR_OK;
}

/* Appends a packet's lists to the part, and notes its terms. One thread at a time does so, in the order of the packets:
 * otherwise terms would get wrong numbers. */
static int gt_append_packet(const gt_part_worker *k, gpuir_error *err) {
  gt_partitioner *x = k->partitioner;
  gpuir_builder *b = x->builder;
  uint64_t i;
  for (i = 0; i < k->batch.nterms; i++) {
    const gt_packet_term *t = &k->terms[k->kept[i]];
    x->to->ids[t->id] = x->terms;
    x->to->dfs[x->terms++] = gpuir__segment_df(x->from, t->id, t->record.df);
  }
  b->merge.terms += k->batch.nterms;
  b->merge.postings += k->batch.postings;
  return x->calls->put_batch(b->writer, &k->batch, err);
}

/* Encodes packets, and appends each one when those before it have been appended. */
static void *gt_part_worker_main(void *argument) {
  gt_part_worker *k = (gt_part_worker *)argument;
  gt_partitioner *x = k->partitioner;
  gpuir_error error;
  (void)pthread_mutex_lock(&x->lock);
  while (gt_claim_packet(k, &x->error)) {
    int status;
    (void)pthread_mutex_unlock(&x->lock);
    status = gt_encode_packet(k, &error);
    (void)pthread_mutex_lock(&x->lock);
    while (x->appended != k->packet) (void)pthread_cond_wait(&x->turn, &x->lock);
    if (!status && !x->status) {
      (void)pthread_mutex_unlock(&x->lock); /* it is this thread's turn */
      status = gt_append_packet(k, &error);
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

/* Writes the lists to the part's builder, by as many threads as the builder has workers. */
static int gt_write_lists(gt_partitioner *x, gpuir_error *err) {
  gpuir_builder *b = x->builder;
  const unsigned n = b->threads.nworkers;
  gt_part_worker *workers = (gt_part_worker *)gpuir__alloc_zero(&x->a, n * sizeof *workers);
  unsigned started, i;
  if (!workers) return gpuir__fail_nomem(err);
  memset(x->to->ids, 0xff, (size_t)x->from->stat.terms * sizeof *x->to->ids); /* GPUIR__NO_TERM */
  gpuir__walk_start(&x->walk, x->from);
  for (i = 0; i < n; i++) {
    workers[i].partitioner = x;
    workers[i].encoder = &b->threads.workers[i].encoding.encoder;
  }
  for (started = 1; started < n; started++)
    if (pthread_create(&workers[started].thread, NULL, gt_part_worker_main, &workers[started])) break;
  (void)gt_part_worker_main(&workers[0]);
  for (i = 0; i < n; i++) {
    if (i && i < started) (void)pthread_join(workers[i].thread, NULL);
    gpuir__buf_free(&x->a, &workers[i].text);
    gpuir__buf_free(&x->a, &workers[i].postings);
    gpuir__batch_clear(&b->a, &workers[i].batch);
  }
  gpuir__free(&x->a, workers, n * sizeof *workers);
  if (x->status && err) *err = x->error;
  return x->status;
}

/* Writes the part's documents and lists to its builder. */
static int gt_write_all(gt_partitioner *x, gpuir_error *err) {
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
  status = gt_write_lists(x, err);
  (void)pthread_cond_destroy(&x->turn);
  (void)pthread_mutex_destroy(&x->lock);
  return status;
}

/* Writes the index of a part. */
static int gt_write_part(gt_partitioner *x, const gpuir_index *ix, const char *path, unsigned threads,
    gpuir_error *err) {
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
  status = gt_write_all(x, err);
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

/* Reads the records of a part's terms from its dictionary. */
static int gt_take_records(gt_device *d, const gpuir_allocator *a, const gpuir__segment *part) {
  gpuir__walk w;
  d->records = (gpuir__record *)gpuir__alloc(a, (size_t)part->stat.terms * sizeof *d->records);
  if (!d->records) return GPUIR_E_NOMEM;
  d->nrecords = part->stat.terms;
  for (gpuir__walk_start(&w, part); gpuir__walk_next(&w);) d->records[w.id] = w.record;
  return GPUIR_OK;
}

/* Opens the file of a part as an index that knows the whole's statistics. */
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

/* Makes the part of a device. Its file lies in a folder of its own, and is removed once it is open. */
static int gt_make_part(gt_device *d, const gpuir_index *ix, const char *folder, unsigned threads, gpuir_error *err) {
  const gpuir__segment *from = gpuir__only(ix);
  char path[256], own[240];
  gt_partitioner x;
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
  status = gt_write_part(&x, ix, path, threads, err);
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

/* Opens one device: makes its part, and puts that on the device. */
GPUIR__COLD static void *gt_opening_main(void *argument) {
  gt_opening *o = (gt_opening *)argument;
  gt_device *d = &o->team->devices[o->member];
  if (o->team->parts) o->status = gt_make_part(d, o->team->ix, o->folder, o->threads, &o->error);
  if (!o->status && GT_DEVICES)
    o->status = gc_open_device(d->part ? d->part : o->team->ix, &o->desc, &d->cuda, &o->error);
  return NULL;
}

/* Frees a team and what its devices have. */
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

/* Returns the folder for the files of parts: in memory, if that has room for twice the index. */
static const char *gt_folder(const gpuir_index *ix) {
  struct statvfs fs;
  if (access("/dev/shm", W_OK | X_OK) || statvfs("/dev/shm", &fs)) return "/tmp";
  return fs.f_bavail * (uint64_t)fs.f_frsize / 2 > gpuir__only(ix)->size ? "/dev/shm" : "/tmp";
}

/* Opens all devices at the same time. The error is that of the first one that fails. */
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
  if (t->parts) gt_choose_ranges(from->lengths, from->stat.documents, from->stat.tokens, t->n, starts);
  for (i = 0; i < t->parts; i++) {
    t->devices[i].first = starts[i];
    t->devices[i].end = i + 1 < t->n ? starts[i + 1] : (uint32_t)from->stat.documents;
  }
  status = gt_open_all(t, desc, err);
  if (status) gt_close(t);
  else *team = t;
  return status;
}

/* Adds up what the devices are and did. */
static void gt_info(const gt_team *t, gpuir_cuda_info *sum) {
  unsigned i;
  memset(sum, 0, sizeof *sum);
  for (i = 0; i < t->n && t->devices[i].cuda; i++) {
    gpuir_cuda_info one;
    gc_get_info(t->devices[i].cuda, &one);
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
 * [cuda-21-members]  host: a batch becomes tasks of a team's members, and their threads answer these
 *
 * An attached member is a thread with a searcher. The thread plans and waits, so that devices do not wait for each
 * other's planning. It has two tasks in flight, as a searcher may have two batches.
 *
 * If each member has the whole index, it has a range of a batch's queries. Ranges are paired, with a border between the
 * two, at which both members end. A member takes half of what is left of its range at a time, in launches that fill a
 * device. The border moves to where both will end at the same time, by what the queries cost and how far each member
 * is. A member that has nothing left takes queries from other ranges, and also those that a failed device leaves.
 *
 * Uses      [cuda-14-memory], [cuda-19-launch], [cuda-20-partition].
 * Start at  gt_member_main (a member's thread), gt_take_queries (its next task), gt_translate.
 * Tests     tests/gpu/test_team.c, which needs no device
 * ======================*/

#define GT_RANGE_LEAST 64u /* queries of a range at least */
#define GT_AND_COST 322000u /* in look-ups: see gt_cost */
#define GT_OR_COST 473000u
#define GT_OR_DRIVING 20u
#define GT_SPIN_NS 500000u /* time that a member looks for work before it sleeps, as waking it takes long */
#define GT_MEMBER_TASKS 8u /* tasks at most that a batch becomes for each member that has a part */
#define GT_TASKS (GT_MEMBER_TASKS * GT_MEMBERS) /* of a round at most */

/* ---- what a searcher asks of a team ---- */

typedef struct gt_batch gt_batch;

/* A member's queries of a round that are in no task. Members of even number take theirs from the beginning on, those of
 * odd number from the end: so the border between two ranges can move. */
typedef struct gt_range {
  size_t at, end;
  size_t begin; /* where its member began */
  size_t ended; /* how many from there on the member has answered */
  uint64_t when; /* when it answered the last of them, by gpuir__now */
} gt_range;

/* What one round of a batch asks of one member. Results go to the batch's arrays, or to the task's own. */
typedef struct gt_task {
  struct gt_task *next; /* in the member's queue */
  gt_range *range; /* the member's own range that it was taken from; or NULL */
  gt_batch *batch; /* NULL: it is not in use */
  const gpuir_query *const *queries; /* of the whole index */
  gpuir_batch_desc desc;
  gpuir_batch *handle; /* of the member's searcher, while it is in flight */
  const int *cancel;
  uint64_t deadline;
  int as_or, and_first; /* 1: its queries are asked as OR; ANDOR ones as AND */
  int ended; /* atomic; 1: its outcome is there */
  int status;
  gpuir_error error; /* of its first query that failed */
  gpuir__buf results, deadlines; /* hits, counts and statuses; a deadline for each query */
} gt_task;

/* A batch, from begin to finish. */
struct gt_batch {
  gpuir_batch_desc desc; /* its hits lie at multiples of desc.k */
  size_t k; /* hits of a query at most */
  uint64_t deadline;
  const int *cancel;
  int used, ready, again; /* ready: its outcome is there; again: the round is not the first */
  int failed; /* 1: some query failed, in any round; written atomically */
  uint64_t open; /* tasks that are not done, plus 1 while there are queries to take; atomic */
  uint64_t number; /* batches are served in this order */
  size_t n, taken; /* queries of the round; those that are in tasks or have failed */
  uint32_t *numbers; /* [query of the round] its number in the batch, in rounds behind the first */
  gpuir__buf gathered; /* the numbers, and pointers to the queries */
  gt_range ranges[GT_MEMBERS]; /* of members with the whole index */
  size_t launch_size; /* queries of a launch of such members */
  uint64_t since; /* when the ranges were assigned */
  gpuir__buf costs; /* [i] what the queries before number i cost, see gt_cost */
  const uint64_t *sums; /* the same; NULL: not known yet */
  size_t ntasks; /* of the round */
  size_t merged; /* of parts: tasks, from the first on, whose hits were merged */
  gt_task tasks[GT_TASKS]; /* of parts: those of the same queries stand in a row, by member */
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
  int lost; /* 1: its device failed, and it gets no further queries; under the lock */
  gt_task *first, *last; /* tasks that wait; under the lock */
  gt_task *in_flight[2]; /* the older one first; only its thread uses this and what follows */
  gt_task *next; /* translated while two are in flight; or NULL */
  gpuir__buf asked[3]; /* a part's queries, of these three tasks */
  unsigned asks; /* tasks that were in flight; they take `asked` in turn */
} gt_member;

/* What a searcher with a team has. */
struct gt_context {
  gpuir_allocator a;
  gt_team *team;
  pthread_mutex_t lock;
  pthread_cond_t work, done; /* for members; for those that wait for a batch */
  int ready, stop; /* ready: the three above are initialized */
  uint64_t signals; /* how often work came for members; written under the lock, read atomically */
  unsigned n;
  gt_member *members;
  gt_batch batches[2];
  uint64_t nbatches; /* begun */
};

/* ---- tasks ---- */

/* Returns the number in the batch of the round's query i. */
static size_t gt_number(const gt_batch *r, size_t i) { return r->again ? r->numbers[i] : i; }

/* Returns the round's queries. */
static const gpuir_query *const *gt_queries(const gt_batch *r) {
  return r->again ? (const gpuir_query *const *)(void *)r->gathered.data : r->desc.queries;
}

/* Ends a query with a status. */
static void gt_fail_query(gt_batch *r, size_t i, int status, const gpuir_error *err) {
  r->desc.statuses[i] = status;
  r->desc.counts[i] = 0;
  gpuir__poke(&r->failed, 1);
  if (r->status) return;
  r->status = status;
  if (err) r->error = *err;
}

/* Describes queries from .. from + n - 1 of the round to a task. own: 1: the task gets memory of its own for results;
 * NOMEM: there is none. */
static int gt_describe(const gt_context *x, const gt_batch *r, gt_task *t, size_t from, size_t n, int own) {
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

/* Returns how many members have not failed. The lock is held. */
static unsigned gt_alive(const gt_context *x) {
  unsigned alive = 0, i;
  for (i = 0; i < x->n; i++) alive += !x->members[i].lost;
  return alive;
}

/* Makes a task one of the batch's. The lock is held. */
static void gt_open_task(gt_batch *r, gt_task *t) {
  t->batch = r;
  t->next = NULL;
  t->range = NULL;
  t->cancel = r->cancel;
  t->deadline = r->deadline;
  t->ended = 0;
  t->status = GPUIR_OK;
  t->error.code = 0;
  (void)__atomic_add_fetch(&r->open, 1, __ATOMIC_ACQ_REL);
}

/* Counts one task less that the batch waits for. The lock is held. */
static void gt_close_one(gt_context *x, gt_batch *r) {
  if (!__atomic_sub_fetch(&r->open, 1, __ATOMIC_ACQ_REL)) (void)pthread_cond_broadcast(&x->done);
}

/* Tells members that work has come. The lock is held. */
static void gt_signal_work(gt_context *x) {
  (void)__atomic_add_fetch(&x->signals, 1, __ATOMIC_RELEASE);
  (void)pthread_cond_broadcast(&x->work);
}

/* Puts a task into a member's queue. The lock is held. */
static void gt_queue_task(gt_context *x, gt_member *m, gt_batch *r, gt_task *t) {
  gt_open_task(r, t);
  if (m->last) m->last->next = t;
  else m->first = t;
  m->last = t;
  gt_signal_work(x);
}

/* Notes that n of the round's queries are in tasks or have failed. The lock is held. */
static void gt_took(gt_context *x, gt_batch *r, size_t n) {
  r->taken += n;
  if (r->taken == r->n) gt_close_one(x, r);
}

/* Fails queries from .. from + n - 1 of the round, which are in no task. The lock is held. */
static void gt_drop(gt_context *x, gt_batch *r, size_t from, size_t n, int status) {
  size_t i;
  for (i = from; i < from + n; i++) gt_fail_query(r, gt_number(r, i), status, NULL);
  gt_took(x, r, n);
}

/* Assigns a round's queries to the members that have not failed; few queries go to some of these. The lock is held. */
static void gt_assign_ranges(const gt_context *x, gt_batch *r) {
  const gpuir_cuda *c = x->team->devices[0].cuda;
  const size_t nranges = (size_t)gpuir__max64(1, gpuir__min64(gt_alive(x), r->n / GT_RANGE_LEAST));
  const unsigned first =
      nranges < x->n ? (unsigned)(r->number % x->n) : 0; /* so that small batches use all members in turn */
  size_t given = 0;
  unsigned i;
  memset(r->ranges, 0, sizeof r->ranges);
  r->since = gpuir__now();
  r->sums = NULL;
  for (i = 0; i < x->n && given < nranges; i++) {
    const unsigned to = (first + i) % x->n;
    if (x->members[to].lost) continue;
    r->ranges[to].at = r->n * given / nranges;
    r->ranges[to].end = r->n * ++given / nranges;
    r->ranges[to].begin = to & 1 ? r->ranges[to].end : r->ranges[to].at;
  }
  r->launch_size = c && !c->by_itself ? c->batch : gc_launch_most(gt_queries(r), r->n);
}

/* Moves the border between two members' ranges to where both will end at the same time, as far as neither has taken
 * queries beyond it. It assumes that each goes on from the last query that it has answered, and both at their common
 * pace. The lock is held. */
static void gt_move_border(const gt_context *x, gt_batch *r, unsigned even) {
  gt_range *a = &r->ranges[even], *b = a + 1;
  const uint64_t *sums = r->sums;
  size_t lo = a->at, hi = b->end;
  double middle;
  if (!sums || even + 1 >= x->n || a->end != b->at || x->members[even].lost || x->members[even + 1].lost) return;
  middle = ((double)sums[a->begin] + (double)sums[b->begin]) / 2;
  if (a->ended && b->ended) {
    const uint64_t first = sums[a->begin + a->ended], last = sums[b->begin - b->ended];
    const uint64_t gone = first - sums[a->begin] + sums[b->begin] - last;
    const double spent = (double)(a->when - r->since) + (double)(b->when - r->since);
    const double ahead = (double)b->when - (double)a->when; /* time that a has worked since, while b had not ended */
    middle = ((double)first + (double)last + ahead * (double)gone / (spent > 1 ? spent : 1)) / 2;
  }
  while (lo < hi) {
    const size_t mid = lo + (hi - lo) / 2;
    if ((double)sums[mid] < middle) lo = mid + 1;
    else hi = mid;
  }
  a->end = b->at = lo;
}

/* Moves the border of a member's range, and returns the range from which the member takes next: its own; or the largest
 * of others, if it has nothing else to do or their member has failed. NULL: there is none. The lock is held. */
static gt_range *gt_choose_range(const gt_member *m, gt_batch *r) {
  const gt_context *x = m->context;
  gt_range *best = &r->ranges[m - x->members];
  unsigned i;
  gt_move_border(x, r, (unsigned)(m - x->members) & ~1u);
  if (best->at < best->end) return best;
  for (i = 0; i < x->n; i++) {
    gt_range *s = &r->ranges[i];
    if ((!m->in_flight[0] || x->members[i].lost) && s->end - s->at > best->end - best->at) best = s;
  }
  return best->at < best->end ? best : NULL;
}

/* Returns how many queries a member takes of its own range, of which `left` are left: half of the launches that they
 * make; and if its device waits, a short first launch before these. A launch fills the device. If the last one would be
 * almost empty, all launches share the queries evenly. */
static size_t gt_own_take(const gt_batch *r, size_t left, int waits) {
  const size_t begin = waits && left > r->launch_size ? GC_FIRST_QUERIES : 0, rest = left - begin;
  const size_t launches = (rest + r->launch_size - 1) / r->launch_size, last = rest - (launches - 1) * r->launch_size;
  const size_t each = last < r->launch_size / 4 ? (rest + launches - 1) / launches : r->launch_size;
  return begin + each * ((launches + 1) / 2);
}

/* Takes the queries of a task from a range; own: it is the member's; waits: its device has nothing to do. Returns the
 * first; *n: how many. */
static size_t gt_take_from_range(const gt_batch *r, gt_range *s, int own, int waits, size_t *n) {
  const size_t left = s->end - s->at;
  const int odd = (s - r->ranges) & 1, at_end = odd == own;
  *n = own ? gt_own_take(r, left, waits) : gpuir__max64(left / 2, GT_RANGE_LEAST);
  if (*n + (own ? 0 : GT_RANGE_LEAST / 2) > left || r->ntasks + GT_MEMBERS >= GT_TASKS) *n = left;
  if (at_end) s->end -= *n;
  else s->at += *n;
  return at_end ? s->end : s->at - *n;
}

/* Makes a task of queries of the oldest batch that has some for a member. NULL: there are none. The lock is held. */
static gt_task *gt_take_queries(gt_member *m) {
  gt_context *x = m->context;
  gt_batch *r = &x->batches[x->batches[1].used && (!x->batches[0].used || x->batches[1].number < x->batches[0].number)];
  gt_range *s = r->used && r->taken < r->n ? gt_choose_range(m, r) : NULL;
  gt_task *t;
  size_t from, n;
  int own;
  if (!s) {
    r = &x->batches[r == x->batches];
    s = r->used && r->taken < r->n ? gt_choose_range(m, r) : NULL;
  }
  if (!s) return NULL;
  own = s == &r->ranges[m - x->members];
  from = gt_take_from_range(r, s, own, !m->in_flight[0], &n);
  t = &r->tasks[r->ntasks];
  if (gt_describe(x, r, t, from, n, r->again)) {
    gt_drop(x, r, from, n, GPUIR_E_NOMEM);
    return NULL;
  }
  r->ntasks++;
  gt_open_task(r, t);
  if (own) t->range = s;
  gt_took(x, r, n);
  return t;
}

/* Fails the queries that nobody can take, as all members have failed. The lock is held. */
static void gt_give_up(gt_context *x) {
  unsigned i, j;
  for (i = 0; i < 2 && !gt_alive(x); i++) {
    gt_batch *r = &x->batches[i];
    for (j = 0; j < x->n && r->used && r->taken < r->n; j++) {
      gt_range *s = &r->ranges[j];
      const size_t n = s->end - s->at;
      s->end = s->at;
      if (n) gt_drop(x, r, s->at, n, GPUIR_E_BACKEND);
    }
  }
}

/* Returns how many postings drive MaxScore: those of the lists with which a document may reach the threshold that is
 * known beforehand. A list with seeds has a threshold of about its weight. */
static uint64_t gt_driving(const gpuir_query *q) {
  float threshold = 0;
  uint64_t sum = 0;
  unsigned i, j;
  for (i = 0; i < q->npositive; i++) {
    const float weight = (float)q->terms[i].q * q->terms[i].weight;
    if (q->terms[i].df > GPUIR__WHOLE && weight > threshold) threshold = weight;
  }
  for (i = 0; i < q->npositive; i++) {
    float most = 0; /* of a document that no shorter list holds */
    for (j = 0; j < q->npositive; j++)
      if (q->terms[j].df >= q->terms[i].df) most += (float)q->terms[j].q * q->terms[j].weight;
    if (most >= threshold) sum += q->terms[i].df;
  }
  return sum;
}

/* Returns about how long a device takes for a query; the unit is a look-up. An AND looks each posting of the shortest
 * list up in all others. An OR looks one of twenty driving postings up in all others. The constants are a line fitted
 * to the times of random calls (tools/results/cuda_notes.txt). */
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

/* Adds up what a batch's queries cost, and moves the borders between ranges by it. Members work on the first queries
 * meanwhile. */
static void gt_balance(gt_context *x, gt_batch *r) {
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

/* Returns the functions of the program's copy of gpuir.h. */
static const gpuir__calls *gt_calls(const gt_member *m) { return m->context->team->ix->calls; }

/* Returns whether a query has phrases or prefixes. */
static int gt_unanswerable(const gpuir_query *q) { return q->nphrases || q->nprefixes; }

/* Returns whether a query has optional terms beside required ones, or asks for an OR of other words than its AND's. */
static int gt_is_mixed(const gpuir_query *q) {
  return (q->nrequired < q->npositive && q->mode != GPUIR_OR) || gpuir__query_has_two(q, SIZE_MAX);
}

/* Returns whether parts cannot answer a query. Only parts that are segments have positions. */
static int gt_refuses(const gt_team *t, const gpuir_query *q) {
  if (gt_is_mixed(q)) return 1;
  return t->live ? q->nprefixes > 0 : gt_unanswerable(q);
}

/* Returns of how many members of phrases parts are told. */
static unsigned gt_members_of(const gt_team *t, const gpuir_query *q) {
  return t->live && q->nphrases ? q->phrases->nmembers : 0;
}

/* Finds the term, or the phrase's member, of this number of a query in a part. */
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

/* Copies a query for a part of the index, where its terms have other numbers, or none. Of a query that devices cannot
 * answer nothing is copied: gt_merge_query fails it. */
static gpuir_query *gt_translate(const gt_task *t, const gt_member *m, const gpuir_query *q, uint8_t **at) {
  const gt_device *d = m->device;
  const gt_team *team = m->context->team;
  const unsigned members = gt_members_of(team, q);
  const size_t each = members ? sizeof q->terms[0] : offsetof(gpuir__query_term, text); /* no text */
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
  if (team->live) to->stored_bm25 = q->stored_bm25 && d->weighed; /* otherwise as under other k1 and b */
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

/* Prefetches what translating queries for a part will read: of query i of n, and of those behind it. Each is asked for
 * when what leads to it has come. */
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

/* Translates a task's queries for a part. The task in flight goes on meanwhile. */
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
    if (i % 64 == 63 && m->in_flight[0]) (void)gt_calls(m)->search_poll(m->in_flight[0]->handle);
  }
  t->desc.queries = to;
  return GPUIR_OK;
}

/* Gives each query of a task its time limit: its own or the batch's. */
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

/* Prepares a task for its member. t->status then says whether it can begin. */
static void gt_prepare(gt_member *m, gt_task *t) {
  t->status = gt_limit(m, t, &t->error);
  if (!t->status && m->device->part) t->status = gt_translate_all(m, t, &t->error);
}

/* Begins a prepared task; returns 0 if it is not in flight then. */
static int gt_task_begin(gt_member *m, gt_task *t) {
  int status = t->status;
  if (!status) {
    m->searcher->engine.limits.cancel = t->cancel;
    status = gt_calls(m)->search_begin(m->searcher, &t->desc, &t->handle);
    if (status) gpuir_searcher_error(m->searcher, &t->error);
  }
  if (status) gt_fail_task(t, status);
  return !status;
}

/* Waits for a task in flight. Its status says how it ended. */
static void gt_task_finish(gt_member *m, gt_task *t) {
  m->searcher->engine.limits.cancel = t->cancel;
  t->status = gt_calls(m)->search_finish(t->handle);
  if (t->status) gpuir_searcher_error(m->searcher, &t->error);
}

/* Returns whether a query's failure means that the device has failed, and not that the backend cannot answer that
 * query. */
static int gt_is_lost(const gpuir_query *q, int status) {
  return status == GPUIR_E_BACKEND && !gt_unanswerable(q) && !gt_is_mixed(q);
}

/* Notes that a task is done. The lock is held. */
static void gt_task_done(gt_member *m, gt_task *t) {
  gt_context *x = m->context;
  size_t i;
  if (t->status) gpuir__poke(&t->batch->failed, 1);
  for (i = 0; t->status && !m->lost && i < t->desc.nq; i++) {
    m->lost = gt_is_lost(t->queries[i], t->desc.statuses[i]);
    if (m->lost) (void)__atomic_add_fetch(&x->team->lost, 1, __ATOMIC_RELAXED);
  }
  if (m->lost) gt_give_up(x);
  if (t->range) {
    t->range->ended += t->desc.nq;
    t->range->when = gpuir__now();
  }
  __atomic_store_n(&t->ended, 1, __ATOMIC_RELEASE);
  gt_close_one(x, t->batch);
}

/* Takes the next task from the member's queue, or makes one of queries that wait. NULL: there is none. The lock is
 * held. */
static gt_task *gt_take(gt_member *m) {
  gt_task *t = m->first;
  if (!t) return m->lost ? NULL : gt_take_queries(m);
  m->first = t->next;
  if (!m->first) m->last = NULL;
  return t;
}

/* Begins a task; without one it waits for the older task in flight. Returns the task that has ended, or NULL. */
static gt_task *gt_work(gt_member *m, gt_task *t) {
  if (t) {
    if (t != m->next) gt_prepare(m, t);
    m->next = NULL;
    if (!gt_task_begin(m, t)) return t;
    m->asks++;
    m->in_flight[m->in_flight[0] != NULL] = t;
    return NULL;
  }
  if (m->next) gt_prepare(m, m->next);
  t = m->in_flight[0];
  gt_task_finish(m, t);
  m->in_flight[0] = m->in_flight[1];
  m->in_flight[1] = NULL;
  return t;
}

/* Looks for work that has come since `signals` was read, for a limited time. */
static void gt_spin(const gt_context *x, uint64_t signals) {
  const uint64_t until = gpuir__now() + GT_SPIN_NS;
  while (__atomic_load_n(&x->signals, __ATOMIC_ACQUIRE) == signals && gpuir__now() < until) (void)sched_yield();
}

/* A member's thread: takes tasks, begins them, and waits for the older one of two in flight. */
static void *gt_member_main(void *argument) {
  gt_member *m = (gt_member *)argument;
  gt_context *x = m->context;
  int looked = 0; /* 1: since its last task it has looked in vain */
  (void)pthread_mutex_lock(&x->lock);
  for (;;) {
    gt_task *t = NULL;
    if (!m->in_flight[1]) t = m->next ? m->next : gt_take(m);
    else if (m->device->part) m->next = gt_take(m); /* one with the whole index takes tasks as late as it can */
    if (t || m->in_flight[0]) {
      (void)pthread_mutex_unlock(&x->lock);
      t = gt_work(m, t);
      (void)pthread_mutex_lock(&x->lock);
      if (t) gt_task_done(m, t);
      looked = 0;
    } else if (x->stop) {
      break;
    } else if (!looked) {
      const uint64_t signals = x->signals;
      (void)pthread_mutex_unlock(&x->lock);
      gt_spin(x, signals);
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
 * [cuda-22-merge]  host: rounds of a batch, whose hits are merged; the team as a backend
 *
 * A batch takes rounds. The first round asks for all queries. A second one may be needed: it asks other members for the
 * queries that a failed one left; or it asks parts for the OR of those ANDOR queries whose AND has fewer than k hits in
 * all. If members have parts, their hits of a query are merged by score and docID.
 *
 * Uses      [cuda-14-memory], [cuda-19-launch] to [cuda-21-members].
 * Start at  gt_begin, gt_poll, gt_finish; gt_advance (rounds), gt_merge_query (hits); gt_attach_searcher.
 * Tests     tests/gpu/test_team.c, which needs no device
 * ======================*/

#define GT_TASK_LEAST 1024u /* queries of a task at least: while the device answers some, the next are translated */
#define GT_FIRST_TASK 256u /* queries of the first of several tasks, which the device waits for */
#define GT_BATCH_SPIN_NS 20000000u /* time that a thread that waits for a batch looks at it before it sleeps */

/* ---- rounds ---- */

/* Asks all members for all queries of a round; each member has a part. */
static void gt_ask_all(gt_context *x, gt_batch *r) {
  size_t from, size, j, n = 0;
  unsigned i;
  size = r->n > GT_TASK_LEAST ? GT_FIRST_TASK : r->n;
  for (from = 0; from < r->n; from += size) {
    if (from == GT_FIRST_TASK)
      size = gpuir__max64(GT_TASK_LEAST, (r->n - from + GT_MEMBER_TASKS - 2) / (GT_MEMBER_TASKS - 1));
    for (i = 0; i < x->n; i++, n++) {
      gt_task *t = &r->tasks[n];
      if (gt_describe(x, r, t, from, gpuir__min64(size, r->n - from), 1)) break;
      t->as_or = r->again;
      t->and_first = !r->again;
    }
    if (i < x->n) break;
  }
  r->taken = r->n;
  if (from >= r->n) {
    r->ntasks = n;
    for (j = 0; j < n; j++) gt_queue_task(x, &x->members[j % x->n], r, &r->tasks[j]);
    return;
  }
  for (j = 0; j < r->n; j++) gt_fail_query(r, gt_number(r, j), GPUIR_E_NOMEM, NULL);
  r->n = 0;
}

/* Begins a round of the queries in r->n; returns 0 if there are none. The lock is held. */
static int gt_round(gt_context *x, gt_batch *r) {
  if (!r->n) return 0;
  r->ntasks = r->merged = r->taken = 0;
  if (x->team->parts) {
    gt_ask_all(x, r);
    return 1;
  }
  gt_assign_ranges(x, r);
  (void)__atomic_add_fetch(&r->open, 1, __ATOMIC_ACQ_REL);
  gt_signal_work(x);
  return 1;
}

/* Collects the batch's queries for which `wanted` is true for another round. Returns how many there are. Without memory
 * it returns 0, and fails those of them that have not failed yet. */
static size_t gt_gather(const gt_context *x, gt_batch *r, int (*wanted)(const gt_batch *r, size_t i)) {
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

/* Returns a key that orders hits: greater ones come first. */
static inline uint64_t gt_key(gpuir_hit h) { return (uint64_t)h.score << 32 | (uint32_t)~h.docid; }

/* A member's hits of a query, as they are merged. */
typedef struct gt_source {
  const gpuir_hit *at, *end;
  uint32_t first; /* the whole's number of the part's first document */
} gt_source;

/* Merges hits, which each source has in order, to the k best ones. Returns how many there are. */
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
static void gt_refuse(gt_batch *r, size_t i) {
  gpuir_error error;
  const int status = gpuir__fail(&error, GPUIR_E_BACKEND, 0, "the CUDA backend answers neither phrases nor prefixes");
  gt_fail_query(r, i, status, &error);
}

/* Merges the parts' hits of query number i of the tasks, one task for each member. The query fails if it has failed in
 * any part. */
static void gt_merge_query(const gt_context *x, gt_batch *r, const gt_task *tasks, size_t i) {
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
static void gt_merge_some(const gt_context *x, gt_batch *r) {
  for (; r->merged < r->ntasks; r->merged += x->n) {
    const gt_task *tasks = &r->tasks[r->merged];
    size_t i;
    for (i = 0; i < x->n; i++)
      if (!__atomic_load_n(&tasks[i].ended, __ATOMIC_ACQUIRE)) return;
    for (i = 0; i < tasks[0].desc.nq; i++) gt_merge_query(x, r, tasks, i);
  }
}

/* Copies the results of a later round, of members that have the whole index, to the batch's arrays. */
static void gt_copy_all(gt_batch *r) {
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

/* Returns whether a query's device has failed, so that another member is to be asked. */
static int gt_wants_other(const gt_batch *r, size_t i) { return gt_is_lost(r->desc.queries[i], r->desc.statuses[i]); }

/* Returns whether an ANDOR query has too few hits of its AND. */
static int gt_wants_or(const gt_batch *r, size_t i) {
  return r->desc.queries[i]->mode == GPUIR_ANDOR && !r->desc.count && !r->desc.statuses[i] && r->desc.counts[i] < r->k;
}

/* Sets a batch's status and error: those of its first query that failed. */
static void gt_conclude(gt_batch *r) {
  size_t i, m;
  for (i = 0; r->failed && i < r->desc.nq && !r->desc.statuses[i]; i++) {}
  r->status = r->failed && i < r->desc.nq ? r->desc.statuses[i] : GPUIR_OK;
  for (m = 0; m < r->ntasks && r->status && r->error.code != r->status; m++)
    if (r->tasks[m].status == r->status) r->error = r->tasks[m].error;
  r->ready = 1;
}

/* Goes on with a batch that has no open task: to another round, or to its outcome. The lock is held. */
static void gt_advance(gt_context *x, gt_batch *r) {
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

/* Returns whether enough members are there to answer queries. The lock is held. */
static int gt_can(const gt_context *x) { return gt_alive(x) >= (x->team->parts ? x->n : 1); }

/* Begins a batch with its first round. */
static int gt_begin(void *context, const gpuir_batch_desc *batch, uint64_t deadline, const int *cancel, void **running,
    gpuir_error *err) {
  gt_context *x = (gt_context *)context;
  gt_batch *r = x->batches[0].used ? &x->batches[1] : &x->batches[0];
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
  r->number = ++x->nbatches;
  r->ready = r->again = r->failed = r->status = 0;
  r->error.code = 0;
  r->n = r->k || r->desc.count ? batch->nq : 0;
  for (i = 0; i < batch->nq; i++) batch->counts[i] = 0;
  if (!gt_round(x, r)) gt_conclude(r);
  (void)pthread_mutex_unlock(&x->lock);
  if (!x->team->parts && r->n / x->n > r->launch_size) gt_balance(x, r);
  *running = r;
  return GPUIR_OK;
}

/* Goes on with a batch if all its tasks are done. Returns whether its outcome is there. */
static int gt_poll(void *context, void *running) {
  gt_context *x = (gt_context *)context;
  gt_batch *r = (gt_batch *)running;
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

/* Looks, for a limited time, whether all tasks of a batch are done. It merges meanwhile what all parts have
 * answered. */
static void gt_spin_until_done(const gt_context *x, gt_batch *r) {
  const uint64_t until = gpuir__now() + GT_BATCH_SPIN_NS;
  while (__atomic_load_n(&r->open, __ATOMIC_ACQUIRE) && gpuir__now() < until) {
    if (x->team->parts) gt_merge_some(x, r);
    (void)sched_yield();
  }
}

/* Waits for a batch, and returns its status. */
static int gt_finish(void *context, void *running, gpuir_error *err) {
  gt_context *x = (gt_context *)context;
  gt_batch *r = (gt_batch *)running;
  (void)pthread_mutex_lock(&x->lock);
  while (!r->ready) {
    (void)pthread_mutex_unlock(&x->lock);
    gt_spin_until_done(x, r);
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
      gpuir__buf_free(&a, &x->batches[i].tasks[j].results);
      gpuir__buf_free(&a, &x->batches[i].tasks[j].deadlines);
    }
    gpuir__buf_free(&a, &x->batches[i].gathered);
    gpuir__buf_free(&a, &x->batches[i].costs);
  }
  if (x->ready) {
    (void)pthread_cond_destroy(&x->done);
    (void)pthread_cond_destroy(&x->work);
    (void)pthread_mutex_destroy(&x->lock);
  }
  gpuir__free(&a, x->members, x->n * sizeof *x->members);
  gpuir__free(&a, x, sizeof *x);
}

/* Gives a member its searcher, and attaches the device to it. */
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
  return gc_attach_device(m->searcher, m->device->cuda, GC_SLOTS_FEW, 0, err);
}

/* Makes a searcher's members, a thread for each. If it fails, gt_detach frees what there is. */
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

/* Lets a team answer a searcher's queries. */
static int gt_attach_searcher(gpuir_searcher *s, gt_team *team, int fallback, gpuir_error *err) {
  static const gpuir_backend backend = {GPUIR_BACKEND_VERSION, "cuda", NULL, gt_begin, gt_poll, gt_finish, gt_detach};
  gt_context *x = (gt_context *)gpuir__alloc_zero(&s->engine.a, sizeof *x);
  if (!x) return gpuir__fail_nomem(err);
  x->a = s->engine.a;
  x->team = team;
  return gc_set_backend(s, &backend, x, gt_attach(x, s, err), fallback, err);
}

/* What follows opens indexes: the host compiler optimizes it less, as said at the end of [cuda-13-prompt]. */
#pragma GCC push_options
#pragma nv_diag_suppress 1675
#pragma GCC optimize("Og")
#pragma nv_diag_default 1675

/* ========================
 * [cuda-23-live]  host: snapshots of several segments, or with deletions, on one device
 *
 * What the device has of a segment does not depend on a snapshot. It is made once; a later snapshot that has the same
 * segment shares it, so that only new segments are uploaded. A snapshot is answered as the parts of a team are: each
 * segment that has documents is a member. Queries bring the snapshot's N, df and average length in their weights and
 * norms. The segment's own contributions and bounds are not valid under these: where that is cheap, the device computes
 * them anew for each snapshot; otherwise queries are asked as under other k1 and b than the stored ones. A segment's
 * seeds are never used. Deleted documents are a bitmap of the snapshot. If a segment has one, its lists are decoded in
 * place, and each document's bit is tested before the document is scored.
 *
 * Uses      [cuda-05-expand], [cuda-14-memory], [cuda-17-open], [cuda-19-launch], [cuda-20-partition].
 * Start at  gl_open.
 * Tests     tests/gpu/test_team.c (without a device), tests/gpu/test_cuda.c
 * ======================*/

#define GL_LEAST ((uint64_t)256 << 20) /* bytes that a segment may take at least, if there is so much memory */

/* Gives up a snapshot's use of a segment. The last one frees it. */
static void gl_release(gl_resident *r) {
  gpuir_allocator a;
  if (!r || __atomic_sub_fetch(&r->refs, 1, __ATOMIC_ACQ_REL)) return;
  a = r->alone->a;
  gc_close_device(r->cuda);
  r->alone->calls->index_close(r->alone);
  gpuir__free(&a, r, sizeof *r);
}

/* Frees what the members of a live team have; gt_close frees the rest. */
static void gl_close_members(gt_team *t) {
  unsigned i;
  for (i = 0; i < t->n; i++) {
    gt_device *d = &t->devices[i];
    if (d->cuda) {
      const size_t longs = (size_t)d->cuda->ix->stat.longs;
      (void)cudaSetDevice(d->cuda->device);
      while (d->cuda->nmemory) (void)cudaFree(d->cuda->memory[--d->cuda->nmemory]);
      gpuir__free(&t->a, d->lists, longs * sizeof *d->lists);
      gpuir__free(&t->a, d->guides, longs * sizeof *d->guides);
      gpuir__free(&t->a, d->known, longs * sizeof *d->known);
      gpuir__free(&t->a, d->cuda, sizeof *d->cuda);
    }
    gl_release(d->resident);
    d->cuda = NULL;
    d->resident = NULL;
  }
}

/* Makes an index of a leaf, with the snapshot's deletions or without them. */
static int gl_index(const gpuir_index *ix, const gpuir__leaf *leaf, int deletions, gpuir_index **index,
    gpuir_error *err) {
  gpuir__leaf one = {gpuir__segment_retain(leaf->seg), deletions ? gpuir__deleted_retain(leaf->deleted) : NULL, 0};
  return gt_make_index(ix, ix->path, &one, index, err);
}

/* Finds a segment among those that another snapshot has on the device. NULL: it is not there. */
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

/* Puts a segment on the device, in at most `memory` bytes. */
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
  if (status) gl_release(r);
  else *resident = r;
  return status;
}

/* ---- contributions under a snapshot's statistics ---- */

#define GL_LOOKUPS ((uint64_t)4 << 20) /* look-ups of terms in other segments at most */
#define GL_COUNTED ((uint64_t)64 << 20) /* postings at most that are decoded to count those of deleted documents */

#ifdef GPUIR_CUDA_SEAM
int gpuir_cuda_seam_unweighed; /* 1: no list is weighed by a snapshot */
#define GC_UNWEIGHED gpuir_cuda_seam_unweighed
#else
#define GC_UNWEIGHED 0
#endif

/* Returns whether weighing all long lists of a segment by the snapshot is worth the time. If not, each query computes
 * its postings' contributions. */
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
    gc_list_guide *guide;
    int status = GPUIR_OK;
    if (w.record.df <= GPUIR__SHORT_MAX) continue;
    for (i = 0; i < ix->nleaves && !status; i++)
      status = gl_count(ix->calls, &ix->leaves[i], (const char *)w.term, w.len, &df);
    if (status) return status;
    t = &c->lists[n++];
    guide = &c->guides[t->tile_row];
    memset(&l, 0, sizeof l);
    l.extent = &c->ix->lists.longs[t->tile_row];
    t->weight = gpuir__weight(gpuir__idf(ix->collection, (uint32_t)gpuir__min64(df, ix->collection)), c->ix->stat.k1);
    t->most = guide->most = gpuir__bound(t->weight, gpuir__list_saturation(table, &l), 1);
    t->step = guide->most / GC_PEAK_MOST + 1;
    t->cut = guide->cut = 0;
  }
  return GPUIR_OK;
}

/* Lets the device compute a member's contributions and peaks anew. It writes marks and docIDs too, which it shares with
 * the segment, but with the values that they have. */
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

/* Returns whether the bound leaves a member memory for this beside two launches. */
static int gl_has_room(const gpuir_cuda *c) {
  const gc_term *end = &c->lists[c->nlists - 1];
  const uint64_t lines = end->row + ((c->view.documents - 1) >> end->span) / GC_PEAK_LINE + 1;
  const uint64_t bytes = c->ix->stat.blocks * (4 + (c->expanded ? GPUIR__BLOCK * 4 : 0)) + lines * GC_PEAK_BYTES +
      c->nlists * sizeof *c->lists + 4096;
  const uint64_t left = gc_left(c);
  return left > bytes && left - bytes > 2 * gc_sizes_of(c, c->batch).device;
}

/* Clears the seeds, which are the segment's own. */
static void gl_forget_seeds(gpuir_cuda *c) {
  size_t i;
  for (i = 0; i < c->nlists; i++) {
    gc_known *k = &c->known[c->lists[i].tile_row];
    memset(k->seeds, 0, sizeof k->seeds);
  }
}

/* Gives a member, whose segment has no deletions, contributions, bounds and weights of its lists under the snapshot's
 * statistics, if that is cheap: then d->weighed becomes 1. */
static int gl_derive(const gpuir_index *ix, gt_device *d, gpuir_error *err) {
  gpuir_cuda *c = d->cuda;
  const size_t longs = (size_t)c->ix->stat.longs;
  gpuir__saturation *table;
  int status;
  if (c->view.deleted || !c->guides || !c->nlists || !gl_is_cheap(ix, c) || !gl_has_room(c)) return GPUIR_OK;
  table = (gpuir__saturation *)gpuir__alloc_zero(&c->a, sizeof *table);
  d->lists = (gc_term *)gpuir__alloc(&c->a, longs * sizeof *d->lists);
  d->guides = (gc_list_guide *)gpuir__alloc(&c->a, longs * sizeof *d->guides);
  if (!table || !d->lists || !d->guides) {
    gpuir__free(&c->a, table, sizeof *table);
    return gpuir__fail_nomem(err);
  }
  memcpy(d->lists, c->lists, longs * sizeof *d->lists);
  memcpy(d->guides, c->guides, longs * sizeof *d->guides);
  c->lists = d->lists;
  c->guides = d->guides;
  gpuir__saturation_prepare(table, ix->norm);
  status = gl_weigh(ix, c, table);
  gpuir__free(&c->a, table, sizeof *table);
  if (status) return gpuir__fail(err, status, 0, "%s: cannot open a list: %s", ix->path, gpuir_strerror(status));
  status = gl_expand(ix, c, err);
  if (status) return status;
  c->info.resident_bytes = c->info.index_bytes; /* what was made of the index does not count */
  gc_know(c);
  d->known = c->known;
  if (!c->known) return gpuir__fail_nomem(err);
  gl_forget_seeds(c);
  memset(&c->slices, 0, sizeof c->slices);
  d->weighed = 1;
  return GPUIR_OK;
}

/* ---- opening ---- */

/* Gives a member what it answers with: the segment on the device, and the snapshot's deletions. */
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
  c->guides = NULL;
  c->expanded = 0;
  memset(&c->slices, 0, sizeof c->slices);
  return gc_shape_or(c, 0, err);
}

/* Finds the bytes of the device that a snapshot may take, with those of segments that it shares. */
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

/* Uploads the segments that are not on the device yet. Each may take a share of the memory as large as its file's share
 * of the files; or more, where there is much. */
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
  gl_close_members(t);
  gt_close(t);
  return status;
}

/* ========================
 * [cuda-24-api]  the C interface, declared in [api-cuda] of gpuir.h
 *
 * Uses      [cuda-14-memory], [cuda-17-open], [cuda-19-launch], [cuda-20-partition], [cuda-22-merge], [cuda-23-live].
 * Start at  gpuir_cuda_open, gpuir_cuda_attach.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

extern "C" {

int gpuir_cuda_device(int device, gpuir_cuda_info *info, gpuir_error *err) {
  cudaDeviceProp p;
  if (!info) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_device: NULL");
  memset(info, 0, sizeof *info);
  return gc_device_info(device, &p, info, err);
}

void gpuir_cuda_close(gpuir_cuda *c) {
  gpuir_allocator a;
  if (!c || !c->team) {
    gc_close_device(c);
    return;
  }
  a = c->a;
  if (c->team->live) gl_close_members(c->team);
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
  else gc_get_info(c, info);
}

int gpuir_cuda_attach(gpuir_searcher *s, gpuir_cuda *cuda, int fallback, gpuir_error *err) {
  if (!s || !cuda) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_attach: NULL");
  if (s->layout != gpuir__searcher_layout()) return gc_refuse(err, "gpuir_cuda_attach");
  if (s->ix != cuda->index)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_attach: a searcher of another index");
  if (cuda->team) return gt_attach_searcher(s, cuda->team, fallback, err);
  return gc_attach_device(s, cuda, GC_SLOTS, fallback, err);
}

} /* extern "C" */

#pragma GCC pop_options
