
/* ========================
 * [cuda-19-launch]  host: launches, some at a time in a searcher, and their hits
 *
 * A searcher has up to three launch slots. A batch is cut into launches, as many as its size asks for. Each is planned,
 * sent by one transfer and answered by kernels, and the caller waits for none of this: while some are in flight it
 * plans the next, of the same batch or of the next one. gc_max is most of an OR's launch and takes the whole device;
 * the kernels around it have a higher priority than another launch's gc_max. So of three launches one is ready when
 * gc_max ends. Batches are served in the order in which they began. Only gc_finish waits.
 *
 * Uses      [cuda-07-or] to [cuda-14-memory], [cuda-16-cache] to [cuda-18-plan].
 * Start at  gc_begin, gc_poll, gc_finish; gc_start_launches, gc_finish_launch; gc_attach.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_ARGS_QUERIES 2u /* queries at most whose plan is a kernel's parameter: see gc_plan_args */
#define GC_BATCH 1024u /* queries of a launch at most, unless the program says otherwise */
#define GC_SLOTS 3u /* launches of a searcher in flight at most */
#define GC_SLOTS_FEW 2u /* of a team's member, which then takes queries later, and of a cached index */

/* What an attached searcher owns. */
typedef struct gc_context {
  gpuir_cuda *cuda;
  gpuir_allocator a;
  gc_slot slots[GC_SLOTS];
  unsigned nslots; /* those behind the first are made when they are needed */
  unsigned most_slots; /* no more are made */
  unsigned threads; /* that may plan */
  gc_planner_pool *pool; /* made when it is first needed */
  gc_batch batches[2];
  uint64_t nbatches, nlaunches; /* begun */
} gc_context;

/* ---- kernels of a launch ---- */

/* Enqueues a kernel. In a small launch much of the time passes between kernels: each one there starts while the one
 * before ends, and waits in gc_chained. In a large launch, or beside another launch of ORs, it would hold a place that
 * other kernels need; there it has a priority instead. */
template <typename... Parameters>
static void gc_enqueue_at(const gc_slot *x, int priority, void (*kernel)(Parameters...), size_t grid, unsigned threads,
    size_t shared, Parameters... parameters) {
  cudaLaunchConfig_t how;
  cudaLaunchAttribute attribute;
  memset(&how, 0, sizeof how);
  memset(&attribute, 0, sizeof attribute);
  if (x->chained) {
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
  } else {
    attribute.id = cudaLaunchAttributePriority;
    attribute.val.priority = priority;
  }
  how.gridDim = dim3((unsigned)grid);
  how.blockDim = dim3(threads);
  how.dynamicSmemBytes = shared;
  how.stream = x->stream;
  how.attrs = &attribute;
  how.numAttrs = 1;
  (void)cudaLaunchKernelEx(&how, kernel, parameters...);
}

/* Does the same, ahead of other launches' gc_max. */
template <typename... Parameters>
static void gc_enqueue(const gc_slot *x, void (*kernel)(Parameters...), size_t grid, unsigned threads, size_t shared,
    Parameters... parameters) {
  gc_enqueue_at(x, x->cuda->ahead, kernel, grid, threads, shared, parameters...);
}

/* Returns whether gc_and_guided also writes the hits of all queries of a launch. */
static int gc_writes_hits(const gc_slot *x, const gc_plan_counts *p, uint32_t k) {
  return p->nand && p->nq == p->njobs && p->nq > GC_SMALL && k <= GC_K_WRITTEN && x->cuda->guides;
}

/* Enqueues the kernel of the ANDs; queries: of how many it writes the hits, or 0. */
static void gc_enqueue_ands(const gc_slot *x, size_t queries) {
  const gpuir_cuda *c = x->cuda;
  const gc_launch_view *b = &x->view;
  const uint64_t blocks = gpuir__max64(((uint64_t)b->ands.tickets + 7) / 8, queries);
  if (c->guides)
    gc_enqueue(x, gc_and_guided, gpuir__min64(blocks, c->grids.guided), GC_GUIDED_THREADS, 0, c->view, *b,
        (uint32_t)queries);
  else gc_enqueue(x, gc_and_decoding, gpuir__min64(blocks, c->grids.ands), GC_AND_THREADS, 0, c->view, *b);
}

/* Enqueues the kernels of MaxScore. In a rerun the floors are known already. */
static void gc_enqueue_maxs(const gc_slot *x, const gc_plan_counts *p, int rerun) {
  const gpuir_cuda *c = x->cuda;
  const gc_launch_view *b = &x->view;
  const uint64_t most = c->grids.maxs, warps = GC_GUIDED_THREADS / 32;
  gc_enqueue(x, gc_max_plan, p->nmax, GC_FINAL_THREADS, 0, c->view, *b, rerun);
  gc_enqueue_at(x, 0, gc_max, gpuir__min64((p->max_blocks * b->maxs.parts + warps - 1) / warps, most),
      GC_GUIDED_THREADS, 0, c->view, *b);
}

/* Enqueues the kernels of the tiles. In a rerun their bounds and order are known already. */
static void gc_enqueue_ors(const gc_slot *x, const gc_plan_counts *p, int rerun) {
  const gpuir_cuda *c = x->cuda;
  const gc_view *v = &c->view;
  const gc_launch_view *b = &x->view;
  if (!rerun) {
    gc_enqueue(x, gc_tiles, gpuir__min64(p->nbound_tasks, (uint64_t)c->processors * 8), 256, 0, *v, *b, c->expanded);
    gc_enqueue(x, gc_order, p->nor, 256, 0, *v, *b);
  }
  gc_enqueue(x, c->expanded ? gc_or<true> : gc_or<false>, gpuir__min64((uint64_t)p->nor * v->ntiles, c->grids.ors),
      GC_OR_THREADS(c->expanded), gc_tile_bytes(v->tile), *v, *b);
}

/* Returns the word of a launch slot's done flag, behind its pinned memory for hits. */
static uint32_t *gc_done_word(const gc_slot *x) { return x->out + x->out_size / 4; }

