
/* ========
 * [40-columns]  columns: opening, values of documents
 *
 * Open checks that the sections have the sizes which the fields and the number of documents ask for. All else is
 * checked where it is read: a block whose form or place makes no sense has no values, and a rank beyond the last none
 * either.
 *
 * Uses      [18-codecs], [34-fields], [35-keys], [37-layout], [38-notes].
 * Start at  gpuir__columns_open, gpuir__column_open, gpuir__column_value.
 * Tests     tests/unit/40_columns.c
 * ======*/

#ifndef GPUIR_NO_COLUMNS
static int gpuir__columns_bad(const gpuir__segment *ix, gpuir_error *err, const char *cause) {
  return gpuir__fail(err, GPUIR_E_FORMAT, ix->section[GPUIR__S_COLUMNS] ? ix->section[GPUIR__S_COLUMNS]->offset : 0,
      "%s: %s", ix->path, cause);
}

/* Says whether the sections have the lengths that n columns take. */
static int gpuir__columns_fit(const gpuir__segment *ix, uint64_t n) {
  static const struct {
    uint32_t id, item;
  } blocks[] = {{GPUIR__S_COL_LEAST, 8}, {GPUIR__S_COL_MOST, 8}, {GPUIR__S_COL_OFF, 4}, {GPUIR__S_COL_FORM, 2}};
  const uint64_t items = n * ix->columns.blocks;
  unsigned i;
  if (ix->section[GPUIR__S_COLUMNS]->length != n * sizeof(gpuir__column)) return 0;
  for (i = 0; i < sizeof blocks / sizeof *blocks; i++)
    if (ix->section[blocks[i].id]->length != items * blocks[i].item) return 0;
  return ix->section[GPUIR__S_KEY_PAGES]->length % 8 == 0;
}

/* Checks the rows: each is of its field, and its blocks and values lie in the sections. */
static int gpuir__columns_rows(const gpuir__segment *ix) {
  const gpuir__schema *f = ix->columns.fields;
  const uint64_t data = ix->section[GPUIR__S_COL_DATA]->length, pages = ix->section[GPUIR__S_KEY_PAGES]->length / 8;
  unsigned i;
  for (i = 0; i < f->n; i++) {
    const gpuir__column *row = &ix->columns.rows[i];
    const int text = gpuir__is_text_column(f->of[i].column);
    if (row->kind != (uint32_t)f->of[i].column || row->decimals != f->of[i].decimals) return 0;
    if (row->blocks != ix->columns.blocks || row->data > data || row->data % 16 || !row->divisor) return 0;
    if (row->page > pages || (text && (row->values > UINT32_MAX || gpuir__key_pages(row->values) > pages - row->page)))
      return 0;
  }
  return 1;
}

/* Reads the fields, and checks the sections of their columns. */
static int gpuir__columns_open(gpuir__segment *ix, gpuir_error *err) {
  gpuir__index_columns *x = &ix->columns;
  unsigned id, there = 0;
  int status;
  for (id = GPUIR__S_COLUMNS; id <= GPUIR__S_KEY_PAGES; id++) there += ix->section[id] != NULL;
  if (!there && !*ix->meta.columns) return GPUIR_OK;
  if (there != GPUIR__S_KEY_PAGES - GPUIR__S_COLUMNS + 1 || !*ix->meta.columns)
    return gpuir__columns_bad(ix, err, "some sections of columns are missing, or the fields that they are of");
  status = gpuir__schema_make(&ix->a, ix->meta.columns, &x->fields, NULL);
  if (status == GPUIR_E_NOMEM) return gpuir__fail_nomem(err);
  if (status) return gpuir__columns_bad(ix, err, "the meta section's columns are none");
  x->blocks = (ix->stat.documents + GPUIR__BLOCK - 1) / GPUIR__BLOCK;
  if (!gpuir__columns_fit(ix, x->fields->n)) return gpuir__columns_bad(ix, err, "columns do not fit the documents");
  if (!gpuir__columns_rows(ix)) return gpuir__columns_bad(ix, err, "a column does not fit its field, or its sections");
  return GPUIR_OK;
}

/* ---- blocks */

