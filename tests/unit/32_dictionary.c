/* 32_dictionary.c - the dictionary equals a naive reading of its bytes; every term is found, and where others would
 * be; damaged ones lead nowhere */
#include "private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "naive.h"
#include "rng.h"

enum { PADDING = 64 };

/* Terms with their records, and the dictionary made of them. */
typedef struct made {
  uint64_t n, documents;
  uint8_t *text; /* [term][256] */
  uint8_t *len;
  gpuir__record *records;
  gpuir__dict d;
  uint8_t *bytes; /* the sections: each ends with padding */
  gpuir__dict_page *pages;
  uint16_t *starts;
  uint64_t *keys;
} made;

static const uint8_t *term_of(const made *m, uint64_t i) { return m->text + 256 * i; }

static int compare_terms(const void *x, const void *y) {
  const uint8_t *a = (const uint8_t *)x, *b = (const uint8_t *)y; /* a length, then bytes */
  return gpuir__compare_bytes(a + 1, a[0], b + 1, b[0]);
}

/* Sorts n terms of 256 bytes each, a length before them; returns how many differ. */
static uint64_t sort_terms(uint8_t *terms, uint64_t n) {
  uint64_t i, to = 0;
  qsort(terms, (size_t)n, 256, compare_terms);
  for (i = 0; i < n; i++)
    if (!to || compare_terms(terms + 256 * (to - 1), terms + 256 * i))
      memmove(terms + 256 * to++, terms + 256 * i, 256);
  return to;
}

static void *room(uint64_t n) {
  void *p = calloc((size_t)n + PADDING, 1);
  assert_non_null(p);
  return p;
}

/* A record of a list of any kind; what it may hold at most, often. */
static gpuir__record any_record(uint64_t documents, int mixed, int positions) {
  gpuir__record r;
  memset(&r, 0, sizeof r);
  if (positions) r.positions_len = bits(below(33)) | (uint64_t)(below(8) ? 0 : bits(16)) << 32;
  switch (below(8)) {
  case 0: r.df = 128 + bits(1 + below(32)) % (UINT32_MAX - 127); break;
  case 1:
  case 2:
  case 3: r.df = 2 + below(126); break;
  default: r.df = 1;
  }
  if (r.df == 1) {
    r.docs = below((uint32_t)documents);
    r.freqs = below(2) ? 1 : 1 + (uint64_t)bits(1 + below(32)) % UINT32_MAX;
    return r;
  }
  r.codec = (uint8_t)(mixed ? 1 + below(15) : 2);
  r.freq_codec = (uint8_t)(mixed ? 1 + below(15) : 2);
  if (r.df > GPUIR__SHORT_MAX) return r;
  r.docs_len = 1 + bits(below(17));
  r.freqs_len = 1 + bits(below(17));
  if (r.docs_len > 65535) r.docs_len = 65535;
  if (r.freqs_len > 65535) r.freqs_len = 65535;
  return r;
}

/* Makes a dictionary of n sorted terms, each of 256 bytes with its length in front. The records' places become those
 * that they get. */
