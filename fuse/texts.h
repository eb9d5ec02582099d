/* texts.h - answers that show texts: pass/, grep/ and files/; and the paths of hits.
 *
 * A text is what the index has stored, or what its source has at its place, if that is still what was indexed. Sources
 * are opened by source.h alone, with the rights of this process: whatever holds text of theirs is for the user who
 * mounted, and for root. An answer knows which sources it looked at and in what state they were, and is made again when
 * one is in another.
 */
#ifndef GPUIRFS_TEXTS_H
#define GPUIRFS_TEXTS_H

#include "work.h"

#include "../tools/common/decode.h"

#define TEXTS_NOT_YOURS "it has text of source files, which is for the user who mounted alone"

/* The sources that an answer was made of. */
typedef struct texts_made {
  source_state *states; /* [n], to be freed */
  uint32_t n, cap;
} texts_made;

/* Returns whether the one who asks may be shown texts of sources. */
int texts_are_for_caller(lookup *l);
/* Returns gpuir_index_info.reading. */
const char *texts_reading(lookup *l);
/* Returns whether a filter turned the document's source into text, so that its bytes are not the document's. */
int texts_are_filtered(lookup *l, const gpuir_doc *doc);
/* Reads the text of a document of an open source, with the rights of this process; where a filter made it, that one is
 * run, if the user who mounted has allowed it. Errors: as decode_open_source; ENODATA: no filter is allowed; EIO: no
 * text comes of it, in words in l->note. */
int texts_decode(lookup *l, int fd, const struct stat *st, const gpuir_doc *doc, const source_limits *limits,
    decoded *text);
/* Whether all sources of an answer of this generation are as they were; 0 also where the one who asks waits no more. */
int texts_are_current(lookup *l, const result *r);

/* Writes the passages of hits, or their lines with words of the query, to *b. Errors: EACCES where a source is needed
 * that is not for the one who asks; EINTR, ETIMEDOUT, ENOMEM, EFBIG; EIO. */
int texts_passages(lookup *l, const name_options *options, int grep, const search_reply *reply, buf *b,
    texts_made *made);
/* Notes in place of which word of the query another is searched, as the texts that have it write it, where the one
 * who asks may be shown them. made: takes the sources that were read, where the answer has the note; NULL. */
void texts_note_spelled(lookup *l, const search_reply *reply, texts_made *made);
/* Writes the path of each file that a hit came from, once, and of other hits that of doc/. */
int texts_paths(lookup *l, const gpuir_hit *hits, size_t n, buf *b);
/* Finds sizes that only sources tell; 0 for a text that cannot be had. They share the time of one look-up. ENOMEM,
 * EINTR, ETIMEDOUT. */
int texts_sizes(lookup *l, hit_link *links, size_t n);

/* Reads the text of an entry of files/<q>/, which is in its source: *text, to be freed. ESTALE where it is not what
 * stood there when it was indexed; ENODATA; EACCES; EINTR; as decode_source. Called without the lock. */
int texts_read(fuse_req_t req, fs *f, generation *g, const hit_link *link, char **text);

#endif
