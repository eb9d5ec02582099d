
/* ========
 * [50-sieve]  where: which documents of a segment pass
 *
 * In a segment each predicate becomes ranges of kept numbers or ranks. Documents are tested in blocks of 128: where a
 * block's extremes lie in one range, or in none, no value is read. What all extremes tell is found when a sieve is
 * made; the other blocks are found when a document of them is first asked for, so that a search which looks at few
 * documents reads few values. What was found stays: a bit a document, which other searches with the same where, in any
 * thread, see too.
 *
 *     state   unknown -> taken -> known     a thread takes an unknown block, writes its bits, and lets them be seen;
 *                                           who finds it taken reads the values for itself
 *
 * Uses      [18-codecs], [26-dense], [34-fields], [35-keys], [37-layout], [38-notes], [40-columns],
 *           [41-reader], [49-where].
 * Start at  gpuir__sieve_open, gpuir__sieve_get, gpuir__sieve_failed.
 * Tests     tests/unit/50_sieve.c
 * ======*/

#ifndef GPUIR_NO_COLUMNS
/* ---- ranges */

/* Finds the ranks of an item of a key or a path; 0: there are none. */
static int gpuir__item_ranks(const gpuir__key_texts *t, const gpuir__where *w, const gpuir__where_item *x,
    gpuir__range *range) {
  char behind[GPUIR__WHERE_BYTES + 1];
  int found;
  range->low = 1;
  range->high = t->n;
  if (x->has[0]) range->low = gpuir__key_below(t, w->bytes + x->at[0], x->len[0], &found) + 1;
  if (x->has[1] && t->column == GPUIR_PATH) { /* with all below it: the byte behind '/' */
    memcpy(behind, w->bytes + x->at[1], x->len[1]);
    behind[x->len[1]] = 1;
    range->high = gpuir__key_below(t, behind, x->len[1] + 1, &found);
  } else if (x->has[1]) {
    range->high = gpuir__key_below(t, w->bytes + x->at[1], x->len[1], &found);
    range->high += found != 0;
  }
  return range->low <= range->high;
}

/* Finds the kept numbers of an item of a number or a date; 0: there are none. */
static int gpuir__item_numbers(const gpuir__column *row, const gpuir__where_item *x, gpuir__range *range) {
  const uint64_t least = gpuir__unsign(row->least);
  range->low = 0;
  range->high = UINT64_MAX;
  if (x->has[0]) {
    const uint64_t low = gpuir__unsign(x->bounds[0].low);
    if (x->bounds[0].no_low) return 0;
    if (low > least) range->low = (low - least) / row->divisor + ((low - least) % row->divisor != 0);
  }
  if (x->has[1]) {
    const uint64_t high = gpuir__unsign(x->bounds[1].high);
    if (x->bounds[1].no_high || high < least) return 0;
    range->high = (high - least) / row->divisor;
  }
  return range->low <= range->high;
}

/* Puts a range among n that ascend, by their begins. */
static void gpuir__ranges_put(gpuir__range *ranges, uint32_t n, gpuir__range x) {
  for (; n && ranges[n - 1].low > x.low; n--) ranges[n] = ranges[n - 1];
  ranges[n] = x;
}

/* Joins ranges that overlap or touch; returns how many are left. */
static uint32_t gpuir__ranges_join(gpuir__range *ranges, uint32_t n) {
  uint32_t i, kept = 0;
  for (i = 0; i < n; i++) {
    if (kept && (ranges[kept - 1].high == UINT64_MAX || ranges[i].low <= ranges[kept - 1].high + 1))
      ranges[kept - 1].high = gpuir__max64(ranges[kept - 1].high, ranges[i].high);
    else ranges[kept++] = ranges[i];
  }
  return kept;
}

