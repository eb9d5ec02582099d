/* 42_snapshot.c - an index of several segments answers as one built at once: collections are cut into pieces, and
 * every search of them is held against the oracle
 */
#include "private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rng.h"
#include "oracle.h"
#include "corpus.h"
#include "fixture.h"
#include "parts.h"

enum { PIECES = 60, ROUNDS = 4 };

/* A collection in pieces, each opened at each level, from which more documents are deleted in each round. */
typedef struct pieces {
  oracle all;
  size_t n;
  uint32_t ends[PIECES]; /* of the pieces, in documents */
  gpuir__segment *segment[LEVELS][PIECES];
  uint8_t *deleted; /* [document] */
} pieces;

static const gpuir_allocator *allocator; /* of segments; NULL: malloc */

/* Writes the pieces of p->all that end at p->ends, and opens them. */
static void open_pieces(pieces *p, const corpus_build *how) {
  const gpuir_allocator a = gpuir__allocator(allocator);
  gpuir_error err;
  char path[4200];
  uint32_t from = 0;
  size_t i;
  int level;
  (void)corpus_path(path, sizeof path, "piece.gpuir");
  p->deleted = (uint8_t *)calloc((size_t)p->all.ndocs + 1, 1);
  assert_non_null(p->deleted);
  for (i = 0; i < p->n; i++) {
    if (corpus_write_part(&p->all, from, p->ends[i], path, how, &err)) fail_msg("%s", err.msg);
    for (level = 0; level < LEVELS; level++) {
      gpuir_open_desc desc;
      memset(&desc, 0, sizeof desc);
      desc.simd = GPUIR_SIMD_SCALAR + level;
      if (gpuir__segment_open(&a, AT_FDCWD, path, &desc, &p->segment[level][i], &err)) fail_msg("%s", err.msg);
    }
    (void)unlink(path);
    from = p->ends[i];
  }
}

static void close_pieces(pieces *p) {
  size_t i;
  int level;
  for (level = 0; level < LEVELS; level++)
    for (i = 0; i < p->n; i++) gpuir__segment_close(p->segment[level][i]);
  free(p->deleted);
  oracle_free(&p->all);
}

/* Deletes a document from its piece. */
static void delete_document(pieces *p, uint32_t docid) {
  uint32_t from = 0;
  size_t i = 0;
  int level;
  if (p->deleted[docid]) return;
  p->deleted[docid] = 1;
  for (; p->ends[i] <= docid; i++) from = p->ends[i];
  docid -= from;
  for (level = 0; level < LEVELS; level++)
    assert_int_equal(gpuir__log_append(p->segment[level][i], &docid, 1), GPUIR_OK);
}

/* Makes an index of the pieces as they are now. before: an older one of the same, or NULL. */
static gpuir_index *snapshot(const pieces *p, int level, const gpuir_index *before) {
  const gpuir_allocator a = gpuir__allocator(NULL);
  gpuir__leaf leaves[PIECES];
  gpuir_index *ix;
  gpuir_error err;
  size_t i;
  for (i = 0; i < p->n; i++) {
    leaves[i].seg = gpuir__segment_retain(p->segment[level][i]);
    assert_int_equal(gpuir__deleted_make(leaves[i].seg, leaves[i].seg->log.n, before ? before->leaves[i].deleted : NULL,
                         &leaves[i].deleted),
        GPUIR_OK);
  }
  if (gpuir__index_make(&a, "pieces", NULL, leaves, p->n, before ? before->analysis.pool : NULL, &ix, &err))
    fail_msg("%s", err.msg);
  return ix;
}

/* Fills the fixture with an index at each level, and its oracle with the documents that are left. *docids is to be
 * freed. */
static void setup_pieces(fixture *f, const pieces *p, const fixture *before, uint32_t **docids) {
  const oracle *all = &p->all;
  uint32_t d, t;
  size_t i;
  int level;
  f->name = "pieces";
  f->nindexes = 0;
  f->k1 = plain.k1;
  f->b = plain.b;
  f->docid = *docids = (uint32_t *)oracle_grow(NULL, (size_t)all->ndocs + 1, sizeof **docids);
  oracle_init(&f->o);
  for (t = 0; t < all->nterms; t++) (void)oracle_term(&f->o, all->name[t], strlen(all->name[t]));
  for (d = 0; d < all->ndocs; d++) {
    if (p->deleted[d]) continue;
    (*docids)[f->o.ndocs] = d;
    for (i = all->doc_start[d]; i < all->doc_start[d + 1]; i++) oracle_add(&f->o, all->post[i].term, all->post[i].tf);
    oracle_doc(&f->o);
  }
  oracle_invert(&f->o);
  f->hits = (gpuir_hit *)oracle_grow(NULL, (size_t)f->o.ndocs + 16, sizeof *f->hits);
  for (level = 0; level < LEVELS; level++) {
    gpuir_index *ix = snapshot(p, level, before ? before->index[level] : NULL);
    f->searcher[f->nindexes * 2] = searcher_on(ix, GPUIR_EVAL_AUTO, 1);
    f->searcher[f->nindexes * 2 + 1] = searcher_on(ix, GPUIR_EVAL_EXHAUSTIVE, 1);
    f->index[f->nindexes++] = ix;
  }
}

