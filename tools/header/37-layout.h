
/* ========
 * [37-layout]  index file: layout; a segment and an index in memory
 *
 * header (64 bytes) | section table (32 bytes each) | sections
 *
 * Each section starts 64-byte aligned and is followed by at least 64 bytes of zeros, so that
 * decoders may read past its end. The header holds a checksum of the table, the table one of each
 * section. A reader skips sections that it does not know, unless they are marked as required.
 *
 * A file that is open is a gpuir__segment, a segment of an index with its deleted documents a gpuir__leaf.
 *
 * Uses      [24-postings], [27-bounds], [28-encoder], [30-analysis], [32-dictionary], [33-analyzers], [34-fields].
 * Start at  GPUIR__SECTIONS (one row a section), gpuir__segment, gpuir__leaf.
 * Tests     tests/unit/37_layout.c
 * ======*/

#define GPUIR__FORMAT 2u
#define GPUIR__ALIGN 64u
#define GPUIR__MAX_SECTIONS 256u
#define GPUIR__MAX_DOCUMENTS 0xfffffffeu /* docIDs stay below GPUIR_END */
#define GPUIR__REQUIRED 1u /* section flag */
#define GPUIR__ORDER_MAX 63u /* bytes of an order's name */
#define GPUIR__JOINED_MAX 256u /* bytes of a name that begins as its source's path ends */

typedef struct gpuir__header {
  uint8_t magic[8];
  uint32_t format, sections;
  uint64_t file_size;
  uint64_t table_hash; /* XXH3 of the section table */
  uint64_t zero[3];
  uint64_t hash; /* XXH3 of the 56 bytes above */
} gpuir__header;

/* What the manifest of a live index begins with: see [64-folder]. */
static const uint8_t gpuir__manifest_magic[8] = {'G', 'P', 'U', 'I', 'R', 'L', 0x0a, 0x1a};

static const uint8_t gpuir__magic[8] = {'G', 'P', 'U', 'I', 'R', 0x0d, 0x0a, 0x1a};

typedef struct gpuir__section {
  uint32_t id, flags;
  uint64_t offset, length;
  uint64_t hash; /* XXH3 of its bytes */
} gpuir__section;

/* The sections, a row each, in the order of the file. From this table are made the ids GPUIR__S_*, the writer's spools
 * GPUIR__W_* and its plan of the file, the reader's pointers, the sums of gpuir_index_get_info, and the offsets that
 * gpuir_verify follows. The columns of a row are
 *
 *     id        the number in the file, never used again for another section
 *     name      of GPUIR__S_<name> and GPUIR__W_<name>
 *     presence  GPUIR__P_<presence>: when the writer writes it, and whether a reader must know it
 *     batch     the buffer of gpuir__batch that the writer appends as it is; 0: the writer makes the bytes
 *     item      the type of an item
 *     items     GPUIR__N_<items>: how many items there must be
 *     group     GPUIR__G_<group>: the sum of gpuir_index_info that its bytes belong to
 *     field     the member of gpuir__segment that points to its items; 0: it is found by its id
 *
 * and the sections hold
 *
 *     STAT, META                  gpuir__stat; text, lines of key=value
 *     TERMS                       the blocks of the dictionary: terms, sorted, and their records; see [32-dictionary]
 *     TERM_PAGES, TERM_STARTS     where its pages begin; where each block does, relative to its page
 *     TERM_KEYS                   the nodes of its search tree
 *     LONGS                       a gpuir__long a long list
 *     LAST                        a block's last docID
 *     DOCS_OFF, DOCS_WIDTH        where a block's docIDs start in the list, in the codec's unit; their width
 *     FREQS_OFF, FREQS_WIDTH      the same of its frequencies
 *     BOUNDS                      GPUIR__BLOCK_PAIRS pairs a block
 *     SEEDS                       GPUIR__SEEDS items a list of over GPUIR__WHOLE postings
 *     DOCIDS, FREQS               the streams of docIDs and of frequencies, the long lists first
 *     LENGTHS                     a document's length in tokens
 *     NAMES, NAME_START           the documents' names, or what is behind their stems; where each starts, and the end
 *     ORIGINS                     where a document comes from: rows of columns, see gpuir__origin
 *     SOURCES, SOURCE_START       the sources' paths; where each starts, and the end
 *     TEXT, TEXT_START            the documents' text; where each starts, and the end: earlier versions stored it so
 *     STEMS                       an item a source, see gpuir__join_name; absent if all are 0
 *     POSITIONS, POS_OFF          the lists' positions; where each block's begin, in units of 4 bytes from the list's
 *     HASHES                      a document's gpuir_doc.hash
 *     SHARD, TERM_DFS             the collection that it is a part of; in how many of that one's documents a term is
 *     DENSE_LISTS                 of each dense list its number among LONGS, ascending; see [26-dense]
 *     DENSE_BITS                  of each a gpuir__dense_bits a line
 *     DENSE_RANK                  of each, a line, how many postings stand before it
 *     DENSE_PEAKS                 of each a gpuir__dense_peaks a line, of the file's own k1, b and average length
 *     COLUMNS                     a gpuir__column a field, in the order of the meta section's key `columns`
 *     COL_LEAST, COL_MOST         of each column the extremes of each block of 128 documents, see gpuir__column
 *     COL_OFF, COL_FORM           where the block's data begin, in 16 bytes from its column's; width and GPUIR__FORM_
 *     COL_DATA                    the blocks; see [38-notes]
 *     KEY_TEXT, KEY_PAGES         the values of keys and paths, sorted; where each page begins; see [35-keys]
 *     PACKED, PACKED_START        the documents' text, packed in blocks, see [36-documents]; where each starts, and
 * the end
 *     TEXT_AT                     where in the text, before it was packed, each document starts, and the end
 *
 * Sections of starts have numbers of as many whole bytes as the length of the section that they divide, at least 1.
 *
 * The numbers of TEXT_AT have as many whole bytes as the last of them takes, at least 1.
 *
 * A section is added by a row at the end, and by code of the writer that puts its bytes in its spool. Its presence is
 * HINT or a new one, so that indexes without it can be read. */
