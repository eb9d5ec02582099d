/* gpuir_lab.h - the laboratory on the GPU: the methods of the literature, to compare them with the engine's
 *
 * Compiled from gpuir_lab.cu, which contains the engine (gpuir_cuda.cu): link its object instead of gpuir_cuda.o.
 * Errors are told as in gpuir.h.
 */
#ifndef GPUIR_CUDA_LAB_H
#define GPUIR_CUDA_LAB_H

#include "gpuir.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The laboratory runs one GPU method of the literature at a time, on lists of one's own: to compare methods, not to
 * search. A lab is used by one thread at a time; running allocates nothing. */
typedef struct gpuir_cuda_lab gpuir_cuda_lab;

typedef struct gpuir_cuda_lab_desc {
  int device;
  const char *codec; /* CODEC[:PARAM] of docIDs, as for the builder, but not "auto"; NULL: bp128 */
  const uint32_t *const *lists; /* nlists of them, strictly increasing; used only while the lab is opened */
  const uint32_t *lengths; /* of each, 1 or more */
  size_t nlists;
  uint32_t copies; /* the coded lists are laid out so often: list i of copy c is c * nlists + i; 0: once */
  uint64_t room; /* docIDs that one run may decode, or candidates that it may hold; 0: all lists' */
  size_t queries; /* that one run may take; 0: 1 */
  uint32_t terms; /* lists of all those queries together; 0: 8 each */
  int sent; /* 1: rounds send the coded lists that they need first, from pinned memory of the host, each time; of lists
             * in `ef` that are searched by skip pointers, these and the blocks that may hold candidates. Such a lab
             * takes rounds alone: all else is refused with ARGUMENT */
  int cold; /* 1: twice as many bytes as the device's cache has are written before each timed run */
  int coded; /* 1: coded lists alone are searched, and what methods on arrays need is not prepared */
} gpuir_cuda_lab_desc;

typedef struct gpuir_cuda_lab_result {
  double ms; /* device time of a run, the median */
  uint64_t values; /* that were decoded, or looked for, or selected among */
  uint64_t bytes; /* coded bytes of the lists that were decoded */
  uint64_t mismatches; /* decoded values that differ from the lists' */
  uint64_t checksum; /* sum of the docIDs that were decoded */
  double step_ms[3]; /* "naive", "steps": up to the counts, up to the prefix sums, up to the gather */
} gpuir_cuda_lab_result;

/* Lays lists out on the device. Errors: ARGUMENT, UNSUPPORTED (an unknown codec), NOMEM, BACKEND, LIMIT (the
 * codec's). */
int gpuir_cuda_lab_open(const gpuir_cuda_lab_desc *desc, gpuir_cuda_lab **lab, gpuir_error *err);
void gpuir_cuda_lab_close(gpuir_cuda_lab *lab); /* NULL: nothing */

/* Bytes a second, read and written, of a device-to-device copy of half the lab's room, in `result`: values bytes in ms.
 * What decoding to memory can reach at best. Errors: ARGUMENT, BACKEND. */
int gpuir_cuda_lab_copy(gpuir_cuda_lab *lab, unsigned repeat, gpuir_cuda_lab_result *result, gpuir_error *err);

/* Decodes lists first to first + n - 1 to device memory, `repeat` times, and compares them there with what was
 * given. how: NULL, or "gaps": without the sums over the gaps, where a codec has gaps (nothing is compared then),
 * or "naive" or "steps": qs as in sections 5.2 of Li's thesis; "steps-512", "steps-1024": by blocks of so many threads
 * instead of 256. out: NULL, or room for all docIDs of the lists, one
 * behind the other. Errors: ARGUMENT, LIMIT (more than `room`), BACKEND, UNSUPPORTED (how). */
int gpuir_cuda_lab_decode(gpuir_cuda_lab *lab, size_t first, size_t n, const char *how, unsigned repeat, uint32_t *out,
    gpuir_cuda_lab_result *result, gpuir_error *err);

/* How to intersect. */
typedef struct gpuir_cuda_lab_way {
  const char *method; /* gpuir_cuda_lab_method */
  int coded; /* 1: the coded lists are searched, 0: the lists as they are */
  double crossover; /* "griffin": ratio of lengths up to which MergePath is taken; 0: 128 */
  unsigned repeat; /* 0: 1 */
} gpuir_cuda_lab_way;

/* Returns the i-th method of intersection on the device; NULL behind the last one. */
const char *gpuir_cuda_lab_method(size_t i);

/* Intersects the lists[start[q] .. start[q + 1] - 1] of nq queries in one run. The time has the transfer of the
 * queries in it. counts: nq; docids: NULL, or room for all results, query after query. In *result, values are the
 * docIDs of the shortest lists, checksum the sum of the counts. Errors: ARGUMENT, LIMIT (room, queries or terms),
 * UNSUPPORTED (a method that needs other lists), BACKEND. */
int gpuir_cuda_lab_intersect(gpuir_cuda_lab *lab, const uint32_t *lists, const uint32_t *start, size_t nq,
    const gpuir_cuda_lab_way *way, uint32_t *counts, uint32_t *docids, gpuir_cuda_lab_result *result, gpuir_error *err);

/* Where the time of a batch went, ms. */
typedef struct gpuir_cuda_lab_parts {
  double plan; /* the CPU's, from the call to the first transfer */
  double send, run, fetch; /* the device's: of queries to it, of kernels, of results from it */
} gpuir_cuda_lab_parts;

