/* segments FOLDER SEGMENTS DOCUMENTS PERCENT: makes a live index of the files that standard input names, one a line,
 * every 25 lines of one a document: about DOCUMENTS / SEGMENTS documents a segment, of which every 100 / PERCENT-th is
 * deleted in the end. Nothing is merged. Part of segments.sh, which defines GPUIR_IMPLEMENTATION. */
#include "gpuir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES = 25 };

static gpuir_live *live;
static gpuir_error err;

static void check(int status) {
  if (!status) return;
  (void)fprintf(stderr, "segments: %s\n", err.msg);
  exit(1);
}

/* Reads a file; NULL if it cannot be read, or holds a NUL. */
static char *read_file(const char *path, size_t *n) {
  FILE *f = fopen(path, "rb");
  char *text = NULL;
  long size;
  if (!f) return NULL;
  if (!fseek(f, 0, SEEK_END) && (size = ftell(f)) > 0 && !fseek(f, 0, SEEK_SET)) {
    text = (char *)malloc((size_t)size);
    *n = text ? fread(text, 1, (size_t)size, f) : 0;
    if (text && memchr(text, 0, *n)) {
      free(text);
      text = NULL;
    }
  }
  (void)fclose(f);
  return text;
}

/* Adds the documents of a file; returns how many. */
static unsigned long add_file(const char *path, const char *text, size_t n) {
  const char *p = text, *const end = text + n;
  unsigned long added = 0;
  while (p < end) {
    const char *q = p;
    char name[4200];
    gpuir_doc_desc d;
    unsigned i;
    for (i = 0; i < LINES && q < end; i++) {
      const char *line_end = (const char *)memchr(q, '\n', (size_t)(end - q));
      q = line_end ? line_end + 1 : end;
    }
    memset(&d, 0, sizeof d);
    d.name = name;
    d.name_len = (size_t)snprintf(name, sizeof name, "%s:%lu", path, added++ * LINES + 1);
    check(gpuir_live_add(live, &d, p, (size_t)(q - p), &err));
    p = q;
  }
  return added;
}

/* Deletes every so-many-th document of the committed index. */
static void delete_some(const char *folder, unsigned every) {
  gpuir_index *ix;
  gpuir_doc doc;
  uint32_t d;
  check(gpuir_open(folder, NULL, &ix, &err));
  for (d = 0; !gpuir_doc_get(ix, d, &doc); d += every) {
    char name[4200];
    uint64_t n;
    (void)gpuir_doc_name(&doc, name, sizeof name);
    check(gpuir_live_delete(live, GPUIR_BY_NAME, name, doc.name_len, &n, &err));
  }
  gpuir_close(ix);
}

int main(int argc, char **argv) {
  gpuir_live_desc d;
  char path[4096];
  unsigned long documents = 0, segments = 0, wanted, most;
  if (argc != 5) {
    (void)fprintf(stderr, "usage: segments FOLDER SEGMENTS DOCUMENTS PERCENT <NAMES\n");
    return 2;
  }
  wanted = strtoul(argv[2], NULL, 10);
  most = strtoul(argv[3], NULL, 10);
  memset(&d, 0, sizeof d);
  d.settings.path = argv[1];
  d.settings.analyzer.analyzer = "ascii";
  d.settings.memory = (uint64_t)512 << 20;
  d.create = 1;
  check(gpuir_live_open(&d, &live, &err));
  while (fgets(path, sizeof path, stdin)) {
    size_t n;
    char *text;
    path[strcspn(path, "\n")] = 0;
    if (!(text = read_file(path, &n))) continue;
    documents += add_file(path, text, n);
    free(text);
    if (segments + 1 < wanted && documents >= most / wanted * (segments + 1)) {
      check(gpuir_live_commit(live, &err));
      segments++;
    }
  }
  check(gpuir_live_commit(live, &err));
  delete_some(argv[1], (unsigned)(100 / strtoul(argv[4], NULL, 10)));
  check(gpuir_live_commit(live, &err));
  gpuir_live_close(live);
  return 0;
}
