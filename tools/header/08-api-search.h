
/* ========
 * [api-search]  queries and searching
 * ======*/

enum {
  GPUIR_AND = 0, /* documents that hold every positive term */
  GPUIR_OR = 1, /* documents that hold at least one */
  GPUIR_ANDOR = 2 /* AND; exactly OR's answer when fewer than k documents match AND; see gpuir_query_desc.enough */
};

enum { GPUIR_EXACT = -1, GPUIR_SPELL = 1 };

typedef struct gpuir_query_desc {
  int mode; /* GPUIR_AND, GPUIR_OR or GPUIR_ANDOR */
  int custom_bm25; /* not 0: k1 and b below instead of the index's */
  float k1, b; /* k1 in [0, 1000], b in [0, 1] */
  int no_operators; /* '-', '"' and '*' have no meaning (TREC topics) */
  int keep_rarest; /* of more than GPUIR_MAX_TERMS terms keep some, but with AND: see gpuir_query_left_out */
  /* With OR: so many of the text's positive words, prefixes and phrases, from the first on, must match; the others only
   * add to scores, and a word that is both must match. If the analyzer leaves nothing of the former, any word may
   * match. More than the text has: ARGUMENT, as with another mode. 0: any may match. */
  unsigned required;
  /* What is searched in place of a positive word that no live document has: 0: the word, but where it ends with '~' the
   * term nearest to it, one letter away; GPUIR_SPELL: that also, with OR and ANDOR, of words of at least four letters
   * without digits, but for those of `stop` and those that English sentences are made of, such as "many"; GPUIR_EXACT:
   * always the word. Never in phrases, prefixes and shards, which have gpuir_query_respell, nor where words are left
   * out. */
  int spell;
  uint64_t prefix_postings; /* that the prefixes' terms may have together; 0: GPUIR_MAX_QUERY_POSTINGS. A search takes
                             * some 10 bytes of memory for each */
  /* Which documents may be hits, by what they have in the index's fields; NULL or "": all. See [api-columns]. */
  const char *where;
  int all; /* not 0: a text without a positive term asks for all documents, each with score 0 */
  /* Words that say little, parted by blanks, as gpuir_stop_list gives them; NULL: none. With OR, and where ANDOR
   * answers as OR does, a query does without those of its text that are among them, if two other positive words,
   * prefixes or phrases remain. Case, letters' marks and signs around a word do not count. Never left out are words
   * in capitals (IT), in phrases, before '*' and '~', negated ones, and any where some are `required`. */
  const char *stop;
  /* The words that the query is expanded by; read while it is parsed. Not where words are left out, see keep_rarest.
   * NULL: none. See gpuir_expand. */
  const struct gpuir_expansion *expansion;
  /* With ANDOR: so many documents that match AND are enough, if more hits are asked for; 0: as many as asked for. */
  uint32_t enough;
  /* A field, or '-' and a field. Hits come by the first value that documents have there, rising, or falling behind '-';
   * documents without one come last either way, and equal ones by docID. Scores are as ever. NULL or "": by score. */
  const char *sort;
  /* A field. Of the matches with the same first value there the best one is a hit: with `sort` the one that comes
   * first. A document without a value stands for itself. Counts and facets do not collapse, and ANDOR turns to OR
   * where fewer than k hits are left. NULL or "": none. */
  const char *collapse;
} gpuir_query_desc;

typedef struct gpuir_query gpuir_query;

