/* bench.c - gpuir bench: latency and throughput of searches, with all that is needed to say
 * what was measured: machine, corpus, index and command.
 */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define MAX_THREAD_COUNTS 32
#define MAX_SAMPLED_LENGTH 16
#define BATCH_HITS ((size_t)1 << 22)

enum { MODE_AND, MODE_OR, MODE_ANDOR, MODE_COUNT, MODES };
static const char *const mode_names[MODES] = {"and", "or", "andor", "count"};

/* Uniform in [0, n): values of the last, incomplete round are drawn again. */
static uint64_t random_below(uint64_t *state, uint64_t n) {
  uint64_t limit = UINT64_MAX - UINT64_MAX % n, v;
  do v = cli_random(state);
  while (v >= limit);
  return v % n;
}

/* ---- the text of a document: stored, or lines of its source file ---------------------------------- */

#define OPEN_SOURCES 32
#define LINES_A_MARK 64

/* A source file with the offset of each LINES_A_MARK-th line. */
typedef struct source {
  char *path;
  int fd;
  uint64_t *marks, nmarks, size, used;
} source;

typedef struct sources {
  source list[OPEN_SOURCES];
  uint64_t clock;
  cli_buf text;
  cli_input home; /* knows where relative sources begin */
} sources;

static void source_close(source *s) {
  if (s->path) close(s->fd);
  free(s->path);
  free(s->marks);
  memset(s, 0, sizeof *s);
}

static int source_scan(source *s) {
  text_reader r;
  char *text;
  size_t len;
  uint64_t lines;
  int got;
  cli_reader_open(&r, s->fd, DECODE_MOST);
  while ((got = reader_lines(&r, LINES_A_MARK, &text, &len, &lines)) > 0) {
    if ((s->nmarks & (s->nmarks - 1)) == 0)
      s->marks = (uint64_t *)cli_resize(s->marks, (size_t)(s->nmarks ? s->nmarks * 2 : 1), sizeof *s->marks);
    s->marks[s->nmarks++] = s->size;
    s->size += len;
  }
  reader_close(&r);
  return got;
}

static source *sources_open(sources *all, const char *path, size_t len) {
  source *oldest = &all->list[0];
  all->clock++;
  for (int i = 0; i < OPEN_SOURCES; i++) {
    source *s = &all->list[i];
    if (s->path && strlen(s->path) == len && !memcmp(s->path, path, len)) {
      s->used = all->clock;
      return s;
    }
    if (s->used < oldest->used) oldest = s;
  }
  source_close(oldest);
  oldest->path = cli_copy(path, len);
  oldest->used = all->clock;
  oldest->fd = open(oldest->path, O_RDONLY);
  if (oldest->fd >= 0 && !source_scan(oldest)) return oldest;
  cli_error("%s: %s: cannot sample from this document", oldest->path, strerror(errno));
  if (oldest->fd < 0) free(oldest->path), oldest->path = NULL;
  source_close(oldest);
  return NULL;
}

/* 0, or not after a message. */
static int document_text(sources *all, const gpuir_index *index, uint32_t docid, const gpuir_doc *d, const char **text,
    size_t *len) {
  if (d->stored) {
    char *p = cli_buf_room(&all->text, (size_t)d->stored_bytes + 1);
    *text = p;
    *len = (size_t)d->stored_bytes;
    const int r = gpuir_doc_text(index, docid, 0, p, *len);
    if (r) cli_error("the text of document %u: %s", docid, gpuir_strerror(r));
    return r;
  }
  char *stored = cli_copy(d->source, d->source_len), *path = cli_input_whole(&all->home, stored);
  source *s = sources_open(all, path, strlen(path));
  free(stored);
  free(path);
  if (!s) return -1;
  uint64_t first = d->first_line ? d->first_line - 1 : 0, from = 0, to = s->size;
  uint64_t skip = first % LINES_A_MARK, want = d->first_line ? d->last_line - first : UINT64_MAX;
  if (d->first_line) {
    uint64_t mark = first / LINES_A_MARK, end = (first + want - 1) / LINES_A_MARK + 1;
    if (mark >= s->nmarks || d->last_line < d->first_line) want = 0, mark = 0, end = 0; /* the file has changed */
    from = want ? s->marks[mark] : 0;
    to = !want ? 0 : end < s->nmarks ? s->marks[end] : s->size;
  }
  all->text.n = 0;
  while (from + all->text.n < to) {
    char block[16384];
    uint64_t left = to - from - all->text.n;
    ssize_t n = pread(s->fd, block, left < sizeof block ? (size_t)left : sizeof block, (off_t)(from + all->text.n));
    if (n <= 0) break;
    cli_buf_add(&all->text, block, (size_t)n);
  }
  const char *p = all->text.p ? all->text.p : "", *end = p + all->text.n;
  for (; skip && p < end; skip--) {
    const char *nl = (const char *)memchr(p, '\n', (size_t)(end - p));
    p = nl ? nl + 1 : end;
  }
  *text = p;
  for (; want && p < end; want--) {
    const char *nl = (const char *)memchr(p, '\n', (size_t)(end - p));
    p = nl ? nl + 1 : end;
  }
  *len = (size_t)(p - *text);
  return 0;
}

