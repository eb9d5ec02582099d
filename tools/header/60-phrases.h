
/* ========
 * [60-phrases]  phrases and prefixes
 *
 * A phrase has no list. Where every posting is wanted, one is made: the documents that hold all its terms are found by
 * [58-and], their positions compared, and what is left is a list like any other, with bounds, so that every evaluator
 * takes it. A prefix's list is made by adding up its terms'. Where all terms of a query are required, phrases are not
 * made into lists: gpuir__eval_phrases checks the positions of documents that hold all lists, and only of those that
 * may still enter the top-k.
 *
 * A document's score for a phrase is bounded by what any member of the phrase would contribute with the phrase's
 * weight, since the phrase is at most as frequent there as each of its terms; of these bounds the least is taken.
 *
 * Uses      [18-codecs], [23-codings], [24-postings], [25-positions], [27-bounds], [41-reader], [51-query],
 *           [53-topk], [54-lookup], [56-engine], [57-share], [58-and].
 * Start at  gpuir__terms_open, gpuir__eval_phrases, gpuir__phrase_frequencies.
 * Tests     tests/unit/60_phrases.c
 * ======*/

/* ---- lists that are made */

GPUIR__DECODES(gpuir__raw_decode) {
  (void)prev;
  memcpy(out, s->bytes + (size_t)block * GPUIR__BLOCK * 4, (size_t)gpuir__block_count(s->n, block) * 4);
}

static uint32_t gpuir__raw_get(const gpuir__stream *s, uint32_t i) { return gpuir__load32(s->bytes + (size_t)i * 4); }

/* The "codecs" of made lists: numbers as they are. No file has them. */
static const gpuir__codec gpuir__raw_docids = {"raw", 0, 1, 4, GPUIR__P_NONE, 0, 0, NULL, NULL, NULL, gpuir__raw_decode,
    gpuir__raw_get, NULL};
static const gpuir__codec gpuir__raw_freqs = {"raw", 0, 0, 4, GPUIR__P_NONE, 0, 0, NULL, NULL, NULL, gpuir__raw_decode,
    gpuir__raw_get, NULL};

/* A list in the making: docIDs ascend. */
typedef struct gpuir__made {
  gpuir__long *extent;
  uint32_t *docs, *freqs; /* [posting] frequencies less one */
  uint32_t *last; /* [block] */
  gpuir__pair *bounds; /* [block] GPUIR__BLOCK_PAIRS */
  uint32_t n;
} gpuir__made;

/* Makes room for a list of at most `most` postings for a term of the query. What is not used of it is not touched. */
static int gpuir__made_open(gpuir__engine *e, unsigned term, uint64_t most, gpuir__made *m) {
  const uint64_t blocks = most / GPUIR__BLOCK + 1, size = sizeof *m->extent + (2 * most + 2 * blocks) * 4;
  uint8_t *at;
  if (!e->made.lists) e->made.lists = (gpuir__buf *)gpuir__alloc_zero(&e->a, GPUIR_MAX_TERMS * sizeof *e->made.lists);
  at = e->made.lists && size < SIZE_MAX / 4 ? gpuir__buf_room(&e->a, &e->made.lists[term], (size_t)size) : NULL;
  if (!at) return gpuir__engine_fail(e, GPUIR_E_NOMEM, "out of memory");
  m->extent = (gpuir__long *)(void *)at;
  m->docs = (uint32_t *)(void *)(at + sizeof *m->extent);
  m->freqs = m->docs + most;
  m->last = m->freqs + most;
  m->bounds = (gpuir__pair *)(void *)(m->last + blocks);
  m->n = 0;
  return GPUIR_OK;
}

/* Takes the impacts of a list's postings, which bound them as those of a stored list do. 0, or why the search has to
 * stop. */
static int gpuir__made_bound(gpuir__engine *e, gpuir__made *m) {
  const uint32_t *lengths = e->leaf.seg->lengths;
  gpuir__front block, list;
  uint32_t i;
  gpuir__front_reset(&block);
  gpuir__front_reset(&list);
  for (i = 0; i < m->n; i++) {
    gpuir__front_add(&block, gpuir__code_up(gpuir__min32(m->freqs[i], GPUIR__CAP) + 1),
        gpuir__code_down(lengths[m->docs[i]]));
    if (i % GPUIR__BLOCK != GPUIR__BLOCK - 1 && i + 1 < m->n) continue;
    m->last[i / GPUIR__BLOCK] = m->docs[i];
    gpuir__front_take(&block, &list, m->bounds + (size_t)(i / GPUIR__BLOCK) * GPUIR__BLOCK_PAIRS, GPUIR__BLOCK_PAIRS);
    if (gpuir__engine_worked(e, 1)) return e->stopped;
  }
  gpuir__front_take(&list, NULL, m->extent->pairs, GPUIR__LIST_PAIRS);
  return GPUIR_OK;
}

/* Opens the made list, of one posting or more. */
static int gpuir__made_close(gpuir__engine *e, gpuir__made *m, gpuir__list *l) {
  const int status = gpuir__made_bound(e, m);
  memset(l, 0, sizeof *l);
  l->df = l->docs.n = l->freqs.n = m->n;
  l->nblocks = (m->n - 1) / GPUIR__BLOCK + 1;
  l->one_docid = m->docs[0];
  l->one_tf = gpuir__min32(m->freqs[0], UINT32_MAX - 1) + 1;
  l->last = l->docs.last = m->last;
  l->bounds = (const uint32_t *)(const void *)m->bounds;
  l->extent = m->extent;
  l->docs.codec = &gpuir__raw_docids;
  l->freqs.codec = &gpuir__raw_freqs;
  l->docs.bytes = (const uint8_t *)m->docs;
  l->freqs.bytes = (const uint8_t *)m->freqs;
  l->docs.len = l->freqs.len = (uint64_t)m->n * 4;
  l->docs.limit = (uint32_t)(e->leaf.seg->stat.documents - 1);
  l->freqs.limit = UINT32_MAX;
  l->docs.kernels = l->freqs.kernels = gpuir__codec_kernels_at(e->leaf.seg->simd);
  return status;
}

/* ---- prefixes: the frequencies of many lists are added up */

/* Documents that are added up at a time. Their sums are 4 bytes each, which caches hold. */
#ifndef GPUIR__UNION_SHIFT
#define GPUIR__UNION_SHIFT 20u
#endif
/* Each list is opened once in each window. Where lists are opened more often than this, windows grow, up to 8 bytes for
 * each posting: otherwise a prefix of a million rare terms would open each of them for every million documents. */
#ifndef GPUIR__UNION_OPENED
#define GPUIR__UNION_OPENED 262144u
#endif

/* The sums of a window of documents, and a bit for each that has one. Both are zeros between windows. */
typedef struct gpuir__union {
  uint32_t *sums;
  uint64_t *bits;
  uint32_t size, low; /* documents of a window; the current one's first */
  uint64_t postings; /* of all lists */
} gpuir__union;

/* Makes room for the windows of so many lists, which have so many postings together at most. */
static int gpuir__union_open(gpuir__engine *e, gpuir__union *u, uint64_t lists, uint64_t postings) {
  const uint64_t documents = e->leaf.seg->stat.documents;
  uint64_t most = (uint64_t)1 << GPUIR__UNION_SHIFT;
  gpuir__buf *buf = &e->made.sums;
  size_t need;
  if (lists * (documents / most + 1) > GPUIR__UNION_OPENED) most = gpuir__max64(most, 2 * postings);
  u->size = (uint32_t)((gpuir__min64(documents, most) + 63) & ~(uint64_t)63);
  u->postings = 0;
  need = (size_t)u->size * 4 + u->size / 8;
  if (buf->cap < need) {
    gpuir__buf_free(&e->a, buf);
    if (!gpuir__buf_room(&e->a, buf, need)) return gpuir__engine_fail(e, GPUIR_E_NOMEM, "out of memory");
    memset(buf->data, 0, buf->cap);
  }
  u->sums = (uint32_t *)(void *)buf->data;
  u->bits = (uint64_t *)(void *)(buf->data + (size_t)u->size * 4);
  return GPUIR_OK;
}

