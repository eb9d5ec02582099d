/* small.h - small tiles, windows and limits, so that small collections have many of them; include before private.h
 *
 * Tests that include it share one object, which is compiled with it. Nothing is synced to disk: what a loss of power
 * leaves is another test's.
 */
#ifndef SMALL_H
#define SMALL_H

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <unistd.h>

#define fsync(fd) ((void)(fd), 0)
#define GPUIR__TILE_SHIFT 6u
#define GPUIR__MAX_TILES 8u
#define GPUIR__FIRST_TILES 2u
#define GPUIR__UP_FRONT 160u
#define GPUIR__WINDOW 128u
#define GPUIR__UNION_SHIFT 7u
#define GPUIR__OVERLAP 2u
#define GPUIR__SPAN 1024u /* 65,536 documents */
#define GPUIR__LOG_SORTED 8u
#define GPUIR__LOG_LOOKUP 1u
#define GPUIR__SKIP_CHUNKS 32u
#define GPUIR__QUICK_CHUNKS 8u
#define GPUIR__WAITING 3u
#define GPUIR__UNCOUNTED 208u
#define GPUIR__SORT_SAMPLED 8u
#define GPUIR__SORT_PART 2u
#define GPUIR__JOINT_LISTS 48u
#define GPUIR__UNION_OPENED 64u
#define GPUIR__PREFIX_POSTINGS small_prefix_postings
#undef GPUIR__DENSE_LEAST
#define GPUIR__DENSE_LEAST 1u
#undef GPUIR__DENSE_DEFAULT
#define GPUIR__DENSE_DEFAULT 3u

extern unsigned small_prefix_postings; /* a test's own: random prefixes stand for most of a collection in some */

#endif
