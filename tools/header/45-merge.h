
/* ========
 * [45-merge]  builder: documents are added, and runs merged
 *
 * The adding thread merges the runs' terms and gathers their postings in units, still compressed;
 * workers turn units into encoded lists, and the adding thread appends these in order of terms.
 *
 * Nothing that is written depends on which worker saw what: documents are numbered as they are
 * added, a term's postings are merged by docID, and terms by bytes.
 *
 * Uses      [23-codings], [28-encoder], [30-analysis], [33-analyzers], [34-fields], [37-layout], [38-notes],
 *           [39-writer], [44-inversion].
 * Start at  gpuir_builder_add_text, gpuir__builder_merge.
 * Tests     tests/unit/45_merge.c
 * ======*/

/* ---- units of the merge: from runs' postings to encoded lists */

/* Some terms with the postings of each from one or more runs, as they stand there. */
typedef struct gpuir__unit {
  gpuir__area bytes;
  uint64_t used;
  gpuir__buf terms; /* bytes of terms */
  gpuir__buf items; /* gpuir__item */
  gpuir__buf parts; /* gpuir__part */
  uint64_t nterms, postings;
  gpuir__batch out;
} gpuir__unit;

typedef struct gpuir__item {
  uint64_t df; /* sum over the parts, which may share a document if a spill cut it */
  uint64_t bytes; /* of the parts, so that with positions no more than these can be in them; 0 without */
  uint32_t parts, term_len;
} gpuir__item;

/* Returns the bytes that an item's postings and positions take when they are decoded. */
static uint64_t gpuir__item_size(const gpuir__item *item) { return item->df * 8 + item->bytes * 4; }

/* Merges the parts of one term's list by docID, and appends the encoded list to unit->out. Lists beyond `most` bytes
 * are merged in a temporary file. */
static int gpuir__worker_list(gpuir__worker *w, gpuir__unit *unit, const gpuir__item *item, const gpuir__part *parts,
    const uint8_t *term, uint64_t most) {
  uint32_t *docs, *tfs, *positions;
  uint64_t n;
  int status = gpuir__area_need(w->a, &w->encoding.raw, gpuir__item_size(item), most, w->tmp,
      GPUIR__TMP_LISTS + w->number, &w->err);
  if (status) return status;
  docs = (uint32_t *)(void *)w->encoding.raw.data;
  tfs = docs + item->df;
  positions = w->positions ? tfs + item->df : NULL;
  n = positions
      ? gpuir__item_merge((gpuir__chain *)w->encoding.heads, parts, item->parts, unit->bytes.data, docs, tfs, positions)
      : gpuir__item_merge((gpuir__chain *)w->encoding.heads, parts, item->parts, unit->bytes.data, docs, tfs,
            NULL); /* made for each, since the inner loop asks */
  status =
      gpuir__encode_list(&w->encoding.encoder, &unit->out, term, item->term_len, docs, tfs, (uint32_t)n, positions);
  if (status && status != GPUIR_E_NOMEM)
    (void)gpuir__fail(&w->err, status, 0, "cannot encode the postings of '%.*s': %s",
        item->term_len < 60 ? (int)item->term_len : 60, (const char *)term, gpuir_strerror(status));
  return status;
}

/* Encodes a unit's lists into its batch. A list takes memory while it is decoded: 8 bytes a posting and 4 a position
 * here, and what the encoder needs. One of more than `light` bytes goes through the gate and leaves nothing behind. */
static int gpuir__worker_unit(gpuir__worker *w, gpuir__unit *unit, uint64_t light, gpuir__gate *gate) {
  const gpuir__part *parts = (const gpuir__part *)(void *)unit->parts.data;
  const uint8_t *term = unit->terms.data;
  uint64_t i, size;
  const uint64_t need = gpuir__encoder_need(&w->encoding.encoder);
  int status = GPUIR_OK;
  gpuir__batch_clear(NULL, &unit->out);
  for (i = 0; i < unit->nterms && !status; i++) {
    gpuir__item item;
    memcpy(&item, unit->items.data + i * sizeof item, sizeof item);
    size = item.df * need + item.bytes * 4;
    if (size <= light) {
      status = gpuir__worker_list(w, unit, &item, parts, term, light);
    } else {
      gpuir__gate_enter(gate, size);
      status = gpuir__worker_list(w, unit, &item, parts, term, gate->most);
      gpuir__area_free(w->a, &w->encoding.raw);
      gpuir__encoder_shrink(&w->encoding.encoder);
      gpuir__gate_leave(gate, size);
    }
    parts += item.parts;
    term += item.term_len;
  }
  return status ? gpuir__worker_fail(w, status) : GPUIR_OK;
}

/* ---- the builder */

/* What an index is made from is settled by the first thing added. */
enum { GPUIR__EMPTY, GPUIR__FROM_TEXT, GPUIR__FROM_DOCS, GPUIR__FROM_LISTS };

