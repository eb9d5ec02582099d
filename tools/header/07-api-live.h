
/* ========
 * [api-live]  an index that changes
 *
 * A live index is a folder of index files, which gpuir_open opens as one. See [api-contracts] for what it promises.
 * ======*/

typedef struct gpuir_live_desc {
  /* `path` is the folder's. A new index takes all members, but `order` must be NULL. One that exists takes only
   * `allocator`, `memory`, `threads`, `simd` and the analyzer's `tokenize`, and has the others on disk. Here memory
   * 0 stands for 64 MiB, and threads 0 for 1. */
  gpuir_builder_desc settings;
  int create; /* not 0: make the folder and an empty index in it, if there is none */
  /* Called, if it is not NULL, when the folder of a new index is locked, before its first commit: for files beside the
   * index that must be there when it is. Not 0 ends the opening, which returns CANCELLED and leaves no index. */
  int (*on_create)(void *user);
  void *user;
} gpuir_live_desc;

enum { GPUIR_BY_NAME = 0, GPUIR_BY_SOURCE = 1 };

typedef struct gpuir_live gpuir_live;

/* Opens a live index for writing and locks its folder. A folder that holds no index, but other files under the
 * names that an index uses, is refused and left as it is. What a writer left that was killed while it made an index
 * is no such file. Errors: ARGUMENT, NOMEM, IO, UNSUPPORTED, CANCELLED; BUSY: another writer has it; FORMAT: a
 * damaged index, or a folder that is none. */
GPUIR_API int gpuir_live_open(const gpuir_live_desc *desc, gpuir_live **live, gpuir_error *err);
/* Adds a document: the next refresh or commit shows it. Arguments as of gpuir_builder_add_text. Errors: ARGUMENT;
 * NOMEM, IO, LIMIT, CANCELLED, UNSUPPORTED: then the handle can only be closed. */
GPUIR_API int gpuir_live_add(gpuir_live *live, const gpuir_doc_desc *doc, const char *text, size_t len,
    gpuir_error *err);
/* Deletes all documents whose name (GPUIR_BY_NAME) or source (GPUIR_BY_SOURCE) is these bytes, also those added since
 * the last refresh; the next refresh or commit shows it. *n (or NULL): how many they are; none is no error. To replace
 * a document, delete and add it. The first call of each kind reads all names or sources, and keeps 8 bytes a document.
 * Errors: ARGUMENT (also for no bytes); NOMEM; FORMAT for a damaged file: then the handle can only be closed. */
GPUIR_API int gpuir_live_delete(gpuir_live *live, int by, const char *bytes, size_t len, uint64_t *n, gpuir_error *err);
/* Returns a mark between what was added so far and what is added next, which lasts until the next refresh or
 * commit. With it a source's new documents are added first, and its old ones are deleted once all of the source was
 * read: an error in between loses nothing. */
GPUIR_API uint64_t gpuir_live_mark(const gpuir_live *live);
/* Deletes as gpuir_live_delete does, but only documents that were added before the mark. */
GPUIR_API int gpuir_live_delete_before(gpuir_live *live, uint64_t mark, int by, const char *bytes, size_t len,
    uint64_t *n, gpuir_error *err);
/* Deletes all documents that were added since the mark. *n (or NULL): how many they are. Errors: ARGUMENT: the mark is
 * older than the last refresh or commit; NOMEM: then the handle can only be closed. */
GPUIR_API int gpuir_live_delete_since(gpuir_live *live, uint64_t mark, uint64_t *n, gpuir_error *err);
/* Makes *index a snapshot with all that was added and deleted. It is released by gpuir_close, before or after the
 * handle, and shares with other snapshots what it has in common with them. Nothing is synced to disk. Errors: as of
 * gpuir_live_add. */
GPUIR_API int gpuir_live_refresh(gpuir_live *live, gpuir_index **index, gpuir_error *err);
/* Makes all that was added and deleted durable, and visible to whoever opens the folder. Errors: as of gpuir_live_add;
 * BUSY: the lock or the manifest was replaced since this handle has read or written it, so that another writer may have
 * come in. Then nothing is renamed or removed, open snapshots stay usable, and the handle can only be closed. */
GPUIR_API int gpuir_live_commit(gpuir_live *live, gpuir_error *err);
/* Merges some files into one, if that is worth while, or with `all` all of them. Deleted documents are left out of
 * the new file. Refreshed documents take part, and the next refresh or commit shows the result. *more (or NULL): 1
 * if another step is worth while. May run in one other thread beside all other functions but gpuir_live_close.
 * Errors: BUSY: another merge is running; LIMIT: over 64 MiB, and over 8 times the bytes of the files, as some are
 * links to one; NOMEM, IO, FORMAT, UNSUPPORTED, CANCELLED: then nothing has changed. */
GPUIR_API int gpuir_live_merge(gpuir_live *live, int all, int *more, gpuir_error *err);
/* Returns how many of the documents that this handle has added and refreshed or committed have tokens, but none of at
 * most GPUIR_MAX_TERM bytes: they cannot be found. */
GPUIR_API uint64_t gpuir_live_lost(const gpuir_live *live);
/* Releases the handle and the lock; NULL is allowed. What was not committed is gone. */
GPUIR_API void gpuir_live_close(gpuir_live *live);
