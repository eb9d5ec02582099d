
/* ========
 * [73-pool]  pools: make one, submit tasks, wait
 *
 * The functions that users call. A policy of the library is a crew; a user may bring one of his own.
 *
 * Uses      [37-layout], [51-query], [63-execution], [69-queues], [70-tasks], [71-crew], [72-device].
 * Start at  gpuir_pool_create, gpuir_pool_submit, gpuir_pool_run.
 * Tests     tests/unit/73_pool.c
 * ======*/

/* ---- the policies */

static void gpuir__crew_work(void *state, unsigned thread) {
  gpuir__crew *c = (gpuir__crew *)state;
  if (thread < c->pool->nthreads) gpuir__crew_thread(c);
  else gpuir__device_work(c);
}

static void gpuir__crew_stop(void *state) {
  gpuir__crew *c = (gpuir__crew *)state;
  gpuir__lock(&c->lock);
  gpuir__poke(&c->stopping, 1);
  gpuir__unlock(&c->lock);
  gpuir__eventcount_notify(&c->work, (int)c->pool->nthreads);
  gpuir__eventcount_notify(&c->device_work, 1);
}

static void gpuir__member_free(gpuir__member *m) {
  if (!m->crew) return;
  if (m->searcher) {
    const gpuir_allocator *a = &m->searcher->engine.a;
    if (m->share.found.heap) (void)a->resize(a->user, m->share.found.heap, m->share.found.cap * 8, 0);
  }
  (void)pthread_mutex_destroy(&m->share.lock);
  (void)pthread_cond_destroy(&m->share.no_helpers);
  gpuir_searcher_destroy(m->searcher);
}

GPUIR__COLD static void gpuir__crew_destroy(void *state) {
  gpuir__crew *c = (gpuir__crew *)state;
  const gpuir_allocator a = c->pool->a;
  unsigned i;
  for (i = 0; c->members && i < c->pool->nthreads; i++) gpuir__member_free(&c->members[i]);
  gpuir_searcher_destroy(c->device.searcher);
  for (i = 0; i < GPUIR__DEVICE_BATCHES; i++) gpuir__device_batch_free(c->pool, &c->device.batches[i]);
  gpuir__free(&a, c->members, c->pool->nthreads * sizeof *c->members);
  gpuir__free(&a, c->lane.heap, c->most * sizeof *c->lane.heap);
  gpuir__free(&a, c->device_lane.heap, c->most * sizeof *c->device_lane.heap);
  gpuir__free(&a, c->inbox.slots, (c->inbox.mask + 1) * sizeof *c->inbox.slots);
  gpuir__free(&a, c->device_inbox.slots, (c->device_inbox.mask + 1) * sizeof *c->inbox.slots);
  (void)pthread_mutex_destroy(&c->lock);
  (void)pthread_mutex_destroy(&c->device_lock);
  (void)sem_destroy(&c->work.semaphore);
  (void)sem_destroy(&c->device_work.semaphore);
  gpuir__free(&a, c, sizeof *c);
}

/* Makes a thread's searcher and what it shares searches by. */
static int gpuir__member_make(gpuir__crew *c, gpuir__member *m, const gpuir_searcher_desc *desc, gpuir_error *err) {
  m->crew = c;
  (void)pthread_mutex_init(&m->share.lock, NULL);
  (void)pthread_cond_init(&m->share.no_helpers, NULL);
  m->share.backlog = &c->backlog;
  m->share.opened = gpuir__member_announce;
  m->share.ran_long = gpuir__member_ran_long;
  m->share.user = m;
  gpuir__member_give(m);
  return gpuir_searcher_create(c->pool->ix, desc, &m->searcher, err);
}

/* Makes what the pool's own policies share: queues with room for all tasks, a member for each thread, and a searcher
 * for the device. Frees all again if anything fails. */
