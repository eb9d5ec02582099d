
/* ========
 * [28-encoder]  the list encoder: from postings to streams, directory, bounds and seeds
 *
 * Uses      [18-codecs], [23-codings], [24-postings], [25-positions], [26-dense].
 * Start at  gpuir__encode_list.
 * Tests     tests/unit/28_encoder.c
 * ======*/

/* Encoded lists in term order, of which nothing depends on where in the file they will be: a writer appends one
 * batch after the other. */
typedef struct gpuir__batch {
  gpuir__buf terms, term_lens; /* bytes; one byte of length each */
  gpuir__buf records, longs;
  gpuir__buf docs_long, docs_short, freqs_long, freqs_short;
  gpuir__buf last, docs_off, docs_width, freqs_off, freqs_width, bounds; /* the directory, an item a block */
  gpuir__buf seeds;
  gpuir__buf positions, positions_off; /* an offset a block of the directory */
  gpuir__buf dense_lists; /* of each dense list its number among longs, in 4 bytes */
  gpuir__buf dense_bits, dense_rank, dense_peaks; /* of each its lines */
  uint64_t nterms, postings;
} gpuir__batch;

#define GPUIR__BATCH_BUFS 21
static void gpuir__batch_bufs(gpuir__batch *batch, gpuir__buf *bufs[GPUIR__BATCH_BUFS]) {
  unsigned n = 0;
  bufs[n++] = &batch->terms;
  bufs[n++] = &batch->term_lens;
  bufs[n++] = &batch->records;
  bufs[n++] = &batch->longs;
  bufs[n++] = &batch->docs_long;
  bufs[n++] = &batch->docs_short;
  bufs[n++] = &batch->freqs_long;
  bufs[n++] = &batch->freqs_short;
  bufs[n++] = &batch->last;
  bufs[n++] = &batch->docs_off;
  bufs[n++] = &batch->docs_width;
  bufs[n++] = &batch->freqs_off;
  bufs[n++] = &batch->freqs_width;
  bufs[n++] = &batch->bounds;
  bufs[n++] = &batch->seeds;
  bufs[n++] = &batch->positions;
  bufs[n++] = &batch->positions_off;
  bufs[n++] = &batch->dense_lists;
  bufs[n++] = &batch->dense_bits;
  bufs[n++] = &batch->dense_rank;
  bufs[n++] = &batch->dense_peaks;
}

/* Empties a batch; frees its memory, too, if an allocator is given. */
static void gpuir__batch_clear(const gpuir_allocator *a, gpuir__batch *batch) {
  gpuir__buf *bufs[GPUIR__BATCH_BUFS];
  unsigned i;
  gpuir__batch_bufs(batch, bufs);
  for (i = 0; i < GPUIR__BATCH_BUFS; i++) {
    if (a) gpuir__buf_free(a, bufs[i]);
    bufs[i]->len = 0;
  }
  batch->nterms = batch->postings = 0;
}

#define GPUIR__TOP_KEPT 1000u
/* The greatest contributions of a list; more of them than it must keep, so that it rarely has to sort. */
typedef struct gpuir__top {
  uint32_t n, floor; /* values <= floor cannot be among the greatest GPUIR__TOP_KEPT */
  uint32_t values[4 * GPUIR__TOP_KEPT];
  uint32_t spare[4 * GPUIR__TOP_KEPT]; /* for sorting */
} gpuir__top;

/* Moves n numbers into the order of one byte of theirs, the greatest first, which leaves equal ones as they stand. */
static void gpuir__sort_byte(const uint32_t *from, uint32_t *to, uint32_t n, unsigned shift) {
  uint32_t at[257], i;
  memset(at, 0, sizeof at);
  for (i = 0; i < n; i++) at[(~from[i] >> shift & 255) + 1]++;
  for (i = 1; i < 256; i++) at[i] += at[i - 1];
  for (i = 0; i < n; i++) to[at[~from[i] >> shift & 255]++] = from[i];
}

