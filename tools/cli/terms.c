/* terms.c - gpuir terms: the terms of an index and their statistics.
 *
 * In an index of one segment without deletions a term's number is its id, and ids follow the order of terms. In a live
 * index of several the terms are those of all segments, merged; a term counts if a live document holds it.
 */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

enum { O_TSV = 2, O_JSON, O_PREFIX, O_SORT, O_LIMIT, O_ALL };
enum { SORT_TERM, SORT_DF, SORT_CF };

/* An index whose terms are shown. */
typedef struct lexicon {
  const char *path;
  const gpuir_index *index;
  uint64_t documents;
  size_t segments;
  int merged; /* one segment without deletions, whose ids are the index's */
  int all; /* also those that the analyzer makes beside words are listed */
} lexicon;

/* ---- printing ---- */

/* Prints a term; its id, where there are ids, in JSON alone. */
static void print_term(const lexicon *x, const gpuir_term_info *t, int form) {
  static int headed;
  if (form == FORM_HUMAN && !headed++)
    printf("%10s %12s %9s %-7s %-7s %12s  %s\n", "df", "cf", "idf", "docIDs", "freqs", "bytes", "term");
  switch (form) {
  case FORM_JSON:
    printf("{\"term\":");
    cli_json_string(stdout, t->term, t->term_len);
    if (x->merged) printf(",\"id\":%llu", (unsigned long long)t->id);
    printf(
        ",\"df\":%u,\"cf\":%llu,\"idf\":%.9g,\"codec\":\"%s\",\"freq_codec\":\"%s\","
        "\"docids_bytes\":%llu,\"freqs_bytes\":%llu,\"directory_bytes\":%llu,\"blocks\":%u}\n",
        t->df, (unsigned long long)t->cf, (double)t->idf, t->codec, t->freq_codec, (unsigned long long)t->docids_bytes,
        (unsigned long long)t->freqs_bytes, (unsigned long long)t->directory_bytes, t->blocks);
    break;
  case FORM_TSV:
    cli_tsv_string(stdout, t->term, t->term_len);
    printf("\t%u\t%llu\t%.9g\t%s\t%s\t%llu\t%llu\t%llu\t%u\n", t->df, (unsigned long long)t->cf, (double)t->idf,
        t->codec, t->freq_codec, (unsigned long long)t->docids_bytes, (unsigned long long)t->freqs_bytes,
        (unsigned long long)t->directory_bytes, t->blocks);
    break;
  default:
    printf("%10u %12llu %9.5f %-7s %-7s %12llu  ", t->df, (unsigned long long)t->cf, (double)t->idf, t->codec,
        t->freq_codec, (unsigned long long)(t->docids_bytes + t->freqs_bytes + t->directory_bytes));
    cli_tsv_string(stdout, t->term, t->term_len);
    putchar('\n');
    break;
  }
}

/* ---- looking terms up ---- */

/* Adds what a segment says of a term: bytes and blocks are summed up, a codec that is not the others' is "mixed". */
static void add_info(gpuir_term_info *sum, const gpuir_term_info *t, int first) {
  if (first) {
    *sum = *t;
    return;
  }
  if (strcmp(sum->codec, t->codec) != 0) sum->codec = "mixed";
  if (strcmp(sum->freq_codec, t->freq_codec) != 0) sum->freq_codec = "mixed";
  sum->docids_bytes += t->docids_bytes;
  sum->freqs_bytes += t->freqs_bytes;
  sum->directory_bytes += t->directory_bytes;
  sum->positions_bytes += t->positions_bytes;
  sum->blocks += t->blocks;
}

/* Describes a term of the whole index. 0; NOT_FOUND: no live document holds it; or another failure. */
static int find_term(const lexicon *x, const char *term, size_t len, gpuir_term_info *t) {
  gpuir_term_info one;
  uint64_t id, cf;
  uint32_t df;
  int r = gpuir_term_count(x->index, term, len, &df, &cf), any = 0;
  memset(t, 0, sizeof *t);
  for (size_t i = 0; !r && i < x->segments; i++) {
    const gpuir_index *segment = gpuir_index_segment(x->index, i, NULL);
    if (gpuir_term_find(segment, term, len, &id)) continue;
    r = gpuir_term_get_info(segment, id, &one);
    if (!r) add_info(t, &one, !any++);
  }
  if (r || x->merged) return r;
  t->df = df;
  t->cf = cf;
  t->idf = gpuir_idf(x->documents, df);
  return GPUIR_OK;
}

/* ---- listing ---- */

/* A walk over the terms of all segments in byte order. */
typedef struct walk {
  const lexicon *x;
  struct place {
    const gpuir_index *segment;
    uint64_t id, end;
    gpuir_term_info info; /* of id, if that is below end */
  } * places; /* [x->segments] */
} walk;