/* Adds a list's frequencies in the window. 0, or why the search has to stop. */
static int gpuir__union_add(gpuir__engine *e, gpuir__union *u, const gpuir__list *l) {
  uint32_t docs[GPUIR__BLOCK_ROOM], freqs[GPUIR__BLOCK_ROOM], block, i, n;
  for (block = gpuir__list_find_block(l, 0, u->low); block < l->nblocks; block++) {
    if (gpuir__engine_worked(e, 1)) return e->stopped;
    n = gpuir__list_docs(l, block, docs);
    gpuir__list_freqs(l, block, freqs);
    e->info.blocks_decoded++;
    for (i = 0; i < n; i++) {
      const uint32_t d = docs[i] - u->low;
      if (d >= u->size) continue;
      u->sums[d] = gpuir__min32(u->sums[d] + gpuir__min32(freqs[i], GPUIR__CAP - 1) + 1, GPUIR__CAP);
      u->bits[d >> 6] |= (uint64_t)1 << (d & 63);
    }
    if (n && docs[n - 1] >= u->low && docs[n - 1] - u->low >= u->size) break;
  }
  return GPUIR_OK;
}

/* Adds up the window that begins at document `low` of the lists [id, end), and of list `stem`, if there is one. */
static int gpuir__union_window(gpuir__engine *e, gpuir__union *u, const gpuir__query_term *t, uint32_t first,
    uint32_t end, uint32_t stem, uint32_t low) {
  const uint32_t last = end + (stem != GPUIR__NO_TERM);
  uint32_t i;
  int status = GPUIR_OK;
  u->low = low;
  for (i = first; i < last && !status; i++) {
    const uint32_t id = i < end ? i : stem;
    gpuir__list l;
    if (gpuir__engine_worked(e, 1)) return e->stopped;
    status = gpuir__list_open(e->leaf.seg, &e->a, id, &l);
    if (status)
      return gpuir__fail(&e->error, status, 0, "%s: cannot open a list of \"%.*s*\": %s", e->leaf.seg->path,
          t->len < 32 ? (int)t->len : 32, t->text, gpuir__list_why(e->leaf.seg, id, status));
    if (!low) {
      u->postings += l.df;
      e->info.blocks_total += l.nblocks;
    }
    status = gpuir__union_add(e, u, &l);
    gpuir__list_close(&e->a, &l);
  }
  return status;
}

/* Moves the window's documents to the list. */
static void gpuir__union_take(gpuir__union *u, gpuir__made *m) {
  uint32_t w;
  for (w = 0; w < u->size / 64; w++) {
    uint64_t left = u->bits[w];
    for (; left; left &= left - 1) {
      const uint32_t d = w * 64 + gpuir__ctz64(left);
      m->docs[m->n] = u->low + d;
      m->freqs[m->n++] = u->sums[d] - 1;
      u->sums[d] = 0;
    }
    u->bits[w] = 0;
  }
}

/* Makes the list of a prefix of which the engine's leaf has terms. */
static int gpuir__prefix_make(gpuir__engine *e, const gpuir_query *q, size_t leaf, unsigned term, gpuir__made *m) {
  const uint32_t id = gpuir__query_id(q, leaf, term), end = gpuir__query_end(q, leaf, term),
                 stem = gpuir__query_stem(q, leaf, term);
  const uint64_t documents = e->leaf.seg->stat.documents;
  uint64_t low;
  gpuir__union u;
  int status = gpuir__union_open(e, &u, end - id, q->terms[term].postings);
  for (low = 0; low < documents && !status; low += u.size) {
    status = gpuir__union_window(e, &u, &q->terms[term], id, end, stem, (uint32_t)low);
    if (!status && !low) status = gpuir__made_open(e, term, gpuir__min64(u.postings, documents), m);
    if (!status) gpuir__union_take(&u, m);
  }
  if (status) gpuir__buf_free(&e->a, &e->made.sums); /* it is not zeros any more */
  return status;
}

/* ---- phrases: the positions of one document */

/* Chunks of a block that is indexed, at most: on the average 64 positions a posting. */
#ifndef GPUIR__QUICK_CHUNKS
#define GPUIR__QUICK_CHUNKS 256u
#endif
/* The gaps of an indexed block add up to less than this, so that the sum of two such numbers fits 32 bits. */
#define GPUIR__QUICK_SUM ((1u << 31) - 2 * GPUIR_MAX_TERMS)

/* The block of a list in which postings' positions are looked for. Most blocks are small, and indexed when they are
 * opened; others are walked from front to back. Chunks [from, to) of an indexed block are summed up. */
typedef struct gpuir__place {
  uint32_t freqs[GPUIR__BLOCK_ROOM]; /* less one */
  uint32_t lasts[GPUIR__BLOCK_ROOM]; /* [posting] number of its last gap */
  uint32_t starts[GPUIR__QUICK_CHUNKS]; /* [chunk] bytes before it */
  const uint8_t *bytes; /* of the first chunk */
  int indexed;
  uint32_t from, to;
  gpuir__positions positions;
  uint64_t gap; /* number of the first gap of: */
  uint32_t posting; /* index in the block */
  uint32_t block; /* GPUIR__NO_TERM: none */
  uint32_t sums[GPUIR__QUICK_CHUNKS * GPUIR__CHUNK + 8]; /* [gap] above GPUIR_MAX_TERMS - 1 */
} gpuir__place;

/* One token of a phrase on its way through a document. */
typedef struct gpuir__token_walk {
  gpuir__occurrences o;
  uint32_t position; /* the current one; GPUIR_END behind the last */
  uint32_t offset; /* of the token in the phrase */
  uint32_t freq; /* less one */
} gpuir__token_walk;

/* Counts a chunk of gaps, or as many widths, and looks after some whether the search has to stop. */
static inline int gpuir__engine_chunk(gpuir__engine *e) {
  if (GPUIR__LIKELY(++e->made.chunks < GPUIR__SKIP_CHUNKS / GPUIR__CHUNK)) return GPUIR_OK;
  e->made.chunks = 0;
  return gpuir__engine_look(e);
}

/* Indexes a block of n postings, whose frequencies are added up, if its positions are small and their bytes are
 * there. */
static int gpuir__place_index(gpuir__place *p, uint32_t n) {
  const uint32_t chunks = (uint32_t)gpuir__min64(p->positions.chunks, GPUIR__QUICK_CHUNKS + 1);
  uint32_t at = 0, widest = 0, rest, i;
  if (!chunks || chunks > GPUIR__QUICK_CHUNKS) return 0;
  for (i = 0; i < chunks; i++) {
    const uint32_t width = p->positions.widths[i];
    p->starts[i] = at;
    at += width * GPUIR__CHUNK_UNIT;
    widest = gpuir__max32(widest, width);
  }
  rest = (p->lasts[n - 1] + 1) % GPUIR__CHUNK;
  if (rest) at = p->starts[chunks - 1] + (uint32_t)gpuir__packed_size(rest, p->positions.widths[chunks - 1]);
  p->bytes = p->positions.bytes;
  p->from = p->to = 0;
  return widest < 32 && (uint64_t)chunks * GPUIR__CHUNK << widest < GPUIR__QUICK_SUM &&
      at <= (size_t)(p->positions.end - p->bytes);
}