/* Finds what the predicates are in the segment, which has the where's fields. */
static void gpuir__sieve_compile(gpuir__sieve *s, const gpuir__where *w) {
  uint32_t i, j, at = 0;
  for (i = 0; i < w->n; i++) {
    const gpuir__predicate *p = &w->predicates[i];
    const gpuir__column *row = &s->seg->columns.rows[p->column];
    const int text = gpuir__is_text_column((int)row->kind);
    const gpuir__key_texts t = gpuir__column_texts(s->seg, p->column);
    gpuir__sieve_test *test = &s->tests[i];
    test->column = p->column;
    test->negated = p->negated;
    test->group = p->group;
    test->first = at;
    test->n = 0;
    for (j = 0; j < p->n; j++) {
      const gpuir__where_item *x = &w->items[p->first + j];
      gpuir__range range;
      if (text ? gpuir__item_ranks(&t, w, x, &range) : gpuir__item_numbers(row, x, &range))
        gpuir__ranges_put(s->ranges + at, test->n++, range);
    }
    test->n = gpuir__ranges_join(s->ranges + at, test->n);
    at += test->n;
  }
}

/* ---- tests */

/* Returns the number of the last range that does not begin behind v; n if there is none. */
static uint32_t gpuir__ranges_find(const gpuir__range *ranges, uint32_t n, uint64_t v) {
  uint32_t lo = 0, left = n;
  while (left > 1) {
    const uint32_t half = left / 2;
    lo = ranges[lo + half].low <= v ? lo + half : lo;
    left -= half;
  }
  return left && ranges[lo].low <= v ? lo : n;
}

static int gpuir__ranges_have(const gpuir__range *ranges, uint32_t n, uint64_t v) {
  const uint32_t i = gpuir__ranges_find(ranges, n, v);
  return i < n && v <= ranges[i].high;
}

/* Says what a block's extremes tell: 1: each value lies in a range; 0: none does; -1: that is not known. */
static int gpuir__ranges_decide(const gpuir__range *ranges, uint32_t n, uint64_t least, uint64_t most) {
  const uint32_t i = gpuir__ranges_find(ranges, n, most);
  if (i == n || ranges[i].high < least) return 0;
  return ranges[i].low <= least && most <= ranges[i].high ? 1 : -1;
}

/* Sets a bit for each document of a block with one value that lies in a range. */
static void gpuir__sieve_single(const gpuir__column_block *b, const gpuir__range *ranges, uint32_t n,
    uint64_t bits[2]) {
  uint32_t i, pass = 0;
  for (i = 0; b->table && i < 1u << b->width; i++)
    pass |= (uint32_t)gpuir__ranges_have(ranges, n, b->least + gpuir__load64(b->table + 8 * i)) << i;
  for (i = 0; i < GPUIR__BLOCK; i++) {
    const uint64_t v = gpuir__packed_get(b->data, i, b->width);
    uint64_t in;
    if (b->table) in = pass >> v & 1;
    else if (n == 1) in = b->least + v - ranges[0].low <= ranges[0].high - ranges[0].low;
    else in = (uint64_t)gpuir__ranges_have(ranges, n, b->least + v);
    bits[i / 64] |= in << i % 64;
  }
}

/* Sets a bit for each document of a block one of whose ranks lies in a range. Returns how many ranks it read. */
static uint64_t gpuir__sieve_several(const gpuir__column_block *b, const gpuir__range *ranges, uint32_t n,
    uint64_t bits[2]) {
  uint64_t first, j, read = 0;
  uint32_t i;
  for (i = 0; i < GPUIR__BLOCK; i++) {
    const uint64_t count = gpuir__column_count(b, i, &first);
    for (j = 0; j < count; j++, read++)
      if (gpuir__ranges_have(ranges, n, gpuir__column_read(b, i, first + j))) {
        bits[i / 64] |= (uint64_t)1 << i % 64;
        break;
      }
  }
  return read;
}

/* Says what a block's extremes tell of a predicate: 1: it holds for each document; 0: for none; -1: that is not
 * known. */
