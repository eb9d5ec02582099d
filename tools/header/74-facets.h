
/* ========
 * [74-facets]  what the matches of a query have in fields, counted
 *
 * The matches of a leaf are marked, as they are counted. Blocks with marks are read: a key is counted by its rank, a
 * folder by the ranks below it, which follow one another; a number goes to a table of ranges, that all leaves share.
 * Keys of several leaves are merged by their texts.
 *
 * Uses      [18-codecs], [34-fields], [35-keys], [37-layout], [38-notes], [40-columns], [51-query], [56-engine],
 *           [63-execution].
 * Start at  gpuir_facets_count.
 * Tests     tests/unit/74_facets.c
 * ======*/

#ifdef GPUIR_NO_COLUMNS
GPUIR_API int gpuir_facets_count(gpuir_searcher *s, const gpuir_query *q, const char *const *columns, size_t n,
    gpuir_facets **facets, uint64_t *matches) {
  (void)columns;
  (void)n;
  if (facets) *facets = NULL;
  if (matches) *matches = 0;
  if (!s || !q || !facets) return GPUIR_E_ARGUMENT;
  memset(&s->engine.error, 0, sizeof s->engine.error);
  return gpuir__fail_columns(&s->engine.error);
}

GPUIR_API int gpuir_facets_get(const gpuir_facets *facets, size_t which, size_t i, gpuir_facet *facet) {
  (void)facets;
  (void)which;
  (void)i;
  (void)facet;
  return GPUIR_E_ARGUMENT;
}

GPUIR_API void gpuir_facets_destroy(gpuir_facets *facets) { (void)facets; }
#else

enum { GPUIR__BY_VALUE, GPUIR__BY_FOLDER, GPUIR__BY_RANGE, GPUIR__BY_YEAR, GPUIR__BY_MONTH, GPUIR__BY_DAY };

#define GPUIR__FACET_BORDERS 1024u

/* What is counted together; of a key `low` is where its text stands. */
typedef struct gpuir__facet_item {
  int64_t low, high;
  uint64_t count, len;
} gpuir__facet_item;

/* A column whose facets are counted. */
typedef struct gpuir__facet_column {
  unsigned column;
  int by, is_text;
  uint64_t most; /* facets of a key; 0: all */
  const char *folder;
  size_t folder_len;
  gpuir__buf borders; /* int64_t */
  gpuir__buf found; /* gpuir__facet_item; of numbers that are no ranges a hash table, until all are counted */
  gpuir__buf text; /* of keys, with a NUL behind each */
  size_t slots, used; /* of the table */
  size_t last; /* the slot, or the range, that was counted last */
  /* of a leaf */
  gpuir__buf counts; /* uint32_t: by rank, or by folder */
  gpuir__buf folders; /* uint32_t: by rank from `first` on, the folder */
  gpuir__buf seen; /* uint32_t: by folder, the document that was counted last, plus 1 */
  uint64_t first, n; /* ranks, from 1, that are counted; or kept numbers, from 0 */
  int by_place; /* counts[] has a kept number's, or a rank's, at its place from `first` on, plus 1 */
} gpuir__facet_column;

struct gpuir_facets {
  gpuir_allocator a;
  size_t n;
  gpuir__facet_column of[GPUIR_MAX_FIELDS];
};

GPUIR_API void gpuir_facets_destroy(gpuir_facets *f) {
  gpuir_allocator a;
  size_t i;
  if (!f) return;
  a = f->a;
  for (i = 0; i < f->n; i++) {
    gpuir__buf_free(&a, &f->of[i].borders);
    gpuir__buf_free(&a, &f->of[i].found);
    gpuir__buf_free(&a, &f->of[i].text);
    gpuir__buf_free(&a, &f->of[i].counts);
    gpuir__buf_free(&a, &f->of[i].folders);
    gpuir__buf_free(&a, &f->of[i].seen);
  }
  gpuir__free(&a, f, sizeof *f);
}

static gpuir__facet_item *gpuir__facet_items(const gpuir__facet_column *c) {
  return (gpuir__facet_item *)(void *)c->found.data;
}

static size_t gpuir__facet_nitems(const gpuir__facet_column *c) { return c->found.len / sizeof(gpuir__facet_item); }

/* ---- what is asked for */

