/* show.c - gpuir stats, verify and explain: looking into an index. */
#include "cli.h"

#include "../common/advice.h"
#include "../common/stop_words.h"
#include "../common/text.h"

#include <stdlib.h>
#include <string.h>

enum { O_JSON = 2, O_MODE, O_K1, O_B, O_NO_OPERATORS, O_EXACT, O_GPU, O_INTERSECTION, O_STOP_QUERY, O_WHERE };

/* ---- stats ---------------------------------------------------------------------------------------- */

typedef struct statistic {
  const char *key;
  int kind; /* 'u' a count, 'f' a real, 'k' a float, 's' a text, 'b' a truth */
  uint64_t u;
  double f;
  const char *s;
} statistic;

static void print_statistic(const statistic *t, int json, int first) {
  char grouped[27], number[32];
  if (json) {
    printf("%s\"%s\":", first ? "" : ",", t->key);
    if (t->kind == 's') cli_json_string(stdout, t->s, strlen(t->s));
    else if (t->kind == 'f' || t->kind == 'k') printf("%s", cli_shortest(t->f, t->kind == 'k', number));
    else if (t->kind == 'b') printf("%s", t->u ? "true" : "false");
    else printf("%llu", (unsigned long long)t->u);
    return;
  }
  printf("%-18s ", t->key);
  if (t->kind == 's') cli_tsv_string(stdout, t->s, strlen(t->s));
  else if (t->kind == 'f' || t->kind == 'k') printf("%.6g", t->f);
  else if (t->kind == 'b') printf("%s", t->u ? "yes" : "no");
  else printf("%s", cli_grouped(t->u, grouped));
  putchar('\n');
}

/* Prints which codecs the lists are kept in: of `auto`, a mix. */
static int print_codecs(const gpuir_index *index, int json) {
  static const char *const of[2] = {"freqs", "docids"};
  gpuir_codec_info infos[GPUIR_MAX_CODECS];
  char key[40], lists[CLI_COUNTED], postings[CLI_COUNTED], bytes[CLI_COUNTED];
  size_t i, n;
  int docids, first = 1, r;
  if (json) printf(",\"codecs\":[");
  for (docids = 1; docids >= 0; docids--) {
    r = gpuir_codec_get_info(index, docids, infos, &n);
    if (r) return r;
    for (i = 0; i < n; i++, first = 0) {
      const gpuir_codec_info *c = &infos[i];
      if (json) {
        printf("%s{\"of\":\"%s\",\"codec\":\"%s\",\"lists\":%llu,\"postings\":%llu,\"bytes\":%llu}", first ? "" : ",",
            of[docids], c->codec, (unsigned long long)c->lists, (unsigned long long)c->postings,
            (unsigned long long)c->bytes);
        continue;
      }
      (void)snprintf(key, sizeof key, "%s.%s", of[docids], c->codec);
      printf("%-18s %s, %s, %s\n", key, cli_counted(c->lists, "list", "lists", lists),
          cli_counted(c->postings, "posting", "postings", postings), cli_counted(c->bytes, "byte", "bytes", bytes));
    }
  }
  if (json) putchar(']');
  return GPUIR_OK;
}

/* Where an uploaded index went. */
static void print_gpu(const cli_gpu *gpu, int json) {
  gpuir_cuda_info g;
  if (!cli_gpu_stats(gpu, &g)) return;
  const statistic t[] = {{"device", 's', 0, 0, g.device}, {"driver", 'u', (uint64_t)g.driver_version, 0, NULL},
      {"runtime", 'u', (uint64_t)g.runtime_version, 0, NULL},
      {"compute_capability", 'u', (uint64_t)g.compute_capability, 0, NULL},
      {"device_memory", 'u', g.device_memory, 0, NULL}, {"used_memory", 'u', g.used_memory, 0, NULL},
      {"resident_bytes", 'u', g.resident_bytes, 0, NULL}, {"index_bytes", 'u', g.index_bytes, 0, NULL},
      {"lists_hit", 'u', g.lists_hit, 0, NULL}, {"lists_missed", 'u', g.lists_missed, 0, NULL}};
  for (size_t n = 0; n < sizeof t / sizeof *t; n++) print_statistic(&t[n], json, 0);
}

