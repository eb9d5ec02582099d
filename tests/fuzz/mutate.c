/* mutate.c - damages small valid indexes in many ways and uses them all the same
 *
 *   mutate [N [FIRST]]   runs mutations FIRST .. FIRST+N-1 (1,000 from 0; 10,000 with GPUIR_LONG=1)
 *
 * To be compiled with -fsanitize=address,undefined, and with library.c. A mutation is determined by its number: when
 * one fails, its number is printed, and `mutate 1 NUMBER` repeats it. Mutations flip bits, set
 * bytes and integers, swap and repeat blocks, cut and grow the file, and edit the header, the
 * section table and single sections; most of them then make the checksums right again, so that
 * they are not what refuses the file. */
#define _POSIX_C_SOURCE 200809L
#include "gpuir.h"
#include "oracle.h"
#include "corpus.h"
#include "exercise.h"
#include "values.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <signal.h>

enum { HEADER = 64, ENTRY = 32, SEEDS = 19 };

typedef struct image {
  uint8_t *bytes;
  size_t len, cap;
} image;

static unsigned long current;
static int is_quiet;

static void report(void) {
  if (!is_quiet) (void)fprintf(stderr, "mutate: mutation %lu failed; repeat it by: mutate 1 %lu\n", current, current);
}

static void on_signal(int number) {
  static const char slow[] = "mutate: a mutation took more than 20 seconds\n";
  if (number == SIGALRM) (void)!write(2, slow, sizeof slow - 1);
  report();
  _exit(1);
}

#if defined(__SANITIZE_ADDRESS__)
#define MUTATE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MUTATE_ASAN 1
#endif
#endif
#ifdef MUTATE_ASAN
extern void __sanitizer_set_death_callback(void (*)(void));
#endif

static void load(const char *path, image *im) {
  FILE *f = fopen(path, "rb");
  long n;
  if (!f || fseek(f, 0, SEEK_END) || (n = ftell(f)) < 0 || fseek(f, 0, SEEK_SET)) {
    perror(path);
    exit(2);
  }
  im->len = (size_t)n;
  im->cap = im->len * 2 + 4096;
  im->bytes = (uint8_t *)oracle_grow(NULL, im->cap, 1);
  if (fread(im->bytes, 1, im->len, f) != im->len) exit(2);
  (void)fclose(f);
}

static void store(const char *path, const image *im) {
  FILE *f = fopen(path, "wb");
  if (!f || fwrite(im->bytes, 1, im->len, f) != im->len || fclose(f)) {
    perror(path);
    exit(2);
  }
}

static uint64_t get64(const uint8_t *p) {
  uint64_t v;
  memcpy(&v, p, 8);
  return v;
}
static uint32_t get32(const uint8_t *p) {
  uint32_t v;
  memcpy(&v, p, 4);
  return v;
}
static void put64(uint8_t *p, uint64_t v) { memcpy(p, &v, 8); }
static void put32(uint8_t *p, uint32_t v) { memcpy(p, &v, 4); }

static uint32_t sections(const image *im) {
  uint32_t n = im->len >= HEADER ? get32(im->bytes + 12) : 0;
  return n > (im->len - HEADER) / ENTRY ? 0 : n;
}

/* Makes all checksums and the file's size right again. */
static void mend(image *im) {
  uint32_t n = sections(im), i;
  if (im->len < HEADER) return;
  for (i = 0; i < n; i++) {
    uint8_t *e = im->bytes + HEADER + i * ENTRY;
    uint64_t offset = get64(e + 8), length = get64(e + 16);
    if (offset <= im->len && length <= im->len - offset) put64(e + 24, XXH3_64bits(im->bytes + offset, length));
  }
  put64(im->bytes + 16, im->len);
  put64(im->bytes + 24, XXH3_64bits(im->bytes + HEADER, n * ENTRY));
  put64(im->bytes + 56, XXH3_64bits(im->bytes, 56));
}

