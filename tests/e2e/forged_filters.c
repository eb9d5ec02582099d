/* forged_filters.c - makes an index whose table of filters is what anybody may write: a command line.
 *
 * usage: forged_filters INDEX SOURCE FILTERS TEXT: one document, the text of the file SOURCE. */
#define GPUIR_STATIC
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"

int main(int argc, char **argv) {
  gpuir_builder_desc desc;
  gpuir_doc_desc doc;
  gpuir_builder *b = NULL;
  gpuir_error err;
  int r;
  if (argc != 5) return 2;
  memset(&desc, 0, sizeof desc);
  memset(&doc, 0, sizeof doc);
  memset(&err, 0, sizeof err);
  desc.path = argv[1];
  desc.filters = argv[3];
  doc.name = doc.source = argv[2];
  doc.name_len = doc.source_len = strlen(argv[2]);
  r = gpuir_builder_create(&desc, &b, &err);
  if (!r) r = gpuir_builder_add_text(b, &doc, argv[4], strlen(argv[4]), &err);
  if (!r) r = gpuir_builder_write(b, NULL, &err);
  gpuir_builder_destroy(b);
  if (r) fprintf(stderr, "%s\n", err.msg);
  return r ? 1 : 0;
}
