
/* ========
 * [41-reader]  index file: open, look-ups
 *
 * An index file is a segment here; [42-snapshot] makes an index of one or more. Nothing here trusts an offset of the
 * file: what open does not check is checked where it is used.
 *
 * Uses      [18-codecs], [19-bp128], [23-codings], [24-postings], [25-positions], [26-dense], [32-dictionary],
 *           [33-analyzers], [34-fields], [36-documents], [37-layout], [40-columns].
 * Start at  gpuir__segment_open, gpuir__list_open (a term's postings).
 * Tests     tests/unit/41_reader.c
 * ======*/

/* ---- open */

/* Returns the average length of documents; 0 without any. */
static double gpuir__mean(uint64_t tokens, uint64_t documents) {
  return documents ? (double)tokens / (double)documents : 0.0;
}

#ifndef GPUIR_NO_COLUMNS
/* Leaves the sieve; NULL is allowed. */
static void gpuir__sieve_close(gpuir__sieve *s) {
  gpuir_allocator a;
  if (!s || __atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL)) return;
  a = s->a;
  gpuir__free(&a, s, s->size);
}
#endif

/* Leaves the segment; NULL is allowed. The last owner unmaps it. */
static void gpuir__segment_close(gpuir__segment *ix) {
  gpuir_allocator a;
  unsigned i;
  if (!ix || __atomic_sub_fetch(&ix->refs, 1, __ATOMIC_ACQ_REL)) return;
  a = ix->a;
  for (i = 0; i < GPUIR__LOG_CHUNKS; i++) gpuir__free(&a, ix->log.chunk[i], ((size_t)64 << i) * 4);
  gpuir__free(&a, ix->log.counts, ((size_t)ix->log.mask + 1) * sizeof *ix->log.counts);
  (void)pthread_mutex_destroy(&ix->log.mutex);
  if (ix->mapped) (void)munmap((void *)(uintptr_t)ix->map, (size_t)ix->size);
  gpuir__free(&a, ix->meta.text, ix->meta.text_size);
  gpuir__schema_free(&a, ix->columns.fields);
#ifndef GPUIR_NO_COLUMNS
  for (i = 0; i < GPUIR__KEPT_SIEVES; i++) gpuir__sieve_close(ix->sieves[i]);
#endif
  gpuir__free(&a, ix, sizeof *ix);
}

/* Adds an owner to the segment. */
static gpuir__segment *gpuir__segment_retain(gpuir__segment *ix) {
  (void)__atomic_add_fetch(&ix->refs, 1, __ATOMIC_RELAXED);
  return ix;
}

static int gpuir__bad(const gpuir__segment *ix, gpuir_error *err, uint64_t offset, const char *cause) {
  return gpuir__fail(err, GPUIR_E_FORMAT, offset, "%s: %s", ix->path, cause);
}

/* Checks the header and collects the known sections. */
static int gpuir__open_table(gpuir__segment *ix, gpuir_error *err) {
  gpuir__header h;
  uint32_t i;
  if (ix->size < sizeof h) return gpuir__bad(ix, err, 0, "not a gpuir index: shorter than a header");
  memcpy(&h, ix->map, sizeof h);
  if (memcmp(h.magic, gpuir__magic, sizeof h.magic))
    return gpuir__bad(ix, err, 0, "not a gpuir index: no magic number");
  if (h.format != GPUIR__FORMAT)
    return gpuir__fail(err, GPUIR_E_VERSION, 8, "%s: index format %u, this build reads %u: %s", ix->path,
        (unsigned)h.format, GPUIR__FORMAT,
        h.format < GPUIR__FORMAT ? "build it again: gpuir index INPUT -o FILE" : "it needs a newer gpuir");
  if (h.hash != gpuir__hash(ix->map, offsetof(gpuir__header, hash), 0)) return gpuir__bad(ix, err, 0, "damaged header");
  if (h.file_size != ix->size)
    return gpuir__fail(err, GPUIR_E_FORMAT, ix->size, "%s: truncated or extended: %llu bytes instead of %llu", ix->path,
        (unsigned long long)ix->size, (unsigned long long)h.file_size);
  if (h.sections > GPUIR__MAX_SECTIONS || sizeof h + h.sections * sizeof(gpuir__section) > ix->size)
    return gpuir__bad(ix, err, 12, "section table does not fit");
  ix->table = (const gpuir__section *)(const void *)(ix->map + sizeof h);
  ix->nsections = h.sections;
  if (h.table_hash != gpuir__hash(ix->table, h.sections * sizeof(gpuir__section), 0))
    return gpuir__bad(ix, err, sizeof h, "damaged section table");
  for (i = 0; i < h.sections; i++) {
    const gpuir__section *s = &ix->table[i];
    uint64_t where = sizeof h + i * sizeof *s;
    if (s->offset % GPUIR__ALIGN || s->offset > ix->size || s->length > ix->size - s->offset ||
        ix->size - s->offset - s->length < GPUIR__ALIGN)
      return gpuir__bad(ix, err, where, "a section lies outside the file");
    if (s->id < GPUIR__S_COUNT && s->id) {
      if (ix->section[s->id]) return gpuir__bad(ix, err, where, "a section stands twice");
      ix->section[s->id] = s;
    } else if (s->flags & GPUIR__REQUIRED) {
      return gpuir__fail(err, GPUIR_E_VERSION, where, "%s: unknown required section %u", ix->path, (unsigned)s->id);
    } else {
      ix->strange = 1;
    }
  }
  return GPUIR_OK;
}

/* Returns the number of items that a section must have, or the number that fit in it where that is free. */
static uint64_t gpuir__section_items(const gpuir__segment *ix, const gpuir__section_row *row) {
  const gpuir__stat *stat = &ix->stat;
  switch (row->items) {
  case GPUIR__N_ONE: return 1;
  case GPUIR__N_TERM_PAGES: return (gpuir__dict_blocks(stat->terms) + GPUIR__DICT_PAGE - 1) / GPUIR__DICT_PAGE;
  case GPUIR__N_TERM_BLOCKS: return gpuir__dict_blocks(stat->terms);
  case GPUIR__N_TERM_KEYS: return gpuir__dict_nodes(stat->terms) * GPUIR__DICT_FAN;
  case GPUIR__N_LONGS: return stat->longs;
  case GPUIR__N_BLOCKS: return stat->blocks;
  case GPUIR__N_DOCUMENTS: return stat->documents;
  case GPUIR__N_DOC_ENDS:
#ifndef GPUIR_NO_STORE
  case GPUIR__N_PLACES:
#endif
    return stat->documents + 1;
  case GPUIR__N_TERMS: return stat->terms;
  case GPUIR__N_DENSE_LINES:
    return ix->section[GPUIR__S_DENSE_LISTS]
        ? ix->section[GPUIR__S_DENSE_LISTS]->length / 4 * gpuir__dense_lines(stat->documents)
        : 0;
  default: return ix->section[row->id]->length / row->item_size;
  }
}

/* Returns the number of items of a section of starts, which divides the section `bytes`. */
static uint64_t gpuir__starts_count(const gpuir__section *bytes, const gpuir__section *starts) {
  return starts->length / gpuir__start_width(bytes->length);
}

