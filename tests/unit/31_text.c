/* 31_text.c - the analyzer `text`: the tokens of what people write, where they stand, what queries ask for, and
 * hostile texts. tests/e2e/text.py holds random texts against a model. */
#include "private.h"

#include <setjmp.h>
#include <cmocka.h>

#include "alloc.h"
#include "rng.h"

#ifdef GPUIR_WITH_UTF8PROC

/* Tokens end up here: '+' before one at the position of the one before, '|' for FF, a blank behind each. */
typedef struct sink {
  gpuir__analyzer *an;
  char text[1 << 16];
  size_t len, n, text_len;
  unsigned at_place, query;
} sink;

static int collect(void *user, const char *token, size_t len, unsigned advance) {
  sink *s = (sink *)user;
  size_t i;
  s->n++;
  s->at_place = advance ? 1 : s->at_place + 1;
  assert_true(len >= 1 && len <= GPUIR_MAX_TERM);
  assert_true(s->query || s->at_place <= GPUIR_MAX_PLACE);
  assert_true(s->an->at < s->an->end && s->an->end <= s->text_len);
  if (s->len + len + 3 >= sizeof s->text) return 0;
  if (!advance) s->text[s->len++] = '+';
  for (i = 0; i < len; i++) s->text[s->len++] = token[i] == '\xff' ? '|' : token[i];
  s->text[s->len++] = ' ';
  s->text[s->len] = 0;
  return 0;
}

static gpuir__analyzer *make(const char *spec, const char *stop_words) {
  gpuir__analyzer *an;
  gpuir_error err;
  const int status = gpuir__analyzer_create(NULL, spec, stop_words, NULL, &an, &err);
  if (status) fail_msg("%s: %s", spec, err.msg);
  return an;
}

/* The text is copied to a block of its exact size, so that ASan sees reads beyond it. */
static uint64_t run_on(gpuir__analyzer *an, const char *text, size_t len, int query, sink *s) {
  uint64_t dropped = 0;
  char *copy = (char *)malloc(len ? len : 1);
  assert_non_null(copy);
  if (len) memcpy(copy, text, len);
  s->an = an;
  s->len = s->n = s->at_place = 0;
  s->text[0] = 0;
  s->text_len = len;
  s->query = (unsigned)query;
  assert_int_equal(
      query ? gpuir__analyze_query(an, copy, len, collect, s) : gpuir__analyze(an, copy, len, collect, s, &dropped), 0);
  free(copy);
  return dropped;
}

static void expect(gpuir__analyzer *an, int query, const char *text, const char *tokens) {
  static sink s;
  assert_int_equal(run_on(an, text, strlen(text), query, &s), 0);
  if (s.len) s.text[s.len - 1] = 0;
  if (strcmp(s.text, tokens) != 0) fail_msg("%s: %s, not %s", text, s.text, tokens);
}

