/* 29_near.c - near terms against the distance of every pair; unknown words of queries */
#define _POSIX_C_SOURCE 200809L
#include "gpuir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "folder.h"
#include "rng.h"

enum { MOST = 4000, CAP = 12 };

static char words[MOST][64];
static uint32_t dfs[MOST];
static size_t nwords;

/* The characters of a word of valid UTF-8. */
static size_t letters_of(const char *s, unsigned *to) {
  size_t n = 0;
  for (; *s; s++) {
    const unsigned char c = (unsigned char)*s;
    if (n && (c & 0xc0) == 0x80) to[n - 1] = to[n - 1] << 6 | (c & 0x3f);
    else to[n++] = c;
  }
  return n;
}

/* How far two words are from each other, by the whole table. */
static unsigned distance(const char *a, const char *b) {
  static unsigned d[70][70], x[70], y[70];
  const size_t n = letters_of(a, x), m = letters_of(b, y);
  size_t i, j;
  for (i = 0; i <= n; i++)
    for (j = 0; j <= m; j++) {
      unsigned best = (unsigned)(i && j ? d[i - 1][j - 1] + (x[i - 1] != y[j - 1]) : i + j);
      if (i && d[i - 1][j] + 1 < best) best = d[i - 1][j] + 1;
      if (j && d[i][j - 1] + 1 < best) best = d[i][j - 1] + 1;
      if (i > 1 && j > 1 && x[i - 1] == y[j - 2] && x[i - 2] == y[j - 1] && d[i - 2][j - 2] + 1 < best)
        best = d[i - 2][j - 2] + 1;
      d[i][j] = best;
    }
  return d[n][m];
}

/* Whether a term is to be found for a word, and how far it is; 0: it is not. */
static unsigned wanted(const char *word, const char *term) {
  unsigned x[70], y[70], far = distance(word, term);
  const size_t n = letters_of(word, x), m = letters_of(term, y);
  if (!far || n < 2 || far > (n < 6 ? 1u : 2u)) return 0;
  if (x[0] == y[0]) return far;
  if (far > 1) return 0;
  if ((y[0] >= 'a' && y[0] <= 'z') || (y[0] >= '0' && y[0] <= '9')) return 1;
  return m < n || (m == n && y[0] == x[1] && y[1] == x[0]); /* the first left out, or swapped */
}

static int better(const gpuir_near_term *a, const gpuir_near_term *b) {
  if (a->distance != b->distance) return a->distance < b->distance;
  if (a->df != b->df) return a->df > b->df;
  return strcmp(a->term, b->term) < 0;
}

static void check(const gpuir_index *ix, const char *word) {
  gpuir_near_term got[CAP], want[CAP + 1];
  size_t n, i, j, m = 0;
  memset(want, 0, sizeof want);
  for (i = 0; i < nwords; i++) {
    gpuir_near_term t;
    memset(&t, 0, sizeof t);
    t.distance = dfs[i] ? wanted(word, words[i]) : 0;
    if (!t.distance) continue;
    memcpy(t.term, words[i], sizeof words[i]);
    t.df = dfs[i];
    for (j = m; j && better(&t, &want[j - 1]); j--) want[j] = want[j - 1];
    want[j] = t;
    if (m < CAP) m++;
  }
  assert_int_equal(gpuir_terms_near(ix, word, strlen(word), got, CAP, &n), 0);
  for (i = 0; i < n && i < m; i++)
    if (strcmp(got[i].term, want[i].term) != 0 || got[i].df != want[i].df || got[i].distance != want[i].distance)
      fail_msg("near %s: %zu: %s (df %u, distance %u), not %s (df %u, distance %u)", word, i, got[i].term, got[i].df,
          got[i].distance, want[i].term, want[i].df, want[i].distance);
  if (n != m) fail_msg("near %s: %zu terms, not %zu", word, n, m);
}

static const char *const alphabet[] = {"a", "b", "c", "e", "s", "1", "\xc3\xa9", "\xe6\x9d\xb1", "\xf0\x9f\x98\x80"};

static void make_word(char *to, size_t cap, uint32_t most) {
  uint32_t n = 1 + below(most), narrow = below(3) ? 4 : 9;
  size_t len = 0;
  while (n--) len += (size_t)snprintf(to + len, cap - len, "%s", alphabet[below(narrow)]);
}

