/* query.c - gpuir query and gpuir count, and the reading of query files. */
#include "cli.h"

#include "../common/advice.h"
#include "../common/stop_words.h"
#include "../common/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Hits that a batch may hold at most (8 bytes each), and its queries. */
#define BATCH_HITS ((size_t)1 << 22)
#define BATCH_QUERIES ((size_t)1024)
#define TOPICS_BYTES ((size_t)64 << 20) /* of a file of queries, all of which are in memory at once */

/* ---- opening ---------------------------------------------------------------------------------- */

gpuir_index *cli_open(const char *path) {
  gpuir_index *index = NULL;
  gpuir_error err;
  memset(&err, 0, sizeof err);
  int r = gpuir_open(path, NULL, &index, &err);
  if (!r) return index;
  cli_fail(path, r, &err);
  return NULL;
}

gpuir_index *cli_open_to_read_all(const char *path) {
  gpuir_index *index = cli_open(path);
  gpuir_error err;
  int r = GPUIR_OK;
  memset(&err, 0, sizeof err);
  if (index) r = gpuir_verify_directory(index, &err);
  if (!r) return index;
  gpuir_close(index);
  cli_fail(path, r, &err);
  return NULL;
}

gpuir_index *cli_open_merged(const char *path) {
  gpuir_index *index = cli_open_to_read_all(path);
  gpuir_index_info info;
  if (!index) return NULL;
  if (gpuir_index_get_info(index, &info) || (info.segments == 1 && info.docids == info.documents)) return index;
  cli_error(
      "%s: a live index with several segments, or deleted documents; 'gpuir merge --all %s' makes one of "
      "them",
      path, path);
  gpuir_close(index);
  return NULL;
}

void cli_bm25(const gpuir_index *index, gpuir_query_desc *qd, int has_k1, int has_b, float k1, float b) {
  gpuir_index_info info;
  if ((!has_k1 && !has_b) || gpuir_index_get_info(index, &info)) return;
  qd->custom_bm25 = 1;
  qd->k1 = has_k1 ? k1 : info.k1;
  qd->b = has_b ? b : info.b;
}

/* ---- query files -------------------------------------------------------------------------------- */

void cli_queries_add(cli_queries *qs, const char *id, size_t id_len, const char *text, size_t len) {
  if (qs->n == qs->cap) {
    qs->cap = qs->cap ? qs->cap * 2 : 256;
    qs->ids = (char **)cli_resize(qs->ids, qs->cap, sizeof *qs->ids);
    qs->texts = (char **)cli_resize(qs->texts, qs->cap, sizeof *qs->texts);
    qs->lens = (size_t *)cli_resize(qs->lens, qs->cap, sizeof *qs->lens);
  }
  qs->ids[qs->n] = cli_copy(id, id_len);
  qs->texts[qs->n] = cli_copy(text, len);
  qs->lens[qs->n++] = len;
}

static void queries_clear(cli_queries *qs) {
  for (size_t i = 0; i < qs->n; i++) {
    free(qs->ids[i]);
    free(qs->texts[i]);
  }
  qs->n = 0;
}

void cli_queries_free(cli_queries *qs) {
  queries_clear(qs);
  free(qs->ids);
  free(qs->texts);
  free(qs->lens);
  memset(qs, 0, sizeof *qs);
}

static int is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'; }

static void trim(const char **p, const char **end) {
  while (*p < *end && is_space(**p)) ++*p;
  while (*p < *end && is_space((*end)[-1])) --*end;
}

/* Adds the query that is a line of JSON. Returns 0 if the line is none; -1: it is, but says no query, after a message.
 */
static int add_json(cli_queries *qs, const char *path, uint64_t number, const char *p, const char *end) {
  record_reader r;
  if (cli_records_open(&r, "", 1)) return -1;
  const size_t n = records_json(&r, p, (size_t)(end - p));
  const int is = n == (size_t)(end - p);
  if (is && r.why) {
    cli_error("%s:%llu: a topic with the members of no topic: an id is one of %s, a query one of %s", path,
        (unsigned long long)number, records_topic_ids, records_topic_texts);
    for (size_t at = 0; at < r.dropped.n; at += strlen(r.dropped.p + at) + 1)
      cli_error("%s:%llu: it has '%s'", path, (unsigned long long)number, r.dropped.p + at);
  } else if (is) {
    cli_queries_add(qs, r.id.p ? r.id.p : "", r.id.n, r.text.text.p ? r.text.text.p : "", r.text.text.n);
  }
  const int refused = is && r.why;
  records_close(&r);
  return refused ? -1 : is;
}

/* Returns where the id of a line ends, which ':' or a tab follows; p: there is none. By itself it is digits before a
 * ':', or what has no blanks before a tab; with CLI_IDS_YES all before the first of both. */
static const char *id_end_of(const char *p, const char *end, int ids) {
  const char *q = p;
  if (ids == CLI_IDS_NO) return p;
  if (ids == CLI_IDS_YES) {
    while (q < end && *q != ':' && *q != '\t') q++;
    return q < end ? q : p;
  }
  while (q < end && *q >= '0' && *q <= '9') q++;
  if (q > p && q < end && *q == ':') return q;
  while (q < end && !is_space(*q)) q++;
  return q < end && *q == '\t' ? q : p;
}

/* Adds the query of one line, which may be JSON, or have an id before it. Without one, it is the number of the line.
 * Blank lines are none. CLI_FAIL after a message. */
static int add_line(cli_queries *qs, const char *path, const char *line, size_t len, uint64_t number, int ids) {
  const char *p = line, *end = line + len, *q;
  char own[24];
  size_t id_len = (size_t)snprintf(own, sizeof own, "%llu", (unsigned long long)number);
  const char *id = own;
  trim(&p, &end);
  const int json = p < end && ids != CLI_IDS_NO && *p == '{' ? add_json(qs, path, number, p, end) : 0;
  if (p == end || json) return json < 0 ? CLI_FAIL : CLI_OK;
  q = id_end_of(p, line + len, ids);
  if (q > p) {
    const char *id_end = q;
    id = p;
    trim(&id, &id_end);
    id_len = (size_t)(id_end - id);
    p = q + 1;
    if (p > end) end = p;
    trim(&p, &end);
  }
  cli_queries_add(qs, id, id_len, p, (size_t)(end - p));
  return CLI_OK;
}

