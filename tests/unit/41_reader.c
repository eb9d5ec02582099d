/* 41_reader.c - files that are not indexes, or no longer: each has a clear error that names the file; look-ups
 *
 * Damage that the library cannot refuse is covered by tests/fuzz/mutate.c. The layout is the one that the
 * header documents: a header of 64 bytes, a table of 32 bytes a section, then the sections. */
#include "guard.h"
#define GPUIR_STATIC
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"

#include <signal.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "alloc.h"
#include "oracle.h"
#include "corpus.h"
#include "exercise.h"
#include "fixture.h"
#include "collection.h"
#include "dictionary.h"

enum { HEADER = 64, ENTRY = 32, OPTIONAL_SECTION = 200 };

static char valid_path[4200], broken[4200]; /* an index that stays, and a place for others */
static unsigned char *valid;
static size_t valid_len;

static void put_file(const void *bytes, size_t len) {
  FILE *f = fopen(broken, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(bytes, 1, len, f), len);
  assert_int_equal(fclose(f), 0);
}

static uint64_t get64(size_t at) {
  uint64_t v;
  memcpy(&v, valid + at, 8);
  return v;
}

static uint32_t get32(size_t at) {
  uint32_t v;
  memcpy(&v, valid + at, 4);
  return v;
}

/* Makes the header's and the table's checksums right. */
static void mend(unsigned char *bytes) {
  uint32_t n;
  uint64_t h;
  memcpy(&n, bytes + 12, 4);
  h = XXH3_64bits(bytes + HEADER, (size_t)n * ENTRY);
  memcpy(bytes + 24, &h, 8);
  h = XXH3_64bits(bytes, 56);
  memcpy(bytes + 56, &h, 8);
}

/* The same, and those of the sections. */
static void mend_sections(unsigned char *bytes) {
  uint64_t at, length, h;
  uint32_t n, i;
  memcpy(&n, bytes + 12, 4);
  for (i = 0; i < n; i++) {
    memcpy(&at, bytes + HEADER + i * ENTRY + 8, 8);
    memcpy(&length, bytes + HEADER + i * ENTRY + 16, 8);
    h = XXH3_64bits(bytes + at, (size_t)length);
    memcpy(bytes + HEADER + i * ENTRY + 24, &h, 8);
  }
  mend(bytes);
}

static unsigned char *copy_valid(void) {
  unsigned char *bytes = (unsigned char *)oracle_grow(NULL, valid_len, 1);
  memcpy(bytes, valid, valid_len);
  return bytes;
}

/* gpuir_open must refuse `broken` with this code, and say why. */
static void refused(int code, const char *why) {
  gpuir_index *ix = (gpuir_index *)(void *)&code;
  gpuir_error err;
  const char *name = strrchr(broken, '/') + 1;
  int status;
  memset(&err, 0, sizeof err);
  status = gpuir_open(broken, NULL, &ix, &err);
  if (status != code) fail_msg("%s instead of %s (%s)", gpuir_strerror(status), gpuir_strerror(code), err.msg);
  assert_null(ix);
  assert_int_equal(err.code, code);
  if (!strstr(err.msg, name)) fail_msg("the message does not name the file: %s", err.msg);
  if (!strstr(err.msg, why)) fail_msg("\"%s\" instead of \"%s\"", err.msg, why);
  assert_int_equal(gpuir_open(broken, NULL, &ix, NULL), code); /* and without an error to fill */
}

static int setup_group(void **state) {
  oracle o;
  gpuir_error err;
  gpuir_builder_desc desc;
  gpuir_builder *b;
  FILE *f;
  long len;
  unsigned d;
  if (set_up(state)) return 1;
  (void)corpus_path(broken, sizeof broken, "broken.gpuir");
  (void)corpus_path(valid_path, sizeof valid_path, "valid.gpuir");
  corpus_zipf(&o, 600, 50, 8, 1);
  memset(&desc, 0, sizeof desc);
  desc.path = valid_path;
  desc.analyzer.analyzer = "ascii";
  desc.store_text = 1;
  desc.positions = 1;
  if (gpuir_builder_create(&desc, &b, &err)) return 1;
  for (d = 0; d < o.ndocs; d++) {
    char text[2048], name[16];
    gpuir_doc_desc dd;
    size_t n = 0, i;
    for (i = o.doc_start[d]; i < o.doc_start[d + 1] && n < 1900; i++)
      n += (size_t)snprintf(text + n, sizeof text - n, "%s ", o.name[o.post[i].term]);
    memset(&dd, 0, sizeof dd);
    dd.name = name;
    dd.name_len = (size_t)snprintf(name, sizeof name, "d%u", d);
    dd.source = "all.txt";
    dd.source_len = 7;
    dd.first_line = dd.last_line = d + 1;
    if (gpuir_builder_add_text(b, &dd, text, n, &err)) return 1;
  }
  if (gpuir_builder_write(b, NULL, &err)) return 1;
  gpuir_builder_destroy(b);
  oracle_free(&o);
  f = fopen(valid_path, "rb");
  if (!f || fseek(f, 0, SEEK_END) || (len = ftell(f)) <= 0) return 1;
  rewind(f);
  valid_len = (size_t)len;
  valid = (unsigned char *)oracle_grow(NULL, valid_len, 1);
  if (fread(valid, 1, valid_len, f) != valid_len) return 1;
  return fclose(f);
}

