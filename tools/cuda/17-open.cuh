
/* ========================
 * [cuda-17-open]  host: the index on the device
 *
 * Opening uploads the index's sections, makes guides, expanded lists and slices as far as the memory bound allows, and
 * finds how many blocks of threads of each kernel fill the device. An index that does not fit gets a cache.
 *
 * Uses      [cuda-05-expand] to [cuda-16-cache].
 * Start at  gc_open: gc_open_whole, or gc_open_cached where the index does not fit.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_TILE_MOST 24576u /* documents of a tile at most: two blocks of threads share a multiprocessor */
#define GC_MARKS 8u /* bits of marks for a posting at least */
#define GC_PEAKS 64u /* eighths of a peak for a posting at most, if memory allows it; half as many at least */
#define GC_TURNS 6u /* turns of a long AND's driver: each has as many blocks as all turns before it together */
#define GC_K_MOST 10000u

/* ---- the sections ---- */

/* Collects the long lists. It refuses lists whose blocks are not in the same order or overlap: kernels would write to
 * one place from several blocks. */
static int gc_collect(gpuir_cuda *c, gpuir_error *err) {
  const gpuir__segment *ix = c->ix;
  gpuir__walk w;
  uint64_t end = 0;
  size_t n = 0;
  c->nlists = (size_t)ix->stat.longs;
  c->lists = (gc_term *)gpuir__alloc_zero(&c->a, c->nlists * sizeof *c->lists);
  if (!c->lists) return gpuir__fail_nomem(err);
  for (gpuir__walk_start(&w, ix); gpuir__walk_next(&w);) {
    gpuir__list l;
    int status;
    if (w.record.df <= GPUIR__SHORT_MAX) continue;
    if (n == c->nlists) return gpuir__bad(ix, err, 0, "more long lists than extents");
    status = gc_describe(c, w.id, &w.record, &c->lists[n], &l, err);
    if (status) return status;
    if (c->lists[n].first_block < end) return gpuir__bad(ix, err, 0, "long lists share blocks");
    end = c->lists[n].first_block + c->lists[n].nblocks;
    c->lists[n].weight =
        gpuir__weight(gpuir__idf(gpuir__segment_collection(ix), gpuir__segment_df(ix, w.id, l.df)), ix->stat.k1);
    c->lists[n].tile_row = (uint32_t)(l.extent - ix->lists.longs);
    c->lists[n++].q = 1;
  }
  c->nlists = n;
  return GPUIR_OK;
}

/* Returns the bytes of a document's length on the device: 2 if all lengths are below 65536, otherwise 4. */
static unsigned gc_length_bytes(const gpuir__segment *ix) {
  size_t n = (size_t)ix->stat.documents, i;
  uint32_t most = 0;
  for (i = 0; i < n; i++) most = gpuir__max32(most, ix->lengths[i]);
  return most < 65536 ? 2 : 4;
}

/* Uploads the documents' lengths, in 16 bits if they fit. */
static int gc_upload_lengths(gpuir_cuda *c, gpuir_error *err) {
  const gpuir__segment *ix = c->ix;
  size_t n = (size_t)ix->stat.documents, i;
  uint16_t *lengths16;
  int s;
  if (gc_length_bytes(ix) == 4) return gc_upload(c, ix->lengths, n * 4, (const void **)&c->view.lengths, err);
  lengths16 = (uint16_t *)gpuir__alloc(&c->a, n * 2 + 2);
  if (!lengths16) return gpuir__fail_nomem(err);
  for (i = 0; i < n; i++) lengths16[i] = (uint16_t)ix->lengths[i];
  s = gc_upload(c, lengths16, n * 2, (const void **)&c->view.lengths16, err);
  gpuir__free(&c->a, lengths16, n * 2 + 2);
  return s;
}

/* Uploads streams and directory as they lie in the file, where all are bp128. */
static int gc_upload_streams(gpuir_cuda *c, gpuir_error *err) {
  const gpuir__segment *ix = c->ix;
  uint64_t blocks = ix->stat.blocks;
  gc_view *v = &c->view;
  int s = gc_upload(c, ix->lists.docids, ix->section[GPUIR__S_DOCIDS]->length, (const void **)&v->docids, err);
  if (!s) s = gc_upload(c, ix->lists.freqs, ix->section[GPUIR__S_FREQS]->length, (const void **)&v->freqs, err);
  if (!s) s = gc_upload(c, ix->lists.last, blocks * 4, (const void **)&v->last, err);
  if (!s) s = gc_upload(c, ix->lists.docs_off, blocks * 4, (const void **)&v->docs_off, err);
  if (!s) s = gc_upload(c, ix->lists.freqs_off, blocks * 4, (const void **)&v->freqs_off, err);
  if (!s) s = gc_upload(c, ix->lists.docs_width, blocks, (const void **)&v->docs_width, err);
  if (!s) s = gc_upload(c, ix->lists.freqs_width, blocks, (const void **)&v->freqs_width, err);
  return s;
}