/* Reads the borders of ranges, behind the name of a field. */
static int gpuir__facet_borders(const gpuir_allocator *a, gpuir__facet_column *c, const gpuir_field *f,
    const char *text, const char *at, gpuir_error *err) {
  int64_t before = INT64_MIN;
  for (;; at++) {
    const size_t len = strcspn(at, ",");
    gpuir__bounds b;
    const int known =
        f->column == GPUIR_DATE ? gpuir__date_bounds(at, len, &b) : gpuir__number_bounds(at, len, f->decimals, &b);
    if (!known || b.no_low || (c->borders.len && b.low <= before))
      return gpuir__fail(err, GPUIR_E_WHERE, (uint64_t)(at - text),
          "facets: '%.*s' is no %s, or not above the one before", (int)gpuir__min64(len, 40), at,
          f->column == GPUIR_DATE ? "date, as in 2024-01-31" : "number");
    if (c->borders.len / sizeof before == GPUIR__FACET_BORDERS)
      return gpuir__fail(err, GPUIR_E_WHERE, (uint64_t)(at - text), "facets: more than %u borders",
          GPUIR__FACET_BORDERS);
    before = b.low;
    if (gpuir__buf_put(a, &c->borders, &before, sizeof before)) return gpuir__fail_nomem(err);
    at += len;
    if (!*at) break;
  }
  c->by = GPUIR__BY_RANGE;
  return GPUIR_OK;
}

/* Reads what stands behind the name of a field, and ':'. */
static int gpuir__facet_how(const gpuir_allocator *a, gpuir__facet_column *c, const gpuir_field *f, const char *text,
    const char *at, gpuir_error *err) {
  static const char *const units[] = {"year", "month", "day"};
  unsigned i;
  if (f->column == GPUIR_PATH) {
    c->by = GPUIR__BY_FOLDER;
    c->folder = at;
    c->folder_len = strlen(at);
    if (c->folder_len < GPUIR_MAX_VALUE) return GPUIR_OK;
    return gpuir__fail(err, GPUIR_E_WHERE, (uint64_t)(at - text), "facets: a folder of over %d bytes", GPUIR_MAX_VALUE);
  }
  for (i = 0; f->column == GPUIR_DATE && i < 3; i++)
    if (!strcmp(at, units[i])) {
      c->by = GPUIR__BY_YEAR + (int)i;
      return GPUIR_OK;
    }
  if (f->column != GPUIR_KEY) return gpuir__facet_borders(a, c, f, text, at, err);
  for (i = 0; gpuir__is_digit(at[i]) && i < 10; i++) c->most = c->most * 10 + (uint64_t)(at[i] - '0');
  if (i && !at[i]) return GPUIR_OK;
  return gpuir__fail(err, GPUIR_E_WHERE, (uint64_t)(at - text),
      "facets: behind ':' of a key comes how many values, as in %s:20", f->name);
}

/* Reads a column that is asked for. */
static int gpuir__facet_read(const gpuir_allocator *a, const gpuir_index *ix, const char *text, gpuir__facet_column *c,
    gpuir_error *err) {
  const gpuir__schema *fields = ix->leaves[0].seg->columns.fields;
  const size_t len = text ? strcspn(text, ":") : 0;
  int status = gpuir__field_find(fields, "facets", text ? text : "", len, 0, &c->column, err);
  if (status) return status;
  c->is_text = gpuir__is_text_column(fields->of[c->column].column);
  c->by = GPUIR__BY_VALUE;
  return text[len] ? gpuir__facet_how(a, c, &fields->of[c->column], text, text + len + 1, err) : GPUIR_OK;
}

/* ---- numbers and dates */

/* Returns the year and the month of a day since 1970-01-01 (H. Hinnant, "chrono-compatible low-level date algorithms",
 * civil_from_days). */
static int64_t gpuir__year_of(int64_t day, unsigned *month) {
  const int64_t z = day + 719468, era = (z >= 0 ? z : z - 146096) / 146097, of_era = z - era * 146097;
  const int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  const int64_t of_year = of_era - (365 * year + year / 4 - year / 100), m = (5 * of_year + 2) / 153;
  *month = (unsigned)(m < 10 ? m + 3 : m - 9);
  return year + era * 400 + (*month <= 2);
}

