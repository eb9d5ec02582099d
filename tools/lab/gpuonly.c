/* gpuonly.c - devices in gpuir lab load: the policy `gpu`, by which a device answers all queries, in batches that form
 * while those before them run; and the seam by which it and `auto` get their device, which can hold up its answers.
 *
 * The device is the GPU or, with --backend cpu, a searcher of a processor that stands for one: it answers a batch when
 * it is finished.
 */
#include "load.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* ---- the seam --------------------------------------------------------------------------------------------- */

/* A device: a searcher that a pool's own asks. */
typedef struct seam {
  const load_setup *setup;
  gpuir_searcher *inner;
} seam;

static int seam_begin(void *context, const gpuir_batch_desc *batch, uint64_t deadline, const int *cancel,
    void **running, gpuir_error *err) {
  seam *s = (seam *)context;
  gpuir_batch *b = NULL;
  const int status = gpuir_search_begin(s->inner, batch, &b);
  (void)deadline; /* each query has both, which the batch says */
  (void)cancel;
  if (status && err) gpuir_searcher_error(s->inner, err);
  *running = b;
  return status;
}

static int seam_poll(void *context, void *running) {
  const load_setup *setup = ((seam *)context)->setup;
  const uint64_t from = __atomic_load_n(&setup->stall->from, __ATOMIC_RELAXED), now = cli_nanoseconds();
  if (from && now >= from && now < from + setup->stall_ns) return 0;
  return gpuir_search_poll((gpuir_batch *)running);
}

static int seam_finish(void *context, void *running, gpuir_error *err) {
  seam *s = (seam *)context;
  const int status = gpuir_search_finish((gpuir_batch *)running);
  if (status && err) gpuir_searcher_error(s->inner, err);
  return status;
}

static void seam_close(void *context) {
  gpuir_searcher_destroy(((seam *)context)->inner);
  free(context);
}

int load_attach(void *setup, gpuir_searcher *searcher, gpuir_error *err) {
  seam *s = (seam *)cli_resize(NULL, 1, sizeof *s);
  gpuir_backend b;
  s->setup = (const load_setup *)setup;
  s->inner = NULL;
  int status = gpuir_searcher_create(s->setup->index, NULL, &s->inner, err);
  if (!status && s->setup->gpu.cuda) status = cli_gpu_attach_pool((void *)(uintptr_t)&s->setup->gpu, s->inner, err);
  memset(&b, 0, sizeof b);
  b.version = GPUIR_BACKEND_VERSION;
  b.name = "seam";
  b.context = s;
  b.begin = seam_begin;
  b.poll = seam_poll;
  b.finish = seam_finish;
  b.close = seam_close;
  if (!status) status = gpuir_searcher_set_backend(searcher, &b, 0);
  if (status) seam_close(s);
  return status;
}

/* ---- the policy gpu ----------------------------------------------------------------------------------------- */

/* A batch, in flight or not; arrays have room for the greatest one. */
typedef struct flight {
  gpuir_batch *batch; /* NULL: not in flight */
  gpuir_task **tasks;
  const gpuir_query **queries;
  gpuir_hit *hits; /* [n * k] */
  uint32_t *counts;
  int *statuses;
  uint64_t *deadlines;
  const int **cancels;
  size_t n;
} flight;

#define FLIGHTS 2u

typedef struct only {
  gpuir_pool *pool;
  const load_setup *setup;
  gpuir_searcher *searcher, *cpu; /* cpu: answers what the device failed on */
  flight flights[FLIGHTS];
  gpuir_task **ring; /* submitted, in order: [read..submitted) wait */
  size_t cap, submitted, read;
  int stopping;
  pthread_mutex_t lock;
  pthread_cond_t work;
} only;

static int only_submit(void *state, gpuir_task *task) {
  only *o = (only *)state;
  pthread_mutex_lock(&o->lock);
  if (o->submitted == o->cap) {
    o->cap = o->cap ? o->cap * 2 : 1024;
    o->ring = (gpuir_task **)cli_resize(o->ring, o->cap, sizeof *o->ring);
  }
  o->ring[o->submitted++] = task;
  pthread_cond_signal(&o->work);
  pthread_mutex_unlock(&o->lock);
  return GPUIR_OK;
}

static void only_stop(void *state) {
  only *o = (only *)state;
  pthread_mutex_lock(&o->lock);
  o->stopping = 1;
  pthread_cond_signal(&o->work);
  pthread_mutex_unlock(&o->lock);
}

/* Completes a task as the device left it or, if that failed, as a processor answers it. */
static void only_settle(const only *o, const flight *f, size_t i, int status) {
  gpuir_task *task = f->tasks[i];
  if (!status) {
    task->count = f->counts[i];
    memcpy(task->hits, f->hits + i * o->setup->k, task->count * sizeof *task->hits);
  } else if (status != GPUIR_E_DEADLINE && status != GPUIR_E_CANCELLED) {
    status = gpuir_pool_answer(o->cpu, task);
  }
  gpuir_pool_complete(o->pool, task, status);
}

