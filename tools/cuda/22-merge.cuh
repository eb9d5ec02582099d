
/* ========================
 * [cuda-22-merge]  host: rounds of a batch, whose hits are merged; the team as a backend
 *
 * A batch takes rounds. The first round asks for all queries. A second one may be needed: it asks other members for the
 * queries that a failed one left; or it asks parts for the OR of those ANDOR queries whose AND has fewer than k hits in
 * all. If members have parts, their hits of a query are merged by score and docID.
 *
 * Uses      [cuda-14-memory], [cuda-19-launch] to [cuda-21-members].
 * Start at  gt_begin, gt_poll, gt_finish; gt_advance (rounds), gt_merge_query (hits); gt_attach_searcher.
 * Tests     tests/gpu/test_team.c, which needs no device
 * ======================*/

#define GT_TASK_LEAST 1024u /* queries of a task at least: while the device answers some, the next are translated */
#define GT_FIRST_TASK 256u /* queries of the first of several tasks, which the device waits for */
#define GT_BATCH_SPIN_NS 20000000u /* time that a thread that waits for a batch looks at it before it sleeps */

/* ---- rounds ---- */

/* Asks all members for all queries of a round; each member has a part. */
static void gt_ask_all(gt_context *x, gt_batch *r) {
  size_t from, size, j, n = 0;
  unsigned i;
  size = r->n > GT_TASK_LEAST ? GT_FIRST_TASK : r->n;
  for (from = 0; from < r->n; from += size) {
    if (from == GT_FIRST_TASK)
      size = gpuir__max64(GT_TASK_LEAST, (r->n - from + GT_MEMBER_TASKS - 2) / (GT_MEMBER_TASKS - 1));
    for (i = 0; i < x->n; i++, n++) {
      gt_task *t = &r->tasks[n];
      if (gt_describe(x, r, t, from, gpuir__min64(size, r->n - from), 1)) break;
      t->as_or = r->again;
      t->and_first = !r->again;
    }
    if (i < x->n) break;
  }
  r->taken = r->n;
  if (from >= r->n) {
    r->ntasks = n;
    for (j = 0; j < n; j++) gt_queue_task(x, &x->members[j % x->n], r, &r->tasks[j]);
    return;
  }
  for (j = 0; j < r->n; j++) gt_fail_query(r, gt_number(r, j), GPUIR_E_NOMEM, NULL);
  r->n = 0;
}

/* Begins a round of the queries in r->n; returns 0 if there are none. The lock is held. */
static int gt_round(gt_context *x, gt_batch *r) {
  if (!r->n) return 0;
  r->ntasks = r->merged = r->taken = 0;
  if (x->team->parts) {
    gt_ask_all(x, r);
    return 1;
  }
  gt_assign_ranges(x, r);
  (void)__atomic_add_fetch(&r->open, 1, __ATOMIC_ACQ_REL);
  gt_signal_work(x);
  return 1;
}

/* Collects the batch's queries for which `wanted` is true for another round. Returns how many there are. Without memory
 * it returns 0, and fails those of them that have not failed yet. */
static size_t gt_gather(const gt_context *x, gt_batch *r, int (*wanted)(const gt_batch *r, size_t i)) {
  const size_t nq = r->desc.nq;
  const gpuir_query **q;
  size_t i, n = 0;
  for (i = 0; i < nq; i++) n += wanted(r, i) != 0;
  if (!n) return 0;
  q = (const gpuir_query **)(void *)gpuir__buf_room(&x->a, &r->gathered, n * (sizeof *q + sizeof *r->numbers));
  for (i = 0; !q && i < nq; i++)
    if (wanted(r, i) && !r->desc.statuses[i]) gt_fail_query(r, i, GPUIR_E_NOMEM, NULL);
  if (!q) return 0;
  r->numbers = (uint32_t *)(void *)(q + n);
  for (n = i = 0; i < nq; i++) {
    if (!wanted(r, i)) continue;
    r->numbers[n] = (uint32_t)i;
    q[n++] = r->desc.queries[i];
  }
  return n;
}

/* Returns a key that orders hits: greater ones come first. */
static inline uint64_t gt_key(gpuir_hit h) { return (uint64_t)h.score << 32 | (uint32_t)~h.docid; }

/* A member's hits of a query, as they are merged. */
typedef struct gt_source {
  const gpuir_hit *at, *end;
  uint32_t first; /* the whole's number of the part's first document */
} gt_source;

