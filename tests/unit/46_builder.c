/* 46_builder.c - indexes from postings: the bytes of the index that they come from, refusals, allocations that fail */
#include "private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "alloc.h"
#include "collection.h"

/* An index that is made from another's postings has its bytes. */
static void test_from_postings(void **state) {
  static const unsigned threads[] = {1, 2, 5};
  static const uint64_t memory[] = {1, 512};
  gpuir_builder_desc d = desc_of(path), like;
  gpuir_build_report r;
  gpuir_index *ix;
  gpuir_error err;
  char copy[96], *first;
  size_t n = 0, i, j;
  (void)state;
  empty_folder();
  d.store_text = 1;
  d.custom_bm25 = 1;
  d.k1 = 1.2f;
  d.b = 0.75f;
  d.codec = "vbyte";
  d.description = "words";
  d.order = "by hand";
  d.analyzer.stop_words = "10 11";
  if (build(&d, ndocs, &r, &err)) fail_msg("%s", err.msg);
  first = slurp(path, &n);
  assert_int_equal(gpuir_open(path, NULL, &ix, &err), 0);
  path_of(copy, "copy.gpuir");
  like = desc_of(copy);
  like.like = ix;
  like.store_text = 1;
  for (i = 0; i < 3; i++) {
    for (j = 0; j < 2; j++) {
      gpuir_build_report again;
      like.threads = threads[i];
      like.memory = memory[j] << 20;
      if (rebuild(&like, ix, &again, &err)) fail_msg("%s", err.msg);
      assert_same_file(copy, first, n);
      assert_int_equal(again.documents, r.documents);
      assert_int_equal(again.terms, r.terms);
      assert_int_equal(again.postings, r.postings);
      assert_int_equal(again.tokens, r.tokens);
      assert_int_equal(again.file_bytes, r.file_bytes);
      assert_int_equal(nfiles(folder), 2);
    }
  }
  like.codec = "bp128"; /* what is given wins */
  like.description = "other";
  like.reading = "members=a,b";
  like.order = "another";
  if (rebuild(&like, ix, &r, &err)) fail_msg("%s", err.msg);
  gpuir_close(ix);
  assert_int_equal(gpuir_open(copy, NULL, &ix, &err), 0);
  if (gpuir_verify(ix, &err)) fail_msg("%s", err.msg);
  {
    gpuir_index_info info;
    assert_int_equal(gpuir_index_get_info(ix, &info), 0);
    assert_string_equal(info.codec, "bp128");
    assert_string_equal(info.description, "other");
    assert_string_equal(info.reading, "members=a,b");
    assert_string_equal(info.order, "another");
    assert_true(info.k1 > 1.19f && info.b > 0.74f);
  }
  gpuir_close(ix);
  free(first);
  empty_folder();
}

