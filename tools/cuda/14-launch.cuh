
/* ========================
 * [cuda-14-launch]  host: launches, some at a time in a searcher, and their hits
 *
 * A searcher has three tracks, each with a stream and memory for one launch. A batch is cut into launches, as many as
 * its size asks for; each is planned, sent in one transfer and run by the kernels, all without waiting; while some are
 * in flight the next is planned, of the same batch or of the next one. gc_max is most of an OR's launch and takes the
 * whole device: the kernels around it go ahead of another launch's, so that of three launches one is prepared when it
 * ends. Batches are served in the order in which they began. Only gc_finish waits.
 *
 * Uses      [cuda-06-or] to [cuda-09-memory], [cuda-11-cache] to [cuda-13-plan].
 * Start at  gc_begin, gc_poll, gc_finish; gc_fly (fills free tracks), gc_land (hands out hits); gc_attach.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_BRIEF 2u /* queries at most whose plan is a kernel's parameter: see gc_letter */
#define GC_BATCH 1024u /* queries a launch at most, unless the program says otherwise */
#define GC_TRACKS 3u /* launches of a searcher in flight at most; */
#define GC_TRACKS_FEW 2u /* of a team's member, as what it takes later is levelled better, and of one beside a cache */

/* What an attached searcher owns. */
typedef struct gc_context {
  gpuir_cuda *cuda;
  gpuir_allocator a;
  gc_track tracks[GC_TRACKS];
  unsigned ntracks; /* those behind the first are made when they are first needed, */
  unsigned most_tracks; /* but no more than these */
  unsigned threads; /* that may plan */
  gc_crew *crew; /* made when it is first needed */
  gc_run runs[2];
  uint64_t batches, launches; /* begun */
} gc_context;

/* ---- kernels of a launch ---- */

/* Puts a kernel into a track's stream. In a small launch the gaps between kernels are much of the time: there each
 * starts while the one before ends, and waits in gc_chained. In a large one, or in one of ORs beside another, it would
 * take the place of others (16 ORs, two such calls in flight: 203 us a call, not 145); there it has a priority. */
