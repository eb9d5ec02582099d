/* 30_analysis.c - text analysis: exact tokens of each analyzer but `text`, stop words, stems, hostile input. */
#include "private.h"

#include <setjmp.h>
#include <cmocka.h>

#include "alloc.h"

/* Tokens end up here, each followed by '|'. */
typedef struct sink {
  char text[8192];
  size_t len, n;
  size_t fail_at; /* 1 + the token that is answered with an error; 0: none */
} sink;

static int collect(void *user, const char *token, size_t len, unsigned advance) {
  sink *s = (sink *)user;
  assert_int_equal(advance, 1);
  s->n++;
  if (s->n == s->fail_at) return GPUIR_E_CANCELLED;
  assert_true(len >= 1 && len <= GPUIR_MAX_TERM);
  if (s->len + len + 2 < sizeof s->text) {
    memcpy(s->text + s->len, token, len);
    s->len += len;
    s->text[s->len++] = '|';
  }
  s->text[s->len] = 0;
  return 0;
}

static gpuir__analyzer *make(const char *spec, const char *stop_words) {
  gpuir__analyzer *an;
  gpuir_error err;
  int status = gpuir__analyzer_create(NULL, spec, stop_words, NULL, &an, &err);
  if (status) fail_msg("%s: %s", spec, err.msg);
  return an;
}

/* The text is copied to a block of its exact size, so that ASan sees reads beyond it. */
static uint64_t run_on(gpuir__analyzer *an, const char *text, size_t len, sink *s) {
  uint64_t dropped = 0;
  char *copy = (char *)malloc(len ? len : 1);
  assert_non_null(copy);
  if (len) memcpy(copy, text, len);
  s->len = s->n = s->fail_at = 0;
  s->text[0] = 0;
  assert_int_equal(gpuir__analyze(an, copy, len, collect, s, &dropped), 0);
  free(copy);
  return dropped;
}

static void expect_words(const char *spec, const char *stop_words, const char *text, const char *tokens) {
  gpuir__analyzer *an = make(spec, stop_words);
  sink s;
  assert_int_equal(run_on(an, text, strlen(text), &s), 0);
  assert_string_equal(s.text, tokens);
  gpuir__analyzer_destroy(an);
}

static void expect(const char *spec, const char *text, const char *tokens) { expect_words(spec, "", text, tokens); }

/* basic: the words of ascii, folded. */
static void test_basic(void **state) {
  char text[700];
  size_t i;
  (void)state;
  expect("basic", "", "");
  expect("basic", "The quick, BROWN fox!", "the|quick|brown|fox|");
  expect("basic", "na\xc3\xafve CAF\xc3\x89 cafe\xcc\x81", "naive|cafe|cafe|");
  expect("basic",
      "STRA\xc3\x9f"
      "E, \xc5\x92uvre",
      "strasse|oeuvre|");
  expect("basic", "\xd0\x99\xd0\xb8\xcc\x86\xd0\x81 \xd1\x83\xcc\x86", "\xd0\xb9\xd0\xb9\xd0\xb5|\xd1\x83|");
  expect("basic", "\xff\x80 x\xfe", "\xff\x80|x\xfe|"); /* what is no UTF-8 stays */
  expect("basic", "a\xcc\x81\xe2\x80\x94\xcc\x81\xe2\x80\x94z", "a|z|"); /* a mark by itself is no word */
  expect("basic", "\xe5\x8c\x97\xe4\xba\xac \xe0\xb8\x81\xe0\xb9\x88",
      "\xe5\x8c\x97\xe4\xba\xac|\xe0\xb8\x81\xe0\xb9\x88|");
  expect_words("basic stop=custom", "\xc3\x89T\xc3\x89", "ete \xc3\xa9t\xc3\xa9 la", "la|");
  { /* 255 bytes when folded: one of 256, and one that shrinks to 255 */
    gpuir__analyzer *an = make("basic", "");
    sink s;
    for (i = 0; i < 256; i++) memcpy(text + 2 * i, "\xc3\xa9", 2);
    assert_int_equal(run_on(an, text, 512, &s), 1);
    assert_int_equal(s.n, 0);
    assert_int_equal(run_on(an, text, 510, &s), 0);
    assert_int_equal(s.n, 1);
    assert_int_equal(s.len, 256);
    for (i = 0; i < 128; i++) memcpy(text + 3 * i, "\xe1\xbe\xb3", 3); /* two letters of one: 3 bytes become 4 */
    assert_int_equal(run_on(an, text, 3 * 63, &s), 0);
    assert_int_equal(s.len, 253);
    assert_int_equal(run_on(an, text, 3 * 64, &s), 1);
    gpuir__analyzer_destroy(an);
  }
}

