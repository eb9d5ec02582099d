/* 25_positions.c - positions: blocks read as their picture says, damaged ones, the collection's against its words,
 * analysis, lists given with positions, refusals */
#include "private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "alloc.h"
#include "rng.h"
#include "collection.h"

/* ---- blocks ---- */

/* One bit of the block; fails behind its end. */
static unsigned bit_of(const uint8_t *bytes, size_t len, uint64_t bit) {
  if (bit / 8 >= len) fail_msg("the block ends too early");
  return (unsigned)bytes[bit / 8] >> (bit % 8) & 1u;
}

/* Reads all gaps of a block from the picture, bit by bit; returns the bytes that it takes. */
static size_t naive_gaps(const uint8_t *bytes, size_t len, uint64_t total, uint32_t *gaps) {
  const uint64_t chunks = (total + 31) / 32;
  uint64_t at = chunks, i, j, k;
  for (i = 0; i < chunks; i++) {
    const uint64_t n = total - i * 32 < 32 ? total - i * 32 : 32;
    unsigned w;
    assert_true(i < len);
    w = bytes[i];
    assert_true(w <= 32);
    for (j = 0; j < n; j++) {
      gaps[i * 32 + j] = 0;
      for (k = 0; k < w; k++) gaps[i * 32 + j] |= bit_of(bytes, len, at * 8 + j * w + k) << k;
    }
    at += (n * w + 7) / 8;
  }
  return (size_t)at;
}

typedef struct block {
  uint32_t n, tfs[128], freqs[128], *positions, *gaps;
  uint64_t total;
} block;

/* A block of n postings: tf up to `most`, gaps of up to `width` bits. */
static void make_block(block *b, uint32_t n, uint32_t most, unsigned width) {
  uint32_t i, j;
  uint64_t at = 0;
  b->n = n;
  b->total = 0;
  for (i = 0; i < n; i++) {
    b->tfs[i] = 1 + below(below(4) ? 1 + most / 16 : most);
    b->freqs[i] = b->tfs[i] - 1;
    b->total += b->tfs[i];
  }
  b->positions = (uint32_t *)malloc((size_t)b->total * 4);
  b->gaps = (uint32_t *)malloc((size_t)b->total * 4);
  for (i = 0; i < n; i++) {
    uint64_t next = 0;
    for (j = 0; j < b->tfs[i]; j++) {
      uint64_t room = 0xfffffffeu - next - (b->tfs[i] - 1 - j); /* for the gap, so that all that follow fit */
      uint32_t gap = bits(below(8) ? 1 + below(width) : width);
      if (gap > room) gap = 0;
      b->gaps[at] = gap;
      b->positions[at++] = (uint32_t)(next + gap);
      next += (uint64_t)gap + 1;
    }
  }
}

static void free_block(block *b) {
  free(b->positions);
  free(b->gaps);
}

static gpuir__list list_of(const gpuir__buf *bytes) {
  gpuir__list l;
  memset(&l, 0, sizeof l);
  l.positions = bytes->data;
  l.positions_len = bytes->len;
  return l;
}

/* Posting i read alone, and some of its first positions only. */
static void check_posting(const block *b, const gpuir__list *l, uint32_t i, uint64_t at) {
  gpuir__positions p;
  gpuir__occurrences w;
  uint32_t j;
  gpuir__positions_open(&p, l, 0, b->freqs, b->n);
  gpuir__positions_find(&p, b->freqs, i, UINT32_MAX, &w);
  for (j = 0; j < b->tfs[i]; j++) assert_int_equal(gpuir__occurrences_next(&w), b->positions[at + j]);
  assert_int_equal(gpuir__occurrences_next(&w), GPUIR_END);
  assert_int_equal(gpuir__occurrences_next(&w), GPUIR_END);
}