/* Says whether a section that is there has as many items as it must have. */
static int gpuir__section_fits(const gpuir__segment *ix, const gpuir__section_row *row) {
  const uint64_t items = gpuir__section_items(ix, row);
  const gpuir__section *starts = ix->section[row->id];
  if (row->items == GPUIR__N_ANY) return 1;
#ifndef GPUIR_NO_STORE
  if (row->items == GPUIR__N_PLACES)
    return starts->length && starts->length <= 8 * items && starts->length % items == 0;
#endif
  if (row->items == GPUIR__N_DOC_ENDS || row->items == GPUIR__N_ENDS) {
    const gpuir__section *bytes = ix->section[row[-1].id];
    return bytes && starts->length % gpuir__start_width(bytes->length) == 0 &&
        (row->items == GPUIR__N_ENDS ? starts->length > 0 : gpuir__starts_count(bytes, starts) == items);
  }
  return items <= ix->size && starts->length == items * row->item_size;
}

/* Says whether texts are stored. */
static int gpuir__has_texts(const gpuir__segment *ix) {
  return ix->section[GPUIR__S_TEXT] || ix->section[GPUIR__S_PACKED];
}

#ifndef GPUIR_NO_STORE
/* Returns the bytes of a number of TEXT_AT. */
static unsigned gpuir__text_width(const gpuir__segment *ix) {
  return (unsigned)(ix->section[GPUIR__S_TEXT_AT]->length / (ix->stat.documents + 1));
}

/* Returns where in the text, before it was packed, document i starts; of the number of documents, where it ends. */
static uint64_t gpuir__text_at(const gpuir__segment *ix, uint64_t i) {
  const unsigned width = gpuir__text_width(ix);
  return gpuir__load_number(ix->map + ix->section[GPUIR__S_TEXT_AT]->offset + i * width, width);
}
#endif

/* Returns the bytes of a row of the origins; 0 if the widths do not fit. */
static unsigned gpuir__origins_row(const gpuir__segment *ix) {
  const uint8_t *width = ix->map + ix->section[GPUIR__S_ORIGINS]->offset;
  unsigned i, bytes = 0;
  for (i = 0; i < GPUIR__O_COUNT; i++) {
    if (width[i] > 8) return 0;
    bytes += width[i];
  }
  return bytes;
}

/* Says whether the section of origins has a row for each document, and those that it needs are there. */
static int gpuir__origins_fit(const gpuir__segment *ix) {
  const gpuir__section *const *s = ix->section;
  uint64_t rows;
  if (!s[GPUIR__S_SOURCES] || !s[GPUIR__S_SOURCE_START] || s[GPUIR__S_ORIGINS]->length < GPUIR__ORIGINS_HEAD) return 0;
  rows = s[GPUIR__S_ORIGINS]->length - GPUIR__ORIGINS_HEAD;
  return gpuir__origins_row(ix) && rows == ix->stat.documents * gpuir__origins_row(ix);
}

/* Reads the statistics, and checks that they are possible and that no section is missing. */
static int gpuir__open_stat(gpuir__segment *ix, gpuir_error *err) {
  const gpuir__section *s = ix->section[GPUIR__S_STAT];
  unsigned i;
  if (!s || s->length != sizeof ix->stat) return gpuir__bad(ix, err, 0, "no statistics section");
  memcpy(&ix->stat, ix->map + s->offset, sizeof ix->stat);
  for (i = 0; i < GPUIR__SECTION_ROWS; i++) {
    const gpuir__section_row *row = &gpuir__section_rows[i];
    if (row->presence == GPUIR__P_ALWAYS && !ix->section[row->id])
      return gpuir__fail(err, GPUIR_E_FORMAT, 0, "%s: section %u is missing", ix->path, (unsigned)row->id);
  }
  if (ix->stat.documents > GPUIR__MAX_DOCUMENTS || ix->stat.terms >= UINT32_MAX)
    return gpuir__bad(ix, err, 0, "counts out of range");
  if (!(ix->stat.k1 >= 0 && ix->stat.k1 <= 1000) || !(ix->stat.b >= 0 && ix->stat.b <= 1))
    return gpuir__bad(ix, err, 0, "k1 or b out of range");
  gpuir__dict_shape(&ix->terms, ix->stat.terms);
  ix->terms.simd = ix->simd;
  ix->terms.size = ix->section[GPUIR__S_TERMS]->length;
  return GPUIR_OK;
}

/* Makes the fields point to their sections. One that does not fit the counts is an error, or absent if a reader can do
 * without it. */
static int gpuir__open_fields(gpuir__segment *ix, gpuir_error *err) {
  unsigned i;
  for (i = 0; i < GPUIR__SECTION_ROWS; i++) {
    const gpuir__section_row *row = &gpuir__section_rows[i];
    const void *items;
    if (!ix->section[row->id]) continue;
    if (!gpuir__section_fits(ix, row)) {
      if (row->presence == GPUIR__P_ALWAYS || row->presence >= GPUIR__P_TEXT)
        return gpuir__bad(ix, err, 0, "a section's length does not fit the counts");
      ix->section[row->id] = NULL;
      continue;
    }
    items = ix->map + ix->section[row->id]->offset;
    if (row->field) memcpy((uint8_t *)ix + row->field, &items, sizeof items);
  }
  return GPUIR_OK;
}

/* Checks what the file knows of its collection. Its lists' seeds are of its own statistics, and no use there. */
static int gpuir__open_shard(gpuir__segment *ix, gpuir_error *err) {
  const gpuir__shard *s = ix->shard;
  if (!s != !ix->section[GPUIR__S_TERM_DFS])
    return gpuir__bad(ix, err, 0, "a collection without its terms' counts, or these without it");
  if (!s) return GPUIR_OK;
  if (s->documents > GPUIR__MAX_DOCUMENTS || s->documents < ix->stat.documents ||
      s->first > s->documents - ix->stat.documents || s->tokens < ix->stat.tokens || s->number >= s->shards)
    return gpuir__bad(ix, err, ix->section[GPUIR__S_SHARD]->offset,
        "the documents do not fit the collection that they are a part of");
  ix->lists.seeds = NULL;
  ix->lists.nseeds = 0;
  return GPUIR_OK;
}

/* Counts the dense lists, if all of their sections are there and fit; otherwise there are none. */
static void gpuir__open_dense(gpuir__segment *ix) {
  static const unsigned id[] = {GPUIR__S_DENSE_LISTS, GPUIR__S_DENSE_BITS, GPUIR__S_DENSE_RANK, GPUIR__S_DENSE_PEAKS};
  unsigned i;
  int whole = 1;
  for (i = 0; i < sizeof id / sizeof *id; i++) whole &= ix->section[id[i]] != NULL;
  for (i = 0; i < sizeof id / sizeof *id && !whole; i++) ix->section[id[i]] = NULL;
  ix->dense.n = whole ? ix->section[GPUIR__S_DENSE_LISTS]->length / 4 : 0;
}