static int gpuir__sieve_decide(const gpuir__sieve *s, const gpuir__sieve_test *t, uint64_t block) {
  const gpuir__index_columns *x = &s->seg->columns;
  const uint64_t at = t->column * x->blocks + block;
  int known = t->n ? gpuir__ranges_decide(s->ranges + t->first, t->n, x->least[at], x->most[at]) : 0;
  if (known > 0) {
    gpuir__column_block b;
    gpuir__column_open(s->seg, t->column, block, &b);
    if (b.none) known = 0;
    else if (b.has || b.ends) known = -1; /* some may have no value */
  }
  return known < 0 ? known : known != t->negated;
}

/* Sets a bit for each document of a block of which a predicate holds; those behind the last one mean nothing. *read
 * grows by the ranks that were read. */
static void gpuir__sieve_predicate(const gpuir__sieve *s, const gpuir__sieve_test *t, uint64_t block, uint64_t bits[2],
    uint64_t *read) {
  const gpuir__range *ranges = s->ranges + t->first;
  const int known = gpuir__sieve_decide(s, t, block);
  gpuir__column_block b;
  bits[0] = bits[1] = known > 0 ? UINT64_MAX : 0;
  if (known >= 0) return;
  gpuir__column_open(s->seg, t->column, block, &b);
  if (!b.none && b.ends) *read += gpuir__sieve_several(&b, ranges, t->n, bits);
  else if (!b.none) gpuir__sieve_single(&b, ranges, t->n, bits);
  if (b.has) {
    bits[0] &= gpuir__load64(b.has);
    bits[1] &= gpuir__load64(b.has + 8);
  }
  if (!t->negated) return;
  bits[0] = ~bits[0];
  bits[1] = ~bits[1];
}

/* Sets a bit for each number of a block that is behind the last document's. */
static void gpuir__sieve_behind(const gpuir__sieve *s, uint64_t block, uint64_t bits[2]) {
  const uint64_t left = s->seg->stat.documents - block * GPUIR__BLOCK;
  bits[0] = left < 64 ? ~gpuir__low_bits64((unsigned)left) : 0;
  bits[1] = left < 64 ? UINT64_MAX : left < 128 ? ~gpuir__low_bits64((unsigned)left - 64) : 0;
}

/* Sets a bit for each document of a block that does not pass, and for those behind the last one. Returns how many ranks
 * were read. */
static uint64_t gpuir__sieve_block(const gpuir__sieve *s, uint64_t block, uint64_t fails[2]) {
  uint64_t bits[2], pass[2] = {0, 0}, read = 0;
  unsigned i = 0;
  while (i < s->n) {
    const unsigned group = s->tests[i].group;
    uint64_t all[2] = {UINT64_MAX, UINT64_MAX};
    for (; i < s->n && s->tests[i].group == group; i++) {
      if (!(all[0] | all[1])) continue;
      gpuir__sieve_predicate(s, &s->tests[i], block, bits, &read);
      all[0] &= bits[0];
      all[1] &= bits[1];
    }
    pass[0] |= all[0];
    pass[1] |= all[1];
  }
  gpuir__sieve_behind(s, block, fails);
  fails[0] |= ~pass[0];
  fails[1] |= ~pass[1];
  return read;
}

/* Says what the extremes alone tell of a block: 1: each document passes; 0: none does; -1: that is not known. */
static int gpuir__sieve_extremes(const gpuir__sieve *s, uint64_t block) {
  int pass = 0;
  unsigned i = 0;
  while (i < s->n && pass < 1) {
    const unsigned group = s->tests[i].group;
    int all = 1;
    for (; i < s->n && s->tests[i].group == group; i++) {
      const int holds = all ? gpuir__sieve_decide(s, &s->tests[i], block) : 0;
      if (holds < 1) all = holds ? -1 : 0;
    }
    if (all) pass = all;
  }
  return pass;
}

/* ---- what is known */

