/* 64_folder.c - the folder of a live index: damaged manifests, segments that are not those of the manifest, sharing */
#include "private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "rng.h"
#include "oracle.h"
#include "corpus.h"

static char folder[4200];

static char *in_folder(const char *name) {
  static char path[4600];
  (void)snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static size_t load(const char *name, uint8_t *bytes, size_t cap) {
  FILE *in = fopen(in_folder(name), "rb");
  size_t n;
  assert_non_null(in);
  n = fread(bytes, 1, cap, in);
  (void)fclose(in);
  return n;
}

static void store(const char *name, const uint8_t *bytes, size_t n) {
  FILE *out = fopen(in_folder(name), "wb");
  assert_non_null(out);
  assert_int_equal(fwrite(bytes, 1, n, out), n);
  assert_int_equal(fclose(out), 0);
}

static void add(gpuir_live *l, const char *name, const char *text) {
  gpuir_doc_desc doc;
  memset(&doc, 0, sizeof doc);
  doc.name = name;
  doc.name_len = strlen(name);
  assert_int_equal(gpuir_live_add(l, &doc, text, strlen(text), NULL), GPUIR_OK);
}

static gpuir_live *open_live(void) {
  gpuir_live_desc desc;
  gpuir_live *l;
  gpuir_error err;
  memset(&desc, 0, sizeof desc);
  desc.settings.path = folder;
  desc.settings.memory = 1 << 20;
  desc.create = 1;
  if (gpuir_live_open(&desc, &l, &err)) fail_msg("%s", err.msg);
  return l;
}

/* Two segments, 000002 and 000003, of three documents each, one of which is deleted from the first. */
static int make_folder(void **state) {
  gpuir_index *ix;
  gpuir_live *l;
  uint64_t n;
  (void)state;
  (void)corpus_path(folder, sizeof folder, "live");
  l = open_live();
  add(l, "a", "one two");
  add(l, "b", "two three");
  add(l, "c", "three");
  assert_int_equal(gpuir_live_refresh(l, &ix, NULL), GPUIR_OK);
  gpuir_close(ix);
  add(l, "d", "one");
  add(l, "e", "four");
  add(l, "f", "five");
  assert_int_equal(gpuir_live_delete(l, GPUIR_BY_NAME, "b", 1, &n, NULL), GPUIR_OK);
  assert_int_equal(n, 1);
  assert_int_equal(gpuir_live_commit(l, NULL), GPUIR_OK);
  gpuir_live_close(l);
  return 0;
}

static int remove_folder(void **state) {
  static const char *const names[] = {"manifest", "manifest.tmp", "lock", "000001.gpuir", "000002.gpuir",
      "000003.gpuir", "000004.gpuir"};
  size_t i;
  (void)state;
  for (i = 0; i < sizeof names / sizeof *names; i++) (void)unlink(in_folder(names[i]));
  return rmdir(folder);
}

static void test_open(void **state) {
  gpuir_index *ix, *more;
  gpuir_open_desc desc;
  gpuir_index_info info;
  gpuir_error err;
  gpuir_builder_desc own;
  gpuir_builder *b;
  gpuir_live *l;
  uint64_t content, generation;
  (void)state;
  assert_int_equal(gpuir_open(folder, NULL, &ix, &err), GPUIR_OK);
  assert_int_equal(gpuir_index_get_info(ix, &info), GPUIR_OK);
  assert_int_equal(info.documents, 5);
  assert_int_equal(info.docids, 6);
  assert_int_equal(info.segments, 2);
  content = info.content;
  generation = info.generation;
  assert_int_equal(gpuir_verify(ix, &err), GPUIR_OK);
  memset(&desc, 0, sizeof desc);
  desc.share = ix;
  l = open_live();
  assert_int_equal(gpuir_live_delete(l, GPUIR_BY_NAME, "f", 1, NULL, NULL), GPUIR_OK);
  assert_int_equal(gpuir_live_commit(l, NULL), GPUIR_OK);
  gpuir_live_close(l);
  assert_int_equal(gpuir_open(folder, &desc, &more, &err), GPUIR_OK);
  assert_int_equal(gpuir_index_get_info(more, &info), GPUIR_OK);
  assert_int_equal(info.documents, 4);
  assert_int_equal(info.content, content + 1);
  assert_int_equal(info.generation, generation + 1);
  assert_ptr_equal(more->leaves[0].seg, ix->leaves[0].seg); /* and what is deleted from it */
  assert_ptr_equal(more->leaves[0].deleted, ix->leaves[0].deleted);
  assert_ptr_equal(more->leaves[1].seg, ix->leaves[1].seg);
  assert_ptr_equal(more->analysis.pool, ix->analysis.pool);
  assert_null(ix->leaves[1].deleted);
  gpuir_close(ix); /* before the one that shares */
  assert_int_equal(gpuir_verify(more, &err), GPUIR_OK);
  gpuir_close(more);
  memset(&own, 0, sizeof own);
  own.path = in_folder("000002.gpuir");
  assert_int_equal(gpuir_builder_create(&own, &b, &err), GPUIR_E_ARGUMENT);
  assert_non_null(strstr(err.msg, "live index"));
  own.path = folder;
  assert_true(gpuir_builder_create(&own, &b, &err) < 0);
  /* a segment alone is an index with its deleted documents */
  assert_int_equal(gpuir_open(in_folder("000002.gpuir"), NULL, &ix, &err), GPUIR_OK);
  assert_int_equal(gpuir_index_get_info(ix, &info), GPUIR_OK);
  assert_int_equal(info.documents, 3);
  gpuir_close(ix);
}

/* Each byte of the manifest that is another one, each length, and numbers out of range under a right checksum. */
static void test_damaged_manifest(void **state) {
  static uint8_t bytes[4096], copy[4096];
  const size_t n = load("manifest", bytes, sizeof bytes);
  gpuir__manifest_head head;
  gpuir_index *ix;
  gpuir_error err;
  uint64_t hash;
  size_t i;
  unsigned j;
  (void)state;
  for (i = 0; i < n; i++) {
    memcpy(copy, bytes, n);
    copy[i] ^= (uint8_t)(1u << i % 8);
    store("manifest", copy, n);
    assert_true(gpuir_open(folder, NULL, &ix, &err) < 0);
    assert_null(ix);
    store("manifest", bytes, i);
    assert_int_equal(gpuir_open(folder, NULL, &ix, &err), GPUIR_E_FORMAT);
  }
  for (j = 0; j < 10; j++) {
    gpuir__entry e;
    memcpy(copy, bytes, n);
    memcpy(&head, copy, sizeof head);
    memcpy(&e, copy + sizeof head, sizeof e);
    if (j == 0) head.segments = 3;
    if (j == 1) head.segments = UINT32_MAX;
    if (j == 2) head.segments = 0;
    if (j == 3) e.deleted = 4;
    if (j == 4) e.deleted = UINT32_MAX;
    if (j == 5) e.documents = UINT32_MAX;
    if (j == 6) e.number = head.next;
    if (j == 7) e.hash ^= 1;
    if (j == 8) memcpy(&e, copy + sizeof head + sizeof e, sizeof e); /* one segment twice */
    if (j == 9) head.next = GPUIR__MOST_NUMBER + 1;
    memcpy(copy, &head, sizeof head);
    memcpy(copy + sizeof head, &e, sizeof e);
    hash = XXH3_64bits(copy, n - 8);
    memcpy(copy + n - 8, &hash, 8);
    store("manifest", copy, n);
    assert_int_equal(gpuir_open(folder, NULL, &ix, &err), GPUIR_E_FORMAT);
    assert_null(ix);
    if (j == 8) assert_non_null(strstr(err.msg, "twice"));
    if (j == 9) assert_non_null(strstr(err.msg, "no number left"));
  }
  store("manifest", bytes, n);
  assert_int_equal(gpuir_open(folder, NULL, &ix, &err), GPUIR_OK);
  gpuir_close(ix);
}

/* A segment that is not there, is another file, or is cut off; the manifest stays as it is, so it is no race. */
static void test_damaged_segment(void **state) {
  static uint8_t bytes[1 << 16], other[1 << 16];
  const size_t n = load("000003.gpuir", bytes, sizeof bytes), m = load("000002.gpuir", other, sizeof other);
  gpuir_index *ix;
  gpuir_error err;
  (void)state;
  store("000003.gpuir", other, m);
  assert_int_equal(gpuir_open(folder, NULL, &ix, &err), GPUIR_E_FORMAT);
  store("000003.gpuir", bytes, n / 2);
  assert_int_equal(gpuir_open(folder, NULL, &ix, &err), GPUIR_E_FORMAT);
  (void)unlink(in_folder("000003.gpuir"));
  assert_int_equal(gpuir_open(folder, NULL, &ix, &err), GPUIR_E_FORMAT);
  assert_non_null(strstr(err.msg, "manifest names"));
  (void)unlink(in_folder("manifest"));
  assert_int_equal(gpuir_open(folder, NULL, &ix, &err), GPUIR_E_FORMAT);
  assert_non_null(strstr(err.msg, "without a manifest"));
}

/* Whatever index a program gets, and each of its segments, has what the CUDA backend calls. */
static void test_calls(void **state) {
  const gpuir_index *one;
  gpuir_index *ix[3];
  gpuir_live *l;
  size_t i, k;
  (void)state;
  assert_int_equal(gpuir_open(folder, NULL, &ix[0], NULL), GPUIR_OK);
  assert_int_equal(gpuir_open(in_folder("000003.gpuir"), NULL, &ix[1], NULL), GPUIR_OK);
  l = open_live();
  add(l, "g", "six");
  assert_int_equal(gpuir_live_refresh(l, &ix[2], NULL), GPUIR_OK);
  for (i = 0; i < 3; i++) {
    assert_int_equal(ix[i]->nleaves, i == 0 ? 2 : i == 1 ? 1 : 3);
    assert_int_equal(ix[i]->calls->layout, GPUIR__CALLS_LAYOUT);
    for (k = 0; (one = gpuir_index_segment(ix[i], k, NULL)) != NULL; k++) assert_ptr_equal(one->calls, ix[0]->calls);
    assert_int_equal(k, ix[i]->nleaves);
    gpuir_close(ix[i]);
  }
  gpuir_live_close(l);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_open, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(test_calls, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(test_damaged_manifest, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(test_damaged_segment, make_folder, remove_folder),
  };
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  return cmocka_run_group_tests_name("64_folder", tests, NULL, NULL);
}
