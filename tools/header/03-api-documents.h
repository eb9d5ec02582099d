
/* ========
 * [api-documents]  documents, terms, statistics
 * ======*/

typedef struct gpuir_index_info {
  uint64_t documents, tokens; /* tokens: the sum of document lengths */
  uint64_t docids; /* all docIDs lie below: documents, and those that were deleted and not merged away */
  uint64_t segments; /* files; what follows of terms, lists and bytes is summed up over them */
  uint64_t terms, postings;
  /* Of the terms: those that the analyzer "text" makes beside words, such as pairs of neighbours. They begin with a
   * byte FF, which no text in UTF-8 has, and so come last. Of other analyzers 0. */
  uint64_t private_terms;
  double average_length; /* tokens / documents; 0 without documents; of a shard its collection's */
  float k1, b; /* BM25 parameters stored in the index */
  uint64_t file_bytes;
  uint64_t docids_bytes, freqs_bytes, directory_bytes; /* of lists with two postings or more */
  uint64_t inline_postings; /* lists of one posting, kept in the term's record */
  uint64_t dictionary_bytes, documents_bytes, text_bytes;
  double bits_per_posting; /* (docIDs + frequencies + directory + 8 bytes an inline posting) */
  const char *analyzer; /* its specification, e.g. "ascii stem=porter stop=english" */
  char language[72]; /* whose words are stemmed, as its stemmer is called, "english" for all of English; "": none */
  const char *codec; /* of docIDs: the builder's choice */
  const char *freq_codec;
  const char *description; /* of the corpus, as given to the builder */
  const char *filters; /* that made texts of sources, as given to the builder */
  const char *reading; /* how texts were made of sources, as given to the builder */
  const char *order; /* of the documents, as given to the builder; "unknown" when it was not */
  uint64_t generation; /* of a live index: the number of commits; of a file 0 */
  uint64_t content; /* of a live index: the number of commits that changed its documents; of a file 0 */
  const char *tool; /* what wrote the file */
  int has_text; /* documents carry their text */
  int has_positions; /* phrases can be asked for */
  uint64_t positions_bytes;
  uint64_t columns_bytes; /* of fields' columns, with the values of keys and paths */
  const char *skipped; /* what was left out of the file, as given to the builder; "" for nothing, and of a live index */
} gpuir_index_info;

/* Fills *info. Strings live as long as the index, and are those of its first segment. */
GPUIR_API int gpuir_index_get_info(const gpuir_index *index, gpuir_index_info *info);
/* Returns the i-th segment of the index as an index of its own, whose document d is the index's *base + d (base may be
 * NULL); NULL behind the last one. It is released with `index`. Thread-safe. */
GPUIR_API const gpuir_index *gpuir_index_segment(const gpuir_index *index, size_t i, uint32_t *base);

/* A document. All pointers live until gpuir_close, and so does a copy of this struct; no text is NUL-terminated. */
typedef struct gpuir_doc {
  /* The name is name_piece[0] with name_piece[1] behind it: see gpuir_doc_name. A name that begins as its source's path
   * ends, such as that of a chunk, is stored without that beginning; all others are one piece, and the second is "". */
  size_t name_len; /* bytes of both; 0: no name was given */
  const char *name_piece[2];
  size_t name_piece_len[2];
  const char *source; /* path of the file the document came from; len 0: none */
  size_t source_len;
  uint32_t first_line; /* lines [first_line, last_line] of source, from 1; 0: the whole file */
  uint32_t last_line;
  /* Bytes [source_offset, source_offset + source_bytes) of source: the text, or the record that it was taken from. Both
   * 0: not known. */
  uint64_t source_offset, source_bytes;
  uint64_t hash; /* XXH3-64 of these bytes or, where they are not known, of the text; 0: not known */
  uint32_t form; /* how the text was made of these bytes, as given to the builder; 0: they are the text */
  int stored; /* whether the index stores its text, which gpuir_doc_text copies */
  uint64_t stored_bytes; /* of this text */
  /* The stored text, where the file holds it as it is: versions before 0.2 wrote such files. Otherwise NULL, as the
   * text is packed. */
  const char *text;
  size_t text_len;
  uint32_t length; /* tokens */
} gpuir_doc;

/* Describes document `docid`. Thread-safe. Errors: ARGUMENT; NOT_FOUND when docid >= docids or deleted; FORMAT. */
GPUIR_API int gpuir_doc_get(const gpuir_index *index, uint32_t docid, gpuir_doc *doc);
/* Copies bytes [from, from + n) of the stored text of document `docid` to buf[0..n). Blocks of 16 KiB are unpacked, as
 * many as hold these bytes, to the stack: 17 KiB of it are used. Thread-safe. Errors: those of gpuir_doc_get; NOT_FOUND
 * also where texts are not stored; ARGUMENT also for bytes behind the text; FORMAT where a block is damaged. */
