/* engine.c - loaded indexes and their pools. */
#include "engine.h"

#include "../tools/common/advice.h"

#include "backend.h"
#include "guard.h"
#include "path.h"

#include "../tools/common/source.h"
#include "../tools/common/stop_words.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>

/* Pools of a generation. */
enum { POOL_CPU, POOL_GPU, POOLS };

struct engine {
  engine_desc desc;
  pthread_mutex_t lock; /* for all below, and for tickets */
  gpuir_pool_stats ended; /* what pools have counted that are no more */
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
  int code; /* documents are program code, whose hits get a second look */
  health *files;
  engine *engine;
  backend *gpu; /* opened by the thread that drives it */

  pthread_mutex_t lock; /* for all below */
  unsigned refs;
  gpuir_pool *pools[POOLS]; /* NULL: not made yet, or ended */
  unsigned searches; /* that use the pools */
  int retired;
};

/* ---- pools --------------------------------------------------------------------------------------------- */

engine *engine_create(const engine_desc *desc) {
  engine *e = calloc(1, sizeof *e);
  if (!e) return NULL;
  e->desc = *desc;
  pthread_mutex_init(&e->lock, NULL);
  return e;
}

void engine_destroy(engine *e) {
  if (!e) return;
  pthread_mutex_destroy(&e->lock);
  free(e);
}

static void add_counters(gpuir_pool_stats *to, const gpuir_pool_stats *s) {
  to->submitted += s->submitted;
  to->completed += s->completed;
  to->waiting += s->waiting;
  to->refused += s->refused;
  to->cancelled += s->cancelled;
  to->missed += s->missed;
  to->shared += s->shared;
  to->joined += s->joined;
  to->on_device += s->on_device;
}

void engine_counters(engine *e, generation *now, gpuir_pool_stats *counters) {
  int i;
  pthread_mutex_lock(&e->lock);
  *counters = e->ended;
  pthread_mutex_unlock(&e->lock);
  pthread_mutex_lock(&now->lock);
  for (i = 0; i < POOLS; i++) {
    gpuir_pool_stats s;
    if (!now->pools[i]) continue;
    gpuir_pool_get_stats(now->pools[i], &s);
    add_counters(counters, &s);
  }
  pthread_mutex_unlock(&now->lock);
}

/* Takes the pools out of a generation that is to search no more. Called with its lock. */
static void take_pools(generation *g, gpuir_pool *pools[POOLS]) {
  memcpy(pools, g->pools, sizeof g->pools);
  memset(g->pools, 0, sizeof g->pools);
}

/* Ends pools on which nothing runs. Called without a lock: it waits for their threads. */
static void end_pools(generation *g, gpuir_pool *pools[POOLS]) {
  int i;
  for (i = 0; i < POOLS; i++) {
    gpuir_pool_stats s;
    if (!pools[i]) continue;
    gpuir_pool_get_stats(pools[i], &s);
    gpuir_pool_destroy(pools[i]);
    if (s.devices_lost) g->gpu = NULL; /* one that does not answer is left to the system */
    pthread_mutex_lock(&g->engine->lock);
    add_counters(&g->engine->ended, &s);
    pthread_mutex_unlock(&g->engine->lock);
  }
}

void generation_retire(generation *g) {
  gpuir_pool *pools[POOLS] = {NULL, NULL};
  pthread_mutex_lock(&g->lock);
  g->retired = 1;
  if (!g->searches) take_pools(g, pools);
  pthread_mutex_unlock(&g->lock);
  end_pools(g, pools);
}

/* What a thread of a pool does first: it reads one generation for all of its life. */
static void guard_thread(void *broken) { guard_enter(broken); }

/* Gives the searcher of a pool the GPU; called by the thread that drives it. */
static int attach(void *arg, gpuir_searcher *searcher, gpuir_error *err) {
  generation *g = arg;
  const int rc = g->gpu ? GPUIR_OK : backend_open(g->index, &g->gpu, err);
  return rc == GPUIR_OK ? backend_attach(g->gpu, searcher, err) : rc;
}

