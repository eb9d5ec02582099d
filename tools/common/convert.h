/* convert.h - texts of files that are markup: what a reader of the page would read, without what is there for programs.
 *
 * The text is made of the whole file, and its lines are not those of the file. What a file is is told by how it begins.
 */
#ifndef GPUIR_CONVERT_H
#define GPUIR_CONVERT_H

#include "made.h"

#define CONVERT_MOST ((size_t)64 << 20) /* bytes of a file that is converted */

/* The numbers are stored in indexes. */
typedef enum convert_kind {
  CONVERT_NONE,
  CONVERT_ROFF,
  CONVERT_HTML,
  CONVERT_NOTEBOOK,
  CONVERT_MAIL,
  CONVERT_KINDS
} convert_kind;

/* Says what text[0..n) is, the begin of a file in UTF-8; `name` is that of the file. */
convert_kind convert_kind_of(const char *name, const char *text, size_t n);
const char *convert_name(convert_kind kind, int many); /* for people */
/* Appends the text that text[0..n) is for people; its title comes first. Returns NULL, or why it cannot be made, of
 * which out->failed says that there was no memory. */
const char *convert_text(convert_kind kind, const char *text, size_t n, byte_buf *out);

/* The converters, each in a file of its own. */
const char *convert_roff(const char *text, size_t n, byte_buf *out);
int convert_is_roff(const char *text, size_t n);
const char *convert_html(const char *text, size_t n, byte_buf *out);
int convert_is_html(const char *text, size_t n);
const char *convert_notebook(const char *text, size_t n, byte_buf *out);
int convert_is_notebook(const char *text, size_t n);

#endif
