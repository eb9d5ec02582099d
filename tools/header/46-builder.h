
/* ========
 * [46-builder]  builder: an index from postings; writing, making and unmaking
 *
 * Uses      [19-bp128], [23-codings], [26-dense], [28-encoder], [30-analysis], [32-dictionary], [33-analyzers],
 *           [34-fields], [37-layout], [39-writer], [41-reader], [42-snapshot], [44-inversion], [45-merge].
 * Start at  gpuir_builder_create, gpuir_builder_write, gpuir_builder_add_list, gpuir_shard_write.
 * Tests     tests/unit/46_builder.c; of shards: tests/unit/shards.c
 * ======*/

/* ---- an index from postings */

static int gpuir__builder_put_doc(gpuir_builder *b, const gpuir_doc_desc *doc, uint32_t length, const char *text,
    size_t len, gpuir_error *err) {
  gpuir_doc_desc none;
  int status;
  memset(&none, 0, sizeof none);
  status = gpuir__writer_put_doc(b->writer, doc ? doc : &none, text, len, err);
  if (!status) status = gpuir__writer_put_lengths(b->writer, &length, 1, err);
  if (status) return status;
  b->told.done.documents++;
  b->told.done.bytes += len;
  return gpuir__builder_tell_added(b, err);
}

GPUIR_API int gpuir_builder_add_doc(gpuir_builder *builder, const gpuir_doc_desc *doc, uint32_t length,
    const char *text, size_t len, gpuir_error *err) {
  gpuir_builder *b = builder;
  gpuir_error local = {0, 0, ""};
  int status = gpuir__builder_ready(b, err);
  if (status) return status;
  if (b->phase != GPUIR__EMPTY && b->phase != GPUIR__FROM_DOCS)
    return gpuir__refuse(err, "%s",
        b->phase == GPUIR__FROM_LISTS ? "a document behind the first list"
                                      : "this index is being made from documents' text");
  status = gpuir__builder_check_doc(b, doc, err);
  if (status) return status;
  b->phase = GPUIR__FROM_DOCS;
  status = gpuir__builder_put_doc(b, doc, length, text, text ? len : 0, &local);
  return gpuir__builder_end(b, status, err, &local);
}

/* A list as it is given to the builder. */
typedef struct gpuir__given {
  const char *term;
  size_t len;
  const uint32_t *docids, *tfs, *positions; /* positions: NULL, or tfs[i] of posting i, one posting behind the other */
  uint32_t df;
} gpuir__given;

/* Writes posting i as runs have it; its positions begin at `positions`, which may be NULL. */
static uint8_t *gpuir__given_put(const gpuir__given *g, uint32_t i, const uint32_t *positions, uint8_t *p) {
  const uint32_t gap = g->docids[i] - (i ? g->docids[i - 1] : 0);
  uint32_t j;
  if (!positions) return gpuir__put_posting(p, gap, g->tfs[i]);
  p = gpuir__put_occurrence(p, 1, positions[0], gap);
  for (j = 1; j < g->tfs[i]; j++) p = gpuir__put_occurrence(p, 0, positions[j] - positions[j - 1] - 1, 0);
  return p;
}

/* Bytes of a posting that gpuir__given_put writes. */
static uint64_t gpuir__given_size(const gpuir__given *g, uint32_t i, const uint32_t *positions) {
  uint8_t bytes[GPUIR__POSTING_MAX];
  const uint32_t gap = g->docids[i] - (i ? g->docids[i - 1] : 0);
  uint64_t size;
  uint32_t j;
  if (!positions) return (uint64_t)(gpuir__put_posting(bytes, gap, g->tfs[i]) - bytes);
  size = (uint64_t)(gpuir__put_occurrence(bytes, 1, positions[0], gap) - bytes);
  for (j = 1; j < g->tfs[i]; j++)
    size += (uint64_t)(gpuir__put_occurrence(bytes, 0, positions[j] - positions[j - 1] - 1, 0) - bytes);
  return size;
}

/* Returns what is wrong with posting i, or NULL. */
static const char *gpuir__given_wrong(const gpuir__given *g, uint32_t i, const uint32_t *positions, uint64_t ndocs) {
  uint32_t j;
  if (g->docids[i] >= ndocs) return "names no document";
  if (i && g->docids[i] <= g->docids[i - 1]) return "does not ascend";
  if (!g->tfs[i]) return "has tf 0";
  for (j = 1; positions && j < g->tfs[i]; j++)
    if (positions[j] <= positions[j - 1]) return "has positions that do not ascend";
  return NULL;
}

