/* 33_analyzers.c - specifications of analyzers, those that are refused, and losses of memory. */
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

static void spec_is(const char *analyzer, const char *stem, const char *stop, const char *words,
    gpuir_tokenize_fn tokenize, int status, const char *want) {
  gpuir_analyzer_desc d;
  gpuir_error err;
  char spec[GPUIR__SPEC_MAX];
  memset(&d, 0, sizeof d);
  d.analyzer = analyzer;
  d.stem = stem;
  d.stop = stop;
  d.stop_words = words;
  d.tokenize = tokenize;
  err.code = 0;
  assert_int_equal(gpuir__analyzer_spec(&d, spec, sizeof spec, &err), status);
  assert_int_equal(err.code, status);
  if (status) assert_non_null(strstr(err.msg, want));
  else assert_string_equal(spec, want);
}

static void test_spec(void **state) {
  char spec[GPUIR__SPEC_MAX], small[8], name[80];
  gpuir_error err;
  (void)state;
  assert_int_equal(gpuir__analyzer_spec(NULL, spec, sizeof spec, &err), 0);
  assert_string_equal(spec, "basic");
  spec_is(NULL, NULL, NULL, NULL, NULL, 0, "basic");
  spec_is("basic", NULL, NULL, NULL, split, GPUIR_E_ARGUMENT, "built-in");
  spec_is(NULL, "porter", "english", NULL, NULL, 0, "basic stem=porter stop=english");
  spec_is("unicode", NULL, NULL, " a b ", NULL, 0, "unicode stop=custom");
  spec_is("ascii", NULL, NULL, " \n", NULL, 0, "ascii");
  spec_is("mine", "german", NULL, NULL, split, 0, "custom:mine stem=german");
  spec_is("mine", NULL, NULL, NULL, NULL, GPUIR_E_ARGUMENT, "unknown analyzer");
  spec_is("", NULL, NULL, NULL, NULL, GPUIR_E_ARGUMENT, "1 to 64");
  spec_is(NULL, NULL, NULL, NULL, split, GPUIR_E_ARGUMENT, "name");
  spec_is("text", "english", "english", NULL, NULL, 0, "text stem=english stop=english");
  spec_is("text", NULL, NULL, NULL, split, GPUIR_E_ARGUMENT, "built-in");
  spec_is("ascii", NULL, NULL, NULL, split, GPUIR_E_ARGUMENT, "built-in");
  spec_is("unicode", NULL, NULL, NULL, split, GPUIR_E_ARGUMENT, "built-in");
  spec_is("a b", NULL, NULL, NULL, split, GPUIR_E_ARGUMENT, "white space");
  spec_is("a\n", NULL, NULL, NULL, split, GPUIR_E_ARGUMENT, "white space");
  spec_is(NULL, "por ter", NULL, NULL, NULL, GPUIR_E_ARGUMENT, "white space");
  spec_is(NULL, "", NULL, NULL, NULL, GPUIR_E_ARGUMENT, "stemmer");
  spec_is(NULL, NULL, "english", "a", NULL, GPUIR_E_ARGUMENT, "exclude");
  spec_is(NULL, NULL, "french", NULL, NULL, GPUIR_E_ARGUMENT, "stop list");
  memset(name, 'n', sizeof name);
  name[64] = 0;
  spec_is(name, name, "english", NULL, split, 0,
      "custom:nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn "
      "stem=nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn stop=english");
  name[64] = 'n';
  name[65] = 0;
  spec_is(name, NULL, NULL, NULL, split, GPUIR_E_ARGUMENT, "1 to 64");
  {
    gpuir_analyzer_desc d;
    memset(&d, 0, sizeof d);
    d.no_fold = 1;
    assert_int_equal(gpuir__analyzer_spec(&d, spec, sizeof spec, &err), GPUIR_E_ARGUMENT);
    assert_non_null(strstr(err.msg, "only the analyzer"));
    d.analyzer = "text";
    d.stem = "english";
    d.stop_words = "a";
    assert_int_equal(gpuir__analyzer_spec(&d, spec, sizeof spec, &err), 0);
    assert_string_equal(spec, "text stem=english nofold stop=custom");
    memset(&d, 0, sizeof d);
    d.stop = "english";
    assert_int_equal(gpuir__analyzer_spec(&d, small, sizeof small, NULL), GPUIR_E_ARGUMENT);
    assert_int_equal(gpuir__analyzer_spec(&d, NULL, 0, NULL), GPUIR_E_ARGUMENT);
  }
}

