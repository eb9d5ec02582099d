/* 65_live.c - live indexes: the file of a whole merge is that of a fresh build, with every codec and option; the same
 * calls give the same files; what is deleted when; what is refused; who may write; what a refresh asks of the system.
 * Random histories: tests/unit/histories.c
 */
#include "private.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "rng.h"
#include "oracle.h"
#include "corpus.h"

static char folder[4200];

static int set_up(void **state) {
  (void)state;
  (void)corpus_path(folder, sizeof folder, "live");
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  (void)folder_remove(folder);
  return 0;
}

static char *read_file(const char *path, size_t *n) {
  FILE *in = fopen(path, "rb");
  char *bytes;
  assert_non_null(in);
  (void)fseek(in, 0, SEEK_END);
  *n = (size_t)ftell(in);
  rewind(in);
  bytes = (char *)oracle_grow(NULL, *n + 1, 1);
  assert_int_equal(fread(bytes, 1, *n, in), *n);
  (void)fclose(in);
  return bytes;
}

static gpuir_live *open_live(const gpuir_builder_desc *settings) {
  gpuir_live_desc d;
  gpuir_live *l;
  gpuir_error err;
  memset(&d, 0, sizeof d);
  if (settings) d.settings = *settings;
  d.settings.path = folder;
  d.settings.memory = d.settings.memory ? d.settings.memory : 1 << 20;
  d.create = 1;
  if (gpuir_live_open(&d, &l, &err)) fail_msg("%s", err.msg);
  return l;
}

static gpuir_index *refresh(gpuir_live *l) {
  gpuir_index *ix;
  gpuir_error err;
  if (gpuir_live_refresh(l, &ix, &err)) fail_msg("%s", err.msg);
  return ix;
}

static void merge_all(gpuir_live *l) {
  gpuir_error err;
  int more;
  if (gpuir_live_merge(l, 1, &more, &err)) fail_msg("%s", err.msg);
  assert_int_equal(more, 0);
}

static void commit(gpuir_live *l) {
  gpuir_error err;
  if (gpuir_live_commit(l, &err)) fail_msg("%s", err.msg);
}

/* ---- the documents of these tests ---- */

enum { DOCUMENTS = 420 };

static int is_deleted(unsigned i) { return i % 5 == 2 || (i >= 300 && i < 340) || i == 7; }

/* Makes document i: with or without a text, a name, a source that others share, or that begins as its name ends; chunks
 * of one file; some with tokens too long to be indexed, all of which are deleted. */
static gpuir_doc_desc some_doc(unsigned i, char **text, size_t *len) {
  static char name[64], source[64], words[4096];
  gpuir_doc_desc d;
  size_t n = 0;
  unsigned j;
  memset(&d, 0, sizeof d);
  d.name = name;
  d.source = source;
  if (i % 7) d.name_len = (size_t)sprintf(name, i % 3 ? "file%u.c:%u" : "lib/file%u.c", i / 4, i % 4);
  if (i % 6) d.source_len = (size_t)sprintf(source, "/data/%s/file%u.c", i % 11 ? "lib" : "other", i / 4);
  if (i % 3) {
    d.first_line = 1 + 10 * (i % 4);
    d.last_line = d.first_line + 9;
    d.source_offset = 100 * (i % 4);
    d.source_bytes = i % 2 ? 100 : 0;
    d.hash = i;
  }
  if (i % 8) n = (size_t)sprintf(words, "every the running word%u Of part%u", i % 3, i / 9);
  for (j = 0; i % 8 && j < i % 5; j++) n += (size_t)sprintf(words + n, " cats of many again %u", j * i % 40);
  if (i % 10 == 2) {
    memset(words + n, 'z', 300);
    words[n] = ' ';
    n += 300;
  }
  *text = i % 8 == 4 ? NULL : words; /* without a text, or with an empty one */
  *len = *text ? n : 0;
  return d;
}

static void add_to_live(gpuir_live *l, unsigned i) {
  gpuir_error err;
  char *text;
  size_t len;
  gpuir_doc_desc d = some_doc(i, &text, &len);
  char name[16];
  if (is_deleted(i)) { /* by a name of its own */
    d.name = name;
    d.name_len = (size_t)sprintf(name, "gone%u", i);
  }
  if (gpuir_live_add(l, &d, text, len, &err)) fail_msg("%s", err.msg);
}