/* ---- sampling ---------------------------------------------------------------------------------------- */

typedef struct tokens {
  cli_buf text; /* all bytes */
  size_t *starts; /* n + 1 of them */
  size_t n, cap;
} tokens;

static int take_token(void *sink, const char *token, size_t len) {
  tokens *t = (tokens *)sink;
  if (t->n + 2 > t->cap)
    t->starts = (size_t *)cli_resize(t->starts, t->cap = t->cap ? t->cap * 2 : 256, sizeof(size_t));
  t->starts[t->n++] = t->text.n;
  cli_buf_add(&t->text, token, len);
  t->starts[t->n] = t->text.n;
  return 0;
}

static size_t token_length(const tokens *t, size_t i) { return t->starts[i + 1] - t->starts[i]; }

static int same_token(const tokens *t, size_t i, const tokens *u, size_t j) {
  size_t n = token_length(t, i);
  return n == token_length(u, j) && !memcmp(t->text.p + t->starts[i], u->text.p + u->starts[j], n);
}

typedef struct sampling {
  uint64_t n, seed, min_df, min_len, max_len;
} sampling;

/* One query: `len` tokens that follow each other, distinct, each in min_df documents or more, from
 * a place drawn uniformly among those of the document. 1: found, in `query`; 0: none there; -1. */
static int sample_document(gpuir_index *index, const sampling *sm, uint64_t *state, const char *text, size_t text_len,
    size_t len, tokens *t, tokens *again, cli_buf *query, const char *path) {
  gpuir_error err;
  size_t *starts = NULL, nstarts = 0, run = 0;
  t->n = t->text.n = 0;
  memset(&err, 0, sizeof err);
  int r = gpuir_analyze(index, text, text_len, take_token, t, &err);
  if (r) {
    cli_fail(path, r, &err);
    return -1;
  }
  if (t->n < len) return 0;
  starts = (size_t *)cli_resize(NULL, t->n, sizeof *starts);
  for (size_t i = 0; i < t->n; i++) { /* run: how many good tokens end here */
    size_t n = token_length(t, i), distinct = 0;
    uint32_t df;
    int good =
        n <= GPUIR_MAX_TERM && !gpuir_term_count(index, t->text.p + t->starts[i], n, &df, NULL) && df >= sm->min_df;
    while (distinct < run && distinct < len && !same_token(t, i, t, i - 1 - distinct)) distinct++;
    run = good ? distinct + 1 : 0;
    if (run >= len) starts[nstarts++] = i + 1 - len;
  }
  int found = 0;
  if (nstarts) {
    size_t at = starts[random_below(state, nstarts)];
    query->n = 0;
    for (size_t i = at; i < at + len; i++) {
      if (i > at) cli_buf_char(query, ' ');
      cli_buf_add(query, t->text.p + t->starts[i], token_length(t, i));
    }
    /* The query must mean these very tokens: a stem may be stemmed again, or be a stop word. */
    again->n = again->text.n = 0;
    if (!gpuir_analyze(index, query->p, query->n, take_token, again, NULL) && again->n == len) {
      found = 1;
      for (size_t i = 0; i < len; i++)
        if (!same_token(t, at + i, again, i)) found = 0;
    }
  }
  free(starts);
  return found;
}

