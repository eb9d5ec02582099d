/* histories.c - random histories of live indexes: whatever was added, deleted, replaced, refreshed, committed, merged,
 * closed and opened again, a snapshot answers as brute force over the documents that are left, and as an index that is
 * built of them at once; the file of a whole merge is that index, byte for byte.
 *
 * GPUIR_LONG=1 runs a hundred times as many histories; `histories FROM TO` those from seed FROM up to TO, and says how
 * many comparisons were made.
 */
#include "small.h"
#include "private.h"

unsigned small_prefix_postings = 700;

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rng.h"
#include "oracle.h"
#include "corpus.h"
#include "history.h"
#include "stored.h"

enum { BATCH = 6, NAMES = 30, SOURCES = 8 };

/* What a history is like. */
enum { SHORT, MANY_SEGMENTS, BULK, LONG };

/* A history: the handle beside the model of what it has, and of what was committed. */
typedef struct history {
  uint64_t seed;
  rng r;
  int kind, analyzer;
  const char *method; /* of intersecting lists; NULL: the engine's own */
  gpuir_live_desc desc;
  gpuir_live *live;
  const char *path;
  char fresh[4200];
  pool p;
  const words *v;
  model now, committed;
  gpuir_index *old; /* an older snapshot and its model, or NULL */
  model then;
  gpuir_searcher *mover; /* goes from snapshot to snapshot */
  gpuir__fusion merge; /* begun, if is_merging */
  int is_merging;
} history;

/* A snapshot, the fresh build beside it, and the live documents. */
typedef struct pair {
  history *h;
  tokens t;
  gpuir_index *index[2]; /* the snapshot, and the fresh one or NULL */
  gpuir_searcher *searcher[2][2]; /* [index][evaluator] */
} pair;

static unsigned long compared, hits_compared, checks, wholes, merges;
static uint64_t running; /* the history's seed */
static char live_path[4200];

#define FAIL(...) \
  do { \
    print_error("history %lu (histories %lu %lu): ", (unsigned long)running, (unsigned long)running, \
        (unsigned long)running + 1); \
    fail_msg(__VA_ARGS__); \
  } while (0)

/* ---- files ---- */

/* Finds the only segment of a folder that has no other file but manifest and lock. */
static void only_segment(const char *path, char *file, size_t cap) {
  DIR *dir = opendir(path);
  struct dirent *e;
  unsigned others = 0;
  *file = 0;
  assert_non_null(dir);
  while ((e = readdir(dir)) != NULL) {
    if (e->d_name[0] == '.') continue;
    if (!strstr(e->d_name, ".gpuir")) others++;
    else if (*file) FAIL("a second segment: %s", e->d_name);
    else (void)snprintf(file, cap, "%s/%s", path, e->d_name);
  }
  (void)closedir(dir);
  assert_int_equal(others, 2);
}

static char *read_file(const char *path, size_t *n) {
  FILE *in = fopen(path, "rb");
  char *bytes;
  assert_non_null(in);
  (void)fseek(in, 0, SEEK_END);
  *n = (size_t)ftell(in);
  rewind(in);
  bytes = (char *)oracle_grow(NULL, *n + 1, 1);
  assert_int_equal(fread(bytes, 1, *n, in), *n);
  (void)fclose(in);
  return bytes;
}

/* Builds the model's live documents at once, with the history's settings, to h->fresh. */
static void build_fresh(history *h, const model *m) {
  gpuir_builder_desc d = h->desc.settings;
  gpuir_builder *b;
  gpuir_error err;
  unsigned i;
  int fd = open(h->fresh, O_RDWR | O_CREAT | O_EXCL, 0666);
  d.path = h->fresh;
  if (gpuir__builder_make(&d, &fd, NULL, &b, &err)) FAIL("%s", err.msg);
  for (i = 0; i < m->n; i++) {
    const gpuir_doc_desc doc = doc_desc(&m->docs[i]);
    size_t len;
    char *text;
    if (m->docs[i].deleted) continue;
    text = doc_text(&h->p, &m->docs[i], &len);
    if (gpuir_builder_add_text(b, &doc, text, len, &err)) FAIL("%s", err.msg);
    free(text);
  }
  if (gpuir_builder_write(b, NULL, &err)) FAIL("%s", err.msg);
  gpuir_builder_destroy(b);
}

static gpuir_open_desc open_desc(const history *h) {
  gpuir_open_desc d;
  memset(&d, 0, sizeof d);
  d.simd = h->desc.settings.simd;
  d.tokenize = h->desc.settings.analyzer.tokenize;
  return d;
}

/* ---- a snapshot's documents and terms ---- */

