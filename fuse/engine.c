/* engine.c - loaded indexes and the pool of searchers. */
#include "engine.h"

#include "backend.h"
#include "guard.h"
#include "path.h"

#include "../tools/common/source.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>

typedef struct searcher_slot {
  gpuir_searcher *cpu, *gpu; /* made when first needed */
  generation *on; /* what they belong to, with a reference; NULL: there are none */
  int cancel; /* read by the searchers while they work */
  struct searcher_slot *next_free;
} searcher_slot;

struct searcher_pool {
  uint64_t timeout_ns;
  pthread_mutex_t lock; /* for all below, for tickets, and for `retired` of generations */
  pthread_cond_t freed;
  unsigned nslots;
  searcher_slot *slots, *free_slots;
};

/* Whether the files of generations that share some are whole. */
typedef struct health {
  unsigned refs; /* atomic */
  int broken; /* read and written without a lock */
} health;

struct generation {
  uint64_t id;
  gpuir_index *index;
  file_sign file;
  char *base;
  uint32_t documents;
  uint64_t bytes;
  int live;
  health *files;
  searcher_pool *pool;
  int retired;

  pthread_mutex_t lock; /* for all below */
  unsigned refs;
  int backend_state; /* 0: not tried, 1: open, -1: failed */
  backend *gpu;
  char backend_msg[160];
};

/* ---- generations --------------------------------------------------------------------------------------- */

static int same_time(struct timespec a, struct timespec b) { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; }

int file_sign_equal(const file_sign *a, const file_sign *b) {
  return a->device == b->device && a->inode == b->inode && a->size == b->size && same_time(a->mtime, b->mtime) &&
      same_time(a->ctime, b->ctime);
}

int generation_sign(const char *path, file_sign *sign) {
  char manifest[PATH_MAX];
  struct stat st;
  int folder;
  memset(sign, 0, sizeof *sign);
  if (stat(path, &st) != 0) return errno;
  folder = S_ISDIR(st.st_mode);
  if (folder) {
    if ((size_t)snprintf(manifest, sizeof manifest, "%s/manifest", path) >= sizeof manifest) return ENAMETOOLONG;
    if (stat(manifest, &st) != 0) return errno;
  }
  sign->device = (uint64_t)st.st_dev;
  sign->inode = (uint64_t)st.st_ino;
  sign->size = (uint64_t)st.st_size;
  sign->mtime = st.st_mtim;
  /* Renaming a manifest into its place changes its ctime, and some file systems show the name before that. */
  if (!folder) sign->ctime = st.st_ctim;
  return 0;
}

static int no_token(void *sink, const char *token, size_t len) {
  (void)sink, (void)token, (void)len;
  return 0;
}

static void describe(char *msg, size_t size, const char *path, int status, const gpuir_error *err) {
  size_t n = strlen(path);
  if (strncmp(err->msg, path, n) == 0) snprintf(msg, size, "%s", err->msg); /* it names the file already */
  else snprintf(msg, size, "%s: %s", path, err->msg[0] ? err->msg : gpuir_strerror(status));
}

enum { SETTLE_TRIES = 8 };

/* Opens the index that g->file describes. If it was replaced in between, again; if that does not end, the next look at
 * it sees a change. */
static int open_settled(generation *g, const generation_desc *desc, const generation *before, gpuir_error *err) {
  gpuir_open_desc open;
  file_sign after;
  int rc, tries = 0;
  memset(&open, 0, sizeof open);
  if (before && before->files == g->files) open.share = before->index;
  do {
    gpuir_close(g->index);
    free(g->base);
    (void)generation_sign(desc->path, &g->file);
    /* The path may have links, which lead elsewhere from now on. */
    g->base = desc->base ? strdup(desc->base) : source_home(desc->path);
    rc = gpuir_open(desc->path, &open, &g->index, err);
    if (rc != GPUIR_OK) return rc;
  } while (generation_sign(desc->path, &after) == 0 && !file_sign_equal(&g->file, &after) && ++tries < SETTLE_TRIES);
  if (g->base) return GPUIR_OK;
  snprintf(err->msg, sizeof err->msg, "the folder that it lies in cannot be told");
  return GPUIR_E_IO;
}

