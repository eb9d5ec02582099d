/* format.c - the bytes of files. */
#include "format.h"

#include "../tools/common/column_text.h"
#include "../tools/common/text.h"
#include "path.h"

static void put_text(void *b, const char *bytes, size_t n) { buf_put((buf *)b, bytes, n); }

void format_tsv_name(buf *b, const char *name, size_t len) { text_write(put_text, b, TEXT_TSV, name, len); }
void format_json_name(buf *b, const char *name, size_t len) { text_write(put_text, b, TEXT_JSON, name, len); }

/* Replaces what *name holds by the name of a document. */
static int copy_name(const gpuir_doc *doc, buf *name) {
  name->len = 0;
  buf_put(name, doc->name_piece[0], doc->name_piece_len[0]);
  buf_put(name, doc->name_piece[1], doc->name_piece_len[1]);
  return name->error;
}

static int take_name(const gpuir_index *index, uint32_t docid, buf *name) {
  gpuir_doc doc;
  return gpuir_doc_get(index, docid, &doc) == GPUIR_OK ? copy_name(&doc, name) : EIO;
}

/* Writes a field's values as a field of TSV: `text` is room. */
static void put_values(buf *b, const gpuir_index *index, uint32_t docid, unsigned field, buf *text) {
  text->len = 0;
  column_values(put_text, text, index, docid, field);
  buf_put(b, "\t", 1);
  if (text->error) b->error = text->error;
  else format_tsv_name(b, text->data, text->len);
}

/* Writes hit number i, whose name is *name, which is room then. */
static void put_hit(buf *b, const gpuir_index *index, const hit_list *list, size_t i, const unsigned *fields,
    size_t nfields, int format, buf *name) {
  const gpuir_hit hit = list->hits[i];
  size_t j;
  if (format == FORMAT_TSV) {
    buf_number(b, i + 1);
    buf_put(b, "\t", 1);
    buf_number(b, hit.docid);
    buf_printf(b, "\t%.7f\t", gpuir_score(hit));
    format_tsv_name(b, name->data, name->len);
    for (j = 0; j < nfields; j++) put_values(b, index, hit.docid, fields[j], name);
    buf_put(b, "\n", 1);
    return;
  }
  buf_puts(b, "{\"rank\": ");
  buf_number(b, i + 1);
  buf_puts(b, ", \"docid\": ");
  buf_number(b, hit.docid);
  buf_printf(b, ", \"score\": %.7f, ", gpuir_score(hit));
  if (list->plain) buf_printf(b, "\"bm25\": %.7f, ", list->plain[i] / GPUIR_SCORE_ONE);
  buf_puts(b, "\"name\": \"");
  format_json_name(b, name->data, name->len);
  buf_puts(b, "\"");
  if (nfields) {
    buf_puts(b, ", \"values\": {");
    column_members(put_text, b, index, hit.docid, fields, nfields);
    buf_puts(b, "}");
  }
  buf_puts(b, i + 1 < list->n ? "},\n" : "}\n]\n");
}

int format_hits(buf *b, const gpuir_index *index, const hit_list *list, const unsigned *fields, size_t nfields,
    int format) {
  buf name = {.max = SIZE_MAX};
  size_t i;
  int rc = 0;
  if (format == FORMAT_JSON) buf_puts(b, list->n ? "[\n" : "[]\n");
  for (i = 0; i < list->n && !b->error; i++) {
    if (format == FORMAT_PLAIN) {
      buf_number(b, list->hits[i].docid);
      buf_put(b, "\n", 1);
      continue;
    }
    rc = take_name(index, list->hits[i].docid, &name);
    if (rc) break;
    put_hit(b, index, list, i, fields, nfields, format, &name);
  }
  buf_free(&name);
  return rc ? rc : b->error;
}

static uint64_t text_size(const gpuir_doc *doc) {
  if (doc->stored) return doc->stored_bytes;
  if (!doc->source_len) return 0;
  return !doc->form && (doc->source_offset || doc->source_bytes) ? doc->source_bytes : SIZE_UNKNOWN;
}

int format_link(char *link, const gpuir_doc *doc, uint32_t rank, uint32_t docid, buf *name) {
  const int rc = copy_name(doc, name);
  if (rc == 0) (void)name_link(link, rank, docid, name->data, name->len);
  return rc;
}

int format_links(buf *b, const gpuir_index *index, const gpuir_hit *hits, size_t n, hit_link *links) {
  buf name = {.max = SIZE_MAX};
  size_t i;
  int rc = 0;
  for (i = 0; i < n && !b->error; i++) {
    char link[NAME_LIMIT + 1];
    gpuir_doc doc;
    rc = gpuir_doc_get(index, hits[i].docid, &doc) == GPUIR_OK ? 0 : EIO;
    if (rc == 0) rc = format_link(link, &doc, (uint32_t)i + 1, hits[i].docid, &name);
    if (rc) break;
    links[i].docid = hits[i].docid;
    links[i].source = !doc.stored && doc.source_len;
    links[i].size = text_size(&doc);
    links[i].name = b->len;
    buf_put(b, link, strlen(link) + 1);
  }
  buf_free(&name);
  return rc ? rc : b->error;
}

typedef struct one_token {
  char text[GPUIR_MAX_TERM];
  size_t len;
  unsigned count;
} one_token;

static int take_token(void *sink, const char *token, size_t len) {
  one_token *t = sink;
  if (t->count++ == 0 && len <= sizeof t->text) {
    memcpy(t->text, token, len);
    t->len = len;
  }
  return 0;
}