/* Uploads all sections that the kernels read; coded: some lists have to be recoded. */
static int gc_upload_all(gpuir_cuda *c, int coded, gpuir_error *err) {
  const gpuir__segment *ix = c->ix;
  uint64_t blocks = ix->stat.blocks;
  gc_view *v = &c->view;
  int s = coded ? gc_recode_all(c, err) : gc_upload_streams(c, err);
  if (!s)
    s = gc_upload(c, ix->lists.bounds, blocks * GPUIR__BLOCK_PAIRS * sizeof(gpuir__pair), (const void **)&v->bounds,
        err);
  return s ? s : gc_upload_lengths(c, err);
}

/* Uploads the positions, if the index has any and `room` bytes hold them, and shapes the kernel that reads them. */
static int gc_upload_positions(gpuir_cuda *c, uint64_t room, gpuir_error *err) {
  const gpuir__index_lists *lists = &c->ix->lists;
  const uint64_t offsets = c->ix->stat.blocks * 4;
  uint64_t bytes;
  cudaFuncAttributes at;
  int shared, s;
  if (!lists->positions) return GPUIR_OK;
  bytes = c->ix->section[GPUIR__S_POSITIONS]->length;
  if (bytes > room || offsets + 2 * GC_PAD > room - bytes) return GPUIR_OK;
  GC_TRY(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, c->device),
      "asking for the device's properties");
  GC_TRY(cudaFuncGetAttributes(&at, gc_phrase_all), "loading the kernels");
  c->phrase_room = (size_t)shared - at.sharedSizeBytes;
  GC_TRY(cudaFuncSetAttribute(gc_phrase_all, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)c->phrase_room),
      "shaping a kernel");
  s = gc_upload(c, lists->positions_off, offsets, (const void **)&c->positions.offsets, err);
  return s ? s : gc_upload(c, lists->positions, bytes, (const void **)&c->positions.bytes, err);
}

/* Returns the bytes that the sections take on the device. */
static uint64_t gc_plain_bytes(const gpuir__segment *ix) {
  return ix->section[GPUIR__S_DOCIDS]->length + ix->section[GPUIR__S_FREQS]->length +
      ix->stat.blocks * GC_DIRECTORY_BYTES + ix->stat.documents * gc_length_bytes(ix) + 16 * 1024;
}

/* ---- guides and expanded lists ---- */

/* Chooses where each long list's marks go: 8 to 16 bits for a posting, or one for a document, and a third of that for
 * ranks. Returns the bytes that they take; 0: there is no memory. */
static uint64_t gc_lay_marks(gpuir_cuda *c, uint64_t *marks, gpuir_error *err) {
  const gpuir__segment *ix = c->ix;
  const uint32_t top = c->view.documents - 1;
  gpuir__saturation *table;
  size_t i;
  *marks = 0;
  c->guides = (gc_list_guide *)gpuir__alloc_zero(&c->a, (size_t)ix->stat.longs * sizeof *c->guides);
  table = (gpuir__saturation *)gpuir__alloc_zero(&c->a, sizeof *table);
  if (!c->guides || !table) {
    gpuir__free(&c->a, table, sizeof *table);
    (void)gpuir__fail_nomem(err);
    return 0;
  }
  gpuir__saturation_prepare(table, c->index->norm);
  for (i = 0; i < c->nlists; i++) {
    gc_term *t = &c->lists[i];
    gc_list_guide *guide = &c->guides[t->tile_row];
    gpuir__list l;
    memset(&l, 0, sizeof l);
    l.extent = &ix->lists.longs[t->tile_row];
    while (top >> guide->shift >= 2 * (uint64_t)GC_MARKS * t->df) guide->shift++;
    guide->most = gpuir__bound(t->weight, gpuir__list_saturation(table, &l), 1);
    guide->marks = *marks;
    *marks += (top >> guide->shift) / GC_CELLS + 1;
    t->marks = guide->marks;
    t->shift = guide->shift;
    t->most = guide->most;
    t->step = guide->most / GC_PEAK_MOST + 1;
  }
  gpuir__free(&c->a, table, sizeof *table);
  return *marks * sizeof(uint4) + 64;
}

/* Chooses where each long list's peaks go: at most `grain` eighths of one for a posting, and at least half as many, or
 * one for a document. Returns the lines that they take. */
