
/* ========================
 * [cuda-23-live]  host: snapshots of several segments, or with deletions, on one device
 *
 * What the device has of a segment does not depend on a snapshot. It is made once; a later snapshot that has the same
 * segment shares it, so that only new segments are uploaded. A snapshot is answered as the parts of a team are: each
 * segment that has documents is a member. Queries bring the snapshot's N, df and average length in their weights and
 * norms. The segment's own contributions and bounds are not valid under these: where that is cheap, the device computes
 * them anew for each snapshot; otherwise queries are asked as under other k1 and b than the stored ones. A segment's
 * seeds are never used. Deleted documents are a bitmap of the snapshot. If a segment has one, its lists are decoded in
 * place, and each document's bit is tested before the document is scored.
 *
 * Uses      [cuda-05-expand], [cuda-14-memory], [cuda-17-open], [cuda-19-launch], [cuda-20-partition].
 * Start at  gl_open.
 * Tests     tests/gpu/test_team.c (without a device), tests/gpu/test_cuda.c
 * ======================*/

#define GL_LEAST ((uint64_t)256 << 20) /* bytes that a segment may take at least, if there is so much memory */

/* Gives up a snapshot's use of a segment. The last one frees it. */
static void gl_release(gl_resident *r) {
  gpuir_allocator a;
  if (!r || __atomic_sub_fetch(&r->refs, 1, __ATOMIC_ACQ_REL)) return;
  a = r->alone->a;
  gc_close_device(r->cuda);
  r->alone->calls->index_close(r->alone);
  gpuir__free(&a, r, sizeof *r);
}

/* Frees what the members of a live team have; gt_close frees the rest. */
static void gl_close_members(gt_team *t) {
  unsigned i;
  for (i = 0; i < t->n; i++) {
    gt_device *d = &t->devices[i];
    if (d->cuda) {
      const size_t longs = (size_t)d->cuda->ix->stat.longs;
      (void)cudaSetDevice(d->cuda->device);
      while (d->cuda->nmemory) (void)cudaFree(d->cuda->memory[--d->cuda->nmemory]);
      gpuir__free(&t->a, d->lists, longs * sizeof *d->lists);
      gpuir__free(&t->a, d->guides, longs * sizeof *d->guides);
      gpuir__free(&t->a, d->known, longs * sizeof *d->known);
      gpuir__free(&t->a, d->cuda, sizeof *d->cuda);
    }
    gl_release(d->resident);
    d->cuda = NULL;
    d->resident = NULL;
  }
}

/* Makes an index of a leaf, with the snapshot's deletions or without them. */
static int gl_index(const gpuir_index *ix, const gpuir__leaf *leaf, int deletions, gpuir_index **index,
    gpuir_error *err) {
  gpuir__leaf one = {gpuir__segment_retain(leaf->seg), deletions ? gpuir__deleted_retain(leaf->deleted) : NULL, 0};
  return gt_make_index(ix, ix->path, &one, index, err);
}

/* Finds a segment among those that another snapshot has on the device. NULL: it is not there. */
static gl_resident *gl_find(const gpuir_cuda *share, const gpuir__segment *seg, int device) {
  const gt_team *t = share ? share->team : NULL;
  unsigned i;
  for (i = 0; t && t->live && i < t->n; i++) {
    gl_resident *r = t->devices[i].resident;
    if (!r || !r->cuda || r->hash != gpuir__segment_hash(seg) || r->size != seg->size || r->cuda->device != device)
      continue;
    (void)__atomic_add_fetch(&r->refs, 1, __ATOMIC_RELAXED);
    return r;
  }
  return NULL;
}

/* Puts a segment on the device, in at most `memory` bytes. */
static int gl_upload(const gpuir_index *ix, const gpuir__leaf *leaf, const gpuir_cuda_desc *desc, uint64_t memory,
    gl_resident **resident, gpuir_error *err) {
  gl_resident *r = (gl_resident *)gpuir__alloc_zero(&ix->a, sizeof *r);
  gpuir_cuda_desc one = *desc;
  int status;
  if (!r) return gpuir__fail_nomem(err);
  r->refs = 1;
  r->hash = gpuir__segment_hash(leaf->seg);
  r->size = leaf->seg->size;
  status = gl_index(ix, leaf, 0, &r->alone, err);
  if (status) {
    gpuir__free(&ix->a, r, sizeof *r);
    return status;
  }
  one.memory = memory;
  if (GT_DEVICES) status = gc_open_device(r->alone, &one, &r->cuda, err);
  if (!status && r->cuda && r->cuda->cache)
    status = gpuir__fail(err, GPUIR_E_NOMEM, 0, "CUDA: a segment of the snapshot needs more memory than is allowed");
  if (status) gl_release(r);
  else *resident = r;
  return status;
}

