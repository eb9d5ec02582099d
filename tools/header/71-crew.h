
/* ========
 * [71-crew]  threads that answer tasks: the policies inter and auto
 *
 * Both of the library's policies are a crew: who submits a task puts it into an inbox, without a lock, and wakes a
 * thread if all that are free sleep; a free thread takes the waiting task with the least key. With `auto` it takes some
 * more, if many wait. With `inter` the key is the number of the submission.
 *
 * With `auto` the key is when the task should start: its due time and its cost, or the mean cost if that is less. Small
 * queries then go before large ones that came with them, but none waits long for what came later. While very many wait
 * the key is the due time alone; a deadline makes it earlier. What queries cost is measured, by mode, number of words
 * and postings.
 *
 * What a thread works with, its searcher and the search that it owns, is a member. Who submits by gpuir_pool_run takes
 * an idle one and answers the task himself: as many tasks as there are members are answered at a time.
 *
 * A thread that finds no task helps with a search that runs (gpuir__share): it takes parts of it, and leaves as soon as
 * a task waits. Queries have a core of their own while there are more of them than cores, or else several. Heavy ones
 * and those that have run for long are helped with first, as long as little waits: otherwise the many small ones would
 * leave them one core at any load.
 *
 * Uses      [51-query], [56-engine], [63-execution], [69-queues], [70-tasks].
 * Start at  gpuir__crew_submit, gpuir__crew_thread (a thread), gpuir__crew_next (what it takes).
 * Tests     tests/unit/71_crew.c
 * ======*/

/* A query that is estimated to cost so much, in ns, gets one helper; twice as much two, and so on. */
#define GPUIR__SHARE_NS 100000u
/* A query that costs so many times the mean is heavy: helpers stay while what waits costs less than twice as much; */
#define GPUIR__SHARE_HEAVY 6u
/* and one that runs for more than so many times the mean, whatever was expected ("few-to-many": Haque et al. 2015). */
#define GPUIR__SHARE_LONG 4u
/* More hits than so many cost more to merge than help saves. */
#define GPUIR__SHARE_K 10000u
/* While so many wait, a thread takes several tasks at a time: what the lock guards is in another processor's caches. At
 * most so many, and no more than take so many ns. */
#define GPUIR__HANDFUL 16u
#define GPUIR__HANDFUL_NS 200000u
/* While what waits for each thread costs more than so many mean queries, tasks go as they came: or else all costly ones
 * would be left for the end, where they slow one another in reading memory. */
#define GPUIR__CROWD 64u

struct gpuir__crew;

/* What one thread at a time works with: a thread of the crew, or one that answers its own task. */
typedef struct gpuir__member {
  struct gpuir__crew *crew;
  struct gpuir__member *next; /* that no thread works with either */
  gpuir_searcher *searcher;
  unsigned turn; /* of tasks that were taken together */
  gpuir__share share; /* of the search that it owns */
} gpuir__member;

/* A batch of a device: the memory that it works on. Arrays have room for the pool's greatest batch. */
typedef struct gpuir__device_batch {
  gpuir_batch *batch; /* NULL: not in flight */
  gpuir_task **tasks; /* [n] */
  const gpuir_query **queries;
  gpuir_hit *hits; /* [n * k]; room for nhits */
  size_t n, k, nhits;
  uint32_t *counts;
  int *statuses, *flags; /* [n] flags: not 0 cancels; the device may read them even when the tasks are gone */
  uint64_t *deadlines;
  const int **cancels; /* [n] into flags */
  uint64_t since;
} gpuir__device_batch;

#define GPUIR__DEVICE_BATCHES 2u

enum { GPUIR__DEVICE_NONE, GPUIR__DEVICE_GOOD, GPUIR__DEVICE_LOST };

/* A device as its driver sees it. */
typedef struct gpuir__device {
  gpuir_searcher *searcher;
  gpuir__device_batch batches[GPUIR__DEVICE_BATCHES];
  unsigned in_flight; /* batches in flight; of its driver alone */
  unsigned failures; /* batches that failed as a whole, one after the other */
  gpuir__atomic64 batch_ns; /* read and written atomically: mean time of a batch lately, from begin to finish */
  gpuir__atomic64 free_at; /* the same: when it is likely to take the next batch; 0: it takes one now */
  gpuir__apart before_waiting;
  gpuir__atomic64 waiting; /* the same: tasks that wait for it */
  int state; /* the same; GPUIR__DEVICE_, changed under the crew's lock */
  gpuir_error error;
} gpuir__device;