#ifdef GPUIR_WITH_STEMMER
/* What people write: the tokens of texts, and what a query's word asks for. */
static void test_words(void **state) {
  static const char *const words[][3] = {
      {"O'Reilly", "o reilli +|po|reilli +oreilli", "|po|reilli +oreilli"},
      {"don't", "don t +|pdon|t +dont", "|pdon|t +dont"},
      {"AR-7", "ar 7 +|par|7 +ar7", "|par|7 +ar7"},
      {"14.2.1.0", "14 2 +|p14|2 1 +|p2|1 0 +|p1|0", "|p14|2 |p2|1 |p1|0"},
      {"1,000", "1 000", "1 000"},
      {"foo.bar()", "foo bar +|pfoo|bar", "|pfoo|bar"},
      {"getUserName", "getusernam +get +user +name", "getusernam +get +user +name"},
      {"authorization_token", "author token +|pauthor|token", "|pauthor|token"},
      {"GitHub", "github +git +hub", "github"},
      {"HTTPSConnections", "httpsconnect +https +connect", "httpsconnect"},
      {"utf8", "utf8 +utf", "utf8 +utf"},
      {"UTF-8", "utf 8 +|putf|8 +utf8", "|putf|8 +utf8"},
      {"b995f2b", "b995f2b", "b995f2b"},
      {"C++", "c +c++", "c++"},
      {"C#", "c +c#", "c#"},
      {".NET", "net +.net", ".net"},
      {"(#tag", "tag +#tag", "#tag"},
      {"@you", "you +@you", "@you"},
      {"foo#bar a+b x++y f().g", "foo bar a b x y f g", "foo bar a b x y f g"},
      {"joe@example.com", "joe exampl +|pjoe|exampl com +|pexampl|com", "|pjoe|exampl |pexampl|com"},
      {"https://www.a.b", "https www a +|pwww|a b +|pa|b", "https |pwww|a |pa|b"},
      {"e-mail", "e mail +|pe|mail +email", "|pe|mail +email"},
      {"U.S.A.", "u s +|pu|s a +|ps|a +usa", "|pu|s |ps|a +usa"},
      {"dog's-house", "dog hous +|pdog|hous +doghous", "|pdog|hous +doghous"},
      {"caf\xc3\xa9", "cafe +|xcaf\xc3\xa9", "cafe +|xcaf\xc3\xa9"},
      {"r\xc3\xa9sum\xc3\xa9s", "resume +resum +|xr\xc3\xa9sum\xc3\xa9", "resume +resum +|xr\xc3\xa9sum\xc3\xa9"},
      {"\xc4\xb0stanbul", "istanbul +|xi\xcc\x87stanbul", "istanbul +|xi\xcc\x87stanbul"},
      {"\xc4\xb1stanbul", "istanbul +|x\xc4\xb1stanbul", "istanbul +|x\xc4\xb1stanbul"},
      {"stra\xc3\x9f"
       "e \xef\xac\x81 \xef\xbc\xa1\xef\xbc\xa2",
          "strass fi ab", "strass fi ab"},
      {"soft\xc2\xadhyphen", "softhyphen", "softhyphen"},
      {"fooBar\xe1\x85\x9f"
       "BazQux",
          "foobarbazqux +foo +bar +baz +qux", "foobarbazqux +foo +bar +baz +qux"},
      {"e\xcc\x81", "e +|x\xc3\xa9", "e +|x\xc3\xa9"},
      {"\xe5\x8c\x97\xe4\xba\xac", "\xe5\x8c\x97 \xe4\xba\xac +|p\xe5\x8c\x97|\xe4\xba\xac",
          "|p\xe5\x8c\x97|\xe4\xba\xac"},
      {"USB\xe3\x83\xa1", "usb \xe3\x83\xa1 +|pusb|\xe3\x83\xa1", "|pusb|\xe3\x83\xa1"},
      {"\xf0\x9f\x8e\x89", "\xf0\x9f\x8e\x89", "\xf0\x9f\x8e\x89"},
      {">>> _ - .", "", ""},
      /* marks that are letters' sounds stay: short i, Thai, kana, Devanagari, Hangul in jamo */
      {"\xd0\xb9 \xd1\x91", "\xd0\xb9 \xd0\xb5 +|x\xd1\x91", "\xd0\xb9 \xd0\xb5 +|x\xd1\x91"},
      {"\xe0\xb8\x81\xe0\xb9\x88", "\xe0\xb8\x81 \xe0\xb9\x88 +|p\xe0\xb8\x81|\xe0\xb9\x88",
          "|p\xe0\xb8\x81|\xe0\xb9\x88"},
      {"\xe3\x81\x8b\xe3\x82\x99", "\xe3\x81\x8c", "\xe3\x81\x8c"},
      {"\xe0\xa4\x95\xe0\xa5\x8d\xe0\xa4\xb7", "\xe0\xa4\x95\xe0\xa5\x8d\xe0\xa4\xb7",
          "\xe0\xa4\x95\xe0\xa5\x8d\xe0\xa4\xb7"},
      {"\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8", "\xea\xb0\x81", "\xea\xb0\x81"},
  };
  gpuir__analyzer *an = make("text stem=english", "");
  size_t i;
  (void)state;
  for (i = 0; i < sizeof words / sizeof *words; i++) {
    expect(an, 0, words[i][0], words[i][1]);
    expect(an, 1, words[i][0], words[i][2]);
  }
  gpuir__analyzer_destroy(an);
  an = make("text stem=english nofold", "");
  expect(an, 0, "caf\xc3\xa9s O'Reilly", "caf\xc3\xa9 o reilli +|po|reilli +oreilli");
  gpuir__analyzer_destroy(an);
}
#endif

