/* engine.h - a loaded index (a generation) and the pools of threads that search it.
 *
 * A generation is immutable and counted: the file system holds a reference to the current one, and to some before it if
 * the index is live; every running request and every open doc/ file holds one to the generation it began with. The last
 * one closes the index.
 *
 * A live index is a folder. Its generations are called by the numbers of its commits, and share the files that they
 * have in common. The generations of an index file are counted from 1.
 */
#ifndef GPUIRFS_ENGINE_H
#define GPUIRFS_ENGINE_H

#include "common.h"

#include <pthread.h>
#include <time.h>

/* What tells one version of an index from another: of a file itself, of a live index its manifest. */
typedef struct file_sign {
  uint64_t device, inode, size;
  struct timespec mtime, ctime;
} file_sign;

int file_sign_equal(const file_sign *a, const file_sign *b);

/* What all generations search with. Each has pools of its own, made at its first search and ended with the last one
 * after it was replaced: one of processors alone, and one that has a GPU beside them. */
typedef struct engine engine;

typedef struct engine_desc {
  unsigned searchers; /* searches that a pool works on at once */
  unsigned queue; /* searches that wait for one of these at most */
  uint64_t timeout_ns; /* of one search, from when it is asked for; 0: none */
} engine_desc;

/* NULL without memory. */
engine *engine_create(const engine_desc *desc);
/* After the last generation. NULL is fine. */
void engine_destroy(engine *e);

typedef struct generation generation;

typedef struct generation_desc {
  const char *path; /* of an index file, or the folder of a live index */
  const char *base; /* where relative source paths start; NULL: in the folder that the index lies in */
  int verify; /* read and check all of it; of a live index, all files that `before` does not have */
  engine *engine;
} generation_desc;

/* Opens an index. `before` is the generation in use, or NULL: a live index takes over from it the files that they have
 * in common; the new one's number is greater. On failure says why in `msg`, in words that name the file. */
int generation_open(const generation_desc *desc, const generation *before, generation **out, char *msg,
    size_t msg_size);
/* stat's view of the index at a path; 0 or errno. */
int generation_sign(const char *path, file_sign *sign);

generation *generation_ref(generation *g);
void generation_unref(generation *g); /* NULL is fine */
/* No new request begins on g: its pools end, or do so with the last search that runs. The caller has a reference. */
void generation_retire(generation *g);
/* What the pools of all generations have counted; what waits and runs is the current one's. */
void engine_counters(engine *e, generation *now, gpuir_pool_stats *counters);

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

/* Work that can be called off from another thread: a search, or reading a part of a source. */
typedef struct ticket {
  generation *gen;
  int cancelled; /* read and written atomically */
  int complete; /* its search, under the engine's lock */
  pthread_cond_t wake; /* one of these has changed */
  struct ticket *next, **link; /* for the caller's list of running searches */
} ticket;

void ticket_make(ticket *t, generation *g);
void ticket_free(ticket *t);
void ticket_cancel(ticket *t);
int ticket_is_cancelled(ticket *t);

typedef struct search_request {
  const char *text; /* with a where of none: all documents */
  size_t len;
  const char *where; /* NULL: all documents may be hits */
  const char *sort, *collapse; /* as those of a query; "" or NULL: none */
  int all; /* a text without words asks for all documents, also without a where */
  int mode;
  uint32_t k;
  int backend; /* BACKEND_ */
  int rank; /* RANK_ */
  int keep; /* the parsed query is wanted, too */
  int spell; /* near terms are searched in place of words that no document has */
  int stop; /* words that say little are left out */
} search_request;

typedef struct search_reply {
  gpuir_hit *hits; /* [n], malloc'ed */
  uint32_t *plain; /* [n], malloc'ed: the scores of the search, where a second look gave others; NULL otherwise */
  size_t n;
  gpuir_query
      *query; /* if it is to be kept, or has others in place of its words: to be destroyed, before the generation
                       * is let go of */
  size_t left_out; /* words of the query, which had too many */
  char stopped[160]; /* which words are left out; "": none */
  uint64_t fallbacks; /* a GPU was wanted and the CPU answered */
  char fallback[160]; /* why */
  char error[160]; /* why it failed, in words */
} search_reply;

/* Parses and ranks: the one place where the mount searches. While fewer than `searchers` are at work this thread does,
 * and threads that have nothing to do help it; otherwise the search waits for its turn.
 * Errors: EINVAL, E2BIG, ERANGE, EINTR, ETIMEDOUT, ENOMEM, EOPNOTSUPP, EIO; EAGAIN when the queue is full. */
int generation_search(ticket *t, const search_request *request, search_reply *reply);

/* Counts what the documents that match have in a column, as gpuir_facets_count has it; to be destroyed. Errors: as of a
 * search; EINVAL for a column that says nothing of the kind. `why` gets the words. */
int generation_facets(ticket *t, const search_request *request, const char *column, gpuir_facets **facets, char *why,
    size_t why_size);

/* Says whether a where, a sort and a collapse are of the index's fields: 0, or an errno, of which `why` has the words.
 * */
int generation_check(const generation *g, const search_request *request, char *why, size_t why_size);

/* Returns the errno value that stands for a GPUIR_ status. */
int errno_of_status(int status);

#endif
