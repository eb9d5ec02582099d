
/* ========================
 * [cuda-20-partition]  host: several devices of one host: the index is cut into parts and opened
 *
 * A team answers one searcher's batches by several devices, its members. Each member may hold the whole index: then one
 * member answers each query, see [cuda-21-members]. Or each holds a part, the documents of a range as an index of its
 * own: then all members answer each query, see [cuda-22-merge]. A part weighs its terms by the whole's N, df and
 * average length, as a shard does. It also has the whole's seeds, thresholds that all parts share. So its scores are
 * the whole's, bit for bit, and a hit that it leaves out has k better ones in the whole.
 *
 * Uses      [cuda-14-memory], [cuda-19-launch].
 * Start at  gt_open (gt_make_part: the index of a range).
 * Tests     tests/gpu/test_team.c, which needs no device
 * ======================*/

#define GT_MEMBERS ((unsigned)GPUIR_MAX_DEVICES)

/* A segment on a device: see [cuda-23-live]. */
typedef struct gl_resident {
  uint64_t refs; /* snapshots that have it, counted atomically */
  uint64_t hash, size; /* of its file; the hash is the header's checksum */
  gpuir_index *alone; /* the segment as an index without deletions */
  gpuir_cuda *cuda;
} gl_resident;

/* A device of an open team. */
typedef struct gt_device {
  gpuir_cuda *cuda;
  gpuir_index *part; /* NULL: it has the whole index */
  uint32_t first, end; /* the documents of its part */
  uint32_t *ids; /* [number in the whole] the term's number in the part, or GPUIR__NO_TERM */
  uint32_t *dfs; /* [number in the part] the whole's df */
  gpuir__record *records; /* likewise: the record out of the part's dictionary, which each query needs */
  uint32_t *seeds;
  uint64_t nids, ndfs, nrecords, nseeds; /* room of these; nseeds: in GPUIR__SEEDS */
  size_t leaf; /* of a snapshot: the segment's number, and what it has on the device */
  gl_resident *resident;
  int weighed; /* 1: contributions and bounds are under the snapshot's N, df and lengths, in these three */
  gc_term *lists;
  gc_list_guide *guides;
  gc_known *known;
  gpuir__shard shard;
} gt_device;

struct gt_team {
  gpuir_allocator a;
  const gpuir_index *ix;
  unsigned n, parts; /* parts: n, or 0 if each member has the whole index */
  int live; /* 1: the parts are segments of a snapshot, see [cuda-23-live] */
  uint32_t lost; /* members that failed, of any searcher */
  gt_device devices[GT_MEMBERS];
};

/* ---- parts: the documents of a range as an index of their own ---- */

/* Cuts the documents into `parts` ranges, each with at least one document and about as many tokens as the others. Range
 * i begins at starts[i]. */
static void gt_choose_ranges(const uint32_t *lengths, uint64_t n, uint64_t tokens, unsigned parts, uint32_t *starts) {
  uint64_t sum = 0, at = 0;
  unsigned i;
  for (i = 0; i < parts; i++) {
    const uint64_t share = tokens / parts * i + tokens % parts * i / parts;
    while (at < n - (parts - i) && (sum < share || (i && at == starts[i - 1]))) sum += lengths[at++];
    starts[i] = (uint32_t)at;
  }
}

/* Opens a list with the decoders of the program's engine. */
static int gt_open_list(const gpuir__calls *calls, const gpuir__segment *from, const gpuir_allocator *a,
    const gpuir__record *record, gpuir__list *l) {
  const int status = calls->list_of(from, record, l);
  return status || l->df == 1 ? status : gpuir__list_open_codecs(a, l);
}

/* Makes an index of a leaf, as gpuir__index_make does, with the settings of another index. */
static int gt_make_index(const gpuir_index *like, const char *path, const gpuir__leaf *leaf, gpuir_index **index,
    gpuir_error *err) {
  const int status = like->calls->index_make(&like->a, path, NULL, leaf, 1, like->analysis.pool, index, err);
  if (!status) (*index)->calls = like->calls;
  return status;
}

