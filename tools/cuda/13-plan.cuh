
/* ========================
 * [cuda-13-plan]  host: queries become jobs, terms and chunks; the lists that they need are held
 *
 * Planning is reading: of each query's terms, their records and what is known of their lists, which lie anywhere in
 * memory; it prefetches them. Where a searcher has several threads, they plan sheets of a large batch's queries ahead,
 * each into a draft of its own, and launches take sheets in order. On 25.2 million documents (8 planners of an Intel
 * Xeon beside an H200) planning a query of 3.6 terms keeps the caller's thread 0.06 to 0.09 us, alone 0.4 to 0.5.
 *
 * Uses      [cuda-05-expand], [cuda-06-or] to [cuda-07b-phrases], [cuda-08b-alone] to [cuda-09-memory],
 *           [cuda-11-cache], [cuda-12-open].
 * Start at  gc_plan_query (a query), gc_plan_some (a draft), gc_fill_by_crew, gc_stage_plan (all of a launch).
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_SMALL 16u /* queries of a small launch at most: what counts are the gaps between its kernels */
/* Queries at most of a launch that takes all blocks of a job at once: floors that are raised meanwhile come too late,
 * and what counts is the wait for the last block; with many hits to find they pay sooner. Measured on an H100, 25.2
 * million documents, two calls of n ORs in flight, in us a call, without raising and with it: k = 10, n = 4: 71 and 84,
 * n = 8: 97 and 107, n = 12: 122 and 119, n = 16: 145 and 138; k = 1,000, n = 2: 116 and 130, n = 4: 167 and 161,
 * n = 16: 374 and 278; one call of 16, of which one is costly: 476 and 201 (tools/results/bench_cuda-small.txt). */
#define GC_UNRAISED(k) ((k) < 100 ? 8u : 3u)
#define GC_GROUP 8 /* driver blocks that a warp takes at once: few, or the last ones to end keep all waiting */
#define GC_TURNS_LEAST 32u /* groups of blocks of a driver that is taken in turns */
#define GC_OPENED 1024u /* blocks of a driver at least, where the turns of few ANDs wait for the first one */

/* The arrays of a plan, on the host; gc_batch has the same on the device. */
typedef struct gc_draft {
  gc_term *terms;
  gc_job *jobs;
  gc_chunk *chunks;
  gc_turn *turns;
  uint32_t *and_jobs, *and_start, *or_jobs, *max_jobs, *sum_jobs;
  gc_sum_job *sums; /* of sum_jobs, when the launch is staged */
  gc_sum_list *rows;
  uint32_t *thin;
  uint2 *query_jobs;
  gc_sought *sought; /* NULL: the index has no positions */
  uint32_t *sought_start;
  gc_clause *clauses;
  gc_spots *spots;
  uint8_t *tokens;
  gc_wanted *wanted; /* of the query that is being planned */
  int *outcomes; /* of each of its queries, from `first` on: GC_SETTLED, GC_HAS_JOBS, or why it failed */
  void *memory; /* all of the arrays */
  size_t size;
  size_t first, next, end; /* of the batch: queries before `next` are planned, those before `end` are to be */
  gpuir_error error; /* of the first of them that failed */
} gc_draft;

/* A query has no hits, or has had its outcome before; or waits for the device. */
enum { GC_SETTLED, GC_HAS_JOBS };

/* How much of everything a plan has until now. */
typedef struct gc_plan {
  size_t nsum, nthin; /* jobs of gc_sum_tiles; their lists that are not cut */
  size_t nq, njobs, nterms, nslots, nchunks, nand, nor, nmax; /* nq: queries that have jobs */
  uint64_t nand_blocks, max_blocks; /* driver blocks of ANDs, of MaxScore */
  size_t nsought, nspots, nclauses, ntokens; /* jobs of gc_phrase_all, and what they have of everything */
  uint64_t sought_blocks; /* driver blocks of theirs */
  uint32_t lists, tokens; /* of one of them at most: lists, those that exclude apart; tokens of a phrase */
} gc_plan;

typedef struct gc_crew gc_crew;

/* A batch from begin to finish. */
typedef struct gc_run {
  gpuir_batch_desc desc; /* .k: the hits of a query that there is room for; */
  uint32_t k; /* that many, or as many as there are documents */
  uint64_t deadline; /* of all queries; 0: none */
  const int *cancel; /* of all queries; or NULL */
  uint64_t number; /* batches are served by it; 0: not in use */
  size_t next; /* the first query that no launch has taken */
  size_t seen; /* those before it have been planned, some of them to be planned again */
  size_t piece; /* queries a launch at most */
  gc_crew *crew; /* several threads that plan it, or NULL: */
  size_t sheet, nsheets; /* queries that one of them plans at once; into how many of these a launch is cut */
  size_t left; /* queries whose outcome is open */
  size_t bad, failed; /* how many failed; the first of them */
  gpuir_error error; /* its */
} gc_run;

/* What a launch is about: queries from `first` to `end` - 1 of a batch, those whose count is GC_NONE. */
typedef struct gc_flight {
  gc_run *run; /* NULL: nothing is in flight */
  gc_plan plan;
  size_t first, end;
  uint64_t number; /* launches are waited for by it */
  unsigned tries;
  int count; /* 1: its queries are counted */
  int idle; /* 1: the searcher had nothing else in flight when it was planned */
} gc_flight;

/* What queries are planned with and by. */
typedef struct gc_planner {
  gpuir_cuda *cuda;
  gpuir_allocator a;
  gpuir__engine *engine; /* the searcher's */
  gc_sizes most; /* of a launch */
  gc_draft draft;
  gc_plan plan; /* of the draft */
  int count; /* 1: the queries are counted */
  int few; /* 1: they are a small batch */
  gc_holds held;
  gc_carrier by;
} gc_planner;

