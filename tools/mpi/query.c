/* query.c - gpuir-mpi query: the first rank reads queries and prints hits, all ranks answer. */
#include "mpi.h"

#include "../common/advice.h"
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
  int has_k, has_mode, has_stop, has_k1, has_b, form, ids, backend, many, failed, rank, scores;
  int look; /* hits get a second look */
  size_t most; /* hits of a query that are printed; the search is for search.k */
  size_t hits_total, loose, without, spelled; /* queries: answered by any of their words; of these those of which no
                                               * document has all; with others in place of their words */
  cli_buf names; /* this rank's on their way, or all ranks': see add_facts */
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

/* Adds to `out` what this rank knows of its hits among those of a query: whether each defines what is asked for, its
 * name, and the values that are shown. */
static void add_facts(const query *q, const mpi_batch *b, size_t number, const gpuir_hit *hits, cli_buf *out) {
  const uint64_t first = q->shard.place.first, end = first + q->shard.info.documents;
  gpuir_hit own[GPUIR_LOOK_HITS];
  uint8_t defines[GPUIR_LOOK_HITS];
  cli_buf name = {NULL, 0, 0};
  gpuir_error err;
  size_t n = 0, at = 0;
  memset(&err, 0, sizeof err);
  for (size_t i = 0; i < q->search.k && i < GPUIR_LOOK_HITS && hits[i].docid != GPUIR_END; i++) {
    if (hits[i].docid < first || hits[i].docid >= end) continue;
    own[n] = hits[i];
    own[n++].docid -= (uint32_t)first;
  }
  memset(defines, 0, sizeof defines);
  if (q->look && n && gpuir_look_defines(b->queries[number], b->texts[number], b->lens[number], own, n, defines, &err))
    cli_die("%s", err.msg);
  for (size_t i = 0; i < q->search.k && hits[i].docid != GPUIR_END; i++) {
    gpuir_doc doc;
    if (hits[i].docid < first || hits[i].docid >= end) continue;
    if (gpuir_doc_get(q->shard.index, hits[i].docid - (uint32_t)first, &doc)) memset(&doc, 0, sizeof doc);
    (void)cli_doc_name(&name, &doc);
    cli_buf_char(out, at < n ? (char)defines[at++] : (char)0);
    put_text(out, &name);
    for (size_t j = 0; j < q->show.n; j++) {
      name.n = 0;
      cli_values_text(q->shard.index, hits[i].docid - (uint32_t)first, q->show.fields[j], &name);
      put_text(out, &name);
    }
  }
  cli_buf_free(&name);
}

/* Gathers what is known of all hits at the first rank, which reads it in the hits' order, rank by rank. */
static void gather_facts(query *q, const mpi_batch *b, const gpuir_hit *hits) {
  int *counts = (int *)cli_resize(NULL, (size_t)mpi_ranks, sizeof *counts), own;
  cli_buf out = {NULL, 0, 0};
  size_t all = 0;
  for (size_t i = 0; i < b->n; i++)
    if (b->queries[i]) add_facts(q, b, i, hits + i * q->search.k, &out);
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
  free(counts);
}

/* Steps over a text behind its length. */
static const char *next_text(const char **p, uint32_t *len) {
  const char *text = *p + sizeof *len;
  memcpy(len, *p, sizeof *len);
  *p = text + *len;
  return text;
}

/* Takes what is known of the hit that comes, from the rank that has it. */
static void next_fact(query *q, const uint64_t *firsts, uint32_t docid, gpuir_look_fact *fact) {
  int r = mpi_ranks - 1;
  while (r && (firsts[r] > docid)) r--;
  const char *p = q->names.p + q->places[r];
  uint32_t len;
  fact->defines = *p++;
  fact->name = next_text(&p, &fact->len);
  for (size_t i = 0; i < q->show.n; i++) (void)next_text(&p, &len);
  q->places[r] = (int)(p - q->names.p);
}

/* Prints the values of a hit, which stand behind its name. */
static void print_values(const query *q, const gpuir_look_fact *fact) {
  const char *p = fact->name + fact->len;
  for (size_t i = 0; i < q->show.n; i++) {
    uint32_t len;
    const char *text = next_text(&p, &len);
    putchar('\t');
    cli_tsv_string(stdout, text, len);
  }
}

/* Returns which of n hits a looked one is, number i of them: those that were looked at have other places. */
static size_t hit_of(const gpuir_hit *hits, size_t n, const gpuir_looked *looked, size_t i) {
  const size_t most = n < GPUIR_LOOK_HITS ? n : GPUIR_LOOK_HITS;
  size_t at = i;
  if (i < most)
    for (at = 0; at + 1 < most && hits[at].docid != looked[i].docid;) at++;
  return at;
}