GPUIR_API int gpuir_doc_text(const gpuir_index *index, uint32_t docid, uint64_t from, char *buf, size_t n);
/* Copies the document's name to buf[0..cap), cut off where it does not fit, and a NUL behind it (cap 0: nothing, and
 * buf may be NULL). Returns doc->name_len. Names are any bytes, NUL among them. Thread-safe. */
GPUIR_API size_t gpuir_doc_name(const gpuir_doc *doc, char *buf, size_t cap);

typedef struct gpuir_term_info {
  uint64_t id; /* rank in byte order of terms, from 0 */
  char term[GPUIR_MAX_TERM + 1]; /* its bytes, and a NUL behind them */
  size_t term_len;
  uint32_t df; /* documents that hold the term */
  uint64_t cf; /* its occurrences */
  /* ln((2N+2)/(2df+1)), computed in integers: the same bits on every machine; of a shard by its collection's N and
   * df. */
  float idf;
  const char *codec, *freq_codec; /* "inline" for a list of one posting */
  uint64_t docids_bytes, freqs_bytes, directory_bytes, positions_bytes;
  uint32_t blocks; /* of 128 postings */
} gpuir_term_info;

/* Counts the documents that hold a term, given by its bytes (no analysis), and its occurrences in them; df and cf may
 * be NULL. Thread-safe. Errors: ARGUMENT; NOT_FOUND if no document holds it; FORMAT, NOMEM, UNSUPPORTED (its codec). */
GPUIR_API int gpuir_term_count(const gpuir_index *index, const char *term, size_t len, uint32_t *df, uint64_t *cf);
/* Returns ln((2N+2)/(2df+1)) of N documents, in df of which a term stands, as scores have it; 0 if df exceeds N. */
GPUIR_API float gpuir_idf(uint64_t documents, uint32_t df);
/* Finds an indexed term by its bytes (no analysis). Term ids, here and below, are those of one segment: with several,
 * or with deletions, these functions return UNSUPPORTED. Errors: ARGUMENT, NOT_FOUND, UNSUPPORTED. */
GPUIR_API int gpuir_term_find(const gpuir_index *index, const char *term, size_t len, uint64_t *id);
/* Returns the least term id whose term is >= the given bytes: the start of a prefix range. Returns 0 where there
 * are no ids. */
GPUIR_API uint64_t gpuir_term_lower_bound(const gpuir_index *index, const char *term, size_t len);
/* Fills *info with the statistics of term `id`. It decodes a short list, to add up its cf. Errors: NOT_FOUND,
 * FORMAT, UNSUPPORTED. */
GPUIR_API int gpuir_term_get_info(const gpuir_index *index, uint64_t id, gpuir_term_info *info);
/* Decodes term `id`'s list to docids[0..df) and tfs[0..df), of which one may be NULL; df: see gpuir_term_get_info.
 * Errors: NOT_FOUND, NOMEM, UNSUPPORTED; FORMAT for docIDs that do not ascend, or name no document. Thread-safe. */
GPUIR_API int gpuir_term_postings(const gpuir_index *index, uint64_t id, uint32_t *docids, uint32_t *tfs);
/* Decodes term `id`'s positions to positions[0..n), where n must be the sum of its tfs: those of its first document,
 * ascending, then those of its second ... A token's position is its number among the document's indexed tokens, from 0:
 * stop words and dropped tokens have none. Errors: NOT_FOUND, NOMEM; UNSUPPORTED for an index built without positions;
 * ARGUMENT for another n; FORMAT for positions that do not ascend, or lie behind the document's end. Thread-safe. */
GPUIR_API int gpuir_term_positions(const gpuir_index *index, uint64_t id, uint32_t *positions, uint64_t n);
/* Returns a built-in list of words, in small letters with a blank between two: "english", the stop words of builders;
 * "english-questions", 125 words that say little in a question, ascending. NULL: there is no such list. */
GPUIR_API const char *gpuir_stop_list(const char *name);
/* Runs the index's analyzer over a text and hands on the tokens that a document's length counts. Errors: UNSUPPORTED,
 * NOMEM, or what emit returned. */
GPUIR_API int gpuir_analyze(const gpuir_index *index, const char *text, size_t len, gpuir_token_fn emit, void *sink,
    gpuir_error *err);
/* Runs the index's analyzer over a text or, with `query` not 0, over a word of a query, and hands on all tokens
 * with their places. Errors: the same; ARGUMENT and LIMIT of a tokenizer that breaks the rules of
 * gpuir_tokenize_places_fn. */
GPUIR_API int gpuir_analyze_places(const gpuir_index *index, const char *text, size_t len, int query,
    gpuir_place_fn emit, void *sink, gpuir_error *err);