#ifndef GPUIR_NO_STORE
/* Says whether there are as many packed blocks as the texts take, and no more text than they can hold: a byte of LZ4's
 * format makes at most 255. So who makes room for a text takes at most 255 times the file's bytes. */
static int gpuir__packed_fits(const gpuir__segment *ix) {
  const gpuir__section *const *s = ix->section;
  uint64_t blocks, bytes;
  if (!s[GPUIR__S_PACKED] && !s[GPUIR__S_PACKED_START] && !s[GPUIR__S_TEXT_AT]) return 1;
  if (!s[GPUIR__S_PACKED] || !s[GPUIR__S_PACKED_START] || !s[GPUIR__S_TEXT_AT] || s[GPUIR__S_TEXT]) return 0;
  blocks = gpuir__starts_count(s[GPUIR__S_PACKED], s[GPUIR__S_PACKED_START]) - 1;
  bytes = gpuir__text_at(ix, ix->stat.documents);
  return bytes / 255 <= s[GPUIR__S_PACKED]->length &&
      blocks == bytes / GPUIR__TEXT_BLOCK + (bytes % GPUIR__TEXT_BLOCK != 0);
}
#endif

/* Checks what sections say of each other, and sets up what takes several of them. A section that is optional and does
 * not fit the others counts as missing; one that is needed makes the file a damaged one. */
static int gpuir__open_relations(gpuir__segment *ix, gpuir_error *err) {
  const gpuir__section **s = ix->section;
  if (ix->stat.docs_short > s[GPUIR__S_DOCIDS]->length || ix->stat.freqs_short > s[GPUIR__S_FREQS]->length)
    return gpuir__bad(ix, err, 0, "short lists lie outside their section");
  if (s[GPUIR__S_SEEDS]) ix->lists.nseeds = s[GPUIR__S_SEEDS]->length / (4 * GPUIR__SEEDS);
  gpuir__open_dense(ix);
  ix->terms.form = gpuir__dict_form_of(ix->stat.documents, ix->lists.positions != NULL);
  if (s[GPUIR__S_ORIGINS] && !gpuir__origins_fit(ix)) s[GPUIR__S_ORIGINS] = NULL; /* optional, and only whole */
  if (s[GPUIR__S_STEMS] &&
      (!s[GPUIR__S_ORIGINS] ||
          s[GPUIR__S_STEMS]->length / 4 + 1 != gpuir__starts_count(s[GPUIR__S_SOURCES], s[GPUIR__S_SOURCE_START])))
    return gpuir__bad(ix, err, 0, "stems of names do not fit the sources");
  if (!s[GPUIR__S_TEXT] != !s[GPUIR__S_TEXT_START])
    return gpuir__bad(ix, err, 0, "texts without their starts, or starts without texts");
#ifndef GPUIR_NO_STORE
  if (!gpuir__packed_fits(ix)) return gpuir__bad(ix, err, 0, "packed texts that do not fit their places");
#endif
  if (!s[GPUIR__S_POSITIONS] != !s[GPUIR__S_POS_OFF])
    return gpuir__bad(ix, err, 0, "positions without their offsets, or offsets without positions");
  return gpuir__open_shard(ix, err);
}

/* Checks the sections and fills the index with what they hold. */
static int gpuir__open_arrays(gpuir__segment *ix, gpuir_error *err) {
  int status = gpuir__open_stat(ix, err);
  if (!status) status = gpuir__open_fields(ix, err);
  if (!status) status = gpuir__open_relations(ix, err);
  return status;
}

/* Copies the meta section and cuts it into strings; unknown keys are passed over. */
static int gpuir__open_meta(gpuir__segment *ix, gpuir_error *err) {
  const gpuir__section *s = ix->section[GPUIR__S_META];
  char *line, *end;
  size_t i;
  for (i = 0; i < GPUIR__META_KEYS; i++) *gpuir__meta_value(&ix->meta, i) = "";
  ix->meta.text_size = (size_t)s->length + 1;
  ix->meta.text = (char *)gpuir__alloc(&ix->a, ix->meta.text_size);
  if (!ix->meta.text) return gpuir__fail_nomem(err);
  memcpy(ix->meta.text, ix->map + s->offset, (size_t)s->length);
  ix->meta.text[s->length] = 0;
  for (line = ix->meta.text; (end = strchr(line, '\n')) != NULL; line = end + 1) {
    char *value = strchr(line, '=');
    *end = 0;
    if (!value) continue;
    *value++ = 0;
    for (i = 0; i < GPUIR__META_KEYS && strcmp(line, gpuir__meta_keys[i].key) != 0; i++) {}
    if (i < GPUIR__META_KEYS) *gpuir__meta_value(&ix->meta, i) = value;
    else ix->strange = 1;
  }
  if (strlen(ix->meta.order) > GPUIR__ORDER_MAX) ix->meta.order = "";
  return GPUIR_OK;
}

/* Checks that this build makes the same terms of a query as the builder made of the documents, and that texts and
 * positions are there if and only if the meta section says so. */
static int gpuir__open_settings(const gpuir__segment *ix, gpuir_error *err) {
  const gpuir__index_meta *meta = &ix->meta;
  const char *revision = gpuir__analyzer_revision(meta->analyzer);
  const int texts = gpuir__has_texts(ix), positions = ix->section[GPUIR__S_POSITIONS] != NULL;
  if (strcmp(meta->analyzer_revision, revision))
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "%s: revision %.8s of analyzer \"%.20s\"; this build has %s",
        ix->path, *meta->analyzer_revision ? meta->analyzer_revision : "none", meta->analyzer, revision);
  if (strcmp(meta->fields, GPUIR__FIELDS))
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "%s: fields \"%.30s\"; this build has \"%s\"", ix->path,
        meta->fields, GPUIR__FIELDS);
  if ((strcmp(meta->store, "1") == 0) != texts) return gpuir__bad(ix, err, 0, "texts and meta section do not agree");
  if ((strcmp(meta->positions, "1") == 0) != positions)
    return gpuir__bad(ix, err, 0, "positions and meta section do not agree");
  return GPUIR_OK;
}

/* Maps an open file. */
static int gpuir__open_file(gpuir__segment *ix, int fd, const char *path, gpuir_error *err) {
  struct stat st;
  void *map;
  if (fstat(fd, &st)) return gpuir__fail_errno(err, path, "cannot stat");
  if (!S_ISREG(st.st_mode)) return gpuir__bad(ix, err, 0, "not a regular file");
  if (st.st_size == 0) return gpuir__bad(ix, err, 0, "not a gpuir index: the file is empty");
  if ((uint64_t)st.st_size > SIZE_MAX / 2)
    return gpuir__fail(err, GPUIR_E_LIMIT, 0, "%s: larger than this machine's address space", ix->path);
  ix->size = (uint64_t)st.st_size;
  ix->file = gpuir__identity_of(&st);
  map = mmap(NULL, (size_t)ix->size, PROT_READ, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED) return gpuir__fail_errno(err, path, "cannot map");
  ix->map = (const uint8_t *)map;
  ix->mapped = 1;
  return GPUIR_OK;
}