static void delete_from_live(gpuir_live *l, unsigned i) {
  char name[16];
  uint64_t n;
  gpuir_error err;
  if (gpuir_live_delete(l, GPUIR_BY_NAME, name, (size_t)sprintf(name, "gone%u", i), &n, &err)) fail_msg("%s", err.msg);
  assert_int_equal(n, 1);
}

/* Builds what the live index has in the end, at once. */
static char *build_fresh(const gpuir_builder_desc *settings, unsigned n, size_t *size) {
  gpuir_builder_desc d = *settings;
  char path[4200], *bytes, *text;
  gpuir_builder *b;
  gpuir_error err;
  size_t len;
  unsigned i;
  d.path = corpus_path(path, sizeof path, "fresh.gpuir");
  if (gpuir_builder_create(&d, &b, &err)) fail_msg("%s", err.msg);
  for (i = 0; i < n; i++) {
    const gpuir_doc_desc doc = some_doc(i, &text, &len);
    if (!is_deleted(i) && gpuir_builder_add_text(b, &doc, text, len, &err)) fail_msg("%s", err.msg);
  }
  if (gpuir_builder_write(b, NULL, &err)) fail_msg("%s", err.msg);
  gpuir_builder_destroy(b);
  bytes = read_file(path, size);
  (void)unlink(path);
  return bytes;
}

/* Reads the only segment of the folder. */
static char *read_segment(size_t *size) {
  DIR *dir = opendir(folder);
  struct dirent *e;
  char path[4600] = "";
  assert_non_null(dir);
  while ((e = readdir(dir)) != NULL) {
    if (!strstr(e->d_name, ".gpuir")) continue;
    assert_int_equal(*path, 0);
    (void)snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
  }
  (void)closedir(dir);
  return read_file(path, size);
}

/* Adds n documents in several segments, deletes some at different times, merges all and compares. */
static void check_bytes(const gpuir_builder_desc *settings, unsigned n, const char *what) {
  gpuir_live *l = open_live(settings);
  char *ours, *fresh;
  size_t size, fresh_size;
  unsigned i;
  for (i = 0; i < n; i++) {
    add_to_live(l, i);
    if (i % 97 == 90) gpuir_close(refresh(l));
    if (i % 120 == 110) commit(l);
    if (is_deleted(i) && i % 2) delete_from_live(l, i);
  }
  gpuir_close(refresh(l));
  for (i = 0; i < n; i++)
    if (is_deleted(i) && i % 2 == 0) delete_from_live(l, i);
  commit(l);
  merge_all(l);
  commit(l);
  ours = read_segment(&size);
  fresh = build_fresh(settings, n, &fresh_size);
  if (size != fresh_size || memcmp(ours, fresh, size) != 0)
    fail_msg("%s: a merge of all has %lu bytes, a fresh build %lu", what, (unsigned long)size,
        (unsigned long)fresh_size);
  free(ours);
  free(fresh);
  gpuir_live_close(l);
  (void)folder_remove(folder);
}

/* Every codec, alone and chosen for each list. */
static void test_bytes_of_codecs(void **state) {
  static const char *const others[] = {"auto", "auto:0.5", "qs:0.5", "pfd-list:2", "parapfor:64,min", "lrcseg:128",
      "seglrc:64,0.05", "hslrc:64,0"};
  gpuir_builder_desc d;
  size_t i;
  (void)state;
  for (i = 0; i < GPUIR__DOCID_CODECS + 8; i++) {
    memset(&d, 0, sizeof d);
    d.codec = i < GPUIR__DOCID_CODECS ? gpuir__docid_codecs[i].name : others[i - GPUIR__DOCID_CODECS];
    d.positions = i % 2 != 0;
    d.store_text = i % 3 == 0;
    check_bytes(&d, DOCUMENTS, d.codec);
  }
  for (i = 0; i < GPUIR__FREQ_CODECS + 1; i++) {
    memset(&d, 0, sizeof d);
    d.freq_codec = i < GPUIR__FREQ_CODECS ? gpuir__freq_codecs[i].name : "auto:0.2";
    d.positions = i % 2 == 0;
    check_bytes(&d, DOCUMENTS, d.freq_codec);
  }
}

