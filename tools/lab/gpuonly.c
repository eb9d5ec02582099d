/* gpuonly.c - devices in gpuir lab load: the policy `gpu`, by which a device answers all queries, in batches that form
 * while those before them run; and the seam by which it and `auto` get their device, which can hold up its answers.
 *
 * The device is the GPU or, with --stand-in, a searcher of a processor that stands for one, which answers a batch when
 * it is finished; or, with --device-time, a clock: a batch is answered after a time, with the hits that are known. So
 * what a policy does beside a device, and what it costs, is seen without one.
 */
#include "load.h"
#include "flight.h"
#include "gpuir_lab.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* ---- the seam --------------------------------------------------------------------------------------------- */

/* A batch that a clock stands for. */
typedef struct clocked {
  gpuir_batch_desc desc;
  uint64_t ready;
  int used;
} clocked;

/* A device: a searcher that a pool's own asks. */
typedef struct seam {
  const load_setup *setup;
  gpuir_searcher *inner;
  clocked clocked[2]; /* in flight, if a clock stands for the device */
  uint64_t busy; /* the same: until then */
} seam;

/* ---- a clock stands for it ---- */

size_t load_known_size(const load_setup *s) {
  size_t n = 64;
  while (n < 2 * s->nqueries) n *= 2;
  return n;
}

load_query **load_known(const load_setup *s, const gpuir_query *query) {
  const size_t mask = load_known_size(s) - 1;
  size_t i = (size_t)(((uint64_t)(uintptr_t)query >> 4) * 0x9e3779b97f4a7c15u >> 20) & mask;
  while (s->found[i] && s->found[i]->query != query) i = (i + 1) & mask;
  return &s->found[i];
}

/* Batches are answered one after the other. */
static void *clocked_begin(seam *s, const gpuir_batch_desc *batch) {
  clocked *b = &s->clocked[s->clocked[0].used];
  const uint64_t now = cli_nanoseconds();
  b->desc = *batch;
  b->used = 1;
  s->busy = (s->busy > now ? s->busy : now) + s->setup->device_ns + batch->nq * s->setup->device_query_ns;
  b->ready = s->busy;
  return b;
}

static void clocked_finish(clocked *b, const load_setup *setup) {
  const gpuir_batch_desc *d = &b->desc;
  const uint64_t now = cli_nanoseconds();
  for (size_t i = 0; i < d->nq; i++) {
    const load_query *q = *load_known(setup, d->queries[i]);
    d->statuses[i] = d->deadlines[i] && d->deadlines[i] < now ? GPUIR_E_DEADLINE : GPUIR_OK;
    d->counts[i] = (uint32_t)q->n;
    memcpy(d->hits + i * d->k, q->hits, q->n * sizeof *q->hits);
  }
  b->used = 0;
}

/* ---- the backend ---- */

static int seam_begin(void *context, const gpuir_batch_desc *batch, uint64_t deadline, const int *cancel,
    void **running, gpuir_error *err) {
  seam *s = (seam *)context;
  gpuir_batch *b = NULL;
  (void)deadline; /* each query has both, which the batch says */
  (void)cancel;
  if (s->setup->found) {
    *running = clocked_begin(s, batch);
    return GPUIR_OK;
  }
  const int status = gpuir_search_begin(s->inner, batch, &b);
  if (status && err) gpuir_searcher_error(s->inner, err);
  *running = b;
  return status;
}

static int seam_poll(void *context, void *running) {
  const load_setup *setup = ((seam *)context)->setup;
  const uint64_t from = __atomic_load_n(&setup->stall->from, __ATOMIC_RELAXED), now = cli_nanoseconds();
  if (from && now >= from && now < from + setup->stall_ns) return 0;
  if (setup->found) return now >= ((const clocked *)running)->ready;
  return gpuir_search_poll((gpuir_batch *)running);
}