/* Reads the term that a place has come to. 0, or a failure after a message. */
static int walk_read(const walk *w, struct place *p) {
  int r = p->id < p->end ? gpuir_term_get_info(p->segment, p->id, &p->info) : GPUIR_OK;
  return r ? cli_fail(w->x->path, r, NULL) : CLI_OK;
}

/* Returns the id after the last term that begins with the prefix. */
static uint64_t prefix_end(const gpuir_index *index, const char *prefix, uint64_t terms) {
  size_t n = strlen(prefix);
  char *next = cli_copy(prefix, n);
  /* The least text above all that begin with it: the prefix with its last byte increased. */
  while (n && (unsigned char)next[n - 1] == 0xff) n--;
  if (n) next[n - 1] = (char)((unsigned char)next[n - 1] + 1);
  uint64_t end = n ? gpuir_term_lower_bound(index, next, n) : terms;
  free(next);
  return end;
}

/* Begins a walk over the terms with a prefix, or over all (NULL). */
static int walk_start(walk *w, const lexicon *x, const char *prefix) {
  int code = CLI_OK;
  w->x = x;
  w->places = (struct place *)cli_resize(NULL, x->segments, sizeof *w->places);
  for (size_t i = 0; i < x->segments && !code; i++) {
    struct place *p = &w->places[i];
    gpuir_index_info info;
    p->segment = gpuir_index_segment(x->index, i, NULL);
    int r = gpuir_index_get_info(p->segment, &info);
    if (r) return cli_fail(x->path, r, NULL);
    p->id = prefix ? gpuir_term_lower_bound(p->segment, prefix, strlen(prefix)) : 0;
    const uint64_t shown = info.terms - (x->all ? 0 : info.private_terms);
    p->end = prefix ? prefix_end(p->segment, prefix, info.terms) : shown;
    if (p->end > shown && !(prefix && (unsigned char)*prefix == 0xff)) p->end = shown;
    code = walk_read(w, p);
  }
  return code;
}

static int compare_terms(const gpuir_term_info *a, const gpuir_term_info *b) {
  const size_t n = a->term_len < b->term_len ? a->term_len : b->term_len;
  const int c = memcmp(a->term, b->term, n);
  return c ? c : a->term_len < b->term_len ? -1 : a->term_len > b->term_len;
}

/* Steps to the next term that a live document holds. *more: 0 behind the last one. CLI_OK, or CLI_FAIL after a
 * message. */
static int walk_next(walk *w, gpuir_term_info *t, int *more) {
  for (int r = GPUIR_E_NOT_FOUND, code = CLI_OK; r == GPUIR_E_NOT_FOUND;) {
    struct place *least = NULL;
    gpuir_term_info found;
    for (size_t i = 0; i < w->x->segments; i++) {
      struct place *p = &w->places[i];
      if (p->id < p->end && (!least || compare_terms(&p->info, &least->info) < 0)) least = p;
    }
    *more = least != NULL;
    if (!least) break;
    found = least->info;
    r = w->x->merged ? GPUIR_OK : find_term(w->x, found.term, found.term_len, t);
    if (w->x->merged) *t = found;
    for (size_t i = 0; i < w->x->segments && !code; i++) {
      struct place *p = &w->places[i];
      if (p->id >= p->end || compare_terms(&p->info, &found) != 0) continue;
      p->id++;
      code = walk_read(w, p);
    }
    if (code) return code;
    if (r && r != GPUIR_E_NOT_FOUND) return cli_fail(w->x->path, r, NULL);
  }
  return CLI_OK;
}

/* A term to be sorted: its place in a text that has all of them. */
typedef struct keyed {
  uint64_t key, number;
  size_t at, len;
} keyed;

static int by_key(const void *a, const void *b) {
  const keyed *p = (const keyed *)a, *q = (const keyed *)b;
  if (p->key != q->key) return p->key > q->key ? -1 : 1;
  return p->number < q->number ? -1 : p->number > q->number;
}

/* Lists the terms of a walk with the greatest df or cf. *any: whether there was a term. */
static int list_sorted(walk *w, int sort, uint64_t limit, int form, int *any) {
  cli_buf terms = {NULL, 0, 0};
  keyed *all = NULL;
  gpuir_term_info t;
  uint64_t n = 0, cap = 0;
  int more, code;
  while (!(code = walk_next(w, &t, &more)) && more) {
    if (n == cap) all = (keyed *)cli_resize(all, (size_t)(cap = cap ? 2 * cap : 1024), sizeof *all);
    all[n].key = sort == SORT_DF ? t.df : t.cf;
    all[n].number = n;
    all[n].at = terms.n;
    all[n++].len = t.term_len;
    cli_buf_add(&terms, t.term, t.term_len);
  }
  *any = n != 0;
  if (n) qsort(all, (size_t)n, sizeof *all, by_key);
  for (uint64_t i = 0; i < limit && i < n && !code && !ferror(stdout); i++) {
    int r = find_term(w->x, terms.p + all[i].at, all[i].len, &t);
    if (r) code = cli_fail(w->x->path, r, NULL);
    else print_term(w->x, &t, form);
  }
  free(all);
  cli_buf_free(&terms);
  return code;
}

