/* 55_methods.c - every intersection method equals brute force, on arrays and on lists of every codec */
#include "private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tools/lab/isect.h"
#include "sets.h"

static void edges(void **state) {
  static const uint32_t zero[] = {0}, most[] = {UINT32_MAX - 1}, both[] = {0, UINT32_MAX - 1};
  static const uint32_t run[] = {5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21};
  set pool[7];
  unsigned i, j;
  (void)state;
  pool[0] = set_of(NULL, 0);
  pool[1] = set_of(zero, 1);
  pool[2] = set_of(most, 1);
  pool[3] = set_of(both, 2);
  pool[4] = set_of(run, 17);
  pool[5] = set_make(DENSE, 1000, 1);
  pool[6] = set_make(LATE, 700, 1);
  pool[6].docs[pool[6].n - 1] = UINT32_MAX - 1;
  for (i = 0; i < 7; i++)
    for (j = 0; j < 7; j++) {
      set s[2];
      s[0] = pool[i];
      s[1] = pool[j];
      check_all(s, 2, 1, "edges");
    }
  for (i = 0; i < 7; i++) check_all(&pool[i], 1, 1, "alone");
  for (i = 0; i < 7; i++) free(pool[i].docs);
}

/* Every length up to a few registers and blocks, against every kind of partner. */
static void lengths(void **state) {
  uint32_t n;
  (void)state;
  for (n = 0; n < 300; n += 1 + n / 24) {
    set s[2];
    unsigned shape;
    for (shape = 0; shape < SHAPES; shape++) {
      s[0] = set_make((int)shape, n, 1 + below(4));
      s[1] = set_relative(&s[0]);
      check_all(s, 2, 0, shape_name[shape]);
      free(s[1].docs);
      s[1] = set_make((int)shape, n + below(40), 1 + below(4));
      check_all(s, 2, 0, shape_name[shape]);
      free(s[1].docs);
      free(s[0].docs);
    }
  }
}

static void shapes(void **state) {
  unsigned a, b;
  (void)state;
  for (a = 0; a < SHAPES; a++)
    for (b = 0; b < SHAPES; b++) {
      set s[2];
      s[0] = set_make((int)a, 200 + below(3000), 1 + below(20));
      s[1] = set_make((int)b, 200 + below(9000), 1 + below(6));
      check_all(s, 2, (a * SHAPES + b) % 4 == 0, shape_name[a]);
      free(s[1].docs);
      s[1] = set_of(s[0].docs, s[0].n);
      if (a == b) check_all(s, 2, 1, "equal");
      free(s[0].docs);
      free(s[1].docs);
    }
}

/* Ratios from 1 to 10^5, drawn from the long list and beside it. */
static void ratios(void **state) {
  uint32_t ratio;
  (void)state;
  for (ratio = 1; ratio <= 131072; ratio *= 2) {
    set s[2];
    uint32_t i, n = 0, want = 200000 / ratio < 400 ? 200000 / ratio + 1 : 400, *docs;
    s[0] = set_make(ratio % 3 ? RANDOM : CLUSTERED, want * ratio, 3);
    docs = (uint32_t *)malloc((s[0].n + 1) * 4);
    for (i = below(ratio); i < s[0].n; i += 1 + below(2 * ratio)) {
      uint32_t doc = s[0].docs[i] + below(2);
      if (!n || doc > docs[n - 1]) docs[n++] = doc;
    }
    s[1] = set_of(docs, n);
    check_all(s, 2, 0, "ratio");
    free(docs);
    free(s[0].docs);
    free(s[1].docs);
  }
}

/* Up to `most` docIDs of s or beside them: alone, a few in a block, at both ends. */
static set set_sparse(const set *s, uint32_t most, unsigned round) {
  uint32_t docs[16], n = 0, i = round % 4 ? below(s->n) : 0;
  while (n < most && i < s->n) {
    uint32_t doc = s->docs[i] + below(2);
    if (!n || doc > docs[n - 1]) docs[n++] = doc;
    i += 1 + (below(3) ? below(s->n / most) : below(40));
    if (n + 1 == most && round % 3 == 0) i = s->n - 1;
  }
  return set_of(docs, n);
}

/* Candidates so few that blocks are searched as they are: blocks of each width, with exceptions and without, and some
 * of too wide a span. */