static void make(made *m, const uint8_t *terms, uint64_t n, uint64_t documents, int mixed, int positions) {
  gpuir__dict_terms *t = (gpuir__dict_terms *)room(sizeof *t);
  gpuir__dict_page page, now;
  uint8_t out[GPUIR__DICT_MOST + 8];
  uint64_t i, size = 0, cap = 0, docs = 0, freqs = 0, longs = 0, places = 0;
  unsigned depth;
  memset(m, 0, sizeof *m);
  memset(&now, 0, sizeof now);
  page = now;
  m->n = n;
  m->documents = documents;
  m->text = (uint8_t *)room(n * 256);
  m->len = (uint8_t *)room(n);
  m->records = (gpuir__record *)room(n * sizeof *m->records);
  m->pages = (gpuir__dict_page *)room((n / 256 + 1) * sizeof *m->pages);
  m->starts = (uint16_t *)room((n / 16 + 1) * sizeof *m->starts);
  gpuir__dict_shape(&m->d, n);
  m->d.form = gpuir__dict_form_of(documents, positions);
  for (i = 0; i < n; i++) {
    gpuir__record r = any_record(documents, mixed, positions);
    m->len[i] = terms[256 * i];
    memcpy(m->text + 256 * i, terms + 256 * i + 1, 255);
    gpuir__dict_add(t, term_of(m, i), m->len[i], &r);
    if (r.df > GPUIR__SHORT_MAX) {
      r.docs = longs++;
    } else if (r.df > 1) {
      r.docs = docs;
      r.freqs = freqs;
      docs += r.docs_len;
      freqs += r.freqs_len;
    }
    if (positions) r.positions = places;
    places += r.positions_len;
    m->records[i] = r;
    if (t->n < GPUIR__DICT_BLOCK && i + 1 < n) continue;
    if (i / 256 * 16 == i / 16) page = m->pages[i / 256] = now;
    m->starts[i / 16] = (uint16_t)(now.start - page.start);
    assert_int_equal(page.start + m->starts[i / 16], now.start);
    {
      const size_t more = gpuir__dict_encode(t, &m->d.form, &page, &now, out);
      assert_true(more <= GPUIR__DICT_MOST);
      if (size + more + PADDING > cap) {
        cap = 2 * (size + more + PADDING);
        m->bytes = (uint8_t *)realloc(m->bytes, (size_t)cap);
        assert_non_null(m->bytes);
      }
      memcpy(m->bytes + size, out, more);
      size += more;
    }
    t->n = 0;
    t->fill = 0;
  }
  free(t);
  m->bytes = (uint8_t *)realloc(m->bytes, (size_t)size + PADDING); /* so that a sanitizer sees what is read behind */
  assert_non_null(m->bytes);
  memset(m->bytes + size, 0, PADDING);
  m->keys = (uint64_t *)room(gpuir__dict_nodes(n) * 128);
  m->d.bytes = m->bytes;
  m->d.size = size;
  m->d.pages = m->pages;
  m->d.starts = m->starts;
  m->d.keys = m->keys;
  for (depth = 0, i = 0; depth < m->d.levels; depth++) {
    uint64_t node;
    for (node = 0; node < m->d.level[depth]; node++, i += 16) gpuir__dict_node(&m->d, depth, node, m->keys + i);
  }
  assert_int_equal(i, gpuir__dict_nodes(n) * 16);
}

static void unmake(made *m) {
  free(m->text);
  free(m->len);
  free(m->records);
  free(m->bytes);
  free(m->pages);
  free(m->starts);
  free(m->keys);
}

static void assert_record(const gpuir__record *r, const gpuir__record *want) {
  assert_int_equal(r->df, want->df);
  assert_int_equal(r->docs, want->docs);
  assert_int_equal(r->freqs, want->freqs);
  assert_int_equal(r->docs_len, want->docs_len);
  assert_int_equal(r->freqs_len, want->freqs_len);
  assert_int_equal(r->codec, want->codec);
  assert_int_equal(r->freq_codec, want->freq_codec);
  assert_int_equal(r->positions, want->positions);
  assert_int_equal(r->positions_len, want->positions_len);
}

static void assert_naive_term(void *user, uint64_t id, const naive_term *t) {
  const made *m = (const made *)user;
  const gpuir__record *r = &m->records[id];
  assert_int_equal(t->len, m->len[id]);
  assert_memory_equal(t->text, term_of(m, id), t->len);
  assert_int_equal(t->df, r->df);
  assert_int_equal(t->docs_len, r->docs_len);
  assert_int_equal(t->freqs_len, r->freqs_len);
  assert_int_equal(t->codec, r->codec);
  assert_int_equal(t->freq_codec, r->freq_codec);
  assert_int_equal(t->positions, r->positions);
  assert_int_equal(t->positions_len, r->positions_len);
  assert_int_equal(r->df == 1 ? t->docid : r->df <= 127 ? t->docs : t->number, r->docs);
  assert_int_equal(r->df == 1 ? t->tf : t->freqs, r->freqs);
}

