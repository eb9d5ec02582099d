/* index.c - gpuir index: builds an index from text. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STOP_FILE_MAX ((size_t)4 << 20)

typedef struct build {
  cli_input in;
  text_filters filters;
  gpuir_builder *builder;
  const char *output;
  int terminal, failed;
  double begin, shown;
  uint64_t total; /* bytes of input, if that is known beforehand; otherwise 0 */
} build;

static void show_progress(build *b, const gpuir_progress *p) {
  double now = cli_seconds(), mb = (double)p->bytes / 1e6, spent = now - b->begin;
  char line[160], bar[32], docs[CLI_COUNTED];
  int done = -1;
  if (now - b->shown < 0.1) return;
  b->shown = now;
  if (p->postings_total) done = (int)((double)p->postings_done * 100.0 / (double)p->postings_total);
  else if (b->total) done = (int)((double)p->bytes * 100.0 / (double)b->total);
  if (done > 100) done = 100;
  bar[0] = 0;
  if (done >= 0) {
    memset(bar, ' ', 22);
    bar[0] = '[', bar[21] = ']', bar[22] = 0;
    for (int i = 0; i < done / 5; i++) bar[1 + i] = '#';
  }
  snprintf(line, sizeof line, "%s %s %s, %.1f MB, %.1f MB/s", p->postings_total ? "merging" : "reading", bar,
      cli_counted(p->documents, "document", "documents", docs), mb, spent > 0 ? mb / spent : 0.0);
  cli_status(line);
}

static int on_progress(void *user, const gpuir_progress *p) {
  build *b = (build *)user;
  if (b->terminal) show_progress(b, p);
  return cli_signal != 0;
}

static int on_document(void *user, const gpuir_doc_desc *doc, const char *text, size_t len) {
  build *b = (build *)user;
  gpuir_error err;
  memset(&err, 0, sizeof err);
  if (cli_signal) return CLI_FAIL;
  int r = gpuir_builder_add_text(b->builder, doc, text, len, &err);
  b->in.bytes += len;
  if (!r) return 0;
  if (r != GPUIR_E_CANCELLED) cli_fail(b->output, r, &err);
  return CLI_FAIL;
}

/* Returns the words of a stop list file, as one string. NULL after a message. */
static char *read_stop_file(const char *path) {
  char *words = NULL;
  size_t n = 0;
  FILE *f = fopen(path, "r");
  if (!f) {
    cli_error("%s: %s: neither a stop list (english) nor a file of words", path, strerror(errno));
    return NULL;
  }
  words = (char *)cli_resize(NULL, STOP_FILE_MAX + 1, 1);
  n = fread(words, 1, STOP_FILE_MAX + 1, f);
  if (ferror(f)) cli_error("%s: %s", path, strerror(errno));
  else if (n > STOP_FILE_MAX) cli_error("%s: a stop list of more than %zu MiB", path, STOP_FILE_MAX >> 20);
  else if (memchr(words, 0, n)) cli_error("%s: not a file of words: it has a NUL byte", path);
  else {
    fclose(f);
    words[n] = 0;
    return words;
  }
  fclose(f);
  free(words);
  return NULL;
}

static void report_duplicates(const cli_input *in) {
  char n[CLI_COUNTED], m[27];
  if (in->duplicates)
    cli_error("%s%s a name that was there before; all were kept", in->names.full ? "at least " : "",
        cli_counted(in->duplicates, "document has", "documents have", n));
  if (in->names.full)
    cli_error("names were compared with the first %s only; a larger --memory compares more",
        cli_grouped(in->names.n, m));
}

static void print_summary(const build *b, const gpuir_build_report *r, double bits, double seconds) {
  char docs[CLI_COUNTED], terms[CLI_COUNTED], postings[CLI_COUNTED], size[27];
  double mb = (double)r->text_bytes / 1e6;
  cli_error("%s: %s, %s, %s, %.2f bits a posting, %s file", b->output,
      cli_counted(r->documents, "document", "documents", docs), cli_counted(r->terms, "term", "terms", terms),
      cli_counted(r->postings, "posting", "postings", postings), bits, cli_size(r->file_bytes, size));
  cli_error("%s of text in %.2f s, %.1f MB/s, peak memory %.0f MB (%.0f MB resident with files)",
      cli_size(r->text_bytes, size), seconds, seconds > 0 ? mb / seconds : 0.0, (double)r->peak_memory / 1048576.0,
      (double)cli_peak_resident() / 1048576.0);
  if (r->dropped_tokens) {
    char n[CLI_COUNTED];
    cli_error("%s dropped, of more than %d bytes", cli_counted(r->dropped_tokens, "token was", "tokens were", n),
        GPUIR_MAX_TERM);
  }
}