/* Merges hits, which each source has in order, to the k best ones. Returns how many there are. */
static uint32_t gt_merge(gt_source *from, unsigned n, size_t k, gpuir_hit *to) {
  uint32_t got = 0;
  while (got < k) {
    gpuir_hit hit = {0, 0};
    gt_source *best = NULL;
    unsigned i;
    for (i = 0; i < n; i++) {
      gpuir_hit h;
      if (from[i].at == from[i].end) continue;
      h = *from[i].at;
      h.docid += from[i].first;
      if (best && gt_key(h) < gt_key(hit)) continue;
      best = &from[i];
      hit = h;
    }
    if (!best) break;
    best->at++;
    to[got++] = hit;
  }
  return got;
}

/* Fails a query that no device answers. */
static void gt_refuse(gt_batch *r, size_t i) {
  gpuir_error error;
  const int status = gpuir__fail(&error, GPUIR_E_BACKEND, 0, "the CUDA backend answers neither phrases nor prefixes");
  gt_fail_query(r, i, status, &error);
}

/* Merges the parts' hits of query number i of the tasks, one task for each member. The query fails if it has failed in
 * any part. */
static void gt_merge_query(const gt_context *x, gt_batch *r, const gt_task *tasks, size_t i) {
  const size_t number = gt_number(r, (size_t)(tasks[0].queries - gt_queries(r)) + i);
  gt_source from[GT_MEMBERS];
  const gt_task *bad = NULL;
  uint32_t sum = 0;
  unsigned m;
  for (m = 0; m < x->n; m++) {
    const gpuir_batch_desc *d = &tasks[m].desc;
    from[m].at = d->hits + i * r->k;
    from[m].end = from[m].at + d->counts[i];
    from[m].first = x->members[m].device->first;
    sum += d->counts[i];
    if (d->statuses[i] && !bad) bad = &tasks[m];
  }
  if (gt_refuses(x->team, r->desc.queries[number])) gt_refuse(r, number);
  else if (bad) gt_fail_query(r, number, bad->desc.statuses[i], &bad->error);
  else if (r->desc.count) r->desc.counts[number] = sum;
  else r->desc.counts[number] = gt_merge(from, x->n, r->k, r->desc.hits + number * r->desc.k);
}

/* Merges the hits of those queries of a round that all parts have answered. */
static void gt_merge_some(const gt_context *x, gt_batch *r) {
  for (; r->merged < r->ntasks; r->merged += x->n) {
    const gt_task *tasks = &r->tasks[r->merged];
    size_t i;
    for (i = 0; i < x->n; i++)
      if (!__atomic_load_n(&tasks[i].ended, __ATOMIC_ACQUIRE)) return;
    for (i = 0; i < tasks[0].desc.nq; i++) gt_merge_query(x, r, tasks, i);
  }
}

/* Copies the results of a later round, of members that have the whole index, to the batch's arrays. */
static void gt_copy_all(gt_batch *r) {
  size_t i, m;
  for (m = 0; m < r->ntasks; m++) {
    const gt_task *t = &r->tasks[m];
    const size_t from = (size_t)(t->queries - (const gpuir_query *const *)(void *)r->gathered.data);
    for (i = 0; i < t->desc.nq; i++) {
      const size_t number = gt_number(r, from + i);
      r->desc.statuses[number] = t->desc.statuses[i];
      r->desc.counts[number] = t->desc.counts[i];
      if (!r->desc.count)
        memcpy(r->desc.hits + number * r->desc.k, t->desc.hits + i * r->k, t->desc.counts[i] * sizeof(gpuir_hit));
    }
  }
}

/* Returns whether a query's device has failed, so that another member is to be asked. */
static int gt_wants_other(const gt_batch *r, size_t i) { return gt_is_lost(r->desc.queries[i], r->desc.statuses[i]); }

/* Returns whether an ANDOR query has too few hits of its AND. */
static int gt_wants_or(const gt_batch *r, size_t i) {
  return r->desc.queries[i]->mode == GPUIR_ANDOR && !r->desc.count && !r->desc.statuses[i] && r->desc.counts[i] < r->k;
}

/* Sets a batch's status and error: those of its first query that failed. */
static void gt_conclude(gt_batch *r) {
  size_t i, m;
  for (i = 0; r->failed && i < r->desc.nq && !r->desc.statuses[i]; i++) {}
  r->status = r->failed && i < r->desc.nq ? r->desc.statuses[i] : GPUIR_OK;
  for (m = 0; m < r->ntasks && r->status && r->error.code != r->status; m++)
    if (r->tasks[m].status == r->status) r->error = r->tasks[m].error;
  r->ready = 1;
}