static void test_pieces(void **state) {
  static const size_t counts[] = {2, 3, 10, PIECES};
  unsigned i, c;
  rng r;
  (void)state;
  r.s = 11;
  for (i = 0; i < sizeof counts / sizeof *counts; i++)
    for (c = 0; c < 7; c++) {
      uint32_t *docids;
      pieces p;
      fixture f;
      some_corpus(&p.all, c, i);
      p.n = counts[i];
      cut(&p.all, p.ends, p.n, &r);
      open_pieces(&p, &plain);
      setup_pieces(&f, &p, NULL, &docids);
      random_queries(&f, c < 5 ? 10 : 3, 8 + i, 0);
      teardown(&f);
      free(docids);
      close_pieces(&p);
    }
}

/* Deletes all documents of a term, or one in `of`, or those of a run. */
static void delete_some(pieces *p, unsigned how, rng *r) {
  const uint32_t n = p->all.ndocs, of = 1 + rng_below(r, 12), term = rng_below(r, p->all.nterms);
  const uint32_t from = rng_below(r, n), to = from + rng_below(r, n - from + 1);
  uint32_t d;
  for (d = 0; d < n; d++) {
    const uint32_t docid = how == 2 ? n - 1 - d : d; /* in any order */
    if (how == 0 && oracle_tf(&p->all, term, docid)) delete_document(p, docid);
    if (how == 1 && rng_below(r, of) == 0) delete_document(p, docid);
    if (how == 2 && docid >= from && docid < to) delete_document(p, docid);
    if (how == 3 && rng_below(r, n) < 3) delete_document(p, docid);
  }
}

/* Snapshots of different age, of the same segments, each answer by what was there when they were made. */
static void test_deletions(void **state) {
  static const size_t counts[] = {1, 3, 20};
  unsigned i, c, round, times = 0;
  rng r;
  (void)state;
  r.s = 12;
  for (i = 0; i < sizeof counts / sizeof *counts; i++)
    for (c = 0; c < 7; c++) {
      uint32_t *docids[ROUNDS];
      fixture f[ROUNDS];
      pieces p;
      some_corpus(&p.all, c, 50 + i);
      p.n = counts[i];
      cut(&p.all, p.ends, p.n, &r);
      open_pieces(&p, &plain);
      for (round = 0; round < ROUNDS; round++) {
        delete_some(&p, (round + c) % 4, &r);
        setup_pieces(&f[round], &p, round && (c + i) % 3 ? &f[round - 1] : NULL, &docids[round]);
      }
      for (round = 0; round < ROUNDS + 2; round++)
        random_queries(&f[rng_below(&r, ROUNDS)], c < 5 ? 5 : 2, 80 + times++, 0);
      for (round = 0; round < ROUNDS; round++) {
        teardown(&f[round]);
        free(docids[round]);
      }
      close_pieces(&p);
    }
}

/* All documents of a term, of a segment, and all there are. */
static void test_nothing_left(void **state) {
  static const char *const asked[] = {"w0", "w0 w1", "w1 w0 w0", "w1 -w0", "w2 w0"};
  unsigned round, i, mode;
  uint32_t d;
  pieces p;
  (void)state;
  oracle_init(&p.all);
  corpus_words(&p.all, 3);
  for (d = 0; d < 300; d++) {
    if (d % 10 == 3) oracle_add(&p.all, 0, 1 + d % 4);
    oracle_add(&p.all, 1, 1 + d % 3);
    if (d >= 200) oracle_add(&p.all, 2, 2);
    oracle_doc(&p.all);
  }
  p.n = 3;
  for (i = 0; i < 3; i++) p.ends[i] = 100 * (i + 1);
  open_pieces(&p, &plain);
  for (round = 0; round < 4; round++) {
    uint32_t *docids;
    fixture f;
    for (d = 0; d < 300; d++)
      if (round == 3 || (round == 2 && d >= 100 && d < 200) || (round && d % 10 == 3)) delete_document(&p, d);
    setup_pieces(&f, &p, NULL, &docids);
    random_queries(&f, 20, 5, 1);
    for (i = 0; i < sizeof asked / sizeof *asked; i++)
      for (mode = 0; mode < 3; mode++) {
        /* the greatest k1 takes the sum of weights over its range, unless w0 is unknown */
        static const float edge[2] = {1000.0f, 0.5f};
        uint32_t df = 99;
        uint64_t cf = 99;
        int status;
        gpuir_query *q = parse(f.index[0], asked[i], strlen(asked[i]), (int)mode, i % 2 ? edge : NULL, &status);
        assert_int_equal(status, i == 1 && !round ? GPUIR_E_RANGE : GPUIR_OK);
        if (status) continue;
        assert_int_equal(q->nunknown, (i != 3 && round) + (round == 3 && i));
        assert_int_equal(gpuir_term_count(f.index[0], "w0", 2, &df, &cf), round ? GPUIR_E_NOT_FOUND : GPUIR_OK);
        assert_int_equal(df, round ? 0 : 30);
        assert_true(round ? cf == 0 : cf > 30);
        gpuir_query_destroy(q);
      }
    teardown(&f);
    free(docids);
  }
  close_pieces(&p);
}

