/* 26_live.c - live indexes: whatever was added, deleted, refreshed, committed and merged in whatever order, a snapshot
 * answers as brute force over the documents that are left, and the file of a whole merge is that of a fresh build.
 * GPUIR_LONG=1 runs a hundred times as many histories.
 */
#include "private.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "rng.h"
#include "oracle.h"
#include "corpus.h"
#include "fixture.h"

enum { MOST = 400, NAMES = 24, SOURCES = 5, WORDS = 30 };

/* A document as the model has it, in the order of adding. */
typedef struct model_doc {
  char name[16], source[16], text[256];
  int deleted;
} model_doc;

typedef struct model {
  model_doc docs[MOST];
  unsigned n;
} model;

/* A history: the handle beside the model of what it has, and of what was committed. */
typedef struct history {
  rng r;
  gpuir_live *live;
  gpuir_live_desc desc;
  char path[4200];
  model now, committed;
} history;

static void remove_folder(const char *path) {
  DIR *dir = opendir(path);
  struct dirent *e;
  char name[4600];
  if (!dir) return;
  while ((e = readdir(dir)) != NULL) {
    (void)snprintf(name, sizeof name, "%s/%s", path, e->d_name);
    if (e->d_name[0] != '.') (void)unlink(name);
  }
  (void)closedir(dir);
  (void)rmdir(path);
}

/* Lists a folder's files but for the lock, as "NAME NAME ". */
static void list_folder(const char *path, char *out, size_t cap) {
  DIR *dir = opendir(path);
  struct dirent *e;
  assert_non_null(dir);
  *out = 0;
  while ((e = readdir(dir)) != NULL)
    if (e->d_name[0] != '.' && strcmp(e->d_name, "lock") != 0)
      (void)snprintf(out + strlen(out), cap - strlen(out), "%s ", e->d_name);
  (void)closedir(dir);
}

static void open_live(history *h) {
  gpuir_error err;
  if (gpuir_live_open(&h->desc, &h->live, &err)) fail_msg("open: %s", err.msg);
}

static void add(history *h, const char *name, const char *source, const char *text) {
  gpuir_doc_desc doc;
  gpuir_error err;
  model_doc *d = &h->now.docs[h->now.n++];
  memset(&doc, 0, sizeof doc);
  doc.name = name;
  doc.name_len = strlen(name);
  doc.source = source;
  doc.source_len = strlen(source);
  if (gpuir_live_add(h->live, &doc, text, strlen(text), &err)) fail_msg("add: %s", err.msg);
  memset(d, 0, sizeof *d);
  (void)snprintf(d->name, sizeof d->name, "%s", name);
  (void)snprintf(d->source, sizeof d->source, "%s", source);
  (void)snprintf(d->text, sizeof d->text, "%s", text);
}

static void delete (history *h, int by, const char *key) {
  uint64_t n = 99, want = 0;
  gpuir_error err;
  unsigned i;
  for (i = 0; i < h->now.n; i++) {
    model_doc *d = &h->now.docs[i];
    if (d->deleted || strcmp(by == GPUIR_BY_NAME ? d->name : d->source, key) != 0) continue;
    d->deleted = 1;
    want++;
  }
  if (gpuir_live_delete(h->live, by, key, strlen(key), &n, &err)) fail_msg("delete: %s", err.msg);
  assert_int_equal(n, want);
}

/* Some words, frequent ones oftener. */
static void some_text(rng *r, char *out) {
  unsigned n = rng_below(r, 12), i;
  *out = 0;
  for (i = 0; i < n; i++)
    (void)sprintf(out + strlen(out), "%sw%u", i ? " " : "", (unsigned)rng_below(r, 1 + rng_below(r, WORDS)));
}

/* Fills an oracle with the model's live documents. */
static void model_oracle(const model *m, oracle *o) {
  unsigned i;
  oracle_init(o);
  for (i = 0; i < m->n; i++)
    if (!m->docs[i].deleted) add_text(o, m->docs[i].text, strlen(m->docs[i].text));
  oracle_invert(o);
}