/* Texts and positions kept or not, stop words, stemming, other k1 and b, a description; few documents, and none. */
static void test_bytes_of_settings(void **state) {
  static const unsigned n[] = {DOCUMENTS, 30, 1, 0};
  gpuir_builder_desc d;
  unsigned i, how;
  (void)state;
  for (i = 0; i < 4; i++)
    for (how = 0; how < 16; how++) {
      char what[64];
      memset(&d, 0, sizeof d);
      d.store_text = how & 1;
      d.positions = how >> 1 & 1;
      if (how & 4) d.analyzer.stop = "english";
#ifdef GPUIR_WITH_STEMMER
      if (how & 4) d.analyzer.stem = "porter";
#endif
      if (how & 8) {
        d.custom_bm25 = 1;
        d.k1 = 1.5f;
        d.b = 0.0f;
        d.description = "a description";
        d.analyzer.stop_words = how & 4 ? NULL : "many  again\tof";
      }
      (void)snprintf(what, sizeof what, "settings %u, %u documents", how, n[i]);
      check_bytes(&d, n[i], what);
    }
}

/* Lists that take more than a quarter of the memory are merged in files. */
static void test_bytes_of_long_lists(void **state) {
  enum { MANY = 45000, OF = 9 };
  gpuir_builder_desc d;
  gpuir_builder *b;
  gpuir_live *l;
  gpuir_error err;
  char path[4200], name[16], *ours, *fresh;
  size_t size, fresh_size;
  unsigned i;
  (void)state;
  memset(&d, 0, sizeof d);
  d.memory = 1 << 20;
  d.positions = 1;
  l = open_live(&d);
  d.path = corpus_path(path, sizeof path, "fresh.gpuir");
  if (gpuir_builder_create(&d, &b, &err)) fail_msg("%s", err.msg);
  for (i = 0; i < MANY; i++) {
    const char *text = i % 3 ? "a a b a" : "a c";
    gpuir_doc_desc doc;
    memset(&doc, 0, sizeof doc);
    doc.name = name;
    doc.name_len = (size_t)sprintf(name, "n%u", i % OF);
    if (gpuir_live_add(l, &doc, text, strlen(text), &err)) fail_msg("%s", err.msg);
    if (i % OF != 4 && gpuir_builder_add_text(b, &doc, text, strlen(text), &err)) fail_msg("%s", err.msg);
    if (i == MANY / 3) gpuir_close(refresh(l));
  }
  assert_int_equal(gpuir_live_delete(l, GPUIR_BY_NAME, "n4", 2, NULL, &err), GPUIR_OK);
  commit(l);
  merge_all(l);
  commit(l);
  if (gpuir_builder_write(b, NULL, &err)) fail_msg("%s", err.msg);
  gpuir_builder_destroy(b);
  ours = read_segment(&size);
  fresh = read_file(path, &fresh_size);
  assert_int_equal(size, fresh_size);
  assert_memory_equal(ours, fresh, size);
  free(ours);
  free(fresh);
  (void)unlink(path);
  gpuir_live_close(l);
}

/* ---- the same calls, the same files ---- */

/* Makes one sequence of calls. */
static void fixed_history(const gpuir_builder_desc *settings) {
  gpuir_live *l = open_live(settings);
  unsigned i;
  int more = 1;
  for (i = 0; i < DOCUMENTS; i++) {
    add_to_live(l, i);
    if (i % 50 == 49) gpuir_close(refresh(l));
    if (i % 130 == 129) commit(l);
    if (i % 100 == 99) assert_int_equal(gpuir_live_merge(l, 0, NULL, NULL), GPUIR_OK);
    if (is_deleted(i) && i % 3) delete_from_live(l, i);
  }
  commit(l);
  while (more) assert_int_equal(gpuir_live_merge(l, 0, &more, NULL), GPUIR_OK);
  for (i = 0; i < 60; i++) add_to_live(l, DOCUMENTS + i);
  commit(l);
  gpuir_live_close(l);
}

/* Adds up names and bytes of all files, which may be listed in any order. */
static uint64_t folder_digest(unsigned *files) {
  DIR *dir = opendir(folder);
  struct dirent *e;
  uint64_t sum = 0;
  assert_non_null(dir);
  *files = 0;
  while ((e = readdir(dir)) != NULL) {
    char path[4600], *bytes;
    size_t n;
    if (e->d_name[0] == '.') continue;
    (void)snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    bytes = read_file(path, &n);
    sum += XXH3_64bits_withSeed(bytes, n, XXH3_64bits(e->d_name, strlen(e->d_name)));
    free(bytes);
    ++*files;
  }
  (void)closedir(dir);
  return sum;
}

