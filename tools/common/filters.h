/* filters.h - turns files of other formats into text by programs, for the command and the mount.
 *
 * A filter is ENDING=PROGRAM: a file whose name has the ending is the standard input of the program, which is run
 * without a shell, sees nothing of the file's name, and writes text.
 *
 * No program is ever taken from an index. It has the names of filters of a list that is compiled in, and hashes of
 * others, by which the user must give them again.
 */
#ifndef GPUIR_FILTERS_H
#define GPUIR_FILTERS_H

#include "bytes.h"
#include "source.h"

#define FILTERS_SECONDS 60u /* that a program may take for a file */
#define FILTERS_BYTES ((size_t)256 << 20) /* that it may write */
#define FILTERS_WHY 512 /* bytes of a message */

typedef struct text_filter {
  char *ending; /* of names, without the dot */
  char **words; /* the program and its arguments, then NULL */
  char *program; /* its path, absolute */
  char *line; /* as it was given, ENDING=PROGRAM */
  char *mark; /* what an index keeps of it */
} text_filter;

typedef struct text_filters { /* zeroed: none */
  text_filter *list;
  size_t n;
  int automatic; /* those of the list and of the user's file are asked for */
  byte_buf text; /* as in gpuir_builder_desc, with a NUL */
} text_filters;

/* Takes a message without a line's end. */
typedef void (*filters_say)(const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 1, 2)))
#endif
    ;

/* Takes ENDING=PROGRAM, or "auto". NULL, or what is wrong. */
const char *filters_add(text_filters *f, const char *value);
/* Takes, if they are asked for, what the user's file has and what is installed, and says so unless `quiet`. 0; -1 after
 * a message. */
int filters_install(text_filters *f, int quiet, filters_say say);
/* Returns the filter of files with this name or, with `whole`, of this ending; NULL: there is none. */
const text_filter *filters_find(const text_filters *f, const char *name, size_t len, int whole);
/* The same if it is one of those that an index was made with, of which it keeps `marks`. */
const text_filter *filters_find_marked(const text_filters *f, const char *marks, const char *name, size_t len);
/* What the index keeps of them. */
const char *filters_text(const text_filters *f);
/* Compares them with those that an index was made with, of which it keeps `marks`; with "auto" these are taken. 0; -1
 * after a message. `option`: what stands before a filter where it is given, with the sign between. */
int filters_agree(text_filters *f, const char *index, const char *marks, const char *option, filters_say say);
/* Appends the options that make texts of such an index again, parted by `between`. */
void filters_options(byte_buf *out, const char *marks, const char *option, const char *between);
void filters_free(text_filters *f);

/* Replaces *text by what the filter makes of an open file. It may take FILTERS_SECONDS, or what GPUIR_FILTER_SECONDS
 * says, and write limits->most bytes; otherwise it is killed, and also when limits say so. What it has started is
 * killed when it ends. 0; ENOMEM; EINTR and ETIMEDOUT by the limits; FILTERS_FAILED with why[FILTERS_WHY] in words.
 * Threads: any. */
enum { FILTERS_FAILED = -1 };
int filters_run(const text_filter *filter, int fd, const source_limits *limits, byte_buf *text, char *why);

#endif