/* Holds the documents one by one against the model's live ones, and notes their docIDs. */
static void check_documents(pair *x, const model *m, const gpuir_index *ix, uint32_t *docids) {
  gpuir_index_info info;
  uint32_t d, live = 0;
  unsigned i = 0;
  (void)gpuir_index_get_info(ix, &info);
  if (info.documents != x->t.ndocs || info.tokens != x->t.ntokens)
    FAIL("%lu documents, %lu tokens, not %lu and %lu", (unsigned long)info.documents, (unsigned long)info.tokens,
        (unsigned long)x->t.ndocs, (unsigned long)x->t.ntokens);
  for (d = 0; d < info.docids; d++) {
    gpuir_doc_desc want;
    char name[64], *text;
    size_t len;
    gpuir_doc doc;
    const int status = gpuir_doc_get(ix, d, &doc);
    if (status == GPUIR_E_NOT_FOUND) continue;
    assert_int_equal(status, GPUIR_OK);
    while (i < m->n && m->docs[i].deleted) i++;
    if (i == m->n) FAIL("document %u is one too many", d);
    want = doc_desc(&m->docs[i]);
    if (gpuir_doc_name(&doc, name, sizeof name) != want.name_len || strcmp(name, want.name) != 0 ||
        doc.source_len != want.source_len || memcmp(doc.source, want.source, want.source_len) != 0 ||
        doc.first_line != (want.source_len ? want.first_line : 0))
      FAIL("document %u is %s, not %s", d, name, want.name);
    assert_int_equal(doc.length, x->t.start[live + 1] - x->t.start[live]);
    if (info.has_text) {
      size_t stored;
      char *const has = stored_text(ix, d, &stored);
      text = doc_text(&x->h->p, &m->docs[i], &len);
      if (!has || stored != len || memcmp(has, text, len) != 0) FAIL("the text of document %u", d);
      free(text);
      free(has);
    }
    docids[live++] = d;
    i++;
  }
  assert_int_equal(live, x->t.ndocs);
  assert_int_equal(gpuir_doc_get(ix, (uint32_t)info.docids, &(gpuir_doc){0}), GPUIR_E_NOT_FOUND);
}

/* Counts of terms, some of them in no live document. */
static void check_terms(const pair *x, const gpuir_index *ix, unsigned step) {
  const words *v = x->t.v;
  unsigned i;
  for (i = rng_below(&x->h->r, step); i < v->nterms; i += 1 + rng_below(&x->h->r, 2 * step)) {
    uint32_t df = 99;
    uint64_t cf = 99;
    const int status = gpuir_term_count(ix, v->term[i], v->len[i], &df, &cf);
    if (status != (x->t.df[i] ? GPUIR_OK : GPUIR_E_NOT_FOUND) || df != x->t.df[i] || cf != x->t.cf[i])
      FAIL("%.40s: df %u, cf %lu, not %u and %lu", v->term[i], df, (unsigned long)cf, x->t.df[i],
          (unsigned long)x->t.cf[i]);
    compared++;
  }
}

/* ---- searches ---- */

static const char *const modes[] = {"AND", "OR", "AND+OR"};
static const char *const indexes[] = {"the snapshot", "the fresh build"};

/* The hits must be the first k of the answer. */
static void check_hits(const pair *x, const answer *right, const asked *a, int index, int mode, size_t k,
    const gpuir_hit *hits, size_t n, const char *how) {
  const int list = mode == GPUIR_ANDOR ? right->n[0] < k : mode;
  const size_t want = right->n[list] < k ? right->n[list] : k;
  size_t i;
  compared++;
  hits_compared += n;
  for (i = 0; i < n && i < want; i++) {
    const gpuir_hit r = right->hits[list][i];
    const uint32_t docid = index ? r.docid : x->t.docids[r.docid];
    if (hits[i].docid != docid || hits[i].score != r.score)
      FAIL("%s, %s, %s, k %lu, \"%s\": hit %lu is (%u, %u), not (%u, %u)", indexes[index], how, modes[mode],
          (unsigned long)k, a->text, (unsigned long)i, hits[i].docid, hits[i].score, docid, r.score);
  }
  if (n != want)
    FAIL("%s, %s, %s, k %lu, \"%s\": %lu hits, not %lu", indexes[index], how, modes[mode], (unsigned long)k, a->text,
        (unsigned long)n, (unsigned long)want);
}