/* Intersects a batch of queries as gpuir_cuda_lab_intersect does, once, and fetches its results in one transfer:
 * docids has room for `room` of them, query after query. Errors: the same; LIMIT if there are more. */
int gpuir_cuda_lab_batch(gpuir_cuda_lab *lab, const uint32_t *lists, const uint32_t *start, size_t nq,
    const gpuir_cuda_lab_way *way, uint32_t *counts, uint32_t *docids, uint64_t room, gpuir_cuda_lab_parts *parts,
    gpuir_error *err);

/* Confines the lab's runs to so many multiprocessors of the device, by blocks that take all of the others and sleep; 0,
 * or as many as there are: they have all. The others are free again when this is called the next time, when the lab is
 * closed, and after a minute. Errors: ARGUMENT, BACKEND, LIMIT (other work is on the device). */
int gpuir_cuda_lab_confine(gpuir_cuda_lab *lab, unsigned processors, gpuir_error *err);

/* A query in rounds, so that its caller decides after each where to go on (Griffin, section 3.2): `begin` takes its
 * lists, from short to long, and has the shortest one for candidates; `next` lets the device intersect these with the
 * next list, without waiting; `poll` returns 1 when that is done, with *left, which the device writes to memory of the
 * host, 0 while it is not, and a status below 0; `fetch` waits, and copies the candidates that are left. A lab has one
 * query at a time; another `begin` drops it. Methods are "mergepath", "griffin" and "skip". Errors: ARGUMENT, LIMIT,
 * BACKEND, UNSUPPORTED (another method). */
int gpuir_cuda_lab_begin(gpuir_cuda_lab *lab, const uint32_t *lists, size_t k, const gpuir_cuda_lab_way *way,
    gpuir_error *err);
int gpuir_cuda_lab_next(gpuir_cuda_lab *lab, gpuir_error *err);
int gpuir_cuda_lab_poll(gpuir_cuda_lab *lab, uint32_t *left, gpuir_error *err);
int gpuir_cuda_lab_fetch(gpuir_cuda_lab *lab, uint32_t *docids, gpuir_error *err);

/* Scores the candidates that are left of such a query on the device, which has the whole index of it: *hits, in the
 * order of their docIDs, has room for all of them. query: a conjunction of terms whose lists the lab was given. Errors:
 * ARGUMENT, BACKEND, UNSUPPORTED (an index in parts, or other queries). */
int gpuir_cuda_lab_score(gpuir_cuda_lab *lab, gpuir_cuda *cuda, const gpuir_query *query, gpuir_hit *hits,
    gpuir_error *err);

/* The i-th way of ranking: "tree", "bucket-select", "radix-select", "radix-sort" on the device, and "partial-sort",
 * which fetches the candidates and sorts on the CPU; NULL behind the last one. */
const char *gpuir_cuda_lab_ranking(size_t i);

/* The k <= 10,000 best of each query's candidates start[q] .. start[q + 1] - 1, whose docIDs differ, in one run:
 * hits[q * k], counts[q] of them. In *result, values are the candidates. Errors: ARGUMENT, LIMIT (room / 2
 * candidates or hits), BACKEND. */
int gpuir_cuda_lab_topk(gpuir_cuda_lab *lab, const gpuir_hit *candidates, const uint32_t *start, size_t nq, size_t k,
    const char *ranking, unsigned repeat, gpuir_hit *hits, uint32_t *counts, gpuir_cuda_lab_result *result,
    gpuir_error *err);

/* Gives a searcher of the same index the literature's methods instead of the engine's, for the same hits: AND by
 * `intersection` (NULL: "skip"), which searches lists as the index codes them, or as bp128 if that is pfd-list or
 * several codecs; OR by an accumulator for each document (Ding et al. 2009, section 8.3); both ranked by `ranking`
 * (NULL: "tree"; one on the device). AND adds scores after each intersection (the same, 8.2), but by "mergepath",
 * "griffin" and "algorithm1" at the end. Needs an index that is all on the device. Errors: ARGUMENT, NOMEM, BACKEND,
 * UNSUPPORTED. */
int gpuir_cuda_lab_attach(gpuir_searcher *searcher, gpuir_cuda *cuda, const char *intersection, const char *ranking,
    int fallback, gpuir_error *err);

/* The steps of such a search. Decoding is a step of its own in AND: the shortest list, and for "mergepath" the others;
 * the other methods decode the blocks that they search while they intersect, and OR decodes while it scores. */
enum {
  GPUIR_CUDA_LAB_SEND,
  GPUIR_CUDA_LAB_DECODE,
  GPUIR_CUDA_LAB_INTERSECT,
  GPUIR_CUDA_LAB_SCORE,
  GPUIR_CUDA_LAB_COLLECT, /* OR: accumulators to candidates, which clears them */
  GPUIR_CUDA_LAB_SELECT, /* the k best, and their transfer */
  GPUIR_CUDA_LAB_STEPS
};
/* Device time of the searcher's steps since it was attached, of AND in ms[0], of OR in ms[1]. Errors: ARGUMENT (not
 * attached), BACKEND. */
int gpuir_cuda_lab_steps(const gpuir_searcher *searcher, double ms[2][GPUIR_CUDA_LAB_STEPS], gpuir_error *err);

#ifdef __cplusplus
}
#endif
#endif /* GPUIR_CUDA_LAB_H */
