/* oracle.h - ranks documents by brute force, to hold the engine against
 *
 * It is written from the definition of the scores and shares nothing with gpuir.h. It keeps the
 * documents as lists of (term, tf), inverts them by sorting, adds up every posting of every term
 * of a query into one array, and sorts. All arithmetic is in binary64 and rounded to binary32
 * after each operation, which gives the binary32 result exactly (53 >= 2 * 24 + 2), whatever the
 * compiler fuses.
 *
 *   idf = ln((2N + 2) / (2 df + 1))                      rounded to binary32
 *   W   = idf * (k1 + 1) * 2^20                          rounded to binary32
 *   K   = A + B * dl,  A = k1 * (1 - b),  B = k1 * b / avgdl   each rounded to binary32
 *   c   = max(1, round_half_even(W * tf / (tf + K)))     each operation in binary32
 *   tf and dl count up to 2^24 - 1; a document's score is the sum of q * c.
 */
#ifndef ORACLE_H
#define ORACLE_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ORACLE_UNKNOWN UINT32_MAX
#define ORACLE_CAP 16777215u /* 2^24 - 1 */
#define ORACLE_RANGE (-7) /* what GPUIR_E_RANGE is */
#define ORACLE_MAX_WORDS 1024

typedef struct oracle_posting {
  uint32_t term, doc, tf;
} oracle_posting;

typedef struct oracle_hit {
  uint32_t docid, score;
} oracle_hit;

/* A collection of documents. Filled by oracle_doc and oracle_add, then oracle_invert. */
typedef struct oracle {
  uint32_t ndocs;
  uint64_t tokens;
  oracle_posting *post; /* in order of documents */
  size_t npost, post_cap;
  size_t *doc_start; /* ndocs + 1 */
  uint64_t *dl;
  size_t doc_cap;
  char **name; /* of terms */
  uint32_t nterms;
  size_t name_cap;
  uint32_t *hash; /* term + 1, open addressing */
  size_t hash_cap;
  oracle_posting *inv; /* in order of terms, then documents */
  size_t *inv_start; /* nterms + 1 */
  /* of the last query */
  uint64_t *score;
  uint16_t *matched;
  uint8_t *excluded;
  oracle_hit *hits[2], *swap; /* [0]: AND, [1]: OR */
  size_t nhits[2];
} oracle;

static inline void *oracle_grow(void *p, size_t n, size_t size) {
  p = realloc(p, n > 0 ? n * size : 1);
  if (!p) abort();
  return p;
}

static inline void oracle_init(oracle *o) {
  memset(o, 0, sizeof *o);
  o->doc_cap = 16;
  o->doc_start = (size_t *)oracle_grow(NULL, o->doc_cap + 1, sizeof *o->doc_start);
  o->dl = (uint64_t *)oracle_grow(NULL, o->doc_cap, sizeof *o->dl);
  o->doc_start[0] = 0;
}

static inline void oracle_free(oracle *o) {
  uint32_t i;
  for (i = 0; i < o->nterms; i++) free(o->name[i]);
  free(o->post);
  free(o->doc_start);
  free(o->dl);
  free(o->name);
  free(o->hash);
  free(o->inv);
  free(o->inv_start);
  free(o->score);
  free(o->matched);
  free(o->excluded);
  free(o->hits[0]);
  free(o->hits[1]);
  free(o->swap);
  memset(o, 0, sizeof *o);
}

static inline size_t oracle_slot(const oracle *o, const char *s, size_t n) {
  uint64_t h = 1469598103934665603u;
  size_t i;
  for (i = 0; i < n; i++) h = (h ^ (unsigned char)s[i]) * 1099511628211u;
  for (i = (size_t)(h ^ (h >> 29)) & (o->hash_cap - 1); o->hash[i]; i = (i + 1) & (o->hash_cap - 1)) {
    const char *have = o->name[o->hash[i] - 1];
    if (strlen(have) == n && !memcmp(have, s, n)) break;
  }
  return i;
}