static uint64_t gc_lay_peaks(gpuir_cuda *c, uint32_t grain) {
  const uint32_t top = c->view.documents - 1;
  uint64_t lines = 0;
  size_t i;
  for (i = 0; i < c->nlists; i++) {
    gc_term *t = &c->lists[i];
    gc_list_guide *guide = &c->guides[t->tile_row];
    guide->span = 0;
    while ((uint64_t)(top >> guide->span) * 8 >= (uint64_t)grain * t->df) guide->span++;
    guide->row = t->row = (uint32_t)lines;
    t->span = guide->span;
    lines += (top >> guide->span) / GC_PEAK_LINE + 1;
  }
  return lines;
}

/* If a list's blocks together span this many times all documents, the list is damaged: expanding it would walk through
 * all documents for each block. */
#define GC_DAMAGED 8

/* What is known of the long lists' blocks before they are expanded. */
typedef struct gc_shapes {
  uint2 *bases; /* as in gc_view */
  uint64_t wide;
  int damaged;
} gc_shapes;

/* Finds the base that each block's docIDs are relative to. */
static int gc_find_bases(gpuir_cuda *c, gc_shapes *shapes, gpuir_error *err) {
  const gpuir__segment *ix = c->ix;
  uint64_t g;
  size_t i;
  memset(shapes, 0, sizeof *shapes);
  shapes->bases = (uint2 *)gpuir__alloc_zero(&c->a, (size_t)ix->stat.blocks * sizeof(uint2));
  if (!shapes->bases) return gpuir__fail_nomem(err);
  for (i = 0; i < c->nlists; i++) {
    gc_term *t = &c->lists[i];
    const uint64_t before = shapes->wide;
    uint32_t start = 0;
    uint64_t documents = 0;
    for (g = t->first_block; g < t->first_block + t->nblocks; g++) {
      shapes->bases[g].x = start;
      if (ix->lists.last[g] - start > 65535) shapes->bases[g].y = (uint32_t)++shapes->wide;
      if (ix->lists.last[g] >= start) documents += ix->lists.last[g] - start;
      start = ix->lists.last[g] + 1;
    }
    shapes->damaged |= documents > GC_DAMAGED * ix->stat.documents;
    t->wide = shapes->wide == before + t->nblocks && shapes->wide < UINT32_MAX ? (uint32_t)before + 1 : 0;
    c->guides[t->tile_row].wide = t->wide;
  }
  return GPUIR_OK;
}

/* Allocates the guides and, with `full`, the expanded lists, and lets the device fill them. */
static int gc_expand_to(gpuir_cuda *c, const gc_shapes *shapes, uint64_t marks, uint64_t lines, int full,
    gpuir_error *err) {
  const gpuir__segment *ix = c->ix;
  const size_t blocks = (size_t)ix->stat.blocks;
  gc_view *v = &c->view;
  gc_expansion to;
  const void *lists;
  int s;
  memset(&to, 0, sizeof to);
  s = gc_upload(c, c->lists, c->nlists * sizeof *c->lists, &lists, err);
  if (!s) s = gc_device_alloc(c, blocks * 4, (void **)&to.most, err);
  if (!s) s = gc_device_alloc(c, (size_t)marks * sizeof(uint4), (void **)&to.guide.marks, err);
  if (!s) s = gc_device_alloc(c, (size_t)lines * GC_PEAK_BYTES, (void **)&to.guide.peaks, err);
  if (!s && full) s = gc_upload(c, shapes->bases, blocks * sizeof(uint2), (const void **)&to.bases, err);
  if (!s && full) s = gc_device_alloc(c, blocks * GPUIR__BLOCK * 2, (void **)&to.narrow, err);
  if (!s && full) s = gc_device_alloc(c, (size_t)shapes->wide * GPUIR__BLOCK * 4, (void **)&to.wide, err);
  if (!s && full) s = gc_device_alloc(c, blocks * GPUIR__BLOCK * 4, (void **)&to.impact, err);
  if (s) return s;
  GC_TRY(cudaMemset(to.guide.marks, 0, (size_t)marks * sizeof(uint4)), "expanding the lists");
  GC_TRY(cudaMemset(to.guide.peaks, 0, (size_t)lines * GC_PEAK_BYTES), "expanding the lists");
  gc_expand<<<(unsigned)c->processors * 8, 256>>>(*v, (const gc_term *)lists, (uint32_t)c->nlists, blocks, to,
      c->index->norm.a, c->index->norm.b);
  GC_TRY(cudaGetLastError(), "expanding the lists");
  GC_TRY(cudaDeviceSynchronize(), "expanding the lists");
  v->narrow = to.narrow;
  v->wide = to.wide;
  v->impact = to.impact;
  v->most = to.most;
  v->bases = to.bases;
  v->marks = to.guide.marks;
  v->peaks = to.guide.peaks;
  c->expanded = full;
  c->lists_there = (const gc_term *)lists;
  return GPUIR_OK;
}

