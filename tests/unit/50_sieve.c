/* 50_sieve.c - which documents of a segment pass a where: against their values; sieves of damaged columns */
#include "private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#include "rng.h"
#include "collection.h"
#include "columns.h"
#include "wheres.h"

#define DOCUMENTS 3001

static void build_index(const char *to, uint32_t n) {
  static raw_doc one;
  gpuir_builder_desc d = desc_of(to);
  gpuir_builder *b;
  gpuir_error err;
  uint32_t i;
  d.fields = column_fields;
  d.nfields = NCOLUMNS;
  assert_int_equal(gpuir_builder_create(&d, &b, &err), 0);
  for (i = 0; i < n; i++) {
    char text[24];
    const size_t len = (size_t)sprintf(text, "x n%u", i);
    assert_int_equal(gpuir_builder_add_text(b, raw_describe(i, &one), text, len, &err), 0);
  }
  assert_int_equal(gpuir_builder_write(b, NULL, &err), 0);
  gpuir_builder_destroy(b);
}

/* Says whether a document fails. */
static int fails_of(gpuir__sieve *s, uint32_t docid) {
  uint64_t fails[2];
  (void)gpuir__sieve_get(s, docid / GPUIR__BLOCK, fails);
  return (int)(fails[docid % GPUIR__BLOCK / 64] >> docid % 64 & 1);
}

static void test_pass(void **state) {
  where_case c;
  gpuir_index *ix;
  gpuir_error err;
  rng r = {4711};
  unsigned round, some = 0, told = 0;
  (void)state;
  build_index(path, DOCUMENTS);
  assert_int_equal(gpuir_open(path, NULL, &ix, &err), 0);
  for (round = 0; round < 1500; round++) {
    const gpuir__segment *seg = ix->leaves[0].seg;
    gpuir__sieve *s;
    gpuir__where *w;
    uint32_t i, passed = 0, at;
    where_make(&r, &c);
    if (gpuir__where_make(&ix->a, seg->columns.fields, c.text, &w, &err)) print_error("%s: %s\n", c.text, err.msg);
    assert_non_null(w);
    s = gpuir__sieve_make(seg, w);
    assert_non_null(s);
    told += s->known > 0 && s->known < s->blocks;
    for (i = 0; i < DOCUMENTS; i += 128) /* what the extremes told is true */
      if (gpuir__sieve_is_empty(s, i, i + 128))
        for (at = i; at < i + 128 && at < DOCUMENTS; at++) assert_false(where_passes(&c, at));
    for (i = 0; i < DOCUMENTS; i++) {
      const int want = where_passes(&c, i);
      if (want == fails_of(s, i)) print_error("%s: document %u\n", c.text, i);
      assert_int_equal(fails_of(s, i), !want);
      passed += (uint32_t)want;
      if (round < 100) assert_int_equal(gpuir__sieve_failed(s, i) == w->n, want);
    }
    assert_int_equal(gpuir__sieve_is_known(s), 1);
    assert_int_equal(s->passing, passed);
    for (i = 0; i < 60; i++) {
      const uint32_t from = rng_below(&r, DOCUMENTS), to = from + rng_below(&r, i < 50 ? 90 : 700);
      for (at = from; at < to && at < DOCUMENTS && !where_passes(&c, at); at++) {}
      assert_int_equal(gpuir__sieve_is_empty(s, from, to), at >= to || at >= DOCUMENTS);
    }
    some += passed > 0 && passed < DOCUMENTS;
    gpuir__sieve_close(s);
    gpuir__where_free(w);
  }
  assert_true(some > 500);
  assert_true(told > 200);
  gpuir_close(ix);
}

/* A search looks at the blocks of the documents that it comes to, and leaves the others unknown. */
static void test_lazy(void **state) {
  gpuir_query_desc d;
  gpuir_searcher *s;
  gpuir__sieve *sieve;
  gpuir_index *ix;
  gpuir_query *q;
  gpuir_error err;
  gpuir_hit hits[10];
  uint64_t before;
  size_t n;
  (void)state;
  build_index(path, DOCUMENTS);
  assert_int_equal(gpuir_open(path, NULL, &ix, &err), 0);
  assert_int_equal(gpuir_searcher_create(ix, NULL, &s, &err), 0);
  memset(&d, 0, sizeof d);
  d.where = "size=..50000";
  assert_int_equal(gpuir_query_parse(ix, &d, "n17", 3, &q, &err), 0);
  sieve = gpuir__sieve_open(ix->leaves[0].seg, q->where);
  before = sieve->known;
  assert_true(before < sieve->blocks / 2);
  assert_int_equal(gpuir_search(s, q, hits, 10, &n), 0);
  assert_int_equal(sieve->known, before + 1);
  gpuir__sieve_close(sieve);
  gpuir_query_destroy(q);
  gpuir_searcher_destroy(s);
  gpuir_close(ix);
}

/* Threads that ask for all blocks at once, each from another one on. */
typedef struct asker {
  gpuir__sieve *sieve;
  uint64_t first, fails[2 * (DOCUMENTS / 128 + 1)];
} asker;

static void *ask_all(void *argument) {
  asker *a = (asker *)argument;
  uint64_t i;
  for (i = 0; i < a->sieve->blocks; i++) {
    const uint64_t block = (a->first + i) % a->sieve->blocks;
    (void)gpuir__sieve_get(a->sieve, block, a->fails + 2 * block);
  }
  return NULL;
}