/* All postings in order, of each a random number of positions, clamped to its document's length. */
static void check_walk(const block *b, const gpuir__list *l) {
  gpuir__positions p;
  uint64_t at = 0;
  uint32_t i, j;
  gpuir__positions_open(&p, l, 0, b->freqs, b->n);
  for (i = 0; i < b->n; i++) {
    const uint32_t length = below(3) ? UINT32_MAX : 1 + bits(20), n = below(2) ? b->tfs[i] : below(b->tfs[i] + 1);
    if (below(3)) {
      gpuir__occurrences w;
      while (!gpuir__positions_seek(&p, at)) {}
      gpuir__occurrences_open(&w, &p, at, b->freqs[i], length);
      for (j = 0; j < n; j++) {
        const uint32_t x = gpuir__occurrences_next(&w);
        if (b->positions[at + j] < length) assert_int_equal(x, b->positions[at + j]);
        else assert_int_equal(x, length - 1);
      }
    }
    at += b->tfs[i];
  }
}

static void test_blocks(void **state) {
  static const unsigned widths[] = {1, 3, 8, 17, 31, 32};
  static const uint32_t most[] = {1, 2, 40, 3000};
  const gpuir_allocator a = gpuir__allocator(NULL);
  unsigned w, t, times;
  (void)state;
  for (w = 0; w < 6; w++)
    for (t = 0; t < 4; t++)
      for (times = 0; times < 40; times++) {
        const uint32_t n = times == 0 ? 1 : times == 1 ? 128 : 1 + below(128);
        gpuir__buf out = {NULL, 0, 0};
        gpuir__positions p;
        gpuir__list l;
        uint32_t *gaps, i;
        uint64_t at = 0;
        block b;
        make_block(&b, n, most[t], widths[w]);
        assert_int_equal(gpuir__positions_encode(&a, &out, b.tfs, b.n, b.positions), 0);
        gaps = (uint32_t *)malloc((size_t)(b.total + 32) * 4);
        assert_int_equal(naive_gaps(out.data, out.len, b.total, gaps), out.len);
        assert_memory_equal(gaps, b.gaps, (size_t)b.total * 4);
        assert_non_null(gpuir__buf_room(&a, &out, GPUIR__STREAM_PAD));
        memset(out.data + out.len, 0xff, GPUIR__STREAM_PAD);
        l = list_of(&out);
        gpuir__positions_open(&p, &l, 0, b.freqs, b.n);
        assert_int_equal(gpuir__positions_size(&p, b.total), out.len);
        for (i = 0; i < b.n; at += b.tfs[i++])
          if (i % 17 == times % 17) check_posting(&b, &l, i, at);
        check_walk(&b, &l);
        free(gaps);
        free_block(&b);
        gpuir__buf_free(&a, &out);
      }
}

/* A posting so frequent that its end is not reached by one seek. */
/* Chunks of every width are summed up alike at all levels, also when their sums wrap. */
static void test_sums(void **state) {
  const int level = gpuir__simd_level(GPUIR_SIMD_AUTO);
  uint8_t bytes[4 * GPUIR__CHUNK + 64];
  uint32_t gaps[GPUIR__CHUNK], sums[GPUIR__CHUNK], i, prev;
  unsigned w, times;
  rng r;
  (void)state;
  r.s = 5;
  for (w = 0; w <= 32; w++)
    for (times = 0; times < 20; times++) {
      memset(bytes, 0xa5, sizeof bytes);
      for (i = 0; i < GPUIR__CHUNK; i++) gaps[i] = (uint32_t)rng_next(&r) & gpuir__low_bits(w);
      gpuir__pack(bytes, gaps, GPUIR__CHUNK, w);
      prev = times ? rng_below(&r, 1000) : UINT32_MAX;
      gpuir__chunk_sums_scalar(bytes, w, prev, sums);
      for (i = 0; i < GPUIR__CHUNK; i++) assert_int_equal(sums[i], (prev += gaps[i] + 1));
#if GPUIR__X86
      prev = times ? sums[0] - gaps[0] - 1 : UINT32_MAX;
      memset(gaps, 0, sizeof gaps);
      if (level >= GPUIR_SIMD_AVX2) {
        gpuir__chunk_sums_avx2(bytes, w, prev, gaps);
        assert_memory_equal(gaps, sums, sizeof sums);
      }
#endif
    }
  (void)level;
}

