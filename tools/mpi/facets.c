/* facets.c - gpuir-mpi facets: every rank counts all values of its shard, and the first one adds them up and cuts. */
#include "mpi.h"

#include <stdlib.h>
#include <string.h>

#define NO_TEXT UINT32_MAX

/* A facet as it is sent: its value's bytes follow, and a NUL. */
typedef struct sent {
  int64_t low, high;
  uint64_t count;
  uint32_t len; /* NO_TEXT: it is of a number or a date */
} sent;

/* The facets of a column from all ranks. */
typedef struct item {
  gpuir_facet facet;
  int column; /* of its field, as qsort hands nothing on */
  size_t order;
} item;

/* ---- one rank's ---- */

/* Returns the column to count, to be freed: of "author:20" all authors, as others may be frequent in all shards
 * together. *most becomes 20; 0: all. */
static char *uncut(const gpuir_index *index, const char *column, uint64_t *most) {
  const size_t n = strcspn(column, ":");
  gpuir_field field;
  *most = 0;
  for (size_t i = 0; column[n] && !gpuir_field_get(index, i, &field); i++)
    if (field.column == GPUIR_KEY && strlen(field.name) == n && !memcmp(field.name, column, n) &&
        !cli_parse_unsigned(column + n + 1, 0, UINT32_MAX, most))
      return cli_copy(column, n);
  return cli_copy(column, strlen(column));
}

/* Appends the facets of column number `which`, behind their number. */
static void put_facets(const gpuir_facets *facets, size_t which, cli_buf *out) {
  const size_t at = out->n;
  uint64_t n = 0;
  gpuir_facet f;
  cli_buf_add(out, &n, sizeof n);
  for (; !gpuir_facets_get(facets, which, (size_t)n, &f); n++) {
    sent s;
    memset(&s, 0, sizeof s);
    s.low = f.low;
    s.high = f.high;
    s.count = f.count;
    s.len = f.value ? (uint32_t)f.len : NO_TEXT;
    cli_buf_add(out, &s, sizeof s);
    if (f.value) cli_buf_add(out, f.value, f.len + 1);
  }
  memcpy(out->p + at, &n, sizeof n);
}

/* Counts this rank's shard: the matches, and the facets of each column. An exit code. */
static int count_shard(const mpi_search *s, const cli_facets *f, const gpuir_query *query, cli_buf *out) {
  gpuir_facets *facets = NULL;
  gpuir_error err;
  char *columns[GPUIR_MAX_FIELDS];
  uint64_t matches = 0, most;
  for (size_t i = 0; i < f->n; i++) columns[i] = uncut(s->shard->index, f->columns[i], &most);
  int r = gpuir_facets_count(s->searcher, query, (const char *const *)columns, f->n, &facets, &matches);
  gpuir_searcher_error(s->searcher, &err);
  if (r) (void)cli_fail(s->shard->folder, r, &err);
  cli_buf_add(out, &matches, sizeof matches);
  for (size_t i = 0; !r && i < f->n; i++) put_facets(facets, i, out);
  gpuir_facets_destroy(facets);
  for (size_t i = 0; i < f->n; i++) free(columns[i]);
  return r ? CLI_FAIL : CLI_OK;
}

/* ---- all ranks' ---- */

static int compare_items(const void *a, const void *b) {
  const item *x = (const item *)a, *y = (const item *)b;
  if (x->facet.value) return mpi_value_compare(x->column, x->facet.value, x->facet.len, y->facet.value, y->facet.len);
  return x->facet.low < y->facet.low ? -1 : x->facet.low > y->facet.low;
}

static int compare_counts(const void *a, const void *b) {
  const item *x = (const item *)a, *y = (const item *)b;
  if (x->facet.count != y->facet.count) return x->facet.count > y->facet.count ? -1 : 1;
  return x->order < y->order ? -1 : x->order > y->order;
}

/* Takes the facets of a column from a rank's bytes at *at, behind the *n items that are there. */
static item *take_facets(const char **at, item *items, size_t *n, int column) {
  uint64_t more;
  memcpy(&more, *at, sizeof more);
  *at += sizeof more;
  items = (item *)cli_resize(items, *n + (size_t)more, sizeof *items);
  for (; more; more--) {
    item *x = &items[(*n)++];
    sent s;
    memcpy(&s, *at, sizeof s);
    *at += sizeof s;
    memset(x, 0, sizeof *x);
    x->column = column;
    x->facet.low = s.low;
    x->facet.high = s.high;
    x->facet.count = s.count;
    if (s.len == NO_TEXT) continue;
    x->facet.value = *at;
    x->facet.len = s.len;
    *at += s.len + 1;
  }
  return items;
}