/* Finds a term as it is given, or else as the one token that the analyzer makes of it, and copies it to *token. */
static int find_term(const gpuir_index *index, const char *text, size_t len, one_token *token) {
  uint32_t df;
  int rc = gpuir_term_count(index, text, len, &df, NULL);
  token->len = 0;
  token->count = 0;
  if (rc == GPUIR_OK && len <= sizeof token->text) return take_token(token, text, len);
  if (rc != GPUIR_E_NOT_FOUND && rc != GPUIR_E_ARGUMENT) return EIO;
  if (gpuir_analyze(index, text, len, take_token, token, NULL) != GPUIR_OK || token->count != 1) return ENOENT;
  rc = gpuir_term_count(index, token->text, token->len, &df, NULL);
  return rc == GPUIR_OK ? 0 : rc == GPUIR_E_NOT_FOUND || rc == GPUIR_E_ARGUMENT ? ENOENT : EIO;
}

static void put_bytes(buf *b, const gpuir_term_info *info) {
  buf_printf(b, "docids_bytes\t%llu\nfreqs_bytes\t%llu\ndirectory_bytes\t%llu\nbytes\t%llu\n",
      (unsigned long long)info->docids_bytes, (unsigned long long)info->freqs_bytes,
      (unsigned long long)info->directory_bytes,
      (unsigned long long)(info->docids_bytes + info->freqs_bytes + info->directory_bytes));
}

/* Describes a term of an index of several segments, or with deleted documents, which count in the lists alone. */
static int put_spread(buf *b, const gpuir_index *index, const one_token *term) {
  const gpuir_index *segment;
  gpuir_index_info all;
  gpuir_term_info info, sum;
  uint64_t id, cf;
  uint32_t df;
  size_t i, lists = 0;
  memset(&sum, 0, sizeof sum);
  if (gpuir_index_get_info(index, &all) != GPUIR_OK ||
      gpuir_term_count(index, term->text, term->len, &df, &cf) != GPUIR_OK)
    return EIO;
  for (i = 0; (segment = gpuir_index_segment(index, i, NULL)) != NULL; i++) {
    if (gpuir_term_find(segment, term->text, term->len, &id) != GPUIR_OK ||
        gpuir_term_get_info(segment, id, &info) != GPUIR_OK)
      continue;
    lists++;
    sum.blocks += info.blocks;
    sum.docids_bytes += info.docids_bytes;
    sum.freqs_bytes += info.freqs_bytes;
    sum.directory_bytes += info.directory_bytes;
  }
  buf_printf(b, "\ndf\t%lu\ncf\t%llu\nidf\t%.6f\n", (unsigned long)df, (unsigned long long)cf,
      (double)gpuir_idf(all.documents, df));
  buf_printf(b, "lists\t%lu\nblocks\t%lu\n", (unsigned long)lists, (unsigned long)sum.blocks);
  put_bytes(b, &sum);
  return b->error;
}

int format_term(buf *b, const gpuir_index *index, const char *text, size_t len) {
  gpuir_term_info info;
  one_token term;
  uint64_t id;
  int rc = find_term(index, text, len, &term);
  if (rc) return rc;
  buf_puts(b, "term\t");
  format_tsv_name(b, term.text, term.len);
  rc = gpuir_term_find(index, term.text, term.len, &id);
  if (rc == GPUIR_E_UNSUPPORTED) return put_spread(b, index, &term);
  if (rc != GPUIR_OK || gpuir_term_get_info(index, id, &info) != GPUIR_OK) return EIO;
  buf_printf(b, "\nid\t%llu\ndf\t%lu\ncf\t%llu\nidf\t%.6f\n", (unsigned long long)info.id, (unsigned long)info.df,
      (unsigned long long)info.cf, (double)info.idf);
  buf_printf(b, "codec\t%s\nfreq_codec\t%s\nblocks\t%lu\n", info.codec, info.freq_codec, (unsigned long)info.blocks);
  put_bytes(b, &info);
  return b->error;
}

/* Writes what a facet counts. */
static void put_facet(buf *b, int column, unsigned decimals, int format, const gpuir_facet *f) {
  char range[2 * COLUMN_TEXT];
  if (f->value && format == FORMAT_JSON) format_json_name(b, f->value, f->len);
  else if (f->value) format_tsv_name(b, f->value, f->len);
  if (f->value) return;
  column_range(range, column, decimals, f);
  buf_puts(b, range);
}

int format_facets(buf *b, const gpuir_facets *facets, int column, unsigned decimals, uint32_t k, int format,
    size_t *left) {
  gpuir_facet f;
  size_t i, n = 0;
  if (format == FORMAT_JSON) buf_puts(b, "[");
  for (i = 0; gpuir_facets_get(facets, 0, i, &f) == GPUIR_OK; i++) {
    if (k && i >= k) continue;
    if (format == FORMAT_JSON) {
      buf_puts(b, n++ ? ",\n{\"value\": \"" : "\n{\"value\": \"");
      put_facet(b, column, decimals, format, &f);
      buf_puts(b, "\", \"count\": ");
      buf_number(b, f.count);
      buf_puts(b, "}");
    } else {
      buf_number(b, f.count);
      buf_puts(b, "\t");
      put_facet(b, column, decimals, format, &f);
      buf_puts(b, "\n");
    }
  }
  if (format == FORMAT_JSON) buf_puts(b, n ? "\n]\n" : "]\n");
  *left = k && i > k ? i - k : 0;
  return b->error;
}
