/* cli.h - what the files of the gpuir command share.
 *
 * gpuir.c   main and the dispatch             index.c   index
 * util.c    messages, options, output         query.c   query, count; reading of query files
 * help.c    the help texts                    show.c    stats, verify, explain
 * input.c   documents from files and folders  terms.c   terms; bench.c   bench
 * gpu.c     the CUDA backend                  serve.c   serve; stream.c: one client of it
 * live.c    add, delete, merge                update.c  update; files.c: its table of files; watch.c: watch
 * notice.c  what is an operator elsewhere      passages.c  where passages of hits go
 * values.c  fields and their values        facets.c  facets; guess.c: fields of records, by their values
 * filter.c  files of other formats as text     skipped.c  what is left out; complete.c  completion
 * mcp.c     mcp: tools of language models      mcp_*.c   its messages, tools and configurations
 * ../common: what the mount uses, too: how files become documents, texts of sources, passages, advice about queries
 * ../reorder, ../exchange, ../lab: commands with a room of their own
 */
#ifndef GPUIR_CLI_H
#define GPUIR_CLI_H

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include "gpuir.h"
#include "../common/decode.h"
#include "../common/filters.h"
#include "../common/heads.h"
#include "../common/passages.h"
#include "../common/skipped.h"

#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Exit codes. After a signal it is 128 + its number. */
enum { CLI_OK = 0, CLI_FAIL = 1, CLI_USAGE = 2, CLI_PARTLY = 3 }; /* PARTLY: done, but not all could be read */

#if defined(__GNUC__) || defined(__clang__)
#define CLI_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define CLI_PRINTF(f, a)
#endif

/* ---- messages (util.c): all go to standard error, as "gpuir: ..." ------------------- */

void cli_error(const char *fmt, ...) CLI_PRINTF(1, 2);
/* What messages begin with in place of "gpuir", and the program whose help they point to. Without a name, as of all but
 * one of several processes that meet the same, there are none. */
extern const char *cli_name, *cli_program;
/* A failure of the library on a file: "gpuir: FILE: cause". Returns CLI_FAIL. */
int cli_fail(const char *file, int status, const gpuir_error *err);

/* ---- the GPU backend ---- */

enum { CLI_BACKEND_CPU, CLI_BACKEND_GPU, CLI_BACKEND_AUTO }; /* as in "cpu|gpu|auto" */

/* The devices that answer, and whether each holds a part of the documents. None named: the first one. */
typedef struct cli_devices {
  int of[GPUIR_MAX_DEVICES], partition;
  size_t n;
} cli_devices;

typedef struct cli_gpu {
  gpuir_cuda *cuda; /* NULL: the CPU answers */
  int fallback;
  uint64_t memory; /* of the device, for the index at most; 0: as much as it needs */
} cli_gpu;

/* Returns the backends of this build, for people. */
const char *cli_backends(void);
/* Uploads the index if `backend` asks for the GPU; AUTO says on stderr why the CPU answers instead. CLI_OK or
 * CLI_FAIL, after a message. */
int cli_gpu_open(cli_gpu *gpu, int backend, const cli_devices *devices, const gpuir_index *index);
/* Returns how many devices there are, at most GPUIR_MAX_DEVICES. */
size_t cli_gpu_count(void);
int cli_gpu_attach(cli_gpu *gpu, gpuir_searcher *searcher);
/* The same, but with GPU, and not AUTO, AND is intersected by the laboratory's method of this name, if not NULL. */
int cli_gpu_attach_method(cli_gpu *gpu, gpuir_searcher *searcher, const char *intersection);
/* For gpuir_pool_desc.attach, with a cli_gpu that has a device: the pool itself lets the CPU answer what it cannot. */
int cli_gpu_attach_pool(void *gpu, gpuir_searcher *searcher, gpuir_error *err);
/* After the searchers are gone, and before the index. */
void cli_gpu_close(cli_gpu *gpu);
/* Returns whether there is a device; its state then. */
int cli_gpu_stats(const cli_gpu *gpu, gpuir_cuda_info *info);
/* A misuse of the command line. Returns CLI_USAGE. */
int cli_misuse(const char *command, const char *fmt, ...) CLI_PRINTF(2, 3);
/* The line that shows progress on a terminal; an empty text removes it. */
void cli_status(const char *line);

/* ---- memory: failure ends the command with a message ------------------------------------ */

void *cli_resize(void *p, size_t n, size_t size);
/* Ends the command after a message, and removes its temporary files first. */
void cli_die(const char *fmt, ...) CLI_PRINTF(1, 2);
typedef struct cli_buf {
  char *p;
  size_t n, cap;
} cli_buf;
void cli_buf_add(cli_buf *b, const void *p, size_t n);
char *cli_buf_room(cli_buf *b, size_t n); /* the place of the buffer's first n bytes, for any to be put there */
void cli_buf_char(cli_buf *b, int c);
void cli_buf_utf8(cli_buf *b, unsigned c); /* a character's bytes */
void cli_buf_text(cli_buf *b, const char *s);
/* Appends to a cli_buf, for text_write of ../common/text.h. */
void cli_buf_put(void *buf, const char *bytes, size_t n);
void cli_buf_json(cli_buf *b, const char *s, size_t n); /* as cli_json_string prints it */
void cli_buf_free(cli_buf *b);
/* Replaces what *b holds by the document's name and a NUL; returns the name, doc->name_len bytes. */
const char *cli_doc_name(cli_buf *b, const gpuir_doc *doc);

