
/* ========
 * [66-live-merge]  live indexes: merging
 *
 * Segments that follow one another become one: the builder that makes an index from postings gets their live documents
 * and, term by term, the postings of those. So the file has the bytes of an index that is built of these documents at
 * once. Which segments: sizes are a binary counter's, so that of N documents there are about log2(N) segments, and a
 * document is copied as often.
 *
 * The list is locked at the beginning and at the end only. What is deleted meanwhile is deleted from the result then.
 *
 * Uses      [18-codecs], [24-postings], [32-dictionary], [37-layout], [40-columns], [41-reader], [42-snapshot],
 *           [43-verify], [44-inversion], [45-merge], [46-builder], [64-folder], [65-live].
 * Start at  gpuir_live_merge, gpuir__live_choose, gpuir__fusion_swap.
 * Tests     tests/unit/66_live_merge.c
 * ======*/

/* A segment that is merged, as it was when the merge began. */
typedef struct gpuir__source {
  gpuir__leaf leaf; /* base: of its documents in the result */
  uint32_t n; /* deleted ones of its log, which leave it */
  uint32_t *rank; /* [word of the set] live documents before it; NULL: none is deleted */
  gpuir__walk walk; /* over its terms */
  int more; /* there is a term */
} gpuir__source;

typedef struct gpuir__fusion {
  gpuir_live *l;
  gpuir__source *sources;
  size_t n;
  uint64_t number, documents; /* of the result */
  gpuir__identity file; /* of the result */
  char *path; /* of the result; temporary files begin with it */
  size_t path_size;
  gpuir__area postings, positions; /* of one list */
  gpuir__buf text; /* of one document */
#ifndef GPUIR_NO_STORE
  gpuir__text_block *block; /* of a source's texts */
#endif
#ifndef GPUIR_NO_COLUMNS
  gpuir__column_values values; /* of one document */
#endif
  gpuir_builder *builder;
} gpuir__fusion;

/* Returns what number a live document of a source has in the result. */
static uint32_t gpuir__source_docid(const gpuir__source *s, uint32_t docid) {
  const gpuir__deleted *d = s->leaf.deleted;
  uint64_t below;
  if (!d) return s->leaf.base + docid;
  below = ~d->bits[docid / 64] & (((uint64_t)1 << docid % 64) - 1);
  return s->leaf.base + s->rank[docid / 64] + (uint32_t)__builtin_popcountll(below);
}

static int gpuir__source_has(const gpuir__source *s, uint32_t docid) {
  return !s->leaf.deleted || !gpuir__deleted_has(s->leaf.deleted, docid);
}

/* Counts the live documents before each word of a source's set, and numbers the documents from `base` on; *base becomes
 * what follows. 0 or NOMEM. */
static int gpuir__source_rank(const gpuir_allocator *a, gpuir__source *s, uint64_t *base) {
  const gpuir__deleted *d = s->leaf.deleted;
  uint32_t before = 0;
  uint64_t i;
  s->leaf.base = (uint32_t)*base;
  *base += s->leaf.seg->stat.documents - (d ? d->n : 0);
  if (!d) return GPUIR_OK;
  s->rank = (uint32_t *)gpuir__alloc(a, (size_t)d->words * 4);
  if (!s->rank) return GPUIR_E_NOMEM;
  for (i = 0; i < d->words; i++) {
    s->rank[i] = before;
    before += 64 - (uint32_t)__builtin_popcountll(d->bits[i]);
  }
  return GPUIR_OK;
}

#ifdef GPUIR_NO_STORE
static int gpuir__fusion_text(gpuir__fusion *f, const gpuir__segment *seg, uint32_t docid, const gpuir_doc *doc,
    gpuir_error *err) {
  (void)f;
  (void)seg;
  (void)docid;
  (void)doc;
  (void)err;
  return GPUIR_OK;
}
#else
/* Reads a document's stored text. */
static int gpuir__fusion_text(gpuir__fusion *f, const gpuir__segment *seg, uint32_t docid, const gpuir_doc *doc,
    gpuir_error *err) {
  const size_t n = (size_t)doc->stored_bytes;
  char *to;
  f->text.len = 0;
  to = (char *)gpuir__buf_room(&f->l->a, &f->text, n + 1);
  if (!to) return gpuir__fail_nomem(err);
  if (gpuir__segment_text(seg, docid, doc, f->block, 0, to, n))
    return gpuir__bad(seg, err, 0, "a document's text cannot be unpacked");
  return GPUIR_OK;
}
#endif

