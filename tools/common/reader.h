/* reader.h - reads an open file in pieces, as UTF-8, whatever its encoding is, and unpacked.
 *
 * Memory is that of one piece. Positions are those of the file's own bytes or, where it is packed, of the bytes that
 * are packed in it.
 */
#ifndef GPUIR_READER_H
#define GPUIR_READER_H

#include "convert.h"
#include "encoding.h"
#include "unpack.h"

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

typedef struct text_reader {
  int fd;
  char *buf;
  size_t cap, begin, end;
  int eof;
  int any; /* a byte was read */
  size_t most; /* bytes of one piece */
  uint64_t passed; /* bytes before the piece that comes next */
  uint64_t taken; /* bytes that were read */
  text_encoding form; /* of the file */
  void *hash; /* an XXH3_state_t that gets all bytes of the file, or NULL */
  int as_it_is; /* nothing is unpacked */
  int mails; /* mail is told from other texts */
  unpack_kind packing; /* what is unpacked */
  unpacker packed;
  /* What was converted: the text is in memory, in UTF-8, and `was` is the encoding of the file. CONVERT_MAIL: nothing
   * was, the file's bytes follow as they are. */
  convert_kind converted;
  text_encoding was;
  int said; /* the encoding that all texts without a byte order mark are said to have, plus 1; 0: it is told */
  int named; /* the one that the C library has converted, plus 1: the text is in memory, in UTF-8; 0: none */
  const char *why; /* reading has failed with EBADMSG: what is wrong with the file */
  int wake; /* a descriptor: reading ends with ECANCELED when there is something to read in it; 0: none */
  const volatile sig_atomic_t *stop; /* reading ends with EINTR where it is not 0; NULL: nobody asks for that */
  char *raw; /* bytes that are not UTF-8 yet */
  size_t raw_cap, raw_n;
} text_reader;

/* What a file is, by its first bytes. */
typedef enum reader_kind {
  READER_TEXT,
  READER_BINARY,
  READER_PDF,
  READER_GZIP, /* as unpack_kind has them */
  READER_BZIP2,
  READER_XZ,
  READER_ZSTD,
  READER_ZIP, /* also the formats of offices */
  READER_KINDS
} reader_kind;

/* Returns whether a text was made of the file as a whole, in which the places of documents are. */
static inline int reader_has_made(const text_reader *r) {
  return r->named || (r->converted && r->converted != CONVERT_MAIL);
}
void reader_open(text_reader *r, int fd, size_t most);
void reader_close(text_reader *r); /* frees; leaves the descriptor */
/* The next n lines, with their ends, as one piece that lives until the next call; *lines of them were there. 1; 0 at
 * the end; -1: errno (EFBIG: over `most`, EINTR, ENOMEM). */
int reader_lines(text_reader *r, uint64_t n, char **text, size_t *len, uint64_t *lines);
/* All that is left. 0; -1: errno. */
int reader_rest(text_reader *r, char **text, size_t *len);
/* Adds the next n lines to the piece that was handed out last, at *text with *len bytes, and hands out both. 1; 0:
 * there are no more; -1: errno. */
int reader_more(text_reader *r, uint64_t n, char **text, size_t *len);
/* Hands the last n bytes of the piece out again. */
void reader_back(text_reader *r, size_t n);
/* Looks at the first bytes of the file, says what it is, and reads it as that from then on: nothing may have been read
 * yet. What is packed is unpacked, once, if its library is there. A byte order mark is passed over. *what gets the
 * outcome. 0; -1: errno. */
int reader_begin(text_reader *r, reader_kind *what);
/* Converts the file, of which reader_begin said that it is a text, if it is markup for people; `name` is that of the
 * file. 0; -1: errno, EBADMSG with r->why where that cannot be done. */
int reader_convert(text_reader *r, const char *name);

#endif
