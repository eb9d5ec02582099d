
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
