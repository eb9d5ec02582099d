
/* ========================
 * [cuda-14-memory]  host: the backend's structure, device memory within the bound, sending bytes
 *
 * gpuir_cuda is an index on a device. All device memory is allocated here, so that it counts against the bound that the
 * program gave. Lists that are sent later go through a gc_pipe.
 *
 * Uses      [cuda-10-phrases].
 * Start at  gpuir_cuda; gc_malloc, gc_upload, gc_describe; gc_pipe_put.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_PAD 1024u /* bytes of zeros behind each section: kernels may read these in a damaged block */

/* Where a long list's guides are; see gc_term. */
typedef struct gc_list_guide {
  uint64_t marks;
  uint32_t row, span, shift, most;
  uint32_t cut, wide; /* as in gc_term */
} gc_list_guide;

/* Where a list of another codec lies as bp128: docIDs, then frequencies from the next multiple of 16 on. */
typedef struct gc_place {
  uint64_t docs; /* address */
  uint32_t docs_words, freqs_words;
} gc_place;

/* The part of a long list's term that does not depend on the query, in two lines of the processor's cache. */
typedef struct gc_known {
  gc_term term; /* df 0: it has not been prepared */
  uint32_t seeds[GPUIR__SEEDS]; /* 0: none */
  uint8_t pad[128 - sizeof(gc_term) - GPUIR__SEEDS * 4];
} gc_known;

typedef struct gc_cache gc_cache;
typedef struct gt_team gt_team;

/* How many blocks of threads fill the device, of each kernel. */
typedef struct gc_grids {
  unsigned sums; /* gc_sum_tiles */
  unsigned ors, ands, guided, maxs; /* gc_or, gc_and_decoding, gc_and_guided, gc_max */
  unsigned alone; /* gc_alone */
} gc_grids;

struct gpuir_cuda {
  gpuir_allocator a;
  const gpuir_index *index;
  const gpuir__segment *ix; /* its only segment */
  int device, processors, expanded;
  gc_view view;
  void *memory[32]; /* device memory that the view points to */
  unsigned nmemory;
  gc_place *places; /* of all terms, if lists were recoded; NULL: they lie as in the file */
  gpuir__buf recoded; /* void *: the device memory of recoded lists */
  gc_term *lists; /* long lists, in the order of their blocks */
  size_t nlists;
  const gc_term *lists_there; /* the same on the device */
  gc_slices slices;
  gc_list_guide *guides; /* [number among the index's long lists]; NULL: there are no guides */
  gc_known *known; /* likewise; NULL: each query describes its lists anew */
  gc_cache *cache; /* NULL: the whole index is on the device */
  gc_positions positions; /* with bytes NULL: they are not on the device */
  size_t phrase_room; /* shared memory that a block of threads of gc_phrase_all may take */
  uint64_t room; /* the bound, in bytes */
  uint64_t threshold;
  int refused; /* 1: the bound left no memory for something */
  uint32_t k_most;
  size_t batch; /* queries of a launch at most */
  int by_itself; /* 1: the backend has chosen `batch`, and may take fewer */
  int ahead; /* the greatest priority of kernels */
  gc_grids grids;
  gpuir_cuda_info info; /* counters: atomic */
  gt_team *team; /* several devices, of which this is only the handle; or NULL */
};

/* Reports a failed CUDA call as a status with its cause in words. */
static int gc_fail(gpuir_error *err, cudaError_t e, const char *what) {
  (void)cudaGetLastError(); /* otherwise the next call would report it again */
  if (e == cudaErrorMemoryAllocation) return gpuir__fail(err, GPUIR_E_NOMEM, 0, "CUDA: %s: out of device memory", what);
  return gpuir__fail(err, GPUIR_E_BACKEND, 0, "CUDA: %s: %s", what, cudaGetErrorString(e));
}

/* Tests count CUDA calls, and let one of them fail without making it. */
#ifdef GPUIR_CUDA_SEAM
long gpuir_cuda_seam_calls, gpuir_cuda_seam_fail;
int gpuir_cuda_seam_error;
#define GC_CALL(call) (++gpuir_cuda_seam_calls == gpuir_cuda_seam_fail ? (cudaError_t)gpuir_cuda_seam_error : (call))
#else
#define GC_CALL(call) (call)
#endif

/* Evaluates a CUDA call; returns from the function with its error. */
#define GC_TRY(call, what) \
  do { \
    cudaError_t gc_e = GC_CALL(call); \
    if (gc_e != cudaSuccess) return gc_fail(err, gc_e, what); \
  } while (0)