static int sample(gpuir_index *index, const char *path, const sampling *sm, cli_queries *qs) {
  sources *all = (sources *)cli_resize(NULL, 1, sizeof *all);
  tokens t = {{NULL, 0, 0}, NULL, 0, 0}, again = {{NULL, 0, 0}, NULL, 0, 0};
  cli_buf query = {NULL, 0, 0};
  gpuir_index_info info;
  uint64_t state = sm->seed, tries = 0, limit = 1000 + sm->n * 1000;
  int code = CLI_OK;
  memset(all, 0, sizeof *all);
  cli_input_home(&all->home, path);
  if (gpuir_index_get_info(index, &info)) info.documents = 0;
  while (!code && qs->n < sm->n) {
    gpuir_doc d;
    const char *text;
    char id[24];
    size_t len;
    if (!info.documents || tries++ == limit) {
      cli_error("%s: only %zu of %llu queries could be sampled; lower --min-df or --min-len", path, qs->n,
          (unsigned long long)sm->n);
      code = CLI_FAIL;
      break;
    }
    uint32_t docid = (uint32_t)random_below(&state, info.docids);
    size_t want = (size_t)(sm->min_len + random_below(&state, sm->max_len - sm->min_len + 1));
    int r = gpuir_doc_get(index, docid, &d);
    if (r == GPUIR_E_NOT_FOUND) continue; /* deleted */
    if (r) {
      code = cli_fail(path, r, NULL);
    } else if (!d.stored && !d.source_len) {
      cli_error("%s: document %u has neither stored text nor a source file: give --queries, or index with --store",
          path, docid);
      code = CLI_FAIL;
    } else if (document_text(all, index, docid, &d, &text, &len)) {
      code = CLI_FAIL;
    } else if ((r = sample_document(index, sm, &state, text, len, want, &t, &again, &query, path)) < 0) {
      code = CLI_FAIL;
    } else if (r) {
      cli_queries_add(qs, id, (size_t)snprintf(id, sizeof id, "%zu", qs->n + 1), query.p, query.n);
    }
  }
  for (int i = 0; i < OPEN_SOURCES; i++) source_close(&all->list[i]);
  cli_buf_free(&all->text);
  cli_input_free(&all->home);
  free(all);
  cli_buf_free(&query);
  cli_buf_free(&t.text);
  cli_buf_free(&again.text);
  free(t.starts);
  free(again.starts);
  return code;
}

/* ---- measuring --------------------------------------------------------------------------------------- */

typedef struct bench {
  const char *path;
  gpuir_index *index;
  gpuir_index_info info;
  cli_queries qs;
  int no_operators, evaluator, backend;
  cli_devices devices;
  const char *intersection;
  cli_gpu gpu;
  size_t k;
  uint64_t repeat, warmup;
  unsigned threads[MAX_THREAD_COUNTS];
  int nthreads;
} bench;

typedef struct latencies {
  uint64_t queries, rejected;
  double parse, mean, p50, p90, p95, p99, max; /* in microseconds; parse: its mean */
  double hits, postings, blocks, blocks_total; /* a query */
  uint64_t checksum; /* of all hits or counts, in order */
} latencies;

static int by_u64(const void *a, const void *b) {
  uint64_t p = *(const uint64_t *)a, q = *(const uint64_t *)b;
  return p < q ? -1 : p > q;
}

static int by_double(const void *a, const void *b) {
  double p = *(const double *)a, q = *(const double *)b;
  return p < q ? -1 : p > q;
}

/* Returns the nearest-rank percentile of sorted times, in microseconds. */
static double percentile(const uint64_t *sorted, size_t n, double p) {
  size_t rank = (size_t)((double)n * p / 100.0 + 0.9999999);
  if (rank > n) rank = n;
  return n ? (double)sorted[rank ? rank - 1 : 0] / 1000.0 : 0.0;
}

static void free_queries(gpuir_query **q, size_t n) {
  for (size_t i = 0; i < n; i++) gpuir_query_destroy(q[i]);
  free(q);
}

/* Parses all queries for one mode; those that are refused are counted. */
static gpuir_query **parse_all(bench *b, int mode, size_t *n, latencies *out) {
  gpuir_query **q = (gpuir_query **)cli_resize(NULL, b->qs.n, sizeof *q);
  gpuir_query_desc qd;
  uint64_t spent = 0;
  memset(&qd, 0, sizeof qd);
  qd.mode = mode == MODE_OR ? GPUIR_OR : mode == MODE_ANDOR ? GPUIR_ANDOR : GPUIR_AND;
  qd.no_operators = b->no_operators;
  *n = 0;
  for (size_t i = 0; i < b->qs.n; i++) {
    uint64_t begin = cli_nanoseconds();
    int r = gpuir_query_parse(b->index, &qd, b->qs.texts[i], b->qs.lens[i], &q[*n], NULL);
    spent += cli_nanoseconds() - begin;
    if (r) out->rejected++;
    else ++*n;
  }
  out->queries = *n;
  out->parse = *n ? (double)spent / 1000.0 / (double)b->qs.n : 0.0;
  return q;
}

static int search_failed(const bench *b, const gpuir_searcher *s, int r) {
  gpuir_error err;
  memset(&err, 0, sizeof err);
  gpuir_searcher_error(s, &err);
  return cli_fail(b->path, r, &err);
}