/* A stop word is left out alone, never from a pair; it is a folded word, neither stemmed nor without its marks. */
static void test_stop(void **state) {
  gpuir__analyzer *an = make("text stop=custom", "The of d\xc3\xa0");
  (void)state;
  expect(an, 0, "the cat-of the-of x d\xc3\xa0 da", "cat +|pcat|of +catof +|pthe|of +theof x da");
  expect(an, 1, "the", "");
  expect(an, 1, "the-cat", "|pthe|cat +thecat");
  gpuir__analyzer_destroy(an);
}

/* A segment that is too long parts its neighbours; pairs that are too long are named by their hashes. */
static void test_long(void **state) {
  gpuir__analyzer *an = make("text", "");
  static sink s;
  char text[1000];
  (void)state;
  memset(text, 'x', sizeof text);
  memcpy(text, "aB-", 3);
  memcpy(text + 3 + 256, "-c", 2);
  assert_int_equal(run_on(an, text, 3 + 256 + 2, 0, &s), 1);
  assert_string_equal(s.text, "ab c ");
  assert_int_equal(run_on(an, text, 3 + 256 + 2, 1, &s), 0);
  assert_string_equal(s.text, "ab c ");
  memset(text, 'x', sizeof text);
  text[255] = '.';
  assert_int_equal(run_on(an, text, 300, 0, &s), 0);
  assert_int_equal(s.n, 3);
  assert_memory_equal(s.text + 256 + 45, "+|P", 3);
  gpuir__analyzer_destroy(an);
}

/* Words of many segments, pairs of many stop words, junk of marks, and any bytes at all. */
static void test_hostile(void **state) {
  gpuir__analyzer *an = make("text stop=custom", "the");
  const int rounds = getenv("GPUIR_LONG") ? 100000 : 3000;
  const size_t size = 400000;
  char *text = (char *)malloc(size);
  static sink s;
  rng r = {8};
  size_t i, len;
  int round;
  (void)state;
  assert_non_null(text);
  for (i = 0; i + 4 < size; i += 4) memcpy(text + i, "the.", 4);
  text[0] = 'x';
  assert_int_equal(run_on(an, text, size - 4, 0, &s), 0);
  assert_true(s.n >= size / 4 - 4);
  for (i = 0; i + 2 <= size; i += 2) memcpy(text + i, "\xcc\x81", 2);
  text[0] = 'x';
  text[1] = 'y';
  assert_int_equal(run_on(an, text, size - size % 2, 0, &s), 1);
  assert_string_equal(s.text, "x ");
  for (round = 0; round < rounds; round++) {
    static const char *const bits[] = {"\xcc\x81", "\xe0\xb8\x81", "A", "b", "7", ".", "-", "'", "#", "++", " ",
        "\xef\xbd\xb6", "\xef\xbe\x9e", "\xe1\x84\x80", "\xe1\x85\xa1", "\xf0\x9f\x87\xa9", "\xe2\x80\x8d", "\xc5\x80",
        "\xc4\xb0"};
    for (len = 0; len < 60;) {
      const char *bit = bits[rng_below(&r, sizeof bits / sizeof *bits)];
      if (rng_below(&r, 8)) {
        memcpy(text + len, bit, strlen(bit));
        len += strlen(bit);
      } else {
        text[len++] = (char)rng_below(&r, 256);
      }
    }
    (void)run_on(an, text, len, (int)rng_below(&r, 2), &s);
  }
  gpuir__analyzer_destroy(an);
  free(text);
}

/* Returns a mark's place in the text for each token: "at-end". */
static int collect_places(void *user, const char *token, size_t len, unsigned advance) {
  sink *s = (sink *)user;
  (void)token;
  (void)len;
  s->len +=
      (size_t)snprintf(s->text + s->len, 32, "%s%u-%u ", advance ? "" : "+", (unsigned)s->an->at, (unsigned)s->an->end);
  return 0;
}

static void test_places(void **state) {
  gpuir__analyzer *an = make("text", "");
  static sink s;
  const char *text = "a getUserName foo-bar-baz C++";
  (void)state;
  s.an = an;
  s.len = 0;
  assert_int_equal(gpuir__analyze(an, text, strlen(text), collect_places, &s, NULL), 0);
  assert_string_equal(s.text, "0-1 2-13 +2-5 +5-9 +9-13 14-17 18-21 +14-21 22-25 +18-25 +14-25 26-27 +26-29 ");
  gpuir__analyzer_destroy(an);
}

