/* prefixes INDEX [MOST]: what prefixes of many terms cost beyond the postings that they stand for: for each prefix of
 * 700 to 1,024 terms of an index (MOST of them, 200, evenly spread), the least of five times of parsing it, of its ten
 * best documents and of counting them, and of adding the frequencies of its terms' postings up document by document,
 * which any way to answer has to do. `beyond`: parsing and ranking less that; mean, median, 95th and 99th percentile
 * over prefixes of like many postings, in microseconds. Part of tools/scripts/cpu_logs.sh. */
#define _POSIX_C_SOURCE 200809L
#include "gpuir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LEAST_TERMS = 700, MOST_TERMS = 1024, LONGEST = 24, ROUNDS = 5, CAP = 100000 };
enum { PARSE, TOP, COUNT, UNION, BEYOND, MEASURES };

/* A prefix and its terms. */
typedef struct prefix {
  char text[LONGEST + 2];
  size_t len;
  uint64_t from, terms, postings;
  double us[MEASURES];
} prefix;

/* What the postings are added up in. */
typedef struct sums {
  uint32_t *docids, *tfs; /* of a term */
  uint32_t *sum, *found; /* [document] the sum of its frequencies; those that have one */
} sums;

static double now(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

/* Finds the prefixes of `len` bytes whose last one is a letter or digit; returns how many there are then. */
static size_t find(const gpuir_index *ix, uint64_t terms, size_t len, prefix *found, size_t n) {
  uint64_t id = 0;
  while (id < terms && n < CAP) {
    gpuir_term_info info;
    char next[LONGEST + 2];
    uint64_t end;
    if (gpuir_term_get_info(ix, id, &info)) return n;
    if (info.term_len < len) {
      id++;
      continue;
    }
    memcpy(next, info.term, len);
    next[len] = (char)0xff; /* behind all terms that begin so, whatever follows */
    next[len + 1] = (char)0xff;
    end = gpuir_term_lower_bound(ix, next, len + 2);
    if (end <= id) end = id + 1;
    if (end - id >= LEAST_TERMS && end - id <= MOST_TERMS &&
        strchr("abcdefghijklmnopqrstuvwxyz0123456789", next[len - 1])) {
      prefix *p = &found[n++];
      memset(p, 0, sizeof *p);
      memcpy(p->text, next, len);
      p->text[len] = '*';
      p->len = len + 1;
      p->from = id;
      p->terms = end - id;
    }
    id = end;
  }
  return n;
}

/* Adds the frequencies of all postings of a prefix's terms up; returns the number of documents. */
static uint64_t unite(const gpuir_index *ix, prefix *p, sums *s) {
  uint64_t id, n = 0, i;
  p->postings = 0;
  for (id = p->from; id < p->from + p->terms; id++) {
    gpuir_term_info info;
    if (gpuir_term_get_info(ix, id, &info) || gpuir_term_postings(ix, id, s->docids, s->tfs)) return 0;
    p->postings += info.df;
    for (i = 0; i < info.df; i++) {
      uint32_t *sum = &s->sum[s->docids[i]];
      if (!*sum) s->found[n++] = s->docids[i];
      *sum += s->tfs[i];
    }
  }
  for (i = 0; i < n; i++) s->sum[s->found[i]] = 0;
  return n;
}

/* Keeps the lesser of two times. */
static void keep(double *least, double us) {
  if (*least == 0 || us < *least) *least = us;
}

/* Measures a prefix. 0; 1 if the index cannot answer it, or answers otherwise. */
static int measure(gpuir_index *ix, gpuir_searcher *s, prefix *p, sums *add) {
  int round;
  for (round = 0; round < ROUNDS; round++) {
    gpuir_query_desc desc;
    gpuir_query *q;
    gpuir_hit hits[10];
    uint64_t matches, documents;
    size_t n;
    double start = now();
    memset(&desc, 0, sizeof desc);
    desc.mode = GPUIR_OR;
    if (gpuir_query_parse(ix, &desc, p->text, p->len, &q, NULL)) return 1;
    keep(&p->us[PARSE], now() - start);
    start = now();
    if (gpuir_search(s, q, hits, 10, &n)) return 1;
    keep(&p->us[TOP], now() - start);
    start = now();
    if (gpuir_count(s, q, &matches)) return 1;
    keep(&p->us[COUNT], now() - start);
    gpuir_query_destroy(q);
    start = now();
    documents = unite(ix, p, add);
    keep(&p->us[UNION], now() - start);
    if (documents != matches) return 1;
  }
  p->us[BEYOND] = p->us[PARSE] + p->us[TOP] - p->us[UNION];
  return 0;
}

/* Prints a row a measure, of the prefixes of more than `least` postings, up to `most`. */
static void report(const prefix *p, size_t n, uint64_t least, uint64_t most) {
  static const char *const name[] = {"parse", "ten best", "count", "union", "beyond"};
  double *us = (double *)malloc((n + 1) * sizeof *us);
  int m;
  for (m = 0; us && m < MEASURES; m++) {
    double sum = 0, postings = 0;
    size_t i, k = 0;
    for (i = 0; i < n; i++) {
      if (p[i].postings <= least || p[i].postings > most) continue;
      postings += (double)p[i].postings;
      sum += us[k++] = p[i].us[m];
    }
    if (!k) break;
    qsort(us, k, sizeof *us, compare);
    printf("%lu\t%.0f\t%s\t%.1f\t%.1f\t%.1f\t%.1f\n", (unsigned long)k, postings / (double)k, name[m], sum / (double)k,
        us[k / 2], us[k * 95 / 100], us[k * 99 / 100]);
  }
  free(us);
}

int main(int argc, char **argv) {
  static const uint64_t classes[] = {0, 4096, 16384, 65536, UINT64_MAX};
  gpuir_index_info info;
  gpuir_index *ix;
  gpuir_searcher *s;
  gpuir_error err;
  static prefix p[CAP];
  static sums add;
  size_t n = 0, i, len, most = argc > 2 ? strtoul(argv[2], NULL, 10) : 200;
  double terms = 0, postings = 0;
  if (argc < 2 || !most) return 2;
  if (gpuir_open(argv[1], NULL, &ix, &err) || gpuir_searcher_create(ix, NULL, &s, &err))
    return puts(err.msg) < 0 ? 2 : 1;
  if (gpuir_index_get_info(ix, &info)) return 1;
  add.docids = (uint32_t *)malloc((info.documents + 1) * 4);
  add.tfs = (uint32_t *)malloc((info.documents + 1) * 4);
  add.found = (uint32_t *)malloc((info.documents + 1) * 4);
  add.sum = (uint32_t *)calloc(info.documents + 1, 4);
  if (!add.docids || !add.tfs || !add.found || !add.sum) return 1;
  for (len = 1; len <= LONGEST; len++) n = find(ix, info.terms, len, p, n);
  if (n < most) most = n;
  for (i = 0; i < most; i++) {
    p[i] = p[i * n / most];
    if (measure(ix, s, &p[i], &add))
      return printf("%s cannot be answered, or is answered otherwise\n", p[i].text) < 0 ? 2 : 1;
    terms += (double)p[i].terms / (double)most;
    postings += (double)p[i].postings / (double)most;
  }
  printf("# %lu of %lu prefixes, of %.0f terms and %.0f postings in the mean; %llu terms in all\n", (unsigned long)most,
      (unsigned long)n, terms, postings, (unsigned long long)info.terms);
  printf("prefixes\tpostings\twhat\tmean_us\tp50_us\tp95_us\tp99_us\n");
  for (i = 0; i < sizeof classes / sizeof *classes - 1; i++) report(p, most, classes[i], classes[i + 1]);
  gpuir_searcher_destroy(s);
  gpuir_close(ix);
  return 0;
}
