
/* ========
 * [35-keys]  the values of a key or a path: sorted, front-coded in pages
 *
 * A page has up to GPUIR__KEY_PAGE values; of each it has how many bytes it shares with the one before, how many follow
 * (both in sevens), and these. The first of a page shares none. Values are numbered in their order, from 0; that number
 * plus 1 is the value's rank.
 *
 * Uses      [18-codecs] (variable bytes), [34-fields].
 * Start at  gpuir__key_put, gpuir__key_get, gpuir__key_below.
 * Tests     tests/unit/35_keys.c
 * ======*/

#ifndef GPUIR_NO_COLUMNS
#define GPUIR__KEY_PAGE 16u

static uint64_t gpuir__key_pages(uint64_t values) { return (values + GPUIR__KEY_PAGE - 1) / GPUIR__KEY_PAGE; }

/* The values of one column, in a file that nobody trusts: behind text[0..size) there are 64 zeros. */
typedef struct gpuir__key_texts {
  int column;
  uint64_t n; /* values */
  const uint8_t *text;
  uint64_t size;
  const uint64_t *pages; /* where in the text each page begins */
  uint64_t npages; /* those that may be read, of columns behind this one too */
} gpuir__key_texts;

/* A value on the way through its page. */
typedef struct gpuir__key_walk {
  const uint8_t *p, *end; /* what follows */
  size_t len; /* 0: damaged */
  char text[GPUIR_MAX_VALUE + 1];
} gpuir__key_walk;

/* Writes value i, which comes behind before[0..before_len); returns the end of at most GPUIR_MAX_VALUE + 4 bytes. */
static uint8_t *gpuir__key_put(uint64_t i, const char *before, size_t before_len, const char *text, size_t len,
    uint8_t *to) {
  size_t shared = 0;
  if (i % GPUIR__KEY_PAGE)
    while (shared < before_len && shared < len && before[shared] == text[shared]) shared++;
  to = gpuir__vbyte_put(to, shared);
  to = gpuir__vbyte_put(to, len - shared);
  memcpy(to, text + shared, len - shared);
  return to + (len - shared);
}

/* Goes to the next value of the page. */
static void gpuir__key_next(gpuir__key_walk *w) {
  uint64_t shared, rest;
  const size_t before = w->len;
  w->len = 0;
  if (w->p >= w->end) return;
  shared = gpuir__vbyte_get(&w->p);
  if (w->p >= w->end) return;
  rest = gpuir__vbyte_get(&w->p);
  if (w->p > w->end || shared > before || rest > (uint64_t)(w->end - w->p) || rest > GPUIR_MAX_VALUE - shared) return;
  memcpy(w->text + shared, w->p, (size_t)rest);
  w->len = (size_t)(shared + rest);
  w->p += rest;
}

/* Goes to the first value of a page. */
static void gpuir__key_open(const gpuir__key_texts *t, uint64_t page, gpuir__key_walk *w) {
  const uint64_t from = page < t->npages ? t->pages[page] : t->size;
  const uint64_t to = page + 1 < t->npages ? t->pages[page + 1] : t->size;
  w->len = 0;
  w->p = w->end = t->text;
  if (from >= to || to > t->size) return;
  w->p = t->text + from;
  w->end = t->text + to;
  gpuir__key_next(w);
}

/* Copies value i and a NUL behind it to w->text; returns its length, 0 where there is none. */
static size_t gpuir__key_get(const gpuir__key_texts *t, uint64_t i, gpuir__key_walk *w) {
  unsigned steps = (unsigned)(i % GPUIR__KEY_PAGE);
  w->len = 0;
  if (i >= t->n) return 0;
  for (gpuir__key_open(t, i / GPUIR__KEY_PAGE, w); steps && w->len; steps--) gpuir__key_next(w);
  w->text[w->len] = 0;
  return w->len;
}

/* Counts the values that stand before text[0..len); *found: whether the next one is it. */
static uint64_t gpuir__key_below(const gpuir__key_texts *t, const char *text, size_t len, int *found) {
  uint64_t lo = 0, n = gpuir__key_pages(t->n), i;
  gpuir__key_walk w;
  int c = -1;
  *found = 0;
  while (n > 1) { /* the last page whose first value is not behind it */
    const uint64_t half = n / 2;
    gpuir__key_open(t, lo + half, &w);
    if (w.len && gpuir__value_compare(t->column, w.text, w.len, text, len) <= 0) lo += half;
    n -= half;
  }
  if (!t->n) return 0;
  i = lo * GPUIR__KEY_PAGE;
  for (gpuir__key_open(t, lo, &w); w.len && i < t->n && i < (lo + 1) * GPUIR__KEY_PAGE; i++, gpuir__key_next(&w)) {
    c = gpuir__value_compare(t->column, w.text, w.len, text, len);
    if (c >= 0) break;
  }
  *found = c == 0;
  return i;
}
#endif
