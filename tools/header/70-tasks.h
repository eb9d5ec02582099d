
/* ========
 * [70-tasks]  a pool and its tasks
 *
 * A pool has threads that run a policy. A task is a query that somebody submits; whoever answers it completes it here:
 * its caller is told, and it is counted.
 *
 * Uses      [37-layout], [56-engine], [63-execution], [69-queues].
 * Start at  gpuir_pool_complete, gpuir_pool_answer.
 * Tests     tests/unit/70_tasks.c
 * ======*/

/* The states of a task. */
enum { GPUIR__TASK_SUBMITTED = 1, GPUIR__TASK_FOR_DEVICE, GPUIR__TASK_RETURNED, GPUIR__TASK_COMPLETE };

struct gpuir_pool {
  gpuir_allocator a;
  const gpuir_index *ix;
  gpuir_pool_desc desc;
  gpuir_policy policy;
  void *state;
  pthread_t *threads;
  unsigned nthreads;
  unsigned extra; /* threads for a device, behind the others */
  unsigned started; /* of both; only grows under the lock */
  int running; /* read and written atomically: the threads were started */
  int waiters, drainers, numbered; /* the same: threads in wait; in drain; those that have a number */
  pthread_mutex_t lock;
  pthread_cond_t complete; /* a task was completed, while somebody waits */
  gpuir__apart before_submitted;
  gpuir__atomic64 submitted, refused; /* submitted: and refused */
  gpuir__apart before_ended;
  gpuir__atomic64 ended, cancelled, missed; /* ended: complete or refused */
};

/* ---- a task */

/* Wakes the threads that wait for a task, or for all. */
GPUIR__COLD static void gpuir__pool_tell(gpuir_pool *p) {
  gpuir__lock(&p->lock);
  (void)pthread_cond_broadcast(&p->complete);
  gpuir__unlock(&p->lock);
}

/* Counts n tasks that the pool has no more. */
static void gpuir__pool_end(gpuir_pool *p, uint64_t n) {
  const uint64_t ended = gpuir__seq_add(&p->ended, n) + n;
  if (gpuir__seq_load(&p->drainers) && ended == gpuir__seq_load(&p->submitted)) gpuir__pool_tell(p);
}

/* Completes a task. The caller adds it to the pool's counters by gpuir__pool_end, once for a whole batch: the counters
 * are written by all threads. */
static void gpuir__pool_settle(gpuir_pool *p, gpuir_task *task, int status) {
  task->status = status;
  if (status) {
    task->count = 0;
    gpuir__count_up(&p->cancelled, status == GPUIR_E_CANCELLED);
    gpuir__count_up(&p->missed, status == GPUIR_E_DEADLINE);
    if (task->error && task->error->code != status)
      (void)gpuir__fail(task->error, status, 0, "%s", gpuir_strerror(status));
  }
  task->finished = gpuir__now();
  if (task->done) {
    task->done(task);
    return;
  }
  __atomic_store_n(&task->pool_state, GPUIR__TASK_COMPLETE, __ATOMIC_SEQ_CST);
  if (gpuir__seq_load(&p->waiters)) gpuir__pool_tell(p);
}

GPUIR_API void gpuir_pool_complete(gpuir_pool *p, gpuir_task *task, int status) {
  gpuir__pool_settle(p, task, status);
  gpuir__pool_end(p, 1);
}

GPUIR_API int gpuir_pool_answer(gpuir_searcher *s, gpuir_task *task) {
  gpuir__engine *e;
  gpuir__limits mine;
  int status;
  if (!s || !task || !task->query || task->query->ix != s->ix) return GPUIR_E_ARGUMENT;
  e = &s->engine;
  mine = e->limits;
  task->started = gpuir__now();
  e->limits.query_deadline = task->deadline;
  e->limits.query_cancel = task->cancel;
  status = gpuir__engine_search_count(e, task->query, task->hits, task->k, &task->count, task->matches);
  e->limits = mine;
  if (status && task->error) *task->error = e->error;
  return status;
}
