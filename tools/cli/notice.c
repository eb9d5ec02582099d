/* notice.c - says of a query that holds what is an operator elsewhere that here it is a word. */
#include "cli.h"

#include "../common/advice.h"

void cli_notice_operators(const gpuir_query_desc *qd, const char *text, size_t len) {
  static int told;
  const char *word;
  size_t n;
  if (told || qd->no_operators || (word = advice_operator(text, len, &n)) == NULL) return;
  told = 1;
  cli_error(
      "note: '%.*s' is no operator, but words like all others: there are -word, \"a phrase\" and prefix*, "
      "and "
      "--mode says whether all words must match",
      n > 60 ? 60 : (int)n, word);
}
