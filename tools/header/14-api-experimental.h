
#ifdef __cplusplus
}
#endif
#endif /* GPUIR_H */

/* ========
 * [api-experimental]  for shards, policies, backends and measurements; it may change in any version
 *
 * Define GPUIR_EXPERIMENTAL before the header is included. The macro hides declarations only: libraries define and
 * export all of these functions. The laboratory, MPI and the command use them.
 * ======*/
#if (defined(GPUIR_EXPERIMENTAL) || defined(GPUIR_IMPLEMENTATION)) && !defined(GPUIR_EXPERIMENTAL_H)
#define GPUIR_EXPERIMENTAL_H /* of its own: a file may include the interface first, and the implementation later */

#ifdef __cplusplus
extern "C" {
#endif

/* ----
 * [api-shards]  parts of a collection
 *
 * A shard is an index file of a part of a collection's documents, which follow one another, and holds what the whole
 * collection counts: N, the lengths' sum, and each of its terms' df. A search of it gives its documents the scores that
 * they have in an index of the whole collection. Its docIDs, and what gpuir_index_get_info, gpuir_term_count and
 * gpuir_count say, are of its own documents. It cannot be a segment of a live index.
 *
 * What a shard cannot know is of terms that only others hold: see gpuir_query_dfs. Where all shards are asked, their
 * hits merged by score and number in the collection are those of the one index; of ANDOR ask for AND first, and for OR
 * if all have fewer than k hits together. tools/mpi does so.
 */

typedef struct gpuir_shard_info {
  uint64_t documents, tokens; /* of the collection: at most 2^32-2; the sum of its lengths */
  uint64_t first; /* number in it of the shard's first document */
  uint32_t shard, shards; /* which one, from 0; how many there are */
  uint64_t identity[2]; /* of the statistics, never interpreted: shards that are searched together have one */
} gpuir_shard_info;

/* Writes a shard to `path`: a copy of `part`, an index of one file, with its place in a collection. dfs[id] is the
 * number of the collection's documents that hold term `id` of the part; there are as many as the part has terms.
 * Nothing is kept of a place that the part has already. The file appears whole or not at all. Thread-safe. Errors:
 * ARGUMENT (also for numbers that cannot be), NOMEM, IO, BUSY; UNSUPPORTED for several segments, or deletions. */
GPUIR_API int gpuir_shard_write(const gpuir_index *part, const char *path, const gpuir_shard_info *info,
    const uint32_t *dfs, gpuir_error *err);
/* Fills *info. Errors: ARGUMENT; NOT_FOUND for an index that is no shard. Thread-safe. */
GPUIR_API int gpuir_shard_get_info(const gpuir_index *index, gpuir_shard_info *info);

#define GPUIR_MAX_QUERY_DFS (2 * GPUIR_MAX_TERMS)

/* Writes the dfs from which a query's terms have their weights, the first `cap` of them to dfs[0..): first of each
 * distinct term of its phrases, then of each of its words, prefixes (the greatest df of their terms) and phrases (0).
 * Returns how many there are, at most GPUIR_MAX_QUERY_DFS; but where words are left out, the dfs of all words, kept or
 * not, stand behind those of all other terms. Queries of the same text on indexes with the same analyzer
 * have as many, of the same terms in the same order. Thread-safe. */
GPUIR_API size_t gpuir_query_dfs(const gpuir_query *query, uint32_t *dfs, size_t cap);
/* Returns how many postings this index has of the terms that number i of gpuir_query_dfs stands for: 0, unless it is a
 * prefix. Those of all shards together are bounded as those of one index are. Thread-safe. */
GPUIR_API uint64_t gpuir_query_prefix_postings(const gpuir_query *query, size_t i);
/* Receives a term of a prefix and its df. Returns 0, or a GPUIR_E_ code that ends the walk. */
typedef int (*gpuir_term_fn)(void *user, const char *term, size_t len, uint32_t df);
/* Calls emit for each term, ascending, that number i of gpuir_query_dfs stands for: none, unless it is a prefix.
 * Thread-safe. Errors: ARGUMENT; NOT_FOUND behind the last; NOMEM; FORMAT; what emit returned. */
GPUIR_API int gpuir_query_prefix(const gpuir_query *query, size_t i, gpuir_term_fn emit, void *user, gpuir_error *err);
/* Weighs a query's terms anew by dfs[0..n), in the order of gpuir_query_dfs: a query on a shard gets its weights from
 * the dfs of all shards together, and chooses by them which words it keeps. Not while a search uses the query. Errors:
 * ARGUMENT (for another n); RANGE, NOMEM: then the query can only be destroyed. */
GPUIR_API int gpuir_query_weigh(gpuir_query *query, const uint32_t *dfs, size_t n, gpuir_error *err);

/* The shards of a collection, as one of them asks the others. */
typedef struct gpuir_shards {
  /* Makes *best, which comes with what this shard found (len 0: nothing), the best one of all shards: of least
   * distance, of these of greatest df, of these the one whose bytes come first. Each shard calls it as often as the
   * others, for the same question. 0, or a GPUIR_E_ code that ends the call. */
  int (*agree)(void *user, gpuir_near_term *best);
  void *user;
} gpuir_shards;

/* Searches near terms of the whole collection in place of words that none of its documents has, by
 * gpuir_query_desc.spell, which a shard cannot do alone. Each shard calls it with its own query of the same text, when
 * that has been weighed by all shards together; `mode` is GPUIR_ANDOR where the query is the half of it that asks for
 * all words, and otherwise its own. *changed becomes whether any word has another in its place: then the query is to be
 * weighed again. Near terms count documents of the collection. Not while a search uses the query. Errors: ARGUMENT,
 * NOMEM, FORMAT, UNSUPPORTED (always with GPUIR_NO_RANK), what agree returned: then the query can only be destroyed,
 * and the other shards wait. */
GPUIR_API int gpuir_query_respell(gpuir_query *query, int mode, const gpuir_shards *shards, int *changed,
    gpuir_error *err);
/* Gives a query the words that `other`, which has the same text and description and is another shard's, has in place
 * of its own; it is to be weighed then. Nobody is asked. Errors: ARGUMENT; NOMEM, FORMAT: then the query can only be
 * destroyed. */
GPUIR_API int gpuir_query_respell_as(gpuir_query *query, const gpuir_query *other, gpuir_error *err);

/* What a second look asks of a hit's document. */
typedef struct gpuir_look_fact {
  const char *name; /* of `len` bytes */
  uint32_t len;
  int defines; /* not 0: it defines a symbol of the query, see gpuir_look_defines */
} gpuir_look_fact;

/* Writes to defines[0..n) whether the documents of hits[0..n), by the shard's own docIDs, define a symbol of the query,
 * which was parsed of text[0..len). n: up to GPUIR_LOOK_HITS. Thread-safe. Errors: as of gpuir_look. */
GPUIR_API int gpuir_look_defines(const gpuir_query *query, const char *text, size_t len, const gpuir_hit *hits,
    size_t n, uint8_t *defines, gpuir_error *err);
/* Does what gpuir_look does for hits of several shards, by their docIDs in the collection; what is asked of the first
 * GPUIR_LOOK_HITS of them stands in facts. `query`: of any shard. Thread-safe. Errors: ARGUMENT, NOMEM, UNSUPPORTED. */
GPUIR_API int gpuir_look_facts(const gpuir_query *query, const char *text, size_t len, const gpuir_hit *hits,
    const gpuir_look_fact *facts, size_t n, gpuir_looked *looked, gpuir_error *err);

/* ----
 * [api-policies]  pools: where and when tasks run
 */

/* A way to decide where and when tasks run. The pool calls, in this order: create, then any number of submit (by any
 * thread) and, in each of its threads, work; stop; destroy. `pool_desc.policy` names one of the library's, which are
 * inter (a query is one thread's; first come, first served) and auto (see [71-crew]). */
struct gpuir_policy {
  const char *name;
  /* Makes what the policy keeps. Errors: as gpuir_pool_create. */
  int (*create)(gpuir_pool *pool, void **state, gpuir_error *err);
  /* Takes a task, which has been checked, over. 0; BUSY if too many wait already. */
  int (*submit)(void *state, gpuir_task *task);
  /* Is all that thread number `thread`, from 0, runs: answers tasks until `stop`, each by gpuir_pool_complete. */
  void (*work)(void *state, unsigned thread);
  /* Lets `work` return soon in all threads; tasks that wait are still completed, with CANCELLED. */
  void (*stop)(void *state);
  void (*destroy)(void *state);
};

/* For policies of one's own: what the pool was made with, and the end of a task, whose count and hits are filled: sets
 * its status, and calls `done`. The task is not the pool's any more when it returns. */
GPUIR_API const gpuir_index *gpuir_pool_index(const gpuir_pool *pool);
GPUIR_API unsigned gpuir_pool_threads(const gpuir_pool *pool);
GPUIR_API void *gpuir_pool_user(const gpuir_pool *pool);
GPUIR_API void gpuir_pool_complete(gpuir_pool *pool, gpuir_task *task, int status);
/* Answers a task on a searcher of the calling thread, as `inter` does; the searcher's own flag and timeout hold too.
 * Returns the status, for gpuir_pool_complete. */
GPUIR_API int gpuir_pool_answer(gpuir_searcher *searcher, gpuir_task *task);
/* The same for n tasks in turn, *accepted of which are submitted; the others, from the first one that is refused on,
 * are not. A named policy takes those that come together for less. */
GPUIR_API int gpuir_pool_submit_many(gpuir_pool *pool, gpuir_task *const *tasks, size_t n, size_t *accepted);

/* ----
 * [api-backends]  what answers in place of the CPU engine
 */

#define GPUIR_BACKEND_VERSION 3

/* A backend answers batches in place of the CPU engine and must return the same bits. No call but finish and close may
 * wait for a device. All calls are one thread's at a time; at most two batches are in flight, finished in any order.
 * `begin` takes a batch, to which it sets *running, and may read *batch only until it returns. batch->statuses is never
 *     NULL and all 0. `deadline`, of all queries, is as gpuir_batch_desc.deadlines; `cancel`, of all too, may be NULL.
 *     A status other than 0: the batch is not in flight.
 * `poll` returns whether finish need not wait.
 * `finish` returns when all is written: counts, hits, and the status of each query that failed. It returns the first of
 *     these; 0: all queries are answered.
 * `close`, if any, is called when the searcher is destroyed or gets another backend; then nothing is in flight.
 * Each may fill *err, for the first query that failed. */
typedef struct gpuir_backend {
  uint32_t version; /* GPUIR_BACKEND_VERSION */
  const char *name;
  void *context;
  int (*begin)(void *context, const gpuir_batch_desc *batch, uint64_t deadline, const int *cancel, void **running,
      gpuir_error *err);
  int (*poll)(void *context, void *running);
  int (*finish)(void *context, void *running, gpuir_error *err);
  void (*close)(void *context);
} gpuir_backend;

/* Lets `backend` (copied; NULL: the CPU) answer this searcher's searches. With `fallback` the
 * CPU answers the queries that the backend could not, and gpuir_searcher_get_info counts them; without, the
 * backend's error is returned. Errors: ARGUMENT, VERSION, BUSY (a batch is in flight). */
GPUIR_API int gpuir_searcher_set_backend(gpuir_searcher *searcher, const gpuir_backend *backend, int fallback);
/* "cpu", or the backend's name. */
GPUIR_API const char *gpuir_backend_name(const gpuir_searcher *searcher);

/* ----
 * [api-lab]  the laboratory: to compare methods
 *
 * For researchers. Codecs of the literature are named in gpuir_builder_desc. tools/lab/gpuir_lab.h has the papers'
 * methods on the GPU.
 */

/* Returns the name of the i-th way of intersecting lists, for gpuir_searcher_desc.intersection, such as "merge" or
 * "simd", the engine's own; NULL behind the last one. All give the same hits. With GPUIR_NO_LAB there is "simd" alone.
 */
GPUIR_API const char *gpuir_intersection_name(size_t i);

#define GPUIR_MAX_CODECS 16 /* of docIDs or of frequencies */

typedef struct gpuir_codec_info {
  const char *codec;
  uint64_t lists, postings; /* of two postings or more that are kept in it */
  uint64_t bytes; /* of their streams */
} gpuir_codec_info;

/* Which codecs the lists are kept in, their docIDs or, if docids is 0, their frequencies: writes the *n <=
 * GPUIR_MAX_CODECS that occur. Reads every term's record. Errors: ARGUMENT, FORMAT, UNSUPPORTED (always so with
 * GPUIR_NO_LAB). */
GPUIR_API int gpuir_codec_get_info(const gpuir_index *index, int docids, gpuir_codec_info infos[GPUIR_MAX_CODECS],
    size_t *n);

/* Finds n terms, each as gpuir_term_find does; ids[i] becomes UINT64_MAX where the index has no terms[i][0..lens[i]).
 * Look-ups that wait for memory do so together, as those of a query's words do: many take half the time. Errors:
 * ARGUMENT, UNSUPPORTED. */
GPUIR_API int gpuir_terms_find(const gpuir_index *index, const char *const *terms, const size_t *lens, size_t n,
    uint64_t *ids);
/* Moves a searcher to another index, such as a later snapshot, and keeps its memory and settings; a backend is dropped.
 * Its queries and explanations stay with the old index. Errors: ARGUMENT. */
GPUIR_API int gpuir_searcher_move(gpuir_searcher *searcher, const gpuir_index *index);

#ifdef __cplusplus
}
#endif
#endif /* GPUIR_EXPERIMENTAL_H */
