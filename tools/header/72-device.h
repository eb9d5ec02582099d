
/* ========
 * [72-device]  the thread that drives a device
 *
 * While one or two batches run the next one forms. A task goes where it is likely to be answered first: by the device
 * after what is left of the batches in flight, if there are two, and the mean time of a batch; by the threads after
 * what waits for them and what 16 of 17 such queries do not exceed. The device writes to memory of the batch alone;
 * what it fails on goes back to the threads. If it does not answer within the limit it is lost: its searcher and its
 * batches' memory, where it may still write, are given up.
 *
 * Of the schedulers in tools/lab the pool has a lane for each side, work taken from the other's (Ding et al. 2009), and
 * batches that form while one runs (Ao et al. 2011); no query moves from device to CPU (Griffin 2018), as under load
 * batches gain far more (tools/results/schedulers).
 *
 * Uses      [51-query], [63-execution], [69-queues], [70-tasks], [71-crew].
 * Start at  gpuir__device_work, gpuir__device_form, gpuir__device_finish.
 * Tests     tests/unit/72_device.c
 * ======*/

/* After so many batches that failed as a whole, one after the other, a device is lost. */
#define GPUIR__DEVICE_FAILURES 3u
/* What a batch takes until one was measured; and between two looks at batches that take longer than expected. */
#define GPUIR__DEVICE_NS 100000u
#define GPUIR__DEVICE_NAP 20000

/* Notes why a device fails; the searcher's words count if they are of this status. The lock is held. */
static void gpuir__device_blame(gpuir__crew *c, int status, const char *what) {
  if (c->device.searcher) gpuir_searcher_error(c->device.searcher, &c->device.error);
  if (c->device.error.code != status)
    (void)gpuir__fail(&c->device.error, status, 0, "%s: %s", what, gpuir_strerror(status));
}

/* Gives a device up: from now on the threads answer all that waits. The lock is held. */
static void gpuir__device_lose(gpuir__crew *c) {
  gpuir_task *task;
  __atomic_store_n(&c->device.state, GPUIR__DEVICE_LOST, __ATOMIC_SEQ_CST);
  while ((task = gpuir__crew_inherit(c)) != NULL) {
    gpuir__poke(&task->pool_state, GPUIR__TASK_SUBMITTED);
    gpuir__crew_wait(c, task);
  }
  gpuir__eventcount_notify(&c->work, (int)c->pool->nthreads);
}

/* Frees what a batch works on. */
static void gpuir__device_batch_free(const gpuir_pool *p, gpuir__device_batch *l) {
  gpuir__free(&p->a, l->tasks, p->desc.batch * 4 * sizeof *l->deadlines);
  gpuir__free(&p->a, l->counts, p->desc.batch * 3 * sizeof *l->counts);
  gpuir__free(&p->a, l->hits, l->nhits * sizeof *l->hits);
  memset(l, 0, sizeof *l);
}

/* Makes the arrays of a batch, in two pieces of memory: the device may write to the second one. */
static int gpuir__device_batch_make(const gpuir_pool *p, gpuir__device_batch *l) {
  const size_t n = p->desc.batch;
  size_t i;
  l->tasks = (gpuir_task **)gpuir__alloc(&p->a, n * 4 * sizeof *l->deadlines);
  l->counts = (uint32_t *)gpuir__alloc(&p->a, n * 3 * sizeof *l->counts);
  if (!l->tasks || !l->counts) return GPUIR_E_NOMEM;
  l->deadlines = (uint64_t *)(void *)l->tasks + 3 * n; /* a pointer may take less */
  l->queries = (const gpuir_query **)(void *)(l->tasks + n);
  l->cancels = (const int **)(void *)(l->tasks + 2 * n);
  l->statuses = (int *)(l->counts + n);
  l->flags = (int *)(l->counts + 2 * n);
  for (i = 0; i < n; i++) l->cancels[i] = &l->flags[i];
  return GPUIR_OK;
}