/* Holds a snapshot against the model: its documents one by one, then some searches. Closes it. */
static void check_snapshot(gpuir_index *ix, const model *m, rng *r, unsigned queries) {
  uint32_t *docids, d, live = 0;
  gpuir_index_info info;
  fixture f;
  unsigned i = 0;
  f.name = "history";
  f.nindexes = 0;
  f.k1 = 0.9f;
  f.b = 0.4f;
  model_oracle(m, &f.o);
  f.docid = docids = (uint32_t *)oracle_grow(NULL, (size_t)f.o.ndocs + 1, sizeof *docids);
  f.hits = (gpuir_hit *)oracle_grow(NULL, (size_t)f.o.ndocs + 16, sizeof *f.hits);
  assert_int_equal(gpuir_index_get_info(ix, &info), GPUIR_OK);
  assert_int_equal(info.documents, f.o.ndocs);
  assert_int_equal(info.tokens, f.o.tokens);
  for (d = 0; d < info.docids; d++) {
    char name[64];
    gpuir_doc doc;
    int status = gpuir_doc_get(ix, d, &doc);
    if (status == GPUIR_E_NOT_FOUND) continue;
    assert_int_equal(status, GPUIR_OK);
    while (i < m->n && m->docs[i].deleted) i++;
    assert_true(i < m->n);
    (void)gpuir_doc_name(&doc, name, sizeof name);
    assert_string_equal(name, m->docs[i].name);
    assert_int_equal(doc.source_len, strlen(m->docs[i].source));
    assert_memory_equal(doc.source, m->docs[i].source, doc.source_len);
    if (info.has_text) {
      assert_int_equal(doc.text_len, strlen(m->docs[i].text));
      assert_memory_equal(doc.text, m->docs[i].text, doc.text_len);
    }
    docids[live++] = d;
    i++;
  }
  assert_int_equal(live, f.o.ndocs);
  f.searcher[0] = searcher_on(ix, GPUIR_EVAL_AUTO, 1);
  f.searcher[1] = searcher_on(ix, GPUIR_EVAL_EXHAUSTIVE, 1);
  f.index[f.nindexes++] = ix;
  for (i = 0; i < queries && f.o.ndocs; i++) {
    oracle_query q;
    corpus_query(&f.o, r, 1 + rng_below(r, 5), (int)(i % 2), &q);
    check_query(&f, &q, i % 3 == 2 ? settings[rng_below(r, SETTINGS)] : NULL, r, 1);
  }
  teardown(&f);
  free(docids);
}

static void refresh(history *h, unsigned queries) {
  gpuir_index *ix;
  gpuir_error err;
  if (gpuir_live_refresh(h->live, &ix, &err)) fail_msg("refresh: %s", err.msg);
  check_snapshot(ix, &h->now, &h->r, queries);
}

static void commit(history *h) {
  gpuir_error err;
  if (gpuir_live_commit(h->live, &err)) fail_msg("commit: %s", err.msg);
  h->committed = h->now;
}

/* What the folder has for those who open it is what was committed. */
static void check_folder(history *h, unsigned queries) {
  gpuir_index *ix;
  gpuir_error err;
  if (gpuir_open(h->path, NULL, &ix, &err)) fail_msg("open: %s", err.msg);
  if (gpuir_verify(ix, &err)) fail_msg("verify: %s", err.msg);
  check_snapshot(ix, &h->committed, &h->r, queries);
}

static char *read_file(const char *path, size_t *n) {
  FILE *in = fopen(path, "rb");
  char *bytes;
  assert_non_null(in);
  (void)fseek(in, 0, SEEK_END);
  *n = (size_t)ftell(in);
  rewind(in);
  bytes = (char *)malloc(*n + 1);
  assert_non_null(bytes);
  assert_int_equal(fread(bytes, 1, *n, in), *n);
  (void)fclose(in);
  return bytes;
}