/* clang-format off */
#define GPUIR__SECTIONS(ROW, FROM, AT) \
  ROW( 1, STAT,         ALWAYS,  0,                 gpuir__stat,   ONE,         NONE,       0) \
  ROW( 2, META,         ALWAYS,  0,                 char,          ANY,         NONE,       0) \
  ROW( 3, TERMS,        ALWAYS,  0,                 uint8_t,       ANY,         DICTIONARY, AT(terms.bytes)) \
  ROW( 4, TERM_PAGES,   ALWAYS,  0,                 gpuir__dict_page, TERM_PAGES, DICTIONARY, AT(terms.pages)) \
  ROW( 5, TERM_STARTS,  ALWAYS,  0,                 uint16_t,      TERM_BLOCKS, DICTIONARY, AT(terms.starts)) \
  ROW( 6, TERM_KEYS,    ALWAYS,  0,                 uint64_t,      TERM_KEYS,   DICTIONARY, AT(terms.keys)) \
  ROW( 8, LONGS,        ALWAYS,  0,                 gpuir__long,   LONGS,       DIRECTORY,  AT(lists.longs)) \
  ROW( 9, LAST,         ALWAYS,  FROM(last),        uint32_t,      BLOCKS,      DIRECTORY,  AT(lists.last)) \
  ROW(10, DOCS_OFF,     ALWAYS,  FROM(docs_off),    uint32_t,      BLOCKS,      DIRECTORY,  AT(lists.docs_off)) \
  ROW(11, DOCS_WIDTH,   ALWAYS,  FROM(docs_width),  uint8_t,       BLOCKS,      DIRECTORY,  AT(lists.docs_width)) \
  ROW(12, FREQS_OFF,    ALWAYS,  FROM(freqs_off),   uint32_t,      BLOCKS,      DIRECTORY,  AT(lists.freqs_off)) \
  ROW(13, FREQS_WIDTH,  ALWAYS,  FROM(freqs_width), uint8_t,       BLOCKS,      DIRECTORY,  AT(lists.freqs_width)) \
  ROW(14, BOUNDS,       ALWAYS,  FROM(bounds),      uint32_t,      BLOCKS,      DIRECTORY,  AT(lists.bounds)) \
  ROW(15, SEEDS,        HINT,    FROM(seeds),       uint32_t,      ANY,         DIRECTORY,  AT(lists.seeds)) \
  ROW(16, DOCIDS,       ALWAYS,  FROM(docs_long),   uint8_t,       ANY,         DOCIDS,     AT(lists.docids)) \
  ROW(17, FREQS,        ALWAYS,  FROM(freqs_long),  uint8_t,       ANY,         FREQS,      AT(lists.freqs)) \
  ROW(18, LENGTHS,      ALWAYS,  0,                 uint32_t,      DOCUMENTS,   DOCUMENTS,  AT(lengths)) \
  ROW(19, NAMES,        ALWAYS,  0,                 char,          ANY,         DOCUMENTS,  0) \
  ROW(20, NAME_START,   ALWAYS,  0,                 uint8_t,       DOC_ENDS,    DOCUMENTS,  0) \
  ROW(21, ORIGINS,      ORIGINS, 0,                 uint8_t,       ANY,         DOCUMENTS,  0) \
  ROW(22, SOURCES,      ORIGINS, 0,                 char,          ANY,         DOCUMENTS,  0) \
  ROW(23, SOURCE_START, ORIGINS, 0,                 uint8_t,       ENDS,        DOCUMENTS,  0) \
  ROW(24, TEXT,         TEXT,    0,                 char,          ANY,         TEXT,       0) \
  ROW(25, TEXT_START,   TEXT,    0,                 uint8_t,       DOC_ENDS,    TEXT,       0) \
  ROW(26, STEMS,        STEMS,   0,                 uint32_t,      ANY,         DOCUMENTS,  0) \
  ROW(27, POSITIONS,    POSITIONS, FROM(positions), uint8_t,       ANY,         POSITIONS,  AT(lists.positions)) \
  ROW(28, POS_OFF,      POSITIONS, FROM(positions_off), uint32_t,  BLOCKS,      POSITIONS,  AT(lists.positions_off)) \
  ROW(29, HASHES,       HASHES,  0,                 uint64_t,      DOCUMENTS,   DOCUMENTS,  0) \
  ROW(30, SHARD,        SHARD,   0,                 gpuir__shard,  ONE,         NONE,       AT(shard)) \
  ROW(31, TERM_DFS,     SHARD,   0,                 uint32_t,      TERMS,       DICTIONARY, AT(dfs)) \
  ROW(32, DENSE_LISTS,  DENSE,   0,                 uint32_t,      ANY,         DIRECTORY,  AT(dense.lists)) \
  ROW(33, DENSE_BITS,   DENSE,   FROM(dense_bits),  gpuir__dense_bits, DENSE_LINES, DIRECTORY, AT(dense.lines.bits)) \
  ROW(34, DENSE_RANK,   DENSE,   FROM(dense_rank),  uint32_t,      DENSE_LINES, DIRECTORY,  AT(dense.lines.rank)) \
  ROW(35, DENSE_PEAKS,  DENSE,   FROM(dense_peaks), gpuir__dense_peaks, DENSE_LINES, DIRECTORY, AT(dense.lines.peaks)) \
  GPUIR__COLUMN_SECTIONS(ROW, AT) \
  ROW(50, PACKED,       PACKED,  0,                 uint8_t,       ANY,         TEXT,       0) \
  ROW(51, PACKED_START, PACKED,  0,                 uint8_t,       ENDS,        TEXT,       0) \
  ROW(52, TEXT_AT,      PACKED,  0,                 uint8_t,       PLACES,      TEXT,       0)
