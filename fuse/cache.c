/* cache.c - nodes and results. */
#include "cache.h"

static uint64_t hash_bytes(uint64_t seed, const char *bytes, size_t n) { /* FNV-1a, with a final mix */
  uint64_t h = UINT64_C(14695981039346656037) ^ seed;
  size_t i;
  for (i = 0; i < n; i++) h = (h ^ (unsigned char)bytes[i]) * UINT64_C(1099511628211);
  h ^= h >> 32;
  h *= UINT64_C(0x9E3779B97F4A7C15);
  return h ^ h >> 29;
}

int cache_init(cache *c, size_t limit) {
  memset(c, 0, sizeof *c);
  c->limit = limit;
  c->next_id = 1;
  /* About as many buckets as nodes fit; the tables never grow. */
  c->buckets = 1024;
  while (c->buckets < limit / NODE_COST && c->buckets < (size_t)1 << 24) c->buckets *= 2;
  c->by_ino = calloc(c->buckets, sizeof *c->by_ino);
  c->by_name = calloc(c->buckets, sizeof *c->by_name);
  c->by_key = calloc(c->buckets, sizeof *c->by_key);
  if (c->by_ino && c->by_name && c->by_key) return 0;
  cache_destroy(c);
  return ENOMEM;
}

/* ---- lists --------------------------------------------------------------------------------------------- */

static void list_push(node_list *list, node *n) {
  n->newer = NULL;
  n->older = list->newest;
  if (list->newest) list->newest->newer = n;
  else list->oldest = n;
  list->newest = n;
}

static void list_remove(node_list *list, node *n) {
  if (n->newer) n->newer->older = n->older;
  else list->newest = n->older;
  if (n->older) n->older->newer = n->newer;
  else list->oldest = n->newer;
  n->newer = n->older = NULL;
}

/* ---- results ------------------------------------------------------------------------------------------- */

static void result_free(result *r) {
  free(r->key);
  free(r->bytes);
  free(r->links);
  free(r->sources);
  free(r);
}

result *result_find(cache *c, const char *key, size_t key_len) {
  uint64_t hash = hash_bytes(0, key, key_len);
  result *r;
  for (r = c->by_key[hash & (c->buckets - 1)]; r; r = r->next)
    if (r->hash == hash && r->key_len == key_len && memcmp(r->key, key, key_len) == 0) {
      r->refs++;
      return r;
    }
  return NULL;
}

result *result_add(cache *c, const char *key, size_t key_len, char *bytes, size_t size, hit_link *links,
    uint32_t nlinks) {
  result *r = key ? result_find(c, key, key_len) : NULL;
  if (r) { /* another request made it meanwhile */
    free(bytes);
    free(links);
    return r;
  }
  r = calloc(1, sizeof *r);
  if (r && key) r->key = malloc(key_len + 1);
  if (!r || (key && !r->key)) {
    free(r);
    free(bytes);
    free(links);
    return NULL;
  }
  r->refs = 1;
  r->bytes = bytes;
  r->size = size;
  r->links = links;
  r->nlinks = nlinks;
  if (key) {
    memcpy(r->key, key, key_len);
    r->key_len = key_len;
    r->hash = hash_bytes(0, key, key_len);
    r->next = c->by_key[r->hash & (c->buckets - 1)];
    c->by_key[r->hash & (c->buckets - 1)] = r;
  }
  c->results++;
  return r;
}

void result_unref(cache *c, result *r) {
  if (!r || --r->refs) return;
  if (r->key) {
    result **at = &c->by_key[r->hash & (c->buckets - 1)];
    while (*at != r) at = &(*at)->next;
    *at = r->next;
  }
  c->results--;
  result_free(r);
}

/* ---- nodes --------------------------------------------------------------------------------------------- */

uint32_t ino_link(uint64_t ino) { return ino < NODE_FIXED_END ? 0 : (uint32_t)(ino & LINKS_MAX); }

static node **ino_bucket(cache *c, uint64_t ino) { return &c->by_ino[(ino >> LINK_BITS) & (c->buckets - 1)]; }

node *cache_by_ino(cache *c, uint64_t ino) {
  uint32_t link = ino_link(ino);
  node *n;
  for (n = *ino_bucket(c, ino); n; n = n->next_ino)
    if (n->ino == ino - link) return link && (!n->body.res || link > n->body.res->nlinks) ? NULL : n;
  return NULL;
}

node *cache_by_name(cache *c, uint64_t parent, const char *name, size_t len) {
  uint64_t hash = hash_bytes(parent, name, len);
  node *n;
  for (n = c->by_name[hash & (c->buckets - 1)]; n; n = n->next_name)
    if (n->name_hash == hash && n->parent == parent && n->name_len == len && memcmp(n->name, name, len) == 0) return n;
  return NULL;
}

void cache_touch(cache *c, node *n) {
  if (n->state != NODE_LISTED || c->listed.newest == n) return;
  list_remove(&c->listed, n);
  list_push(&c->listed, n);
}

static void node_wait(cache *c, node *n) {
  n->state = NODE_WAITING;
  list_push(&c->waiting, n);
  c->waiting_nodes++;
  c->waiting_cost += n->cost;
}

