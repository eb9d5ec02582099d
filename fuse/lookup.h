/* lookup.h - makes what a name stands for: a search and its answer, a document, a term.
 */
#ifndef GPUIRFS_LOOKUP_H
#define GPUIRFS_LOOKUP_H

#include "work.h"

/* Finds which generation a name in the folder of kind `dir` is about: the one that a document's name says, or the
 * newest. Sets l->g, with a reference also on failure. Called with the lock. */
int lookup_generation(lookup *l, node_kind dir, node_body *body);

/* Makes what the folder of kind `dir` has under the name. body->tree and body->options are the folder's. Called without
 * the lock. 0, or an errno, of which l->why may have the words. */
int lookup_make(lookup *l, node_kind dir, node_body *body);

/* Returns the OPTION_ kinds that a folder in the root takes. */
unsigned lookup_options(node_kind tree);

#endif