#ifdef GPUIR_NO_COLUMNS
#define GPUIR__COLUMN_SECTIONS(ROW, AT)
#else
#define GPUIR__COLUMN_SECTIONS(ROW, AT) \
  ROW(36, COLUMNS,      COLUMNS, 0,                 gpuir__column, ANY,         COLUMNS,    AT(columns.rows)) \
  ROW(37, COL_LEAST,    COLUMNS, 0,                 uint64_t,      ANY,         COLUMNS,    AT(columns.least)) \
  ROW(38, COL_MOST,     COLUMNS, 0,                 uint64_t,      ANY,         COLUMNS,    AT(columns.most)) \
  ROW(39, COL_OFF,      COLUMNS, 0,                 uint32_t,      ANY,         COLUMNS,    AT(columns.off)) \
  ROW(40, COL_FORM,     COLUMNS, 0,                 uint16_t,      ANY,         COLUMNS,    AT(columns.form)) \
  ROW(41, COL_DATA,     COLUMNS, 0,                 uint8_t,       ANY,         COLUMNS,    AT(columns.data)) \
  ROW(42, KEY_TEXT,     COLUMNS, 0,                 uint8_t,       ANY,         COLUMNS,    AT(columns.text)) \
  ROW(43, KEY_PAGES,    COLUMNS, 0,                 uint64_t,      ANY,         COLUMNS,    AT(columns.pages))