/* The best documents of lists that are decoded whole, and of longer ones with stored seeds, in one segment or in two,
 * are deleted: what they contributed must not raise the threshold. */
static void test_best_deleted(void **state) {
  static const uint32_t n[] = {300, 3000, 9000, 9000};
  unsigned i, j;
  (void)state;
  for (i = 0; i < 4; i++) {
    uint32_t *docids, d;
    fixture f;
    pieces p;
    oracle_init(&p.all);
    corpus_words(&p.all, 3);
    for (d = 0; d < n[i]; d++) {
      oracle_add(&p.all, 0, d % 7 == 1 ? 1 : d < 12 ? 100 - d : 1);
      if (d % 3 == 0) oracle_add(&p.all, 1, d < 12 ? 50 : 1);
      if (d % 2) oracle_add(&p.all, 2, 1);
      oracle_doc(&p.all);
    }
    p.n = i < 3 ? 1 : 2;
    p.ends[0] = i < 3 ? n[i] : 4700;
    p.ends[1] = n[i];
    open_pieces(&p, &plain);
    for (j = 0; j < 4; j++) {
      oracle_query q;
      rng r;
      r.s = j;
      if (j == 1) delete_document(&p, 9); /* the tenth */
      for (d = 0; d < 12 && j == 2; d++) delete_document(&p, d);
      for (d = 0; d < n[i] && j == 3; d++)
        if (d % 500) delete_document(&p, d); /* fewer are left than are asked for */
      setup_pieces(&f, &p, NULL, &docids);
      memset(&q, 0, sizeof q);
      q.n = 1;
      check_query(&f, &q, NULL, &r, 1);
      q.n = 2;
      q.word[1].term = 1;
      check_query(&f, &q, NULL, &r, 1);
      q.n = 3;
      q.word[2].term = 2;
      check_query(&f, &q, NULL, &r, 1);
      q.word[2].negated = 1;
      check_query(&f, &q, NULL, &r, 1);
      teardown(&f);
      free(docids);
    }
    close_pieces(&p);
  }
}

/* What was counted for fewer deletions is not read again: only new ones are looked up, and an older snapshot
 * subtracts. */
static void test_counts_are_kept(void **state) {
  uint32_t d, df, want;
  gpuir_index *ix[3];
  uint64_t decoded;
  pieces p;
  unsigned i, j;
  (void)state;
  oracle_init(&p.all);
  corpus_words(&p.all, 1);
  for (d = 0; d < 200000; d++) {
    if (d % 2 == 0) oracle_add(&p.all, 0, 1);
    oracle_doc(&p.all);
  }
  p.n = 1;
  p.ends[0] = 200000;
  open_pieces(&p, &plain);
  for (d = 0; d < 200000; d += 20) delete_document(&p, d);
  ix[0] = snapshot(&p, 0, NULL);
  for (d = 0; d < 10; d++) delete_document(&p, 1002 + 20000 * (d % 10));
  ix[1] = snapshot(&p, 0, ix[0]);
  for (d = 0; d < 10; d++) delete_document(&p, 1004 + 20000 * (d % 10));
  ix[2] = snapshot(&p, 0, ix[1]);
  for (j = 0; j < 20; j++) {
    i = j < 3 ? j : (j * 7 + j / 3) % 3;
    decoded = p.segment[0][0]->log.decoded;
    assert_int_equal(gpuir_term_count(ix[i], "w0", 2, &df, NULL), GPUIR_OK);
    want = 100000 - 10000 - 10 * i;
    assert_int_equal(df, want);
    decoded = p.segment[0][0]->log.decoded - decoded;
    if (j == 0) assert_int_equal(decoded, (100000 - 1) / 128 + 1);
    else assert_in_range(decoded, 0, 20);
  }
  for (i = 0; i < 3; i++) gpuir_close(ix[i]);
  close_pieces(&p);
}

/* ---- a time limit that is over while documents are counted ---- */

/* Lists of pfd-list take memory while they are read: by that, a test knows when a segment's are, and acts then. */
static unsigned lists_read, act_at;
static int flag; /* not 0 from then on */
static uint64_t passed; /* the time then */

static void *count_lists(void *user, void *p, size_t old_size, size_t new_size) {
  (void)user;
  (void)old_size;
  if (new_size && ++lists_read == act_at) {
    flag = 1;
    passed = gpuir__now();
  }
  if (new_size) return realloc(p, new_size);
  free(p);
  return NULL;
}

/* Parses a query while the lists of all segments are read for its terms; at the act_at-th the time is over and the
 * search is cancelled. Returns the query. */
static gpuir_query *parse_until(const gpuir_index *ix, int mode) {
  static const char text[] = "w0 w1 -w2 w*";
  gpuir_query_desc desc;
  gpuir_query *q = NULL;
  memset(&desc, 0, sizeof desc);
  desc.mode = mode;
  flag = 0;
  lists_read = 0;
  passed = 0;
  assert_int_equal(gpuir_query_parse(ix, &desc, text, sizeof text - 1, &q, NULL), GPUIR_OK);
  return q;
}

