/* Each public function with NULL and with the extremes of its numbers: an answer, and never a crash. Run under ASan and
 * UBSan by `make sanitize`. */
#include "private.h"

#include <setjmp.h>
#include <cmocka.h>

#include "../fuzz/structure.h"
#include "dictionary.h"

static char path[96];
static gpuir_index *ix;
static gpuir_searcher *searcher;
static gpuir_query *query;
static gpuir_builder *builder;
static gpuir_error err;

/* One call: what it is, what it answered, and what it has to answer. */
typedef struct call {
  const char *what;
  int64_t got, want;
} call;

#define CALL(want, function) \
  { #function, (int64_t)(function), (int64_t)(want) }

static void check(const call *calls, size_t n) {
  size_t i;
  for (i = 0; i < n; i++)
    if (calls[i].got != calls[i].want)
      fail_msg("%s: %lld, not %lld", calls[i].what, (long long)calls[i].got, (long long)calls[i].want);
}

#define CHECK(calls) check(calls, sizeof(calls) / sizeof((calls)[0]))

static int no_token(void *sink, const char *token, size_t len) {
  (void)sink, (void)token, (void)len;
  return 0;
}

static void test_index(void **state) {
  gpuir_index *out;
  gpuir_index_info info;
  gpuir_term_info term;
  gpuir_codec_info codecs[GPUIR_MAX_CODECS];
  gpuir_doc doc;
  uint64_t id;
  size_t n;
  const call calls[] = {
      CALL(GPUIR_E_ARGUMENT, gpuir_open(NULL, NULL, &out, &err)),
      CALL(GPUIR_E_ARGUMENT, gpuir_open(path, NULL, NULL, NULL)),
      CALL(GPUIR_E_IO, gpuir_open("", NULL, &out, NULL)),
      CALL(GPUIR_E_FORMAT, gpuir_open("/", NULL, &out, NULL)),
      CALL(GPUIR_E_ARGUMENT, gpuir_verify(NULL, NULL)),
      CALL(GPUIR_E_ARGUMENT, gpuir_verify_directory(NULL, NULL)),
      CALL(GPUIR_OK, gpuir_verify_directory(ix, NULL)),
      CALL(GPUIR_E_ARGUMENT, gpuir_index_get_info(NULL, &info)),
      CALL(GPUIR_E_ARGUMENT, gpuir_index_get_info(ix, NULL)),
      CALL(0, gpuir_doc_name(NULL, NULL, SIZE_MAX)),
      CALL(GPUIR_E_ARGUMENT, gpuir_doc_get(NULL, 0, &doc)),
      CALL(GPUIR_E_ARGUMENT, gpuir_doc_get(ix, 0, NULL)),
      CALL(GPUIR_E_NOT_FOUND, gpuir_doc_get(ix, UINT32_MAX, &doc)),
      CALL(GPUIR_E_ARGUMENT, gpuir_term_find(NULL, "a", 1, &id)),
      CALL(GPUIR_E_ARGUMENT, gpuir_term_find(ix, NULL, 1, &id)),
      CALL(GPUIR_E_ARGUMENT, gpuir_term_find(ix, "a", 1, NULL)),
      CALL(GPUIR_E_NOT_FOUND, gpuir_term_find(ix, NULL, 0, &id)),
      CALL(GPUIR_E_NOT_FOUND, gpuir_term_find(ix, "a", SIZE_MAX, &id)),
      CALL(0, gpuir_term_lower_bound(NULL, "a", 1)),
      CALL(0, gpuir_term_lower_bound(ix, NULL, 1)),
      CALL(0, gpuir_term_lower_bound(ix, NULL, 0)),
      CALL(GPUIR_E_ARGUMENT, gpuir_term_get_info(NULL, 0, &term)),
      CALL(GPUIR_E_ARGUMENT, gpuir_term_get_info(ix, 0, NULL)),
      CALL(GPUIR_E_NOT_FOUND, gpuir_term_get_info(ix, UINT64_MAX, &term)),
      CALL(GPUIR_E_ARGUMENT, gpuir_term_postings(NULL, 0, NULL, NULL)),
      CALL(GPUIR_OK, gpuir_term_postings(ix, 0, NULL, NULL)),
      CALL(GPUIR_E_NOT_FOUND, gpuir_term_postings(ix, UINT64_MAX, NULL, NULL)),
      CALL(GPUIR_E_ARGUMENT, gpuir_codec_get_info(NULL, 1, codecs, &n)),
      CALL(GPUIR_E_ARGUMENT, gpuir_codec_get_info(ix, 1, NULL, &n)),
      CALL(GPUIR_E_ARGUMENT, gpuir_codec_get_info(ix, 1, codecs, NULL)),
      CALL(GPUIR_E_ARGUMENT, gpuir_analyze(NULL, "a", 1, no_token, NULL, NULL)),
      CALL(GPUIR_E_ARGUMENT, gpuir_analyze(ix, NULL, 1, no_token, NULL, NULL)),
      CALL(GPUIR_E_ARGUMENT, gpuir_analyze(ix, "a", 1, NULL, NULL, NULL)),
      CALL(GPUIR_OK, gpuir_analyze(ix, NULL, 0, no_token, NULL, NULL)),
  };
  (void)state;
  CHECK(calls);
  gpuir_close(NULL);
  assert_string_equal(gpuir_strerror(INT32_MIN), "unknown status");
  assert_non_null(gpuir_simd_name(INT32_MAX));
  assert_non_null(gpuir_simd_name(INT32_MIN));
  assert_null(gpuir_intersection_name(SIZE_MAX));
}

static int create(unsigned threads, uint64_t memory, const char *codec, int simd) {
  gpuir_builder_desc d;
  gpuir_builder *b = NULL;
  int status;
  memset(&d, 0, sizeof d);
  d.path = path;
  d.threads = threads;
  d.memory = memory;
  d.codec = codec;
  d.simd = simd;
  status = gpuir_builder_create(&d, &b, &err);
  gpuir_builder_destroy(b);
  return status;
}

static int create_bm25(float k1, float b) {
  gpuir_builder_desc d;
  gpuir_builder *out = NULL;
  int status;
  memset(&d, 0, sizeof d);
  d.path = path;
  d.custom_bm25 = 1;
  d.k1 = k1;
  d.b = b;
  status = gpuir_builder_create(&d, &out, &err);
  gpuir_builder_destroy(out);
  return status;
}

static int add_term(const char *term, size_t len, uint32_t tf) {
  gpuir_term_freq t;
  t.term = term;
  t.len = len;
  t.tf = tf;
  return gpuir_builder_add_terms(builder, NULL, &t, 1, &err);
}

static void test_builder(void **state) {
  static char long_term[256];
  const float nan = strtof("nan", NULL), inf = strtof("inf", NULL);
  gpuir_builder_desc d;
  gpuir_builder *b;
  const uint32_t one = 1;
  memset(&d, 0, sizeof d);
  memset(long_term, 'l', sizeof long_term);
  {
    const call calls[] = {
        CALL(GPUIR_E_ARGUMENT, gpuir_builder_create(NULL, &b, &err)),
        CALL(GPUIR_E_ARGUMENT, gpuir_builder_create(&d, &b, NULL)),
        CALL(GPUIR_E_ARGUMENT, gpuir_builder_create(&d, NULL, NULL)),
        CALL(GPUIR_OK, create(UINT32_MAX, 0, NULL, 0)),
        CALL(GPUIR_OK, create(1, 1, NULL, INT32_MAX)),
        CALL(GPUIR_OK, create(2, UINT64_MAX, NULL, INT32_MIN)),
        CALL(GPUIR_E_UNSUPPORTED, create(1, 0, "nope", 0)),
        CALL(GPUIR_E_ARGUMENT, create_bm25(nan, 0)),
        CALL(GPUIR_E_ARGUMENT, create_bm25(1, nan)),
        CALL(GPUIR_E_ARGUMENT, create_bm25(inf, 0)),
        CALL(GPUIR_E_ARGUMENT, create_bm25(1, -0.5f)),
        CALL(GPUIR_OK, create_bm25(1000, 1)),
        CALL(GPUIR_E_ARGUMENT, gpuir_builder_add_text(NULL, NULL, "a", 1, NULL)),
        CALL(GPUIR_E_ARGUMENT, gpuir_builder_add_terms(NULL, NULL, NULL, 0, NULL)),
        CALL(GPUIR_E_ARGUMENT, gpuir_builder_add_doc(NULL, NULL, 0, NULL, 0, NULL)),
        CALL(GPUIR_E_ARGUMENT, gpuir_builder_add_list(NULL, "a", 1, &one, &one, NULL, 1, NULL)),
        CALL(GPUIR_E_ARGUMENT, gpuir_builder_write(NULL, NULL, NULL)),
    };
    (void)state;
    CHECK(calls);
  }
  d.path = path;
  assert_int_equal(gpuir_builder_create(&d, &builder, &err), 0);
  {
    const call calls[] = {
        CALL(GPUIR_E_ARGUMENT, gpuir_builder_add_text(builder, NULL, NULL, SIZE_MAX, NULL)),
        CALL(GPUIR_OK, gpuir_builder_add_text(builder, NULL, NULL, 0, NULL)),
        CALL(GPUIR_E_ARGUMENT, gpuir_builder_add_terms(builder, NULL, NULL, SIZE_MAX, NULL)),
        CALL(GPUIR_E_ARGUMENT, gpuir_builder_add_terms(builder, NULL, NULL, 1, NULL)),
        CALL(GPUIR_E_ARGUMENT, add_term(NULL, 1, 1)),
        CALL(GPUIR_E_ARGUMENT, add_term("a", 0, 1)),
        CALL(GPUIR_E_ARGUMENT, add_term(long_term, 256, 1)),
        CALL(GPUIR_E_ARGUMENT, add_term("a", SIZE_MAX, 1)),
        CALL(GPUIR_E_ARGUMENT, add_term("a", 1, 0)),
        CALL(GPUIR_OK, add_term(long_term, 255, UINT32_MAX)),
        CALL(GPUIR_E_ARGUMENT, gpuir_builder_add_doc(builder, NULL, 0, NULL, 0, NULL)),
        CALL(GPUIR_E_ARGUMENT, gpuir_builder_add_list(builder, "a", 1, &one, &one, NULL, 1, NULL)),
        CALL(GPUIR_OK, gpuir_builder_write(builder, NULL, NULL)),
        CALL(GPUIR_E_ARGUMENT, gpuir_builder_write(builder, NULL, NULL)),
    };
    CHECK(calls);
  }
  gpuir_builder_destroy(builder);
  assert_int_equal(gpuir_builder_create(&d, &builder, &err), 0);
  {
    const call calls[] = {
        CALL(GPUIR_OK, gpuir_builder_add_doc(builder, NULL, UINT32_MAX, NULL, SIZE_MAX, NULL)),
        CALL(GPUIR_OK, gpuir_builder_add_doc(builder, NULL, 0, NULL, 0, NULL)),
        CALL(GPUIR_E_ARGUMENT, gpuir_builder_add_list(builder, NULL, 1, &one, &one, NULL, 1, NULL)),
        CALL(GPUIR_E_ARGUMENT, gpuir_builder_add_list(builder, "a", SIZE_MAX, &one, &one, NULL, 1, NULL)),
        CALL(GPUIR_E_ARGUMENT, gpuir_builder_add_list(builder, "a", 1, NULL, &one, NULL, 1, NULL)),
        CALL(GPUIR_E_ARGUMENT, gpuir_builder_add_list(builder, "a", 1, &one, NULL, NULL, 1, NULL)),
        CALL(GPUIR_E_ARGUMENT, gpuir_builder_add_list(builder, "a", 1, &one, &one, NULL, 0, NULL)),
        CALL(GPUIR_OK, gpuir_builder_add_list(builder, "a", 1, &one, &one, NULL, 1, NULL)),
        CALL(GPUIR_OK, gpuir_builder_write(builder, NULL, NULL)),
    };
    CHECK(calls);
  }
  gpuir_builder_destroy(builder);
  gpuir_builder_destroy(NULL);
}

static int parse(int mode, float k1, const char *text, size_t len) {
  gpuir_query_desc d;
  gpuir_query *q = NULL;
  int status;
  memset(&d, 0, sizeof d);
  d.mode = mode;
  d.custom_bm25 = k1 < 0 || k1 > 0;
  d.k1 = k1;
  status = gpuir_query_parse(ix, &d, text, len, &q, &err);
  gpuir_query_destroy(q);
  return status;
}

static void test_query(void **state) {
  gpuir_query *q;
  const call calls[] = {
      CALL(GPUIR_E_ARGUMENT, gpuir_query_parse(NULL, NULL, "a", 1, &q, NULL)),
      CALL(GPUIR_E_ARGUMENT, gpuir_query_parse(ix, NULL, NULL, SIZE_MAX, &q, NULL)),
      CALL(GPUIR_E_ARGUMENT, gpuir_query_parse(ix, NULL, "a", 1, NULL, NULL)),
      CALL(GPUIR_E_QUERY, gpuir_query_parse(ix, NULL, NULL, 0, &q, NULL)),
      CALL(GPUIR_E_ARGUMENT, parse(INT32_MAX, 0, "quick", 5)),
      CALL(GPUIR_E_ARGUMENT, parse(INT32_MIN, 0, "quick", 5)),
      CALL(GPUIR_E_RANGE, parse(0, 1e30f, "quick", 5)),
      CALL(GPUIR_E_RANGE, parse(0, -1, "quick", 5)),
      CALL(GPUIR_OK, parse(0, 1000, "quick", 5)),
  };
  (void)state;
  CHECK(calls);
  gpuir_query_destroy(NULL);
}

static int create_searcher(unsigned threads, int evaluator, const char *intersection) {
  gpuir_searcher_desc d;
  gpuir_searcher *s = NULL;
  int status;
  memset(&d, 0, sizeof d);
  d.threads = threads;
  d.evaluator = evaluator;
  d.intersection = intersection;
  status = gpuir_searcher_create(ix, &d, &s, NULL);
  gpuir_searcher_destroy(s);
  return status;
}

static int search_with_timeout(uint64_t timeout_ns) {
  gpuir_hit hit;
  size_t n;
  int status;
  gpuir_searcher_set_timeout(searcher, timeout_ns);
  status = gpuir_search(searcher, query, &hit, 1, &n);
  gpuir_searcher_set_timeout(searcher, 0);
  return status;
}

static void test_search(void **state) {
  const gpuir_query *queries[2];
  gpuir_hit hits[4];
  uint32_t counts[2];
  uint64_t matches;
  size_t n;
  gpuir_explanation x;
  gpuir_searcher *s;
  queries[0] = queries[1] = query;
  {
    const call calls[] = {
        CALL(GPUIR_E_ARGUMENT, gpuir_searcher_create(NULL, NULL, &s, NULL)),
        CALL(GPUIR_E_ARGUMENT, gpuir_searcher_create(ix, NULL, NULL, NULL)),
        CALL(GPUIR_E_ARGUMENT, create_searcher(UINT32_MAX, 0, NULL)),
        CALL(GPUIR_OK, create_searcher(4096, 0, NULL)),
        CALL(GPUIR_E_ARGUMENT, create_searcher(1, INT32_MAX, NULL)),
        CALL(GPUIR_E_ARGUMENT, create_searcher(1, INT32_MIN, NULL)),
        CALL(GPUIR_E_ARGUMENT, create_searcher(1, 0, "nope")),
        CALL(GPUIR_OK, gpuir_search(searcher, query, hits, SIZE_MAX, &n)),
        CALL(GPUIR_OK, gpuir_search(searcher, query, hits, SIZE_MAX / sizeof(gpuir_hit) + 1, &n)),
        CALL(GPUIR_OK, gpuir_search(searcher, query, NULL, 0, &n)),
        CALL(GPUIR_E_ARGUMENT, gpuir_search(searcher, query, NULL, 1, &n)),
        CALL(GPUIR_E_ARGUMENT, gpuir_search(searcher, query, hits, 1, NULL)),
        CALL(GPUIR_E_ARGUMENT, gpuir_search(searcher, NULL, hits, 1, &n)),
        CALL(GPUIR_E_ARGUMENT, gpuir_search(NULL, query, hits, 1, &n)),
        CALL(GPUIR_OK, search_with_timeout(UINT64_MAX)),
        CALL(GPUIR_OK, search_with_timeout(UINT64_MAX - 1)),
        CALL(GPUIR_OK, search_with_timeout((uint64_t)INT64_MAX)),
        CALL(GPUIR_OK, gpuir_search_batch(searcher, queries, 2, 2, hits, counts)),
        CALL(GPUIR_E_ARGUMENT, gpuir_search_batch(searcher, queries, 2, SIZE_MAX, hits, counts)),
        CALL(GPUIR_E_ARGUMENT, gpuir_search_batch(searcher, queries, 2, SIZE_MAX / 2, hits, counts)),
        CALL(GPUIR_E_ARGUMENT, gpuir_search_batch(searcher, queries, 2, SIZE_MAX / 8, hits, counts)),
        CALL(GPUIR_E_ARGUMENT, gpuir_search_batch(searcher, queries, SIZE_MAX, 0, hits, counts)),
        CALL(GPUIR_OK, gpuir_search_batch(searcher, NULL, 0, SIZE_MAX, NULL, NULL)),
        CALL(GPUIR_E_ARGUMENT, gpuir_search_batch(searcher, NULL, 1, 1, hits, counts)),
        CALL(GPUIR_E_ARGUMENT, gpuir_search_batch(searcher, queries, 1, 1, NULL, counts)),
        CALL(GPUIR_E_ARGUMENT, gpuir_search_batch(searcher, queries, 1, 1, hits, NULL)),
        CALL(GPUIR_E_ARGUMENT, gpuir_search_batch(NULL, queries, 1, 1, hits, counts)),
        CALL(GPUIR_E_ARGUMENT, gpuir_count(NULL, query, &matches)),
        CALL(GPUIR_E_ARGUMENT, gpuir_count(searcher, NULL, &matches)),
        CALL(GPUIR_E_ARGUMENT, gpuir_count(searcher, query, NULL)),
        CALL(GPUIR_OK, gpuir_search_count(searcher, query, NULL, 0, &n, &matches)),
        CALL(GPUIR_E_ARGUMENT, gpuir_search_count(NULL, query, hits, 1, &n, &matches)),
        CALL(GPUIR_E_ARGUMENT, gpuir_search_count(searcher, NULL, hits, 1, &n, &matches)),
        CALL(GPUIR_E_ARGUMENT, gpuir_search_count(searcher, query, NULL, 1, &n, &matches)),
        CALL(GPUIR_E_ARGUMENT, gpuir_search_count(searcher, query, hits, 1, NULL, &matches)),
        CALL(GPUIR_E_ARGUMENT, gpuir_search_count(searcher, query, hits, 1, &n, NULL)),
        CALL(GPUIR_E_ARGUMENT, gpuir_explain(NULL, query, 0, &x)),
        CALL(GPUIR_E_ARGUMENT, gpuir_explain(searcher, NULL, 0, &x)),
        CALL(GPUIR_E_ARGUMENT, gpuir_explain(searcher, query, 0, NULL)),
        CALL(GPUIR_E_NOT_FOUND, gpuir_explain(searcher, query, UINT32_MAX, &x)),
        CALL(GPUIR_OK, gpuir_explain(searcher, query, 0, &x)),
    };
    (void)state;
    CHECK(calls);
  }
  gpuir_searcher_set_timeout(NULL, 1);
  gpuir_searcher_error(NULL, &err);
  gpuir_searcher_error(searcher, NULL);
  gpuir_searcher_get_info(NULL, NULL);
  gpuir_searcher_get_info(searcher, NULL);
  gpuir_searcher_destroy(NULL);
}

static int never_begin(void *context, const gpuir_batch_desc *batch, uint64_t deadline, const int *cancel,
    void **running, gpuir_error *error) {
  (void)context, (void)batch, (void)deadline, (void)cancel, (void)running, (void)error;
  return GPUIR_E_BACKEND;
}

static int never_poll(void *context, void *running) {
  (void)context, (void)running;
  return 1;
}

static int never_finish(void *context, void *running, gpuir_error *error) {
  (void)context, (void)running, (void)error;
  return GPUIR_E_BACKEND;
}

static int set_backend(uint32_t version, const char *name, int with_begin) {
  gpuir_backend b;
  memset(&b, 0, sizeof b);
  b.version = version;
  b.name = name;
  b.begin = with_begin ? never_begin : NULL;
  b.poll = never_poll;
  b.finish = never_finish;
  return gpuir_searcher_set_backend(searcher, &b, 0);
}

static void test_cursor_and_backend(void **state) {
  gpuir_cursor *c;
  gpuir_cursor *open = NULL;
  assert_int_equal(gpuir_cursor_open(ix, 0, &open, &err), 0);
  {
    const call calls[] = {
        CALL(GPUIR_E_ARGUMENT, gpuir_cursor_open(NULL, 0, &c, NULL)),
        CALL(GPUIR_E_ARGUMENT, gpuir_cursor_open(ix, 0, NULL, NULL)),
        CALL(GPUIR_E_NOT_FOUND, gpuir_cursor_open(ix, UINT64_MAX, &c, NULL)),
        CALL(GPUIR_END, gpuir_cursor_docid(NULL)),
        CALL(GPUIR_END, gpuir_cursor_next(NULL)),
        CALL(GPUIR_END, gpuir_cursor_next_geq(NULL, 0)),
        CALL(0, gpuir_cursor_tf(NULL)),
        CALL(GPUIR_END, gpuir_cursor_next_geq(open, UINT32_MAX)),
        CALL(GPUIR_END, gpuir_cursor_next_geq(open, 0)),
        CALL(GPUIR_END, gpuir_cursor_next(open)),
        CALL(0, gpuir_cursor_tf(open)),
        CALL(GPUIR_E_ARGUMENT, gpuir_searcher_set_backend(NULL, NULL, 0)),
        CALL(GPUIR_OK, gpuir_searcher_set_backend(searcher, NULL, 0)),
        CALL(GPUIR_E_ARGUMENT, set_backend(GPUIR_BACKEND_VERSION, NULL, 1)),
        CALL(GPUIR_E_ARGUMENT, set_backend(GPUIR_BACKEND_VERSION, "x", 0)),
        CALL(GPUIR_E_VERSION, set_backend(UINT32_MAX, "x", 1)),
    };
    (void)state;
    CHECK(calls);
  }
  gpuir_cursor_close(open);
  gpuir_cursor_close(NULL);
  assert_string_equal(gpuir_backend_name(NULL), "cpu");
}

/* ---- hostile directories and hash tables ---- */

static uint8_t *index_bytes;
static size_t index_size;

static void read_index(void) {
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  assert_int_equal(fseek(f, 0, SEEK_END), 0);
  index_size = (size_t)ftell(f);
  rewind(f);
  index_bytes = (uint8_t *)malloc(index_size);
  assert_non_null(index_bytes);
  assert_int_equal(fread(index_bytes, 1, index_size, f), index_size);
  (void)fclose(f);
}

static void write_bytes(const uint8_t *bytes, size_t n) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(bytes, 1, n, f), n);
  (void)fclose(f);
}

