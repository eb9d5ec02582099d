/* 37_layout.c - the table of sections, and the numbers by which a backend knows the structures */
#include "private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "alloc.h"
#include "rng.h"
#include "collection.h"

/* The table of sections: ids ascend, a section of offsets follows the one that it divides, each buffer and each field
 * has one row, and what a reader can do without has no field that would point nowhere, but the seeds, the
 * positions, the dense lists and the columns (whose numbers are 0 then), and what a shard knows of its collection. */
static void test_section_table(void **state) {
  unsigned i, j;
  (void)state;
  assert_int_equal(gpuir__section_rows[GPUIR__SECTION_ROWS - 1].id + 1, GPUIR__S_COUNT);
  assert_int_equal(gpuir__section_rows[GPUIR__W_STEMS].id, GPUIR__S_STEMS);
  for (i = 0; i < GPUIR__SECTION_ROWS; i++) {
    const gpuir__section_row *row = &gpuir__section_rows[i];
    assert_true(row->presence < GPUIR__P_COUNT && row->group < GPUIR__G_COUNT && row->item_size);
    if (row->presence != GPUIR__P_ALWAYS && row->presence != GPUIR__P_POSITIONS && row->presence != GPUIR__P_SHARD &&
        row->presence != GPUIR__P_DENSE && row->presence != GPUIR__P_COLUMNS)
      assert_true(!row->field || row->id == GPUIR__S_SEEDS);
    if (row->items == GPUIR__N_DOC_ENDS || row->items == GPUIR__N_ENDS) {
      assert_true(i > 0);
      assert_int_equal(row->item_size, 1);
      assert_int_equal(row[-1].items, GPUIR__N_ANY);
      assert_int_equal(row[-1].presence, row->presence);
    }
    for (j = 0; j < i; j++) {
      const gpuir__section_row *other = &gpuir__section_rows[j];
      assert_true(other->id < row->id);
      assert_true(!row->batch || row->batch != other->batch);
      assert_true(!row->field || row->field != other->field);
    }
  }
}

/* An index and its searcher carry the numbers by which the CUDA backend knows this header's structures. */
static void test_layout(void **state) {
  gpuir_builder_desc d = desc_of(path);
  gpuir_index *ix;
  gpuir_searcher *s;
  uint32_t first;
  (void)state;
  assert_int_equal(build(&d, 100, NULL, NULL), GPUIR_OK);
  assert_int_equal(gpuir_open(path, NULL, &ix, NULL), GPUIR_OK);
  assert_int_equal(gpuir_searcher_create(ix, NULL, &s, NULL), GPUIR_OK);
  memcpy(&first, ix, sizeof first);
  assert_int_equal(first, gpuir__index_layout());
  memcpy(&first, s, sizeof first);
  assert_int_equal(first, gpuir__searcher_layout());
  assert_int_not_equal(GPUIR__LAYOUT(400, 96, 8), GPUIR__LAYOUT(408, 96, 8));
  assert_int_not_equal(GPUIR__LAYOUT(400, 96, 8), GPUIR__LAYOUT(400, 104, 8));
  assert_int_not_equal(GPUIR__LAYOUT(400, 96, 8), GPUIR__LAYOUT(400, 96, 16));
  gpuir_searcher_destroy(s);
  gpuir_close(ix);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_section_table),
      cmocka_unit_test(test_layout),
  };
  return cmocka_run_group_tests_name("37_layout", tests, set_up, tear_down);
}
