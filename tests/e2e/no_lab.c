/* no_lab.c - a program of an embedder, built with GPUIR_NO_LAB and the other macros that leave something out: what it
 * says about indexes, names and queries that need what was left out, and that it builds and searches by itself.
 *
 * usage: no_lab DIR, where no_lab.bats has made the indexes ef, optpfd, auto, bp128, basic, stored and, if the
 * command can, text. Prints "ok".
 */
#define GPUIR_NO_LAB
#define GPUIR_NO_NEAR
#define GPUIR_NO_TEXT
#define GPUIR_NO_RANK
#define GPUIR_NO_FOLD
#define GPUIR_NO_STORE
#define GPUIR_STATIC
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"

#define CHECK(x) \
  do { \
    if (!(x)) { \
      fprintf(stderr, "no_lab.c:%d: %s\n%d: %s\n", __LINE__, #x, err.code, err.msg); \
      exit(1); \
    } \
  } while (0)

static gpuir_error err;
static const char *dir;

static int open_index(const char *name, gpuir_index **ix) {
  char path[4096];
  (void)snprintf(path, sizeof path, "%s/%s", dir, name);
  memset(&err, 0, sizeof err);
  return gpuir_open(path, NULL, ix, &err);
}

/* The error names a codec and the macro. */
static int names(const char *codec) { return strstr(err.msg, codec) && strstr(err.msg, "GPUIR_NO_LAB"); }

/* Searches for one term; the status, and err filled. */
static int search(gpuir_index *ix, const char *term, size_t len) {
  gpuir_query_desc q;
  gpuir_query *query;
  gpuir_searcher *s;
  gpuir_hit hits[10];
  size_t n;
  int status;
  memset(&q, 0, sizeof q);
  CHECK(!gpuir_searcher_create(ix, NULL, &s, NULL));
  CHECK(!gpuir_query_parse(ix, &q, term, len, &query, &err));
  status = gpuir_search(s, query, hits, 10, &n);
  gpuir_searcher_error(s, &err);
  if (!status) CHECK(n > 0);
  gpuir_query_destroy(query);
  gpuir_searcher_destroy(s);
  return status;
}

/* An index all of whose lists need a codec that is left out is refused when it is opened. */
static void refused(const char *name) {
  gpuir_index *ix = NULL;
  CHECK(open_index(name, &ix) == GPUIR_E_UNSUPPORTED && !ix && err.code == GPUIR_E_UNSUPPORTED && names(name));
}

/* An index in which each list has a codec of its own opens; the lists answer one by one. */
static void mixed(void) {
  gpuir_index *ix;
  gpuir_cursor *cursor;
  gpuir__walk w;
  uint64_t left_out = 0, here = 0;
  CHECK(!open_index("auto", &ix));
  for (gpuir__walk_start(&w, gpuir__only(ix)); gpuir__walk_next(&w);) {
    const gpuir__record *r = &w.record;
    const int lacks = r->df > 1 && (!gpuir__codec_by_id(r->codec, 1) || !gpuir__codec_by_id(r->freq_codec, 0));
    if ((lacks ? left_out : here) >= 20) continue;
    if (lacks) {
      left_out++;
      CHECK(gpuir_cursor_open(ix, w.id, &cursor, &err) == GPUIR_E_UNSUPPORTED && !cursor && names("codec "));
      CHECK(search(ix, (const char *)w.term, w.len) == GPUIR_E_UNSUPPORTED && err.code == GPUIR_E_UNSUPPORTED &&
          names("codec "));
    } else {
      here++;
      CHECK(!gpuir_cursor_open(ix, w.id, &cursor, &err));
      gpuir_cursor_close(cursor);
      CHECK(!search(ix, (const char *)w.term, w.len));
    }
  }
  CHECK(left_out > 0 && here > 0);
  CHECK(gpuir_verify(ix, &err) == GPUIR_E_UNSUPPORTED && names("codec "));
  gpuir_close(ix);
}

/* Builds an index of some documents; 0 or the status with which the builder is refused. */
static int build(const char *codec, const char *freq_codec, const char *name) {
  char path[4096];
  gpuir_builder_desc d;
  gpuir_builder *b;
  unsigned i;
  int status;
  (void)snprintf(path, sizeof path, "%s/%s", dir, name);
  memset(&d, 0, sizeof d);
  memset(&err, 0, sizeof err);
  d.path = path;
  d.codec = codec;
  d.freq_codec = freq_codec;
  status = gpuir_builder_create(&d, &b, &err);
  if (status) return status;
  for (i = 0; i < 3000; i++) {
    char text[80];
    int len = snprintf(text, sizeof text, "all %s%s%u %u", i % 3 ? "third " : "", i < 500 ? "early " : "", i % 40, i);
    CHECK(!gpuir_builder_add_text(b, NULL, text, (size_t)len, &err));
  }
  status = gpuir_builder_write(b, NULL, &err);
  gpuir_builder_destroy(b);
  return status;
}

static void builds(void) {
  gpuir_index *ix;
  gpuir__walk w;
  CHECK(build("ef", NULL, "no") == GPUIR_E_UNSUPPORTED && names("codec ef"));
  CHECK(build("hslrc:64", NULL, "no") == GPUIR_E_UNSUPPORTED && names("codec hslrc"));
  CHECK(build(NULL, "optpfd", "no") == GPUIR_E_UNSUPPORTED && names("codec optpfd"));
  CHECK(build(NULL, "ef", "no") == GPUIR_E_UNSUPPORTED && !names("ef")); /* no codec of frequencies at all */
  CHECK(build("zip", NULL, "no") == GPUIR_E_UNSUPPORTED && !names("zip") && strstr(err.msg, "unknown"));
  CHECK(build("bp128:1", NULL, "no") == GPUIR_E_ARGUMENT);
  CHECK(!build("auto:0.5", "auto", "own"));
  CHECK(!open_index("own", &ix));
  for (gpuir__walk_start(&w, gpuir__only(ix)); gpuir__walk_next(&w);)
    CHECK(w.record.df == 1 || (w.record.codec <= 2 && w.record.freq_codec <= 2));
  CHECK(!search(ix, "all early", 9) && !gpuir_verify(ix, &err));
  gpuir_close(ix);
}

/* Methods of the literature and the exhaustive evaluator are known, but not here. */
static void methods(void) {
  gpuir_codec_info codecs[GPUIR_MAX_CODECS];
  gpuir_searcher_desc d;
  gpuir_searcher *s;
  gpuir_index *ix;
  size_t n;
  memset(&d, 0, sizeof d);
  CHECK(!open_index("bp128", &ix) && !search(ix, "the", 3));
  d.intersection = "gallop";
  CHECK(gpuir_searcher_create(ix, &d, &s, NULL) == GPUIR_E_UNSUPPORTED && !s);
  CHECK(strstr(gpuir_strerror(GPUIR_E_UNSUPPORTED), "GPUIR_NO_LAB") != NULL);
  d.intersection = "nonsense";
  CHECK(gpuir_searcher_create(ix, &d, &s, NULL) == GPUIR_E_ARGUMENT && !s);
  d.intersection = "simd";
  CHECK(!gpuir_searcher_create(ix, &d, &s, NULL));
  gpuir_searcher_destroy(s);
  d.evaluator = GPUIR_EVAL_EXHAUSTIVE;
  CHECK(gpuir_searcher_create(ix, &d, &s, &err) == GPUIR_E_UNSUPPORTED && !s && names("exhaustive"));
  d.evaluator = GPUIR_EVAL_EXHAUSTIVE + 1;
  CHECK(gpuir_searcher_create(ix, &d, &s, NULL) == GPUIR_E_ARGUMENT && !s);
  CHECK(gpuir_codec_get_info(ix, 1, codecs, &n) == GPUIR_E_UNSUPPORTED);
  CHECK(gpuir_codec_get_info(ix, 1, codecs, NULL) == GPUIR_E_ARGUMENT);
  gpuir_close(ix);
}

/* Near terms: who asks for them is refused; a word~ that documents have, and an unknown word, are searched. */
static void near_terms(void) {
  gpuir_near_term found[2];
  gpuir_query_desc qd;
  gpuir_query *q;
  gpuir_index *ix;
  size_t n = 1;
  memset(&qd, 0, sizeof qd);
  qd.mode = GPUIR_OR;
  CHECK(!open_index("bp128", &ix));
  CHECK(gpuir_terms_near(ix, "wolv", 4, found, 2, &n) == GPUIR_E_UNSUPPORTED && !n);
  CHECK(gpuir_terms_near(ix, NULL, 4, found, 2, &n) == GPUIR_E_ARGUMENT);
  CHECK(strstr(gpuir_strerror(GPUIR_E_UNSUPPORTED), "GPUIR_NO_NEAR") != NULL);
  CHECK(gpuir_query_parse(ix, &qd, "dog wolvv~", 10, &q, &err) == GPUIR_E_UNSUPPORTED && !q);
  CHECK(strstr(err.msg, "GPUIR_NO_NEAR") != NULL);
  CHECK(!gpuir_query_parse(ix, &qd, "dog wolf~ wolvv", 15, &q, &err));
  CHECK(gpuir_query_near(q, 0, found, 2, &n) == GPUIR_E_UNSUPPORTED && !n);
  CHECK(gpuir_query_near(q, 1, found, 2, &n) == GPUIR_E_NOT_FOUND);
  CHECK(gpuir_query_near(q, 0, NULL, 2, &n) == GPUIR_E_ARGUMENT);
  gpuir_query_destroy(q);
  qd.spell = GPUIR_SPELL;
  CHECK(gpuir_query_parse(ix, &qd, "dog", 3, &q, &err) == GPUIR_E_UNSUPPORTED && strstr(err.msg, "GPUIR_NO_NEAR"));
  gpuir_close(ix);
}

/* An index of stored texts is searched, and its texts are not there; none is built. */
static void stored_texts(void) {
  gpuir_builder_desc d;
  gpuir_builder *b;
  gpuir_index *ix;
  gpuir_doc doc;
  char path[4096];
  CHECK(!open_index("stored", &ix));
  CHECK(!search(ix, "dog", 3) && !gpuir_verify(ix, &err));
  CHECK(!gpuir_doc_get(ix, 0, &doc) && !doc.stored && !doc.stored_bytes && !doc.text);
  CHECK(gpuir_doc_text(ix, 0, 0, path, 1) == GPUIR_E_UNSUPPORTED);
  CHECK(gpuir_doc_text(NULL, 0, 0, path, 1) == GPUIR_E_ARGUMENT);
  CHECK(strstr(gpuir_strerror(GPUIR_E_UNSUPPORTED), "GPUIR_NO_STORE") != NULL);
  gpuir_close(ix);
  memset(&d, 0, sizeof d);
  (void)snprintf(path, sizeof path, "%s/no", dir);
  d.path = path;
  d.store_text = 1;
  CHECK(gpuir_builder_create(&d, &b, &err) == GPUIR_E_UNSUPPORTED && !b && strstr(err.msg, "GPUIR_NO_STORE"));
}

/* A second look is refused. */
static void second_look(void) {
  const gpuir_hit hit = {0, 1};
  gpuir_looked looked;
  gpuir_query *q;
  gpuir_index *ix;
  CHECK(!open_index("bp128", &ix));
  CHECK(!gpuir_query_parse(ix, NULL, "dog", 3, &q, &err));
  CHECK(gpuir_look(q, "dog", 3, &hit, 1, &looked, &err) == GPUIR_E_UNSUPPORTED);
  CHECK(strstr(err.msg, "GPUIR_NO_RANK") && strstr(gpuir_strerror(GPUIR_E_UNSUPPORTED), "GPUIR_NO_RANK"));
  gpuir_query_destroy(q);
  gpuir_close(ix);
}

/* The analyzer `text`: no index is built with it, and no query made for such an index, if the command could make
 * one. */
static void text_analyzer(void) {
  gpuir_builder_desc d;
  gpuir_builder *b;
  gpuir_index *ix;
  gpuir_query *q;
  char path[4096];
  memset(&d, 0, sizeof d);
  (void)snprintf(path, sizeof path, "%s/no", dir);
  d.path = path;
  d.analyzer.analyzer = "text";
  CHECK(gpuir_builder_create(&d, &b, &err) == GPUIR_E_UNSUPPORTED && !b && strstr(err.msg, "GPUIR_NO_TEXT"));
  (void)snprintf(path, sizeof path, "%s/text", dir);
  if (access(path, F_OK)) return;
  CHECK(!open_index("text", &ix));
  CHECK(gpuir_query_parse(ix, NULL, "dog", 3, &q, &err) == GPUIR_E_UNSUPPORTED && !q);
  CHECK(strstr(err.msg, "GPUIR_NO_TEXT") != NULL);
  gpuir_close(ix);
}

/* The analyzer `basic`: without its table a description that names none means `ascii`. */
static void basic_analyzer(void) {
  gpuir_index_info info;
  gpuir_builder_desc d;
  gpuir_builder *b;
  gpuir_index *ix;
  gpuir_query *q;
  char path[4096];
  memset(&d, 0, sizeof d);
  (void)snprintf(path, sizeof path, "%s/no", dir);
  d.path = path;
  d.analyzer.analyzer = "basic";
  CHECK(gpuir_builder_create(&d, &b, &err) == GPUIR_E_UNSUPPORTED && !b && strstr(err.msg, "GPUIR_NO_FOLD"));
  CHECK(!open_index("own", &ix) && !gpuir_index_get_info(ix, &info) && !strcmp(info.analyzer, "ascii"));
  gpuir_close(ix);
  CHECK(!open_index("basic", &ix));
  CHECK(gpuir_query_parse(ix, NULL, "dog", 3, &q, &err) == GPUIR_E_UNSUPPORTED && !q);
  CHECK(strstr(err.msg, "GPUIR_NO_FOLD") != NULL);
  gpuir_close(ix);
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  dir = argv[1];
  refused("ef");
  refused("optpfd");
  mixed();
  builds();
  methods();
  near_terms();
  second_look();
  stored_texts();
  text_analyzer();
  basic_analyzer();
  puts("ok");
  return 0;
}
