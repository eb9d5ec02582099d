
/* ========
 * [43-verify]  verify: reads all of an index
 *
 * Open checks what a file says of itself in a time that does not grow with it. Verifying reads everything: checksums,
 * the order of terms, each posting, each bound. A file that passes gives the hits of a fresh build.
 *
 * Uses      [18-codecs], [24-postings], [25-positions], [26-dense], [28-encoder], [32-dictionary], [34-fields],
 *           [35-keys], [37-layout], [40-columns], [41-reader].
 * Start at  gpuir_verify, gpuir__segment_verify, gpuir__verify_block.
 * Tests     tests/unit/43_verify.c
 * ======*/

/* The end of a part of the docID and the frequency streams so far, in bytes from the part's start. */
typedef struct gpuir__stream_ends {
  uint64_t docs, freqs;
} gpuir__stream_ends;

/* The lists of the terms so far, as the directory has them. */
typedef struct gpuir__directory {
  uint64_t postings, inline_postings, longs, blocks;
  uint64_t positions; /* bytes */
  gpuir__stream_ends of_long, of_short;
} gpuir__directory;

/* Returns where in the file the block of term `id` (< terms) begins. */
static uint64_t gpuir__term_offset(const gpuir__segment *ix, uint64_t id) {
  const uint64_t block = id / GPUIR__DICT_BLOCK;
  return ix->section[GPUIR__S_TERMS]->offset + ix->terms.pages[block / GPUIR__DICT_PAGE].start +
      ix->terms.starts[block];
}

/* Fails with the cause, the term and the place of its block. */
static int gpuir__verify_term(const gpuir__segment *ix, gpuir_error *err, uint64_t id, const char *cause) {
  uint8_t t[GPUIR_MAX_TERM + 1];
  size_t n = gpuir__term_get(ix, id, t);
  return gpuir__fail(err, GPUIR_E_FORMAT, gpuir__term_offset(ix, id), "%s: term %llu \"%.*s\": %s", ix->path,
      (unsigned long long)id, (int)(n < 32 ? n : 32), (const char *)t, cause);
}

/* Adds a stream pair to those before it; 0 if it begins before their end. */
static int gpuir__directory_append(gpuir__stream_ends *ends, uint64_t docs, uint64_t docs_len, uint64_t freqs,
    uint64_t freqs_len) {
  if (docs < ends->docs || freqs < ends->freqs || docs_len > UINT64_MAX - docs || freqs_len > UINT64_MAX - freqs)
    return 0;
  ends->docs = docs + docs_len;
  ends->freqs = freqs + freqs_len;
  return 1;
}

/* Adds the next term's list. Returns what is wrong with it, or NULL. A long list is the next one of its section, and
 * every list has blocks and bytes that no other list has: the writer lays them out so, and the work is bounded by the
 * file's size, however many terms would name one list. */
static const char *gpuir__directory_add(gpuir__directory *d, const gpuir__segment *ix, const gpuir__record *r) {
  const gpuir__long *x;
  d->postings += r->df;
  if (r->positions != d->positions || r->positions_len > ix->size) return "its positions are not the next ones";
  d->positions += r->positions_len;
  if (r->df <= 1) {
    d->inline_postings += r->df;
    return r->df ? NULL : "it has no postings";
  }
  if (r->df <= GPUIR__SHORT_MAX)
    return gpuir__directory_append(&d->of_short, r->docs, r->docs_len, r->freqs, r->freqs_len)
        ? NULL
        : "its list has another one's bytes";
  if (r->docs != d->longs || r->docs >= ix->stat.longs) return "its list is not the next one";
  x = &ix->lists.longs[r->docs];
  if (x->first_block != d->blocks) return "its blocks are not the next ones";
  d->longs++;
  d->blocks += (r->df - 1) / GPUIR__BLOCK + 1;
  if (d->blocks > ix->stat.blocks) return "its blocks are not there";
  return gpuir__directory_append(&d->of_long, x->docs, x->docs_len, x->freqs, x->freqs_len)
      ? NULL
      : "its list has another one's bytes";
}