static void test_ascii(void **state) {
  (void)state;
  expect("ascii", "", "");
  expect("ascii", " \n.", "");
  expect("ascii", "a", "a|");
  expect("ascii", "The quick, BROWN fox!", "the|quick|brown|fox|");
  expect("ascii", "spin_lock_irqsave(&lock, 0x1F);", "spin|lock|irqsave|lock|0x1f|");
  expect("ascii", "don't dog's AZ@[`{az09/:", "don|t|dog|s|az|az09|");
  expect("ascii", "na\xc3\xafve CAF\xc3\x89", "na\xc3\xafve|caf\xc3\x89|"); /* only ASCII is folded */
  expect("ascii", "\xff\x80 x\xfe", "\xff\x80|x\xfe|");
  { /* every byte */
    gpuir__analyzer *an = make("ascii", "");
    unsigned c;
    for (c = 0; c < 256; c++) {
      char text[3], want[8];
      sink s;
      int word = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c >= 0x80;
      text[0] = 'X';
      text[1] = (char)c;
      text[2] = 'y';
      run_on(an, text, 3, &s);
      if (word) (void)snprintf(want, sizeof want, "x%cy|", (int)(c >= 'A' && c <= 'Z' ? c + 32 : c));
      else (void)snprintf(want, sizeof want, "x|y|");
      assert_string_equal(s.text, want);
    }
    gpuir__analyzer_destroy(an);
  }
}

/* Tokens of every length up to and over the limit, at every place in the blocks of the scanner. */
static void test_lengths(void **state) {
  static const size_t lengths[] = {1, 2, 63, 64, 65, 127, 128, 254, 255, 256, 257, 300, 2048, 5000};
  static const char *const specs[] = {
      "ascii",
#ifdef GPUIR_WITH_UTF8PROC
      "unicode",
#endif
  };
  size_t i, j, gap, len = 12000;
  char *text = (char *)malloc(len);
  (void)state;
  assert_non_null(text);
  for (i = 0; i < sizeof specs / sizeof *specs; i++) {
    gpuir__analyzer *an = make(specs[i], "");
    for (j = 0; j < sizeof lengths / sizeof *lengths; j++)
      for (gap = 0; gap < 4500; gap += gap < 130 || (gap > 1900 && gap < 2200) ? 1 : 37) {
        size_t n = lengths[j];
        sink s;
        memset(text, ' ', len);
        memset(text + gap, 'Q', n);
        if (gap + n < len - 2) text[gap + n + 1] = 'Z';
        assert_int_equal(run_on(an, text, gap + n + 2, &s), n > 255);
        assert_int_equal(s.n, 1 + (n <= 255));
        if (n <= 255) {
          char want[260];
          memset(want, 'q', n);
          (void)snprintf(want + n, 4, "|z|");
          assert_string_equal(s.text, want);
        } else {
          assert_string_equal(s.text, "z|");
        }
        assert_int_equal(run_on(an, text, gap + n, &s), n > 255); /* at the end of the text */
        assert_int_equal(s.n, n <= 255);
      }
    gpuir__analyzer_destroy(an);
  }
  free(text);
}

/* Returns how many bytes the character has that text begins with, if it is one at which `ascii` parts words. */
static size_t typography(const char *text, size_t n) {
  const unsigned char *p = (const unsigned char *)text;
  unsigned c;
  if (n >= 2 && p[0] == 0xc2) return p[1] == 0xa0 || p[1] == 0xab || p[1] == 0xbb ? 2 : 0;
  if (n < 3 || (p[0] & 0xf0) != 0xe0 || (p[1] & 0xc0) != 0x80 || (p[2] & 0xc0) != 0x80) return 0;
  c = (p[0] & 15u) << 12 | (p[1] & 63u) << 6 | (p[2] & 63u);
  if (c >= 0x200c && c <= 0x200f) return 0; /* joiners, marks of direction */
  if (c >= 0x202a && c <= 0x202e) return 0; /* embedding, overriding */
  return (c >= 0x2000 && c <= 0x205f) || c == 0x3000 ? 3 : 0;
}

/* A slow model of `ascii`, on random texts. */
static void test_ascii_model(void **state) {
  gpuir__analyzer *an = make("ascii", "");
  uint32_t seed = 1;
  unsigned round;
  char text[3000], want[8192];
  (void)state;
  for (round = 0; round < 3000; round++) {
    size_t len, i, w = 0, in = 0;
    sink s;
    seed = seed * 1664525u + 1013904223u;
    len = (seed >> 8) % sizeof text;
    for (i = 0; i < len; i++) {
      seed = seed * 1664525u + 1013904223u;
      text[i] = (seed >> 28) < 3 ? ' ' : (char)(seed >> 16);
    }
    for (i = 0; i + 3 < len; i += 1 + seed % 97) { /* typography, and what only looks like it */
      static const char *const signs[] = {"\xe2\x80\x99", "\xc2\xa0", "\xe2\x80\xa6", "\xe2\x80\x8d", "\xe2\x80\x8c",
          "\xe2\x81\x9f", "\xe2\x81\xa0", "\xe3\x80\x80", "\xc2\xab", "\xc3\xa0", "\xe2\x80\xaa", "\xe2\x80\xaf",
          "\xe2\x82\xac", "\xe2\x80\xa8"};
      const char *sign = signs[(seed >> 20) % (sizeof signs / sizeof *signs)];
      seed = seed * 1664525u + 1013904223u;
      memcpy(text + i, sign, strlen(sign));
    }
    for (i = 0; i < len; i++) {
      unsigned char c = (unsigned char)text[i];
      const size_t sign = typography(text + i, len - i);
      if (sign) c = ' ', i += sign - 1;
      if (c >= 'A' && c <= 'Z') c = (unsigned char)(c + 32);
      if (c >= 0x80 || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
        want[w++] = (char)c;
        in = 1;
      } else if (in) {
        want[w++] = '|';
        in = 0;
      }
    }
    if (in) want[w++] = '|';
    want[w] = 0;
    assert_int_equal(run_on(an, text, len, &s), 0);
    assert_string_equal(s.text, want);
  }
  gpuir__analyzer_destroy(an);
}

