/* work.h - a look-up of a new name, while it is worked on: its search, its answer, and how it is called off.
 */
#ifndef GPUIRFS_WORK_H
#define GPUIRFS_WORK_H

#include "fs.h"

typedef struct lookup {
  fuse_req_t req;
  fs *f;
  generation *g;
  int older; /* g is not the newest */
  const char *name;
  size_t len;
  result *given; /* what the folder asks for: ASKED_PARTS strings, with a reference; NULL: nothing */
  char column[NAME_LIMIT + 1]; /* in by/<column>/ */
  result *before; /* what the name stood for when it was asked for last, if that is to be checked; or NULL */
  char why[WHY_SIZE]; /* it failed, in words; "": as its error says */
  char note[WHY_SIZE]; /* what the answer does not show: a word that was meant as an operator; "": nothing */
} lookup;

/* Notes why a look-up fails; returns its error. */
int lookup_fails(lookup *l, int error, const char *why);

/* Lets the work that *t stands for be called off: by a signal to the process that asks, or by shutting down. */
void ticket_begin(fuse_req_t req, fs *f, generation *g, ticket *t);
void ticket_end(fuse_req_t req, fs *f, ticket *t);
/* When work that begins now is to end, as source_range has it; 0: never. */
uint64_t lookup_deadline(const fs *f);

/* Searches, and counts it. 0 or an errno, of which l->why has the words. */
int lookup_search(lookup *l, const search_request *request, search_reply *reply);

/* A result known by its key, counted as a hit, or NULL. */
result *lookup_memo(fs *f, const char *key, size_t key_len);
/* Returns a part, ASKED_, of what the folder that is looked in asks for; "": nothing. */
const char *lookup_asked(const lookup *l, int part);
/* Returns its where; NULL: there is none. */
const char *lookup_where(const lookup *l);
/* Counts what documents have in a column, and counts it as a search. 0 or an errno, of which l->why has the words. */
int lookup_facets(lookup *l, const search_request *request, const char *column, gpuir_facets **facets);

/* Makes a result of what *b holds, which is taken over, and of links. `key` is NULL for one that no other name shares.
 * NULL without memory. */
result *lookup_remember(fs *f, const char *key, size_t key_len, buf *b, hit_link *links, uint32_t nlinks);

#endif
