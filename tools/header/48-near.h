
/* ========
 * [48-near]  terms that are written nearly as a word
 *
 * The distance is that of optimal string alignment: how many characters are inserted, left out or replaced, or swapped
 * with their neighbour. Terms that begin with the word's first character stand together, and are walked in order; a row
 * of the table of distances is one character of such a term, and where all of a row is too large, terms that share the
 * characters so far are passed over. Where the first character differs, the few spellings are looked up.
 *
 * Where terms are stems, two spellings one letter apart may have stems that are far from each other: "registraton" and
 * "registration", which is "registr". There all spellings one letter away are stemmed, and the stems looked up; only
 * where none is found are stems compared with the stem.
 *
 * Uses      [30-analysis], [32-dictionary], [33-analyzers], [37-layout], [41-reader], [42-snapshot].
 * Start at  gpuir_terms_near.
 * Tests     tests/unit/48_near.c
 * ======*/

#ifndef GPUIR_NO_NEAR
#define GPUIR__NEAR_LONG 6u /* characters of the shortest word that may have two errors */
#define GPUIR__NEAR_EDITED 24u /* characters of the longest word of which all spellings are stemmed */
#define GPUIR__NEAR_LETTERS 96u /* that may stand in place of one */

typedef struct gpuir__near {
  const gpuir_index *ix;
  uint32_t word[GPUIR_MAX_TERM]; /* its characters; a byte that is not UTF-8 is one of its own */
  uint8_t bytes[GPUIR_MAX_TERM + 1]; /* and its bytes, `first` of which are the first character */
  size_t n, len, first;
  char term[GPUIR_MAX_TERM]; /* of the word itself, which is not near; len 0: it is the word */
  size_t term_len;
  unsigned limit;
  gpuir_near_term *found;
  size_t cap, nfound;
  gpuir__analyzer *an; /* while spellings are stemmed */
  char spelling[GPUIR_MAX_TERM]; /* the one that is stemmed */
  size_t spelling_len;
  uint32_t letters[GPUIR__NEAR_LETTERS];
  size_t nletters;
  uint8_t rows[3][GPUIR_MAX_TERM + 2]; /* row i % 3 */
} gpuir__near;

/* Reads a character of p[0..n), n >= 1; returns its bytes. */
static inline size_t gpuir__near_char(const uint8_t *p, size_t n, uint32_t *c) {
  const size_t k = gpuir__utf8_get(p, n, c);
  if (k) return k;
  *c = 0x110000u + p[0];
  return 1;
}

/* Compares two terms that were found: the nearer, the more frequent and the lesser comes first. */
static int gpuir__near_compare(const gpuir_near_term *a, const gpuir_near_term *b) {
  if (a->distance != b->distance) return a->distance < b->distance ? -1 : 1;
  if (a->df != b->df) return a->df > b->df ? -1 : 1;
  return gpuir__compare_bytes(a->term, a->len, b->term, b->len);
}

/* Counts the documents that hold a term: of a shard, where shards can be asked together, those of its collection. */
static int gpuir__near_count(const gpuir_index *ix, const char *term, size_t len, uint32_t *df) {
  const int status = gpuir_term_count(ix, term, len, df, NULL);
#ifndef GPUIR_NO_RANK
  const gpuir__segment *seg = ix->leaves[0].seg;
  uint64_t id;
  if (!status && seg->shard && !gpuir__term_find(seg, term, len, &id)) *df = gpuir__segment_df(seg, id, *df);
#endif
  return status;
}

/* Keeps a term, if it is live and among the best; word: how a text may have it. */
static int gpuir__near_keep(gpuir__near *x, const uint8_t *term, size_t len, unsigned distance, const void *word,
    size_t word_len) {
  gpuir_near_term t;
  size_t i;
  int status;
  for (i = 0; i < x->nfound; i++) {
    gpuir_near_term *known = &x->found[i];
    if (known->len != len || memcmp(known->term, term, len) != 0) continue; /* else of another segment or spelling */
    if (word_len != len || memcmp(word, term, len) != 0 || known->distance != distance) return GPUIR_OK;
    memcpy(known->word, word, len); /* a stem that is a word by itself is the one that people know */
    known->word_len = len;
    return GPUIR_OK;
  }
  memset(&t, 0, sizeof t);
  memcpy(t.term, term, len);
  t.len = len;
  t.distance = distance;
  memcpy(t.word, word, word_len);
  t.word_len = word_len;
  status = gpuir__near_count(x->ix, t.term, len, &t.df);
  if (status) return status == GPUIR_E_NOT_FOUND ? GPUIR_OK : status;
  for (i = x->nfound; i && gpuir__near_compare(&t, &x->found[i - 1]) < 0; i--)
    if (i < x->cap) x->found[i] = x->found[i - 1];
  if (i < x->cap) x->found[i] = t;
  if (x->nfound < x->cap) x->nfound++;
  return GPUIR_OK;
}

