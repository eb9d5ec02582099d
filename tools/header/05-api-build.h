
/* ========
 * [api-build]  building an index
 * ======*/

typedef struct gpuir_analyzer_desc {
  /* "ascii"; "basic" (NULL), the same words with accents folded; "unicode" and "text", where utf8proc is linked; or the
   * name of `tokenize`. With GPUIR_NO_FOLD NULL is "ascii" */
  const char *analyzer;
  const char *stem; /* a libstemmer algorithm such as "porter" or "english"; NULL: none */
  const char *stop; /* built-in stop list "english"; NULL: none */
  const char *stop_words; /* or a list of words parted by white space; not with `stop` */
  gpuir_tokenize_fn tokenize; /* the caller's own tokenizer; `analyzer` must then name it */
  void *tokenize_user;
  gpuir_tokenize_places_fn tokenize_places; /* in place of `tokenize`: one whose tokens may share a position */
  int no_fold; /* not 0: the analyzer "text" tells accents apart */
} gpuir_analyzer_desc;

typedef struct gpuir_progress {
  uint64_t documents, bytes; /* added so far */
  uint64_t terms_done; /* of the final merge; 0 before */
  uint64_t postings_done, postings_total;
} gpuir_progress;

#define GPUIR_DENSE_NONE (-1) /* see gpuir_builder_desc.dense */

/* Codecs of docIDs, "NAME" or "NAME:PARAM" (the index keeps the string):
 *   bp128, vbyte, pfd, newpfd, optpfd, ef, rice
 *   qs[:C]                  C, 0.25 to 4 (1): log2 of C u / n lower bits
 *   pfd-list[:LEVELS]       0 to 4 (1) levels by which exceptions are compressed recursively
 *   parapfor[:[S][,E]]      segments of S = 64, 128 (default) or 256; E, 0 to 1 (0.1): the proportion of
 *                           exceptions a segment at most, or "min" for its smallest size
 *   lrc, lrcseg, seglrc     the same, by default :256,0
 *   hslrc[:[S][,E]]         buckets of S = 32, 64, 128 or 256 (default) docIDs on average; E as above (0)
 *   auto[:W]                of each list the codec that makes bytes * (1 + W * cost) least; W, 0 (default:
 *                           the smallest) to 1, is the weight of speed, cost that of decoding relative
 *                           to bp128: fixed figures, so that the same input gives the same bytes */
typedef struct gpuir_builder_desc {
  const char *path; /* of the index to write; copied */
  const gpuir_allocator *allocator; /* copied; NULL: malloc */
  gpuir_analyzer_desc analyzer; /* strings copied */
  const char *codec; /* docIDs: a codec and its parameter, see above; NULL: "bp128" */
  const char *freq_codec; /* frequencies: "bp128" (NULL), "vbyte", "newpfd", "optpfd" or "auto[:W]" */
  int custom_bm25; /* not 0: k1 and b below; otherwise 0.9 and 0.4 */
  float k1, b; /* k1 in [0, 1000], b in [0, 1] */
  uint64_t memory; /* budget in bytes for anonymous memory; 0: 512 MiB */
  unsigned threads; /* 0: as many as processors */
  int store_text; /* keep each document's text in the index */
  int positions; /* keep where in its documents each term stands: for phrases */
  const char *description; /* of the corpus, one line; NULL: "" */
  /* The programs that turned files into texts: for each ending of a file's name the program with its arguments, as
   * in "pdf=pdftotext - -", separated by tabs. One line, which the library never interprets. NULL: "" */
  const char *filters;
  /* Other choices that decide which text a source gives, such as the members of its records that are text. One
   * line, which the library never interprets. NULL: "" */
  const char *reading;
  /* The order in which documents come, named in at most 63 bytes: "original" (the collection's), "bisect" ...; never
   * interpreted. NULL: not known */
  const char *order;
  int simd; /* GPUIR_SIMD_ level */
  /* Lists of at least one document in so many, 1 to 128, get bits beside their blocks, in an index of 65,536 documents
   * or more: counts of frequent words take a fraction of the time, searches less than otherwise, and the file grows.
   * The hits are the same. 0: the default, 16; GPUIR_DENSE_NONE: no list. */
  int dense;
  /* An open index that the new one resembles. Its analyzer is taken in place of `analyzer`, and its codecs, k1, b,
   * description, filters, reading, order and fields where they are not given here. It may be closed once the
   * builder is created. NULL: none. */
  const gpuir_index *like;
  /* Called from the adding thread now and then; not 0 stops with GPUIR_E_CANCELLED. */
  int (*progress)(void *user, const gpuir_progress *progress);
  void *progress_user;
  /* What documents carry beside their text, [nfields], at most GPUIR_MAX_FIELDS of different names; copied. See
   * [api-columns]. NULL: nothing, and the index has the bytes that it would have without fields. */
  const gpuir_field *fields;
  size_t nfields;
} gpuir_builder_desc;