static void sparse(void **state) {
  static const uint32_t spreads[] = {1, 3, 40, 700, 9000};
  const gpuir__method *simds = gpuir__method_by_name("simd");
  unsigned shape, spread, round;
  size_t c;
  int simd;
  (void)state;
  for (shape = 0; shape < SHAPES; shape++)
    for (spread = 0; spread < sizeof spreads / sizeof *spreads; spread++) {
      set s[2];
      s[1] = set_make((int)shape, GPUIR__SPARSE * 12 + below(300), spreads[spread]);
      for (round = 0; round < 12; round++) {
        uint32_t right[16], n, most = s[1].n / GPUIR__SPARSE;
        s[0] = set_sparse(&s[1], most < 2 ? 1 : 1 + below(most), round);
        n = oracle(s, 2, right);
        for (c = 0; c < GPUIR__DOCID_CODECS; c++)
          for (simd = GPUIR_SIMD_SCALAR; simd <= GPUIR_SIMD_AVX512; simd++)
            if (gpuir__docid_codecs[c].find || (c + round) % GPUIR__DOCID_CODECS == 0)
              check_lists(simds, &gpuir__docid_codecs[c], s, 2, right, n, simd);
        free(s[0].docs);
      }
      free(s[1].docs);
    }
}

static void apart(void **state) {
  set s[2];
  uint32_t i;
  (void)state;
  s[0] = set_make(DENSE, 5000, 1); /* before, behind, and alternating */
  s[1] = set_make(LATE, 3000, 1);
  check_all(s, 2, 0, "before");
  for (i = 0; i < s[0].n; i++) s[0].docs[i] = 2 * i;
  for (i = 0; i < s[1].n; i++) s[1].docs[i] = 2 * i + 1;
  check_all(s, 2, 0, "alternating");
  for (i = 0; i < s[0].n; i++) s[0].docs[i] = i / 1000 * 100000 + i % 1000;
  for (i = 0; i < s[1].n; i++) s[1].docs[i] = i / 500 * 100000 + 50000 + i % 500;
  check_all(s, 2, 0, "turns");
  free(s[0].docs);
  free(s[1].docs);
}

static void many(void **state) {
  static const unsigned ks[] = {3, 4, 7, 33, 64};
  unsigned i, t;
  (void)state;
  for (i = 0; i < sizeof ks / sizeof *ks; i++) {
    set s[GPUIR_MAX_TERMS];
    for (t = 0; t < ks[i]; t++) {
      uint32_t j, n = 0, *docs = (uint32_t *)malloc(20000 * 4);
      uint32_t step = t % 5 + 1; /* all have the multiples of 60, and by chance more */
      for (j = 0; j < 20000; j++)
        if (j % 60 == 0 || (j % step == 0 && below(8))) docs[n++] = j;
      s[t] = set_of(docs, n);
      free(docs);
    }
    check_all(s, ks[i], i == 0, "many");
    for (t = 0; t < ks[i]; t++) free(s[t].docs);
  }
}

/* Any number of MergePath's partitions gives the same; the arithmetic that cuts them parts no equal docIDs. */
static void partitions(void **state) {
  static const uint64_t parts[] = {1, 2, 3, 7, 64, 1000, 5000, 100000};
  const gpuir__method *m = gpuir__method_by_name("mergepath");
  uint32_t *right, nright;
  set s[2];
  size_t i;
  (void)state;
  s[0] = set_make(DENSE, 1500, 1);
  s[1] = set_make(DENSE, 2500, 1);
  right = (uint32_t *)malloc(s[0].n * sizeof *right);
  nright = oracle(s, 2, right);
  for (i = 0; i < sizeof parts / sizeof *parts; i++) {
    const uint32_t *docs[2], n[2] = {s[0].n, s[1].n};
    gpuir__isect x;
    docs[0] = s[0].docs;
    docs[1] = s[1].docs;
    assert_int_equal(gpuir__isect_arrays(&x, NULL, m, docs, n, 2, 0), GPUIR_OK);
    x.prepared[1].param = parts[i];
    check(&x, s, 2, right, nright, "arrays", "partitions");
    gpuir__isect_free(&x);
  }
  free(right);
  free(s[0].docs);
  free(s[1].docs);
}