/* A block of 128 documents, found and checked. */
typedef struct gpuir__column_block {
  const uint8_t *data; /* packed numbers; of several the ranks */
  const uint8_t *has; /* a bit a document that has a value; NULL: each has */
  const uint8_t *table; /* 8 bytes a number; NULL: there is none */
  const uint8_t *ends; /* of several: where each document's ranks end; NULL: one a document */
  uint64_t least;
  uint64_t total; /* of several: ranks that the block has room for */
  unsigned width, ends_width;
  int none; /* no document has a value */
} gpuir__column_block;

/* Takes n bytes of what is left; NULL: there are not as many. */
static const uint8_t *gpuir__column_take(const uint8_t **p, uint64_t *left, uint64_t n) {
  const uint8_t *at = *p;
  if (n > *left) return NULL;
  *p += n;
  *left -= n;
  return at;
}

/* Finds the parts of a block of several ranks a document. */
static int gpuir__column_several(gpuir__column_block *b, const uint8_t *p, uint64_t left) {
  const uint8_t *head = gpuir__column_take(&p, &left, 16);
  if (!head || head[0] > 32) return 0;
  b->ends_width = head[0];
  b->ends = gpuir__column_take(&p, &left, 16 * (uint64_t)b->ends_width);
  if (!b->ends) return 0;
  b->total = gpuir__packed_get(b->ends, GPUIR__BLOCK - 1, b->ends_width);
  b->data = gpuir__column_take(&p, &left, (b->total * b->width + 7) / 8);
  return b->data != NULL;
}

/* Finds the parts of a block that has its form; 0 where they do not lie in the section. */
static int gpuir__column_parts(gpuir__column_block *b, unsigned form, const uint8_t *p, uint64_t left) {
  if (b->width > 56 && b->width != 64) return 0;
  if (form == GPUIR__FORM_SEVERAL) return gpuir__column_several(b, p, left);
  if (form > (GPUIR__FORM_TABLE | GPUIR__FORM_MIXED)) return 0;
  if (form & GPUIR__FORM_MIXED && !(b->has = gpuir__column_take(&p, &left, 16))) return 0;
  if (form & GPUIR__FORM_TABLE &&
      (b->width > 4 || !(b->table = gpuir__column_take(&p, &left, (uint64_t)8 << b->width))))
    return 0;
  b->data = gpuir__column_take(&p, &left, 16 * (uint64_t)b->width);
  return b->data != NULL;
}

/* Finds the parts of a block of a column (both must exist). b->none says that no document of the block has a value, or
 * that its bytes are damaged: nothing else of b may be read then. */
static void gpuir__column_open(const gpuir__segment *ix, unsigned column, uint64_t block, gpuir__column_block *b) {
  const gpuir__index_columns *x = &ix->columns;
  const uint64_t at = column * x->blocks + block, size = ix->section[GPUIR__S_COL_DATA]->length;
  const uint64_t from = x->rows[column].data + (uint64_t)x->off[at] * 16;
  memset(b, 0, sizeof *b);
  b->least = x->least[at];
  b->width = x->form[at] & 255u;
  b->none = b->least > x->most[at] || from > size ||
      !gpuir__column_parts(b, x->form[at] >> 8, x->data + from, size - from) ||
      (b->ends && !gpuir__is_text_column((int)x->rows[column].kind));
}

/* Counts the values of document i of a block, a number or ranks; of ranks 0 is one too. *first becomes that of the
 * first. */
static uint64_t gpuir__column_count(const gpuir__column_block *b, unsigned i, uint64_t *first) {
  uint64_t end;
  *first = 0;
  if (b->none || (b->has && !(b->has[i / 8] >> i % 8 & 1))) return 0;
  if (!b->ends) return 1;
  *first = i ? gpuir__packed_get(b->ends, i - 1, b->ends_width) : 0;
  end = gpuir__packed_get(b->ends, i, b->ends_width);
  return end > *first && end <= b->total ? gpuir__min64(end - *first, GPUIR_MAX_VALUES) : 0;
}

/* Reads a number or a rank: of document i, or, of several, number `at`. */
static inline uint64_t gpuir__column_read(const gpuir__column_block *b, unsigned i, uint64_t at) {
  uint64_t v;
  if (b->ends) return gpuir__packed_get(b->data, at, b->width);
  v = gpuir__packed_get(b->data, i, b->width);
  return b->least + (b->table ? gpuir__load64(b->table + 8 * v) : v);
}