/* Bytes of a list as runs have it, or 0 when it is not a list of this index (*err says why). */
static uint64_t gpuir__list_bytes(const gpuir__given *g, uint64_t ndocs, gpuir_error *err) {
  const uint32_t *positions = g->positions;
  uint64_t bytes = 0;
  uint32_t i;
  for (i = 0; i < g->df; i++) {
    const char *wrong = gpuir__given_wrong(g, i, positions, ndocs);
    if (wrong) {
      (void)gpuir__refuse(err, "posting %lu of the list, docID %lu, %s", (unsigned long)i, (unsigned long)g->docids[i],
          wrong);
      return 0;
    }
    bytes += gpuir__given_size(g, i, positions);
    if (positions) positions += g->tfs[i];
  }
  return bytes;
}

/* Checks that no position lies behind its document's last token. */
static int gpuir__list_in_lengths(const gpuir__given *g, const uint32_t *lengths, gpuir_error *err) {
  const uint32_t *positions = g->positions;
  uint32_t i;
  for (i = 0; positions && i < g->df; i++) {
    positions += g->tfs[i];
    if (positions[-1] >= lengths[g->docids[i]])
      return gpuir__refuse(err, "posting %lu of the list, docID %lu, has a position behind the document's end",
          (unsigned long)i, (unsigned long)g->docids[i]);
  }
  return GPUIR_OK;
}

/* Appends a list of so many bytes to the open unit. */
static int gpuir__builder_put_list(gpuir_builder *b, const gpuir__given *g, uint64_t bytes, gpuir_error *err) {
  gpuir__unit *u = b->merge.unit;
  gpuir__item item;
  gpuir__part part;
  const uint32_t *positions = g->positions;
  uint8_t *p;
  uint32_t i;
  int status;
  if (u && b->threads.nworkers > 1 && !b->tasks.queue.pushed && !b->threads.nthreads &&
      u->used + u->items.len + u->parts.len + bytes > b->tasks.size / 2)
    gpuir__builder_start(b); /* before the first unit that is full leaves */
  status = gpuir__builder_unit_room(b, &b->merge.unit, bytes, err);
  if (status) return status;
  u = b->merge.unit;
  memset(&item, 0, sizeof item);
  memset(&part, 0, sizeof part);
  item.df = g->df;
  item.bytes = positions ? bytes : 0;
  item.parts = 1;
  item.term_len = (uint32_t)g->len;
  part.at = u->used;
  part.len = bytes;
  if (gpuir__buf_put(&b->a, &u->terms, g->term, g->len) || gpuir__buf_put(&b->a, &u->items, &item, sizeof item) ||
      gpuir__buf_put(&b->a, &u->parts, &part, sizeof part))
    return gpuir__fail_nomem(err);
  b->merge.last_term.len = 0;
  if (gpuir__buf_put(&b->a, &b->merge.last_term, g->term, g->len)) return gpuir__fail_nomem(err);
  p = u->bytes.data + u->used;
  for (i = 0; i < g->df; i++) {
    p = gpuir__given_put(g, i, positions, p);
    if (positions) positions += g->tfs[i];
  }
  u->used += bytes;
  u->nterms++;
  u->postings += g->df;
  return GPUIR_OK;
}

GPUIR_API int gpuir_builder_add_list(gpuir_builder *builder, const char *term, size_t len, const uint32_t *docids,
    const uint32_t *tfs, const uint32_t *positions, uint32_t df, gpuir_error *err) {
  gpuir_builder *b = builder;
  const gpuir__given given = {term, len, docids, tfs, positions, df};
  gpuir_error local = {0, 0, ""};
  uint64_t bytes;
  int status = gpuir__builder_ready(b, err);
  if (status) return status;
  if (b->phase != GPUIR__FROM_DOCS && b->phase != GPUIR__FROM_LISTS)
    return gpuir__refuse(err, "a list before gpuir_builder_add_doc added a document");
  if (!term || !len || len > GPUIR_MAX_TERM)
    return gpuir__refuse(err, "a term has 1 to %d bytes, this one %lu", GPUIR_MAX_TERM,
        (unsigned long)(term ? len : 0));
  if (!docids || !tfs || !df) return gpuir__refuse(err, "a list without postings");
  if (!positions != !b->set.positions)
    return gpuir__refuse(err, positions ? "positions for an index that keeps none" : "a list without its positions");
  if (b->merge.last_term.len && gpuir__compare_bytes(b->merge.last_term.data, b->merge.last_term.len, term, len) >= 0)
    return gpuir__refuse(err, "the term '%.*s' does not come behind the one before it", len < 60 ? (int)len : 60, term);
  bytes = gpuir__list_bytes(&given, b->told.done.documents, err);
  if (!bytes) return GPUIR_E_ARGUMENT;
  if (b->phase == GPUIR__FROM_DOCS) status = gpuir__builder_open_lists(b, &local);
  b->phase = GPUIR__FROM_LISTS;
  if (!status) status = gpuir__list_in_lengths(&given, b->threads.workers[0].encoding.encoder.lengths, &local);
  if (!status) status = gpuir__builder_put_list(b, &given, bytes, &local);
  return gpuir__builder_end(b, status, err, &local);
}

