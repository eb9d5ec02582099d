/* library.c - the library as the fuzzers and mutate.c link it: with files mapped into heap blocks of their exact
 * size */
#include "guard.h"
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"
