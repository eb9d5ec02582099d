/* unpack.c - unpacks files by libraries that are loaded when they are needed. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "unpack.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define IN_BYTES ((size_t)128 << 10)
/* A text that is larger and was packed to less than a thousandth is none: DEFLATE packs no better, and what others pack
 * further is one line again and again. */
#ifndef UNPACK_BOMB_LEAST
#define UNPACK_BOMB_LEAST ((uint64_t)256 << 20)
#endif
#define BOMB_TIMES 1000u

/* ---- libraries --------------------------------------------------------------------------------- */

static const unpack_library *const libraries[UNPACK_KINDS] = {NULL, &unpack_zlib, &unpack_bzip2, &unpack_lzma,
    &unpack_zstd};

const char unpack_no_memory[] = "there is no memory to load the library";

/* Says why a library was not loaded. That there was no memory says nothing of the library. */
static const char *why_unloaded(void) {
  const char *why = dlerror();
  return why && (strcasestr(why, "cannot allocate") || strcasestr(why, "out of memory"))
      ? unpack_no_memory
      : "the library is not installed";
}

/* Finds the library's functions. Returns what is missing, or NULL. */
static const char *load(const unpack_library *l) {
  void *object = dlopen(l->soname, RTLD_NOW | RTLD_LOCAL);
  size_t i;
  if (!object) object = dlopen(l->soname, RTLD_NOW | RTLD_LOCAL); /* the loader calls it missing where memory was */
  if (!object) return why_unloaded();
  for (i = 0; l->names[i]; i++) {
    void *found = dlsym(object, l->names[i]);
    if (!found) return "the library lacks what is needed of it";
    memcpy(l->functions[i], &found, sizeof found);
  }
  return NULL;
}

const char *unpack_missing(unpack_kind kind) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static const char *missing[UNPACK_KINDS];
  static int loaded[UNPACK_KINDS];
  const char *why;
  if (kind <= UNPACK_NONE || kind >= UNPACK_KINDS) return "it is packed in no known way";
  (void)pthread_mutex_lock(&lock);
  if (!loaded[kind]) missing[kind] = load(libraries[kind]);
  loaded[kind] = missing[kind] != unpack_no_memory;
  why = missing[kind];
  (void)pthread_mutex_unlock(&lock);
  return why;
}

const char *unpack_name(unpack_kind kind) { return libraries[kind]->name; }

/* Returns whether a member begins with s[0..n). Zstandard's may be one that holds no text (RFC 8878, 3.1.2). */
static int begins(const unpack_library *l, const char *s, size_t n) {
  if (n >= l->magic_n && !memcmp(s, l->magic, l->magic_n)) return 1;
  return l == &unpack_zstd && n >= 4 && (s[0] & 0xf0) == 0x50 && !memcmp(s + 1, "\x2a\x4d\x18", 3);
}

/* Returns whether s[0..n) is more than a text that begins with "BZh": a block of bzip2 has a mark of its own, or the
 * end. */
static int is_bzip2(const char *s, size_t n) {
  return n >= 10 && s[3] >= '1' && s[3] <= '9' && (!memcmp(s + 4, "1AY&SY", 6) || !memcmp(s + 4, "\x17rE8P\x90", 6));
}

unpack_kind unpack_kind_of(const char *s, size_t n) {
  int kind;
  for (kind = UNPACK_GZIP; kind < UNPACK_KINDS; kind++)
    if (begins(libraries[kind], s, n) && (kind != UNPACK_BZIP2 || is_bzip2(s, n))) return (unpack_kind)kind;
  return UNPACK_NONE;
}

/* ---- reading ----------------------------------------------------------------------------------- */

int unpack_open(unpacker *u, unpack_kind kind, unpack_fill take, void *from, const char *first, size_t n) {
  const size_t cap = n > IN_BYTES ? n : IN_BYTES;
  memset(u, 0, sizeof *u);
  u->library = libraries[kind];
  u->fill = take;
  u->from = from;
  u->in = (char *)malloc(cap);
  if (!u->in) return -1;
  memcpy(u->in, first, n);
  u->end = n;
  u->packed = n;
  return 0;
}

void unpack_close(unpacker *u) {
  if (u->state) u->library->close(u->state);
  free(u->in);
  u->state = u->in = NULL;
}

/* Reads more behind what is there, of which there are less than IN_BYTES. 0; -1: errno. */
static int fill_in(unpacker *u) {
  ssize_t got;
  if (u->eof) return 0;
  memmove(u->in, u->in + u->begin, u->end - u->begin);
  u->end -= u->begin;
  u->begin = 0;
  got = u->fill(u->from, u->in + u->end, IN_BYTES - u->end);
  if (got < 0) return -1;
  u->eof = !got;
  u->end += (size_t)got;
  u->packed += (uint64_t)got;
  return 0;
}

static int fails(unpacker *u, unpack_result result, const char *why) {
  u->why = why;
  errno = result == UNPACK_MEMORYLESS ? ENOMEM : EBADMSG;
  return -1;
}

/* Passes over what stands behind the last member, as the programs do. 0; -1: errno. */
static int pass_rest(unpacker *u) {
  while (!u->eof) {
    u->begin = u->end;
    if (fill_in(u)) return -1;
  }
  return 0;
}

/* Begins the next member, behind zeros that fill a block up. 1; 0: there is none; -1: errno. */
static int next_member(unpacker *u) {
  unpack_result opened;
  for (;;) {
    while (u->begin < u->end && !u->in[u->begin]) u->begin++;
    if (u->end - u->begin >= u->library->magic_n || u->eof) break;
    if (fill_in(u)) return -1;
  }
  if (!begins(u->library, u->in + u->begin, u->end - u->begin)) return pass_rest(u);
  opened = u->library->open(&u->state);
  return opened == UNPACK_OK ? 1 : fails(u, opened, "it cannot be unpacked");
}

/* Returns what is wrong with a step's result, or NULL. */
static const char *why_not(const unpacker *u, unpack_result result) {
  if (result == UNPACK_HUGE) return "unpacking it takes too much memory";
  if (result > UNPACK_END) return "its packed bytes are damaged";
  if (u->unpacked > UNPACK_BOMB_LEAST && u->unpacked / BOMB_TIMES > u->packed)
    return "it unpacks to more than a thousand times its size";
  return NULL;
}

ssize_t unpack_read(unpacker *u, char *to, size_t n) {
  for (;;) {
    unpack_step s = {u->in + u->begin, u->end - u->begin, to, n};
    const size_t had = s.in_n;
    unpack_result result;
    const char *why;
    if (!u->state) {
      const int more = next_member(u);
      if (more <= 0) return more;
      continue;
    }
    result = u->library->step(u->state, &s);
    u->begin = u->end - s.in_n;
    u->unpacked += n - s.out_n;
    why = why_not(u, result);
    if (why) return fails(u, result, why);
    if (result == UNPACK_END) {
      u->library->close(u->state);
      u->state = NULL;
    }
    if (s.out_n < n) return (ssize_t)(n - s.out_n);
    if (result == UNPACK_END || (s.in_n && s.in_n < had)) continue;
    if (s.in_n) return fails(u, UNPACK_BROKEN, "its packed bytes are damaged"); /* nothing goes in or comes out */
    if (u->eof) return fails(u, UNPACK_BROKEN, "its packed bytes end too soon");
    if (fill_in(u)) return -1;
  }
}
