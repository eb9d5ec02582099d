
/* ========================
 * [cuda-15-team]  host: several devices of one host
 *
 * A team answers one searcher's batches by several devices, its members. Either each of them holds the whole index and
 * every query is answered by one: members have shares of a batch, two by two with a border between them, and take from
 * them half of what is left at a time, in launches that fill a device, since smaller ones take longer. The border is
 * where both will end at once, by what their queries cost and how far each of them is. One that has nothing left takes
 * from the others, also what a device that fails leaves. Or each holds a part, the documents of a range as an index
 * of its own, and every query is answered by all; their hits are merged by score and docID. A part weighs its terms by
 * the whole's N, df and average length, as a shard does, and has the whole's seeds, thresholds that all parts share.
 * So its scores are the whole's, bit for bit, and a hit that it leaves out has k better ones in the whole.
 *
 * Attached, a member is a thread with a searcher: the thread plans and waits, so that devices do not wait for each
 * other's planning, and has two tasks in flight, as a searcher may have batches. A batch takes rounds: the first asks
 * for all queries; another, where it is needed, asks other members for what a lost one left, or, of parts, for OR of
 * those ANDOR queries whose AND has fewer than k hits in all.
 *
 * Start at  gt_open (gt_part: the index of a range), gt_begin, gt_advance (rounds), gt_member_main (a member's thread).
 * Tests     tests/gpu/test_team.c, which needs no device
 * ======================*/

#define GT_LEAST 64u /* queries of a share at least */
#define GT_AND_COST 322000u /* see gt_cost */
#define GT_OR_COST 473000u
#define GT_OR_DRIVING 20u
#define GT_LOOK_NS 500000u /* so long a member looks for work before it sleeps: to be woken can take 200 us; */
#define GT_WATCH_NS 20000000u /* and so long who waits for a batch looks, as it does with one device */
#define GT_MEMBERS ((unsigned)GPUIR_MAX_DEVICES)
#define GT_PIECES 8u /* tasks that a batch of parts becomes for each member at most, */
#define GT_PIECE 1024u /* of so many queries at least: while the device answers some, the next are translated; */
#define GT_FIRST_PIECE 256u /* but the first of several has so many, for which the device waits */
#define GT_TASKS (GT_PIECES * GT_MEMBERS) /* of a round at most */

/* A segment on a device: see [cuda-15b-live]. */
typedef struct gl_resident {
  uint64_t refs; /* snapshots that have it, counted atomically */
  uint64_t hash, size; /* of its file: the header's checksum */
  gpuir_index *alone; /* the segment as an index without deletions */
  gpuir_cuda *cuda;
} gl_resident;

/* A device of an open team. */
typedef struct gt_device {
  gpuir_cuda *cuda;
  gpuir_index *part; /* NULL: it has the whole index */
  uint32_t first, end; /* the documents of its part */
  uint32_t *ids; /* a term's number in the part, by its number in the whole; or GPUIR__NO_TERM */
  uint32_t *dfs; /* by a term's number in the part: the whole's df */
  gpuir__record *records; /* likewise: its record, out of the part's dictionary, as a query needs it soon */
  uint32_t *seeds;
  uint64_t nids, ndfs, nrecords, nseeds; /* room of these; in GPUIR__SEEDS */
  size_t leaf; /* of a snapshot: the segment's number, and what it has on the device */
  gl_resident *resident;
  int weighed; /* 1: contributions and bounds are under the snapshot's N, df and lengths; then it has its own: */
  gc_term *lists;
  gc_aid *aids;
  gc_known *known;
  gpuir__shard shard;
} gt_device;

struct gt_team {
  gpuir_allocator a;
  const gpuir_index *ix;
  unsigned n, parts; /* parts: n, or 0 if each member has the whole index */
  int live; /* 1: the parts are segments of a snapshot, see [cuda-15b-live] */
  uint32_t lost; /* members that failed, of any searcher */
  gt_device devices[GT_MEMBERS];
};

/* ---- parts: the documents of a range as an index of their own ---- */

/* Cuts documents into `parts` ranges with about as many tokens each, of one document at least: range i begins at
 * starts[i]. */
static void gt_cut_documents(const uint32_t *lengths, uint64_t n, uint64_t tokens, unsigned parts, uint32_t *starts) {
  uint64_t sum = 0, at = 0;
  unsigned i;
  for (i = 0; i < parts; i++) {
    const uint64_t share = tokens / parts * i + tokens % parts * i / parts;
    while (at < n - (parts - i) && (sum < share || (i && at == starts[i - 1]))) sum += lengths[at++];
    starts[i] = (uint32_t)at;
  }
}

/* Opens a list, whose decoders are those of the program's engine. */
static int gt_open_list(const gpuir__calls *calls, const gpuir__segment *from, const gpuir_allocator *a,
    const gpuir__record *record, gpuir__list *l) {
  const int status = calls->list_of(from, record, l);
  return status || l->df == 1 ? status : gpuir__list_open_codecs(a, l);
}

/* Makes an index of a leaf, as gpuir__index_make does, with the settings of another one. */
static int gt_make_index(const gpuir_index *like, const char *path, const gpuir__leaf *leaf, gpuir_index **index,
    gpuir_error *err) {
  const int status = like->calls->index_make(&like->a, path, NULL, leaf, 1, like->analysis.pool, index, err);
  if (!status) (*index)->calls = like->calls;
  return status;
}

/* What a part is made from, and how far it is. */
typedef struct gt_cutter {
  const gpuir__segment *from;
  const gpuir__calls *calls;
  gt_device *to;
  gpuir_builder *builder;
  gpuir_allocator a;
  pthread_mutex_t lock; /* of all that follows */
  pthread_cond_t turn; /* the next run may be appended */
  gpuir__walk walk;
  uint64_t claimed, appended; /* runs of terms */
  uint32_t terms; /* of the part */
  int status;
  gpuir_error error;
} gt_cutter;

#define GT_RUN_POSTINGS (1u << 18) /* of the whole that a thread cuts at once, or one list, */
#define GT_RUN_TERMS 1024u /* of so many terms at most */

/* A term of a run. */
typedef struct gt_cut_term {
  uint64_t id; /* in the whole */
  gpuir__record record; /* likewise */
  uint32_t at, len; /* its bytes in gt_knife.text */
} gt_cut_term;

/* One of the threads that make a part. */
typedef struct gt_knife {
  gt_cutter *cutter;
  gpuir__encoder *encoder;
  pthread_t thread;
  uint64_t run; /* that it cuts */
  gt_cut_term terms[GT_RUN_TERMS];
  unsigned nterms;
  gpuir__buf text, postings; /* postings: the docIDs of a list, then its tfs */
  gpuir__batch batch; /* the run's lists of the part */
  uint32_t kept[GT_RUN_TERMS]; /* which terms have one */
} gt_knife;

/* Claims the next run of terms for a thread. 0: there is none. The lock is held. */
static int gt_claim_terms(gt_knife *k, gpuir_error *err) {
  gt_cutter *x = k->cutter;
  uint64_t postings = 0;
  k->nterms = 0;
  k->text.len = 0;
  while (!x->status && postings < GT_RUN_POSTINGS && k->nterms < GT_RUN_TERMS && gpuir__walk_next(&x->walk)) {
    gt_cut_term *t = &k->terms[k->nterms++];
    t->id = x->walk.id;
    t->record = x->walk.record;
    t->at = (uint32_t)k->text.len;
    t->len = (uint32_t)x->walk.len;
    postings += t->record.df;
    if (gpuir__buf_put(&x->a, &k->text, x->walk.term, x->walk.len)) x->status = gpuir__fail_nomem(err);
  }
  k->run = x->claimed;
  x->claimed += k->nterms && !x->status;
  return k->nterms && !x->status;
}