/* Expands the long lists if `room` bytes hold them; otherwise makes only their guides, if it holds those. Half of what
 * is left goes into finer peaks. */
static int gc_expand_all(gpuir_cuda *c, uint64_t room, gpuir_error *err) {
  const uint64_t blocks = c->ix->stat.blocks;
  uint64_t marks, lines, guides, expanded;
  uint32_t grain = GC_PEAKS;
  gc_shapes shapes;
  int full, s;
  if (!c->nlists) return GPUIR_OK;
  guides = gc_lay_marks(c, &marks, err);
  if (!guides) return GPUIR_E_NOMEM;
  s = gc_find_bases(c, &shapes, err);
  if (s) return s;
  guides += 8192 + blocks * 4 + c->nlists * sizeof(gc_term);
  expanded = blocks * (sizeof(uint2) + GPUIR__BLOCK * 6) + shapes.wide * GPUIR__BLOCK * 4;
  lines = gc_lay_peaks(c, 1);
  if (guides + lines * GC_PEAK_BYTES > room || shapes.damaged) {
    gpuir__free(&c->a, c->guides, (size_t)c->ix->stat.longs * sizeof *c->guides);
    c->guides = NULL;
  } else {
    full = expanded + guides + lines * GC_PEAK_BYTES <= room && shapes.wide < UINT32_MAX - 1;
    room -= guides + (full ? expanded : 0);
    while ((lines = gc_lay_peaks(c, grain)) * GC_PEAK_BYTES > room / 2 && grain > 1) grain /= 2;
    s = gc_expand_to(c, &shapes, marks, lines, full, err);
  }
  gpuir__free(&c->a, shapes.bases, (size_t)blocks * sizeof(uint2));
  return s;
}

/* ---- the device's limits and the kernels' shapes ---- */

/* Fills in a device's name, versions, capability and memory. It refuses a device that is not there or too old. */
static int gc_device_info(int device, cudaDeviceProp *p, gpuir_cuda_info *info, gpuir_error *err) {
  int devices = 0;
  GC_TRY(cudaGetDeviceCount(&devices), "counting devices");
  if (device < 0 || device >= devices)
    return gpuir__fail(err, GPUIR_E_BACKEND, 0, "CUDA: there is no device %d among %d", device, devices);
  GC_TRY(cudaGetDeviceProperties(p, device), "asking for the device's properties");
  if (p->major < 8)
    return gpuir__fail(err, GPUIR_E_BACKEND, 0, "CUDA: %s has compute capability %d.%d, 8.0 is needed", p->name,
        p->major, p->minor);
  (void)snprintf(info->device, sizeof info->device, "%.63s", p->name);
  info->compute_capability = p->major * 10 + p->minor;
  info->device_memory = p->totalGlobalMem;
  GC_TRY(cudaDriverGetVersion(&info->driver_version), "asking for the driver's version");
  GC_TRY(cudaRuntimeGetVersion(&info->runtime_version), "asking for the runtime's version");
  return GPUIR_OK;
}

typedef void (*gc_or_kernel)(gc_view, gc_launch_view);

/* Chooses the size of tiles, such that two blocks of threads fit on a multiprocessor. */
static int gc_shape_or(gpuir_cuda *c, int expanded, gpuir_error *err) {
  const gc_or_kernel kernel = expanded ? gc_or<true> : gc_or<false>;
  const uint64_t n = c->view.documents;
  cudaFuncAttributes at;
  uint64_t tile, most;
  int blocks = 0, processor, block;
  GC_TRY(cudaDeviceGetAttribute(&processor, cudaDevAttrMaxSharedMemoryPerMultiprocessor, c->device),
      "asking for the device's properties");
  GC_TRY(cudaDeviceGetAttribute(&block, cudaDevAttrMaxSharedMemoryPerBlockOptin, c->device),
      "asking for the device's properties");
  GC_TRY(cudaFuncGetAttributes(&at, kernel), "loading the kernels (is this GPU among those it was compiled for?)");
  most = gpuir__min64((uint64_t)processor / 2 - 1024, (uint64_t)block) - at.sharedSizeBytes;
  tile = (n / 512 + 1023) / 1024 * 1024; /* enough tiles for all multiprocessors; but each costs less if it is large */
  tile = gpuir__max64(2048, gpuir__min64(tile, GC_TILE_MOST));
  while (gc_tile_bytes(tile) > most) tile -= 1024;
  c->view.tile = (uint32_t)tile;
  c->view.ntiles = (uint32_t)((n + tile - 1) / tile);
  /* The kernel may take all shared memory: it serves the device's other indexes too, whose tiles have other sizes. */
  GC_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most), "shaping a kernel");
  GC_TRY(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, (int)GC_OR_THREADS(expanded), gc_tile_bytes(tile)),
      "shaping a kernel");
  c->grids.ors = (unsigned)(c->processors * (blocks > 0 ? blocks : 1));
  return GPUIR_OK;
}