/* Hands the live documents of a source to the builder. */
static int gpuir__fusion_documents(gpuir__fusion *f, const gpuir__source *s, gpuir_error *err) {
  const gpuir__segment *seg = s->leaf.seg;
  char room[GPUIR__JOINED_MAX + 1];
  gpuir_doc_desc desc;
  gpuir_doc doc;
  uint64_t i;
#ifndef GPUIR_NO_COLUMNS
  gpuir__column_values *const values = &f->values;
#endif
  int status = GPUIR_OK;
#ifndef GPUIR_NO_STORE
  f->block->number = 0;
#endif
  for (i = 0; i < seg->stat.documents && !status; i++) {
    if (!gpuir__source_has(s, (uint32_t)i)) continue;
    status = gpuir__segment_doc(seg, (uint32_t)i, &doc);
    if (status) return gpuir__bad(seg, err, 0, "a document's source is none, or does not fit its name");
    memset(&desc, 0, sizeof desc);
    desc.name = gpuir__doc_key(&doc, GPUIR_BY_NAME, room, &desc.name_len);
    desc.source = doc.source;
    desc.source_len = doc.source_len;
    desc.first_line = doc.first_line;
    desc.last_line = doc.last_line;
    desc.source_offset = doc.source_offset;
    desc.source_bytes = doc.source_bytes;
    desc.hash = doc.hash;
    desc.form = doc.form;
#ifndef GPUIR_NO_COLUMNS
    if (gpuir__column_collect(&f->l->a, seg, (uint32_t)i, values, &desc)) return gpuir__fail_nomem(err);
#endif
    status = gpuir__fusion_text(f, seg, (uint32_t)i, &doc, err);
    if (status) return status;
    status =
        gpuir_builder_add_doc(f->builder, &desc, doc.length, (const char *)f->text.data, (size_t)doc.stored_bytes, err);
    if (status == GPUIR_E_ARGUMENT) return gpuir__bad(seg, err, 0, "a document has values that it cannot have");
  }
  return status;
}

/* Finds the least term that a source stands at, and sums its postings up. Returns its first source, or NULL behind the
 * last term. */
static const gpuir__source *gpuir__fusion_least(const gpuir__fusion *f, uint64_t *df) {
  const gpuir__source *least = NULL;
  size_t i;
  *df = 0;
  for (i = 0; i < f->n; i++) {
    const gpuir__source *s = &f->sources[i];
    int c;
    if (!s->more) continue;
    c = least ? gpuir__compare_bytes(s->walk.term, s->walk.len, least->walk.term, least->walk.len) : -1;
    if (c > 0) continue;
    *df = c ? s->walk.record.df : *df + s->walk.record.df;
    if (c) least = s;
  }
  return least;
}

/* The postings of the term that is being merged. */
typedef struct gpuir__merged {
  uint32_t *docids, *tfs, *positions; /* positions: NULL for an index without them */
  uint64_t occurrences;
  uint32_t n;
} gpuir__merged;

/* Appends a source's live postings of its term, with their positions if these are merged: all are decoded, then those
 * of deleted documents closed up. */
