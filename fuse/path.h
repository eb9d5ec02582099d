/* path.h - the names of the tree: what a path component means, and how links are called.
 *
 *   query/<q>  query/<q>.tsv  query/<q>.json  query/<q>.paths  query/@or/@k=100/<q>  hits/<q>/000001-<name>
 *   files/<q>/000001-<name>  pass/<q>  pass/@tokens=2000/<q>  grep/<q>  query/@ext=c/<q>  by/ext/c/query/<q>
 *
 * <q> is one component in Python's quote_plus form: `+` parts words and %XX stands for a byte. `-`, `@`, the
 * suffix and a leading `.` are read before unescaping, so %2D, %40 and %2E are the literal characters. `"` and `*`
 * are the same as %22 and %2A, which quote_plus writes.
 */
#ifndef GPUIRFS_PATH_H
#define GPUIRFS_PATH_H

#include "common.h"

enum { FORMAT_PLAIN = 0, FORMAT_TSV = 1, FORMAT_JSON = 2, FORMAT_PATHS = 3 };
enum { BACKEND_AUTO = 0, BACKEND_CPU = 1, BACKEND_GPU = 2 };
enum { RANK_AUTO = 0, RANK_PLAIN = 1, RANK_CODE = 2 }; /* AUTO: CODE where the index is of program code */

/* What option folders have said so far. Each may be said once. */
enum {
  OPTION_MODE = 1,
  OPTION_K = 2,
  OPTION_BACKEND = 4,
  OPTION_TOKENS = 8,
  OPTION_BYTES = 16,
  OPTION_CONTEXT = 32,
  OPTION_RANK = 64,
  OPTIONS_SEARCH = OPTION_MODE | OPTION_K | OPTION_BACKEND | OPTION_RANK, /* in every folder of queries */
  OPTIONS_ALL = 127 /* where passages are shown */
};
typedef struct name_options {
  unsigned given; /* OPTION_ bits */
  int mode; /* GPUIR_AND, GPUIR_OR or GPUIR_ANDOR */
  uint32_t k;
  int backend; /* BACKEND_ */
  int rank; /* RANK_ */
  uint64_t tokens, bytes; /* of passages together; 0: no bound */
  uint32_t context; /* as in gpuir_passages_desc */
} name_options;

/* "and", "or", "andor" -> GPUIR_ mode. EINVAL for anything else. */
int name_mode(const char *text, size_t len, int *mode);

/* A name that is answered by "no such file" without a look at the index: dotfiles, autorun.inf. */
int name_is_never(const char *name, size_t len);
/* A name that servers, editors and shells look for in every folder, and that is no query for this reason: index.html,
 * *.conf and others, as README.md lists them. */
int name_is_probe(const char *name, size_t len);

/* An option folder has the leading '@'. */
static inline int name_is_option(const char *name, size_t len) { return len > 0 && name[0] == '@'; }

/* Adds the option folder `name` to *options. EINVAL when it is unknown, malformed, none of the kinds `allowed`, of a
 * kind that was said before, or its k is over max_k; *options is then unchanged. */
int name_option(const char *name, size_t len, unsigned allowed, uint32_t max_k, name_options *options);

/* Whether an option folder is of a kind that takes a number or a word behind '=', be that right or wrong: no field is
 * called so. */
int name_is_reserved(const char *name, size_t len);

/* Reads <q>: `text` (at least 2 * len bytes) gets words and phrases, parted by single spaces, in the syntax of
 * gpuir_query_parse. With `format` the suffix is read too. EINVAL for a bad escape. */
int name_query(const char *name, size_t len, char *text, size_t *text_len, int *format);

/* Returns the byte that stands at name[*i], *i < len, which moves past it; -1 for a bad escape. */
int name_byte(const char *name, size_t len, size_t *i);

/* Plain quote_plus unescaping into `text` (at least len bytes). EINVAL for a bad escape. */
int name_unescape(const char *name, size_t len, char *text, size_t *text_len);

/* Reads the name of a document: "<docID>", for which *generation becomes 0, or "<generation>.<docID>"; numbers without
 * leading zeros or sign. ENOENT for anything else. */
int name_document(const char *name, size_t len, uint64_t *generation, uint32_t *docid);

/* "000001-<name>", cut to fit a component, with '/' and all that is not harmless (text.h) made '_'; a document
 * without a name is called by its docID. Returns the length; `out` is NUL-terminated. */
size_t name_link(char out[NAME_LIMIT + 1], uint32_t rank, uint32_t docid, const char *name, size_t len);

/* Returns the rank that a link's name begins with, or 0. */
uint32_t name_link_rank(const char *name, size_t len);

/* "../../doc/<docID>", or with a generation other than 0 "../../doc/<generation>.<docID>", from a folder `depth` <=
 * NAME_DEPTH levels below the mount point. */
#define NAME_DEPTH 64
#define LINK_TARGET_SIZE (3 * NAME_DEPTH + 48)
void name_link_target(char out[LINK_TARGET_SIZE], unsigned depth, uint64_t generation, uint32_t docid);

#endif