/* Checks that the lists of all terms are as many as the index states. */
static int gpuir__directory_end(const gpuir__directory *d, const gpuir__segment *ix, gpuir_error *err) {
  const gpuir__section *positions = ix->section[GPUIR__S_POSITIONS];
  if (d->positions != (positions ? positions->length : 0))
    return gpuir__bad(ix, err, positions ? positions->offset : 0, "positions do not fill their section");
  if (d->postings == ix->stat.postings && d->inline_postings == ix->stat.inline_postings &&
      d->longs == ix->stat.longs && d->blocks == ix->stat.blocks)
    return GPUIR_OK;
  return gpuir__bad(ix, err, 0, "counts do not sum up");
}

/* Holds the directory of the lists against itself: see gpuir_verify_directory. */
static int gpuir__segment_verify_directory(const gpuir__segment *ix, gpuir_error *err) {
  gpuir__directory d;
  gpuir__walk w;
  memset(&d, 0, sizeof d);
  for (gpuir__walk_start(&w, ix); gpuir__walk_next(&w);) {
    const char *cause = gpuir__directory_add(&d, ix, &w.record);
    if (cause) return gpuir__verify_term(ix, err, w.id, cause);
  }
  return gpuir__directory_end(&d, ix, err);
}

typedef struct gpuir__verifier {
  const gpuir__segment *ix;
  gpuir__norm norm; /* of the stored k1 and b, and of all documents of the segment: those of its seeds */
  gpuir_error *err;
  float weight; /* of the list, if it has seeds */
  gpuir__top top;
  gpuir__directory directory;
  uint64_t dense; /* dense lists so far */
} gpuir__verifier;

/* Returns 1 if one of n pairs bounds the contribution of a posting with this tf and document length. */
static int gpuir__dominated(const gpuir__pair *pairs, unsigned n, uint32_t tf, uint32_t length) {
  uint32_t t = gpuir__code_up(tf), d = gpuir__code_down(length);
  unsigned i;
  for (i = 0; i < n; i++)
    if (t <= (pairs[i] & 255u) && d >= (uint32_t)(pairs[i] >> 8)) return 1;
  return 0;
}

/* Checks a block's positions: that they ascend within their documents, and take the bytes behind those of the block
 * before, at *at of the list. Returns what is wrong, or NULL. */
static const char *gpuir__verify_positions(const gpuir__verifier *v, const gpuir__list *l, uint32_t block,
    const uint32_t *docs, const uint32_t *freqs, uint32_t n, uint64_t *at) {
  gpuir__positions p;
  uint64_t gap = 0, size;
  uint32_t i;
  if (l->positions_off && (uint64_t)l->positions_off[block] * GPUIR__CHUNK_UNIT != *at)
    return "a block's positions are not the next ones";
  gpuir__positions_open(&p, l, block, freqs, n);
  for (i = 0; i < n; i++) gap += (uint64_t)freqs[i] + 1;
  size = gpuir__positions_size(&p, gap);
  if (!size) return "positions are missing";
  *at += size;
  if (l->positions_off) *at = (*at + GPUIR__CHUNK_UNIT - 1) & ~(uint64_t)(GPUIR__CHUNK_UNIT - 1);
  gpuir__positions_open(&p, l, block, freqs, n);
  for (i = 0, gap = 0; i < n; i++) {
    uint32_t next = 0, x;
    gpuir__occurrences w;
    gpuir__occurrences_open(&w, &p, gap, freqs[i], UINT32_MAX);
    gap += (uint64_t)freqs[i] + 1;
    while (!gpuir__positions_seek(&p, gap)) {}
    while ((x = gpuir__occurrences_next(&w)) != GPUIR_END) {
      if (x < next) return "positions do not ascend";
      if (x >= v->ix->lengths[docs[i]]) return "a position is behind its document's end";
      next = x + 1;
    }
  }
  return NULL;
}

