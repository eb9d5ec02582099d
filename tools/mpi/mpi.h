/* mpi.h - what the files of gpuir-mpi share.
 *
 * main.c        main, the ranks, how they fail together    search.c  asks all shards, and merges their hits
 * build.c       index, split: one shard a rank             query.c   query
 * statistics.c  what the shards count together             bench.c   bench
 * shards.c      the files of a collection; join           ordered.c hits by the values of fields
 * facets.c      facets
 *
 * Each rank is a process with a shard of its own. What all of them do alike, such as reading options, only the first
 * one speaks of.
 */
#ifndef GPUIR_MPI_H
#define GPUIR_MPI_H

#include "../cli/cli.h"

/* The C++ classes of older headers are no use here. */
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

extern int mpi_rank, mpi_ranks;

/* From here on all ranks speak, each with its number; or the first one alone. */
void mpi_all_speak(void);
void mpi_first_speaks(void);
/* Returns the greatest of all ranks' exit codes: what has failed on one has failed on all. */
int mpi_agree(int code);
/* The device for this rank, if `backend` asks for one: the ranks of a machine take its devices in turn. All ranks call
 * it. */
cli_devices mpi_device(int backend);

/* ---- the files of a collection (shards.c) ---- */

enum { MPI_PART, MPI_NEW, MPI_SHARD }; /* a part that is built; its shard, on probation; in its place */
/* Returns the path of a file of shard `number`, to be freed. */
char *mpi_path(const char *folder, unsigned number, int what);
/* Makes the folder of a collection, and removes from it what a build left that did not end. An exit code. */
int mpi_prepare(const char *folder);
/* Puts all shards in their places, if no rank has failed, and removes those of an older, larger division. An exit
 * code, the same on all ranks. */
int mpi_publish(const char *folder, int code);

/* The shard of this rank. */
typedef struct mpi_shard {
  const char *folder;
  gpuir_index *index;
  gpuir_index_info info;
  gpuir_shard_info place;
} mpi_shard;

/* Opens it, and checks that all ranks have shards of one collection. An exit code, the same on all ranks. */
int mpi_open(mpi_shard *s, const char *folder);
void mpi_close(mpi_shard *s);
/* Adds documents [from, to) of an index, which is at `input`, to the builder of one at `output`. */
int mpi_copy_documents(const gpuir_index *index, const char *input, uint32_t from, uint32_t to, gpuir_builder *builder,
    const char *output);

/* ---- statistics.c ---- */

/* Counts what all parts hold together: fills *place and, to be freed, in how many documents each of the part's terms
 * is. All ranks call it. An exit code, the same on all ranks. */
int mpi_count(const gpuir_index *part, gpuir_shard_info *place, uint32_t **dfs);

/* ---- search.c ---- */

/* A shard of another rank of the same machine, which this one helps with its queries. */
typedef struct mpi_guest {
  unsigned number;
  int tried; /* 1: it was opened, or cannot be: then searcher is NULL */
  gpuir_index *index;
  gpuir_shard_info place;
  gpuir_searcher *searcher;
} mpi_guest;

/* What a rank needs to ask its shard. */
typedef struct mpi_search {
  const mpi_shard *shard;
  gpuir_searcher *searcher;
  gpuir_query_desc desc;
  size_t k; /* at most the collection's documents */
  size_t enough; /* of ANDOR: documents with all words that are, if fewer than k; 0: k */
  MPI_Datatype type; /* k hits */
  MPI_Op merge; /* of two times k hits the best k */
  MPI_Datatype near_type; /* a gpuir_near_term */
  MPI_Op nearest; /* of two of them the better one */
  MPI_Comm node; /* the ranks that share memory with this one */
  int here, nhere; /* this one's number among them, and how many they are */
  mpi_guest *guests; /* [nhere] */
  unsigned threads; /* of searchers of guests; 0: nobody is helped */
  MPI_Win window; /* what they share, twice: a ticket a rank, and `room` thresholds */
  uint32_t *shared;
  size_t room;
  unsigned round; /* which half is in use: round % 2 */
  uint64_t failures;
  double spent, busy; /* seconds of processor time, and by the clock, in searches of this rank */
} mpi_search;

/* Queries that have been read by all ranks. */
typedef struct mpi_batch {
  size_t n;
  char **texts;
  size_t *lens;
  int mode; /* of the queries */
  int *statuses; /* the same on all ranks; 0: queries[i] is there */
  gpuir_query **queries; /* weighed by what all shards know */
  size_t *all; /* of ANDOR: documents with all words, where those with any are the answer; otherwise SIZE_MAX */
} mpi_batch;

/* An exit code, the same on all ranks. */
int mpi_search_open(mpi_search *s, const mpi_shard *shard, gpuir_searcher *searcher);
void mpi_search_close(mpi_search *s);
/* Parses b->texts on all ranks, in mode `mode`. err: [n] of what failed, or NULL. */
void mpi_parse(mpi_search *s, mpi_batch *b, int mode, gpuir_error *err);
void mpi_batch_free(mpi_batch *b);
/* Answers a batch: hits[i * k ..) of all ranks become the best k of all shards, by their numbers in the collection,
 * behind the last of them hits with docID GPUIR_END. Queries that fail are told of, and have none. `everywhere`: not
 * only the
 * first rank gets them. */
void mpi_ask(mpi_search *s, const mpi_batch *b, gpuir_hit *hits, int everywhere);
/* The same for queries with an order, or of whose hits with one value one is kept. */
void mpi_ask_ordered(mpi_search *s, const mpi_batch *b, gpuir_hit *hits, int everywhere);
/* Says that the search of query number `query` of a batch failed here. */
void mpi_search_failed(mpi_search *s, size_t query, int status);
/* Gathers what every rank has at the first one: *all are the bytes of all ranks, those of rank r from places[r] to
 * places[r + 1]. All ranks call it. */
void mpi_gather(const cli_buf *own, cli_buf *all, size_t *places);
/* Compares two values of a key or a path, as the library orders them. */
int mpi_value_compare(int column, const char *a, size_t a_len, const char *b, size_t b_len);
/* Parses and answers: with ANDOR those queries again, by OR, of which AND found less than k. */
void mpi_answer(mpi_search *s, mpi_batch *b, gpuir_hit *hits, gpuir_error *err);

/* ---- the commands ---- */

int mpi_index(int argc, char **argv);
int mpi_split(int argc, char **argv);
int mpi_join(int argc, char **argv);
int mpi_query(int argc, char **argv);
int mpi_facets(int argc, char **argv);
int mpi_bench(int argc, char **argv);
int mpi_help(void);

#endif