template <typename... Parameters>
static void gc_start_at(const gc_track *x, int priority, void (*kernel)(Parameters...), size_t grid, unsigned threads,
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

/* Likewise, ahead of other launches' gc_max. */
template <typename... Parameters>
static void gc_start(const gc_track *x, void (*kernel)(Parameters...), size_t grid, unsigned threads, size_t shared,
    Parameters... parameters) {
  gc_start_at(x, x->cuda->ahead, kernel, grid, threads, shared, parameters...);
}

/* Returns whether gc_and_guided also writes the hits of all queries of a launch. */
static int gc_settles(const gc_track *x, const gc_plan *p, uint32_t k) {
  return p->nand && p->nq == p->njobs && p->nq > GC_SMALL && k <= GC_K_SETTLED && x->cuda->aids;
}

/* Launches the kernel of the ANDs; queries: 0, or of how many it writes the hits. */
static void gc_launch_ands(const gc_track *x, size_t queries) {
  const gpuir_cuda *c = x->cuda;
  const gc_batch *b = &x->batch;
  const uint64_t blocks = gpuir__max64(((uint64_t)b->ands.tickets + 7) / 8, queries);
  if (c->aids)
    gc_start(x, gc_and_guided, gpuir__min64(blocks, c->grids.guided), GC_GUIDED_THREADS, 0, c->view, *b,
        (uint32_t)queries);
  else gc_start(x, gc_and_decoding, gpuir__min64(blocks, c->grids.ands), GC_AND_THREADS, 0, c->view, *b);
}

/* Launches the kernels of MaxScore; of a rerun the floors are known already. */
static void gc_launch_maxs(const gc_track *x, const gc_plan *p, int rerun) {
  const gpuir_cuda *c = x->cuda;
  const gc_batch *b = &x->batch;
  const uint64_t most = c->grids.maxs, warps = GC_GUIDED_THREADS / 32;
  gc_start(x, gc_max_plan, p->nmax, GC_FINAL_THREADS, 0, c->view, *b, rerun);
  gc_start_at(x, 0, gc_max, gpuir__min64((p->max_blocks * b->maxs.parts + warps - 1) / warps, most), GC_GUIDED_THREADS,
      0, c->view, *b);
}

/* Launches the kernels of the tiles; of a rerun their bounds and order are known already. */
static void gc_launch_ors(const gc_track *x, const gc_plan *p, int rerun) {
  const gpuir_cuda *c = x->cuda;
  const gc_view *v = &c->view;
  const gc_batch *b = &x->batch;
  if (!rerun) {
    gc_start(x, gc_tiles, gpuir__min64(p->nchunks, (uint64_t)c->processors * 8), 256, 0, *v, *b, c->expanded);
    gc_start(x, gc_order, p->nor, 256, 0, *v, *b);
  }
  gc_start(x, c->expanded ? gc_or<true> : gc_or<false>, gpuir__min64((uint64_t)p->nor * v->ntiles, c->grids.ors),
      GC_OR_THREADS(c->expanded), gc_tile_bytes(v->tile), *v, *b);
}

/* Returns the word of a track's bell, behind its pinned memory for hits. */
static uint32_t *gc_bell_word(const gc_track *x) { return x->out + x->out_size / 4; }

/* Has the next kernel ring the bell. */
static gc_bell gc_hang_bell(gc_track *x) {
  const gc_bell bell = {x->batch.out + x->out_size / 4, ++x->rung};
  x->rings = 1;
  return bell;
}

/* Starts gc_receive, with a staged plan of `size` bytes. */
static void gc_post(gc_track *x, size_t size, uint64_t nbounds) {
  gc_letter letter;
  const uint64_t threads = gpuir__max64(nbounds / 4, size / 16 + 1);
  memcpy(&letter, x->staging, size);
  gc_start(x, gc_receive, gpuir__min64((threads + 255) / 256, x->cuda->processors), 256, 0, letter, (uint4 *)x->input,
      (uint32_t)((size + 15) / 16), x->batch.ors.bound, nbounds);
}

/* Returns whether gc_alone can answer a launch whose plan has been staged. */
static int gc_is_alone(const gc_track *x, const gc_plan *p, uint32_t k) {
  return p->njobs == 1 && p->nq == 1 && p->nand + p->nmax == 1 && !p->nsought && k <= GC_RANKED && x->cuda->aids &&
      !x->cuda->cache && x->letter <= GC_LETTER;
}

#define GC_TRIED_BLOCKS 512u /* of an AND's driver that is worth trying */

/* Chooses how an AND is tried. A floor out of x of the m matches that are likely leaves k * m / x of them: with x near
 * the root of k * m the fewest are kept in all. An eighth of the driver's documents may match, however few would if
 * terms came by chance. */
static void gc_try_some_ands(const gc_track *x, unsigned grid, gc_errand *errand) {
  const gc_job *job = x->draft.jobs;
  const gc_term *terms = x->draft.terms + job->first_term;
  const double blocks = terms[0].nblocks;
  double matches = terms[0].df;
  uint32_t i;
  errand->tries = job->seed != 0;
  if (job->count || job->npositive == 1 || terms[0].nblocks < GC_TRIED_BLOCKS) return;
  for (i = 1; i < job->npositive; i++) matches *= (double)terms[i].df / x->cuda->view.documents;
  if (matches < terms[0].df / 8.0) matches = terms[0].df / 8.0;
  errand->tries = (uint32_t)gpuir__min64(grid, (uint64_t)(blocks * sqrt(job->k / matches)) + 1);
  errand->tries = gpuir__min32(errand->tries, terms[0].nblocks / 2);
  errand->step = terms[0].nblocks / errand->tries;
}

/* Chooses how an OR is tried: half as many blocks of each further list at most. */
static void gc_try_some_ors(const gc_track *x, unsigned grid, gc_errand *errand) {
  const gc_job *job = x->draft.jobs;
  const gc_term *terms = x->draft.terms + job->first_term;
  uint32_t share = (uint32_t)gpuir__min64(GC_TRIES, gpuir__min64((uint64_t)x->cuda->processors, grid)) / 2, i;
  for (i = 0; i < GC_LAYERS && i < job->npositive && (job->npositive > 1 || !job->seed); i++, share /= 2)
    errand->tries += errand->take[i] = gpuir__min32(terms[i].nblocks, share);
  if (!errand->tries) errand->tries = 1;
}

/* Describes a query alone to a kernel of so many blocks of threads. */
static gc_errand gc_errand_of(gc_track *x, const gc_plan *p, unsigned grid) {
  gc_batch *b = &x->batch;
  gc_errand errand;
  memset(&errand, 0, sizeof errand);
  errand.desk = x->desk;
  errand.from = x->input;
  errand.size = (uint32_t)((x->letter + 15) / 16);
  errand.bell = gc_hang_bell(x);
  if (p->nand) gc_try_some_ands(x, grid, &errand);
  else gc_try_some_ors(x, grid, &errand);
  b->control = &x->desk->control;
  b->states = &x->desk->state;
  b->alone = 1;
  return errand;
}

/* Starts gc_alone. */
static int gc_launch_alone(gc_track *x, const gc_plan *p, gpuir_error *err) {
  const unsigned most = x->cuda->grids.alone;
  const gc_errand errand = gc_errand_of(x, p, most);
  const uint64_t blocks = gpuir__max64(p->nand ? p->nand_blocks : p->max_blocks, errand.tries);
  gc_letter letter;
  static_assert(sizeof(gc_view) + sizeof(gc_batch) + sizeof letter + sizeof errand <= 4096, "parameters");
  x->chained = 0;
  memcpy(&letter, x->staging, x->letter);
  gc_start(x, gc_alone, gpuir__min64(blocks, most), GC_GUIDED_THREADS, 0, x->cuda->view, x->batch, letter, errand);
  GC_TRY(cudaGetLastError(), "launching kernels");
  return GPUIR_OK;
}

/* Returns whether gc_prompt can answer a launch. */
static int gc_is_prompt(const gc_track *x, const gc_plan *p, uint32_t k) {
  const gc_job *job = x->draft.jobs;
  const gc_term *driver = x->draft.terms + job->first_term;
  const gpuir_cuda *c = x->cuda;
  if (p->njobs != 1 || p->nq != 1 || p->nand != 1 || p->nsought || k > GC_PROMPT_K || !c->expanded || c->cache)
    return 0;
  if (job->count || !job->stored || job->nterms < 2 || job->nterms > GC_PROMPT_TERMS) return 0;
  if (c->info.compute_capability < 90) return 0;
  return job->expanded ? driver->nblocks <= GC_PROMPT_BLOCKS : driver->kind != GC_LONG;
}

/* Starts gc_prompt, by as many blocks of threads as have work for their warps. */
static void gc_start_prompt(const gc_track *x) {
  gc_request request;
  cudaLaunchConfig_t how;
  cudaLaunchAttribute cluster;
  const gc_job *job = x->draft.jobs;
  const gc_term *terms = x->draft.terms + job->first_term;
  const uint32_t groups = (terms->df + GC_PAIRS - 1) / GC_PAIRS;
  unsigned blocks = 1;
  while (job->expanded && blocks < GC_PROMPT_CLUSTER && blocks * GC_PROMPT_WARPS < groups * (job->nterms - 1))
    blocks *= 2;
  request.job = *job;
  request.lines = x->device_lines;
  request.number = x->rung;
  request.share = (groups + blocks - 1) / blocks;
  memcpy(request.terms, terms, job->nterms * sizeof *terms);
  memset(&how, 0, sizeof how);
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = blocks;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  how.gridDim = dim3(blocks);
  how.blockDim = dim3(GC_PROMPT_THREADS);
  how.stream = x->stream;
  how.attrs = &cluster;
  how.numAttrs = blocks > 1;
  (void)cudaLaunchKernelEx(&how, job->expanded ? gc_prompt<false> : gc_prompt<true>, x->cuda->view, request);
}

#ifdef GPUIR_CUDA_SEAM
long gpuir_cuda_seam_prompts; /* launches of gc_prompt */
#define GC_COUNT_PROMPT() ((void)++gpuir_cuda_seam_prompts)
#else
#define GC_COUNT_PROMPT() ((void)0)
#endif

static int gc_launch_prompt(gc_track *x, gpuir_error *err) {
  x->rings = 1;
  x->alone = x->chained = 0;
  x->rung++;
  GC_COUNT_PROMPT();
  gc_start_prompt(x);
  GC_TRY(cudaGetLastError(), "launching kernels");
  return GPUIR_OK;
}

/* Returns whether both halves of a line have come. */
static int gc_line_there(const gc_line *line, uint32_t number) {
  return __atomic_load_n(&line->number, __ATOMIC_ACQUIRE) == number &&
      __atomic_load_n(&line->also, __ATOMIC_ACQUIRE) == number;
}

/* Returns whether all that gc_prompt writes has come. */
static int gc_lines_there(const gc_track *x) {
  uint32_t n, i;
  if (!gc_line_there(x->lines, x->rung)) return 0;
  n = x->lines->doc == GC_NONE ? 0 : x->lines->doc;
  for (i = 1; i <= n; i++)
    if (!gc_line_there(x->lines + i, x->rung)) return 0;
  return 1;
}

/* Puts the hits where other launches' kernels do. */
static void gc_take_lines(gc_track *x) {
  uint32_t i;
  x->out[0] = x->lines->doc;
  for (i = 0; x->out[0] != GC_NONE && i < x->out[0]; i++) {
    x->out[2 + 2 * i] = x->lines[1 + i].doc;
    x->out[3 + 2 * i] = x->lines[1 + i].score;
  }
}

/* Launches the kernels of the ORs whose postings are all added up. */
static void gc_launch_sums(const gc_track *x, const gc_plan *p, int rerun) {
  const gpuir_cuda *c = x->cuda;
  if (!rerun && p->nthin) gc_start(x, gc_places, p->nthin * GC_SUM_PARTS, 256, 0, c->view, x->batch);
  gc_start(x, gc_sum_tiles, gpuir__min64((uint64_t)p->nsum * c->slices.ntiles, c->grids.sums), GC_SUM_THREADS,
      (size_t)c->slices.tile * 4, c->view, x->batch);
}

/* Launches the kernel of the queries with phrases. */
static void gc_launch_phrases(const gc_track *x, const gc_plan *p) {
  const uint32_t bytes = (uint32_t)gc_phrase_bytes(p->lists, p->tokens), warps = GC_PHRASE_THREADS / 32;
  const uint64_t most = gpuir__max64(1, gpuir__min64(x->cuda->phrase_room / (warps * bytes + 1024), 16));
  gc_start(x, gc_phrase_all, gpuir__min64((x->phrases.tickets + warps - 1) / warps, most * x->cuda->processors),
      GC_PHRASE_THREADS, warps * bytes, x->cuda->view, x->batch, x->phrases, bytes);
}

/* Puts all kernels of a plan into the stream. */
static int gc_launch(gc_track *x, const gc_plan *p, uint32_t k, int rerun, gpuir_error *err) {
  const gc_bell none = {NULL, 0};
  const int settles = gc_settles(x, p, k);
  size_t size = GC_RANKED;
  x->rings = 0;
  if (rerun) GC_TRY(cudaMemsetAsync(x->batch.control, 0, sizeof(gc_control), x->stream), "clearing counters");
  if (p->nand && !settles) gc_launch_ands(x, 0);
  if (p->nmax) gc_launch_maxs(x, p, rerun);
  if (p->nor) gc_launch_ors(x, p, rerun);
  if (p->nsum) gc_launch_sums(x, p, rerun);
  if (p->nsought) gc_launch_phrases(x, p);
  while (size < k) size *= 2;
  if (settles) gc_launch_ands(x, p->nq);
  else
    gc_start(x, gc_final, p->nq, GC_FINAL_THREADS, size * 8, x->cuda->view, x->batch,
        p->nq == 1 ? gc_hang_bell(x) : none);
  GC_TRY(cudaGetLastError(), "launching kernels");
  return GPUIR_OK;
}

/* ---- tracks ---- */

GPUIR__COLD static void gc_track_close(gc_track *x) {
  const gpuir_allocator a = x->a;
  gc_stream_close(x->stream);
  if (x->cuda->cache) gc_carrier_close(x->cuda, &x->by);
  if (x->sent) (void)cudaEventDestroy(x->sent);
  __atomic_fetch_sub(&x->cuda->info.used_memory, x->device_bytes, __ATOMIC_RELAXED);
  (void)cudaFree(x->input);
  (void)cudaFree(x->desk);
  (void)cudaFree(x->batch.ors.first);
  (void)cudaFree(x->batch.ors.bound);
  (void)cudaFree(x->batch.ors.order);
  (void)cudaFree(x->batch.ors.total);
  (void)cudaFree(x->batch.cand);
  (void)cudaFree(x->batch.sums.first);
  (void)cudaFree(x->batch.maxs.drives);
  (void)cudaFree(x->batch.maxs.drive_start);
  (void)cudaFreeHost(x->staging);
  (void)cudaFreeHost(x->out);
  (void)cudaGetLastError();
  gpuir__free(&a, x->draft.memory, x->draft.size);
  memset(x, 0, sizeof *x);
}

/* Allocates device memory of a track's own. */
static int gc_track_take(gc_track *x, size_t n, void **p, gpuir_error *err) {
  int status = gc_take(x->cuda, n, p, err);
  if (!status) x->device_bytes += n ? n : 1;
  return status;
}

#define GC_LINES (1 + GC_PROMPT_K)

/* Gives a track its stream and memory, for launches of at most these sizes. What fails is freed by gc_track_close. */
GPUIR__COLD static int gc_track_open(gc_track *x, const gc_sizes *most, gpuir_error *err) {
  gc_batch *b = &x->batch;
  const gc_sizes *z = &x->most;
  size_t slots, jobs, lines;
  int s;
  x->most = *most;
  s = gc_draft_open(x, err);
  if (!s) s = gc_stream_open(&x->stream, x->cuda->ahead, err);
  if (!s && x->cuda->cache) s = gc_carrier_open(x->cuda, &x->by, err);
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
  slots = (size_t)(z->nslots * z->tiles * 4);
  jobs = (size_t)(z->njobs * z->tiles * 4);
  *gc_bell_word(x) = 0;
  s = gc_track_take(x, (size_t)z->staging, (void **)&x->input, err);
  if (!s) s = gc_track_take(x, sizeof *x->desk, (void **)&x->desk, err);
  if (!s) s = gc_track_take(x, slots, (void **)&b->ors.first, err);
  if (!s) s = gc_track_take(x, slots, (void **)&b->ors.bound, err);
  if (!s) s = gc_track_take(x, jobs, (void **)&b->ors.order, err);
  if (!s && x->cuda->slices.ntiles)
    s = gc_track_take(x, (size_t)z->nslots * (x->cuda->slices.ntiles + 1) * 4, (void **)&b->sums.first, err);
  if (!s) s = gc_track_take(x, jobs, (void **)&b->ors.total, err);
  if (!s) s = gc_track_take(x, (size_t)z->ncand * 8, (void **)&b->cand, err);
  if (!s) s = gc_track_take(x, z->ndrives * sizeof *b->maxs.drives, (void **)&b->maxs.drives, err);
  if (!s) s = gc_track_take(x, z->ndrives * 4, (void **)&b->maxs.drive_start, err);
  if (s) return s;
  x->dirty = 1;
  return GPUIR_OK;
}

/* Makes a searcher's next track, if the bound leaves as much again beside all of them. Returns 0 if that is not so, or
 * a call fails: then those that there are do. */
static int gc_add_track(gc_context *x) {
  const gc_track *first = &x->tracks[0];
  gc_track *track = &x->tracks[x->ntracks];
  gpuir_error error;
  if (first->most.device > gc_left(x->cuda) / (2 * x->ntracks)) return 0;
  track->cuda = x->cuda;
  track->a = x->a;
  track->engine = first->engine;
  if (gc_track_open(track, &first->most, &error)) {
    gc_track_close(track);
    return 0;
  }
  x->ntracks++;
  return 1;
}

/* ---- landing a launch ---- */

#ifdef GPUIR_CUDA_SEAM
int gpuir_cuda_seam_looks; /* 1: launches are looked at when they have ended */
uint64_t gpuir_cuda_seam_left; /* candidates that they have left in their buffers */

/* Counts the candidates that a launch has left in its buffer, if a test wants to know. */
static void gc_look_for_left(const gc_track *x) {
  const size_t n = x->most.ncand;
  unsigned long long *cand = gpuir_cuda_seam_looks ? (unsigned long long *)gpuir__alloc(&x->a, n * 8) : NULL;
  size_t i;
  if (!cand) return;
  (void)cudaMemcpyAsync(cand, x->batch.cand, n * 8, cudaMemcpyDeviceToHost, x->stream);
  (void)cudaStreamSynchronize(x->stream);
  for (i = 0; i < n; i++) gpuir_cuda_seam_left += cand[i] != 0;
  gpuir__free(&x->a, cand, n * 8);
}
#else
#define gc_look_for_left(x) ((void)0)
#endif

/* Ends a launch: the queries that wait for it fail with a status, if that is not 0. */
static void gc_end(gc_track *x, int status, const gpuir_error *err) {
  gc_flight *f = &x->flight;
  gc_run *r = f->run;
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
  f->run = NULL;
}

/* ---- taking off ---- */

#define GC_FIRST_QUERIES (GC_FIRST_SHEETS * GC_SHEET) /* of a batch's first launch, for which the device waits */

/* Returns how many of such queries fill the device, of ANDs fewer than of others, by a look at some of them. */
static size_t gc_piece_most(const gpuir_query *const *queries, size_t n) {
  const size_t some = (size_t)gpuir__min64(n, 16);
  size_t ands = 0, i;
  for (i = 0; i < some; i++) ands += queries[i]->mode == GPUIR_AND;
  return 2 * ands > some ? GC_BATCH / 2 : GC_BATCH;
}

/* Returns the track whose launch began first; NULL: nothing is in flight. */
static gc_track *gc_first_track(gc_context *x) {
  gc_track *first = NULL;
  unsigned i;
  for (i = 0; i < x->ntracks; i++) {
    gc_track *t = &x->tracks[i];
    if (t->flight.run && (!first || t->flight.number < first->flight.number)) first = t;
  }
  return first;
}

/* Returns whether several threads may plan. Batches of a cache are planned by one: they take places in it in turn. */
static int gc_may_hire(const gc_context *x) {
  return x->threads > 1 && !x->cuda->cache && x->cuda->threshold == UINT64_MAX;
}

/* Chooses how many queries a launch of a batch takes: all launches of it about as many. Unless the next batch is there
 * to be planned, a large one is halved, so that its second half is planned while the first one runs. Of ANDs fewer fill
 * the device. Measured on an H200, 8.84 million documents, in thousands of queries/s, by launches of 256, 512 and
 * 1,024: batches of 8,000: AND 808, 823, 719, pruned OR 287, 344, 381; of 1,000: AND 718, 789, 641, pruned OR (not
 * measured), 318, 310. With the ANDs' later kernels and 25.2 million documents, batches of 8,000 by launches of 512,
 * 1,000 and 2,048: AND 1,086, 1,082, 1,058. */
static size_t gc_piece(gc_context *x, const gpuir_batch_desc *d) {
  const gpuir_cuda *c = x->cuda;
  const int idle = !gc_first_track(x);
  const size_t most = gc_piece_most(d->queries, d->nq);
  const size_t n =
      d->nq - (idle && d->nq > most && gc_may_hire(x) ? GC_FIRST_QUERIES : 0); /* behind the first launch */
  size_t pieces = (n + most - 1) / most;
  if (!c->by_itself) return c->batch;
  if (pieces == 1 && idle && n > c->batch / 2) pieces = 2;
  return (n + pieces - 1) / pieces;
}

/* Adds the time since `start` to a counter of what a caller's thread spends; returns what time it is. start 0: a small
 * batch, which is not timed. */
static uint64_t gc_spent(uint64_t *counter, uint64_t start) {
  uint64_t now;
  if (!start) return 0;
  now = gpuir__now();
  __atomic_fetch_add(counter, now - start, __ATOMIC_RELAXED);
  return now;
}

static uint64_t gc_timed(const gc_run *r) { return r->desc.nq > GC_SMALL ? gpuir__now() : 0; }

/* Plans the next launch of a batch; idle: 1 if the device waits for it. *full: the next query found no room for its
 * lists. */
static void gc_fill(gc_track *x, gc_run *r, int idle, int *full) {
  const size_t room = (size_t)gpuir__min64(r->piece, x->out_size / ((2 + 2 * (size_t)r->k) * 4));
  const size_t left = r->desc.nq - r->next, grain = r->crew ? r->sheet : 1;
  const size_t even = (left - 1) / ((left - 1) / room + 1) + 1; /* all launches of what is left about as many */
  const size_t most = (size_t)gpuir__min64(room, (even - 1) / grain * grain + grain);
  gc_flight *f = &x->flight;
  memset(f, 0, sizeof *f);
  f->first = r->next;
  f->count = r->desc.count;
  f->idle = idle;
  if (r->crew) {
    gc_fill_by_crew(x, r, most, idle);
  } else {
    x->draft.next = r->next;
    x->draft.end = r->next + (size_t)gpuir__min64(left, most);
    gc_plan_some(x, r, full);
    gc_settle(x, r);
  }
  f->plan = x->plan;
  f->end = r->next;
}

/* Sends the plan of a track and starts its kernels, or the one kernel that does if it may be `alone`. */
static int gc_send(gc_track *x, const gc_run *r, int alone, gpuir_error *err) {
  const gc_plan *p = &x->flight.plan;
  gc_cache *cache = x->cuda->cache;
  size_t size;
  x->prompt = alone && gc_is_prompt(x, p, r->k);
  if (x->prompt && !x->dirty) return gc_launch_prompt(x, err);
  x->prompt = 0;
  size = gc_stage_plan(x, p, r->k);
  x->chained = x->cuda->info.compute_capability >= 90 && p->nq <= GC_SMALL && (x->flight.idle || !p->nmax);
  x->alone = alone && gc_is_alone(x, p, r->k);
  if (cache) { /* the launch waits for the lists that are on their way */
    GC_TRY(cudaEventRecord(x->sent, cache->stream), "waiting for lists");
    GC_TRY(cudaStreamWaitEvent(x->stream, x->sent, 0), "waiting for lists");
  }
  if (x->dirty) {
    GC_TRY(cudaMemsetAsync(x->batch.cand, 0, x->most.ncand * 8, x->stream), "clearing candidates");
    GC_TRY(cudaMemsetAsync(x->desk, 0, sizeof *x->desk, x->stream), "clearing states");
  }
  x->dirty = 1;
  if (x->alone) return gc_launch_alone(x, p, err);
  if (p->nq <= GC_BRIEF && size <= sizeof(gc_letter)) {
    gc_post(x, size, p->nor ? p->nslots * (x->cuda->view.ntiles + 1) : 0);
    return gc_launch(x, p, r->k, 0, err);
  }
  if (p->nor)
    GC_TRY(cudaMemsetAsync(x->batch.ors.bound, 0, p->nslots * (x->cuda->view.ntiles + 1) * 4, x->stream),
        "clearing bounds");
  GC_TRY(cudaMemcpyAsync(x->input, x->staging, size, cudaMemcpyHostToDevice, x->stream), "sending queries");
  return gc_launch(x, p, r->k, 0, err);
}

/* Plans and starts a launch in a free track. Returns 0 if the next query found no room for its lists, beside those that
 * are held. */
static int gc_take_off(gc_context *x, gc_track *track, gc_run *r) {
  uint64_t start = gc_timed(r);
  gpuir_error error;
  int full = 0, status;
  gc_fill(track, r, !gc_first_track(x), &full);
  start = gc_spent(&x->cuda->info.plan_ns, start);
  if (!track->flight.plan.nq) {
    gc_cache_release(x->cuda, &track->held);
    return !full;
  }
  if (!gc_cache_await(x->cuda->cache, &track->held)) { /* once more: now this searcher will bring it */
    gc_cache_release(x->cuda, &track->held);
    r->next = track->flight.first;
    return 1;
  }
  track->flight.run = r;
  track->flight.number = ++x->launches;
  status = gc_send(track, r, 1, &error);
  if (r->crew && r->next == r->desc.nq) gc_rouse(r->crew);
  (void)gc_spent(&x->cuda->info.send_ns, start);
  if (status) gc_end(track, status, &error);
  return 1;
}

/* Returns the batch whose turn it is to be planned; NULL: none has queries left. */
static gc_run *gc_next_run(gc_context *x) {
  gc_run *a = &x->runs[0], *b = &x->runs[1];
  if (!a->number || a->next == a->desc.nq) a = NULL;
  if (!b->number || b->next == b->desc.nq) b = NULL;
  return a && b ? (a->number < b->number ? a : b) : a ? a : b;
}

/* Returns a track that is free, or NULL. */
static gc_track *gc_free_track(gc_context *x) {
  unsigned i;
  for (i = 0; i < x->ntracks; i++)
    if (!x->tracks[i].flight.run) return &x->tracks[i];
  if (x->ntracks == x->most_tracks) return NULL;
  if (gc_add_track(x)) return &x->tracks[i];
  x->most_tracks = x->ntracks;
  return NULL;
}

/* Returns the number of lists that this searcher holds. */
static uint64_t gc_own_holds(const gc_context *x) {
  uint64_t n = 0;
  unsigned i;
  for (i = 0; i < x->ntracks; i++) n += x->tracks[i].held.n;
  return n;
}

/* Fills free tracks with what waits. Returns NULL, or the batch whose next query finds no room, as long as other
 * searchers hold lists; *held: what to wait for. */
static gc_run *gc_fly(gc_context *x, const gc_holds **held) {
  gc_run *r;
  gc_track *track;
  while ((r = gc_next_run(x)) && (track = gc_free_track(x))) {
    gpuir_error error;
    if (gc_take_off(x, track, r)) continue;
    *held = &track->held;
    if (gc_own_holds(x)) return NULL; /* its own launch will make room */
    if (track->held.pins) return r;
    (void)gpuir__fail(&error, GPUIR_E_NOMEM, 0, "CUDA: the lists of a query need more memory than is allowed");
    gc_fail_query(r, r->next++, GPUIR_E_NOMEM, &error);
  }
  return NULL;
}

/* ---- landing ---- */

/* Hands out the hits of a launch; queries that have asked for another run, but shall have none, get `status`. */
static void gc_deliver(gc_track *x, int status, const gpuir_error *err) {
  const gc_flight *f = &x->flight;
  gc_run *r = f->run;
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
    out += x->batch.out_stride;
  }
}

