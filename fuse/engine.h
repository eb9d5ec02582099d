/* engine.h - a loaded index (a generation) and the searchers that work on it.
 *
 * A generation is immutable and counted: the file system holds a reference to the current one, and to some before it if
 * the index is live; every running request and every open doc/ file holds one to the generation it began with, and each
 * searcher one to that which it was last used on. The last one closes the index.
 *
 * A live index is a folder. Its generations are called by the numbers of its commits, and share the files that they
 * have in common. The generations of an index file are counted from 1.
 */
#ifndef GPUIRFS_ENGINE_H
#define GPUIRFS_ENGINE_H

#include "common.h"

#include <time.h>

/* What tells one version of an index from another: of a file itself, of a live index its manifest. */
typedef struct file_sign {
  uint64_t device, inode, size;
  struct timespec mtime, ctime;
} file_sign;

int file_sign_equal(const file_sign *a, const file_sign *b);

/* Searchers, so many as may work at once. They are made when first needed, and move from generation to generation. */
typedef struct searcher_pool searcher_pool;

/* timeout_ns: of one search; 0: none. NULL without memory. */
searcher_pool *pool_create(unsigned searchers, uint64_t timeout_ns);
/* After the last search; gives back the searchers' references. NULL is fine. */
void pool_destroy(searcher_pool *pool);

typedef struct generation generation;

typedef struct generation_desc {
  const char *path; /* of an index file, or the folder of a live index */
  const char *base; /* where relative source paths start; NULL: in the folder that the index lies in */
  int verify; /* read and check all of it; of a live index, all files that `before` does not have */
  searcher_pool *pool;
} generation_desc;

/* Opens an index. `before` is the generation in use, or NULL: a live index takes over from it the files that they have
 * in common; the new one's number is greater. On failure says why in `msg`, in words that name the file. */
int generation_open(const generation_desc *desc, const generation *before, generation **out, char *msg,
    size_t msg_size);
/* stat's view of the index at a path; 0 or errno. */
int generation_sign(const char *path, file_sign *sign);

generation *generation_ref(generation *g);
void generation_unref(generation *g); /* NULL is fine */
/* No new request begins on g: searchers that rest move on to `next`. The caller has references to both. */
void generation_retire(generation *g, generation *next);

uint64_t generation_id(const generation *g);
int generation_is_live(const generation *g);
const gpuir_index *generation_index(const generation *g);
const file_sign *generation_file(const generation *g);
const char *generation_base(const generation *g); /* where relative source paths start */
uint64_t generation_bytes(const generation *g); /* of its files */
/* Set when a part of a file could not be read any more: what was read of it since counts for nothing. Generations that
 * share files share this. For guard_enter. */
int *generation_broken_flag(generation *g);
int generation_is_broken(const generation *g);

/* Work that can be called off from another thread: a search, or reading a part of a source. Zero-initialised, except
 * for gen. */
struct searcher_slot;
typedef struct ticket {
  generation *gen;
  struct searcher_slot *slot; /* while it has one */
  int cancelled; /* read atomically without a lock by what can be told to stop by a flag */
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
  int keep; /* the parsed query is wanted, too */
} search_request;

typedef struct search_reply {
  gpuir_hit *hits; /* [n], malloc'ed */
  size_t n;
  gpuir_query *query; /* if it is to be kept: to be destroyed, before the generation is let go of */
  uint64_t fallbacks; /* a GPU was wanted and the CPU answered */
  char fallback[160]; /* why */
  char error[160]; /* why it failed, in words */
} search_reply;

/* Parses and ranks: the one place where the mount searches. Waits for a free searcher.
 * Errors: EINVAL, E2BIG, ERANGE, EINTR, ETIMEDOUT, ENOMEM, EOPNOTSUPP, EIO. */
int generation_search(ticket *t, const search_request *request, search_reply *reply);

/* The errno value that stands for a GPUIR_ status. */
int errno_of_status(int status);

#endif
