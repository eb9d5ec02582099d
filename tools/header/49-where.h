
/* ========
 * [49-where]  where: from text to predicates
 *
 *     where     = group *( blanks "|" blanks group )               one group holds
 *     group     = predicate *( blanks predicate )                  all hold
 *     predicate = [ "-" ] name "=" item *( "," item )              any item; "-": not so
 *     item      = value / [ value ] ".." [ value ]                 both ends count; ".." alone: any value
 *     value     = bytes without white space " , | ..  or  '"' bytes, "" for ", '"'
 *
 * Values stay text here, or bounds of numbers: what they are in a segment is found in [50-sieve].
 *
 * Uses      [30-analysis] (white space), [34-fields].
 * Start at  gpuir__where_make.
 * Tests     tests/unit/49_where.c
 * ======*/

#define GPUIR__WHERE_BYTES 4096u
#define GPUIR__WHERE_PREDICATES 64u
#define GPUIR__WHERE_ITEMS 1024u

#ifndef GPUIR_NO_COLUMNS
/* A value or a range: [0] its begin, [1] its end, which of a value are the same. */
typedef struct gpuir__where_item {
  uint8_t has[2]; /* 0: it is open there */
  uint32_t at[2], len[2]; /* of text among gpuir__where.bytes */
  gpuir__bounds bounds[2]; /* of numbers and dates */
} gpuir__where_item;

typedef struct gpuir__predicate {
  uint32_t at, len; /* in the text */
  uint32_t first, n; /* its items */
  uint8_t column, negated, group;
} gpuir__predicate;

/* A where, in one piece of memory. */
typedef struct gpuir__where {
  gpuir_allocator a;
  size_t size;
  char *text, *bytes; /* as it was given, with a NUL behind it; values without quotes */
  size_t len, nbytes;
  gpuir__predicate *predicates;
  gpuir__where_item *items;
  unsigned n, nitems;
} gpuir__where;

static void gpuir__where_free(gpuir__where *w) {
  gpuir_allocator a;
  if (!w) return;
  a = w->a;
  gpuir__free(&a, w, w->size);
}

/* A text that is being read. */
typedef struct gpuir__where_reader {
  gpuir__where *w;
  const gpuir__schema *schema;
  size_t at;
  gpuir_error *err;
} gpuir__where_reader;

/* Fails at a byte of the text. */
#define gpuir__where_fail(r, offset, ...) gpuir__fail((r)->err, GPUIR_E_WHERE, (offset), __VA_ARGS__)

static char gpuir__where_peek(const gpuir__where_reader *r) { return r->at < r->w->len ? r->w->text[r->at] : 0; }

/* Says whether two points stand here. */
static int gpuir__where_dots(const gpuir__where_reader *r) {
  return r->at + 1 < r->w->len && r->w->text[r->at] == '.' && r->w->text[r->at + 1] == '.';
}

/* Says whether a bare value ends here. */
static int gpuir__where_ends(const gpuir__where_reader *r) {
  const char c = gpuir__where_peek(r);
  return r->at >= r->w->len || gpuir__is_space(c) || c == ',' || gpuir__where_dots(r);
}

/* Copies a value in quotes. */
static int gpuir__where_quoted(gpuir__where_reader *r) {
  const size_t quote = r->at++;
  for (;;) {
    if (r->at >= r->w->len) return gpuir__where_fail(r, quote, "where: a quote that is not closed");
    if (r->w->text[r->at] == '"' && (++r->at >= r->w->len || r->w->text[r->at] != '"')) break;
    r->w->bytes[r->w->nbytes++] = r->w->text[r->at++];
  }
  if (gpuir__where_ends(r)) return GPUIR_OK;
  return gpuir__where_fail(r, r->at, "where: a blank, ',' or '..' comes behind a value in quotes");
}