static int gpuir__source_postings(const gpuir__source *s, gpuir__list *l, gpuir__merged *m) {
  uint32_t docs[GPUIR__BLOCK_ROOM], freqs[GPUIR__BLOCK_ROOM], block, i, n;
  uint32_t *from = m->positions ? m->positions + m->occurrences : NULL;
  const int status = from ? gpuir__segment_positions(s->leaf.seg, s->walk.id, from, gpuir__list_cf(l)) : GPUIR_OK;
  for (block = 0; block < l->nblocks && !status; block++) {
    n = gpuir__list_docs(l, block, docs);
    gpuir__list_freqs(l, block, freqs);
    for (i = 0; i < n; i++) {
      const uint32_t tf = freqs[i] + 1;
      if (docs[i] >= s->leaf.seg->stat.documents || !tf) return GPUIR_E_FORMAT;
      if (gpuir__source_has(s, docs[i])) {
        m->docids[m->n] = gpuir__source_docid(s, docs[i]);
        m->tfs[m->n++] = tf;
        if (from) memmove(m->positions + m->occurrences, from, (size_t)tf * 4);
        m->occurrences += from ? tf : 0;
      }
      if (from) from += tf;
    }
  }
  return status;
}

/* Appends a source's list of its term. */
static int gpuir__source_list(const gpuir__fusion *f, gpuir__source *s, gpuir__merged *m) {
  gpuir__list l;
  int status = gpuir__list_open(s->leaf.seg, &f->l->a, s->walk.id, &l);
  if (status) return status;
  status = gpuir__source_postings(s, &l, m);
  gpuir__list_close(&f->l->a, &l);
  return status;
}

/* Sums the occurrences of a term up over the sources that stand at it. */
static int gpuir__fusion_occurrences(const gpuir__fusion *f, const uint8_t *term, size_t len, uint64_t *cf) {
  size_t i;
  *cf = 0;
  for (i = 0; i < f->n; i++) {
    const gpuir__source *s = &f->sources[i];
    gpuir__list l;
    uint64_t own;
    int status;
    if (!s->more || gpuir__compare_bytes(s->walk.term, s->walk.len, term, len) != 0) continue;
    status = gpuir__list_open(s->leaf.seg, &f->l->a, s->walk.id, &l);
    if (status) return status;
    own = gpuir__list_cf(&l);
    if (!gpuir__list_holds(&l, own)) status = GPUIR_E_FORMAT;
    *cf += own;
    gpuir__list_close(&f->l->a, &l);
    if (status) return status;
  }
  return GPUIR_OK;
}

/* Merges the list of the least term, whose first source is `least`, and moves its sources on. */
GPUIR__HOT static int gpuir__fusion_list(gpuir__fusion *f, const gpuir__source *least, uint64_t df, gpuir_error *err) {
  const int positions = least->leaf.seg->lists.positions != NULL;
  const size_t len = least->walk.len;
  uint8_t term[GPUIR_MAX_TERM + 1];
  gpuir__merged m = {NULL, NULL, NULL, 0, 0};
  uint64_t cf = 0;
  size_t i;
  int status = GPUIR_OK;
  memcpy(term, least->walk.term, len);
  if (positions) status = gpuir__fusion_occurrences(f, term, len, &cf);
  if (!status)
    status = gpuir__area_need(&f->l->a, &f->postings, df * 8, f->l->memory / 4, f->path, GPUIR__TMP_LISTS, err);
  if (!status && positions)
    status = gpuir__area_need(&f->l->a, &f->positions, cf * 4, f->l->memory / 4, f->path, GPUIR__TMP_UNITS, err);
  if (status) return status;
  m.docids = (uint32_t *)(void *)f->postings.data;
  m.tfs = m.docids + df;
  m.positions = positions ? (uint32_t *)(void *)f->positions.data : NULL;
  for (i = 0; i < f->n && !status; i++) {
    gpuir__source *s = &f->sources[i];
    if (!s->more || gpuir__compare_bytes(s->walk.term, s->walk.len, term, len) != 0) continue;
    status = gpuir__source_list(f, s, &m);
    s->more = gpuir__walk_next(&s->walk);
  }
  if (status)
    return gpuir__fail(err, status, 0, "%s: cannot merge the list of \"%.*s\": %s", gpuir__tail(f->l->path),
        len < 32 ? (int)len : 32, (const char *)term, gpuir_strerror(status));
  if (!m.n) return GPUIR_OK;
  status = gpuir_builder_add_list(f->builder, (const char *)term, len, m.docids, m.tfs, m.positions, m.n, err);
  return status == GPUIR_E_ARGUMENT
      ? gpuir__fail(err, GPUIR_E_FORMAT, 0, "%s: a list to be merged is damaged", gpuir__tail(f->l->path))
      : status;
}

