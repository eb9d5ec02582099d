
/* ========================
 * [cuda-18-plan]  host: queries become jobs, terms and tasks of kernels; the lists that they need are held
 *
 * Planning mostly reads: a query's terms, their records, and what is known of their lists. These lie anywhere in
 * memory, so planning prefetches them. If a searcher has several threads, the planner pool plans packets of a large
 * batch's queries ahead, each packet into a plan of its own. Launches take packets in order. How long planning takes
 * stands in tools/results/bench_cuda-planners.txt.
 *
 * Uses      [cuda-05-expand], [cuda-07-or] to [cuda-10-phrases], [cuda-12-alone] to [cuda-14-memory],
 *           [cuda-16-cache], [cuda-17-open].
 * Start at  gc_plan_query (a query), gc_plan_some (a plan), gc_plan_by_pool, gc_stage_plan (all of a launch).
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_SMALL 16u /* queries of a small launch at most: most of its time passes between its kernels */
/* Queries at most of a launch that takes all blocks of a job at once. Floors that are raised meanwhile would come too
 * late, and all wait for the last block. With many hits to find, raising pays sooner. The limits were chosen by
 * tools/results/bench_cuda-small.txt. */
#define GC_UNRAISED(k) ((k) < 100 ? 8u : 3u)
#define GC_GROUP 8 /* driver blocks that a warp takes at once: with more, all would wait longer for the last warp */
#define GC_TURNS_LEAST 32u /* groups of blocks from which on a driver is taken in turns */
#define GC_OPENED 1024u /* blocks from which on a driver's later turns wait for the first one, if ANDs are few */

/* The arrays of a plan, on the host; gc_launch_view has the same on the device. */
typedef struct gc_plan {
  gc_term *terms;
  gc_job *jobs;
  gc_bound_task *bound_tasks;
  gc_turn *turns;
  uint32_t *and_jobs, *and_start, *or_jobs, *max_jobs, *sum_jobs;
  gc_sum_job *sums; /* of sum_jobs, when the launch is staged */
  gc_sum_list *rows;
  uint32_t *sparse;
  uint2 *query_jobs;
  gc_phrase_job *phrase_jobs; /* NULL: the index has no positions */
  uint32_t *phrase_start;
  gc_clause *clauses;
  gc_stored_positions *stored;
  uint8_t *tokens;
  gc_wanted *wanted; /* of the query that is being planned */
  int *outcomes; /* of each query, from `first` on: GC_NO_JOBS, GC_HAS_JOBS, or why it failed */
  void *memory; /* of all the arrays */
  size_t size;
  size_t first, next, end; /* numbers in the batch: queries before `next` are planned, those before `end` will be */
  gpuir_error error; /* of the first query that failed */
} gc_plan;

/* A query without jobs has no hits, or had its outcome before; one with jobs waits for the device. */
enum { GC_NO_JOBS, GC_HAS_JOBS };

/* How much of everything a plan has so far. */
typedef struct gc_plan_counts {
  size_t nsum, nsparse; /* jobs of gc_sum_tiles; their lists that are not cut */
  size_t nq, njobs, nterms, ntile_rows, nbound_tasks, nand, nor, nmax; /* nq: queries that have jobs */
  uint64_t nand_blocks, max_blocks; /* driver blocks of ANDs, of MaxScore */
  size_t nphrase_jobs, nstored, nclauses, ntokens; /* jobs of gc_phrase_all, and what they have of everything */
  uint64_t phrase_blocks; /* driver blocks of these */
  uint32_t lists, tokens; /* the greatest of any: required lists of a job, tokens of a phrase */
} gc_plan_counts;

typedef struct gc_planner_pool gc_planner_pool;

/* A batch, from begin to finish. */
typedef struct gc_batch {
  gpuir_batch_desc desc; /* its .k is the hits of a query that there is room for */
  uint32_t k; /* so many hits, or as many as there are documents */
  uint64_t deadline; /* of all queries; 0: none */
  const int *cancel; /* of all queries; or NULL */
  uint64_t number; /* batches are served in this order; 0: not in use */
  size_t next; /* the first query that no launch has taken */
  size_t seen; /* queries before it were planned; some will be planned again */
  size_t launch_size; /* queries of a launch at most */
  gc_planner_pool *pool; /* several threads that plan it; or NULL */
  size_t packet, npackets; /* queries of a packet; packets of a launch */
  size_t left; /* queries whose outcome is open */
  size_t bad, failed; /* how many failed; the first of them */
  gpuir_error error; /* of the first that failed */
} gc_batch;

/* A launch: queries first .. end - 1 of a batch, those whose count is GC_NONE. */
typedef struct gc_launch {
  gc_batch *batch; /* NULL: nothing is in flight */
  gc_plan_counts counts;
  size_t first, end;
  uint64_t number; /* launches are waited for in this order */
  unsigned reruns;
  int count; /* 1: its queries are counted */
  int idle; /* 1: the searcher had nothing else in flight when it was planned */
} gc_launch;

/* What plans queries, into a plan of its own. */
typedef struct gc_planner {
  gpuir_cuda *cuda;
  gpuir_allocator a;
  gpuir__engine *engine; /* the searcher's */
  gc_sizes most; /* of a launch */
  gc_plan plan;
  gc_plan_counts counts; /* of the plan */
  int count; /* 1: the queries are counted */
  int few; /* 1: they are a small batch */
  gc_holds held;
  gc_transfer transfer;
} gc_planner;

/* A launch slot: a stream and the memory of one launch. */
typedef struct gc_slot : gc_planner {
  gc_launch launch;
  gc_launch_view view; /* its device memory stays; the rest is new for each launch */
  cudaStream_t stream;
  cudaEvent_t sent; /* the lists that the launch uses are on the device */
  uint8_t *staging, *input; /* the plan in pinned memory; on the device */
  uint32_t *out; /* pinned: view.out */
  size_t out_size;
  uint64_t device_bytes;
  int dirty; /* 1: a launch failed, so candidates must be cleared */
  int chained; /* 1: each kernel of the launch starts while the one before ends */
  int alone; /* 1: gc_alone answers the launch */
  size_t alone_bytes; /* bytes of the staged plan that gc_alone needs */
  int sets_flag; /* 1: its last kernel sets the done flag */
  uint32_t flag_number; /* what the flag is set to */
  gc_phrases phrases; /* of the launch */
  gc_alone_state *alone_state; /* device memory of gc_alone */
  int prompt; /* 1: gc_prompt answers the launch */
  gc_line *lines, *device_lines; /* pinned memory behind the done flag that gc_prompt writes; as the device sees it */
} gc_slot;

