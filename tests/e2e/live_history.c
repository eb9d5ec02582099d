/* live_history.c - a history of a live index, to be disturbed, and what judges what it left; live_faults.py drives it
 *
 *   live run FOLDER [COMMITS]
 *                      adds, deletes, refreshes, merges, commits and opens again; makes the folder if there is none.
 *                      Writes `committed N` after the N-th commit, and ends there if N is COMMITS. 0; 1 and `failed:
 *                      WHY` when a call fails, after a look at what must hold then; 3 and `broken: WHAT` if it does
 *                      not.
 *   live look FOLDER   opens the folder as a reader: writes a digest of all its documents and of some answers, and the
 *                      numbers of documents and segments; 1 and `failed: CODE: WHY`.
 *   live tidy FOLDER   opens the folder for writing and closes it; the same.
 *
 * From whatever documents n0 to n20 it starts, the history ends with the same ones. */
#define _POSIX_C_SOURCE 200809L
#include "gpuir.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DOCUMENTS = 21, BIG = 20, REPEATS = 70000, SNAPSHOTS = 4, BROKEN = 3 };

/* A snapshot, and what it held when it was taken. */
typedef struct taken {
  gpuir_index *index;
  uint64_t digest;
} taken;

static gpuir_live_desc desc;
static gpuir_live *live;
static taken snapshots[SNAPSHOTS];
static unsigned nsnapshots, commits, most_commits;
static gpuir_error why;

/* Writes a line at once and without memory, of which there may be none. */
static void say(const char *format, ...) {
  char line[1024];
  va_list ap;
  int n;
  va_start(ap, format);
  n = vsnprintf(line, sizeof line - 1, format, ap);
  va_end(ap);
  if (n < 0) exit(BROKEN);
  if ((size_t)n > sizeof line - 2) n = (int)sizeof line - 2;
  line[n] = '\n';
  if (write(1, line, (size_t)n + 1) != n + 1) exit(BROKEN);
}

static void broken(const char *what) {
  say("broken: %s", what);
  exit(BROKEN);
}

/* ---- what an index holds ---- */

static uint64_t hash_of(uint64_t h, const void *bytes, size_t n) { /* FNV-1a */
  const unsigned char *p = (const unsigned char *)bytes;
  for (; n--; p++) h = (h ^ *p) * 0x100000001b3u;
  return h;
}

/* Digests the documents in their order. */
static uint64_t documents_of(const gpuir_index *ix, uint64_t h) {
  gpuir_index_info info;
  char name[64], text[4096]; /* not allocated: allocations fail here */
  gpuir_doc doc;
  uint64_t d, at;
  size_t n;
  if (gpuir_index_get_info(ix, &info)) broken("no information about an index");
  for (d = 0; d < info.docids; d++) {
    const int status = gpuir_doc_get(ix, (uint32_t)d, &doc);
    if (status == GPUIR_E_NOT_FOUND) continue;
    if (status) broken("a document cannot be read");
    h = hash_of(h, name, gpuir_doc_name(&doc, name, sizeof name));
    h = hash_of(h, doc.source, doc.source_len);
    for (at = 0; at < doc.stored_bytes; at += n) {
      n = doc.stored_bytes - at < sizeof text ? (size_t)(doc.stored_bytes - at) : sizeof text;
      if (gpuir_doc_text(ix, (uint32_t)d, at, text, n)) broken("a text cannot be read");
      h = hash_of(h, text, n);
    }
  }
  return h;
}

/* Digests the scores of a query's hits and the names of their documents. 0 if there is no memory. */
static uint64_t answers_of(gpuir_index *ix, const char *text, uint64_t h) {
  gpuir_searcher *s = NULL;
  gpuir_query *q = NULL;
  gpuir_hit hits[DOCUMENTS];
  char name[64];
  gpuir_doc doc;
  size_t n = 0, i;
  int status = gpuir_searcher_create(ix, NULL, &s, NULL);
  if (!status) status = gpuir_query_parse(ix, NULL, text, strlen(text), &q, NULL);
  if (!status) status = gpuir_search(s, q, hits, DOCUMENTS, &n);
  if (status && status != GPUIR_E_NOMEM) broken("a search failed");
  for (i = 0; i < n; i++) {
    if (gpuir_doc_get(ix, hits[i].docid, &doc)) broken("a hit is no document");
    h = hash_of(h, name, gpuir_doc_name(&doc, name, sizeof name));
    h = hash_of(h, &hits[i].score, sizeof hits[i].score);
  }
  gpuir_query_destroy(q);
  gpuir_searcher_destroy(s);
  return status ? 0 : h;
}

/* What is known of snapshots must not change, whatever has failed. */
static void check_snapshots(void) {
  unsigned i;
  for (i = 0; i < nsnapshots; i++) {
    if (documents_of(snapshots[i].index, 1) != snapshots[i].digest)
      broken("a snapshot has other documents than before");
    (void)answers_of(snapshots[i].index, "every w3 \"b c\"", 1);
  }
}

/* ---- the history ---- */

static void open_live(void) {
  if (gpuir_live_open(&desc, &live, &why)) {
    if (live) broken("a handle, though opening failed");
    say("failed: %d: open: %s", why.code, why.msg);
    check_snapshots();
    exit(1);
  }
}