/* The number of a term without NUL bytes, or ORACLE_UNKNOWN. */
static inline uint32_t oracle_find(const oracle *o, const char *s, size_t n) {
  size_t i;
  if (!o->hash_cap) return ORACLE_UNKNOWN;
  i = oracle_slot(o, s, n);
  return o->hash[i] ? o->hash[i] - 1 : ORACLE_UNKNOWN;
}

/* The same; a new term gets the next number. */
static inline uint32_t oracle_term(oracle *o, const char *s, size_t n) {
  size_t i;
  if (o->nterms * 2u >= o->hash_cap) {
    uint32_t t;
    o->hash_cap = o->hash_cap ? o->hash_cap * 4 : 1024;
    free(o->hash);
    o->hash = (uint32_t *)oracle_grow(NULL, o->hash_cap, sizeof *o->hash);
    memset(o->hash, 0, o->hash_cap * sizeof *o->hash);
    for (t = 0; t < o->nterms; t++) o->hash[oracle_slot(o, o->name[t], strlen(o->name[t]))] = t + 1;
  }
  i = oracle_slot(o, s, n);
  if (o->hash[i]) return o->hash[i] - 1;
  if (o->nterms == o->name_cap) {
    o->name_cap = o->name_cap * 2 + 64;
    o->name = (char **)oracle_grow(o->name, o->name_cap, sizeof *o->name);
  }
  o->name[o->nterms] = (char *)oracle_grow(NULL, n + 1, 1);
  memcpy(o->name[o->nterms], s, n);
  o->name[o->nterms][n] = 0;
  o->hash[i] = ++o->nterms;
  return o->nterms - 1;
}

/* Adds a posting to the document that oracle_doc will end; terms may repeat within it. */
static inline void oracle_add(oracle *o, uint32_t term, uint32_t tf) {
  if (o->npost == o->post_cap) {
    o->post_cap = o->post_cap * 2 + 1024;
    o->post = (oracle_posting *)oracle_grow(o->post, o->post_cap, sizeof *o->post);
  }
  o->post[o->npost].term = term;
  o->post[o->npost].doc = o->ndocs;
  o->post[o->npost++].tf = tf;
}

static inline int oracle_by_term(const void *a, const void *b) {
  const oracle_posting *x = (const oracle_posting *)a, *y = (const oracle_posting *)b;
  if (x->term != y->term) return x->term < y->term ? -1 : 1;
  return x->doc < y->doc ? -1 : x->doc > y->doc;
}

/* Ends a document: its postings are all that were added since the last one. */
static inline void oracle_doc(oracle *o) {
  size_t from = o->doc_start[o->ndocs], i, n = from;
  uint64_t dl = 0;
  if (o->npost - from > 1) qsort(o->post + from, o->npost - from, sizeof *o->post, oracle_by_term);
  for (i = from; i < o->npost; i++) {
    dl += o->post[i].tf;
    if (n > from && o->post[n - 1].term == o->post[i].term) o->post[n - 1].tf += o->post[i].tf;
    else o->post[n++] = o->post[i];
  }
  o->npost = n;
  if (o->ndocs + 1 >= o->doc_cap) {
    o->doc_cap = o->doc_cap * 2;
    o->doc_start = (size_t *)oracle_grow(o->doc_start, o->doc_cap + 1, sizeof *o->doc_start);
    o->dl = (uint64_t *)oracle_grow(o->dl, o->doc_cap, sizeof *o->dl);
  }
  o->dl[o->ndocs++] = dl;
  o->doc_start[o->ndocs] = n;
  o->tokens += dl;
}