/* Returns a pool of a generation, made when first needed; pool_done afterwards. NULL without memory. */
static gpuir_pool *pool_of(generation *g, int which, gpuir_error *err) {
  gpuir_pool_desc desc;
  gpuir_pool *pool;
  memset(&desc, 0, sizeof desc);
  desc.threads = g->engine->desc.searchers;
  desc.queue = g->engine->desc.queue;
  desc.cancel = &g->files->broken; /* nobody wants an answer from zeros */
  desc.thread = guard_thread;
  desc.thread_user = &g->files->broken;
  desc.attach = which == POOL_GPU ? attach : NULL;
  desc.attach_user = g;
  pthread_mutex_lock(&g->lock);
  if (!g->pools[which]) (void)gpuir_pool_create(g->index, &desc, &g->pools[which], err);
  pool = g->pools[which];
  g->searches += pool != NULL;
  pthread_mutex_unlock(&g->lock);
  return pool;
}

static void pool_done(generation *g) {
  gpuir_pool *pools[POOLS] = {NULL, NULL};
  pthread_mutex_lock(&g->lock);
  if (!--g->searches && g->retired) take_pools(g, pools);
  pthread_mutex_unlock(&g->lock);
  end_pools(g, pools);
}

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

/* Returns whether `segment` is a file that `before` has open too: what was read of a file lies in memory once. */
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
  if (rc == GPUIR_OK) g->code = gpuir_index_is_code(g->index, NULL);
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
  g->engine = desc->engine;
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
  end_pools(g, g->pools);
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

/* ---- work that can be called off ----------------------------------------------------------------------- */

void ticket_make(ticket *t, generation *g) {
  memset(t, 0, sizeof *t);
  t->gen = g;
  pthread_cond_init(&t->wake, NULL);
}

void ticket_free(ticket *t) { pthread_cond_destroy(&t->wake); }

void ticket_cancel(ticket *t) {
  engine *e = t->gen->engine;
  pthread_mutex_lock(&e->lock);
  __atomic_store_n(&t->cancelled, 1, __ATOMIC_RELAXED);
  pthread_cond_signal(&t->wake);
  pthread_mutex_unlock(&e->lock);
}

int ticket_is_cancelled(ticket *t) { return __atomic_load_n(&t->cancelled, __ATOMIC_RELAXED); }

/* A thread of a pool, or this one, has answered. */
static void on_done(gpuir_task *task) {
  ticket *t = task->user;
  engine *e = t->gen->engine;
  pthread_mutex_lock(&e->lock);
  t->complete = 1;
  pthread_cond_signal(&t->wake);
  pthread_mutex_unlock(&e->lock);
}

/* Waits for a task. If it is called off while it waits for its turn it ends at once, otherwise by its flag. */
static void await(ticket *t, gpuir_pool *pool, gpuir_task *task) {
  engine *e = t->gen->engine;
  pthread_mutex_lock(&e->lock);
  while (!t->complete && !t->cancelled) pthread_cond_wait(&t->wake, &e->lock);
  if (!t->complete) {
    pthread_mutex_unlock(&e->lock);
    gpuir_pool_cancel(pool, task);
    pthread_mutex_lock(&e->lock);
  }
  while (!t->complete) pthread_cond_wait(&t->wake, &e->lock);
  pthread_mutex_unlock(&e->lock);
}

/* ---- searching ----------------------------------------------------------------------------------------- */

int errno_of_status(int status) {
  switch (status) {
  case GPUIR_OK: return 0;
  case GPUIR_E_ARGUMENT:
  case GPUIR_E_QUERY:
  case GPUIR_E_WHERE: return EINVAL;
  case GPUIR_E_LIMIT:
  case GPUIR_E_TERMS: return E2BIG;
  case GPUIR_E_RANGE: return ERANGE;
  case GPUIR_E_NOMEM: return ENOMEM;
  case GPUIR_E_CANCELLED: return EINTR;
  case GPUIR_E_DEADLINE: return ETIMEDOUT;
  case GPUIR_E_UNSUPPORTED: return EOPNOTSUPP;
  case GPUIR_E_BUSY: return EAGAIN;
  default: return EIO;
  }
}

/* Returns which pool is to answer. */
static int pool_for(const generation *g, int wanted) {
  return wanted != BACKEND_CPU && backend_present() && !g->live ? POOL_GPU : POOL_CPU;
}

/* Notes that a GPU was wanted and a processor answered: always where a query asks for it, otherwise where there is none
 * any more. A live index has none: each commit would load all of it into the device anew. */
