/* corpus.h - collections, indexes and queries for the tests; include after gpuir.h and oracle.h
 *
 * Everything is made from numbered seeds, so that a failure repeats. Term number t of an oracle
 * is called "w<t>" unless a collection says otherwise: the ascii analyzer keeps such words whole. */
#ifndef CORPUS_H
#define CORPUS_H

#include <errno.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "folder.h"
#include "rng.h"

static inline int corpus_long_run(void) {
  const char *v = getenv("GPUIR_LONG");
  return v && *v && strcmp(v, "0") != 0;
}

/* ---------------------------------------------------------------- a folder for the test's files */

static char corpus_dir[4096];

static inline void corpus_remove_dir(void) {
  if (*corpus_dir) (void)folder_remove(corpus_dir);
  *corpus_dir = 0;
}

/* The path of a file in a folder that the process removes when it ends normally. */
static inline const char *corpus_path(char *out, size_t cap, const char *name) {
  if (!*corpus_dir) {
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(corpus_dir, sizeof corpus_dir, "%s/gpuir-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(corpus_dir)) {
      perror(corpus_dir);
      exit(2);
    }
    (void)chmod(corpus_dir, 0755);
    (void)atexit(corpus_remove_dir);
  }
  (void)snprintf(out, cap, "%s/%s", corpus_dir, name);
  return out;
}

/* ---------------------------------------------------------------- collections */

/* Makes terms w0 .. w(n-1), in this order. */
static inline void corpus_words(oracle *o, uint32_t n) {
  uint32_t t;
  char s[32];
  for (t = 0; t < n; t++) {
    int len = snprintf(s, sizeof s, "w%u", (unsigned)t);
    (void)oracle_term(o, s, (size_t)len);
  }
}

static inline uint32_t corpus_word(oracle *o, const char *format, ...) {
  char s[64];
  va_list ap;
  va_start(ap, format);
  (void)vsnprintf(s, sizeof s, format, ap);
  va_end(ap);
  return oracle_term(o, s, strlen(s));
}

/* Zipf-like terms; runs of documents share a topic, so that lists cluster. */
static inline void corpus_zipf(oracle *o, uint32_t ndocs, uint32_t vocabulary, uint32_t mean, uint64_t seed) {
  rng r;
  uint32_t d, i;
  r.s = seed;
  oracle_init(o);
  corpus_words(o, vocabulary);
  for (d = 0; d < ndocs; d++) {
    uint32_t topic = (d / 600) * 2654435761u, n = 1 + rng_below(&r, mean * 2 - 1);
    if (rng_below(&r, 50) == 0) n *= 6;
    for (i = 0; i < n; i++) {
      double u = rng_unit(&r);
      uint32_t t = (uint32_t)(pow((double)vocabulary, u) - 1.0);
      if (rng_below(&r, 3) == 0) t = (topic + t * 2246822519u) % vocabulary;
      oracle_add(o, t < vocabulary ? t : vocabulary - 1, 1 + (rng_below(&r, 8) == 0 ? rng_below(&r, 5) : 0));
    }
    oracle_doc(o);
  }
  oracle_invert(o);
}

/* Documents of a few kinds only: ties everywhere. classes = 1: all are the same. */
static inline void corpus_classes(oracle *o, uint32_t ndocs, uint32_t classes, uint64_t seed) {
  rng r;
  uint32_t d, i;
  r.s = seed;
  oracle_init(o);
  corpus_words(o, 12);
  for (d = 0; d < ndocs; d++) {
    uint32_t kind = classes == 1 ? 0 : rng_below(&r, classes);
    for (i = 0; i < 4; i++) oracle_add(o, (kind * (i + 1) + i * 3) % 12, 1 + (kind + i) % 3);
    oracle_doc(o);
  }
  oracle_invert(o);
}

/* Terms of chosen document frequencies, each spread, in a run at the start, in a run at the end
 * and with a stride: d<df>s, d<df>a, d<df>z, d<df>t. */
