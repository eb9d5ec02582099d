
/* ========
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
 * ======*/

typedef struct gpuir_shard_info {
  uint64_t documents, tokens; /* of the collection: at most 2^32-2; the sum of its lengths */
  uint64_t first; /* number in it of the shard's first document */
  uint32_t shard, shards; /* which one, from 0; how many there are */
  uint64_t identity[2]; /* of the statistics, never interpreted: shards that are searched together have one */
} gpuir_shard_info;

/* Fills *info. Errors: ARGUMENT; NOT_FOUND for an index that is no shard. Thread-safe. */
GPUIR_API int gpuir_shard_get_info(const gpuir_index *index, gpuir_shard_info *info);
