
/* ========
 * [38-notes]  columns: values are noted as documents come, then packed
 *
 * Each column has a temporary file of what documents have, in the order of documents; keys and paths are noted as
 * numbers in the order in which they came first, and get their ranks at the end, when all are sorted. Then blocks of
 * 128 documents are packed one by one. So the budget of memory bounds all but the sorting of distinct values, which
 * goes to mapped files beyond it.
 *
 * A block's form, of which gpuir__column_open reads one, is
 *
 *     packed    128 numbers of `width` bits, each less the block's least
 *     table     up to 16 numbers of 8 bytes, then 128 numbers of 1 to 4 bits: which of them
 *     mixed     16 bytes, a bit a document that has a value, then one of the two above
 *     several   16 bytes: the width of ends; 128 ends, each where the next document's ranks begin; ranks of `width`
 *     bits
 *
 * and of those of one value a document the smallest is taken.
 *
 * Uses      [18-codecs], [34-fields], [35-keys], [37-layout].
 * Start at  gpuir__notes_put, gpuir__notes_finish.
 * Tests     tests/unit/38_notes.c
 * ======*/

#ifndef GPUIR_NO_COLUMNS
#define GPUIR__TMP_COLUMNS 700u /* numbers of temporary files: three a column */

/* Where the sections go: spools that follow one another. */
enum {
  GPUIR__OUT_COLUMNS,
  GPUIR__OUT_LEAST,
  GPUIR__OUT_MOST,
  GPUIR__OUT_OFF,
  GPUIR__OUT_FORM,
  GPUIR__OUT_DATA,
  GPUIR__OUT_TEXT,
  GPUIR__OUT_PAGES
};

/* A key that was noted. */
typedef struct gpuir__key_slot {
  uint32_t hash, number; /* number: from 1; 0: a free slot */
  uint32_t seen; /* the last document that has it, from 1 */
} gpuir__key_slot;

typedef struct gpuir__note_column {
  int column;
  gpuir__spool values; /* of each document how many it has, in 4 bytes, and their numbers, in 8 */
  gpuir__spool text, starts; /* of keys: their bytes; where each begins, in 8 bytes */
  gpuir__area table; /* gpuir__key_slot, by hash */
  uint64_t slots; /* of the table: a power of two, or 0 */
  uint64_t n; /* values that documents have; of keys distinct ones */
  uint64_t first, least, most, divisor; /* of numbers, as gpuir__unsign has them */
} gpuir__note_column;

typedef struct gpuir__notes {
  gpuir_allocator a;
  const char *tmp; /* for names of temporary files */
  uint64_t most; /* bytes of an area that is not mapped */
  uint64_t seed; /* of the tables: the file does not depend on it */
  unsigned n; /* columns */
  uint32_t documents;
  gpuir__note_column *of;
  gpuir__buf row; /* numbers of one document, or of one block's documents */
} gpuir__notes;

/* Return a number as one without a sign, in the same order, and back. */
static inline uint64_t gpuir__unsign(int64_t v) { return (uint64_t)v ^ (uint64_t)1 << 63; }
static inline int64_t gpuir__resign(uint64_t v) { return (int64_t)(v ^ (uint64_t)1 << 63); }

static void gpuir__notes_free(gpuir__notes *x) {
  unsigned i;
  for (i = 0; x->of && i < x->n; i++) {
    gpuir__spool_close(&x->of[i].values);
    gpuir__spool_close(&x->of[i].text);
    gpuir__spool_close(&x->of[i].starts);
    gpuir__area_free(&x->a, &x->of[i].table);
  }
  gpuir__free(&x->a, x->of, x->n * sizeof *x->of);
  gpuir__buf_free(&x->a, &x->row);
  x->of = NULL;
}

/* Sets notes up for the columns of `fields`: each has three spools, for values, texts and the starts of these, which
 * together keep `memory` bytes at most in memory, and the rest in temporary files. */
