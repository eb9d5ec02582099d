/* reorder.c - gpuir reorder: writes an index anew with its documents in another order.
 *
 * First the order is found, as an array that gives the old docID at each new one; then documents and lists are
 * written in it. Whatever is done by several threads has a result that does not depend on them. */
#include "../cli/cli.h"

#include "bisect.h"
#include "pagerank.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define MEBIBYTE ((uint64_t)1 << 20)
#define MOST_THREADS 256

enum { BY_RANDOM, BY_NAME, BY_FILE, BY_SCORE, BY_PAGERANK, BY_BISECT };

typedef struct reorder {
  const char *input, *output;
  gpuir_index *index;
  gpuir_index_info info;
  uint32_t documents; /* info.documents */
  int kind;
  char name[32]; /* of the order, for the index; files are left out */
  const char *file; /* of BY_FILE, BY_SCORE and BY_PAGERANK */
  uint64_t seed;
  uint64_t memory;
  unsigned threads;
  const char *codec; /* NULL: as before */
  uint32_t *order; /* old docID at each new one */
  uint32_t *map; /* new docID of each old one */
  uint32_t longest; /* df of the longest list */
  uint64_t frequent; /* the greatest cf */
  uint64_t min_df; /* of the terms that bisection looked at */
  uint64_t unlisted; /* documents that the file did not name */
  uint64_t unlinked; /* those that have no links in the graph */
  int quiet, terminal;
  double begin, shown, ordered; /* seconds */
  gpuir_build_report report;
} reorder;

/* ---- messages, memory, threads -------------------------------------------------------------- */

static void show(reorder *r, const char *what, double done) {
  double now = cli_seconds();
  char bar[23], line[80];
  if (!r->terminal || now - r->shown < 0.1) return;
  r->shown = now;
  memset(bar, ' ', sizeof bar);
  bar[0] = '[', bar[21] = ']', bar[22] = 0;
  for (int i = 0; i < (int)(done * 20); i++) bar[1 + i] = '#';
  snprintf(line, sizeof line, "%s %s %3d %%", what, bar, (int)(done * 100));
  cli_status(line);
}

/* Returns whether so many bytes are within the budget; otherwise a message, and CLI_FAIL. */
static int check_memory(const reorder *r, uint64_t bytes, const char *what) {
  if (bytes <= r->memory) return CLI_OK;
  cli_error("%s: %s needs %llu MB, --memory allows %llu", r->input, what, (unsigned long long)(bytes / MEBIBYTE + 1),
      (unsigned long long)(r->memory / MEBIBYTE));
  return CLI_FAIL;
}

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Runs work(context) on so many threads, the caller's among them; fewer do the same work. */
static void run_threads(unsigned n, void *(*work)(void *), void *context) {
  pthread_t thread[MOST_THREADS];
  unsigned started = 0;
  while (started + 1 < n && started < MOST_THREADS && !pthread_create(&thread[started], NULL, work, context)) started++;
  (void)work(context);
  while (started) pthread_join(thread[--started], NULL);
}

/* ---- order: random -------------------------------------------------------------- */

/* Uniform in [0, n): Lemire, Fast random integer generation in an interval (ACM TOMACS 29(1), 2019). */
static uint32_t random_below(uint64_t *state, uint32_t n) {
  uint64_t m = (cli_random(state) >> 32) * n;
  if ((uint32_t)m < n)
    for (uint32_t least = (0u - n) % n; (uint32_t)m < least;) m = (cli_random(state) >> 32) * n;
  return (uint32_t)(m >> 32);
}

/* Fisher and Yates, as by Durstenfeld (CACM 7(7), 1964). */
static int order_random(reorder *r) {
  uint64_t state = r->seed;
  for (uint32_t i = r->documents; i > 1; i--) {
    uint32_t j = random_below(&state, i), doc = r->order[j];
    r->order[j] = r->order[i - 1];
    r->order[i - 1] = doc;
  }
  return CLI_OK;
}

/* ---- orders by a key -------------------------------------------------------------- */

typedef struct entry {
  union {
    const char *name;
    double score;
  } key;
  uint32_t len; /* of the name; or whether there is a score */
  uint32_t doc;
} entry;

/* Orders of entries, in which no two are equal: less than 0 when a comes first. */
typedef int (*entry_order)(const entry *a, const entry *b);

static int by_doc(const entry *a, const entry *b) { return a->doc < b->doc ? -1 : 1; }

static int by_name(const entry *a, const entry *b) {
  size_t n = a->len < b->len ? a->len : b->len;
  int c = n ? memcmp(a->key.name, b->key.name, n) : 0;
  if (!c && a->len != b->len) c = a->len < b->len ? -1 : 1;
  return c ? c : by_doc(a, b);
}

static int by_score(const entry *a, const entry *b) {
  if (!a->len != !b->len) return a->len ? -1 : 1;
  if (a->len && a->key.score != b->key.score) return a->key.score > b->key.score ? -1 : 1;
  return by_doc(a, b);
}

static void entry_swap(entry *a, entry *b) {
  entry x = *a;
  *a = *b;
  *b = x;
}

/* Quicksort with pivots drawn at random, in place: qsort may take as much memory again. */
static void sort_entries(entry *a, size_t n, entry_order order) {
  uint64_t state = n;
  while (n > 1) {
    entry pivot = a[(size_t)(cli_random(&state) % n)];
    size_t i = 0, j = n - 1;
    for (;;) {
      while (a[i].doc != pivot.doc && order(&a[i], &pivot) < 0) i++;
      while (a[j].doc != pivot.doc && order(&a[j], &pivot) > 0) j--;
      if (i >= j) break;
      entry_swap(&a[i], &a[j]);
    }
    /* the smaller part by recursion, so that it is not deep */
    if (i < n - i) {
      sort_entries(a, i, order);
      a += i + 1;
      n -= i + 1;
    } else {
      sort_entries(a + i + 1, n - i - 1, order);
      n = i;
    }
  }
}

/* Not 0 after a message. */
static int get_doc(const reorder *r, uint32_t docid, gpuir_doc *doc) {
  int status = gpuir_doc_get(r->index, docid, doc);
  if (!status) return CLI_OK;
  cli_error("%s: document %lu: %s", r->input, (unsigned long)docid, gpuir_strerror(status));
  return CLI_FAIL;
}

static int take_entries(reorder *r, entry *e, entry_order order) {
  sort_entries(e, r->documents, order);
  for (uint32_t i = 0; i < r->documents; i++) r->order[i] = e[i].doc;
  return CLI_OK;
}