static const char *find_ci(const char *p, const char *end, const char *what) {
  size_t n = strlen(what);
  for (; (size_t)(end - p) >= n; p++)
    if (!strncasecmp(p, what, n)) return p;
  return NULL;
}

/* Returns the text of <tag> in [p, end), up to the next tag, without a leading "label". */
static int field(const char *p, const char *end, const char *tag, const char *label, const char **from,
    const char **to) {
  size_t n = strlen(label);
  p = find_ci(p, end, tag);
  if (!p) return -1;
  *from = p + strlen(tag);
  for (*to = *from; *to < end && **to != '<';) ++*to;
  trim(from, to);
  if ((size_t)(*to - *from) >= n && !strncasecmp(*from, label, n)) *from += n;
  trim(from, to);
  return 0;
}

/* Line ends within a topic become blanks. */
static void add_topic(cli_queries *qs, const char *id, const char *id_end, const char *p, const char *end) {
  cli_queries_add(qs, id, (size_t)(id_end - id), p, (size_t)(end - p));
  for (char *c = qs->texts[qs->n - 1]; c < qs->texts[qs->n - 1] + (end - p); c++)
    if (is_space(*c)) *c = ' ';
}

static int read_topics(cli_queries *qs, const char *path, const char *p, const char *end) {
  const char *begin = p, *top;
  while ((top = find_ci(p, end, "<top>")) != NULL) {
    const char *stop = find_ci(top, end, "</top>"), *id, *id_end, *text, *text_end;
    if (!stop) stop = end;
    if (field(top, stop, "<num>", "Number:", &id, &id_end) || field(top, stop, "<title>", "Topic:", &text, &text_end)) {
      cli_error("%s: byte %zu: a topic without <num> or <title>", path, (size_t)(top - begin));
      return CLI_FAIL;
    }
    add_topic(qs, id, id_end, text, text_end);
    p = stop;
  }
  return CLI_OK;
}

/* <DOC> <DOCNO> 1 </DOCNO> text </DOC>, as the topics of some small collections are. */
static int read_doc_topics(cli_queries *qs, const char *path, const char *p, const char *end) {
  const char *begin = p, *doc;
  while ((doc = find_ci(p, end, "<doc>")) != NULL) {
    const char *stop = find_ci(doc, end, "</doc>"), *id, *id_end, *text;
    if (!stop) stop = end;
    text = find_ci(doc, stop, "</docno>");
    if (!text || field(doc, stop, "<docno>", "", &id, &id_end)) {
      cli_error("%s: byte %zu: a topic without <DOCNO>", path, (size_t)(doc - begin));
      return CLI_FAIL;
    }
    text += 8;
    const char *text_end = stop;
    trim(&text, &text_end);
    add_topic(qs, id, id_end, text, text_end);
    p = stop;
  }
  return CLI_OK;
}

int cli_queries_read(cli_queries *qs, const char *path, int ids) {
  int fd = strcmp(path, "-") ? open(path, O_RDONLY) : STDIN_FILENO, r = CLI_OK;
  uint64_t lines;
  text_reader in;
  char *text = NULL, most[27];
  size_t len = 0;
  if (fd < 0) {
    cli_error("%s: %s", path, strerror(errno));
    return CLI_FAIL;
  }
  cli_reader_open(&in, fd, TOPICS_BYTES);
  if (reader_lines(&in, UINT64_MAX, &text, &len, &lines) < 0) {
    if (errno == EFBIG) cli_error("%s: queries of more than %s bytes", path, cli_grouped(TOPICS_BYTES, most));
    else cli_error("%s: %s", path, strerror(errno));
    r = CLI_FAIL;
  } else if (len) {
    const char *end = text + len;
    if (find_ci(text, end, "<top>")) {
      r = read_topics(qs, path, text, end);
    } else if (find_ci(text, end, "<docno>")) {
      r = read_doc_topics(qs, path, text, end);
    } else {
      uint64_t number = 1;
      for (const char *p = text; p < end && !r; number++) {
        const char *nl = (const char *)memchr(p, '\n', (size_t)(end - p));
        size_t n = (size_t)((nl ? nl : end) - p);
        r = add_line(qs, path, p, n, number, ids);
        p += n + 1;
      }
    }
  }
  reader_close(&in);
  if (fd != STDIN_FILENO) close(fd);
  return r;
}

/* ---- query ---------------------------------------------------------------------------------------- */

static const char *const modes[] = {"and", "or", "andor"};

typedef struct search {
  const char *path;
  gpuir_index *index;
  gpuir_searcher *searcher;
  gpuir_query_desc qd;
  size_t k, depth; /* at most the number of documents: what is answered, and searched */
  uint64_t asked; /* the k that was asked for */
  int form, many; /* many: the answer of each query says whose it is */
  unsigned threads;
  const char *tag;
  cli_buf name; /* of the document that is being printed */
  cli_passages passages;
  int texts; /* passages are open */
  cli_show show;
  int shows; /* these columns stand behind a hit */
  int look, scores; /* hits get a second look; the search's scores are printed beside its own */
  int verbose;
  gpuir_expansion *expansions; /* [batch], of the queries that are run together; NULL: none is expanded */
  gpuir_looked *looked; /* [depth] */
  gpuir_hit *hits;
  uint32_t *counts;
  gpuir_query **parsed;
  size_t *which;
  int failed;
  const gpuir_expansion *expansion; /* of the query that is answered; NULL: it is not expanded */
  uint64_t hits_total;
  uint64_t all, found; /* where the mode is andor: documents that have all words of the query; those that were ranked */
  /* queries; those that do without some of their words; with others in their place; answered by any of their words */
  size_t answered, shortened, spelled, loose;
} search;

static void query_failed(search *s, const char *id, int r, const gpuir_error *err) {
  const char *cause = err->code && err->msg[0] ? err->msg : gpuir_strerror(r);
  s->failed = 1;
  if (s->many) cli_error("%s: query %s: %s", s->path, id, cause);
  else cli_fail(s->path, r, err);
}

void cli_trec_string(const char *s, size_t n) {
  for (size_t i = 0, len; i < n; i += len) {
    int harmless;
    len = text_next(s + i, n - i, &harmless);
    if (harmless && s[i] != ' ') fwrite(s + i, 1, len, stdout);
    else putchar('_');
  }
}

