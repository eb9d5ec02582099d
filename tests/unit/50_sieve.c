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
  for (i = 0; i < n; i++) assert_int_equal(gpuir_builder_add_text(b, raw_describe(i, &one), "x", 1, &err), 0);
  assert_int_equal(gpuir_builder_write(b, NULL, &err), 0);
  gpuir_builder_destroy(b);
}

/* A set of no deleted documents. */
static gpuir__deleted *no_deleted(uint64_t documents) {
  const uint64_t words = documents / 64 + 1;
  gpuir__deleted *d = (gpuir__deleted *)calloc(1, sizeof *d + (size_t)words * 8);
  d->words = words;
  return d;
}

static void test_pass(void **state) {
  gpuir__deleted *set = no_deleted(DOCUMENTS);
  static gpuir__sieve sieve;
  where_case c;
  gpuir_index *ix;
  gpuir_error err;
  rng r = {4711};
  unsigned round, some = 0;
  (void)state;
  build_index(path, DOCUMENTS);
  assert_int_equal(gpuir_open(path, NULL, &ix, &err), 0);
  for (round = 0; round < 1500; round++) {
    const gpuir__segment *seg = ix->leaves[0].seg;
    gpuir__where *w;
    uint32_t i, passed = 0;
    where_make(&r, &c);
    if (gpuir__where_make(&ix->a, seg->columns.fields, c.text, &w, &err)) print_error("%s: %s\n", c.text, err.msg);
    assert_non_null(w);
    gpuir__sieve_open(&sieve, seg, w);
    memset(set->bits, 0, (size_t)set->words * 8);
    gpuir__sieve_fill(&sieve, 0, seg->columns.blocks, set);
    for (i = 0; i < DOCUMENTS; i++) {
      const int want = where_passes(&c, i);
      if (want == gpuir__deleted_has(set, i)) print_error("%s: document %u\n", c.text, i);
      assert_int_equal(gpuir__deleted_has(set, i), !want);
      passed += (uint32_t)want;
      if (round < 100) assert_int_equal(gpuir__sieve_failed(&sieve, i) == NULL, want);
    }
    some += passed > 0 && passed < DOCUMENTS;
    gpuir__where_free(w);
  }
  assert_true(some > 500);
  gpuir_close(ix);
  free(set);
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
    gpuir__deleted *fails;
    memset(&d, 0, sizeof d);
    (void)sprintf(text, "size=..%u", (i < 40 ? i : i - 1) % 40 * 2000); /* of the second round the first is kept */
    d.where = text;
    d.all = 1;
    assert_int_equal(gpuir_query_parse(ix, &d, "", 0, &q, &err), 0);
    fails = gpuir__sieve_kept(ix->leaves[0].seg, q->where);
    kept += fails != NULL;
    gpuir__deleted_close(fails);
    assert_int_equal(gpuir_count(s, q, &n), 0);
    if (i < 40) first[i] = n;
    else assert_int_equal(n, first[(i - 1) % 40]);
    fails = gpuir__sieve_kept(ix->leaves[0].seg, q->where);
    assert_non_null(fails);
    gpuir__deleted_close(fails);
    gpuir_query_destroy(q);
  }
  assert_int_equal(kept, 1);
  for (i = 0, n = 0; i < GPUIR__KEPT_SIEVES; i++) n += ix->leaves[0].seg->sieves[i].fails->refs;
  assert_int_equal(n, GPUIR__KEPT_SIEVES); /* nobody else has one */
  gpuir_searcher_destroy(s);
  gpuir_close(ix);
}

/* What open lets through of a file whose columns were changed is read without harm, and verify tells of it. */
static void test_damaged(void **state) {
  static gpuir__sieve sieve;
  gpuir__deleted *set = no_deleted(400);
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
    gpuir__sieve_open(&sieve, ix->leaves[0].seg, w);
    gpuir__sieve_fill(&sieve, 0, ix->leaves[0].seg->columns.blocks, set);
    for (i = 0; i < 400; i++) (void)gpuir_doc_value(ix, i, rng_below(&r, NCOLUMNS), rng_below(&r, 3), &value, room);
    gpuir__where_free(w);
    gpuir_close(ix);
  }
  assert_true(opened > 1000);
  free(copy);
  free(data);
  free(set);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_pass), cmocka_unit_test(test_kept),
      cmocka_unit_test(test_damaged)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
