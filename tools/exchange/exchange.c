/* exchange.c - gpuir import and gpuir export: indexes from and to the files of other engines. */
#include "exchange.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

/* What an import could not take as it was. */
static void tell_notes(const char *path, const ex_in *in) {
  double average = in->documents ? (double)in->tokens / (double)in->documents : 0;
  char n[CLI_COUNTED], m[CLI_COUNTED];
  if (in->empty_terms)
    cli_error("%s: left out: %s of an empty term", path, cli_counted(in->empty_terms, "list", "lists", n));
  if (in->long_terms)
    cli_error("%s: left out: %s of over %d bytes", path,
        cli_counted(in->long_terms, "list of a term", "lists of terms", n), GPUIR_MAX_TERM);
  if (in->empty_lists)
    cli_error("%s: left out: %s without postings", path, cli_counted(in->empty_lists, "list", "lists", n));
  if (in->wrong_cf)
    cli_error("%s: in %s cf is not the sum of the frequencies; the sum counts", path,
        cli_counted(in->wrong_cf, "list", "lists", n));
  if (in->all_documents > in->documents || in->all_lists > in->lists)
    cli_error("%s: a part of a collection of %s and %s; scores are those of the part", path,
        cli_counted(in->all_documents, "document", "documents", n), cli_counted(in->all_lists, "term", "terms", m));
  else if (in->average != 0 && !(fabs(in->average - average) <= 1e-9 * average)) /* NaN too */
    cli_error(
        "%s: the header says that documents have %.6g tokens on average; their lengths say %.6g, which "
        "counts",
        path, in->average, average);
}

static int tell_failure(const char *output, int status, const ex_error *err) {
  if (cli_signal) {
    cli_error("stopped; %s is not written", output);
    return 128 + (int)cli_signal;
  }
  return cli_fail(err->file[0] ? err->file : output, status, &err->e);
}

/* Returns the format of a path: CIFF by its suffix, otherwise PISA's. */
static const ex_format *format_of(const char *path) {
  static const char *const suffixes[] = {".ciff", ".ciff.gz"};
  size_t n = strlen(path);
  for (size_t i = 0; i < 2; i++) {
    size_t m = strlen(suffixes[i]);
    if (n > m && !strcmp(path + n - m, suffixes[i])) return &ex_ciff;
  }
  return &ex_pisa;
}

static int on_progress(void *user, const gpuir_progress *p) {
  double *shown = (double *)user, now = cli_seconds();
  char line[2 * CLI_COUNTED + 16], docs[CLI_COUNTED], terms[CLI_COUNTED];
  if (*shown >= 0 && now - *shown >= 0.1) {
    *shown = now;
    snprintf(line, sizeof line, "importing %s, %s", cli_counted(p->documents, "document", "documents", docs),
        cli_counted(p->terms_done, "list", "lists", terms));
    cli_status(line);
  }
  return cli_signal != 0;
}

enum { O_FORMAT = 2 };

static int run_import(const ex_format *format, const char *path, cli_build *b) {
  double begin = cli_seconds(), shown = !b->quiet && isatty(STDERR_FILENO) ? 0 : -1; /* -1: never */
  gpuir_build_report report;
  ex_error err;
  ex_in in;
  b->desc.progress = on_progress;
  b->desc.progress_user = &shown;
  memset(&report, 0, sizeof report);
  int status = ex_import(format ? format : format_of(path), path, &b->desc, &in, &report, &err), code = CLI_OK;
  cli_status("");
  if (status) {
    code = tell_failure(b->output, status, &err);
  } else {
    char docs[CLI_COUNTED], terms[CLI_COUNTED], postings[CLI_COUNTED], size[27];
    tell_notes(path, &in);
    if (report.shared_folder) cli_tell_shared(b->output);
    if (!b->quiet)
      cli_error("%s: %s, %s, %s, %s file, in %.2f s", b->output,
          cli_counted(report.documents, "document", "documents", docs),
          cli_counted(report.terms, "term", "terms", terms),
          cli_counted(report.postings, "posting", "postings", postings), cli_size(report.file_bytes, size),
          cli_seconds() - begin);
  }
  ex_import_free(&in);
  return code;
}