/* Allocates the plan's arrays on the host. */
static int gc_plan_open(gc_planner *x, gpuir_error *err) {
  const gc_sizes *z = &x->most;
  gc_plan *d = &x->plan;
  uint8_t *at;
  d->size = (size_t)z->host;
  d->memory = gpuir__alloc(&x->a, d->size);
  if (!d->memory) return gpuir__fail_nomem(err);
  at = (uint8_t *)(((uintptr_t)d->memory + 63) & ~(uintptr_t)63);
  d->terms = (gc_term *)gc_carve(&at, z->nterms * sizeof *d->terms);
  d->jobs = (gc_job *)gc_carve(&at, z->njobs * sizeof *d->jobs);
  d->bound_tasks = (gc_bound_task *)gc_carve(&at, z->nbound_tasks * sizeof *d->bound_tasks);
  d->query_jobs = (uint2 *)gc_carve(&at, z->queries * sizeof *d->query_jobs);
  d->and_jobs = (uint32_t *)gc_carve(&at, z->njobs * 4);
  d->turns = (gc_turn *)gc_carve(&at, z->njobs * GC_TURNS * sizeof *d->turns);
  d->and_start = (uint32_t *)gc_carve(&at, (z->njobs * GC_TURNS + 1) * 4);
  d->or_jobs = (uint32_t *)gc_carve(&at, z->njobs * 4);
  d->max_jobs = (uint32_t *)gc_carve(&at, z->njobs * 4);
  d->sum_jobs = (uint32_t *)gc_carve(&at, z->njobs * 4);
  d->sums = (gc_sum_job *)gc_carve(&at, z->njobs * sizeof *d->sums);
  d->rows = (gc_sum_list *)gc_carve(&at, (z->nterms + 32) * sizeof *d->rows);
  d->sparse = (uint32_t *)gc_carve(&at, z->nterms * 4);
  if (z->ntokens) {
    d->phrase_jobs = (gc_phrase_job *)gc_carve(&at, z->njobs * sizeof *d->phrase_jobs);
    d->phrase_start = (uint32_t *)gc_carve(&at, (z->njobs + 1) * 4);
    d->clauses = (gc_clause *)gc_carve(&at, z->nterms * sizeof *d->clauses);
    d->stored = (gc_stored_positions *)gc_carve(&at, z->nterms * sizeof *d->stored);
    d->tokens = (uint8_t *)gc_carve(&at, z->ntokens);
  }
  d->wanted = (gc_wanted *)gc_carve(&at, sizeof *d->wanted);
  d->outcomes = (int *)gc_carve(&at, z->queries * sizeof *d->outcomes);
  x->held.entries = (uint32_t *)gc_carve(&at, z->nterms * 4);
  return GPUIR_OK;
}

/* ---- planning ---- */

/* Fills in where a long list's guides are. */
static void gc_add_guide(const gpuir_cuda *c, const gpuir__list *l, gc_term *t) {
  if (l->extent && c->guides) {
    const gc_list_guide *guide = &c->guides[l->extent - c->ix->lists.longs];
    t->marks = guide->marks;
    t->shift = guide->shift;
    t->row = guide->row;
    t->span = guide->span;
    t->most = guide->most;
    t->cut = guide->cut;
    t->wide = guide->wide;
  }
}

/* Returns the prepared term of a list, or NULL. */
static const gc_known *gc_known_list(const gpuir_cuda *c, const gpuir__record *r) {
  if (!c->known || r->df <= GPUIR__SHORT_MAX || r->docs >= c->ix->stat.longs) return NULL;
  return c->known[r->docs].term.df == r->df ? &c->known[r->docs] : NULL;
}

/* Describes a term's list; *seeds: its seeds, or NULL. */
static int gc_plan_list(const gpuir_cuda *c, const gpuir_query *q, unsigned term, gpuir__list *l, gc_term *t,
    const uint32_t **seeds, gpuir_error *err) {
  const gpuir__record *r = gpuir__query_record(q, 0, GPUIR__ID_TERMS + term);
  const gc_known *known = gc_known_list(c, r);
  int status;
  if (known) {
    *t = known->term;
    *seeds = known->seeds;
    return GPUIR_OK;
  }
  status = gc_describe(c, gpuir__query_id(q, 0, term), r, t, l, err);
  if (status) return status;
  gc_add_guide(c, l, t);
  *seeds = l->seeds;
  return GPUIR_OK;
}

/* Fills in how a query uses a list, and the most that the list adds to a document. */
static void gc_plan_use(const gpuir_query *q, unsigned term, gc_term *t) {
  const gpuir__query_term *from = &q->terms[term];
  const uint32_t most = t->most; /* by guides, under the stored k1 and b; or 0 */
  const uint64_t step = (uint64_t)from->q * (most / GC_PEAK_MOST + 1);
  t->q = from->q;
  t->weight = from->weight;
  t->negated = from->negated != 0;
  t->step = 0;
  if (q->stored_bm25 && most) {
    t->most = t->q * most;
    if (step * GC_PEAK_MOST <= UINT32_MAX) t->step = (uint32_t)step;
  } else {
    t->most = gpuir__bound(t->weight, 1, t->q);
  }
}

/* Notes in the job what a term tells of it. */
static void gc_plan_note(const gpuir_query *q, const uint32_t *seeds, const gc_term *t, gc_job *job) {
  uint32_t s;
  job->expanded = job->expanded && t->kind == GC_LONG;
  job->nterms++;
  if (t->negated) return;
  job->npositive++;
  if (!q->stored_bm25 || !seeds) return;
  for (s = 0; s < GPUIR__SEEDS && gpuir__seed_ranks[s] < job->k; s++) {}
  if (s < GPUIR__SEEDS) job->seed = gpuir__max32(job->seed, t->q * seeds[s]);
}

/* Appends the query's known terms: positive ones by ascending df, then negated ones. *full: their lists have to
 * wait. */
static int gc_plan_terms(gc_planner *x, const gc_plan_counts *p, const gpuir_query *q, gc_job *job, int *full,
    gpuir_error *err) {
  gpuir_cuda *c = x->cuda;
  gc_wanted *w = x->plan.wanted;
  gc_term *terms = x->plan.terms + p->nterms;
  uint32_t n = 0, i, j;
  job->expanded = c->expanded && q->stored_bm25;
  for (i = 0; i < q->n; i++) {
    const uint32_t *seeds;
    int status;
    if (!gpuir__query_record(q, 0, GPUIR__ID_TERMS + i)->df && gpuir__query_id(q, 0, i) == GPUIR__NO_TERM) continue;
    if (c->cache) w->id[n] = gpuir__query_id(q, 0, i);
    status = gc_plan_list(c, q, i, &w->list[c->cache ? n : 0], &terms[n], &seeds, err);
    if (status) return status;
    gc_plan_use(q, i, &terms[n]);
    gc_plan_note(q, seeds, &terms[n++], job);
  }
  if (!job->npositive) return GPUIR_OK; /* no list is needed */
  if (c->cache) {
    int status;
    w->n = n;
    status = gc_cache_hold_all(c, &x->held, &x->transfer, w, terms, full, err);
    if (status || *full) return status;
  }
  for (i = 1; i < job->npositive; i++) { /* positive ones come first */
    const gc_term t = terms[i];
    for (j = i; j && terms[j - 1].df > t.df; j--) terms[j] = terms[j - 1];
    terms[j] = t;
  }
  job->first_term = (uint32_t)p->nterms;
  job->mixed = c->expanded && q->stored_bm25 && !job->expanded;
  if (n != job->npositive || x->engine->evaluator == GPUIR_EVAL_EXHAUSTIVE || job->count) job->seed = 0;
  return GPUIR_OK;
}

/* Returns whether the threshold that is known beforehand makes it certain that MaxScore answers the job. gc_max_plan
 * decides by the same rule. */
static int gc_plan_sure(const gc_planner *x, const gc_job *job) {
  const gc_term *terms = x->plan.terms + job->first_term;
  uint64_t all = (uint64_t)GC_TILE_COST * x->cuda->view.ntiles, driving = 0, behind = 0;
  uint32_t i;
  for (i = job->npositive; i--;) {
    behind += terms[i].most;
    all += terms[i].nblocks;
    if (behind >= job->seed) driving += terms[i].nblocks;
  }
  return job->seed > 1 && (job->npositive == 1 || driving * GC_PROBE_ALONE <= all);
}

/* Appends an AND job. */
static void gc_plan_and(gc_planner *x, gc_plan_counts *p, const gc_job *job) {
  gc_plan *d = &x->plan;
  const gc_term *driver = &d->terms[job->first_term];
  d->and_jobs[p->nand++] = (uint32_t)p->njobs;
  p->nand_blocks += driver->nblocks;
  d->jobs[p->njobs++] = *job;
}

#define GC_SUM_TERMS 32u /* terms of a query at most */

/* Appends an OR job to those of gc_sum_tiles, if it can answer it. Small batches stay with gc_or: tile after tile for
 * all queries keeps the device busy only if there are many. */
