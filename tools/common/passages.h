/* passages.h - writes the passages of hits: for people, as lines for editors, as JSON. For the command and the mount.
 *
 * A passage stands under `path:first-last`, and an empty line follows it. With `grep`, each line of a passage with a
 * word of the query is `path:line:text`, once: parts of a long line that several passages show stand in one. Budgets
 * hold for all hits of an answer together: each hit may have an equal share of what is left, so that what one leaves
 * goes to those behind it. What stands above passages and before lines counts, and why a hit shows no text, which is
 * left out where it does not fit.
 */
#ifndef GPUIR_PASSAGES_H
#define GPUIR_PASSAGES_H

#include "gpuir.h"

#include "decode.h"
#include "text.h"

#define PASSAGES_TOKENS 800 /* the budget of an answer that names none */

/* Why a text is not shown, beside errno values: a filter made it, and none is given; it was said already; it has no
 * word of the query, though the document was found; or its path alone has them. */
enum { PASSAGES_FILTERED = -1, PASSAGES_TOLD = -2, PASSAGES_WITHOUT = -3, PASSAGES_BY_NAME = -4 };

/* Reads the text of a document from its source at an absolute path; `reading` is what gpuir_index_info says. Returns 0,
 * an errno value, ESTALE where the source has changed, or one of the above. */
typedef int (*passages_read)(void *arg, const char *path, uint32_t docid, const gpuir_doc *doc, const char *reading,
    decoded *text);

/* Zeroed, with what is asked for filled in. */
typedef struct passages {
  int grep, json, colour;
  uint64_t bytes, tokens; /* budgets of an answer; 0: none */
  uint32_t context; /* see gpuir_passages_desc */
  uint64_t timeout_ns; /* of an answer; 0: none */
  const int *cancel; /* as in gpuir_passages_desc */
  const char *base; /* the folder in which relative sources begin; NULL: sources are not looked for */
  const char *here; /* a folder: paths below it are written from there on. NULL: paths are absolute */
  text_put put; /* takes what is written */
  void *sink;
  passages_read read;
  passages_read filter; /* of sources that a filter turned into text; NULL: they are not shown */
  const char *filter_hint; /* what to do about those; NULL: nothing */
  /* Writes the path of a file that has the decoded text of a document, whose lines `grep` then says; NULL: there is
   * none, and such a text has no lines. 0 without one. */
  int (*decoded_path)(void *arg, uint32_t docid, const gpuir_doc *doc, byte_buf *path);
  /* Takes a message of a hit without text, among the lines of `grep`; NULL: it is written as a line. */
  void (*missing)(void *arg, const char *path, size_t len, const char *why);
  void *arg; /* of the four */
  /* private */
  uint64_t left; /* bytes of the budgets */
  int shown, cut; /* of the answer: something was written; something did not fit */
  uint64_t deadline; /* of the answer */
  char *path; /* of the hit, as it is written */
  size_t path_len, path_cap;
  gpuir_passage_room room;
} passages;

/* Makes room. GPUIR_E_NOMEM. */
int passages_open(passages *p);
void passages_close(passages *p);
/* An answer begins. */
void passages_begin(passages *p);
/* Writes what a hit shows of itself: hits_left hits, this one among them, share what is left of the budgets. With json
 * the members "path", "changed" and "passages" of the hit's object. A hit without text shows why. Errors: NOMEM; what
 * gpuir_passages says, which fills *err in. */
int passages_hit(passages *p, const gpuir_index *index, const gpuir_query *query, uint32_t docid, size_t hits_left,
    gpuir_error *err);
/* Returns whether the answer shows nothing because its budgets have no room for anything. */
int passages_are_cut(const passages *p);
/* Finds the path of a document's source as it is written, in p->path, and absolute, or "" for one without. NOMEM. */
int passages_path(passages *p, const gpuir_doc *doc, uint32_t docid, char *absolute, size_t size);
/* Takes the stored text of a document or, if that is still what was indexed, the text of its source at the absolute
 * path that passages_path found. Returns 0, or why there is none, as passages_read does. */
int passages_text(const passages *p, const gpuir_index *index, const gpuir_doc *doc, uint32_t docid, const char *path,
    decoded *text);
/* Says in words why there is no text. */
const char *passages_why(int error);

#endif