static void write_index(const uint8_t *bytes) { write_bytes(bytes, index_size); }

static uint8_t *section_of(uint8_t *bytes, uint32_t id, uint64_t *len) {
  gpuir__section *s = (gpuir__section *)(void *)(bytes + sizeof(gpuir__header));
  while (s->id != id) s++;
  *len = s->length;
  return bytes + s->offset;
}

/* Ten thousand words with one list each, of which the first has over 128 postings. */
static void build_large(void) {
  gpuir_builder_desc d;
  gpuir_builder *b;
  char text[64];
  int i;
  memset(&d, 0, sizeof d);
  d.path = path;
  d.threads = 1;
  assert_int_equal(gpuir_builder_create(&d, &b, &err), 0);
  for (i = 0; i < 3000; i++) {
    int n = snprintf(text, sizeof text, "all%s u%d v%d w%d", i % 2 ? " odd" : "", i, i / 2, i / 3);
    assert_int_equal(gpuir_builder_add_text(b, NULL, text, (size_t)n, &err), 0);
  }
  assert_int_equal(gpuir_builder_write(b, NULL, &err), 0);
  gpuir_builder_destroy(b);
  read_index();
}

/* Gives the first term of each block one and the same list, all others one posting. */
static void repeat(void *user, uint64_t id, gpuir__record *r, gpuir__dict_page *now) {
  const gpuir__record *found = (const gpuir__record *)user;
  if (id % GPUIR__DICT_BLOCK == 0) now->docs = now->freqs = now->longs = 0;
  *r = *found;
  if (id % GPUIR__DICT_BLOCK == 0) return;
  memset(r, 0, sizeof *r);
  r->df = 1;
  r->freqs = 1;
}