/* Finds how many blocks of threads of a kernel fill the device. */
static int gc_grid_of(const gpuir_cuda *c, const void *kernel, unsigned threads, size_t shared, unsigned *grid,
    gpuir_error *err) {
  int blocks = 0;
  GC_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, (int)threads, shared), "shaping a kernel");
  *grid = (unsigned)(c->processors * (blocks > 0 ? blocks : 1));
  return GPUIR_OK;
}

/* Finds the device's limits, and the shapes of the other kernels. */
static int gc_shape(gpuir_cuda *c, gpuir_error *err) {
  cudaDeviceProp p;
  cudaFuncAttributes at;
  int most, s = gc_device_info(c->device, &p, &c->info, err);
  if (s) return s;
  GC_TRY(cudaDeviceGetStreamPriorityRange(NULL, &c->ahead), "asking for priorities");
  c->processors = p.multiProcessorCount;
  c->view.documents = (uint32_t)c->ix->stat.documents;
  s = gc_grid_of(c, (const void *)gc_and_decoding, GC_AND_THREADS, 0, &c->grids.ands, err);
  if (!s) s = gc_grid_of(c, (const void *)gc_and_guided, GC_GUIDED_THREADS, 0, &c->grids.guided, err);
  if (!s) s = gc_grid_of(c, (const void *)gc_max, GC_GUIDED_THREADS, 0, &c->grids.maxs, err);
  if (!s) s = gc_grid_of(c, (const void *)gc_alone, GC_GUIDED_THREADS, 0, &c->grids.alone, err);
  if (s) return s;
  if (c->info.compute_capability >= 90) { /* loads them now: otherwise the first queries would wait for that */
    GC_TRY(cudaFuncGetAttributes(&at, gc_prompt<false>), "loading the kernels");
    GC_TRY(cudaFuncGetAttributes(&at, gc_prompt<true>), "loading the kernels");
  }
  GC_TRY(cudaFuncGetAttributes(&at, gc_final), "loading the kernels");
  most = (int)p.sharedMemPerBlockOptin - (int)at.sharedSizeBytes;
  for (c->k_most = 1024; c->k_most < 16384 && (int)c->k_most * 16 <= most; c->k_most *= 2) {}
  GC_TRY(cudaFuncSetAttribute(gc_final, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)c->k_most * 8),
      "shaping a kernel");
  if (c->k_most > GC_K_MOST) c->k_most = GC_K_MOST;
  return GPUIR_OK;
}

/* ---- how much of everything a searcher needs ---- */

/* The sizes of launches of so many queries. */
typedef struct gc_sizes {
  size_t queries, njobs, nterms, ntile_rows, nbound_tasks; /* at most in a launch; ntile_rows: of the tile arrays */
  size_t ndrives; /* entries of gc_maxs.drives */
  size_t ntokens; /* of phrases; 0: the index has no positions */
  uint64_t ncand; /* candidates */
  uint64_t tiles; /* of the index, plus one */
  uint64_t host, staging, device; /* bytes */
} gc_sizes;

/* Returns the sizes of launches of so many queries. */
static gc_sizes gc_sizes_of(const gpuir_cuda *c, size_t queries) {
  const gc_view *v = &c->view;
  const uint64_t bound_tasks = v->documents / (GPUIR__BLOCK * GC_BOUND_BLOCKS);
  gc_sizes z;
  uint64_t each;
  z.tiles = (uint64_t)v->ntiles + 1;
  each = 8 * z.tiles;
  z.queries = queries;
  z.njobs = (size_t)gpuir__max64(2, gpuir__min64(2 * (uint64_t)queries, (1u << 30) / each));
  z.ntile_rows = z.nterms = (size_t)gpuir__max64(2 * GPUIR_MAX_TERMS, 8 * (uint64_t)queries);
  z.ntile_rows = (size_t)gpuir__max64(GPUIR_MAX_TERMS, gpuir__min64(z.ntile_rows, (1u << 30) / each));
  z.nbound_tasks =
      (size_t)gpuir__max64(z.ntile_rows + gpuir__max64(GPUIR_MAX_TERMS, 8 * (uint64_t)queries) * (1 + bound_tasks / 4),
          GPUIR_MAX_TERMS * (2 + bound_tasks));
  z.ncand = gpuir__max64(2 * 16 * GC_K_MOST, (uint64_t)z.njobs * 8192);
  z.host = z.nterms * (sizeof(gc_term) + 8 + sizeof(gc_sum_list)) +
      z.njobs * (sizeof(gc_job) + 16 + sizeof(gc_sum_job) + GC_TURNS * (sizeof(gc_turn) + 4)) +
      z.nbound_tasks * sizeof(gc_bound_task) + queries * (sizeof(uint2) + 4) + sizeof(gc_wanted) + 4096;
  z.ntokens = c->ix->lists.positions ? 2 * z.nterms + (GPUIR_MAX_TERMS + 2) * GPUIR_MAX_TERMS : 0;
  if (z.ntokens)
    z.host += z.ntokens + z.nterms * (sizeof(gc_stored_positions) + sizeof(gc_clause)) +
        z.njobs * (sizeof(gc_phrase_job) + 4);
  z.staging = z.host + z.njobs * sizeof(gc_state);
  z.ndrives = GC_ROUNDS * z.nterms;
  z.device = z.staging + z.ntile_rows * each + z.njobs * each + z.ncand * 8 + z.ndrives * (sizeof(gc_drive) + 4) +
      sizeof(gc_alone_state) + 4096;
  if (c->slices.ntiles) z.device += z.ntile_rows * ((uint64_t)c->slices.ntiles + 1) * 4;
  return z;
}

