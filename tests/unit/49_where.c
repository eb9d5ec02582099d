/* 49_where.c - the grammar of a where: what is taken, and where in the text an error is told */
#include "private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "alloc.h"
#include "rng.h"

static gpuir_allocator a;
static gpuir__schema *schema;

static int set_up(void **state) {
  gpuir_error err;
  (void)state;
  a = gpuir__allocator(NULL);
  return gpuir__schema_make(&a, "author=key\tdir=path\tsize=number\tprice=number:2\tmtime=date", &schema, &err);
}

static int tear_down(void **state) {
  (void)state;
  gpuir__schema_free(&a, schema);
  return 0;
}

static gpuir__where *good(const char *text) {
  gpuir__where *w = NULL;
  gpuir_error err;
  const int status = gpuir__where_make(&a, schema, text, &w, &err);
  if (status) print_error("%s: %s at %d\n", text, err.msg, (int)err.offset);
  assert_int_equal(status, 0);
  return w;
}

static void bad(const char *text, uint64_t offset, const char *words) {
  gpuir__where *w;
  gpuir_error err;
  assert_int_equal(gpuir__where_make(&a, schema, text, &w, &err), GPUIR_E_WHERE);
  if (err.offset != offset || !strstr(err.msg, words)) print_error("%s: %s at %d\n", text, err.msg, (int)err.offset);
  assert_int_equal(err.offset, offset);
  assert_non_null(strstr(err.msg, words));
}

static void item(const gpuir__where *w, unsigned i, const char *begin, const char *end) {
  const gpuir__where_item *x = &w->items[i];
  const char *want[2] = {begin, end};
  unsigned k;
  for (k = 0; k < 2; k++) {
    assert_int_equal(x->has[k], want[k] != NULL);
    if (want[k]) assert_true(x->len[k] == strlen(want[k]) && !memcmp(w->bytes + x->at[k], want[k], x->len[k]));
  }
}

static void test_read(void **state) {
  gpuir__where *w =
      good("  author=\"Smith, John\",J.R.,\"say \"\"hi\"\" | ..\"  -dir=a/b..c size=10.. |\tmtime=..2024-06 price=.. ");
  static const char *const texts[] = {"author=\"Smith, John\",J.R.,\"say \"\"hi\"\" | ..\"", "-dir=a/b..c", "size=10..",
      "mtime=..2024-06", "price=.."};
  static const unsigned columns[] = {0, 1, 2, 4, 3}, groups[] = {0, 0, 0, 1, 1}, items[] = {3, 1, 1, 1, 1};
  unsigned i;
  (void)state;
  assert_int_equal(w->n, 5);
  assert_int_equal(w->nitems, 7);
  for (i = 0; i < 5; i++) {
    const gpuir__predicate *p = &w->predicates[i];
    assert_true(p->len == strlen(texts[i]) && !memcmp(w->text + p->at, texts[i], p->len));
    assert_true(p->column == columns[i] && p->group == groups[i] && p->n == items[i] && p->negated == (i == 1));
  }
  item(w, 0, "Smith, John", "Smith, John");
  item(w, 1, "J.R.", "J.R.");
  item(w, 2, "say \"hi\" | ..", "say \"hi\" | ..");
  item(w, 3, "a/b", "c");
  item(w, 4, "10", NULL);
  item(w, 5, NULL, "2024-06");
  item(w, 6, NULL, NULL);
  gpuir__where_free(w);
  w = good("author=a=b,x.y");
  item(w, 0, "a=b", "a=b");
  gpuir__where_free(w);
}

