/* pool INDEX: answers the queries of standard input, one a line, on all processors, in the order in which they came.
 *
 *     cc -DGPUIR_WITH_UTF8PROC -DGPUIR_WITH_STEMMER -I. examples/pool.c -lutf8proc -lstemmer -lm -pthread -o pool
 *
 * A pool's threads answer tasks as they come; a program submits one and goes on. Without the two macros and their
 * libraries it reads indexes of the analyzers ascii and basic without stems. */
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 64, K = 3 }; /* queries in flight; hits of each */

typedef struct job {
  gpuir_task task;
  gpuir_query *query; /* NULL: it could not be parsed, for the reason in error */
  gpuir_hit hits[K];
  gpuir_error error;
  char text[256];
} job;

/* Waits for an answer, and prints it. */
static void print(gpuir_pool *pool, const gpuir_index *index, job *j) {
  int status = j->query ? gpuir_pool_wait(pool, &j->task) : GPUIR_E_QUERY;
  printf("%s:", j->text);
  if (status) printf(" %s", j->error.msg);
  for (size_t i = 0; i < j->task.count; i++) {
    gpuir_doc doc;
    char name[256] = "";
    if (!gpuir_doc_get(index, j->hits[i].docid, &doc)) gpuir_doc_name(&doc, name, sizeof name);
    printf("%s %s %.4f", i ? "," : "", name, gpuir_score(j->hits[i]));
  }
  printf("\n");
  gpuir_query_destroy(j->query);
  j->query = NULL;
}

int main(int argc, char **argv) {
  static job jobs[WINDOW];
  gpuir_index *index = NULL;
  gpuir_pool *pool = NULL;
  gpuir_error err = {0};
  size_t asked = 0, answered = 0;
  if (argc != 2) return fprintf(stderr, "usage: pool INDEX\n"), 2;
  if (gpuir_open(argv[1], NULL, &index, &err) || gpuir_pool_create(index, NULL, &pool, &err))
    return fprintf(stderr, "pool: %s\n", err.msg), gpuir_close(index), 1;
  for (job *j = jobs; fgets(j->text, sizeof j->text, stdin); j = &jobs[asked % WINDOW]) {
    j->text[strcspn(j->text, "\n")] = 0;
    memset(&j->error, 0, sizeof j->error);
    memset(&j->task, 0, sizeof j->task);
    if (!gpuir_query_parse(index, NULL, j->text, strlen(j->text), &j->query, &j->error)) {
      j->task = (gpuir_task){.query = j->query, .k = K, .hits = j->hits, .error = &j->error};
      if (gpuir_pool_submit(pool, &j->task)) return fprintf(stderr, "pool: no thread could be started\n"), 1;
    }
    if (++asked - answered == WINDOW) print(pool, index, &jobs[answered++ % WINDOW]);
  }
  while (answered < asked) print(pool, index, &jobs[answered++ % WINDOW]);
  gpuir_pool_destroy(pool), gpuir_close(index);
  return 0;
}
