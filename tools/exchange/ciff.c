/* ciff.c - the Common Index File Format: protocol buffers, each message behind its length.
 *
 *   Header                       1 version  2 num_postings_lists  3 num_docs  4 total_postings_lists  5 total_docs
 *                                6 total_terms_in_collection  7 average_doclength (double)  8 description
 *   PostingsList, so many times  1 term  2 df  3 cf  4 posting: 1 docid (a gap behind the first)  2 tf
 *   DocRecord, so many times     1 docid  2 collection_docid  3 doclength
 *
 * Source: Lin et al., "Supporting Interoperability Between Open-Source Search Engines with the Common Index File
 * Format", SIGIR 2020, and CommonIndexFileFormat.proto. A field that is 0 is left out. Fields may come in any order and
 * unknown ones are skipped, as proto3 has it; of a number given twice the last counts. Where an index knows in which
 * order its documents are, its header has a further field that tells it; other readers skip that.
 */
#include "exchange.h"

#include <string.h>

#define DESCRIPTION_MAX ((size_t)1 << 20)

#define ORDER_FIELD 50000u /* of the header: from a range that is for private use */

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 }; /* wire types */

/* ---- reading protocol buffers -------------------------------------------------------------------- */

static uint64_t offset_of(const ex_span *s) { return (uint64_t)(s->p - s->file->bytes); }

static int fail_here(const ex_span *s, ex_error *err, const char *cause) {
  (void)ex_fail_at(err, s->file->path, offset_of(s), "%s", cause);
  return GPUIR_E_FORMAT;
}

static int get_varint(ex_span *s, uint64_t *out, ex_error *err) {
  uint64_t v = 0;
  const uint8_t *p = s->p;
  *out = 0;
  for (unsigned shift = 0; shift < 70; shift += 7) {
    if (p == s->end) return fail_here(s, err, "a number is cut off");
    uint8_t byte = *p++;
    if (shift == 63 && byte > 1) break;
    v |= (uint64_t)(byte & 127) << shift;
    if (byte < 128) {
      s->p = p;
      *out = v;
      return 0;
    }
  }
  return fail_here(s, err, "a number of more than 64 bits");
}

/* A number that must lie in [0, max]; negative ones are 64-bit complements. */
static int get_number(ex_span *s, const char *what, uint64_t max, uint64_t *out, ex_error *err) {
  ex_span at = *s;
  int status = get_varint(s, out, err);
  if (status || *out <= max) return status;
  if (*out >> 63) return ex_fail_at(err, s->file->path, offset_of(&at), "%s is negative (%lld)", what, (long long)*out);
  return ex_fail_at(err, s->file->path, offset_of(&at), "%s is %llu, more than its type holds", what,
      (unsigned long long)*out);
}

/* The next n bytes as a span of their own. */
static int get_bytes(ex_span *s, const char *what, ex_span *out, ex_error *err) {
  ex_span at = *s;
  uint64_t n;
  int status = get_varint(s, &n, err);
  *out = *s;
  if (status) return status;
  if (n > (uint64_t)(s->end - s->p))
    return ex_fail_at(err, s->file->path, offset_of(&at), "%s has %llu bytes, of which %llu are there", what,
        (unsigned long long)n, (unsigned long long)(s->end - s->p));
  out->p = s->p;
  out->end = s->p += n;
  return 0;
}

/* The next field's number and wire type. */
static int get_tag(ex_span *s, uint32_t *field, unsigned *wire, ex_error *err) {
  ex_span at = *s;
  uint64_t tag;
  int status = get_varint(s, &tag, err);
  if (status) return status;
  *field = (uint32_t)(tag >> 3);
  *wire = (unsigned)(tag & 7);
  if (!*field || tag > UINT32_MAX) return fail_here(&at, err, "not a field of a protocol buffer");
  return 0;
}

/* Skips a field that is unknown here. */
static int skip_field(ex_span *s, unsigned wire, ex_error *err) {
  ex_span bytes;
  uint64_t v;
  size_t n = wire == FIXED64 ? 8 : 4;
  switch (wire) {
  case VARINT: return get_varint(s, &v, err);
  case BYTES: return get_bytes(s, "a field", &bytes, err);
  case FIXED64:
  case FIXED32:
    if ((size_t)(s->end - s->p) < n) return fail_here(s, err, "a field is cut off");
    s->p += n;
    return 0;
  default: return fail_here(s, err, "a field of a type that proto3 does not have");
  }
}

