/* minimal INDEX QUERY: prints the ten best documents.
 *
 *     cc -DGPUIR_WITH_UTF8PROC -DGPUIR_WITH_STEMMER -I. examples/minimal.c -lutf8proc -lstemmer -lm -pthread -o minimal
 *
 * Without the two macros and their libraries it reads indexes of the analyzers ascii and basic without stems. */
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
  gpuir_index *index = NULL;
  gpuir_searcher *searcher = NULL;
  gpuir_query *query = NULL;
  gpuir_hit hits[10];
  gpuir_doc doc;
  gpuir_error err = {0};
  char name[256];
  size_t n = 0;
  if (argc != 3) return fprintf(stderr, "usage: minimal INDEX QUERY\n"), 2;
  int status = gpuir_open(argv[1], NULL, &index, &err);
  if (!status) status = gpuir_query_parse(index, NULL, argv[2], strlen(argv[2]), &query, &err);
  if (!status) status = gpuir_searcher_create(index, NULL, &searcher, &err);
  if (!status && (status = gpuir_search(searcher, query, hits, 10, &n))) gpuir_searcher_error(searcher, &err);
  for (size_t i = 0; i < n && gpuir_doc_get(index, hits[i].docid, &doc) == GPUIR_OK; i++) {
    gpuir_doc_name(&doc, name, sizeof name);
    printf("%8.4f  %s\n", gpuir_score(hits[i]), name);
  }
  if (status) fprintf(stderr, "minimal: %s\n", err.code ? err.msg : gpuir_strerror(status));
  gpuir_searcher_destroy(searcher), gpuir_query_destroy(query), gpuir_close(index);
  return status ? 1 : 0;
}
