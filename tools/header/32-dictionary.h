
/* ========
 * [32-dictionary]  terms and their records in blocks; the search tree over the blocks
 *
 * The sorted terms are cut into blocks of GPUIR__DICT_BLOCK. A block holds their records and, front-coded, their bytes:
 *
 *   head (1)  several (2)  second (2)  widths (4 or 6)  bases  codecs  columns  lengths  firsts  first term  rests
 *
 *   head         bytes before the lengths
 *   several      a bit a term, which says with the next one what list the term has:
 *   second       several 0, second 0   one posting, its tf is 1
 *                several 0, second 1   one posting, its tf is 2 or more
 *                several 1, second 0   a short list
 *                several 1, second 1   a long list
 *   widths       bits of the columns' numbers, in their order: none of docIDs, 6 of tf, 3 of df, 5 and 5 of a stream's
 *                bytes, 6 of a long list's df; then bytes of the bases: 2 bits of docIDs', 2 of frequencies'; 1 bit:
 *                codecs are mixed; 2 zeros. With positions also 6 and 6 bits of the last two columns, 3 of the base's
 *                bytes, and a zero
 *   bases        where the first short list's docIDs and frequencies begin; the number of the first long list (a
 *                byte, if there is one); where the first term's positions begin: all relative to the block's page
 *   codecs       none if no term has several postings; one byte for all that do, or mixed, one for each: the codec of
 *                docIDs in the low half, that of frequencies in the high half
 *   columns      numbers, side by side as packed ones are, the last byte filled with zeros: the docID of each single
 *                posting, the tf - 2 of each that is not 1; of each short list df - 2, bytes of docIDs - 1 and bytes of
 *                frequencies - 1; of each long list df - 128; with positions the bytes that those of each list take
 *                that is not long, and then of each that is long
 *   lengths      a byte of the first term: its length; of each further one: in the low half how many bytes it shares
 *                with the term before, in the high half how many follow the first byte that is its own; 15 stands for
 *                the next byte before its rest (for both halves, for the shared ones first)
 *   firsts       of each further term the first byte that is its own
 *   rests        of each further term the bytes behind that one
 *
 * A docID takes as many bits as the last document's, every other column as many as its greatest number. Short lists
 * follow one another in term order, so that the bytes of a list's streams tell where the next one begins; long lists
 * are numbered in that order. A page is GPUIR__DICT_PAGE blocks: where they begin, and the bases.
 *
 * A block is found in a tree whose nodes are 16 numbers: the first says how many bytes all terms of the node's range
 * have in common (0 in the first and the last node of a level, whose ranges are open), the others are the 8 bytes
 * behind those of the first terms of its children, but of its first child, in big-endian order, padded with zeros;
 * absent children have the greatest number. Children of the lowest nodes are blocks; levels stand one behind the
 * other, the root first. Where a child's number is that of the term that is searched, the first terms themselves
 * decide. One block needs no tree. (Front coding: Witten, Moffat and Bell, "Managing Gigabytes", section 4.1.)
 *
 * Uses      [17-vectors], [24-postings] (the record).
 * Start at  gpuir__dict_find (from bytes to the number of a term), gpuir__dict_record, gpuir__dict_encode.
 * Tests     tests/unit/32_dictionary.c
 * ======*/

#define GPUIR__DICT_BLOCK 16u /* terms of a block */
#define GPUIR__DICT_PAGE 16u /* blocks of a page: at most 65385 bytes before the last one */
#define GPUIR__DICT_FAN 16u /* children of a node, and its numbers */
#define GPUIR__DICT_LEVELS 7u /* of the tree at most: 2^28 blocks */
#define GPUIR__DICT_POSITIONS_BITS 48 /* of the bytes that a list's positions take */
/* The most bytes that stand before the lengths: of 16 single postings, whose columns are 32, 32 and 48 bits wide. */
#define GPUIR__DICT_HEAD (1 + 2 + 2 + 6 + 3 + 3 + 7 + GPUIR__DICT_BLOCK * (4 + 4 + 6))
/* The most bytes of a block. What is shared takes an extra length, and more than 15 bytes less of a term. */
#define GPUIR__DICT_MOST (GPUIR__DICT_HEAD + GPUIR__DICT_BLOCK * (1 + 1 + GPUIR_MAX_TERM))

/* Where the dictionary's next block begins, and what its terms have next: what the blocks of a page count from. */
typedef struct gpuir__dict_page {
  uint64_t start; /* bytes of blocks before */
  uint64_t docs, freqs; /* bytes of short lists before */
  uint64_t longs; /* long lists before */
  uint64_t positions; /* bytes of positions before */
} gpuir__dict_page;

/* What all blocks of a dictionary have in common. */
typedef struct gpuir__dict_form {
  unsigned docid_bits;
  int positions; /* lists have positions */
} gpuir__dict_form;

/* A dictionary: its sections, and what follows from the number of terms. */
typedef struct gpuir__dict {
  const uint8_t *bytes; /* the blocks */
  const gpuir__dict_page *pages;
  const uint16_t *starts; /* [block] relative to its page's */
  const uint64_t *keys; /* the tree */
  uint64_t size; /* of the blocks, in bytes */
  uint64_t terms;
  gpuir__dict_form form;
  int simd; /* level at which terms are searched */
  unsigned levels;
  uint64_t level[GPUIR__DICT_LEVELS + 1]; /* nodes of each level, the root's first; behind them, blocks */
} gpuir__dict;

/* Returns how many blocks `terms` terms take. */
static inline uint64_t gpuir__dict_blocks(uint64_t terms) {
  return (terms + GPUIR__DICT_BLOCK - 1) / GPUIR__DICT_BLOCK;
}

/* Returns how many nodes the tree has. */
static inline uint64_t gpuir__dict_nodes(uint64_t terms) {
  uint64_t n = gpuir__dict_blocks(terms), sum = 0;
  while (n > 1) sum += n = (n + GPUIR__DICT_FAN - 1) / GPUIR__DICT_FAN;
  return sum;
}

/* Returns the form of an index's dictionary. */
static inline gpuir__dict_form gpuir__dict_form_of(uint64_t documents, int positions) {
  gpuir__dict_form form;
  form.docid_bits = documents ? gpuir__width32((uint32_t)(documents - 1)) : 0;
  form.positions = positions;
  return form;
}