/* Goes on with a batch that has no open task: to another round, or to its outcome. The lock is held. */
static void gt_advance(gt_context *x, gt_batch *r) {
  size_t more = 0;
  if (x->team->parts) {
    gt_merge_some(x, r);
    if (!r->again) more = gt_gather(x, r, gt_wants_or);
  } else {
    if (r->again) gt_copy_all(r);
    if (r->failed && gt_alive(x)) more = gt_gather(x, r, gt_wants_other);
  }
  r->n = more;
  r->again = 1;
  if (!gt_round(x, r)) gt_conclude(r);
}

/* ---- the backend, see gpuir_backend ---- */

/* Returns whether enough members are there to answer queries. The lock is held. */
static int gt_can(const gt_context *x) { return gt_alive(x) >= (x->team->parts ? x->n : 1); }

/* Begins a batch with its first round. */
static int gt_begin(void *context, const gpuir_batch_desc *batch, uint64_t deadline, const int *cancel, void **running,
    gpuir_error *err) {
  gt_context *x = (gt_context *)context;
  gt_batch *r = x->batches[0].used ? &x->batches[1] : &x->batches[0];
  size_t i;
  if (r->used) return gpuir__fail(err, GPUIR_E_BUSY, 0, "two batches are in flight");
  if (batch->nq >= UINT32_MAX) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "too many queries");
  (void)pthread_mutex_lock(&x->lock);
  if (!gt_can(x)) {
    (void)pthread_mutex_unlock(&x->lock);
    return gpuir__fail(err, GPUIR_E_BACKEND, 0,
        x->team->parts ? "a device of several was lost" : "all devices were lost");
  }
  r->desc = *batch;
  r->desc.thresholds = NULL;
  r->k = (size_t)gpuir__min64(batch->k, x->team->ix->documents);
  r->deadline = deadline;
  r->cancel = cancel;
  r->used = 1;
  r->number = ++x->nbatches;
  r->ready = r->again = r->failed = r->status = 0;
  r->error.code = 0;
  r->n = r->k || r->desc.count ? batch->nq : 0;
  for (i = 0; i < batch->nq; i++) batch->counts[i] = 0;
  if (!gt_round(x, r)) gt_conclude(r);
  (void)pthread_mutex_unlock(&x->lock);
  if (!x->team->parts && r->n / x->n > r->launch_size) gt_balance(x, r);
  *running = r;
  return GPUIR_OK;
}

/* Goes on with a batch if all its tasks are done. Returns whether its outcome is there. */
static int gt_poll(void *context, void *running) {
  gt_context *x = (gt_context *)context;
  gt_batch *r = (gt_batch *)running;
  if (r->ready) return 1;
  if (__atomic_load_n(&r->open, __ATOMIC_ACQUIRE)) {
    if (x->team->parts) gt_merge_some(x, r);
    return 0;
  }
  (void)pthread_mutex_lock(&x->lock);
  gt_advance(x, r);
  (void)pthread_mutex_unlock(&x->lock);
  return r->ready;
}

/* Looks, for a limited time, whether all tasks of a batch are done. It merges meanwhile what all parts have
 * answered. */
static void gt_spin_until_done(const gt_context *x, gt_batch *r) {
  const uint64_t until = gpuir__now() + GT_BATCH_SPIN_NS;
  while (__atomic_load_n(&r->open, __ATOMIC_ACQUIRE) && gpuir__now() < until) {
    if (x->team->parts) gt_merge_some(x, r);
    (void)sched_yield();
  }
}

/* Waits for a batch, and returns its status. */
static int gt_finish(void *context, void *running, gpuir_error *err) {
  gt_context *x = (gt_context *)context;
  gt_batch *r = (gt_batch *)running;
  (void)pthread_mutex_lock(&x->lock);
  while (!r->ready) {
    (void)pthread_mutex_unlock(&x->lock);
    gt_spin_until_done(x, r);
    (void)pthread_mutex_lock(&x->lock);
    while (__atomic_load_n(&r->open, __ATOMIC_ACQUIRE)) (void)pthread_cond_wait(&x->done, &x->lock);
    gt_advance(x, r);
  }
  r->used = 0;
  (void)pthread_mutex_unlock(&x->lock);
  if (r->status && err) *err = r->error;
  return r->status;
}