/* Parses words parted by white space; a leading '-' negates a word. The index's analyzer turns
 * each word into tokens: those of a positive word all join the query, any of a negated word's
 * excludes. A term that occurs q times weighs q times. Unknown negated terms are ignored; an
 * unknown positive term makes AND empty.
 *
 * Only at the start of a word '"' or '-"' opens a phrase, which the next '"' closes; what follows begins a new word.
 * Only a last '*' behind a character of the word's last token makes a prefix of it, which is neither stopped nor
 * stemmed: it stands for all terms that begin with it and, where terms are stems, for its own stem as well. A last '~'
 * asks for what is near the word, if no document has it: see gpuir_query_desc.spell. All else is literal: ( ) : + AND
 * OR NOT have no meaning. A phrase of one token is that word; one with an unknown term is unknown.
 *
 * What is counted up to GPUIR_MAX_TERMS: the distinct terms and prefixes, those of phrases included; and the query's
 * words, prefixes and phrases, where one that is both wanted and negated counts twice, and unknown ones count too. A
 * phrase has at most so many tokens.
 *
 * The text is any bytes and is not kept. Where documents were deleted, it counts those that hold each term: a
 * millisecond for some 2 million postings, once a process and file.
 * Errors, of several the first in the text, and those of the whole query last: ARGUMENT, TERMS, RANGE, NOMEM; WHERE
 * (err->offset is the byte's in the where, the sort or the collapse; before all others); QUERY
 * without a positive term, or for a quote that is not closed (err->offset is the quote's in the text); LIMIT for
 * prefixes whose terms have too many postings, before any is read; UNSUPPORTED for a phrase in an index built without
 * positions, with GPUIR_NO_NEAR for GPUIR_SPELL and for a word~ that no document has, and with GPUIR_NO_RANK for
 * `stop`, `expansion` and `enough`; FORMAT for a damaged list. */
GPUIR_API int gpuir_query_parse(const gpuir_index *index, const gpuir_query_desc *desc, const char *text, size_t len,
    gpuir_query **query, gpuir_error *err);
GPUIR_API void gpuir_query_destroy(gpuir_query *query);
/* Tells which words no live document has: the i-th of the query's positive words, prefixes (lik*) and words of positive
 * phrases, each once: words as they were typed, those of phrases as terms; *term lives as long as the query. Errors:
 * ARGUMENT; NOT_FOUND behind the last. Thread-safe. */
GPUIR_API int gpuir_query_unknown(const gpuir_query *query, size_t i, const char **term, size_t *len);
/* Tells which words a query does without: the i-th of them, in the order of its text, as a term; *word lives as long as
 * the query. There are some only if it was to keep the rarest (gpuir_query_desc.keep_rarest) and has too many terms.
 * Then it has its negated terms, phrases and prefixes, of which there may not be too many, and of the other words as
 * many as may be: those with the least df of the whole collection, and so the greatest idf, of equal ones those whose
 * bytes come first; words that no document has come last. ANDOR is then OR. Errors: ARGUMENT; NOT_FOUND behind the
 * last. Thread-safe. */
GPUIR_API int gpuir_query_left_out(const gpuir_query *query, size_t i, const char **word, size_t *len);
/* Tells which words a query does without as they say little, see gpuir_query_desc.stop: the i-th, as it was typed; it
 * lives as long as the query. With ANDOR they count where all words must match. Errors: ARGUMENT; NOT_FOUND behind the
 * last. Thread-safe. */
GPUIR_API int gpuir_query_stopped(const gpuir_query *query, size_t i, const char **word, size_t *len);

/* A term that is written nearly as a word is. */
typedef struct gpuir_near_term {
  char term[GPUIR_MAX_TERM + 1]; /* its bytes, and a NUL behind them */
  size_t len;
  /* Likewise what people may write for it: the term, but of stems the spelling one letter away whose stem it is. */
  char word[GPUIR_MAX_TERM + 1];
  size_t word_len;
  uint32_t df; /* of a shard, its collection's */
  uint32_t distance; /* characters that are inserted, left out, replaced, or swapped with the next one: 1 or 2 */
} gpuir_near_term;

/* Finds the terms of live documents that are written most like a word, which is given in small letters. Writes the
 * *n <= cap best: the nearest first, of these the most frequent. A term that begins with the word's first character
 * may be one error away, or two from a word of six characters or more. A term that begins with another one may have
 * one error, at its start: a letter of a to z or a digit stands in place of the word's first character or before
 * it, or that character is left out or swapped with the second. A word of one character has no near terms. Where
 * terms are stems, the stems of all spellings one error away are looked up first, of words of up to 24 characters;
 * if there are none, the word's own stem is compared with the terms. The time grows with the number of terms that
 * begin with the word's first character. Thread-safe. Errors: ARGUMENT, FORMAT, NOMEM, UNSUPPORTED (see
 * gpuir_term_count; always with GPUIR_NO_NEAR). */