/* What gpuir_pool_get_stats tells. */
typedef struct gpuir__crew_counters {
  gpuir__atomic64 shared, joined, batches, on_device, returned;
} gpuir__crew_counters;

/* Tasks that were to wait, and that wait no more; read and written atomically. */
typedef struct gpuir__admission {
  gpuir__atomic64 came, limit; /* limit: came may grow up to this, as far as those who submit know */
  gpuir__apart before;
  gpuir__atomic64 went;
} gpuir__admission;

typedef struct gpuir__crew {
  gpuir_pool *pool;
  int is_auto; /* the policy is auto; else inter */
  gpuir__member *members, *idle; /* [pool->nthreads]; those that no thread works with, under the lock */
  gpuir__lane lane, device_lane; /* under the lock, and under the device's */
  size_t room, most; /* tasks that wait at most; those that a device gives back too */
  uint64_t sequence; /* of tasks, as they came into a lane */
  int stopping; /* read and written atomically */
  const int *stop; /* the searchers' flag: that, or one that the pool was made with */
  gpuir__inbox device_inbox, inbox; /* of the lanes */
  gpuir__admission traffic;
  gpuir__eventcount work, device_work;
  gpuir__atomic64 backlog; /* from here on read and written atomically: ns that what waits for threads may cost */
  gpuir__apart before_mean;
  gpuir__atomic64 mean_ns; /* of a query, lately; 0: not measured */
  int heavy; /* heavy queries that run and may be shared */
  gpuir__crew_counters done;
  gpuir__device device;
  pthread_mutex_t lock, device_lock; /* who holds the first may take the second */
  gpuir__costs costs;
} gpuir__crew;

static uint64_t gpuir__crew_waiting(const gpuir__crew *c) {
  const uint64_t went = gpuir__peek(&c->traffic.went);
  return gpuir__peek(&c->traffic.came) - went;
}

/* Returns when a task should start at the latest for it to be fair: see the head of this part. */
GPUIR__NOINLINE uint64_t gpuir__crew_key(const gpuir__crew *c, const gpuir_task *task) {
  uint64_t key = task->due, mean;
  if (!c->is_auto) return 0; /* see gpuir__crew_queue */
  mean = gpuir__peek(&c->mean_ns);
  if (gpuir__peek(&c->backlog) <= mean * c->pool->nthreads * GPUIR__CROWD)
    key += gpuir__min64(gpuir__min64(task->pool_cost, mean), UINT64_MAX - key);
  if (task->deadline) key = gpuir__min64(key, task->deadline - gpuir__min64(task->deadline, 2 * task->pool_cost));
  return key;
}

static int gpuir__device_is_good(const gpuir__crew *c) {
  return gpuir__seq_load(&c->device.state) == GPUIR__DEVICE_GOOD;
}

/* Puts a task that waits into its lane, whose lock is held. */
static void gpuir__crew_queue(gpuir__crew *c, gpuir__lane *lane, uint64_t key, gpuir_task *task) {
  gpuir__lane_push(lane, c->is_auto ? key : c->sequence++, task);
}

/* Counts n tasks that come to wait for threads, or wait no more; cost: theirs. */
static void gpuir__crew_came(gpuir__crew *c, uint64_t n, uint64_t cost) {
  gpuir__count_up(&c->backlog, cost);
  (void)__atomic_fetch_add(&c->traffic.came, n, __ATOMIC_RELEASE);
}
static void gpuir__crew_went(gpuir__crew *c, uint64_t n, uint64_t cost) {
  gpuir__count_up(&c->backlog, 0 - cost);
  (void)__atomic_fetch_add(&c->traffic.went, n, __ATOMIC_RELEASE);
}

/* Lets a task that was taken from its lane wait for the threads. The lock is held. */
static void gpuir__crew_wait(gpuir__crew *c, gpuir_task *task) {
  gpuir__crew_came(c, 1, task->pool_cost);
  gpuir__crew_queue(c, &c->lane, gpuir__crew_key(c, task), task);
}

/* Moves what was submitted for a lane there. Its lock is held. */
static void gpuir__crew_collect(gpuir__crew *c, gpuir__inbox *inbox, gpuir__lane *lane) {
  gpuir_task *task;
  uint64_t key;
  while ((task = gpuir__inbox_take(inbox, &key)) != NULL) gpuir__crew_queue(c, lane, key, task);
}