/* What makes a part: its source, its builder, and how far the workers are. */
typedef struct gt_partitioner {
  const gpuir__segment *from;
  const gpuir__calls *calls;
  gt_device *to;
  gpuir_builder *builder;
  gpuir_allocator a;
  pthread_mutex_t lock; /* of all that follows */
  pthread_cond_t turn; /* the next packet may be appended */
  gpuir__walk walk;
  uint64_t claimed, appended; /* packets of terms */
  uint32_t terms; /* of the part */
  int status;
  gpuir_error error;
} gt_partitioner;

#define GT_PACKET_POSTINGS (1u << 18) /* postings of the whole that a packet has at most, or one list */
#define GT_PACKET_TERMS 1024u /* terms of a packet at most */

/* A term of a packet. */
typedef struct gt_packet_term {
  uint64_t id; /* in the whole */
  gpuir__record record; /* in the whole */
  uint32_t at, len; /* its bytes in gt_part_worker.text */
} gt_packet_term;

/* One of the threads that make a part. */
typedef struct gt_part_worker {
  gt_partitioner *partitioner;
  gpuir__encoder *encoder;
  pthread_t thread;
  uint64_t packet; /* the number of its packet */
  gt_packet_term terms[GT_PACKET_TERMS];
  unsigned nterms;
  gpuir__buf text, postings; /* postings: the docIDs of a list, then its tfs */
  gpuir__batch batch; /* the packet's lists, as the part has them */
  uint32_t kept[GT_PACKET_TERMS]; /* which terms have one */
} gt_part_worker;

/* Claims the next packet of terms for a thread; 0: there is none. The lock is held. */
static int gt_claim_packet(gt_part_worker *k, gpuir_error *err) {
  gt_partitioner *x = k->partitioner;
  uint64_t postings = 0;
  k->nterms = 0;
  k->text.len = 0;
  while (!x->status && postings < GT_PACKET_POSTINGS && k->nterms < GT_PACKET_TERMS && gpuir__walk_next(&x->walk)) {
    gt_packet_term *t = &k->terms[k->nterms++];
    t->id = x->walk.id;
    t->record = x->walk.record;
    t->at = (uint32_t)k->text.len;
    t->len = (uint32_t)x->walk.len;
    postings += t->record.df;
    if (gpuir__buf_put(&x->a, &k->text, x->walk.term, x->walk.len)) x->status = gpuir__fail_nomem(err);
  }
  k->packet = x->claimed;
  x->claimed += k->nterms && !x->status;
  return k->nterms && !x->status;
}

/* Decodes the postings of a list that lie in the part's range; *n: how many there are. */
static int gt_select_postings(gt_part_worker *k, const gpuir__record *record, uint32_t *n, gpuir_error *err) {
  const gt_partitioner *x = k->partitioner;
  const uint32_t first = x->to->first, end = x->to->end, room = gpuir__min32(record->df, end - first);
  uint32_t docs[GPUIR__BLOCK_ROOM], freqs[GPUIR__BLOCK_ROOM], *docids, *tfs, block, i, in;
  gpuir__list l;
  int status = gt_open_list(x->calls, x->from, &x->a, record, &l);
  if (status) return gpuir__fail(err, status, 0, "%s: cannot open a list: %s", x->from->path, gpuir_strerror(status));
  k->postings.len = *n = 0;
  docids = (uint32_t *)(void *)gpuir__buf_room(&x->a, &k->postings, (size_t)room * 8);
  tfs = docids + room;
  if (!docids) status = gpuir__fail_nomem(err);
  for (block = gpuir__list_find_block(&l, 0, first); !status && block < l.nblocks; block++) {
    in = gpuir__list_docs(&l, block, docs);
    if (docs[0] >= end) break;
    if (docs[in - 1] < first) continue;
    gpuir__list_freqs(&l, block, freqs);
    for (i = 0; i < in && !status; i++) {
      if (docs[i] < first || docs[i] >= end) continue;
      if (*n == room || !(freqs[i] + 1) || (*n && docs[i] - first <= docids[*n - 1])) {
        status = gpuir__bad(x->from, err, 0, "a damaged list"); /* no builder has made it */
        break;
      }
      docids[*n] = docs[i] - first;
      tfs[(*n)++] = freqs[i] + 1;
    }
  }
  gpuir__list_close(&x->a, &l);
  return status;
}

