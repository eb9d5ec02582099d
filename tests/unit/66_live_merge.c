/* 66_live_merge.c - live indexes: which segments are merged; what is deleted while a merge runs in another thread */
#define _DEFAULT_SOURCE
#include "private.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "rng.h"
#include "oracle.h"
#include "corpus.h"

static char folder[4200];
static int fsync_fails; /* the call that does, from now on; 0: none */

int fsync(int fd) {
  if (!fsync_fails || --fsync_fails) return (int)syscall(SYS_fsync, fd);
  errno = EIO;
  return -1;
}

static gpuir_live *open_live(void) {
  gpuir_live_desc desc;
  gpuir_live *l;
  gpuir_error err;
  (void)corpus_path(folder, sizeof folder, "live");
  memset(&desc, 0, sizeof desc);
  desc.settings.path = folder;
  desc.settings.memory = 1 << 20;
  desc.settings.store_text = 1;
  desc.create = 1;
  if (gpuir_live_open(&desc, &l, &err)) fail_msg("%s", err.msg);
  return l;
}

static void add(gpuir_live *l, unsigned number) {
  char name[32], text[64];
  gpuir_doc_desc doc;
  gpuir_error err;
  memset(&doc, 0, sizeof doc);
  doc.name = name;
  doc.name_len = (size_t)sprintf(name, "n%u", number);
  (void)sprintf(text, "every x%u y%u", number % 7, number);
  if (gpuir_live_add(l, &doc, text, strlen(text), &err)) fail_msg("%s", err.msg);
}

static uint64_t delete_number(gpuir_live *l, unsigned number) {
  char name[32];
  uint64_t n;
  assert_int_equal(gpuir_live_delete(l, GPUIR_BY_NAME, name, (size_t)sprintf(name, "n%u", number), &n, NULL), GPUIR_OK);
  return n;
}

static gpuir_index *refresh(gpuir_live *l) {
  gpuir_index *ix;
  gpuir_error err;
  if (gpuir_live_refresh(l, &ix, &err)) fail_msg("%s", err.msg);
  return ix;
}

static uint64_t segments_of(const gpuir_index *ix) {
  gpuir_index_info info;
  assert_int_equal(gpuir_index_get_info(ix, &info), GPUIR_OK);
  return info.segments;
}

/* Batches of one size: as many segments as the number of batches has ones, or one more. */
static void test_policy(void **state) {
  unsigned batch, i;
  gpuir_live *l = open_live();
  (void)state;
  for (batch = 1; batch <= 64; batch++) {
    gpuir_index *ix;
    int more = 1;
    for (i = 0; i < 5; i++) add(l, 5 * batch + i);
    gpuir_close(refresh(l));
    while (more) assert_int_equal(gpuir_live_merge(l, 0, &more, NULL), GPUIR_OK);
    ix = refresh(l);
    assert_in_range(segments_of(ix), 1, 7);
    gpuir_close(ix);
  }
  gpuir_live_close(l);
  assert_int_equal(folder_remove(folder), 0);
}