/* ---- contributions under a snapshot's statistics ---- */

#define GL_LOOKUPS ((uint64_t)4 << 20) /* look-ups of terms in other segments at most */
#define GL_COUNTED ((uint64_t)64 << 20) /* postings at most that are decoded to count those of deleted documents */

#ifdef GPUIR_CUDA_SEAM
int gpuir_cuda_seam_unweighed; /* 1: no list is weighed by a snapshot */
#define GC_UNWEIGHED gpuir_cuda_seam_unweighed
#else
#define GC_UNWEIGHED 0
#endif

/* Returns whether weighing all long lists of a segment by the snapshot is worth the time. If not, each query computes
 * its postings' contributions. */
static int gl_is_cheap(const gpuir_index *ix, const gpuir_cuda *c) {
  uint64_t counted = 0;
  size_t i;
  for (i = 0; i < ix->nleaves; i++)
    if (ix->leaves[i].deleted) counted += ix->leaves[i].seg->stat.postings;
  return c->nlists * (uint64_t)ix->nleaves <= GL_LOOKUPS && counted <= GL_COUNTED && !GC_UNWEIGHED;
}

/* Adds the live documents of a leaf that hold a term to *df. */
static int gl_count(const gpuir__calls *calls, const gpuir__leaf *leaf, const char *term, size_t len, uint64_t *df) {
  const gpuir__segment *seg = leaf->seg;
  gpuir__record r;
  gpuir__list l;
  uint64_t id;
  uint32_t held;
  int status;
  if (calls->term_find(seg, term, len, &id)) return GPUIR_OK;
  gpuir__record_get(seg, id, &r);
  if (!leaf->deleted) {
    *df += gpuir__min64(r.df, seg->stat.documents);
    return GPUIR_OK;
  }
  status = gt_open_list(calls, seg, &seg->a, &r, &l);
  if (status) return status;
  held = gpuir__deleted_count(leaf->deleted, &l);
  *df += l.df - gpuir__min32(held, l.df);
  gpuir__list_close(&seg->a, &l);
  return GPUIR_OK;
}

/* Weighs the long lists of a member's segment by the snapshot, and bounds what their postings contribute. */
static int gl_weigh(const gpuir_index *ix, gpuir_cuda *c, const gpuir__saturation *table) {
  gpuir__walk w;
  size_t n = 0, i;
  for (gpuir__walk_start(&w, c->ix); gpuir__walk_next(&w) && n < c->nlists;) {
    uint64_t df = 0;
    gpuir__list l;
    gc_term *t;
    gc_list_guide *guide;
    int status = GPUIR_OK;
    if (w.record.df <= GPUIR__SHORT_MAX) continue;
    for (i = 0; i < ix->nleaves && !status; i++)
      status = gl_count(ix->calls, &ix->leaves[i], (const char *)w.term, w.len, &df);
    if (status) return status;
    t = &c->lists[n++];
    guide = &c->guides[t->tile_row];
    memset(&l, 0, sizeof l);
    l.extent = &c->ix->lists.longs[t->tile_row];
    t->weight = gpuir__weight(gpuir__idf(ix->collection, (uint32_t)gpuir__min64(df, ix->collection)), c->ix->stat.k1);
    t->most = guide->most = gpuir__bound(t->weight, gpuir__list_saturation(table, &l), 1);
    t->step = guide->most / GC_PEAK_MOST + 1;
    t->cut = guide->cut = 0;
  }
  return GPUIR_OK;
}

/* Lets the device compute a member's contributions and peaks anew. It writes marks and docIDs too, which it shares with
 * the segment, but with the values that they have. */
static int gl_expand(const gpuir_index *ix, gpuir_cuda *c, gpuir_error *err) {
  const gc_term *end = &c->lists[c->nlists - 1];
  const uint64_t blocks = c->ix->stat.blocks,
                 lines = end->row + ((c->view.documents - 1) >> end->span) / GC_PEAK_LINE + 1;
  gc_view *v = &c->view;
  gc_expansion to;
  const void *lists;
  int s;
  memset(&to, 0, sizeof to);
  to.guide.marks = (uint4 *)v->marks;
  to.bases = v->bases;
  to.narrow = (uint16_t *)v->narrow;
  to.wide = (uint32_t *)v->wide;
  s = gc_upload(c, c->lists, c->nlists * sizeof *c->lists, &lists, err);
  if (!s) s = gc_device_alloc(c, (size_t)blocks * 4, (void **)&to.most, err);
  if (!s) s = gc_device_alloc(c, (size_t)lines * GC_PEAK_BYTES, (void **)&to.guide.peaks, err);
  if (!s && c->expanded) s = gc_device_alloc(c, (size_t)blocks * GPUIR__BLOCK * 4, (void **)&to.impact, err);
  if (s) return s;
  GC_TRY(cudaMemset(to.guide.peaks, 0, (size_t)lines * GC_PEAK_BYTES), "expanding the lists");
  gc_expand<<<(unsigned)c->processors * 8, 256>>>(*v, (const gc_term *)lists, (uint32_t)c->nlists, blocks, to,
      ix->norm.a, ix->norm.b);
  GC_TRY(cudaGetLastError(), "expanding the lists");
  GC_TRY(cudaDeviceSynchronize(), "expanding the lists");
  v->impact = to.impact;
  v->most = to.most;
  v->peaks = to.guide.peaks;
  c->lists_there = (const gc_term *)lists;
  return GPUIR_OK;
}

