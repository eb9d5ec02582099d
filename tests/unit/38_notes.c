/* 38_notes.c - columns are packed in the form that is smallest, and their bytes depend on the documents alone */
#include "private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "alloc.h"
#include "rng.h"
#include "collection.h"
#include "columns.h"

/* Builds an index of documents [from, to) of the kind columns.h makes. */
static int build_raw(const gpuir_builder_desc *d, uint32_t from, uint32_t to, gpuir_error *err) {
  static raw_doc one;
  gpuir_builder *b;
  int status = gpuir_builder_create(d, &b, err);
  if (status) return status;
  for (; from < to && !status; from++)
    status = gpuir_builder_add_text(b, raw_describe(from, &one), "some words", 10, err);
  if (!status) status = gpuir_builder_write(b, NULL, err);
  gpuir_builder_destroy(b);
  return status;
}

static gpuir_builder_desc raw_desc(void) {
  gpuir_builder_desc d = desc_of(path);
  d.fields = column_fields;
  d.nfields = NCOLUMNS;
  return d;
}

/* Removes a live index's folder. */
static void remove_index(const char *name) {
  char at[512];
  DIR *dir = opendir(name);
  struct dirent *e;
  assert_non_null(dir);
  while ((e = readdir(dir))) {
    (void)snprintf(at, sizeof at, "%s/%s", name, e->d_name);
    (void)unlink(at);
  }
  (void)closedir(dir);
  assert_int_equal(rmdir(name), 0);
}

static void test_values(void **state) {
  static const uint32_t sizes[] = {0, 1, 127, 128, 129, 1500, 5000};
  gpuir_builder_desc d = raw_desc();
  gpuir_index_info info;
  gpuir_index *ix;
  gpuir_error err;
  gpuir_field f;
  size_t i;
  (void)state;
  for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    assert_int_equal(build_raw(&d, 0, sizes[i], &err), 0);
    assert_int_equal(gpuir_open(path, NULL, &ix, &err), 0);
    assert_int_equal(gpuir_verify(ix, &err), 0);
    raw_check(ix);
    assert_int_equal(gpuir_index_get_info(ix, &info), 0);
    assert_true(info.columns_bytes > 0 && info.columns_bytes < info.file_bytes);
    assert_int_equal(gpuir_field_get(ix, TAG, &f), 0);
    assert_string_equal(f.member, "meta.tags");
    assert_int_equal(gpuir_field_get(ix, PRICE, &f), 0);
    assert_true(f.decimals == 2 && f.column == GPUIR_NUMBER && !strcmp(f.name, "price") && !strcmp(f.member, "price"));
    assert_int_equal(gpuir_field_get(ix, NCOLUMNS, &f), GPUIR_E_NOT_FOUND);
    gpuir_close(ix);
  }
}

/* Each form is there: otherwise the tests of the others would test nothing. */
static void test_forms(void **state) {
  gpuir_builder_desc d = raw_desc();
  unsigned seen[8] = {0}, wide = 0, narrow = 0, empty = 0, c;
  gpuir_index *ix;
  gpuir_error err;
  (void)state;
  assert_int_equal(build_raw(&d, 0, 5000, &err), 0);
  assert_int_equal(gpuir_open(path, NULL, &ix, &err), 0);
  for (c = 0; c < NCOLUMNS; c++) {
    const gpuir__segment *seg = ix->leaves[0].seg;
    uint64_t block;
    for (block = 0; block < seg->columns.blocks; block++) {
      const unsigned form = seg->columns.form[c * seg->columns.blocks + block];
      seen[form >> 8]++;
      wide += (form & 255) == 64;
      narrow += (form & 255) == 0;
      empty += seg->columns.least[c * seg->columns.blocks + block] > seg->columns.most[c * seg->columns.blocks + block];
    }
  }
  assert_true(seen[0] && seen[GPUIR__FORM_TABLE] && seen[GPUIR__FORM_MIXED] && seen[GPUIR__FORM_SEVERAL]);
  assert_true(wide && narrow && empty);
  assert_true(ix->leaves[0].seg->columns.rows[DAY].divisor == 86400);
  assert_true(ix->leaves[0].seg->columns.rows[PRICE].least == INT64_MIN);
  gpuir_close(ix);
}