/* Goes to another block of a list. 0, or why the search has to stop. */
GPUIR__NOINLINE int gpuir__place_open(gpuir__engine *e, gpuir__place *p, const gpuir__list *l, uint32_t block) {
  const uint32_t n = gpuir__list_block_len(l, block);
  uint32_t all = 0, i;
  gpuir__list_freqs(l, block, p->freqs);
  p->block = block;
  p->posting = 0;
  p->gap = 0;
  for (i = 0; i < n; i++) all |= p->lasts[i] = p->freqs[i];
  if (GPUIR__LIKELY(all < GPUIR__QUICK_SUM / GPUIR__BLOCK)) {
    gpuir__codec_kernels_at(e->leaf.seg->simd)->sum_gaps(p->lasts, n, UINT32_MAX, UINT32_MAX);
    gpuir__positions_begin(&p->positions, l, block, (uint64_t)p->lasts[n - 1] + 1);
    p->indexed = gpuir__place_index(p, n);
  } else {
    gpuir__positions_open(&p->positions, l, block, p->freqs, n);
    p->indexed = 0;
  }
  return gpuir__engine_worked(e, 1) ? e->stopped : GPUIR_OK;
}

/* Goes to the block of posting number `at` of a list. 0, or why the search has to stop. */
static inline int gpuir__place_load(gpuir__engine *e, gpuir__place *p, const gpuir__list *l, uint32_t at) {
  return p->block == at / GPUIR__BLOCK ? GPUIR_OK : gpuir__place_open(e, p, l, at / GPUIR__BLOCK);
}

/* Begins to walk the positions of posting number `at` of a list, in a document of `length` tokens. 0, or why the search
 * has to stop. */
static int gpuir__place_find(gpuir__engine *e, gpuir__place *p, const gpuir__list *l, uint32_t at, uint32_t length,
    gpuir__token_walk *t) {
  const uint32_t posting = at % GPUIR__BLOCK;
  if (p->block == at / GPUIR__BLOCK && p->posting > posting) p->block = GPUIR__NO_TERM;
  if (gpuir__place_load(e, p, l, at)) return e->stopped;
  for (; p->posting < posting; p->posting++) p->gap += (uint64_t)p->freqs[p->posting] + 1;
  while (GPUIR__UNLIKELY(!gpuir__positions_seek(&p->positions, p->gap)))
    if (gpuir__engine_look(e)) return e->stopped;
  gpuir__occurrences_open(&t->o, &p->positions, p->gap, p->freqs[posting], length);
  t->freq = p->freqs[posting];
  t->position = gpuir__occurrences_next(&t->o);
  return GPUIR_OK;
}

/* Moves a token to its first position >= `to`; returns it. Stops at GPUIR_END when the search has to. */
static inline uint32_t gpuir__token_seek(gpuir__engine *e, gpuir__token_walk *t, uint64_t to) {
  while (t->position < to && t->position != GPUIR_END) {
    if (GPUIR__UNLIKELY(!t->o.here) && gpuir__engine_chunk(e)) return t->position = GPUIR_END;
    t->position = gpuir__occurrences_next(&t->o);
  }
  return t->position;
}

/* Counts where the n >= 2 tokens stand one behind the other. The first of them leads: the others follow to where its
 * position would want them. */
static uint32_t gpuir__tokens_meet(gpuir__engine *e, gpuir__token_walk *t, unsigned n) {
  uint32_t met = 0;
  unsigned j = 0;
  uint64_t begin = 0; /* the least place of the phrase that may be one */
  for (;;) {
    const uint32_t first = gpuir__token_seek(e, &t[0], begin + t[0].offset);
    if (first == GPUIR_END) return met;
    begin = first - t[0].offset;
    for (j = 1; j < n; j++) {
      const uint32_t at = gpuir__token_seek(e, &t[j], begin + t[j].offset);
      if (at == GPUIR_END) return met;
      if (at == begin + t[j].offset) continue;
      begin = at - t[j].offset;
      break;
    }
    if (j < n) continue;
    met++;
    begin++;
  }
}

/* A term of a query all of whose terms are required: a phrase, or a list of its own. */
typedef struct gpuir__clause {
  const gpuir__query_term *term;
  gpuir__scorer scorer;
  uint32_t bound; /* the most it can contribute */
  unsigned n; /* tokens of a phrase; 1: a list */
  uint8_t list[GPUIR_MAX_TERMS]; /* [token] number of its list */
  uint8_t order[GPUIR_MAX_TERMS]; /* of a phrase, its tokens, those of the shortest list first */
} gpuir__clause;

/* All lists must hold a document, and each phrase must stand in it. Lists have the numbers of their cursors. */
typedef struct gpuir__phrases {
  gpuir__engine *e;
  gpuir__and and_;
  unsigned nlists, nclauses, nphrases; /* phrases are the last clauses */
  gpuir__place *places; /* [list] */
  uint32_t *met; /* as many as a block's gaps, and 8: see gpuir__phrase_quick */
  unsigned rank[GPUIR_MAX_TERMS]; /* [list] its number from short to long: see gpuir__and */
  float whole[GPUIR_MAX_TERMS]; /* [list] the saturation that bounds it */
  float here[GPUIR_MAX_TERMS]; /* [list] the same within the documents of the driver block */
  const uint32_t *chosen; /* [candidate] index in the driver block: all[], or some[] if they are not all of it */
  uint32_t all[GPUIR__BLOCK_ROOM], some[GPUIR__BLOCK_ROOM];
  int wanted; /* a match that waits may enter the top-k */
  uint32_t n; /* matches that wait: */
  uint32_t docs[GPUIR__BLOCK_ROOM], freqs[GPUIR__BLOCK_ROOM]; /* freqs: in the driver, less one */
  uint32_t *at[GPUIR_MAX_TERMS]; /* [list][match] index in the list */
  gpuir__clause clauses[GPUIR_MAX_TERMS];
} gpuir__phrases;

/* Matches wait until there are so many, of several driver blocks: then what is looked at of them is on its way into the
 * cache while they are found. Measured. */
#ifndef GPUIR__WAITING
#define GPUIR__WAITING 64u
#endif

/* Lets n matches of the driver block wait, for which there must be room. freqs: the driver's frequencies are wanted. */
static void gpuir__phrases_wait(gpuir__phrases *p, uint32_t n, int freqs) {
  const gpuir__and *x = &p->and_;
  gpuir__cursor *driver = &p->e->cursors[x->order[0]];
  uint32_t *at = p->at[x->order[0]] + p->n, j;
  unsigned i;
  for (j = 0; j < n; j++) at[j] = p->chosen[x->where[0][j]];
  if (freqs) gpuir__cursor_freqs(driver);
  for (j = 0; freqs && j < n; j++) p->freqs[p->n + j] = driver->values[at[j]];
  for (j = 0; j < n; j++) at[j] += x->block * GPUIR__BLOCK;
  for (i = 1; i < p->nlists; i++) memcpy(p->at[x->order[i]] + p->n, x->where[i], n * sizeof *at);
  memcpy(p->docs + p->n, x->docs, n * sizeof *at);
  if (freqs) gpuir__prefetch_lengths(p->e->leaf.seg->lengths, x->docs, n);
  p->n += n;
}

/* ---- phrases: the positions of matches */

