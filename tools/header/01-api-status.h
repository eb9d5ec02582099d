
/* ========
 * [api-status]  status and errors
 * ======*/

enum {
  GPUIR_OK = 0,
  GPUIR_E_ARGUMENT = -1, /* a NULL or contradictory argument */
  GPUIR_E_NOMEM = -2, /* the allocator returned NULL */
  GPUIR_E_IO = -3, /* a system call failed; msg holds its reason */
  GPUIR_E_FORMAT = -4, /* not an index, or a damaged one */
  GPUIR_E_VERSION = -5, /* an index of another format, or with an unknown required section */
  GPUIR_E_CHECKSUM = -6, /* a section's checksum is wrong */
  GPUIR_E_RANGE = -7, /* k1, b or the sum of weights lie outside what a score can hold */
  GPUIR_E_QUERY = -8, /* a quote is not closed, or no positive term is left in the query */
  GPUIR_E_TERMS = -9, /* more than GPUIR_MAX_TERMS distinct terms */
  GPUIR_E_DEADLINE = -10, /* the searcher's timeout ran out */
  GPUIR_E_CANCELLED = -11, /* the cancel flag or a callback said stop */
  GPUIR_E_UNSUPPORTED = -12, /* the build lacks an analyzer, codec ..., or the index positions */
  GPUIR_E_LIMIT = -13, /* a limit of the format is exceeded */
  GPUIR_E_BUSY = -14, /* somebody, perhaps this process, builds or writes the same index; or two batches are in
                              * flight already; or a pool's queue is full */
  GPUIR_E_NOT_FOUND = -15, /* no such term or document */
  GPUIR_E_BACKEND = -16, /* a backend failed; msg holds its reason */
  GPUIR_E_WHERE = -17 /* a where says nothing that can be understood; offset is the byte's in its text */
};

#define GPUIR_MAX_TERM 255 /* bytes of a term */
#define GPUIR_MAX_PLACE 15 /* tokens at one position of a text */
#define GPUIR_MAX_TERMS 64 /* distinct terms of a query, positive and negated together */
#define GPUIR_MAX_PREFIX_POSTINGS (1u << 24) /* that the terms which a prefix stands for may have together */
#define GPUIR_MAX_QUERY_POSTINGS \
  (1u << 26) /* that those of all prefixes of a query may have, unless it asks for more */
#define GPUIR_END UINT32_MAX /* what an exhausted cursor's docID is */
#define GPUIR_SCORE_ONE 1048576.0 /* the fixed-point unit of gpuir_hit.score: 2^20 */

/* Detail of a failure; filled only when a function fails. `offset` is a byte offset in the
 * file (or in the query text) where that makes sense, otherwise 0. */
typedef struct gpuir_error {
  int code;
  uint64_t offset;
  char msg[160];
} gpuir_error;

/* A short English name of a status code; never NULL. Thread-safe. */
GPUIR_API const char *gpuir_strerror(int status);
/* The linked implementation's GPUIR_VERSION_NUMBER and its text, "0.2.0". */
GPUIR_API unsigned gpuir_version_number(void);
GPUIR_API const char *gpuir_version(void);

/* Memory hook. resize(user, NULL, 0, n) allocates, resize(user, p, old, n) grows or shrinks
 * and resize(user, p, old, 0) frees; NULL means out of memory. It must be thread-safe and
 * return memory aligned for any type. A NULL function stands for malloc, realloc and free. */
typedef struct gpuir_allocator {
  void *(*resize)(void *user, void *ptr, size_t old_size, size_t new_size);
  void *user;
} gpuir_allocator;

/* SIMD levels; GPUIR_SIMD_AUTO takes the best that the machine has. Asking for a level that
 * it lacks gives the best below. All levels give the same bytes and hits. */
enum { GPUIR_SIMD_AUTO = 0, GPUIR_SIMD_SCALAR = 1, GPUIR_SIMD_AVX2 = 2, GPUIR_SIMD_AVX512 = 3 };
/* "scalar", "avx2" or "avx512": what the level `simd` comes to on this machine. */
GPUIR_API const char *gpuir_simd_name(int simd);
