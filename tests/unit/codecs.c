/* Property tests of every codec in gpuir__docid_codecs and gpuir__freq_codecs: whatever is encoded
 * is decoded again, at every SIMD level, block by block and value by value; and hostile bytes do
 * no harm (build with -fsanitize=address,undefined: all buffers have their exact sizes). A codec
 * that is added to the tables is tested without a change here.
 *
 *     cc -I. -Itests/support tests/unit/codecs.c -lcmocka -lpthread -lm && ./a.out [ROUNDS]
 */
#define GPUIR_IMPLEMENTATION
#define GPUIR_STATIC
#include "gpuir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "naive.h"
#include "wordnet.h"

static int rounds = 1;    /* more of them: longer tests */
static uint64_t choice;   /* the parameter that lists are encoded with */
static uint64_t failures; /* of the test that runs */
static uint64_t told;     /* docIDs that find has not left to decoding */

/* One line a failure, but not thousands of them. */
static void failed(const char *what, const gpuir__codec *c, const char *kind, uint32_t n, int simd,
                   uint32_t i, uint64_t got, uint64_t want) {
  if (failures++ < 20)
    print_error("FAIL %s: %s %s, %s, n = %u, simd %d, at %u: got %llu, want %llu\n", what, c->name,
                c->docids ? "docids" : "freqs", kind, n, simd, i, (unsigned long long)got,
                (unsigned long long)want);
}

static uint64_t rng_state = 88172645463325252u;

static uint32_t rnd(void) {
  rng_state ^= rng_state << 13;
  rng_state ^= rng_state >> 7;
  rng_state ^= rng_state << 17;
  return (uint32_t)(rng_state >> 16);
}

static uint32_t below(uint32_t n) { return (uint32_t)((uint64_t)rnd() * n >> 32); }

/* A random number of at most w bits, the extremes often. */
static uint32_t bits(unsigned w) {
  uint32_t most = (uint32_t)(((uint64_t)1 << w) - 1), r = rnd();
  return r % 16 == 0 ? most : r % 16 == 1 ? 0 : rnd() & most;
}

/* ---- an allocator that counts, and fails on request ---- */

typedef struct counting {
  long live, calls, fail_at; /* fail_at < 0: never */
} counting;

static void *counting_resize(void *user, void *p, size_t old_size, size_t new_size) {
  counting *c = (counting *)user;
  void *q;
  if (new_size && c->calls++ == c->fail_at) return NULL;
  if (!new_size) {
    free(p);
    c->live -= p ? 1 : 0;
    return NULL;
  }
  /* moves always, and fills with rubbish, so that nothing relies on old memory */
  q = malloc(new_size);
  if (!q) return NULL;
  memset(q, (int)(rnd() & 255), new_size);
  if (p)
    memcpy(q, p, old_size < new_size ? old_size : new_size);
  else
    c->live++;
  free(p);
  return q;
}

/* ---- a list, encoded ---- */

typedef struct list {
  const gpuir__codec *codec;
  const char *kind;
  const uint32_t *values;
  uint32_t n, nblocks;
  uint8_t *bytes; /* in an allocation of its own, pad included, so that the sanitizer sees its end */
  uint8_t *allocation;
  uint64_t len;
  uint32_t *offset;
  uint8_t *width;
  uint32_t *last; /* docIDs only: of each block */
  uint64_t param;
} list;

static void list_free(list *l) {
  free(l->allocation);
  free(l->offset);
  free(l->width);
  free(l->last);
}

/* Gives the list bytes of its own: a copy at the end of an allocation. A short list may stand anywhere. */
static void list_place(list *l, const uint8_t *from, uint64_t len) {
  size_t shift = l->offset ? 0 : below(16);
  uint64_t i;
  uint8_t *allocation = (uint8_t *)malloc(shift + len + GPUIR__STREAM_PAD);
  assert_non_null(allocation);
  if (len) memcpy(allocation + shift, from, len);
  for (i = 0; i < GPUIR__STREAM_PAD; i++) allocation[shift + len + i] = (uint8_t)rnd();
  free(l->allocation);
  l->allocation = allocation;
  l->bytes = allocation + shift;
  l->len = len;
}

static void list_encode(list *l, const gpuir__codec *codec, const char *kind, const uint32_t *values,
                        uint32_t n) {
  gpuir_allocator a;
  gpuir__buf buf = {NULL, 0, 0}, again = {NULL, 0, 0};
  counting c = {0, 0, -1};
  size_t before = 32;
  uint64_t param = choice;
  int status;
  uint8_t *room;
  a.resize = counting_resize;
  a.user = &c;
  memset(l, 0, sizeof *l);
  l->codec = codec;
  l->kind = kind;
  l->values = values;
  l->n = n;
  l->param = choice;
  l->nblocks = n / 128 + (n % 128 != 0);
  if (n >= 128) {
    l->offset = (uint32_t *)malloc(l->nblocks * sizeof *l->offset);
    l->width = (uint8_t *)malloc(l->nblocks);
    assert_non_null(l->offset);
    assert_non_null(l->width);
  }
  if (n >= 128 && codec->docids) {
    uint32_t b;
    l->last = (uint32_t *)malloc(l->nblocks * sizeof *l->last);
    assert_non_null(l->last);
    for (b = 0; b < l->nblocks; b++) l->last[b] = values[b + 1 < l->nblocks ? b * 128 + 127 : n - 1];
  }
  room = gpuir__buf_room(&a, &buf, before);
  assert_non_null(room);
  memset(room, 0x77, before);
  buf.len = before;
  status = codec->encode(&a, values, n, &buf, l->offset, l->width, &l->param);
  if (status) failed("encode", codec, kind, n, 0, 0, (uint64_t)(int64_t)status, 0);
  if (buf.len < before)
    failed("encode: length", codec, kind, n, 0, 0, buf.len, before);
  else if (buf.data[0] != 0x77 || buf.data[before - 1] != 0x77)
    failed("encode: overwrote", codec, kind, n, 0, 0, 0, 0);
  list_place(l, buf.data + before, buf.len - before);
  if (n >= 128 && l->len % codec->unit)
    failed("encode: padding", codec, kind, n, 0, 0, l->len % codec->unit, 0);

  /* the same bytes the second time */
  status = codec->encode(&a, values, n, &again, l->offset, l->width, &param);
  if (status || again.len != l->len || param != l->param || (l->len && memcmp(again.data, l->bytes, l->len)))
    failed("encode: differs the second time", codec, kind, n, 0, 0, again.len, l->len);
  gpuir__buf_free(&a, &buf);
  gpuir__buf_free(&a, &again);
  if (c.live) failed("encode: leak", codec, kind, n, 0, 0, (uint64_t)c.live, 0);
}