/* Returns whether a field is one that the message declares; if so its wire type must be as declared. */
static int declared(const ex_span *s, uint32_t field, unsigned wire, const char *types, int *is, ex_error *err) {
  *is = field <= strlen(types);
  if (!*is || (unsigned)(types[field - 1] - '0') == wire) return 0;
  return ex_fail_at(err, s->file->path, offset_of(s), "field %u has wire type %u, not %c", (unsigned)field, wire,
      types[field - 1]);
}

/* ---- reading ---------------------------------------------------------------------------------------- */

typedef struct header {
  uint64_t version, lists, docs, all_lists, all_docs, terms;
  double average;
  ex_span description, order;
} header;

static int get_header(ex_span *file, header *h, ex_error *err) {
  static const char *const names[] = {"version", "num_postings_lists", "num_docs", "total_postings_lists", "total_docs",
      "total_terms_in_collection"};
  uint64_t *const numbers[] = {&h->version, &h->lists, &h->docs, &h->all_lists, &h->all_docs, &h->terms};
  ex_span s;
  int status = get_bytes(file, "the header", &s, err);
  while (!status && s.p < s.end) {
    uint32_t field;
    unsigned wire;
    int is = 0;
    status = get_tag(&s, &field, &wire, err);
    if (!status) status = declared(&s, field, wire, "00000012", &is, err);
    if (status) break;
    if (field == ORDER_FIELD && wire == BYTES) status = get_bytes(&s, "order", &h->order, err);
    else if (!is) status = skip_field(&s, wire, err);
    else if (field <= 6)
      status = get_number(&s, names[field - 1], field == 6 ? INT64_MAX : INT32_MAX, numbers[field - 1], err);
    else if (field == 8) status = get_bytes(&s, "description", &h->description, err);
    else if (s.end - s.p < 8) status = fail_here(&s, err, "average_doclength is cut off");
    else {
      memcpy(&h->average, s.p, 8);
      s.p += 8;
    }
  }
  return status;
}

/* Finds the first term field of a list's message. */
static int find_term(ex_span s, ex_entry *entry, ex_error *err) {
  int status = 0;
  entry->term_len = 0;
  while (!status && s.p < s.end) {
    ex_span term;
    uint32_t field;
    unsigned wire;
    int is;
    status = get_tag(&s, &field, &wire, err);
    if (!status) status = declared(&s, field, wire, "2002", &is, err);
    if (status) break;
    if (field != 1) {
      status = skip_field(&s, wire, err);
      continue;
    }
    status = get_bytes(&s, "term", &term, err);
    if (status) break;
    entry->term = term.p;
    entry->term_len = term.end - term.p > UINT32_MAX ? UINT32_MAX : (uint32_t)(term.end - term.p);
    break;
  }
  return status;
}

/* The description is one line of text in an index. */
static int take_description(ex_in *in, const ex_span *text, ex_error *err) {
  size_t n = (size_t)(text->end - text->p);
  if (!n) return 0;
  if (n > DESCRIPTION_MAX) return fail_here(text, err, "a description of more than 1 MiB");
  in->description = cli_copy((const char *)text->p, n);
  for (size_t i = 0; i < n; i++)
    if ((unsigned char)in->description[i] < 32) in->description[i] = ' ';
  return 0;
}

/* The order is a name; what is longer than one is somebody else's field. */
static void take_order(ex_in *in, const ex_span *text) {
  size_t n = (size_t)(text->end - text->p);
  if (!n || n >= sizeof in->order) return;
  memcpy(in->order, text->p, n);
  for (size_t i = 0; i < n; i++)
    if ((unsigned char)in->order[i] < 32) in->order[i] = ' ';
}

