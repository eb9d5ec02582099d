/* filters.c: gpuir's part of filters.py.
 *
 *     filters index TSV INDEX           a line a document: folder, extension, size, mtime, number, words, parted by tabs
 *     filters search INDEX REQUESTS N   a line a request; answers each by a line, with the least of N times
 *     filters sizes INDEX               bytes of all columns, and of each
 *
 * A request is a command, a where (or nothing), and words, parted by tabs. Commands: `and` and `or`: the ten best hits;
 * `deep`: as many hits of `or` without the where that ten of them pass it; `driven`: those that pass are counted alone;
 * `sort`: the ten last by mtime; `all`: the ten best, each posting scored; `count`; `facet`: the values of the where's
 * field, which is no where then. `cold` before a command opens the index anew for each time. An answer is the number of
 * hits or matches, the processor time in nanoseconds, the blocks decoded, the postings scored and the hits' checksum.
 */
#define _POSIX_C_SOURCE 200809L
#define GPUIR_STATIC
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-function"
#endif

enum { LINE_CAP = 1 << 20, MOST = 1 << 20, NFIELDS = 6 };

static const gpuir_field fields[NFIELDS] = {{"dir", NULL, GPUIR_PATH, 0}, {"ext", NULL, GPUIR_KEY, 0},
    {"size", NULL, GPUIR_NUMBER, 0}, {"mtime", NULL, GPUIR_DATE, 0}, {"rand", NULL, GPUIR_NUMBER, 0},
    {"key", NULL, GPUIR_KEY, 0}};

typedef struct request {
  const char *command, *where, *words;
  int cold;
} request;

typedef struct answer {
  uint64_t found, ns, blocks, postings, sum;
} answer;

static gpuir_error err;
static gpuir_hit hits[MOST];

static int stop(const char *what) {
  fprintf(stderr, "filters: %s: %s\n", what, err.msg);
  exit(1);
}

