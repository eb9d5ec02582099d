/* reading.h - what makes texts of files, in one unit with a test */
#ifndef READING_H
#define READING_H

#define place source_place /* tools/cli/input.c has its own */
#include "tools/common/source.c"
#undef place
#include "tools/common/column_text.c"
#include "tools/common/convert.c"
#include "tools/common/convert_html.c"
#include "tools/common/convert_mail.c"
#include "tools/common/convert_notebook.c"
#include "tools/common/convert_roff.c"
#include "tools/common/decode.c"
#include "tools/common/encoding.c"
#include "tools/common/encoding_named.c"
#include "tools/common/filters.c"
#include "tools/common/filters_run.c"
#include "tools/common/heads.c"
#include "tools/common/json.c"
#include "tools/common/made.c"
#include "tools/common/markup.c"
#include "tools/common/reader.c"
#include "tools/common/records.c"
#include "tools/common/table.c"
#include "tools/common/text.c"
#include "tools/common/text_cache.c"
#include "tools/common/unpack.c"
#include "tools/common/unpack_bzip2.c"
#include "tools/common/unpack_lzma.c"
#include "tools/common/unpack_zlib.c"
#include "tools/common/unpack_zstd.c"

#endif
