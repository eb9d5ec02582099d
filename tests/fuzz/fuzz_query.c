/* fuzz_query.c - parses any bytes as a query of small indexes, searches and explains it
 *
 *   make build/fuzz/fuzz_query && mkdir -p build/corpus-query
 *   build/fuzz/fuzz_query -max_total_time=60 -max_len=4096 -timeout=10 build/corpus-query
 *
 * Without utf8proc only the ascii analyzer is fuzzed. Both evaluators must agree, and with the index of the ascii
 * analyzer a snapshot of a live one with the same documents, in segments from which others were deleted. */
#define _POSIX_C_SOURCE 200809L
#include "gpuir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ANALYZERS = 3 };

static gpuir_index *ix[ANALYZERS], *snapshot;
static gpuir_searcher *live_searcher;
static gpuir_searcher *searcher[ANALYZERS][2];

static const char *const documents[] = {
    "a quick brown fox",
    "the lazy dog sleeps",
    "a dog and a fox",
    "Stra\xc3\x9fx \xe6\xbc\xa2\xe5\xad\x97 a",
    "1 2 3 a",
    "fox fox fox fox",
    "",
    "running runs ran run dog",
    "the the the",
    "x y z a b c d e f g",
};

static void start(int i) {
  static const char *const analyzer[ANALYZERS] = {"ascii", "unicode", "unicode"};
  char path[] = "/tmp/gpuir-fuzz-XXXXXX";
  gpuir_builder_desc desc;
  gpuir_searcher_desc how;
  gpuir_builder *b;
  size_t d, times;
  int fd = mkstemp(path), e, status;
  if (fd < 0) abort();
  (void)close(fd);
  memset(&desc, 0, sizeof desc);
  memset(&how, 0, sizeof how);
  desc.path = path;
  desc.threads = 1;
  desc.positions = i < 2; /* phrases are refused by the third */
  desc.analyzer.analyzer = analyzer[i];
  if (i == 2) {
    desc.analyzer.stem = "english";
    desc.analyzer.stop = "english";
  }
  status = gpuir_builder_create(&desc, &b, NULL);
  if (!status) {
    for (times = 0; times < 40; times++)
      for (d = 0; d < sizeof documents / sizeof *documents; d++)
        if (gpuir_builder_add_text(b, NULL, documents[d], strlen(documents[d]), NULL)) abort();
    if (gpuir_builder_write(b, NULL, NULL) || gpuir_open(path, NULL, &ix[i], NULL)) abort();
    gpuir_builder_destroy(b);
    for (e = 0; e < 2; e++) {
      how.evaluator = e;
      if (gpuir_searcher_create(ix[i], &how, &searcher[i][e], NULL)) abort();
    }
  } else if (status != GPUIR_E_UNSUPPORTED) {
    abort();
  }
  (void)unlink(path);
}

/* Makes the snapshot: 400 documents in four segments, and others between them that are deleted. */
static void start_live(void) {
  char path[] = "/tmp/gpuir-fuzz-XXXXXX", command[64];
  gpuir_live_desc desc;
  gpuir_doc_desc doc;
  gpuir_live *l;
  size_t d;
  if (!mkdtemp(path)) abort();
  memset(&desc, 0, sizeof desc);
  memset(&doc, 0, sizeof doc);
  doc.name = "gone";
  doc.name_len = 4;
  desc.settings.path = path;
  desc.settings.positions = 1;
  desc.settings.analyzer.analyzer = "ascii";
  desc.create = 1;
  if (gpuir_live_open(&desc, &l, NULL)) abort();
  for (d = 0; d < 400; d++) {
    const char *text = documents[d % (sizeof documents / sizeof *documents)];
    if (d % 7 == 0 && gpuir_live_add(l, &doc, "fox dog unheard of", 18, NULL)) abort();
    if (gpuir_live_add(l, NULL, text, strlen(text), NULL)) abort();
    if (d % 100 < 99) continue;
    if (d == 399 && gpuir_live_delete(l, GPUIR_BY_NAME, "gone", 4, NULL, NULL)) abort();
    gpuir_close(snapshot);
    if (gpuir_live_refresh(l, &snapshot, NULL)) abort();
  }
  gpuir_live_close(l);
  (void)snprintf(command, sizeof command, "rm -r %s", path);
  if (system(command) || gpuir_searcher_create(snapshot, NULL, &live_searcher, NULL)) abort();
}

/* Asks the snapshot the same: the hits have the same scores, and their documents the same order. */
static void check_live(const gpuir_query_desc *desc, const char *text, size_t len, const gpuir_hit *want, size_t n,
    size_t k) {
  gpuir_hit hits[50];
  gpuir_query *q;
  size_t i, found;
  if (gpuir_query_parse(snapshot, desc, text, len, &q, NULL) || gpuir_search(live_searcher, q, hits, k, &found))
    abort();
  if (n != found) abort();
  for (i = 0; i < n; i++)
    if (hits[i].score != want[i].score ||
        (i && (hits[i - 1].docid < hits[i].docid) != (want[i - 1].docid < want[i].docid)))
      abort();
  gpuir_query_destroy(q);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static int started;
  static gpuir_explanation x;
  gpuir_query_desc desc;
  gpuir_query *q;
  gpuir_hit hits[2][50];
  size_t n[2], k;
  uint64_t count, together;
  int i, e;
  for (i = 0; i < ANALYZERS && !started; i++) start(i);
  if (!started) start_live();
  started = 1;
  if (size < 2) return 0;
  memset(&desc, 0, sizeof desc);
  desc.mode = data[0] % 3;
  desc.no_operators = data[0] >> 2 & 1;
  desc.custom_bm25 = data[0] >= 240; /* seldom: a table is made for each new pair */
  desc.k1 = (float)data[1] * 4;
  desc.b = (float)data[1] / 255;
  k = data[0] >> 3 & 1 ? 50 : data[1] % 8;
  if (desc.mode == GPUIR_OR && data[0] & 64) desc.required = 1 + data[1] % 3u;
  for (i = 0; i < ANALYZERS; i++) {
    if (!ix[i]) continue;
    if (gpuir_query_parse(ix[i], &desc, (const char *)data + 2, size - 2, &q, NULL)) {
      if (q) abort();
      continue;
    }
    for (e = 0; e < 2; e++)
      if (gpuir_search(searcher[i][e], q, hits[e], k, &n[e])) abort();
    if (n[0] != n[1] || n[0] > k || (n[0] && memcmp(hits[0], hits[1], n[0] * sizeof hits[0][0]))) abort();
    if (gpuir_count(searcher[i][0], q, &count)) abort();
    if (desc.mode != GPUIR_ANDOR && n[0] != (count < k ? count : k)) abort();
    if (gpuir_search_count(searcher[i][0], q, hits[0], k, &n[0], &together) || together != count) abort();
    if (n[0] != n[1] || (n[0] && memcmp(hits[0], hits[1], n[0] * sizeof hits[0][0]))) abort();
    if (gpuir_explain(searcher[i][0], q, data[1], &x)) abort();
    if (!i) check_live(&desc, (const char *)data + 2, size - 2, hits[0], n[0], k);
    gpuir_query_destroy(q);
  }
  return 0;
}