/* What gpuir_builder_create was asked for. */
typedef struct gpuir__builder_settings {
  char *stop_words, *description, *filters, *reading, *columns, *skipped; /* skipped: NULL if nothing was said */
  size_t stop_size, description_size, filters_size, reading_size, columns_size, skipped_size;
  gpuir__schema *fields; /* NULL: none */
  char spec[256]; /* of the analyzer */
  gpuir__tokenizer own;
  gpuir__analyzers *pool; /* analyzers come from it and go back; NULL: they are made */
  gpuir__coding codec, freq_codec;
  char codec_spec[48], freq_codec_spec[48]; /* as the user spelt them */
  char order[GPUIR__ORDER_MAX + 1];
  float k1, b;
  int store_text, positions, simd;
  unsigned dense; /* D, see [26-dense] */
  char dense_spec[4]; /* as it was asked for; "": the default */
  int (*progress)(void *user, const gpuir_progress *progress);
  void *progress_user;
  uint64_t memory; /* bytes */
  uint64_t seed; /* of the hash tables; the index does not depend on it */
} gpuir__builder_settings;

typedef struct gpuir__builder_threads {
  gpuir__worker *workers;
  unsigned nworkers, nthreads; /* threads that run now; 0: the adding thread works itself */
  int failure; /* atomic; the first error, and then nothing but destroy is allowed */
  gpuir_error error;
} gpuir__builder_threads;

/* The ring of packets, and later that of units. */
typedef struct gpuir__builder_tasks {
  gpuir__queue queue;
  unsigned n; /* slots of the ring */
  size_t size; /* bytes of a packet or unit, unless one document or list is larger */
  uint64_t in_flight; /* bytes of text, or of postings, that were pushed and not yet retired */
  uint64_t in_flight_most;
  uint64_t retired; /* packets or units */
} gpuir__builder_tasks;

/* Of documents that are inverted. */
typedef struct gpuir__builder_add {
  gpuir__packet *packets;
  gpuir__packet *open; /* that is being filled, or NULL */
  gpuir__buf seen; /* hash table that finds a term given twice */
} gpuir__builder_add;

/* Of lists, merged or given. */
typedef struct gpuir__builder_merging {
  gpuir__unit *units;
  gpuir__unit *unit; /* that is being filled with given lists, or NULL */
  gpuir__buf last_term; /* of the last list that was given */
  uint64_t light; /* bytes of a decoded list, see gpuir__worker_unit */
  gpuir__gate gate;
  uint64_t terms, postings; /* that are in the writer */
} gpuir__builder_merging;

/* What the progress callback is told, and what it was told last. */
typedef struct gpuir__builder_told {
  gpuir_progress done;
  uint64_t documents, bytes;
} gpuir__builder_told;

struct gpuir_builder {
  gpuir__counter counter;
  gpuir_allocator a; /* counts into `counter` */
  gpuir__builder_settings set;
  gpuir__writer *writer;
  int phase; /* GPUIR__EMPTY to GPUIR__FROM_LISTS */
  int written; /* gpuir_builder_write was called */
  gpuir__builder_threads threads;
  gpuir__builder_tasks tasks;
  gpuir__builder_add add;
  gpuir__builder_merging merge;
  gpuir__builder_told told;
};

/* Records the first failure; the mutex guards the error, the flag is read without it. */
static int gpuir__builder_fail(gpuir_builder *b, int status, const gpuir_error *err) {
  gpuir__lock(&b->tasks.queue.mutex);
  if (!b->threads.failure) {
    if (err && err->code == status) b->threads.error = *err;
    else (void)gpuir__fail(&b->threads.error, status, 0, "%s", gpuir_strerror(status));
    __atomic_store_n(&b->threads.failure, status, __ATOMIC_RELEASE);
  }
  gpuir__unlock(&b->tasks.queue.mutex);
  return status;
}

GPUIR__NOINLINE int gpuir__builder_failed(gpuir_builder *b, gpuir_error *err) {
  int status = __atomic_load_n(&b->threads.failure, __ATOMIC_ACQUIRE);
  if (status && err) {
    gpuir__lock(&b->tasks.queue.mutex);
    *err = b->threads.error;
    gpuir__unlock(&b->tasks.queue.mutex);
  }
  return status;
}

/* Does the work of a slot: encodes its unit, or, as long as there are no units, inverts its packet. */
static void gpuir__builder_run(gpuir_builder *b, gpuir__worker *w, unsigned slot) {
  int status;
  if (__atomic_load_n(&b->threads.failure, __ATOMIC_ACQUIRE)) return;
  status = b->merge.units ? gpuir__worker_unit(w, &b->merge.units[slot], b->merge.light, &b->merge.gate)
                          : gpuir__worker_packet(w, &b->add.packets[slot]);
  if (status) (void)gpuir__builder_fail(b, status, &w->err);
}

/* Spills the last run and frees the table. */
static void gpuir__builder_finish_worker(gpuir_builder *b, gpuir__worker *w) {
  if (!__atomic_load_n(&b->threads.failure, __ATOMIC_ACQUIRE)) {
    int status = gpuir__worker_spill(w);
    if (!status) status = gpuir__spool_end(&w->spool, &w->err);
    if (status) (void)gpuir__builder_fail(b, status, &w->err);
  }
  gpuir__worker_free_table(w);
}