static void test_long_seek(void **state) {
  const gpuir_allocator a = gpuir__allocator(NULL);
  const uint32_t n = GPUIR__SKIP_CHUNKS * GPUIR__CHUNK * 2 + 77, tfs[2] = {n, 3};
  uint32_t freqs[2] = {n - 1, 2}, *positions = (uint32_t *)malloc((size_t)(n + 3) * 4), i, calls = 1;
  gpuir__buf out = {NULL, 0, 0};
  gpuir__positions p;
  gpuir__occurrences w;
  gpuir__list l;
  (void)state;
  for (i = 0; i < n; i++) positions[i] = 2 * i;
  for (i = 0; i < 3; i++) positions[n + i] = 100 * i + 7;
  assert_int_equal(gpuir__positions_encode(&a, &out, tfs, 2, positions), 0);
  assert_non_null(gpuir__buf_room(&a, &out, GPUIR__STREAM_PAD));
  l = list_of(&out);
  gpuir__positions_open(&p, &l, 0, freqs, 2);
  while (!gpuir__positions_seek(&p, n)) calls++;
  assert_int_equal(calls, 3);
  gpuir__occurrences_open(&w, &p, n, 2, 1000);
  for (i = 0; i < 3; i++) assert_int_equal(gpuir__occurrences_next(&w), positions[n + i]);
  assert_int_equal(gpuir__occurrences_next(&w), GPUIR_END);
  free(positions);
  gpuir__buf_free(&a, &out);
}

/* Bytes that no encoder wrote, in a heap block of their size and the padding: a sanitizer sees what is read beyond.
 * Every walk ends, and no position exceeds its document's length. */
static void test_damaged(void **state) {
  unsigned times;
  (void)state;
  for (times = 0; times < 20000; times++) {
    const size_t len = below(2) ? below(12) : below(300);
    uint8_t *bytes = (uint8_t *)malloc(len + GPUIR__STREAM_PAD);
    const uint32_t n = 1 + below(128), length = bits(below(32));
    uint32_t freqs[128], off[2], i;
    gpuir__list l;
    gpuir__positions p;
    uint64_t at = 0;
    memset(&l, 0, sizeof l);
    l.positions = bytes;
    l.positions_len = len;
    for (i = 0; i < len; i++) bytes[i] = below(2) ? (uint8_t)below(34) : (uint8_t)below(256);
    memset(bytes + len, 0, GPUIR__STREAM_PAD);
    off[0] = off[1] = below(4) ? below(1 + (uint32_t)len / 4) : rnd();
    if (below(2)) l.positions_off = off;
    for (i = 0; i < n; i++) freqs[i] = below(100) ? bits(1 + below(6)) : bits(32);
    gpuir__positions_open(&p, &l, 1, freqs, n);
    for (i = 0; i < n; i++) {
      gpuir__occurrences w;
      uint32_t x, before = 0, walked = 0;
      while (!gpuir__positions_seek(&p, at)) {}
      gpuir__occurrences_open(&w, &p, at, freqs[i], length);
      while ((x = gpuir__occurrences_next(&w)) != GPUIR_END) {
        assert_true(length ? x < length : x == 0);
        assert_true(x >= before);
        before = x;
        assert_true(++walked <= len * 32);
      }
      at += (uint64_t)freqs[i] + 1;
    }
    free(bytes);
  }
}

/* ---- the collection ---- */

typedef struct place {
  const char *word;
  uint32_t len, doc, at;
} place;