/* Returns the done flag for the next kernel to set. */
static gc_done_flag gc_next_done_flag(gc_slot *x) {
  const gc_done_flag flag = {x->view.out + x->out_size / 4, ++x->flag_number};
  x->sets_flag = 1;
  return flag;
}

/* Enqueues gc_receive, with a staged plan of `size` bytes. */
static void gc_enqueue_receive(gc_slot *x, size_t size, uint64_t nbounds) {
  gc_plan_args plan_args;
  const uint64_t threads = gpuir__max64(nbounds / 4, size / 16 + 1);
  memcpy(&plan_args, x->staging, size);
  gc_enqueue(x, gc_receive, gpuir__min64((threads + 255) / 256, x->cuda->processors), 256, 0, plan_args,
      (uint4 *)x->input, (uint32_t)((size + 15) / 16), x->view.ors.bound, nbounds);
}

/* Returns whether gc_alone can answer a launch whose plan has been staged. */
static int gc_is_alone(const gc_slot *x, const gc_plan_counts *p, uint32_t k) {
  return p->njobs == 1 && p->nq == 1 && p->nand + p->nmax == 1 && !p->nphrase_jobs && k <= GC_RANKED &&
      x->cuda->guides && !x->cuda->cache && x->alone_bytes <= GC_PLAN_ARGS_BYTES;
}

#define GC_SAMPLED_DRIVER 512u /* blocks from which on an AND's driver is sampled */

/* Chooses how gc_alone samples an AND. If x of about m matches are sampled, their floor leaves k * m / x candidates:
 * the fewest are kept in all if x is near the root of k * m. Terms may occur together more often than by chance: so m
 * is at least an eighth of the driver's documents. */
static void gc_sample_and(const gc_slot *x, unsigned grid, gc_alone_args *args) {
  const gc_job *job = x->plan.jobs;
  const gc_term *terms = x->plan.terms + job->first_term;
  const double blocks = terms[0].nblocks;
  double matches = terms[0].df;
  uint32_t i;
  args->samplers = job->seed != 0;
  if (job->count || job->npositive == 1 || terms[0].nblocks < GC_SAMPLED_DRIVER) return;
  for (i = 1; i < job->npositive; i++) matches *= (double)terms[i].df / x->cuda->view.documents;
  if (matches < terms[0].df / 8.0) matches = terms[0].df / 8.0;
  args->samplers = (uint32_t)gpuir__min64(grid, (uint64_t)(blocks * sqrt(job->k / matches)) + 1);
  args->samplers = gpuir__min32(args->samplers, terms[0].nblocks / 2);
  args->step = terms[0].nblocks / args->samplers;
}

/* Chooses how gc_alone samples an OR: at most half as many blocks of each further list. */
static void gc_sample_or(const gc_slot *x, unsigned grid, gc_alone_args *args) {
  const gc_job *job = x->plan.jobs;
  const gc_term *terms = x->plan.terms + job->first_term;
  uint32_t share = (uint32_t)gpuir__min64(GC_SAMPLERS, gpuir__min64((uint64_t)x->cuda->processors, grid)) / 2, i;
  for (i = 0; i < GC_LAYERS && i < job->npositive && (job->npositive > 1 || !job->seed); i++, share /= 2)
    args->samplers += args->take[i] = gpuir__min32(terms[i].nblocks, share);
  if (!args->samplers) args->samplers = 1;
}

/* Describes a query alone to a kernel of so many blocks of threads. */
static gc_alone_args gc_alone_args_of(gc_slot *x, const gc_plan_counts *p, unsigned grid) {
  gc_launch_view *b = &x->view;
  gc_alone_args args;
  memset(&args, 0, sizeof args);
  args.state = x->alone_state;
  args.from = x->input;
  args.size = (uint32_t)((x->alone_bytes + 15) / 16);
  args.flag = gc_next_done_flag(x);
  if (p->nand) gc_sample_and(x, grid, &args);
  else gc_sample_or(x, grid, &args);
  b->control = &x->alone_state->control;
  b->states = &x->alone_state->state;
  b->alone = 1;
  return args;
}

/* Enqueues gc_alone. */
static int gc_enqueue_alone(gc_slot *x, const gc_plan_counts *p, gpuir_error *err) {
  const unsigned most = x->cuda->grids.alone;
  const gc_alone_args args = gc_alone_args_of(x, p, most);
  const uint64_t blocks = gpuir__max64(p->nand ? p->nand_blocks : p->max_blocks, args.samplers);
  gc_plan_args plan_args;
  static_assert(sizeof(gc_view) + sizeof(gc_launch_view) + sizeof plan_args + sizeof args <= 4096, "parameters");
  x->chained = 0;
  memcpy(&plan_args, x->staging, x->alone_bytes);
  gc_enqueue(x, gc_alone, gpuir__min64(blocks, most), GC_GUIDED_THREADS, 0, x->cuda->view, x->view, plan_args, args);
  GC_TRY(cudaGetLastError(), "launching kernels");
  return GPUIR_OK;
}

#define GC_PROMPT_K 128u /* hits at most of a query that gc_prompt answers */

/* Returns whether gc_prompt can answer a launch. */
static int gc_is_prompt(const gc_slot *x, const gc_plan_counts *p, uint32_t k) {
  const gc_job *job = x->plan.jobs;
  const gc_term *driver = x->plan.terms + job->first_term;
  const gpuir_cuda *c = x->cuda;
  if (p->njobs != 1 || p->nq != 1 || p->nand != 1 || p->nphrase_jobs || k > GC_PROMPT_K || !c->expanded || c->cache)
    return 0;
  if (job->count || !job->stored || job->nterms < 2 || job->nterms > GC_PROMPT_TERMS) return 0;
  if (c->info.compute_capability < 90) return 0;
  return job->expanded ? driver->nblocks <= GC_PROMPT_BLOCKS : driver->kind != GC_LONG;
}