void cli_print_hit(int form, const char *id, size_t rank, gpuir_hit hit, const uint32_t *plain, const char *name,
    size_t n, const char *tag) {
  const gpuir_hit searched = {hit.docid, plain ? *plain : 0};
  switch (form) {
  case FORM_TREC:
    cli_trec_string(id, strlen(id));
    printf(" Q0 ");
    if (n) cli_trec_string(name, n);
    else printf("%u", hit.docid);
    printf(" %zu %.7f %s", rank, gpuir_score(hit), tag);
    return;
  case FORM_TSV:
    if (id) {
      cli_tsv_string(stdout, id, strlen(id));
      putchar('\t');
    }
    printf("%zu\t%u\t%.7f\t", rank, hit.docid, gpuir_score(hit));
    if (plain) printf("%.7f\t", gpuir_score(searched));
    break;
  default:
    printf("%5zu %12.7f ", rank, gpuir_score(hit));
    if (plain) printf("%12.7f ", gpuir_score(searched));
    printf("%10u  ", hit.docid);
  }
  cli_tsv_string(stdout, name, n);
}

void cli_print_question(const char *id, const char *text, size_t len) {
  printf("# ");
  cli_tsv_string(stdout, id, strlen(id));
  printf(": ");
  cli_tsv_string(stdout, text, len);
  putchar('\n');
}

/* Prints what a document has in the index's fields, if it has any. */
static void print_values(const search *s, uint32_t docid) {
  if (!s->show.n) return;
  printf(",\"values\":{");
  cli_values_json(s->index, docid, &s->show);
  putchar('}');
}

/* Prints number `i` of n hits. */
static void print_hit(search *s, const char *id, const gpuir_query *query, const gpuir_hit *hits, size_t i, size_t n) {
  cli_buf *name = &s->name;
  const gpuir_hit hit = hits[i];
  const gpuir_hit searched = {hit.docid, s->look ? s->looked[i].plain : hit.score};
  const size_t rank = i + 1;
  gpuir_doc doc;
  if (gpuir_doc_get(s->index, hit.docid, &doc)) memset(&doc, 0, sizeof doc);
  (void)cli_doc_name(name, &doc);
  switch (s->form) {
  case FORM_JSON:
    printf("%s{\"rank\":%zu,\"docid\":%u,\"score\":%.7f", rank > 1 ? "," : "", rank, hit.docid, gpuir_score(hit));
    if (s->look || s->scores) printf(",\"bm25\":%.7f", gpuir_score(searched));
    printf(",\"name\":");
    cli_json_string(stdout, name->p, name->n);
    print_values(s, hit.docid);
    if (s->passages.on && cli_passages_hit(&s->passages, s->index, query, hit.docid, n - i)) s->failed = 1;
    putchar('}');
    break;
  case FORM_HUMAN:
    if (s->passages.on) {
      if (cli_passages_hit(&s->passages, s->index, query, hit.docid, n - i)) s->failed = 1;
      break;
    } /* fall through */
  default:
    cli_print_hit(s->form, s->form == FORM_TSV && !s->many ? NULL : id, rank, hit, s->scores ? &searched.score : NULL,
        name->p, name->n, s->tag);
    for (size_t j = 0; s->shows && j < s->show.n; j++) {
      putchar('\t');
      cli_values_tsv(s->index, hit.docid, s->show.fields[j]);
    }
    putchar('\n');
  }
}

/* Says that a query has hits of which nothing is shown. */
static void tell_cut(const search *s, const char *id) {
  const passages *p = &s->passages.how;
  const int tokens = p->tokens && (!p->bytes || p->tokens < p->bytes / GPUIR_TOKEN_BYTES);
  char budget[CLI_COUNTED];
  (void)(tokens ? cli_counted(p->tokens, "token", "tokens", budget) : cli_counted(p->bytes, "byte", "bytes", budget));
  cli_error("%s%s%sno passage of a hit fits into %s; %s 0 takes any length", s->many ? "query " : "", s->many ? id : "",
      s->many ? ": " : "", budget, tokens ? "--tokens" : "--bytes");
}

void cli_tell_shortened(size_t n) {
  char counted[CLI_COUNTED];
  if (!n) return;
  cli_error("note: %s more than %d different words: the rarest are looked for, and any of them is enough",
      cli_counted(n, "query has", "queries have", counted), GPUIR_MAX_TERMS);
}

/* Prints the words that a query does without. Returns how many they are. */
static size_t print_left_out(const gpuir_query *query) {
  const char *word;
  size_t len, n = 0;
  for (; !gpuir_query_left_out(query, n, &word, &len); n++) {
    printf("%s", n ? "," : ",\"left_out\":[");
    cli_json_string(stdout, word, len);
  }
  if (n) putchar(']');
  return n;
}

/* Prints the words in whose place others are searched, as the hits have them. */
static void print_spelled(const gpuir_query *query, cli_written *written) {
  const char *word, *instead;
  size_t len, instead_len, n = 0;
  for (; !gpuir_query_spelled(query, n, &word, &len, &instead, &instead_len); n++) {
    printf("%s", n ? ",{\"word\":" : ",\"spelled\":[{\"word\":");
    cli_json_string(stdout, word, len);
    printf(",\"instead\":");
    size_t written_len = 0;
    const char *own = cli_written_word(written, instead, instead_len, &written_len);
    if (own) cli_json_string(stdout, own, written_len);
    else cli_json_string(stdout, instead, instead_len);
    putchar('}');
  }
  if (n) putchar(']');
}

/* Says which words others are searched in place of: as the hits have them, or as they may be spelled. */
static void tell_spelled(void *arg, const char *line, size_t len) {
  (void)arg;
  cli_error("note: %.*s; --exact searches it", (int)len, line);
}

/* Says which words are left out, where people may ask for them all the same. */
static void tell_stopped(void *arg, const char *line, size_t len) {
  (void)arg;
  cli_error("note: %.*s; --stop-query none looks for them, too", (int)len, line);
}

/* Says which words a query is expanded by, as terms. */
static void tell_expanded(const gpuir_expansion *e) {
  cli_buf line = {NULL, 0, 0};
  for (unsigned i = 0; i < e->n; i++) {
    if (i) cli_buf_char(&line, ' ');
    cli_buf_add(&line, e->terms[i].term, e->terms[i].len);
  }
  if (e->n) cli_error("note: expanded by: %.*s", (int)line.n, line.p);
  cli_buf_free(&line);
}