/* Maps the file at `path`, which if relative starts at the open folder. */
static int gpuir__open_map(gpuir__segment *ix, int folder, const char *path, gpuir_error *err) {
  const int fd = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* a pipe must not make it wait */
  int status;
  if (fd < 0) return gpuir__fail_errno(err, path, "cannot open");
  status = gpuir__open_file(ix, fd, path, err);
  (void)close(fd);
  return status;
}

/* Takes an index in the caller's memory. */
static int gpuir__open_memory(gpuir__segment *ix, const void *data, size_t size, gpuir_error *err) {
  if ((uintptr_t)data % 8) return gpuir__refuse(err, "%s: an index in memory must be aligned to 8 bytes", ix->path);
  ix->map = (const uint8_t *)data;
  ix->size = size;
  return GPUIR_OK;
}

/* Fills a segment that gpuir__segment_open has allocated; the caller closes it after a failure. */
static int gpuir__segment_fill(gpuir__segment *ix, int folder, const char *path, const gpuir_open_desc *desc,
    gpuir_error *err) {
  int status =
      desc && desc->data ? gpuir__open_memory(ix, desc->data, desc->size, err) : gpuir__open_map(ix, folder, path, err);
  if (!status) status = gpuir__open_table(ix, err);
  if (!status) status = gpuir__open_arrays(ix, err);
  if (!status) status = gpuir__open_meta(ix, err);
  if (!status) status = gpuir__open_settings(ix, err);
#ifndef GPUIR_NO_COLUMNS
  if (!status) status = gpuir__columns_open(ix, err);
#endif
  if (!status) status = gpuir__coding_check(ix->meta.codec, 1, ix->path, err);
  if (!status) status = gpuir__coding_check(ix->meta.freq_codec, 0, ix->path, err);
  return status;
}

/* Opens the file at `path`, which if relative starts at the open folder (AT_FDCWD: the current one), or the index in
 * memory that `desc` names, with one owner. */
GPUIR__COLD static int gpuir__segment_open(const gpuir_allocator *a, int folder, const char *path,
    const gpuir_open_desc *desc, gpuir__segment **segment, gpuir_error *err) {
  gpuir__segment *ix = (gpuir__segment *)gpuir__alloc_zero(a, sizeof *ix);
  int status;
  *segment = NULL;
  if (!ix || pthread_mutex_init(&ix->log.mutex, NULL)) {
    gpuir__free(a, ix, sizeof *ix);
    return gpuir__fail_nomem(err);
  }
  ix->a = *a;
  ix->refs = 1;
  ix->simd = gpuir__simd_level(desc ? desc->simd : GPUIR_SIMD_AUTO);
  (void)snprintf(ix->path, sizeof ix->path, "%.*s", (int)sizeof ix->path - 1, gpuir__tail(path));
  status = gpuir__segment_fill(ix, folder, path, desc, err);
  if (status) gpuir__segment_close(ix);
  else *segment = ix;
  return status;
}

/* ---- look-ups: nothing here trusts an offset of the file */

/* Fills *r with the record of term `id` (< terms); df is 0 where the file is damaged. */
static void gpuir__record_get(const gpuir__segment *ix, uint64_t id, gpuir__record *r) {
  gpuir__dict_block b;
  if (gpuir__dict_open(&ix->terms, id / GPUIR__DICT_BLOCK, &b))
    gpuir__dict_record(&ix->terms, &b, id % GPUIR__DICT_BLOCK, r);
  else memset(r, 0, sizeof *r);
}

/* Copies the bytes of term `id` (< terms) and a NUL behind them to term[], and returns how many they are: 0 where the
 * file is damaged. */
static size_t gpuir__term_get(const gpuir__segment *ix, uint64_t id, uint8_t term[GPUIR_MAX_TERM + 1]) {
  gpuir__dict_block b;
  if (gpuir__dict_open(&ix->terms, id / GPUIR__DICT_BLOCK, &b))
    return gpuir__dict_term(&b, id % GPUIR__DICT_BLOCK, term);
  term[0] = 0;
  return 0;
}

/* All terms in order, with their records: what reads every term goes by it. */
typedef struct gpuir__walk {
  const gpuir__segment *ix;
  gpuir__dict_block block; /* of the current term; n is 0 where it is damaged */
  gpuir__dict_records records;
  gpuir__dict_step step;
  uint64_t id, next; /* of the current term and of the one behind it */
  gpuir__record record;
  size_t len;
  uint8_t term[GPUIR_MAX_TERM + 1]; /* as gpuir__term_get has it */
} gpuir__walk;

/* Begins before the first term. */
static void gpuir__walk_start(gpuir__walk *w, const gpuir__segment *ix) {
  memset(w, 0, sizeof *w);
  w->ix = ix;
}

/* Opens the block that begins with the current term, and takes that term out of it. */
static void gpuir__walk_open(gpuir__walk *w) {
  const gpuir__dict *d = &w->ix->terms;
  w->len = 0;
  if (gpuir__dict_open(d, w->id / GPUIR__DICT_BLOCK, &w->block) &&
      gpuir__dict_open_records(d, &w->block, &w->records)) {
    w->step = gpuir__dict_first(&w->block);
    w->len = w->step.rest;
    memcpy(w->term, w->block.text, w->len);
  } else {
    w->block.n = 0;
    memset(&w->record, 0, sizeof w->record);
  }
}

/* Goes to the next term; 0 behind the last one. */
GPUIR__HOT static int gpuir__walk_next(gpuir__walk *w) {
  const unsigned i = w->next % GPUIR__DICT_BLOCK;
  w->id = w->next;
  if (w->id >= w->ix->stat.terms) return 0;
  w->next++;
  if (!i) gpuir__walk_open(w);
  if (w->block.n) {
    gpuir__dict_pick(&w->ix->terms, &w->records, i, &w->record);
    if (i && w->len)
      w->len =
          gpuir__dict_next(&w->block, i, &w->step) ? gpuir__dict_spell(&w->block, i, &w->step, w->term, w->len) : 0;
  }
  w->term[w->len] = 0;
  return 1;
}

/* Returns the least term id whose term is >= term[0..len). */
static uint64_t gpuir__term_lower_bound(const gpuir__segment *ix, const char *term, size_t len) {
  int found;
  return gpuir__dict_find(&ix->terms, term, len, &found);
}

#define GPUIR__NO_TERM UINT32_MAX
#define GPUIR__LOOKS 8u /* look-ups that wait together; more gained nothing */

/* Look-ups of several terms, in any segments. Zeros are none. */
typedef struct gpuir__looks {
  unsigned n;
  const gpuir__segment *seg[GPUIR__LOOKS];
  uint32_t *id[GPUIR__LOOKS];
  gpuir__dict_look look[GPUIR__LOOKS];
} gpuir__looks;

/* Ends those that have begun: each writes the term's number, or GPUIR__NO_TERM. */
static void gpuir__looks_end(gpuir__looks *l) {
  unsigned i;
  for (i = 0; i < l->n; i++) gpuir__dict_descend(&l->seg[i]->terms, &l->look[i], l->seg[i]->terms.levels);
  for (i = 0; i < l->n; i++) {
    int found;
    const uint64_t id = gpuir__dict_end(&l->seg[i]->terms, &l->look[i], &found);
    *l->id[i] = found ? (uint32_t)id : GPUIR__NO_TERM;
  }
  l->n = 0;
}

