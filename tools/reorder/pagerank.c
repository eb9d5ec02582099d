/* pagerank.c - PageRank (Brin, Page: The Anatomy of a Large-Scale Hypertextual Web Search Engine, WWW 1998), by power
 * iteration.
 *
 * A surfer follows one of a page's links with probability d, and else, or on a page without links, goes to any page.
 * What pages gain by the latter is the same for all. So over that gain the ranks are the least numbers with
 *
 *   r(p) = 1 + d * sum of r(q) / links(q) over the pages q that link to p
 *
 * whatever the number of pages is: pages without any links need not be in the graph. The iteration starts from 1 and
 * adds up in one order of links; ranks are given as floats, which hides what is left of rounding.
 */
#include "pagerank.h"

#include "../cli/cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define DAMPING 0.85
#define ENOUGH 1e-12 /* no rank changes by a larger part of itself */
#define MOST_STEPS 1000 /* far beyond: DAMPING^170 is 1e-12 */

struct pagerank {
  cli_buf names; /* of all pages, one behind the other */
  uint64_t *name_end; /* [page] */
  uint32_t npages, room; /* room: in name_end */
  uint32_t *slot, mask; /* page + 1 by the hash of its name; 0: free */
  uint64_t *link; /* to << 32 | from */
  uint64_t nlinks, link_room;
  double *rank; /* [page], once solved */
};

pagerank *pagerank_create(void) {
  pagerank *g = (pagerank *)cli_resize(NULL, 1, sizeof *g);
  memset(g, 0, sizeof *g);
  return g;
}

void pagerank_destroy(pagerank *g) {
  if (!g) return;
  cli_buf_free(&g->names);
  free(g->name_end);
  free(g->slot);
  free(g->link);
  free(g->rank);
  free(g);
}

/* ---- pages by name ------------------------------------------------------------------------------------- */

static uint64_t name_begin(const pagerank *g, uint32_t page) { return page ? g->name_end[page - 1] : 0; }

/* Returns the slot of the page, or the free one where it would stand. */
static uint32_t *find_slot(const pagerank *g, const char *name, size_t len) {
  for (uint64_t at = XXH3_64bits(name, len);; at++) {
    uint32_t *slot = &g->slot[at & g->mask];
    if (!*slot) return slot;
    const uint64_t begin = name_begin(g, *slot - 1);
    if (g->name_end[*slot - 1] - begin == len && !memcmp(g->names.p + begin, name, len)) return slot;
  }
}

static void make_room(pagerank *g) {
  if (g->npages < g->room) return;
  g->room = g->room ? g->room * 2 : 1024;
  g->name_end = (uint64_t *)cli_resize(g->name_end, g->room, sizeof *g->name_end);
  g->slot = (uint32_t *)cli_resize(g->slot, 2 * (size_t)g->room, sizeof *g->slot);
  g->mask = 2 * g->room - 1;
  memset(g->slot, 0, 2 * (size_t)g->room * sizeof *g->slot);
  for (uint32_t page = 0; page < g->npages; page++) {
    const uint64_t begin = name_begin(g, page);
    *find_slot(g, g->names.p + begin, (size_t)(g->name_end[page] - begin)) = page + 1;
  }
}

static uint32_t take_page(pagerank *g, const char *name, size_t len) {
  make_room(g);
  uint32_t *slot = find_slot(g, name, len);
  if (!*slot) {
    cli_buf_add(&g->names, name, len);
    g->name_end[g->npages++] = g->names.n;
    *slot = g->npages;
  }
  return *slot - 1;
}

void pagerank_link(pagerank *g, const char *from, size_t from_len, const char *to, size_t to_len) {
  const uint32_t f = take_page(g, from, from_len), t = take_page(g, to, to_len);
  if (f == t) return;
  if (g->nlinks == g->link_room) {
    g->link_room = g->link_room ? g->link_room * 2 : 1024;
    g->link = (uint64_t *)cli_resize(g->link, g->link_room, sizeof *g->link);
  }
  g->link[g->nlinks++] = (uint64_t)t << 32 | f;
}

uint64_t pagerank_memory(const pagerank *g) {
  const uint64_t pages = (uint64_t)g->room * (sizeof *g->name_end + 2 * sizeof *g->slot), links = g->link_room * 8;
  return g->names.cap + pages + links + g->nlinks * 8 /* qsort's */ + (uint64_t)g->npages * (2 * 8 + 4);
}

/* ---- ranks --------------------------------------------------------------------------------------------- */

static int compare_links(const void *x, const void *y) {
  const uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
  return a < b ? -1 : a > b;
}

/* Sorts the links by their page and leaves each once. */
static void sort_links(pagerank *g) {
  uint64_t n = 0;
  if (g->nlinks) qsort(g->link, g->nlinks, sizeof *g->link, compare_links);
  for (uint64_t i = 0; i < g->nlinks; i++)
    if (!n || g->link[i] != g->link[n - 1]) g->link[n++] = g->link[i];
  g->nlinks = n;
}

/* Does one step: `next` of `rank`. Returns the largest change, in parts of the rank. */
static double step(const pagerank *g, const double *rank, const uint32_t *links, double *next) {
  double most = 0;
  uint64_t i = 0;
  for (uint32_t page = 0; page < g->npages; page++) {
    double sum = 0;
    for (; i < g->nlinks && g->link[i] >> 32 == page; i++) {
      const uint32_t from = (uint32_t)g->link[i];
      sum += rank[from] / links[from];
    }
    next[page] = 1 + DAMPING * sum;
    const double change = fabs(next[page] - rank[page]) / next[page];
    if (change > most) most = change;
  }
  return most;
}

void pagerank_solve(pagerank *g) {
  uint32_t *links = (uint32_t *)cli_resize(NULL, g->npages, sizeof *links); /* of each page */
  double *next = (double *)cli_resize(NULL, g->npages, sizeof *next), change = 1;
  sort_links(g);
  g->rank = (double *)cli_resize(g->rank, g->npages, sizeof *g->rank);
  for (uint32_t page = 0; page < g->npages; page++) {
    g->rank[page] = 1;
    links[page] = 0;
  }
  for (uint64_t i = 0; i < g->nlinks; i++) links[(uint32_t)g->link[i]]++;
  for (int i = 0; i < MOST_STEPS && change > ENOUGH; i++) {
    double *last = g->rank;
    change = step(g, last, links, next);
    g->rank = next;
    next = last;
  }
  free(links);
  free(next);
}

float pagerank_of(const pagerank *g, const char *name, size_t len, int *known) {
  const uint32_t slot = g->room ? *find_slot(g, name, len) : 0;
  *known = slot > 0;
  return slot ? (float)g->rank[slot - 1] : 1;
}