/* Says the same of many queries. */
void cli_tell_many_spelled(size_t n) {
  char counted[CLI_COUNTED];
  if (n)
    cli_error("note: %s a word that no document has: the nearest one is searched in its place; --exact searches it",
        cli_counted(n, "query has", "queries have", counted));
}

static void tell_word(void *arg, const char *line, size_t len) {
  (void)arg;
  cli_error("%.*s", (int)len, line);
}

/* Prints the words that a query is expanded by, with their weights in the model. */
static void print_expanded(const gpuir_expansion *e) {
  printf(",\"expanded\":[");
  for (unsigned i = 0; i < e->n; i++) {
    printf("%s{\"term\":", i ? "," : "");
    cli_json_string(stdout, e->terms[i].term, e->terms[i].len);
    printf(",\"weight\":%.7f}", e->terms[i].weight / 65536.0);
  }
  putchar(']');
}

/* Prints the words that are left out. */
static void print_stopped(const gpuir_query *query) {
  const char *word;
  size_t len, n = 0;
  for (; !gpuir_query_stopped(query, n, &word, &len); n++) {
    printf("%s", n ? "," : ",\"stopped\":[");
    cli_json_string(stdout, word, len);
  }
  if (n) putchar(']');
}

/* Says of an answer that it holds documents with only some of the query's words. */
void cli_tell_loose(const gpuir_query *query, uint64_t all) {
  char counted[CLI_COUNTED];
  if (all)
    cli_error("note: %s all of these words; others with any of them are ranked, too; --mode and leaves those out",
        cli_counted(all, "document has", "documents have", counted));
  else if (!advice_unknown(query, tell_word, NULL))
    cli_error("note: no document has all of these words; those below have any of them");
}

/* Says the same of many queries. */
void cli_tell_many_loose(size_t n) {
  char counted[CLI_COUNTED];
  if (n)
    cli_error("note: %s few documents with all words; others have any of them; --mode and leaves those out",
        cli_counted(n, "query has", "queries have", counted));
}

static void print_answer(search *s, const char *id, const gpuir_query *query, const char *text, size_t len,
    const gpuir_hit *hits, size_t n) {
  const char *word;
  size_t word_len;
  const int shortened = !gpuir_query_left_out(query, 0, &word, &word_len);
  const int loose = s->qd.mode == GPUIR_ANDOR && !shortened && s->found > s->all;
  cli_written written = {&s->passages, s->texts ? NULL : s->path, s->index, {NULL, 0, 0}};
  s->shortened += (size_t)shortened;
  s->hits_total += n;
  s->answered++;
  if (!s->many) (void)advice_spelled(query, cli_written_word, &written, tell_spelled, NULL);
  if (s->verbose && s->expansion) tell_expanded(s->expansion);
  if (s->verbose && (loose || s->qd.mode == GPUIR_OR)) (void)advice_stopped(query, tell_stopped, NULL);
  if (!s->many && loose) cli_tell_loose(query, s->all);
  s->loose += (size_t)loose;
  if (s->many) s->spelled += !gpuir_query_spelled(query, 0, &word, &word_len, &word, &word_len);
  passages_begin(&s->passages.how);
  if (s->form == FORM_HUMAN && s->many && !s->passages.how.grep) cli_print_question(id, text, len);
  if (s->form == FORM_JSON) {
    printf("{\"id\":");
    if (s->many) cli_json_string(stdout, id, strlen(id));
    else printf("null");
    printf(",\"query\":");
    cli_json_string(stdout, text, len);
    printf(",\"mode\":\"%s\"", modes[shortened ? GPUIR_OR : s->qd.mode]);
    if (s->qd.mode == GPUIR_ANDOR) printf(",\"any\":%s", loose || shortened ? "true" : "false");
    (void)print_left_out(query);
    print_spelled(query, &written);
    if (loose || s->qd.mode == GPUIR_OR) print_stopped(query);
    if (s->expansion) print_expanded(s->expansion);
    printf(",\"k\":%llu,\"hits\":[", (unsigned long long)s->asked);
  }
  for (size_t i = 0; i < n; i++) print_hit(s, id, query, hits, i, n);
  if (s->form == FORM_JSON) printf("]}\n");
  s->texts = written.path == NULL;
  cli_buf_free(&written.word);
  if (s->passages.on && passages_are_cut(&s->passages.how)) tell_cut(s, id);
}

/* Answers a query with its hits, which get a second look before, if they are to. */
static void answer(search *s, const char *id, const gpuir_query *query, const char *text, size_t len, gpuir_hit *hits,
    size_t n) {
  gpuir_error err;
  memset(&err, 0, sizeof err);
  const int r = s->look ? gpuir_look(query, text, len, hits, n, s->looked, &err) : GPUIR_OK;
  if (r) {
    query_failed(s, id, r, &err);
    return;
  }
  for (size_t i = 0; s->look && i < n; i++) {
    hits[i].docid = s->looked[i].docid;
    hits[i].score = s->looked[i].score;
  }
  print_answer(s, id, query, text, len, hits, n < s->k ? n : s->k);
}

/* Ranks for one query and, where any of its words may do, counts the documents that have all of them. */
static int search_one(search *s, const gpuir_query *query, gpuir_hit *hits, size_t *found) {
  if (s->qd.mode != GPUIR_ANDOR) return gpuir_search(s->searcher, query, hits, s->depth, found);
  return gpuir_search_count(s->searcher, query, hits, s->depth, found, &s->all);
}

/* Parses query number i, the nth of a batch, and expands it, if it is to be. Returns a GPUIR_ status. */
static int parse_query(search *s, const cli_queries *qs, size_t i, size_t n, gpuir_error *err) {
  gpuir_query_desc desc = s->qd;
  gpuir_query *query = NULL;
  if (s->expansions) desc.sort = desc.collapse = NULL; /* it is the best hits that say what else to search */
  int r = gpuir_query_parse(s->index, &desc, qs->texts[i], qs->lens[i], &query, err);
  if (!r && s->expansions) {
    gpuir_expansion *e = &s->expansions[n];
    r = cli_expand(&s->passages, s->searcher, s->index, query, e, err);
    gpuir_query_destroy(query);
    if (!r && !e->n && !s->many) cli_error("note: the best hits have no text with words to expand the query by");
    desc = s->qd;
    desc.expansion = e;
    if (!r) r = gpuir_query_parse(s->index, &desc, qs->texts[i], qs->lens[i], &query, err);
  }
  s->parsed[n] = r ? NULL : query;
  return r;
}

