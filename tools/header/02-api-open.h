
/* ========
 * [api-open]  opening an index
 * ======*/

typedef struct gpuir_index gpuir_index;

/* Receives one token. Returns 0, or a GPUIR_E_ code that ends the analysis. */
typedef int (*gpuir_token_fn)(void *sink, const char *token, size_t len);
/* A tokenizer: calls emit(sink, token, len) for each token of text[0..len), in order, and
 * returns the first non-zero answer of emit, or 0. Must be thread-safe. Tokens need not be
 * NUL-terminated; those over GPUIR_MAX_TERM bytes are dropped and counted, empty ones ignored. */
typedef int (*gpuir_tokenize_fn)(void *user, const char *text, size_t len, gpuir_token_fn emit, void *sink);
/* Receives a token and its place. Of a text, advance 1: the token takes the next position and counts in the document's
 * length; 0: it stands at the position of the token before it, and does not count. Of a term that is repeated at a
 * position the first counts. Returns 0, or a GPUIR_E_ code that ends the analysis. */
typedef int (*gpuir_place_fn)(void *sink, const char *token, size_t len, unsigned advance);
/* A tokenizer whose tokens may share a position. It works as a gpuir_tokenize_fn does, and gives each token an
 * advance. With query 1 the text is a word of a query, and tokens of advance 0 are not asked for. Tokens of advance
 * 0 before a text's first counted token have no position and are left out. An advance over 1 is ARGUMENT, more than
 * GPUIR_MAX_PLACE tokens at a position are LIMIT. */
typedef int (
    *gpuir_tokenize_places_fn)(void *user, const char *text, size_t len, int query, gpuir_place_fn emit, void *sink);

typedef struct gpuir_open_desc {
  const gpuir_allocator *allocator; /* copied; NULL: malloc */
  int simd; /* GPUIR_SIMD_ level for everything done on this index */
  gpuir_tokenize_fn tokenize; /* needed to parse queries on an index built with one */
  void *tokenize_user;
  gpuir_tokenize_places_fn tokenize_places; /* in place of `tokenize`, if it was built with it */
  /* An index in memory instead of a file: the bytes of one, data[0..size), aligned to 8 bytes. They are not copied:
   * they stay where and as they are until gpuir_close. NULL: `path` is opened. */
  const void *data;
  size_t size;
  /* An open index of the same folder. The new index shares the files that the folder still has, so opening a live
   * index again costs little. The old one may be closed before or after the new one. NULL: none. */
  const gpuir_index *share;
} gpuir_open_desc;

/* Opens an index: maps the file `path`, or the files of the last commit in the folder of a live index. With
 * desc->data it takes that index in memory, and `path`, which may be NULL, only stands in messages. It checks the
 * header, the section table and ranges, but no checksums: see gpuir_verify. The file at `path` may be replaced
 * afterwards. *index is released by gpuir_close. `desc` may be NULL. Errors: ARGUMENT (also for bytes that are not
 * aligned), IO, FORMAT, VERSION, NOMEM, LIMIT (a file larger than the address space); BUSY (the writer of a live
 * index committed again and again meanwhile); UNSUPPORTED when GPUIR_NO_LAB leaves out the index's codec. An
 * analyzer that this build lacks is no error here, but in gpuir_query_parse. Thread-safe. */
GPUIR_API int gpuir_open(const char *path, const gpuir_open_desc *desc, gpuir_index **index, gpuir_error *err);
/* Unmaps and frees; NULL is allowed. The index's queries, searchers and cursors must be gone. */
GPUIR_API void gpuir_close(gpuir_index *index);
/* Reads the whole file: checksums, order of terms, every list decoded and held against its
 * directory, bounds and lengths. Errors: CHECKSUM, FORMAT (with the offset), NOMEM. */
GPUIR_API int gpuir_verify(const gpuir_index *index, gpuir_error *err);
/* Checks the directory of the lists without decoding a list: each list must begin behind that of the term before,
 * and the postings must add up to what the index states. Call it before you read all lists of a file that you do
 * not trust. A hostile file could name one list in many terms; reading them all would then take far more time and
 * memory than the file's size suggests. Thread-safe. Errors: ARGUMENT, FORMAT (with the offset). */
GPUIR_API int gpuir_verify_directory(const gpuir_index *index, gpuir_error *err);