/* Ordinary text as word processors write it. */
static void test_typography(void **state) {
  (void)state;
  expect_words("ascii", "",
      "\xe2\x80\x9cHello\xe2\x80\x9d it\xe2\x80\x99s CAF\xc3\x89\xe2\x80\x99s menu\xe2\x80\xa6 "
      "word\xe2\x80\x94"
      "dash "
      "a\xc2\xa0"
      "b \xc2\xabno\xc2\xbb \xe2\x80\xa6 na\xc3\xafve\xe2\x80\x93",
      "hello|it|s|caf\xc3\x89|s|menu|word|dash|a|b|no|na\xc3\xafve|");
#ifdef GPUIR_WITH_STEMMER
  expect_words("ascii stem=english", "", "dogs\xe2\x80\x99 it\xe2\x80\x99s CAF\xc3\x89\xe2\x80\x99s",
      "dog|it|caf\xc3\x89|");
#endif
}

static void test_stop(void **state) {
  (void)state;
  expect("ascii stop=english", "The cat AND the hat, to be or not to be; those", "cat|hat|those|");
  expect_words("ascii stop=custom", "Foo \t BAR\nfoo don't", "foo the bar baz don t do", "the|baz|do|");
  expect_words("ascii stop=custom", "", "foo the", "foo|the|");
  expect_words("ascii stop=custom", NULL, "foo the", "foo|the|");
  expect_words("ascii stop=custom", "\xff\xfe . , ;", "a \xff\xfe b", "a|b|");
  { /* all 33 words, and none else of a letter or two but those */
    gpuir__analyzer *an = make("ascii stop=english", "");
    char text[4096];
    size_t n = 0, i, j;
    sink s;
    assert_int_equal(an->stops.n, 33);
    run_on(an, gpuir__stop_english, strlen(gpuir__stop_english), &s);
    assert_int_equal(s.n, 0);
    for (i = 0; i < 26; i++)
      for (j = 0; j < 27; j++) {
        text[n++] = (char)('a' + i);
        if (j) text[n++] = (char)('a' + j - 1);
        text[n++] = ' ';
      }
    run_on(an, text, n, &s);
    assert_int_equal(s.n, 26 * 27 - 15); /* a; an as at be by if in is it no of on or to */
    gpuir__analyzer_destroy(an);
  }
  { /* a long list, with words over 255 bytes */
    size_t n = 50000, at = 0, i;
    char *words = (char *)malloc(n * 8 + 1000);
    gpuir__analyzer *an;
    sink s;
    assert_non_null(words);
    for (i = 0; i < n; i++) at += (size_t)sprintf(words + at, "w%05u ", (unsigned)i);
    memset(words + at, 'x', 600);
    words[at + 600] = 0;
    an = make("ascii stop=custom", words);
    assert_int_equal(an->stops.n, n);
    run_on(an, words, at, &s);
    assert_int_equal(s.n, 0);
    run_on(an, "w50000 w4 xx", 12, &s);
    assert_string_equal(s.text, "w50000|w4|xx|");
    gpuir__analyzer_destroy(an);
    free(words);
  }
}

/* Words that all want the same slot whatever the table's size are refused, not chained. */
static void test_stop_contrived(void **state) {
  gpuir__buf words = {NULL, 0, 0};
  gpuir_allocator a = gpuir__allocator(NULL);
  gpuir__analyzer *an;
  gpuir_error err;
  unsigned i, seed;
  char word[512]; /* long, or gcc -O3 warns of what xxhash would do with long words */
  int status;
  (void)state;
  for (seed = 0; seed < GPUIR__STOP_SEEDS; seed++) {
    unsigned found = 0;
    for (i = 0; found < 100; i++) {
      int n = snprintf(word, sizeof word, "%c%x ", 'a' + (int)seed, i);
      if (XXH3_64bits_withSeed(word, (size_t)n - 1, seed) & 0xfff) continue;
      assert_int_equal(gpuir__buf_put(&a, &words, word, (size_t)n), 0);
      found++;
    }
  }
  assert_int_equal(gpuir__buf_put(&a, &words, "", 1), 0);
  status = gpuir__analyzer_create(NULL, "ascii stop=custom", (const char *)words.data, NULL, &an, &err);
  assert_int_equal(status, GPUIR_E_LIMIT);
  assert_null(an);
  gpuir__buf_free(&a, &words);
}