static int gc_plan_sum(gc_planner *x, gc_plan_counts *p, const gc_job *job) {
  gc_plan *d = &x->plan;
  uint32_t i;
  if (!x->cuda->slices.ntiles || x->few || job->prune || job->count || !job->stored || job->nterms > GC_SUM_TERMS ||
      job->npositive < job->nterms || job->k > gc_shared_sum::KEYS)
    return 0;
  for (i = 0; i < job->nterms; i++) p->nsparse += !d->terms[job->first_term + i].cut;
  d->sum_jobs[p->nsum++] = (uint32_t)p->njobs;
  d->jobs[p->njobs++] = *job;
  return 1;
}

/* Appends an OR job: for MaxScore, if there are guides; and for tiles, unless MaxScore is certain to answer it. */
static void gc_plan_or(gc_planner *x, gc_plan_counts *p, gc_job *job) {
  gc_plan *d = &x->plan;
  uint32_t i, first;
  job->any = 1;
  if (gc_plan_sum(x, p, job)) return;
  job->follow = x->cuda->guides && job->prune;
  if (job->follow) {
    d->max_jobs[p->nmax++] = (uint32_t)p->njobs;
    for (i = 0; i < job->npositive; i++) p->max_blocks += d->terms[job->first_term + i].nblocks;
    if (gc_plan_sure(x, job)) {
      d->jobs[p->njobs++] = *job;
      return;
    }
  }
  for (i = 0; i < job->nterms; i++) {
    gc_term *t = &d->terms[job->first_term + i];
    t->tile_row = (uint32_t)p->ntile_rows++;
    for (first = 0; first < t->nblocks; first += GC_BOUND_BLOCKS) {
      gc_bound_task *c = &d->bound_tasks[p->nbound_tasks++];
      c->job = (uint32_t)p->njobs;
      c->term = job->first_term + i;
      c->first = first;
      c->zero = 0;
    }
  }
  d->or_jobs[p->nor++] = (uint32_t)p->njobs;
  d->jobs[p->njobs++] = *job;
}

/* Returns whether a job of one positive term goes the way of ANDs: its list is short, or a known threshold spares
 * nearly all its blocks. gc_alone begins without that threshold. */
static int gc_plan_driven(const gc_planner *x, const gc_job *job) {
  return x->plan.terms[job->first_term].df <= 4096 || (x->cuda->guides && job->seed > 1 && !x->few);
}

/* Appends the jobs of a query whose terms have been appended: AND, OR, or both. A query of one positive term has the
 * same answer by either, and goes the cheaper way. */
static uint2 gc_plan_jobs(gc_planner *x, gc_plan_counts *p, const gpuir_query *q, gc_job *job) {
  const uint32_t seed = job->seed;
  int mode = job->count && q->mode == GPUIR_ANDOR ? GPUIR_AND : q->mode;
  uint2 jobs = {GC_NONE, GC_NONE};
  if (mode == GPUIR_ANDOR && gpuir__query_absent(q, 0)) mode = GPUIR_OR;
  if (job->npositive == 1 && job->count) mode = GPUIR_AND;
  else if (job->npositive == 1) mode = gc_plan_driven(x, job) ? GPUIR_AND : GPUIR_OR;
  if (mode != GPUIR_OR) {
    jobs.x = (uint32_t)p->njobs;
    if (job->npositive > 1) job->seed = 0;
    gc_plan_and(x, p, job);
    job->after = jobs.x;
    job->seed = seed;
  }
  if (mode != GPUIR_AND) {
    *(mode == GPUIR_OR ? &jobs.x : &jobs.y) = (uint32_t)p->njobs;
    gc_plan_or(x, p, job);
  }
  p->nterms += job->nterms;
  return jobs;
}

/* Returns how many tasks of gc_tiles a query's lists may need. */
static size_t gc_bound_tasks_of(const gpuir_query *q) {
  size_t n = 0;
  unsigned i;
  for (i = 0; i < q->n; i++) n += q->terms[i].df / (GPUIR__BLOCK * GC_BOUND_BLOCKS) + 1;
  return n;
}

/* Returns whether a + b * length is exact in binary64 for every length below 2^24, so that gc_fused_norm rounds as
 * gpuir__norm_of does. The sum's first bit is at most 2^(1 + the greater exponent); its last one is 23 below the lesser
 * exponent. It is exact if these are at most 53 bits. */
static int gc_fused(double a, double b) {
  int ea, eb;
  if ((double)(float)a < a || (double)(float)a > a || (double)(float)b < b || (double)(float)b > b) return 0;
  if (!(a > 0) || !(b > 0)) return a >= 0 && b >= 0;
  (void)frexp(a, &ea);
  (void)frexp(b, &eb);
  if (ea < -64 || ea > 64 || eb < -64 || eb > 64) return 0;
  return (ea > eb + 24 ? ea : eb + 24) + 1 - ((ea < eb ? ea : eb) - 23) + 1 <= 53;
}

/* ---- queries with phrases ---- */

/* Returns which phrases or prefixes of a query the device leaves to the CPU; NULL: none. */
static const char *gc_why_not(const gpuir_cuda *c, const gpuir_query *q, int count) {
  unsigned i;
  if (q->nprefixes) return "prefixes";
  if (!c->positions.bytes) return "phrases: the index's positions are not on the device";
  for (i = q->npositive; i < q->n; i++)
    if (q->terms[i].tokens) return "phrases that exclude";
  if (q->npositive > 1 && q->mode != GPUIR_AND && (!count || q->mode == GPUIR_OR))
    return "phrases beside words that are not required";
  return NULL;
}

/* Returns whether a plan has room for a query with phrases. */
static int gc_phrases_fit(const gc_plan_counts *p, const gpuir_query *q, const gc_sizes *most) {
  return p->nterms + q->n + q->phrases->nmembers <= most->nterms &&
      p->ntokens + q->n + q->phrases->ntokens <= most->ntokens && !(p->phrase_blocks >> 30);
}

/* The lists that a query with phrases requires, each once; then those that exclude. */
typedef struct gc_phrase_lists {
  const gpuir_query *query;
  gc_term *terms;
  gc_stored_positions *stored;
  uint32_t n;
  uint32_t id[2 * GPUIR_MAX_TERMS]; /* [list] the term's number in the index */
  uint8_t rank[2 * GPUIR_MAX_TERMS]; /* [list as it was added] its number when they are sorted */
} gc_phrase_lists;

/* Describes, as list number m->n, the list of what has this number in the query: GPUIR__ID_TERMS or GPUIR__ID_MEMBERS
 * and more. */
static int gc_phrase_lists_describe(const gpuir_cuda *c, gc_phrase_lists *m, unsigned number, gpuir_error *err) {
  const gpuir__record *r = gpuir__query_record(m->query, 0, number);
  const gc_known *known = gc_known_list(c, r);
  const uint64_t most = c->ix->section[GPUIR__S_POSITIONS]->length;
  gc_term *t = &m->terms[m->n];
  gc_stored_positions *s = &m->stored[m->n];
  gpuir__list l;
  if (known) {
    *t = known->term;
  } else {
    const int status = gc_describe(c, m->query->ids[number], r, t, &l, err);
    if (status) return status;
    gc_add_guide(c, &l, t);
  }
  t->q = 1;
  s->at = r->positions;
  s->length = r->positions_len;
  if (s->at > most || s->length > most - s->at) return gpuir__bad(c->ix, err, 0, "a list's positions lie outside");
  return GPUIR_OK;
}

