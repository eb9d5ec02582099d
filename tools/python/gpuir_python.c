/* gpuir_python.c - the library of the Python package: gpuir.h, and the calls that Python makes of it.
 *
 * Python knows no struct of gpuir.h: what has members is filled in and read here, so that a struct that grows changes
 * nothing there. Each function is one call where Python would need several, of which each costs it a microsecond.
 */
#ifndef GPUIR_IMPLEMENTED /* it is elsewhere already, for who looks at this file alone */
#define GPUIR_IMPLEMENTATION
#endif
#include "gpuir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT GPUIR_API

/* The analyzer of an index for which none was named: the command's, or where it was left out, the next best. */
#ifdef GPUIR_WITH_UTF8PROC
#define DEFAULT_ANALYZER "text"
#else
#define DEFAULT_ANALYZER "basic"
#endif

/* The fields of an index, with their names. */
typedef struct gpuir_python_schema {
  size_t n;
  gpuir_field of[GPUIR_MAX_FIELDS];
  char rooms[GPUIR_MAX_FIELDS][GPUIR_FIELD_ROOM];
} gpuir_python_schema;

/* What the functions that build are told. NULL and 0: the default. */
typedef struct gpuir_python_settings {
  const char *path, *analyzer, *stem, *stop, *codec, *description;
  double k1, b; /* they count if `custom` is not 0 */
  uint64_t memory;
  unsigned threads;
  int custom, store, positions;
  const int *cancel; /* not 0 stops the building */
  const gpuir_python_schema *fields;
} gpuir_python_settings;

typedef struct gpuir_python_document {
  const char *source;
  size_t text_len, source_len, name_len; /* text_len: of a stored text */
  uint32_t first_line, last_line, length, stored;
} gpuir_python_document;

/* Which documents may be hits, and in what order they come, as gpuir_query_desc has it. */
typedef struct gpuir_python_choice {
  const char *where, *sort, *collapse;
} gpuir_python_choice;

typedef struct gpuir_python_facet {
  const char *value; /* of a key or a path; else NULL */
  size_t len;
  int64_t low, high;
  uint64_t count;
} gpuir_python_facet;

typedef struct gpuir_python_passage {
  uint64_t offset, bytes, first_mark, marks;
  uint32_t first_line, last_line, score;
} gpuir_python_passage;

static int is_cancelled(void *cancel, const gpuir_progress *progress) {
  (void)progress;
  return __atomic_load_n((const int *)cancel, __ATOMIC_RELAXED);
}

static void describe(const gpuir_python_settings *s, gpuir_builder_desc *d) {
  memset(d, 0, sizeof *d);
  d->path = s->path;
  d->analyzer.analyzer = s->analyzer ? s->analyzer : DEFAULT_ANALYZER;
  d->analyzer.stem = s->stem;
  d->analyzer.stop = s->stop;
  d->codec = s->codec;
  d->description = s->description;
  d->custom_bm25 = s->custom;
  d->k1 = (float)s->k1;
  d->b = (float)s->b;
  d->memory = s->memory;
  d->threads = s->threads;
  d->store_text = s->store;
  d->positions = s->positions;
  if (s->fields) {
    d->fields = s->fields->of;
    d->nfields = s->fields->n;
  }
  if (s->cancel) {
    d->progress = is_cancelled;
    d->progress_user = (void *)(uintptr_t)s->cancel;
  }
}

EXPORT int gpuir_python_build(const gpuir_python_settings *s, gpuir_builder **builder, gpuir_error *err) {
  gpuir_builder_desc d;
  describe(s, &d);
  return gpuir_builder_create(&d, builder, err);
}

/* Takes a builder from where it is kept; NULL: another thread, or an earlier call, did so. */
static gpuir_builder *take(gpuir_builder **kept) { return __atomic_exchange_n(kept, NULL, __ATOMIC_ACQ_REL); }

EXPORT void gpuir_python_close(gpuir_builder **kept) { gpuir_builder_destroy(take(kept)); }

/* Writes the index, and destroys the builder. */
EXPORT int gpuir_python_write(gpuir_builder **kept, gpuir_error *err) {
  gpuir_builder *const builder = take(kept);
  const int status = builder ? gpuir_builder_write(builder, NULL, err) : GPUIR_E_CANCELLED;
  gpuir_builder_destroy(builder);
  return status;
}

/* Writes why a call of this file failed. */
static int refuse(gpuir_error *err, const char *what, const char *name, const char *text) {
  memset(err, 0, sizeof *err);
  err->code = GPUIR_E_ARGUMENT;
  (void)snprintf(err->msg, sizeof err->msg, "field '%.40s': %s%.60s", name, what, text);
  return err->code;
}

EXPORT void gpuir_python_schema_destroy(gpuir_python_schema *schema) { free(schema); }