#ifdef GPUIR_WITH_STEMMER
static void test_stem(void **state) {
  (void)state;
  expect("ascii stem=porter", "Running runs ponies relational x86s", "run|run|poni|relat|x86|");
  expect("ascii stem=english", "generously skies dying", "generous|sky|die|");
  expect("ascii stem=german", "H\xc3\xa4user aufeinander", "haus|aufeinand|");
  /* stop words are looked up before stemming */
  expect("ascii stem=porter stop=english", "the ands being is this", "and|be|");
  expect_words("ascii stem=porter stop=custom", "running", "running runs", "run|");
  /* a possessive */
  expect("ascii stem=porter", "dog's DOG'S 's s it's 1960's ' s dogs'", "dog|dog|s|s|it|1960|s|dog|");
  expect("ascii stem=porter", "dog\xe2\x80\x99s dog\xef\xbc\x87S \xe2\x80\x99s", "dog|dog|s|");
  expect("ascii stem=porter", "dog's. x'sy a's's", "dog|x|sy|a|");
  expect("ascii stem=porter stop=english", "it's the dog's", "dog|");
  expect("ascii stem=german", "dog's", "dog|s|");
  /* not UTF-8: no stem */
  expect("ascii stem=porter", "running\xff running\xc3\xa9", "running\xff|running\xc3\xa9|");
}

/* The cache of stems changes nothing. */
static void test_stem_cache(void **state) {
  static const char *const specs[] = {"ascii stem=porter", "ascii stem=english stop=english", "ascii stem=french"};
  size_t which;
  (void)state;
  for (which = 0; which < 3; which++) {
    gpuir__analyzer *cached = make(specs[which], "");
    gpuir__analyzer *plain = make(specs[which], "");
    uint32_t seed = 7;
    unsigned round;
    for (round = 0; round < 60000; round++) {
      static const char *const tails[] = {"", "s", "ing", "ational", "ness", "ed", "ly", "izations"};
      char word[64];
      sink s, t;
      int n;
      seed = seed * 1664525u + 1013904223u;
      n = snprintf(word, sizeof word, "%c%c%c%s%s", (int)('a' + (seed >> 8) % 26), (int)('a' + (seed >> 14) % 26),
          (int)('a' + (seed >> 20) % 26), (seed & 0x70000) ? "" : "abcdefghijklmnopqrstuvwxyz", tails[seed >> 29]);
      plain->stemmed = 0;
      run_on(cached, word, (size_t)n, &s);
      run_on(plain, word, (size_t)n, &t);
      assert_string_equal(s.text, t.text);
    }
    assert_non_null(cached->cache);
    assert_null(plain->cache);
    gpuir__analyzer_destroy(cached);
    gpuir__analyzer_destroy(plain);
  }
}

/* Any bytes go through every stemmer. */
static void test_stem_any(void **state) {
  const char **name;
  (void)state;
  for (name = sb_stemmer_list(); *name; name++) {
    char spec[64], text[2000];
    gpuir__analyzer *an;
    uint32_t seed = 3;
    unsigned round;
    size_t i;
    sink s;
    (void)snprintf(spec, sizeof spec, "ascii stem=%s", *name);
    an = make(spec, "");
    for (round = 0; round < 100; round++) {
      for (i = 0; i < sizeof text; i++) {
        seed = seed * 1664525u + 1013904223u;
        text[i] = (char)((seed >> 24) & (round & 1 ? 0x7f : 0xff));
      }
      run_on(an, text, sizeof text, &s);
    }
    memset(text, 'e', sizeof text);
    text[255] = 0;
    run_on(an, text, 255, &s);
    gpuir__analyzer_destroy(an);
  }
}
#endif