static int gpuir__notes_open(gpuir__notes *x, const gpuir_allocator *a, const gpuir__schema *fields, const char *tmp,
    uint64_t memory, gpuir_error *err) {
  const size_t each = (size_t)gpuir__min64(gpuir__max64(memory / (4 * fields->n), 4096), 1u << 17);
  unsigned i;
  x->a = *a;
  x->tmp = tmp;
  x->most = each;
  x->seed = gpuir__now();
  x->n = fields->n;
  x->of = (gpuir__note_column *)gpuir__alloc_zero(a, x->n * sizeof *x->of);
  if (!x->of) return gpuir__fail_nomem(err);
  for (i = 0; i < x->n; i++) {
    gpuir__note_column *c = &x->of[i];
    c->column = fields->of[i].column;
    c->least = UINT64_MAX;
    gpuir__spool_open(a, &c->values, tmp, GPUIR__TMP_COLUMNS + 3 * i, each);
    gpuir__spool_open(a, &c->text, tmp, GPUIR__TMP_COLUMNS + 3 * i + 1, each);
    gpuir__spool_open(a, &c->starts, tmp, GPUIR__TMP_COLUMNS + 3 * i + 2, each);
  }
  return GPUIR_OK;
}

/* ---- noting */

/* Refuses a document's values unless each is of a field that there is, is text just where the field is, and is not one
 * too many. Nothing has been noted yet then: a document is noted whole or not at all. */
static int gpuir__notes_check(const gpuir__notes *x, const gpuir_value *values, size_t n, gpuir_error *err) {
  uint32_t count[GPUIR_MAX_FIELDS];
  size_t i;
  memset(count, 0, sizeof count);
  if (n && !values) return gpuir__refuse(err, "a document's values are NULL, but their number is not 0");
  for (i = 0; i < n; i++) {
    const gpuir_value *v = &values[i];
    int text;
    if (v->field >= x->n)
      return gpuir__refuse(err, "value %lu is of field %u; there are %u", (unsigned long)i, v->field, x->n);
    text = gpuir__is_text_column(x->of[v->field].column);
    if (text != (v->text != NULL))
      return gpuir__refuse(err, "value %lu is %s", (unsigned long)i,
          text ? "no text, as its column is" : "text, and its column is not");
    if (text && (!v->len || v->len > GPUIR_MAX_VALUE || memchr(v->text, 0, v->len)))
      return gpuir__refuse(err, "value %lu is empty, has a byte 0, or more than %d bytes", (unsigned long)i,
          GPUIR_MAX_VALUE);
    if (++count[v->field] > (text ? (uint32_t)GPUIR_MAX_VALUES : 1))
      return gpuir__refuse(err, "a document has more than %d values of field %u", text ? GPUIR_MAX_VALUES : 1,
          v->field);
  }
  return GPUIR_OK;
}

/* Puts a slot into the first free place from its hash on. */
static gpuir__key_slot *gpuir__slots_put(gpuir__key_slot *slots, uint64_t n, const gpuir__key_slot *slot) {
  uint64_t at = slot->hash & (n - 1);
  while (slots[at].number) at = (at + 1) & (n - 1);
  slots[at] = *slot;
  return &slots[at];
}

/* Makes the table of keys twice as large. */
static int gpuir__slots_grow(gpuir__notes *x, gpuir__note_column *c, gpuir_error *err) {
  const gpuir__key_slot *old = (const gpuir__key_slot *)(const void *)c->table.data;
  const uint64_t n = c->slots ? 2 * c->slots : 1024;
  gpuir__area area = {NULL, 0, 0};
  uint64_t i;
  const int status = gpuir__area_need(&x->a, &area, n * sizeof *old, x->most, x->tmp, c->starts.number, err);
  if (status) return status;
  memset(area.data, 0, (size_t)n * sizeof *old);
  for (i = 0; i < c->slots; i++)
    if (old[i].number) (void)gpuir__slots_put((gpuir__key_slot *)(void *)area.data, n, &old[i]);
  gpuir__area_free(&x->a, &c->table);
  c->table = area;
  c->slots = n;
  return GPUIR_OK;
}

/* Says whether the key of a slot is text[0..len). */
static int gpuir__key_is(const gpuir__note_column *c, uint32_t number, const char *text, size_t len, int *same,
    gpuir_error *err) {
  uint64_t from, to = c->text.len;
  int status = gpuir__spool_get(&c->starts, &from, 8, (uint64_t)(number - 1) * 8, err);
  if (!status && number < c->n) status = gpuir__spool_get(&c->starts, &to, 8, (uint64_t)number * 8, err);
  *same = 0;
  if (status || to - from != len) return status;
  return gpuir__spool_has(&c->text, text, len, from, same, err);
}