/* Reads a value, the begin (0) or the end (1) of an item of a field. */
static int gpuir__where_value(gpuir__where_reader *r, const gpuir_field *f, gpuir__where_item *item, int end) {
  gpuir__where *w = r->w;
  const size_t from = r->at;
  const char *text = w->bytes + w->nbytes;
  item->at[end] = (uint32_t)w->nbytes;
  if (gpuir__where_peek(r) == '"') {
    const int status = gpuir__where_quoted(r);
    if (status) return status;
  } else {
    for (; !gpuir__where_ends(r); w->bytes[w->nbytes++] = w->text[r->at++]) {
      if (w->text[r->at] == '|')
        return gpuir__where_fail(r, r->at, "where: '|' in a value: write name=a,b for either, or blanks around '|'");
      if (w->text[r->at] == '"') return gpuir__where_fail(r, r->at, "where: a quote within a value");
    }
  }
  item->len[end] = (uint32_t)(w->nbytes - item->at[end]);
  item->has[end] = 1;
  if (!item->len[end]) return gpuir__where_fail(r, from, "where: a value is missing");
  if (gpuir__is_text_column(f->column)) return GPUIR_OK;
  if (f->column == GPUIR_DATE ? gpuir__date_bounds(text, item->len[end], &item->bounds[end])
                              : gpuir__number_bounds(text, item->len[end], f->decimals, &item->bounds[end]))
    return GPUIR_OK;
  return gpuir__where_fail(r, from, "where: '%.*s' is no %s", (int)gpuir__min64(item->len[end], 40), text,
      f->column == GPUIR_DATE ? "date, as in 2024, 2024-01-31 or 2024-01-31T09:30" : "number");
}

/* Says whether an item's end comes before its begin. */
static int gpuir__where_backwards(const gpuir__where *w, const gpuir_field *f, const gpuir__where_item *x) {
  if (!x->has[0] || !x->has[1]) return 0;
  if (gpuir__is_text_column(f->column))
    return gpuir__value_compare(f->column, w->bytes + x->at[1], x->len[1], w->bytes + x->at[0], x->len[0]) < 0;
  if (x->bounds[1].no_high || x->bounds[0].no_low) return x->bounds[1].low < x->bounds[0].high;
  return f->column == GPUIR_DATE ? x->bounds[1].high < x->bounds[0].low : x->bounds[1].low < x->bounds[0].high;
}

/* Reads an item of a predicate: a value, or a range a..b, of which an end may be left out. A value is kept as the range
 * that only it is in. */
static int gpuir__where_item_read(gpuir__where_reader *r, const gpuir_field *f) {
  gpuir__where_item *x = &r->w->items[r->w->nitems];
  const size_t from = r->at;
  int status = GPUIR_OK;
  if (r->w->nitems == GPUIR__WHERE_ITEMS)
    return gpuir__where_fail(r, from, "where: more than %u values", GPUIR__WHERE_ITEMS);
  memset(x, 0, sizeof *x);
  if (!gpuir__where_dots(r)) status = gpuir__where_value(r, f, x, 0);
  if (status) return status;
  if (gpuir__where_dots(r)) {
    r->at += 2;
    if (!gpuir__where_ends(r)) status = gpuir__where_value(r, f, x, 1);
    if (!status && gpuir__where_dots(r)) status = gpuir__where_fail(r, r->at, "where: '..' twice");
    if (!status && gpuir__where_backwards(r->w, f, x))
      status = gpuir__where_fail(r, from, "where: a range whose end comes before its begin");
  } else {
    x->has[1] = 1;
    x->at[1] = x->at[0];
    x->len[1] = x->len[0];
    x->bounds[1] = x->bounds[0];
  }
  r->w->nitems += !status;
  return status;
}

/* Finds the field of a name. */
static int gpuir__where_name(gpuir__where_reader *r, unsigned *column) {
  const char *text = r->w->text + r->at;
  size_t n = 0;
  int status;
  while (r->at + n < r->w->len && text[n] != '=' && !gpuir__is_space(text[n]) && text[n] != '|') n++;
  if (!n || r->at + n >= r->w->len || text[n] != '=')
    return gpuir__where_fail(r, r->at, "where: a predicate is missing, as in name=value");
  status = gpuir__field_find(r->schema, "where", text, n, r->at, column, r->err);
  r->at += n + 1;
  return status;
}

/* Reads a predicate: '-' where it is negated, a field's name, '=', and items with commas between, of which one must
 * hold. */