/* Counts the deleted documents of docIDs [from, to). */
static uint64_t count_deleted(const gpuir_index *index, uint64_t from, uint64_t to) {
  uint64_t n = 0;
  gpuir_doc doc;
  for (; from < to; from++) n += gpuir_doc_get(index, (uint32_t)from, &doc) == GPUIR_E_NOT_FOUND;
  return n;
}

/* What each segment holds, deleted documents included. Of an index that is one segment without any, the whole says
 * it. */
static int print_segments(const gpuir_index *index, const gpuir_index_info *whole, int json) {
  const gpuir_index *segment;
  gpuir_index_info i;
  uint32_t base;
  char key[40], documents[CLI_COUNTED], deleted[27], terms[CLI_COUNTED], postings[CLI_COUNTED], bytes[CLI_COUNTED];
  if (!json && whole->segments == 1 && whole->docids == whole->documents) return GPUIR_OK;
  if (json) printf(",\"segments\":[");
  for (size_t n = 0; (segment = gpuir_index_segment(index, n, &base)) != NULL; n++) {
    int r = gpuir_index_get_info(segment, &i);
    if (r) return r;
    const uint64_t gone = whole->docids == whole->documents ? 0 : count_deleted(index, base, base + i.docids);
    if (json) {
      printf(
          "%s{\"first\":%u,\"documents\":%llu,\"deleted\":%llu,\"terms\":%llu,\"postings\":%llu,"
          "\"file_bytes\":%llu}",
          n ? "," : "", base, (unsigned long long)i.docids, (unsigned long long)gone, (unsigned long long)i.terms,
          (unsigned long long)i.postings, (unsigned long long)i.file_bytes);
      continue;
    }
    (void)snprintf(key, sizeof key, "segment.%zu", n);
    printf("%-18s %s, %s deleted, %s, %s, %s\n", key, cli_counted(i.docids, "document", "documents", documents),
        cli_grouped(gone, deleted), cli_counted(i.terms, "term", "terms", terms),
        cli_counted(i.postings, "posting", "postings", postings), cli_counted(i.file_bytes, "byte", "bytes", bytes));
  }
  if (json) putchar(']');
  return GPUIR_OK;
}

static void put_skipped(void *first, const char *key, uint64_t n) {
  int *is_first = (int *)first;
  printf("%s\"%s\":%llu", *is_first ? "" : ",", key, (unsigned long long)n);
  *is_first = 0;
}

/* What was left out of the index. */
static void print_skipped(const char *path, const gpuir_index_info *info, int json) {
  skipped_counts counts;
  byte_buf said;
  int first = 1;
  skipped_of(&counts, path, info);
  if (json) {
    printf(",\"skipped\":{");
    skipped_each(&counts, put_skipped, &first);
    putchar('}');
    return;
  }
  memset(&said, 0, sizeof said);
  skipped_say(&counts, &said);
  if (said.n) printf("%-18s %.*s\n", "skipped", (int)said.n, said.p);
  bytes_free(&said);
}

/* What a shard knows of its collection. */
static void print_shard(const gpuir_index *index, int json) {
  char tokens[CLI_COUNTED];
  gpuir_shard_info s;
  if (gpuir_shard_get_info(index, &s)) return;
  if (json)
    printf(
        ",\"shard\":{\"number\":%u,\"of\":%u,\"first\":%llu,\"documents\":%llu,\"tokens\":%llu,"
        "\"identity\":\"%016llx%016llx\"}",
        s.shard, s.shards, (unsigned long long)s.first, (unsigned long long)s.documents, (unsigned long long)s.tokens,
        (unsigned long long)s.identity[1], (unsigned long long)s.identity[0]);
  else
    printf("%-18s %u of %u, documents from %llu on of %llu, %s, identity %016llx%016llx\n", "shard", s.shard, s.shards,
        (unsigned long long)s.first, (unsigned long long)s.documents, cli_counted(s.tokens, "token", "tokens", tokens),
        (unsigned long long)s.identity[1], (unsigned long long)s.identity[0]);
}