#endif
/* clang-format on */

#define GPUIR__SECTION_ID(id, name, presence, batch, item, items, group, field) GPUIR__S_##name = (id),
enum {
  GPUIR__SECTIONS(GPUIR__SECTION_ID, , ) /* and behind the greatest: */
  GPUIR__S_COUNT
};

/* When a section is written. The reader refuses an index that lacks one that is written always. */
enum {
  GPUIR__P_ALWAYS, /* required */
  GPUIR__P_HINT, /* written always; a reader can do without it */
  GPUIR__P_ORIGINS, /* when a document has a source; a reader can do without it */
  GPUIR__P_HASHES, /* when a document's hash is known; a reader can do without it */
  GPUIR__P_DENSE, /* when a list is dense; a reader can do without them */
  GPUIR__P_COLUMNS, /* when there are fields, which the meta section says too; a reader can do without them */
  GPUIR__P_TEXT, /* where earlier versions stored texts, which the meta section says too; required */
  GPUIR__P_STEMS, /* when a name is joined to a stem; required, as names are wrong without it */
  GPUIR__P_POSITIONS, /* when positions were asked for; required */
  GPUIR__P_SHARD, /* in a part of a collection (gpuir_shard_write); required, or scores are others */
  GPUIR__P_PACKED, /* when texts are stored, which the meta section says too; required */
  GPUIR__P_COUNT
};

/* How many items a section has. */
enum {
  GPUIR__N_ANY, /* any number */
  GPUIR__N_ONE, /* 1 */
  GPUIR__N_TERM_PAGES, /* one a page of the dictionary, a block of it; GPUIR__DICT_FAN a node of its tree */
  GPUIR__N_TERM_BLOCKS,
  GPUIR__N_TERM_KEYS,
  GPUIR__N_LONGS, /* one a list of over GPUIR__SHORT_MAX postings */
  GPUIR__N_BLOCKS, /* one a block of such a list */
  GPUIR__N_DOCUMENTS,
  GPUIR__N_TERMS,
  GPUIR__N_DENSE_LINES, /* one a line of each dense list */
  GPUIR__N_DOC_ENDS, /* offsets into the section of the row before: one a document, and the end */
  GPUIR__N_ENDS, /* the same, any number of them and the end */
  GPUIR__N_PLACES /* offsets into the text before it was packed: one a document, and the end */
};

/* The sums of sections' bytes in gpuir_index_info. */
enum {
  GPUIR__G_NONE,
  GPUIR__G_DICTIONARY,
  GPUIR__G_DIRECTORY,
  GPUIR__G_DOCIDS,
  GPUIR__G_FREQS,
  GPUIR__G_DOCUMENTS,
  GPUIR__G_TEXT,
  GPUIR__G_POSITIONS,
  GPUIR__G_COLUMNS,
  GPUIR__G_COUNT
};

typedef struct gpuir__stat {
  uint64_t documents, terms, postings, tokens;
  uint64_t longs, blocks;
  uint64_t inline_postings;
  uint64_t docs_short, freqs_short; /* where the short lists start in the stream sections */
  float k1, b;
  uint64_t zero;
} gpuir__stat;

/* What a part of a collection knows of the whole. */
typedef struct gpuir__shard {
  uint64_t documents, tokens; /* of the collection */
  uint64_t first; /* number of its first document there */
  uint32_t number, shards;
  uint64_t identity[2]; /* of the statistics */
  uint64_t zero;
} gpuir__shard;

/* A field's column. Numbers are kept less the least of all, divided by their divisor; keys and paths as ranks from 1, 0
 * where a document has none. So are the extremes of blocks. Where no document of a block has a number, its least is
 * greater than its most. */