/* Encodes what the packet's lists have in the part. */
static int gt_encode_packet(gt_part_worker *k, gpuir_error *err) {
  const gt_partitioner *x = k->partitioner;
  unsigned i;
  gpuir__batch_clear(NULL, &k->batch);
  for (i = 0; i < k->nterms; i++) {
    const gt_packet_term *t = &k->terms[i];
    const uint32_t *docids, room = gpuir__min32(t->record.df, x->to->end - x->to->first);
    uint32_t n = 0;
    int status = gt_select_postings(k, &t->record, &n, err);
    if (status) return status;
    if (!n) continue;
    docids = (const uint32_t *)(const void *)k->postings.data;
    k->kept[k->batch.nterms] = i;
    status = x->calls->encode_list(k->encoder, &k->batch, k->text.data + t->at, t->len, docids, docids + room, n, NULL);
    if (status) return gpuir__fail(err, status, 0, "%s: a list of a part: %s", x->from->path, gpuir_strerror(status));
  }
  return GPUIR_OK;
}

/* Appends a packet's lists to the part, and notes its terms. One thread at a time does so, in the order of the packets:
 * otherwise terms would get wrong numbers. */
static int gt_append_packet(const gt_part_worker *k, gpuir_error *err) {
  gt_partitioner *x = k->partitioner;
  gpuir_builder *b = x->builder;
  uint64_t i;
  for (i = 0; i < k->batch.nterms; i++) {
    const gt_packet_term *t = &k->terms[k->kept[i]];
    x->to->ids[t->id] = x->terms;
    x->to->dfs[x->terms++] = gpuir__segment_df(x->from, t->id, t->record.df);
  }
  b->merge.terms += k->batch.nterms;
  b->merge.postings += k->batch.postings;
  return x->calls->put_batch(b->writer, &k->batch, err);
}

/* Encodes packets, and appends each one when those before it have been appended. */
static void *gt_part_worker_main(void *argument) {
  gt_part_worker *k = (gt_part_worker *)argument;
  gt_partitioner *x = k->partitioner;
  gpuir_error error;
  (void)pthread_mutex_lock(&x->lock);
  while (gt_claim_packet(k, &x->error)) {
    int status;
    (void)pthread_mutex_unlock(&x->lock);
    status = gt_encode_packet(k, &error);
    (void)pthread_mutex_lock(&x->lock);
    while (x->appended != k->packet) (void)pthread_cond_wait(&x->turn, &x->lock);
    if (!status && !x->status) {
      (void)pthread_mutex_unlock(&x->lock); /* it is this thread's turn */
      status = gt_append_packet(k, &error);
      (void)pthread_mutex_lock(&x->lock);
    }
    if (status && !x->status) {
      x->status = status;
      x->error = error;
    }
    x->appended++;
    (void)pthread_cond_broadcast(&x->turn);
  }
  (void)pthread_mutex_unlock(&x->lock);
  return NULL;
}

/* Writes the lists to the part's builder, by as many threads as the builder has workers. */
static int gt_write_lists(gt_partitioner *x, gpuir_error *err) {
  gpuir_builder *b = x->builder;
  const unsigned n = b->threads.nworkers;
  gt_part_worker *workers = (gt_part_worker *)gpuir__alloc_zero(&x->a, n * sizeof *workers);
  unsigned started, i;
  if (!workers) return gpuir__fail_nomem(err);
  memset(x->to->ids, 0xff, (size_t)x->from->stat.terms * sizeof *x->to->ids); /* GPUIR__NO_TERM */
  gpuir__walk_start(&x->walk, x->from);
  for (i = 0; i < n; i++) {
    workers[i].partitioner = x;
    workers[i].encoder = &b->threads.workers[i].encoding.encoder;
  }
  for (started = 1; started < n; started++)
    if (pthread_create(&workers[started].thread, NULL, gt_part_worker_main, &workers[started])) break;
  (void)gt_part_worker_main(&workers[0]);
  for (i = 0; i < n; i++) {
    if (i && i < started) (void)pthread_join(workers[i].thread, NULL);
    gpuir__buf_free(&x->a, &workers[i].text);
    gpuir__buf_free(&x->a, &workers[i].postings);
    gpuir__batch_clear(&b->a, &workers[i].batch);
  }
  gpuir__free(&x->a, workers, n * sizeof *workers);
  if (x->status && err) *err = x->error;
  return x->status;
}