/* Takes documents over from the index at one path to that at another, which has the same fields: their names, texts,
 * places and values, and their sources as the new index stores them, see source_stored. */
typedef struct cli_copier {
  char *from, *to; /* where relative sources begin */
  cli_buf path, name;
  cli_buf values, value_text; /* as those of cli_input */
  cli_buf text;
} cli_copier;

void cli_copier_open(cli_copier *c, const char *from, const char *to);
void cli_copier_close(cli_copier *c);
/* Adds a document of the index, which doc describes, to a builder that is given lists; returns what
 * gpuir_builder_add_doc does. */
int cli_copier_add(cli_copier *c, const gpuir_index *index, uint32_t docid, const gpuir_doc *doc,
    gpuir_builder *builder, gpuir_error *err);
/* A NUL-terminated copy. */
char *cli_copy(const char *s, size_t n);

/* ---- options ----------------------------------------------------------------------------- */

enum { CLI_END = 0, CLI_BAD = -1, CLI_HELP = 1 }; /* a command's own ids start at 2 */

typedef struct cli_option {
  int id;
  const char *name; /* without "--" */
  char letter; /* or 0 */
  int value; /* takes one */
} cli_option; /* a table ends with id 0 */

typedef struct cli_args {
  const char *command;
  const cli_option *options;
  char **argv; /* that follow the command's name */
  int argc, next;
  int leading; /* behind the first operand '-word' is a word that is negated, and no option, unless it is one exactly */
  char **operands;
  int noperands;
  const char *name; /* of the option found, as written */
  const char *value; /* its value */
} cli_args;

void cli_args_start(cli_args *args, const char *command, const cli_option *options, int argc, char **argv);
/* The id of the next option, CLI_END after the last (operands are then known), CLI_BAD after a
 * message about misuse. Names are not abbreviated; `--opt value` and `--opt=value` are the same. */
int cli_next(cli_args *args);
void cli_args_free(cli_args *args);
/* Values of the current option; not 0 after a message. */
int cli_unsigned(const cli_args *args, uint64_t min, uint64_t max, uint64_t *out);
int cli_real(const cli_args *args, double min, double max, float *out);
/* Returns the position of the value among `names` (parted by '|'). */
int cli_choice(const cli_args *args, const char *names, int *out);
/* "0,1" or "all". 0, or misuse was reported. */
int cli_devices_read(const cli_args *args, cli_devices *devices);
/* The value must be a way of intersecting lists that the library has. 0, or misuse was reported. */
int cli_intersection(const cli_args *args, const char **name);
/* As cli_unsigned for any text, naming it `what`. */
int cli_parse_unsigned(const char *text, uint64_t min, uint64_t max, uint64_t *out);

#define CLI_DEFAULT_ANALYZER "text"
/* Of terms that others have made. They have none of the terms that `text` makes beside words, nor its folding, so that
 * its queries would miss what is there. */
#ifdef GPUIR_WITH_UTF8PROC
#define CLI_FOREIGN_ANALYZER "unicode"
#else
#define CLI_FOREIGN_ANALYZER "ascii"
#endif

/* What index and import are told alike about the index to write (index.c). */
typedef struct cli_build {
  gpuir_builder_desc desc; /* complete after cli_build_check, but for `progress` */
  uint64_t memory; /* the whole budget in bytes */
  const char *output;
  int quiet;
  /* private */
  uint64_t threads, megabytes;
  const char *stop, *language;
  char *stop_words;
} cli_build;

/* Their ids, and the rows of a table of options. */
enum {
  CLI_ANALYZER = 100,
  CLI_STEM,
  CLI_NO_FOLD,
  CLI_STOP,
  CLI_LANG,
  CLI_CODEC,
  CLI_FREQ_CODEC,
  CLI_DENSE,
  CLI_K1,
  CLI_B,
  CLI_DESCRIPTION,
  CLI_MEMORY,
  CLI_THREADS,
  CLI_QUIET,
  CLI_WAIT,
  CLI_OUTPUT
};
#define CLI_BUILD_OPTIONS \
  {CLI_ANALYZER, "analyzer", 0, 1}, {CLI_LANG, "lang", 0, 1}, {CLI_STEM, "stem", 0, 1}, \
      {CLI_NO_FOLD, "no-fold", 0, 0}, {CLI_STOP, "stop", 0, 1}, {CLI_CODEC, "codec", 0, 1}, \
      {CLI_FREQ_CODEC, "freq-codec", 0, 1}, {CLI_DENSE, "dense", 0, 1}, {CLI_K1, "k1", 0, 1}, {CLI_B, "b", 0, 1}, \
      {CLI_DESCRIPTION, "description", 0, 1}, {CLI_MEMORY, "memory", 0, 1}, {CLI_THREADS, "threads", 0, 1}, \
      {CLI_QUIET, "quiet", 'q', 0}, { \
    CLI_OUTPUT, "output", 'o', 1 \
  }

void cli_build_init(cli_build *b);
/* Takes the current option. Not 0 after a message, and for an id that is none of these. */
int cli_build_option(const cli_args *args, int id, cli_build *b);
/* After the last option: checks the output, reads the stop words. Returns an exit code. */
int cli_build_check(const char *command, cli_build *b);
void cli_build_free(cli_build *b);