GPUIR_API int gpuir_terms_near(const gpuir_index *index, const char *term, size_t len, gpuir_near_term *found,
    size_t cap, size_t *n);

/* Finds the terms near the word that gpuir_query_unknown tells at i, as it was typed; of several words that are one,
 * the terms near those that no document has. None for a prefix. Errors: as of gpuir_terms_near; NOT_FOUND behind the
 * last. */
GPUIR_API int gpuir_query_near(const gpuir_query *query, size_t i, gpuir_near_term *found, size_t cap, size_t *n);
/* Tells which words a query has other terms in place of: the i-th, as it was typed, and what is searched instead, as
 * people write it. They live as long as the query. Errors: ARGUMENT; NOT_FOUND behind the last. Thread-safe. */
GPUIR_API int gpuir_query_spelled(const gpuir_query *query, size_t i, const char **word, size_t *len,
    const char **instead, size_t *instead_len);

typedef struct gpuir_hit {
  uint32_t docid;
  uint32_t score; /* fixed point, GPUIR_SCORE_ONE is 1.0 */
} gpuir_hit;

/* Returns the score as a real number. */
static inline double gpuir_score(gpuir_hit hit) { return (double)hit.score / GPUIR_SCORE_ONE; }

enum { GPUIR_EVAL_AUTO = 0, GPUIR_EVAL_EXHAUSTIVE = 1 };

typedef struct gpuir_searcher_desc {
  const gpuir_allocator *allocator; /* copied; NULL: the index's */
  unsigned threads; /* that serve gpuir_search_batch or, up to 8, plan batches for a device; 0: 1 */
  int evaluator; /* GPUIR_EVAL_; the exhaustive one, the laboratory's, is the reference */
  uint64_t timeout_ns; /* of each search from its start; 0: none */
  const int *cancel; /* read atomically while searching; not 0 stops. NULL: none */
  const char *intersection; /* see [api-lab]; NULL: the engine's own */
} gpuir_searcher_desc;

typedef struct gpuir_searcher gpuir_searcher;

/* Creates a searcher. It owns scratch memory, which grows to what its queries need. One per thread.
 * Errors: ARGUMENT, NOMEM; UNSUPPORTED for a method or an evaluator that this build lacks. */
GPUIR_API int gpuir_searcher_create(const gpuir_index *index, const gpuir_searcher_desc *desc,
    gpuir_searcher **searcher, gpuir_error *err);
/* Waits for batches in flight, whose answers are lost. */
GPUIR_API void gpuir_searcher_destroy(gpuir_searcher *searcher);
/* Changes the timeout of later searches; 0: none. */
GPUIR_API void gpuir_searcher_set_timeout(gpuir_searcher *searcher, uint64_t timeout_ns);

/* Ranks documents: writes the best min(k, matches) hits, by score descending, then docID ascending (but see
 * gpuir_query_desc.sort and .collapse), to hits[0..*n). k may be 0 or exceed the number of documents.
 * Errors: ARGUMENT, NOMEM, DEADLINE, CANCELLED, FORMAT, BACKEND; then *n is 0. */
GPUIR_API int gpuir_search(gpuir_searcher *searcher, const gpuir_query *query, gpuir_hit *hits, size_t k, size_t *n);
/* Ranks as gpuir_search does, and counts as gpuir_count does, in the same snapshot and within one timeout: *matches
 * becomes the number of all matching documents, of which hits[0..*n) are the best. ANDOR counts as AND. Where a device
 * ranks, the CPU counts. Errors: as gpuir_search; then *n and *matches are 0. */
GPUIR_API int gpuir_search_count(gpuir_searcher *searcher, const gpuir_query *query, gpuir_hit *hits, size_t k,
    size_t *n, uint64_t *matches);
