/* wordnet.h - the collection that comes with the project, for tests that are run from its root or below */
#ifndef TESTS_WORDNET_H
#define TESTS_WORDNET_H

#include <stdio.h>

/* NULL: it is not there. */
static FILE *wordnet_open(void) {
  static const char *const paths[] = {"tests/data/wordnet.tsv", "../tests/data/wordnet.tsv",
      "../../tests/data/wordnet.tsv"};
  FILE *in = NULL;
  unsigned i;
  for (i = 0; i < sizeof paths / sizeof *paths && !in; i++) in = fopen(paths[i], "rb");
  return in;
}

#endif
