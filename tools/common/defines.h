/* defines.h - the names that program code defines: functions, types, constants, macros.
 *
 * They are found line by line, by what stands around a name in the languages of that ending: a word such as class or
 * def before it, parentheses behind it at the begin of a line. No language is parsed: a name too many puts a file
 * forward for this one word alone, and one too few leaves it where its other merits put it.
 */
#ifndef GPUIR_DEFINES_H
#define GPUIR_DEFINES_H

#include "bytes.h"

/* Appends the names that text[0..n) defines, a blank behind each; `path` is its file's. Returns how many they are. */
size_t defines_find(const char *path, const char *text, size_t n, byte_buf *out);

#endif