/* Opens the list at a level; 0 if the codec refuses it. */
static int list_open(const list *l, gpuir__stream *s, uint32_t limit, int simd) {
  size_t size;
  int status;
  memset(s, 0, sizeof *s);
  s->codec = l->codec;
  s->bytes = l->bytes;
  s->len = l->len;
  s->n = l->n;
  s->limit = limit;
  s->offset = l->offset;
  s->width = l->width;
  s->last = l->last;
  s->simd = simd;
  size = l->codec->scratch_size ? l->codec->scratch_size(s) : 0;
  if (size) {
    s->scratch = malloc(size);
    assert_non_null(s->scratch);
  }
  status = l->codec->open ? l->codec->open(s) : 0;
  if (status && status != GPUIR_E_FORMAT)
    failed("open", l->codec, l->kind, l->n, simd, 0, (uint64_t)(int64_t)status, 0);
  if (!status) return 1;
  free(s->scratch);
  return 0;
}

/* Decodes a block into room of the exact size, and copies count values to out. */
static void decode(const gpuir__stream *s, uint32_t block, uint32_t prev, uint32_t count, uint32_t *out) {
  uint32_t *room = (uint32_t *)malloc(GPUIR__BLOCK_ROOM * sizeof *room);
  assert_non_null(room);
  memset(room, 0x5a, GPUIR__BLOCK_ROOM * sizeof *room);
  s->codec->decode_block(s, block, prev, room);
  memcpy(out, room, count * sizeof *out);
  free(room);
}

/* What a block of 128 has is found where it is, and what lies between is not; find may leave it to decoding. */
static void find_check(const list *l, const gpuir__stream *s, uint32_t block) {
  const uint32_t *v = l->values + (size_t)block * 128, prev = block ? v[-1] : UINT32_MAX;
  uint32_t i, got;
  for (i = 0; i < 128; i++) {
    const uint32_t between = i ? v[i - 1] + 1 : prev + 1;
    got = l->codec->find(s, block, prev, v[i]);
    if (got != i && got != GPUIR__UNTOLD)
      failed("find", l->codec, l->kind, l->n, s->simd, block * 128 + i, got, i);
    told += got == i;
    if (between == v[i]) continue;
    got = l->codec->find(s, block, prev, i % 2 ? between : v[i] - 1);
    if (got != GPUIR__ABSENT && got != GPUIR__UNTOLD)
      failed("find: between", l->codec, l->kind, l->n, s->simd, block * 128 + i, got, GPUIR__ABSENT);
  }
}

/* Everything comes back, at every level, in any order of blocks, clamped to the limit. */
static void list_check(const list *l, uint32_t limit) {
  const int best = gpuir__simd_level(GPUIR_SIMD_AUTO);
  int simd;
  for (simd = GPUIR_SIMD_SCALAR; simd <= best; simd++) {
    uint32_t k, i, out[128];
    gpuir__stream s;
    if (!list_open(l, &s, limit, simd)) {
      failed("open refuses its own", l->codec, l->kind, l->n, simd, 0, 1, 0);
      continue;
    }
    for (k = 0; k < l->nblocks; k++) {
      uint32_t block = k % 2 ? l->nblocks - 1 - k / 2 : k / 2;
      uint32_t count = l->n - block * 128 < 128 ? l->n - block * 128 : 128;
      const uint32_t *want = l->values + (size_t)block * 128;
      decode(&s, block, block ? want[-1] : UINT32_MAX, count, out);
      for (i = 0; i < count; i++) {
        uint32_t w = l->codec->docids && want[i] > limit ? limit : want[i];
        if (out[i] != w) {
          failed("decode", l->codec, l->kind, l->n, simd, block * 128 + i, out[i], w);
          break;
        }
      }
      if (l->codec->find && s.last && count == 128) find_check(l, &s, block);
    }
    if (l->codec->get)
      for (k = 0; k < l->n; k += l->n < 2000 ? 1 : 1 + below(97)) {
        uint32_t got = l->codec->get(&s, k);
        if (got != (l->codec->docids && l->values[k] > limit ? limit : l->values[k])) {
          failed("get", l->codec, l->kind, l->n, simd, k, got, l->values[k]);
          break;
        }
      }
    free(s.scratch);
  }
}

/* ---- what is encoded ---- */

/* Increasing values below 2^32 - 1 whose gaps are given as far as there is room. */
static void from_gaps(uint32_t *v, uint32_t n, uint32_t first) {
  uint64_t next = first, room = UINT32_MAX; /* the next docID at least; behind the last */
  uint32_t i;
  for (i = 0; i < n; i++) {
    uint64_t d = next + v[i];
    if (d > room - (n - i)) d = next > room - (n - i) ? next : room - (n - i);
    v[i] = (uint32_t)d;
    next = d + 1;
  }
}

#define KINDS 16u

/* Values of kind k: docIDs, or frequencies if not. */
static const char *fill(uint32_t *v, uint32_t n, int docids, unsigned k, unsigned w) {
  uint32_t i, first = 0;
  const char *name = "";
  for (i = 0; i < n; i++) v[i] = 0;
  switch (k) {
    case 0: name = "zeros"; break;
    case 1:
      name = "last docIDs";
      first = UINT32_MAX - n;
      break;
    case 2:
      name = "one width";
      for (i = 0; i < n; i++) v[i] = bits(w);
      break;
    case 3:
      name = "a width a block";
      for (i = 0; i < n; i++) {
        if (i % 128 == 0) w = below(33);
        v[i] = bits(w);
      }
      break;
    case 4:
      name = "any widths";
      for (i = 0; i < n; i++) v[i] = bits(below(33));
      break;
    case 5:
      name = "mostly small";
      for (i = 0; i < n; i++) v[i] = bits(below(20) ? 3 : 16);
      break;
    case 6:
      name = "one huge";
      if (n) v[below(n)] = docids ? UINT32_MAX - n : UINT32_MAX;
      break;
    case 7:
      name = "huge at the end";
      if (n) v[n - 1] = docids ? UINT32_MAX - n : UINT32_MAX;
      break;
    case 8:
      name = "regular";
      for (i = 0; i < n; i++) v[i] = n ? UINT32_MAX / n / 2 : 0;
      break;
    case 9:
      name = "powers of two";
      for (i = 0; i < n; i++) v[i] = (uint32_t)1 << (i % 32);
      break;
    case 10:
      name = "around bytes";
      for (i = 0; i < n; i++) v[i] = ((uint32_t)1 << (7 * below(5))) - below(2);
      break;
    case 11:
      name = "bursts";
      for (i = 0; i < n; i++) v[i] = bits(below(12) ? 1 + w % 4 : 17);
      break;
    case 12:
      name = "a quarter large";
      for (i = 0; i < n; i++) v[i] = bits(below(4) ? w / 2 : w);
      break;
    case 13:
      name = "zeros and jumps";
      for (i = 0; i < n; i++) v[i] = below(30) ? 0 : bits(w);
      break;
    case 14: { /* one word of marks is full, or empty */
      uint32_t from = below(3) * 64, to = from + 64 + below(2) * 32;
      name = "jumps together";
      for (i = 0; i < n; i++) v[i] = bits(i % 128 >= from && i % 128 < to ? 14 : 2);
      break;
    }
    default:
      name = "runs";
      for (i = 0; i < n; i++) v[i] = below(40) ? 0 : bits(w);
      break;
  }
  if (docids) from_gaps(v, n, first);
  return name;
}