/* Prints the help of a command (NULL: of gpuir). Returns an exit code. */
int cli_help(const char *command);
/* Part i of its text, each of whole lines; NULL: there is no such command, or no further part. A compiler may refuse
 * literals of more than 4,095 bytes. */
const char *cli_help_text(const char *command, size_t i);

/* ---- output ------------------------------------------------------------------------------ */

/* Flushes standard output; cli_finish tells if that failed. */
void cli_flush(void);
/* Flushes standard output; a message and CLI_FAIL when something was lost, otherwise `code`. */
int cli_finish(int code);
/* Writes to a pipe or socket whose reader may take nothing for a while. 0; -1: errno: EINTR at a signal, or where
 * *cancel, which is read atomically, is not 0; ETIMEDOUT where nothing was taken for most_ns, unless that is 0. */
int cli_write_all(int fd, const char *p, size_t n, const int *cancel, uint64_t most_ns);
int cli_is_utf8(const char *s, size_t n);
/* Texts of others, escaped as ../common/text.h says: a string of JSON with its quotes, a field of TSV. */
void cli_json_string(FILE *f, const char *s, size_t n);
void cli_tsv_string(FILE *f, const char *s, size_t n);
/* 1234567 as "1,234,567"; buf holds 27 bytes or more. */
const char *cli_grouped(uint64_t n, char *buf);
/* The same with what is counted: "1 document" or "1,234 documents", of which `one` and `many` are what follows the
 * number; buf holds CLI_COUNTED bytes, which is enough for 36 of them. */
#define CLI_COUNTED 64
const char *cli_counted(uint64_t n, const char *one, const char *many, char *buf);
/* Bytes as "23.4 KB" or "1234.5 MB"; buf holds 27 bytes or more. */
const char *cli_size(uint64_t bytes, char *buf);
/* The shortest text that is read as this number, or where it comes from a float, as that one; buf holds 32 bytes. */
const char *cli_shortest(double x, int is_float, char *buf);
/* Says that n documents have no words but some that are too long. */
void cli_tell_lost(uint64_t n);

/* ---- the machine -------------------------------------------------------------------------- */

double cli_seconds(void); /* monotonic */
uint64_t cli_nanoseconds(void);
unsigned cli_processors(void);
void cli_cpu_model(char *out, size_t cap);
uint64_t cli_peak_resident(void); /* bytes */
/* What gpuir --version says of the analyzers of this build (gpuir.c). */
void cli_print_build(FILE *f);

/* Not 0: this signal asked the command to stop (see cli_catch_signals). A second one ends it at once. */
extern volatile sig_atomic_t cli_signal;
void cli_catch_signals(void);
/* From here on the file `name` is removed when the command runs out of memory, which ends it on the spot; NULL: no file
 * any more. Called while one thread runs. */
void cli_temporary(const char *name);
/* The same of the temporary file of an index that is being built at `path`. */
void cli_temporary_index(const char *path);
/* Tells, once, that others may write the folder of `path`, and so replace that file. */
void cli_tell_shared(const char *path);

/* ---- reading of lines and files (input.c) --------------------------------------------- */

#define CLI_MAX_LINE ((size_t)1 << 20) /* bytes of a line that names a document or asks a query */

/* As reader_open, for a reading that a signal ends. */
void cli_reader_open(text_reader *r, int fd, size_t most);
/* As records_open; the command ends where there is no memory. CLI_OK, or CLI_FAIL after a message. */
int cli_records_open(record_reader *r, const char *reading, int topics);
/* Says why a line could not be read: errno is still that of reader_lines. buf holds CLI_COUNTED bytes. */
const char *cli_reader_why(const text_reader *r, char *buf);

/* ---- filters (filter.c): files of other formats, turned into text by programs ---- */

/* Takes the current option, ENDING=PROGRAM or auto. Not 0 after a message. */
int cli_filters_add(const cli_args *a, text_filters *f);
/* Takes for --filter auto what the user's file has and what is installed, and says so unless `quiet`. CLI_OK, or
 * CLI_FAIL after a message. */
int cli_filters_install(text_filters *f, int quiet);
/* Compares them with those that an index was made with; --filter auto takes these. CLI_OK, or CLI_FAIL after a message.
 */
int cli_filters_agree(text_filters *f, const char *index, const char *marks);
/* Returns the end of a message that names the options which make texts of such an index again; to be freed. */
char *cli_filters_hint(const char *marks);
/* Replaces *text by what the filter makes of the open file `name`. 0; -1 after a message, which there is none of where
 * `name` is NULL, or at a signal. */
int cli_filter_run(const text_filter *filter, int fd, const char *name, byte_buf *text);

/* What keeps account of files; `user` is that of the input, a source the absolute path of a file. */
typedef struct cli_follower {
  /* A file is open and may be read: 1 reads it, 0 leaves it out, -1 ends the reading after a message. */
  int (*file)(void *user, const char *source, const struct stat *st, int fd);
  /* It was read to its end; hash: XXH3 of its bytes, 0 if that is not known. */
  void (*read)(void *user, const char *source, uint64_t hash);
  /* A file could not be read, or not to its end: then documents of it were added already; or a folder. */
  void (*unread)(void *user, const char *source);
} cli_follower;