GPUIR__COLD static int gpuir__crew_create(gpuir_pool *p, void **state, gpuir_error *err) {
  gpuir__crew *c = (gpuir__crew *)gpuir__alloc_zero(&p->a, sizeof *c);
  gpuir_searcher_desc desc;
  unsigned i;
  int status = GPUIR_OK;
  if (!c) return gpuir__fail_nomem(err);
  memset(&desc, 0, sizeof desc);
  desc.allocator = &p->a;
  c->stop = desc.cancel = p->desc.cancel ? p->desc.cancel : &c->stopping;
  c->pool = p;
  c->is_auto = !strcmp(p->policy.name, "auto");
  c->room = p->desc.queue;
  c->most = c->room + (p->extra ? GPUIR__DEVICE_BATCHES * p->desc.batch : 0);
  c->device.batch_ns = GPUIR__DEVICE_NS;
  c->work.epoch = c->device_work.epoch = 1;
  while (c->inbox.mask < c->room) c->inbox.mask = 2 * c->inbox.mask + 1;
  c->device_inbox.mask = c->inbox.mask;
  (void)pthread_mutex_init(&c->lock, NULL);
  (void)pthread_mutex_init(&c->device_lock, NULL);
  (void)sem_init(&c->work.semaphore, 0, 0);
  (void)sem_init(&c->device_work.semaphore, 0, 0);
  c->lane.heap = (gpuir__lane_item *)gpuir__alloc(&p->a, c->most * sizeof *c->lane.heap);
  c->device_lane.heap = (gpuir__lane_item *)gpuir__alloc(&p->a, c->most * sizeof *c->lane.heap);
  c->inbox.slots = (gpuir__lane_item *)gpuir__alloc_zero(&p->a, (c->inbox.mask + 1) * sizeof *c->inbox.slots);
  c->device_inbox.slots = (gpuir__lane_item *)gpuir__alloc_zero(&p->a, (c->inbox.mask + 1) * sizeof *c->inbox.slots);
  c->members = (gpuir__member *)gpuir__alloc_zero(&p->a, p->nthreads * sizeof *c->members);
  if (!c->lane.heap || !c->device_lane.heap || !c->inbox.slots || !c->device_inbox.slots || !c->members)
    status = gpuir__fail_nomem(err);
  for (i = 0; i < p->nthreads && !status; i++) status = gpuir__member_make(c, &c->members[i], &desc, err);
  if (!status && p->extra) status = gpuir_searcher_create(p->ix, &desc, &c->device.searcher, err);
  if (status) gpuir__crew_destroy(c);
  else *state = c;
  return status;
}

static const gpuir_policy gpuir__policies[] = {
    {"auto", gpuir__crew_create, gpuir__crew_submit, gpuir__crew_work, gpuir__crew_stop, gpuir__crew_destroy},
    {"inter", gpuir__crew_create, gpuir__crew_submit, gpuir__crew_work, gpuir__crew_stop, gpuir__crew_destroy}};

/* ---- the pool */

GPUIR_API const gpuir_index *gpuir_pool_index(const gpuir_pool *p) { return p ? p->ix : NULL; }
GPUIR_API unsigned gpuir_pool_threads(const gpuir_pool *p) { return p ? p->nthreads : 0; }
GPUIR_API void *gpuir_pool_user(const gpuir_pool *p) { return p ? p->desc.custom_user : NULL; }