static void create_fails(const char *spec, int want, const char *message) {
  gpuir__analyzer *an = (gpuir__analyzer *)(void *)spec;
  gpuir_error err;
  assert_int_equal(gpuir__analyzer_create(NULL, spec, "", NULL, &an, &err), want);
  assert_null(an);
  assert_non_null(strstr(err.msg, message));
  assert_int_equal(gpuir__analyzer_create(NULL, spec, "", NULL, &an, NULL), want);
}

/* The lists ascend and have their words; a specification's language is its stemmer, all of English being one. */
static void test_language(void **state) {
  static const char *const specs[][2] = {{"ascii", ""}, {"text stem=german nofold", "german"}, {"text stem=", ""},
      {"unicode stem=porter stop=english", "english"}, {"unicode stem=en", "english"},
      {"custom:a stem=eng", "english"}};
  const char *list = gpuir_stop_list("english-questions"), *word, *next;
  char language[GPUIR__NAME_MAX + 8];
  size_t i, n = 1;
  (void)state;
  assert_null(gpuir_stop_list(NULL));
  assert_null(gpuir_stop_list("german"));
  assert_string_equal(gpuir_stop_list("english"), gpuir__stop_english);
  for (word = list; (next = strchr(word, ' ')) != NULL; word = next + 1, n++)
    assert_true(
        strncmp(word, next + 1, (size_t)(next - word) + 1) < 0 || !strncmp(word, next + 1, (size_t)(next - word)));
  assert_int_equal(n, 125);
  for (i = 0; i < sizeof specs / sizeof *specs; i++) {
    gpuir__spec_language(specs[i][0], language);
    assert_string_equal(language, specs[i][1]);
  }
}

/* An index is read by the analyzer that made its terms: what it says of that one has a revision for each. */
static void test_revision(void **state) {
  (void)state;
  assert_string_equal(gpuir__analyzer_revision("ascii"), "2");
  assert_string_equal(gpuir__analyzer_revision("ascii stem=porter stop=english"), "2");
  assert_string_equal(gpuir__analyzer_revision("basic"), "1");
  assert_string_equal(gpuir__analyzer_revision("unicode stem=english"), "1");
  assert_string_equal(gpuir__analyzer_revision("text stem=english"), "1");
  assert_string_equal(gpuir__analyzer_revision("custom:ascii"), "1");
  assert_string_equal(gpuir__analyzer_revision("asciiish"), "1");
}

