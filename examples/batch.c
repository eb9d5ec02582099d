/* batch INDEX: reads queries, one a line, and answers them together, on two threads.
 *
 *     cc -DGPUIR_WITH_UTF8PROC -DGPUIR_WITH_STEMMER -I. examples/batch.c -lutf8proc -lstemmer -lm -pthread -o batch
 *
 * A query that cannot be parsed is named, and the others are answered. */
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"
#include <stdio.h>
#include <string.h>

enum { QUERIES = 64, BEST = 3 };

/* Answers n queries and prints the best documents of each. */
static int answer(gpuir_searcher *searcher, const gpuir_index *index, gpuir_query **queries, size_t n) {
  static gpuir_hit hits[QUERIES * BEST];
  uint32_t counts[QUERIES], j;
  size_t i;
  const int status = gpuir_search_batch(searcher, (const gpuir_query *const *)queries, n, BEST, hits, counts);
  for (i = 0; i < n && !status; i++) {
    printf("%u:", (unsigned)(i + 1));
    for (j = 0; j < counts[i]; j++) {
      gpuir_doc doc;
      char name[256] = "";
      if (!gpuir_doc_get(index, hits[i * BEST + j].docid, &doc)) gpuir_doc_name(&doc, name, sizeof name);
      printf(" %s%s", name, j + 1 < counts[i] ? "," : "");
    }
    printf("\n");
  }
  return status;
}

int main(int argc, char **argv) {
  gpuir_index *index = NULL;
  gpuir_searcher *searcher = NULL;
  gpuir_query *queries[QUERIES];
  gpuir_searcher_desc desc = {0};
  gpuir_error err = {0};
  char line[1000];
  size_t n = 0, i;
  int status;
  if (argc != 2) return fprintf(stderr, "usage: batch INDEX\n"), 2;
  desc.threads = 2;
  status = gpuir_open(argv[1], NULL, &index, &err);
  if (!status) status = gpuir_searcher_create(index, &desc, &searcher, &err);
  while (!status && n < QUERIES && fgets(line, sizeof line, stdin)) {
    if (!gpuir_query_parse(index, NULL, line, strcspn(line, "\n"), &queries[n], &err)) n++;
    else fprintf(stderr, "batch: %s\n", err.msg);
  }
  if (!status && (status = answer(searcher, index, queries, n))) gpuir_searcher_error(searcher, &err);
  if (status) fprintf(stderr, "batch: %s\n", err.code ? err.msg : gpuir_strerror(status));
  for (i = 0; i < n; i++) gpuir_query_destroy(queries[i]);
  gpuir_searcher_destroy(searcher), gpuir_close(index);
  return status ? 1 : 0;
}
