/* 40_columns.c - files whose columns are incomplete or do not fit are refused; damaged ones give no value; what a
 * writer does not know it does not touch */
#include "private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "rng.h"
#include "collection.h"
#include "columns.h"

#define DOCUMENTS 700

static char *data, *copy;
static size_t size;

static int build_index(void **state) {
  static raw_doc one;
  gpuir_builder_desc d;
  gpuir_builder *b;
  gpuir_error err;
  uint32_t i;
  (void)set_up(state);
  d = desc_of(path);
  d.fields = column_fields;
  d.nfields = NCOLUMNS;
  if (gpuir_builder_create(&d, &b, &err)) return -1;
  for (i = 0; i < DOCUMENTS; i++)
    if (gpuir_builder_add_text(b, raw_describe(i, &one), "x", 1, &err)) return -1;
  if (gpuir_builder_write(b, NULL, &err)) return -1;
  gpuir_builder_destroy(b);
  data = slurp(path, &size);
  copy = (char *)malloc(size);
  return !data || !copy;
}

static int drop_index(void **state) {
  free(data);
  free(copy);
  return tear_down(state);
}

/* The entry of a section in the copy. */
static gpuir__section *entry(uint32_t id) {
  gpuir__header *h = (gpuir__header *)(void *)copy;
  gpuir__section *s = (gpuir__section *)(void *)(copy + sizeof *h);
  uint32_t i;
  for (i = 0; i < h->sections && s[i].id != id; i++) {}
  assert_true(i < h->sections);
  return &s[i];
}

/* Opens the copy with checksums that are right. */
static int opened(gpuir_index **ix, gpuir_error *err) {
  gpuir__header *h = (gpuir__header *)(void *)copy;
  gpuir_open_desc d;
  memset(&d, 0, sizeof d);
  d.data = copy;
  d.size = size;
  h->table_hash = gpuir__hash(copy + sizeof *h, h->sections * sizeof(gpuir__section), 0);
  h->hash = gpuir__hash(h, offsetof(gpuir__header, hash), 0);
  return gpuir_open("memory", &d, ix, err);
}

static void test_incomplete(void **state) {
  gpuir_index *ix;
  gpuir_error err;
  uint32_t id;
  (void)state;
  for (id = GPUIR__S_COLUMNS; id <= GPUIR__S_KEY_PAGES; id++) {
    memcpy(copy, data, size);
    entry(id)->id = 99; /* unknown, and not required */
    assert_int_equal(opened(&ix, &err), GPUIR_E_FORMAT);
    assert_non_null(strstr(err.msg, "missing"));
    memcpy(copy, data, size);
    if (id != GPUIR__S_COL_DATA && id != GPUIR__S_KEY_TEXT) {
      entry(id)->length -= id == GPUIR__S_KEY_PAGES ? 4 : 2;
      assert_int_equal(opened(&ix, &err), GPUIR_E_FORMAT);
    }
  }
}

/* Rows that are of another field, or point outside. */
static void test_rows(void **state) {
  gpuir_index *ix;
  gpuir_error err;
  unsigned i;
  (void)state;
  for (i = 0; i < 8; i++) {
    gpuir__column *row;
    memcpy(copy, data, size);
    row = (gpuir__column *)(void *)(copy + entry(GPUIR__S_COLUMNS)->offset);
    switch (i) {
    case 0: row->kind++; break;
    case 1: row->decimals++; break;
    case 2: row->blocks++; break;
    case 3: row->data = UINT64_MAX - 15; break;
    case 4: row->data += 8; break;
    case 5: row->divisor = 0; break;
    case 6: row->page = UINT64_MAX; break;
    default: row->values = UINT64_MAX - 1;
    }
    assert_int_equal(opened(&ix, &err), GPUIR_E_FORMAT);
  }
}

/* A section or a setting of a later version: the file is read, and writers leave it alone. */
static void test_strange(void **state) {
  gpuir_index *ix;
  gpuir_error err;
  char *meta;
  unsigned i;
  (void)state;
  for (i = 0; i < 3; i++) {
    memcpy(copy, data, size);
    if (i == 1) entry(GPUIR__S_SEEDS)->id = 99;
    meta = copy + entry(GPUIR__S_META)->offset;
    if (i == 2) memcpy(strstr(meta, "description"), "descriptiom", 11);
    assert_int_equal(opened(&ix, &err), 0);
    raw_check(ix);
    assert_int_equal(gpuir__live_known(ix, &err), i ? GPUIR_E_UNSUPPORTED : 0);
    gpuir_close(ix);
  }
}

/* Values that are out of range are none; verify finds each. */
static void test_out_of_range(void **state) {
  char room[GPUIR_MAX_VALUE + 1];
  gpuir_value v;
  gpuir_index *ix;
  gpuir_error err;
  unsigned i;
  (void)state;
  for (i = 0; i < 4; i++) {
    gpuir__column *row;
    memcpy(copy, data, size);
    row = (gpuir__column *)(void *)(copy + entry(GPUIR__S_COLUMNS)->offset);
    switch (i) {
    case 0: row[IDENT].values = 1; break; /* ranks above it */
    case 1: memset(copy + entry(GPUIR__S_COL_OFF)->offset, 255, entry(GPUIR__S_COL_OFF)->length); break;
    case 2: memset(copy + entry(GPUIR__S_COL_FORM)->offset, 61, entry(GPUIR__S_COL_FORM)->length); break;
    default: memset(copy + entry(GPUIR__S_KEY_PAGES)->offset, 255, entry(GPUIR__S_KEY_PAGES)->length);
    }
    assert_int_equal(opened(&ix, &err), 0);
    assert_int_equal(gpuir_doc_value(ix, 500, IDENT, 0, &v, room), GPUIR_E_NOT_FOUND);
    assert_int_not_equal(gpuir_verify(ix, &err), 0);
    assert_int_not_equal(gpuir__verify_columns(ix->leaves[0].seg, &err), 0);
    gpuir_close(ix);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_incomplete), cmocka_unit_test(test_rows),
      cmocka_unit_test(test_strange), cmocka_unit_test(test_out_of_range)};
  return cmocka_run_group_tests(tests, build_index, drop_index);
}