/* What explain says of a document, of which `rank` is the number among the live ones. */
static void check_explained(const pair *x, const answer *right, const asked *a, int index, int mode,
    const gpuir_query *q, uint32_t rank) {
  static gpuir_explanation e;
  const int list = mode == GPUIR_OR;
  const uint32_t dl = x->t.start[rank + 1] - x->t.start[rank];
  const float K = oracle_norm(a->k1, a->b, x->t.ntokens, x->t.ndocs, dl);
  uint32_t score = 0;
  size_t i, j = 0;
  unsigned turn;
  assert_int_equal(gpuir_explain(x->searcher[index][0], q, index ? rank : x->t.docids[rank], &e), GPUIR_OK);
  compared++;
  for (i = 0; i < right->n[list] && right->hits[list][i].docid != rank; i++) {}
  if (i < right->n[list]) score = right->hits[list][i].score;
  if (e.matches != (i < right->n[list]) || e.score != score || e.length != dl || e.nterms != a->n)
    FAIL("%s explains \"%s\", %s, document %u: score %u, not %u", indexes[index], a->text, modes[mode], rank, e.score,
        score);
  for (turn = 0; turn < 2; turn++)
    for (i = 0; i < a->n; i++) {
      const term *t = &a->terms[i];
      const gpuir_explain_term *o = &e.terms[j];
      const uint64_t tf = term_tf(&x->t, t, rank);
      if (t->negated != (int)turn) continue;
      j++;
      if (o->q != t->q || o->negated != t->negated || o->tokens != (t->kind == PHRASE ? t->n : 1) ||
          o->members != (t->kind == PREFIX ? t->members : 0) || o->tf != tf ||
          o->df != (t->kind == PHRASE ? 0 : t->df) || o->idf != t->idf || o->weight != t->weight || o->norm != K ||
          o->contribution != (tf && !turn ? oracle_c(t->weight, K, tf) : 0))
        FAIL("%s explains \"%s\", document %u, %.*s: tf %u, not %lu; df %u", indexes[index], a->text, rank,
            (int)o->term_len, o->term, o->tf, (unsigned long)tf, o->df);
    }
}

/* One query in one mode on one index. */
static void check_mode(const pair *x, const answer *right, const asked *a, int index, int mode, const gpuir_query *q) {
  static gpuir_hit hits[MOST_DOCS + 8];
  const size_t ks[] = {10, 1, 0, 3, x->t.ndocs, x->t.ndocs + 1u, 100};
  rng *r = &x->h->r;
  const unsigned all = !rng_below(r, 3);
  uint64_t count = 99;
  unsigned i, e;
  for (e = 0; e < 2; e++) {
    for (i = 0; i < sizeof ks / sizeof *ks; i++) {
      size_t n = 99;
      if (!all && i && rng_below(r, 4)) continue;
      assert_int_equal(gpuir_search(x->searcher[index][e], q, hits, ks[i], &n), GPUIR_OK);
      check_hits(x, right, a, index, mode, ks[i], hits, n, e ? "exhaustive" : "auto");
    }
    assert_int_equal(gpuir_count(x->searcher[index][e], q, &count), GPUIR_OK);
    if (count != right->n[mode == GPUIR_OR])
      FAIL("%s, %s, \"%s\": counts %lu, not %lu", indexes[index], modes[mode], a->text, (unsigned long)count,
          (unsigned long)right->n[mode == GPUIR_OR]);
  }
  if (!x->t.ndocs) return;
  if (right->n[mode == GPUIR_OR])
    check_explained(x, right, a, index, mode, q,
        right->hits[mode == GPUIR_OR][rng_below(r, (uint32_t)right->n[mode == GPUIR_OR])].docid);
  check_explained(x, right, a, index, mode, q, rng_below(r, x->t.ndocs));
}

/* Parses a query on one index, which must answer `status`. */
static gpuir_query *parse(const pair *x, const asked *a, int index, int mode, int status) {
  gpuir_query_desc desc;
  gpuir_query *q;
  gpuir_error err;
  int got;
  memset(&desc, 0, sizeof desc);
  memset(&err, 0, sizeof err);
  desc.mode = mode;
  desc.no_operators = a->plain;
  desc.custom_bm25 = a->k1 != x->h->desc.settings.k1 || a->b != x->h->desc.settings.b;
  desc.k1 = a->k1;
  desc.b = a->b;
  desc.prefix_postings = MOST_POSTINGS;
  desc.keep_rarest = a->wide != NULL;
  got = gpuir_query_parse(x->index[index], &desc, a->text, a->len, &q, &err);
  compared++;
  if (got != status || (status && err.code != status))
    FAIL("%s, k1 %g: %s (%s), not %s: \"%s\"", indexes[index], (double)a->k1, gpuir_strerror(got), err.msg,
        gpuir_strerror(status), a->text);
  assert_true((q == NULL) == (status != 0));
  return q;
}