/* Checks a block of a list against the directory, the bounds and the lengths. Returns what is wrong, or NULL. */
static const char *gpuir__verify_block(gpuir__verifier *v, const gpuir__list *l, uint32_t block, uint64_t *cf,
    uint64_t *positions) {
  uint32_t docs[GPUIR__BLOCK_ROOM], freqs[GPUIR__BLOCK_ROOM], n, i;
  gpuir__pair pairs[GPUIR__BLOCK_PAIRS];
  n = gpuir__list_docs(l, block, docs);
  gpuir__list_freqs(l, block, freqs);
  if (l->bounds) memcpy(pairs, &l->bounds[block], sizeof pairs);
  for (i = 0; i < n; i++) {
    uint32_t length, tf = freqs[i] + 1;
    if (docs[i] >= v->ix->stat.documents || !tf) return "a posting is out of range";
    if (i ? docs[i] <= docs[i - 1] : block && docs[i] <= l->last[block - 1]) return "docIDs do not ascend";
    length = v->ix->lengths[docs[i]];
    if (gpuir__list_tf(l, block * GPUIR__BLOCK + i) != tf) return "frequencies disagree";
    if (l->df > 1 && l->docs.codec->get && l->docs.codec->get(&l->docs, block * GPUIR__BLOCK + i) != docs[i])
      return "docIDs disagree";
    *cf += tf;
    if (!l->extent) continue;
    if (!gpuir__dominated(pairs, GPUIR__BLOCK_PAIRS, tf, length)) return "a block's bounds are too low";
    if (!gpuir__dominated(l->extent->pairs, GPUIR__LIST_PAIRS, tf, length)) return "the list's bounds are too low";
    if (!l->seeds) continue;
    gpuir__top_add(&v->top, gpuir__contribution(v->weight, tf, gpuir__norm_of(v->norm.a, v->norm.b, length)));
  }
  if (l->last && docs[n - 1] != l->last[block]) return "a block's last docID differs from the directory";
  return l->positions ? gpuir__verify_positions(v, l, block, docs, freqs, n, positions) : NULL;
}

/* The lines of a dense list as they must be, window by window. */
typedef struct gpuir__dense_check {
  const gpuir__dense *is;
  uint64_t window; /* the one that is next */
  uint64_t word; /* of it, so far */
  uint32_t peak, n; /* of it, so far; postings before it */
} gpuir__dense_check;

/* Checks the windows before `end`, of which the first has what was gathered; n: postings before `end`. Returns what is
 * wrong, or NULL. */
static const char *gpuir__dense_check_to(gpuir__dense_check *c, uint64_t end, uint32_t n) {
  for (; c->window < end; c->window++) {
    const uint64_t line = c->window / 8;
    if (c->is->bits[line].word[c->window % 8] != c->word) return "its bits are not its docIDs";
    if (c->is->peaks[line].of[c->window % 8] != c->peak) return "a window's peak is not its greatest saturation";
    if (c->window % 8 == 0 && c->is->rank[line] != c->n) return "a line's rank is not the number of postings before it";
    c->word = 0;
    c->peak = 0;
    c->n = n;
  }
  return NULL;
}