/* Fills in what follows from the number of terms. */
static void gpuir__dict_shape(gpuir__dict *d, uint64_t terms) {
  uint64_t n = gpuir__dict_blocks(terms);
  unsigned i;
  d->terms = terms;
  for (d->levels = 0; n > 1; d->levels++) n = (n + GPUIR__DICT_FAN - 1) / GPUIR__DICT_FAN;
  n = gpuir__dict_blocks(terms);
  for (i = d->levels + 1; i-- > 0; n = (n + GPUIR__DICT_FAN - 1) / GPUIR__DICT_FAN) d->level[i] = n;
}

/* ---- a block, opened */

/* The columns. GPUIR__COL_BITS: numbers whose widths the header has. */
enum {
  GPUIR__COL_DOCID,
  GPUIR__COL_TF,
  GPUIR__COL_DF,
  GPUIR__COL_DOCS,
  GPUIR__COL_FREQS,
  GPUIR__COL_LONG,
  GPUIR__COL_POSITIONS,
  GPUIR__COL_LONG_POSITIONS,
  GPUIR__COLUMNS
};

typedef struct gpuir__dict_block {
  unsigned n; /* terms */
  const uint8_t *start; /* the block's bytes */
  const uint8_t *lengths; /* [n] */
  const uint8_t *firsts; /* [n] the first byte of term i that is its own, i > 0 */
  const uint8_t *text; /* the first term, and rests */
  size_t limit; /* bytes from text to the section's end */
  const gpuir__dict_page *page;
} gpuir__dict_block;

/* The records of a block, opened. */
typedef struct gpuir__dict_records {
  uint32_t several, second; /* a bit a term */
  uint32_t mixed; /* not 0: a codec byte for each list */
  uint32_t width[GPUIR__COLUMNS];
  uint32_t column[GPUIR__COLUMNS + 1]; /* the bit of columns at which each begins, and the end */
  const uint8_t *codecs, *columns;
  gpuir__dict_page base;
} gpuir__dict_records;

/* Returns where a block (there are so many) begins, which is prefetched, and the bytes left from there; NULL if it does
 * not lie in its section. */
GPUIR__INLINE const uint8_t *gpuir__dict_place(const gpuir__dict *d, uint64_t block, uint64_t *left) {
  const gpuir__dict_page *page = &d->pages[block / GPUIR__DICT_PAGE];
  const uint32_t at = d->starts[block];
  const uint8_t *start;
  if (page->start > d->size || at >= d->size - page->start) return NULL;
  start = d->bytes + page->start + at;
  *left = d->size - page->start - at;
  __builtin_prefetch(start);
  __builtin_prefetch(start + 64); /* a block is 150 bytes or so */
  __builtin_prefetch(start + 128);
  return start;
}

/* Opens a block (there are so many). Returns 0 if it does not lie in its section. */
static inline int gpuir__dict_open(const gpuir__dict *d, uint64_t block, gpuir__dict_block *b) {
  uint32_t head;
  uint64_t left;
  b->start = gpuir__dict_place(d, block, &left);
  if (!b->start) return 0;
  b->n = (unsigned)gpuir__min64(d->terms - block * GPUIR__DICT_BLOCK, GPUIR__DICT_BLOCK);
  b->page = &d->pages[block / GPUIR__DICT_PAGE];
  head = b->start[0];
  b->lengths = b->start + head;
  head += b->n;
  b->firsts = b->start + head - 1;
  head += b->n - 1;
  b->text = b->start + head;
  if (head > left) return 0;
  b->limit = (size_t)(left - head);
  return b->lengths[0] <= b->limit;
}

/* Counts the ones in each of four 16-bit masks, which stay in their place. */
static inline uint64_t gpuir__dict_counts(uint64_t x) {
  x -= x >> 1 & 0x5555555555555555u;
  x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
  x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
  return (x + (x >> 8)) & 0x00ff00ff00ff00ffu;
}

/* How many of some terms are of a kind. */
typedef struct gpuir__dict_kinds {
  uint32_t ones, tfs, shorts, longs; /* one posting; one whose tf is not 1; short lists; long ones */
} gpuir__dict_kinds;

/* Counts the terms of a mask by their kinds. */
static inline gpuir__dict_kinds gpuir__dict_count(const gpuir__dict_records *r, uint32_t of) {
  const uint64_t ones = of & ~r->several, several = of & r->several, second = r->second;
  const uint64_t lists = (several & second) << 16 | (several & ~second);
  const uint64_t n = gpuir__dict_counts(lists << 32 | (ones & second) << 16 | ones);
  gpuir__dict_kinds k;
  k.ones = n & 255;
  k.tfs = n >> 16 & 255;
  k.shorts = n >> 32 & 255;
  k.longs = (uint32_t)(n >> 48);
  return k;
}

/* Takes the next number of w bits out of a word. */
static inline uint32_t gpuir__dict_take(uint64_t *word, unsigned w) {
  const uint32_t v = (uint32_t)*word & gpuir__low_bits(w);
  *word >>= w;
  return v;
}

/* Takes the next number of up to 7 bytes. */
static inline uint64_t gpuir__dict_base(const uint8_t **p, uint32_t bytes) {
  const uint64_t v = gpuir__load64(*p) & gpuir__low_bits64(8 * bytes);
  *p += bytes;
  return v;
}

/* Fills in where the columns begin. */
static inline void gpuir__dict_layout(gpuir__dict_records *r, const gpuir__dict_kinds *n) {
  r->column[0] = 0;
  r->column[1] = n->ones * r->width[0];
  r->column[2] = r->column[1] + n->tfs * r->width[1];
  r->column[3] = r->column[2] + n->shorts * r->width[2];
  r->column[4] = r->column[3] + n->shorts * r->width[3];
  r->column[5] = r->column[4] + n->shorts * r->width[4];
  r->column[6] = r->column[5] + n->longs * r->width[5];
  r->column[7] = r->column[6] + (n->ones + n->shorts) * r->width[6];
  r->column[8] = r->column[7] + n->longs * r->width[7];
}