/* Encodes the last unit and appends all lists that are still on their way. */
static int gpuir__builder_close_lists(gpuir_builder *b, gpuir_error *err) {
  int status = gpuir__builder_push_unit(b, &b->merge.unit, err);
  if (!status) status = gpuir__builder_retire_all(b, err);
  gpuir__builder_join(b, status != 0);
  gpuir__buf_free(&b->a, &b->merge.last_term);
  return status;
}

/* ---- writing */

/* Inverts the last packets and merges all runs. */
static int gpuir__builder_invert(gpuir_builder *b, gpuir_build_report *r, gpuir_error *err) {
  unsigned i;
  int status = gpuir__builder_seal(b, 1, err);
  if (status) return status;
  if (b->threads.nthreads) gpuir__queue_close(&b->tasks.queue, 0); /* the workers' last runs, side by side */
  status = gpuir__builder_retire_all(b, err);
  if (status) return status;
  if (b->threads.nthreads) gpuir__builder_join(b, 0);
  else gpuir__builder_finish_worker(b, &b->threads.workers[0]);
  status = gpuir__builder_failed(b, err);
  if (status) return status;
  gpuir__builder_free_tasks(b);
  gpuir__buf_free(&b->a, &b->add.seen);
  for (i = 0; i < b->threads.nworkers; i++) {
    gpuir__builder_release_analyzer(b, &b->threads.workers[i]);
    r->runs += b->threads.workers[i].runs.len / sizeof(gpuir__extent);
    r->dropped_tokens += b->threads.workers[i].dropped;
    r->lost_documents += b->threads.workers[i].lost;
  }
  return r->runs ? gpuir__builder_lists(b, r->runs, err) : GPUIR_OK;
}

/* Completes the lists and writes the file. */
static int gpuir__builder_write_all(gpuir_builder *b, gpuir_build_report *report, gpuir_error *err) {
  gpuir__index_meta meta;
  gpuir_build_report r;
  const uint32_t *lengths = NULL;
  uint64_t ndocs = 0;
  int status;
  memset(&r, 0, sizeof r);
  memset(&meta, 0, sizeof meta);
  if (b->phase <= GPUIR__FROM_TEXT) status = gpuir__builder_invert(b, &r, err);
  else status = gpuir__builder_close_lists(b, err);
  if (status) return status;
  gpuir__builder_free_tasks(b);
  status = gpuir__writer_lengths(b->writer, &lengths, &ndocs, &r.tokens, err);
  if (status) return status;
  meta.analyzer = b->set.spec;
  meta.analyzer_revision = gpuir__analyzer_revision(b->set.spec);
  meta.stop_words = b->set.stop_words;
  meta.fields = GPUIR__FIELDS;
  meta.codec = b->set.codec_spec;
  meta.freq_codec = b->set.freq_codec_spec;
  meta.tool = "gpuir " GPUIR__VERSION;
  meta.description = b->set.description;
  meta.filters = b->set.filters;
  meta.reading = b->set.reading;
  meta.order = b->set.order;
  meta.store = b->set.store_text ? "1" : "";
  meta.positions = b->set.positions ? "1" : "";
  meta.dense = b->set.dense_spec;
  meta.columns = b->set.columns;
  meta.skipped = b->set.skipped ? b->set.skipped : "";
  b->writer->stat.k1 = b->set.k1;
  b->writer->stat.b = b->set.b;
  status = gpuir__writer_finish(b->writer, &meta, &r.file_bytes, err);
  if (status) return status;
  r.documents = ndocs;
  r.terms = b->merge.terms;
  r.postings = b->merge.postings;
  r.text_bytes = b->told.done.bytes;
  r.peak_memory = b->counter.peak;
  r.shared_folder = b->writer->shared;
  if (report) *report = r;
  return GPUIR_OK;
}