static void test_same_calls(void **state) {
  static const uint64_t memory[] = {1 << 20, 0, 1 << 30};
  static const unsigned threads[] = {1, 8};
  uint64_t first = 0;
  unsigned i, j, files, of_first = 0;
  (void)state;
  for (i = 0; i < 3; i++)
    for (j = 0; j < 2; j++) {
      gpuir_builder_desc d;
      uint64_t digest;
      memset(&d, 0, sizeof d);
      d.memory = memory[i];
      d.threads = threads[j];
      d.positions = 1;
      d.codec = "auto";
      fixed_history(&d);
      digest = folder_digest(&files);
      if (!i && !j) first = digest, of_first = files;
      assert_int_equal(files, of_first);
      assert_int_equal(digest, first);
      (void)folder_remove(folder);
    }
  assert_in_range(of_first, 4, 12); /* manifest, lock, and more segments than one */
}

/* ---- when, and what is refused ---- */

static void expect(gpuir_index *ix, uint64_t documents, uint32_t every) {
  gpuir_index_info info;
  uint32_t df;
  assert_int_equal(gpuir_index_get_info(ix, &info), GPUIR_OK);
  assert_int_equal(info.documents, documents);
  assert_int_equal(gpuir_term_count(ix, "every", 5, &df, NULL), every ? GPUIR_OK : GPUIR_E_NOT_FOUND);
  assert_int_equal(df, every);
}

static void add_text(gpuir_live *l, const char *name, const char *source, const char *text) {
  gpuir_doc_desc d;
  gpuir_error err;
  memset(&d, 0, sizeof d);
  d.name = name;
  d.name_len = strlen(name);
  d.source = source;
  d.source_len = strlen(source);
  if (gpuir_live_add(l, &d, text, strlen(text), &err)) fail_msg("%s", err.msg);
}

static uint64_t delete_by(gpuir_live *l, int by, const char *key) {
  uint64_t n;
  gpuir_error err;
  if (gpuir_live_delete(l, by, key, strlen(key), &n, &err)) fail_msg("%s", err.msg);
  return n;
}

static gpuir_index *open_folder(void) {
  gpuir_index *ix;
  gpuir_error err;
  if (gpuir_open(folder, NULL, &ix, &err)) fail_msg("%s", err.msg);
  return ix;
}

/* Each snapshot stays what it was; others see what was committed; close forgets the rest. */
/* A document whose tokens are all too long cannot be found; it is counted once it is in a segment. */
static void test_lost(void **state) {
  char word[GPUIR_MAX_TERM + 2];
  gpuir_live *l = open_live(NULL);
  (void)state;
  memset(word, 'x', sizeof word);
  word[sizeof word - 1] = 0;
  add_text(l, "a", "s", word);
  add_text(l, "b", "s", "a word");
  add_text(l, "c", "s", "");
  gpuir_close(refresh(l));
  assert_int_equal(gpuir_live_lost(l), 1);
  add_text(l, "d", "s", word);
  commit(l);
  assert_int_equal(gpuir_live_lost(l), 2);
  assert_int_equal(gpuir_live_lost(NULL), 0);
  gpuir_live_close(l);
}

static void test_visibility(void **state) {
  gpuir_live *l = open_live(NULL);
  gpuir_index *ix[4];
  unsigned i;
  (void)state;
  add_text(l, "a", "s", "every one");
  add_text(l, "b", "s", "every two");
  ix[0] = refresh(l);
  add_text(l, "c", "t", "every three");
  assert_int_equal(delete_by(l, GPUIR_BY_NAME, "c"), 1); /* it is not in a segment yet */
  assert_int_equal(delete_by(l, GPUIR_BY_NAME, "c"), 0);
  add_text(l, "c", "t", "every four");
  assert_int_equal(delete_by(l, GPUIR_BY_SOURCE, "s"), 2);
  add_text(l, "a", "s", "one");
  ix[1] = refresh(l);
  ix[2] = open_folder();
  commit(l);
  ix[3] = open_folder();
  assert_int_equal(delete_by(l, GPUIR_BY_SOURCE, "t"), 1);
  assert_int_equal(delete_by(l, GPUIR_BY_NAME, "s"), 0);
  gpuir_close(refresh(l));
  gpuir_live_close(l);
  expect(ix[0], 2, 2);
  expect(ix[1], 2, 1);
  expect(ix[2], 0, 0);
  expect(ix[3], 2, 1);
  for (i = 0; i < 4; i++) gpuir_close(ix[i]);
  l = open_live(NULL);
  ix[0] = refresh(l);
  expect(ix[0], 2, 1);
  gpuir_close(ix[0]);
  gpuir_live_close(l);
}