/* Allocates device memory within the bound. */
static int gc_malloc(gpuir_cuda *c, size_t n, void **p, gpuir_error *err) {
  uint64_t used;
  *p = NULL;
  n = n ? n : 1;
  used = __atomic_add_fetch(&c->info.used_memory, n, __ATOMIC_RELAXED);
  if (used > c->room) {
    __atomic_fetch_sub(&c->info.used_memory, n, __ATOMIC_RELAXED);
    __atomic_store_n(&c->refused, 1, __ATOMIC_RELAXED);
    return gpuir__fail(err, GPUIR_E_NOMEM, 0, "CUDA: %llu MB of device memory are needed, %llu MB are allowed",
        (unsigned long long)(used >> 20), (unsigned long long)(c->room >> 20));
  }
  {
    cudaError_t e = GC_CALL(cudaMalloc(p, n));
    if (e == cudaSuccess) return GPUIR_OK;
    *p = NULL;
    __atomic_fetch_sub(&c->info.used_memory, n, __ATOMIC_RELAXED);
    return gc_fail(err, e, "allocating device memory");
  }
}

/* Frees memory of gc_malloc. */
static void gc_free(gpuir_cuda *c, void *p, size_t n) {
  if (!p) return;
  (void)cudaFree(p);
  __atomic_fetch_sub(&c->info.used_memory, n ? n : 1, __ATOMIC_RELAXED);
}

/* Allocates device memory that lives as long as the index on the device. */
static int gc_device_alloc(gpuir_cuda *c, size_t n, void **p, gpuir_error *err) {
  int status = gc_malloc(c, n, p, err);
  if (!status) c->memory[c->nmemory++] = *p;
  return status;
}

/* Uploads a section, with zeros behind it. */
static int gc_upload(gpuir_cuda *c, const void *from, size_t n, const void **to, gpuir_error *err) {
  void *p;
  int status = gc_device_alloc(c, n + GC_PAD, &p, err);
  if (status) return status;
  GC_TRY(cudaMemcpy(p, from, n, cudaMemcpyHostToDevice), "uploading the index");
  GC_TRY(cudaMemset((uint8_t *)p + n, 0, GC_PAD), "uploading the index");
  c->info.resident_bytes += n;
  *to = p;
  return GPUIR_OK;
}

#define GC_ALIGN(n) (((uint64_t)(n) + 15) & ~(uint64_t)15)

/* Returns the next n bytes of an area. Pieces begin at multiples of 64, so that no two share a line of the cache. */
static void *gc_carve(uint8_t **at, size_t n) {
  void *p = *at;
  *at += (n + 63) & ~(size_t)63;
  return p;
}

/* Describes the list of term `id` for the kernels; its record is *r. q and the later members stay 0. Its codecs do not
 * matter. */
static int gc_describe(const gpuir_cuda *c, uint64_t id, const gpuir__record *r, gc_term *t, gpuir__list *l,
    gpuir_error *err) {
  const gpuir__segment *ix = c->ix;
  int status = c->index->calls->list_of(ix, r, l);
  if (status) return gpuir__fail(err, status, 0, "%s: cannot open a list: %s", ix->path, gpuir_strerror(status));
  memset(t, 0, sizeof *t);
  t->df = l->df;
  t->nblocks = l->nblocks;
  if (l->df == 1) {
    t->kind = GC_INLINE;
    t->docs = l->one_docid;
    t->freqs = l->one_tf;
    return GPUIR_OK;
  }
  t->kind = l->extent ? GC_LONG : GC_SHORT;
  if (l->extent) t->first_block = l->extent->first_block;
  if (c->places) {
    const gc_place *p = &c->places[id];
    t->docs = p->docs;
    t->docs_len = (uint64_t)p->docs_words * 4;
    t->freqs = p->docs + GC_ALIGN(t->docs_len);
    t->freqs_len = (uint64_t)p->freqs_words * 4;
  } else {
    t->docs = (uint64_t)(l->docs.bytes - ix->lists.docids);
    t->docs_len = l->docs.len;
    t->freqs = (uint64_t)(l->freqs.bytes - ix->lists.freqs);
    t->freqs_len = l->freqs.len;
  }
  return GPUIR_OK;
}

/* ---- sending lists ----
 *
 * If the index's file is locked in memory, the device reads it there. Otherwise lists are copied to pinned memory
 * first, which has two halves: one is filled while the other is sent. */

#define GC_STAGE (1u << 20) /* bytes */

/* The index's file, locked in memory, so that the device reads it at the bus's rate. */
typedef struct gc_locked {
  uint8_t *file; /* NULL: it is not locked */
  uint64_t size;
} gc_locked;

/* A thread's way to the device. Several may share a stream. */
typedef struct gc_pipe {
  cudaStream_t stream;
  cudaEvent_t sent[2]; /* stage[side] has been sent */
  uint8_t *stage[2], *to;
  size_t from, fill; /* bytes from .. fill - 1 of stage[side] wait to be sent to `to` */
  unsigned side;
  gc_locked locked;
} gc_pipe;