/* Sorts the values, the greatest first, byte by byte from the least significant one, and keeps the greatest. */
static void gpuir__top_sort(gpuir__top *top) {
  gpuir__sort_byte(top->values, top->spare, top->n, 0);
  gpuir__sort_byte(top->spare, top->values, top->n, 8);
  gpuir__sort_byte(top->values, top->spare, top->n, 16);
  gpuir__sort_byte(top->spare, top->values, top->n, 24);
  if (top->n >= GPUIR__TOP_KEPT) {
    top->n = GPUIR__TOP_KEPT;
    top->floor = top->values[GPUIR__TOP_KEPT - 1];
  }
}

static inline void gpuir__top_add(gpuir__top *top, uint32_t c) {
  if (c <= top->floor) return;
  if (top->n == 4 * GPUIR__TOP_KEPT) gpuir__top_sort(top);
  top->values[top->n++] = c;
}

typedef struct gpuir__encoder {
  gpuir_allocator a;
  gpuir__coding docs_coding, freqs_coding;
  const uint32_t *lengths;
  uint64_t ndocs;
  float k1;
  gpuir__norm norm;
  unsigned dense; /* D, see [26-dense] */
  int simd;
  gpuir__buf values; /* frequencies less one */
  gpuir__buf trial; /* auto: offsets and widths of the codec that is tried */
  gpuir__front block_front, list_front;
  gpuir__top top;
} gpuir__encoder;

/* Fills an encoder, one for each thread. `lengths` are the ndocs document lengths, whose sum is `tokens`; dense: D. */
static int gpuir__encoder_create(gpuir__encoder *e, const gpuir_allocator *a, gpuir__coding docs, gpuir__coding freqs,
    const uint32_t *lengths, uint64_t ndocs, uint64_t tokens, float k1, float b, unsigned dense, int simd) {
  memset(e, 0, sizeof *e);
  e->a = *a;
  e->docs_coding = docs;
  e->freqs_coding = freqs;
  e->lengths = lengths;
  e->ndocs = ndocs;
  e->k1 = k1;
  e->dense = dense;
  e->norm = gpuir__norm_make(k1, b, ndocs ? (double)tokens / (double)ndocs : 0.0);
  e->simd = gpuir__simd_level(simd);
  gpuir__front_reset(&e->block_front);
  gpuir__front_reset(&e->list_front);
  return GPUIR_OK;
}

/* Frees the buffers that a long list has made large. */
static void gpuir__encoder_shrink(gpuir__encoder *e) {
  gpuir__buf_free(&e->a, &e->values);
  gpuir__buf_free(&e->a, &e->trial);
}

static void gpuir__encoder_destroy(gpuir__encoder *e) { gpuir__encoder_shrink(e); }

/* Returns the bytes a posting that a list takes while it is encoded, but for its positions: its docIDs and frequencies
 * (8), the frequencies less one (4), for auto two encodings beside each other, and a dense list's lines: 76 bytes each
 * 512 documents, of which it has one in D at least. */
static unsigned gpuir__encoder_need(const gpuir__encoder *e) {
  return (e->docs_coding.codec && e->freqs_coding.codec ? 12 : 24) +
      (e->ndocs >= GPUIR__DENSE_LEAST ? (19 * e->dense + 127) / 128 : 0);
}

/* Appends the stream of the codec that auto takes for the list; *id: the codec's. 0, NOMEM or LIMIT. */
static int gpuir__encode_auto(gpuir__encoder *e, uint64_t weight, int docids, const uint32_t *values, uint32_t n,
    gpuir__buf *out, uint32_t *offset, uint8_t *width, uint8_t *id) {
  const gpuir__codec *table = docids ? gpuir__docid_codecs : gpuir__freq_codecs;
  const size_t ncodecs = docids ? GPUIR__DOCID_CODECS : GPUIR__FREQ_CODECS, start = out->len;
  gpuir__target to = {&e->a, out, NULL, NULL, 0};
  const size_t nblocks = offset ? (n - 1) / GPUIR__BLOCK + 1 : 0;
  uint64_t least = UINT64_MAX;
  size_t i;
  int status = GPUIR_E_LIMIT;
  if (offset) {
    e->trial.len = 0;
    to.offset = (uint32_t *)(void *)gpuir__buf_room(&e->a, &e->trial, nblocks * 5);
    if (!to.offset) return GPUIR_E_NOMEM;
    to.width = (uint8_t *)(to.offset + nblocks);
  }
  for (i = 0; i < ncodecs; i++) {
    const size_t at = out->len;
    uint64_t price;
    int tried = table[i].encode(&table[i], values, n, &to);
    if (tried == GPUIR_E_LIMIT) continue; /* what this codec cannot hold, another one may */
    if (tried) {
      out->len = start;
      return tried;
    }
    status = GPUIR_OK;
    price = (uint64_t)(out->len - at) * (100000 + weight * table[i].cost);
    if (price < least) {
      least = price;
      *id = table[i].id;
      memmove(out->data + start, out->data + at, out->len - at);
      out->len -= at - start;
      if (offset) {
        memcpy(offset, to.offset, nblocks * sizeof *offset);
        memcpy(width, to.width, nblocks);
      }
    } else {
      out->len = at;
    }
  }
  return status;
}

