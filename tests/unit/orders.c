/* orders.c - searches with sort and collapse, and facets, in static and in live indexes, bit for bit those of an
 * oracle:
 * all matches without a where, by the exhaustive evaluator, which are filtered, ordered and counted by their raw values
 *
 * GPUIR_LONG=1 asks 100,000 queries.
 */
#include "small.h"
#include "private.h"

unsigned small_prefix_postings = 1u << 24;

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#include "rng.h"
#include "collection.h"
#include "columns.h"
#include "wheres.h"
#include "raw_index.h"

#define MOST 8000

/* A match, and the first values that it is ordered and collapsed by. */
typedef struct match {
  gpuir_hit hit;
  int has_order, has_group;
  raw_value order, group;
} match;

/* What is asked. */
typedef struct ask_case {
  char text[300];
  where_case where;
  gpuir_query_desc desc;
  char sort[80];
  size_t k;
  int sort_column, falling, collapse_column; /* -1: none */
} ask_case;

typedef struct searchers {
  gpuir_searcher *engine, *reference;
  gpuir_pool *pool;
} searchers;

static match ands[MOST], ors[MOST], kept[MOST];
static gpuir_hit got[MOST], both[2 * MOST];

/* ---- the oracle of hits */

static const ask_case *sorted_for; /* qsort hands nothing on */

static int compare_raw(unsigned column, const raw_value *x, const raw_value *y) {
  if (where_is_text(column)) return where_compare(column, x->text, y->text);
  return x->number < y->number ? -1 : x->number > y->number;
}

static int compare_matches(const void *a, const void *b) {
  const match *x = (const match *)a, *y = (const match *)b;
  int c = 0;
  if (sorted_for->sort_column < 0) {
    if (x->hit.score != y->hit.score) return x->hit.score > y->hit.score ? -1 : 1;
  } else {
    if (x->has_order != y->has_order) return x->has_order ? -1 : 1;
    if (x->has_order) c = compare_raw((unsigned)sorted_for->sort_column, &x->order, &y->order);
    if (c) return sorted_for->falling ? -c : c;
  }
  return x->hit.docid < y->hit.docid ? -1 : 1;
}

/* All matches in a mode that pass, with their values. */
static size_t matches_of(const searchers *s, const gpuir_index *ix, const ask_case *a, int mode, match *to) {
  gpuir_query_desc d = a->desc;
  gpuir_query *q;
  size_t n = 0, i, m = 0;
  raw_value v[8];
  d.where = d.sort = d.collapse = NULL;
  d.enough = 0;
  d.mode = mode;
  q = parsed_by(ix, a->text, &d);
  assert_non_null(q);
  assert_int_equal(gpuir_search(s->reference, q, both, MOST, &n), 0);
  for (i = 0; i < n; i++) {
    const uint32_t id = raw_number(ix, both[i].docid);
    match *x = &to[m];
    if (!where_passes(&a->where, id) && a->desc.where) continue;
    x->hit = both[i];
    x->has_order = a->sort_column >= 0 && raw_values(id, (unsigned)a->sort_column, v);
    if (x->has_order) x->order = v[0];
    x->has_group = a->collapse_column >= 0 && raw_values(id, (unsigned)a->collapse_column, v);
    if (x->has_group) x->group = v[0];
    m++;
  }
  gpuir_query_destroy(q);
  return m;
}

/* The best k, of each value one. */
static size_t best_of(const ask_case *a, match *from, size_t n) {
  size_t m = 0, i, j;
  sorted_for = a;
  qsort(from, n, sizeof *from, compare_matches);
  for (i = 0; i < n && m < a->k; i++) {
    for (j = 0; from[i].has_group && j < m; j++)
      if (kept[j].has_group && !compare_raw((unsigned)a->collapse_column, &kept[j].group, &from[i].group)) break;
    if (from[i].has_group && j < m) continue;
    kept[m++] = from[i];
  }
  return m;
}