/* Checks the lines of a dense list, all of whose blocks are right. Returns what is wrong, or NULL. */
static const char *gpuir__verify_lines(const gpuir__verifier *v, const gpuir__list *l) {
  uint32_t docs[GPUIR__BLOCK_ROOM], freqs[GPUIR__BLOCK_ROOM], block, i, n;
  gpuir__dense_check c;
  const char *cause = NULL;
  memset(&c, 0, sizeof c);
  c.is = &l->dense;
  for (block = 0; block < l->nblocks && !cause; block++) {
    n = gpuir__list_docs(l, block, docs);
    gpuir__list_freqs(l, block, freqs);
    for (i = 0; i < n && !cause; i++) {
      const float norm = gpuir__norm_of(v->norm.a, v->norm.b, v->ix->lengths[docs[i]]);
      cause = gpuir__dense_check_to(&c, docs[i] / GPUIR__DENSE_WINDOW, block * GPUIR__BLOCK + i);
      c.word |= (uint64_t)1 << docs[i] % 64;
      c.peak = gpuir__max32(c.peak, gpuir__dense_peak(freqs[i] + 1, norm));
    }
  }
  return cause ? cause : gpuir__dense_check_to(&c, 8 * gpuir__dense_lines(v->ix->stat.documents), l->df);
}

/* Checks that a list is dense if and only if it must be, where a file has dense lists, and its lines, once its blocks
 * are known to be right. Returns what is wrong, or NULL. */
static const char *gpuir__verify_dense(gpuir__verifier *v, const gpuir__record *r, const gpuir__list *l) {
  const gpuir__segment *ix = v->ix;
  if (!ix->dense.n) return NULL;
  if (!gpuir__dense_is(ix->stat.documents, r->df, gpuir__dense_stated(ix->meta.dense)))
    return l->dense.bits ? "it is among the dense lists" : NULL;
  if (v->dense == ix->dense.n || ix->dense.lists[v->dense] != r->docs || !l->dense.bits)
    return "it is not the next one of the dense lists";
  v->dense++;
  return gpuir__verify_lines(v, l);
}

/* Checks that all dense lists are those of terms. */
static int gpuir__verify_dense_end(const gpuir__verifier *v) {
  const gpuir__section *s = v->ix->section[GPUIR__S_DENSE_LISTS];
  if (!s || (v->dense == v->ix->dense.n && s->length % 4 == 0)) return GPUIR_OK;
  return gpuir__bad(v->ix, v->err, s->offset, "there are more dense lists than terms that are frequent enough");
}

/* Checks a list block by block. Returns what is wrong, or NULL. */
static const char *gpuir__verify_list(gpuir__verifier *v, const gpuir__list *l) {
  uint64_t cf = 0, positions = 0;
  uint32_t block;
  v->top.n = v->top.floor = 0;
  if (l->seeds) v->weight = gpuir__weight(gpuir__idf(v->ix->stat.documents, l->df), v->ix->stat.k1);
  for (block = 0; block < l->nblocks; block++) {
    const char *cause = gpuir__verify_block(v, l, block, &cf, &positions);
    if (cause) return cause;
  }
  if (l->positions && positions != l->positions_len) return "positions do not fill their bytes";
  if (!l->extent) return NULL;
  if (cf != l->extent->cf) return "the collection frequency is wrong";
  if (l->seeds) {
    uint32_t s;
    gpuir__top_sort(&v->top);
    for (s = 0; s < GPUIR__SEEDS; s++)
      if (l->df < gpuir__seed_ranks[s] || l->seeds[s] > v->top.values[gpuir__seed_ranks[s] - 1])
        return "a seed is too high";
  }
  return NULL;
}

/* Checks that the blocks are those that the writer makes of their terms and records. The docIDs' width, the shared
 * bytes, the bases and the bits that nothing needs are right then, too. */