/* Appends the stream of docIDs or of frequencies less one; *id: the codec's. offset and width are NULL for short
 * lists. */
static int gpuir__encode_stream(gpuir__encoder *e, const gpuir__coding *coding, int docids, const uint32_t *values,
    uint32_t n, gpuir__buf *out, uint32_t *offset, uint8_t *width, uint8_t *id) {
  const gpuir__target to = {&e->a, out, offset, width, coding->param};
  if (!coding->codec) return gpuir__encode_auto(e, coding->param, docids, values, n, out, offset, width, id);
  *id = coding->codec->id;
  return coding->codec->encode(coding->codec, values, n, &to);
}

/* Appends the impacts of each block and, of a list that has them, its seeds, and fills the impacts of the list, in
 * one pass over its postings. 0 or NOMEM. */
static int gpuir__encode_bounds(gpuir__encoder *e, gpuir__batch *batch, gpuir__long *extent, const uint32_t *docs,
    const uint32_t *tfs, uint32_t df, float weight) {
  uint32_t i, seeds[GPUIR__SEEDS];
  e->top.n = e->top.floor = 0;
  for (i = 0; i < df; i++) {
    uint32_t length = e->lengths[docs[i]];
    gpuir__front_add(&e->block_front, gpuir__code_up(tfs[i]), gpuir__code_down(length));
    if (df > GPUIR__WHOLE)
      gpuir__top_add(&e->top, gpuir__contribution(weight, tfs[i], gpuir__norm_of(e->norm.a, e->norm.b, length)));
    if (i % GPUIR__BLOCK == GPUIR__BLOCK - 1 || i + 1 == df) {
      gpuir__pair pairs[GPUIR__BLOCK_PAIRS];
      gpuir__front_take(&e->block_front, &e->list_front, pairs, GPUIR__BLOCK_PAIRS);
      if (gpuir__buf_put(&e->a, &batch->bounds, pairs, sizeof pairs)) return GPUIR_E_NOMEM;
    }
  }
  gpuir__front_take(&e->list_front, NULL, extent->pairs, GPUIR__LIST_PAIRS);
  gpuir__top_sort(&e->top);
  if (df <= GPUIR__WHOLE) return GPUIR_OK;
  for (i = 0; i < GPUIR__SEEDS; i++) seeds[i] = e->top.values[gpuir__seed_ranks[i] - 1];
  extent->seeds = (uint32_t)(batch->seeds.len / sizeof seeds) + 1;
  return gpuir__buf_put(&e->a, &batch->seeds, seeds, sizeof seeds);
}

/* Appends a dense list's lines. 0 or NOMEM. */
static int gpuir__encode_dense(gpuir__encoder *e, gpuir__batch *batch, const uint32_t *docs, const uint32_t *tfs,
    uint32_t df) {
  const uint32_t number = (uint32_t)(batch->longs.len / sizeof(gpuir__long));
  const uint64_t lines = gpuir__dense_lines(e->ndocs);
  gpuir__dense_target to;
  if (lines > SIZE_MAX / sizeof *to.bits) return GPUIR_E_NOMEM;
  to.bits = (gpuir__dense_bits *)(void *)gpuir__buf_room(&e->a, &batch->dense_bits, (size_t)lines * sizeof *to.bits);
  to.rank = (uint32_t *)(void *)gpuir__buf_room(&e->a, &batch->dense_rank, (size_t)lines * sizeof *to.rank);
  to.peaks =
      (gpuir__dense_peaks *)(void *)gpuir__buf_room(&e->a, &batch->dense_peaks, (size_t)lines * sizeof *to.peaks);
  if (!to.bits || !to.rank || !to.peaks) return GPUIR_E_NOMEM;
  memset(to.bits, 0, (size_t)lines * sizeof *to.bits);
  memset(to.peaks, 0, (size_t)lines * sizeof *to.peaks);
  gpuir__dense_fill(&to, lines, docs, tfs, df, e->norm, e->lengths);
  batch->dense_bits.len += (size_t)lines * sizeof *to.bits;
  batch->dense_rank.len += (size_t)lines * sizeof *to.rank;
  batch->dense_peaks.len += (size_t)lines * sizeof *to.peaks;
  return gpuir__buf_put(&e->a, &batch->dense_lists, &number, sizeof number);
}