static int compare_places(const void *x, const void *y) {
  const place *a = (const place *)x, *b = (const place *)y;
  int c = memcmp(a->word, b->word, a->len < b->len ? a->len : b->len);
  if (!c) c = (int)a->len - (int)b->len;
  if (!c) c = a->doc < b->doc ? -1 : a->doc > b->doc;
  return c ? c : a->at < b->at ? -1 : a->at > b->at;
}

static place *places;
static size_t nplaces;

/* Where each word of each document stands, by its bytes. */
static int set_up_places(void **state) {
  uint32_t d;
  if (set_up(state)) return -1;
  places = (place *)malloc((size_t)ntokens * sizeof *places);
  for (d = 0; d < ndocs; d++) {
    const char *p = docs[d].text, *end = p + docs[d].len;
    uint32_t at = 0;
    docs[d].counted = 0;
    while (p < end) {
      const char *q = p;
      while (q < end && *q != ' ') q++;
      if (q > p) {
        places[nplaces].word = p;
        places[nplaces].len = (uint32_t)(q - p);
        places[nplaces].doc = d;
        places[nplaces++].at = at++;
      }
      p = q + (q < end);
    }
  }
  assert_int_equal(nplaces, ntokens);
  qsort(places, nplaces, sizeof *places, compare_places);
  return 0;
}

static int tear_down_places(void **state) {
  free(places);
  return tear_down(state);
}

/* Every term's positions, whole and under a cursor, held against the words. */
static void assert_places(const gpuir_index *ix) {
  uint32_t *positions = (uint32_t *)malloc((size_t)ntokens * 4);
  size_t at = 0;
  uint64_t id;
  gpuir_error err;
  for (id = 0; at < nplaces; id++) {
    gpuir_term_info t;
    gpuir_cursor *c;
    uint64_t i;
    assert_int_equal(gpuir_term_get_info(ix, id, &t), 0);
    assert_int_equal(t.term_len, places[at].len);
    assert_memory_equal(t.term, places[at].word, t.term_len);
    assert_int_equal(gpuir_term_positions(ix, id, positions, t.cf), 0);
    assert_int_equal(gpuir_term_positions(ix, id, positions, t.cf + 1), GPUIR_E_ARGUMENT);
    assert_int_equal(gpuir_cursor_open(ix, id, &c, &err), 0);
    for (i = 0; i < t.cf;) {
      uint32_t some[8], n = 99, j, cap = (uint32_t)(i % 9);
      assert_int_equal(gpuir_cursor_docid(c), places[at].doc);
      assert_int_equal(gpuir_cursor_positions(c, some, cap, &n), 0);
      assert_int_equal(n, gpuir_cursor_tf(c) < cap ? gpuir_cursor_tf(c) : cap);
      for (j = 0; j < gpuir_cursor_tf(c); j++, at++, i++) {
        assert_int_equal(places[at].doc, gpuir_cursor_docid(c));
        assert_int_equal(positions[i], places[at].at);
        if (j < n) assert_int_equal(some[j], places[at].at);
      }
      (void)gpuir_cursor_next(c);
    }
    assert_int_equal(gpuir_cursor_docid(c), GPUIR_END);
    gpuir_cursor_close(c);
  }
  free(positions);
}

static gpuir_index *open_verified(void) {
  gpuir_index *ix;
  gpuir_error err;
  if (gpuir_open(path, NULL, &ix, &err)) fail_msg("%s", err.msg);
  if (gpuir_verify(ix, &err)) fail_msg("%s", err.msg);
  return ix;
}

/* The same bytes whatever threads and memory; with little memory, spills cut document 1500. Then the same bytes from
 * the lists of that index. */
