/* facets.c - gpuir facets: what the documents that match a query have in fields, counted. */
#include "cli.h"

#include "../common/column_text.h"

#include <stdlib.h>
#include <string.h>

enum { O_FACET = 2, O_MODE, O_WHERE, O_TSV, O_JSON, O_TIMEOUT, O_NO_OPERATORS };

typedef struct facets_flags {
  const char *columns[GPUIR_MAX_FIELDS]; /* [n], as gpuir_facets_count takes them */
  size_t n;
  gpuir_query_desc qd;
  uint64_t timeout; /* milliseconds */
  int form;
} facets_flags;

/* Takes the current option. Not 0 after a message. */
static int take_option(const cli_args *a, int opt, facets_flags *f) {
  const int form = opt == O_JSON ? FORM_JSON : FORM_TSV;
  switch (opt) {
  case O_FACET:
    if (f->n == GPUIR_MAX_FIELDS) return cli_misuse("facets", "--facet: more than %d columns", GPUIR_MAX_FIELDS);
    f->columns[f->n++] = a->value;
    return 0;
  case O_MODE: return cli_choice(a, "and|or", &f->qd.mode);
  case O_WHERE: f->qd.where = a->value; return 0;
  case O_TSV:
  case O_JSON:
    if (f->form != FORM_HUMAN && f->form != form)
      return cli_misuse("facets", "%s: another form of output was given before", a->name);
    f->form = form;
    return 0;
  case O_TIMEOUT: return cli_unsigned(a, 0, 1000000000, &f->timeout);
  case O_NO_OPERATORS: f->qd.no_operators = 1; return 0;
  default: return 1;
  }
}

/* Finds the field that a column begins with. */
static void find_field(const gpuir_index *index, const char *column, gpuir_field *field) {
  const size_t n = strcspn(column, ":");
  for (size_t i = 0; !gpuir_field_get(index, i, field); i++)
    if (strlen(field->name) == n && !memcmp(field->name, column, n)) return;
  memset(field, 0, sizeof *field);
}

/* Prints what a facet counts. */
static void print_value(const gpuir_field *field, int form, const gpuir_facet *x) {
  char range[2 * COLUMN_TEXT];
  const char *text = x->value;
  size_t len = x->len;
  if (!text) {
    column_range(range, field->column, field->decimals, x);
    text = range;
    len = strlen(range);
  }
  if (form == FORM_JSON) cli_json_string(stdout, text, len);
  else cli_tsv_string(stdout, text, len);
}

/* Prints the facets of a column. */
static void print_column(const facets_flags *f, const gpuir_index *index, const gpuir_facets *facets, size_t which) {
  const char *column = f->columns[which];
  gpuir_field field;
  gpuir_facet x;
  char count[27];
  find_field(index, column, &field);
  if (f->form == FORM_JSON) {
    printf("%s{\"column\":", which ? "," : "");
    cli_json_string(stdout, column, strlen(column));
    printf(",\"values\":[");
  } else if (f->form == FORM_HUMAN && f->n > 1) {
    printf("%s# ", which ? "\n" : "");
    cli_tsv_string(stdout, column, strlen(column));
    putchar('\n');
  }
  for (size_t i = 0; !gpuir_facets_get(facets, which, i, &x); i++) {
    if (f->form == FORM_JSON) {
      printf("%s{\"value\":", i ? "," : "");
      print_value(&field, f->form, &x);
      printf(",\"count\":%llu}", (unsigned long long)x.count);
      continue;
    }
    if (f->form == FORM_TSV) {
      cli_tsv_string(stdout, column, strlen(column));
      printf("\t%llu\t", (unsigned long long)x.count);
    } else {
      printf("%12s  ", cli_grouped(x.count, count));
    }
    print_value(&field, f->form, &x);
    putchar('\n');
  }
  if (f->form == FORM_JSON) printf("]}");
}

static void print_facets(const facets_flags *f, const gpuir_index *index, const cli_buf *words,
    const gpuir_facets *facets, uint64_t matches) {
  if (f->form == FORM_JSON) {
    printf("{\"query\":");
    cli_json_string(stdout, words->p ? words->p : "", words->n);
    printf(",\"mode\":\"%s\",\"count\":%llu,\"facets\":[", f->qd.mode == GPUIR_OR ? "or" : "and",
        (unsigned long long)matches);
  }
  for (size_t i = 0; i < f->n; i++) print_column(f, index, facets, i);
  if (f->form == FORM_JSON) printf("]}\n");
}

/* Counts and prints. Returns a GPUIR_ status. */
static int count_facets(const facets_flags *f, const gpuir_index *index, const cli_buf *words, gpuir_error *err) {
  gpuir_searcher_desc sd;
  gpuir_searcher *searcher = NULL;
  gpuir_query *query = NULL;
  gpuir_facets *facets = NULL;
  uint64_t matches = 0;
  memset(&sd, 0, sizeof sd);
  sd.timeout_ns = f->timeout * 1000000u;
  int r = gpuir_query_parse(index, &f->qd, words->p, words->n, &query, err);
  if (!r) r = gpuir_searcher_create(index, &sd, &searcher, err);
  if (!r) {
    r = gpuir_facets_count(searcher, query, f->columns, f->n, &facets, &matches);
    if (r) gpuir_searcher_error(searcher, err);
  }
  if (!r) print_facets(f, index, words, facets, matches);
  gpuir_facets_destroy(facets);
  gpuir_searcher_destroy(searcher);
  gpuir_query_destroy(query);
  return r;
}

/* Reads the options. 0; otherwise the command ends with that code - 1. */
static int read_options(cli_args *a, facets_flags *f) {
  int opt, bad = 0;
  while (!bad && (opt = cli_next(a)) != CLI_END) {
    if (opt == CLI_HELP) return 1 + cli_help("facets");
    bad = take_option(a, opt, f);
  }
  if (bad) return 1 + CLI_USAGE;
  if (!a->noperands) return 1 + cli_misuse("facets", "INDEX is missing");
  if (!f->n) return 1 + cli_misuse("facets", "--facet COLUMN is missing, as in -f author:20");
  f->qd.all = a->noperands == 1;
  return 0;
}

int cli_facets(int argc, char **argv) {
  static const cli_option options[] = {{O_FACET, "facet", 'f', 1}, {O_MODE, "mode", 'm', 1}, {O_WHERE, "where", 'w', 1},
      {O_TSV, "tsv", 0, 0}, {O_JSON, "json", 0, 0}, {O_TIMEOUT, "timeout", 0, 1},
      {O_NO_OPERATORS, "no-operators", 0, 0}, {0, NULL, 0, 0}};
  facets_flags f;
  gpuir_error err;
  cli_args a;
  cli_buf words = {NULL, 0, 0};
  memset(&f, 0, sizeof f);
  memset(&err, 0, sizeof err);
  cli_args_start(&a, "facets", options, argc, argv);
  a.leading = 1;
  int code = read_options(&a, &f) - 1;
  if (code < 0) {
    gpuir_index *index = cli_open(a.operands[0]);
    code = CLI_FAIL;
    cli_join_words(&a, 1, &words);
    cli_notice_operators(&f.qd, words.p ? words.p : "", words.n);
    const int r = index ? count_facets(&f, index, &words, &err) : GPUIR_OK;
    if (r) (void)cli_fail(a.operands[0], r, &err);
    else if (index) code = cli_finish(CLI_OK);
    gpuir_close(index);
  }
  cli_buf_free(&words);
  cli_args_free(&a);
  return code;
}