/* Opens the records of an open block. Returns 0 if they end behind its head, or have widths that are none. */
static inline int gpuir__dict_open_records(const gpuir__dict *d, const gpuir__dict_block *b, gpuir__dict_records *r) {
  const uint8_t *p = b->start + 1;
  uint64_t word = gpuir__load64(p);
  uint32_t i, docs, freqs, positions;
  gpuir__dict_kinds n;
  r->several = (uint32_t)word & gpuir__low_bits(b->n);
  r->second = (uint32_t)word >> 16 & gpuir__low_bits(b->n);
  word >>= 32;
  p += 8;
  r->width[GPUIR__COL_DOCID] = d->form.docid_bits;
  r->width[GPUIR__COL_TF] = gpuir__dict_take(&word, 6);
  r->width[GPUIR__COL_DF] = gpuir__dict_take(&word, 3);
  r->width[GPUIR__COL_DOCS] = gpuir__dict_take(&word, 5);
  r->width[GPUIR__COL_FREQS] = gpuir__dict_take(&word, 5);
  r->width[GPUIR__COL_LONG] = gpuir__dict_take(&word, 6);
  docs = gpuir__dict_take(&word, 2);
  freqs = gpuir__dict_take(&word, 2);
  r->mixed = word & 1;
  word = d->form.positions ? gpuir__load32(p) : 0;
  p += d->form.positions ? 2 : 0;
  r->width[GPUIR__COL_POSITIONS] = gpuir__dict_take(&word, 6);
  r->width[GPUIR__COL_LONG_POSITIONS] = gpuir__dict_take(&word, 6);
  positions = gpuir__dict_take(&word, 3);
  n = gpuir__dict_count(r, gpuir__low_bits(b->n));
  gpuir__dict_layout(r, &n);
  r->base.docs = b->page->docs + gpuir__dict_base(&p, docs);
  r->base.freqs = b->page->freqs + gpuir__dict_base(&p, freqs);
  r->base.longs = b->page->longs + gpuir__dict_base(&p, n.longs != 0);
  r->base.positions = b->page->positions + gpuir__dict_base(&p, positions);
  i = n.shorts + n.longs;
  r->codecs = p;
  r->columns = p + (r->mixed ? i : i != 0);
  return r->columns + (r->column[GPUIR__COLUMNS] + 7) / 8 <= b->lengths && r->width[GPUIR__COL_TF] <= 32 &&
      r->width[GPUIR__COL_LONG] <= 32 && r->width[GPUIR__COL_DOCS] <= 16 && r->width[GPUIR__COL_FREQS] <= 16 &&
      r->width[GPUIR__COL_POSITIONS] <= GPUIR__DICT_POSITIONS_BITS &&
      r->width[GPUIR__COL_LONG_POSITIONS] <= GPUIR__DICT_POSITIONS_BITS;
}

/* Returns number i of a column. */
static inline uint64_t gpuir__dict_number(const gpuir__dict_records *of, unsigned column, uint32_t i) {
  const uint32_t bit = of->column[column] + i * of->width[column];
  return gpuir__load64(of->columns + bit / 8) >> bit % 8 & gpuir__low_bits64(of->width[column]);
}

/* Returns the sum of the first n numbers of a column. */
static inline uint64_t gpuir__dict_sum(const gpuir__dict_records *of, unsigned column, uint32_t n) {
  uint64_t sum = 0;
  uint32_t i;
  for (i = 0; i < n; i++) sum += gpuir__dict_number(of, column, i);
  return sum;
}

/* Fills in the record of the block's term with this bit, which has several postings; n: the terms before it. */
static inline void gpuir__dict_pick_list(const gpuir__dict_records *of, uint32_t bit, const gpuir__dict_kinds *n,
    gpuir__record *r) {
  const uint8_t codecs = of->codecs[of->mixed ? n->shorts + n->longs : 0];
  r->codec = codecs & 15;
  r->freq_codec = codecs >> 4;
  if (of->second & bit) {
    const uint64_t df = gpuir__dict_number(of, GPUIR__COL_LONG, n->longs) + GPUIR__SHORT_MAX + 1;
    r->df = df <= UINT32_MAX ? (uint32_t)df : 0;
    r->docs = of->base.longs + n->longs;
  } else {
    r->df = (uint32_t)gpuir__dict_number(of, GPUIR__COL_DF, n->shorts) + 2;
    if (r->df > GPUIR__SHORT_MAX) r->df = 0;
    r->docs = of->base.docs + gpuir__dict_sum(of, GPUIR__COL_DOCS, n->shorts) + n->shorts;
    r->freqs = of->base.freqs + gpuir__dict_sum(of, GPUIR__COL_FREQS, n->shorts) + n->shorts;
    r->docs_len = (uint32_t)gpuir__dict_number(of, GPUIR__COL_DOCS, n->shorts) + 1;
    r->freqs_len = (uint32_t)gpuir__dict_number(of, GPUIR__COL_FREQS, n->shorts) + 1;
  }
}

/* Fills *r with the record of term i of the block; df is 0 where the file is damaged. */
static inline void gpuir__dict_pick(const gpuir__dict *d, const gpuir__dict_records *of, unsigned i, gpuir__record *r) {
  const uint32_t bit = 1u << i;
  const gpuir__dict_kinds n = gpuir__dict_count(of, bit - 1);
  memset(r, 0, sizeof *r);
  if (of->several & bit) {
    gpuir__dict_pick_list(of, bit, &n, r);
  } else {
    r->df = 1;
    r->docs = gpuir__dict_number(of, GPUIR__COL_DOCID, n.ones);
    r->freqs = of->second & bit ? gpuir__dict_number(of, GPUIR__COL_TF, n.tfs) + 2 : 1;
  }
  if (!d->form.positions) return;
  r->positions = of->base.positions + gpuir__dict_sum(of, GPUIR__COL_POSITIONS, n.ones + n.shorts) +
      gpuir__dict_sum(of, GPUIR__COL_LONG_POSITIONS, n.longs);
  r->positions_len = of->several & of->second & bit ? gpuir__dict_number(of, GPUIR__COL_LONG_POSITIONS, n.longs)
                                                    : gpuir__dict_number(of, GPUIR__COL_POSITIONS, n.ones + n.shorts);
}