static void test_create_errors(void **state) {
  static const char *const malformed[] = {"", " ", "ascii ", "ascii  stop=english", " ascii", "ascii\n", "ascii stem",
      "ascii stem=", "ascii =x", "ascii stop=english stop=english", "custom:", "ascii stem=a\tb", "ascii stop=english ",
      "\x01"};
  size_t i;
  uint32_t seed = 9;
  char big[5000];
  (void)state;
  for (i = 0; i < sizeof malformed / sizeof *malformed; i++) create_fails(malformed[i], GPUIR_E_FORMAT, "malformed");
  memset(big, 'x', sizeof big);
  big[sizeof big - 1] = 0;
  create_fails(big, GPUIR_E_FORMAT, "malformed");
  memcpy(big, "ascii stem=", 11);
  create_fails(big, GPUIR_E_FORMAT, "malformed");
  memcpy(big, "ascii xxxxx", 11);
  create_fails(big, GPUIR_E_FORMAT, "malformed");
  create_fails("klingon", GPUIR_E_UNSUPPORTED, "klingon");
  create_fails("custom:mine", GPUIR_E_UNSUPPORTED, "mine");
  create_fails("ascii stop=french", GPUIR_E_UNSUPPORTED, "french");
  create_fails("ascii nofold", GPUIR_E_FORMAT, "malformed");
#ifdef GPUIR_WITH_UTF8PROC
  create_fails("text nofold nofold", GPUIR_E_FORMAT, "malformed");
  create_fails("text nofolds", GPUIR_E_FORMAT, "malformed");
#else
  create_fails("text", GPUIR_E_UNSUPPORTED, "this build has no text analyzer (define GPUIR_WITH_UTF8PROC)");
#endif
  create_fails("ascii ngram=3", GPUIR_E_UNSUPPORTED, "ngram");
  create_fails("ascii stem=klingon", GPUIR_E_UNSUPPORTED, "klingon");
#ifndef GPUIR_WITH_UTF8PROC
  create_fails("unicode", GPUIR_E_UNSUPPORTED, "this build has no unicode analyzer (define GPUIR_WITH_UTF8PROC)");
#endif
#ifndef GPUIR_WITH_STEMMER
  create_fails("ascii stem=porter", GPUIR_E_UNSUPPORTED, "define GPUIR_WITH_STEMMER");
#endif
  for (i = 0; i < 20000; i++) { /* damaged specifications */
    char spec[] = "unicode stem=porter stop=english";
    gpuir__analyzer *an;
    int times;
    for (times = 0; times < 2; times++) {
      seed = seed * 1664525u + 1013904223u;
      spec[(seed >> 8) % (sizeof spec - 1)] = (char)(seed >> 24);
    }
    const gpuir__tokenizer own = gpuir__tokenizer_of(split, NULL, NULL);
    if (!gpuir__analyzer_create(NULL, spec, "", &own, &an, NULL)) gpuir__analyzer_destroy(an);
  }
  gpuir__analyzer_destroy(NULL);
}

static void test_nomem(void **state) {
  static const char *const specs[] = {
      "ascii",
      "ascii stop=custom",
#ifdef GPUIR_WITH_UTF8PROC
      "text stop=custom",
#endif
#ifdef GPUIR_WITH_STEMMER
      "ascii stem=porter stop=english",
#endif
  };
  char words[3000], text[3000];
  size_t i, n, at = 0;
  (void)state;
  for (i = 0; i < 500; i++) at += (size_t)sprintf(words + at, "w%u ", (unsigned)i);
  memset(text, 'r', sizeof text);
  for (i = 0; i < sizeof text; i += 4) text[i] = ' ';
  for (i = 0; i < sizeof specs / sizeof *specs; i++)
    for (n = 0; n < 40; n++) {
      alloc_book b;
      gpuir_allocator a = alloc_from(&b);
      gpuir__analyzer *an;
      gpuir_error err;
      sink s;
      int status;
      memset(&b, 0, sizeof b);
      b.fail_at = (int64_t)n + 1;
      b.forever = 1;
      status = gpuir__analyzer_create(&a, specs[i], words, NULL, &an, &err);
      if (status) assert_int_equal(status, GPUIR_E_NOMEM);
      else {
        run_on(an, text, sizeof text, &s); /* works without the cache of stems */
        assert_int_equal(s.n, sizeof text / 4);
        gpuir__analyzer_destroy(an);
      }
      assert_int_equal(b.bytes, 0);
      if (n == 39) assert_int_equal(status, 0);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_spec),
      cmocka_unit_test(test_create_errors),
      cmocka_unit_test(test_language),
      cmocka_unit_test(test_revision),
      cmocka_unit_test(test_nomem),
  };
  return cmocka_run_group_tests_name("33_analyzers", tests, NULL, NULL);
}