static void print_json(const build *b, const gpuir_build_report *r, double bits, double seconds) {
  const cli_input *in = &b->in;
  printf("{\"index\":");
  cli_json_string(stdout, b->output, strlen(b->output));
#define NUMBER(name, value) printf(",\"" name "\":%llu", (unsigned long long)(value))
  NUMBER("documents", r->documents);
  NUMBER("terms", r->terms);
  NUMBER("postings", r->postings);
  NUMBER("tokens", r->tokens);
  NUMBER("dropped_tokens", r->dropped_tokens);
  NUMBER("lost_documents", r->lost_documents);
  NUMBER("text_bytes", r->text_bytes);
  NUMBER("file_bytes", r->file_bytes);
  printf(",\"bits_per_posting\":%.4f,\"seconds\":%.3f,\"mb_per_second\":%.2f", bits, seconds,
      seconds > 0 ? (double)r->text_bytes / 1e6 / seconds : 0.0);
  NUMBER("runs", r->runs);
  NUMBER("peak_memory", r->peak_memory);
  NUMBER("peak_resident", cli_peak_resident());
  NUMBER("files", in->files);
  NUMBER("binaries", in->binaries);
  NUMBER("hidden", in->hidden_skipped);
  NUMBER("ignored", in->ignored);
  NUMBER("links", in->links_skipped);
  NUMBER("indexes", in->indexes_skipped);
  NUMBER("other", in->special_skipped);
  NUMBER("unreadable", in->failed);
  NUMBER("malformed", in->malformed);
  NUMBER("duplicate_names", in->duplicates);
  NUMBER("misfits", in->misfits);
#undef NUMBER
  printf("}\n");
}

/* Returns the bytes of all inputs when every one is a regular file, for the progress bar. */
static uint64_t known_total(const cli_args *a) {
  uint64_t total = 0;
  struct stat st;
  for (int i = 0; i < a->noperands; i++) {
    if (!strcmp(a->operands[i], "-") || stat(a->operands[i], &st) || !S_ISREG(st.st_mode)) return 0;
    total += (uint64_t)st.st_size;
  }
  return total;
}

/* Lets the index keep what was left out of it. */
static int keep_skipped(const build *b) {
  skipped_counts counts;
  byte_buf kept;
  gpuir_error err;
  memset(&kept, 0, sizeof kept);
  memset(&err, 0, sizeof err);
  cli_input_count_skipped(&b->in, &counts);
  skipped_keep(&counts, &kept);
  bytes_char(&kept, 0);
  const int r = kept.failed ? GPUIR_E_NOMEM : gpuir_builder_skipped(b->builder, kept.p, &err);
  bytes_free(&kept);
  return r ? cli_fail(b->output, r, &err) : 0;
}

/* Reads the inputs and writes the index. */
static int run_build(build *b, const cli_args *a, const gpuir_builder_desc *bd, int quiet, int json) {
  gpuir_build_report report;
  gpuir_error err;
  gpuir_index *ix = NULL;
  double bits = 0;
  memset(&err, 0, sizeof err);
  memset(&report, 0, sizeof report);
  int r = gpuir_builder_create(bd, &b->builder, &err);
  if (r) return cli_fail(b->output, r, &err);
  cli_temporary_index(b->output);
  cli_input_home(&b->in, b->output);
  cli_input_exclude(&b->in, b->output);
  cli_input_nest(&b->in, a->operands, a->noperands);
  for (int i = 0; !r && i < a->noperands; i++) r = cli_input_read(&b->in, a->operands[i]);
  if (!r && cli_signal) r = CLI_FAIL;
  if (!r && !b->in.documents) { /* an old index is worth more than an empty one */
    cli_error("nothing to index was found; %s is not written", b->output);
    cli_input_tell_skipped(&b->in);
    if (b->in.ignored) {
      char n[CLI_COUNTED];
      cli_error("%s left out by .gitignore files; --no-ignore reads what they name",
          cli_counted(b->in.ignored, "file or folder is", "files and folders are", n));
    }
    r = CLI_FAIL;
  }
  if (!r) r = keep_skipped(b);
  if (!r) {
    r = gpuir_builder_write(b->builder, &report, &err);
    if (r && r != GPUIR_E_CANCELLED) cli_fail(b->output, r, &err);
  }
  gpuir_builder_destroy(b->builder);
  cli_temporary(NULL);
  cli_status("");
  if (r) {
    if (cli_signal) cli_error("stopped; %s is not written", b->output);
    return cli_signal ? 128 + (int)cli_signal : CLI_FAIL;
  }
  double seconds = cli_seconds() - b->begin;
  if (!gpuir_open(b->output, NULL, &ix, NULL)) {
    gpuir_index_info info;
    if (!gpuir_index_get_info(ix, &info)) bits = info.bits_per_posting;
    gpuir_close(ix);
  }
  report_duplicates(&b->in);
  cli_tell_lost(report.lost_documents);
  if (report.shared_folder) cli_tell_shared(b->output);
  if (!quiet) cli_input_tell_skipped(&b->in);
  if (!quiet) cli_input_tell_decoded(&b->in);
  if (!quiet) cli_input_tell_members(&b->in);
  cli_fields_tell(&b->in);
  if (!quiet && !json) print_summary(b, &report, bits, seconds);
  if (json) print_json(b, &report, bits, seconds);
  return cli_finish(cli_input_end(&b->in));
}