static void test_collection(void **state) {
  static const unsigned threads[] = {1, 2, 5};
  static const uint64_t memory[] = {1, 8, 512};
  char *first = NULL;
  size_t n = 0, i, j;
  gpuir_error err;
  gpuir_index *ix;
  gpuir_builder_desc like;
  char other[96];
  (void)state;
  for (i = 0; i < 3; i++)
    for (j = 0; j < 3; j++) {
      gpuir_builder_desc d = desc_of(path);
      gpuir_build_report r;
      d.threads = threads[i];
      d.memory = memory[j] << 20;
      d.positions = 1;
      if (build(&d, ndocs, &r, &err)) fail_msg("%s", err.msg);
      assert_int_equal(r.postings, nposts);
      assert_int_equal(r.tokens, ntokens);
      if (memory[j] == 1) assert_true(r.runs > threads[i] * 2);
      if (first) assert_same_file(path, first, n);
      else first = slurp(path, &n);
      assert_int_equal(nfiles(folder), 1);
    }
  ix = open_verified();
  assert_postings(ix);
  assert_places(ix);
  path_of(other, "y.gpuir");
  for (i = 0; i < 3; i++) {
    like = desc_of(other);
    like.like = ix;
    like.threads = threads[i];
    like.memory = memory[i] << 20;
    like.positions = 1;
    if (rebuild(&like, ix, NULL, &err)) fail_msg("%s", err.msg);
    assert_same_file(other, first, n);
  }
  (void)unlink(other);
  gpuir_close(ix);
  free(first);
}

/* Neither the lists nor what is found differs from an index without positions, in any codec. */
static void test_codecs(void **state) {
  static const char *const specs[] = {"vbyte", "bp128", "auto"};
  gpuir_error err;
  size_t i;
  (void)state;
  for (i = 0; i < 3; i++) {
    gpuir_builder_desc d = desc_of(path);
    gpuir_index_info with, without;
    gpuir_index *ix;
    d.codec = d.freq_codec = specs[i];
    if (build(&d, 3000, NULL, &err)) fail_msg("%s", err.msg);
    ix = open_verified();
    assert_int_equal(gpuir_index_get_info(ix, &without), 0);
    gpuir_close(ix);
    assert_false(without.has_positions);
    d.positions = 1;
    if (build(&d, 3000, NULL, &err)) fail_msg("%s", err.msg);
    ix = open_verified();
    assert_int_equal(gpuir_index_get_info(ix, &with), 0);
    assert_true(with.has_positions && with.positions_bytes > 0);
    assert_int_equal(with.docids_bytes, without.docids_bytes);
    assert_int_equal(with.freqs_bytes, without.freqs_bytes);
    assert_int_equal(with.terms, without.terms);
    gpuir_close(ix);
  }
}

/* One word a million times in one document, spilled many times; memory stays within its bound. */
static void test_frequent(void **state) {
  enum { TIMES = 1000000 };
  char *text = (char *)malloc(2 * (size_t)TIMES);
  uint32_t *positions = (uint32_t *)malloc((size_t)TIMES * 4), i;
  unsigned threads;
  gpuir_error err;
  (void)state;
  for (i = 0; i < TIMES; i++) memcpy(text + 2 * i, i % 1000 == 500 ? "b " : "a ", 2);
  for (threads = 1; threads < 3; threads++) {
    gpuir_builder_desc d = desc_of(path);
    gpuir_build_report r;
    gpuir_builder *b;
    gpuir_index *ix;
    uint32_t at = 0;
    d.positions = 1;
    d.threads = threads;
    assert_int_equal(gpuir_builder_create(&d, &b, &err), 0);
    assert_int_equal(gpuir_builder_add_text(b, NULL, "b a", 3, &err), 0);
    assert_int_equal(gpuir_builder_add_text(b, NULL, text, 2 * (size_t)TIMES, &err), 0);
    assert_int_equal(gpuir_builder_add_text(b, NULL, "b a", 3, &err), 0);
    if (gpuir_builder_write(b, &r, &err)) fail_msg("%s", err.msg);
    gpuir_builder_destroy(b);
    assert_true(r.runs > 1);
    assert_true(r.peak_memory < (3u << 20));
    ix = open_verified();
    assert_int_equal(gpuir_term_positions(ix, 0, positions, TIMES - TIMES / 1000 + 2), 0);
    assert_int_equal(positions[at++], 1);
    for (i = 0; i < TIMES; i++)
      if (i % 1000 != 500) assert_int_equal(positions[at++], i);
    assert_int_equal(positions[at], 1);
    gpuir_close(ix);
  }
  free(positions);
  free(text);
}