/* Enqueues gc_prompt, with as many blocks of threads as have work for their warps. */
static void gc_enqueue_cluster(const gc_slot *x) {
  gc_prompt_args args;
  cudaLaunchConfig_t how;
  cudaLaunchAttribute cluster;
  const gc_job *job = x->plan.jobs;
  const gc_term *terms = x->plan.terms + job->first_term;
  const uint32_t groups = (terms->df + GC_PAIRS - 1) / GC_PAIRS;
  unsigned blocks = 1;
  while (job->expanded && blocks < GC_PROMPT_CLUSTER && blocks * GC_PROMPT_WARPS < groups * (job->nterms - 1))
    blocks *= 2;
  args.job = *job;
  args.lines = x->device_lines;
  args.number = x->flag_number;
  args.block_groups = (groups + blocks - 1) / blocks;
  memcpy(args.terms, terms, job->nterms * sizeof *terms);
  memset(&how, 0, sizeof how);
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = blocks;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  how.gridDim = dim3(blocks);
  how.blockDim = dim3(GC_PROMPT_THREADS);
  how.stream = x->stream;
  how.attrs = &cluster;
  how.numAttrs = blocks > 1;
  (void)cudaLaunchKernelEx(&how, job->expanded ? gc_prompt<false> : gc_prompt<true>, x->cuda->view, args);
}

#ifdef GPUIR_CUDA_SEAM
long gpuir_cuda_seam_prompts; /* launches of gc_prompt */
#define GC_COUNT_PROMPT() ((void)++gpuir_cuda_seam_prompts)
#else
#define GC_COUNT_PROMPT() ((void)0)
#endif

/* Enqueues gc_prompt and notes that its lines say when it has ended. */
static int gc_enqueue_prompt(gc_slot *x, gpuir_error *err) {
  x->sets_flag = 1;
  x->alone = x->chained = 0;
  x->flag_number++;
  GC_COUNT_PROMPT();
  gc_enqueue_cluster(x);
  GC_TRY(cudaGetLastError(), "launching kernels");
  return GPUIR_OK;
}

/* Returns whether both halves of a line have come. */
static int gc_line_there(const gc_line *line, uint32_t number) {
  return __atomic_load_n(&line->number, __ATOMIC_ACQUIRE) == number &&
      __atomic_load_n(&line->also, __ATOMIC_ACQUIRE) == number;
}

/* Returns whether all lines of gc_prompt have come. */
static int gc_lines_there(const gc_slot *x) {
  uint32_t n, i;
  if (!gc_line_there(x->lines, x->flag_number)) return 0;
  n = x->lines->doc == GC_NONE ? 0 : x->lines->doc;
  for (i = 1; i <= n; i++)
    if (!gc_line_there(x->lines + i, x->flag_number)) return 0;
  return 1;
}

/* Copies the hits to where other launches' kernels write them. */
static void gc_take_lines(gc_slot *x) {
  uint32_t i;
  x->out[0] = x->lines->doc;
  for (i = 0; x->out[0] != GC_NONE && i < x->out[0]; i++) {
    x->out[2 + 2 * i] = x->lines[1 + i].doc;
    x->out[3 + 2 * i] = x->lines[1 + i].score;
  }
}

/* Enqueues the kernels of the ORs whose postings are all added up. */
static void gc_enqueue_sums(const gc_slot *x, const gc_plan_counts *p, int rerun) {
  const gpuir_cuda *c = x->cuda;
  if (!rerun && p->nsparse) gc_enqueue(x, gc_places, p->nsparse * GC_SUM_PARTS, 256, 0, c->view, x->view);
  gc_enqueue(x, gc_sum_tiles, gpuir__min64((uint64_t)p->nsum * c->slices.ntiles, c->grids.sums), GC_SUM_THREADS,
      (size_t)c->slices.tile * 4, c->view, x->view);
}

/* Enqueues the kernel of the queries with phrases. */
static void gc_enqueue_phrases(const gc_slot *x, const gc_plan_counts *p) {
  const uint32_t bytes = (uint32_t)gc_phrase_bytes(p->lists, p->tokens), warps = GC_PHRASE_THREADS / 32;
  const uint64_t most = gpuir__max64(1, gpuir__min64(x->cuda->phrase_room / (warps * bytes + 1024), 16));
  gc_enqueue(x, gc_phrase_all, gpuir__min64((x->phrases.tickets + warps - 1) / warps, most * x->cuda->processors),
      GC_PHRASE_THREADS, warps * bytes, x->cuda->view, x->view, x->phrases, bytes);
}

/* Enqueues all kernels of a launch. */
static int gc_enqueue_all(gc_slot *x, const gc_plan_counts *p, uint32_t k, int rerun, gpuir_error *err) {
  const gc_done_flag none = {NULL, 0};
  const int writes_hits = gc_writes_hits(x, p, k);
  size_t size = GC_RANKED;
  x->sets_flag = 0;
  if (rerun) GC_TRY(cudaMemsetAsync(x->view.control, 0, sizeof(gc_control), x->stream), "clearing counters");
  if (p->nand && !writes_hits) gc_enqueue_ands(x, 0);
  if (p->nmax) gc_enqueue_maxs(x, p, rerun);
  if (p->nor) gc_enqueue_ors(x, p, rerun);
  if (p->nsum) gc_enqueue_sums(x, p, rerun);
  if (p->nphrase_jobs) gc_enqueue_phrases(x, p);
  while (size < k) size *= 2;
  if (writes_hits) gc_enqueue_ands(x, p->nq);
  else
    gc_enqueue(x, gc_final, p->nq, GC_FINAL_THREADS, size * 8, x->cuda->view, x->view,
        p->nq == 1 ? gc_next_done_flag(x) : none);
  GC_TRY(cudaGetLastError(), "launching kernels");
  return GPUIR_OK;
}

/* ---- launch slots ---- */