/* Returns what stops all queries of a launch that ask for another run; 0: some may go on. */
static int gc_all_stopped(const gc_track *x, gpuir_error *err) {
  const gc_run *r = x->flight.run;
  const uint64_t now = gc_now(r);
  const uint32_t *out = x->out;
  int status = GPUIR_OK;
  size_t i;
  for (i = x->flight.first; i < x->flight.end; i++) {
    if (r->desc.counts[i] != GC_NONE) continue;
    if (out[0] == GC_NONE) {
      status = gc_stopped(r, i, now, err);
      if (!status) return GPUIR_OK;
    }
    out += x->batch.out_stride;
  }
  return status;
}

/* Starts a launch again whose queries have lost candidates. Returns 0 if none did, or there shall be no other run: then
 * *status and *err say why. */
static int gc_again(gc_track *x, int *status, gpuir_error *err) {
  gc_flight *f = &x->flight;
  size_t i;
  *status = GPUIR_OK;
  for (i = 0; i < f->plan.nq && x->out[i * x->batch.out_stride] != GC_NONE; i++) {}
  if (i == f->plan.nq) return 0;
  *status = gc_all_stopped(x, err);
  if (!*status && ++f->tries == 64)
    *status = gpuir__fail(err, GPUIR_E_BACKEND, 0, "CUDA: too many candidates share one score");
  (void)cudaSetDevice(x->cuda->device);
  if (!*status && (x->alone || x->prompt)) *status = gc_send(x, f->run, 0, err); /* the long way, from the beginning */
  else if (!*status) *status = gc_launch(x, &f->plan, f->run->k, 1, err);
  return !*status;
}

