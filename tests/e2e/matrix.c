/* matrix [-n QUERIES] [-o] QUERYFILE INDEX...: every codec x every intersection method x every docID order.
 *
 * The indexes hold the same documents, in different orders (see gpuir reorder). For each of them and each codec, the
 * lists that the queries need are written to an index of their own; there every method intersects them, decoded and
 * compressed, and the engine answers AND and OR. All must give the documents that a plain merge of the first index's
 * lists gives. Prints a TAP line for each order and codec. -o: words beginning with '-' are operators. */
#include "private.h"
#include "tools/lab/isect.h"

typedef struct query {
  char *text;
  unsigned n;
  uint64_t id[GPUIR_MAX_TERMS]; /* of its terms, in the whole index: the same in every order */
} query;

typedef struct result {
  uint32_t n, *docs; /* in the order at hand */
  uint64_t digest; /* of the documents' names, in no order */
  uint64_t ranked; /* of the best scores, AND and OR */
} result;

static query *queries;
static size_t nqueries;
static int operators;
static uint64_t *used, nused; /* the terms of all queries, ascending */
static unsigned ntests, nfailed;

static void die(const char *what, const char *why) {
  fprintf(stderr, "matrix: %s: %s\n", what, why);
  exit(2);
}

static void *room(size_t n) {
  void *p = malloc(n ? n : 1);
  if (!p) die("memory", "exhausted");
  return p;
}

static int compare64(const void *x, const void *y) {
  uint64_t a, b;
  memcpy(&a, x, sizeof a);
  memcpy(&b, y, sizeof b);
  return a < b ? -1 : a > b;
}

/* Reads up to `most` queries that are conjunctions of known terms. */
static void read_queries(const char *path, const gpuir_index *ix, size_t most) {
  FILE *f = fopen(path, "r");
  char line[4096];
  size_t i, cap = 0;
  if (!f) die(path, strerror(errno));
  while (nqueries < most && fgets(line, sizeof line, f)) {
    gpuir_query_desc desc;
    gpuir_query *q;
    char *text = strchr(line, ':');
    unsigned t, n = 0;
    text = text ? text + 1 : line;
    text[strcspn(text, "\r\n")] = 0;
    memset(&desc, 0, sizeof desc);
    desc.no_operators = !operators;
    if (gpuir_query_parse(ix, &desc, text, strlen(text), &q, NULL)) continue;
    if (nqueries == cap) {
      cap = cap ? 2 * cap : 64;
      queries = (query *)realloc(queries, cap * sizeof *queries);
      if (!queries) die("memory", "exhausted");
    }
    for (t = 0; t < q->n && q->terms[t].df && !q->terms[t].negated; t++)
      queries[nqueries].id[n++] = gpuir__query_id(q, 0, t);
    if (n && n == q->n) {
      queries[nqueries].n = n;
      queries[nqueries].text = (char *)room(strlen(text) + 1);
      strcpy(queries[nqueries++].text, text);
    }
    gpuir_query_destroy(q);
  }
  (void)fclose(f);
  if (!nqueries) die(path, "no query all of whose terms are in the index");
  used = (uint64_t *)room(nqueries * GPUIR_MAX_TERMS * 8);
  for (i = 0; i < nqueries; i++) {
    unsigned t;
    for (t = 0; t < queries[i].n; t++) used[nused++] = queries[i].id[t];
  }
  qsort(used, nused, 8, compare64);
  for (cap = i = 0; i < nused; i++)
    if (!cap || used[cap - 1] != used[i]) used[cap++] = used[i];
  nused = cap;
}

/* One order's lists, decoded, and what identifies its documents. */
typedef struct order {
  const char *path;
  gpuir_index *ix;
  uint64_t ndocs, *name; /* a hash of each document's name, source lines and length */
  uint32_t **docs, **tfs, *df;
  result *truth;
} order;

static size_t slot_of(uint64_t id) {
  size_t lo = 0, hi = nused;
  while (hi - lo > 1) {
    size_t mid = (lo + hi) / 2;
    if (used[mid] <= id) lo = mid;
    else hi = mid;
  }
  return lo;
}

static uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

static uint64_t digest_of(const order *o, const uint32_t *docs, uint32_t n) {
  uint64_t sum = n;
  uint32_t i;
  for (i = 0; i < n; i++) sum += mix(o->name[docs[i]]);
  return sum;
}

/* The plain merge: two lists at a time, one docID at a time. */
static uint32_t merge(uint32_t *a, uint32_t n, const uint32_t *b, uint32_t m) {
  uint32_t i = 0, j = 0, k = 0;
  while (i < n && j < m) {
    if (a[i] == b[j]) a[k++] = a[i];
    if (a[i] < b[j]) i++;
    else j++;
  }
  return k;
}