static int ciff_scan(ex_in *in, ex_sorter *sorter, ex_error *err) {
  const ex_file *file = &in->files[0];
  ex_span s;
  header h;
  memset(&h, 0, sizeof h);
  s.file = file;
  s.p = file->bytes;
  s.end = file->bytes + file->len;
  if (!file->len) return fail_here(&s, err, "an empty file, not CIFF");
  int status = get_header(&s, &h, err);
  if (status) return status;
  if (h.version != 1)
    return ex_fail(err, GPUIR_E_VERSION, file->path, "not CIFF of version 1: its header says version %llu",
        (unsigned long long)h.version);
  in->documents = h.docs;
  in->lists = h.lists;
  in->all_documents = h.all_docs;
  in->all_lists = h.all_lists;
  in->average = h.average;
  take_order(in, &h.order);
  status = take_description(in, &h.description, err);
  for (uint64_t i = 0; i < h.lists && !status; i++) {
    ex_entry entry;
    ex_span message;
    if (s.p == s.end)
      return ex_fail_at(err, file->path, file->len, "the file ends behind list %llu of %llu", (unsigned long long)i,
          (unsigned long long)h.lists);
    entry.list = s.p;
    status = get_bytes(&s, "a list", &message, err);
    if (!status) status = find_term(message, &entry, err);
    if (!status) status = ex_note(in, sorter, &entry, err);
  }
  in->docs = s;
  return status;
}

static int get_posting(ex_span s, uint64_t *gap, uint64_t *tf, ex_error *err) {
  int status = 0;
  *gap = *tf = 0;
  while (!status && s.p < s.end) {
    uint32_t field;
    unsigned wire;
    int is = 0;
    status = get_tag(&s, &field, &wire, err);
    if (!status) status = declared(&s, field, wire, "00", &is, err);
    if (status) break;
    status = !is     ? skip_field(&s, wire, err)
        : field == 1 ? get_number(&s, "docid", INT32_MAX, gap, err)
                     : get_number(&s, "tf", INT32_MAX, tf, err);
  }
  return status;
}

/* The posting of a message is added to the list. */
static int add_posting(const ex_in *in, const ex_span *message, ex_postings *out, ex_error *err) {
  uint64_t gap, tf, docid;
  int status = get_posting(*message, &gap, &tf, err);
  if (status) return status;
  docid = gap + (out->df ? out->docids[out->df - 1] : 0);
  if (out->df && !gap) return fail_here(message, err, "a posting repeats the docID before it");
  if (docid >= in->documents)
    return ex_fail_at(err, message->file->path, offset_of(message), "a posting of docID %llu, of %llu documents",
        (unsigned long long)docid, (unsigned long long)in->documents);
  if (!tf) return fail_here(message, err, "a posting with tf 0");
  status = ex_postings_room(out, (size_t)out->df + 1, err);
  if (status) return status;
  out->docids[out->df] = (uint32_t)docid;
  out->tfs[out->df++] = (uint32_t)tf;
  return 0;
}

static int ciff_list(ex_in *in, const uint8_t *list, ex_postings *out, ex_error *err) {
  ex_span file, s, part;
  uint64_t df = 0, cf = 0, sum = 0;
  int status, terms = 0;
  file.file = &in->files[0];
  file.p = list;
  file.end = file.file->bytes + file.file->len;
  out->df = 0;
  status = get_bytes(&file, "a list", &s, err);
  file.p = list;
  while (!status && s.p < s.end) {
    uint32_t field;
    unsigned wire;
    int is = 0;
    status = get_tag(&s, &field, &wire, err);
    if (!status) status = declared(&s, field, wire, "2002", &is, err);
    if (status) break;
    if (!is) {
      status = skip_field(&s, wire, err);
    } else if (field == 2 || field == 3) {
      status = get_number(&s, field == 2 ? "df" : "cf", INT64_MAX, field == 2 ? &df : &cf, err);
    } else if (field == 1) {
      if (terms++) return fail_here(&s, err, "a list with two terms");
      status = get_bytes(&s, "term", &part, err);
    } else {
      status = get_bytes(&s, "a posting", &part, err);
      if (!status) status = add_posting(in, &part, out, err);
      if (!status) sum += out->tfs[out->df - 1];
    }
  }
  if (status) return status;
  if (df != out->df)
    return ex_fail_at(err, file.file->path, offset_of(&file), "a list of %lu postings says that df is %llu",
        (unsigned long)out->df, (unsigned long long)df);
  in->wrong_cf += cf != sum;
  return 0;
}