/* Returns whether a launch has ended, as CUDA does; `wait`: waits for it. If a bell rings, the stream is asked only now
 * and then, as a kernel that fails rings none. */
static cudaError_t gc_ended(const gc_track *x, int wait) {
  cudaError_t e;
  if (!x->rings) return GC_CALL(wait ? cudaStreamSynchronize(x->stream) : cudaStreamQuery(x->stream));
  do {
    uint32_t left;
    for (left = wait ? 10000 : 1; left; left--)
      if (x->prompt ? gc_lines_there(x) : __atomic_load_n(gc_bell_word(x), __ATOMIC_ACQUIRE) == x->rung)
        return cudaSuccess;
    e = GC_CALL(cudaStreamQuery(x->stream));
  } while (wait && e == cudaErrorNotReady);
  return e;
}

/* Looks whether a launch has ended, or waits until it has; then hands out its hits. */
static void gc_land(gc_track *x, int wait) {
  uint64_t start = gc_timed(x->flight.run);
  gpuir_error error;
  int status;
  do {
    const cudaError_t e = gc_ended(x, wait);
    if (e == cudaErrorNotReady) return;
    if (e != cudaSuccess) {
      status = gc_fail(&error, e, "running kernels");
      gc_end(x, status, &error);
      return;
    }
    if (x->prompt) gc_take_lines(x);
    if (!gc_again(x, &status, &error)) break;
  } while (1);
  start = gc_spent(&x->cuda->info.wait_ns, start);
  gc_deliver(x, status, &error);
  gc_end(x, status, &error);
  (void)gc_spent(&x->cuda->info.deliver_ns, start);
}