/* Takes the first task that waits for threads, or for the device; the lane's lock is held. NULL: none does. */
static gpuir_task *gpuir__crew_take(gpuir__crew *c, gpuir__lane *lane) {
  gpuir_task *task = gpuir__lane_pop(lane);
  if (task && lane == &c->device_lane) gpuir__count_up(&c->device.waiting, UINT64_MAX);
  if (task) gpuir__crew_went(c, 1, lane == &c->lane ? task->pool_cost : 0);
  return task;
}

/* Counts n tasks that are to wait, if there is room for all. 0; BUSY. What others write is looked at when as many came
 * as may wait. */
static int gpuir__crew_admit(gpuir__crew *c, uint64_t n) {
  gpuir__admission *t = &c->traffic;
  const uint64_t came = __atomic_fetch_add(&t->came, n, __ATOMIC_RELAXED) + n;
  uint64_t limit = __atomic_load_n(&t->limit, __ATOMIC_ACQUIRE); /* slots of inboxes are free again */
  if (came <= limit) return GPUIR_OK;
  limit = __atomic_load_n(&t->went, __ATOMIC_ACQUIRE) + c->room;
  __atomic_store_n(&t->limit, limit, __ATOMIC_RELEASE);
  if (came <= limit) return GPUIR_OK;
  (void)__atomic_fetch_sub(&t->came, n, __ATOMIC_RELAXED);
  return GPUIR_E_BUSY;
}

static int gpuir__task_for_device(const gpuir_task *task) { return task->pool_state == GPUIR__TASK_FOR_DEVICE; }

/* Lets tasks wait, and wakes who may take them. What threads share is written once for all. 0; BUSY: for none. */
static int gpuir__crew_post(gpuir__crew *c, gpuir_task *const *tasks, size_t n) {
  uint64_t to_device = 0, cost = 0, at[2] = {0, 0};
  size_t i;
  if (gpuir__crew_admit(c, n)) return GPUIR_E_BUSY;
  for (i = 0; i < n; i++) {
    const int device = gpuir__task_for_device(tasks[i]);
    tasks[i]->on_device = 0;
    to_device += device != 0;
    cost += device ? 0 : tasks[i]->pool_cost;
  }
  gpuir__count_up(&c->device.waiting, to_device);
  gpuir__count_up(&c->backlog, cost);
  /* A slot may be one that was freed after this thread was admitted, which only a thread that was here in between
   * knows: acquired from that one, so that whoever read the slot has done so before it is written anew. */
  if (to_device) at[1] = __atomic_fetch_add(&c->device_inbox.written, to_device, __ATOMIC_ACQ_REL);
  if (to_device < n) at[0] = __atomic_fetch_add(&c->inbox.written, n - to_device, __ATOMIC_ACQ_REL);
  for (i = 0; i < n; i++) { /* from here on they may be gone */
    const int device = gpuir__task_for_device(tasks[i]);
    gpuir__inbox_put(device ? &c->device_inbox : &c->inbox, at[device]++, gpuir__crew_key(c, tasks[i]), tasks[i]);
  }
  if (to_device) gpuir__eventcount_notify(&c->device_work, 1);
  if (to_device && !gpuir__device_is_good(c)) to_device = 0; /* it was lost in between */
  if (to_device < n) gpuir__eventcount_notify(&c->work, 1 + (n - to_device > 1)); /* who comes rings for the others */
  return GPUIR_OK;
}

/* Returns what the device is likely to take for a task before which `before` others wait. A batch that is late is
 * expected to take as long again. */
static uint64_t gpuir__device_estimate(const gpuir__crew *c, uint64_t now, uint64_t before) {
  const uint64_t batch = gpuir__peek(&c->device.batch_ns);
  const uint64_t free_at = gpuir__peek(&c->device.free_at);
  const uint64_t wait = free_at > now ? free_at - now : free_at ? now - free_at : 0;
  return wait + batch * (1 + before / c->pool->desc.batch);
}

/* Returns 1 if a device can answer a task. */
static int gpuir__device_suits(const gpuir_task *task) {
  return !task->matches && task->k && task->k <= GPUIR__SHARE_K && task->pool_state != GPUIR__TASK_RETURNED &&
      gpuir__query_is_plain(task->query);
}