/* Returns the sizes of the largest launch whose memory takes at most half of what is left, if there is one. A searcher
 * has memory for one launch until it needs a second one. */
static gc_sizes gc_sizes_within(const gpuir_cuda *c, uint64_t left) {
  size_t queries = c->batch;
  gc_sizes z = gc_sizes_of(c, queries);
  while (queries > 1 && z.device > left / 2) z = gc_sizes_of(c, queries /= 2);
  return z;
}

/* Returns the device memory that the bound leaves. */
static uint64_t gc_left(const gpuir_cuda *c) {
  uint64_t used = __atomic_load_n(&c->info.used_memory, __ATOMIC_RELAXED);
  return used < c->room ? c->room - used : 0;
}

/* ---- slices ---- */

#define GC_CUT_LEAST 64u /* postings for a tile at least, of a list that is cut */

/* Chooses the tiles of slices, and the lists to be cut: those with GC_CUT_LEAST postings for a tile. Returns how
 * many. */
static uint32_t gc_choose_cut(gpuir_cuda *c, uint32_t *cut) {
  gc_slices *to = &c->slices;
  uint32_t n = 0;
  size_t i;
  for (to->tile = 2048; to->tile < GC_CUT_MOST && c->view.documents / 512 > to->tile; to->tile *= 2) {}
  to->ntiles = (c->view.documents - 1) / to->tile + 1;
  for (i = 0; i < c->nlists; i++)
    if (c->lists[i].df / GC_CUT_LEAST >= to->ntiles) {
      cut[n++] = (uint32_t)i;
      c->lists[i].cut = c->guides[c->lists[i].tile_row].cut = n;
    }
  return n;
}

/* Turns the counts of strips into where each slice begins. Both are [list][ntiles + 1] on the device, with 0 at the end
 * of each row. *total: how many strips there are. */
static int gc_place_strips(gpuir_cuda *c, uint32_t *there, size_t ncut, uint64_t *total, gpuir_error *err) {
  const size_t n = ncut * ((size_t)c->slices.ntiles + 1);
  uint32_t *starts = (uint32_t *)gpuir__alloc(&c->a, n * 4);
  cudaError_t e;
  size_t i;
  *total = 0;
  if (!starts) return gpuir__fail_nomem(err);
  e = GC_CALL(cudaMemcpy(starts, there, n * 4, cudaMemcpyDeviceToHost));
  for (i = 0; e == cudaSuccess && i < n; i++) {
    const uint32_t count = starts[i];
    starts[i] = (uint32_t)*total;
    *total += count;
  }
  if (e == cudaSuccess) e = GC_CALL(cudaMemcpy(there, starts, n * 4, cudaMemcpyHostToDevice));
  gpuir__free(&c->a, starts, n * 4);
  return e == cudaSuccess ? GPUIR_OK : gc_fail(err, e, "cutting lists");
}

/* Lets the device fill the slices. */
static int gc_fill_slices(gpuir_cuda *c, const uint32_t *cut, uint32_t ncut, uint8_t *strips, gpuir_error *err) {
  gc_cut_lists<<<(unsigned)c->processors * 16, GC_CUT_THREADS>>>(c->view, c->lists_there, cut, ncut, c->slices, strips);
  GC_TRY(cudaGetLastError(), "cutting lists");
  GC_TRY(cudaDeviceSynchronize(), "cutting lists");
  c->slices.strips = strips;
  GC_TRY(cudaFuncSetAttribute(gc_sum_tiles, cudaFuncAttributeMaxDynamicSharedMemorySize, GC_CUT_MOST * 4),
      "shaping a kernel");
  return gc_grid_of(c, (const void *)gc_sum_tiles, GC_SUM_THREADS, (size_t)c->slices.tile * 4, &c->grids.sums, err);
}