/* Sums up the chunks of an indexed block that hold gaps [gap, end). */
static inline void gpuir__place_sum(gpuir__place *p, uint32_t gap, uint32_t end, gpuir__chunk_sums sum) {
  const uint32_t first = gap / GPUIR__CHUNK, last = (end - 1) / GPUIR__CHUNK;
  if (GPUIR__LIKELY(first >= p->from && last < p->to)) return;
  if (first < p->from || first > p->to) p->from = p->to = first;
  for (; p->to <= last; p->to++) {
    const uint32_t prev = p->to > p->from ? p->sums[p->to * GPUIR__CHUNK - 1] : GPUIR_MAX_TERMS - 1;
    sum(p->bytes + p->starts[p->to], p->positions.widths[p->to], prev, p->sums + p->to * GPUIR__CHUNK);
  }
}

/* Writes to both[] those of a[0..n) that, with `shift` added, are among b[0..m); both ascend, n and m > 0. Returns how
 * many. Reads up to 7 numbers behind them and writes as many behind both[], which may be a; NULL: nothing is written.
 */
typedef uint32_t (
    *gpuir__meet)(const uint32_t *a, uint32_t n, uint32_t shift, const uint32_t *b, uint32_t m, uint32_t *both);

GPUIR__INLINE uint32_t gpuir__meet_scalar(const uint32_t *a, uint32_t n, uint32_t shift, const uint32_t *b, uint32_t m,
    uint32_t *both) {
  uint32_t i = 0, j = 0, met = 0;
  while (i < n && j < m) {
    const uint32_t x = a[i] + shift, y = b[j];
    if (both) both[met] = a[i];
    met += x == y;
    i += x <= y;
    j += y <= x;
  }
  return met;
}

#if GPUIR__X86
GPUIR__AVX2 GPUIR__INLINE uint32_t gpuir__meet_avx2(const uint32_t *a, uint32_t n, uint32_t shift, const uint32_t *b,
    uint32_t m, uint32_t *both) {
  const __m256i add = _mm256_set1_epi32((int)shift), iota = gpuir__avx2_iota();
  uint32_t i = 0, j = 0, met = 0, hits = 0;
  for (;;) {
    const uint32_t a_end = gpuir__min32(i + 8, n), b_end = gpuir__min32(j + 8, m);
    const uint32_t a_last = a[a_end - 1] + shift, b_last = b[b_end - 1];
    const __m256i x = gpuir__avx2_load(a + i);
    const __m256i behind = _mm256_cmpgt_epi32(iota, _mm256_set1_epi32((int)(b_end - j) - 1));
    hits |= gpuir__among_8(_mm256_add_epi32(x, add), _mm256_or_si256(gpuir__avx2_load(b + j), behind));
    if (a_last > b_last && b_end < m) {
      j += 8;
      continue;
    }
    hits &= gpuir__low_bits(a_end - i);
    if (both) gpuir__compress_avx2(both + met, hits, x);
    met += (uint32_t)__builtin_popcount(hits);
    hits = 0;
    i += 8;
    if (i >= n || a_last > b_last) return met;
  }
}
#endif

/* A token of a phrase, as it is looked for in matches. */
typedef struct gpuir__sought_token {
  gpuir__place *place;
  const gpuir__list *list;
  const uint32_t *at; /* [match] index in the list */
  uint32_t offset; /* in the phrase */
} gpuir__sought_token;

/* Returns how often a phrase of n tokens stands in a match, their blocks being indexed; UINT32_MAX if one is not, or
 * the search has to stop. Rare tokens come first: where they do not meet, the others are not looked at. A token's sums
 * are its positions in the document but for a constant, which depends on the gap at which its sums begin and on its
 * place in the phrase: `here`. So two tokens meet where their sums differ by the difference of these. */
GPUIR__INLINE uint32_t gpuir__phrase_quick(gpuir__phrases *p, const gpuir__sought_token *tokens, unsigned n,
    uint32_t match, gpuir__chunk_sums sum, gpuir__meet meet) {
  const uint32_t *left = NULL;
  uint32_t met = 0, first = 0;
  unsigned t;
  for (t = 0; t < n; t++) {
    const gpuir__sought_token *k = &tokens[t];
    const uint32_t at = k->at[match];
    const uint32_t posting = at % GPUIR__BLOCK;
    gpuir__place *place = k->place;
    uint32_t gap, end, here;
    if (gpuir__place_load(p->e, place, k->list, at) || !place->indexed) return UINT32_MAX;
    gap = posting ? place->lasts[posting - 1] + 1 : 0;
    end = place->lasts[posting] + 1;
    gpuir__place_sum(place, gap, end, sum);
    here = k->offset + (gap == place->from * GPUIR__CHUNK ? GPUIR_MAX_TERMS - 1 : place->sums[gap - 1]);
    if (t) {
      met = meet(left, met, here - first, place->sums + gap, end - gap, t + 1 < n ? p->met : NULL);
      if (!met) return 0;
      left = p->met;
    } else {
      left = place->sums + gap;
      met = end - gap;
      first = here;
    }
  }
  return met;
}

static uint32_t gpuir__phrase_quick_scalar(gpuir__phrases *p, const gpuir__sought_token *tokens, unsigned n,
    uint32_t match) {
  return gpuir__phrase_quick(p, tokens, n, match, gpuir__chunk_sums_scalar, gpuir__meet_scalar);
}

#if GPUIR__X86
GPUIR__AVX2 static uint32_t gpuir__phrase_quick_avx2(gpuir__phrases *p, const gpuir__sought_token *tokens, unsigned n,
    uint32_t match) {
  return gpuir__phrase_quick(p, tokens, n, match, gpuir__chunk_sums_avx2, gpuir__meet_avx2);
}
#endif

typedef uint32_t (
    *gpuir__phrase_kernel)(gpuir__phrases *p, const gpuir__sought_token *tokens, unsigned n, uint32_t match);

/* By SIMD level less GPUIR_SIMD_SCALAR. */
static const gpuir__phrase_kernel gpuir__phrase_of_level[] = {
    gpuir__phrase_quick_scalar,
#if GPUIR__X86
    gpuir__phrase_quick_avx2,
    gpuir__phrase_quick_avx2,
#endif
};

/* Prefetches the frequencies and positions of the blocks that n matches lie in: most are not in the cache. It must be
 * inlined, since gcc takes a call of a function that only prefetches for one without effect. */
GPUIR__INLINE void gpuir__phrases_prefetch(const gpuir__phrases *p, const gpuir__clause *c, const uint32_t *index,
    uint32_t n) {
  unsigned t;
  for (t = 0; t < c->n; t++) {
    const gpuir__list *l = &p->e->cursors[c->list[t]].list;
    uint32_t before = GPUIR__NO_TERM, j;
    if (!l->positions_off) continue;
    for (j = 0; j < n; j++) {
      const uint32_t block = p->at[c->list[t]][index[j]] / GPUIR__BLOCK;
      const uint8_t *at = l->positions + (size_t)l->positions_off[block] * GPUIR__CHUNK_UNIT;
      if (block == before) continue;
      before = block;
      gpuir__list_prefetch_freqs(l, block);
      __builtin_prefetch(at);
      __builtin_prefetch(at + 64);
      __builtin_prefetch(at + 128);
      __builtin_prefetch(at + 192);
    }
  }
}

/* Returns how often a phrase stands in a match, whatever its blocks are like. Rare tokens come first. 0 also when the
 * search has to stop. */