/* A live index of several segments, some of whose documents are deleted. */
static gpuir_index *make_index(const char *folder, gpuir_live **live) {
  gpuir_live_desc d;
  gpuir_index *ix = NULL;
  size_t i, j;
  memset(&d, 0, sizeof d);
  d.settings.path = folder;
  d.settings.threads = 1;
  d.settings.analyzer.analyzer = "ascii"; /* terms are the words of the model */
  d.create = 1;
  assert_int_equal(gpuir_live_open(&d, live, NULL), 0);
  memset(dfs, 0, sizeof dfs);
  for (nwords = 0; nwords < MOST;) {
    make_word(words[nwords], sizeof words[0], 9);
    for (j = 0; j < nwords && strcmp(words[j], words[nwords]); j++) {}
    nwords += j == nwords || below(50) == 0;
    if (j < nwords - 1) nwords--;
    if (below(2000) == 0) break;
  }
  for (i = 0; i < 400; i++) {
    char text[2000], name[16];
    gpuir_doc_desc doc;
    size_t len = 0;
    const int dead = below(5) == 0;
    uint8_t seen[MOST];
    memset(seen, 0, sizeof seen);
    for (j = 0; j < 25; j++) {
      const size_t w = below((uint32_t)nwords);
      len += (size_t)snprintf(text + len, sizeof text - len, "%s ", words[w]);
      dfs[w] += !seen[w] && !dead;
      seen[w] = 1;
    }
    memset(&doc, 0, sizeof doc);
    doc.name = name;
    doc.name_len = (size_t)snprintf(name, sizeof name, dead ? "dead" : "d%zu", i);
    assert_int_equal(gpuir_live_add(*live, &doc, text, len, NULL), 0);
    if (i % 150 == 149) assert_int_equal(gpuir_live_commit(*live, NULL), 0);
  }
  (void)gpuir_live_delete(*live, GPUIR_BY_NAME, "dead", 4, NULL, NULL);
  assert_int_equal(gpuir_live_refresh(*live, &ix, NULL), 0);
  return ix;
}

static void test_near(void **state) {
  char folder[64], word[600];
  gpuir_live *live;
  gpuir_index *ix;
  size_t i, round;
  (void)state;
  for (round = 0; round < 6; round++) {
    snprintf(folder, sizeof folder, "/tmp/near-%ld", (long)getpid());
    ix = make_index(folder, &live);
    for (i = 0; i < 150; i++) {
      make_word(word, sizeof word, 10);
      check(ix, i % 3 ? word : words[below((uint32_t)nwords)]);
    }
    gpuir_close(ix);
    gpuir_live_close(live);
    assert_int_equal(folder_remove(folder), 0);
  }
}

static gpuir_index *index_of(const char *text, int positions) {
  gpuir_builder_desc bd;
  gpuir_builder *b;
  gpuir_index *ix;
  gpuir_error err;
  char path[64];
  snprintf(path, sizeof path, "/tmp/near-%ld.gpuir", (long)getpid());
  memset(&bd, 0, sizeof bd);
  bd.path = path;
  bd.positions = positions;
  assert_int_equal(gpuir_builder_create(&bd, &b, &err), 0);
  assert_int_equal(gpuir_builder_add_text(b, NULL, text, strlen(text), &err), 0);
  assert_int_equal(gpuir_builder_write(b, NULL, &err), 0);
  gpuir_builder_destroy(b);
  assert_int_equal(gpuir_open(path, NULL, &ix, &err), 0);
  (void)unlink(path);
  return ix;
}