/* ---- attaching ---- */

/* The backend's close. */
static void gt_detach(void *context) {
  gt_context *x = (gt_context *)context;
  gpuir_allocator a;
  unsigned i, j;
  if (!x) return;
  a = x->a;
  if (x->ready) {
    (void)pthread_mutex_lock(&x->lock);
    x->stop = 1;
    (void)pthread_cond_broadcast(&x->work);
    (void)pthread_mutex_unlock(&x->lock);
  }
  for (i = 0; x->members && i < x->n; i++) {
    if (x->members[i].threaded) (void)pthread_join(x->members[i].thread, NULL);
    x->team->ix->calls->searcher_destroy(x->members[i].searcher);
    for (j = 0; j < 3; j++) gpuir__buf_free(&a, &x->members[i].asked[j]);
  }
  for (i = 0; i < 2; i++) {
    for (j = 0; j < GT_TASKS; j++) {
      gpuir__buf_free(&a, &x->batches[i].tasks[j].results);
      gpuir__buf_free(&a, &x->batches[i].tasks[j].deadlines);
    }
    gpuir__buf_free(&a, &x->batches[i].gathered);
    gpuir__buf_free(&a, &x->batches[i].costs);
  }
  if (x->ready) {
    (void)pthread_cond_destroy(&x->done);
    (void)pthread_cond_destroy(&x->work);
    (void)pthread_mutex_destroy(&x->lock);
  }
  gpuir__free(&a, x->members, x->n * sizeof *x->members);
  gpuir__free(&a, x, sizeof *x);
}

/* Gives a member its searcher, and attaches the device to it. */
static int gt_member_open(gt_member *m, const gpuir_searcher *like, unsigned number, gpuir_error *err) {
  const gt_team *t = m->context->team;
  gpuir_index *ix = m->device->part ? m->device->part : (gpuir_index *)(uintptr_t)t->ix;
  gpuir_searcher_desc desc;
  int status;
  memset(&desc, 0, sizeof desc);
  desc.evaluator = like->engine.evaluator;
  desc.threads = (like->nworkers + 1) / t->n; /* that plan */
  status = ix->calls->searcher_create(ix, &desc, &m->searcher, err);
  if (status) return status;
#ifdef GPUIR_CUDA_SEAM
  if (!GT_DEVICES) return gpuir_cuda_seam_member(number, m->searcher);
#endif
  (void)number;
  return gc_attach_device(m->searcher, m->device->cuda, GC_SLOTS_FEW, 0, err);
}

/* Makes a searcher's members, a thread for each. If it fails, gt_detach frees what there is. */
static int gt_attach(gt_context *x, const gpuir_searcher *like, gpuir_error *err) {
  unsigned i;
  x->n = x->team->n;
  x->ready =
      !pthread_mutex_init(&x->lock, NULL) && !pthread_cond_init(&x->work, NULL) && !pthread_cond_init(&x->done, NULL);
  x->members = (gt_member *)gpuir__alloc_zero(&x->a, x->n * sizeof *x->members);
  if (!x->ready || !x->members) return gpuir__fail_nomem(err);
  for (i = 0; i < x->n; i++) {
    gt_member *m = &x->members[i];
    int status;
    m->context = x;
    m->device = &x->team->devices[i];
    status = gt_member_open(m, like, i, err);
    if (status) return status;
    m->threaded = !pthread_create(&m->thread, NULL, gt_member_main, m);
    if (!m->threaded) return gpuir__fail(err, GPUIR_E_NOMEM, 0, "no thread could be started");
  }
  return GPUIR_OK;
}

/* Lets a team answer a searcher's queries. */
static int gt_attach_searcher(gpuir_searcher *s, gt_team *team, int fallback, gpuir_error *err) {
  static const gpuir_backend backend = {GPUIR_BACKEND_VERSION, "cuda", NULL, gt_begin, gt_poll, gt_finish, gt_detach};
  gt_context *x = (gt_context *)gpuir__alloc_zero(&s->engine.a, sizeof *x);
  if (!x) return gpuir__fail_nomem(err);
  x->a = s->engine.a;
  x->team = team;
  return gc_set_backend(s, &backend, x, gt_attach(x, s, err), fallback, err);
}

/* What follows opens indexes: the host compiler optimizes it less, as said at the end of [cuda-13-prompt]. */
#pragma GCC push_options
#pragma nv_diag_suppress 1675
#pragma GCC optimize("Og")
#pragma nv_diag_default 1675