/* Asks the queries of one mode together, on threads. */
static void check_batch(const pair *x, const answer *right, const asked *a, unsigned n, int mode) {
  static gpuir_hit hits[BATCH * 20];
  const gpuir_query *queries[BATCH];
  gpuir_searcher_desc desc;
  gpuir_searcher *s;
  uint32_t counts[BATCH];
  unsigned which[BATCH], i, m = 0;
  memset(&desc, 0, sizeof desc);
  desc.threads = 3;
  for (i = 0; i < n; i++) {
    if (a[i].status) continue;
    which[m] = i;
    queries[m++] = parse(x, &a[i], 0, mode, GPUIR_OK);
  }
  assert_int_equal(gpuir_searcher_create(x->index[0], &desc, &s, NULL), GPUIR_OK);
  assert_int_equal(gpuir_search_batch(s, queries, m, 20, hits, counts), GPUIR_OK);
  for (i = 0; i < m; i++) {
    check_hits(x, &right[which[i]], &a[which[i]], 0, mode, 20, hits + 20 * (size_t)i, counts[i], "batch");
    gpuir_query_destroy((gpuir_query *)queries[i]);
  }
  gpuir_searcher_destroy(s);
}

/* k1 and b of a query: the index's, or others. */
static void draw_bm25(history *h, asked *a) {
  static const float others[][2] = {{0.0f, 0.0f}, {1.2f, 0.75f}, {1000.0f, 1.0f}, {1000.0f, 0.0f}, {0.9f, 1.0f},
      {40.0f, 0.01f}};
  a->k1 = h->desc.settings.k1;
  a->b = h->desc.settings.b;
  if (rng_below(&h->r, 3)) return;
  memcpy(&a->k1, &others[rng_below(&h->r, 6)][0], sizeof a->k1);
  a->b = others[rng_below(&h->r, 6)][1];
}

/* What a query leaves out, in the order of its text. */
static void check_left_out(const pair *x, const asked *a, int index, const gpuir_query *q) {
  const char *word;
  size_t len, n = 0;
  unsigned i;
  compared++;
  for (i = 0; i < a->wide->n; i++) {
    const char *want = token_text(x->t.v, a->wide->token[i]);
    if (a->wide->kept[i]) continue;
    if (gpuir_query_left_out(q, n++, &word, &len) || len != strlen(want) || memcmp(word, want, len) != 0)
      FAIL("%s, \"%s\": does not leave %s out", indexes[index], a->text, want);
  }
  assert_int_equal(gpuir_query_left_out(q, n, &word, &len), GPUIR_E_NOT_FOUND);
}

static unsigned long wide_cut;

/* A query with words to leave out, on both indexes. With AND it is refused. */
static void check_wide(const pair *x) {
  static answer right;
  static asked a;
  static wide w;
  history *h = x->h;
  int mode, index, refused;
  asked_draw_wide(&a, &h->r, &h->p, h->v, h->analyzer, h->desc.settings.positions, &w);
  draw_bm25(h, &a);
  if (!a.status) wide_keep(&a, &x->t);
  if (!a.status && !a.npositive) a.status = w.n ? GPUIR_E_TERMS : GPUIR_E_QUERY;
  refused = a.status != 0;
  if (!a.status) a.status = asked_weigh(&a, &x->t);
  if (!a.status) answer_make(&right, &a, &x->t);
  wide_cut += w.left > 0;
  for (index = 0; index < 2 && x->index[index]; index++) {
    if (!refused) gpuir_query_destroy(parse(x, &a, index, GPUIR_AND, w.left ? GPUIR_E_TERMS : a.status));
    for (mode = GPUIR_OR; mode <= GPUIR_ANDOR; mode++) {
      gpuir_query *q = parse(x, &a, index, mode, a.status);
      if (q && w.left) check_mode(x, &right, &a, index, GPUIR_OR, q); /* others' terms are in the order of the text */
      if (q) check_left_out(x, &a, index, q);
      gpuir_query_destroy(q);
    }
  }
}

/* Queries of all kinds on both indexes. */
static void check_queries(const pair *x, unsigned queries) {
  static answer right[BATCH];
  static asked a[BATCH];
  history *h = x->h;
  unsigned i;
  int mode, index;
  for (i = 0; i < queries; i++) {
    asked_draw(&a[i], &h->r, &h->p, h->v, h->analyzer, h->desc.settings.positions);
    draw_bm25(h, &a[i]);
    if (!a[i].status) a[i].status = asked_weigh(&a[i], &x->t);
    if (!a[i].status) answer_make(&right[i], &a[i], &x->t);
    for (mode = 0; mode < 3; mode++)
      for (index = 0; index < 2 && x->index[index]; index++) {
        gpuir_query *q = parse(x, &a[i], index, mode, a[i].status);
        if (q) check_mode(x, &right[i], &a[i], index, mode, q);
        gpuir_query_destroy(q);
      }
  }
  if (queries > 1) check_batch(x, right, a, queries, (int)rng_below(&h->r, 3));
  if (!rng_below(&h->r, 8)) check_wide(x);
}