/* Writes the part's documents and lists to its builder. */
static int gt_write_all(gt_partitioner *x, gpuir_error *err) {
  const gt_device *to = x->to;
  gpuir_builder *b = x->builder;
  uint32_t i;
  int status = GPUIR_OK;
  for (i = to->first; i < to->end && !status; i++)
    status = x->calls->builder_add_doc(b, NULL, x->from->lengths[i], NULL, 0, err);
  if (!status) status = x->calls->builder_open_lists(b, err);
  if (status) return status;
  b->phase = GPUIR__FROM_LISTS;
  if (pthread_mutex_init(&x->lock, NULL)) return gpuir__fail_nomem(err);
  if (pthread_cond_init(&x->turn, NULL)) {
    (void)pthread_mutex_destroy(&x->lock);
    return gpuir__fail_nomem(err);
  }
  status = gt_write_lists(x, err);
  (void)pthread_cond_destroy(&x->turn);
  (void)pthread_mutex_destroy(&x->lock);
  return status;
}

/* Writes the index of a part. */
static int gt_write_part(gt_partitioner *x, const gpuir_index *ix, const char *path, unsigned threads,
    gpuir_error *err) {
  gpuir_builder_desc desc;
  int status;
  memset(&desc, 0, sizeof desc);
  desc.path = path;
  desc.allocator = &x->a;
  desc.codec = desc.freq_codec = "bp128";
  desc.threads = threads;
  desc.like = ix;
  status = x->calls->builder_create(&desc, &x->builder, err);
  if (status) return status;
  status = gt_write_all(x, err);
  if (!status) status = x->calls->builder_write(x->builder, NULL, err);
  x->calls->builder_destroy(x->builder);
  return status;
}

/* Gives a part the whole's seeds: scores that k documents of the whole reach. */
static int gt_seed(gt_device *d, const gpuir_index *ix, gpuir__segment *part) {
  const gpuir__segment *from = gpuir__only(ix);
  gpuir__walk w;
  if (!part->lists.nseeds) return GPUIR_OK;
  d->seeds = (uint32_t *)gpuir__alloc_zero(&ix->a, (size_t)part->lists.nseeds * GPUIR__SEEDS * 4);
  if (!d->seeds) return GPUIR_E_NOMEM;
  d->nseeds = part->lists.nseeds;
  for (gpuir__walk_start(&w, from); gpuir__walk_next(&w);) {
    gpuir__record record;
    gpuir__list whole, l;
    if (w.record.df <= GPUIR__WHOLE || d->ids[w.id] == GPUIR__NO_TERM) continue;
    gpuir__record_get(part, d->ids[w.id], &record);
    if (ix->calls->list_of(from, &w.record, &whole) || ix->calls->list_of(part, &record, &l)) continue;
    if (!whole.seeds || !l.seeds) continue;
    memcpy(d->seeds + (l.seeds - part->lists.seeds), whole.seeds, GPUIR__SEEDS * 4);
  }
  part->lists.seeds = d->seeds;
  return GPUIR_OK;
}

/* Reads the records of a part's terms from its dictionary. */
static int gt_take_records(gt_device *d, const gpuir_allocator *a, const gpuir__segment *part) {
  gpuir__walk w;
  d->records = (gpuir__record *)gpuir__alloc(a, (size_t)part->stat.terms * sizeof *d->records);
  if (!d->records) return GPUIR_E_NOMEM;
  d->nrecords = part->stat.terms;
  for (gpuir__walk_start(&w, part); gpuir__walk_next(&w);) d->records[w.id] = w.record;
  return GPUIR_OK;
}

/* Opens the file of a part as an index that knows the whole's statistics. */
static int gt_open_part(gt_device *d, const gpuir_index *ix, const char *path, gpuir_error *err) {
  const gpuir__segment *from = gpuir__only(ix);
  gpuir__leaf leaf = {NULL, NULL, 0};
  int status = ix->calls->segment_open(&ix->a, AT_FDCWD, path, NULL, &leaf.seg, err);
  if (status) return status;
  memset(&d->shard, 0, sizeof d->shard);
  d->shard.documents = ix->collection;
  d->shard.tokens = from->shard ? from->shard->tokens : from->stat.tokens;
  d->shard.shards = 1;
  leaf.seg->shard = &d->shard;
  leaf.seg->dfs = d->dfs;
  status = gt_seed(d, ix, leaf.seg);
  if (!status) status = gt_take_records(d, &ix->a, leaf.seg);
  if (status) {
    ix->calls->segment_close(leaf.seg);
    return gpuir__fail_nomem(err);
  }
  return gt_make_index(ix, path, &leaf, &d->part, err);
}

