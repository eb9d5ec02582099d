
/* ========
 * [api-pool]  many queries at once: threads that answer them as they come
 *
 * Programs, the mount and the laboratory's load generator hand their queries to the same pool.
 * ======*/

typedef struct gpuir_pool gpuir_pool;
typedef struct gpuir_task gpuir_task;
typedef struct gpuir_policy gpuir_policy; /* see [api-experimental] */

/* A query to be answered. The caller fills the first part. From its submission until it is complete, the task
 * belongs to the pool: the caller neither moves, changes nor frees it, its query, its flag and its arrays. */
struct gpuir_task {
  const gpuir_query *query;
  size_t k;
  gpuir_hit *hits; /* [k] */
  uint64_t *matches; /* if not NULL, the matching documents are counted too */
  /* Times in nanoseconds of CLOCK_MONOTONIC. `due` is when the query was to arrive, 0: when it is submitted; waiting
   * tasks are ordered by it, and latencies count from it. After `deadline` the task ends with DEADLINE; 0: none. */
  uint64_t due, deadline;
  const int *cancel; /* read atomically: not 0 ends the task with CANCELLED. NULL: none */
  void (*done)(gpuir_task *task); /* called once, by a thread of the pool, when the task is complete; see below */
  void *user;
  gpuir_error *error; /* if not NULL, filled when the status is not 0 */
  /* What the pool fills in. */
  int on_device; /* 1: a device answered. Set before: a device is to answer, if it can, however long that takes */
  size_t count; /* of hits */
  int status;
  uint64_t started, finished; /* when a thread took it, and when it was complete; `started` may be 0 if none did */
  /* Of the pool. */
  uint64_t pool_cost;
  int pool_state;
};

typedef struct gpuir_pool_desc {
  const gpuir_allocator *allocator; /* copied; NULL: the index's */
  unsigned threads; /* 0: one a processor, less one for a device's driver */
  /* "inter": a query is one thread's; first come, first served. "auto" or NULL: small queries go before large ones that
   * came with them, and threads without a query of their own help with large ones. See [71-crew]. */
  const char *policy;
  const gpuir_policy *custom; /* instead of a named one; it is copied. NULL: none */
  void *custom_user; /* for gpuir_pool_user */
  size_t queue; /* tasks that wait at most; 0: 4096 */
  /* A device for `auto`: gives a searcher a backend without fallback, by gpuir_cuda_attach or
   * gpuir_searcher_set_backend. Called once, by the thread that will use it. NULL: there is no device. */
  int (*attach)(void *user, gpuir_searcher *searcher, gpuir_error *err);
  void *attach_user;
  size_t batch; /* queries of a device's batch at most; 0: 1024 */
  uint64_t device_limit_ns; /* a device that leaves a batch unanswered for so long is lost; 0: 2 seconds */
  const int *cancel; /* read atomically: not 0 ends every task with CANCELLED. NULL: none */
  void (*thread)(void *user); /* what each thread calls first, such as what a handler of signals needs; may be NULL */
  void *thread_user;
} gpuir_pool_desc;

/* Makes a pool for one index, which must outlive it. Its threads start when the first task is submitted, so that a
 * program may fork or detach before; they use no processor time while there is no task. Errors: ARGUMENT (an unknown
 * policy among them), NOMEM. */
GPUIR_API int gpuir_pool_create(const gpuir_index *index, const gpuir_pool_desc *desc, gpuir_pool **pool,
    gpuir_error *err);
/* Submits a task and returns at once. Any thread may call it, and so may a `done` function. A task that is complete
 * may be submitted again. Errors: ARGUMENT; BUSY while as many tasks wait as may (come again later); IO if no
 * thread could be started. After an error the task is the caller's, and `done` is not called. */
GPUIR_API int gpuir_pool_submit(gpuir_pool *pool, gpuir_task *task);
/* Works as gpuir_pool_submit, with one difference: if the pool has a free thread and no task waits, the calling
 * thread answers the task itself before the function returns. This saves handing the task over, which takes longer
 * than a small query. Other threads help with a large one. A custom policy always gets the task. */
GPUIR_API int gpuir_pool_run(gpuir_pool *pool, gpuir_task *task);
/* Cancels a task. One that still waits is completed with CANCELLED at once, by the calling thread. One that is
 * being answered, or that a custom policy has, goes on until it reads its `cancel` flag. The task must still exist. */
GPUIR_API void gpuir_pool_cancel(gpuir_pool *pool, gpuir_task *task);
/* Waits until a task is complete, and returns its status. A task with a `done` function is refused with ARGUMENT,
 * since that function may have freed it. Must not be called from a `done` function. */
GPUIR_API int gpuir_pool_wait(gpuir_pool *pool, gpuir_task *task);
/* Waits until all tasks that were submitted are complete and their `done` functions have returned. Must not be
 * called from a `done` function. */
GPUIR_API void gpuir_pool_drain(gpuir_pool *pool);
/* Stops the pool and frees it. Tasks that wait or run are completed with CANCELLED; in a pool that has a `cancel`
 * flag those that run go on until they read it. Nothing may be submitted meanwhile. NULL is allowed. */
GPUIR_API void gpuir_pool_destroy(gpuir_pool *pool);

typedef struct gpuir_pool_stats {
  uint64_t submitted, completed;
  uint64_t waiting; /* now */
  uint64_t refused; /* submissions that ended with BUSY */
  uint64_t cancelled, missed; /* completed with CANCELLED, with DEADLINE */
  uint64_t shared, joined; /* auto: searches that others could help with; times that a thread did */
  uint64_t batches, on_device; /* handed to a device; queries that it answered */
  uint64_t returned; /* queries that a device failed on, and processors answered */
  uint64_t devices; /* 1: it takes batches now */
  uint64_t devices_lost; /* 1: it failed, or did not answer; device_error says how */
  gpuir_error device_error;
} gpuir_pool_stats;

/* Fills *stats with what was counted since the pool was made. Thread-safe. */
GPUIR_API void gpuir_pool_get_stats(gpuir_pool *pool, gpuir_pool_stats *stats);
/* Returns what a query of the pool's index is likely to cost a processor, in ns. `auto` has measured queries like
 * it; before that, and with other policies, it is a guess by the lengths of its lists. Thread-safe. */
GPUIR_API uint64_t gpuir_pool_estimate(const gpuir_pool *pool, const gpuir_query *query);