#define GC_SHEET_LEAST 16u /* queries of a sheet at least */

/* Lets several threads plan a batch of which they will have to plan much at once. */
static void gc_hire(gc_context *x, gc_run *r) {
  const gc_track *first = &x->tracks[0];
  gc_sizes most;
  most = gc_sizes_of(x->cuda, GC_SHEET);
  most.queries = (size_t)gpuir__min64(GC_SHEET, gc_most_jobs(&most, r) / 2);
  if (most.queries < GC_SHEET_LEAST || r->piece < 4 * most.queries || first->most.queries < 4 * most.queries) return;
  r->nsheets = (r->piece + most.queries - 1) / most.queries;
  r->sheet = (r->piece + r->nsheets - 1) / r->nsheets;
  r->nsheets = (r->piece + r->sheet - 1) / r->sheet;
  if (!x->crew) x->crew = gc_crew_open(first, x->threads);
  if (x->crew) gc_announce(x->crew, r);
  else x->threads = 1;
}

/* ---- the backend, see gpuir_backend ---- */

#define GC_PATIENCE 1000000000u /* ns: so long other searchers may hold lists without releasing one */

static int gc_begin(void *context, const gpuir_batch_desc *batch, uint64_t deadline, const int *cancel, void **running,
    gpuir_error *err) {
  gc_context *x = (gc_context *)context;
  const gc_holds *held;
  gc_run *r = x->runs[0].number ? &x->runs[1] : &x->runs[0];
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
  r->number = ++x->batches;
  r->next = k ? 0 : batch->nq;
  r->left = batch->nq - r->next;
  r->failed = SIZE_MAX;
  r->piece = gc_piece(x, batch);
  if (r->left && gc_may_hire(x)) gc_hire(x, r);
  *running = r;
  (void)gc_fly(x, &held);
  return GPUIR_OK;
}

