
/* ========
 * [50-sieve]  where: which documents of a segment pass
 *
 * In a segment each predicate becomes ranges of kept numbers or ranks. Blocks of 128 documents are tested: where their
 * extremes lie in one range, or in none, no value is read. What does not pass is treated as what was deleted: so every
 * evaluator, count and phrase leaves it out at the place where it leaves out deleted documents, and nothing else of a
 * search changes.
 *
 * Uses      [18-codecs], [34-fields], [35-keys], [37-layout], [38-notes], [40-columns],
 *           [42-snapshot], [49-where].
 * Start at  gpuir__sieve_open, gpuir__sieve_fill, gpuir__sieve_kept, gpuir__sieve_failed.
 * Tests     tests/unit/50_sieve.c
 * ======*/

#ifndef GPUIR_NO_COLUMNS
/* Kept numbers, or ranks; both ends count. */
typedef struct gpuir__range {
  uint64_t low, high;
} gpuir__range;

/* A where in a segment. */
typedef struct gpuir__sieve {
  const gpuir__segment *seg;
  const gpuir__where *where;
  uint32_t first[GPUIR__WHERE_PREDICATES], n[GPUIR__WHERE_PREDICATES]; /* [predicate] its ranges */
  gpuir__range ranges[GPUIR__WHERE_ITEMS]; /* of a predicate ascending and apart */
  uint64_t looked; /* at documents and ranks, since a fill began */
} gpuir__sieve;

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