/* What is said of the index when one term in sixteen names the first list of at least that many postings, and at most
 * so many. */
static int verify_directory_of(uint32_t least_df, uint32_t most_df) {
  const size_t room = 1 << 20;
  structure s;
  gpuir_index *hostile;
  gpuir__walk w;
  int status;
  memset(&s, 0, sizeof s);
  s.bytes = (uint8_t *)malloc(index_size + room);
  assert_non_null(s.bytes);
  memcpy(s.bytes, index_bytes, index_size);
  assert_int_equal(gpuir_open(path, NULL, &hostile, &err), 0);
  gpuir__walk_start(&w, gpuir__only(hostile));
  do assert_true(gpuir__walk_next(&w));
  while (w.record.df < least_df || w.record.df > most_df);
  gpuir_close(hostile);
  s.len = dictionary_rewrite(s.bytes, index_size, room, repeat, &w.record);
  structure_mend(&s);
  write_bytes(s.bytes, s.len);
  free(s.bytes);
  assert_int_equal(gpuir_open(path, NULL, &hostile, &err), 0);
  status = gpuir_verify_directory(hostile, &err);
  gpuir_close(hostile);
  write_index(index_bytes);
  return status;
}

static void test_directory(void **state) {
  gpuir_index *good;
  (void)state;
  build_large();
  assert_int_equal(gpuir_open(path, NULL, &good, &err), 0);
  assert_int_equal(gpuir_verify_directory(good, &err), 0);
  gpuir_close(good);
  assert_int_equal(verify_directory_of(200, UINT32_MAX), GPUIR_E_FORMAT); /* one long list in all terms */
  assert_non_null(strstr(err.msg, "next one"));
  assert_int_equal(verify_directory_of(2, GPUIR__SHORT_MAX), GPUIR_E_FORMAT); /* one short list */
  if (!strstr(err.msg, "bytes")) fail_msg("%s", err.msg);
  assert_int_equal(verify_directory_of(1, 1), GPUIR_E_FORMAT); /* inline postings: the counts differ */
  free(index_bytes);
}