/* Adds a list, unless it is there; *list: its number. NOT_FOUND: the index has no such list. */
static int gc_phrase_lists_add(const gpuir_cuda *c, gc_phrase_lists *m, unsigned number, uint8_t *list,
    gpuir_error *err) {
  const uint32_t id = m->query->ids[number];
  uint32_t i;
  int status;
  if (id == GPUIR__NO_TERM || !gpuir__query_record(m->query, 0, number)->df) return GPUIR_E_NOT_FOUND;
  for (i = 0; i < m->n && m->id[i] != id; i++) {}
  *list = (uint8_t)i;
  if (i < m->n) return GPUIR_OK;
  status = gc_phrase_lists_describe(c, m, number, err);
  m->id[m->n++] = id;
  return status;
}

/* Adds the lists of the words and phrases that the query requires; tokens[] gets their numbers, one word or phrase
 * behind the other. */
static int gc_phrase_lists_require(const gpuir_cuda *c, gc_phrase_lists *m, uint8_t *tokens, gpuir_error *err) {
  const gpuir_query *q = m->query;
  unsigned i, j;
  for (i = 0; i < q->npositive; i++) {
    const gpuir__query_term *t = &q->terms[i];
    const unsigned n = t->kind == GPUIR__PHRASE ? t->tokens : 1;
    for (j = 0; j < n; j++) {
      const unsigned number = t->kind == GPUIR__PHRASE ? GPUIR__ID_MEMBERS + q->phrases->tokens[t->first + j] : i;
      const int status = gc_phrase_lists_add(c, m, number, tokens++, err);
      if (status) return status;
    }
  }
  return GPUIR_OK;
}

/* Sorts the lists by ascending df. */
static void gc_phrase_lists_sort(gc_phrase_lists *m) {
  uint8_t order[2 * GPUIR_MAX_TERMS];
  uint32_t i, j;
  for (i = 0; i < m->n; i++) {
    const gc_term t = m->terms[i];
    const gc_stored_positions s = m->stored[i];
    for (j = i; j && m->terms[j - 1].df > t.df; j--) {
      m->terms[j] = m->terms[j - 1];
      m->stored[j] = m->stored[j - 1];
      order[j] = order[j - 1];
    }
    m->terms[j] = t;
    m->stored[j] = s;
    order[j] = (uint8_t)i;
  }
  for (i = 0; i < m->n; i++) m->rank[order[i]] = (uint8_t)i;
}

/* Adds the lists of the words that exclude, as far as the index has them. */
static int gc_phrase_lists_exclude(const gpuir_cuda *c, gc_phrase_lists *m, gpuir_error *err) {
  const gpuir_query *q = m->query;
  unsigned i;
  for (i = q->npositive; i < q->n; i++) {
    int status;
    if (q->ids[i] == GPUIR__NO_TERM || !gpuir__query_record(q, 0, i)->df) continue;
    status = gc_phrase_lists_describe(c, m, i, err);
    if (status) return status;
    m->terms[m->n++].negated = 1;
  }
  return GPUIR_OK;
}

/* Describes what the query requires, by the sorted lists; returns how many tokens it has. */
static size_t gc_plan_clauses(const gc_planner *x, gc_plan_counts *p, const gc_phrase_lists *m) {
  const gpuir_query *q = m->query;
  size_t n = p->ntokens, i, j;
  for (i = 0; i < q->npositive; i++) {
    gc_clause *c = &x->plan.clauses[p->nclauses + i];
    c->weight = q->terms[i].weight;
    c->q = q->terms[i].q;
    c->n = q->terms[i].kind == GPUIR__PHRASE ? q->terms[i].tokens : 1;
    c->first = (uint32_t)n;
    for (j = 0; j < c->n; j++, n++) x->plan.tokens[n] = m->rank[x->plan.tokens[n]];
    p->tokens = gpuir__max32(p->tokens, c->n);
  }
  return n - p->ntokens;
}

/* Appends the job of a query with phrases, unless it can have no hits. */
static int gc_plan_phrase_query(gc_planner *x, gc_plan_counts *p, const gpuir_query *q, gc_job *job, gpuir_error *err) {
  gc_plan *d = &x->plan;
  const gc_phrase_job phrase_job = {(uint32_t)p->njobs, (uint32_t)p->nstored, (uint32_t)p->nclauses, q->npositive};
  const uint2 jobs = {(uint32_t)p->njobs, GC_NONE};
  uint32_t tokens = 0;
  unsigned i;
  gc_phrase_lists m;
  int status;
  memset(&m, 0, sizeof m);
  m.query = q;
  m.terms = d->terms + p->nterms;
  m.stored = d->stored + p->nstored;
  status = gc_phrase_lists_require(x->cuda, &m, d->tokens + p->ntokens, err);
  if (status) return status == GPUIR_E_NOT_FOUND ? GPUIR_OK : status;
  for (i = 0; i < q->npositive; i++) tokens = gpuir__max32(tokens, q->terms[i].tokens);
  if (GC_PHRASE_THREADS / 32 * gc_phrase_bytes(gpuir__max32(p->lists, m.n), gpuir__max32(p->tokens, tokens)) >
      x->cuda->phrase_room)
    return gpuir__fail(err, GPUIR_E_BACKEND, 0, "the CUDA backend does not answer phrases of so many words");
  gc_phrase_lists_sort(&m);
  job->first_term = (uint32_t)p->nterms;
  job->npositive = m.n;
  p->lists = gpuir__max32(p->lists, m.n);
  status = gc_phrase_lists_exclude(x->cuda, &m, err);
  if (status) return status;
  job->nterms = m.n;
  p->ntokens += gc_plan_clauses(x, p, &m);
  p->nclauses += q->npositive;
  p->nstored += m.n;
  p->nterms += m.n;
  p->phrase_blocks += m.terms[0].nblocks;
  d->phrase_jobs[p->nphrase_jobs++] = phrase_job;
  d->jobs[p->njobs++] = *job;
  d->query_jobs[p->nq++] = jobs;
  return GPUIR_OK;
}

/* Appends a query, if it can have hits; *full: it has to wait for the next launch. */
static int gc_plan_query(gc_planner *x, gc_plan_counts *p, const gpuir_query *q, uint32_t k, size_t most_jobs,
    int *full, gpuir_error *err) {
  const gc_sizes *most = &x->most;
  gc_job job;
  int status;
  const int phrases = q->nphrases || q->nprefixes;
  if (q->nrequired < q->npositive && q->mode != GPUIR_OR)
    return gpuir__fail(err, GPUIR_E_BACKEND, 0, "the CUDA backend does not answer optional terms beside required ones");
  if (!x->count && gpuir__query_has_two(q, k))
    return gpuir__fail(err, GPUIR_E_BACKEND, 0, "the CUDA backend does not answer AND and an OR of other words");
  if (phrases) {
    const char *why = gc_why_not(x->cuda, q, x->count);
    if (why) return gpuir__fail(err, GPUIR_E_BACKEND, 0, "the CUDA backend does not answer %s", why);
  }
  *full = (phrases && !gc_phrases_fit(p, q, most)) || p->nq == most->queries || p->njobs + 2 > most_jobs ||
      p->nterms + q->n > most->nterms || p->ntile_rows + q->n > most->ntile_rows ||
      p->nsparse + q->n > most->ntile_rows || p->nbound_tasks + gc_bound_tasks_of(q) > most->nbound_tasks ||
      p->nand_blocks >> 30 || p->max_blocks >> 30;
  if (*full) return GPUIR_OK;
  memset(&job, 0, sizeof job);
  job.k = k;
  job.norm_a = q->norm.a;
  job.norm_b = q->norm.b;
  job.fused = gc_fused(q->norm.a, q->norm.b) != 0;
  job.stored = q->stored_bm25 != 0;
  job.count = x->count != 0;
  job.prune = x->engine->evaluator != GPUIR_EVAL_EXHAUSTIVE && !job.count;
  job.after = GC_NONE;
  if (phrases) return gc_plan_phrase_query(x, p, q, &job, err);
  if (q->mode == GPUIR_OR || (q->mode == GPUIR_ANDOR && !job.count) || !gpuir__query_absent(q, 0)) {
    status = gc_plan_terms(x, p, q, &job, full, err);
    if (status || *full) return status;
  }
  if (job.npositive) x->plan.query_jobs[p->nq++] = gc_plan_jobs(x, p, q, &job);
  return GPUIR_OK;
}

