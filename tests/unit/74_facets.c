/* 74_facets.c - what may be asked of fields: sorts, collapses and facets that say nothing, spans of dates up to the
 * ends of 64 bits, and every failure of memory
 */
#include "private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "alloc.h"
#include "rng.h"
#include "collection.h"
#include "columns.h"
#include "wheres.h"
#include "raw_index.h"

/* What each column that says nothing is told, and where. */
static const struct {
  const char *column, *why;
  uint64_t offset;
} bad_columns[] = {{"nothing", "facets: there is no field 'nothing'; there are lang, tag, dir", 0},
    {"", "facets: there is no field ''", 0}, {"lang:x", "behind ':' of a key comes how many values, as in lang:20", 5},
    {"lang:12345678901", "how many values", 5}, {"size:", "'' is no number", 5}, {"size:1,1", "not above", 7},
    {"size:1,,2", "'' is no number", 7}, {"day:2024,2023-02-30", "'2023-02-30' is no date", 9},
    {"day:week", "'week' is no date", 4}};

static void asks(const gpuir_index *ix, const char *sort, const char *collapse, const char *why, uint64_t offset) {
  gpuir_query_desc d;
  gpuir_query *q;
  gpuir_error err;
  memset(&d, 0, sizeof d);
  d.sort = sort;
  d.collapse = collapse;
  assert_int_equal(gpuir_query_parse(ix, &d, "w1", 2, &q, &err), why ? GPUIR_E_WHERE : 0);
  if (!why) {
    gpuir_query_destroy(q);
    return;
  }
  assert_non_null(strstr(err.msg, why));
  assert_int_equal(err.offset, offset);
}

static void test_refused(void **state) {
  gpuir_index *ix = make_static(300, 0);
  gpuir_query *q = parsed(ix, "w1", NULL, GPUIR_OR, 0);
  const char *many[GPUIR_MAX_FIELDS + 1], *one = "lang";
  gpuir_searcher *s;
  gpuir_facets *f = NULL;
  gpuir_facet x;
  gpuir_error err;
  uint64_t matches = 1;
  size_t i;
  (void)state;
  asks(ix, "", "", NULL, 0);
  asks(ix, "-none", NULL, "sort: there is no field 'none'; there are lang", 1);
  asks(ix, "--day", NULL, "sort: there is no field '-day'", 1);
  asks(ix, NULL, "-lang", "collapse: there is no field '-lang'", 0);
  assert_int_equal(gpuir_searcher_create(ix, NULL, &s, &err), 0);
  for (i = 0; i < sizeof bad_columns / sizeof *bad_columns; i++) {
    assert_int_equal(gpuir_facets_count(s, q, &bad_columns[i].column, 1, &f, &matches), GPUIR_E_WHERE);
    gpuir_searcher_error(s, &err);
    if (!strstr(err.msg, bad_columns[i].why)) fail_msg("%s: %s", bad_columns[i].column, err.msg);
    assert_int_equal(err.offset, bad_columns[i].offset);
    assert_true(!f && !matches);
  }
  for (i = 0; i <= GPUIR_MAX_FIELDS; i++) many[i] = one;
  assert_int_equal(gpuir_facets_count(s, q, many, GPUIR_MAX_FIELDS + 1, &f, NULL), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_facets_count(NULL, q, &one, 1, &f, NULL), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_facets_count(s, NULL, &one, 1, &f, NULL), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_facets_count(s, q, NULL, 1, &f, NULL), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_facets_count(s, q, &one, 1, NULL, NULL), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_facets_count(s, q, many, GPUIR_MAX_FIELDS, &f, NULL), 0);
  assert_int_equal(gpuir_facets_get(f, GPUIR_MAX_FIELDS, 0, &x), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_facets_get(NULL, 0, 0, &x), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_facets_get(f, 0, 0, NULL), GPUIR_E_ARGUMENT);
  gpuir_facets_destroy(f);
  gpuir_facets_destroy(NULL);
  gpuir_searcher_set_timeout(s, 1);
  assert_int_equal(gpuir_facets_count(s, q, &one, 1, &f, NULL), GPUIR_E_DEADLINE);
  gpuir_searcher_destroy(s);
  gpuir_query_destroy(q);
  gpuir_close(ix);
}

