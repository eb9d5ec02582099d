
/* ========================
 * [cuda-15-recoder]  host: lists of other codecs become bp128 on the device
 *
 * Lists of other codecs are sent as they are to an area of the device, as many at once as it holds. gc_recode reads
 * them there and writes them as bp128. A pfd-list's exceptions can be found only from its beginning, so the CPU decodes
 * them.
 *
 * Uses      [cuda-04-codecs], [cuda-14-memory].
 * Start at  gc_recode_all (an index), gc_recoder_add, _measure, _write (some lists).
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_AREA (64u << 20) /* bytes, or one list */
#define GC_LISTS (1u << 14) /* lists at once */
#define GC_AREA_MORE (GC_PAD + 16 * 16) /* padding of an area's tables */

typedef struct gc_recoder {
  gc_pipe *pipe;
  gc_recoding work;
  gc_source *sources; /* of `most` lists, as are the arrays below */
  gc_target *targets;
  uint32_t *start, most;
  uint64_t *ids;
  unsigned long long *words; /* pinned: sizes that the device finds */
  uint8_t *area;
  uint64_t size, fill, need; /* bytes; need: of the lists so far, with their tables */
} gc_recoder;

/* Returns whether a list has to be recoded. */
static int gc_coded_otherwise(const gpuir__list *l) {
  return l->df > 1 && (l->docs.codec->id != GPUIR__ID_BP128 || l->freqs.codec->id != GPUIR__ID_BP128);
}

/* Allocates a recoder's arrays for `most` lists. If it fails, gc_recoder_close frees what there is. */
static int gc_recoder_open(gc_recoder *r, const gpuir_allocator *a, gc_pipe *pipe, uint32_t most, gpuir_error *err) {
  r->pipe = pipe;
  r->most = most;
  r->sources = (gc_source *)gpuir__alloc_zero(a, most * sizeof *r->sources);
  r->targets = (gc_target *)gpuir__alloc_zero(a, most * sizeof *r->targets);
  r->start = (uint32_t *)gpuir__alloc_zero(a, ((size_t)most + 1) * sizeof *r->start);
  r->ids = (uint64_t *)gpuir__alloc_zero(a, most * sizeof *r->ids);
  if (!r->sources || !r->targets || !r->start || !r->ids) return gpuir__fail_nomem(err);
  GC_TRY(cudaHostAlloc((void **)&r->words, (size_t)most * 16, cudaHostAllocMapped), "allocating pinned memory");
  GC_TRY(cudaHostGetDevicePointer((void **)&r->work.words, r->words, 0), "mapping pinned memory");
  return GPUIR_OK;
}

/* Frees a recoder's arrays. */
static void gc_recoder_close(gc_recoder *r, const gpuir_allocator *a) {
  (void)cudaFreeHost(r->words);
  gpuir__free(a, r->sources, r->most * sizeof *r->sources);
  gpuir__free(a, r->targets, r->most * sizeof *r->targets);
  gpuir__free(a, r->start, ((size_t)r->most + 1) * sizeof *r->start);
  gpuir__free(a, r->ids, r->most * sizeof *r->ids);
}

/* Begins to collect lists in an empty area. */
static void gc_recoder_begin(gc_recoder *r, void *area, uint64_t size) {
  r->area = (uint8_t *)area;
  r->size = size;
  r->fill = r->need = r->work.nlists = r->work.nblocks = 0;
  gc_pipe_drop(r->pipe); /* of a list that failed */
}

/* Clears n bytes, as decoders may read what stands between streams and behind them. */
static int gc_recoder_clear(const gc_recoder *r, void *p, uint64_t n, gpuir_error *err) {
  GC_TRY(cudaMemsetAsync(p, 0, n, r->pipe->stream), "recoding lists");
  return GPUIR_OK;
}

/* Returns the bytes that a list takes of the area. */
static uint64_t gc_recoder_bytes(const gpuir__list *l) {
  const uint64_t n = l->nblocks;
  uint64_t bytes = GC_ALIGN(l->docs.len) + GC_ALIGN(l->freqs.len) + sizeof(gc_source) + sizeof(gc_target) + 4 + 10 * n;
  if (l->extent) bytes += 3 * GC_ALIGN(4 * n) + 2 * GC_ALIGN(n);
  if (l->docs.codec->id == GPUIR__ID_PFL) {
    gpuir__pfl_level top;
    unsigned depth;
    uint64_t memory;
    (void)gpuir__pfl_find(&l->docs, &top, &depth, &memory);
    bytes += 2 * GC_ALIGN((uint64_t)top.number * 4);
  }
  return bytes;
}