static inline void corpus_df(oracle *o, uint32_t ndocs, uint64_t seed) {
  static const uint32_t wanted[] = {1, 2, 3, 31, 32, 33, 63, 64, 65, 126, 127, 128, 129, 255, 256, 257, 383, 384, 385,
      511, 512, 513, 640, 641, 767, 896, 1024, 1025, 2047, 2048, 2049, 4095, 4096, 4097};
  enum { WANTED = sizeof wanted / sizeof *wanted };
  uint32_t d, i, left[WANTED], df[WANTED];
  rng r;
  r.s = seed;
  oracle_init(o);
  for (i = 0; i < WANTED; i++) left[i] = df[i] = wanted[i] < ndocs ? wanted[i] : ndocs;
  for (d = 0; d < ndocs; d++) {
    for (i = 0; i < WANTED; i++) {
      uint32_t tf = 1 + (rng_below(&r, 6) == 0 ? rng_below(&r, 300) : 0), stride = ndocs / df[i];
      if (rng_below(&r, ndocs - d) < left[i]) {
        left[i]--;
        oracle_add(o, corpus_word(o, "d%us", wanted[i]), tf);
      }
      if (d < df[i]) oracle_add(o, corpus_word(o, "d%ua", wanted[i]), 1 + d % 4);
      if (d >= ndocs - df[i]) oracle_add(o, corpus_word(o, "d%uz", wanted[i]), 1 + (d & 1));
      if (d % stride == 0 && d / stride < df[i]) oracle_add(o, corpus_word(o, "d%ut", wanted[i]), tf);
    }
    oracle_add(o, corpus_word(o, "every"), 1 + rng_below(&r, 3));
    if (d) oracle_add(o, corpus_word(o, "butfirst"), 1);
    if (d + 1 < ndocs) oracle_add(o, corpus_word(o, "butlast"), 1);
    oracle_doc(o);
  }
  oracle_invert(o);
}

/* Frequencies and lengths around 2^24 - 1 and around the last bound code, 507,904. */
static inline void corpus_huge(oracle *o, uint32_t ndocs, uint64_t seed) {
  static const uint32_t at[] = {1, 31, 32, 33, 507903, 507904, 507905, 1 << 20, 16777213, 16777214, 16777215, 16777216,
      16777217, 33554432};
  rng r;
  uint32_t d, t;
  r.s = seed;
  oracle_init(o);
  corpus_words(o, 6);
  for (d = 0; d < ndocs; d++) {
    for (t = 0; t < 6; t++) {
      uint32_t kind = rng_below(&r, 6);
      if (t && rng_below(&r, t + 1)) continue;
      if (kind == 0) oracle_add(o, t, at[rng_below(&r, 14)]);
      else if (kind == 1) oracle_add(o, t, 1 + rng_below(&r, 1u << (1 + rng_below(&r, 25))));
      else oracle_add(o, t, 1 + rng_below(&r, 20));
    }
    oracle_doc(o);
  }
  oracle_invert(o);
}

/* Frequencies so large that W * tf / (tf + K) saturates: rounding alone decides the order. */
static inline void corpus_saturated(oracle *o, uint32_t ndocs, uint64_t seed) {
  rng r;
  uint32_t d;
  r.s = seed;
  oracle_init(o);
  corpus_words(o, 4);
  for (d = 0; d < ndocs; d++) {
    if (d % 2 == 0) oracle_add(o, 0, (1u << 20) + rng_below(&r, 15u << 20));
    if (d % 3 == 0) oracle_add(o, 1, 1000 + rng_below(&r, 1000));
    if (d % 5 < 2) oracle_add(o, 2, 400000 + rng_below(&r, 200000));
    oracle_add(o, 3, 1 + rng_below(&r, 1000000));
    oracle_doc(o);
  }
  oracle_invert(o);
}

/* Whole tiles and one document more. Lists that begin, end or lie only at the tiles' borders, and lists of all
 * densities, some with rare high frequencies. */