/* Fills *r with the record of term i of an open block; df is 0 where the file is damaged. */
static void gpuir__dict_record(const gpuir__dict *d, const gpuir__dict_block *b, unsigned i, gpuir__record *r) {
  gpuir__dict_records of;
  if (gpuir__dict_open_records(d, b, &of)) gpuir__dict_pick(d, &of, i, r);
  else memset(r, 0, sizeof *r);
}

/* ---- a block's terms */

/* Returns how many bytes two strings have in common at their start, at most `most`. Reads up to 8 bytes behind. */
static inline size_t gpuir__common(const uint8_t *a, const uint8_t *b, size_t most) {
  size_t i = 0;
  do {
    const uint64_t x = gpuir__load64(a + i) ^ gpuir__load64(b + i);
    if (x) {
      i += gpuir__ctz64(x) / 8;
      break;
    }
    i += 8;
  } while (i < most);
  return i < most ? i : most;
}

/* Compares as memcmp does; of a string and its prefix, the prefix is less. */
static int gpuir__compare_bytes(const void *a, size_t an, const void *b, size_t bn) {
  int c = memcmp(a, b, an < bn ? an : bn);
  return c ? c : an < bn ? -1 : an > bn;
}

/* A further term of a block, where its bytes are. */
typedef struct gpuir__dict_step {
  size_t shared; /* bytes of the term before */
  size_t at; /* in the text: of the bytes behind the first one that is its own */
  size_t rest; /* how many those are; of the first term, all its bytes */
} gpuir__dict_step;

/* Returns how many bytes a term shares with the one before if its length byte says 15: then `extra`, a byte before the
 * rest, has the number. A number below 15 is damage, and counts as 15. */
static inline uint8_t gpuir__dict_shared(uint8_t extra) { return extra < 15 ? 15 : extra; }

/* Begins at a block's first term. */
static inline gpuir__dict_step gpuir__dict_first(const gpuir__dict_block *b) {
  gpuir__dict_step s = {0, 0, 0};
  s.rest = b->lengths[0];
  return s;
}

/* Goes to term i > 0 from the one before; 0 if its bytes lie outside the section. */
static inline int gpuir__dict_next(const gpuir__dict_block *b, unsigned i, gpuir__dict_step *s) {
  const unsigned x = b->lengths[i];
  s->at += s->rest;
  s->shared = x & 15;
  s->rest = x >> 4;
  if (GPUIR__UNLIKELY(s->shared == 15 || s->rest == 15)) {
    if (b->limit - s->at < (size_t)(s->shared == 15) + (s->rest == 15)) return 0;
    if (s->shared == 15) s->shared = gpuir__dict_shared(b->text[s->at++]);
    if (s->rest == 15) s->rest = b->text[s->at++];
  }
  return s->rest <= b->limit - s->at;
}

/* Makes term[0..len), the term before, the one at a step, term i > 0; returns its length, or 0 if it has none. */
static inline size_t gpuir__dict_spell(const gpuir__dict_block *b, unsigned i, const gpuir__dict_step *s,
    uint8_t term[GPUIR_MAX_TERM + 1], size_t len) {
  uint8_t *p = term + s->shared;
  if (s->shared > len || s->rest >= GPUIR_MAX_TERM - s->shared || s->shared >= GPUIR_MAX_TERM) return 0;
  *p++ = b->firsts[i];
  if (s->rest <= 8 && s->shared + 8 < GPUIR_MAX_TERM) gpuir__store64(p, gpuir__load64(b->text + s->at));
  else memcpy(p, b->text + s->at, s->rest);
  return s->shared + 1 + s->rest;
}

/* Copies term i of the block, and a NUL behind it, to term[]; returns its length, or 0 where the file is damaged. */
static size_t gpuir__dict_term(const gpuir__dict_block *b, unsigned i, uint8_t term[GPUIR_MAX_TERM + 1]) {
  gpuir__dict_step s = gpuir__dict_first(b);
  size_t len = s.rest;
  unsigned k;
  memcpy(term, b->text, len);
  for (k = 1; k <= i && len; k++) len = gpuir__dict_next(b, k, &s) ? gpuir__dict_spell(b, k, &s, term, len) : 0;
  term[len] = 0;
  return len;
}

/* A string that is searched, q[0..n), on its way through a block. Eight zeros stand behind it. */
typedef struct gpuir__dict_seeker {
  const uint8_t *q;
  size_t n;
  uint64_t start[2]; /* its first 16 bytes, padded with zeros, in big-endian order */
  size_t same; /* bytes that it has in common with the term before, which is less */
  int found; /* the term at which the search ended is q */
} gpuir__dict_seeker;

/* Goes by a term that has `same` bytes in common with q, and then `rest` others at p. Returns 1 if it is not less than
 * q, where the search ends. */
static inline int gpuir__dict_ends(gpuir__dict_seeker *x, const uint8_t *p, size_t rest) {
  const size_t left = x->n - x->same;
  const size_t k = gpuir__common(x->q + x->same, p, left < rest ? left : rest);
  x->found = (k == rest) & (k == left);
  x->same += k;
  return (k == left) | ((k < rest) & (x->q[x->same] < p[k]));
}

/* Returns the first of the block's terms that is not less than q, or their number if all are. A term that shares more
 * bytes with the one before than that one has in common with q is as much less than q; one that shares less is
 * greater. */
static unsigned gpuir__dict_scan(const gpuir__dict_block *b, gpuir__dict_seeker *x) {
  gpuir__dict_step s = gpuir__dict_first(b);
  unsigned i;
  if (gpuir__dict_ends(x, b->text, s.rest)) return 0;
  for (i = 1; i < b->n; i++) {
    if (!gpuir__dict_next(b, i, &s)) break;
    if (s.shared > x->same || (s.shared == x->same && b->firsts[i] < x->q[x->same])) continue;
    if (s.shared < x->same || b->firsts[i] > x->q[x->same]) break;
    x->same++;
    if (gpuir__dict_ends(x, b->text + s.at, s.rest)) break;
  }
  return i;
}