/* Finds a key, or notes it under the next number. */
static int gpuir__key_find(gpuir__notes *x, gpuir__note_column *c, const char *text, size_t len, gpuir__key_slot **slot,
    gpuir_error *err) {
  gpuir__key_slot *slots, new_slot = {(uint32_t)gpuir__hash(text, len, x->seed), 0, 0};
  uint64_t at;
  int same = 0, status = GPUIR_OK;
  if (c->n >= c->slots - c->slots / 3) status = gpuir__slots_grow(x, c, err);
  slots = (gpuir__key_slot *)(void *)c->table.data;
  for (at = new_slot.hash & (c->slots - 1); !status && slots[at].number; at = (at + 1) & (c->slots - 1)) {
    *slot = &slots[at];
    if (slots[at].hash == new_slot.hash) status = gpuir__key_is(c, slots[at].number, text, len, &same, err);
    if (same) return status;
  }
  if (!status && c->n == UINT32_MAX - 1)
    status = gpuir__fail(err, GPUIR_E_LIMIT, 0, "a column of more than 2^32-2 different values");
  if (!status) status = gpuir__spool_put(&c->starts, &c->text.len, 8, err);
  if (!status) status = gpuir__spool_put(&c->text, text, len, err);
  if (status) return status;
  new_slot.number = (uint32_t)++c->n;
  *slot = gpuir__slots_put(slots, c->slots, &new_slot);
  return GPUIR_OK;
}