/* Returns 1 if a task that comes now is one for the device: see the head of this part. high: what it costs a thread. */
static int gpuir__crew_prefers_device(const gpuir__crew *c, const gpuir_task *task, uint64_t high, uint64_t now) {
  if (!gpuir__device_is_good(c) || !gpuir__device_suits(task)) return 0;
  return task->on_device ||
      gpuir__peek(&c->backlog) / c->pool->nthreads + high >
      gpuir__device_estimate(c, now, gpuir__peek(&c->device.waiting));
}

/* Notes what a task costs, and who is to answer it. now: 0 without a device. */
static void gpuir__crew_route(gpuir__crew *c, gpuir_task *task, uint64_t now) {
  uint64_t high = 0;
  task->pool_cost = c->is_auto ? gpuir__cost_estimate(&c->costs, task->query, &high) : 0;
  if (now && gpuir__crew_prefers_device(c, task, high, now)) gpuir__poke(&task->pool_state, GPUIR__TASK_FOR_DEVICE);
}

/* Takes a member that no thread works with, or gives it back. The lock is held. */
static gpuir__member *gpuir__member_take(gpuir__crew *c) {
  gpuir__member *m = c->idle;
  if (m) c->idle = m->next;
  return m;
}
static void gpuir__member_give(gpuir__member *m) {
  m->next = m->crew->idle;
  m->crew->idle = m;
}

static int gpuir__crew_submit(void *state, gpuir_task *task) {
  gpuir__crew *c = (gpuir__crew *)state;
  gpuir__crew_route(c, task, gpuir__device_is_good(c) ? gpuir__now() : 0);
  return gpuir__crew_post(c, &task, 1);
}

/* ---- a thread of a crew */

/* Tells threads that sleep of a search that they may join. */
static void gpuir__member_announce(gpuir__share *share) {
  gpuir__crew *c = ((gpuir__member *)share->user)->crew;
  gpuir__count_up(&c->done.shared, 1);
  gpuir__eventcount_notify(&c->work, (int)share->most);
}

/* Notes what a query has cost, and corrects the mean of all. */
static void gpuir__crew_note(gpuir__crew *c, const gpuir_query *q, uint64_t ns) {
  const uint64_t before = gpuir__peek(&c->mean_ns);
  gpuir__cost_note(&c->costs, q, ns);
  gpuir__poke(&c->mean_ns, before ? (before * 255 + gpuir__min64(ns, UINT32_MAX)) / 256 : ns);
}

/* Sets the backlog, in ns, above which those who help with a search leave it. */
static void gpuir__member_limit_backlog(gpuir__member *m, uint64_t limit) {
  gpuir__poke(&m->share.backlog_limit, limit);
  if (limit) (void)__atomic_fetch_add(&m->crew->heavy, 1, __ATOMIC_RELAXED);
}

/* Makes a search heavy that has run for long. */
static void gpuir__member_ran_long(gpuir__share *share) {
  gpuir__member *m = (gpuir__member *)share->user;
  gpuir__member_limit_backlog(m, 2 * GPUIR__SHARE_HEAVY * gpuir__peek(&m->crew->mean_ns));
}

/* Returns how many threads may help with a task: none while the backlog exceeds what its limit may ever be. Nobody
 * would come then, and sharing costs some of an OR's pruning. */
static unsigned gpuir__member_helpers(gpuir__member *m, const gpuir_task *task) {
  gpuir__crew *c = m->crew;
  const uint64_t helpers = gpuir__min64(task->pool_cost / GPUIR__SHARE_NS, c->pool->nthreads - 1);
  const uint64_t mean = gpuir__peek(&c->mean_ns), heavy = GPUIR__SHARE_HEAVY * mean;
  const uint64_t limit = heavy && task->pool_cost >= heavy ? 2 * task->pool_cost : 0;
  if (!helpers || !c->is_auto || task->k > GPUIR__SHARE_K || gpuir__peek(&c->backlog) > gpuir__max64(limit, 2 * heavy))
    return 0;
  gpuir__member_limit_backlog(m, limit);
  m->share.long_after = limit || !mean ? 0 : gpuir__now() + GPUIR__SHARE_LONG * mean;
  return (unsigned)helpers;
}

/* Answers a task, with the help of other threads if it is worth that, and completes it but for counting it; measured:
 * what it costs is noted. */