static void test_errors(void **state) {
  (void)state;
  bad(" ", 1, "a predicate is missing");
  bad("author", 0, "a predicate is missing");
  bad("=a", 0, "a predicate is missing");
  bad("author=", 7, "a value is missing");
  bad("author=a,", 9, "a value is missing");
  bad("author=\"\"", 7, "a value is missing");
  bad("autor=a", 0, "no field 'autor'; there are author, dir, size, price, mtime");
  bad("dir=x -autor=a", 7, "no field");
  bad("author=a|b", 8, "write name=a,b");
  bad("author=a |b", 9, "blanks around");
  bad("author=a| b", 8, "write name=a,b");
  bad("author=\"a\"| b", 10, "behind a value in quotes");
  bad("| author=a", 0, "blanks around");
  bad("author=a | | dir=b", 11, "two groups");
  bad("author=a |", 9, "blanks around");
  bad("author=a | ", 11, "a predicate is missing");
  bad("author=a\"b", 8, "a quote within");
  bad("author=\"a", 7, "not closed");
  bad("author=\"a\"b", 10, "behind a value in quotes");
  bad("author=b..a", 7, "end comes before");
}

static void test_more_errors(void **state) {
  (void)state;
  bad("size=x", 5, "is no number");
  bad("size=1,2x", 7, "is no number");
  bad("mtime=2024-13", 6, "is no date");
  bad("mtime=1700000000", 6, "is no date");
  bad("size=7..5", 5, "end comes before");
  bad("size=..5..7", 8, "'..' twice");
  bad("mtime=2024..2023", 6, "end comes before");
  bad("price=1.25..1.24", 6, "end comes before");
  gpuir__where_free(good("price=1.255..1.254")); /* nothing lies between, but no kept number tells them apart */
  gpuir__where_free(good("mtime=2024..2024-01"));
}

/* So many bytes, predicates and items, and no more. */
static void test_limits(void **state) {
  static char text[GPUIR__WHERE_BYTES + 100];
  gpuir__where *w;
  gpuir_error err;
  unsigned i;
  (void)state;
  for (i = 0; i < 65; i++) (void)sprintf(text + 7 * i, "size=1 ");
  bad(text, 7 * 64, "more than 64 predicates");
  text[7 * 64] = 0;
  w = good(text);
  assert_int_equal(w->n, 64);
  gpuir__where_free(w);
  (void)sprintf(text, "size=1");
  for (i = 0; i < 1024; i++) (void)sprintf(text + 6 + 2 * i, ",1");
  bad(text, 6 + 2 * 1023 + 1, "more than 1024 values");
  text[6 + 2 * 1023] = 0;
  w = good(text);
  assert_int_equal(w->nitems, 1024);
  gpuir__where_free(w);
  memset(text, ' ', sizeof text);
  (void)sprintf(text + GPUIR__WHERE_BYTES - 6, "size=1");
  gpuir__where_free(good(text));
  (void)sprintf(text + GPUIR__WHERE_BYTES - 6, "size=12");
  bad(text, GPUIR__WHERE_BYTES, "more than 4096 bytes");
  assert_int_equal(gpuir__where_make(&a, NULL, "size=1", &w, &err), GPUIR_E_WHERE);
  assert_non_null(strstr(err.msg, "no fields"));
  assert_int_equal(gpuir__where_make(&a, NULL, "", &w, &err), 0);
  assert_null(w);
}

/* Any bytes are read or refused at one of them; a sanitizer looks on. */
static void test_any(void **state) {
  static const char *const parts[] = {"author=", "dir", "size=", "mtime=", "=", ",", "..", " | ", "|", " ", "-", "\"",
      "\"\"", "a", "2024", "1", "."};
  char text[400];
  unsigned round, i;
  (void)state;
  for (round = 0; round < 100000; round++) {
    gpuir__where *w;
    gpuir_error err;
    text[0] = 0;
    for (i = below(14); i; i--) (void)strcat(text, parts[below(sizeof parts / sizeof *parts)]);
    if (gpuir__where_make(&a, schema, text, &w, &err)) assert_true(err.offset <= strlen(text));
    gpuir__where_free(w);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_read), cmocka_unit_test(test_errors),
      cmocka_unit_test(test_more_errors), cmocka_unit_test(test_limits), cmocka_unit_test(test_any)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