/* Reads the first value of document i of a block of a column, a number or a rank. 0: it has none. */
static inline int gpuir__column_first(const gpuir__column_block *b, int is_text, unsigned i, uint64_t *v) {
  uint64_t first;
  if (!gpuir__column_count(b, i, &first)) return 0;
  *v = gpuir__column_read(b, i, first);
  return !is_text || *v;
}

/* Returns a kept number of a column as a number without a sign, which has the order of those with one. */
static inline uint64_t gpuir__column_number(const gpuir__column *row, uint64_t v) {
  return gpuir__unsign(row->least) + v * row->divisor;
}

/* Returns the values of a key or a path. */
static gpuir__key_texts gpuir__column_texts(const gpuir__segment *ix, unsigned column) {
  const gpuir__index_columns *x = &ix->columns;
  gpuir__key_texts t;
  t.column = x->fields->of[column].column;
  t.n = x->rows[column].values;
  t.text = x->text;
  t.size = ix->section[GPUIR__S_KEY_TEXT]->length;
  t.pages = x->pages + x->rows[column].page;
  t.npages = ix->section[GPUIR__S_KEY_PAGES]->length / 8 - x->rows[column].page;
  return t;
}

/* ---- values of documents */

/* Reads value i of a document (< documents) and of a column that there is; its text goes to w. 0 or NOT_FOUND. */
static int gpuir__column_value(const gpuir__segment *ix, uint32_t docid, unsigned column, size_t i, gpuir_value *value,
    gpuir__key_walk *w) {
  const gpuir__column *row = &ix->columns.rows[column];
  gpuir__column_block b;
  uint64_t first, n, v;
  memset(value, 0, sizeof *value);
  value->field = column;
  gpuir__column_open(ix, column, docid / GPUIR__BLOCK, &b);
  n = gpuir__column_count(&b, docid % GPUIR__BLOCK, &first);
  if (i >= n) return GPUIR_E_NOT_FOUND;
  v = gpuir__column_read(&b, docid % GPUIR__BLOCK, first + i);
  if (!gpuir__is_text_column((int)row->kind)) {
    value->number = gpuir__resign(gpuir__column_number(row, v));
    return GPUIR_OK;
  } else {
    const gpuir__key_texts t = gpuir__column_texts(ix, column);
    if (!v || !gpuir__key_get(&t, v - 1, w)) return GPUIR_E_NOT_FOUND;
    value->text = w->text;
    value->len = w->len;
  }
  return GPUIR_OK;
}

/* A document's values on their way to another index. */
typedef struct gpuir__column_values {
  gpuir__buf values; /* gpuir_value */
  gpuir__buf text; /* of keys, which the values' `text` are offsets in until all are there */
  gpuir__key_walk walk;
} gpuir__column_values;

static void gpuir__column_values_free(const gpuir_allocator *a, gpuir__column_values *x) {
  gpuir__buf_free(a, &x->values);
  gpuir__buf_free(a, &x->text);
}

/* Collects all values of a document for its description. 0 or NOMEM. */
static int gpuir__column_collect(const gpuir_allocator *a, const gpuir__segment *ix, uint32_t docid,
    gpuir__column_values *x, gpuir_doc_desc *desc) {
  const unsigned n = ix->columns.fields ? ix->columns.fields->n : 0;
  gpuir_value *values, v;
  unsigned c;
  size_t i;
  x->values.len = x->text.len = 0;
  for (c = 0; c < n; c++)
    for (i = 0; !gpuir__column_value(ix, docid, c, i, &v, &x->walk); i++)
      if (gpuir__buf_put(a, &x->values, &v, sizeof v) || (v.text && gpuir__buf_put(a, &x->text, v.text, v.len)))
        return GPUIR_E_NOMEM;
  values = (gpuir_value *)(void *)x->values.data;
  desc->values = values;
  desc->nvalues = x->values.len / sizeof v;
  for (i = x->text.len = 0; i < desc->nvalues; i++)
    if (values[i].text) {
      values[i].text = (const char *)x->text.data + x->text.len;
      x->text.len += values[i].len;
    }
  return GPUIR_OK;
}
#endif