/* Writes the merged segment: first the documents of all sources that are not deleted, then one list for each term, by a
 * walk over the sources' dictionaries in step. */
static int gpuir__fusion_write(gpuir__fusion *f, gpuir__segment **result, gpuir_error *err) {
  const gpuir__source *least;
  gpuir_builder *b;
  uint64_t df;
  size_t i;
  int status = gpuir__live_builder(f->l, f->number, NULL, &f->builder, &f->file, err);
  if (status) return status;
  for (i = 0; i < f->n && !status; i++) status = gpuir__fusion_documents(f, &f->sources[i], err);
  for (i = 0; i < f->n; i++) {
    gpuir__walk_start(&f->sources[i].walk, f->sources[i].leaf.seg);
    f->sources[i].more = gpuir__walk_next(&f->sources[i].walk);
  }
  while (!status && f->documents && (least = gpuir__fusion_least(f, &df)) != NULL)
    status = gpuir__fusion_list(f, least, df, err);
  b = f->builder;
  f->builder = NULL;
  if (!status) return gpuir__live_write(f->l, b, f->number, f->file, result, NULL, err);
  gpuir_builder_destroy(b);
  return status;
}

static void gpuir__fusion_free(gpuir__fusion *f) {
  const gpuir_allocator *a = &f->l->a;
  size_t i;
  for (i = 0; f->sources && i < f->n; i++) {
    gpuir__source *s = &f->sources[i];
    if (s->rank) gpuir__free(a, s->rank, (size_t)s->leaf.deleted->words * 4);
    gpuir__leaf_close(&s->leaf);
  }
  gpuir__free(a, f->sources, f->n * sizeof *f->sources);
  gpuir__area_free(a, &f->postings);
  gpuir__area_free(a, &f->positions);
  gpuir__buf_free(a, &f->text);
#ifndef GPUIR_NO_STORE
  gpuir__free(a, f->block, sizeof *f->block);
#endif
#ifndef GPUIR_NO_COLUMNS
  gpuir__column_values_free(a, &f->values);
#endif
  gpuir__free(a, f->path, f->path_size);
}

/* Chooses the pieces from *from up to *to that are worth merging: the youngest ones, as long as together they have half
 * as many documents as the next older one; or one of which over a quarter is deleted. 0 if there are none. */
GPUIR__COLD static int gpuir__live_choose(const gpuir_live *l, int all, size_t *from, size_t *to) {
  uint64_t sum;
  size_t i = l->n - 1;
  *from = 0;
  *to = l->n;
  if (all) return l->n > 1 || l->pieces[0].deleted;
  sum = gpuir__piece_live(&l->pieces[i]);
  for (; i && 2 * sum >= gpuir__piece_live(&l->pieces[i - 1]); i--) sum += gpuir__piece_live(&l->pieces[i - 1]);
  *from = i;
  if (l->n - i > 1) return 1;
  for (i = l->n; i-- > 0;) {
    const gpuir__piece *p = &l->pieces[i];
    *from = i;
    *to = i + 1;
    if (p->deleted && (uint64_t)p->deleted->n * 4 > p->seg->stat.documents) return 1;
  }
  return 0;
}

#define GPUIR__MERGE_FACTOR 8u
#define GPUIR__MERGE_FREE ((uint64_t)64 << 20) /* bytes */

static int gpuir__compare_files(const void *a, const void *b) {
  const gpuir__identity *x = &(*(gpuir__segment *const *)a)->file, *y = &(*(gpuir__segment *const *)b)->file;
  if (x->dev != y->dev) return x->dev < y->dev ? -1 : 1;
  return x->ino < y->ino ? -1 : x->ino > y->ino;
}

/* Bounds a merge by the files that it reads. Names that lead to one file are legal, as tools make them that link equal
 * files; but hundreds of links to one would make a large file out of a small folder. 0, NOMEM, LIMIT. */