static void test_edges(void **state) {
  gpuir_index *ix = index_of("wolf \xff\xfe x", 0);
  gpuir_near_term t[2];
  char longest[400];
  size_t n = 7;
  (void)state;
  memset(longest, 'w', sizeof longest);
  assert_int_equal(gpuir_terms_near(NULL, "a", 1, t, 2, &n), GPUIR_E_ARGUMENT);
  assert_int_equal(n, 0);
  assert_int_equal(gpuir_terms_near(ix, NULL, 1, t, 2, &n), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_terms_near(ix, "a", 1, NULL, 2, &n), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_terms_near(ix, "a", 1, t, 2, NULL), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_terms_near(ix, "", 0, t, 2, &n), 0);
  assert_int_equal(gpuir_terms_near(ix, "wlf", 3, NULL, 0, &n), 0);
  assert_int_equal(gpuir_terms_near(ix, longest, 255, t, 2, &n), 0);
  assert_int_equal(gpuir_terms_near(ix, longest, 256, t, 2, &n), 0);
  assert_int_equal(n, 0);
  assert_int_equal(gpuir_terms_near(ix, "\xff\xfd", 2, t, 2, &n), 0); /* not UTF-8: bytes are characters */
  assert_int_equal(n, 1);
  assert_string_equal(t[0].term, "\xff\xfe");
  assert_int_equal(gpuir_terms_near(ix, "olf", 3, t, 2, &n), 0);
  assert_int_equal(n, 1);
  assert_string_equal(t[0].term, "wolf");
  gpuir_close(ix);
}

static void test_unknown(void **state) {
  gpuir_index *ix = index_of("the wolf sleeps", 1);
  gpuir_query *q;
  const char *term;
  size_t len, i;
  static const char *const want[] = {"unicorn", "zebra*", "nowhere"};
  (void)state;
  assert_int_equal(gpuir_query_parse(ix, NULL, "wolf unicorn zebra* -lion \"the nowhere\" unicorn", 47, &q, NULL), 0);
  for (i = 0; i < 3; i++) {
    assert_int_equal(gpuir_query_unknown(q, i, &term, &len), 0);
    assert_int_equal(len, strlen(want[i]));
    assert_memory_equal(term, want[i], len);
  }
  assert_int_equal(gpuir_query_unknown(q, 3, &term, &len), GPUIR_E_NOT_FOUND);
  assert_int_equal(gpuir_query_unknown(NULL, 0, &term, &len), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_query_unknown(q, 0, NULL, &len), GPUIR_E_ARGUMENT);
  gpuir_query_destroy(q);
  gpuir_close(ix);
}

/* Each word is told of once, and what a negated phrase lacks is no reason for finding nothing. */
static void test_unknown_once(void **state) {
  static const struct {
    const char *text, *want[3];
  } rows[] = {{"lion \"lion wolf\"", {"lion", NULL, NULL}}, {"\"lion wolf\" \"wolf lion\" lion", {"lion", NULL, NULL}},
      {"wolf unicorn -\"lion bear\"", {"unicorn", NULL, NULL}},
      {"wolf -\"lion bear\" \"the bear\"", {"bear", NULL, NULL}}, {"lion* \"lion wolf\"", {"lion*", "lion", NULL}}};
  gpuir_index *ix = index_of("the wolf sleeps", 1);
  size_t i, j, len;
  (void)state;
  for (i = 0; i < sizeof rows / sizeof *rows; i++) {
    const char *term;
    gpuir_query *q;
    assert_int_equal(gpuir_query_parse(ix, NULL, rows[i].text, strlen(rows[i].text), &q, NULL), 0);
    for (j = 0; rows[i].want[j]; j++) {
      assert_int_equal(gpuir_query_unknown(q, j, &term, &len), 0);
      assert_int_equal(len, strlen(rows[i].want[j]));
      assert_memory_equal(term, rows[i].want[j], len);
    }
    assert_int_equal(gpuir_query_unknown(q, j, &term, &len), GPUIR_E_NOT_FOUND);
    gpuir_query_destroy(q);
  }
  gpuir_close(ix);
}

/* A second error is looked for only behind the same first character; a word of one character has nothing near. */
static void test_first_character(void **state) {
  gpuir_index *ix = index_of("taking making leaping b", 1);
  gpuir_near_term t[4];
  size_t n;
  (void)state;
  assert_int_equal(gpuir_terms_near(ix, "leaking", 7, t, 4, &n), 0);
  assert_int_equal(n, 1);
  assert_string_equal(t[0].term, "leaping");
  assert_int_equal(gpuir_terms_near(ix, "a", 1, t, 4, &n), 0);
  assert_int_equal(n, 0);
  gpuir_close(ix);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_near),
      cmocka_unit_test(test_edges),
      cmocka_unit_test(test_unknown),
      cmocka_unit_test(test_unknown_once),
      cmocka_unit_test(test_first_character),
  };
  return cmocka_run_group_tests_name("29_near", tests, NULL, NULL);
}