/* ---- what is counted ---- */

static void assert_word(const gpuir_index *ix, const char *word, const char *expected) {
  char got[200] = "";
  uint64_t id = 0;
  gpuir_cursor *c;
  gpuir_error err;
  if (gpuir_term_find(ix, word, strlen(word), &id)) fail_msg("no term %s", word);
  assert_int_equal(gpuir_cursor_open(ix, id, &c, &err), 0);
  for (; gpuir_cursor_docid(c) != GPUIR_END; (void)gpuir_cursor_next(c)) {
    uint32_t some[16], n, i;
    assert_int_equal(gpuir_cursor_positions(c, some, 16, &n), 0);
    (void)sprintf(got + strlen(got), "%s%u:", *got ? " " : "", gpuir_cursor_docid(c));
    for (i = 0; i < n; i++) (void)sprintf(got + strlen(got), "%s%u", i ? "," : "", some[i]);
  }
  assert_string_equal(got, expected);
  assert_int_equal(gpuir_cursor_positions(c, NULL, 0, &(uint32_t){0}), GPUIR_E_NOT_FOUND);
  gpuir_cursor_close(c);
}

/* Pairs of bytes, which overlap. */
static int bigrams(void *user, const char *text, size_t len, gpuir_token_fn emit, void *sink) {
  size_t i;
  int status = 0;
  (void)user;
  for (i = 0; i + 1 < len && !status; i++) status = emit(sink, text + i, 2);
  return status;
}

static gpuir_index *of_texts(gpuir_builder_desc *d, const char *const *texts, size_t n) {
  gpuir_open_desc od;
  gpuir_builder *b;
  gpuir_index *ix;
  gpuir_error err;
  size_t i;
  d->positions = 1;
  if (gpuir_builder_create(d, &b, &err)) fail_msg("%s", err.msg);
  for (i = 0; i < n; i++) assert_int_equal(gpuir_builder_add_text(b, NULL, texts[i], strlen(texts[i]), &err), 0);
  if (gpuir_builder_write(b, NULL, &err)) fail_msg("%s", err.msg);
  gpuir_builder_destroy(b);
  memset(&od, 0, sizeof od);
  od.tokenize = d->analyzer.tokenize;
  if (gpuir_open(path, &od, &ix, &err)) fail_msg("%s", err.msg);
  if (gpuir_verify(ix, &err)) fail_msg("%s", err.msg);
  return ix;
}