/* Waits for a launch slot's stream, and frees the slot's memory. */
GPUIR__COLD static void gc_slot_close(gc_slot *x) {
  const gpuir_allocator a = x->a;
  gc_stream_close(x->stream);
  if (x->cuda->cache) gc_transfer_close(x->cuda, &x->transfer);
  if (x->sent) (void)cudaEventDestroy(x->sent);
  __atomic_fetch_sub(&x->cuda->info.used_memory, x->device_bytes, __ATOMIC_RELAXED);
  (void)cudaFree(x->input);
  (void)cudaFree(x->alone_state);
  (void)cudaFree(x->view.ors.first);
  (void)cudaFree(x->view.ors.bound);
  (void)cudaFree(x->view.ors.order);
  (void)cudaFree(x->view.ors.total);
  (void)cudaFree(x->view.cand);
  (void)cudaFree(x->view.sums.first);
  (void)cudaFree(x->view.maxs.drives);
  (void)cudaFree(x->view.maxs.drive_start);
  (void)cudaFreeHost(x->staging);
  (void)cudaFreeHost(x->out);
  (void)cudaGetLastError();
  gpuir__free(&a, x->plan.memory, x->plan.size);
  memset(x, 0, sizeof *x);
}

/* Allocates device memory of a launch slot. */
static int gc_slot_alloc(gc_slot *x, size_t n, void **p, gpuir_error *err) {
  int status = gc_malloc(x->cuda, n, p, err);
  if (!status) x->device_bytes += n ? n : 1;
  return status;
}

#define GC_LINES (1 + GC_PROMPT_K)

/* Gives a launch slot its stream and memory, for launches of at most these sizes. If it fails, gc_slot_close frees what
 * there is. */
GPUIR__COLD static int gc_slot_open(gc_slot *x, const gc_sizes *most, gpuir_error *err) {
  gc_launch_view *b = &x->view;
  const gc_sizes *z = &x->most;
  size_t rows, jobs, lines;
  int s;
  x->most = *most;
  s = gc_plan_open(x, err);
  if (!s) s = gc_stream_open(&x->stream, x->cuda->ahead, err);
  if (!s && x->cuda->cache) s = gc_transfer_open(x->cuda, &x->transfer, err);
  if (s) return s;
  x->out_size = (size_t)gpuir__max64((2 + 2 * (uint64_t)GC_K_MOST) * 4, gpuir__min64(z->queries * 8192, 16u << 20));
  GC_TRY(cudaMallocHost((void **)&x->staging, (size_t)z->staging), "allocating pinned memory");
  lines = (x->out_size + 64 + 127) / 128 * 128;
  GC_TRY(cudaHostAlloc((void **)&x->out, lines + GC_LINES * sizeof *x->lines, cudaHostAllocMapped),
      "allocating pinned memory");
  GC_TRY(cudaHostGetDevicePointer((void **)&b->out, x->out, 0), "mapping pinned memory");
  x->lines = (gc_line *)(x->out + lines / 4);
  x->device_lines = (gc_line *)(b->out + lines / 4);
  memset(x->lines, 0, GC_LINES * sizeof *x->lines);
  GC_TRY(cudaEventCreateWithFlags(&x->sent, cudaEventDisableTiming), "creating an event");
  rows = (size_t)(z->ntile_rows * z->tiles * 4);
  jobs = (size_t)(z->njobs * z->tiles * 4);
  *gc_done_word(x) = 0;
  s = gc_slot_alloc(x, (size_t)z->staging, (void **)&x->input, err);
  if (!s) s = gc_slot_alloc(x, sizeof *x->alone_state, (void **)&x->alone_state, err);
  if (!s) s = gc_slot_alloc(x, rows, (void **)&b->ors.first, err);
  if (!s) s = gc_slot_alloc(x, rows, (void **)&b->ors.bound, err);
  if (!s) s = gc_slot_alloc(x, jobs, (void **)&b->ors.order, err);
  if (!s && x->cuda->slices.ntiles)
    s = gc_slot_alloc(x, (size_t)z->ntile_rows * (x->cuda->slices.ntiles + 1) * 4, (void **)&b->sums.first, err);
  if (!s) s = gc_slot_alloc(x, jobs, (void **)&b->ors.total, err);
  if (!s) s = gc_slot_alloc(x, (size_t)z->ncand * 8, (void **)&b->cand, err);
  if (!s) s = gc_slot_alloc(x, z->ndrives * sizeof *b->maxs.drives, (void **)&b->maxs.drives, err);
  if (!s) s = gc_slot_alloc(x, z->ndrives * 4, (void **)&b->maxs.drive_start, err);
  if (s) return s;
  x->dirty = 1;
  return GPUIR_OK;
}

/* Makes a searcher's next launch slot, if the bound leaves as much again beside all of them. Returns 0 if it does not,
 * or if a call fails: then the slots that there are must do. */
static int gc_add_slot(gc_context *x) {
  const gc_slot *first = &x->slots[0];
  gc_slot *slot = &x->slots[x->nslots];
  gpuir_error error;
  if (first->most.device > gc_left(x->cuda) / (2 * x->nslots)) return 0;
  slot->cuda = x->cuda;
  slot->a = x->a;
  slot->engine = first->engine;
  if (gc_slot_open(slot, &first->most, &error)) {
    gc_slot_close(slot);
    return 0;
  }
  x->nslots++;
  return 1;
}

/* ---- ending a launch ---- */

#ifdef GPUIR_CUDA_SEAM
int gpuir_cuda_seam_looks; /* 1: finished launches are inspected */
uint64_t gpuir_cuda_seam_left; /* candidates that they have left in their buffers */

/* Counts the candidates that a launch has left in its buffer, if a test asks for it. */
static void gc_look_for_left(const gc_slot *x) {
  const size_t n = x->most.ncand;
  unsigned long long *cand = gpuir_cuda_seam_looks ? (unsigned long long *)gpuir__alloc(&x->a, n * 8) : NULL;
  size_t i;
  if (!cand) return;
  (void)cudaMemcpyAsync(cand, x->view.cand, n * 8, cudaMemcpyDeviceToHost, x->stream);
  (void)cudaStreamSynchronize(x->stream);
  for (i = 0; i < n; i++) gpuir_cuda_seam_left += cand[i] != 0;
  gpuir__free(&x->a, cand, n * 8);
}
#else
#define gc_look_for_left(x) ((void)0)
#endif