/* Begins one more, whose number goes to *id at the latest when all end. */
static void gpuir__looks_add(gpuir__looks *l, const gpuir__segment *seg, const char *term, size_t len, uint32_t *id) {
  *id = GPUIR__NO_TERM;
  if (!len || len > GPUIR_MAX_TERM) return;
  if (l->n == GPUIR__LOOKS) gpuir__looks_end(l);
  l->seg[l->n] = seg;
  l->id[l->n] = id;
  gpuir__dict_begin(&seg->terms, term, len, &l->look[l->n]);
  if (seg->terms.levels) gpuir__dict_descend(&seg->terms, &l->look[l->n], seg->terms.levels - 1);
  l->n++;
}

/* Finds a term by its bytes. 0 or NOT_FOUND. */
static int gpuir__term_find(const gpuir__segment *ix, const char *term, size_t len, uint64_t *id) {
  uint64_t at;
  int found;
  if (!len || len > GPUIR_MAX_TERM) return GPUIR_E_NOT_FOUND;
  at = gpuir__dict_find(&ix->terms, term, len, &found);
  if (!found) return GPUIR_E_NOT_FOUND;
  *id = at;
  return GPUIR_OK;
}

static void gpuir__list_close(const gpuir_allocator *a, gpuir__list *l) {
  gpuir__free(a, l->memory, l->memory_size);
  l->memory = NULL;
}

/* Opens the streams' codecs, with scratch if they need any. */
static int gpuir__list_open_codecs(const gpuir_allocator *a, gpuir__list *l) {
  const gpuir__codec *d = l->docs.codec, *f = l->freqs.codec;
  size_t nd = d->scratch_size ? (d->scratch_size(&l->docs) + 63) & ~(size_t)63 : 0;
  size_t nf = f->scratch_size ? f->scratch_size(&l->freqs) : 0;
  int status = GPUIR_OK;
  if (nd + nf) {
    l->memory_size = nd + nf;
    l->memory = gpuir__alloc(a, l->memory_size);
    if (!l->memory) return GPUIR_E_NOMEM;
    l->docs.scratch = l->memory;
    l->freqs.scratch = (uint8_t *)l->memory + nd;
  }
  if (d->open) status = d->open(&l->docs);
  if (!status && f->open) status = f->open(&l->freqs);
  if (status) gpuir__list_close(a, l);
  return status;
}

/* Finds the lines of a long list, if it is one of the dense ones, whose numbers ascend but in a damaged file. */
static void gpuir__list_open_dense(const gpuir__segment *ix, uint32_t number, gpuir__list *l) {
  const gpuir__index_dense *x = &ix->dense;
  const uint64_t lines = gpuir__dense_lines(ix->stat.documents);
  uint64_t lo = 0, n = x->n;
  while (n > 1) {
    const uint64_t half = n / 2;
    lo = x->lists[lo + half] <= number ? lo + half : lo;
    n -= half;
  }
  if (!n || x->lists[lo] != number) return;
  l->dense.bits = x->lines.bits + lo * lines;
  l->dense.rank = x->lines.rank + lo * lines;
  l->dense.peaks = x->lines.peaks + lo * lines;
}

/* Fills a long list with its extent, directory and streams. */
static int gpuir__list_open_long(const gpuir__segment *ix, const gpuir__record *r, gpuir__list *l) {
  const gpuir__long *x;
  uint64_t docids = ix->section[GPUIR__S_DOCIDS]->length, freqs = ix->section[GPUIR__S_FREQS]->length;
  if (r->docs >= ix->stat.longs) return GPUIR_E_FORMAT;
  x = &ix->lists.longs[r->docs];
  if (x->docs > docids || x->docs_len > docids - x->docs || x->freqs > freqs || x->freqs_len > freqs - x->freqs ||
      x->first_block > ix->stat.blocks || l->nblocks > ix->stat.blocks - x->first_block)
    return GPUIR_E_FORMAT;
  l->extent = x;
  l->last = ix->lists.last + x->first_block;
  l->bounds = ix->lists.bounds + x->first_block;
  if (x->seeds && x->seeds <= ix->lists.nseeds) l->seeds = ix->lists.seeds + (uint64_t)(x->seeds - 1) * GPUIR__SEEDS;
  l->docs.bytes = ix->lists.docids + x->docs;
  l->docs.len = x->docs_len;
  l->docs.offset = ix->lists.docs_off + x->first_block;
  l->docs.width = ix->lists.docs_width + x->first_block;
  l->docs.last = l->last;
  l->freqs.bytes = ix->lists.freqs + x->freqs;
  l->freqs.len = x->freqs_len;
  l->freqs.offset = ix->lists.freqs_off + x->first_block;
  l->freqs.width = ix->lists.freqs_width + x->first_block;
  if (l->positions) l->positions_off = ix->lists.positions_off + x->first_block;
  if ((uint64_t)r->df * GPUIR__DENSE_MOST >= ix->stat.documents) gpuir__list_open_dense(ix, (uint32_t)r->docs, l);
  return GPUIR_OK;
}

/* Finds the postings that a record stands for; their codecs are not open. 0, FORMAT, UNSUPPORTED. */
static int gpuir__list_of(const gpuir__segment *ix, const gpuir__record *r, gpuir__list *l) {
  int status = GPUIR_OK;
  memset(l, 0, sizeof *l);
  l->df = r->df;
  l->nblocks = r->df ? (r->df - 1) / GPUIR__BLOCK + 1 : 0;
  if (!r->df || r->df > ix->stat.documents) return GPUIR_E_FORMAT;
  if (ix->lists.positions) {
    const uint64_t most = ix->section[GPUIR__S_POSITIONS]->length;
    if (r->positions > most || r->positions_len > most - r->positions) return GPUIR_E_FORMAT;
    l->positions = ix->lists.positions + r->positions;
    l->positions_len = r->positions_len;
  }
  if (r->df == 1) {
    l->one_docid = (uint32_t)gpuir__min64(r->docs, ix->stat.documents - 1);
    l->one_tf = (uint32_t)gpuir__max64(1, gpuir__min64(r->freqs, UINT32_MAX));
    return GPUIR_OK;
  }
  l->docs.codec = gpuir__codec_by_id(r->codec, 1);
  l->freqs.codec = gpuir__codec_by_id(r->freq_codec, 0);
  if (!l->docs.codec || !l->freqs.codec) return GPUIR_E_UNSUPPORTED;
  l->docs.n = l->freqs.n = r->df;
  l->docs.limit = (uint32_t)(ix->stat.documents - 1);
  l->freqs.limit = UINT32_MAX;
  l->docs.kernels = l->freqs.kernels = gpuir__codec_kernels_at(ix->simd);
  if (r->df > GPUIR__SHORT_MAX) {
    status = gpuir__list_open_long(ix, r, l);
  } else {
    uint64_t docids = ix->section[GPUIR__S_DOCIDS]->length - ix->stat.docs_short;
    uint64_t freqs = ix->section[GPUIR__S_FREQS]->length - ix->stat.freqs_short;
    if (r->docs > docids || r->docs_len > docids - r->docs || r->freqs > freqs || r->freqs_len > freqs - r->freqs)
      return GPUIR_E_FORMAT;
    l->docs.bytes = ix->lists.docids + ix->stat.docs_short + r->docs;
    l->docs.len = r->docs_len;
    l->freqs.bytes = ix->lists.freqs + ix->stat.freqs_short + r->freqs;
    l->freqs.len = r->freqs_len;
  }
  return status;
}

