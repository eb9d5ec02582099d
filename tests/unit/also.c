/* also.c - what is searched behind a text, and the names that a document defines: postings, positions and lengths, with
 * any number of threads, in live indexes and merges; what is refused */
#define _POSIX_C_SOURCE 200809L
#include "gpuir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#ifdef GPUIR_WITH_UTF8PROC

enum { N = 300, BIG = 7, BIG_WORDS = 40000 };

static const char *path_of(const char *suffix) {
  static char path[64];
  (void)snprintf(path, sizeof path, "/tmp/also-%ld%s", (long)getpid(), suffix);
  return path;
}

/* Document d has d % 5 words of text, one of them much more than a packet; its name; two names that it defines. */
static char *text_of(unsigned d, gpuir_doc_desc *doc) {
  static char text[BIG_WORDS * 8], also[64], defines[64];
  const unsigned words = d == BIG ? BIG_WORDS : d % 5;
  size_t len = 0;
  unsigned i;
  for (i = 0; i < words; i++) len += (size_t)sprintf(text + len, "w%u ", i % 5);
  text[len] = 0;
  memset(doc, 0, sizeof *doc);
  doc->also = also;
  doc->also_len = (size_t)sprintf(also, "folder%u File-%u.txt", d % 3, d);
  doc->defines = defines;
  doc->defines_len = (size_t)sprintf(defines, " getName%u\n two_words\tgetName%u", d % 4, d % 4);
  return text;
}

static gpuir_builder_desc desc_of(unsigned threads, int positions) {
  gpuir_builder_desc bd;
  memset(&bd, 0, sizeof bd);
  bd.path = path_of(".gpuir");
  bd.analyzer.analyzer = "text";
  bd.threads = threads;
  bd.memory = 1 << 20;
  bd.positions = positions;
  return bd;
}

static void build(unsigned threads, int positions) {
  gpuir_builder_desc bd = desc_of(threads, positions);
  gpuir_builder *b;
  gpuir_error err;
  unsigned d;
  if (gpuir_builder_create(&bd, &b, &err)) fail_msg("%s", err.msg);
  for (d = 0; d < N; d++) {
    gpuir_doc_desc doc;
    const char *text = text_of(d, &doc);
    if (gpuir_builder_add_text(b, &doc, text, strlen(text), &err)) fail_msg("%s", err.msg);
  }
  if (gpuir_builder_write(b, NULL, &err)) fail_msg("%s", err.msg);
  gpuir_builder_destroy(b);
}

static uint32_t df_of(gpuir_index *ix, const char *term) {
  uint32_t df = 0;
  (void)gpuir_term_count(ix, term, strlen(term), &df, NULL);
  return df;
}

static void check_dfs(gpuir_index *ix) {
  gpuir_doc doc;
  gpuir_error err;
  if (gpuir_verify(ix, &err)) fail_msg("%s", err.msg);
  assert_int_equal(df_of(ix, "\xffn"), N);
  assert_int_equal(df_of(ix, "folder1"), N / 3);
  assert_int_equal(df_of(ix, "file"), N);
  assert_int_equal(df_of(ix,
                       "\xffp"
                       "7\xff"
                       "txt"),
      1);
  assert_int_equal(df_of(ix,
                       "\xff\x64"
                       "getname2"),
      N / 4);
  assert_int_equal(df_of(ix,
                       "\xff\x64"
                       "two"),
      0); /* a name of two segments is one term */
  assert_int_equal(df_of(ix,
                       "\xff\x64"
                       "two\xff"
                       "words"),
      N);
  assert_int_equal(gpuir_doc_get(ix, 4, &doc), 0);
  assert_int_equal(doc.length, 4 + 1 + 4);
}

/* Term's only position in document 4. */
static uint32_t position(gpuir_index *ix, const char *term, uint32_t docid) {
  uint32_t docids[N], tfs[N], *positions, at = 0, found = UINT32_MAX, i;
  gpuir_term_info info;
  uint64_t id;
  assert_int_equal(gpuir_term_find(ix, term, strlen(term), &id), 0);
  assert_int_equal(gpuir_term_get_info(ix, id, &info), 0);
  assert_int_equal(gpuir_term_postings(ix, id, docids, tfs), 0);
  positions = (uint32_t *)malloc(info.cf * sizeof *positions);
  assert_non_null(positions);
  assert_int_equal(gpuir_term_positions(ix, id, positions, info.cf), 0);
  for (i = 0; i < info.df; at += tfs[i++])
    if (docids[i] == docid) {
      assert_int_equal(tfs[i], 1);
      found = positions[at];
    }
  free(positions);
  return found;
}

static void test_postings(void **state) {
  static const unsigned threads[] = {1, 2, 5};
  gpuir_index *ix;
  gpuir_error err;
  size_t i;
  (void)state;
  for (i = 0; i < 6; i++) {
    build(threads[i / 2], i % 2);
    if (gpuir_open(path_of(".gpuir"), NULL, &ix, &err)) fail_msg("%s", err.msg);
    check_dfs(ix);
    if (i % 2) {
      assert_int_equal(position(ix, "w3", 4), 3);
      assert_int_equal(position(ix, "\xffn", 4), 4);
      assert_int_equal(position(ix, "folder1", 4), 5);
      assert_int_equal(position(ix, "txt", 4), 8);
      assert_int_equal(position(ix,
                           "\xff\x64"
                           "getname0",
                           4),
          8);
      assert_int_equal(position(ix, "\xffn", BIG), BIG_WORDS);
    }
    gpuir_close(ix);
  }
  (void)unlink(path_of(".gpuir"));
}