/* What one launch needs: a stream and memory. */
typedef struct gc_track : gc_planner {
  gc_flight flight;
  gc_batch batch; /* its device memory, from attaching on; the rest anew for each launch */
  cudaStream_t stream;
  cudaEvent_t sent; /* the lists that the launch uses are on the device */
  uint8_t *staging, *input; /* the plan in pinned memory and on the device */
  uint32_t *out; /* pinned: batch.out */
  size_t out_size;
  uint64_t device_bytes;
  int dirty; /* 1: a launch failed, the candidates are to be cleared */
  int chained; /* 1: a kernel of the launch starts while the one before ends */
  int alone; /* 1: the launch is one of gc_alone */
  size_t letter; /* bytes of the staged plan that it needs */
  int rings; /* 1: its last kernel rings the bell */
  uint32_t rung; /* number of the last launch that does */
  gc_phrases phrases; /* of the launch */
  gc_desk *desk; /* device memory of gc_alone */
  int prompt; /* 1: the launch is one of gc_prompt */
  gc_line *lines, *device_lines; /* pinned memory in which gc_prompt writes, behind the bell; as the device sees it */
} gc_track;

/* Allocates the plan's arrays on the host. */
static int gc_draft_open(gc_planner *x, gpuir_error *err) {
  const gc_sizes *z = &x->most;
  gc_draft *d = &x->draft;
  uint8_t *at;
  d->size = (size_t)z->host;
  d->memory = gpuir__alloc(&x->a, d->size);
  if (!d->memory) return gpuir__fail_nomem(err);
  at = (uint8_t *)(((uintptr_t)d->memory + 63) & ~(uintptr_t)63);
  d->terms = (gc_term *)gc_carve(&at, z->nterms * sizeof *d->terms);
  d->jobs = (gc_job *)gc_carve(&at, z->njobs * sizeof *d->jobs);
  d->chunks = (gc_chunk *)gc_carve(&at, z->nchunks * sizeof *d->chunks);
  d->query_jobs = (uint2 *)gc_carve(&at, z->queries * sizeof *d->query_jobs);
  d->and_jobs = (uint32_t *)gc_carve(&at, z->njobs * 4);
  d->turns = (gc_turn *)gc_carve(&at, z->njobs * GC_TURNS * sizeof *d->turns);
  d->and_start = (uint32_t *)gc_carve(&at, (z->njobs * GC_TURNS + 1) * 4);
  d->or_jobs = (uint32_t *)gc_carve(&at, z->njobs * 4);
  d->max_jobs = (uint32_t *)gc_carve(&at, z->njobs * 4);
  d->sum_jobs = (uint32_t *)gc_carve(&at, z->njobs * 4);
  d->sums = (gc_sum_job *)gc_carve(&at, z->njobs * sizeof *d->sums);
  d->rows = (gc_sum_list *)gc_carve(&at, (z->nterms + 32) * sizeof *d->rows);
  d->thin = (uint32_t *)gc_carve(&at, z->nterms * 4);
  if (z->ntokens) {
    d->sought = (gc_sought *)gc_carve(&at, z->njobs * sizeof *d->sought);
    d->sought_start = (uint32_t *)gc_carve(&at, (z->njobs + 1) * 4);
    d->clauses = (gc_clause *)gc_carve(&at, z->nterms * sizeof *d->clauses);
    d->spots = (gc_spots *)gc_carve(&at, z->nterms * sizeof *d->spots);
    d->tokens = (uint8_t *)gc_carve(&at, z->ntokens);
  }
  d->wanted = (gc_wanted *)gc_carve(&at, sizeof *d->wanted);
  d->outcomes = (int *)gc_carve(&at, z->queries * sizeof *d->outcomes);
  x->held.slots = (uint32_t *)gc_carve(&at, z->nterms * 4);
  return GPUIR_OK;
}

/* ---- planning ---- */

/* Fills in where a long list's guides are. */
static void gc_aid_term(const gpuir_cuda *c, const gpuir__list *l, gc_term *t) {
  if (l->extent && c->aids) {
    const gc_aid *aid = &c->aids[l->extent - c->ix->lists.longs];
    t->marks = aid->marks;
    t->shift = aid->shift;
    t->row = aid->row;
    t->span = aid->span;
    t->most = aid->most;
    t->cut = aid->cut;
    t->wide = aid->wide;
  }
}

/* Returns what is known of a list beforehand, or NULL. */
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
  gc_aid_term(c, l, t);
  *seeds = l->seeds;
  return GPUIR_OK;
}

/* Fills in how a query uses a list, and the most that it adds to a document. */
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

/* Notes what a term says about its query's job. */
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