GPUIR__COLD GPUIR_API int gpuir_builder_write(gpuir_builder *builder, gpuir_build_report *report, gpuir_error *err) {
  gpuir_builder *b = builder;
  gpuir_error local = {0, 0, ""};
  int status = gpuir__builder_ready(b, err);
  if (status) return status;
  status = gpuir__builder_write_all(b, report, &local);
  b->written = 1;
  if (!status) return GPUIR_OK;
  gpuir__builder_join(b, 1);
  if (err) *err = local;
  return gpuir__builder_fail(b, status, &local);
}

GPUIR__COLD GPUIR_API int gpuir_builder_skipped(gpuir_builder *builder, const char *text, gpuir_error *err) {
  enum { MOST = 4096 };
  gpuir_builder *b = builder;
  const int status = gpuir__builder_ready(b, err);
  if (status) return status;
  if (!text || strlen(text) > MOST || strpbrk(text, "\r\n"))
    return gpuir__refuse(err, "what was left out is said in one line of at most %d bytes", MOST);
  gpuir__free(&b->a, b->set.skipped, b->set.skipped_size);
  b->set.skipped = gpuir__concat(&b->a, text, strlen(text), "", 0, &b->set.skipped_size);
  return b->set.skipped ? GPUIR_OK : gpuir__fail_nomem(err);
}

/* ---- making and unmaking */

GPUIR__COLD GPUIR_API void gpuir_builder_destroy(gpuir_builder *builder) {
  gpuir_builder *b = builder;
  gpuir_allocator base;
  unsigned i;
  if (!b) return;
  gpuir__builder_join(b, 1);
  gpuir__writer_destroy(b->writer);
  gpuir__builder_free_tasks(b);
  for (i = 0; b->threads.workers && i < b->threads.nworkers; i++) {
    gpuir__worker *w = &b->threads.workers[i];
    gpuir__builder_release_analyzer(b, w);
    gpuir__worker_free_table(w);
    gpuir__spool_close(&w->spool);
    gpuir__buf_free(&b->a, &w->runs);
    gpuir__area_free(&b->a, &w->encoding.raw);
    if (w->encoding.made) gpuir__encoder_destroy(&w->encoding.encoder);
    gpuir__free(&b->a, w->encoding.heads, b->threads.nworkers * sizeof(gpuir__chain));
  }
  gpuir__free(&b->a, b->threads.workers, b->threads.nworkers * sizeof *b->threads.workers);
  gpuir__buf_free(&b->a, &b->add.seen);
  gpuir__buf_free(&b->a, &b->merge.last_term);
  gpuir__queue_free(&b->a, &b->tasks.queue);
  gpuir__gate_free(&b->merge.gate);
  gpuir__free(&b->a, b->set.stop_words, b->set.stop_size);
  gpuir__free(&b->a, b->set.description, b->set.description_size);
  gpuir__free(&b->a, b->set.filters, b->set.filters_size);
  gpuir__free(&b->a, b->set.reading, b->set.reading_size);
  gpuir__free(&b->a, b->set.columns, b->set.columns_size);
  gpuir__free(&b->a, b->set.skipped, b->set.skipped_size);
  gpuir__schema_free(&b->a, b->set.fields);
  base = b->counter.base;
  gpuir__free(&base, b, sizeof *b);
}

/* Makes white space between stop words one blank each. */
static void gpuir__builder_squeeze(char *text) {
  const char *in = text;
  char *out = text;
  for (; *in; in++) {
    if (!gpuir__is_space(*in)) *out++ = *in;
    else if (out > text && out[-1] != ' ') *out++ = ' ';
  }
  if (out > text && out[-1] == ' ') out--;
  *out = 0;
}

/* Removes temporary files of killed builds: such a file has a name from its open to its unlink. */
static int gpuir__builder_sweep(gpuir_builder *b, gpuir_error *err) {
  size_t n = b->writer->tmp_size + 16;
  char *name = (char *)gpuir__alloc(&b->a, n);
  unsigned i;
  if (!name) return gpuir__fail_nomem(err);
  for (i = 0; i <= GPUIR__TMP_UNITS; i++) {
    if (i == GPUIR__W_COUNT) i = GPUIR__TMP_FIRST;
    (void)snprintf(name, n, "%s.%u", b->writer->tmp, i);
    (void)unlink(name);
  }
  gpuir__free(&b->a, name, n);
  return GPUIR_OK;
}

