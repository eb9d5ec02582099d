/* fsname.c - the names of the mounted tree, the bytes of its files, and its cache, without a mount. */
#include "fuse/cache.c"
#include "fuse/common.c"
#include "fuse/format.c"
#include "fuse/path.c"
#include "fuse/values.c"
#include "tools/common/column_text.c"
#include "tools/common/text.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- queries ------------------------------------------------------------------------------------------- */

static void check_query(const char *name, const char *want, int want_format) {
  char text[512];
  size_t len = 12345;
  int format = -1;
  assert_int_equal(name_query(name, strlen(name), text, &len, &format), 0);
  assert_int_equal(len, strlen(want));
  assert_memory_equal(text, want, len);
  assert_int_equal(format, want_format);
}

static void query_words(void **state) {
  (void)state;
  check_query("gpu", "gpu", FORMAT_PLAIN);
  check_query("gpu+cuda", "gpu cuda", FORMAT_PLAIN);
  check_query("gpu%20cuda", "gpu cuda", FORMAT_PLAIN);
  check_query("gpu cuda", "gpu cuda", FORMAT_PLAIN);
  check_query("+++gpu++cuda+", "gpu cuda", FORMAT_PLAIN);
  check_query("a%09b%0ac%0Dd", "a b c d", FORMAT_PLAIN);
  check_query("c%2b%2B", "c++", FORMAT_PLAIN);
  check_query("a%2Fb", "a/b", FORMAT_PLAIN);
  check_query("caf%C3%A9", "caf\xC3\xA9", FORMAT_PLAIN);
  check_query("100%25", "100%", FORMAT_PLAIN);
  check_query("a=b@c:d_e~", "a=b@c:d_e~", FORMAT_PLAIN);
  check_query("", "", FORMAT_PLAIN);
  check_query("+", "", FORMAT_PLAIN);
  check_query("%40or", "@or", FORMAT_PLAIN);
}

static void query_minus(void **state) {
  (void)state;
  check_query("gpu+-opencl", "gpu -opencl", FORMAT_PLAIN);
  check_query("gpu%20-opencl", "gpu -opencl", FORMAT_PLAIN);
  check_query("gpu+%2Dopencl", "gpu opencl", FORMAT_PLAIN);
  check_query("%2D%2dgpu", "gpu", FORMAT_PLAIN);
  check_query("%2D", "", FORMAT_PLAIN);
  check_query("-%2Dgpu", "--gpu", FORMAT_PLAIN);
  check_query("open-source", "open-source", FORMAT_PLAIN);
  check_query("open%2Dsource", "open-source", FORMAT_PLAIN);

  check_query("a+-", "a -", FORMAT_PLAIN);
  check_query("%2D-gpu", "gpu", FORMAT_PLAIN); /* the word begins with a plain '-' */
  check_query("%2D+-gpu", "-gpu", FORMAT_PLAIN);
}

/* Holds that names mean what the command's text means, and that '"' and '*' are the same as %22 and %2A. */
static void query_phrases(void **state) {
  (void)state;
  check_query("\"a+phrase\"", "\"a phrase\"", FORMAT_PLAIN);
  check_query("%22a+phrase%22", "\"a phrase\"", FORMAT_PLAIN);
  check_query("%22a%20phrase\".tsv", "\"a phrase\"", FORMAT_TSV);
  check_query("+\"++a++phrase+\"+b", "\" a phrase \" b", FORMAT_PLAIN);
  check_query("-\"a+phrase\"+b", "-\"a phrase\" b", FORMAT_PLAIN);
  check_query("-%22a+phrase%22", "-\"a phrase\"", FORMAT_PLAIN);
  check_query("\"a+b\"\"c+d\"e-f-\"g\"", "\"a b\" \"c d\" e-f-\"g\"", FORMAT_PLAIN);
  check_query("\"a\"-\"b+c\"", "\"a\" -\"b c\"", FORMAT_PLAIN); /* behind a phrase a new word begins */
  check_query("\"a+-b+%2Dc+@d\"", "\"a -b -c @d\"", FORMAT_PLAIN); /* within one all is literal */
  check_query("\"a+%2D\"+b", "\"a -\" b", FORMAT_PLAIN);
  check_query("a\"b+5\"+c", "a\"b 5\" c", FORMAT_PLAIN); /* in a word it opens nothing */
  check_query("--\"a+b\"", "--\"a b\"", FORMAT_PLAIN);
  /* Behind a plain '-' it stands in a word too; the syntax has no way to say so, and no token has any of it. */
  check_query("%2D\"a+b\"", "a b\"", FORMAT_PLAIN);
  check_query("%2D-\"a+b\"", "a b\"", FORMAT_PLAIN);
  check_query("\"not+closed", "\"not closed", FORMAT_PLAIN); /* which the parser says */
  check_query("\"\"\"\"\"\"", "\"\" \"\" \"\"", FORMAT_PLAIN);
  check_query("word*", "word*", FORMAT_PLAIN);
  check_query("word%2A+-w%2a.json", "word* -w*", FORMAT_JSON);
}