#if GPUIR__X86
/* Where the rests of a block's terms stand. */
typedef struct gpuir__dict_rests {
  const uint8_t *text; /* behind the first term */
  uint8_t at[GPUIR__DICT_BLOCK]; /* from there, as if none had more than 15 bytes */
  uint32_t longer; /* a bit for each further term whose rest has 15 bytes or more */
} gpuir__dict_rests;

/* Computes the places at once, as sums of what the terms before take, eight in a word. */
static inline void gpuir__dict_place_rests(const gpuir__dict_block *b, gpuir__dict_rests *r) {
  const uint64_t ones = ~(uint64_t)0 / 255;
  uint64_t before = 0, further = ~(uint64_t)255;
  unsigned i;
  for (i = 0; i < GPUIR__DICT_BLOCK; i += 8, further = ~(uint64_t)0) {
    const uint64_t x = gpuir__load64(b->lengths + i), shared = x & 15 * ones, rest = x >> 4 & 15 * ones;
    const uint64_t extra = ((shared + ones) >> 4 & ones) + ((rest + ones) >> 4 & ones);
    const uint64_t takes = (rest + extra) & further;
    gpuir__store64(r->at + i, (takes << 8) * ones + before * ones + extra);
    before += takes * ones >> 56;
  }
}

/* Returns the rest of term i, behind what the rests before have more than 15 bytes. */
static inline const uint8_t *gpuir__dict_rest(const gpuir__dict_rests *r, unsigned i) {
  uint32_t longer = r->longer & gpuir__low_bits(i);
  const uint8_t *text = r->text;
  for (; GPUIR__UNLIKELY(longer); longer &= longer - 1) text += text[r->at[gpuir__ctz32(longer)] - 1] - 15;
  return text + r->at[i];
}

/* Goes by term i > 0, with which q has its first byte and those before in common, as gpuir__dict_ends does. */
static inline int gpuir__dict_ends_at(const gpuir__dict_block *b, const gpuir__dict_rests *r, unsigned i,
    gpuir__dict_seeker *x) {
  const uint8_t *rest = gpuir__dict_rest(r, i);
  x->same++;
  return gpuir__dict_ends(x, rest, r->longer >> i & 1 ? rest[-1] : b->lengths[i] >> 4);
}

/* Returns a bit for each of the terms at which the scan stops if q has `same` bytes in common with the one before. */
GPUIR__AVX2 GPUIR__INLINE uint32_t gpuir__dict_stops(__m128i twice, size_t same) {
  return (uint32_t)_mm_movemask_epi8(_mm_cmpgt_epi8(_mm_set1_epi8((char)(2 * (same < 63 ? same : 63))), twice));
}

/* Does what gpuir__dict_scan does, with all terms of the block compared at once, each by its first byte and that of q
 * at its place. Terms where these are equal are the only ones with which q may have more in common than with one
 * before: they are known, and fetched, before it is known whether the scan comes by. */
GPUIR__AVX2 static unsigned gpuir__dict_scan_avx2(const gpuir__dict_block *b, gpuir__dict_seeker *x) {
  const __m128i low = _mm_set1_epi8(15), lengths = gpuir__sse_load(b->lengths);
  const __m128i firsts = gpuir__sse_load(b->firsts);
  const __m128i shared = _mm_and_si128(lengths, low);
  const __m128i q = _mm_shuffle_epi8(gpuir__sse_load(x->q), shared);
  const __m128i twice = /* what a term shares, and 1 less if its first byte is not less */
      _mm_add_epi8(_mm_add_epi8(shared, shared), _mm_cmpeq_epi8(_mm_max_epu8(firsts, q), firsts));
  uint32_t left = gpuir__low_bits(b->n) & ~1u, stop;
  const uint32_t far = left & (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(shared, low));
  uint32_t maybe = left & ~far & (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(firsts, q));
  gpuir__dict_rests r;
  r.longer = left & (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_or_si128(lengths, low), _mm_set1_epi8(-1)));
  if (b->limit < 3 * 256 + 240 * gpuir__popcount64(r.longer)) return gpuir__dict_scan(b, x);
  r.text = b->text + b->lengths[0];
  gpuir__dict_place_rests(b, &r);
  if (gpuir__dict_ends(x, b->text, b->lengths[0])) return 0;
  for (; maybe; maybe &= maybe - 1) {
    const unsigned i = gpuir__ctz32(maybe), shares = b->lengths[i] & 15;
    if (shares != x->same) continue;
    if (GPUIR__UNLIKELY(gpuir__ctz32(left & gpuir__dict_stops(twice, shares)) != i)) break; /* damaged */
    if (gpuir__dict_ends_at(b, &r, i, x)) return i;
    left &= ~(uint32_t)1 << i;
  }
  if (maybe || (far && x->same >= 15)) {
    x->same = 0;
    return gpuir__dict_scan(b, x);
  }
  stop = left & gpuir__dict_stops(twice, x->same);
  return stop ? gpuir__ctz32(stop) : b->n;
}
#endif

/* ---- the search tree */

/* Returns the first term of a block (there are so many); *len is 0 where the file is damaged. */
static const uint8_t *gpuir__dict_head(const gpuir__dict *d, uint64_t block, size_t *len) {
  gpuir__dict_block b;
  *len = 0;
  if (!gpuir__dict_open(d, block, &b)) return d->bytes;
  *len = b.lengths[0];
  return b.text;
}

/* Returns the number of the block that child i of a node begins with; `depth` is the node's level. */
static inline uint64_t gpuir__dict_child(const gpuir__dict *d, unsigned depth, uint64_t node, uint64_t i) {
  return (node * GPUIR__DICT_FAN + i) << 4 * (d->levels - 1 - depth);
}

/* Of a node's children whose numbers are that of q, of which the first is `from`, returns the last one that begins with
 * a term that is not greater than q; from - 1 if there is none. */