/* Ranks nq queries, on the searcher's threads; query i's hits go to hits[i*k ..) and their
 * number to counts[i]. Errors: as gpuir_search, of the first query that failed. */
GPUIR_API int gpuir_search_batch(gpuir_searcher *searcher, const gpuir_query *const *queries, size_t nq, size_t k,
    gpuir_hit *hits, uint32_t *counts);

/* ---- batches in flight: the caller's work overlaps a device's */

/* What a batch asks for and where its answers go. The arrays, the queries and the flags stay the caller's and are kept
 * until the batch is finished; hits, counts and statuses may be written from begin to finish, and until then mean
 * nothing. */
typedef struct gpuir_batch_desc {
  const gpuir_query *const *queries; /* nq */
  size_t nq, k;
  gpuir_hit *hits; /* [nq * k]: query i's from i * k on */
  uint32_t *counts; /* [nq]: how many those are */
  int *statuses; /* [nq]: each query's own; NULL: the batch's is enough */
  /* When each is out of time, [nq], in nanoseconds of CLOCK_MONOTONIC; 0: never. NULL: none ever is. */
  const uint64_t *deadlines;
  /* Flags, [nq], read atomically: one that is not 0 stops its query. Each may be NULL, as may the array. */
  const int *const *cancels;
  /* Of each query, [nq], a score that k documents are known to have, here or in other parts of a collection; 0: none
   * is known. With a where they are documents that pass it. Hits below it may be left out. It is read and raised
   * atomically, so that those who search the parts learn from each other, also through memory that processes share.
   * Those of ANDOR, and of queries with sort or collapse, are not looked at. NULL: none. */
  uint32_t *thresholds;
  /* 1: the queries are counted, not ranked: counts[i] is gpuir_count's of query i; k, hits and matches are not looked
   * at. */
  int count;
  /* [nq]: how many documents match each query, as gpuir_count tells, whatever k and the thresholds are. It is counted
   * by the CPU when the batch is finished, also where a device ranks. A failed query's is 0. NULL: not wanted. */
  uint64_t *matches;
} gpuir_batch_desc;

typedef struct gpuir_batch gpuir_batch;

/* Begins a batch and returns before it is answered: with a backend, queries are planned and their work is handed to
 * the device; without one, gpuir_search_finish will do the work. Two batches of a searcher may be in flight at once and
 * be finished in any order; other searches of it may go on beside one. All calls for one searcher's batches are one
 * thread's at a time, as the searcher's are. *batch is the searcher's. *desc is copied. Errors: as gpuir_search_batch;
 * BUSY when two batches are in flight. After an error nothing is in flight. */
GPUIR_API int gpuir_search_begin(gpuir_searcher *searcher, const gpuir_batch_desc *desc, gpuir_batch **batch);
/* Returns 1 if gpuir_search_finish will not have to wait for a device, else 0; never waits. A batch that takes several
 * launches, and the searcher's other one, are moved on by it. */
GPUIR_API int gpuir_search_poll(gpuir_batch *batch);
/* Waits for a batch, hands out its hits and ends it. Errors: as gpuir_search_batch, of the first query that failed; a
 * failed query's count is 0, and without `statuses` all counts are. */
GPUIR_API int gpuir_search_finish(gpuir_batch *batch);

/* Counts the matching documents without ranking (ANDOR counts as AND). Errors: as gpuir_search. */
GPUIR_API int gpuir_count(gpuir_searcher *searcher, const gpuir_query *query, uint64_t *matches);

/* How many of a query's matches have what in a field. Of a key or a path: a value, or a folder; else NULL. Of a number
 * or a date: from `low` to `high`, both included. */
typedef struct gpuir_facet {
  const char *value; /* with a NUL behind it; lives as long as the facets */
  size_t len;
  int64_t low, high;
  uint64_t count;
} gpuir_facet;

typedef struct gpuir_facets gpuir_facets;

