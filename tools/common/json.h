/* json.h - reads objects of JSON, strictly (RFC 8259), and hands each member with its path to the caller.
 *
 * Bytes outside ASCII are passed on as they are: text analysis decides what they mean. Nesting is at most JSON_DEPTH
 * deep and held in an array, so that no input makes the reader's stack grow.
 */
#ifndef GPUIR_JSON_H
#define GPUIR_JSON_H

#include "bytes.h"
#include "made.h"

#define JSON_DEPTH 256u

typedef enum json_kind {
  JSON_OBJECT, /* an object begins */
  JSON_MEMBER, /* the name of a member was read */
  JSON_STRING, /* values */
  JSON_NUMBER,
  JSON_LITERAL, /* true, false, null */
  JSON_ARRAY /* an array begins */
} json_kind;

typedef struct json_event {
  json_kind kind;
  unsigned depth; /* of objects and arrays around it, from 1 on; of what begins: itself among them */
  const char *path; /* names of members, the outermost first, with dots between them */
  size_t path_len;
  const char *raw; /* a value as it stands there; of a string what is between its quotes */
  size_t len;
} json_event;

/* Zeroed, with the first two filled in. */
typedef struct json_reader {
  /* Takes what comes next; not 0 ends the reading with an error. */
  int (*take)(void *user, const json_event *event);
  void *user;
  const char *why; /* what is wrong */
  size_t where; /* at which byte, from 1 */
  int short_of; /* the text ends, though not within a string, before the object does: more of it may help */
  /* private */
  const char *begin, *p, *end;
  byte_buf path;
} json_reader;

/* Reads the object that text[0..len) begins with, after white space. Returns its bytes with the white space, or 0: then
 * `why` and `where` say what is wrong. */
size_t json_object(json_reader *j, const char *text, size_t len);
void json_free(json_reader *j);
/* Appends what a string that was read stands for. A surrogate without its other half becomes U+FFFD. */
void json_unescape(made_text *out, const char *raw, size_t len);

#endif
