/* 67_passages.c - passages against an oracle that tries every window; places of tokens of all analyzers; budgets,
 * hostile texts, memory, deadlines */
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#endif
#include "gpuir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "alloc.h"
#include "rng.h"
#include "stored.h"

enum { ROOM = 256, MARKS = 4096 };

/* ---- indexes and calls ---- */

/* An index of a few texts; the first one is often the one that is searched. */
static gpuir_index *index_of(const gpuir_analyzer_desc *analyzer, const gpuir_open_desc *open, int positions,
    const char *const *text, const size_t *len, size_t n) {
  gpuir_builder_desc bd;
  gpuir_builder *b;
  gpuir_index *ix;
  gpuir_error err;
  char path[64];
  size_t i;
  snprintf(path, sizeof path, "/tmp/passages-%ld.gpuir", (long)getpid());
  memset(&bd, 0, sizeof bd);
  bd.path = path;
  bd.positions = positions;
  bd.store_text = 1;
  bd.threads = 1;
  bd.analyzer.analyzer = "ascii"; /* the oracle's */
  if (analyzer) bd.analyzer = *analyzer;
  if (gpuir_builder_create(&bd, &b, &err)) fail_msg("%s", err.msg);
  for (i = 0; i < n; i++) {
    gpuir_doc_desc d;
    memset(&d, 0, sizeof d);
    d.source = "source";
    d.source_len = 6;
    d.first_line = 41;
    d.last_line = 90;
    assert_int_equal(gpuir_builder_add_text(b, &d, text[i], len ? len[i] : strlen(text[i]), &err), 0);
  }
  if (gpuir_builder_write(b, NULL, &err)) fail_msg("%s", err.msg);
  gpuir_builder_destroy(b);
  if (gpuir_open(path, open, &ix, &err)) fail_msg("%s", err.msg);
  (void)unlink(path);
  return ix;
}

static gpuir_query *query_of(gpuir_index *ix, const char *text) {
  gpuir_query_desc qd;
  gpuir_query *q;
  gpuir_error err;
  memset(&qd, 0, sizeof qd);
  qd.mode = GPUIR_OR;
  if (gpuir_query_parse(ix, &qd, text, strlen(text), &q, &err)) fail_msg("%s: %s", text, err.msg);
  return q;
}

typedef struct room {
  gpuir_passage_room r;
  gpuir_passage passages[ROOM];
  gpuir_mark marks[MARKS];
} room;

static gpuir_passage_room *emptied(room *r) {
  memset(&r->r, 0, sizeof r->r);
  r->r.passages = r->passages;
  r->r.cap = ROOM;
  r->r.marks = r->marks;
  r->r.marks_cap = MARKS;
  return &r->r;
}

/* ---- the oracle: everything is written out byte by byte, and every window is tried ---- */

enum { MOST_TEXT = 6000, MOST_WORDS = 3000 };

typedef struct occurrence {
  size_t at, end;
  unsigned term;
} occurrence;

typedef struct oracle {
  const char *text;
  size_t len;
  gpuir_explanation x; /* what the query's terms are, and weigh */
  size_t ntokens, token_at[MOST_WORDS], token_end[MOST_WORDS];
  size_t n;
  occurrence found[MOST_WORDS * 4];
  uint8_t may_cut[MOST_TEXT + 1]; /* a fragment may end before this byte */
  uint8_t taken[MOST_TEXT]; /* by a passage */
  size_t nf, from[MOST_TEXT], to[MOST_TEXT]; /* fragments, all of them */
  uint8_t gone[MOST_TEXT]; /* fragments that a passage has touched */
  uint64_t weight[64], shown;
} oracle;

static int is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80);
}

static int is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; }

/* Whether token number i is word[0..n), or begins with it. */
static int token_is(const oracle *o, size_t i, const char *word, size_t n, int prefix) {
  const size_t len = i < o->ntokens ? o->token_end[i] - o->token_at[i] : 0;
  size_t j;
  if (len < n || (!prefix && len > n)) return 0;
  for (j = 0; j < n; j++)
    if (lower(o->text[o->token_at[i] + j]) != word[j]) return 0;
  return 1;
}

static void oracle_occurs(oracle *o, size_t first, size_t last, unsigned term) {
  o->found[o->n].at = o->token_at[first];
  o->found[o->n].end = o->token_end[last];
  o->found[o->n++].term = term;
}

/* Finds a term, written as explanations write it, from each token on. */
static void oracle_find(oracle *o, unsigned term) {
  const char *w = o->x.terms[term].term;
  const size_t n = o->x.terms[term].term_len;
  size_t i, k, at, end;
  for (i = 0; i < o->ntokens; i++) {
    if (w[0] != '"') {
      if (token_is(o, i, w, w[n - 1] == '*' ? n - 1 : n, w[n - 1] == '*')) oracle_occurs(o, i, i, term);
      continue;
    }
    for (k = 0, at = 1; at < n; at = end + 1, k++) {
      for (end = at; w[end] != ' ' && w[end] != '"'; end++) {}
      if (!token_is(o, i + k, w + at, end - at, 0)) break;
    }
    if (at >= n) oracle_occurs(o, i, i + k - 1, term);
  }
}

static void oracle_tokens(oracle *o) {
  size_t i, start = SIZE_MAX;
  unsigned t;
  o->ntokens = o->n = 0;
  for (i = 0; i <= o->len; i++) {
    const int word = i < o->len && is_word(o->text[i]);
    if (word && start == SIZE_MAX) start = i;
    if (word || start == SIZE_MAX) continue;
    if (i - start <= 255) {
      o->token_at[o->ntokens] = start;
      o->token_end[o->ntokens++] = i;
    }
    start = SIZE_MAX;
  }
  for (t = 0; t < o->x.nterms; t++)
    if (!o->x.terms[t].negated) oracle_find(o, t);
}

