/* convert.h - texts of files that are markup: what a reader of the page would read, without what is there for programs.
 *
 * The text is made of the whole file, or of a message of mail, and its lines are not those of the file. What a file is
 * is told by how it begins.
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

/* Says what text[0..n) is, the begin of a file in UTF-8; `name` is that of the file. Mail is another matter, as each of
 * its parts has an encoding of its own: see convert_is_mail. */
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
/* A message, with the line before it that an mbox has or without. The text is made as far as limits allow: what is
 * returned says what was left out. */
const char *convert_mail(const char *text, size_t n, byte_buf *out);
/* Appends value i of a field of a message's header, as heads_value says it. */
int convert_mail_field(const char *text, size_t n, const char *field, size_t i, byte_buf *out);
/* Returns whether a file of bytes that begins with text[0..n) is a message, or an mbox of messages. */
int convert_is_mail(const char *text, size_t n);
/* Returns whether a line is one that begins a message in an mbox; the line before it is empty, or there is none. */
int convert_begins_mail(const char *line, size_t n);

#endif