/* Makes the part of a device. Its file lies in a folder of its own, and is removed once it is open. */
static int gt_make_part(gt_device *d, const gpuir_index *ix, const char *folder, unsigned threads, gpuir_error *err) {
  const gpuir__segment *from = gpuir__only(ix);
  char path[256], own[240];
  gt_partitioner x;
  int status;
  memset(&x, 0, sizeof x);
  x.from = from;
  x.calls = ix->calls;
  x.to = d;
  x.a = ix->a;
  d->nids = from->stat.terms;
  d->ndfs = gpuir__min64(from->stat.terms, from->stat.postings);
  d->ids = (uint32_t *)gpuir__alloc_zero(&ix->a, (size_t)d->nids * 4 + 4);
  d->dfs = (uint32_t *)gpuir__alloc_zero(&ix->a, (size_t)d->nids * 4 + 4);
  if (!d->ids || !d->dfs) return gpuir__fail_nomem(err);
  if (snprintf(own, sizeof own, "%s/gpuir-part-XXXXXX", folder) >= (int)sizeof own)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_open: the name of the folder is too long");
  if (!mkdtemp(own)) return gpuir__fail_errno(err, own, "cannot make a folder for a part of the index");
  (void)snprintf(path, sizeof path, "%s/part", own);
  status = gt_write_part(&x, ix, path, threads, err);
  if (!status) status = gt_open_part(d, ix, path, err);
  (void)unlink(path);
  (void)rmdir(own);
  return status;
}

/* ---- opening a team ---- */

#ifdef GPUIR_CUDA_SEAM
/* Tests of teams without devices: gives a member's searcher another backend. NULL: the device is attached. */
int (*gpuir_cuda_seam_member)(unsigned member, gpuir_searcher *searcher);
#define GT_DEVICES (!gpuir_cuda_seam_member)
#else
#define GT_DEVICES 1
#endif

/* What opens one device, in a thread of its own. */
typedef struct gt_opening {
  gt_team *team;
  unsigned member, threads;
  const char *folder;
  gpuir_cuda_desc desc;
  int status, threaded;
  pthread_t thread;
  gpuir_error error;
} gt_opening;

/* Opens one device: makes its part, and puts that on the device. */
GPUIR__COLD static void *gt_opening_main(void *argument) {
  gt_opening *o = (gt_opening *)argument;
  gt_device *d = &o->team->devices[o->member];
  if (o->team->parts) o->status = gt_make_part(d, o->team->ix, o->folder, o->threads, &o->error);
  if (!o->status && GT_DEVICES)
    o->status = gc_open_device(d->part ? d->part : o->team->ix, &o->desc, &d->cuda, &o->error);
  return NULL;
}

/* Frees a team and what its devices have. */
static void gt_close(gt_team *t) {
  gpuir_allocator a = t->a;
  unsigned i;
  for (i = 0; i < t->n; i++) {
    gt_device *d = &t->devices[i];
    gc_close_device(d->cuda);
    if (d->part) d->part->calls->index_close(d->part);
    gpuir__free(&a, d->ids, (size_t)d->nids * 4 + 4);
    gpuir__free(&a, d->dfs, (size_t)d->nids * 4 + 4);
    gpuir__free(&a, d->records, (size_t)d->nrecords * sizeof *d->records);
    gpuir__free(&a, d->seeds, (size_t)d->nseeds * GPUIR__SEEDS * 4);
  }
  gpuir__free(&a, t, sizeof *t);
}

/* Returns the folder for the files of parts: in memory, if that has room for twice the index. */
static const char *gt_folder(const gpuir_index *ix) {
  struct statvfs fs;
  if (access("/dev/shm", W_OK | X_OK) || statvfs("/dev/shm", &fs)) return "/tmp";
  return fs.f_bavail * (uint64_t)fs.f_frsize / 2 > gpuir__only(ix)->size ? "/dev/shm" : "/tmp";
}