static unsigned gpuir__dict_tie(const gpuir__dict *d, unsigned depth, uint64_t node, unsigned from,
    const uint64_t *keys, const gpuir__dict_seeker *x) {
  unsigned to = from + 1;
  while (to < GPUIR__DICT_FAN && keys[to] == keys[from]) to++;
  from--; /* the answer is in [from, to) */
  while (to - from > 1) {
    const unsigned mid = from + (to - from) / 2;
    const uint64_t block = gpuir__dict_child(d, depth, node, mid);
    size_t len = 0;
    const uint8_t *head = block < d->level[d->levels] ? gpuir__dict_head(d, block, &len) : NULL;
    if (head && gpuir__compare_bytes(head, len, x->q, x->n) <= 0) from = mid;
    else to = mid;
  }
  return from;
}

/* A look-up on its way down the tree. At its end the block is known, and is being fetched. */
typedef struct gpuir__dict_look {
  gpuir__dict_seeker x;
  uint64_t node; /* of the level `depth`; behind the last level, the block */
  unsigned depth;
  const uint64_t *level; /* its nodes */
  uint8_t q[GPUIR_MAX_TERM + 1 + 8]; /* a byte more than any term has: a longer one is as great as its beginning */
} gpuir__dict_look;

/* Returns the 8 bytes of what is searched from byte `skip` on as a number whose order is theirs. */
GPUIR__INLINE uint64_t gpuir__dict_window_of(const gpuir__dict_seeker *x, size_t skip) {
  return GPUIR__LIKELY(skip < 8) ? x->start[0] << 8 * skip | x->start[1] >> 1 >> (63 - 8 * skip)
                                 : __builtin_bswap64(gpuir__load64(x->q + (skip < x->n ? skip : x->n)));
}

/* Counts those of a node's numbers that are less than `window`: in four sums side by side, so that none waits for
 * another. What a vector of them takes to get there and back is longer. */
GPUIR__INLINE unsigned gpuir__dict_less(const uint64_t *keys, uint64_t window) {
  int n[4], i;
  n[0] = (keys[4] < window) + (keys[8] < window) + (keys[12] < window);
  for (i = 1; i < 4; i++) {
    n[i] = (keys[i] < window) + (keys[4 + i] < window);
    n[i] += (keys[8 + i] < window) + (keys[12 + i] < window);
  }
  return (unsigned)(n[0] + n[1] + (n[2] + n[3]));
}

/* Goes down to level `to`: to the last node there, or at last the last block, whose first term is not greater than q,
 * or to the first one. What the last level's node is compared with, and leads to, is prefetched. */
static void gpuir__dict_search(const gpuir__dict *d, gpuir__dict_look *l, unsigned to) {
  const gpuir__dict_seeker x = l->x;
  const uint64_t *level = l->level;
  uint64_t node = l->node;
  unsigned depth;
  for (depth = l->depth; depth < to; depth++) {
    const uint64_t *keys = level + node * GPUIR__DICT_FAN;
    const uint64_t window = gpuir__dict_window_of(&x, keys[0] & 255);
    unsigned child, next;
    child = d->level[depth + 1] > 2 ? gpuir__dict_less(keys, window) : keys[1] < window;
    next = (child + 1) % GPUIR__DICT_FAN; /* not 0 but for the last child, which no number follows */
    if (GPUIR__UNLIKELY(keys[next] == window) && next) child = gpuir__dict_tie(d, depth, node, next, keys, &l->x);
    level += d->level[depth] * GPUIR__DICT_FAN;
    node = node * GPUIR__DICT_FAN + child;
    if (GPUIR__UNLIKELY(node >= d->level[depth + 1])) {
      node = d->level[depth + 1] - 1; /* of a damaged tree */
      __asm__("" : "+r"(node)); /* a branch: a choice between two numbers would make each level wait for it */
    }
    if (depth + 2 == d->levels) { /* its children are a page of blocks */
      __builtin_prefetch(level + node * GPUIR__DICT_FAN);
      __builtin_prefetch(level + node * GPUIR__DICT_FAN + GPUIR__DICT_FAN / 2);
      __builtin_prefetch(&d->pages[node]);
      __builtin_prefetch(&d->starts[node * GPUIR__DICT_PAGE]);
    }
  }
  l->level = level;
  l->node = node;
  l->depth = to;
}

/* Returns bytes 4 i to 4 i + 3 of n bytes, or zeros behind them, as a little-endian number. It loads them from where
 * they stand: 8 bytes at once from a padded copy would wait until the copy is written. Of n, which no processor can
 * foresee, no branch depends but for very short terms. */
static inline uint64_t gpuir__dict_piece(const uint8_t *p, size_t n, size_t i) {
  size_t at = n - 4, behind;
  if (GPUIR__UNLIKELY(n < 4))
    return i || !n ? 0 : p[0] | (uint64_t)p[n / 2] << 8 * (n / 2) | (uint64_t)p[n - 1] << 8 * (n - 1);
  at = at < 4 * i ? at : 4 * i;
  behind = 4 * i - at; /* what is loaded begins so many bytes before */
  return (uint64_t)gpuir__load32(p + at) >> 4 * behind >> 4 * behind;
}

/* Begins to look term[0..len) up. */
static inline void gpuir__dict_begin(const gpuir__dict *d, const void *term, size_t len, gpuir__dict_look *l) {
  gpuir__dict_seeker *x = &l->x;
  const uint8_t *p = (const uint8_t *)term;
  size_t i;
  memset(x, 0, sizeof *x);
  l->node = l->depth = 0;
  l->level = d->keys;
  x->q = l->q;
  x->n = len < GPUIR_MAX_TERM + 1 ? len : GPUIR_MAX_TERM + 1;
  for (i = 0; i < 2; i++)
    x->start[i] = __builtin_bswap64(gpuir__dict_piece(p, x->n, 2 * i) | gpuir__dict_piece(p, x->n, 2 * i + 1) << 32);
  gpuir__store64(l->q, __builtin_bswap64(x->start[0]));
  gpuir__store64(l->q + 8, __builtin_bswap64(x->start[1]));
  for (i = 16; i < x->n; i += 8) { /* memcpy may become an instruction that takes longer to begin than this does */
    const size_t at = i < x->n - 8 ? i : x->n - 8;
    gpuir__store64(l->q + at, gpuir__load64(p + at));
  }
  gpuir__store64(l->q + x->n, 0);
}

/* Goes down to level `to`, and prefetches the block if that is behind the last one. Look-ups that go down before the
 * first of them ends, first to the last level and then behind it, wait for memory together. */