static void note_fallback(const generation *g, const gpuir_task *task, gpuir_pool *pool, int wanted,
    search_reply *reply) {
  gpuir_pool_stats s;
  const char *why = "the GPU is not ready yet, or does not take such a query";
  if (task->on_device || (wanted != BACKEND_GPU && pool_for(g, wanted) == POOL_CPU)) return;
  gpuir_pool_get_stats(pool, &s);
  if (wanted != BACKEND_GPU && !s.devices_lost) return;
  if (g->live) why = "a live index is searched by the CPU";
  else if (!backend_present()) why = backend_absent();
  else if (s.device_error.code) why = s.device_error.msg;
  reply->fallbacks = 1;
  snprintf(reply->fallback, sizeof reply->fallback, "%s", why);
}

static uint64_t deadline_in(uint64_t ns) {
  struct timespec now;
  if (!ns) return 0;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec + ns;
}

/* Has a pool of the generation rank a query. Returns a GPUIR_ status. */
static int rank(ticket *t, const gpuir_query *query, int wanted, size_t k, search_reply *reply, gpuir_error *err) {
  generation *g = t->gen;
  gpuir_pool *pool = pool_of(g, pool_for(g, wanted), err);
  gpuir_task task;
  int rc;
  if (!pool) return err->code;
  memset(&task, 0, sizeof task);
  task.query = query;
  task.k = k;
  task.hits = reply->hits;
  task.deadline = deadline_in(g->engine->desc.timeout_ns);
  task.cancel = &t->cancelled;
  task.on_device = wanted == BACKEND_GPU;
  task.error = err;
  task.done = on_done;
  task.user = t;
  t->complete = 0;
  rc = gpuir_pool_run(pool, &task);
  if (rc == GPUIR_E_BUSY)
    snprintf(err->msg, sizeof err->msg, "as many searches wait as may (queue=%u)", g->engine->desc.queue);
  if (rc == GPUIR_OK) {
    await(t, pool, &task);
    rc = task.status;
    reply->n = task.count;
    if (rc == GPUIR_OK) note_fallback(g, &task, pool, wanted, reply);
  }
  pool_done(g);
  return rc;
}

static size_t count_left_out(const gpuir_query *query) {
  const char *word;
  size_t len, n = 0;
  while (!gpuir_query_left_out(query, n, &word, &len)) n++;
  return n;
}

/* Notes which words are left out. */
static void note_stopped(void *arg, const char *line, size_t len) {
  search_reply *reply = arg;
  snprintf(reply->stopped, sizeof reply->stopped, "%.*s", (int)len, line);
}

/* Gives the hits a second look, and keeps the first k. Returns a GPUIR_ status. */
static int look_again(const gpuir_query *query, const search_request *request, size_t k, search_reply *reply,
    gpuir_error *err) {
  const size_t room = reply->n ? reply->n : 1;
  gpuir_looked *looked = malloc(room * sizeof *looked);
  size_t i;
  int rc;
  reply->plain = malloc(room * sizeof *reply->plain);
  rc = looked && reply->plain ? gpuir_look(query, request->text, request->len, reply->hits, reply->n, looked, err)
                              : GPUIR_E_NOMEM;
  for (i = 0; rc == GPUIR_OK && i < reply->n; i++) {
    reply->hits[i].docid = looked[i].docid;
    reply->hits[i].score = looked[i].score;
    reply->plain[i] = looked[i].plain;
  }
  if (reply->n > k) reply->n = k;
  free(looked);
  return rc;
}

static int has_text(const char *s) { return s && *s; }

/* Says how the text of a request is read. */
static void query_desc(const generation *g, const search_request *request, gpuir_query_desc *desc) {
  memset(desc, 0, sizeof *desc);
  desc->mode = request->mode;
  desc->keep_rarest = 1;
  desc->spell = request->spell ? GPUIR_SPELL : 0;
  desc->where = request->where;
  desc->sort = request->sort;
  desc->collapse = request->collapse;
  desc->all = (request->all || request->where || has_text(request->sort) || has_text(request->collapse)) &&
      (!request->len || request->text[0] == '-');
  desc->stop = request->stop ? stop_words_for(g->index) : NULL;
}