/* Ends a launch. If `status` is not 0, the queries that wait for it fail with it. */
static void gc_end_launch(gc_slot *x, int status, const gpuir_error *err) {
  gc_launch *f = &x->launch;
  gc_batch *r = f->batch;
  size_t i;
  if (status) { /* it may still use the lists */
    (void)cudaStreamSynchronize(x->stream);
    (void)cudaGetLastError();
  } else {
    x->dirty = 0;
    gc_look_for_left(x);
  }
  for (i = f->first; status && i < f->end; i++)
    if (r->desc.counts[i] == GC_NONE) gc_fail_query(r, i, status, err);
  gc_cache_release(x->cuda, &x->held);
  __atomic_fetch_add(&x->cuda->info.batches, 1, __ATOMIC_RELAXED);
  f->batch = NULL;
}

/* ---- starting launches ---- */

#define GC_FIRST_QUERIES (GC_FIRST_PACKETS * GC_PACKET) /* of a batch's first launch, which the device waits for */

/* Returns how many of such queries fill the device, by the modes of some of them: fewer ANDs than others do. */
static size_t gc_launch_most(const gpuir_query *const *queries, size_t n) {
  const size_t some = (size_t)gpuir__min64(n, 16);
  size_t ands = 0, i;
  for (i = 0; i < some; i++) ands += queries[i]->mode == GPUIR_AND;
  return 2 * ands > some ? GC_BATCH / 2 : GC_BATCH;
}

/* Returns the launch slot whose launch began first; NULL: nothing is in flight. */
static gc_slot *gc_oldest_slot(gc_context *x) {
  gc_slot *first = NULL;
  unsigned i;
  for (i = 0; i < x->nslots; i++) {
    gc_slot *t = &x->slots[i];
    if (t->launch.batch && (!first || t->launch.number < first->launch.number)) first = t;
  }
  return first;
}

/* Returns whether several threads may plan. Batches of a cached index are planned by one, as queries take places in the
 * cache in turn. */
static int gc_may_use_pool(const gc_context *x) {
  return x->threads > 1 && !x->cuda->cache && x->cuda->threshold == UINT64_MAX;
}

/* Chooses how many queries a launch of a batch takes, such that all its launches take about as many. A large batch is
 * halved, unless the next batch is there to be planned: so its second half is planned while the first one runs. Fewer
 * ANDs than ORs fill the device. The sizes come from measurements in
 * tools/results/cuda_notes.txt. */
static size_t gc_launch_size(gc_context *x, const gpuir_batch_desc *d) {
  const gpuir_cuda *c = x->cuda;
  const int idle = !gc_oldest_slot(x);
  const size_t most = gc_launch_most(d->queries, d->nq);
  const size_t n =
      d->nq - (idle && d->nq > most && gc_may_use_pool(x) ? GC_FIRST_QUERIES : 0); /* behind the first launch */
  size_t launches = (n + most - 1) / most;
  if (!c->by_itself) return c->batch;
  if (launches == 1 && idle && n > c->batch / 2) launches = 2;
  return (n + launches - 1) / launches;
}

/* Adds the time since `start` to a counter; returns the time now. start 0: the batch is small and is not timed. */
static uint64_t gc_spent(uint64_t *counter, uint64_t start) {
  uint64_t now;
  if (!start) return 0;
  now = gpuir__now();
  __atomic_fetch_add(counter, now - start, __ATOMIC_RELAXED);
  return now;
}

/* Returns the time, or 0 for a small batch, which is not timed: reading the clock would count there. */
static uint64_t gc_timed(const gc_batch *r) { return r->desc.nq > GC_SMALL ? gpuir__now() : 0; }

/* Plans the next launch of a batch; idle: 1 if the device waits for it. *full: the next query found no room for its
 * lists. */
static void gc_plan_launch(gc_slot *x, gc_batch *r, int idle, int *full) {
  const size_t room = (size_t)gpuir__min64(r->launch_size, x->out_size / ((2 + 2 * (size_t)r->k) * 4));
  const size_t left = r->desc.nq - r->next, grain = r->pool ? r->packet : 1;
  const size_t even = (left - 1) / ((left - 1) / room + 1) + 1; /* all launches of the rest have about as many */
  const size_t most = (size_t)gpuir__min64(room, (even - 1) / grain * grain + grain);
  gc_launch *f = &x->launch;
  memset(f, 0, sizeof *f);
  f->first = r->next;
  f->count = r->desc.count;
  f->idle = idle;
  if (r->pool) {
    gc_plan_by_pool(x, r, most, idle);
  } else {
    x->plan.next = r->next;
    x->plan.end = r->next + (size_t)gpuir__min64(left, most);
    gc_plan_some(x, r, full);
    gc_report_outcomes(x, r);
  }
  f->counts = x->counts;
  f->end = r->next;
}

/* Sends the plan of a launch slot and enqueues its kernels. If it may be `alone`, one kernel answers it where that is
 * possible. */
static int gc_send_launch(gc_slot *x, const gc_batch *r, int alone, gpuir_error *err) {
  const gc_plan_counts *p = &x->launch.counts;
  gc_cache *cache = x->cuda->cache;
  size_t size;
  x->prompt = alone && gc_is_prompt(x, p, r->k);
  if (x->prompt && !x->dirty) return gc_enqueue_prompt(x, err);
  x->prompt = 0;
  size = gc_stage_plan(x, p, r->k);
  x->chained = x->cuda->info.compute_capability >= 90 && p->nq <= GC_SMALL && (x->launch.idle || !p->nmax);
  x->alone = alone && gc_is_alone(x, p, r->k);
  if (cache) { /* the launch waits for its lists */
    GC_TRY(cudaEventRecord(x->sent, cache->stream), "waiting for lists");
    GC_TRY(cudaStreamWaitEvent(x->stream, x->sent, 0), "waiting for lists");
  }
  if (x->dirty) {
    GC_TRY(cudaMemsetAsync(x->view.cand, 0, x->most.ncand * 8, x->stream), "clearing candidates");
    GC_TRY(cudaMemsetAsync(x->alone_state, 0, sizeof *x->alone_state, x->stream), "clearing states");
  }
  x->dirty = 1;
  if (x->alone) return gc_enqueue_alone(x, p, err);
  if (p->nq <= GC_ARGS_QUERIES && size <= sizeof(gc_plan_args)) {
    gc_enqueue_receive(x, size, p->nor ? p->ntile_rows * (x->cuda->view.ntiles + 1) : 0);
    return gc_enqueue_all(x, p, r->k, 0, err);
  }
  if (p->nor)
    GC_TRY(cudaMemsetAsync(x->view.ors.bound, 0, p->ntile_rows * (x->cuda->view.ntiles + 1) * 4, x->stream),
        "clearing bounds");
  GC_TRY(cudaMemcpyAsync(x->input, x->staging, size, cudaMemcpyHostToDevice, x->stream), "sending queries");
  return gc_enqueue_all(x, p, r->k, 0, err);
}