/* Adds up what is the same, orders it as one index would, and cuts. Returns how many facets are left. */
static size_t add_up(item *items, size_t n, uint64_t most) {
  size_t m = 0;
  if (n) qsort(items, n, sizeof *items, compare_items);
  for (size_t i = 0; i < n; i++) {
    if (m && !compare_items(&items[m - 1], &items[i])) {
      items[m - 1].facet.count += items[i].facet.count;
      continue;
    }
    items[m] = items[i];
    items[m].order = m;
    m++;
  }
  if (m && items[0].facet.value) qsort(items, m, sizeof *items, compare_counts);
  return most && most < m ? (size_t)most : m;
}

/* Finds the kind of the field that a column begins with. */
static int kind_of(const gpuir_index *index, const char *column) {
  const size_t n = strcspn(column, ":");
  gpuir_field field;
  for (size_t i = 0; !gpuir_field_get(index, i, &field); i++)
    if (strlen(field.name) == n && !memcmp(field.name, column, n)) return field.column;
  return GPUIR_NO_COLUMN;
}

/* Adds up what all ranks have counted, and prints it. */
static void print_sums(const mpi_search *s, const cli_facets *f, const cli_buf *words, const cli_buf *all,
    const size_t *places) {
  const char **at = (const char **)cli_resize(NULL, (size_t)mpi_ranks, sizeof *at);
  uint64_t matches = 0, most, own;
  cli_facets_begin(f, words);
  for (int r = 0; r < mpi_ranks; r++) {
    at[r] = all->p + places[r];
    memcpy(&own, at[r], sizeof own);
    at[r] += sizeof own;
    matches += own;
  }
  for (size_t i = 0; i < f->n; i++) {
    item *items = NULL;
    size_t n = 0;
    free(uncut(s->shard->index, f->columns[i], &most));
    for (int r = 0; r < mpi_ranks; r++) items = take_facets(&at[r], items, &n, kind_of(s->shard->index, f->columns[i]));
    n = add_up(items, n, most);
    cli_facets_column(f, i);
    for (size_t j = 0; j < n; j++) cli_facets_value(f, s->shard->index, i, j, &items[j].facet);
    cli_facets_column_end(f);
    free(items);
  }
  cli_facets_end(f, matches);
  free(at);
}

/* ---- the command ---- */

/* Counts, and prints on the first rank. An exit code, the same on all ranks. */
static int run(mpi_search *s, const cli_facets *f, const cli_buf *words) {
  char *text = words->p;
  size_t len = words->n, *places = (size_t *)cli_resize(NULL, (size_t)mpi_ranks + 1, sizeof *places);
  cli_buf own = {NULL, 0, 0}, all = {NULL, 0, 0};
  gpuir_error err;
  mpi_batch b;
  int code = CLI_OK;
  memset(&err, 0, sizeof err);
  memset(&b, 0, sizeof b);
  b.n = 1;
  b.texts = &text;
  b.lens = &len;
  mpi_parse(s, &b, f->qd.mode, &err);
  if (b.statuses[0]) {
    err.code = b.statuses[0];
    code = cli_fail(s->shard->folder, b.statuses[0], &err);
  } else {
    code = count_shard(s, f, b.queries[0], &own);
  }
  code = mpi_agree(code);
  if (!code) mpi_gather(&own, &all, places);
  if (!code && !mpi_rank) print_sums(s, f, words, &all, places);
  mpi_batch_free(&b);
  cli_buf_free(&own);
  cli_buf_free(&all);
  free(places);
  return code;
}

int mpi_facets(int argc, char **argv) {
  gpuir_searcher *searcher = NULL;
  gpuir_searcher_desc sd;
  gpuir_error err;
  mpi_shard shard;
  mpi_search search;
  cli_facets f;
  cli_args a;
  cli_buf words = {NULL, 0, 0};
  int opt, code = CLI_OK;
  memset(&f, 0, sizeof f);
  memset(&sd, 0, sizeof sd);
  memset(&err, 0, sizeof err);
  memset(&shard, 0, sizeof shard);
  memset(&search, 0, sizeof search);
  cli_args_start(&a, "facets", cli_facets_options, argc, argv);
  a.leading = 1;
  while (!code && (opt = cli_next(&a)) != CLI_END) {
    if (opt == CLI_HELP) {
      cli_args_free(&a);
      return mpi_help();
    }
    code = cli_facets_option(&a, opt, &f) ? CLI_USAGE : CLI_OK;
  }
  if (!code) code = cli_facets_check(&a, &f);
  if (!code) code = mpi_open(&shard, a.operands[0]);
  if (!code) {
    cli_join_words(&a, 1, &words);
    search.desc = f.qd;
    search.k = 1;
    sd.timeout_ns = f.timeout * 1000000u;
    code = gpuir_searcher_create(shard.index, &sd, &searcher, &err) ? cli_fail(a.operands[0], err.code, &err) : CLI_OK;
    code = mpi_agree(code);
    if (!code) code = mpi_search_open(&search, &shard, searcher);
    if (!code) code = run(&search, &f, &words);
    mpi_search_close(&search);
    gpuir_searcher_destroy(searcher);
    code = cli_finish(code);
  }
  mpi_close(&shard);
  cli_buf_free(&words);
  cli_args_free(&a);
  return code;
}