/* Words by chance: the greater their number, the rarer, and more so in some stretches of docIDs than in others. */
static void build(const char *codec, const char *path) {
  gpuir_builder_desc bd;
  gpuir_builder *b;
  gpuir_error err;
  unsigned d, w;
  memset(&bd, 0, sizeof bd);
  bd.path = path;
  bd.codec = codec;
  if (gpuir_builder_create(&bd, &b, &err)) fail_msg("%s", err.msg);
  for (d = 0; d < 6000; d++) {
    char text[1024];
    size_t n = 0;
    for (w = 0; w < 40; w++)
      if (!below(w * w / 8 + 1 + (d / 500 % 3) * w))
        n += (size_t)snprintf(text + n, sizeof text - n, "w%u %s", w, below(3) ? "" : "w1 ");
    if (gpuir_builder_add_text(b, NULL, text, n, &err)) fail_msg("%s", err.msg);
  }
  if (gpuir_builder_write(b, NULL, &err)) fail_msg("%s", err.msg);
  gpuir_builder_destroy(b);
}

static gpuir_searcher *searcher_by(gpuir_index *ix, const char *intersection, int evaluator) {
  gpuir_searcher_desc sd;
  gpuir_searcher *s = NULL;
  memset(&sd, 0, sizeof sd);
  sd.intersection = intersection;
  sd.evaluator = evaluator;
  assert_int_equal(gpuir_searcher_create(ix, &sd, &s, NULL), GPUIR_OK);
  return s;
}

static void compare_searchers(gpuir_index *ix, gpuir_searcher *s, gpuir_searcher *reference, const char *text,
    const char *method) {
  static gpuir_hit hits[2][6000];
  gpuir_query *q = NULL;
  gpuir_error err;
  uint64_t count;
  size_t n[2], k;
  if (gpuir_query_parse(ix, NULL, text, strlen(text), &q, &err)) fail_msg("%s", err.msg);
  for (k = 1; k <= 6000; k *= 20) {
    assert_int_equal(gpuir_search(s, q, hits[0], k, &n[0]), GPUIR_OK);
    assert_int_equal(gpuir_search(reference, q, hits[1], k, &n[1]), GPUIR_OK);
    if (n[0] != n[1] || memcmp(hits[0], hits[1], n[0] * sizeof hits[0][0]))
      fail_msg("%s, simd %s, k = %u: other hits for \"%s\"", method, gpuir_simd_name(ix->simd), (unsigned)k, text);
  }
  assert_int_equal(gpuir_search(reference, q, hits[1], 6000, &n[1]), GPUIR_OK);
  assert_int_equal(gpuir_count(s, q, &count), GPUIR_OK);
  if (count != n[1]) fail_msg("%s counts %u, not %u, for \"%s\"", method, (unsigned)count, (unsigned)n[1], text);
  compared++;
  gpuir_query_destroy(q);
}

/* AND and count by every method equal the exhaustive evaluator, which intersects nothing. */
static void searchers(void **state) {
  static const char *const codecs[] = {"bp128", "vbyte", "hslrc", "ef"};
  static const char *const queries[] = {"w0", "w1 w2", "w2 w1 w3", "w9 w1", "w39 w1 w0", "w3 w4 w5 w6", "w2 -w3",
      "w1 w2 -w9 -w39", "w4 w4 w1", "w30 w31", "w1 w0 w2 w3", "w12 w2 nothing", "w20 w5 w1 -w0", "w39 -w38"};
  const char *tmp = getenv("TMPDIR");
  char folder[4096], file[4200];
  size_t c, i, t;
  int simd;
  (void)state;
  (void)snprintf(folder, sizeof folder, "%s/intersect-XXXXXX", tmp ? tmp : "/tmp");
  assert_non_null(mkdtemp(folder));
  (void)snprintf(file, sizeof file, "%s/x.gpuir", folder);
  for (c = 0; c < sizeof codecs / sizeof *codecs; c++) {
    build(codecs[c], file);
    for (simd = GPUIR_SIMD_SCALAR; simd <= GPUIR_SIMD_AVX512; simd++) {
      gpuir_open_desc od;
      gpuir_index *ix;
      gpuir_searcher *reference;
      gpuir_error err;
      memset(&od, 0, sizeof od);
      od.simd = simd;
      if (gpuir_open(file, &od, &ix, &err)) fail_msg("%s", err.msg);
      reference = searcher_by(ix, NULL, GPUIR_EVAL_EXHAUSTIVE);
      for (i = 0; i <= GPUIR__METHODS; i++) { /* the last one is the engine's choice */
        gpuir_searcher *s = searcher_by(ix, gpuir_intersection_name(i), GPUIR_EVAL_AUTO);
        for (t = 0; t < sizeof queries / sizeof *queries; t++)
          compare_searchers(ix, s, reference, queries[t], i < GPUIR__METHODS ? gpuir_intersection_name(i) : "auto");
        gpuir_searcher_destroy(s);
      }
      gpuir_searcher_destroy(reference);
      if (simd == GPUIR_SIMD_SCALAR) {
        gpuir_searcher_desc sd;
        gpuir_searcher *s;
        memset(&sd, 0, sizeof sd);
        sd.intersection = "mergesort";
        assert_int_equal(gpuir_searcher_create(ix, &sd, &s, NULL), GPUIR_E_ARGUMENT);
        assert_null(s);
      }
      gpuir_close(ix);
    }
    assert_int_equal(unlink(file), 0);
  }
  assert_int_equal(rmdir(folder), 0);
}

