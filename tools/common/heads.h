/* heads.h - what the head of a text says of it: the header of a message of mail (RFC 5322), or the front matter of a
 * page (between lines of "---" in YAML, of "+++" in TOML).
 *
 * Of YAML it is the plain part: `name: value` at the begin of a line, values bare or in quotes, and lists, in brackets
 * or an item a line behind '-'. Of TOML it is `name = value` before the first table. What is nested is left out, and so
 * are texts over several lines. What is no front matter is not told from a text without any.
 */
#ifndef GPUIR_HEADS_H
#define GPUIR_HEADS_H

#include "bytes.h"

typedef enum heads_kind { HEADS_NONE, HEADS_MAIL, HEADS_YAML, HEADS_TOML } heads_kind;

/* Says which front matter text[0..n) begins with, and how long it is. */
heads_kind heads_front(const char *text, size_t n, size_t *len);
/* Appends value i of a field. Of the fields of a mail that hold addresses each address is one, without the name of its
 * owner; others are decoded. Returns 0 where there are no more; where there is no memory, `out` has failed. */
int heads_value(heads_kind kind, const char *head, size_t len, const char *name, size_t i, byte_buf *out);
#define HEADS_DATE 48
/* Writes a date of mail, as in Fri, 21 Nov 1997 09:55:06 -0600, as 1997-11-21T09:55:06-06:00. Returns 0 where it is
 * none. */
int heads_date(const char *text, size_t len, char out[HEADS_DATE]);

#endif