/* Takes over what the pool is to be, with its defaults; chooses the policy. */
static int gpuir__pool_configure(gpuir_pool *p, const gpuir_pool_desc *desc, gpuir_error *err) {
  gpuir_pool_desc *d = &p->desc;
  const char *name;
  size_t i;
  if (desc) *d = *desc;
  name = d->policy ? d->policy : "auto";
  if (d->threads > 4096) return gpuir__refuse(err, "%u threads: a pool has at most 4096", d->threads);
  if (!d->threads) {
    const long processors = sysconf(_SC_NPROCESSORS_ONLN) - (d->attach != NULL);
    d->threads = processors > 0 && processors < 4096 ? (unsigned)processors : 1;
  }
  if (!d->queue) d->queue = 4096;
  if (!d->batch) d->batch = 1024;
  if (!d->device_limit_ns) d->device_limit_ns = 2000000000u;
  if (d->queue > SIZE_MAX / 64 || d->batch > SIZE_MAX / 64 / GPUIR__SHARE_K)
    return gpuir__refuse(err, "a queue or a batch that no memory holds");
  if (d->custom &&
      (!d->custom->create || !d->custom->submit || !d->custom->work || !d->custom->stop || !d->custom->destroy))
    return gpuir__refuse(err, "a policy that lacks functions");
  for (i = 0; i < sizeof gpuir__policies / sizeof *gpuir__policies; i++)
    if (!strcmp(gpuir__policies[i].name, name)) p->policy = gpuir__policies[i];
  if (d->custom) p->policy = *d->custom;
  if (!p->policy.create) return gpuir__refuse(err, "no policy is called '%.64s'", name);
  p->nthreads = d->threads;
  p->extra = d->attach && p->policy.create == gpuir__crew_create && !strcmp(p->policy.name, "auto");
  return GPUIR_OK;
}

static void *gpuir__pool_run(void *pool) {
  gpuir_pool *p = (gpuir_pool *)pool;
  if (p->desc.thread) p->desc.thread(p->desc.thread_user);
  p->policy.work(p->state, (unsigned)gpuir__seq_add(&p->numbered, 1));
  return NULL;
}

static void gpuir__pool_free(gpuir_pool *p) {
  const gpuir_allocator a = p->a;
  if (p->state) p->policy.destroy(p->state);
  gpuir__free(&a, p->threads, (p->nthreads + p->extra) * sizeof *p->threads);
  (void)pthread_mutex_destroy(&p->lock);
  (void)pthread_cond_destroy(&p->complete);
  gpuir__free(&a, p, sizeof *p);
}

GPUIR__COLD GPUIR_API int gpuir_pool_create(const gpuir_index *ix, const gpuir_pool_desc *desc, gpuir_pool **pool,
    gpuir_error *err) {
  gpuir_allocator a;
  gpuir_pool *p;
  unsigned total;
  int status;
  if (pool) *pool = NULL;
  if (!ix || !pool) return gpuir__refuse(err, "gpuir_pool_create: NULL argument");
  a = desc && desc->allocator ? gpuir__allocator(desc->allocator) : ix->a;
  p = (gpuir_pool *)gpuir__alloc_zero(&a, sizeof *p);
  if (!p) return gpuir__fail_nomem(err);
  p->a = a;
  p->ix = ix;
  (void)pthread_mutex_init(&p->lock, NULL);
  (void)pthread_cond_init(&p->complete, NULL);
  status = gpuir__pool_configure(p, desc, err);
  total = p->nthreads + p->extra;
  if (!status) {
    p->threads = (pthread_t *)gpuir__alloc(&a, total * sizeof *p->threads);
    status = p->threads ? p->policy.create(p, &p->state, err) : gpuir__fail_nomem(err);
  }
  if (status) gpuir__pool_free(p);
  else *pool = p;
  return status;
}

/* Starts the threads, which leave signals to the program's own but those that a fault of theirs raises. A policy of the
 * library does with fewer threads than it asked for. */
