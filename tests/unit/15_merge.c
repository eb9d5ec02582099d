/* 15_merge.c - runs to an index: the same bytes for any threads and memory, indexes from postings, the order of
 * documents, sources */
#define GPUIR_STATIC
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "alloc.h"
#include "oracle.h"
#include "corpus.h"
#include "fixture.h"
#include "collection.h"

static void test_same_bytes(void **state) {
  static const unsigned threads[] = {1, 2, 5};
  static const uint64_t memory[] = {1, 8, 512};
  size_t n = 0, i, j;
  char *first = NULL;
  gpuir_error err;
  (void)state;
  for (i = 0; i < 3; i++) {
    for (j = 0; j < 3; j++) {
      gpuir_builder_desc d = desc_of(path);
      gpuir_build_report r;
      d.threads = threads[i];
      d.memory = memory[j] << 20;
      d.simd = (int)((i + j) % 4);
      if (build(&d, ndocs, &r, &err)) fail_msg("%s", err.msg);
      assert_int_equal(r.documents, ndocs);
      assert_int_equal(r.postings, nposts);
      assert_int_equal(r.tokens, ntokens);
      assert_int_equal(r.text_bytes, text_bytes);
      assert_true(r.peak_memory > 0);
      if (memory[j] == 1) assert_true(r.runs > threads[i]);
      if (first) {
        assert_same_file(path, first, n);
      } else {
        first = slurp(path, &n);
        assert_non_null(first);
      }
      assert_int_equal(r.file_bytes, n);
      assert_int_equal(nfiles(folder), 1);
    }
  }
  free(first);
}

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
  assert_int_equal(gpuir_builder_add_list(b, "a", 1, two, tfs, 1, &err), GPUIR_E_ARGUMENT);
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
  assert_int_equal(gpuir_builder_add_list(b, "a", 1, one, tfs, 3, &err), GPUIR_E_ARGUMENT);
  assert_non_null(strstr(err.msg, "ascend"));
  assert_int_equal(gpuir_builder_add_list(b, "a", 1, two, none, 3, &err), GPUIR_E_ARGUMENT);
  assert_non_null(strstr(err.msg, "tf 0"));
  assert_int_equal(gpuir_builder_add_list(b, "a", 1, tfs, tfs, 3, &err), GPUIR_E_ARGUMENT);
  assert_non_null(strstr(err.msg, "no document"));
  assert_int_equal(gpuir_builder_add_list(b, "a", 1, two, tfs, 0, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_builder_add_list(b, "a", 1, NULL, tfs, 1, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_builder_add_list(b, "", 0, two, tfs, 1, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_builder_add_list(b, longest, 256, two, tfs, 1, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_builder_add_list(b, "b", 1, two, tfs, 3, &err), 0);
  assert_int_equal(gpuir_builder_add_list(b, "b", 1, two, tfs, 3, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_builder_add_list(b, "ab", 2, two, tfs, 3, &err), GPUIR_E_ARGUMENT);
  assert_non_null(strstr(err.msg, "'ab'"));
  assert_int_equal(gpuir_builder_add_list(b, longest, 255, two, tfs, 2, &err), 0);
  assert_int_equal(gpuir_builder_add_doc(b, NULL, 1, NULL, 0, &err), GPUIR_E_ARGUMENT);
  if (gpuir_builder_write(b, &r, &err)) fail_msg("%s", err.msg);
  assert_int_equal(gpuir_builder_add_list(b, "z", 1, two, tfs, 1, &err), GPUIR_E_ARGUMENT);
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

static void assert_order(const char *expected) {
  gpuir_index *ix;
  gpuir_index_info info;
  gpuir_error err;
  if (gpuir_open(path, NULL, &ix, &err)) fail_msg("%s", err.msg);
  assert_int_equal(gpuir_index_get_info(ix, &info), 0);
  assert_string_equal(info.order, expected);
  gpuir_close(ix);
}

/* Writes the bytes anew, `from` replaced by `to` of the same length; the table's checksums are not gpuir_open's. */
static void assert_patched_order(char *bytes, size_t n, const char *from, const char *to,
                                 const char *expected) {
  size_t len = strlen(from), at = 0;
  FILE *f;
  assert_int_equal(strlen(to), len);
  while (at < n - len && memcmp(bytes + at, from, len)) at++;
  assert_true(at < n - len);
  memcpy(bytes + at, to, len);
  (void)unlink(path);
  f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(bytes, 1, n, f), n);
  assert_int_equal(fclose(f), 0);
  assert_order(expected);
}

/* What an index says of its documents' order; one that says nothing, or too much, has an unknown one. */
static void test_order(void **state) {
  static const char longest[] = "123456789012345678901234567890123456789012345678901234567890123";
  gpuir_builder_desc d = desc_of(path);
  gpuir_builder *b;
  gpuir_error err;
  char more[GPUIR__ORDER_MAX + 2], *bytes;
  size_t n = 0;
  (void)state;
  assert_int_equal(build(&d, 3, NULL, &err), 0);
  assert_order("unknown");
  d.order = "";
  assert_int_equal(build(&d, 3, NULL, &err), 0);
  assert_order("unknown");
  d.order = "one\ncodec=two";
  assert_int_equal(build(&d, 3, NULL, &err), 0);
  assert_order("one codec=two");
  (void)snprintf(more, sizeof more, "%s4", longest);
  d.order = more;
  assert_int_equal(gpuir_builder_create(&d, &b, &err), GPUIR_E_ARGUMENT);
  d.order = longest;
  assert_int_equal(build(&d, 3, NULL, &err), 0);
  assert_order(longest);
  bytes = slurp(path, &n);
  assert_patched_order(bytes, n, "123\n", "123=", "unknown"); /* its line has no end */
  free(bytes);
  d.description = "-3456";
  assert_int_equal(build(&d, 3, NULL, &err), 0);
  bytes = slurp(path, &n);
  assert_patched_order(bytes, n, "-3456\norder=1", "-3456=order=1", "unknown");
  assert_patched_order(bytes, n, "description=-3456=order=", "order===================", "unknown");
  free(bytes);
  empty_folder();
}

/* The same while an index is made from postings. */
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

/* Each source is stored once, with each stem; returns how many there are. */
static uint64_t assert_distinct_sources(const gpuir_index *ix) {
  const uint64_t n = ix->section[GPUIR__S_SOURCE_START]->length / 8 - 1;
  uint64_t i, j;
  for (i = 0; i < n; i++) {
    size_t len, other_len;
    const char *p = gpuir__slice(ix, GPUIR__S_SOURCES, GPUIR__S_SOURCE_START, i, &len), *other;
    const uint8_t *stems = ix->map + ix->section[GPUIR__S_STEMS]->offset;
    for (j = 0; j < i; j++) {
      other = gpuir__slice(ix, GPUIR__S_SOURCES, GPUIR__S_SOURCE_START, j, &other_len);
      if (len == other_len && !memcmp(p, other, len))
        assert_memory_not_equal(stems + 4 * i, stems + 4 * j, 4);
    }
  }
  return n;
}

static void test_sources(void **state) {
  static const uint32_t steps[] = {1, 7919}; /* by source, and far from it */
  uint64_t nsources = 0;
  size_t i;
  (void)state;
  empty_folder();
  for (i = 0; i < 2; i++) {
    gpuir_builder_desc d = desc_of(path);
    gpuir_index *ix;
    gpuir_error err;
    char *bytes;
    size_t n;
    d.memory = 64 << 20;
    if (build_sourced(&d, steps[i], &err)) fail_msg("%s", err.msg);
    bytes = slurp(path, &n);
    d.memory = 1 << 20; /* the table of sources is a file then */
    if (build_sourced(&d, steps[i], &err)) fail_msg("%s", err.msg);
    assert_same_file(path, bytes, n);
    free(bytes);
    assert_int_equal(nfiles(folder), 1);
    assert_int_equal(gpuir_open(path, NULL, &ix, &err), 0);
    if (gpuir_verify(ix, &err)) fail_msg("%s", err.msg);
    assert_sourced(ix, steps[i]);
    if (i) assert_int_equal(ix->section[GPUIR__S_SOURCE_START]->length / 8 - 1, nsources);
    nsources = assert_distinct_sources(ix);
    assert_true(nsources > SOURCES && nsources < 3 * SOURCES);
    gpuir_close(ix);
  }
  empty_folder();
}

/* Runs, memory budget and threads do not change the hits, nor the bytes. */
static void test_builds_agree(void **state) {
  static const uint64_t memory[] = {0, 1 << 20, 8 << 20};
  static const unsigned threads[] = {0, 1, 3};
  fixture f;
  char file[4200];
  unsigned char *first = NULL;
  long first_len = 0;
  int m, t;
  (void)state;
  corpus_zipf(&f.o, 40000, 5000, 12, 151);
  setup_codecs(&f, "builds", NULL, 1);
  (void)corpus_path(file, sizeof file, "builds.gpuir");
  for (m = 0; m < 3; m++)
    for (t = 0; t < 3; t++) {
      corpus_build how;
      gpuir_error err;
      FILE *in;
      long len;
      unsigned char *bytes;
      memset(&how, 0, sizeof how);
      how.memory = memory[m];
      how.threads = threads[t];
      if (corpus_write(&f.o, file, &how, &err)) fail_msg("%s", err.msg);
      in = fopen(file, "rb");
      assert_non_null(in);
      (void)fseek(in, 0, SEEK_END);
      len = ftell(in);
      rewind(in);
      bytes = (unsigned char *)oracle_grow(NULL, (size_t)len, 1);
      assert_int_equal(fread(bytes, 1, (size_t)len, in), len);
      (void)fclose(in);
      if (!first) {
        first = bytes;
        first_len = len;
        continue;
      }
      assert_int_equal(len, first_len);
      if (memcmp(bytes, first, (size_t)len)) fail_msg("other bytes with memory %d, threads %d", m, t);
      free(bytes);
      compared++;
    }
  free(first);
  (void)unlink(file);
  teardown(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_same_bytes),
      cmocka_unit_test(test_from_postings),
      cmocka_unit_test(test_refused_postings),
      cmocka_unit_test(test_like_foreign),
      cmocka_unit_test(test_order),
      cmocka_unit_test(test_failing_rebuild),
      cmocka_unit_test(test_sources),
      cmocka_unit_test(test_builds_agree),
  };
  return cmocka_run_group_tests_name("15_merge", tests, set_up, tear_down);
}