static int gc_poll(void *context, void *running) {
  gc_context *x = (gc_context *)context;
  const gc_run *r = (const gc_run *)running;
  const gc_holds *held;
  unsigned i;
  for (i = 0; i < x->ntracks; i++)
    if (x->tracks[i].flight.run) gc_land(&x->tracks[i], 0);
  if (gc_next_run(x)) (void)cudaSetDevice(x->cuda->device);
  (void)gc_fly(x, &held);
  return !r->left;
}

/* Waits for other searchers to release lists; fails the query that needs them if they do not. */
static void gc_yield(gc_context *x, gc_run *r, const gc_holds *held) {
  const uint64_t slice = 1000000;
  gpuir_error error;
  uint64_t waited;
  int status = GPUIR_OK;
  for (waited = 0; !status && waited < GC_PATIENCE; waited += slice) {
    if (gc_cache_wait(x->cuda->cache, held->releases, slice)) return;
    status = gc_stopped(r, r->next, gc_now(r), &error);
  }
  if (!status) status = gpuir__fail(&error, GPUIR_E_NOMEM, 0, "CUDA: lists that other searchers hold leave no room");
  gc_fail_query(r, r->next++, status, &error);
}

static int gc_finish(void *context, void *running, gpuir_error *err) {
  gc_context *x = (gc_context *)context;
  gc_run *r = (gc_run *)running;
  int status;
  while (r->left) {
    const gc_holds *held;
    gc_run *stuck;
    gc_track *track;
    if (gc_next_run(x)) (void)cudaSetDevice(x->cuda->device); /* kernels are launched on the current one */
    stuck = gc_fly(x, &held);
    track = gc_first_track(x);
    if (track) gc_land(track, 1);
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
  if (x->crew) gc_crew_close(x->crew);
  while (x->ntracks) gc_track_close(&x->tracks[--x->ntracks]);
  gpuir__free(&a, x, sizeof *x);
}

/* Gives a searcher its first track. */
static int gc_attach(gc_context *x, gpuir__engine *engine, gpuir_error *err) {
  const gc_sizes most = gc_sizes_within(x->cuda, gc_left(x->cuda));
  gc_track *track = &x->tracks[0];
  track->cuda = x->cuda;
  track->a = x->a;
  track->engine = engine;
  x->ntracks = 1;
  return gc_track_open(track, &most, err);
}

/* ---- one device ---- */

/* Refuses a structure of the program's copy of the implementation that this copy would misread. */
static int gc_refuse(gpuir_error *err, const char *function) {
  return gpuir__fail(err, GPUIR_E_VERSION, 0,
      "%s: gpuir_cuda.cu and the program were compiled from different versions of gpuir.h", function);
}

/* Gives a searcher a backend with a context, unless `status` says that this was not made. What fails is closed. */
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

static void gc_close_device(gpuir_cuda *c) {
  gpuir_allocator a;
  if (!c) return;
  a = c->a;
  (void)cudaSetDevice(c->device);
  gc_forget(c);
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

static void gc_device_info(const gpuir_cuda *c, gpuir_cuda_info *info) {
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

/* Lets a searcher be answered by a device. */
GPUIR__COLD static int gc_attach_device(gpuir_searcher *s, gpuir_cuda *cuda, unsigned tracks, int fallback,
    gpuir_error *err) {
  static const gpuir_backend backend = {GPUIR_BACKEND_VERSION, "cuda", NULL, gc_begin, gc_poll, gc_finish, gc_detach};
  gc_context *x;
  GC_TRY(cudaSetDevice(cuda->device), "choosing the device");
  x = (gc_context *)gpuir__alloc_zero(&s->engine.a, sizeof *x);
  if (!x) return gpuir__fail_nomem(err);
  x->a = s->engine.a;
  x->cuda = cuda;
  x->threads = s->nworkers + 1;
  x->most_tracks = cuda->cache ? GC_TRACKS_FEW : tracks;
  return gc_set_backend(s, &backend, x, gc_attach(x, &s->engine, err), fallback, err);
}