static int teardown_group(void **state) {
  (void)unlink(broken);
  (void)unlink(valid_path);
  free(valid);
  return tear_down(state);
}

static void test_valid(void **state) {
  int verified;
  (void)state;
  assert_int_equal(exercise_file(valid_path, GPUIR_SIMD_AUTO, &verified), GPUIR_OK);
  assert_int_equal(verified, GPUIR_OK);
}

static void test_missing(void **state) {
  (void)state;
  (void)unlink(broken);
  refused(GPUIR_E_IO, "No such file");
}

static void test_directory(void **state) {
  (void)state;
  (void)unlink(broken);
  assert_int_equal(mkdir(broken, 0755), 0);
  refused(GPUIR_E_FORMAT, "not a live index");
  assert_int_equal(rmdir(broken), 0);
}

/* A named pipe without a writer must not hold the caller up. */
static void test_pipe(void **state) {
  (void)state;
  (void)unlink(broken);
  assert_int_equal(mkfifo(broken, 0644), 0);
  (void)alarm(10);
  refused(GPUIR_E_FORMAT, "not a regular file");
  (void)alarm(0);
  assert_int_equal(unlink(broken), 0);
}

static void test_empty_file(void **state) {
  (void)state;
  put_file("", 0);
  refused(GPUIR_E_FORMAT, "empty");
}

static void test_text_file(void **state) {
  static const char text[] =
      "This is a text, and a rather long one, so that it has more bytes than the header of an index would "
      "have.\n";
  (void)state;
  put_file(text, sizeof text - 1);
  refused(GPUIR_E_FORMAT, "not a gpuir index");
  put_file(text, 10);
  refused(GPUIR_E_FORMAT, "not a gpuir index");
}

static void test_unreadable(void **state) {
  int root = geteuid() == 0;
  (void)state;
  put_file(valid, valid_len);
  assert_int_equal(chmod(broken, 0), 0);
  if (root) assert_int_equal(seteuid(65534), 0);
  refused(GPUIR_E_IO, "Permission denied");
  if (root) assert_int_equal(seteuid(0), 0);
}