/* Keeps a term that stands for itself. */
GPUIR__NOINLINE int gpuir__near_put(gpuir__near *x, const uint8_t *term, size_t len, unsigned distance) {
  return gpuir__near_keep(x, term, len, distance, term, len);
}

/* Fills row i of the table of distances, for the term's character number i, c, which follows `before`: row[j] becomes
 * the distance between the term's first i characters and the word's first j. Returns the least of the row. */
static unsigned gpuir__near_row(gpuir__near *x, size_t i, uint32_t c, uint32_t before) {
  const uint8_t *up = x->rows[(i - 1) % 3], *upper = x->rows[(i + 1) % 3];
  uint8_t *row = x->rows[i % 3];
  const size_t from = i > x->limit ? i - x->limit : 1, to = (size_t)gpuir__min64(x->n, i + x->limit);
  unsigned least = 255;
  size_t j;
  row[from - 1] = (uint8_t)(from == 1 ? gpuir__min64(i, 254) : 254);
  if (from == 1) least = row[0];
  for (j = from; j <= to; j++) {
    unsigned d = up[j - 1] + (x->word[j - 1] != c ? 1u : 0u);
    if (up[j] + 1u < d) d = up[j] + 1u;
    if (row[j - 1] + 1u < d) d = row[j - 1] + 1u;
    if (i > 1 && j > 1 && x->word[j - 1] == before && x->word[j - 2] == c && upper[j - 2] + 1u < d)
      d = upper[j - 2] + 1u;
    row[j] = (uint8_t)(d < 254 ? d : 254);
    if (d < least) least = d;
  }
  if (to < x->n) row[to + 1] = 254;
  return least;
}

/* Returns how far a term is from the word, or 255 if that is too far. *dead becomes the bytes after which it is clear
 * that every term which begins with them is too far; 256 if there are none. */
static unsigned gpuir__near_distance(gpuir__near *x, const uint8_t *term, size_t len, size_t *dead) {
  uint32_t c = 0, before = 0;
  size_t at = 0, i = 0, j;
  *dead = 256;
  for (j = 0; j <= x->n; j++) x->rows[0][j] = (uint8_t)gpuir__min64(j, 254);
  while (at < len) {
    at += gpuir__near_char(term + at, len - at, &c);
    if (++i > x->n + x->limit || gpuir__near_row(x, i, c, before) > x->limit) {
      *dead = at;
      return 255;
    }
    before = c;
  }
  if (i + x->limit < x->n || x->rows[i % 3][x->n] > x->limit) return 255;
  return x->rows[i % 3][x->n];
}

/* Walks the terms [id, end) of a segment, which begin as the word does. */
static int gpuir__near_walk(gpuir__near *x, const gpuir__segment *seg, uint64_t id, uint64_t end) {
  uint8_t term[GPUIR_MAX_TERM + 1];
  gpuir__dict_block b;
  gpuir__dict_step s = {0, 0, 0};
  size_t len = 0, dead = 256;
  int status = GPUIR_OK;
  uint64_t block;
  for (block = id / GPUIR__DICT_BLOCK; block * GPUIR__DICT_BLOCK < end && !status; block++) {
    unsigned i;
    if (!gpuir__dict_open(&seg->terms, block, &b)) return GPUIR_E_FORMAT;
    for (i = 0; i < b.n && block * GPUIR__DICT_BLOCK + i < end && !status; i++) {
      unsigned distance;
      if (!i) {
        s = gpuir__dict_first(&b);
        len = s.rest;
        memcpy(term, b.text, len);
        dead = 256;
      } else {
        len = gpuir__dict_next(&b, i, &s) ? gpuir__dict_spell(&b, i, &s, term, len) : 0;
      }
      if (!len) return GPUIR_E_FORMAT;
      if (i && s.shared >= dead) continue;
      dead = 256;
      if (block * GPUIR__DICT_BLOCK + i < id) continue;
      distance = gpuir__near_distance(x, term, len, &dead);
      if (distance && distance <= x->limit) status = gpuir__near_put(x, term, len, distance);
    }
  }
  return status;
}

