/* tools.h - what the commands read files with, in one unit with a fuzzer
 *
 * Include it behind gpuir.h or private.h, with _GNU_SOURCE defined before both. */
#ifndef TOOLS_H
#define TOOLS_H

#include "tools/cli/filter.c"
#include "tools/cli/input.c"
#include "tools/cli/skipped.c"
#include "tools/cli/util.c"
#include "tools/cli/values.c"
#define is_blank defines_blank /* records.c has its own */
#include "tools/common/defines.c"
#undef is_blank
#include "reading.h"
#include "tools/common/skipped.c"

#endif