static void query_suffix(void **state) {
  char text[64];
  size_t len;
  (void)state;
  check_query("gpu.tsv", "gpu", FORMAT_TSV);
  check_query("gpu.json", "gpu", FORMAT_JSON);
  check_query("gpu.paths", "gpu", FORMAT_PATHS);
  check_query("gpu%2Epaths", "gpu.paths", FORMAT_PLAIN);
  check_query("gpu%2Etsv", "gpu.tsv", FORMAT_PLAIN);
  check_query("gpu.tsv%20", "gpu.tsv", FORMAT_PLAIN);
  check_query("gpu.TSV", "gpu.TSV", FORMAT_PLAIN);
  check_query("gpu.json.tsv", "gpu.json", FORMAT_TSV);
  check_query("main.c", "main.c", FORMAT_PLAIN);
  check_query("tsv", "tsv", FORMAT_PLAIN);
  /* Without formats the suffix is a part of the query. */
  assert_int_equal(name_query("gpu.tsv", 7, text, &len, NULL), 0);
  assert_int_equal(len, 7);
}

static void query_bytes(void **state) {
  char name[3 * 256 + 1], text[3 * 256];
  size_t len, n = 0;
  int c, format;
  (void)state;
  for (c = 1; c < 256; c++) n += (size_t)sprintf(name + n, "%%%02X", c);
  assert_int_equal(name_unescape(name, n, text, &len), 0);
  assert_int_equal(len, 255);
  for (c = 1; c < 256; c++) assert_int_equal((unsigned char)text[c - 1], c);
  assert_int_equal(name_query("a%00b", 5, text, &len, &format), 0);
  assert_int_equal(len, 3);
  assert_memory_equal(text, "a\0b", 3);
}

static void bad_escapes(void **state) {
  static const char *const bad[] = {"%", "%4", "%zz", "%4z", "a%", "a%2", "a+%G0", "%%41", "% 1", "%-1", "%2"};
  char text[64];
  size_t i, len;
  int format;
  (void)state;
  for (i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_int_equal(name_query(bad[i], strlen(bad[i]), text, &len, &format), EINVAL);
    assert_int_equal(name_unescape(bad[i], strlen(bad[i]), text, &len), EINVAL);
  }
  /* The suffix is cut before, so it cannot complete an escape. */
  assert_int_equal(name_query("%4.tsv", 6, text, &len, &format), EINVAL);
}

static void never_queries(void **state) {
  (void)state;
  assert_true(name_is_never(".hidden", 7));
  assert_true(name_is_never(".tsv", 4));
  assert_true(name_is_never("autorun.inf", 11));
  assert_false(name_is_never("autorun.info", 12));
  assert_false(name_is_never("%2Ehidden", 9));
}

/* Holds what servers and editors look for apart from what somebody may ask. */
static void probes_of_others(void **state) {
  static const char *const yes[] = {"index.html", "httpd.conf", "index.csv", "favicon.ico", "robots.txt", "notes~",
      "a.swp", "package.json", "AGENTS.md", "Cargo.toml", "Thumbs.db", "x,v"};
  static const char *const no[] = {"index", "index%2Ehtml", "html", "conf", "main.c", "query.json", "wolf.paths",
      "Makefile", "HEAD", "robots.txt ", "a+.html+b", ""};
  size_t i;
  (void)state;
  for (i = 0; i < sizeof yes / sizeof *yes; i++) assert_true(name_is_probe(yes[i], strlen(yes[i])));
  for (i = 0; i < sizeof no / sizeof *no; i++) assert_false(name_is_probe(no[i], strlen(no[i])));
}