/* Makes a stream that does not wait for the default one. */
static int gc_stream_open(cudaStream_t *stream, int priority, gpuir_error *err) {
  GC_TRY(cudaStreamCreateWithPriority(stream, cudaStreamNonBlocking, priority), "creating a stream");
  return GPUIR_OK;
}

/* Waits for what is in a stream, and frees it. NULL is accepted. */
static void gc_stream_close(cudaStream_t stream) {
  if (!stream) return;
  (void)cudaStreamSynchronize(stream);
  (void)cudaStreamDestroy(stream);
}

/* Gives a pipe its pinned memory. If it fails, gc_pipe_close frees what there is. */
static int gc_pipe_open(gc_pipe *p, cudaStream_t stream, gpuir_error *err) {
  unsigned i;
  p->stream = stream;
  for (i = 0; i < 2; i++) {
    GC_TRY(cudaEventCreateWithFlags(&p->sent[i], cudaEventDisableTiming), "creating an event");
    GC_TRY(cudaMallocHost((void **)&p->stage[i], GC_STAGE), "allocating pinned memory");
  }
  return GPUIR_OK;
}

/* Locks the index's file in memory, if the system can do that and the machine has twice as much memory. */
static void gc_lock(gc_locked *l, const gpuir_cuda *c) {
  const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
  int can = 0;
  l->size = c->ix->size;
  if (cudaDeviceGetAttribute(&can, cudaDevAttrHostRegisterReadOnlySupported, c->device) == cudaSuccess && can &&
      pages > 0 && bytes > 0 && l->size / (uint64_t)bytes < (uint64_t)pages / 2 &&
      cudaHostRegister((void *)(uintptr_t)c->ix->map, (size_t)l->size, cudaHostRegisterReadOnly) == cudaSuccess)
    l->file = (uint8_t *)(uintptr_t)c->ix->map;
  else (void)cudaGetLastError();
}

/* Waits until all that was sent has arrived. */
static void gc_pipe_close(gc_pipe *p) {
  unsigned i;
  if (p->stream) (void)cudaStreamSynchronize(p->stream);
  for (i = 0; i < 2; i++) {
    if (p->sent[i]) (void)cudaEventDestroy(p->sent[i]);
    (void)cudaFreeHost(p->stage[i]);
  }
}

/* Drops what waits. */
static void gc_pipe_drop(gc_pipe *p) { p->fill = p->from; }

/* Sends what waits. */
static int gc_pipe_flush(gc_pipe *p, gpuir_error *err) {
  const size_t from = p->from, n = p->fill - from;
  p->from = p->fill = (p->fill + 15) & ~(size_t)15;
  if (n)
    GC_TRY(cudaMemcpyAsync(p->to, p->stage[p->side] + from, n, cudaMemcpyHostToDevice, p->stream), "sending a list");
  return GPUIR_OK;
}

/* Changes to the other half, once all that it held has been sent. */
static int gc_pipe_turn(gc_pipe *p, gpuir_error *err) {
  int status = gc_pipe_flush(p, err);
  if (status) return status;
  GC_TRY(cudaEventRecord(p->sent[p->side], p->stream), "sending a list");
  p->side ^= 1;
  p->from = p->fill = 0;
  GC_TRY(cudaEventSynchronize(p->sent[p->side]), "sending a list");
  return GPUIR_OK;
}

/* Sends n bytes to the device, behind all that was sent before. They leave when the half is full or flushed. Bytes that
 * go closely behind those that wait are sent together with them. */
static int gc_pipe_put(gc_pipe *p, const void *to, const void *from, uint64_t n, gpuir_error *err) {
  const uint8_t *source = (const uint8_t *)from;
  uint8_t *target = (uint8_t *)(uintptr_t)to;
  int status = GPUIR_OK;
  if (p->locked.file && (uint64_t)((uintptr_t)source - (uintptr_t)p->locked.file) < p->locked.size) {
    status = gc_pipe_flush(p, err);
    if (status) return status;
    GC_TRY(cudaMemcpyAsync(target, source, n, cudaMemcpyHostToDevice, p->stream), "sending a list");
    return GPUIR_OK;
  }
  while (n && !status) {
    const size_t waiting = p->fill - p->from;
    size_t gap = waiting && target >= p->to + waiting ? (size_t)(target - p->to) - waiting : SIZE_MAX, part;
    if (gap > 64) {
      status = gc_pipe_flush(p, err);
      p->to = target;
      gap = 0;
    }
    if (!status && p->fill + gap >= GC_STAGE) {
      status = gc_pipe_turn(p, err);
      p->to = target;
      gap = 0;
    }
    if (status) break;
    p->fill += gap;
    part = (size_t)gpuir__min64(n, GC_STAGE - p->fill);
    memcpy(p->stage[p->side] + p->fill, source, part);
    p->fill += part;
    source += part;
    target += part;
    n -= part;
  }
  return status;
}