/* No documents, documents without lists, and what is no list. */
static void test_refused_postings(void **state) {
  static const uint32_t one[] = {0, 2, 1}, two[] = {0, 1, 2}, tfs[] = {1, 2, 3}, none[] = {1, 0, 1};
  gpuir_builder_desc d = desc_of(path);
  gpuir_builder *b;
  gpuir_build_report r;
  gpuir_error err;
  gpuir_index *ix;
  char longest[257];
  uint32_t out[3];
  (void)state;
  memset(longest, 'q', sizeof longest);
  assert_int_equal(gpuir_builder_create(&d, &b, &err), 0);
  assert_int_equal(gpuir_builder_add_list(b, "a", 1, two, tfs, NULL, 1, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_builder_add_text(b, NULL, "x", 1, &err), 0);
  assert_int_equal(gpuir_builder_add_doc(b, NULL, 1, NULL, 0, &err), GPUIR_E_ARGUMENT);
  assert_non_null(strstr(err.msg, "text"));
  gpuir_builder_destroy(b);
  assert_int_equal(gpuir_builder_create(&d, &b, &err), 0);
  assert_int_equal(gpuir_builder_add_doc(b, NULL, 7, NULL, 0, &err), 0);
  assert_int_equal(gpuir_builder_add_doc(b, NULL, 8, "text that is not stored", 4, &err), 0);
  assert_int_equal(gpuir_builder_add_doc(b, NULL, 9, NULL, 0, &err), 0);
  assert_int_equal(gpuir_builder_add_text(b, NULL, "x", 1, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(add(b, "one", 3, 1, "two", 2, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_builder_add_list(b, "a", 1, one, tfs, NULL, 3, &err), GPUIR_E_ARGUMENT);
  assert_non_null(strstr(err.msg, "ascend"));
  assert_int_equal(gpuir_builder_add_list(b, "a", 1, two, none, NULL, 3, &err), GPUIR_E_ARGUMENT);
  assert_non_null(strstr(err.msg, "tf 0"));
  assert_int_equal(gpuir_builder_add_list(b, "a", 1, tfs, tfs, NULL, 3, &err), GPUIR_E_ARGUMENT);
  assert_non_null(strstr(err.msg, "no document"));
  assert_int_equal(gpuir_builder_add_list(b, "a", 1, two, tfs, NULL, 0, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_builder_add_list(b, "a", 1, NULL, tfs, NULL, 1, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_builder_add_list(b, "", 0, two, tfs, NULL, 1, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_builder_add_list(b, longest, 256, two, tfs, NULL, 1, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_builder_add_list(b, "b", 1, two, tfs, NULL, 3, &err), 0);
  assert_int_equal(gpuir_builder_add_list(b, "b", 1, two, tfs, NULL, 3, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_builder_add_list(b, "ab", 2, two, tfs, NULL, 3, &err), GPUIR_E_ARGUMENT);
  assert_non_null(strstr(err.msg, "'ab'"));
  assert_int_equal(gpuir_builder_add_list(b, longest, 255, two, tfs, NULL, 2, &err), 0);
  assert_int_equal(gpuir_builder_add_doc(b, NULL, 1, NULL, 0, &err), GPUIR_E_ARGUMENT);
  if (gpuir_builder_write(b, &r, &err)) fail_msg("%s", err.msg);
  assert_int_equal(gpuir_builder_add_list(b, "z", 1, two, tfs, NULL, 1, &err), GPUIR_E_ARGUMENT);
  gpuir_builder_destroy(b);
  assert_int_equal(r.documents, 3);
  assert_int_equal(r.terms, 2);
  assert_int_equal(r.postings, 5);
  assert_int_equal(r.tokens, 24);
  assert_int_equal(gpuir_open(path, NULL, &ix, &err), 0);
  assert_int_equal(gpuir_verify(ix, &err), 0);
  assert_int_equal(gpuir_term_postings(ix, 0, out, NULL), 0);
  assert_memory_equal(out, two, sizeof two);
  assert_int_equal(gpuir_term_postings(ix, 0, NULL, out), 0);
  assert_memory_equal(out, tfs, sizeof tfs);
  assert_int_equal(gpuir_term_postings(ix, 2, out, NULL), GPUIR_E_NOT_FOUND);
  assert_int_equal(gpuir_term_postings(NULL, 0, out, NULL), GPUIR_E_ARGUMENT);
  gpuir_close(ix);
  assert_int_equal(gpuir_builder_create(&d, &b, &err), 0);
  assert_int_equal(gpuir_builder_add_doc(b, NULL, 0, NULL, 0, &err), 0);
  if (gpuir_builder_write(b, &r, &err)) fail_msg("%s", err.msg);
  assert_int_equal(r.documents, 1);
  gpuir_builder_destroy(b);
}

/* An analyzer that nobody here has does not keep an index from being copied, only texts from being added. */
static void test_like_foreign(void **state) {
  gpuir_builder_desc d = desc_of(path), like;
  gpuir_builder *b;
  gpuir_index *ix;
  gpuir_error err;
  char copy[96];
  (void)state;
  d.analyzer.analyzer = "blanks";
  d.analyzer.tokenize = by_blanks;
  if (build(&d, 100, NULL, &err)) fail_msg("%s", err.msg);
  assert_int_equal(gpuir_open(path, NULL, &ix, &err), 0);
  path_of(copy, "copy.gpuir");
  like = desc_of(copy);
  like.like = ix;
  assert_int_equal(gpuir_builder_create(&like, &b, &err), 0);
  assert_int_equal(gpuir_builder_add_text(b, NULL, "x", 1, &err), GPUIR_E_UNSUPPORTED);
  gpuir_builder_destroy(b);
  if (rebuild(&like, ix, NULL, &err)) fail_msg("%s", err.msg);
  gpuir_close(ix);
  empty_folder();
}

/* Each allocation fails in turn while an index is made from postings. */
static void test_failing_rebuild(void **state) {
  gpuir_builder_desc d = desc_of(path);
  gpuir_allocator a;
  gpuir_index *ix;
  gpuir_error err;
  alloc_book f;
  char copy[96];
  int64_t total, i;
  (void)state;
  empty_folder();
  assert_int_equal(build(&d, 2000, NULL, &err), 0);
  assert_int_equal(gpuir_open(path, NULL, &ix, &err), 0);
  memset(&f, 0, sizeof f);
  a = alloc_from(&f);
  path_of(copy, "copy.gpuir");
  d = desc_of(copy);
  d.allocator = &a;
  d.like = ix;
  for (d.threads = 1; d.threads <= 3; d.threads += 2) {
    f.calls = f.fail_at = 0;
    assert_int_equal(rebuild(&d, ix, NULL, &err), 0);
    assert_int_equal(f.bytes, 0);
    (void)unlink(copy);
    total = f.calls;
    for (i = 1; i <= total; i += i < 60 ? 1 : 1 + total / 60) {
      int status;
      f.calls = 0;
      f.fail_at = i;
      status = rebuild(&d, ix, NULL, &err);
      assert_int_equal(f.bytes, 0);
      if (f.calls >= i) assert_int_equal(status, GPUIR_E_NOMEM);
      if (status) assert_int_equal(err.code, status);
      (void)unlink(copy);
      assert_int_equal(nfiles(folder), 1);
    }
  }
  gpuir_close(ix);
  empty_folder();
}

/* Writes an index of one document, of which it is said `times` that `text` was left out. */
static int write_skipped(const gpuir_allocator *a, const char *to, const char *text, int times, gpuir_error *err) {
  gpuir_builder_desc d = desc_of(to);
  gpuir_builder *b;
  int status;
  d.allocator = a;
  d.threads = 1;
  status = gpuir_builder_create(&d, &b, err);
  if (status) return status;
  if (!status) status = gpuir_builder_add_text(b, NULL, "wolf", 4, err);
  while (!status && times-- > 0) status = gpuir_builder_skipped(b, text, err);
  if (!status) status = gpuir_builder_write(b, NULL, err);
  gpuir_builder_destroy(b);
  return status;
}

/* What was left out comes back from the file that it was said of; nothing takes no byte; what is no line is refused. */
static void test_skipped(void **state) {
  char one[96], other[96], line[4098], *first;
  size_t n;
  gpuir_index_info info;
  gpuir_builder_desc like;
  gpuir_index *ix;
  gpuir_error err;
  alloc_book f;
  gpuir_allocator a;
  int64_t i, total;
  (void)state;
  empty_folder();
  path_of(one, "one.gpuir");
  path_of(other, "other.gpuir");
  assert_int_equal(write_skipped(NULL, one, "", 0, &err), 0);
  assert_int_equal(write_skipped(NULL, other, "", 1, &err), 0);
  first = slurp(one, &n);
  assert_same_file(other, first, n);
  free(first);
  memset(line, 'x', sizeof line);
  line[4097] = 0;
  assert_int_equal(write_skipped(NULL, other, NULL, 1, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(write_skipped(NULL, other, "a\nb", 1, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(write_skipped(NULL, other, line, 1, &err), GPUIR_E_ARGUMENT);
  line[4096] = 0;
  assert_int_equal(write_skipped(NULL, other, line, 1, &err), 0);
  assert_int_equal(write_skipped(NULL, other, "hidden=2\tlinks=1", 2, &err), 0);
  assert_int_equal(gpuir_open(other, NULL, &ix, &err), 0);
  assert_int_equal(gpuir_index_get_info(ix, &info), 0);
  assert_string_equal(info.skipped, "hidden=2\tlinks=1");
  like = desc_of(one);
  assert_int_equal(rebuild(&like, ix, NULL, &err), 0);
  gpuir_close(ix);
  assert_int_equal(gpuir_open(one, NULL, &ix, &err), 0);
  assert_int_equal(gpuir_index_get_info(ix, &info), 0);
  assert_string_equal(info.skipped, "");
  gpuir_close(ix);
  memset(&f, 0, sizeof f);
  a = alloc_from(&f);
  assert_int_equal(write_skipped(&a, one, "links=1", 2, &err), 0);
  for (i = 1, total = f.calls; i <= total; i++) {
    f.calls = 0;
    f.fail_at = i;
    if (write_skipped(&a, one, "links=1", 2, &err)) assert_int_equal(err.code, GPUIR_E_NOMEM);
    assert_int_equal(f.bytes, 0);
  }
  empty_folder();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_from_postings),
      cmocka_unit_test(test_refused_postings),
      cmocka_unit_test(test_like_foreign),
      cmocka_unit_test(test_failing_rebuild),
      cmocka_unit_test(test_skipped),
  };
  return cmocka_run_group_tests_name("46_builder", tests, set_up, tear_down);
}