/* ---- the queries of a batch, until a plan is full ---- */

/* Notes that a query failed. */
static void gc_fail_query(gc_batch *r, size_t i, int status, const gpuir_error *err) {
  r->desc.statuses[i] = status;
  r->desc.counts[i] = 0;
  r->left--;
  r->bad++;
  if (i >= r->failed) return;
  r->failed = i;
  r->error = *err;
}

/* Returns whether there is a cancel flag and it is set. */
static int gc_cancel_is_set(const int *flag) { return flag && __atomic_load_n(flag, __ATOMIC_RELAXED); }

/* Returns the status of a query that was cancelled or is out of time; otherwise OK. */
static int gc_stopped(const gc_batch *r, size_t i, uint64_t now, gpuir_error *err) {
  const uint64_t own = r->desc.deadlines ? r->desc.deadlines[i] : 0;
  if (gc_cancel_is_set(r->cancel) || (r->desc.cancels && gc_cancel_is_set(r->desc.cancels[i])))
    return gpuir__fail(err, GPUIR_E_CANCELLED, 0, "the search was cancelled");
  if ((r->deadline && now > r->deadline) || (own && now > own))
    return gpuir__fail(err, GPUIR_E_DEADLINE, 0, "the search exceeded its time limit");
  return GPUIR_OK;
}

/* Returns the time, if any query of the batch has a limit; otherwise 0. */
static uint64_t gc_now(const gc_batch *r) { return r->deadline || r->desc.deadlines ? gpuir__now() : 0; }

#define GC_AHEAD_OF_PLAN 16u /* queries */

/* Prefetches what planning will read: query number i, the records of an earlier one, the long lists of one before that.
 * Each is asked for when what leads to it has come. Without this, planning waits for some 25 cache misses of a query,
 * one after another. */
static void gc_expect(const gpuir_cuda *c, const gpuir_batch_desc *desc, const gc_plan *d, size_t i) {
  unsigned t;
  if (i < d->end) {
    const gpuir_query *q = desc->queries[i];
    __builtin_prefetch(q);
    __builtin_prefetch(&q->ids);
    for (t = 0; t < 4; t++) __builtin_prefetch(&q->terms[t]);
  }
  if (i >= d->next + 6 && i - 6 < d->end) {
    const gpuir_query *q = desc->queries[i - 6];
    for (t = 0; t < q->n; t++) {
      __builtin_prefetch(&q->terms[t]);
      __builtin_prefetch(gpuir__query_record(q, 0, GPUIR__ID_TERMS + t));
    }
  }
  if (i >= d->next + 10 && i - 10 < d->end) {
    const gpuir_query *q = desc->queries[i - 10];
    for (t = 0; t < q->n; t++) {
      const gpuir__record *r = gpuir__query_record(q, 0, GPUIR__ID_TERMS + t);
      if (r->df <= GPUIR__SHORT_MAX || r->docs >= c->ix->stat.longs) continue;
      if (c->known) {
        __builtin_prefetch(&c->known[r->docs]);
        __builtin_prefetch(&c->known[r->docs].seeds);
      } else {
        __builtin_prefetch(&c->ix->lists.longs[r->docs]);
      }
    }
  }
}

/* Returns the jobs that a launch of a batch has at most, such that there is room for their candidates. */
static size_t gc_most_jobs(const gc_sizes *z, const gc_batch *r) {
  const uint64_t least = gpuir__max64(8192, 16 * (uint64_t)r->k);
  return (size_t)gpuir__min64(z->njobs, gpuir__max64(2, z->ncand / least));
}

/* Plans queries of a batch, from plan.next on, until the plan is full. *full: the next query found no room for its
 * lists. It writes nothing to the batch, as other threads may plan too; gc_report_outcomes does. */
static void gc_plan_some(gc_planner *x, const gc_batch *r, int *full) {
  const gpuir_batch_desc *desc = &r->desc;
  const uint64_t now = gc_now(r), threshold = x->cuda->threshold;
  const size_t jobs = gc_most_jobs(&x->most, r);
  gc_plan *d = &x->plan;
  uint64_t postings = 0;
  unsigned t;
  memset(&x->counts, 0, sizeof x->counts);
  x->count = desc->count;
  x->few = desc->nq <= GC_SMALL;
  d->first = d->next;
  d->error.code = 0;
  for (t = 0; t < GC_AHEAD_OF_PLAN; t++) gc_expect(x->cuda, desc, d, d->next + t);
  for (; d->next < d->end && postings < threshold; d->next++) {
    const size_t i = d->next, had = x->counts.nq;
    const gpuir_query *q = desc->queries[i];
    int *outcome = &d->outcomes[i - d->first];
    gpuir_error error;
    int status;
    gc_expect(x->cuda, desc, d, i + GC_AHEAD_OF_PLAN);
    *outcome = GC_NO_JOBS;
    if (i < r->seen && desc->counts[i] != GC_NONE) continue;
    error.code = 0;
    status = gc_stopped(r, i, now, &error);
    if (!status) status = gc_plan_query(x, &x->counts, q, r->k, jobs, full, &error);
    if (*full) break;
    if (status && !d->error.code) d->error = error;
    *outcome = status ? status : x->counts.nq == had ? GC_NO_JOBS : GC_HAS_JOBS;
    if (*outcome != GC_HAS_JOBS) continue;
    for (t = 0; t < q->n; t++) postings += q->terms[t].df;
  }
}

/* Reports to the batch what became of a plan's queries. */
static void gc_report_outcomes(const gc_planner *x, gc_batch *r) {
  const gc_plan *d = &x->plan;
  size_t i;
  for (i = d->first; i < d->next; i++) {
    const int outcome = d->outcomes[i - d->first];
    if (outcome == GC_HAS_JOBS) {
      r->desc.counts[i] = GC_NONE;
    } else if (outcome) {
      gc_fail_query(r, i, outcome, &d->error);
    } else if (i >= r->seen || r->desc.counts[i] == GC_NONE) { /* it has no hits */
      r->desc.counts[i] = 0;
      r->left--;
    }
  }
  r->next = d->next;
  if (x->cuda->cache) r->seen = gpuir__max64(r->seen, r->next);
  else __atomic_fetch_add(&x->cuda->info.lists_hit, x->counts.nterms, __ATOMIC_RELAXED);
}

/* ---- the planner pool: packets are planned ahead, and launches take them in order ---- */

#define GC_PLANNER_THREADS 8u /* threads at most, the caller's among them */
#define GC_PACKET 64u /* queries of a packet at most */
#define GC_PACKETS 96u /* packets that are planned ahead at most */
#define GC_FIRST_PACKETS 4u /* packets of a batch's first launch at most, which the device waits for */
#define GC_PLANNER_SPIN_NS 1500000u /* time that planners look for the next batch's packets before they sleep */

/* Threads of a searcher that plan. They sleep while there is nothing to plan. At the end of a batch they look for the
 * next one for a while first, as waking a thread takes longer than planning a packet. Packets are numbered over all
 * batches. */
struct gc_planner_pool {
  gpuir_allocator a;
  pthread_mutex_t lock; /* of all that follows; a packet's contents belong to the thread that plans it */
  pthread_cond_t work, done; /* for the threads; for the caller */
  int stop;
  unsigned n;
  pthread_t threads[GC_PLANNER_THREADS - 1];
  const gc_batch *batches[2]; /* the batches of these packets */
  uint64_t from[2]; /* the first packet of each */
  unsigned nbatches; /* announced; the last one is in place (nbatches - 1) % 2 */
  uint64_t begun, claimed, taken; /* packets that there are (atomic); that were claimed; that launches took */
  uint64_t wakeups; /* how often another batch was soon to be expected */
  gc_planner packets[GC_PACKETS]; /* packet i is in place i % GC_PACKETS */
  int planned[GC_PACKETS];
};

