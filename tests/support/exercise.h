/* exercise.h - calls everything that reads an index, on an index that may be damaged
 *
 * Nothing is expected of the answers but that they stay in bounds and end; include after gpuir.h.
 * A broken promise is reported with its line and aborts. */
#ifndef EXERCISE_H
#define EXERCISE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXERCISE_CHECK(x) ((x) ? (void)0 : exercise_failed(#x, __LINE__))

static void exercise_failed(const char *what, int line) {
  (void)fprintf(stderr, "exercise.h:%d: not so: %s\n", line, what);
  abort();
}

static uint64_t exercise_sum; /* keeps the reads from being dropped */

/* A program that reads many files may read every exercise_parts-th document, list, query and k of each, from
 * exercise_part (< exercise_parts) on; all of them unless it says so. What is read depends on these two alone. */
static unsigned exercise_part, exercise_parts = 1;

static void exercise_bytes(const char *p, size_t n) {
  size_t i;
  uint64_t sum = 0;
  EXERCISE_CHECK(p || !n);
  for (i = 0; i < n; i++) sum = sum * 31 + (unsigned char)p[i];
  exercise_sum += sum;
}

/* Reads a document's stored text, or 1 MiB of it, from a place in it on. */
static void exercise_stored(const gpuir_index *ix, uint32_t docid, const gpuir_doc *doc) {
  const uint64_t from = doc->stored_bytes / 3, left = doc->stored_bytes - from;
  const size_t n = left < 1u << 20 ? (size_t)left : 1u << 20;
  char *text = (char *)malloc(n + 1);
  int status;
  if (!text) return;
  status = gpuir_doc_text(ix, docid, from, text, n);
  EXERCISE_CHECK(status == (doc->stored ? GPUIR_OK : GPUIR_E_NOT_FOUND) || (doc->stored && status == GPUIR_E_FORMAT));
  if (!status) exercise_bytes(text, n);
  if (doc->stored) EXERCISE_CHECK(gpuir_doc_text(ix, docid, from, text, (size_t)left + 1) == GPUIR_E_ARGUMENT);
  free(text);
}

static void exercise_documents(const gpuir_index *ix, const gpuir_index_info *info) {
  uint64_t d, gone = 0;
  gpuir_doc doc;
  for (d = exercise_part; d < info->docids; d += exercise_parts) {
    int status = gpuir_doc_get(ix, (uint32_t)d, &doc);
    EXERCISE_CHECK(status == GPUIR_OK || status == GPUIR_E_FORMAT || status == GPUIR_E_NOT_FOUND);
    gone += status == GPUIR_E_NOT_FOUND;
    if (status) continue;
    exercise_bytes(doc.name_piece[0], doc.name_piece_len[0]);
    exercise_bytes(doc.name_piece[1], doc.name_piece_len[1]);
    EXERCISE_CHECK(doc.name_len == doc.name_piece_len[0] + doc.name_piece_len[1]);
    exercise_bytes(doc.source, doc.source_len);
    exercise_bytes(doc.text, doc.text_len);
    exercise_stored(ix, (uint32_t)d, &doc);
  }
  EXERCISE_CHECK(gone <= info->docids - info->documents);
  if (info->docids < UINT32_MAX) EXERCISE_CHECK(gpuir_doc_get(ix, (uint32_t)info->docids, &doc) == GPUIR_E_NOT_FOUND);
}

/* Reads the first values of every document. */
static void exercise_values(const gpuir_index *ix, const gpuir_index_info *info) {
  static char room[GPUIR_MAX_VALUE + 1];
  gpuir_value v;
  gpuir_field f;
  uint64_t d;
  unsigned field;
  size_t i;
  for (field = 0; !gpuir_field_get(ix, field, &f); field++) {
    exercise_bytes(f.name, strlen(f.name));
    exercise_bytes(f.member, strlen(f.member));
    for (d = exercise_part; d < info->docids; d += exercise_parts)
      for (i = 0; i < 5 && !gpuir_doc_value(ix, (uint32_t)d, field, i, &v, room); i++) {
        EXERCISE_CHECK(v.field == field && v.len <= GPUIR_MAX_VALUE && (v.text == room || !v.text));
        exercise_bytes(v.text ? v.text : "", v.len);
      }
  }
}

