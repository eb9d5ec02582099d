/* pisa.c - the binary collections of PISA and, before it, ds2i.
 *
 * 32-bit numbers, the low byte first, in sequences: a count n, then n numbers.
 *
 *   NAME.docs       the sequence [documents], then for each term the sequence of its docIDs, ascending
 *   NAME.freqs      for each term the sequence of its frequencies
 *   NAME.sizes      one sequence, the documents' lengths
 *   NAME.terms      a term a line; its number is that of its list
 *   NAME.documents  a name a line
 *
 * Source: Mallia et al., "PISA: Performant Indexes and Search for Academia", OSIRRC at SIGIR 2019. ds2i's collections
 * have the first three files only: their terms are known by number, so that is what they are called here.
 */
#include "exchange.h"

#include <string.h>

enum { DOCS, FREQS, SIZES, TERMS, NAMES };

/* ---- reading ---------------------------------------------------------------------------------------- */

static uint32_t number_at(const uint8_t *p) {
  uint32_t v;
  memcpy(&v, p, 4);
  return v;
}

static int pisa_fail(const ex_span *s, ex_error *err, const char *cause) {
  (void)ex_fail_at(err, s->file->path, (uint64_t)(s->p - s->file->bytes), "%s", cause);
  return GPUIR_E_FORMAT;
}

static void whole(const ex_file *file, ex_span *s) {
  s->file = file;
  s->p = file->bytes;
  s->end = file->len ? file->bytes + file->len : file->bytes; /* a file that is missing has none */
}

/* Steps over a sequence: its numbers are at *numbers. PISA takes what is left of one that is cut off; an import does
 * not. */
static int get_sequence(ex_span *s, const uint8_t **numbers, uint32_t *n, ex_error *err) {
  uint64_t left = (uint64_t)(s->end - s->p);
  *numbers = s->p;
  *n = 0;
  if (left < 4) return pisa_fail(s, err, "a sequence is cut off");
  *n = number_at(s->p);
  if ((left - 4) / 4 < *n)
    return ex_fail_at(err, s->file->path, (uint64_t)(s->p - s->file->bytes),
        "a sequence of %lu numbers is cut off: %llu bytes follow", (unsigned long)*n, (unsigned long long)(left - 4));
  *numbers = s->p + 4;
  s->p += 4 + 4 * (size_t)*n;
  return 0;
}

/* The next line, without its end; 0 when there is none. */
static int get_line(ex_span *s, const uint8_t **line, size_t *n) {
  const uint8_t *end;
  if (s->p == s->end) return 0;
  end = (const uint8_t *)memchr(s->p, '\n', (size_t)(s->end - s->p));
  *line = s->p;
  *n = (size_t)((end ? end : s->end) - s->p);
  s->p = end ? end + 1 : s->end;
  return 1;
}

/* The number of documents, from both files that tell it. */
static int get_documents(ex_in *in, ex_span *docs, ex_error *err) {
  const uint8_t *numbers;
  uint32_t n;
  ex_span sizes;
  int status = get_sequence(docs, &numbers, &n, err);
  if (status) return status;
  docs->p -= 4 * (size_t)n + 4;
  if (n != 1) return pisa_fail(docs, err, "no collection: it does not begin with the number of documents");
  docs->p += 8;
  in->documents = number_at(numbers);
  whole(&in->files[SIZES], &sizes);
  status = get_sequence(&sizes, &numbers, &n, err);
  if (status) return status;
  if (n != in->documents)
    return ex_fail(err, GPUIR_E_FORMAT, sizes.file->path, "it has %lu lengths, for %llu documents", (unsigned long)n,
        (unsigned long long)in->documents);
  if (n == UINT32_MAX) return ex_fail(err, GPUIR_E_LIMIT, sizes.file->path, "more documents than an index holds");
  return sizes.p < sizes.end ? pisa_fail(&sizes, err, "bytes follow the lengths") : 0;
}