static inline void corpus_tiles(oracle *o, uint32_t tiles, uint32_t tile, uint32_t whole, uint64_t seed) {
  const uint32_t ndocs = tiles * tile + 1;
  rng r;
  uint32_t d;
  r.s = seed;
  oracle_init(o);
  corpus_words(o, 14);
  for (d = 0; d < ndocs; d++) {
    uint32_t near = (d + 2) % tile, rare = rng_below(&r, 40) ? 1 + rng_below(&r, 2) : 5 + rng_below(&r, 30);
    if (near < 4) oracle_add(o, 0, 1 + near);
    if (near == 1) oracle_add(o, 1, 9);
    if (d < tile) oracle_add(o, 2, rare);
    if (d >= tile - 64 && d < 2 * tile + 64) oracle_add(o, 3, rare);
    if (d >= ndocs - tile - 1) oracle_add(o, 4, 1 + d % 3);
    if (d % 2 && d > tile / 2 && d < 2 * tile + tile / 2) oracle_add(o, 5, rare);
    if (d % 3 == 0) oracle_add(o, 6, rare);
    if (rng_below(&r, 10) < 3) oracle_add(o, 7, rare);
    if (rng_below(&r, 10) < 6) oracle_add(o, 8, 1 + rng_below(&r, 3));
    if (d >= 5 && d < 5 + whole) oracle_add(o, 9, rare);
    if (d >= 7 && d < 8 + whole) oracle_add(o, 10, rare);
    if (d + 1 == ndocs || near == 2) oracle_add(o, 11, 3);
    oracle_add(o, 12, 1);
    if (d % 5) oracle_add(o, 13, 1 + rng_below(&r, d % 7 ? 20 : 200)); /* lengths */
    oracle_doc(o);
  }
  oracle_invert(o);
}

/* Scores that rise, fall, or peak only beside multiples of powers of two. */
static inline void corpus_ramps(oracle *o, uint32_t ndocs, uint64_t seed) {
  rng r;
  uint32_t d;
  r.s = seed;
  oracle_init(o);
  corpus_words(o, 8);
  for (d = 0; d < ndocs; d++) {
    uint32_t near = (d + 1) & 4095;
    if (d % 2 == 0) oracle_add(o, 0, 1 + d / (ndocs / 40 + 1));
    if (d % 3 == 0) oracle_add(o, 1, 1 + (ndocs - d) / (ndocs / 40 + 1));
    if (d % 2 == 1 || near < 3) oracle_add(o, 2, near < 3 ? 7 : 1);
    if (rng_below(&r, 10) == 0) oracle_add(o, 3, 1 + rng_below(&r, 3));
    if (d % 1000 == 999) oracle_add(o, 4, 2);
    if (d == 0 || d + 1 == ndocs || d == ndocs / 2) oracle_add(o, 5, 3);
    if (rng_below(&r, 3)) oracle_add(o, 6, 1);
    if (d > ndocs - 300) oracle_add(o, 7, 1);
    oracle_doc(o);
  }
  oracle_invert(o);
}

/* Rare terms beside frequent ones: each block of the first two reaches over 13 blocks of the third, and one over 51
 * of the fourth. What ranks best stands late in such a stretch of documents: first by the rare term, in the last two
 * stretches by the frequent one. */
static inline void corpus_stretches(oracle *o, uint32_t stretches) {
  const uint32_t stretch = 128 * 512;
  uint32_t d;
  oracle_init(o);
  corpus_words(o, 5);
  for (d = 0; d < stretches * stretch; d++) {
    uint32_t s = d / stretch, best = d % stretch >= 49152 && d % stretch < 49152 + 2560;
    uint32_t rare = s + 2 < stretches ? 5 : 3, frequent = s + 2 < stretches ? 2 : 12;
    if (d % 512 == 0) oracle_add(o, 0, best ? rare : 1 + d / 512 % 2);
    if (d % 512 == 0) oracle_add(o, 1, 1 + d / 512 % 2);
    if (d % 40 == 0) oracle_add(o, 2, best ? frequent : 1);
    if (d % (s + 2 == stretches ? 10 : 2560) == 0) oracle_add(o, 3, best ? frequent : 1);
    oracle_add(o, 4, 40); /* lengths are alike */
    oracle_doc(o);
  }
  oracle_invert(o);
}

/* Mostly empty documents: wide gaps. */
static inline void corpus_sparse(oracle *o, uint32_t ndocs, uint64_t seed) {
  rng r;
  uint32_t d;
  r.s = seed;
  oracle_init(o);
  corpus_words(o, 8);
  for (d = 0; d < ndocs; d++) {
    uint32_t x = rng_below(&r, 40000);
    if (x < 8) oracle_add(o, x, 1 + rng_below(&r, 4));
    if (x < 2) oracle_add(o, 2 + rng_below(&r, 6), 1);
    if (d % 50021 < 180) oracle_add(o, 7, 2);
    if (d % 997 == 0) oracle_add(o, 6, 1);
    oracle_doc(o);
  }
  oracle_invert(o);
}