/* Finds the first and the last second of the year, month or day of a second. */
static void gpuir__facet_span(int by, int64_t second, int64_t *low, int64_t *high) {
  const int64_t most = INT64_MAX / 86400;
  int64_t from = second / 86400 - (second % 86400 < 0), to = from + 1;
  unsigned month;
  const int64_t year = gpuir__year_of(from, &month);
  if (by == GPUIR__BY_YEAR) {
    from = gpuir__day_of(year, 1, 1);
    to = gpuir__day_of(year + 1, 1, 1);
  } else if (by == GPUIR__BY_MONTH) {
    from = gpuir__day_of(year, month, 1);
    to = gpuir__day_of(year + (month == 12), month % 12 + 1, 1);
  }
  *low = from < -most ? INT64_MIN : from * 86400;
  *high = to > most ? INT64_MAX : to * 86400 - 1;
}

static size_t gpuir__facet_slot(const gpuir__facet_item *items, size_t slots, int64_t low) {
  size_t at = (size_t)((uint64_t)low * 0x9e3779b97f4a7c15u >> 32) & (slots - 1);
  while (items[at].count && items[at].low != low) at = (at + 1) & (slots - 1);
  return at;
}

/* Makes the table twice as large. 0 or NOMEM. */
static int gpuir__facet_grow(const gpuir_allocator *a, gpuir__facet_column *c) {
  const size_t slots = c->slots ? 2 * c->slots : 64;
  gpuir__facet_item *items = gpuir__facet_items(c), *to;
  gpuir__buf larger = {NULL, 0, 0};
  size_t i;
  if (slots > SIZE_MAX / 2 / sizeof *to) return GPUIR_E_NOMEM;
  to = (gpuir__facet_item *)(void *)gpuir__buf_room(a, &larger, slots * sizeof *to);
  if (!to) return GPUIR_E_NOMEM;
  memset((void *)to, 0, slots * sizeof *to);
  for (i = 0; i < c->slots; i++)
    if (items[i].count) to[gpuir__facet_slot(to, slots, items[i].low)] = items[i];
  gpuir__buf_free(a, &c->found);
  larger.len = slots * sizeof *to;
  c->found = larger;
  c->slots = slots;
  c->last = 0;
  return GPUIR_OK;
}

/* Makes the ranges that the borders part. 0 or NOMEM. */
static int gpuir__facet_ranges(const gpuir_allocator *a, gpuir__facet_column *c) {
  const int64_t *borders = (const int64_t *)(const void *)c->borders.data;
  const size_t n = c->borders.len / sizeof *borders;
  gpuir__facet_item x = {INT64_MIN, 0, 0, 0};
  size_t i;
  for (i = 0; i <= n; i++) {
    if (!i && borders[0] == INT64_MIN) continue; /* nothing is below it */
    if (i) x.low = borders[i - 1];
    x.high = i < n ? borders[i] - 1 : INT64_MAX;
    if (gpuir__buf_put(a, &c->found, &x, sizeof x)) return GPUIR_E_NOMEM;
  }
  return GPUIR_OK;
}

/* Counts a number in so many documents. 0 or NOMEM. */
static int gpuir__facet_number(const gpuir_allocator *a, gpuir__facet_column *c, int64_t v, uint64_t times) {
  gpuir__facet_item *items = gpuir__facet_items(c), *x = items ? &items[c->last] : NULL;
  if (!x || v < x->low || v > x->high || (c->by != GPUIR__BY_RANGE && !x->count)) {
    if (c->by == GPUIR__BY_RANGE) {
      size_t lo = 0, n = gpuir__facet_nitems(c);
      for (; n > 1; n -= n / 2) lo += v >= items[lo + n / 2].low ? n / 2 : 0;
      c->last = lo;
    } else {
      gpuir__facet_item one = {v, v, 0, 0};
      if (c->by != GPUIR__BY_VALUE) gpuir__facet_span(c->by, v, &one.low, &one.high);
      if (2 * c->used >= c->slots && gpuir__facet_grow(a, c)) return GPUIR_E_NOMEM;
      items = gpuir__facet_items(c);
      c->last = gpuir__facet_slot(items, c->slots, one.low);
      c->used += !items[c->last].count;
      if (!items[c->last].count) items[c->last] = one;
    }
    x = &items[c->last];
  }
  x->count += times;
  return GPUIR_OK;
}

/* ---- keys and folders of a leaf */

/* Returns how much of a value is the folder, or file, in the column's folder that it lies in. */
static size_t gpuir__facet_folder(const gpuir__facet_column *c, const char *text, size_t len) {
  const size_t from = c->folder_len ? c->folder_len + 1 : 1;
  const char *end = from < len ? (const char *)memchr(text + from, '/', len - from) : NULL;
  return end ? (size_t)(end - text) : len;
}