static size_t ncodecs(void) { return GPUIR__DOCID_CODECS + GPUIR__FREQ_CODECS; }

static const gpuir__codec *codec_at(size_t i) {
  return i < GPUIR__DOCID_CODECS ? gpuir__docid_codecs + i : gpuir__freq_codecs + (i - GPUIR__DOCID_CODECS);
}

/* ---- the tests ---- */

static void test_tables(void **state) {
  size_t i, j;
  (void)state;
  for (i = 0; i < ncodecs(); i++) {
    const gpuir__codec *c = codec_at(i);
    assert_ptr_equal(gpuir__codec_by_name(c->name, c->docids), c);
    assert_ptr_equal(gpuir__codec_by_id(c->id, c->docids), c);
    assert_true(c->unit >= 1 && c->unit <= 16 && !(c->unit & (c->unit - 1)));
    assert_true(c->docids == (i < GPUIR__DOCID_CODECS));
    assert_true(c->encode && c->decode_block && (c->docids || c->get));
    for (j = 0; j < ncodecs(); j++) /* a name and an id belong together, in both tables */
      assert_true(!strcmp(c->name, codec_at(j)->name) == (c->id == codec_at(j)->id));
  }
  for (i = 0; i < 2; i++) {
    assert_string_equal(gpuir__codec_by_name(NULL, (int)i)->name, "bp128");
    assert_null(gpuir__codec_by_name("no such codec", (int)i));
    assert_null(gpuir__codec_by_name("", (int)i));
    assert_null(gpuir__codec_by_id(0, (int)i));
    assert_null(gpuir__codec_by_id(255, (int)i));
  }
}

static void check(const gpuir__codec *c, uint32_t *v, uint32_t n, unsigned k, unsigned w) {
  list l;
  const char *kind = fill(v, n, c->docids, k, w);
  list_encode(&l, c, kind, v, n);
  list_check(&l, UINT32_MAX - 1);
  if (c->docids && n) {
    list_check(&l, v[n - 1]);    /* tight */
    list_check(&l, v[below(n)]); /* too low: clamps */
    list_check(&l, 0);
  }
  list_free(&l);
}

/* Every length to 400, every kind, every width. */
static void test_round_trip(void **state) {
  uint32_t *v = (uint32_t *)malloc(400 * sizeof *v), n;
  unsigned k;
  size_t i;
  int r;
  (void)state;
  assert_non_null(v);
  failures = 0;
  for (r = 0; r < rounds; r++)
    for (i = 0; i < ncodecs(); i++)
      for (n = 0; n <= 400; n++)
        for (k = 0; k < KINDS; k++) check(codec_at(i), v, n, k, (n + k + (unsigned)r) % 33);
  for (i = 0; i < ncodecs(); i++)
    for (k = 0; k <= 32; k++)
      for (n = 126; n <= 130; n++) check(codec_at(i), v, n, 2, k);
  free(v);
  assert_int_equal(failures, 0);
  if (gpuir__simd_level(GPUIR_SIMD_AUTO) >= GPUIR_SIMD_AVX2) assert_true(told > 0);
}

static void test_long_lists(void **state) {
  static const uint32_t sizes[] = {511, 512, 513, 1000, 1024, 4096, 10007, 65536 + 77, 300000};
  uint32_t *v = (uint32_t *)malloc(300000 * sizeof *v);
  unsigned k, j;
  size_t i;
  (void)state;
  assert_non_null(v);
  failures = 0;
  for (i = 0; i < ncodecs(); i++)
    for (j = 0; j < sizeof sizes / sizeof *sizes; j++)
      for (k = 0; k < KINDS; k++) check(codec_at(i), v, sizes[j], k, below(33));
  free(v);
  assert_int_equal(failures, 0);
}

/* ---- parameters ---- */

typedef struct spelling {
  const char *spec, *name; /* name: of the codec, NULL for auto */
  uint64_t param;
} spelling;

static const spelling good[] = {
    {"bp128", "bp128", 0},
    {"qs", "qs", 0},
    {"qs:1", "qs", 1000},
    {"qs:0.25", "qs", 250},
    {"qs:.5", "qs", 500},
    {"qs:1.5", "qs", 1500},
    {"qs:2.125", "qs", 2125},
    {"qs:4", "qs", 4000},
    {"qs:4.000", "qs", 4000},
    {"pfd-list:0", "pfd-list", 1},
    {"pfd-list:4", "pfd-list", 5},
    {"parapfor:64", "parapfor", 64},
    {"parapfor:256,0", "parapfor", 256 + 1024},
    {"parapfor:128,0.1", "parapfor", 128 + 1024 * 101},
    {"parapfor:,min", "parapfor", 1024 * 1002},
    {"lrc:256,1", "lrc", 256 + 1024 * 1001},
    {"lrc:,0.25", "lrc", 1024 * 251},
    {"lrcseg:128,min", "lrcseg", 128 + 1024 * 1002},
    {"seglrc:64", "seglrc", 64},
    {"hslrc:32", "hslrc", 32},
    {"hslrc:256,.005", "hslrc", 256 + 1024 * 6},
    {"auto", NULL, 0},
    {"auto:0", NULL, 0},
    {"auto:0.125", NULL, 125},
    {"auto:1", NULL, 1000},
};