static int gpuir__encode_long(gpuir__encoder *e, gpuir__batch *batch, gpuir__record *record, const uint32_t *docs,
    const uint32_t *tfs, const uint32_t *values, uint32_t df) {
  const gpuir_allocator *a = &e->a;
  uint32_t nblocks = (df - 1) / GPUIR__BLOCK + 1, i;
  uint32_t *last = (uint32_t *)(void *)gpuir__buf_room(a, &batch->last, (size_t)nblocks * 4);
  uint32_t *docs_off = (uint32_t *)(void *)gpuir__buf_room(a, &batch->docs_off, (size_t)nblocks * 4);
  uint32_t *freqs_off = (uint32_t *)(void *)gpuir__buf_room(a, &batch->freqs_off, (size_t)nblocks * 4);
  uint8_t *docs_width = gpuir__buf_room(a, &batch->docs_width, nblocks);
  uint8_t *freqs_width = gpuir__buf_room(a, &batch->freqs_width, nblocks);
  gpuir__long extent;
  int status;
  if (!last || !docs_off || !freqs_off || !docs_width || !freqs_width) return GPUIR_E_NOMEM;
  memset(&extent, 0, sizeof extent);
  extent.docs = batch->docs_long.len;
  extent.freqs = batch->freqs_long.len;
  extent.first_block = (uint32_t)(batch->last.len / 4);
  for (i = 0; i < df; i++) extent.cf += tfs[i];
  for (i = 0; i < nblocks; i++) last[i] = docs[i + 1 < nblocks ? (i + 1) * GPUIR__BLOCK - 1 : df - 1];
  status =
      gpuir__encode_stream(e, &e->docs_coding, 1, docs, df, &batch->docs_long, docs_off, docs_width, &record->codec);
  if (!status)
    status = gpuir__encode_stream(e, &e->freqs_coding, 0, values, df, &batch->freqs_long, freqs_off, freqs_width,
        &record->freq_codec);
  if (status) return status;
  extent.docs_len = batch->docs_long.len - extent.docs;
  extent.freqs_len = batch->freqs_long.len - extent.freqs;
  /* long lists start 16-byte aligned whatever the codec's unit is */
  {
    static const uint8_t zeros[16] = {0};
    if (gpuir__buf_put(a, &batch->docs_long, zeros, (16 - batch->docs_long.len % 16) % 16) ||
        gpuir__buf_put(a, &batch->freqs_long, zeros, (16 - batch->freqs_long.len % 16) % 16))
      return GPUIR_E_NOMEM;
  }
  batch->last.len += (size_t)nblocks * 4;
  batch->docs_off.len += (size_t)nblocks * 4;
  batch->freqs_off.len += (size_t)nblocks * 4;
  batch->docs_width.len += nblocks;
  batch->freqs_width.len += nblocks;
  if (gpuir__encode_bounds(e, batch, &extent, docs, tfs, df, gpuir__weight(gpuir__idf(e->ndocs, df), e->k1)))
    return GPUIR_E_NOMEM;
  if (gpuir__dense_is(e->ndocs, df, e->dense) && gpuir__encode_dense(e, batch, docs, tfs, df)) return GPUIR_E_NOMEM;
  record->docs = batch->longs.len / sizeof extent;
  return gpuir__buf_put(a, &batch->longs, &extent, sizeof extent);
}