#ifdef GPUIR_WITH_UTF8PROC
static void test_unicode(void **state) {
  (void)state;
  expect("unicode", "", "");
  expect("unicode", "The quick_brown FOX, don't", "the|quick|brown|fox|don|t|");
  expect("unicode", "CAF\xc3\x89 Cafe\xcc\x81 na\xc3\xafve", "caf\xc3\xa9|caf\xc3\xa9|na\xc3\xafve|");
  expect("unicode",
      "Stra\xc3\x9f"
      "e \xef\xac\x81sh",
      "strasse|fish|"); /* sharp s, fi ligature */
  expect("unicode", "\xce\xa3\xce\xaf\xcf\x83\xcf\x85\xcf\x86\xce\xbf\xcf\x82", /* final sigma */
      "\xcf\x83\xce\xaf\xcf\x83\xcf\x85\xcf\x86\xce\xbf\xcf\x83|");
  expect("unicode", "\xd0\x9c\xd0\xbe\xd1\x81\xd0\xba\xd0\xb2\xd0\xb0",
      "\xd0\xbc\xd0\xbe\xd1\x81\xd0\xba\xd0\xb2\xd0\xb0|");
  expect("unicode", "\xef\xbc\xa1\xef\xbc\xa2\xef\xbc\x91 \xef\xbc\xbf", "ab1|"); /* full-width AB1, _ */
  expect("unicode", "x\xc2\xb2 \xc2\xbd \xe2\x91\xb4", "x2|1|2|1|"); /* x2, 1/2, (1) */
  expect("unicode",
      "\xe2\x80\x9cquoted\xe2\x80\x9d\xe2\x80\x94"
      "dash \xe2\x84\xa2 \xf0\x9f\x98\x80",
      "quoted|dash|");
  expect("unicode",
      "co\xc2\xad"
      "op a\xe2\x80\x8b"
      "b \xe2\x80\x8d\xcc\x81 \xef\xbb\xbf"
      "bom",
      "coop|a|b|bom|");
  expect("unicode", "\xe2\x84\xab \xe2\x84\xaa", "\xc3\xa5|k|"); /* angstrom, kelvin */
  expect("unicode", "\xe1\xbe\x82", "\xe1\xbc\x82\xce\xb9|");
  /* canonical order: dot below and dot above, in either order */
  expect("unicode", "q\xcc\x87\xcc\xa3 q\xcc\xa3\xcc\x87", "q\xcc\xa3\xcc\x87|q\xcc\xa3\xcc\x87|");
  /* Arabic phrase in one character: split where it has spaces */
  expect("unicode", "\xef\xb7\xba",
      "\xd8\xb5\xd9\x84\xd9\x89|\xd8\xa7\xd9\x84\xd9\x84\xd9\x87|\xd8\xb9\xd9\x84\xd9\x8a\xd9\x87|"
      "\xd9\x88\xd8\xb3\xd9\x84\xd9\x85|");
  /* Hangul: syllables, and the same from jamo */
  expect("unicode", "\xed\x95\x9c\xea\xb5\xad \xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab",
      "\xed\x95\x9c\xea\xb5\xad|\xed\x95\x9c|");
  expect("unicode", "\xed\x95\x98\xe1\x86\xab", "\xed\x95\x9c|");
}

static void test_cjk(void **state) {
  (void)state;
  expect("unicode",
      "\xe4\xb8\xad\xe5\x9b\xbd"
      "C\xe8\xaf\xad\xe8\xa8\x80",
      "\xe4\xb8\xad|\xe5\x9b\xbd|c|\xe8\xaf\xad|\xe8\xa8\x80|");
  expect("unicode",
      "\xe7\xac\xac"
      "2\xe5\x9b\x9e\xe3\x80\x82",
      "\xe7\xac\xac|2|\xe5\x9b\x9e|");
  expect("unicode", "\xe4\xba\xba\xe3\x80\x85\xe3\x80\x87", "\xe4\xba\xba|\xe3\x80\x85|\xe3\x80\x87|");
  /* saabaa (Katakana), wo (Hiragana), tsukau (Han + Hiragana), raamen with a prolonged sound mark */
  expect("unicode", "\xe3\x82\xb5\xe3\x83\xbc\xe3\x83\x90\xe3\x83\xbc\xe3\x82\x92\xe4\xbd\xbf\xe3\x81\x86",
      "\xe3\x82\xb5\xe3\x83\xbc\xe3\x83\x90\xe3\x83\xbc|\xe3\x82\x92|\xe4\xbd\xbf|\xe3\x81\x86|");
  expect("unicode", "\xe3\x82\x89\xe3\x83\xbc\xe3\x82\x81\xe3\x82\x93",
      "\xe3\x82\x89\xe3\x83\xbc\xe3\x82\x81\xe3\x82\x93|");
  /* half-width ga + prolonged: folded; ka + voiced mark: composed */
  expect("unicode", "\xef\xbd\xb6\xef\xbe\x9e\xef\xbd\xb0 \xe3\x81\x8b\xe3\x82\x99",
      "\xe3\x82\xac\xe3\x83\xbc|\xe3\x81\x8c|");
  /* a variation selector is ignored; a compatibility ideograph becomes its unified one; plane 2 */
  expect("unicode", "\xe8\x91\x9b\xf3\xa0\x84\x80\xe9\xa3\xaf", "\xe8\x91\x9b|\xe9\xa3\xaf|");
  expect("unicode", "\xef\xa4\x80\xf0\xa0\x80\x80", "\xe8\xb1\x88|\xf0\xa0\x80\x80|");
}