static void gpuir__dict_descend(const gpuir__dict *d, gpuir__dict_look *l, unsigned to) {
  uint64_t left;
  gpuir__dict_search(d, l, to);
  if (d->terms && to == d->levels) (void)gpuir__dict_place(d, l->node, &left);
}

/* Ends a look-up: returns the number of the first term that is not less, or the number of terms. *found: it is the
 * term that was looked up. */
static uint64_t gpuir__dict_end(const gpuir__dict *d, gpuir__dict_look *l, int *found) {
  gpuir__dict_block b;
  uint64_t at = l->node * GPUIR__DICT_BLOCK;
  *found = 0;
  if (!d->terms || !gpuir__dict_open(d, l->node, &b)) return at;
#if GPUIR__X86
  if (d->simd >= GPUIR_SIMD_AVX2) at += gpuir__dict_scan_avx2(&b, &l->x);
  else
#endif
    at += gpuir__dict_scan(&b, &l->x);
  *found = l->x.found;
  return at;
}

/* Looks term[0..len) up alone. */
static uint64_t gpuir__dict_find(const gpuir__dict *d, const void *term, size_t len, int *found) {
  gpuir__dict_look l;
  gpuir__dict_begin(d, term, len, &l);
  gpuir__dict_descend(d, &l, d->levels);
  return gpuir__dict_end(d, &l, found);
}

/* Returns the 8 bytes of a term from byte `skip` on as a number whose order is theirs. Reads 8 bytes behind it. */
static inline uint64_t gpuir__dict_window(const uint8_t *term, size_t len, size_t skip) {
  const size_t left = len > skip ? len - skip : 0;
  uint64_t v;
  if (!left) return 0;
  v = __builtin_bswap64(gpuir__load64(term + skip));
  return left < 8 ? v >> (64 - 8 * left) << (64 - 8 * left) : v;
}

/* Makes a node of the tree out of the blocks' first terms. */
static void gpuir__dict_node(const gpuir__dict *d, unsigned depth, uint64_t node, uint64_t keys[GPUIR__DICT_FAN]) {
  const uint64_t blocks = d->level[d->levels];
  size_t skip = 0, len, next_len;
  unsigned i;
  if (node && node + 1 < d->level[depth]) {
    const uint8_t *first = gpuir__dict_head(d, gpuir__dict_child(d, depth, node, 0), &len);
    const uint8_t *next = gpuir__dict_head(d, gpuir__dict_child(d, depth, node + 1, 0), &next_len);
    skip = gpuir__common(first, next, len < next_len ? len : next_len);
  }
  keys[0] = skip;
  for (i = 1; i < GPUIR__DICT_FAN; i++) {
    const uint64_t block = gpuir__dict_child(d, depth, node, i);
    const uint8_t *head = block < blocks ? gpuir__dict_head(d, block, &len) : NULL;
    keys[i] = head ? gpuir__dict_window(head, len, skip) : UINT64_MAX;
  }
}

/* ---- encoding */

/* The terms of a block to be: n of them, one behind the other. */
typedef struct gpuir__dict_terms {
  unsigned n;
  size_t fill; /* bytes of text */
  gpuir__record record[GPUIR__DICT_BLOCK];
  uint8_t len[GPUIR__DICT_BLOCK];
  uint8_t text[GPUIR__DICT_BLOCK * GPUIR_MAX_TERM + 8];
} gpuir__dict_terms;

/* Adds a term to less than a block of them. */
static inline void gpuir__dict_add(gpuir__dict_terms *t, const void *term, size_t len, const gpuir__record *r) {
  memcpy(t->text + t->fill, term, len);
  t->fill += len;
  t->len[t->n] = (uint8_t)len;
  t->record[t->n++] = *r;
}

/* The numbers of a block's columns. */
typedef struct gpuir__dict_numbers {
  uint32_t several, second, mixed;
  uint32_t lists; /* terms with several postings; each one's codecs */
  uint8_t codecs[GPUIR__DICT_BLOCK];
  uint32_t count[GPUIR__COLUMNS];
  uint64_t all[GPUIR__COLUMNS]; /* their bits together */
  uint64_t value[GPUIR__COLUMNS][GPUIR__DICT_BLOCK];
} gpuir__dict_numbers;

static inline void gpuir__dict_column(gpuir__dict_numbers *x, unsigned column, uint64_t value) {
  x->value[column][x->count[column]++] = value;
  x->all[column] |= value;
}

/* Adds a term with several postings to the columns. */
static inline void gpuir__dict_divide_list(gpuir__dict_numbers *x, const gpuir__record *r) {
  x->codecs[x->lists++] = (uint8_t)(r->codec | r->freq_codec << 4);
  x->mixed |= x->codecs[x->lists - 1] != x->codecs[0];
  if (r->df > GPUIR__SHORT_MAX) {
    gpuir__dict_column(x, GPUIR__COL_LONG, r->df - GPUIR__SHORT_MAX - 1);
    return;
  }
  gpuir__dict_column(x, GPUIR__COL_DF, r->df - 2);
  gpuir__dict_column(x, GPUIR__COL_DOCS, r->docs_len - 1);
  gpuir__dict_column(x, GPUIR__COL_FREQS, r->freqs_len - 1);
}

/* Parts the records of a block of terms into columns of numbers of one kind, which are packed with one width each: a
 * record has only the numbers that its kind of list needs. Two bits a term say which kind that is. */
static void gpuir__dict_divide(const gpuir__dict_terms *t, const gpuir__dict_form *form, gpuir__dict_numbers *x) {
  unsigned i;
  memset(x, 0, sizeof *x);
  for (i = 0; i < t->n; i++) {
    const gpuir__record *r = &t->record[i];
    const int is_long = r->df > GPUIR__SHORT_MAX;
    x->several |= (uint32_t)(r->df > 1) << i;
    x->second |= (uint32_t)(r->df > 1 ? is_long : r->freqs > 1) << i;
    if (r->df > 1) {
      gpuir__dict_divide_list(x, r);
    } else {
      gpuir__dict_column(x, GPUIR__COL_DOCID, r->docs);
      if (r->freqs > 1) gpuir__dict_column(x, GPUIR__COL_TF, r->freqs - 2);
    }
    if (form->positions)
      gpuir__dict_column(x, is_long ? GPUIR__COL_LONG_POSITIONS : GPUIR__COL_POSITIONS, r->positions_len);
  }
}

