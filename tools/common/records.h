/* records.h - the id and the text of a record: an object of JSON, a row of a table, or an element of TREC.
 *
 * Which members of an object are its id, its title and its text is said by names: the members of objects within objects
 * are named by their path, with dots, and every string of an array is one of the member's. Where nothing is said, the
 * id is the first of `records_ids` that the object has, and the text the first of `records_texts`, behind its "title".
 * The members of a row are called as the fields of the table's head; their texts stand in their order in the row.
 */
#ifndef GPUIR_RECORDS_H
#define GPUIR_RECORDS_H

#include "json.h"
#include "made.h"
#include "table.h"

/* The names that are tried, a blank between them. */
extern const char records_ids[], records_texts[], records_topic_ids[], records_topic_texts[];

enum { RECORDS_ID, RECORDS_TITLE, RECORDS_TEXT, RECORDS_ROLES };
#define RECORDS_NAMES 24u
#define RECORDS_FIELDS 64u

/* A value that was found: a string, a number, or the begin of an array. */
typedef struct records_value {
  const char *raw;
  unsigned len; /* objects are shorter than 4 GiB */
  int kind; /* json_kind, or RECORDS_QUOTED, a field of a row between quotes */
} records_value;
enum { RECORDS_QUOTED = JSON_ARRAY + 1 };

/* A member that is looked for, and what of it was found. */
typedef struct records_member {
  const char *name;
  size_t name_len;
  int role;
  int used; /* something was taken of it */
  size_t column; /* its number in the table's head, plus 1; 0: none */
  byte_buf values; /* records_value */
  size_t marks[JSON_DEPTH + 1]; /* [depth] bytes of `values` where the object that is open there began */
} records_member;

/* Zeroed and opened. */
typedef struct record_reader {
  byte_buf id;
  made_text text; /* text.base: set it to the record where its runs are asked for */
  /* Is told of each string, number, true or false that an object or a row has, and how its member is called. NULL:
   * nobody is. */
  void (*see)(void *user, const char *name, size_t len, const records_value *value);
  void *see_user;
  const char *why; /* what is wrong with the record */
  size_t where; /* at which byte, from 1; 0: nowhere */
  int short_of; /* it ends too soon: with more bytes it may be one */
  /* Of a row: its text are fields from number `first` on, as `mask` says; mask -1: they stand too far apart for one. */
  size_t first;
  int mask;
  byte_buf dropped; /* names of the first members that are none of these, each with a NUL, as long as they are few */
  /* private */
  json_reader j;
  records_member *members;
  size_t nmembers;
  int chosen[RECORDS_ROLES]; /* named by the caller: all of them are taken, not the first one */
  size_t ndropped;
  char *names; /* which the members' names are parts of */
  size_t columns; /* of the table's head */
  byte_buf head; /* their names, each with a NUL, where somebody is told of values */
  int has_id; /* one of them is the id */
  int topics; /* they are questions, of which no option names members */
} record_reader;

/* Prepares to read objects. `reading` says what gpuir_index_info.reading has: "id=NAME", "title=NAME" and
 * "text=NAME,NAME...", with tabs between them, any of which may lack; `topics`: other names are tried. 0; -1: no
 * memory; -2: too many names. */
int records_open(record_reader *r, const char *reading, int topics);
void records_close(record_reader *r);
/* Reads the object that text[0..len) begins with. Returns its bytes, also where it is no record: `why` says so then; 0:
 * it is no object: `why`, `where`, `short_of`. */
size_t records_json(record_reader *r, const char *text, size_t len);
/* Takes the head of a table, whose rows come next. 0; -1: `why`. */
int records_head(record_reader *r, const table_cells *head);
/* Takes a row. 0; -1: `why`. r->id.n is 0 where the head has no id. */
int records_row(record_reader *r, const table_cells *row);
/* Lets what a member has be kept for field number `field`, below RECORDS_FIELDS; the name is the caller's and must
 * outlive the reader. Each field once. */
void records_field(record_reader *r, unsigned field, const char *member);
/* Appends value i of a field in the record that was read last: a string, a number, true or false, also of an array.
 * 0: it has no more. Where there is no memory, `out` has failed. */
int records_field_value(const record_reader *r, unsigned field, size_t i, made_text *out);
/* Appends what a value holds. */
void records_put(const records_value *value, made_text *out);
/* Returns the i-th member of the role of which something was taken, n bytes; NULL: there is none. */
const char *records_used(const record_reader *r, int role, size_t i, size_t *n);
/* Reads an element, what stands between <DOC> and </DOC>; tag[0..tag_len) is what stands between "<DOC" and ">". NULL:
 * the id is not asked for. 0; -1: `why`. */
int records_trec(record_reader *r, const char *tag, size_t tag_len, const char *text, size_t len);

#endif