/* A search tree of wrong numbers leads to a wrong block, which says that the term is not there; a look-up is as short
 * as ever. */
static void test_wrong_tree(void **state) {
  static const uint8_t bytes[] = {0, 1, 'u', 255};
  gpuir_index *hostile;
  uint64_t len, id, found = 0;
  uint8_t *keys;
  size_t i;
  (void)state;
  build_large();
  keys = section_of(index_bytes, GPUIR__S_TERM_KEYS, &len);
  assert_true(len > 128);
  for (i = 0; i < sizeof bytes; i++) {
    memset(keys, bytes[i], (size_t)len);
    write_index(index_bytes);
    assert_int_equal(gpuir_open(path, NULL, &hostile, &err), 0);
    if (!gpuir_term_find(hostile, "u2999", 5, &id)) found++;
    assert_int_equal(gpuir_term_find(hostile, "u29999", 6, &id), GPUIR_E_NOT_FOUND);
    assert_true(gpuir_term_lower_bound(hostile, "v", 1) <= gpuir__only(hostile)->stat.terms);
    assert_int_equal(gpuir_verify(hostile, &err), GPUIR_E_CHECKSUM);
    gpuir_close(hostile);
  }
  assert_true(found < sizeof bytes);
  free(index_bytes);
}

/* Names in two pieces: cut off where they do not fit, and whole in a copy of the struct. */
static void test_doc_name(void **state) {
  static const char source[] = "notes/animals";
  gpuir_builder_desc d;
  gpuir_builder *b;
  gpuir_doc_desc dd;
  gpuir_doc doc, copy;
  gpuir_index *named;
  char name[64];
  size_t cap;
  (void)state;
  memset(&d, 0, sizeof d);
  memset(&dd, 0, sizeof dd);
  d.path = path;
  dd.source = source;
  dd.source_len = sizeof source - 1;
  dd.name = "animals:1";
  dd.name_len = 9;
  assert_int_equal(gpuir_builder_create(&d, &b, &err), 0);
  assert_int_equal(gpuir_builder_add_text(b, &dd, "a wolf", 6, &err), 0);
  dd.name = "another";
  dd.name_len = 7;
  assert_int_equal(gpuir_builder_add_text(b, &dd, "a dog", 5, &err), 0);
  assert_int_equal(gpuir_builder_add_text(b, NULL, "a fox", 5, &err), 0);
  assert_int_equal(gpuir_builder_write(b, NULL, &err), 0);
  gpuir_builder_destroy(b);
  assert_int_equal(gpuir_open(path, NULL, &named, &err), 0);
  assert_int_equal(gpuir_verify(named, &err), 0);
  assert_int_equal(gpuir_doc_get(named, 0, &doc), 0);
  copy = doc;
  memset(&doc, 0xff, sizeof doc);
  assert_true(copy.name_piece_len[0] && copy.name_piece_len[1]);
  for (cap = 0; cap < sizeof name; cap++) {
    memset(name, '#', sizeof name);
    assert_int_equal(gpuir_doc_name(&copy, name, cap), 9);
    if (cap) assert_int_equal(strlen(name), cap - 1 < 9 ? cap - 1 : 9);
    if (cap) assert_memory_equal(name, "animals:1", strlen(name));
    assert_int_equal(name[cap], '#');
  }
  assert_int_equal(gpuir_doc_get(named, 1, &doc), 0);
  assert_int_equal(gpuir_doc_name(&doc, name, sizeof name), 7);
  assert_string_equal(name, "another");
  assert_int_equal(doc.name_piece_len[1], 0);
  assert_int_equal(gpuir_doc_get(named, 2, &doc), 0);
  assert_int_equal(gpuir_doc_name(&doc, name, sizeof name), 0);
  assert_string_equal(name, "");
  gpuir_close(named);
}