static void span_is(int by, int64_t second, int64_t low, int64_t high) {
  int64_t l, h;
  gpuir__facet_span(by, second, &l, &h);
  assert_true(l == low && h == high);
}

static void test_spans(void **state) {
  (void)state;
  span_is(GPUIR__BY_DAY, -1, -86400, -1);
  span_is(GPUIR__BY_MONTH, 951782400, 949363200, 951868799); /* 2000-02-29 */
  span_is(GPUIR__BY_YEAR, -1, -31536000, -1);
  span_is(GPUIR__BY_YEAR, -62167219200, -62167219200, -62135596801); /* the year 0 */
  span_is(GPUIR__BY_DAY, INT64_MAX, INT64_MAX / 86400 * 86400, INT64_MAX);
  span_is(GPUIR__BY_DAY, INT64_MIN, INT64_MIN, INT64_MIN / 86400 * 86400 - 1);
  {
    int64_t low, high, by;
    for (by = GPUIR__BY_YEAR; by <= GPUIR__BY_DAY; by++) {
      gpuir__facet_span((int)by, INT64_MAX, &low, &high);
      assert_true(low < INT64_MAX && high == INT64_MAX);
      gpuir__facet_span((int)by, INT64_MIN, &low, &high);
      assert_true(low == INT64_MIN && high > INT64_MIN);
    }
  }
}

/* Sorts, collapses and counts with a searcher that gets no memory from call `at` on; 1 if it had enough. */
static int without_memory(const gpuir_index *ix, const gpuir_query *sorted, const gpuir_query *collapsed, int64_t at) {
  static const char *const columns[] = {"tag", "dir:src", "size", "day:month", "price:0,1", "ident:3"};
  static gpuir_hit hits[400];
  alloc_book book = {0, 0, 0, 0, 0};
  gpuir_allocator a = alloc_from(&book);
  gpuir_searcher_desc d;
  gpuir_searcher *s;
  gpuir_facets *f = NULL;
  size_t n;
  int status;
  memset(&d, 0, sizeof d);
  d.allocator = &a;
  assert_int_equal(gpuir_searcher_create(ix, &d, &s, NULL), 0);
  book.fail_at = book.calls + at;
  book.forever = 1;
  status = gpuir_search(s, sorted, hits, 400, &n);
  if (!status) status = gpuir_search(s, collapsed, hits, 400, &n);
  if (!status) status = gpuir_facets_count(s, sorted, columns, 6, &f, NULL);
  assert_true(!status || status == GPUIR_E_NOMEM);
  assert_true(!status || !f);
  gpuir_facets_destroy(f);
  gpuir_searcher_destroy(s);
  assert_int_equal(book.blocks, 0);
  return !status;
}

static void test_without_memory(void **state) {
  gpuir_index *ix = make_static(300, 0);
  gpuir_query_desc d;
  gpuir_query *sorted, *collapsed;
  int64_t at = 1;
  (void)state;
  memset(&d, 0, sizeof d);
  d.mode = GPUIR_OR;
  d.sort = "-ident";
  sorted = parsed_by(ix, "w1 w2", &d);
  d.sort = NULL;
  d.collapse = "lang";
  collapsed = parsed_by(ix, "w1 w2 w3", &d);
  while (!without_memory(ix, sorted, collapsed, at)) at++;
  assert_true(at > 20);
  gpuir_query_destroy(sorted);
  gpuir_query_destroy(collapsed);
  gpuir_close(ix);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_refused), cmocka_unit_test(test_spans),
      cmocka_unit_test(test_without_memory)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