static void gpuir__member_answer(gpuir__member *m, gpuir_task *task, int measured) {
  gpuir__crew *c = m->crew;
  gpuir__engine *e = &m->searcher->engine;
  const unsigned helpers = gpuir__member_helpers(m, task);
  int status;
  m->share.most = helpers;
  m->share.helped = 0;
  task->on_device = 0;
  e->share = helpers ? &m->share : NULL;
  status = gpuir_pool_answer(m->searcher, task);
  if (m->share.backlog_limit) (void)__atomic_fetch_sub(&c->heavy, 1, __ATOMIC_RELAXED);
  gpuir__poke(&m->share.backlog_limit, 0);
  e->share = NULL;
  if (c->is_auto && !status && measured)
    gpuir__crew_note(c, task->query, gpuir__now() - task->started + m->share.helped);
  gpuir__pool_settle(c->pool, task, status);
}

/* Returns a search of another thread that this one could join, or NULL. */
static gpuir__share *gpuir__member_joinable(const gpuir__member *m) {
  const gpuir__crew *c = m->crew;
  const unsigned me = (unsigned)(m - c->members), n = c->pool->nthreads;
  unsigned i;
  int joins;
  for (i = 1; c->is_auto && i < n; i++) {
    gpuir__share *s = &c->members[(me + i) % n].share;
    if (!gpuir__seq_load(&s->open) || gpuir__peek(&s->exhausted)) continue;
    gpuir__lock(&s->lock);
    joins = gpuir__peek(&s->open) && s->helpers < s->most && gpuir__peek(&c->backlog) <= gpuir__peek(&s->backlog_limit);
    gpuir__unlock(&s->lock);
    if (joins) return s;
  }
  return NULL;
}

/* Takes the first task that waits for a device that is lost. The lock is held. NULL: none waits. */
GPUIR__COLD static gpuir_task *gpuir__crew_inherit(gpuir__crew *c) {
  gpuir_task *task;
  gpuir__lock(&c->device_lock);
  gpuir__crew_collect(c, &c->device_inbox, &c->device_lane);
  task = gpuir__crew_take(c, &c->device_lane);
  gpuir__unlock(&c->device_lock);
  return task;
}

/* Takes the tasks that a thread answers next; returns how many, 0: none waits. The lock is held. */
static unsigned gpuir__crew_next(gpuir__crew *c, gpuir_task *tasks[GPUIR__HANDFUL]) {
  const uint64_t mean = gpuir__peek(&c->mean_ns);
  unsigned n = 0, most = 1;
  gpuir__crew_collect(c, &c->inbox, &c->lane);
  if (c->is_auto && mean)
    most =
        (unsigned)gpuir__min64(gpuir__min64(GPUIR__HANDFUL, GPUIR__HANDFUL_NS / mean), c->lane.n / c->pool->nthreads);
  do tasks[n] = gpuir__lane_pop(&c->lane);
  while (tasks[n] && ++n < most);
  if (n || !gpuir__peek(&c->device.waiting) || (gpuir__device_is_good(c) && !c->stopping)) return n;
  tasks[0] = gpuir__crew_inherit(c);
  if (tasks[0]) gpuir__crew_came(c, 1, tasks[0]->pool_cost); /* it went as one for the device */
  return tasks[0] != NULL;
}

/* Counts tasks that were taken, puts the costly ones last, as none is to wait for them, and prefetches them all. */
static void gpuir__crew_sort(gpuir__crew *c, gpuir_task **tasks, unsigned n) {
  const uint64_t costly = GPUIR__SHARE_HEAVY * gpuir__peek(&c->mean_ns);
  uint64_t cost = 0;
  unsigned i, end = n;
  for (i = 0; i < n; i++) __builtin_prefetch(tasks[i]);
  for (i = 0; i < n; i++) {
    __builtin_prefetch(tasks[i]->query);
    cost += tasks[i]->pool_cost;
  }
  for (i = 0; n > 1 && i < end;) {
    gpuir_task *task = tasks[i];
    if (task->pool_cost < costly) {
      i++;
      continue;
    }
    tasks[i] = tasks[--end];
    tasks[end] = task;
  }
  gpuir__crew_went(c, n, cost);
}

/* Answers tasks that a thread has taken; without a member they end with CANCELLED. Of several one is measured: what
 * is measured is everybody's memory. */
