/* fuzz_live.c - opens damaged folders of live indexes, reads and searches them, writes to them, merges and commits
 *
 *   make build/fuzz/fuzz_live && mkdir -p build/corpus-live
 *   build/fuzz/fuzz_live -max_total_time=60 -max_len=65536 -timeout=20 build/corpus-live
 *
 * An input is a folder: its files one behind the other, each with its length (4 bytes) in front of it: the manifest,
 * and then segments 000001.gpuir, 000002.gpuir and so on. Inputs begin as one of a few folders that the program makes.
 * The mutator damages the manifest field by field, deletes documents, and damages segments as structure.h does;
 * checksums and what the manifest says of the segments are right afterwards. Two folders are crossed by exchanging
 * files. What a folder holds that verifies must be the same after all of it was merged. */
#include "private.h"
#include "exercise.h"
#include "stored.h"
#include "structure.h"

#include <dirent.h>
#include <sys/stat.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size, uint8_t *out,
    size_t most, unsigned seed);

enum { FILES = 6, BASES = 6, MOST = 1 << 16, HEAD = sizeof(gpuir__manifest_head), ENTRY = sizeof(gpuir__entry) };

/* The files of an input: parts of its bytes. */
typedef struct files {
  uint8_t *bytes[FILES];
  size_t len[FILES];
  unsigned n;
} files;

static char folder[] = "/tmp/gpuir-fuzz-XXXXXX";
static uint8_t base[BASES][MOST];
static size_t base_len[BASES];
static unsigned long opened, verified_all, written, merged;
static double slowest;

/* Durability is not what is looked for here. */
int fsync(int fd) {
  (void)fd;
  return 0;
}

/* ---- folders ---- */