/* Claims the next packet for a thread; NULL: there is none, or no place for it. The lock is held. */
static gc_planner *gc_claim_packet(gc_planner_pool *w, const gc_batch **batch) {
  const uint64_t number = w->claimed;
  gc_planner *packet = &w->packets[number % GC_PACKETS];
  const unsigned last = (w->nbatches - 1) % 2, which = number < w->from[last] ? 1 - last : last;
  const gc_batch *r = w->batches[which];
  size_t launch;
  if (number == w->begun || number == w->taken + GC_PACKETS) return NULL;
  w->claimed++;
  w->planned[number % GC_PACKETS] = 0;
  launch = (size_t)(number - w->from[which]) / r->npackets * r->launch_size;
  packet->plan.next = launch + (size_t)(number - w->from[which]) % r->npackets * r->packet;
  packet->plan.end =
      (size_t)gpuir__min64(gpuir__min64(packet->plan.next + r->packet, launch + r->launch_size), r->desc.nq);
  *batch = r;
  return packet;
}

/* Plans a packet that was claimed. The lock is held before and after, but not meanwhile. */
static void gc_plan_packet(gc_planner_pool *w, gc_planner *packet, const gc_batch *r) {
  int full = 0;
  (void)pthread_mutex_unlock(&w->lock);
  gc_plan_some(packet, r, &full);
  (void)pthread_mutex_lock(&w->lock);
  w->planned[packet - w->packets] = 1;
}

/* Looks for packets of the next batch before the thread sleeps. The lock is held before and after, but not
 * meanwhile. */
static void gc_spin_for_packets(gc_planner_pool *w) {
  const uint64_t begun = w->begun, until = gpuir__now() + GC_PLANNER_SPIN_NS;
  (void)pthread_mutex_unlock(&w->lock);
  while (__atomic_load_n(&w->begun, __ATOMIC_RELAXED) == begun && gpuir__now() < until) (void)sched_yield();
  (void)pthread_mutex_lock(&w->lock);
}

/* Each thread that sees more than one packet wakes another. */
static void *gc_planner_main(void *argument) {
  gc_planner_pool *w = (gc_planner_pool *)argument;
  uint64_t wakeups = 0;
  (void)pthread_mutex_lock(&w->lock);
  while (!w->stop) {
    const gc_batch *r;
    gc_planner *packet = gc_claim_packet(w, &r);
    if (packet) {
      if (w->claimed < w->begun) (void)pthread_cond_signal(&w->work);
      gc_plan_packet(w, packet, r);
      (void)pthread_cond_signal(&w->done);
    } else if (wakeups != w->wakeups) {
      wakeups = w->wakeups;
      gc_spin_for_packets(w);
    } else {
      (void)pthread_cond_wait(&w->work, &w->lock);
    }
  }
  (void)pthread_mutex_unlock(&w->lock);
  return NULL;
}

/* Wakes all threads: the last launch of a batch has started, and another batch may come. */
static void gc_wake_planners(gc_planner_pool *w) {
  (void)pthread_mutex_lock(&w->lock);
  w->wakeups++;
  (void)pthread_cond_broadcast(&w->work);
  (void)pthread_mutex_unlock(&w->lock);
}

/* Returns the next packet, planned. The caller plans it if no thread has begun to. While it waits for another thread,
 * it plans further packets. */
static gc_planner *gc_next_packet(gc_planner_pool *w) {
  const size_t place = w->taken % GC_PACKETS;
  (void)pthread_mutex_lock(&w->lock);
  while (w->claimed == w->taken || !w->planned[place]) {
    const gc_batch *r;
    gc_planner *packet = gc_claim_packet(w, &r);
    if (packet) gc_plan_packet(w, packet, r);
    else (void)pthread_cond_wait(&w->done, &w->lock);
  }
  (void)pthread_mutex_unlock(&w->lock);
  return &w->packets[place];
}

/* Gives a packet up, all of whose queries launches have taken. */
static void gc_leave_packet(gc_planner_pool *w) {
  (void)pthread_mutex_lock(&w->lock);
  w->taken++;
  if (w->claimed < w->begun) (void)pthread_cond_signal(&w->work);
  (void)pthread_mutex_unlock(&w->lock);
}

/* Announces a batch to the pool. */
static void gc_announce(gc_planner_pool *w, gc_batch *r) {
  r->pool = w;
  (void)pthread_mutex_lock(&w->lock);
  w->batches[w->nbatches % 2] = r;
  w->from[w->nbatches++ % 2] = w->begun;
  (void)__atomic_add_fetch(&w->begun,
      r->desc.nq / r->launch_size * r->npackets + (r->desc.nq % r->launch_size + r->packet - 1) / r->packet,
      __ATOMIC_RELAXED);
  (void)pthread_mutex_unlock(&w->lock);
  (void)pthread_cond_signal(&w->work);
}

/* Ends the pool's threads and frees it. */
static void gc_planner_pool_close(gc_planner_pool *w) {
  const gpuir_allocator a = w->a;
  unsigned i;
  (void)pthread_mutex_lock(&w->lock);
  w->stop = 1;
  (void)pthread_cond_broadcast(&w->work);
  (void)pthread_mutex_unlock(&w->lock);
  for (i = 0; i < w->n; i++) (void)pthread_join(w->threads[i], NULL);
  for (i = 0; i < GC_PACKETS; i++) gpuir__free(&a, w->packets[i].plan.memory, w->packets[i].plan.size);
  (void)pthread_cond_destroy(&w->done);
  (void)pthread_cond_destroy(&w->work);
  (void)pthread_mutex_destroy(&w->lock);
  gpuir__free(&a, w, sizeof *w);
}

/* Makes a pool of `threads` for launches as `like` plans them. Returns NULL without memory or threads. */
GPUIR__COLD static gc_planner_pool *gc_planner_pool_open(const gc_planner *like, unsigned threads) {
  gc_planner_pool *w = (gc_planner_pool *)gpuir__alloc_zero(&like->a, sizeof *w);
  gpuir_error error;
  unsigned i;
  if (!w) return NULL;
  w->a = like->a;
  if (pthread_mutex_init(&w->lock, NULL) || pthread_cond_init(&w->work, NULL) || pthread_cond_init(&w->done, NULL)) {
    gpuir__free(&like->a, w, sizeof *w);
    return NULL;
  }
  for (i = 0; i < GC_PACKETS; i++) {
    w->packets[i].cuda = like->cuda;
    w->packets[i].a = like->a;
    w->packets[i].engine = like->engine;
    w->packets[i].most = gc_sizes_of(like->cuda, GC_PACKET);
    if (gc_plan_open(&w->packets[i], &error)) break;
  }
  for (; i == GC_PACKETS && w->n + 1 < threads && w->n + 1 < GC_PLANNER_THREADS; w->n++)
    if (pthread_create(&w->threads[w->n], NULL, gc_planner_main, w)) break;
  if (w->n) return w;
  gc_planner_pool_close(w);
  return NULL;
}