/* ---- snapshots ---- */

static gpuir_searcher *searcher_on(gpuir_index *ix, int evaluator, const char *method) {
  gpuir_searcher_desc desc;
  gpuir_searcher *s;
  memset(&desc, 0, sizeof desc);
  desc.evaluator = evaluator;
  desc.intersection = method;
  assert_int_equal(gpuir_searcher_create(ix, &desc, &s, NULL), GPUIR_OK);
  return s;
}

/* Holds a snapshot against the model: documents, terms, searches; with `fresh`, beside a fresh build. */
static void check_snapshot(history *h, gpuir_index *ix, const model *m, unsigned queries, int fresh) {
  pair x;
  int i, e;
  checks++;
  memset(&x, 0, sizeof x);
  x.h = h;
  x.index[0] = ix;
  tokens_make(&x.t, &h->p, m, h->v);
  check_documents(&x, m, ix, x.t.docids);
  check_terms(&x, ix, 20);
  if (fresh) {
    uint32_t *docids = (uint32_t *)oracle_grow(NULL, x.t.ndocs + 1u, sizeof *docids);
    const gpuir_open_desc d = open_desc(h);
    gpuir_index_info ours, its;
    gpuir_error err;
    build_fresh(h, m);
    if (gpuir_open(h->fresh, &d, &x.index[1], &err)) FAIL("%s", err.msg);
    (void)unlink(h->fresh);
    check_documents(&x, m, x.index[1], docids);
    (void)gpuir_index_get_info(ix, &ours);
    (void)gpuir_index_get_info(x.index[1], &its);
    assert_true(ours.average_length == its.average_length && ours.k1 == its.k1 && ours.b == its.b);
    free(docids);
  }
  for (i = 0; i < 2 && x.index[i]; i++)
    for (e = 0; e < 2; e++) {
      if (!i && !e && h->mover) assert_int_equal(gpuir_searcher_move(h->mover, ix), GPUIR_OK);
      else x.searcher[i][e] = searcher_on(x.index[i], e, e ? NULL : h->method);
    }
  if (h->mover) x.searcher[0][0] = h->mover;
  else h->mover = x.searcher[0][0];
  if (queries) check_queries(&x, queries);
  gpuir_searcher_destroy(x.searcher[0][1]);
  for (e = 0; e < 2; e++) gpuir_searcher_destroy(x.searcher[1][e]);
  gpuir_close(x.index[1]);
  tokens_free(&x.t);
}

/* Ends the life of the searcher that moves, which must not outlive its index. */
static void drop_mover(history *h) {
  gpuir_searcher_destroy(h->mover);
  h->mover = NULL;
}

static void drop_old(history *h) {
  drop_mover(h);
  gpuir_close(h->old);
  h->old = NULL;
}

/* Refreshes and checks; the snapshot may stay as an old one, which is asked again later. */
static void refresh(history *h, unsigned queries) {
  gpuir_index *ix;
  gpuir_error err;
  if (gpuir_live_refresh(h->live, &ix, &err)) FAIL("refresh: %s", err.msg);
  check_snapshot(h, ix, &h->now, queries, queries > 0);
  if (h->old && rng_below(&h->r, 3) == 0) check_snapshot(h, h->old, &h->then, 1, 0);
  if (h->old && rng_below(&h->r, 3)) {
    drop_mover(h);
    gpuir_close(ix);
    return;
  }
  drop_old(h);
  h->old = ix;
  model_copy(&h->then, &h->now);
}

/* ---- steps ---- */

static void open_live(history *h) {
  gpuir_error err;
  if (gpuir_live_open(&h->desc, &h->live, &err)) FAIL("open: %s", err.msg);
}