static int seam_finish(void *context, void *running, gpuir_error *err) {
  seam *s = (seam *)context;
  if (s->setup->found) {
    clocked_finish((clocked *)running, s->setup);
    return GPUIR_OK;
  }
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
  memset(s, 0, sizeof *s);
  s->setup = (const load_setup *)setup;
  int status = gpuir_searcher_create(s->setup->index, NULL, &s->inner, err);
  if (!status && s->setup->gpu.cuda && s->setup->intersection)
    status = gpuir_cuda_lab_attach(s->inner, s->setup->gpu.cuda, s->setup->intersection, s->setup->ranking, 0, err);
  else if (!status && s->setup->gpu.cuda)
    status = cli_gpu_attach_pool((void *)(uintptr_t)&s->setup->gpu, s->inner, err);
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

int load_attach_driver(void *setup, gpuir_searcher *searcher, gpuir_error *err) {
  load_pin(LOAD_DRIVER, 1);
  return load_attach(setup, searcher, err);
}

/* ---- the policy gpu ----------------------------------------------------------------------------------------- */

#define FLIGHTS 2u

typedef struct only {
  gpuir_pool *pool;
  const load_setup *setup;
  gpuir_searcher *searcher, *cpu; /* cpu: answers what the device failed on */
  load_flight flights[FLIGHTS];
  gpuir_task **ring; /* submitted, in order: [read..submitted) wait */
  gpuir_task **taken; /* for the next batch */
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

/* Takes tasks that wait for a batch, as many as fit. The lock is held: whoever submits waits for no more than that. */
static size_t only_take(only *o) {
  const size_t waiting = o->submitted - o->read, n = waiting < o->setup->batch ? waiting : (size_t)o->setup->batch;
  if (n) memcpy((void *)o->taken, (void *)(o->ring + o->read), n * sizeof *o->taken);
  o->read += n;
  return n;
}

/* The one thread: it begins a batch of all that waits whenever there is room for one, and otherwise looks whether one
 * is done, without sleeping. */
static void only_work(void *state, unsigned thread) {
  only *o = (only *)state;
  if (thread) return;
  load_pin(LOAD_DRIVER, 1);
  for (;;) {
    load_flight *room = NULL;
    unsigned flying = 0;
    size_t taken = 0;
    int done = 0;
    for (unsigned i = 0; i < FLIGHTS; i++) {
      done += load_flight_look(&o->flights[i], o->pool, o->cpu);
      if (!o->flights[i].batch) room = &o->flights[i];
      flying += o->flights[i].batch != NULL;
    }
    pthread_mutex_lock(&o->lock);
    while (!flying && !o->stopping && o->read == o->submitted) pthread_cond_wait(&o->work, &o->lock);
    const int over = o->stopping && !flying && o->read == o->submitted;
    if (room) taken = only_take(o);
    pthread_mutex_unlock(&o->lock);
    if (over) return;
    if (room) room->n = 0;
    for (size_t i = 0; i < taken; i++) load_flight_add(room, o->taken[i]);
    if (room && room->n) load_flight_begin(room, o->searcher, o->pool, o->cpu);
    else if (!done) sched_yield();
  }
}

static void only_destroy(void *state) {
  only *o = (only *)state;
  gpuir_searcher_destroy(o->searcher);
  gpuir_searcher_destroy(o->cpu);
  for (unsigned i = 0; i < FLIGHTS; i++) load_flight_free(&o->flights[i]);
  pthread_mutex_destroy(&o->lock);
  pthread_cond_destroy(&o->work);
  free((void *)o->ring);
  free((void *)o->taken);
  free(o);
}

static int only_create(gpuir_pool *pool, void **state, gpuir_error *err) {
  only *o = (only *)cli_resize(NULL, 1, sizeof *o);
  memset(o, 0, sizeof *o);
  o->pool = pool;
  o->setup = (const load_setup *)gpuir_pool_user(pool);
  pthread_mutex_init(&o->lock, NULL);
  pthread_cond_init(&o->work, NULL);
  o->taken = (gpuir_task **)cli_resize(NULL, o->setup->batch, sizeof *o->taken);
  for (unsigned i = 0; i < FLIGHTS; i++) load_flight_make(&o->flights[i], (size_t)o->setup->batch, o->setup->k);
  int status = gpuir_searcher_create(o->setup->index, NULL, &o->searcher, err);
  if (!status) status = gpuir_searcher_create(o->setup->index, NULL, &o->cpu, err);
  if (!status) status = load_attach((void *)(uintptr_t)o->setup, o->searcher, err);
  if (status) only_destroy(o);
  else *state = o;
  return status;
}

const gpuir_policy load_gpu_only = {"gpu", only_create, only_submit, only_work, only_stop, only_destroy};