static uint32_t gpuir__phrase_walk(gpuir__phrases *p, const gpuir__clause *c, uint32_t match, uint32_t length) {
  gpuir__token_walk tokens[GPUIR_MAX_TERMS], t;
  unsigned i, j;
  for (i = 0; i < c->n; i++) {
    const unsigned list = c->list[i];
    if (gpuir__place_find(p->e, &p->places[list], &p->e->cursors[list].list, p->at[list][match], length, &t)) return 0;
    t.offset = i;
    for (j = i; j && tokens[j - 1].freq > t.freq; j--) tokens[j] = tokens[j - 1];
    tokens[j] = t;
  }
  i = gpuir__tokens_meet(p->e, tokens, c->n);
  return p->e->stopped ? 0 : i;
}

/* Fills tfs[] with how often a phrase stands in each of n matches, whose blocks should have been prefetched. */
static void gpuir__phrase_frequencies(gpuir__phrases *p, const gpuir__clause *c, const uint32_t *index,
    const uint32_t *docs, uint32_t n, uint32_t *tfs) {
  const gpuir__phrase_kernel quick = gpuir__phrase_of_level[p->e->leaf.seg->simd - GPUIR_SIMD_SCALAR];
  gpuir__sought_token tokens[GPUIR_MAX_TERMS];
  uint32_t j;
  unsigned t;
  for (t = 0; t < c->n; t++) {
    const unsigned list = c->list[c->order[t]];
    tokens[t].place = &p->places[list];
    tokens[t].list = &p->e->cursors[list].list;
    tokens[t].at = p->at[list];
    tokens[t].offset = c->order[t];
  }
  for (j = 0; j < n; j++) {
    tfs[j] = quick(p, tokens, c->n, index[j]);
    if (GPUIR__LIKELY(tfs[j] != UINT32_MAX)) continue;
    if (p->e->stopped) break;
    tfs[j] = gpuir__phrase_walk(p, c, index[j], p->e->leaf.seg->lengths[docs[j]]);
  }
  if (p->e->stopped) memset(tfs, 0, n * sizeof *tfs);
}

/* Bounds what a clause adds by the saturations of lists. */
static uint32_t gpuir__clause_bound(const gpuir__clause *c, const float *saturation) {
  float least = saturation[c->list[0]];
  unsigned i;
  for (i = 1; i < c->n; i++)
    if (saturation[c->list[i]] < least) least = saturation[c->list[i]];
  return gpuir__bound(c->scorer.weight, least, c->scorer.q);
}

/* Bounds the saturations of a list in any document from lo to hi, by its blocks there, which are sought from *at on. */
static float gpuir__range_saturation(const gpuir__phrases *p, unsigned list, uint32_t lo, uint32_t hi, uint32_t *at) {
  const gpuir__list *l = &p->e->cursors[list].list;
  uint32_t block;
  float most = 0;
  *at = gpuir__list_find_block(l, *at, lo);
  for (block = *at; block < l->nblocks; block++) {
    const float s = gpuir__block_saturation(p->e->saturation, l->bounds[block]);
    if (block - *at == GPUIR__OVERLAP) return p->whole[list];
    if (s > most) most = s;
    if (l->last[block] >= hi) break;
  }
  return most;
}

/* Bounds the saturations of all lists in the driver block's documents. */
static void gpuir__phrases_look(gpuir__phrases *p, uint32_t block) {
  gpuir__and *x = &p->and_;
  const gpuir__list *driver = &p->e->cursors[x->order[0]].list;
  const uint32_t lo = block ? driver->last[block - 1] + 1 : 0, hi = driver->last[block];
  unsigned i;
  p->here[x->order[0]] = gpuir__block_saturation(p->e->saturation, driver->bounds[block]);
  for (i = 1; i < p->nlists; i++) {
    const unsigned list = x->order[i];
    const gpuir__list *l = &p->e->cursors[list].list;
    p->here[list] = l->bounds && l->nblocks / GPUIR__OVERLAP <= driver->nblocks
        ? gpuir__range_saturation(p, list, lo, hi, &x->overlap[i])
        : p->whole[list];
  }
}

/* Returns 0 if no document of a driver block can enter the top-k, otherwise 1. *least: the frequency, less one, that
 * the driver's posting must have. */
static int gpuir__phrases_is_wanted(gpuir__phrases *p, uint32_t block, uint32_t *least) {
  const unsigned driver = p->and_.order[0];
  const gpuir__list *l = &p->e->cursors[driver].list;
  const uint32_t threshold = gpuir__topk_threshold(&p->e->top);
  uint32_t sum = 0, bound;
  unsigned i, j;
  *least = 0;
  if (!l->bounds || threshold <= 1) return 1;
  gpuir__phrases_look(p, block);
  for (i = 0; i < p->nclauses; i++) sum += gpuir__clause_bound(&p->clauses[i], p->here);
  if (sum < threshold) return 0;
  for (i = 0; i < p->nclauses; i++) {
    const gpuir__clause *c = &p->clauses[i];
    for (j = 0; j < c->n && c->list[j] != driver; j++) {}
    if (j == c->n) continue;
    bound = sum - gpuir__clause_bound(c, p->here); /* what all others add */
    if (threshold > bound)
      *least = gpuir__max32(*least, gpuir__least_frequency(&c->scorer, l->bounds[block], threshold - bound));
  }
  return 1;
}

/* Takes the documents of a driver block whose frequency reaches `least` as candidates; returns their number. */
static uint32_t gpuir__phrases_candidates(gpuir__phrases *p, uint32_t block, uint32_t least) {
  gpuir__and *x = &p->and_;
  gpuir__cursor *driver = &p->e->cursors[x->order[0]];
  uint32_t n;
  gpuir__list_prefetch_docs(&driver->list, block);
  gpuir__cursor_load(driver, block);
  x->block = block;
  x->docs = driver->docs;
  p->chosen = p->all;
  if (!least) return driver->n;
  gpuir__cursor_freqs(driver);
  (void)p->e->kernels->keep(p->all, driver->values, driver->n, least, p->some, x->chosen_freqs);
  n = p->e->kernels->keep(driver->docs, driver->values, driver->n, least, x->chosen, x->chosen_freqs);
  gpuir__pad(x->chosen + n);
  x->docs = x->chosen;
  p->chosen = p->some;
  return n;
}

/* Fetches the frequencies, less one, of n matches in a list. */
static void gpuir__phrases_freqs(const gpuir__phrases *p, unsigned list, const uint32_t *matches, uint32_t n,
    uint32_t *freqs) {
  uint32_t at[GPUIR__BLOCK_ROOM], j;
  for (j = 0; j < n; j++) at[j] = p->rank[list] ? p->at[list][matches[j]] : p->freqs[matches[j]];
  if (p->rank[list]) gpuir__list_freqs_at(&p->e->cursors[list].list, at, n, freqs);
  else memcpy(freqs, at, n * sizeof *at);
}

/* Matches while they are scored. */
typedef struct gpuir__matches {
  uint32_t n;
  uint32_t docs[GPUIR__BLOCK_ROOM], index[GPUIR__BLOCK_ROOM]; /* index: among those that wait */
  uint32_t sums[GPUIR__BLOCK_ROOM], freqs[GPUIR__BLOCK_ROOM], values[GPUIR__BLOCK_ROOM];
} gpuir__matches;

/* Keeps match j as number `to`. */
static inline void gpuir__matches_keep(gpuir__matches *m, uint32_t to, uint32_t j) {
  m->docs[to] = m->docs[j];
  m->index[to] = m->index[j];
  m->sums[to] = m->sums[j];
  m->freqs[to] = m->freqs[j];
}

/* Drops the matches that could not enter with freqs[], which bound a phrase's frequencies, given what the other clauses
 * can add. */