/* Answers queries [from, to), each on its own failure or success. */
static void run_batch(search *s, const cli_queries *qs, size_t from, size_t to) {
  size_t n = 0;
  gpuir_error err;
  for (size_t i = from; i < to; i++) {
    memset(&err, 0, sizeof err);
    cli_notice_operators(&s->qd, qs->texts[i], qs->lens[i]);
    const int r = parse_query(s, qs, i, n, &err);
    if (r) query_failed(s, qs->ids[i], r, &err);
    else s->which[n++] = i;
  }
  int together = s->threads > 1 && n > 1;
  if (together) {
    /* If one of the batch fails they are asked one by one below, to answer the others and to say which. */
    together = !gpuir_search_batch(s->searcher, (const gpuir_query *const *)s->parsed, n, s->depth, s->hits, s->counts);
  }
  for (size_t j = 0; j < n; j++) {
    size_t i = s->which[j], found = 0;
    gpuir_hit *hits = together ? s->hits + j * s->depth : s->hits;
    int r = 0;
    if (together) found = s->counts[j];
    else r = search_one(s, s->parsed[j], hits, &found);
    if (together && s->qd.mode == GPUIR_ANDOR) r = gpuir_count(s->searcher, s->parsed[j], &s->all);
    if (r) {
      memset(&err, 0, sizeof err);
      gpuir_searcher_error(s->searcher, &err);
      query_failed(s, qs->ids[i], r, &err);
    } else {
      s->found = found;
      s->expansion = s->expansions ? &s->expansions[j] : NULL;
      answer(s, qs->ids[i], s->parsed[j], qs->texts[i], qs->lens[i], hits, found);
    }
    gpuir_query_destroy(s->parsed[j]);
  }
}

static void run_queries(search *s, const cli_queries *qs, size_t batch) {
  for (size_t i = 0; i < qs->n && !ferror(stdout); i += batch)
    run_batch(s, qs, i, i + batch < qs->n ? i + batch : qs->n);
}

/* Queries from standard input. One thread answers each line at once, so that the command can
 * serve as a coprocess; more threads take a batch of lines at a time. */
static int run_stream(search *s, int ids, size_t batch) {
  cli_queries qs;
  text_reader in;
  uint64_t number = 1, lines;
  const char *cause = NULL;
  char *line, why[CLI_COUNTED];
  size_t len;
  int got, refused = 0;
  memset(&qs, 0, sizeof qs);
  cli_reader_open(&in, STDIN_FILENO, CLI_MAX_LINE);
  if (isatty(STDIN_FILENO)) cli_error("reading queries from the terminal, one a line; Ctrl-D ends them");
  while ((got = reader_lines(&in, 1, &line, &len, &lines)) > 0 && !ferror(stdout)) {
    refused = add_line(&qs, "standard input", line, len, number++, ids);
    if (refused) break; /* who waits for its answer sees the end */
    if (qs.n < batch) continue;
    run_queries(s, &qs, batch);
    queries_clear(&qs);
    cli_flush();
  }
  if (got < 0) cause = cli_reader_why(&in, why);
  run_queries(s, &qs, batch);
  if (got < 0) cli_error("standard input: %s", cause);
  cli_queries_free(&qs);
  reader_close(&in);
  return got < 0 || refused ? CLI_FAIL : CLI_OK;
}

enum {
  O_MODE = 2,
  O_K,
  O_K1,
  O_B,
  O_BACKEND,
  O_DEVICES,
  O_PARTITION,
  O_THREADS,
  O_TIMEOUT,
  O_TREC,
  O_TSV,
  O_JSON,
  O_TAG,
  O_TOPICS,
  O_IDS,
  O_NO_IDS,
  O_NO_OPERATORS,
  O_SPELL,
  O_EXACT,
  O_PREFIX_POSTINGS,
  O_EVALUATOR,
  O_INTERSECTION,
  O_RANK,
  O_SCORES,
  O_PASSAGES,
  O_GREP,
  O_CONTEXT,
  O_BYTES,
  O_TOKENS,
  O_BASE,
  O_FILTER,
  O_WHERE,
  O_STOP_QUERY,
  O_VERBOSE,
  O_EXPAND,
  O_SHOW,
  O_SORT,
  O_COLLAPSE
};

static const cli_option query_options[] = {{O_MODE, "mode", 'm', 1}, {O_K, "k", 'k', 1}, {O_K1, "k1", 0, 1},
    {O_B, "b", 0, 1}, {O_BACKEND, "backend", 0, 1}, {O_DEVICES, "devices", 0, 1}, {O_PARTITION, "partition", 0, 0},
    {O_THREADS, "threads", 0, 1}, {O_TIMEOUT, "timeout", 0, 1}, {O_EVALUATOR, "evaluator", 0, 1},
    {O_INTERSECTION, "intersection", 0, 1}, {O_TREC, "trec", 0, 0}, {O_TSV, "tsv", 0, 0}, {O_JSON, "json", 0, 0},
    {O_TAG, "tag", 0, 1}, {O_TOPICS, "topics", 0, 1}, {O_IDS, "ids", 0, 0}, {O_NO_IDS, "no-ids", 0, 0},
    {O_NO_OPERATORS, "no-operators", 0, 0}, {O_SPELL, "spell", 0, 0}, {O_EXACT, "exact", 0, 0},
    {O_PREFIX_POSTINGS, "prefix-postings", 0, 1}, {O_RANK, "rank", 0, 1}, {O_SCORES, "scores", 0, 0},
    {O_PASSAGES, "passages", 0, 0}, {O_GREP, "grep", 0, 0}, {O_CONTEXT, "context", 0, 1}, {O_BYTES, "bytes", 0, 1},
    {O_TOKENS, "tokens", 0, 1}, {O_BASE, "base", 0, 1}, {O_FILTER, "filter", 0, 1}, {O_WHERE, "where", 'w', 1},
    {O_STOP_QUERY, "stop-query", 0, 1}, {O_VERBOSE, "verbose", 'v', 0}, {O_EXPAND, "expand", 0, 0},
    {O_SHOW, "show", 0, 1}, {O_SORT, "sort", 0, 1}, {O_COLLAPSE, "collapse", 0, 1}, {0, NULL, 0, 0}};