/* A segment of which over a quarter is deleted is rewritten, the others are left alone; one without documents stays. */
static void test_rewrite(void **state) {
  gpuir_index_info info;
  gpuir_live *l = open_live();
  gpuir_index *ix;
  unsigned i;
  int more;
  (void)state;
  for (i = 0; i < 100; i++) add(l, i);
  gpuir_close(refresh(l));
  for (i = 0; i < 25; i++) assert_int_equal(delete_number(l, i), 1);
  gpuir_close(refresh(l));
  assert_int_equal(gpuir_live_merge(l, 0, &more, NULL), GPUIR_OK);
  ix = refresh(l);
  (void)gpuir_index_get_info(ix, &info);
  assert_int_equal(info.docids, 100);
  gpuir_close(ix);
  assert_int_equal(delete_number(l, 25), 1);
  assert_int_equal(delete_number(l, 25), 0);
  gpuir_close(refresh(l));
  assert_int_equal(gpuir_live_merge(l, 0, &more, NULL), GPUIR_OK);
  assert_int_equal(more, 0);
  ix = refresh(l);
  (void)gpuir_index_get_info(ix, &info);
  assert_int_equal(info.docids, 74);
  assert_int_equal(info.documents, 74);
  gpuir_close(ix);
  for (i = 0; i < 100; i++) (void)delete_number(l, i);
  gpuir_close(refresh(l));
  assert_int_equal(gpuir_live_merge(l, 1, &more, NULL), GPUIR_OK);
  ix = refresh(l);
  (void)gpuir_index_get_info(ix, &info);
  assert_int_equal(info.docids, 0);
  assert_int_equal(info.segments, 1);
  assert_int_equal(info.has_text, 1); /* the settings stay */
  gpuir_close(ix);
  add(l, 7);
  assert_int_equal(gpuir_live_commit(l, NULL), GPUIR_OK);
  gpuir_live_close(l);
  assert_int_equal(folder_remove(folder), 0);
}

/* A merge in three moments: what is deleted, pending or dropped between begin and end must not come back. */
static void test_deleted_meanwhile(void **state) {
  unsigned how;
  (void)state;
  for (how = 0; how < 4; how++) {
    gpuir__segment *result = NULL;
    gpuir_live *l = open_live();
    gpuir__fusion f;
    gpuir_index *ix;
    gpuir_error err;
    uint32_t df, want = 20;
    int begun, more;
    unsigned i;
    for (i = 0; i < 20; i++) {
      add(l, i);
      if (i % 5 == 4) gpuir_close(refresh(l));
    }
    assert_int_equal(delete_number(l, 3), 1); /* before */
    gpuir_close(refresh(l));
    want--;
    memset(&f, 0, sizeof f);
    f.l = l;
    assert_int_equal(gpuir__fusion_begin(&f, 1, &begun, &err), GPUIR_OK);
    assert_true(begun);
    assert_int_equal(gpuir_live_merge(l, 1, &more, &err), GPUIR_E_BUSY);
    for (i = 0; i < 20; i++) {
      if (how == 1 && i >= 5 && i < 10) want -= (uint32_t)delete_number(l, i); /* a whole segment */
      if (how == 2) want -= (uint32_t)delete_number(l, i); /* everything */
      if (how == 3 && i % 3 == 0) want -= (uint32_t)delete_number(l, i);
    }
    if (how) gpuir_close(refresh(l));
    assert_int_equal(gpuir__fusion_run(&f, &result, &err), GPUIR_OK);
    if (how == 3) want -= (uint32_t)delete_number(l, 4); /* pending at the end */
    if (how == 0) add(l, 100);
    assert_int_equal(gpuir__fusion_end(&f, result, GPUIR_OK, &more, &err), GPUIR_OK);
    gpuir__fusion_free(&f);
    want += how == 0;
    ix = refresh(l);
    (void)gpuir_term_count(ix, "every", 5, &df, NULL);
    assert_int_equal(df, want);
    assert_int_equal(gpuir_term_count(ix, "y3", 2, &df, NULL), GPUIR_E_NOT_FOUND);
    gpuir_close(ix);
    assert_int_equal(gpuir_live_commit(l, &err), GPUIR_OK);
    gpuir_live_close(l);
    assert_int_equal(gpuir_open(folder, NULL, &ix, &err), GPUIR_OK);
    (void)gpuir_term_count(ix, "every", 5, &df, NULL);
    assert_int_equal(df, want);
    gpuir_close(ix);
    assert_int_equal(folder_remove(folder), 0);
  }
}

/* A commit that fails behind its rename, while a merge runs, which ends afterwards: what the new manifest names stays.
 */