/* Neither a search nor a count reads a block when its time was over, or it was cancelled, before it began. */
static void assert_ended(gpuir_searcher *s, const gpuir_query *q) {
  gpuir_searcher_info before, after;
  gpuir_batch_desc desc;
  gpuir_batch *b;
  gpuir_hit hits[10];
  uint64_t matches = 7;
  uint32_t count = 7;
  size_t n = 7;
  int status = GPUIR_OK;
  gpuir_searcher_get_info(s, &before);
  assert_int_equal(gpuir_search(s, q, hits, 10, &n), GPUIR_E_CANCELLED);
  assert_int_equal(n, 0);
  assert_int_equal(gpuir_count(s, q, &matches), GPUIR_E_CANCELLED);
  flag = 0;
  memset(&desc, 0, sizeof desc);
  desc.queries = &q;
  desc.nq = 1;
  desc.k = 10;
  desc.hits = hits;
  desc.counts = &count;
  desc.statuses = &status;
  desc.deadlines = &passed;
  assert_int_equal(gpuir_search_begin(s, &desc, &b), GPUIR_OK);
  assert_int_equal(gpuir_search_finish(b), GPUIR_E_DEADLINE);
  assert_int_equal(status, GPUIR_E_DEADLINE);
  assert_int_equal(count, 0);
  gpuir_searcher_get_info(s, &after);
  assert_int_equal(after.blocks_decoded, before.blocks_decoded);
}

/* Returns how many blocks have been read for counts in all segments. */
static uint64_t counted_blocks(const pieces *p) {
  uint64_t sum = 0;
  size_t i;
  for (i = 0; i < p->n; i++) sum += p->segment[0][i]->log.decoded;
  return sum;
}

enum { TIMED = 40000, TIMED_WORDS = 3, TIMED_PARTS = 5 };

/* Opens pieces whose lists take memory while they are read. */
static void open_timed(pieces *p) {
  static const corpus_build list = {"pfd-list", NULL, 0, 0.9f, 0.4f, 1 << 20, 1, 0};
  gpuir_allocator counting;
  uint32_t d, t;
  memset(&counting, 0, sizeof counting);
  counting.resize = count_lists;
  oracle_init(&p->all);
  corpus_words(&p->all, TIMED_WORDS);
  for (d = 0; d < TIMED; d++) {
    for (t = 0; t < TIMED_WORDS; t++)
      if (d % (t + 1) == 0) oracle_add(&p->all, t, 1 + d % 3);
    oracle_doc(&p->all);
  }
  p->n = TIMED_PARTS;
  for (t = 0; t < TIMED_PARTS; t++) p->ends[t] = TIMED / TIMED_PARTS * (t + 1);
  allocator = &counting;
  open_pieces(p, &list);
  allocator = NULL;
}

/* Asks with what was parsed while the time ended, and with what is parsed now, for which nothing is counted again. */
static void assert_counted(const pieces *p, gpuir_searcher *s, const gpuir_index *ix, const gpuir_query *q, int mode) {
  const uint64_t blocks = counted_blocks(p);
  gpuir_query *again = parse_until(ix, mode);
  gpuir_hit hits[2][10];
  size_t n[2];
  assert_int_equal(lists_read, 0);
  assert_int_equal(counted_blocks(p), blocks);
  assert_int_equal(gpuir_search(s, q, hits[0], 10, &n[0]), GPUIR_OK);
  assert_int_equal(gpuir_search(s, again, hits[1], 10, &n[1]), GPUIR_OK);
  assert_int_equal(n[0], 10);
  assert_int_equal(n[1], 10);
  assert_memory_equal(hits[0], hits[1], sizeof hits[0]);
  gpuir_query_destroy(again);
}

/* At whichever list of whichever segment the time ends in which documents are counted: what was counted is right and
 * kept, the search that follows ends at once, and the next one, which has time, answers. */
static void test_time_is_over_while_counting(void **state) {
  gpuir_searcher_desc desc;
  gpuir_index *before = NULL;
  uint32_t deleted = 0;
  pieces p;
  unsigned t;
  (void)state;
  memset(&desc, 0, sizeof desc);
  desc.cancel = &flag;
  open_timed(&p);
  for (act_at = 1;; act_at++) {
    const int mode = (int)(act_at % 3);
    gpuir_index *ix;
    gpuir_searcher *s;
    gpuir_query *q;
    uint32_t df;
    int done;
    for (t = 0; t < TIMED_PARTS; t++) delete_document(&p, TIMED / TIMED_PARTS * t + act_at * 6); /* all count anew */
    deleted += TIMED_PARTS;
    ix = snapshot(&p, 0, before);
    gpuir_close(before);
    before = ix;
    assert_int_equal(gpuir_searcher_create(ix, &desc, &s, NULL), GPUIR_OK);
    q = parse_until(ix, mode);
    done = !passed;
    if (!done) assert_ended(s, q);
    assert_int_equal(gpuir_term_count(ix, "w0", 2, &df, NULL), GPUIR_OK);
    assert_int_equal(df, TIMED - deleted);
    assert_counted(&p, s, ix, q, mode);
    gpuir_query_destroy(q);
    gpuir_searcher_destroy(s);
    if (done) break;
  }
  assert_in_range(act_at - 1, TIMED_WORDS * TIMED_PARTS, 1000); /* in each segment, for each term */
  gpuir_close(before);
  close_pieces(&p);
}