/* A set of 64-bit hashes: two different texts meet with probability n^2 / 2^65. Zeroed, with `max`: empty. */
typedef struct cli_hashes {
  uint64_t *slots;
  uint64_t cap, n;
  uint64_t max; /* slots at most, a power of two */
  int full; /* it took no more */
} cli_hashes;

typedef struct cli_input {
  decode_format format;
  uint64_t chunk_lines, whole_lines; /* as decode_run has them */
  int whole_files; /* no file is to be cut into chunks */
  int hidden, follow, no_ignore, skip_errors;
  int raw; /* nothing is unpacked or converted */
  int encoding; /* as text_reader.said has it */
  int no_names; /* paths of files are not to be searched */
  int verbose; /* each file that is left out or cannot be read is named, not the first few alone */
  /* Takes a document; not 0 ends the reading with that value. */
  int (*add)(void *user, const gpuir_doc_desc *doc, const char *text, size_t len);
  void *user;
  const cli_follower *follower; /* NULL: none */
  text_filters *filters; /* NULL: none */
  cli_buf reading; /* as gpuir_index_info has it, with a NUL; empty: "" */
  cli_hashes names; /* of documents; names.max is the caller's */
  /* what was met */
  uint64_t documents, files, bytes, binaries, hidden_skipped, ignored, links_skipped, special_skipped, indexes_skipped,
      failed, malformed, cut, duplicates;
  int missing; /* of an operand that is not there: the errno value, which a follower is not told of */
  uint64_t kinds[READER_KINDS]; /* of the binaries */
  reader_kind left_out; /* what the file that was read last is, if it is no text; READER_TEXT */
  uint64_t unpacked[UNPACK_KINDS], converted[CONVERT_KINDS]; /* of the files; [0]: of which neither was needed */
  /* private */
  cli_hashes paths_read; /* of files, and of what was left out, where operands lie in one another */
  int nested; /* they do */
  uint64_t odev[4], oino[4]; /* what is left out: the index, its temporary file, standard output and error */
  int onum;
  char *cwd, *home;
  char *fields_home; /* where `dir` of files begins, if their sources are absolute; NULL: where sources do */
  int paths; /* those of files are searched, behind their texts */
  int defines; /* what source files define is found and kept */
  const char *operand; /* that is being read */
  int code; /* that ended the walk */
  record_reader *records; /* NULL: none was read */
  gpuir_field *fields; /* [nfields] of the index; their names and members are the input's */
  size_t nfields;
  int fields_said; /* which fields of files there are */
  int fields_guessed; /* members of records are to be fields */
  void (*see)(void *user, const char *name, size_t len, const records_value *value); /* as that of record_reader */
  cli_buf values, value_text; /* gpuir_value, of one document; their text */
  uint64_t misfits; /* values that their columns cannot hold, and that were left out */
} cli_input;

/* Ids of the options that say how documents are made of files, and their rows in a table of options. */
enum {
  CLI_IN_CHUNK = 200,
  CLI_IN_LINES,
  CLI_IN_TSV,
  CLI_IN_JSONL,
  CLI_IN_TREC,
  CLI_IN_CSV,
  CLI_IN_TSV_HEAD,
  CLI_IN_HIDDEN,
  CLI_IN_FOLLOW,
  CLI_IN_NO_IGNORE,
  CLI_IN_SKIP,
  CLI_IN_FILTER,
  CLI_IN_VERBOSE,
  CLI_IN_NO_NAMES,
  CLI_IN_WHOLE,
  CLI_IN_RAW,
  CLI_IN_ENCODING
};
#define CLI_INPUT_OPTIONS \
  {CLI_IN_CHUNK, "chunk-lines", 0, 1}, {CLI_IN_LINES, "lines", 0, 0}, {CLI_IN_TSV, "tsv", 0, 0}, \
      {CLI_IN_JSONL, "jsonl", 0, 0}, {CLI_IN_TREC, "trec", 0, 0}, {CLI_IN_CSV, "csv", 0, 0}, \
      {CLI_IN_TSV_HEAD, "tsv-head", 0, 0}, {CLI_IN_HIDDEN, "hidden", 0, 0}, {CLI_IN_FOLLOW, "follow", 0, 0}, \
      {CLI_IN_NO_IGNORE, "no-ignore", 0, 0}, {CLI_IN_FILTER, "filter", 0, 1}, {CLI_IN_VERBOSE, "verbose", 'v', 0}, \
      {CLI_IN_NO_NAMES, "no-names", 0, 0}, {CLI_IN_WHOLE, "whole-files", 0, 0}, {CLI_IN_RAW, "raw", 0, 0}, \
      {CLI_IN_ENCODING, "encoding", 0, 1}, { \
    CLI_IN_SKIP, "skip-errors", 0, 0 \
  }
/* Further options of `gpuir index`, and their rows. */
enum {
  CLI_INDEX_STORE = 300,
  CLI_INDEX_POSITIONS,
  CLI_INDEX_ID,
  CLI_INDEX_TITLE,
  CLI_INDEX_TEXT,
  CLI_INDEX_FIELD,
  CLI_INDEX_FIELDS
};
#define CLI_INDEX_OPTIONS \
  {CLI_INDEX_STORE, "store", 0, 0}, {CLI_INDEX_POSITIONS, "positions", 0, 0}, {CLI_INDEX_ID, "id", 0, 1}, \
      {CLI_INDEX_TITLE, "title", 0, 1}, {CLI_INDEX_TEXT, "text", 0, 1}, {CLI_INDEX_FIELD, "field", 0, 1}, { \
    CLI_INDEX_FIELDS, "fields", 0, 1 \
  }