static int get_document(ex_span s, uint64_t *docid, ex_span *name, uint64_t *length, ex_error *err) {
  int status = 0;
  *docid = *length = 0;
  memset(name, 0, sizeof *name);
  while (!status && s.p < s.end) {
    uint32_t field;
    unsigned wire;
    int is = 0;
    status = get_tag(&s, &field, &wire, err);
    if (!status) status = declared(&s, field, wire, "020", &is, err);
    if (status) break;
    status = !is     ? skip_field(&s, wire, err)
        : field == 1 ? get_number(&s, "docid", INT32_MAX, docid, err)
        : field == 2 ? get_bytes(&s, "collection_docid", name, err)
                     : get_number(&s, "doclength", INT32_MAX, length, err);
  }
  return status;
}

static int ciff_documents(ex_in *in, gpuir_builder *builder, ex_error *err) {
  ex_span s = in->docs;
  int status = 0;
  for (uint64_t i = 0; i < in->documents && !status; i++) {
    ex_span message, name, at = s;
    gpuir_doc_desc doc;
    uint64_t docid, length;
    if (s.p == s.end)
      return ex_fail_at(err, s.file->path, s.file->len, "the file ends behind document %llu of %llu",
          (unsigned long long)i, (unsigned long long)in->documents);
    status = get_bytes(&s, "a document", &message, err);
    if (!status) status = get_document(message, &docid, &name, &length, err);
    if (status) break;
    if (docid != i)
      return ex_fail_at(err, s.file->path, offset_of(&at), "document %llu says that its docID is %llu",
          (unsigned long long)i, (unsigned long long)docid);
    memset(&doc, 0, sizeof doc);
    doc.name = (const char *)name.p;
    doc.name_len = name.p ? (size_t)(name.end - name.p) : 0;
    in->tokens += length;
    err->file[0] = 0;
    status = gpuir_builder_add_doc(builder, &doc, (uint32_t)length, NULL, 0, &err->e);
  }
  if (!status && s.p < s.end)
    return ex_fail_at(err, s.file->path, offset_of(&s), "%llu bytes follow the last document",
        (unsigned long long)(s.end - s.p));
  return status;
}

/* ---- writing ------------------------------------------------------------------------------------------ */

static size_t varint_size(uint64_t v) {
  size_t n = 1;
  while (v >>= 7) n++;
  return n;
}

static uint8_t *put_varint(uint8_t *p, uint64_t v) {
  for (; v > 127; v >>= 7) *p++ = (uint8_t)(v | 128);
  *p++ = (uint8_t)v;
  return p;
}

/* Numbers that are 0 are left out, as proto3 has it. */
static size_t number_size(uint64_t v) { return v ? 1 + varint_size(v) : 0; }

static uint8_t *put_number(uint8_t *p, unsigned field, uint64_t v) {
  if (!v) return p;
  *p++ = (uint8_t)(field << 3 | VARINT);
  return put_varint(p, v);
}

static size_t text_size(unsigned field, size_t n) { return n ? varint_size(field << 3) + varint_size(n) + n : 0; }

static void put_text(ex_out *o, unsigned field, const char *s, size_t n) {
  uint8_t head[16];
  if (!n) return;
  ex_put(o, head, (size_t)(put_varint(put_varint(head, field << 3 | BYTES), n) - head));
  ex_put(o, s, n);
  o->not_utf8 += !cli_is_utf8(s, n);
}

/* Returns how many lists are written: those of words. Others know nothing of what the analyzer makes beside them. */
static uint64_t nlists(const gpuir_index_info *info) { return info->terms - info->private_terms; }

static void write_header(ex_out *o, const gpuir_index_info *info) {
  size_t description = strlen(info->description), n;
  size_t order = strcmp(info->order, "unknown") ? strlen(info->order) : 0;
  uint8_t head[10], body[96], *p = body;
  p = put_number(p, 1, 1);
  p = put_number(p, 2, nlists(info));
  p = put_number(p, 3, info->documents);
  p = put_number(p, 4, nlists(info));
  p = put_number(p, 5, info->documents);
  p = put_number(p, 6, info->tokens);
  if (info->average_length > 0) {
    *p++ = (uint8_t)(7 << 3 | FIXED64);
    memcpy(p, &info->average_length, 8);
    p += 8;
  }
  n = (size_t)(p - body);
  ex_put(o, head, (size_t)(put_varint(head, n + text_size(8, description) + text_size(ORDER_FIELD, order)) - head));
  ex_put(o, body, n);
  put_text(o, 8, info->description, description);
  put_text(o, ORDER_FIELD, info->order, order);
}