/* Whether `segment` is a file that `before` has open too: what was read of a file lies in memory once. */
static int is_shared(const gpuir_index *segment, const generation *before) {
  gpuir_index_info mine, other;
  const gpuir_index *old;
  size_t i;
  if (gpuir_index_get_info(segment, &mine) != GPUIR_OK) return 0;
  for (i = 0; before && (old = gpuir_index_segment(before->index, i, NULL)) != NULL; i++)
    if (gpuir_index_get_info(old, &other) == GPUIR_OK && other.tool == mine.tool) return 1;
  return 0;
}

/* Checks all files of g that `before` does not have. */
static int verify(const generation *g, const generation *before, gpuir_error *err) {
  const gpuir_index *segment;
  size_t i;
  int rc = GPUIR_OK;
  for (i = 0; rc == GPUIR_OK && (segment = gpuir_index_segment(g->index, i, NULL)) != NULL; i++)
    if (!is_shared(segment, before)) rc = gpuir_verify(segment, err);
  return rc;
}

/* Opens the index of g and tries what would otherwise only fail when it is used. */
static int load(generation *g, const generation_desc *desc, const generation *before, gpuir_index_info *info,
    gpuir_error *err) {
  int rc;
  guard_enter(&g->files->broken);
  rc = open_settled(g, desc, before, err);
  if (rc == GPUIR_OK) rc = gpuir_index_get_info(g->index, info);
  /* An analyzer that this build lacks would only show when a query is parsed. */
  if (rc == GPUIR_OK) rc = gpuir_analyze(g->index, "", 0, no_token, NULL, err);
  if (rc == GPUIR_OK && desc->verify) rc = verify(g, before, err);
  guard_leave();
  if (!generation_is_broken(g)) return rc;
  snprintf(err->msg, sizeof err->msg, "the file was cut short while it was loaded");
  return GPUIR_E_IO;
}

/* Returns the state of the files of a generation that is to be opened, with a reference: that of `before` if the two
 * may share some; NULL without memory. */
static health *health_for(const generation *before) {
  health *files;
  if (before && before->live && !generation_is_broken(before)) {
    (void)__atomic_add_fetch(&before->files->refs, 1, __ATOMIC_SEQ_CST);
    return before->files;
  }
  files = calloc(1, sizeof *files);
  if (files) files->refs = 1;
  return files;
}

static void health_unref(health *files) {
  if (__atomic_sub_fetch(&files->refs, 1, __ATOMIC_SEQ_CST) == 0) free(files);
}

int generation_open(const generation_desc *desc, const generation *before, generation **out, char *msg,
    size_t msg_size) {
  generation *g = calloc(1, sizeof *g);
  gpuir_index_info info;
  gpuir_error err;
  int rc;
  *out = NULL;
  memset(&err, 0, sizeof err);
  if (g) g->files = health_for(before);
  if (!g || !g->files) {
    snprintf(msg, msg_size, "%s: out of memory", desc->path);
    free(g);
    return ENOMEM;
  }
  rc = load(g, desc, before, &info, &err);
  if (rc != GPUIR_OK) {
    describe(msg, msg_size, desc->path, rc, &err);
    gpuir_close(g->index);
    health_unref(g->files);
    free(g->base);
    free(g);
    return EIO;
  }
  /* A folder may be replaced by another, with fewer commits: no number stands for two snapshots all the same. */
  g->id = before ? before->id + 1 : 1;
  if (info.generation > g->id) g->id = info.generation;
  g->live = info.generation != 0;
  g->documents = (uint32_t)info.documents;
  g->bytes = info.file_bytes;
  g->pool = desc->pool;
  g->refs = 1;
  pthread_mutex_init(&g->lock, NULL);
  *out = g;
  return 0;
}