/* ---- options ------------------------------------------------------------------------------------------- */

static int option(const char *name, name_options *o) { return name_option(name, strlen(name), OPTIONS_ALL, 1000, o); }

static void options_once(void **state) {
  name_options o, before;
  (void)state;
  memset(&o, 0, sizeof o);
  o.k = 10;
  assert_int_equal(option("@k=100", &o), 0);
  assert_int_equal(o.k, 100);
  assert_int_equal(option("@or", &o), 0);
  assert_int_equal(o.mode, GPUIR_OR);
  assert_int_equal(option("@gpu", &o), 0);
  assert_int_equal(o.backend, BACKEND_GPU);
  assert_int_equal(option("@tokens=800", &o), 0);
  assert_int_equal(option("@bytes=0", &o), 0);
  assert_int_equal(option("@context=0", &o), 0);
  assert_int_equal(o.tokens, 800);
  assert_int_equal(o.bytes, 0);
  assert_int_equal(o.context, GPUIR_NO_CONTEXT);
  assert_int_equal(option("@rank=code", &o), 0);
  assert_int_equal(o.rank, RANK_CODE);
  before = o;
  assert_int_equal(option("@rank=plain", &o), EINVAL);
  assert_int_equal(option("@tokens=800", &o), EINVAL);
  assert_int_equal(option("@bytes=1", &o), EINVAL);
  assert_int_equal(option("@context=3", &o), EINVAL);
  assert_int_equal(option("@or", &o), EINVAL);
  assert_int_equal(option("@and", &o), EINVAL);
  assert_int_equal(option("@cpu", &o), EINVAL);
  assert_int_equal(option("@k=100", &o), EINVAL);
  assert_memory_equal(&o, &before, sizeof o);
}

static void options_bad(void **state) {
  static const char *const bad[] = {"@", "@@", "@xor", "@OR", "@or ", "@k", "@k=", "@k=x", "@k=1x", "@k=-1", "@k=+1",
      "@k=1001", "@k= 1", "or", "@k=99999999999999999999", "@k=1.5", "@gpu0", "%40or", "@tokens",
      "@tokens=", "@tokens=-1", "@tokens=1000000000001", "@bytes=x", "@context=1000001", "@rank",
      "@rank=", "@rank=best", "@rank=codes"};
  name_options o;
  size_t i;
  (void)state;
  memset(&o, 0, sizeof o);
  for (i = 0; i < sizeof bad / sizeof *bad; i++) assert_int_equal(option(bad[i], &o), EINVAL);
  assert_int_equal(o.given, 0);
  assert_int_equal(option("@k=0", &o), 0);
  assert_int_equal(o.k, 0);
  memset(&o, 0, sizeof o);
  assert_int_equal(option("@k=0001000", &o), 0);
  assert_int_equal(o.k, 1000);
  assert_int_equal(option("@context=3", &o), 0);
  assert_int_equal(o.context, 3);
}

/* Holds that a folder takes the kinds of options that it has a use for. */
static void options_by_folder(void **state) {
  static const char *const passages[] = {"@tokens=1", "@bytes=1", "@context=1"};
  name_options o;
  size_t i;
  (void)state;
  memset(&o, 0, sizeof o);
  for (i = 0; i < sizeof passages / sizeof *passages; i++)
    assert_int_equal(name_option(passages[i], strlen(passages[i]), OPTIONS_SEARCH, 1000, &o), EINVAL);
  assert_int_equal(name_option("@or", 3, 0, 1000, &o), EINVAL);
  assert_int_equal(o.given, 0);
  assert_int_equal(o.tokens + o.bytes + o.context, 0);
  assert_int_equal(name_option("@or", 3, OPTIONS_SEARCH, 1000, &o), 0);
}

/* ---- values -------------------------------------------------------------------------------------------- */

static void check_predicate(const char *column, const char *name, const char *want) {
  char text[PREDICATE_SIZE];
  const int rc = values_predicate(column, strlen(column), name, strlen(name), text);
  assert_int_equal(rc, want ? 0 : EINVAL);
  if (want) assert_string_equal(text, want);
}