/* ---- an index in memory ---- */

static void test_open_in_memory(void **state) {
  gpuir_open_desc d;
  gpuir_index *in_memory;
  gpuir_searcher *s;
  gpuir_query *q;
  gpuir_hit hit, want;
  size_t n, i;
  uint8_t *shifted;
  (void)state;
  build_large();
  shifted = (uint8_t *)malloc(index_size + 4);
  memset(&d, 0, sizeof d);
  d.data = index_bytes;
  d.size = index_size;
  assert_int_equal(gpuir_open(NULL, &d, &in_memory, &err), 0);
  assert_int_equal(gpuir_verify(in_memory, &err), 0);
  assert_int_equal(gpuir_searcher_create(in_memory, NULL, &s, &err), 0);
  assert_int_equal(gpuir_query_parse(in_memory, NULL, "all odd", 7, &q, &err), 0);
  assert_int_equal(gpuir_search(s, q, &want, 1, &n), 0);
  assert_int_equal(n, 1);
  gpuir_query_destroy(q);
  gpuir_searcher_destroy(s);
  gpuir_close(in_memory); /* leaves the bytes */
  assert_int_equal(gpuir_open(path, NULL, &in_memory, &err), 0);
  assert_int_equal(gpuir_searcher_create(in_memory, NULL, &s, &err), 0);
  assert_int_equal(gpuir_query_parse(in_memory, NULL, "all odd", 7, &q, &err), 0);
  assert_int_equal(gpuir_search(s, q, &hit, 1, &n), 0);
  assert_memory_equal(&hit, &want, sizeof hit);
  gpuir_query_destroy(q);
  gpuir_searcher_destroy(s);
  gpuir_close(in_memory);
  memcpy(shifted + 4, index_bytes, index_size);
  d.data = shifted + 4;
  assert_int_equal(gpuir_open("name", &d, &in_memory, &err), GPUIR_E_ARGUMENT);
  assert_non_null(strstr(err.msg, "name"));
  d.data = index_bytes;
  for (i = 0; i < index_size; i += 1 + i / 3) { /* cut short */
    d.size = i;
    assert_int_equal(gpuir_open(NULL, &d, &in_memory, &err), GPUIR_E_FORMAT);
    assert_non_null(strstr(err.msg, "index in memory"));
  }
  free(shifted);
  free(index_bytes);
}