/* Sends n bytes to the area; *to: where they arrive. */
static int gc_recoder_put(gc_recoder *r, const void *from, uint64_t n, const void **to, gpuir_error *err) {
  *to = r->area + r->fill;
  r->fill += GC_ALIGN(n);
  return gc_pipe_put(r->pipe, *to, from, n, err);
}

/* Sends a stream, with its offsets and widths if it has any; *to: what the kernels read there. */
static int gc_recoder_put_stream(gc_recoder *r, const gpuir__stream *s, uint64_t nblocks, gpuir__stream *to,
    gpuir_error *err) {
  int status = gc_recoder_put(r, s->bytes, s->len, (const void **)&to->bytes, err);
  to->len = s->len;
  to->n = s->n;
  to->limit = s->limit;
  if (!status && s->offset) status = gc_recoder_put(r, s->offset, nblocks * 4, (const void **)&to->offset, err);
  if (!status && s->width) status = gc_recoder_put(r, s->width, nblocks, (const void **)&to->width, err);
  return status;
}

/* Adds a list, for which there must be room. Its place in the directory is the index's. */
static int gc_recoder_add(gc_recoder *r, const gpuir__segment *ix, uint64_t id, gpuir__list *l, gpuir_error *err) {
  gc_source *s = &r->sources[r->work.nlists];
  gc_coded *docs = &s->part[GC_DOCS];
  int status = gpuir__list_open_codecs(&ix->a, l);
  if (status) return gpuir__fail(err, status, 0, "%s: cannot open a list: %s", ix->path, gpuir_strerror(status));
  memset(s, 0, sizeof *s);
  s->codec[GC_DOCS] = l->docs.codec->id;
  s->codec[GC_FREQS] = l->freqs.codec->id;
  docs->nblocks = l->nblocks;
  status = gc_recoder_put_stream(r, &l->docs, l->nblocks, &docs->s, err);
  if (!status) status = gc_recoder_put_stream(r, &l->freqs, l->nblocks, &s->part[GC_FREQS].s, err);
  if (!status && l->extent)
    status = gc_recoder_put(r, l->last, (uint64_t)l->nblocks * 4, (const void **)&docs->s.last, err);
  s->part[GC_FREQS].s.last = docs->s.last;
  if (!status && l->docs.codec->id == GPUIR__ID_PFL) {
    const gpuir__pfl_state *state = (const gpuir__pfl_state *)l->docs.scratch;
    const uint64_t n = (uint64_t)state->top.number * 4;
    docs->slots = docs->s.bytes + (state->top.slots - l->docs.bytes);
    docs->bits = state->top.b;
    docs->number = state->top.number;
    status = gc_recoder_put(r, state->overflows, n, (const void **)&docs->overflows, err);
    if (!status) status = gc_recoder_put(r, state->positions, n, (const void **)&docs->positions, err);
  }
  gpuir__list_close(&ix->a, l);
  r->need += gc_recoder_bytes(l);
  r->ids[r->work.nlists] = id;
  r->targets[r->work.nlists].entry = l->extent ? l->extent->first_block : 0;
  r->start[r->work.nlists++] = r->work.nblocks;
  r->work.nblocks += l->nblocks;
  return status;
}

/* Returns room in the area for a table that the kernels write. */
static void *gc_recoder_table(gc_recoder *r, uint64_t n) {
  void *p = r->area + r->fill;
  r->fill += GC_ALIGN(n);
  return p;
}

/* Returns how many blocks of threads recode the collected lists. */
static unsigned gc_recoder_grid(const gpuir_cuda *c, const gc_recoder *r) {
  const uint64_t warps = ((uint64_t)r->work.nblocks + r->work.grain - 1) / r->work.grain;
  return (unsigned)gpuir__min64((warps + 7) / 8, (uint64_t)c->processors * 8);
}

