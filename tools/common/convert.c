/* convert.c - says what files are, and has their texts made. */
#include "convert.h"

#include <string.h>
#include <strings.h>

static const struct {
  const char *one, *many;
  int (*is)(const char *text, size_t n);
  const char *(*make)(const char *text, size_t n, byte_buf *out);
} converters[CONVERT_KINDS] = {{"", "", NULL, NULL}, {"man page", "man pages", convert_is_roff, convert_roff},
    {"page of HTML", "pages of HTML", convert_is_html, convert_html},
    {"notebook", "notebooks", convert_is_notebook, convert_notebook},
    {"file of mail", "files of mail", NULL, convert_mail}};

/* Returns whether a name ends with one of `endings`, which blanks part, perhaps before that of a packed file. */
static int ends_with(const char *name, const char *endings) {
  static const char packed[] = ".gz .bz2 .xz .zst";
  size_t len = strlen(name), n;
  const char *at;
  for (at = packed; *at; at += n, at += *at == ' ') {
    n = strcspn(at, " ");
    if (len > n && !strncasecmp(name + len - n, at, n)) {
      len -= n;
      break;
    }
  }
  for (at = endings; *at; at += n, at += *at == ' ') {
    n = strcspn(at, " ");
    if (len > n && !strncasecmp(name + len - n, at, n)) return 1;
  }
  return 0;
}

convert_kind convert_kind_of(const char *name, const char *text, size_t n) {
  int kind;
  for (kind = CONVERT_ROFF; kind < CONVERT_KINDS; kind++)
    if (converters[kind].is && converters[kind].is(text, n)) return (convert_kind)kind;
  while (n && *text && strchr(" \t\r\n", *text)) text++, n--;
  return n && *text == '<' && ends_with(name, ".html .htm .xhtml") ? CONVERT_HTML : CONVERT_NONE;
}

const char *convert_name(convert_kind kind, int many) { return many ? converters[kind].many : converters[kind].one; }

const char *convert_text(convert_kind kind, const char *text, size_t n, byte_buf *out) {
  const char *why;
  if (!bytes_room(out, 1)) return "";
  why = kind < CONVERT_KINDS && converters[kind].make ? converters[kind].make(text, n, out) : "it is of no known kind";
  return out->failed ? "" : why;
}