/* Returns whether the bound leaves a member memory for this beside two launches. */
static int gl_has_room(const gpuir_cuda *c) {
  const gc_term *end = &c->lists[c->nlists - 1];
  const uint64_t lines = end->row + ((c->view.documents - 1) >> end->span) / GC_PEAK_LINE + 1;
  const uint64_t bytes = c->ix->stat.blocks * (4 + (c->expanded ? GPUIR__BLOCK * 4 : 0)) + lines * GC_PEAK_BYTES +
      c->nlists * sizeof *c->lists + 4096;
  const uint64_t left = gc_left(c);
  return left > bytes && left - bytes > 2 * gc_sizes_of(c, c->batch).device;
}

/* Clears the seeds, which are the segment's own. */
static void gl_forget_seeds(gpuir_cuda *c) {
  size_t i;
  for (i = 0; i < c->nlists; i++) {
    gc_known *k = &c->known[c->lists[i].tile_row];
    memset(k->seeds, 0, sizeof k->seeds);
  }
}

/* Gives a member, whose segment has no deletions, contributions, bounds and weights of its lists under the snapshot's
 * statistics, if that is cheap: then d->weighed becomes 1. */
static int gl_derive(const gpuir_index *ix, gt_device *d, gpuir_error *err) {
  gpuir_cuda *c = d->cuda;
  const size_t longs = (size_t)c->ix->stat.longs;
  gpuir__saturation *table;
  int status;
  if (c->view.deleted || !c->guides || !c->nlists || !gl_is_cheap(ix, c) || !gl_has_room(c)) return GPUIR_OK;
  table = (gpuir__saturation *)gpuir__alloc_zero(&c->a, sizeof *table);
  d->lists = (gc_term *)gpuir__alloc(&c->a, longs * sizeof *d->lists);
  d->guides = (gc_list_guide *)gpuir__alloc(&c->a, longs * sizeof *d->guides);
  if (!table || !d->lists || !d->guides) {
    gpuir__free(&c->a, table, sizeof *table);
    return gpuir__fail_nomem(err);
  }
  memcpy(d->lists, c->lists, longs * sizeof *d->lists);
  memcpy(d->guides, c->guides, longs * sizeof *d->guides);
  c->lists = d->lists;
  c->guides = d->guides;
  gpuir__saturation_prepare(table, ix->norm);
  status = gl_weigh(ix, c, table);
  gpuir__free(&c->a, table, sizeof *table);
  if (status) return gpuir__fail(err, status, 0, "%s: cannot open a list: %s", ix->path, gpuir_strerror(status));
  status = gl_expand(ix, c, err);
  if (status) return status;
  c->info.resident_bytes = c->info.index_bytes; /* what was made of the index does not count */
  gc_know(c);
  d->known = c->known;
  if (!c->known) return gpuir__fail_nomem(err);
  gl_forget_seeds(c);
  memset(&c->slices, 0, sizeof c->slices);
  d->weighed = 1;
  return GPUIR_OK;
}

/* ---- opening ---- */

/* Gives a member what it answers with: the segment on the device, and the snapshot's deletions. */
static int gl_member(const gpuir_index *ix, gt_device *d, uint64_t room, gpuir_error *err) {
  const gpuir__deleted *deleted = d->part->leaves[0].deleted;
  gpuir_cuda *c;
  size_t n;
  int status;
  if (!d->resident->cuda) return GPUIR_OK;
  c = (gpuir_cuda *)gpuir__alloc(&d->part->a, sizeof *c);
  if (!c) return gpuir__fail_nomem(err);
  *c = *d->resident->cuda;
  d->cuda = c;
  c->index = d->part;
  c->room = room;
  c->info.used_memory = c->info.queries = c->info.batches = c->info.lists_hit = 0;
  c->info.plan_ns = c->info.send_ns = c->info.wait_ns = c->info.deliver_ns = 0;
  c->nmemory = 0;
  GC_TRY(cudaSetDevice(c->device), "choosing the device");
  if (!deleted) return gl_derive(ix, d, err);
  n = (size_t)deleted->words * 8;
  status = gc_upload(c, deleted->bits, n, (const void **)&c->view.deleted, err);
  if (status) return status;
  c->guides = NULL;
  c->expanded = 0;
  memset(&c->slices, 0, sizeof c->slices);
  return gc_shape_or(c, 0, err);
}