static int gpuir__where_predicate(gpuir__where_reader *r, unsigned group) {
  gpuir__where *w = r->w;
  gpuir__predicate *p = &w->predicates[w->n];
  const size_t from = r->at;
  unsigned column = 0;
  int status;
  if (w->n == GPUIR__WHERE_PREDICATES)
    return gpuir__where_fail(r, from, "where: more than %u predicates", GPUIR__WHERE_PREDICATES);
  memset(p, 0, sizeof *p);
  p->negated = gpuir__where_peek(r) == '-';
  r->at += p->negated;
  p->group = (uint8_t)group;
  p->first = w->nitems;
  p->at = (uint32_t)from;
  status = gpuir__where_name(r, &column);
  if (status) return status;
  p->column = (uint8_t)column;
  status = gpuir__where_item_read(r, &r->schema->of[column]);
  while (!status && gpuir__where_peek(r) == ',') {
    r->at++;
    status = gpuir__where_item_read(r, &r->schema->of[column]);
  }
  p->n = w->nitems - p->first;
  p->len = (uint32_t)(r->at - from);
  w->n += !status;
  return status;
}

/* Reads the whole where: groups with '|' between, of which one must hold. All predicates of a group must. */
static int gpuir__where_read(gpuir__where_reader *r) {
  unsigned group = 0, before = 0;
  int status = GPUIR_OK;
  for (;;) {
    while (r->at < r->w->len && gpuir__is_space(r->w->text[r->at])) r->at++;
    if (status || r->at >= r->w->len) break;
    if (gpuir__where_peek(r) == '|') {
      const int apart = r->at && gpuir__is_space(r->w->text[r->at - 1]) && r->at + 1 < r->w->len &&
          gpuir__is_space(r->w->text[r->at + 1]);
      if (!apart || r->w->n == before)
        return gpuir__where_fail(r, r->at, "where: '|' stands between two groups, with blanks around it");
      before = r->w->n;
      group++;
      r->at++;
      continue;
    }
    status = gpuir__where_predicate(r, group);
  }
  if (!status && r->w->n == before)
    status = gpuir__where_fail(r, r->w->len, "where: a predicate is missing, as in name=value");
  return status;
}

/* Makes a where of its text, for an index with these fields (NULL: none). *where is NULL for no text. */
static int gpuir__where_make(const gpuir_allocator *a, const gpuir__schema *schema, const char *text,
    gpuir__where **where, gpuir_error *err) {
  const size_t len = text ? strlen(text) : 0;
  size_t equals = 0, commas = 0, npredicates, nitems, size, i;
  gpuir__where_reader r;
  gpuir__where *w;
  int status;
  *where = NULL;
  if (!len) return GPUIR_OK;
  if (len > GPUIR__WHERE_BYTES)
    return gpuir__fail(err, GPUIR_E_WHERE, GPUIR__WHERE_BYTES, "where: more than %u bytes", GPUIR__WHERE_BYTES);
  for (i = 0; i < len; i++) {
    equals += text[i] == '=';
    commas += text[i] == ',';
  }
  npredicates = gpuir__min64(equals, GPUIR__WHERE_PREDICATES) + 1; /* one that is begun, and is none */
  nitems = gpuir__min64(equals + commas, GPUIR__WHERE_ITEMS) + 1;
  size = sizeof *w + nitems * sizeof(gpuir__where_item) + npredicates * sizeof(gpuir__predicate) + 2 * len + 2;
  w = (gpuir__where *)gpuir__alloc_zero(a, size);
  if (!w) return gpuir__fail_nomem(err);
  w->a = *a;
  w->size = size;
  w->items = (gpuir__where_item *)(void *)(w + 1);
  w->predicates = (gpuir__predicate *)(void *)(w->items + nitems);
  w->text = (char *)(void *)(w->predicates + npredicates);
  w->bytes = w->text + len + 1;
  w->len = len;
  memcpy(w->text, text, len);
  r.w = w;
  r.schema = schema;
  r.at = 0;
  r.err = err;
  status = gpuir__where_read(&r);
  if (status) gpuir__where_free(w);
  else *where = w;
  return status;
}
#endif