/* Looks up the terms one error away whose first character is another one. */
static int gpuir__near_first(gpuir__near *x) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
  uint8_t term[GPUIR_MAX_TERM + 1];
  uint32_t c;
  size_t second, i;
  int status = GPUIR_OK;
  for (i = 0; letters[i] && !status; i++) {
    if (x->first == 1 && x->bytes[0] == (uint8_t)letters[i]) continue;
    term[0] = (uint8_t)letters[i];
    memcpy(term + 1, x->bytes + x->first, x->len - x->first);
    status = gpuir__near_put(x, term, x->len - x->first + 1, 1);
    if (status || x->len == GPUIR_MAX_TERM) continue;
    memcpy(term + 1, x->bytes, x->len);
    status = gpuir__near_put(x, term, x->len + 1, 1);
  }
  if (status) return status;
  second = gpuir__near_char(x->bytes + x->first, x->len - x->first, &c);
  if (second == x->first && !memcmp(x->bytes, x->bytes + x->first, second)) return GPUIR_OK; /* not another one */
  memcpy(term, x->bytes + x->first, second);
  memcpy(term + second, x->bytes, x->first);
  memcpy(term + second + x->first, x->bytes + x->first + second, x->len - x->first - second);
  status = gpuir__near_put(x, term, x->len, 1);
  return status ? status : gpuir__near_put(x, x->bytes + x->first, x->len - x->first, 1);
}

/* Finds the numbers [*from, *to) of a segment's terms that begin as the word does. */
static void gpuir__near_range(const gpuir__near *x, const gpuir__segment *seg, uint64_t *from, uint64_t *to) {
  char behind[4];
  size_t n = x->first;
  memcpy(behind, x->bytes, n);
  while (n && (uint8_t)behind[n - 1] == 255) n--;
  if (n) behind[n - 1] = (char)((uint8_t)behind[n - 1] + 1);
  *from = gpuir__term_lower_bound(seg, (const char *)x->bytes, x->first);
  *to = n ? gpuir__term_lower_bound(seg, behind, n) : seg->stat.terms;
}

/* ---- spellings that are stemmed */

/* Takes the stem of a spelling. */
static int gpuir__near_stem(void *near, const char *stem, size_t len, unsigned advance) {
  gpuir__near *x = (gpuir__near *)near;
  (void)advance;
  if (len == x->term_len && !memcmp(stem, x->term, len)) return GPUIR_OK;
  return gpuir__near_keep(x, (const uint8_t *)stem, len, 1, x->spelling, x->spelling_len);
}

/* Takes the word's own stem. */
static int gpuir__near_own(void *near, const char *stem, size_t len, unsigned advance) {
  gpuir__near *x = (gpuir__near *)near;
  (void)advance;
  memcpy(x->term, stem, len);
  x->term_len = len;
  return GPUIR_OK;
}

/* Writes a character below 0x110000 to p[0..4); returns its bytes. */
static size_t gpuir__near_spell(uint32_t c, char *p) {
  static const uint8_t lead[5] = {0, 0, 0xc0, 0xe0, 0xf0};
  const size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  size_t i;
  for (i = n; i-- > 1; c >>= 6) p[i] = (char)(0x80 | (c & 0x3f));
  p[0] = (char)(lead[n] | c);
  return n;
}

/* Looks up the stem of the spelling that has n characters in place of the word's [at, end). */
static int gpuir__near_try(gpuir__near *x, size_t at, size_t end, const uint32_t *chars, size_t n) {
  size_t i, len = 0;
  for (i = 0; i < at; i++) len += gpuir__near_spell(x->word[i], x->spelling + len);
  for (i = 0; i < n; i++) len += gpuir__near_spell(chars[i], x->spelling + len);
  for (i = end; i < x->n; i++) len += gpuir__near_spell(x->word[i], x->spelling + len);
  x->spelling_len = len;
  return len ? gpuir__analyzer_stem(x->an, x->spelling, len, gpuir__near_stem, x) : GPUIR_OK;
}

/* Adds letters [from, to] that may stand in a word. */
static void gpuir__near_letters_add(gpuir__near *x, uint32_t from, uint32_t to) {
  size_t i;
  for (; from <= to && x->nletters < GPUIR__NEAR_LETTERS; from++) {
    for (i = 0; i < x->nletters && x->letters[i] != from; i++) {}
    if (i == x->nletters) x->letters[x->nletters++] = from;
  }
}

/* Collects the letters that may stand in the word: those of its alphabet, and its own. */
static void gpuir__near_letters(gpuir__near *x) {
  size_t i;
  x->nletters = 0;
  for (i = 0; i < x->n; i++) {
    const uint32_t c = x->word[i];
    if (c >= 0x3b1 && c <= 0x3c9) gpuir__near_letters_add(x, 0x3b1, 0x3c9);
    else if (c >= 0x430 && c <= 0x44f) gpuir__near_letters_add(x, 0x430, 0x44f);
    else if (c < 0x250) gpuir__near_letters_add(x, 'a', 'z');
    gpuir__near_letters_add(x, c, c);
  }
}

/* Looks up the stems of all spellings one letter away: with two neighbours swapped, one more, another one, one less. Of
 * several that have one stem the one that is the stem is told, or else the first. */