static void test_invalid(void **state) {
  gpuir__analyzer *an = make("unicode", "");
  unsigned i;
  sink s;
  (void)state;
  expect("unicode",
      "a\xff"
      "b\xc3",
      "a|b|");
  expect("unicode",
      "\xc0\x80"
      "a\xe0\x80\x80"
      "b\xed\xa0\x80"
      "c\xf4\x90\x80\x80"
      "d\xf8\x88\x80\x80\x80"
      "e",
      "a|b|c|d|e|");
  expect("unicode",
      "\xe4\xb8"
      "A\xe4\xb8\xad",
      "a|\xe4\xb8\xad|");
  run_on(an, "a\0b\0", 4, &s);
  assert_string_equal(s.text, "a|b|");
  for (i = 0; i < 65536; i++) { /* two bytes alone, before and after a letter */
    char text[6];
    text[0] = text[2] = (char)(i >> 8);
    text[1] = text[3] = (char)i;
    run_on(an, text, 2, &s);
    text[4] = text[0];
    text[0] = 'a';
    text[1] = 'b';
    run_on(an, text, 4, &s);
    run_on(an, text, 3, &s);
    text[4] = 'a';
    run_on(an, text + 2, 3, &s);
  }
  gpuir__analyzer_destroy(an);
}

/* Each character between two letters, against utf8proc's own folding of the whole. */
static void test_every_character(void **state) {
  gpuir__analyzer *an = make("unicode", "");
  uint32_t c;
  unsigned checked = 0;
  (void)state;
  for (c = 0x80; c < 0x110000; c++) {
    uint8_t text[8];
    size_t n, i, w = 0;
    utf8proc_uint8_t *folded = NULL;
    utf8proc_ssize_t len;
    char want[300];
    int category, in_word = 0;
    sink s, again;
    if (c >= 0xd800 && c < 0xe000) continue;
    if (c >= 0x30000 && c < 0xe0000) continue;
    text[0] = 'X';
    n = 1 + (size_t)utf8proc_encode_char((utf8proc_int32_t)c, text + 1);
    text[n++] = 'y';
    run_on(an, (const char *)text, n, &s);
    {
      char plain[8192]; /* tokens are their own tokens */
      memcpy(plain, s.text, s.len + 1);
      run_on(an, plain, s.len, &again);
      assert_string_equal(plain, again.text);
    }
    category = (int)utf8proc_category((utf8proc_int32_t)c);
    if (!(category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NO)) continue;
    if (c == 0xff9e || c == 0xff9f) continue; /* half-width voiced marks: they need kana before them */
    len = utf8proc_map(text, (utf8proc_ssize_t)n, &folded, (utf8proc_option_t)GPUIR__FOLDING);
    assert_true(len >= 2);
    for (i = 0; i < (size_t)len;) { /* without what separates, and the marks after that */
      utf8proc_int32_t d;
      size_t k = (size_t)utf8proc_iterate(folded + i, (utf8proc_ssize_t)(len - (utf8proc_ssize_t)i), &d);
      int cat = (int)utf8proc_category(d);
      int mark = cat >= UTF8PROC_CATEGORY_MN && cat <= UTF8PROC_CATEGORY_ME;
      in_word = cat >= UTF8PROC_CATEGORY_LU && cat <= UTF8PROC_CATEGORY_NO && (in_word || !mark);
      if (in_word) {
        memcpy(want + w, folded + i, k);
        w += k;
      }
      i += k;
    }
    free(folded);
    want[w] = 0;
    for (i = 0, n = 0; i < s.len; i++)
      if (s.text[i] != '|') s.text[n++] = s.text[i];
    s.text[n] = 0;
    assert_string_equal(s.text, want);
    checked++;
  }
  assert_true(checked > 100000);
  gpuir__analyzer_destroy(an);
}

/* What the quick way makes of characters must be what utf8proc makes of the word. */
static void test_random_unicode(void **state) {
  static const uint32_t base[] = {'a', 'Q', 0xc0, 0x100, 0x1c0, 0x300, 0x390, 0x410, 0x5d0, 0x627, 0x930, 0x1100,
      0x1161, 0x11a8, 0x1e00, 0x1f00, 0x3041, 0x30a1, 0x3099, 0x4e00, 0xac00, 0xff21, 0xff66, 0x2070};
  gpuir__analyzer *an = make("unicode", "");
  uint32_t seed = 11;
  unsigned round;
  (void)state;
  for (round = 0; round < 200000; round++) {
    uint8_t text[64];
    utf8proc_uint8_t *folded = NULL;
    size_t n = 0, i, k;
    utf8proc_ssize_t len;
    sink s, t;
    seed = seed * 1664525u + 1013904223u;
    k = 1 + (seed >> 8) % 8;
    for (i = 0; i < k; i++) {
      seed = seed * 1664525u + 1013904223u;
      n += (size_t)utf8proc_encode_char((utf8proc_int32_t)(base[(seed >> 8) % 24] + (seed >> 20) % 32), text + n);
    }
    run_on(an, (const char *)text, n, &s);
    len = utf8proc_map(text, (utf8proc_ssize_t)n, &folded, (utf8proc_option_t)GPUIR__FOLDING);
    assert_true(len >= 0);
    run_on(an, (const char *)folded, (size_t)len, &t); /* folding first makes no other words ... */
    free(folded);
    {
      /* ... but for the symbols that fold to words, and marks at the start that compose: compare only
       * where each character is a letter */
      int letters = 1;
      for (i = 0; i < n;) {
        utf8proc_int32_t d;
        i += (size_t)utf8proc_iterate(text + i, (utf8proc_ssize_t)(n - i), &d);
        if (utf8proc_category(d) < UTF8PROC_CATEGORY_LU || utf8proc_category(d) > UTF8PROC_CATEGORY_LO ||
            (d >= 0x3041 && d < 0xa000) || d > 0xff00)
          letters = 0;
      }
      if (letters) assert_string_equal(s.text, t.text);
    }
  }
  gpuir__analyzer_destroy(an);
}