/* Adds a task to a batch that forms, if it suits: all want the same k, since with AND+OR it decides what matches. */
static int gpuir__device_batch_add(gpuir__device_batch *l, gpuir_task *task) {
  if (!gpuir__device_suits(task) || (l->n && task->k != l->k)) return 0;
  l->k = task->k;
  l->tasks[l->n] = task;
  l->queries[l->n] = task->query;
  l->deadlines[l->n] = task->deadline;
  l->flags[l->n++] = 0;
  return 1;
}

/* Forms the next batch of what waits for the device, the first ones first; tasks that do not suit go back. NULL: there
 * is none. */
static gpuir__device_batch *gpuir__device_form(gpuir__crew *c) {
  gpuir__device_batch *l = c->device.batches;
  gpuir_task *aside[64], *task;
  uint64_t key;
  size_t n = 0;
  int all; /* fit, in whatever order */
  if (!gpuir__device_is_good(c) || gpuir__peek(&c->stopping) || c->device.in_flight == GPUIR__DEVICE_BATCHES)
    return NULL;
  while (l->batch) l++;
  l->n = 0;
  gpuir__lock(&c->device_lock);
  all = !c->device_lane.n && gpuir__peek(&c->device.waiting) <= c->pool->desc.batch;
  if (!all) gpuir__crew_collect(c, &c->device_inbox, &c->device_lane);
  while (l->n < c->pool->desc.batch && n < 64) {
    task = all ? gpuir__inbox_take(&c->device_inbox, &key) : gpuir__lane_pop(&c->device_lane);
    if (!task) break;
    if (!gpuir__device_batch_add(l, task)) aside[n++] = task;
  }
  while (n--) gpuir__crew_queue(c, &c->device_lane, gpuir__crew_key(c, aside[n]), aside[n]);
  gpuir__unlock(&c->device_lock);
  gpuir__count_up(&c->device.waiting, 0 - (uint64_t)l->n);
  gpuir__crew_went(c, l->n, 0);
  return l->n ? l : NULL;
}

/* Gives the tasks of a batch that it did not answer back to the threads. The lock is held. */
static void gpuir__device_batch_return(gpuir__crew *c, gpuir__device_batch *l) {
  size_t i;
  for (i = 0; i < l->n; i++) {
    if (!l->tasks[i]) continue;
    gpuir__poke(&l->tasks[i]->pool_state, GPUIR__TASK_RETURNED);
    gpuir__count_up(&c->done.returned, 1);
    gpuir__crew_wait(c, l->tasks[i]);
  }
  l->n = 0;
  gpuir__eventcount_notify(&c->work, (int)c->pool->nthreads);
}

/* Notes that a batch failed as a whole, and returns its tasks. */
GPUIR__COLD static void gpuir__device_failed(gpuir__crew *c, gpuir__device_batch *l, int status) {
  gpuir__lock(&c->lock);
  gpuir__device_blame(c, status, "a batch failed");
  gpuir__device_batch_return(c, l);
  if (++c->device.failures >= GPUIR__DEVICE_FAILURES) gpuir__device_lose(c);
  gpuir__unlock(&c->lock);
}

/* Says when the device is likely to take another batch: when the first one of those in flight is answered. */
static void gpuir__device_note_free(gpuir__device *d) {
  const uint64_t first = gpuir__min64(d->batches[0].since, d->batches[1].since);
  gpuir__poke(&d->free_at, d->in_flight < GPUIR__DEVICE_BATCHES ? 0 : first + d->batch_ns);
}

/* Hands a batch to the device, which answers while this thread goes on. Where it does not take the batch, threads
 * answer its tasks. */