/* Ends preparing at one of its calls. */
typedef struct stop {
  unsigned calls, at;
} stop;

static int stop_at(void *user) {
  stop *x = (stop *)user;
  return ++x->calls == x->at ? GPUIR_E_CANCELLED : GPUIR_OK;
}

/* Preparing asks after each 16,384 docIDs at most whether to stop, of lists and of arrays, and ends when it is told. */
static void stops(void **state) {
  const gpuir_allocator a = gpuir__allocator(NULL);
  set s = set_make(RANDOM, 300000, 9);
  const gpuir__method *m;
  gpuir__cursor *cursor = (gpuir__cursor *)calloc(1, sizeof *cursor);
  coded c;
  size_t i;
  int form;
  (void)state;
  assert_non_null(cursor);
  coded_make(&c, gpuir__codec_by_name("bp128", 1), &s, GPUIR_SIMD_AUTO);
  cursor->list = c.list;
  for (i = 0, m = gpuir__methods; i < GPUIR__METHODS; i++, m++)
    for (form = 0; form < 2; form++) { /* an array, a list */
      stop x;
      int status = GPUIR_E_CANCELLED;
      for (x.at = 1; status; x.at++) {
        gpuir__prepared made;
        gpuir__operand o;
        memset(&made, 0, sizeof made);
        made.stopped = stop_at;
        made.user = &x;
        x.calls = 0;
        gpuir__cursor_reset(cursor);
        gpuir__operand_init(&o, form ? cursor : NULL, gpuir__lookup_choose(gpuir__simd_level(GPUIR_SIMD_AUTO)));
        o.docs = form ? NULL : s.docs;
        o.n = s.n;
        status = (form ? gpuir__operand_prepare : gpuir__array_prepare)(&a, m, &o, &made);
        assert_int_equal(status, x.calls == x.at ? GPUIR_E_CANCELLED : GPUIR_OK);
        gpuir__prepared_free(&a, &made);
      }
      if (m->needs == GPUIR__NEEDS_DOCIDS) assert_true(x.calls >= (form ? 2 : 1) * (s.n / 16384) - 1);
    }
  coded_free(&c);
  free(cursor);
  free(s.docs);
}

static void names(void **state) {
  size_t i;
  (void)state;
  for (i = 0; i < GPUIR__METHODS; i++) {
    assert_string_equal(gpuir_intersection_name(i), gpuir__methods[i].name);
    assert_string_equal(gpuir__method_by_name(gpuir_intersection_name(i))->name, gpuir__methods[i].name);
  }
  assert_null(gpuir_intersection_name(i));
  assert_null(gpuir__method_by_name("mergesort"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(edges),
      cmocka_unit_test(lengths),
      cmocka_unit_test(shapes),
      cmocka_unit_test(ratios),
      cmocka_unit_test(sparse),
      cmocka_unit_test(apart),
      cmocka_unit_test(many),
      cmocka_unit_test(partitions),
      cmocka_unit_test(searchers),
      cmocka_unit_test(names),
      cmocka_unit_test(stops),
  };
  int failed = cmocka_run_group_tests_name("55_methods", tests, NULL, NULL);
  print_message("%lu intersections compared\n", compared);
  return failed;
}