/* Puts the terms' numbers where a file of terms would be: an unnamed file, mapped. */
static int number_terms(ex_in *in, uint64_t n, const char *beside, ex_error *err) {
  ex_file *file = &in->files[TERMS];
  ex_out out;
  int status = ex_out_spill(&out, beside, err);
  for (uint64_t i = 0; i < n && !status; i++) {
    char line[24];
    int len = snprintf(line, sizeof line, "%llu\n", (unsigned long long)i);
    ex_put(&out, line, (size_t)len);
  }
  if (!status) status = ex_out_map(&out, file, err);
  ex_out_close(&out);
  return status;
}

static uint64_t count_lists(ex_span docs) {
  uint64_t n = 0;
  const uint8_t *numbers;
  uint32_t count;
  ex_error ignored;
  while (docs.p < docs.end && !get_sequence(&docs, &numbers, &count, &ignored)) n++;
  return n;
}

static int pisa_scan(ex_in *in, ex_sorter *sorter, ex_error *err) {
  ex_span docs, freqs, terms;
  int status;
  whole(&in->files[DOCS], &docs);
  whole(&in->files[FREQS], &freqs);
  status = get_documents(in, &docs, err);
  if (status) return status;
  if (!in->files[TERMS].bytes) status = number_terms(in, count_lists(docs), sorter->beside, err);
  whole(&in->files[TERMS], &terms);
  while (!status && docs.p < docs.end) {
    const uint8_t *numbers, *term;
    uint32_t n, nfreqs;
    size_t term_len;
    ex_entry entry;
    ex_span at = freqs;
    entry.list = docs.p;
    status = get_sequence(&docs, &numbers, &n, err);
    if (!status) status = get_sequence(&freqs, &numbers, &nfreqs, err);
    if (status) break;
    if (n != nfreqs)
      return ex_fail_at(err, freqs.file->path, (uint64_t)(at.p - freqs.file->bytes),
          "list %llu has %lu frequencies, for %lu docIDs", (unsigned long long)in->lists, (unsigned long)nfreqs,
          (unsigned long)n);
    if (!get_line(&terms, &term, &term_len))
      return ex_fail(err, GPUIR_E_FORMAT, terms.file->path, "it ends behind %llu terms, but there are more lists",
          (unsigned long long)in->lists);
    entry.term = term;
    entry.term_len = term_len > UINT32_MAX ? UINT32_MAX : (uint32_t)term_len;
    in->lists++;
    status = ex_note(in, sorter, &entry, err);
  }
  if (status) return status;
  if (freqs.p < freqs.end) return pisa_fail(&freqs, err, "more lists of frequencies than of docIDs");
  if (terms.p < terms.end) return pisa_fail(&terms, err, "more terms than lists");
  return 0;
}

static int pisa_documents(ex_in *in, gpuir_builder *builder, ex_error *err) {
  const uint8_t *length = in->files[SIZES].bytes + 4, *name = NULL;
  int named = in->files[NAMES].bytes != NULL, status = 0;
  size_t len = 0;
  ex_span names;
  whole(&in->files[NAMES], &names);
  for (uint64_t i = 0; i < in->documents && !status; i++) {
    gpuir_doc_desc doc;
    if (named && !get_line(&names, &name, &len))
      return ex_fail(err, GPUIR_E_FORMAT, names.file->path, "it has %llu names, for %llu documents",
          (unsigned long long)i, (unsigned long long)in->documents);
    memset(&doc, 0, sizeof doc);
    doc.name = (const char *)name;
    doc.name_len = len;
    in->tokens += number_at(length + 4 * i);
    err->file[0] = 0;
    status = gpuir_builder_add_doc(builder, &doc, number_at(length + 4 * i), NULL, 0, &err->e);
  }
  if (!status && named && names.p < names.end) return pisa_fail(&names, err, "more names than documents");
  return status;
}