/* Takes the fields of an open index, whose strings are used as long as the schema, or reads n of them, parted by a NUL.
 */
EXPORT int gpuir_python_schema_create(const gpuir_index *index, const char *text, size_t n, gpuir_python_schema **out,
    gpuir_error *err) {
  gpuir_python_schema *s = (gpuir_python_schema *)calloc(1, sizeof *s);
  int status = s ? GPUIR_OK : GPUIR_E_NOMEM;
  *out = NULL;
  if (!status && n > GPUIR_MAX_FIELDS) status = refuse(err, "there are more fields than an index can have", text, "");
  while (!status && index && s->n < GPUIR_MAX_FIELDS && !gpuir_field_get(index, s->n, &s->of[s->n])) s->n++;
  for (; !status && !index && s->n < n; s->n++, text += strlen(text) + 1)
    status = gpuir_field_parse(text, &s->of[s->n], s->rooms[s->n], err);
  if (status) free(s);
  else *out = s;
  return status;
}

/* Makes values of nvalues pairs of a field's name and a text, each with a NUL behind it. */
static int read_values(const gpuir_python_schema *schema, const char *pairs, size_t nvalues, gpuir_value *values,
    gpuir_error *err) {
  size_t i;
  for (i = 0; i < nvalues; i++) {
    const char *name = pairs, *text = name + strlen(name) + 1;
    size_t f = 0;
    while (f < schema->n && strcmp(schema->of[f].name, name) != 0) f++;
    if (f == schema->n) return refuse(err, "the index has no such field", name, "");
    if (gpuir_value_parse(&schema->of[f], text, strlen(text), &values[i]))
      return refuse(err, "it cannot hold ", name, text);
    values[i].field = (unsigned)f;
    pairs = text + strlen(text) + 1;
  }
  return GPUIR_OK;
}

EXPORT int gpuir_python_add(gpuir_builder *builder, gpuir_live *live, const char *name, size_t name_len,
    const char *text, size_t len, const gpuir_python_schema *schema, const char *pairs, size_t nvalues,
    gpuir_error *err) {
  gpuir_doc_desc d;
  gpuir_value *values = NULL;
  int status = GPUIR_OK;
  memset(&d, 0, sizeof d);
  d.name = name;
  d.name_len = name_len;
  if (nvalues) {
    values = (gpuir_value *)malloc(nvalues * sizeof *values);
    status = values ? read_values(schema, pairs, nvalues, values, err) : GPUIR_E_NOMEM;
    d.values = values;
    d.nvalues = nvalues;
  }
  if (!status)
    status = builder ? gpuir_builder_add_text(builder, &d, text, len, err) : gpuir_live_add(live, &d, text, len, err);
  free(values);
  return status;
}

EXPORT int gpuir_python_live(const gpuir_python_settings *s, int create, gpuir_live **live, gpuir_error *err) {
  gpuir_live_desc d;
  memset(&d, 0, sizeof d);
  describe(s, &d.settings);
  d.create = create;
  return gpuir_live_open(&d, live, err);
}

/* A searcher, with what each of its calls needs. */
typedef struct gpuir_python_searcher {
  const gpuir_index *index;
  gpuir_searcher *searcher;
  gpuir_error error; /* of the last call that failed */
} gpuir_python_searcher;

EXPORT int gpuir_python_searcher_create(const gpuir_index *index, unsigned threads, const int *cancel,
    gpuir_python_searcher **out, gpuir_error *err) {
  gpuir_python_searcher *s = (gpuir_python_searcher *)calloc(1, sizeof *s);
  gpuir_searcher_desc d;
  int status = s ? GPUIR_OK : GPUIR_E_NOMEM;
  memset(&d, 0, sizeof d);
  d.threads = threads;
  d.cancel = cancel;
  if (!status) s->index = index;
  if (!status) status = gpuir_searcher_create(index, &d, &s->searcher, err);
  if (status) free(s);
  *out = status ? NULL : s;
  return status;
}

EXPORT void gpuir_python_searcher_destroy(gpuir_python_searcher *s) {
  gpuir_searcher_destroy(s->searcher);
  free(s);
}

EXPORT void gpuir_python_searcher_error(const gpuir_python_searcher *s, gpuir_error *err) { *err = s->error; }

/* Notes why a call has failed. Returns its status. */
static int note_failure(gpuir_python_searcher *s, int status, int searched) {
  if (status && searched) gpuir_searcher_error(s->searcher, &s->error);
  if (s->error.code != status) memset(&s->error, 0, sizeof s->error);
  return status;
}