static unsigned gpuir__processors(void) {
#ifdef _SC_NPROCESSORS_ONLN
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n > 0 && n < 65536 ? (unsigned)n : 1;
#else
  return 1;
#endif
}

/* Returns a number that nobody who chose the texts could know: terms cannot be chosen so that they collide, which would
 * make building take time with the square of their number. */
static uint64_t gpuir__builder_seed(const gpuir_builder *b) {
  const uint64_t from[] = {gpuir__now(), (uint64_t)(uintptr_t)b, (uint64_t)(uintptr_t)&from, (uint64_t)getpid()};
  return gpuir__hash(from, sizeof from, 0);
}

/* Copies a text, or that of `like` if it is not given. NULL: no memory. */
static char *gpuir__builder_text(gpuir_builder *b, const char *text, const char *like, size_t *size) {
  if (!text) text = like ? like : "";
  return gpuir__concat(&b->a, text, strlen(text), "", 0, size);
}

/* Copies the texts that the index will have. */
static int gpuir__builder_texts(gpuir_builder *b, const gpuir_builder_desc *desc, const gpuir__segment *like,
    gpuir_error *err) {
  const gpuir__index_meta *meta = like ? &like->meta : NULL;
  b->set.stop_words =
      gpuir__builder_text(b, meta ? meta->stop_words : desc->analyzer.stop_words, NULL, &b->set.stop_size);
  b->set.description =
      gpuir__builder_text(b, desc->description, meta ? meta->description : NULL, &b->set.description_size);
  b->set.filters = gpuir__builder_text(b, desc->filters, meta ? meta->filters : NULL, &b->set.filters_size);
  b->set.reading = gpuir__builder_text(b, desc->reading, meta ? meta->reading : NULL, &b->set.reading_size);
  if (!b->set.stop_words || !b->set.description || !b->set.filters || !b->set.reading) return gpuir__fail_nomem(err);
  gpuir__builder_squeeze(b->set.stop_words);
  return GPUIR_OK;
}

/* Takes the fields that are given or, without any, those of `like`. The writer is there. */
static int gpuir__builder_fields(gpuir_builder *b, const gpuir_builder_desc *desc, const gpuir__segment *like,
    uint64_t memory, gpuir_error *err) {
#ifdef GPUIR_NO_COLUMNS
  (void)memory;
  if (desc->nfields || (like && *like->meta.columns)) return gpuir__fail_columns(err);
  b->set.columns = gpuir__builder_text(b, NULL, NULL, &b->set.columns_size);
  return b->set.columns ? GPUIR_OK : gpuir__fail_nomem(err);
#else
  gpuir__buf spelt = {NULL, 0, 0};
  int status = gpuir__fields_spell(&b->a, desc->fields, desc->nfields, &spelt, err);
  if (!status) {
    b->set.columns = gpuir__builder_text(b, desc->nfields ? (const char *)spelt.data : NULL,
        like ? like->meta.columns : NULL, &b->set.columns_size);
    if (!b->set.columns) status = gpuir__fail_nomem(err);
  }
  gpuir__buf_free(&b->a, &spelt);
  if (!status) status = gpuir__schema_make(&b->a, b->set.columns, &b->set.fields, err);
  return status || !b->set.fields ? status : gpuir__writer_fields(b->writer, b->set.fields, memory, err);
#endif
}