/* Bytes of the names that the index does not have in one piece. */
static int joined_names(const reorder *r, uint64_t *bytes) {
  gpuir_doc doc;
  *bytes = 0;
  for (uint32_t i = 0; i < r->documents; i++) {
    if (get_doc(r, i, &doc)) return CLI_FAIL;
    if (doc.name_piece_len[1]) *bytes += doc.name_len;
  }
  return CLI_OK;
}

static int order_name(reorder *r) {
  uint64_t joined, used = 0;
  int code = joined_names(r, &joined);
  if (!code) code = check_memory(r, (uint64_t)r->documents * (sizeof(entry) + 4) + joined, "ordering by name");
  if (code) return code;
  entry *e = (entry *)cli_resize(NULL, r->documents, sizeof *e);
  char *names = (char *)cli_resize(NULL, joined + 1, 1);
  for (uint32_t i = 0; i < r->documents && !code; i++) {
    gpuir_doc doc;
    code = get_doc(r, i, &doc);
    if (code) break;
    e[i].key.name = doc.name_piece[0];
    if (doc.name_piece_len[1]) {
      e[i].key.name = names + used;
      used += gpuir_doc_name(&doc, names + used, joined + 1 - used);
    }
    e[i].len = (uint32_t)doc.name_len;
    e[i].doc = i;
  }
  if (!code) code = take_entries(r, e, by_name);
  free(names);
  free(e);
  return code;
}

/* ---- documents by name -------------------------------------------------------------- */

typedef struct name_table {
  uint32_t *slots; /* docIDs; GPUIR_END: free */
  uint64_t mask;
  uint8_t *shared; /* a bit for each docID: others have its name, too */
  cli_buf name; /* of the document that is being put in */
} name_table;

static uint64_t name_table_slots(uint32_t documents) {
  uint64_t n = 16;
  while (n * 3 / 4 < documents) n *= 2;
  return n;
}

static uint64_t name_table_memory(uint32_t documents) { return name_table_slots(documents) * 4 + documents / 8 + 1; }

/* Returns whether these are the bytes of the document's name. */
static int has_name(const gpuir_doc *doc, const char *name) {
  const size_t first = doc->name_piece_len[0], rest = doc->name_piece_len[1];
  return (!first || !memcmp(name, doc->name_piece[0], first)) &&
      (!rest || !memcmp(name + first, doc->name_piece[1], rest));
}

/* Returns the slot of the document with this name, or the free one where it would stand; NULL after a message. */
static uint32_t *name_table_slot(const name_table *t, const reorder *r, const char *name, size_t len) {
  uint64_t at = XXH3_64bits(name, len);
  for (;; at++) {
    uint32_t *slot = &t->slots[at & t->mask];
    gpuir_doc other;
    if (*slot == GPUIR_END) return slot;
    if (get_doc(r, *slot, &other)) return NULL;
    if (len == other.name_len && has_name(&other, name)) return slot;
  }
}

static void name_table_free(name_table *t) {
  free(t->slots);
  free(t->shared);
  cli_buf_free(&t->name);
}

static int name_table_fill(name_table *t, const reorder *r) {
  uint64_t n = name_table_slots(r->documents);
  t->slots = (uint32_t *)cli_resize(NULL, n, sizeof *t->slots);
  t->shared = (uint8_t *)cli_resize(NULL, r->documents / 8 + 1, 1);
  t->mask = n - 1;
  memset(t->slots, 0xff, n * sizeof *t->slots);
  memset(t->shared, 0, r->documents / 8 + 1);
  for (uint32_t i = 0; i < r->documents; i++) {
    gpuir_doc doc;
    if (get_doc(r, i, &doc)) return CLI_FAIL;
    uint32_t *slot = name_table_slot(t, r, cli_doc_name(&t->name, &doc), doc.name_len);
    if (!slot) return CLI_FAIL;
    if (*slot == GPUIR_END) *slot = i;
    else t->shared[*slot / 8] |= (uint8_t)(1u << (*slot % 8));
  }
  return CLI_OK;
}

/* ---- files of documents -------------------------------------------------------------- */

typedef struct lines {
  const reorder *r;
  text_reader in;
  uint64_t number; /* of the line last read, from 1 */
} lines;

static int bad_line(const lines *l, const char *text, size_t len, const char *why) {
  cli_error("%s: line %llu: '%.*s%s' %s", l->r->file, (unsigned long long)l->number, (int)smaller(len, 200), text,
      len > 200 ? "..." : "", why);
  return CLI_FAIL;
}

static int lines_open(lines *l, const reorder *r) {
  memset(l, 0, sizeof *l);
  l->r = r;
  int fd = open(r->file, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    cli_error("%s: %s", r->file, strerror(errno));
    return CLI_FAIL;
  }
  cli_reader_open(&l->in, fd, CLI_MAX_LINE);
  return CLI_OK;
}

static void lines_close(lines *l) {
  close(l->in.fd);
  reader_close(&l->in);
}

/* The next line without its end. 1; 0 at the end of the file; -1 after a message. */
static int lines_next(lines *l, char **text, size_t *len) {
  uint64_t got = 0;
  char why[CLI_COUNTED];
  int more = reader_lines(&l->in, 1, text, len, &got);
  if (more < 0 && !cli_signal)
    cli_error("%s: line %llu: %s", l->r->file, (unsigned long long)l->number + 1, cli_reader_why(&l->in, why));
  if (cli_signal) return -1;
  if (more <= 0) return more;
  l->number++;
  if (*len && (*text)[*len - 1] == '\n') --*len;
  return 1;
}

/* Returns the one document that a line names; GPUIR_END after a message. */
static uint32_t line_document(const lines *l, const name_table *t, const char *name, size_t len) {
  uint32_t *slot = name_table_slot(t, l->r, name, len);
  if (!slot) return GPUIR_END;
  if (*slot == GPUIR_END) bad_line(l, name, len, "names no document");
  else if (t->shared[*slot / 8] >> (*slot % 8) & 1) bad_line(l, name, len, "is the name of several documents");
  else return *slot;
  return GPUIR_END;
}

/* One name a line. The documents that no line names stand behind, in their old order. */
static int read_order(reorder *r, lines *l, const name_table *t, uint8_t *listed) {
  uint32_t n = 0, docid;
  char *text = NULL;
  size_t len = 0;
  int more;
  while ((more = lines_next(l, &text, &len)) > 0) {
    docid = line_document(l, t, text, len);
    if (docid == GPUIR_END) return CLI_FAIL;
    if (listed[docid]) return bad_line(l, text, len, "is listed twice");
    listed[docid] = 1;
    r->order[n++] = docid;
  }
  r->unlisted = r->documents - n;
  for (docid = 0; docid < r->documents; docid++)
    if (!listed[docid]) r->order[n++] = docid;
  return more < 0 ? CLI_FAIL : CLI_OK;
}