/* Plans and starts a launch in a free slot. Returns 0 if the next query found no room for its lists beside those that
 * are held. */
static int gc_start_launch(gc_context *x, gc_slot *slot, gc_batch *r) {
  uint64_t start = gc_timed(r);
  gpuir_error error;
  int full = 0, status;
  gc_plan_launch(slot, r, !gc_oldest_slot(x), &full);
  start = gc_spent(&x->cuda->info.plan_ns, start);
  if (!slot->launch.counts.nq) {
    gc_cache_release(x->cuda, &slot->held);
    return !full;
  }
  if (!gc_cache_await(x->cuda->cache, &slot->held)) { /* once more: now this searcher loads the list */
    gc_cache_release(x->cuda, &slot->held);
    r->next = slot->launch.first;
    return 1;
  }
  slot->launch.batch = r;
  slot->launch.number = ++x->nlaunches;
  status = gc_send_launch(slot, r, 1, &error);
  if (r->pool && r->next == r->desc.nq) gc_wake_planners(r->pool);
  (void)gc_spent(&x->cuda->info.send_ns, start);
  if (status) gc_end_launch(slot, status, &error);
  return 1;
}

/* Returns the batch that is to be planned next; NULL: none has queries left. */
static gc_batch *gc_next_batch(gc_context *x) {
  gc_batch *a = &x->batches[0], *b = &x->batches[1];
  if (!a->number || a->next == a->desc.nq) a = NULL;
  if (!b->number || b->next == b->desc.nq) b = NULL;
  return a && b ? (a->number < b->number ? a : b) : a ? a : b;
}

/* Returns a free launch slot, or NULL. */
static gc_slot *gc_free_slot(gc_context *x) {
  unsigned i;
  for (i = 0; i < x->nslots; i++)
    if (!x->slots[i].launch.batch) return &x->slots[i];
  if (x->nslots == x->most_slots) return NULL;
  if (gc_add_slot(x)) return &x->slots[i];
  x->most_slots = x->nslots;
  return NULL;
}

/* Returns how many lists this searcher holds. */
static uint64_t gc_own_holds(const gc_context *x) {
  uint64_t n = 0;
  unsigned i;
  for (i = 0; i < x->nslots; i++) n += x->slots[i].held.n;
  return n;
}

/* Starts launches in free slots, as long as queries wait. Returns NULL; or the batch whose next query finds no room
 * while other searchers hold lists; *held: what to wait for. */
static gc_batch *gc_start_launches(gc_context *x, const gc_holds **held) {
  gc_batch *r;
  gc_slot *slot;
  while ((r = gc_next_batch(x)) && (slot = gc_free_slot(x))) {
    gpuir_error error;
    if (gc_start_launch(x, slot, r)) continue;
    *held = &slot->held;
    if (gc_own_holds(x)) return NULL; /* its own launch will make room */
    if (slot->held.pins) return r;
    (void)gpuir__fail(&error, GPUIR_E_NOMEM, 0, "CUDA: the lists of a query need more memory than is allowed");
    gc_fail_query(r, r->next++, GPUIR_E_NOMEM, &error);
  }
  return NULL;
}

/* ---- finishing launches ---- */

/* Hands out the hits of a launch. Queries that asked for another run, but get none, fail with `status`. */
static void gc_deliver(gc_slot *x, int status, const gpuir_error *err) {
  const gc_launch *f = &x->launch;
  gc_batch *r = f->batch;
  const uint32_t *out = x->out;
  size_t i;
  for (i = f->first; i < f->end; i++) {
    if (r->desc.counts[i] != GC_NONE) continue;
    if (out[0] == GC_NONE) {
      gc_fail_query(r, i, status, err);
    } else {
      r->desc.counts[i] = r->desc.count ? out[1] : gpuir__min32(out[0], r->k);
      if (!r->desc.count)
        memcpy(r->desc.hits + i * r->desc.k, out + 2, (size_t)r->desc.counts[i] * sizeof *r->desc.hits);
      r->left--;
    }
    out += x->view.out_stride;
  }
}

/* Returns why all queries of a launch that ask for another run have to stop; 0: some may go on. */
static int gc_all_stopped(const gc_slot *x, gpuir_error *err) {
  const gc_batch *r = x->launch.batch;
  const uint64_t now = gc_now(r);
  const uint32_t *out = x->out;
  int status = GPUIR_OK;
  size_t i;
  for (i = x->launch.first; i < x->launch.end; i++) {
    if (r->desc.counts[i] != GC_NONE) continue;
    if (out[0] == GC_NONE) {
      status = gc_stopped(r, i, now, err);
      if (!status) return GPUIR_OK;
    }
    out += x->view.out_stride;
  }
  return status;
}

/* Runs a launch again if queries have asked for it. Returns 0 if none has, or if there must be no other run: *status
 * and *err say why. */
static int gc_rerun(gc_slot *x, int *status, gpuir_error *err) {
  gc_launch *f = &x->launch;
  size_t i;
  *status = GPUIR_OK;
  for (i = 0; i < f->counts.nq && x->out[i * x->view.out_stride] != GC_NONE; i++) {}
  if (i == f->counts.nq) return 0;
  *status = gc_all_stopped(x, err);
  if (!*status && ++f->reruns == 64)
    *status = gpuir__fail(err, GPUIR_E_BACKEND, 0, "CUDA: too many candidates share one score");
  (void)cudaSetDevice(x->cuda->device);
  if (!*status && (x->alone || x->prompt))
    *status = gc_send_launch(x, f->batch, 0, err); /* with all its kernels, from the beginning */
  else if (!*status) *status = gc_enqueue_all(x, &f->counts, f->batch->k, 1, err);
  return !*status;
}