/* Shares the memory out and makes workers, rings and the writer, to which fd goes: see gpuir__writer_create. */
static int gpuir__builder_set_up(gpuir_builder *b, const gpuir_builder_desc *desc, int *fd, gpuir_error *err) {
  const int placed = *fd >= 0;
  uint64_t share, writer_memory;
  unsigned i, threads = desc->threads ? desc->threads : gpuir__processors();
  const gpuir__segment *like = desc->like ? desc->like->leaves[0].seg : NULL;
  int status = GPUIR_OK;
  if (!like) status = gpuir__analyzer_spec(&desc->analyzer, b->set.spec, sizeof b->set.spec, err);
  else if (strlen(like->meta.analyzer) >= sizeof b->set.spec)
    status = gpuir__fail(err, GPUIR_E_LIMIT, 0, "the analyzer's specification is too long");
  else memcpy(b->set.spec, like->meta.analyzer, strlen(like->meta.analyzer) + 1);
  if (status) return status;
  b->set.seed = gpuir__builder_seed(b);
  b->set.memory = gpuir__max64(desc->memory ? desc->memory : (uint64_t)512 << 20, 1u << 20);
  /* At most a thread for each 16 MiB: small tables make many runs, and each thread costs malloc some memory
   * that nobody counts. The index does not depend on it. */
  b->threads.nworkers =
      (unsigned)gpuir__min64(threads, gpuir__min64(GPUIR__MOST_WORKERS, gpuir__max64(2, b->set.memory >> 24)));
  status = gpuir__builder_texts(b, desc, like, err);
  if (status) return status;
  b->threads.workers = (gpuir__worker *)gpuir__alloc_zero(&b->a, b->threads.nworkers * sizeof *b->threads.workers);
  if (!b->threads.workers) return gpuir__fail_nomem(err);
  /* An eighth of the memory for text on its way, up to as much for the writer, a sixteenth in reserve. */
  writer_memory = gpuir__min64(b->set.memory / 8, 8u << 20);
  share = (b->set.memory - b->set.memory / 8 - b->set.memory / 16 - writer_memory) / b->threads.nworkers;
  for (i = 0; i < b->threads.nworkers; i++) b->threads.workers[i].spool.fd = -1;
  for (i = 0; i < b->threads.nworkers; i++) {
    gpuir__worker *w = &b->threads.workers[i];
    w->builder = b;
    w->a = &b->a;
    w->number = i;
    w->positions = b->set.positions;
    w->spool_cap = (size_t)gpuir__max64(16384, gpuir__min64(share / 32, 1u << 20));
    w->table.seed = b->set.seed;
    w->table.share = gpuir__max64(share - gpuir__min64(share / 2, w->spool_cap), 256u << 10);
  }
  if (!like) status = gpuir__builder_analyzers(b, err); /* an analyzer that is lacking shows at once */
  if (status) return status;
  b->tasks.n = b->threads.nworkers == 1 ? 1 : 2 * b->threads.nworkers + 2;
  b->tasks.in_flight_most = b->set.memory / 8;
  b->tasks.size = (size_t)gpuir__max64(8192, gpuir__min64(b->tasks.in_flight_most / b->tasks.n, 2u << 20));
  b->add.packets = (gpuir__packet *)gpuir__alloc_zero(&b->a, b->tasks.n * sizeof *b->add.packets);
  if (!b->add.packets) return gpuir__fail_nomem(err);
  status = gpuir__queue_init(&b->a, &b->tasks.queue, b->tasks.n, err);
  if (!status) status = gpuir__gate_init(&b->merge.gate, b->set.memory / 8, err);
  if (status) return status;
  status = gpuir__writer_create(&b->a, desc->path, writer_memory, *fd, &b->writer, err);
  *fd = -1;
  if (status) return status;
#ifdef GPUIR_NO_STORE
  if (b->set.store_text)
    status = gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "built without stored texts (GPUIR_NO_STORE)");
#else
  if (b->set.store_text) status = gpuir__writer_texts(b->writer, err);
#endif
  if (status) return status;
  for (i = 0; i < b->threads.nworkers; i++) b->threads.workers[i].tmp = b->writer->tmp;
  b->writer->has[GPUIR__P_POSITIONS] = b->set.positions;
  status = gpuir__builder_fields(b, desc, like, writer_memory, err);
  if (status) return status;
  return placed ? GPUIR_OK : gpuir__builder_sweep(b, err);
}

/* Spells D as the meta section has it: what is asked for, or else that of `like`; "": the default. */
static void gpuir__builder_dense(const gpuir_builder_desc *desc, const gpuir__segment *like, char out[4]) {
  const char *stated = like && strlen(like->meta.dense) < 4 ? like->meta.dense : "";
  if (desc->dense) (void)snprintf(out, 4, "%u", desc->dense > 0 ? (unsigned)desc->dense % 1000 : 0);
  else memcpy(out, stated, strlen(stated) + 1);
}

/* Makes a builder as gpuir_builder_create does. *fd: -1, or that of the new file desc->path in a folder that the caller
 * has locked, and becomes -1 when the builder has taken it; pool: where analyzers come from, or NULL. */
