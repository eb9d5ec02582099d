
/* ========
 * [api-look]  a second look at hits: program code by names
 *
 * BM25 knows words. Who searches program code also goes by the names of files, and wants the file that defines a thing
 * before those that use it, and neither tests nor examples first. A second look ranks the best GPUIR_LOOK_HITS hits of
 * a search anew, by names alone: it reads no text. The formula, in integers that are the same on every machine:
 *
 *   a file's documents are those with its name, from which the lines at the end (:12, :51-100) are taken off;
 *   best = the greatest score of all hits;
 *   score = that of the file's best hit + best * (0.5 * the sum of its hits' scores / the greatest such sum
 *     + 1.2 * the share of the query's words that are alike a word of its name, or of the folder's that it lies in
 *     + 0.5 * the share of its name's words that are alike a word of the query
 *     + 1 if it defines a symbol of the query)
 *   times 0.3 for each that holds: it is a test; an example, documentation, vendored or generated; no program code.
 *
 * The first two are not lowered where the query has a word of what makes them so, such as `test`. Words are as inner
 * capitals and digits part them, of a name up to its first point; the query's lack those of "english-questions", if
 * others are left. Two are alike if they are the same, one of three bytes or more begins the other, or they begin with
 * the same four bytes or more, these are three fifths of the shorter one, and the longer one has at most five others. A
 * symbol is the query's only word, or one that is written as names are: getName, HTTPServer, a_b, a::b.
 *
 * Files come by score, of equal ones first those of the better hit, each with its best hit. Behind all files come their
 * other hits, with the file's score in proportion to their own, but none greater than the last file's; then what lies
 * behind the GPUIR_LOOK_HITS hits. So scores never rise.
 * ======*/

#define GPUIR_LOOK_HITS 200 /* hits that are looked at; a search for fewer is to ask for so many */

typedef struct gpuir_looked {
  uint32_t docid;
  uint32_t score; /* of the look, as gpuir_hit.score */
  uint32_t plain; /* of the search */
} gpuir_looked;

/* Ranks hits[0..n), as gpuir_search gave them for a query that was parsed of text[0..len), anew into looked[0..n). What
 * documents define is known of indexes that the analyzer "text" made, see gpuir_doc_desc.defines. Thread-safe. Errors:
 * ARGUMENT, NOMEM; NOT_FOUND for a hit that is no document; FORMAT; UNSUPPORTED with GPUIR_NO_RANK. */
GPUIR_API int gpuir_look(const gpuir_query *query, const char *text, size_t len, const gpuir_hit *hits, size_t n,
    gpuir_looked *looked, gpuir_error *err);

/* ---- words to expand a query by: the relevance model of the best hits, RM3 */

/* What a word weighs: its part of the model in units of 2^-16. Words come by weight, equal ones by their bytes. */
typedef struct gpuir_expansion_term {
  char term[GPUIR_MAX_TERM];
  uint8_t len;
  uint32_t weight;
} gpuir_expansion_term;

typedef struct gpuir_expansion {
  unsigned n;
  gpuir_expansion_term terms[GPUIR_MAX_TERMS];
} gpuir_expansion;

#define GPUIR_EXPANSION_HITS 10 /* whose texts are usually taken */
#define GPUIR_EXPANSION_TERMS 20 /* that are usually added */
#define GPUIR_EXPANSION_TOKENS 65536 /* of a text that are looked at */
#define GPUIR_EXPANSION_SUM 1024 /* what all terms of an expanded query weigh together: 1 */

/* Finds the `most` words that hits[0..n) have in common, of at least two bytes, in at most a tenth of the documents. A
 * word weighs the sum over the hits of score * tf / tokens of the text, over the sum of the scores (Lavrenko and Croft,
 * Relevance-Based Language Models, 2001, eq. 9, with BM25's score for the query's likelihood), rounded to a multiple of
 * 2^-16, half to even: the same on every machine. texts[i] with lens[i] bytes is hit i's as it was indexed; NULL: it
 * is not known, and the hit is passed over. *expansion is for gpuir_query_desc.expansion: there half of the weight is
 * the query's words, by how often they occur, and half the model's (Abdul-Jaleel and others, UMass at TREC 2004, 2.1);
 * together GPUIR_EXPANSION_SUM, each rounded half to even, and the rest is the heaviest word's. A word of the model
 * that the query does not have only adds to scores. Thread-safe. Errors: ARGUMENT for more than GPUIR_MAX_TERMS
 * words; NOMEM, FORMAT; UNSUPPORTED for a shard, which does not know the whole collection's words, and with
 * GPUIR_NO_RANK; what the analyzer returns. */
GPUIR_API int gpuir_expand(const gpuir_index *index, const gpuir_hit *hits, const char *const *texts,
    const size_t *lens, size_t n, unsigned most, gpuir_expansion *expansion, gpuir_error *err);

/* Returns 1 if at least half of the live documents have the name of a source file of a program, by its ending; *sources
 * (which may be NULL) becomes their number. It is counted when an index is built with the analyzer "text"; of others 0
 * is known. Takes time by the number of deleted documents. Thread-safe. */
GPUIR_API int gpuir_index_is_code(const gpuir_index *index, uint64_t *sources);
/* Returns whether a document's name, perhaps with lines at its end, is that of a source file, by its ending. */
GPUIR_API int gpuir_is_source_name(const char *name, size_t len);