/* Cuts the chosen lists, if `room` bytes hold their slices. */
static int gc_cut_chosen(gpuir_cuda *c, const uint32_t *chosen, uint32_t ncut, uint64_t room, gpuir_error *err) {
  const size_t table = (size_t)ncut * (c->slices.ntiles + 1) * 4, more = table + ncut * 4 + 4096;
  void *cut, *starts, *strips;
  uint64_t n;
  int s;
  if (more > room || table / 4 >= UINT32_MAX || c->ix->stat.blocks >= UINT32_MAX / GPUIR__BLOCK) return GPUIR_OK;
  s = gc_device_alloc(c, ncut * 4, &cut, err);
  if (!s) s = gc_device_alloc(c, table, &starts, err);
  if (s) return s;
  GC_TRY(cudaMemcpy(cut, chosen, ncut * 4, cudaMemcpyHostToDevice), "cutting lists");
  GC_TRY(cudaMemset(starts, 0, table), "cutting lists"); /* the end of each row too */
  gc_count_strips<<<(unsigned)c->processors * 16, GC_CUT_THREADS>>>(c->view, c->lists_there, (const uint32_t *)cut,
      ncut, c->slices, (uint32_t *)starts);
  GC_TRY(cudaGetLastError(), "cutting lists");
  s = gc_place_strips(c, (uint32_t *)starts, ncut, &n, err);
  if (s) return s;
  if (n >= UINT32_MAX || n * GC_STRIP + more > room) {
    gc_free(c, starts, table);
    gc_free(c, cut, ncut * 4);
    c->nmemory -= 2;
    return GPUIR_OK;
  }
  s = gc_device_alloc(c, (size_t)n * GC_STRIP, &strips, err);
  if (s) return s;
  c->slices.starts = (const uint32_t *)starts;
  return gc_fill_slices(c, (const uint32_t *)cut, ncut, (uint8_t *)strips, err);
}

#ifdef GPUIR_CUDA_SEAM
int gpuir_cuda_seam_uncut; /* 1: no list is cut into slices */
#define GC_UNCUT gpuir_cuda_seam_uncut
#else
#define GC_UNCUT 0
#endif

/* Cuts long lists into slices, if all of them are expanded and the bound leaves room for the slices. */
static int gc_cut_all(gpuir_cuda *c, gpuir_error *err) {
  uint32_t *chosen;
  uint64_t searcher, left;
  uint32_t n;
  int s = GPUIR_OK;
  if (!c->expanded || !c->nlists || GC_UNCUT) return GPUIR_OK;
  chosen = (uint32_t *)gpuir__alloc(&c->a, c->nlists * 4);
  if (!chosen) return gpuir__fail_nomem(err);
  n = gc_choose_cut(c, chosen);
  left = gc_left(c);
  searcher = gc_sizes_of(c, c->batch).device;
  if (n && left > searcher) s = gc_cut_chosen(c, chosen, n, left - searcher, err);
  if (!c->slices.strips) {
    memset(&c->slices, 0, sizeof c->slices);
    while (n--) c->lists[chosen[n]].cut = c->guides[c->lists[chosen[n]].tile_row].cut = 0;
  }
  gpuir__free(&c->a, chosen, c->nlists * 4);
  return s;
}

/* ---- opening ---- */

/* Prepares the terms of long lists, as far as there is memory: a query then copies them, and opens no list. */
static void gc_know(gpuir_cuda *c) {
  const gpuir__index_lists *lists = &c->ix->lists;
  size_t i;
  c->known = (gc_known *)gpuir__alloc_zero(&c->a, (size_t)c->ix->stat.longs * sizeof *c->known);
  for (i = 0; c->known && i < c->nlists; i++) {
    gc_known *k = &c->known[c->lists[i].tile_row];
    const uint64_t seeds = lists->longs[c->lists[i].tile_row].seeds;
    k->term = c->lists[i];
    k->term.tile_row = 0;
    if (seeds && seeds <= lists->nseeds) memcpy(k->seeds, lists->seeds + (seeds - 1) * GPUIR__SEEDS, sizeof k->seeds);
  }
}

/* Returns whether any list is in another codec than bp128. */
static int gc_any_coded(const gpuir__segment *ix) {
  gpuir__walk w;
  for (gpuir__walk_start(&w, ix); gpuir__walk_next(&w);) {
    const gpuir__record *r = &w.record;
    if (r->df > 1 && (r->codec != GPUIR__ID_BP128 || r->freq_codec != GPUIR__ID_BP128)) return 1;
  }
  return 0;
}