/* Stop words, dropped tokens and what is left of possessives have no positions, and no number is left out for them. */
static void test_ordinals(void **state) {
  char longest[600];
  const char *texts[3];
  gpuir_builder_desc d = desc_of(path);
  gpuir_index *ix;
  (void)state;
  memset(longest, 'x', sizeof longest);
  memcpy(longest, "state ", 6);
  memcpy(longest + 6 + 256, " of the ", 8);
  memcpy(longest + 6 + 256 + 8 + 255, " art", 5);
  texts[0] = longest; /* one token of 256 bytes, one of 255 */
  texts[1] = "";
  texts[2] = "The State of the art; THE ART of State";
  d.analyzer.stop = "english";
  ix = of_texts(&d, texts, 3);
  assert_word(ix, "state", "0:0 2:0,3");
  assert_word(ix, "art", "0:2 2:1,2");
  gpuir_close(ix);
  d = desc_of(path);
  d.analyzer.analyzer = "pairs";
  d.analyzer.tokenize = bigrams;
  texts[0] = "abab";
  ix = of_texts(&d, texts, 1);
  assert_word(ix, "ab", "0:0,2");
  assert_word(ix, "ba", "0:1");
  gpuir_close(ix);
#ifdef GPUIR_WITH_STEMMER
  d = desc_of(path);
  d.analyzer.stem = "english";
  texts[0] = "the king's horses' men";
  ix = of_texts(&d, texts, 1);
  assert_word(ix, "king", "0:1");
  assert_word(ix, "hors", "0:2");
  assert_word(ix, "men", "0:3");
  gpuir_close(ix);
#endif
#ifdef GPUIR_WITH_UTF8PROC
  d = desc_of(path);
  d.analyzer.analyzer = "unicode";
  texts[0] = "\xe6\x9d\xb1\xe4\xba\xac\xe3\x81\xae\xe4\xba\xac"; /* three Han characters, a Hiragana one third */
  ix = of_texts(&d, texts, 1);
  assert_word(ix, "\xe4\xba\xac", "0:1,3");
  assert_word(ix, "\xe3\x81\xae", "0:2");
  gpuir_close(ix);
#endif
}

/* ---- refusals ---- */

