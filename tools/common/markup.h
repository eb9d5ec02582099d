/* markup.h - the tags and character references of SGML, HTML and XML. */
#ifndef GPUIR_MARKUP_H
#define GPUIR_MARKUP_H

#include "made.h"

/* Decodes the character reference, such as "&eacute;" or "&#xe9;", that p[0..n) begins with. Returns its bytes, or 0 if
 * it is none that HTML or XML knows. */
size_t markup_entity(const char *p, size_t n, unsigned *c);
/* Returns where in [p, end) a tag such as "</doc>" stands, in letters of either case, or NULL. */
const char *markup_find(const char *p, const char *end, const char *tag);
/* Appends the line ends of [p, end): what is left out keeps its lines, so that those behind it keep their numbers. */
void markup_lines(made_text *out, const char *p, const char *end);
/* Appends [p, end) with a blank, and its line ends, in place of each tag, and characters in place of references. */
void markup_strip(made_text *out, const char *p, const char *end);

#endif