int cli_stats(int argc, char **argv) {
  static const cli_devices first; /* of the devices */
  static const cli_option options[] = {{O_JSON, "json", 0, 0}, {O_GPU, "gpu", 0, 0}, {0, NULL, 0, 0}};
  cli_args a;
  gpuir_index_info i;
  cli_gpu gpu = {NULL, 0, 0};
  int opt, json = 0, backend = CLI_BACKEND_CPU, code = CLI_FAIL;
  cli_args_start(&a, "stats", options, argc, argv);
  while ((opt = cli_next(&a)) != CLI_END) {
    if (opt == O_JSON || opt == O_GPU) {
      if (opt == O_JSON) json = 1;
      if (opt == O_GPU) backend = CLI_BACKEND_GPU;
      continue;
    }
    cli_args_free(&a);
    return opt == CLI_HELP ? cli_help("stats") : CLI_USAGE;
  }
  if (a.noperands != 1) {
    code = cli_misuse("stats", a.noperands ? "one INDEX only" : "INDEX is missing");
    cli_args_free(&a);
    return code;
  }
  gpuir_index *index = cli_open_to_read_all(a.operands[0]);
  if (index) {
    uint64_t sources;
    int r = gpuir_index_get_info(index, &i);
    (void)gpuir_index_is_code(index, &sources);
    if (!r && cli_gpu_open(&gpu, backend, &first, index)) {
      code = CLI_FAIL;
    } else if (r) {
      cli_fail(a.operands[0], r, NULL);
    } else {
      const statistic t[] = {{"description", 's', 0, 0, i.description}, {"filters", 's', 0, 0, i.filters},
          {"order", 's', 0, 0, i.order}, {"documents", 'u', i.documents, 0, NULL},
          {"source_files", 'u', sources, 0, NULL}, {"deleted", 'u', i.docids - i.documents, 0, NULL},
          {"terms", 'u', i.terms, 0, NULL}, {"postings", 'u', i.postings, 0, NULL}, {"tokens", 'u', i.tokens, 0, NULL},
          {"average_length", 'f', 0, i.average_length, NULL}, {"analyzer", 's', 0, 0, i.analyzer},
          {"language", 's', 0, 0, *i.language ? i.language : "none"}, {"k1", 'k', 0, (double)i.k1, NULL},
          {"b", 'k', 0, (double)i.b, NULL}, {"codec", 's', 0, 0, i.codec}, {"freq_codec", 's', 0, 0, i.freq_codec},
          {"file_bytes", 'u', i.file_bytes, 0, NULL}, {"docids_bytes", 'u', i.docids_bytes, 0, NULL},
          {"freqs_bytes", 'u', i.freqs_bytes, 0, NULL}, {"directory_bytes", 'u', i.directory_bytes, 0, NULL},
          {"inline_postings", 'u', i.inline_postings, 0, NULL}, {"dictionary_bytes", 'u', i.dictionary_bytes, 0, NULL},
          {"documents_bytes", 'u', i.documents_bytes, 0, NULL}, {"text_bytes", 'u', i.text_bytes, 0, NULL},
          {"positions_bytes", 'u', i.positions_bytes, 0, NULL}, {"columns_bytes", 'u', i.columns_bytes, 0, NULL},
          {"bits_per_posting", 'f', 0, i.bits_per_posting, NULL},
          {"stored_text", 'b', (uint64_t)(i.has_text != 0), 0, NULL},
          {"positions", 'b', (uint64_t)(i.has_positions != 0), 0, NULL}, {"tool", 's', 0, 0, i.tool}};
      if (json) putchar('{');
      for (size_t n = 0; n < sizeof t / sizeof *t; n++) print_statistic(&t[n], json, n == 0);
      r = print_codecs(index, json);
      if (!r) r = print_segments(index, &i, json);
      print_skipped(a.operands[0], &i, json);
      print_shard(index, json);
      print_gpu(&gpu, json);
      if (json) printf("}\n");
      if (r) cli_fail(a.operands[0], r, NULL);
      code = cli_finish(r ? CLI_FAIL : CLI_OK);
    }
    cli_gpu_close(&gpu);
    gpuir_close(index);
  }
  cli_args_free(&a);
  return code;
}