static int before(const occurrence *a, const occurrence *b) {
  return a->at != b->at ? a->at < b->at : a->end != b->end ? a->end < b->end : a->term < b->term;
}

/* Where lines, and parts of long lines, may be cut. */
static void oracle_cuts(oracle *o) {
  size_t begin = 0, end, cut, i, j;
  memset(o->may_cut, 0, sizeof o->may_cut);
  while (begin < o->len) {
    for (end = begin; end < o->len && o->text[end] != '\n'; end++) {}
    if (end < o->len) end++;
    while (end - begin > 400) {
      size_t sentence = 0, blank = 0, letter = 0;
      for (cut = begin + 101; cut <= begin + 400; cut++) {
        const char a = o->text[cut - 1], b = o->text[cut - 2], c = o->text[cut - 3];
        if (is_blank(a)) blank = cut;
        if (is_blank(a) && (strchr(".!?", b) || (strchr("\"')", b) && strchr(".!?", c)))) sentence = cut;
        if (((uint8_t)o->text[cut] & 0xc0) != 0x80) letter = cut;
      }
      cut = sentence ? sentence : blank ? blank : begin + 400 - letter <= 4 ? letter : begin + 400;
      o->may_cut[cut] = 1;
      begin = cut;
    }
    o->may_cut[end] = 1;
    begin = end;
  }
  for (i = 1; i < o->n; i++)
    for (j = i; j && before(&o->found[j], &o->found[j - 1]); j--) {
      const occurrence swap = o->found[j];
      o->found[j] = o->found[j - 1];
      o->found[j - 1] = swap;
    }
  for (i = 0; i < o->n; i++) { /* the first of its term in a fragment stays whole */
    for (begin = o->found[i].at; begin && !o->may_cut[begin]; begin--) {}
    for (j = 0; j < i && (o->found[j].at < begin || o->found[j].term != o->found[i].term); j++) {}
    if (j < i) continue;
    for (j = o->found[i].at + 1; j < o->found[i].end; j++) o->may_cut[j] = 0;
  }
  o->nf = 0;
  for (i = 0, begin = 0; i < o->len; i++)
    if (o->may_cut[i + 1]) {
      o->from[o->nf] = begin;
      o->to[o->nf++] = i + 1;
      begin = i + 1;
    }
}

static size_t lines_in(const oracle *o, size_t from, size_t to) {
  size_t n = 0;
  for (; from < to; from++) n += o->text[from] == '\n';
  return n;
}

/* The terms that begin in [from, to). */
static uint64_t terms_in(const oracle *o, size_t from, size_t to) {
  uint64_t terms = 0;
  size_t i;
  for (i = 0; i < o->n; i++)
    if (o->found[i].at >= from && o->found[i].end <= to) terms |= (uint64_t)1 << o->found[i].term;
  return terms;
}

/* The value of the window of fragments a to b, whose first and last hold something; 0: it is none. */
static uint64_t oracle_value(const oracle *o, size_t a, size_t b, size_t most) {
  uint64_t sum = 0;
  size_t f, i, t;
  if (a < b && (o->to[b] - o->from[a] > most || lines_in(o, o->from[a], o->from[b]) >= 16)) return 0;
  for (f = a; f <= b; f++)
    if (o->gone[f]) return 0;
  for (t = 0; t < o->x.nterms; t++) {
    size_t c = 0;
    if (o->shown >> t & 1) continue;
    for (i = 0; i < o->n; i++) c += o->found[i].term == t && o->found[i].at >= o->from[a] && o->found[i].at < o->to[b];
    sum += c ? o->weight[t] * (4 + (c > 3 ? 2 : c - 1)) : 0;
  }
  return sum * 1024 / (1024 + (a < b ? o->from[b] - o->to[a] : 0));
}

/* Whether the passage may take the line [from, to) that is next to it. */
static int may_take(const oracle *o, size_t from, size_t to, size_t size, size_t most, uint32_t context) {
  size_t i, f;
  int blank = 1;
  if (to - from > 400 || size + (to - from) > most) return 0;
  for (i = from; i < to; i++) {
    if (o->taken[i]) return 0;
    blank = blank && is_blank(o->text[i]);
  }
  for (f = 0; f < o->nf; f++)
    if (o->from[f] < to && o->to[f] > from && (o->from[f] < from || o->to[f] > to) && terms_in(o, o->from[f], o->to[f]))
      return 0;
  return context || !blank;
}

static void oracle_grow(const oracle *o, size_t *at, size_t *end, size_t most, uint32_t context) {
  int back = 1, forth = 1;
  uint32_t n = 0;
  for (; (back || forth) && n < (context ? context : 100000); n++) {
    size_t i;
    back = back && *at && o->text[*at - 1] == '\n';
    if (back) {
      for (i = *at - 1; i && o->text[i - 1] != '\n'; i--) {}
      back = may_take(o, i, *at, *end - *at, most, context);
      if (back) *at = i;
    }
    forth = forth && *end < o->len && o->text[*end - 1] == '\n';
    if (forth) {
      for (i = *end; i < o->len && o->text[i] != '\n'; i++) {}
      if (i < o->len) i++;
      forth = may_take(o, *end, i, *end - *at, most, context);
      if (forth) *end = i;
    }
  }
}

/* Takes the fragments of [from, to) away, and the bytes [at, end) for a passage. */
static void oracle_take(oracle *o, size_t from, size_t to, size_t at, size_t end) {
  size_t f;
  for (f = 0; f < o->nf; f++) o->gone[f] |= o->from[f] < to && o->to[f] > from;
  for (; at < end; at++) o->taken[at] = 1;
}