/* Puts all of the index on the device. */
static int gc_open_whole(gpuir_cuda *c, int coded, gpuir_error *err) {
  uint64_t searcher = gc_sizes_of(c, c->batch).device, left;
  int status = gc_upload_all(c, coded, err);
  if (!status) status = gc_collect(c, err);
  if (status) return status;
  left = gc_left(c);
  if (coded && left < gc_sizes_of(c, 1).device) {
    c->refused = 1;
    return gpuir__fail(err, GPUIR_E_NOMEM, 0, "CUDA: the index leaves no memory for a searcher");
  }
  if (left > searcher) status = gc_upload_positions(c, left - searcher, err);
  if (status) return status;
  left = gc_left(c);
  c->info.index_bytes = c->info.resident_bytes;
  if (left > searcher) status = gc_expand_all(c, left - searcher, err);
  if (!status && !c->expanded) status = gc_shape_or(c, 0, err);
  if (!status) status = gc_cut_all(c, err);
  c->info.resident_bytes = c->info.index_bytes; /* guides, expanded lists and slices do not count */
  if (!status) gc_know(c);
  if (!status) GC_TRY(cudaDeviceSynchronize(), "uploading the index");
  return status;
}

/* Puts the documents' lengths on the device, and makes a cache of lists. */
static int gc_open_cached(gpuir_cuda *c, gpuir_error *err) {
  uint64_t left, searcher;
  int status = gc_shape_or(c, 0, err);
  if (!status) status = gc_upload_lengths(c, err);
  if (status) return status;
  c->info.index_bytes = c->info.resident_bytes + c->ix->stat.blocks * GC_DIRECTORY_BYTES +
      c->ix->section[GPUIR__S_DOCIDS]->length + c->ix->section[GPUIR__S_FREQS]->length;
  left = gc_left(c);
  searcher = gc_sizes_within(c, left / 4).device;
  if (searcher <= left / 4) searcher *= searcher <= left / 32 ? 5 : 2; /* for two searchers, with two launches each */
  status = gc_cache_open(c, left - gpuir__min64(left, searcher), err);
  if (status) return status;
  GC_TRY(cudaDeviceSynchronize(), "clearing the slab"); /* searchers' streams do not wait for the default one */
  return GPUIR_OK;
}

/* Frees all that was made of the index. */
GPUIR__COLD static void gc_release_index(gpuir_cuda *c) {
  const gpuir__segment *ix = c->ix;
  size_t i;
  gc_cache_close(c);
  while (c->nmemory) (void)cudaFree(c->memory[--c->nmemory]);
  for (i = 0; i < c->recoded.len / sizeof(void *); i++) {
    void *p;
    memcpy(&p, c->recoded.data + i * sizeof p, sizeof p);
    (void)cudaFree(p);
  }
  (void)cudaGetLastError();
  gpuir__buf_free(&c->a, &c->recoded);
  gpuir__free(&c->a, c->places, (size_t)ix->stat.terms * sizeof *c->places);
  gpuir__free(&c->a, c->lists, (size_t)ix->stat.longs * sizeof *c->lists);
  gpuir__free(&c->a, c->guides, (size_t)ix->stat.longs * sizeof *c->guides);
  gpuir__free(&c->a, c->known, (size_t)ix->stat.longs * sizeof *c->known);
  c->places = NULL;
  c->lists = NULL;
  c->guides = NULL;
  c->known = NULL;
  memset(&c->positions, 0, sizeof c->positions);
  memset(&c->slices, 0, sizeof c->slices);
  c->info.used_memory = c->info.resident_bytes = 0;
}

/* Puts the index on the device, or as much of it as the memory bound allows. */
GPUIR__COLD static int gc_open(gpuir_cuda *c, const gpuir_cuda_desc *desc, gpuir_error *err) {
  uint64_t plain = gc_plain_bytes(c->ix), room = desc ? desc->memory : 0;
  size_t free_bytes, all_bytes;
  int status, coded = gc_any_coded(c->ix);
  GC_TRY(cudaSetDevice(c->device), "choosing the device");
  GC_TRY(cudaFree(NULL), "starting the device");
  status = gc_shape(c, err);
  if (!status) status = gc_shape_or(c, 1, err);
  if (status) return status;
  if (c->ix->stat.blocks >= UINT32_MAX)
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "CUDA: more than 2^32-2 blocks");
  GC_TRY(cudaMemGetInfo(&free_bytes, &all_bytes), "asking for free memory");
  if (!room || room > free_bytes / 10 * 9) room = free_bytes / 10 * 9;
  c->room = room;
  c->info.index_bytes = plain;
  if (plain + gc_sizes_of(c, 1).device <= room) {
    status = gc_open_whole(c, coded, err);
    if (!status || !coded || !c->refused) return status;
    gc_release_index(c); /* it does not fit as bp128 */
  }
  return gc_open_cached(c, err);
}

#pragma GCC pop_options
