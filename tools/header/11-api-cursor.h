
/* ========
 * [api-cursor]  the postings of one term
 * ======*/

typedef struct gpuir_cursor gpuir_cursor;

/* Opens the postings of term `id`, on its first document. Errors: NOT_FOUND, NOMEM, FORMAT; UNSUPPORTED with several
 * segments, or deletions. */
GPUIR_API int gpuir_cursor_open(const gpuir_index *index, uint64_t term_id, gpuir_cursor **cursor, gpuir_error *err);
GPUIR_API void gpuir_cursor_close(gpuir_cursor *cursor);
/* The current docID, or GPUIR_END. */
GPUIR_API uint32_t gpuir_cursor_docid(const gpuir_cursor *cursor);
/* Moves on and returns the new docID, or GPUIR_END. */
GPUIR_API uint32_t gpuir_cursor_next(gpuir_cursor *cursor);
/* Moves to the first docID >= docid (never back) and returns it, or GPUIR_END. */
GPUIR_API uint32_t gpuir_cursor_next_geq(gpuir_cursor *cursor, uint32_t docid);
/* The term frequency in the current document; 0 at the end. */
GPUIR_API uint32_t gpuir_cursor_tf(gpuir_cursor *cursor);
/* Writes the term's first positions in the current document, ascending, to positions[0..*n): as many as there are, or
 * `cap`. See gpuir_term_positions. Errors: ARGUMENT; UNSUPPORTED for an index built without positions; NOT_FOUND at the
 * end; FORMAT. */
GPUIR_API int gpuir_cursor_positions(gpuir_cursor *cursor, uint32_t *positions, uint32_t cap, uint32_t *n);