typedef struct query_flags {
  gpuir_query_desc qd;
  gpuir_searcher_desc sd;
  uint64_t k, threads, timeout;
  float k1, b;
  int has_k, has_k1, has_b, has_mode, has_budget, has_stop, backend, form, ids, rank, scores, verbose, expand;
  cli_devices devices;
  const char *tag, *topics, *base, *show;
  cli_passages passages;
} query_flags;

static int one_form(const cli_args *a, query_flags *f, int form) {
  if (f->form != FORM_HUMAN && f->form != form)
    return cli_misuse(a->command, "%s: another form of output was given before", a->name);
  f->form = form;
  return 0;
}

/* Returns whether a word is empty, or has a blank or anything that does not belong on a terminal. */
static int has_blank(const char *s) {
  size_t n = strlen(s), i, len;
  for (i = 0; i < n; i += len) {
    int harmless;
    len = text_next(s + i, n - i, &harmless);
    if (!harmless || s[i] == ' ') return 1;
  }
  return n == 0;
}

/* Takes an option of passages, each of which asks for them. Not 0 after a message. */
static int passages_flag(const cli_args *a, int opt, query_flags *f) {
  passages *p = &f->passages.how;
  uint64_t n = 0;
  int bad = 0;
  f->passages.on = 1;
  switch (opt) {
  case O_PASSAGES: break;
  case O_GREP: p->grep = 1; break;
  case O_CONTEXT:
    bad = cli_unsigned(a, 0, 1000000, &n);
    p->context = n ? (uint32_t)n : GPUIR_NO_CONTEXT;
    break;
  case O_BYTES: bad = cli_unsigned(a, 0, UINT64_MAX, &p->bytes), f->has_budget = 1; break;
  case O_TOKENS: bad = cli_unsigned(a, 0, UINT64_MAX, &p->tokens), f->has_budget = 1; break;
  case O_BASE: f->base = a->value; break;
  case O_FILTER: bad = cli_filters_add(a, &f->passages.filters); break;
  default: bad = 1; break;
  }
  return bad;
}

enum { RANK_AUTO, RANK_PLAIN, RANK_CODE };

/* Fills in what the forms of output have by default. Not 0 after a message. */
static int forms_ready(query_flags *f) {
  passages *p = &f->passages.how;
  if (f->form == FORM_TREC && !f->has_mode) f->qd.mode = GPUIR_OR;
  else if (!f->topics && !f->has_mode) f->qd.mode = GPUIR_ANDOR; /* an answer instead of nothing; runs are exact */
  if (f->form == FORM_TREC && !f->has_k) f->k = 1000;
  if (f->show && (f->form == FORM_TREC || (f->passages.on && f->form != FORM_JSON)))
    return cli_misuse("query", "--show adds columns to hits, and neither runs nor passages have them");
  if (f->qd.sort && f->form == FORM_TREC)
    return cli_misuse("query", "--sort and --trec: the order of a run is that of its scores");
  if (f->qd.sort && (f->rank == RANK_CODE || f->scores))
    return cli_misuse("query", "--sort leaves no second look at the hits: not with --rank code or --scores");
  if (!f->passages.on) return 0;
  if (f->form == FORM_TREC || f->form == FORM_TSV || (f->form == FORM_JSON && p->grep))
    return cli_misuse("query", "passages are printed for people, with --grep, or with --json");
  if (!f->has_mode) f->qd.mode = GPUIR_OR;
  if (!f->has_budget) p->tokens = PASSAGES_TOKENS;
  p->json = f->form == FORM_JSON;
  p->timeout_ns = f->timeout * 1000000u;
  return 0;
}

/* Takes what is searched in place of words that no document has. Not 0 after a message. */
static int spell_flag(const cli_args *a, query_flags *f, int spell) {
  if (f->qd.spell && f->qd.spell != spell) return cli_misuse(a->command, "--spell and --exact exclude each other");
  f->qd.spell = spell;
  return 0;
}

/* Takes the language whose words that say little are left out. Not 0 after a message. */
int cli_stop_query(const cli_args *a, const char **list) {
  *list = stop_words_of(cli_language_stemmer(a->value));
  if (*list || !strcmp(a->value, "none")) return 0;
  return cli_misuse(a->command, "--stop-query: there is no list of '%s'", a->value);
}

/* Options of query and count. 0; otherwise the command ends with that code - 1. */
static int query_flags_read(cli_args *a, query_flags *f) {
  int opt, bad = 0;
  while (!bad && (opt = cli_next(a)) != CLI_END) {
    switch (opt) {
    case CLI_HELP: return 1 + cli_help(a->command);
    case O_MODE: bad = cli_choice(a, "and|or|andor", &f->qd.mode), f->has_mode = 1; break;
    case O_K: bad = cli_unsigned(a, 0, UINT32_MAX, &f->k), f->has_k = 1; break;
    case O_K1: bad = cli_real(a, 0, 1000, &f->k1), f->has_k1 = 1; break;
    case O_B: bad = cli_real(a, 0, 1, &f->b), f->has_b = 1; break;
    case O_BACKEND: bad = cli_choice(a, "cpu|gpu|auto", &f->backend); break;
    case O_DEVICES: bad = cli_devices_read(a, &f->devices); break;
    case O_PARTITION: f->devices.partition = 1; break;
    case O_THREADS: bad = cli_unsigned(a, 0, 1024, &f->threads); break;
    case O_TIMEOUT: bad = cli_unsigned(a, 0, 1000000000, &f->timeout); break;
    case O_EVALUATOR: bad = cli_choice(a, "auto|exhaustive", &f->sd.evaluator); break;
    case O_INTERSECTION: bad = cli_intersection(a, &f->sd.intersection); break;
    case O_TREC: bad = one_form(a, f, FORM_TREC); break;
    case O_TSV: bad = one_form(a, f, FORM_TSV); break;
    case O_JSON: bad = one_form(a, f, FORM_JSON); break;
    case O_TAG:
      f->tag = a->value;
      if (has_blank(f->tag)) bad = cli_misuse(a->command, "--tag: '%s' has blanks or is empty", f->tag);
      break;
    case O_TOPICS: f->topics = a->value; break;
    case O_IDS: f->ids = CLI_IDS_YES; break;
    case O_NO_IDS: f->ids = CLI_IDS_NO; break;
    case O_NO_OPERATORS: f->qd.no_operators = 1; break;
    case O_SPELL: bad = spell_flag(a, f, GPUIR_SPELL); break;
    case O_EXACT: bad = spell_flag(a, f, GPUIR_EXACT); break;
    case O_RANK: bad = cli_choice(a, "auto|plain|code", &f->rank); break;
    case O_SCORES: f->scores = 1; break;
    case O_WHERE: f->qd.where = a->value; break;
    case O_STOP_QUERY: bad = cli_stop_query(a, &f->qd.stop), f->has_stop = 1; break;
    case O_VERBOSE: f->verbose = 1; break;
    case O_EXPAND: f->expand = 1; break;
    case O_SHOW: f->show = a->value; break;
    case O_SORT: f->qd.sort = a->value; break;
    case O_COLLAPSE: f->qd.collapse = a->value; break;
    case O_PREFIX_POSTINGS: bad = cli_unsigned(a, 1, UINT64_MAX, &f->qd.prefix_postings); break;
    default: bad = opt == CLI_BAD || passages_flag(a, opt, f); break;
    }
  }
  if (bad) return 1 + CLI_USAGE;
  if (!a->noperands) return 1 + cli_misuse(a->command, "INDEX is missing");
  f->qd.all = (f->qd.where || f->qd.sort) && a->noperands == 1 && !f->topics;
  return 0;
}