static int gpuir__verify_blocks(const gpuir__verifier *v) {
  const gpuir__dict *d = &v->ix->terms;
  gpuir__dict_page page, now;
  gpuir__dict_terms *t = (gpuir__dict_terms *)gpuir__alloc_zero(&v->ix->a, sizeof *t);
  uint8_t out[GPUIR__DICT_MOST + 8];
  gpuir__walk w;
  int good = 1;
  if (!t) return gpuir__fail_nomem(v->err);
  memset(&page, 0, sizeof page);
  now = page;
  for (gpuir__walk_start(&w, v->ix); good && gpuir__walk_next(&w);) {
    const uint64_t block = w.id / GPUIR__DICT_BLOCK, start = now.start;
    gpuir__dict_add(t, w.term, w.len, &w.record);
    good = w.len && w.record.df;
    if (!good || (t->n < GPUIR__DICT_BLOCK && w.next < d->terms)) continue;
    if (block % GPUIR__DICT_PAGE == 0) page = now;
    good = !memcmp(&page, &d->pages[block / GPUIR__DICT_PAGE], sizeof page) && d->starts[block] == start - page.start;
    if (good) {
      const size_t n = gpuir__dict_encode(t, &d->form, &page, &now, out);
      good = now.start <= d->size && !memcmp(out, d->bytes + start, n);
    }
    t->n = 0;
    t->fill = 0;
  }
  gpuir__free(&v->ix->a, t, sizeof *t);
  if (!good) return gpuir__verify_term(v->ix, v->err, w.id, "its block is not as it is written");
  if (now.start != d->size) return gpuir__bad(v->ix, v->err, 0, "the dictionary's blocks do not fill their section");
  return GPUIR_OK;
}

/* Checks that the search tree has the blocks' first terms. */
static int gpuir__verify_tree(const gpuir__verifier *v) {
  const gpuir__dict *d = &v->ix->terms;
  const uint64_t *keys = d->keys;
  uint64_t node, want[GPUIR__DICT_FAN];
  unsigned depth;
  for (depth = 0; depth < d->levels; depth++)
    for (node = 0; node < d->level[depth]; node++, keys += GPUIR__DICT_FAN) {
      gpuir__dict_node(d, depth, node, want);
      if (memcmp(want, keys, sizeof want))
        return gpuir__bad(v->ix, v->err, v->ix->section[GPUIR__S_TERM_KEYS]->offset + (uint64_t)(keys - d->keys) * 8,
            "the search tree does not have the terms");
    }
  return GPUIR_OK;
}

/* Checks the terms' order, records and lists. */
GPUIR__COLD static int gpuir__verify_terms(gpuir__verifier *v) {
  const gpuir__segment *ix = v->ix;
  uint8_t before[GPUIR_MAX_TERM];
  size_t before_len = 0;
  gpuir__walk w;
  for (gpuir__walk_start(&w, ix); gpuir__walk_next(&w);) {
    const uint64_t id = w.id;
    const size_t n = w.len;
    gpuir__list l;
    const char *cause;
    int status;
    if (!n) return gpuir__verify_term(ix, v->err, id, "bad bounds of its bytes");
    if (id && gpuir__compare_bytes(before, before_len, w.term, n) >= 0)
      return gpuir__verify_term(ix, v->err, id, "terms are not sorted");
    memcpy(before, w.term, n);
    before_len = n;
    cause = gpuir__directory_add(&v->directory, ix, &w.record);
    if (cause) return gpuir__verify_term(ix, v->err, id, cause);
    status = gpuir__list_open(ix, &ix->a, id, &l);
    if (status == GPUIR_E_NOMEM) return gpuir__fail_nomem(v->err);
    if (status == GPUIR_E_UNSUPPORTED && gpuir__list_why(ix, id, status) != gpuir_strerror(status))
      return gpuir__fail(v->err, status, 0, "%s: %s", ix->path, gpuir__list_why(ix, id, status));
    if (status == GPUIR_E_UNSUPPORTED) return gpuir__verify_term(ix, v->err, id, "unknown codec");
    if (status) return gpuir__verify_term(ix, v->err, id, "bad record");
    cause = gpuir__verify_list(v, &l);
    if (!cause) cause = gpuir__verify_dense(v, &w.record, &l);
    gpuir__list_close(&ix->a, &l);
    if (cause) return gpuir__verify_term(ix, v->err, id, cause);
  }
  return gpuir__verify_dense_end(v);
}