/* Returns whether a launch has ended, as CUDA does; wait: waits for it. With a done flag it asks the stream only now
 * and then: a kernel that fails sets no flag. */
static cudaError_t gc_has_ended(const gc_slot *x, int wait) {
  cudaError_t e;
  if (!x->sets_flag) return GC_CALL(wait ? cudaStreamSynchronize(x->stream) : cudaStreamQuery(x->stream));
  do {
    uint32_t left;
    for (left = wait ? 10000 : 1; left; left--)
      if (x->prompt ? gc_lines_there(x) : __atomic_load_n(gc_done_word(x), __ATOMIC_ACQUIRE) == x->flag_number)
        return cudaSuccess;
    e = GC_CALL(cudaStreamQuery(x->stream));
  } while (wait && e == cudaErrorNotReady);
  return e;
}

/* Tests whether a launch has ended, or waits for it; then hands out its hits. */
static void gc_finish_launch(gc_slot *x, int wait) {
  uint64_t start = gc_timed(x->launch.batch);
  gpuir_error error;
  int status;
  do {
    const cudaError_t e = gc_has_ended(x, wait);
    if (e == cudaErrorNotReady) return;
    if (e != cudaSuccess) {
      status = gc_fail(&error, e, "running kernels");
      gc_end_launch(x, status, &error);
      return;
    }
    if (x->prompt) gc_take_lines(x);
    if (!gc_rerun(x, &status, &error)) break;
  } while (1);
  start = gc_spent(&x->cuda->info.wait_ns, start);
  gc_deliver(x, status, &error);
  gc_end_launch(x, status, &error);
  (void)gc_spent(&x->cuda->info.deliver_ns, start);
}

#define GC_PACKET_LEAST 16u /* queries of a packet at least */

/* Lets several threads plan a batch, if it has enough to plan at once. */
static void gc_use_pool(gc_context *x, gc_batch *r) {
  const gc_slot *first = &x->slots[0];
  gc_sizes most;
  most = gc_sizes_of(x->cuda, GC_PACKET);
  most.queries = (size_t)gpuir__min64(GC_PACKET, gc_most_jobs(&most, r) / 2);
  if (most.queries < GC_PACKET_LEAST || r->launch_size < 4 * most.queries || first->most.queries < 4 * most.queries)
    return;
  r->npackets = (r->launch_size + most.queries - 1) / most.queries;
  r->packet = (r->launch_size + r->npackets - 1) / r->npackets;
  r->npackets = (r->launch_size + r->packet - 1) / r->packet;
  if (!x->pool) x->pool = gc_planner_pool_open(first, x->threads);
  if (x->pool) gc_announce(x->pool, r);
  else x->threads = 1;
}

/* ---- the backend, see gpuir_backend ---- */

#define GC_HOLD_TIMEOUT_NS 1000000000u /* ns that other searchers may hold lists without releasing one */

/* Begins a batch: plans and starts as many launches as there are free slots. */
static int gc_begin(void *context, const gpuir_batch_desc *batch, uint64_t deadline, const int *cancel, void **running,
    gpuir_error *err) {
  gc_context *x = (gc_context *)context;
  const gc_holds *held;
  gc_batch *r = x->batches[0].number ? &x->batches[1] : &x->batches[0];
  const size_t k = batch->count ? 1 : (size_t)gpuir__min64(batch->k, x->cuda->ix->stat.documents);
  if (r->number) return gpuir__fail(err, GPUIR_E_BUSY, 0, "two batches are in flight");
  if (k > x->cuda->k_most)
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "the CUDA backend ranks at most %u hits a query",
        (unsigned)x->cuda->k_most);
  GC_TRY(cudaSetDevice(x->cuda->device), "choosing the device");
  memset(r, 0, sizeof *r);
  r->desc = *batch;
  r->k = (uint32_t)k;
  r->deadline = deadline;
  r->cancel = cancel;
  r->number = ++x->nbatches;
  r->next = k ? 0 : batch->nq;
  r->left = batch->nq - r->next;
  r->failed = SIZE_MAX;
  r->launch_size = gc_launch_size(x, batch);
  if (r->left && gc_may_use_pool(x)) gc_use_pool(x, r);
  *running = r;
  (void)gc_start_launches(x, &held);
  return GPUIR_OK;
}

/* Hands out what has ended, and starts further launches. Returns whether the batch is done. */
static int gc_poll(void *context, void *running) {
  gc_context *x = (gc_context *)context;
  const gc_batch *r = (const gc_batch *)running;
  const gc_holds *held;
  unsigned i;
  for (i = 0; i < x->nslots; i++)
    if (x->slots[i].launch.batch) gc_finish_launch(&x->slots[i], 0);
  if (gc_next_batch(x)) (void)cudaSetDevice(x->cuda->device);
  (void)gc_start_launches(x, &held);
  return !r->left;
}

/* Waits for other searchers to release lists. If they do not, the query that needs them fails. */
static void gc_yield(gc_context *x, gc_batch *r, const gc_holds *held) {
  const uint64_t slice = 1000000;
  gpuir_error error;
  uint64_t waited;
  int status = GPUIR_OK;
  for (waited = 0; !status && waited < GC_HOLD_TIMEOUT_NS; waited += slice) {
    if (gc_cache_wait(x->cuda->cache, held->releases, slice)) return;
    status = gc_stopped(r, r->next, gc_now(r), &error);
  }
  if (!status) status = gpuir__fail(&error, GPUIR_E_NOMEM, 0, "CUDA: lists that other searchers hold leave no room");
  gc_fail_query(r, r->next++, status, &error);
}