int cli_import(int argc, char **argv) {
  static const cli_option options[] = {{O_FORMAT, "format", 0, 1}, CLI_BUILD_OPTIONS, {0, NULL, 0, 0}};
  static const ex_format *const formats[] = {&ex_ciff, &ex_pisa};
  const ex_format *format = NULL;
  cli_build b;
  cli_args a;
  int opt, bad = 0, code, i;
  cli_build_init(&b);
  b.desc.analyzer.analyzer = CLI_FOREIGN_ANALYZER;
  cli_args_start(&a, "import", options, argc, argv);
  while (!bad && (opt = cli_next(&a)) != CLI_END) {
    switch (opt) {
    case CLI_HELP: cli_args_free(&a); return cli_help("import");
    case O_FORMAT:
      bad = cli_choice(&a, "ciff|pisa", &i);
      if (!bad) format = formats[i];
      break;
    default: bad = cli_build_option(&a, opt, &b); break;
    }
  }
  code = bad ? CLI_USAGE : CLI_OK;
  if (!code && a.noperands != 1) code = cli_misuse("import", a.noperands ? "one IN only" : "IN is missing");
  if (!code && !strcmp(a.operands[0], "-")) code = cli_misuse("import", "IN is a file: it is read more than once");
  if (!code) code = cli_build_check("import", &b);
  if (!code) {
    cli_catch_signals();
    code = run_import(format, a.operands[0], &b);
  }
  cli_build_free(&b);
  cli_args_free(&a);
  return code;
}

/* Says which fields were not written. */
static void report_fields(const gpuir_index *index, const char *path) {
  cli_buf names = {NULL, 0, 0};
  gpuir_field field;
  for (size_t i = 0; !gpuir_field_get(index, i, &field); i++) {
    if (i) cli_buf_text(&names, ", ");
    cli_buf_text(&names, field.name);
  }
  if (names.n)
    cli_error("%s: without the values of fields, which the format has no place for: %.*s", path, (int)names.n, names.p);
  cli_buf_free(&names);
}

/* Says what was written. */
static void report_export(const ex_format *format, const gpuir_index *index, const char *path) {
  char documents[CLI_COUNTED], terms[CLI_COUNTED], postings[CLI_COUNTED];
  gpuir_index_info info;
  if (gpuir_index_get_info(index, &info)) return;
  report_fields(index, path);
  cli_error("%s: %s, %s, %s, %s", path, format->name, cli_counted(info.documents, "document", "documents", documents),
      cli_counted(info.terms - info.private_terms, "term", "terms", terms),
      info.private_terms ? "without those of pairs and spellings"
                         : cli_counted(info.postings, "posting", "postings", postings));
}

static int run_export(const ex_format *format, const char *name, const char *path, int quiet) {
  gpuir_index *index = cli_open_merged(name);
  uint64_t not_utf8 = 0;
  int shared = 0;
  ex_error err;
  char n[CLI_COUNTED];
  if (!index) return CLI_FAIL;
  if (!format) format = format_of(path);
  int status = ex_export(format, index, name, path, &not_utf8, &shared, &err), code = CLI_OK;
  if (status) code = tell_failure(path, status, &err);
  if (!status && shared) cli_tell_shared(path);
  if (!status && not_utf8)
    cli_error("%s: %s not UTF-8, which other readers may refuse", path,
        cli_counted(not_utf8, "term or name is", "terms and names are", n));
  if (!status && !quiet) report_export(format, index, path);
  gpuir_close(index);
  return code;
}

/* Of PISA's files the name is a part only: without one they would be hidden files. */
static int has_name(const char *path) {
  size_t n = strlen(path);
  return n && path[n - 1] != '/';
}

int cli_export(int argc, char **argv) {
  static const cli_option options[] = {{O_FORMAT, "format", 0, 1}, {CLI_QUIET, "quiet", 'q', 0}, {0, NULL, 0, 0}};
  static const ex_format *const formats[] = {&ex_ciff, &ex_pisa};
  const ex_format *format = NULL;
  cli_args a;
  int opt, bad = 0, quiet = 0, code, i;
  cli_args_start(&a, "export", options, argc, argv);
  while (!bad && (opt = cli_next(&a)) != CLI_END) {
    switch (opt) {
    case CLI_HELP: cli_args_free(&a); return cli_help("export");
    case CLI_QUIET: quiet = 1; break;
    case O_FORMAT:
      bad = cli_choice(&a, "ciff|pisa", &i);
      if (!bad) format = formats[i];
      break;
    default: bad = 1; break;
    }
  }
  code = bad ? CLI_USAGE : CLI_OK;
  if (!code && a.noperands != 2) code = cli_misuse("export", "INDEX and OUT are needed");
  if (!code && !strcmp(a.operands[1], "-")) code = cli_misuse("export", "OUT is a file, never a stream");
  if (!code && !has_name(a.operands[1])) code = cli_misuse("export", "OUT has no name: '%s'", a.operands[1]);
  if (!code) {
    cli_catch_signals();
    code = run_export(format, a.operands[0], a.operands[1], quiet);
  }
  cli_args_free(&a);
  return code;
}