generation *generation_ref(generation *g) {
  pthread_mutex_lock(&g->lock);
  g->refs++;
  pthread_mutex_unlock(&g->lock);
  return g;
}

void generation_unref(generation *g) {
  unsigned refs;
  if (!g) return;
  pthread_mutex_lock(&g->lock);
  refs = --g->refs;
  pthread_mutex_unlock(&g->lock);
  if (refs) return;
  backend_close(g->gpu);
  gpuir_close(g->index);
  pthread_mutex_destroy(&g->lock);
  health_unref(g->files);
  free(g->base);
  free(g);
}

uint64_t generation_id(const generation *g) { return g->id; }
int generation_is_live(const generation *g) { return g->live; }
const gpuir_index *generation_index(const generation *g) { return g->index; }
const file_sign *generation_file(const generation *g) { return &g->file; }
const char *generation_base(const generation *g) { return g->base; }
uint64_t generation_bytes(const generation *g) { return g->bytes; }
int *generation_broken_flag(generation *g) { return &g->files->broken; }
int generation_is_broken(const generation *g) { return __atomic_load_n(&g->files->broken, __ATOMIC_SEQ_CST); }

/* ---- the pool ------------------------------------------------------------------------------------------ */

searcher_pool *pool_create(unsigned searchers, uint64_t timeout_ns) {
  searcher_pool *p = calloc(1, sizeof *p);
  unsigned i;
  if (p) p->slots = calloc(searchers, sizeof *p->slots);
  if (!p || !p->slots) {
    free(p);
    return NULL;
  }
  p->nslots = searchers;
  p->timeout_ns = timeout_ns;
  for (i = 0; i < searchers; i++) {
    p->slots[i].next_free = p->free_slots;
    p->free_slots = &p->slots[i];
  }
  pthread_mutex_init(&p->lock, NULL);
  pthread_cond_init(&p->freed, NULL);
  return p;
}

/* Moves the searchers of a slot to another generation, with the memory that they have; NULL: ends them. One on the GPU
 * belongs to its generation. */
static void slot_move(searcher_slot *slot, generation *to) {
  generation *from = slot->on;
  if (from == to) return;
  gpuir_searcher_destroy(slot->gpu);
  slot->gpu = NULL;
  if (!to || (slot->cpu && gpuir_searcher_move(slot->cpu, to->index) != GPUIR_OK)) {
    gpuir_searcher_destroy(slot->cpu);
    slot->cpu = NULL;
  }
  slot->on = to ? generation_ref(to) : NULL;
  generation_unref(from);
}

void pool_destroy(searcher_pool *p) {
  unsigned i;
  if (!p) return;
  for (i = 0; i < p->nslots; i++) slot_move(&p->slots[i], NULL);
  pthread_cond_destroy(&p->freed);
  pthread_mutex_destroy(&p->lock);
  free(p->slots);
  free(p);
}

void generation_retire(generation *g, generation *next) {
  searcher_pool *p = g->pool;
  searcher_slot *slot;
  pthread_mutex_lock(&p->lock);
  g->retired = 1;
  for (slot = p->free_slots; slot; slot = slot->next_free)
    if (slot->on == g) slot_move(slot, next);
  pthread_mutex_unlock(&p->lock);
}

void ticket_cancel(ticket *t) {
  searcher_pool *p = t->gen->pool;
  pthread_mutex_lock(&p->lock);
  __atomic_store_n(&t->cancelled, 1, __ATOMIC_RELAXED);
  if (t->slot) __atomic_store_n(&t->slot->cancel, 1, __ATOMIC_RELAXED);
  pthread_cond_broadcast(&p->freed);
  pthread_mutex_unlock(&p->lock);
}