static int gpuir__encode_short(gpuir__encoder *e, gpuir__batch *batch, gpuir__record *record, const uint32_t *docs,
    const uint32_t *values, uint32_t df) {
  int status;
  record->docs = batch->docs_short.len;
  record->freqs = batch->freqs_short.len;
  status = gpuir__encode_stream(e, &e->docs_coding, 1, docs, df, &batch->docs_short, NULL, NULL, &record->codec);
  if (!status)
    status =
        gpuir__encode_stream(e, &e->freqs_coding, 0, values, df, &batch->freqs_short, NULL, NULL, &record->freq_codec);
  if (status) return status;
  if (batch->docs_short.len - record->docs > UINT16_MAX || batch->freqs_short.len - record->freqs > UINT16_MAX)
    return GPUIR_E_LIMIT;
  record->docs_len = (uint32_t)(batch->docs_short.len - record->docs);
  record->freqs_len = (uint32_t)(batch->freqs_short.len - record->freqs);
  return GPUIR_OK;
}

/* Appends a list's positions, block by block. 0, NOMEM or LIMIT. */
static int gpuir__encode_positions(gpuir__encoder *e, gpuir__batch *batch, const uint32_t *tfs, uint32_t df,
    const uint32_t *positions) {
  static const uint8_t zeros[GPUIR__CHUNK_UNIT] = {0};
  gpuir__buf *out = &batch->positions;
  const size_t start = out->len;
  const int has_directory = df > GPUIR__SHORT_MAX;
  uint32_t at, i;
  for (at = 0; at < df; at += GPUIR__BLOCK) {
    const uint32_t n = gpuir__min32(GPUIR__BLOCK, df - at);
    const uint64_t unit = (out->len - start) / GPUIR__CHUNK_UNIT;
    const uint32_t offset = (uint32_t)unit;
    if (unit > UINT32_MAX) return GPUIR_E_LIMIT;
    if ((has_directory && gpuir__buf_put(&e->a, &batch->positions_off, &offset, 4)) ||
        gpuir__positions_encode(&e->a, out, tfs + at, n, positions) ||
        (has_directory && gpuir__buf_put(&e->a, out, zeros, (0 - (out->len - start)) % GPUIR__CHUNK_UNIT)))
      return GPUIR_E_NOMEM;
    for (i = 0; i < n; i++) positions += tfs[at + i];
  }
  return GPUIR_OK;
}

/* Encodes one term's list and appends it to the batch. docs strictly increase and are < ndocs,
 * tfs >= 1, df >= 1; positions[] has tfs[i] of them for each posting, or is NULL. Returns 0, NOMEM or LIMIT. */
static int gpuir__encode_list(gpuir__encoder *e, gpuir__batch *batch, const void *term, size_t term_len,
    const uint32_t *docs, const uint32_t *tfs, uint32_t df, const uint32_t *positions) {
  uint8_t len = (uint8_t)term_len;
  gpuir__record record;
  int status = GPUIR_OK;
  memset(&record, 0, sizeof record);
  record.df = df;
  if (df == 1) {
    record.docs = docs[0];
    record.freqs = tfs[0];
  } else {
    uint32_t i, *values;
    e->values.len = 0;
    values = (uint32_t *)(void *)gpuir__buf_room(&e->a, &e->values, (size_t)df * 4);
    if (!values) return GPUIR_E_NOMEM;
    for (i = 0; i < df; i++) values[i] = tfs[i] - 1;
    status = df > GPUIR__SHORT_MAX ? gpuir__encode_long(e, batch, &record, docs, tfs, values, df)
                                   : gpuir__encode_short(e, batch, &record, docs, values, df);
  }
  if (!status && positions) {
    record.positions = batch->positions.len;
    status = gpuir__encode_positions(e, batch, tfs, df, positions);
    record.positions_len = batch->positions.len - record.positions;
  }
  if (status) return status;
  batch->nterms++;
  batch->postings += df;
  if (gpuir__buf_put(&e->a, &batch->terms, term, term_len) || gpuir__buf_put(&e->a, &batch->term_lens, &len, 1) ||
      gpuir__buf_put(&e->a, &batch->records, &record, sizeof record))
    return GPUIR_E_NOMEM;
  return GPUIR_OK;
}