/* ---------------------------------------------------------------- indexes */

typedef struct corpus_build {
  const char *codec, *freq_codec;
  int custom_bm25;
  float k1, b;
  uint64_t memory;
  unsigned threads;
  int dense;
} corpus_build;

static inline int corpus_write_part(const oracle *o, uint32_t from_doc, uint32_t to_doc, const char *path,
    const corpus_build *how, gpuir_error *err) {
  gpuir_builder_desc desc;
  gpuir_builder *builder;
  gpuir_term_freq *terms = NULL;
  size_t cap = 0, i;
  uint32_t d;
  int status;
  memset(&desc, 0, sizeof desc);
  desc.path = path;
  if (how) {
    desc.codec = how->codec;
    desc.freq_codec = how->freq_codec;
    desc.custom_bm25 = how->custom_bm25;
    desc.k1 = how->k1;
    desc.b = how->b;
    desc.dense = how->dense;
    desc.memory = how->memory;
    desc.threads = how->threads;
  }
  status = gpuir_builder_create(&desc, &builder, err);
  if (status) return status;
  for (d = from_doc; d < to_doc && !status; d++) {
    size_t from = o->doc_start[d], n = o->doc_start[d + 1] - from;
    if (n > cap) {
      cap = n * 2;
      terms = (gpuir_term_freq *)oracle_grow(terms, cap, sizeof *terms);
    }
    for (i = 0; i < n; i++) { /* backwards: the order within a document is free */
      const char *name = o->name[o->post[from + n - 1 - i].term];
      terms[i].term = name;
      terms[i].len = strlen(name);
      terms[i].tf = o->post[from + n - 1 - i].tf;
    }
    status = gpuir_builder_add_terms(builder, NULL, terms, n, err);
  }
  if (!status) status = gpuir_builder_write(builder, NULL, err);
  gpuir_builder_destroy(builder);
  free(terms);
  return status;
}

/* All documents. */
static inline int corpus_write(const oracle *o, const char *path, const corpus_build *how, gpuir_error *err) {
  return corpus_write_part(o, 0, o->ndocs, path, how, err);
}

/* ---------------------------------------------------------------- queries */

/* A query of n words: from one document, or any; some repeated, unknown or negated. */
static inline void corpus_query(const oracle *o, rng *r, size_t n, int odd, oracle_query *q) {
  size_t i, from = 0, here = 0;
  if (o->ndocs && rng_below(r, 3)) {
    uint32_t d = rng_below(r, o->ndocs);
    from = o->doc_start[d];
    here = o->doc_start[d + 1] - from;
  }
  q->n = 0;
  for (i = 0; i < n; i++) {
    oracle_word *w = &q->word[q->n++];
    w->negated = 0;
    if (i && odd && rng_below(r, 6) == 0) *w = q->word[rng_below(r, (uint32_t)i)];
    else if (odd && rng_below(r, 16) == 0) w->term = ORACLE_UNKNOWN;
    else if (here && rng_below(r, 8)) w->term = o->post[from + rng_below(r, (uint32_t)here)].term;
    else if (o->npost && rng_below(r, 2)) w->term = o->post[rng_below(r, (uint32_t)o->npost)].term;
    else w->term = o->nterms ? rng_below(r, o->nterms) : ORACLE_UNKNOWN;
    if (i && odd && rng_below(r, 7) == 0) w->negated = 1;
  }
  q->word[0].negated = 0;
}

/* Its text. Unknown words differ from each other. Returns the length. */
static inline size_t corpus_text(const oracle *o, const oracle_query *q, char *out, size_t cap) {
  static const char *const space[] = {" ", "  ", "\t", " \n ", "\r\n"};
  size_t i, n = 0;
  for (i = 0; i < q->n && n + 300 < cap; i++) {
    const char *minus = q->word[i].negated ? "-" : "", *gap = i ? space[(i * 7 + q->n) % 5] : "";
    int len;
    if (q->word[i].term == ORACLE_UNKNOWN) len = snprintf(out + n, cap - n, "%s%sunknown%u", gap, minus, (unsigned)i);
    else len = snprintf(out + n, cap - n, "%s%s%s", gap, minus, o->name[q->word[i].term]);
    n += (size_t)len;
  }
  out[n] = 0;
  return n;
}

#endif