static uint64_t gpuir__divisor(uint64_t a, uint64_t b) {
  while (b) {
    const uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* Adds a number to what is known of its column's. */
static void gpuir__note_number(gpuir__note_column *c, uint64_t v) {
  if (!c->n++) c->first = v;
  if (v < c->least) c->least = v;
  if (v > c->most) c->most = v;
  if (c->divisor != 1) c->divisor = gpuir__divisor(v > c->first ? v - c->first : c->first - v, c->divisor);
}

/* Notes what one column gets of a document's values. */
static int gpuir__note_row(gpuir__notes *x, unsigned column, const gpuir_value *values, size_t n, gpuir_error *err) {
  gpuir__note_column *c = &x->of[column];
  gpuir__key_slot *slot = NULL;
  uint32_t count;
  size_t i;
  x->row.len = 0;
  for (i = 0; i < n; i++) {
    uint64_t number;
    if (values[i].field != column) continue;
    if (values[i].text) {
      const int status = gpuir__key_find(x, c, values[i].text, values[i].len, &slot, err);
      if (status) return status;
      if (slot->seen == x->documents) continue; /* it has it */
      slot->seen = x->documents;
      number = slot->number;
    } else {
      number = gpuir__unsign(values[i].number);
      gpuir__note_number(c, number);
    }
    if (gpuir__buf_put(&x->a, &x->row, &number, 8)) return gpuir__fail_nomem(err);
  }
  count = (uint32_t)(x->row.len / 8);
  i = (size_t)gpuir__spool_put(&c->values, &count, 4, err);
  return i ? (int)i : gpuir__spool_put(&c->values, x->row.data, x->row.len, err);
}

/* Notes the values of the next document, which were checked. */
static int gpuir__notes_put(gpuir__notes *x, const gpuir_value *values, size_t n, gpuir_error *err) {
  unsigned i;
  int status = GPUIR_OK;
  x->documents++;
  for (i = 0; i < x->n && !status; i++) status = gpuir__note_row(x, i, values, n, err);
  return status;
}

/* ---- sorting keys */

/* A spool's bytes in memory. */
typedef struct gpuir__spool_view {
  const uint8_t *data;
  size_t mapped; /* 0: the spool's buffer */
} gpuir__spool_view;

static int gpuir__spool_look(gpuir__spool *s, gpuir__spool_view *view, gpuir_error *err) {
  const int status = gpuir__spool_flush(s, err);
  view->data = s->buf;
  view->mapped = 0;
  if (status || s->fd < 0 || !s->len) return status;
  view->data = (const uint8_t *)mmap(NULL, (size_t)s->len, PROT_READ, MAP_SHARED, s->fd, 0);
  if (view->data == (const uint8_t *)MAP_FAILED) return gpuir__fail_errno(err, s->path, "cannot map a temporary file");
  view->mapped = (size_t)s->len;
  return GPUIR_OK;
}

static void gpuir__spool_unlook(gpuir__spool_view *view) {
  if (view->mapped) (void)munmap((void *)(uintptr_t)view->data, view->mapped);
  view->mapped = 0;
}

/* The keys of a column while they are sorted. */
typedef struct gpuir__sorting {
  int column;
  uint64_t n, size; /* keys; bytes of their text */
  gpuir__spool_view text, starts;
  gpuir__area area;
  uint32_t *order, *rank; /* [rank] the key's number, from 0; [number] its rank, from 0 */
} gpuir__sorting;

static const char *gpuir__sorted_key(const gpuir__sorting *s, uint32_t number, size_t *len) {
  const uint64_t from = gpuir__load64(s->starts.data + (uint64_t)number * 8);
  const uint64_t to = number + 1 < s->n ? gpuir__load64(s->starts.data + (uint64_t)(number + 1) * 8) : s->size;
  *len = (size_t)(to - from);
  return (const char *)s->text.data + from;
}

/* Merges order[from, middle) and order[middle, to) to the same place of `into`. */
static void gpuir__sorting_merge(const gpuir__sorting *s, const uint32_t *order, uint64_t from, uint64_t middle,
    uint64_t to, uint32_t *into) {
  uint64_t i = from, j = middle, at;
  for (at = from; at < to; at++) {
    int left = j == to;
    if (!left && i < middle) {
      size_t an, bn;
      const char *a = gpuir__sorted_key(s, order[i], &an), *b = gpuir__sorted_key(s, order[j], &bn);
      left = gpuir__value_compare(s->column, a, an, b, bn) < 0;
    }
    into[at] = left ? order[i++] : order[j++];
  }
}

/* Sorts the keys by merging runs of 1, 2, 4 ... */
static int gpuir__sorting_run(gpuir__notes *x, gpuir__note_column *c, gpuir__sorting *s, gpuir_error *err) {
  uint64_t width, from, i;
  uint32_t *a, *b;
  int status = gpuir__spool_look(&c->text, &s->text, err);
  if (!status) status = gpuir__spool_look(&c->starts, &s->starts, err);
  if (!status) status = gpuir__area_need(&x->a, &s->area, s->n * 8, x->most, x->tmp, c->starts.number, err);
  if (status) return status;
  a = (uint32_t *)(void *)s->area.data;
  b = a + s->n;
  for (i = 0; i < s->n; i++) a[i] = (uint32_t)i;
  for (width = 1; width < s->n; width *= 2) {
    uint32_t *const swap = a;
    for (from = 0; from < s->n; from += 2 * width)
      gpuir__sorting_merge(s, a, from, gpuir__min64(from + width, s->n), gpuir__min64(from + 2 * width, s->n), b);
    a = b;
    b = swap;
  }
  for (i = 0; i < s->n; i++) b[a[i]] = (uint32_t)i;
  s->order = a;
  s->rank = b;
  return GPUIR_OK;
}

/* Writes the sorted keys in pages. */
static int gpuir__sorting_write(const gpuir__sorting *s, gpuir__spool *out, gpuir_error *err) {
  uint8_t bytes[GPUIR_MAX_VALUE + 32];
  const char *before = NULL;
  size_t before_len = 0, len;
  uint64_t i;
  int status = GPUIR_OK;
  for (i = 0; i < s->n && !status; i++) {
    const char *text = gpuir__sorted_key(s, s->order[i], &len);
    if (i % GPUIR__KEY_PAGE == 0) status = gpuir__spool_put(&out[GPUIR__OUT_PAGES], &out[GPUIR__OUT_TEXT].len, 8, err);
    if (!status)
      status = gpuir__spool_put(&out[GPUIR__OUT_TEXT], bytes,
          (size_t)(gpuir__key_put(i, before, before_len, text, len, bytes) - bytes), err);
    before = text;
    before_len = len;
  }
  return status;
}

/* ---- packing */

/* Reads and writes number i of numbers of `width` bits, 0 to 56 or 64. Eight bytes are touched; those that are written
 * to were zeros. */
static inline uint64_t gpuir__packed_get(const uint8_t *p, uint64_t i, unsigned width) {
  const uint64_t bit = i * width;
  if (width == 64) return gpuir__load64(p + 8 * i);
  return gpuir__load64(p + bit / 8) >> bit % 8 & gpuir__low_bits64(width);
}
static void gpuir__packed_put(uint8_t *p, uint64_t i, unsigned width, uint64_t v) {
  const uint64_t bit = i * width;
  gpuir__store64(p + bit / 8, gpuir__load64(p + bit / 8) | v << bit % 8);
}

static unsigned gpuir__packed_width(uint64_t most) {
  const unsigned width = gpuir__width64(most);
  return width > 56 ? 64 : width;
}

/* Numbers of a block, and what they become. */
typedef struct gpuir__packing {
  uint32_t n; /* documents */
  uint32_t count[GPUIR__BLOCK]; /* [document] its values */
  uint64_t least, most; /* extremes, as COL_LEAST and COL_MOST have them */
  unsigned width, form;
  size_t size; /* bytes of out */
  gpuir__buf out;
} gpuir__packing;

/* Makes n zeros in the packing's buffer, and some behind them; NULL: no memory. */
static uint8_t *gpuir__packing_room(const gpuir_allocator *a, gpuir__packing *p, uint64_t n) {
  uint8_t *to;
  p->out.len = 0;
  p->size = (size_t)n;
  to = gpuir__buf_room(a, &p->out, (size_t)n + 8);
  if (to) memset(to, 0, (size_t)n + 8);
  return to;
}

/* Adds v to sorted numbers; returns how many they are then, 17 for too many. */
static unsigned gpuir__table_add(uint64_t table[17], unsigned n, uint64_t v) {
  unsigned i = 0, j;
  while (i < n && table[i] < v) i++;
  if (n == 17 || (i < n && table[i] == v)) return n;
  for (j = n++; j > i; j--) table[j] = table[j - 1];
  table[i] = v;
  return n;
}

/* Packs a block of which documents have one value or, if `some` have none, a bit says so. */
static int gpuir__packing_single(const gpuir_allocator *a, gpuir__packing *p, const uint64_t *values, int some) {
  const unsigned width = gpuir__packed_width(p->most - p->least), head = some ? 16 : 0;
  uint64_t table[17];
  unsigned ntable = 0, bits, by_table, i, j;
  uint8_t *to;
  memset(table, 0, sizeof table);
  for (i = 0; i < p->n; i++)
    if (p->count[i]) ntable = gpuir__table_add(table, ntable, values[i]);
  bits = ntable ? gpuir__width64(ntable - 1) : 0;
  by_table = ntable <= 16 && bits && (8u << bits) + 16 * bits < 16 * width;
  to = gpuir__packing_room(a, p, head + (by_table ? (8u << bits) + 16 * bits : 16 * width));
  if (!to) return GPUIR_E_NOMEM;
  for (i = 0; some && i < p->n; i++)
    if (p->count[i]) to[i / 8] = (uint8_t)(to[i / 8] | 1u << i % 8);
  to += head;
  p->width = by_table ? bits : width;
  p->form = (some ? (unsigned)GPUIR__FORM_MIXED : 0u) | (by_table ? (unsigned)GPUIR__FORM_TABLE : 0u);
  for (j = 0; by_table && j < ntable; j++) gpuir__store64(to + 8 * j, table[j] - p->least);
  if (by_table) to += 8u << bits;
  for (i = 0; i < p->n; i++) {
    if (!p->count[i]) continue;
    for (j = 0; by_table && table[j] != values[i]; j++) {}
    gpuir__packed_put(to, i, p->width, by_table ? j : values[i] - p->least);
  }
  return GPUIR_OK;
}

/* Packs a block of which documents have several ranks; values[] has those of all, one document behind the other. */
static int gpuir__packing_several(const gpuir_allocator *a, gpuir__packing *p, const uint64_t *values) {
  uint64_t total = 0, i;
  unsigned ends;
  uint8_t *to;
  for (i = 0; i < p->n; i++) total += p->count[i];
  ends = gpuir__width64(total);
  p->width = gpuir__packed_width(p->most);
  p->form = GPUIR__FORM_SEVERAL;
  to = gpuir__packing_room(a, p, 16 + 16 * ends + ((total * p->width + 127) / 128) * 16);
  if (!to) return GPUIR_E_NOMEM;
  to[0] = (uint8_t)ends;
  for (i = total = 0; i < GPUIR__BLOCK; i++) {
    total += i < p->n ? p->count[i] : 0;
    gpuir__packed_put(to + 16, i, ends, total);
  }
  for (i = 0; i < total; i++) gpuir__packed_put(to + 16 + 16 * (size_t)ends, i, p->width, values[i]);
  return GPUIR_OK;
}

/* Reads what a column has noted, from front to back. */
typedef struct gpuir__note_reader {
  const gpuir__spool *spool;
  uint64_t at;
  size_t pos, fill;
  uint8_t bytes[8192];
} gpuir__note_reader;

static int gpuir__note_get(gpuir__note_reader *r, void *to, size_t n, gpuir_error *err) {
  if (r->fill - r->pos < n) {
    const uint64_t left = r->spool->len - r->at;
    int status;
    memmove(r->bytes, r->bytes + r->pos, r->fill - r->pos);
    r->fill -= r->pos;
    r->pos = 0;
    status = gpuir__spool_get(r->spool, r->bytes + r->fill, (size_t)gpuir__min64(left, sizeof r->bytes - r->fill),
        r->at, err);
    if (status) return status;
    r->at += gpuir__min64(left, sizeof r->bytes - r->fill);
    r->fill += (size_t)gpuir__min64(left, sizeof r->bytes - r->fill);
  }
  memcpy(to, r->bytes + r->pos, n);
  r->pos += n;
  return GPUIR_OK;
}

/* Reads the values of a block's documents to the row: ranks from 1, or numbers less the least, by their divisor. *most
 * becomes the greatest number of a document's values, *none whether one has none. */
static int gpuir__notes_block(gpuir__notes *x, const gpuir__note_column *c, const gpuir__sorting *s,
    gpuir__note_reader *r, gpuir__packing *p, uint32_t *most, int *none, gpuir_error *err) {
  const int text = gpuir__is_text_column(c->column);
  uint32_t i, j;
  x->row.len = 0;
  *most = 0;
  *none = 0;
  p->least = UINT64_MAX;
  p->most = 0;
  for (i = 0; i < p->n; i++) {
    int status = gpuir__note_get(r, &p->count[i], 4, err);
    *most = gpuir__max32(*most, p->count[i]);
    *none |= !p->count[i];
    for (j = 0; !status && j < p->count[i]; j++) {
      uint64_t v;
      status = gpuir__note_get(r, &v, 8, err);
      if (status) break;
      v = text ? s->rank[v - 1] + (uint64_t)1 : (v - c->least) / (c->divisor ? c->divisor : 1);
      p->least = gpuir__min64(p->least, v);
      p->most = gpuir__max64(p->most, v);
      if (gpuir__buf_put(&x->a, &x->row, &v, 8)) status = gpuir__fail_nomem(err);
    }
    if (status) return status;
  }
  if (*none && text) p->least = 0;
  if (!*most && !text) p->least = 1;
  return GPUIR_OK;
}

/* Moves a block's values to where their documents' numbers are; of keys those who have none get rank 0. */
static void gpuir__notes_spread(const gpuir__notes *x, gpuir__packing *p, int text, uint64_t values[GPUIR__BLOCK]) {
  uint32_t i, at = 0;
  for (i = 0; i < p->n; i++) {
    values[i] = p->count[i] ? gpuir__load64(x->row.data + 8 * (size_t)at++) : 0;
    if (text) p->count[i] = 1;
  }
}

/* Packs one block and appends it to the sections. `from`: where the column's data begin. */
static int gpuir__notes_pack(gpuir__notes *x, const gpuir__note_column *c, const gpuir__sorting *s,
    gpuir__note_reader *r, gpuir__packing *p, uint64_t from, gpuir__spool *out, gpuir_error *err) {
  const int text = gpuir__is_text_column(c->column);
  const uint64_t at = out[GPUIR__OUT_DATA].len - from;
  uint64_t values[GPUIR__BLOCK];
  uint32_t most, off = (uint32_t)(at / 16);
  uint16_t form;
  int none, status = gpuir__notes_block(x, c, s, r, p, &most, &none, err);
  if (status) return status;
  if (at / 16 > UINT32_MAX) return gpuir__fail(err, GPUIR_E_LIMIT, 0, "a column of 64 GiB or more");
  if (most > 1) {
    status = gpuir__packing_several(&x->a, p, (const uint64_t *)(const void *)x->row.data);
  } else if (!most && !text) {
    p->width = p->form = 0;
    p->size = 0;
  } else {
    gpuir__notes_spread(x, p, text, values);
    status = gpuir__packing_single(&x->a, p, values, none && !text);
  }
  if (status) return gpuir__fail_nomem(err);
  form = (uint16_t)(p->width | p->form << 8);
  status = gpuir__spool_put(&out[GPUIR__OUT_LEAST], &p->least, 8, err);
  if (!status) status = gpuir__spool_put(&out[GPUIR__OUT_MOST], &p->most, 8, err);
  if (!status) status = gpuir__spool_put(&out[GPUIR__OUT_OFF], &off, 4, err);
  if (!status) status = gpuir__spool_put(&out[GPUIR__OUT_FORM], &form, 2, err);
  return status ? status : gpuir__spool_put(&out[GPUIR__OUT_DATA], p->out.data, p->size, err);
}

/* Writes one column to the spools `out`: a text column's keys, sorted, then the blocks of values, in which ranks of
 * keys stand for texts, and last the row that describes it. */
static int gpuir__notes_column(gpuir__notes *x, unsigned column, unsigned decimals, gpuir__packing *p,
    gpuir__note_reader *r, gpuir__spool *out, gpuir_error *err) {
  gpuir__note_column *c = &x->of[column];
  gpuir__sorting s;
  gpuir__column row;
  uint64_t done;
  int status = GPUIR_OK;
  memset(&s, 0, sizeof s);
  memset(&row, 0, sizeof row);
  s.column = c->column;
  row.kind = (uint32_t)c->column;
  row.decimals = decimals;
  row.values = c->n;
  row.divisor = c->divisor ? c->divisor : 1;
  row.least = gpuir__is_text_column(c->column) || !c->n ? 0 : gpuir__resign(c->least);
  row.data = out[GPUIR__OUT_DATA].len;
  row.page = out[GPUIR__OUT_PAGES].len / 8;
  gpuir__area_free(&x->a, &c->table);
  if (gpuir__is_text_column(c->column)) {
    s.n = c->n;
    s.size = c->text.len;
    status = gpuir__sorting_run(x, c, &s, err);
    if (!status) status = gpuir__sorting_write(&s, out, err);
  }
  memset(r, 0, offsetof(gpuir__note_reader, bytes));
  r->spool = &c->values;
  for (done = 0; done < x->documents && !status; done += p->n) {
    p->n = (uint32_t)gpuir__min64(GPUIR__BLOCK, x->documents - done);
    row.blocks++;
    status = gpuir__notes_pack(x, c, &s, r, p, row.data, out, err);
  }
  gpuir__spool_unlook(&s.text);
  gpuir__spool_unlook(&s.starts);
  gpuir__area_free(&x->a, &s.area);
  return status ? status : gpuir__spool_put(&out[GPUIR__OUT_COLUMNS], &row, sizeof row, err);
}

/* Writes all columns to out[GPUIR__OUT_COLUMNS ...]. */
static int gpuir__notes_finish(gpuir__notes *x, const gpuir__schema *fields, gpuir__spool *out, gpuir_error *err) {
  gpuir__note_reader *r = (gpuir__note_reader *)gpuir__alloc(&x->a, sizeof *r);
  gpuir__packing p;
  unsigned i;
  int status = r ? GPUIR_OK : gpuir__fail_nomem(err);
  memset(&p, 0, sizeof p);
  for (i = 0; i < x->n && !status; i++) status = gpuir__notes_column(x, i, fields->of[i].decimals, &p, r, out, err);
  gpuir__buf_free(&x->a, &p.out);
  gpuir__free(&x->a, r, sizeof *r);
  return status;
}
#endif