/* What a document is called and where it comes from; all optional, copied. */
typedef struct gpuir_doc_desc {
  const char *name; /* name_len bytes; may repeat, is never interpreted */
  size_t name_len;
  const char *source; /* path; stored once, whatever documents share it */
  size_t source_len;
  uint32_t first_line; /* from 1; 0: the whole file */
  uint32_t last_line;
  uint64_t source_offset, source_bytes; /* see gpuir_doc; they count only with a source */
  /* XXH3-64 of the source's bytes, see gpuir_doc. The library computes it for a text that is as long as
   * source_bytes, or that has no known place in a source. All others take this one: a record that is not the text,
   * or a document copied without its text. */
  uint64_t hash;
  /* The caller's number for how the text was made from the source's bytes, which the library never interprets. 0:
   * the bytes are the text, or nobody can make it again. It counts only with a source. */
  uint32_t form;
  /* For gpuir_builder_add_text and gpuir_live_add with the analyzer "text". `also` has words that are searched
   * behind the text, such as those of its path: the last 32 count, and no phrase goes over the gap before them.
   * `defines` has names that the document defines, parted by white space, for gpuir_look: each becomes a term of the
   * byte FF, d, and its segments, parted by FF. Both are not stored, and have at most 2^24 bytes. */
  const char *also, *defines;
  size_t also_len, defines_len;
  /* What it has in the index's fields, [nvalues], in any order: of a key or a path at most GPUIR_MAX_VALUES, of which
   * repeated ones count once; of a number or a date at most one. */
  const gpuir_value *values;
  size_t nvalues;
} gpuir_doc_desc;

typedef struct gpuir_term_freq {
  const char *term; /* 1 to 255 bytes, taken as they are; distinct within a document */
  size_t len;
  uint32_t tf; /* at least 1 */
} gpuir_term_freq;

typedef struct gpuir_build_report {
  uint64_t documents, terms, postings, tokens;
  uint64_t dropped_tokens; /* of over 255 bytes, in what was given to gpuir_builder_add_text */
  uint64_t lost_documents; /* that had no other tokens, and so cannot be found */
  uint64_t text_bytes; /* given to gpuir_builder_add_text */
  uint64_t runs; /* sorted runs that were merged */
  uint64_t peak_memory; /* bytes of anonymous memory the builder held at most */
  uint64_t file_bytes;
  int shared_folder; /* 1: other users may write the index's folder, and so replace the index */
} gpuir_build_report;

typedef struct gpuir_builder gpuir_builder;

/* Starts an index. Takes the lock on PATH.tmp. Errors: ARGUMENT (also for a path in the folder of a live index), NOMEM,
 * IO, BUSY, UNSUPPORTED. */
GPUIR_API int gpuir_builder_create(const gpuir_builder_desc *desc, gpuir_builder **builder, gpuir_error *err);
/* Adds the next document, whose docID is the number of documents added before. `text` is any
 * bytes; it is copied. After an error other than ARGUMENT the builder can only be destroyed.
 * Errors: ARGUMENT, NOMEM, IO, LIMIT, CANCELLED. */
GPUIR_API int gpuir_builder_add_text(gpuir_builder *builder, const gpuir_doc_desc *doc, const char *text, size_t len,
    gpuir_error *err);
/* Adds a document from counted terms. The document's length is the sum of tf. Errors: the same;
 * ARGUMENT for an empty or too long term, tf 0, or a term given twice, and with desc.positions. */
GPUIR_API int gpuir_builder_add_terms(gpuir_builder *builder, const gpuir_doc_desc *doc, const gpuir_term_freq *terms,
    size_t n, gpuir_error *err);
/* Adds a document to an index from postings instead of texts: first every document by gpuir_builder_add_doc, then every
 * list by gpuir_builder_add_list; not together with the two functions above. A length counts the document's tokens;
 * `text` is only stored (NULL, or when store_text is 0: not even that). Errors: as above. */
GPUIR_API int gpuir_builder_add_doc(gpuir_builder *builder, const gpuir_doc_desc *doc, uint32_t length,
    const char *text, size_t len, gpuir_error *err);
/* Adds a term's list: term t[0..len) comes behind those before it in byte order; docids[0..df) ascend and name added
 * documents, tfs[0..df) are at least 1. With desc.positions, positions[] has tfs[0] ascending positions in the first
 * document, then tfs[1] in the second ..., each below the document's length; otherwise it is NULL. Copied. Errors: the
 * same; ARGUMENT for a list that is not so. */
GPUIR_API int gpuir_builder_add_list(gpuir_builder *builder, const char *term, size_t len, const uint32_t *docids,
    const uint32_t *tfs, const uint32_t *positions, uint32_t df, gpuir_error *err);
/* Says what was left out of the index, in one line of at most 4,096 bytes, which is copied and which the library never
 * interprets: gpuir_index_info.skipped gives it back. Said again it replaces what was said; "" is not written. It is of
 * one file: `like` does not give it to another. Errors: ARGUMENT, NOMEM. */
GPUIR_API int gpuir_builder_skipped(gpuir_builder *builder, const char *text, gpuir_error *err);
/* Merges and writes the index; `report` may be NULL. Once, after which only _destroy is allowed.
 * Errors: NOMEM, IO, LIMIT, CANCELLED. */
GPUIR_API int gpuir_builder_write(gpuir_builder *builder, gpuir_build_report *report, gpuir_error *err);
/* Frees everything; without a successful write no trace is left on disk. */
GPUIR_API void gpuir_builder_destroy(gpuir_builder *builder);