/* Chooses the next passage [*at, *end) without cutting one to a budget. Returns its value; 0: there is none. */
static uint64_t oracle_next(oracle *o, const gpuir_passages_desc *d, size_t left, size_t *at, size_t *end) {
  const size_t most = d->most ? d->most : 640;
  uint64_t best = 0;
  size_t a, b;
  for (a = 0; a < o->nf; a++) {
    if (o->gone[a] || !(terms_in(o, o->from[a], o->to[a]) & ~o->shown)) continue;
    for (b = a; b < o->nf && b < a + 20; b++) {
      uint64_t value;
      if (!terms_in(o, o->from[b], o->to[b])) continue;
      value = oracle_value(o, a, b, most < left ? most : left);
      if (value <= best) continue;
      best = value;
      *at = o->from[a];
      *end = o->to[b];
    }
  }
  if (!best || *end - *at > left) return best;
  if (d->context != GPUIR_NO_CONTEXT) oracle_grow(o, at, end, d->context || left < most ? left : most, d->context);
  b = *end;
  while (*end > *at && is_blank(o->text[*end - 1])) --*end;
  oracle_take(o, *at, b, *at, *end);
  return best;
}

static void oracle_open(oracle *o, gpuir_index *ix, const gpuir_query *q, const char *text, size_t len) {
  gpuir_searcher *s;
  size_t t;
  memset(o, 0, sizeof *o);
  o->text = text;
  o->len = len;
  assert_true(len < MOST_TEXT);
  assert_int_equal(gpuir_searcher_create(ix, NULL, &s, NULL), 0);
  assert_int_equal(gpuir_explain(s, q, 0, &o->x), 0);
  gpuir_searcher_destroy(s);
  for (t = 0; t < o->x.nterms; t++) {
    o->weight[t] = (uint64_t)(o->x.terms[t].idf * 65536.0);
    if (!o->weight[t]) o->weight[t] = 1;
    o->weight[t] *= o->x.terms[t].q;
  }
  oracle_tokens(o);
  oracle_cuts(o);
}

/* Compares a passage's terms and marks with what stands in it. */
static void check_marks(const oracle *o, const gpuir_passage_room *r, const gpuir_passage *p) {
  uint64_t terms = 0;
  size_t i, n = 0;
  for (i = 0; i < o->n; i++) n += o->found[i].at >= p->offset && o->found[i].end <= p->offset + p->bytes;
  assert_int_equal(p->marks, n);
  for (i = p->first_mark; i < p->first_mark + p->marks; i++) {
    const gpuir_mark *m = &r->marks[i];
    size_t j = 0;
    while (j < o->n && (o->found[j].at != m->offset || o->found[j].term != m->term)) j++;
    assert_true(j < o->n);
    assert_int_equal(o->found[j].end - m->offset, m->bytes);
    if (i > p->first_mark) assert_true(m[-1].offset <= m->offset);
    terms |= (uint64_t)1 << m->term;
  }
  assert_true(terms == p->terms);
}

/* Compares all passages with the oracle's. */
static void check(gpuir_index *ix, const char *query, const gpuir_passages_desc *d, const char *text, size_t len) {
  static oracle o;
  static room r;
  gpuir_query *q = query_of(ix, query);
  gpuir_error err;
  size_t i, bytes = d->bytes ? d->bytes : SIZE_MAX / 8, tokens = d->tokens ? d->tokens : SIZE_MAX / 8, left;
  const uint32_t first = d->first_line ? d->first_line : 1;
  if (gpuir_passages(q, d, text, len, emptied(&r), &err)) fail_msg("%s", err.msg);
  oracle_open(&o, ix, q, text, len);
  for (i = 0; i < r.r.n; i++) {
    const gpuir_passage *p = &r.passages[i];
    size_t at = 0, end = 0;
    uint64_t value;
    left = bytes < tokens * 4 ? bytes : tokens * 4;
    value = oracle_next(&o, d, left, &at, &end);
    assert_true(p->bytes && p->bytes <= left);
    assert_int_equal(p->score, value / 4);
    if (end - at > left) { /* cut to the budget */
      assert_true(p->offset >= at && p->offset + p->bytes <= end && p->terms & ~o.shown);
      oracle_take(&o, at, end, p->offset, p->offset + p->bytes);
    } else {
      if (p->offset != at || p->bytes != end - at)
        fail_msg("'%s' passage %zu: %zu+%zu and not %zu+%zu of\n%s", query, i, p->offset, p->bytes, at, end - at, text);
    }
    assert_int_equal(p->first_line, first + lines_in(&o, 0, p->offset));
    assert_int_equal(p->last_line, first + lines_in(&o, 0, p->offset + p->bytes));
    check_marks(&o, &r.r, p);
    o.shown |= p->terms;
    bytes -= p->bytes;
    tokens -= (p->bytes + 3) / 4;
  }
  left = bytes < tokens * 4 ? bytes : tokens * 4; /* no window is left that fits */
  {
    size_t at = 0, end = 0;
    assert_true(!left || !oracle_next(&o, d, left, &at, &end) || end - at > left);
  }
  if (!d->bytes && !d->tokens) assert_true(o.shown == terms_in(&o, 0, len));
  gpuir_query_destroy(q);
}

/* ---- against the oracle ---- */

static const char *const vocabulary[] = {"wolf", "Wolf", "dog", "cat", "catalog", "the", "The", "of", "a", "x1",
    "caf\xc3\xa9", "\xe6\x9d\xb1\xe4\xba\xac", "lorem", "ipsum", "dolor"};
enum { WORDS = sizeof vocabulary / sizeof *vocabulary };