/* Finds the bytes of the device that a snapshot may take, with those of segments that it shares. */
static int gl_room(const gt_team *t, const gpuir_cuda_desc *desc, uint64_t *room, uint64_t *used, gpuir_error *err) {
  size_t free_bytes, all_bytes;
  unsigned i;
  *used = 0;
  for (i = 0; i < t->n; i++)
    if (t->devices[i].resident) *used += t->devices[i].resident->cuda->info.used_memory;
  GC_TRY(cudaSetDevice(desc->device), "choosing the device");
  GC_TRY(cudaMemGetInfo(&free_bytes, &all_bytes), "asking for free memory");
  *room = *used + free_bytes / 10 * 9;
  if (desc->memory && desc->memory < *room) *room = desc->memory;
  return GPUIR_OK;
}

/* Uploads the segments that are not on the device yet. Each may take a share of the memory as large as its file's share
 * of the files; or more, where there is much. */
static int gl_upload_all(gt_team *t, const gpuir_cuda_desc *desc, gpuir_error *err) {
  uint64_t files = 0, room = 0, used = 0;
  unsigned i;
  int status = GT_DEVICES ? gl_room(t, desc, &room, &used, err) : GPUIR_OK;
  for (i = 0; i < t->n; i++)
    if (!t->devices[i].resident) files += t->devices[i].part->leaves[0].seg->size;
  for (i = 0; i < t->n && !status; i++) {
    gt_device *d = &t->devices[i];
    const gpuir__leaf *leaf = &d->part->leaves[0];
    const uint64_t left = used < room ? room - used : 0;
    if (d->resident) continue;
    status = gl_upload(t->ix, leaf, desc,
        gpuir__max64(gpuir__min64(GL_LEAST, left / 2),
            (uint64_t)((double)left * (double)leaf->seg->size / (double)files)),
        &d->resident, err);
    if (status) break;
    files -= leaf->seg->size;
    if (d->resident->cuda) used += d->resident->cuda->info.used_memory;
  }
  for (i = 0; i < t->n && !status; i++)
    status = gl_member(t->ix, &t->devices[i], (room > used ? room - used : 0) / t->n, err);
  return status;
}

/* Makes the members of a snapshot: its segments that have documents. */
static int gl_members(gt_team *t, const gpuir_cuda_desc *desc, gpuir_error *err) {
  const gpuir_index *ix = t->ix;
  size_t i;
  for (i = 0; i < ix->nleaves; i++) {
    const gpuir__leaf *leaf = &ix->leaves[i];
    gt_device *d = &t->devices[t->n];
    int status;
    if (!leaf->seg->stat.documents) continue;
    if (t->n == GT_MEMBERS)
      return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "%s: more than %u segments: merge them", ix->path, GT_MEMBERS);
    status = gl_index(ix, leaf, 1, &d->part, err);
    if (status) return status;
    d->leaf = i;
    d->first = leaf->base;
    d->end = leaf->base + (uint32_t)leaf->seg->stat.documents;
    d->resident = gl_find(desc->share, leaf->seg, desc->device);
    t->n++;
  }
  if (t->n) return GPUIR_OK;
  return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "%s: no segment has documents", ix->path);
}

/* Puts a snapshot on desc->device. */
static int gl_open(const gpuir_index *ix, const gpuir_cuda_desc *desc, gt_team **team, gpuir_error *err) {
  gpuir_cuda_desc one;
  gt_team *t = (gt_team *)gpuir__alloc_zero(&ix->a, sizeof *t);
  int status;
  if (!t) return gpuir__fail_nomem(err);
  memset(&one, 0, sizeof one);
  if (desc) one = *desc;
  if (one.ndevices) one.device = one.devices[0];
  t->a = ix->a;
  t->ix = ix;
  t->live = 1;
  status = gl_members(t, &one, err);
  t->parts = t->n;
  if (!status) status = gl_upload_all(t, &one, err);
  if (!status) {
    *team = t;
    return GPUIR_OK;
  }
  gl_close_members(t);
  gt_close(t);
  return status;
}
