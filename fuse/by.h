/* by.h - by/<column>/<value>/: what these folders list.
 *
 * by/ lists the fields that have values worth a list: keys, paths and dates. by/<column>/<value>/ is the tree of
 * queries for the documents that have the value. It has a by/ of its own, which is not listed, so that find, du and
 * grep -r end.
 */
#ifndef GPUIRFS_BY_H
#define GPUIRFS_BY_H

#include "work.h"

/* The folders of queries in by/<column>/<value>/, and what they are in the root. */
enum { BY_BRANCHES = 6 };
typedef struct by_branch {
  const char *name;
  node_kind tree;
} by_branch;
extern const by_branch by_branches[BY_BRANCHES];

/* Returns whether a folder of this kind lists what by_list makes. */
int by_lists(node_kind kind);
/* Makes the names that a folder lists: the links of *out, which has a reference. l->g is the generation, l->given and
 * l->column are the folder's. 0, or an errno, of which l->why may have the words. Called without the lock. */
int by_list(lookup *l, node_kind kind, result **out);

#endif