/* Lets the device find how many words the lists take as bp128. */
GPUIR__COLD static int gc_recoder_measure(const gpuir_cuda *c, gc_recoder *r, gpuir_error *err) {
  const gc_view *v = &c->view;
  gc_recoding *w = &r->work;
  int status, part;
  r->start[w->nlists] = w->nblocks;
  status = gc_recoder_put(r, r->sources, w->nlists * sizeof *r->sources, (const void **)&w->sources, err);
  if (!status) status = gc_recoder_put(r, r->start, (w->nlists + 1) * 4, (const void **)&w->start, err);
  if (!status) status = gc_pipe_flush(r->pipe, err);
  if (status) return status;
  w->targets = (const gc_target *)gc_recoder_table(r, w->nlists * sizeof *r->targets);
  for (part = 0; part < 2; part++) {
    w->off[part] = (uint32_t *)gc_recoder_table(r, (uint64_t)w->nblocks * 4);
    w->width[part] = (uint8_t *)gc_recoder_table(r, w->nblocks);
  }
  w->grain = gpuir__max32(1, gpuir__min32(8, w->nblocks / ((uint32_t)c->processors * 64)));
  w->to_last = (uint32_t *)(uintptr_t)v->last;
  w->to_off[GC_DOCS] = (uint32_t *)(uintptr_t)v->docs_off;
  w->to_off[GC_FREQS] = (uint32_t *)(uintptr_t)v->freqs_off;
  w->to_width[GC_DOCS] = (uint8_t *)(uintptr_t)v->docs_width;
  w->to_width[GC_FREQS] = (uint8_t *)(uintptr_t)v->freqs_width;
  gc_recode<<<gc_recoder_grid(c, r), 256, 0, r->pipe->stream>>>(*w, false);
  gc_recode_offsets<<<dim3(w->nlists, 2), 1024, 0, r->pipe->stream>>>(*w);
  GC_TRY(cudaGetLastError(), "recoding lists");
  return GPUIR_OK;
}

/* Waits for the sizes of gc_recoder_measure. */
static int gc_recoder_wait(const gpuir_cuda *c, gc_recoder *r, gpuir_error *err) {
  uint32_t i;
  GC_TRY(cudaStreamSynchronize(r->pipe->stream), "recoding lists");
  for (i = 0; i < 2 * r->work.nlists; i++)
    if (r->words[i] > UINT32_MAX)
      return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "%s: as bp128 a list takes more than 16 GB", c->ix->path);
  return GPUIR_OK;
}

/* Writes the lists to their targets. */
static int gc_recoder_write(const gpuir_cuda *c, gc_recoder *r, gpuir_error *err) {
  int status = gc_pipe_put(r->pipe, r->work.targets, r->targets, r->work.nlists * sizeof *r->targets, err);
  if (!status) status = gc_pipe_flush(r->pipe, err);
  if (status) return status;
  gc_recode<<<gc_recoder_grid(c, r), 256, 0, r->pipe->stream>>>(r->work, true);
  GC_TRY(cudaGetLastError(), "recoding lists");
  return GPUIR_OK;
}

/* Allocates device memory for the collected lists as bp128, and makes it their target. */
static int gc_recode_place(gpuir_cuda *c, gc_recoder *r, gpuir_error *err) {
  uint64_t bytes = 0;
  uint32_t i, part;
  void *p;
  int status;
  for (i = 0; i < r->work.nlists; i++) bytes += GC_ALIGN(r->words[2 * i] * 4) + GC_ALIGN(r->words[2 * i + 1] * 4);
  status = gc_malloc(c, bytes + GC_PAD, &p, err);
  if (status) return status;
  status = gpuir__buf_put(&c->a, &c->recoded, &p, sizeof p);
  if (status) {
    gc_free(c, p, bytes + GC_PAD);
    return gpuir__fail_nomem(err);
  }
  status = gc_recoder_clear(r, p, bytes + GC_PAD, err);
  if (status) return status;
  c->info.resident_bytes += bytes;
  bytes = 0;
  for (i = 0; i < r->work.nlists; i++) {
    gc_place *place = &c->places[r->ids[i]];
    gc_target *to = &r->targets[i];
    for (part = 0; part < 2; part++) {
      to->words[part] = (uint32_t)r->words[2 * i + part];
      to->part[part] = (uint32_t *)((uint8_t *)p + bytes);
      bytes += GC_ALIGN((uint64_t)to->words[part] * 4);
    }
    place->docs_words = to->words[GC_DOCS];
    place->freqs_words = to->words[GC_FREQS];
    place->docs = (uint64_t)(uintptr_t)to->part[GC_DOCS];
  }
  return GPUIR_OK;
}

/* Recodes the collected lists into memory of their own, and empties the area. */
GPUIR__COLD static int gc_recode_some(gpuir_cuda *c, gc_recoder *r, gpuir_error *err) {
  int status;
  if (!r->work.nlists) return GPUIR_OK;
  status = gc_recoder_measure(c, r, err);
  if (!status) status = gc_recoder_wait(c, r, err);
  if (!status) status = gc_recode_place(c, r, err);
  if (status) return status;
  status = gc_recoder_write(c, r, err);
  gc_recoder_begin(r, r->area, r->size);
  return status;
}