static void same(const ask_case *a, size_t n, const gpuir_hit *hits, size_t nhits) {
  size_t i;
  if (n != nhits)
    print_error("%s, where %s, sort %s, collapse %s, k %u: %u hits of %u\n", a->text,
        a->desc.where ? a->desc.where : "", a->sort, a->desc.collapse ? a->desc.collapse : "", (unsigned)a->k,
        (unsigned)nhits, (unsigned)n);
  assert_int_equal(nhits, n);
  for (i = 0; i < n; i++) {
    if (hits[i].docid != kept[i].hit.docid || hits[i].score != kept[i].hit.score)
      print_error("%s, where %s, sort %s, collapse %s, k %u, mode %d: hit %u is %u:%u, not %u:%u\n", a->text,
          a->desc.where ? a->desc.where : "", a->sort, a->desc.collapse ? a->desc.collapse : "", (unsigned)a->k,
          a->desc.mode, (unsigned)i, hits[i].docid, hits[i].score, kept[i].hit.docid, kept[i].hit.score);
    assert_true(hits[i].docid == kept[i].hit.docid && hits[i].score == kept[i].hit.score);
  }
}

/* What a quarter of the queries is expanded by. */
static gpuir_expansion expansion;

static void expansion_make(rng *r) {
  unsigned i;
  memset(&expansion, 0, sizeof expansion);
  expansion.n = 1 + rng_below(r, 3);
  for (i = 0; i < expansion.n; i++) {
    expansion.terms[i].len = (uint8_t)sprintf(expansion.terms[i].term, "w%u", 20 * i + rng_below(r, 20));
    expansion.terms[i].weight = 1 + rng_below(r, 65536);
  }
}

static void case_make(rng *r, ask_case *a) {
  static const size_t ks[] = {1, 2, 5, 10, 40, MOST};
  memset(a, 0, sizeof *a);
  query_text(r, a->text);
  a->desc.all = rng_below(r, 8) == 0;
  if (a->desc.all) (void)snprintf(a->text, sizeof a->text, rng_below(r, 2) ? "-w%u" : "", rng_below(r, 60));
  where_make(r, &a->where);
  if (rng_below(r, 2)) a->desc.where = a->where.text;
  a->desc.mode = (int)rng_below(r, 3);
  a->k = ks[rng_below(r, 6)];
  if (rng_below(r, 2)) a->desc.stop = "w1 w4 w8 w12 w20";
  if (rng_below(r, 3) == 0) a->desc.enough = 1 + rng_below(r, 12);
  if (!a->desc.all && rng_below(r, 4) == 0) a->desc.expansion = &expansion;
  expansion_make(r);
  a->sort_column = rng_below(r, 4) ? (int)rng_below(r, NCOLUMNS) : -1;
  a->collapse_column = rng_below(r, 2) ? (int)rng_below(r, NCOLUMNS) : -1;
  a->falling = a->sort_column >= 0 && rng_below(r, 2);
  if (a->sort_column >= 0)
    (void)snprintf(a->sort, sizeof a->sort, "%s%s", a->falling ? "-" : "", column_fields[a->sort_column].name);
  a->desc.sort = a->sort;
  a->desc.collapse = a->collapse_column >= 0 ? column_fields[a->collapse_column].name : NULL;
}

/* ---- the oracle of facets */

typedef struct raw_facet {
  char text[80];
  int64_t low, high;
  uint64_t count;
} raw_facet;

/* A column that is asked for. */
typedef struct facet_case {
  char spec[200];
  unsigned column;
  char folder[80];
  int by; /* 0: values; 1: folders; 2: ranges; 3, 4, 5: years, months, days */
  unsigned most;
  int64_t borders[4];
  unsigned nborders;
} facet_case;

static raw_facet raws[6 * MOST], facets[6 * MOST];
static unsigned facet_column;