static int order_file(reorder *r) {
  name_table t = {NULL, 0, NULL, {NULL, 0, 0}};
  lines l;
  int code = check_memory(r, (uint64_t)r->documents * 5 + name_table_memory(r->documents), "looking names up");
  if (code || lines_open(&l, r)) return CLI_FAIL;
  uint8_t *listed = (uint8_t *)cli_resize(NULL, r->documents, 1);
  memset(listed, 0, r->documents);
  code = name_table_fill(&t, r);
  if (!code) code = read_order(r, &l, &t, listed);
  free(listed);
  name_table_free(&t);
  lines_close(&l);
  return code;
}

/* A real number in plain decimal notation that is the whole text. */
static int parse_score(const char *text, size_t len, double *out) {
  char copy[64], *end = NULL;
  if (!len || len >= sizeof copy) return -1;
  memcpy(copy, text, len);
  copy[len] = 0;
  if (copy[strspn(copy, "0123456789.eE+-")]) return -1;
  *out = strtod(copy, &end);
  return *end || *out > 1.7e308 || *out < -1.7e308 ? -1 : 0;
}

/* A line with a score alone is about the next document, one with a name and a tab before it about that one; the first
 * line tells which lines these are. */
static int read_score(lines *l, const name_table *t, entry *e, uint32_t *next, int named, char *text, size_t len) {
  size_t name = 0, score = 0;
  uint32_t docid = *next;
  if (named) {
    for (score = len; score && text[score - 1] != '\t'; score--) {}
    if (!score) return bad_line(l, text, len, "has no tab between a name and a score");
    name = score - 1;
    docid = line_document(l, t, text, name);
    if (docid == GPUIR_END) return CLI_FAIL;
    if (e[docid].len) return bad_line(l, text, name, "is listed twice");
  } else if (docid == l->r->documents) {
    return bad_line(l, text, len, "is a score without a document: the index has fewer");
  }
  if (parse_score(text + score, len - score, &e[docid].key.score))
    return bad_line(l, text + score, len - score, "is not a number");
  e[docid].len = 1;
  ++*next;
  return CLI_OK;
}

static int read_scores(reorder *r, lines *l, name_table *t, entry *e) {
  int more, named = 0, code = CLI_OK;
  uint32_t n = 0;
  char *text = NULL;
  size_t len = 0;
  while (!code && (more = lines_next(l, &text, &len)) != 0) {
    if (more < 0) return CLI_FAIL;
    if (l->number == 1) {
      named = memchr(text, '\t', len) != NULL;
      if (named) code = name_table_fill(t, r);
    }
    if (!code) code = read_score(l, t, e, &n, named, text, len);
  }
  r->unlisted = r->documents - n;
  if (code || named || !r->unlisted) return code;
  cli_error("%s: line %llu: the scores end, for %llu of %llu documents", r->file, (unsigned long long)l->number,
      (unsigned long long)n, (unsigned long long)r->documents);
  return CLI_FAIL;
}

/* The highest score first; documents without one behind. */
static int order_score(reorder *r) {
  name_table t = {NULL, 0, NULL, {NULL, 0, 0}};
  lines l;
  uint64_t need = (uint64_t)r->documents * (4 + sizeof(entry)) + name_table_memory(r->documents);
  int code = check_memory(r, need, "ordering by score");
  if (code || lines_open(&l, r)) return CLI_FAIL;
  entry *e = (entry *)cli_resize(NULL, r->documents, sizeof *e);
  for (uint32_t i = 0; i < r->documents; i++) {
    memset(&e[i], 0, sizeof e[i]);
    e[i].doc = i;
  }
  code = read_scores(r, &l, &t, e);
  name_table_free(&t);
  if (!code) code = take_entries(r, e, by_score);
  free(e);
  lines_close(&l);
  return code;
}

/* ---- order: PageRank -------------------------------------------------------------- */

/* A link a line: names with a tab between them. */
static int read_links(lines *l, pagerank *g) {
  char *text = NULL;
  size_t len = 0;
  int more;
  while ((more = lines_next(l, &text, &len)) > 0) {
    const char *tab = (const char *)memchr(text, '\t', len);
    if (!tab) return bad_line(l, text, len, "has no tab between two names");
    const size_t from = (size_t)(tab - text), to = len - from - 1;
    if (!from || !to) return bad_line(l, text, len, "has an empty name");
    if (memchr(tab + 1, '\t', to)) return bad_line(l, text, len, "has more than two names");
    pagerank_link(g, text, from, tab + 1, to);
    if (check_memory(l->r, pagerank_memory(g), "the graph")) return CLI_FAIL;
  }
  return more < 0 ? CLI_FAIL : CLI_OK;
}

/* The length of a document's name without the lines that a chunk's ends in: as `notes.txt` in `notes.txt:1-25`. */
static size_t page_length(const gpuir_doc *doc, const char *name) {
  size_t n = doc->name_len;
  while (doc->first_line && n && name[n - 1] != ':') n--;
  return n ? n - 1 : doc->name_len;
}

/* The score of each document: the rank of the page that has its name or, if it is a chunk, of the one of its file. */
static int score_by_rank(reorder *r, const pagerank *g, entry *e) {
  cli_buf name = {NULL, 0, 0};
  int code = CLI_OK;
  for (uint32_t i = 0; i < r->documents && !code; i++) {
    gpuir_doc doc;
    int known;
    code = get_doc(r, i, &doc);
    if (code) break;
    const char *text = cli_doc_name(&name, &doc);
    e[i].key.score = (double)pagerank_of(g, text, doc.name_len, &known);
    if (!known && doc.first_line) e[i].key.score = (double)pagerank_of(g, text, page_length(&doc, text), &known);
    e[i].len = 1;
    e[i].doc = i;
    r->unlinked += !known;
  }
  cli_buf_free(&name);
  return code;
}

static int order_pagerank(reorder *r) {
  lines l;
  if (lines_open(&l, r)) return CLI_FAIL;
  pagerank *g = pagerank_create();
  int code = read_links(&l, g);
  lines_close(&l);
  if (!code)
    code = check_memory(r, pagerank_memory(g) + (uint64_t)r->documents * (4 + sizeof(entry)), "ordering by PageRank");
  if (!code) {
    pagerank_solve(g);
    entry *e = (entry *)cli_resize(NULL, r->documents, sizeof *e);
    code = score_by_rank(r, g, e);
    if (!code) code = take_entries(r, e, by_score);
    free(e);
  }
  pagerank_destroy(g);
  return code;
}