/* Says of words such as -k5 that they are negated words behind INDEX, where -k 5 is meant. */
static void notice_glued(const cli_args *a) {
  for (int i = 1; i < a->noperands; i++) {
    const char *word = a->operands[i];
    if (!strncmp(word, "-k", 2) && word[2] && !word[2 + strspn(word + 2, "0123456789")])
      cli_error("note: '%s' is a word that is not to be there; the option is written '-k %s'", word, word + 2);
  }
}

void cli_join_words(const cli_args *a, int skip, cli_buf *out) {
  for (int i = skip; i < a->noperands; i++) {
    if (i > skip) cli_buf_char(out, ' ');
    cli_buf_text(out, a->operands[i]);
  }
}

/* Whether hits get a second look: where it is asked for, and where people ask an index of program code. What is
 * measured against judgements is to be the engine's order, and what is sorted by a field is to stay so. */
static int is_looked_at(const query_flags *f, const gpuir_index *index) {
  if (f->rank != RANK_AUTO) return f->rank == RANK_CODE;
  return f->k && !f->qd.sort && f->form != FORM_TREC && !f->topics && gpuir_index_is_code(index, NULL);
}

/* Opens the index and makes a searcher, with room for the hits of the *batch queries that are run together. */
static int open_search(search *s, query_flags *f, cli_gpu *gpu, size_t *batch) {
  gpuir_index_info info;
  gpuir_error err;
  memset(&err, 0, sizeof err);
  s->index = cli_open(s->path);
  if (!s->index) return CLI_FAIL;
  cli_bm25(s->index, &s->qd, f->has_k1, f->has_b, f->k1, f->b);
  if (!f->has_stop) s->qd.stop = stop_words_for(s->index);
  int r = gpuir_index_get_info(s->index, &info);
  if (!r) r = gpuir_searcher_create(s->index, &f->sd, &s->searcher, &err);
  if (r) {
    (void)cli_fail(s->path, r, &err);
    return CLI_FAIL;
  }
  /* Another filter's text would not be what was indexed. */
  if ((s->passages.filters.n || s->passages.filters.automatic) &&
      cli_filters_agree(&s->passages.filters, s->path, info.filters))
    return CLI_FAIL;
  s->passages.hint = cli_filters_hint(info.filters);
  if (cli_gpu_open(gpu, f->backend, &f->devices, s->index) ||
      cli_gpu_attach_method(gpu, s->searcher, f->sd.intersection))
    return CLI_FAIL;
  /* More hits than documents cannot be: no memory for them. */
  s->k = (size_t)(f->k < info.documents ? f->k : info.documents);
  if (cli_show_find(s->index, s->path, f->show, &s->show)) return CLI_FAIL;
  s->shows = f->show != NULL;
  s->look = is_looked_at(f, s->index);
  s->depth = (size_t)(s->look && s->k < GPUIR_LOOK_HITS ? GPUIR_LOOK_HITS : s->k);
  if (s->depth > info.documents) s->depth = (size_t)info.documents;
  if (s->depth > s->k) s->qd.enough = (uint32_t)s->k; /* the look changes what comes first, not what is found */
  if (s->threads > 1 && s->many) *batch = s->depth > BATCH_HITS / BATCH_QUERIES ? BATCH_HITS / s->depth : BATCH_QUERIES;
  if (!*batch) *batch = 1;
  s->hits = (gpuir_hit *)cli_resize(NULL, *batch * s->depth, sizeof *s->hits);
  if (s->look) s->looked = (gpuir_looked *)cli_resize(NULL, s->depth, sizeof *s->looked);
  s->counts = (uint32_t *)cli_resize(NULL, *batch, sizeof *s->counts);
  if (f->expand) s->expansions = (gpuir_expansion *)cli_resize(NULL, *batch, sizeof *s->expansions);
  s->parsed = (gpuir_query **)cli_resize(NULL, *batch, sizeof *s->parsed);
  s->which = (size_t *)cli_resize(NULL, *batch, sizeof *s->which);
  return CLI_OK;
}

/* Returns whether documents that have any of the words match, where those that have all do not. */
static int any_would_do(const search *s, const cli_buf *words) {
  gpuir_query_desc desc = s->qd;
  gpuir_query *query = NULL;
  gpuir_hit hit;
  size_t n = 0;
  desc.mode = GPUIR_OR;
  if (s->qd.mode != GPUIR_AND || gpuir_query_parse(s->index, &desc, words->p, words->n, &query, NULL)) return 0;
  if (gpuir_search(s->searcher, query, &hit, 1, &n)) n = 0;
  gpuir_query_destroy(query);
  return n > 0;
}

/* Says why the one query of the command line has no hit. */
static void tell_unknown(const search *s, const cli_buf *words) {
  gpuir_query *query = NULL;
  size_t n;
  if (s->failed || gpuir_query_parse(s->index, &s->qd, words->p, words->n, &query, NULL)) return;
  n = advice_unknown(query, tell_word, NULL);
  if (!n && any_would_do(s, words)) cli_error("no document has all of these words; --mode or takes any");
  else if (!n) cli_error("no document matches");
  gpuir_query_destroy(query);
}

