/* build.c - gpuir-mpi index and split: every rank builds the part of its documents, all count together, and each gives
 * its part its place in the collection. */
#include "mpi.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MEBIBYTE ((uint64_t)1 << 20)
#define ENOUGH 77 /* what ends the reading when all documents of this rank were there */

/* Returns where a rank's documents begin, of n. */
static uint64_t first_of(uint64_t n, int rank) { return (uint64_t)((long double)n * rank / mpi_ranks); }

/* Makes a shard of the part that this rank has built, and puts it in its place, if all others have built theirs. */
static int finish(const char *folder, int code) {
  char *part = mpi_path(folder, (unsigned)mpi_rank, MPI_PART), *new = mpi_path(folder, (unsigned)mpi_rank, MPI_NEW);
  gpuir_index *index = NULL;
  gpuir_shard_info place;
  gpuir_error err;
  uint32_t *dfs = NULL;
  memset(&err, 0, sizeof err);
  if (!code && (index = cli_open(part)) == NULL) code = CLI_FAIL;
  code = mpi_agree(code);
  if (!code) code = mpi_count(index, &place, &dfs);
  if (!code) {
    const int status = gpuir_shard_write(index, new, &place, dfs, &err);
    if (status) code = cli_fail(new, status, &err);
  }
  free(dfs);
  gpuir_close(index);
  code = mpi_publish(folder, code);
  free(part);
  free(new);
  return code;
}

/* Sets what every rank's builder is told alike, if threads are not given: together they are as many as processors. */
static void share_machine(gpuir_builder_desc *bd) {
  MPI_Comm node;
  int here = 1;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_size(node, &here);
  MPI_Comm_free(&node);
  if (!bd->threads) bd->threads = (cli_processors() + (unsigned)here - 1) / (unsigned)here;
}

static int on_progress(void *user, const gpuir_progress *p) {
  (void)user;
  (void)p;
  return cli_signal != 0;
}

/* ---- index ---- */

typedef struct build {
  cli_input in;
  text_filters filters;
  cli_build common;
  gpuir_builder *builder;
  uint64_t at, from, to; /* the document that comes; those of this rank */
  char *part;
} build;

/* Takes a document: adds it if it is one of this rank's. */
static int on_document(void *user, const gpuir_doc_desc *doc, const char *text, size_t len) {
  build *b = (build *)user;
  gpuir_error err;
  int status;
  if (cli_signal) return CLI_FAIL;
  if (b->at == b->to) return ENOUGH;
  if (b->at++ < b->from) return CLI_OK;
  memset(&err, 0, sizeof err);
  status = gpuir_builder_add_text(b->builder, doc, text, len, &err);
  if (!status) return CLI_OK;
  mpi_all_speak();
  return cli_fail(b->part, status, &err);
}

/* Takes a document that is only counted. */
static int on_count(void *user, const gpuir_doc_desc *doc, const char *text, size_t len) {
  (void)user, (void)doc, (void)text, (void)len;
  return cli_signal ? CLI_FAIL : CLI_OK;
}

/* Reads the inputs; the documents go to `add`. */
static int read_inputs(build *b, const cli_args *a, int (*add)(void *, const gpuir_doc_desc *, const char *, size_t),
    uint64_t names, uint64_t *documents) {
  cli_input in = b->in;
  int r = CLI_OK;
  cli_input_names(&in, b->common.desc.analyzer.analyzer);
  in.add = add;
  in.user = b;
  in.names.max = names;
  cli_input_fields_home(&in, b->common.output);
  cli_input_exclude(&in, b->common.output);
  cli_input_nest(&in, a->operands, a->noperands);
  for (int i = 0; !r && i < a->noperands; i++) r = cli_input_read(&in, a->operands[i]);
  *documents = in.documents;
  if (add == on_count) cli_fields_tell(&in);
  in.fields = NULL; /* they and what was chosen are those of b->in */
  in.nfields = 0;
  memset(&in.reading, 0, sizeof in.reading);
  cli_input_free(&in);
  return r ? r : cli_signal ? CLI_FAIL : CLI_OK;
}