/* Prints the hits of a query, which has n, after a second look at them if they get one. */
static void print_hits(query *q, const mpi_batch *b, size_t number, const char *id, const gpuir_hit *hits, size_t n,
    const gpuir_look_fact *facts) {
  gpuir_looked *looked = (gpuir_looked *)cli_resize(NULL, n, sizeof *looked);
  gpuir_error err;
  memset(&err, 0, sizeof err);
  for (size_t i = 0; i < n; i++) looked[i] = (gpuir_looked){hits[i].docid, hits[i].score, hits[i].score};
  if (q->look && gpuir_look_facts(b->queries[number], b->texts[number], b->lens[number], hits, facts, n, looked, &err))
    cli_die("query %s: %s", id, err.msg);
  for (size_t i = 0; i < n && i < q->most; i++) {
    const gpuir_hit hit = {looked[i].docid, looked[i].score};
    const gpuir_look_fact *fact = &facts[q->look ? hit_of(hits, n, looked, i) : i];
    cli_print_hit(q->form, q->form == FORM_TSV && !q->many ? NULL : id, i + 1, hit, q->scores ? &looked[i].plain : NULL,
        fact->name, fact->len, q->tag);
    print_values(q, fact);
    putchar('\n');
    q->hits_total++;
  }
  free(looked);
}

static void tell_word(void *arg, const char *line, size_t len) {
  (void)arg;
  cli_error("%.*s", (int)len, line);
}

/* Says of the one query which words others are searched in place of, and that its hits have only some of its words, as
 * gpuir query does; of many it is counted. */
static void tell_of(query *q, const mpi_batch *b, size_t i, size_t n) {
  const gpuir_query *asked = b->queries[i];
  const char *word, *instead;
  size_t len, instead_len, k = 0;
  const int shortened = !gpuir_query_left_out(asked, 0, &word, &len);
  const int loose = b->all && b->all[i] != SIZE_MAX && !shortened && n > b->all[i];
  q->shortened += (size_t)shortened;
  q->loose += (size_t)loose;
  q->without += loose && !b->all[i];
  for (; !gpuir_query_spelled(asked, k, &word, &len, &instead, &instead_len); k++)
    if (!q->many)
      cli_error("note: no document has '%.*s'; '%.*s' is searched in its place; --exact searches it", (int)len, word,
          (int)instead_len, instead);
  q->spelled += k != 0;
  if (loose && !q->many) cli_tell_loose(asked, b->all[i]);
  if (!n && !q->many && !advice_unknown(asked, tell_word, NULL)) cli_error("no document matches");
}

/* Prints the answers to the first rank's queries from number `from` on. */
static void print_answers(query *q, size_t from, const mpi_batch *b, const gpuir_hit *hits, const gpuir_error *err,
    const uint64_t *firsts) {
  gpuir_look_fact *facts = (gpuir_look_fact *)cli_resize(NULL, q->search.k, sizeof *facts);
  for (size_t i = 0; i < b->n; i++) {
    const char *id = q->qs.ids[from + i];
    const gpuir_hit *own = hits + i * q->search.k;
    size_t n = 0;
    if (b->statuses[i]) {
      const char *cause = err[i].msg[0] ? err[i].msg : gpuir_strerror(b->statuses[i]);
      q->failed = 1;
      cli_error("%s: query %s: %s", q->folder, id, cause);
      continue;
    }
    for (; n < q->search.k && own[n].docid != GPUIR_END; n++) next_fact(q, firsts, own[n].docid, &facts[n]);
    tell_of(q, b, i, n);
    if (q->form == FORM_HUMAN && q->many) cli_print_question(id, b->texts[i], b->lens[i]);
    print_hits(q, b, i, id, own, n, facts);
  }
  free(facts);
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
    gather_facts(q, &b, hits);
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
  O_SHOW,
  O_SPELL,
  O_EXACT,
  O_RANK,
  O_SCORES,
  O_EXPAND
};

enum { RANK_AUTO, RANK_PLAIN, RANK_CODE }; /* as --rank names them */

static int one_form(const cli_args *a, query *q, int form) {
  if (q->form != FORM_HUMAN && q->form != form)
    return cli_misuse("query", "%s: another form of output was given before", a->name);
  q->form = form;
  return 0;
}