static void gpuir__matches_bound(const gpuir__clause *c, gpuir__matches *m, uint32_t others, uint32_t threshold) {
  uint32_t j, kept = 0;
  c->scorer.score(&c->scorer, m->docs, m->freqs, m->n, m->values);
  for (j = 0; j < m->n; j++) {
    const uint32_t bound = m->values[j] + (m->values[j] >> 21) + 2 * c->scorer.q;
    gpuir__matches_keep(m, kept, j);
    kept += m->sums[j] + bound + others >= threshold;
  }
  m->n = kept;
}

/* Lessens the frequencies of matches, which are those of a phrase's rarest term, to the least of all its terms'.
 * Returns 1 if any is less then. Matches in which a term stands once need no look at the others. */
static int gpuir__matches_lessen(const gpuir__phrases *p, const gpuir__clause *c, gpuir__matches *m) {
  uint32_t which[GPUIR__BLOCK_ROOM], index[GPUIR__BLOCK_ROOM], freqs[GPUIR__BLOCK_ROOM], n = 0, j, kept;
  int less = 0;
  unsigned i;
  for (j = 0; j < m->n; j++) {
    which[n] = j;
    index[n] = m->index[j];
    n += m->freqs[j] > 0;
  }
  for (i = 1; i < c->n && n; i++) {
    const unsigned list = c->list[c->order[i]];
    if (list == c->list[c->order[i - 1]]) continue; /* the term stands in the phrase more than once */
    gpuir__phrases_freqs(p, list, index, n, freqs);
    for (j = kept = 0; j < n; j++) {
      uint32_t *least = &m->freqs[which[j]];
      less |= freqs[j] < *least;
      *least = gpuir__min32(*least, freqs[j]);
      which[kept] = which[j];
      index[kept] = index[j];
      kept += *least > 0;
    }
    n = kept;
  }
  return less;
}

/* Drops the matches in which a phrase does not stand, and those that could not enter with the frequencies of its terms,
 * and puts the phrase's frequencies, less one, in place of those of its rarest term, which freqs[] has. */
static void gpuir__matches_check(gpuir__phrases *p, const gpuir__clause *c, gpuir__matches *m, uint32_t others,
    uint32_t threshold) {
  uint32_t tfs[GPUIR__BLOCK_ROOM], j, kept = 0;
  gpuir__matches_bound(c, m, others, threshold);
  gpuir__phrases_prefetch(p, c, m->index, m->n);
  if (gpuir__matches_lessen(p, c, m)) gpuir__matches_bound(c, m, others, threshold);
  gpuir__phrase_frequencies(p, c, m->index, m->docs, m->n, tfs);
  for (j = 0; j < m->n; j++) {
    gpuir__matches_keep(m, kept, j);
    m->freqs[kept] = tfs[j] - 1;
    kept += tfs[j] > 0;
  }
  m->n = p->e->stopped ? 0 : kept;
}

/* Begins with all matches that wait. */
static void gpuir__matches_begin(const gpuir__phrases *p, gpuir__matches *m) {
  for (m->n = 0; m->n < p->n; m->n++) {
    m->index[m->n] = m->n;
    m->docs[m->n] = p->docs[m->n];
    m->sums[m->n] = 0;
  }
}

/* Adds what a clause contributes with freqs[], and drops the matches that could not enter, given what the other clauses
 * can add. */
static void gpuir__matches_add(gpuir__engine *e, const gpuir__clause *c, gpuir__matches *m, uint32_t others,
    uint32_t threshold) {
  uint32_t j, kept;
  c->scorer.score(&c->scorer, m->docs, m->freqs, m->n, m->values);
  e->info.postings_scored += m->n;
  for (j = kept = 0; j < m->n; j++) {
    if (m->sums[j] + m->values[j] + others < threshold) continue;
    m->sums[j] += m->values[j];
    gpuir__matches_keep(m, kept++, j);
  }
  m->n = kept;
}

/* Scores matches by the clauses [from, end), one by one, and offers them to the top-k. */
static void gpuir__matches_score(gpuir__phrases *p, unsigned from, unsigned end, gpuir__matches *m) {
  gpuir__engine *e = p->e;
  const uint32_t threshold = gpuir__topk_threshold(&e->top);
  uint32_t others = 0, j;
  unsigned i;
  for (i = from; i < end; i++) others += p->clauses[i].bound;
  for (i = from; i < end && m->n; i++) {
    const gpuir__clause *c = &p->clauses[i];
    others -= c->bound;
    gpuir__phrases_freqs(p, c->list[c->order[0]], m->index, m->n, m->freqs);
    if (c->n > 1) gpuir__matches_check(p, c, m, others, threshold);
    gpuir__matches_add(e, c, m, others, threshold);
  }
  for (j = 0; j < m->n; j++) gpuir__topk_push(&e->top, gpuir__key(m->sums[j], m->docs[j] + e->leaf.base));
}

/* Scores the matches that wait. */
static void gpuir__phrases_score(gpuir__phrases *p) {
  gpuir__matches m;
  gpuir__matches_begin(p, &m);
  gpuir__matches_score(p, 0, p->nclauses, &m);
}

#ifndef GPUIR_NO_RANK
/* Scores the matches that wait, and returns in how many of them each phrase stands. Which ones do has to be known of
 * all, so that phrases come first, and no bound spares a look at positions. */
static uint64_t gpuir__phrases_score_all(gpuir__phrases *p) {
  const unsigned lists = p->nclauses - p->nphrases;
  uint32_t tfs[GPUIR__BLOCK_ROOM], j, kept, n;
  gpuir__matches m;
  unsigned i;
  gpuir__matches_begin(p, &m);
  for (i = lists; i < p->nclauses && m.n; i++) {
    gpuir__phrases_prefetch(p, &p->clauses[i], m.index, m.n);
    gpuir__phrase_frequencies(p, &p->clauses[i], m.index, m.docs, m.n, tfs);
    for (j = kept = 0; j < m.n; j++) {
      gpuir__matches_keep(&m, kept, j);
      m.freqs[kept] = tfs[j] - 1;
      kept += tfs[j] > 0;
    }
    m.n = kept;
    gpuir__matches_add(p->e, &p->clauses[i], &m, 0, 0);
  }
  if (p->e->stopped) return 0;
  n = m.n;
  gpuir__matches_score(p, 0, lists, &m);
  return n;
}
#endif

/* Counts those of the matches that wait in which each phrase stands. */
static uint64_t gpuir__phrases_count(gpuir__phrases *p) {
  uint32_t index[GPUIR__BLOCK_ROOM], docs[GPUIR__BLOCK_ROOM], tfs[GPUIR__BLOCK_ROOM], n = p->n, j, kept;
  unsigned i;
  for (j = 0; j < n; j++) {
    index[j] = j;
    docs[j] = p->docs[j];
  }
  for (i = p->nclauses - p->nphrases; i < p->nclauses && n; i++) {
    gpuir__phrases_prefetch(p, &p->clauses[i], index, n);
    gpuir__phrase_frequencies(p, &p->clauses[i], index, docs, n, tfs);
    for (j = kept = 0; j < n; j++) {
      index[kept] = index[j];
      docs[kept] = docs[j];
      kept += tfs[j] > 0;
    }
    n = kept;
  }
  gpuir__engine_mark(p->e, docs, n);
  return p->e->stopped ? 0 : n;
}

/* ---- phrases: evaluation */

/* Sorts the tokens of a clause by their lists' lengths. */
static void gpuir__clause_order(const gpuir__phrases *p, gpuir__clause *c) {
  unsigned i, j;
  for (i = 0; i < c->n; i++) {
    for (j = i; j && p->rank[c->list[c->order[j - 1]]] > p->rank[c->list[i]]; j--) c->order[j] = c->order[j - 1];
    c->order[j] = (uint8_t)i;
  }
}