/* Checks that a section's offsets into the one of the row before ascend and end with it. */
static int gpuir__verify_starts(const gpuir__segment *ix, unsigned row, gpuir_error *err) {
  const gpuir__section *bytes = ix->section[gpuir__section_rows[row - 1].id];
  const gpuir__section *starts = ix->section[gpuir__section_rows[row].id];
  uint64_t before = 0, i;
  unsigned width;
  if (!bytes || !starts) return GPUIR_OK;
  width = gpuir__start_width(bytes->length);
  for (i = 0; i < gpuir__starts_count(bytes, starts); i++) {
    uint64_t at = gpuir__load_number(ix->map + starts->offset + i * width, width);
    if (at < before || at > bytes->length)
      return gpuir__bad(ix, err, starts->offset + i * width, "offsets do not ascend");
    before = at;
  }
  return before == bytes->length ? GPUIR_OK : gpuir__bad(ix, err, starts->offset, "offsets do not cover their section");
}

/* Checks all sections of offsets. */
static int gpuir__verify_all_starts(const gpuir__segment *ix, gpuir_error *err) {
  unsigned row;
  int status = GPUIR_OK;
  for (row = 1; row < GPUIR__SECTION_ROWS && !status; row++) {
    const uint32_t items = gpuir__section_rows[row].items;
    if (items == GPUIR__N_DOC_ENDS || items == GPUIR__N_ENDS) status = gpuir__verify_starts(ix, row, err);
  }
  return status;
}

#ifndef GPUIR_NO_STORE
/* Reads a document's text, and makes *hash that of it. */
static int gpuir__verify_text(const gpuir__segment *ix, uint32_t docid, const gpuir_doc *doc, gpuir__text_block *block,
    uint64_t *hash, gpuir_error *err) {
  char part[4096];
  XXH3_state_t *state = XXH3_createState();
  uint64_t at;
  int status = state ? GPUIR_OK : gpuir__fail_nomem(err);
  if (status) return status;
  (void)XXH3_64bits_reset(state);
  for (at = 0; at < doc->stored_bytes && !status; at += sizeof part) {
    const size_t n = (size_t)gpuir__min64(doc->stored_bytes - at, sizeof part);
    if (gpuir__segment_text(ix, docid, doc, block, at, part, n))
      status = gpuir__bad(ix, err, ix->section[GPUIR__S_PACKED]->offset, "a block of texts cannot be unpacked");
    else (void)XXH3_64bits_update(state, part, n);
  }
  *hash = XXH3_64bits_digest(state);
  (void)XXH3_freeState(state);
  return status;
}
#endif

#ifdef GPUIR_NO_STORE
/* Checks that documents have sources that are there, and names that their stems fit. */
static int gpuir__verify_documents(const gpuir__segment *ix, gpuir_error *err) {
  gpuir_doc doc;
  uint64_t i;
  for (i = 0; i < ix->stat.documents; i++)
    if (gpuir__segment_doc(ix, (uint32_t)i, &doc))
      return gpuir__bad(ix, err, 0, "a document's source is none, or does not fit its name or the place in it");
  return GPUIR_OK;
}
#else
/* Checks that documents have sources that are there, names that their stems fit, and the texts that their hashes are
 * of. */
static int gpuir__verify_documents(const gpuir__segment *ix, gpuir_error *err) {
  const gpuir__section *origins = ix->section[GPUIR__S_ORIGINS];
  gpuir__text_block *const block = (gpuir__text_block *)gpuir__alloc_zero(&ix->a, sizeof *block);
  gpuir_doc doc;
  uint64_t i, hash = 0;
  int status = block ? GPUIR_OK : gpuir__fail_nomem(err);
  if (block) block->whole = 1;
  for (i = 0; (origins || gpuir__has_texts(ix)) && i < ix->stat.documents && !status; i++) {
    if (gpuir__segment_doc(ix, (uint32_t)i, &doc))
      status = gpuir__bad(ix, err, origins ? origins->offset + GPUIR__ORIGINS_HEAD + i * gpuir__origins_row(ix) : 0,
          "a document's source is none, or does not fit its name or the place in it; or its text has no place");
    else if (doc.stored_bytes) status = gpuir__verify_text(ix, (uint32_t)i, &doc, block, &hash, err);
    if (status || !doc.stored_bytes || !doc.hash || hash == doc.hash) continue;
    if ((!doc.form && doc.source_bytes == doc.stored_bytes) || !(doc.source_offset || doc.source_bytes))
      status = gpuir__bad(ix, err, ix->section[GPUIR__S_HASHES]->offset + i * 8,
          "a document's hash is not that of its text");
  }
  gpuir__free(&ix->a, block, sizeof *block);
  return status;
}
#endif

