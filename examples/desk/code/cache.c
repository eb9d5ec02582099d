/* cache.c - a cache of thumbnails: the least recently used one goes first. */
#include "cache.h"

#include <stdlib.h>
#include <string.h>

struct entry {
  struct entry *newer, *older;
  size_t bytes;
  char name[64];
};

/* Takes an entry out of the list of all entries. */
static void unlink_entry(struct cache *c, struct entry *e) {
  *(e->newer ? &e->newer->older : &c->newest) = e->older;
  *(e->older ? &e->older->newer : &c->oldest) = e->newer;
}

/* Evicts the least recently used thumbnails until `bytes` more fit. */
void cache_evict(struct cache *c, size_t bytes) {
  while (c->oldest && c->used + bytes > c->limit) {
    struct entry *victim = c->oldest;
    unlink_entry(c, victim);
    c->used -= victim->bytes;
    free(victim);
  }
}

/* Returns the entry of this name, which becomes the most recently used one, or NULL. */
struct entry *cache_find(struct cache *c, const char *name) {
  for (struct entry *e = c->newest; e; e = e->older) {
    if (strcmp(e->name, name) != 0) continue;
    unlink_entry(c, e);
    cache_push(c, e);
    return e;
  }
  return NULL;
}