/* Parses and ranks. Returns a GPUIR_ status. */
static int parse_and_rank(ticket *t, const search_request *request, search_reply *reply, gpuir_error *err) {
  generation *g = t->gen;
  /* Cutting k to the number of documents saves memory and changes nothing: searches do so, too. */
  size_t k = request->k < g->documents ? request->k : g->documents, depth = k;
  const int look =
      k && !has_text(request->sort) && (request->rank == RANK_CODE || (request->rank == RANK_AUTO && g->code));
  gpuir_query_desc desc;
  gpuir_query *query = NULL;
  const char *word;
  size_t len;
  int rc;
  query_desc(g, request, &desc);
  if (look && depth < GPUIR_LOOK_HITS) depth = g->documents < GPUIR_LOOK_HITS ? g->documents : GPUIR_LOOK_HITS;
  if (depth > k) desc.enough = (uint32_t)k;
  rc = gpuir_query_parse(g->index, &desc, request->text, request->len, &query, err);
  if (rc != GPUIR_OK) return rc;
  reply->left_out = count_left_out(query);
  if (desc.mode == GPUIR_OR) (void)advice_stopped(query, note_stopped, reply);
  reply->hits = malloc((depth ? depth : 1) * sizeof *reply->hits);
  rc = reply->hits ? rank(t, query, request->backend, depth, reply, err) : GPUIR_E_NOMEM;
  if (rc == GPUIR_OK && look) rc = look_again(query, request, k, reply, err);
  if (rc == GPUIR_OK && (request->keep || gpuir_query_spelled(query, 0, &word, &len, &word, &len) == GPUIR_OK))
    reply->query = query;
  else gpuir_query_destroy(query);
  return rc;
}

int generation_facets(ticket *t, const search_request *request, const char *column, gpuir_facets **facets, char *why,
    size_t why_size) {
  generation *g = t->gen;
  gpuir_query_desc desc;
  gpuir_searcher_desc sd;
  gpuir_searcher *searcher = NULL;
  gpuir_query *query = NULL;
  gpuir_error err;
  int rc;
  memset(&sd, 0, sizeof sd);
  memset(&err, 0, sizeof err);
  *facets = NULL;
  query_desc(g, request, &desc);
  sd.timeout_ns = g->engine->desc.timeout_ns;
  sd.cancel = &t->cancelled;
  rc = gpuir_query_parse(g->index, &desc, request->text, request->len, &query, &err);
  if (rc == GPUIR_OK) rc = gpuir_searcher_create(g->index, &sd, &searcher, &err);
  if (rc == GPUIR_OK) {
    rc = gpuir_facets_count(searcher, query, &column, 1, facets, NULL);
    if (rc != GPUIR_OK) gpuir_searcher_error(searcher, &err);
  }
  gpuir_searcher_destroy(searcher);
  gpuir_query_destroy(query);
  if (rc != GPUIR_OK) snprintf(why, why_size, "%s", err.msg[0] ? err.msg : gpuir_strerror(rc));
  return errno_of_status(rc);
}

int generation_check(const generation *g, const search_request *request, char *why, size_t why_size) {
  gpuir_query_desc desc;
  gpuir_query *query = NULL;
  gpuir_error err;
  int rc;
  memset(&desc, 0, sizeof desc);
  memset(&err, 0, sizeof err);
  desc.where = request->where;
  desc.sort = request->sort;
  desc.collapse = request->collapse;
  desc.all = 1;
  rc = gpuir_query_parse(g->index, &desc, "", 0, &query, &err);
  gpuir_query_destroy(query);
  if (rc != GPUIR_OK) snprintf(why, why_size, "%s", err.msg[0] ? err.msg : gpuir_strerror(rc));
  return errno_of_status(rc);
}

int generation_search(ticket *t, const search_request *request, search_reply *reply) {
  gpuir_error err;
  int rc;
  memset(reply, 0, sizeof *reply);
  memset(&err, 0, sizeof err);
  rc = parse_and_rank(t, request, reply, &err);
  if (rc == GPUIR_OK) return 0;
  snprintf(reply->error, sizeof reply->error, "%s", err.msg[0] ? err.msg : gpuir_strerror(rc));
  free(reply->hits);
  free(reply->plain);
  reply->hits = NULL;
  reply->plain = NULL;
  reply->n = 0;
  return errno_of_status(rc);
}
