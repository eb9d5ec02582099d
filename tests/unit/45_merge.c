/* 45_merge.c - runs to an index: the same bytes for any threads and memory, also where threads cannot be started, the
 * order of documents, sources */
#define _GNU_SOURCE /* pthread_setattr_default_np */
#include "private.h"

#include <pthread.h>

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

/* Sets the stack of new threads; with far more than there is, none can be started. */
static void set_stack(size_t bytes) {
  pthread_attr_t attributes;
  assert_int_equal(pthread_attr_init(&attributes), 0);
  assert_int_equal(pthread_attr_setstacksize(&attributes, bytes), 0);
  assert_int_equal(pthread_setattr_default_np(&attributes), 0);
  assert_int_equal(pthread_attr_destroy(&attributes), 0);
}

/* Threads that cannot be started before document `late` of 3,000 was added. */
static void assert_late_threads(const gpuir_builder_desc *d, uint32_t late, const char *expected, size_t n) {
  const size_t stack = (size_t)1 << 20, far_too_much = (size_t)1 << 46;
  gpuir_builder *b;
  gpuir_error err;
  uint32_t i;
  assert_int_equal(gpuir_builder_create(d, &b, &err), 0);
  set_stack(far_too_much);
  for (i = 0; i < late; i++) assert_int_equal(add_doc(b, i, &err), 0);
  assert_int_equal(b->threads.nthreads, 0);
  assert_true(b->tasks.queue.pushed > 0);
  set_stack(stack);
  for (; i < 3000; i++) assert_int_equal(add_doc(b, i, &err), 0);
  assert_int_equal(b->threads.nthreads, d->threads);
  if (gpuir_builder_write(b, NULL, &err)) fail_msg("%s", err.msg);
  gpuir_builder_destroy(b);
  assert_same_file(d->path, expected, n);
}

static void test_threads_that_fail(void **state) {
  static const uint32_t late[] = {900, 1000, 2000};
  gpuir_builder_desc d = desc_of(path);
  gpuir_error err;
  char *expected;
  size_t n = 0, i;
  (void)state;
  d.threads = 1;
  if (build(&d, 3000, NULL, &err)) fail_msg("%s", err.msg);
  expected = slurp(path, &n);
  d.threads = 2; /* as many as a mebibyte allows */
  for (i = 0; i < 3; i++) assert_late_threads(&d, late[i], expected, n);
  set_stack((size_t)1 << 46); /* never */
  if (build(&d, 3000, NULL, &err)) fail_msg("%s", err.msg);
  set_stack((size_t)1 << 20);
  assert_same_file(path, expected, n);
  free(expected);
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
static void assert_patched_order(char *bytes, size_t n, const char *from, const char *to, const char *expected) {
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

/* The number of paths that the index keeps. */
static uint64_t nsources_of(const gpuir_index *ix) {
  const gpuir__section *const *section = gpuir__only(ix)->section;
  return gpuir__starts_count(section[GPUIR__S_SOURCES], section[GPUIR__S_SOURCE_START]) - 1;
}

/* Each source is stored once, with each stem; returns how many there are. */
static uint64_t assert_distinct_sources(const gpuir_index *ix) {
  const uint64_t n = nsources_of(ix);
  uint64_t i, j;
  for (i = 0; i < n; i++) {
    size_t len, other_len;
    const char *p = gpuir__slice(gpuir__only(ix), GPUIR__S_SOURCES, GPUIR__S_SOURCE_START, i, &len), *other;
    const uint8_t *stems = gpuir__only(ix)->map + gpuir__only(ix)->section[GPUIR__S_STEMS]->offset;
    for (j = 0; j < i; j++) {
      other = gpuir__slice(gpuir__only(ix), GPUIR__S_SOURCES, GPUIR__S_SOURCE_START, j, &other_len);
      if (len == other_len && !memcmp(p, other, len)) assert_memory_not_equal(stems + 4 * i, stems + 4 * j, 4);
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
    gpuir_builder_desc d = desc_of(path), like;
    gpuir_index *ix;
    gpuir_error err;
    char *bytes, copy[96];
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
    bytes = slurp(path, &n); /* what is copied without its texts has the same bytes */
    path_of(copy, "copy.gpuir");
    like = desc_of(copy);
    like.like = ix;
    if (rebuild(&like, ix, NULL, &err)) fail_msg("%s", err.msg);
    assert_same_file(copy, bytes, n);
    free(bytes);
    (void)unlink(copy);
    if (i) assert_int_equal(nsources_of(ix), nsources);
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
      cmocka_unit_test(test_threads_that_fail),
      cmocka_unit_test(test_order),
      cmocka_unit_test(test_sources),
      cmocka_unit_test(test_builds_agree),
  };
  return cmocka_run_group_tests_name("45_merge", tests, set_up, tear_down);
}