/* Counts the documents; only the first rank reads for it. *n: for all of them. */
static int count_documents(build *b, const cli_args *a, uint64_t *n) {
  uint64_t slots = 1024;
  int code = CLI_OK;
  *n = 0;
  while (slots * 2 * 12 <= b->common.memory / 16) slots *= 2; /* as gpuir index does */
  if (!mpi_rank) {
    code = read_inputs(b, a, on_count, slots, n);
    if (!code && !*n) {
      cli_error("nothing to index was found; %s is not written", b->common.output);
      code = CLI_FAIL;
    }
  }
  MPI_Bcast(n, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  return mpi_agree(code);
}

/* Builds this rank's part. */
static int build_part(build *b, const cli_args *a, uint64_t n) {
  gpuir_builder_desc bd = b->common.desc;
  gpuir_error err;
  uint64_t documents;
  int code, status;
  memset(&err, 0, sizeof err);
  bd.path = b->part;
  bd.memory = b->common.memory - b->common.memory / 16;
  bd.order = "original";
  bd.progress = on_progress;
  b->from = first_of(n, mpi_rank);
  b->to = first_of(n, mpi_rank + 1);
  mpi_all_speak();
  status = gpuir_builder_create(&bd, &b->builder, &err);
  if (status) return cli_fail(b->part, status, &err);
  cli_temporary_index(b->part);
  cli_name = NULL; /* of what is left out the first rank has spoken when it counted */
  code = read_inputs(b, a, on_document, 1024, &documents);
  mpi_all_speak();
  if (code == ENOUGH) code = CLI_OK;
  if (!code && b->at != b->to) {
    cli_error("the input has changed: %lu documents, and before there were %lu", (unsigned long)documents,
        (unsigned long)n);
    code = CLI_FAIL;
  }
  if (!code) {
    status = gpuir_builder_write(b->builder, NULL, &err);
    if (status) code = cli_fail(b->part, status, &err);
  }
  gpuir_builder_destroy(b->builder);
  cli_temporary(NULL);
  return code;
}

enum { O_MEMORY = 2, O_OUTPUT };

/* Reads the options. 0; otherwise the command ends with that code - 1. */
static int index_options(cli_args *a, build *b) {
  int opt, bad = 0, code;
  while (!bad && (opt = cli_next(a)) != CLI_END) {
    if (opt == CLI_HELP) return 1 + mpi_help();
    bad = cli_index_option(a, opt, &b->in, &b->common);
  }
  if (bad) return 1 + CLI_USAGE;
  if (!a->noperands) return 1 + cli_misuse("index", "an INPUT is missing");
  for (int i = 0; i < a->noperands; i++)
    if (!strcmp(a->operands[i], "-"))
      return 1 + cli_misuse("index", "every rank reads the inputs, and standard input can be read once");
  code = cli_index_check(a, &b->in, &b->common);
  return code ? 1 + code : 0;
}

int mpi_index(int argc, char **argv) {
  static const cli_option options[] = {CLI_INDEX_OPTIONS, CLI_INPUT_OPTIONS, CLI_BUILD_OPTIONS, {0, NULL, 0, 0}};
  char documents[CLI_COUNTED], parts[CLI_COUNTED];
  uint64_t n = 0;
  build b;
  cli_args a;
  int code;
  memset(&b, 0, sizeof b);
  b.in.filters = &b.filters;
  cli_build_init(&b.common);
  cli_args_start(&a, "index", options, argc, argv);
  code = index_options(&a, &b);
  if (!code) {
    cli_catch_signals();
    share_machine(&b.common.desc);
    mpi_all_speak();
    code = mpi_agree(mpi_prepare(b.common.output));
    mpi_first_speaks();
    b.part = mpi_path(b.common.output, (unsigned)mpi_rank, MPI_PART);
    if (!code) code = count_documents(&b, &a, &n);
    if (!code) code = finish(b.common.output, build_part(&b, &a, n));
    mpi_first_speaks();
    if (!code && !b.common.quiet)
      cli_error("%s: %s in %s", b.common.output, cli_counted(n, "document", "documents", documents),
          cli_counted((uint64_t)mpi_ranks, "shard", "shards", parts));
  } else {
    code--;
  }
  free(b.part);
  cli_input_free(&b.in);
  filters_free(&b.filters);
  cli_build_free(&b.common);
  cli_args_free(&a);
  return code;
}

/* ---- split ---- */

/* The postings of one term in a rank's documents. */
typedef struct slice {
  uint32_t *docids, *tfs, *positions;
  size_t n, cap, m, positions_cap;
} slice;

/* Appends the current posting of a cursor. */
static int slice_put(slice *s, gpuir_cursor *c, uint32_t docid, int positions) {
  uint32_t tf = gpuir_cursor_tf(c), got;
  if (s->n == s->cap) {
    s->cap = s->cap ? 2 * s->cap : 4096;
    s->docids = (uint32_t *)cli_resize(s->docids, s->cap, 4);
    s->tfs = (uint32_t *)cli_resize(s->tfs, s->cap, 4);
  }
  s->docids[s->n] = docid;
  s->tfs[s->n++] = tf;
  if (!positions) return GPUIR_OK;
  if (s->m + tf > s->positions_cap) {
    s->positions_cap = 2 * (s->m + tf);
    s->positions = (uint32_t *)cli_resize(s->positions, s->positions_cap, 4);
  }
  const int status = gpuir_cursor_positions(c, s->positions + s->m, tf, &got);
  s->m += tf;
  return status ? status : got == tf ? GPUIR_OK : GPUIR_E_FORMAT;
}

/* Hands the postings of documents [from, to) to a builder, term by term. */
static int copy_lists(const gpuir_index *index, uint32_t from, uint32_t to, gpuir_builder *builder,
    const char *output) {
  gpuir_index_info info;
  gpuir_term_info t;
  gpuir_error err;
  slice s;
  int status = GPUIR_OK;
  memset(&s, 0, sizeof s);
  memset(&err, 0, sizeof err);
  (void)gpuir_index_get_info(index, &info);
  for (uint64_t id = 0; id < info.terms && !status && !cli_signal; id++) {
    gpuir_cursor *c = NULL;
    s.n = s.m = 0;
    status = gpuir_cursor_open(index, id, &c, &err);
    if (status) break;
    for (uint32_t d = gpuir_cursor_next_geq(c, from); d < to && !status; d = gpuir_cursor_next(c))
      status = slice_put(&s, c, d - from, info.has_positions);
    gpuir_cursor_close(c);
    if (status || !s.n) continue;
    status = gpuir_term_get_info(index, id, &t);
    if (!status)
      status = gpuir_builder_add_list(builder, t.term, t.term_len, s.docids, s.tfs,
          info.has_positions ? s.positions : NULL, (uint32_t)s.n, &err);
  }
  free(s.docids);
  free(s.tfs);
  free(s.positions);
  return status ? cli_fail(output, status, &err) : cli_signal ? CLI_FAIL : CLI_OK;
}

/* Builds this rank's part of the index at `input`. */
static int split_part(const gpuir_index *index, const char *input, const char *part, uint64_t memory) {
  gpuir_index_info info;
  gpuir_builder_desc bd;
  gpuir_builder *builder;
  gpuir_error err;
  int code, status;
  memset(&bd, 0, sizeof bd);
  memset(&err, 0, sizeof err);
  (void)gpuir_index_get_info(index, &info);
  const uint32_t from = (uint32_t)first_of(info.documents, mpi_rank),
                 to = (uint32_t)first_of(info.documents, mpi_rank + 1);
  bd.path = part;
  bd.like = index;
  bd.memory = memory;
  bd.threads = 0;
  share_machine(&bd);
  bd.store_text = info.has_text;
  bd.positions = info.has_positions;
  bd.progress = on_progress;
  status = gpuir_builder_create(&bd, &builder, &err);
  if (status) return cli_fail(part, status, &err);
  cli_temporary_index(part);
  code = mpi_copy_documents(index, input, from, to, builder, part);
  if (!code) code = copy_lists(index, from, to, builder, part);
  if (!code) {
    status = gpuir_builder_write(builder, NULL, &err);
    if (status) code = cli_fail(part, status, &err);
  }
  gpuir_builder_destroy(builder);
  cli_temporary(NULL);
  return code;
}

int mpi_split(int argc, char **argv) {
  static const cli_option options[] = {{O_MEMORY, "memory", 0, 1}, {O_OUTPUT, "output", 'o', 1}, {0, NULL, 0, 0}};
  uint64_t megabytes = 512;
  const char *output = NULL;
  gpuir_index *index = NULL;
  char *part = NULL;
  cli_args a;
  int opt, bad = 0, code;
  cli_args_start(&a, "split", options, argc, argv);
  while (!bad && (opt = cli_next(&a)) != CLI_END) {
    switch (opt) {
    case O_MEMORY: bad = cli_unsigned(&a, 1, (uint64_t)1 << 32, &megabytes); break;
    case O_OUTPUT: output = a.value; break;
    case CLI_HELP: cli_args_free(&a); return mpi_help();
    default: bad = 1; break;
    }
  }
  code = bad ? CLI_USAGE : CLI_OK;
  if (!code && (a.noperands != 1 || !output)) code = cli_misuse("split", "one INDEX, and -o SHARDS");
  if (!code) {
    cli_catch_signals();
    mpi_all_speak();
    index = cli_open_merged(a.operands[0]);
    code = mpi_agree(index ? mpi_prepare(output) : CLI_FAIL);
    part = mpi_path(output, (unsigned)mpi_rank, MPI_PART);
    if (!code) code = finish(output, split_part(index, a.operands[0], part, megabytes * MEBIBYTE));
  }
  free(part);
  gpuir_close(index);
  cli_args_free(&a);
  return code;
}