#ifndef GPUIR_NO_COLUMNS
/* Checks that a column's keys ascend. */
static const char *gpuir__verify_keys(const gpuir__segment *ix, unsigned column, gpuir__key_walk *w) {
  const gpuir__key_texts t = gpuir__column_texts(ix, column);
  char before[GPUIR_MAX_VALUE + 1];
  size_t before_len = 0;
  uint64_t i;
  for (i = 0; i < t.n; i++) {
    if (i % GPUIR__KEY_PAGE) gpuir__key_next(w);
    else gpuir__key_open(&t, i / GPUIR__KEY_PAGE, w);
    if (!w->len || memchr(w->text, 0, w->len)) return "a value of a column cannot be read";
    if (i && gpuir__value_compare(t.column, before, before_len, w->text, w->len) >= 0)
      return "values of a column do not ascend";
    memcpy(before, w->text, w->len);
    before_len = w->len;
  }
  return NULL;
}

/* Checks the values of a block's documents against its extremes, and adds them up. */
static const char *gpuir__verify_column_block(const gpuir__segment *ix, unsigned column, uint64_t block,
    uint64_t *values) {
  const gpuir__index_columns *x = &ix->columns;
  const gpuir__column *row = &x->rows[column];
  const int text = gpuir__is_text_column((int)row->kind);
  const uint64_t at = column * x->blocks + block;
  const uint32_t n = (uint32_t)gpuir__min64(GPUIR__BLOCK, ix->stat.documents - block * GPUIR__BLOCK);
  uint64_t least = UINT64_MAX, most = 0, first, j;
  gpuir__column_block b;
  uint32_t i;
  gpuir__column_open(ix, column, block, &b);
  if (b.none && (text || x->least[at] <= x->most[at]))
    return "a block of a column lies outside, or has an unknown form";
  for (i = 0; i < n; i++) {
    const uint64_t count = gpuir__column_count(&b, i, &first);
    for (j = 0; j < count; j++) {
      const uint64_t v = gpuir__column_read(&b, i, first + j);
      if (text && (v > row->values || (b.ends && !v))) return "a column has a value that there is not";
      least = gpuir__min64(least, v);
      most = gpuir__max64(most, v);
      *values += !text;
    }
    if (!count && text) least = 0;
  }
  if (b.none ? x->least[at] != 1 || x->most[at] : least != x->least[at] || most != x->most[at])
    return "a block's values do not have the extremes that are stated";
  return NULL;
}

/* Checks the columns. */
static int gpuir__verify_columns(const gpuir__segment *ix, gpuir_error *err) {
  const gpuir__index_columns *x = &ix->columns;
  const unsigned n = x->fields ? x->fields->n : 0;
  gpuir__key_walk w;
  uint64_t block, values;
  unsigned i;
  memset(&w, 0, sizeof w);
  for (i = 0; i < n; i++) {
    const gpuir__column *row = &x->rows[i];
    const int text = gpuir__is_text_column((int)row->kind);
    const char *cause = text ? gpuir__verify_keys(ix, i, &w) : NULL;
    for (block = values = 0; !cause && block < x->blocks; block++)
      cause = gpuir__verify_column_block(ix, i, block, &values);
    if (!cause && !text && values != row->values) cause = "a column states another number of values";
    if (cause) return gpuir__bad(ix, err, ix->section[GPUIR__S_COLUMNS]->offset + i * sizeof *row, cause);
  }
  return GPUIR_OK;
}
#endif

