/* exchange.h - what import and export share with the formats they read and write.
 *
 * exchange.c  the two commands
 * io.c        what they do: files, order of terms, the index
 * ciff.c      the Common Index File Format, github.com/osirrc/ciff
 * pisa.c      the binary collections of PISA and ds2i
 *
 * Input is mapped and trusted in nothing: a format's functions look at no byte that is not there, and allocate only for
 * postings that they have seen. What is wrong is told with its file and offset, and ends the import.
 */
#ifndef GPUIR_CLI_EXCHANGE_H
#define GPUIR_CLI_EXCHANGE_H

#include "../cli/cli.h"

/* ---- failures ------------------------------------------------------------------------------ */

typedef struct ex_error {
  char file[1024]; /* which was at fault; "": the index */
  gpuir_error e; /* its text says the offset where that helps */
} ex_error;

/* Fills *err and returns `code`. ex_fail_at begins the text with "offset N: ". */
int ex_fail(ex_error *err, int code, const char *file, const char *fmt, ...) CLI_PRINTF(4, 5);
int ex_fail_at(ex_error *err, const char *file, uint64_t offset, const char *fmt, ...) CLI_PRINTF(4, 5);

/* A file in memory. As with an index, another process that truncates it meanwhile raises SIGBUS. */
typedef struct ex_file {
  char *path;
  const uint8_t *bytes;
  uint64_t len;
} ex_file;

/* ---- writing ---------------------------------------------------------------------------------- */

/* A file that appears under its name when it is whole. */
typedef struct ex_out {
  char *path, *tmp; /* tmp: PATH.tmp, locked; "" when there is nothing to remove */
  void *gz; /* NULL: plain */
  uint8_t *buf;
  size_t n;
  uint64_t not_utf8; /* terms and names written that are no text to readers that ask for UTF-8 */
  int fd;
  int error; /* errno of the first write that failed, after which nothing is written; -1: zlib's own */
} ex_out;

int ex_out_open(ex_out *o, const char *given, int gzip, ex_error *err);
/* An unnamed file in the folder of `beside`. */
int ex_out_spill(ex_out *o, const char *beside, ex_error *err);
void ex_put(ex_out *o, const void *bytes, size_t n);
/* Fails when the output has, or a signal came. */
int ex_out_check(const ex_out *o, ex_error *err);
/* Writes out what is buffered, to stay. */
int ex_out_finish(ex_out *o, ex_error *err);
/* Gives a finished file its name, and the mode of the file that had it. */
int ex_out_commit(ex_out *o, ex_error *err);
/* Makes the names in the file's folder survive a loss of power. */
int ex_sync_folder(const char *folder, const char *path, ex_error *err);
/* Maps all that was put to an unnamed file. */
int ex_out_map(ex_out *o, ex_file *file, ex_error *err);
/* Closes; a file that was not committed is gone. */
void ex_out_close(ex_out *o);

/* ---- reading -------------------------------------------------------------------------------- */

/* A part of a file, from p on. */
typedef struct ex_span {
  const ex_file *file;
  const uint8_t *p, *end;
} ex_span;

/* A list to come: its term's bytes, and where in the file the list itself is. */
typedef struct ex_entry {
  const uint8_t *term, *list;
  uint32_t term_len;
} ex_entry;

/* Sorts entries by term, in so much memory; what is more is spilled to an unnamed file, in sorted runs. */
typedef struct ex_sorter {
  const char *beside; /* the folder of this path takes the spill */
  ex_entry *entries;
  size_t n, cap, most; /* more than `most` are spilled */
  ex_out spill;
  ex_file spilled;
  struct ex_run {
    const ex_entry *next, *end;
  } * runs; /* a heap by their next entries, in the end */
  size_t nruns;
  uint64_t *run_end; /* entries of the spill up to the end of each run */
  size_t runs_cap;
} ex_sorter;

void ex_sorter_open(ex_sorter *s, const char *beside, uint64_t memory);
int ex_sorter_add(ex_sorter *s, const ex_entry *entry, ex_error *err);
/* After the last one. */
int ex_sorter_finish(ex_sorter *s, ex_error *err);
/* Returns the next in byte order of terms; 0 behind the last. */
int ex_sorter_next(ex_sorter *s, ex_entry *entry);
void ex_sorter_close(ex_sorter *s);

typedef struct ex_postings {
  uint32_t *docids, *tfs;
  uint32_t df;
  size_t cap;
} ex_postings;

/* Makes room for n postings. 0 or NOMEM. */
int ex_postings_room(ex_postings *list, size_t n, ex_error *err);
void ex_postings_free(ex_postings *list);

typedef struct ex_in {
  ex_file files[5]; /* CIFF has one */
  /* what the scan found */
  uint64_t documents, lists;
  char *description; /* NULL: none */
  char order[64]; /* of the documents; "": not known */
  ex_span docs; /* where documents begin, of a format that has them behind the lists */
  double average; /* length of a document as the file says it; 0: it does not */
  uint64_t all_documents, all_lists; /* of the collection that the file is a part of; 0: it does not say */
  /* what was noticed on the way */
  uint64_t empty_terms, long_terms, empty_lists; /* left out: an index has no place for them */
  uint64_t wrong_cf; /* lists whose cf is not the sum of their tf */
  uint64_t tokens; /* sum of lengths */
} ex_in;

typedef struct ex_format {
  const char *name;
  unsigned nfiles;
  const char *suffix[5]; /* of the files, put behind the path given */
  int optional; /* a bit for each file that may be missing */
  /* Notes every list in the sorter. */
  int (*scan)(ex_in *in, ex_sorter *sorter, ex_error *err);
  /* Gives every document to the builder. */
  int (*documents)(ex_in *in, gpuir_builder *builder, ex_error *err);
  /* Decodes and checks one list. */
  int (*list)(ex_in *in, const uint8_t *list, ex_postings *out, ex_error *err);
  /* Writes an index to `nfiles` outputs. */
  int (*write)(const gpuir_index *index, const char *name, ex_out *out, ex_error *err);
} ex_format;

/* Adds a list's term to the sorter, or counts it as left out. */
int ex_note(ex_in *in, ex_sorter *sorter, const ex_entry *entry, ex_error *err);

/* All postings of a term, and its statistics; *list grows as needed. */
int ex_read_list(const gpuir_index *index, const char *name, uint64_t id, ex_postings *list, gpuir_term_info *info,
    ex_error *err);

extern const ex_format ex_ciff, ex_pisa;

/* ---- the two commands without their command line ----------------------------------------------- */

/* Builds an index as `desc` says from the files of `path`. 0 or a GPUIR_E_ code; *in tells what was noticed. */
int ex_import(const ex_format *format, const char *path, gpuir_builder_desc *desc, ex_in *in,
    gpuir_build_report *report, ex_error *err);
void ex_import_free(ex_in *in);
/* Writes `index`, which is the file `name`, to `path`. *not_utf8 counts names and terms that are not UTF-8; *shared
 * tells that other users may write the folder. */
int ex_export(const ex_format *format, const gpuir_index *index, const char *name, const char *path, uint64_t *not_utf8,
    int *shared, ex_error *err);

#endif
