/* passage_costs.c - what the passages of hits cost, and whether they show every word; tools/scripts/passages.sh runs
 * it.
 *
 *   passage_costs INDEX QUERIES [K]
 *
 * Each line of QUERIES is searched for with OR, and passages are made of the K (10) best documents, twice: the second
 * time is measured, by the processor time of the thread. Texts are stored ones, or those of the sources, read
 * beforehand. What a hit may cost is 25 us and 20 ns for each byte of its text. Then passages are made without bounds
 * on their bytes, and must show every term of the query that the document holds, as its postings say. It prints
 *
 *   hits N, bytes N, ns a hit N, share of that: mean N, p50 N, p99 N, over N
 *   queries N, texts N, terms N, not shown N
 *
 * Exit status 0 if all terms were shown.
 */
#define _GNU_SOURCE
#include "tools/common/source.c"
#include "stored.h"

enum { PASSAGES = 64, MARKS = 4096, LINE = 4096 };

typedef struct measure {
  gpuir_index *index;
  gpuir_searcher *searcher;
  gpuir_passage_room room;
  char *base; /* where relative sources begin */
  size_t k;
  double *shares; /* [hits], of what they may cost */
  size_t hits, cap;
  uint64_t bytes, ns, over, queries, terms, missed;
} measure;

static void fail(const char *what, const char *why) {
  fprintf(stderr, "passage_costs: %s: %s\n", what, why);
  exit(2);
}

static void must(int status, const char *what) {
  if (status != GPUIR_OK) fail(what, gpuir_strerror(status));
}

static uint64_t thread_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* Finds the text of a document; *own is to be freed. NULL where there is none. */
static const char *text_of(const measure *m, uint32_t docid, char **own, size_t *len) {
  source_limits limits;
  char path[PATH_MAX];
  struct stat st;
  gpuir_doc doc;
  int fd, failed;
  *own = NULL;
  memset(&limits, 0, sizeof limits);
  limits.most = SIZE_MAX;
  must(gpuir_doc_get(m->index, docid, &doc), "document");
  *own = stored_text(m->index, docid, len);
  if (*own) return *own;
  if (source_path(m->base, "", doc.source, doc.source_len, path, sizeof path)) return NULL;
  if (source_open(path, 0, &fd, &st)) return NULL;
  failed = source_read_text(fd, &st, &doc, &limits, own, len);
  close(fd);
  return failed ? NULL : *own;
}

/* Measures the passages of one text within the tokens of a hit, the second time that they are made. */
static void measure_cost(measure *m, const gpuir_query *query, const char *text, size_t len) {
  const double budget = 25000 + 20.0 * (double)len;
  gpuir_passages_desc d;
  uint64_t begun, took;
  memset(&d, 0, sizeof d);
  d.tokens = 80;
  must(gpuir_passages(query, &d, text, len, &m->room, NULL), "passages");
  begun = thread_ns();
  must(gpuir_passages(query, &d, text, len, &m->room, NULL), "passages");
  took = thread_ns() - begun;
  if (m->hits == m->cap) {
    m->cap = m->cap ? 2 * m->cap : 1024;
    m->shares = (double *)realloc(m->shares, m->cap * sizeof *m->shares);
    if (!m->shares) fail("memory", "none");
  }
  m->shares[m->hits++] = (double)took / budget;
  m->over += (double)took > budget;
  m->bytes += len;
  m->ns += took;
}

/* Counts the query's terms that the document holds, as its postings say, and those that no passage shows. */
static void check_shown(measure *m, const gpuir_query *query, uint32_t docid, const char *text, size_t len) {
  gpuir_explanation held;
  uint64_t shown = 0;
  must(gpuir_explain(m->searcher, query, docid, &held), "explanation");
  must(gpuir_passages(query, NULL, text, len, &m->room, NULL), "passages");
  for (size_t i = 0; i < m->room.n; i++) shown |= m->room.passages[i].terms;
  for (size_t i = 0; i < held.nterms; i++) {
    if (!held.terms[i].tf) continue;
    m->terms++;
    m->missed += !(shown >> i & 1);
  }
}

static void run_query(measure *m, const char *words, size_t len) {
  gpuir_query_desc d;
  gpuir_query *query;
  gpuir_hit *hits = (gpuir_hit *)malloc(m->k * sizeof *hits);
  size_t n = 0;
  memset(&d, 0, sizeof d);
  d.mode = GPUIR_OR;
  d.no_operators = 1;
  if (!hits) fail("memory", "none");
  if (gpuir_query_parse(m->index, &d, words, len, &query, NULL) == GPUIR_OK) {
    must(gpuir_search(m->searcher, query, hits, m->k, &n), "search");
    m->queries++;
    for (size_t i = 0; i < n; i++) {
      char *own;
      size_t bytes;
      const char *text = text_of(m, hits[i].docid, &own, &bytes);
      if (!text) fail("a source", "it has changed or is gone");
      measure_cost(m, query, text, bytes);
      check_shown(m, query, hits[i].docid, text, bytes);
      free(own);
    }
    gpuir_query_destroy(query);
  }
  free(hits);
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void print(measure *m) {
  double sum = 0;
  for (size_t i = 0; i < m->hits; i++) sum += m->shares[i];
  if (!m->hits) fail("queries", "none has a hit");
  qsort(m->shares, m->hits, sizeof *m->shares, by_size);
  printf("hits %zu, bytes %llu, ns a hit %llu, share of that: mean %.3f, p50 %.3f, p99 %.3f, over %llu\n", m->hits,
      (unsigned long long)m->bytes, (unsigned long long)(m->ns / m->hits), sum / (double)m->hits,
      m->shares[m->hits / 2], m->shares[m->hits * 99 / 100], (unsigned long long)m->over);
  printf("queries %llu, texts %zu, terms %llu, not shown %llu\n", (unsigned long long)m->queries, m->hits,
      (unsigned long long)m->terms, (unsigned long long)m->missed);
}

int main(int argc, char **argv) {
  char line[LINE], *slash;
  measure m;
  FILE *f;
  memset(&m, 0, sizeof m);
  if (argc < 3 || argc > 4) fail("usage", "passage_costs INDEX QUERIES [K]");
  m.k = argc > 3 ? strtoul(argv[3], NULL, 10) : 10;
  must(gpuir_open(argv[1], NULL, &m.index, NULL), argv[1]);
  must(gpuir_searcher_create(m.index, NULL, &m.searcher, NULL), argv[1]);
  m.base = realpath(argv[1], NULL);
  if (m.base && (slash = strrchr(m.base, '/')) != NULL) *slash = 0;
  m.room.passages = (gpuir_passage *)malloc(PASSAGES * sizeof(gpuir_passage));
  m.room.cap = PASSAGES;
  m.room.marks = (gpuir_mark *)malloc(MARKS * sizeof(gpuir_mark));
  m.room.marks_cap = MARKS;
  f = fopen(argv[2], "r");
  if (!m.base || !m.k || !m.room.passages || !m.room.marks || !f) fail(argv[2], "cannot begin");
  while (fgets(line, sizeof line, f)) run_query(&m, line, strcspn(line, "\n"));
  fclose(f);
  print(&m);
  gpuir_searcher_destroy(m.searcher);
  gpuir_close(m.index);
  free(m.room.passages);
  free(m.room.marks);
  free(m.shares);
  free(m.base);
  return m.missed ? 1 : 0;
}