static int gpuir__near_edits(gpuir__near *x) {
  uint32_t two[2];
  size_t i, j;
  int status = GPUIR_OK;
  for (i = 0; i < x->n; i++)
    if (x->word[i] >= 0x110000u) return GPUIR_OK; /* a byte that is not UTF-8 */
  gpuir__near_letters(x);
  for (i = 0; i + 1 < x->n && !status; i++) {
    two[0] = x->word[i + 1];
    two[1] = x->word[i];
    if (two[0] != two[1]) status = gpuir__near_try(x, i, i + 2, two, 2);
  }
  for (i = 0; i <= x->n; i++)
    for (j = 0; j < x->nletters && !status; j++) status = gpuir__near_try(x, i, i, &x->letters[j], 1);
  for (i = 0; i < x->n; i++)
    for (j = 0; j < x->nletters && !status; j++)
      if (x->letters[j] != x->word[i]) status = gpuir__near_try(x, i, i + 1, &x->letters[j], 1);
  for (i = 0; i < x->n && !status; i++) status = gpuir__near_try(x, i, i + 1, NULL, 0);
  return status;
}

/* ---- one word */

/* Makes text[0..len), 1 to 255 bytes, the word. */
static void gpuir__near_take(gpuir__near *x, const char *text, size_t len) {
  size_t at;
  x->len = len;
  x->n = 0;
  memcpy(x->bytes, text, len);
  for (at = 0; at < len; x->n++) {
    at += gpuir__near_char(x->bytes + at, len - at, &x->word[x->n]);
    if (!x->n) x->first = at;
  }
  x->limit = x->n < GPUIR__NEAR_LONG ? 1 : 2;
}

/* Compares the word with the terms. */
static int gpuir__near_terms(gpuir__near *x) {
  int status = gpuir__near_first(x);
  size_t i;
  for (i = 0; i < x->ix->nleaves && !status; i++) {
    uint64_t from, to;
    gpuir__near_range(x, x->ix->leaves[i].seg, &from, &to);
    status = gpuir__near_walk(x, x->ix->leaves[i].seg, from, to);
  }
  return status;
}

/* Begins to look for the best `cap` near terms of an index. */
static void gpuir__near_begin(gpuir__near *x, const gpuir_index *ix, gpuir__analyzer *an, gpuir_near_term *found,
    size_t cap) {
  memset(x, 0, sizeof *x);
  x->ix = ix;
  x->an = an;
  x->found = found;
  x->cap = cap;
}

/* Adds the terms near a folded word, as texts have it: where terms are stems, those of spellings. */
static int gpuir__near_spellings(gpuir__near *x, const char *word, size_t len) {
  int status;
  x->term_len = 0;
  if (!len || len > GPUIR_MAX_TERM || !x->cap) return GPUIR_OK;
  gpuir__near_take(x, word, len);
  if (x->n < 2) return GPUIR_OK;
  if (!gpuir__analyzer_stems(x->an)) return gpuir__near_terms(x);
  status = gpuir__analyzer_stem(x->an, word, len, gpuir__near_own, x);
  return status || x->n > GPUIR__NEAR_EDITED ? status : gpuir__near_edits(x);
}

/* Adds the terms near the word's own stem, if terms are stems. */
static int gpuir__near_stems(gpuir__near *x) {
  if (!x->term_len) return GPUIR_OK;
  gpuir__near_take(x, x->term, x->term_len);
  return x->n < 2 ? GPUIR_OK : gpuir__near_terms(x);
}

/* Adds the near terms of a folded word; those of its stem only where no spelling has any. */
static int gpuir__near_word(gpuir__near *x, const char *word, size_t len) {
  const size_t before = x->nfound;
  const int status = gpuir__near_spellings(x, word, len);
  return status || x->nfound > before ? status : gpuir__near_stems(x);
}

GPUIR_API int gpuir_terms_near(const gpuir_index *ix, const char *term, size_t len, gpuir_near_term *found, size_t cap,
    size_t *n) {
  gpuir__near x;
  gpuir__analyzer *an;
  int status;
  if (n) *n = 0;
  if (!ix || !n || (!term && len) || (!found && cap)) return GPUIR_E_ARGUMENT;
  status = gpuir__analyzers_take(ix->analysis.pool, &an, NULL);
  if (status) return status;
  gpuir__near_begin(&x, ix, an, found, cap);
  status = gpuir__near_word(&x, term, len);
  gpuir__analyzers_give(ix->analysis.pool, an);
  if (!status) *n = x.nfound;
  return status;
}
#else /* GPUIR_NO_NEAR */
GPUIR_API int gpuir_terms_near(const gpuir_index *ix, const char *term, size_t len, gpuir_near_term *found, size_t cap,
    size_t *n) {
  if (n) *n = 0;
  return !ix || !n || (!term && len) || (!found && cap) ? GPUIR_E_ARGUMENT : GPUIR_E_UNSUPPORTED;
}
#endif /* GPUIR_NO_NEAR */