/* Merges all, and compares the one file that is left with a build from the model's documents. */
static void check_whole(history *h) {
  gpuir_builder_desc d = h->desc.settings;
  char path[4200], file[4600], names[4096];
  char *ours, *fresh;
  gpuir_builder *b;
  gpuir_error err;
  size_t n, m;
  unsigned i;
  int more = 9;
  commit(h);
  if (gpuir_live_merge(h->live, 1, &more, &err)) fail_msg("merge: %s", err.msg);
  assert_int_equal(more, 0);
  commit(h);
  list_folder(h->path, names, sizeof names);
  assert_int_equal(strlen(names), strlen("000000.gpuir manifest "));
  (void)snprintf(file, sizeof file, "%s/%.12s", h->path,
                 strstr(names, "manifest") == names ? names + 9 : names);
  d.path = corpus_path(path, sizeof path, "fresh.gpuir");
  if (gpuir_builder_create(&d, &b, &err)) fail_msg("%s", err.msg);
  for (i = 0; i < h->now.n; i++) {
    const model_doc *x = &h->now.docs[i];
    gpuir_doc_desc doc;
    if (x->deleted) continue;
    memset(&doc, 0, sizeof doc);
    doc.name = x->name;
    doc.name_len = strlen(x->name);
    doc.source = x->source;
    doc.source_len = strlen(x->source);
    if (gpuir_builder_add_text(b, &doc, x->text, strlen(x->text), &err)) fail_msg("%s", err.msg);
  }
  if (gpuir_builder_write(b, NULL, &err)) fail_msg("%s", err.msg);
  gpuir_builder_destroy(b);
  ours = read_file(file, &n);
  fresh = read_file(path, &m);
  if (n != m || memcmp(ours, fresh, n) != 0)
    fail_msg("a merge of all differs from a fresh build: %lu and %lu bytes", (unsigned long)n,
             (unsigned long)m);
  free(ours);
  free(fresh);
  (void)unlink(path);
}

static void begin(history *h, uint64_t seed, const char *name) {
  static const char *const codecs[] = {NULL, "vbyte", "auto", "auto:0.5", "ef", "parapfor"};
  memset(h, 0, sizeof *h);
  h->r.s = seed;
  (void)corpus_path(h->path, sizeof h->path, name);
  h->desc.settings.path = h->path;
  h->desc.settings.memory = 1 << 20;
  h->desc.settings.threads = 1;
  h->desc.settings.store_text = rng_below(&h->r, 2) != 0;
  h->desc.settings.positions = rng_below(&h->r, 2) != 0;
  h->desc.settings.codec = codecs[rng_below(&h->r, 6)];
  h->desc.create = 1;
  remove_folder(h->path);
  open_live(h);
}

static void end(history *h) {
  gpuir_live_close(h->live);
  remove_folder(h->path);
}

/* One step at random. */
static void step(history *h) {
  rng *r = &h->r;
  const uint32_t what = rng_below(r, 100);
  char name[16], source[16], text[256];
  gpuir_error err;
  int more;
  (void)snprintf(name, sizeof name, "n%u", (unsigned)rng_below(r, NAMES));
  (void)snprintf(source, sizeof source, "s%u/n%u", (unsigned)rng_below(r, SOURCES),
                 (unsigned)rng_below(r, 3));
  some_text(r, text);
  if (what < 50 && h->now.n < MOST) {
    if (what < 15) delete (h, GPUIR_BY_NAME, name);
    add(h, name, rng_below(r, 3) ? source : "", text);
  } else if (what < 60) {
    delete (h, GPUIR_BY_NAME, name);
  } else if (what < 64) {
    delete (h, GPUIR_BY_SOURCE, source);
  } else if (what < 80) {
    refresh(h, rng_below(r, 3));
  } else if (what < 85) {
    commit(h);
    if (rng_below(r, 2)) check_folder(h, 1);
  } else if (what < 96) {
    if (gpuir_live_merge(h->live, rng_below(r, 4) == 0, &more, &err)) fail_msg("merge: %s", err.msg);
  } else if (what < 98) {
    gpuir_live_close(h->live);
    h->now = h->committed;
    open_live(h);
  } else {
    check_whole(h);
  }
}

static void test_histories(void **state) {
  static history h;
  const unsigned n = corpus_long_run() ? 100000 : 1000;
  unsigned i, j, steps;
  (void)state;
  for (i = 0; i < n; i++) {
    begin(&h, 1000 + i, "live");
    steps = 1 + rng_below(&h.r, rng_below(&h.r, 8) ? 40 : 300);
    for (j = 0; j < steps; j++) step(&h);
    refresh(&h, 3);
    if (i % 4 == 0) check_whole(&h);
    end(&h);
  }
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_histories),
  };
  int failed;
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  failed = cmocka_run_group_tests_name("26_live", tests, NULL, NULL);
  print_message("%lu comparisons, %lu hits\n", compared, hits_compared);
  return failed;
}