/* A log of documents that are none, or that stand twice, is refused; one that goes on otherwise than the segment's
 * too. */
static void test_logs(void **state) {
  static const uint32_t first[] = {5, 3, 70, 71, 72}, other[] = {5, 4}, twice[] = {1, 2, 1}, none[] = {1, 100};
  const gpuir_allocator a = gpuir__allocator(NULL);
  gpuir__deleted *set, *more;
  gpuir__segment *seg;
  gpuir_error err;
  char path[4200];
  uint32_t i, many[5000];
  oracle o;
  (void)state;
  corpus_classes(&o, 100, 3, 5);
  (void)corpus_path(path, sizeof path, "log.gpuir");
  assert_int_equal(corpus_write(&o, path, NULL, &err), GPUIR_OK);
  for (i = 0; i < 3; i++) {
    assert_int_equal(gpuir__segment_open(&a, AT_FDCWD, path, NULL, &seg, &err), GPUIR_OK);
    if (i == 0) {
      assert_int_equal(gpuir__log_extend(seg, first, 3), GPUIR_OK);
      assert_int_equal(gpuir__deleted_make(seg, 3, NULL, &set), GPUIR_OK);
      assert_int_equal(gpuir__log_extend(seg, other, 2), GPUIR_E_FORMAT);
      assert_int_equal(gpuir__log_extend(seg, first, 2), GPUIR_OK);
      assert_int_equal(seg->log.n, 3);
      assert_int_equal(gpuir__log_extend(seg, first, 5), GPUIR_OK);
      assert_int_equal(gpuir__deleted_make(seg, 5, set, &more), GPUIR_OK);
      assert_int_equal(more->tokens, o.dl[5] + o.dl[3] + o.dl[70] + o.dl[71] + o.dl[72]);
      assert_true(gpuir__deleted_has(more, 72) && !gpuir__deleted_has(set, 72) && gpuir__deleted_has(set, 70));
      gpuir__deleted_close(more);
      assert_int_equal(gpuir__deleted_make(seg, 3, set, &more), GPUIR_OK);
      assert_ptr_equal(more, set);
      gpuir__deleted_close(more);
      gpuir__deleted_close(set);
      assert_int_equal(gpuir__deleted_make(seg, 0, NULL, &set), GPUIR_OK);
      assert_null(set);
    } else {
      assert_int_equal(gpuir__log_extend(seg, i == 1 ? twice : none, i == 1 ? 3 : 2), GPUIR_OK);
      assert_int_equal(gpuir__deleted_make(seg, i == 1 ? 3 : 2, NULL, &set), GPUIR_E_FORMAT);
      assert_null(set);
    }
    gpuir__segment_close(seg);
  }
  assert_int_equal(gpuir__segment_open(&a, AT_FDCWD, path, NULL, &seg, &err), GPUIR_OK);
  for (i = 0; i < 5000; i++) many[i] = i * 7;
  for (i = 1; i <= 5000; i += 1 + i / 3) assert_int_equal(gpuir__log_extend(seg, many, i), GPUIR_OK);
  for (i = 0; i < seg->log.n; i++) assert_int_equal(gpuir__log_get(&seg->log, i), 7 * i);
  assert_true(seg->log.n > 3000);
  gpuir__segment_close(seg);
  oracle_free(&o);
}

/* Every list is decoded whole, and the best hit lies in the first of two segments: the second must not empty the heap
 * that has it. */
static void test_best_hit_in_the_first(void **state) {
  gpuir_query_desc desc;
  gpuir_searcher *s;
  gpuir_query *q;
  gpuir_hit hits[10];
  gpuir_index *ix;
  gpuir_error err;
  pieces p;
  size_t n;
  uint32_t d;
  (void)state;
  oracle_init(&p.all);
  corpus_words(&p.all, 3);
  for (d = 0; d < 600; d++) {
    oracle_add(&p.all, 0, d == 7 ? 50 : 1);
    oracle_add(&p.all, 1, 1);
    oracle_add(&p.all, 2, 1 + d % 5);
    oracle_doc(&p.all);
  }
  p.n = 2;
  p.ends[0] = 300;
  p.ends[1] = 600;
  open_pieces(&p, NULL);
  ix = snapshot(&p, 2, NULL);
  memset(&desc, 0, sizeof desc);
  desc.mode = GPUIR_OR;
  desc.custom_bm25 = 1;
  desc.k1 = 1.2f;
  s = searcher_on(ix, GPUIR_EVAL_AUTO, 1);
  if (gpuir_query_parse(ix, &desc, "w0 w1", 5, &q, &err)) fail_msg("%s", err.msg);
  assert_int_equal(gpuir_search(s, q, hits, 10, &n), GPUIR_OK);
  assert_int_equal(n, 10);
  assert_int_equal(hits[0].docid, 7);
  gpuir_query_destroy(q);
  gpuir_searcher_destroy(s);
  gpuir_close(ix);
  close_pieces(&p);
}