typedef struct gpuir__column {
  uint32_t kind, decimals;
  uint64_t blocks; /* of 128 documents */
  uint64_t values; /* of keys and paths distinct ones, otherwise those that documents have */
  int64_t least;
  uint64_t divisor; /* the greatest of all values less the least; at least 1 */
  uint64_t data; /* where in COL_DATA its blocks begin */
  uint64_t page; /* of KEY_PAGES its first */
  uint64_t zero;
} gpuir__column;

/* What a block is, beside packed numbers. */
enum { GPUIR__FORM_TABLE = 1, GPUIR__FORM_MIXED = 2, GPUIR__FORM_SEVERAL = 4 };

/* The columns of a row of the origins. The section begins with 8 bytes, the width of each column in bytes and zeros; a
 * row a document follows. */
enum {
  GPUIR__O_SOURCE, /* index + 1; 0: none */
  GPUIR__O_LINE, /* first_line */
  GPUIR__O_LINES, /* last_line - first_line */
  GPUIR__O_OFFSET,
  GPUIR__O_BYTES,
  GPUIR__O_FORM, /* earlier versions wrote no such column: its width is 0 then */
  GPUIR__O_COUNT
};
#define GPUIR__ORIGINS_HEAD 8u

typedef struct gpuir__origin {
  uint64_t of[GPUIR__O_COUNT];
} gpuir__origin;

/* Returns the bytes that numbers of at most `most` take. */
static inline unsigned gpuir__number_width(uint64_t most) { return (gpuir__width64(most) + 7) / 8; }

/* Returns the bytes that a number takes which divides a section of this length. */
static inline unsigned gpuir__start_width(uint64_t length) { return length ? gpuir__number_width(length) : 1; }

/* Loads a number of `width` <= 8 bytes; 8 are read. */
static inline uint64_t gpuir__load_number(const uint8_t *p, unsigned width) {
  return gpuir__load64(p) & (width < 8 ? gpuir__low_bits64(8 * width) : UINT64_MAX);
}

/* The lists' streams, and the directory of the long ones. */
typedef struct gpuir__index_lists {
  const gpuir__long *longs;
  const uint32_t *last, *docs_off, *freqs_off;
  const uint8_t *docs_width, *freqs_width;
  const uint32_t *bounds;
  const uint32_t *seeds; /* NULL: absent */
  uint64_t nseeds; /* lists that have seeds */
  const uint8_t *docids, *freqs;
  const uint8_t *positions; /* NULL: absent */
  const uint32_t *positions_off;
} gpuir__index_lists;

/* The dense lists' sections: all are there, or none is. */
typedef struct gpuir__index_dense {
  const uint32_t *lists; /* [n] numbers among the long lists */
  uint64_t n; /* 0: there are none */
  gpuir__dense lines; /* of the first; those of the next lie behind them */
} gpuir__index_dense;

/* The columns' sections: all are there, or none is. */
typedef struct gpuir__index_columns {
  gpuir__schema *fields; /* NULL: there are none */
  uint64_t blocks; /* of each column */
  const gpuir__column *rows;
  const uint64_t *least, *most; /* [column * blocks + block] */
  const uint32_t *off;
  const uint16_t *form;
  const uint8_t *data, *text;
  const uint64_t *pages;
} gpuir__index_columns;

/* The keys of the meta section, in its order, each a member of gpuir__index_meta: KEY(name, named, alike); named: it is
 * written also if it is empty; alike: all segments of an index have the same. That of dense lists (D, if the builder
 * was told one) may differ, since a version that does not know it leaves it out of the segments that it adds; so may
 * the number of documents with names of source files, which is told with the analyzer "text". */
#define GPUIR__META(KEY) \
  KEY(analyzer, 1, 1) \
  KEY(analyzer_revision, 1, 1) \
  KEY(stop_words, 1, 1) \
  KEY(fields, 1, 1) \
  KEY(codec, 1, 1) \
  KEY(freq_codec, 1, 1) \
  KEY(tool, 1, 0) \
  KEY(description, 1, 0) \
  KEY(filters, 0, 1) \
  KEY(reading, 0, 1) \
  KEY(order, 0, 0) \
  KEY(store, 0, 1) \
  KEY(positions, 0, 1) \
  KEY(dense, 0, 0) \
  KEY(columns, 0, 1) \
  KEY(sources, 0, 0) \
  KEY(skipped, 0, 0)
