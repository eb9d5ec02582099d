/* source.h - opens the file on disk that a document was indexed from, and reads the document's bytes of it: for the
 * mount, and for commands that show texts.
 *
 * The path comes from the index, and the folders on the way may change at any time and belong to anybody. So
 * the file is opened once, its attributes are taken from that descriptor, and its bytes are read from it. The
 * way there is walked one folder at a time, and each step is checked before the next is asked for anything:
 * a daemon that looks a name up in its own mount waits for itself, and one that asks a file system which
 * another user serves waits for that user.
 */
#ifndef GPUIR_SOURCE_H
#define GPUIR_SOURCE_H

#include "gpuir.h"

#include <sys/stat.h>
#include <sys/types.h>

/* Returns the folder in which relative sources of an index begin, absolute and without links, to be freed: that of the
 * index's file, or of the folder of a live index; of one that is not there yet, that of its name. NULL and errno
 * where there is none. */
char *source_home(const char *index);
/* What an index stores of an absolute path: what follows `home`, if it lies below and has no "..", and "" for `home`
 * itself. So an index and the files below its folder can be moved together, and it is the same bytes wherever it is
 * built. */
const char *source_stored(const char *home, const char *path);

/* Makes an absolute path of `path`: a relative one starts from `base`. ENAMETOOLONG; ENOENT for an empty path
 * or one with a NUL byte; ELOOP when its text leads into `forbidden`, the mount. */
int source_path(const char *base, const char *forbidden, const char *path, size_t len, char *out, size_t cap);

/* Writes the device of the file system at `path` to *device without asking that file system anything. */
int source_device(const char *path, dev_t *device);

/* Returns whether an open folder is shown by gpuirfs. */
int source_is_gpuirfs(int fd);

/* Opens a regular file for reading with the rights of the calling thread; *st describes what was opened.
 * `path` is absolute, `mount` the device of this daemon's own mount, 0 if it has none.
 * Errors: ELOOP for a path into this mount or another gpuirfs, or through over 40 links; EACCES for one into
 * the kernel's own file systems (/proc, /sys) or one that another user serves through FUSE; EINVAL for
 * anything but a regular file; what open(2) says. */
int source_open(const char *path, dev_t mount, int *fd, struct stat *st);

typedef struct source_range {
  uint64_t offset, bytes;
  uint64_t hash; /* XXH3-64 of these bytes when they were indexed; 0: not known */
  uint64_t deadline; /* nanoseconds of CLOCK_MONOTONIC; 0: none */
  int (*stopped)(void *); /* asked before each block; NULL: nobody asks to stop */
  void *stopped_arg;
} source_range;

/* Takes the next n bytes. Returns 0, or an errno value that ends the reading. */
typedef int (*source_put)(void *sink, const void *bytes, size_t n);

/* Hands the range of an open source to `put`, block by block. Errors: ESTALE when the file ends before the range does,
 * or has other bytes there than were indexed; EINTR; ETIMEDOUT; what `put` and pread(2) say. */
int source_read(int fd, const source_range *range, source_put put, void *sink);

/* Returns whether a file's name ends with a dot and `ending`, in letters of either case. */
int source_ends(const char *name, size_t len, const char *ending, size_t n);

/* Whether a source's bytes are not its text: it was turned into text by one of the index's filters (see
 * gpuir_index_info), and the places of documents in it are places in that text. */
int source_filtered(const char *filters, const char *name, size_t len);

/* Finds the document's part of the whole text[0..len) of its source: text[*at, *at + *n). Errors: ESTALE when the text
 * has changed. */
int source_part(const gpuir_doc *doc, const char *text, size_t len, size_t *at, size_t *n);
/* Whether a document is the whole text of its source. */
int source_is_whole(const gpuir_doc *doc);

/* What reading a text may take. */
typedef struct source_limits {
  dev_t mount; /* as source_open has it */
  size_t most; /* bytes */
  uint64_t deadline;
  int (*stopped)(void *); /* both as in source_range */
  void *stopped_arg;
  struct text_cache *cache; /* of texts that are decoded of whole files; NULL: each is decoded anew */
} source_limits;

/* Returns why reading has to end before the next block, EINTR or ETIMEDOUT, or 0. */
int source_must_end(const source_limits *limits);

/* Reads a document's text from its open source: the bytes that the index names, or its lines, or the whole file. *text,
 * to be freed, gets its *len bytes, and may be set where that fails; *st describes the file. Errors: ESTALE when the
 * source has changed since it was indexed, so that its text is not the document's any more; EFBIG beyond `most` bytes;
 * ENOMEM; as source_read. */
int source_read_text(int fd, const struct stat *st, const gpuir_doc *doc, const source_limits *limits, char **text,
    size_t *len);

#endif