static int open_all(void **state) {
  static const char *const texts[] = {"the quick brown fox", "the lazy dog", "a quick dog"};
  gpuir_builder_desc d;
  const char *tmp = getenv("TMPDIR");
  size_t i;
  int fd;
  (void)state;
  (void)snprintf(path, sizeof path, "%.40s/gpuir-XXXXXX", tmp && *tmp ? tmp : "/tmp");
  fd = mkstemp(path);
  if (fd < 0) return -1;
  (void)close(fd);
  memset(&d, 0, sizeof d);
  d.path = path;
  if (gpuir_builder_create(&d, &builder, &err)) return -1;
  for (i = 0; i < 3; i++)
    if (gpuir_builder_add_text(builder, NULL, texts[i], strlen(texts[i]), &err)) return -1;
  if (gpuir_builder_write(builder, NULL, &err)) return -1;
  gpuir_builder_destroy(builder);
  return gpuir_open(path, NULL, &ix, &err) || gpuir_searcher_create(ix, NULL, &searcher, NULL) ||
          gpuir_query_parse(ix, NULL, "quick", 5, &query, &err)
      ? -1
      : 0;
}

static int close_all(void **state) {
  (void)state;
  gpuir_query_destroy(query);
  gpuir_searcher_destroy(searcher);
  gpuir_close(ix);
  return unlink(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_index), cmocka_unit_test(test_query),
      cmocka_unit_test(test_search), cmocka_unit_test(test_cursor_and_backend), cmocka_unit_test(test_builder),
      cmocka_unit_test(test_directory), cmocka_unit_test(test_wrong_tree), cmocka_unit_test(test_open_in_memory),
      cmocka_unit_test(test_doc_name)};
  return cmocka_run_group_tests(tests, open_all, close_all);
}