/* Writes a text of what segments and words are made of, len < size. */
static size_t random_text(rng *r, char *text, size_t size) {
  static const char *const bits[] = {"get", "User", "HTTP", "utf", "8", "the", "running", "s", "x", "Name",
      "internationali", "7", "_", ".", "::", "-", "'", "@", "#", "++", "(", ") ", " ", "  ", "\n", "\xc3\xa9",
      "\xcc\x81", "\xe4\xba\xac", "\xff"};
  size_t len = 0;
  for (;;) {
    const char *bit = bits[rng_below(r, sizeof bits / sizeof *bits)];
    if (len + strlen(bit) >= size) return len;
    memcpy(text + len, bit, strlen(bit));
    len += strlen(bit);
  }
}

/* Segments whose tokens are kept in the table, and those that drive others out of it, make what they make without. */
static void test_known(void **state) {
  static const char *const specs[] = {
      "text stop=custom",
#ifdef GPUIR_WITH_STEMMER
      "text stop=custom stem=english",
      "text stop=custom stem=german",
#endif
  };
  static sink kept, made;
  char text[120], word[16];
  rng r = {38};
  size_t i, k, len;
  (void)state;
  for (k = 0; k < sizeof specs / sizeof *specs; k++) {
    gpuir__analyzer *an = make(specs[k], "the User"), *slow = make(specs[k], "the User");
    gpuir__wording_of(slow)->unknown = 1000; /* its table is never made */
    for (i = 0; i < 20000; i++) {
      if (rng_below(&r, 2)) {
        len =
            (size_t)snprintf(word, sizeof word, "w%xQ%u", (unsigned)rng_below(&r, 1 << 14), (unsigned)rng_below(&r, 9));
        memcpy(text, word, len);
      } else {
        len = random_text(&r, text, 1 + rng_below(&r, sizeof text));
      }
      assert_int_equal(run_on(an, text, len, 0, &kept), run_on(slow, text, len, 0, &made));
      if (strcmp(kept.text, made.text) != 0) fail_msg("%.*s: %s, not %s", (int)len, text, kept.text, made.text);
      kept.len = made.len = 0;
      assert_int_equal(gpuir__analyze(an, text, len, collect_places, &kept, NULL), 0);
      assert_int_equal(gpuir__analyze(slow, text, len, collect_places, &made, NULL), 0);
      assert_int_equal(kept.len, made.len);
      assert_memory_equal(kept.text, made.text, kept.len);
    }
    assert_non_null(gpuir__wording_of(an)->known);
    assert_null(gpuir__wording_of(slow)->known);
    gpuir__analyzer_destroy(an);
    gpuir__analyzer_destroy(slow);
  }
}

/* Where there is no memory for the table, texts are analysed without it. */
static void *no_table(void *user, void *ptr, size_t old_size, size_t new_size) {
  (void)user;
  (void)old_size;
  if (new_size == sizeof(gpuir__known) << GPUIR__T_KNOWN_BITS) return NULL;
  if (new_size) return realloc(ptr, new_size);
  free(ptr);
  return NULL;
}

static void test_no_table(void **state) {
  gpuir_allocator a = {no_table, NULL};
  gpuir__analyzer *an;
  gpuir_error err;
  int i;
  (void)state;
  assert_int_equal(gpuir__analyzer_create(&a, "text", "", NULL, &an, &err), 0);
  for (i = 0; i < 600; i++) expect(an, 0, "getUserName", "getusername +get +user +name");
  assert_null(gpuir__wording_of(an)->known);
  gpuir__analyzer_destroy(an);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#ifdef GPUIR_WITH_STEMMER
      cmocka_unit_test(test_words),
#endif
      cmocka_unit_test(test_stop),
      cmocka_unit_test(test_long),
      cmocka_unit_test(test_hostile),
      cmocka_unit_test(test_places),
      cmocka_unit_test(test_known),
      cmocka_unit_test(test_no_table),
  };
  return cmocka_run_group_tests_name("31_text", tests, NULL, NULL);
}

#else
int main(void) { return 0; }
#endif