/* Checks that no term is in fewer documents of the collection than of its part, or in more than there are. */
static int gpuir__verify_shard(const gpuir__segment *ix, gpuir_error *err) {
  gpuir__walk w;
  if (!ix->shard) return GPUIR_OK;
  for (gpuir__walk_start(&w, ix); gpuir__walk_next(&w);)
    if (ix->dfs[w.id] < w.record.df || ix->dfs[w.id] > ix->shard->documents)
      return gpuir__bad(ix, err, ix->section[GPUIR__S_TERM_DFS]->offset + 4 * w.id,
          "a term is in fewer documents of the collection than here, or in more than it has");
  return GPUIR_OK;
}

/* ---- all of a segment, and of an index */

/* Reads the whole segment: see gpuir_verify. */
static int gpuir__segment_verify(const gpuir__segment *ix, gpuir_error *err) {
  gpuir__verifier *v;
  uint64_t tokens = 0, i, at, end;
  int status = GPUIR_OK;
  for (i = 0; i < ix->nsections; i++) {
    const gpuir__section *s = &ix->table[i];
    if (gpuir__hash(ix->map + s->offset, (size_t)s->length, 0) != s->hash)
      return gpuir__fail(err, GPUIR_E_CHECKSUM, s->offset, "%s: checksum of section %u is wrong", ix->path,
          (unsigned)s->id);
    end = (s->offset + s->length + 2 * GPUIR__ALIGN - 1) & ~(uint64_t)(GPUIR__ALIGN - 1);
    for (at = s->offset + s->length; at < end && at < ix->size; at++)
      if (ix->map[at]) return gpuir__bad(ix, err, at, "the padding behind a section is not zero");
  }
  v = (gpuir__verifier *)gpuir__alloc_zero(&ix->a, sizeof *v);
  if (!v) return gpuir__fail_nomem(err);
  v->ix = ix;
  v->norm = gpuir__norm_make(ix->stat.k1, ix->stat.b, gpuir__mean(ix->stat.tokens, ix->stat.documents));
  v->err = err;
  for (i = 0; i < ix->stat.documents; i++) tokens += ix->lengths[i];
  if (tokens != ix->stat.tokens) status = gpuir__bad(ix, err, 0, "lengths do not sum to the number of tokens");
  if (!status) status = gpuir__verify_all_starts(ix, err);
  if (!status) status = gpuir__verify_documents(ix, err);
#ifndef GPUIR_NO_COLUMNS
  if (!status) status = gpuir__verify_columns(ix, err);
#endif
  if (!status) status = gpuir__verify_terms(v);
  if (!status) status = gpuir__verify_blocks(v);
  if (!status) status = gpuir__verify_tree(v);
  if (!status) status = gpuir__verify_shard(ix, err);
  if (!status) status = gpuir__directory_end(&v->directory, ix, err);
  gpuir__free(&ix->a, v, sizeof *v);
  return status;
}

/* Verifies all segments, each by `verify`. */
static int gpuir__index_verify(const gpuir_index *ix, int (*verify)(const gpuir__segment *, gpuir_error *),
    gpuir_error *err) {
  size_t i;
  int status = ix ? GPUIR_OK : gpuir__refuse(err, "no index to verify given");
  for (i = 0; !status && i < ix->nleaves; i++) status = verify(ix->leaves[i].seg, err);
  return status;
}

GPUIR_API int gpuir_verify_directory(const gpuir_index *ix, gpuir_error *err) {
  return gpuir__index_verify(ix, gpuir__segment_verify_directory, err);
}

GPUIR__COLD GPUIR_API int gpuir_verify(const gpuir_index *ix, gpuir_error *err) {
  return gpuir__index_verify(ix, gpuir__segment_verify, err);
}