static void test_refusals(void **state) {
  const uint32_t docids[2] = {0, 1}, tfs[2] = {2, 1}, good[3] = {0, 4, 2};
  static const uint32_t wrong[][3] = {{4, 4, 2}, {4, 0, 2}, {0, 5, 2}, {0, 4, 3}, {0, 4, UINT32_MAX}};
  gpuir_builder_desc d = desc_of(path);
  gpuir_builder *b;
  gpuir_index *ix;
  gpuir_cursor *c;
  gpuir_error err;
  gpuir_term_freq term = {"a", 1, 1};
  uint32_t some[4], n;
  size_t i;
  (void)state;
  d.positions = 1;
  assert_int_equal(gpuir_builder_create(&d, &b, &err), 0);
  assert_int_equal(gpuir_builder_add_terms(b, NULL, &term, 1, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_builder_add_doc(b, NULL, 5, NULL, 0, &err), 0);
  assert_int_equal(gpuir_builder_add_doc(b, NULL, 3, NULL, 0, &err), 0);
  assert_int_equal(gpuir_builder_add_list(b, "a", 1, docids, tfs, NULL, 2, &err), GPUIR_E_ARGUMENT);
  for (i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_int_equal(gpuir_builder_add_list(b, "a", 1, docids, tfs, wrong[i], 2, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_builder_add_list(b, "a", 1, docids, tfs, good, 2, &err), 0);
  assert_int_equal(gpuir_builder_write(b, NULL, &err), 0);
  gpuir_builder_destroy(b);
  ix = open_verified();
  assert_word(ix, "a", "0:0,4 1:2");
  assert_int_equal(gpuir_term_positions(ix, 1, some, 1), GPUIR_E_NOT_FOUND);
  assert_int_equal(gpuir_term_positions(NULL, 0, some, 1), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_term_positions(ix, 0, NULL, 3), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_cursor_open(ix, 0, &c, &err), 0);
  assert_int_equal(gpuir_cursor_positions(c, NULL, 1, &n), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_cursor_positions(c, some, 1, NULL), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_cursor_positions(NULL, some, 1, &n), GPUIR_E_ARGUMENT);
  gpuir_cursor_close(c);
  gpuir_close(ix);
  d.positions = 0;
  assert_int_equal(gpuir_builder_create(&d, &b, &err), 0);
  assert_int_equal(gpuir_builder_add_doc(b, NULL, 5, NULL, 0, &err), 0);
  assert_int_equal(gpuir_builder_add_list(b, "a", 1, docids, tfs, good, 1, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_builder_add_list(b, "a", 1, docids, tfs, NULL, 1, &err), 0);
  assert_int_equal(gpuir_builder_write(b, NULL, &err), 0);
  gpuir_builder_destroy(b);
  ix = open_verified();
  assert_int_equal(gpuir_term_positions(ix, 0, some, 2), GPUIR_E_UNSUPPORTED);
  assert_int_equal(gpuir_cursor_open(ix, 0, &c, &err), 0);
  assert_int_equal(gpuir_cursor_positions(c, some, 4, &n), GPUIR_E_UNSUPPORTED);
  gpuir_cursor_close(c);
  gpuir_close(ix);
}

/* An index with positions of nothing still says so. */
static void test_empty(void **state) {
  gpuir_builder_desc d = desc_of(path);
  gpuir_index_info info;
  gpuir_error err;
  gpuir_index *ix;
  (void)state;
  d.positions = 1;
  if (build(&d, 0, NULL, &err)) fail_msg("%s", err.msg);
  ix = open_verified();
  assert_int_equal(gpuir_index_get_info(ix, &info), 0);
  assert_true(info.has_positions);
  assert_int_equal(info.positions_bytes, 0);
  gpuir_close(ix);
}

/* Damage within the positions that its checksum does not show, since it was made to fit: verify finds it, and reading
 * them fails or gives positions within the documents. */
static void test_verify(void **state) {
  gpuir_builder_desc d = desc_of(path);
  unsigned times, found = 0;
  uint64_t at, len;
  size_t n = 0;
  char *bytes;
  gpuir_error err;
  gpuir_index *ix;
  (void)state;
  d.positions = 1;
  if (build(&d, 300, NULL, &err)) fail_msg("%s", err.msg);
  ix = open_verified();
  at = gpuir__only(ix)->section[GPUIR__S_POSITIONS]->offset;
  len = gpuir__only(ix)->section[GPUIR__S_POSITIONS]->length;
  gpuir_close(ix);
  bytes = slurp(path, &n);
  for (times = 0; times < 300; times++) {
    uint64_t *copy = (uint64_t *)malloc(n), where = at + rng_next(&rng_shared) % len, id;
    gpuir__header *h = (gpuir__header *)copy;
    gpuir__section *table = (gpuir__section *)(void *)((char *)copy + sizeof *h);
    gpuir_open_desc od;
    uint32_t *positions = (uint32_t *)malloc((size_t)ntokens * 4), s;
    memcpy(copy, bytes, n);
    ((uint8_t *)copy)[where] ^= (uint8_t)(1u << below(8));
    for (s = 0; s < h->sections; s++)
      table[s].hash = XXH3_64bits((char *)copy + table[s].offset, (size_t)table[s].length);
    h->table_hash = XXH3_64bits(table, h->sections * sizeof *table);
    h->hash = XXH3_64bits(h, offsetof(gpuir__header, hash));
    memset(&od, 0, sizeof od);
    od.data = copy;
    od.size = n;
    assert_int_equal(gpuir_open(NULL, &od, &ix, &err), 0);
    found += gpuir_verify(ix, &err) == GPUIR_E_FORMAT;
    for (id = 0; id < gpuir__only(ix)->stat.terms; id++) {
      gpuir_term_info t;
      int status;
      assert_int_equal(gpuir_term_get_info(ix, id, &t), 0);
      status = gpuir_term_positions(ix, id, positions, t.cf);
      assert_true(!status || status == GPUIR_E_FORMAT);
    }
    gpuir_close(ix);
    free(positions);
    free(copy);
  }
  assert_true(found > 20); /* others name other positions that may be */
  free(bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_blocks),
      cmocka_unit_test(test_long_seek),
      cmocka_unit_test(test_damaged),
      cmocka_unit_test(test_ordinals),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_empty),
      cmocka_unit_test(test_verify),
      cmocka_unit_test(test_codecs),
      cmocka_unit_test(test_collection),
      cmocka_unit_test(test_frequent),
      cmocka_unit_test(test_sums),
  };
  return cmocka_run_group_tests_name("25_positions", tests, set_up_places, tear_down_places);
}