#define GPUIR__META_MEMBER(name, named, alike) const char *name;
#define GPUIR__META_KEY(name, named, alike) {#name, offsetof(gpuir__index_meta, name), named, alike},

/* What the meta section says; "" where it says nothing. */
typedef struct gpuir__index_meta {
  char *text; /* NUL-terminated strings, pointed to below */
  size_t text_size;
  GPUIR__META(GPUIR__META_MEMBER)
} gpuir__index_meta;

static const struct {
  const char *key;
  size_t field;
  int named, alike;
} gpuir__meta_keys[] = {GPUIR__META(GPUIR__META_KEY)};
#define GPUIR__META_KEYS (sizeof gpuir__meta_keys / sizeof gpuir__meta_keys[0])

/* Returns what the meta section says for key i. */
static const char **gpuir__meta_value(const gpuir__index_meta *meta, size_t i) {
  return (const char **)(void *)((uint8_t *)(uintptr_t)meta + gpuir__meta_keys[i].field);
}

/* How queries become terms. */
typedef struct gpuir__index_analysis {
  gpuir__tokenizer own;
  gpuir__analyzers *pool; /* of analyzers */
} gpuir__index_analysis;

/* How many of a term's postings are of deleted documents. */
typedef struct gpuir__log_count {
  uint32_t id; /* of the term, plus 1; 0: a free entry */
  uint32_t n; /* of the log's first n documents */
  uint32_t deleted; /* postings */
} gpuir__log_count;

/* Documents deleted from a segment, in order of deletion. It only grows, and what is in it never moves: each snapshot
 * has the first so many of it, see gpuir__deleted. */
#define GPUIR__LOG_CHUNKS 26u
typedef struct gpuir__log {
  pthread_mutex_t mutex; /* guards all but what chunks point to */
  uint32_t n;
  uint32_t *chunk[GPUIR__LOG_CHUNKS]; /* [i] 64 << i docIDs, or NULL */
  gpuir__log_count *counts; /* [mask + 1] by term; one that comes takes another's place. NULL: n is 0 */
  uint32_t mask;
  uint64_t decoded; /* blocks, to count postings; the tests look at it */
} gpuir__log;

#define GPUIR__KEPT_SIEVES 16u

/* Kept numbers, or ranks; both ends count. */
typedef struct gpuir__range {
  uint64_t low, high;
} gpuir__range;

/* A predicate in a segment. */
typedef struct gpuir__sieve_test {
  uint32_t first, n; /* its ranges */
  uint8_t column, negated, group;
} gpuir__sieve_test;

enum { GPUIR__BLOCK_UNKNOWN, GPUIR__BLOCK_TAKEN, GPUIR__BLOCK_KNOWN };

/* A where in a segment: see [50-sieve]. */
typedef struct gpuir__sieve {
  gpuir_allocator a;
  size_t size; /* bytes of all of it */
  uint64_t refs; /* owners, counted atomically */
  const struct gpuir__segment *seg;
  char *text; /* the where's, with a NUL behind it */
  size_t len;
  unsigned n; /* predicates */
  gpuir__sieve_test *tests;
  gpuir__range *ranges; /* of a predicate ascending and apart */
  uint64_t blocks, words;
  gpuir__atomic64 known, passing; /* blocks; documents of them that pass */
  uint8_t *state; /* [block] read and written atomically */
  uint64_t *fails; /* [word] a bit a document that does not pass, of blocks that are known */
} gpuir__sieve;

/* One mapped file; docIDs count from 0 in it. */
typedef struct gpuir__segment {
  gpuir_allocator a;
  uint64_t refs; /* snapshots that have it, counted atomically */
  int simd; /* resolved level */
  const uint8_t *map; /* the file's bytes */
  uint64_t size;
  int mapped; /* 0: the caller's memory */
  gpuir__identity file; /* that is mapped */
  char path[84]; /* its end, for messages */
  const gpuir__section *table;
  uint32_t nsections;
  const gpuir__section *section[GPUIR__S_COUNT]; /* NULL: absent */
  gpuir__stat stat;
  gpuir__dict terms;
  gpuir__index_lists lists;
  gpuir__index_dense dense;
  const uint32_t *lengths; /* [docID] */
  const gpuir__shard *shard; /* NULL: no part of a collection */
  const uint32_t *dfs; /* [term] in how many documents of the collection it is; NULL: the same */
  gpuir__index_meta meta;
  gpuir__index_columns columns;
  int strange; /* a meta key or a section of a later version, which a writer would lose */
  uint64_t number; /* in a live index's folder; 0: a file by itself */
  gpuir__log log;
  gpuir__sieve *sieves[GPUIR__KEPT_SIEVES]; /* kept for queries with the same where; the log's mutex guards them */
  unsigned next_sieve; /* the place that is given away next */
} gpuir__segment;