/* ---- verify --------------------------------------------------------------------------------------- */

static void verified_json(const char *path, int status, const gpuir_error *err, const gpuir_index_info *info) {
  printf("{\"index\":");
  cli_json_string(stdout, path, strlen(path));
  printf(",\"ok\":%s", status ? "false" : "true");
  if (status) {
    const char *why = err->msg[0] ? err->msg : gpuir_strerror(status);
    printf(",\"offset\":%llu,\"error\":", (unsigned long long)err->offset);
    cli_json_string(stdout, why, strlen(why));
  } else {
    printf(",\"documents\":%llu,\"postings\":%llu,\"segments\":%llu,\"deleted\":%llu",
        (unsigned long long)info->documents, (unsigned long long)info->postings, (unsigned long long)info->segments,
        (unsigned long long)(info->docids - info->documents));
  }
  printf("}\n");
}

static void verified_text(const char *path, int status, const gpuir_error *err, const gpuir_index_info *info) {
  char docs[CLI_COUNTED], postings[CLI_COUNTED];
  if (status && err->offset) {
    cli_error("%s: byte %llu: %s", path, (unsigned long long)err->offset,
        err->msg[0] ? err->msg : gpuir_strerror(status));
  } else if (status) {
    cli_fail(path, status, err);
  } else {
    text_print(stdout, TEXT_MESSAGE, path, strlen(path));
    printf(": ok, %s, %s", cli_counted(info->documents, "document", "documents", docs),
        cli_counted(info->postings, "posting", "postings", postings));
    if (info->segments > 1) printf(", %s segments", cli_grouped(info->segments, docs));
    if (info->docids > info->documents) printf(", %s deleted", cli_grouped(info->docids - info->documents, docs));
    putchar('\n');
  }
}

/* Verifies one index, and says what it found. */
static int verify_one(const char *path, int json) {
  gpuir_index_info info;
  gpuir_error err;
  gpuir_index *index = NULL;
  memset(&err, 0, sizeof err);
  memset(&info, 0, sizeof info);
  int r = gpuir_open(path, NULL, &index, &err);
  if (!r) r = gpuir_verify(index, &err);
  if (!r) r = gpuir_index_get_info(index, &info);
  (json ? verified_json : verified_text)(path, r, &err, &info);
  gpuir_close(index);
  return r ? CLI_FAIL : CLI_OK;
}

int cli_verify(int argc, char **argv) {
  static const cli_option options[] = {{O_JSON, "json", 0, 0}, {0, NULL, 0, 0}};
  cli_args a;
  int opt, json = 0, code = CLI_OK;
  cli_args_start(&a, "verify", options, argc, argv);
  while ((opt = cli_next(&a)) != CLI_END) {
    json = opt == O_JSON;
    if (json) continue;
    cli_args_free(&a);
    return opt == CLI_HELP ? cli_help("verify") : CLI_USAGE;
  }
  if (!a.noperands) code = cli_misuse("verify", "INDEX is missing");
  for (int i = 0; i < a.noperands; i++)
    if (verify_one(a.operands[i], json)) code = CLI_FAIL;
  cli_args_free(&a);
  return code == CLI_USAGE ? code : cli_finish(code);
}

/* ---- explain -------------------------------------------------------------------------------------- */

static const char *const modes[] = {"and", "or", "andor"};

