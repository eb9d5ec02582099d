
/* ========
 * [42-snapshot]  segments as one index
 *
 * An open index is a snapshot: one segment or more, whose documents are numbered one after another, and what they come
 * to together: documents, tokens, their average length, and from it the norm. Segment by segment stands in its leaf.
 * Terms have numbers in their segments only, so functions that take such numbers need a snapshot of one segment.
 *
 * Uses      [18-codecs], [23-codings], [24-postings] (norms), [27-bounds], [30-analysis], [33-analyzers] (their
 *           pool), [34-fields], [35-keys], [37-layout], [40-columns], [41-reader].
 * Start at  gpuir__index_make, gpuir__leaf_df, gpuir__leaf_of, gpuir__only.
 * Tests     tests/unit/42_snapshot.c
 * ======*/

/* ---- deleted documents */

/* Finds the log's chunk that has its document number `at`, and *at there. */
static unsigned gpuir__log_place(uint32_t *at) {
  const uint64_t x = (uint64_t)*at + 64;
  const unsigned chunk = 57u - (unsigned)__builtin_clzll(x); /* x in [64 << chunk, 128 << chunk) */
  *at = (uint32_t)(x - ((uint64_t)64 << chunk));
  return chunk;
}

/* Returns document number `at` (< n) of the log. */
static uint32_t gpuir__log_get(const gpuir__log *log, uint32_t at) {
  const unsigned chunk = gpuir__log_place(&at);
  return log->chunk[chunk][at];
}

/* Appends docids[0..n), which were not deleted before; the mutex is held. 0 or NOMEM: then the log is as before. */
static int gpuir__log_append(gpuir__segment *seg, const uint32_t *docids, size_t n) {
  gpuir__log *log = &seg->log;
  size_t i;
  if (n && !log->counts) {
    uint32_t slots = 64;
    while (slots < 4096 && slots < seg->stat.terms) slots *= 2;
    log->counts = (gpuir__log_count *)gpuir__alloc_zero(&seg->a, slots * sizeof *log->counts);
    if (!log->counts) return GPUIR_E_NOMEM;
    log->mask = slots - 1;
  }
  for (i = 0; i < n; i++) {
    uint32_t at = log->n + (uint32_t)i;
    const unsigned chunk = gpuir__log_place(&at);
    if (!log->chunk[chunk]) log->chunk[chunk] = (uint32_t *)gpuir__alloc(&seg->a, ((size_t)64 << chunk) * 4);
    if (!log->chunk[chunk]) return GPUIR_E_NOMEM;
    log->chunk[chunk][at] = docids[i];
  }
  log->n += (uint32_t)n;
  return GPUIR_OK;
}

/* Makes docids[0..n) the first n documents of the segment's log. 0; NOMEM; FORMAT if they are not: the log has others
 * there, as that of another writer's attempt can have, and the segment has to be opened anew. */
static int gpuir__log_extend(gpuir__segment *seg, const uint32_t *docids, uint32_t n) {
  gpuir__log *log = &seg->log;
  uint32_t i = 0, same;
  int status = GPUIR_OK;
  gpuir__lock(&log->mutex);
  same = gpuir__min32(n, log->n);
  while (i < same && gpuir__log_get(log, i) == docids[i]) i++;
  if (i < same) status = GPUIR_E_FORMAT;
  else if (n > same) status = gpuir__log_append(seg, docids + same, n - same);
  gpuir__unlock(&log->mutex);
  return status;
}

static inline int gpuir__deleted_has(const gpuir__deleted *d, uint32_t docid) {
  return (int)(d->bits[docid / 64] >> docid % 64 & 1);
}

/* Adds an owner to the set; NULL is allowed. */
static gpuir__deleted *gpuir__deleted_retain(gpuir__deleted *d) {
  if (d) (void)__atomic_add_fetch(&d->refs, 1, __ATOMIC_RELAXED);
  return d;
}

/* Leaves the set; NULL is allowed. */
static void gpuir__deleted_close(gpuir__deleted *d) {
  gpuir_allocator a;
  if (!d || __atomic_sub_fetch(&d->refs, 1, __ATOMIC_ACQ_REL)) return;
  a = d->a;
  gpuir__free(&a, d, sizeof *d + (size_t)d->words * 8);
}