/* Numbers the folders in the column's folder, by rank. 0, NOMEM, or why the search has to stop. */
static int gpuir__facet_number_folders(gpuir__engine *e, const gpuir_allocator *a, gpuir__facet_column *c,
    const gpuir__key_texts *t, uint32_t *folders) {
  gpuir__key_walk w;
  char before[GPUIR_MAX_VALUE + 1];
  size_t len, before_len = 0;
  uint64_t i;
  *folders = 0;
  c->folders.len = 0;
  w.len = 0;
  for (i = 0; i < c->n; i++) {
    const uint64_t at = c->first - 1 + i;
    if (!i) (void)gpuir__key_get(t, at, &w);
    else if (at % GPUIR__KEY_PAGE == 0) gpuir__key_open(t, at / GPUIR__KEY_PAGE, &w);
    else gpuir__key_next(&w);
    len = gpuir__facet_folder(c, w.text, w.len);
    if (!*folders || len != before_len || memcmp(before, w.text, len) != 0) ++*folders;
    memcpy(before, w.text, len);
    before_len = len;
    if (gpuir__buf_put(a, &c->folders, folders, sizeof *folders))
      return gpuir__engine_fail(e, GPUIR_E_NOMEM, "out of memory");
    if (i % 1024 == 0 && gpuir__engine_look(e)) return e->stopped;
  }
  return GPUIR_OK;
}

/* Makes room for so many counts, all 0, and one before them. 0 or NOMEM. */
static int gpuir__facet_room(gpuir__engine *e, const gpuir_allocator *a, gpuir__buf *buf, uint64_t n) {
  buf->len = 0;
  if (n > UINT32_MAX || !gpuir__buf_room(a, buf, ((size_t)n + 1) * 4))
    return gpuir__engine_fail(e, GPUIR_E_NOMEM, "out of memory");
  buf->len = ((size_t)n + 1) * 4;
  memset(buf->data, 0, buf->len);
  return GPUIR_OK;
}

#define GPUIR__FACET_PLACES 65536u /* kept numbers that are counted by their places, at most */

/* Begins to count a leaf's numbers: by their places if there are no more of these than matches. */
static int gpuir__facet_places(gpuir__engine *e, const gpuir_allocator *a, gpuir__facet_column *c,
    const gpuir__segment *seg, uint64_t matches) {
  const gpuir__index_columns *x = &seg->columns;
  uint64_t at = c->column * x->blocks, most = 0;
  const uint64_t end = at + x->blocks;
  for (; at < end; at++) most = x->least[at] <= x->most[at] ? gpuir__max64(most, x->most[at]) : most;
  c->by_place = most < GPUIR__FACET_PLACES && most < matches;
  c->first = 0;
  c->n = most + 1;
  return c->by_place ? gpuir__facet_room(e, a, &c->counts, c->n) : GPUIR_OK;
}

/* Begins to count a leaf's keys. 0, NOMEM, or why the search has to stop. */
static int gpuir__facet_open(gpuir__engine *e, const gpuir_allocator *a, gpuir__facet_column *c,
    const gpuir__segment *seg) {
  const gpuir__key_texts t = gpuir__column_texts(seg, c->column);
  char behind[GPUIR_MAX_VALUE + 2];
  uint32_t folders = 0;
  int found, status = GPUIR_OK;
  c->first = 1;
  c->n = t.n;
  c->by_place = c->by == GPUIR__BY_VALUE;
  if (c->by == GPUIR__BY_FOLDER && c->folder_len) {
    memcpy(behind, c->folder, c->folder_len);
    behind[c->folder_len] = '/';
    c->first = gpuir__key_below(&t, behind, c->folder_len + 1, &found) + 1;
    behind[c->folder_len] = 1; /* the byte behind '/' */
    c->n = gpuir__key_below(&t, behind, c->folder_len + 1, &found);
    c->n = c->n >= c->first ? c->n - c->first + 1 : 0;
  }
  if (c->by == GPUIR__BY_FOLDER) status = gpuir__facet_number_folders(e, a, c, &t, &folders);
  else folders = (uint32_t)c->n;
  if (!status) status = gpuir__facet_room(e, a, &c->counts, folders);
  return status ? status : gpuir__facet_room(e, a, &c->seen, folders);
}