static gpuir_searcher *make_searcher(bench *b, unsigned threads) {
  gpuir_searcher_desc sd;
  gpuir_searcher *s = NULL;
  memset(&sd, 0, sizeof sd);
  sd.threads = threads;
  sd.evaluator = b->evaluator;
  sd.intersection = b->intersection;
  int r = gpuir_searcher_create(b->index, &sd, &s, NULL);
  if (r) cli_fail(b->path, r, NULL);
  if (!r && cli_gpu_attach_method(&b->gpu, s, b->intersection)) {
    gpuir_searcher_destroy(s);
    return NULL;
  }
  return r ? NULL : s;
}

static int one_query(gpuir_searcher *s, const gpuir_query *q, int mode, gpuir_hit *hits, size_t k, uint64_t *found) {
  size_t n = 0;
  if (mode == MODE_COUNT) return gpuir_count(s, q, found);
  int r = gpuir_search(s, q, hits, k, &n);
  *found = n;
  return r;
}

/* Latency: one thread, each query by itself, the median of its repetitions. The repetitions are
 * rounds over all queries, so that a query finds the caches as the others left them. */
static int measure_latency(bench *b, int mode, gpuir_query *const *q, size_t n, gpuir_hit *hits, latencies *out) {
  gpuir_searcher *s = make_searcher(b, 1);
  gpuir_searcher_info before, after;
  uint64_t *times, *one, found, sum = 0, rounds = b->warmup + b->repeat;
  XXH3_state_t *state = XXH3_createState();
  int r = 0;
  if (!s || !state) {
    XXH3_freeState(state);
    gpuir_searcher_destroy(s);
    return CLI_FAIL;
  }
  XXH3_64bits_reset(state);
  times = (uint64_t *)cli_resize(NULL, n, (size_t)b->repeat * sizeof *times);
  one = (uint64_t *)cli_resize(NULL, n, sizeof *one);
  memset(&before, 0, sizeof before);
  for (uint64_t round = 0; round < rounds && !r; round++) {
    if (round + 1 == rounds) gpuir_searcher_get_info(s, &before);
    for (size_t i = 0; i < n && !r; i++) {
      uint64_t begin = cli_nanoseconds();
      r = one_query(s, q[i], mode, hits, b->k, &found);
      uint64_t spent = cli_nanoseconds() - begin;
      if (round >= b->warmup) times[i * b->repeat + (round - b->warmup)] = spent;
      if (round + 1 < rounds) continue;
      out->hits += (double)found;
      XXH3_64bits_update(state, &found, sizeof found);
      if (mode != MODE_COUNT) XXH3_64bits_update(state, hits, (size_t)found * sizeof *hits);
    }
  }
  gpuir_searcher_get_info(s, &after);
  out->checksum = XXH3_64bits_digest(state);
  XXH3_freeState(state);
  if (r) {
    search_failed(b, s, r);
  } else if (n) {
    for (size_t i = 0; i < n; i++) {
      qsort(times + i * b->repeat, (size_t)b->repeat, sizeof *times, by_u64);
      one[i] = times[i * b->repeat + b->repeat / 2];
      sum += one[i];
    }
    qsort(one, n, sizeof *one, by_u64);
    out->mean = (double)sum / (double)n / 1000.0;
    out->p50 = percentile(one, n, 50);
    out->p90 = percentile(one, n, 90);
    out->p95 = percentile(one, n, 95);
    out->p99 = percentile(one, n, 99);
    out->max = percentile(one, n, 100);
    out->hits /= (double)n;
    out->postings = (double)(after.postings_scored - before.postings_scored) / (double)n;
    out->blocks = (double)(after.blocks_decoded - before.blocks_decoded) / (double)n;
    out->blocks_total = (double)(after.blocks_total - before.blocks_total) / (double)n;
  }
  free(times);
  free(one);
  gpuir_searcher_destroy(s);
  return r ? CLI_FAIL : CLI_OK;
}

