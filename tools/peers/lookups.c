/* lookups INDEX [LOOKUPS]: how long look-ups take, of terms of an index drawn at random and of words near them that it
 * lacks: one at once by gpuir_term_find, and 4 and 8 by gpuir_terms_find, as queries look their words up. The mean of
 * the fastest of nine passes, and the median and the 99th percentile of what one call takes, less the clock's time,
 * divided by its look-ups. The last row is what the machine's memory takes: loads, each of a line that the one before
 * names, out of as many bytes as the dictionary has. Part of tools/scripts/cpu_logs.sh, which defines
 * GPUIR_IMPLEMENTATION. */
#define _POSIX_C_SOURCE 200809L
#include "gpuir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PASSES = 9, MOST = 8, LINE = 64 };

static uint64_t now(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

/* The words that are looked up, one behind the other, so that reading them costs little. */
typedef struct words {
  char *text;
  uint8_t *len;
  uint32_t *ns; /* of each look-up */
  size_t n;
} words;

/* Draws terms; with `other`, the last byte of each becomes another one, which few terms have there. */
static int draw(words *w, const gpuir_index *ix, uint64_t terms, int other) {
  uint64_t seed = 7;
  char *to = w->text;
  size_t i;
  for (i = 0; i < w->n; i++) {
    gpuir_term_info info;
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    if (gpuir_term_get_info(ix, (seed >> 20) % terms, &info)) return 1;
    memcpy(to, info.term, info.term_len);
    w->len[i] = (uint8_t)info.term_len;
    if (other) to[info.term_len - 1] = '\1';
    to += info.term_len;
  }
  return 0;
}

/* Looks `many` words up at once, of which the first is number i at *text; returns how many the index has. */
static uint64_t look(const words *w, const gpuir_index *ix, size_t i, size_t many, const char **text) {
  const char *terms[MOST];
  size_t lens[MOST], j;
  uint64_t ids[MOST], found = 0;
  for (j = 0; j < many; j++) {
    terms[j] = *text;
    lens[j] = w->len[i + j];
    *text += lens[j];
  }
  if (many == 1) return gpuir_term_find(ix, terms[0], lens[0], ids) == GPUIR_OK;
  (void)gpuir_terms_find(ix, terms, lens, many, ids);
  for (j = 0; j < many; j++) found += ids[j] != UINT64_MAX;
  return found;
}

/* Returns the time of a pass over all words, in ns; *found: how many the index has. */
static uint64_t pass(const words *w, const gpuir_index *ix, size_t many, uint64_t *found) {
  const char *text = w->text;
  const uint64_t start = now();
  size_t i;
  for (*found = i = 0; i < w->n; i += many) *found += look(w, ix, i, many, &text);
  return now() - start;
}

/* Measures each call, and sorts their times by look-up; returns how many they are. */
static size_t each(words *w, const gpuir_index *ix, size_t many) {
  const char *text = w->text;
  uint64_t clock = UINT64_MAX;
  size_t i;
  for (i = 0; i < 1000; i++) {
    const uint64_t start = now(), took = now() - start;
    if (took < clock) clock = took;
  }
  for (i = 0; i < w->n; i += many) {
    const uint64_t start = now();
    uint64_t took;
    (void)look(w, ix, i, many, &text);
    took = now() - start;
    w->ns[i / many] = (uint32_t)((took > clock ? took - clock : 0) / many);
  }
  qsort(w->ns, w->n / many, sizeof *w->ns, compare);
  return w->n / many;
}

/* Measures look-ups of `many` words at once and prints a row. */
static void measure(words *w, const gpuir_index *ix, const char *name, uint64_t terms, size_t many) {
  uint64_t best = UINT64_MAX, found = 0;
  size_t n;
  int i;
  for (i = 0; i < PASSES; i++) {
    const uint64_t took = pass(w, ix, many, &found);
    if (took < best) best = took;
  }
  n = each(w, ix, many);
  printf("%s\t%u\t%llu\t%lu\t%llu\t%.1f\t%u\t%u\n", name, (unsigned)many, (unsigned long long)terms,
      (unsigned long)w->n, (unsigned long long)found, (double)best / (double)w->n, (unsigned)w->ns[n / 2],
      (unsigned)w->ns[n / 100 * 99]);
}

/* A line of memory that names another one. */
typedef struct line {
  uint64_t next;
  char rest[LINE - sizeof(uint64_t)];
} line;

/* Returns the time of so many loads from line to line, in ns. */
static uint64_t chase(const line *lines, size_t loads) {
  const uint64_t start = now();
  volatile uint64_t end;
  uint64_t at = 0;
  for (; loads; loads--) at = lines[at].next;
  end = at;
  (void)end;
  return now() - start;
}

/* Prints the row of the memory: all lines of `bytes` bytes stand in one ring, in random order. */
static int measure_memory(uint64_t bytes, size_t loads) {
  const size_t n = (size_t)(bytes / LINE) + 2;
  line *lines = (line *)calloc(n, sizeof *lines);
  uint64_t seed = 7, best = UINT64_MAX;
  size_t i;
  int pass_number;
  if (!lines) return 1;
  for (i = 0; i < n; i++) lines[i].next = i;
  for (i = n - 1; i; i--) {
    uint64_t j, next;
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    j = (seed >> 20) % i; /* never i itself: so all lines stand in one ring (Sattolo 1986) */
    next = lines[i].next, lines[i].next = lines[j].next, lines[j].next = next;
  }
  for (pass_number = 0; pass_number < PASSES; pass_number++) {
    const uint64_t took = chase(lines, loads);
    if (took < best) best = took;
  }
  printf("memory\t1\t-\t%lu\t-\t%.1f\t-\t-\n", (unsigned long)loads, (double)best / (double)loads);
  free(lines);
  return 0;
}

int main(int argc, char **argv) {
  gpuir_index_info info;
  gpuir_index *ix;
  gpuir_error err;
  static words w;
  int other;
  if (argc < 2) return 2;
  if (gpuir_open(argv[1], NULL, &ix, &err)) return puts(err.msg) < 0 ? 2 : 1;
  if (gpuir_index_get_info(ix, &info) || !info.terms || info.segments != 1) return 1;
  w.n = (argc > 2 ? strtoul(argv[2], NULL, 10) : 1000000) / MOST * MOST;
  w.text = (char *)malloc(w.n * GPUIR_MAX_TERM + 1);
  w.len = (uint8_t *)malloc(w.n + 1);
  w.ns = (uint32_t *)malloc((w.n + 1) * sizeof *w.ns);
  if (!w.n || !w.text || !w.len || !w.ns) return 1;
  printf("words\tat_once\tterms\tlookups\tfound\tmean_ns\tp50_ns\tp99_ns\n");
  for (other = 0; other < 2; other++) {
    const char *name = other ? "absent" : "present";
    if (draw(&w, ix, info.terms, other)) return 1;
    measure(&w, ix, name, info.terms, 1);
    measure(&w, ix, name, info.terms, 4);
    measure(&w, ix, name, info.terms, 8);
  }
  if (measure_memory(info.dictionary_bytes, w.n)) return 1;
  gpuir_close(ix);
  return 0;
}