/* ---- lengths of lists -------------------------------------------------------------- */

#define DF_CLASSES 4096 /* lists of DF_CLASSES - 1 and more postings are one class */

typedef struct df_classes {
  uint64_t terms[DF_CLASSES], postings[DF_CLASSES];
} df_classes;

static int bad_list(const reorder *r, uint64_t term, int status) {
  cli_error("%s: list of term %llu: %s", r->input, (unsigned long long)term, gpuir_strerror(status));
  return CLI_FAIL;
}

/* Returns the df of a term; 0 after setting *status. */
static uint32_t list_df(const reorder *r, uint64_t term, gpuir_term_info *info, int *status) {
  *status = gpuir_term_get_info(r->index, term, info);
  if (!*status && (!info->df || info->df > r->documents)) *status = GPUIR_E_FORMAT;
  return *status ? 0 : info->df;
}

/* Finds the longest list; counts lists of df up to `most` by their length, if `classes` is not NULL. */
static int survey(reorder *r, df_classes *classes, uint32_t most) {
  gpuir_term_info t;
  int status = GPUIR_OK;
  for (uint64_t i = 0; i < r->info.terms; i++) {
    uint32_t df = list_df(r, i, &t, &status);
    if (!df) return bad_list(r, i, status);
    if (df > r->longest) r->longest = df;
    if (t.cf > r->frequent) r->frequent = t.cf;
    if (!classes || df > most) continue;
    classes->terms[smaller(df, DF_CLASSES - 1)]++;
    classes->postings[smaller(df, DF_CLASSES - 1)] += df;
  }
  return CLI_OK;
}

/* ---- order: bisection -------------------------------------------------------------- */

/* A term of one document has no gaps. Terms of a large part of a large collection hide what the others tell: without
 * those of over a twentieth of the documents, bisection finds smaller gaps. */
#define BISECT_MIN_DF 2
#define BISECT_MAX_PART 20
#define BISECT_FEW 256 /* so many documents are no large part */
#define TERMS_AT_ONCE 256

/* The forward index while it is made; threads share it. */
typedef struct forward_maker {
  reorder *r;
  uint32_t min_df, max_df;
  int fill; /* first documents' terms are counted, then written */
  uint64_t *start; /* first how many terms each document has, behind it; then where its next term goes */
  uint32_t *postings;
  uint64_t next; /* term */
  uint32_t terms; /* that were numbered */
  int status; /* of the first list that failed */
  uint64_t failed;
} forward_maker;

static int forward_list(forward_maker *m, uint64_t id, uint32_t *docids) {
  gpuir_term_info t;
  int status;
  uint32_t df = list_df(m->r, id, &t, &status);
  if (!df || df < m->min_df || df > m->max_df) return status;
  status = gpuir_term_postings(m->r->index, id, docids, NULL);
  if (status) return status;
  if (!m->fill) {
    for (uint32_t i = 0; i < df; i++) __atomic_fetch_add(&m->start[docids[i] + 1], 1, __ATOMIC_RELAXED);
    return GPUIR_OK;
  }
  /* Neither the numbers of terms nor their order within a document have an influence on bisection. */
  uint32_t term = __atomic_fetch_add(&m->terms, 1, __ATOMIC_RELAXED);
  for (uint32_t i = 0; i < df; i++) m->postings[__atomic_fetch_add(&m->start[docids[i]], 1, __ATOMIC_RELAXED)] = term;
  return GPUIR_OK;
}