static inline void oracle_invert(oracle *o) {
  size_t i, n = o->ndocs;
  uint32_t t;
  o->inv = (oracle_posting *)oracle_grow(NULL, o->npost, sizeof *o->inv);
  if (o->npost) memcpy(o->inv, o->post, o->npost * sizeof *o->inv);
  if (o->npost) qsort(o->inv, o->npost, sizeof *o->inv, oracle_by_term);
  o->inv_start = (size_t *)oracle_grow(NULL, (size_t)o->nterms + 1, sizeof *o->inv_start);
  for (t = 0, i = 0; t <= o->nterms; t++) {
    while (i < o->npost && o->inv[i].term < t) i++;
    o->inv_start[t] = i;
  }
  o->score = (uint64_t *)oracle_grow(NULL, n, sizeof *o->score);
  o->matched = (uint16_t *)oracle_grow(NULL, n, sizeof *o->matched);
  o->excluded = (uint8_t *)oracle_grow(NULL, n, sizeof *o->excluded);
  o->hits[0] = (oracle_hit *)oracle_grow(NULL, n, sizeof **o->hits);
  o->hits[1] = (oracle_hit *)oracle_grow(NULL, n, sizeof **o->hits);
  o->swap = (oracle_hit *)oracle_grow(NULL, n, sizeof *o->swap);
}

static inline uint32_t oracle_df(const oracle *o, uint32_t term) {
  return term == ORACLE_UNKNOWN ? 0 : (uint32_t)(o->inv_start[term + 1] - o->inv_start[term]);
}

/* The term frequency in a document, 0 if it is not there. */
static inline uint32_t oracle_tf(const oracle *o, uint32_t term, uint32_t doc) {
  size_t i;
  for (i = o->doc_start[doc]; i < o->doc_start[doc + 1]; i++)
    if (o->post[i].term == term) return o->post[i].tf;
  return 0;
}

/* ---------------------------------------------------------------- arithmetic */

/* The logarithm of at least 64 bits is rounded once: two ways of computing idf give the same binary32 unless its value
 * lies within 2^-50 or so of the middle of two. */
static inline float oracle_idf(uint64_t ndocs, uint64_t df) {
  return (float)log1pl((long double)(2 * ndocs + 1 - 2 * df) / (long double)(2 * df + 1));
}

static float oracle_weight(float idf, float k1) { return (float)((double)idf * ((double)k1 + 1.0) * 1048576.0); }

static inline float oracle_norm(float k1, float b, uint64_t tokens, uint64_t ndocs, uint64_t dl) {
  float A = (float)((double)k1 * (1.0 - (double)b));
  float B = tokens ? (float)((double)k1 * (double)b / ((double)tokens / (double)ndocs)) : 0.0f;
  double product = (double)B * (double)(dl > ORACLE_CAP ? ORACLE_CAP : dl); /* 48 bits: exact */
  return (float)((double)A + product);
}

/* x >= 0 to an integer, halves to the even neighbour. */
static inline uint64_t oracle_round(float x) {
  double whole = floor((double)x), rest = (double)x - whole;
  uint64_t n = (uint64_t)whole;
  return rest > 0.5 || (rest == 0.5 && (n & 1)) ? n + 1 : n;
}

static inline uint32_t oracle_c(float W, float K, uint64_t tf) {
  double t = (double)(tf > ORACLE_CAP ? ORACLE_CAP : tf);
  float above = (float)((double)W * t), below = (float)(t + (double)K);
  uint64_t c = oracle_round((float)((double)above / (double)below));
  return c < 1 ? 1 : (uint32_t)c;
}

/* What a pair (tf, dl) with contribution c bounds: all (tf' <= tf, dl' >= dl). */
static uint64_t oracle_bound(uint32_t c) { return (uint64_t)c + (c >> 21) + 2; }

/* ---------------------------------------------------------------- queries */

typedef struct oracle_word {
  uint32_t term; /* or ORACLE_UNKNOWN */
  int negated;
} oracle_word;

typedef struct oracle_query {
  size_t n; /* words in order, repeats as they are */
  oracle_word word[ORACLE_MAX_WORDS];
} oracle_query;