/* Lists the terms with a prefix, or all. With a prefix that no term has, it fails without a message. */
static int list_terms(const lexicon *x, const char *prefix, int sort, uint64_t limit, int form) {
  gpuir_term_info t = {0};
  walk w;
  int more = 0, any = 0, code = walk_start(&w, x, prefix);
  if (!code && sort != SORT_TERM) {
    code = list_sorted(&w, sort, limit, form, &any);
  } else {
    if (!code) code = walk_next(&w, &t, &more);
    any = more;
    for (uint64_t i = 0; more && i < limit && !code && !ferror(stdout); i++) {
      print_term(x, &t, form);
      if (i + 1 < limit) code = walk_next(&w, &t, &more);
    }
  }
  free(w.places);
  return !code && prefix && !any ? CLI_FAIL : code;
}

/* ---- named terms ---- */

typedef struct token_list {
  cli_buf text;
  size_t n;
} token_list;

static int keep_token(void *sink, const char *token, size_t len) {
  token_list *l = (token_list *)sink;
  if (l->n++) cli_buf_char(&l->text, ' ');
  cli_buf_add(&l->text, token, len);
  return 0;
}

/* The named terms. A word that the analyzer changes is a common surprise: say what it becomes. */
static int named_terms(const lexicon *x, char **names, int n, int form) {
  int code = CLI_OK;
  for (int i = 0; i < n; i++) {
    gpuir_term_info t;
    size_t len = strlen(names[i]);
    int r = find_term(x, names[i], len, &t);
    if (!r) {
      print_term(x, &t, form);
      continue;
    }
    code = CLI_FAIL;
    if (r != GPUIR_E_NOT_FOUND) {
      cli_fail(x->path, r, NULL);
      continue;
    }
    token_list l = {{NULL, 0, 0}, 0};
    if (!gpuir_analyze(x->index, names[i], len, keep_token, &l, NULL) && l.n &&
        (l.text.n != len || memcmp(l.text.p, names[i], len)))
      cli_error("%s: no term '%s' (the index's analyzer makes '%.*s' of it)", x->path, names[i], (int)l.text.n,
          l.text.p);
    else cli_error("%s: no term '%s'", x->path, names[i]);
    cli_buf_free(&l.text);
  }
  return code;
}

int cli_terms(int argc, char **argv) {
  static const cli_option options[] = {{O_ALL, "all", 0, 0}, {O_PREFIX, "prefix", 0, 1}, {O_SORT, "sort", 0, 1},
      {O_LIMIT, "limit", 0, 1}, {O_TSV, "tsv", 0, 0}, {O_JSON, "json", 0, 0}, {0, NULL, 0, 0}};
  cli_args a;
  gpuir_index_info info;
  int opt, bad = 0, sort = SORT_TERM, form = FORM_HUMAN, has_sort = 0, all = 0, code;
  uint64_t limit = UINT64_MAX;
  const char *prefix = NULL;
  cli_args_start(&a, "terms", options, argc, argv);
  while (!bad && (opt = cli_next(&a)) != CLI_END) {
    switch (opt) {
    case CLI_HELP: cli_args_free(&a); return cli_help("terms");
    case O_ALL: all = 1; break;
    case O_PREFIX: prefix = a.value; break;
    case O_SORT: bad = cli_choice(&a, "term|df|cf", &sort), has_sort = 1; break;
    case O_LIMIT: bad = cli_unsigned(&a, 0, UINT64_MAX, &limit), has_sort = 1; break;
    case O_TSV: form = FORM_TSV; break;
    case O_JSON: form = FORM_JSON; break;
    default: bad = 1; break;
    }
  }
  code = bad ? CLI_USAGE : CLI_OK;
  if (!code && !a.noperands) code = cli_misuse("terms", "INDEX is missing");
  if (!code && a.noperands > 1 && (prefix || has_sort || all))
    code = cli_misuse("terms", "--all, --prefix, --sort and --limit list terms: they do not go with a TERM");
  if (!code) {
    lexicon x;
    gpuir_index *index = cli_open(a.operands[0]);
    int r = index ? gpuir_index_get_info(index, &info) : GPUIR_OK;
    code = CLI_FAIL;
    if (r) cli_fail(a.operands[0], r, NULL);
    if (index && !r) {
      x.path = a.operands[0];
      x.index = index;
      x.all = all;
      x.documents = info.documents;
      x.segments = (size_t)info.segments;
      x.merged = info.segments == 1 && info.docids == info.documents;
      if (a.noperands > 1) code = named_terms(&x, a.operands + 1, a.noperands - 1, form);
      else code = list_terms(&x, prefix, sort, limit, form);
      code = cli_finish(code);
    }
    gpuir_close(index);
  }
  cli_args_free(&a);
  return code;
}