static int gpuir__fusion_bound(const gpuir__fusion *f, gpuir_error *err) {
  const gpuir_allocator *a = &f->l->a;
  const gpuir__segment **segs = (const gpuir__segment **)gpuir__alloc(a, f->n * sizeof *segs);
  uint64_t all = 0, files = 0;
  size_t i;
  if (!segs) return gpuir__fail_nomem(err);
  for (i = 0; i < f->n; i++) segs[i] = f->sources[i].leaf.seg;
  qsort((void *)segs, f->n, sizeof *segs, gpuir__compare_files);
  for (i = 0; i < f->n; i++) {
    all += segs[i]->size;
    if (!i || gpuir__compare_files(&segs[i - 1], &segs[i])) files += segs[i]->size;
  }
  gpuir__free(a, (void *)segs, f->n * sizeof *segs);
  if (all <= GPUIR__MERGE_FREE || all / GPUIR__MERGE_FACTOR <= files) return GPUIR_OK;
  return gpuir__fail(err, GPUIR_E_LIMIT, 0, "%s: not merged: %llu bytes of segments are links to files of %llu",
      gpuir__tail(f->l->path), (unsigned long long)all, (unsigned long long)files);
}

/* Begins a merge: takes what it needs of the chosen pieces. *begun: 0 if there are none. */
static int gpuir__fusion_begin(gpuir__fusion *f, int all, int *begun, gpuir_error *err) {
  gpuir_live *l = f->l;
  size_t from, to, i;
  int status = GPUIR_OK;
  gpuir__lock(&l->mutex);
  if (l->status) {
    if (err) *err = l->error;
    status = l->status;
  } else if (l->merging) {
    status = gpuir__fail(err, GPUIR_E_BUSY, 0, "%s: another merge is running", gpuir__tail(l->path));
  }
  *begun = !status && gpuir__live_choose(l, all, &from, &to);
  if (*begun) {
    f->n = to - from;
    f->sources = (gpuir__source *)gpuir__alloc_zero(&l->a, f->n * sizeof *f->sources);
    if (!f->sources) status = gpuir__fail_nomem(err);
#ifndef GPUIR_NO_STORE
    f->block = (gpuir__text_block *)gpuir__alloc_zero(&l->a, sizeof *f->block);
    if (f->block) f->block->whole = 1;
    else status = gpuir__fail_nomem(err);
#endif
    for (i = 0; i < f->n && !status; i++) {
      const gpuir__piece *p = &l->pieces[from + i];
      gpuir__source *s = &f->sources[i];
      s->leaf.seg = gpuir__segment_retain(p->seg);
      s->leaf.deleted = gpuir__deleted_retain(p->deleted);
      s->n = p->deleted ? p->deleted->n : 0;
    }
    f->number = l->next++;
    l->merging = !status;
  }
  gpuir__unlock(&l->mutex);
  return status;
}

/* Numbers the documents, and writes the result. */
static int gpuir__fusion_run(gpuir__fusion *f, gpuir__segment **result, gpuir_error *err) {
  size_t i;
  const int status = gpuir__fusion_bound(f, err);
  if (status) return status;
  f->path = gpuir__live_path(f->l, f->number, ".tmp", &f->path_size);
  if (!f->path) return gpuir__fail_nomem(err);
  for (i = 0; i < f->n; i++) {
    const int bad = gpuir__segment_verify_directory(f->sources[i].leaf.seg, err);
    if (bad) return bad;
    if (gpuir__source_rank(&f->l->a, &f->sources[i], &f->documents)) return gpuir__fail_nomem(err);
  }
  return gpuir__fusion_write(f, result, err);
}

/* Finds a source's piece in the list; l->n if it is not there any more. */
static size_t gpuir__fusion_find(const gpuir__fusion *f, const gpuir__source *s) {
  const gpuir_live *l = f->l;
  size_t i = 0;
  while (i < l->n && l->pieces[i].seg != s->leaf.seg) i++;
  return i;
}

/* Deletes from the result what was deleted from the sources since the merge began, and dooms in it what is pending
 * there. */