/* Counts by a where on each field: those who pass and those who do not are all. */
static void exercise_wheres(gpuir_index *ix, const gpuir_index_info *info) {
  static const char *const items[] = {"..", "m..", "..m", "1..", "..2000", "2001..", "src"};
  gpuir_query_desc qd;
  gpuir_field f;
  gpuir_searcher *s;
  gpuir_error err;
  unsigned field;
  size_t i;
  if (gpuir_searcher_create(ix, NULL, &s, &err)) return;
  memset(&qd, 0, sizeof qd);
  qd.all = 1;
  for (field = 0; !gpuir_field_get(ix, field, &f); field++)
    for (i = 0; i < sizeof items / sizeof *items; i++) {
      uint64_t n[2] = {0, 0};
      unsigned j, asked = 0;
      for (j = 0; j < 2; j++) {
        char where[GPUIR_FIELD_ROOM];
        gpuir_query *q;
        (void)snprintf(where, sizeof where, "%s%s=%s", j ? "-" : "", f.name, items[i]);
        qd.where = where;
        if (gpuir_query_parse(ix, &qd, "", 0, &q, &err)) continue;
        asked += !gpuir_count(s, q, &n[j]);
        gpuir_query_destroy(q);
      }
      EXERCISE_CHECK(asked < 2 || n[0] + n[1] == info->documents);
    }
  gpuir_searcher_destroy(s);
}

static void exercise_positions(gpuir_cursor *c) {
  uint32_t positions[6], n, i;
  if (gpuir_cursor_positions(c, positions, 6, &n)) return;
  EXERCISE_CHECK(n <= 6);
  for (i = 1; i < n; i++) EXERCISE_CHECK(positions[i - 1] < positions[i]);
}

static void exercise_cursor(const gpuir_index *ix, uint64_t id, const gpuir_term_info *info, uint64_t documents) {
  gpuir_cursor *c = NULL;
  uint64_t steps;
  uint32_t doc, target;
  int way;
  for (way = 0; way < 3; way++) {
    if (exercise_parts > 1 && (uint64_t)way != (id + exercise_part) % 3) continue;
    if (gpuir_cursor_open(ix, id, &c, NULL)) return;
    doc = gpuir_cursor_docid(c);
    target = 0;
    for (steps = 0; doc != GPUIR_END; steps++) {
      EXERCISE_CHECK(doc < documents);
      EXERCISE_CHECK(steps <= info->df);
      if (way || steps % 3 == 0) exercise_sum += gpuir_cursor_tf(c);
      if ((steps + (uint64_t)way) % 5 < 2) exercise_positions(c);
      if (way == 0) {
        doc = gpuir_cursor_next(c);
      } else {
        target += 1 + (uint32_t)(((uint64_t)id * 7 + steps * 13) % (way == 1 ? 9 : documents / 4 + 1));
        doc = gpuir_cursor_next_geq(c, target);
        if (steps == info->df) break; /* targets beside a damaged list's docIDs may not move it */
      }
      EXERCISE_CHECK(doc == gpuir_cursor_docid(c));
    }
    EXERCISE_CHECK(gpuir_cursor_next_geq(c, UINT32_MAX) == GPUIR_END);
    EXERCISE_CHECK(gpuir_cursor_next(c) == GPUIR_END);
    EXERCISE_CHECK(gpuir_cursor_tf(c) == 0);
    gpuir_cursor_close(c);
  }
}

/* Decodes a whole list into blocks of its exact size, and its positions where there are any. */
static void exercise_list(const gpuir_index *ix, uint64_t id, const gpuir_term_info *info) {
  const uint64_t n = info->cf < 1 << 16 ? info->cf : 1 << 16; /* a damaged file may claim any number */
  uint32_t *docids = (uint32_t *)malloc(4 * (size_t)info->df + 1), *tfs = (uint32_t *)malloc(4 * (size_t)info->df + 1);
  uint32_t *positions = (uint32_t *)malloc(4 * (size_t)n + 1);
  if (docids && tfs && positions) {
    if (!gpuir_term_postings(ix, id, docids, tfs)) exercise_bytes((const char *)docids, 4 * (size_t)info->df);
    if (!gpuir_term_postings(ix, id, NULL, tfs)) exercise_bytes((const char *)tfs, 4 * (size_t)info->df);
    if (!gpuir_term_positions(ix, id, positions, n)) exercise_bytes((const char *)positions, 4 * (size_t)n);
  }
  free(docids);
  free(tfs);
  free(positions);
}