/* Queries a second of whole batches; the median of the repetitions. */
static int measure_throughput(bench *b, int mode, gpuir_query *const *q, size_t n, unsigned threads, double *rate) {
  size_t batch = b->k && BATCH_HITS / b->k < n ? BATCH_HITS / b->k : n;
  if (!batch) batch = 1;
  gpuir_hit *hits = (gpuir_hit *)cli_resize(NULL, batch * b->k, sizeof *hits);
  uint32_t *counts = (uint32_t *)cli_resize(NULL, batch, sizeof *counts);
  double *times = (double *)cli_resize(NULL, (size_t)b->repeat, sizeof *times);
  gpuir_searcher *s = make_searcher(b, threads);
  int r = s ? 0 : GPUIR_E_NOMEM;
  for (uint64_t round = 0; round < b->repeat + (b->warmup > 0) && !r; round++) {
    uint64_t begin = cli_nanoseconds();
    for (size_t i = 0; i < n && !r; i += batch) {
      gpuir_batch_desc desc = {.queries = (const gpuir_query *const *)q + i,
          .nq = n - i < batch ? n - i : batch,
          .k = b->k,
          .hits = hits,
          .counts = counts,
          .count = mode == MODE_COUNT};
      gpuir_batch *asked;
      r = gpuir_search_begin(s, &desc, &asked);
      if (!r) r = gpuir_search_finish(asked);
    }
    double spent = (double)(cli_nanoseconds() - begin) / 1e9;
    if (round >= (b->warmup > 0)) times[round - (b->warmup > 0)] = spent;
  }
  if (r && s) search_failed(b, s, r);
  *rate = 0;
  if (!r) {
    qsort(times, (size_t)b->repeat, sizeof *times, by_double);
    if (times[b->repeat / 2] > 0) *rate = (double)n / times[b->repeat / 2];
  }
  free(hits);
  free(counts);
  free(times);
  gpuir_searcher_destroy(s);
  return r ? CLI_FAIL : CLI_OK;
}

/* Keeps only the queries that have an AND hit. */
static int require_and_hit(bench *b) {
  latencies unused;
  size_t n, kept = 0;
  memset(&unused, 0, sizeof unused);
  gpuir_searcher *s = make_searcher(b, 1);
  gpuir_query_desc qd;
  cli_queries keep;
  int r = 0;
  if (!s) return CLI_FAIL;
  memset(&qd, 0, sizeof qd);
  memset(&keep, 0, sizeof keep);
  qd.no_operators = b->no_operators;
  for (n = 0; n < b->qs.n && !r; n++) {
    gpuir_query *q = NULL;
    uint64_t found = 0;
    if (gpuir_query_parse(b->index, &qd, b->qs.texts[n], b->qs.lens[n], &q, NULL)) continue;
    r = gpuir_count(s, q, &found);
    gpuir_query_destroy(q);
    if (!found) continue;
    cli_queries_add(&keep, b->qs.ids[n], strlen(b->qs.ids[n]), b->qs.texts[n], b->qs.lens[n]);
    kept++;
  }
  if (r) search_failed(b, s, r);
  gpuir_searcher_destroy(s);
  cli_queries_free(&b->qs);
  b->qs = keep;
  return r ? CLI_FAIL : CLI_OK;
}

/* ---- the report -------------------------------------------------------------------------------------- */

/* Prints to standard output and, as comments, to the TSV file. */
static void say(FILE *tsv, const char *key, const char *fmt, ...) CLI_PRINTF(3, 4);
static void say(FILE *tsv, const char *key, const char *fmt, ...) {
  char text[4096];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  printf("%-12s ", key);
  cli_tsv_string(stdout, text, strlen(text));
  putchar('\n');
  if (!tsv) return;
  fprintf(tsv, "# %s: ", key);
  cli_tsv_string(tsv, text, strlen(text));
  fputc('\n', tsv);
}

static void print_head(const bench *b, FILE *tsv, const char *command, const char *origin, size_t before) {
  char cpu[256], n1[CLI_COUNTED], n2[CLI_COUNTED], n3[CLI_COUNTED], n4[CLI_COUNTED];
  cli_cpu_model(cpu, sizeof cpu);
  say(tsv, "gpuir", "%s", gpuir_version());
  say(tsv, "machine", "%s, %s, simd %s", cpu, cli_counted(cli_processors(), "processor", "processors", n1),
      gpuir_simd_name(GPUIR_SIMD_AUTO));
  say(tsv, "corpus", "%s%s%s, %s, %s, %s", b->info.description, *b->info.description ? ": " : "",
      cli_counted(b->info.documents, "document", "documents", n1), cli_counted(b->info.terms, "term", "terms", n2),
      cli_counted(b->info.postings, "posting", "postings", n3), cli_counted(b->info.tokens, "token", "tokens", n4));
  say(tsv, "index", "%s: %s, %s + %s, %.3f bits a posting, order %s, analyzer %s, k1 %g, b %g", b->path,
      cli_counted(b->info.file_bytes, "byte", "bytes", n1), b->info.codec, b->info.freq_codec, b->info.bits_per_posting,
      b->info.order, b->info.analyzer, (double)b->info.k1, (double)b->info.b);
  gpuir_cuda_info gpu;
  if (cli_gpu_stats(&b->gpu, &gpu))
    say(tsv, "backend", "cuda: %s, driver %d, runtime %d; count by the cpu", gpu.device, gpu.driver_version,
        gpu.runtime_version);
  say(tsv, "command", "%s", command);
  if (before != b->qs.n) say(tsv, "queries", "%zu of %zu (%s) have an AND hit", b->qs.n, before, origin);
  else say(tsv, "queries", "%zu (%s)", b->qs.n, origin);
  say(tsv, "measured", "k %zu, %s evaluator, %s, median of %llu; latency of the search alone, one thread", b->k,
      b->evaluator == GPUIR_EVAL_EXHAUSTIVE ? "exhaustive" : "auto",
      cli_counted(b->warmup, "warm-up round", "warm-up rounds", n1), (unsigned long long)b->repeat);
}