/* Prepares lists and places; the clauses are there, and their lists' cursors are the first. */
static int gpuir__phrases_prepare(gpuir__phrases *p) {
  gpuir__engine *e = p->e;
  gpuir__and_step step;
  unsigned i;
  int status;
  gpuir__and_begin(e, &step, p->nlists, 0);
  status = gpuir__and_prepare(e, &p->and_, &step, GPUIR__AND_PLACES);
  if (status) return status;
  e->made.places.len = 0;
  p->places = (gpuir__place *)(void *)gpuir__buf_room(&e->a, &e->made.places,
      p->nlists * (sizeof *p->places + GPUIR__BLOCK_ROOM * 4) + (GPUIR__QUICK_CHUNKS * GPUIR__CHUNK + 8) * 4);
  if (!p->places) return gpuir__engine_fail(e, GPUIR_E_NOMEM, "out of memory");
  p->met = (uint32_t *)(void *)(p->places + p->nlists);
  p->n = 0;
  p->wanted = 0;
  for (i = 0; i < GPUIR__BLOCK_ROOM; i++) p->all[i] = i;
  for (i = 0; i < p->nlists; i++) {
    p->at[i] = p->met + GPUIR__QUICK_CHUNKS * GPUIR__CHUNK + 8 + (size_t)i * GPUIR__BLOCK_ROOM;
    p->places[i].block = GPUIR__NO_TERM;
    p->rank[p->and_.order[i]] = i;
    p->whole[i] = gpuir__list_saturation(e->saturation, &e->cursors[i].list);
  }
  for (i = 0; i < p->nclauses; i++) {
    p->clauses[i].bound = gpuir__clause_bound(&p->clauses[i], p->whole);
    gpuir__clause_order(p, &p->clauses[i]);
  }
  return GPUIR_OK;
}

/* Makes a clause of a term whose list, or a phrase of which a token's list, has number `list`. */
static void gpuir__clause_make(gpuir__phrases *p, const gpuir_query *q, const gpuir__query_term *t, unsigned list) {
  gpuir__clause *c = &p->clauses[p->nclauses++];
  c->term = t;
  c->n = 1;
  c->list[0] = (uint8_t)list;
  c->scorer.lengths = p->e->leaf.seg->lengths;
  c->scorer.norm = q->norm;
  c->scorer.weight = t->weight;
  c->scorer.q = t->q;
  c->scorer.score = p->e->score;
}

/* Makes a clause of a phrase, and opens the lists of those of its terms that member_list[] does not have yet. *missing
 * becomes 1 if the leaf lacks one. */
static int gpuir__clause_phrase(gpuir__phrases *p, const gpuir_query *q, size_t leaf, const gpuir__query_term *t,
    uint8_t *member_list, int *missing) {
  gpuir__engine *e = p->e;
  unsigned i;
  gpuir__clause_make(p, q, t, 0);
  p->nphrases++;
  for (i = 0; i < t->tokens; i++) {
    const unsigned member = q->phrases->tokens[t->first + i];
    const uint32_t id = gpuir__query_member_id(q, leaf, member);
    int status;
    if (id == GPUIR__NO_TERM) {
      *missing = 1;
      return GPUIR_OK;
    }
    if (member_list[member] == UINT8_MAX) {
      status = gpuir__engine_open_list(e, q, leaf, GPUIR__ID_MEMBERS + member, &q->phrases->members[member]);
      if (status) return status;
      member_list[member] = (uint8_t)e->ncursors;
      gpuir__engine_add(e, q, &q->phrases->members[member]);
      p->nlists++;
    }
    p->clauses[p->nclauses - 1].list[i] = member_list[member];
  }
  p->clauses[p->nclauses - 1].n = t->tokens;
  return GPUIR_OK;
}

/* Moves what a phrase's matches that wait are to a list. */
static void gpuir__phrase_take(gpuir__phrases *p, gpuir__made *m) {
  uint32_t tfs[GPUIR__BLOCK_ROOM], j;
  gpuir__phrases_prefetch(p, p->clauses, p->all, p->n);
  gpuir__phrase_frequencies(p, p->clauses, p->all, p->docs, p->n, tfs);
  for (j = 0; j < p->n; j++) {
    m->docs[m->n] = p->docs[j];
    m->freqs[m->n] = tfs[j] - 1;
    m->n += tfs[j] > 0;
  }
  p->n = 0;
}

/* Makes the list of documents that hold all of a term's members, wherever these stand: without positions. The lists of
 * its one clause are open. */
static int gpuir__all_make(gpuir__phrases *p, unsigned term, gpuir__made *m) {
  gpuir__engine *e = p->e;
  gpuir__and *x = &p->and_;
  gpuir__and_step step;
  uint32_t block, n;
  int status;
  gpuir__and_begin(e, &step, p->nlists, 0);
  status = gpuir__and_prepare(e, x, &step, GPUIR__AND_PLACES);
  if (!status) status = gpuir__made_open(e, term, e->cursors[x->order[0]].list.df, m);
  for (block = 0; !status && block < e->cursors[x->order[0]].list.nblocks; block++) {
    if (gpuir__engine_worked(e, 1)) return e->stopped;
    n = gpuir__and_match_live(e, x, gpuir__and_candidates(e, x, block, 0));
    if (e->stopped) return e->stopped;
    memcpy(m->docs + m->n, x->docs, n * sizeof *m->docs);
    memset(m->freqs + m->n, 0, n * sizeof *m->freqs);
    m->n += n;
  }
  return status;
}

/* Makes a phrase's list, of cursors that begin at e->cursors[0]. */
static int gpuir__phrase_make_alone(gpuir__engine *e, const gpuir_query *q, size_t leaf, unsigned term,
    gpuir__made *m) {
  uint8_t member_list[GPUIR_MAX_TERMS];
  gpuir__phrases p;
  uint32_t block, n;
  int status, missing = 0;
  memset(member_list, UINT8_MAX, sizeof member_list);
  p.e = e;
  p.nlists = p.nclauses = p.nphrases = 0;
  status = gpuir__clause_phrase(&p, q, leaf, &q->terms[term], member_list, &missing);
  m->n = 0;
  if (status || missing) return status;
  if (q->terms[term].kind == GPUIR__ALL) return gpuir__all_make(&p, term, m);
  status = gpuir__phrases_prepare(&p);
  if (!status) status = gpuir__made_open(e, term, e->cursors[p.and_.order[0]].list.df, m);
  for (block = 0; !status && block < e->cursors[p.and_.order[0]].list.nblocks; block++) {
    if (gpuir__engine_worked(e, 1)) return e->stopped;
    n = gpuir__and_match_live(e, &p.and_, gpuir__phrases_candidates(&p, block, 0));
    if (!e->stopped) gpuir__phrases_wait(&p, n, 0);
    if (!e->stopped) gpuir__phrase_take(&p, m);
    status = e->stopped;
  }
  return status;
}

/* Makes a phrase's list. Its terms' cursors are opened behind room for those of the query's terms, and closed. */
static int gpuir__phrase_make(gpuir__engine *e, const gpuir_query *q, size_t leaf, unsigned term, gpuir__made *m) {
  const unsigned ncursors = e->ncursors, aside = q->n + q->phrases->nmembers;
  int status;
  e->cursors += aside;
  e->operands += aside;
#ifndef GPUIR_NO_LAB
  if (e->prepared) e->prepared += aside;
#endif
  e->ncursors = 0;
  status = gpuir__phrase_make_alone(e, q, leaf, term, m);
  gpuir__engine_reset(e);
  e->cursors -= aside;
  e->operands -= aside;
#ifndef GPUIR_NO_LAB
  if (e->prepared) e->prepared -= aside;
#endif
  e->ncursors = ncursors;
  return status;
}

