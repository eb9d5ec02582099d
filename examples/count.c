/* count INDEX WORD...: in how many documents each word stands, and in how many all of them, or any, do.
 *
 *     cc -DGPUIR_WITH_UTF8PROC -DGPUIR_WITH_STEMMER -I. examples/count.c -lutf8proc -lstemmer -lm -pthread -o count
 *
 * Counting ranks nothing: it takes a fraction of a search's time. */
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"
#include <stdio.h>
#include <string.h>

/* Counts the documents that match a query. */
static int count(gpuir_index *index, gpuir_searcher *searcher, int mode, const char *text, uint64_t *matches,
    gpuir_error *err) {
  gpuir_query_desc desc = {0};
  gpuir_query *query;
  int status;
  desc.mode = mode;
  status = gpuir_query_parse(index, &desc, text, strlen(text), &query, err);
  if (status) return status;
  status = gpuir_count(searcher, query, matches);
  if (status) gpuir_searcher_error(searcher, err);
  gpuir_query_destroy(query);
  return status;
}

int main(int argc, char **argv) {
  gpuir_index *index = NULL;
  gpuir_searcher *searcher = NULL;
  gpuir_error err = {0};
  uint64_t matches;
  char all[1000] = "";
  int i, status;
  if (argc < 3) return fprintf(stderr, "usage: count INDEX WORD...\n"), 2;
  status = gpuir_open(argv[1], NULL, &index, &err);
  if (!status) status = gpuir_searcher_create(index, NULL, &searcher, &err);
  for (i = 2; i < argc && !status; i++) {
    const size_t used = strlen(all);
    snprintf(all + used, sizeof all - used, "%s ", argv[i]);
    status = count(index, searcher, GPUIR_AND, argv[i], &matches, &err);
    if (!status) printf("%-12s %llu\n", argv[i], (unsigned long long)matches);
  }
  if (!status) status = count(index, searcher, GPUIR_AND, all, &matches, &err);
  if (!status) printf("all of them  %llu\n", (unsigned long long)matches);
  if (!status) status = count(index, searcher, GPUIR_OR, all, &matches, &err);
  if (!status) printf("any of them  %llu\n", (unsigned long long)matches);
  if (status) fprintf(stderr, "count: %s\n", err.code ? err.msg : gpuir_strerror(status));
  gpuir_searcher_destroy(searcher), gpuir_close(index);
  return status ? 1 : 0;
}