/* Takes the current option of these, of inputs or of builds. Not 0 after a message, and for an id that is none. */
int cli_index_option(const cli_args *args, int id, cli_input *in, cli_build *b);
/* Checks what was given, behind the last option, and completes both. in->filters is there. Returns an exit code. */
int cli_index_check(const cli_args *args, cli_input *in, cli_build *b);
/* Takes the current option. Not 0 after a message, and for an id that is none of these. */
int cli_input_format(const cli_args *args, int id, cli_input *in);
/* Says how much of what was left out, and which options would read it (skipped.c). */
void cli_input_tell_skipped(const cli_input *in);
uint64_t cli_input_skipped(const cli_input *in);
/* Counts it by kinds, as an index keeps it. */
void cli_input_count_skipped(const cli_input *in, skipped_counts *counts);
/* Counts a file that is no text, and that was not read again since it is as it was. */
void cli_skip_again(cli_input *in, reader_kind kind);
/* Says which files were unpacked and converted. */
void cli_input_tell_decoded(const cli_input *in);
/* Counts a file that is no text. CLI_FAIL, after a message, for one that was named. */
int cli_skip_file(cli_input *in, reader_kind kind, const char *name, int named);
/* Counts an entry of a folder that is left out, in *count. */
void cli_skip_entry(const cli_input *in, uint64_t *count, const char *path, const char *why);
/* Returns what the index keeps of how texts are made (gpuir_builder_desc.reading), and takes what it has kept. */
const char *cli_input_reading(cli_input *in);
void cli_input_take_reading(cli_input *in, const char *reading);
/* Takes the current option, which names members of JSON: role is RECORDS_ID ... Not 0 after a message. */
int cli_input_members(const cli_args *args, int role, cli_input *in);
/* Says which members of JSON were read, and that others were not kept. */
void cli_input_tell_members(const cli_input *in);
/* values.c: Takes the current option, which declares a field. Not 0 after a message. */
int cli_field_option(const cli_args *args, cli_input *in);
/* Takes the current option, a list of what files have: ext, dir, size, mtime, or none. Not 0 after a message. */
int cli_fields_option(const cli_args *args, cli_input *in);
/* Returns whether this, or with NULL any, of them is a field. */
/* Lets files have ext, dir, size and mtime, where files are read whole or in chunks and nothing else was said. */
void cli_fields_default(cli_input *in, char **operands, int n);
int cli_fields_of_files(const cli_input *in, const char *name);
/* Returns whether there is a field of this name. */
int cli_field_is_declared(const cli_input *in, const char *name);
/* guess.c: Declares the members of the first 1,000 records as fields, and prints the options that do so. Returns an
 * exit
 * code. */
int cli_fields_guess(cli_input *in, char **operands, int n);
/* Gives a document the values of its file, whose path is the document's source (st NULL: it is of none), and those that
 * the head of its text has. */
void cli_fields_file(cli_input *in, const char *path, const struct stat *st, heads_kind kind, const char *head,
    size_t len, gpuir_doc_desc *doc);
/* Returns whether a field is of what heads of texts say. */
int cli_fields_of_heads(const cli_input *in);
/* Takes the fields that an index has. */
void cli_fields_take(cli_input *in, const gpuir_index *index);
void cli_fields_free(cli_input *in);
/* Lets a reader of records look for what the fields are of. */
void cli_fields_read(const cli_input *in, record_reader *r);
/* Gives a document the values of the record that was read last. */
void cli_fields_values(cli_input *in, gpuir_doc_desc *doc);
/* Says how many values were left out. */
void cli_fields_tell(const cli_input *in);
/* Gives a document's description all values that it has in an index; they are in the buffers. */
void cli_values_copy(const gpuir_index *index, uint32_t docid, cli_buf *values, cli_buf *text, gpuir_doc_desc *doc);
/* Fields whose values are shown, in this order. */
typedef struct cli_show {
  unsigned fields[GPUIR_MAX_FIELDS];
  size_t n;
} cli_show;
/* Finds the fields that a list with commas names, each once; NULL: all of an index that may have none. 0; -1 after a
 * message. */
int cli_show_find(const gpuir_index *index, const char *path, const char *list, cli_show *show);
/* Prints the members of an object of JSON that has what a document carries in these fields: arrays of strings, numbers,
 * and dates as strings; fields without a value have none. */
void cli_values_json(const gpuir_index *index, uint32_t docid, const cli_show *show);
/* Appends the values of a field, as a where has them behind `name=`; of none nothing. */
void cli_values_text(const gpuir_index *index, uint32_t docid, unsigned field, cli_buf *out);
/* Prints them. */
void cli_values_tsv(const gpuir_index *index, uint32_t docid, unsigned field);

