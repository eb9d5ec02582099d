/* format.h - the bytes of files: ranked lists, term statistics. */
#ifndef GPUIRFS_FORMAT_H
#define GPUIRFS_FORMAT_H

#include "common.h"

/* Names as they stand in .tsv and .json, escaped as ../tools/common/text.h says, which the command does too. */
void format_tsv_name(buf *b, const char *name, size_t len);
void format_json_name(buf *b, const char *name, size_t len);

typedef struct hit_list {
  const gpuir_hit *hits; /* [n] */
  const uint32_t *plain; /* [n]: the scores of the search, where a second look gave others; or NULL */
  size_t n;
} hit_list;

/* FORMAT_PLAIN: a docID a line; FORMAT_TSV: rank, docID, score and name parted by tabs, and of each field the values;
 * FORMAT_JSON: an array of objects with the same four, and an object of values if there is a field. */
int format_hits(buf *b, const gpuir_index *index, const hit_list *list, const unsigned *fields, size_t nfields,
    int format);

/* One entry of hits/<q>/ or files/<q>/; `name` is an offset in the bytes that format_links made. */
typedef struct hit_link {
  uint32_t docid;
  int source; /* the text stands in a source file alone */
  uint64_t size; /* of the text; SIZE_UNKNOWN: only its source says */
  size_t name;
} hit_link;
#define SIZE_UNKNOWN UINT64_MAX

/* Makes the name of a hit in such a folder, with a NUL, in link[NAME_LIMIT + 1]; *name is room, to be freed. */
int format_link(char *link, const gpuir_doc *doc, uint32_t rank, uint32_t docid, buf *name);
/* The entries of a folder of hits: their NUL-terminated names in *b, the rest in links[0..n). */
int format_links(buf *b, const gpuir_index *index, const gpuir_hit *hits, size_t n, hit_link *links);

/* The first k values of the first column that facets count, 0: all: count, tab and value a line, or with FORMAT_JSON an
 * array of objects. A range is written as a where has it. *left gets how many there are beside them. */
int format_facets(buf *b, const gpuir_facets *facets, int column, unsigned decimals, uint32_t k, int format,
    size_t *left);

/* What is known of a term, one `key<TAB>value` a line. `text` is looked up as it is, and if the index
 * does not have it, as the one token that the analyzer makes of it. ENOENT when there is no such term. */
int format_term(buf *b, const gpuir_index *index, const char *text, size_t len);

#endif
