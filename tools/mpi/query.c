/* query.c - gpuir-mpi query: the first rank reads queries and prints hits, all ranks answer. */
#include "mpi.h"

#include "../common/stop_words.h"

#include <stdlib.h>
#include <string.h>

#define BATCH_HITS ((size_t)1 << 22) /* that a rank holds at most */

typedef struct query {
  mpi_shard shard;
  mpi_search search;
  cli_gpu gpu;
  const char *folder, *tag, *topics, *shown;
  cli_show show; /* these values stand behind a hit */
  size_t shortened; /* queries that do without some of their words */
  uint64_t k, batch, threads;
  float k1, b;
  int has_k, has_mode, has_stop, has_k1, has_b, form, ids, backend, many, failed;
  size_t hits_total;
  cli_buf names; /* this rank's on their way, or all ranks' */
  int *places; /* [ranks] where those of each begin */
  cli_queries qs;
} query;

/* ---- the queries: from the first rank to all ---- */

/* Sends queries [from, from + n) of the first rank to all others, whose texts become those. */
static void send_texts(query *q, size_t from, mpi_batch *b) {
  uint64_t head[2] = {b->n, 0};
  cli_buf bytes = {NULL, 0, 0};
  for (size_t i = 0; !mpi_rank && i < b->n; i++) {
    const uint32_t len = (uint32_t)q->qs.lens[from + i];
    cli_buf_add(&bytes, &len, sizeof len);
    cli_buf_add(&bytes, q->qs.texts[from + i], len);
  }
  head[1] = bytes.n;
  MPI_Bcast(head, 2, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  b->n = (size_t)head[0];
  if (!b->n) return;
  if (mpi_rank) bytes.p = (char *)cli_resize(NULL, (size_t)head[1], 1);
  MPI_Bcast(bytes.p, (int)head[1], MPI_BYTE, 0, MPI_COMM_WORLD);
  b->texts = (char **)cli_resize(b->texts, b->n, sizeof *b->texts);
  b->lens = (size_t *)cli_resize(b->lens, b->n, sizeof *b->lens);
  const char *p = bytes.p;
  for (size_t i = 0; i < b->n; i++) {
    uint32_t len;
    memcpy(&len, p, sizeof len);
    b->lens[i] = len;
    b->texts[i] = cli_copy(p + sizeof len, len);
    p += sizeof len + len;
  }
  if (mpi_rank) free(bytes.p);
  else cli_buf_free(&bytes);
}

/* ---- the hits ---- */

/* Appends a text behind its length. */
static void put_text(cli_buf *out, const cli_buf *text) {
  const uint32_t len = (uint32_t)text->n;
  cli_buf_add(out, &len, sizeof len);
  cli_buf_add(out, text->p, text->n);
}

/* Gathers the names of all hits, and the values that are shown, at the first rank, which reads them in the hits' order, rank by rank. */
static void gather_names(query *q, const gpuir_hit *hits, size_t n) {
  const uint64_t first = q->shard.place.first, end = first + q->shard.info.documents;
  int *counts = (int *)cli_resize(NULL, (size_t)mpi_ranks, sizeof *counts), own;
  cli_buf out = {NULL, 0, 0}, name = {NULL, 0, 0};
  size_t all = 0;
  for (size_t i = 0; i < n; i++) {
    gpuir_doc doc;
    if (hits[i].docid == GPUIR_END || hits[i].docid < first || hits[i].docid >= end) continue;
    if (gpuir_doc_get(q->shard.index, hits[i].docid - (uint32_t)first, &doc)) memset(&doc, 0, sizeof doc);
    (void)cli_doc_name(&name, &doc);
    put_text(&out, &name);
    for (size_t j = 0; j < q->show.n; j++) {
      name.n = 0;
      cli_values_text(q->shard.index, hits[i].docid - (uint32_t)first, q->show.fields[j], &name);
      put_text(&out, &name);
    }
  }
  own = (int)out.n;
  MPI_Gather(&own, 1, MPI_INT, counts, 1, MPI_INT, 0, MPI_COMM_WORLD);
  for (int r = 0; !mpi_rank && r < mpi_ranks; r++) {
    q->places[r] = (int)all;
    all += (size_t)counts[r];
  }
  q->names.n = 0;
  if (!mpi_rank && q->names.cap < all) q->names.p = (char *)cli_resize(q->names.p, q->names.cap = all, 1);
  MPI_Gatherv(out.p, own, MPI_BYTE, q->names.p, counts, q->places, MPI_BYTE, 0, MPI_COMM_WORLD);
  cli_buf_free(&out);
  cli_buf_free(&name);
  free(counts);
}

/* Returns the name of the hit that comes, from the rank that has it, or the next value of it. */
static const char *next_name(query *q, const uint64_t *firsts, uint32_t docid, uint32_t *len) {
  int r = mpi_ranks - 1;
  while (r && (firsts[r] > docid)) r--;
  const char *p = q->names.p + q->places[r];
  memcpy(len, p, sizeof *len);
  q->places[r] += (int)(sizeof *len + *len);
  return p + sizeof *len;
}

/* Prints the answers to the first rank's queries from number `from` on. */
static void print_answers(query *q, size_t from, const mpi_batch *b, const gpuir_hit *hits, const gpuir_error *err,
    const uint64_t *firsts) {
  const char *word;
  size_t len;
  for (size_t i = 0; i < b->n; i++) {
    const char *id = q->qs.ids[from + i];
    if (b->statuses[i]) {
      const char *cause = err[i].msg[0] ? err[i].msg : gpuir_strerror(b->statuses[i]);
      q->failed = 1;
      cli_error("%s: query %s: %s", q->folder, id, cause);
      continue;
    }
    q->shortened += b->queries[i] && !gpuir_query_left_out(b->queries[i], 0, &word, &len);
    if (q->form == FORM_HUMAN && q->many) cli_print_question(id, b->texts[i], b->lens[i]);
    for (size_t j = 0; j < q->search.k && hits[i * q->search.k + j].docid != GPUIR_END; j++) {
      const gpuir_hit hit = hits[i * q->search.k + j];
      uint32_t n;
      const char *name = next_name(q, firsts, hit.docid, &n);
      cli_print_hit(q->form, q->form == FORM_TSV && !q->many ? NULL : id, j + 1, hit, NULL, name, n, q->tag);
      for (size_t l = 0; l < q->show.n; l++) {
        putchar('\t');
        name = next_name(q, firsts, hit.docid, &n);
        cli_tsv_string(stdout, name, n);
      }
      putchar('\n');
      q->hits_total++;
    }
  }
}

/* Answers all queries of the first rank, batch by batch. */
static void run_queries(query *q, const uint64_t *firsts) {
  size_t from = 0, most = (size_t)q->batch;
  mpi_batch b;
  memset(&b, 0, sizeof b);
  if (most > BATCH_HITS / q->search.k) most = BATCH_HITS / q->search.k ? BATCH_HITS / q->search.k : 1;
  for (;;) {
    b.n = q->qs.n - from < most ? q->qs.n - from : most; /* 0 on the other ranks, which are told */
    send_texts(q, from, &b);
    if (!b.n) break;
    gpuir_hit *hits = (gpuir_hit *)cli_resize(NULL, b.n * q->search.k, sizeof *hits);
    gpuir_error *err = (gpuir_error *)cli_resize(NULL, b.n, sizeof *err);
    memset(err, 0, b.n * sizeof *err);
    mpi_answer(&q->search, &b, hits, err);
    gather_names(q, hits, b.n * q->search.k);
    if (!mpi_rank) print_answers(q, from, &b, hits, err, firsts);
    mpi_batch_free(&b);
    for (size_t i = 0; i < b.n; i++) free(b.texts[i]);
    free(hits);
    free(err);
    from += mpi_rank ? 0 : b.n;
  }
  free(b.texts);
  free(b.lens);
}

/* ---- the command ---- */

enum {
  O_MODE = 2,
  O_K,
  O_K1,
  O_B,
  O_BACKEND,
  O_THREADS,
  O_BATCH,
  O_TREC,
  O_TSV,
  O_TAG,
  O_TOPICS,
  O_IDS,
  O_NO_IDS,
  O_NO_OPERATORS,
  O_PREFIX_POSTINGS,
  O_STOP_QUERY,
  O_WHERE,
  O_SORT,
  O_COLLAPSE,
  O_SHOW
};

static int one_form(const cli_args *a, query *q, int form) {
  if (q->form != FORM_HUMAN && q->form != form)
    return cli_misuse("query", "%s: another form of output was given before", a->name);
  q->form = form;
  return 0;
}

/* Reads the options. 0; otherwise the command ends with that code - 1. */
static int query_options(cli_args *a, query *q) {
  int opt, bad = 0;
  while (!bad && (opt = cli_next(a)) != CLI_END) {
    switch (opt) {
    case CLI_HELP: return 1 + mpi_help();
    case O_MODE: bad = cli_choice(a, "and|or|andor", &q->search.desc.mode), q->has_mode = 1; break;
    case O_K: bad = cli_unsigned(a, 1, UINT32_MAX, &q->k), q->has_k = 1; break;
    case O_K1: bad = cli_real(a, 0, 1000, &q->k1), q->has_k1 = 1; break;
    case O_B: bad = cli_real(a, 0, 1, &q->b), q->has_b = 1; break;
    case O_BACKEND: bad = cli_choice(a, "cpu|gpu|auto", &q->backend); break;
    case O_THREADS: bad = cli_unsigned(a, 1, 1024, &q->threads); break;
    case O_BATCH: bad = cli_unsigned(a, 1, 1000000, &q->batch); break;
    case O_TREC: bad = one_form(a, q, FORM_TREC); break;
    case O_TSV: bad = one_form(a, q, FORM_TSV); break;
    case O_TAG: q->tag = a->value; break;
    case O_TOPICS: q->topics = a->value; break;
    case O_IDS: q->ids = CLI_IDS_YES; break;
    case O_NO_IDS: q->ids = CLI_IDS_NO; break;
    case O_NO_OPERATORS: q->search.desc.no_operators = 1; break;
    case O_STOP_QUERY: bad = cli_stop_query(a, &q->search.desc.stop), q->has_stop = 1; break;
    case O_WHERE: q->search.desc.where = a->value; break;
    case O_SORT: q->search.desc.sort = a->value; break;
    case O_COLLAPSE: q->search.desc.collapse = a->value; break;
    case O_SHOW: q->shown = a->value; break;
    case O_PREFIX_POSTINGS: bad = cli_unsigned(a, 1, UINT64_MAX, &q->search.desc.prefix_postings); break;
    default: bad = 1; break;
    }
  }
  if (bad) return 1 + CLI_USAGE;
  if (!a->noperands) return 1 + cli_misuse("query", "SHARDS is missing");
  if (q->topics && a->noperands > 1) return 1 + cli_misuse("query", "--topics and QUERY exclude each other");
  if (q->search.desc.sort && q->form == FORM_TREC)
    return 1 + cli_misuse("query", "--sort and --trec: the order of a run is that of its scores");
  if (q->shown && q->form == FORM_TREC)
    return 1 + cli_misuse("query", "--show adds columns to hits, and runs have none");
  q->search.desc.all = (q->search.desc.where || q->search.desc.sort) && a->noperands == 1 && !q->topics;
  return 0;
}

/* Reads the queries on the first rank. An exit code, the same on all ranks. */
static int read_queries(query *q, const cli_args *a) {
  cli_buf words = {NULL, 0, 0};
  int code = CLI_OK;
  if (mpi_rank) return mpi_agree(code);
  if (q->topics || (a->noperands == 1 && !q->search.desc.all)) {
    code = cli_queries_read(&q->qs, q->topics ? q->topics : "-", q->ids);
  } else {
    cli_join_words(a, 1, &words);
    cli_queries_add(&q->qs, "1", 1, words.p ? words.p : "", words.n);
    cli_buf_free(&words);
  }
  return mpi_agree(code);
}

/* Opens this rank's shard, with a searcher. An exit code, the same on all ranks. */
static int open_search(query *q, gpuir_searcher **searcher) {
  gpuir_searcher_desc sd;
  gpuir_error err;
  const cli_devices device = mpi_device(q->backend);
  int code = mpi_open(&q->shard, q->folder), status;
  if (code) return code;
  memset(&sd, 0, sizeof sd);
  memset(&err, 0, sizeof err);
  sd.threads = (unsigned)q->threads;
  if (!q->has_stop) q->search.desc.stop = stop_words_for(q->shard.index); /* of all shards alike */
  cli_bm25(q->shard.index, &q->search.desc, q->has_k1, q->has_b, q->k1, q->b);
  mpi_all_speak();
  status = gpuir_searcher_create(q->shard.index, &sd, searcher, &err);
  code = status                                                    ? cli_fail(q->folder, status, &err)
      : cli_gpu_open(&q->gpu, q->backend, &device, q->shard.index) ? CLI_FAIL
      : cli_gpu_attach(&q->gpu, *searcher)                         ? CLI_FAIL
                                                                   : CLI_OK;
  code = mpi_agree(code);
  mpi_first_speaks();
  if (!code && q->shown && cli_show_find(q->shard.index, q->folder, q->shown, &q->show)) code = CLI_FAIL; /* on all */
  q->search.k = (size_t)q->k;
  q->search.threads = (unsigned)q->threads;
  return code ? code : mpi_search_open(&q->search, &q->shard, *searcher);
}

int mpi_query(int argc, char **argv) {
  static const cli_option options[] = {{O_MODE, "mode", 'm', 1}, {O_K, "k", 'k', 1}, {O_K1, "k1", 0, 1},
      {O_B, "b", 0, 1}, {O_BACKEND, "backend", 0, 1}, {O_THREADS, "threads", 0, 1}, {O_BATCH, "batch", 0, 1},
      {O_TREC, "trec", 0, 0}, {O_TSV, "tsv", 0, 0}, {O_TAG, "tag", 0, 1}, {O_TOPICS, "topics", 0, 1},
      {O_IDS, "ids", 0, 0}, {O_NO_IDS, "no-ids", 0, 0}, {O_NO_OPERATORS, "no-operators", 0, 0},
      {O_PREFIX_POSTINGS, "prefix-postings", 0, 1}, {O_STOP_QUERY, "stop-query", 0, 1}, {O_WHERE, "where", 'w', 1},
      {O_SORT, "sort", 0, 1}, {O_COLLAPSE, "collapse", 0, 1}, {O_SHOW, "show", 0, 1}, {0, NULL, 0, 0}};
  gpuir_searcher *searcher = NULL;
  uint64_t *firsts = NULL;
  query q;
  cli_args a;
  int code;
  memset(&q, 0, sizeof q);
  q.k = 10;
  q.batch = 1000;
  q.threads = 1;
  q.tag = "gpuir";
  cli_args_start(&a, "query", options, argc, argv);
  a.leading = 1;
  code = query_options(&a, &q);
  if (code) {
    cli_args_free(&a);
    return code - 1;
  }
  q.folder = a.operands[0];
  q.many = a.noperands == 1 && !q.search.desc.all;
  if (q.form == FORM_TREC && !q.has_mode) q.search.desc.mode = GPUIR_OR;
  if (q.form == FORM_TREC && !q.has_k) q.k = 1000;
  if (q.topics || q.form == FORM_TREC) q.search.desc.no_operators = 1;
  q.search.desc.keep_rarest = 1;
  q.places = (int *)cli_resize(NULL, (size_t)mpi_ranks, sizeof *q.places);
  code = open_search(&q, &searcher);
  if (!code) code = read_queries(&q, &a);
  if (!code) {
    firsts = (uint64_t *)cli_resize(NULL, (size_t)mpi_ranks, sizeof *firsts);
    MPI_Gather(&q.shard.place.first, 1, MPI_UINT64_T, firsts, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    run_queries(&q, firsts);
    cli_tell_shortened(q.shortened);
    if (q.failed || q.search.failures || (!mpi_rank && !q.many && !q.hits_total)) code = CLI_FAIL;
    code = cli_finish(code);
  }
  mpi_search_close(&q.search);
  gpuir_searcher_destroy(searcher);
  cli_gpu_close(&q.gpu);
  mpi_close(&q.shard);
  cli_queries_free(&q.qs);
  cli_buf_free(&q.names);
  free(q.places);
  free(firsts);
  cli_args_free(&a);
  return code;
}