static int gpuir__fusion_deletions(const gpuir__fusion *f, gpuir__piece *piece) {
  const gpuir_allocator *a = &f->l->a;
  uint64_t n = 0;
  uint32_t i;
  size_t k;
  int status = GPUIR_OK;
  for (k = 0; k < f->n && !status; k++) {
    const gpuir__source *s = &f->sources[k];
    for (i = s->n; i < s->leaf.seg->log.n && !status; i++)
      status = gpuir__piece_doom(a, piece, gpuir__source_docid(s, gpuir__log_get(&s->leaf.seg->log, i)), &n);
  }
  if (!status) status = gpuir__piece_apply(a, piece);
  for (k = 0; k < f->n && !status; k++) {
    const gpuir__source *s = &f->sources[k];
    const size_t at = gpuir__fusion_find(f, s);
    const gpuir__buf *pending = at < f->l->n ? &f->l->pieces[at].pending : NULL;
    for (i = 0; pending && i < pending->len / 4 && !status; i++)
      status = gpuir__piece_doom(a, piece, gpuir__source_docid(s, gpuir__load32(pending->data + 4 * i)), &n);
  }
  return status;
}

/* Puts the result in place of those of its sources that are left; of none, if no document of theirs is. The mutex is
 * held. 0 or NOMEM: then the list is as it was. */
static int gpuir__fusion_swap(gpuir__fusion *f, gpuir__piece *piece, int *placed) {
  gpuir_live *l = f->l;
  size_t k, at = l->n, left = 0;
  int status = gpuir__fusion_deletions(f, piece);
  *placed = 0;
  for (k = 0; k < f->n; k++) {
    const size_t i = gpuir__fusion_find(f, &f->sources[k]);
    if (i == l->n) continue;
    if (!left++) at = i;
  }
  if (status || !left) return status;
  /* room for all numbers first, so that nothing can fail half way */
  if (!gpuir__buf_room(&l->a, &l->garbage, sizeof(gpuir__garbage) * left)) return GPUIR_E_NOMEM;
  while (left-- > 1) (void)gpuir__live_drop(l, at + 1);
  {
    gpuir__piece old = l->pieces[at];
    l->pieces[at] = *piece;
    status = gpuir__live_room(l); /* the old one goes to the end, and from there */
    if (status) {
      l->pieces[at] = old;
      return status;
    }
    l->pieces[l->n++] = old;
    (void)gpuir__live_drop(l, l->n - 1);
  }
  *placed = 1;
  (void)gpuir__live_drop_dead(l); /* without memory the dead ones stay till the next time */
  return GPUIR_OK;
}

/* Ends a merge that has a result, or has failed. */
static int gpuir__fusion_end(gpuir__fusion *f, gpuir__segment *result, int status, int *more, gpuir_error *err) {
  gpuir_live *l = f->l;
  gpuir__piece piece;
  size_t from, to;
  int placed = 0;
  memset(&piece, 0, sizeof piece);
  piece.seg = result;
  gpuir__lock(&l->mutex);
  if (!status && l->status) { /* the handle has failed meanwhile */
    status = l->status;
    if (err) *err = l->error;
  }
  if (!status && gpuir__fusion_swap(f, &piece, &placed)) status = gpuir__fail_nomem(err);
  l->merging = 0;
  *more = !status && gpuir__live_choose(l, 0, &from, &to);
  gpuir__unlock(&l->mutex);
  if (placed) return status;
  gpuir__segment_unlink(l->folder, f->number, f->file);
  if (result) gpuir__piece_free(&l->a, &piece);
  return status;
}

GPUIR__COLD GPUIR_API int gpuir_live_merge(gpuir_live *l, int all, int *more, gpuir_error *err) {
  gpuir__segment *result = NULL;
  gpuir__fusion f;
  int begun, another = 0, status;
  if (more) *more = 0;
  if (!l) return gpuir__refuse(err, "no live index given");
  memset(&f, 0, sizeof f);
  f.l = l;
  status = gpuir__fusion_begin(&f, all, &begun, err);
  if (!begun) return status;
  if (!status) {
    status = gpuir__fusion_run(&f, &result, err);
    status = gpuir__fusion_end(&f, result, status, &another, err);
  }
  gpuir__fusion_free(&f);
  if (more) *more = another;
  return status;
}