static void exercise_terms(const gpuir_index *ix, const gpuir_index_info *index) {
  uint64_t id, found;
  gpuir_term_info info;
  for (id = 0; id < index->terms; id++) {
    int status = gpuir_term_get_info(ix, id, &info);
    if (status) continue;
    exercise_bytes(info.term, info.term_len);
    EXERCISE_CHECK(info.df <= index->documents);
    (void)gpuir_term_find(ix, info.term, info.term_len, &found);
    EXERCISE_CHECK(gpuir_term_lower_bound(ix, info.term, info.term_len) <= index->terms);
    exercise_list(ix, id, &info);
    exercise_cursor(ix, id, &info, index->documents);
  }
  EXERCISE_CHECK(gpuir_term_get_info(ix, index->terms, &info) == GPUIR_E_NOT_FOUND);
}

static void exercise_search(gpuir_searcher *s, const gpuir_query *q, uint64_t docids) {
  static const size_t ks[] = {0, 1, 3, 10, 200};
  static gpuir_explanation explanation;
  gpuir_hit hits[200];
  uint64_t count;
  size_t i, j, n;
  for (i = exercise_part; i < sizeof ks / sizeof *ks; i += exercise_parts) {
    int status = gpuir_search(s, q, hits, ks[i], &n);
    EXERCISE_CHECK(n <= ks[i] && (!status || !n));
    for (j = 0; j < n; j++) {
      EXERCISE_CHECK(hits[j].docid < docids);
      if (j < 3) (void)gpuir_explain(s, q, hits[j].docid, &explanation);
    }
  }
  (void)gpuir_count(s, q, &count);
  if (docids) (void)gpuir_explain(s, q, (uint32_t)(docids / 2), &explanation);
  (void)gpuir_explain(s, q, (uint32_t)(docids - 1), &explanation);
}

/* Puts a term between what opens and what ends it; returns the new length. */
static size_t exercise_word(const gpuir_term_info *info, const char *opens, const char *ends, char *out, size_t n,
    size_t cap) {
  size_t len = info->term_len;
  if (*ends == '*' && len > 1) len = (len + 1) / 2; /* a prefix */
  if (n + len + 8 > cap) return n;
  n += (size_t)sprintf(out + n, "%s", opens);
  memcpy(out + n, info->term, len);
  return n + len + (size_t)sprintf(out + n + len, "%s ", ends);
}

/* Words of a segment, some of them negated, prefixes, or two in a phrase. Returns the length. */
static size_t exercise_text(const gpuir_index *ix, unsigned variant, char *out, size_t cap) {
  const gpuir_index *seg;
  gpuir_index_info of;
  size_t n = 0;
  unsigned i, words = variant % 5 + 1;
  EXERCISE_CHECK(gpuir_index_get_info(ix, &of) == GPUIR_OK);
  seg = gpuir_index_segment(ix, variant % of.segments, NULL);
  EXERCISE_CHECK(seg && gpuir_index_get_info(seg, &of) == GPUIR_OK);
  for (i = 0; i < words && of.terms; i++) {
    const unsigned way = (variant * 5 + i) % 7;
    gpuir_term_info info;
    uint64_t id = (variant * 2654435761u + i * (of.terms / words + 1)) % of.terms;
    if (gpuir_term_get_info(seg, id, &info)) continue;
    if (way == 5) {
      n = exercise_word(&info, i && variant % 2 ? "-\"" : "\"", "", out, n, cap);
      if (gpuir_term_get_info(seg, (id + variant) % of.terms, &info)) info.term_len = 0;
      n = exercise_word(&info, "", "\"", out, n, cap);
    } else {
      n = exercise_word(&info, i && (variant + i) % 4 == 0 ? "-" : "", way == 6 ? "*" : "", out, n, cap);
    }
  }
  return n;
}

/* A file that gpuir_verify accepts is right enough for both evaluators to agree. */
static void exercise_agreement(gpuir_searcher *const s[2], const gpuir_query *q) {
  static const size_t ks[] = {1, 10, 200};
  gpuir_hit hits[2][200];
  size_t i, n[2];
  for (i = 0; i < 3; i++) {
    if (gpuir_search(s[0], q, hits[0], ks[i], &n[0]) || gpuir_search(s[1], q, hits[1], ks[i], &n[1])) continue;
    EXERCISE_CHECK(n[0] == n[1] && (!n[0] || !memcmp(hits[0], hits[1], n[0] * sizeof hits[0][0])));
  }
}