/* A number that is likely to hurt. */
static uint64_t nasty(rng *r, uint64_t old) {
  static const uint64_t at[] = {0, 1, 2, 63, 64, 127, 128, 129, 255, 256, 32767, 32768, 65535, 65536, 0x7fffffff,
      0x80000000, 0xfffffffe, 0xffffffff, UINT64_MAX, UINT64_MAX - 63, (uint64_t)1 << 63, (uint64_t)1 << 32, 0x7fc00000,
      0x7f800000};
  switch (rng_below(r, 6)) {
  case 0: return old + rng_below(r, 9) - 4;
  case 1: return old ^ (uint64_t)1 << rng_below(r, 64);
  case 2: return rng_next(r);
  case 3: return rng_below(r, 1u << (1 + rng_below(r, 30)));
  default: return at[rng_below(r, sizeof at / sizeof *at)];
  }
}

/* Damages a few places of [from, from + n). */
static void damage(image *im, rng *r, size_t from, size_t n) {
  uint32_t times = 1 + rng_below(r, rng_below(r, 4) ? 3 : 40), i;
  if (!n) return;
  for (i = 0; i < times; i++) {
    size_t at = from + rng_below(r, (uint32_t)n), room = from + n - at;
    uint8_t *p = im->bytes + at;
    switch (rng_below(r, 7)) {
    case 0: *p ^= (uint8_t)(1u << rng_below(r, 8)); break;
    case 1: *p = (uint8_t)nasty(r, *p); break;
    case 2: /* an aligned u16, u32 or u64 */
    case 3:
    case 4: {
      size_t width = (size_t)2 << rng_below(r, 3), skip = (at - from) % width;
      uint64_t v = 0;
      if (room + skip < width) break;
      memcpy(&v, p - skip, width);
      v = nasty(r, v);
      memcpy(p - skip, &v, width);
      break;
    }
    case 5: memset(p, (int)(nasty(r, 0) & 255), 1 + rng_below(r, (uint32_t)(room < 200 ? room : 200))); break;
    default: { /* swap or repeat a block */
      size_t m = 1 + rng_below(r, (uint32_t)(room < 64 ? room : 64)), other;
      if (m > n) break;
      other = from + rng_below(r, (uint32_t)(n - m + 1));
      if (at + m > from + n) break;
      memmove(p, im->bytes + other, m);
      break;
    }
    }
  }
}

static void edit_header(image *im, rng *r) {
  static const uint8_t at32[] = {8, 12}, at64[] = {16, 24, 32, 40, 48, 56};
  if (rng_below(r, 2)) {
    uint8_t *p = im->bytes + at32[rng_below(r, 2)];
    put32(p, (uint32_t)nasty(r, get32(p)));
  } else {
    uint8_t *p = im->bytes + at64[rng_below(r, 6)];
    put64(p, nasty(r, get64(p)));
  }
}

static void edit_table(image *im, rng *r) {
  uint32_t n = sections(im), times = 1 + rng_below(r, 3);
  if (!n) return;
  while (times--) {
    uint8_t *e = im->bytes + HEADER + rng_below(r, n) * ENTRY, other[ENTRY];
    uint8_t *f = im->bytes + HEADER + rng_below(r, n) * ENTRY;
    switch (rng_below(r, 8)) {
    case 0: put32(e, rng_below(r, 48)); break;
    case 1: put32(e + 4, rng_below(r, 4)); break;
    case 2: put64(e + 8, nasty(r, get64(e + 8))); break;
    case 3: put64(e + 8, rng_below(r, (uint32_t)im->len) & ~63u); break;
    case 4: put64(e + 16, nasty(r, get64(e + 16))); break;
    case 5: put64(e + 16, get64(e + 16) + rng_below(r, 129) - 64); break;
    case 6: /* two sections exchange their bytes */
      memcpy(other, e + 8, 16);
      memcpy(e + 8, f + 8, 16);
      memcpy(f + 8, other, 16);
      break;
    default: memcpy(e + 8, f + 8, 16); break;
    }
  }
}