static void test_arguments(void **state) {
  gpuir_index *ix;
  gpuir_error err;
  (void)state;
  assert_int_equal(gpuir_open(NULL, NULL, &ix, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_open(broken, NULL, NULL, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_verify(NULL, &err), GPUIR_E_ARGUMENT);
}

/* Messages keep the end of a long broken, which names the file. */
static void test_long_path(void **state) {
  char long_path[400];
  gpuir_index *ix;
  gpuir_error err;
  size_t n = 0;
  (void)state;
  while (n < 300) n += (size_t)snprintf(long_path + n, sizeof long_path - n, "/folder%lu", (unsigned long)n);
  (void)snprintf(long_path + n, sizeof long_path - n, "/the-name.gpuir");
  assert_int_equal(gpuir_open(long_path, NULL, &ix, &err), GPUIR_E_IO);
  assert_non_null(strstr(err.msg, "the-name.gpuir"));
  assert_non_null(strstr(err.msg, "No such file"));
}

static void test_truncated(void **state) {
  size_t n;
  int verified;
  (void)state;
  for (n = 0; n < valid_len; n += 64) {
    put_file(valid, n);
    assert_int_equal(exercise_file(broken, GPUIR_SIMD_AUTO, &verified), GPUIR_E_FORMAT);
  }
  for (n = valid_len - 64; n < valid_len; n++) {
    put_file(valid, n);
    refused(GPUIR_E_FORMAT, n ? "truncated" : "");
  }
}

static void test_extended(void **state) {
  unsigned char *bytes = (unsigned char *)oracle_grow(NULL, valid_len + 64, 1);
  (void)state;
  memcpy(bytes, valid, valid_len);
  memset(bytes + valid_len, 0, 64);
  put_file(bytes, valid_len + 64);
  refused(GPUIR_E_FORMAT, "extended");
  free(bytes);
}

/* Truncated, with a header that says so: whatever opens must be safe. */
static void test_truncated_and_mended(void **state) {
  size_t n;
  int verified;
  (void)state;
  for (n = 64; n < valid_len; n += 64) {
    unsigned char *bytes = copy_valid();
    uint64_t size = n;
    memcpy(bytes + 16, &size, 8);
    mend(bytes);
    put_file(bytes, n);
    assert_true(exercise_file(broken, GPUIR_SIMD_AUTO, &verified) || verified);
    free(bytes);
  }
}

static void test_magic_and_version(void **state) {
  unsigned char *bytes = copy_valid();
  uint32_t version = get32(8) + 1;
  unsigned i;
  (void)state;
  for (i = 0; i < 8; i++) {
    bytes[i] ^= 1;
    put_file(bytes, valid_len);
    refused(GPUIR_E_FORMAT, "not a gpuir index");
    bytes[i] ^= 1;
  }
  memcpy(bytes + 8, &version, 4); /* a newer format may place its checksums elsewhere */
  put_file(bytes, valid_len);
  refused(GPUIR_E_VERSION, "format 3, this build reads 2: it needs a newer gpuir");
  mend(bytes);
  put_file(bytes, valid_len);
  refused(GPUIR_E_VERSION, "format");
  version = 1; /* says how it is made anew */
  memcpy(bytes + 8, &version, 4);
  put_file(bytes, valid_len);
  refused(GPUIR_E_VERSION, "gpuir index INPUT -o FILE");
  free(bytes);
}

/* Every bit of the header and of the section table counts. */
static void test_header_and_table_bits(void **state) {
  uint32_t n = get32(12);
  size_t bit;
  (void)state;
  for (bit = 0; bit < (HEADER + n * ENTRY) * 8u; bit += 3) {
    unsigned char *bytes = copy_valid();
    gpuir_index *ix;
    bytes[bit / 8] = (unsigned char)(bytes[bit / 8] ^ (1u << bit % 8));
    put_file(bytes, valid_len);
    assert_int_not_equal(gpuir_open(broken, NULL, &ix, NULL), GPUIR_OK);
    free(bytes);
  }
}

/* A flipped bit anywhere in a section is found by its checksum, and the message says where. */
static void test_checksums(void **state) {
  uint32_t n = get32(12), i, j;
  (void)state;
  assert_true(n >= 20);
  for (i = 0; i < n; i++) {
    size_t entry = HEADER + i * ENTRY;
    uint64_t offset = get64(entry + 8), length = get64(entry + 16);
    for (j = 0; j < 4 && length; j++) {
      const uint64_t places[4] = {0, length - 1, length / 2, length / 3};
      uint64_t at = offset + places[j];
      unsigned char *bytes = copy_valid();
      gpuir_open_desc desc;
      gpuir_index *ix;
      gpuir_error err;
      int status;
      memset(&desc, 0, sizeof desc);
      bytes[at] = (unsigned char)(bytes[at] ^ (1u << j * 2));
      put_file(bytes, valid_len);
      status = gpuir_open(broken, &desc, &ix, &err);
      if (!status) { /* the statistics, the dictionary's sizes and the settings are checked by open already */
        assert_int_equal(gpuir_verify(ix, &err), GPUIR_E_CHECKSUM);
        assert_int_equal(err.code, GPUIR_E_CHECKSUM);
        assert_true(err.offset == offset);
        assert_non_null(strstr(err.msg, "broken.gpuir"));
        gpuir_close(ix);
      } else {
        assert_true(get32(entry) == 1 || get32(entry) == 2);
      }
      free(bytes);
    }
  }
}

/* A section more, of an id that no version has used yet: refused when required, else skipped. */
static void test_unknown_sections(void **state) {
  uint32_t n = get32(12), must, i;
  size_t end = (valid_len + 64 + 63) & ~(size_t)63, grown = end + 128; /* where the new section goes */
  (void)state;
  for (must = 0; must < 2; must++) {
    unsigned char *bytes = (unsigned char *)oracle_grow(NULL, grown, 1);
    uint32_t more = n + 1, id = OPTIONAL_SECTION;
    uint64_t size = grown, at = end, length = 5, hash;
    size_t shift = 64, entry = HEADER + n * ENTRY, first = valid_len;
    int verified, status;
    memset(bytes, 0, grown);
    for (i = 0; i < n; i++)
      if (get64(HEADER + i * ENTRY + 8) < first) first = (size_t)get64(HEADER + i * ENTRY + 8);
    memcpy(bytes, valid, entry);
    memcpy(bytes + first + shift, valid + first, valid_len - first); /* all sections 64 bytes on */
    for (i = 0; i < n; i++) {
      uint64_t offset = get64(HEADER + i * ENTRY + 8) + shift;
      memcpy(bytes + HEADER + i * ENTRY + 8, &offset, 8);
    }
    memcpy(bytes + at, "hello", 5);
    hash = XXH3_64bits(bytes + at, 5);
    memcpy(bytes + entry, &id, 4);
    memcpy(bytes + entry + 4, &must, 4);
    memcpy(bytes + entry + 8, &at, 8);
    memcpy(bytes + entry + 16, &length, 8);
    memcpy(bytes + entry + 24, &hash, 8);
    memcpy(bytes + 12, &more, 4);
    memcpy(bytes + 16, &size, 8);
    mend(bytes);
    put_file(bytes, grown);
    if (must) {
      refused(GPUIR_E_VERSION, "200");
    } else {
      status = exercise_file(broken, GPUIR_SIMD_AUTO, &verified);
      assert_int_equal(status, GPUIR_OK);
      assert_int_equal(verified, GPUIR_OK);
    }
    free(bytes);
  }
}

/* Each optional section may be missing, no other may. */
static void test_missing_sections(void **state) {
  uint32_t n = get32(12), i, optional = 0;
  (void)state;
  for (i = 0; i < n; i++) {
    unsigned char *bytes = copy_valid();
    uint32_t id = OPTIONAL_SECTION, flags = 0, must = get32(HEADER + i * ENTRY + 4) & 1;
    int verified, status;
    memcpy(bytes + HEADER + i * ENTRY, &id, 4);
    memcpy(bytes + HEADER + i * ENTRY + 4, &flags, 4);
    mend(bytes);
    put_file(bytes, valid_len);
    status = exercise_file(broken, GPUIR_SIMD_AUTO, &verified);
    if (must) {
      assert_int_equal(status, GPUIR_E_FORMAT);
    } else {
      assert_int_equal(status, GPUIR_OK);
      assert_int_equal(verified, GPUIR_OK);
      optional++;
    }
    free(bytes);
  }
  assert_int_equal(optional, 5); /* seeds, origins, sources (2), hashes */
}

/* Opens the valid index with other words of the same length in its meta section. */
static void meta_refused(const char *from, const char *to, int code, const char *why) {
  unsigned char *bytes = copy_valid(), *at;
  const size_t n = strlen(from);
  assert_int_equal(strlen(to), n);
  for (at = bytes; at + n <= bytes + valid_len && memcmp(at, from, n); at++) continue;
  assert_true(at + n <= bytes + valid_len);
  memcpy(at, to, n);
  mend(bytes);
  put_file(bytes, valid_len);
  refused(code, why);
  free(bytes);
}

/* What another build has analysed otherwise would be searched for other terms. */
static void test_settings(void **state) {
  (void)state;
  meta_refused("\nanalyzer_revision=2\n", "\nanalyzer_revision=1\n", GPUIR_E_UNSUPPORTED,
      "revision 1 of analyzer \"ascii\"; this build has 2");
  meta_refused("\nanalyzer_revision=2\n", "\nanalyzer_Revision=2\n", GPUIR_E_UNSUPPORTED, "revision none of");
  meta_refused("\nfields=text:1\n", "\nfields=text:2\n", GPUIR_E_UNSUPPORTED,
      "fields \"text:2\"; this build has \"text:1\"");
  meta_refused("\nfields=text:1\n", "\nFields=text:1\n", GPUIR_E_UNSUPPORTED, "fields \"\"; this build");
  meta_refused("\nstore=1\n", "\nstore=0\n", GPUIR_E_FORMAT, "do not agree");
  meta_refused("\nstore=1\n", "\nstorE=1\n", GPUIR_E_FORMAT, "texts and meta section do not agree");
  meta_refused("\npositions=1\n", "\npositions=0\n", GPUIR_E_FORMAT, "positions and meta section do not agree");
}

/* A file without one of its sections, whose meta section does not ask for it, is refused. */
static void half_refused(const unsigned char *file, size_t len, uint32_t lacks, const char *why) {
  const uint32_t id = OPTIONAL_SECTION, flags = 0;
  unsigned char *bytes = (unsigned char *)oracle_grow(NULL, len, 1);
  uint32_t n, i, has;
  size_t at;
  memcpy(bytes, file, len);
  memcpy(&n, bytes + 12, 4);
  for (i = 0; i < n; i++) {
    memcpy(&has, bytes + HEADER + i * ENTRY, 4);
    if (has != lacks) continue;
    memcpy(bytes + HEADER + i * ENTRY, &id, 4);
    memcpy(bytes + HEADER + i * ENTRY + 4, &flags, 4);
  }
  for (at = 0; at + 13 <= len; at++) {
    if (!memcmp(bytes + at, "\nstore=1\n", 9)) bytes[at + 7] = '0';
    if (!memcmp(bytes + at, "\npositions=1\n", 13)) bytes[at + 11] = '0';
  }
  mend(bytes);
  put_file(bytes, len);
  refused(GPUIR_E_FORMAT, why);
  free(bytes);
}

/* Texts without their starts are refused, also where the meta section says that there are no texts. */
static void test_half_of_a_pair(void **state) {
  (void)state;
  half_refused(valid, valid_len, GPUIR__S_PACKED, "does not fit the counts");
  half_refused(valid, valid_len, GPUIR__S_PACKED_START, "do not fit their places");
  half_refused(valid, valid_len, GPUIR__S_TEXT_AT, "do not fit their places");
  half_refused(valid, valid_len, GPUIR__S_POSITIONS, "without");
  half_refused(valid, valid_len, GPUIR__S_POS_OFF, "without");
}

/* The texts of a file that an earlier version wrote (tests/data/make-old.sh) are where they were, and not packed. */
static void test_texts_of_earlier_versions(void **state) {
  static const char *const paths[] = {"tests/data/old/file.gpuir", "../tests/data/old/file.gpuir",
      "../../tests/data/old/file.gpuir"};
  static unsigned char bytes[8192];
  gpuir_index *ix;
  gpuir_doc got;
  FILE *in = NULL;
  char text[4];
  size_t i, len;
  (void)state;
  for (i = 0; i < 3 && !in; i++) in = fopen(paths[i], "rb");
  assert_non_null(in);
  len = fread(bytes, 1, sizeof bytes, in);
  assert_int_equal(fclose(in), 0);
  half_refused(bytes, len, GPUIR__S_TEXT, "does not fit the counts");
  half_refused(bytes, len, GPUIR__S_TEXT_START, "without");
  put_file(bytes, len);
  assert_int_equal(gpuir_open(broken, NULL, &ix, NULL), GPUIR_OK);
  assert_int_equal(gpuir_doc_get(ix, 0, &got), GPUIR_OK);
  assert_true(got.stored && got.stored_bytes == got.text_len && got.text_len == 10);
  assert_memory_equal(got.text, "green tea\n", 10);
  assert_int_equal(gpuir_doc_text(ix, 0, 6, text, 4), GPUIR_OK);
  assert_memory_equal(text, "tea\n", 4);
  assert_int_equal(gpuir_doc_text(ix, 0, 7, text, 4), GPUIR_E_ARGUMENT);
  gpuir_close(ix);
}

/* Parts of texts are read, also over the ends of blocks: of each text, from eight places in it to its end. */
static void test_packed_texts(void **state) {
  static char whole[40000], part[40000];
  gpuir_builder_desc desc;
  gpuir_builder *b;
  gpuir_index *ix;
  gpuir_doc got;
  rng r = {1}, again = {1};
  size_t n, at, i;
  uint32_t d;
  (void)state;
  memset(&desc, 0, sizeof desc);
  desc.path = broken;
  desc.store_text = 1;
  assert_int_equal(gpuir_builder_create(&desc, &b, NULL), GPUIR_OK);
  for (d = 0; d < 60; d++) {
    n = d % 20 ? rng_below(&r, 3000) : sizeof whole;
    for (i = 0; i < n; i++) whole[i] = "etaoin shr\n"[rng_below(&r, 11)];
    assert_int_equal(gpuir_builder_add_text(b, NULL, whole, n, NULL), GPUIR_OK);
  }
  assert_int_equal(gpuir_builder_write(b, NULL, NULL), GPUIR_OK);
  gpuir_builder_destroy(b);
  assert_int_equal(gpuir_open(broken, NULL, &ix, NULL), GPUIR_OK);
  assert_int_equal(gpuir_verify(ix, NULL), GPUIR_OK);
  for (d = 0; d < 60; d++) {
    n = d % 20 ? rng_below(&again, 3000) : sizeof whole;
    for (i = 0; i < n; i++) whole[i] = "etaoin shr\n"[rng_below(&again, 11)];
    assert_int_equal(gpuir_doc_get(ix, d, &got), GPUIR_OK);
    assert_true(got.stored && got.stored_bytes == n && !got.text && !got.text_len);
    for (at = 0; at < n; at += 1 + n / 8) {
      assert_int_equal(gpuir_doc_text(ix, d, at, part, n - at), GPUIR_OK);
      assert_memory_equal(part, whole + at, n - at);
    }
    assert_int_equal(gpuir_doc_text(ix, d, n, NULL, 0), GPUIR_OK);
    assert_int_equal(gpuir_doc_text(ix, d, n, part, 1), GPUIR_E_ARGUMENT);
    assert_int_equal(gpuir_doc_text(ix, d, n + 1, part, 0), GPUIR_E_ARGUMENT);
  }
  assert_int_equal(gpuir_doc_text(ix, d, 0, NULL, 0), GPUIR_E_NOT_FOUND);
  assert_int_equal(gpuir_doc_text(NULL, 0, 0, NULL, 0), GPUIR_E_ARGUMENT);
  gpuir_close(ix);
}

/* A block that cannot be unpacked is said, by those who read it and by gpuir_verify. */
static void test_damaged_block(void **state) {
  unsigned char *bytes = copy_valid();
  gpuir_index *ix;
  gpuir_error err;
  char text[1];
  uint64_t at = 0;
  uint32_t i;
  (void)state;
  for (i = 0; i < get32(12); i++)
    if (get32(HEADER + i * ENTRY) == GPUIR__S_PACKED) at = get64(HEADER + i * ENTRY + 8);
  assert_true(at > 0);
  memset(bytes + at, 0, 16); /* no bytes, and a match that is nowhere */
  mend_sections(bytes);
  put_file(bytes, valid_len);
  assert_int_equal(gpuir_open(broken, NULL, &ix, NULL), GPUIR_OK);
  assert_int_equal(gpuir_doc_text(ix, 0, 0, text, 1), GPUIR_E_FORMAT);
  assert_int_equal(gpuir_verify(ix, &err), GPUIR_E_FORMAT);
  assert_non_null(strstr(err.msg, "cannot be unpacked"));
  gpuir_close(ix);
  free(bytes);
}

/* Texts have their sections if and only if they are to be stored, whatever documents there are. */
static void test_stored(void **state) {
  static const gpuir_term_freq terms[] = {{"a", 1, 2}};
  unsigned how, documents;
  (void)state;
  for (how = 0; how < 4; how++)
    for (documents = 0; documents < 3; documents++) {
      gpuir_builder_desc desc;
      gpuir_index_info info;
      gpuir_builder *b;
      gpuir_index *ix;
      gpuir_error err;
      gpuir_doc got;
      unsigned d;
      memset(&desc, 0, sizeof desc);
      desc.path = broken;
      desc.store_text = how & 1;
      if (gpuir_builder_create(&desc, &b, &err)) fail_msg("%s", err.msg);
      for (d = 0; d < documents; d++) {
        const int status = how & 2 ? gpuir_builder_add_terms(b, NULL, terms, 1, &err)
                                   : gpuir_builder_add_doc(b, NULL, 3, d ? "a b" : NULL, d ? 3 : 0, &err);
        if (status) fail_msg("%s", err.msg);
      }
      if (gpuir_builder_write(b, NULL, &err)) fail_msg("%s", err.msg);
      gpuir_builder_destroy(b);
      if (gpuir_open(broken, NULL, &ix, &err)) fail_msg("%s", err.msg);
      assert_int_equal(gpuir_index_get_info(ix, &info), GPUIR_OK);
      assert_int_equal(info.has_text, how & 1);
      for (d = 0; d < documents; d++) {
        assert_int_equal(gpuir_doc_get(ix, d, &got), GPUIR_OK);
        assert_int_equal(got.stored, how & 1);
        assert_null(got.text);
        assert_int_equal(got.stored_bytes, how == 1 && d ? 3 : 0);
      }
      gpuir_close(ix);
    }
}

static void test_section_twice(void **state) {
  unsigned char *bytes = copy_valid();
  (void)state;
  memcpy(bytes + HEADER + ENTRY, bytes + HEADER, ENTRY);
  mend(bytes);
  put_file(bytes, valid_len);
  refused(GPUIR_E_FORMAT, "twice");
  free(bytes);
}

/* A section that leaves no padding behind it, or begins unaligned, or ends beyond the file. */
static void test_section_bounds(void **state) {
  uint32_t n = get32(12), i;
  unsigned k;
  (void)state;
  for (i = 0; i < n; i++) {
    const uint64_t bad[][2] = {{get64(HEADER + i * ENTRY + 8) + 1, 1}, {valid_len, 0},
        {(valid_len - 64) & ~(uint64_t)63, 64}, {64, UINT64_MAX}, {64, UINT64_MAX - 63}, {UINT64_MAX - 63, 0},
        {UINT64_MAX - 63, 128}, {(uint64_t)1 << 63, 64}};
    for (k = 0; k < sizeof bad / sizeof *bad; k++) {
      unsigned char *bytes = copy_valid();
      memcpy(bytes + HEADER + i * ENTRY + 8, bad[k], 16);
      mend(bytes);
      put_file(bytes, valid_len);
      refused(GPUIR_E_FORMAT, "");
      free(bytes);
    }
  }
}

/* Opens, verifies, searches; returns the first error. */
static int use_with(const gpuir_allocator *a) {
  gpuir_open_desc od;
  gpuir_searcher_desc sd;
  gpuir_query_desc qd;
  gpuir_index *ix = NULL;
  gpuir_searcher *s = NULL;
  gpuir_query *q = NULL;
  gpuir_cursor *c = NULL;
  gpuir_hit hits[20];
  uint32_t counts[2];
  static gpuir_explanation x;
  size_t n;
  int status, mode;
  memset(&od, 0, sizeof od);
  memset(&sd, 0, sizeof sd);
  memset(&qd, 0, sizeof qd);
  od.allocator = a;
  sd.threads = 2;
  status = gpuir_open(valid_path, &od, &ix, NULL);
  if (!status) status = gpuir_verify(ix, NULL);
  if (!status) status = gpuir_cursor_open(ix, 3, &c, NULL);
  if (!status) status = gpuir_searcher_create(ix, &sd, &s, NULL);
  for (mode = 0; mode < 3 && !status; mode++) {
    const gpuir_query *both[2];
    uint64_t count;
    qd.mode = mode;
    status = gpuir_query_parse(ix, &qd, "w1 w2 w30 -w40", 14, &q, NULL);
    if (status) break;
    both[0] = both[1] = q;
    status = gpuir_search(s, q, hits, 10, &n);
    if (!status) status = gpuir_count(s, q, &count);
    if (!status) status = gpuir_explain(s, q, 5, &x);
    if (!status) status = gpuir_search_batch(s, both, 2, 10, hits, counts);
    gpuir_query_destroy(q);
  }
  gpuir_cursor_close(c);
  gpuir_searcher_destroy(s);
  gpuir_close(ix);
  return status;
}

static int build_with(const gpuir_allocator *a) {
  gpuir_builder_desc desc;
  gpuir_builder *b = NULL;
  gpuir_error err;
  int status, d;
  memset(&desc, 0, sizeof desc);
  memset(&err, 0, sizeof err);
  desc.path = broken;
  desc.allocator = a;
  desc.threads = 1;
  status = gpuir_builder_create(&desc, &b, &err);
  for (d = 0; d < 300 && !status; d++) {
    char text[64];
    int n = snprintf(text, sizeof text, "term%d some words word%d", d % 40, d % 7);
    status = gpuir_builder_add_text(b, NULL, text, (size_t)n, &err);
  }
  if (!status) status = gpuir_builder_write(b, NULL, &err);
  gpuir_builder_destroy(b);
  if (status) assert_true(err.code == status && err.msg[0]);
  return status;
}

static void failing_allocations(int (*use)(const gpuir_allocator *)) {
  alloc_book m;
  gpuir_allocator a = alloc_from(&m);
  long allow;
  int status = GPUIR_E_NOMEM;
  for (allow = 0; allow < 100000 && status; allow++) {
    memset(&m, 0, sizeof m);
    m.fail_at = allow + 1;
    m.forever = 1;
    status = use(&a);
    assert_true(status == GPUIR_OK || status == GPUIR_E_NOMEM);
    assert_int_equal(m.blocks, 0); /* nothing leaks, and sizes add up */
    assert_int_equal(m.bytes, 0);
    if (allow > 200) allow += allow / 16;
  }
  assert_int_equal(status, GPUIR_OK);
}

static void test_allocations_fail_reading(void **state) {
  (void)state;
  failing_allocations(use_with);
}

static void test_allocations_fail_building(void **state) {
  (void)state;
  (void)unlink(broken);
  failing_allocations(build_with);
}

/* Terms that are looked up together are found as each alone: none to 20 of them, known ones, others and none at all. */
static void assert_terms_find(const gpuir_index *ix, uint64_t terms, rng *r) {
  char text[20][GPUIR_MAX_TERM + 1];
  const char *at[20];
  size_t lens[20], n = rng_below(r, 21), i;
  uint64_t ids[21], id;
  for (i = 0; i < n; i++) {
    gpuir_term_info t;
    assert_int_equal(gpuir_term_get_info(ix, rng_below(r, (uint32_t)terms), &t), GPUIR_OK);
    memcpy(text[i], t.term, t.term_len);
    lens[i] = rng_below(r, 8) ? t.term_len : rng_below(r, 2) * (GPUIR_MAX_TERM + 1u);
    if (!rng_below(r, 3)) text[i][t.term_len - 1] = (char)rng_below(r, 256);
    at[i] = lens[i] ? text[i] : NULL;
  }
  ids[n] = 12345;
  assert_int_equal(gpuir_terms_find(ix, at, lens, n, ids), GPUIR_OK);
  for (i = 0; i < n; i++) {
    const int status = gpuir_term_find(ix, text[i], lens[i], &id);
    assert_int_equal(ids[i], status ? UINT64_MAX : id);
  }
  assert_int_equal(ids[n], 12345);
}

/* Names of terms in byte order, with bytes of all values. */
static void test_term_order(void **state) {
  const char *const nothing = NULL;
  const size_t none = 0, some = 3;
  fixture f;
  rng r;
  unsigned d, i;
  uint64_t id, terms;
  gpuir_index_info info;
  char before[GPUIR_MAX_TERM], long_term[GPUIR_MAX_TERM + 1];
  size_t before_len = 0;
  (void)state;
  r.s = 93;
  oracle_init(&f.o);
  memset(long_term, 'x', sizeof long_term);
  for (d = 0; d < 3000; d++) {
    for (i = 0; i < 3; i++) {
      char s[8];
      size_t n = 1 + rng_below(&r, 3), j;
      for (j = 0; j < n; j++) s[j] = (char)(1 + rng_below(&r, rng_below(&r, 2) ? 255 : 3));
      oracle_add(&f.o, oracle_term(&f.o, s, n), 1);
    }
    oracle_add(&f.o, oracle_term(&f.o, long_term, 1 + d % GPUIR_MAX_TERM), 1);
    oracle_doc(&f.o);
  }
  oracle_invert(&f.o);
  setup_codecs(&f, "byte terms", NULL, 1);
  assert_int_equal(gpuir_index_get_info(f.index[0], &info), GPUIR_OK);
  terms = info.terms;
  assert_int_equal(terms, f.o.nterms);
  assert_int_equal(info.postings, f.o.npost);
  assert_int_equal(info.tokens, f.o.tokens);
  for (id = 0; id < terms; id++) {
    gpuir_term_info t;
    uint64_t found;
    int c;
    assert_int_equal(gpuir_term_get_info(f.index[0], id, &t), GPUIR_OK);
    assert_int_equal(t.df, oracle_df(&f.o, oracle_find(&f.o, t.term, t.term_len)));
    assert_int_equal(gpuir_term_find(f.index[0], t.term, t.term_len, &found), GPUIR_OK);
    assert_int_equal(found, id);
    c = memcmp(before, t.term, before_len < t.term_len ? before_len : t.term_len);
    assert_true(c < 0 || (c == 0 && before_len < t.term_len));
    memcpy(before, t.term, t.term_len);
    before_len = t.term_len;
  }
  assert_int_equal(gpuir_term_lower_bound(f.index[0], "", 0), 0);
  assert_int_equal(gpuir_term_lower_bound(f.index[0], "\xff\xff\xff\xff", 4), terms);
  for (i = 0; i < 2000; i++) { /* the first term that is not less */
    char s[4];
    size_t n = 1 + rng_below(&r, 4), j;
    gpuir_term_info t;
    uint64_t at, exact;
    for (j = 0; j < n; j++) s[j] = (char)(1 + rng_below(&r, 255));
    at = gpuir_term_lower_bound(f.index[0], s, n);
    assert_true(at <= terms);
    if (at < terms) {
      assert_int_equal(gpuir_term_get_info(f.index[0], at, &t), GPUIR_OK);
      assert_true(memcmp(t.term, s, n < t.term_len ? n : t.term_len) > 0 ||
          (memcmp(t.term, s, n < t.term_len ? n : t.term_len) == 0 && t.term_len >= n));
    }
    if (at) {
      assert_int_equal(gpuir_term_get_info(f.index[0], at - 1, &t), GPUIR_OK);
      assert_true(memcmp(t.term, s, n < t.term_len ? n : t.term_len) < 0 ||
          (memcmp(t.term, s, n < t.term_len ? n : t.term_len) == 0 && t.term_len < n));
    }
    if (oracle_find(&f.o, s, n) == ORACLE_UNKNOWN)
      assert_int_equal(gpuir_term_find(f.index[0], s, n, &exact), GPUIR_E_NOT_FOUND);
  }
  for (i = 0; i < 500; i++) assert_terms_find(f.index[0], terms, &r);
  assert_int_equal(gpuir_terms_find(NULL, NULL, NULL, 0, NULL), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_terms_find(f.index[0], NULL, NULL, 0, NULL), GPUIR_OK);
  assert_int_equal(gpuir_terms_find(f.index[0], NULL, &none, 1, &id), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_terms_find(f.index[0], &nothing, NULL, 1, &id), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_terms_find(f.index[0], &nothing, &none, 1, NULL), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_terms_find(f.index[0], &nothing, &some, 1, &id), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_terms_find(f.index[0], &nothing, &none, 1, &id), GPUIR_OK);
  assert_int_equal(id, UINT64_MAX);
  assert_int_equal(gpuir_term_find(f.index[0], long_term, 0, &id), GPUIR_E_NOT_FOUND);
  assert_int_equal(gpuir_term_find(f.index[0], long_term, sizeof long_term, &id), GPUIR_E_NOT_FOUND);
  teardown(&f);
}

/* A list states more occurrences than its positions have bytes for: whoever makes room for them is told before. */
static void test_stated_occurrences(void **state) {
  unsigned char *bytes = copy_valid();
  gpuir_term_info info;
  gpuir_index *ix;
  gpuir__long *extents;
  gpuir__walk w;
  uint64_t lies[4], was;
  unsigned i;
  (void)state;
  assert_int_equal(gpuir_open(valid_path, NULL, &ix, NULL), GPUIR_OK);
  for (gpuir__walk_start(&w, gpuir__only(ix)); gpuir__walk_next(&w) && w.record.df <= GPUIR__SHORT_MAX;) {}
  assert_true(w.record.df > GPUIR__SHORT_MAX);
  extents = (gpuir__long *)(void *)(bytes + gpuir__only(ix)->section[GPUIR__S_LONGS]->offset);
  gpuir_close(ix);
  was = extents[w.record.docs].cf;
  lies[0] = w.record.positions_len * GPUIR__CHUNK;
  lies[1] = w.record.positions_len * GPUIR__CHUNK + 1;
  lies[2] = (uint64_t)1 << 62;
  lies[3] = UINT64_MAX - 60;
  for (i = 0; i < 4; i++) {
    assert_true(lies[i] != was);
    extents[w.record.docs].cf = lies[i];
    mend(bytes);
    put_file(bytes, valid_len);
    assert_int_equal(gpuir_open(broken, NULL, &ix, NULL), GPUIR_OK);
    assert_int_equal(gpuir_term_get_info(ix, w.id, &info), i ? GPUIR_E_FORMAT : GPUIR_OK);
    gpuir_close(ix);
  }
  free(bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_valid),
      cmocka_unit_test(test_missing),
      cmocka_unit_test(test_directory),
      cmocka_unit_test(test_pipe),
      cmocka_unit_test(test_empty_file),
      cmocka_unit_test(test_text_file),
      cmocka_unit_test(test_unreadable),
      cmocka_unit_test(test_arguments),
      cmocka_unit_test(test_long_path),
      cmocka_unit_test(test_truncated),
      cmocka_unit_test(test_extended),
      cmocka_unit_test(test_truncated_and_mended),
      cmocka_unit_test(test_magic_and_version),
      cmocka_unit_test(test_header_and_table_bits),
      cmocka_unit_test(test_checksums),
      cmocka_unit_test(test_unknown_sections),
      cmocka_unit_test(test_missing_sections),
      cmocka_unit_test(test_settings),
      cmocka_unit_test(test_half_of_a_pair),
      cmocka_unit_test(test_texts_of_earlier_versions),
      cmocka_unit_test(test_packed_texts),
      cmocka_unit_test(test_damaged_block),
      cmocka_unit_test(test_stored),
      cmocka_unit_test(test_section_twice),
      cmocka_unit_test(test_section_bounds),
      cmocka_unit_test(test_allocations_fail_reading),
      cmocka_unit_test(test_allocations_fail_building),
      cmocka_unit_test(test_term_order),
      cmocka_unit_test(test_stated_occurrences),
  };
  return cmocka_run_group_tests_name("41_reader", tests, setup_group, teardown_group);
}