/* Counts a key, or its folder, in a document. */
static inline void gpuir__facet_key(const gpuir__facet_column *c, uint64_t rank, uint32_t docid) {
  uint32_t *counts = (uint32_t *)(void *)c->counts.data, *seen = (uint32_t *)(void *)c->seen.data;
  const uint64_t i = rank - c->first;
  if (i >= c->n) return; /* 0, and in damaged files one behind the last */
  if (c->by == GPUIR__BY_VALUE) {
    counts[i + 1]++;
  } else {
    const uint32_t folder = ((const uint32_t *)(const void *)c->folders.data)[i];
    counts[folder] += seen[folder] != docid + 1;
    seen[folder] = docid + 1;
  }
}

/* ---- blocks */

/* Counts a value that so many documents of a block have, which have no other. 0 or NOMEM. */
static int gpuir__facet_one(const gpuir_allocator *a, gpuir__facet_column *c, const gpuir__column *row, uint64_t v,
    uint64_t times) {
  uint32_t *counts = (uint32_t *)(void *)c->counts.data;
  const uint64_t i = v - c->first;
  if (!c->is_text && !c->by_place) return gpuir__facet_number(a, c, gpuir__resign(gpuir__column_number(row, v)), times);
  if (i < c->n) counts[c->by_place ? i + 1 : ((const uint32_t *)(const void *)c->folders.data)[i]] += (uint32_t)times;
  return GPUIR_OK;
}

/* Counts the marked documents of a block with a table, by its places first. 0 or NOMEM. */
static int gpuir__facet_table(const gpuir_allocator *a, gpuir__facet_column *c, const gpuir__column *row,
    const gpuir__column_block *b, const uint64_t marks[2]) {
  uint64_t times[16] = {0}, word;
  unsigned half, i;
  int status = GPUIR_OK;
  for (half = 0; half < 2; half++)
    for (word = marks[half]; word; word &= word - 1)
      times[gpuir__packed_get(b->data, 64 * half + gpuir__ctz64(word), b->width)]++;
  for (i = 0; i < 16 && !status; i++)
    if (times[i]) status = gpuir__facet_one(a, c, row, b->least + gpuir__load64(b->table + 8 * i), times[i]);
  return status;
}

/* Counts the marked documents of a block, each of which has one value: by their places, or runs of one value together,
 * as a file's chunks have. 0 or NOMEM. */
static int gpuir__facet_singles(const gpuir_allocator *a, gpuir__facet_column *c, const gpuir__column *row,
    const gpuir__column_block *b, const uint64_t marks[2]) {
  uint32_t *const counts = c->by_place ? (uint32_t *)(void *)c->counts.data + 1 : NULL;
  const uint64_t from = b->least - c->first, n = c->n;
  uint64_t last = 0, times = 0, word;
  unsigned half;
  for (half = 0; half < 2; half++)
    for (word = marks[half]; word; word &= word - 1) {
      const uint64_t v = gpuir__packed_get(b->data, 64 * half + gpuir__ctz64(word), b->width);
      if (counts) {
        if (from + v < n) counts[from + v]++; /* not a rank 0, nor in damaged files one behind the last */
      } else if (times && v == last) {
        times++;
      } else {
        if (times && gpuir__facet_one(a, c, row, b->least + last, times)) return GPUIR_E_NOMEM;
        last = v;
        times = 1;
      }
    }
  return times ? gpuir__facet_one(a, c, row, b->least + last, times) : GPUIR_OK;
}

/* Counts what the marked documents of a block have. 0 or NOMEM. *worked grows by what was read. */
static int gpuir__facet_block(const gpuir_allocator *a, gpuir__facet_column *c, const gpuir__segment *seg,
    uint64_t block, const uint64_t marks[2], uint64_t *worked) {
  const gpuir__column *row = &seg->columns.rows[c->column];
  gpuir__column_block b;
  uint64_t first, n, j, word;
  unsigned half;
  gpuir__column_open(seg, c->column, block, &b);
  if (b.none) return GPUIR_OK;
  if (!b.ends) {
    const uint64_t with[2] = {marks[0] & (b.has ? gpuir__load64(b.has) : UINT64_MAX),
        marks[1] & (b.has ? gpuir__load64(b.has + 8) : UINT64_MAX)};
    n = gpuir__ones64(with[0]) + gpuir__ones64(with[1]);
    *worked += n;
    if (!n) return GPUIR_OK;
    if (b.table) return gpuir__facet_table(a, c, row, &b, with);
    return b.width ? gpuir__facet_singles(a, c, row, &b, with) : gpuir__facet_one(a, c, row, b.least, n);
  }
  for (half = 0; half < 2; half++) /* keys, of which there are several */
    for (word = marks[half]; word; word &= word - 1) {
      const unsigned i = 64 * half + gpuir__ctz64(word);
      n = gpuir__column_count(&b, i, &first);
      for (j = 0; j < n; j++)
        gpuir__facet_key(c, gpuir__column_read(&b, i, first + j), (uint32_t)(block * GPUIR__BLOCK + i));
      *worked += n;
    }
  return GPUIR_OK;
}