static int compare_texts(const void *a, const void *b) {
  const raw_facet *x = (const raw_facet *)a, *y = (const raw_facet *)b;
  if (*x->text || *y->text) return where_compare(facet_column, x->text, y->text);
  return x->low < y->low ? -1 : x->low > y->low;
}

static int compare_counts(const void *a, const void *b) {
  const raw_facet *x = (const raw_facet *)a, *y = (const raw_facet *)b;
  if (x->count != y->count) return x->count > y->count ? -1 : 1;
  return compare_texts(a, b);
}

/* Counts the days from 1970 on, one year and one month after the other; month 0 is January, 12 the next one. */
static int64_t second_of(int year, int month, int day) {
  static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  int64_t n = day - 1;
  int y, m;
  for (y = 1970; y < year; y++) n += y % 4 == 0 && (y % 100 || y % 400 == 0) ? 366 : 365;
  for (m = 0; m < month; m++) n += days[m] + (m == 1 && year % 4 == 0 && (year % 100 || year % 400 == 0));
  return n * 86400;
}

/* Finds what a value is counted in; 0: in nothing. */
static int bucket(const facet_case *f, const raw_value *v, raw_facet *x) {
  const time_t at = (time_t)v->number;
  const size_t n = strlen(f->folder);
  const char *end;
  struct tm tm;
  unsigned i;
  memset(x, 0, sizeof *x);
  x->low = x->high = v->number;
  (void)strcpy(x->text, v->text);
  if (f->by == 1) {
    if (n && (strncmp(v->text, f->folder, n) != 0 || v->text[n] != '/')) return 0;
    end = v->text[n ? n + 1 : 1] ? strchr(v->text + (n ? n + 1 : 1), '/') : NULL;
    if (end) x->text[end - v->text] = 0;
  } else if (f->by == 2) {
    x->low = INT64_MIN;
    x->high = INT64_MAX;
    for (i = 0; i < f->nborders; i++) {
      if (v->number >= f->borders[i]) x->low = f->borders[i];
      else if (x->high == INT64_MAX) x->high = f->borders[i] - 1;
    }
  } else if (f->by >= 3) {
    (void)gmtime_r(&at, &tm);
    x->low = second_of(tm.tm_year + 1900, f->by > 3 ? tm.tm_mon : 0, f->by > 4 ? tm.tm_mday : 1);
    x->high = second_of(tm.tm_year + 1900 + (f->by == 3), f->by == 3 ? 0 : tm.tm_mon + (f->by == 4),
                  f->by > 4 ? tm.tm_mday + 1 : 1) -
        1;
  }
  return 1;
}

/* Counts the facets of n matches; returns how many there are. */
static size_t facets_of(const gpuir_index *ix, const facet_case *f, const match *from, size_t n) {
  size_t i, m = 0, nfacets = 0;
  unsigned j, l;
  for (i = 0; i < n; i++) {
    raw_value v[8];
    const unsigned count = raw_values(raw_number(ix, from[i].hit.docid), f->column, v);
    const size_t first = m;
    for (j = 0; j < count; j++) {
      size_t before;
      if (!bucket(f, &v[j], &raws[m])) continue;
      for (before = first; before < m && strcmp(raws[before].text, raws[m].text) != 0; before++) {}
      m += before == m; /* a document counts once for a folder */
    }
  }
  for (l = 0; f->by == 2 && l <= f->nborders; l++) { /* ranges without documents, too */
    raw_facet x = {"", l ? f->borders[l - 1] : INT64_MIN, l < f->nborders ? f->borders[l] - 1 : INT64_MAX, 0};
    if (l || f->borders[0] != INT64_MIN) facets[nfacets++] = x;
  }
  facet_column = f->column;
  qsort(raws, m, sizeof *raws, compare_texts);
  for (i = 0; i < m; i++) {
    size_t at = nfacets;
    if (f->by == 2)
      for (at = 0; facets[at].low != raws[i].low; at++) {}
    else if (nfacets && !compare_texts(&facets[nfacets - 1], &raws[i])) at = nfacets - 1;
    if (at == nfacets) facets[nfacets++] = raws[i];
    facets[at].count++;
  }
  if (where_is_text(f->column)) qsort(facets, nfacets, sizeof *facets, compare_counts);
  return f->most && f->most < nfacets ? f->most : nfacets;
}