/* The same bytes whatever the threads and the budget, in one go or by live adding and merging. */
static void test_bytes(void **state) {
  static raw_doc one;
  gpuir_builder_desc d = raw_desc();
  gpuir_live_desc ld;
  gpuir_live *live;
  gpuir_index *ix;
  gpuir_error err;
  char *want, name[96], at[128];
  size_t n = 0;
  uint32_t i;
  (void)state;
  d.memory = 64 << 20;
  assert_int_equal(build_raw(&d, 0, 3000, &err), 0);
  want = slurp(path, &n);
  for (d.threads = 1; d.threads < 4; d.threads++) {
    d.memory = 1 << 20;
    assert_int_equal(build_raw(&d, 0, 3000, &err), 0);
    assert_same_file(path, want, n);
  }
  path_of(name, "live");
  memset(&ld, 0, sizeof ld);
  ld.settings = raw_desc();
  ld.settings.path = name;
  ld.create = 1;
  assert_int_equal(gpuir_live_open(&ld, &live, &err), 0);
  for (i = 5000; i < 8300; i++) { /* every tenth of those that stay is among others that go */
    char text[16];
    const size_t len = (size_t)sprintf(text, "%u", i);
    if (i < 5300) assert_int_equal(gpuir_live_add(live, raw_describe(i, &one), "some words", 10, &err), 0);
    else assert_int_equal(gpuir_live_add(live, raw_describe(i - 5300, &one), "some words", 10, &err), 0);
    if (i % 700 == 0) assert_int_equal(gpuir_live_commit(live, &err), 0);
    if (i < 5300) assert_int_equal(gpuir_live_delete(live, GPUIR_BY_NAME, text, len, NULL, &err), 0);
  }
  assert_int_equal(gpuir_live_refresh(live, &ix, &err), 0);
  assert_true(ix->nleaves > 1);
  raw_check(ix);
  gpuir_close(ix);
  assert_int_equal(gpuir_live_commit(live, &err), 0);
  assert_int_equal(gpuir_live_merge(live, 1, NULL, &err), 0);
  assert_int_equal(gpuir_live_commit(live, &err), 0);
  gpuir_live_close(live);
  assert_int_equal(gpuir_open(name, NULL, &ix, &err), 0);
  assert_int_equal(ix->nleaves, 1);
  assert_int_equal(gpuir_verify(ix, &err), 0);
  (void)snprintf(at, sizeof at, "%s/%06u.gpuir", name, (unsigned)ix->leaves[0].seg->number);
  assert_same_file(at, want, n);
  raw_check(ix);
  gpuir_close(ix);
  remove_index(name);
  free(want);
}

static void test_refused(void **state) {
  static const char big[GPUIR_MAX_VALUE + 1] = {'x'};
  static const gpuir_value wrong[] = {{NCOLUMNS, "x", 1, 0}, {LANG, NULL, 0, 7}, {LANG, "x", 0, 0},
      {LANG, "a\0b", 3, 0}, {LANG, big, sizeof big, 0}, {SIZE, "12", 2, 12}};
  const gpuir_value twice[2] = {{SIZE, NULL, 0, 1}, {SIZE, NULL, 0, 1}};
  gpuir_field field = {"and", NULL, GPUIR_KEY, 0};
  gpuir_builder_desc d = raw_desc();
  gpuir_doc_desc given;
  gpuir_builder *b;
  gpuir_error err;
  size_t i;
  (void)state;
  memset(&given, 0, sizeof given);
  assert_int_equal(gpuir_builder_create(&d, &b, &err), 0);
  for (i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    given.values = &wrong[i];
    given.nvalues = 1;
    assert_int_equal(gpuir_builder_add_text(b, &given, "x", 1, &err), GPUIR_E_ARGUMENT);
  }
  given.values = twice;
  given.nvalues = 2;
  assert_int_equal(gpuir_builder_add_text(b, &given, "x", 1, &err), GPUIR_E_ARGUMENT);
  given.values = NULL;
  assert_int_equal(gpuir_builder_add_text(b, &given, "x", 1, &err), GPUIR_E_ARGUMENT);
  given.nvalues = 0;
  assert_int_equal(gpuir_builder_add_text(b, &given, "x", 1, &err), 0);
  gpuir_builder_destroy(b);
  d.fields = &field;
  d.nfields = 1;
  assert_int_equal(gpuir_builder_create(&d, &b, &err), GPUIR_E_ARGUMENT);
  field.name = "fine";
  field.decimals = 1;
  assert_int_equal(gpuir_builder_create(&d, &b, &err), GPUIR_E_ARGUMENT);
  d.nfields = 0;
  assert_int_equal(gpuir_builder_create(&d, &b, &err), 0);
  given.values = twice;
  given.nvalues = 1;
  assert_int_equal(gpuir_builder_add_text(b, &given, "x", 1, &err), GPUIR_E_ARGUMENT);
  gpuir_builder_destroy(b);
}

/* Memory that runs out at any call, and a disk that is full. */
static void test_failures(void **state) {
  alloc_book book = {0, 0, 0, 0, 0};
  gpuir_allocator a = alloc_from(&book);
  gpuir_builder_desc d = raw_desc();
  gpuir_error err;
  int64_t calls;
  (void)state;
  d.allocator = &a;
  d.threads = 1;
  assert_int_equal(build_raw(&d, 0, 700, &err), 0);
  for (calls = book.calls, book.fail_at = 1; book.fail_at <= calls; book.fail_at += 1 + book.fail_at / 40) {
    book.calls = 0;
    book.forever = 1;
    assert_int_equal(build_raw(&d, 0, 700, &err), GPUIR_E_NOMEM);
    assert_int_equal(book.blocks, 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_forms),
      cmocka_unit_test(test_bytes), cmocka_unit_test(test_refused), cmocka_unit_test(test_failures)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