GPUIR__COLD static int gpuir__builder_make(const gpuir_builder_desc *desc, int *fd, gpuir__analyzers *pool,
    gpuir_builder **builder, gpuir_error *err) {
  gpuir_allocator base;
  gpuir_builder *b;
  gpuir__coding codec, freq_codec;
  const gpuir__segment *like = desc && desc->like ? desc->like->leaves[0].seg : NULL;
  const char *docs_name, *freqs_name, *order;
  char dense[4];
  int status;
  if (!builder) return gpuir__refuse(err, "no place for the builder given");
  *builder = NULL;
  if (!desc || !desc->path || !*desc->path) return gpuir__refuse(err, "no path for the index given");
  if (desc->custom_bm25 && !(desc->k1 >= 0 && desc->k1 <= 1000)) return gpuir__refuse(err, "k1 must lie in [0, 1000]");
  if (desc->custom_bm25 && !(desc->b >= 0 && desc->b <= 1)) return gpuir__refuse(err, "b must lie in [0, 1]");
  order = desc->order ? desc->order : like ? like->meta.order : "";
  if (strlen(order) > GPUIR__ORDER_MAX)
    return gpuir__refuse(err, "the order's name has more than %u bytes", GPUIR__ORDER_MAX);
  if (desc->dense < GPUIR_DENSE_NONE || desc->dense > (int)GPUIR__DENSE_MOST)
    return gpuir__refuse(err, "a dense list's share of the documents must be 1 in %u at least", GPUIR__DENSE_MOST);
  gpuir__builder_dense(desc, like, dense);
  docs_name = desc->codec || !like ? desc->codec : like->meta.codec;
  freqs_name = desc->freq_codec || !like ? desc->freq_codec : like->meta.freq_codec;
  status = gpuir__coding_parse(docs_name, 1, &codec, err);
  if (!status) status = gpuir__coding_parse(freqs_name, 0, &freq_codec, err);
  if (status) return status;
  base = gpuir__allocator(desc->allocator);
  b = (gpuir_builder *)gpuir__alloc_zero(&base, sizeof *b);
  if (!b) return gpuir__fail_nomem(err);
  b->counter.base = base;
  b->counter.now = b->counter.peak = sizeof *b;
  b->a.resize = gpuir__counter_resize;
  b->a.user = &b->counter;
  b->set.codec = codec;
  b->set.freq_codec = freq_codec;
  (void)snprintf(b->set.codec_spec, sizeof b->set.codec_spec, "%s", docs_name ? docs_name : codec.codec->name);
  (void)snprintf(b->set.freq_codec_spec, sizeof b->set.freq_codec_spec, "%s",
      freqs_name ? freqs_name : freq_codec.codec->name);
  memcpy(b->set.order, order, strlen(order));
  b->set.k1 = desc->custom_bm25 ? desc->k1 : like ? like->stat.k1 : 0.9f;
  b->set.b = desc->custom_bm25 ? desc->b : like ? like->stat.b : 0.4f;
  if (desc->like) b->set.own = desc->like->analysis.own;
  else
    b->set.own =
        gpuir__tokenizer_of(desc->analyzer.tokenize, desc->analyzer.tokenize_places, desc->analyzer.tokenize_user);
  b->set.pool = pool;
  b->set.store_text = desc->store_text;
  b->set.positions = desc->positions != 0;
  (void)snprintf(b->set.dense_spec, sizeof b->set.dense_spec, "%s", dense);
  b->set.dense = gpuir__dense_stated(dense);
  b->set.simd = desc->simd;
  b->set.progress = desc->progress;
  b->set.progress_user = desc->progress_user;
  status = gpuir__builder_set_up(b, desc, fd, err);
  if (status) {
    gpuir_builder_destroy(b);
    return status;
  }
  *builder = b;
  return GPUIR_OK;
}

GPUIR__COLD GPUIR_API int gpuir_builder_create(const gpuir_builder_desc *desc, gpuir_builder **builder,
    gpuir_error *err) {
  int fd = -1;
  return gpuir__builder_make(desc, &fd, NULL, builder, err);
}

/* ---- a shard: a copy of an index, with its place in a collection
 *
 * A shard has two sections more than the index: its place, and in how many of the collection's documents each of its
 * terms is. Both are known only when all parts are built, so the built file is copied, section by section. Readers take
 * them wherever a query's weights come from: gpuir__segment_df, and gpuir_index.collection and .average_length.
 */