/* Takes what is searched in place of words that no document has. Not 0 after a message. */
static int spell_flag(const cli_args *a, query *q, int spell) {
  if (q->search.desc.spell && q->search.desc.spell != spell)
    return cli_misuse(a->command, "--spell and --exact exclude each other");
  q->search.desc.spell = spell;
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
    case O_SPELL: bad = spell_flag(a, q, GPUIR_SPELL); break;
    case O_EXACT: bad = spell_flag(a, q, GPUIR_EXACT); break;
    case O_RANK: bad = cli_choice(a, "auto|plain|code", &q->rank); break;
    case O_SCORES: q->scores = 1; break;
    case O_EXPAND:
      bad = cli_misuse("query", "--expand reads texts, which ranks do not: 'gpuir-mpi join' makes an index");
      break;
    default: bad = 1; break;
    }
  }
  if (bad) return 1 + CLI_USAGE;
  if (!a->noperands) return 1 + cli_misuse("query", "SHARDS is missing");
  if (q->topics && a->noperands > 1) return 1 + cli_misuse("query", "--topics and QUERY exclude each other");
  if (q->search.desc.sort && q->form == FORM_TREC)
    return 1 + cli_misuse("query", "--sort and --trec: the order of a run is that of its scores");
  if (q->search.desc.sort && (q->rank == RANK_CODE || q->scores))
    return 1 + cli_misuse("query", "--sort leaves no second look at the hits: not with --rank code or --scores");
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

/* Returns whether hits get a second look: as gpuir query has it of the whole index. All ranks call it. */
static int is_looked_at(const query *q) {
  uint64_t sources = 0;
  (void)gpuir_index_is_code(q->shard.index, &sources);
  MPI_Allreduce(MPI_IN_PLACE, &sources, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  if (q->rank != RANK_AUTO) return q->rank == RANK_CODE;
  return !q->search.desc.sort && q->form != FORM_TREC && !q->topics && sources &&
      2 * sources >= q->shard.place.documents;
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
  if (code) return code;
  q->most = q->search.k = (size_t)q->k;
  q->look = is_looked_at(q);
  if (q->look && q->most < GPUIR_LOOK_HITS) { /* the look changes what comes first, not what is found */
    q->search.k = GPUIR_LOOK_HITS;
    q->search.enough = q->most;
  }
  q->search.threads = (unsigned)q->threads;
  return mpi_search_open(&q->search, &q->shard, *searcher);
}

int mpi_query(int argc, char **argv) {
  static const cli_option options[] = {{O_MODE, "mode", 'm', 1}, {O_K, "k", 'k', 1}, {O_K1, "k1", 0, 1},
      {O_B, "b", 0, 1}, {O_BACKEND, "backend", 0, 1}, {O_THREADS, "threads", 0, 1}, {O_BATCH, "batch", 0, 1},
      {O_TREC, "trec", 0, 0}, {O_TSV, "tsv", 0, 0}, {O_TAG, "tag", 0, 1}, {O_TOPICS, "topics", 0, 1},
      {O_IDS, "ids", 0, 0}, {O_NO_IDS, "no-ids", 0, 0}, {O_NO_OPERATORS, "no-operators", 0, 0},
      {O_PREFIX_POSTINGS, "prefix-postings", 0, 1}, {O_STOP_QUERY, "stop-query", 0, 1}, {O_WHERE, "where", 'w', 1},
      {O_SORT, "sort", 0, 1}, {O_COLLAPSE, "collapse", 0, 1}, {O_SHOW, "show", 0, 1}, {O_SPELL, "spell", 0, 0},
      {O_EXACT, "exact", 0, 0}, {O_RANK, "rank", 0, 1}, {O_SCORES, "scores", 0, 0}, {O_EXPAND, "expand", 0, 0},
      {0, NULL, 0, 0}};
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
  else if (!q.topics && !q.has_mode) q.search.desc.mode = GPUIR_ANDOR; /* as gpuir query has it */
  if (q.form == FORM_TREC && !q.has_k) q.k = 1000;
  if (q.topics || q.form == FORM_TREC) q.search.desc.no_operators = 1;
  else if (!q.search.desc.spell) q.search.desc.spell = GPUIR_SPELL;
  q.search.desc.keep_rarest = 1;
  q.places = (int *)cli_resize(NULL, (size_t)mpi_ranks, sizeof *q.places);
  code = open_search(&q, &searcher);
  if (!code) code = read_queries(&q, &a);
  if (!code) {
    firsts = (uint64_t *)cli_resize(NULL, (size_t)mpi_ranks, sizeof *firsts);
    MPI_Gather(&q.shard.place.first, 1, MPI_UINT64_T, firsts, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    run_queries(&q, firsts);
    cli_tell_shortened(q.shortened);
    if (q.many) cli_tell_many_spelled(q.spelled);
    if (q.many) cli_tell_many_loose(q.loose);
    if (q.failed || q.search.failures) code = CLI_FAIL;
    if (!mpi_rank && !q.many && (!q.hits_total || q.without)) code = CLI_FAIL;
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
