
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