/* Holds that ',' and '..' are syntax as they stand, and bytes of a value where they are escaped. */
static void predicates(void **state) {
  (void)state;
  check_predicate("ext", "c,h", "ext=c,h");
  check_predicate("-dir", "src/a", "-dir=src/a");
  check_predicate("mtime", "2024-01..", "mtime=2024-01..");
  check_predicate("mtime", "..2024-06", "mtime=..2024-06");
  check_predicate("mtime", "..", "mtime=..");
  check_predicate("m", "1..2,4..,..7", "m=1..2,4..,..7");
  check_predicate("author", "Smith%2C+John", "author=\"Smith, John\"");
  check_predicate("author", "\"Smith,+John\",Jones", "author=\"Smith, John\",Jones");
  check_predicate("a", "x%2E%2Ey..z", "a=\"x..y\"..z");
  check_predicate("a", "%22q%22", "a=\"\"\"q\"\"\"");
  check_predicate("a", "\"q\"\"r\"", "a=\"q\"\"r\"");
  check_predicate("a", "b%7Cc", "a=\"b|c\"");
  check_predicate("a", "b|c", "a=b|c"); /* which the library refuses, and says what to write */
  check_predicate("a", "x.conf", "a=x.conf");
  check_predicate("a", "", "a=");
  check_predicate("a", "b,", "a=b,");
  check_predicate("a", "caf%C3%A9", "a=caf\xC3\xA9");
  check_predicate("a", "1..2..3", "a=1..2..3");
  check_predicate("a", "%", NULL);
  check_predicate("a", "b%00", NULL);
  check_predicate("a", "\"b", NULL);
  check_predicate("a", "\"b\"c", NULL);
}

static void check_join(const char *a, const char *b, const char *want) {
  char out[WHERE_LIMIT + 1];
  assert_int_equal(values_join(a, b, out), 0);
  assert_string_equal(out, want);
}

static void joined(void **state) {
  char out[WHERE_LIMIT + 1], most[WHERE_LIMIT + 1];
  (void)state;
  check_join("", "a=1", "a=1");
  check_join("a=1", "b=2 c=3", "a=1 b=2 c=3");
  check_join("a=1 | b=2", "c=3 | d=4", "a=1 c=3 | a=1 d=4 | b=2 c=3 | b=2 d=4");
  check_join("a=\"x | y\"", "b=\"\"\" | \"", "a=\"x | y\" b=\"\"\" | \"");
  memset(most, 'x', WHERE_LIMIT);
  most[WHERE_LIMIT] = 0;
  assert_int_equal(values_join("", most, out), 0);
  assert_int_equal(values_join("a", most, out), E2BIG);
}

/* Holds that the name of a value stands for that value, whatever bytes it has. */
static void value_names(void **state) {
  static const char *const values[] = {"c", "a/b", "..", "...", ".x", "@k=3", "x.conf", "new\nline", "a b",
      "caf\xC3\xA9", "\xFF", "100%", "a+b", "a,b", "\"q\"", "a|b", "-x", "a..b", "\xE2\x80\xAEgpj"};
  char name[NAME_LIMIT + 1], text[NAME_LIMIT + 1];
  size_t i, n, len;
  (void)state;
  for (i = 0; i < sizeof values / sizeof *values; i++) {
    n = values_name(name, values[i], strlen(values[i]));
    assert_int_equal(n, strlen(name));
    assert_int_equal(name_unescape(name, n, text, &len), 0);
    assert_int_equal(len, strlen(values[i]));
    assert_memory_equal(text, values[i], len);
    assert_false(name_is_never(name, n) || name_is_option(name, n) || strchr(name, '/') || strstr(name, ".."));
  }
  values_name(name, "a/b", 3);
  assert_string_equal(name, "a%2Fb");
  memset(text, 'x', 255);
  assert_int_equal(values_name(name, text, 255), 255);
  text[7] = '/';
  assert_int_equal(values_name(name, text, 255), 0);
}

