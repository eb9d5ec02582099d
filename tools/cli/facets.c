/* facets.c - gpuir facets: what the documents that match a query have in fields, counted. */
#include "cli.h"

#include "../common/column_text.h"

#include <stdlib.h>
#include <string.h>

enum { O_FACET = 2, O_MODE, O_WHERE, O_TSV, O_JSON, O_TIMEOUT, O_NO_OPERATORS };

const cli_option cli_facets_options[] = {{O_FACET, "facet", 'f', 1}, {O_MODE, "mode", 'm', 1},
    {O_WHERE, "where", 'w', 1}, {O_TSV, "tsv", 0, 0}, {O_JSON, "json", 0, 0}, {O_TIMEOUT, "timeout", 0, 1},
    {O_NO_OPERATORS, "no-operators", 0, 0}, {0, NULL, 0, 0}};

int cli_facets_option(const cli_args *a, int opt, cli_facets *f) {
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

void cli_facets_begin(const cli_facets *f, const cli_buf *words) {
  if (f->form != FORM_JSON) return;
  printf("{\"query\":");
  cli_json_string(stdout, words->p ? words->p : "", words->n);
  printf(",\"mode\":\"%s\",\"facets\":[", f->qd.mode == GPUIR_OR ? "or" : "and");
}

void cli_facets_column(const cli_facets *f, size_t which) {
  const char *column = f->columns[which];
  if (f->form == FORM_JSON) {
    printf("%s{\"column\":", which ? "," : "");
    cli_json_string(stdout, column, strlen(column));
    printf(",\"values\":[");
  } else if (f->form == FORM_HUMAN && f->n > 1) {
    printf("%s# ", which ? "\n" : "");
    cli_tsv_string(stdout, column, strlen(column));
    putchar('\n');
  }
}

void cli_facets_value(const cli_facets *f, const gpuir_index *index, size_t which, size_t i, const gpuir_facet *x) {
  gpuir_field field;
  char count[27];
  find_field(index, f->columns[which], &field);
  if (f->form == FORM_JSON) {
    printf("%s{\"value\":", i ? "," : "");
    print_value(&field, f->form, x);
    printf(",\"count\":%llu}", (unsigned long long)x->count);
    return;
  }
  if (f->form == FORM_TSV) {
    cli_tsv_string(stdout, f->columns[which], strlen(f->columns[which]));
    printf("\t%llu\t", (unsigned long long)x->count);
  } else {
    printf("%12s  ", cli_grouped(x->count, count));
  }
  print_value(&field, f->form, x);
  putchar('\n');
}

void cli_facets_column_end(const cli_facets *f) {
  if (f->form == FORM_JSON) printf("]}");
}

void cli_facets_end(const cli_facets *f, uint64_t matches) {
  if (f->form == FORM_JSON) printf("],\"count\":%llu}\n", (unsigned long long)matches);
}

static void print_facets(const cli_facets *f, const gpuir_index *index, const cli_buf *words,
    const gpuir_facets *facets, uint64_t matches) {
  gpuir_facet x;
  cli_facets_begin(f, words);
  for (size_t which = 0; which < f->n; which++) {
    cli_facets_column(f, which);
    for (size_t i = 0; !gpuir_facets_get(facets, which, i, &x); i++) cli_facets_value(f, index, which, i, &x);
    cli_facets_column_end(f);
  }
  cli_facets_end(f, matches);
}

/* Counts and prints. Returns a GPUIR_ status. */
static int count_facets(const cli_facets *f, const gpuir_index *index, const cli_buf *words, gpuir_error *err) {
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

int cli_facets_check(const cli_args *a, cli_facets *f) {
  if (!a->noperands) return cli_misuse("facets", "INDEX is missing");
  if (!f->n) return cli_misuse("facets", "--facet COLUMN is missing, as in -f author:20");
  f->qd.all = a->noperands == 1;
  return CLI_OK;
}

/* Reads the options. 0; otherwise the command ends with that code - 1. */
static int read_options(cli_args *a, cli_facets *f) {
  int opt, bad = 0;
  while (!bad && (opt = cli_next(a)) != CLI_END) {
    if (opt == CLI_HELP) return 1 + cli_help("facets");
    bad = cli_facets_option(a, opt, f);
  }
  const int code = bad ? CLI_USAGE : cli_facets_check(a, f);
  return code ? 1 + code : 0;
}

int cli_facets_command(int argc, char **argv) {
  cli_facets f;
  gpuir_error err;
  cli_args a;
  cli_buf words = {NULL, 0, 0};
  memset(&f, 0, sizeof f);
  memset(&err, 0, sizeof err);
  cli_args_start(&a, "facets", cli_facets_options, argc, argv);
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