/* Counts what the marked documents of a leaf have in a column. */
static int gpuir__facet_leaf(gpuir__engine *e, const gpuir_allocator *a, gpuir__facet_column *c,
    const gpuir__segment *seg, const uint64_t *marks) {
  const uint64_t words = seg->stat.documents / 64 + 1, blocks = seg->columns.blocks;
  uint64_t block, worked = 0;
  int status = GPUIR_OK;
  for (block = 0; block < blocks && !status; block++) {
    const uint64_t two[2] = {marks[2 * block], 2 * block + 1 < words ? marks[2 * block + 1] : 0};
    if (!(two[0] | two[1])) continue;
    if (gpuir__facet_block(a, c, seg, block, two, &worked))
      status = gpuir__engine_fail(e, GPUIR_E_NOMEM, "out of memory");
    else status = gpuir__engine_worked(e, 1 + worked / 1024);
    worked %= 1024;
  }
  return status;
}

/* ---- from ranks to texts */

/* Leaves out, of the only leaf's keys, all but the most frequent ones, so that few texts are read. 0 or NOMEM. */
static int gpuir__facet_cut(const gpuir_allocator *a, gpuir__facet_column *c) {
  uint32_t *counts = (uint32_t *)(void *)c->counts.data;
  const size_t n = c->counts.len / 4;
  uint64_t *order;
  size_t i, kept = 0;
  c->seen.len = 0;
  order = (uint64_t *)(void *)gpuir__buf_room(a, &c->seen, n * sizeof *order);
  if (!order) return GPUIR_E_NOMEM;
  for (i = 1; i < n; i++)
    if (counts[i]) order[kept++] = (uint64_t)(UINT32_MAX - counts[i]) << 32 | i;
  if (kept > 1) qsort(order, kept, sizeof *order, gpuir__compare_asc64);
  for (i = (size_t)gpuir__min64(c->most, kept); i < kept; i++) counts[(uint32_t)order[i]] = 0;
  return GPUIR_OK;
}

/* The facets of the leaves before on their way to those of one more. */
typedef struct gpuir__facet_merge {
  const gpuir_allocator *a;
  gpuir__facet_column *c;
  int column; /* GPUIR_KEY or GPUIR_PATH */
  gpuir__buf found, text;
  size_t at; /* the next facet of those before */
} gpuir__facet_merge;

/* Writes a facet. */
static int gpuir__facet_put(gpuir__facet_merge *m, const char *text, size_t len, uint64_t count) {
  const gpuir__facet_item x = {(int64_t)m->text.len, 0, count, len};
  if (gpuir__buf_put(m->a, &m->found, &x, sizeof x) || gpuir__buf_put(m->a, &m->text, text, len) ||
      gpuir__buf_put(m->a, &m->text, "", 1))
    return GPUIR_E_NOMEM;
  return GPUIR_OK;
}

/* Writes a facet of the leaf behind those of the leaves before that come before it; a text that is one of them is
 * counted there. text NULL: the rest of them. */
static int gpuir__facet_take(gpuir__facet_merge *m, const char *text, size_t len, uint64_t count) {
  const gpuir__facet_item *items = gpuir__facet_items(m->c);
  for (; m->at < gpuir__facet_nitems(m->c); m->at++) {
    const gpuir__facet_item *x = &items[m->at];
    const char *there = (const char *)m->c->text.data + x->low;
    const int order = text ? gpuir__value_compare(m->column, there, (size_t)x->len, text, len) : -1;
    if (order > 0) break;
    if (gpuir__facet_put(m, there, (size_t)x->len, x->count + (order ? 0 : count))) return GPUIR_E_NOMEM;
    if (order) continue;
    m->at++;
    return GPUIR_OK;
  }
  return text ? gpuir__facet_put(m, text, len, count) : GPUIR_OK;
}