/* Appends a packet's queries with phrases to a launch's plan, whose other counts have not been raised yet. */
static void gc_append_phrases(gc_planner *to, const gc_planner *from) {
  const gc_plan *d = &from->plan;
  const gc_plan_counts *more = &from->counts;
  gc_plan_counts *p = &to->counts;
  gc_plan *all = &to->plan;
  size_t i;
  for (i = 0; i < more->nphrase_jobs; i++) {
    gc_phrase_job *s = &all->phrase_jobs[p->nphrase_jobs + i];
    *s = d->phrase_jobs[i];
    s->job += (uint32_t)p->njobs;
    s->first_stored += (uint32_t)p->nstored;
    s->first_clause += (uint32_t)p->nclauses;
  }
  for (i = 0; i < more->nclauses; i++) {
    all->clauses[p->nclauses + i] = d->clauses[i];
    all->clauses[p->nclauses + i].first += (uint32_t)p->ntokens;
  }
  memcpy(all->stored + p->nstored, d->stored, more->nstored * sizeof *d->stored);
  memcpy(all->tokens + p->ntokens, d->tokens, more->ntokens);
  p->nphrase_jobs += more->nphrase_jobs;
  p->nstored += more->nstored;
  p->nclauses += more->nclauses;
  p->ntokens += more->ntokens;
  p->phrase_blocks += more->phrase_blocks;
  p->lists = gpuir__max32(p->lists, more->lists);
  p->tokens = gpuir__max32(p->tokens, more->tokens);
}

/* Appends what a packet has planned to a launch's plan. */
static void gc_append(gc_planner *to, const gc_planner *from) {
  const gc_plan *d = &from->plan;
  const gc_plan_counts *more = &from->counts;
  gc_plan_counts *p = &to->counts;
  gc_plan *all = &to->plan;
  size_t i;
  uint32_t t;
  memcpy(all->terms + p->nterms, d->terms, more->nterms * sizeof *d->terms);
  for (i = 0; i < more->njobs; i++) {
    gc_job *job = &all->jobs[p->njobs + i];
    *job = d->jobs[i];
    job->first_term += (uint32_t)p->nterms;
    if (job->after != GC_NONE) job->after += (uint32_t)p->njobs;
  }
  for (i = 0; i < more->nbound_tasks; i++) {
    gc_bound_task *c = &all->bound_tasks[p->nbound_tasks + i];
    *c = d->bound_tasks[i];
    c->job += (uint32_t)p->njobs;
    c->term += (uint32_t)p->nterms;
  }
  for (i = 0; i < more->nq; i++) {
    uint2 *jobs = &all->query_jobs[p->nq + i];
    *jobs = d->query_jobs[i];
    jobs->x += (uint32_t)p->njobs;
    if (jobs->y != GC_NONE) jobs->y += (uint32_t)p->njobs;
  }
  for (i = 0; i < more->nand; i++) all->and_jobs[p->nand + i] = d->and_jobs[i] + (uint32_t)p->njobs;
  for (i = 0; i < more->nor; i++) {
    const gc_job *job = &all->jobs[p->njobs + d->or_jobs[i]];
    all->or_jobs[p->nor + i] = d->or_jobs[i] + (uint32_t)p->njobs;
    for (t = 0; t < job->nterms; t++) all->terms[job->first_term + t].tile_row += (uint32_t)p->ntile_rows;
  }
  for (i = 0; i < more->nsum; i++) all->sum_jobs[p->nsum + i] = d->sum_jobs[i] + (uint32_t)p->njobs;
  for (i = 0; i < more->nmax; i++) all->max_jobs[p->nmax + i] = d->max_jobs[i] + (uint32_t)p->njobs;
  if (more->nphrase_jobs) gc_append_phrases(to, from);
  p->nq += more->nq;
  p->njobs += more->njobs;
  p->nterms += more->nterms;
  p->ntile_rows += more->ntile_rows;
  p->nbound_tasks += more->nbound_tasks;
  p->nand += more->nand;
  p->nor += more->nor;
  p->nmax += more->nmax;
  p->nsum += more->nsum;
  p->nsparse += more->nsparse;
  p->nand_blocks += more->nand_blocks;
  p->max_blocks += more->max_blocks;
}

/* Returns whether a launch has room for a packet. */
static int gc_fits(const gc_planner *x, const gc_plan_counts *more, size_t most_jobs) {
  const gc_sizes *z = &x->most;
  const gc_plan_counts *p = &x->counts;
  return p->nq + more->nq <= z->queries && p->njobs + more->njobs <= most_jobs &&
      p->nterms + more->nterms <= z->nterms && p->ntokens + more->ntokens <= z->ntokens &&
      p->ntile_rows + more->ntile_rows <= z->ntile_rows && p->nsparse + more->nsparse <= z->ntile_rows &&
      p->nbound_tasks + more->nbound_tasks <= z->nbound_tasks && !((p->nand_blocks + more->nand_blocks) >> 30) &&
      !((p->max_blocks + more->max_blocks) >> 30) && !((p->phrase_blocks + more->phrase_blocks) >> 30);
}

/* Returns whether the next packet is planned. */
static int gc_packet_is_ready(gc_planner_pool *w) {
  int ready;
  (void)pthread_mutex_lock(&w->lock);
  ready = w->claimed > w->taken && w->planned[w->taken % GC_PACKETS];
  (void)pthread_mutex_unlock(&w->lock);
  return ready;
}

/* Plans a launch of at most `most` queries of a batch by the pool. If the device is idle, the launch does not wait for
 * further packets once it has two; and a batch's first launch takes only few, so that the device starts. */
static void gc_plan_by_pool(gc_planner *x, gc_batch *r, size_t most, int idle) {
  const size_t first = r->next, jobs = gc_most_jobs(&x->most, r);
  gc_planner_pool *w = r->pool;
  memset(&x->counts, 0, sizeof x->counts);
  while (r->next < r->desc.nq) {
    gc_planner *packet;
    gc_plan *d;
    int full = 0;
    if (idle && r->next - first >= 2 * r->packet && !gc_packet_is_ready(w)) break;
    if (idle && !first && r->next >= GC_FIRST_PACKETS * r->packet) break;
    packet = gc_next_packet(w);
    d = &packet->plan;
    if (r->next > first && (d->next - first > most || !gc_fits(x, &packet->counts, jobs))) break;
    gc_append(x, packet);
    gc_report_outcomes(packet, r);
    if (d->next == d->end) gc_leave_packet(w);
    else gc_plan_some(packet, r, &full); /* the packet's plan was full: the rest */
  }
}

/* ---- sending a plan ---- */

/* Copies an array into the staging memory; returns where it will lie on the device. */
static void *gc_stage(gc_slot *x, size_t *at, const void *from, size_t n) {
  size_t start = *at;
  memcpy(x->staging + start, from, n);
  *at = (start + n + 15) & ~(size_t)15;
  return x->input + start;
}

/* Appends the AND jobs' turns of one round: round 0 of the long drivers; in round 1 all blocks of the others; then the
 * further rounds of the long ones. */
static void gc_take_turns(const gc_slot *x, const gc_plan_counts *p, uint32_t round, uint32_t group, gc_ands *ands) {
  const gc_plan *d = &x->plan;
  const uint32_t first = round > 1 ? 1u << (GC_TURNS - round) : 0;
  const uint32_t step = round ? 1u << (GC_TURNS - round + 1) : 1u << (GC_TURNS - 1);
  size_t i;
  for (i = 0; i < p->nand; i++) {
    gc_job *job = &d->jobs[d->and_jobs[i]];
    const uint32_t some = job->npositive == 1 && job->seed ? 32 : group; /* hardly a block of it is decoded */
    const uint32_t groups = (d->terms[job->first_term].nblocks - 1) / some + 1;
    const int at_once = groups < GC_TURNS_LEAST || job->npositive == 1;
    gc_turn turn = {d->and_jobs[i], first, step, 0, some};
    if (at_once) turn.first = 0, turn.step = 1;
    else if (some == 1 && groups >= GC_OPENED) turn.opening = ((groups - 1) >> (GC_TURNS - 1)) + 1;
    if (at_once != (round == 1) || turn.first >= groups) continue;
    d->turns[ands->n] = turn;
    d->and_start[ands->n++] = ands->tickets;
    job->tickets = (round > 1 ? job->tickets : 0) + (groups - turn.first - 1) / turn.step + 1;
    ands->tickets += (groups - turn.first - 1) / turn.step + 1;
  }
}

