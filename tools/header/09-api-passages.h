
/* ========
 * [api-passages]  the places of a text that answer a query
 *
 * A passage is a range of a text, of whole lines where these have at most 400 bytes, otherwise of sentences or of
 * words. Which ones are best is said by the query's words that they hold, what these weigh (their idf) and how close
 * together they stand.
 * The first passage is the best one; each further one is the best for the words that those before it do not show. So
 * without a budget every word of the query that the text holds is shown, and with one the dearest come first.
 *
 * Negated words are ignored. A phrase is shown where its tokens follow one another, a prefix where a word begins so.
 * ======*/

/* A token of a budget: four bytes of text, or what is left at its end. English text and code have about as many of
 * them as of a language model's tokens, and counting them needs no vocabulary. */
#define GPUIR_TOKEN_BYTES 4
#define GPUIR_PASSAGE_BYTES 640 /* the default of gpuir_passages_desc.most */
#define GPUIR_NO_CONTEXT UINT32_MAX /* for gpuir_passages_desc.context */

typedef struct gpuir_passages_desc {
  size_t bytes, tokens; /* budgets of all passages together; 0: none */
  size_t most; /* bytes of a passage of several lines; 0: GPUIR_PASSAGE_BYTES. Within them it grows to its
                * paragraph, which empty lines end */
  uint32_t context; /* not 0: in place of that, so many lines before and behind its own. GPUIR_NO_CONTEXT: none */
  uint32_t first_line; /* number of the text's first line; 0: 1, or of a document what its first_line says */
  uint64_t timeout_ns; /* 0: none */
  const int *cancel; /* read atomically now and then; not 0 stops. NULL: none */
} gpuir_passages_desc;

typedef struct gpuir_passage {
  size_t offset, bytes; /* in the text; line ends behind the last line are left out */
  uint32_t first_line, last_line; /* UINT32_MAX also for what is larger */
  uint64_t terms; /* that it shows: bit i is term number i, counted as in gpuir_explanation.terms */
  /* What the words weigh that no passage before it shows, less for those far apart: sums of idf; 65536 is 1.0. Scores
   * of one query can be compared between texts. */
  uint32_t score;
  size_t first_mark, marks; /* its marks: [first_mark, first_mark + marks) of gpuir_passage_room.marks */
} gpuir_passage;

/* A word, phrase or word with the prefix that a passage shows. */
typedef struct gpuir_mark {
  size_t offset, bytes; /* in the text; those of one passage ascend, and may overlap where phrases hold words */
  uint32_t term;
} gpuir_mark;

/* The caller's arrays, to which passages are written. Once `passages` is full, no further one is written; once
 * `marks` is full, further words are not marked. */
typedef struct gpuir_passage_room {
  gpuir_passage *passages;
  size_t cap, n; /* of passages: room, and how many were written */
  gpuir_mark *marks;
  size_t marks_cap, nmarks;
} gpuir_passage_room;

/* Finds the best passages of text[0..len), best first; they do not overlap. The text is any bytes, analysed once, and
 * is usually that of a hit. Where a caller's tokenizer emits tokens that do not lie in the text, each is looked for in
 * it, ASCII letters alike in both cases, near the one before; one that is not found stands where that one stands.
 * Memory for the time of the call: some 12 bytes an occurrence and 32 bytes a line with one. Thread-safe.
 * Errors: ARGUMENT, NOMEM, DEADLINE, CANCELLED; LIMIT for a text of 4 GiB; what the caller's tokenizer returned. Then
 * no passage is written. */
GPUIR_API int gpuir_passages(const gpuir_query *query, const gpuir_passages_desc *desc, const char *text, size_t len,
    gpuir_passage_room *room, gpuir_error *err);
/* The same of the stored text of document `docid` of the query's index. Errors: also NOT_FOUND where there is no such
 * document, or its text is not stored: then the caller has to bring it; FORMAT. */
GPUIR_API int gpuir_doc_passages(const gpuir_query *query, const gpuir_passages_desc *desc, uint32_t docid,
    gpuir_passage_room *room, gpuir_error *err);

/* How a snippet is written. Zeroed: 160 bytes, without marks. */
typedef struct gpuir_snippet_desc {
  size_t most; /* bytes of the text that are shown; 0: 160 */
  const char *open, *close; /* stand around each word of the query, such as "<b>" and "</b>"; NULL: nothing does */
} gpuir_snippet_desc;

/* Writes one line about a text, for a list of hits: the best passage from a little before its first word of the query
 * on, and the beginning of a text without such a word. White space and control characters become single blanks, "..."
 * stands where something is left out, and no word is cut that is shorter than the snippet. Nothing is escaped. `out`
 * gets a NUL behind it; what does not fit into its `cap` bytes (16 or more, beside the marks) is left out. Thread-safe.
 * Errors: ARGUMENT, as gpuir_passages; then `out` is "". */
GPUIR_API int gpuir_snippet(const gpuir_query *query, const gpuir_snippet_desc *desc, const char *text, size_t len,
    char *out, size_t cap, gpuir_error *err);