/* Checks that an index may be a part of such a collection. */
static int gpuir__shard_check(const gpuir__segment *seg, const gpuir_shard_info *info, const uint32_t *dfs,
    gpuir_error *err) {
  gpuir__walk w;
  if (info->documents > GPUIR__MAX_DOCUMENTS || info->documents < seg->stat.documents ||
      info->first > info->documents - seg->stat.documents || info->tokens < seg->stat.tokens ||
      info->shard >= info->shards)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "the index's documents do not fit the collection");
  for (gpuir__walk_start(&w, seg); gpuir__walk_next(&w);)
    if (dfs[w.id] < w.record.df || dfs[w.id] > info->documents)
      return gpuir__fail(err, GPUIR_E_ARGUMENT, 0,
          "\"%.*s\" is in fewer documents of the collection than of the index, or in "
          "more than it has",
          w.len < 32 ? (int)w.len : 32, (const char *)w.term);
  return GPUIR_OK;
}

/* Lists the sections of the copy: those of the file, in its order, and the collection's. Returns how many there are;
 * *size becomes that of the file. */
static unsigned gpuir__shard_plan(const gpuir__segment *seg, const gpuir__shard *shard, const uint32_t *dfs,
    gpuir__section *table, const void **from, uint64_t *size) {
  unsigned n = 0, i;
  uint64_t at;
  for (i = 0; i < GPUIR__SECTION_ROWS; i++) {
    const gpuir__section_row *row = &gpuir__section_rows[i];
    const gpuir__section *s = seg->section[row->id];
    if (row->presence == GPUIR__P_SHARD) {
      table[n].flags = GPUIR__REQUIRED;
      table[n].length = row->id == GPUIR__S_SHARD ? sizeof *shard : 4 * seg->stat.terms;
      from[n] = row->id == GPUIR__S_SHARD ? (const void *)shard : dfs;
      table[n].hash = XXH3_64bits(from[n], (size_t)table[n].length);
    } else if (s) {
      table[n] = *s;
      from[n] = seg->map + s->offset;
    } else {
      continue;
    }
    table[n++].id = row->id;
  }
  at = sizeof(gpuir__header) + n * sizeof *table;
  for (i = 0; i < n; i++) {
    table[i].offset = at = (at + GPUIR__ALIGN - 1) & ~(uint64_t)(GPUIR__ALIGN - 1);
    at += table[i].length + GPUIR__ALIGN;
  }
  *size = at;
  return n;
}

/* Writes the copy into the writer's file. */
static int gpuir__shard_copy(gpuir__writer *w, const gpuir__segment *seg, const gpuir__shard *shard,
    const uint32_t *dfs, gpuir_error *err) {
  gpuir__section table[GPUIR__S_COUNT];
  const void *from[GPUIR__S_COUNT];
  uint64_t size;
  unsigned n, i;
  int status = GPUIR_OK;
  n = gpuir__shard_plan(seg, shard, dfs, table, from, &size);
  if (gpuir__allocate(w->fd, size)) return gpuir__fail_errno(err, w->tmp, "cannot allocate the index file");
  for (i = 0; i < n && !status; i++)
    if (table[i].length) status = gpuir__writer_put(w, from[i], (size_t)table[i].length, table[i].offset, err);
  return status ? status : gpuir__writer_head(w, table, n, size, err);
}

GPUIR_API int gpuir_shard_write(const gpuir_index *ix, const char *path, const gpuir_shard_info *info,
    const uint32_t *dfs, gpuir_error *err) {
  const gpuir__segment *seg = ix ? gpuir__only(ix) : NULL;
  gpuir__writer *w = NULL;
  gpuir__shard shard;
  int status;
  if (!ix || !path || !*path || !info || !dfs)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "a shard needs an index, a path, a place and counts: one is NULL");
  if (!seg) return gpuir__fail_unmerged(ix, err);
  status = gpuir__shard_check(seg, info, dfs, err);
  if (status) return status;
  memset(&shard, 0, sizeof shard);
  shard.documents = info->documents;
  shard.tokens = info->tokens;
  shard.first = info->first;
  shard.number = info->shard;
  shard.shards = info->shards;
  memcpy(shard.identity, info->identity, sizeof shard.identity);
  status = gpuir__writer_create(&ix->a, path, GPUIR__AHEAD, -1, &w, err);
  if (status || !w) return status;
  w->ahead.buf = (uint8_t *)gpuir__alloc(&w->a, GPUIR__AHEAD);
  status = w->ahead.buf ? gpuir__shard_copy(w, seg, &shard, dfs, err) : gpuir__fail_nomem(err);
  gpuir__free(&w->a, w->ahead.buf, GPUIR__AHEAD);
  gpuir__writer_destroy(w);
  return status;
}