/* Opens all devices at the same time. The error is that of the first one that fails. */
static int gt_open_all(gt_team *t, const gpuir_cuda_desc *desc, gpuir_error *err) {
  const long processors = sysconf(_SC_NPROCESSORS_ONLN);
  gt_opening *opening = (gt_opening *)gpuir__alloc_zero(&t->a, t->n * sizeof *opening);
  unsigned i;
  int status = GPUIR_OK;
  if (!opening) return gpuir__fail_nomem(err);
  for (i = 0; i < t->n; i++) {
    gt_opening *o = &opening[i];
    o->team = t;
    o->member = i;
    o->threads = processors > 2 * (long)t->n ? (unsigned)processors / t->n : 2;
    o->folder = desc->folder ? desc->folder : gt_folder(t->ix);
    o->desc = *desc;
    o->desc.device = desc->devices[i];
    o->threaded = !pthread_create(&o->thread, NULL, gt_opening_main, o);
    if (!o->threaded) (void)gt_opening_main(o);
  }
  for (i = 0; i < t->n; i++) {
    if (opening[i].threaded) (void)pthread_join(opening[i].thread, NULL);
    if (!opening[i].status || status) continue;
    status = opening[i].status;
    if (err) *err = opening[i].error;
  }
  gpuir__free(&t->a, opening, t->n * sizeof *opening);
  return status;
}

/* Opens an index on several devices. */
static int gt_open(const gpuir_index *ix, const gpuir_cuda_desc *desc, gt_team **team, gpuir_error *err) {
  const gpuir__segment *from = gpuir__only(ix);
  uint32_t starts[GT_MEMBERS];
  gt_team *t;
  unsigned i;
  int status;
  if (desc->ndevices > GT_MEMBERS)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_open: more than %u devices", GT_MEMBERS);
  for (i = 0; i < desc->ndevices; i++)
    if (desc->devices[i] < 0) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_open: bad device");
  if (desc->partition && from->stat.documents < desc->ndevices)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_open: more devices than documents");
  t = (gt_team *)gpuir__alloc_zero(&ix->a, sizeof *t);
  if (!t) return gpuir__fail_nomem(err);
  t->a = ix->a;
  t->ix = ix;
  t->n = (unsigned)desc->ndevices;
  t->parts = desc->partition ? t->n : 0;
  if (t->parts) gt_choose_ranges(from->lengths, from->stat.documents, from->stat.tokens, t->n, starts);
  for (i = 0; i < t->parts; i++) {
    t->devices[i].first = starts[i];
    t->devices[i].end = i + 1 < t->n ? starts[i + 1] : (uint32_t)from->stat.documents;
  }
  status = gt_open_all(t, desc, err);
  if (status) gt_close(t);
  else *team = t;
  return status;
}

/* Adds up what the devices are and did. */
static void gt_info(const gt_team *t, gpuir_cuda_info *sum) {
  unsigned i;
  memset(sum, 0, sizeof *sum);
  for (i = 0; i < t->n && t->devices[i].cuda; i++) {
    gpuir_cuda_info one;
    gc_get_info(t->devices[i].cuda, &one);
    if (!i && t->live) (void)snprintf(sum->device, sizeof sum->device, "%s", one.device);
    else if (!i) (void)snprintf(sum->device, sizeof sum->device, "%u x %.50s", t->n, one.device);
    sum->driver_version = one.driver_version;
    sum->runtime_version = one.runtime_version;
    sum->compute_capability = one.compute_capability;
    sum->device_memory = one.device_memory + (t->live ? 0 : sum->device_memory);
    sum->used_memory += one.used_memory;
    if (t->live) sum->used_memory += t->devices[i].resident->cuda->info.used_memory;
    sum->resident_bytes += one.resident_bytes;
    sum->index_bytes += one.index_bytes;
    sum->lists_hit += one.lists_hit;
    sum->lists_missed += one.lists_missed;
    sum->bytes_sent += one.bytes_sent;
    sum->queries += one.queries;
    sum->batches += one.batches;
    sum->plan_ns += one.plan_ns;
    sum->send_ns += one.send_ns;
    sum->wait_ns += one.wait_ns;
    sum->deliver_ns += one.deliver_ns;
  }
  sum->devices = t->live ? 1 : t->n;
  sum->lost = __atomic_load_n(&t->lost, __ATOMIC_RELAXED);
}