/* Says whether all blocks are known; then their bits do not change any more. */
static inline int gpuir__sieve_is_known(const gpuir__sieve *s) {
  return __atomic_load_n(&s->known, __ATOMIC_ACQUIRE) == s->blocks;
}

/* Lets the bits of a block be seen that the caller has taken. */
static void gpuir__sieve_tell(gpuir__sieve *s, uint64_t block, const uint64_t fails[2]) {
  s->fails[2 * block] = fails[0];
  s->fails[2 * block + 1] = fails[1];
  (void)__atomic_add_fetch(&s->passing, 128 - gpuir__ones64(fails[0]) - gpuir__ones64(fails[1]), __ATOMIC_RELAXED);
  __atomic_store_n(&s->state[block], GPUIR__BLOCK_KNOWN, __ATOMIC_RELEASE);
  (void)__atomic_add_fetch(&s->known, 1, __ATOMIC_ACQ_REL);
}

/* Finds the bits of a block that is not known. Returns how many ranks were read. */
GPUIR__NOINLINE uint64_t gpuir__sieve_find(gpuir__sieve *s, uint64_t block, uint64_t fails[2]) {
  const uint64_t read = gpuir__sieve_block(s, block, fails);
  uint8_t state = GPUIR__BLOCK_UNKNOWN;
  if (__atomic_compare_exchange_n(&s->state[block], &state, GPUIR__BLOCK_TAKEN, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    gpuir__sieve_tell(s, block, fails);
  return read;
}

/* Gets a bit for each document of a block (< blocks) that does not pass, and for those behind the last one. Returns how
 * many ranks were read: in a forged file millions, so that the caller has to look at its deadline. */
static inline uint64_t gpuir__sieve_get(gpuir__sieve *s, uint64_t block, uint64_t fails[2]) {
  if (__atomic_load_n(&s->state[block], __ATOMIC_ACQUIRE) != GPUIR__BLOCK_KNOWN)
    return gpuir__sieve_find(s, block, fails);
  fails[0] = s->fails[2 * block];
  fails[1] = s->fails[2 * block + 1];
  return 0;
}

/* Says whether it is known that none of the documents [from, to) passes; `to` is at most that of the words. */
static int gpuir__sieve_is_empty(const gpuir__sieve *s, uint64_t from, uint64_t to) {
  const int known = gpuir__sieve_is_known(s);
  uint64_t word;
  for (word = from / 64; word < s->words && word * 64 < to; word++) {
    uint64_t fails;
    if (!known && word / 2 < s->blocks && __atomic_load_n(&s->state[word / 2], __ATOMIC_ACQUIRE) != GPUIR__BLOCK_KNOWN)
      return 0;
    fails = s->fails[word];
    if (word == from / 64) fails |= gpuir__low_bits64((unsigned)(from % 64));
    if (to - word * 64 < 64) fails |= ~gpuir__low_bits64((unsigned)(to - word * 64));
    if (fails != UINT64_MAX) return 0;
  }
  return 1;
}

/* Makes known what the extremes tell, of a sieve that no other thread has. */
static void gpuir__sieve_begin(gpuir__sieve *s) {
  uint64_t block, word;
  for (block = 0; block < s->blocks; block++) {
    const int pass = gpuir__sieve_extremes(s, block);
    uint64_t *fails = s->fails + 2 * block;
    if (pass < 0) continue;
    if (pass) gpuir__sieve_behind(s, block, fails);
    else fails[0] = fails[1] = UINT64_MAX;
    s->state[block] = GPUIR__BLOCK_KNOWN;
    s->known++;
    s->passing += 128 - gpuir__ones64(fails[0]) - gpuir__ones64(fails[1]);
  }
  for (word = 2 * s->blocks; word < s->words; word++) s->fails[word] = UINT64_MAX;
}

/* ---- sieves that are kept: 16 a segment, of which the oldest goes */

/* Makes the sieve of a where, of which only what extremes tell is known. NULL: no memory. */
static gpuir__sieve *gpuir__sieve_make(const gpuir__segment *seg, const gpuir__where *w) {
  const uint64_t words = gpuir__dense_lines(seg->stat.documents) * 8, blocks = seg->columns.blocks;
  const size_t tests = w->n * sizeof(gpuir__sieve_test), ranges = w->nitems * sizeof(gpuir__range);
  const size_t size = sizeof(gpuir__sieve) + (size_t)words * 8 + ranges + tests + (size_t)blocks + w->len + 1;
  gpuir__sieve *s = (gpuir__sieve *)gpuir__alloc_zero(&seg->a, size);
  if (!s) return NULL;
  s->a = seg->a;
  s->size = size;
  s->refs = 1;
  s->seg = seg;
  s->n = w->n;
  s->len = w->len;
  s->blocks = blocks;
  s->words = words;
  s->fails = (uint64_t *)(void *)(s + 1);
  s->ranges = (gpuir__range *)(void *)(s->fails + words);
  s->tests = (gpuir__sieve_test *)(void *)(s->ranges + w->nitems);
  s->state = (uint8_t *)(void *)(s->tests + w->n);
  s->text = (char *)(void *)(s->state + blocks);
  memcpy(s->text, w->text, w->len);
  gpuir__sieve_compile(s, w);
  gpuir__sieve_begin(s);
  return s;
}

/* Returns the sieve of a where that a segment keeps, to be closed; NULL: there is none. */
static gpuir__sieve *gpuir__sieve_kept(gpuir__segment *seg, const gpuir__where *w) {
  gpuir__sieve *found = NULL;
  unsigned i;
  gpuir__lock(&seg->log.mutex);
  for (i = 0; i < GPUIR__KEPT_SIEVES && !found; i++) {
    gpuir__sieve *s = seg->sieves[i];
    if (s && s->len == w->len && !memcmp(s->text, w->text, w->len)) found = s;
  }
  if (found) (void)__atomic_add_fetch(&found->refs, 1, __ATOMIC_RELAXED);
  gpuir__unlock(&seg->log.mutex);
  return found;
}

/* Lets a segment keep a sieve, if all that are kept take no more than an eighth of the file. */
static void gpuir__sieve_keep(gpuir__segment *seg, gpuir__sieve *s) {
  gpuir__sieve **place, *old;
  if ((uint64_t)s->size * GPUIR__KEPT_SIEVES > seg->size / 8) return;
  (void)__atomic_add_fetch(&s->refs, 1, __ATOMIC_RELAXED);
  gpuir__lock(&seg->log.mutex);
  place = &seg->sieves[seg->next_sieve++ % GPUIR__KEPT_SIEVES];
  old = *place;
  *place = s;
  gpuir__unlock(&seg->log.mutex);
  gpuir__sieve_close(old);
}

/* Opens the sieve of a where in a segment: one that is kept, or one that is made. NULL: no memory. */
static gpuir__sieve *gpuir__sieve_open(gpuir__segment *seg, const gpuir__where *w) {
  gpuir__sieve *s = gpuir__sieve_kept(seg, w);
  if (s) return s;
  s = gpuir__sieve_make(seg, w);
  if (s) gpuir__sieve_keep(seg, s);
  return s;
}

/* Returns the number of the first predicate that a document does not satisfy; the number of predicates if the document
 * passes. */
static unsigned gpuir__sieve_failed(gpuir__sieve *s, uint32_t docid) {
  const unsigned at = docid % GPUIR__BLOCK;
  uint64_t bits[2], read = 0;
  unsigned i;
  (void)gpuir__sieve_get(s, docid / GPUIR__BLOCK, bits);
  if (!(bits[at / 64] >> at % 64 & 1)) return s->n;
  for (i = 0; i < s->n; i++) {
    gpuir__sieve_predicate(s, &s->tests[i], docid / GPUIR__BLOCK, bits, &read);
    if (!(bits[at / 64] >> at % 64 & 1)) break;
  }
  return i;
}
#endif
