/* seeds.h - small indexes in every codec, and their files damaged as a number says (structure.h)
 *
 * Include it behind an implementation of gpuir.h. */
#ifndef SEEDS_H
#define SEEDS_H

#include <stdio.h>
#include <stdlib.h>

#include "structure.h"
#include "values.h"

enum { SEED_DOCUMENTS = 420, SEED_WORDS = 24 };

static const char *const seed_codecs[] = {"bp128", "vbyte", "pfd", "newpfd", "optpfd", "ef", "qs:1.5", "rice",
    "pfd-list:2", "parapfor", "lrc", "lrcseg", "seglrc", "hslrc", "auto"};
static const char *const seed_freq_codecs[] = {"bp128", "vbyte", "optpfd", "newpfd"};
enum { SEEDS = sizeof seed_codecs / sizeof *seed_codecs };

/* Ends a program that cannot do its work. */
static void seed_stop(const char *what) {
  printf("Bail out! %s\n", what);
  exit(1);
}

/* The bytes of an index. */
typedef struct seed {
  uint8_t *bytes;
  size_t len;
} seed_image;

/* Names document d; three in a row are lines of one file. */
static gpuir_doc_desc seed_document(unsigned d) {
  static char name[32], source[32];
  gpuir_doc_desc doc;
  memset(&doc, 0, sizeof doc);
  doc.name = name;
  doc.name_len = (size_t)snprintf(name, sizeof name, "folder/name %u", d);
  doc.source = source;
  doc.source_len = (size_t)snprintf(source, sizeof source, "/tmp/source-%u", d / 3);
  doc.first_line = d % 3 + 1;
  doc.last_line = d % 3 + 2;
  return doc;
}

/* Builds index `number` < SEEDS at `path`: 24 words are frequent (w0 the most), with bursts, and rare0, rare60 ...
 * stand in one document each. In every other index the documents have names, sources and their text, in half of these
 * values, too; two in three have positions. */
static void seed_build(const char *path, unsigned number) {
  gpuir_builder_desc desc;
  gpuir_builder *b;
  gpuir_error err;
  structure r;
  unsigned d, i;
  uint64_t j;
  char text[4096];
  memset(&r, 0, sizeof r);
  memset(&desc, 0, sizeof desc);
  desc.path = path;
  desc.threads = 1;
  desc.codec = seed_codecs[number];
  desc.freq_codec = seed_freq_codecs[number % 4];
  desc.store_text = number % 2;
  desc.positions = number % 3 > 0;
  if (number % 4 == 1) desc.fields = seed_fields, desc.nfields = SEED_FIELDS;
  if (gpuir_builder_create(&desc, &b, &err)) seed_stop(err.msg);
  for (d = 0; d < SEED_DOCUMENTS; d++) {
    gpuir_doc_desc doc = seed_document(d);
    size_t n = 0;
    if (desc.fields) seed_values(d, &doc);
    for (i = 0; i < 6; i++) {
      const double u = (double)structure_below(&r, 1 << 20) / (1 << 20);
      for (j = structure_below(&r, 97) ? 1 : 40; j; j--)
        n += (size_t)snprintf(text + n, sizeof text - n, "w%u ", (unsigned)(SEED_WORDS * u * u * u));
    }
    if (d % 60 == 0) n += (size_t)snprintf(text + n, sizeof text - n, "rare%u", d);
    if (gpuir_builder_add_text(b, number % 2 ? &doc : NULL, text, n, &err)) seed_stop(err.msg);
  }
  if (gpuir_builder_write(b, NULL, &err)) seed_stop(err.msg);
  gpuir_builder_destroy(b);
}

static seed_image seed_load(const char *path) {
  seed_image s;
  FILE *f = fopen(path, "rb");
  long n;
  if (!f || fseek(f, 0, SEEK_END) || (n = ftell(f)) < 0) seed_stop("cannot read an index");
  s.len = (size_t)n;
  s.bytes = (uint8_t *)malloc(s.len);
  rewind(f);
  if (!s.bytes || fread(s.bytes, 1, s.len, f) != s.len) seed_stop("cannot read an index");
  (void)fclose(f);
  return s;
}

/* Builds all indexes, one after another at `path`, and loads them. */
static void seeds_load(const char *path, seed_image seeds[SEEDS]) {
  unsigned i;
  for (i = 0; i < SEEDS; i++) {
    seed_build(path, i);
    seeds[i] = seed_load(path);
  }
}

/* Writes index number % SEEDS to `path`, damaged as `number` says. */
static void seed_damage(const seed_image seeds[SEEDS], const char *path, unsigned number) {
  const seed_image *from = &seeds[number % SEEDS];
  structure s;
  FILE *f = fopen(path, "wb");
  memset(&s, 0, sizeof s);
  s.bytes = (uint8_t *)malloc(from->len);
  if (!f || !s.bytes) seed_stop("cannot write an index");
  memcpy(s.bytes, from->bytes, from->len);
  s.len = from->len;
  s.state = number;
  structure_mutate(&s);
  if (fwrite(s.bytes, 1, s.len, f) != s.len || fclose(f)) seed_stop("cannot write an index");
  free(s.bytes);
}

#endif