static void explain_text(const cli_buf *name, uint32_t docid, const gpuir_explanation *e, int mode) {
  char length[CLI_COUNTED];
  printf("document       %u  ", docid);
  cli_tsv_string(stdout, name->p, name->n);
  printf("\nlength         %s (average %.6g)\n", cli_counted(e->length, "token", "tokens", length), e->average_length);
  printf("bm25           k1 %g, b %g\n", (double)e->k1, (double)e->b);
  printf("mode           %s: %s\n", modes[mode], e->matches ? "the document matches" : "the document does not match");
  if (e->failed) {
    printf("where          fails ");
    cli_tsv_string(stdout, e->failed, e->failed_len);
    putchar('\n');
  }
  printf("plan           %s\n\n", e->plan);
  printf("%4s %10s %10s %10s %14s %12s %12s %12s  %s\n", "q", "df", "tf", "idf", "W", "K", "c", "q*c", "term");
  for (size_t i = 0; i < e->nterms; i++) {
    const gpuir_explain_term *t = &e->terms[i];
    if (t->negated) printf("%4s", "not");
    else printf("%4u", t->q);
    printf(" %10u %10u %10.6f %14.2f %12.6f %12u %12llu  ", t->df, t->tf, (double)t->idf, (double)t->weight,
        (double)t->norm, t->contribution, (unsigned long long)t->q * t->contribution);
    cli_tsv_string(stdout, t->term, t->term_len);
    putchar('\n');
  }
  printf("\nscore          %u / 2^20 = %.7f\n", e->score, (double)e->score / GPUIR_SCORE_ONE);
}

static void explain_json(const cli_buf *name, uint32_t docid, const gpuir_explanation *e, int mode) {
  printf("{\"docid\":%u,\"name\":", docid);
  cli_json_string(stdout, name->p, name->n);
  printf(
      ",\"length\":%u,\"average_length\":%.9g,\"k1\":%.9g,\"b\":%.9g,\"mode\":\"%s\",\"matches\":%s,"
      "\"score\":%.7f,"
      "\"fixed_score\":%u,\"plan\":",
      e->length, e->average_length, (double)e->k1, (double)e->b, modes[mode], e->matches ? "true" : "false",
      (double)e->score / GPUIR_SCORE_ONE, e->score);
  cli_json_string(stdout, e->plan, strlen(e->plan));
  if (e->failed) {
    printf(",\"failed\":");
    cli_json_string(stdout, e->failed, e->failed_len);
  }
  printf(",\"terms\":[");
  for (size_t i = 0; i < e->nterms; i++) {
    const gpuir_explain_term *t = &e->terms[i];
    printf("%s{\"term\":", i ? "," : "");
    cli_json_string(stdout, t->term, t->term_len);
    printf(
        ",\"negated\":%s,\"q\":%u,\"df\":%u,\"tf\":%u,\"idf\":%.9g,\"weight\":%.9g,\"norm\":%.9g,"
        "\"contribution\":%u}",
        t->negated ? "true" : "false", t->q, t->df, t->tf, (double)t->idf, (double)t->weight, (double)t->norm,
        t->contribution);
  }
  printf("]}\n");
}

static void explain_spelled(void *arg, const char *line, size_t len) {
  (void)arg;
  cli_error("note: %.*s", (int)len, line);
}

/* Says which words are left out, and of andor when. */
static void explain_stopped(void *arg, const char *line, size_t len) {
  const int *mode = (const int *)arg;
  cli_error("note: %s%.*s", *mode == GPUIR_ANDOR ? "where not all words match, " : "", (int)len, line);
}

static int run_explain(const char *path, const gpuir_query_desc *desc, const gpuir_searcher_desc *sd, uint32_t docid,
    const cli_buf *words, int has_k1, int has_b, int has_stop, float k1, float b, int json) {
  gpuir_query_desc qd = *desc;
  qd.keep_rarest = 1; /* as gpuir query does */
  if (!qd.spell) qd.spell = GPUIR_SPELL;
  gpuir_query *query = NULL;
  gpuir_searcher *searcher = NULL;
  gpuir_explanation *e = (gpuir_explanation *)cli_resize(NULL, 1, sizeof *e);
  cli_buf name = {NULL, 0, 0};
  cli_passages texts;
  gpuir_doc doc;
  gpuir_error err;
  gpuir_index *index = cli_open(path);
  cli_written written = {&texts, path, index, {NULL, 0, 0}};
  memset(&texts, 0, sizeof texts);
  int code = CLI_FAIL, r;
  memset(&err, 0, sizeof err);
  if (!index) {
    free(e);
    return code;
  }
  cli_bm25(index, &qd, has_k1, has_b, k1, b);
  if (!has_stop) qd.stop = stop_words_for(index);
  if (words->n) cli_notice_operators(&qd, words->p, words->n);
  r = gpuir_query_parse(index, &qd, words->p ? words->p : "", words->n, &query, &err);
  if (!r) r = gpuir_searcher_create(index, sd, &searcher, &err);
  if (!r && gpuir_doc_get(index, docid, &doc) == GPUIR_E_NOT_FOUND) {
    cli_error("%s: there is no document %u", path, docid);
  } else {
    if (!r) r = gpuir_doc_get(index, docid, &doc);
    if (!r) {
      r = gpuir_explain(searcher, query, docid, e);
      if (r) gpuir_searcher_error(searcher, &err);
    }
    if (r) {
      cli_fail(path, r, &err);
    } else {
      (void)cli_doc_name(&name, &doc);
      (void)advice_spelled(query, cli_written_word, &written, explain_spelled, NULL);
      (void)advice_stopped(query, explain_stopped, &qd.mode);
      if (json) explain_json(&name, docid, e, qd.mode);
      else explain_text(&name, docid, e, qd.mode);
      cli_buf_free(&name);
      code = cli_finish(CLI_OK);
    }
  }
  free(e);
  cli_buf_free(&written.word);
  cli_passages_free(&texts);
  gpuir_query_destroy(query);
  gpuir_searcher_destroy(searcher);
  gpuir_close(index);
  return code;
}