/* facets.c: what gpuir facets is asked for. */
typedef struct cli_facets {
  const char *columns[GPUIR_MAX_FIELDS]; /* [n], as gpuir_facets_count takes them */
  size_t n;
  gpuir_query_desc qd;
  uint64_t timeout; /* milliseconds */
  int form;
} cli_facets;
extern const cli_option cli_facets_options[];
/* Takes the current option. Not 0 after a message, and for an id that is none of these. */
int cli_facets_option(const cli_args *a, int opt, cli_facets *f);
/* Checks what was asked for, behind the last option. Returns an exit code. */
int cli_facets_check(const cli_args *a, cli_facets *f);
/* Prints what comes before the first column, before column number `which`, its value number i, what comes behind its
 * last
 * value, and behind the last column. */
void cli_facets_begin(const cli_facets *f, const cli_buf *words);
void cli_facets_column(const cli_facets *f, size_t which);
void cli_facets_value(const cli_facets *f, const gpuir_index *index, size_t which, size_t i, const gpuir_facet *x);
void cli_facets_column_end(const cli_facets *f);
void cli_facets_end(const cli_facets *f, uint64_t matches);
/* Says by which analyzer, given by its name or specification, terms are made: with `text` paths below the operands are
 * searched, unless that is not wanted, and what source files define is kept. */
void cli_input_names(cli_input *in, const char *analyzer);
/* Likewise cuts long files of folders into chunks with `text`, if nothing is said of how documents are made of files.
 */
void cli_input_chunks(cli_input *in, const char *analyzer);
/* Says of which index documents are made: paths of files below its folder are stored from there on. */
void cli_input_home(cli_input *in, const char *index);
/* Likewise of the index that parts will be joined to, whose documents have absolute paths and fields as that one's. */
void cli_input_fields_home(cli_input *in, const char *index);
/* Returns the path of a file as it stands in documents; to be freed. */
char *cli_input_source(cli_input *in, const char *path);
/* Returns the absolute path of a file, and that of a path as it stands in documents; to be freed. */
char *cli_input_path(cli_input *in, const char *path);
char *cli_input_whole(const cli_input *in, const char *source);
/* Checks that all operands can be read before any work is done. Returns an exit code. */
int cli_input_check(const char *command, char **operands, int n);
/* Leaves out the index `output`, which may be a folder, and the file that it is built in. They must be there. Leaves
 * out the files that standard output and error go to, too. */
void cli_input_exclude(cli_input *in, const char *output);
/* Reads one operand: a file, a folder or "-". 0, or the value that ended the reading: CLI_FAIL
 * after a message, or what add returned; a signal is left in cli_signal. */
int cli_input_read(cli_input *in, const char *operand);
/* Says which operands will be read: where one lies in another, or is a folder given before, files are read once. */
void cli_input_nest(cli_input *in, char **operands, int n);
/* Says how much could not be read beyond what was named. Returns CLI_OK, or CLI_PARTLY if anything could not. */
int cli_input_end(const cli_input *in);
void cli_input_free(cli_input *in);
/* language.c: Chooses the language whose words are stemmed, where the command line names neither it nor a stemmer: with
 * the analyzer `text`, English if the operands' texts are. Returns an exit code. */
int cli_language_choose(cli_build *b, const cli_input *in, char **operands, int n);
/* Returns the stemmer of a language, given by its name or its ISO 639-1 code; what is not known is a stemmer's name. */
const char *cli_language_stemmer(const char *language);
/* query.c: Takes the argument of --stop-query: a language, or none. Not 0 after a message. */
int cli_stop_query(const cli_args *a, const char **list);
/* Computes XXH3 of an open file's bytes, from the first one on; 0 if that fails. */
uint64_t cli_hash_file(int fd);

/* ---- live indexes ------------------------------------------------------------------------ */

/* A live index that is written to, and the options that its commands share (live.c). */
typedef struct cli_live {
  const char *path; /* of the folder */
  uint64_t megabytes, threads;
  int quiet;
  int patient; /* another writer is no failure to speak of */
  int wait; /* another writer is waited for */
  gpuir_live *live;
  int (*on_create)(void *user); /* as that of gpuir_live_desc */
  void *user;
  int status; /* of the library, when it was opened */
  uint64_t added, deleted; /* documents */
  int committed; /* a commit was begun: what it changes may stand */
  uint64_t lost; /* that cannot be found, and were told of */
  cli_buf names; /* of documents of a file, which are to replace others: a mark, a length (8 bytes each), the bytes */
} cli_live;

/* Returns whether a path is the folder of a live index. */
int cli_is_live(const char *path);
/* Opens l->path; with `settings` it is made, if it is not there. These return CLI_OK, or CLI_FAIL after a message. */
int cli_live_open(cli_live *l, const gpuir_builder_desc *settings);
int cli_live_commit(cli_live *l);
/* Says, whatever is asked to be quiet, that documents which were committed cannot be found. */
void cli_live_tell_lost(cli_live *l);
/* What it holds now, what was not committed included. */
int cli_live_info(const cli_live *l, gpuir_index_info *info);
/* Merges as long as it is worth while, or until a signal comes, and commits. */
int cli_live_merge(cli_live *l, int all);
/* Adds a document to the cli_live `live`. */
int cli_live_add(void *live, const gpuir_doc_desc *doc, const char *text, size_t len);
/* Deletes by GPUIR_BY_; *n: how many. */
int cli_live_delete(cli_live *l, int by, const char *bytes, size_t len, uint64_t *n);
/* Deletes what was added before a gpuir_live_mark, and all that was added since. */
int cli_live_delete_before(cli_live *l, uint64_t mark, int by, const char *bytes, size_t len);
int cli_live_take_back(cli_live *l, uint64_t mark);
/* --replace: notes the name of a document that is added next, and deletes, when the file of all those noted was read
 * to its end, what they replace. */