static void load(order *o, const char *path) {
  gpuir_error err;
  gpuir_index_info info;
  uint32_t d;
  o->path = path;
  if (gpuir_open(path, NULL, &o->ix, &err)) die(path, err.msg);
  if (gpuir_index_get_info(o->ix, &info)) die(path, "has no statistics");
  o->ndocs = info.documents;
  o->name = (uint64_t *)room((size_t)o->ndocs * 8);
  for (d = 0; d < o->ndocs; d++) {
    char name[4096];
    gpuir_doc doc;
    if (gpuir_doc_get(o->ix, d, &doc)) die(path, "lacks a document");
    if (gpuir_doc_name(&doc, name, sizeof name) >= sizeof name) die(path, "has a long name");
    o->name[d] = XXH3_64bits_withSeed(name, doc.name_len, (uint64_t)doc.first_line << 32 | (doc.length * 2654435761u));
  }
}

static void load_lists(order *o) {
  size_t i;
  o->docs = (uint32_t **)room(nused * sizeof *o->docs);
  o->tfs = (uint32_t **)room(nused * sizeof *o->tfs);
  o->df = (uint32_t *)room(nused * 4);
  for (i = 0; i < nused; i++) {
    gpuir_term_info t;
    if (gpuir_term_get_info(o->ix, used[i], &t)) die(o->path, "lacks a term");
    o->df[i] = t.df;
    o->docs[i] = (uint32_t *)room((size_t)t.df * 4 + 64);
    o->tfs[i] = (uint32_t *)room((size_t)t.df * 4);
    if (gpuir_term_postings(o->ix, used[i], o->docs[i], o->tfs[i])) die(o->path, "damaged list");
  }
  o->truth = (result *)room(nqueries * sizeof *o->truth);
  for (i = 0; i < nqueries; i++) {
    const query *q = &queries[i];
    size_t s = slot_of(q->id[0]);
    result *r = &o->truth[i];
    unsigned t;
    r->n = o->df[s];
    r->docs = (uint32_t *)room((size_t)r->n * 4);
    memcpy(r->docs, o->docs[s], (size_t)r->n * 4);
    for (t = 1; t < q->n; t++) {
      s = slot_of(q->id[t]);
      r->n = merge(r->docs, r->n, o->docs[s], o->df[s]);
    }
    r->digest = digest_of(o, r->docs, r->n);
    r->ranked = 0;
  }
}

/* An index of the queries' lists alone, in one codec. */
static gpuir_index *subset(const order *o, const char *codec, const char *path) {
  gpuir_builder_desc desc;
  gpuir_builder *b;
  gpuir_index *ix;
  gpuir_error err;
  uint32_t d;
  size_t i;
  memset(&desc, 0, sizeof desc);
  desc.path = path;
  desc.like = o->ix;
  desc.codec = codec;
  if (gpuir_builder_create(&desc, &b, &err)) die(path, err.msg);
  for (d = 0; d < o->ndocs; d++)
    if (gpuir_builder_add_doc(b, NULL, gpuir__only(o->ix)->lengths[d], NULL, 0, &err)) die(path, err.msg);
  for (i = 0; i < nused; i++) {
    gpuir_term_info t;
    if (gpuir_term_get_info(o->ix, used[i], &t)) die(o->path, "lacks a term");
    if (gpuir_builder_add_list(b, t.term, t.term_len, o->docs[i], o->tfs[i], NULL, o->df[i], &err)) die(path, err.msg);
  }
  if (gpuir_builder_write(b, NULL, &err)) die(path, err.msg);
  gpuir_builder_destroy(b);
  if (gpuir_open(path, NULL, &ix, &err)) die(path, err.msg);
  (void)unlink(path);
  return ix;
}

/* 0, or what went wrong with one query and method. ix: compressed lists; NULL: decoded ones. */
static const char *intersect(const order *o, const gpuir_index *ix, size_t number, const gpuir__method *m) {
  const query *q = &queries[number];
  const result *truth = &o->truth[number];
  const uint32_t *docs[GPUIR_MAX_TERMS];
  uint32_t n[GPUIR_MAX_TERMS], least = UINT32_MAX, found, *out;
  gpuir__list lists[GPUIR_MAX_TERMS];
  const gpuir__list *list[GPUIR_MAX_TERMS];
  gpuir__isect x;
  const char *wrong = NULL;
  unsigned t;
  int status = 0;
  for (t = 0; t < q->n; t++) {
    size_t s = slot_of(q->id[t]);
    docs[t] = o->docs[s];
    n[t] = o->df[s];
    if (n[t] < least) least = n[t];
    list[t] = &lists[t];
    if (ix && gpuir__list_open(gpuir__only(ix), &ix->a, s, &lists[t])) die(o->path, "cannot open a list");
  }
  status = ix ? gpuir__isect_lists(&x, NULL, m, list, q->n, GPUIR_SIMD_AUTO)
              : gpuir__isect_arrays(&x, NULL, m, docs, n, q->n, GPUIR_SIMD_AUTO);
  out = (uint32_t *)room(((size_t)least + 16) * 4);
  if (status) {
    wrong = gpuir_strerror(status);
  } else {
    found = gpuir__isect_run(&x, out, NULL);
    if (found != truth->n || (found && memcmp(out, truth->docs, (size_t)found * 4) != 0)) wrong = "other documents";
  }
  gpuir__isect_free(&x);
  for (t = 0; ix && t < q->n; t++) gpuir__list_close(&ix->a, &lists[t]);
  free(out);
  return wrong;
}

