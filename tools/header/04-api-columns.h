
/* ========
 * [api-columns]  what documents carry beside their text: keys, paths, numbers, dates
 *
 * A field is named once, in gpuir_builder_desc, and kept as a column: of each document the values that
 * gpuir_doc_desc.values gives it. A query's `where` chooses documents by them.
 *
 *     author="Smith, John",Jones mtime=2024-01..2024-06 -dir=vendor | lang=..
 *
 * Predicates in a row must all hold; of groups parted by '|', with blanks around it, one must. Of the values of a
 * predicate, parted by ',', any; '-' before its name: none. A document of which one value fits has it, and '-' passes
 * documents without any. a..b is a range, both ends included, a.. and ..b are open, and .. is any value. A value is
 * bytes without white space, '"', ',', '|' and '..', or stands between '"', where '""' is one. Case counts. A path is
 * itself and all below it: dir=src. Numbers compare exactly; a date that is not precise is its whole span, so ..2024-06
 * ends with June. Values that no document has are no error. At most 4,096 bytes, 64 predicates and 1,024 values.
 * ======*/

enum {
  GPUIR_NO_COLUMN = 0,
  GPUIR_KEY = 1, /* bytes, compared as such; several a document */
  GPUIR_PATH = 2, /* likewise, but '/' sorts before all other bytes: a folder and all below it follow one another */
  GPUIR_NUMBER = 3, /* 64 bits with a sign, of which `decimals` digits stand behind the point */
  GPUIR_DATE = 4 /* seconds since 1970-01-01T00:00:00Z */
};

#define GPUIR_MAX_FIELDS 64 /* of an index */
#define GPUIR_MAX_VALUE 4095 /* bytes of a key's or a path's value */
#define GPUIR_MAX_VALUES 65535 /* of a key or a path, of one document */
#define GPUIR_FIELD_ROOM 320 /* bytes that a field's name and member take, with a NUL each */

typedef struct gpuir_field {
  const char *name; /* [a-z_][a-z0-9_.]*, at most 63 bytes */
  const char *member; /* what inputs call it: 1 to 255 bytes without tab and line break; NULL: the name */
  int column; /* GPUIR_KEY ... */
  unsigned decimals; /* of a number, 0 to 9: by 2, 12.5 is kept as 1250 */
} gpuir_field;

typedef struct gpuir_value {
  unsigned field; /* its number among the index's */
  const char *text; /* of a key or a path: 1 to GPUIR_MAX_VALUE bytes, none of them 0; NULL: a number or a date */
  size_t len;
  int64_t number; /* of a number: by its decimals; of a date: seconds */
} gpuir_value;

/* Reads a field as commands take it, NAME=USE or NAME=USE@MEMBER, where USE is key, path, number, number:DECIMALS or
 * date. The field's strings are written to room. Thread-safe. Errors: ARGUMENT, UNSUPPORTED (see GPUIR_NO_COLUMNS). */
GPUIR_API int gpuir_field_parse(const char *text, gpuir_field *field, char room[GPUIR_FIELD_ROOM], gpuir_error *err);
/* Makes a value of a field from text, without the white space around it: of a key or a path these bytes, which the
 * value points to; of a number -12.5; of a date a year to a second, as in 2024, 2024-01, 2024-01-31T09:30:05 (T or a
 * blank; a fraction of the second is left out), then Z, +02:00 or nothing for UTC, and of imprecise ones the beginning;
 * or over four digits, seconds since 1970. value->field is 0. Thread-safe. Errors: ARGUMENT for what the column cannot
 * hold; UNSUPPORTED. */
GPUIR_API int gpuir_value_parse(const gpuir_field *field, const char *text, size_t len, gpuir_value *value);
/* Returns field i of an index. Its strings live as long as the index. Thread-safe. Errors: ARGUMENT; NOT_FOUND behind
 * the last one; UNSUPPORTED. */
GPUIR_API int gpuir_field_get(const gpuir_index *index, size_t i, gpuir_field *field);
/* Finds value i of a document in a field; those of a key or a path come in the order in which they were given. The text
 * is written to room, with a NUL behind it. Thread-safe. Errors: ARGUMENT; NOT_FOUND behind the last one, and when
 * there is no such document or it was deleted; UNSUPPORTED. */
GPUIR_API int gpuir_doc_value(const gpuir_index *index, uint32_t docid, unsigned field, size_t i, gpuir_value *value,
    char room[GPUIR_MAX_VALUE + 1]);
