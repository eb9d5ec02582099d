/* 16_base.c - errors, buffers, temporary files and temporary memory */
#include "private.h"

#include <setjmp.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "alloc.h"
#include "rng.h"
#include "collection.h"

static void test_messages(void **state) {
  char path_of_200[201];
  gpuir_error err;
  (void)state;
  assert_int_equal(gpuir__fail(NULL, GPUIR_E_IO, 7, "no one hears %d", 1), GPUIR_E_IO);
  assert_int_equal(gpuir__fail(&err, GPUIR_E_FORMAT, 7, "%s at %d", "wrong", 7), GPUIR_E_FORMAT);
  assert_int_equal(err.code, GPUIR_E_FORMAT);
  assert_int_equal(err.offset, 7);
  assert_string_equal(err.msg, "wrong at 7");
  memset(path_of_200, 'p', 200);
  memcpy(path_of_200 + 194, "/file", 6);
  errno = ENOSPC; /* a message has room for the end of the path and the reason */
  assert_int_equal(gpuir__fail_errno(&err, path_of_200, "cannot write"), GPUIR_E_IO);
  assert_non_null(strstr(err.msg, "/file: cannot write: "));
  assert_non_null(strstr(err.msg, strerror(ENOSPC)));
  errno = ENOMEM;
  assert_int_equal(gpuir__fail_errno(&err, "file", "cannot map"), GPUIR_E_NOMEM);
}

/* What is put stays while the buffer grows; what has no room changes nothing; all memory is given back. */
static void test_buffers(void **state) {
  alloc_book book;
  gpuir_allocator a = alloc_from(&book);
  gpuir__buf buf = {NULL, 0, 0};
  uint32_t i;
  (void)state;
  memset(&book, 0, sizeof book);
  for (i = 0; i < 5000; i++) assert_int_equal(gpuir__buf_put(&a, &buf, &i, sizeof i), GPUIR_OK);
  assert_int_equal(gpuir__buf_put(&a, &buf, NULL, 0), GPUIR_OK);
  assert_int_equal(buf.len, 20000);
  book.fail_at = book.calls + 1;
  assert_int_equal(gpuir__buf_put(&a, &buf, buf.data, buf.cap), GPUIR_E_NOMEM);
  assert_null(gpuir__buf_room(&a, &buf, SIZE_MAX - 100));
  assert_int_equal(buf.len, 20000);
  for (i = 0; i < 5000; i++) assert_memory_equal(buf.data + 4 * i, &i, 4);
  gpuir__buf_free(&a, &buf);
  assert_true(book.blocks == 0 && book.bytes == 0 && !buf.data);
}

/* Pieces of all sizes beside that of the buffer come back, from the file and from what is not flushed. */
static void test_spool(void **state) {
  enum { CAP = 64, MOST = 20000 };
  static uint8_t model[MOST], back[MOST];
  alloc_book book;
  gpuir_allocator a = alloc_from(&book);
  gpuir__spool spool;
  gpuir_error err;
  char missing[96];
  size_t len = 0;
  int has, i, status;
  (void)state;
  memset(&book, 0, sizeof book);
  path_of(missing, "missing/spool");
  gpuir__spool_open(&a, &spool, missing, 1, CAP);
  assert_int_equal(gpuir__spool_put(&spool, model, CAP, &err), GPUIR_OK); /* there is no file yet */
  assert_int_equal(gpuir__spool_put(&spool, model, 1, &err), GPUIR_E_IO);
  assert_non_null(strstr(err.msg, "missing/spool.1"));
  gpuir__spool_close(&spool);
  for (book.fail_at = 1; book.fail_at <= 2; book.fail_at++) { /* the buffer; the file's name */
    book.calls = 0;
    gpuir__spool_open(&a, &spool, path, 1, CAP);
    status = gpuir__spool_put(&spool, model, CAP, &err);
    if (!status) status = gpuir__spool_put(&spool, model, 1, &err);
    assert_int_equal(status, GPUIR_E_NOMEM);
    gpuir__spool_close(&spool);
  }
  book.fail_at = 0;
  assert_int_equal(book.blocks, 0);
  gpuir__spool_open(&a, &spool, path, 1, CAP);
  assert_int_equal(nfiles(folder), 0);
  while (len + 3 * CAP < MOST) {
    size_t n = below(3 * CAP), at, m;
    for (at = 0; at < n; at++) model[len + at] = (uint8_t)rnd();
    assert_int_equal(gpuir__spool_put(&spool, model + len, n, &err), GPUIR_OK);
    len += n;
    assert_int_equal(spool.len, len);
    if (!len) continue;
    at = below((uint32_t)len);
    m = 1 + below((uint32_t)(len - at));
    assert_int_equal(gpuir__spool_has(&spool, model + at, m, at, &has, &err), GPUIR_OK);
    assert_true(has);
    model[at + m - 1] ^= 1;
    assert_int_equal(gpuir__spool_has(&spool, model + at, m, at, &has, &err), GPUIR_OK);
    assert_false(has);
    model[at + m - 1] ^= 1;
  }
  assert_int_equal(nfiles(folder), 0); /* the file has no name any more */
  assert_int_equal(gpuir__spool_end(&spool, &err), GPUIR_OK);
  assert_null(spool.buf);
  for (i = 0; i < 100; i++) {
    size_t at = below((uint32_t)len), n = below((uint32_t)(len - at) + 1);
    assert_int_equal(gpuir__spool_get(&spool, back, n, at, &err), GPUIR_OK);
    assert_memory_equal(back, model + at, n);
  }
  assert_int_equal(gpuir__spool_get(&spool, back, 2, len - 1, &err), GPUIR_E_IO); /* beyond the end */
  gpuir__spool_close(&spool);
  assert_int_equal(book.blocks, 0);
}

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
      cmocka_unit_test(test_messages),
      cmocka_unit_test(test_buffers),
      cmocka_unit_test(test_spool),
      cmocka_unit_test(test_area),
  };
  return cmocka_run_group_tests_name("16_base", tests, set_up, tear_down);
}