static void *forward_work(void *context) {
  forward_maker *m = (forward_maker *)context;
  uint32_t *docids = (uint32_t *)cli_resize(NULL, m->max_df, sizeof *docids);
  uint64_t term;
  while (!cli_signal && (term = __atomic_fetch_add(&m->next, TERMS_AT_ONCE, __ATOMIC_RELAXED)) < m->r->info.terms) {
    for (uint64_t i = term; i < smaller(term + TERMS_AT_ONCE, m->r->info.terms); i++) {
      int status = forward_list(m, i, docids), none = GPUIR_OK;
      if (status && __atomic_compare_exchange_n(&m->status, &none, status, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        m->failed = i;
    }
  }
  free(docids);
  return NULL;
}

static int forward_make(forward_maker *m) {
  reorder *r = m->r;
  for (m->fill = 0; m->fill < 2 && !m->status && !cli_signal; m->fill++) {
    if (m->fill)
      for (uint32_t i = 0; i < r->documents; i++) m->start[i + 1] += m->start[i];
    m->next = 0;
    run_threads(r->threads, forward_work, m);
  }
  if (m->status) return bad_list(r, m->failed, m->status);
  if (cli_signal) return CLI_FAIL;
  /* each start has moved on to its end */
  memmove(m->start + 1, m->start, (size_t)r->documents * sizeof *m->start);
  m->start[0] = 0;
  return CLI_OK;
}

/* Chooses the least df so that the forward index and the bisection of it are within the budget. */
static int choose_terms(reorder *r, const df_classes *c, uint32_t most, uint64_t *postings) {
  uint64_t terms = 0, need = 0;
  uint32_t df;
  *postings = 0;
  for (df = DF_CLASSES - 1;; df--) {
    terms += c->terms[df];
    *postings += c->postings[df];
    need = 4 * *postings + 12 * ((uint64_t)r->documents + 1) +
        larger(bisect_memory(r->documents, terms, *postings, r->threads), (uint64_t)most * 4 * r->threads);
    if (need > r->memory) break;
    r->min_df = df;
    if (df == BISECT_MIN_DF) return CLI_OK;
  }
  *postings -= c->postings[df];
  return df == DF_CLASSES - 1 ? check_memory(r, need, "bisection") : CLI_OK;
}

static int on_bisect(void *user, double done) {
  show((reorder *)user, "ordering", done);
  return cli_signal != 0;
}

static int bisect(reorder *r, forward_maker *m) {
  bisect_graph g = {r->documents, m->terms, m->start, m->postings};
  bisect_desc d;
  memset(&d, 0, sizeof d);
  d.threads = r->threads;
  d.progress = on_bisect;
  d.user = r;
  int status = bisect_order(&g, &d, r->order);
  if (status == BISECT_NOMEM) cli_error("out of memory");
  return status ? CLI_FAIL : CLI_OK;
}

static int order_bisect(reorder *r) {
  forward_maker m;
  uint64_t postings = 0;
  memset(&m, 0, sizeof m);
  m.r = r;
  m.max_df = (uint32_t)larger(BISECT_FEW, r->documents / BISECT_MAX_PART);
  df_classes *c = (df_classes *)cli_resize(NULL, 1, sizeof *c);
  memset(c, 0, sizeof *c);
  int code = survey(r, c, m.max_df);
  if (!code) code = choose_terms(r, c, m.max_df, &postings);
  free(c);
  if (code) return code;
  m.min_df = (uint32_t)r->min_df;
  m.start = (uint64_t *)cli_resize(NULL, (size_t)r->documents + 1, sizeof *m.start);
  memset(m.start, 0, ((size_t)r->documents + 1) * sizeof *m.start);
  m.postings = (uint32_t *)cli_resize(NULL, postings, sizeof *m.postings);
  code = forward_make(&m);
  if (!code) code = bisect(r, &m);
  free(m.postings);
  free(m.start);
  return code;
}

/* ---- lists in the new order -------------------------------------------------------------- */

#define BATCH_POSTINGS 65536
#define BATCH_TERMS 4096

/* Lists in a row. One thread takes it, decodes and sorts; the main thread writes batches in their order. */
typedef struct batch {
  uint64_t first;
  uint32_t terms;
  uint32_t longest; /* df */
  uint64_t frequent; /* the greatest cf */
  uint64_t postings, occurrences, need; /* occurrences: 0 if the index has no positions */
  uint32_t *df, *docids, *tfs, *positions;
  int ready; /* to be written */
} batch;

typedef struct rewriter {
  reorder *r;
  gpuir_builder *builder;
  pthread_mutex_t claim; /* held while a batch is composed */
  uint64_t next_term;
  uint32_t next_df; /* of next_term, if it is known; otherwise 0 */
  uint64_t next_cf;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  batch *ring;
  uint64_t slots, taken, written, batches; /* batches: how many there are, once all are taken; before UINT64_MAX */
  uint64_t in_flight, most; /* bytes */
  int stop;
} rewriter;

/* A list of a part of the documents or more is put in order by position, shorter ones are sorted. */
#define LONG_PART 4

static uint64_t sort_memory(const reorder *r, uint32_t df, uint64_t cf) {
  if (r->info.has_positions) return (uint64_t)df * 24 + 8 + cf * 4;
  return df >= r->documents / LONG_PART ? (uint64_t)r->documents * 4 + r->documents / 8 + 16 : (uint64_t)df * 16;
}

static uint64_t batch_memory(const reorder *r, const batch *b) {
  return b->terms * (uint64_t)4 + b->postings * 8 + b->occurrences * 4 + sort_memory(r, b->longest, b->frequent);
}

/* What the longest list needs alone. */
static uint64_t list_memory(const reorder *r) {
  batch b;
  memset(&b, 0, sizeof b);
  b.terms = 1;
  b.postings = b.longest = r->longest;
  b.frequent = r->frequent;
  if (r->info.has_positions) b.occurrences = r->frequent;
  return batch_memory(r, &b);
}

/* Puts tfs where their documents stand, with a bit for each, and collects them from there. */
static void sort_long(const reorder *r, uint32_t *docids, uint32_t *tfs, uint32_t df, void *scratch) {
  size_t words = (size_t)r->documents / 64 + 1;
  uint64_t *bits = (uint64_t *)scratch;
  uint32_t *at = (uint32_t *)(bits + words), n = 0;
  memset(bits, 0, words * sizeof *bits);
  for (uint32_t i = 0; i < df; i++) {
    uint32_t docid = r->map[docids[i]];
    bits[docid / 64] |= (uint64_t)1 << (docid % 64);
    at[docid] = tfs[i];
  }
  for (size_t w = 0; w < words; w++)
    for (uint64_t left = bits[w]; left; left &= left - 1) {
      uint32_t docid = (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(left);
      docids[n] = docid;
      tfs[n++] = at[docid];
    }
}

static void sort_few(uint64_t *keys, uint32_t n) {
  for (uint32_t i = 1; i < n; i++) {
    uint64_t key = keys[i];
    uint32_t j = i;
    for (; j && keys[j - 1] > key; j--) keys[j] = keys[j - 1];
    keys[j] = key;
  }
}

/* Sorts by the digits of the upper 32 bits, from the lowest digit on. Returns `keys` or `other`, which is as large. */
static uint64_t *sort_radix(uint64_t *keys, uint64_t *other, uint32_t n, unsigned bits) {
  unsigned most = n < 4096 ? 8 : 11, passes = (bits + most - 1) / most, digit = (bits + passes - 1) / passes;
  uint32_t count[2048];
  for (unsigned pass = 0; pass < passes; pass++) {
    unsigned shift = 32 + pass * digit;
    uint32_t mask = (1u << digit) - 1, sum = 0;
    memset(count, 0, ((size_t)mask + 1) * sizeof *count);
    for (uint32_t i = 0; i < n; i++) count[(keys[i] >> shift) & mask]++;
    for (uint32_t i = 0; i <= mask; i++) {
      uint32_t here = count[i];
      count[i] = sum;
      sum += here;
    }
    for (uint32_t i = 0; i < n; i++) other[count[(keys[i] >> shift) & mask]++] = keys[i];
    uint64_t *swap = keys;
    keys = other;
    other = swap;
  }
  return keys;
}

/* Sorts keys[0..n), whose upper 32 bits are docIDs; returns them, or what follows them, where they are then. */
static uint64_t *sort_keys(const reorder *r, uint64_t *keys, uint32_t n) {
  unsigned bits = 1;
  while (bits < 32 && (r->documents - 1) >> bits) bits++;
  if (n >= 48) return sort_radix(keys, keys + n, n, bits);
  sort_few(keys, n);
  return keys;
}

/* Puts a list in order with its positions: as many as `room`, or it is damaged. *cf: how many there are. */
static int sort_positions(const reorder *r, uint64_t term, uint32_t *docids, uint32_t *tfs, uint32_t df,
    uint32_t *positions, uint64_t room, uint64_t *cf, void *scratch) {
  uint64_t *start = (uint64_t *)scratch, *keys = start + df + 1;
  uint32_t *old = (uint32_t *)(keys + 2 * (uint64_t)df);
  start[0] = 0;
  for (uint32_t i = 0; i < df; i++) {
    keys[i] = (uint64_t)r->map[docids[i]] << 32 | i;
    start[i + 1] = start[i] + tfs[i];
  }
  *cf = start[df];
  if (*cf > room) return GPUIR_E_FORMAT;
  int status = gpuir_term_positions(r->index, term, old, *cf);
  if (status) return status;
  keys = sort_keys(r, keys, df);
  for (uint32_t i = 0; i < df; i++) {
    uint32_t from = (uint32_t)keys[i];
    docids[i] = (uint32_t)(keys[i] >> 32);
    tfs[i] = (uint32_t)(start[from + 1] - start[from]);
    memcpy(positions, old + start[from], tfs[i] * sizeof *positions);
    positions += tfs[i];
  }
  return GPUIR_OK;
}

static void sort_list(const reorder *r, uint32_t *docids, uint32_t *tfs, uint32_t df, void *scratch) {
  uint64_t *keys = (uint64_t *)scratch;
  if (df >= r->documents / LONG_PART) {
    sort_long(r, docids, tfs, df, scratch);
    return;
  }
  for (uint32_t i = 0; i < df; i++) keys[i] = (uint64_t)r->map[docids[i]] << 32 | tfs[i];
  keys = sort_keys(r, keys, df);
  for (uint32_t i = 0; i < df; i++) {
    docids[i] = (uint32_t)(keys[i] >> 32);
    tfs[i] = (uint32_t)keys[i];
  }
}

/* ---- writing -------------------------------------------------------------- */

/* Returns whether it had not stopped before. */
static int rewriter_stop(rewriter *w) {
  pthread_mutex_lock(&w->mutex);
  int first = !w->stop;
  w->stop = 1;
  pthread_cond_broadcast(&w->changed);
  pthread_mutex_unlock(&w->mutex);
  return first;
}

static int rewriter_fail(rewriter *w, uint64_t term, int status) {
  if (rewriter_stop(w)) bad_list(w->r, term, status);
  return CLI_FAIL;
}

/* The next lists, as many as make a batch; 0 terms: none are left. */
static int compose(rewriter *w, batch *b, uint32_t *dfs) {
  gpuir_term_info t;
  memset(b, 0, sizeof *b);
  b->first = w->next_term;
  while (w->next_term < w->r->info.terms && b->terms < BATCH_TERMS) {
    int status = GPUIR_OK;
    if (!w->next_df) {
      w->next_df = list_df(w->r, w->next_term, &t, &status);
      w->next_cf = t.cf;
    }
    if (!w->next_df) return rewriter_fail(w, w->next_term, status);
    if (b->terms && b->postings + w->next_df > BATCH_POSTINGS) break;
    dfs[b->terms++] = w->next_df;
    b->postings += w->next_df;
    if (w->r->info.has_positions) b->occurrences += w->next_cf;
    if (w->next_df > b->longest) b->longest = w->next_df;
    if (w->next_cf > b->frequent) b->frequent = w->next_cf;
    w->next_df = 0;
    w->next_term++;
  }
  b->need = batch_memory(w->r, b);
  return CLI_OK;
}

/* Takes a batch, and waits until there is memory for it. NULL: there is none, or the work has stopped. */
static batch *take_batch(rewriter *w, uint32_t *dfs) {
  batch next, *b = NULL;
  pthread_mutex_lock(&w->claim);
  if (!compose(w, &next, dfs)) {
    pthread_mutex_lock(&w->mutex);
    if (!next.terms) {
      w->batches = w->taken;
      pthread_cond_broadcast(&w->changed);
    } else {
      while (!w->stop && (w->taken - w->written == w->slots || (w->in_flight && w->in_flight + next.need > w->most)))
        pthread_cond_wait(&w->changed, &w->mutex);
      if (!w->stop) {
        b = &w->ring[w->taken++ % w->slots];
        *b = next;
        w->in_flight += next.need;
      }
    }
    pthread_mutex_unlock(&w->mutex);
  }
  pthread_mutex_unlock(&w->claim);
  return b;
}

static int fill_batch(rewriter *w, batch *b, const uint32_t *dfs) {
  void *scratch = cli_resize(NULL, sort_memory(w->r, b->longest, b->frequent), 1);
  uint64_t at = 0, occurrence = 0, cf = 0;
  int status = GPUIR_OK;
  b->df = (uint32_t *)cli_resize(NULL, b->terms, sizeof *b->df);
  b->docids = (uint32_t *)cli_resize(NULL, b->postings, sizeof *b->docids);
  b->tfs = (uint32_t *)cli_resize(NULL, b->postings, sizeof *b->tfs);
  if (w->r->info.has_positions) b->positions = (uint32_t *)cli_resize(NULL, b->occurrences, sizeof *b->positions);
  memcpy(b->df, dfs, b->terms * sizeof *b->df);
  for (uint32_t i = 0; i < b->terms && !status; at += dfs[i++], occurrence += cf) {
    status = gpuir_term_postings(w->r->index, b->first + i, b->docids + at, b->tfs + at);
    if (!status && b->positions)
      status = sort_positions(w->r, b->first + i, b->docids + at, b->tfs + at, dfs[i], b->positions + occurrence,
          smaller(b->frequent, b->occurrences - occurrence), &cf, scratch);
    else if (!status) sort_list(w->r, b->docids + at, b->tfs + at, dfs[i], scratch);
    if (status) rewriter_fail(w, b->first + i, status);
  }
  free(scratch);
  return status;
}

static void *rewriter_work(void *context) {
  rewriter *w = (rewriter *)context;
  uint32_t *dfs = (uint32_t *)cli_resize(NULL, BATCH_TERMS, sizeof *dfs);
  batch *b;
  while ((b = take_batch(w, dfs)) != NULL) {
    if (fill_batch(w, b, dfs)) break;
    pthread_mutex_lock(&w->mutex);
    b->ready = 1;
    w->in_flight -= sort_memory(w->r, b->longest, b->frequent);
    b->need -= sort_memory(w->r, b->longest, b->frequent);
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->mutex);
  }
  free(dfs);
  return NULL;
}

static void free_batch(batch *b) {
  free(b->df);
  free(b->docids);
  free(b->tfs);
  free(b->positions);
  memset(b, 0, sizeof *b);
}

static int build_failed(const reorder *r, int status, const gpuir_error *err) {
  if (status != GPUIR_E_CANCELLED) cli_fail(r->output, status, err);
  return CLI_FAIL;
}

static int write_batch(rewriter *w, const batch *b) {
  const uint32_t *positions = b->positions;
  uint64_t at = 0;
  for (uint32_t i = 0; i < b->terms; at += b->df[i++]) {
    gpuir_term_info t;
    gpuir_error err;
    memset(&err, 0, sizeof err);
    int status = gpuir_term_get_info(w->r->index, b->first + i, &t);
    if (status) return bad_list(w->r, b->first + i, status);
    status =
        gpuir_builder_add_list(w->builder, t.term, t.term_len, b->docids + at, b->tfs + at, positions, b->df[i], &err);
    if (status) return build_failed(w->r, status, &err);
    for (uint32_t j = 0; positions && j < b->df[i]; j++) positions += b->tfs[at + j];
  }
  return CLI_OK;
}

/* Returns the next batch when it is ready; NULL: that was the last, or the work has stopped. */
static batch *await_batch(rewriter *w) {
  pthread_mutex_lock(&w->mutex);
  while (!w->stop && w->written != w->batches && !w->ring[w->written % w->slots].ready)
    pthread_cond_wait(&w->changed, &w->mutex);
  batch *b = w->stop || w->written == w->batches ? NULL : &w->ring[w->written % w->slots];
  pthread_mutex_unlock(&w->mutex);
  return b;
}

static int write_batches(rewriter *w) {
  batch *b;
  uint64_t postings = 0;
  while ((b = await_batch(w)) != NULL) {
    if (cli_signal || write_batch(w, b)) return CLI_FAIL;
    postings += b->postings;
    show(w->r, "writing ", (double)postings / (double)(w->r->info.postings + 1));
    pthread_mutex_lock(&w->mutex);
    w->in_flight -= b->need;
    free_batch(b);
    w->written++;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->mutex);
  }
  return w->stop ? CLI_FAIL : CLI_OK;
}

static int write_lists(reorder *r, gpuir_builder *builder, uint64_t memory) {
  rewriter w;
  pthread_t thread[MOST_THREADS];
  unsigned started = 0;
  int code;
  memset(&w, 0, sizeof w);
  w.r = r;
  w.builder = builder;
  w.most = memory;
  w.batches = UINT64_MAX;
  w.slots = 4 * (uint64_t)r->threads;
  w.ring = (batch *)cli_resize(NULL, w.slots, sizeof *w.ring);
  memset(w.ring, 0, w.slots * sizeof *w.ring);
  pthread_mutex_init(&w.claim, NULL);
  pthread_mutex_init(&w.mutex, NULL);
  pthread_cond_init(&w.changed, NULL);
  while (started < r->threads && !pthread_create(&thread[started], NULL, rewriter_work, &w)) started++;
  if (!started) cli_error("%s: cannot start a thread", r->output);
  code = started ? write_batches(&w) : CLI_FAIL;
  (void)rewriter_stop(&w);
  while (started) pthread_join(thread[--started], NULL);
  for (uint64_t i = 0; i < w.slots; i++) free_batch(&w.ring[i]);
  free(w.ring);
  pthread_cond_destroy(&w.changed);
  pthread_mutex_destroy(&w.mutex);
  pthread_mutex_destroy(&w.claim);
  return code;
}

static int write_documents(reorder *r, gpuir_builder *builder) {
  cli_copier copier;
  gpuir_doc doc;
  gpuir_error err;
  int status = GPUIR_OK, code = CLI_OK;
  cli_copier_open(&copier, r->input, r->output);
  memset(&err, 0, sizeof err);
  for (uint32_t i = 0; i < r->documents && !code && !status; i++) {
    code = cli_signal || get_doc(r, r->order[i], &doc) ? CLI_FAIL : CLI_OK;
    if (!code) status = cli_copier_add(&copier, r->index, r->order[i], &doc, builder, &err);
  }
  cli_copier_close(&copier);
  return status ? build_failed(r, status, &err) : code;
}

static int on_build(void *user, const gpuir_progress *p) {
  (void)user;
  (void)p;
  return cli_signal != 0;
}

static int start_build(const reorder *r, uint64_t memory, gpuir_builder **builder) {
  gpuir_builder_desc bd;
  gpuir_error err;
  memset(&err, 0, sizeof err);
  memset(&bd, 0, sizeof bd);
  bd.path = r->output;
  bd.like = r->index;
  bd.codec = r->codec;
  bd.order = r->name;
  bd.memory = memory;
  bd.threads = r->threads;
  bd.store_text = r->info.has_text;
  bd.positions = r->info.has_positions;
  bd.progress = on_build;
  int status = gpuir_builder_create(&bd, builder, &err);
  if (!status) status = gpuir_builder_skipped(*builder, r->info.skipped, &err);
  return status ? build_failed(r, status, &err) : CLI_OK;
}

/* What is wrong with the output's place or the codec shows before an order is looked for, which may take long. */
static int try_build(const reorder *r) {
  gpuir_builder *builder = NULL;
  int code = start_build(r, MEBIBYTE, &builder);
  gpuir_builder_destroy(builder);
  return code;
}

/* Half of what the orders leave is for lists on their way, unless the longest needs more; the builder has the rest. */
static int write_index(reorder *r) {
  gpuir_builder *builder = NULL;
  gpuir_error err;
  uint64_t orders = (uint64_t)r->documents * 8, longest = list_memory(r), lists;
  if (check_memory(r, orders + longest + MEBIBYTE, "writing")) return CLI_FAIL;
  memset(&err, 0, sizeof err);
  lists = larger((r->memory - orders) / 2, longest);
  if (start_build(r, larger(r->memory - orders - lists, MEBIBYTE), &builder)) return CLI_FAIL;
  cli_temporary_index(r->output);
  int code = write_documents(r, builder);
  if (!code && r->info.terms) code = write_lists(r, builder, lists);
  if (!code) {
    int status = gpuir_builder_write(builder, &r->report, &err);
    if (status) code = build_failed(r, status, &err);
  }
  gpuir_builder_destroy(builder);
  cli_temporary(NULL);
  return code;
}

/* ---- the command -------------------------------------------------------------- */

static int find_order(reorder *r) {
  static int (*const orders[])(
      reorder *) = {order_random, order_name, order_file, order_score, order_pagerank, order_bisect};
  if (check_memory(r, (uint64_t)r->documents * 4, "an order")) return CLI_FAIL;
  r->order = (uint32_t *)cli_resize(NULL, r->documents, sizeof *r->order);
  for (uint32_t i = 0; i < r->documents; i++) r->order[i] = i;
  return r->documents ? orders[r->kind](r) : CLI_OK;
}

static void invert_order(reorder *r) {
  r->map = (uint32_t *)cli_resize(NULL, r->documents, sizeof *r->map);
  for (uint32_t i = 0; i < r->documents; i++) r->map[r->order[i]] = i;
}

/* Bits of docIDs in lists of two postings or more. */
static double docid_bits(const gpuir_index_info *i) {
  uint64_t n = i->postings - i->inline_postings;
  return n ? (double)i->docids_bytes * 8 / (double)n : 0;
}

static void print_summary(const reorder *r, double seconds) {
  gpuir_index *index = NULL;
  gpuir_index_info after;
  char n[CLI_COUNTED], m[CLI_COUNTED], now[27], before[27];
  if (gpuir_open(r->output, NULL, &index, NULL)) return;
  if (!gpuir_index_get_info(index, &after)) {
    cli_error("%s: %s, %s; docIDs %.2f bits each (%s), before %.2f (%s); %s file, before %s", r->output,
        cli_counted(after.documents, "document", "documents", n), cli_counted(after.postings, "posting", "postings", m),
        docid_bits(&after), after.codec, docid_bits(&r->info), r->info.codec, cli_size(after.file_bytes, now),
        cli_size(r->info.file_bytes, before));
    cli_error("ordered in %.2f s, written in %.2f s, peak memory %.0f MB resident with files", r->ordered,
        seconds - r->ordered, (double)cli_peak_resident() / 1048576.0);
  }
  gpuir_close(index);
}

static void print_notes(const reorder *r) {
  char n[CLI_COUNTED];
  if (r->unlisted)
    cli_error("%s: %s not listed: behind the others, in the old order", r->file,
        cli_counted(r->unlisted, "document is", "documents are", n));
  if (r->unlinked)
    cli_error("%s: %s no links: ranked as pages to which nothing links", r->file,
        cli_counted(r->unlinked, "document has", "documents have", n));
  if (r->min_df > BISECT_MIN_DF)
    cli_error("bisection left out terms of fewer than %s documents; a larger --memory takes more in",
        cli_grouped(r->min_df, n));
}

static int run_reorder(reorder *r) {
  r->begin = cli_seconds();
  r->index = cli_open_merged(r->input);
  if (!r->index) return CLI_FAIL;
  int code = CLI_FAIL, status = gpuir_index_get_info(r->index, &r->info);
  if (status) {
    cli_fail(r->input, status, NULL);
  } else {
    r->documents = (uint32_t)r->info.documents;
    code = try_build(r);
    if (!code) code = find_order(r);
    r->ordered = cli_seconds() - r->begin;
    if (!code && !r->longest) code = survey(r, NULL, 0);
    if (!code) invert_order(r);
    if (!code) code = write_index(r);
    cli_status("");
  }
  if (cli_signal && code) {
    cli_error("stopped; %s is not written", r->output);
    code = 128 + (int)cli_signal;
  }
  if (!code) print_notes(r);
  if (!code && r->report.shared_folder) cli_tell_shared(r->output);
  if (!code && !r->quiet) print_summary(r, cli_seconds() - r->begin);
  gpuir_close(r->index);
  free(r->order);
  free(r->map);
  return code;
}

/* Reads the value of --order. */
static int set_order(reorder *r, const char *value) {
  r->kind = -1;
  r->seed = 1;
  if (!strcmp(value, "random")) r->kind = BY_RANDOM;
  if (!strcmp(value, "name")) r->kind = BY_NAME;
  if (!strcmp(value, "bisect")) r->kind = BY_BISECT;
  if (!strncmp(value, "random:", 7)) {
    r->kind = BY_RANDOM;
    if (cli_parse_unsigned(value + 7, 0, UINT64_MAX, &r->seed))
      return cli_misuse("reorder", "--order: the seed '%s' is not a whole number", value + 7);
  }
  if (!strncmp(value, "file:", 5) && value[5]) r->kind = BY_FILE, r->file = value + 5;
  if (!strncmp(value, "score:", 6) && value[6]) r->kind = BY_SCORE, r->file = value + 6;
  if (!strncmp(value, "pagerank:", 9) && value[9]) r->kind = BY_PAGERANK, r->file = value + 9;
  if (r->kind == BY_RANDOM) snprintf(r->name, sizeof r->name, "random:%llu", (unsigned long long)r->seed);
  else snprintf(r->name, sizeof r->name, "%.*s", (int)strcspn(value, ":"), value);
  if (r->kind >= 0) return 0;
  return cli_misuse("reorder",
      "--order: '%s' is none of random, random:SEED, name, file:LIST, score:FILE, "
      "pagerank:LINKS, bisect",
      value);
}

enum { O_ORDER = 2, O_CODEC, O_MEMORY, O_THREADS, O_QUIET };

int cli_reorder(int argc, char **argv) {
  static const cli_option options[] = {{O_ORDER, "order", 0, 1}, {O_CODEC, "codec", 0, 1}, {O_MEMORY, "memory", 0, 1},
      {O_THREADS, "threads", 0, 1}, {O_QUIET, "quiet", 'q', 0}, {0, NULL, 0, 0}};
  reorder r;
  cli_args a;
  uint64_t threads = 0, megabytes = 512;
  int opt, bad = 0, code;
  memset(&r, 0, sizeof r);
  r.kind = -1;
  cli_args_start(&a, "reorder", options, argc, argv);
  while (!bad && (opt = cli_next(&a)) != CLI_END) {
    switch (opt) {
    case CLI_HELP: cli_args_free(&a); return cli_help("reorder");
    case O_ORDER: bad = set_order(&r, a.value); break;
    case O_CODEC: r.codec = a.value; break;
    case O_MEMORY: bad = cli_unsigned(&a, 1, (uint64_t)1 << 32, &megabytes); break;
    case O_THREADS: bad = cli_unsigned(&a, 0, MOST_THREADS, &threads); break;
    case O_QUIET: r.quiet = 1; break;
    default: bad = 1; break;
    }
  }
  code = bad ? CLI_USAGE : CLI_OK;
  if (!code && a.noperands < 2) code = cli_misuse("reorder", a.noperands ? "OUTPUT is missing" : "INDEX is missing");
  if (!code && a.noperands > 2) code = cli_misuse("reorder", "one INDEX and one OUTPUT only");
  if (!code && r.kind < 0) code = cli_misuse("reorder", "--order is missing");
  if (!code) {
    r.input = a.operands[0];
    r.output = a.operands[1];
    r.memory = megabytes * MEBIBYTE;
    r.threads = threads ? (unsigned)threads : (unsigned)smaller(cli_processors(), MOST_THREADS);
    r.terminal = !r.quiet && isatty(STDERR_FILENO);
    cli_catch_signals();
    code = run_reorder(&r);
  }
  cli_args_free(&a);
  return code;
}