static size_t exercise_turn; /* the way of intersecting lists that was used last */

/* Another way of intersecting lists at each call. */
static gpuir_searcher *exercise_intersection(gpuir_index *ix) {
  gpuir_searcher_desc desc;
  gpuir_searcher *s = NULL;
  memset(&desc, 0, sizeof desc);
  desc.timeout_ns = 2000000000u;
  if (!gpuir_intersection_name(++exercise_turn)) exercise_turn = 0;
  desc.intersection = gpuir_intersection_name(exercise_turn);
  EXERCISE_CHECK(gpuir_searcher_create(ix, &desc, &s, NULL) == GPUIR_OK);
  return s;
}

static void exercise_queries(gpuir_index *ix, uint64_t docids, int verified) {
  gpuir_searcher *s[2] = {NULL, NULL}, *other[2] = {NULL, NULL};
  gpuir_searcher_desc desc;
  unsigned i, variant;
  memset(&desc, 0, sizeof desc);
  desc.timeout_ns = 2000000000u;
  for (i = 0; i < 2; i++) {
    desc.evaluator = i ? GPUIR_EVAL_EXHAUSTIVE : GPUIR_EVAL_AUTO;
    EXERCISE_CHECK(gpuir_searcher_create(ix, &desc, &s[i], NULL) == GPUIR_OK);
  }
  for (variant = exercise_part; variant < 12; variant += exercise_parts) {
    gpuir_query_desc how;
    gpuir_query *q = NULL;
    gpuir_error err;
    char text[2048];
    size_t n = exercise_text(ix, variant, text, sizeof text);
    memset(&how, 0, sizeof how);
    how.mode = (int)(variant % 3);
    how.custom_bm25 = variant % 4 == 3;
    how.k1 = 2.0f;
    how.b = 1.0f;
    err.msg[0] = 0;
    if (gpuir_query_parse(ix, &how, text, n, &q, &err)) {
      EXERCISE_CHECK(err.msg[0] != 0);
      continue;
    }
    for (i = 0; i < 2; i++) exercise_search(s[i], q, docids);
    if (verified) exercise_agreement(s, q);
    if (how.mode != GPUIR_OR) {
      if (!other[0]) other[0] = exercise_intersection(ix);
      other[1] = s[1];
      exercise_search(other[0], q, docids);
      if (verified) exercise_agreement(other, q);
    }
    if (exercise_parts == 1) { /* making a searcher takes longer than a small search */
      gpuir_searcher_destroy(other[0]);
      other[0] = NULL;
    }
    gpuir_query_destroy(q);
  }
  gpuir_searcher_destroy(other[0]);
  gpuir_searcher_destroy(s[0]);
  gpuir_searcher_destroy(s[1]);
}

/* Counts the facets of what matches, which are all read. */
static void exercise_facets(gpuir_searcher *s, const gpuir_query *q, const gpuir_field *f) {
  static const char *const how[] = {"", ":7", ":src", ":0,5", ":month"};
  size_t i, j;
  for (i = 0; i < sizeof how / sizeof *how; i++) {
    char column[GPUIR_FIELD_ROOM];
    const char *columns[1];
    gpuir_facets *found;
    gpuir_facet x;
    uint64_t matches;
    (void)snprintf(column, sizeof column, "%s%s", f->name, how[i]);
    columns[0] = column;
    if (gpuir_facets_count(s, q, columns, 1, &found, &matches)) continue;
    for (j = 0; j < 1000 && !gpuir_facets_get(found, 0, j, &x); j++) {
      exercise_sum += x.count; /* of a damaged document that has a value twice, more than there are matches */
      exercise_bytes(x.value ? x.value : "", x.len);
    }
    gpuir_facets_destroy(found);
  }
}