/* Takes the postings of a list in the part's range; *n: how many there are. */
static int gt_cut_list(gt_knife *k, const gpuir__record *record, uint32_t *n, gpuir_error *err) {
  const gt_cutter *x = k->cutter;
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

/* Cuts a run's lists and encodes what of them is in the part. */
static int gt_cut_run(gt_knife *k, gpuir_error *err) {
  const gt_cutter *x = k->cutter;
  unsigned i;
  gpuir__batch_clear(NULL, &k->batch);
  for (i = 0; i < k->nterms; i++) {
    const gt_cut_term *t = &k->terms[i];
    const uint32_t *docids, room = gpuir__min32(t->record.df, x->to->end - x->to->first);
    uint32_t n = 0;
    int status = gt_cut_list(k, &t->record, &n, err);
    if (status) return status;
    if (!n) continue;
    docids = (const uint32_t *)(const void *)k->postings.data;
    k->kept[k->batch.nterms] = i;
    status = x->calls->encode_list(k->encoder, &k->batch, k->text.data + t->at, t->len, docids, docids + room, n, NULL);
    if (status) return gpuir__fail(err, status, 0, "%s: a list of a part: %s", x->from->path, gpuir_strerror(status));
  }
  return GPUIR_OK;
}

/* Appends a run's lists to the part, and notes its terms: one thread at a time does, in the order of the runs. */
static int gt_append_run(const gt_knife *k, gpuir_error *err) {
  gt_cutter *x = k->cutter;
  gpuir_builder *b = x->builder;
  uint64_t i;
  for (i = 0; i < k->batch.nterms; i++) {
    const gt_cut_term *t = &k->terms[k->kept[i]];
    x->to->ids[t->id] = x->terms;
    x->to->dfs[x->terms++] = gpuir__segment_df(x->from, t->id, t->record.df);
  }
  b->merge.terms += k->batch.nterms;
  b->merge.postings += k->batch.postings;
  return x->calls->put_batch(b->writer, &k->batch, err);
}

/* Cuts runs and appends each when those before it have been. */
static void *gt_knife_main(void *argument) {
  gt_knife *k = (gt_knife *)argument;
  gt_cutter *x = k->cutter;
  gpuir_error error;
  (void)pthread_mutex_lock(&x->lock);
  while (gt_claim_terms(k, &x->error)) {
    int status;
    (void)pthread_mutex_unlock(&x->lock);
    status = gt_cut_run(k, &error);
    (void)pthread_mutex_lock(&x->lock);
    while (x->appended != k->run) (void)pthread_cond_wait(&x->turn, &x->lock);
    if (!status && !x->status) {
      (void)pthread_mutex_unlock(&x->lock); /* it is this thread's turn */
      status = gt_append_run(k, &error);
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

/* Puts the lists into the part's builder, by as many threads as it has workers. */
static int gt_cut_lists(gt_cutter *x, gpuir_error *err) {
  gpuir_builder *b = x->builder;
  const unsigned n = b->threads.nworkers;
  gt_knife *knives = (gt_knife *)gpuir__alloc_zero(&x->a, n * sizeof *knives);
  unsigned started, i;
  if (!knives) return gpuir__fail_nomem(err);
  memset(x->to->ids, 0xff, (size_t)x->from->stat.terms * sizeof *x->to->ids); /* GPUIR__NO_TERM */
  gpuir__walk_start(&x->walk, x->from);
  for (i = 0; i < n; i++) {
    knives[i].cutter = x;
    knives[i].encoder = &b->threads.workers[i].encoding.encoder;
  }
  for (started = 1; started < n; started++)
    if (pthread_create(&knives[started].thread, NULL, gt_knife_main, &knives[started])) break;
  (void)gt_knife_main(&knives[0]);
  for (i = 0; i < n; i++) {
    if (i && i < started) (void)pthread_join(knives[i].thread, NULL);
    gpuir__buf_free(&x->a, &knives[i].text);
    gpuir__buf_free(&x->a, &knives[i].postings);
    gpuir__batch_clear(&b->a, &knives[i].batch);
  }
  gpuir__free(&x->a, knives, n * sizeof *knives);
  if (x->status && err) *err = x->error;
  return x->status;
}

/* Puts the part's documents and lists into its builder. */
static int gt_cut_all(gt_cutter *x, gpuir_error *err) {
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
  status = gt_cut_lists(x, err);
  (void)pthread_cond_destroy(&x->turn);
  (void)pthread_mutex_destroy(&x->lock);
  return status;
}

/* Writes the index of a part. */
static int gt_cut(gt_cutter *x, const gpuir_index *ix, const char *path, unsigned threads, gpuir_error *err) {
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
  status = gt_cut_all(x, err);
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

/* Takes the records of a part's terms out of its dictionary. */
static int gt_take_records(gt_device *d, const gpuir_allocator *a, const gpuir__segment *part) {
  gpuir__walk w;
  d->records = (gpuir__record *)gpuir__alloc(a, (size_t)part->stat.terms * sizeof *d->records);
  if (!d->records) return GPUIR_E_NOMEM;
  d->nrecords = part->stat.terms;
  for (gpuir__walk_start(&w, part); gpuir__walk_next(&w);) d->records[w.id] = w.record;
  return GPUIR_OK;
}

/* Opens the file of a part as an index that knows of the whole. */
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

/* Makes the part of a device: its file lies in a folder of its own until it is open. */
static int gt_part(gt_device *d, const gpuir_index *ix, const char *folder, unsigned threads, gpuir_error *err) {
  const gpuir__segment *from = gpuir__only(ix);
  char path[256], own[240];
  gt_cutter x;
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
  status = gt_cut(&x, ix, path, threads, err);
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

GPUIR__COLD static void *gt_opening_main(void *argument) {
  gt_opening *o = (gt_opening *)argument;
  gt_device *d = &o->team->devices[o->member];
  if (o->team->parts) o->status = gt_part(d, o->team->ix, o->folder, o->threads, &o->error);
  if (!o->status && GT_DEVICES)
    o->status = gc_open_device(d->part ? d->part : o->team->ix, &o->desc, &d->cuda, &o->error);
  return NULL;
}

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

/* Returns where the parts of an index can be written: in memory, if that holds twice as much as they take. */
static const char *gt_folder(const gpuir_index *ix) {
  struct statvfs fs;
  if (access("/dev/shm", W_OK | X_OK) || statvfs("/dev/shm", &fs)) return "/tmp";
  return fs.f_bavail * (uint64_t)fs.f_frsize / 2 > gpuir__only(ix)->size ? "/dev/shm" : "/tmp";
}

/* Opens all devices side by side; the error is the first one's. */
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
  if (t->parts) gt_cut_documents(from->lengths, from->stat.documents, from->stat.tokens, t->n, starts);
  for (i = 0; i < t->parts; i++) {
    t->devices[i].first = starts[i];
    t->devices[i].end = i + 1 < t->n ? starts[i + 1] : (uint32_t)from->stat.documents;
  }
  status = gt_open_all(t, desc, err);
  if (status) gt_close(t);
  else *team = t;
  return status;
}

/* Sums up what the devices are and did. */
static void gt_info(const gt_team *t, gpuir_cuda_info *sum) {
  unsigned i;
  memset(sum, 0, sizeof *sum);
  for (i = 0; i < t->n && t->devices[i].cuda; i++) {
    gpuir_cuda_info one;
    gc_device_info(t->devices[i].cuda, &one);
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

/* ---- what a searcher asks of a team ---- */

typedef struct gt_run gt_run;

/* A member's queries of a round, as long as they are in no task. Members of even number take theirs from the
 * beginning on, and those of odd number from the end, so that the border between two shares can be moved. */
typedef struct gt_share {
  size_t at, end;
  size_t begin; /* where its member began, */
  size_t ended; /* how many of those from there on it has answered, */
  uint64_t when; /* and when the last of them, as gpuir__now tells time */
} gt_share;

/* What one round of a batch asks of one member. Its results go to the batch's arrays, or to its own. */
typedef struct gt_task {
  struct gt_task *next; /* in the member's queue */
  gt_share *share; /* its member's own, of which it was taken; or NULL */
  gt_run *run; /* NULL: it is not in use */
  const gpuir_query *const *queries; /* of the whole index */
  gpuir_batch_desc desc;
  gpuir_batch *batch; /* of the member's searcher, while it is in flight */
  const int *cancel;
  uint64_t deadline;
  int as_or, and_first; /* 1: its queries are asked as OR; ANDOR ones as AND */
  int ended; /* atomic; 1: its outcome is there */
  int status;
  gpuir_error error; /* of its first query that failed */
  gpuir__buf results, deadlines; /* hits, counts, statuses; deadlines of each query */
} gt_task;

/* A batch from begin to finish. */
struct gt_run {
  gpuir_batch_desc desc; /* .k is the batch's, at which its hits lie; */
  size_t k; /* how many of them there may be */
  uint64_t deadline;
  const int *cancel;
  int used, ready, again; /* ready: the outcome is there; again: the round is not the first */
  int failed; /* 1: some query did, in any round; written atomically */
  uint64_t open; /* tasks that are not done, and 1 more while there are queries to take; atomic */
  uint64_t batch; /* batches are served by it */
  size_t n, taken; /* queries of the round, and how many of them are in tasks, or were failed: */
  uint32_t *numbers; /* which ones, if it is not the first */
  gpuir__buf gathered; /* that and pointers to them */
  gt_share shares[GT_MEMBERS]; /* of members with the whole index */
  size_t grain; /* queries of a launch of theirs */
  uint64_t since; /* when they were shared out */
  gpuir__buf costs; /* [i] what the queries before number i cost, see gt_cost; */
  const uint64_t *sums; /* these; NULL: they are not known */
  size_t ntasks; /* of the round; */
  size_t merged; /* of parts: so many of them, from the first on, have had their hits merged */
  gt_task tasks[GT_TASKS]; /* of parts those of one piece, by member, behind one another */
  gpuir_error error;
  int status;
};

typedef struct gt_context gt_context;

/* A member of a searcher's team. */
typedef struct gt_member {
  gt_context *context;
  const gt_device *device;
  gpuir_searcher *searcher;
  pthread_t thread;
  int threaded;
  int lost; /* 1: its device failed, and gets no further queries; under the lock */
  gt_task *first, *last; /* those that wait; under the lock */
  gt_task *flown[2]; /* those in flight, the older one first; its thread's, as what follows */
  gt_task *next; /* translated while two are in flight; or NULL */
  gpuir__buf asked[3]; /* a part's queries, of these three tasks, */
  unsigned asks; /* taken in turn: tasks that have been in flight */
} gt_member;

/* What a searcher with a team has. */
struct gt_context {
  gpuir_allocator a;
  gt_team *team;
  pthread_mutex_t lock;
  pthread_cond_t work, done; /* for members; for who waits for a run */
  int ready, stop; /* ready: the three above are initialized */
  uint64_t posted; /* times that something came for members to do; written under the lock, atomic */
  unsigned n;
  gt_member *members;
  gt_run runs[2];
  uint64_t batches; /* begun */
};

/* ---- tasks ---- */

/* Returns the number in the batch of the round's query i. */
static size_t gt_number(const gt_run *r, size_t i) { return r->again ? r->numbers[i] : i; }

/* Returns the round's queries. */
static const gpuir_query *const *gt_queries(const gt_run *r) {
  return r->again ? (const gpuir_query *const *)(void *)r->gathered.data : r->desc.queries;
}

/* Ends a query with a status. */
static void gt_fail_query(gt_run *r, size_t i, int status, const gpuir_error *err) {
  r->desc.statuses[i] = status;
  r->desc.counts[i] = 0;
  gpuir__poke(&r->failed, 1);
  if (r->status) return;
  r->status = status;
  if (err) r->error = *err;
}

/* Describes the round's queries from .. from + n - 1 to a task. Returns NOMEM if it is to have results of its own, and
 * there is no memory for them. */
static int gt_describe(const gt_context *x, const gt_run *r, gt_task *t, size_t from, size_t n, int own) {
  const gpuir_batch_desc *d = &r->desc;
  const size_t hits = GC_ALIGN(n * r->k * sizeof(gpuir_hit));
  uint8_t *at;
  memset(&t->desc, 0, sizeof t->desc);
  t->queries = gt_queries(r) + from;
  t->desc.queries = t->queries;
  t->desc.nq = n;
  t->desc.k = own ? r->k : d->k;
  t->desc.count = d->count;
  if (!r->again && d->deadlines) t->desc.deadlines = d->deadlines + from;
  if (!r->again && d->cancels) t->desc.cancels = d->cancels + from;
  if (!own) {
    t->desc.hits = d->hits + from * d->k;
    t->desc.counts = d->counts + from;
    t->desc.statuses = d->statuses + from;
    return GPUIR_OK;
  }
  at = gpuir__buf_room(&x->a, &t->results, hits + n * 8 + 16);
  if (!at) return GPUIR_E_NOMEM;
  t->desc.hits = (gpuir_hit *)(void *)at;
  t->desc.counts = (uint32_t *)(void *)(at + hits);
  t->desc.statuses = (int *)(void *)(at + hits + n * 4);
  return GPUIR_OK;
}

/* Returns how many members are there. The lock is held. */
static unsigned gt_alive(const gt_context *x) {
  unsigned alive = 0, i;
  for (i = 0; i < x->n; i++) alive += !x->members[i].lost;
  return alive;
}

/* Makes a task one of the run's. The lock is held. */
static void gt_open_task(gt_run *r, gt_task *t) {
  t->run = r;
  t->next = NULL;
  t->share = NULL;
  t->cancel = r->cancel;
  t->deadline = r->deadline;
  t->ended = 0;
  t->status = GPUIR_OK;
  t->error.code = 0;
  (void)__atomic_add_fetch(&r->open, 1, __ATOMIC_ACQ_REL);
}

/* Takes one from what a run waits for. The lock is held. */
static void gt_close_one(gt_context *x, gt_run *r) {
  if (!__atomic_sub_fetch(&r->open, 1, __ATOMIC_ACQ_REL)) (void)pthread_cond_broadcast(&x->done);
}

/* Tells members that something came for them to do. The lock is held. */
static void gt_post(gt_context *x) {
  (void)__atomic_add_fetch(&x->posted, 1, __ATOMIC_RELEASE);
  (void)pthread_cond_broadcast(&x->work);
}

/* Gives a member a task. The lock is held. */
static void gt_give(gt_context *x, gt_member *m, gt_run *r, gt_task *t) {
  gt_open_task(r, t);
  if (m->last) m->last->next = t;
  else m->first = t;
  m->last = t;
  gt_post(x);
}

/* Notes that n of the round's queries are in tasks, or were failed. The lock is held. */
static void gt_took(gt_context *x, gt_run *r, size_t n) {
  r->taken += n;
  if (r->taken == r->n) gt_close_one(x, r);
}

/* Fails the round's queries from .. from + n - 1, which are in no task. The lock is held. */
static void gt_drop(gt_context *x, gt_run *r, size_t from, size_t n, int status) {
  size_t i;
  for (i = from; i < from + n; i++) gt_fail_query(r, gt_number(r, i), status, NULL);
  gt_took(x, r, n);
}

/* Shares a round's queries out among the members that are there, or some of them if they are few. The lock is held. */
static void gt_share_out(const gt_context *x, gt_run *r) {
  const gpuir_cuda *c = x->team->devices[0].cuda;
  const size_t shares = (size_t)gpuir__max64(1, gpuir__min64(gt_alive(x), r->n / GT_LEAST));
  const unsigned first =
      shares < x->n ? (unsigned)(r->batch % x->n) : 0; /* not always the same one for small batches */
  size_t given = 0;
  unsigned i;
  memset(r->shares, 0, sizeof r->shares);
  r->since = gpuir__now();
  r->sums = NULL;
  for (i = 0; i < x->n && given < shares; i++) {
    const unsigned to = (first + i) % x->n;
    if (x->members[to].lost) continue;
    r->shares[to].at = r->n * given / shares;
    r->shares[to].end = r->n * ++given / shares;
    r->shares[to].begin = to & 1 ? r->shares[to].end : r->shares[to].at;
  }
  r->grain = c && !c->by_itself ? c->batch : gc_piece_most(gt_queries(r), r->n);
}

/* Moves the border between the shares of two members to where both will end at once, as far as neither has taken
 * queries beyond it: each goes on from where it last ended some, both at the pace of both. The lock is held. */
static void gt_move_border(const gt_context *x, gt_run *r, unsigned even) {
  gt_share *a = &r->shares[even], *b = a + 1;
  const uint64_t *sums = r->sums;
  size_t lo = a->at, hi = b->end;
  double middle;
  if (!sums || even + 1 >= x->n || a->end != b->at || x->members[even].lost || x->members[even + 1].lost) return;
  middle = ((double)sums[a->begin] + (double)sums[b->begin]) / 2;
  if (a->ended && b->ended) {
    const uint64_t first = sums[a->begin + a->ended], last = sums[b->begin - b->ended];
    const uint64_t gone = first - sums[a->begin] + sums[b->begin] - last;
    const double spent = (double)(a->when - r->since) + (double)(b->when - r->since);
    const double ahead = (double)b->when - (double)a->when; /* so long a has worked since, while b had not ended */
    middle = ((double)first + (double)last + ahead * (double)gone / (spent > 1 ? spent : 1)) / 2;
  }
  while (lo < hi) {
    const size_t mid = lo + (hi - lo) / 2;
    if ((double)sums[mid] < middle) lo = mid + 1;
    else hi = mid;
  }
  a->end = b->at = lo;
}

/* Moves the border of a member's share, and returns the share of a run from which it takes next: its own one; or, if it
 * has nothing else to do, or the owner was lost, the largest. NULL: there is none. The lock is held. */
static gt_share *gt_choose_share(const gt_member *m, gt_run *r) {
  const gt_context *x = m->context;
  gt_share *best = &r->shares[m - x->members];
  unsigned i;
  gt_move_border(x, r, (unsigned)(m - x->members) & ~1u);
  if (best->at < best->end) return best;
  for (i = 0; i < x->n; i++) {
    gt_share *s = &r->shares[i];
    if ((!m->flown[0] || x->members[i].lost) && s->end - s->at > best->end - best->at) best = s;
  }
  return best->at < best->end ? best : NULL;
}

/* Returns how many queries a member takes of its own share, of which `left` are left: half of the launches that these
 * are, and first, if its device waits, what a batch's first launch has then. A launch fills the device; all have as
 * many where the last one would have next to nothing. */
static size_t gt_own_cut(const gt_run *r, size_t left, int waits) {
  const size_t begin = waits && left > r->grain ? GC_FIRST_QUERIES : 0, rest = left - begin;
  const size_t launches = (rest + r->grain - 1) / r->grain, last = rest - (launches - 1) * r->grain;
  const size_t each = last < r->grain / 4 ? (rest + launches - 1) / launches : r->grain;
  return begin + each * ((launches + 1) / 2);
}

/* Cuts the queries of a task from a share, the member's own or not; waits: 1 if its device has nothing to do. Returns
 * the first, and how many in *n. */
static size_t gt_cut_share(const gt_run *r, gt_share *s, int own, int waits, size_t *n) {
  const size_t left = s->end - s->at;
  const int odd = (s - r->shares) & 1, at_end = odd == own;
  *n = own ? gt_own_cut(r, left, waits) : gpuir__max64(left / 2, GT_LEAST);
  if (*n + (own ? 0 : GT_LEAST / 2) > left || r->ntasks + GT_MEMBERS >= GT_TASKS) *n = left;
  if (at_end) s->end -= *n;
  else s->at += *n;
  return at_end ? s->end : s->at - *n;
}

/* Makes a task of queries of the oldest batch that has some for a member. NULL: there are none. The lock is held. */
static gt_task *gt_take_some(gt_member *m) {
  gt_context *x = m->context;
  gt_run *r = &x->runs[x->runs[1].used && (!x->runs[0].used || x->runs[1].batch < x->runs[0].batch)];
  gt_share *s = r->used && r->taken < r->n ? gt_choose_share(m, r) : NULL;
  gt_task *t;
  size_t from, n;
  int own;
  if (!s) {
    r = &x->runs[r == x->runs];
    s = r->used && r->taken < r->n ? gt_choose_share(m, r) : NULL;
  }
  if (!s) return NULL;
  own = s == &r->shares[m - x->members];
  from = gt_cut_share(r, s, own, !m->flown[0], &n);
  t = &r->tasks[r->ntasks];
  if (gt_describe(x, r, t, from, n, r->again)) {
    gt_drop(x, r, from, n, GPUIR_E_NOMEM);
    return NULL;
  }
  r->ntasks++;
  gt_open_task(r, t);
  if (own) t->share = s;
  gt_took(x, r, n);
  return t;
}

/* Fails what nobody can take, as no member is there. The lock is held. */
static void gt_give_up(gt_context *x) {
  unsigned i, j;
  for (i = 0; i < 2 && !gt_alive(x); i++) {
    gt_run *r = &x->runs[i];
    for (j = 0; j < x->n && r->used && r->taken < r->n; j++) {
      gt_share *s = &r->shares[j];
      const size_t n = s->end - s->at;
      s->end = s->at;
      if (n) gt_drop(x, r, s->at, n, GPUIR_E_BACKEND);
    }
  }
}

/* Returns how many postings the lists have through which MaxScore drives: beyond the others' documents, the longest
 * lists', some may reach the threshold that is known beforehand. Of a list with seeds that is about its weight. */
static uint64_t gt_driving(const gpuir_query *q) {
  float threshold = 0;
  uint64_t sum = 0;
  unsigned i, j;
  for (i = 0; i < q->npositive; i++) {
    const float weight = (float)q->terms[i].q * q->terms[i].weight;
    if (q->terms[i].df > GPUIR__WHOLE && weight > threshold) threshold = weight;
  }
  for (i = 0; i < q->npositive; i++) {
    float most = 0; /* of a document that is in no shorter list */
    for (j = 0; j < q->npositive; j++)
      if (q->terms[j].df >= q->terms[i].df) most += (float)q->terms[j].q * q->terms[j].weight;
    if (most >= threshold) sum += q->terms[i].df;
  }
  return sum;
}

/* Returns about how long a device takes for a query, in look-ups: of each posting of the shortest list in all of them,
 * and of OR, of one of twenty that drive in all others. A line through the times of 2,500 calls of 1,000 random queries
 * each, on 25.2 million documents and an H100: what is left is 1.9 % of a call's time for AND and 2.6 % for OR, while
 * calls differ by 6.8 %. By the shortest list alone it is 3.2 and 4.5 %; by that and more of 20 properties of a query
 * 1.8 and 2.4 %. */
static uint64_t gt_cost(const gpuir_query *q) {
  const uint64_t n = q->npositive;
  const int all = q->mode == GPUIR_AND;
  uint32_t least = UINT32_MAX;
  unsigned i;
  for (i = 0; i < n; i++)
    if (all || q->terms[i].df) least = gpuir__min32(least, q->terms[i].df);
  if (!least || least == UINT32_MAX) return 0; /* it has no hits */
  return n * least + (all ? GT_AND_COST : (n - 1) * gt_driving(q) / GT_OR_DRIVING + GT_OR_COST);
}

/* Adds up what a batch's queries cost, while members begin with the first of them, and moves the borders between their
 * shares by it. */
static void gt_level(gt_context *x, gt_run *r) {
  const gpuir_query *const *q = gt_queries(r);
  uint64_t *sums = (uint64_t *)(void *)gpuir__buf_room(&x->a, &r->costs, (r->n + 1) * sizeof *sums);
  size_t i;
  if (!sums) return;
  for (sums[0] = 0, i = 0; i < r->n; i++) sums[i + 1] = sums[i] + gt_cost(q[i]);
  (void)pthread_mutex_lock(&x->lock);
  r->sums = sums;
  for (i = 0; i < x->n; i += 2) gt_move_border(x, r, (unsigned)i);
  (void)pthread_mutex_unlock(&x->lock);
}

/* ---- a member's thread ---- */

static const gpuir__calls *gt_calls(const gt_member *m) { return m->context->team->ix->calls; }

static int gt_unanswerable(const gpuir_query *q) { return q->nphrases || q->nprefixes; }

/* Returns whether parts do not answer a query: only those that are segments have positions. */
static int gt_refuses(const gt_team *t, const gpuir_query *q) {
  if (q->nrequired < q->npositive && q->mode != GPUIR_OR) return 1; /* optional terms */
  return t->live ? q->nprefixes > 0 : gt_unanswerable(q);
}

/* Returns how many members of phrases parts are told of. */
static unsigned gt_members_of(const gt_team *t, const gpuir_query *q) {
  return t->live && q->nphrases ? q->phrases->nmembers : 0;
}

/* Finds what has this number in a query, of a term or of a phrase's member, in a part. */
static void gt_translate_id(const gt_device *d, const gpuir_query *q, gpuir_query *to, unsigned number) {
  uint32_t id = q->ids[d->leaf * GPUIR__IDS + number];
  gpuir__record *r = gpuir__query_record(to, 0, number);
  memset(r, 0, sizeof *r);
  if (number < GPUIR__ID_MEMBERS && q->terms[number].tokens) id = GPUIR__NO_TERM;
  if (id != GPUIR__NO_TERM && d->ids) id = d->ids[id];
  to->ids[number] = id;
  if (id == GPUIR__NO_TERM) return;
  if (d->records) *r = d->records[id];
  else gpuir__record_get(d->part->leaves[0].seg, id, r);
}

/* Copies a query for a part of the index: its terms have other numbers there, or none. Of one that devices do not
 * answer nothing is asked: gt_merge_query fails it. */
static gpuir_query *gt_translate(const gt_task *t, const gt_member *m, const gpuir_query *q, uint8_t **at) {
  const gt_device *d = m->device;
  const gt_team *team = m->context->team;
  const unsigned members = gt_members_of(team, q);
  const size_t each = members ? sizeof q->terms[0] : offsetof(gpuir__query_term, text); /* a text that nobody reads */
  gpuir_query *to = (gpuir_query *)(void *)*at;
  unsigned i;
  memcpy((void *)to, q, offsetof(gpuir_query, terms));
  *at += GC_ALIGN(offsetof(gpuir_query, terms) + q->n * sizeof q->terms[0]);
  to->ids = (uint32_t *)(void *)*at;
  *at += GC_ALIGN((GPUIR__ID_MEMBERS + members) * sizeof(uint32_t));
  to->records = (gpuir__record *)(void *)*at;
  *at += GC_ALIGN((q->n + members) * sizeof(gpuir__record));
  to->ix = d->part;
  to->nrecords = q->n + members;
  if (team->live) to->stored_bm25 = q->stored_bm25 && d->weighed; /* or else it is as under other k1 and b */
  if (t->as_or) to->mode = GPUIR_OR;
  else if (t->and_first && q->mode == GPUIR_ANDOR) to->mode = GPUIR_AND;
  for (i = 0; i < q->n; i++) {
    memcpy((void *)&to->terms[i], &q->terms[i], each);
    if (!members) to->terms[i].len = 0;
    gt_translate_id(d, q, to, i);
  }
  for (i = 0; i < members; i++) gt_translate_id(d, q, to, GPUIR__ID_MEMBERS + i);
  if (gt_refuses(team, q))
    to->n = to->npositive = to->nrequired = to->nunknown = to->nknown = to->nphrases = to->nprefixes = 0;
  return to;
}

/* Prefetches what translating a query for a part of a team will read, each thing when what leads to it has come: number
 * i of n queries, and those behind it. */
static void gt_expect(const gt_device *d, const gpuir_query *const *queries, size_t i, size_t n) {
  enum { HEAD = 20, TERMS = 14, IDS = 10, RECORDS = 5 }; /* so many queries ahead */
  unsigned t;
  if (!d->records) return;
  if (i + HEAD < n)
    for (t = 0; t < offsetof(gpuir_query, terms); t += 64) __builtin_prefetch((const char *)queries[i + HEAD] + t);
  if (i + TERMS < n) {
    __builtin_prefetch(queries[i + TERMS]->ids);
    for (t = 0; t < queries[i + TERMS]->n; t++) __builtin_prefetch(&queries[i + TERMS]->terms[t]);
  }
  for (t = 0; i + IDS < n && t < queries[i + IDS]->n; t++) {
    const uint32_t id = gpuir__query_id(queries[i + IDS], 0, t);
    if (id != GPUIR__NO_TERM) __builtin_prefetch(&d->ids[id]);
  }
  for (t = 0; i + RECORDS < n && t < queries[i + RECORDS]->n; t++) {
    const uint32_t id = gpuir__query_id(queries[i + RECORDS], 0, t);
    if (id != GPUIR__NO_TERM && d->ids[id] != GPUIR__NO_TERM) __builtin_prefetch(&d->records[d->ids[id]]);
  }
}

/* Makes a part's queries of a task's, and has the task in flight go on meanwhile. */
static int gt_translate_all(gt_member *m, gt_task *t, gpuir_error *err) {
  gpuir__buf *asked = &m->asked[m->asks % 3];
  const gpuir_query **to;
  uint8_t *at;
  size_t size = t->desc.nq * sizeof *to, i;
  for (i = 0; i < t->desc.nq; i++) {
    const gpuir_query *q = t->queries[i];
    const unsigned members = gt_members_of(m->context->team, q);
    size += GC_ALIGN(offsetof(gpuir_query, terms) + q->n * sizeof q->terms[0]) +
        GC_ALIGN((GPUIR__ID_MEMBERS + members) * sizeof(uint32_t)) + GC_ALIGN((q->n + members) * sizeof(gpuir__record));
  }
  to = (const gpuir_query **)(void *)gpuir__buf_room(&m->context->a, asked, size + 16);
  if (!to) return gpuir__fail_nomem(err);
  at = (uint8_t *)to + GC_ALIGN(t->desc.nq * sizeof *to);
  for (i = 0; i < t->desc.nq; i++) {
    gt_expect(m->device, t->queries, i, t->desc.nq);
    to[i] = gt_translate(t, m, t->queries[i], &at);
    if (i % 64 == 63 && m->flown[0]) (void)gt_calls(m)->search_poll(m->flown[0]->batch);
  }
  t->desc.queries = to;
  return GPUIR_OK;
}

/* Gives each query of a task its time limit, which is the batch's too. */
static int gt_limit(const gt_member *m, gt_task *t, gpuir_error *err) {
  uint64_t *to;
  size_t i;
  if (!t->deadline) return GPUIR_OK;
  to = (uint64_t *)(void *)gpuir__buf_room(&m->context->a, &t->deadlines, t->desc.nq * sizeof *to);
  if (!to) return gpuir__fail_nomem(err);
  for (i = 0; i < t->desc.nq; i++) {
    const uint64_t own = t->desc.deadlines ? t->desc.deadlines[i] : 0;
    to[i] = own && own < t->deadline ? own : t->deadline;
  }
  t->desc.deadlines = to;
  return GPUIR_OK;
}

/* Fails all queries of a task. */
static void gt_fail_task(gt_task *t, int status) {
  size_t i;
  t->status = status;
  for (i = 0; i < t->desc.nq; i++) {
    t->desc.statuses[i] = status;
    t->desc.counts[i] = 0;
  }
}

/* Prepares a task for its member: it has then a status. */
static void gt_prepare(gt_member *m, gt_task *t) {
  t->status = gt_limit(m, t, &t->error);
  if (!t->status && m->device->part) t->status = gt_translate_all(m, t, &t->error);
}

/* Begins a task that is prepared; 0 if it is not in flight. */
static int gt_task_begin(gt_member *m, gt_task *t) {
  int status = t->status;
  if (!status) {
    m->searcher->engine.limits.cancel = t->cancel;
    status = gt_calls(m)->search_begin(m->searcher, &t->desc, &t->batch);
    if (status) gpuir_searcher_error(m->searcher, &t->error);
  }
  if (status) gt_fail_task(t, status);
  return !status;
}

static void gt_task_finish(gt_member *m, gt_task *t) {
  m->searcher->engine.limits.cancel = t->cancel;
  t->status = gt_calls(m)->search_finish(t->batch);
  if (t->status) gpuir_searcher_error(m->searcher, &t->error);
}

/* Returns whether a query's failure means that the device has failed, not that it cannot answer that query. */
static int gt_is_lost(const gpuir_query *q, int status) { return status == GPUIR_E_BACKEND && !gt_unanswerable(q); }

/* Notes that a task is done. The lock is held. */
static void gt_task_done(gt_member *m, gt_task *t) {
  gt_context *x = m->context;
  size_t i;
  if (t->status) gpuir__poke(&t->run->failed, 1);
  for (i = 0; t->status && !m->lost && i < t->desc.nq; i++) {
    m->lost = gt_is_lost(t->queries[i], t->desc.statuses[i]);
    if (m->lost) (void)__atomic_add_fetch(&x->team->lost, 1, __ATOMIC_RELAXED);
  }
  if (m->lost) gt_give_up(x);
  if (t->share) {
    t->share->ended += t->desc.nq;
    t->share->when = gpuir__now();
  }
  __atomic_store_n(&t->ended, 1, __ATOMIC_RELEASE);
  gt_close_one(x, t->run);
}

/* Takes the next task that waits, or queries that do. NULL: nothing does. The lock is held. */
static gt_task *gt_take(gt_member *m) {
  gt_task *t = m->first;
  if (!t) return m->lost ? NULL : gt_take_some(m);
  m->first = t->next;
  if (!m->first) m->last = NULL;
  return t;
}

/* Begins a task, or without one waits for the older of those in flight. Returns the task that has ended, or NULL. */
static gt_task *gt_work(gt_member *m, gt_task *t) {
  if (t) {
    if (t != m->next) gt_prepare(m, t);
    m->next = NULL;
    if (!gt_task_begin(m, t)) return t;
    m->asks++;
    m->flown[m->flown[0] != NULL] = t;
    return NULL;
  }
  if (m->next) gt_prepare(m, m->next);
  t = m->flown[0];
  gt_task_finish(m, t);
  m->flown[0] = m->flown[1];
  m->flown[1] = NULL;
  return t;
}

/* Looks for work that has come since `posted`, as long as a member may. */
static void gt_look(const gt_context *x, uint64_t posted) {
  const uint64_t until = gpuir__now() + GT_LOOK_NS;
  while (__atomic_load_n(&x->posted, __ATOMIC_ACQUIRE) == posted && gpuir__now() < until) (void)sched_yield();
}

static void *gt_member_main(void *argument) {
  gt_member *m = (gt_member *)argument;
  gt_context *x = m->context;
  int looked = 0; /* 1: since its last task, in vain */
  (void)pthread_mutex_lock(&x->lock);
  for (;;) {
    gt_task *t = NULL;
    if (!m->flown[1]) t = m->next ? m->next : gt_take(m);
    else if (m->device->part) m->next = gt_take(m); /* one with the whole index takes as late as it can */
    if (t || m->flown[0]) {
      (void)pthread_mutex_unlock(&x->lock);
      t = gt_work(m, t);
      (void)pthread_mutex_lock(&x->lock);
      if (t) gt_task_done(m, t);
      looked = 0;
    } else if (x->stop) {
      break;
    } else if (!looked) {
      const uint64_t posted = x->posted;
      (void)pthread_mutex_unlock(&x->lock);
      gt_look(x, posted);
      (void)pthread_mutex_lock(&x->lock);
      looked = 1;
    } else {
      (void)pthread_cond_wait(&x->work, &x->lock);
    }
  }
  (void)pthread_mutex_unlock(&x->lock);
  return NULL;
}

/* ---- rounds ---- */

/* Asks all members for all queries of a round; each has a part. */
static void gt_ask_all(gt_context *x, gt_run *r) {
  size_t from, piece, j, n = 0;
  unsigned i;
  piece = r->n > GT_PIECE ? GT_FIRST_PIECE : r->n;
  for (from = 0; from < r->n; from += piece) {
    if (from == GT_FIRST_PIECE) piece = gpuir__max64(GT_PIECE, (r->n - from + GT_PIECES - 2) / (GT_PIECES - 1));
    for (i = 0; i < x->n; i++, n++) {
      gt_task *t = &r->tasks[n];
      if (gt_describe(x, r, t, from, gpuir__min64(piece, r->n - from), 1)) break;
      t->as_or = r->again;
      t->and_first = !r->again;
    }
    if (i < x->n) break;
  }
  r->taken = r->n;
  if (from >= r->n) {
    r->ntasks = n;
    for (j = 0; j < n; j++) gt_give(x, &x->members[j % x->n], r, &r->tasks[j]);
    return;
  }
  for (j = 0; j < r->n; j++) gt_fail_query(r, gt_number(r, j), GPUIR_E_NOMEM, NULL);
  r->n = 0;
}

/* Begins a round of the queries whose numbers are there, if there are any; 0 if not. The lock is held. */
static int gt_round(gt_context *x, gt_run *r) {
  if (!r->n) return 0;
  r->ntasks = r->merged = r->taken = 0;
  if (x->team->parts) {
    gt_ask_all(x, r);
    return 1;
  }
  gt_share_out(x, r);
  (void)__atomic_add_fetch(&r->open, 1, __ATOMIC_ACQ_REL);
  gt_post(x);
  return 1;
}

/* Collects the queries of the batch for which `wanted` is true for another round. Returns how many there are. Without
 * memory it returns 0, and those of them that have not failed yet fail with NOMEM. */
static size_t gt_gather(const gt_context *x, gt_run *r, int (*wanted)(const gt_run *r, size_t i)) {
  const size_t nq = r->desc.nq;
  const gpuir_query **q;
  size_t i, n = 0;
  for (i = 0; i < nq; i++) n += wanted(r, i) != 0;
  if (!n) return 0;
  q = (const gpuir_query **)(void *)gpuir__buf_room(&x->a, &r->gathered, n * (sizeof *q + sizeof *r->numbers));
  for (i = 0; !q && i < nq; i++)
    if (wanted(r, i) && !r->desc.statuses[i]) gt_fail_query(r, i, GPUIR_E_NOMEM, NULL);
  if (!q) return 0;
  r->numbers = (uint32_t *)(void *)(q + n);
  for (n = i = 0; i < nq; i++) {
    if (!wanted(r, i)) continue;
    r->numbers[n] = (uint32_t)i;
    q[n++] = r->desc.queries[i];
  }
  return n;
}

/* Returns the most significant of what orders hits: greater ones come first. */
static inline uint64_t gt_key(gpuir_hit h) { return (uint64_t)h.score << 32 | (uint32_t)~h.docid; }

/* A member's hits of a query, as they are merged. */
typedef struct gt_source {
  const gpuir_hit *at, *end;
  uint32_t first; /* the whole's number of the part's first document */
} gt_source;

/* Merges sources of hits, best first, to the k best ones. Returns how many there are. */
static uint32_t gt_merge(gt_source *from, unsigned n, size_t k, gpuir_hit *to) {
  uint32_t got = 0;
  while (got < k) {
    gpuir_hit hit = {0, 0};
    gt_source *best = NULL;
    unsigned i;
    for (i = 0; i < n; i++) {
      gpuir_hit h;
      if (from[i].at == from[i].end) continue;
      h = *from[i].at;
      h.docid += from[i].first;
      if (best && gt_key(h) < gt_key(hit)) continue;
      best = &from[i];
      hit = h;
    }
    if (!best) break;
    best->at++;
    to[got++] = hit;
  }
  return got;
}

/* Fails a query that no device answers. */
static void gt_refuse(gt_run *r, size_t i) {
  gpuir_error error;
  const int status = gpuir__fail(&error, GPUIR_E_BACKEND, 0, "the CUDA backend answers neither phrases nor prefixes");
  gt_fail_query(r, i, status, &error);
}

/* Merges the parts' hits of a query, number i of the tasks that have it, one a member. It fails if it has in one. */
static void gt_merge_query(const gt_context *x, gt_run *r, const gt_task *tasks, size_t i) {
  const size_t number = gt_number(r, (size_t)(tasks[0].queries - gt_queries(r)) + i);
  gt_source from[GT_MEMBERS];
  const gt_task *bad = NULL;
  uint32_t sum = 0;
  unsigned m;
  for (m = 0; m < x->n; m++) {
    const gpuir_batch_desc *d = &tasks[m].desc;
    from[m].at = d->hits + i * r->k;
    from[m].end = from[m].at + d->counts[i];
    from[m].first = x->members[m].device->first;
    sum += d->counts[i];
    if (d->statuses[i] && !bad) bad = &tasks[m];
  }
  if (gt_refuses(x->team, r->desc.queries[number])) gt_refuse(r, number);
  else if (bad) gt_fail_query(r, number, bad->desc.statuses[i], &bad->error);
  else if (r->desc.count) r->desc.counts[number] = sum;
  else r->desc.counts[number] = gt_merge(from, x->n, r->k, r->desc.hits + number * r->desc.k);
}

/* Merges the hits of those queries of a round that all parts have answered. */
static void gt_merge_some(const gt_context *x, gt_run *r) {
  for (; r->merged < r->ntasks; r->merged += x->n) {
    const gt_task *tasks = &r->tasks[r->merged];
    size_t i;
    for (i = 0; i < x->n; i++)
      if (!__atomic_load_n(&tasks[i].ended, __ATOMIC_ACQUIRE)) return;
    for (i = 0; i < tasks[0].desc.nq; i++) gt_merge_query(x, r, tasks, i);
  }
}

/* Copies the outcome of a round that was not the first, of members that have the whole index. */
static void gt_copy_all(gt_run *r) {
  size_t i, m;
  for (m = 0; m < r->ntasks; m++) {
    const gt_task *t = &r->tasks[m];
    const size_t from = (size_t)(t->queries - (const gpuir_query *const *)(void *)r->gathered.data);
    for (i = 0; i < t->desc.nq; i++) {
      const size_t number = gt_number(r, from + i);
      r->desc.statuses[number] = t->desc.statuses[i];
      r->desc.counts[number] = t->desc.counts[i];
      if (!r->desc.count)
        memcpy(r->desc.hits + number * r->desc.k, t->desc.hits + i * r->k, t->desc.counts[i] * sizeof(gpuir_hit));
    }
  }
}

static int gt_wants_other(const gt_run *r, size_t i) { return gt_is_lost(r->desc.queries[i], r->desc.statuses[i]); }

static int gt_wants_or(const gt_run *r, size_t i) {
  return r->desc.queries[i]->mode == GPUIR_ANDOR && !r->desc.count && !r->desc.statuses[i] && r->desc.counts[i] < r->k;
}

/* Chooses the words for a run's status, its first query's that failed. */
static void gt_conclude(gt_run *r) {
  size_t i, m;
  for (i = 0; r->failed && i < r->desc.nq && !r->desc.statuses[i]; i++) {}
  r->status = r->failed && i < r->desc.nq ? r->desc.statuses[i] : GPUIR_OK;
  for (m = 0; m < r->ntasks && r->status && r->error.code != r->status; m++)
    if (r->tasks[m].status == r->status) r->error = r->tasks[m].error;
  r->ready = 1;
}

/* Goes on with a run none of whose tasks is open: to another round, or to its outcome. The lock is held. */
static void gt_advance(gt_context *x, gt_run *r) {
  size_t more = 0;
  if (x->team->parts) {
    gt_merge_some(x, r);
    if (!r->again) more = gt_gather(x, r, gt_wants_or);
  } else {
    if (r->again) gt_copy_all(r);
    if (r->failed && gt_alive(x)) more = gt_gather(x, r, gt_wants_other);
  }
  r->n = more;
  r->again = 1;
  if (!gt_round(x, r)) gt_conclude(r);
}

/* ---- the backend, see gpuir_backend ---- */

/* Returns whether there are members enough to answer queries. The lock is held. */
static int gt_can(const gt_context *x) { return gt_alive(x) >= (x->team->parts ? x->n : 1); }

static int gt_begin(void *context, const gpuir_batch_desc *batch, uint64_t deadline, const int *cancel, void **running,
    gpuir_error *err) {
  gt_context *x = (gt_context *)context;
  gt_run *r = x->runs[0].used ? &x->runs[1] : &x->runs[0];
  size_t i;
  if (r->used) return gpuir__fail(err, GPUIR_E_BUSY, 0, "two batches are in flight");
  if (batch->nq >= UINT32_MAX) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "too many queries");
  (void)pthread_mutex_lock(&x->lock);
  if (!gt_can(x)) {
    (void)pthread_mutex_unlock(&x->lock);
    return gpuir__fail(err, GPUIR_E_BACKEND, 0,
        x->team->parts ? "a device of several was lost" : "all devices were lost");
  }
  r->desc = *batch;
  r->desc.thresholds = NULL;
  r->k = (size_t)gpuir__min64(batch->k, x->team->ix->documents);
  r->deadline = deadline;
  r->cancel = cancel;
  r->used = 1;
  r->batch = ++x->batches;
  r->ready = r->again = r->failed = r->status = 0;
  r->error.code = 0;
  r->n = r->k || r->desc.count ? batch->nq : 0;
  for (i = 0; i < batch->nq; i++) batch->counts[i] = 0;
  if (!gt_round(x, r)) gt_conclude(r);
  (void)pthread_mutex_unlock(&x->lock);
  if (!x->team->parts && r->n / x->n > r->grain) gt_level(x, r);
  *running = r;
  return GPUIR_OK;
}

static int gt_poll(void *context, void *running) {
  gt_context *x = (gt_context *)context;
  gt_run *r = (gt_run *)running;
  if (r->ready) return 1;
  if (__atomic_load_n(&r->open, __ATOMIC_ACQUIRE)) {
    if (x->team->parts) gt_merge_some(x, r);
    return 0;
  }
  (void)pthread_mutex_lock(&x->lock);
  gt_advance(x, r);
  (void)pthread_mutex_unlock(&x->lock);
  return r->ready;
}

/* Looks at how many tasks of a run are open, until there are none, as long as it may; merges meanwhile what parts have
 * answered. */
static void gt_watch(const gt_context *x, gt_run *r) {
  const uint64_t until = gpuir__now() + GT_WATCH_NS;
  while (__atomic_load_n(&r->open, __ATOMIC_ACQUIRE) && gpuir__now() < until) {
    if (x->team->parts) gt_merge_some(x, r);
    (void)sched_yield();
  }
}

static int gt_finish(void *context, void *running, gpuir_error *err) {
  gt_context *x = (gt_context *)context;
  gt_run *r = (gt_run *)running;
  (void)pthread_mutex_lock(&x->lock);
  while (!r->ready) {
    (void)pthread_mutex_unlock(&x->lock);
    gt_watch(x, r);
    (void)pthread_mutex_lock(&x->lock);
    while (__atomic_load_n(&r->open, __ATOMIC_ACQUIRE)) (void)pthread_cond_wait(&x->done, &x->lock);
    gt_advance(x, r);
  }
  r->used = 0;
  (void)pthread_mutex_unlock(&x->lock);
  if (r->status && err) *err = r->error;
  return r->status;
}

/* ---- attaching ---- */

/* The backend's close. */
static void gt_detach(void *context) {
  gt_context *x = (gt_context *)context;
  gpuir_allocator a;
  unsigned i, j;
  if (!x) return;
  a = x->a;
  if (x->ready) {
    (void)pthread_mutex_lock(&x->lock);
    x->stop = 1;
    (void)pthread_cond_broadcast(&x->work);
    (void)pthread_mutex_unlock(&x->lock);
  }
  for (i = 0; x->members && i < x->n; i++) {
    if (x->members[i].threaded) (void)pthread_join(x->members[i].thread, NULL);
    x->team->ix->calls->searcher_destroy(x->members[i].searcher);
    for (j = 0; j < 3; j++) gpuir__buf_free(&a, &x->members[i].asked[j]);
  }
  for (i = 0; i < 2; i++) {
    for (j = 0; j < GT_TASKS; j++) {
      gpuir__buf_free(&a, &x->runs[i].tasks[j].results);
      gpuir__buf_free(&a, &x->runs[i].tasks[j].deadlines);
    }
    gpuir__buf_free(&a, &x->runs[i].gathered);
    gpuir__buf_free(&a, &x->runs[i].costs);
  }
  if (x->ready) {
    (void)pthread_cond_destroy(&x->done);
    (void)pthread_cond_destroy(&x->work);
    (void)pthread_mutex_destroy(&x->lock);
  }
  gpuir__free(&a, x->members, x->n * sizeof *x->members);
  gpuir__free(&a, x, sizeof *x);
}

/* Gives a member its searcher, and the device to that. */
static int gt_member_open(gt_member *m, const gpuir_searcher *like, unsigned number, gpuir_error *err) {
  const gt_team *t = m->context->team;
  gpuir_index *ix = m->device->part ? m->device->part : (gpuir_index *)(uintptr_t)t->ix;
  gpuir_searcher_desc desc;
  int status;
  memset(&desc, 0, sizeof desc);
  desc.evaluator = like->engine.evaluator;
  desc.threads = (like->nworkers + 1) / t->n; /* that plan */
  status = ix->calls->searcher_create(ix, &desc, &m->searcher, err);
  if (status) return status;
#ifdef GPUIR_CUDA_SEAM
  if (!GT_DEVICES) return gpuir_cuda_seam_member(number, m->searcher);
#endif
  (void)number;
  return gc_attach_device(m->searcher, m->device->cuda, GC_TRACKS_FEW, 0, err);
}

static int gt_attach(gt_context *x, const gpuir_searcher *like, gpuir_error *err) {
  unsigned i;
  x->n = x->team->n;
  x->ready =
      !pthread_mutex_init(&x->lock, NULL) && !pthread_cond_init(&x->work, NULL) && !pthread_cond_init(&x->done, NULL);
  x->members = (gt_member *)gpuir__alloc_zero(&x->a, x->n * sizeof *x->members);
  if (!x->ready || !x->members) return gpuir__fail_nomem(err);
  for (i = 0; i < x->n; i++) {
    gt_member *m = &x->members[i];
    int status;
    m->context = x;
    m->device = &x->team->devices[i];
    status = gt_member_open(m, like, i, err);
    if (status) return status;
    m->threaded = !pthread_create(&m->thread, NULL, gt_member_main, m);
    if (!m->threaded) return gpuir__fail(err, GPUIR_E_NOMEM, 0, "no thread could be started");
  }
  return GPUIR_OK;
}

/* Lets a searcher be answered by a team. */
static int gt_attach_searcher(gpuir_searcher *s, gt_team *team, int fallback, gpuir_error *err) {
  static const gpuir_backend backend = {GPUIR_BACKEND_VERSION, "cuda", NULL, gt_begin, gt_poll, gt_finish, gt_detach};
  gt_context *x = (gt_context *)gpuir__alloc_zero(&s->engine.a, sizeof *x);
  if (!x) return gpuir__fail_nomem(err);
  x->a = s->engine.a;
  x->team = team;
  return gc_set_backend(s, &backend, x, gt_attach(x, s, err), fallback, err);
}

#pragma GCC push_options
#pragma nv_diag_suppress 1675
#pragma GCC optimize("Og")
#pragma nv_diag_default 1675