/* The occurrences of a positive term at its first one; 0 at later ones and at negated ones. */
static inline uint32_t oracle_q(const oracle_query *q, size_t i) {
  uint32_t n = 0;
  size_t j;
  if (q->word[i].negated) return 0;
  for (j = 0; j < q->n; j++) {
    if (q->word[j].negated || q->word[j].term != q->word[i].term) continue;
    if (j < i) return 0;
    n++;
  }
  return n;
}

/* Sorts hits, which come in order of docIDs, by score descending: stable, a byte at a time. */
static inline void oracle_sort(oracle_hit *hits, oracle_hit *swap, size_t n) {
  unsigned shift;
  size_t i;
  for (shift = 0; shift < 32; shift += 8) {
    size_t count[257] = {0};
    for (i = 0; i < n; i++) count[255 - ((hits[i].score >> shift) & 255) + 1]++;
    for (i = 0; i < 256; i++) count[i + 1] += count[i];
    for (i = 0; i < n; i++) swap[count[255 - ((hits[i].score >> shift) & 255)]++] = hits[i];
    memcpy(hits, swap, n * sizeof *hits);
  }
}

/* Fills o->hits with the whole rankings of AND and of OR. Returns 0, or ORACLE_RANGE. */
static inline int oracle_run(oracle *o, const oracle_query *q, float k1, float b) {
  uint64_t sum = 0;
  unsigned need = 0;
  int unknown = 0;
  size_t i, p;
  uint32_t d;
  o->nhits[0] = o->nhits[1] = 0;
  if (o->ndocs) {
    memset(o->score, 0, o->ndocs * sizeof *o->score);
    memset(o->matched, 0, o->ndocs * sizeof *o->matched);
    memset(o->excluded, 0, o->ndocs * sizeof *o->excluded);
  }
  for (i = 0; i < q->n; i++) {
    uint32_t t = q->word[i].term, qtf = oracle_q(q, i);
    float W;
    if (!oracle_df(o, t)) t = ORACLE_UNKNOWN; /* a name that no document uses */
    if (q->word[i].negated) {
      if (t != ORACLE_UNKNOWN)
        for (p = o->inv_start[t]; p < o->inv_start[t + 1]; p++) o->excluded[o->inv[p].doc] = 1;
      continue;
    }
    if (t == ORACLE_UNKNOWN) unknown = 1;
    if (!qtf || t == ORACLE_UNKNOWN) continue;
    need++;
    W = oracle_weight(oracle_idf(o->ndocs, oracle_df(o, t)), k1);
    if (W >= 2147483648.0f) return ORACLE_RANGE;
    sum += qtf * oracle_bound((uint32_t)ceil((double)W));
    if (sum >= (uint64_t)1 << 32) return ORACLE_RANGE;
    for (p = o->inv_start[t]; p < o->inv_start[t + 1]; p++) {
      const oracle_posting *x = &o->inv[p];
      float K = oracle_norm(k1, b, o->tokens, o->ndocs, o->dl[x->doc]);
      o->score[x->doc] += (uint64_t)qtf * oracle_c(W, K, x->tf);
      o->matched[x->doc]++;
    }
  }
  for (d = 0; d < o->ndocs; d++) {
    oracle_hit h;
    if (!o->matched[d] || o->excluded[d]) continue;
    if (o->score[d] >> 32) abort(); /* the range rule above promises that a sum fits */
    h.docid = d;
    h.score = (uint32_t)o->score[d];
    o->hits[1][o->nhits[1]++] = h;
    if (o->matched[d] == need && !unknown) o->hits[0][o->nhits[0]++] = h;
  }
  oracle_sort(o->hits[0], o->swap, o->nhits[0]);
  oracle_sort(o->hits[1], o->swap, o->nhits[1]);
  return 0;
}

/* The ranking that a mode (0 AND, 1 OR, 2 AND+OR) answers for k. */
static inline const oracle_hit *oracle_answer(const oracle *o, int mode, size_t k, size_t *n) {
  int list = mode == 2 ? o->nhits[0] < k : mode;
  *n = o->nhits[list] < k ? o->nhits[list] : k;
  return o->hits[list];
}

#endif