static void print_columns(const bench *b, FILE *tsv) {
  printf("\n%-6s %8s %9s %9s %9s %9s %9s %10s %8s %9s %11s %8s", "mode", "queries", "mean us", "p50", "p90", "p95",
      "p99", "max", "parse", "hits", "postings", "blocks");
  for (int i = 0; i < b->nthreads; i++) printf(" %7s/s %ut", "queries", b->threads[i]);
  putchar('\n');
  if (!tsv) return;
  fprintf(tsv,
      "mode\tqueries\trejected\tmean_us\tp50_us\tp90_us\tp95_us\tp99_us\tmax_us\tparse_"
      "us\thits\tpostings_scored"
      "\tblocks_decoded\tblocks_total\tchecksum");
  for (int i = 0; i < b->nthreads; i++) fprintf(tsv, "\tqps_%ut", b->threads[i]);
  fputc('\n', tsv);
}

static void print_row(const bench *b, FILE *tsv, int mode, const latencies *l, const double *rates) {
  char refused[CLI_COUNTED];
  printf("%-6s %8llu %9.1f %9.1f %9.1f %9.1f %9.1f %10.1f %8.2f %9.1f %11.1f %7.2f%%", mode_names[mode],
      (unsigned long long)l->queries, l->mean, l->p50, l->p90, l->p95, l->p99, l->max, l->parse, l->hits, l->postings,
      l->blocks_total > 0 ? 100.0 * l->blocks / l->blocks_total : 0.0);
  for (int i = 0; i < b->nthreads; i++) {
    if (rates[i] > 0) printf(" %12.0f", rates[i]);
    else printf(" %12s", "-");
  }
  if (l->rejected) printf("  (%s refused)", cli_counted(l->rejected, "query", "queries", refused));
  putchar('\n');
  if (!tsv) return;
  fprintf(tsv, "%s\t%llu\t%llu\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%016llx",
      mode_names[mode], (unsigned long long)l->queries, (unsigned long long)l->rejected, l->mean, l->p50, l->p90,
      l->p95, l->p99, l->max, l->parse, l->hits, l->postings, l->blocks, l->blocks_total,
      (unsigned long long)l->checksum);
  for (int i = 0; i < b->nthreads; i++) {
    if (rates[i] > 0) fprintf(tsv, "\t%.1f", rates[i]);
    else fprintf(tsv, "\t");
  }
  fputc('\n', tsv);
}

static int bench_mode(bench *b, int mode, FILE *tsv) {
  latencies l;
  double rates[MAX_THREAD_COUNTS] = {0};
  size_t n;
  memset(&l, 0, sizeof l);
  gpuir_query **q = parse_all(b, mode, &n, &l);
  gpuir_hit *hits = (gpuir_hit *)cli_resize(NULL, b->k, sizeof *hits);
  int code = measure_latency(b, mode, q, n, hits, &l);
  for (int i = 0; i < b->nthreads && !code; i++) code = measure_throughput(b, mode, q, n, b->threads[i], &rates[i]);
  if (!code) print_row(b, tsv, mode, &l, rates);
  cli_flush();
  free(hits);
  free_queries(q, n);
  return code;
}

/* Closes a file that was written; a message and CLI_FAIL if that went wrong. */
static int close_written(FILE *f, const char *path) {
  int bad = ferror(f);
  errno = 0;
  if (fclose(f)) bad = 1;
  if (bad) cli_error("%s: %s", path, errno ? strerror(errno) : "writing failed");
  return bad ? CLI_FAIL : CLI_OK;
}

static int dump_queries(const cli_queries *qs, const char *path) {
  FILE *f = fopen(path, "w");
  if (!f) {
    cli_error("%s: %s", path, strerror(errno));
    return CLI_FAIL;
  }
  for (size_t i = 0; i < qs->n; i++) {
    fprintf(f, "%s:", qs->ids[i]);
    fwrite(qs->texts[i], 1, qs->lens[i], f);
    fputc('\n', f);
  }
  return close_written(f, path);
}

/* ---- options ----------------------------------------------------------------------------------------- */

