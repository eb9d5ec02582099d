/* tokenizer SOURCE QUERY: searches the lines of a program, with a tokenizer that knows identifiers.
 *
 *     cc -I. examples/tokenizer.c -lm -pthread -o tokenizer && ./tokenizer gpuir.h "builder create"
 *
 * An identifier such as gpuir_openDesc gives the token `gpuir_opendesc` and its parts `gpuir`, `open` and `desc`,
 * so it is found by any of them. The tokenizer's name is stored in the index; whoever opens the index hands the
 * same function to gpuir_open, and queries are taken apart by it too. */
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_lower(char c) { return c >= 'a' && c <= 'z'; }
static int is_upper(char c) { return c >= 'A' && c <= 'Z'; }
static int is_word(char c) { return is_lower(c) || is_upper(c) || (c >= '0' && c <= '9') || c == '_'; }

/* Emits word[from..to) in lower case. Longer ones than the index keeps are cut here. */
static int emit_lower(const char *word, size_t from, size_t to, gpuir_token_fn emit, void *sink) {
  char token[GPUIR_MAX_TERM];
  size_t n = 0;
  for (; from < to && n < sizeof token; from++) {
    char c = word[from];
    token[n++] = is_upper(c) ? (char)(c - 'A' + 'a') : c;
  }
  return emit(sink, token, n);
}

static int identifiers(void *user, const char *text, size_t len, gpuir_token_fn emit, void *sink) {
  (void)user;
  for (size_t i = 0; i < len;) {
    if (!is_word(text[i])) {
      i++;
      continue;
    }
    const char *word = text + i;
    size_t n = 0, parts = 0, start = 0;
    while (i < len && is_word(text[i])) i++, n++;
    for (size_t j = 0; j <= n; j++) {
      int hump = j > 0 && j < n && is_upper(word[j]) && is_lower(word[j - 1]);
      if (j < n && word[j] != '_' && !hump) continue;
      if (j > start && j - start < n) {
        int status = emit_lower(word, start, j, emit, sink);
        if (status) return status;
        parts++;
      }
      start = j < n && word[j] == '_' ? j + 1 : j;
    }
    if (parts != 1) {
      int status = emit_lower(word, 0, n, emit, sink);
      if (status) return status;
    }
  }
  return 0;
}

static int fail(const gpuir_error *err) {
  fprintf(stderr, "tokenizer: %s\n", err->msg);
  return 1;
}

int main(int argc, char **argv) {
  if (argc != 3) return fprintf(stderr, "usage: tokenizer SOURCE QUERY\n"), 2;
  FILE *source = fopen(argv[1], "r");
  if (!source) return perror(argv[1]), 1;

  char path[] = "/tmp/tokenizer-XXXXXX";
  int fd = mkstemp(path); /* the index replaces this file */
  if (fd < 0) return perror(path), 1;
  close(fd);

  gpuir_error err = {0, 0, ""};
  gpuir_builder_desc build = {0};
  gpuir_builder *builder;
  build.path = path;
  build.analyzer.analyzer = "identifiers";
  build.analyzer.tokenize = identifiers;
  build.store_text = 1;
  if (gpuir_builder_create(&build, &builder, &err)) return fail(&err);
  char line[4096];
  int status = 0;
  while (!status && fgets(line, sizeof line, source))
    status = gpuir_builder_add_text(builder, NULL, line, strcspn(line, "\n"), &err);
  if (!status) status = gpuir_builder_write(builder, NULL, &err);
  gpuir_builder_destroy(builder);
  fclose(source);
  if (status) return fail(&err);

  gpuir_open_desc how = {0};
  gpuir_index *index;
  how.tokenize = identifiers;
  if (gpuir_open(path, &how, &index, &err)) return fail(&err);
  remove(path); /* an open index needs its name no more */

  gpuir_query *query;
  gpuir_searcher *searcher;
  gpuir_hit hits[5];
  gpuir_doc doc;
  size_t n = 0;
  if (gpuir_query_parse(index, NULL, argv[2], strlen(argv[2]), &query, &err)) return fail(&err);
  if (gpuir_searcher_create(index, NULL, &searcher, &err)) return fail(&err);
  if (gpuir_search(searcher, query, hits, 5, &n)) gpuir_searcher_error(searcher, &err), fail(&err);
  for (size_t i = 0; i < n && !gpuir_doc_get(index, hits[i].docid, &doc); i++) {
    char text[1000]; /* what fits of a line */
    const size_t len = doc.stored_bytes < sizeof text ? (size_t)doc.stored_bytes : sizeof text;
    if (!gpuir_doc_text(index, hits[i].docid, 0, text, len)) printf("%u: %.*s\n", hits[i].docid + 1, (int)len, text);
  }
  gpuir_searcher_destroy(searcher);
  gpuir_query_destroy(query);
  gpuir_close(index);
  return 0;
}
