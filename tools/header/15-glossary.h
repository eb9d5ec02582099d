
/* ############################################################################
 * IMPLEMENTATION
 *
 * [glossary]  One word for one thing, here and in gpuir_cuda.cu:
 *
 *   posting      a docID of a term's list with the frequency beside it
 *   docID        the number of a document, from 0, in the order in which documents were added
 *   tf           term frequency: how often the term stands in the document, at least 1. A stream of
 *                frequencies holds tf - 1, "frequencies less one"
 *   df, cf       of a term: the number of its postings; the sum of their tf
 *   list         the postings of one term: inline (df 1), short (2 to 127) or long (128 or more)
 *   block        128 postings of a long list; the last block may hold fewer
 *   directory    what is known of a long list's blocks without decoding them: of each block its last
 *                docID, its place and width in both streams, and its bounds
 *   stream       the encoded docIDs, or the encoded frequencies, of one list
 *   codec        a way to encode a stream; a coding is a codec with its parameter
 *   gap          a docID less its predecessor less one
 *   width        the number of bits in which a codec stores a value
 *   exception    a value too large for its block's width: its low bits stand with the others, its
 *                high bits apart
 *   contribution what one posting adds to its document's score: an integer
 *   impact       a (tf, length) pair whose contribution no posting of a block, or of a list, exceeds
 *   bound        the most that a block, a list or a tile can contribute under the query's k1 and b
 *   threshold    the least score that still enters the top-k; it only rises
 *   top-k        the best k hits so far, in a heap
 *   cursor       a list under evaluation: its place, and the one block of it that is decoded
 *   candidate    a document that may be a hit and has not been ruled out
 *   driver       the list, or its block, whose postings are the candidates: the shortest list of an AND
 *   essential    an OR orders a tile's terms by bound per posting and splits them: the longest prefix
 *                whose bounds together stay below the threshold is non-essential, as a document with
 *                only such terms is no hit; the rest is essential, and gives the candidates
 *   tile         a range of docIDs, a power of two long, that is evaluated at a time
 *   accumulator  one document's score as far as it has been added up
 *   dense        a list of so many documents that it has a bit for each beside its blocks; its peaks
 *                are the greatest saturations of 64 documents each
 *   seed         a k-th greatest contribution of a list, stored so that an OR starts with a threshold
 *   share        a search that several threads evaluate: one owns it, others help
 *   backlog      what the tasks that wait in a pool are estimated to cost, in ns
 *   run          the builder's sorted postings of some documents, in memory or spilled to a file
 *   spool        a temporary file that is written from front to back
 *   level        of SIMD: scalar, AVX2 or AVX-512
 * ##########################################################################*/
#if defined(GPUIR_IMPLEMENTATION) && !defined(GPUIR_IMPLEMENTED)
#define GPUIR_IMPLEMENTED

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#ifndef XXH_NO_INLINE_HINTS
#define XXH_NO_INLINE_HINTS 1 /* with them gcc -Og does not compile it; gpuir__token_hash inlines what it needs */
#endif
#ifdef __has_include
#if !__has_include(<xxhash.h>)
#error "gpuir.h: needs xxhash.h: install libxxhash-dev (Debian, Ubuntu) or xxhash-devel (Fedora)"
#endif
#endif
#include <xxhash.h>

#ifndef O_CLOEXEC /* the first header of a file decides what all of them declare */
#error "gpuir.h: POSIX is hidden: include the implementation before any other header, or use -std=gnu99"
#endif
/* 16 says that _Float16 is evaluated in its own type, and changes nothing for float (ISO/IEC TS 18661-3, 5.2). gcc has
 * it for processors with AVX512-FP16. */
#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16
#error "gpuir.h: binary32 arithmetic must round to binary32 (FLT_EVAL_METHOD 0; on 32-bit x86 use -msse2 -mfpmath=sse)"
#endif
#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "gpuir.h: needs a little-endian machine"
#endif

#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#pragma GCC diagnostic push /* gcc does not see that of a block only the parts that it has are asked for */
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#if !defined(GPUIR_NO_SIMD) && defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__)) && !defined(__CUDACC__)
#define GPUIR__X86 1
#ifndef __clang__ /* gcc 12 warns of what its own <avx512fintrin.h> does: undefined operands (bug 105593), masks */
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#endif
#include <immintrin.h>
#else
#define GPUIR__X86 0
#endif

/* Begins a function that the CUDA kernels share: it is compiled for both sides. */
#ifdef __CUDACC__
#define GPUIR_HD __host__ __device__ static inline
#else
#define GPUIR_HD static inline
#endif

#if defined(__GNUC__) || defined(__clang__)
#define GPUIR__PRINTF(f, a) __attribute__((format(printf, f, a)))
#define GPUIR__NOINLINE static __attribute__((noinline)) /* not copied to its callers */
#define GPUIR__COLD __attribute__((cold)) /* seldom runs: small before fast */
#define GPUIR__HOT __attribute__((hot)) /* though its callers are cold */
#define GPUIR__FLAT __attribute__((flatten)) /* all that it calls is inlined in it */
#define GPUIR__LIKELY(x) __builtin_expect(!!(x), 1)
#define GPUIR__UNLIKELY(x) __builtin_expect(!!(x), 0)
#define GPUIR__UNUSED __attribute__((unused))
#else
#error "gpuir.h: needs gcc or clang"
#endif