static const char *in_folder(const char *name) {
  static char path[600];
  (void)snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static const char *segment_name(unsigned i) {
  static char name[32];
  (void)snprintf(name, sizeof name, "%06u.gpuir", i);
  return name;
}

static void empty_folder(void) {
  DIR *dir = opendir(folder);
  const struct dirent *e;
  if (!dir) abort();
  while ((e = readdir(dir)) != NULL)
    if (e->d_name[0] != '.') (void)unlink(in_folder(e->d_name));
  (void)closedir(dir);
}

static void finish(void) {
  empty_folder();
  (void)rmdir(folder);
  (void)fprintf(stderr,
      "fuzz_live: %lu folders opened, %lu verified, %lu merged, %lu written to, the slowest took %.2f s\n", opened,
      verified_all, merged, written, slowest);
}

static files files_of(uint8_t *data, size_t size) {
  files f;
  size_t at = 0;
  f.n = 0;
  while (f.n < FILES && size - at >= 4) {
    const uint32_t len = structure_get32(data + at);
    at += 4;
    f.bytes[f.n] = data + at;
    f.len[f.n] = len < size - at ? len : size - at;
    at += f.len[f.n++];
  }
  return f;
}

static void store(const char *name, const uint8_t *bytes, size_t n) {
  FILE *out = fopen(in_folder(name), "wb");
  if (!out || fwrite(bytes, 1, n, out) != n || fclose(out)) abort();
}

/* Appends a file of the folder to an input; returns the new length. */
static size_t append_file(uint8_t *to, size_t at, const char *name) {
  FILE *in = fopen(in_folder(name), "rb");
  uint32_t n;
  if (!in) abort();
  n = (uint32_t)fread(to + at + 4, 1, MOST - at - 4, in);
  if (!feof(in)) abort();
  (void)fclose(in);
  memcpy(to + at, &n, 4);
  return at + 4 + n;
}

static gpuir_live *open_live(const char *codec, int options, gpuir_error *err) {
  gpuir_live_desc desc;
  gpuir_live *l;
  memset(&desc, 0, sizeof desc);
  desc.settings.path = folder;
  desc.settings.memory = 1 << 20;
  desc.settings.threads = 1;
  desc.settings.codec = codec;
  desc.settings.positions = options & 1;
  desc.settings.store_text = options >> 1;
  desc.create = 1;
  return gpuir_live_open(&desc, &l, err) ? NULL : l;
}

static int add(gpuir_live *l, unsigned number, gpuir_error *err) {
  char name[32], source[32], text[800];
  gpuir_doc_desc doc;
  size_t n = 0;
  unsigned i;
  memset(&doc, 0, sizeof doc);
  doc.name = name;
  doc.name_len = (size_t)snprintf(name, sizeof name, "folder/n%u", number);
  doc.source = source;
  doc.source_len = (size_t)snprintf(source, sizeof source, "/tmp/s%u", number % 5);
  for (i = 0; i < 40; i++)
    n += (size_t)snprintf(text + n, sizeof text - n, "w%u ", (number * 31 + i * i) % (i % 3 ? 90 : 7));
  return gpuir_live_add(l, &doc, text, n, err);
}

/* Makes folder number i of those that inputs begin with: three segments, of two of which documents are deleted. */
static void make_base(unsigned i) {
  static const char *const codecs[BASES] = {"bp128", "vbyte", "auto", "ef", "parapfor", "hslrc"};
  gpuir_live *l;
  gpuir_index *ix;
  gpuir_error err;
  unsigned d;
  empty_folder();
  l = open_live(codecs[i], (int)i % 4, &err);
  for (d = 0; d < 200; d++) {
    if (!l || add(l, d, &err)) abort();
    if (d % 70 == 69) {
      if (gpuir_live_refresh(l, &ix, &err)) abort();
      gpuir_close(ix);
    }
  }
  for (d = 3; d < 130; d += 9) {
    char name[32];
    const int n = snprintf(name, sizeof name, "folder/n%u", d);
    if (gpuir_live_delete(l, GPUIR_BY_NAME, name, (size_t)n, NULL, &err)) abort();
  }
  if (gpuir_live_commit(l, &err)) abort();
  gpuir_live_close(l);
  base_len[i] = append_file(base[i], 0, "manifest");
  for (d = 2; d <= 4; d++) base_len[i] = append_file(base[i], base_len[i], segment_name(d));
  { /* as the input names them */
    files f = files_of(base[i], base_len[i]);
    for (d = 0; d < 3; d++) {
      const uint64_t number = d + 1;
      memcpy(f.bytes[0] + HEAD + d * ENTRY, &number, 8);
    }
  }
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  unsigned i;
  (void)argc;
  (void)argv;
  if (!mkdtemp(folder) || atexit(finish)) abort();
  for (i = 0; i < BASES; i++) make_base(i);
  return 0;
}

/* ---- mutations ---- */

static void scramble(uint8_t *bytes, size_t n, void *user) {
  (void)user;
  (void)LLVMFuzzerMutate(bytes, n, n);
}

static structure structure_of(uint8_t *bytes, size_t len, uint64_t state) {
  structure s;
  s.bytes = bytes;
  s.len = len;
  s.state = state;
  s.scramble = scramble;
  s.user = NULL;
  return s;
}

/* Returns a segment's number of documents, as its own section has it; 0 if there is none. */
static uint32_t documents_of(uint8_t *bytes, size_t len) {
  const structure s = structure_of(bytes, len, 0);
  uint32_t i;
  for (i = 0; i < structure_sections(&s); i++) {
    size_t n;
    const uint8_t *entry = structure_entry(&s, i), *p = structure_bytes(&s, entry, &n);
    if (structure_get32(entry) == GPUIR__S_STAT && n >= 8) return structure_get32(p);
  }
  return 0;
}

/* Makes the manifest's magic, hashes, numbers of documents and checksum right. */
static void mend(const files *f) {
  static const uint8_t format[4] = {GPUIR__MANIFEST_FORMAT, 0, 0, 0};
  uint64_t hash;
  unsigned i;
  if (!f->n || f->len[0] < HEAD + 8) return;
  memcpy(f->bytes[0], gpuir__manifest_magic, 8);
  memcpy(f->bytes[0] + 8, format, 4);
  for (i = 1; i < f->n && HEAD + i * ENTRY + 8 <= f->len[0]; i++) {
    uint8_t *entry = f->bytes[0] + HEAD + (i - 1) * ENTRY;
    const uint32_t documents = documents_of(f->bytes[i], f->len[i]);
    if (f->len[i] >= STRUCTURE_HEADER) memcpy(entry + 8, f->bytes[i] + STRUCTURE_HEADER - 8, 8);
    if (documents) memcpy(entry + 16, &documents, 4);
  }
  hash = XXH3_64bits(f->bytes[0], f->len[0] - 8);
  memcpy(f->bytes[0] + f->len[0] - 8, &hash, 8);
}

/* Damages the manifest: a field of its head, of an entry, or a byte of the logs; or entries change places, or one
 * stands twice, with its number or with one of its own, as where segments are links to one file. */
static void damage_manifest(structure *s) {
  const size_t entries = HEAD + 3 * ENTRY;
  if (s->len < entries + 8) {
    structure_scribble(s, s->bytes, s->len);
    return;
  }
  switch (structure_below(s, 5)) {
  case 0: structure_field(s, s->bytes + 12, HEAD - 12, 4); break;
  case 3:
  case 4: {
    uint8_t *a = s->bytes + HEAD + structure_below(s, 3) * ENTRY, *b = s->bytes + HEAD + structure_below(s, 3) * ENTRY;
    const size_t from = structure_below(s, 2) ? 0 : 8;
    uint8_t entry[ENTRY];
    memcpy(entry, a, ENTRY);
    memcpy(a + from, b + from, ENTRY - from);
    if (structure_below(s, 2)) memcpy(b + from, entry + from, ENTRY - from);
    break;
  }
  case 1: structure_field(s, s->bytes + HEAD, entries - HEAD, structure_below(s, 2) ? 4 : 8); break;
  default: structure_field(s, s->bytes + entries, s->len - entries - 8, 1);
  }
}

/* Deletes one more document of segment i (< 3), at the end of its log. Returns the input's new size. */
static size_t delete_one(uint8_t *data, size_t size, size_t most, unsigned i, uint32_t docid) {
  files f = files_of(data, size);
  uint8_t *log, *end;
  uint32_t deleted, len;
  unsigned j;
  if (size + 1 > most || !f.n || f.len[0] < HEAD + 3 * ENTRY + 8) return size;
  log = f.bytes[0] + HEAD + 3 * ENTRY;
  end = f.bytes[0] + f.len[0] - 8;
  for (j = 0; j <= i; j++) {
    deleted = structure_get32(f.bytes[0] + HEAD + j * ENTRY + 20);
    while (deleted-- && log < end) {
      while (log < end && *log >= 128) log++;
      log += log < end;
    }
  }
  memmove(log + 1, log, size - (size_t)(log - data));
  *log = (uint8_t)(docid % 128);
  deleted = structure_get32(f.bytes[0] + HEAD + i * ENTRY + 20) + 1;
  memcpy(f.bytes[0] + HEAD + i * ENTRY + 20, &deleted, 4);
  len = (uint32_t)f.len[0] + 1;
  memcpy(data, &len, 4);
  return size + 1;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  structure s = structure_of(data, size, seed);
  uint64_t times;
  files f;
  if (seed % 32 == 0) return LLVMFuzzerMutate(data, size, most);
  if (size < 200 || seed % 64 == 1) {
    const unsigned i = (unsigned)structure_below(&s, BASES);
    if (base_len[i] > most) return LLVMFuzzerMutate(data, size, most);
    memcpy(data, base[i], base_len[i]);
    size = base_len[i];
  }
  for (times = 1 + structure_below(&s, 3); times; times--) {
    const uint64_t which = structure_below(&s, 4);
    f = files_of(data, size);
    if (!which) {
      structure m = structure_of(f.bytes[0], f.len[0], s.state);
      damage_manifest(&m);
    } else if (which == 1) {
      const unsigned i = (unsigned)structure_below(&s, 3);
      size = delete_one(data, size, most, i, (uint32_t)structure_below(&s, 128));
    } else if (f.n > 1) {
      const uint64_t i = 1 + structure_below(&s, f.n - 1);
      structure m = structure_of(f.bytes[i], f.len[i], s.state);
      structure_mutate(&m);
    }
  }
  f = files_of(data, size);
  mend(&f);
  return size;
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size, uint8_t *out,
    size_t most, unsigned seed) {
  uint8_t *copy = (uint8_t *)malloc(b_size + 1);
  structure s = structure_of(out, a_size < most ? a_size : most, seed);
  files to, from;
  unsigned i;
  if (!copy) return 0;
  memcpy(copy, b, b_size);
  memcpy(out, a, s.len);
  to = files_of(out, s.len);
  from = files_of(copy, b_size);
  for (i = 1; i < to.n && i < from.n; i++)
    if (structure_below(&s, 2) && to.len[i] == from.len[i]) memcpy(to.bytes[i], from.bytes[i], to.len[i]);
  for (i = 1; i < to.n && i < from.n; i++) {
    structure mine = structure_of(to.bytes[i], to.len[i], s.state + i),
              other = structure_of(from.bytes[i], from.len[i], s.state);
    if (structure_below(&s, 4) == 0) structure_cross(&mine, &other);
  }
  mend(&to);
  free(copy);
  return s.len;
}

/* ---- the test ---- */

/* What an index holds, in a number: names, texts and lengths of its documents, and hits. */
static uint64_t digest(gpuir_index *ix) {
  gpuir_index_info info;
  gpuir_searcher *s;
  gpuir_query *q;
  gpuir_hit hits[50];
  uint64_t sum = 0, d;
  size_t n = 0, i;
  EXERCISE_CHECK(gpuir_index_get_info(ix, &info) == GPUIR_OK);
  for (d = 0; d < info.docids; d++) {
    char name[600], *text;
    size_t len;
    gpuir_doc doc;
    if (gpuir_doc_get(ix, (uint32_t)d, &doc)) continue;
    sum = sum * 31 + XXH3_64bits(name, gpuir__min64(gpuir_doc_name(&doc, name, sizeof name), sizeof name - 1));
    text = stored_text(ix, (uint32_t)d, &len);
    sum = sum * 31 + XXH3_64bits(text ? text : "", len) + doc.length;
    free(text);
  }
  EXERCISE_CHECK(gpuir_searcher_create(ix, NULL, &s, NULL) == GPUIR_OK);
  if (!gpuir_query_parse(ix, NULL, "w0 w2 w25", 9, &q, NULL)) {
    if (gpuir_search(s, q, hits, 50, &n)) n = 0;
    for (i = 0; i < n; i++) sum = sum * 31 + (uint64_t)hits[i].score;
    gpuir_query_destroy(q);
  }
  gpuir_searcher_destroy(s);
  return sum * 31 + info.documents;
}

/* Merges all of a folder whose documents verify, and looks whether they are still the same. */
static void check_merge(uint64_t before) {
  gpuir_error err;
  gpuir_index *ix;
  int more, status;
  gpuir_live *l = open_live(NULL, 0, &err);
  EXERCISE_CHECK(l != NULL);
  status = gpuir_live_merge(l, 1, &more, &err);
  EXERCISE_CHECK(!status && !more && !gpuir_live_commit(l, &err));
  gpuir_live_close(l);
  EXERCISE_CHECK(!gpuir_open(folder, NULL, &ix, &err) && !gpuir_verify(ix, &err));
  EXERCISE_CHECK(digest(ix) == before);
  gpuir_close(ix);
  merged++;
}

/* Deletes, adds and merges in a folder that may be damaged; what is committed can be opened. */
static void write_to(unsigned chance) {
  gpuir_error err;
  gpuir_index *ix = NULL;
  char name[32];
  int more, status;
  gpuir_live *l = open_live(NULL, 0, &err);
  if (!l) return;
  status = gpuir_live_delete(l, GPUIR_BY_NAME, name, (size_t)snprintf(name, sizeof name, "folder/n%u", chance % 200),
      NULL, &err);
  if (!status) status = gpuir_live_delete(l, GPUIR_BY_SOURCE, "/tmp/s3", 7, NULL, &err);
  if (!status && chance & 1) status = add(l, 500, &err);
  if (!status) status = gpuir_live_refresh(l, &ix, &err);
  if (!status) (void)gpuir_live_merge(l, chance >> 1 & 1, &more, &err);
  if (!status) status = gpuir_live_commit(l, &err);
  gpuir_live_close(l);
  if (ix) (void)digest(ix);
  if (!status) {
    gpuir_open_desc desc;
    gpuir_index *again;
    memset(&desc, 0, sizeof desc);
    desc.share = ix;
    EXERCISE_CHECK(!gpuir_open(folder, &desc, &again, &err));
    gpuir_close(again);
    written++;
  }
  gpuir_close(ix);
}

/* Opens the folder and reads all of it; then merges it if it verifies, or else writes to it. */
static void use(uint64_t chance) {
  gpuir_open_desc desc;
  gpuir_index *ix;
  gpuir_error err;
  int status;
  memset(&desc, 0, sizeof desc);
  desc.simd = (int)(chance >> 8) % 4;
  memset(&err, 0, sizeof err);
  status = gpuir_open(folder, &desc, &ix, &err);
  if (status) {
    EXERCISE_CHECK(!ix && err.code == status && err.msg[0]);
  } else {
    const int verified = exercise_index(ix, "");
    const uint64_t before = verified ? 0 : digest(ix);
    gpuir_close(ix);
    opened++;
    verified_all += !verified;
    if (!verified && chance >> 10 & 1) {
      check_merge(before);
      return;
    }
  }
  write_to((unsigned)(chance >> 12));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const uint64_t begin = gpuir__now(), chance = XXH3_64bits(data, size);
  uint8_t *copy = (uint8_t *)malloc(size + 1);
  double seconds;
  files f;
  unsigned i;
  if (!copy) return 0;
  memcpy(copy, data, size);
  f = files_of(copy, size);
  empty_folder();
  store("lock", copy, 0);
  for (i = 0; i < f.n; i++) store(i ? segment_name(i) : "manifest", f.bytes[i], f.len[i]);
  free(copy);
  exercise_parts = 6;
  exercise_part = (unsigned)(chance % 6);
  exercise_turn = (size_t)(chance >> 4) % 16;
  use(chance);
  seconds = (double)(gpuir__now() - begin) / 1e9;
  if (seconds > slowest) slowest = seconds;
  return 0;
}
