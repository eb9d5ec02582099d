
/* ========================
 * [cuda-01-shared]  what the host and the kernels share
 *
 * Start at  gc_batch: one launch; its jobs, their terms.
 * ======================*/

static_assert(GPUIR__BLOCK == 4 * 32, "a lane of a warp has four values of a block");
static_assert(GPUIR__BLOCK_PAIRS * sizeof(gpuir__pair) % 4 == 0, "bounds are read as words");

#define GC_NONE UINT32_MAX
#define GC_WARP 0xffffffffu /* all lanes of a warp */
#define GC_TILE_MOST 24576u /* documents a tile at most: two blocks of threads share 227 KB */
#define GC_OR_WORKERS 256u /* threads that score expanded lists; one warp more looks ahead */
#define GC_PACKED_WORKERS 384u /* threads that score lists in place: more of them, as each waits longer */
#define GC_AHEAD 3u /* blocks that a warp has on their way at once */
#define GC_OR_THREADS(EXPANDED) ((EXPANDED) ? GC_OR_WORKERS + 32u : GC_PACKED_WORKERS + 32u)
#define GC_KEYS 1024u /* survivors of a tile that are selected among in shared memory */
#define GC_AND_THREADS 256u
#define GC_CHUNK 2048u /* blocks of a list whose bounds one block of threads spreads over tiles */
#define GC_FINAL_THREADS 256u
#define GC_K_MOST 10000u
#define GC_RANKED 512u /* candidates at most whose order gc_final finds by counting */
#define GC_K_SETTLED 2048u /* hits of a query at most that gc_and_guided itself writes */
#define GC_TURNS 6u /* of a long AND's driver blocks, each of as many as those before it together */
#define GC_TURNS_LEAST 32u /* groups of blocks of a driver that is taken in turns */
#define GC_OPENED 1024u /* blocks of a driver at least, where the turns of few ANDs wait for the first one */
#define GC_RAISED_BLOCKS 256u /* blocks of an AND's driver that is long enough for a floor to spare some of them */
#define GC_SIFTED (2 * 32 * GC_SIDE) /* documents that a warp has waiting for an AND's look-ups */
#define GC_PAD 1024u /* bytes of zeros behind each section: what a damaged block may read there */
#define GC_BUCKETS 256u /* of tile bounds */
#define GC_PEAK_BITS 4u
#define GC_PEAK_MOST ((1u << GC_PEAK_BITS) - 1)
#define GC_PEAKS 64u /* eighths of a peak that a posting has at most, with memory for that; half as many at least */
#define GC_PEAK_LINE 64u /* peaks; a list begins with a line */
#define GC_PEAK_BYTES (GC_PEAK_LINE * GC_PEAK_BITS / 8) /* of a line */
#define GC_MARKS 8u /* bits of marks a posting at least */
#define GC_CELLS 96u /* bits of a group of marks */
#define GC_GUIDED_THREADS 256u /* of gc_and_guided and the kernels of MaxScore */
#define GC_SIDE 2u /* documents that a lane follows side by side */
#define GC_QUEUE (GPUIR__BLOCK + 32 * GC_SIDE) /* documents that a warp has waiting */
#define GC_FIRST 16u /* blocks of the shortest list in a sample */
#define GC_FIRST_ALONE 4u /* the same where floors are not raised */
#define GC_LAYERS 3u /* lists that add blocks to a sample, half as many each further one */
#define GC_LAYERS_ALONE 1u /* the same there, where a launch waits for each: three take 7 us more, alone */
#define GC_SAMPLED_LISTS 8u /* lists of a sample at most: further ones make up for blocks that short ones lack */
#define GC_SAMPLED ((GC_FIRST + GC_FIRST / 2 + GC_FIRST / 4) * GPUIR__BLOCK) /* documents of a sample at most */
#define GC_SCORED 1024u /* of which are scored at most */
#define GC_SCORED_LEAST 64u
#define GC_DOUBT 9.0f /* see gc_maxs */
#define GC_ROUNDS 4u /* of driver blocks of MaxScore: see gc_max_plan */
#define GC_OPENING 8u /* one in so many groups of blocks of a long driver is taken before the rest */
#define GC_OPENED_LEAST 128u /* blocks of such a driver at least */
#define GC_SMALL 16u /* queries of a small launch at most: what counts are the gaps between its kernels */
/* Queries at most of a launch that takes all blocks of a job at once: floors that are raised meanwhile come too late,
 * and what counts is the wait for the last block; with many hits to find they pay sooner. Measured on an H100, 25.2
 * million documents, two calls of n ORs in flight, in us a call, without raising and with it: k = 10, n = 4: 71 and 84,
 * n = 8: 97 and 107, n = 12: 122 and 119, n = 16: 145 and 138; k = 1,000, n = 2: 116 and 130, n = 4: 167 and 161,
 * n = 16: 374 and 278; one call of 16, of which one is costly: 476 and 201 (tools/results/bench_cuda-small.txt). */
#define GC_UNRAISED(k) ((k) < 100 ? 8u : 3u)
#define GC_BRIEF 2u /* queries at most whose plan is a kernel's parameter: see gc_letter */
#define GC_LETTER 3072u /* bytes of a plan that a kernel takes as a parameter */
#define GC_RAISE_LEAST 32u /* candidates by which a floor is raised at least */
#define GC_RAISE_READ 512u /* the last ones, that are looked at then */
#define GC_RAISE_MOST 1024u /* the same at most, times k */
#define GC_GROUP 8 /* driver blocks that a warp takes at once: few, or the last ones to end keep all waiting */
#define GC_GUIDED_BLOCKS 4 /* blocks of threads a multiprocessor at least, of gc_and_guided and gc_max_plan; 5 spill */
#define GC_MAX_BLOCKS 6 /* the same of gc_max */
#define GC_ALONE_BLOCKS 3 /* the same of gc_alone */
/* What it costs to follow a block's postings through the other lists, in blocks added to tiles. */
#define GC_PROBE_COST 1u
#define GC_PROBE_ALONE 8u /* the same where floors are not raised, which waits for the last block, or by decoding */
#define GC_TILE_COST 8u /* of a tile, in blocks added to it */

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