/* Adds up the terms and records that are other ones. */
static uint64_t others;
static void count_others(void *user, uint64_t id, const naive_term *t) {
  const made *m = (const made *)user;
  const gpuir__record *r = &m->records[id];
  others += t->len != m->len[id] || memcmp(t->text, term_of(m, id), t->len) || t->df != r->df ||
      t->docs_len != r->docs_len || t->freqs_len != r->freqs_len || t->codec != r->codec ||
      t->freq_codec != r->freq_codec || t->positions != r->positions || t->positions_len != r->positions_len ||
      (r->df == 1            ? t->docid
              : r->df <= 127 ? t->docs
                             : t->number) != r->docs ||
      (r->df == 1 ? t->tf : t->freqs) != r->freqs;
}

/* What is wrong with the dictionary by the naive reading, or NULL. */
static const char *read_naively(const made *m, naive_term_fn emit) {
  naive_dictionary x;
  memset(&x, 0, sizeof x);
  x.blocks = m->bytes;
  x.blocks_len = m->d.size;
  x.pages = (const uint8_t *)m->pages;
  x.pages_len = (m->n + 255) / 256 * 40;
  x.starts = (const uint8_t *)m->starts;
  x.starts_len = (m->n + 15) / 16 * 2;
  x.keys = (const uint8_t *)m->keys;
  x.keys_len = gpuir__dict_nodes(m->n) * 128;
  x.terms = m->n;
  x.documents = m->documents;
  x.positions = m->d.form.positions;
  return naive_dictionary_read(&x, emit, (void *)(uintptr_t)m);
}

