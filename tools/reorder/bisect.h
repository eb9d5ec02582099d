/* bisect.h - an order of documents that makes gaps small, by recursive graph bisection. */
#ifndef GPUIR_BISECT_H
#define GPUIR_BISECT_H

#include <stdint.h>

/* The forward index: document d holds the distinct terms postings[start[d] .. start[d + 1]), each < terms. */
typedef struct bisect_graph {
  uint32_t documents, terms;
  const uint64_t *start; /* documents + 1 */
  const uint32_t *postings;
} bisect_graph;

typedef struct bisect_desc {
  unsigned threads; /* 0: 1 */
  uint32_t leaf; /* a range of so many documents is not divided further; 0: BISECT_LEAF */
  uint32_t iterations; /* at most, of exchanges in a range; 0: BISECT_ITERATIONS */
  /* Called now and then by the calling thread, with the part done in [0, 1]; not 0 stops. */
  int (*progress)(void *user, double done);
  void *user;
} bisect_desc;

#define BISECT_LEAF 4
#define BISECT_ITERATIONS 20

enum { BISECT_OK = 0, BISECT_STOPPED = 1, BISECT_NOMEM = -1 };

/* Rearranges order[0..documents), a permutation that gives the document at each position, so that documents which
 * share terms come to stand near one another. The answer depends on the graph, `leaf`, `iterations` and the order
 * given, not on the threads. After BISECT_STOPPED and BISECT_NOMEM `order` is some permutation. */
int bisect_order(const bisect_graph *graph, const bisect_desc *desc, uint32_t *order);

/* Bytes that bisect_order allocates, at most, for so many documents, terms and postings. */
uint64_t bisect_memory(uint64_t documents, uint64_t terms, uint64_t postings, unsigned threads);

#endif
