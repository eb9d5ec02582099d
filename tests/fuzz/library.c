/* library.c - the library as the fuzzers and mutate.c link it: with files mapped into heap blocks of their exact
 * size, and with private functions that other files can call */
#include "guard.h"
#include "private.c" /* which private.awk makes */
