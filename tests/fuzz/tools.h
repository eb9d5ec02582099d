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
#define place source_place /* input.c has its own */
#include "tools/common/source.c"
#undef place
#include "tools/common/convert.c"
#include "tools/common/convert_html.c"
#include "tools/common/convert_mail.c"
#include "tools/common/convert_notebook.c"
#include "tools/common/convert_roff.c"
#include "tools/common/decode.c"
#define is_blank defines_blank /* records.c has its own */
#include "tools/common/defines.c"
#undef is_blank
#include "tools/common/encoding.c"
#include "tools/common/encoding_named.c"
#include "tools/common/json.c"
#include "tools/common/made.c"
#include "tools/common/markup.c"
#include "tools/common/reader.c"
#include "tools/common/records.c"
#include "tools/common/text.c"
#include "tools/common/unpack.c"
#include "tools/common/unpack_bzip2.c"
#include "tools/common/unpack_lzma.c"
#include "tools/common/unpack_zlib.c"
#include "tools/common/unpack_zstd.c"

#endif
