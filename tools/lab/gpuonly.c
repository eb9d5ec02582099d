/* gpuonly.c - devices in gpuir lab load: the policy `gpu`, by which a device answers all queries, in batches that form
 * while those before them run; and the seam by which it and `auto` get their device, which can hold up its answers.
 *
 * The device is the GPU or, with --backend cpu, a searcher of a processor that stands for one: it answers a batch when
 * it is finished.
 */
#include "load.h"
#include "flight.h"

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

#define FLIGHTS 2u

typedef struct only {
  gpuir_pool *pool;
  const load_setup *setup;
  gpuir_searcher *searcher, *cpu; /* cpu: answers what the device failed on */
  load_flight flights[FLIGHTS];
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

/* Moves tasks that wait to a batch, as many as fit. The lock is held. */
static void only_fill(only *o, load_flight *f) {
  for (f->n = 0; f->n < o->setup->batch && o->read < o->submitted;) load_flight_add(f, o->ring[o->read++]);
}

/* The one thread: it begins a batch of all that waits whenever there is room for one, and otherwise looks whether one
 * is done, without sleeping. */
static void only_work(void *state, unsigned thread) {
  only *o = (only *)state;
  if (thread) return;
  for (;;) {
    load_flight *room = NULL;
    unsigned flying = 0;
    int done = 0;
    for (unsigned i = 0; i < FLIGHTS; i++) {
      done += load_flight_look(&o->flights[i], o->pool, o->cpu);
      if (!o->flights[i].batch) room = &o->flights[i];
      flying += o->flights[i].batch != NULL;
    }
    pthread_mutex_lock(&o->lock);
    while (!flying && !o->stopping && o->read == o->submitted) pthread_cond_wait(&o->work, &o->lock);
    const int over = o->stopping && !flying && o->read == o->submitted;
    if (room) only_fill(o, room);
    pthread_mutex_unlock(&o->lock);
    if (over) return;
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
  for (unsigned i = 0; i < FLIGHTS; i++) load_flight_make(&o->flights[i], (size_t)o->setup->batch, o->setup->k);
  int status = gpuir_searcher_create(o->setup->index, NULL, &o->searcher, err);
  if (!status) status = gpuir_searcher_create(o->setup->index, NULL, &o->cpu, err);
  if (!status) status = load_attach((void *)(uintptr_t)o->setup, o->searcher, err);
  if (status) only_destroy(o);
  else *state = o;
  return status;
}

const gpuir_policy load_gpu_only = {"gpu", only_create, only_submit, only_work, only_stop, only_destroy};