/* Makes the set of the first n documents of a segment's log, or becomes an owner of `before`, one of the same segment's
 * sets or NULL, if it is the same. *set is NULL for none. 0 or NOMEM; FORMAT if one is no document, or stands twice. */
static int gpuir__deleted_make(gpuir__segment *seg, uint32_t n, gpuir__deleted *before, gpuir__deleted **set) {
  const uint64_t words = seg->stat.documents / 64 + 1;
  gpuir__deleted *d;
  uint32_t i;
  *set = NULL;
  if (!n) return GPUIR_OK;
  if (before && before->n == n) {
    *set = gpuir__deleted_retain(before);
    return GPUIR_OK;
  }
  d = (gpuir__deleted *)gpuir__alloc_zero(&seg->a, sizeof *d + (size_t)words * 8);
  if (!d) return GPUIR_E_NOMEM;
  if (before && before->n < n) memcpy(d, before, sizeof *d + (size_t)words * 8);
  d->a = seg->a;
  d->refs = 1;
  d->words = words;
  for (i = d->n; i < n; i++) {
    const uint32_t docid = gpuir__log_get(&seg->log, i);
    if (docid >= seg->stat.documents || gpuir__deleted_has(d, docid)) {
      gpuir__deleted_close(d);
      return GPUIR_E_FORMAT;
    }
    d->bits[docid / 64] |= (uint64_t)1 << docid % 64;
    d->tokens += seg->lengths[docid];
  }
  d->n = n;
  *set = d;
  return GPUIR_OK;
}

/* Counts the list's postings that are of documents of a set. */
static uint32_t gpuir__deleted_count(const gpuir__deleted *d, const gpuir__list *l) {
  uint32_t docs[GPUIR__BLOCK_ROOM], block, i, n, count = 0;
  for (block = 0; block < l->nblocks; block++) {
    n = gpuir__list_docs(l, block, docs);
    for (i = 0; i < n; i++) count += (uint32_t)gpuir__deleted_has(d, docs[i]);
  }
  return count;
}

#ifndef GPUIR__LOG_SORTED
#define GPUIR__LOG_SORTED 256u /* documents that are looked up together */
#endif