static void edit_section(image *im, rng *r, uint32_t index) {
  const uint8_t *e = im->bytes + HEADER + index * ENTRY;
  uint64_t offset = get64(e + 8), length = get64(e + 16);
  if (offset <= im->len && length <= im->len - offset) damage(im, r, (size_t)offset, (size_t)length);
}

static void mutate(image *im, rng *r) {
  uint32_t n = sections(im), kind = rng_below(r, 16), mended = rng_below(r, 8) != 0, i;
  switch (kind) {
  case 0: damage(im, r, 0, im->len); break;
  case 1: /* cut */
    im->len = rng_below(r, 2) ? rng_below(r, (uint32_t)im->len) : rng_below(r, (uint32_t)im->len) & ~63u;
    break;
  case 2: /* grow */
    i = 1 + rng_below(r, 4000);
    memset(im->bytes + im->len, (int)rng_below(r, 256), i);
    im->len += i;
    break;
  case 3: edit_header(im, r); break;
  case 4:
  case 5: edit_table(im, r); break;
  case 6: /* several sections */
    for (i = 0; i < n; i++)
      if (rng_below(r, 3) == 0) edit_section(im, r, i);
    break;
  case 7: /* a whole section of noise, zeros or ones */
    if (n) {
      const uint8_t *e = im->bytes + HEADER + rng_below(r, n) * ENTRY;
      uint64_t at = get64(e + 8), len = get64(e + 16), b;
      uint32_t how = rng_below(r, 3);
      for (b = 0; b < len; b++) im->bytes[at + b] = how == 0 ? (uint8_t)rng_next(r) : how == 1 ? 0 : 255;
    }
    break;
  default: /* one section */
    if (n) edit_section(im, r, rng_below(r, n));
    break;
  }
  if (mended) mend(im);
}

/* ---- the valid indexes that are damaged ---- */

static void build_terms(const char *path, const char *codec, const char *freq_codec, uint64_t seed) {
  oracle o;
  corpus_build how;
  gpuir_error err;
  memset(&how, 0, sizeof how);
  how.codec = codec;
  how.freq_codec = freq_codec;
  how.threads = 1;
  corpus_zipf(&o, 700, 60, 8, seed);
  if (corpus_write(&o, path, &how, &err)) {
    (void)fprintf(stderr, "mutate: %s\n", err.msg);
    exit(2);
  }
  oracle_free(&o);
}

/* Lists of more than 4,096 postings, which OR prunes by their blocks. */
static void build_long(const char *path) {
  oracle o;
  gpuir_error err;
  corpus_ramps(&o, 13000, 3);
  if (corpus_write(&o, path, NULL, &err)) {
    (void)fprintf(stderr, "mutate: %s\n", err.msg);
    exit(2);
  }
  oracle_free(&o);
}

/* Text, names, sources and stored text; many terms; `docs` may be 0. */
static void build_text(const char *path, unsigned docs, const char *codec) {
  gpuir_builder_desc desc;
  gpuir_builder *b;
  gpuir_error err;
  unsigned d, i;
  int status;
  memset(&desc, 0, sizeof desc);
  desc.path = path;
  desc.store_text = 1;
  desc.codec = codec;
  desc.threads = 1;
  desc.description = "damaged by mutate.c";
  desc.analyzer.stop_words = "and or the";
  desc.fields = seed_fields;
  desc.nfields = SEED_FIELDS;
  status = gpuir_builder_create(&desc, &b, &err);
  for (d = 0; d < docs && !status; d++) {
    char text[512], name[32], source[32];
    gpuir_doc_desc doc;
    size_t n = 0;
    memset(&doc, 0, sizeof doc);
    for (i = 0; i < 12; i++)
      n += (size_t)snprintf(text + n, sizeof text - n, "and w%u ", (d * d + i * i * 7) % (4 + i * 40));
    doc.name = name;
    doc.name_len = (size_t)snprintf(name, sizeof name, d % 3 ? "file%u:%u" : "name-%u", d / 10, d);
    doc.source = source;
    doc.source_len = (size_t)snprintf(source, sizeof source, "folder/file%u", d / 10);
    doc.first_line = d % 10 + 1;
    doc.last_line = d % 10 + 1;
    seed_values(d, &doc);
    status = gpuir_builder_add_text(b, &doc, text, n, &err);
  }
  if (!status) status = gpuir_builder_write(b, NULL, &err);
  if (status) {
    (void)fprintf(stderr, "mutate: %s\n", err.msg);
    exit(2);
  }
  gpuir_builder_destroy(b);
}