static void test_spellings(void **state) {
  static const char *const bad[] = {"bp128:1",
                                    "bp128:",
                                    "vbyte:0",
                                    "pfd:1",
                                    "newpfd:3",
                                    "optpfd:min",
                                    "ef:128",
                                    "rice:4",
                                    "qs:",
                                    "qs:0.2",
                                    "qs:4.001",
                                    "qs:1,5",
                                    "qs:x",
                                    "qs:-1",
                                    "qs:1.",
                                    "qs:1.0001",
                                    "qs:.",
                                    "qs: 1",
                                    "qs:1 ",
                                    "qs:1e0",
                                    "qs:inf",
                                    "qs:99999999999",
                                    "qs:1:1",
                                    "pfd-list:5",
                                    "pfd-list:",
                                    "pfd-list:1.5",
                                    "pfd-list:-1",
                                    "pfd-list:1.0",
                                    "parapfor:",
                                    "parapfor:32",
                                    "parapfor:512",
                                    "parapfor:100",
                                    "parapfor:64,",
                                    "parapfor:64,2",
                                    "parapfor:64,min2",
                                    "parapfor:64,1.001",
                                    "parapfor:,",
                                    "parapfor:64,.1,",
                                    "lrc:16",
                                    "lrc:0",
                                    "lrcseg:1024",
                                    "seglrc:64,max",
                                    "hslrc:16",
                                    "hslrc:512",
                                    "hslrc:48",
                                    "auto:",
                                    "auto:1.001",
                                    "auto:2",
                                    "auto:-0",
                                    "auto:fast",
                                    "auto:0.1,min"};
  static const char *const unknown[] = {"",       ":",     "b",     "bp12", "bp1288", "BP128",
                                        " bp128", "autos", "zip:9", "aut",  "q:1"};
  gpuir__coding coding;
  gpuir_error err;
  size_t i;
  (void)state;
  for (i = 0; i < sizeof good / sizeof *good; i++) {
    assert_int_equal(gpuir__coding_parse(good[i].spec, 1, &coding, &err), 0);
    assert_ptr_equal(coding.codec, good[i].name ? gpuir__codec_by_name(good[i].name, 1) : NULL);
    if (coding.param != good[i].param)
      fail_msg("%s is read as %llu", good[i].spec, (unsigned long long)coding.param);
  }
  for (i = 0; i < sizeof bad / sizeof *bad; i++) {
    if (gpuir__coding_parse(bad[i], 1, &coding, &err) != GPUIR_E_ARGUMENT) fail_msg("'%s' is taken", bad[i]);
    assert_int_equal(err.code, GPUIR_E_ARGUMENT);
    assert_non_null(strstr(err.msg, bad[i]));
  }
  for (i = 0; i < 2 * sizeof unknown / sizeof *unknown; i++) {
    const char *spec = unknown[i / 2];
    if (gpuir__coding_parse(spec, i % 2, &coding, &err) != GPUIR_E_UNSUPPORTED)
      fail_msg("'%s' is taken", spec);
    assert_non_null(strstr(err.msg, spec));
  }
  assert_int_equal(gpuir__coding_parse("qs:1", 0, &coding, &err), GPUIR_E_UNSUPPORTED);
  assert_int_equal(gpuir__coding_parse("newpfd:1", 0, &coding, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir__coding_parse("auto:.5", 0, &coding, &err), 0);
  assert_true(!coding.codec && coding.param == 500);
  for (i = 0; i < 2; i++) {
    assert_int_equal(gpuir__coding_parse(NULL, (int)i, &coding, &err), 0);
    assert_true(coding.codec == gpuir__codec_by_name("bp128", (int)i) && coding.param == 0);
  }
}

/* Another parameter of the same kind. */
static uint64_t other_choice(unsigned kind, uint64_t param) {
  if (kind == GPUIR__P_RATIO) return param < 2000 ? 4000 : 500;
  if (kind == GPUIR__P_LEVELS) return 6 - param;
  return (param % 1024 == 64 ? 256u : 64u) + (param / 1024 == 1 ? 701u : 1u) * 1024;
}

/* Everything comes back with each parameter, and a parameter is heeded: its codec writes other bytes for another
 * one on some list. */
static void test_parameters(void **state) {
  static const uint32_t sizes[] = {1, 2, 127, 128, 129, 255, 256, 257, 600, 4000};
  uint32_t v[4000];
  size_t i, j;
  unsigned k;
  (void)state;
  failures = 0;
  for (i = 0; i < sizeof good / sizeof *good; i++) {
    const gpuir__codec *c = good[i].name ? gpuir__codec_by_name(good[i].name, 1) : NULL;
    unsigned differ = 0;
    if (!good[i].param || !c) continue;
    for (j = 0; j < sizeof sizes / sizeof *sizes; j++)
      for (k = 0; k < KINDS; k++) {
        list chosen, other;
        choice = good[i].param;
        check(c, v, sizes[j], k, below(33));
        list_encode(&chosen, c, "", v, sizes[j]);
        choice = other_choice(c->param, choice);
        list_encode(&other, c, "", v, sizes[j]);
        differ += chosen.len != other.len || memcmp(chosen.bytes, other.bytes, chosen.len) != 0;
        list_free(&chosen);
        list_free(&other);
      }
    choice = 0;
    if (differ < 10) fail_msg("%s has hardly an effect", good[i].spec);
  }
  assert_int_equal(failures, 0);
}

/* ---- the arithmetic of lanes: functions that kernels share, each value by itself ---- */

/* The parts of exceptions that a lane patches, as the warp that decodes the block of value i does. */
static uint32_t lane_pfd(const gpuir__stream *s, uint32_t i) {
  const uint32_t block = i / 128, count = gpuir__block_count(s->n, block);
  gpuir__pfd_block v;
  uint32_t k, at, value;
  memset(&v, 0, sizeof v);
  gpuir__pfd_find(s, block, count, &v);
  value = gpuir__packed_value(v.slots, v.b, i % 128);
  if (v.form >= GPUIR__PFD_APART)
    for (k = 0; k < v.number; k++) {
      uint32_t high = gpuir__pfd_apart(&v, k, &at);
      if (at == i % 128) value |= high;
    }
  if (v.form == GPUIR__PFD_LINKED)
    for (k = 0, at = v.first; k < v.number; k++) {
      if (at == i % 128) value = gpuir__pfd_linked(&v, k);
      at += gpuir__packed_value(v.slots, v.b, at) + 1;
    }
  if (value != gpuir__pfd_value(&v, i % 128)) return ~gpuir__pfd_value(&v, i % 128);
  return value;
}

/* Value i of a partition or of a list in Elias-Fano or Rice code: each word counts its marks, a scan tells
 * whose word the lane's mark stands in. */
static uint64_t lane_mark(const gpuir__unary *u, uint64_t start, uint32_t i) {
  uint64_t byte = start / 8, keep = UINT64_MAX << start % 8;
  for (;; byte += 8, keep = UINT64_MAX) {
    uint64_t x = byte < u->bytes ? gpuir__unary_word(u->bits + byte, u->bytes - byte, u->flip) & keep : 1;
    if (i < gpuir__ones64(x)) return byte * 8 + gpuir__select64(x, i);
    i -= gpuir__ones64(x);
  }
}

static uint32_t lane_halves(const gpuir__stream *s, int rice, uint32_t i) {
  const uint32_t block = i / 128;
  gpuir__halves v;
  uint32_t low, k;
  uint64_t at;
  (void)gpuir__halves_find(s, rice ? GPUIR__RICE_LOG : GPUIR__QS_LOG, rice, &v);
  at = lane_mark(&v.unary, gpuir__halves_start(s, block), i % 128);
  low = gpuir__packed_value(v.low, v.b, i);
  if (rice) {
    low += gpuir__rice_base(&v, block) + i;
    for (k = block * 128; k < i; k++) low += gpuir__packed_value(v.low, v.b, k);
  }
  return gpuir__joined((uint32_t)at, i, v.b, rice ? 0 : low, rice ? low : 0);
}

static uint32_t lane_ef(const gpuir__stream *s, uint32_t i) {
  const uint32_t block = i / 128, base = block ? s->last[block - 1] + 1 : 0;
  gpuir__unary u;
  unsigned b;
  const uint8_t *low = gpuir__ef_find(s, block, gpuir__block_count(s->n, block), &b, &u);
  return gpuir__joined((uint32_t)lane_mark(&u, 0, i % 128), i % 128, b, gpuir__packed_value(low, b, i % 128),
                       base);
}

static uint32_t lane_bp128(const gpuir__stream *s, uint32_t i) {
  const uint32_t block = i / 128, count = gpuir__block_count(s->n, block);
  unsigned b;
  uint64_t left;
  const uint8_t *low = gpuir__bp128_block(s, block, count, &b, &left);
  return gpuir__bp128_get(low, b, left, count, i % 128);
}

/* Value i by itself; *gap: it is one. */
static uint32_t lane_value(const gpuir__stream *s, uint32_t i, int *gap) {
  const char *name = s->codec->name;
  *gap = s->codec->docids;
  if (!strcmp(name, "vbyte")) return gpuir__vbyte_freqs_get(s, i);
  if (!strcmp(name, "bp128")) return lane_bp128(s, i);
  if (!strcmp(name, "pfd") || !strcmp(name, "newpfd") || !strcmp(name, "optpfd")) return lane_pfd(s, i);
  if (!strcmp(name, "pfd-list")) return gpuir__pfl_value((const gpuir__pfl_state *)s->scratch, i);
  if (!strcmp(name, "parapfor")) return gpuir__para_gap(s, i);
  *gap = 0;
  if (!strcmp(name, "ef")) return lane_ef(s, i);
  if (!strcmp(name, "qs")) return lane_halves(s, 0, i);
  if (!strcmp(name, "rice")) return lane_halves(s, 1, i);
  return s->codec->get(s, i); /* the regressions: element access is what a lane does */
}

static void test_lanes(void **state) {
  static const uint32_t sizes[] = {1, 2, 3, 64, 100, 127, 128, 129, 200, 256, 257, 384, 511, 640, 1300};
  uint32_t v[1300], i, j;
  unsigned k;
  size_t c;
  (void)state;
  failures = 0;
  for (c = 0; c < ncodecs(); c++)
    for (j = 0; j < sizeof sizes / sizeof *sizes; j++)
      for (k = 0; k < KINDS; k++) {
        const gpuir__codec *codec = codec_at(c);
        const uint32_t n = sizes[j];
        const char *kind = fill(v, n, codec->docids, k, below(33));
        gpuir__stream s;
        list l;
        list_encode(&l, codec, kind, v, n);
        assert_true(list_open(&l, &s, UINT32_MAX - 1, GPUIR_SIMD_SCALAR));
        for (i = 0; i < n; i++) {
          int gap;
          uint32_t got = lane_value(&s, i, &gap), want = gap ? v[i] - (i ? v[i - 1] : UINT32_MAX) - 1 : v[i];
          if (got != want) failed("lane", codec, kind, n, GPUIR_SIMD_SCALAR, i, got, want);
        }
        free(s.scratch);
        list_free(&l);
      }
  assert_int_equal(failures, 0);
}

/* ---- the bytes themselves, by the naive reader of the formats as they are documented ---- */

static naive_list naive_of(const list *l) {
  naive_list n;
  n.codec = l->codec->name;
  n.docids = l->codec->docids;
  n.n = l->n;
  n.bytes = l->bytes;
  n.len = l->len;
  n.offset = l->offset;
  n.width = l->width;
  return n;
}

/* The naive reader finds the values in the bytes, and nothing else. */
static void naive_check(const list *l) {
  uint32_t *out = (uint32_t *)malloc(((size_t)l->n + 1) * sizeof *out), i;
  naive_list n = naive_of(l);
  const char *wrong = naive_decode(&n, out);
  if (wrong) {
    if (failures < 20) print_error("%s: ", wrong);
    failed("naive reader", l->codec, l->kind, l->n, 0, 0, 0, 0);
  }
  for (i = 0; i < l->n && !wrong; i++)
    if (out[i] != l->values[i]) {
      failed("naive reader", l->codec, l->kind, l->n, 0, i, out[i], l->values[i]);
      break;
    }
  free(out);
}

/* The fewest bytes that count values can take, over all b and both forms, and the width byte: of equals no exceptions,
 * then the larger b. */
static uint64_t least_bp128(const uint32_t *v, uint32_t count, uint64_t unit, unsigned *width) {
  uint64_t least = UINT64_MAX;
  uint32_t i, all = 0;
  unsigned w = 0, b;
  for (i = 0; i < count; i++) all |= v[i];
  while (w < 32 && all >> w) w++;
  for (b = w + 1; b-- > 0;) {
    uint64_t size = ((uint64_t)count * b + 7) / 8, high = 0;
    if (b < w) {
      for (i = 0; i < count; i++) high += v[i] >> b != 0;
      size += (count + 7) / 8 + 1 + (high * (w - b) + 7) / 8;
    }
    size = (size + unit - 1) / unit * unit;
    if (size < least) {
      least = size;
      *width = b | (b < w ? 128u : 0);
    }
  }
  return least;
}

/* vbyte and bp128 take the fewest bytes that their formats allow. */
static void test_formats(void **state) {
  static const char *const names[] = {"vbyte", "bp128"};
  uint32_t v[400], gaps[400], i, n, c;
  unsigned k, exceptional = 0, plain = 0;
  (void)state;
  failures = 0;
  for (c = 0; c < 4; c++)
    for (n = 1; n <= 400; n += n < 8 || n % 128 > 124 || n % 128 < 3 ? 1 : 7)
      for (k = 0; k < KINDS; k++) {
        const gpuir__codec *codec = gpuir__codec_by_name(names[c / 2], (int)(c % 2));
        const char *kind = fill(v, n, codec->docids, k, n % 33);
        uint64_t size = 0;
        list l;
        list_encode(&l, codec, kind, v, n);
        naive_check(&l);
        for (i = 0; i < n; i++) {
          uint32_t x = gaps[i] = codec->docids ? v[i] - (i ? v[i - 1] : UINT32_MAX) - 1 : v[i];
          if (c / 2 == 0) {
            for (size++; x >= 128; x >>= 7) size++;
          } else if (i % 128 == 127 || i == n - 1) {
            unsigned width = 0, is = n < 128 ? l.bytes[0] : l.width[i / 128];
            if (n >= 128 && l.offset[i / 128] * 4 != size)
              failed("start of block", codec, kind, n, 0, i, l.offset[i / 128] * 4, size);
            if (n < 128) size++;
            size += least_bp128(gaps + i / 128 * 128, i % 128 + 1, n < 128 ? 1 : 4, &width);
            if (width != is) failed("width", codec, kind, n, 0, i, is, width);
            exceptional += is >= 128;
            plain += is < 128;
          }
        }
        if (l.len != size) failed("size", codec, kind, n, 0, 0, l.len, size);
        list_free(&l);
      }
  assert_int_equal(failures, 0);
  assert_true(exceptional > 500 && plain > 500);
}

/* Puts a number of w bits at bit `at`. */
static void put_bits(uint8_t *bytes, size_t at, unsigned w, uint32_t v) {
  unsigned i;
  for (i = 0; i < w; i++) bytes[(at + i) / 8] |= (uint8_t)((v >> i & 1) << ((at + i) % 8));
}

/* One block of count values of b low bits, x of them with h more, in the form of bp128 or in the marked one of optpfd
 * (plain for h = 0), is decoded to those values. All are as large as can be, if `most`. The limit is often among
 * them. */
static void made_block(const gpuir__codec *c, uint32_t count, unsigned b, unsigned h, uint32_t x, int most) {
  const int vertical = count == 128 && !strcmp(c->name, "bp128"), best = gpuir__simd_level(GPUIR_SIMD_AUTO);
  const size_t low = (count * b + 7) / 8, marks = h ? (count + 7) / 8 + 1 : 0, start = count < 128;
  const size_t size = start + low + marks + (x * h + 7) / 8;
  const uint32_t prev = below(2) ? UINT32_MAX : bits(32);
  const uint32_t limit = below(2)   ? UINT32_MAX - 1
                         : below(2) ? bits(32)
                                    : prev + bits(b + h < 25 ? b + h + 7 : 32);
  uint8_t *bytes = (uint8_t *)calloc(size + GPUIR__STREAM_PAD, 1);
  uint8_t width = (uint8_t)(h == 0 ? b : !strcmp(c->name, "bp128") ? b | 128 : b | 192);
  uint32_t v[128], out[GPUIR__BLOCK_ROOM], offset = 0, i, rank = 0, sum = prev;
  int simd;
  assert_non_null(bytes);
  for (i = 0; i < GPUIR__STREAM_PAD; i++) bytes[size + i] = (uint8_t)rnd();
  if (start) bytes[0] = width;
  if (h) bytes[start + low + marks - 1] = (uint8_t)h;
  for (i = 0; i < count; i++) {
    const uint32_t part = most ? gpuir__low_bits(b) : bits(b);
    unsigned k;
    v[i] = part;
    if (vertical) /* bit k of a value is bit i / 4 * b + k of its lane */
      for (k = 0; k < b; k++) {
        const size_t bit = i / 4 * b + k;
        put_bits(bytes, bit / 32 * 128 + i % 4 * 32 + bit % 32, 1, part >> k & 1);
      }
    else
      put_bits(bytes + start, i * b, b, part);
    if (below(count - i) < x - rank) { /* x of the count values, any of them */
      const uint32_t high = most ? gpuir__low_bits(h) : bits(h);
      put_bits(bytes + start + low, i, 1, 1);
      put_bits(bytes + start + low + marks, rank++ * h, h, high);
      v[i] |= high << b;
    }
  }
  assert_int_equal(rank, x);
  for (i = 0; c->docids && i < count; i++) {
    sum += v[i] + 1;
    v[i] = sum < limit ? sum : limit;
  }
  for (simd = GPUIR_SIMD_SCALAR; simd <= best; simd++) {
    gpuir__stream s;
    memset(&s, 0, sizeof s);
    s.codec = c;
    s.bytes = bytes;
    s.len = size;
    s.n = count;
    s.limit = limit;
    s.offset = start ? NULL : &offset;
    s.width = start ? NULL : &width;
    s.simd = simd;
    memset(out, 0x55, sizeof out);
    c->decode_block(&s, 0, prev, out);
    for (i = 0; i < count && out[i] == v[i]; i++) continue;
    if (i < count) failed("made block", c, most ? "largest" : "random", count, simd, i, out[i], v[i]);
    for (i = 0; c->get && i < count; i++)
      if (c->get(&s, i) != v[i]) failed("made block: get", c, "", count, simd, i, c->get(&s, i), v[i]);
  }
  free(bytes);
}

/* Blocks of all widths of both parts, whether an encoder would choose them or not: of few bits with each number of
 * exceptions, of more with some. */
static void test_made_blocks(void **state) {
  static const char *const names[] = {"bp128", "optpfd"};
  unsigned k, b, h;
  uint32_t x, count;
  (void)state;
  failures = 0;
  for (k = 0; k < 4; k++)
    for (b = 0; b <= 32; b++)
      for (h = 0; h <= 32 - b; h++) {
        const gpuir__codec *c = gpuir__codec_by_name(names[k / 2], (int)(k % 2));
        const int few = b <= 9 && b + h <= 17;
        for (x = 0; x <= (h ? 128u : 0u); x += few ? 1 : 1 + below(32)) {
          made_block(c, 128, b, h, x, (int)below(2));
          if (few && x % 8 == 0) made_block(c, 128, b, h, x, 1);
          count = 1 + below(127);
          made_block(c, count, b, h, x < count ? x : count, (int)below(2));
        }
      }
  assert_int_equal(failures, 0);
}

/* Every codec, every parameter, made-up lists. */
static void test_naive(void **state) {
  static const uint32_t sizes[] = {1,   2,   3,   7,   63,  64,  65,  126, 127, 128,  129,  191, 192,
                                   193, 255, 256, 257, 320, 383, 511, 512, 513, 1024, 1300, 3000};
  const size_t nspellings = sizeof good / sizeof *good;
  uint32_t *v = (uint32_t *)malloc(3000 * sizeof *v);
  size_t i, j;
  unsigned k;
  (void)state;
  assert_non_null(v);
  failures = 0;
  for (i = 0; i < ncodecs() + nspellings; i++) {
    const gpuir__codec *c = i < ncodecs()              ? codec_at(i)
                            : good[i - ncodecs()].name ? gpuir__codec_by_name(good[i - ncodecs()].name, 1)
                                                       : NULL;
    choice = i < ncodecs() ? 0 : good[i - ncodecs()].param;
    if (!c || (i >= ncodecs() && !choice)) continue;
    for (j = 0; j < sizeof sizes / sizeof *sizes; j++)
      for (k = 0; k < KINDS; k++) {
        const char *kind = fill(v, sizes[j], c->docids, k, below(33));
        list l;
        list_encode(&l, c, kind, v, sizes[j]);
        naive_check(&l);
        list_free(&l);
      }
  }
  choice = 0;
  free(v);
  assert_int_equal(failures, 0);
}

/* The places of a word in a real text: of each letter too, which makes long and dense lists. */
static uint32_t places(const char *text, size_t len, const char *word, uint32_t *v) {
  const size_t n = strlen(word);
  uint32_t count = 0;
  size_t i;
  for (i = 0; i + n <= len; i++)
    if (!memcmp(text + i, word, n)) v[count++] = (uint32_t)i;
  return count;
}

/* Lists of real text by every codec, through the decoders and the naive reader. */
static void test_real_lists(void **state) {
  static const char *const words[] = {"e",     "t",  "\n", "the",     " of ",  "and",
                                      "water", "zz", "q",  "[syn: {", "person"};
  static char text[1 << 19];
  uint32_t *v = (uint32_t *)malloc(sizeof text * sizeof *v),
           *gaps = (uint32_t *)malloc(sizeof text * sizeof *v);
  size_t len = 0, i, w;
  FILE *f = wordnet_open();
  (void)state;
  assert_true(v && gaps);
  if (!f) {
    print_message("tests/data/wordnet.tsv is not there\n");
    free(v);
    free(gaps);
    skip();
    return;
  }
  len = fread(text, 1, sizeof text, f);
  (void)fclose(f);
  failures = 0;
  for (w = 0; w < sizeof words / sizeof *words; w++) {
    const uint32_t n = places(text, len, words[w], v);
    uint32_t j;
    assert_true(n > 0);
    for (j = 0; j < n; j++) gaps[j] = v[j] - (j ? v[j - 1] : UINT32_MAX) - 1; /* for frequencies */
    for (i = 0; i < ncodecs(); i++) {
      const gpuir__codec *c = codec_at(i);
      list l;
      list_encode(&l, c, words[w], c->docids ? v : gaps, n);
      list_check(&l, UINT32_MAX - 1);
      naive_check(&l);
      list_free(&l);
    }
  }
  free(v);
  free(gaps);
  assert_int_equal(failures, 0);
}

/* The example in the comment, byte by byte. */
static void test_example(void **state) {
  static const uint32_t v[5] = {5, 2, 300, 1, 7};
  static const uint8_t bytes[] = {0x80 | 3, 0x15, 0x73, 4, 6, 37};
  list l;
  (void)state;
  failures = 0;
  list_encode(&l, gpuir__codec_by_name("bp128", 0), "example", v, 5);
  assert_int_equal(l.len, sizeof bytes);
  assert_memory_equal(l.bytes, bytes, sizeof bytes);
  list_check(&l, UINT32_MAX);
  list_free(&l);
  assert_int_equal(failures, 0);
}

/* Without memory, encode says so and takes back what it had appended. */
static void test_out_of_memory(void **state) {
  uint32_t v[1000], offset[8];
  uint8_t width[8];
  size_t i;
  (void)state;
  failures = 0;
  for (i = 0; i < ncodecs(); i++) {
    const gpuir__codec *c = codec_at(i);
    long at;
    int status = GPUIR_E_NOMEM;
    (void)fill(v, 1000, c->docids, 3, 20);
    for (at = 0; status && at < 1000; at++) {
      gpuir_allocator a;
      gpuir__buf buf = {NULL, 0, 0};
      counting count = {0, 0, -1};
      uint64_t param = 0;
      a.resize = counting_resize;
      a.user = &count;
      assert_non_null(gpuir__buf_room(&a, &buf, 64));
      memset(buf.data, 1, 64);
      buf.len = 64;
      count.fail_at = count.calls + at;
      status = c->encode(&a, v, 1000, &buf, offset, width, &param);
      if (status && status != GPUIR_E_NOMEM)
        failed("encode without memory", c, "", 1000, 0, (uint32_t)at, (uint64_t)(int64_t)status, 0);
      if (status && buf.len != 64)
        failed("encode without memory: length", c, "", 1000, 0, (uint32_t)at, buf.len, 64);
      gpuir__buf_free(&a, &buf);
      if (count.live)
        failed("encode without memory: leak", c, "", 1000, 0, (uint32_t)at, (uint64_t)count.live, 0);
    }
    if (status) failed("encode without memory: never succeeds", c, "", 1000, 0, 0, 1, 0);
  }
  assert_int_equal(failures, 0);
}

/* Damages one part of the list; now and then all of it. */
static void mutate(list *l) {
  uint32_t i, times = 1 + below(4);
  for (i = 0; i < times; i++) {
    uint32_t b = l->nblocks ? below(l->nblocks) : 0;
    switch (below(12)) {
      case 0:
        if (l->len) l->bytes[below((uint32_t)l->len)] = (uint8_t)rnd();
        break;
      case 1:
        if (l->len) l->bytes[below((uint32_t)(l->len < 8 ? l->len : 8))] ^= (uint8_t)(1u << below(8));
        break;
      case 2: {
        uint64_t j;
        int how = (int)below(3);
        for (j = 0; j < l->len; j++) l->bytes[j] = how == 0 ? 0xff : how == 1 ? 0x80 : (uint8_t)rnd();
        break;
      }
      case 3: list_place(l, l->bytes, below((uint32_t)l->len + 1)); break; /* cut off */
      case 4:
        if (l->offset) l->offset[b] = bits(below(33));
        break;
      case 5: /* near the end */
        if (l->offset) l->offset[b] = (uint32_t)(l->len / l->codec->unit) + 2 - below(8);
        break;
      case 6:
        if (l->width) l->width[b] = (uint8_t)rnd();
        break;
      case 7:
        if (l->width) l->width[b] = (uint8_t)(below(2) ? 32 + below(3) : below(33));
        break;
      case 8: /* bp128: with exceptions, or not */
        if (l->width)
          l->width[b] ^= (uint8_t)(128u | (below(2) ? below(64) : 0));
        else if (l->len)
          l->bytes[0] ^= (uint8_t)(128u | (below(2) ? below(64) : 0));
        break;
      case 9: { /* bp128: all marked; or an h at its bounds, if it stands where it should */
        uint32_t count = l->n - b * 128 < 128 ? l->n - b * 128 : 128, j;
        unsigned w = l->width ? l->width[b] : l->len ? l->bytes[0] : 0;
        uint64_t marks = (l->offset ? (uint64_t)l->offset[b] * 4 : 1) + (count * (w & 63) + 7) / 8;
        uint64_t h = marks + (count + 7) / 8;
        int how = (int)below(3);
        if (!l->nblocks || h >= l->len) break;
        for (j = 0; how && j < (count + 7) / 8; j++) l->bytes[marks + j] = how == 1 ? 0xff : (uint8_t)rnd();
        if (how != 1) l->bytes[h] = (uint8_t)(below(2) ? below(34) : 32 - (w & 63) + below(3) - 1);
        break;
      }
      case 10: { /* bp128: full of exceptions, cut off at about the end of the high parts */
        uint64_t at = l->offset ? (uint64_t)l->offset[b] * 4 : 1;
        uint32_t count = l->n - b * 128 < 128 ? l->n - b * 128 : 128, j;
        unsigned w = below(33), h = below(34);
        uint64_t size = (count * w + 7) / 8 + (count + 7) / 8 + 1 + (count * h + 7) / 8 + 2 - below(5);
        uint8_t *made;
        if (!l->nblocks || at > l->len) break;
        made = (uint8_t *)malloc(at + size + 4);
        assert_non_null(made);
        memcpy(made, l->bytes, at);
        for (j = 0; j < size; j++) made[at + j] = (uint8_t)rnd();
        for (j = 0; j < (count + 7) / 8; j++) made[at + (count * w + 7) / 8 + j] = below(8) ? 0xff : 0x7f;
        made[at + (count * w + 7) / 8 + (count + 7) / 8] = (uint8_t)h;
        if (l->width)
          l->width[b] = (uint8_t)(128 | w);
        else
          made[0] = (uint8_t)(128 | w);
        list_place(l, made, at + size);
        free(made);
        break;
      }
      default: break;
    }
  }
}

/* Damaged lists: refused, or decoded to something that is the same at every level and within
 * the limit. The sanitizers see to the rest. */
static void test_hostile(void **state) {
  const int best = gpuir__simd_level(GPUIR_SIMD_AUTO);
  uint32_t v[700];
  size_t i;
  int r;
  (void)state;
  failures = 0;
  for (i = 0; i < ncodecs(); i++)
    for (r = 0; r < 6000 * rounds; r++) {
      list l;
      const gpuir__codec *c = codec_at(i);
      uint32_t n = below(3) ? 1 + below(130) : 1 + below(700), k, b, limit;
      uint32_t first[128], out[128];
      const char *kind = fill(v, n, c->docids, below(KINDS), below(33));
      const spelling *as = &good[below((uint32_t)(sizeof good / sizeof *good))];
      choice = as->name && c->docids && !strcmp(as->name, c->name) ? as->param : 0;
      list_encode(&l, c, kind, v, n);
      mutate(&l);
      limit = below(2) ? bits(32) : UINT32_MAX - 1;
      for (b = 0; b < l.nblocks; b++) {
        uint32_t prev = below(2) ? UINT32_MAX : bits(32), count = n - b * 128 < 128 ? n - b * 128 : 128,
                 value = 0, x;
        int simd, opened = 0, ok;
        for (simd = GPUIR_SIMD_SCALAR; simd <= best; simd++) {
          gpuir__stream s;
          ok = list_open(&l, &s, limit, simd);
          if (simd == GPUIR_SIMD_SCALAR) opened = ok;
          if (ok != opened)
            failed("hostile: open differs", c, kind, n, simd, b, (uint64_t)ok, (uint64_t)opened);
          if (!ok) continue;
          decode(&s, b, prev, count, out);
          if (simd == GPUIR_SIMD_SCALAR) memcpy(first, out, sizeof out);
          for (k = 0; k < count; k++) {
            if (c->docids && out[k] > limit) {
              failed("hostile: over the limit", c, kind, n, simd, b * 128 + k, out[k], limit);
              break;
            }
            if (out[k] != first[k]) {
              failed("hostile: differs", c, kind, n, simd, b * 128 + k, out[k], first[k]);
              break;
            }
          }
          k = b * 128 + (count > 7 ? count - 7 : 0);
          x = c->get ? c->get(&s, k) : 0;
          if (simd == GPUIR_SIMD_SCALAR) value = x;
          if (x != value) failed("hostile: get differs", c, kind, n, simd, k, x, value);
          /* a damaged list of positions may name one twice, and get finds one of them: not of pfd's family */
          for (k = b * 128; c->id <= 2 && !c->docids && k < b * 128 + count; k++)
            if (c->get(&s, k) != out[k - b * 128]) { /* the same as in the block */
              failed("hostile: get is not decode", c, kind, n, simd, k, c->get(&s, k), out[k - b * 128]);
              break;
            }
          if (c->get && c->docids && x > limit)
            failed("hostile: get over the limit", c, kind, n, simd, k, x, limit);
          for (k = 0; c->find && s.last && count == 128 && k < 8; k++) {
            x = c->find(&s, b, prev, below(2) ? out[below(128)] : bits(32));
            if (x > GPUIR__UNTOLD) failed("hostile: find", c, kind, n, simd, b * 128, x, GPUIR__UNTOLD);
          }
          free(s.scratch);
        }
      }
      list_free(&l);
    }
  choice = 0;
  assert_int_equal(failures, 0);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_tables),     cmocka_unit_test(test_spellings),
      cmocka_unit_test(test_parameters), cmocka_unit_test(test_round_trip),
      cmocka_unit_test(test_long_lists), cmocka_unit_test(test_lanes),
      cmocka_unit_test(test_formats),    cmocka_unit_test(test_made_blocks),
      cmocka_unit_test(test_naive),      cmocka_unit_test(test_real_lists),
      cmocka_unit_test(test_example),    cmocka_unit_test(test_out_of_memory),
      cmocka_unit_test(test_hostile),
  };
  if (argc > 1 && atoi(argv[1]) > 1) rounds = atoi(argv[1]);
  return cmocka_run_group_tests_name("codecs", tests, NULL, NULL);
}
