/* text_cache.h - texts that were decoded of whole files, within a bound: many documents may lie in one. Why a program
 * made no text of a file is kept in the same way: it would be run again, and fail again, for each document of the file.
 *
 * A file is told by its device, number, size and times, and by the hash that its documents have of it. All functions
 * may be called by any thread.
 */
#ifndef GPUIR_TEXT_CACHE_H
#define GPUIR_TEXT_CACHE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define TEXT_CACHE_BYTES ((size_t)64 << 20) /* that a command keeps */

typedef struct text_cache text_cache;

/* A text, which lives until it is let go of. */
typedef struct cached_text {
  const char *text; /* NULL: of such a file there is too much */
  size_t len;
  int failed; /* the text says why there is none */
} cached_text;

/* Returns a cache of `most` bytes of texts, or NULL without memory. A failure is forgotten after so many seconds, as
 * its
 * cause may be gone; 0: it is kept as texts are. */
text_cache *text_cache_create(size_t most, unsigned failure_seconds);
void text_cache_destroy(text_cache *c); /* when all were let go of; NULL is fine */
size_t text_cache_most(const text_cache *c);
/* Returns the text that `how` makes of the file, or NULL. It is to be let go of. */
const cached_text *text_cache_get(text_cache *c, const struct stat *st, uint64_t how, uint64_t hash);
/* Takes text[0..len), which is on the heap, or NULL for one that is too large; `failed`: it says why there is none.
 * Returns it as text_cache_get does; NULL without memory, and the text is freed. */
const cached_text *text_cache_put(text_cache *c, const struct stat *st, uint64_t how, uint64_t hash, char *text,
    size_t len, int failed);
void text_cache_release(text_cache *c, const cached_text *text); /* NULL is fine */

#endif