static void write_list(ex_out *o, const gpuir_term_info *t, const ex_postings *list) {
  uint64_t size = text_size(1, t->term_len) + number_size(t->df) + number_size(t->cf), cf = t->cf;
  uint8_t head[32], *p;
  uint32_t before = 0;
  for (uint32_t i = 0; i < list->df; i++) {
    size += 2 + number_size(list->docids[i] - before) + number_size(list->tfs[i]);
    before = list->docids[i];
  }
  ex_put(o, head, (size_t)(put_varint(head, size) - head));
  put_text(o, 1, t->term, t->term_len);
  p = put_number(head, 2, t->df);
  p = put_number(p, 3, cf);
  ex_put(o, head, (size_t)(p - head));
  before = 0;
  for (uint32_t i = 0; i < list->df; i++) {
    p = put_number(head + 2, 1, list->docids[i] - before);
    p = put_number(p, 2, list->tfs[i]);
    head[0] = (uint8_t)(4 << 3 | BYTES);
    head[1] = (uint8_t)(p - head - 2);
    ex_put(o, head, (size_t)(p - head));
    before = list->docids[i];
  }
}

/* CIFF counts in 32-bit numbers with a sign. */
static int too_large(const char *name, const char *what, uint64_t n, ex_error *err) {
  if (n <= INT32_MAX) return 0;
  return ex_fail(err, GPUIR_E_LIMIT, name, "%s is %llu; CIFF holds at most %ld", what, (unsigned long long)n,
      (long)INT32_MAX);
}

static int write_lists(const gpuir_index *index, const char *name, const gpuir_index_info *info, ex_out *o,
    ex_error *err) {
  ex_postings list;
  int status = 0;
  memset(&list, 0, sizeof list);
  for (uint64_t id = 0; id < nlists(info) && !status; id++) {
    gpuir_term_info t;
    status = ex_read_list(index, name, id, &list, &t, err);
    for (uint32_t i = 0; i < list.df && !status; i++) status = too_large(name, "a tf", list.tfs[i], err);
    if (status) break;
    write_list(o, &t, &list);
    status = ex_out_check(o, err);
  }
  ex_postings_free(&list);
  return status;
}

static int write_documents(const gpuir_index *index, const char *name, const gpuir_index_info *info, ex_out *o,
    ex_error *err) {
  cli_buf doc_name = {NULL, 0, 0};
  int status = 0;
  for (uint32_t i = 0; i < info->documents && !status; i++) {
    uint8_t head[16], *p;
    gpuir_doc doc;
    status = gpuir_doc_get(index, i, &doc);
    if (status) status = ex_fail(err, status, name, "document %lu cannot be read", (unsigned long)i);
    if (!status) status = too_large(name, "a document's length", doc.length, err);
    if (status) break;
    p = put_varint(head, number_size(i) + text_size(2, doc.name_len) + number_size(doc.length));
    p = put_number(p, 1, i);
    ex_put(o, head, (size_t)(p - head));
    put_text(o, 2, cli_doc_name(&doc_name, &doc), doc.name_len);
    p = put_number(head, 3, doc.length);
    ex_put(o, head, (size_t)(p - head));
    status = ex_out_check(o, err);
  }
  cli_buf_free(&doc_name);
  return status;
}

static int ciff_write(const gpuir_index *index, const char *name, ex_out *out, ex_error *err) {
  gpuir_index_info info;
  int status = gpuir_index_get_info(index, &info);
  if (status) return ex_fail(err, status, name, "no statistics");
  status = too_large(name, "the number of documents", info.documents, err);
  if (!status) status = too_large(name, "the number of terms", nlists(&info), err);
  if (status) return status;
  write_header(out, &info);
  status = write_lists(index, name, &info, out, err);
  return status ? status : write_documents(index, name, &info, out, err);
}

const ex_format ex_ciff = {"ciff", 1, {"", "", "", "", ""}, 0, ciff_scan, ciff_documents, ciff_list, ciff_write};