/* A text of lines of all lengths; `rare`: how seldom words are other than the last three. */
static size_t make_text(char *to, size_t most, uint32_t rare) {
  static const char *const parts[] = {" ", " ", " ", " ", " ", "\n", "\n\n", ". ", "? ", ".\n", "\r\n", " \n \n", "\t",
      "-"};
  const uint32_t line = below(4) ? 14 : 5; /* with 5, one long line */
  size_t n = 0, want = below((uint32_t)most - 600);
  while (n < want) {
    const char *w = vocabulary[below(rare) ? WORDS - 3 + below(3) : below(WORDS)];
    const char *s = parts[below(line)];
    if (!below(300)) { /* a run without blanks */
      size_t k = 1 + below(500);
      while (k--) to[n++] = (char)(below(4) ? 'y' : 0xe4);
    }
    if (!below(3)) s = "\n";
    if (line == 5 && below(3) == 0) s = " ";
    memcpy(to + n, w, strlen(w));
    n += strlen(w);
    memcpy(to + n, s, strlen(s));
    n += strlen(s);
  }
  to[n] = 0;
  return n;
}

static void make_query(char *to, size_t cap) {
  static const char *const units[] = {"wolf", "dog", "cat", "cat*", "ca*", "the", "\"the wolf\"", "\"lorem ipsum\"",
      "\"dog dog\"", "caf\xc3\xa9", "-dog", "of", "nowhere", "\"wolf nowhere\"", "\"dolor lorem dolor\"", "x1",
      "\xe6\x9d\xb1*"};
  uint32_t i, n = 1 + below(5);
  size_t len = (size_t)snprintf(to, cap, "wolf");
  if (below(2)) len = 0;
  for (i = 0; i < n; i++)
    len += (size_t)snprintf(to + len, cap - len, " %s", units[below(sizeof units / sizeof *units)]);
  if (!strstr(to, "wolf")) (void)snprintf(to + len, cap - len, " a");
}

static void test_oracle(void **state) {
  static char text[MOST_TEXT];
  const char *texts[4] = {text, "the dog of a cat", "wolf lorem ipsum dolor", "catalog of the caf\xc3\xa9 x1"};
  const unsigned rounds = getenv("GPUIR_LONG") ? 4000 : 120;
  unsigned round, i;
  (void)state;
  for (round = 0; round < rounds; round++) {
    const size_t len = make_text(text, sizeof text, 2 + below(30));
    gpuir_index *ix = index_of(NULL, NULL, 1, texts, NULL, 4);
    for (i = 0; i < 6; i++) {
      gpuir_passages_desc d;
      char query[256];
      memset(&d, 0, sizeof d);
      make_query(query, sizeof query);
      if (!below(3)) d.bytes = 1 + below(1500);
      if (!below(3)) d.tokens = 1 + below(400);
      if (!below(3)) d.most = 1 + below(2000);
      if (!below(3)) d.context = below(3) ? 1 + below(4) : GPUIR_NO_CONTEXT;
      if (!below(3)) d.first_line = 1 + below(1000);
      check(ix, query, &d, text, len);
    }
    gpuir_close(ix);
  }
}

/* ---- by hand ---- */

/* The passages of text 0, each as LINE-LINE:text with its marks in brackets, parted by |. */
static const char *shown(gpuir_index *ix, const char *query, const gpuir_passages_desc *d, const char *text) {
  static char out[8192];
  static room r;
  gpuir_query *q = query_of(ix, query);
  gpuir_error err;
  size_t i, j, k, n = 0;
  char *own = NULL;
  if (text ? gpuir_passages(q, d, text, strlen(text), emptied(&r), &err)
           : gpuir_doc_passages(q, d, 0, emptied(&r), &err))
    fail_msg("%s", err.msg);
  if (!text) {
    size_t len;
    text = own = stored_text(ix, 0, &len);
    assert_non_null(text);
  }
  for (i = 0; i < r.r.n; i++) {
    const gpuir_passage *p = &r.passages[i];
    n += (size_t)snprintf(out + n, sizeof out - n, "%s%u-%u:", i ? "|" : "", p->first_line, p->last_line);
    for (j = p->offset; j <= p->offset + p->bytes; j++) {
      for (k = p->first_mark; k < p->first_mark + p->marks; k++)
        if (r.marks[k].offset + r.marks[k].bytes == j) out[n++] = ']';
      for (k = p->first_mark; k < p->first_mark + p->marks; k++)
        if (r.marks[k].offset == j) out[n++] = '[';
      if (j < p->offset + p->bytes) out[n++] = text[j];
    }
  }
  out[n] = 0;
  free(own);
  gpuir_query_destroy(q);
  return out;
}