/* Opens the list of a term, which may have to be made, behind the cursors that are open; without one in the leaf it
 * opens none. */
static int gpuir__term_open(gpuir__engine *e, const gpuir_query *q, size_t leaf, unsigned term) {
  const gpuir__query_term *t = &q->terms[term];
  const int together = t->kind == GPUIR__PHRASE || t->kind == GPUIR__ALL;
  const uint32_t id = together ? 0 : gpuir__query_id(q, leaf, term);
  gpuir__made m;
  int status;
  e->turn.cursor_of[term] = GPUIR__NO_TERM;
  if (!t->df || id == GPUIR__NO_TERM) return GPUIR_OK;
  if (t->kind == GPUIR__WORD ||
      (t->kind == GPUIR__PREFIX && gpuir__query_end(q, leaf, term) == id + 1 &&
          gpuir__query_stem(q, leaf, term) == GPUIR__NO_TERM)) {
    status = gpuir__engine_open_list(e, q, leaf, GPUIR__ID_TERMS + term, t);
  } else {
    status = together ? gpuir__phrase_make(e, q, leaf, term, &m) : gpuir__prefix_make(e, q, leaf, term, &m);
    if (!status && !m.n) return GPUIR_OK;
    if (!status) status = gpuir__made_close(e, &m, &e->cursors[e->ncursors].list);
  }
  if (status) return status;
  e->turn.cursor_of[term] = e->ncursors;
  gpuir__engine_add(e, q, t);
  return GPUIR_OK;
}

/* Turns to a leaf with room for the cursors of a query with phrases. */
static int gpuir__phrases_turn(gpuir__engine *e, const gpuir_query *q, size_t leaf) {
  return gpuir__engine_turn(e, q, leaf, q->n + (q->phrases ? 2 * q->phrases->nmembers : 0));
}

/* Turns to a leaf: opens a cursor on each term of the query that it has, positive ones first (in the query's order);
 * *npositive is their number. */
static int gpuir__terms_open(gpuir__engine *e, const gpuir_query *q, size_t leaf, unsigned *npositive) {
  unsigned i;
  int status;
  if (!q->nphrases && !q->nprefixes) return gpuir__engine_open(e, q, leaf, npositive);
  status = gpuir__phrases_turn(e, q, leaf);
  *npositive = e->turn.noptional = 0;
  for (i = 0; i < q->n && !status; i++) {
    const unsigned before = e->ncursors;
    status = gpuir__term_open(e, q, leaf, i);
    *npositive += e->ncursors > before && !q->terms[i].negated;
    e->turn.noptional += e->ncursors > before && q->terms[i].optional != 0;
  }
  return status;
}

/* Lets phrases use the list of a word that is one of their terms: there are never more lists than distinct terms. */
static void gpuir__phrases_reuse_list(const gpuir_query *q, size_t leaf, unsigned term, unsigned list,
    uint8_t *member_list) {
  unsigned i;
  for (i = 0; i < q->phrases->nmembers; i++)
    if (gpuir__query_member_id(q, leaf, i) == gpuir__query_id(q, leaf, term)) member_list[i] = (uint8_t)list;
}

/* Opens the lists of a query all of whose terms are required, phrases' terms among them, and those that exclude.
 * *missing becomes 1 if the leaf lacks one. */
static int gpuir__phrases_open(gpuir__phrases *p, gpuir__engine *e, const gpuir_query *q, size_t leaf, int *missing) {
  uint8_t member_list[GPUIR_MAX_TERMS];
  unsigned i;
  int status = gpuir__phrases_turn(e, q, leaf);
  memset(member_list, UINT8_MAX, sizeof member_list);
  p->e = e;
  p->nlists = p->nclauses = p->nphrases = 0;
  for (i = 0; i < q->npositive && !status && !*missing; i++) {
    if (q->terms[i].kind == GPUIR__PHRASE) continue;
    status = gpuir__term_open(e, q, leaf, i);
    *missing = e->ncursors == p->nlists;
    if (q->terms[i].kind == GPUIR__WORD) gpuir__phrases_reuse_list(q, leaf, i, p->nlists, member_list);
    gpuir__clause_make(p, q, &q->terms[i], p->nlists++);
  }
  for (i = 0; i < q->npositive && !status && !*missing; i++)
    if (q->terms[i].kind == GPUIR__PHRASE)
      status = gpuir__clause_phrase(p, q, leaf, &q->terms[i], member_list, missing);
  for (i = q->npositive; i < q->n && !status && !*missing; i++) status = gpuir__term_open(e, q, leaf, i);
  return status;
}

/* Returns 1 if a query in a mode is one for gpuir__eval_phrases: it has phrases, and all of its terms are required. */
GPUIR__NOINLINE int gpuir__phrases_are_required(const gpuir__engine *e, const gpuir_query *q, int mode) {
  unsigned i;
  if (!q->nphrases || e->evaluator == GPUIR_EVAL_EXHAUSTIVE || (mode == GPUIR_OR && q->npositive > 1) ||
      q->nrequired < q->npositive)
    return 0;
  for (i = 0; i < q->npositive; i++)
    if (q->terms[i].kind == GPUIR__PHRASE) return 1;
  return 0;
}

/* Scores the matches that wait, counts them, or both. */
GPUIR__NOINLINE void gpuir__phrases_flush(gpuir__phrases *p, int ranks, uint64_t *count) {
  if (!p->n) return;
  if (!count) gpuir__phrases_score(p);
#ifndef GPUIR_NO_RANK
  else if (ranks && p->wanted) *count += gpuir__phrases_score_all(p);
#endif
  else *count += gpuir__phrases_count(p);
  (void)ranks;
  p->n = 0;
  p->wanted = 0;
}

/* Evaluates a query with phrases all of whose terms are required, in one leaf: `ranks` them, or adds the number of
 * matches to *count, or both, for which positions are passed once. */
static int gpuir__eval_phrases(gpuir__engine *e, const gpuir_query *q, size_t leaf, int ranks, uint64_t *count) {
  gpuir__phrases p;
  uint32_t block, nblocks, least = 0, n;
  int missing = 0, wanted, freqs, status = gpuir__phrases_open(&p, e, q, leaf, &missing);
  if (status || missing) return status;
  status = gpuir__phrases_prepare(&p);
  freqs = !count || (ranks && p.nclauses > p.nphrases);
  nblocks = e->cursors[p.and_.order[0]].list.nblocks;
  for (block = 0; !status; block++) {
    block = gpuir__engine_part(e, block, nblocks, GPUIR__TAKEN_BLOCKS);
    if (block >= nblocks) break;
    if (gpuir__engine_worked(e, 1)) return e->stopped;
    wanted = ranks && gpuir__phrases_is_wanted(&p, block, &least);
    if (!count && !wanted) continue;
    n = gpuir__phrases_candidates(&p, block, count ? 0 : least);
    n = n ? gpuir__and_match_live(e, &p.and_, n) : 0;
    if (e->stopped) return e->stopped;
    if (p.n + n > GPUIR__BLOCK) gpuir__phrases_flush(&p, ranks, count);
    p.wanted |= wanted;
    if (n) gpuir__phrases_wait(&p, n, freqs);
    if (p.n >= GPUIR__WAITING) gpuir__phrases_flush(&p, ranks, count);
    status = e->stopped;
  }
  if (!status) gpuir__phrases_flush(&p, ranks, count);
  return status ? status : e->stopped;
}