/* Finds what the predicates are in a segment that has the where's fields. */
static void gpuir__sieve_open(gpuir__sieve *s, const gpuir__segment *seg, const gpuir__where *w) {
  uint32_t i, j, at = 0;
  s->seg = seg;
  s->where = w;
  for (i = 0; i < w->n; i++) {
    const gpuir__predicate *p = &w->predicates[i];
    const gpuir__column *row = &seg->columns.rows[p->column];
    const int text = gpuir__is_text_column((int)row->kind);
    const gpuir__key_texts t = gpuir__column_texts(seg, p->column);
    s->first[i] = at;
    s->n[i] = 0;
    for (j = 0; j < p->n; j++) {
      const gpuir__where_item *x = &w->items[p->first + j];
      gpuir__range range;
      if (text ? gpuir__item_ranks(&t, w, x, &range) : gpuir__item_numbers(row, x, &range))
        gpuir__ranges_put(s->ranges + at, s->n[i]++, range);
    }
    s->n[i] = gpuir__ranges_join(s->ranges + at, s->n[i]);
    at += s->n[i];
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

/* Sets a bit for each document of a block of which a predicate holds; those behind the last one mean nothing. */
static void gpuir__sieve_predicate(gpuir__sieve *s, unsigned predicate, uint64_t block, uint64_t bits[2]) {
  const gpuir__index_columns *x = &s->seg->columns;
  const gpuir__predicate *p = &s->where->predicates[predicate];
  const gpuir__range *ranges = s->ranges + s->first[predicate];
  const uint64_t at = p->column * x->blocks + block;
  const uint32_t n = s->n[predicate];
  const uint64_t flip = p->negated ? UINT64_MAX : 0;
  int known = 0;
  gpuir__column_block b;
  bits[0] = bits[1] = 0;
  if (n) known = gpuir__ranges_decide(ranges, n, x->least[at], x->most[at]);
  if (known) {
    gpuir__column_open(s->seg, p->column, block, &b);
    if (b.none) known = 0;
    else if (known == 1 && !b.has) bits[0] = bits[1] = UINT64_MAX;
    else if (b.ends) s->looked += gpuir__sieve_several(&b, ranges, n, bits);
    else gpuir__sieve_single(&b, ranges, n, bits);
    if (known && b.has) {
      bits[0] &= gpuir__load64(b.has);
      bits[1] &= gpuir__load64(b.has + 8);
    }
  }
  bits[0] ^= flip;
  bits[1] ^= flip;
}

/* Sets a bit for each document of a block that passes. */
static void gpuir__sieve_block(gpuir__sieve *s, uint64_t block, uint64_t pass[2]) {
  const gpuir__where *w = s->where;
  uint64_t bits[2];
  unsigned i = 0;
  pass[0] = pass[1] = 0;
  while (i < w->n) {
    const unsigned group = w->predicates[i].group;
    uint64_t all[2] = {UINT64_MAX, UINT64_MAX};
    for (; i < w->n && w->predicates[i].group == group; i++) {
      if (!(all[0] | all[1])) continue;
      gpuir__sieve_predicate(s, i, block, bits);
      all[0] &= bits[0];
      all[1] &= bits[1];
    }
    pass[0] |= all[0];
    pass[1] |= all[1];
  }
}

#define GPUIR__SIEVE_LOOKS (1u << 19) /* at documents and ranks, between two looks at the deadline: some 0.2 ms */

/* Adds to a set of deleted documents those of the blocks [from, to) that do not pass. Returns where it stopped, before
 * `to` if the caller should look at the deadline: a block may have millions of ranks, in a forged file without a
 * byte. */
static uint64_t gpuir__sieve_fill(gpuir__sieve *s, uint64_t from, uint64_t to, gpuir__deleted *set) {
  uint64_t pass[2];
  for (s->looked = 0; from < to && s->looked < GPUIR__SIEVE_LOOKS; from++) {
    gpuir__sieve_block(s, from, pass);
    set->bits[2 * from] |= ~pass[0];
    if (2 * from + 1 < set->words) set->bits[2 * from + 1] |= ~pass[1];
    s->looked += GPUIR__BLOCK;
  }
  return from;
}

/* ---- sieves that are kept: 16 a segment, of which the oldest goes */

/* Makes an empty set of documents of a segment. NULL: no memory. */
static gpuir__deleted *gpuir__sieve_set(const gpuir__segment *seg) {
  const uint64_t words = seg->stat.documents / 64 + 1;
  gpuir__deleted *set = (gpuir__deleted *)gpuir__alloc_zero(&seg->a, sizeof *set + (size_t)words * 8);
  if (!set) return NULL;
  set->a = seg->a;
  set->refs = 1;
  set->words = words;
  return set;
}

/* Returns what fails a where in a segment, if that is kept, to be closed. */
static gpuir__deleted *gpuir__sieve_kept(gpuir__segment *seg, const gpuir__where *w) {
  gpuir__deleted *found = NULL;
  unsigned i;
  gpuir__lock(&seg->log.mutex);
  for (i = 0; i < GPUIR__KEPT_SIEVES && !found; i++) {
    const gpuir__kept_sieve *kept = &seg->sieves[i];
    if (kept->text && kept->size == w->len + 1 && !memcmp(kept->text, w->text, w->len))
      found = gpuir__deleted_retain(kept->fails);
  }
  gpuir__unlock(&seg->log.mutex);
  return found;
}

/* Keeps what fails a where in a segment, if all that are kept take no more than an eighth of the file. */
static void gpuir__sieve_keep(gpuir__segment *seg, const gpuir__where *w, gpuir__deleted *fails) {
  gpuir__kept_sieve *place, old;
  size_t size;
  char *text;
  if (fails->words * 8 * GPUIR__KEPT_SIEVES > seg->size / 8) return;
  text = gpuir__concat(&seg->a, w->text, w->len, "", 0, &size);
  if (!text) return;
  gpuir__lock(&seg->log.mutex);
  place = &seg->sieves[seg->next_sieve++ % GPUIR__KEPT_SIEVES];
  old = *place;
  place->text = text;
  place->size = size;
  place->fails = gpuir__deleted_retain(fails);
  gpuir__unlock(&seg->log.mutex);
  gpuir__free(&seg->a, old.text, old.size);
  gpuir__deleted_close(old.fails);
}

/* Returns the first predicate that a document does not satisfy, of the first group; NULL if the document passes. */
static const gpuir__predicate *gpuir__sieve_failed(gpuir__sieve *s, uint32_t docid) {
  const gpuir__where *w = s->where;
  const unsigned at = docid % GPUIR__BLOCK;
  uint64_t bits[2];
  unsigned i;
  gpuir__sieve_block(s, docid / GPUIR__BLOCK, bits);
  if (bits[at / 64] >> at % 64 & 1) return NULL;
  for (i = 0; i < w->n; i++) {
    gpuir__sieve_predicate(s, i, docid / GPUIR__BLOCK, bits);
    if (!(bits[at / 64] >> at % 64 & 1)) return &w->predicates[i];
  }
  return NULL;
}
#endif
