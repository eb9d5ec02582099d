/* text_tokens.c - the tokens of texts, for tests/e2e/text.py: reads lines "t|q SPECIFICATION<tab>TEXT IN HEX", of a
 * text or a query's word, and answers each with a line of tokens: their advance, ':' and their bytes in hex. */
#include "private.h"

enum { MOST = 1 << 22, SPECS = 64 };

static int show(void *sink, const char *token, size_t len, unsigned advance) {
  size_t i;
  (void)sink;
  printf("%u:", advance);
  for (i = 0; i < len; i++) printf("%02x", (unsigned)(unsigned char)token[i]);
  putchar(' ');
  return 0;
}

/* Returns the analyzer of a specification, which is made once. */
static gpuir__analyzer *analyzer_of(const char *spec) {
  static struct {
    char spec[200];
    gpuir__analyzer *an;
  } all[SPECS];
  static size_t n;
  gpuir_error err;
  size_t i;
  for (i = 0; i < n; i++)
    if (!strcmp(all[i].spec, spec)) return all[i].an;
  if (n == SPECS || strlen(spec) >= sizeof all[n].spec ||
      gpuir__analyzer_create(NULL, spec, "the of a don't na\xc3\xafve", NULL, &all[n].an, &err)) {
    fprintf(stderr, "text_tokens: %s\n", n == SPECS ? "too many specifications" : err.msg);
    exit(1);
  }
  (void)strcpy(all[n].spec, spec);
  return all[n++].an;
}

int main(void) {
  static char line[MOST], text[MOST / 2];
  while (fgets(line, sizeof line, stdin)) {
    char *hex = strchr(line, '\t'), *copy;
    gpuir__analyzer *an;
    size_t n = 0;
    unsigned byte;
    uint64_t dropped = 0;
    int status;
    if (!hex || hex < line + 2) return 2;
    *hex++ = 0;
    for (; sscanf(hex, "%2x", &byte) == 1; hex += 2) text[n++] = (char)byte;
    copy = (char *)malloc(n ? n : 1); /* of its size, so that reading behind it is found */
    if (!copy) return 1;
    memcpy(copy, text, n);
    an = analyzer_of(line + 2);
    status = line[0] == 'q' ? gpuir__analyze_query(an, copy, n, show, NULL)
                            : gpuir__analyze(an, copy, n, show, NULL, &dropped);
    free(copy);
    if (line[0] == 't') printf("dropped:%u ", (unsigned)dropped);
    printf("%d\n", status);
    (void)fflush(stdout);
  }
  return 0;
}