/* ---- options ---- */

void cli_build_init(cli_build *b) {
  memset(b, 0, sizeof *b);
  b->megabytes = 512;
  b->desc.analyzer.analyzer = CLI_DEFAULT_ANALYZER;
  b->desc.k1 = 0.9f;
  b->desc.b = 0.4f;
}

/* Reads which lists are dense; 0: none. */
static int dense_option(const cli_args *a, gpuir_builder_desc *bd) {
  uint64_t n = 0;
  int bad = cli_unsigned(a, 0, 128, &n);
  bd->dense = n ? (int)n : GPUIR_DENSE_NONE;
  return bad;
}

int cli_build_option(const cli_args *a, int id, cli_build *b) {
  gpuir_builder_desc *bd = &b->desc;
  switch (id) {
  case CLI_ANALYZER: bd->analyzer.analyzer = a->value; return 0;
  case CLI_LANG: b->language = a->value; return 0;
  case CLI_STEM: bd->analyzer.stem = a->value; return 0;
  case CLI_NO_FOLD: bd->analyzer.no_fold = 1; return 0;
  case CLI_STOP: b->stop = a->value; return 0;
  case CLI_CODEC: bd->codec = a->value; return 0;
  case CLI_FREQ_CODEC: bd->freq_codec = a->value; return 0;
  case CLI_DENSE: return dense_option(a, bd);
  case CLI_K1: bd->custom_bm25 = 1; return cli_real(a, 0, 1000, &bd->k1);
  case CLI_B: bd->custom_bm25 = 1; return cli_real(a, 0, 1, &bd->b);
  case CLI_DESCRIPTION: bd->description = a->value; return 0;
  case CLI_MEMORY: return cli_unsigned(a, 1, (uint64_t)1 << 32, &b->megabytes);
  case CLI_THREADS: return cli_unsigned(a, 0, 1024, &b->threads);
  case CLI_QUIET: b->quiet = 1; return 0;
  case CLI_OUTPUT: b->output = a->value; return 0;
  default: return 1;
  }
}

int cli_build_check(const char *command, cli_build *b) {
  gpuir_builder_desc *bd = &b->desc;
  if (!b->output || !*b->output) return cli_misuse(command, "-o INDEX is missing");
  if (!strcmp(b->output, "-")) return cli_misuse(command, "-o needs a file: an index is never a stream");
  if (b->language && bd->analyzer.stem) return cli_misuse(command, "--lang and --stem exclude each other");
  if (b->language && strcmp(b->language, "none") != 0) bd->analyzer.stem = cli_language_stemmer(b->language);
  if (b->stop && !strcmp(b->stop, "english")) bd->analyzer.stop = b->stop;
  else if (b->stop && (bd->analyzer.stop_words = b->stop_words = read_stop_file(b->stop)) == NULL) return CLI_FAIL;
  bd->path = b->output;
  bd->threads = (unsigned)b->threads;
  bd->memory = b->memory = b->megabytes << 20;
  return CLI_OK;
}

void cli_build_free(cli_build *b) { free(b->stop_words); }

enum { O_JSON = 2, O_LIVE };

static const cli_option options[] = {{O_JSON, "json", 0, 0}, {O_LIVE, "live", 0, 0}, CLI_INDEX_OPTIONS,
    CLI_INPUT_OPTIONS, CLI_BUILD_OPTIONS, {0, NULL, 0, 0}};

/* Builds an index file of what the operands name. */
static int index_file(build *b, cli_build *common, const cli_args *a, int json) {
  /* A sixteenth of the budget is for the names that were seen, at most; the builder has the rest. */
  uint64_t slots = 1024;
  while (slots * 2 * 12 <= common->memory / 16)
    slots *= 2; /* 8 bytes a slot, and 4 of the smaller set while it grows */
  if (cli_is_live(common->output)) {
    cli_error("%s: a live index, which 'gpuir update' and 'gpuir add' change", common->output);
    return CLI_FAIL;
  }
  b->in.names.max = slots;
  cli_input_names(&b->in, common->desc.analyzer.analyzer);
  b->in.add = on_document;
  b->in.user = b;
  common->desc.memory = common->memory - common->memory / 16;
  common->desc.order = "original";
  common->desc.progress = on_progress;
  common->desc.progress_user = b;
  b->terminal = !common->quiet && isatty(STDERR_FILENO);
  b->begin = cli_seconds();
  if (b->terminal) b->total = known_total(a);
  return run_build(b, a, &common->desc, common->quiet, json);
}