/* Opens the postings that a record stands for. Scratch comes from `a`. 0, FORMAT, UNSUPPORTED, NOMEM. */
static int gpuir__list_open_record(const gpuir__segment *ix, const gpuir_allocator *a, const gpuir__record *r,
    gpuir__list *l) {
  const int status = gpuir__list_of(ix, r, l);
  return status || l->df == 1 ? status : gpuir__list_open_codecs(a, l);
}

/* Opens the postings of term `id` (< terms) likewise. */
GPUIR__NOINLINE int gpuir__list_open(const gpuir__segment *ix, const gpuir_allocator *a, uint64_t id, gpuir__list *l) {
  gpuir__record r;
  gpuir__record_get(ix, id, &r);
  return gpuir__list_open_record(ix, a, &r, l);
}

/* Prefetches what a list is opened from. To be inlined: gcc takes a call of a function that only prefetches for one
 * without effect. */
GPUIR__INLINE void gpuir__list_prefetch(const gpuir__segment *ix, const gpuir__record *r) {
  if (r->df > GPUIR__SHORT_MAX && r->docs < ix->stat.longs) __builtin_prefetch(&ix->lists.longs[r->docs]);
}

/* Prefetches where a list begins, of which gpuir__list_prefetch has fetched the rest; `docs`: its docIDs alone. Of
 * these it takes what gpuir__list_prefetch_docs does not; a short list has 150 bytes or so. */
GPUIR__INLINE void gpuir__list_prefetch_start(const gpuir__segment *ix, const gpuir__record *r, int docs) {
  uint32_t i;
  if (r->df > GPUIR__SHORT_MAX && r->docs < ix->stat.longs) {
    const gpuir__long *x = &ix->lists.longs[r->docs];
    for (i = 0; i < gpuir__min32(r->df / GPUIR__BLOCK, 256); i += 16) {
      GPUIR__PREFETCH(ix->lists.last, x->first_block + i);
      GPUIR__PREFETCH(ix->lists.docs_off, x->first_block + i);
      if (!docs) GPUIR__PREFETCH(ix->lists.bounds, x->first_block + i);
    }
    for (i = 0; i < 256; i += 64) GPUIR__PREFETCH(ix->lists.docs_width, x->first_block + i);
    for (i = 0; i < 384; i += 64) GPUIR__PREFETCH(ix->lists.docids, x->docs + i);
    if (docs) return;
    GPUIR__PREFETCH(ix->lists.freqs_off, x->first_block);
    GPUIR__PREFETCH(ix->lists.freqs_width, x->first_block);
    GPUIR__PREFETCH(ix->lists.freqs, x->freqs);
  } else if (r->df > 1) {
    for (i = 0; i < 192; i += 64) GPUIR__PREFETCH(ix->lists.docids, ix->stat.docs_short + r->docs + i);
    if (!docs) GPUIR__PREFETCH(ix->lists.freqs, ix->stat.freqs_short + r->freqs);
  }
}

/* Returns words for the status with which gpuir__list_open has failed for term `id` (< terms). */
static const char *gpuir__list_why(const gpuir__segment *ix, uint64_t id, int status) {
  gpuir__record r;
  const char *words = NULL;
  if (status == GPUIR_E_UNSUPPORTED) {
    gpuir__record_get(ix, id, &r);
    words = gpuir__codec_left_out(NULL, 0, r.codec, 1);
    if (!words) words = gpuir__codec_left_out(NULL, 0, r.freq_codec, 0);
  }
  return words ? words : gpuir_strerror(status);
}

/* Returns the bytes [starts[i], starts[i + 1]) of a section; *len is 0 where the offsets make no sense. */
static const char *gpuir__slice(const gpuir__segment *ix, uint32_t bytes_id, uint32_t starts_id, uint64_t i,
    size_t *len) {
  const gpuir__section *bytes = ix->section[bytes_id], *starts = ix->section[starts_id];
  const unsigned width = gpuir__start_width(bytes->length);
  const uint8_t *s = ix->map + starts->offset;
  uint64_t start, end;
  *len = 0;
  if (i + 1 >= gpuir__starts_count(bytes, starts)) return "";
  start = gpuir__load_number(s + i * width, width);
  end = gpuir__load_number(s + (i + 1) * width, width);
  if (start > end || end > bytes->length) return "";
  *len = (size_t)(end - start);
  return (const char *)ix->map + bytes->offset + start;
}

/* Puts the end of the source's path before the name that the names section has. The section of stems says, of each
 * source, where in its path (in bytes, plus 1) that end begins; 0: its documents' names are whole. */
static int gpuir__join_name(const gpuir__segment *ix, uint32_t source, gpuir_doc *doc) {
  uint32_t stem = gpuir__load32(ix->map + ix->section[GPUIR__S_STEMS]->offset + (uint64_t)source * 4);
  size_t n;
  if (!stem) return GPUIR_OK;
  if (stem > doc->source_len) return GPUIR_E_FORMAT;
  n = doc->source_len - (stem - 1);
  if (doc->name_len) { /* otherwise that end is the name, in one piece */
    if (doc->name_len > GPUIR__JOINED_MAX || n > GPUIR__JOINED_MAX - doc->name_len) return GPUIR_E_FORMAT;
    doc->name_piece[1] = doc->name_piece[0];
    doc->name_piece_len[1] = doc->name_piece_len[0];
  }
  doc->name_piece[0] = doc->source + (stem - 1);
  doc->name_piece_len[0] = n;
  doc->name_len += n;
  return GPUIR_OK;
}

GPUIR_API size_t gpuir_doc_name(const gpuir_doc *doc, char *buf, size_t cap) {
  size_t at = 0, i;
  if (!doc) return 0;
  for (i = 0; buf && cap && i < 2; i++) {
    size_t n = doc->name_piece_len[i] < cap - 1 - at ? doc->name_piece_len[i] : cap - 1 - at;
    if (n) memcpy(buf + at, doc->name_piece[i], n);
    at += n;
  }
  if (buf && cap) buf[at] = 0;
  return doc->name_len;
}