int cli_explain(int argc, char **argv) {
  static const cli_option options[] = {{O_MODE, "mode", 'm', 1}, {O_K1, "k1", 0, 1}, {O_B, "b", 0, 1},
      {O_NO_OPERATORS, "no-operators", 0, 0}, {O_EXACT, "exact", 0, 0}, {O_JSON, "json", 0, 0},
      {O_INTERSECTION, "intersection", 0, 1}, {O_STOP_QUERY, "stop-query", 0, 1}, {O_WHERE, "where", 'w', 1},
      {0, NULL, 0, 0}};
  cli_args a;
  gpuir_query_desc qd;
  gpuir_searcher_desc sd;
  cli_buf words = {NULL, 0, 0};
  float k1 = 0, b = 0;
  int opt, bad = 0, has_k1 = 0, has_b = 0, has_stop = 0, json = 0, code;
  uint64_t docid = 0;
  memset(&qd, 0, sizeof qd);
  memset(&sd, 0, sizeof sd);
  cli_args_start(&a, "explain", options, argc, argv);
  a.leading = 1;
  while (!bad && (opt = cli_next(&a)) != CLI_END) {
    switch (opt) {
    case CLI_HELP: cli_args_free(&a); return cli_help("explain");
    case O_MODE: bad = cli_choice(&a, "and|or|andor", &qd.mode); break;
    case O_K1: bad = cli_real(&a, 0, 1000, &k1), has_k1 = 1; break;
    case O_B: bad = cli_real(&a, 0, 1, &b), has_b = 1; break;
    case O_NO_OPERATORS: qd.no_operators = 1; break;
    case O_EXACT: qd.spell = GPUIR_EXACT; break;
    case O_STOP_QUERY: bad = cli_stop_query(&a, &qd.stop), has_stop = 1; break;
    case O_WHERE: qd.where = a.value, qd.all = 1; break;
    case O_JSON: json = 1; break;
    case O_INTERSECTION: bad = cli_intersection(&a, &sd.intersection); break;
    default: bad = 1; break;
    }
  }
  code = bad ? CLI_USAGE : CLI_OK;
  if (!code && a.noperands < 3 - qd.all) code = cli_misuse("explain", "INDEX, DOCID and QUERY are needed");
  if (!code && cli_parse_unsigned(a.operands[1], 0, UINT32_MAX, &docid))
    code = cli_misuse("explain", "DOCID: '%s' is not a whole number from 0 to 4294967295", a.operands[1]);
  if (!code) {
    for (int i = 2; i < a.noperands; i++) {
      if (i > 2) cli_buf_char(&words, ' ');
      cli_buf_text(&words, a.operands[i]);
    }
    code = run_explain(a.operands[0], &qd, &sd, (uint32_t)docid, &words, has_k1, has_b, has_stop, k1, b, json);
  }
  cli_buf_free(&words);
  cli_args_free(&a);
  return code;
}