static void add(history *h, unsigned most) {
  rng *r = &h->r;
  model_doc *d;
  gpuir_doc_desc desc;
  gpuir_error err;
  char *text;
  size_t len;
  if (h->now.n == MOST_DOCS) return;
  d = &h->now.docs[h->now.n++];
  memset(d, 0, sizeof *d);
  pool_draw(&h->p, r, rng_below(r, 40) ? rng_below(r, most) : 100 + rng_below(r, 300),
      h->kind == BULK && h->seed / 8 % 2, d);
  (void)snprintf(d->name, sizeof d->name, "n%u", (unsigned)rng_below(r, h->kind == BULK ? 2000 : NAMES));
  if (rng_below(r, 3))
    (void)snprintf(d->source, sizeof d->source, "s%u/n%u", (unsigned)rng_below(r, SOURCES), (unsigned)rng_below(r, 3));
  if (!rng_below(r, 5)) { /* stored as a part of the source */
    memcpy(d->source, "a/", 2);
    memcpy(d->source + 2, d->name, strlen(d->name) + 1);
  }
  d->line = *d->source && rng_below(r, 2) ? 1 + rng_below(r, 1000) : 0;
  desc = doc_desc(d);
  text = doc_text(&h->p, d, &len);
  if (gpuir_live_add(h->live, &desc, text, len, &err)) FAIL("add: %s", err.msg);
  free(text);
}

static void delete_by(history *h, int by, const char *key) {
  uint64_t n = 99, want = 0;
  gpuir_error err;
  unsigned i;
  if (!*key) return;
  for (i = 0; i < h->now.n; i++) {
    model_doc *d = &h->now.docs[i];
    if (d->deleted || strcmp(by == GPUIR_BY_NAME ? d->name : d->source, key) != 0) continue;
    d->deleted = 1;
    want++;
  }
  if (gpuir_live_delete(h->live, by, key, strlen(key), &n, &err)) FAIL("delete: %s", err.msg);
  if (n != want) FAIL("%lu documents deleted, not %lu", (unsigned long)n, (unsigned long)want);
}

/* Deletes by the name or the source of some document, or by one that there may never have been. */
static void delete_some(history *h) {
  char key[16];
  const int by = rng_below(&h->r, 3) ? GPUIR_BY_NAME : GPUIR_BY_SOURCE;
  (void)snprintf(key, sizeof key, "n%u", (unsigned)rng_below(&h->r, NAMES));
  if (h->now.n && rng_below(&h->r, 4)) {
    const model_doc *d = &h->now.docs[rng_below(&h->r, h->now.n)];
    (void)snprintf(key, sizeof key, "%s", by == GPUIR_BY_NAME ? d->name : d->source);
  }
  delete_by(h, by, key);
}

/* Deletes all documents that hold a word, or all there are. */
static void delete_word(history *h) {
  const unsigned word = rng_below(&h->r, 12) ? some_word(&h->r) : WORDS;
  unsigned i, j;
  for (i = 0; i < h->now.n; i++) {
    const model_doc *d = &h->now.docs[i];
    char name[16];
    if (d->deleted) continue;
    for (j = 0; j < d->n && h->p.words[d->start + j] != word; j++) {}
    if (j == d->n && word < WORDS) continue;
    (void)snprintf(name, sizeof name, "%s", d->name);
    delete_by(h, GPUIR_BY_NAME, name);
  }
}

/* Deletes the documents of a name and adds another, which has it. */
static void replace(history *h) {
  const unsigned at = h->now.n;
  char name[16];
  uint64_t n, want = 0;
  gpuir_error err;
  unsigned i;
  if (!at) return;
  (void)snprintf(name, sizeof name, "%s", h->now.docs[rng_below(&h->r, at)].name);
  for (i = 0; i < at; i++) want += !h->now.docs[i].deleted && !strcmp(h->now.docs[i].name, name);
  if (gpuir_live_delete(h->live, GPUIR_BY_NAME, name, strlen(name), &n, &err)) FAIL("delete: %s", err.msg);
  assert_int_equal(n, want);
  for (i = 0; i < at; i++) h->now.docs[i].deleted |= !strcmp(h->now.docs[i].name, name);
  add(h, 12);
}

static void commit(history *h) {
  gpuir_error err;
  if (gpuir_live_commit(h->live, &err)) FAIL("commit: %s", err.msg);
  model_copy(&h->committed, &h->now);
}

/* What the folder has for those who open it is what was committed; what they have in common is shared. */
static void check_folder(history *h) {
  gpuir_open_desc d = open_desc(h);
  gpuir_index *ix;
  gpuir_error err;
  if (rng_below(&h->r, 2)) d.share = h->old;
  if (gpuir_open(h->path, &d, &ix, &err)) FAIL("open: %s", err.msg);
  if (!rng_below(&h->r, 3) && gpuir_verify(ix, &err)) FAIL("verify: %s", err.msg);
  check_snapshot(h, ix, &h->committed, 1, 0);
  drop_mover(h);
  gpuir_close(ix);
}