/* Checks that fields are of what is read. Not 0 after a message. */
static int fields_fit(const cli_input *in) {
  const int files = cli_fields_of_files(in, NULL), records = decode_has_members(in->format);
  const int heads = in->format == DECODE_FILES || in->format == DECODE_CHUNKS;
  if (cli_fields_of_heads(in) && !heads && !records)
    return cli_misuse("index", "--field names members of JSON, tables, mail and front matter: lines have none");
  if (files && (records || in->format == DECODE_TREC || in->format == DECODE_TSV))
    return cli_misuse("index", "--fields are of files, and each record is a document");
  return 0;
}

int cli_index_option(const cli_args *a, int opt, cli_input *in, cli_build *common) {
  switch (opt) {
  case CLI_INDEX_STORE: return common->desc.store_text = 1, 0;
  case CLI_INDEX_POSITIONS: return common->desc.positions = 1, 0;
  case CLI_INDEX_ID: return cli_input_members(a, RECORDS_ID, in);
  case CLI_INDEX_TITLE: return cli_input_members(a, RECORDS_TITLE, in);
  case CLI_INDEX_TEXT: return cli_input_members(a, RECORDS_TEXT, in);
  case CLI_INDEX_FIELDS: return cli_fields_option(a, in);
  case CLI_INDEX_FIELD: return cli_field_option(a, in);
  default: return cli_build_option(a, opt, common) && cli_input_format(a, opt, in);
  }
}

int cli_index_check(const cli_args *a, cli_input *in, cli_build *common) {
  if (in->reading.n && !decode_has_members(in->format))
    return cli_misuse("index", "--id, --title and --text name members: --jsonl, --csv or --tsv-head is missing");
  if (fields_fit(in)) return CLI_USAGE;
  if (in->fields_guessed && !decode_has_members(in->format))
    return cli_misuse("index", "--fields auto is of records: --jsonl, --csv or --tsv-head is missing");
  cli_fields_default(in, a->operands, a->noperands);
  int code = cli_build_check("index", common);
  if (!code) code = cli_filters_install(in->filters, common->quiet);
  common->desc.filters = filters_text(in->filters);
  if (!code) code = cli_input_check("index", a->operands, a->noperands);
  if (!code && in->fields_guessed) code = cli_fields_guess(in, a->operands, a->noperands);
  common->desc.reading = cli_input_reading(in);
  common->desc.fields = in->fields;
  common->desc.nfields = in->nfields;
  if (!code && in->whole_files && in->format != DECODE_FILES)
    code = cli_misuse("index", "--whole-files: another format was given, too");
  if (!code) cli_input_chunks(in, common->desc.analyzer.analyzer);
  return code ? code : cli_language_choose(common, in, a->operands, a->noperands);
}

/* Reads the options. 0; otherwise the command ends with that code - 1. */
static int index_options(cli_args *a, build *b, cli_build *common, int *live, int *json) {
  int opt, bad = 0;
  while (!bad && (opt = cli_next(a)) != CLI_END) {
    switch (opt) {
    case CLI_HELP: return 1 + cli_help("index");
    case O_JSON: *json = 1; break;
    case O_LIVE: *live = 1; break;
    default: bad = cli_index_option(a, opt, &b->in, common); break;
    }
  }
  if (bad) return 1 + CLI_USAGE;
  if (*live && *json) return 1 + cli_misuse("index", "--live and --json exclude each other");
  if (!a->noperands && !*live) return 1 + cli_misuse("index", "an INPUT is missing ('-' is standard input)");
  for (int i = 0; *live && i < a->noperands; i++)
    if (!strcmp(a->operands[i], "-"))
      return 1 + cli_misuse("index", "--live follows files, and standard input is none; 'gpuir add' takes it");
  return 0;
}

int cli_index(int argc, char **argv) {
  build b;
  cli_build common;
  cli_args a;
  int json = 0, live = 0, code;
  memset(&b, 0, sizeof b);
  cli_build_init(&common);
  b.in.filters = &b.filters;
  cli_args_start(&a, "index", options, argc, argv);
  code = index_options(&a, &b, &common, &live, &json);
  if (code) {
    filters_free(&b.filters);
    cli_args_free(&a);
    return code - 1;
  }
  cli_catch_signals();
  code = cli_index_check(&a, &b.in, &common);
  b.output = common.output;
  if (!code) {
    code = live ? cli_live_found(&common, &b.in, a.operands, a.noperands) : index_file(&b, &common, &a, json);
  }
  cli_input_free(&b.in);
  filters_free(&b.filters);
  cli_build_free(&common);
  cli_args_free(&a);
  return code;
}