static void test_commit_fails_meanwhile(void **state) {
  gpuir__segment *result = NULL;
  gpuir_live *l = open_live();
  gpuir__fusion f;
  gpuir_index *ix;
  gpuir_error err;
  uint32_t df;
  int begun, more, status;
  unsigned i;
  (void)state;
  for (i = 0; i < 20; i++) {
    add(l, i);
    if (i % 5 == 4) gpuir_close(refresh(l));
  }
  memset(&f, 0, sizeof f);
  f.l = l;
  assert_int_equal(gpuir__fusion_begin(&f, 1, &begun, &err), GPUIR_OK);
  fsync_fails = 7; /* four segments, the folder, the manifest; the folder again */
  assert_int_equal(gpuir_live_commit(l, &err), GPUIR_E_IO);
  assert_int_equal(fsync_fails, 0);
  status = gpuir__fusion_run(&f, &result, &err);
  assert_int_equal(gpuir__fusion_end(&f, result, status, &more, &err), GPUIR_E_IO);
  assert_int_equal(more, 0);
  gpuir__fusion_free(&f);
  gpuir_live_close(l);
  assert_int_equal(gpuir_open(folder, NULL, &ix, &err), GPUIR_OK);
  assert_int_equal(gpuir_term_count(ix, "every", 5, &df, NULL), GPUIR_OK);
  assert_int_equal(df, 20);
  gpuir_close(ix);
  gpuir_live_close(open_live());
  assert_int_equal(folder_remove(folder), 0);
}

static int stop;

static void *merge_on(void *live) {
  rng r = {5}; /* the shared one is the main thread's */
  while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
    gpuir_error err;
    int status = gpuir_live_merge((gpuir_live *)live, rng_below(&r, 5) == 0, NULL, &err);
    if (status) return (void *)"a merge failed";
  }
  return NULL;
}

/* Adding, deleting and committing beside a thread that merges; a third one opens the folder again and again. */
static void *read_on(void *count) {
  gpuir_index *before = NULL;
  while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
    gpuir_open_desc desc;
    gpuir_index_info info;
    gpuir_index *ix;
    gpuir_error err;
    uint32_t df = 0;
    memset(&desc, 0, sizeof desc);
    desc.share = before;
    if (gpuir_open(folder, &desc, &ix, &err)) return (void *)"a reader was refused";
    gpuir_close(before);
    before = ix;
    (void)gpuir_index_get_info(ix, &info);
    (void)gpuir_term_count(ix, "every", 5, &df, NULL);
    if (df != info.documents) return (void *)"a reader counted wrong";
    ++*(unsigned *)count;
  }
  gpuir_close(before);
  return NULL;
}

static void test_threads(void **state) {
  gpuir_live *l = open_live();
  const unsigned rounds = corpus_long_run() ? 3000 : 60;
  unsigned live = 0, next = 0, round, i, reads = 0;
  static uint8_t there[200000];
  pthread_t merger, reader;
  void *said;
  uint32_t df;
  gpuir_index *ix;
  (void)state;
  memset(there, 0, sizeof there);
  stop = 0;
  assert_int_equal(pthread_create(&merger, NULL, merge_on, l), 0);
  assert_int_equal(pthread_create(&reader, NULL, read_on, &reads), 0);
  for (round = 0; round < rounds; round++) {
    for (i = 0; i < 40; i++, live++) {
      there[next] = 1;
      add(l, next++);
    }
    for (i = 0; i < 20; i++) {
      const unsigned number = below(next);
      assert_int_equal(delete_number(l, number), there[number]);
      live -= there[number];
      there[number] = 0;
    }
    ix = refresh(l);
    (void)gpuir_term_count(ix, "every", 5, &df, NULL);
    assert_int_equal(df, live);
    gpuir_close(ix);
    if (round % 3 == 0) assert_int_equal(gpuir_live_commit(l, NULL), GPUIR_OK);
  }
  __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
  assert_int_equal(pthread_join(merger, &said), 0);
  if (said) fail_msg("%s", (const char *)said);
  assert_int_equal(pthread_join(reader, &said), 0);
  if (said) fail_msg("%s", (const char *)said);
  assert_true(reads > 0);
  gpuir_live_close(l);
  assert_int_equal(folder_remove(folder), 0);
}