static void gpuir__crew_answer(gpuir__crew *c, gpuir__member *m, gpuir_task **tasks, unsigned n) {
  unsigned i, measured;
  gpuir__crew_sort(c, tasks, n);
  measured = m ? m->turn++ % n : 0;
  for (i = 0; i < n; i++)
    if (m && (!i || !gpuir__peek(&c->stopping))) gpuir__member_answer(m, tasks[i], i == measured);
    else gpuir__pool_settle(c->pool, tasks[i], GPUIR_E_CANCELLED);
  gpuir__pool_end(c->pool, n);
}

/* What a thread of a crew does next. */
enum { GPUIR__CREW_SLEEP, GPUIR__CREW_ANSWER, GPUIR__CREW_HELP, GPUIR__CREW_END };

typedef struct gpuir__crew_job {
  gpuir_task *tasks[GPUIR__HANDFUL]; /* ANSWER: the n tasks that it has taken */
  unsigned n;
  gpuir__share *share; /* HELP: the search that it joins */
  gpuir__member *member; /* what it works with; NULL: it cancels the tasks */
} gpuir__crew_job;

/* Chooses what a thread does next; the lock is held. A crew that stops: what still waits is cancelled, then END.
 * Without an idle member: SLEEP, as others are answering as many as there are. Else a heavy search comes first, then
 * tasks, then any search. */
static int gpuir__crew_choose(gpuir__crew *c, gpuir__crew_job *job) {
  const int works = c->idle && !c->stopping;
  job->member = NULL;
  job->n = 0;
  job->share = works && gpuir__peek(&c->heavy) ? gpuir__member_joinable(c->idle) : NULL;
  if (!job->share && (c->idle || c->stopping)) job->n = gpuir__crew_next(c, job->tasks);
  if (!job->share && !job->n && works) job->share = gpuir__member_joinable(c->idle);
  if (!job->n && c->stopping) return GPUIR__CREW_END;
  if (works && (job->n || job->share)) job->member = gpuir__member_take(c);
  return job->n ? GPUIR__CREW_ANSWER : job->share ? GPUIR__CREW_HELP : GPUIR__CREW_SLEEP;
}

/* What a thread of a crew runs until the crew stops. */
static void gpuir__crew_thread(gpuir__crew *c) {
  gpuir__crew_job job;
  uint64_t seen = 0;
  int what;
  gpuir__lock(&c->lock);
  while ((what = gpuir__crew_choose(c, &job)) != GPUIR__CREW_END) {
    const int more = c->idle && c->lane.n;
    gpuir__unlock(&c->lock);
    if (more) gpuir__eventcount_notify(&c->work, 1);
    if (what == GPUIR__CREW_SLEEP) gpuir__eventcount_wait(&c->work, &seen, gpuir__device_is_good(c));
    else gpuir__eventcount_leave(&c->work, &seen);
    if (what == GPUIR__CREW_ANSWER) gpuir__crew_answer(c, job.member, job.tasks, job.n);
    else if (what == GPUIR__CREW_HELP && gpuir__engine_help(&job.member->searcher->engine, job.share))
      gpuir__count_up(&c->done.joined, 1);
    gpuir__lock(&c->lock);
    if (job.member) gpuir__member_give(job.member);
  }
  gpuir__unlock(&c->lock);
  gpuir__eventcount_leave(&c->work, &seen);
}

/* Answers a task in the thread that submits it, if none waits and a member is idle; others may then wait for that. */
static int gpuir__crew_run(void *state, gpuir_task *task) {
  gpuir__crew *c = (gpuir__crew *)state;
  gpuir__member *m = NULL;
  int left;
  gpuir__crew_route(c, task, gpuir__device_is_good(c) ? gpuir__now() : 0);
  if (task->pool_state != GPUIR__TASK_FOR_DEVICE) {
    gpuir__lock(&c->lock);
    gpuir__crew_collect(c, &c->inbox, &c->lane);
    if (!c->lane.n) m = gpuir__member_take(c);
    gpuir__unlock(&c->lock);
  }
  if (!m) return gpuir__crew_post(c, &task, 1);
  gpuir__member_answer(m, task, 1);
  gpuir__pool_end(c->pool, 1);
  gpuir__lock(&c->lock);
  gpuir__member_give(m);
  left = gpuir__crew_waiting(c) || gpuir__member_joinable(m);
  gpuir__unlock(&c->lock);
  if (left) gpuir__eventcount_notify(&c->work, 1);
  return GPUIR_OK;
}