int ticket_is_cancelled(ticket *t) {
  int cancelled;
  pthread_mutex_lock(&t->gen->pool->lock);
  cancelled = t->cancelled;
  pthread_mutex_unlock(&t->gen->pool->lock);
  return cancelled;
}

static int slot_take(ticket *t) {
  searcher_pool *p = t->gen->pool;
  pthread_mutex_lock(&p->lock);
  while (!p->free_slots && !t->cancelled) pthread_cond_wait(&p->freed, &p->lock);
  if (!t->cancelled) {
    t->slot = p->free_slots;
    p->free_slots = t->slot->next_free;
    __atomic_store_n(&t->slot->cancel, 0, __ATOMIC_RELAXED);
  }
  pthread_mutex_unlock(&p->lock);
  if (!t->slot) return EINTR;
  slot_move(t->slot, t->gen);
  return 0;
}

static void slot_give(ticket *t) {
  searcher_pool *p = t->gen->pool;
  pthread_mutex_lock(&p->lock);
  /* Its retirement did not reach this slot, which was at work; the ticket still has the generation. */
  if (t->gen->retired) slot_move(t->slot, NULL);
  t->slot->next_free = p->free_slots;
  p->free_slots = t->slot;
  t->slot = NULL;
  /* All of them: the one that is woken may have been cancelled. */
  pthread_cond_broadcast(&p->freed);
  pthread_mutex_unlock(&p->lock);
}

/* ---- searching ----------------------------------------------------------------------------------------- */

int errno_of_status(int status) {
  switch (status) {
  case GPUIR_OK: return 0;
  case GPUIR_E_ARGUMENT:
  case GPUIR_E_QUERY: return EINVAL;
  case GPUIR_E_LIMIT:
  case GPUIR_E_TERMS: return E2BIG;
  case GPUIR_E_RANGE: return ERANGE;
  case GPUIR_E_NOMEM: return ENOMEM;
  case GPUIR_E_CANCELLED: return EINTR;
  case GPUIR_E_DEADLINE: return ETIMEDOUT;
  case GPUIR_E_UNSUPPORTED: return EOPNOTSUPP;
  default: return EIO;
  }
}

static int searcher_make(searcher_slot *slot, generation *g, gpuir_searcher **out) {
  gpuir_searcher_desc desc;
  memset(&desc, 0, sizeof desc);
  desc.cancel = &slot->cancel;
  desc.timeout_ns = g->pool->timeout_ns;
  return gpuir_searcher_create(g->index, &desc, out, NULL);
}

/* The backend of a generation, opened when first needed; NULL with the reason in `why`. A live index has none: each
 * commit would load all of it into the device anew. */
static backend *backend_of(generation *g, char why[160]) {
  backend *gpu = NULL;
  if (g->live) {
    snprintf(why, 160, "a live index is searched by the CPU");
    return NULL;
  }
  pthread_mutex_lock(&g->lock);
  if (g->backend_state == 0) {
    gpuir_error err;
    memset(&err, 0, sizeof err);
    g->backend_state = backend_open(g->index, &g->gpu, &err) == GPUIR_OK ? 1 : -1;
    if (g->backend_state < 0) snprintf(g->backend_msg, sizeof g->backend_msg, "%s", err.msg);
  }
  if (g->backend_state > 0) gpu = g->gpu;
  snprintf(why, 160, "%s", g->backend_msg);
  pthread_mutex_unlock(&g->lock);
  return gpu;
}

/* The slot's searcher on the GPU, or NULL with the reason in `why`. */
static gpuir_searcher *gpu_searcher(searcher_slot *slot, char why[160]) {
  backend *gpu = backend_of(slot->on, why);
  gpuir_error err;
  gpuir_searcher *s = NULL;
  int rc;
  if (!gpu || slot->gpu) return gpu ? slot->gpu : NULL;
  memset(&err, 0, sizeof err);
  rc = searcher_make(slot, slot->on, &s);
  if (rc == GPUIR_OK) rc = backend_attach(gpu, s, &err);
  if (rc != GPUIR_OK) {
    snprintf(why, 160, "%s", err.msg[0] ? err.msg : gpuir_strerror(rc));
    gpuir_searcher_destroy(s);
    return NULL;
  }
  return slot->gpu = s;
}