/* AND+OR is decided over all segments together: k - 1 matches of AND in one and 1 in the other are k. */
static void test_and_or_over_all(void **state) {
  static const unsigned wanted[] = {1, 4, 5, 6};
  gpuir_searcher *s;
  gpuir_index *ix;
  pieces p;
  unsigned i;
  uint32_t d;
  (void)state;
  oracle_init(&p.all);
  corpus_words(&p.all, 2);
  for (d = 0; d < 200; d++) {
    oracle_add(&p.all, 0, d % 3 + 1);
    if (d >= 96 && d <= 100) oracle_add(&p.all, 1, 1); /* four in the first segment, one in the second */
    oracle_doc(&p.all);
  }
  p.n = 2;
  p.ends[0] = 100;
  p.ends[1] = 200;
  open_pieces(&p, NULL);
  ix = snapshot(&p, 2, NULL);
  s = searcher_on(ix, GPUIR_EVAL_AUTO, 1);
  for (i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    gpuir_query_desc desc;
    gpuir_hit hits[10];
    gpuir_query *q;
    gpuir_error err;
    size_t n, j;
    memset(&desc, 0, sizeof desc);
    desc.mode = GPUIR_ANDOR;
    if (gpuir_query_parse(ix, &desc, "w0 w1", 5, &q, &err)) fail_msg("%s", err.msg);
    assert_int_equal(gpuir_search(s, q, hits, wanted[i], &n), GPUIR_OK);
    assert_int_equal(n, wanted[i]);
    for (j = 0; j < n && wanted[i] <= 5; j++) assert_in_range(hits[j].docid, 96, 100);
    gpuir_query_destroy(q);
  }
  gpuir_searcher_destroy(s);
  gpuir_close(ix);
  close_pieces(&p);
}

/* Of a segment that lacks a word that is required, no other word's list is opened. */
static void test_lacking_segments(void **state) {
  enum { DOCUMENTS = 4000, PARTS = 4 };
  uint32_t d, t;
  gpuir_index *ix;
  pieces p;
  int mode;
  (void)state;
  oracle_init(&p.all);
  corpus_words(&p.all, 3);
  for (d = 0; d < DOCUMENTS; d++) {
    oracle_add(&p.all, 0, 1);
    if (d >= DOCUMENTS - DOCUMENTS / PARTS) oracle_add(&p.all, 1, 1);
    if (d % 3 == 0) oracle_add(&p.all, 2, 1);
    oracle_doc(&p.all);
  }
  p.n = PARTS;
  for (t = 0; t < PARTS; t++) p.ends[t] = DOCUMENTS / PARTS * (t + 1);
  open_pieces(&p, &plain);
  ix = snapshot(&p, 0, NULL);
  for (mode = GPUIR_AND; mode <= GPUIR_OR; mode++) {
    gpuir_searcher *s = searcher_on(ix, GPUIR_EVAL_AUTO, 1);
    const uint64_t blocks = DOCUMENTS / PARTS / 128 + 1; /* of a word that all documents of a segment have */
    const uint64_t want = (mode == GPUIR_AND ? 2 : PARTS + 1) * blocks;
    gpuir_query *q;
    gpuir_searcher_info info;
    gpuir_hit hits[5];
    uint64_t matches;
    size_t n;
    int status;
    q = parse(ix, "w0 w1", 5, mode, NULL, &status);
    assert_int_equal(status, GPUIR_OK);
    assert_int_equal(gpuir_count(s, q, &matches), GPUIR_OK);
    assert_int_equal(matches, mode == GPUIR_AND ? DOCUMENTS / PARTS : DOCUMENTS);
    gpuir_searcher_get_info(s, &info);
    assert_int_equal(info.blocks_total, want);
    assert_int_equal(gpuir_search(s, q, hits, 5, &n), GPUIR_OK);
    assert_int_equal(n, 5);
    gpuir_searcher_get_info(s, &info);
    assert_int_equal(info.blocks_total, 2 * want);
    gpuir_query_destroy(q);
    gpuir_searcher_destroy(s);
  }
  gpuir_close(ix);
  close_pieces(&p);
}