/* The documents deleted from a segment, as snapshots share them. */
typedef struct gpuir__deleted {
  gpuir_allocator a;
  uint64_t refs; /* snapshots that have them, counted atomically */
  uint32_t n; /* the first n of the segment's log, n > 0 */
  uint64_t tokens; /* their lengths */
  uint64_t words;
  uint64_t bits[1]; /* [words] a bit a document */
} gpuir__deleted;

/* A segment as a snapshot has it. */
typedef struct gpuir__leaf {
  gpuir__segment *seg;
  gpuir__deleted *deleted; /* NULL: none */
  uint32_t base; /* the snapshot's number of its first document */
} gpuir__leaf;

typedef struct gpuir__calls gpuir__calls; /* see [63-execution] */

/* An immutable snapshot: segments, whose documents follow one another, and what they come to together. */
struct gpuir_index {
  uint32_t layout; /* gpuir__index_layout(), the first member in every version */
  gpuir_allocator a;
  int simd; /* resolved level */
  char path[84];
  gpuir__leaf *leaves; /* [nleaves] at least one */
  size_t nleaves;
  gpuir__leaf only; /* leaves[0] of a snapshot of one segment */
  gpuir_index *alone; /* [nleaves] each segment as an index of its own; NULL: this is one */
  uint64_t documents, tokens; /* live ones */
  uint64_t collection; /* documents that an idf counts: of a shard its collection's, otherwise the live ones */
  uint64_t docids; /* the least number that no document has had */
  uint64_t generation, content; /* of a live index's manifest; 0: not of one */
  double average_length;
  gpuir__norm norm; /* of the stored k1 and b */
  gpuir__saturation *saturation; /* of the same, see gpuir__index_saturation; NULL until it is needed */
  gpuir__index_analysis analysis;
  const gpuir__calls *calls; /* what the CUDA backend calls; NULL: the index does not go there */
};

/* The CUDA backend has a copy of the implementation and reads structures that the program's copy made. Their first
 * member is a number of the version and of the structures' shape, by which it refuses another header's. */
#define GPUIR__LAYOUT(size, place, other) \
  (((GPUIR_VERSION_NUMBER * 8191u + (uint32_t)(size)) * 8191u + (uint32_t)(place)) * 8191u + (uint32_t)(other))

static inline uint32_t gpuir__index_layout(void) {
  return GPUIR__LAYOUT(sizeof(gpuir_index) + sizeof(gpuir__segment), offsetof(gpuir__segment, lengths),
      sizeof(gpuir__list));
}

/* A row of GPUIR__SECTIONS. */
typedef struct gpuir__section_row {
  uint32_t id, presence, items, group;
  size_t item_size;
  size_t batch; /* 1 + the buffer's offset in gpuir__batch, or 0 */
  size_t field; /* the member's offset in gpuir__segment, or 0 */
} gpuir__section_row;

#define GPUIR__SECTION_FROM(buffer) (1 + offsetof(gpuir__batch, buffer))
#define GPUIR__SECTION_AT(field) offsetof(gpuir__segment, field)
#define GPUIR__SECTION_ROW(id, name, presence, batch, item, items, group, field) \
  {id, GPUIR__P_##presence, GPUIR__N_##items, GPUIR__G_##group, sizeof(item), batch, field},
static const gpuir__section_row gpuir__section_rows[] = {
    GPUIR__SECTIONS(GPUIR__SECTION_ROW, GPUIR__SECTION_FROM, GPUIR__SECTION_AT)};
#define GPUIR__SECTION_ROWS ((unsigned)(sizeof gpuir__section_rows / sizeof gpuir__section_rows[0]))