/* Adding to a live index, refreshing often, and merging gives the same. */
static void test_live(void **state) {
  gpuir_live_desc ld;
  gpuir_live *live;
  gpuir_index *ix;
  gpuir_error err;
  char command[80];
  unsigned d;
  int more = 1;
  (void)state;
  memset(&ld, 0, sizeof ld);
  ld.settings = desc_of(1, 1);
  ld.settings.path = path_of(".live");
  ld.create = 1;
  if (gpuir_live_open(&ld, &live, &err)) fail_msg("%s", err.msg);
  for (d = 0; d < N; d++) {
    gpuir_doc_desc doc;
    const char *text = text_of(d, &doc);
    if (gpuir_live_add(live, &doc, text, strlen(text), &err)) fail_msg("%s", err.msg);
    if (d % 50 == 49 && gpuir_live_commit(live, &err)) fail_msg("%s", err.msg);
  }
  assert_int_equal(gpuir_live_refresh(live, &ix, &err), 0);
  check_dfs(ix);
  gpuir_close(ix);
  while (more) assert_int_equal(gpuir_live_merge(live, 1, &more, &err), 0);
  assert_int_equal(gpuir_live_refresh(live, &ix, &err), 0);
  check_dfs(ix);
  assert_int_equal(position(ix, "\xffn", BIG), BIG_WORDS);
  gpuir_close(ix);
  gpuir_live_close(live);
  (void)snprintf(command, sizeof command, "rm -r %s", path_of(".live"));
  assert_int_equal(system(command), 0);
}

/* Of many words the last 32 count; of many definitions all, also where no text and no name is. */
static void test_many(void **state) {
  gpuir_builder_desc bd = desc_of(1, 1);
  gpuir_builder *b;
  gpuir_index *ix;
  gpuir_error err;
  gpuir_doc_desc doc;
  gpuir_doc got;
  char many[2000], stopped[2000] = "x ";
  size_t len = 0, i;
  (void)state;
  bd.analyzer.stop = "english"; /* pairs of stop words alone find no position before the first word */
  memset(&doc, 0, sizeof doc);
  for (i = 0; i < 40; i++) len += (size_t)sprintf(many + len, "x%u ", (unsigned)i);
  assert_int_equal(gpuir_builder_create(&bd, &b, &err), 0);
  doc.also = many;
  doc.also_len = len;
  assert_int_equal(gpuir_builder_add_text(b, &doc, "text", 4, &err), 0);
  for (i = 0; i < 60; i++) (void)strcat(stopped, "the_of_");
  doc.also = stopped + 2;
  doc.also_len = strlen(stopped + 2);
  assert_int_equal(gpuir_builder_add_text(b, &doc, "text", 4, &err), 0);
  doc.also = stopped;
  doc.also_len = strlen(stopped);
  assert_int_equal(gpuir_builder_add_text(b, &doc, "text", 4, &err), 0);
  doc.also_len = 0;
  doc.defines = many;
  doc.defines_len = len;
  assert_int_equal(gpuir_builder_add_text(b, &doc, "", 0, &err), 0);
  if (gpuir_builder_write(b, NULL, &err)) fail_msg("%s", err.msg);
  gpuir_builder_destroy(b);
  assert_int_equal(gpuir_open(path_of(".gpuir"), NULL, &ix, &err), 0);
  if (gpuir_verify(ix, &err)) fail_msg("%s", err.msg);
  assert_int_equal(df_of(ix, "x7"), 0);
  assert_int_equal(df_of(ix, "x8"), 1);
  assert_int_equal(gpuir_doc_get(ix, 0, &got), 0);
  assert_int_equal(got.length, 1 + 1 + 32);
  for (i = 0; i < 40; i++) {
    char term[16];
    (void)sprintf(term, "\xff\x64x%u", (unsigned)i);
    assert_int_equal(df_of(ix, term), 1);
  }
  gpuir_close(ix);
  (void)unlink(path_of(".gpuir"));
}

static void refused(gpuir_builder *b, const gpuir_doc_desc *doc, const char *why) {
  gpuir_error err;
  assert_int_equal(gpuir_builder_add_text(b, doc, "x", 1, &err), GPUIR_E_ARGUMENT);
  if (!strstr(err.msg, why)) fail_msg("%s", err.msg);
}

static void test_refused(void **state) {
  gpuir_builder_desc bd = desc_of(1, 0);
  const gpuir_term_freq term = {"x", 1, 1};
  gpuir_builder *b;
  gpuir_error err;
  gpuir_doc_desc doc;
  (void)state;
  memset(&doc, 0, sizeof doc);
  assert_int_equal(gpuir_builder_create(&bd, &b, &err), 0);
  doc.also_len = 1;
  refused(b, &doc, "is NULL");
  doc.also = "name";
  doc.also_len = ((size_t)1 << 24) + 1;
  refused(b, &doc, "has more than");
  doc.also_len = SIZE_MAX;
  doc.defines = "y";
  doc.defines_len = 1;
  refused(b, &doc, "has more than");
  doc.also_len = 4;
  doc.defines_len = 0;
  assert_int_equal(gpuir_builder_add_terms(b, &doc, &term, 1, &err), 0); /* which does not look at them */
  gpuir_builder_destroy(b);
  bd.analyzer.analyzer = "unicode";
  assert_int_equal(gpuir_builder_create(&bd, &b, &err), 0);
  refused(b, &doc, "analyzer \"text\"");
  gpuir_builder_destroy(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_postings),
      cmocka_unit_test(test_live),
      cmocka_unit_test(test_many),
      cmocka_unit_test(test_refused),
  };
  return cmocka_run_group_tests_name("also", tests, NULL, NULL);
}

#else
int main(void) { return 0; }
#endif
