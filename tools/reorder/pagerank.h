/* pagerank.h - PageRank of the pages of a graph that is given link by link. */
#ifndef GPUIR_PAGERANK_H
#define GPUIR_PAGERANK_H

#include <stddef.h>
#include <stdint.h>

typedef struct pagerank pagerank;

pagerank *pagerank_create(void);
void pagerank_destroy(pagerank *g);
/* Adds a link between two pages, which have any bytes as names. A link of a page to itself, and one that is there, add
 * nothing. */
void pagerank_link(pagerank *g, const char *from, size_t from_len, const char *to, size_t to_len);
/* Bytes that the graph has allocated, and those that pagerank_solve takes. */
uint64_t pagerank_memory(const pagerank *g);
/* Computes all ranks. They are determined by the links and the order in which pages first appeared. */
void pagerank_solve(pagerank *g);
/* The rank of a page, over that of a page to which nothing links, so that it is 1 at least; 1 if the graph has no page
 * of this name. *known tells. */
float pagerank_of(const pagerank *g, const char *name, size_t len, int *known);

#endif