int cli_query(int argc, char **argv) {
  cli_args a;
  query_flags f;
  search s;
  cli_queries qs;
  cli_buf words = {NULL, 0, 0};
  cli_gpu gpu = {NULL, 0, 0};
  size_t batch = 1;
  int code;
  memset(&f, 0, sizeof f);
  memset(&s, 0, sizeof s);
  memset(&qs, 0, sizeof qs);
  cli_args_start(&a, "query", query_options, argc, argv);
  a.leading = 1;
  f.k = 10;
  f.threads = 1;
  f.tag = "gpuir";
  f.ids = CLI_IDS_AUTO;
  code = query_flags_read(&a, &f);
  if (!code && f.topics && a.noperands > 1) code = 1 + cli_misuse("query", "--topics and QUERY exclude each other");
  if (!code && forms_ready(&f)) code = 1 + CLI_USAGE;
  if (code) {
    filters_free(&f.passages.filters);
    cli_args_free(&a);
    return code - 1;
  }
  s.path = a.operands[0];
  s.qd = f.qd;
  s.passages = f.passages;
  s.form = f.form;
  s.scores = f.scores;
  s.verbose = f.verbose;
  s.tag = f.tag;
  s.asked = f.k;
  s.many = a.noperands == 1 && !f.qd.all;
  if (f.topics || f.form == FORM_TREC) s.qd.no_operators = 1;
  else if (!s.qd.spell) s.qd.spell = GPUIR_SPELL; /* people mistype; runs are to be what their topics say */
  s.qd.keep_rarest = 1;
  s.threads = f.threads ? (unsigned)f.threads : cli_processors();
  f.sd.threads = s.threads;
  f.sd.timeout_ns = f.timeout * 1000000u;
  code = open_search(&s, &f, &gpu, &batch);
  s.texts = s.passages.on || f.expand;
  if (!code && s.texts) code = cli_passages_open(&s.passages, s.path, f.base);
  if (code) goto done;
  if (f.topics) {
    code = cli_queries_read(&qs, f.topics, f.ids);
    if (!code) run_queries(&s, &qs, batch);
  } else if (s.many) {
    code = run_stream(&s, f.ids, batch);
  } else {
    notice_glued(&a);
    cli_join_words(&a, 1, &words);
    cli_queries_add(&qs, "1", 1, words.p ? words.p : "", words.n);
    run_queries(&s, &qs, 1);
    if (!s.hits_total && f.k) { /* nothing found, as grep says it */
      code = CLI_FAIL;
      tell_unknown(&s, &words);
    } else if (s.loose && !s.all) { /* nor is what has only some of the words */
      code = CLI_FAIL;
    }
  }
  if (s.failed) code = CLI_FAIL;
  if (s.many && s.asked && s.answered > 1 && !s.hits_total)
    cli_error("note: none of the %zu queries has a hit", s.answered);
  cli_tell_shortened(s.shortened);
  cli_tell_many_spelled(s.spelled);
  if (s.many) cli_tell_many_loose(s.loose);
  code = cli_finish(code);
done:
  cli_queries_free(&qs);
  cli_buf_free(&words);
  cli_buf_free(&s.name);
  cli_passages_free(&s.passages);
  free(s.looked);
  free(s.expansions);
  free(s.hits);
  free(s.counts);
  free(s.parsed);
  free(s.which);
  gpuir_searcher_destroy(s.searcher);
  cli_gpu_close(&gpu);
  gpuir_close(s.index);
  cli_args_free(&a);
  return code;
}

/* ---- count ---------------------------------------------------------------------------------------- */

static const cli_option count_options[] = {{O_MODE, "mode", 'm', 1}, {O_TIMEOUT, "timeout", 0, 1},
    {O_EVALUATOR, "evaluator", 0, 1}, {O_INTERSECTION, "intersection", 0, 1}, {O_NO_OPERATORS, "no-operators", 0, 0},
    {O_JSON, "json", 0, 0}, {O_WHERE, "where", 'w', 1}, {0, NULL, 0, 0}};

static void print_count(const query_flags *f, const cli_buf *words, uint64_t n) {
  if (f->form != FORM_JSON) {
    printf("%llu\n", (unsigned long long)n);
    return;
  }
  printf("{\"query\":");
  cli_json_string(stdout, words->p, words->n);
  printf(",\"mode\":\"%s\",\"count\":%llu}\n", modes[f->qd.mode], (unsigned long long)n);
}

int cli_count(int argc, char **argv) {
  cli_args a;
  query_flags f;
  gpuir_index *index = NULL;
  gpuir_searcher *searcher = NULL;
  gpuir_query *query = NULL;
  gpuir_error err;
  cli_buf words = {NULL, 0, 0};
  uint64_t n = 0;
  memset(&f, 0, sizeof f);
  memset(&err, 0, sizeof err);
  cli_args_start(&a, "count", count_options, argc, argv);
  a.leading = 1;
  int code = query_flags_read(&a, &f);
  if (code) code--;
  else if (a.noperands < 2 && !f.qd.all) code = cli_misuse("count", "QUERY is missing");
  else code = -1;
  if (code >= 0) {
    cli_args_free(&a);
    return code;
  }
  cli_join_words(&a, 1, &words);
  f.sd.timeout_ns = f.timeout * 1000000u;
  code = CLI_FAIL;
  index = cli_open(a.operands[0]);
  if (index) {
    cli_notice_operators(&f.qd, words.p, words.n);
    int r = gpuir_query_parse(index, &f.qd, words.p, words.n, &query, &err);
    if (!r) r = gpuir_searcher_create(index, &f.sd, &searcher, &err);
    if (!r) {
      r = gpuir_count(searcher, query, &n);
      if (r) gpuir_searcher_error(searcher, &err);
    }
    if (r) {
      cli_fail(a.operands[0], r, &err);
    } else {
      print_count(&f, &words, n);
      code = cli_finish(CLI_OK);
    }
  }
  gpuir_query_destroy(query);
  gpuir_searcher_destroy(searcher);
  gpuir_close(index);
  cli_buf_free(&words);
  cli_args_free(&a);
  return code;
}