enum {
  O_QUERIES = 2,
  O_SAMPLE,
  O_SEED,
  O_MIN_DF,
  O_MIN_LEN,
  O_MAX_LEN,
  O_MODES,
  O_K,
  O_THREADS,
  O_WARMUP,
  O_REPEAT,
  O_EVALUATOR,
  O_INTERSECTION,
  O_BACKEND,
  O_DEVICES,
  O_PARTITION,
  O_TSV,
  O_DUMP,
  O_AND_HIT,
  O_IDS,
  O_NO_IDS,
  O_NO_OPERATORS
};

static const cli_option options[] = {{O_QUERIES, "queries", 0, 1}, {O_SAMPLE, "sample", 0, 1}, {O_SEED, "seed", 0, 1},
    {O_MIN_DF, "min-df", 0, 1}, {O_MIN_LEN, "min-len", 0, 1}, {O_MAX_LEN, "max-len", 0, 1}, {O_MODES, "modes", 0, 1},
    {O_K, "k", 'k', 1}, {O_THREADS, "threads", 0, 1}, {O_WARMUP, "warmup", 0, 1}, {O_REPEAT, "repeat", 0, 1},
    {O_EVALUATOR, "evaluator", 0, 1}, {O_INTERSECTION, "intersection", 0, 1}, {O_BACKEND, "backend", 0, 1},
    {O_DEVICES, "devices", 0, 1}, {O_PARTITION, "partition", 0, 0}, {O_TSV, "tsv", 0, 1},
    {O_DUMP, "dump-queries", 0, 1}, {O_AND_HIT, "require-and-hit", 0, 0}, {O_IDS, "ids", 0, 0},
    {O_NO_IDS, "no-ids", 0, 0}, {O_NO_OPERATORS, "no-operators", 0, 0}, {0, NULL, 0, 0}};

/* "and,or": calls each with its number among the names. */
static int read_modes(const cli_args *a, int *modes, int *n) {
  char *list = cli_copy(a->value, strlen(a->value));
  cli_args one = *a;
  int bad = 0;
  *n = 0;
  for (char *p = list; !bad;) {
    size_t len = strcspn(p, ",");
    int more = p[len] == ',', mode = 0;
    p[len] = 0;
    one.value = p;
    bad = cli_choice(&one, "and|or|andor|count", &mode);
    for (int i = 0; i < *n; i++)
      if (!bad && modes[i] == mode) bad = cli_misuse("bench", "--modes: '%s' twice", p);
    if (!bad) modes[(*n)++] = mode;
    if (!more) break;
    p += len + 1;
  }
  free(list);
  return bad;
}

static int read_threads(const cli_args *a, bench *b) {
  char *list = cli_copy(a->value, strlen(a->value));
  cli_args one = *a;
  int bad = 0;
  b->nthreads = 0;
  for (char *p = list; !bad;) {
    size_t len = strcspn(p, ",");
    int more = p[len] == ',';
    uint64_t n = 0;
    p[len] = 0;
    one.value = p;
    if (b->nthreads == MAX_THREAD_COUNTS) bad = cli_misuse("bench", "--threads: at most %d counts", MAX_THREAD_COUNTS);
    else bad = cli_unsigned(&one, 1, 1024, &n);
    if (!bad) b->threads[b->nthreads++] = (unsigned)n;
    if (!more) break;
    p += len + 1;
  }
  free(list);
  return bad;
}

static int run_bench(bench *b, const char *queries, int ids, const sampling *sm, const int *modes, int nmodes,
    const char *tsv_path, const char *dump, int and_hit, const char *command) {
  FILE *tsv = NULL;
  char origin[512];
  int code = CLI_OK;
  b->index = cli_open(b->path);
  if (!b->index) return CLI_FAIL;
  int r = gpuir_index_get_info(b->index, &b->info);
  if (r) return cli_fail(b->path, r, NULL);
  if (b->k > b->info.documents) b->k = (size_t)b->info.documents;
  if (cli_gpu_open(&b->gpu, b->backend, &b->devices, b->index)) return CLI_FAIL;
  if (queries) {
    snprintf(origin, sizeof origin, "from %s", queries);
    code = cli_queries_read(&b->qs, queries, ids);
  } else {
    snprintf(origin, sizeof origin, "sampled: seed %llu, %llu to %llu consecutive distinct tokens, df >= %llu",
        (unsigned long long)sm->seed, (unsigned long long)sm->min_len, (unsigned long long)sm->max_len,
        (unsigned long long)sm->min_df);
    b->no_operators = 1;
    code = sample(b->index, b->path, sm, &b->qs);
  }
  size_t before = b->qs.n;
  if (!code && and_hit) code = require_and_hit(b);
  if (!code && !b->qs.n) {
    cli_error("%s: no query is left to measure", queries ? queries : b->path);
    code = CLI_FAIL;
  }
  if (!code && dump) code = dump_queries(&b->qs, dump);
  if (!code && tsv_path && (tsv = fopen(tsv_path, "w")) == NULL) {
    cli_error("%s: %s", tsv_path, strerror(errno));
    code = CLI_FAIL;
  }
  if (!code) {
    print_head(b, tsv, command, origin, before);
    print_columns(b, tsv);
    for (int i = 0; i < nmodes && !code; i++) code = bench_mode(b, modes[i], tsv);
  }
  if (tsv && close_written(tsv, tsv_path)) code = CLI_FAIL;
  return cli_finish(code);
}

