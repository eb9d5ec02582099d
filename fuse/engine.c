/* engine.c - loaded indexes and the pool of searchers. */
#include "engine.h"

#include "backend.h"
#include "guard.h"
#include "path.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>

typedef struct searcher_slot {
  gpuir_searcher *cpu, *gpu; /* made when first needed */
  int cancel;                /* read by the searchers while they work */
  struct searcher_slot *next_free;
} searcher_slot;

struct generation {
  uint64_t id;
  gpuir_index *index;
  file_sign file;
  uint32_t documents;
  uint64_t timeout_ns;
  int broken; /* read and written without the lock */

  pthread_mutex_t lock; /* for all below, and for the tickets of this generation */
  pthread_cond_t freed;
  unsigned refs;
  unsigned nslots;
  searcher_slot *slots, *free_slots;
  int backend_state; /* 0: not tried, 1: open, -1: failed */
  backend *gpu;
  char backend_msg[160];
};

static int same_time(struct timespec a, struct timespec b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

int file_sign_equal(const file_sign *a, const file_sign *b) {
  return a->device == b->device && a->inode == b->inode && a->size == b->size &&
         same_time(a->mtime, b->mtime) && same_time(a->ctime, b->ctime);
}

int generation_sign(const char *path, file_sign *sign) {
  struct stat st;
  if (stat(path, &st) != 0) return errno;
  memset(sign, 0, sizeof *sign);
  sign->device = (uint64_t)st.st_dev;
  sign->inode = (uint64_t)st.st_ino;
  sign->size = (uint64_t)st.st_size;
  sign->mtime = st.st_mtim;
  sign->ctime = st.st_ctim;
  return 0;
}

static int no_token(void *sink, const char *token, size_t len) {
  (void)sink, (void)token, (void)len;
  return 0;
}

static void describe(char *msg, size_t size, const char *path, int status, const gpuir_error *err) {
  size_t n = strlen(path);
  if (strncmp(err->msg, path, n) == 0)
    snprintf(msg, size, "%s", err->msg); /* it names the file already */
  else
    snprintf(msg, size, "%s: %s", path, err->msg[0] ? err->msg : gpuir_strerror(status));
}

/* Opens the index of g and tries what would otherwise only fail when it is used. */
static int load(generation *g, const generation_desc *desc, gpuir_index_info *info, gpuir_error *err) {
  int rc;
  guard_enter(&g->broken);
  rc = gpuir_open(desc->path, NULL, &g->index, err);
  if (rc == GPUIR_OK) rc = gpuir_index_get_info(g->index, info);
  /* An analyzer that this build lacks would only show when a query is parsed. */
  if (rc == GPUIR_OK) rc = gpuir_analyze(g->index, "", 0, no_token, NULL, err);
  if (rc == GPUIR_OK && desc->verify) rc = gpuir_verify(g->index, err);
  guard_leave();
  if (!generation_is_broken(g)) return rc;
  snprintf(err->msg, sizeof err->msg, "the file was cut short while it was loaded");
  return GPUIR_E_IO;
}

int generation_open(const generation_desc *desc, uint64_t id, generation **out, char *msg, size_t msg_size) {
  generation *g = calloc(1, sizeof *g);
  gpuir_index_info info;
  gpuir_error err;
  int rc, saved;
  unsigned i;
  *out = NULL;
  memset(&err, 0, sizeof err);
  if (!g) {
    snprintf(msg, msg_size, "%s: out of memory", desc->path);
    return ENOMEM;
  }
  /* Before opening: if the file is replaced in between, the next look at it sees a change. */
  saved = generation_sign(desc->path, &g->file);
  if (saved) {
    snprintf(msg, msg_size, "%s: %s", desc->path, strerror(saved));
    free(g);
    return saved;
  }
  rc = load(g, desc, &info, &err);
  if (rc == GPUIR_OK) {
    g->nslots = desc->searchers;
    g->slots = calloc(g->nslots, sizeof *g->slots);
    if (!g->slots) rc = GPUIR_E_NOMEM;
  }
  if (rc != GPUIR_OK) {
    describe(msg, msg_size, desc->path, rc, &err);
    gpuir_close(g->index);
    free(g);
    return EIO;
  }
  for (i = 0; i < g->nslots; i++) {
    g->slots[i].next_free = g->free_slots;
    g->free_slots = &g->slots[i];
  }
  g->id = id;
  g->documents = (uint32_t)info.documents;
  g->timeout_ns = desc->timeout_ns;
  g->refs = 1;
  pthread_mutex_init(&g->lock, NULL);
  pthread_cond_init(&g->freed, NULL);
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
  unsigned refs, i;
  if (!g) return;
  pthread_mutex_lock(&g->lock);
  refs = --g->refs;
  pthread_mutex_unlock(&g->lock);
  if (refs) return;
  for (i = 0; i < g->nslots; i++) {
    gpuir_searcher_destroy(g->slots[i].cpu);
    gpuir_searcher_destroy(g->slots[i].gpu);
  }
  backend_close(g->gpu);
  gpuir_close(g->index);
  pthread_cond_destroy(&g->freed);
  pthread_mutex_destroy(&g->lock);
  free(g->slots);
  free(g);
}

uint64_t generation_id(const generation *g) { return g->id; }
const gpuir_index *generation_index(const generation *g) { return g->index; }
const file_sign *generation_file(const generation *g) { return &g->file; }
uint32_t generation_documents(const generation *g) { return g->documents; }
int *generation_broken_flag(generation *g) { return &g->broken; }
int generation_is_broken(const generation *g) { return __atomic_load_n(&g->broken, __ATOMIC_SEQ_CST); }

void ticket_cancel(ticket *t) {
  pthread_mutex_lock(&t->gen->lock);
  t->cancelled = 1;
  if (t->slot) __atomic_store_n(&t->slot->cancel, 1, __ATOMIC_RELAXED);
  pthread_cond_broadcast(&t->gen->freed);
  pthread_mutex_unlock(&t->gen->lock);
}

int ticket_is_cancelled(ticket *t) {
  int cancelled;
  pthread_mutex_lock(&t->gen->lock);
  cancelled = t->cancelled;
  pthread_mutex_unlock(&t->gen->lock);
  return cancelled;
}

static int slot_take(ticket *t) {
  generation *g = t->gen;
  pthread_mutex_lock(&g->lock);
  while (!g->free_slots && !t->cancelled) pthread_cond_wait(&g->freed, &g->lock);
  if (!t->cancelled) {
    t->slot = g->free_slots;
    g->free_slots = t->slot->next_free;
    __atomic_store_n(&t->slot->cancel, 0, __ATOMIC_RELAXED);
  }
  pthread_mutex_unlock(&g->lock);
  return t->slot ? 0 : EINTR;
}

static void slot_give(ticket *t) {
  generation *g = t->gen;
  pthread_mutex_lock(&g->lock);
  t->slot->next_free = g->free_slots;
  g->free_slots = t->slot;
  t->slot = NULL;
  /* All of them: the one that is woken may have been cancelled. */
  pthread_cond_broadcast(&g->freed);
  pthread_mutex_unlock(&g->lock);
}

static int errno_of(int status) {
  switch (status) {
    case GPUIR_OK: return 0;
    case GPUIR_E_ARGUMENT:
    case GPUIR_E_QUERY: return EINVAL;
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
  desc.timeout_ns = g->timeout_ns;
  return gpuir_searcher_create(g->index, &desc, out, NULL);
}

/* The slot's searcher on the GPU, or NULL with the reason in `why`. */
static gpuir_searcher *gpu_searcher(searcher_slot *slot, generation *g, char *why, size_t why_size) {
  gpuir_error err;
  int state;
  memset(&err, 0, sizeof err);
  pthread_mutex_lock(&g->lock);
  if (g->backend_state == 0) {
    int rc = backend_open(g->index, &g->gpu, &err);
    g->backend_state = rc == GPUIR_OK ? 1 : -1;
    if (rc != GPUIR_OK) snprintf(g->backend_msg, sizeof g->backend_msg, "%s", err.msg);
  }
  state = g->backend_state;
  if (state < 0) snprintf(why, why_size, "%s", g->backend_msg);
  pthread_mutex_unlock(&g->lock);
  if (state < 0) return NULL;
  if (!slot->gpu) {
    gpuir_searcher *s = NULL;
    int rc = searcher_make(slot, g, &s);
    if (rc == GPUIR_OK) rc = backend_attach(g->gpu, s, &err);
    if (rc != GPUIR_OK) {
      snprintf(why, why_size, "%s", err.msg[0] ? err.msg : gpuir_strerror(rc));
      gpuir_searcher_destroy(s);
      return NULL;
    }
    slot->gpu = s;
  }
  return slot->gpu;
}

static int search_in_slot(searcher_slot *slot, generation *g, const gpuir_query *query,
                          const search_request *request, gpuir_hit *hits, size_t k, size_t *n,
                          uint64_t *fallbacks, char *why, size_t why_size) {
  gpuir_searcher *s = NULL;
  gpuir_searcher_info before, after;
  int rc;
  if (request->backend == BACKEND_GPU || (request->backend == BACKEND_AUTO && backend_present())) {
    s = gpu_searcher(slot, g, why, why_size);
    if (!s) ++*fallbacks;
  }
  if (!s) {
    if (!slot->cpu) {
      rc = searcher_make(slot, g, &slot->cpu);
      if (rc != GPUIR_OK) return rc;
    }
    return gpuir_search(slot->cpu, query, hits, k, n);
  }
  gpuir_searcher_get_info(s, &before);
  rc = gpuir_search(s, query, hits, k, n);
  gpuir_searcher_get_info(s, &after);
  if (after.backend_failures != before.backend_failures) {
    gpuir_error err;
    gpuir_searcher_error(s, &err);
    *fallbacks += after.backend_failures - before.backend_failures;
    snprintf(why, why_size, "%s", err.msg);
  }
  return rc;
}

int generation_search(ticket *t, const search_request *request, gpuir_hit **hits, size_t *n,
                      uint64_t *fallbacks, char *why, size_t why_size) {
  generation *g = t->gen;
  /* Cutting k to the number of documents saves memory and changes nothing, not even for AND+OR: where AND
   * matches them all, OR gives the same documents and scores. */
  size_t k = request->k < g->documents ? request->k : g->documents;
  gpuir_query_desc desc;
  gpuir_query *query = NULL;
  gpuir_error err;
  int rc;
  *hits = NULL;
  *n = 0;
  memset(&desc, 0, sizeof desc);
  desc.mode = request->mode;
  rc = gpuir_query_parse(g->index, &desc, request->text, request->len, &query, &err);
  if (rc != GPUIR_OK) return errno_of(rc);
  *hits = malloc((k ? k : 1) * sizeof **hits);
  rc = *hits ? slot_take(t) : ENOMEM;
  if (rc == 0) {
    guard_cancels(&t->slot->cancel);
    rc = errno_of(search_in_slot(t->slot, g, query, request, *hits, k, n, fallbacks, why, why_size));
    guard_cancels(NULL);
    slot_give(t);
  }
  gpuir_query_destroy(query);
  if (rc) {
    free(*hits);
    *hits = NULL;
    *n = 0;
  }
  return rc;
}
