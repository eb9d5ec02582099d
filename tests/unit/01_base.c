/* 01_base.c - temporary memory in files, allocations of files */
#define GPUIR_STATIC
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "alloc.h"
#include "rng.h"
#include "collection.h"

static void test_area(void **state) {
  gpuir_allocator a = gpuir__allocator(NULL);
  gpuir__area area = {NULL, 0, 0};
  gpuir_error err;
  char missing[96];
  (void)state;
  path_of(missing, "missing/area");
  assert_int_equal(gpuir__area_need(&a, &area, 100, 1000, path, 1, &err), 0);
  assert_false(area.mapped);
  memset(area.data, 1, 100);
  assert_int_equal(gpuir__area_need(&a, &area, 100000, 1000, path, 1, &err), 0);
  assert_true(area.mapped);
  memset(area.data, 1, 100000);
  assert_int_equal(gpuir__area_need(&a, &area, 1000000, 1000, missing, 1, &err), GPUIR_E_IO);
  assert_null(area.data);
  assert_int_equal(gpuir__area_need(&a, &area, UINT64_MAX, 1000, path, 1, &err), GPUIR_E_NOMEM);
  gpuir__area_free(&a, &area);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_area),
  };
  return cmocka_run_group_tests_name("01_base", tests, set_up, tear_down);
}