static void gpuir__device_begin(gpuir__crew *c, gpuir__device_batch *l) {
  gpuir__device *d = &c->device;
  const size_t hits = l->n * l->k;
  gpuir_batch_desc desc;
  size_t i;
  int status = GPUIR_OK;
  if (hits > l->nhits) {
    gpuir__free(&c->pool->a, l->hits, l->nhits * sizeof *l->hits);
    l->hits = (gpuir_hit *)gpuir__alloc(&c->pool->a, hits * sizeof *l->hits);
    l->nhits = l->hits ? hits : 0;
    if (!l->hits) status = GPUIR_E_NOMEM;
  }
  memset(&desc, 0, sizeof desc);
  desc.queries = l->queries;
  desc.nq = l->n;
  desc.k = l->k;
  desc.hits = l->hits;
  desc.counts = l->counts;
  desc.statuses = l->statuses;
  desc.deadlines = l->deadlines;
  desc.cancels = l->cancels;
  l->since = gpuir__now();
  for (i = 0; i < l->n; i++) l->tasks[i]->started = l->since;
  if (!status) status = gpuir_search_begin(d->searcher, &desc, &l->batch);
  if (status) {
    gpuir__device_failed(c, l, status);
    return;
  }
  gpuir__count_up(&c->done.batches, 1);
  d->in_flight++;
  gpuir__device_note_free(d);
}

/* Completes task i of a batch that is answered, if the device did, but for counting it; 0 if it failed. */
static int gpuir__device_batch_settle(gpuir__crew *c, gpuir__device_batch *l, size_t i) {
  gpuir_task *task = l->tasks[i];
  const int status = l->statuses[i];
  if (status && status != GPUIR_E_DEADLINE && status != GPUIR_E_CANCELLED) return 0;
  task->count = status ? 0 : l->counts[i];
  if (task->count) memcpy(task->hits, l->hits + i * l->k, task->count * sizeof *task->hits);
  l->tasks[i] = NULL;
  task->on_device = !status;
  gpuir__pool_settle(c->pool, task, status);
  return 1;
}

/* Takes a finished batch back from the device: completes its tasks, hands those that failed on to threads, and notes
 * how long it took, by which later ones are judged. */
static void gpuir__device_finish(gpuir__crew *c, gpuir__device_batch *l) {
  gpuir__device *d = &c->device;
  const uint64_t ns = gpuir__now() - l->since, mean = d->batch_ns;
  int status = gpuir_search_finish(l->batch);
  size_t i, settled = 0;
  l->batch = NULL;
  d->in_flight--;
  gpuir__device_note_free(d);
  for (i = 0; i < l->n; i++) {
    if (i + 4 < l->n) __builtin_prefetch(l->tasks[i + 4]->hits, 1);
    if (gpuir__device_batch_settle(c, l, i)) settled++;
    else status = l->statuses[i]; /* a deadline or a cancellation is not the device's fault */
  }
  gpuir__pool_end(c->pool, settled);
  gpuir__count_up(&c->done.on_device, settled);
  if (!settled) {
    gpuir__device_failed(c, l, status);
    return;
  }
  d->failures = 0;
  gpuir__poke(&d->batch_ns, (mean * 7 + gpuir__min64(ns, 2 * mean)) / 8); /* one stall is none */
  if (settled == l->n) return;
  gpuir__lock(&c->lock);
  gpuir__device_blame(c, status, "a query failed");
  gpuir__device_batch_return(c, l);
  gpuir__unlock(&c->lock);
}

/* Gives a device that does not answer up. What it may still write to is forgotten, never freed. */
static void gpuir__device_abandon(gpuir__crew *c) {
  gpuir__device *d = &c->device;
  unsigned i;
  gpuir__lock(&c->lock);
  (void)gpuir__fail(&d->error, GPUIR_E_BACKEND, 0, "the device left a batch unanswered for %llu ms",
      (unsigned long long)(c->pool->desc.device_limit_ns / 1000000));
  gpuir__device_lose(c);
  for (i = 0; i < GPUIR__DEVICE_BATCHES; i++) {
    gpuir__device_batch *l = &d->batches[i];
    if (!l->batch) continue;
    l->batch->asked = 0;
    l->batch = NULL;
    l->hits = NULL;
    l->nhits = 0;
    l->counts = NULL;
    gpuir__device_batch_return(c, l);
  }
  d->in_flight = 0;
  gpuir__device_note_free(d);
  d->searcher->has_backend = 0;
  gpuir__unlock(&c->lock);
}