static void test_unicode_long(void **state) {
  gpuir__analyzer *an = make("unicode", "");
  size_t i, n = 100000;
  char *text = (char *)malloc(n);
  sink s;
  (void)state;
  assert_non_null(text);
  for (i = 0; i < n; i += 2) memcpy(text + i, "\xc3\x89", 2);
  assert_int_equal(run_on(an, text, 254, &s), 0); /* 127 letters of two bytes */
  assert_int_equal(s.len, 255);
  assert_int_equal(run_on(an, text, 256, &s), 1);
  assert_int_equal(s.n, 0);
  assert_int_equal(run_on(an, text, n, &s), 1);
  for (i = 0; i + 3 <= n; i += 3) memcpy(text + i, "e\xcc\x81", 3); /* composed: the same */
  assert_int_equal(run_on(an, text, 3 * 127, &s), 0);
  assert_int_equal(s.len, 255);
  assert_int_equal(run_on(an, text, 3 * 128, &s), 1);
  assert_int_equal(run_on(an, text, n, &s), 1);
  for (i = 0; i + 2 <= n; i += 2) memcpy(text + i, i % 4 ? "\xcc\x81" : "\xcc\xa3", 2); /* marks alone */
  assert_int_equal(run_on(an, text, n, &s), 0);
  assert_int_equal(s.n, 0);
  text[0] = 'a';
  text[1] = 'a';
  assert_int_equal(run_on(an, text, n, &s), 1);
  for (i = 0; i + 3 <= n; i += 3) memcpy(text + i, "\xe4\xb8\xad", 3); /* Han without a break */
  assert_int_equal(run_on(an, text, n, &s), 0);
  assert_int_equal(s.n, n / 3);
  for (i = 0; i + 9 <= n; i += 9) memcpy(text + i, "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab", 9); /* 85 syllables */
  assert_int_equal(run_on(an, text, 9 * 85, &s), 0);
  assert_int_equal(s.len, 256);
  assert_int_equal(run_on(an, text, 9 * 86, &s), 1);
  free(text);
  gpuir__analyzer_destroy(an);
}

/* Pure ASCII gives the same tokens as `ascii`. */
static void test_same_ascii(void **state) {
  gpuir__analyzer *an = make("ascii", ""), *un = make("unicode", "");
  uint32_t seed = 5;
  unsigned round;
  char text[3000];
  (void)state;
  for (round = 0; round < 1000; round++) {
    size_t i;
    sink s, t;
    for (i = 0; i < sizeof text; i++) {
      seed = seed * 1664525u + 1013904223u;
      text[i] = (char)(seed >> 25);
    }
    assert_int_equal(run_on(an, text, sizeof text, &s), run_on(un, text, sizeof text, &t));
    assert_string_equal(s.text, t.text);
  }
  gpuir__analyzer_destroy(an);
  gpuir__analyzer_destroy(un);
}

#ifdef GPUIR_WITH_STEMMER
static void test_unicode_stem(void **state) {
  (void)state;
  expect("unicode stem=english",
      "Dog\xe2\x80\x99s dog's dog\xef\xbc\x87\xef\xbc\xb3 caf\xc3\x89's caf\xc3\xa9\xe2\x80\x99s",
      "dog|dog|dog|caf\xc3\xa9|caf\xc3\xa9|");
  expect("unicode stem=english", "\xe2\x80\x98s\xe2\x80\x99 \xe2\x80\x99s \xe4\xb8\xad's", "s|s|\xe4\xb8\xad|");
  expect("unicode stem=english stop=english", "It\xe2\x80\x99s the na\xc3\xafve runners\xe2\x80\x99 running",
      "na\xc3\xafv|runner|run|");
  expect("unicode stem=russian", "\xd0\x9a\xd0\xbd\xd0\xb8\xd0\xb3\xd0\xb8", "\xd0\xba\xd0\xbd\xd0\xb8\xd0\xb3|");
  expect("unicode", "dog\xe2\x80\x99s", "dog|s|");
}
#endif

static void test_unicode_stop(void **state) {
  (void)state;
  expect_words("unicode stop=custom",
      "\xc3\x89T\xc3\x89 \xe4\xb8\xad\xe5\x9b\xbd stra\xc3\x9f"
      "e",
      "\xc3\xa9t\xc3\xa9 e\xcc\x81te\xcc\x81 \xe4\xb8\xad \xe6\x96\x87 STRASSE x", "\xe6\x96\x87|x|");
}
#endif