/* New documents first, then the old ones of their source go, or the new ones: whichever is complete. */
static void test_marks(void **state) {
  gpuir_live *l = open_live(NULL);
  gpuir_index *ix;
  gpuir_error err;
  uint64_t mark, n, early;
  unsigned i;
  (void)state;
  add_text(l, "a", "s", "every one");
  add_text(l, "b", "t", "every two");
  commit(l);
  early = gpuir_live_mark(l);
  add_text(l, "a", "s", "every three");
  mark = gpuir_live_mark(l);
  add_text(l, "a", "s", "every four");
  add_text(l, "c", "s", "every five");
  assert_int_equal(gpuir_live_delete_before(l, mark, GPUIR_BY_SOURCE, "s", 1, &n, &err), GPUIR_OK);
  assert_int_equal(n, 2); /* one of the segment, one of those that are in none yet */
  assert_int_equal(gpuir_live_delete_before(l, mark, GPUIR_BY_SOURCE, "s", 1, &n, &err), GPUIR_OK);
  assert_int_equal(n, 0);
  mark = gpuir_live_mark(l);
  for (i = 0; i < 10; i++) add_text(l, "b", "t", "every six");
  assert_int_equal(gpuir_live_delete_since(l, mark, &n, &err), GPUIR_OK);
  assert_int_equal(n, 10);
  assert_int_equal(gpuir_live_delete_since(l, mark, &n, &err), GPUIR_OK);
  assert_int_equal(n, 0);
  add_text(l, "d", "t", "every seven");
  assert_int_equal(gpuir_live_delete_since(l, gpuir_live_mark(l), &n, &err), GPUIR_OK);
  assert_int_equal(n, 0);
  ix = refresh(l);
  expect(ix, 4, 4); /* a four, c five, b two, d seven */
  gpuir_close(ix);
  assert_int_equal(gpuir_live_delete_since(l, early, &n, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_live_delete_before(l, early, GPUIR_BY_NAME, "a", 1, &n, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_live_delete_since(l, gpuir_live_mark(l) + 1, &n, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_live_delete_since(NULL, 0, &n, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_live_mark(NULL), 0);
  assert_int_equal(gpuir_live_delete_since(l, gpuir_live_mark(l), NULL, NULL), GPUIR_OK); /* the handle goes on */
  assert_int_equal(delete_by(l, GPUIR_BY_SOURCE, "s"), 2);
  gpuir_live_close(l);
}

static void test_refusals(void **state) {
  gpuir_live_desc d;
  gpuir_live *l;
  gpuir_index *ix;
  gpuir_doc_desc doc;
  gpuir_error err;
  (void)state;
  memset(&d, 0, sizeof d);
  assert_int_equal(gpuir_live_open(&d, &l, &err), GPUIR_E_ARGUMENT);
  d.settings.path = folder;
  assert_int_equal(gpuir_live_open(&d, &l, &err), GPUIR_E_IO); /* it does not exist, and is not to be made */
  assert_null(l);
  d.create = 1;
  d.settings.order = "some";
  assert_int_equal(gpuir_live_open(&d, &l, &err), GPUIR_E_ARGUMENT);
  d.settings.order = NULL;
  d.settings.codec = "no codec";
  assert_int_not_equal(gpuir_live_open(&d, &l, &err), GPUIR_OK);
  d.settings.codec = NULL;
  l = open_live(NULL);
  assert_int_equal(gpuir_live_delete(l, GPUIR_BY_NAME, "", 0, NULL, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_live_delete(l, GPUIR_BY_NAME, NULL, 3, NULL, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_live_delete(l, 2, "a", 1, NULL, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_live_refresh(l, NULL, &err), GPUIR_E_ARGUMENT);
  memset(&doc, 0, sizeof doc);
  doc.name_len = 3;
  assert_int_equal(gpuir_live_add(l, &doc, "text", 4, &err), GPUIR_E_ARGUMENT);
  doc.name_len = 0;
  assert_int_equal(gpuir_live_add(l, &doc, "every", 5, &err), GPUIR_OK); /* the handle goes on */
  ix = refresh(l);
  expect(ix, 1, 1);
  gpuir_close(ix);
  gpuir_live_close(l);
  assert_int_equal(gpuir_live_add(NULL, NULL, "", 0, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_live_commit(NULL, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_live_merge(NULL, 1, NULL, &err), GPUIR_E_ARGUMENT);
  gpuir_live_close(NULL);
}

static int try_to_open(void) {
  gpuir_live_desc d;
  gpuir_live *l;
  gpuir_error err;
  int status;
  memset(&d, 0, sizeof d);
  d.settings.path = folder;
  status = gpuir_live_open(&d, &l, &err);
  gpuir_live_close(l);
  return status;
}

/* One writer a folder, also within a process, and whoever else opens and closes the file of the lock. A process that
 * dies leaves the lock to the child that it has forked, with which it ends. */
static void test_one_writer(void **state) {
  gpuir_live *l = open_live(NULL);
  char path[4300], byte;
  const struct timespec wait = {0, 10000000};
  int fd, hold[2] = {-1, -1}, said[2] = {-1, -1}, status = 0, i;
  pid_t child;
  (void)state;
  assert_int_equal(try_to_open(), GPUIR_E_BUSY);
  (void)snprintf(path, sizeof path, "%s/lock", folder);
  fd = open(path, O_RDWR);
  assert_true(fd >= 0 && !close(fd));
  assert_int_equal(try_to_open(), GPUIR_E_BUSY);
  gpuir_live_close(l);
  assert_int_equal(try_to_open(), GPUIR_OK);
  assert_true(!pipe(hold) && !pipe(said));
  child = fork();
  assert_true(child >= 0);
  if (!child) {
    l = open_live(NULL);
    child = fork();
    if (!child) { /* it stays until the test has closed the other end */
      (void)close(hold[1]);
      _exit(write(said[1], "", 1) != 1 || read(hold[0], &byte, 1) != 0);
    }
    _exit(child < 0 || !l);
  }
  (void)close(hold[0]);
  (void)close(said[1]);
  assert_true(waitpid(child, &status, 0) == child && status == 0);
  assert_int_equal(read(said[0], &byte, 1), 1);
  assert_int_equal(try_to_open(), GPUIR_E_BUSY);
  (void)close(hold[1]);
  for (i = 0; i < 1000 && (status = try_to_open()) == GPUIR_E_BUSY; i++) (void)nanosleep(&wait, NULL);
  assert_int_equal(status, GPUIR_OK);
  (void)close(said[0]);
}

/* Sanitizers make calls of their own, and only gcc says in the same way that they are there. */
#if defined __linux__ && !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__ && !defined __clang__
/* Adds 50 documents twice, and marks the second refresh by calls that nothing else makes. */
static void traced(void) {
  gpuir_builder_desc settings;
  gpuir_live *l;
  unsigned i;
  memset(&settings, 0, sizeof settings);
  settings.threads = 1;
  if (ptrace(PTRACE_TRACEME, 0, NULL, NULL)) _exit(2);
  l = open_live(&settings);
  for (i = 0; i < 50; i++) add_to_live(l, i);
  gpuir_close(refresh(l));
  for (; i < 100; i++) add_to_live(l, i);
  (void)raise(SIGSTOP);
  (void)getppid();
  (void)refresh(l);
  (void)getppid();
  _exit(0);
}

/* A refresh of 50 documents makes at most 40 system calls, and syncs nothing. */
static void test_calls_of_a_refresh(void **state) {
  struct __ptrace_syscall_info info;
  unsigned calls = 0, marks = 0, syncs = 0;
  int status;
  const pid_t child = fork();
  (void)state;
  assert_true(child >= 0);
  if (!child) traced();
  assert_int_equal(waitpid(child, &status, 0), child);
  if (!WIFSTOPPED(status)) skip(); /* tracing is not allowed here */
  assert_int_equal(ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL), 0);
  while (!ptrace(PTRACE_SYSCALL, child, NULL, NULL) && waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
    if (WSTOPSIG(status) != (SIGTRAP | 0x80)) continue;
    assert_true(ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info) > 0);
    if (info.op != PTRACE_SYSCALL_INFO_ENTRY) continue;
    if (info.entry.nr == SYS_getppid) marks++;
    else if (marks == 1) calls++;
    if (marks == 1) syncs += info.entry.nr == SYS_fsync || info.entry.nr == SYS_fdatasync;
  }
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  assert_int_equal(marks, 2);
  if (calls < 5 || calls > 40) fail_msg("%u system calls", calls);
  assert_int_equal(syncs, 0);
}
#else
static void test_calls_of_a_refresh(void **state) {
  (void)state;
  skip();
}
#endif

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_bytes_of_codecs, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_bytes_of_settings, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_bytes_of_long_lists, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_same_calls, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_lost, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_visibility, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_marks, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_refusals, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_one_writer, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_calls_of_a_refresh, set_up, tear_down),
  };
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  return cmocka_run_group_tests_name("65_live", tests, NULL, NULL);
}