/* Fills in where a document comes from. 0 or FORMAT. */
static int gpuir__segment_origin(const gpuir__segment *ix, uint32_t docid, gpuir_doc *doc) {
  const gpuir__section *const *s = ix->section;
  const uint8_t *width = ix->map + s[GPUIR__S_ORIGINS]->offset, *p = width + GPUIR__ORIGINS_HEAD;
  gpuir__origin o;
  uint64_t source;
  unsigned i;
  p += (uint64_t)docid * gpuir__origins_row(ix);
  for (i = 0; i < GPUIR__O_COUNT; p += width[i++]) o.of[i] = gpuir__load_number(p, width[i]);
  source = o.of[GPUIR__O_SOURCE];
  if (!source) return GPUIR_OK;
  if (source >= gpuir__starts_count(s[GPUIR__S_SOURCES], s[GPUIR__S_SOURCE_START])) return GPUIR_E_FORMAT;
  doc->source = gpuir__slice(ix, GPUIR__S_SOURCES, GPUIR__S_SOURCE_START, source - 1, &doc->source_len);
  doc->first_line = (uint32_t)o.of[GPUIR__O_LINE];
  doc->last_line = doc->first_line + (uint32_t)o.of[GPUIR__O_LINES];
  doc->source_offset = o.of[GPUIR__O_OFFSET];
  doc->source_bytes = o.of[GPUIR__O_BYTES];
  doc->form = (uint32_t)o.of[GPUIR__O_FORM];
  if (doc->source_bytes > UINT64_MAX - doc->source_offset) return GPUIR_E_FORMAT;
  return s[GPUIR__S_STEMS] ? gpuir__join_name(ix, (uint32_t)(source - 1), doc) : GPUIR_OK;
}

/* Describes the segment's document `docid`. 0, NOT_FOUND, FORMAT. */
static int gpuir__segment_doc(const gpuir__segment *ix, uint32_t docid, gpuir_doc *doc) {
  memset(doc, 0, sizeof *doc);
  doc->name_piece[0] = doc->name_piece[1] = doc->source = "";
  if (docid >= ix->stat.documents) return GPUIR_E_NOT_FOUND;
  doc->name_piece[0] = gpuir__slice(ix, GPUIR__S_NAMES, GPUIR__S_NAME_START, docid, &doc->name_len);
  doc->name_piece_len[0] = doc->name_len;
  doc->length = ix->lengths[docid];
  if (ix->section[GPUIR__S_ORIGINS] && gpuir__segment_origin(ix, docid, doc)) return GPUIR_E_FORMAT;
  if (ix->section[GPUIR__S_HASHES])
    doc->hash = gpuir__load64(ix->map + ix->section[GPUIR__S_HASHES]->offset + (uint64_t)docid * 8);
#ifndef GPUIR_NO_STORE
  if (ix->section[GPUIR__S_TEXT]) {
    doc->text = gpuir__slice(ix, GPUIR__S_TEXT, GPUIR__S_TEXT_START, docid, &doc->text_len);
    doc->stored_bytes = doc->text_len;
  } else if (ix->section[GPUIR__S_PACKED]) {
    const uint64_t start = gpuir__text_at(ix, docid), end = gpuir__text_at(ix, (uint64_t)docid + 1);
    if (start > end || end > gpuir__text_at(ix, ix->stat.documents)) return GPUIR_E_FORMAT;
    doc->stored_bytes = end - start;
  }
  doc->stored = gpuir__has_texts(ix);
#endif
  return GPUIR_OK;
}

#ifndef GPUIR_NO_STORE
/* A block of packed texts, as far as it was unpacked. Who reads documents one after the other keeps it, and lets blocks
 * be unpacked whole. */
typedef struct gpuir__text_block {
  uint64_t number; /* 1 + the block's; 0: none */
  int whole;
  uint8_t text[GPUIR__TEXT_BLOCK + GPUIR__TEXT_SLACK];
} gpuir__text_block;

/* Unpacks at least `want` bytes of block `number`, unless it is there. 0 or FORMAT. */
static int gpuir__segment_block(const gpuir__segment *ix, uint64_t number, size_t want, gpuir__text_block *block) {
  const uint64_t left = gpuir__text_at(ix, ix->stat.documents) - number * GPUIR__TEXT_BLOCK;
  const size_t size = (size_t)gpuir__min64(left, GPUIR__TEXT_BLOCK);
  const uint8_t *in;
  size_t packed;
  if (block->number == number + 1) return GPUIR_OK;
  in = (const uint8_t *)gpuir__slice(ix, GPUIR__S_PACKED, GPUIR__S_PACKED_START, number, &packed);
  block->number = 0;
  if (!gpuir__text_unpack(in, packed, block->whole ? size : want, size, block->text)) return GPUIR_E_FORMAT;
  block->number = block->whole ? number + 1 : 0;
  return GPUIR_OK;
}

/* Copies bytes [from, from + n) of a document's stored text, within it as *doc says, to `out`. 0 or FORMAT. */
static int gpuir__segment_text(const gpuir__segment *ix, uint32_t docid, const gpuir_doc *doc, gpuir__text_block *block,
    uint64_t from, char *out, size_t n) {
  uint64_t at;
  if (doc->text) {
    if (n) memcpy(out, doc->text + from, n);
    return GPUIR_OK;
  }
  for (at = n ? gpuir__text_at(ix, docid) + from : 0; n;) {
    const size_t skip = (size_t)(at % GPUIR__TEXT_BLOCK);
    const size_t some = n < GPUIR__TEXT_BLOCK - skip ? n : GPUIR__TEXT_BLOCK - skip;
    const int status = gpuir__segment_block(ix, at / GPUIR__TEXT_BLOCK, skip + some, block);
    if (status) return status;
    memcpy(out, block->text + skip, some);
    at += some;
    out += some;
    n -= some;
  }
  return GPUIR_OK;
}
#endif

/* Adds the bytes of the sections up by their groups. */
static void gpuir__section_sums(const gpuir__segment *ix, uint64_t sums[GPUIR__G_COUNT]) {
  unsigned i;
  memset(sums, 0, GPUIR__G_COUNT * sizeof *sums);
  for (i = 0; i < GPUIR__SECTION_ROWS; i++) {
    const gpuir__section *s = ix->section[gpuir__section_rows[i].id];
    if (s) sums[gpuir__section_rows[i].group] += s->length;
  }
}

/* Returns the sum of a list's frequencies. */
static uint64_t gpuir__list_cf(const gpuir__list *l) {
  uint32_t values[GPUIR__BLOCK_ROOM], block, i, n;
  uint64_t cf = 0;
  for (block = 0; block < l->nblocks; block++) {
    gpuir__list_freqs(l, block, values);
    n = gpuir__list_block_len(l, block);
    for (i = 0; i < n; i++) cf += (uint64_t)values[i] + 1;
  }
  return cf;
}

/* Whether the bytes of a list's positions can hold so many. A number that a damaged file states, and that somebody
 * makes room for, is held against this first. */
static int gpuir__list_holds(const gpuir__list *l, uint64_t cf) {
  return !l->positions || cf <= l->positions_len * (uint64_t)GPUIR__CHUNK;
}

/* Returns the documents that an idf counts. */
static inline uint64_t gpuir__segment_collection(const gpuir__segment *ix) {
  return ix->shard ? ix->shard->documents : ix->stat.documents;
}