static int gpuir__compare_asc32(const void *a, const void *b) {
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

/* Counts those of the documents from number `from` up to `to` of the log that the list has, under a cursor on it. */
static uint32_t gpuir__log_find(const gpuir__log *log, gpuir__cursor *c, uint32_t from, uint32_t to) {
  uint32_t docids[GPUIR__LOG_SORTED], count = 0, i, n;
  for (; from < to; from += n) {
    n = gpuir__min32(to - from, GPUIR__LOG_SORTED);
    for (i = 0; i < n; i++) docids[i] = gpuir__log_get(log, from + i);
    qsort(docids, n, sizeof docids[0], gpuir__compare_asc32);
    gpuir__cursor_reset(c);
    for (i = 0; i < n; i++) count += gpuir__cursor_seek(c, docids[i]) == docids[i];
  }
  return count;
}

/* A look-up of a deleted document takes as long as this many postings of a list that is read. Measured. */
#ifndef GPUIR__LOG_LOOKUP
#define GPUIR__LOG_LOOKUP 32u
#endif

/* Counts the postings of term `id` that are of the leaf's deleted documents, from what is known of fewer or of more
 * deletions; *decoded: the blocks that were read for it. 0, or why the list cannot be opened. */
GPUIR__COLD static int gpuir__leaf_recount(const gpuir__leaf *leaf, uint64_t id, const gpuir__log_count *known,
    uint32_t *count, uint64_t *decoded) {
  const gpuir__deleted *d = leaf->deleted;
  const uint32_t from = gpuir__min32(known->n, d->n), to = gpuir__max32(known->n, d->n);
  gpuir__cursor c;
  int status = gpuir__list_open(leaf->seg, &leaf->seg->a, id, &c.list);
  if (status) return status;
  if ((uint64_t)(to - from) * GPUIR__LOG_LOOKUP < c.list.df) {
    uint32_t found;
    c.decoded = 0;
    found = gpuir__log_find(&leaf->seg->log, &c, from, to);
    *decoded = c.decoded;
    *count = known->n < d->n ? known->deleted + found : known->deleted - gpuir__min32(found, known->deleted);
  } else {
    *decoded = c.list.nblocks;
    *count = gpuir__deleted_count(d, &c.list);
  }
  gpuir__list_close(&leaf->seg->a, &c.list);
  return GPUIR_OK;
}

/* Counts the live documents of a leaf that hold term `id`, and fills in the term's record. What it learns of deleted
 * ones the segment keeps, for this snapshot and for others. 0, FORMAT, NOMEM, UNSUPPORTED. Thread-safe. */
static int gpuir__leaf_df(const gpuir__leaf *leaf, uint64_t id, gpuir__record *r, uint32_t *df) {
  gpuir__log *log = &leaf->seg->log;
  gpuir__log_count *slot, known = {0, 0, 0};
  uint32_t count;
  uint64_t decoded;
  int status;
  gpuir__record_get(leaf->seg, id, r);
  *df = (uint32_t)gpuir__min64(r->df, leaf->seg->stat.documents);
  if (!leaf->deleted || !*df) return GPUIR_OK;
  slot = &log->counts[(uint32_t)(id * 0x9e3779b1u) >> 16 & log->mask];
  gpuir__lock(&log->mutex);
  if (slot->id == (uint32_t)id + 1) known = *slot;
  gpuir__unlock(&log->mutex);
  if (known.id && known.n == leaf->deleted->n) {
    count = known.deleted;
  } else {
    status = gpuir__leaf_recount(leaf, id, &known, &count, &decoded);
    if (status) return status;
    gpuir__lock(&log->mutex);
    slot->id = (uint32_t)id + 1;
    slot->n = leaf->deleted->n;
    slot->deleted = count;
    log->decoded += decoded;
    gpuir__unlock(&log->mutex);
  }
  *df -= gpuir__min32(count, *df);
  return GPUIR_OK;
}

/* Sums the frequencies of term `id` in a leaf's live documents up. 0, FORMAT, NOMEM, UNSUPPORTED. */
static int gpuir__leaf_cf(const gpuir__leaf *leaf, uint64_t id, uint64_t *cf) {
  uint32_t docs[GPUIR__BLOCK_ROOM], freqs[GPUIR__BLOCK_ROOM], block, i, n;
  gpuir__list l;
  int status = gpuir__list_open(leaf->seg, &leaf->seg->a, id, &l);
  *cf = 0;
  if (status) return status;
  if (!leaf->deleted) *cf = l.extent ? l.extent->cf : gpuir__list_cf(&l);
  for (block = 0; leaf->deleted && block < l.nblocks; block++) {
    n = gpuir__list_docs(&l, block, docs);
    gpuir__list_freqs(&l, block, freqs);
    for (i = 0; i < n; i++)
      if (!gpuir__deleted_has(leaf->deleted, docs[i])) *cf += (uint64_t)freqs[i] + 1;
  }
  gpuir__list_close(&leaf->seg->a, &l);
  return GPUIR_OK;
}

/* ---- the table of saturations */

/* Returns the table of the index's own k1 and b, made when it is first asked for; NULL if there is no memory for it.
 * Thread-safe: of several that are made at once, one stays. */
static const gpuir__saturation *gpuir__index_saturation(const gpuir_index *ix) {
  gpuir__saturation **const kept = &((gpuir_index *)ix)->saturation; /* what it holds is the same whoever asks */
  gpuir__saturation *table = __atomic_load_n(kept, __ATOMIC_ACQUIRE), *other = NULL;
  if (table) return table;
  table = (gpuir__saturation *)gpuir__alloc(&ix->a, sizeof *table);
  if (!table) return NULL;
  table->valid = 0;
  gpuir__saturation_prepare(table, ix->norm);
  if (__atomic_compare_exchange_n(kept, &other, table, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return table;
  gpuir__free(&ix->a, table, sizeof *table);
  return other;
}

/* ---- open and close */

/* Leaves a leaf's segment and set. */
static void gpuir__leaf_close(gpuir__leaf *leaf) {
  gpuir__deleted_close(leaf->deleted);
  gpuir__segment_close(leaf->seg);
}

GPUIR__COLD GPUIR_API void gpuir_close(gpuir_index *ix) {
  gpuir_allocator a;
  size_t i;
  if (!ix) return;
  a = ix->a;
  for (i = 0; i < ix->nleaves; i++) {
    if (ix->alone) gpuir__free(&a, ix->alone[i].saturation, sizeof(gpuir__saturation));
    gpuir__leaf_close(&ix->leaves[i]);
  }
  gpuir__analyzers_close(ix->analysis.pool);
  gpuir__free(&a, ix->saturation, sizeof(gpuir__saturation));
  gpuir__free(&a, ix->alone, ix->nleaves * sizeof *ix->alone);
  if (ix->leaves != &ix->only) gpuir__free(&a, ix->leaves, ix->nleaves * sizeof *ix->leaves);
  gpuir__free(&a, ix, sizeof *ix);
}

/* Sums the leaves up. */
static void gpuir__index_sum(gpuir_index *ix) {
  const gpuir__stat *first = &ix->leaves[0].seg->stat;
  const gpuir__shard *shard = ix->leaves[0].seg->shard;
  size_t i;
  ix->documents = ix->tokens = ix->docids = 0;
  for (i = 0; i < ix->nleaves; i++) {
    gpuir__leaf *leaf = &ix->leaves[i];
    leaf->base = (uint32_t)ix->docids;
    ix->docids += leaf->seg->stat.documents;
    ix->documents += leaf->seg->stat.documents;
    ix->tokens += leaf->seg->stat.tokens;
    if (!leaf->deleted) continue;
    ix->documents -= leaf->deleted->n;
    ix->tokens -= gpuir__min64(leaf->deleted->tokens, ix->tokens); /* in a damaged file lengths may add up to more */
  }
  ix->collection = shard ? shard->documents : ix->documents;
  ix->average_length = gpuir__mean(shard ? shard->tokens : ix->tokens, ix->collection);
  ix->norm = gpuir__norm_make(first->k1, first->b, ix->average_length);
}

/* Makes an index of one segment of `from` without its deletions; `from` keeps the segment. */
static void gpuir__index_alone(gpuir_index *ix, const gpuir_index *from, size_t i) {
  *ix = *from;
  ix->leaves = &ix->only;
  ix->nleaves = 1;
  ix->alone = NULL;
  ix->saturation = NULL;
  ix->only.seg = from->leaves[i].seg;
  ix->only.deleted = NULL;
  (void)snprintf(ix->path, sizeof ix->path, "%s", ix->only.seg->path);
  gpuir__index_sum(ix);
}

/* Fails unless all segments were built alike, so that one query means the same in each. */
static int gpuir__index_alike(const gpuir_index *ix, gpuir_error *err) {
  const gpuir__segment *first = ix->leaves[0].seg;
  size_t i, k;
  for (i = 1; i < ix->nleaves; i++) {
    const gpuir__segment *seg = ix->leaves[i].seg;
    int alike = !(seg->stat.k1 < first->stat.k1 || seg->stat.k1 > first->stat.k1 || seg->stat.b < first->stat.b ||
        seg->stat.b > first->stat.b);
    for (k = 0; k < GPUIR__META_KEYS; k++)
      if (gpuir__meta_keys[k].alike)
        alike &= !strcmp(*gpuir__meta_value(&seg->meta, k), *gpuir__meta_value(&first->meta, k));
    if (!alike)
      return gpuir__fail(err, GPUIR_E_FORMAT, 0, "%s: its settings are not those of %s", seg->path, first->path);
  }
  return GPUIR_OK;
}

/* Makes one index of the leaves: checks that they may stand together, numbers their documents one after another, and
 * gives each a view as an index of its own where there are several, or deletions. */
static int gpuir__index_join(gpuir_index *ix, gpuir_error *err) {
  uint64_t docids = 0;
  size_t i;
  int status = gpuir__index_alike(ix, err);
  if (status) return status;
  for (i = 0; i < ix->nleaves; i++)
    if (ix->leaves[i].seg->shard && (ix->nleaves > 1 || ix->leaves[0].deleted))
      return gpuir__bad(ix->leaves[i].seg, err, 0, "a part of a collection is no segment of a live index");
  for (i = 0; i < ix->nleaves; i++) docids += ix->leaves[i].seg->stat.documents;
  if (docids > GPUIR__MAX_DOCUMENTS)
    return gpuir__fail(err, GPUIR_E_LIMIT, 0, "%s: more than 2^32-2 documents, deleted ones included: merge it",
        ix->path);
  gpuir__index_sum(ix);
  if (ix->nleaves == 1 && !ix->leaves[0].deleted) return GPUIR_OK;
  ix->alone = (gpuir_index *)gpuir__alloc_zero(&ix->a, ix->nleaves * sizeof *ix->alone);
  if (!ix->alone) return gpuir__fail_nomem(err);
  for (i = 0; i < ix->nleaves; i++) gpuir__index_alone(&ix->alone[i], ix, i);
  return GPUIR_OK;
}

/* Makes an index of n >= 1 segments in this order, with what is deleted from each, and becomes an owner of them in
 * place of the caller, also when it fails. `pool`: that of an index with the same settings, to be shared; NULL: a new
 * one. */
GPUIR__COLD static int gpuir__index_make(const gpuir_allocator *a, const char *path, const gpuir_open_desc *desc,
    const gpuir__leaf *from, size_t n, gpuir__analyzers *pool, gpuir_index **index, gpuir_error *err) {
  gpuir_index *ix = (gpuir_index *)gpuir__alloc_zero(a, sizeof *ix);
  gpuir__leaf *leaves = ix && n > 1 ? (gpuir__leaf *)gpuir__alloc_zero(a, n * sizeof *leaves) : NULL;
  size_t i;
  int status;
  *index = NULL;
  if (!ix || (n > 1 && !leaves)) {
    for (i = 0; i < n; i++) {
      gpuir__leaf leaf = from[i];
      gpuir__leaf_close(&leaf);
    }
    gpuir__free(a, ix, sizeof *ix);
    return gpuir__fail_nomem(err);
  }
  ix->layout = gpuir__index_layout();
  ix->a = *a;
  ix->simd = from[0].seg->simd;
  if (desc) ix->analysis.own = gpuir__tokenizer_of(desc->tokenize, desc->tokenize_places, desc->tokenize_user);
  (void)snprintf(ix->path, sizeof ix->path, "%.*s", (int)sizeof ix->path - 1, gpuir__tail(path));
  ix->leaves = n > 1 ? leaves : &ix->only;
  ix->nleaves = n;
  memcpy(ix->leaves, from, n * sizeof *from);
  if (pool) ix->analysis.pool = gpuir__analyzers_retain(pool);
  status = gpuir__index_join(ix, err);
  if (!status && !pool)
    status = gpuir__analyzers_open(a, from[0].seg->meta.analyzer, from[0].seg->meta.stop_words, &ix->analysis.own,
        &ix->analysis.pool, err);
  if (status) gpuir_close(ix);
  else *index = ix;
  return status;
}

/* ---- leaves */

/* Returns the leaf that has document `docid` (< docids). */
static const gpuir__leaf *gpuir__leaf_of(const gpuir_index *ix, uint32_t docid) {
  size_t lo = 0, hi = ix->nleaves;
  while (hi - lo > 1) {
    size_t mid = lo + (hi - lo) / 2;
    if (ix->leaves[mid].base <= docid) lo = mid;
    else hi = mid;
  }
  return &ix->leaves[lo];
}

/* Returns the segment of a snapshot that has just one, and deletes nothing from it: in that a term's number is its id.
 * NULL otherwise. */
static const gpuir__segment *gpuir__only(const gpuir_index *ix) {
  return ix->nleaves == 1 && !ix->leaves[0].deleted ? ix->leaves[0].seg : NULL;
}

/* Says why a function that needs one segment does not go on. */
static int gpuir__fail_unmerged(const gpuir_index *ix, gpuir_error *err) {
  return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "%s: an index of several segments, or with deletions: merge it first",
      ix->path);
}

GPUIR_API const gpuir_index *gpuir_index_segment(const gpuir_index *ix, size_t i, uint32_t *base) {
  if (!ix || i >= ix->nleaves) return NULL;
  if (base) *base = ix->leaves[i].base;
  return ix->alone ? &ix->alone[i] : ix;
}

/* ---- documents and statistics */

GPUIR_API int gpuir_doc_get(const gpuir_index *ix, uint32_t docid, gpuir_doc *doc) {
  const gpuir__leaf *leaf;
  if (!ix || !doc) return GPUIR_E_ARGUMENT;
  leaf = gpuir__leaf_of(ix, docid);
  docid -= leaf->base;
  memset(doc, 0, sizeof *doc);
  if (leaf->deleted && docid < leaf->seg->stat.documents && gpuir__deleted_has(leaf->deleted, docid))
    return GPUIR_E_NOT_FOUND;
  return gpuir__segment_doc(leaf->seg, docid, doc);
}

#ifdef GPUIR_NO_STORE
GPUIR_API int gpuir_doc_text(const gpuir_index *ix, uint32_t docid, uint64_t from, char *buf, size_t n) {
  (void)docid;
  (void)from;
  return ix && (buf || !n) ? GPUIR_E_UNSUPPORTED : GPUIR_E_ARGUMENT;
}
#else
GPUIR_API int gpuir_doc_text(const gpuir_index *ix, uint32_t docid, uint64_t from, char *buf, size_t n) {
  gpuir_doc doc;
  const gpuir__leaf *leaf;
  gpuir__text_block block;
  int status;
  if (!ix || (!buf && n)) return GPUIR_E_ARGUMENT;
  status = gpuir_doc_get(ix, docid, &doc);
  if (status) return status;
  if (!doc.stored) return GPUIR_E_NOT_FOUND;
  if (from > doc.stored_bytes || n > doc.stored_bytes - from) return GPUIR_E_ARGUMENT;
  leaf = gpuir__leaf_of(ix, docid);
  block.number = 0;
  block.whole = 0;
  return gpuir__segment_text(leaf->seg, docid - leaf->base, &doc, &block, from, buf, n);
}
#endif

#ifdef GPUIR_NO_COLUMNS
GPUIR_API int gpuir_field_get(const gpuir_index *ix, size_t i, gpuir_field *field) {
  (void)i;
  return ix && field ? GPUIR_E_UNSUPPORTED : GPUIR_E_ARGUMENT;
}

GPUIR_API int gpuir_doc_value(const gpuir_index *ix, uint32_t docid, unsigned field, size_t i, gpuir_value *value,
    char room[GPUIR_MAX_VALUE + 1]) {
  (void)docid;
  (void)field;
  (void)i;
  return ix && value && room ? GPUIR_E_UNSUPPORTED : GPUIR_E_ARGUMENT;
}
#else
GPUIR_API int gpuir_field_get(const gpuir_index *ix, size_t i, gpuir_field *field) {
  const gpuir__schema *f;
  if (!ix || !field) return GPUIR_E_ARGUMENT;
  f = ix->leaves[0].seg->columns.fields;
  memset(field, 0, sizeof *field);
  if (!f || i >= f->n) return GPUIR_E_NOT_FOUND;
  *field = f->of[i];
  return GPUIR_OK;
}

GPUIR_API int gpuir_doc_value(const gpuir_index *ix, uint32_t docid, unsigned field, size_t i, gpuir_value *value,
    char room[GPUIR_MAX_VALUE + 1]) {
  gpuir__key_walk w;
  const gpuir__leaf *leaf;
  int status;
  if (!ix || !value || !room) return GPUIR_E_ARGUMENT;
  leaf = gpuir__leaf_of(ix, docid);
  docid -= leaf->base;
  memset(value, 0, sizeof *value);
  if (docid >= leaf->seg->stat.documents || (leaf->deleted && gpuir__deleted_has(leaf->deleted, docid)) ||
      !leaf->seg->columns.fields || field >= leaf->seg->columns.fields->n)
    return GPUIR_E_NOT_FOUND;
  status = gpuir__column_value(leaf->seg, docid, field, i, value, &w);
  if (status || !value->text) return status;
  memcpy(room, w.text, w.len + 1);
  value->text = room;
  return GPUIR_OK;
}
#endif

/* Returns how many terms of a segment the analyzer made beside words. */
static uint64_t gpuir__segment_private(const gpuir__segment *seg) {
  return gpuir__spec_is_text(seg->meta.analyzer) ? seg->stat.terms - gpuir__term_lower_bound(seg, "\xff", 1) : 0;
}

/* Adds a segment's numbers of terms and postings and its bytes, by purpose, to those of the index. */
static void gpuir__info_add(gpuir_index_info *info, const gpuir__segment *seg) {
  uint64_t sums[GPUIR__G_COUNT];
  gpuir__section_sums(seg, sums);
  info->terms += seg->stat.terms;
  info->private_terms += gpuir__segment_private(seg);
  info->postings += seg->stat.postings;
  info->file_bytes += seg->size;
  info->docids_bytes += sums[GPUIR__G_DOCIDS];
  info->freqs_bytes += sums[GPUIR__G_FREQS];
  info->directory_bytes += sums[GPUIR__G_DIRECTORY];
  info->inline_postings += seg->stat.inline_postings;
  info->dictionary_bytes += sums[GPUIR__G_DICTIONARY];
  info->documents_bytes += sums[GPUIR__G_DOCUMENTS];
  info->text_bytes += sums[GPUIR__G_TEXT];
  info->positions_bytes += sums[GPUIR__G_POSITIONS];
  info->columns_bytes += sums[GPUIR__G_COLUMNS];
}

GPUIR__COLD GPUIR_API int gpuir_index_get_info(const gpuir_index *ix, gpuir_index_info *info) {
  const gpuir__segment *first;
  uint64_t bytes;
  size_t i;
  if (!ix || !info) return GPUIR_E_ARGUMENT;
  memset(info, 0, sizeof *info);
  for (i = 0; i < ix->nleaves; i++) gpuir__info_add(info, ix->leaves[i].seg);
  first = ix->leaves[0].seg;
  info->documents = ix->documents;
  info->docids = ix->docids;
  info->segments = ix->nleaves;
  info->tokens = ix->tokens;
  info->generation = ix->generation;
  info->content = ix->content;
  info->average_length = ix->average_length;
  info->k1 = first->stat.k1;
  info->b = first->stat.b;
  bytes = info->docids_bytes + info->freqs_bytes + info->directory_bytes + 8 * info->inline_postings;
  info->bits_per_posting = info->postings ? 8.0 * (double)bytes / (double)info->postings : 0.0;
  info->analyzer = first->meta.analyzer;
  info->codec = first->meta.codec;
  info->freq_codec = first->meta.freq_codec;
  info->description = first->meta.description;
  info->filters = first->meta.filters;
  info->reading = first->meta.reading;
  info->order = *first->meta.order ? first->meta.order : "unknown";
  info->tool = first->meta.tool;
  info->skipped = first->meta.skipped;
  gpuir__spec_language(first->meta.analyzer, info->language);
  info->has_text = gpuir__has_texts(first);
  info->has_positions = first->lists.positions != NULL;
  return GPUIR_OK;
}

/* ---- terms */

GPUIR_API uint64_t gpuir_term_lower_bound(const gpuir_index *ix, const char *term, size_t len) {
  const gpuir__segment *seg = ix ? gpuir__only(ix) : NULL;
  if (!term) term = "", len = 0;
  return seg ? gpuir__term_lower_bound(seg, term, len) : 0;
}

GPUIR_API int gpuir_term_find(const gpuir_index *ix, const char *term, size_t len, uint64_t *id) {
  if (!ix || !id || (!term && len)) return GPUIR_E_ARGUMENT;
  return gpuir__only(ix) ? gpuir__term_find(gpuir__only(ix), term, len, id) : GPUIR_E_UNSUPPORTED;
}

GPUIR_API int gpuir_terms_find(const gpuir_index *ix, const char *const *terms, const size_t *lens, size_t n,
    uint64_t *ids) {
  const gpuir__segment *seg = ix ? gpuir__only(ix) : NULL;
  gpuir__looks looks;
  size_t i, j;
  if (!ix || (n && (!terms || !lens || !ids))) return GPUIR_E_ARGUMENT;
  if (!seg) return GPUIR_E_UNSUPPORTED;
  looks.n = 0;
  for (i = 0; i < n; i += j) {
    uint32_t found[GPUIR__LOOKS];
    for (j = 0; j < GPUIR__LOOKS && i + j < n; j++) {
      if (!terms[i + j] && lens[i + j]) return GPUIR_E_ARGUMENT;
      gpuir__looks_add(&looks, seg, terms[i + j], lens[i + j], &found[j]);
    }
    gpuir__looks_end(&looks);
    for (j = 0; j < GPUIR__LOOKS && i + j < n; j++) ids[i + j] = found[j] == GPUIR__NO_TERM ? UINT64_MAX : found[j];
  }
  return GPUIR_OK;
}

GPUIR_API int gpuir_term_get_info(const gpuir_index *ix, uint64_t id, gpuir_term_info *info) {
  if (!ix || !info) return GPUIR_E_ARGUMENT;
  memset(info, 0, sizeof *info);
  return gpuir__only(ix) ? gpuir__segment_term(gpuir__only(ix), id, info) : GPUIR_E_UNSUPPORTED;
}

GPUIR_API int gpuir_term_postings(const gpuir_index *ix, uint64_t id, uint32_t *docids, uint32_t *tfs) {
  if (!ix) return GPUIR_E_ARGUMENT;
  return gpuir__only(ix) ? gpuir__segment_postings(gpuir__only(ix), id, docids, tfs) : GPUIR_E_UNSUPPORTED;
}

GPUIR_API int gpuir_term_positions(const gpuir_index *ix, uint64_t id, uint32_t *positions, uint64_t n) {
  if (!ix || !positions) return GPUIR_E_ARGUMENT;
  return gpuir__only(ix) ? gpuir__segment_positions(gpuir__only(ix), id, positions, n) : GPUIR_E_UNSUPPORTED;
}

GPUIR_API float gpuir_idf(uint64_t documents, uint32_t df) {
  return gpuir__idf(gpuir__min64(documents, GPUIR__MAX_DOCUMENTS), df);
}

GPUIR_API int gpuir_term_count(const gpuir_index *ix, const char *term, size_t len, uint32_t *df, uint64_t *cf) {
  uint64_t sum_df = 0, sum_cf = 0, id, leaf_cf;
  size_t i;
  if (df) *df = 0;
  if (cf) *cf = 0;
  if (!ix || (!term && len)) return GPUIR_E_ARGUMENT;
  for (i = 0; i < ix->nleaves; i++) {
    const gpuir__leaf *leaf = &ix->leaves[i];
    gpuir__record r;
    uint32_t leaf_df;
    int status;
    if (gpuir__term_find(leaf->seg, term, len, &id)) continue;
    status = gpuir__leaf_df(leaf, id, &r, &leaf_df);
    if (!status && leaf_df && cf) {
      status = gpuir__leaf_cf(leaf, id, &leaf_cf);
      sum_cf += leaf_cf;
    }
    if (status) return status;
    sum_df += leaf_df;
  }
  if (df) *df = (uint32_t)gpuir__min64(sum_df, ix->documents);
  if (cf) *cf = sum_cf;
  return sum_df ? GPUIR_OK : GPUIR_E_NOT_FOUND;
}

GPUIR__COLD GPUIR_API int gpuir_codec_get_info(const gpuir_index *ix, int docids,
    gpuir_codec_info infos[GPUIR_MAX_CODECS], size_t *n) {
#ifdef GPUIR_NO_LAB
  (void)docids;
  return ix && infos && n ? GPUIR_E_UNSUPPORTED : GPUIR_E_ARGUMENT;
#else
  const gpuir__codec *table = docids ? gpuir__docid_codecs : gpuir__freq_codecs;
  const size_t ncodecs = docids ? GPUIR__DOCID_CODECS : GPUIR__FREQ_CODECS;
  gpuir_codec_info all[GPUIR_MAX_CODECS];
  size_t i;
  if (!ix || !infos || !n) return GPUIR_E_ARGUMENT;
  *n = 0;
  memset(all, 0, sizeof all);
  for (i = 0; i < ix->nleaves; i++) {
    int status = gpuir__segment_codecs(ix->leaves[i].seg, docids, all);
    if (status) return status;
  }
  for (i = 0; i < ncodecs; i++) {
    if (!all[i].lists) continue;
    all[i].codec = table[i].name;
    infos[(*n)++] = all[i];
  }
  return GPUIR_OK;
#endif
}