/* Begins a merge that goes on beside the steps that follow, or ends it. */
static void begin_merge(history *h) {
  gpuir_error err;
  int begun;
  memset(&h->merge, 0, sizeof h->merge);
  h->merge.l = h->live;
  if (gpuir__fusion_begin(&h->merge, rng_below(&h->r, 3) == 0, &begun, &err)) FAIL("merge: %s", err.msg);
  h->is_merging = begun;
}

static void end_merge(history *h) {
  gpuir__segment *result = NULL;
  gpuir_error err;
  int more;
  if (!h->is_merging) return;
  if (gpuir__fusion_run(&h->merge, &result, &err)) FAIL("merge: %s", err.msg);
  if (gpuir__fusion_end(&h->merge, result, GPUIR_OK, &more, &err)) FAIL("merge: %s", err.msg);
  gpuir__fusion_free(&h->merge);
  h->is_merging = 0;
  merges++;
}

static void merge_now(history *h) {
  gpuir_error err;
  int more, status = gpuir_live_merge(h->live, rng_below(&h->r, 4) == 0, &more, &err);
  if (status != (h->is_merging ? GPUIR_E_BUSY : GPUIR_OK)) FAIL("merge: %s", err.msg);
  merges++;
}

/* Merges all, and compares the one file that is left with a fresh build. */
static void check_whole(history *h) {
  char file[4600], *ours, *fresh;
  gpuir_error err;
  size_t n, m;
  int more = 9;
  end_merge(h);
  commit(h);
  if (gpuir_live_merge(h->live, 1, &more, &err)) FAIL("merge: %s", err.msg);
  assert_int_equal(more, 0);
  commit(h);
  only_segment(h->path, file, sizeof file);
  build_fresh(h, &h->now);
  ours = read_file(file, &n);
  fresh = read_file(h->fresh, &m);
  if (n != m || memcmp(ours, fresh, n) != 0)
    FAIL("a merge of all differs from a fresh build: %lu and %lu bytes", (unsigned long)n, (unsigned long)m);
  free(ours);
  free(fresh);
  (void)unlink(h->fresh);
  wholes++;
}

/* Closes without a commit, and opens again. */
static void reopen(history *h) {
  end_merge(h);
  gpuir_live_close(h->live);
  model_copy(&h->now, &h->committed);
  open_live(h);
}

/* One step at random. */
static void step(history *h) {
  rng *r = &h->r;
  const uint32_t what = rng_below(r, 100);
  unsigned n = h->kind == BULK ? 20 + rng_below(r, 300) : 1 + rng_below(r, 4);
  if (what < 34) {
    while (n--) add(h, 12);
  } else if (what < 42) {
    replace(h);
  } else if (what < 54) {
    delete_some(h);
  } else if (what < 57) {
    delete_word(h);
  } else if (what < 72) {
    refresh(h, rng_below(r, 3));
  } else if (what < 78) {
    commit(h);
    if (rng_below(r, 2)) check_folder(h);
  } else if (what < 86) {
    merge_now(h);
  } else if (what < 92) {
    if (h->is_merging) end_merge(h);
    else begin_merge(h);
  } else if (what < 97) {
    if (what == 92 && h->is_merging) end_merge(h);
    refresh(h, 0);
  } else if (what < 99) {
    reopen(h);
  } else {
    check_whole(h);
  }
}

/* Up to 60 segments: nothing is merged. */
static void many_segments(history *h) {
  unsigned n = 2 + rng_below(&h->r, 59), i, j;
  for (i = 0; i < n; i++) {
    for (j = 1 + rng_below(&h->r, 6); j; j--) add(h, 12);
    if (!rng_below(&h->r, 5)) delete_some(h);
    refresh(h, rng_below(&h->r, 30) == 0);
    if (!rng_below(&h->r, 12)) commit(h);
  }
  for (i = 0; i < 4; i++) delete_some(h);
  if (!rng_below(&h->r, 3)) delete_word(h);
}

/* ---- histories ---- */