void cli_live_note_name(cli_live *l, const char *name, size_t len);
int cli_live_replace_noted(cli_live *l);
/* Takes the current option. Not 0 after a message, and for an id that is none of these. */
int cli_live_option(const cli_args *args, int id, cli_live *l);

#define CLI_NO_CONTENT UINT64_MAX /* of a table that goes with no commit */

/* A file as it was when it was read (files.c). */
typedef struct cli_file {
  char *source; /* absolute path */
  uint64_t size, inode, mtime, ctime, hash; /* times in nanoseconds; hash: XXH3 of its bytes, 0: not known */
  int racy; /* its times may stay when it is written again */
  int stale; /* the index does not have it as it was then */
  reader_kind kind; /* what it is, if it is no text; READER_TEXT */
  int seen, gone; /* this time */
} cli_file;

typedef struct cli_files {
  cli_file *list;
  size_t n, cap;
  size_t *slots; /* [2 * cap] hash table: numbers of rows, plus 1 */
  uint64_t content; /* of the commit that it goes with: gpuir_index_info.content */
  decode_format format;
  uint64_t chunk_lines, whole_lines;
  int hidden, follow, no_ignore;
  int no_names; /* paths are not searched */
} cli_files;

/* Returns whether a file of an open folder is such a table, or, with `begun`, the beginning of one. */
int cli_files_is_table(int folder, const char *name, int begun);
/* Reads the table of a live index; if there is none it is empty. CLI_OK, or CLI_FAIL after a message. */
int cli_files_read(cli_files *f, const char *folder);
/* Writes it in place of the old one; rows that are gone are left out. CLI_OK, or CLI_FAIL after a message. */
int cli_files_write(cli_files *f, const char *folder);
/* Writes what was left out, n bytes, beside it; nothing: there is no such file. The same. */
int cli_files_write_skipped(const char *folder, const char *kept, size_t n);
/* Lets the table go with the commit `now`, if it goes with `before`, after documents were added beside it: the sources
 * of these, n bytes of paths that end with NUL, are read again by the next update, and no others. In a folder that
 * others may write it is left alone. CLI_OK, or CLI_FAIL after a message. */
int cli_files_carry(const char *folder, uint64_t before, uint64_t now, const char *sources, size_t n);
/* NULL: there is no such row. A row lives until the next is added. */
cli_file *cli_files_find(const cli_files *f, const char *source);
cli_file *cli_files_add(cli_files *f, const char *source, size_t len);
void cli_files_free(cli_files *f);

/* A live index that follows files (update.c). */
typedef struct cli_update {
  cli_live live;
  char **operands;
  int noperands, skip_errors, verbose;
  uint64_t told; /* what was left out when that was said last */
  text_filters filters;
  int keep; /* the index stays open, unmerged: the caller merges it and closes it */
  int hidden, follow, no_ignore, trust; /* settings that the command line gives; those of the table count */
  int yes_all_gone; /* an empty folder means that all of its files are gone */
  int replace; /* documents with the name of one that is added go */
  int emptied; /* a folder of which the index has documents was empty, and nothing was changed */
  int partly; /* not all could be read */
  uint64_t fresh, changed, vanished, unchanged; /* files that were found so */
  uint64_t touched; /* of the changed ones those of which nothing but the time is another */
  uint64_t documents; /* of the index then */
} cli_update;

/* Checks what a table lets the walk read: what the command line does not say must come from a folder that nobody else
 * may write. CLI_OK, or CLI_FAIL after a message. */
int cli_update_settings(const cli_update *u, const cli_files *f);
/* trust.c: Returns whether nobody but the caller and root may write the folder of a live index and its settings. */
int cli_trusted(const char *folder);
/* Reads the options that update and watch share. 0; otherwise the command ends with that code - 1. */
int cli_update_options(const char *command, int argc, char **argv, cli_args *a, cli_update *u);
/* Brings the index up to date. CLI_OK or CLI_FAIL; with live.patient and another writer at work there is no message.
 * u->live.committed says whether it came to the commit. */
int cli_update_run(cli_update *u);
/* gpuir index --live: makes a live index of what the operands name. Returns an exit code. */
int cli_live_found(cli_build *b, const cli_input *in, char **operands, int n);

/* ---- queries (query.c) ----------------------------------------------------------------- */

enum { CLI_IDS_AUTO, CLI_IDS_YES, CLI_IDS_NO };

typedef struct cli_queries {
  size_t n, cap;
  char **ids;
  char **texts;
  size_t *lens;
} cli_queries;

/* Reads topics: <top> or <DOC> elements, or a query a line. "-" is standard input. */
int cli_queries_read(cli_queries *qs, const char *path, int ids);
void cli_queries_add(cli_queries *qs, const char *id, size_t id_len, const char *text, size_t len);
void cli_queries_free(cli_queries *qs);

/* ---- passages (passages.c) ------------------------------------------------------------- */