/* Cuts the ANDs' driver blocks into groups, one ticket for each. */
static void gc_group_ands(const gc_slot *x, const gc_plan_counts *p, gc_ands *ands) {
  const gpuir_cuda *c = x->cuda;
  uint32_t round;
  const uint32_t group = (uint32_t)gpuir__max64(1, gpuir__min64(GC_GROUP, p->nand_blocks / (c->grids.maxs * 64)));
  ands->n = ands->tickets = 0;
  for (round = 0; round <= GC_TURNS; round++) gc_take_turns(x, p, round, group, ands);
  x->plan.and_start[ands->n] = ands->tickets;
}

/* Describes the lists of gc_sum_tiles and stages them. Its terms get their rows. */
static void gc_stage_sums(gc_slot *x, const gc_plan_counts *p, size_t *at) {
  const gc_slices *to = &x->cuda->slices;
  gc_plan *d = &x->plan;
  gc_sums *b = &x->view.sums;
  size_t rows = 0, sparse = 0, i;
  uint32_t n;
  for (i = 0; i < p->nsum; i++) {
    const gc_job *job = &d->jobs[d->sum_jobs[i]];
    const gc_sum_job sum = {d->sum_jobs[i], (uint32_t)rows, job->nterms, job->after};
    d->sums[i] = sum;
    for (n = job->first_term; n < job->first_term + job->nterms; n++) {
      gc_term *t = &d->terms[n];
      gc_sum_list *row = &d->rows[rows++];
      const uint32_t cut = t->cut, is_long = t->kind == GC_LONG;
      t->tile_row = cut ? cut - 1 : (uint32_t)sparse;
      if (!cut) d->sparse[sparse++] = n;
      row->at = t->tile_row * (to->ntiles + 1);
      row->kind_q = t->q | (cut ? 0 : is_long ? 1u << 30 : 2u << 30);
      row->from = is_long ? (uint32_t)(t->first_block * GPUIR__BLOCK) : n;
      row->most = cut ? to->tile : t->df;
    }
  }
  memset(d->rows + rows, 0, 32 * sizeof *d->rows);
  b->jobs = (const gc_sum_job *)gc_stage(x, at, d->sums, p->nsum * sizeof *d->sums);
  b->rows = (const gc_sum_list *)gc_stage(x, at, d->rows, (rows + 32) * sizeof *d->rows);
  b->sparse = (const uint32_t *)gc_stage(x, at, d->sparse, sparse * 4);
  b->n = (uint32_t)p->nsum;
  b->nsparse = (uint32_t)sparse;
  b->lists = *to;
}

/* Stages the queries with phrases. */
static void gc_stage_phrases(gc_slot *x, const gc_plan_counts *p, size_t *at) {
  const gc_plan *d = &x->plan;
  gc_phrases *b = &x->phrases;
  size_t i;
  b->group = (uint32_t)gpuir__max64(1, gpuir__min64(GC_GROUP, p->phrase_blocks / (x->cuda->grids.maxs * 64)));
  b->tickets = 0;
  for (i = 0; i < p->nphrase_jobs; i++) {
    d->phrase_start[i] = b->tickets;
    b->tickets += (d->terms[d->jobs[d->phrase_jobs[i].job].first_term].nblocks - 1) / b->group + 1;
  }
  d->phrase_start[i] = b->tickets;
  b->jobs = (const gc_phrase_job *)gc_stage(x, at, d->phrase_jobs, p->nphrase_jobs * sizeof *d->phrase_jobs);
  b->start = (const uint32_t *)gc_stage(x, at, d->phrase_start, (p->nphrase_jobs + 1) * 4);
  b->clauses = (const gc_clause *)gc_stage(x, at, d->clauses, p->nclauses * sizeof *d->clauses);
  b->stored = (const gc_stored_positions *)gc_stage(x, at, d->stored, p->nstored * sizeof *d->stored);
  b->tokens = (const uint8_t *)gc_stage(x, at, d->tokens, p->ntokens);
  b->positions = x->cuda->positions;
  b->n = (uint32_t)p->nphrase_jobs;
  b->lists = p->lists;
}

#define GC_DOUBT 9.0f /* of gc_maxs.doubt: one guess in exp(9) = 8,100 may fail */
#ifdef GPUIR_CUDA_SEAM
float gpuir_cuda_seam_doubt[2] = {GC_DOUBT, GC_DOUBT};
#define GC_DOUBT_NOW(i) gpuir_cuda_seam_doubt[i]
#else
#define GC_DOUBT_NOW(i) GC_DOUBT
#endif

/* Stages the plan and the states that jobs begin with, and makes x->view describe it. Returns the bytes to be sent. */
static size_t gc_stage_plan(gc_slot *x, const gc_plan_counts *p, uint32_t k) {
  const gpuir_cuda *c = x->cuda;
  const gc_plan *d = &x->plan;
  gc_launch_view *b = &x->view;
  gc_state *states;
  size_t at = 0, i;
  gc_group_ands(x, p, &b->ands);
  if (p->nsum) gc_stage_sums(x, p, &at);
  if (p->nphrase_jobs) gc_stage_phrases(x, p, &at);
  b->terms = (const gc_term *)gc_stage(x, &at, d->terms, p->nterms * sizeof *d->terms);
  b->jobs = (const gc_job *)gc_stage(x, &at, d->jobs, p->njobs * sizeof *d->jobs);
  b->query_jobs = (const uint2 *)gc_stage(x, &at, d->query_jobs, p->nq * sizeof *d->query_jobs);
  x->alone_bytes = at;
  b->ands.turns = (const gc_turn *)gc_stage(x, &at, d->turns, b->ands.n * sizeof *d->turns);
  b->ands.start = (const uint32_t *)gc_stage(x, &at, d->and_start, ((size_t)b->ands.n + 1) * 4);
  b->ors.bound_tasks =
      (const gc_bound_task *)gc_stage(x, &at, d->bound_tasks, p->nbound_tasks * sizeof *d->bound_tasks);
  b->ors.jobs = (const uint32_t *)gc_stage(x, &at, d->or_jobs, p->nor * 4);
  b->ors.n = (uint32_t)p->nor;
  b->ors.nbound_tasks = (uint32_t)p->nbound_tasks;
  b->ors.grab = p->nor >= 64 ? 4 : 1;
  b->maxs.jobs = (const uint32_t *)gc_stage(x, &at, d->max_jobs, p->nmax * 4);
  b->maxs.n = (uint32_t)p->nmax;
  b->maxs.most = (uint32_t)p->nterms;
  b->maxs.parts = p->max_blocks < c->grids.maxs * 64 ? 4 : 1;
  b->maxs.doubt[0] = GC_DOUBT_NOW(0);
  b->maxs.doubt[1] = GC_DOUBT_NOW(1);
  b->raised = p->nq > GC_UNRAISED(k);
  b->alone = 0;
  b->maxs.group = (uint32_t)gpuir__max64(1, gpuir__min64(GC_GROUP, p->max_blocks / (c->grids.maxs * 64)));
  b->room = (uint32_t)gpuir__min64(x->most.ncand / p->njobs, gpuir__max64(65536, 16 * (uint64_t)k)) & ~1u;
  b->out_stride = 2 + 2 * k;
  memset(x->staging + at, 0, sizeof(gc_control) + p->njobs * sizeof(gc_state));
  b->control = (gc_control *)(x->input + at);
  at += sizeof(gc_control);
  b->states = (gc_state *)(x->input + at);
  states = (gc_state *)(x->staging + at);
  for (i = 0; i < p->njobs; i++)
    if (d->jobs[i].seed) states[i].floor = ((unsigned long long)d->jobs[i].seed << 32) - 1;
  return at + p->njobs * sizeof(gc_state);
}