static void documents(void **state) {
  static const char *const bad[] = {"", "-1", "+1", "01", "00", "1x", "x", "0x1", "4294967295", "99999999999", " 1"};
  static const char *const bad_pairs[] = {"1.", ".1", "0.1", "01.1", "1.01", "1.-1", "1.+1", "1.1.1", "1.x", "x.1",
      "-1.1", "1. 1", "1 .1", ".", "1.4294967295", "99999999999999999999.1", "1..1", "1,1", "1.1 "};
  uint64_t generation;
  uint32_t docid;
  size_t i;
  (void)state;
  assert_int_equal(name_document("0", 1, &generation, &docid), 0);
  assert_int_equal(generation, 0);
  assert_int_equal(docid, 0);
  assert_int_equal(name_document("4294967294", 10, &generation, &docid), 0);
  assert_int_equal(generation, 0);
  assert_true(docid == UINT32_C(4294967294));
  assert_int_equal(name_document("1.0", 3, &generation, &docid), 0);
  assert_int_equal(generation, 1);
  assert_int_equal(docid, 0);
  assert_int_equal(name_document("9999999999999999999.17", 22, &generation, &docid), 0);
  assert_true(generation == UINT64_C(9999999999999999999));
  assert_int_equal(docid, 17);
  for (i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_int_equal(name_document(bad[i], strlen(bad[i]), &generation, &docid), ENOENT);
  for (i = 0; i < sizeof bad_pairs / sizeof *bad_pairs; i++)
    assert_int_equal(name_document(bad_pairs[i], strlen(bad_pairs[i]), &generation, &docid), ENOENT);
}

/* ---- links --------------------------------------------------------------------------------------------- */

static void check_link(uint32_t rank, const char *name, const char *want) {
  char out[NAME_LIMIT + 1];
  size_t n = name_link(out, rank, 77, name, strlen(name));
  assert_string_equal(out, want);
  assert_int_equal(n, strlen(want));
  assert_int_equal(name_link_rank(out, n), rank);
}

static void link_names(void **state) {
  char name[600], out[NAME_LIMIT + 1];
  size_t i, cut;
  (void)state;
  check_link(1, "a.txt", "000001-a.txt");
  check_link(1000000, "a", "1000000-a");
  check_link(2, "src/a b\n\t\x7f", "000002-src_a b___");
  check_link(3, "caf\xC3\xA9 \xC2\x85", "000003-caf\xC3\xA9 _");
  check_link(3, "\xE2\x80\xAEgpj.exe\xE2\x81\xA6\xD8\x9C", "000003-_gpj.exe__");
  check_link(3, "\xFF\xC3(\xC2\x9B", "000003-__(_");
  check_link(4, "", "000004-77");
  check_link(5, "..", "000005-..");
  for (cut = 0; cut < 8; cut++) { /* wherever the limit falls, no character is cut in two */
    memset(name, 'x', cut);
    for (i = 0; i < 100; i++) memcpy(name + cut + 4 * i, "\xF0\x9F\x98\x80", 4);
    i = name_link(out, 1, 0, name, cut + 400);
    assert_in_range(i, NAME_LIMIT - 3, NAME_LIMIT);
    assert_int_equal(strlen(out), i);
    assert_int_equal((i - 7 - cut) % 4, 0);
  }
  memset(name, 0x80, sizeof name); /* not UTF-8: a '_' for each byte */
  assert_int_equal(name_link(out, 1, 0, name, sizeof name), NAME_LIMIT);
  assert_int_equal(name_link_rank("1-x", 3), 0);
  assert_int_equal(name_link_rank("000001", 6), 0);
  assert_int_equal(name_link_rank("99999999999-x", 13), 0);
}

static void link_targets(void **state) {
  char out[LINK_TARGET_SIZE];
  (void)state;
  name_link_target(out, 2, 0, 17);
  assert_string_equal(out, "../../doc/17");
  name_link_target(out, 2, 3, 17);
  assert_string_equal(out, "../../doc/3.17");
  name_link_target(out, 5, UINT64_MAX, UINT32_C(4294967294));
  assert_string_equal(out, "../../../../../doc/18446744073709551615.4294967294");
  name_link_target(out, 30, UINT64_MAX, 0);
  assert_int_equal(strlen(out), 3 * 30 + strlen("doc/18446744073709551615.0"));
  name_link_target(out, NAME_DEPTH, UINT64_MAX, UINT32_C(4294967294));
  assert_int_equal(strlen(out), 3 * NAME_DEPTH + strlen("doc/18446744073709551615.4294967294"));
}

/* ---- formats ------------------------------------------------------------------------------------------- */

static void check_format(void (*format)(buf *, const char *, size_t), const char *in, size_t n, const char *want) {
  buf b;
  memset(&b, 0, sizeof b);
  b.max = 1000;
  format(&b, in, n);
  assert_int_equal(b.error, 0);
  assert_int_equal(b.len, strlen(want));
  if (b.len) assert_memory_equal(b.data, want, b.len);
  buf_free(&b);
}

static void escapes(void **state) {
  (void)state;
  check_format(format_tsv_name, "a\tb\nc\rd\\e\x01\x7f\0", 12, "a\\tb\\nc\\rd\\\\e\\x01\\x7f\\x00");
  check_format(format_tsv_name, "caf\xC3\xA9", 5, "caf\xC3\xA9");
  check_format(format_json_name, "a\"b\\\x01\x7f\0", 7, "a\\\"b\\\\\\u0001\\u007f\\u0000");
  check_format(format_json_name, "\xC3\xA9 \xF0\x9F\x98\x80", 7, "\xC3\xA9 \xF0\x9F\x98\x80");
  check_format(format_json_name, "\xC2\x85", 2, "\\u0085");
  check_format(format_json_name, "", 0, "");
}

/* Holds that each byte that is not UTF-8 becomes a low surrogate of its own, so that a reader gets it back. */
static void not_utf8(void **state) {
  /* lone and missing continuations, overlong forms, a surrogate, beyond U+10FFFF */
  static const char *const bad[] = {"\x80", "\xC3", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80",
      "\xFF", "\xF0\x9F\x98", "\xC2"};
  size_t i, j;
  (void)state;
  for (i = 0; i < sizeof bad / sizeof *bad; i++) {
    char want[64] = "";
    for (j = 0; j < strlen(bad[i]); j++) sprintf(want + 6 * j, "\\udc%02x", (unsigned char)bad[i][j]);
    check_format(format_json_name, bad[i], strlen(bad[i]), want);
  }
}

static void buffers(void **state) {
  buf b;
  (void)state;
  memset(&b, 0, sizeof b);
  b.max = 10;
  buf_number(&b, 0);
  buf_number(&b, UINT64_C(123456789));
  assert_int_equal(b.error, 0);
  assert_memory_equal(b.data, "0123456789", 10);
  buf_puts(&b, "x");
  assert_int_equal(b.error, EFBIG);
  assert_int_equal(b.len, 10);
  buf_free(&b);
}

/* ---- cache --------------------------------------------------------------------------------------------- */

static result *some_result(cache *c, const char *key, size_t size) {
  char *bytes = calloc(1, size);
  result *r = result_add(c, key, key ? strlen(key) : 0, bytes, size, NULL, 0);
  assert_non_null(r);
  return r;
}

static node *add(cache *c, uint64_t parent, const char *name, uint64_t generation, result *r) {
  node_body body;
  node *n;
  memset(&body, 0, sizeof body);
  body.kind = NODE_BYTES;
  body.generation = generation;
  body.res = r;
  n = cache_add(c, parent, name, strlen(name), &body, 1);
  assert_non_null(n);
  return n;
}

static void cache_shares(void **state) {
  cache c;
  result *r, *again;
  node *a, *b, *same;
  (void)state;
  assert_int_equal(cache_init(&c, 1 << 20), 0);
  r = some_result(&c, "key", 100);
  again = some_result(&c, "key", 100);
  assert_ptr_equal(r, again);
  a = add(&c, 5, "a", 1, r);
  b = add(&c, 5, "b", 1, again);
  assert_int_not_equal(a->ino, b->ino);
  assert_int_equal(c.results, 1);
  same = add(&c, 5, "a", 1, result_find(&c, "key", 3));
  assert_ptr_equal(a, same);
  assert_int_equal(a->lookups, 2);
  assert_ptr_equal(cache_by_ino(&c, a->ino), a);
  assert_null(cache_by_ino(&c, a->ino + 1)); /* no links in a file */
  assert_null(cache_by_name(&c, 6, "a", 1));
  cache_forget(&c, a, 2);
  assert_ptr_equal(cache_by_name(&c, 5, "a", 1), a); /* forgotten, still a memo */
  cache_destroy(&c);
}

static void cache_evicts(void **state) {
  char name[NAME_LIMIT + 1];
  cache c;
  uint64_t parent;
  size_t len, i, waiting = 0;
  node *n;
  (void)state;
  assert_int_equal(cache_init(&c, 100 * (NODE_COST + 1000)), 0);
  for (i = 0; i < 1000; i++) {
    sprintf(name, "q%03u", (unsigned)i);
    n = add(&c, 5, name, 1, some_result(&c, NULL, 900));
    if (i % 2) cache_forget(&c, n, 1); /* half of them are unknown to the kernel */
    assert_true(c.listed_cost <= c.limit);
  }
  assert_null(cache_by_name(&c, 5, "q000", 4));
  assert_non_null(cache_by_name(&c, 5, "q999", 4));
  while (cache_next_waiting(&c, &parent, name, &len)) {
    assert_int_equal(parent, 5);
    assert_int_equal(len, 4);
    waiting++;
  }
  assert_in_range(waiting, 440, 460);
  assert_true(c.leaving_cost > 0);
  for (i = 1; i < 1001; i++) { /* the kernel lets go */
    n = cache_by_ino(&c, (uint64_t)i << LINK_BITS);
    if (n && n->state == NODE_LEAVING) cache_forget(&c, n, 1);
  }
  assert_int_equal(c.leaving_cost, 0);
  assert_in_range(c.nodes, 95, 105);
  assert_int_equal(c.results, c.nodes);
  cache_destroy(&c);
}

static void cache_uses(void **state) {
  cache c;
  node *n;
  char name[16];
  int i;
  (void)state;
  assert_int_equal(cache_init(&c, 10 * (NODE_COST + 4)), 0);
  n = add(&c, 5, "kept", 1, NULL);
  for (i = 0; i < 100; i++) {
    sprintf(name, "q%03d", i);
    add(&c, 5, name, 1, NULL);
    cache_touch(&c, n);
  }
  assert_ptr_equal(cache_by_name(&c, 5, "kept", 4), n);
  assert_null(cache_by_name(&c, 5, "q050", 4));
  cache_destroy(&c);
}

static void cache_generations(void **state) {
  cache c;
  node *old, *folder, *fresh;
  uint64_t parent, ino;
  char name[NAME_LIMIT + 1];
  size_t len;
  (void)state;
  assert_int_equal(cache_init(&c, 1 << 20), 0);
  old = add(&c, 5, "q", 1, some_result(&c, "1 q", 10));
  folder = add(&c, 5, "@or", 0, NULL);
  ino = old->ino;
  cache_forget(&c, add(&c, 5, "memo", 1, some_result(&c, "1 memo", 10)), 1);
  cache_keep_generations(&c, 2, 2);
  assert_null(cache_by_name(&c, 5, "q", 1));
  assert_null(cache_by_name(&c, 5, "memo", 4));
  assert_ptr_equal(cache_by_name(&c, 5, "@or", 3), folder);
  assert_ptr_equal(cache_by_ino(&c, ino), old); /* still known to the kernel, and whole */
  assert_int_equal(old->body.res->size, 10);
  fresh = add(&c, 5, "q", 2, some_result(&c, "2 q", 20));
  assert_int_not_equal(fresh->ino, ino);
  assert_true(cache_next_waiting(&c, &parent, name, &len));
  assert_string_equal(name, "q");
  assert_false(cache_next_waiting(&c, &parent, name, &len));
  cache_forget(&c, old, 1);
  assert_null(cache_by_ino(&c, ino));
  assert_int_equal(c.leaving_cost, 0);
  /* One that changed under the same generation is replaced. */
  old = fresh;
  fresh = add(&c, 5, "q", 2, some_result(&c, "2 q again", 20));
  assert_ptr_not_equal(fresh, old);
  assert_ptr_equal(cache_by_name(&c, 5, "q", 1), fresh);
  cache_destroy(&c);
}

static node *add_document(cache *c, const char *name, uint64_t generation, int named) {
  node_body body;
  node *n;
  memset(&body, 0, sizeof body);
  body.kind = NODE_TEXT;
  body.generation = generation;
  body.named = named;
  n = cache_add(c, NODE_DOC_ROOT, name, strlen(name), &body, 1);
  assert_non_null(n);
  return n;
}

/* Holds that documents which name their generation stay as long as that does. */
static void cache_named(void **state) {
  node_body body;
  node *hits;
  cache c;
  (void)state;
  assert_int_equal(cache_init(&c, 1 << 20), 0);
  add_document(&c, "7", 1, 0);
  add_document(&c, "1.7", 1, 1);
  add_document(&c, "2.7", 2, 1);
  add_document(&c, "1.8", 1, 1)->body.kind = NODE_LINK;
  memset(&body, 0, sizeof body);
  body.kind = NODE_HITS;
  body.generation = 2;
  body.named = 1; /* its links are: it is the answer of generation 2, whatever it is called by */
  hits = cache_add(&c, NODE_HITS_ROOT, "q", 1, &body, 1);
  assert_non_null(hits);
  cache_keep_generations(&c, 2, 1);
  assert_null(cache_by_name(&c, NODE_DOC_ROOT, "7", 1));
  assert_null(cache_by_name(&c, NODE_DOC_ROOT, "1.8", 3));
  assert_non_null(cache_by_name(&c, NODE_DOC_ROOT, "1.7", 3));
  assert_ptr_equal(cache_by_name(&c, NODE_HITS_ROOT, "q", 1), hits);
  cache_keep_generations(&c, 3, 2);
  assert_null(cache_by_name(&c, NODE_DOC_ROOT, "1.7", 3));
  assert_non_null(cache_by_name(&c, NODE_DOC_ROOT, "2.7", 3));
  assert_null(cache_by_name(&c, NODE_HITS_ROOT, "q", 1));
  cache_destroy(&c);
}

/* Holds that the kernel is told of what left before it was listed, and to drop folders when it keeps too much. */
static void cache_leaves(void **state) {
  node_body body;
  cache c;
  uint64_t parent;
  char name[NAME_LIMIT + 1];
  size_t len, i;
  node *kept[8];
  (void)state;
  assert_int_equal(cache_init(&c, 40 * (NODE_COST + 4)), 0); /* an eighth is 5 of them */
  memset(&body, 0, sizeof body);
  body.kind = NODE_BYTES;
  body.generation = 1;
  for (i = 0; i < 8; i++) {
    kept[i] = cache_add(&c, 5, "late", 4, &body, 0);
    assert_non_null(kept[i]);
    assert_null(cache_by_name(&c, 5, "late", 4));
    assert_true(cache_next_waiting(&c, &parent, name, &len));
    assert_int_equal(parent, 5);
    assert_string_equal(name, "late");
    assert_int_equal(cache_many_waiting(&c), i >= 5);
  }
  cache_none_waiting(&c);
  assert_false(cache_many_waiting(&c)); /* to ask again is of no use until there is more */
  for (i = 0; i < 8; i++) cache_forget(&c, kept[i], 1);
  assert_int_equal(c.leaving_cost, 0);
  assert_false(cache_many_waiting(&c));
  for (i = 0; i < 6; i++) assert_non_null(cache_add(&c, 5, "late", 4, &body, 0));
  while (cache_next_waiting(&c, &parent, name, &len)) {}
  assert_true(cache_many_waiting(&c)); /* what was let go of counts anew */
  cache_destroy(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(query_words),
      cmocka_unit_test(query_minus),
      cmocka_unit_test(query_suffix),
      cmocka_unit_test(query_phrases),
      cmocka_unit_test(query_bytes),
      cmocka_unit_test(bad_escapes),
      cmocka_unit_test(never_queries),
      cmocka_unit_test(probes_of_others),
      cmocka_unit_test(options_once),
      cmocka_unit_test(options_bad),
      cmocka_unit_test(options_by_folder),
      cmocka_unit_test(predicates),
      cmocka_unit_test(joined),
      cmocka_unit_test(value_names),
      cmocka_unit_test(documents),
      cmocka_unit_test(link_names),
      cmocka_unit_test(link_targets),
      cmocka_unit_test(escapes),
      cmocka_unit_test(not_utf8),
      cmocka_unit_test(buffers),
      cmocka_unit_test(cache_shares),
      cmocka_unit_test(cache_evicts),
      cmocka_unit_test(cache_uses),
      cmocka_unit_test(cache_generations),
      cmocka_unit_test(cache_named),
      cmocka_unit_test(cache_leaves),
  };
  return cmocka_run_group_tests_name("fsname", tests, NULL, NULL);
}