/* Counts what all live documents that match a query have in fields, columns[0..n), n <= GPUIR_MAX_FIELDS, exactly; a
 * document counts once for each of its values. *matches, unless it is NULL, becomes what gpuir_count tells. A column is
 *
 *     author       each value: of a key or a path the most frequent first, equal ones by their bytes; else in order
 *     author:20    of a key the 20 most frequent ones
 *     dir:src      of a path the folders and files in src, in the same order, with all below each; dir: those
 *                  at the top
 *     size:0,1000  of a number or a date the ranges that these values part: below the first, from each to the next, and
 *                  from the last on; also those without documents
 *     mtime:month  of a date each year, month or day with documents, in UTC
 *
 * Where a device searches, the CPU counts. *facets must be destroyed. Errors: as gpuir_search; WHERE for a column that
 * says nothing of the kind (gpuir_searcher_error tells the byte); UNSUPPORTED (see GPUIR_NO_COLUMNS). */
GPUIR_API int gpuir_facets_count(gpuir_searcher *searcher, const gpuir_query *query, const char *const *columns,
    size_t n, gpuir_facets **facets, uint64_t *matches);
/* Tells facet i of column number `which`. Thread-safe. Errors: ARGUMENT; NOT_FOUND behind the last one. */
GPUIR_API int gpuir_facets_get(const gpuir_facets *facets, size_t which, size_t i, gpuir_facet *facet);
GPUIR_API void gpuir_facets_destroy(gpuir_facets *facets);

/* Detail of the searcher's last failure, one of a backend's too that the CPU made good: code 0 when there was none. */
GPUIR_API void gpuir_searcher_error(const gpuir_searcher *searcher, gpuir_error *err);

typedef struct gpuir_searcher_info {
  uint64_t queries;
  uint64_t postings_scored;
  uint64_t blocks_decoded, blocks_total; /* of docIDs; total: of all lists of all queries */
  uint64_t tiles_scored, tiles_total; /* docID tiles of the pruned OR */
  uint64_t backend_failures; /* queries that the CPU answered instead */
} gpuir_searcher_info;

/* Counters since the searcher was made, its threads included. */
GPUIR_API void gpuir_searcher_get_info(const gpuir_searcher *searcher, gpuir_searcher_info *info);

typedef struct gpuir_explain_term {
  const char *term; /* lives as long as the query */
  size_t term_len;
  uint32_t q; /* occurrences in the query */
  int negated;
  uint32_t tokens; /* of a phrase, whose term is written "like this"; otherwise 1 */
  uint32_t members; /* terms that a prefix, whose term is written lik*, stands for; otherwise 0 */
  uint32_t df, tf; /* tf 0: not in the document; df 0: not in the index, or a phrase */
  float idf, weight, norm; /* weight W and norm K of this document, see gpuir_explanation */
  uint32_t contribution; /* c, to be taken q times */
  int optional; /* it need not match; a document that holds it has its score */
} gpuir_explain_term;

/* Why a document scores what it does: score = sum of q * c, c = max(1, round(W*tf / (tf + K))),
 * W = idf*(k1+1)*2^20, in double of the floats idf and k1 and rounded to a float, of an expanded query times the term's
 * part of GPUIR_EXPANSION_SUM, and
 * K = k1*(1-b) + k1*b*length/average_length. */
typedef struct gpuir_explanation {
  int matches; /* the document matches the query (ANDOR: as AND) */
  uint32_t score; /* 0 when it does not match */
  uint32_t length;
  float k1, b;
  double average_length;
  size_t nterms;
  gpuir_explain_term terms[GPUIR_MAX_TERMS]; /* positive ones, then negated ones */
  char plan[200]; /* how the engine evaluates the query, and why */
  /* The first predicate of the query's where, as it is written, that the document fails; it lives as long as the query.
   * NULL: the document passes, or there is no where. */
  const char *failed;
  size_t failed_len;
} gpuir_explanation;

/* Says how the score of document `docid` comes about, whether it matches or not. Errors: NOT_FOUND for a docid that
 * does not exist, or was deleted; ARGUMENT, NOMEM. */
GPUIR_API int gpuir_explain(gpuir_searcher *searcher, const gpuir_query *query, uint32_t docid,
    gpuir_explanation *explanation);
