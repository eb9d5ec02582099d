/* stop_words.h - words that say little in a question, by language. */
#ifndef GPUIR_STOP_WORDS_H
#define GPUIR_STOP_WORDS_H

#include "gpuir.h"

/* Returns the list of a language, by the name of its stemmer, for gpuir_query_desc.stop; NULL: there is none. */
const char *stop_words_of(const char *language);

/* Returns the list that questions to an index do without by themselves: that of English, if the index has texts that
 * the
 * analyzer text took for English. Other analyzers' answers stay as they were. */
const char *stop_words_for(const gpuir_index *index);

#endif
