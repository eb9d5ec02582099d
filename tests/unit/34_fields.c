/* 34_fields.c - how fields are declared, and values from text */
#include "private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <time.h>
#include <cmocka.h>

#include "alloc.h"
#include "rng.h"

static void test_spelling(void **state) {
  static const char *const good[] = {"author=key", "author=key@meta.author", "x9.y_z=path", "price=number:2@p",
      "ab=date", "at=key@with @ and = in it"};
  static const char *const bad[] = {"", "author", "author=", "=key", "Author=key", "a=key", "k=number", "9a=key",
      ".a=key", "and=key", "where=key", "docid=number", "ab=keys", "ab=number:", "ab=number:10", "ab=key:1", "ab=key@",
      "ab=key@x\ty", "ab=key@x\ny", "a b=key", "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklm=key"};
  char room[GPUIR_FIELD_ROOM];
  gpuir_allocator a = gpuir__allocator(NULL);
  gpuir_error err;
  gpuir_field f;
  gpuir__buf out = {NULL, 0, 0};
  gpuir__schema *s;
  size_t i;
  (void)state;
  for (i = 0; i < sizeof good / sizeof *good; i++) {
    assert_int_equal(gpuir_field_parse(good[i], &f, room, &err), 0);
    out.len = 0;
    assert_int_equal(gpuir__fields_spell(&a, &f, 1, &out, &err), 0);
    assert_string_equal((const char *)out.data, good[i]);
    assert_int_equal(gpuir__schema_make(&a, (const char *)out.data, &s, &err), 0);
    assert_string_equal(s->of[0].name, f.name);
    assert_string_equal(s->of[0].member, f.member);
    gpuir__schema_free(&a, s);
  }
  for (i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_int_equal(gpuir_field_parse(bad[i], &f, room, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir__schema_make(&a, "ab=key\tab=path", &s, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir__schema_make(&a, "ab=key\t", &s, &err), GPUIR_E_ARGUMENT);
  gpuir__buf_free(&a, &out);
}

/* A folder and all below it follow one another; otherwise bytes count, those of a key throughout. */
static void test_order(void **state) {
  static const char *const paths[] = {"/", "/usr", "/usr/lib", "/usr-local", "a", "a/b", "a/b/c", "a/b\x01", "a\x01",
      "a-b", "ab", "b", "\xc3\xa4"};
  const int n = sizeof paths / sizeof *paths;
  int i, j;
  (void)state;
  for (i = 0; i < n; i++)
    for (j = 0; j < n; j++) {
      const size_t an = strlen(paths[i]), bn = strlen(paths[j]);
      const int c = gpuir__value_compare(GPUIR_PATH, paths[i], an, paths[j], bn);
      assert_true(i < j ? c < 0 : i > j ? c > 0 : c == 0);
      assert_int_equal(gpuir__value_compare(GPUIR_KEY, paths[i], an, paths[j], bn) < 0, strcmp(paths[i], paths[j]) < 0);
    }
}

static void number(const char *text, unsigned decimals, int64_t low, int64_t high) {
  gpuir__bounds b;
  assert_true(gpuir__number_bounds(text, strlen(text), decimals, &b));
  assert_true(!b.no_low && !b.no_high && b.low == low && b.high == high);
}

static void test_numbers(void **state) {
  static const char *const bad[] = {"", "-", ".", "1.2.3", "1e5", " 1", "0x1", "--1", "1-"};
  gpuir__bounds b;
  size_t i;
  (void)state;
  number("0", 0, 0, 0);
  number("-0.00", 1, 0, 0);
  number("-12.5", 2, -1250, -1250);
  number("+.5", 1, 5, 5);
  number("5.", 1, 50, 50);
  number("12.55", 1, 126, 125);
  number("-12.55", 1, -125, -126);
  number("12.50", 1, 125, 125);
  number("0.4", 0, 1, 0);
  number("-0.4", 0, 0, -1);
  number("9223372036854775807", 0, INT64_MAX, INT64_MAX);
  number("-9223372036854775808", 0, INT64_MIN, INT64_MIN);
  number("-9223372036.854775808", 9, INT64_MIN, INT64_MIN);
  assert_true(gpuir__number_bounds("9223372036854775808", 19, 0, &b) && b.no_low && !b.no_high && b.high == INT64_MAX);
  assert_true(gpuir__number_bounds("-9223372036854775809", 20, 0, &b) && b.no_high && !b.no_low && b.low == INT64_MIN);
  assert_true(gpuir__number_bounds("9223372036854775807.5", 21, 0, &b) && b.no_low && b.high == INT64_MAX);
  assert_true(gpuir__number_bounds("99999999999999999999999999", 26, 0, &b) && b.no_low);
  for (i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(gpuir__number_bounds(bad[i], strlen(bad[i]), 2, &b));
}

static void date(const char *text, int64_t low, int64_t seconds) {
  gpuir__bounds b;
  assert_true(gpuir__date_bounds(text, strlen(text), &b));
  assert_true(b.low == low && b.high == low + seconds - 1);
}

static void test_dates(void **state) {
  static const char *const bad[] = {"", "24", "02024", "2024-", "2024-1", "2024-13", "2024-00", "2023-02-29",
      "2024-01-32", "2024-01T00", "2024-01-31T", "2024-01-31T24", "2024-01-31T09:60", "2024-01-31T09:30:05+2",
      "2024-01-31x", "2024-01-31T09:30:05+24:00", "2024Z"};
  gpuir__bounds b;
  uint32_t i;
  (void)state;
  date("1970", 0, 365 * 86400);
  date("2024", 1704067200, 366 * 86400);
  date("2024-02", 1706745600, 29 * 86400);
  date("2023-02", 1675209600, 28 * 86400);
  date("2024-01-31", 1706659200, 86400);
  date("2024-01-31T09", 1706691600, 3600);
  date("2024-01-31T09:30", 1706693400, 60);
  date("2024-01-31T09:30:05", 1706693405, 1);
  date("2024-01-31 09:30:05.999Z", 1706693405, 1);
  date("2024-01-31T09:30:05+02:00", 1706686205, 1);
  date("2024-01-31T09:30:05 -0130", 1706698805, 1);
  date("1969-12-31T23:59:59Z", -1, 1);
  date("0000-03-01", -62162035200, 86400);
  for (i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(gpuir__date_bounds(bad[i], strlen(bad[i]), &b));
  for (i = 0; i < 20000; i++) { /* against the C library's calendar */
    const time_t at = (time_t)((int64_t)(rng_next(&rng_shared) % 253402300800u));
    char text[80];
    struct tm tm;
    assert_non_null(gmtime_r(&at, &tm));
    (void)snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
        tm.tm_hour, tm.tm_min, tm.tm_sec);
    date(text, (int64_t)at, 1);
  }
}

static int parsed(const gpuir_field *f, const char *text, gpuir_value *v) {
  return gpuir_value_parse(f, text, strlen(text), v);
}

static void test_values(void **state) {
  static const gpuir_field key = {"ab", NULL, GPUIR_KEY, 0}, cents = {"ab", NULL, GPUIR_NUMBER, 2},
                           when = {"ab", NULL, GPUIR_DATE, 0};
  static char big[GPUIR_MAX_VALUE + 2];
  gpuir_value v;
  (void)state;
  memset(big, 'x', GPUIR_MAX_VALUE + 1);
  assert_int_equal(parsed(&key, " \t a b\n", &v), 0);
  assert_true(v.len == 3 && !memcmp(v.text, "a b", 3));
  assert_int_equal(gpuir_value_parse(&key, big, GPUIR_MAX_VALUE, &v), 0);
  assert_int_equal(gpuir_value_parse(&key, big, GPUIR_MAX_VALUE + 1, &v), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_value_parse(&key, "a\0b", 3, &v), GPUIR_E_ARGUMENT);
  assert_int_equal(parsed(&key, "  ", &v), GPUIR_E_ARGUMENT);
  assert_int_equal(parsed(&cents, "-12.5 ", &v), 0);
  assert_true(!v.text && v.number == -1250);
  assert_int_equal(parsed(&cents, "1.005", &v), GPUIR_E_ARGUMENT);
  assert_int_equal(parsed(&cents, "92233720368547758.08", &v), GPUIR_E_ARGUMENT);
  assert_int_equal(parsed(&when, "2024-02", &v), 0);
  assert_true(v.number == 1706745600);
  assert_int_equal(parsed(&when, "1706745600", &v), 0);
  assert_true(v.number == 1706745600);
  assert_int_equal(parsed(&when, "-86400", &v), 0);
  assert_true(v.number == -86400);
  assert_int_equal(parsed(&when, "yesterday", &v), GPUIR_E_ARGUMENT);
}

/* No memory, at each call. */
static void test_no_memory(void **state) {
  static const gpuir_field f[2] = {{"ab", "c", GPUIR_KEY, 0}, {"de", NULL, GPUIR_NUMBER, 3}};
  alloc_book book = {0, 0, 0, 0, 0};
  gpuir_allocator a = alloc_from(&book);
  gpuir_error err;
  int status = GPUIR_E_NOMEM;
  (void)state;
  for (book.fail_at = 1; status; book.fail_at++) {
    gpuir__buf out = {NULL, 0, 0};
    gpuir__schema *s = NULL;
    book.calls = 0;
    status = gpuir__fields_spell(&a, f, 2, &out, &err);
    if (!status) status = gpuir__schema_make(&a, (const char *)out.data, &s, &err);
    assert_true(!status || status == GPUIR_E_NOMEM);
    gpuir__schema_free(&a, s);
    gpuir__buf_free(&a, &out);
    assert_int_equal(book.blocks, 0);
  }
  assert_true(book.fail_at > 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_spelling), cmocka_unit_test(test_order),
      cmocka_unit_test(test_numbers), cmocka_unit_test(test_dates), cmocka_unit_test(test_values),
      cmocka_unit_test(test_no_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