/* How many terms are less than q. */
static uint64_t rank_of(const made *m, const uint8_t *q, size_t n, int *found) {
  uint64_t lo = 0, hi = m->n;
  *found = 0;
  while (lo < hi) {
    const uint64_t mid = lo + (hi - lo) / 2;
    const int c = gpuir__compare_bytes(term_of(m, mid), m->len[mid], q, n);
    *found |= c == 0;
    if (c < 0) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

static void assert_find(const made *m, const uint8_t *q, size_t n) {
  int found, want;
  const uint64_t rank = rank_of(m, q, n, &want);
  gpuir__dict d = m->d;
  for (d.simd = GPUIR_SIMD_SCALAR; d.simd <= gpuir__simd_level(GPUIR_SIMD_AVX2); d.simd++) {
    assert_int_equal(gpuir__dict_find(&d, q, n, &found), rank);
    assert_int_equal(found, want);
  }
}

/* Looks a string up where nothing stands before and behind it. */
static void assert_find_alone(const made *m, const uint8_t *q, size_t n) {
  uint8_t *alone = (uint8_t *)malloc(n ? n : 1);
  assert_non_null(alone);
  memcpy(alone, q, n);
  assert_find(m, alone, n);
  free(alone);
}

/* Looks a term up, and strings near it: shorter, longer, a byte more or less somewhere. */
static void assert_near(const made *m, uint64_t i) {
  uint8_t q[600];
  size_t n = m->len[i], at;
  memset(q, 0, sizeof q);
  memcpy(q, term_of(m, i), n);
  assert_find_alone(m, q, n);
  assert_find_alone(m, q, n - 1);
  assert_find_alone(m, q, n / 2);
  assert_find(m, q, n + 1); /* a NUL behind it */
  q[n] = 0xff;
  assert_find(m, q, n + 1);
  assert_find(m, q, n + 300);
  at = below((uint32_t)n);
  q[at]++;
  assert_find(m, q, n);
  assert_find(m, q, at + 1);
  q[at] = (uint8_t)(q[at] - 2);
  assert_find(m, q, n);
  assert_find(m, q, at + 1);
  q[at] = (uint8_t)rnd();
  assert_find(m, q, n);
}

/* Holds the dictionary against what it was made of: its bytes, records and terms one by one, look-ups. */
static void check(const made *m) {
  const uint64_t step = m->n / 3000 + 1;
  const char *wrong = read_naively(m, assert_naive_term);
  uint64_t i;
  if (wrong) fail_msg("%s", wrong);
  for (i = 0; i < m->n; i += step) {
    uint8_t term[GPUIR_MAX_TERM + 1];
    gpuir__dict_block b;
    gpuir__record r;
    assert_int_equal(gpuir__dict_open(&m->d, i / 16, &b), 1);
    gpuir__dict_record(&m->d, &b, i % 16, &r);
    assert_record(&r, &m->records[i]);
    assert_int_equal(gpuir__dict_term(&b, i % 16, term), m->len[i]);
    assert_memory_equal(term, term_of(m, i), m->len[i]);
    assert_int_equal(term[m->len[i]], 0);
    assert_near(m, i);
  }
  assert_find(m, (const uint8_t *)"", 0);
  assert_find(m, (const uint8_t *)"\0\0\0\0\0\0\0\0\0", 9);
  {
    uint8_t most[300];
    memset(most, 0xff, sizeof most);
    for (i = 0; i <= 300; i += 15) assert_find(m, most, (size_t)i);
  }
}

/* The ways in which terms are drawn. */
enum { WORDS, BYTES, TWO, LONG, PREFIX, NUMBERS, KINDS };

/* Draws a term: its length, then its bytes. */
static void draw(uint8_t *to, int kind, uint64_t i) {
  unsigned n = kind == LONG ? 255 - below(3) : kind == BYTES ? 1 + below(6) : 1 + below(kind == TWO ? 20 : 12), k;
  memset(to, 0, 256);
  if (kind == PREFIX) { /* 240 bytes or so in common */
    n = 240 + below(16);
    memset(to + 1, 'p', 240);
    for (k = 238 - below(3) * 70; k < n; k++) to[1 + k] = (uint8_t)('a' + below(26));
  } else if (kind == NUMBERS) {
    n = (unsigned)snprintf((char *)to + 1, 255, "%s%llu", i % 3 ? "identifier_of_" : "x", (unsigned long long)i * 7919);
  } else {
    for (k = 0; k < n; k++)
      to[1 + k] = kind == TWO ? (uint8_t)(below(2) * 255)
          : kind == WORDS     ? (uint8_t)('a' + below(26) * below(2))
                              : (uint8_t)rnd();
    if (kind == LONG && below(4)) memset(to + 1, 0xff * (int)below(2), 250 - below(100));
  }
  to[0] = (uint8_t)n;
}

static void test_sizes(void **state) {
  static const uint64_t sizes[] = {0, 1, 2, 15, 16, 17, 31, 32, 33, 255, 256, 257, 4095, 4096, 4097, 5000};
  size_t s;
  int kind;
  (void)state;
  for (kind = 0; kind < KINDS; kind++)
    for (s = 0; s < sizeof sizes / sizeof *sizes; s++) {
      uint8_t *terms = (uint8_t *)room(sizes[s] * 2 * 256);
      uint64_t n = 0, i;
      made m;
      for (i = 0; i < 2 * sizes[s]; i++) draw(terms + 256 * i, kind, i);
      n = sort_terms(terms, 2 * sizes[s]);
      make(&m, terms, n < sizes[s] ? n : sizes[s], 1 + bits(1 + below(32)) % 0xfffffffeu, kind % 2, kind % 3 == 0);
      check(&m);
      unmake(&m);
      free(terms);
    }
}

/* Every byte alone; each string of zeros and of 0xff, up to the longest: of each its beginning is the term before. */
static void test_edges(void **state) {
  uint8_t *terms = (uint8_t *)room(1024 * 256);
  uint64_t n = 0;
  unsigned i;
  made m;
  (void)state;
  for (i = 0; i < 256; i++, n++) {
    terms[256 * n] = 1;
    terms[256 * n + 1] = (uint8_t)i;
  }
  for (i = 2; i < 256; i++, n += 2) {
    terms[256 * n] = terms[256 * (n + 1)] = (uint8_t)i;
    memset(terms + 256 * (n + 1) + 1, 0xff, i);
  }
  n = sort_terms(terms, n);
  assert_int_equal(n, 256 + 2 * 254);
  make(&m, terms, n, 1, 0, 0);
  check(&m);
  unmake(&m);
  /* the largest block: nothing shared, 255 bytes each, the widest numbers */
  memset(terms, 0, 256 * 256);
  for (i = 0; i < 256; i++) {
    terms[256 * i] = 255;
    memset(terms + 256 * i + 1, (int)i, 255);
  }
  make(&m, terms, 256, 0xfffffffe, 1, 1);
  check(&m);
  unmake(&m);
  free(terms);
}

/* Each length, of bytes that all differ from those around them: the beginnings of one string, and of such that have
 * another byte at one place. */
static void test_lengths(void **state) {
  uint8_t *terms = (uint8_t *)room(4 * 256 * 256);
  uint64_t n;
  unsigned i, k;
  made m;
  (void)state;
  for (i = 0; i < 4 * 255; i++) {
    uint8_t *to = terms + 256 * i;
    to[0] = (uint8_t)(1 + i / 4);
    for (k = 0; k < to[0]; k++) to[1 + k] = (uint8_t)(101 * k + 130);
    if (i % 4) to[1 + below(to[0])] = (uint8_t)rnd();
  }
  n = sort_terms(terms, 4 * 255);
  make(&m, terms, n, 1000, 0, 0);
  check(&m);
  unmake(&m);
  free(terms);
}

/* As many terms as a large collection has, in four levels of the tree; each is found. */
static void test_many(void **state) {
  enum { MANY = 1700000 };
  uint8_t *terms = (uint8_t *)room((uint64_t)MANY * 256);
  uint64_t n, i;
  made m;
  (void)state;
  for (i = 0; i < MANY; i++) draw(terms + 256 * i, i % 4 ? NUMBERS : WORDS, i);
  n = sort_terms(terms, MANY);
  assert_true(n > 1400000);
  make(&m, terms, n, 1464917, 0, 0);
  free(terms);
  assert_true(m.d.levels > 4);
  check(&m);
  for (i = 0; i < n; i++) {
    int found;
    assert_int_equal(gpuir__dict_find(&m.d, term_of(&m, i), m.len[i], &found), i);
    assert_true(found);
  }
  unmake(&m);
}

/* Reads all of a dictionary that may be damaged: nothing outside it, no more terms than there are. */
static uint64_t exercise(const made *m) {
  uint64_t i, sum = 0;
  uint8_t term[GPUIR_MAX_TERM + 1];
  int found;
  for (i = 0; i < m->n; i++) {
    gpuir__dict_block b;
    gpuir__record r;
    gpuir__dict d = m->d;
    int again;
    uint64_t at = gpuir__dict_find(&d, term_of(m, i), m->len[i], &found);
    d.simd = gpuir__simd_level(GPUIR_SIMD_AVX2);
    assert_int_equal(gpuir__dict_find(&d, term_of(m, i), m->len[i], &again), at);
    assert_int_equal(again, found);
    assert_true(at <= (m->n + 15) / 16 * 16 && (!found || at < m->n));
    if (!gpuir__dict_open(&m->d, i / 16, &b)) continue;
    gpuir__dict_record(&m->d, &b, i % 16, &r);
    assert_true(gpuir__dict_term(&b, i % 16, term) <= GPUIR_MAX_TERM);
    sum += r.df + r.docs + r.freqs + r.docs_len + r.freqs_len + term[0] + at;
  }
  return sum;
}

static void test_damaged(void **state) {
  uint64_t sum = 0;
  int round, kind;
  (void)state;
  for (kind = 0; kind < KINDS; kind++) {
    const uint64_t n = kind == LONG ? 100 : 600;
    uint8_t *terms = (uint8_t *)room(n * 256);
    uint64_t i;
    made m;
    for (i = 0; i < n; i++) draw(terms + 256 * i, kind, i);
    make(&m, terms, sort_terms(terms, n), 100000, kind % 2, kind % 3 == 0);
    for (round = 0; round < 150; round++) {
      struct part {
        void *p;
        uint64_t n;
      } part[4], *x;
      uint8_t *old;
      unsigned k, times = 1 + below(8);
      part[0].p = m.bytes, part[0].n = m.d.size;
      part[1].p = m.pages, part[1].n = (m.n + 255) / 256 * 40;
      part[2].p = m.starts, part[2].n = (m.n + 15) / 16 * 2;
      part[3].p = m.keys, part[3].n = gpuir__dict_nodes(m.n) * 128;
      x = &part[below(2) ? 0 : below(4)];
      if (!x->n) continue;
      old = (uint8_t *)room(x->n);
      memcpy(old, x->p, (size_t)x->n);
      if (round % 3 == 0) { /* all of it */
        memset(x->p, round % 2 ? 0xff : 0, (size_t)x->n);
      } else {
        for (k = 0; k < times; k++)
          ((uint8_t *)x->p)[below((uint32_t)x->n)] = (uint8_t)(below(2) ? rnd() : 255 * below(2));
      }
      sum += exercise(&m);
      if (memcmp(old, x->p, (size_t)x->n)) { /* no two dictionaries say the same */
        others = 0;
        assert_true(read_naively(&m, count_others) || others);
      }
      memcpy(x->p, old, (size_t)x->n);
      free(old);
    }
    check(&m);
    unmake(&m);
    free(terms);
  }
  assert_true(sum > 0);
}

/* A byte that says how much more than 15 a term shares, and is less: it stands for 15, at every level alike. */
static void test_too_little_is_shared(void **state) {
  enum { MANY = 600 };
  uint8_t *terms = (uint8_t *)room((uint64_t)MANY * 256);
  unsigned tried = 0, i, value;
  uint64_t block;
  made m;
  (void)state;
  for (i = 0; i < MANY; i++) draw(terms + 256 * i, i % 3 ? PREFIX : LONG, i);
  make(&m, terms, sort_terms(terms, MANY), 1000, 0, 0);
  for (block = 0; block < (m.n + 15) / 16; block++) {
    gpuir__dict_block b;
    gpuir__dict_step s;
    memset(&b, 0, sizeof b);
    assert_int_equal(gpuir__dict_open(&m.d, block, &b), 1);
    s = gpuir__dict_first(&b);
    for (i = 1; i < b.n; i++) {
      uint8_t *extra, was;
      assert_int_equal(gpuir__dict_next(&b, i, &s), 1);
      if ((b.lengths[i] & 15) < 15 || block % 8) continue;
      extra = m.bytes + (b.text - m.bytes) + s.at - 1 - (b.lengths[i] >> 4 == 15);
      was = *extra;
      assert_int_equal(was, s.shared);
      for (value = 0; value < 15; value += 7) {
        *extra = (uint8_t)value;
        (void)exercise(&m);
        others = 0;
        assert_true(read_naively(&m, count_others) || others);
      }
      *extra = was;
      tried++;
    }
  }
  assert_true(tried > 30);
  check(&m);
  unmake(&m);
  free(terms);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sizes),
      cmocka_unit_test(test_edges),
      cmocka_unit_test(test_lengths),
      cmocka_unit_test(test_many),
      cmocka_unit_test(test_damaged),
      cmocka_unit_test(test_too_little_is_shared),
  };
  return cmocka_run_group_tests_name("32_dictionary", tests, NULL, NULL);
}
