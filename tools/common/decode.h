/* decode.h - the one place where files become documents, and where the text of a document is made again.
 *
 * decode_file cuts an open file into documents: whole files, lines, or records. What it hands out says where in the
 * file a document stands and in which `form`, so that decode_source can make the same text of the same bytes later,
 * with the line of the file that each of its bytes came from. All that reads files, or shows texts of them, goes
 * through here: what is shown is what was indexed.
 */
#ifndef GPUIR_DECODE_H
#define GPUIR_DECODE_H

#include "gpuir.h"

#include "filters.h"
#include "made.h"
#include "reader.h"
#include "records.h"
#include "source.h"
#include "text_cache.h"

#define DECODE_MOST ((size_t)1 << 30) /* bytes of one document or one line of documents */
#define DECODE_JSON_MOST ((size_t)64 << 20) /* of an object of JSON */

/* How documents are cut out of a file. The numbers are stored in tables of files. */
typedef enum decode_format {
  DECODE_FILES, /* a file is one */
  DECODE_CHUNKS, /* so many lines are one */
  DECODE_LINES,
  DECODE_TSV, /* a line of "id<TAB>text" */
  DECODE_JSON, /* an object: one a line, over several lines, or in an array */
  DECODE_TREC, /* an element <DOC> */
  DECODE_CSV, /* a row behind the first one, which names the fields */
  DECODE_TABS /* the same, with tabs between fields, and no quotes */
} decode_format;

/* gpuir_doc.form: what the bytes at a document's place are, in which encoding, how they are packed, and of which markup
 * they were made. In a packed file the place is one in what was packed, in a converted one it is one in the text that
 * was made, and the hash is that of the file. Of a message of mail it is that of the message. */
enum {
  DECODE_AS_TEXT,
  DECODE_AS_JSON,
  DECODE_AS_TREC,
  DECODE_AS_CSV, /* fields of a row, of which some are the text: see DECODE_FIELDS */
  DECODE_AS_TABS,
  DECODE_AS_NOTHING, /* a row whose text stands in fields too far apart: only the index may have it */
  DECODE_AS = 15,
  DECODE_ENCODING = 16, /* times the encoding */
  DECODE_PACKING = 256, /* times the packing */
  DECODE_CONVERSION = 4096, /* times the conversion */
  DECODE_NAMED = 1 << 20, /* times 1 and the encoding that has a name */
  DECODE_FIELDS = 1 << 26 /* times the mask of table.h */
};

typedef struct decode_document {
  const char *name; /* what it is called */
  size_t name_len;
  int is_record; /* the name is the document's own; otherwise it begins with the file's */
  const char *text;
  size_t len;
  const char *mail; /* the message that it is the text of, mail_len bytes; NULL: it is none */
  size_t mail_len;
  uint64_t first, last; /* lines; 0: the whole file */
  uint64_t offset, bytes; /* its place in the file, or in what is packed there */
  uint64_t
      hash; /* XXH3-64 of these as UTF-8, where they are not the text; of a packed or converted file, of its bytes */
  uint32_t form;
} decode_document;

/* Returns whether documents are records whose members have names. */
static inline int decode_has_members(decode_format format) {
  return format == DECODE_JSON || format == DECODE_CSV || format == DECODE_TABS;
}

/* How a file is read, and who takes what it has. Zeroed, with the first part filled in. */
typedef struct decode_run {
  decode_format format;
  uint64_t chunk_lines;
  uint64_t whole_lines; /* a file of no more lines is one document, not chunks */
  const char *name; /* of the file */
  record_reader *records; /* opened, for records of JSON, TREC and tables */
  uint64_t file_hash; /* XXH3-64 of the bytes of a packed or converted file; 0: not known */
  /* Both end the reading with what they return, if it is not 0. */
  int (*document)(void *user, const decode_document *document);
  /* A record is not what its format says: at which line and, if it is not 0, byte of the line. */
  int (*malformed)(void *user, uint64_t line, const char *why, size_t where);
  /* A message of mail, which begins at that line, is read in part or not at all. */
  void (*cut)(void *user, uint64_t line, const char *why);
  void *user;
  uint64_t line; /* what is being read */
  /* private */
  text_reader *r;
  byte_buf chunk;
} decode_run;

#define DECODE_LOST (-100) /* the file cannot be read: errno */

/* Hands out the documents of a text. 0, DECODE_LOST, or what a function returned. */
int decode_file(decode_run *d, text_reader *r);

/* The text of a document, made again. Zeroed: none. */
typedef struct decoded {
  char *text; /* NULL: there is none */
  size_t len;
  uint32_t first_line; /* of the record */
  int flat; /* all of the text is said to stand in that line: nobody knows better */
  int lineless; /* its lines are none of the file's, from which it was converted */
  int is_message; /* the document's lines are those of the file that have the message */
  /* private */
  made_text made; /* owns the text of a record */
  char *record; /* that it was made of, or NULL: the text is the record */
  size_t record_len, seen; /* lines are counted up to here */
  uint32_t line;
} decoded;

/* Reads the text of a document from its source at an absolute path. `reading`: of the index.
 * Errors: as source_open and source_read_text; ENOTSUP: made by a later version; ENOPKG: the library lacks that unpacks
 * it. */
int decode_source(const char *path, const gpuir_doc *doc, const char *reading, const source_limits *limits,
    decoded *out, struct stat *st);
/* The same of a source that is open; st: its attributes. */
int decode_open_source(int fd, const struct stat *st, const gpuir_doc *doc, const char *reading,
    const source_limits *limits, decoded *out);
/* The text of a document in what a filter makes of its open source; limits->cache is there. Errors: as source_part and
 * filters_run, which fills why[FILTERS_WHY] in. */
int decode_filtered(const text_filter *filter, int fd, const struct stat *st, const gpuir_doc *doc,
    const source_limits *limits, decoded *out, char *why);
/* Reads the text that the index has stored of a document. Errors: ENOMEM; EIO: its block is damaged. */
int decoded_stored(decoded *d, const gpuir_index *index, const gpuir_doc *doc, uint32_t docid);
void decoded_free(decoded *d);
/* Lets the lines of a text without lines of a file be its own. */
void decoded_own_lines(decoded *d);
/* Returns the text of one that was made, for the caller to free; the rest is gone. */
char *decoded_take(decoded *d);
/* Returns the line of the source that a byte of the text stands in. It is quick where bytes are asked for in order. */
uint32_t decoded_line(decoded *d, size_t at);
/* Returns the first byte of text[at, end) that stands in another line of the source than `at`; `end`: there is none. */
size_t decoded_line_end(decoded *d, size_t at, size_t end);

#endif