/* Moves tasks that wait to a batch, as many as fit. The lock is held. */
static void only_fill(only *o, flight *f) {
  for (f->n = 0; f->n < o->setup->batch && o->read < o->submitted; f->n++) {
    gpuir_task *task = o->ring[o->read++];
    f->tasks[f->n] = task;
    f->queries[f->n] = task->query;
    f->deadlines[f->n] = task->deadline;
    f->cancels[f->n] = task->cancel;
  }
}

static void only_begin(only *o, flight *f) {
  const uint64_t now = cli_nanoseconds();
  gpuir_batch_desc desc;
  memset(&desc, 0, sizeof desc);
  memset(f->statuses, 0, f->n * sizeof *f->statuses);
  desc.queries = f->queries;
  desc.nq = f->n;
  desc.k = o->setup->k;
  desc.hits = f->hits;
  desc.counts = f->counts;
  desc.statuses = f->statuses;
  desc.deadlines = f->deadlines;
  desc.cancels = f->cancels;
  for (size_t i = 0; i < f->n; i++) f->tasks[i]->started = now;
  const int status = gpuir_search_begin(o->searcher, &desc, &f->batch);
  for (size_t i = 0; status && i < f->n; i++) only_settle(o, f, i, status);
  if (status) f->batch = NULL;
}

/* Takes a batch back if it is done; whether it was. */
static int only_look(only *o, flight *f) {
  if (!f->batch || !gpuir_search_poll(f->batch)) return 0;
  (void)gpuir_search_finish(f->batch); /* statuses say it of each query */
  f->batch = NULL;
  for (size_t i = 0; i < f->n; i++) only_settle(o, f, i, f->statuses[i]);
  return 1;
}

/* The one thread: it begins a batch of all that waits whenever there is room for one, and otherwise looks whether one
 * is done, without sleeping. */
static void only_work(void *state, unsigned thread) {
  only *o = (only *)state;
  if (thread) return;
  for (;;) {
    flight *room = NULL;
    unsigned flying = 0;
    int done = 0;
    for (unsigned i = 0; i < FLIGHTS; i++) {
      done += only_look(o, &o->flights[i]);
      if (!o->flights[i].batch) room = &o->flights[i];
      flying += o->flights[i].batch != NULL;
    }
    pthread_mutex_lock(&o->lock);
    while (!flying && !o->stopping && o->read == o->submitted) pthread_cond_wait(&o->work, &o->lock);
    const int over = o->stopping && !flying && o->read == o->submitted;
    if (room) only_fill(o, room);
    pthread_mutex_unlock(&o->lock);
    if (over) return;
    if (room && room->n) only_begin(o, room);
    else if (!done) sched_yield();
  }
}

static void flight_free(flight *f) {
  free(f->tasks);
  free((void *)(uintptr_t)f->queries);
  free(f->hits);
  free(f->counts);
  free(f->statuses);
  free(f->deadlines);
  free((void *)(uintptr_t)f->cancels);
}

static void flight_make(flight *f, size_t n, size_t k) {
  f->tasks = (gpuir_task **)cli_resize(NULL, n, sizeof *f->tasks);
  f->queries = (const gpuir_query **)cli_resize(NULL, n, sizeof *f->queries);
  f->hits = (gpuir_hit *)cli_resize(NULL, n * k, sizeof *f->hits);
  f->counts = (uint32_t *)cli_resize(NULL, n, sizeof *f->counts);
  f->statuses = (int *)cli_resize(NULL, n, sizeof *f->statuses);
  f->deadlines = (uint64_t *)cli_resize(NULL, n, sizeof *f->deadlines);
  f->cancels = (const int **)cli_resize(NULL, n, sizeof *f->cancels);
}

static void only_destroy(void *state) {
  only *o = (only *)state;
  gpuir_searcher_destroy(o->searcher);
  gpuir_searcher_destroy(o->cpu);
  for (unsigned i = 0; i < FLIGHTS; i++) flight_free(&o->flights[i]);
  pthread_mutex_destroy(&o->lock);
  pthread_cond_destroy(&o->work);
  free(o->ring);
  free(o);
}

static int only_create(gpuir_pool *pool, void **state, gpuir_error *err) {
  only *o = (only *)cli_resize(NULL, 1, sizeof *o);
  memset(o, 0, sizeof *o);
  o->pool = pool;
  o->setup = (const load_setup *)gpuir_pool_user(pool);
  pthread_mutex_init(&o->lock, NULL);
  pthread_cond_init(&o->work, NULL);
  for (unsigned i = 0; i < FLIGHTS; i++) flight_make(&o->flights[i], (size_t)o->setup->batch, o->setup->k);
  int status = gpuir_searcher_create(o->setup->index, NULL, &o->searcher, err);
  if (!status) status = gpuir_searcher_create(o->setup->index, NULL, &o->cpu, err);
  if (!status) status = load_attach((void *)(uintptr_t)o->setup, o->searcher, err);
  if (status) only_destroy(o);
  else *state = o;
  return status;
}

const gpuir_policy load_gpu_only = {"gpu", only_create, only_submit, only_work, only_stop, only_destroy};