static void facet_make(rng *r, facet_case *f) {
  static const char *const units[] = {"year", "month", "day"};
  static const char *const folders[] = {"", "src", "src/a", "/usr", "none", "src/a/b", "/", "s"};
  where_end e;
  unsigned i;
  memset(f, 0, sizeof *f);
  f->column = rng_below(r, NCOLUMNS);
  (void)strcpy(f->spec, column_fields[f->column].name);
  if (rng_below(r, 3) == 0) return;
  if (column_fields[f->column].column == GPUIR_KEY) {
    f->most = rng_below(r, 12);
    (void)sprintf(f->spec + strlen(f->spec), ":%u", f->most);
  } else if (column_fields[f->column].column == GPUIR_PATH) {
    f->by = 1;
    (void)strcpy(f->folder, folders[rng_below(r, 8)]);
    (void)sprintf(f->spec + strlen(f->spec), ":%s", f->folder);
  } else if (column_fields[f->column].column == GPUIR_DATE && rng_below(r, 2)) {
    f->by = 3 + (int)rng_below(r, 3);
    (void)sprintf(f->spec + strlen(f->spec), ":%s", units[f->by - 3]);
  } else {
    f->by = 2;
    for (i = 1 + rng_below(r, 4); i; i--) {
      where_value(r, f->column, &e);
      if (f->nborders && e.low <= f->borders[f->nborders - 1]) continue;
      f->borders[f->nborders] = e.low;
      (void)sprintf(f->spec + strlen(f->spec), "%c%s", f->nborders++ ? ',' : ':', e.text);
    }
  }
}

static void check_facets(const searchers *s, const gpuir_index *ix, const ask_case *a, const gpuir_query *q, rng *r) {
  const match *from = a->desc.mode == GPUIR_OR ? ors : ands;
  const unsigned n = rng_below(r, 4);
  const char *specs[4];
  facet_case cases[4];
  gpuir_facets *found;
  uint64_t count;
  size_t want =
      matches_of(s, ix, a, a->desc.mode == GPUIR_OR ? GPUIR_OR : GPUIR_AND, a->desc.mode == GPUIR_OR ? ors : ands);
  unsigned i;
  for (i = 0; i < n; i++) {
    facet_make(r, &cases[i]);
    specs[i] = cases[i].spec;
  }
  assert_int_equal(gpuir_facets_count(s->engine, q, specs, n, &found, &count), 0);
  assert_int_equal(count, want);
  for (i = 0; i < n; i++) {
    const size_t nfacets = facets_of(ix, &cases[i], from, want);
    gpuir_facet x;
    size_t j;
    for (j = 0; j < nfacets; j++) {
      if (gpuir_facets_get(found, i, j, &x) || x.count != facets[j].count || x.low != (x.value ? 0 : facets[j].low) ||
          x.high != (x.value ? 0 : facets[j].high) || strcmp(x.value ? x.value : "", facets[j].text) != 0)
        fail_msg("%s, facets %s: number %u is %s %llu, not %s %llu", a->text, specs[i], (unsigned)j,
            x.value ? x.value : "", (unsigned long long)x.count, facets[j].text, (unsigned long long)facets[j].count);
      assert_int_equal(x.len, strlen(facets[j].text));
    }
    assert_int_equal(gpuir_facets_get(found, i, nfacets, &x), GPUIR_E_NOT_FOUND);
  }
  gpuir_facets_destroy(found);
}

/* ---- asking */