/* Ranks by words and a where, orders by each field, collapses by it, and counts its facets. */
static void exercise_orders(gpuir_index *ix, uint64_t docids, int verified) {
  static const char *const items[] = {"..", "m..", "..m", "1..", "..2000", "src"};
  gpuir_searcher *s[2] = {NULL, NULL};
  gpuir_searcher_desc desc;
  gpuir_field f;
  unsigned field, i;
  memset(&desc, 0, sizeof desc);
  desc.timeout_ns = 2000000000u;
  for (i = 0; i < 2; i++) {
    desc.evaluator = i ? GPUIR_EVAL_EXHAUSTIVE : GPUIR_EVAL_AUTO;
    EXERCISE_CHECK(gpuir_searcher_create(ix, &desc, &s[i], NULL) == GPUIR_OK);
  }
  for (field = 0; !gpuir_field_get(ix, field, &f); field++)
    for (i = exercise_part % 6; i < 6; i += exercise_parts) {
      char where[GPUIR_FIELD_ROOM], sort[GPUIR_FIELD_ROOM], text[2048];
      const size_t n = exercise_text(ix, field + 6 * i, text, sizeof text);
      gpuir_query_desc how;
      gpuir_query *q;
      unsigned j;
      (void)snprintf(where, sizeof where, "%s%s=%s", i % 2 ? "-" : "", f.name, items[i]);
      (void)snprintf(sort, sizeof sort, "%s%s", i % 4 / 2 ? "-" : "", f.name);
      memset(&how, 0, sizeof how);
      how.mode = (int)(i % 3);
      how.where = where;
      how.sort = i % 3 == 1 ? sort : NULL;
      how.collapse = i % 3 == 2 ? f.name : NULL;
      if (gpuir_query_parse(ix, &how, text, n, &q, NULL)) continue;
      for (j = 0; j < 2; j++) exercise_search(s[j], q, docids);
      if (verified) exercise_agreement(s, q);
      if (!i) exercise_facets(s[0], q, &f);
      gpuir_query_destroy(q);
    }
  gpuir_searcher_destroy(s[0]);
  gpuir_searcher_destroy(s[1]);
}

/* Reads all of an open index in every way; returns what gpuir_verify did, whose words have `name`. */
static int exercise_index(gpuir_index *ix, const char *name) {
  gpuir_index_info info;
  gpuir_error err;
  const gpuir_index *seg;
  uint32_t base;
  uint64_t i, docids = 0;
  const int verified = gpuir_verify(ix, &err);
  EXERCISE_CHECK(!verified || (err.code == verified && strstr(err.msg, name)));
  EXERCISE_CHECK(gpuir_index_get_info(ix, &info) == GPUIR_OK);
  exercise_bytes(info.analyzer, strlen(info.analyzer));
  exercise_bytes(info.codec, strlen(info.codec));
  exercise_bytes(info.freq_codec, strlen(info.freq_codec));
  exercise_bytes(info.description, strlen(info.description));
  exercise_bytes(info.tool, strlen(info.tool));
  exercise_bytes(info.order, strlen(info.order));
  exercise_documents(ix, &info);
  exercise_values(ix, &info);
  exercise_wheres(ix, &info);
  for (i = 0; (seg = gpuir_index_segment(ix, (size_t)i, &base)) != NULL; i++) {
    gpuir_index_info of;
    EXERCISE_CHECK(base == docids && gpuir_index_get_info(seg, &of) == GPUIR_OK);
    docids += of.docids;
    exercise_terms(seg, &of);
  }
  EXERCISE_CHECK(i == info.segments && docids == info.docids);
  exercise_queries(ix, info.docids, !verified);
  exercise_orders(ix, info.docids, !verified);
  return verified;
}

/* Opens the file and reads all of it in every way. Returns what gpuir_open did; *verified is what
 * gpuir_verify did. */
static int exercise_file(const char *path, int simd, int *verified) {
  gpuir_open_desc desc;
  gpuir_index *ix = NULL;
  gpuir_error err;
  const char *name = strrchr(path, '/');
  int status;
  name = name ? name + 1 : path;
  memset(&desc, 0, sizeof desc);
  memset(&err, 0, sizeof err);
  desc.simd = simd;
  *verified = GPUIR_OK;
  status = gpuir_open(path, &desc, &ix, &err);
  if (status) {
    EXERCISE_CHECK(!ix && err.code == status && strstr(err.msg, name));
    return status;
  }
  *verified = exercise_index(ix, name);
  gpuir_close(ix);
  return GPUIR_OK;
}

#endif
