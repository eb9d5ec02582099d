
/* ========
 * [29-near]  terms that are written nearly as a word
 *
 * The distance is that of optimal string alignment: how many characters are inserted, left out or replaced, or swapped
 * with their neighbour. Terms that begin with the word's first character stand together, and are walked in order; a row
 * of the table of distances is one character of such a term, and where all of a row is too large, terms that share the
 * characters so far are passed over. Where the first character differs, the few spellings are looked up.
 *
 * Uses      [11-analysis], [11b-dictionary], [12-layout], [13b-snapshot], [16-query].
 * Start at  gpuir_terms_near.
 * Tests     tests/unit/29_near.c
 * ======*/

#define GPUIR__NEAR_LONG 6u /* characters of the shortest word that may have two errors */

typedef struct gpuir__near {
  const gpuir_index *ix;
  uint32_t word[GPUIR_MAX_TERM]; /* its characters; a byte that is not UTF-8 is one of its own */
  uint8_t bytes[GPUIR_MAX_TERM + 1]; /* and its bytes, `first` of which are the first character */
  size_t n, len, first;
  unsigned limit;
  gpuir_near_term *found;
  size_t cap, nfound;
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

/* Keeps a term, if it is live and among the best. */
static int gpuir__near_put(gpuir__near *x, const uint8_t *term, size_t len, unsigned distance) {
  gpuir_near_term t;
  size_t i;
  int status;
  for (i = 0; i < x->nfound; i++)
    if (x->found[i].len == len && !memcmp(x->found[i].term, term, len)) return GPUIR_OK; /* of another segment */
  memset(&t, 0, sizeof t);
  memcpy(t.term, term, len);
  t.len = len;
  t.distance = distance;
  status = gpuir_term_count(x->ix, t.term, len, &t.df, NULL);
  if (status) return status == GPUIR_E_NOT_FOUND ? GPUIR_OK : status;
  for (i = x->nfound; i && gpuir__near_compare(&t, &x->found[i - 1]) < 0; i--)
    if (i < x->cap) x->found[i] = x->found[i - 1];
  if (i < x->cap) x->found[i] = t;
  if (x->nfound < x->cap) x->nfound++;
  return GPUIR_OK;
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

GPUIR_API int gpuir_terms_near(const gpuir_index *ix, const char *term, size_t len, gpuir_near_term *found, size_t cap,
    size_t *n) {
  gpuir__near x;
  gpuir__query_term first;
  size_t at, i;
  int status;
  if (n) *n = 0;
  if (!ix || !n || (!term && len) || (!found && cap)) return GPUIR_E_ARGUMENT;
  if (!len || len > GPUIR_MAX_TERM || !cap) return GPUIR_OK;
  memset(&x, 0, sizeof x);
  x.ix = ix;
  x.found = found;
  x.cap = cap;
  x.len = len;
  memcpy(x.bytes, term, len);
  for (at = 0; at < len; x.n++) {
    at += gpuir__near_char(x.bytes + at, len - at, &x.word[x.n]);
    if (!x.n) x.first = at;
  }
  if (x.n < 2) return GPUIR_OK;
  x.limit = x.n < GPUIR__NEAR_LONG ? 1 : 2;
  status = gpuir__near_first(&x);
  gpuir__query_term_make(&first, GPUIR__PREFIX, 0, term, x.first);
  for (i = 0; i < ix->nleaves && !status; i++) {
    uint32_t from, to;
    gpuir__prefix_range(ix->leaves[i].seg, &first, &from, &to);
    status = gpuir__near_walk(&x, ix->leaves[i].seg, from, to);
  }
  if (!status) *n = x.nfound;
  return status;
}

/* Says whether a member of phrases is told as unknown: no live document has it, a phrase that is not negated needs it,
 * and no word before tells of it. */
static int gpuir__member_unknown(const gpuir_query *q, unsigned member) {
  const gpuir__query_phrases *p = q->phrases;
  const gpuir__query_term *m = &p->members[member];
  int needed = 0;
  unsigned t;
  if (m->df) return 0;
  for (t = 0; t < q->npositive; t++) {
    const gpuir__query_term *term = &q->terms[t];
    if (term->kind == GPUIR__WORD && gpuir__token_is(term, m->text, m->len)) return 0;
    needed |= term->kind == GPUIR__PHRASE && memchr(p->tokens + term->first, (int)member, term->tokens) != NULL;
  }
  return needed;
}

GPUIR_API int gpuir_query_unknown(const gpuir_query *q, size_t i, const char **term, size_t *len) {
  unsigned t, m;
  if (!q || !term || !len) return GPUIR_E_ARGUMENT;
  for (t = 0; t < q->nrequired; t++) {
    if (q->terms[t].df || q->terms[t].kind == GPUIR__PHRASE || i--) continue;
    *term = gpuir__query_term_name(q, &q->terms[t], len);
    return GPUIR_OK;
  }
  for (m = 0; q->phrases && m < q->phrases->nmembers; m++) {
    if (!gpuir__member_unknown(q, m) || i--) continue;
    *term = q->phrases->members[m].text;
    *len = q->phrases->members[m].len;
    return GPUIR_OK;
  }
  return GPUIR_E_NOT_FOUND;
}