/* Appends the query's known terms: positive ones by ascending df, then negated ones. *full: they have to wait. */
static int gc_plan_terms(gc_planner *x, const gc_plan *p, const gpuir_query *q, gc_job *job, int *full,
    gpuir_error *err) {
  gpuir_cuda *c = x->cuda;
  gc_wanted *w = x->draft.wanted;
  gc_term *terms = x->draft.terms + p->nterms;
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
    status = gc_cache_hold_all(c, &x->held, &x->by, w, terms, full, err);
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

/* Returns whether MaxScore is certain to be the way, by the threshold that is known beforehand; gc_max_plan decides
 * likewise. */
static int gc_plan_sure(const gc_planner *x, const gc_job *job) {
  const gc_term *terms = x->draft.terms + job->first_term;
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
static void gc_plan_and(gc_planner *x, gc_plan *p, const gc_job *job) {
  gc_draft *d = &x->draft;
  const gc_term *driver = &d->terms[job->first_term];
  d->and_jobs[p->nand++] = (uint32_t)p->njobs;
  p->nand_blocks += driver->nblocks;
  d->jobs[p->njobs++] = *job;
}

#define GC_SUM_TERMS 32u /* terms of a query at most */

/* Appends an OR job to those that gc_sum_tiles answers, if it is one of them. One alone takes 197 us there at the
 * median, by gc_or 148: tile after tile for all queries keeps the device busy only with many of them. */
static int gc_plan_sum(gc_planner *x, gc_plan *p, const gc_job *job) {
  gc_draft *d = &x->draft;
  uint32_t i;
  if (!x->cuda->slices.ntiles || x->few || job->prune || job->count || !job->stored || job->nterms > GC_SUM_TERMS ||
      job->npositive < job->nterms || job->k > gc_shared_sum::KEYS)
    return 0;
  for (i = 0; i < job->nterms; i++) p->nthin += !d->terms[job->first_term + i].cut;
  d->sum_jobs[p->nsum++] = (uint32_t)p->njobs;
  d->jobs[p->njobs++] = *job;
  return 1;
}

/* Appends an OR job: for MaxScore, if there are guides, and for tiles, unless MaxScore is certain to be the way. */
static void gc_plan_or(gc_planner *x, gc_plan *p, gc_job *job) {
  gc_draft *d = &x->draft;
  uint32_t i, first;
  job->any = 1;
  if (gc_plan_sum(x, p, job)) return;
  job->follow = x->cuda->aids && job->prune;
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
    t->slot = (uint32_t)p->nslots++;
    for (first = 0; first < t->nblocks; first += GC_CHUNK) {
      gc_chunk *c = &d->chunks[p->nchunks++];
      c->job = (uint32_t)p->njobs;
      c->term = job->first_term + i;
      c->first = first;
      c->zero = 0;
    }
  }
  d->or_jobs[p->nor++] = (uint32_t)p->njobs;
  d->jobs[p->njobs++] = *job;
}

/* Returns whether a job of one positive term goes the way of ANDs: if its list is short, or a threshold is known beside
 * which hardly a block of it is decoded. gc_alone begins without one. */
static int gc_plan_driven(const gc_planner *x, const gc_job *job) {
  return x->draft.terms[job->first_term].df <= 4096 || (x->cuda->aids && job->seed > 1 && !x->few);
}

/* Appends the jobs of a query whose terms have been appended: AND, OR, or both. A query of one positive term has the
 * same answer by either, and goes the cheaper way. */
static uint2 gc_plan_jobs(gc_planner *x, gc_plan *p, const gpuir_query *q, gc_job *job) {
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

/* Returns the chunks that a query's lists may be cut into. */
static size_t gc_chunks_of(const gpuir_query *q) {
  size_t n = 0;
  unsigned i;
  for (i = 0; i < q->n; i++) n += q->terms[i].df / (GPUIR__BLOCK * GC_CHUNK) + 1;
  return n;
}

/* Returns whether the sum of a and b * length is exact in binary64, whatever the length below 2^24, so that
 * gc_fused_norm rounds as gpuir__norm_of does: from its first bit, at 2^(1 + the greater exponent), to the last one of
 * both, 23 below the lesser exponent, there are no more than 53. */
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

/* Returns which of a query's phrases or prefixes the device leaves to the CPU; NULL: none. */
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
static int gc_phrases_fit(const gc_plan *p, const gpuir_query *q, const gc_sizes *most) {
  return p->nterms + q->n + q->phrases->nmembers <= most->nterms &&
      p->ntokens + q->n + q->phrases->ntokens <= most->ntokens && !(p->sought_blocks >> 30);
}

/* The lists that a query with phrases requires, each once, and then those that exclude. */
typedef struct gc_mix {
  const gpuir_query *query;
  gc_term *terms;
  gc_spots *spots;
  uint32_t n;
  uint32_t id[2 * GPUIR_MAX_TERMS]; /* [list] the term's number in the index */
  uint8_t rank[2 * GPUIR_MAX_TERMS]; /* [list as it was added] its number when they are sorted */
} gc_mix;

/* Describes the list of what has this number in the query, GPUIR__ID_TERMS or GPUIR__ID_MEMBERS and more, as list
 * number m->n. */
static int gc_mix_describe(const gpuir_cuda *c, gc_mix *m, unsigned number, gpuir_error *err) {
  const gpuir__record *r = gpuir__query_record(m->query, 0, number);
  const gc_known *known = gc_known_list(c, r);
  const uint64_t most = c->ix->section[GPUIR__S_POSITIONS]->length;
  gc_term *t = &m->terms[m->n];
  gc_spots *s = &m->spots[m->n];
  gpuir__list l;
  if (known) {
    *t = known->term;
  } else {
    const int status = gc_describe(c, m->query->ids[number], r, t, &l, err);
    if (status) return status;
    gc_aid_term(c, &l, t);
  }
  t->q = 1;
  s->at = r->positions;
  s->length = r->positions_len;
  if (s->at > most || s->length > most - s->at) return gpuir__bad(c->ix, err, 0, "a list's positions lie outside");
  return GPUIR_OK;
}

/* Adds a list, unless it is there; *list: which it is. NOT_FOUND: the index has no such list. */
static int gc_mix_add(const gpuir_cuda *c, gc_mix *m, unsigned number, uint8_t *list, gpuir_error *err) {
  const uint32_t id = m->query->ids[number];
  uint32_t i;
  int status;
  if (id == GPUIR__NO_TERM || !gpuir__query_record(m->query, 0, number)->df) return GPUIR_E_NOT_FOUND;
  for (i = 0; i < m->n && m->id[i] != id; i++) {}
  *list = (uint8_t)i;
  if (i < m->n) return GPUIR_OK;
  status = gc_mix_describe(c, m, number, err);
  m->id[m->n++] = id;
  return status;
}

/* Adds the lists of the words and phrases that the query requires. tokens[]: those of each, one behind the other. */
static int gc_mix_require(const gpuir_cuda *c, gc_mix *m, uint8_t *tokens, gpuir_error *err) {
  const gpuir_query *q = m->query;
  unsigned i, j;
  for (i = 0; i < q->npositive; i++) {
    const gpuir__query_term *t = &q->terms[i];
    const unsigned n = t->kind == GPUIR__PHRASE ? t->tokens : 1;
    for (j = 0; j < n; j++) {
      const unsigned number = t->kind == GPUIR__PHRASE ? GPUIR__ID_MEMBERS + q->phrases->tokens[t->first + j] : i;
      const int status = gc_mix_add(c, m, number, tokens++, err);
      if (status) return status;
    }
  }
  return GPUIR_OK;
}

/* Sorts the lists by ascending df. */
static void gc_mix_sort(gc_mix *m) {
  uint8_t order[2 * GPUIR_MAX_TERMS];
  uint32_t i, j;
  for (i = 0; i < m->n; i++) {
    const gc_term t = m->terms[i];
    const gc_spots s = m->spots[i];
    for (j = i; j && m->terms[j - 1].df > t.df; j--) {
      m->terms[j] = m->terms[j - 1];
      m->spots[j] = m->spots[j - 1];
      order[j] = order[j - 1];
    }
    m->terms[j] = t;
    m->spots[j] = s;
    order[j] = (uint8_t)i;
  }
  for (i = 0; i < m->n; i++) m->rank[order[i]] = (uint8_t)i;
}

/* Adds the lists of the words that exclude, as far as the index has them. */
static int gc_mix_exclude(const gpuir_cuda *c, gc_mix *m, gpuir_error *err) {
  const gpuir_query *q = m->query;
  unsigned i;
  for (i = q->npositive; i < q->n; i++) {
    int status;
    if (q->ids[i] == GPUIR__NO_TERM || !gpuir__query_record(q, 0, i)->df) continue;
    status = gc_mix_describe(c, m, i, err);
    if (status) return status;
    m->terms[m->n++].negated = 1;
  }
  return GPUIR_OK;
}

/* Describes what the query requires, by lists as they are sorted now; returns how many tokens that are. */
static size_t gc_plan_clauses(const gc_planner *x, gc_plan *p, const gc_mix *m) {
  const gpuir_query *q = m->query;
  size_t n = p->ntokens, i, j;
  for (i = 0; i < q->npositive; i++) {
    gc_clause *c = &x->draft.clauses[p->nclauses + i];
    c->weight = q->terms[i].weight;
    c->q = q->terms[i].q;
    c->n = q->terms[i].kind == GPUIR__PHRASE ? q->terms[i].tokens : 1;
    c->first = (uint32_t)n;
    for (j = 0; j < c->n; j++, n++) x->draft.tokens[n] = m->rank[x->draft.tokens[n]];
    p->tokens = gpuir__max32(p->tokens, c->n);
  }
  return n - p->ntokens;
}

/* Appends the job of a query with phrases, unless it can have no hits. */
static int gc_plan_phrases(gc_planner *x, gc_plan *p, const gpuir_query *q, gc_job *job, gpuir_error *err) {
  gc_draft *d = &x->draft;
  const gc_sought sought = {(uint32_t)p->njobs, (uint32_t)p->nspots, (uint32_t)p->nclauses, q->npositive};
  const uint2 jobs = {(uint32_t)p->njobs, GC_NONE};
  uint32_t tokens = 0;
  unsigned i;
  gc_mix m;
  int status;
  memset(&m, 0, sizeof m);
  m.query = q;
  m.terms = d->terms + p->nterms;
  m.spots = d->spots + p->nspots;
  status = gc_mix_require(x->cuda, &m, d->tokens + p->ntokens, err);
  if (status) return status == GPUIR_E_NOT_FOUND ? GPUIR_OK : status;
  for (i = 0; i < q->npositive; i++) tokens = gpuir__max32(tokens, q->terms[i].tokens);
  if (GC_PHRASE_THREADS / 32 * gc_phrase_bytes(gpuir__max32(p->lists, m.n), gpuir__max32(p->tokens, tokens)) >
      x->cuda->phrase_room)
    return gpuir__fail(err, GPUIR_E_BACKEND, 0, "the CUDA backend does not answer phrases of so many words");
  gc_mix_sort(&m);
  job->first_term = (uint32_t)p->nterms;
  job->npositive = m.n;
  p->lists = gpuir__max32(p->lists, m.n);
  status = gc_mix_exclude(x->cuda, &m, err);
  if (status) return status;
  job->nterms = m.n;
  p->ntokens += gc_plan_clauses(x, p, &m);
  p->nclauses += q->npositive;
  p->nspots += m.n;
  p->nterms += m.n;
  p->sought_blocks += m.terms[0].nblocks;
  d->sought[p->nsought++] = sought;
  d->jobs[p->njobs++] = *job;
  d->query_jobs[p->nq++] = jobs;
  return GPUIR_OK;
}

/* Adds a query, if it can have hits; *full: it has to wait for the next launch. */
static int gc_plan_query(gc_planner *x, gc_plan *p, const gpuir_query *q, uint32_t k, size_t most_jobs, int *full,
    gpuir_error *err) {
  const gc_sizes *most = &x->most;
  gc_job job;
  int status;
  const int phrases = q->nphrases || q->nprefixes;
  if (q->nrequired < q->npositive && q->mode != GPUIR_OR)
    return gpuir__fail(err, GPUIR_E_BACKEND, 0, "the CUDA backend does not answer optional terms beside required ones");
  if (phrases) {
    const char *why = gc_why_not(x->cuda, q, x->count);
    if (why) return gpuir__fail(err, GPUIR_E_BACKEND, 0, "the CUDA backend does not answer %s", why);
  }
  *full = (phrases && !gc_phrases_fit(p, q, most)) || p->nq == most->queries || p->njobs + 2 > most_jobs ||
      p->nterms + q->n > most->nterms || p->nslots + q->n > most->nslots || p->nthin + q->n > most->nslots ||
      p->nchunks + gc_chunks_of(q) > most->nchunks || p->nand_blocks >> 30 || p->max_blocks >> 30;
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
  if (phrases) return gc_plan_phrases(x, p, q, &job, err);
  if (q->mode == GPUIR_OR || (q->mode == GPUIR_ANDOR && !job.count) || !gpuir__query_absent(q, 0)) {
    status = gc_plan_terms(x, p, q, &job, full, err);
    if (status || *full) return status;
  }
  if (job.npositive) x->draft.query_jobs[p->nq++] = gc_plan_jobs(x, p, q, &job);
  return GPUIR_OK;
}

/* ---- the queries of a batch, until a draft is full ---- */

/* Notes that a query failed. */
static void gc_fail_query(gc_run *r, size_t i, int status, const gpuir_error *err) {
  r->desc.statuses[i] = status;
  r->desc.counts[i] = 0;
  r->left--;
  r->bad++;
  if (i >= r->failed) return;
  r->failed = i;
  r->error = *err;
}

/* Returns whether a flag, if there is one, says stop. */
static int gc_flagged(const int *flag) { return flag && __atomic_load_n(flag, __ATOMIC_RELAXED); }

/* Returns the status of a query that has been cancelled or is out of time. */
static int gc_stopped(const gc_run *r, size_t i, uint64_t now, gpuir_error *err) {
  const uint64_t own = r->desc.deadlines ? r->desc.deadlines[i] : 0;
  if (gc_flagged(r->cancel) || (r->desc.cancels && gc_flagged(r->desc.cancels[i])))
    return gpuir__fail(err, GPUIR_E_CANCELLED, 0, "the search was cancelled");
  if ((r->deadline && now > r->deadline) || (own && now > own))
    return gpuir__fail(err, GPUIR_E_DEADLINE, 0, "the search exceeded its time limit");
  return GPUIR_OK;
}

static uint64_t gc_now(const gc_run *r) { return r->deadline || r->desc.deadlines ? gpuir__now() : 0; }

#define GC_AHEAD_OF_PLAN 16u /* queries */

/* Prefetches what planning a draft's queries will read, each thing when what leads to it has come: query number i, the
 * records of one before it, the long lists of another. Planned without it, a query took 1.1 us, nearly all of which
 * were some 25 misses of the caches, one after another. */
static void gc_expect(const gpuir_cuda *c, const gpuir_batch_desc *desc, const gc_draft *d, size_t i) {
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
static size_t gc_most_jobs(const gc_sizes *z, const gc_run *r) {
  const uint64_t least = gpuir__max64(8192, 16 * (uint64_t)r->k);
  return (size_t)gpuir__min64(z->njobs, gpuir__max64(2, z->ncand / least));
}

/* Plans queries of a batch from draft.next on until the draft is full. *full: the next query found no room for its
 * lists. Writes nothing of the batch: gc_settle does. */
static void gc_plan_some(gc_planner *x, const gc_run *r, int *full) {
  const gpuir_batch_desc *desc = &r->desc;
  const uint64_t now = gc_now(r), threshold = x->cuda->threshold;
  const size_t jobs = gc_most_jobs(&x->most, r);
  gc_draft *d = &x->draft;
  uint64_t postings = 0;
  unsigned t;
  memset(&x->plan, 0, sizeof x->plan);
  x->count = desc->count;
  x->few = desc->nq <= GC_SMALL;
  d->first = d->next;
  d->error.code = 0;
  for (t = 0; t < GC_AHEAD_OF_PLAN; t++) gc_expect(x->cuda, desc, d, d->next + t);
  for (; d->next < d->end && postings < threshold; d->next++) {
    const size_t i = d->next, had = x->plan.nq;
    const gpuir_query *q = desc->queries[i];
    int *outcome = &d->outcomes[i - d->first];
    gpuir_error error;
    int status;
    gc_expect(x->cuda, desc, d, i + GC_AHEAD_OF_PLAN);
    *outcome = GC_SETTLED;
    if (i < r->seen && desc->counts[i] != GC_NONE) continue;
    error.code = 0;
    status = gc_stopped(r, i, now, &error);
    if (!status) status = gc_plan_query(x, &x->plan, q, r->k, jobs, full, &error);
    if (*full) break;
    if (status && !d->error.code) d->error = error;
    *outcome = status ? status : x->plan.nq == had ? GC_SETTLED : GC_HAS_JOBS;
    if (*outcome != GC_HAS_JOBS) continue;
    for (t = 0; t < q->n; t++) postings += q->terms[t].df;
  }
}

/* Tells the batch what has become of a draft's queries. */
static void gc_settle(const gc_planner *x, gc_run *r) {
  const gc_draft *d = &x->draft;
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
  else __atomic_fetch_add(&x->cuda->info.lists_hit, x->plan.nterms, __ATOMIC_RELAXED);
}

/* ---- several threads: sheets of a batch's queries are planned ahead, and taken by launches in order ---- */

#define GC_CREW 8u /* threads at most, the caller's among them */
#define GC_SHEET 64u /* queries of a sheet at most */
#define GC_SHEETS 96u /* so many sheets are planned ahead at most */
#define GC_FIRST_SHEETS 4u /* a batch's first launch has no more than these, for which the device waits */
#define GC_ROUSED_NS 1500000u /* so long planners look for the next batch's sheets before they sleep */

/* A searcher's threads that plan. They sleep while there is nothing to plan, but for a moment at the end of a batch:
 * to wake a thread can take 200 us, and the caller's 10 us for each that it wakes. Sheets are numbered over all
 * batches. */
struct gc_crew {
  gpuir_allocator a;
  pthread_mutex_t lock; /* of all that follows but what the sheet of a number holds, which is its planner's */
  pthread_cond_t work, done; /* for the threads; for the caller */
  int stop;
  unsigned n;
  pthread_t threads[GC_CREW - 1];
  const gc_run *runs[2]; /* the batches of these sheets, */
  uint64_t from[2]; /* and the first one of each */
  unsigned batches; /* that were announced; the last one is in place (batches - 1) % 2 */
  uint64_t begun, claimed, taken; /* sheets that there are (atomic), that somebody plans, that launches have taken */
  uint64_t roused; /* times that more sheets were soon to be expected */
  gc_planner sheets[GC_SHEETS]; /* number i is in place i % GC_SHEETS */
  int planned[GC_SHEETS];
};

/* Claims the next sheet for a thread; NULL: there is none, or no place for it. The lock is held. */
static gc_planner *gc_claim(gc_crew *w, const gc_run **run) {
  const uint64_t number = w->claimed;
  gc_planner *sheet = &w->sheets[number % GC_SHEETS];
  const unsigned last = (w->batches - 1) % 2, which = number < w->from[last] ? 1 - last : last;
  const gc_run *r = w->runs[which];
  size_t launch;
  if (number == w->begun || number == w->taken + GC_SHEETS) return NULL;
  w->claimed++;
  w->planned[number % GC_SHEETS] = 0;
  launch = (size_t)(number - w->from[which]) / r->nsheets * r->piece;
  sheet->draft.next = launch + (size_t)(number - w->from[which]) % r->nsheets * r->sheet;
  sheet->draft.end = (size_t)gpuir__min64(gpuir__min64(sheet->draft.next + r->sheet, launch + r->piece), r->desc.nq);
  *run = r;
  return sheet;
}

/* Plans a sheet that was claimed; the lock is held, but not meanwhile. */
static void gc_plan_sheet(gc_crew *w, gc_planner *sheet, const gc_run *r) {
  int full = 0;
  (void)pthread_mutex_unlock(&w->lock);
  gc_plan_some(sheet, r, &full);
  (void)pthread_mutex_lock(&w->lock);
  w->planned[sheet - w->sheets] = 1;
}

/* Looks for sheets of the next batch before the thread sleeps. The lock is held, but not meanwhile. */
static void gc_look_out(gc_crew *w) {
  const uint64_t begun = w->begun, until = gpuir__now() + GC_ROUSED_NS;
  (void)pthread_mutex_unlock(&w->lock);
  while (__atomic_load_n(&w->begun, __ATOMIC_RELAXED) == begun && gpuir__now() < until) (void)sched_yield();
  (void)pthread_mutex_lock(&w->lock);
}

/* Each thread that finds more than one sheet wakes another. */
static void *gc_crew_main(void *argument) {
  gc_crew *w = (gc_crew *)argument;
  uint64_t roused = 0;
  (void)pthread_mutex_lock(&w->lock);
  while (!w->stop) {
    const gc_run *r;
    gc_planner *sheet = gc_claim(w, &r);
    if (sheet) {
      if (w->claimed < w->begun) (void)pthread_cond_signal(&w->work);
      gc_plan_sheet(w, sheet, r);
      (void)pthread_cond_signal(&w->done);
    } else if (roused != w->roused) {
      roused = w->roused;
      gc_look_out(w);
    } else {
      (void)pthread_cond_wait(&w->work, &w->lock);
    }
  }
  (void)pthread_mutex_unlock(&w->lock);
  return NULL;
}

/* Wakes all threads, as the last launch of a batch is on its way and another batch may come. */
static void gc_rouse(gc_crew *w) {
  (void)pthread_mutex_lock(&w->lock);
  w->roused++;
  (void)pthread_cond_broadcast(&w->work);
  (void)pthread_mutex_unlock(&w->lock);
}

/* Returns the next sheet, planned: by the caller, if nobody else has begun to. While it waits for another thread, it
 * plans further ones. */
static gc_planner *gc_next_sheet(gc_crew *w) {
  const size_t place = w->taken % GC_SHEETS;
  (void)pthread_mutex_lock(&w->lock);
  while (w->claimed == w->taken || !w->planned[place]) {
    const gc_run *r;
    gc_planner *sheet = gc_claim(w, &r);
    if (sheet) gc_plan_sheet(w, sheet, r);
    else (void)pthread_cond_wait(&w->done, &w->lock);
  }
  (void)pthread_mutex_unlock(&w->lock);
  return &w->sheets[place];
}

/* Leaves a sheet, all of whose queries launches have taken. */
static void gc_leave_sheet(gc_crew *w) {
  (void)pthread_mutex_lock(&w->lock);
  w->taken++;
  if (w->claimed < w->begun) (void)pthread_cond_signal(&w->work);
  (void)pthread_mutex_unlock(&w->lock);
}

/* Announces a batch to the crew. */
static void gc_announce(gc_crew *w, gc_run *r) {
  r->crew = w;
  (void)pthread_mutex_lock(&w->lock);
  w->runs[w->batches % 2] = r;
  w->from[w->batches++ % 2] = w->begun;
  (void)__atomic_add_fetch(&w->begun,
      r->desc.nq / r->piece * r->nsheets + (r->desc.nq % r->piece + r->sheet - 1) / r->sheet, __ATOMIC_RELAXED);
  (void)pthread_mutex_unlock(&w->lock);
  (void)pthread_cond_signal(&w->work);
}

static void gc_crew_close(gc_crew *w) {
  const gpuir_allocator a = w->a;
  unsigned i;
  (void)pthread_mutex_lock(&w->lock);
  w->stop = 1;
  (void)pthread_cond_broadcast(&w->work);
  (void)pthread_mutex_unlock(&w->lock);
  for (i = 0; i < w->n; i++) (void)pthread_join(w->threads[i], NULL);
  for (i = 0; i < GC_SHEETS; i++) gpuir__free(&a, w->sheets[i].draft.memory, w->sheets[i].draft.size);
  (void)pthread_cond_destroy(&w->done);
  (void)pthread_cond_destroy(&w->work);
  (void)pthread_mutex_destroy(&w->lock);
  gpuir__free(&a, w, sizeof *w);
}

/* Makes a crew of `threads` for launches as `like` plans them. Returns NULL without memory, or threads. */
GPUIR__COLD static gc_crew *gc_crew_open(const gc_planner *like, unsigned threads) {
  gc_crew *w = (gc_crew *)gpuir__alloc_zero(&like->a, sizeof *w);
  gpuir_error error;
  unsigned i;
  if (!w) return NULL;
  w->a = like->a;
  if (pthread_mutex_init(&w->lock, NULL) || pthread_cond_init(&w->work, NULL) || pthread_cond_init(&w->done, NULL)) {
    gpuir__free(&like->a, w, sizeof *w);
    return NULL;
  }
  for (i = 0; i < GC_SHEETS; i++) {
    w->sheets[i].cuda = like->cuda;
    w->sheets[i].a = like->a;
    w->sheets[i].engine = like->engine;
    w->sheets[i].most = gc_sizes_of(like->cuda, GC_SHEET);
    if (gc_draft_open(&w->sheets[i], &error)) break;
  }
  for (; i == GC_SHEETS && w->n + 1 < threads && w->n + 1 < GC_CREW; w->n++)
    if (pthread_create(&w->threads[w->n], NULL, gc_crew_main, w)) break;
  if (w->n) return w;
  gc_crew_close(w);
  return NULL;
}

/* Appends a sheet's queries with phrases to a launch's draft; its other numbers stand as they were before. */
static void gc_append_phrases(gc_planner *to, const gc_planner *from) {
  const gc_draft *d = &from->draft;
  const gc_plan *more = &from->plan;
  gc_plan *p = &to->plan;
  gc_draft *all = &to->draft;
  size_t i;
  for (i = 0; i < more->nsought; i++) {
    gc_sought *s = &all->sought[p->nsought + i];
    *s = d->sought[i];
    s->job += (uint32_t)p->njobs;
    s->first_spot += (uint32_t)p->nspots;
    s->first_clause += (uint32_t)p->nclauses;
  }
  for (i = 0; i < more->nclauses; i++) {
    all->clauses[p->nclauses + i] = d->clauses[i];
    all->clauses[p->nclauses + i].first += (uint32_t)p->ntokens;
  }
  memcpy(all->spots + p->nspots, d->spots, more->nspots * sizeof *d->spots);
  memcpy(all->tokens + p->ntokens, d->tokens, more->ntokens);
  p->nsought += more->nsought;
  p->nspots += more->nspots;
  p->nclauses += more->nclauses;
  p->ntokens += more->ntokens;
  p->sought_blocks += more->sought_blocks;
  p->lists = gpuir__max32(p->lists, more->lists);
  p->tokens = gpuir__max32(p->tokens, more->tokens);
}

/* Appends what a sheet has planned to a launch's draft. */
static void gc_append(gc_planner *to, const gc_planner *from) {
  const gc_draft *d = &from->draft;
  const gc_plan *more = &from->plan;
  gc_plan *p = &to->plan;
  gc_draft *all = &to->draft;
  size_t i;
  uint32_t t;
  memcpy(all->terms + p->nterms, d->terms, more->nterms * sizeof *d->terms);
  for (i = 0; i < more->njobs; i++) {
    gc_job *job = &all->jobs[p->njobs + i];
    *job = d->jobs[i];
    job->first_term += (uint32_t)p->nterms;
    if (job->after != GC_NONE) job->after += (uint32_t)p->njobs;
  }
  for (i = 0; i < more->nchunks; i++) {
    gc_chunk *c = &all->chunks[p->nchunks + i];
    *c = d->chunks[i];
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
    for (t = 0; t < job->nterms; t++) all->terms[job->first_term + t].slot += (uint32_t)p->nslots;
  }
  for (i = 0; i < more->nsum; i++) all->sum_jobs[p->nsum + i] = d->sum_jobs[i] + (uint32_t)p->njobs;
  for (i = 0; i < more->nmax; i++) all->max_jobs[p->nmax + i] = d->max_jobs[i] + (uint32_t)p->njobs;
  if (more->nsought) gc_append_phrases(to, from);
  p->nq += more->nq;
  p->njobs += more->njobs;
  p->nterms += more->nterms;
  p->nslots += more->nslots;
  p->nchunks += more->nchunks;
  p->nand += more->nand;
  p->nor += more->nor;
  p->nmax += more->nmax;
  p->nsum += more->nsum;
  p->nthin += more->nthin;
  p->nand_blocks += more->nand_blocks;
  p->max_blocks += more->max_blocks;
}

/* Returns whether a launch can take a sheet too. */
static int gc_fits(const gc_planner *x, const gc_plan *more, size_t most_jobs) {
  const gc_sizes *z = &x->most;
  const gc_plan *p = &x->plan;
  return p->nq + more->nq <= z->queries && p->njobs + more->njobs <= most_jobs &&
      p->nterms + more->nterms <= z->nterms && p->ntokens + more->ntokens <= z->ntokens &&
      p->nslots + more->nslots <= z->nslots && p->nthin + more->nthin <= z->nslots &&
      p->nchunks + more->nchunks <= z->nchunks && !((p->nand_blocks + more->nand_blocks) >> 30) &&
      !((p->max_blocks + more->max_blocks) >> 30) && !((p->sought_blocks + more->sought_blocks) >> 30);
}

/* Returns whether the next sheet is planned. */
static int gc_sheet_is_ready(gc_crew *w) {
  int ready;
  (void)pthread_mutex_lock(&w->lock);
  ready = w->claimed > w->taken && w->planned[w->taken % GC_SHEETS];
  (void)pthread_mutex_unlock(&w->lock);
  return ready;
}

/* Plans a launch of at most `most` queries of a batch by a crew. If the device is idle, it has to do with the sheets
 * that are ready when two have been taken; the batch's first launch with few, so that the device starts. */
static void gc_fill_by_crew(gc_planner *x, gc_run *r, size_t most, int idle) {
  const size_t first = r->next, jobs = gc_most_jobs(&x->most, r);
  gc_crew *w = r->crew;
  memset(&x->plan, 0, sizeof x->plan);
  while (r->next < r->desc.nq) {
    gc_planner *sheet;
    gc_draft *d;
    int full = 0;
    if (idle && r->next - first >= 2 * r->sheet && !gc_sheet_is_ready(w)) break;
    if (idle && !first && r->next >= GC_FIRST_SHEETS * r->sheet) break;
    sheet = gc_next_sheet(w);
    d = &sheet->draft;
    if (r->next > first && (d->next - first > most || !gc_fits(x, &sheet->plan, jobs))) break;
    gc_append(x, sheet);
    gc_settle(sheet, r);
    if (d->next == d->end) gc_leave_sheet(w);
    else gc_plan_some(sheet, r, &full); /* it was full: the rest */
  }
}

/* ---- sending a plan ---- */

/* Copies an array into the staging memory; returns where it will lie on the device. */
static void *gc_stage(gc_track *x, size_t *at, const void *from, size_t n) {
  size_t start = *at;
  memcpy(x->staging + start, from, n);
  *at = (start + n + 15) & ~(size_t)15;
  return x->input + start;
}

/* Appends the AND jobs' turns of one round to the draft: round 0 of the long drivers, all of the others in round 1, and
 * the further rounds of the long ones behind them. */
static void gc_take_turns(const gc_track *x, const gc_plan *p, uint32_t round, uint32_t group, gc_ands *ands) {
  const gc_draft *d = &x->draft;
  const uint32_t first = round > 1 ? 1u << (GC_TURNS - round) : 0;
  const uint32_t step = round ? 1u << (GC_TURNS - round + 1) : 1u << (GC_TURNS - 1);
  size_t i;
  for (i = 0; i < p->nand; i++) {
    gc_job *job = &d->jobs[d->and_jobs[i]];
    const uint32_t some = job->npositive == 1 && job->seed ? 32 : group; /* hardly a block is decoded */
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

/* Cuts the ANDs' driver blocks into groups, a ticket each. */
static void gc_group_ands(const gc_track *x, const gc_plan *p, gc_ands *ands) {
  const gpuir_cuda *c = x->cuda;
  uint32_t round;
  const uint32_t group = (uint32_t)gpuir__max64(1, gpuir__min64(GC_GROUP, p->nand_blocks / (c->grids.maxs * 64)));
  ands->n = ands->tickets = 0;
  for (round = 0; round <= GC_TURNS; round++) gc_take_turns(x, p, round, group, ands);
  x->draft.and_start[ands->n] = ands->tickets;
}

/* Describes the lists of gc_sum_tiles and stages them; its terms get their slots. */
static void gc_stage_sums(gc_track *x, const gc_plan *p, size_t *at) {
  const gc_slices *to = &x->cuda->slices;
  gc_draft *d = &x->draft;
  gc_sums *b = &x->batch.sums;
  size_t rows = 0, thin = 0, i;
  uint32_t n;
  for (i = 0; i < p->nsum; i++) {
    const gc_job *job = &d->jobs[d->sum_jobs[i]];
    const gc_sum_job sum = {d->sum_jobs[i], (uint32_t)rows, job->nterms, job->after};
    d->sums[i] = sum;
    for (n = job->first_term; n < job->first_term + job->nterms; n++) {
      gc_term *t = &d->terms[n];
      gc_sum_list *row = &d->rows[rows++];
      const uint32_t cut = t->cut, is_long = t->kind == GC_LONG;
      t->slot = cut ? cut - 1 : (uint32_t)thin;
      if (!cut) d->thin[thin++] = n;
      row->at = t->slot * (to->ntiles + 1);
      row->kind_q = t->q | (cut ? 0 : is_long ? 1u << 30 : 2u << 30);
      row->from = is_long ? (uint32_t)(t->first_block * GPUIR__BLOCK) : n;
      row->most = cut ? to->tile : t->df;
    }
  }
  memset(d->rows + rows, 0, 32 * sizeof *d->rows);
  b->jobs = (const gc_sum_job *)gc_stage(x, at, d->sums, p->nsum * sizeof *d->sums);
  b->rows = (const gc_sum_list *)gc_stage(x, at, d->rows, (rows + 32) * sizeof *d->rows);
  b->thin = (const uint32_t *)gc_stage(x, at, d->thin, thin * 4);
  b->n = (uint32_t)p->nsum;
  b->nthin = (uint32_t)thin;
  b->lists = *to;
}

/* Stages the queries with phrases. */
static void gc_stage_phrases(gc_track *x, const gc_plan *p, size_t *at) {
  const gc_draft *d = &x->draft;
  gc_phrases *b = &x->phrases;
  size_t i;
  b->group = (uint32_t)gpuir__max64(1, gpuir__min64(GC_GROUP, p->sought_blocks / (x->cuda->grids.maxs * 64)));
  b->tickets = 0;
  for (i = 0; i < p->nsought; i++) {
    d->sought_start[i] = b->tickets;
    b->tickets += (d->terms[d->jobs[d->sought[i].job].first_term].nblocks - 1) / b->group + 1;
  }
  d->sought_start[i] = b->tickets;
  b->jobs = (const gc_sought *)gc_stage(x, at, d->sought, p->nsought * sizeof *d->sought);
  b->start = (const uint32_t *)gc_stage(x, at, d->sought_start, (p->nsought + 1) * 4);
  b->clauses = (const gc_clause *)gc_stage(x, at, d->clauses, p->nclauses * sizeof *d->clauses);
  b->spots = (const gc_spots *)gc_stage(x, at, d->spots, p->nspots * sizeof *d->spots);
  b->tokens = (const uint8_t *)gc_stage(x, at, d->tokens, p->ntokens);
  b->positions = x->cuda->positions;
  b->n = (uint32_t)p->nsought;
  b->lists = p->lists;
}

#define GC_DOUBT 9.0f /* see gc_maxs */
#ifdef GPUIR_CUDA_SEAM
float gpuir_cuda_seam_doubt[2] = {GC_DOUBT, GC_DOUBT};
#define GC_DOUBT_NOW(i) gpuir_cuda_seam_doubt[i]
#else
#define GC_DOUBT_NOW(i) GC_DOUBT
#endif

/* Stages the plan and the states that jobs begin with, and makes x->batch describe it. Returns the bytes to be
 * sent. */
static size_t gc_stage_plan(gc_track *x, const gc_plan *p, uint32_t k) {
  const gpuir_cuda *c = x->cuda;
  const gc_draft *d = &x->draft;
  gc_batch *b = &x->batch;
  gc_state *states;
  size_t at = 0, i;
  gc_group_ands(x, p, &b->ands);
  if (p->nsum) gc_stage_sums(x, p, &at);
  if (p->nsought) gc_stage_phrases(x, p, &at);
  b->terms = (const gc_term *)gc_stage(x, &at, d->terms, p->nterms * sizeof *d->terms);
  b->jobs = (const gc_job *)gc_stage(x, &at, d->jobs, p->njobs * sizeof *d->jobs);
  b->query_jobs = (const uint2 *)gc_stage(x, &at, d->query_jobs, p->nq * sizeof *d->query_jobs);
  x->letter = at;
  b->ands.turns = (const gc_turn *)gc_stage(x, &at, d->turns, b->ands.n * sizeof *d->turns);
  b->ands.start = (const uint32_t *)gc_stage(x, &at, d->and_start, ((size_t)b->ands.n + 1) * 4);
  b->ors.chunks = (const gc_chunk *)gc_stage(x, &at, d->chunks, p->nchunks * sizeof *d->chunks);
  b->ors.jobs = (const uint32_t *)gc_stage(x, &at, d->or_jobs, p->nor * 4);
  b->ors.n = (uint32_t)p->nor;
  b->ors.nchunks = (uint32_t)p->nchunks;
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