/* choice: NULL: all documents, by score. With one a text without words asks for all documents that it passes. */
static int parse(const gpuir_index *index, int mode, const char *text, size_t len, const gpuir_python_choice *choice,
    gpuir_query **query, gpuir_error *err) {
  gpuir_query_desc d;
  memset(&d, 0, sizeof d);
  d.mode = mode;
  d.keep_rarest = mode != GPUIR_AND;
  if (choice) {
    d.where = choice->where;
    d.sort = choice->sort;
    d.collapse = choice->collapse;
    d.all = 1;
  }
  return gpuir_query_parse(index, &d, text, len, query, err);
}

/* Ranks one query, within timeout_ns if that is not 0. Returns the number of hits, or a status below 0. */
EXPORT int64_t gpuir_python_search(gpuir_python_searcher *s, int mode, const char *text, size_t len, gpuir_hit *hits,
    size_t k, const gpuir_python_choice *choice, uint64_t timeout_ns) {
  gpuir_query *query = NULL;
  size_t n = 0;
  int status = parse(s->index, mode, text, len, choice, &query, &s->error);
  if (status) return note_failure(s, status, 0);
  gpuir_searcher_set_timeout(s->searcher, timeout_ns);
  status = gpuir_search(s->searcher, query, hits, k, &n);
  gpuir_query_destroy(query);
  return status ? note_failure(s, status, 1) : (int64_t)n;
}

/* Counts the documents that match. Returns their number, or a status below 0. */
EXPORT int64_t gpuir_python_count(gpuir_python_searcher *s, int mode, const char *text, size_t len,
    const gpuir_python_choice *choice, uint64_t timeout_ns) {
  gpuir_query *query = NULL;
  uint64_t n = 0;
  int status = parse(s->index, mode, text, len, choice, &query, &s->error);
  if (status) return note_failure(s, status, 0);
  gpuir_searcher_set_timeout(s->searcher, timeout_ns);
  status = gpuir_count(s->searcher, query, &n);
  gpuir_query_destroy(query);
  return status ? note_failure(s, status, 1) : (int64_t)n;
}

/* Counts what matches have in n columns, which are parted by a NUL. Returns a status; *facets must be destroyed. */
EXPORT int64_t gpuir_python_facets(gpuir_python_searcher *s, int mode, const char *text, size_t len,
    const gpuir_python_choice *choice, const char *columns, size_t n, gpuir_facets **facets, uint64_t timeout_ns) {
  const char *each[GPUIR_MAX_FIELDS];
  gpuir_query *query = NULL;
  size_t i;
  int status = n > GPUIR_MAX_FIELDS ? GPUIR_E_ARGUMENT : GPUIR_OK;
  for (i = 0; i < n && !status; i++, columns += strlen(columns) + 1) each[i] = columns;
  if (!status) status = parse(s->index, mode, text, len, choice, &query, &s->error);
  if (status) return note_failure(s, status, 0);
  gpuir_searcher_set_timeout(s->searcher, timeout_ns);
  status = gpuir_facets_count(s->searcher, query, each, n, facets, NULL);
  gpuir_query_destroy(query);
  return note_failure(s, status, 1);
}

/* Tells facet i of a column; its value lives as long as the facets. */
EXPORT int gpuir_python_facet_get(const gpuir_facets *facets, size_t column, size_t i, gpuir_python_facet *out) {
  gpuir_facet f;
  const int status = gpuir_facets_get(facets, column, i, &f);
  if (status) return status;
  out->value = f.value;
  out->len = f.len;
  out->low = f.low;
  out->high = f.high;
  out->count = f.count;
  return GPUIR_OK;
}

/* Parses nq queries, each of which but the last one ends with a newline. *bad gets the number of one that cannot be
 * parsed. */
static int parse_all(const gpuir_index *index, int mode, const char *text, size_t len,
    const gpuir_python_choice *choice, gpuir_query **queries, size_t nq, size_t *bad, gpuir_error *err) {
  size_t i, at = 0;
  for (i = 0; i < nq; i++) {
    const char *nl = (const char *)memchr(text + at, '\n', len - at);
    const size_t end = nl ? (size_t)(nl - text) : len;
    const int status = parse(index, mode, text + at, end - at, choice, &queries[i], err);
    *bad = i;
    if (status) return status;
    at = nl ? end + 1 : len;
  }
  *bad = nq;
  return GPUIR_OK;
}

/* Ranks nq queries, one a line; hits[nq * k] and counts[nq] get the answers. *bad: the number of a query that cannot be
 * parsed, otherwise nq. */