/* Returns in how many of these a term is that is in df of the segment's. */
static inline uint32_t gpuir__segment_df(const gpuir__segment *ix, uint64_t id, uint32_t df) {
  if (!ix->dfs) return df;
  return gpuir__max32(df, (uint32_t)gpuir__min64(ix->dfs[id], ix->shard->documents));
}

/* Describes term `id`. 0, NOT_FOUND, FORMAT, NOMEM, UNSUPPORTED. */
static int gpuir__segment_term(const gpuir__segment *ix, uint64_t id, gpuir_term_info *info) {
  gpuir__list l;
  int status;
  if (id >= ix->stat.terms) return GPUIR_E_NOT_FOUND;
  status = gpuir__list_open(ix, &ix->a, id, &l);
  if (status) return status;
  info->id = id;
  info->term_len = gpuir__term_get(ix, id, (uint8_t *)info->term);
  info->df = l.df;
  info->idf = gpuir__idf(gpuir__segment_collection(ix), gpuir__segment_df(ix, id, l.df));
  info->blocks = l.nblocks;
  info->cf = l.extent ? l.extent->cf : gpuir__list_cf(&l);
  info->codec = l.df == 1 ? "inline" : l.docs.codec->name;
  info->freq_codec = l.df == 1 ? "inline" : l.freqs.codec->name;
  info->docids_bytes = l.docs.len;
  info->freqs_bytes = l.freqs.len;
  info->positions_bytes = l.positions_len;
  if (l.extent)
    info->directory_bytes = sizeof *l.extent + (uint64_t)l.nblocks * (4 * 4 + 2 + (l.positions_off ? 4u : 0u));
  status = gpuir__list_holds(&l, info->cf) ? GPUIR_OK : GPUIR_E_FORMAT;
  gpuir__list_close(&ix->a, &l);
  return status;
}

/* Decodes term `id`'s list to docids[0..df) and tfs[0..df), of which one may be NULL. 0, or as gpuir__segment_term. */
GPUIR__COLD static int gpuir__segment_postings(const gpuir__segment *ix, uint64_t id, uint32_t *docids, uint32_t *tfs) {
  uint32_t docs[GPUIR__BLOCK_ROOM], freqs[GPUIR__BLOCK_ROOM], block, i, n, at = 0;
  uint64_t next = 0; /* the least docID that may follow */
  gpuir__list l;
  int status;
  if (id >= ix->stat.terms) return GPUIR_E_NOT_FOUND;
  status = gpuir__list_open(ix, &ix->a, id, &l);
  if (status) return status;
  for (block = 0; block < l.nblocks && !status; block++) {
    n = gpuir__list_docs(&l, block, docs);
    for (i = 0; i < n; i++) {
      if (docs[i] < next || docs[i] >= ix->stat.documents) status = GPUIR_E_FORMAT;
      next = (uint64_t)docs[i] + 1;
    }
    if (docids) memcpy(docids + at, docs, (size_t)n * 4);
    if (tfs) gpuir__list_freqs(&l, block, freqs);
    for (i = 0; tfs && i < n; i++) {
      if (freqs[i] == UINT32_MAX) status = GPUIR_E_FORMAT;
      tfs[at + i] = freqs[i] + 1;
    }
    at += n;
  }
  gpuir__list_close(&ix->a, &l);
  return status;
}

/* Decodes the positions of block `block` behind at[0..left); returns how many they are, or 0 if they are more, fewer
 * than the frequencies say, do not ascend, or lie behind their documents' ends. */
static uint64_t gpuir__block_positions(const gpuir__segment *ix, const gpuir__list *l, uint32_t block, uint32_t *at,
    uint64_t left) {
  uint32_t docs[GPUIR__BLOCK_ROOM], freqs[GPUIR__BLOCK_ROOM];
  const uint32_t n = gpuir__list_docs(l, block, docs);
  uint64_t gap = 0;
  gpuir__positions p;
  uint32_t i;
  gpuir__list_freqs(l, block, freqs);
  gpuir__positions_open(&p, l, block, freqs, n);
  for (i = 0; i < n; i++) {
    uint32_t before = 0, x;
    gpuir__occurrences w;
    const uint64_t end = gap + 1 + freqs[i];
    if (end > left || docs[i] >= ix->stat.documents) return 0;
    while (!gpuir__positions_seek(&p, gap)) {}
    gpuir__occurrences_open(&w, &p, gap, freqs[i], UINT32_MAX);
    while ((x = gpuir__occurrences_next(&w)) != GPUIR_END) {
      if (x >= ix->lengths[docs[i]] || (before && x < before)) return 0;
      before = x + 1;
      at[gap++] = x;
    }
    if (gap != end) return 0;
  }
  return gap;
}

/* Decodes a term's positions: see gpuir_term_positions. */
GPUIR__COLD static int gpuir__segment_positions(const gpuir__segment *ix, uint64_t id, uint32_t *positions,
    uint64_t n) {
  gpuir__list l;
  uint64_t at = 0, got;
  uint32_t block;
  int status;
  if (id >= ix->stat.terms) return GPUIR_E_NOT_FOUND;
  if (!ix->lists.positions) return GPUIR_E_UNSUPPORTED;
  status = gpuir__list_open(ix, &ix->a, id, &l);
  if (status) return status;
  if (n != gpuir__list_cf(&l)) status = GPUIR_E_ARGUMENT;
  for (block = 0; block < l.nblocks && !status; block++) {
    got = gpuir__block_positions(ix, &l, block, positions + at, n - at);
    if (!got) status = GPUIR_E_FORMAT;
    at += got;
  }
  gpuir__list_close(&ix->a, &l);
  return status;
}

/* A negative array length if a table of codecs outgrows what is promised. */
typedef char gpuir__codecs_fit[GPUIR__DOCID_CODECS <= GPUIR_MAX_CODECS ? 1 : -1];

#ifndef GPUIR_NO_LAB
/* Adds the lists to those of their codecs, in the order of the table of docIDs' or of frequencies' codecs. 0, FORMAT,
 * UNSUPPORTED. */
static int gpuir__segment_codecs(const gpuir__segment *ix, int docids, gpuir_codec_info all[GPUIR_MAX_CODECS]) {
  const gpuir__codec *table = docids ? gpuir__docid_codecs : gpuir__freq_codecs;
  gpuir__walk w;
  for (gpuir__walk_start(&w, ix); gpuir__walk_next(&w);) {
    const gpuir__record *r = &w.record;
    const gpuir__codec *c;
    gpuir_codec_info *x;
    if (r->df == 1) continue;
    c = gpuir__codec_by_id(docids ? r->codec : r->freq_codec, docids);
    if (!c) return GPUIR_E_UNSUPPORTED;
    x = &all[c - table];
    x->lists++;
    x->postings += r->df;
    if (r->df <= GPUIR__SHORT_MAX) {
      x->bytes += docids ? r->docs_len : r->freqs_len;
    } else {
      if (r->docs >= ix->stat.longs) return GPUIR_E_FORMAT;
      x->bytes += docids ? ix->lists.longs[r->docs].docs_len : ix->lists.longs[r->docs].freqs_len;
    }
  }
  return GPUIR_OK;
}
#endif