static void test_threads(void **state) {
  static asker askers[4];
  pthread_t thread[4];
  gpuir_index *ix;
  gpuir_error err;
  gpuir__where *w;
  unsigned round, i;
  (void)state;
  build_index(path, DOCUMENTS);
  assert_int_equal(gpuir_open(path, NULL, &ix, &err), 0);
  assert_int_equal(gpuir__where_make(&ix->a, ix->leaves[0].seg->columns.fields, "size=..50000 -lang=l1", &w, &err), 0);
  for (round = 0; round < 20; round++) {
    gpuir__sieve *s = gpuir__sieve_make(ix->leaves[0].seg, w);
    uint32_t passed = 0, d;
    for (i = 0; i < 4; i++) {
      askers[i].sieve = s;
      askers[i].first = i * (round % 7);
      assert_int_equal(pthread_create(&thread[i], NULL, ask_all, &askers[i]), 0);
    }
    for (i = 0; i < 4; i++) assert_int_equal(pthread_join(thread[i], NULL), 0);
    for (i = 1; i < 4; i++) assert_memory_equal(askers[i].fails, askers[0].fails, 2 * (size_t)s->blocks * 8);
    for (d = 0; d < DOCUMENTS; d++) passed += !fails_of(s, d);
    assert_int_equal(s->known, s->blocks);
    assert_int_equal(s->passing, passed);
    gpuir__sieve_close(s);
  }
  gpuir__where_free(w);
  gpuir_close(ix);
}

/* The last 16 wheres of a segment are kept, and what a search finds by them is what it found first. */
static void test_kept(void **state) {
  gpuir_searcher *s;
  gpuir_index *ix;
  gpuir_error err;
  uint64_t first[40], n;
  unsigned i, kept = 0;
  (void)state;
  build_index(path, DOCUMENTS);
  assert_int_equal(gpuir_open(path, NULL, &ix, &err), 0);
  assert_int_equal(gpuir_searcher_create(ix, NULL, &s, &err), 0);
  for (i = 0; i < 80; i++) {
    char text[40];
    gpuir_query_desc d;
    gpuir_query *q;
    gpuir__sieve *fails;
    memset(&d, 0, sizeof d);
    (void)sprintf(text, "size=..%u", (i < 40 ? i : i - 1) % 40 * 2000); /* of the second round the first is kept */
    d.where = text;
    d.all = 1;
    assert_int_equal(gpuir_query_parse(ix, &d, "", 0, &q, &err), 0);
    fails = gpuir__sieve_kept(ix->leaves[0].seg, q->where);
    kept += fails != NULL;
    gpuir__sieve_close(fails);
    assert_int_equal(gpuir_count(s, q, &n), 0);
    if (i < 40) first[i] = n;
    else assert_int_equal(n, first[(i - 1) % 40]);
    fails = gpuir__sieve_kept(ix->leaves[0].seg, q->where);
    assert_non_null(fails);
    gpuir__sieve_close(fails);
    gpuir_query_destroy(q);
  }
  assert_int_equal(kept, 1);
  gpuir_searcher_destroy(s);
  for (i = 0, n = 0; i < GPUIR__KEPT_SIEVES; i++) n += ix->leaves[0].seg->sieves[i]->refs;
  assert_int_equal(n, GPUIR__KEPT_SIEVES); /* nobody else has one */
  gpuir_close(ix);
}

/* What open lets through of a file whose columns were changed is read without harm, and verify tells of it. */
static void test_damaged(void **state) {
  gpuir__sieve *sieve;
  uint64_t from = UINT64_MAX, to = 0;
  rng r = {99};
  size_t n = 0;
  char *data;
  uint8_t *copy;
  unsigned round, opened = 0, i;
  (void)state;
  build_index(path, 400);
  data = slurp(path, &n);
  copy = (uint8_t *)malloc(n);
  for (round = 0; round < 4000; round++) {
    gpuir_open_desc d;
    gpuir_index *ix;
    gpuir_error err;
    where_case c;
    gpuir__where *w;
    char room[GPUIR_MAX_VALUE + 1];
    gpuir_value value;
    memset(&d, 0, sizeof d);
    memcpy(copy, data, n);
    d.data = copy;
    d.size = n;
    assert_int_equal(gpuir_open("memory", &d, &ix, &err), 0);
    if (!round)
      for (i = GPUIR__S_COLUMNS; i <= GPUIR__S_KEY_PAGES; i++) {
        const gpuir__section *s = ix->leaves[0].seg->section[i];
        from = gpuir__min64(from, s->offset);
        to = gpuir__max64(to, s->offset + s->length);
      }
    gpuir_close(ix);
    for (i = 1 + rng_below(&r, 6); i; i--)
      copy[from + rng_below(&r, (uint32_t)(to - from))] ^= (uint8_t)(1u << rng_below(&r, 8));
    if (gpuir_open("memory", &d, &ix, &err)) continue;
    opened++;
    assert_int_not_equal(gpuir_verify(ix, &err), memcmp(copy, data, n) ? 0 : -1);
    where_make(&r, &c);
    assert_int_equal(gpuir__where_make(&ix->a, ix->leaves[0].seg->columns.fields, c.text, &w, &err), 0);
    sieve = gpuir__sieve_make(ix->leaves[0].seg, w);
    for (i = 0; i < 400; i++) (void)fails_of(sieve, i);
    gpuir__sieve_close(sieve);
    for (i = 0; i < 400; i++) (void)gpuir_doc_value(ix, i, rng_below(&r, NCOLUMNS), rng_below(&r, 3), &value, room);
    gpuir__where_free(w);
    gpuir_close(ix);
  }
  assert_true(opened > 1000);
  free(copy);
  free(data);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_pass), cmocka_unit_test(test_lazy),
      cmocka_unit_test(test_threads), cmocka_unit_test(test_kept), cmocka_unit_test(test_damaged)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