/* Puts a number of w < 64 bits where zeros are. */
static inline void gpuir__dict_put(uint8_t *p, uint32_t *bit, uint64_t value, unsigned w) {
  gpuir__store64(p + *bit / 8, gpuir__load64(p + *bit / 8) | value << *bit % 8);
  *bit += w;
}

/* Puts the columns at p, where zeros are; returns their end. */
static uint8_t *gpuir__dict_put_columns(const gpuir__dict_numbers *x, const gpuir__dict_form *form, uint8_t *p) {
  uint32_t bit = 0, i;
  unsigned c;
  for (c = 0; c < GPUIR__COLUMNS; c++) {
    const unsigned w = c == GPUIR__COL_DOCID ? form->docid_bits : gpuir__width64(x->all[c]);
    for (i = 0; i < x->count[c]; i++) gpuir__dict_put(p, &bit, x->value[c][i], w);
  }
  return p + (bit + 7) / 8;
}

/* Puts the lengths and the terms at p; returns their end. */
static uint8_t *gpuir__dict_put_terms(const gpuir__dict_terms *t, uint8_t *p) {
  uint8_t *lengths = p, *firsts = p + t->n - 1;
  const uint8_t *text = t->text + t->len[0];
  unsigned i;
  *lengths = t->len[0];
  p += 2 * t->n - 1;
  memcpy(p, t->text, t->len[0]);
  p += t->len[0];
  for (i = 1; i < t->n; i++) {
    const size_t before = t->len[i - 1], len = t->len[i];
    const size_t shared = gpuir__common(text - before, text, (before < len ? before : len) - (before >= len));
    const size_t rest = len - shared - 1;
    firsts[i] = text[shared];
    lengths[i] = (uint8_t)((shared < 15 ? shared : 15) | (rest < 15 ? rest : 15) << 4);
    if (shared >= 15) *p++ = (uint8_t)shared;
    if (rest >= 15) *p++ = (uint8_t)rest;
    memcpy(p, text + shared + 1, rest);
    p += rest;
    text += len;
  }
  return p;
}

/* Puts a base and returns how many bytes it takes. */
static inline uint32_t gpuir__dict_put_base(uint8_t **p, uint64_t base) {
  const uint32_t bytes = (gpuir__width64(base) + 7) / 8;
  gpuir__store64(*p, base);
  *p += bytes;
  return bytes;
}

/* Puts what stands before the columns, and returns its end, where zeros are. */
static uint8_t *gpuir__dict_put_head(const gpuir__dict_numbers *x, const gpuir__dict_form *form,
    const gpuir__dict_page *page, const gpuir__dict_page *now, uint8_t *out) {
  uint8_t *p = out + 9 + (form->positions ? 2 : 0);
  uint32_t bit = 8, bytes, i;
  gpuir__dict_put(out, &bit, x->several, 16);
  gpuir__dict_put(out, &bit, x->second, 16);
  gpuir__dict_put(out, &bit, gpuir__width64(x->all[GPUIR__COL_TF]), 6);
  gpuir__dict_put(out, &bit, gpuir__width64(x->all[GPUIR__COL_DF]), 3);
  gpuir__dict_put(out, &bit, gpuir__width64(x->all[GPUIR__COL_DOCS]), 5);
  gpuir__dict_put(out, &bit, gpuir__width64(x->all[GPUIR__COL_FREQS]), 5);
  gpuir__dict_put(out, &bit, gpuir__width64(x->all[GPUIR__COL_LONG]), 6);
  gpuir__dict_put(out, &bit, gpuir__dict_put_base(&p, now->docs - page->docs), 2);
  gpuir__dict_put(out, &bit, gpuir__dict_put_base(&p, now->freqs - page->freqs), 2);
  gpuir__dict_put(out, &bit, x->mixed, 3);
  if (x->count[GPUIR__COL_LONG]) *p++ = (uint8_t)(now->longs - page->longs);
  if (form->positions) {
    bytes = gpuir__dict_put_base(&p, now->positions - page->positions);
    gpuir__store32(out + 9,
        gpuir__load32(out + 9) | gpuir__width64(x->all[GPUIR__COL_POSITIONS]) |
            gpuir__width64(x->all[GPUIR__COL_LONG_POSITIONS]) << 6 | bytes << 12);
  }
  for (i = 0; i < (x->mixed ? x->lists : x->lists != 0); i++) *p++ = x->codecs[i];
  return p;
}

/* Encodes a block, which begins at *now, of a page; *now becomes the place of the next one. Of records, only what the
 * block keeps is heeded. Returns the bytes that it takes. Writes 8 bytes more. */
static size_t gpuir__dict_encode(const gpuir__dict_terms *t, const gpuir__dict_form *form, const gpuir__dict_page *page,
    gpuir__dict_page *now, uint8_t out[GPUIR__DICT_MOST + 8]) {
  gpuir__dict_numbers x;
  uint8_t *p;
  uint32_t i;
  gpuir__dict_divide(t, form, &x);
  memset(out, 0, GPUIR__DICT_HEAD + 8);
  p = gpuir__dict_put_columns(&x, form, gpuir__dict_put_head(&x, form, page, now, out));
  out[0] = (uint8_t)(p - out);
  p = gpuir__dict_put_terms(t, p);
  for (i = 0; i < x.count[GPUIR__COL_DOCS]; i++) {
    now->docs += x.value[GPUIR__COL_DOCS][i] + 1;
    now->freqs += x.value[GPUIR__COL_FREQS][i] + 1;
  }
  for (i = 0; i < x.count[GPUIR__COL_POSITIONS]; i++) now->positions += x.value[GPUIR__COL_POSITIONS][i];
  for (i = 0; i < x.count[GPUIR__COL_LONG_POSITIONS]; i++) now->positions += x.value[GPUIR__COL_LONG_POSITIONS][i];
  now->longs += x.count[GPUIR__COL_LONG];
  now->start += (uint64_t)(p - out);
  return (size_t)(p - out);
}