/* Looks at a batch in flight: tells the device which tasks were cancelled, and takes the batch back if it is done. A
 * device that keeps a batch for longer than the pool allows is given up, and threads answer what it has. Returns 1 if
 * the batch is gone, or else 0. */
static int gpuir__device_look(gpuir__crew *c, gpuir__device_batch *l) {
  const int stopping = gpuir__peek(c->stop);
  size_t i;
  for (i = 0; i < l->n; i++) {
    const int *cancel = l->tasks[i]->cancel;
    if (stopping || (cancel && gpuir__peek(cancel))) gpuir__poke(&l->flags[i], 1);
  }
  if (gpuir_search_poll(l->batch)) {
    gpuir__device_finish(c, l);
    return 1;
  }
  if (gpuir__now() - l->since < c->pool->desc.device_limit_ns) return 0;
  gpuir__device_abandon(c);
  return 1;
}

/* Looks at the batches in flight until one is answered, or another can begin; naps where one is late. */
static void gpuir__device_watch(gpuir__crew *c) {
  gpuir__device *d = &c->device;
  const uint64_t since = gpuir__now();
  int happened = 0;
  do {
    struct timespec nap;
    unsigned i;
    for (i = 0; i < GPUIR__DEVICE_BATCHES; i++)
      if (d->batches[i].batch) happened += gpuir__device_look(c, &d->batches[i]);
    nap.tv_sec = 0;
    nap.tv_nsec = GPUIR__DEVICE_NAP;
    if (happened) return;
    if (gpuir__now() - since < 2 * d->batch_ns) continue;
    (void)nanosleep(&nap, NULL);
  } while (d->in_flight == GPUIR__DEVICE_BATCHES || !gpuir__peek(&c->device.waiting));
}

/* Attaches the device, and lets tasks wait for it. */
static void gpuir__device_open(gpuir__crew *c) {
  gpuir__device *d = &c->device;
  const gpuir_pool_desc *desc = &c->pool->desc;
  gpuir_error err;
  int status = GPUIR_OK;
  unsigned i;
  memset(&err, 0, sizeof err);
  for (i = 0; i < GPUIR__DEVICE_BATCHES && !status; i++) status = gpuir__device_batch_make(c->pool, &d->batches[i]);
  if (!status) status = desc->attach(desc->attach_user, d->searcher, &err);
  gpuir__lock(&c->lock);
  __atomic_store_n(&d->state, status ? GPUIR__DEVICE_LOST : GPUIR__DEVICE_GOOD, __ATOMIC_RELEASE);
  if (status) {
    d->error = err;
    if (!err.code) (void)gpuir__fail(&d->error, status, 0, "no device: %s", gpuir_strerror(status));
  }
  gpuir__unlock(&c->lock);
}

/* The life of the thread that drives a device. What comes back from it when the pool ends may find no other thread. */
static void gpuir__device_work(gpuir__crew *c) {
  gpuir__device *d = &c->device;
  uint64_t seen = 0;
  gpuir__device_open(c);
  for (;;) {
    gpuir__device_batch *l = gpuir__device_form(c);
    if (l || d->in_flight) gpuir__eventcount_leave(&c->device_work, &seen);
    if (l) gpuir__device_begin(c, l);
    else if (d->in_flight) gpuir__device_watch(c);
    else if (gpuir__peek(&c->stopping) || !gpuir__device_is_good(c)) break;
    else gpuir__eventcount_wait(&c->device_work, &seen, 1);
  }
  gpuir__eventcount_leave(&c->device_work, &seen);
  if (gpuir__peek(&c->stopping)) gpuir__crew_thread(c);
}