int cli_bench(int argc, char **argv) {
  cli_args a;
  bench b;
  sampling sm = {1000, 1, 10, 2, 5};
  uint64_t k = 10;
  int opt, bad = 0, code, modes[MODES] = {MODE_AND, MODE_OR, MODE_ANDOR, MODE_COUNT}, nmodes = MODES, and_hit = 0;
  int ids = CLI_IDS_AUTO, sampled = 0;
  const char *queries = NULL, *tsv = NULL, *dump = NULL;
  cli_buf command = {NULL, 0, 0};
  memset(&b, 0, sizeof b);
  cli_args_start(&a, "bench", options, argc, argv);
  b.repeat = 3;
  b.warmup = 1;
  b.threads[b.nthreads++] = 1;
  if (cli_processors() > 1) b.threads[b.nthreads++] = cli_processors();
  while (!bad && (opt = cli_next(&a)) != CLI_END) {
    switch (opt) {
    case CLI_HELP: cli_args_free(&a); return cli_help("bench");
    case O_QUERIES: queries = a.value; break;
    case O_SAMPLE: bad = cli_unsigned(&a, 1, 10000000, &sm.n), sampled = 1; break;
    case O_SEED: bad = cli_unsigned(&a, 0, UINT64_MAX, &sm.seed), sampled = 1; break;
    case O_MIN_DF: bad = cli_unsigned(&a, 1, UINT32_MAX, &sm.min_df), sampled = 1; break;
    case O_MIN_LEN: bad = cli_unsigned(&a, 1, MAX_SAMPLED_LENGTH, &sm.min_len), sampled = 1; break;
    case O_MAX_LEN: bad = cli_unsigned(&a, 1, MAX_SAMPLED_LENGTH, &sm.max_len), sampled = 1; break;
    case O_MODES: bad = read_modes(&a, modes, &nmodes); break;
    case O_K: bad = cli_unsigned(&a, 0, 10000000, &k); break;
    case O_THREADS: bad = read_threads(&a, &b); break;
    case O_WARMUP: bad = cli_unsigned(&a, 0, 1000, &b.warmup); break;
    case O_REPEAT: bad = cli_unsigned(&a, 1, 1000, &b.repeat); break;
    case O_EVALUATOR: bad = cli_choice(&a, "auto|exhaustive", &b.evaluator); break;
    case O_INTERSECTION: bad = cli_intersection(&a, &b.intersection); break;
    case O_BACKEND: bad = cli_choice(&a, "cpu|gpu|auto", &b.backend); break;
    case O_DEVICES: bad = cli_devices_read(&a, &b.devices); break;
    case O_PARTITION: b.devices.partition = 1; break;
    case O_TSV: tsv = a.value; break;
    case O_DUMP: dump = a.value; break;
    case O_AND_HIT: and_hit = 1; break;
    case O_IDS: ids = CLI_IDS_YES; break;
    case O_NO_IDS: ids = CLI_IDS_NO; break;
    case O_NO_OPERATORS: b.no_operators = 1; break;
    default: bad = 1; break;
    }
  }
  code = bad ? CLI_USAGE : CLI_OK;
  if (!code && a.noperands != 1) code = cli_misuse("bench", a.noperands ? "one INDEX only" : "INDEX is missing");
  if (!code && queries && sampled) code = cli_misuse("bench", "--queries and sampling exclude each other");
  if (!code && sm.min_len > sm.max_len) code = cli_misuse("bench", "--min-len is larger than --max-len");
  if (!code) {
    cli_buf_text(&command, "gpuir bench");
    for (int i = 0; i < argc; i++) {
      cli_buf_char(&command, ' ');
      cli_buf_text(&command, argv[i]);
    }
    cli_buf_char(&command, 0);
    b.path = a.operands[0];
    b.k = (size_t)k;
    code = run_bench(&b, queries, ids, &sm, modes, nmodes, tsv, dump, and_hit, command.p);
  }
  cli_queries_free(&b.qs);
  cli_gpu_close(&b.gpu);
  gpuir_close(b.index);
  cli_buf_free(&command);
  cli_args_free(&a);
  return code;
}
