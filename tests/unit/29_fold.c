/* 29_fold.c - the table of letters without marks: against what the analyzer `text` makes of each letter. */
#include "private.h"

#include <setjmp.h>
#include <cmocka.h>

/* Folds the characters of a word; returns their number. */
static size_t fold(const uint32_t *word, size_t n, uint32_t *to) {
  size_t i, kept = 0;
  for (i = 0; i < n; i++) kept += gpuir__fold_of(word[i], to + kept);
  return kept;
}

static void expect(uint32_t c, uint32_t first, uint32_t second) {
  uint32_t to[2] = {0, 0};
  const size_t n = fold(&c, 1, to);
  assert_int_equal(n, (first != 0) + (second != 0));
  if (n) assert_int_equal(to[0], first);
  if (n > 1) assert_int_equal(to[1], second);
}

static void test_letters(void **state) {
  uint32_t c;
  (void)state;
  for (c = 1; c < 0x80; c++) expect(c, c, 0); /* the caller's */
  expect(0xc9, 'e', 0); /* the acute E */
  expect(0xdf, 's', 's');
  expect(0x152, 'o', 'e');
  expect(0x131, 'i', 0); /* dotless */
  expect(0x130, 'i', 0);
  expect(0x141, 'l', 0);
  expect(0x3a9, 0x3c9, 0);
  expect(0x3c2, 0x3c3, 0); /* final sigma */
  expect(0x401, 0x435, 0); /* Cyrillic io */
  expect(0x419, 0x439, 0); /* short i stays one */
  expect(0x439, 0x439, 0);
  expect(0x1ea4, 'a', 0); /* Vietnamese */
  expect(0x1fb3, 0x3b1, 0x3b9);
  expect(0x300, 0, 0);
  expect(0x36f, 0, 0);
  expect(0x345, 0x3b9, 0);
  for (c = 0x530; c < 0x1e00; c++) expect(c, c, 0); /* other scripts */
  for (c = 0x2000; c < 0x11000; c++) expect(c, c, 0);
  expect(0x10ffff, 0x10ffff, 0);
}

/* What is folded folds to itself: a query is folded as texts are. */
static void test_twice(void **state) {
  uint32_t c;
  (void)state;
  for (c = 0x80; c < 0x2000; c++) {
    uint32_t once[2], twice[4];
    const size_t n = fold(&c, 1, once);
    assert_int_equal(fold(once, n, twice), n);
    assert_memory_equal(once, twice, n * sizeof *once);
  }
}

#if defined(GPUIR_WITH_UTF8PROC) && !defined(GPUIR_NO_TEXT)
typedef struct words {
  size_t n;
  char text[64];
} words;

static int collect(void *user, const char *token, size_t len, unsigned advance) {
  words *w = (words *)user;
  if (!advance) return 0;
  w->n++;
  memcpy(w->text, token, len);
  w->text[len] = 0;
  return 0;
}

static gpuir__analyzer *make(const char *spec) {
  gpuir__analyzer *an;
  gpuir_error err;
  if (gpuir__analyzer_create(NULL, spec, "", NULL, &an, &err)) fail_msg("%s: %s", spec, err.msg);
  return an;
}

/* Letters of which `text` makes something else: two words of the l with a middle dot, and modifiers that stay. */
static int differs(uint32_t c) { return c == 0x13f || c == 0x140 || c == 0x149 || c == 0x1e9a; }

static void test_text(void **state) {
  gpuir__analyzer *text = make("text"), *basic = make("basic");
  unsigned compared = 0;
  uint32_t c;
  (void)state;
  for (c = 0xaa; c < 0x2000; c++) {
    gpuir__utf8_word w;
    words a, b;
    if ((c > 0x24f && c < 0x370) || (c > 0x52f && c < 0x1e00) || differs(c)) continue;
    if (gpuir__char_class(c) != GPUIR__LETTER || utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_NO)
      continue;
    w.len = a.n = b.n = 0;
    gpuir__utf8_word_put(&w, c);
    assert_int_equal(gpuir__analyze(text, (const char *)w.bytes, w.len, collect, &a, NULL), 0);
    assert_int_equal(gpuir__analyze(basic, (const char *)w.bytes, w.len, collect, &b, NULL), 0);
    if (a.n != 1) continue; /* a spacing accent */
    assert_int_equal(b.n, 1);
    if (strcmp(a.text, b.text)) fail_msg("U+%04X: text makes %s of it, basic %s", (unsigned)c, a.text, b.text);
    compared++;
  }
  assert_true(compared > 1000);
  gpuir__analyzer_destroy(text);
  gpuir__analyzer_destroy(basic);
}
#endif

int main(void) {
  static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_letters),
    cmocka_unit_test(test_twice),
#if defined(GPUIR_WITH_UTF8PROC) && !defined(GPUIR_NO_TEXT)
    cmocka_unit_test(test_text),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