EXPORT int gpuir_python_batch(gpuir_python_searcher *s, int mode, const char *text, size_t len, size_t nq, size_t k,
    const gpuir_python_choice *choice, gpuir_hit *hits, uint32_t *counts, size_t *bad) {
  gpuir_query **queries = (gpuir_query **)calloc(nq ? nq : 1, sizeof *queries);
  size_t i;
  int status;
  if (!queries) return note_failure(s, GPUIR_E_NOMEM, 0);
  status = note_failure(s, parse_all(s->index, mode, text, len, choice, queries, nq, bad, &s->error), 0);
  if (!status) {
    gpuir_searcher_set_timeout(s->searcher, 0);
    status = gpuir_search_batch(s->searcher, (const gpuir_query *const *)queries, nq, k, hits, counts);
    (void)note_failure(s, status, 1);
  }
  for (i = 0; i < nq; i++) gpuir_query_destroy(queries[i]);
  free(queries);
  return status;
}

EXPORT int gpuir_python_document_get(const gpuir_index *index, uint32_t docid, gpuir_python_document *out) {
  gpuir_doc d;
  const int status = gpuir_doc_get(index, docid, &d);
  if (status) return status;
  out->stored = (uint32_t)d.stored;
  out->text_len = (size_t)d.stored_bytes;
  out->source = d.source;
  out->source_len = d.source_len;
  out->name_len = d.name_len;
  out->first_line = d.first_line;
  out->last_line = d.last_line;
  out->length = d.length;
  return GPUIR_OK;
}

/* Copies n bytes of the stored text, the first of which is number `from`. */
EXPORT int gpuir_python_text(const gpuir_index *index, uint32_t docid, uint64_t from, char *text, size_t n) {
  return gpuir_doc_text(index, docid, from, text, n);
}

/* Copies the name, of which cap - 1 bytes fit. */
EXPORT int gpuir_python_name(const gpuir_index *index, uint32_t docid, char *name, size_t cap) {
  gpuir_doc d;
  const int status = gpuir_doc_get(index, docid, &d);
  if (!status) (void)gpuir_doc_name(&d, name, cap);
  return status;
}

/* Writes the name of field i of an index. */
EXPORT int gpuir_python_field(const gpuir_index *index, size_t i, char name[GPUIR_FIELD_ROOM], int *column,
    unsigned *decimals) {
  gpuir_field f;
  const int status = gpuir_field_get(index, i, &f);
  if (status) return status;
  (void)snprintf(name, GPUIR_FIELD_ROOM, "%s", f.name);
  *column = f.column;
  *decimals = f.decimals;
  return GPUIR_OK;
}

/* Writes value i of a document in a field to room or, of a number or a date, to *number. */
EXPORT int gpuir_python_value(const gpuir_index *index, uint32_t docid, unsigned field, size_t i,
    char room[GPUIR_MAX_VALUE + 1], int64_t *number) {
  gpuir_value v;
  const int status = gpuir_doc_value(index, docid, field, i, &v, room);
  if (!status) *number = v.number;
  return status;
}

/* Counts documents, and docIDs below which they lie. */
EXPORT int gpuir_python_info(const gpuir_index *index, uint64_t *documents, uint64_t *docids, const char **analyzer) {
  gpuir_index_info info;
  const int status = gpuir_index_get_info(index, &info);
  if (status) return status;
  *documents = info.documents;
  *docids = info.docids;
  *analyzer = info.analyzer;
  return GPUIR_OK;
}

/* Finds the passages of a stored text: *n <= cap of them, and *nmarks <= marks_cap marks (offset and bytes). */
EXPORT int gpuir_python_passages(const gpuir_index *index, int mode, const char *query_text, size_t len, uint32_t docid,
    size_t tokens, const int *cancel, gpuir_python_passage *passages, size_t cap, size_t *n, uint64_t *marks,
    size_t marks_cap, gpuir_error *err) {
  gpuir_passages_desc d;
  gpuir_passage_room room;
  gpuir_query *query = NULL;
  size_t i;
  int status = parse(index, mode, query_text, len, NULL, &query, err);
  memset(&d, 0, sizeof d);
  memset(&room, 0, sizeof room);
  if (status) return status;
  d.tokens = tokens;
  d.cancel = cancel;
  room.passages = (gpuir_passage *)malloc(cap * sizeof *room.passages);
  room.marks = (gpuir_mark *)malloc(marks_cap * sizeof *room.marks);
  room.cap = cap;
  room.marks_cap = marks_cap;
  status = room.passages && room.marks ? gpuir_doc_passages(query, &d, docid, &room, err) : GPUIR_E_NOMEM;
  *n = status ? 0 : room.n;
  for (i = 0; i < *n; i++) {
    const gpuir_passage *x = &room.passages[i];
    const gpuir_python_passage p = {x->offset, x->bytes, x->first_mark, x->marks, x->first_line, x->last_line,
        x->score};
    passages[i] = p;
  }
  for (i = 0; !status && i < room.nmarks; i++) {
    marks[2 * i] = room.marks[i].offset;
    marks[2 * i + 1] = room.marks[i].bytes;
  }
  free(room.passages);
  free(room.marks);
  gpuir_query_destroy(query);
  return status;
}