static void check_pool(const searchers *s, const ask_case *a, const gpuir_query *q, size_t n, uint64_t count) {
  gpuir_task t;
  uint64_t matches;
  memset(&t, 0, sizeof t);
  t.query = q;
  t.k = a->k;
  t.hits = got;
  t.matches = &matches;
  assert_int_equal(gpuir_pool_submit(s->pool, &t), 0);
  assert_int_equal(gpuir_pool_wait(s->pool, &t), 0);
  same(a, n, got, t.count);
  assert_int_equal(matches, count);
}

/* Asks the engine, the reference, a pool and a batch whose thresholds must not be looked at. */
static void check_hits(const searchers *s, const ask_case *a, const gpuir_query *q, size_t n, uint64_t count) {
  const gpuir_query *two[2];
  uint32_t counts[2], thresholds[2] = {UINT32_MAX, UINT32_MAX};
  gpuir_batch_desc d;
  gpuir_batch *b;
  uint64_t matches;
  size_t m;
  assert_int_equal(gpuir_search_count(s->engine, q, got, a->k, &m, &matches), 0);
  same(a, n, got, m);
  assert_int_equal(matches, count);
  assert_int_equal(gpuir_search(s->reference, q, got, a->k, &m), 0);
  same(a, n, got, m);
  check_pool(s, a, q, n, count);
  memset(&d, 0, sizeof d);
  two[0] = two[1] = q;
  d.queries = two;
  d.nq = 2;
  d.k = a->k;
  d.hits = both;
  d.counts = counts;
  if (a->sort_column >= 0 || a->collapse_column >= 0) d.thresholds = thresholds;
  assert_int_equal(gpuir_search_begin(s->engine, &d, &b), 0);
  assert_int_equal(gpuir_search_finish(b), 0);
  same(a, n, both, counts[0]);
  same(a, n, both + a->k, counts[1]);
  assert_true(thresholds[0] == UINT32_MAX && thresholds[1] == UINT32_MAX);
}

static int ask(const searchers *s, const gpuir_index *ix, rng *r) {
  ask_case a;
  gpuir_query *q;
  size_t nand, nor, n, few;
  case_make(r, &a);
  q = parsed_by(ix, a.text, &a.desc);
  if (!q) return 0; /* only what is negated */
  nand = matches_of(s, ix, &a, GPUIR_AND, ands);
  nor = matches_of(s, ix, &a, GPUIR_OR, ors);
  n = a.desc.mode == GPUIR_OR ? best_of(&a, ors, nor) : best_of(&a, ands, nand);
  few = a.desc.enough && a.desc.enough < a.k ? a.desc.enough : a.k;
  if (a.desc.mode == GPUIR_ANDOR && n < few) n = best_of(&a, ors, nor);
  check_hits(s, &a, q, n, a.desc.mode == GPUIR_OR ? nor : nand);
  check_facets(s, ix, &a, q, r);
  gpuir_query_destroy(q);
  return n > 0;
}

static void ask_many(const gpuir_index *ix, uint64_t seed) {
  const unsigned rounds = getenv("GPUIR_LONG") ? 20000 : 130;
  gpuir_searcher_desc d;
  gpuir_pool_desc pd;
  searchers s;
  gpuir_error err;
  rng r = {seed};
  unsigned i, some = 0;
  memset(&pd, 0, sizeof pd);
  pd.threads = 3;
  assert_int_equal(gpuir_pool_create(ix, &pd, &s.pool, &err), 0);
  memset(&d, 0, sizeof d);
  d.threads = 2;
  assert_int_equal(gpuir_searcher_create(ix, &d, &s.engine, &err), 0);
  d.evaluator = GPUIR_EVAL_EXHAUSTIVE;
  assert_int_equal(gpuir_searcher_create(ix, &d, &s.reference, &err), 0);
  for (i = 0; i < rounds; i++) some += (unsigned)ask(&s, ix, &r);
  assert_true(some > rounds / 4);
  gpuir_pool_destroy(s.pool);
  gpuir_searcher_destroy(s.engine);
  gpuir_searcher_destroy(s.reference);
}

