/* cache.h - what the kernel knows of (nodes) and what queries have answered (results).
 *
 * A node is one name in one folder. The kernel counts its references to a node (lookups); a node that it
 * has forgotten stays as a memo until room is needed. Nodes share results, which are found by a key made of
 * the canonical query, its options, the format and the generation: two spellings of a query search once.
 *
 * A node is either `listed`: found by its name, in the order of use; or `leaving`: evicted or of an old
 * generation, no longer found by its name, and alive only until the kernel lets go of it, which a thread of
 * its own asks for. A leaving node never comes back: a new inode number stands for each (name, generation).
 *
 * Inode numbers: fixed nodes have small ones; others have id << 20, and links in a hits/ folder follow the
 * number of their folder. Links have no node: lookups of them count for the folder.
 *
 * Nothing here locks: callers hold the lock of the file system.
 */
#ifndef GPUIRFS_CACHE_H
#define GPUIRFS_CACHE_H

#include "common.h"
#include "format.h"
#include "path.h"

#include <sys/stat.h>

#define LINK_BITS 20
#define LINKS_MAX ((UINT32_C(1) << LINK_BITS) - 1)
/* What a node costs beside its result: here, and as an inode and a name in the kernel. */
#define NODE_COST 2048

typedef enum node_kind {
  NODE_NONE,
  NODE_ROOT, /* the fixed nodes; the number is the inode's */
  NODE_README,
  NODE_AGENTS,
  NODE_VERSION,
  NODE_STATS,
  NODE_QUERY_ROOT,
  NODE_HITS_ROOT,
  NODE_FILES_ROOT,
  NODE_PASS_ROOT,
  NODE_GREP_ROOT,
  NODE_DOC_ROOT,
  NODE_TERM_ROOT,
  NODE_BY_ROOT,
  NODE_FACET_ROOT,
  NODE_FIXED_END,
  NODE_OPTION, /* query/@or/, hits/@or/, by/ext/c/query/ */
  NODE_BY, /* by/ext/c/by/ */
  NODE_COLUMN, /* by/ext/; it is called as its field */
  NODE_VALUE, /* by/ext/c/ */
  NODE_FACET, /* by/ext/c/facet/ */
  NODE_BYTES, /* a regular file: its result's bytes */
  NODE_HITS, /* hits/<q>/: its entries are links */
  NODE_FILES, /* files/<q>/: its entries are regular files */
  NODE_LINK, /* a link: its result's bytes are the target */
  NODE_TEXT /* a document whose text lies in the index */
} node_kind;

/* A source file as it was when a result was made of it, or why it could not be opened. The result is good as long as
 * this is so. */
typedef struct source_state {
  uint32_t docid; /* of a document that was taken from it */
  int error;
  dev_t device;
  ino_t inode;
  off_t size;
  struct timespec mtime, ctime;
} source_state;

typedef struct result {
  struct result *next; /* in the table */
  uint64_t hash;
  unsigned refs;
  char *key; /* NULL: not in the table */
  size_t key_len;
  char *bytes;
  size_t size;
  hit_link *links;
  uint32_t nlinks;
  source_state *sources; /* [nsources] */
  uint32_t nsources;
} result;

/* What a node is, apart from its place in the cache. */
typedef struct node_body {
  node_kind kind;
  node_kind tree; /* of an option or of a folder of hits: the folder in the root that it stands in */
  uint64_t generation; /* 0: the same in all */
  int named; /* its name, or the targets of its links, say which generation that is */
  name_options options;
  unsigned depth; /* folders between what stands in it and the mount point */
  unsigned asked; /* of them, those that ask for values of fields */
  /* The node's own reference, or NULL; of a folder of names that is no answer: what they ask for, ASKED_PARTS strings.
   * */
  result *res;
  uint32_t docid; /* of NODE_TEXT */
  int recheck; /* may have changed without the index changing: it is made of source files */
  mode_t mode; /* with the type */
  uid_t uid;
  gid_t gid;
  off_t size;
  struct timespec mtime;
} node_body;

typedef struct node {
  uint64_t ino, parent, lookups;
  node_body body;
  struct node *next_ino, *next_name; /* in the tables */
  struct node *newer, *older; /* in order of use while listed, of arrival while waiting */
  uint64_t name_hash;
  enum { NODE_LISTED, NODE_WAITING, NODE_LEAVING } state; /* waiting: leaving, and the kernel is to be told */
  size_t cost;
  size_t name_len;
  char name[]; /* NUL-terminated */
} node;

typedef struct node_list {
  node *newest, *oldest;
} node_list;

typedef struct cache {
  node **by_ino, **by_name;
  result **by_key;
  size_t buckets; /* of each table, a power of two */
  node_list listed, waiting;
  size_t nodes, results;
  size_t listed_cost, leaving_cost, limit;
  size_t waiting_nodes, waiting_cost; /* of those that are leaving */
  size_t leaving_known; /* so much was leaving when whole folders were dropped last, and still is */
  uint64_t next_id;
  uint64_t evicted;
} cache;

int cache_init(cache *c, size_t limit);
void cache_destroy(cache *c);

/* The node with this inode number, or the folder of the link that has it; NULL when there is none. */
node *cache_by_ino(cache *c, uint64_t ino);
/* Returns which link of its folder the inode is, from 1; 0 for a node's own number. */
uint32_t ino_link(uint64_t ino);

/* The listed node of that name; the caller marks its use with cache_touch. */
node *cache_by_name(cache *c, uint64_t parent, const char *name, size_t len);
void cache_touch(cache *c, node *n);

/* Makes a node with one lookup. A listed node of the same name with the same content is used instead, one
 * with another content leaves. Takes over body->res in any case. A node that is not to be listed (its
 * generation is gone already) leaves at once. NULL without memory. Older nodes may be evicted. */
node *cache_add(cache *c, uint64_t parent, const char *name, size_t len, const node_body *body, int listed);

/* The kernel has forgotten n lookups: the node may be freed by this. */
void cache_forget(cache *c, node *n, uint64_t lookups);

/* All nodes of other generations than the newest leave. Documents whose names say their generation stay from `oldest`
 * on, if they are no links. */
void cache_keep_generations(cache *c, uint64_t newest, uint64_t oldest);

/* Takes the next node that the kernel is to be told of: its folder and its name; 0 when there is none. */
int cache_next_waiting(cache *c, uint64_t *parent, char name[NAME_LIMIT + 1], size_t *len);
/* So many are waiting that telling the kernel of one after the other may not keep up with new ones. Or so much has been
 * left that the kernel does not let go of: a folder that somebody works in when it leaves stays in its memory with the
 * links that are looked up afterwards, until a folder above is dropped. */
int cache_many_waiting(cache *c);
/* The kernel is going to be told to drop whole folders: nobody waits any more. */
void cache_none_waiting(cache *c);

/* Results. A found or made one has a reference more, which result_unref gives back. */
result *result_find(cache *c, const char *key, size_t key_len);
/* Takes over bytes and links, also on failure (NULL). Returns the one that has the key already, if any. */
result *result_add(cache *c, const char *key, size_t key_len, char *bytes, size_t size, hit_link *links,
    uint32_t nlinks);
void result_unref(cache *c, result *r); /* NULL is fine */

#endif