/* Adds up the bytes of the area that all lists need, and finds the greatest need. It refuses lists that share bytes: so
 * the file's size bounds the time of recoding. */
static int gc_recode_needs(const gpuir_cuda *c, uint64_t *all, uint64_t *most, gpuir_error *err) {
  const gpuir__segment *ix = c->ix;
  uint64_t docs = 0, freqs = 0, blocks = 0;
  gpuir__walk w;
  *all = *most = 0;
  for (gpuir__walk_start(&w, ix); gpuir__walk_next(&w);) {
    gpuir__list l;
    uint64_t need;
    int status = c->index->calls->list_of(ix, &w.record, &l);
    if (status) return gpuir__fail(err, status, 0, "%s: cannot open a list: %s", ix->path, gpuir_strerror(status));
    if (l.df == 1) continue;
    docs += l.docs.len;
    freqs += l.freqs.len;
    if (l.extent) blocks += l.nblocks;
    if (docs > ix->section[GPUIR__S_DOCIDS]->length || freqs > ix->section[GPUIR__S_FREQS]->length ||
        blocks > ix->stat.blocks)
      return gpuir__bad(ix, err, 0, "lists share bytes");
    need = gc_recoder_bytes(&l);
    *all += need;
    *most = gpuir__max64(*most, need);
  }
  return GPUIR_OK;
}

/* Sends all lists and recodes them. */
static int gc_recode_lists(gpuir_cuda *c, gc_recoder *r, gpuir_error *err) {
  const gpuir__segment *ix = c->ix;
  gpuir__walk w;
  int status = GPUIR_OK;
  for (gpuir__walk_start(&w, ix); !status && gpuir__walk_next(&w);) {
    gpuir__list l;
    if (w.record.df == 1) continue;
    status = c->index->calls->list_of(ix, &w.record, &l);
    if (status) return gpuir__fail(err, status, 0, "%s: cannot open a list", ix->path);
    if (r->work.nlists == r->most || r->need + gc_recoder_bytes(&l) + GC_AREA_MORE > r->size)
      status = gc_recode_some(c, r, err);
    if (!status) status = gc_recoder_add(r, ix, w.id, &l, err);
  }
  if (!status) status = gc_recode_some(c, r, err);
  if (!status) GC_TRY(cudaStreamSynchronize(r->pipe->stream), "recoding lists");
  return status;
}

/* Fills the index's streams on the device, and the parts of the directory that depend on them. */
static int gc_recode_all(gpuir_cuda *c, gpuir_error *err) {
  const gpuir__segment *ix = c->ix;
  const uint64_t blocks = ix->stat.blocks;
  gc_view *v = &c->view;
  cudaStream_t stream = NULL;
  gc_pipe pipe;
  gc_recoder r;
  uint64_t all, most, size = 0;
  void *area = NULL;
  int s = gc_recode_needs(c, &all, &most, err);
  if (s) return s;
  c->places = (gc_place *)gpuir__alloc_zero(&c->a, (size_t)ix->stat.terms * sizeof *c->places);
  if (!c->places) return gpuir__fail_nomem(err);
  s = gc_device_alloc(c, blocks * 4, (void **)&v->last, err);
  if (!s) s = gc_device_alloc(c, blocks * 4, (void **)&v->docs_off, err);
  if (!s) s = gc_device_alloc(c, blocks * 4, (void **)&v->freqs_off, err);
  if (!s) s = gc_device_alloc(c, blocks, (void **)&v->docs_width, err);
  if (!s) s = gc_device_alloc(c, blocks, (void **)&v->freqs_width, err);
  if (s) return s;
  c->info.resident_bytes += blocks * 14;
  memset(&pipe, 0, sizeof pipe);
  memset(&r, 0, sizeof r);
  size = gpuir__min64(all, gpuir__max64(most, gpuir__min64(GC_AREA, c->room / 16))) + GC_AREA_MORE;
  s = gc_stream_open(&stream, 0, err);
  if (!s) s = gc_pipe_open(&pipe, stream, err);
  if (!s) s = gc_recoder_open(&r, &c->a, &pipe, GC_LISTS, err);
  if (!s) s = gc_malloc(c, size, &area, err);
  if (!s) {
    gc_recoder_begin(&r, area, size);
    s = gc_recoder_clear(&r, area, size, err);
    if (!s) s = gc_recode_lists(c, &r, err);
  }
  gc_pipe_close(&pipe);
  gc_stream_close(stream);
  gc_recoder_close(&r, &c->a);
  gc_free(c, area, size);
  return s;
}

#pragma GCC pop_options