static void test_static(void **state) {
  gpuir_index *ix = make_static(7800, 0); /* some lists are so long that they have seeds */
  (void)state;
  assert_true(ix->leaves[0].seg->lists.nseeds > 0);
  ask_many(ix, 1);
  gpuir_close(ix);
  ix = make_static(3000, 16); /* with dense lists */
  assert_true(ix->leaves[0].seg->dense.n > 0);
  ask_many(ix, 2);
  gpuir_close(ix);
}

static void test_live(void **state) {
  gpuir_index *ix, *merged;
  gpuir_live *live;
  gpuir_error err;
  char name[96];
  (void)state;
  path_of(name, "live");
  ix = make_live(&live, name, 5000, 7);
  assert_true(ix->nleaves >= 7 && ix->leaves[0].deleted);
  ask_many(ix, 3);
  assert_int_equal(gpuir_live_merge(live, 0, NULL, &err), 0);
  assert_int_equal(gpuir_live_refresh(live, &merged, &err), 0);
  ask_many(merged, 4);
  gpuir_close(merged);
  assert_int_equal(gpuir_live_merge(live, 1, NULL, &err), 0);
  assert_int_equal(gpuir_live_refresh(live, &merged, &err), 0);
  assert_true(merged->nleaves == 1 && !merged->leaves[0].deleted);
  ask_many(merged, 5);
  gpuir_close(merged);
  gpuir_close(ix);
  gpuir_live_close(live);
  remove_live(name);
}

/* Lets another engine evaluate all of a search that is shared, before its owner begins. */
static void help_at_once(gpuir__share *s) { assert_true(gpuir__engine_help((gpuir__engine *)s->user, s)); }

/* An engine that helps with another's search hands over what it found, also where its own search before collapsed hits,
 * which went to another place. */
static void test_help_after_collapse(void **state) {
  gpuir_index *ix = make_static(7800, 0);
  const gpuir__atomic64 backlog = 0;
  gpuir_searcher *owner, *other;
  gpuir_query *plain = parsed(ix, "w1 w2", NULL, GPUIR_OR, 0), *collapsed;
  gpuir_query_desc d;
  gpuir__share share;
  gpuir_error err;
  size_t n, helped;
  (void)state;
  memset(&d, 0, sizeof d);
  d.mode = GPUIR_OR;
  d.collapse = column_fields[0].name;
  collapsed = parsed_by(ix, "w1 w2", &d);
  assert_int_equal(gpuir_searcher_create(ix, NULL, &owner, &err), 0);
  assert_int_equal(gpuir_searcher_create(ix, NULL, &other, &err), 0);
  memset(&share, 0, sizeof share);
  share.backlog = &backlog;
  share.backlog_limit = 1;
  share.opened = help_at_once;
  share.user = &other->engine;
  share.most = 1;
  (void)pthread_mutex_init(&share.lock, NULL);
  (void)pthread_cond_init(&share.no_helpers, NULL);
  assert_int_equal(gpuir_search(owner, plain, got, 40, &n), 0);
  assert_int_equal(n, 40);
  assert_int_equal(gpuir_search(other, collapsed, both, 40, &helped), 0);
  assert_true(helped > 1);
  owner->engine.share = &share;
  assert_int_equal(gpuir_search(owner, plain, both, 40, &helped), 0);
  assert_true(share.helped > 0);
  assert_int_equal(helped, n);
  assert_memory_equal(both, got, n * sizeof *got);
  (void)owner->engine.a.resize(owner->engine.a.user, share.found.heap, share.found.cap * 8, 0);
  (void)pthread_mutex_destroy(&share.lock);
  (void)pthread_cond_destroy(&share.no_helpers);
  gpuir_searcher_destroy(owner);
  gpuir_searcher_destroy(other);
  gpuir_query_destroy(plain);
  gpuir_query_destroy(collapsed);
  gpuir_close(ix);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_static), cmocka_unit_test(test_live),
      cmocka_unit_test(test_help_after_collapse)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