/* Merges the leaf's texts that were counted with the facets of the leaves before. */
static int gpuir__facet_texts(gpuir__facet_merge *m, const gpuir__key_texts *t) {
  const gpuir__facet_column *c = m->c;
  const uint32_t *counts = (const uint32_t *)(const void *)c->counts.data;
  const uint32_t *folders = (const uint32_t *)(const void *)c->folders.data;
  uint64_t page = UINT64_MAX, next = 0, i;
  uint32_t last = 0;
  gpuir__key_walk w;
  int status = GPUIR_OK;
  for (i = 0; i < c->n && !status; i++) {
    const uint64_t at = c->first - 1 + i;
    const uint32_t which = c->by == GPUIR__BY_FOLDER ? folders[i] : (uint32_t)i + 1;
    if (which == last || !counts[which]) continue;
    last = which;
    if (at / GPUIR__KEY_PAGE != page) {
      page = at / GPUIR__KEY_PAGE;
      next = page * GPUIR__KEY_PAGE;
      gpuir__key_open(t, page, &w);
    }
    for (; next < at && w.len; next++) gpuir__key_next(&w);
    if (w.len)
      status = gpuir__facet_take(m, w.text, c->by == GPUIR__BY_FOLDER ? gpuir__facet_folder(c, w.text, w.len) : w.len,
          counts[which]);
  }
  return status ? status : gpuir__facet_take(m, NULL, 0, 0);
}

/* Adds what was counted of a leaf's keys to the facets. */
static int gpuir__facet_close(gpuir__engine *e, const gpuir_allocator *a, gpuir__facet_column *c,
    const gpuir__segment *seg) {
  const gpuir__key_texts t = gpuir__column_texts(seg, c->column);
  gpuir__facet_merge m;
  int status = GPUIR_OK;
  memset(&m, 0, sizeof m);
  m.a = a;
  m.c = c;
  m.column = t.column;
  if (c->most && e->ix->nleaves == 1) status = gpuir__facet_cut(a, c);
  if (!status) status = gpuir__facet_texts(&m, &t);
  gpuir__buf_free(a, status ? &m.found : &c->found);
  gpuir__buf_free(a, status ? &m.text : &c->text);
  if (status) return gpuir__engine_fail(e, status, "out of memory");
  c->found = m.found;
  c->text = m.text;
  return gpuir__engine_look(e);
}

/* Counts the numbers that were counted by their places. 0, NOMEM, or why the search has to stop. */
static int gpuir__facet_numbers(gpuir__engine *e, const gpuir_allocator *a, gpuir__facet_column *c,
    const gpuir__segment *seg) {
  const gpuir__column *row = &seg->columns.rows[c->column];
  const uint32_t *counts = (const uint32_t *)(const void *)c->counts.data;
  uint64_t v;
  c->by_place = 0;
  for (v = 0; v < c->n; v++)
    if (counts[v + 1] && gpuir__facet_number(a, c, gpuir__resign(gpuir__column_number(row, v)), counts[v + 1]))
      return gpuir__engine_fail(e, GPUIR_E_NOMEM, "out of memory");
  return gpuir__engine_look(e);
}

/* ---- all of it */

/* Orders facets of keys: the most frequent first, others as their texts stand. */
static int gpuir__facet_compare(const void *a, const void *b) {
  const gpuir__facet_item *x = (const gpuir__facet_item *)a, *y = (const gpuir__facet_item *)b;
  if (x->count != y->count) return x->count > y->count ? -1 : 1;
  return x->low < y->low ? -1 : x->low > y->low;
}

static int gpuir__facet_compare_numbers(const void *a, const void *b) {
  const gpuir__facet_item *x = (const gpuir__facet_item *)a, *y = (const gpuir__facet_item *)b;
  return x->low < y->low ? -1 : x->low > y->low;
}

/* Puts a column's facets in order. */
static void gpuir__facet_sort(gpuir__facet_column *c) {
  gpuir__facet_item *items = gpuir__facet_items(c);
  size_t n = gpuir__facet_nitems(c), i, kept = 0;
  if (c->by == GPUIR__BY_RANGE) return;
  for (i = 0; i < n; i++)
    if (items[i].count) items[kept++] = items[i];
  if (kept > 1) qsort(items, kept, sizeof *items, c->is_text ? gpuir__facet_compare : gpuir__facet_compare_numbers);
  if (c->most) kept = (size_t)gpuir__min64(kept, c->most);
  c->found.len = kept * sizeof *items;
}