static uint64_t now(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Parts a line in place; returns how many parts there are, at most `most`. */
static unsigned part(char *line, char **parts, unsigned most) {
  unsigned n = 0;
  line[strcspn(line, "\n")] = 0;
  while (n < most) {
    parts[n++] = line;
    line = strchr(line, '\t');
    if (!line) break;
    *line++ = 0;
  }
  return n;
}

static void add(gpuir_builder *b, char **parts, uint64_t number) {
  gpuir_value values[NFIELDS];
  gpuir_doc_desc d;
  char name[24], key[24];
  unsigned i, n = 0;
  memset(&d, 0, sizeof d);
  for (i = 0; i < NFIELDS; i++) {
    gpuir_value *v = &values[n];
    memset(v, 0, sizeof *v);
    (void)snprintf(key, sizeof key, "k%s", parts[4]);
    v->field = i;
    if (fields[i].column == GPUIR_KEY || fields[i].column == GPUIR_PATH) {
      v->text = i == 5 ? key : parts[i];
      v->len = strlen(v->text);
      n += v->len > 0;
    } else {
      v->number = strtoll(parts[i], NULL, 10);
      n++;
    }
  }
  d.name = name;
  d.name_len = (size_t)snprintf(name, sizeof name, "%" PRIu64, number);
  d.values = values;
  d.nvalues = n;
  if (gpuir_builder_add_text(b, &d, parts[5], strlen(parts[5]), &err)) stop("add");
}

static int build(const char *from, const char *to) {
  FILE *in = fopen(from, "r");
  char *line = (char *)malloc(LINE_CAP), *parts[6];
  gpuir_builder_desc d;
  gpuir_builder *b;
  uint64_t number = 0;
  if (!in || !line) return stop(from);
  memset(&d, 0, sizeof d);
  d.path = to;
  d.fields = fields;
  d.nfields = NFIELDS;
  if (gpuir_builder_create(&d, &b, &err)) return stop("create");
  while (fgets(line, LINE_CAP, in))
    if (part(line, parts, 6) == 6) add(b, parts, number++);
  if (gpuir_builder_write(b, NULL, &err)) return stop("write");
  gpuir_builder_destroy(b);
  free(line);
  return fclose(in);
}

static gpuir_query *parse(const gpuir_index *ix, const request *r, const char *where) {
  gpuir_query_desc d;
  gpuir_query *q;
  memset(&d, 0, sizeof d);
  d.mode = strcmp(r->command, "and") ? GPUIR_OR : GPUIR_AND;
  d.where = *where ? where : NULL;
  d.sort = strcmp(r->command, "sort") ? NULL : "-mtime";
  d.all = !*r->words;
  if (gpuir_query_parse(ix, &d, r->words, strlen(r->words), &q, &err)) stop(r->words);
  return q;
}

/* Finds how many hits without the where there are until ten pass it. */
static size_t deep(gpuir_searcher *s, const gpuir_index *ix, const request *r) {
  gpuir_query *q = parse(ix, r, r->where), *plain = parse(ix, r, "");
  gpuir_hit last[10];
  size_t n = 0, i = 0, k = 0;
  if (gpuir_search(s, q, last, 10, &n)) stop("search");
  if (n == 10) {
    if (gpuir_search(s, plain, hits, MOST, &k)) stop("search");
    for (; i < k && hits[i].docid != last[9].docid; i++) {}
  }
  gpuir_query_destroy(q);
  gpuir_query_destroy(plain);
  return n == 10 && i < k ? i + 1 : 0;
}

/* Answers a request once. */
static void once(gpuir_searcher *s, const gpuir_query *q, const request *r, size_t k, answer *a) {
  const uint64_t begin = now();
  uint64_t matches = 0;
  size_t n = 0, i;
  if (!strcmp(r->command, "count") || !strcmp(r->command, "driven")) {
    if (gpuir_count(s, q, &matches)) stop("count");
    n = (size_t)matches;
  } else if (!strcmp(r->command, "facet")) {
    gpuir_facets *f;
    if (gpuir_facets_count(s, q, &r->where, 1, &f, &matches)) stop("facets");
    n = (size_t)matches;
    gpuir_facets_destroy(f);
  } else if (gpuir_search(s, q, hits, k, &n)) stop("search");
  a->ns = now() - begin;
  a->found = n;
  for (a->sum = i = 0; !matches && i < n; i++) a->sum = a->sum * 31 + hits[i].docid;
}

/* Answers a request n times. Returns the least time. */
static answer least(const char *path, gpuir_index *ix, gpuir_searcher *s, const request *r, unsigned n) {
  const char *where = strcmp(r->command, "deep") && strcmp(r->command, "facet") ? r->where : "";
  const size_t k = strcmp(r->command, "deep") ? 10 : deep(s, ix, r);
  answer best = {0, UINT64_MAX, 0, 0, 0};
  unsigned i;
  if (!k) best.ns = 0;
  for (i = 0; i < n && k; i++) {
    gpuir_searcher_info before, after;
    gpuir_index *mine = ix;
    gpuir_searcher *with = s;
    gpuir_query *q;
    answer a;
    if (r->cold && (gpuir_open(path, NULL, &mine, &err) || gpuir_searcher_create(mine, NULL, &with, &err))) stop(path);
    q = parse(mine, r, where);
    gpuir_searcher_get_info(with, &before);
    once(with, q, r, k, &a);
    gpuir_searcher_get_info(with, &after);
    a.blocks = after.blocks_decoded - before.blocks_decoded;
    a.postings = after.postings_scored - before.postings_scored;
    gpuir_query_destroy(q);
    if (a.ns < best.ns) best = a;
    if (!r->cold) continue;
    gpuir_searcher_destroy(with);
    gpuir_close(mine);
  }
  return best;
}

static int search(const char *path, const char *requests, unsigned n) {
  FILE *in = fopen(requests, "r");
  char *line = (char *)malloc(LINE_CAP), *parts[3];
  gpuir_searcher *s, *exhaustive;
  gpuir_searcher_desc d;
  gpuir_index *ix;
  if (!in || !line || gpuir_open(path, NULL, &ix, &err)) return stop(path);
  memset(&d, 0, sizeof d);
  if (gpuir_searcher_create(ix, &d, &s, &err)) return stop(path);
  d.evaluator = GPUIR_EVAL_EXHAUSTIVE;
  if (gpuir_searcher_create(ix, &d, &exhaustive, &err)) return stop(path);
  while (fgets(line, LINE_CAP, in)) {
    request r;
    answer a;
    if (part(line, parts, 3) != 3) return stop("a request is a command, a where and words");
    r.cold = !strncmp(parts[0], "cold ", 5);
    r.command = parts[0] + (r.cold ? 5 : 0);
    r.where = parts[1];
    r.words = parts[2];
    a = least(path, ix, strcmp(r.command, "all") ? s : exhaustive, &r, n);
    printf("%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", a.found, a.ns, a.blocks, a.postings,
        a.sum);
  }
  gpuir_searcher_destroy(s);
  gpuir_searcher_destroy(exhaustive);
  gpuir_close(ix);
  free(line);
  return fclose(in);
}

static int sizes(const char *path) {
  gpuir_index_info info;
  gpuir_index *ix;
  if (gpuir_open(path, NULL, &ix, &err)) return stop(path);
  gpuir_index_get_info(ix, &info);
  printf("%" PRIu64 "\t%" PRIu64 "\n", info.documents, info.columns_bytes);
  gpuir_close(ix);
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 4 && !strcmp(argv[1], "index")) return build(argv[2], argv[3]);
  if (argc == 5 && !strcmp(argv[1], "search")) return search(argv[2], argv[3], (unsigned)atoi(argv[4]));
  if (argc == 3 && !strcmp(argv[1], "sizes")) return sizes(argv[2]);
  fprintf(stderr, "filters: see the head of filters.c\n");
  return 2;
}
