/* skipped.h - what was left out of an index, by kinds: how it is kept, and how people are told of it.
 *
 * The file of an index keeps it beside its description (gpuir_builder_skipped). A live index is made of many files, so
 * there the file `skipped` beside the manifest has it, which each update replaces. Where nothing was left out there is
 * neither.
 */
#ifndef GPUIR_SKIPPED_H
#define GPUIR_SKIPPED_H

#include "gpuir.h"

#include "bytes.h"
#include "reader.h"

/* Kinds of what is left out: first what files are that are no text, as reader_kind has it. */
enum {
  SKIPPED_HIDDEN = READER_KINDS,
  SKIPPED_IGNORED,
  SKIPPED_LINKS,
  SKIPPED_INDEXES,
  SKIPPED_OTHER, /* no regular file */
  SKIPPED_UNREADABLE,
  SKIPPED_CUT, /* mail that was read in part */
  SKIPPED_MALFORMED, /* records */
  SKIPPED_KINDS
};

typedef struct skipped_counts {
  uint64_t n[SKIPPED_KINDS];
} skipped_counts;

/* Returns the name of a kind, for people. */
const char *skipped_name(int kind);
/* Returns the option of gpuir index that would read what is of the kind, or NULL: there is none. */
const char *skipped_option(int kind);

/* Appends the counts as an index keeps them: key=number, parted by tabs; nothing where all are 0. */
void skipped_keep(const skipped_counts *counts, byte_buf *out);
/* Takes what an index keeps. What is unknown in it is passed over. */
void skipped_take(skipped_counts *counts, const char *kept);
/* Takes what the index at a path, which was opened, keeps. */
void skipped_of(skipped_counts *counts, const char *path, const gpuir_index_info *info);
/* Calls `put` for each count that is not 0, with the key under which it is kept. */
void skipped_each(const skipped_counts *counts, void (*put)(void *user, const char *key, uint64_t n), void *user);
/* Appends what people are told: the counts, and the options that would read more; nothing where all are 0. */
void skipped_say(const skipped_counts *counts, byte_buf *out);

#endif