static void test_shown(void **state) {
  static const char *const text[] = {"one two\nthree four\n\nfive wolf six\nseven\n\neight\nnine dog ten\n", "wolf dog",
      "cat"};
  gpuir_index *ix = index_of(NULL, NULL, 1, text, NULL, 3);
  gpuir_passages_desc d;
  gpuir_query *q;
  gpuir_passage_room none;
  gpuir_error err;
  (void)state;
  memset(&d, 0, sizeof d);
  assert_string_equal(shown(ix, "wolf", NULL, NULL), "44-45:five [wolf] six\nseven");
  assert_string_equal(shown(ix, "wolf dog", NULL, NULL), "44-48:five [wolf] six\nseven\n\neight\nnine [dog] ten");
  assert_string_equal(shown(ix, "\"wolf six\" -dog", NULL, text[0]), "4-5:five [wolf six]\nseven");
  assert_string_equal(shown(ix, "\"two three\"", NULL, text[0]), "1-2:one [two\nthree] four");
  assert_string_equal(shown(ix, "\"wolf dog\"", NULL, text[0]), "");
  assert_string_equal(shown(ix, "cat", NULL, text[0]), "");
  d.context = GPUIR_NO_CONTEXT;
  d.most = 20;
  assert_string_equal(shown(ix, "dog wolf t*", &d, text[0]), "8-8:nine [dog] [ten]|4-4:five [wolf] six");
  d.context = 1;
  assert_string_equal(shown(ix, "wolf", &d, text[0]), "3-5:\nfive [wolf] six\nseven");
  memset(&d, 0, sizeof d);
  d.tokens = 1;
  assert_string_equal(shown(ix, "wolf", &d, text[0]), "4-4:[wolf]");
  d.tokens = 0;
  d.bytes = 3;
  assert_string_equal(shown(ix, "wolf", &d, text[0]), "");
  d.bytes = 9;
  assert_string_equal(shown(ix, "wolf", &d, text[0]), "4-4:five [wolf]");
  /* room */
  q = query_of(ix, "wolf");
  memset(&none, 0, sizeof none);
  assert_int_equal(gpuir_passages(q, NULL, text[0], strlen(text[0]), &none, &err), 0);
  assert_int_equal(gpuir_passages(q, NULL, NULL, 0, &none, NULL), 0);
  assert_int_equal(gpuir_passages(NULL, NULL, "", 0, &none, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_passages(q, NULL, NULL, 1, &none, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_passages(q, NULL, "", 0, NULL, &err), GPUIR_E_ARGUMENT);
  none.cap = 1;
  assert_int_equal(gpuir_passages(q, NULL, "", 0, &none, &err), GPUIR_E_ARGUMENT);
  none.cap = 0;
  none.marks_cap = 1;
  assert_int_equal(gpuir_passages(q, NULL, "", 0, &none, &err), GPUIR_E_ARGUMENT);
  none.marks_cap = 0;
  assert_int_equal(gpuir_passages(q, NULL, text[0], (size_t)UINT32_MAX, &none, &err), GPUIR_E_LIMIT);
  assert_int_equal(gpuir_doc_passages(q, NULL, 3, &none, &err), GPUIR_E_NOT_FOUND);
  assert_int_equal(gpuir_doc_passages(NULL, NULL, 0, &none, &err), GPUIR_E_ARGUMENT);
  gpuir_query_destroy(q);
  gpuir_close(ix);
}

/* A passage marks no more than there is room for, and is the same without. */
static void test_few_marks(void **state) {
  static const char *const text[] = {"wolf wolf wolf\n", "cat"};
  gpuir_index *ix = index_of(NULL, NULL, 0, text, NULL, 2);
  gpuir_query *q = query_of(ix, "wolf");
  static room r;
  (void)state;
  emptied(&r)->marks_cap = 2;
  assert_int_equal(gpuir_passages(q, NULL, text[0], strlen(text[0]), &r.r, NULL), 0);
  assert_int_equal(r.r.n, 1);
  assert_int_equal(r.r.nmarks, 2);
  assert_int_equal(r.passages[0].marks, 2);
  assert_int_equal(r.passages[0].terms, 1);
  gpuir_query_destroy(q);
  gpuir_close(ix);
}

/* ---- analyzers ---- */

#ifdef GPUIR_WITH_UTF8PROC
static void test_unicode(void **state) {
  static const char *const text[] = {
      "\xe2\x80\x9cHello\xe2\x80\x9d, it\xe2\x80\x99s the CAF\xc3\x89\xe2\x80\x99s menu\xe2\x80\xa6 "
      "\xe6\x9d\xb1\xe4\xba"
      "\xac \xef\xac\x81nance"};
  gpuir_analyzer_desc a;
  gpuir_index *ix;
  (void)state;
  memset(&a, 0, sizeof a);
  a.analyzer = "unicode";
  ix = index_of(&a, NULL, 1, text, NULL, 1);
  assert_string_equal(shown(ix, "hello", NULL, text[0]) + 4 + 3,
      "[Hello]\xe2\x80\x9d, it\xe2\x80\x99s the CAF\xc3\x89"
      "\xe2\x80\x99s menu\xe2\x80\xa6 \xe6\x9d\xb1\xe4\xba\xac \xef\xac\x81nance");
  assert_non_null(strstr(shown(ix, "caf\xc3\xa9", NULL, text[0]), " [CAF\xc3\x89]\xe2\x80\x99s "));
  assert_non_null(strstr(shown(ix, "finance", NULL, text[0]), "[\xef\xac\x81nance]"));
  assert_non_null(strstr(shown(ix, "\xe4\xba\xac", NULL, text[0]), "\xe6\x9d\xb1[\xe4\xba\xac]"));
  assert_non_null(strstr(shown(ix, "\"\xe6\x9d\xb1\xe4\xba\xac\"", NULL, text[0]), "[\xe6\x9d\xb1\xe4\xba\xac]"));
  assert_non_null(strstr(shown(ix, "caf*", NULL, text[0]), "[CAF\xc3\x89]"));
  gpuir_close(ix);
}
#endif

#ifdef GPUIR_WITH_STEMMER
static void test_stems(void **state) {
  static const char *const text[] = {"The wolf's cubs were running.", "to run"};
  gpuir_analyzer_desc a;
  gpuir_index *ix;
  (void)state;
  memset(&a, 0, sizeof a);
  a.stem = "english";
  a.stop = "english";
  ix = index_of(&a, NULL, 1, text, NULL, 2);
  assert_string_equal(shown(ix, "runs wolves cub the", NULL, text[0]), "1-1:The wolf's [cubs] were [running].");
  assert_string_equal(shown(ix, "wolf", NULL, text[0]), "1-1:The [wolf]'s cubs were running.");
  assert_string_equal(shown(ix, "\"wolf cubs\"", NULL, text[0]), "1-1:The [wolf's cubs] were running.");
  gpuir_close(ix);
}
#endif

/* Words of letters: as they stand in the text (user 0), folded copies (1), cut to four letters (2), or, of each word, a
 * number that stands nowhere (3). */
static int letters(void *user, const char *text, size_t len, gpuir_token_fn emit, void *sink) {
  const int how = *(const int *)user;
  size_t i, n;
  for (i = 0; i < len; i += n + 1) {
    char copy[64];
    size_t j, size;
    int status;
    for (n = 0; i + n < len && ((text[i + n] | 32) >= 'a' && (text[i + n] | 32) <= 'z'); n++) {}
    if (!n || n > 60) continue;
    for (j = 0; j < n; j++) copy[j] = (char)(text[i + j] | 32);
    size = how == 3 ? (size_t)snprintf(copy, sizeof copy, "%zu", n) : how == 2 && n > 4 ? 4 : n;
    status = emit(sink, how ? copy : text + i, size);
    if (status) return status;
  }
  return 0;
}

static void test_tokenizer(void **state) {
  static const char *const want[] = {"1-1:The wolf, the [Wolves] and running", "1-1:The wolf, the [Wolves] and running",
      "1-1:The wolf, the [Wolves] and running"};
  static const char *const query[] = {"Wolves", "WOLVES", "WOLVerine"};
  static const char *const text[] = {"The wolf, the Wolves and running", "cat"};
  int how;
  (void)state;
  for (how = 0; how < 4; how++) {
    gpuir_analyzer_desc a;
    gpuir_open_desc od;
    gpuir_index *ix;
    memset(&a, 0, sizeof a);
    memset(&od, 0, sizeof od);
    a.analyzer = "letters";
    a.tokenize = od.tokenize = letters;
    a.tokenize_user = od.tokenize_user = &how;
    ix = index_of(&a, &od, 1, text, NULL, 2);
    if (how < 3) assert_string_equal(shown(ix, query[how], NULL, text[0]), want[how]);
    /* The token of seven letters stands nowhere: where the one before it does, at the beginning. */
    if (how == 3) assert_string_equal(shown(ix, "letters", NULL, text[0]), "1-1:The wolf, the Wolves and running");
    if (how == 1)
      assert_string_equal(shown(ix, "the \"wolves and\"", NULL, text[0]), "1-1:[The] wolf, [the] [Wolves and] running");
    gpuir_close(ix);
  }
}

/* ---- hostile texts ---- */

/* Looks at each passage as a careless caller would. */
static void sane(gpuir_index *ix, const char *query, const char *text, size_t len, size_t least) {
  static room r;
  gpuir_query *q = query_of(ix, query);
  gpuir_error err;
  size_t i, j;
  if (gpuir_passages(q, NULL, text, len, emptied(&r), &err)) fail_msg("%s", err.msg);
  assert_true(r.r.n >= least);
  for (i = 0; i < r.r.n; i++) {
    const gpuir_passage *p = &r.passages[i];
    assert_true(p->bytes && p->offset < len && p->bytes <= len - p->offset && p->bytes <= 2000);
    assert_true(p->terms && p->first_line && p->first_line <= p->last_line);
    for (j = 0; j < i; j++)
      assert_true(
          p->offset >= r.passages[j].offset + r.passages[j].bytes || r.passages[j].offset >= p->offset + p->bytes);
  }
  gpuir_query_destroy(q);
}

static void test_hostile(void **state) {
  enum { MANY = 10 << 20 };
  static const char *const text[] = {"wolf a the dog", "\xff\xfe", "lonely a"};
  gpuir_index *ix = index_of(NULL, NULL, 1, text, NULL, 3);
  char *big = (char *)malloc(MANY);
  size_t i, round;
  (void)state;
  assert_non_null(big);
  for (round = 0; round < 300; round++) { /* any bytes, some of which are words */
    const size_t len = below(3000);
    for (i = 0; i < len; i++) big[i] = (char)rnd();
    for (i = 0; i + 6 < len; i += 1 + below(200)) memcpy(big + i, below(2) ? " wolf\n" : "\0a\xff\xfe ", 6);
    sane(ix, "wolf a \"wolf a\" \xff\xfe w*", big, len, 0);
  }
  memset(big, 'a', MANY);
  sane(ix, "wolf a", big, MANY, 0); /* one word of 10 MiB, which is dropped */
  memcpy(big + MANY - 5, " wolf", 5);
  sane(ix, "wolf", big, MANY, 1);
  memset(big, 0, MANY);
  memcpy(big + MANY / 2, "wolf", 4);
  sane(ix, "wolf", big, MANY, 1);
  memset(big, '\xe4', MANY);
  sane(ix, "wolf", big, MANY, 0);
  for (i = 0; i + 2 <= MANY / 4; i += 2) memcpy(big + i, "a ", 2); /* each word is a mention, in one line */
  sane(ix, "wolf a \"a a\" a*", big, MANY / 4, 1);
  for (i = 0; i + 2 <= MANY / 4; i += 2) memcpy(big + i, "a\n", 2); /* and in lines of its own */
  sane(ix, "wolf a", big, MANY / 4, 1);
  memset(big, ' ', MANY); /* a phrase that is 10 MiB long */
  memcpy(big, "wolf", 4);
  big[MANY - 1] = 'a';
  {
    static room r;
    gpuir_query *q = query_of(ix, "\"wolf a\"");
    gpuir_passages_desc d;
    assert_int_equal(gpuir_passages(q, NULL, big, MANY, emptied(&r), NULL), 0);
    assert_int_equal(r.r.n, 1);
    assert_int_equal(r.passages[0].bytes, MANY);
    memset(&d, 0, sizeof d);
    d.bytes = 1000;
    assert_int_equal(gpuir_passages(q, &d, big, MANY, emptied(&r), NULL), 0);
    assert_int_equal(r.r.n, 0);
    gpuir_query_destroy(q);
  }
  free(big);
  gpuir_close(ix);
}

/* ---- near 2^32 lines and bytes ---- */

static void test_large_numbers(void **state) {
  static const char *const text[] = {"dog\nwolf\na\n\nb\nc\n\nfox\n", "cat"};
  gpuir_index *ix = index_of(NULL, NULL, 1, text, NULL, 2);
  gpuir_passages_desc d;
  (void)state;
  memset(&d, 0, sizeof d);
  d.first_line = UINT32_MAX - 3;
  assert_string_equal(shown(ix, "wolf", &d, text[0]), "4294967292-4294967294:dog\n[wolf]\na");
  assert_string_equal(shown(ix, "fox", &d, text[0]), "4294967295-4294967295:[fox]");
  d.first_line = UINT32_MAX;
  assert_string_equal(shown(ix, "wolf", &d, text[0]), "4294967295-4294967295:dog\n[wolf]\na");
  gpuir_close(ix);
}

/* A text of 4 GiB less two bytes, whose pages are mapped and never written but for the first and the last. */
static void test_large_text(void **state) {
  static const char *const text[] = {"wolf dog", "cat"};
  const size_t len = UINT32_MAX - (size_t)1;
  gpuir_index *ix;
  gpuir_query *q;
  gpuir_error err;
  char *big;
  static room r;
  (void)state;
  if (!getenv("GPUIR_LONG")) skip();
  big = (char *)mmap(NULL, (size_t)1 << 32, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  assert_true(big != MAP_FAILED);
  ix = index_of(NULL, NULL, 1, text, NULL, 2);
  q = query_of(ix, "wolf dog");
  memcpy(big, "dog\n", 4);
  memcpy(big + len - 6, "\n wolf", 6);
  if (gpuir_passages(q, NULL, big, len, emptied(&r), &err)) fail_msg("%s", err.msg);
  assert_int_equal(r.r.n, 2);
  assert_int_equal(r.passages[0].offset + r.passages[1].offset, len - 5);
  assert_int_equal(r.passages[0].bytes + r.passages[1].bytes, 8);
  assert_int_equal(r.passages[0].first_line + r.passages[1].first_line, 4);
  assert_int_equal(gpuir_passages(q, NULL, big, len + 1, emptied(&r), &err), GPUIR_E_LIMIT);
  gpuir_query_destroy(q);
  gpuir_close(ix);
  (void)munmap(big, (size_t)1 << 32);
}

/* ---- memory, deadlines, errors ---- */

static void test_memory(void **state) {
  static const char *const text[] = {"wolf the dog \"a b\"\nthe wolf\n", "cat"};
  alloc_book book;
  gpuir_allocator a = alloc_from(&book);
  gpuir_open_desc od;
  gpuir_index *ix;
  gpuir_query *q;
  gpuir_error err;
  static room r;
  int64_t calls, i, blocks;
  (void)state;
  memset(&book, 0, sizeof book);
  memset(&od, 0, sizeof od);
  od.allocator = &a;
  ix = index_of(NULL, &od, 1, text, NULL, 2);
  q = query_of(ix, "wolf \"the wolf\" do*");
  blocks = book.blocks;
  calls = book.calls;
  assert_int_equal(gpuir_passages(q, NULL, text[0], strlen(text[0]), emptied(&r), &err), 0);
  assert_int_equal(r.r.n, 1);
  calls = book.calls - calls;
  assert_true(calls > 0 && calls < 10);
  for (i = 1; i <= calls; i++) {
    book.fail_at = book.calls + i;
    assert_int_equal(gpuir_passages(q, NULL, text[0], strlen(text[0]), emptied(&r), &err), GPUIR_E_NOMEM);
    assert_int_equal(err.code, GPUIR_E_NOMEM);
    assert_int_equal(r.r.n, 0);
    assert_int_equal(book.blocks, blocks);
  }
  book.fail_at = 0;
  gpuir_query_destroy(q);
  gpuir_close(ix);
  assert_int_equal(book.blocks, 0);
}

static void test_limits(void **state) {
  static const char *const text[] = {"wolf dog", "cat"};
  gpuir_index *ix = index_of(NULL, NULL, 1, text, NULL, 2);
  gpuir_query *q = query_of(ix, "wolf");
  gpuir_passages_desc d;
  gpuir_error err;
  static room r;
  int cancel = 1;
  (void)state;
  memset(&d, 0, sizeof d);
  d.timeout_ns = 1;
  assert_int_equal(gpuir_passages(q, &d, text[0], strlen(text[0]), emptied(&r), &err), GPUIR_E_DEADLINE);
  assert_int_equal(err.code, GPUIR_E_DEADLINE);
  assert_int_equal(r.r.n, 0);
  d.timeout_ns = UINT64_MAX;
  d.cancel = &cancel;
  assert_int_equal(gpuir_passages(q, &d, text[0], strlen(text[0]), emptied(&r), &err), GPUIR_E_CANCELLED);
  cancel = 0;
  assert_int_equal(gpuir_passages(q, &d, text[0], strlen(text[0]), emptied(&r), &err), 0);
  assert_int_equal(r.r.n, 1);
  gpuir_query_destroy(q);
  gpuir_close(ix);
}

static int refuses;

static int refuse(void *user, const char *text, size_t len, gpuir_token_fn emit, void *sink) {
  const int status = emit(sink, text, len < 4 ? len : 4);
  (void)user;
  return refuses ? GPUIR_E_LIMIT : status;
}

/* A tokenizer's own error is handed on; a document without stored text has to be brought. */
static void test_errors(void **state) {
  static const char *const text[] = {"wolf dog", "cat"};
  gpuir_analyzer_desc a;
  gpuir_open_desc od;
  gpuir_index *ix;
  gpuir_query *q;
  gpuir_error err;
  static room r;
  (void)state;
  memset(&a, 0, sizeof a);
  memset(&od, 0, sizeof od);
  a.analyzer = "refuse";
  a.tokenize = od.tokenize = refuse;
  ix = index_of(&a, &od, 0, text, NULL, 2);
  q = query_of(ix, "wolf");
  assert_int_equal(gpuir_passages(q, NULL, text[0], strlen(text[0]), emptied(&r), &err), 0);
  assert_int_equal(r.r.n, 1);
  refuses = 1;
  assert_int_equal(gpuir_passages(q, NULL, text[0], strlen(text[0]), emptied(&r), &err), GPUIR_E_LIMIT);
  assert_int_equal(err.code, GPUIR_E_LIMIT);
  refuses = 0;
  gpuir_query_destroy(q);
  gpuir_close(ix);
}

static void test_not_stored(void **state) {
  gpuir_builder_desc bd;
  gpuir_builder *b;
  gpuir_index *ix;
  gpuir_query *q;
  gpuir_error err;
  static room r;
  char path[64];
  (void)state;
  snprintf(path, sizeof path, "/tmp/passages-%ld.gpuir", (long)getpid());
  memset(&bd, 0, sizeof bd);
  bd.path = path;
  assert_int_equal(gpuir_builder_create(&bd, &b, NULL), 0);
  assert_int_equal(gpuir_builder_add_text(b, NULL, "wolf", 4, NULL), 0);
  assert_int_equal(gpuir_builder_write(b, NULL, NULL), 0);
  gpuir_builder_destroy(b);
  assert_int_equal(gpuir_open(path, NULL, &ix, NULL), 0);
  (void)unlink(path);
  q = query_of(ix, "wolf");
  assert_int_equal(gpuir_doc_passages(q, NULL, 0, emptied(&r), &err), GPUIR_E_NOT_FOUND);
  assert_non_null(strstr(err.msg, "not stored"));
  gpuir_query_destroy(q);
  gpuir_close(ix);
}

/* ---- snippets ---- */

static void check_snippet(const gpuir_query *q, size_t most, const char *text, size_t cap, const char *want) {
  gpuir_snippet_desc d;
  gpuir_error err;
  char *out = (char *)malloc(cap); /* of the exact size: a sanitizer sees a byte behind it */
  assert_non_null(out);
  memset(&d, 0, sizeof d);
  d.most = most;
  d.open = "<";
  d.close = ">";
  if (gpuir_snippet(q, &d, text, strlen(text), out, cap, &err)) fail_msg("%s", err.msg);
  assert_string_equal(out, want);
  free(out);
}

static void test_snippet(void **state) {
  const char *const text = "fox dog cat";
  gpuir_index *ix = index_of(NULL, NULL, 0, &text, NULL, 1);
  gpuir_query *q = query_of(ix, "fox dog");
  gpuir_error err;
  char out[64], random_text[300];
  size_t i;
  rng r;
  (void)state;
  check_snippet(q, 0, "The quick\n\n\tfox  and the Dog.\n", 200, "The quick <fox> and the <Dog>.");
  check_snippet(q, 0, "", 200, "");
  check_snippet(q, 0, "no word of it here", 200, "no word of it here");
  check_snippet(q, 12, "no word of it here", 200, "no word of...");
  check_snippet(q, 30, "far before it stands something of no use at all, then a fox comes and goes for ever and ever",
      200, "...then a <fox> comes and goes for...");
  check_snippet(q, 6, "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4", 200, "\xc3\xa4\xc3\xa4\xc3\xa4...");
  check_snippet(q, 0, "a fox and a dog", 17, "a <fox> and...");
  check_snippet(q, 0, "fox\x01\x1b[2J fox", 200, "<fox> [2J <fox>");
  assert_int_equal(gpuir_snippet(q, NULL, "a fox", 5, out, sizeof out, &err), GPUIR_OK);
  assert_string_equal(out, "a fox");
  assert_int_equal(gpuir_snippet(q, NULL, "a fox", 5, out, 15, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_snippet(q, NULL, "a fox", 5, NULL, 64, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_snippet(NULL, NULL, "a fox", 5, out, 64, &err), GPUIR_E_ARGUMENT);
  assert_string_equal(out, "");
  r.s = 77;
  for (i = 0; i < 3000; i++) { /* any bytes: one line that ends within its room */
    gpuir_snippet_desc d = {0, "<<", ">>"};
    const size_t n = rng_below(&r, sizeof random_text), cap = 18 + rng_below(&r, 200);
    char *exact = (char *)malloc(cap);
    size_t k;
    for (k = 0; k < n; k++) random_text[k] = "fox dog \n\xc3\xa4.\xf0"[rng_below(&r, 13)];
    d.most = rng_below(&r, 120);
    assert_int_equal(gpuir_snippet(q, &d, random_text, n, exact, cap, &err), GPUIR_OK);
    assert_true(strlen(exact) < cap && !strchr(exact, '\n'));
    free(exact);
  }
  gpuir_query_destroy(q);
  gpuir_close(ix);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shown),
      cmocka_unit_test(test_few_marks),
      cmocka_unit_test(test_oracle),
#ifdef GPUIR_WITH_UTF8PROC
      cmocka_unit_test(test_unicode),
#endif
#ifdef GPUIR_WITH_STEMMER
      cmocka_unit_test(test_stems),
#endif
      cmocka_unit_test(test_tokenizer),
      cmocka_unit_test(test_hostile),
      cmocka_unit_test(test_large_numbers),
      cmocka_unit_test(test_large_text),
      cmocka_unit_test(test_memory),
      cmocka_unit_test(test_limits),
      cmocka_unit_test(test_errors),
      cmocka_unit_test(test_not_stored),
      cmocka_unit_test(test_snippet),
  };
  return cmocka_run_group_tests_name("67_passages", tests, NULL, NULL);
}