/* Counts one leaf. */
static int gpuir__facets_leaf(gpuir__engine *e, const gpuir_query *q, size_t leaf, gpuir_facets *f, uint64_t *matches) {
  const gpuir__segment *seg = e->ix->leaves[leaf].seg;
  uint64_t count = 0;
  size_t i;
  int status = gpuir__engine_mark_leaf(e, q, leaf, q->mode == GPUIR_OR ? GPUIR_OR : GPUIR_AND, &count);
  *matches += count;
  for (i = 0; i < f->n && !status && count; i++) {
    gpuir__facet_column *c = &f->of[i];
    status = c->is_text ? gpuir__facet_open(e, &f->a, c, seg) : gpuir__facet_places(e, &f->a, c, seg, count);
    if (!status) status = gpuir__facet_leaf(e, &f->a, c, seg, (const uint64_t *)(const void *)e->marked.data);
    if (!status && c->is_text) status = gpuir__facet_close(e, &f->a, c, seg);
    else if (!status && c->by_place) status = gpuir__facet_numbers(e, &f->a, c, seg);
  }
  return status;
}

/* Counts the matches by the values of each column asked for: reads the columns' texts, goes over the matches of each
 * leaf once for all of them, and sorts the counts. */
static int gpuir__facets_make(gpuir__engine *e, const gpuir_query *q, const char *const *columns, size_t n,
    gpuir_facets *f, uint64_t *matches) {
  size_t i, leaf;
  int status = GPUIR_OK;
  for (; f->n < n && !status; f->n++) {
    gpuir__facet_column *c = &f->of[f->n];
    status = gpuir__facet_read(&f->a, e->ix, columns[f->n], c, &e->error);
    if (!status && c->by == GPUIR__BY_RANGE && gpuir__facet_ranges(&f->a, c)) status = gpuir__fail_nomem(&e->error);
  }
  if (!status) status = gpuir__engine_look(e);
  if (status || (!q->nknown && !q->all) || (q->mode != GPUIR_OR && q->nunknown)) return status;
  gpuir__engine_announce(e, q);
  for (leaf = 0; leaf < e->ix->nleaves && !status; leaf++) status = gpuir__facets_leaf(e, q, leaf, f, matches);
  for (i = 0; i < n && !status; i++) gpuir__facet_sort(&f->of[i]);
  return status;
}

GPUIR_API int gpuir_facets_count(gpuir_searcher *s, const gpuir_query *q, const char *const *columns, size_t n,
    gpuir_facets **facets, uint64_t *matches) {
  uint64_t count = 0;
  gpuir_facets *f;
  int status;
  if (facets) *facets = NULL;
  if (matches) *matches = 0;
  if (!s || !q || !facets || (n && !columns) || n > GPUIR_MAX_FIELDS || q->ix != s->ix) return GPUIR_E_ARGUMENT;
  gpuir__engine_start(&s->engine);
  f = (gpuir_facets *)gpuir__alloc_zero(&s->engine.a, sizeof *f);
  if (!f) return gpuir__engine_fail(&s->engine, GPUIR_E_NOMEM, "out of memory");
  f->a = s->engine.a;
  status = gpuir__facets_make(&s->engine, q, columns, n, f, &count);
  gpuir__engine_reset(&s->engine);
  if (status) {
    gpuir_facets_destroy(f);
    return status;
  }
  *facets = f;
  if (matches) *matches = count;
  return GPUIR_OK;
}

GPUIR_API int gpuir_facets_get(const gpuir_facets *f, size_t which, size_t i, gpuir_facet *facet) {
  const gpuir__facet_column *c;
  const gpuir__facet_item *x;
  if (!f || !facet || which >= f->n) return GPUIR_E_ARGUMENT;
  c = &f->of[which];
  memset(facet, 0, sizeof *facet);
  if (i >= gpuir__facet_nitems(c)) return GPUIR_E_NOT_FOUND;
  x = &gpuir__facet_items(c)[i];
  facet->count = x->count;
  facet->low = c->is_text ? 0 : x->low;
  facet->high = c->is_text ? 0 : x->high;
  facet->value = c->is_text ? (const char *)c->text.data + x->low : NULL;
  facet->len = (size_t)x->len;
  return GPUIR_OK;
}
#endif

#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#pragma GCC diagnostic pop
#endif
#endif /* GPUIR_IMPLEMENTATION */