/* Runs as a thread that inverts packets, or encodes units. */
static void *gpuir__builder_thread(void *arg) {
  gpuir__worker *w = (gpuir__worker *)arg;
  gpuir_builder *b = w->builder;
  int slot;
  while ((slot = gpuir__queue_take(&b->tasks.queue)) >= 0) {
    gpuir__builder_run(b, w, (unsigned)slot);
    gpuir__queue_done(&b->tasks.queue, slot);
  }
  if (!b->merge.units) gpuir__builder_finish_worker(b, w);
  return NULL;
}

/* Starts a thread a worker. Where the system refuses some, the others do the work; without any, the
 * adding thread does. Signals go to the caller's own threads. */
static void gpuir__builder_start(gpuir_builder *b) {
  sigset_t all, old;
  int masked;
  (void)sigfillset(&all);
  masked = !pthread_sigmask(SIG_SETMASK, &all, &old);
  while (b->threads.nthreads < b->threads.nworkers &&
      !pthread_create(&b->threads.workers[b->threads.nthreads].thread, NULL, gpuir__builder_thread,
          &b->threads.workers[b->threads.nthreads]))
    b->threads.nthreads++;
  if (masked) (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* Waits for the threads to end; `abort` leaves the tasks that none has taken. */
static void gpuir__builder_join(gpuir_builder *b, int abort) {
  unsigned i;
  if (!b->threads.nthreads) return;
  gpuir__queue_close(&b->tasks.queue, abort);
  for (i = 0; i < b->threads.nthreads; i++) (void)pthread_join(b->threads.workers[i].thread, NULL);
  b->threads.nthreads = 0;
}

static int gpuir__builder_tell(gpuir_builder *b, gpuir_error *err) {
  if (b->set.progress && b->set.progress(b->set.progress_user, &b->told.done))
    return gpuir__fail(err, GPUIR_E_CANCELLED, 0, "cancelled by the progress callback");
  return GPUIR_OK;
}

/* ---- packets and units that are on their way */

/* Hands a packet's lengths to the writer and empties it. */
static int gpuir__builder_retire_packet(gpuir_builder *b, gpuir__packet *p, gpuir_error *err) {
  int status = gpuir__builder_failed(b, err);
  b->tasks.in_flight -= p->text.len;
  if (!status)
    status = gpuir__writer_put_lengths(b->writer, (const uint32_t *)(void *)p->lengths.data, (size_t)p->docs, err);
  p->text.len = p->sizes.len = p->lengths.len = 0;
  p->docs = 0;
  p->external = NULL;
  if (p->text.cap > 2 * b->tasks.size) gpuir__buf_free(&b->a, &p->text);
  return status;
}

/* Appends a unit's lists to the writer and empties it. */
static int gpuir__builder_retire_unit(gpuir_builder *b, gpuir__unit *unit, gpuir_error *err) {
  int status = gpuir__builder_failed(b, err);
  b->tasks.in_flight -= unit->used;
  if (!status) status = gpuir__writer_put_batch(b->writer, &unit->out, err);
  if (status) return status;
  b->merge.terms += unit->out.nterms;
  b->merge.postings += unit->out.postings;
  b->told.done.terms_done = b->merge.terms;
  b->told.done.postings_done += unit->postings;
  if (unit->used > 2 * b->tasks.size) { /* a huge list's */
    gpuir__area_free(&b->a, &unit->bytes);
    gpuir__batch_clear(&b->a, &unit->out);
  }
  unit->used = unit->nterms = unit->postings = 0;
  unit->terms.len = unit->items.len = unit->parts.len = 0;
  return gpuir__builder_tell(b, err);
}

/* Takes the oldest packet or unit back when a worker is done with it. */
static int gpuir__builder_retire(gpuir_builder *b, gpuir_error *err) {
  const unsigned slot = (unsigned)(b->tasks.retired % b->tasks.n);
  if (b->threads.nthreads) gpuir__queue_wait(&b->tasks.queue, slot);
  b->tasks.retired++;
  return b->merge.units ? gpuir__builder_retire_unit(b, &b->merge.units[slot], err)
                        : gpuir__builder_retire_packet(b, &b->add.packets[slot], err);
}

/* Takes all of them back. */
static int gpuir__builder_retire_all(gpuir_builder *b, gpuir_error *err) {
  int status = GPUIR_OK;
  while (!status && b->tasks.retired < b->tasks.queue.pushed) status = gpuir__builder_retire(b, err);
  return status;
}

/* Waits for a free slot, and until so many bytes more may be on their way. */
static int gpuir__builder_slot(gpuir_builder *b, uint64_t bytes, gpuir_error *err) {
  int status = GPUIR_OK;
  while (!status &&
      (b->tasks.queue.pushed - b->tasks.retired == b->tasks.n ||
          (b->tasks.in_flight + bytes > b->tasks.in_flight_most && b->tasks.queue.pushed > b->tasks.retired)))
    status = gpuir__builder_retire(b, err);
  return status;
}

/* Hands the slot that is next to the workers, or does its work here if none runs. */
static int gpuir__builder_push(gpuir_builder *b, uint64_t bytes, gpuir_error *err) {
  const unsigned slot = (unsigned)(b->tasks.queue.pushed % b->tasks.n);
  b->tasks.in_flight += bytes;
  if (b->threads.nthreads) {
    gpuir__queue_push(&b->tasks.queue);
    return GPUIR_OK;
  }
  gpuir__queue_skip(&b->tasks.queue);
  gpuir__builder_run(b, &b->threads.workers[0], slot);
  return gpuir__builder_retire(b, err);
}

/* Sends the open packet to the workers. `last`: there is no need to start threads for it. */
GPUIR__NOINLINE int gpuir__builder_seal(gpuir_builder *b, int last, gpuir_error *err) {
  gpuir__packet *p = b->add.open;
  if (!p) return GPUIR_OK;
  b->add.open = NULL;
  if (b->threads.nworkers > 1 && !last && !b->threads.nthreads) gpuir__builder_start(b);
  return gpuir__builder_push(b, p->text.len, err);
}

/* Makes `open` a packet that has room for one more document of n bytes. */
static int gpuir__builder_packet(gpuir_builder *b, size_t n, gpuir_error *err) {
  gpuir__packet *p = b->add.open;
  int status;
  if (p && p->text.len + (sizeof(gpuir__packet_doc) + 4) * p->docs + n > b->tasks.size) {
    status = gpuir__builder_seal(b, 0, err);
    if (status) return status;
    p = NULL;
  }
  if (!p) {
    status = gpuir__builder_slot(b, n, err);
    if (status) return status;
    p = &b->add.packets[b->tasks.queue.pushed % b->tasks.n];
    p->first = b->told.done.documents;
    if (b->threads.nworkers > 1 && n < b->tasks.size && !gpuir__buf_room(&b->a, &p->text, b->tasks.size))
      return gpuir__fail_nomem(err);
    b->add.open = p;
  }
  if ((n && !gpuir__buf_room(&b->a, &p->text, n)) || !gpuir__buf_room(&b->a, &p->sizes, sizeof(gpuir__packet_doc)) ||
      !gpuir__buf_room(&b->a, &p->lengths, 4))
    return gpuir__fail_nomem(err);
  return GPUIR_OK;
}

/* ---- adding */

static int gpuir__builder_ready(gpuir_builder *b, gpuir_error *err) {
  if (!b) return gpuir__refuse(err, "no builder given");
  if (__atomic_load_n(&b->threads.failure, __ATOMIC_ACQUIRE)) return gpuir__builder_failed(b, err);
  if (b->written) return gpuir__refuse(err, "the index has been written");
  return GPUIR_OK;
}

/* Releases a worker's analyzer, if it has one. */
static void gpuir__builder_release_analyzer(gpuir_builder *b, gpuir__worker *w) {
  if (b->set.pool && w->analyzer) gpuir__analyzers_give(b->set.pool, w->analyzer);
  else gpuir__analyzer_destroy(w->analyzer);
  w->analyzer = NULL;
}

/* Creates the analyzers, one a worker, that do not exist yet; once. */
static int gpuir__builder_analyzers(gpuir_builder *b, gpuir_error *err) {
  unsigned i;
  int status = GPUIR_OK;
  for (i = 0; i < b->threads.nworkers && !status; i++)
    if (b->set.pool) status = gpuir__analyzers_take(b->set.pool, &b->threads.workers[i].analyzer, err);
    else if (!b->threads.workers[i].analyzer)
      status = gpuir__analyzer_create(&b->a, b->set.spec, b->set.stop_words, &b->set.own,
          &b->threads.workers[i].analyzer, err);
  return status;
}

/* Prepares the builder for a document to invert. */
static int gpuir__builder_ready_text(gpuir_builder *b, gpuir_error *err) {
  int status = gpuir__builder_ready(b, err);
  if (status) return status;
  if (b->phase > GPUIR__FROM_TEXT)
    return gpuir__refuse(err, "this index is being made from postings, not from documents");
  if (b->phase == GPUIR__EMPTY) status = gpuir__builder_analyzers(b, err);
  if (!status) b->phase = GPUIR__FROM_TEXT;
  return status;
}

/* Calls for progress after 16 MiB of text or 65,536 documents since the last call. */
static int gpuir__builder_tell_added(gpuir_builder *b, gpuir_error *err) {
  if (b->told.done.bytes - b->told.bytes < (1u << 24) && b->told.done.documents - b->told.documents < (1u << 16))
    return GPUIR_OK;
  b->told.bytes = b->told.done.bytes;
  b->told.documents = b->told.done.documents;
  return gpuir__builder_tell(b, err);
}

/* Appends what is searched behind a document's text to the open packet, which has room for it. */
static void gpuir__builder_more(gpuir_builder *b, const gpuir_doc_desc *doc) {
  gpuir__packet *p = b->add.open;
  if (doc->also_len) memcpy(p->text.data + p->text.len, doc->also, doc->also_len);
  if (doc->defines_len) memcpy(p->text.data + p->text.len + doc->also_len, doc->defines, doc->defines_len);
  p->text.len += doc->also_len + doc->defines_len;
}

/* Appends a document to the open packet, which holds its bytes or refers to the caller's. */
static int gpuir__builder_document(gpuir_builder *b, const gpuir_doc_desc *doc, const char *text, size_t text_len,
    size_t size, int counted, gpuir_error *err) {
  gpuir__packet *p = b->add.open;
  gpuir_doc_desc none;
  gpuir__packet_doc entry;
  const uint32_t zero = 0;
  int status;
  memset(&none, 0, sizeof none);
  status = gpuir__writer_put_doc(b->writer, doc ? doc : &none, text, text_len, err);
  if (status) return status;
  if (!p->external) p->text.len += size;
  memset(&entry, 0, sizeof entry);
  entry.size = (uint64_t)size | (counted ? GPUIR__COUNTED : 0);
  if (doc && !counted) {
    gpuir__builder_more(b, doc);
    entry.also = (uint32_t)doc->also_len;
    entry.defines = (uint32_t)doc->defines_len;
  }
  memcpy(p->sizes.data + p->sizes.len, &entry, sizeof entry);
  memcpy(p->lengths.data + p->lengths.len, &zero, 4);
  p->sizes.len += sizeof entry;
  p->lengths.len += 4;
  p->docs++;
  b->told.done.documents++;
  b->told.done.bytes += text_len;
  if (p->external || b->threads.nworkers == 1) { /* the text is the caller's: be done with it now */
    status = gpuir__builder_seal(b, 0, err);
    if (!status) status = gpuir__builder_retire_all(b, err);
    if (status) return status;
  }
  return gpuir__builder_tell_added(b, err);
}

#define GPUIR__MORE_MAX ((size_t)1 << 24) /* bytes of what is searched behind a text, and of names that it defines */

/* Checks what is searched behind a text. */
static int gpuir__builder_check_more(const gpuir_builder *b, const gpuir_doc_desc *doc, gpuir_error *err) {
  if (!doc || (!doc->also_len && !doc->defines_len)) return GPUIR_OK;
  if ((!doc->also && doc->also_len) || (!doc->defines && doc->defines_len))
    return gpuir__refuse(err, "a document's `also` or `defines` is NULL, but its length is not 0");
  if (!gpuir__spec_is_text(b->set.spec))
    return gpuir__refuse(err, "a document's `also` and `defines` need the analyzer \"text\"");
  if (doc->also_len > GPUIR__MORE_MAX || doc->defines_len > GPUIR__MORE_MAX)
    return gpuir__refuse(err, "a document's `also` or `defines` has more than %lu bytes",
        (unsigned long)GPUIR__MORE_MAX);
  return GPUIR_OK;
}

/* Checks the values of a document, which may be none. */
static int gpuir__builder_check_values(const gpuir_builder *b, const gpuir_doc_desc *doc, gpuir_error *err) {
  if (!doc || !doc->nvalues) return GPUIR_OK;
  if (!b->set.fields) return gpuir__refuse(err, "a document has values, and the index no fields");
#ifdef GPUIR_NO_COLUMNS
  return gpuir__fail_columns(err);
#else
  return gpuir__notes_check(&b->writer->notes, doc->values, doc->nvalues, err);
#endif
}

static int gpuir__builder_check_doc(const gpuir_builder *b, const gpuir_doc_desc *doc, gpuir_error *err) {
  if (doc && ((!doc->name && doc->name_len) || (!doc->source && doc->source_len)))
    return gpuir__refuse(err, "a document's name or source is NULL, but its length is not 0");
  if (doc && doc->source_bytes > UINT64_MAX - doc->source_offset)
    return gpuir__refuse(err, "a document's place in its source ends behind 2^64 - 1");
  return gpuir__builder_check_values(b, doc, err);
}

/* Ends a public function: after an error other than ARGUMENT the builder stays failed. */
GPUIR__NOINLINE int gpuir__builder_end(gpuir_builder *b, int status, gpuir_error *err, const gpuir_error *local) {
  if (!status) return GPUIR_OK;
  if (err) *err = *local;
  if (status != GPUIR_E_ARGUMENT) (void)gpuir__builder_fail(b, status, local);
  return status;
}

GPUIR_API int gpuir_builder_add_text(gpuir_builder *builder, const gpuir_doc_desc *doc, const char *text, size_t len,
    gpuir_error *err) {
  gpuir_builder *b = builder;
  gpuir_error local = {0, 0, ""};
  const size_t more = doc ? doc->also_len + doc->defines_len : 0;
  int in_place, status = gpuir__builder_ready_text(b, err);
  if (!status) status = gpuir__builder_check_doc(b, doc, err);
  if (!status) status = gpuir__builder_check_more(b, doc, err);
  if (status) return status;
  if (!text && len) return gpuir__refuse(err, "the text is NULL, but its length is not 0");
  in_place = b->threads.nworkers == 1 || len > b->tasks.in_flight_most / 2;
  if (in_place && b->add.open) status = gpuir__builder_seal(b, 0, &local);
  if (!status) status = gpuir__builder_packet(b, more + (in_place ? 0 : len), &local);
  if (!status) {
    if (in_place) b->add.open->external = text ? text : "";
    else if (len) memcpy(b->add.open->text.data + b->add.open->text.len, text, len);
    status = gpuir__builder_document(b, doc, text ? text : "", len, len, 0, &local);
    if (status && b->add.open) b->add.open->external = NULL;
  }
  return gpuir__builder_end(b, status, err, &local);
}

/* Checks a document's terms; *bytes becomes what a packet needs for them. */
static int gpuir__builder_check_terms(gpuir_builder *b, const gpuir_term_freq *terms, size_t n, size_t *bytes,
    gpuir_error *err) {
  size_t i, nslots = 16, total = 0;
  uint64_t sum = 0, *slots;
  if (!terms && n) return gpuir__refuse(err, "the terms are NULL, but their number is not 0");
  if (n >= UINT32_MAX) return gpuir__refuse(err, "a document of more than 2^32 - 2 terms");
  if (n > SIZE_MAX / 64) return gpuir__fail_nomem(err); /* the slots below take up to 32 bytes a term */
  for (i = 0; i < n; i++) {
    if (!terms[i].term || !terms[i].len)
      return gpuir__refuse(err, "term %lu of the document is empty", (unsigned long)i);
    if (terms[i].len > GPUIR_MAX_TERM)
      return gpuir__refuse(err, "term %lu of the document has %lu bytes; at most %d are allowed", (unsigned long)i,
          (unsigned long)terms[i].len, GPUIR_MAX_TERM);
    if (!terms[i].tf) return gpuir__refuse(err, "term %lu of the document has tf 0", (unsigned long)i);
    sum += terms[i].tf;
    if (sum > UINT32_MAX)
      return gpuir__refuse(err, "the document's tf add up to more than %lu", (unsigned long)UINT32_MAX);
    total += terms[i].len + 5;
  }
  while (nslots < 2 * n) nslots *= 2;
  b->add.seen.len = 0;
  slots = (uint64_t *)(void *)gpuir__buf_room(&b->a, &b->add.seen, nslots * 8);
  if (!slots) return gpuir__fail_nomem(err);
  memset(slots, 0, nslots * 8);
  for (i = 0; i < n; i++) {
    uint64_t hash = gpuir__hash(terms[i].term, terms[i].len, b->set.seed);
    size_t at = (size_t)(hash & (nslots - 1));
    for (; slots[at]; at = (at + 1) & (nslots - 1)) {
      const gpuir_term_freq *other = &terms[(slots[at] >> 32) - 1];
      if ((uint32_t)slots[at] == (uint32_t)hash && other->len == terms[i].len &&
          !memcmp(other->term, terms[i].term, terms[i].len))
        return gpuir__refuse(err, "terms %lu and %lu of the document are the same",
            (unsigned long)((slots[at] >> 32) - 1), (unsigned long)i);
    }
    slots[at] = (uint64_t)(i + 1) << 32 | (uint32_t)hash;
  }
  if (b->add.seen.cap > b->tasks.size) gpuir__buf_free(&b->a, &b->add.seen);
  *bytes = total;
  return GPUIR_OK;
}

GPUIR_API int gpuir_builder_add_terms(gpuir_builder *builder, const gpuir_doc_desc *doc, const gpuir_term_freq *terms,
    size_t n, gpuir_error *err) {
  gpuir_builder *b = builder;
  gpuir_error local = {0, 0, ""};
  size_t bytes = 0, i;
  int status;
  if (b && b->set.positions) return gpuir__refuse(err, "counted terms have no positions, which this index keeps");
  status = gpuir__builder_ready_text(b, err);
  if (status) return status;
  status = gpuir__builder_check_doc(b, doc, err);
  if (status) return status;
  status = gpuir__builder_check_terms(b, terms, n, &bytes, &local);
  if (!status) status = gpuir__builder_packet(b, bytes, &local);
  if (!status) {
    uint8_t *p = b->add.open->text.data + b->add.open->text.len;
    for (i = 0; i < n; i++) {
      *p++ = (uint8_t)terms[i].len;
      memcpy(p, terms[i].term, terms[i].len);
      gpuir__store32(p + terms[i].len, terms[i].tf);
      p += terms[i].len + 4;
    }
    status = gpuir__builder_document(b, doc, NULL, 0, bytes, 1, &local);
  }
  return gpuir__builder_end(b, status, err, &local);
}

/* ---- merging */

/* Sends the unit to the workers, or encodes it here if none runs. */
GPUIR__NOINLINE int gpuir__builder_push_unit(gpuir_builder *b, gpuir__unit **unit, gpuir_error *err) {
  gpuir__unit *u = *unit;
  if (!u || !u->nterms) return GPUIR_OK;
  *unit = NULL;
  return gpuir__builder_push(b, u->used, err);
}

/* Makes room for `bytes` bytes of postings in the unit, or in the next one when it is full. */
static int gpuir__builder_unit_room(gpuir_builder *b, gpuir__unit **unit, uint64_t bytes, gpuir_error *err) {
  gpuir__unit *u = *unit;
  int status;
  if (u && u->used + u->items.len + u->parts.len + bytes > b->tasks.size) {
    status = gpuir__builder_push_unit(b, unit, err);
    if (status) return status;
    u = NULL;
  }
  if (u) return GPUIR_OK;
  status = gpuir__builder_slot(b, bytes, err);
  if (status) return status;
  u = *unit = &b->merge.units[b->tasks.queue.pushed % b->tasks.n];
  /* gpuir__vbyte_get may read a little beyond damaged bytes */
  return gpuir__area_need(&b->a, &u->bytes, gpuir__max64(b->tasks.size, bytes) + 64, b->tasks.in_flight_most,
      b->writer->tmp, GPUIR__TMP_UNITS, err);
}

/* Adds a term that stands in runs[0..n) to the unit, or to the next one when it is full. */
static int gpuir__builder_gather(gpuir_builder *b, gpuir__unit **unit, gpuir__run *const *runs, size_t n,
    gpuir_error *err) {
  const gpuir_allocator *a = &b->a;
  gpuir__unit *u;
  gpuir__item item;
  uint64_t bytes = 0;
  size_t i;
  int status;
  item.df = 0;
  item.parts = (uint32_t)n;
  item.term_len = runs[0]->term_len;
  for (i = 0; i < n; i++) {
    bytes += runs[i]->bytes;
    item.df += runs[i]->df;
  }
  item.bytes = b->set.positions ? bytes : 0;
  status = gpuir__builder_unit_room(b, unit, bytes, err);
  if (status) return status;
  u = *unit;
  if (gpuir__buf_put(a, &u->terms, runs[0]->term, runs[0]->term_len) ||
      gpuir__buf_put(a, &u->items, &item, sizeof item))
    return gpuir__fail_nomem(err);
  for (i = 0; i < n; i++) {
    gpuir__part part;
    memset(&part, 0, sizeof part);
    part.at = u->used;
    part.len = runs[i]->bytes;
    part.worker = runs[i]->worker;
    if (gpuir__buf_put(a, &u->parts, &part, sizeof part)) return gpuir__fail_nomem(err);
    status = gpuir__run_copy(runs[i], u->bytes.data + u->used, err);
    if (status) return status;
    u->used += part.len;
  }
  u->nterms++;
  u->postings += item.df;
  return GPUIR_OK;
}

/* Restores the heap's order below i; equal terms are ordered by run, which is by worker and then docID. */
GPUIR__HOT static void gpuir__heap_sift(gpuir__run **heap, size_t i, size_t n) {
  gpuir__run *run = heap[i];
  for (;;) {
    size_t child = 2 * i + 1;
    int c;
    if (child >= n) break;
    if (child + 1 < n) {
      c = gpuir__run_compare(heap[child + 1], heap[child]);
      if (c < 0 || (c == 0 && heap[child + 1] < heap[child])) child++;
    }
    c = gpuir__run_compare(run, heap[child]);
    if (c < 0 || (c == 0 && run < heap[child])) break;
    heap[i] = heap[child];
    i = child;
  }
  heap[i] = run;
}

/* Merges the opened runs of heap[0..n); `same` has room for n. */
static int gpuir__builder_merge_runs(gpuir_builder *b, gpuir__run **heap, gpuir__run **same, size_t n,
    gpuir_error *err) {
  gpuir__unit *unit = NULL;
  size_t i;
  int status = GPUIR_OK;
  for (i = n / 2; i-- > 0;) gpuir__heap_sift(heap, i, n);
  while (n) {
    size_t nsame = 0;
    do {
      same[nsame++] = heap[0];
      heap[0] = heap[--n];
      if (n) gpuir__heap_sift(heap, 0, n);
    } while (n && gpuir__run_compare(heap[0], same[0]) == 0);
    status = gpuir__builder_gather(b, &unit, same, nsame, err);
    for (i = 0; i < nsame && !status; i++) {
      int more;
      size_t at = n;
      status = gpuir__run_next(same[i], &more, err);
      if (status || !more) continue;
      n++;
      while (at > 0) { /* sift up */
        size_t parent = (at - 1) / 2;
        int c = gpuir__run_compare(same[i], heap[parent]);
        if (c > 0 || (c == 0 && same[i] > heap[parent])) break;
        heap[at] = heap[parent];
        at = parent;
      }
      heap[at] = same[i];
    }
    if (status) return status;
  }
  status = gpuir__builder_push_unit(b, &unit, err);
  return status ? status : gpuir__builder_retire_all(b, err);
}

/* Reads the runs through buffers of memory / nruns bytes each and merges them. */
GPUIR__HOT static int gpuir__builder_merge(gpuir_builder *b, uint64_t nruns, uint64_t memory, gpuir_error *err) {
  const gpuir_allocator *a = &b->a;
  size_t n = (size_t)nruns, cap = (size_t)gpuir__max64(8192, gpuir__min64(memory / nruns, 1u << 20)), i = 0, live = 0;
  gpuir__run *runs = (gpuir__run *)gpuir__alloc_zero(a, n * sizeof *runs);
  gpuir__run **heap = (gpuir__run **)gpuir__alloc(a, 2 * n * sizeof *heap);
  unsigned w;
  int status = GPUIR_OK;
  if (!runs || !heap) status = gpuir__fail_nomem(err);
  for (w = 0; w < b->threads.nworkers && !status; w++) {
    gpuir__worker *worker = &b->threads.workers[w];
    size_t at, count = worker->runs.len / sizeof(gpuir__extent);
    for (at = 0; at < count && !status; at++) {
      gpuir__run *r = &runs[i++];
      gpuir__extent extent;
      int more = 0;
      memcpy(&extent, worker->runs.data + at * sizeof extent, sizeof extent);
      r->at = extent.start;
      r->end = extent.end;
      r->worker = w;
      r->spool = &worker->spool;
      r->cap = (size_t)gpuir__max64(8192, gpuir__min64(cap, extent.end - extent.start));
      r->buf = (uint8_t *)gpuir__alloc(a, r->cap + 64);
      status = r->buf ? gpuir__run_next(r, &more, err) : gpuir__fail_nomem(err);
      if (more) heap[live++] = r;
    }
  }
  if (!status) status = gpuir__builder_merge_runs(b, heap, heap + n, live, err);
  if (runs)
    for (i = 0; i < n; i++) gpuir__free(a, runs[i].buf, runs[i].cap + 64);
  gpuir__free(a, heap, 2 * n * sizeof *heap);
  gpuir__free(a, runs, n * sizeof *runs);
  return status;
}

/* Frees the packets, or the units. No thread may run. */
GPUIR__COLD static void gpuir__builder_free_tasks(gpuir_builder *b) {
  unsigned i;
  if (b->add.packets) {
    for (i = 0; i < b->tasks.n; i++) {
      gpuir__buf_free(&b->a, &b->add.packets[i].text);
      gpuir__buf_free(&b->a, &b->add.packets[i].sizes);
      gpuir__buf_free(&b->a, &b->add.packets[i].lengths);
    }
    gpuir__free(&b->a, b->add.packets, b->tasks.n * sizeof *b->add.packets);
    b->add.packets = NULL;
  }
  if (b->merge.units) {
    for (i = 0; i < b->tasks.n; i++) {
      gpuir__area_free(&b->a, &b->merge.units[i].bytes);
      gpuir__buf_free(&b->a, &b->merge.units[i].terms);
      gpuir__buf_free(&b->a, &b->merge.units[i].items);
      gpuir__buf_free(&b->a, &b->merge.units[i].parts);
      gpuir__batch_clear(&b->a, &b->merge.units[i].out);
    }
    gpuir__free(&b->a, b->merge.units, b->tasks.n * sizeof *b->merge.units);
    b->merge.units = NULL;
  }
}

/* Makes encoders and units, when every document's length is known. */
GPUIR__COLD static int gpuir__builder_open_lists(gpuir_builder *b, gpuir_error *err) {
  const uint32_t *lengths = NULL;
  uint64_t ndocs = 0, tokens = 0;
  unsigned i;
  int status = gpuir__writer_lengths(b->writer, &lengths, &ndocs, &tokens, err);
  if (status) return status;
  for (i = 0; i < b->threads.nworkers; i++) {
    gpuir__worker *w = &b->threads.workers[i];
    status = gpuir__encoder_create(&w->encoding.encoder, &b->a, b->set.codec, b->set.freq_codec, lengths, ndocs, tokens,
        b->set.k1, b->set.b, b->set.dense, b->set.simd);
    if (status) return gpuir__fail(err, status, 0, "%s", gpuir_strerror(status));
    w->encoding.made = 1;
    w->encoding.heads = gpuir__alloc(&b->a, b->threads.nworkers * sizeof(gpuir__chain));
    if (!w->encoding.heads) return gpuir__fail_nomem(err);
    b->told.done.postings_total += w->postings;
  }
  gpuir__builder_free_tasks(b);
  /* An eighth of the memory each for the runs' buffers, for light and for heavy lists, for units on their way
   * (as gathered, and as encoded), and at most for the writer. */
  b->tasks.in_flight = b->tasks.retired = 0;
  b->tasks.in_flight_most = b->set.memory / 16;
  b->tasks.size = (size_t)gpuir__max64(16384, gpuir__min64(b->tasks.in_flight_most / b->tasks.n, 1u << 20));
  b->merge.light = b->set.memory / 8 / b->threads.nworkers;
  b->merge.units = (gpuir__unit *)gpuir__alloc_zero(&b->a, b->tasks.n * sizeof *b->merge.units);
  if (!b->merge.units) return gpuir__fail_nomem(err);
  gpuir__queue_reset(&b->tasks.queue);
  return GPUIR_OK;
}

/* Merges the runs into lists of the writer. */
static int gpuir__builder_lists(gpuir_builder *b, uint64_t nruns, gpuir_error *err) {
  int status = gpuir__builder_open_lists(b, err);
  if (status) return status;
  if (b->threads.nworkers > 1 && b->told.done.postings_total > 100000) gpuir__builder_start(b);
  status = gpuir__builder_merge(b, nruns, b->set.memory / 8, err);
  gpuir__builder_join(b, status != 0);
  return status;
}