static int gpuir__pool_start(gpuir_pool *p) {
  static const int faults[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
  const unsigned total = p->nthreads + p->extra, needed = p->desc.custom ? total : 1;
  sigset_t all, before;
  size_t i;
  gpuir__lock(&p->lock);
  (void)sigfillset(&all);
  for (i = 0; i < sizeof faults / sizeof *faults; i++) (void)sigdelset(&all, faults[i]);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  while (p->started < total && !pthread_create(&p->threads[p->started], NULL, gpuir__pool_run, p)) p->started++;
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (p->started >= needed) __atomic_store_n(&p->running, 1, __ATOMIC_RELEASE);
  gpuir__unlock(&p->lock);
  return p->started >= needed ? GPUIR_OK : GPUIR_E_IO;
}

/* Checks a task, and makes it ready for the policy. */
static int gpuir__pool_accept(gpuir_pool *p, gpuir_task *task) {
  int status = GPUIR_OK;
  if (!task || !task->query || task->query->ix != p->ix || (task->k && !task->hits)) return GPUIR_E_ARGUMENT;
  if (!__atomic_load_n(&p->running, __ATOMIC_ACQUIRE)) status = gpuir__pool_start(p);
  if (status) return status;
  if (!task->due) task->due = gpuir__now();
  task->count = 0;
  task->status = GPUIR_OK;
  task->started = task->finished = 0;
  gpuir__poke(&task->pool_state, GPUIR__TASK_SUBMITTED);
  return GPUIR_OK;
}

/* Hands a task that is accepted to the policy. */
static int gpuir__pool_hand(gpuir_pool *p, gpuir_task *task, int (*submit)(void *state, gpuir_task *task)) {
  int status = gpuir__pool_accept(p, task);
  if (status) return status;
  (void)gpuir__seq_add(&p->submitted, 1);
  status = submit(p->state, task);
  if (status) {
    gpuir__count_up(&p->refused, 1);
    gpuir__pool_end(p, 1);
  }
  return status;
}

GPUIR_API int gpuir_pool_submit(gpuir_pool *p, gpuir_task *task) {
  return p ? gpuir__pool_hand(p, task, p->policy.submit) : GPUIR_E_ARGUMENT;
}

/* Submits tasks together, all or none. */
static int gpuir__crew_submit_many(gpuir__crew *c, gpuir_task *const *tasks, size_t n) {
  const uint64_t now = gpuir__device_is_good(c) ? gpuir__now() : 0;
  gpuir_pool *p = c->pool;
  size_t i;
  int status = GPUIR_OK;
  for (i = 0; i < n && !status; i++) {
    status = gpuir__pool_accept(p, tasks[i]);
    if (!status) gpuir__crew_route(c, tasks[i], now);
  }
  if (status) return status;
  (void)gpuir__seq_add(&p->submitted, n);
  status = gpuir__crew_post(c, tasks, n);
  if (status) {
    (void)gpuir__seq_add(&p->submitted, 0 - (uint64_t)n);
    gpuir__pool_end(p, 0);
  }
  return status;
}

GPUIR_API int gpuir_pool_submit_many(gpuir_pool *p, gpuir_task *const *tasks, size_t n, size_t *accepted) {
  int status = GPUIR_OK;
  if (accepted) *accepted = 0;
  if (!p || !accepted || (n && !tasks)) return GPUIR_E_ARGUMENT;
  if (n > 1 && p->policy.submit == gpuir__crew_submit && !gpuir__crew_submit_many((gpuir__crew *)p->state, tasks, n))
    *accepted = n;
  while (*accepted < n && !status) {
    status = gpuir_pool_submit(p, tasks[*accepted]);
    *accepted += !status;
  }
  return status;
}

GPUIR_API int gpuir_pool_run(gpuir_pool *p, gpuir_task *task) {
  if (!p || p->policy.submit != gpuir__crew_submit) return gpuir_pool_submit(p, task);
  return gpuir__pool_hand(p, task, gpuir__crew_run);
}

GPUIR_API void gpuir_pool_cancel(gpuir_pool *p, gpuir_task *task) {
  gpuir__crew *c;
  gpuir__lane *lane = NULL;
  if (!p || p->policy.submit != gpuir__crew_submit) return;
  c = (gpuir__crew *)p->state;
  gpuir__lock(&c->lock);
  gpuir__lock(&c->device_lock);
  gpuir__crew_collect(c, &c->inbox, &c->lane);
  gpuir__crew_collect(c, &c->device_inbox, &c->device_lane);
  if (gpuir__lane_raise(&c->lane, task)) lane = &c->lane;
  else if (gpuir__lane_raise(&c->device_lane, task)) lane = &c->device_lane;
  if (lane) (void)gpuir__crew_take(c, lane);
  gpuir__unlock(&c->device_lock);
  gpuir__unlock(&c->lock);
  if (lane) gpuir_pool_complete(p, task, GPUIR_E_CANCELLED);
}

GPUIR_API int gpuir_pool_wait(gpuir_pool *p, gpuir_task *task) {
  if (!p || !task || task->done || !gpuir__peek(&task->pool_state)) return GPUIR_E_ARGUMENT;
  if (__atomic_load_n(&task->pool_state, __ATOMIC_ACQUIRE) == GPUIR__TASK_COMPLETE) return task->status;
  gpuir__lock(&p->lock);
  (void)gpuir__seq_add(&p->waiters, 1);
  while (gpuir__seq_load(&task->pool_state) != GPUIR__TASK_COMPLETE) (void)pthread_cond_wait(&p->complete, &p->lock);
  (void)gpuir__seq_add(&p->waiters, -1);
  gpuir__unlock(&p->lock);
  return task->status;
}

GPUIR_API void gpuir_pool_drain(gpuir_pool *p) {
  if (!p) return;
  gpuir__lock(&p->lock);
  (void)gpuir__seq_add(&p->drainers, 1);
  while (gpuir__seq_load(&p->ended) != gpuir__seq_load(&p->submitted)) (void)pthread_cond_wait(&p->complete, &p->lock);
  (void)gpuir__seq_add(&p->drainers, -1);
  gpuir__unlock(&p->lock);
}

GPUIR_API void gpuir_pool_destroy(gpuir_pool *p) {
  unsigned i;
  if (!p) return;
  p->policy.stop(p->state);
  for (i = 0; i < p->started; i++) (void)pthread_join(p->threads[i], NULL);
  gpuir__pool_free(p);
}

GPUIR_API uint64_t gpuir_pool_estimate(const gpuir_pool *p, const gpuir_query *q) {
  gpuir__costs none;
  if (!p || !q) return 0;
  if (p->policy.submit == gpuir__crew_submit) return gpuir__cost_estimate(&((gpuir__crew *)p->state)->costs, q, NULL);
  memset(&none, 0, sizeof none);
  return gpuir__cost_estimate(&none, q, NULL);
}

GPUIR__COLD GPUIR_API void gpuir_pool_get_stats(gpuir_pool *p, gpuir_pool_stats *stats) {
  if (!p || !stats) return;
  memset(stats, 0, sizeof *stats);
  stats->refused = gpuir__peek(&p->refused);
  stats->completed = gpuir__peek(&p->ended);
  stats->completed -= gpuir__min64(stats->completed, stats->refused);
  stats->submitted = gpuir__peek(&p->submitted) - stats->refused;
  stats->cancelled = gpuir__peek(&p->cancelled);
  stats->missed = gpuir__peek(&p->missed);
  if (p->policy.submit == gpuir__crew_submit) {
    gpuir__crew *c = (gpuir__crew *)p->state;
    stats->shared = gpuir__peek(&c->done.shared);
    stats->joined = gpuir__peek(&c->done.joined);
    stats->batches = gpuir__peek(&c->done.batches);
    stats->on_device = gpuir__peek(&c->done.on_device);
    stats->returned = gpuir__peek(&c->done.returned);
    stats->waiting = gpuir__crew_waiting(c);
    gpuir__lock(&c->lock);
    stats->devices = c->device.state == GPUIR__DEVICE_GOOD;
    stats->devices_lost = c->device.state == GPUIR__DEVICE_LOST;
    stats->device_error = c->device.error;
    gpuir__unlock(&c->lock);
  }
}