static void node_unwait(cache *c, node *n) {
  list_remove(&c->waiting, n);
  n->state = NODE_LEAVING;
  c->waiting_nodes--;
  c->waiting_cost -= n->cost;
}

static void node_free(cache *c, node *n) {
  node **at = ino_bucket(c, n->ino);
  while (*at != n) at = &(*at)->next_ino;
  *at = n->next_ino;
  if (n->state == NODE_WAITING) node_unwait(c, n);
  c->leaving_cost -= n->cost;
  c->nodes--;
  result_unref(c, n->body.res);
  free(n);
}

/* A listed node leaves. The kernel is told of it only if it knows it. */
static void node_leave(cache *c, node *n) {
  node **at = &c->by_name[n->name_hash & (c->buckets - 1)];
  while (*at != n) at = &(*at)->next_name;
  *at = n->next_name;
  list_remove(&c->listed, n);
  c->listed_cost -= n->cost;
  c->leaving_cost += n->cost;
  n->state = NODE_LEAVING;
  if (n->lookups == 0) node_free(c, n);
  else node_wait(c, n);
}

node *cache_add(cache *c, uint64_t parent, const char *name, size_t len, const node_body *body, int listed) {
  node *n = listed ? cache_by_name(c, parent, name, len) : NULL;
  node **at;
  if (n) { /* another request made it meanwhile, or it has been checked again */
    if (n->body.kind == body->kind && n->body.generation == body->generation && n->body.res == body->res &&
        n->body.mode == body->mode && n->body.uid == body->uid && n->body.gid == body->gid) {
      result_unref(c, body->res);
      n->lookups++;
      cache_touch(c, n);
      return n;
    }
    node_leave(c, n);
  }
  n = calloc(1, sizeof *n + len + 1);
  if (!n) {
    result_unref(c, body->res);
    return NULL;
  }
  n->ino = c->next_id++ << LINK_BITS;
  n->parent = parent;
  n->lookups = 1;
  n->body = *body;
  n->cost = NODE_COST + len;
  if (body->res)
    n->cost += body->res->size + body->res->key_len + body->res->nlinks * sizeof *body->res->links +
        body->res->nsources * sizeof *body->res->sources;
  n->name_len = len;
  memcpy(n->name, name, len);
  at = ino_bucket(c, n->ino);
  n->next_ino = *at;
  *at = n;
  c->nodes++;
  if (!listed) {
    c->leaving_cost += n->cost;
    node_wait(c, n); /* the kernel still holds its folder, so it is told after it knows the name */
    return n;
  }
  n->state = NODE_LISTED;
  n->name_hash = hash_bytes(parent, name, len);
  at = &c->by_name[n->name_hash & (c->buckets - 1)];
  n->next_name = *at;
  *at = n;
  list_push(&c->listed, n);
  c->listed_cost += n->cost;
  while (c->listed_cost > c->limit && c->listed.oldest != n) {
    node_leave(c, c->listed.oldest);
    c->evicted++;
  }
  return n;
}

void cache_forget(cache *c, node *n, uint64_t lookups) {
  n->lookups = lookups < n->lookups ? n->lookups - lookups : 0;
  if (n->lookups == 0 && n->state != NODE_LISTED) node_free(c, n);
}

static int is_kept(const node *n, uint64_t newest, uint64_t oldest) {
  const uint64_t generation = n->body.generation;
  if (generation == 0 || generation == newest) return 1;
  /* A link to a file is looked up again: what stands in the file may be of the next generation. */
  return n->body.named && n->parent == NODE_DOC_ROOT && n->body.kind != NODE_LINK && generation >= oldest;
}

void cache_keep_generations(cache *c, uint64_t newest, uint64_t oldest) {
  node *n = c->listed.oldest;
  while (n) {
    node *newer = n->newer;
    if (!is_kept(n, newest, oldest)) node_leave(c, n);
    n = newer;
  }
}

int cache_next_waiting(cache *c, uint64_t *parent, char name[NAME_LIMIT + 1], size_t *len) {
  node *n = c->waiting.oldest;
  if (!n) return 0;
  node_unwait(c, n);
  *parent = n->parent;
  *len = n->name_len;
  memcpy(name, n->name, n->name_len + 1);
  return 1;
}

int cache_many_waiting(cache *c) {
  if (c->leaving_known > c->leaving_cost) c->leaving_known = c->leaving_cost;
  return c->waiting_nodes > 1024 || c->waiting_cost > c->limit / 8 || c->leaving_cost - c->leaving_known > c->limit / 8;
}

void cache_none_waiting(cache *c) {
  while (c->waiting.oldest) node_unwait(c, c->waiting.oldest);
  c->leaving_known = c->leaving_cost;
}

void cache_destroy(cache *c) {
  size_t i;
  for (i = 0; c->by_ino && i < c->buckets; i++) {
    node *n = c->by_ino[i];
    while (n) {
      node *next = n->next_ino;
      result_unref(c, n->body.res);
      free(n);
      n = next;
    }
  }
  free(c->by_ino);
  free(c->by_name);
  free(c->by_key);
  memset(c, 0, sizeof *c);
}