/* Searches with the CPU. */
static int search_on_cpu(searcher_slot *slot, const gpuir_query *query, size_t k, search_reply *reply,
    gpuir_error *err) {
  int rc = slot->cpu ? GPUIR_OK : searcher_make(slot, slot->on, &slot->cpu);
  if (rc != GPUIR_OK) return rc;
  rc = gpuir_search(slot->cpu, query, reply->hits, k, &reply->n);
  if (rc != GPUIR_OK) gpuir_searcher_error(slot->cpu, err);
  return rc;
}

static int search_in_slot(searcher_slot *slot, const gpuir_query *query, const search_request *request, size_t k,
    search_reply *reply, gpuir_error *err) {
  const int automatic = request->backend == BACKEND_AUTO && backend_present() && !slot->on->live;
  gpuir_searcher_info before, after;
  gpuir_searcher *s;
  int rc;
  if (request->backend != BACKEND_GPU && !automatic) return search_on_cpu(slot, query, k, reply, err);
  s = gpu_searcher(slot, reply->fallback);
  if (!s) {
    reply->fallbacks++;
    return search_on_cpu(slot, query, k, reply, err);
  }
  gpuir_searcher_get_info(s, &before);
  rc = gpuir_search(s, query, reply->hits, k, &reply->n);
  gpuir_searcher_get_info(s, &after);
  if (rc != GPUIR_OK || after.backend_failures != before.backend_failures) gpuir_searcher_error(s, err);
  if (after.backend_failures != before.backend_failures) {
    reply->fallbacks += after.backend_failures - before.backend_failures;
    snprintf(reply->fallback, sizeof reply->fallback, "%s", err->msg);
  }
  return rc;
}

/* Parses and ranks with the searchers of a slot. Returns a GPUIR_ status. */
static int parse_and_search(searcher_slot *slot, const search_request *request, search_reply *reply, gpuir_error *err) {
  generation *g = slot->on;
  /* Cutting k to the number of documents saves memory and changes nothing, not even for AND+OR: where AND
   * matches them all, OR gives the same documents and scores. */
  size_t k = request->k < g->documents ? request->k : g->documents;
  gpuir_query_desc desc;
  gpuir_query *query = NULL;
  int rc;
  memset(&desc, 0, sizeof desc);
  desc.mode = request->mode;
  rc = gpuir_query_parse(g->index, &desc, request->text, request->len, &query, err);
  if (rc != GPUIR_OK) return rc;
  reply->hits = malloc((k ? k : 1) * sizeof *reply->hits);
  rc = reply->hits ? search_in_slot(slot, query, request, k, reply, err) : GPUIR_E_NOMEM;
  if (rc == GPUIR_OK && request->keep) reply->query = query;
  else gpuir_query_destroy(query);
  return rc;
}

int generation_search(ticket *t, const search_request *request, search_reply *reply) {
  gpuir_error err;
  int rc;
  memset(reply, 0, sizeof *reply);
  memset(&err, 0, sizeof err);
  /* Parsing may have to count documents in long lists: it is work as searching is. */
  rc = slot_take(t);
  if (rc) return rc;
  guard_cancels(&t->slot->cancel);
  rc = parse_and_search(t->slot, request, reply, &err);
  guard_cancels(NULL);
  slot_give(t);
  if (rc == GPUIR_OK) return 0;
  snprintf(reply->error, sizeof reply->error, "%s", err.msg[0] ? err.msg : gpuir_strerror(rc));
  free(reply->hits);
  reply->hits = NULL;
  reply->n = 0;
  return errno_of_status(rc);
}