/* Makes the manifest, which has one segment, name so many links to its file. */
static void forge_links(unsigned links) {
  gpuir__manifest_head head;
  gpuir__entry e;
  gpuir_allocator a = gpuir__allocator(NULL);
  gpuir__buf out = {NULL, 0, 0};
  char path[4400], own[4400], name[32];
  uint64_t hash;
  unsigned i;
  int fd;
  (void)snprintf(path, sizeof path, "%s/manifest", folder);
  fd = open(path, O_RDWR);
  assert_true(fd >= 0);
  assert_int_equal(pread(fd, &head, sizeof head, 0), sizeof head);
  assert_int_equal(pread(fd, &e, sizeof e, sizeof head), sizeof e);
  assert_int_equal(head.segments, 1);
  gpuir__segment_name(name, e.number);
  (void)snprintf(own, sizeof own, "%s/%s", folder, name);
  head.segments = links;
  head.next = e.number + links;
  assert_int_equal(gpuir__buf_put(&a, &out, &head, sizeof head), GPUIR_OK);
  for (i = 0; i < links; i++, e.number++) {
    assert_int_equal(gpuir__buf_put(&a, &out, &e, sizeof e), GPUIR_OK);
    gpuir__segment_name(name, e.number);
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    if (i) assert_int_equal(link(own, path), 0);
  }
  hash = gpuir__hash(out.data, out.len, 0);
  assert_int_equal(gpuir__buf_put(&a, &out, &hash, 8), GPUIR_OK);
  assert_int_equal(pwrite(fd, out.data, out.len, 0), out.len);
  assert_int_equal(close(fd), 0);
  gpuir__buf_free(&a, &out);
}

/* Links to one file are merged as equal segments are, but not into a file that is far larger than all that is there. */
static void test_links_to_one_file(void **state) {
  static const unsigned links[] = {7, 40};
  const size_t n = (size_t)1800000;
  char *text = (char *)malloc(n);
  gpuir_error err;
  unsigned i;
  (void)state;
  assert_non_null(text);
  for (i = 0; i < n; i++) text[i] = (char)(' ' + below(16)); /* no words, and too many of them to pack */
  memcpy(text, "every ", 6);
  for (i = 0; i < 2; i++) {
    gpuir_live *l = open_live();
    gpuir_index *ix;
    uint32_t df;
    assert_int_equal(gpuir_live_add(l, NULL, text, n, &err), GPUIR_OK);
    assert_int_equal(gpuir_live_commit(l, &err), GPUIR_OK);
    assert_int_equal(gpuir_live_merge(l, 1, NULL, &err), GPUIR_OK); /* the first segment, which is empty, goes */
    assert_int_equal(gpuir_live_commit(l, &err), GPUIR_OK);
    gpuir_live_close(l);
    forge_links(links[i]);
    l = open_live();
    assert_int_equal(gpuir_live_merge(l, 1, NULL, &err), i ? GPUIR_E_LIMIT : GPUIR_OK);
    if (i) assert_non_null(strstr(err.msg, "links to files"));
    ix = refresh(l);
    assert_int_equal(segments_of(ix), i ? links[i] : 1);
    assert_int_equal(gpuir_term_count(ix, "every", 5, &df, NULL), GPUIR_OK);
    assert_int_equal(df, links[i]);
    gpuir_close(ix);
    gpuir_live_close(l);
    assert_int_equal(folder_remove(folder), 0);
  }
  free(text);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_policy),
      cmocka_unit_test(test_rewrite),
      cmocka_unit_test(test_deleted_meanwhile),
      cmocka_unit_test(test_commit_fails_meanwhile),
      cmocka_unit_test(test_threads),
      cmocka_unit_test(test_links_to_one_file),
  };
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  return cmocka_run_group_tests_name("66_live_merge", tests, NULL, NULL);
}