static int pisa_list(ex_in *in, const uint8_t *list, ex_postings *out, ex_error *err) {
  const ex_file *docs = &in->files[DOCS], *freqs = &in->files[FREQS];
  size_t at = (size_t)(list - docs->bytes) + 4; /* frequencies stand 8 bytes before, without the first sequence */
  const uint8_t *numbers;
  uint32_t n;
  ex_span d, f;
  int status;
  whole(docs, &d);
  whole(freqs, &f);
  d.p = list;
  f.p += at - 12;
  out->df = 0;
  status = get_sequence(&d, &numbers, &n, err);
  if (!status) status = ex_postings_room(out, n, err);
  if (status) return status;
  if ((size_t)(f.end - f.p) / 4 <= n) return pisa_fail(&f, err, "the file has changed"); /* since the scan */
  out->df = n;
  memcpy(out->docids, docs->bytes + at, 4 * (size_t)n);
  memcpy(out->tfs, freqs->bytes + at - 8, 4 * (size_t)n);
  for (uint32_t i = 0; i < n; i++) {
    uint64_t here = at + 4 * (uint64_t)i;
    if (out->docids[i] >= in->documents)
      return ex_fail_at(err, docs->path, here, "a posting of docID %lu, of %llu documents",
          (unsigned long)out->docids[i], (unsigned long long)in->documents);
    if (i && out->docids[i] <= out->docids[i - 1])
      return ex_fail_at(err, docs->path, here, "docID %lu follows %lu", (unsigned long)out->docids[i],
          (unsigned long)out->docids[i - 1]);
    if (!out->tfs[i]) return ex_fail_at(err, freqs->path, here - 8, "a frequency of 0");
  }
  return 0;
}

/* ---- writing ------------------------------------------------------------------------------------------ */

static void put_u32(ex_out *o, uint32_t v) { ex_put(o, &v, 4); }

static int put_line(ex_out *o, const char *name, const char *what, uint64_t number, const char *s, size_t n,
    ex_error *err) {
  if (n && memchr(s, '\n', n))
    return ex_fail(err, GPUIR_E_UNSUPPORTED, name, "%s %llu has a line break, and PISA's files have no way to hold it",
        what, (unsigned long long)number);
  ex_put(o, s, n);
  ex_put(o, "\n", 1);
  return 0;
}

static int write_names(const gpuir_index *index, const char *name, uint64_t n, ex_out *out, ex_error *err) {
  cli_buf doc_name = {NULL, 0, 0};
  int status = 0;
  put_u32(&out[DOCS], 1);
  put_u32(&out[DOCS], (uint32_t)n);
  put_u32(&out[SIZES], (uint32_t)n);
  for (uint32_t i = 0; i < n && !status; i++) {
    gpuir_doc doc;
    status = gpuir_doc_get(index, i, &doc);
    if (status) {
      status = ex_fail(err, status, name, "document %lu cannot be read", (unsigned long)i);
      break;
    }
    put_u32(&out[SIZES], doc.length);
    status = put_line(&out[NAMES], name, "the name of document", i, cli_doc_name(&doc_name, &doc), doc.name_len, err);
    if (!status) status = ex_out_check(&out[NAMES], err);
  }
  cli_buf_free(&doc_name);
  return status ? status : ex_out_check(&out[SIZES], err);
}

static int pisa_write(const gpuir_index *index, const char *name, ex_out *out, ex_error *err) {
  gpuir_index_info info;
  ex_postings list;
  int status = gpuir_index_get_info(index, &info);
  if (status) return ex_fail(err, status, name, "no statistics");
  memset(&list, 0, sizeof list);
  status = write_names(index, name, info.documents, out, err);
  for (uint64_t id = 0; id < info.terms - info.private_terms && !status; id++) {
    gpuir_term_info t;
    status = ex_read_list(index, name, id, &list, &t, err);
    if (!status) status = put_line(&out[TERMS], name, "term", id, t.term, t.term_len, err);
    if (status) break;
    put_u32(&out[DOCS], t.df);
    ex_put(&out[DOCS], list.docids, 4 * (size_t)t.df);
    put_u32(&out[FREQS], t.df);
    ex_put(&out[FREQS], list.tfs, 4 * (size_t)t.df);
    for (int i = DOCS; i <= TERMS && !status; i++) status = ex_out_check(&out[i], err);
  }
  ex_postings_free(&list);
  return status;
}

const ex_format ex_pisa = {"pisa", 5, {".docs", ".freqs", ".sizes", ".terms", ".documents"}, 1 << TERMS | 1 << NAMES,
    pisa_scan, pisa_documents, pisa_list, pisa_write};