/* Draws the settings of a history. */
static void draw_settings(history *h) {
  static const char *const codecs[] = {NULL, "vbyte", "auto", "auto:0.5", "pfd", "newpfd", "optpfd", "ef", "rice", "qs",
      "qs:0.5", "lrc", "lrcseg", "pfd-list:2", "parapfor", "seglrc", "hslrc", "parapfor:64,min"};
  static const char *const freqs[] = {NULL, "vbyte", "newpfd", "optpfd", "auto"};
  gpuir_builder_desc *s = &h->desc.settings;
  rng *r = &h->r;
  h->analyzer = rng_below(r, 3) ? (int)rng_below(r, ANALYZERS) : PLAIN;
#ifndef GPUIR_WITH_STEMMER
  if (h->analyzer == STEMMED || h->analyzer == BOTH) h->analyzer = STOPPED;
#endif
  s->analyzer.analyzer = "ascii"; /* terms are random bytes, which it takes as they are */
  if (h->analyzer == STEMMED || h->analyzer == BOTH) s->analyzer.stem = "porter";
  if (h->analyzer == STOPPED || h->analyzer == BOTH) s->analyzer.stop_words = STOP_WORDS;
  if (h->analyzer == TRIGRAMS) {
    s->analyzer.analyzer = "trigrams";
    s->analyzer.tokenize = tokenize_trigrams;
  }
  h->method = rng_below(r, 3) ? NULL : gpuir_intersection_name(rng_below(r, 24));
  s->memory = 1 << 20;
  s->threads = 1 + !rng_below(r, 10);
  s->store_text = rng_below(r, 2) != 0;
  s->positions = rng_below(r, 3) != 0;
  s->codec = rng_below(r, 2) ? codecs[rng_below(r, 18)] : NULL;
  s->freq_codec = rng_below(r, 2) ? freqs[rng_below(r, 5)] : NULL;
  s->simd = (int)rng_below(r, 4);
  s->custom_bm25 = 1;
  s->k1 = rng_below(r, 3) ? 0.9f : rng_below(r, 4) ? 1.2f : 0.0f;
  s->b = rng_below(r, 3) ? 0.4f : rng_below(r, 4) ? 0.75f : 1.0f;
}

static void begin(history *h, uint64_t seed) {
  static const int kinds[] = {SHORT, SHORT, SHORT, SHORT, SHORT, MANY_SEGMENTS, BULK, LONG};
  memset(h, 0, offsetof(history, now));
  h->now.n = h->committed.n = h->then.n = 0;
  h->old = NULL;
  h->mover = NULL;
  h->is_merging = 0;
  h->seed = running = seed;
  h->r.s = seed * 0x9e3779b97f4a7c15u;
  h->kind = kinds[seed % 8];
  (void)corpus_path(h->fresh, sizeof h->fresh, "fresh");
  h->path = live_path;
  draw_settings(h);
  h->v = words_under(h->analyzer);
  h->desc.settings.path = h->path;
  h->desc.create = 1;
  open_live(h);
}

static void end(history *h) {
  end_merge(h);
  drop_old(h);
  gpuir_live_close(h->live);
  (void)folder_remove(h->path);
  free(h->p.words);
}

static void run_history(uint64_t seed) {
  static history h;
  unsigned steps;
  begin(&h, seed);
  steps = 1 + rng_below(&h.r, h.kind == LONG ? 150 : h.kind == BULK ? 12 : 40);
  if (h.kind == MANY_SEGMENTS) many_segments(&h);
  else
    while (steps--) step(&h);
  refresh(&h, 1 + rng_below(&h.r, BATCH));
  if (seed % 4 == 0) check_whole(&h);
  end(&h);
}

static void test_histories(void **state) {
  const uint64_t n = corpus_long_run() ? 100000 : 1000;
  uint64_t i;
  (void)state;
  for (i = 0; i < n; i++) run_history(1000 + i);
}

/* Removes what a history that failed left. */
static void remove_live(void) { (void)folder_remove(live_path); }

/* Prefers a folder in memory: a history makes and removes hundreds of files. */
static void choose_folder(void) {
  if (!access("/dev/shm", R_OK | W_OK | X_OK)) (void)setenv("TMPDIR", "/dev/shm", 1);
  (void)corpus_path(live_path, sizeof live_path, "live");
  (void)atexit(remove_live);
}

/* With two numbers, the seeds between them. */
static uint64_t range[2];

static void test_range(void **state) {
  uint64_t i;
  (void)state;
  for (i = range[0]; i < range[1]; i++) run_history(i);
}

int main(int argc, char **argv) {
  const struct CMUnitTest all[] = {cmocka_unit_test(test_histories)};
  const struct CMUnitTest some[] = {cmocka_unit_test(test_range)};
  int failed;
  choose_folder();
  if (argc == 3) {
    range[0] = strtoull(argv[1], NULL, 10);
    range[1] = strtoull(argv[2], NULL, 10);
    failed = cmocka_run_group_tests_name("histories", some, NULL, NULL);
  } else {
    failed = cmocka_run_group_tests_name("histories", all, NULL, NULL);
  }
  words_free();
  print_message("%lu snapshots, %lu merges, %lu whole merges, %lu comparisons, %lu hits; %lu queries left words out\n",
      checks, merges, wholes, compared, hits_compared, wide_cut);
  return failed;
}
