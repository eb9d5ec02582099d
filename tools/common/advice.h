/* advice.h - what is said of a query: words that no document has, and words that are operators elsewhere. For the
 * command and the mount.
 */
#ifndef GPUIR_ADVICE_H
#define GPUIR_ADVICE_H

#include "gpuir.h"

/* Finds the first word of a query's text, outside of phrases, that is an operator in other engines: AND, OR, NOT, NEAR,
 * && and ||, +word, field:word, word~2, word^2; word~ is one here. Returns it with its *word_len bytes, or NULL. */
const char *advice_operator(const char *text, size_t len, size_t *word_len);
/* Returns whether it is one of the first six. */
int advice_is_word_operator(const char *word, size_t len);

/* Takes a line without its end. */
typedef void (*advice_put)(void *arg, const char *line, size_t len);

/* Says of the query's words that no document has, the first five at most, which words are written nearly so. Returns
 * their number. */
size_t advice_unknown(const gpuir_query *query, advice_put put, void *arg);

/* Finds how people write what is searched in place of a word, `instead` as gpuir_query_spelled says it, which may be a
 * stem: returns *word_len bytes, which stay until the next call. NULL: as it stands. */
typedef const char *(*advice_write)(void *arg, const char *instead, size_t len, size_t *word_len);

/* Says of the query's words in whose place others are searched which ones these are, as `write` has them. Returns their
 * number. */
size_t advice_spelled(const gpuir_query *query, advice_write write, void *write_arg, advice_put put, void *arg);

#define ADVICE_HOLDERS 10

/* Finds the documents whose texts may tell how people write what is searched in place of a word: the best for it alone.
 * Returns how many they are. */
size_t advice_holders(const gpuir_index *index, const char *instead, size_t len, gpuir_hit hits[ADVICE_HOLDERS]);

/* Finds the first word of a text that is the term which a query's word is searched as, so that people are told of a
 * word
 * and not of a stem. `instead` is what gpuir_query_spelled says. Returns it with its *word_len bytes; NULL: there is
 * none. */
const char *advice_surface(const gpuir_index *index, const char *instead, size_t len, const char *text, size_t text_len,
    size_t *word_len);

/* Says which words of a question are left out, as they say little, in one line. Returns their number. */
size_t advice_stopped(const gpuir_query *query, advice_put put, void *arg);

#endif