static const char *const codecs[] = {"pfd", "newpfd", "optpfd", "ef", "qs:4", "rice", "pfd-list:4", "parapfor:64,min",
    "lrc:64", "lrcseg:128", "seglrc:,min", "hslrc:32", "auto"};

int main(int argc, char **argv) {
  unsigned long n = argc > 1 ? strtoul(argv[1], NULL, 10) : corpus_long_run() ? 10000 : 1000;
  unsigned long first = argc > 2 ? strtoul(argv[2], NULL, 10) : 0, i, opened = 0, verified = 0, checksum = 0;
  image seed[SEEDS], im;
  char path[4200];
  int s, verify, status;
  (void)corpus_path(path, sizeof path, "seed.gpuir");
  for (s = 0; s < SEEDS; s++) {
    if (s == 0) build_terms(path, "bp128", "bp128", 1);
    if (s == 1) build_terms(path, "vbyte", "vbyte", 2);
    if (s == 2) build_text(path, 300, "bp128");
    if (s == 3) build_text(path, 150, "vbyte");
    if (s == 4) build_text(path, 3, NULL);
    if (s == 5) build_long(path);
    if (s > 5) build_terms(path, codecs[s - 6], s % 2 ? "newpfd" : "optpfd", (uint64_t)s);
    load(path, &seed[s]);
    status = exercise_file(path, GPUIR_SIMD_AUTO, &verify);
    if (status || verify) {
      (void)fprintf(stderr, "mutate: a valid index is refused: %s\n", gpuir_strerror(status ? status : verify));
      return 1;
    }
    mend(&seed[s]); /* must change nothing: otherwise this program does not know the format */
    store(path, &seed[s]);
    if (exercise_file(path, GPUIR_SIMD_AUTO, &verify) || verify) return 1;
    (void)unlink(path);
  }
  (void)corpus_path(path, sizeof path, "mutated.gpuir");
  (void)signal(SIGALRM, on_signal);
  (void)signal(SIGABRT, on_signal);
#ifdef MUTATE_ASAN
  __sanitizer_set_death_callback(report);
#else
  (void)signal(SIGSEGV, on_signal);
  (void)signal(SIGBUS, on_signal);
  (void)signal(SIGFPE, on_signal);
#endif
  for (i = first; i < first + n; i++) {
    rng r;
    r.s = i * 7919 + 1;
    current = i;
    s = (int)rng_below(&r, SEEDS);
    im = seed[s];
    im.bytes = (uint8_t *)oracle_grow(NULL, im.cap, 1);
    memcpy(im.bytes, seed[s].bytes, im.len);
    mutate(&im, &r);
    store(path, &im);
    free(im.bytes);
    (void)alarm(20);
    status = exercise_file(path, (int)(i % 4), &verify);
    (void)alarm(0);
    opened += !status;
    verified += !status && !verify;
    checksum += !status && verify == GPUIR_E_CHECKSUM;
  }
  is_quiet = 1;
  for (s = 0; s < SEEDS; s++) free(seed[s].bytes);
  (void)unlink(path);
  (void)printf("mutate: %lu mutations: %lu refused by open, %lu by a checksum, %lu by verify, %lu passed; no crash\n",
      n, n - opened, checksum, opened - verified - checksum, verified);
  return 0;
}