/* Splits at spaces and folds nothing; user is the status it answers in the end. */
static int split(void *user, const char *text, size_t len, gpuir_token_fn emit, void *user_sink) {
  size_t i = 0, n;
  for (; i <= len; i += n + 1) {
    int status;
    n = 0;
    while (i + n < len && text[i + n] != ' ') n++;
    status = emit(user_sink, text + i, n);
    if (status && !user) return status;
  }
  return user ? *(int *)user : 0;
}

/* A tokenizer as the library keeps it; one at a time. */
static const gpuir__tokenizer *own(gpuir_tokenize_fn tokenize, void *user) {
  static gpuir__tokenizer t;
  t = gpuir__tokenizer_of(tokenize, NULL, user);
  return &t;
}

static void test_custom(void **state) {
  gpuir__analyzer *an;
  gpuir_error err;
  char text[400];
  sink s;
  int lost = 0;
  uint64_t dropped = 7;
  (void)state;
  assert_int_equal(gpuir__analyzer_create(NULL, "custom:split stop=custom", "A-b c", own(split, NULL), &an, &err), 0);
  run_on(an, "x A-b  a-b C", 12, &s);
  assert_string_equal(s.text, "x|a-b|C|");
  memset(text, 'z', sizeof text);
  text[256] = ' ';
  text[257 + 100] = ' ';
  assert_int_equal(run_on(an, text, 256, &s), 1);
  assert_int_equal(run_on(an, text, 257 + 100, &s), 1);
  assert_int_equal(s.n, 1);
  s.fail_at = 2;
  s.n = s.len = 0;
  assert_int_equal(gpuir__analyze(an, "a b d e", 7, collect, &s, &dropped), GPUIR_E_CANCELLED);
  assert_int_equal(s.n, 2);
  assert_int_equal(dropped, 7);
  gpuir__analyzer_destroy(an);
  /* a tokenizer that loses the answer of emit */
  assert_int_equal(gpuir__analyzer_create(NULL, "custom:split", "", own(split, &lost), &an, &err), 0);
  s.fail_at = 2;
  s.n = s.len = 0;
  assert_int_equal(gpuir__analyze(an, "a b d e", 7, collect, &s, NULL), GPUIR_E_CANCELLED);
  assert_int_equal(s.n, 2);
  lost = GPUIR_E_IO;
  s.fail_at = s.n = 0;
  assert_int_equal(gpuir__analyze(an, "a b d e", 7, collect, &s, NULL), GPUIR_E_IO);
  gpuir__analyzer_destroy(an);
  assert_int_equal(gpuir__analyzer_create(NULL, "custom:split stop=custom", "x", own(split, &lost), &an, &err),
      GPUIR_E_IO);
#ifdef GPUIR_WITH_STEMMER
  assert_int_equal(gpuir__analyzer_create(NULL, "custom:split stem=porter", "", own(split, NULL), &an, &err), 0);
  run_on(an, "dog's 's running", 16, &s);
  assert_string_equal(s.text, "dog|'|run|");
  gpuir__analyzer_destroy(an);
#endif
}

static void test_emit_fails(void **state) {
  gpuir__analyzer *an = make("ascii", "");
  sink s;
  (void)state;
  s.n = s.len = 0;
  s.fail_at = 3;
  assert_int_equal(gpuir__analyze(an, "a b c d", 7, collect, &s, NULL), GPUIR_E_CANCELLED);
  assert_int_equal(s.n, 3);
  s.n = s.len = 0;
  s.fail_at = 1;
  assert_int_equal(gpuir__analyze(an, "abc", 3, collect, &s, NULL), GPUIR_E_CANCELLED);
  gpuir__analyzer_destroy(an);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_ascii),
      cmocka_unit_test(test_basic),
      cmocka_unit_test(test_lengths),
      cmocka_unit_test(test_ascii_model),
      cmocka_unit_test(test_typography),
      cmocka_unit_test(test_stop),
      cmocka_unit_test(test_stop_contrived),
#ifdef GPUIR_WITH_STEMMER
      cmocka_unit_test(test_stem),
      cmocka_unit_test(test_stem_cache),
      cmocka_unit_test(test_stem_any),
#endif
#ifdef GPUIR_WITH_UTF8PROC
      cmocka_unit_test(test_unicode),
      cmocka_unit_test(test_cjk),
      cmocka_unit_test(test_invalid),
      cmocka_unit_test(test_every_character),
      cmocka_unit_test(test_random_unicode),
      cmocka_unit_test(test_unicode_long),
      cmocka_unit_test(test_same_ascii),
#ifdef GPUIR_WITH_STEMMER
      cmocka_unit_test(test_unicode_stem),
#endif
      cmocka_unit_test(test_unicode_stop),
#endif
      cmocka_unit_test(test_custom),
      cmocka_unit_test(test_emit_fails),
  };
  return cmocka_run_group_tests_name("30_analysis", tests, NULL, NULL);
}