/* What has numbers of terms says that it needs one segment; each segment by itself has them. */
static void test_several_segments(void **state) {
  gpuir_codec_info codecs[GPUIR_MAX_CODECS];
  const gpuir_index *one;
  gpuir_index_info info;
  gpuir_term_info term;
  gpuir_cursor *cursor;
  gpuir_index *ix;
  gpuir_error err;
  gpuir_doc doc;
  pieces p;
  uint32_t d, base = 99, df, docids[40];
  uint64_t id, cf;
  size_t n;
  (void)state;
  oracle_init(&p.all);
  corpus_words(&p.all, 2);
  for (d = 0; d < 30; d++) {
    oracle_add(&p.all, 0, d + 1);
    if (d >= 10) oracle_add(&p.all, 1, 2);
    oracle_doc(&p.all);
  }
  p.n = 3;
  p.ends[0] = p.ends[1] = 10;
  p.ends[2] = 30;
  open_pieces(&p, NULL);
  ix = snapshot(&p, 2, NULL);
  assert_int_equal(gpuir_index_get_info(ix, &info), GPUIR_OK);
  assert_int_equal(info.documents, 30);
  assert_int_equal(info.docids, 30);
  assert_int_equal(info.segments, 3);
  assert_int_equal(info.tokens, p.all.tokens);
  assert_int_equal(info.postings, 50);
  assert_int_equal(info.terms, 3);
  assert_int_equal(gpuir_term_find(ix, "w0", 2, &id), GPUIR_E_UNSUPPORTED);
  assert_int_equal(gpuir_terms_find(ix, NULL, NULL, 0, NULL), GPUIR_E_UNSUPPORTED);
  assert_int_equal(gpuir_term_lower_bound(ix, "w1", 2), 0);
  assert_int_equal(gpuir_term_get_info(ix, 0, &term), GPUIR_E_UNSUPPORTED);
  assert_int_equal(gpuir_term_postings(ix, 0, docids, NULL), GPUIR_E_UNSUPPORTED);
  assert_int_equal(gpuir_cursor_open(ix, 0, &cursor, &err), GPUIR_E_UNSUPPORTED);
  assert_non_null(strstr(err.msg, "merge it first"));
  assert_null(cursor);
  assert_int_equal(gpuir_term_count(ix, "w0", 2, &df, &cf), GPUIR_OK);
  assert_int_equal(df, 30);
  assert_int_equal(cf, 30 * 31 / 2);
  assert_int_equal(gpuir_term_count(ix, "w1", 2, &df, NULL), GPUIR_OK);
  assert_int_equal(df, 20);
  assert_int_equal(gpuir_term_count(ix, "w2", 2, &df, &cf), GPUIR_E_NOT_FOUND);
  assert_int_equal(df, 0);
  assert_int_equal(gpuir_term_count(ix, NULL, 2, &df, &cf), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_codec_get_info(ix, 1, codecs, &n), GPUIR_OK);
  assert_int_equal(n, 1);
  assert_int_equal(codecs[0].postings, 50);
  for (d = 0; d < 30; d++) {
    assert_int_equal(gpuir_doc_get(ix, d, &doc), GPUIR_OK);
    assert_int_equal(doc.length, p.all.dl[d]);
  }
  assert_int_equal(gpuir_doc_get(ix, 30, &doc), GPUIR_E_NOT_FOUND);
  assert_int_equal(gpuir_doc_get(ix, UINT32_MAX, &doc), GPUIR_E_NOT_FOUND);
  one = gpuir_index_segment(ix, 2, &base);
  assert_non_null(one);
  assert_int_equal(base, 10);
  assert_int_equal(gpuir_term_find(one, "w1", 2, &id), GPUIR_OK);
  assert_int_equal(gpuir_term_postings(one, id, docids, NULL), GPUIR_OK);
  assert_int_equal(docids[19], 19);
  assert_ptr_equal(gpuir_index_segment(one, 0, &base), one);
  assert_int_equal(base, 0);
  assert_null(gpuir_index_segment(ix, 3, &base));
  assert_null(gpuir_index_segment(NULL, 0, NULL));
  assert_int_equal(gpuir_verify(ix, &err), GPUIR_OK);
  assert_int_equal(gpuir_verify_directory(ix, &err), GPUIR_OK);
  gpuir_close(ix);
  delete_document(&p, 3);
  delete_document(&p, 29);
  ix = snapshot(&p, 2, NULL);
  assert_int_equal(gpuir_index_get_info(ix, &info), GPUIR_OK);
  assert_int_equal(info.documents, 28);
  assert_int_equal(info.docids, 30);
  assert_int_equal(info.tokens, p.all.tokens - p.all.dl[3] - p.all.dl[29]);
  assert_int_equal(info.postings, 50);
  for (d = 0; d < 31; d++)
    assert_int_equal(gpuir_doc_get(ix, d, &doc), d == 3 || d == 29 || d == 30 ? GPUIR_E_NOT_FOUND : GPUIR_OK);
  assert_int_equal(gpuir_term_count(ix, "w0", 2, &df, &cf), GPUIR_OK);
  assert_int_equal(df, 28);
  assert_int_equal(cf, 30 * 31 / 2 - 4 - 30);
  one = gpuir_index_segment(ix, 2, &base);
  assert_int_equal(gpuir_index_get_info(one, &info), GPUIR_OK);
  assert_int_equal(info.documents, 20); /* without its deletions */
  assert_int_equal(gpuir_doc_get(one, 19, &doc), GPUIR_OK);
  gpuir_close(ix);
  close_pieces(&p);
}