/* How passages are printed. Zeroed, with what was asked for filled in. */
typedef struct cli_passages {
  int on;
  passages how; /* forms, budgets, context and timeout */
  text_filters filters; /* to make texts of sources again */
  char *hint; /* which option would */
  /* private */
  char *base, *here;
  text_cache *cache;
} cli_passages;

/* Relative sources begin in the folder `base` or, if it is NULL, in that of the index. Returns an exit code. An answer
 * begins with passages_begin(&c->how). */
int cli_passages_open(cli_passages *c, const char *index, const char *base);
/* The same without a message: 0, or an errno value. */
int cli_passages_try(cli_passages *c, const char *index, const char *base);
/* expand.c: Reads the text of a document as passages read it, into a copy, since a filter keeps one text at a time.
 * NULL:
 * it is not to be had. */
char *cli_text_of(cli_passages *p, const gpuir_index *index, uint32_t docid, size_t *len);
/* How people write what is searched, by the texts that have it: an advice_write. Nothing is read before it is needed.
 * */
typedef struct cli_written {
  cli_passages *passages; /* zeroed, or opened */
  const char *path; /* of the index, where they are to be opened; NULL: they are */
  const gpuir_index *index;
  cli_buf word; /* to be freed */
} cli_written;
const char *cli_written_word(void *written, const char *instead, size_t len, size_t *word_len);
/* Finds the words that the best hits of a query have in common, for gpuir_query_desc.expansion; none where no
 * text of theirs is to be had. Returns a GPUIR_ status. */
int cli_expand(cli_passages *p, gpuir_searcher *searcher, const gpuir_index *index, const gpuir_query *query,
    gpuir_expansion *expansion, gpuir_error *err);
/* Prints what a hit shows of itself, as passages_hit does. CLI_FAIL after a message. */
int cli_passages_hit(cli_passages *c, const gpuir_index *index, const gpuir_query *query, uint32_t docid,
    size_t hits_left);
void cli_passages_free(cli_passages *c);

/* Prints a field of a TREC run: without blanks, which would part it, and without what acts on a terminal. */
void cli_trec_string(const char *s, size_t n);
/* How hits are printed. */
enum { FORM_HUMAN, FORM_TREC, FORM_TSV, FORM_JSON };
/* Prints a hit in one of the first three forms: of query `id`, or, for FORM_TSV, of the only one (NULL); name: the
 * document's, n bytes of it; tag: of the run, for FORM_TREC. plain: the score of the search, which is printed beside
 * the hit's own but for FORM_TREC; NULL: it is not. The line is not ended. */
void cli_print_hit(int form, const char *id, size_t rank, gpuir_hit hit, const uint32_t *plain, const char *name,
    size_t n, const char *tag);
/* Prints, for people, which of many queries the hits behind it answer. */
void cli_print_question(const char *id, const char *text, size_t len);

/* Opens an index, or prints why not and returns NULL. */
gpuir_index *cli_open(const char *path);
/* The same for a command that reads every list: an index that names one list in many terms is refused. */
gpuir_index *cli_open_to_read_all(const char *path);
/* The same for one that needs a term's postings as one list: a live index that is not merged is refused. */
gpuir_index *cli_open_merged(const char *path);
/* Says on standard error that n queries, if any, had more words than a query may have. */
void cli_tell_shortened(size_t n);
/* The same of n queries with words that no document has, others of which were searched; and of n that were answered by
 * any of their words. */
void cli_tell_many_spelled(size_t n);
void cli_tell_many_loose(size_t n);
/* Says of a query that it was answered by any of its words, where `all` documents have all of them. */
void cli_tell_loose(const gpuir_query *query, uint64_t all);
/* Says once on standard error, if a query holds what is an operator elsewhere, that here it is not (notice.c). */
void cli_notice_operators(const gpuir_query_desc *qd, const char *text, size_t len);
/* Appends the operands behind the first `skip` ones, with blanks between them. */
void cli_join_words(const cli_args *args, int skip, cli_buf *out);
/* k1 and b of the command line: the missing one is the index's. */
void cli_bm25(const gpuir_index *index, gpuir_query_desc *qd, int has_k1, int has_b, float k1, float b);

/* ---- the commands --------------------------------------------------------------------------- */

/* The next number by splitmix64, so that a seed gives the same everywhere (Steele, Lea, Flood: Fast splittable
 * pseudorandom number generators, OOPSLA 2014). (util.c) */
uint64_t cli_random(uint64_t *state);

int cli_index(int argc, char **argv);
int cli_query(int argc, char **argv);
int cli_count(int argc, char **argv);
int cli_facets_command(int argc, char **argv);
int cli_stats(int argc, char **argv);
int cli_terms(int argc, char **argv);
int cli_verify(int argc, char **argv);
int cli_explain(int argc, char **argv);
int cli_reorder(int argc, char **argv);
int cli_bench(int argc, char **argv);
int cli_lab(int argc, char **argv);
int cli_import(int argc, char **argv);
int cli_export(int argc, char **argv);
int cli_serve(int argc, char **argv);
int cli_mcp(int argc, char **argv);
int cli_add(int argc, char **argv);
int cli_delete(int argc, char **argv);
int cli_merge(int argc, char **argv);
int cli_update_command(int argc, char **argv);
int cli_watch(int argc, char **argv);
int cli_completion(int argc, char **argv);

#endif
