/* engine.h - a loaded index (a generation) and the searchers that work on it.
 *
 * A generation is immutable and counted: the file system holds a reference to the current one, every running
 * request and every open doc/ file holds one to the generation it began with. The last one closes the index.
 */
#ifndef GPUIRFS_ENGINE_H
#define GPUIRFS_ENGINE_H

#include "common.h"

#include <time.h>

/* What tells one version of a file from another. */
typedef struct file_sign {
  uint64_t device, inode, size;
  struct timespec mtime, ctime;
} file_sign;

int file_sign_equal(const file_sign *a, const file_sign *b);

typedef struct generation generation;

typedef struct generation_desc {
  const char *path;
  int verify;          /* read and check all of it */
  unsigned searchers;  /* that work at once */
  uint64_t timeout_ns; /* of one search; 0: none */
} generation_desc;

/* Opens an index; `id` is its number. On failure says why in `msg`, in words that name the file. */
int generation_open(const generation_desc *desc, uint64_t id, generation **out, char *msg, size_t msg_size);
/* stat's view of a path; 0 or errno. */
int generation_sign(const char *path, file_sign *sign);

generation *generation_ref(generation *g);
void generation_unref(generation *g); /* NULL is fine */

uint64_t generation_id(const generation *g);
const gpuir_index *generation_index(const generation *g);
const file_sign *generation_file(const generation *g);
uint32_t generation_documents(const generation *g);
/* Set when a part of the file could not be read any more: what was read of it since counts for nothing. For
 * guard_enter. */
int *generation_broken_flag(generation *g);
int generation_is_broken(const generation *g);

/* Work that can be called off from another thread: a search, or reading a part of a source. Zero-initialised, except
 * for gen. */
struct searcher_slot;
typedef struct ticket {
  generation *gen;
  struct searcher_slot *slot; /* while it has one */
  int cancelled;
  struct ticket *next, **link; /* for the caller's list of running searches */
} ticket;

void ticket_cancel(ticket *t);
int ticket_is_cancelled(ticket *t);

typedef struct search_request {
  const char *text;
  size_t len;
  int mode;
  uint32_t k;
  int backend; /* BACKEND_ */
} search_request;

/* Parses and ranks. *hits is malloc'ed. *fallbacks is increased when a GPU was wanted and the CPU answered;
 * `why` then says why. Waits for a free searcher.
 * Errors: EINVAL, E2BIG, ERANGE, EINTR, ETIMEDOUT, ENOMEM, EOPNOTSUPP, EIO. */
int generation_search(ticket *t, const search_request *request, gpuir_hit **hits, size_t *n,
                      uint64_t *fallbacks, char *why, size_t why_size);

#endif