/* The engine's best scores for AND and OR, and its count, as a digest that does not depend on the docIDs. */
static uint64_t ranked(gpuir_index *ix, const query *q, uint64_t *count) {
  enum { K = 100 };
  gpuir_searcher *s;
  uint64_t sum = 0;
  int mode;
  if (gpuir_searcher_create(ix, NULL, &s, NULL)) die("searcher", "cannot be made");
  for (mode = GPUIR_AND; mode <= GPUIR_OR; mode++) {
    gpuir_query_desc desc;
    gpuir_query *parsed;
    gpuir_hit hits[K];
    size_t n = 0, i;
    memset(&desc, 0, sizeof desc);
    desc.mode = mode;
    desc.no_operators = !operators;
    if (gpuir_query_parse(ix, &desc, q->text, strlen(q->text), &parsed, NULL) || gpuir_search(s, parsed, hits, K, &n) ||
        (mode == GPUIR_AND && gpuir_count(s, parsed, count)))
      die(q->text, "cannot be answered");
    for (i = 0; i < n; i++) sum = mix(sum + hits[i].score);
    gpuir_query_destroy(parsed);
  }
  gpuir_searcher_destroy(s);
  return sum;
}

static void report(const char *wrong, const order *o, const char *what, const char *codec, uint64_t n) {
  const char *base = strrchr(o->path, '/');
  printf("%sok %u - %s %s: %llu %s%s%s\n", wrong ? "not " : "", ++ntests, base ? base + 1 : o->path, codec,
      (unsigned long long)n, what, wrong ? ": " : "", wrong ? wrong : "");
  nfailed += wrong != NULL;
  (void)fflush(stdout);
}

/* All methods on all queries of one order in one codec (NULL: decoded). */
static void check(const order *o, const order *first, const char *codec, const char *path) {
  gpuir_index *ix = codec ? subset(o, codec, path) : NULL;
  const gpuir__method *m;
  const char *wrong = NULL;
  size_t i, k;
  uint64_t done = 0;
  for (k = 0, m = gpuir__methods; k < GPUIR__METHODS; k++, m++)
    for (i = 0; i < nqueries; i++, done++) {
      const char *w = intersect(o, ix, i, m);
      if (w && !wrong) {
        wrong = w;
        printf("# %s, %s, query \"%s\"\n", m->name, w, queries[i].text);
      }
    }
  report(wrong, o, "intersections", codec ? codec : "decoded", done);
  if (!ix) return;
  for (wrong = NULL, i = 0; i < nqueries; i++) {
    uint64_t count = 0, digest = ranked(ix, &queries[i], &count);
    result *truth = &first->truth[i];
    if (!truth->ranked) truth->ranked = digest;
    if (digest != truth->ranked || count != truth->n) {
      wrong = "other scores or counts";
      printf("# query \"%s\"\n", queries[i].text);
    }
  }
  report(wrong, o, "queries ranked", codec, 2 * nqueries);
  gpuir_close(ix);
}

int main(int argc, char **argv) {
  order *orders;
  char path[512];
  size_t most = 1000, i;
  int at = 1, norders, k;
  for (; at < argc && argv[at][0] == '-'; at++) {
    if (!strcmp(argv[at], "-o")) operators = 1;
    else if (!strcmp(argv[at], "-n") && at + 1 < argc) most = (size_t)strtoul(argv[++at], NULL, 10);
  }
  if (argc - at < 2) die("usage", "matrix [-n QUERIES] [-o] QUERYFILE INDEX...");
  norders = argc - at - 1;
  orders = (order *)room((size_t)norders * sizeof *orders);
  (void)snprintf(path, sizeof path, "%.400s/gpuir-matrix-%ld", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
      (long)getpid());
  for (k = 0; k < norders; k++) {
    order *o = &orders[k];
    const char *wrong = NULL;
    load(o, argv[at + 1 + k]);
    if (!k) read_queries(argv[at], o->ix, most);
    load_lists(o);
    for (i = 0; i < nqueries; i++)
      if (o->truth[i].digest != orders[0].truth[i].digest) wrong = "other documents than in the first order";
    report(wrong, o, "queries merged", "decoded", nqueries);
    check(o, &orders[0], NULL, path);
    for (i = 0; i < GPUIR__DOCID_CODECS; i++) check(o, &orders[0], gpuir__docid_codecs[i].name, path);
    check(o, &orders[0], "auto", path);
  }
  printf("1..%u\n", ntests);
  return nfailed != 0;
}