/* Waits for a batch; meanwhile it starts and finishes launches of the other one too, in their order. */
static int gc_finish(void *context, void *running, gpuir_error *err) {
  gc_context *x = (gc_context *)context;
  gc_batch *r = (gc_batch *)running;
  int status;
  while (r->left) {
    const gc_holds *held;
    gc_batch *stuck;
    gc_slot *slot;
    if (gc_next_batch(x)) (void)cudaSetDevice(x->cuda->device); /* kernels are enqueued on the current device */
    stuck = gc_start_launches(x, &held);
    slot = gc_oldest_slot(x);
    if (slot) gc_finish_launch(slot, 1);
    else if (stuck) gc_yield(x, stuck, held);
  }
  __atomic_fetch_add(&x->cuda->info.queries, r->desc.nq - r->bad, __ATOMIC_RELAXED);
  status = r->bad ? r->desc.statuses[r->failed] : GPUIR_OK;
  if (status && err) *err = r->error;
  r->number = 0;
  return status;
}

/* ---- attaching ---- */

/* The backend's close. */
static void gc_detach(void *context) {
  gc_context *x = (gc_context *)context;
  gpuir_allocator a;
  if (!x) return;
  a = x->a;
  (void)cudaSetDevice(x->cuda->device);
  if (x->pool) gc_planner_pool_close(x->pool);
  while (x->nslots) gc_slot_close(&x->slots[--x->nslots]);
  gpuir__free(&a, x, sizeof *x);
}

/* Gives a searcher its first launch slot. */
static int gc_attach(gc_context *x, gpuir__engine *engine, gpuir_error *err) {
  const gc_sizes most = gc_sizes_within(x->cuda, gc_left(x->cuda));
  gc_slot *slot = &x->slots[0];
  slot->cuda = x->cuda;
  slot->a = x->a;
  slot->engine = engine;
  x->nslots = 1;
  return gc_slot_open(slot, &most, err);
}

/* ---- one device ---- */

/* Refuses a structure of the program's copy of gpuir.h that this copy would misread. */
static int gc_refuse(gpuir_error *err, const char *function) {
  return gpuir__fail(err, GPUIR_E_VERSION, 0,
      "%s: gpuir_cuda.cu and the program were compiled from different versions of gpuir.h", function);
}

/* Gives a searcher a backend with a context, unless `status` says that the context was not made. If it fails, the
 * context is closed. */
static int gc_set_backend(gpuir_searcher *s, const gpuir_backend *table, void *context, int status, int fallback,
    gpuir_error *err) {
  gpuir_backend backend = *table;
  backend.context = context;
  if (!status) {
    status = gpuir_searcher_set_backend(s, &backend, fallback);
    if (status) (void)gpuir__fail(err, status, 0, "attaching %s: %s", backend.name, gpuir_strerror(status));
  }
  if (status) backend.close(context);
  return status;
}

/* Frees an index on a device. NULL is accepted. */
static void gc_close_device(gpuir_cuda *c) {
  gpuir_allocator a;
  if (!c) return;
  a = c->a;
  (void)cudaSetDevice(c->device);
  gc_release_index(c);
  gpuir__free(&a, c, sizeof *c);
}

/* Puts an index of one segment on desc->device. */
static int gc_open_device(const gpuir_index *ix, const gpuir_cuda_desc *desc, gpuir_cuda **cuda, gpuir_error *err) {
  gpuir_cuda *c = (gpuir_cuda *)gpuir__alloc_zero(&ix->a, sizeof *c);
  int status;
  if (!c) return gpuir__fail_nomem(err);
  c->a = ix->a;
  c->index = ix;
  c->ix = gpuir__only(ix);
  c->device = desc ? desc->device : 0;
  c->by_itself = !desc || !desc->batch;
  c->batch = c->by_itself ? GC_BATCH : desc->batch;
  c->threshold = desc && desc->threshold ? desc->threshold : UINT64_MAX;
  status = gc_open(c, desc, err);
  if (status) gc_close_device(c);
  else *cuda = c;
  return status;
}

/* Copies what is known of an index on a device. Other threads may be counting. */
static void gc_get_info(const gpuir_cuda *c, gpuir_cuda_info *info) {
  *info = c->info;
  info->used_memory = __atomic_load_n(&c->info.used_memory, __ATOMIC_RELAXED);
  info->queries = __atomic_load_n(&c->info.queries, __ATOMIC_RELAXED);
  info->batches = __atomic_load_n(&c->info.batches, __ATOMIC_RELAXED);
  info->lists_hit = __atomic_load_n(&c->info.lists_hit, __ATOMIC_RELAXED);
  info->lists_missed = __atomic_load_n(&c->info.lists_missed, __ATOMIC_RELAXED);
  info->bytes_sent = __atomic_load_n(&c->info.bytes_sent, __ATOMIC_RELAXED);
  info->resident_bytes = __atomic_load_n(&c->info.resident_bytes, __ATOMIC_RELAXED);
  info->plan_ns = __atomic_load_n(&c->info.plan_ns, __ATOMIC_RELAXED);
  info->send_ns = __atomic_load_n(&c->info.send_ns, __ATOMIC_RELAXED);
  info->wait_ns = __atomic_load_n(&c->info.wait_ns, __ATOMIC_RELAXED);
  info->deliver_ns = __atomic_load_n(&c->info.deliver_ns, __ATOMIC_RELAXED);
  info->devices = 1;
}

/* Lets a device answer a searcher's queries. */
GPUIR__COLD static int gc_attach_device(gpuir_searcher *s, gpuir_cuda *cuda, unsigned slots, int fallback,
    gpuir_error *err) {
  static const gpuir_backend backend = {GPUIR_BACKEND_VERSION, "cuda", NULL, gc_begin, gc_poll, gc_finish, gc_detach};
  gc_context *x;
  GC_TRY(cudaSetDevice(cuda->device), "choosing the device");
  x = (gc_context *)gpuir__alloc_zero(&s->engine.a, sizeof *x);
  if (!x) return gpuir__fail_nomem(err);
  x->a = s->engine.a;
  x->cuda = cuda;
  x->threads = s->nworkers + 1;
  x->most_slots = cuda->cache ? GC_SLOTS_FEW : slots;
  return gc_set_backend(s, &backend, x, gc_attach(x, &s->engine, err), fallback, err);
}