/* One segment has numbers of terms as long as nothing is deleted from it; by itself it always has. */
static void test_deletions_take_numbers(void **state) {
  gpuir_term_info term;
  gpuir_cursor *cursor;
  const gpuir_index *one;
  gpuir_index *ix;
  gpuir_error err;
  pieces p;
  uint32_t docids[20], df;
  uint64_t id;
  unsigned deleted;
  (void)state;
  corpus_classes(&p.all, 20, 1, 5);
  p.n = 1;
  p.ends[0] = 20;
  open_pieces(&p, NULL);
  for (deleted = 0; deleted < 2; deleted++) {
    const int status = deleted ? GPUIR_E_UNSUPPORTED : GPUIR_OK;
    if (deleted) delete_document(&p, 4);
    ix = snapshot(&p, 2, NULL);
    assert_int_equal(gpuir_term_find(ix, "w0", 2, &id), status);
    assert_int_equal(gpuir_term_get_info(ix, 0, &term), status);
    assert_int_equal(gpuir_term_postings(ix, 0, docids, NULL), status);
    assert_int_equal(gpuir_cursor_open(ix, 0, &cursor, &err), status);
    if (deleted) assert_non_null(strstr(err.msg, "with deletions: merge it first"));
    gpuir_cursor_close(cursor);
    assert_int_equal(gpuir_term_count(ix, "w0", 2, &df, NULL), GPUIR_OK);
    assert_int_equal(df, 20 - deleted);
    one = gpuir_index_segment(ix, 0, NULL);
    assert_int_equal(gpuir_term_find(one, "w0", 2, &id), GPUIR_OK);
    assert_int_equal(gpuir_term_postings(one, id, docids, NULL), GPUIR_OK);
    assert_int_equal(docids[4], 4);
    gpuir_close(ix);
  }
  close_pieces(&p);
}

/* Segments that were built otherwise do not go together. */
static void test_other_settings(void **state) {
  const gpuir_allocator a = gpuir__allocator(NULL);
  corpus_build other;
  unsigned i;
  (void)state;
  for (i = 0; i < 3; i++) {
    gpuir__leaf leaves[2] = {{NULL, NULL, 0}, {NULL, NULL, 0}};
    gpuir_index *ix;
    gpuir_error err;
    char path[4200];
    oracle o;
    memset(&other, 0, sizeof other);
    if (i == 0) other.codec = "vbyte";
    if (i == 1) other.freq_codec = "vbyte";
    other.custom_bm25 = i == 2;
    other.k1 = 0.9f;
    other.b = 0.5f;
    corpus_classes(&o, 20, 3, 5);
    (void)corpus_path(path, sizeof path, "other.gpuir");
    assert_int_equal(corpus_write(&o, path, NULL, &err), GPUIR_OK);
    assert_int_equal(gpuir__segment_open(&a, AT_FDCWD, path, NULL, &leaves[0].seg, &err), GPUIR_OK);
    assert_int_equal(corpus_write(&o, path, &other, &err), GPUIR_OK);
    assert_int_equal(gpuir__segment_open(&a, AT_FDCWD, path, NULL, &leaves[1].seg, &err), GPUIR_OK);
    assert_int_equal(gpuir__index_make(&a, "two", NULL, leaves, 2, NULL, &ix, &err), GPUIR_E_FORMAT);
    assert_null(ix);
    assert_non_null(strstr(err.msg, "settings"));
    oracle_free(&o);
  }
}

/* Deleted documents among ascending ones are counted by vectors as one by one, wherever the bitmap ends. */
static void test_deleted_among(void **state) {
#if GPUIR__X86
  uint32_t round;
  (void)state;
  if (gpuir__simd_level(GPUIR_SIMD_AUTO) < GPUIR_SIMD_AVX512) skip();
  for (round = 0; round < 4000; round++) {
    const uint32_t words = 1 + below(round % 2 ? 30 : 300), most = 2 + below(round % 3 ? 40 : 600);
    gpuir__deleted *d = (gpuir__deleted *)calloc(1, sizeof *d + (words - 1) * sizeof *d->bits);
    uint32_t docs[GPUIR__BLOCK_ROOM], n = 0, count = 0, i, doc = below(most);
    assert_non_null(d);
    d->words = words;
    for (i = 0; i < words; i++) d->bits[i] = rng_next(&rng_shared) & rng_next(&rng_shared);
    memset(docs, 0xff, sizeof docs);
    for (; n < GPUIR__BLOCK && doc < 64 * words; doc += 1 + below(most)) docs[n++] = doc;
    for (i = 0; i < n; i++) count += (uint32_t)gpuir__deleted_has(d, docs[i]);
    assert_int_equal(gpuir__deleted_among_avx512(d, docs, n), count);
    free(d);
  }
#else
  (void)state;
  skip();
#endif
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_deleted_among),
      cmocka_unit_test(test_pieces),
      cmocka_unit_test(test_deletions),
      cmocka_unit_test(test_nothing_left),
      cmocka_unit_test(test_best_deleted),
      cmocka_unit_test(test_counts_are_kept),
      cmocka_unit_test(test_time_is_over_while_counting),
      cmocka_unit_test(test_logs),
      cmocka_unit_test(test_best_hit_in_the_first),
      cmocka_unit_test(test_and_or_over_all),
      cmocka_unit_test(test_lacking_segments),
      cmocka_unit_test(test_several_segments),
      cmocka_unit_test(test_deletions_take_numbers),
      cmocka_unit_test(test_other_settings),
  };
  int failed;
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  failed = cmocka_run_group_tests_name("42_snapshot", tests, NULL, NULL);
  print_message("%lu comparisons, %lu hits\n", compared, hits_compared);
  return failed;
}