/* After a failure the snapshots stay usable, and the handle can only be closed. */
static void check_status(int status, const char *step) {
  uint64_t n;
  gpuir_index *ix;
  if (!status) return;
  say("failed: %d: %s: %s", status, step, why.msg);
  if (!why.msg[0] || why.code != status) broken("an error without words, or with another code");
  check_snapshots();
  if (gpuir_live_commit(live, NULL) != status || gpuir_live_add(live, NULL, "x", 1, NULL) != status ||
      gpuir_live_delete(live, GPUIR_BY_NAME, "x", 1, &n, NULL) != status ||
      gpuir_live_refresh(live, &ix, NULL) != status || ix)
    broken("the handle goes on after an error");
  gpuir_live_close(live);
  check_snapshots();
  exit(1);
}

/* Replaces document `number` by another version of it. */
static void replace(unsigned number, unsigned version) {
  static char text[2 * REPEATS + 4096];
  char name[16], source[16];
  gpuir_doc_desc doc;
  size_t n;
  unsigned i;
  memset(&doc, 0, sizeof doc);
  doc.name = name;
  doc.name_len = (size_t)snprintf(name, sizeof name, "n%u", number);
  doc.source = source;
  doc.source_len = (size_t)snprintf(source, sizeof source, "s%u", number % 5);
  n = (size_t)snprintf(text, sizeof text, "every n%u v%u a b c ", number, version);
  for (i = 0; i < 300; i++)
    n += (size_t)snprintf(text + n, sizeof text - n, "w%u ", (number * 7 + i * i + version) % 97);
  for (i = 0; number == BIG && i < REPEATS; i++) n += (size_t)snprintf(text + n, sizeof text - n, "a ");
  check_status(gpuir_live_delete(live, GPUIR_BY_NAME, name, doc.name_len, NULL, &why), "delete");
  check_status(gpuir_live_add(live, &doc, text, n, &why), "add");
}

static void replace_all(unsigned from, unsigned to, unsigned version) {
  for (; from < to; from++) replace(from, version);
}

static void delete (int by, const char *key) {
  check_status(gpuir_live_delete(live, by, key, strlen(key), NULL, &why), "delete");
}

static void refresh(void) {
  taken *t = &snapshots[nsnapshots];
  check_status(gpuir_live_refresh(live, &t->index, &why), "refresh");
  t->digest = documents_of(t->index, 1);
  nsnapshots++;
}

static void commit(void) {
  check_status(gpuir_live_commit(live, &why), "commit");
  say("committed %u", ++commits);
  if (commits != most_commits) return;
  gpuir_live_close(live);
  exit(0);
}

/* A merge that fails changes nothing: what follows must go on. */
static void merge(int all) {
  int more = 1, status = GPUIR_OK;
  while (more && !status) status = gpuir_live_merge(live, all, &more, &why);
  if (status) say("not merged: %d: %s", status, why.msg);
  check_snapshots();
}

static int run(void) {
  open_live();
  replace_all(0, 10, 1);
  refresh();
  delete (GPUIR_BY_SOURCE, "s1");
  replace_all(10, 15, 1);
  commit();
  replace_all(15, 20, 1);
  refresh();
  replace_all(20, 21, 1);
  refresh();
  merge(0);
  commit();
  delete (GPUIR_BY_NAME, "n3");
  delete (GPUIR_BY_NAME, "n15");
  merge(1);
  commit();
  gpuir_live_close(live);
  check_snapshots();
  open_live();
  replace_all(0, DOCUMENTS, 2);
  delete (GPUIR_BY_NAME, "n5");
  refresh();
  commit();
  gpuir_live_close(live);
  check_snapshots();
  while (nsnapshots) gpuir_close(snapshots[--nsnapshots].index);
  return 0;
}

/* ---- what is left ---- */

static int look(const char *folder) {
  gpuir_index *ix;
  gpuir_index_info info;
  uint64_t digest;
  int status = gpuir_open(folder, NULL, &ix, &why);
  if (!status && (status = gpuir_verify(ix, &why)) != 0) gpuir_close(ix);
  if (status) {
    say("failed: %d: %s", status, why.msg);
    return 1;
  }
  (void)gpuir_index_get_info(ix, &info);
  digest = documents_of(ix, 1);
  digest = answers_of(ix, "every w3 -w90", digest);
  if (digest) digest = answers_of(ix, "\"a b c\" every", digest);
  gpuir_close(ix);
  if (!digest) {
    say("failed: %d: no memory to search", GPUIR_E_NOMEM);
    return 1;
  }
  say("%016llx %llu %llu", (unsigned long long)digest, (unsigned long long)info.documents,
      (unsigned long long)info.segments);
  return 0;
}

static int tidy(void) {
  desc.create = 0;
  open_live();
  gpuir_live_close(live);
  return 0;
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  if (argc > 3) most_commits = (unsigned)atoi(argv[3]);
  desc.settings.path = argv[2];
  desc.settings.memory = 1 << 20;
  desc.settings.threads = 1;
  desc.settings.store_text = 1;
  desc.settings.positions = 1;
  desc.create = 1;
  if (!strcmp(argv[1], "run")) return run();
  if (!strcmp(argv[1], "look")) return look(argv[2]);
  return strcmp(argv[1], "tidy") ? 2 : tidy();
}
