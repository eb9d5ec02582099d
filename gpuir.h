/* gpuir.h - ranked text search in one C header                     version 0.1.0
 *
 * An index file format, a builder and a query engine that ranks documents with
 * BM25, exactly and repeatably: one thread, many threads, any SIMD level and the
 * GPU backend (gpuir_cuda.cu) return bit-identical hits.
 *
 * HOW TO INCLUDE IT
 *   In exactly one C or C++ file, before any other include:
 *
 *       #define GPUIR_IMPLEMENTATION
 *       #include "gpuir.h"
 *
 *   and plainly `#include "gpuir.h"` elsewhere. It needs C99 (or C++17), a POSIX
 *   system, gcc or clang, xxHash (xxhash.h, header only), and -lm -pthread. With
 *   gcc -Og, xxHash's header may need -DXXH_NO_INLINE_HINTS=1 to compile.
 *
 * CONTENTS
 *   Search for a tag in brackets to get there.
 *
 *   The interface
 *     [api-configuration]  [api-quick-start]  [api-contracts]
 *     [api-status]     status and errors         [api-build]      building an index
 *     [api-open]       opening an index          [api-live]       an index that changes
 *     [api-documents]  documents, terms,         [api-search]     queries and searching
 *                      statistics                [api-passages]   where texts answer a query
 *                                                [api-cursor]     the postings of one term
 *                                                [api-backends]   backends; the GPU
 *                                                [api-lab]        the laboratory: to compare methods
 *
 *   The implementation is a ladder: each part uses only parts above it; its words are explained
 *   under [glossary]. The test of [NN-name] is tests/unit/NN_name.c, with _ for -. "lab" parts are
 *   left out by GPUIR_NO_LAB.
 *
 *     [01-base]        status, allocator, buffers, files            gpuir__fail gpuir__spool_put
 *     [02-vectors]     bits, packed numbers, gaps                   gpuir__load64 gpuir__sum_gaps_scalar
 *     [03-codecs]      the seam of codecs; vbyte                    gpuir__codec gpuir__vbyte_encode
 *     [04-bp128]       the default codec                            gpuir__bp128_encode
 *     [05-lab-unary]   lab: ef, qs, rice                            gpuir__ef_encode gpuir__qs_encode
 *     [06-lab-pfor]    lab: pfd, pfd-list, parapfor                 gpuir__pfd_encode gpuir__para_encode
 *     [07-lab-lines]   lab: lrc, lrcseg, seglrc, hslrc              gpuir__lrc_encode gpuir__hslrc_encode
 *     [08-codings]     the tables of codecs; how users spell them   gpuir__coding_parse
 *     [09-postings]    scores, bounds, records, list views, cursor  gpuir__contribution gpuir__cursor_seek
 *     [09b-positions]  where in its documents a term stands         gpuir__positions_encode gpuir__occurrences_next
 *     [10-encoder]     from postings to streams and directory       gpuir__encode_list
 *     [11-analysis]    from text to terms                           gpuir__analyze gpuir__pool_take
 *     [11b-dictionary] terms and records, front-coded in blocks     gpuir__dict_find gpuir__dict_encode
 *     [12-writer]      index file: layout, writer                   gpuir__writer_finish
 *     [13-reader]      index file: open, look-ups, verify           gpuir__segment_open gpuir__list_open
 *     [13b-snapshot]   segments, less deleted documents, as one index  gpuir__index_make gpuir__leaf_df
 *     [14-inversion]   builder: documents to sorted runs            gpuir__worker_packet gpuir__worker_spill
 *     [15-merge]       builder: adding documents; runs to lists     gpuir_builder_add_text gpuir__builder_merge
 *     [15b-builder]    builder: lists that are given; the index     gpuir_builder_create gpuir_builder_write
 *     [16-query]       words to weighted terms                      gpuir_query_parse
 *     [17-topk]        bounds at query time; the best k             gpuir__bound gpuir__topk_push
 *     [18-lookup]      candidates looked up in a list               gpuir__lookup
 *     [19-methods]     lab: intersection methods; their table       gpuir__methods
 *     [20-engine]      kernels, tiles, cursors, deadlines           gpuir__engine_open
 *     [21-and]         AND                                          gpuir__eval_and
 *     [21b-phrases]    phrases and prefixes                         gpuir__terms_open gpuir__eval_phrases
 *     [22-or]          OR, pruned                                   gpuir__eval_or
 *     [23-exhaustive]  the reference without bounds; OR counted     gpuir__eval_exhaustive gpuir__count_or
 *     [24-execution]   searchers, batches, explain, backends        gpuir_search gpuir_search_batch
 *     [25-folder]      live indexes: the folder, opening            gpuir__manifest_parse gpuir_open
 *     [26-live]        live indexes: adding, deleting, committing   gpuir_live_refresh gpuir_live_commit
 *     [27-live-merge]  live indexes: merging                        gpuir_live_merge gpuir__live_choose
 *     [28-passages]    the places of a text that answer a query     gpuir_passages gpuir__windows_from
 *     [29-near]        terms that are written nearly as a word      gpuir_terms_near gpuir__near_walk
 *
 * [api-configuration]  CONFIGURATION MACROS
 *   Define them before including the header; [I] matters only in the file that
 *   defines GPUIR_IMPLEMENTATION, [A] must be the same in all files.
 *     GPUIR_IMPLEMENTATION   [I] compile the implementation here
 *     GPUIR_STATIC           [A] make every function static (one-file programs)
 *     GPUIR_API              [A] linkage of public functions, extern by default
 *     GPUIR_WITH_UTF8PROC    [I] the `unicode` analyzer, by utf8proc
 *     GPUIR_WITH_STEMMER     [I] stemming, by libstemmer (Snowball)
 *     GPUIR_NO_SIMD          [I] leave the AVX2 and AVX-512 code out
 *     GPUIR_NO_LAB           [I] leave out the codecs and intersection methods of the
 *                            literature: the engine's own, vbyte, bp128 and simd, stay
 *
 * [api-quick-start]  QUICK START
 *
 *       #define GPUIR_IMPLEMENTATION
 *       #include "gpuir.h"
 *       #include <stdio.h>
 *       #include <string.h>
 *
 *       int main(void) {
 *         const char *text[] = {"the quick brown fox", "the lazy dog", "a quick dog"};
 *         gpuir_builder_desc bd = {0};
 *         gpuir_builder *b;
 *         gpuir_error err;
 *         bd.path = "toy.gpuir";
 *         if (gpuir_builder_create(&bd, &b, &err)) { puts(err.msg); return 1; }
 *         for (int i = 0; i < 3; i++) gpuir_builder_add_text(b, NULL, text[i], strlen(text[i]), &err);
 *         if (gpuir_builder_write(b, NULL, &err)) puts(err.msg);
 *         gpuir_builder_destroy(b);
 *
 *         gpuir_index *ix; gpuir_searcher *s; gpuir_query *q; gpuir_hit hit[10]; size_t n;
 *         if (gpuir_open("toy.gpuir", NULL, &ix, &err)) { puts(err.msg); return 1; }
 *         gpuir_searcher_create(ix, NULL, &s, &err);
 *         if (!gpuir_query_parse(ix, NULL, "quick dog", 9, &q, &err) && !gpuir_search(s, q, hit, 10, &n))
 *           for (size_t i = 0; i < n; i++) printf("document %u scores %.4f\n", hit[i].docid, gpuir_score(hit[i]));
 *         gpuir_query_destroy(q); gpuir_searcher_destroy(s); gpuir_close(ix);
 *         return 0;
 *       }
 *
 * [api-contracts]  CONTRACTS
 *   Ownership    Every handle is released by its own _destroy or _close, which
 *                accept NULL. A query and a searcher belong to the index they were
 *                made for and must go before it. Results are written to the
 *                caller's arrays. Pointers into an index (text, terms, names)
 *                live until gpuir_close.
 *   Descriptors  A zeroed descriptor, or NULL, means the defaults.
 *   Threads      An open index is immutable and shared by any number of threads.
 *                A query is immutable once parsed. A searcher and a builder serve
 *                one thread at a time. Functions that differ say so.
 *   Errors       Functions return GPUIR_OK (0) or a negative GPUIR_E_ code and
 *                fill the gpuir_error when one is given. Nothing prints, exits
 *                or asserts on input.
 *   Durability   A builder writes to PATH.tmp, which it locks, and renames it over
 *                PATH after fsync; until then, and on any failure before, a previous
 *                index at PATH stays whole. If the folder cannot be synced after the
 *                rename, the error says that the new index is in place. Spilled runs
 *                are unlinked files in the same folder: a killed build leaves at most
 *                PATH.tmp behind (and an empty PATH.tmp.N, if killed while it opened
 *                that), and the next build to PATH removes them.
 *   Permissions  A new index gets the mode that the umask gives. One that replaces
 *                another keeps that one's mode and, where the system allows it, its
 *                owner and group; so do new files of a live index, from its manifest.
 *                If PATH is a link, the link stays and its target is replaced; the link
 *                of another user (root excepted) is refused. Temporary files are made
 *                anew and follow no link: nobody who may write the folder can have
 *                another file overwritten.
 *   Hostile data A damaged or malicious file is refused, or gives wrong hits; it
 *                never makes the library read or write out of bounds, hang or crash.
 *                A file that is truncated by another process while it is mapped
 *                raises SIGBUS, as with any mmap: replace files by rename.
 *   Determinism  The same input gives the same index bytes, whatever the threads,
 *                the SIMD level and the memory budget.
 *   fork         Do not use a handle in a child of fork that its parent still uses,
 *                except an open index, which may be read.
 *   Limits       2^32-2 documents; terms of 1 to 255 bytes; 64 distinct terms a
 *                query; term frequencies and lengths count up to 2^24-1 in scores.
 *   Positions    A token's position is its number among the document's indexed tokens:
 *                stop words and dropped tokens have none. A phrase is analysed as one
 *                text and occurs where its tokens have consecutive positions;
 *                occurrences may overlap. Its tf is their number, its idf the sum of
 *                its tokens' idf.
 *   Prefix       word* stands for all terms of live documents that begin with the
 *                folded word; more than 1,024, or 2^24 postings, is LIMIT. It scores as
 *                one term: tf the sum, df the greatest of its members'. Not on stemmed
 *                indexes.
 *   It does NOT do fields, spelling, facets or network access.
 *
 *   Of live indexes, see [api-live]:
 *   Snapshots    An open index is one immutable snapshot. A docID names a document in its
 *                snapshot only; refresh, commit and merge may give it another. Smaller
 *                docIDs were added earlier, always.
 *   Exactness    Whatever was added, deleted, refreshed and merged in whatever order, a
 *                snapshot answers as an index built at once from its live documents in the
 *                order of their last add: the same documents, in the same order, with the
 *                same scores, counts and errors. Their docIDs differ where documents were
 *                deleted. N, lengths and df count live documents only; a term of no live
 *                document is unknown.
 *   Bytes        gpuir_live_merge(all) leaves one segment with, byte for byte, the file that
 *                the builder of the same version writes from the live documents in that
 *                order with the same settings.
 *   Durability   What was added or deleted before gpuir_live_commit returned GPUIR_OK
 *                survives a crash of process or machine; what came after it may be lost as a
 *                whole, never in part. After GPUIR_E_IO from commit the snapshots stay
 *                usable, the last commit stands, and the handle can only be closed.
 *   Visibility   refresh: in this process, through the returned index. commit: whoever opens
 *                the folder afterwards. A delete and an add between two refreshes become
 *                visible together.
 *   Locks        One writer a folder, else BUSY. Readers take no lock. The lock ends with the
 *                process and its forked children. Local file systems only.
 *   Threads      One thread uses a gpuir_live; gpuir_live_merge may run in one more. The
 *                library starts no thread that outlives a call.
 *   Deleted text stays in the files until they are merged.
 */
#ifndef GPUIR_H
#define GPUIR_H

#if defined(GPUIR_IMPLEMENTATION) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif

#include <stddef.h>
#include <stdint.h>

#ifdef __FAST_MATH__
#error "gpuir.h: scores must be exact; compile without -ffast-math"
#endif

#define GPUIR_VERSION_MAJOR 0
#define GPUIR_VERSION_MINOR 1
#define GPUIR_VERSION_PATCH 0
#define GPUIR_VERSION_NUMBER (GPUIR_VERSION_MAJOR * 10000 + GPUIR_VERSION_MINOR * 100 + GPUIR_VERSION_PATCH)

#ifndef GPUIR_API
#ifdef GPUIR_STATIC
#define GPUIR_API static __attribute__((unused))
#else
#define GPUIR_API extern
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ============================================================================
 * [api-status]  status and errors
 * ==========================================================================*/

enum {
  GPUIR_OK = 0,
  GPUIR_E_ARGUMENT = -1,     /* a NULL or contradictory argument */
  GPUIR_E_NOMEM = -2,        /* the allocator returned NULL */
  GPUIR_E_IO = -3,           /* a system call failed; msg holds its reason */
  GPUIR_E_FORMAT = -4,       /* not an index, or a damaged one */
  GPUIR_E_VERSION = -5,      /* an index of another format, or with an unknown required section */
  GPUIR_E_CHECKSUM = -6,     /* a section's checksum is wrong */
  GPUIR_E_RANGE = -7,        /* k1, b or the sum of weights lie outside what a score can hold */
  GPUIR_E_QUERY = -8,        /* a quote is not closed, or no positive term is left in the query */
  GPUIR_E_TERMS = -9,        /* more than GPUIR_MAX_TERMS distinct terms */
  GPUIR_E_DEADLINE = -10,    /* the searcher's timeout ran out */
  GPUIR_E_CANCELLED = -11,   /* the cancel flag or a callback said stop */
  GPUIR_E_UNSUPPORTED = -12, /* the build lacks an analyzer, codec ..., or the index positions */
  GPUIR_E_LIMIT = -13,       /* a limit of the format is exceeded */
  GPUIR_E_BUSY = -14,        /* another process builds the same index; or two batches are in flight already */
  GPUIR_E_NOT_FOUND = -15,   /* no such term or document */
  GPUIR_E_BACKEND = -16      /* a backend failed; msg holds its reason */
};

#define GPUIR_MAX_TERM 255        /* bytes of a term */
#define GPUIR_MAX_TERMS 64        /* distinct terms of a query, positive and negated together */
#define GPUIR_END UINT32_MAX      /* what an exhausted cursor's docID is */
#define GPUIR_SCORE_ONE 1048576.0 /* the fixed-point unit of gpuir_hit.score: 2^20 */

/* Detail of a failure; filled only when a function fails. `offset` is a byte offset in the
 * file (or in the query text) where that makes sense, otherwise 0. */
typedef struct gpuir_error {
  int code;
  uint64_t offset;
  char msg[160];
} gpuir_error;

/* A short English name of a status code; never NULL. Thread-safe. */
GPUIR_API const char *gpuir_strerror(int status);
/* The linked implementation's GPUIR_VERSION_NUMBER and its text, "0.1.0". */
GPUIR_API unsigned gpuir_version_number(void);
GPUIR_API const char *gpuir_version(void);

/* Memory hook. resize(user, NULL, 0, n) allocates, resize(user, p, old, n) grows or shrinks
 * and resize(user, p, old, 0) frees; NULL means out of memory. It must be thread-safe and
 * return memory aligned for any type. A NULL function stands for malloc, realloc and free. */
typedef struct gpuir_allocator {
  void *(*resize)(void *user, void *ptr, size_t old_size, size_t new_size);
  void *user;
} gpuir_allocator;

/* SIMD levels; GPUIR_SIMD_AUTO takes the best that the machine has. Asking for a level that
 * it lacks gives the best below. All levels give the same bytes and hits. */
enum { GPUIR_SIMD_AUTO = 0, GPUIR_SIMD_SCALAR = 1, GPUIR_SIMD_AVX2 = 2, GPUIR_SIMD_AVX512 = 3 };
/* "scalar", "avx2" or "avx512": what the level `simd` comes to on this machine. */
GPUIR_API const char *gpuir_simd_name(int simd);

/* ============================================================================
 * [api-open]  opening an index
 * ==========================================================================*/

typedef struct gpuir_index gpuir_index;

/* Receives one token. Returns 0, or a GPUIR_E_ code that ends the analysis. */
typedef int (*gpuir_token_fn)(void *sink, const char *token, size_t len);
/* A tokenizer: calls emit(sink, token, len) for each token of text[0..len), in order, and
 * returns the first non-zero answer of emit, or 0. Must be thread-safe. Tokens need not be
 * NUL-terminated; those over GPUIR_MAX_TERM bytes are dropped and counted, empty ones ignored. */
typedef int (*gpuir_tokenize_fn)(void *user, const char *text, size_t len, gpuir_token_fn emit, void *sink);

typedef struct gpuir_open_desc {
  const gpuir_allocator *allocator; /* copied; NULL: malloc */
  int simd;                         /* GPUIR_SIMD_ level for everything done on this index */
  gpuir_tokenize_fn tokenize;       /* needed to parse queries on an index built with one */
  void *tokenize_user;
  /* An index in memory instead of a file: the bytes of one, data[0..size), aligned to 8 bytes. They are not copied:
   * they stay where and as they are until gpuir_close. NULL: `path` is opened. */
  const void *data;
  size_t size;
  /* An open index whose files are taken over where the folder `path` still has them: to open a live index again costs
   * little then. It may be closed before or after the new one. NULL: none. */
  const gpuir_index *share;
} gpuir_open_desc;

/* Maps the index file `path`, or the files of the last commit in the folder of a live index, or takes the index in
 * memory that `desc` names (then `path`, which may be NULL, only stands in messages), and checks its header, section
 * table and ranges (not its checksums: see gpuir_verify). The path is not needed afterwards and may be replaced. *index
 * is released by gpuir_close. `desc` may be NULL.
 * Errors: ARGUMENT (also for bytes that are not aligned), IO, FORMAT, VERSION, NOMEM, LIMIT (a file larger than the
 * address space); BUSY (the writer of a live index committed again and again meanwhile); UNSUPPORTED when GPUIR_NO_LAB
 * leaves out the index's codec. An analyzer that this build lacks is no error here, but in gpuir_query_parse.
 * Thread-safe. */
GPUIR_API int gpuir_open(const char *path, const gpuir_open_desc *desc, gpuir_index **index,
                         gpuir_error *err);
/* Unmaps and frees; NULL is allowed. The index's queries, searchers and cursors must be gone. */
GPUIR_API void gpuir_close(gpuir_index *index);
/* Reads the whole file: checksums, order of terms, every list decoded and held against its
 * directory, bounds and lengths. Errors: CHECKSUM, FORMAT (with the offset), NOMEM. */
GPUIR_API int gpuir_verify(const gpuir_index *index, gpuir_error *err);
/* Holds the directory of the lists against itself, without decoding any: each list begins behind the one of the term
 * before, and their postings add up to what the index states. So reading every list once costs time and space in
 * proportion to the file's size, which a hostile file could otherwise multiply by naming one list in many terms: call
 * it before reading all lists of a file that is not trusted. Thread-safe. Errors: ARGUMENT, FORMAT (with the
 * offset). */
GPUIR_API int gpuir_verify_directory(const gpuir_index *index, gpuir_error *err);

/* ============================================================================
 * [api-documents]  documents, terms, statistics
 * ==========================================================================*/

typedef struct gpuir_index_info {
  uint64_t documents, tokens; /* tokens: the sum of document lengths */
  uint64_t docids;   /* all docIDs lie below: documents, and those that were deleted and not merged away */
  uint64_t segments; /* files; what follows of terms, lists and bytes is summed up over them */
  uint64_t terms, postings;
  double average_length; /* tokens / documents; 0 without documents */
  float k1, b;           /* BM25 parameters stored in the index */
  uint64_t file_bytes;
  uint64_t docids_bytes, freqs_bytes, directory_bytes; /* of lists with two postings or more */
  uint64_t inline_postings;                            /* lists of one posting, kept in the term's record */
  uint64_t dictionary_bytes, documents_bytes, text_bytes;
  double bits_per_posting; /* (docIDs + frequencies + directory + 8 bytes an inline posting) */
  const char *analyzer;    /* its specification, e.g. "ascii stem=porter stop=english" */
  const char *codec;       /* of docIDs: the builder's choice */
  const char *freq_codec;
  const char *description; /* of the corpus, as given to the builder */
  const char *order;       /* of the documents, as given to the builder; "unknown" when it was not */
  uint64_t generation;     /* of a live index: the number of commits; of a file 0 */
  uint64_t content;  /* of a live index: the number of commits that changed its documents; of a file 0 */
  const char *tool;  /* what wrote the file */
  int has_text;      /* documents carry their text */
  int has_positions; /* phrases can be asked for */
  uint64_t positions_bytes;
} gpuir_index_info;

/* Fills *info. Strings live as long as the index, and are those of its first segment. */
GPUIR_API int gpuir_index_get_info(const gpuir_index *index, gpuir_index_info *info);
/* Returns the i-th segment of the index as an index of its own, whose document d is the index's *base + d (base may be
 * NULL); NULL behind the last one. It is released with `index`. Thread-safe. */
GPUIR_API const gpuir_index *gpuir_index_segment(const gpuir_index *index, size_t i, uint32_t *base);

/* A document. All pointers live until gpuir_close, and so does a copy of this struct; no text is NUL-terminated. */
typedef struct gpuir_doc {
  /* The name is name_piece[0] with name_piece[1] behind it: see gpuir_doc_name. A name that begins as its source's path
   * ends, such as that of a chunk, is stored without that beginning; all others are one piece, and the second is "". */
  size_t name_len; /* bytes of both; 0: no name was given */
  const char *name_piece[2];
  size_t name_piece_len[2];
  const char *source; /* path of the file the document came from; len 0: none */
  size_t source_len;
  uint32_t first_line; /* lines [first_line, last_line] of source, from 1; 0: the whole file */
  uint32_t last_line;
  /* Bytes [source_offset, source_offset + source_bytes) of source: the text, or the record that it was taken from. Both
   * 0: not known. */
  uint64_t source_offset, source_bytes;
  uint64_t hash;    /* XXH3-64 of these bytes or, where they are not known, of the text; 0: not known */
  const char *text; /* stored text, or NULL */
  size_t text_len;
  uint32_t length; /* tokens */
} gpuir_doc;

/* Describes document `docid`. Thread-safe. Errors: ARGUMENT; NOT_FOUND when docid >= docids or deleted; FORMAT. */
GPUIR_API int gpuir_doc_get(const gpuir_index *index, uint32_t docid, gpuir_doc *doc);
/* Copies the document's name to buf[0..cap), cut off where it does not fit, and a NUL behind it (cap 0: nothing, and
 * buf may be NULL). Returns doc->name_len. Names are any bytes, NUL among them. Thread-safe. */
GPUIR_API size_t gpuir_doc_name(const gpuir_doc *doc, char *buf, size_t cap);

typedef struct gpuir_term_info {
  uint64_t id;                   /* rank in byte order of terms, from 0 */
  char term[GPUIR_MAX_TERM + 1]; /* its bytes, and a NUL behind them */
  size_t term_len;
  uint32_t df; /* documents that hold the term */
  uint64_t cf; /* its occurrences */
  float idf;   /* ln((2N+2)/(2df+1)), computed in integers: the same bits on every machine */
  const char *codec, *freq_codec; /* "inline" for a list of one posting */
  uint64_t docids_bytes, freqs_bytes, directory_bytes, positions_bytes;
  uint32_t blocks; /* of 128 postings */
} gpuir_term_info;

/* Counts the documents that hold a term, given by its bytes (no analysis), and its occurrences in them; df and cf may
 * be NULL. Thread-safe. Errors: ARGUMENT; NOT_FOUND if no document holds it; FORMAT, NOMEM, UNSUPPORTED (its codec). */
GPUIR_API int gpuir_term_count(const gpuir_index *index, const char *term, size_t len, uint32_t *df,
                               uint64_t *cf);
/* Finds an indexed term by its bytes (no analysis). Term ids, here and below, are those of one segment: with several,
 * or with deletions, these functions return UNSUPPORTED. Errors: ARGUMENT, NOT_FOUND, UNSUPPORTED. */
GPUIR_API int gpuir_term_find(const gpuir_index *index, const char *term, size_t len, uint64_t *id);
/* The least term id whose term is >= the given bytes: the start of a prefix range. 0 where there are no ids. */
GPUIR_API uint64_t gpuir_term_lower_bound(const gpuir_index *index, const char *term, size_t len);
/* Statistics of term `id`. cf of a short list is summed by decoding it. Errors: NOT_FOUND, FORMAT, UNSUPPORTED. */
GPUIR_API int gpuir_term_get_info(const gpuir_index *index, uint64_t id, gpuir_term_info *info);
/* Decodes term `id`'s list to docids[0..df) and tfs[0..df), of which one may be NULL; df: see gpuir_term_get_info.
 * Errors: NOT_FOUND, NOMEM, UNSUPPORTED; FORMAT for docIDs that do not ascend, or name no document. Thread-safe. */
GPUIR_API int gpuir_term_postings(const gpuir_index *index, uint64_t id, uint32_t *docids, uint32_t *tfs);
/* Decodes term `id`'s positions to positions[0..n), where n must be the sum of its tfs: those of its first document,
 * ascending, then those of its second ... A token's position is its number among the document's indexed tokens, from 0:
 * stop words and dropped tokens have none. Errors: NOT_FOUND, NOMEM; UNSUPPORTED for an index built without positions;
 * ARGUMENT for another n; FORMAT for positions that do not ascend, or lie behind the document's end. Thread-safe. */
GPUIR_API int gpuir_term_positions(const gpuir_index *index, uint64_t id, uint32_t *positions, uint64_t n);
/* Runs the index's analyzer over a text. Errors: UNSUPPORTED, NOMEM, or what emit returned. */
GPUIR_API int gpuir_analyze(const gpuir_index *index, const char *text, size_t len, gpuir_token_fn emit,
                            void *sink, gpuir_error *err);

/* ============================================================================
 * [api-build]  building an index
 * ==========================================================================*/

typedef struct gpuir_analyzer_desc {
  const char *analyzer;       /* "ascii" (NULL: default), "unicode", or the name of `tokenize` */
  const char *stem;           /* a libstemmer algorithm such as "porter" or "english"; NULL: none */
  const char *stop;           /* built-in stop list "english"; NULL: none */
  const char *stop_words;     /* or a list of words parted by white space; not with `stop` */
  gpuir_tokenize_fn tokenize; /* the caller's own tokenizer; `analyzer` must then name it */
  void *tokenize_user;
} gpuir_analyzer_desc;

typedef struct gpuir_progress {
  uint64_t documents, bytes; /* added so far */
  uint64_t terms_done;       /* of the final merge; 0 before */
  uint64_t postings_done, postings_total;
} gpuir_progress;

/* Codecs of docIDs, "NAME" or "NAME:PARAM" (the index keeps the string):
 *   bp128, vbyte, pfd, newpfd, optpfd, ef, rice
 *   qs[:C]                  C, 0.25 to 4 (1): log2 of C u / n lower bits
 *   pfd-list[:LEVELS]       0 to 4 (1) levels by which exceptions are compressed recursively
 *   parapfor[:[S][,E]]      segments of S = 64, 128 (default) or 256; E, 0 to 1 (0.1): the proportion of
 *                           exceptions a segment at most, or "min" for its smallest size
 *   lrc, lrcseg, seglrc     the same, by default :256,0
 *   hslrc[:[S][,E]]         buckets of S = 32, 64, 128 or 256 (default) docIDs on average; E as above (0)
 *   auto[:W]                of each list the codec that makes bytes * (1 + W * cost) least; W, 0 (default:
 *                           the smallest) to 1, is the weight of speed, cost that of decoding relative
 *                           to bp128: fixed figures, so that the same input gives the same bytes */
typedef struct gpuir_builder_desc {
  const char *path;                 /* of the index to write; copied */
  const gpuir_allocator *allocator; /* copied; NULL: malloc */
  gpuir_analyzer_desc analyzer;     /* strings copied */
  const char *codec;                /* docIDs: a codec and its parameter, see above; NULL: "bp128" */
  const char *freq_codec;  /* frequencies: "bp128" (NULL), "vbyte", "newpfd", "optpfd" or "auto[:W]" */
  int custom_bm25;         /* not 0: k1 and b below; otherwise 0.9 and 0.4 */
  float k1, b;             /* k1 in [0, 1000], b in [0, 1] */
  uint64_t memory;         /* budget in bytes for anonymous memory; 0: 512 MiB */
  unsigned threads;        /* 0: as many as processors */
  int store_text;          /* keep each document's text in the index */
  int positions;           /* keep where in its documents each term stands: for phrases */
  const char *description; /* of the corpus, one line; NULL: "" */
  const char *order;       /* in which documents come, at most 63 bytes: "original" (as the collection has
                            * them), "bisect" ...; never interpreted. NULL: not known */
  int simd;                /* GPUIR_SIMD_ level */
  /* An open index whose analyzer is taken in place of `analyzer`, and from which come the codecs, k1, b, the
   * description and the order that are not given here. Needed only while the builder is created. NULL: none. */
  const gpuir_index *like;
  /* Called from the adding thread now and then; not 0 stops with GPUIR_E_CANCELLED. */
  int (*progress)(void *user, const gpuir_progress *progress);
  void *progress_user;
} gpuir_builder_desc;

/* What a document is called and where it comes from; all optional, copied. */
typedef struct gpuir_doc_desc {
  const char *name; /* name_len bytes; may repeat, is never interpreted */
  size_t name_len;
  const char *source; /* path; stored once, whatever documents share it */
  size_t source_len;
  uint32_t first_line; /* from 1; 0: the whole file */
  uint32_t last_line;
  uint64_t source_offset, source_bytes; /* see gpuir_doc; they count only with a source */
  /* See gpuir_doc. The library itself takes that of a text which is as long as source_bytes, or has no known place in
   * a source; this one is for all others: a record that is not the text, or a document copied without its text. */
  uint64_t hash;
} gpuir_doc_desc;

typedef struct gpuir_term_freq {
  const char *term; /* 1 to 255 bytes, taken as they are; distinct within a document */
  size_t len;
  uint32_t tf; /* at least 1 */
} gpuir_term_freq;

typedef struct gpuir_build_report {
  uint64_t documents, terms, postings, tokens;
  uint64_t dropped_tokens; /* of over 255 bytes, in what was given to gpuir_builder_add_text */
  uint64_t lost_documents; /* that had no other tokens, and so cannot be found */
  uint64_t text_bytes;     /* given to gpuir_builder_add_text */
  uint64_t runs;           /* sorted runs that were merged */
  uint64_t peak_memory;    /* bytes of anonymous memory the builder held at most */
  uint64_t file_bytes;
  int shared_folder; /* 1: other users may write the index's folder, and so replace the index */
} gpuir_build_report;

typedef struct gpuir_builder gpuir_builder;

/* Starts an index. Takes the lock on PATH.tmp. Errors: ARGUMENT (also for a path in the folder of a live index), NOMEM,
 * IO, BUSY, UNSUPPORTED. */
GPUIR_API int gpuir_builder_create(const gpuir_builder_desc *desc, gpuir_builder **builder, gpuir_error *err);
/* Adds the next document, whose docID is the number of documents added before. `text` is any
 * bytes; it is copied. After an error other than ARGUMENT the builder can only be destroyed.
 * Errors: ARGUMENT, NOMEM, IO, LIMIT, CANCELLED. */
GPUIR_API int gpuir_builder_add_text(gpuir_builder *builder, const gpuir_doc_desc *doc, const char *text,
                                     size_t len, gpuir_error *err);
/* Adds a document from counted terms. The document's length is the sum of tf. Errors: the same;
 * ARGUMENT for an empty or too long term, tf 0, or a term given twice, and with desc.positions. */
GPUIR_API int gpuir_builder_add_terms(gpuir_builder *builder, const gpuir_doc_desc *doc,
                                      const gpuir_term_freq *terms, size_t n, gpuir_error *err);
/* Adds a document to an index from postings instead of texts: first every document by gpuir_builder_add_doc, then every
 * list by gpuir_builder_add_list; not together with the two functions above. A length counts the document's tokens;
 * `text` is only stored (NULL, or when store_text is 0: not even that). Errors: as above. */
GPUIR_API int gpuir_builder_add_doc(gpuir_builder *builder, const gpuir_doc_desc *doc, uint32_t length,
                                    const char *text, size_t len, gpuir_error *err);
/* Adds a term's list: term t[0..len) comes behind those before it in byte order; docids[0..df) ascend and name added
 * documents, tfs[0..df) are at least 1. With desc.positions, positions[] has tfs[0] ascending positions in the first
 * document, then tfs[1] in the second ..., each below the document's length; otherwise it is NULL. Copied. Errors: the
 * same; ARGUMENT for a list that is not so. */
GPUIR_API int gpuir_builder_add_list(gpuir_builder *builder, const char *term, size_t len,
                                     const uint32_t *docids, const uint32_t *tfs, const uint32_t *positions,
                                     uint32_t df, gpuir_error *err);
/* Merges and writes the index; `report` may be NULL. Once, after which only _destroy is allowed.
 * Errors: NOMEM, IO, LIMIT, CANCELLED. */
GPUIR_API int gpuir_builder_write(gpuir_builder *builder, gpuir_build_report *report, gpuir_error *err);
/* Frees everything; without a successful write no trace is left on disk. */
GPUIR_API void gpuir_builder_destroy(gpuir_builder *builder);

/* ============================================================================
 * [api-live]  an index that changes
 *
 * A live index is a folder of index files, which gpuir_open opens as one. See [api-contracts] for what it promises.
 * ==========================================================================*/

typedef struct gpuir_live_desc {
  /* `path` is the folder's. Of a new index all but `order`, which must be NULL, count; of one that exists only
   * `allocator`, `memory`, `threads`, `simd` and the analyzer's `tokenize` do. Here memory 0 stands for 64 MiB, and
   * threads 0 for 1. */
  gpuir_builder_desc settings;
  int create; /* not 0: make the folder and an empty index in it, if there is none */
} gpuir_live_desc;

enum { GPUIR_BY_NAME = 0, GPUIR_BY_SOURCE = 1 };

typedef struct gpuir_live gpuir_live;

/* Opens a live index for writing and locks its folder. Errors: ARGUMENT, NOMEM, IO, UNSUPPORTED; BUSY: another writer
 * has it; FORMAT: a damaged index, or a folder that is none. */
GPUIR_API int gpuir_live_open(const gpuir_live_desc *desc, gpuir_live **live, gpuir_error *err);
/* Adds a document: the next refresh or commit shows it. Arguments as of gpuir_builder_add_text. Errors: ARGUMENT;
 * NOMEM, IO, LIMIT, CANCELLED, UNSUPPORTED: then the handle can only be closed. */
GPUIR_API int gpuir_live_add(gpuir_live *live, const gpuir_doc_desc *doc, const char *text, size_t len,
                             gpuir_error *err);
/* Deletes all documents whose name (GPUIR_BY_NAME) or source (GPUIR_BY_SOURCE) is these bytes, also those added since
 * the last refresh; the next refresh or commit shows it. *n (or NULL): how many they are; none is no error. To replace
 * a document, delete and add it. The first call of each kind reads all names or sources, and keeps 8 bytes a document.
 * Errors: ARGUMENT (also for no bytes); NOMEM; FORMAT for a damaged file: then the handle can only be closed. */
GPUIR_API int gpuir_live_delete(gpuir_live *live, int by, const char *bytes, size_t len, uint64_t *n,
                                gpuir_error *err);
/* Makes *index a snapshot with all that was added and deleted. It is released by gpuir_close, before or after the
 * handle, and shares with other snapshots what it has in common with them. Nothing is synced to disk. Errors: as of
 * gpuir_live_add. */
GPUIR_API int gpuir_live_refresh(gpuir_live *live, gpuir_index **index, gpuir_error *err);
/* Makes all that was added and deleted durable, and visible to whoever opens the folder. Errors: as of
 * gpuir_live_add. */
GPUIR_API int gpuir_live_commit(gpuir_live *live, gpuir_error *err);
/* Merges some files into one, if that is worth while, or with `all` all of them; deleted documents leave them.
 * Refreshed documents take part, and the next refresh or commit shows the result. *more (or NULL): 1 if another step is
 * worth while. May run in one other thread beside all other functions but gpuir_live_close. Errors: BUSY: another merge
 * is running; NOMEM, IO, FORMAT, UNSUPPORTED, CANCELLED: then nothing has changed. */
GPUIR_API int gpuir_live_merge(gpuir_live *live, int all, int *more, gpuir_error *err);
/* Releases the handle and the lock; NULL is allowed. What was not committed is gone. */
GPUIR_API void gpuir_live_close(gpuir_live *live);

/* ============================================================================
 * [api-search]  queries and searching
 * ==========================================================================*/

enum {
  GPUIR_AND = 0,  /* documents that hold every positive term */
  GPUIR_OR = 1,   /* documents that hold at least one */
  GPUIR_ANDOR = 2 /* AND; exactly OR's answer when fewer than k documents match AND */
};

typedef struct gpuir_query_desc {
  int mode;         /* GPUIR_AND, GPUIR_OR or GPUIR_ANDOR */
  int custom_bm25;  /* not 0: k1 and b below instead of the index's */
  float k1, b;      /* k1 in [0, 1000], b in [0, 1] */
  int no_operators; /* '-', '"' and '*' have no meaning (TREC topics) */
} gpuir_query_desc;

typedef struct gpuir_query gpuir_query;

/* Parses words parted by white space; a leading '-' negates a word. The index's analyzer turns
 * each word into tokens: those of a positive word all join the query, any of a negated word's
 * excludes. A term that occurs q times weighs q times. Unknown negated terms are ignored; an
 * unknown positive term makes AND empty.
 *
 * Only at the start of a word '"' or '-"' opens a phrase, which the next '"' closes; what follows begins a new word.
 * Only a last '*' behind a letter or digit makes a prefix of the word's last token, which is neither stopped nor
 * stemmed. All else is literal: ( ) ~ : + AND OR NOT have no meaning. A phrase of one token is that word; one with an
 * unknown term is unknown. The distinct terms, those of phrases included, are at most GPUIR_MAX_TERMS, and so are a
 * phrase's tokens.
 *
 * The text is any bytes and is not kept. Where documents were deleted, it counts those that hold each term: a
 * millisecond for some 2 million postings, once a process and file.
 * Errors: ARGUMENT, TERMS, RANGE, NOMEM; QUERY without a positive term, or for a quote that is not closed (err->offset
 * is the quote's in the text); LIMIT for a prefix of too many terms; UNSUPPORTED for a phrase in an index built without
 * positions, or a prefix where terms are stems; FORMAT for a damaged list. */
GPUIR_API int gpuir_query_parse(const gpuir_index *index, const gpuir_query_desc *desc, const char *text,
                                size_t len, gpuir_query **query, gpuir_error *err);
GPUIR_API void gpuir_query_destroy(gpuir_query *query);
/* Tells which words no live document has: the i-th of the query's positive words, prefixes (lik*) and words of phrases,
 * as terms; *term lives as long as the query. Errors: ARGUMENT; NOT_FOUND behind the last. Thread-safe. */
GPUIR_API int gpuir_query_unknown(const gpuir_query *query, size_t i, const char **term, size_t *len);

/* A term that is written nearly as a word is. */
typedef struct gpuir_near_term {
  char term[GPUIR_MAX_TERM + 1]; /* its bytes, and a NUL behind them */
  size_t len;
  uint32_t df;
  uint32_t
      distance; /* characters that are inserted, left out, replaced, or swapped with the next one: 1 or 2 */
} gpuir_near_term;

/* Finds the terms of live documents that are most like a word, which is taken as it is: one error away or, of a word of
 * six characters and more, two, then with its first character. One that differs in its first character begins with
 * another letter of a to z or digit, or without the word's first, or with its second. Writes the *n <= cap best: the
 * nearest, of these the most frequent. It walks the terms that begin with the word's first character. Thread-safe.
 * Errors: ARGUMENT, FORMAT, NOMEM, UNSUPPORTED (see gpuir_term_count). */
GPUIR_API int gpuir_terms_near(const gpuir_index *index, const char *term, size_t len, gpuir_near_term *found,
                               size_t cap, size_t *n);

typedef struct gpuir_hit {
  uint32_t docid;
  uint32_t score; /* fixed point, GPUIR_SCORE_ONE is 1.0 */
} gpuir_hit;

/* Returns the score as a real number. */
static inline double gpuir_score(gpuir_hit hit) { return (double)hit.score / GPUIR_SCORE_ONE; }

enum { GPUIR_EVAL_AUTO = 0, GPUIR_EVAL_EXHAUSTIVE = 1 };

typedef struct gpuir_searcher_desc {
  const gpuir_allocator *allocator; /* copied; NULL: the index's */
  unsigned threads;                 /* that serve gpuir_search_batch; 0: 1 */
  int evaluator;                    /* GPUIR_EVAL_; the exhaustive one is the reference */
  uint64_t timeout_ns;              /* of each search from its start; 0: none */
  const int *cancel;                /* read atomically while searching; not 0 stops. NULL: none */
  const char *intersection;         /* see [api-lab]; NULL: the engine's own */
} gpuir_searcher_desc;

typedef struct gpuir_searcher gpuir_searcher;

/* Creates a searcher. It owns scratch memory, which grows to what its queries need. One per thread.
 * Errors: ARGUMENT, NOMEM; UNSUPPORTED for a method that GPUIR_NO_LAB leaves out. */
GPUIR_API int gpuir_searcher_create(gpuir_index *index, const gpuir_searcher_desc *desc,
                                    gpuir_searcher **searcher, gpuir_error *err);
/* Waits for batches in flight, whose answers are lost. */
GPUIR_API void gpuir_searcher_destroy(gpuir_searcher *searcher);
/* Moves a searcher to another index, such as a later snapshot, and keeps its memory and settings; a backend is dropped.
 * Its queries and explanations stay with the old index. Errors: ARGUMENT. */
GPUIR_API int gpuir_searcher_move(gpuir_searcher *searcher, gpuir_index *index);
/* Changes the timeout of later searches; 0: none. */
GPUIR_API void gpuir_searcher_set_timeout(gpuir_searcher *searcher, uint64_t timeout_ns);

/* Ranks documents: writes the best min(k, matches) hits, by score descending, then docID ascending, to
 * hits[0..*n). k may be 0 or exceed the number of documents.
 * Errors: ARGUMENT, NOMEM, DEADLINE, CANCELLED, FORMAT, BACKEND; then *n is 0. */
GPUIR_API int gpuir_search(gpuir_searcher *searcher, const gpuir_query *query, gpuir_hit *hits, size_t k,
                           size_t *n);
/* Ranks nq queries, on the searcher's threads; query i's hits go to hits[i*k ..) and their
 * number to counts[i]. Errors: as gpuir_search, of the first query that failed. */
GPUIR_API int gpuir_search_batch(gpuir_searcher *searcher, const gpuir_query *const *queries, size_t nq,
                                 size_t k, gpuir_hit *hits, uint32_t *counts);

/* ---- batches in flight: the caller's work overlaps a device's ---- */

/* What a batch asks for and where its answers go. The arrays, the queries and the flags stay the caller's and are kept
 * until the batch is finished; hits, counts and statuses may be written from begin to finish, and until then mean
 * nothing. */
typedef struct gpuir_batch_desc {
  const gpuir_query *const *queries; /* nq */
  size_t nq, k;
  gpuir_hit *hits;  /* [nq * k]: query i's from i * k on */
  uint32_t *counts; /* [nq]: how many those are */
  int *statuses;    /* [nq]: each query's own; NULL: the batch's is enough */
  /* When each is out of time, [nq], in nanoseconds of CLOCK_MONOTONIC; 0: never. NULL: none ever is. */
  const uint64_t *deadlines;
  /* Flags, [nq], read atomically: one that is not 0 stops its query. Each may be NULL, as may the array. */
  const int *const *cancels;
} gpuir_batch_desc;

typedef struct gpuir_batch gpuir_batch;

/* Begins a batch and returns before it is answered: with a backend, queries are planned and their work is handed to
 * the device; without one, gpuir_search_finish will do the work. Two batches of a searcher may be in flight at once and
 * be finished in any order; other searches of it may go on beside one. All calls for one searcher's batches are one
 * thread's at a time, as the searcher's are. *batch is the searcher's. *desc is copied. Errors: as gpuir_search_batch;
 * BUSY when two batches are in flight. After an error nothing is in flight. */
GPUIR_API int gpuir_search_begin(gpuir_searcher *searcher, const gpuir_batch_desc *desc, gpuir_batch **batch);
/* Returns 1 if gpuir_search_finish will not have to wait for a device, else 0; never waits. A batch that takes several
 * launches, and the searcher's other one, are moved on by it. */
GPUIR_API int gpuir_search_poll(gpuir_batch *batch);
/* Waits for a batch, hands out its hits and ends it. Errors: as gpuir_search_batch, of the first query that failed; a
 * failed query's count is 0, and without `statuses` all counts are. */
GPUIR_API int gpuir_search_finish(gpuir_batch *batch);

/* Counts the matching documents without ranking (ANDOR counts as AND). Errors: as gpuir_search. */
GPUIR_API int gpuir_count(gpuir_searcher *searcher, const gpuir_query *query, uint64_t *matches);
/* Detail of the searcher's last failure, one of a backend's too that the CPU made good: code 0 when there was none. */
GPUIR_API void gpuir_searcher_error(const gpuir_searcher *searcher, gpuir_error *err);

typedef struct gpuir_searcher_info {
  uint64_t queries;
  uint64_t postings_scored;
  uint64_t blocks_decoded, blocks_total; /* of docIDs; total: of all lists of all queries */
  uint64_t tiles_scored, tiles_total;    /* docID tiles of the pruned OR */
  uint64_t backend_failures;             /* queries that the CPU answered instead */
} gpuir_searcher_info;

/* Counters since the searcher was made, its threads included. */
GPUIR_API void gpuir_searcher_get_info(const gpuir_searcher *searcher, gpuir_searcher_info *info);

typedef struct gpuir_explain_term {
  const char *term; /* lives as long as the query */
  size_t term_len;
  uint32_t q; /* occurrences in the query */
  int negated;
  uint32_t tokens;         /* of a phrase, whose term is written "like this"; otherwise 1 */
  uint32_t members;        /* terms that a prefix, whose term is written lik*, stands for; otherwise 0 */
  uint32_t df, tf;         /* tf 0: not in the document; df 0: not in the index, or a phrase */
  float idf, weight, norm; /* weight W and norm K of this document, see gpuir_explanation */
  uint32_t contribution;   /* c, to be taken q times */
} gpuir_explain_term;

/* Why a document scores what it does: score = sum of q * c, c = max(1, round(W*tf / (tf + K))),
 * W = idf*(k1+1)*2^20, K = k1*(1-b) + k1*b*length/average_length. */
typedef struct gpuir_explanation {
  int matches;    /* the document matches the query (ANDOR: as AND) */
  uint32_t score; /* 0 when it does not match */
  uint32_t length;
  float k1, b;
  double average_length;
  size_t nterms;
  gpuir_explain_term terms[GPUIR_MAX_TERMS]; /* positive ones, then negated ones */
  char plan[200];                            /* how the engine evaluates the query, and why */
} gpuir_explanation;

/* Says how the score of document `docid` comes about, whether it matches or not. Errors: NOT_FOUND for a docid that
 * does not exist, or was deleted; ARGUMENT, NOMEM. */
GPUIR_API int gpuir_explain(gpuir_searcher *searcher, const gpuir_query *query, uint32_t docid,
                            gpuir_explanation *explanation);

/* ============================================================================
 * [api-passages]  the places of a text that answer a query
 *
 * A passage is a range of a text, of whole lines where these are short, otherwise of sentences or of words. Which ones
 * are best is said by the query's words that they hold, what these weigh (their idf) and how close together they stand.
 * The first passage is the best one; each further one is the best for the words that those before it do not show. So
 * without a budget every word of the query that the text holds is shown, and with one the dearest come first.
 *
 * Negated words are ignored. A phrase is shown where its tokens follow one another, a prefix where a word begins so.
 * ==========================================================================*/

/* What one token of a budget is: four bytes of text, of which the last may be missing. It is near what programs that
 * read texts count in English and in code, and needs no vocabulary. */
#define GPUIR_TOKEN_BYTES 4
#define GPUIR_PASSAGE_BYTES 640     /* the default of gpuir_passages_desc.most */
#define GPUIR_NO_CONTEXT UINT32_MAX /* for gpuir_passages_desc.context */

typedef struct gpuir_passages_desc {
  size_t bytes, tokens; /* budgets of all passages together; 0: none */
  size_t most; /* bytes of a passage of several lines; 0: GPUIR_PASSAGE_BYTES. Within them it grows to its
                         * paragraph, which empty lines end */
  uint32_t
      context; /* not 0: in place of that, so many lines before and behind its own. GPUIR_NO_CONTEXT: none */
  uint32_t first_line; /* number of the text's first line; 0: 1, or of a document what its first_line says */
  uint64_t timeout_ns; /* 0: none */
  const int *cancel;   /* read atomically now and then; not 0 stops. NULL: none */
} gpuir_passages_desc;

typedef struct gpuir_passage {
  size_t offset, bytes; /* in the text; line ends behind the last line are left out */
  uint32_t first_line, last_line;
  uint64_t terms; /* that it shows: bit i is term number i, counted as in gpuir_explanation.terms */
  /* What the words weigh that no passage before it shows, less for those far apart: sums of idf; 65536 is 1.0. Scores
   * of one query can be compared between texts. */
  uint32_t score;
  size_t first_mark, marks; /* its marks: [first_mark, first_mark + marks) of gpuir_passage_room.marks */
} gpuir_passage;

/* A word, phrase or word with the prefix that a passage shows. */
typedef struct gpuir_mark {
  size_t offset,
      bytes; /* in the text; those of one passage ascend, and may overlap where phrases hold words */
  uint32_t term;
} gpuir_mark;

/* Where passages go: the caller's arrays. Where `passages` is full, there are no more of them; where `marks` is,
 * further words are not marked. */
typedef struct gpuir_passage_room {
  gpuir_passage *passages;
  size_t cap, n; /* of passages: room, and how many were written */
  gpuir_mark *marks;
  size_t marks_cap, nmarks;
} gpuir_passage_room;

/* Finds the best passages of text[0..len), best first; they do not overlap. The text is any bytes, analysed once, and
 * is usually that of a hit. Where a caller's tokenizer emits tokens that do not lie in the text, each is looked for in
 * it, ASCII letters alike in both cases, near the one before; one that is not found stands where that one stands.
 * Memory for the time of the call: some 12 bytes an occurrence and 24 bytes a line with one. Thread-safe.
 * Errors: ARGUMENT, NOMEM, DEADLINE, CANCELLED; LIMIT for a text of 4 GiB; what the caller's tokenizer returned. Then
 * no passage is written. */
GPUIR_API int gpuir_passages(const gpuir_query *query, const gpuir_passages_desc *desc, const char *text,
                             size_t len, gpuir_passage_room *room, gpuir_error *err);
/* The same of the stored text of document `docid` of the query's index. Errors: also NOT_FOUND where there is no such
 * document, or its text is not stored: then the caller has to bring it; FORMAT. */
GPUIR_API int gpuir_doc_passages(const gpuir_query *query, const gpuir_passages_desc *desc, uint32_t docid,
                                 gpuir_passage_room *room, gpuir_error *err);

/* ============================================================================
 * [api-cursor]  the postings of one term
 * ==========================================================================*/

typedef struct gpuir_cursor gpuir_cursor;

/* Opens the postings of term `id`, on its first document. Errors: NOT_FOUND, NOMEM, FORMAT; UNSUPPORTED with several
 * segments, or deletions. */
GPUIR_API int gpuir_cursor_open(const gpuir_index *index, uint64_t term_id, gpuir_cursor **cursor,
                                gpuir_error *err);
GPUIR_API void gpuir_cursor_close(gpuir_cursor *cursor);
/* The current docID, or GPUIR_END. */
GPUIR_API uint32_t gpuir_cursor_docid(const gpuir_cursor *cursor);
/* Moves on and returns the new docID, or GPUIR_END. */
GPUIR_API uint32_t gpuir_cursor_next(gpuir_cursor *cursor);
/* Moves to the first docID >= docid (never back) and returns it, or GPUIR_END. */
GPUIR_API uint32_t gpuir_cursor_next_geq(gpuir_cursor *cursor, uint32_t docid);
/* The term frequency in the current document; 0 at the end. */
GPUIR_API uint32_t gpuir_cursor_tf(gpuir_cursor *cursor);
/* Writes the term's first positions in the current document, ascending, to positions[0..*n): as many as there are, or
 * `cap`. See gpuir_term_positions. Errors: ARGUMENT; UNSUPPORTED for an index built without positions; NOT_FOUND at the
 * end; FORMAT. */
GPUIR_API int gpuir_cursor_positions(gpuir_cursor *cursor, uint32_t *positions, uint32_t cap, uint32_t *n);

/* ============================================================================
 * [api-backends]  backends; the GPU
 * ==========================================================================*/

#define GPUIR_BACKEND_VERSION 2

/* A backend answers batches in place of the CPU engine and must return the same bits. No call but finish and close may
 * wait for a device. All calls are one thread's at a time; at most two batches are in flight, finished in any order.
 * `begin` takes a batch, to which it sets *running, and may read *batch only until it returns. batch->statuses is never
 *     NULL and all 0. `deadline`, of all queries, is as gpuir_batch_desc.deadlines; `cancel`, of all too, may be NULL.
 *     A status other than 0: the batch is not in flight.
 * `poll` returns whether finish need not wait.
 * `finish` returns when all is written: counts, hits, and the status of each query that failed. It returns the first of
 *     these; 0: all queries are answered.
 * `close`, if any, is called when the searcher is destroyed or gets another backend; then nothing is in flight.
 * Each may fill *err, for the first query that failed. */
typedef struct gpuir_backend {
  uint32_t version; /* GPUIR_BACKEND_VERSION */
  const char *name;
  void *context;
  int (*begin)(void *context, const gpuir_batch_desc *batch, uint64_t deadline, const int *cancel,
               void **running, gpuir_error *err);
  int (*poll)(void *context, void *running);
  int (*finish)(void *context, void *running, gpuir_error *err);
  void (*close)(void *context);
} gpuir_backend;

/* Lets `backend` (copied; NULL: the CPU) answer this searcher's searches. With `fallback` the
 * CPU answers the queries that the backend could not, and gpuir_searcher_get_info counts them; without, the
 * backend's error is returned. Errors: ARGUMENT, VERSION, BUSY (a batch is in flight). */
GPUIR_API int gpuir_searcher_set_backend(gpuir_searcher *searcher, const gpuir_backend *backend,
                                         int fallback);
/* "cpu", or the backend's name. */
GPUIR_API const char *gpuir_backend_name(const gpuir_searcher *searcher);

/* The CUDA backend is compiled from gpuir_cuda.cu and linked with the program; this header only
 * declares it and knows no CUDA type. (The GPU methods of the literature have a header of their own, gpuir_lab.h.) */
typedef struct gpuir_cuda gpuir_cuda;

typedef struct gpuir_cuda_desc {
  int device; /* CUDA ordinal */
  /* Bound in bytes; 0: what the index needs, at most 90 % of what is free. If it is too little for the index, lists are
   * cached, and the index's file is locked in memory, if it takes less than half of that and the system can. */
  uint64_t memory;
  size_t batch; /* queries a launch at most; 0: chosen by the backend */
  /* Postings a launch: it takes no further query once all lists of its queries hold that many; 0: no bound. (The
   * computational threshold of Ao et al., PVLDB 4(8), 2011, section 4.1, counts the shortest lists only.) */
  uint64_t threshold;
} gpuir_cuda_desc;

typedef struct gpuir_cuda_info {
  char device[64];                                         /* its name */
  int driver_version, runtime_version, compute_capability; /* e.g. 13000, 13000, 90 */
  uint64_t device_memory, used_memory;                     /* bytes */
  uint64_t resident_bytes, index_bytes; /* of the index on the device; of what it could hold */
  uint64_t lists_hit, lists_missed;     /* list look-ups served from device memory, and transferred first */
  uint64_t queries, batches;
} gpuir_cuda_info;

/* Uploads an index, or as much of it as the bound allows; shared by threads. Lists in other codecs than bp128 become
 * bp128 on the device, each time they are transferred, and take as much of its memory. Errors: ARGUMENT, NOMEM (device
 * or host memory), BACKEND (no device, driver too old, a CUDA error, in words), FORMAT (a damaged list), UNSUPPORTED
 * (a codec that the library does not know, 2^32 - 1 blocks), VERSION (gpuir_cuda.cu was compiled with another gpuir.h
 * than the program). */
int gpuir_cuda_open(const gpuir_index *index, const gpuir_cuda_desc *desc, gpuir_cuda **cuda,
                    gpuir_error *err);
/* Its attached searchers must be gone or have another backend. */
void gpuir_cuda_close(gpuir_cuda *cuda);
/* Gives a searcher of the same index a stream and staging memory on the device: it then answers by CUDA. With
 * `fallback` the CPU answers what the device cannot. Errors: ARGUMENT, NOMEM, BACKEND, VERSION (see
 * gpuir_cuda_open). */
int gpuir_cuda_attach(gpuir_searcher *searcher, gpuir_cuda *cuda, int fallback, gpuir_error *err);
/* Thread-safe. */
void gpuir_cuda_get_info(const gpuir_cuda *cuda, gpuir_cuda_info *info);
/* What a device is, without an index: its name, versions, capability and memory. Errors: ARGUMENT, BACKEND. */
int gpuir_cuda_device(int device, gpuir_cuda_info *info, gpuir_error *err);

/* ============================================================================
 * [api-lab]  the laboratory: to compare methods
 *
 * For researchers, and not promised to stay as it is. Codecs of the literature are named in gpuir_builder_desc.
 * tools/lab/gpuir_lab.h has the papers' methods on the GPU.
 * ==========================================================================*/

/* Returns the name of the i-th way of intersecting lists, for gpuir_searcher_desc.intersection, such as "merge" or
 * "simd", the engine's own; NULL behind the last one. All give the same hits. With GPUIR_NO_LAB there is "simd"
 * alone. */
GPUIR_API const char *gpuir_intersection_name(size_t i);

#define GPUIR_MAX_CODECS 16 /* of docIDs or of frequencies */

typedef struct gpuir_codec_info {
  const char *codec;
  uint64_t lists, postings; /* of two postings or more that are kept in it */
  uint64_t bytes;           /* of their streams */
} gpuir_codec_info;

/* Which codecs the lists are kept in, their docIDs or, if docids is 0, their frequencies: writes the *n <=
 * GPUIR_MAX_CODECS that occur. Reads every term's record. Errors: ARGUMENT, FORMAT, UNSUPPORTED. */
GPUIR_API int gpuir_codec_get_info(const gpuir_index *index, int docids,
                                   gpuir_codec_info infos[GPUIR_MAX_CODECS], size_t *n);

#ifdef __cplusplus
}
#endif
#endif /* GPUIR_H */

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
 *   essential    in an OR: a term without which a document may still reach the threshold is not
 *                essential, all others are
 *   tile         a range of docIDs, a power of two long, that is evaluated at a time
 *   accumulator  one document's score as far as it has been added up
 *   seed         a k-th greatest contribution of a list, stored so that an OR starts with a threshold
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
#include <math.h>
#include <pthread.h>
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
#ifdef __has_include
#if !__has_include(<xxhash.h>)
#error "gpuir.h: needs xxhash.h: install libxxhash-dev (Debian, Ubuntu) or xxhash-devel (Fedora)"
#endif
#endif
#include <xxhash.h>

#ifndef O_CLOEXEC /* the first header of a file decides what all of them declare */
#error "gpuir.h: POSIX is hidden: include the implementation before any other header, or use -std=gnu99"
#endif
#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0
#error \
    "gpuir.h: binary32 arithmetic must round to binary32 (FLT_EVAL_METHOD 0; on 32-bit x86 use -msse2 -mfpmath=sse)"
#endif
#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "gpuir.h: needs a little-endian machine"
#endif

#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#pragma GCC diagnostic push /* gcc does not see that of a block only the parts that it has are asked for */
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#if !defined(GPUIR_NO_SIMD) && defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__)) && \
    !defined(__CUDACC__)
#define GPUIR__X86 1
#ifndef __clang__ /* gcc 12 warns of what its own <avx512fintrin.h> does: undefined operands (bug 105593), masks */
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#endif
#include <immintrin.h>
#else
#define GPUIR__X86 0
#endif

/* Arithmetic that the CUDA kernels share is compiled for both sides. */
#ifdef __CUDACC__
#define GPUIR_HD __host__ __device__
#else
#define GPUIR_HD
#endif

#if defined(__GNUC__) || defined(__clang__)
#define GPUIR__PRINTF(f, a) __attribute__((format(printf, f, a)))
#define GPUIR__LIKELY(x) __builtin_expect(!!(x), 1)
#define GPUIR__UNLIKELY(x) __builtin_expect(!!(x), 0)
#define GPUIR__UNUSED __attribute__((unused))
#else
#error "gpuir.h: needs gcc or clang"
#endif

/* ============================================================================
 * [01-base]  status, allocator, buffers, time, files
 *
 * Uses      nothing but POSIX and xxHash.
 * Start at  gpuir__fail (every error is made there), gpuir__buf, gpuir__spool.
 * Tests     tests/unit/01_base.c
 * ==========================================================================*/

#define GPUIR__STR2(x) #x
#define GPUIR__STR(x) GPUIR__STR2(x)

/* A number that threads share: where uint64_t is aligned to 4 bytes, atomic instructions want 8. */
typedef uint64_t gpuir__atomic64 __attribute__((aligned(8)));

GPUIR_API unsigned gpuir_version_number(void) { return GPUIR_VERSION_NUMBER; }

GPUIR_API const char *gpuir_version(void) {
  return GPUIR__STR(GPUIR_VERSION_MAJOR) "." GPUIR__STR(GPUIR_VERSION_MINOR) "." GPUIR__STR(
      GPUIR_VERSION_PATCH);
}

GPUIR_API const char *gpuir_strerror(int status) {
  switch (status) {
    case GPUIR_OK: return "no error";
    case GPUIR_E_ARGUMENT: return "invalid argument";
    case GPUIR_E_NOMEM: return "out of memory";
    case GPUIR_E_IO: return "input/output error";
    case GPUIR_E_FORMAT: return "not a gpuir index, or a damaged one";
    case GPUIR_E_VERSION: return "index of another format version";
    case GPUIR_E_CHECKSUM: return "checksum mismatch";
    case GPUIR_E_RANGE: return "score out of range";
    case GPUIR_E_QUERY: return "malformed query, or one without a positive term";
    case GPUIR_E_TERMS: return "too many distinct terms in the query";
    case GPUIR_E_DEADLINE: return "deadline exceeded";
    case GPUIR_E_CANCELLED: return "cancelled";
#ifdef GPUIR_NO_LAB
    case GPUIR_E_UNSUPPORTED: return "not supported by this build, which GPUIR_NO_LAB makes smaller";
#else
    case GPUIR_E_UNSUPPORTED: return "not supported by this build";
#endif
    case GPUIR_E_LIMIT: return "limit of the index format exceeded";
    case GPUIR_E_BUSY: return "busy: another build of this index, or two batches, are on their way";
    case GPUIR_E_NOT_FOUND: return "not found";
    case GPUIR_E_BACKEND: return "backend failure";
    default: return "unknown status";
  }
}

/* Fills *err, when there is one, and returns code, so that callers can `return gpuir__fail(...)`. */
GPUIR__PRINTF(4, 5)
static int gpuir__fail(gpuir_error *err, int code, uint64_t offset, const char *format, ...) {
  if (err) {
    va_list ap;
    err->code = code;
    err->offset = offset;
    va_start(ap, format);
    (void)vsnprintf(err->msg, sizeof err->msg, format, ap);
    va_end(ap);
  }
  return code;
}

static int gpuir__fail_nomem(gpuir_error *err) { return gpuir__fail(err, GPUIR_E_NOMEM, 0, "out of memory"); }

/* Returns the end of a path, so that a message names the file within its 160 bytes. */
static const char *gpuir__tail(const char *path) {
  size_t n = strlen(path);
  return n > 80 ? path + (n - 80) : path;
}

static int gpuir__fail_errno(gpuir_error *err, const char *path, const char *what) {
  int e = errno;
  char reason[64];
  reason[0] = 0;
#if defined(__GLIBC__) && defined(_GNU_SOURCE)
  (void)snprintf(reason, sizeof reason, "%s", strerror_r(e, reason, sizeof reason));
#else
  if (strerror_r(e, reason, sizeof reason)) (void)snprintf(reason, sizeof reason, "errno %d", e);
#endif
  return gpuir__fail(err, e == ENOMEM ? GPUIR_E_NOMEM : GPUIR_E_IO, 0, "%s: %s: %s", gpuir__tail(path), what,
                     reason);
}

static void *gpuir__default_resize(void *user, void *ptr, size_t old_size, size_t new_size) {
  (void)user;
  (void)old_size;
  if (new_size) return realloc(ptr, new_size);
  free(ptr);
  return NULL;
}

static gpuir_allocator gpuir__allocator(const gpuir_allocator *given) {
  gpuir_allocator a;
  a.resize = given && given->resize ? given->resize : gpuir__default_resize;
  a.user = given && given->resize ? given->user : NULL;
  return a;
}

/* Allocates uninitialised memory; of n = 0 one byte, so that NULL always means failure. */
static void *gpuir__alloc(const gpuir_allocator *a, size_t n) {
  return a->resize(a->user, NULL, 0, n ? n : 1);
}

static void *gpuir__alloc_zero(const gpuir_allocator *a, size_t n) {
  void *p = gpuir__alloc(a, n);
  if (p) memset(p, 0, n);
  return p;
}

/* Frees what gpuir__alloc(a, n) returned. */
static void gpuir__free(const gpuir_allocator *a, void *p, size_t n) {
  if (p) (void)a->resize(a->user, p, n ? n : 1, 0);
}

/* Returns a copy of x[0..n) with y[0..m) behind it and a NUL, or NULL; *size becomes its memory. */
static char *gpuir__concat(const gpuir_allocator *a, const char *x, size_t n, const char *y, size_t m,
                           size_t *size) {
  char *p = (char *)gpuir__alloc(a, n + m + 1);
  *size = n + m + 1;
  if (!p) return NULL;
  memcpy(p, x, n);
  memcpy(p + n, y, m);
  p[n + m] = 0;
  return p;
}

/* A growable byte array. data may move on every growth. */
typedef struct gpuir__buf {
  uint8_t *data;
  size_t len, cap;
} gpuir__buf;

/* Makes room for n more bytes and returns where they go, or NULL. Does not change len. */
static uint8_t *gpuir__buf_room(const gpuir_allocator *a, gpuir__buf *buf, size_t n) {
  if (GPUIR__UNLIKELY(n > buf->cap - buf->len)) {
    size_t want = buf->cap + buf->cap / 2 + 64;
    void *p;
    if (n > SIZE_MAX / 2 - buf->len) return NULL;
    if (want < buf->len + n) want = buf->len + n;
    p = a->resize(a->user, buf->data, buf->cap, want);
    if (!p) return NULL;
    buf->data = (uint8_t *)p;
    buf->cap = want;
  }
  return buf->data + buf->len;
}

/* Appends n bytes; 0, or GPUIR_E_NOMEM. */
static int gpuir__buf_put(const gpuir_allocator *a, gpuir__buf *buf, const void *bytes, size_t n) {
  uint8_t *to = gpuir__buf_room(a, buf, n);
  if (!to) return GPUIR_E_NOMEM;
  if (n) memcpy(to, bytes, n);
  buf->len += n;
  return GPUIR_OK;
}

static void gpuir__buf_free(const gpuir_allocator *a, gpuir__buf *buf) {
  if (buf->data) (void)a->resize(a->user, buf->data, buf->cap, 0);
  buf->data = NULL;
  buf->len = buf->cap = 0;
}

GPUIR_HD static inline uint32_t gpuir__min32(uint32_t a, uint32_t b) { return a < b ? a : b; }
GPUIR_HD static inline uint32_t gpuir__max32(uint32_t a, uint32_t b) { return a > b ? a : b; }
GPUIR_HD static inline uint64_t gpuir__min64(uint64_t a, uint64_t b) { return a < b ? a : b; }
GPUIR_HD static inline uint64_t gpuir__max64(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Returns monotonic time in nanoseconds. */
static uint64_t gpuir__now(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Writes all n bytes at `offset`; 0 or -1 with errno. */
static int gpuir__pwrite_all(int fd, const void *bytes, size_t n, uint64_t offset) {
  const uint8_t *p = (const uint8_t *)bytes;
  while (n) {
    ssize_t w = pwrite(fd, p, n < 0x40000000u ? n : 0x40000000u, (off_t)offset);
    if (w < 0 && errno == EINTR) continue;
    if (w <= 0) {
      if (w == 0) errno = ENOSPC;
      return -1;
    }
    p += w;
    n -= (size_t)w;
    offset += (uint64_t)w;
  }
  return 0;
}

/* Reads exactly n bytes at `offset`; 0 or -1 with errno (EIO at the end of the file). */
static int gpuir__pread_all(int fd, void *bytes, size_t n, uint64_t offset) {
  uint8_t *p = (uint8_t *)bytes;
  while (n) {
    ssize_t r = pread(fd, p, n < 0x40000000u ? n : 0x40000000u, (off_t)offset);
    if (r < 0 && errno == EINTR) continue;
    if (r <= 0) {
      if (r == 0) errno = EIO;
      return -1;
    }
    p += r;
    n -= (size_t)r;
    offset += (uint64_t)r;
  }
  return 0;
}

/* Allocates a file's first n bytes, zeros where it has none: writing to a mapped hole of a full disk would raise
 * SIGBUS. 0 or -1 with errno. */
static int gpuir__allocate(int fd, uint64_t n) {
  do {
    errno = posix_fallocate(fd, 0, (off_t)n);
  } while (errno == EINTR);
  return errno ? -1 : 0;
}

#define GPUIR__TRIES 8u /* at a name that another process keeps taking */

/* Opens `name` as a new, empty file; returns its descriptor, or -1 with errno. O_EXCL follows no link and opens no
 * file that somebody else made; what a killed build left under the name is removed. The owner is not compared: some
 * file systems (vfat, NFS with a squashed root) show another one than the process that made the file. */
static int gpuir__create_file(const char *name, mode_t mode) {
  unsigned tries;
  for (tries = 0; tries < GPUIR__TRIES; tries++) {
    const int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd >= 0 || errno != EEXIST) return fd;
    if (unlink(name) && errno != ENOENT) return -1;
  }
  errno = EEXIST;
  return -1;
}

/* Returns 1 if `name` names the file that is open as fd, 0 if not, -1 with errno. */
static int gpuir__is_file(int fd, const char *name) {
  struct stat mine, named;
  if (fstat(fd, &mine)) return -1;
  if (lstat(name, &named)) return errno == ENOENT ? 0 : -1;
  return mine.st_ino == named.st_ino && mine.st_dev == named.st_dev;
}

/* Makes the names in a folder survive a loss of power; 0, or -1 with errno. A folder that may not be read, and one on a
 * file system that cannot sync folders, is left to the system. */
static int gpuir__sync_folder(const char *folder) {
  const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int failed;
  if (fd < 0) return errno == EACCES ? 0 : -1;
  failed = fsync(fd) && errno != EINVAL ? errno : 0;
  (void)close(fd);
  errno = failed;
  return failed ? -1 : 0;
}

/* A temporary file that is written from front to back through a buffer. There is none as long as the buffer, which
 * grows to its size, has room for all. It is unlinked as soon as it is open, so that nothing is left of it when the
 * process ends in whatever way. */
typedef struct gpuir__spool {
  int fd;       /* -1: no file yet */
  uint64_t len; /* bytes given to gpuir__spool_put, buffered ones included */
  uint8_t *buf;
  size_t fill, room, cap; /* bytes of buf that are taken, there, and there at most */
  const char *path;       /* for the file's name and messages, the caller's; NULL: closed */
  unsigned number;
  gpuir_allocator a;
} gpuir__spool;

/* Opens a spool whose file, if it gets one, is PATH.N, where N is `number`; `path` must outlive the spool. `cap` is its
 * buffer's size. */
static void gpuir__spool_open(const gpuir_allocator *a, gpuir__spool *spool, const char *path,
                              unsigned number, size_t cap) {
  memset(spool, 0, sizeof *spool);
  spool->fd = -1;
  spool->cap = cap;
  spool->path = path;
  spool->number = number;
  spool->a = *a;
}

/* Makes the spool's file. 0, NOMEM, IO. */
static int gpuir__spool_file(gpuir__spool *spool, gpuir_error *err) {
  const size_t n = strlen(spool->path) + 16;
  char *name = (char *)gpuir__alloc(&spool->a, n);
  int status = GPUIR_OK;
  if (!name) return gpuir__fail_nomem(err);
  (void)snprintf(name, n, "%s.%u", spool->path, spool->number);
  spool->fd = gpuir__create_file(name, 0600);
  if (spool->fd < 0)
    status = gpuir__fail_errno(err, name, "cannot create temporary file");
  else
    (void)unlink(name);
  gpuir__free(&spool->a, name, n);
  return status;
}

/* Writes what the buffer has to the file, if there is one. */
static int gpuir__spool_flush(gpuir__spool *spool, gpuir_error *err) {
  if (spool->fd < 0) return GPUIR_OK;
  if (gpuir__pwrite_all(spool->fd, spool->buf, spool->fill, spool->len - spool->fill))
    return gpuir__fail_errno(err, spool->path, "cannot write temporary file");
  spool->fill = 0;
  return GPUIR_OK;
}

/* Makes room for n more bytes in the buffer, as far as it may grow. 0 or NOMEM. */
static int gpuir__spool_grow(gpuir__spool *spool, size_t n) {
  size_t room = 2 * spool->room + 256;
  void *p;
  if (n <= spool->room - spool->fill || spool->room == spool->cap) return GPUIR_OK;
  if (n > spool->cap - spool->fill || room > spool->cap) room = spool->cap;
  if (room < spool->fill + n && n <= spool->cap - spool->fill) room = spool->fill + n;
  p = spool->a.resize(spool->a.user, spool->buf, spool->room, room);
  if (!p) return GPUIR_E_NOMEM;
  spool->buf = (uint8_t *)p;
  spool->room = room;
  return GPUIR_OK;
}

static int gpuir__spool_put(gpuir__spool *spool, const void *bytes, size_t n, gpuir_error *err) {
  if (GPUIR__UNLIKELY(n > spool->room - spool->fill) && gpuir__spool_grow(spool, n))
    return gpuir__fail_nomem(err);
  if (GPUIR__UNLIKELY(n > spool->cap - spool->fill)) {
    int status = spool->fd < 0 ? gpuir__spool_file(spool, err) : GPUIR_OK;
    if (!status) status = gpuir__spool_flush(spool, err);
    if (status) return status;
    if (n >= spool->cap) {
      if (gpuir__pwrite_all(spool->fd, bytes, n, spool->len))
        return gpuir__fail_errno(err, spool->path, "cannot write temporary file");
      spool->len += n;
      return GPUIR_OK;
    }
  }
  if (n) memcpy(spool->buf + spool->fill, bytes, n);
  spool->fill += n;
  spool->len += n;
  return GPUIR_OK;
}

/* Reads n bytes at `offset`. */
static int gpuir__spool_get(const gpuir__spool *spool, void *bytes, size_t n, uint64_t offset,
                            gpuir_error *err) {
  const uint64_t flushed = spool->len - spool->fill;
  const size_t filed = offset < flushed ? (size_t)gpuir__min64(n, flushed - offset) : 0;
  if (n > spool->len || offset > spool->len - n) {
    errno = EIO;
    return gpuir__fail_errno(err, spool->path, "cannot read temporary file");
  }
  if (filed && gpuir__pread_all(spool->fd, bytes, filed, offset))
    return gpuir__fail_errno(err, spool->path, "cannot read temporary file");
  if (n > filed) memcpy((uint8_t *)bytes + filed, spool->buf + (offset + filed - flushed), n - filed);
  return GPUIR_OK;
}

/* Writes the buffer to the file, if there is one, and then does without it: nothing will be put any more. */
static int gpuir__spool_end(gpuir__spool *spool, gpuir_error *err) {
  int status = gpuir__spool_flush(spool, err);
  if (status || spool->fd < 0) return status;
  gpuir__free(&spool->a, spool->buf, spool->room);
  spool->buf = NULL;
  spool->room = 0;
  return GPUIR_OK;
}

static void gpuir__spool_close(gpuir__spool *spool) {
  if (spool->fd >= 0) (void)close(spool->fd);
  if (spool->buf) gpuir__free(&spool->a, spool->buf, spool->room);
  spool->fd = -1;
  spool->buf = NULL;
  spool->path = NULL;
}

/* Says whether `bytes` stand at `offset`. */
static int gpuir__spool_has(const gpuir__spool *spool, const void *bytes, size_t n, uint64_t offset, int *has,
                            gpuir_error *err) {
  const uint8_t *p = (const uint8_t *)bytes;
  uint8_t chunk[256];
  *has = 1;
  while (n && *has) {
    size_t m = (size_t)gpuir__min64(n, sizeof chunk);
    int status = gpuir__spool_get(spool, chunk, m, offset, err);
    if (status) return status;
    *has = !memcmp(chunk, p, m);
    p += m;
    n -= m;
    offset += m;
  }
  return GPUIR_OK;
}

/* Scratch memory whose contents growing may lose. Beyond `most` bytes it is a mapped, unlinked
 * temporary file, which the kernel can write out, rather than anonymous memory. */
typedef struct gpuir__area {
  uint8_t *data;
  size_t cap;
  int mapped;
} gpuir__area;

static void gpuir__area_free(const gpuir_allocator *a, gpuir__area *area) {
  if (area->mapped)
    (void)munmap(area->data, area->cap);
  else
    gpuir__free(a, area->data, area->cap);
  area->data = NULL;
  area->cap = 0;
  area->mapped = 0;
}

static int gpuir__area_map(const gpuir_allocator *a, gpuir__area *area, size_t n, const char *path,
                           unsigned number, gpuir_error *err) {
  gpuir__spool file;
  void *p;
  int status;
  gpuir__spool_open(a, &file, path, number, 1);
  status = gpuir__spool_file(&file, err);
  if (status) return status;
  if (gpuir__allocate(file.fd, n)) {
    status = gpuir__fail_errno(err, path, "cannot reserve space for a temporary file");
  } else {
    p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd, 0);
    if (p == MAP_FAILED) {
      status = gpuir__fail_errno(err, path, "cannot map a temporary file");
    } else {
      area->data = (uint8_t *)p;
      area->cap = n;
      area->mapped = 1;
    }
  }
  gpuir__spool_close(&file);
  return status;
}

/* Makes the area at least n bytes large; its contents are lost if it grows. */
static int gpuir__area_need(const gpuir_allocator *a, gpuir__area *area, uint64_t n, uint64_t most,
                            const char *path, unsigned number, gpuir_error *err) {
  uint64_t want = n + n / 4 + 64;
  if (n <= area->cap && area->data) return GPUIR_OK;
  if (n > SIZE_MAX / 2) return gpuir__fail_nomem(err);
  gpuir__area_free(a, area);
  if (n > most) return gpuir__area_map(a, area, (size_t)want, path, number, err);
  if (want > most) want = n;
  area->data = (uint8_t *)gpuir__alloc(a, (size_t)want);
  if (!area->data) return gpuir__fail_nomem(err);
  area->cap = (size_t)want;
  return GPUIR_OK;
}

/* ============================================================================
 * [02-vectors]  bits, packed numbers, gaps; scalar and with vectors
 *
 * Uses      [01-base].
 * Start at  gpuir__load64 (all bytes are read so), gpuir__packed_value, gpuir__sum_gaps_scalar.
 * Tests     tests/unit/02_vectors.c
 * ==========================================================================*/

/* Load and store little-endian numbers at any address. Device code reads the same bytes: by the aligned words that hold
 * them and the word behind, because memcpy would load byte by byte there. */
GPUIR_HD static inline uint32_t gpuir__load32(const void *p) {
#ifdef __CUDA_ARCH__
  const uint32_t *w = (const uint32_t *)((uintptr_t)p & ~(uintptr_t)3);
  return __funnelshift_r(w[0], w[1], (uint32_t)((uintptr_t)p & 3) * 8);
#else
  uint32_t v;
  memcpy(&v, p, sizeof v);
  return v;
#endif
}
GPUIR_HD static inline uint64_t gpuir__load64(const void *p) {
#ifdef __CUDA_ARCH__
  const uint32_t *w = (const uint32_t *)((uintptr_t)p & ~(uintptr_t)3),
                 shift = (uint32_t)((uintptr_t)p & 3) * 8;
  return (uint64_t)__funnelshift_r(w[1], w[2], shift) << 32 | __funnelshift_r(w[0], w[1], shift);
#else
  uint64_t v;
  memcpy(&v, p, sizeof v);
  return v;
#endif
}
static inline void gpuir__store32(void *p, uint32_t v) { memcpy(p, &v, sizeof v); }
static inline void gpuir__store64(void *p, uint64_t v) { memcpy(p, &v, sizeof v); }

/* Return the number of bits that v needs: floor(log2 v) + 1, and 0 for 0. */
GPUIR_HD static inline unsigned gpuir__width32(uint32_t v) {
#ifdef __CUDA_ARCH__
  return 32u - (unsigned)__clz((int)v);
#else
  return v ? 32u - (unsigned)__builtin_clz(v) : 0;
#endif
}
GPUIR_HD static inline unsigned gpuir__width64(uint64_t v) {
#ifdef __CUDA_ARCH__
  return 64u - (unsigned)__clzll((long long)v);
#else
  return v ? 64u - (unsigned)__builtin_clzll(v) : 0;
#endif
}

/* Returns the upper half of a * b. */
static inline uint64_t gpuir__mul_high(uint64_t a, uint64_t b) {
  const uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
  const uint64_t middle = a1 * b0 + (a0 * b0 >> 32), low = a0 * b1 + (uint32_t)middle;
  return a1 * b1 + (middle >> 32) + (low >> 32);
}

/* Return the position of the lowest one of v != 0, from 0. */
GPUIR_HD static inline unsigned gpuir__ctz32(uint32_t v) {
#ifdef __CUDA_ARCH__
  return (unsigned)__ffs((int)v) - 1;
#else
  return (unsigned)__builtin_ctz(v);
#endif
}
GPUIR_HD static inline unsigned gpuir__ctz64(uint64_t v) {
#ifdef __CUDA_ARCH__
  return (unsigned)__ffsll((long long)v) - 1;
#else
  return (unsigned)__builtin_ctzll(v);
#endif
}

/* Return a number whose w low bits are ones: w up to 32, and up to 63. */
GPUIR_HD static inline uint32_t gpuir__low_bits(unsigned w) { return (uint32_t)(((uint64_t)1 << w) - 1); }
GPUIR_HD static inline uint64_t gpuir__low_bits64(unsigned w) { return ((uint64_t)1 << w) - 1; }

/* Counts the ones of v. This is one instruction in functions for AVX2 and on the device. Elsewhere it is a call into
 * the compiler's library, since not every x86-64 has the instruction: gpuir__ones64 is for code that runs there
 * often. */
GPUIR_HD static inline unsigned gpuir__popcount64(uint64_t v) {
#ifdef __CUDA_ARCH__
  return (unsigned)__popcll(v);
#else
  return (unsigned)__builtin_popcountll(v);
#endif
}

/* Counts the ones of x by a dozen instructions that every processor has. */
GPUIR_HD static inline unsigned gpuir__ones64(uint64_t x) {
#ifdef __CUDA_ARCH__
  return (unsigned)__popcll(x);
#else
  x -= x >> 1 & 0x5555555555555555u;
  x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
  x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
  return (unsigned)(x * 0x0101010101010101u >> 56);
#endif
}

/* Returns the position of the one with rank r, from 0, in x; 64 if x has at most r ones. */
GPUIR_HD static inline unsigned gpuir__select64(uint64_t x, unsigned r) {
  unsigned at = 0, half;
  for (half = 32; half; half /= 2) {
    unsigned low = gpuir__ones64(x & gpuir__low_bits64(half));
    if (r >= low) {
      r -= low;
      at += half;
      x >>= half;
    }
  }
  return at + (r || !(x & 1));
}

/* Returns the first index in [lo, hi) of a sorted array whose value is >= x, or hi. */
GPUIR_HD static inline uint32_t gpuir__lower_bound(const uint32_t *a, uint32_t lo, uint32_t hi, uint32_t x) {
  uint32_t len = hi - lo;
  while (len > 1) {
    uint32_t half = len / 2;
    lo = a[lo + half - 1] < x ? lo + half : lo;
    len -= half;
  }
  return lo + (len && a[lo] < x);
}

/* ---- SIMD levels ----
 *
 * A part that has kernels for several levels declares a structure of them, gpuir__NAME_kernels, and one table with a
 * row a level, gpuir__NAME_of_level. The row is taken once, when an index, a stream or a searcher is opened. */

#define GPUIR__INLINE static inline __attribute__((always_inline))
#define GPUIR__NOINLINE static __attribute__((noinline))
#if GPUIR__X86
#define GPUIR__AVX2 __attribute__((target("avx2")))
#define GPUIR__AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))
#endif

/* Returns the best level that the machine has, at most `asked`; never GPUIR_SIMD_AUTO. */
static int gpuir__simd_level(int asked) {
  int best = GPUIR_SIMD_SCALAR;
#if GPUIR__X86
  if (__builtin_cpu_supports("avx2")) best = GPUIR_SIMD_AVX2;
  if (best == GPUIR_SIMD_AVX2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
    best = GPUIR_SIMD_AVX512;
#endif
  return asked > GPUIR_SIMD_AUTO && asked < best ? asked : best;
}

GPUIR_API const char *gpuir_simd_name(int simd) {
  switch (gpuir__simd_level(simd)) {
    case GPUIR_SIMD_AVX512: return "avx512";
    case GPUIR_SIMD_AVX2: return "avx2";
    default: return "scalar";
  }
}

#if GPUIR__X86

GPUIR__AVX2 GPUIR__INLINE __m256i gpuir__avx2_load(const void *p) {
  return _mm256_loadu_si256((const __m256i *)p);
}

GPUIR__AVX2 GPUIR__INLINE void gpuir__avx2_store(void *p, __m256i x) { _mm256_storeu_si256((__m256i *)p, x); }

GPUIR__AVX2 GPUIR__INLINE __m256i gpuir__avx2_iota(void) { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }

/* Loads 16 bytes into both halves. */
GPUIR__AVX2 GPUIR__INLINE __m256i gpuir__avx2_twice(const void *p) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p));
}

/* Loads 16 bytes into the lower half and 16 others into the upper half. */
GPUIR__AVX2 GPUIR__INLINE __m256i gpuir__avx2_two(const void *low, const void *high) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)low)),
                                 _mm_loadu_si128((const __m128i *)high), 1);
}

GPUIR__AVX512 GPUIR__INLINE __m512i gpuir__avx512_iota(void) {
  return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

/* Returns a vector mask as an integer. gcc 12 may spill a mask as 16 bits and read 32 back (with sanitizers it
 * does); the empty statement forces the mask into a general register first. */
GPUIR__AVX512 static inline uint32_t gpuir__mask_bits(__mmask16 mask) {
  uint32_t bits = mask;
  __asm__("" : "+r"(bits));
  return bits;
}

/* Returns the next `width` docIDs: docs itself if n of them are left and n >= width, otherwise `last`, which is filled
 * with the n and repeats the first of them. */
static inline const uint32_t *gpuir__whole_vector(const uint32_t *docs, uint32_t n, uint32_t width,
                                                  uint32_t *last) {
  uint32_t t;
  if (GPUIR__LIKELY(n >= width)) return docs;
  for (t = 0; t < width; t++) last[t] = docs[t < n ? t : 0];
  return last;
}
#endif

/* ----------------------------------------------------------------------------
 * Packed numbers
 *
 * Numbers of w bits each, side by side ("horizontally"): number i begins at bit i w, bit k being bit k % 8 of byte k
 * / 8, low bits first.
 * --------------------------------------------------------------------------*/

/* Returns number i of packed ones. Reads 8 bytes from the number's first. */
GPUIR_HD static inline uint32_t gpuir__packed_value(const uint8_t *p, unsigned w, uint64_t i) {
  uint64_t bit = i * w;
  return (uint32_t)(gpuir__load64(p + bit / 8) >> bit % 8) & gpuir__low_bits(w);
}

/* Returns the bytes that count packed numbers of w bits take. */
GPUIR_HD static inline uint64_t gpuir__packed_size(uint64_t count, unsigned w) { return (count * w + 7) / 8; }

/* Packs the low w bits of each of count values; writes up to 4 zeros behind the bytes that they take. */
static void gpuir__pack(uint8_t *to, const uint32_t *values, uint64_t count, unsigned w) {
  const uint32_t mask = gpuir__low_bits(w);
  uint64_t acc = 0, i;
  unsigned fill = 0;
  for (i = 0; i < count; i++) {
    acc |= (uint64_t)(values[i] & mask) << fill;
    fill += w;
    if (fill < 32) continue;
    gpuir__store32(to, (uint32_t)acc);
    to += 4;
    acc >>= 32;
    fill -= 32;
  }
  gpuir__store32(to, (uint32_t)acc);
}

#if GPUIR__X86
/* How 8 packed numbers are taken out of the 32 bytes from the first one's: of each the 32-bit word in which it begins,
 * the bit of that word, and the w low bits. 8 numbers are w bytes, so that the next 8 have the same words and bits. */
typedef struct gpuir__packed8 {
  __m256i word, shift, mask;
} gpuir__packed8;

/* Prepares for numbers of w bits, the first of which begins at bit `skip` < 8 of its byte. */
GPUIR__AVX2 GPUIR__INLINE gpuir__packed8 gpuir__avx2_packed_of(unsigned w, unsigned skip) {
  const __m256i bit = _mm256_add_epi32(_mm256_mullo_epi32(_mm256_set1_epi32((int)w), gpuir__avx2_iota()),
                                       _mm256_set1_epi32((int)skip));
  gpuir__packed8 f;
  f.word = _mm256_srli_epi32(bit, 5);
  f.shift = _mm256_and_si256(bit, _mm256_set1_epi32(31));
  f.mask = _mm256_set1_epi32((int)gpuir__low_bits(w));
  return f;
}

/* Returns the 8 numbers from p on. A number that begins at bit 0 takes nothing from the next word: shifting up by 32
 * bits gives 0. */
GPUIR__AVX2 GPUIR__INLINE __m256i gpuir__avx2_packed(const uint8_t *p, const gpuir__packed8 *f) {
  const __m256i x = gpuir__avx2_load(p);
  const __m256i lo = _mm256_permutevar8x32_epi32(x, f->word);
  const __m256i hi = _mm256_permutevar8x32_epi32(x, _mm256_add_epi32(f->word, _mm256_set1_epi32(1)));
  const __m256i up = _mm256_sllv_epi32(hi, _mm256_sub_epi32(_mm256_set1_epi32(32), f->shift));
  return _mm256_and_si256(_mm256_or_si256(_mm256_srlv_epi32(lo, f->shift), up), f->mask);
}

/* The same of 16 packed numbers, which are 2 w bytes, and the 64 bytes from the first one's. */
typedef struct gpuir__packed16 {
  __m512i word, shift, mask;
} gpuir__packed16;

GPUIR__AVX512 GPUIR__INLINE gpuir__packed16 gpuir__avx512_packed_of(unsigned w, unsigned skip) {
  const __m512i bit = _mm512_add_epi32(_mm512_mullo_epi32(_mm512_set1_epi32((int)w), gpuir__avx512_iota()),
                                       _mm512_set1_epi32((int)skip));
  gpuir__packed16 f;
  f.word = _mm512_srli_epi32(bit, 5);
  f.shift = _mm512_and_si512(bit, _mm512_set1_epi32(31));
  f.mask = _mm512_set1_epi32((int)gpuir__low_bits(w));
  return f;
}

GPUIR__AVX512 GPUIR__INLINE __m512i gpuir__avx512_packed(const uint8_t *p, const gpuir__packed16 *f) {
  const __m512i x = _mm512_loadu_si512(p);
  const __m512i lo = _mm512_permutexvar_epi32(f->word, x);
  const __m512i hi = _mm512_permutexvar_epi32(_mm512_add_epi32(f->word, _mm512_set1_epi32(1)), x);
  const __m512i up = _mm512_sllv_epi32(hi, _mm512_sub_epi32(_mm512_set1_epi32(32), f->shift));
  return _mm512_ternarylogic_epi32(_mm512_srlv_epi32(lo, f->shift), up, f->mask, 0xa8); /* (a | b) & c */
}
#endif

/* ----------------------------------------------------------------------------
 * Gaps
 *
 * A docID codec stores gaps, each docID less its predecessor less one ("D1"):
 *
 *     docID    3   4   9          gap   3   0   4          docID = previous + 1 + gap
 *
 * The predecessor of the first docID is UINT32_MAX, and the arithmetic wraps. A decoder produces up to 128 gaps and
 * sums them up here, or in the registers that hold them. It clamps each docID to `limit`, because whoever looks a
 * docID up in an array must be able to trust it whatever the file says.
 * --------------------------------------------------------------------------*/

/* Turns the count <= 128 gaps in out[0..GPUIR__BLOCK_ROOM) into docIDs <= limit, in place. `prev` is the docID
 * before. */
static void gpuir__sum_gaps_scalar(uint32_t *out, uint32_t count, uint32_t prev, uint32_t limit) {
  uint32_t i;
  for (i = 0; i < count; i++) {
    prev += out[i] + 1;
    out[i] = gpuir__min32(prev, limit);
  }
}

#if GPUIR__X86
/* Returns the docIDs that would follow prev if the next 8 gaps were 0: what one step of the summation hands to the
 * next. */
GPUIR__AVX2 GPUIR__INLINE __m256i gpuir__avx2_first(uint32_t prev) {
  return _mm256_add_epi32(_mm256_set1_epi32((int)(prev + 1)), gpuir__avx2_iota());
}

/* Returns the docIDs of 8 gaps and advances *next. The chain from one call to the next is a single addition. */
GPUIR__AVX2 GPUIR__INLINE __m256i gpuir__avx2_docids(__m256i x, __m256i *next, __m256i limit) {
  __m256i total;
  x = _mm256_add_epi32(x, _mm256_slli_si256(x, 4));
  x = _mm256_add_epi32(x, _mm256_slli_si256(x, 8));
  total = _mm256_permutevar8x32_epi32(x, _mm256_set1_epi32(3)); /* of the lower half, for the upper half */
  x = _mm256_add_epi32(x, _mm256_blend_epi32(_mm256_setzero_si256(), total, 0xf0));
  total = _mm256_permutevar8x32_epi32(x, _mm256_set1_epi32(7));
  x = _mm256_add_epi32(x, *next);
  *next = _mm256_add_epi32(*next, _mm256_add_epi32(total, _mm256_set1_epi32(8)));
  return _mm256_min_epu32(x, limit);
}

GPUIR__AVX2 static void gpuir__sum_gaps_avx2(uint32_t *out, uint32_t count, uint32_t prev, uint32_t limit) {
  __m256i next = gpuir__avx2_first(prev), most = _mm256_set1_epi32((int)limit);
  uint32_t i;
  for (i = 0; i < count; i += 8)
    gpuir__avx2_store(out + i, gpuir__avx2_docids(gpuir__avx2_load(out + i), &next, most));
}

GPUIR__AVX512 GPUIR__INLINE __m512i gpuir__avx512_first(uint32_t prev) {
  return _mm512_add_epi32(_mm512_set1_epi32((int)(prev + 1)), gpuir__avx512_iota());
}

/* Returns the docIDs of 16 gaps and advances *next. */
GPUIR__AVX512 GPUIR__INLINE __m512i gpuir__avx512_docids(__m512i x, __m512i *next, __m512i limit) {
  const __m512i back1 = _mm512_setr_epi32(0, 0, 0, 0, 3, 3, 3, 3, 7, 7, 7, 7, 11, 11, 11, 11);
  const __m512i back2 = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 3, 3, 3, 3, 7, 7, 7, 7);
  __m512i total;
  x = _mm512_add_epi32(x, _mm512_bslli_epi128(x, 4));
  x = _mm512_add_epi32(x, _mm512_bslli_epi128(x, 8));
  x = _mm512_add_epi32(x, _mm512_maskz_permutexvar_epi32(0xfff0, back1, x)); /* the quarter before */
  x = _mm512_add_epi32(x, _mm512_maskz_permutexvar_epi32(0xff00, back2, x)); /* the two before that */
  total = _mm512_permutexvar_epi32(_mm512_set1_epi32(15), x);
  x = _mm512_add_epi32(x, *next);
  *next = _mm512_add_epi32(*next, _mm512_add_epi32(total, _mm512_set1_epi32(16)));
  return _mm512_min_epu32(x, limit);
}

GPUIR__AVX512 static void gpuir__sum_gaps_avx512(uint32_t *out, uint32_t count, uint32_t prev,
                                                 uint32_t limit) {
  __m512i next = gpuir__avx512_first(prev), most = _mm512_set1_epi32((int)limit);
  uint32_t i;
  for (i = 0; i < count; i += 16)
    _mm512_storeu_si512(out + i, gpuir__avx512_docids(_mm512_loadu_si512(out + i), &next, most));
}
#endif

/* Fills gaps[] with the gaps of count docIDs; `prev` is the docID before the first. */
static void gpuir__take_gaps(const uint32_t *docs, uint32_t count, uint32_t prev, uint32_t *gaps) {
  uint32_t i;
  if (count) gaps[0] = docs[0] - prev - 1;
  for (i = 1; i < count; i++) gaps[i] = docs[i] - docs[i - 1] - 1;
}

/* Counts in widths[0..40) how many of at most 128 values have each width; `all` is their bitwise or. Four histograms
 * are filled and then added, since increments of one counter would wait for each other. */
static void gpuir__count_widths(const uint32_t *v, uint32_t count, uint32_t all, uint8_t *widths) {
  uint8_t histogram[4][40];
  uint32_t i = 0, k;
  if (count < 32) {
    memset(widths, 0, 40);
    for (; i < count; i++) widths[gpuir__width32(v[i])]++;
    return;
  }
  memset(histogram, 0, sizeof histogram);
#if GPUIR__X86
  if (!(all >> 30)) /* SSE2: the exponent of 2 v + 1 as a number that is not rounded up to a power of two */
    for (; i + 4 <= count; i += 4) {
      __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(v + i));
      x = _mm_or_si128(_mm_add_epi32(x, x), _mm_set1_epi32(1));
      x = _mm_castps_si128(_mm_cvtepi32_ps(_mm_andnot_si128(_mm_srli_epi32(x, 1), x)));
      x = _mm_sub_epi32(_mm_srli_epi32(x, 23), _mm_set1_epi32(127));
      histogram[0][(unsigned)_mm_cvtsi128_si32(x)]++;
      histogram[1][_mm_extract_epi16(x, 2)]++;
      histogram[2][_mm_extract_epi16(x, 4)]++;
      histogram[3][_mm_extract_epi16(x, 6)]++;
    }
#else
  (void)all;
#endif
  for (; i < count; i++) histogram[i % 4][gpuir__width32(v[i])]++;
  for (k = 0; k < 40; k += 8) /* eight bytes at a time: no sum exceeds 128 */
    gpuir__store64(widths + k, gpuir__load64(histogram[0] + k) + gpuir__load64(histogram[1] + k) +
                                   gpuir__load64(histogram[2] + k) + gpuir__load64(histogram[3] + k));
}

/* ============================================================================
 * [03-codecs]  the seam of the codecs; vbyte
 *
 * A codec turns the values of one list into bytes and back, 128 at a time. DocID codecs take
 * strictly increasing values; frequency codecs take any, the frequencies less one. A list of
 * fewer than 128 postings is one block and has no directory; a longer one has a directory,
 * which keeps each block's offset and width outside the stream, ready for a GPU.
 *
 * Uses      [01-base], [02-vectors].
 * Start at  gpuir__codec (the seam), gpuir__stream (one list opened for decoding),
 *           gpuir__target (where a list is encoded to).
 * Tests     tests/unit/03_codecs.c
 * ==========================================================================*/

#define GPUIR__BLOCK 128u
/* Values that a decoder may write: those behind the last value of a block are unspecified. */
#define GPUIR__BLOCK_ROOM (GPUIR__BLOCK + 16u)
/* Readable bytes behind every stream: a decoder may read them, but nothing may depend on them. */
#define GPUIR__STREAM_PAD 64u

struct gpuir__codec;
struct gpuir__codec_kernels;

/* One list's stream of docIDs or of frequencies, opened for decoding. */
typedef struct gpuir__stream {
  const struct gpuir__codec *codec;
  const struct gpuir__codec_kernels *kernels; /* of the level at which the list is decoded */
  const uint8_t *bytes;                       /* len of them, and GPUIR__STREAM_PAD readable ones behind */
  uint64_t len;
  uint32_t n;             /* values */
  uint32_t limit;         /* docIDs are clamped to it: N - 1 */
  const uint32_t *offset; /* [block], in the codec's unit; NULL: one block, no directory */
  const uint8_t *width;   /* [block], a byte whose meaning is the codec's; NULL with offset */
  const uint32_t *last;   /* [block], its last docID; NULL with offset, and for frequencies */
  void *scratch;          /* scratch_size bytes, or NULL when that is 0 */
} gpuir__stream;

/* Where a list is encoded to. */
typedef struct gpuir__target {
  const gpuir_allocator *a;
  gpuir__buf *out;  /* the stream is appended to it */
  uint32_t *offset; /* [block], filled in the codec's unit; NULL for a list of fewer than 128 */
  uint8_t *width;   /* [block], filled; NULL with offset */
  uint64_t param;   /* the user's choice, 0: the codec's default; the stream says what decoding needs of it */
} gpuir__target;

/* The codecs' ids in the file; never reused. PFL: pfd-list, PARA: parapfor. */
enum {
  GPUIR__ID_VBYTE = 1,
  GPUIR__ID_BP128,
  GPUIR__ID_PFD,
  GPUIR__ID_NEWPFD,
  GPUIR__ID_OPTPFD,
  GPUIR__ID_EF,
  GPUIR__ID_QS,
  GPUIR__ID_RICE,
  GPUIR__ID_PFL,
  GPUIR__ID_PARA,
  GPUIR__ID_LRC,
  GPUIR__ID_LRCSEG,
  GPUIR__ID_SEGLRC,
  GPUIR__ID_HSLRC
};

typedef struct gpuir__codec {
  const char *name;
  uint8_t id;     /* in the file; never reused */
  uint8_t docids; /* 1: takes docIDs, 0: frequencies */
  uint8_t unit;   /* bytes that one step of a block's offset stands for; a power of two, at most 16 */
  uint8_t param;  /* GPUIR__P_: what the user's choice is and how it is spelt */
  uint8_t mode;   /* which codec of its family this is, as the family's functions understand it */
  uint16_t cost;  /* of decoding a value, in hundredths of bp128's; see gpuir__coding */
  /* Appends the list's stream, for a long list padded to `unit`, and fills offset[] and width[] of its ceil(n / 128)
   * blocks. Returns 0, NOMEM or LIMIT, and has then appended nothing. */
  int (*encode)(const struct gpuir__codec *codec, const uint32_t *values, uint32_t n,
                const gpuir__target *to);
  /* Returns the bytes of decoding state that a list needs; NULL: none. */
  size_t (*scratch_size)(const gpuir__stream *s);
  /* Checks the stream's own headers and fills scratch; NULL: nothing to check. 0 or FORMAT. */
  int (*open)(gpuir__stream *s);
  /* Decodes block `block` (< ceil(n / 128)) to out[0..GPUIR__BLOCK_ROOM). `prev` is the last docID of
   * the block before, UINT32_MAX before the first; frequency codecs ignore it. Never reads beyond
   * bytes + len + GPUIR__STREAM_PAD whatever the bytes, offsets and widths say; docIDs are <= limit,
   * and correct only if the file is. */
  void (*decode_block)(const gpuir__stream *s, uint32_t block, uint32_t prev, uint32_t *out);
  /* Returns value i < n alone; required of frequency codecs, NULL where a codec cannot. */
  uint32_t (*get)(const gpuir__stream *s, uint32_t i);
  /* Looks docID x up in a block of 128 that is not the list's last and would hold x: prev < x <= last[block].
   * Returns the index of x in the block, or GPUIR__ABSENT; GPUIR__UNTOLD: the block has to be decoded. Of a damaged
   * file any of these. Nothing is decoded to memory. NULL where a codec cannot. */
  uint32_t (*find)(const gpuir__stream *s, uint32_t block, uint32_t prev, uint32_t x);
} gpuir__codec;

#define GPUIR__ABSENT GPUIR__BLOCK
#define GPUIR__UNTOLD (GPUIR__BLOCK + 1)

enum { GPUIR__P_NONE, GPUIR__P_RATIO, GPUIR__P_LEVELS, GPUIR__P_SEGMENT, GPUIR__P_BUCKET };

struct gpuir__bp128_view;
struct gpuir__line;

/* What decoders are made of, at one SIMD level. The table with a row a level, gpuir__codec_of_level, is in
 * [08-codings]; each function is described where its scalar form is defined. */
typedef struct gpuir__codec_kernels {
  void (*sum_gaps)(uint32_t *out, uint32_t count, uint32_t prev, uint32_t limit);
  void (*bp128_docids)(const gpuir__stream *s, uint32_t block, uint32_t prev, uint32_t *out);
  void (*bp128_freqs)(const gpuir__stream *s, uint32_t block, uint32_t prev, uint32_t *out);
  uint32_t (*bp128_get)(const gpuir__stream *s, uint32_t i);
  uint32_t (*bp128_find)(const gpuir__stream *s, uint32_t block, uint32_t prev, uint32_t x);
  /* used by the two levels with vectors: blocks of bp128 whose values are not narrow */
  void (*wide_docids)(const uint8_t *p, unsigned w, uint32_t count, int vertical,
                      const struct gpuir__bp128_view *v, uint32_t prev, uint32_t limit, uint32_t *out);
  void (*wide_freqs)(const uint8_t *p, unsigned w, uint32_t count, int vertical,
                     const struct gpuir__bp128_view *v, uint32_t *out);
#ifndef GPUIR_NO_LAB
  void (*unpack)(const uint8_t *p, unsigned w, unsigned skip, uint32_t count, uint32_t *out);
  uint32_t (*stops)(const uint8_t *p, uint64_t bytes, unsigned skip, uint64_t flip, uint32_t at, uint32_t got,
                    uint32_t count, uint32_t *pos);
  void (*join)(const uint32_t *pos, unsigned b, uint32_t add, uint32_t limit, uint32_t count, uint32_t *out);
  void (*marked)(const gpuir__stream *s, const struct gpuir__bp128_view *v, uint32_t count, uint32_t prev,
                 uint32_t *out);
  void (*line_add)(const struct gpuir__line *l, uint32_t from, uint32_t limit, uint32_t count, uint32_t *out);
#endif
} gpuir__codec_kernels;

/* Returns the number of values in a block of a list of n. */
GPUIR_HD static inline uint32_t gpuir__block_count(uint32_t n, uint32_t block) {
  return gpuir__min32(n - block * GPUIR__BLOCK, GPUIR__BLOCK);
}

/* ---- encoding ---- */

/* Returns room for n zeroed bytes and 8 more behind them; NULL without memory. */
static uint8_t *gpuir__zero_room(const gpuir_allocator *a, gpuir__buf *out, uint64_t n) {
  uint8_t *to = n < SIZE_MAX / 4 ? gpuir__buf_room(a, out, (size_t)n + 8) : NULL;
  if (to) memset(to, 0, (size_t)n + 8);
  return to;
}

/* Notes of block `block` where it begins and its width byte, if the list has a directory. */
static inline void gpuir__target_block(const gpuir__target *to, uint32_t block, uint32_t offset,
                                       unsigned width) {
  if (!to->offset) return;
  to->offset[block] = offset;
  to->width[block] = (uint8_t)width;
}

#define GPUIR__BLOCK_BYTES 1024u /* more than a block takes in any codec */

/* Encodes one block of count <= 128 gaps or frequencies, which it may change, into GPUIR__BLOCK_BYTES zeroed bytes.
 * Returns the end of its bytes; *width: its width byte. `unit` is what the block's bytes will be padded to. */
typedef uint8_t *gpuir__block_encoder(const gpuir__codec *codec, uint32_t *values, uint32_t count,
                                      uint32_t unit, uint8_t *to, uint8_t *width);

/* Encodes a list whose blocks stand alone, one after the other. A short list is `head` bytes, 1 for the width byte
 * or 0, and its block. 0, NOMEM or LIMIT. */
static int gpuir__encode_blocks(const gpuir__codec *codec, const uint32_t *values, uint32_t n,
                                const gpuir__target *t, gpuir__block_encoder *encode, unsigned head) {
  const uint32_t unit = t->offset ? codec->unit : 1;
  const size_t start = t->out->len;
  uint32_t at, count, v[GPUIR__BLOCK];
  for (at = 0; at < n; at += count) {
    uint8_t *to = gpuir__zero_room(t->a, t->out, GPUIR__BLOCK_BYTES), *end, width = 0;
    const uint64_t offset = (t->out->len - start) / unit;
    if (!to || offset > UINT32_MAX) {
      t->out->len = start;
      return to ? GPUIR_E_LIMIT : GPUIR_E_NOMEM;
    }
    count = gpuir__min32(n - at, GPUIR__BLOCK);
    if (codec->docids)
      gpuir__take_gaps(values + at, count, at ? values[at - 1] : UINT32_MAX, v);
    else
      memcpy(v, values + at, count * sizeof *v);
    end = encode(codec, v, count, unit, t->offset ? to : to + head, &width);
    gpuir__target_block(t, at / GPUIR__BLOCK, (uint32_t)offset, width);
    if (!t->offset && head) to[0] = width;
    t->out->len += ((size_t)(end - to) + unit - 1) & ~(size_t)(unit - 1);
  }
  return GPUIR_OK;
}

/* ----------------------------------------------------------------------------
 * vbyte (1)
 *
 * Seven bits a byte, the low ones first; the high bit says that more bytes follow. Five bytes
 * at most. Source: Williams & Zobel, "Compressing integers for fast file access", The Computer
 * Journal 42(3), 1999.
 *
 *     value 300 = 10 0101100        byte 0  1|0101100        byte 1  0|0000010
 *                                   more ---'                 last --'
 *
 * The list is the bytes of its gaps (docIDs) or of its values (frequencies), without any
 * padding; a block's offset is that of its first byte, its width is 0. The decoder looks at the
 * high bits of 64 bytes at once, so that the length of one value does not hold up the next.
 *
 * A lane finds its value's last byte among the ends of gpuir__vbyte_ends and puts its bytes
 * together by gpuir__vbyte_value; gpuir__vbyte_at does both for value i of a block.
 * --------------------------------------------------------------------------*/

/* Writes v, in 10 bytes at most; returns the end of them. */
static inline uint8_t *gpuir__vbyte_put(uint8_t *to, uint64_t v) {
  for (; v >= 128; v >>= 7) *to++ = (uint8_t)(v | 128);
  *to++ = (uint8_t)v;
  return to;
}

/* Reads a value and moves *p behind it: 10 bytes at most, whatever they are. */
static inline uint64_t gpuir__vbyte_get(const uint8_t **p) {
  uint64_t v = *(*p)++;
  if (GPUIR__UNLIKELY(v >= 128)) {
    unsigned shift = 7;
    uint64_t byte;
    v &= 127;
    do {
      byte = *(*p)++;
      v |= (byte & 127) << shift;
      shift += 7;
    } while (byte >= 128 && shift < 63);
  }
  return v;
}

/* Returns the value of `len` >= 1 bytes; reads 8. Of more than five bytes, which no encoder writes, the first five
 * count. */
GPUIR_HD static inline uint32_t gpuir__vbyte_value(const uint8_t *p, unsigned len) {
  uint64_t x = gpuir__load64(p) & (UINT64_MAX >> (64 - 8 * (len < 5 ? len : 5)));
  x = (x & 0x007f007f007f007fu) | ((x & 0x7f007f007f007f00u) >> 1); /* 14 bits in each 16 */
  x = (x & 0x00003fff00003fffu) | ((x & 0x3fff00003fff0000u) >> 2); /* 28 bits in each 32 */
  return (uint32_t)x | (uint32_t)(x >> 32) << 28;
}

/* Returns a bit for each of the 64 bytes at p that ends a value; only `avail` bytes belong to the stream. */
GPUIR_HD static inline uint64_t gpuir__vbyte_ends(const uint8_t *p, uint64_t avail) {
  uint64_t more = 0;
  unsigned i;
#if GPUIR__X86
  for (i = 0; i < 4; i++) /* SSE2, which every x86-64 has */
    more |=
        (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i)))
        << (16 * i);
#else
  for (i = 0; i < 8; i++)
    more |= ((gpuir__load64(p + 8 * i) & 0x8080808080808080u) >> 7) * 0x0102040810204080u >> 56 << (8 * i);
#endif
  return avail < 64 ? ~more & gpuir__low_bits64((unsigned)avail) : ~more;
}

/* Decodes count <= 128 values; those that the bytes do not hold are 0. */
static void gpuir__vbyte_values(const uint8_t *p, uint64_t avail, uint32_t count, uint32_t *out) {
  uint32_t i, j, got = 0;
  while (got < count) {
    uint64_t ends = gpuir__vbyte_ends(p, avail);
    uint32_t want = gpuir__min32(count - got, 64), start = 0;
    if (!ends) {
      memset(out + got, 0, (count - got) * sizeof *out);
      return;
    }
    if (!(~ends & (UINT64_MAX >> (64 - want)))) { /* one byte each */
      for (i = 0; i < want; i += 16)
        for (j = 0; j < 16; j++) out[got + i + j] = p[i + j];
      got += want;
      start = want;
    } else {
      do {
        uint32_t end = gpuir__ctz64(ends) + 1;
        out[got++] = gpuir__vbyte_value(p + start, end - start);
        ends &= ends - 1;
        start = end;
      } while (ends && got < count);
    }
    p += start;
    avail -= start;
  }
}

/* Returns value i of those that begin at p; 0 if the bytes do not hold it. */
GPUIR_HD static inline uint32_t gpuir__vbyte_at(const uint8_t *p, uint64_t avail, uint32_t i) {
  for (;;) {
    const uint64_t ends = gpuir__vbyte_ends(p, avail);
    const unsigned here = gpuir__ones64(ends);
    unsigned end, start;
    if (!here) return 0;
    end = gpuir__select64(ends, i < here ? i : here - 1);
    if (i < here) {
      start = gpuir__width64(ends & gpuir__low_bits64(end)); /* behind the end before */
      return gpuir__vbyte_value(p + start, end + 1 - start);
    }
    i -= here;
    p += end + 1;
    avail -= end + 1;
  }
}

/* Returns where a block begins; *avail: the bytes of the stream from there on. */
GPUIR_HD static inline const uint8_t *gpuir__vbyte_block(const gpuir__stream *s, uint32_t block,
                                                         uint64_t *avail) {
  uint64_t at = s->offset ? gpuir__min64(s->offset[block], s->len) : 0;
  *avail = s->len - at;
  return s->bytes + at;
}

static void gpuir__vbyte_decode(const gpuir__stream *s, uint32_t block, uint32_t prev, uint32_t *out) {
  const uint32_t count = gpuir__block_count(s->n, block);
  uint64_t avail;
  const uint8_t *p = gpuir__vbyte_block(s, block, &avail);
  gpuir__vbyte_values(p, avail, count, out);
  if (s->codec->docids) s->kernels->sum_gaps(out, count, prev, s->limit);
}

GPUIR_HD static inline uint32_t gpuir__vbyte_freqs_get(const gpuir__stream *s, uint32_t i) {
  uint64_t avail;
  const uint8_t *p = gpuir__vbyte_block(s, i / GPUIR__BLOCK, &avail);
  return gpuir__vbyte_at(p, avail, i % GPUIR__BLOCK);
}

static uint8_t *gpuir__vbyte_encode_block(const gpuir__codec *codec, uint32_t *values, uint32_t count,
                                          uint32_t unit, uint8_t *to, uint8_t *width) {
  uint32_t i;
  (void)codec;
  (void)unit;
  (void)width;
  for (i = 0; i < count; i++) to = gpuir__vbyte_put(to, values[i]);
  return to;
}

static int gpuir__vbyte_encode(const gpuir__codec *codec, const uint32_t *values, uint32_t n,
                               const gpuir__target *to) {
  return gpuir__encode_blocks(codec, values, n, to, gpuir__vbyte_encode_block, 0);
}

/* ============================================================================
 * [04-bp128]  bp128: the default codec
 *
 * Uses      [02-vectors], [03-codecs].
 * Start at  gpuir__bp128_encode_block; gpuir__bp128_block and gpuir__bp128_open (where a block's low bits, marks
 *           and high bits are);
 *           gpuir__bp128_scalar (decoding, plainly); gpuir__bp128_simd (the same with vectors).
 * Tests     tests/unit/04_bp128.c
 * ==========================================================================*/

/* ----------------------------------------------------------------------------
 * bp128 (2)
 *
 * Binary packing: of all values of a block, the low b bits (0 to 32) are kept at the same width;
 * those that need more, the exceptions, have their high bits elsewhere. Sources:
 * SIMD-BP128 with D1 in Lemire & Boytsov, "Decoding billions of integers per second through
 * vectorization", Software: Practice and Experience 45(1), 2015; exceptions from patched coding:
 * Zukowski, Heman, Nes & Boncz, "Super-scalar RAM-CPU cache compression", ICDE 2006, and
 * NewPFD/OptPFD in Yan, Ding & Suel, "Inverted index compression and query processing with
 * optimized document ordering", WWW 2009. Those list or chain the positions of exceptions and
 * patch one after the other. Here a bitmap marks them: the rank of an exception is the number of
 * marks before its own, and the high bits of the exception with rank r stand in place r. So each
 * value finds its high bits for itself: a vector expands 8 or 16 at once, each thread of a warp
 * counts bits, and a single value can be looked up.
 *
 * A block of 128 has four vertical lanes, so that a register of 128, 256 or 512 bits unpacks 4, 8
 * or 16 neighbours at once, and each thread of a warp four. Value i stands in row i / 4 of lane
 * i % 4. Each lane is a stream of 32 b bits, low bits first, and the lanes' words take turns:
 *
 *     b = 12                      lane 0          lane 1         lane 2         lane 3
 *     bytes  0..15   bits  0..11  value 0         value 1        value 2        value 3
 *                         12..23  value 4         value 5        value 6        value 7
 *                         24..31  value 8, low    value 9, low   value 10, low  value 11, low
 *     bytes 16..31   bits  0..3   value 8, high   value 9, high  value 10, high value 11, high
 *                          4..15  value 12        value 13       value 14       value 15
 *     ...                                                                 16 b bytes in all
 *
 * A block of n < 128 is packed horizontally, see gpuir__packed_value, in ceil(n b / 8) bytes. If
 * the block has exceptions, there follow
 *
 *     marks          ceil(n / 8) bytes     bit i (bit i % 8 of byte i / 8): value i is an exception
 *     h              1 byte                width of the high bits, 1 to 32 - b
 *     high bits      ceil(x h / 8) bytes   value >> b of the x exceptions, packed horizontally
 *
 *     values   5   2   300   1   7         b = 3, h = 6
 *     low      5   2     4   1   7
 *     marks    0   0     1   0   0         300 = 37 << 3 | 4: the one exception's high bits are 37
 *
 * The block's width byte is b in bits 0 to 5, 0 in bit 6, and in bit 7 whether it has exceptions.
 * The encoder takes the b of the fewest bytes. A list of 128 or more is its blocks, each padded
 * with zeros to 4 bytes, the unit of offset[]; width[] has the width bytes. A shorter list is its
 * width byte and its block, without padding. DocIDs are packed as gaps, frequencies as they are.
 * Of a block whose bytes are not all there, or that breaks these rules, all values are 0; if only
 * its exceptions do, it has none.
 *
 * A lane takes gpuir__bp128_value of a full block, gpuir__packed_value of another, of what
 * gpuir__bp128_block (or _low) and gpuir__bp128_open find, and adds gpuir__bp128_high_of;
 * gpuir__bp128_get does all of it.
 * --------------------------------------------------------------------------*/

#define GPUIR__BP128_EXCEPTIONS 0x80u

/* Returns the word of a vertical block in which value i begins, at bit i / 4 * w % 32; it goes on 4 words behind. */
GPUIR_HD static inline unsigned gpuir__bp128_word(unsigned w, unsigned i) {
  return i / 4 * w / 32 * 4 + i % 4;
}

/* Returns the low bits of value i of a vertical block. Reads up to 16 bytes behind them, or the first 32 at w = 0. */
GPUIR_HD static inline uint32_t gpuir__bp128_value(const uint8_t *block, unsigned w, unsigned i) {
  unsigned bit = i / 4 * w;
  const uint8_t *p = block + 4 * gpuir__bp128_word(w, i);
  uint64_t x = (uint64_t)gpuir__load32(p + 16) << 32 | gpuir__load32(p);
  return (uint32_t)(x >> bit % 32) & gpuir__low_bits(w);
}

/* Returns where the low bits of the block of `count` values at bytes[at] begin; *b: their width, 0 if not all of
 * them lie within the len bytes; *left: the bytes of the stream behind them, 0 if the block has no exceptions. */
GPUIR_HD static inline const uint8_t *gpuir__bp128_low(const uint8_t *bytes, uint64_t len, uint64_t at,
                                                       unsigned width, uint32_t count, unsigned *b,
                                                       uint64_t *left) {
  const unsigned w = width & ~GPUIR__BP128_EXCEPTIONS, size = (count * w + 7) / 8;
  *b = 0;
  *left = 0;
  if (w > 32 || at > len || size > len - at) return bytes;
  *b = w;
  if (width & GPUIR__BP128_EXCEPTIONS) *left = len - at - size;
  return bytes + at;
}

/* A block with exceptions. */
typedef struct gpuir__bp128_view {
  const uint8_t *low, *high; /* where the low bits of all values, and the high bits of exceptions, begin */
  uint64_t marks[2];         /* a bit a value: it is an exception; 0 behind the last value */
  unsigned b, h;             /* widths of low and high bits */
} gpuir__bp128_view;

/* Returns the number of exceptions before value 128. */
GPUIR_HD static inline unsigned gpuir__bp128_exceptions(const gpuir__bp128_view *v) {
  return gpuir__popcount64(v->marks[0]) + gpuir__popcount64(v->marks[1]);
}

/* Finds the exceptions of the block whose low bits gpuir__bp128_low has found. Returns 0 if it has none, or none
 * that can be read: what *v describes lies within the stream, whatever the bytes say. */
GPUIR_HD static inline int gpuir__bp128_open(const uint8_t *low, unsigned b, uint64_t left, uint32_t count,
                                             gpuir__bp128_view *v) {
  const unsigned marks = (count + 7) / 8;
  const uint8_t *p = low + (count * b + 7) / 8;
  uint64_t m0, m1;
  unsigned h;
  if (left <= marks) return 0;
  left -= marks + 1;
  h = p[marks];
  if (h == 0 || h > 32 - b) return 0;
  m0 = gpuir__load64(p);
  m1 = gpuir__load64(p + 8);
  if (count < GPUIR__BLOCK) {
    m1 = count > 64 ? m1 & gpuir__low_bits64(count - 64) : 0;
    m0 = count < 64 ? m0 & gpuir__low_bits64(count) : m0;
  }
  v->low = low;
  v->high = p + marks + 1;
  v->marks[0] = m0;
  v->marks[1] = m1;
  v->b = b;
  v->h = h;
  /* the high bits of 128 exceptions fit, except near the stream's end */
  return left >= 16 * h || left >= (h * gpuir__bp128_exceptions(v) + 7) / 8;
}

/* Returns the high bits of the exception with rank `rank`, in their place above the low bits. Reads 8 bytes from their
 * first byte, even behind the last exception. */
GPUIR_HD static inline uint32_t gpuir__bp128_high(const gpuir__bp128_view *v, unsigned rank) {
  return gpuir__packed_value(v->high, v->h, rank) << v->b;
}

/* Returns the high bits of value i in their place, 0 if it is no exception. There are no branches, because marks cannot
 * be predicted. */
GPUIR_HD static inline uint32_t gpuir__bp128_high_of(const gpuir__bp128_view *v, unsigned i) {
  const uint64_t bit = (uint64_t)1 << i % 64, below = bit - 1;
  const uint64_t in0 = v->marks[0] & (i < 64 ? below : UINT64_MAX), in1 = v->marks[1] & (i < 64 ? 0 : below);
  const uint32_t marked = ((i < 64 ? v->marks[0] : v->marks[1]) & bit) != 0;
  return gpuir__bp128_high(v, gpuir__popcount64(in0) + gpuir__popcount64(in1)) & (0 - marked);
}

/* Returns value i of a block whose low bits, b and `left` gpuir__bp128_low has found. */
GPUIR_HD static inline uint32_t gpuir__bp128_get(const uint8_t *low, unsigned b, uint64_t left,
                                                 uint32_t count, unsigned i) {
  uint32_t x = count == GPUIR__BLOCK ? gpuir__bp128_value(low, b, i) : gpuir__packed_value(low, b, i);
  gpuir__bp128_view v;
  if (left && gpuir__bp128_open(low, b, left, count, &v)) x |= gpuir__bp128_high_of(&v, i);
  return x;
}

/* Finds the low bits of a stream's block, as gpuir__bp128_low. */
GPUIR_HD static inline const uint8_t *gpuir__bp128_block(const gpuir__stream *s, uint32_t block,
                                                         uint32_t count, unsigned *b, uint64_t *left) {
  if (s->offset)
    return gpuir__bp128_low(s->bytes, s->len, (uint64_t)s->offset[block] * 4, s->width[block], count, b,
                            left);
  return gpuir__bp128_low(s->bytes, s->len, 1, s->len ? s->bytes[0] : 0, count, b, left);
}

/* ---- scalar ---- */

/* Unpacks the low bits, of w bits each, of count <= 128 values. */
GPUIR__INLINE void gpuir__bp128_low_scalar(const uint8_t *p, unsigned w, uint32_t count, int vertical,
                                           uint32_t *out) {
  uint32_t i;
  if (w == 0) {
    memset(out, 0, count * sizeof *out);
  } else if (vertical) {
    for (i = 0; i < GPUIR__BLOCK;
         i += 4) { /* written out, so that a row's word and shift are computed once */
      out[i] = gpuir__bp128_value(p, w, i);
      out[i + 1] = gpuir__bp128_value(p, w, i + 1);
      out[i + 2] = gpuir__bp128_value(p, w, i + 2);
      out[i + 3] = gpuir__bp128_value(p, w, i + 3);
    }
  } else {
    for (i = 0; i < count; i++) out[i] = gpuir__packed_value(p, w, i);
  }
}

/* Adds the high bits of all exceptions to out[]. */
GPUIR__INLINE void gpuir__bp128_patch_scalar(const gpuir__bp128_view *v, uint32_t *out) {
  unsigned rank = 0, half;
  for (half = 0; half < 2; half++) {
    uint64_t marks = v->marks[half];
    for (; marks; marks &= marks - 1) out[64 * half + gpuir__ctz64(marks)] |= gpuir__bp128_high(v, rank++);
  }
}

/* Decodes a block of bp128. `docids` is a constant. */
GPUIR__INLINE void gpuir__bp128_scalar(const gpuir__stream *s, uint32_t block, int docids, uint32_t prev,
                                       uint32_t *out) {
  const uint32_t count = gpuir__block_count(s->n, block);
  uint64_t left;
  unsigned w;
  const uint8_t *p = gpuir__bp128_block(s, block, count, &w, &left);
  gpuir__bp128_view v;
  gpuir__bp128_low_scalar(p, w, count, count == GPUIR__BLOCK, out);
  if (left && gpuir__bp128_open(p, w, left, count, &v)) gpuir__bp128_patch_scalar(&v, out);
  if (docids) gpuir__sum_gaps_scalar(out, count, prev, s->limit);
}

static void gpuir__bp128_docids_scalar(const gpuir__stream *s, uint32_t block, uint32_t prev, uint32_t *out) {
  gpuir__bp128_scalar(s, block, 1, prev, out);
}

static void gpuir__bp128_freqs_scalar(const gpuir__stream *s, uint32_t block, uint32_t prev, uint32_t *out) {
  gpuir__bp128_scalar(s, block, 0, prev, out);
}

GPUIR__INLINE uint32_t gpuir__bp128_get_any(const gpuir__stream *s, uint32_t i) {
  const uint32_t block = i / GPUIR__BLOCK, count = gpuir__block_count(s->n, block);
  uint64_t left;
  unsigned w;
  const uint8_t *p = gpuir__bp128_block(s, block, count, &w, &left);
  return gpuir__bp128_get(p, w, left, count, i % GPUIR__BLOCK);
}

static uint32_t gpuir__bp128_get_scalar(const gpuir__stream *s, uint32_t i) {
  return gpuir__bp128_get_any(s, i);
}

/* Leaves the search to decoding: only vectors find a docID faster than that. */
static uint32_t gpuir__bp128_find_scalar(const gpuir__stream *s, uint32_t block, uint32_t prev, uint32_t x) {
  (void)s;
  (void)block;
  (void)prev;
  (void)x;
  return GPUIR__UNTOLD;
}

#if GPUIR__X86
/* ---- tables for AVX2; the unit test computes them again by loops ----
 *
 * gpuir__expand puts high bits, which stand side by side in 16-bit words, where their values are. Row m, a byte of
 * marks, is a shuffle of 8 words: if value k is marked, word k comes from word r, r being the number of marks below
 * k; otherwise it becomes 0. An entry is the two bytes that a word comes from, 2 r and 2 r + 1, or 0x80 and 0x81 for 0:
 *
 *     m = 0x16: values 1, 2 and 4     value    0     1     2     3     4     5     6     7
 *                                     r        -     0     1     -     2     -     -     -
 *                                     entry 8180  0100  0302  8180  0504  8180  8180  8180
 */
#define GPUIR__ENTRY(m, k) \
  (uint16_t)((m) >> (k)&1 ? __builtin_popcount((m) & ((1u << (k)) - 1)) * 0x202 + 0x100 : 0x8180)
#define GPUIR__EXPAND(m)                                                                                \
  {                                                                                                     \
    GPUIR__ENTRY(m, 0), GPUIR__ENTRY(m, 1), GPUIR__ENTRY(m, 2), GPUIR__ENTRY(m, 3), GPUIR__ENTRY(m, 4), \
        GPUIR__ENTRY(m, 5), GPUIR__ENTRY(m, 6), GPUIR__ENTRY(m, 7),                                     \
  }
#define GPUIR__EXPAND4(m) \
  GPUIR__EXPAND(m), GPUIR__EXPAND((m) + 1), GPUIR__EXPAND((m) + 2), GPUIR__EXPAND((m) + 3)
#define GPUIR__EXPAND16(m) \
  GPUIR__EXPAND4(m), GPUIR__EXPAND4((m) + 4), GPUIR__EXPAND4((m) + 8), GPUIR__EXPAND4((m) + 12)
#define GPUIR__EXPAND64(m) \
  GPUIR__EXPAND16(m), GPUIR__EXPAND16((m) + 16), GPUIR__EXPAND16((m) + 32), GPUIR__EXPAND16((m) + 48)
static const uint16_t gpuir__expand[256][8] = {GPUIR__EXPAND64(0u), GPUIR__EXPAND64(64u),
                                               GPUIR__EXPAND64(128u), GPUIR__EXPAND64(192u)};
#undef GPUIR__ENTRY
#undef GPUIR__EXPAND
#undef GPUIR__EXPAND4
#undef GPUIR__EXPAND16
#undef GPUIR__EXPAND64

/* A value of w <= 8 bits becomes a 16-bit word in three steps: a shuffle fetches the byte in which it begins and the
 * next one (GPUIR__BYTES), a product shifts it up to the word's top (GPUIR__UP: a power of two), one shift for all
 * words, by 16 - w, brings it down:
 *
 *     w = 3, value 2 of horizontal ones: bits 6 to 8   two bytes         * 2^7             >> 13
 *                                                      .......cba......  cba.............  cba
 */
#define GPUIR__BYTES(bit) (bit) / 8, (bit) / 8 + 1
#define GPUIR__UP(w, bit) (0x10000 >> ((w) + (bit) % 8) & 0xffff)

/* Of 16 horizontal values of w bits; the next 8 begin at a byte again, so that up[] serves both halves. */
typedef struct gpuir__fields {
  uint8_t at[32]; /* [value] two bytes each */
  uint16_t up[8]; /* [value] */
} gpuir__fields;
#define GPUIR__BYTES4(w, i)                                                              \
  GPUIR__BYTES((w) * (i)), GPUIR__BYTES((w) * ((i) + 1)), GPUIR__BYTES((w) * ((i) + 2)), \
      GPUIR__BYTES((w) * ((i) + 3))
#define GPUIR__UP4(w, i)                                                                 \
  GPUIR__UP(w, (w) * (i)), GPUIR__UP(w, (w) * ((i) + 1)), GPUIR__UP(w, (w) * ((i) + 2)), \
      GPUIR__UP(w, (w) * ((i) + 3))
#define GPUIR__FIELDS(w)                                                                     \
  {                                                                                          \
    {GPUIR__BYTES4(w, 0), GPUIR__BYTES4(w, 4), GPUIR__BYTES4(w, 8), GPUIR__BYTES4(w, 12)}, { \
      GPUIR__UP4(w, 0), GPUIR__UP4(w, 4)                                                     \
    }                                                                                        \
  }
static const gpuir__fields gpuir__horizontal[9] = {GPUIR__FIELDS(0), GPUIR__FIELDS(1), GPUIR__FIELDS(2),
                                                   GPUIR__FIELDS(3), GPUIR__FIELDS(4), GPUIR__FIELDS(5),
                                                   GPUIR__FIELDS(6), GPUIR__FIELDS(7), GPUIR__FIELDS(8)};

/* Vertical values are taken in groups of neighbouring rows: of 4 rows where w <= 8, of 2 rows where w is 9 to 15. The
 * group that begins with row r begins in each lane at bit w r, that is, at bit w r % 32 (GPUIR__SHIFT) of the lane's
 * word in the 16 bytes from byte w r / 32 * 16 (GPUIR__FIRST). Shifting these words down by `down` and the lanes'
 * next words up by `next` puts the whole group into the low bits of four words:
 *
 *     w = 3    rows     0..3   4..7   8..11   12..15   16..19   20..23   24..27   28..31
 *              byte        0      0       0       16       16       16       32       32
 *              down        0     12      24        4       16       28        8       20
 *              next       32     20       8       28       16        4       24       12
 *
 * A vector has the group from row r0 on in its lower half and the one from row r1 on in its upper half. */
#define GPUIR__SAME4(x) x, x, x, x
#define GPUIR__FIRST(w, r) ((w) * (r) / 32 * 16)
#define GPUIR__SHIFT(w, r) ((w) * (r) % 32)
#define GPUIR__DOWN(w, r0, r1) \
  { GPUIR__SAME4(GPUIR__SHIFT(w, r0)), GPUIR__SAME4(GPUIR__SHIFT(w, r1)) }
#define GPUIR__NEXT(w, r0, r1) \
  { GPUIR__SAME4(32 - GPUIR__SHIFT(w, r0)), GPUIR__SAME4(32 - GPUIR__SHIFT(w, r1)) }

/* Groups of 4 rows, w <= 8. Within the four words, at[0] and up[0] are of rows 0 and 1 of all lanes, at[1] and up[1] of
 * rows 2 and 3. */
typedef struct gpuir__rows {
  uint32_t down[4][8], next[4][8]; /* [vector of 32 values][word] bits */
  uint8_t at[2][16];               /* [two rows][value] two bytes each */
  uint16_t up[2][8];               /* [two rows][value] */
  uint8_t byte[8];                 /* [group] */
} gpuir__rows;
#define GPUIR__LANES(bit) \
  GPUIR__BYTES(bit), GPUIR__BYTES((bit) + 32), GPUIR__BYTES((bit) + 64), GPUIR__BYTES((bit) + 96)
#define GPUIR__ROWS(w)                                                                                      \
  {                                                                                                         \
    {GPUIR__DOWN(w, 0, 4), GPUIR__DOWN(w, 8, 12), GPUIR__DOWN(w, 16, 20), GPUIR__DOWN(w, 24, 28)},          \
        {GPUIR__NEXT(w, 0, 4), GPUIR__NEXT(w, 8, 12), GPUIR__NEXT(w, 16, 20), GPUIR__NEXT(w, 24, 28)},      \
        {{GPUIR__LANES(0), GPUIR__LANES(w)}, {GPUIR__LANES(2 * (w)), GPUIR__LANES(3 * (w))}},               \
        {{GPUIR__SAME4(GPUIR__UP(w, 0)), GPUIR__SAME4(GPUIR__UP(w, w))},                                    \
         {GPUIR__SAME4(GPUIR__UP(w, 2 * (w))), GPUIR__SAME4(GPUIR__UP(w, 3 * (w)))}},                       \
    {                                                                                                       \
      GPUIR__FIRST(w, 0), GPUIR__FIRST(w, 4), GPUIR__FIRST(w, 8), GPUIR__FIRST(w, 12), GPUIR__FIRST(w, 16), \
          GPUIR__FIRST(w, 20), GPUIR__FIRST(w, 24), GPUIR__FIRST(w, 28)                                     \
    }                                                                                                       \
  }
static const gpuir__rows gpuir__vertical[9] = {GPUIR__ROWS(0), GPUIR__ROWS(1), GPUIR__ROWS(2),
                                               GPUIR__ROWS(3), GPUIR__ROWS(4), GPUIR__ROWS(5),
                                               GPUIR__ROWS(6), GPUIR__ROWS(7), GPUIR__ROWS(8)};

/* Groups of 2 rows, w = 9 to 15: 8 values a group, 16 a vector, whose upper half is 4 rows on. */
typedef struct gpuir__rows15 {
  uint32_t down[8][8], next[8][8]; /* [vector of 16 values][word] bits */
  uint8_t byte[16];                /* [group] */
} gpuir__rows15;
#define GPUIR__FIRST4(w, r) \
  GPUIR__FIRST(w, r), GPUIR__FIRST(w, (r) + 2), GPUIR__FIRST(w, (r) + 4), GPUIR__FIRST(w, (r) + 6)
#define GPUIR__ROWS15(w)                                                                                  \
  {                                                                                                       \
    {GPUIR__DOWN(w, 0, 4),   GPUIR__DOWN(w, 2, 6),   GPUIR__DOWN(w, 8, 12),  GPUIR__DOWN(w, 10, 14),      \
     GPUIR__DOWN(w, 16, 20), GPUIR__DOWN(w, 18, 22), GPUIR__DOWN(w, 24, 28), GPUIR__DOWN(w, 26, 30)},     \
        {GPUIR__NEXT(w, 0, 4),   GPUIR__NEXT(w, 2, 6),   GPUIR__NEXT(w, 8, 12),  GPUIR__NEXT(w, 10, 14),  \
         GPUIR__NEXT(w, 16, 20), GPUIR__NEXT(w, 18, 22), GPUIR__NEXT(w, 24, 28), GPUIR__NEXT(w, 26, 30)}, \
    {                                                                                                     \
      GPUIR__FIRST4(w, 0), GPUIR__FIRST4(w, 8), GPUIR__FIRST4(w, 16), GPUIR__FIRST4(w, 24)                \
    }                                                                                                     \
  }
static const gpuir__rows15 gpuir__vertical15[7] = {GPUIR__ROWS15(9),  GPUIR__ROWS15(10), GPUIR__ROWS15(11),
                                                   GPUIR__ROWS15(12), GPUIR__ROWS15(13), GPUIR__ROWS15(14),
                                                   GPUIR__ROWS15(15)};

#undef GPUIR__BYTES
#undef GPUIR__UP
#undef GPUIR__BYTES4
#undef GPUIR__UP4
#undef GPUIR__FIELDS
#undef GPUIR__SAME4
#undef GPUIR__FIRST
#undef GPUIR__SHIFT
#undef GPUIR__DOWN
#undef GPUIR__NEXT
#undef GPUIR__LANES
#undef GPUIR__ROWS
#undef GPUIR__FIRST4
#undef GPUIR__ROWS15

/* ---- high bits, with AVX2 ---- */

/* Takes 16 values of at most 8 bits out of the bytes of x, see gpuir__fields. */
GPUIR__AVX2 GPUIR__INLINE __m256i gpuir__avx2_fields(__m256i x, __m256i at, __m256i up, __m128i down) {
  return _mm256_srl_epi16(_mm256_mullo_epi16(_mm256_shuffle_epi8(x, at), up), down);
}

/* Returns where the word with rank `rank`, and the 7 behind it, stand in what gpuir__avx2_highs16 writes. That holds
 * every group of 8 words twice: each store of 16 words is a group and the one behind it. So any 8 consecutive words
 * lie within one store; a load that two stores would have to be forwarded to would wait for both.
 *
 *     words      0..7  8..15 | 8..15  16..23 | 16..23  24..31 | ...          word r stands at r + r / 8 * 8
 */
GPUIR__INLINE unsigned gpuir__high_at(unsigned rank) { return rank + (rank & ~7u); }

/* Unpacks the high bits of n exceptions, of h bits each, to words, shifted left by b; 16 bits hold them then. */
GPUIR__AVX2 GPUIR__INLINE void gpuir__avx2_highs16(const uint8_t *p, unsigned n, unsigned h, unsigned b,
                                                   uint16_t *high) {
  const __m128i up = _mm_cvtsi32_si128((int)b);
  unsigned i;
  if (h <= 8) {
    const gpuir__fields *f = &gpuir__horizontal[h];
    const __m256i at = gpuir__avx2_load(f->at), top = gpuir__avx2_twice(f->up);
    const __m128i down = _mm_cvtsi32_si128((int)(16 - h));
    for (i = 0; i < n; i += 16, p += 2 * h) {
      const __m256i x = gpuir__avx2_fields(gpuir__avx2_twice(p), at, top, down);
      const __m256i y = gpuir__avx2_fields(gpuir__avx2_twice(p + h), at, top, down);
      gpuir__avx2_store(high + 2 * i, _mm256_sll_epi16(x, up));
      gpuir__avx2_store(high + 2 * i + 16, _mm256_sll_epi16(y, up));
    }
  } else {
    const gpuir__packed8 f = gpuir__avx2_packed_of(h, 0);
    __m256i x = _mm256_sll_epi32(gpuir__avx2_packed(p, &f), up), y;
    for (i = 0; i < n; i += 8, x = y) {
      p += h;
      y = _mm256_sll_epi32(gpuir__avx2_packed(p, &f), up);
      gpuir__avx2_store(high + 2 * i, _mm256_permute4x64_epi64(_mm256_packus_epi32(x, y), 0xd8));
    }
  }
}

/* Unpacks the high bits of all exceptions, in their place above the low bits; those of at most 16 bits, which nearly
 * all are, as words of 16 bits that are not shifted yet. */
GPUIR__AVX2 GPUIR__INLINE void gpuir__avx2_highs(const gpuir__bp128_view *v, uint32_t *high) {
  const gpuir__packed8 f = gpuir__avx2_packed_of(v->h, 0);
  const __m128i up = _mm_cvtsi32_si128((int)v->b);
  const unsigned n = gpuir__bp128_exceptions(v);
  const uint8_t *p = v->high;
  unsigned i;
  if (v->h <= 16) {
    gpuir__avx2_highs16(v->high, n, v->h, 0, (uint16_t *)(void *)high);
    return;
  }
  for (i = 0; i < n; i += 8, p += v->h)
    gpuir__avx2_store(high + i, _mm256_sll_epi32(gpuir__avx2_packed(p, &f), up));
}

/* Adds to the 8 values from i on, a multiple of 8, the high bits of the exceptions among them, which
 * gpuir__avx2_highs has unpacked. *rank is the number of exceptions before i, and then before i + 8. */
GPUIR__AVX2 GPUIR__INLINE __m256i gpuir__avx2_add_highs(__m256i x, const gpuir__bp128_view *v, unsigned i,
                                                        const uint32_t *high, unsigned *rank) {
  const unsigned marks = ((const uint8_t *)v->marks)[i / 8];
  const __m128i places = _mm_loadu_si128((const __m128i *)(const void *)gpuir__expand[marks]);
  __m256i y, r;
  if (v->h <= 16) {
    const __m128i *words =
        (const __m128i *)(const void *)((const uint16_t *)(const void *)high + gpuir__high_at(*rank));
    y = _mm256_cvtepu16_epi32(_mm_shuffle_epi8(_mm_loadu_si128(words), places));
    y = _mm256_sll_epi32(y, _mm_cvtsi32_si128((int)v->b));
  } else {
    r = _mm256_srai_epi32(_mm256_cvtepi16_epi32(places), 9); /* negative, if the value is not marked */
    y = _mm256_permutevar8x32_epi32(gpuir__avx2_load(high + *rank), r);
    y = _mm256_andnot_si256(_mm256_srai_epi32(r, 31), y);
  }
  *rank += gpuir__popcount64(marks);
  return _mm256_or_si256(x, y);
}

/* 32 values as words of 16 bits: 0 to 7 in the lower half of a, 8 to 15 in the lower half of b, 16 to 23 in the
 * upper half of a, 24 to 31 in the upper half of b. */
typedef struct gpuir__words32 {
  __m256i a, b;
} gpuir__words32;

/* Returns the high bits of 32 values, 0 where a value is no exception, of the words that gpuir__avx2_highs16 has
 * written; marks: 4 bytes of the bitmap. *rank is the number of exceptions before, and then behind, the 32. */
GPUIR__AVX2 GPUIR__INLINE gpuir__words32 gpuir__avx2_high32(const uint8_t *marks, const uint16_t *high,
                                                            unsigned *rank) {
  const unsigned m = gpuir__load32(marks), m0 = m & 255, m1 = m >> 8 & 255, m2 = m >> 16 & 255, m3 = m >> 24;
  const unsigned r0 = *rank, r1 = r0 + gpuir__popcount64(m0), r2 = r0 + gpuir__popcount64(m & 0xffff),
                 r3 = r0 + gpuir__popcount64(m & 0xffffff);
  gpuir__words32 x;
  *rank = r0 + gpuir__popcount64(m);
  x.a = _mm256_shuffle_epi8(gpuir__avx2_two(high + gpuir__high_at(r0), high + gpuir__high_at(r2)),
                            gpuir__avx2_two(gpuir__expand[m0], gpuir__expand[m2]));
  x.b = _mm256_shuffle_epi8(gpuir__avx2_two(high + gpuir__high_at(r1), high + gpuir__high_at(r3)),
                            gpuir__avx2_two(gpuir__expand[m1], gpuir__expand[m3]));
  return x;
}

/* ---- narrow blocks: values of less than 2^15, 32 of them a step, with AVX2 ---- */

/* The forms of low bits: at most 8 bits vertically, at most 8 bits horizontally, 9 to 15 bits vertically. */
enum { GPUIR__ROWS8, GPUIR__ROW8, GPUIR__ROWS15 };

/* What unpacking the low bits of a block needs in registers: shuffles and factors of gpuir__avx2_fields for its two
 * results, and the shift down. For GPUIR__ROWS15 at0 is the last shuffle, and up0 the mask of w bits. */
typedef struct gpuir__low32 {
  __m256i at0, at1, up0, up1;
  __m128i down;
} gpuir__low32;

GPUIR__AVX2 GPUIR__INLINE gpuir__low32 gpuir__avx2_low32_of(unsigned w, int form) {
  gpuir__low32 f;
  f.down = _mm_cvtsi32_si128((int)(16 - w));
  if (form == GPUIR__ROWS8) {
    f.at0 = gpuir__avx2_twice(gpuir__vertical[w].at[0]);
    f.at1 = gpuir__avx2_twice(gpuir__vertical[w].at[1]);
    f.up0 = gpuir__avx2_twice(gpuir__vertical[w].up[0]);
    f.up1 = gpuir__avx2_twice(gpuir__vertical[w].up[1]);
  } else if (form == GPUIR__ROW8) {
    f.at0 = f.at1 = gpuir__avx2_twice(gpuir__horizontal[w].at);
    f.up0 = f.up1 = gpuir__avx2_twice(gpuir__horizontal[w].up);
  } else {
    f.at0 = f.at1 =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
    f.up0 = f.up1 = _mm256_set1_epi16((short)gpuir__low_bits(w));
  }
  return f;
}

/* Returns the low bits, 9 to 15 of them, of the 16 values of vector k of a block's eight. */
GPUIR__AVX2 GPUIR__INLINE __m256i gpuir__avx2_low15(const uint8_t *p, unsigned w, unsigned k,
                                                    const gpuir__low32 *f) {
  const gpuir__rows15 *r = &gpuir__vertical15[w - 9];
  const unsigned group = k / 2 * 4 + k % 2;
  const uint8_t *r0 = p + r->byte[group], *r1 = p + r->byte[group + 2];
  __m256i x =
      _mm256_or_si256(_mm256_srlv_epi32(gpuir__avx2_two(r0, r1), gpuir__avx2_load(r->down[k])),
                      _mm256_sllv_epi32(gpuir__avx2_two(r0 + 16, r1 + 16), gpuir__avx2_load(r->next[k])));
  x = _mm256_blend_epi16(x, _mm256_sll_epi32(x, f->down), 0xaa);
  return _mm256_shuffle_epi8(_mm256_and_si256(x, f->up0), f->at0);
}

/* Returns the low bits of the 32 values from i on. */
GPUIR__AVX2 GPUIR__INLINE gpuir__words32 gpuir__avx2_low32(const uint8_t *p, unsigned w, int form, unsigned i,
                                                           const gpuir__low32 *f) {
  gpuir__words32 x;
  if (form == GPUIR__ROWS8) {
    const gpuir__rows *r = &gpuir__vertical[w];
    const uint8_t *r0 = p + r->byte[i / 16], *r1 = p + r->byte[i / 16 + 1];
    const __m256i lo = gpuir__avx2_two(r0, r1), hi = gpuir__avx2_two(r0 + 16, r1 + 16);
    const __m256i rows = _mm256_or_si256(_mm256_srlv_epi32(lo, gpuir__avx2_load(r->down[i / 32])),
                                         _mm256_sllv_epi32(hi, gpuir__avx2_load(r->next[i / 32])));
    x.a = gpuir__avx2_fields(rows, f->at0, f->up0, f->down);
    x.b = gpuir__avx2_fields(rows, f->at1, f->up1, f->down);
  } else if (form == GPUIR__ROW8) {
    p += i / 8 * w;
    x.a = gpuir__avx2_fields(gpuir__avx2_two(p, p + 2 * w), f->at0, f->up0, f->down);
    x.b = gpuir__avx2_fields(gpuir__avx2_two(p + w, p + 3 * w), f->at0, f->up0, f->down);
  } else {
    x.a = gpuir__avx2_low15(p, w, i / 16, f);
    x.b = gpuir__avx2_low15(p, w, i / 16 + 1, f);
  }
  return x;
}

/* A narrow block under decoding. */
typedef struct gpuir__narrow {
  gpuir__low32 low;
  const uint8_t *p;     /* its low bits, of w bits each */
  const uint8_t *marks; /* a bit a value: it is an exception */
  const uint16_t *high; /* the exceptions' high bits, as gpuir__avx2_highs16 writes them */
  unsigned w;
  unsigned rank; /* exceptions before the next step */
} gpuir__narrow;

/* Begins to decode a narrow block whose low bits begin at p. If `exceptions`, a constant, `marks` is the bitmap, 16
 * readable bytes, and `packed` has the high bits, of h bits each, which are unpacked into high[0..2 *
 * GPUIR__BLOCK_ROOM). */
GPUIR__AVX2 GPUIR__INLINE gpuir__narrow gpuir__avx2_narrow(const uint8_t *p, unsigned w, int form,
                                                           int exceptions, const uint8_t *marks,
                                                           const uint8_t *packed, unsigned h,
                                                           uint16_t *high) {
  gpuir__narrow n;
  n.p = p;
  n.w = w;
  n.low = gpuir__avx2_low32_of(w, form);
  n.marks = marks;
  n.high = high;
  n.rank = 0;
  if (exceptions)
    gpuir__avx2_highs16(packed,
                        gpuir__popcount64(gpuir__load64(marks)) + gpuir__popcount64(gpuir__load64(marks + 8)),
                        h, w, high);
  return n;
}

/* Returns the 32 values from i on. */
GPUIR__AVX2 GPUIR__INLINE gpuir__words32 gpuir__avx2_words32(gpuir__narrow *n, int form, int exceptions,
                                                             unsigned i) {
  gpuir__words32 x = gpuir__avx2_low32(n->p, n->w, form, i, &n->low);
  if (exceptions) {
    const gpuir__words32 y = gpuir__avx2_high32(n->marks + i / 8, n->high, &n->rank);
    x.a = _mm256_or_si256(x.a, y.a);
    x.b = _mm256_or_si256(x.b, y.b);
  }
  return x;
}

/* 32 values as 32-bit numbers, in order. */
typedef struct gpuir__numbers32 {
  __m256i x0, x1, x2, x3;
} gpuir__numbers32;

GPUIR__AVX2 GPUIR__INLINE gpuir__numbers32 gpuir__avx2_widen(gpuir__words32 x) {
  gpuir__numbers32 y;
  y.x0 = _mm256_cvtepu16_epi32(_mm256_castsi256_si128(x.a));
  y.x1 = _mm256_cvtepu16_epi32(_mm256_castsi256_si128(x.b));
  y.x2 = _mm256_cvtepu16_epi32(_mm256_extracti128_si256(x.a, 1));
  y.x3 = _mm256_cvtepu16_epi32(_mm256_extracti128_si256(x.b, 1));
  return y;
}

GPUIR__AVX2 GPUIR__INLINE void gpuir__avx2_store32(uint32_t *out, const gpuir__numbers32 *y) {
  gpuir__avx2_store(out, y->x0);
  gpuir__avx2_store(out + 8, y->x1);
  gpuir__avx2_store(out + 16, y->x2);
  gpuir__avx2_store(out + 24, y->x3);
}

/* Sums up, in each half, 8 gaps of less than 2^12 and a one for each: the sums fit 16 bits. */
GPUIR__AVX2 GPUIR__INLINE __m256i gpuir__avx2_sums12(__m256i x) {
  const __m256i ones = _mm256_setr_epi16(1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8);
  x = _mm256_add_epi16(x, _mm256_slli_si256(x, 2));
  x = _mm256_add_epi16(x, _mm256_slli_si256(x, 4));
  return _mm256_add_epi16(_mm256_add_epi16(x, ones), _mm256_slli_si256(x, 8));
}

/* Writes the docIDs of 32 gaps of less than 2^12 behind docID *base, which becomes the last of them. */
GPUIR__AVX2 GPUIR__INLINE void gpuir__avx2_docids12(gpuir__words32 x, __m256i *base, uint32_t *out) {
  const __m256i last = _mm256_set1_epi32(7);
  gpuir__numbers32 y;
  x.a = gpuir__avx2_sums12(x.a);
  x.b = gpuir__avx2_sums12(x.b);
  y = gpuir__avx2_widen(x);
  y.x1 = _mm256_add_epi32(y.x1, _mm256_permutevar8x32_epi32(y.x0, last));
  y.x3 = _mm256_add_epi32(y.x3, _mm256_permutevar8x32_epi32(y.x2, last));
  y.x0 = _mm256_add_epi32(y.x0, *base);
  y.x1 = _mm256_add_epi32(y.x1, *base);
  *base = _mm256_permutevar8x32_epi32(y.x1, last);
  y.x2 = _mm256_add_epi32(y.x2, *base);
  y.x3 = _mm256_add_epi32(y.x3, *base);
  *base = _mm256_permutevar8x32_epi32(y.x3, last);
  gpuir__avx2_store32(out, &y);
}

/* Sums up, in each half, 8 gaps of less than 2^15 and a one for each: returns the sums up to values 1, 3, 5 and 7.
 * *odd: -1 less the gap of each of these, which leads from its sum to that of the value before. */
GPUIR__AVX2 GPUIR__INLINE __m256i gpuir__avx2_sums15(__m256i gaps, __m256i *odd) {
  const __m256i minus1 = _mm256_set1_epi32(-1), x = _mm256_xor_si256(gaps, minus1); /* -1 - gap */
  __m256i sums = _mm256_madd_epi16(x, minus1);
  sums = _mm256_add_epi32(sums, _mm256_slli_si256(sums, 4));
  sums = _mm256_add_epi32(sums, _mm256_slli_si256(sums, 8));
  *odd = _mm256_srai_epi32(x, 16);
  return sums;
}

/* Writes out[0..7] and out[16..23] from docIDs 1, 3, 5 and 7 of each half and what leads to the ones before them. */
GPUIR__AVX2 GPUIR__INLINE void gpuir__avx2_store15(__m256i docs, __m256i odd, uint32_t *out) {
  const __m256i even = _mm256_add_epi32(docs, odd);
  const __m256i lo = _mm256_unpacklo_epi32(even, docs), hi = _mm256_unpackhi_epi32(even, docs);
  _mm_storeu_si128((__m128i *)(void *)out, _mm256_castsi256_si128(lo));
  _mm_storeu_si128((__m128i *)(void *)(out + 4), _mm256_castsi256_si128(hi));
  _mm_storeu_si128((__m128i *)(void *)(out + 16), _mm256_extracti128_si256(lo, 1));
  _mm_storeu_si128((__m128i *)(void *)(out + 20), _mm256_extracti128_si256(hi, 1));
}

/* Writes the docIDs of 32 gaps of less than 2^15 behind docID *base, which becomes the last of them. */
GPUIR__AVX2 GPUIR__INLINE void gpuir__avx2_docids15(gpuir__words32 x, __m256i *base, uint32_t *out) {
  __m256i odd_a, odd_b, from;
  __m256i a = gpuir__avx2_sums15(x.a, &odd_a), b = gpuir__avx2_sums15(x.b, &odd_b);
  b = _mm256_add_epi32(b, _mm256_shuffle_epi32(a, 0xff));
  from = _mm256_shuffle_epi32(b, 0xff);
  from = _mm256_add_epi32(*base,
                          _mm256_permute2x128_si256(from, from, 0x08)); /* lower half's sum to the upper */
  a = _mm256_add_epi32(a, from);
  b = _mm256_add_epi32(b, from);
  *base = _mm256_permutevar8x32_epi32(b, _mm256_set1_epi32(7));
  gpuir__avx2_store15(a, odd_a, out);
  gpuir__avx2_store15(b, odd_b, out + 8);
}

/* Clamps the docIDs of a narrow block to `limit`, `last` being the last of them. They rise, unless they wrap, at most
 * once: nothing is to be done if both ends are in order. */
GPUIR__AVX2 GPUIR__INLINE void gpuir__avx2_clamp(uint32_t *out, uint32_t count, uint32_t prev, uint32_t last,
                                                 uint32_t limit) {
  const __m256i most = _mm256_set1_epi32((int)limit);
  uint32_t i;
  if (prev + 1 <= last && last <= limit) return;
  for (i = 0; i < count; i += 8)
    gpuir__avx2_store(out + i, _mm256_min_epu32(gpuir__avx2_load(out + i), most));
}

/* Returns whether a block is narrow: its values are less than 2^15, and its low bits are of one of the forms above.
 * Most blocks are. (Frequencies of more than 8 low bits are too rare for a form of their own.) */
GPUIR__INLINE int gpuir__bp128_narrow(unsigned b, unsigned h, int vertical, int docids) {
  return b + h <= 15 && (b <= 8 || (vertical && docids));
}

/* What is made of the values: nothing, or docIDs from gaps of less than 2^12 or 2^15. */
enum { GPUIR__FREQS, GPUIR__DOCIDS12, GPUIR__DOCIDS15 };

/* Decodes the 32 values from i on; *base: the docID before them. */
GPUIR__AVX2 GPUIR__INLINE void gpuir__avx2_narrow32(gpuir__narrow *n, int form, int exceptions, unsigned i,
                                                    int docids, __m256i *base, uint32_t *out) {
  gpuir__words32 x = gpuir__avx2_words32(n, form, exceptions, i);
  if (docids == GPUIR__DOCIDS12) {
    gpuir__avx2_docids12(x, base, out + i);
  } else if (docids) {
    gpuir__avx2_docids15(x, base, out + i);
  } else {
    const gpuir__numbers32 y = gpuir__avx2_widen(x);
    gpuir__avx2_store32(out + i, &y);
  }
}

/* Decodes a narrow block of 128. Marks, h and high bits follow the low bits; without exceptions h is 0. form,
 * exceptions and docids are constants wherever this is inlined. The four steps are written out, since a loop takes a
 * sixth longer. */
GPUIR__AVX2 GPUIR__INLINE void gpuir__bp128_full_avx2(const uint8_t *p, unsigned w, unsigned h, int form,
                                                      int exceptions, int docids, uint32_t prev,
                                                      uint32_t limit, uint32_t *out) {
  __attribute__((aligned(32))) uint16_t high[2 * GPUIR__BLOCK_ROOM];
  gpuir__narrow n = gpuir__avx2_narrow(p, w, form, exceptions, p + 16 * w, p + 16 * w + 17, h, high);
  __m256i base = _mm256_set1_epi32((int)prev);
  gpuir__avx2_narrow32(&n, form, exceptions, 0, docids, &base, out);
  gpuir__avx2_narrow32(&n, form, exceptions, 32, docids, &base, out);
  gpuir__avx2_narrow32(&n, form, exceptions, 64, docids, &base, out);
  gpuir__avx2_narrow32(&n, form, exceptions, 96, docids, &base, out);
  if (docids && (uint64_t)(prev + 1) + (GPUIR__BLOCK << (w + h)) > limit)
    gpuir__avx2_clamp(out, GPUIR__BLOCK, prev, out[GPUIR__BLOCK - 1], limit);
}

/* Defines a function for each kind of block, because the compilers run out of registers where they inline several. */
#define GPUIR__FULL(name, form, exceptions, docids)                                              \
  GPUIR__AVX2 GPUIR__NOINLINE void name(const uint8_t *p, unsigned w, unsigned h, uint32_t prev, \
                                        uint32_t limit, uint32_t *out) {                         \
    gpuir__bp128_full_avx2(p, w, h, form, exceptions, docids, prev, limit, out);                 \
  }
GPUIR__FULL(gpuir__rows8_docids, GPUIR__ROWS8, 0, GPUIR__DOCIDS12)
GPUIR__FULL(gpuir__rows8_high12, GPUIR__ROWS8, 1, GPUIR__DOCIDS12)
GPUIR__FULL(gpuir__rows8_high15, GPUIR__ROWS8, 1, GPUIR__DOCIDS15)
GPUIR__FULL(gpuir__rows15_docids, GPUIR__ROWS15, 0, GPUIR__DOCIDS15)
GPUIR__FULL(gpuir__rows15_high15, GPUIR__ROWS15, 1, GPUIR__DOCIDS15)
GPUIR__FULL(gpuir__row8_high12, GPUIR__ROW8, 1, GPUIR__DOCIDS12)
GPUIR__FULL(gpuir__row8_high15, GPUIR__ROW8, 1, GPUIR__DOCIDS15)
GPUIR__FULL(gpuir__rows8_freqs, GPUIR__ROWS8, 0, GPUIR__FREQS)
GPUIR__FULL(gpuir__rows8_high_freqs, GPUIR__ROWS8, 1, GPUIR__FREQS)
GPUIR__FULL(gpuir__row8_high_freqs, GPUIR__ROW8, 1, GPUIR__FREQS)
#undef GPUIR__FULL

/* Decodes a narrow, horizontal block of any number of values. */
GPUIR__AVX2 GPUIR__INLINE void gpuir__bp128_some_avx2(const uint8_t *p, unsigned w, uint32_t count,
                                                      const gpuir__bp128_view *v, int docids, uint32_t prev,
                                                      uint32_t limit, uint32_t *out) {
  __attribute__((aligned(32))) uint16_t high[2 * GPUIR__BLOCK_ROOM];
  gpuir__narrow n = gpuir__avx2_narrow(p, w, GPUIR__ROW8, v != NULL, v ? (const uint8_t *)v->marks : NULL,
                                       v ? v->high : NULL, v ? v->h : 0, high);
  __m256i base = _mm256_set1_epi32((int)prev);
  unsigned i;
  for (i = 0; i < count; i += 32) gpuir__avx2_narrow32(&n, GPUIR__ROW8, v != NULL, i, docids, &base, out);
  if (docids) gpuir__avx2_clamp(out, count, prev, out[count - 1], limit);
}

GPUIR__AVX2 GPUIR__NOINLINE void gpuir__some_docids(const uint8_t *p, unsigned w, uint32_t count,
                                                    const gpuir__bp128_view *v, uint32_t prev, uint32_t limit,
                                                    uint32_t *out) {
  if (v)
    gpuir__bp128_some_avx2(p, w, count, v, GPUIR__DOCIDS15, prev, limit, out);
  else
    gpuir__bp128_some_avx2(p, w, count, NULL, GPUIR__DOCIDS15, prev, limit, out);
}

GPUIR__AVX2 GPUIR__NOINLINE void gpuir__some_freqs(const uint8_t *p, unsigned w, uint32_t count,
                                                   const gpuir__bp128_view *v, uint32_t *out) {
  if (v)
    gpuir__bp128_some_avx2(p, w, count, v, GPUIR__FREQS, 0, 0, out);
  else
    gpuir__bp128_some_avx2(p, w, count, NULL, GPUIR__FREQS, 0, 0, out);
}

GPUIR__AVX2 GPUIR__INLINE void gpuir__narrow_docids(const uint8_t *p, unsigned w, uint32_t count,
                                                    int vertical, const gpuir__bp128_view *v, uint32_t prev,
                                                    uint32_t limit, uint32_t *out) {
  if (vertical && w > 8 && v)
    gpuir__rows15_high15(p, w, v->h, prev, limit, out);
  else if (vertical && w > 8)
    gpuir__rows15_docids(p, w, 0, prev, limit, out);
  else if (vertical && !v)
    gpuir__rows8_docids(p, w, 0, prev, limit, out);
  else if (vertical && w + v->h <= 12)
    gpuir__rows8_high12(p, w, v->h, prev, limit, out);
  else if (vertical)
    gpuir__rows8_high15(p, w, v->h, prev, limit, out);
  else if (count < GPUIR__BLOCK || !v)
    gpuir__some_docids(p, w, count, v, prev, limit, out);
  else if (w + v->h <= 12)
    gpuir__row8_high12(p, w, v->h, prev, limit, out);
  else
    gpuir__row8_high15(p, w, v->h, prev, limit, out);
}

GPUIR__AVX2 GPUIR__INLINE void gpuir__narrow_freqs(const uint8_t *p, unsigned w, uint32_t count, int vertical,
                                                   const gpuir__bp128_view *v, uint32_t *out) {
  if (vertical && !v)
    gpuir__rows8_freqs(p, w, 0, 0, 0, out);
  else if (vertical)
    gpuir__rows8_high_freqs(p, w, v->h, 0, 0, out);
  else if (count < GPUIR__BLOCK || !v)
    gpuir__some_freqs(p, w, count, v, out);
  else
    gpuir__row8_high_freqs(p, w, v->h, 0, 0, out);
}

/* ---- other blocks: 8 values a step with AVX2, 16 with AVX-512 ---- */

/* Decodes a vertical block of at most 8 low bits with exceptions: the values of a narrow one's 32 a step, each widened
 * before its high bits are added. */
GPUIR__AVX2 GPUIR__INLINE void gpuir__bp128_rows8_avx2(const uint8_t *p, unsigned w,
                                                       const gpuir__bp128_view *v, const uint32_t *highs,
                                                       int docids, __m256i next, __m256i most,
                                                       uint32_t *out) {
  const gpuir__low32 f = gpuir__avx2_low32_of(w, GPUIR__ROWS8);
  unsigned i, rank = 0;
  for (i = 0; i < GPUIR__BLOCK; i += 32) {
    gpuir__numbers32 y = gpuir__avx2_widen(gpuir__avx2_low32(p, w, GPUIR__ROWS8, i, &f));
    y.x0 = gpuir__avx2_add_highs(y.x0, v, i, highs, &rank);
    y.x1 = gpuir__avx2_add_highs(y.x1, v, i + 8, highs, &rank);
    y.x2 = gpuir__avx2_add_highs(y.x2, v, i + 16, highs, &rank);
    y.x3 = gpuir__avx2_add_highs(y.x3, v, i + 24, highs, &rank);
    if (docids) {
      y.x0 = gpuir__avx2_docids(y.x0, &next, most);
      y.x1 = gpuir__avx2_docids(y.x1, &next, most);
      y.x2 = gpuir__avx2_docids(y.x2, &next, most);
      y.x3 = gpuir__avx2_docids(y.x3, &next, most);
    }
    gpuir__avx2_store32(out + i, &y);
  }
}

/* Decodes any block, two rows at a time if it is vertical. Shifts by 32 give 0, as they should. */
GPUIR__AVX2 GPUIR__INLINE void gpuir__bp128_wide_avx2(const uint8_t *p, unsigned w, uint32_t count,
                                                      int vertical, const gpuir__bp128_view *v, int docids,
                                                      uint32_t prev, uint32_t limit, uint32_t *out) {
  const __m256i mask = _mm256_set1_epi32((int)gpuir__low_bits(w)), width = _mm256_set1_epi32((int)w);
  const __m256i c31 = _mm256_set1_epi32(31), c32 = _mm256_set1_epi32(32),
                most = _mm256_set1_epi32((int)limit);
  __m256i next = gpuir__avx2_first(prev), x, lo, hi, bit, shift;
  uint32_t highs[GPUIR__BLOCK_ROOM];
  unsigned i, rank = 0;
  if (v) gpuir__avx2_highs(v, highs);
  if (vertical && v && w <= 8) {
    gpuir__bp128_rows8_avx2(p, w, v, highs, docids, next, most, out);
  } else if (vertical) {
    const __m256i step = _mm256_add_epi32(width, width);
    unsigned b = 0;
    bit = _mm256_mullo_epi32(width, _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1));
    for (i = 0; i < GPUIR__BLOCK; i += 8, b += 2 * w) {
      const uint8_t *r0 = p + b / 32 * 16, *r1 = p + (b + w) / 32 * 16;
      lo = gpuir__avx2_two(r0, r1);
      hi = gpuir__avx2_two(r0 + 16, r1 + 16);
      shift = _mm256_and_si256(bit, c31);
      bit = _mm256_add_epi32(bit, step);
      x = _mm256_or_si256(_mm256_srlv_epi32(lo, shift), _mm256_sllv_epi32(hi, _mm256_sub_epi32(c32, shift)));
      x = _mm256_and_si256(x, mask);
      if (v) x = gpuir__avx2_add_highs(x, v, i, highs, &rank);
      if (docids) x = gpuir__avx2_docids(x, &next, most);
      gpuir__avx2_store(out + i, x);
    }
  } else {
    const gpuir__packed8 f = gpuir__avx2_packed_of(w, 0);
    for (i = 0; i < count; i += 8, p += w) {
      x = gpuir__avx2_packed(p, &f);
      if (v) x = gpuir__avx2_add_highs(x, v, i, highs, &rank);
      if (docids) x = gpuir__avx2_docids(x, &next, most);
      gpuir__avx2_store(out + i, x);
    }
  }
}

/* Unpacks the high bits of all exceptions, in their place above the low bits. */
GPUIR__AVX512 GPUIR__INLINE void gpuir__avx512_highs(const gpuir__bp128_view *v, uint32_t *high) {
  const gpuir__packed16 f = gpuir__avx512_packed_of(v->h, 0);
  const __m128i up = _mm_cvtsi32_si128((int)v->b);
  const unsigned n = gpuir__bp128_exceptions(v);
  const uint8_t *p = v->high;
  unsigned i;
  for (i = 0; i < n; i += 16, p += 2 * v->h)
    _mm512_storeu_si512(high + i, _mm512_sll_epi32(gpuir__avx512_packed(p, &f), up));
}

/* Adds to the 16 values from i on the high bits of the exceptions among them; *rank as in gpuir__avx2_add_highs.
 * Loading and expanding could be one instruction, but that is slow on Zen. */
GPUIR__AVX512 GPUIR__INLINE __m512i gpuir__avx512_add_highs(__m512i x, const gpuir__bp128_view *v, unsigned i,
                                                            const uint32_t *high, unsigned *rank) {
  const __m512i y = _mm512_loadu_si512(high + *rank);
  const unsigned marks = (unsigned)(v->marks[i / 64] >> i % 64) & 0xffff;
  *rank += gpuir__popcount64(marks);
  return _mm512_or_si512(x, _mm512_maskz_expand_epi32((__mmask16)marks, y));
}

/* Decodes any block, four rows at a time if it is vertical. Reads at most 64 bytes behind the low bits; 80 at w = 0,
 * where the 17 bytes of marks and h follow. */
GPUIR__AVX512 GPUIR__INLINE void gpuir__bp128_wide_avx512(const uint8_t *p, unsigned w, uint32_t count,
                                                          int vertical, const gpuir__bp128_view *v,
                                                          int docids, uint32_t prev, uint32_t limit,
                                                          uint32_t *out) {
  const __m512i c31 = _mm512_set1_epi32(31), c32 = _mm512_set1_epi32(32),
                most = _mm512_set1_epi32((int)limit);
  __m512i next = gpuir__avx512_first(prev), x, lo, hi, bit, word, shift;
  uint32_t highs[GPUIR__BLOCK_ROOM];
  unsigned i, rank = 0;
  if (v) gpuir__avx512_highs(v, highs);
  if (vertical) {
    const __m512i mask = _mm512_set1_epi32((int)gpuir__low_bits(w)), iota = gpuir__avx512_iota();
    const __m512i lane = _mm512_and_si512(iota, _mm512_set1_epi32(3));
    const __m512i row = _mm512_mullo_epi32(_mm512_set1_epi32((int)w), _mm512_srli_epi32(iota, 2));
    unsigned b = 0;
    for (i = 0; i < GPUIR__BLOCK; i += 16, b += 4 * w) {
      const uint8_t *r = p + b / 32 * 16;
      bit = _mm512_add_epi32(row, _mm512_set1_epi32((int)(b % 32)));
      word = _mm512_ternarylogic_epi32(_mm512_srli_epi32(bit, 3), _mm512_set1_epi32(~3), lane,
                                       0xea); /* (a & b) | c */
      shift = _mm512_and_si512(bit, c31);
      lo = _mm512_permutexvar_epi32(word, _mm512_loadu_si512(r));
      hi = _mm512_permutexvar_epi32(word, _mm512_loadu_si512(r + 16));
      x = _mm512_ternarylogic_epi32(_mm512_srlv_epi32(lo, shift),
                                    _mm512_sllv_epi32(hi, _mm512_sub_epi32(c32, shift)), mask, 0xa8);
      if (v) x = gpuir__avx512_add_highs(x, v, i, highs, &rank);
      if (docids) x = gpuir__avx512_docids(x, &next, most);
      _mm512_storeu_si512(out + i, x);
    }
  } else {
    const gpuir__packed16 f = gpuir__avx512_packed_of(w, 0);
    for (i = 0; i < count; i += 16, p += 2 * w) {
      x = gpuir__avx512_packed(p, &f);
      if (v) x = gpuir__avx512_add_highs(x, v, i, highs, &rank);
      if (docids) x = gpuir__avx512_docids(x, &next, most);
      _mm512_storeu_si512(out + i, x);
    }
  }
}

/* Kernels wide_docids and wide_freqs of both levels: a function for blocks with and without exceptions each. */
#define GPUIR__WIDE_DOCIDS(target, level)                                                                   \
  target static void gpuir__wide_docids_##level(const uint8_t *p, unsigned w, uint32_t count, int vertical, \
                                                const gpuir__bp128_view *v, uint32_t prev, uint32_t limit,  \
                                                uint32_t *out) {                                            \
    if (v)                                                                                                  \
      gpuir__bp128_wide_##level(p, w, count, vertical, v, 1, prev, limit, out);                             \
    else                                                                                                    \
      gpuir__bp128_wide_##level(p, w, count, vertical, NULL, 1, prev, limit, out);                          \
  }
#define GPUIR__WIDE_FREQS(target, level)                                                                   \
  target static void gpuir__wide_freqs_##level(const uint8_t *p, unsigned w, uint32_t count, int vertical, \
                                               const gpuir__bp128_view *v, uint32_t *out) {                \
    if (v)                                                                                                 \
      gpuir__bp128_wide_##level(p, w, count, vertical, v, 0, 0, 0, out);                                   \
    else                                                                                                   \
      gpuir__bp128_wide_##level(p, w, count, vertical, NULL, 0, 0, 0, out);                                \
  }
GPUIR__WIDE_DOCIDS(GPUIR__AVX2, avx2)
GPUIR__WIDE_DOCIDS(GPUIR__AVX512, avx512)
GPUIR__WIDE_FREQS(GPUIR__AVX2, avx2)
GPUIR__WIDE_FREQS(GPUIR__AVX512, avx512)
#undef GPUIR__WIDE_DOCIDS
#undef GPUIR__WIDE_FREQS

/* ---- decoding with vectors ---- */

/* Decodes count values whose low bits begin at p, and sums them up if `docids`, a constant; v: NULL without exceptions.
 * Narrow blocks are decoded with AVX2 even where there is AVX-512, which would gain nothing. */
GPUIR__AVX2 GPUIR__INLINE void gpuir__bp128_simd(const gpuir__stream *s, const uint8_t *p, unsigned w,
                                                 uint32_t count, int vertical, const gpuir__bp128_view *v,
                                                 int docids, uint32_t prev, uint32_t *out) {
  const int narrow = gpuir__bp128_narrow(w, v ? v->h : 0, vertical, docids);
  if (narrow && docids)
    gpuir__narrow_docids(p, w, count, vertical, v, prev, s->limit, out);
  else if (narrow)
    gpuir__narrow_freqs(p, w, count, vertical, v, out);
  else if (docids)
    s->kernels->wide_docids(p, w, count, vertical, v, prev, s->limit, out);
  else
    s->kernels->wide_freqs(p, w, count, vertical, v, out);
}

GPUIR__AVX2 GPUIR__INLINE void gpuir__bp128_decode(const gpuir__stream *s, uint32_t block, uint32_t count,
                                                   int vertical, int docids, uint32_t prev, uint32_t *out) {
  uint64_t left;
  unsigned w;
  const uint8_t *p = gpuir__bp128_block(s, block, count, &w, &left);
  gpuir__bp128_view v;
  if (left && gpuir__bp128_open(p, w, left, count, &v))
    gpuir__bp128_simd(s, p, w, count, vertical, &v, docids, prev, out);
  else
    gpuir__bp128_simd(s, p, w, count, vertical, NULL, docids, prev, out);
}

/* Decodes the last block, unless it is full: apart, for the sake of the others' speed. */
GPUIR__AVX2 GPUIR__NOINLINE void gpuir__bp128_docids_rest(const gpuir__stream *s, uint32_t block,
                                                          uint32_t prev, uint32_t *out) {
  gpuir__bp128_decode(s, block, gpuir__block_count(s->n, block), 0, 1, prev, out);
}

GPUIR__AVX2 GPUIR__NOINLINE void gpuir__bp128_freqs_rest(const gpuir__stream *s, uint32_t block,
                                                         uint32_t *out) {
  gpuir__bp128_decode(s, block, gpuir__block_count(s->n, block), 0, 0, 0, out);
}

GPUIR__AVX2 static void gpuir__bp128_docids_simd(const gpuir__stream *s, uint32_t block, uint32_t prev,
                                                 uint32_t *out) {
  if (gpuir__block_count(s->n, block) == GPUIR__BLOCK)
    gpuir__bp128_decode(s, block, GPUIR__BLOCK, 1, 1, prev, out);
  else
    gpuir__bp128_docids_rest(s, block, prev, out);
}

GPUIR__AVX2 static void gpuir__bp128_freqs_simd(const gpuir__stream *s, uint32_t block, uint32_t prev,
                                                uint32_t *out) {
  (void)prev;
  if (gpuir__block_count(s->n, block) == GPUIR__BLOCK)
    gpuir__bp128_decode(s, block, GPUIR__BLOCK, 1, 0, 0, out);
  else
    gpuir__bp128_freqs_rest(s, block, out);
}

/* Returns value i of the list. Compiled for AVX2 because of the instruction that counts bits. */
GPUIR__AVX2 static uint32_t gpuir__bp128_get_avx2(const gpuir__stream *s, uint32_t i) {
  return gpuir__bp128_get_any(s, i);
}

/* ---- finding a docID in a narrow block without decoding it ---- */

/* A search in a narrow block, vertical and of at most 8 low bits. */
typedef struct gpuir__seek16 {
  gpuir__narrow block;
  __m256i remaining; /* in every word: the docID looked for less the last one passed, modulo 2^16 */
} gpuir__seek16;

/* Passes over the 32 docIDs from i on; returns a bit for each that is the one looked for. */
GPUIR__AVX2 GPUIR__INLINE uint64_t gpuir__avx2_seek32(gpuir__seek16 *seek, int exceptions, unsigned i) {
  const __m256i last = _mm256_set1_epi16(0xf0e); /* spreads the last word of each half over it */
  const gpuir__words32 x = gpuir__avx2_words32(&seek->block, GPUIR__ROWS8, exceptions, i);
  /* a and b: how far each docID lies behind the one before its half's first (16 docIDs a half) */
  const __m256i a = gpuir__avx2_sums12(x.a),
                b = _mm256_add_epi16(gpuir__avx2_sums12(x.b), _mm256_shuffle_epi8(a, last));
  const __m256i total = _mm256_shuffle_epi8(b, last);
  const __m256i passed =
      _mm256_permute2x128_si256(total, total, 8); /* by the upper half: the lower half's total */
  const __m256i wanted = _mm256_sub_epi16(seek->remaining, passed);
  const __m256i rest = _mm256_sub_epi16(wanted, total);
  seek->remaining = _mm256_permute2x128_si256(rest, rest, 0x11); /* the upper half's */
  return (uint32_t)_mm256_movemask_epi8(
      _mm256_packs_epi16(_mm256_cmpeq_epi16(a, wanted), _mm256_cmpeq_epi16(b, wanted)));
}

/* Returns the index of the docID that lies `distance` behind the one before the block, or GPUIR__ABSENT. The block's
 * last docID lies less than 2^16 behind that one. The first 64 docIDs reach the distance if what then remains is 0
 * or less, that is, wraps to `distance` or more when 1 is taken from it; whether the other 64 are looked at is the
 * only branch, because each branch more would wait for blocks that are not in the cache, one after the other. */
GPUIR__AVX2 GPUIR__INLINE uint32_t gpuir__avx2_seek(const uint8_t *p, unsigned w, unsigned h, int exceptions,
                                                    uint32_t distance) {
  __attribute__((aligned(32))) uint16_t high[2 * GPUIR__BLOCK_ROOM];
  gpuir__seek16 seek;
  uint64_t hit;
  seek.block = gpuir__avx2_narrow(p, w, GPUIR__ROWS8, exceptions, p + 16 * w, p + 16 * w + 17, h, high);
  seek.remaining = _mm256_set1_epi16((short)distance);
  hit = gpuir__avx2_seek32(&seek, exceptions, 0);
  hit |= gpuir__avx2_seek32(&seek, exceptions, 32) << 32;
  if ((uint16_t)(_mm256_extract_epi16(seek.remaining, 0) - 1) >= distance)
    return hit ? gpuir__ctz64(hit) : GPUIR__ABSENT;
  hit = gpuir__avx2_seek32(&seek, exceptions, 64);
  hit |= gpuir__avx2_seek32(&seek, exceptions, 96) << 32;
  return hit ? 64 + gpuir__ctz64(hit) : GPUIR__ABSENT;
}

GPUIR__AVX2 GPUIR__NOINLINE uint32_t gpuir__seek_low(const uint8_t *p, unsigned w, uint32_t distance) {
  return gpuir__avx2_seek(p, w, 0, 0, distance);
}

GPUIR__AVX2 GPUIR__NOINLINE uint32_t gpuir__seek_high(const uint8_t *p, unsigned w, unsigned h,
                                                      uint32_t distance) {
  return gpuir__avx2_seek(p, w, h, 1, distance);
}

static uint32_t gpuir__bp128_find_avx2(const gpuir__stream *s, uint32_t block, uint32_t prev, uint32_t x) {
  uint64_t left;
  unsigned w;
  const uint8_t *p = gpuir__bp128_block(s, block, GPUIR__BLOCK, &w, &left);
  gpuir__bp128_view v;
  if (s->last[block] - prev > UINT16_MAX || w > 8) return GPUIR__UNTOLD;
  if (!left || !gpuir__bp128_open(p, w, left, GPUIR__BLOCK, &v)) return gpuir__seek_low(p, w, x - prev);
  return w + v.h <= 15 ? gpuir__seek_high(p, w, v.h, x - prev) : GPUIR__UNTOLD;
}
#endif

/* ---- the codec's functions: those of the stream's level ---- */

static void gpuir__bp128_docids_decode(const gpuir__stream *s, uint32_t block, uint32_t prev, uint32_t *out) {
  s->kernels->bp128_docids(s, block, prev, out);
}

static void gpuir__bp128_freqs_decode(const gpuir__stream *s, uint32_t block, uint32_t prev, uint32_t *out) {
  s->kernels->bp128_freqs(s, block, prev, out);
}

static uint32_t gpuir__bp128_freqs_get(const gpuir__stream *s, uint32_t i) {
  return s->kernels->bp128_get(s, i);
}

static uint32_t gpuir__bp128_docids_find(const gpuir__stream *s, uint32_t block, uint32_t prev, uint32_t x) {
  return s->kernels->bp128_find(s, block, prev, x);
}

/* ---- encoding ---- */

/* Packs 128 values of w bits vertically into 16 w bytes. */
static void gpuir__bp128_pack(const uint32_t *v, unsigned w, uint8_t *to) {
  uint32_t acc[4] = {0, 0, 0, 0};
  unsigned row, l, fill = 0;
  if (w == 0) return;
  for (row = 0; row < GPUIR__BLOCK / 4; row++, v += 4) {
    for (l = 0; l < 4; l++) acc[l] |= v[l] << fill;
    fill += w;
    if (fill < 32) continue;
    memcpy(to, acc, 16);
    to += 16;
    fill -= 32;
    if (fill) /* bits that did not fit */
      for (l = 0; l < 4; l++) acc[l] = v[l] >> (w - fill);
    else
      memset(acc, 0, 16);
  }
}

/* Returns the b that takes the fewest bytes, rounded up to a multiple of `unit`; *h: the width of the high bits, 0
 * for no exceptions. Of equals it takes no exceptions, then the larger b. */
static unsigned gpuir__bp128_choose(const uint32_t *v, uint32_t count, uint32_t unit, unsigned *h) {
  const uint32_t up = unit - 1, fixed = (count + 7) / 8 + 1;
  uint8_t widths[40];
  uint32_t i, all = 0, high = 0, least;
  unsigned w, b;
  for (i = 0; i < count; i++) all |= v[i];
  w = gpuir__width32(all);
  least = (((count * w + 7) / 8 + up) & ~up) << 6; /* of bytes << 6 | h */
  if (w) gpuir__count_widths(v, count, all, widths);
  for (b = w; b-- > 0;) {
    uint32_t bytes;
    high += widths[b + 1];
    if (high == count || (fixed + high * (w - b) / 8) << 6 > least) break; /* no smaller b is better */
    bytes = ((count * b + 7) / 8 + fixed + (high * (w - b) + 7) / 8 + up) & ~up;
    least = gpuir__min32(least, bytes << 6 | (w - b));
  }
  *h = least & 63;
  return w - *h;
}

/* Takes the high bits off the values, into high[], and marks the exceptions; returns their number. */
static uint32_t gpuir__bp128_split(uint32_t *v, uint32_t count, unsigned b, uint64_t marks[2],
                                   uint32_t *high) {
  const uint32_t mask = gpuir__low_bits(b);
  uint32_t i = 0, k, n = 0;
  for (k = 0; k < 2; k++) {
    const uint32_t end = gpuir__min32(count, 64 * k + 64);
    uint64_t word = 0;
    for (; i < end; i++) {
      const uint32_t x = v[i] >> b;
      v[i] &= mask;
      high[n] = x;
      n += x != 0;
      word = word >> 1 | (uint64_t)(x != 0) << 63;
    }
    marks[k] = i % 64 ? word >> (64 - i % 64) : word;
  }
  return n;
}

static uint8_t *gpuir__bp128_encode_block(const gpuir__codec *codec, uint32_t *v, uint32_t count,
                                          uint32_t unit, uint8_t *to, uint8_t *width) {
  uint32_t high[GPUIR__BLOCK + 1], nhigh = 0;
  uint64_t marks[2] = {0, 0};
  unsigned h, b = gpuir__bp128_choose(v, count, unit, &h);
  (void)codec;
  *width = (uint8_t)(b | (h ? GPUIR__BP128_EXCEPTIONS : 0));
  if (h) nhigh = gpuir__bp128_split(v, count, b, marks, high);
  if (count == GPUIR__BLOCK)
    gpuir__bp128_pack(v, b, to);
  else
    gpuir__pack(to, v, count, b);
  to += (count * b + 7) / 8;
  if (!h) return to;
  memcpy(to, marks, (count + 7) / 8);
  to += (count + 7) / 8;
  *to++ = (uint8_t)h;
  gpuir__pack(to, high, nhigh, h);
  return to + (nhigh * h + 7) / 8;
}

static int gpuir__bp128_encode(const gpuir__codec *codec, const uint32_t *values, uint32_t n,
                               const gpuir__target *to) {
  return gpuir__encode_blocks(codec, values, n, to, gpuir__bp128_encode_block, 1);
}

#ifndef GPUIR_NO_LAB

/* ============================================================================
 * [05-lab-unary]  codecs of the literature: unary codes (ef, qs, rice)
 *
 * The codecs of the literature stand in three parts, which GPUIR_NO_LAB leaves out:
 *     ef                               Elias-Fano in partitions of 128      [05-lab-unary]
 *     qs                               Elias-Fano over the whole list       [05-lab-unary]
 *     rice                             unary and binary bit vectors apart   [05-lab-unary]
 *     pfd, newpfd, optpfd              blocks of 128 gaps with exceptions   [06-lab-pfor]
 *     pfd-list                         one width for the whole list, exceptions recursively
 *     parapfor                         segments whose exceptions are patched independently
 *     lrc, lrcseg, seglrc, hslrc       deviations from regression lines     [07-lab-lines]
 *
 * All of them say in the stream itself what a decoder has to know, so that a short list, which
 * has no directory and no stored parameter, needs nothing else. All bit vectors here are plain:
 * bit i is bit i % 8 of byte i / 8, and a number's low bits come first. A header is checked when
 * the list is opened and again wherever it is used; what does not lie within the stream counts as
 * zeros. Beyond the directory's offset, which all codecs use, nothing depends on the block size
 * of 128 where a codec's own unit is another one.
 *
 * Functions that are GPUIR_HD compute one value from the bytes alone, as a thread of a warp does: one
 * definition of the format for the decoders here and for the device. Above each codec stands which
 * of them such a lane uses. Where gaps are coded, a scan over the warp turns them into docIDs.
 *
 * Uses      [02-vectors], [03-codecs].
 * Start at  gpuir__unary (a unary code), gpuir__ef_decode, gpuir__qs_decode, gpuir__rice_decode.
 * Tests     tests/unit/05_lab_unary.c
 * ==========================================================================*/

/* ---- packed numbers ---- */

/* Returns the low `bytes` <= 4 bytes at p as a number; reads 4. */
GPUIR_HD static inline uint32_t gpuir__load_bytes(const uint8_t *p, unsigned bytes) {
  return gpuir__load32(p) & gpuir__low_bits(8 * bytes);
}

/* Writes v < 2^57 at a bit of zeroed memory, of which it touches 8 bytes. */
static inline void gpuir__put_bits(uint8_t *to, uint64_t bit, uint64_t v) {
  gpuir__store64(to + bit / 8, gpuir__load64(to + bit / 8) | v << bit % 8);
}

/* Unpacks count numbers of w bits, 1 to 32, the first of which begins at bit `skip` < 8 of p[0]. Kernels write up to
 * the next multiple of 16 numbers, and read up to 63 bytes behind those that they need. */
static void gpuir__unpack_scalar(const uint8_t *p, unsigned w, unsigned skip, uint32_t count, uint32_t *out) {
  uint32_t i;
  for (i = 0; i < count; i++) {
    const uint64_t bit = (uint64_t)i * w + skip;
    out[i] = (uint32_t)(gpuir__load64(p + bit / 8) >> bit % 8) & gpuir__low_bits(w);
  }
}

#if GPUIR__X86
GPUIR__AVX2 static void gpuir__unpack_avx2(const uint8_t *p, unsigned w, unsigned skip, uint32_t count,
                                           uint32_t *out) {
  const gpuir__packed8 f = gpuir__avx2_packed_of(w, skip);
  uint32_t i;
  for (i = 0; i < count; i += 8, p += w) gpuir__avx2_store(out + i, gpuir__avx2_packed(p, &f));
}

GPUIR__AVX512 static void gpuir__unpack_avx512(const uint8_t *p, unsigned w, unsigned skip, uint32_t count,
                                               uint32_t *out) {
  const gpuir__packed16 f = gpuir__avx512_packed_of(w, skip);
  uint32_t i;
  for (i = 0; i < count; i += 16, p += 2 * w) _mm512_storeu_si512(out + i, gpuir__avx512_packed(p, &f));
}
#endif

/* Unpacks numbers from .. from + count - 1 of those that begin at p, of w <= 32 bits each, at the stream's level.
 * Writes up to the next multiple of 16 numbers. */
static void gpuir__unpack(const gpuir__stream *s, const uint8_t *p, unsigned w, uint64_t from, uint32_t count,
                          uint32_t *out) {
  if (w)
    s->kernels->unpack(p + from * w / 8, w, (unsigned)(from * w % 8), count, out);
  else
    memset(out, 0, ((size_t)count + 15) / 16 * 16 * sizeof *out);
}

/* ---- unary codes ---- */

/* A bit vector of numbers in unary code, each of which a stop bit ends: a one, or a zero if flip is all ones. The
 * stop of number j has as many other bits before it as the numbers up to j add up to. */
typedef struct gpuir__unary {
  const uint8_t *bits; /* `bytes` of them */
  uint64_t bytes;
  uint64_t flip;       /* 0 or UINT64_MAX: is xored to the bits, so that stops are ones */
  const uint8_t *sums; /* NULL, or u32 [piece]: ones before each piece of 2^log bits, nsums of them */
  uint64_t nsums;
  unsigned log;
} gpuir__unary;

#define GPUIR__STOPS_ROOM (GPUIR__BLOCK + 64u + 16u)
#define GPUIR__STOPS_WINDOW 128u /* bytes; as many bits as the longest piece between two sums has */

/* Returns 64 bits of the vector in which stops are ones, those behind its end cleared. */
GPUIR_HD static inline uint64_t gpuir__unary_word(const uint8_t *p, uint64_t bytes, uint64_t flip) {
  uint64_t x = gpuir__load64(p) ^ flip;
  return bytes < 8 ? x & gpuir__low_bits64(8 * (unsigned)bytes) : x;
}

/* Writes the positions of the stops from bit `skip` < 8 of the bytes at p on, of which the first bit has position
 * `at`, to pos[got..], until it has `count` <= 128 or the bytes end. Returns the new `got`, which may be greater
 * than count. */
static uint32_t gpuir__stops_scalar(const uint8_t *p, uint64_t bytes, unsigned skip, uint64_t flip,
                                    uint32_t at, uint32_t got, uint32_t count, uint32_t *pos) {
  uint64_t keep = UINT64_MAX << skip;
  for (; bytes && got < count; p += 8, at += 64) {
    uint64_t x = gpuir__unary_word(p, bytes, flip) & keep;
    for (; x; x &= x - 1) pos[got++] = at + gpuir__ctz64(x);
    keep = UINT64_MAX;
    bytes -= gpuir__min64(bytes, 8);
  }
  return got;
}

#if GPUIR__X86
/* Takes eight at a time whether there are so many or not, so that fewer branches are mispredicted. */
GPUIR__AVX2 static uint32_t gpuir__stops_avx2(const uint8_t *p, uint64_t bytes, unsigned skip, uint64_t flip,
                                              uint32_t at, uint32_t got, uint32_t count, uint32_t *pos) {
  uint64_t keep = UINT64_MAX << skip;
  const uint64_t stop = (uint64_t)1 << 63;
  for (; bytes && got < count; p += 8, at += 64) {
    uint64_t x = gpuir__unary_word(p, bytes, flip) & keep;
    uint32_t ones = (uint32_t)__builtin_popcountll(x), i;
    uint32_t *to = pos + got;
    for (i = 0; i < ones; i += 8) {
      unsigned j;
      for (j = 0; j < 8; j++) {
        to[i + j] = at + gpuir__ctz64(x | stop);
        x &= x - 1;
      }
    }
    got += ones;
    keep = UINT64_MAX;
    bytes -= gpuir__min64(bytes, 8);
  }
  return got;
}

GPUIR__AVX512 static uint32_t gpuir__stops_avx512(const uint8_t *p, uint64_t bytes, unsigned skip,
                                                  uint64_t flip, uint32_t at, uint32_t got, uint32_t count,
                                                  uint32_t *pos) {
  const __m512i sixteen = _mm512_set1_epi32(16);
  __m512i where = _mm512_add_epi32(gpuir__avx512_iota(), _mm512_set1_epi32((int)at));
  uint64_t keep = UINT64_MAX << skip;
  for (; bytes && got < count; p += 8) {
    uint64_t x = gpuir__unary_word(p, bytes, flip) & keep;
    unsigned i;
    for (i = 0; i < 64; i += 16) {
      uint32_t mask = (uint32_t)(x >> i) & 0xffffu;
      _mm512_storeu_si512(pos + got, _mm512_maskz_compress_epi32((__mmask16)mask, where));
      got += (uint32_t)__builtin_popcount(mask);
      where = _mm512_add_epi32(where, sixteen);
    }
    keep = UINT64_MAX;
    bytes -= gpuir__min64(bytes, 8);
  }
  return got;
}
#endif

/* Returns the number of stops before piece c. */
GPUIR_HD static inline uint64_t gpuir__unary_rank(const gpuir__unary *u, uint64_t c) {
  uint64_t ones = gpuir__load32(u->sums + c * 4);
  return u->flip ? (c << u->log) - ones : ones;
}

/* Returns the last piece in [lo, hi), lo < hi, before which there are at most r stops, or lo. */
GPUIR_HD static inline uint64_t gpuir__unary_piece(const gpuir__unary *u, uint64_t lo, uint64_t hi,
                                                   uint64_t r) {
  while (hi - lo > 1) {
    uint64_t mid = lo + (hi - lo) / 2;
    if (gpuir__unary_rank(u, mid) <= r)
      lo = mid;
    else
      hi = mid;
  }
  return lo;
}

/* Writes the positions, counted from bit `start`, of the first count <= 128 stops there; `rank` stops stand before it.
 * Missing ones are 0. Skips what has no stops by means of the sums, so that the time depends on count only. */
static void gpuir__unary_stops(const gpuir__stream *s, const gpuir__unary *u, uint64_t start, uint64_t rank,
                               uint32_t count, uint32_t *pos) {
  uint64_t at = start;
  uint32_t got = 0, before = 1;
  while (got < count && at / 8 < u->bytes) {
    const uint8_t *p = u->bits + at / 8;
    const uint64_t window = gpuir__min64(u->bytes - at / 8, GPUIR__STOPS_WINDOW);
    const uint32_t first = (uint32_t)(at / 8 * 8 - start);
    const int none = got == before;
    before = got;
    got = s->kernels->stops(p, window, at % 8, u->flip, first, got, count, pos);
    at = (at / 8 + window) * 8;
    if (got == before && u->sums) {
      uint64_t c = at >> u->log;
      if (none || c >= u->nsums) break; /* not even where the sums promised one */
      c = gpuir__unary_piece(u, c, u->nsums, rank + got);
      at = gpuir__max64(at, c << u->log);
    }
  }
  for (; got < count; got++) pos[got] = 0;
}

/* Returns the position of the stop with rank r; `rank` <= r stops stand before bit `start`. It is looked for before bit
 * `end`, by the sums, or up to the vector's end, without sums. */
GPUIR_HD static inline uint64_t gpuir__unary_select(const gpuir__unary *u, uint64_t start, uint64_t end,
                                                    uint64_t rank, uint64_t r) {
  uint64_t words = UINT64_MAX, byte, keep;
  if (u->sums) {
    uint64_t lo = start >> u->log, hi = (end >> u->log) + 1;
    if (hi > u->nsums) hi = u->nsums;
    words = GPUIR__STOPS_WINDOW / 8 + 1;
    if (lo < hi) {
      uint64_t c = gpuir__unary_piece(u, lo, hi, r);
      if (c > lo) {
        start = c << u->log;
        rank = gpuir__unary_rank(u, c);
      }
    }
  }
  byte = start / 8;
  keep = UINT64_MAX << start % 8;
  for (; byte < u->bytes && words; words--, byte += 8) {
    uint64_t x = gpuir__unary_word(u->bits + byte, u->bytes - byte, u->flip) & keep;
    unsigned here = gpuir__ones64(x);
    if (r - rank < here) return byte * 8 + gpuir__select64(x, (unsigned)(r - rank));
    rank += here;
    keep = UINT64_MAX;
  }
  return start;
}

/* Returns value j, whose high bits are coded in unary and whose stop has position pos: (bits before it that are no
 * stops) * 2^b + its low bits + add. */
GPUIR_HD static inline uint32_t gpuir__joined(uint32_t pos, uint32_t j, unsigned b, uint32_t low,
                                              uint32_t add) {
  return ((pos - j) << b) + low + add;
}

/* Turns count low bits, or whatever is to be added, in out[] into values by gpuir__joined; b < 32. */
static void gpuir__join_scalar(const uint32_t *pos, unsigned b, uint32_t add, uint32_t limit, uint32_t count,
                               uint32_t *out) {
  uint32_t i;
  for (i = 0; i < count; i++) out[i] = gpuir__min32(gpuir__joined(pos[i], i, b, out[i], add), limit);
}

#if GPUIR__X86
GPUIR__AVX2 static void gpuir__join_avx2(const uint32_t *pos, unsigned b, uint32_t add, uint32_t limit,
                                         uint32_t count, uint32_t *out) {
  const __m256i eight = _mm256_set1_epi32(8), more = _mm256_set1_epi32((int)add);
  const __m256i most = _mm256_set1_epi32((int)limit);
  const __m128i shift = _mm_cvtsi32_si128((int)b);
  __m256i j = gpuir__avx2_iota();
  uint32_t i;
  for (i = 0; i < count; i += 8) {
    __m256i x = _mm256_sll_epi32(_mm256_sub_epi32(gpuir__avx2_load(pos + i), j), shift);
    x = _mm256_add_epi32(x, _mm256_add_epi32(gpuir__avx2_load(out + i), more));
    gpuir__avx2_store(out + i, _mm256_min_epu32(x, most));
    j = _mm256_add_epi32(j, eight);
  }
}

GPUIR__AVX512 static void gpuir__join_avx512(const uint32_t *pos, unsigned b, uint32_t add, uint32_t limit,
                                             uint32_t count, uint32_t *out) {
  const __m512i sixteen = _mm512_set1_epi32(16), more = _mm512_set1_epi32((int)add);
  const __m512i most = _mm512_set1_epi32((int)limit);
  const __m128i shift = _mm_cvtsi32_si128((int)b);
  __m512i j = gpuir__avx512_iota();
  uint32_t i;
  for (i = 0; i < count; i += 16) {
    __m512i x = _mm512_sll_epi32(_mm512_sub_epi32(_mm512_loadu_si512(pos + i), j), shift);
    x = _mm512_add_epi32(x, _mm512_add_epi32(_mm512_loadu_si512(out + i), more));
    _mm512_storeu_si512(out + i, _mm512_min_epu32(x, most));
    j = _mm512_add_epi32(j, sixteen);
  }
}
#endif

/* ----------------------------------------------------------------------------
 * ef (6)
 *
 * Elias-Fano in partitions of 128. Source: section 3.1.1 of Liu, Wang & Swanson, "Griffin: uniting
 * CPU and GPU in information retrieval systems for intra-query parallelism", PPoPP 2018 (Para-EF),
 * after Elias, "Efficient storage and retrieval by content and address of static files", JACM 21(2),
 * 1974. Of a partition of n docIDs behind the docID `base - 1`, x = docID - base runs up to U, and
 * b = floor(log2(U / n)), 0 if U < n. The low b bits of each x are packed; its high bits count up in
 * unary code, as many zeros as they grow by and a one, the stop, for each docID:
 *
 *     base = 0, docIDs 5 6 8 15 18 33, U = 33, b = floor(log2(33 / 6)) = 2
 *                        low   01 10 00 11 10 01
 *     high 1 1 2 3 4 8  unary  01 1 01 01 01 00001   (the first bit on the left)
 *
 *     partition         | low 0 | low 1 | ... padded to a byte | unary, padded to a byte |
 *
 * Full partitions take n (b + 1) + (U >> b) bits, at most n (log2(U / n) + 2) and the padding of 7.
 * The base is the last docID of the directory's block before. Partitions follow each other byte by
 * byte, offset[] has where, width[] has b; a list of fewer than 128 is one byte with b and its
 * partition. The unary code has at most 3 n bits, since U / n < 2^(b+1).
 *
 * gpuir__ef_find finds low bits and unary code. A lane finds its stop by gpuir__unary_select, or counts
 * the stops of a gpuir__unary_word for its warp, and joins it with gpuir__packed_value by
 * gpuir__joined; gpuir__ef_get does all of it.
 * --------------------------------------------------------------------------*/

/* Finds the unary code of a partition and returns where its low bits begin, of *b bits each; b = 0 and no bits if the
 * partition is not all there. */
GPUIR_HD static inline const uint8_t *gpuir__ef_find(const gpuir__stream *s, uint32_t block, uint32_t count,
                                                     unsigned *b, gpuir__unary *u) {
  uint64_t at = 1, low, avail;
  *b = 0;
  if (s->offset) {
    at = s->offset[block];
    *b = s->width[block];
  } else if (s->len) {
    *b = s->bytes[0];
  }
  if (at > s->len) at = s->len;
  avail = s->len - at;
  low = gpuir__packed_size(count, *b);
  if (*b > 31 || low > avail) {
    *b = 0;
    avail = low = at = 0;
  }
  u->bits = s->bytes + at + low;
  u->bytes = gpuir__min64(avail - low, gpuir__packed_size(count, 3));
  u->flip = u->nsums = u->log = 0;
  u->sums = NULL;
  return s->bytes + at;
}

static void gpuir__ef_decode(const gpuir__stream *s, uint32_t block, uint32_t prev, uint32_t *out) {
  const uint32_t count = gpuir__block_count(s->n, block);
  uint32_t pos[GPUIR__STOPS_ROOM];
  gpuir__unary u;
  unsigned b;
  const uint8_t *low = gpuir__ef_find(s, block, count, &b, &u);
  gpuir__unary_stops(s, &u, 0, 0, count, pos);
  gpuir__unpack(s, low, b, 0, count, out);
  s->kernels->join(pos, b, prev + 1, s->limit, count, out);
}

GPUIR_HD static inline uint32_t gpuir__ef_get(const gpuir__stream *s, uint32_t i) {
  const uint32_t block = i / GPUIR__BLOCK, count = gpuir__block_count(s->n, block);
  const uint32_t base = block && s->last ? s->last[block - 1] + 1 : 0;
  gpuir__unary u;
  unsigned b;
  const uint8_t *low = gpuir__ef_find(s, block, count, &b, &u);
  i %= GPUIR__BLOCK;
  return gpuir__min32(gpuir__joined((uint32_t)gpuir__unary_select(&u, 0, 0, 0, i), i, b,
                                    gpuir__packed_value(low, b, i), base),
                      s->limit);
}

/* Writes the Elias-Fano code of rising values: their low bits, and in unary code the stop of value i at bit
 * (value i >> b) + i. */
static void gpuir__ef_put(const uint32_t *values, uint64_t count, unsigned b, uint8_t *low, uint8_t *unary) {
  uint64_t i;
  for (i = 0; i < count; i++) {
    gpuir__put_bits(low, i * b, values[i] & gpuir__low_bits(b));
    gpuir__put_bits(unary, (uint64_t)(values[i] >> b) + i, 1);
  }
}

static uint8_t *gpuir__ef_encode_block(const gpuir__codec *codec, uint32_t *v, uint32_t count, uint32_t unit,
                                       uint8_t *to, uint8_t *width) {
  uint64_t low, high;
  uint32_t i, most;
  unsigned b;
  (void)codec;
  (void)unit;
  for (i = 1; i < count; i++) v[i] += v[i - 1] + 1; /* what each docID exceeds the base by */
  most = v[count - 1];
  b = most < count ? 0 : gpuir__width32(most / count) - 1;
  low = gpuir__packed_size(count, b);
  high = gpuir__packed_size((uint64_t)(most >> b) + count, 1);
  gpuir__ef_put(v, count, b, to, to + low);
  *width = (uint8_t)b;
  return to + low + high;
}

static int gpuir__ef_encode(const gpuir__codec *codec, const uint32_t *values, uint32_t n,
                            const gpuir__target *to) {
  return gpuir__encode_blocks(codec, values, n, to, gpuir__ef_encode_block, 1);
}

/* ----------------------------------------------------------------------------
 * qs (7)
 *
 * Elias-Fano over the whole list, with tables that let each block and each value be decoded alone.
 * Sources: Li, "Decompressing inverted indexes using a GPU-based Parallel-QS method", thesis,
 * Polytechnic Institute of New York University, 2014 (section 4.2, and prefix sums over blocks of
 * the high bits in section 5.2), after Vigna, "Quasi-succinct indices", WSDM 2013. With u the last
 * docID, b = max(0, floor(log2(c u / n))); the parameter is 1000 c, 250 to 4000, 0 for 1000. The two
 * arrays are those of ef, with base 0 and one partition (the thesis writes the unary code's complement):
 *
 *     list of 128 or more   | header u64 | sums u32 ... | low bits, b each | unary code |
 *       header              bits 0..7 b, 8..63 bytes of the unary code
 *       sums                ones in the unary code before each 1024 bits of it
 *     shorter list          | b u8 | low bits | unary code |
 *
 * Low bits and unary code are padded to a byte each. The select sample of a block is the directory's
 * offset[], zeros in the unary code before it, i. e. the docID before >> b: block k begins at bit
 * offset[k] + 128 k. width[] is 0.
 *
 * Lanes do as for ef: gpuir__halves_find, gpuir__halves_start, gpuir__unary_select (or
 * gpuir__unary_word and gpuir__unary_rank), gpuir__packed_value, gpuir__joined; gpuir__qs_get.
 * --------------------------------------------------------------------------*/

#define GPUIR__QS_LOG 10u

/* What qs and rice streams consist of; they differ in what the unary code says. */
typedef struct gpuir__halves {
  unsigned b;
  const uint8_t *low;   /* n numbers of b bits */
  const uint8_t *bases; /* rice: u32 [block], the sum of the numbers before it, or NULL */
  gpuir__unary unary;
} gpuir__halves;

/* Finds what a stream consists of. 0, or FORMAT, and then there are no bits. */
GPUIR_HD static inline int gpuir__halves_find(const gpuir__stream *s, unsigned log, int rice,
                                              gpuir__halves *v) {
  const uint64_t head = s->offset ? 8 : 1;
  uint64_t bytes, bases, low, all;
  v->b = 0;
  v->low = s->bytes;
  v->bases = NULL;
  v->unary.bits = v->unary.sums = NULL;
  v->unary.bytes = v->unary.nsums = 0;
  v->unary.log = log;
  v->unary.flip = rice ? UINT64_MAX : 0;
  if (s->len < head) return s->n ? GPUIR_E_FORMAT : GPUIR_OK;
  low = gpuir__packed_size(s->n, s->bytes[0]);
  if (s->bytes[0] > 31) return GPUIR_E_FORMAT;
  if (s->offset) {
    bytes = gpuir__load64(s->bytes) >> 8;
    v->unary.nsums = ((bytes << 3) + ((uint64_t)1 << log) - 1) >> log;
    bases = rice ? ((uint64_t)s->n + GPUIR__BLOCK - 1) / GPUIR__BLOCK : 0;
    all = s->len - head;
    if (bytes > all || (v->unary.nsums + bases) * 4 > all - bytes ||
        (v->unary.nsums + bases) * 4 + low > all - bytes) {
      v->unary.nsums = 0;
      return GPUIR_E_FORMAT;
    }
    v->unary.sums = s->bytes + head;
    if (rice) v->bases = v->unary.sums + v->unary.nsums * 4;
    v->low = v->unary.sums + (v->unary.nsums + bases) * 4;
  } else {
    if (low > s->len - head) return GPUIR_E_FORMAT;
    bytes = s->len - head - low;
    v->low = s->bytes + head;
  }
  v->b = s->bytes[0];
  v->unary.bits = v->low + low;
  v->unary.bytes = bytes;
  return GPUIR_OK;
}

/* Writes the sums of a unary code: u32 ones before each 2^log bits. */
static void gpuir__halves_sums(const uint8_t *unary, uint64_t bytes, unsigned log, uint8_t *sums) {
  uint64_t i, ones = 0;
  for (i = 0; i < bytes; i++) {
    if (i % ((1u << log) / 8) == 0) gpuir__store32(sums + (i * 8 >> log) * 4, (uint32_t)ones);
    ones += gpuir__ones64(unary[i]);
  }
}

static int gpuir__qs_open(gpuir__stream *s) {
  gpuir__halves v;
  return gpuir__halves_find(s, GPUIR__QS_LOG, 0, &v);
}

/* Returns the bit of the unary code at which a block begins. */
GPUIR_HD static inline uint64_t gpuir__halves_start(const gpuir__stream *s, uint32_t block) {
  return s->offset ? (uint64_t)s->offset[block] + (uint64_t)block * GPUIR__BLOCK : 0;
}

/* Returns the bit at which the next block begins, up to which the sums are searched. */
GPUIR_HD static inline uint64_t gpuir__halves_end(const gpuir__stream *s, const gpuir__halves *v,
                                                  uint32_t block) {
  return s->offset && block < (s->n - 1) / GPUIR__BLOCK ? gpuir__halves_start(s, block + 1)
                                                        : v->unary.bytes * 8;
}

static void gpuir__qs_decode(const gpuir__stream *s, uint32_t block, uint32_t prev, uint32_t *out) {
  const uint32_t count = gpuir__block_count(s->n, block);
  const uint64_t first = (uint64_t)block * GPUIR__BLOCK;
  uint32_t pos[GPUIR__STOPS_ROOM];
  gpuir__halves v;
  (void)prev;
  (void)gpuir__halves_find(s, GPUIR__QS_LOG, 0, &v);
  gpuir__unary_stops(s, &v.unary, gpuir__halves_start(s, block), first, count, pos);
  gpuir__unpack(s, v.low, v.b, first, count, out);
  s->kernels->join(pos, v.b, (s->offset ? s->offset[block] : 0) << v.b, s->limit, count, out);
}

GPUIR_HD static inline uint32_t gpuir__qs_get(const gpuir__stream *s, uint32_t i) {
  const uint32_t block = i / GPUIR__BLOCK;
  gpuir__halves v;
  uint64_t pos;
  (void)gpuir__halves_find(s, GPUIR__QS_LOG, 0, &v);
  pos = gpuir__unary_select(&v.unary, gpuir__halves_start(s, block), gpuir__halves_end(s, &v, block),
                            (uint64_t)block * GPUIR__BLOCK, i);
  return gpuir__min32(gpuir__joined((uint32_t)pos, i, v.b, gpuir__packed_value(v.low, v.b, i), 0), s->limit);
}

static int gpuir__qs_encode(const gpuir__codec *codec, const uint32_t *values, uint32_t n,
                            const gpuir__target *t) {
  const uint64_t c = t->param ? t->param : 1000;
  uint64_t last = n ? values[n - 1] : 0, head = t->offset ? 8 : 1, sums = 0, low, high, i;
  unsigned b = 0;
  uint8_t *to;
  (void)codec;
  if (c < 250 || c > 4000) return GPUIR_E_LIMIT;
  while (b < 31 && (uint64_t)n * 1000 <= c * last >> (b + 1)) b++;
  low = gpuir__packed_size(n, b);
  high = n ? gpuir__packed_size((last >> b) + n, 1) : 0;
  if (t->offset) sums = ((high << 3) + (1u << GPUIR__QS_LOG) - 1) >> GPUIR__QS_LOG << 2;
  to = gpuir__zero_room(t->a, t->out, head + sums + low + high);
  if (!to) return GPUIR_E_NOMEM;
  if (t->offset)
    gpuir__store64(to, b | high << 8);
  else
    to[0] = (uint8_t)b;
  gpuir__ef_put(values, n, b, to + head + sums, to + head + sums + low);
  if (t->offset) gpuir__halves_sums(to + head + sums + low, high, GPUIR__QS_LOG, to + head);
  for (i = 0; i < n; i += GPUIR__BLOCK)
    gpuir__target_block(t, (uint32_t)(i / GPUIR__BLOCK), i ? values[i - 1] >> b : 0, 0);
  t->out->len += (size_t)(head + sums + low + high);
  return GPUIR_OK;
}

/* ----------------------------------------------------------------------------
 * rice (8)
 *
 * Rice coding with the unary and the binary codes in two bit vectors. Source: section 6.1 of Ding,
 * He, Yan & Suel, WWW 2009. Of each gap g, the unary vector has g >> b ones and a zero, the binary
 * vector the low b bits; one b for the list, 2^b close to the mean gap (of its neighbours the one
 * that makes the list smallest). Sums of all that is before make each block decodable alone:
 *
 *     gaps 5 0 9, b = 2         unary   10 0 110        binary  01 00 01
 *     docID i = i + sum of binary numbers up to i + (ones before zero i) * 2^b
 *
 *     list of 128 or more   | header u64 | unary sums u32 ... | binary sums u32 ... | binary | unary |
 *       header              bits 0..7 b, 8..63 bytes of the unary vector
 *       unary sums          ones before each 128 bits of the unary vector
 *       binary sums         sum of the binary numbers before each 128 of them
 *     shorter list          | b u8 | binary | unary |
 *
 * Both vectors are padded to a byte. The directory's offset[] has the ones before a block, so that
 * block k begins at bit offset[k] + 128 k of the unary vector; width[] is 0.
 *
 * Lanes do as for qs; what gpuir__joined adds is gpuir__rice_base and the sum of gpuir__packed_value
 * up to their own, a scan in a warp, a loop in gpuir__rice_get.
 * --------------------------------------------------------------------------*/

#define GPUIR__RICE_LOG 7u

static int gpuir__rice_open(gpuir__stream *s) {
  gpuir__halves v;
  return gpuir__halves_find(s, GPUIR__RICE_LOG, 1, &v);
}

static void gpuir__rice_decode(const gpuir__stream *s, uint32_t block, uint32_t prev, uint32_t *out) {
  const uint32_t count = gpuir__block_count(s->n, block);
  const uint64_t first = (uint64_t)block * GPUIR__BLOCK;
  uint32_t pos[GPUIR__STOPS_ROOM];
  gpuir__halves v;
  (void)gpuir__halves_find(s, GPUIR__RICE_LOG, 1, &v);
  gpuir__unary_stops(s, &v.unary, gpuir__halves_start(s, block), first, count, pos);
  gpuir__unpack(s, v.low, v.b, first, count, out);
  s->kernels->sum_gaps(out, count, prev, UINT32_MAX);
  s->kernels->join(pos, v.b, 0, s->limit, count, out);
}

/* Returns the sum of the binary numbers before a block. */
GPUIR_HD static inline uint32_t gpuir__rice_base(const gpuir__halves *v, uint32_t block) {
  return v->bases ? gpuir__load32(v->bases + (uint64_t)block * 4) : 0;
}

GPUIR_HD static inline uint32_t gpuir__rice_get(const gpuir__stream *s, uint32_t i) {
  const uint32_t block = i / GPUIR__BLOCK;
  gpuir__halves v;
  uint32_t sum, k;
  uint64_t pos;
  (void)gpuir__halves_find(s, GPUIR__RICE_LOG, 1, &v);
  sum = i + gpuir__rice_base(&v, block);
  for (k = block * GPUIR__BLOCK; k < i; k++) sum += gpuir__packed_value(v.low, v.b, k);
  sum += gpuir__packed_value(v.low, v.b, i);
  pos = gpuir__unary_select(&v.unary, gpuir__halves_start(s, block), gpuir__halves_end(s, &v, block),
                            (uint64_t)block * GPUIR__BLOCK, i);
  return gpuir__min32(gpuir__joined((uint32_t)pos, i, v.b, 0, sum), s->limit);
}

/* Returns the b, close to the width of the mean gap, that makes the list smallest; *ones: the ones of its unary
 * vector. */
static unsigned gpuir__rice_choose(const uint32_t *values, uint32_t n, int directory, uint64_t *ones) {
  const unsigned mean = n ? gpuir__width32((values[n - 1] - (n - 1)) / n) : 0; /* floor(log2) + 1 */
  unsigned best_b = 0, b;
  uint64_t best = UINT64_MAX, i;
  *ones = 0;
  for (b = mean > 2 ? mean - 2 : 0; b <= mean + 1 && b < 32; b++) {
    uint64_t sum = 0, size;
    for (i = 0; i < n; i++) sum += (values[i] - (i ? values[i - 1] + 1 : 0)) >> b;
    size = sum + (sum + n) / 4 * (directory != 0) + (uint64_t)n * b; /* 32 bits for each 128 */
    if (size >= best) continue;
    best = size;
    *ones = sum;
    best_b = b;
  }
  return best_b;
}

/* Writes both bit vectors, and of each block its directory entry and, to `bases`, the sum before it. */
static void gpuir__rice_put(const uint32_t *values, uint32_t n, unsigned b, const gpuir__target *t,
                            uint8_t *bases, uint8_t *binary, uint8_t *unary) {
  uint64_t at = 0;
  uint32_t sum = 0, i;
  for (i = 0; i < n; i++) {
    uint32_t gap = values[i] - (i ? values[i - 1] + 1 : 0), q = gap >> b, r = gap - (q << b);
    if (t->offset && i % GPUIR__BLOCK == 0) {
      gpuir__target_block(t, i / GPUIR__BLOCK, (uint32_t)(at - i), 0);
      gpuir__store32(bases + (size_t)(i / GPUIR__BLOCK) * 4, sum);
    }
    sum += r;
    if (b) gpuir__put_bits(binary, (uint64_t)i * b, r);
    for (; q >= 32; q -= 32, at += 32) gpuir__put_bits(unary, at, 0xffffffffu);
    gpuir__put_bits(unary, at, gpuir__low_bits64(q));
    at += q + 1;
  }
}

static int gpuir__rice_encode(const gpuir__codec *codec, const uint32_t *values, uint32_t n,
                              const gpuir__target *t) {
  const uint64_t head = t->offset ? 8 : 1, nblocks = n / GPUIR__BLOCK + (n % GPUIR__BLOCK != 0);
  uint64_t ones, sums = 0, bases = t->offset ? nblocks * 4 : 0, low, high;
  unsigned b = gpuir__rice_choose(values, n, t->offset != NULL, &ones);
  uint8_t *to, *unary;
  (void)codec;
  low = gpuir__packed_size(n, b);
  high = gpuir__packed_size(ones + n, 1);
  if (t->offset) sums = ((high << 3) + (1u << GPUIR__RICE_LOG) - 1) >> GPUIR__RICE_LOG << 2;
  to = gpuir__zero_room(t->a, t->out, head + sums + bases + low + high);
  if (!to) return GPUIR_E_NOMEM;
  if (t->offset)
    gpuir__store64(to, b | high << 8);
  else
    to[0] = (uint8_t)b;
  unary = to + head + sums + bases + low;
  gpuir__rice_put(values, n, b, t, to + head + sums, to + head + sums + bases, unary);
  if (t->offset) gpuir__halves_sums(unary, high, GPUIR__RICE_LOG, to + head);
  t->out->len += (size_t)(head + sums + bases + low + high);
  return GPUIR_OK;
}

/* ============================================================================
 * [06-lab-pfor]  codecs of the literature: PForDelta and its kin (pfd, newpfd, optpfd, pfd-list, parapfor)
 *
 * Uses      [02-vectors], [03-codecs], [04-bp128] (its packing).
 * Start at  gpuir__pfd_decode, gpuir__pfl_decode_block, gpuir__para_decode_block.
 * Tests     tests/unit/06_lab_pfor.c
 * ==========================================================================*/

/* ----------------------------------------------------------------------------
 * pfd (3), newpfd (4), optpfd (5)
 *
 * PForDelta: each value of a block of 128 has a slot of b bits, and those that do not fit are
 * exceptions. Sources: Zukowski, Heman, Nes & Boncz, "Super-scalar RAM-CPU cache compression",
 * ICDE 2006 (linked exceptions), as in section 2 of Ding, He, Yan & Suel, "Using graphics
 * processors for high performance IR query processing", WWW 2009; Yan, Ding & Suel, "Inverted
 * index compression and query processing with optimized document ordering", WWW 2009 (NewPFD and
 * OptPFD). One block format serves all three; its width byte is b and the form of the exceptions:
 *
 *     width          bit   7  6 | 5 .. 0
 *                         form  |   b          form 0 none, 1 linked, 2 apart, 3 marked
 *
 *     form 0, none   | slot 0 | slot 1 | ... | b bits each, padded to a byte
 *
 *     form 1, linked | link u16 | slots | value, value, ...
 *         link       bits 0..6 the first exception, 7..13 their count, 14..15 bytes of a value less one
 *         An exception's slot has the distance to the next one less one; where that does not fit, a
 *         value between them is made an exception too.
 *
 *     form 2, apart  | count u8 | h u8 | slots | position, ... | high bits, ... |
 *         An exception's slot has its b low bits; h is the width of the high bits. Positions take
 *         seven bits; the two arrays are padded to a byte each. (The paper packs them by Simple16;
 *         fixed widths are found and patched independently of each other.)
 *
 *     form 3, marked | slots | mark 0, mark 1, ... | h u8 | high bits, ... |
 *         As form 2, but a bitmap marks the exceptions: this is the smaller one from 19 exceptions
 *         of 128 on, which clustered docIDs have. From the marks on it is bp128's.
 *
 * pfd uses forms 0 and 1 and newpfd forms 0 and 2, with the least b that makes at most a tenth of
 * the block exceptions. optpfd tries each b with each form, so it is never larger than either.
 * Blocks follow each other byte by byte, offset[] has where, width[] the width byte; a list of
 * fewer than 128 is the width byte and its block. DocIDs are coded as gaps, frequencies as they are.
 *
 * gpuir__pfd_find takes a block apart. A lane takes gpuir__packed_value of the slots; then lanes patch an
 * exception each by gpuir__pfd_apart (forms 2 and 3) or, behind a walk along the links, by
 * gpuir__pfd_linked. In form 3 the lane of a value can also take gpuir__bp128_high_of.
 * gpuir__pfd_value does all of it for one value.
 * --------------------------------------------------------------------------*/

#define GPUIR__PFD_LINKED 1u
#define GPUIR__PFD_APART 2u
#define GPUIR__PFD_MARKED 3u

/* The forms that a codec may use, a bit each: its mode. */
#define GPUIR__PFD_FORMS (1u | 1u << GPUIR__PFD_LINKED)
#define GPUIR__NEWPFD_FORMS (1u | 1u << GPUIR__PFD_APART)
#define GPUIR__OPTPFD_FORMS (1u | 1u << GPUIR__PFD_LINKED | 1u << GPUIR__PFD_APART | 1u << GPUIR__PFD_MARKED)

/* A block, taken apart. */
typedef struct gpuir__pfd_block {
  unsigned b, form, number; /* number: of exceptions */
  const uint8_t *slots;
  unsigned first, bytes;                /* linked: the first exception; bytes of a value */
  const uint8_t *values;                /* linked: of exceptions, behind the slots */
  unsigned h;                           /* apart: width of the high bits */
  const uint8_t *positions, *overflows; /* apart: of exceptions, their positions and their high bits */
  gpuir__bp128_view marked;
} gpuir__pfd_block;

/* Takes a block apart; one that is not all there has b = 0 and no exceptions. */
GPUIR_HD static inline void gpuir__pfd_find(const gpuir__stream *s, uint32_t block, uint32_t count,
                                            gpuir__pfd_block *v) {
  uint64_t at = 1, size, avail;
  unsigned width = 0;
  const uint8_t *p;
  if (s->offset) {
    at = s->offset[block];
    width = s->width[block];
  } else if (s->len) {
    width = s->bytes[0];
  }
  if (at > s->len) at = s->len;
  p = s->bytes + at;
  avail = s->len - at;
  v->b = width & 63;
  v->form = width >> 6;
  v->number = 0;
  size = gpuir__packed_size(count, v->b);
  if (v->form == GPUIR__PFD_LINKED) {
    unsigned link = gpuir__load32(p) & 0xffff;
    v->first = link & 127;
    v->number = link >> 7 & 127;
    v->bytes = (link >> 14) + 1;
    p += 2;
    v->values = p + size;
    size += 2 + v->number * v->bytes;
  } else if (v->form == GPUIR__PFD_APART) {
    v->number = p[0] & 127;
    v->h = p[1];
    p += 2;
    v->positions = p + size;
    v->overflows = v->positions + gpuir__packed_size(v->number, 7);
    size += 2 + gpuir__packed_size(v->number, 7) + gpuir__packed_size(v->number, v->h);
    if (v->b + v->h > 32) size = UINT64_MAX;
    if (v->b == 32) v->number = 0; /* there are no high bits */
  } else if (v->form == GPUIR__PFD_MARKED) {
    v->marked.marks[0] = v->marked.marks[1] = 0;
    if (v->b <= 32 && size <= avail && gpuir__bp128_open(p, v->b, avail - size, count, &v->marked))
      v->number = gpuir__ones64(v->marked.marks[0]) + gpuir__ones64(v->marked.marks[1]);
    else
      v->form = 0;
  }
  v->slots = p;
  if (v->b > 32 || size > avail) {
    v->b = v->form = v->number = 0;
    v->slots = s->bytes;
  }
}

/* Returns the high bits of exception k of form 2 or 3, in their place; *at: its position. */
GPUIR_HD static inline uint32_t gpuir__pfd_apart(const gpuir__pfd_block *v, uint32_t k, uint32_t *at) {
  if (v->form == GPUIR__PFD_MARKED) {
    const unsigned before = gpuir__ones64(v->marked.marks[0]);
    *at = k < before ? gpuir__select64(v->marked.marks[0], k)
                     : 64 + gpuir__select64(v->marked.marks[1], k - before);
    return gpuir__bp128_high(&v->marked, k);
  }
  *at = gpuir__packed_value(v->positions, 7, k);
  return gpuir__packed_value(v->overflows, v->h, k) << v->b;
}

/* Returns the value of exception k of form 1. */
GPUIR_HD static inline uint32_t gpuir__pfd_linked(const gpuir__pfd_block *v, uint32_t k) {
  return gpuir__load_bytes(v->values + k * v->bytes, v->bytes);
}

/* Decodes a block of form 3, whose exceptions are bp128's; the kernels `marked`. */
static void gpuir__marked_scalar(const gpuir__stream *s, const gpuir__bp128_view *v, uint32_t count,
                                 uint32_t prev, uint32_t *out) {
  gpuir__bp128_low_scalar(v->low, v->b, count, 0, out);
  gpuir__bp128_patch_scalar(v, out);
  if (s->codec->docids) gpuir__sum_gaps_scalar(out, count, prev, s->limit);
}

#if GPUIR__X86
GPUIR__AVX2 static void gpuir__marked_simd(const gpuir__stream *s, const gpuir__bp128_view *v, uint32_t count,
                                           uint32_t prev, uint32_t *out) {
  if (s->codec->docids)
    gpuir__bp128_simd(s, v->low, v->b, count, 0, v, 1, prev, out);
  else
    gpuir__bp128_simd(s, v->low, v->b, count, 0, v, 0, 0, out);
}
#endif

static void gpuir__pfd_decode(const gpuir__stream *s, uint32_t block, uint32_t prev, uint32_t *out) {
  const uint32_t count = gpuir__block_count(s->n, block);
  gpuir__pfd_block v;
  uint32_t i, at;
  gpuir__pfd_find(s, block, count, &v);
  if (v.form == GPUIR__PFD_MARKED) {
    s->kernels->marked(s, &v.marked, count, prev, out);
    return;
  }
  gpuir__unpack(s, v.slots, v.b, 0, count, out);
  if (v.form == GPUIR__PFD_LINKED) {
    for (i = 0, at = v.first; i < v.number && at < count; i++) {
      uint32_t next = at + out[at] + 1;
      out[at] = gpuir__pfd_linked(&v, i);
      if (next <= at) break;
      at = next;
    }
  } else if (v.form == GPUIR__PFD_APART) {
    for (i = 0; i < v.number; i++) { /* a position is less than 128, and nobody reads beyond count */
      uint32_t high = gpuir__pfd_apart(&v, i, &at);
      out[at] |= high;
    }
  }
  if (s->codec->docids) s->kernels->sum_gaps(out, count, prev, s->limit);
}

/* Returns value i of a block alone. */
GPUIR_HD static inline uint32_t gpuir__pfd_value(const gpuir__pfd_block *v, uint32_t i) {
  uint32_t value = gpuir__packed_value(v->slots, v->b, i), k;
  if (v->form == GPUIR__PFD_LINKED) {
    uint32_t at = v->first;
    for (k = 0; k < v->number && at <= i; k++) {
      uint32_t next = at + gpuir__packed_value(v->slots, v->b, at) + 1;
      if (at == i) return gpuir__pfd_linked(v, k);
      if (next <= at) break;
      at = next;
    }
  } else if (v->form == GPUIR__PFD_MARKED) {
    value |= gpuir__bp128_high_of(&v->marked, i);
  } else if (v->form == GPUIR__PFD_APART) { /* positions increase */
    uint32_t lo = 0, hi = v->number, at;
    while (lo < hi) {
      uint32_t mid = (lo + hi) / 2;
      if (gpuir__packed_value(v->positions, 7, mid) < i)
        lo = mid + 1;
      else
        hi = mid;
    }
    if (lo < v->number) {
      uint32_t high = gpuir__pfd_apart(v, lo, &at);
      if (at == i) value |= high;
    }
  }
  return value;
}

GPUIR_HD static inline uint32_t gpuir__pfd_freqs_get(const gpuir__stream *s, uint32_t i) {
  gpuir__pfd_block v;
  gpuir__pfd_find(s, i / GPUIR__BLOCK, gpuir__block_count(s->n, i / GPUIR__BLOCK), &v);
  return gpuir__pfd_value(&v, i % GPUIR__BLOCK);
}

/* Lists the linked exceptions of slots of b bits in list[] and returns their number. */
static uint32_t gpuir__pfd_link(const uint32_t *v, uint32_t count, unsigned b, uint8_t *list) {
  uint32_t i, number = 0;
  for (i = 0; i < count; i++) {
    int exception = gpuir__width32(v[i]) > b;
    if (!exception && number && b < 7 && i - list[number - 1] == 1u << b) {
      uint32_t j; /* the farthest that the link reaches: needed only if another one follows */
      for (j = i; j < count && !exception; j++) exception = gpuir__width32(v[j]) > b;
    }
    if (exception) list[number++] = (uint8_t)i;
  }
  return number;
}

/* Encodes a block in one of the forms into zeroed bytes, as the next ones do, and returns the end; `most`: the
 * greatest width of a value. */
static uint8_t *gpuir__pfd_put_linked(const uint32_t *v, uint32_t count, unsigned b, unsigned most,
                                      uint8_t *to) {
  const unsigned bytes = (most + 7) / 8;
  const uint32_t size = (uint32_t)gpuir__packed_size(count, b);
  uint32_t slots[GPUIR__BLOCK], number, i;
  uint8_t list[GPUIR__BLOCK];
  number = gpuir__pfd_link(v, count, b, list);
  memcpy(slots, v, count * sizeof *v);
  for (i = 0; i < number; i++) slots[list[i]] = i + 1 < number ? list[i + 1] - list[i] - 1u : 0;
  gpuir__put_bits(to, 0, (uint64_t)list[0] | number << 7 | (uint64_t)(bytes - 1) << 14);
  gpuir__pack(to + 2, slots, count, b);
  for (i = 0; i < number; i++) gpuir__put_bits(to + 2 + size, (uint64_t)i * bytes * 8, v[list[i]]);
  return to + 2 + size + number * bytes;
}

static uint8_t *gpuir__pfd_put_apart(const uint32_t *v, uint32_t count, unsigned b, unsigned most,
                                     uint8_t *to) {
  uint8_t *positions = to + 2 + gpuir__packed_size(count, b), *high;
  uint8_t list[GPUIR__BLOCK];
  uint32_t number = 0, i;
  for (i = 0; i < count; i++)
    if (gpuir__width32(v[i]) > b) list[number++] = (uint8_t)i;
  high = positions + gpuir__packed_size(number, 7);
  to[0] = (uint8_t)number;
  to[1] = (uint8_t)(most - b);
  gpuir__pack(to + 2, v, count, b);
  for (i = 0; i < number; i++) {
    gpuir__put_bits(positions, (uint64_t)i * 7, list[i]);
    gpuir__put_bits(high, (uint64_t)i * (most - b), v[list[i]] >> b);
  }
  return high + gpuir__packed_size(number, most - b);
}

static uint8_t *gpuir__pfd_put_marked(const uint32_t *v, uint32_t count, unsigned b, unsigned most,
                                      uint8_t *to) {
  uint8_t *marks = to + gpuir__packed_size(count, b), *h = marks + (count + 7) / 8;
  uint32_t number = 0, i;
  gpuir__pack(to, v, count, b);
  *h = (uint8_t)(most - b);
  for (i = 0; i < count; i++) {
    if (gpuir__width32(v[i]) <= b) continue;
    marks[i / 8] = (uint8_t)(marks[i / 8] | 1u << i % 8);
    gpuir__put_bits(h + 1, (uint64_t)number++ * (most - b), v[i] >> b);
  }
  return h + 1 + gpuir__packed_size(number, most - b);
}

/* Returns the bytes of a block in a form, UINT32_MAX if it cannot have the form; over[b]: values of more than b
 * bits. */
static uint32_t gpuir__pfd_size(const uint32_t *v, uint32_t count, unsigned b, unsigned form, unsigned most,
                                const uint32_t *over) {
  const uint32_t size = (uint32_t)gpuir__packed_size(count, b), number = over[b];
  uint8_t list[GPUIR__BLOCK];
  if (form == 0) return number ? UINT32_MAX : size;
  if (!number || number > 127) return UINT32_MAX;
  if (form == GPUIR__PFD_APART)
    return 2 + size + (uint32_t)(gpuir__packed_size(number, 7) + gpuir__packed_size(number, most - b));
  if (form == GPUIR__PFD_MARKED)
    return size + (count + 7) / 8 + 1 + (uint32_t)gpuir__packed_size(number, most - b);
  {
    uint32_t linked = gpuir__pfd_link(v, count, b, list);
    return linked > 127 ? UINT32_MAX : 2 + size + linked * ((most + 7) / 8);
  }
}

/* Chooses b and the form; returns the width byte. forms: a bit for each form that may be used. */
static unsigned gpuir__pfd_choose(const uint32_t *v, uint32_t count, unsigned forms, unsigned *most_bits) {
  uint32_t over[33], histogram[33] = {0}, best = UINT32_MAX, i;
  unsigned b, form, width = 0, most = 0;
  const int least_size = (forms & 6) == 6;
  for (i = 0; i < count; i++) histogram[gpuir__width32(v[i])]++;
  for (b = 32, i = 0;; b--) {
    over[b] = i;
    i += histogram[b];
    if (histogram[b] && b > most) most = b;
    if (!b) break;
  }
  for (b = 0; b <= most && (least_size || best == UINT32_MAX); b++) /* otherwise the first b that may be */
    for (form = 0; form < 4; form++) {
      uint32_t size;
      if (!(forms >> form & 1) || (!least_size && over[b] > count / 10)) continue;
      size = gpuir__pfd_size(v, count, b, form, most, over);
      if (size >= best) continue;
      best = size;
      width = b | form << 6;
    }
  *most_bits = most;
  return width;
}

static uint8_t *gpuir__pfd_encode_block(const gpuir__codec *codec, uint32_t *v, uint32_t count, uint32_t unit,
                                        uint8_t *to, uint8_t *width) {
  unsigned most, w = gpuir__pfd_choose(v, count, codec->mode, &most), b = w & 63;
  (void)unit;
  *width = (uint8_t)w;
  switch (w >> 6) {
    case GPUIR__PFD_LINKED: return gpuir__pfd_put_linked(v, count, b, most, to);
    case GPUIR__PFD_APART: return gpuir__pfd_put_apart(v, count, b, most, to);
    case GPUIR__PFD_MARKED: return gpuir__pfd_put_marked(v, count, b, most, to);
    default: gpuir__pack(to, v, count, b); return to + gpuir__packed_size(count, b);
  }
}

static int gpuir__pfd_encode(const gpuir__codec *codec, const uint32_t *values, uint32_t n,
                             const gpuir__target *to) {
  return gpuir__encode_blocks(codec, values, n, to, gpuir__pfd_encode_block, 1);
}

/* ----------------------------------------------------------------------------
 * pfd-list (9)
 *
 * PForDelta with one b for the whole list. Source: section 6.2 of Ding, He, Yan & Suel, WWW 2009.
 * An array of numbers is coded to a depth d of 0 to 5:
 *
 *     d = 0     | number u32 | number u32 | ...
 *     d > 0     | b u8 | exceptions u32 | slots, b bits each, padded to a byte |
 *               | high bits, coded to depth d - 1 | gaps of positions, coded to depth d - 1 |
 *
 * A slot has the low b bits of a number; those above b are the high bits of an exception. The gap of
 * a position is the position less its predecessor less one. The last two arrays are missing if there
 * are no exceptions.
 *
 *     list of 128 or more   | depth u8 | docID u32 before each 512 ... | gaps, coded to the depth |
 *     shorter list          | depth u8 | gaps, coded to the depth |
 *
 * The depth of a list is the number of levels by which the two arrays are compressed recursively plus
 * one; so is the parameter: 1 for 0 levels to 5 for 4 levels, and 0 for the paper's choice, 1 level.
 * The docIDs before the blocks of 512 (UINT32_MAX before the first) let a kernel begin at each;
 * here a block's predecessor comes from the directory. offset[] has the number of exceptions before a
 * block, width[] is 0. As in the paper, all exceptions are decoded when the list is opened.
 *
 * gpuir__pfl_level_find takes each level apart. A lane takes gpuir__packed_value of its slots; then lanes
 * patch an exception each, from gpuir__pfl_first on, by gpuir__pfl_high; gpuir__pfl_value does both.
 * --------------------------------------------------------------------------*/

#define GPUIR__PFL_BLOCK 512u
#define GPUIR__PFL_DEPTH 5u
#define GPUIR__PFL_BAD UINT64_MAX

/* The first level of an array of depth > 0, its exceptions still coded. */
typedef struct gpuir__pfl_level {
  unsigned b;
  uint32_t number;
  const uint8_t *slots, *rest; /* rest: behind the slots */
} gpuir__pfl_level;

/* Finds the first level of an array of n numbers, coded to a depth > 0; returns its size, or BAD. */
GPUIR_HD static inline uint64_t gpuir__pfl_level_find(const uint8_t *p, uint64_t avail, uint32_t n,
                                                      gpuir__pfl_level *level) {
  uint64_t size;
  if (avail < 5 || p[0] > 32) return GPUIR__PFL_BAD;
  level->b = p[0];
  level->number = gpuir__load32(p + 1);
  size = 5 + gpuir__packed_size(n, level->b);
  if (size > avail || level->number > n || (level->number && level->b == 32)) /* there are no high bits */
    return GPUIR__PFL_BAD;
  level->slots = p + 5;
  level->rest = p + size;
  return size;
}

/* Returns the bytes of an array of n, or BAD; *memory: how many numbers gpuir__pfl_decode needs besides them;
 * *level: its first level, unless NULL. */
static uint64_t gpuir__pfl_size(const uint8_t *p, uint64_t avail, uint32_t n, unsigned depth,
                                uint64_t *memory, gpuir__pfl_level *level) {
  uint64_t size, array, inner[2] = {0, 0};
  gpuir__pfl_level own;
  unsigned i;
  *memory = 0;
  if (!depth) {
    size = (uint64_t)n * 4;
    return size > avail ? GPUIR__PFL_BAD : size;
  }
  if (!level) level = &own;
  size = gpuir__pfl_level_find(p, avail, n, level);
  if (size == GPUIR__PFL_BAD || !level->number) return size;
  for (i = 0; i < 2; i++) {
    array = gpuir__pfl_size(p + size, avail - size, level->number, depth - 1, &inner[i], NULL);
    if (array == GPUIR__PFL_BAD) return array;
    size += array;
  }
  *memory = (uint64_t)level->number * 2 + gpuir__max64(inner[0], inner[1]);
  return size;
}

/* Turns gaps of positions into positions; 0 or FORMAT if one is not below n. */
static int gpuir__pfl_positions(uint32_t *positions, uint32_t number, uint32_t n) {
  uint64_t at = 0;
  uint32_t i;
  for (i = 0; i < number; i++) {
    at += positions[i];
    if (at >= n) return GPUIR_E_FORMAT;
    positions[i] = (uint32_t)at++;
  }
  return GPUIR_OK;
}

/* Decodes an array, whose size gpuir__pfl_size has found good, to out[0..n). Returns the end of its bytes, or NULL
 * if it is malformed. */
static const uint8_t *gpuir__pfl_decode(const uint8_t *p, uint32_t n, unsigned depth, uint32_t *out,
                                        uint32_t *memory) {
  const uint8_t *end = p + 5;
  uint32_t number, i;
  unsigned b;
  if (!depth) {
    memcpy(out, p, (size_t)n * 4);
    return p + (size_t)n * 4;
  }
  b = p[0];
  number = gpuir__load32(p + 1);
  for (i = 0; i < n; i++) out[i] = gpuir__packed_value(end, b, i);
  end += gpuir__packed_size(n, b);
  if (!number) return end;
  end = gpuir__pfl_decode(end, number, depth - 1, memory, memory + (size_t)number * 2);
  if (end) end = gpuir__pfl_decode(end, number, depth - 1, memory + number, memory + (size_t)number * 2);
  if (!end || gpuir__pfl_positions(memory + number, number, n)) return NULL;
  for (i = 0; i < number; i++) out[memory[number + i]] |= memory[i] << b;
  return end;
}

/* A list that is open: high bits and positions of its exceptions stand behind this structure. */
typedef struct gpuir__pfl_state {
  gpuir__pfl_level top;
  const uint32_t *overflows, *positions; /* [exception] high bits; the value's index in the list */
} gpuir__pfl_state;

/* Finds the list's first level, its depth, and how many numbers gpuir__pfl_decode needs. 0 or FORMAT. */
static int gpuir__pfl_find(const gpuir__stream *s, gpuir__pfl_level *top, unsigned *depth, uint64_t *memory) {
  uint64_t head = 1;
  top->b = top->number = 0;
  top->slots = top->rest = s->bytes;
  *memory = 0;
  *depth = s->len ? s->bytes[0] : 0;
  if (s->offset) head += (((uint64_t)s->n + GPUIR__PFL_BLOCK - 1) / GPUIR__PFL_BLOCK) * 4;
  if (*depth < 1 || *depth > GPUIR__PFL_DEPTH || head > s->len ||
      gpuir__pfl_size(s->bytes + head, s->len - head, s->n, *depth, memory, top) == GPUIR__PFL_BAD ||
      *memory > SIZE_MAX / 8) {
    *memory = 0;
    return GPUIR_E_FORMAT;
  }
  return GPUIR_OK;
}

static size_t gpuir__pfl_scratch(const gpuir__stream *s) {
  gpuir__pfl_level top;
  unsigned depth;
  uint64_t memory;
  (void)gpuir__pfl_find(s, &top, &depth, &memory);
  return sizeof(gpuir__pfl_state) + (size_t)memory * sizeof(uint32_t);
}

/* Returns 1 if the directory has, of each block, the number of exceptions before it: the device starts there. */
static int gpuir__pfl_counts_hold(const gpuir__stream *s, const uint32_t *positions, uint32_t number) {
  const uint32_t nblocks = s->offset ? (s->n - 1) / GPUIR__BLOCK + 1 : 0;
  uint32_t block, e = 0;
  for (block = 0; block < nblocks; block++) {
    while (e < number && positions[e] / GPUIR__BLOCK < block) e++;
    if (s->offset[block] != e) return 0;
  }
  return 1;
}

static int gpuir__pfl_open(gpuir__stream *s) {
  gpuir__pfl_state *state = (gpuir__pfl_state *)s->scratch;
  uint32_t *memory = (uint32_t *)(void *)(state + 1);
  const uint8_t *end;
  unsigned depth;
  uint64_t need;
  uint32_t number;
  int status = gpuir__pfl_find(s, &state->top, &depth, &need);
  if (status) return status;
  number = state->top.number;
  state->overflows = memory;
  state->positions = memory + number;
  if (!number) return GPUIR_OK;
  end = gpuir__pfl_decode(state->top.rest, number, depth - 1, memory, memory + (size_t)number * 2);
  if (end) end = gpuir__pfl_decode(end, number, depth - 1, memory + number, memory + (size_t)number * 2);
  if (!end || gpuir__pfl_positions(memory + number, number, s->n)) return GPUIR_E_FORMAT;
  return gpuir__pfl_counts_hold(s, memory + number, number) ? GPUIR_OK : GPUIR_E_FORMAT;
}

/* Returns the first exception at value i of the list or behind it. */
GPUIR_HD static inline uint32_t gpuir__pfl_first(const gpuir__pfl_state *state, uint32_t i) {
  uint32_t lo = 0, hi = state->top.number;
  while (lo < hi) {
    uint32_t mid = lo + (hi - lo) / 2;
    if (state->positions[mid] < i)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo;
}

/* Returns the high bits of exception e in their place. */
GPUIR_HD static inline uint32_t gpuir__pfl_high(const gpuir__pfl_state *state, uint32_t e) {
  return state->overflows[e] << state->top.b;
}

/* Returns gap i of an open list alone. */
GPUIR_HD static inline uint32_t gpuir__pfl_value(const gpuir__pfl_state *state, uint32_t i) {
  const uint32_t e = gpuir__pfl_first(state, i),
                 slot = gpuir__packed_value(state->top.slots, state->top.b, i);
  return e < state->top.number && state->positions[e] == i ? slot | gpuir__pfl_high(state, e) : slot;
}

static void gpuir__pfl_decode_block(const gpuir__stream *s, uint32_t block, uint32_t prev, uint32_t *out) {
  const gpuir__pfl_state *state = (const gpuir__pfl_state *)s->scratch;
  const uint32_t count = gpuir__block_count(s->n, block), *positions = state->positions;
  const uint32_t number = state->top.number;
  const uint32_t first = block * GPUIR__BLOCK, end = first + count; /* n < 2^32: no overflow */
  uint32_t e = 0;
  gpuir__unpack(s, state->top.slots, state->top.b, first, count, out);
  if (number) {
    if (s->offset) e = gpuir__min32(s->offset[block], number);
    if ((e < number && positions[e] < first) || (e && positions[e - 1] >= first))
      e = gpuir__pfl_first(state, first); /* the directory is wrong */
    for (; e < number && positions[e] < end; e++) out[positions[e] - first] |= gpuir__pfl_high(state, e);
  }
  s->kernels->sum_gaps(out, count, prev, s->limit);
}

/* Returns the least size in bits of an array of n numbers at `each` bits an exception; histogram[w]: numbers of
 * width w. */
static uint64_t gpuir__pfl_least(const uint64_t *histogram, uint64_t n, uint64_t each) {
  uint64_t over = n, best = UINT64_MAX;
  unsigned b;
  for (b = 0; b <= 32; b++) {
    over -= histogram[b];
    best = gpuir__min64(best, n * b + over * each);
    if (!over) break;
  }
  return best + 40;
}

/* Chooses b for an array of depth > 0. The widths of the high bits are known; the gaps between exceptions are
 * taken to be distributed geometrically. What is below two more levels counts as 24 bits an exception. */
static unsigned gpuir__pfl_choose(const uint32_t *values, uint32_t n, unsigned depth) {
  uint64_t histogram[33] = {0}, over = n, best = UINT64_MAX;
  unsigned b, w, choice = 0;
  uint32_t i;
  for (i = 0; i < n; i++) histogram[gpuir__width32(values[i])]++;
  for (b = 0; b <= 32; b++) {
    uint64_t size = (uint64_t)n * b;
    over -= histogram[b];
    if (over && depth == 1) {
      size += over * 64;
    } else if (over) {
      uint64_t overflows[33] = {0}, gaps[33] = {0}, left = over;
      const uint64_t each = depth == 2 ? 64 : 24;
      double none =
          (double)(n - over) / (double)n; /* no exception among 2^w values: products only, nothing to fuse */
      for (w = b + 1; w <= 32; w++) overflows[w - b] = histogram[w];
      for (w = 0; left && w < 32; w++, none *= none) {
        uint64_t longer = gpuir__min64((uint64_t)((double)over * none), left);
        gaps[w] = left - longer;
        left = longer;
      }
      gaps[w] += left;
      size += gpuir__pfl_least(overflows, over, each) + gpuir__pfl_least(gaps, over, each);
    }
    if (size < best) {
      best = size;
      choice = b;
    }
    if (!over) break;
  }
  return choice;
}

/* Appends an array, coded to a depth. 0 or NOMEM, and then some of it may have been appended. */
static int gpuir__pfl_put(const gpuir_allocator *a, gpuir__buf *out, const uint32_t *values, uint32_t n,
                          unsigned depth) {
  uint32_t *exceptions, number = 0, next = 0, i, e;
  uint64_t size;
  unsigned b;
  uint8_t *to;
  int status;
  if (!depth) return gpuir__buf_put(a, out, values, (size_t)n * 4);
  b = gpuir__pfl_choose(values, n, depth);
  size = 5 + gpuir__packed_size(n, b);
  to = gpuir__zero_room(a, out, size);
  if (!to) return GPUIR_E_NOMEM;
  for (i = 0; i < n; i++) number += gpuir__width32(values[i]) > b;
  to[0] = (uint8_t)b;
  gpuir__store32(to + 1, number);
  gpuir__pack(to + 5, values, n, b);
  out->len += (size_t)size;
  if (!number) return GPUIR_OK;
  exceptions = (uint32_t *)gpuir__alloc(a, (size_t)number * 8);
  if (!exceptions) return GPUIR_E_NOMEM;
  for (i = 0, e = 0; i < n; i++) {
    if (gpuir__width32(values[i]) <= b) continue;
    exceptions[e] = values[i] >> b;
    exceptions[(size_t)number + e++] = i - next;
    next = i + 1;
  }
  status = gpuir__pfl_put(a, out, exceptions, number, depth - 1);
  if (!status) status = gpuir__pfl_put(a, out, exceptions + number, number, depth - 1);
  gpuir__free(a, exceptions, (size_t)number * 8);
  return status;
}

/* Notes of each block how many exceptions, gaps of more than b bits, stand before it. */
static void gpuir__pfl_directory(const uint32_t *gaps, uint32_t n, unsigned b, const gpuir__target *t) {
  uint32_t i, number = 0;
  for (i = 0; i < n; i++) {
    if (i % GPUIR__BLOCK == 0) gpuir__target_block(t, i / GPUIR__BLOCK, number, 0);
    number += gpuir__width32(gaps[i]) > b;
  }
}

static int gpuir__pfl_encode(const gpuir__codec *codec, const uint32_t *values, uint32_t n,
                             const gpuir__target *t) {
  const size_t start = t->out->len;
  const unsigned depth = t->param ? (unsigned)gpuir__min64(t->param, 99) : 2;
  uint32_t *gaps, i;
  int status;
  uint64_t head = 1;
  uint8_t *to;
  (void)codec;
  if (depth > GPUIR__PFL_DEPTH) return GPUIR_E_LIMIT;
  if (t->offset) head += (((uint64_t)n + GPUIR__PFL_BLOCK - 1) / GPUIR__PFL_BLOCK) * 4;
  to = gpuir__zero_room(t->a, t->out, head);
  gaps = to ? (uint32_t *)gpuir__alloc(t->a, (size_t)n * 4) : NULL;
  if (!gaps) return GPUIR_E_NOMEM;
  to[0] = (uint8_t)depth;
  if (t->offset)
    for (i = 0; i < (n - 1) / GPUIR__PFL_BLOCK + 1; i++)
      gpuir__store32(to + 1 + (size_t)i * 4, i ? values[i * GPUIR__PFL_BLOCK - 1] : UINT32_MAX);
  t->out->len += (size_t)head;
  gpuir__take_gaps(values, n, UINT32_MAX, gaps);
  gpuir__pfl_directory(gaps, n, gpuir__pfl_choose(gaps, n, depth), t);
  status = gpuir__pfl_put(t->a, t->out, gaps, n, depth);
  gpuir__free(t->a, gaps, (size_t)n * 4);
  if (status) t->out->len = start;
  return status;
}

/* ----------------------------------------------------------------------------
 * parapfor (10)
 *
 * PForDelta in segments of s = 64, 128 or 256 whose exceptions can be patched independently of each
 * other. Source: appendix D of Ao, Zhang, Wu, Stones, Wang, Liu, Liu & Lin, "Efficient parallel
 * lists intersection and index compression algorithms using graphics processing units", PVLDB 4(8),
 * 2011. Exceptions keep their low b bits in the slot; their indices and high bits are two arrays:
 *
 *     segment   | 0 b u8 |                          slots |
 *               | 1 b u8 | ib u8 | hb u8 | en u8 | slots | index, ib bits each | high bits, hb each |
 *                 '-- bit 7: there are exceptions
 *
 * ib and hb are the widths, floor(log2 x) + 1, 0 for 0, of the greatest index and high bits, en
 * the number of exceptions, 1 to 255. (The paper's widths, ceil(log2 x), are too small at powers of
 * two.) Each array is padded to a byte.
 *
 *     list of 128 or more   | log2 s u8 | segment | segment | ...
 *     shorter list          | segment |
 *
 * offset[] has where the segment begins that a block begins in, width[] is 0. The parameter is
 * s + 1024 e: e is 0 for the default; 1 to 1001 to choose the least b that makes at most (e - 1) / 1000
 * of a segment exceptions; 1002 to choose the b that makes it smallest. s of 0 is the default of 128.
 * The default of e is a tenth, here; the codecs below use the same segments for deviations from lines,
 * by default with s = 256 and without exceptions.
 *
 * gpuir__para_find takes a segment apart. A lane takes gpuir__packed_value of the slots; then lanes patch
 * an exception each by gpuir__para_high; gpuir__para_value does both for a value of a segment,
 * gpuir__para_gap for one of a list.
 * --------------------------------------------------------------------------*/

#define GPUIR__PARA_LEAST 1002u
#define GPUIR__PARA_MOST 256u /* values of a segment */

/* A segment, taken apart. */
typedef struct gpuir__para {
  unsigned b, ib, hb, en;                     /* widths of slots, indices and high bits; exceptions */
  const uint8_t *slots, *indices, *overflows; /* overflows: the high bits */
} gpuir__para;

/* Takes a segment of count values apart; returns its bytes, or 0 and a segment of zeros if it is not all there. */
GPUIR_HD static inline uint64_t gpuir__para_find(const uint8_t *p, uint64_t avail, uint32_t count,
                                                 gpuir__para *v) {
  uint64_t head = 1, slots, indices = 0;
  if (avail) {
    v->b = p[0] & 127;
    v->ib = v->hb = v->en = 0;
    if (p[0] & 128) {
      v->ib = p[1];
      v->hb = p[2];
      v->en = p[3];
      head = 4;
    }
    slots = gpuir__packed_size(count, v->b);
    indices = gpuir__packed_size(v->en, v->ib);
    if (v->b <= 32 && v->ib <= 8 && v->b + v->hb <= 32 &&
        head + slots + indices + gpuir__packed_size(v->en, v->hb) <= avail) {
      const uint64_t size = head + slots + indices + gpuir__packed_size(v->en, v->hb);
      v->slots = p + head;
      v->indices = v->slots + slots;
      v->overflows = v->indices + indices;
      if (v->b == 32) v->en = 0; /* there are no high bits */
      return size;
    }
  }
  v->b = v->ib = v->hb = v->en = 0;
  v->slots = v->indices = v->overflows = p;
  return 0;
}

/* Returns the high bits of exception e in their place; *at: its index in the segment. */
GPUIR_HD static inline uint32_t gpuir__para_high(const gpuir__para *v, uint32_t e, uint32_t *at) {
  *at = gpuir__packed_value(v->indices, v->ib, e);
  return gpuir__packed_value(v->overflows, v->hb, e) << v->b;
}

/* Decodes values from .. from + count - 1, writing up to the next multiple of 16. */
static void gpuir__para_decode(const gpuir__stream *s, const gpuir__para *v, uint32_t from, uint32_t count,
                               uint32_t *out) {
  uint32_t e, at;
  gpuir__unpack(s, v->slots, v->b, from, count, out);
  for (e = 0; e < v->en; e++) {
    uint32_t high = gpuir__para_high(v, e, &at);
    if (at - from < count) out[at - from] |= high;
  }
}

/* Returns value i alone. Indices of exceptions increase. */
GPUIR_HD static inline uint32_t gpuir__para_value(const gpuir__para *v, uint32_t i) {
  uint32_t value = gpuir__packed_value(v->slots, v->b, i), lo = 0, hi = v->en, at;
  while (lo < hi) {
    uint32_t mid = (lo + hi) / 2;
    if (gpuir__packed_value(v->indices, v->ib, mid) < i)
      lo = mid + 1;
    else
      hi = mid;
  }
  if (lo < v->en) {
    uint32_t high = gpuir__para_high(v, lo, &at);
    if (at == i) value |= high;
  }
  return value;
}

/* Returns the number of values of a list's segments; 256 if the stream does not say. */
GPUIR_HD static inline uint32_t gpuir__para_size(const gpuir__stream *s) {
  return s->offset && s->len && s->bytes[0] >= 6 && s->bytes[0] <= 8 ? 1u << s->bytes[0] : GPUIR__PARA_MOST;
}

/* Returns gap i of a list alone. */
GPUIR_HD static inline uint32_t gpuir__para_gap(const gpuir__stream *s, uint32_t i) {
  const uint32_t size = gpuir__para_size(s);
  uint64_t at = s->offset ? gpuir__min64(s->offset[i / GPUIR__BLOCK], s->len) : 0;
  uint32_t start =
      i / GPUIR__BLOCK * GPUIR__BLOCK & ~(size - 1); /* of the segment that the block begins in */
  gpuir__para v;
  for (;; start += size) {
    at += gpuir__para_find(s->bytes + at, s->len - at, gpuir__min32(size, s->n - start), &v);
    if (i - start < size) return gpuir__para_value(&v, i - start);
  }
}

/* Chooses b for a segment; *en: the exceptions, values of more than b bits; *most: the greatest width of a value. */
static unsigned gpuir__para_choose(const uint32_t *values, uint32_t count, unsigned exceptions, uint32_t *en,
                                   unsigned *most) {
  uint32_t histogram[33] = {0}, over = 0, best = UINT32_MAX, i;
  unsigned b, choice = 0;
  *en = 0;
  *most = 0;
  for (i = 0; i < count; i++) histogram[gpuir__width32(values[i])]++;
  for (b = 33; b-- > 0;) { /* from the greatest b down; `over` values do not fit into b bits */
    uint32_t total = (uint32_t)gpuir__packed_size(count, b);
    if (!*most && histogram[b]) *most = b;
    if (over)
      total += 3 + (uint32_t)(gpuir__packed_size(over, gpuir__width32(count - 1)) +
                              gpuir__packed_size(over, *most - b));
    if (over <= 255 &&
        (exceptions == GPUIR__PARA_LEAST ? total < best : over * 1000 <= (exceptions - 1) * count)) {
      best = total;
      choice = b;
      *en = over;
    }
    over += histogram[b];
  }
  return choice;
}

/* Appends a segment of count <= 256 values; `exceptions` is e of the parameter. 0 or NOMEM. */
static int gpuir__para_put(const gpuir_allocator *a, gpuir__buf *out, const uint32_t *values, uint32_t count,
                           unsigned exceptions) {
  uint32_t over = 0, en, last = 0, i;
  unsigned most, ib, hb, b = gpuir__para_choose(values, count, exceptions, &en, &most);
  uint64_t slots, index_size, size;
  uint8_t *to;
  for (i = 0; en && i < count; i++)
    if (gpuir__width32(values[i]) > b) last = i;
  ib = gpuir__width32(last);
  hb = en ? most - b : 0;
  slots = gpuir__packed_size(count, b);
  index_size = gpuir__packed_size(en, ib);
  size = (en ? 4 : 1) + slots + index_size + gpuir__packed_size(en, hb);
  to = gpuir__zero_room(a, out, size);
  if (!to) return GPUIR_E_NOMEM;
  out->len += (size_t)size;
  *to++ = (uint8_t)(b | (en ? 128u : 0));
  if (en) {
    *to++ = (uint8_t)ib;
    *to++ = (uint8_t)hb;
    *to++ = (uint8_t)en;
  }
  gpuir__pack(to, values, count, b);
  for (i = 0; over < en; i++) {
    if (gpuir__width32(values[i]) <= b) continue;
    gpuir__put_bits(to + slots, (uint64_t)over * ib, i);
    gpuir__put_bits(to + slots + index_size, (uint64_t)over++ * hb, values[i] >> b);
  }
  return GPUIR_OK;
}

/* Reads a parameter s + 1024 e; 0 or LIMIT. */
static int gpuir__para_param(uint64_t param, uint32_t least_s, uint32_t *s, unsigned *exceptions) {
  if (param & 1023) *s = (uint32_t)(param & 1023);
  if (param >> 10) *exceptions = (unsigned)gpuir__min64(param >> 10, 9999);
  if (*s < least_s || *s > GPUIR__PARA_MOST || (*s & (*s - 1)) || *exceptions > GPUIR__PARA_LEAST)
    return GPUIR_E_LIMIT;
  return GPUIR_OK;
}

static int gpuir__para_open(gpuir__stream *s) {
  gpuir__para v;
  if (!s->n) return GPUIR_OK;
  if (!s->offset) return gpuir__para_find(s->bytes, s->len, s->n, &v) ? GPUIR_OK : GPUIR_E_FORMAT;
  return s->len && s->bytes[0] >= 6 && s->bytes[0] <= 8 ? GPUIR_OK : GPUIR_E_FORMAT;
}

static void gpuir__para_decode_block(const gpuir__stream *s, uint32_t block, uint32_t prev, uint32_t *out) {
  const uint32_t count = gpuir__block_count(s->n, block), first = block * GPUIR__BLOCK;
  gpuir__para v;
  if (!s->offset) {
    (void)gpuir__para_find(s->bytes, s->len, count, &v);
    gpuir__para_decode(s, &v, 0, count, out);
  } else {
    const uint32_t size = gpuir__para_size(s);
    uint64_t at = gpuir__min64(s->offset[block], s->len);
    uint32_t start = first & ~(size - 1), from = first - start, done = 0;
    while (done < count) {
      uint32_t length = gpuir__min32(size, s->n - start), take = gpuir__min32(length - from, count - done);
      at += gpuir__para_find(s->bytes + at, s->len - at, length, &v);
      gpuir__para_decode(s, &v, from, take, out + done);
      done += take;
      start += length;
      from = 0;
    }
  }
  s->kernels->sum_gaps(out, count, prev, s->limit);
}

/* Notes that the blocks which begin among the `count` values of the segment at value `at` begin where the segment does:
 * at byte `offset` of the stream. */
static void gpuir__segment_blocks(const gpuir__target *t, uint32_t at, uint32_t count, uint32_t offset) {
  uint32_t block = at / GPUIR__BLOCK + (at % GPUIR__BLOCK != 0);
  const uint32_t last = (at + count - 1) / GPUIR__BLOCK;
  for (; block <= last; block++) gpuir__target_block(t, block, offset, 0);
}

static int gpuir__para_encode(const gpuir__codec *codec, const uint32_t *values, uint32_t n,
                              const gpuir__target *t) {
  const size_t start = t->out->len;
  uint32_t size = 128, at, count, gaps[GPUIR__PARA_MOST];
  unsigned exceptions = 101;
  int status = gpuir__para_param(t->param, 64, &size, &exceptions);
  (void)codec;
  if (!t->offset) size = GPUIR__BLOCK; /* one segment */
  if (!status && t->offset) {
    uint8_t head = (uint8_t)gpuir__ctz32(size);
    status = gpuir__buf_put(t->a, t->out, &head, 1);
  }
  for (at = 0; !status && at < n; at += count) {
    const uint64_t used = t->out->len - start;
    count = gpuir__min32(n - at, size);
    if (used > UINT32_MAX) status = GPUIR_E_LIMIT;
    gpuir__segment_blocks(t, at, count, (uint32_t)used);
    gpuir__take_gaps(values + at, count, at ? values[at - 1] : UINT32_MAX, gaps);
    if (!status) status = gpuir__para_put(t->a, t->out, gaps, count, exceptions);
  }
  if (status) t->out->len = start;
  return status;
}

/* ============================================================================
 * [07-lab-lines]  codecs of the literature: deviations from regression lines (lrc, lrcseg, seglrc, hslrc)
 *
 * Uses      [02-vectors], [03-codecs], [06-lab-pfor] (the segments of parapfor).
 * Start at  gpuir__line (a fitted line in fixed point), gpuir__lrc_decode, gpuir__hslrc_decode.
 * Tests     tests/unit/07_lab_lines.c
 * ==========================================================================*/

/* ---- regression lines ---- */

/* A line through the points (i, value i) of `count` consecutive values. Its height at i is
 *
 *     (slope * i >> shift) + start      modulo 2^32, with shift = floor(log2(count - 1)), 0 for 1
 *
 * in 64-bit fixed point: slope is less than 2^32, since no line rises beyond 2^32 - 1, so the
 * product is exact, and its last bit is worth less than one docID at the last i. */
typedef struct gpuir__line {
  uint32_t slope, start;
  unsigned shift;
} gpuir__line;

/* Returns the line's height at i. */
GPUIR_HD static inline uint32_t gpuir__line_at(const gpuir__line *l, uint32_t i) {
  return (uint32_t)((uint64_t)l->slope * i >> l->shift) + l->start;
}

GPUIR_HD static inline unsigned gpuir__line_shift(uint32_t count) {
  return count > 1 ? gpuir__width32(count - 1) - 1 : 0;
}

/* Adds the line's heights at from, from + 1, ... to out[0..count) and clamps to limit. Kernels process up to the next
 * multiple of 16 values. */
static void gpuir__line_add_scalar(const gpuir__line *l, uint32_t from, uint32_t limit, uint32_t count,
                                   uint32_t *out) {
  uint32_t i;
  for (i = 0; i < count; i++) out[i] = gpuir__min32(out[i] + gpuir__line_at(l, from + i), limit);
}

#if GPUIR__X86
GPUIR__AVX2 static void gpuir__line_add_avx2(const gpuir__line *l, uint32_t from, uint32_t limit,
                                             uint32_t count, uint32_t *out) {
  const __m256i slope = _mm256_set1_epi64x((long long)l->slope), start = _mm256_set1_epi32((int)l->start);
  const __m256i most = _mm256_set1_epi32((int)limit);
  const __m256i step = _mm256_slli_epi64(slope, 3);
  const __m256i first = _mm256_set1_epi64x((long long)((uint64_t)l->slope * from));
  const __m128i shift = _mm_cvtsi32_si128((int)l->shift);
  __m256i even = _mm256_add_epi64(first, _mm256_mul_epu32(slope, _mm256_setr_epi64x(0, 2, 4, 6)));
  __m256i odd = _mm256_add_epi64(even, slope);
  uint32_t i;
  for (i = 0; i < count; i += 8) {
    __m256i y = _mm256_blend_epi32(_mm256_srl_epi64(even, shift),
                                   _mm256_slli_epi64(_mm256_srl_epi64(odd, shift), 32), 0xaa);
    __m256i x = _mm256_add_epi32(_mm256_add_epi32(gpuir__avx2_load(out + i), start), y);
    gpuir__avx2_store(out + i, _mm256_min_epu32(x, most));
    even = _mm256_add_epi64(even, step);
    odd = _mm256_add_epi64(odd, step);
  }
}

GPUIR__AVX512 static void gpuir__line_add_avx512(const gpuir__line *l, uint32_t from, uint32_t limit,
                                                 uint32_t count, uint32_t *out) {
  const __m512i slope = _mm512_set1_epi64((long long)l->slope), start = _mm512_set1_epi32((int)l->start);
  const __m512i most = _mm512_set1_epi32((int)limit);
  const __m512i step = _mm512_slli_epi64(slope, 4);
  const __m512i first = _mm512_set1_epi64((long long)((uint64_t)l->slope * from));
  const __m128i shift = _mm_cvtsi32_si128((int)l->shift);
  __m512i even =
      _mm512_add_epi64(first, _mm512_mul_epu32(slope, _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14)));
  __m512i odd = _mm512_add_epi64(even, slope);
  uint32_t i;
  for (i = 0; i < count; i += 16) {
    __m512i y = _mm512_mask_blend_epi32(0xaaaa, _mm512_srl_epi64(even, shift),
                                        _mm512_slli_epi64(_mm512_srl_epi64(odd, shift), 32));
    __m512i x = _mm512_add_epi32(_mm512_add_epi32(_mm512_loadu_si512(out + i), start), y);
    _mm512_storeu_si512(out + i, _mm512_min_epu32(x, most));
    even = _mm512_add_epi64(even, step);
    odd = _mm512_add_epi64(odd, step);
  }
}
#endif

/* Returns the line with the least-squares slope, 6 S / ((n - 1) n (n + 1)) with S = sum of (2i - (n - 1)) * value i,
 * and start 0. S is exact, in two limbs; the rest is products and a quotient in binary64, of which only exact ones
 * can be fused with what follows, so that every machine writes the same line. */
static gpuir__line gpuir__line_fit(const uint32_t *values, uint32_t n) {
  gpuir__line l;
  uint64_t lo = 0, hi = 0;
  double slope;
  uint32_t i;
  l.slope = l.start = 0;
  l.shift = gpuir__line_shift(n);
  if (n < 2) return l;
  for (i = 0; i < n / 2; i++) { /* two values that lie symmetrically: their weights differ in the sign only */
    uint64_t term = (uint64_t)(n - 1 - 2 * i) * (values[n - 1 - i] - values[i]);
    lo += term;
    hi += lo < term;
  }
  slope = (double)hi * 18446744073709551616.0 + (double)lo;
  slope = slope * 6.0 / ((double)(n - 1) * (double)n * ((double)n + 1.0)) * (double)((uint64_t)1 << l.shift);
  {
    uint64_t most = ((uint64_t)UINT32_MAX << l.shift) / (n - 1); /* >= 2^32 never: 2^shift <= n - 1 */
    l.slope = slope < (double)most ? (uint32_t)slope : (uint32_t)most;
  }
  return l;
}

/* Sets l->start so that the least deviation of the values from the line is 0; `from` is the line's argument of
 * values[0]. */
static void gpuir__line_lower(gpuir__line *l, const uint32_t *values, uint32_t from, uint32_t n) {
  int64_t least = INT64_MAX;
  uint32_t i;
  l->start = 0;
  for (i = 0; i < n; i++) {
    int64_t d = (int64_t)values[i] - (int64_t)gpuir__line_at(l, from + i);
    if (d < least) least = d;
  }
  l->start = (uint32_t)(uint64_t)least;
}

/* Writes the deviations of n values from the line. */
static void gpuir__line_deviations(const gpuir__line *l, const uint32_t *values, uint32_t from, uint32_t n,
                                   uint32_t *to) {
  uint32_t i;
  for (i = 0; i < n; i++) to[i] = values[i] - gpuir__line_at(l, from + i);
}

/* Returns the hash bucket, or docID segment, of x: its leading bits (Ao et al. 2011, section 4.4). */
GPUIR_HD static inline uint32_t gpuir__hs_bucket(uint32_t x, unsigned shift) { return x >> shift; }

/* Returns the bits to drop, so that n docIDs up to `last` lie in buckets of `mean` on average: of the k bits that
 * `last` needs, the m leading ones stay, with m the least number such that n / mean <= 2^m; at least one, if k is
 * 32. */
GPUIR_HD static inline unsigned gpuir__hs_shift(uint32_t last, uint32_t n, uint32_t mean) {
  unsigned k = gpuir__width32(last), m = 0;
  while (m < k && ((uint64_t)mean << m) < n) m++;
  return k - m < 32 ? k - m : 31;
}

/* ----------------------------------------------------------------------------
 * lrc (11), lrcseg (12), seglrc (13)
 *
 * Linear regression compression: docIDs grow nearly linearly with their index, so that what is coded
 * is their deviation from a regression line, and any of them can be decoded alone. Source: section
 * 5.2 of Ao et al., PVLDB 4(8), 2011. The line is given a start such that no deviation is negative
 * (that is the paper's M), and the deviations are coded in parapfor segments of s values (256):
 *
 *     docID i = line(i) + deviation i         line(i) = (slope * i >> shift) + start, see gpuir__line
 *
 *     line      | lengths u8 | slope, 0 to 4 bytes | start, 0 to 4 bytes |
 *                 '-- bits 0..2 of the slope, 3..5 of the start, in bytes
 *
 *     lrc       one line for the list         | log2 s u8 | line | segment | segment | ...
 *     lrcseg    one line for the list, but    | log2 s u8 | line | start, segment | start, segment | ...
 *               each segment its own start
 *     seglrc    a line for each segment       | log2 s u8 | line, segment | line, segment | ...
 *
 * A start of lrcseg is a line record whose slope has no bytes; i counts from the line's beginning. A
 * list of fewer than 128 is | line, segment | for all three. offset[] has where the segment (or the
 * record before it) begins that a block begins in, width[] is 0. The parameter is parapfor's.
 *
 * gpuir__lrc_find and gpuir__lrc_segment find the line and the segment. A lane adds gpuir__line_at to
 * what it does for parapfor, and waits for no other; gpuir__lrc_any_get does all of it.
 * --------------------------------------------------------------------------*/

enum { GPUIR__LRC, GPUIR__LRCSEG, GPUIR__SEGLRC }; /* the codecs' modes */

/* Reads a line record; returns its size, or 0 and a line of zeros if it is not all there. */
GPUIR_HD static inline uint64_t gpuir__line_find(const uint8_t *p, uint64_t avail, uint32_t count,
                                                 gpuir__line *l) {
  const unsigned slope = avail ? p[0] & 7 : 5, start = avail ? p[0] >> 3 : 5;
  l->shift = gpuir__line_shift(count);
  l->slope = l->start = 0;
  if (slope > 4 || start > 4 || 1 + slope + start > avail) return 0;
  l->slope = gpuir__load_bytes(p + 1, slope);
  l->start = gpuir__load_bytes(p + 1 + slope, start);
  return 1 + slope + start;
}

/* Appends a line record. 0 or NOMEM. */
static int gpuir__line_put(const gpuir_allocator *a, gpuir__buf *out, uint32_t slope, uint32_t start) {
  uint8_t bytes[16];
  unsigned ls = (gpuir__width32(slope) + 7) / 8, lt = (gpuir__width32(start) + 7) / 8;
  bytes[0] = (uint8_t)(ls | lt << 3);
  gpuir__store32(bytes + 1, slope);
  gpuir__store32(bytes + 1 + ls, start);
  return gpuir__buf_put(a, out, bytes, 1 + ls + lt);
}

/* What decoding from a list needs: the values of a segment, and the list's line, if it has one. */
typedef struct gpuir__lrc_list {
  uint32_t size;
  gpuir__line line;
} gpuir__lrc_list;

/* Reads the head of a list of kind GPUIR__LRC .. GPUIR__SEGLRC. 0 or FORMAT. */
GPUIR_HD static inline int gpuir__lrc_find(const gpuir__stream *s, int kind, gpuir__lrc_list *v) {
  v->size = GPUIR__PARA_MOST;
  v->line.slope = v->line.start = v->line.shift = 0;
  if (!s->offset) return GPUIR_OK;
  if (!s->len || s->bytes[0] < 6 || s->bytes[0] > 8) return GPUIR_E_FORMAT;
  v->size = 1u << s->bytes[0];
  if (kind != GPUIR__SEGLRC && !gpuir__line_find(s->bytes + 1, s->len - 1, s->n, &v->line))
    return GPUIR_E_FORMAT;
  return GPUIR_OK;
}

/* Finds the line and the segment at byte `at`, of `length` values from index `start` on; returns the byte behind it.
 * *base: the line's argument for the segment's first value. */
GPUIR_HD static inline uint64_t gpuir__lrc_segment(const gpuir__stream *s, int kind,
                                                   const gpuir__lrc_list *list, uint64_t at, uint32_t start,
                                                   uint32_t length, gpuir__line *line, uint32_t *base,
                                                   gpuir__para *v) {
  *line = list->line;
  *base = start;
  if (kind == GPUIR__SEGLRC || !s->offset) {
    at += gpuir__line_find(s->bytes + at, s->len - at, length, line);
    *base = 0;
  } else if (kind == GPUIR__LRCSEG) {
    gpuir__line own;
    at += gpuir__line_find(s->bytes + at, s->len - at, length, &own);
    line->start = own.start;
  }
  return at + gpuir__para_find(s->bytes + at, s->len - at, length, v);
}

static inline int gpuir__lrc_any_open(const gpuir__stream *s, int kind) {
  gpuir__lrc_list list;
  int status = gpuir__lrc_find(s, kind, &list);
  if (!status && !s->offset && s->n) {
    gpuir__line line;
    gpuir__para v;
    uint64_t at = gpuir__line_find(s->bytes, s->len, s->n, &line);
    if (!at || !gpuir__para_find(s->bytes + at, s->len - at, s->n, &v)) status = GPUIR_E_FORMAT;
  }
  return status;
}

static void gpuir__lrc_any_decode(const gpuir__stream *s, int kind, uint32_t block, uint32_t *out) {
  const uint32_t count = gpuir__block_count(s->n, block), first = block * GPUIR__BLOCK;
  uint64_t at = s->offset ? gpuir__min64(s->offset[block], s->len) : 0;
  uint32_t start, from, done = 0;
  gpuir__lrc_list list;
  (void)gpuir__lrc_find(s, kind, &list);
  start = first & ~(list.size - 1);
  from = first - start;
  while (done < count) {
    uint32_t length = gpuir__min32(list.size, s->n - start), take = gpuir__min32(length - from, count - done),
             base;
    gpuir__line line;
    gpuir__para v;
    at = gpuir__lrc_segment(s, kind, &list, at, start, length, &line, &base, &v);
    gpuir__para_decode(s, &v, from, take, out + done);
    s->kernels->line_add(&line, base + from, s->limit, take, out + done);
    done += take;
    start += length;
    from = 0;
  }
}

GPUIR_HD GPUIR__INLINE uint32_t gpuir__lrc_any_get(const gpuir__stream *s, int kind, uint32_t i) {
  uint64_t at = s->offset ? gpuir__min64(s->offset[i / GPUIR__BLOCK], s->len) : 0;
  uint32_t start, length, base;
  gpuir__lrc_list list;
  gpuir__line line;
  gpuir__para v;
  (void)gpuir__lrc_find(s, kind, &list);
  start = i / GPUIR__BLOCK * GPUIR__BLOCK & ~(list.size - 1); /* of the segment that the block begins in */
  for (;;) {
    length = gpuir__min32(list.size, s->n - start);
    at = gpuir__lrc_segment(s, kind, &list, at, start, length, &line, &base, &v);
    if (i - start < length) break;
    start += length;
  }
  i -= start;
  return gpuir__min32(gpuir__para_value(&v, i) + gpuir__line_at(&line, base + i), s->limit);
}

/* Appends one segment, with its line or start, if the kind has one; *line: the list's, unless the kind is SEGLRC. */
static int gpuir__lrc_put(const gpuir__target *t, int kind, const uint32_t *values, uint32_t at,
                          uint32_t count, unsigned exceptions, gpuir__line *line) {
  uint32_t deviations[GPUIR__PARA_MOST];
  int status = GPUIR_OK;
  if (kind == GPUIR__SEGLRC) *line = gpuir__line_fit(values + at, count);
  if (kind != GPUIR__LRC) {
    gpuir__line_lower(line, values + at, kind == GPUIR__SEGLRC ? 0 : at, count);
    status = gpuir__line_put(t->a, t->out, kind == GPUIR__SEGLRC ? line->slope : 0, line->start);
  }
  gpuir__line_deviations(line, values + at, kind == GPUIR__SEGLRC ? 0 : at, count, deviations);
  return status ? status : gpuir__para_put(t->a, t->out, deviations, count, exceptions);
}

static int gpuir__lrc_encode(const gpuir__codec *codec, const uint32_t *values, uint32_t n,
                             const gpuir__target *t) {
  const size_t begin = t->out->len;
  const int kind =
      t->offset ? (int)codec->mode : (int)GPUIR__SEGLRC; /* a short list is one segment with its line */
  uint32_t size = GPUIR__PARA_MOST, at, count;
  unsigned exceptions = 1;
  gpuir__line line = gpuir__line_fit(values, kind == GPUIR__SEGLRC ? 0 : n);
  int status = gpuir__para_param(t->param, 64, &size, &exceptions);
  if (!t->offset) size = GPUIR__PARA_MOST;
  if (!status && t->offset) {
    uint8_t head = (uint8_t)gpuir__ctz32(size);
    status = gpuir__buf_put(t->a, t->out, &head, 1);
  }
  if (!status && kind != GPUIR__SEGLRC) {
    if (kind == GPUIR__LRC) gpuir__line_lower(&line, values, 0, n);
    status = gpuir__line_put(t->a, t->out, line.slope, line.start);
  }
  for (at = 0; !status && at < n; at += count) {
    const uint64_t used = t->out->len - begin;
    count = gpuir__min32(n - at, size);
    if (used > UINT32_MAX) status = GPUIR_E_LIMIT;
    gpuir__segment_blocks(t, at, count, (uint32_t)used);
    if (!status) status = gpuir__lrc_put(t, kind, values, at, count, exceptions, &line);
  }
  if (status) t->out->len = begin;
  return status;
}

static int gpuir__lrc_open(gpuir__stream *s) { return gpuir__lrc_any_open(s, s->codec->mode); }

static void gpuir__lrc_decode(const gpuir__stream *s, uint32_t block, uint32_t prev, uint32_t *out) {
  (void)prev;
  gpuir__lrc_any_decode(s, s->codec->mode, block, out);
}

static uint32_t gpuir__lrc_get(const gpuir__stream *s, uint32_t i) {
  return gpuir__lrc_any_get(s, s->codec->mode, i);
}

/* ----------------------------------------------------------------------------
 * hslrc (14)
 *
 * Hash segmentation with a regression in each bucket. Source: sections 4.4 and 5.3 of Ao et al.,
 * PVLDB 4(8), 2011. A docID's bucket is its leading m bits of k, h(x) = x >> (k - m), where k is
 * the width of the last docID and m the least number with n / mean <= 2^m. Each bucket has a line
 * and its deviations in parapfor segments of 256 (one segment, unless docIDs crowd):
 *
 *     list of 128 or more   | head u64 | first, w1 bits each | where, w2 bits each | bucket | bucket | ...
 *       head                bits 0..7 k - m, 8..15 w1, 16..23 w2, 24..31 0, 32..63 buckets d
 *       first               d + 1 indices of the buckets' first docIDs, the last one n
 *       where               d + 1 positions of the buckets in bytes from bucket 0 on, the last one the end
 *     bucket                nothing | line, segment | line, end u32 of each segment but the last, segments |
 *                           for none, up to 256, or more docIDs; ends count from the first segment on
 *     shorter list          | line, segment |
 *
 * The arrays are padded to a byte each. offset[] has the bucket of a block's first docID, width[] is 0.
 * The parameter is mean + 1024 e: the mean is 32, 64, 128 or 256, 0 for 256; e as for parapfor, and by
 * default no exceptions.
 *
 * Lanes do as for lrc, with gpuir__hslrc_find, gpuir__hslrc_bucket and gpuir__hslrc_segment;
 * gpuir__hslrc_get.
 * --------------------------------------------------------------------------*/

/* A long list, taken apart. */
typedef struct gpuir__hslrc_list {
  unsigned shift, w1, w2; /* k - m; widths of an item of first and of where */
  uint32_t buckets;
  const uint8_t *first, *where, *data; /* data: the buckets */
  uint64_t len;                        /* bytes of data */
} gpuir__hslrc_list;

/* Takes a long list apart. 0, or FORMAT, and then there are no buckets. */
GPUIR_HD static inline int gpuir__hslrc_find(const gpuir__stream *s, gpuir__hslrc_list *v) {
  uint64_t head, first, where;
  v->buckets = 0;
  if (!s->offset || s->len < 8) return s->offset ? GPUIR_E_FORMAT : GPUIR_OK;
  head = gpuir__load64(s->bytes);
  v->shift = head & 255;
  v->w1 = head >> 8 & 255;
  v->w2 = head >> 16 & 255;
  first = gpuir__packed_size((head >> 32) + 1, v->w1);
  where = gpuir__packed_size((head >> 32) + 1, v->w2);
  if (v->shift > 31 || v->w1 > 32 || v->w2 > 32 || !v->w1 || first + where > s->len - 8)
    return GPUIR_E_FORMAT;
  v->buckets = (uint32_t)(head >> 32);
  v->first = s->bytes + 8;
  v->where = v->first + first;
  v->data = v->where + where;
  v->len = s->len - 8 - first - where;
  return GPUIR_OK;
}

/* Returns the index of bucket h's first docID. */
GPUIR_HD static inline uint32_t gpuir__hslrc_first(const gpuir__hslrc_list *v, uint32_t h) {
  return gpuir__packed_value(v->first, v->w1, h);
}

/* Returns the bucket that has the docID of index i, looking at bucket h first; `buckets` if there is none. */
GPUIR_HD static inline uint32_t gpuir__hslrc_bucket(const gpuir__hslrc_list *v, uint32_t h, uint32_t i) {
  uint32_t lo = 0, hi = v->buckets;
  unsigned near;
  for (near = 0; near < 4 && h < v->buckets; near++, h++) {
    uint32_t first = gpuir__hslrc_first(v, h);
    if (first > i) break;
    if (gpuir__hslrc_first(v, h + 1) > i) return h;
  }
  /* the last bucket that begins at i or before: those that begin where the next does are empty */
  while (lo < hi) {
    uint32_t mid = lo + (hi - lo) / 2;
    if (gpuir__hslrc_first(v, mid + 1) <= i)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo < v->buckets && gpuir__hslrc_first(v, lo) <= i ? lo : v->buckets;
}

/* Finds the line of bucket h, of count values, and the segment of it that has its value i < count. */
GPUIR_HD static inline void gpuir__hslrc_segment(const gpuir__hslrc_list *v, uint32_t h, uint32_t count,
                                                 uint32_t i, gpuir__line *line, gpuir__para *segment) {
  const uint32_t k = i / GPUIR__PARA_MOST, segments = (count - 1) / GPUIR__PARA_MOST + 1;
  const uint64_t ends = (uint64_t)(segments - 1) * 4;
  uint64_t at = gpuir__min64(gpuir__packed_value(v->where, v->w2, h), v->len), skip = 0;
  at += gpuir__line_find(v->data + at, v->len - at, count, line);
  if (ends <= v->len - at) {
    if (k) skip = gpuir__load32(v->data + at + (uint64_t)(k - 1) * 4);
    at = gpuir__min64(at + ends + skip, v->len);
  } else {
    at = v->len;
  }
  (void)gpuir__para_find(v->data + at, v->len - at,
                         gpuir__min32(count - k * GPUIR__PARA_MOST, GPUIR__PARA_MOST), segment);
}

static int gpuir__hslrc_open(gpuir__stream *s) {
  gpuir__hslrc_list v;
  if (!s->offset) return gpuir__lrc_any_open(s, GPUIR__SEGLRC);
  return gpuir__hslrc_find(s, &v);
}

static void gpuir__hslrc_decode(const gpuir__stream *s, uint32_t block, uint32_t prev, uint32_t *out) {
  const uint32_t count = gpuir__block_count(s->n, block), start = block * GPUIR__BLOCK;
  uint32_t done = 0, h;
  gpuir__hslrc_list v;
  (void)prev;
  if (!s->offset) {
    gpuir__lrc_any_decode(s, GPUIR__SEGLRC, block, out);
    return;
  }
  (void)gpuir__hslrc_find(s, &v);
  h = s->offset[block];
  /* A directory that names another bucket than the one of the block's first docID is damaged. It could be searched for,
   * but kernels take the directory's word, and an index that verifies must read alike everywhere. */
  if (h >= v.buckets || gpuir__hslrc_first(&v, h) > start || gpuir__hslrc_first(&v, h + 1) <= start) {
    memset(out, 0, count * sizeof *out);
    return;
  }
  while (done < count) {
    uint32_t first, size, i, take;
    gpuir__line line;
    gpuir__para segment;
    h = gpuir__hslrc_bucket(&v, h, start + done);
    if (h >= v.buckets) { /* damaged */
      memset(out + done, 0, (count - done) * sizeof *out);
      return;
    }
    first = gpuir__hslrc_first(&v, h);
    size = gpuir__hslrc_first(&v, h + 1) - first;
    i = start + done - first;
    gpuir__hslrc_segment(&v, h, size, i, &line, &segment);
    take = gpuir__min32(gpuir__min32(size - i, count - done), GPUIR__PARA_MOST - i % GPUIR__PARA_MOST);
    gpuir__para_decode(s, &segment, i % GPUIR__PARA_MOST, take, out + done);
    s->kernels->line_add(&line, i, s->limit, take, out + done);
    done += take;
  }
}

GPUIR_HD static inline uint32_t gpuir__hslrc_get(const gpuir__stream *s, uint32_t i) {
  gpuir__hslrc_list v;
  gpuir__line line;
  gpuir__para segment;
  uint32_t h, first;
  if (!s->offset) return gpuir__lrc_any_get(s, GPUIR__SEGLRC, i);
  (void)gpuir__hslrc_find(s, &v);
  h = gpuir__hslrc_bucket(&v, s->offset[i / GPUIR__BLOCK], i);
  if (h >= v.buckets) return 0;
  first = gpuir__hslrc_first(&v, h);
  gpuir__hslrc_segment(&v, h, gpuir__hslrc_first(&v, h + 1) - first, i - first, &line, &segment);
  return gpuir__min32(
      gpuir__para_value(&segment, (i - first) % GPUIR__PARA_MOST) + gpuir__line_at(&line, i - first),
      s->limit);
}

/* Appends a bucket of count > 0 values. 0, NOMEM or LIMIT, and then some of it may have been appended. */
static int gpuir__hslrc_put(const gpuir_allocator *a, gpuir__buf *out, const uint32_t *values, uint32_t count,
                            unsigned exceptions) {
  gpuir__line line = gpuir__line_fit(values, count);
  const uint32_t segments = (count - 1) / GPUIR__PARA_MOST + 1;
  uint32_t k, deviations[GPUIR__PARA_MOST];
  size_t ends, base;
  int status;
  gpuir__line_lower(&line, values, 0, count);
  status = gpuir__line_put(a, out, line.slope, line.start);
  if (status) return status;
  if (!gpuir__zero_room(a, out, (uint64_t)(segments - 1) * 4)) return GPUIR_E_NOMEM;
  ends = out->len;
  out->len += (size_t)(segments - 1) * 4;
  base = out->len;
  for (k = 0; k < segments; k++) {
    const uint32_t from = k * GPUIR__PARA_MOST, length = gpuir__min32(count - from, GPUIR__PARA_MOST);
    if (k) {
      if (out->len - base > UINT32_MAX) return GPUIR_E_LIMIT;
      gpuir__store32(out->data + ends + (size_t)(k - 1) * 4, (uint32_t)(out->len - base));
    }
    gpuir__line_deviations(&line, values + from, from, length, deviations);
    status = gpuir__para_put(a, out, deviations, length, exceptions);
    if (status) return status;
  }
  return GPUIR_OK;
}

/* Encodes all buckets into `data`, and notes of each its first index and where it begins: firsts[0..d],
 * wheres[0..d]. */
static int gpuir__hslrc_buckets(const uint32_t *values, uint32_t n, unsigned shift, uint32_t d,
                                unsigned exceptions, const gpuir__target *t, uint32_t *firsts,
                                uint32_t *wheres, gpuir__buf *data) {
  uint32_t h, i = 0;
  int status = GPUIR_OK;
  for (h = 0; !status && h <= d; h++) {
    uint32_t count = 0;
    firsts[h] = i;
    wheres[h] = (uint32_t)data->len;
    if (data->len > UINT32_MAX) return GPUIR_E_LIMIT;
    for (; i + count < n && gpuir__hs_bucket(values[i + count], shift) == h; count++)
      if ((i + count) % GPUIR__BLOCK == 0) gpuir__target_block(t, (i + count) / GPUIR__BLOCK, h, 0);
    if (count) status = gpuir__hslrc_put(t->a, data, values + i, count, exceptions);
    i += count;
  }
  return status;
}

/* Appends a long list: head, tables, buckets. */
static int gpuir__hslrc_long(const uint32_t *values, uint32_t n, uint32_t mean, unsigned exceptions,
                             const gpuir__target *t) {
  const unsigned shift = gpuir__hs_shift(values[n - 1], n, mean);
  const uint32_t d = gpuir__hs_bucket(values[n - 1], shift) + 1;
  const size_t table_size = ((size_t)d + 1) * 8;
  uint32_t *firsts = (uint32_t *)gpuir__alloc(t->a, table_size), *wheres;
  gpuir__buf data = {NULL, 0, 0};
  int status;
  if (!firsts) return GPUIR_E_NOMEM;
  wheres = firsts + d + 1;
  status = gpuir__hslrc_buckets(values, n, shift, d, exceptions, t, firsts, wheres, &data);
  if (!status) {
    const unsigned w1 = gpuir__width32(n), w2 = gpuir__width64(data.len);
    const uint64_t first = gpuir__packed_size((uint64_t)d + 1, w1),
                   where = gpuir__packed_size((uint64_t)d + 1, w2);
    uint8_t *to = gpuir__zero_room(t->a, t->out, 8 + first + where + data.len);
    if (to) {
      gpuir__store64(to, shift | w1 << 8 | w2 << 16 | (uint64_t)d << 32);
      gpuir__pack(to + 8, firsts, (uint64_t)d + 1, w1);
      gpuir__pack(to + 8 + first, wheres, (uint64_t)d + 1, w2);
      memcpy(to + 8 + first + where, data.data, data.len);
      t->out->len += (size_t)(8 + first + where) + data.len;
    } else {
      status = GPUIR_E_NOMEM;
    }
  }
  gpuir__free(t->a, firsts, table_size);
  gpuir__buf_free(t->a, &data);
  return status;
}

static int gpuir__hslrc_encode(const gpuir__codec *codec, const uint32_t *values, uint32_t n,
                               const gpuir__target *t) {
  const size_t begin = t->out->len;
  uint32_t mean = 256;
  unsigned exceptions = 1;
  int status = gpuir__para_param(t->param, 32, &mean, &exceptions);
  (void)codec;
  if (!status && t->offset)
    status = gpuir__hslrc_long(values, n, mean, exceptions, t);
  else if (!status && n)
    status = gpuir__hslrc_put(t->a, t->out, values, n, exceptions);
  if (status) t->out->len = begin;
  return status;
}

#endif /* GPUIR_NO_LAB */

/* ============================================================================
 * [08-codings]  the tables of codecs, and how users spell them
 *
 * Uses      [03-codecs] to [07-lab-lines].
 * Start at  gpuir__docid_codecs (the table), gpuir__codec_of_level (kernels), gpuir__coding_parse.
 * Tests     tests/unit/08_codings.c
 * ==========================================================================*/

/* ---- kernels: a row a level, scalar, AVX2, AVX-512; without vectors all rows are the scalar one ---- */

#ifndef GPUIR_NO_LAB
#define GPUIR__LAB_KERNELS(level, marks) \
  , gpuir__unpack_##level, gpuir__stops_##level, gpuir__join_##level, marks, gpuir__line_add_##level
#else
#define GPUIR__LAB_KERNELS(level, marks)
#endif
#define GPUIR__SCALAR_KERNELS                                                                               \
  {                                                                                                         \
    gpuir__sum_gaps_scalar, gpuir__bp128_docids_scalar, gpuir__bp128_freqs_scalar, gpuir__bp128_get_scalar, \
        gpuir__bp128_find_scalar, NULL, NULL GPUIR__LAB_KERNELS(scalar, gpuir__marked_scalar)               \
  }

static const gpuir__codec_kernels gpuir__codec_of_level[3] = {
    GPUIR__SCALAR_KERNELS,
#if GPUIR__X86
    {gpuir__sum_gaps_avx2, gpuir__bp128_docids_simd, gpuir__bp128_freqs_simd, gpuir__bp128_get_avx2,
     gpuir__bp128_find_avx2, gpuir__wide_docids_avx2,
     gpuir__wide_freqs_avx2 GPUIR__LAB_KERNELS(avx2, gpuir__marked_simd)},
    {gpuir__sum_gaps_avx512, gpuir__bp128_docids_simd, gpuir__bp128_freqs_simd, gpuir__bp128_get_avx2,
     gpuir__bp128_find_avx2, gpuir__wide_docids_avx512,
     gpuir__wide_freqs_avx512 GPUIR__LAB_KERNELS(avx512, gpuir__marked_simd)},
#else
    GPUIR__SCALAR_KERNELS,
    GPUIR__SCALAR_KERNELS,
#endif
};
#undef GPUIR__LAB_KERNELS
#undef GPUIR__SCALAR_KERNELS

/* Returns the kernels of a level that gpuir__simd_level has returned. */
static inline const gpuir__codec_kernels *gpuir__codec_kernels_at(int level) {
  return &gpuir__codec_of_level[level - GPUIR_SIMD_SCALAR];
}

/* ---- the codecs ---- */

/* The functions of a family of codecs: encode, scratch_size, open, decode_block, get, find. */
#define GPUIR__VBYTE_DOCIDS gpuir__vbyte_encode, NULL, NULL, gpuir__vbyte_decode, NULL, NULL
#define GPUIR__VBYTE_FREQS gpuir__vbyte_encode, NULL, NULL, gpuir__vbyte_decode, gpuir__vbyte_freqs_get, NULL
#define GPUIR__BP128_DOCIDS \
  gpuir__bp128_encode, NULL, NULL, gpuir__bp128_docids_decode, NULL, gpuir__bp128_docids_find
#define GPUIR__BP128_FREQS \
  gpuir__bp128_encode, NULL, NULL, gpuir__bp128_freqs_decode, gpuir__bp128_freqs_get, NULL
#define GPUIR__PFD_DOCIDS gpuir__pfd_encode, NULL, NULL, gpuir__pfd_decode, NULL, NULL
#define GPUIR__PFD_FREQS gpuir__pfd_encode, NULL, NULL, gpuir__pfd_decode, gpuir__pfd_freqs_get, NULL
#define GPUIR__EF gpuir__ef_encode, NULL, NULL, gpuir__ef_decode, gpuir__ef_get, NULL
#define GPUIR__QS gpuir__qs_encode, NULL, gpuir__qs_open, gpuir__qs_decode, gpuir__qs_get, NULL
#define GPUIR__RICE gpuir__rice_encode, NULL, gpuir__rice_open, gpuir__rice_decode, gpuir__rice_get, NULL
#define GPUIR__PFL gpuir__pfl_encode, gpuir__pfl_scratch, gpuir__pfl_open, gpuir__pfl_decode_block, NULL, NULL
#define GPUIR__PARA gpuir__para_encode, NULL, gpuir__para_open, gpuir__para_decode_block, NULL, NULL
#define GPUIR__LRC_ANY gpuir__lrc_encode, NULL, gpuir__lrc_open, gpuir__lrc_decode, gpuir__lrc_get, NULL
#define GPUIR__HSLRC gpuir__hslrc_encode, NULL, gpuir__hslrc_open, gpuir__hslrc_decode, gpuir__hslrc_get, NULL

/* The tables of codecs, a row each: GPUIR__CODEC makes an item of a table from a row, GPUIR__LEFT_OUT the name of a
 * codec that GPUIR_NO_LAB leaves out. */
#define GPUIR__CODEC(name, id, docids, unit, parameter, mode, cost, functions) \
  {name, id, docids, unit, GPUIR__P_##parameter, mode, cost, functions},
#define GPUIR__LEFT_OUT(name, id, docids, unit, parameter, mode, cost, functions) \
  {id, docids, "codec " name " left out by GPUIR_NO_LAB"},

/* clang-format off */
/*   name       id, docids, unit, parameter, mode, cost, functions */
#define GPUIR__ENGINE_DOCIDS(ROW) \
  ROW("vbyte",     GPUIR__ID_VBYTE,  1, 1, NONE,    0,                   436, GPUIR__VBYTE_DOCIDS) \
  ROW("bp128",     GPUIR__ID_BP128,  1, 4, NONE,    0,                   100, GPUIR__BP128_DOCIDS)
#define GPUIR__LAB_DOCIDS(ROW) \
  ROW("pfd",       GPUIR__ID_PFD,    1, 1, NONE,    GPUIR__PFD_FORMS,    115, GPUIR__PFD_DOCIDS) \
  ROW("newpfd",    GPUIR__ID_NEWPFD, 1, 1, NONE,    GPUIR__NEWPFD_FORMS, 104, GPUIR__PFD_DOCIDS) \
  ROW("optpfd",    GPUIR__ID_OPTPFD, 1, 1, NONE,    GPUIR__OPTPFD_FORMS, 106, GPUIR__PFD_DOCIDS) \
  ROW("ef",        GPUIR__ID_EF,     1, 1, NONE,    0,                   297, GPUIR__EF) \
  ROW("qs",        GPUIR__ID_QS,     1, 1, RATIO,   0,                   293, GPUIR__QS) \
  ROW("rice",      GPUIR__ID_RICE,   1, 1, NONE,    0,                   350, GPUIR__RICE) \
  ROW("pfd-list",  GPUIR__ID_PFL,    1, 1, LEVELS,  0,                   115, GPUIR__PFL) \
  ROW("parapfor",  GPUIR__ID_PARA,   1, 1, SEGMENT, 0,                   119, GPUIR__PARA) \
  ROW("lrc",       GPUIR__ID_LRC,    1, 1, SEGMENT, GPUIR__LRC,           72, GPUIR__LRC_ANY) \
  ROW("lrcseg",    GPUIR__ID_LRCSEG, 1, 1, SEGMENT, GPUIR__LRCSEG,        75, GPUIR__LRC_ANY) \
  ROW("seglrc",    GPUIR__ID_SEGLRC, 1, 1, SEGMENT, GPUIR__SEGLRC,        74, GPUIR__LRC_ANY) \
  ROW("hslrc",     GPUIR__ID_HSLRC,  1, 1, BUCKET,  0,                   129, GPUIR__HSLRC)
#define GPUIR__ENGINE_FREQS(ROW) \
  ROW("vbyte",     GPUIR__ID_VBYTE,  0, 1, NONE,    0,                   341, GPUIR__VBYTE_FREQS) \
  ROW("bp128",     GPUIR__ID_BP128,  0, 4, NONE,    0,                   100, GPUIR__BP128_FREQS)
#define GPUIR__LAB_FREQS(ROW) \
  ROW("newpfd",    GPUIR__ID_NEWPFD, 0, 1, NONE,    GPUIR__NEWPFD_FORMS,  98, GPUIR__PFD_FREQS) \
  ROW("optpfd",    GPUIR__ID_OPTPFD, 0, 1, NONE,    GPUIR__OPTPFD_FORMS,  98, GPUIR__PFD_FREQS)
/* clang-format on */

#ifndef GPUIR_NO_LAB
static const gpuir__codec gpuir__docid_codecs[] = {GPUIR__ENGINE_DOCIDS(GPUIR__CODEC)
                                                       GPUIR__LAB_DOCIDS(GPUIR__CODEC)};
static const gpuir__codec gpuir__freq_codecs[] = {GPUIR__ENGINE_FREQS(GPUIR__CODEC)
                                                      GPUIR__LAB_FREQS(GPUIR__CODEC)};
#else
static const gpuir__codec gpuir__docid_codecs[] = {GPUIR__ENGINE_DOCIDS(GPUIR__CODEC)};
static const gpuir__codec gpuir__freq_codecs[] = {GPUIR__ENGINE_FREQS(GPUIR__CODEC)};
#endif

#define GPUIR__DOCID_CODECS (sizeof gpuir__docid_codecs / sizeof gpuir__docid_codecs[0])
#define GPUIR__FREQ_CODECS (sizeof gpuir__freq_codecs / sizeof gpuir__freq_codecs[0])

#define GPUIR__BP128 GPUIR__ID_BP128 /* the default */

/* Returns words about a codec that this build leaves out, NULL about any other. The codec is given by its name, of
 * `len` letters, or by its id, if the name is NULL. */
static const char *gpuir__codec_left_out(const char *name, size_t len, unsigned id, int docids) {
#ifdef GPUIR_NO_LAB
  static const struct {
    uint8_t id, docids;
    const char *words; /* "codec NAME left out .." */
  } codecs[] = {GPUIR__LAB_DOCIDS(GPUIR__LEFT_OUT) GPUIR__LAB_FREQS(GPUIR__LEFT_OUT)};
  size_t i;
  for (i = 0; i < sizeof codecs / sizeof codecs[0]; i++) {
    const char *words = codecs[i].words;
    if (codecs[i].docids != (docids != 0)) continue;
    if (name ? !strncmp(words + 6, name, len) && words[6 + len] == ' ' : codecs[i].id == id) return words;
  }
#endif
  (void)name;
  (void)len;
  (void)id;
  (void)docids;
  return NULL;
}

/* Fails, with words, if a coding names a codec that this build leaves out: what an index was built with. */
static int gpuir__coding_check(const char *spec, int docids, const char *path, gpuir_error *err) {
  const char *words = gpuir__codec_left_out(spec, strcspn(spec, ":"), 0, docids);
  return words ? gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "%s: %s", path, words) : GPUIR_OK;
}

/* Returns the codec of a name, NULL for an unknown one; a NULL name means the default. (Not strcmp with
 * `name ? name : "bp128"`: from that gcc 12 concludes at -O3 that no name of fewer than five letters is ever equal.) */
static const gpuir__codec *gpuir__codec_by_name(const char *name, int docids) {
  const gpuir__codec *table = docids ? gpuir__docid_codecs : gpuir__freq_codecs;
  size_t i, n = docids ? GPUIR__DOCID_CODECS : GPUIR__FREQ_CODECS;
  for (i = 0; i < n; i++)
    if (name ? !strcmp(table[i].name, name) : table[i].id == GPUIR__BP128) return table + i;
  return NULL;
}

/* Returns the codec of an id, NULL for an unknown one. */
static const gpuir__codec *gpuir__codec_by_id(unsigned id, int docids) {
  const gpuir__codec *table = docids ? gpuir__docid_codecs : gpuir__freq_codecs;
  size_t i, n = docids ? GPUIR__DOCID_CODECS : GPUIR__FREQ_CODECS;
  for (i = 0; i < n; i++)
    if (table[i].id == id) return table + i;
  return NULL;
}

/* ---- codings: a codec and its parameter, as users spell them ---- */

/* `auto` takes, for each list, the codec that makes  bytes * (1 + w * cost)  least; of equals the one that stands
 * first in its table. bytes: of the list's stream, without the directory, which is the same for all. cost: of
 * decoding a value, relative to bp128, a fixed number in the tables.
 *
 * The costs are part of the format's behaviour: they decide which bytes `auto` writes, and the same input has to
 * give the same bytes, so that nothing is timed while building and new kernels do not change them. They were
 * measured once, with an early version of the decoders (AVX2 on an AMD EPYC; cycles on lists of 2^18 values, block
 * by block into L1, sums of gaps included, means over plain and clustered gaps of 2 to 1024 on average), of which no
 * log was kept. Today's decoders differ from them: `gpuir lab codecs` measures what they take. */
typedef struct gpuir__coding {
  const gpuir__codec *codec; /* NULL: auto */
  uint64_t param;            /* the codec's; of auto 1000 w */
} gpuir__coding;

/* Reads digits, at most three of them behind a point, as thousandths; returns the rest of the text, NULL for none. */
static const char *gpuir__read_milli(const char *text, uint64_t *milli) {
  unsigned digits = 0, point = 0, behind = 0;
  for (*milli = 0;; text++) {
    if (*text >= '0' && *text <= '9' && digits < 9 && behind < 3) {
      *milli = *milli * 10 + (uint64_t)(*text - '0');
      digits++;
      behind += point;
    } else if (*text == '.' && !point) {
      point = 1;
    } else {
      break;
    }
  }
  if (!digits || (point && !behind)) return NULL;
  for (; behind < 3; behind++) *milli *= 10;
  return text;
}

#ifndef GPUIR_NO_LAB
/* Reads a whole number; returns the rest of the text, NULL for none. */
static const char *gpuir__read_whole(const char *text, uint64_t *value) {
  const char *end = gpuir__read_milli(text, value);
  if (!end || *value % 1000 || memchr(text, '.', (size_t)(end - text))) return NULL;
  *value /= 1000;
  return end;
}

/* Reads [SIZE][,EXCEPTIONS] of the codecs with segments, SIZE being at least `least`. Not 0: malformed. */
static int gpuir__read_segment(const char *text, uint32_t least, uint64_t *param) {
  uint64_t size = 0, exceptions = 0;
  if (*text != ',') {
    text = gpuir__read_whole(text, &size);
    if (!text || size < least || size > GPUIR__PARA_MOST || (size & (size - 1))) return 1;
  }
  if (*text == ',') {
    if (!strcmp(++text, "min")) {
      exceptions = GPUIR__PARA_LEAST;
      text += 3;
    } else {
      text = gpuir__read_milli(text, &exceptions);
      if (!text || exceptions++ > 1000) return 1;
    }
  }
  *param = size + (exceptions << 10);
  return *text != 0;
}

/* Reads what stands behind the colon of a coding. Not 0: malformed. */
static int gpuir__read_param(unsigned kind, const char *text, uint64_t *param) {
  const char *end;
  switch (kind) {
    case GPUIR__P_RATIO:
      end = gpuir__read_milli(text, param);
      return !end || *end || *param < 250 || *param > 4000;
    case GPUIR__P_LEVELS:
      end = gpuir__read_whole(text, param);
      return !end || *end || ++*param > GPUIR__PFL_DEPTH;
    case GPUIR__P_SEGMENT: return gpuir__read_segment(text, 64, param);
    case GPUIR__P_BUCKET: return gpuir__read_segment(text, 32, param);
    default: return 1;
  }
}
#endif

/* Reads CODEC[:PARAM]; NULL means the default. 0, UNSUPPORTED for a codec that is unknown or left out, ARGUMENT for its
 * parameter. */
static int gpuir__coding_parse(const char *spec, int docids, gpuir__coding *coding, gpuir_error *err) {
  static const char *const kinds[] = {"takes no parameter", "takes c, 0.25 to 4, as in qs:1.5",
                                      "takes its levels, 0 to 4, as in pfd-list:2",
                                      "takes [SEGMENT][,EXCEPTIONS]: 64, 128 or 256; 0 to 1 or min",
                                      "takes [BUCKET][,EXCEPTIONS]: 32, 64, 128 or 256; 0 to 1 or min"};
  const gpuir__codec *table = docids ? gpuir__docid_codecs : gpuir__freq_codecs;
  const size_t n = docids ? GPUIR__DOCID_CODECS : GPUIR__FREQ_CODECS;
  const char *colon = spec ? strchr(spec, ':') : NULL, *end;
  size_t len = colon ? (size_t)(colon - spec) : spec ? strlen(spec) : 0, i;
  const char *words;
  coding->param = 0;
  coding->codec = gpuir__codec_by_name(NULL, docids);
  if (!spec) return GPUIR_OK;
  if (len == 4 && !memcmp(spec, "auto", 4)) {
    coding->codec = NULL;
    if (!colon) return GPUIR_OK;
    end = gpuir__read_milli(colon + 1, &coding->param);
    if (end && !*end && coding->param <= 1000) return GPUIR_OK;
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "codec '%.40s': auto takes a weight of speed, 0 to 1", spec);
  }
  for (i = 0; i < n; i++)
    if (strlen(table[i].name) == len && !memcmp(table[i].name, spec, len)) break;
  words = i == n ? gpuir__codec_left_out(spec, len, 0, docids) : NULL;
  if (words) return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "codec '%.40s': %s", spec, words);
  if (i == n)
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "unknown %s codec '%.80s'",
                       docids ? "docID" : "frequency", spec);
  coding->codec = table + i;
#ifdef GPUIR_NO_LAB
  if (colon) /* the engine's own codecs take no parameter */
#else
  if (colon && gpuir__read_param(table[i].param, colon + 1, &coding->param))
#endif
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "codec '%.40s': %s %s", spec, table[i].name,
                       kinds[table[i].param]);
  return GPUIR_OK;
}

/* ============================================================================
 * [09-postings]  postings: contributions, bounds, records, list views, the cursor
 *
 * A term's postings are two streams, docIDs and frequencies. A list of one posting lives in the
 * term's record; one of 2 to 127 is a single block ("short"); a "long" one of 128 or more is cut
 * into blocks of 128 with a directory: last docID, offsets, widths and bounds of each block, as
 * separate arrays, so that they can be searched with vectors and uploaded to a GPU as they are.
 *
 * Uses      [02-vectors], [03-codecs].
 * Start at  gpuir__contribution (the score of one posting), gpuir__list (a term's postings, opened),
 *           gpuir__cursor_seek.
 * Tests     tests/unit/09_postings.c
 * ==========================================================================*/

/* ---- contributions: what one posting adds to a document's score ---- */

#define GPUIR__CAP 0xffffffu /* tf and length count up to 2^24 - 1, so that both are exact in binary32 */

/* K = A + B * length, the part of BM25's denominator that belongs to the document. */
typedef struct gpuir__norm {
  double a, b;
} gpuir__norm;

/* Makes K's two coefficients from k1, b and the average length in tokens. */
static gpuir__norm gpuir__norm_make(float k1, float b, double average_length) {
  gpuir__norm m;
  m.a = (double)(float)((double)k1 * (1.0 - (double)b));
  m.b = average_length > 0 ? (double)(float)((double)k1 * (double)b / average_length) : 0.0;
  return m;
}

/* Computes K of a document of `length` tokens. The product of a binary32 and a 24-bit integer is exact in binary64, so
 * fusing the addition changes nothing. */
GPUIR_HD static inline float gpuir__norm_of(double a, double b, uint32_t length) {
  return (float)(a + b * (double)(length < GPUIR__CAP ? length : GPUIR__CAP));
}

/* Computes a term's weight, W = idf * (k1 + 1) * 2^20. */
static float gpuir__weight(float idf, float k1) {
  return (float)((double)idf * ((double)k1 + 1.0) * GPUIR_SCORE_ONE);
}

/* Computes atanh(z) / z - 1 = w/3 + w^2/5 + w^3/7 + ... of w = z^2 <= 1/32; w and the sum are in units of 2^-68. The
 * constants are 1/3, 1/5 ... 1/13 in units of 2^-64 and 1/15 ... 1/21 in units of 2^-32, which their small factors
 * allow; what is left out is below 2^-59. */
static uint64_t gpuir__atanh_rest(uint64_t w) {
  const uint64_t v = w >> 32;
  uint64_t p = 0x0c30c30cu;
  p = 0x0d79435eu + (v * p >> 36);
  p = 0x0f0f0f0fu + (v * p >> 36);
  p = 0x11111111u + (v * p >> 36);
  p = 0x13b13b13b13b13b1u + (v * p >> 4);
  p = 0x1745d1745d1745d1u + (gpuir__mul_high(w, p) >> 4);
  p = 0x1c71c71c71c71c71u + (gpuir__mul_high(w, p) >> 4);
  p = 0x2492492492492492u + (gpuir__mul_high(w, p) >> 4);
  p = 0x3333333333333333u + (gpuir__mul_high(w, p) >> 4);
  p = 0x5555555555555555u + (gpuir__mul_high(w, p) >> 4);
  return gpuir__mul_high(w, p);
}

/* Computes idf = ln(a / b) of a = 2 * documents + 2 and b = 2 * df + 1, which is ln(1 + (documents - df + 1/2) /
 * (df + 1/2)); 0 if df exceeds the documents, which are at most GPUIR__MAX_DOCUMENTS. With a / b = 2^e * m, m in
 * [5/7, 7/5], it is e ln 2 + 2 atanh(z), z = (m - 1) / (m + 1). Integers give the same bits on every machine, which a
 * libm does not promise. The error is below 2^-50 (relative, where e is 0) before the one rounding to binary32: the
 * result is the nearest one unless the value is that close to the middle of two. Two neighbouring df lie at least
 * 2^-32 apart, so idf never rises with df. */
static float gpuir__idf(uint64_t documents, uint32_t df) {
  uint64_t a = 2 * documents + 2, b = 2 * (uint64_t)df + 1, sum, rest, z, x;
  unsigned e, t;
  if (a <= b) return 0.0f;
  e = gpuir__width64(a) - gpuir__width64(b);
  b <<= e;
  if (a * 5 > b * 7) {
    e++;
    b <<= 1;
  } else if (a * 7 < b * 5) {
    e--;
    a <<= 1;
  }
  sum = a + b;
  rest = a > b ? a - b : b - a;
  t = gpuir__width64(sum) - gpuir__width64(rest);
  t = t > 4 ? t - 4 : 0; /* a small z gets t bits more */
  rest <<= 30 + t;
  z = (rest / sum << 29 | (rest % sum << 29) / sum) << 7; /* in units of 2^-(66+t) */
  x = z >> t;
  z += gpuir__mul_high(z, gpuir__atanh_rest(gpuir__mul_high(x, x))) >> 4;
  if (!e) return (float)(z >> 1) / 18446744073709551616.0f / (float)((uint64_t)1 << t);
  x = (e * (uint64_t)0xb17217f7u << 26) + (e * (uint64_t)0xd1cf79acu >> 6); /* e ln 2, in units of 2^-58 */
  x = a > b ? x + (z >> (7 + t)) : x - (z >> (7 + t));
  return (float)x / 288230376151711744.0f;
}

/* Rounds x in [0, 2^32) half to even: adding 1.5 * 2^52 leaves the rounded integer in the low bits. */
static inline uint32_t gpuir__round_even(float x) {
  double shifted = (double)x + 6755399441055744.0;
  uint64_t bits;
  memcpy(&bits, &shifted, sizeof bits);
  return (uint32_t)bits;
}

/* Computes a posting's contribution c = max(1, round(W * tf / (tf + K))): each operation in binary32 rounds once, in
 * this order. */
static inline uint32_t gpuir__contribution(float weight, uint32_t tf, float norm) {
  float f = (float)(tf < GPUIR__CAP ? tf : GPUIR__CAP);
  uint32_t c = gpuir__round_even(weight * f / (f + norm));
  return c ? c : 1;
}

/* Adds slack to a bound that was taken from another posting's contribution: binary32 division is not monotone in tf, so
 * a bound needs eight units in the last place more, and the two roundings to integers. */
GPUIR_HD static inline uint32_t gpuir__slacken(uint32_t c) { return c + (c >> 21) + 2; }

/* ---- contributions of a block of postings, the hot loop of OR ----
 * In: docIDs, frequencies less one. Out: q * c each. All levels round alike, see gpuir__contribution. */

typedef struct gpuir__scorer gpuir__scorer;

/* Scores n postings: docIDs and frequencies less one in, q times each contribution out. Reads and writes up to 15
 * items behind the n-th of freqs and out. */
typedef void (*gpuir__score_kernel)(const gpuir__scorer *s, const uint32_t *docs, const uint32_t *freqs,
                                    uint32_t n, uint32_t *out);

/* What the contribution of a term's posting is computed from. */
struct gpuir__scorer {
  const uint32_t *lengths;   /* of all documents, in tokens */
  gpuir__norm norm;          /* the query's k1 and b */
  float weight;              /* W of the term */
  uint32_t q;                /* how often the query has the term */
  gpuir__score_kernel score; /* of the SIMD level, from gpuir__score_of_level */
};

/* Returns the score of one posting, q included. */
static inline uint32_t gpuir__score_one(const gpuir__scorer *s, uint32_t docid, uint32_t tf) {
  return s->q * gpuir__contribution(s->weight, tf, gpuir__norm_of(s->norm.a, s->norm.b, s->lengths[docid]));
}

static void gpuir__score_scalar(const gpuir__scorer *s, const uint32_t *docs, const uint32_t *freqs,
                                uint32_t n, uint32_t *out) {
  uint32_t i;
  for (i = 0; i < n; i++)
    out[i] = gpuir__score_one(s, docs[i], (freqs[i] < GPUIR__CAP ? freqs[i] : GPUIR__CAP - 1) + 1);
}

#if GPUIR__X86

/* Loads the lengths of the 8 documents at docs. */
GPUIR__AVX2 GPUIR__INLINE __m256i gpuir__lengths_8(const uint32_t *of, const uint32_t *docs) {
  return _mm256_setr_epi32((int)of[docs[0]], (int)of[docs[1]], (int)of[docs[2]], (int)of[docs[3]],
                           (int)of[docs[4]], (int)of[docs[5]], (int)of[docs[6]], (int)of[docs[7]]);
}

GPUIR__AVX2 static void gpuir__score_avx2(const gpuir__scorer *s, const uint32_t *docs, const uint32_t *freqs,
                                          uint32_t n, uint32_t *out) {
  const __m256d a = _mm256_set1_pd(s->norm.a), b = _mm256_set1_pd(s->norm.b);
  const __m256i cap = _mm256_set1_epi32((int)GPUIR__CAP), one = _mm256_set1_epi32(1);
  const __m256i q = _mm256_set1_epi32((int)s->q);
  const __m256 weight = _mm256_set1_ps(s->weight);
  uint32_t last[8], i;
  for (i = 0; i < n; i += 8) {
    const uint32_t *d = gpuir__whole_vector(docs + i, n - i, 8, last);
    __m256i freq = _mm256_loadu_si256((const __m256i *)(const void *)(freqs + i));
    __m256i len = gpuir__lengths_8(s->lengths, d);
    __m256d lo, hi;
    __m256 norm, tf, x;
    __m256i c;
    len = _mm256_min_epu32(len, cap);
    lo = _mm256_add_pd(a, _mm256_mul_pd(b, _mm256_cvtepi32_pd(_mm256_castsi256_si128(len))));
    hi = _mm256_add_pd(a, _mm256_mul_pd(b, _mm256_cvtepi32_pd(_mm256_extracti128_si256(len, 1))));
    norm = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(lo)), _mm256_cvtpd_ps(hi), 1);
    tf = _mm256_cvtepi32_ps(_mm256_add_epi32(_mm256_min_epu32(freq, _mm256_sub_epi32(cap, one)), one));
    x = _mm256_div_ps(_mm256_mul_ps(weight, tf), _mm256_add_ps(tf, norm));
    c = _mm256_max_epu32(_mm256_cvtps_epi32(x), one); /* 2^31 itself comes out right, as 0x80000000 */
    _mm256_storeu_si256((__m256i *)(void *)(out + i), _mm256_mullo_epi32(c, q));
  }
}

GPUIR__AVX512 static void gpuir__score_avx512(const gpuir__scorer *s, const uint32_t *docs,
                                              const uint32_t *freqs, uint32_t n, uint32_t *out) {
  const __m512d a = _mm512_set1_pd(s->norm.a), b = _mm512_set1_pd(s->norm.b);
  const __m512i cap = _mm512_set1_epi32((int)GPUIR__CAP), one = _mm512_set1_epi32(1),
                q = _mm512_set1_epi32((int)s->q);
  const __m512 weight = _mm512_set1_ps(s->weight);
  uint32_t last[16], i;
  for (i = 0; i < n; i += 16) {
    const uint32_t *d = gpuir__whole_vector(docs + i, n - i, 16, last);
    __m512i freq = _mm512_loadu_si512(freqs + i);
    __m512i len = _mm512_inserti64x4(_mm512_castsi256_si512(gpuir__lengths_8(s->lengths, d)),
                                     gpuir__lengths_8(s->lengths, d + 8), 1);
    __m512d lo, hi;
    __m512 norm, tf, x;
    len = _mm512_min_epu32(len, cap);
    lo = _mm512_add_pd(a, _mm512_mul_pd(b, _mm512_cvtepi32_pd(_mm512_castsi512_si256(len))));
    hi = _mm512_add_pd(a, _mm512_mul_pd(b, _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(len, 1))));
    norm = _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(lo)), _mm512_cvtpd_ps(hi), 1);
    tf = _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_min_epu32(freq, _mm512_sub_epi32(cap, one)), one));
    x = _mm512_div_ps(_mm512_mul_ps(weight, tf), _mm512_add_ps(tf, norm));
    _mm512_storeu_si512(out + i, _mm512_mullo_epi32(_mm512_max_epu32(_mm512_cvtps_epu32(x), one), q));
  }
}
#endif

/* The kernels that score a block, by SIMD level less GPUIR_SIMD_SCALAR. */
static const gpuir__score_kernel gpuir__score_of_level[3] = {
    gpuir__score_scalar,
#if GPUIR__X86
    gpuir__score_avx2,
    gpuir__score_avx512,
#endif
};

/* Prefetches the lengths of n documents: a list reaches them in strides that the processor does not foresee. */
static inline void gpuir__prefetch_lengths(const uint32_t *lengths, const uint32_t *docs, uint32_t n) {
  uint32_t i;
  for (i = 0; i < n; i++) __builtin_prefetch(lengths + docs[i]);
}

/* ---- bounds: (tf, length) pairs that dominate a block's postings ---- */

/* Returns the value of an 8-bit code: 0 to 31 as they are, then 16 steps an octave, up to 507,904. */
GPUIR_HD static inline uint32_t gpuir__code_value(uint32_t code) {
  return code < 32 ? code : (16 + (code & 15)) << ((code >> 4) - 1);
}

/* Returns the greatest code whose value is <= v. */
static inline uint32_t gpuir__code_down(uint32_t v) {
  uint32_t w = gpuir__width32(v), code;
  if (v < 32) return v;
  code = 16 * (w - 4) + (v >> (w - 5)) - 16;
  return code < 255 ? code : 255;
}

/* Returns the least code whose value is >= v; 255 stands for everything above too. */
static inline uint32_t gpuir__code_up(uint32_t v) {
  uint32_t code = gpuir__code_down(v);
  return code < 255 && gpuir__code_value(code) < v ? code + 1 : code;
}

/* A bound pair: tf rounded up in the low byte, length rounded down in the high byte; 0: none. A
 * posting (tf, length) with tf <= its tf and length >= its length contributes no more than it,
 * whatever k1 and b are. (Pareto-optimal pairs instead of a stored maximum: Mackenzie et al., "Efficient
 * and effective retrieval using Pareto-optimal block bounds"; Lucene keeps them as "impacts".) */
typedef uint16_t gpuir__pair;
#define GPUIR__BLOCK_PAIRS 2
#define GPUIR__LIST_PAIRS 8

/* The Pareto front of the postings that were added. */
typedef struct gpuir__front {
  uint16_t min_length[256]; /* by tf code; 256: no posting */
  uint32_t max_tf;          /* greatest tf code; 0: empty */
} gpuir__front;

/* Empties a front. */
static void gpuir__front_reset(gpuir__front *f) {
  unsigned i;
  for (i = 0; i < 256; i++) f->min_length[i] = 256;
  f->max_tf = 0;
}

/* Adds a posting by the codes of its tf, rounded up, and of its document's length, rounded down. */
static inline void gpuir__front_add(gpuir__front *f, uint32_t tf_code, uint32_t length_code) {
  if (length_code < f->min_length[tf_code]) f->min_length[tf_code] = (uint16_t)length_code;
  if (tf_code > f->max_tf) f->max_tf = tf_code;
}

/* Writes at most `most` pairs that dominate all postings that were added (tf descending, the rest 0), adds the front to
 * `into` if that is given, and empties the front. */
static void gpuir__front_take(gpuir__front *f, gpuir__front *into, gpuir__pair *pairs, unsigned most) {
  uint8_t tf[256], length[256];
  unsigned n = 0, i, t;
  uint32_t best = 256;
  for (t = f->max_tf; t > 0; t--) {
    if (f->min_length[t] < best) {
      best = f->min_length[t];
      tf[n] = (uint8_t)t;
      length[n++] = (uint8_t)best;
      if (into) gpuir__front_add(into, t, best);
    }
    f->min_length[t] = 256;
  }
  f->max_tf = 0;
  while (n > most) { /* join the neighbours that lose least by it */
    unsigned at = 0;
    int least = 1 << 30;
    for (i = 0; i + 1 < n; i++) {
      int loss = (tf[i] - tf[i + 1]) * (length[i] - length[i + 1]);
      if (loss < least) {
        least = loss;
        at = i;
      }
    }
    length[at] = length[at + 1];
    for (i = at + 1; i + 1 < n; i++) {
      tf[i] = tf[i + 1];
      length[i] = length[i + 1];
    }
    n--;
  }
  for (i = 0; i < most; i++) pairs[i] = (gpuir__pair)(i < n ? tf[i] | length[i] << 8 : 0);
}

/* ---- what stands in the file for a term ---- */

#define GPUIR__SHORT_MAX 127u /* postings of a list without a directory */
#define GPUIR__SEEDS 3        /* k-th greatest contributions of a list, for these k: */
static const uint32_t gpuir__seed_ranks[GPUIR__SEEDS] = {10, 100, 1000};
/* Lists of up to this many postings are decoded and scored whole before a pruned OR starts, which then knows
 * their k-th contributions: they are stored for longer ones only. */
#define GPUIR__WHOLE 4096u

/* A term's record, as it is taken out of the dictionary. */
typedef struct gpuir__record {
  uint32_t df;
  uint64_t
      docs; /* df 1: the docID; short: offset in docIDs behind the long lists; long: index of gpuir__long */
  uint64_t freqs;    /* df 1: tf; short: offset in frequencies behind the long lists; long: 0 */
  uint32_t docs_len; /* short: bytes of the streams, up to 65535; otherwise 0 */
  uint32_t freqs_len;
  uint8_t codec, freq_codec;
  uint64_t positions, positions_len; /* bytes in section positions; 0 in an index without */
} gpuir__record;

/* Where a long list stands; there is one a long list, in term order. */
typedef struct gpuir__long {
  uint64_t docs, docs_len;   /* bytes in section docIDs */
  uint64_t freqs, freqs_len; /* bytes in section frequencies */
  uint64_t cf;
  uint32_t first_block; /* in the directory's arrays */
  uint32_t seeds;       /* entry of section seeds, from 1; 0: none */
  gpuir__pair pairs[GPUIR__LIST_PAIRS];
} gpuir__long;

/* ---- list views: one term's postings, opened ---- */

typedef struct gpuir__list {
  uint32_t df, nblocks;       /* postings; blocks of GPUIR__BLOCK postings, the last one may have fewer */
  uint32_t one_docid, one_tf; /* the posting of a list with df 1 */
  const uint32_t *last;       /* long lists: [block] last docID; otherwise NULL */
  const uint32_t *bounds;     /* long lists: [block] GPUIR__BLOCK_PAIRS pairs; otherwise NULL */
  const uint32_t *seeds;      /* GPUIR__SEEDS k-th greatest contributions, or NULL */
  const gpuir__long *extent;  /* long lists; otherwise NULL */
  const uint8_t *positions;   /* positions_len bytes, see [09b-positions]; NULL: the index has no positions */
  uint64_t positions_len;
  const uint32_t *positions_off; /* long lists: [block] where its positions begin, in units of 4 bytes */
  gpuir__stream docs, freqs;
  void *memory; /* scratch of the codecs */
  size_t memory_size;
} gpuir__list;

/* Returns the number of postings in a block. */
static inline uint32_t gpuir__list_block_len(const gpuir__list *l, uint32_t block) {
  return gpuir__min32(GPUIR__BLOCK, l->df - block * GPUIR__BLOCK);
}

/* Decodes the docIDs of a block to out[0..GPUIR__BLOCK_ROOM) and returns how many there are. */
static inline uint32_t gpuir__list_docs(const gpuir__list *l, uint32_t block, uint32_t *out) {
  if (l->df == 1)
    out[0] = l->one_docid;
  else
    l->docs.codec->decode_block(&l->docs, block, block ? l->last[block - 1] : UINT32_MAX, out);
  return gpuir__list_block_len(l, block);
}

/* Decodes the frequencies of a block, each less one. */
static inline void gpuir__list_freqs(const gpuir__list *l, uint32_t block, uint32_t *out) {
  if (l->df == 1)
    out[0] = l->one_tf - 1;
  else
    l->freqs.codec->decode_block(&l->freqs, block, 0, out);
}

/* Decodes the frequency of the i-th posting. */
static inline uint32_t gpuir__list_tf(const gpuir__list *l, uint32_t i) {
  return l->df == 1 ? l->one_tf : l->freqs.codec->get(&l->freqs, i) + 1;
}

/* From so many wanted postings of a block on, all its frequencies are decoded at once. Measured. */
#define GPUIR__FREQS_MANY 8u

/* Decodes the frequencies, less one, of n postings at ascending indices of the list. */
static void gpuir__list_freqs_at(const gpuir__list *l, const uint32_t *at, uint32_t n, uint32_t *out) {
  uint32_t freqs[GPUIR__BLOCK_ROOM], i = 0;
  while (i < n) {
    uint32_t block = at[i] / GPUIR__BLOCK, first = block * GPUIR__BLOCK, end = i + 1;
    while (end < n && at[end] - first < GPUIR__BLOCK) end++;
    if (end - i < GPUIR__FREQS_MANY) {
      for (; i < end; i++) out[i] = gpuir__list_tf(l, at[i]) - 1;
    } else {
      gpuir__list_freqs(l, block, freqs);
      for (; i < end; i++) out[i] = freqs[at[i] - first];
    }
  }
}

/* Finds the first block >= from whose last docID is >= docid, by galloping; returns nblocks if there is none. A list
 * without a directory is one block that may hold any docID. */
static inline uint32_t gpuir__list_find_block(const gpuir__list *l, uint32_t from, uint32_t docid) {
  uint32_t lo = from, step = 1, n = l->nblocks;
  const uint32_t *last = l->last;
  if (!last || from >= n || last[from] >= docid) return from;
  while (n - lo > step && last[lo + step] < docid) { /* invariant: last[lo] < docid */
    lo += step;
    step *= 2;
  }
  n = n - lo > step ? lo + step : n;
  lo++; /* the answer is in [lo, n] */
  while (lo < n) {
    uint32_t mid = lo + (n - lo) / 2;
    if (last[mid] < docid)
      lo = mid + 1;
    else
      n = mid;
  }
  return lo;
}

/* ---- the cursor ---- */

/* What values[] of a cursor holds for the decoded block. */
typedef enum gpuir__values {
  GPUIR__VALUES_NONE,
  GPUIR__VALUES_FREQS, /* frequencies less one */
  GPUIR__VALUES_SCORES /* contributions, q included */
} gpuir__values;

/* One term's postings under evaluation: the list, one decoded block, and the term's weight. */
typedef struct gpuir__cursor {
  gpuir__list list;
  gpuir__scorer scorer;
  uint32_t bound;                   /* the most that a posting of the list can contribute, q included */
  uint32_t at;                      /* the block to search from */
  uint32_t block;                   /* the decoded block; UINT32_MAX: none */
  uint32_t n;                       /* postings of the decoded block */
  uint32_t pos;                     /* index of the current posting in the decoded block */
  gpuir__values kind;               /* what values[] holds */
  uint64_t decoded;                 /* blocks decoded so far, for statistics */
  uint32_t docs[GPUIR__BLOCK_ROOM]; /* n docIDs, and UINT32_MAX behind them up to the end */
  uint32_t values[GPUIR__BLOCK_ROOM];
} gpuir__cursor;

/* Points a cursor at its list's first block, of which nothing is decoded. */
static void gpuir__cursor_reset(gpuir__cursor *c) {
  c->at = c->n = c->pos = 0;
  c->block = UINT32_MAX;
  c->kind = GPUIR__VALUES_NONE;
  c->decoded = 0;
}

/* Decodes the docIDs of a block, unless it is the decoded one. */
static void gpuir__cursor_load(gpuir__cursor *c, uint32_t block) {
  if (c->block == block) return;
  c->n = gpuir__list_docs(&c->list, block, c->docs);
  if (c->n < GPUIR__BLOCK) memset(c->docs + c->n, 0xff, (GPUIR__BLOCK - c->n) * sizeof *c->docs);
  memset(c->docs + GPUIR__BLOCK, 0xff, (GPUIR__BLOCK_ROOM - GPUIR__BLOCK) * sizeof *c->docs);
  c->block = block;
  c->kind = GPUIR__VALUES_NONE;
  c->decoded++;
}

/* Looks for docID x in a block without decoding it: the index of x there, GPUIR__ABSENT, or GPUIR__UNTOLD if the codec
 * cannot tell or the block is the decoded one. A block that was searched so counts as decoded in the statistics. */
static inline uint32_t gpuir__cursor_find(gpuir__cursor *c, uint32_t block, uint32_t x) {
  const gpuir__list *l = &c->list;
  uint32_t at = GPUIR__UNTOLD;
  if (block != c->block && block + 1 < l->nblocks && l->docs.codec->find)
    at = l->docs.codec->find(&l->docs, block, block ? l->last[block - 1] : UINT32_MAX, x);
  c->decoded += at != GPUIR__UNTOLD;
  return at;
}

/* Fills values[] with the block's frequencies, each less one. */
static void gpuir__cursor_freqs(gpuir__cursor *c) {
  if (c->kind == GPUIR__VALUES_FREQS) return;
  gpuir__list_freqs(&c->list, c->block, c->values);
  c->kind = GPUIR__VALUES_FREQS;
}

/* Fills values[] with the block's contributions. */
static void gpuir__cursor_score(gpuir__cursor *c) {
  uint32_t freqs[GPUIR__BLOCK_ROOM];
  if (c->kind == GPUIR__VALUES_SCORES) return;
  gpuir__list_freqs(&c->list, c->block, freqs);
  c->scorer.score(&c->scorer, c->docs, freqs, c->n, c->values);
  c->kind = GPUIR__VALUES_SCORES;
}

/* Moves to the first posting with docID >= docid, at or behind the current one; returns its docID, or GPUIR_END behind
 * the last one. One block is decoded at most: in a damaged file, whose block ends below what the directory says, the
 * list ends there. */
static uint32_t gpuir__cursor_seek(gpuir__cursor *c, uint32_t docid) {
  const uint32_t block = gpuir__list_find_block(&c->list, c->at, docid);
  if (block < c->list.nblocks) {
    if (block != c->block) {
      gpuir__cursor_load(c, block);
      c->pos = 0;
    }
    c->at = block;
    while (c->docs[c->pos] < docid) c->pos++; /* ends at the UINT32_MAX behind the block */
    if (c->pos < c->n) return c->docs[c->pos];
  }
  c->at = c->list.nblocks;
  c->pos = c->n;
  return GPUIR_END;
}

/* Moves to the next posting; returns its docID, or GPUIR_END behind the last one. */
static uint32_t gpuir__cursor_step(gpuir__cursor *c) {
  if (++c->pos < c->n) return c->docs[c->pos];
  if (c->at + 1 >= c->list.nblocks) {
    c->at = c->list.nblocks;
    c->pos = c->n;
    return GPUIR_END;
  }
  gpuir__cursor_load(c, ++c->at);
  c->pos = 0;
  return c->docs[0];
}

/* ============================================================================
 * [09b-positions]  positions: where in its documents a term stands
 *
 * A token's position is its number among its document's indexed tokens, from 0. The positions of a list are kept in
 * blocks of 128 postings, as its docIDs are, and start anew in each; a list without a directory is one block. A
 * posting's positions are written as gaps: the first one itself, each further one less its predecessor less one. A
 * block of postings whose tf add up to n is
 *
 *     widths     ceil(n / 32) bytes            of each chunk of 32 gaps the number of bits of each, 0 to 32
 *     chunks     4 w bytes a chunk             32 gaps, packed horizontally, see gpuir__packed_value
 *                ceil(m w / 8) bytes           the last chunk, if it has m < 32 gaps
 *     padding    to a multiple of 4 bytes from the list's beginning, if the list has a directory
 *
 * Any gap is read alone once the widths before its chunk are added up; no posting but the wanted ones is decoded.
 *
 * Uses      [02-vectors], [09-postings].
 * Start at  gpuir__positions_encode; gpuir__positions_open and gpuir__occurrences_next (reading).
 * Tests     tests/unit/09b_positions.c
 * ==========================================================================*/

#define GPUIR__CHUNK 32u     /* gaps of a chunk */
#define GPUIR__CHUNK_UNIT 4u /* bytes that one step of a block's offset stands for; of a chunk a bit wide */
/* Here and below, a test with small collections sets sizes that stand in #ifndef lower. */
#ifndef GPUIR__SKIP_CHUNKS
#define GPUIR__SKIP_CHUNKS (1u << 16) /* width bytes that are read between two looks at a deadline */
#endif

/* Appends a chunk of n <= 32 gaps; returns its width, or -1 without memory. */
static int gpuir__chunk_put(const gpuir_allocator *a, gpuir__buf *out, const uint32_t *gaps, uint32_t n) {
  uint8_t *to = gpuir__buf_room(a, out, GPUIR__CHUNK * 4 + 4);
  uint32_t all = 0, i;
  unsigned w;
  if (!to) return -1;
  for (i = 0; i < n; i++) all |= gaps[i];
  w = gpuir__width32(all);
  gpuir__pack(to, gaps, n, w);
  out->len += (size_t)gpuir__packed_size(n, w);
  return (int)w;
}

/* Appends the block of n postings with these frequencies; positions[] has those of each posting, ascending, one posting
 * behind the other. 0 or NOMEM. */
static int gpuir__positions_encode(const gpuir_allocator *a, gpuir__buf *out, const uint32_t *tfs, uint32_t n,
                                   const uint32_t *positions) {
  const size_t widths = out->len;
  uint64_t total = 0, chunks, chunk = 0;
  uint32_t gaps[GPUIR__CHUNK], fill = 0, i, j;
  for (i = 0; i < n; i++) total += tfs[i];
  chunks = (total + GPUIR__CHUNK - 1) / GPUIR__CHUNK;
  if (chunks > SIZE_MAX / 4 || !gpuir__buf_room(a, out, (size_t)chunks)) return GPUIR_E_NOMEM;
  out->len += (size_t)chunks;
  for (i = 0; i < n; i++) {
    for (j = 0; j < tfs[i]; j++) {
      int w;
      gaps[fill++] = j ? positions[j] - positions[j - 1] - 1 : positions[0];
      if (fill < GPUIR__CHUNK && chunk * GPUIR__CHUNK + fill < total) continue;
      w = gpuir__chunk_put(a, out, gaps, fill);
      if (w < 0) return GPUIR_E_NOMEM;
      out->data[widths + chunk++] = (uint8_t)w;
      fill = 0;
    }
    positions += tfs[i];
  }
  return GPUIR_OK;
}

/* The positions of one block under evaluation, and how far they were walked. Of a damaged file the bytes may promise
 * less than the frequencies do: then the walk ends. */
typedef struct gpuir__positions {
  const uint8_t *widths; /* [chunk] */
  const uint8_t *bytes;  /* of the current chunk */
  const uint8_t *end;    /* of the list */
  uint64_t chunk, chunks;
} gpuir__positions;

/* Opens the positions of block `block`, whose frequencies, less one, are freqs[0..n); none if the bytes are too few. */
static void gpuir__positions_open(gpuir__positions *p, const gpuir__list *l, uint32_t block,
                                  const uint32_t *freqs, uint32_t n) {
  const uint64_t start = l->positions_off ? (uint64_t)l->positions_off[block] * GPUIR__CHUNK_UNIT : 0;
  const uint64_t left = start < l->positions_len ? l->positions_len - start : 0;
  uint64_t total = n;
  uint32_t i;
  for (i = 0; i < n; i++) total += freqs[i];
  p->chunks = (total + GPUIR__CHUNK - 1) / GPUIR__CHUNK;
  if (p->chunks > left) p->chunks = 0;
  p->chunk = 0;
  p->widths = l->positions + (left ? start : 0);
  p->bytes = p->widths + p->chunks;
  p->end = l->positions + l->positions_len;
}

/* Returns the bytes of the current chunk, which has n gaps; SIZE_MAX if its width is none. */
static inline size_t gpuir__chunk_size(const gpuir__positions *p, uint32_t n) {
  const unsigned w = p->widths[p->chunk];
  return w <= 32 ? (size_t)gpuir__packed_size(n, w) : SIZE_MAX;
}

/* Moves on to the chunk of gap number `gap`, which is not before the current one. Returns 0 after GPUIR__SKIP_CHUNKS
 * chunks, and is to be called again. Where the bytes end before, no chunk is left. */
static int gpuir__positions_seek(gpuir__positions *p, uint64_t gap) {
  const uint64_t to = gpuir__min64(gap / GPUIR__CHUNK, p->chunks),
                 stop = gpuir__min64(to, p->chunk + GPUIR__SKIP_CHUNKS);
  for (; p->chunk < stop; p->chunk++) {
    const size_t size = gpuir__chunk_size(p, GPUIR__CHUNK);
    if (GPUIR__UNLIKELY(size > (size_t)(p->end - p->bytes))) {
      p->chunk = p->chunks = 0;
      return 1;
    }
    p->bytes += size;
  }
  return p->chunk == to;
}

/* The positions of one posting on the way. Several may walk the same block. */
typedef struct gpuir__occurrences {
  gpuir__positions block; /* its own place in the block */
  uint64_t gap, end; /* numbers of the gap behind those that are at hand, and behind the posting's last */
  uint32_t here;     /* gaps at hand, of the current chunk */
  unsigned width;    /* of these; the next begins at this bit of the chunk: */
  uint32_t bit;
  uint32_t last; /* what positions are clamped to: the document's length less one */
  uint64_t next; /* what the next gap is added to */
} gpuir__occurrences;

/* Begins at gap number `gap` of a block that gpuir__positions_seek has moved there, of a posting with this frequency,
 * less one, in a document of `length` tokens. */
static inline void gpuir__occurrences_open(gpuir__occurrences *o, const gpuir__positions *block, uint64_t gap,
                                           uint32_t freq, uint32_t length) {
  o->block = *block;
  o->gap = gap;
  o->end = gap + 1 + freq;
  o->here = 0;
  o->next = 0;
  o->last = length ? length - 1 : 0;
}

/* Takes the posting's gaps of the next chunk at hand; returns 0 if none are left, or their bytes are missing. */
static int gpuir__occurrences_more(gpuir__occurrences *o) {
  gpuir__positions *p = &o->block;
  const uint32_t at = (uint32_t)(o->gap % GPUIR__CHUNK);
  const uint32_t n = (uint32_t)gpuir__min64(GPUIR__CHUNK - at, o->end - o->gap);
  if (!n) return 0;
  if (o->gap / GPUIR__CHUNK != p->chunk) (void)gpuir__positions_seek(p, o->gap); /* it is the next one */
  if (p->chunk >= p->chunks || gpuir__chunk_size(p, at + n) > (size_t)(p->end - p->bytes)) {
    o->end = o->gap;
    return 0;
  }
  o->width = p->widths[p->chunk];
  o->bit = at * o->width;
  o->here = n;
  o->gap += n;
  return 1;
}

/* Returns the next position, GPUIR_END behind the last. They ascend, in a damaged file perhaps not strictly. */
static inline uint32_t gpuir__occurrences_next(gpuir__occurrences *o) {
  if (!o->here && !gpuir__occurrences_more(o)) return GPUIR_END;
  o->next += (uint32_t)(gpuir__load64(o->block.bytes + o->bit / 8) >> o->bit % 8) & gpuir__low_bits(o->width);
  if (GPUIR__UNLIKELY(o->next > o->last)) o->next = o->last;
  o->bit += o->width;
  o->here--;
  return (uint32_t)o->next++;
}

/* ---- many positions at once: chunks are summed up ---- */

/* Writes the sums of a chunk's 32 gaps and of a one for each, behind `prev`, as gpuir__sum_gaps_scalar does; reads up
 * to 16 bytes behind the chunk. Of a last chunk the sums behind its gaps are any. */
typedef void (*gpuir__chunk_sums)(const uint8_t *bytes, unsigned w, uint32_t prev, uint32_t *sums);

static void gpuir__chunk_sums_scalar(const uint8_t *bytes, unsigned w, uint32_t prev, uint32_t *sums) {
  uint32_t i, bit = 0;
  for (i = 0; i < GPUIR__CHUNK; i++, bit += w)
    sums[i] = prev += ((uint32_t)(gpuir__load64(bytes + bit / 8) >> bit % 8) & gpuir__low_bits(w)) + 1;
}

#if GPUIR__X86
/* The same. Eight gaps are w bytes, so each half of a vector takes four from 16 bytes: every gap's four bytes are moved
 * to its lane, which is shifted then. That reaches up to 25 bits; wider gaps are rare. */
GPUIR__AVX2 static void gpuir__chunk_sums_avx2(const uint8_t *bytes, unsigned w, uint32_t prev,
                                               uint32_t *sums) {
  const __m256i bits = _mm256_mullo_epi32(gpuir__avx2_iota(), _mm256_set1_epi32((int)w));
  const __m256i shift = _mm256_and_si256(bits, _mm256_set1_epi32(7));
  const int half = (int)(w / 2); /* the byte in which the fifth gap begins */
  const __m256i first =
      _mm256_sub_epi32(_mm256_srli_epi32(bits, 3), _mm256_setr_epi32(0, 0, 0, 0, half, half, half, half));
  const __m256i take = _mm256_add_epi32(_mm256_mullo_epi32(first, _mm256_set1_epi32(0x01010101)),
                                        _mm256_set1_epi32(0x03020100));
  const __m256i mask = _mm256_set1_epi32((int)gpuir__low_bits(w)), all = _mm256_set1_epi32(-1);
  __m256i next = gpuir__avx2_first(prev);
  uint32_t i;
  if (GPUIR__UNLIKELY(w > 25)) {
    gpuir__chunk_sums_scalar(bytes, w, prev, sums);
    return;
  }
  for (i = 0; i < GPUIR__CHUNK; i += 8, bytes += w) {
    const __m256i x =
        _mm256_srlv_epi32(_mm256_shuffle_epi8(gpuir__avx2_two(bytes, bytes + half), take), shift);
    gpuir__avx2_store(sums + i, gpuir__avx2_docids(_mm256_and_si256(x, mask), &next, all));
  }
}
#endif

/* Returns the bytes of a block whose frequencies add up to `total`, as its widths say; 0 if they are not there. The
 * block must just have been opened. */
static uint64_t gpuir__positions_size(gpuir__positions *p, uint64_t total) {
  const uint8_t *start = p->widths;
  const uint32_t rest = (uint32_t)(total % GPUIR__CHUNK);
  size_t size = 0;
  while (!gpuir__positions_seek(p, total)) {}
  if (!p->chunks || (rest && p->chunk >= p->chunks)) return 0;
  if (rest) size = gpuir__chunk_size(p, rest);
  return size <= (size_t)(p->end - p->bytes) ? (uint64_t)(p->bytes - start) + size : 0;
}

/* Moves a block to its posting number i, whose frequencies, less one, are freqs[], and begins a walk there. */
static void gpuir__positions_find(gpuir__positions *p, const uint32_t *freqs, uint32_t i, uint32_t length,
                                  gpuir__occurrences *w) {
  uint64_t gap = i;
  uint32_t j;
  for (j = 0; j < i; j++) gap += freqs[j];
  while (!gpuir__positions_seek(p, gap)) {}
  gpuir__occurrences_open(w, p, gap, freqs[i], length);
}

/* ============================================================================
 * [10-encoder]  the list encoder: from postings to streams, directory, bounds and seeds
 *
 * Uses      [08-codings], [09-postings].
 * Start at  gpuir__encode_list.
 * Tests     tests/unit/10_encoder.c
 * ==========================================================================*/

/* Encoded lists in term order, of which nothing depends on where in the file they will be: a writer appends one
 * batch after the other. */
typedef struct gpuir__batch {
  gpuir__buf terms, term_lens; /* bytes; one byte of length each */
  gpuir__buf records, longs;
  gpuir__buf docs_long, docs_short, freqs_long, freqs_short;
  gpuir__buf last, docs_off, docs_width, freqs_off, freqs_width, bounds; /* the directory, an item a block */
  gpuir__buf seeds;
  gpuir__buf positions, positions_off; /* an offset a block of the directory */
  uint64_t nterms, postings;
} gpuir__batch;

#define GPUIR__BATCH_BUFS 17
static void gpuir__batch_bufs(gpuir__batch *batch, gpuir__buf *bufs[GPUIR__BATCH_BUFS]) {
  unsigned n = 0;
  bufs[n++] = &batch->terms;
  bufs[n++] = &batch->term_lens;
  bufs[n++] = &batch->records;
  bufs[n++] = &batch->longs;
  bufs[n++] = &batch->docs_long;
  bufs[n++] = &batch->docs_short;
  bufs[n++] = &batch->freqs_long;
  bufs[n++] = &batch->freqs_short;
  bufs[n++] = &batch->last;
  bufs[n++] = &batch->docs_off;
  bufs[n++] = &batch->docs_width;
  bufs[n++] = &batch->freqs_off;
  bufs[n++] = &batch->freqs_width;
  bufs[n++] = &batch->bounds;
  bufs[n++] = &batch->seeds;
  bufs[n++] = &batch->positions;
  bufs[n++] = &batch->positions_off;
}

static void gpuir__batch_clear(gpuir__batch *batch) {
  gpuir__buf *bufs[GPUIR__BATCH_BUFS];
  unsigned i;
  gpuir__batch_bufs(batch, bufs);
  for (i = 0; i < GPUIR__BATCH_BUFS; i++) bufs[i]->len = 0;
  batch->nterms = batch->postings = 0;
}

static void gpuir__batch_free(const gpuir_allocator *a, gpuir__batch *batch) {
  gpuir__buf *bufs[GPUIR__BATCH_BUFS];
  unsigned i;
  gpuir__batch_bufs(batch, bufs);
  for (i = 0; i < GPUIR__BATCH_BUFS; i++) gpuir__buf_free(a, bufs[i]);
  batch->nterms = batch->postings = 0;
}

#define GPUIR__TOP_KEPT 1000u
/* The greatest contributions of a list; more of them than it must keep, so that it rarely has to sort. */
typedef struct gpuir__top {
  uint32_t n, floor; /* values <= floor cannot be among the greatest GPUIR__TOP_KEPT */
  uint32_t values[4 * GPUIR__TOP_KEPT];
  uint32_t spare[4 * GPUIR__TOP_KEPT]; /* for sorting */
} gpuir__top;

/* Moves n numbers into the order of one byte of theirs, the greatest first, which leaves equal ones as they stand. */
static void gpuir__sort_byte(const uint32_t *from, uint32_t *to, uint32_t n, unsigned shift) {
  uint32_t at[257], i;
  memset(at, 0, sizeof at);
  for (i = 0; i < n; i++) at[(~from[i] >> shift & 255) + 1]++;
  for (i = 1; i < 256; i++) at[i] += at[i - 1];
  for (i = 0; i < n; i++) to[at[~from[i] >> shift & 255]++] = from[i];
}

/* Sorts the values, the greatest first, byte by byte from the least significant one, and keeps the greatest. */
static void gpuir__top_sort(gpuir__top *top) {
  gpuir__sort_byte(top->values, top->spare, top->n, 0);
  gpuir__sort_byte(top->spare, top->values, top->n, 8);
  gpuir__sort_byte(top->values, top->spare, top->n, 16);
  gpuir__sort_byte(top->spare, top->values, top->n, 24);
  if (top->n >= GPUIR__TOP_KEPT) {
    top->n = GPUIR__TOP_KEPT;
    top->floor = top->values[GPUIR__TOP_KEPT - 1];
  }
}

static inline void gpuir__top_add(gpuir__top *top, uint32_t c) {
  if (c <= top->floor) return;
  if (top->n == 4 * GPUIR__TOP_KEPT) gpuir__top_sort(top);
  top->values[top->n++] = c;
}

typedef struct gpuir__encoder {
  gpuir_allocator a;
  gpuir__coding docs_coding, freqs_coding;
  const uint32_t *lengths;
  uint64_t ndocs;
  float k1;
  gpuir__norm norm;
  int simd;
  gpuir__buf values; /* frequencies less one */
  gpuir__buf trial;  /* auto: offsets and widths of the codec that is tried */
  gpuir__front block_front, list_front;
  gpuir__top top;
} gpuir__encoder;

/* Fills an encoder, one for each thread. `lengths` are the ndocs document lengths, whose sum is `tokens`. */
static int gpuir__encoder_create(gpuir__encoder *e, const gpuir_allocator *a, gpuir__coding docs,
                                 gpuir__coding freqs, const uint32_t *lengths, uint64_t ndocs,
                                 uint64_t tokens, float k1, float b, int simd) {
  memset(e, 0, sizeof *e);
  e->a = *a;
  e->docs_coding = docs;
  e->freqs_coding = freqs;
  e->lengths = lengths;
  e->ndocs = ndocs;
  e->k1 = k1;
  e->norm = gpuir__norm_make(k1, b, ndocs ? (double)tokens / (double)ndocs : 0.0);
  e->simd = gpuir__simd_level(simd);
  gpuir__front_reset(&e->block_front);
  gpuir__front_reset(&e->list_front);
  return GPUIR_OK;
}

/* Frees the buffers that a long list has made large. */
static void gpuir__encoder_shrink(gpuir__encoder *e) {
  gpuir__buf_free(&e->a, &e->values);
  gpuir__buf_free(&e->a, &e->trial);
}

static void gpuir__encoder_destroy(gpuir__encoder *e) { gpuir__encoder_shrink(e); }

/* Returns the bytes a posting that a list takes while it is encoded, but for its positions: its docIDs and frequencies
 * (8), the frequencies less one (4), and for auto two encodings beside each other. */
static unsigned gpuir__encoder_need(const gpuir__encoder *e) {
  return e->docs_coding.codec && e->freqs_coding.codec ? 12 : 24;
}

/* Appends the stream of the codec that auto takes for the list; *id: the codec's. 0, NOMEM or LIMIT. */
static int gpuir__encode_auto(gpuir__encoder *e, uint64_t weight, int docids, const uint32_t *values,
                              uint32_t n, gpuir__buf *out, uint32_t *offset, uint8_t *width, uint8_t *id) {
  const gpuir__codec *table = docids ? gpuir__docid_codecs : gpuir__freq_codecs;
  const size_t ncodecs = docids ? GPUIR__DOCID_CODECS : GPUIR__FREQ_CODECS, start = out->len;
  gpuir__target to = {&e->a, out, NULL, NULL, 0};
  const size_t nblocks = offset ? (n - 1) / GPUIR__BLOCK + 1 : 0;
  uint64_t least = UINT64_MAX;
  size_t i;
  int status = GPUIR_E_LIMIT;
  if (offset) {
    e->trial.len = 0;
    to.offset = (uint32_t *)(void *)gpuir__buf_room(&e->a, &e->trial, nblocks * 5);
    if (!to.offset) return GPUIR_E_NOMEM;
    to.width = (uint8_t *)(to.offset + nblocks);
  }
  for (i = 0; i < ncodecs; i++) {
    const size_t at = out->len;
    uint64_t price;
    int tried = table[i].encode(&table[i], values, n, &to);
    if (tried == GPUIR_E_LIMIT) continue; /* what this codec cannot hold, another one may */
    if (tried) {
      out->len = start;
      return tried;
    }
    status = GPUIR_OK;
    price = (uint64_t)(out->len - at) * (100000 + weight * table[i].cost);
    if (price < least) {
      least = price;
      *id = table[i].id;
      memmove(out->data + start, out->data + at, out->len - at);
      out->len -= at - start;
      if (offset) {
        memcpy(offset, to.offset, nblocks * sizeof *offset);
        memcpy(width, to.width, nblocks);
      }
    } else {
      out->len = at;
    }
  }
  return status;
}

/* Appends the stream of docIDs or of frequencies less one; *id: the codec's. offset and width are NULL for short
 * lists. */
static int gpuir__encode_stream(gpuir__encoder *e, const gpuir__coding *coding, int docids,
                                const uint32_t *values, uint32_t n, gpuir__buf *out, uint32_t *offset,
                                uint8_t *width, uint8_t *id) {
  const gpuir__target to = {&e->a, out, offset, width, coding->param};
  if (!coding->codec) return gpuir__encode_auto(e, coding->param, docids, values, n, out, offset, width, id);
  *id = coding->codec->id;
  return coding->codec->encode(coding->codec, values, n, &to);
}

/* Appends the impacts of each block and, of a list that has them, its seeds, and fills the impacts of the list, in
 * one pass over its postings. 0 or NOMEM. */
static int gpuir__encode_bounds(gpuir__encoder *e, gpuir__batch *batch, gpuir__long *extent,
                                const uint32_t *docs, const uint32_t *tfs, uint32_t df, float weight) {
  uint32_t i, seeds[GPUIR__SEEDS];
  e->top.n = e->top.floor = 0;
  for (i = 0; i < df; i++) {
    uint32_t length = e->lengths[docs[i]];
    gpuir__front_add(&e->block_front, gpuir__code_up(tfs[i]), gpuir__code_down(length));
    if (df > GPUIR__WHOLE)
      gpuir__top_add(&e->top,
                     gpuir__contribution(weight, tfs[i], gpuir__norm_of(e->norm.a, e->norm.b, length)));
    if (i % GPUIR__BLOCK == GPUIR__BLOCK - 1 || i + 1 == df) {
      gpuir__pair pairs[GPUIR__BLOCK_PAIRS];
      gpuir__front_take(&e->block_front, &e->list_front, pairs, GPUIR__BLOCK_PAIRS);
      if (gpuir__buf_put(&e->a, &batch->bounds, pairs, sizeof pairs)) return GPUIR_E_NOMEM;
    }
  }
  gpuir__front_take(&e->list_front, NULL, extent->pairs, GPUIR__LIST_PAIRS);
  gpuir__top_sort(&e->top);
  if (df <= GPUIR__WHOLE) return GPUIR_OK;
  for (i = 0; i < GPUIR__SEEDS; i++) seeds[i] = e->top.values[gpuir__seed_ranks[i] - 1];
  extent->seeds = (uint32_t)(batch->seeds.len / sizeof seeds) + 1;
  return gpuir__buf_put(&e->a, &batch->seeds, seeds, sizeof seeds);
}

static int gpuir__encode_long(gpuir__encoder *e, gpuir__batch *batch, gpuir__record *record,
                              const uint32_t *docs, const uint32_t *tfs, const uint32_t *values,
                              uint32_t df) {
  const gpuir_allocator *a = &e->a;
  uint32_t nblocks = (df - 1) / GPUIR__BLOCK + 1, i;
  uint32_t *last = (uint32_t *)(void *)gpuir__buf_room(a, &batch->last, (size_t)nblocks * 4);
  uint32_t *docs_off = (uint32_t *)(void *)gpuir__buf_room(a, &batch->docs_off, (size_t)nblocks * 4);
  uint32_t *freqs_off = (uint32_t *)(void *)gpuir__buf_room(a, &batch->freqs_off, (size_t)nblocks * 4);
  uint8_t *docs_width = gpuir__buf_room(a, &batch->docs_width, nblocks);
  uint8_t *freqs_width = gpuir__buf_room(a, &batch->freqs_width, nblocks);
  gpuir__long extent;
  int status;
  if (!last || !docs_off || !freqs_off || !docs_width || !freqs_width) return GPUIR_E_NOMEM;
  memset(&extent, 0, sizeof extent);
  extent.docs = batch->docs_long.len;
  extent.freqs = batch->freqs_long.len;
  extent.first_block = (uint32_t)(batch->last.len / 4);
  for (i = 0; i < df; i++) extent.cf += tfs[i];
  for (i = 0; i < nblocks; i++) last[i] = docs[i + 1 < nblocks ? (i + 1) * GPUIR__BLOCK - 1 : df - 1];
  status = gpuir__encode_stream(e, &e->docs_coding, 1, docs, df, &batch->docs_long, docs_off, docs_width,
                                &record->codec);
  if (!status)
    status = gpuir__encode_stream(e, &e->freqs_coding, 0, values, df, &batch->freqs_long, freqs_off,
                                  freqs_width, &record->freq_codec);
  if (status) return status;
  extent.docs_len = batch->docs_long.len - extent.docs;
  extent.freqs_len = batch->freqs_long.len - extent.freqs;
  /* long lists start 16-byte aligned whatever the codec's unit is */
  {
    static const uint8_t zeros[16] = {0};
    if (gpuir__buf_put(a, &batch->docs_long, zeros, (16 - batch->docs_long.len % 16) % 16) ||
        gpuir__buf_put(a, &batch->freqs_long, zeros, (16 - batch->freqs_long.len % 16) % 16))
      return GPUIR_E_NOMEM;
  }
  batch->last.len += (size_t)nblocks * 4;
  batch->docs_off.len += (size_t)nblocks * 4;
  batch->freqs_off.len += (size_t)nblocks * 4;
  batch->docs_width.len += nblocks;
  batch->freqs_width.len += nblocks;
  if (gpuir__encode_bounds(e, batch, &extent, docs, tfs, df, gpuir__weight(gpuir__idf(e->ndocs, df), e->k1)))
    return GPUIR_E_NOMEM;
  record->docs = batch->longs.len / sizeof extent;
  return gpuir__buf_put(a, &batch->longs, &extent, sizeof extent);
}

static int gpuir__encode_short(gpuir__encoder *e, gpuir__batch *batch, gpuir__record *record,
                               const uint32_t *docs, const uint32_t *values, uint32_t df) {
  int status;
  record->docs = batch->docs_short.len;
  record->freqs = batch->freqs_short.len;
  status =
      gpuir__encode_stream(e, &e->docs_coding, 1, docs, df, &batch->docs_short, NULL, NULL, &record->codec);
  if (!status)
    status = gpuir__encode_stream(e, &e->freqs_coding, 0, values, df, &batch->freqs_short, NULL, NULL,
                                  &record->freq_codec);
  if (status) return status;
  if (batch->docs_short.len - record->docs > UINT16_MAX ||
      batch->freqs_short.len - record->freqs > UINT16_MAX)
    return GPUIR_E_LIMIT;
  record->docs_len = (uint32_t)(batch->docs_short.len - record->docs);
  record->freqs_len = (uint32_t)(batch->freqs_short.len - record->freqs);
  return GPUIR_OK;
}

/* Appends a list's positions, block by block. 0, NOMEM or LIMIT. */
static int gpuir__encode_positions(gpuir__encoder *e, gpuir__batch *batch, const uint32_t *tfs, uint32_t df,
                                   const uint32_t *positions) {
  static const uint8_t zeros[GPUIR__CHUNK_UNIT] = {0};
  gpuir__buf *out = &batch->positions;
  const size_t start = out->len;
  const int has_directory = df > GPUIR__SHORT_MAX;
  uint32_t at, i;
  for (at = 0; at < df; at += GPUIR__BLOCK) {
    const uint32_t n = gpuir__min32(GPUIR__BLOCK, df - at);
    const uint64_t unit = (out->len - start) / GPUIR__CHUNK_UNIT;
    const uint32_t offset = (uint32_t)unit;
    if (unit > UINT32_MAX) return GPUIR_E_LIMIT;
    if ((has_directory && gpuir__buf_put(&e->a, &batch->positions_off, &offset, 4)) ||
        gpuir__positions_encode(&e->a, out, tfs + at, n, positions) ||
        (has_directory && gpuir__buf_put(&e->a, out, zeros, (0 - (out->len - start)) % GPUIR__CHUNK_UNIT)))
      return GPUIR_E_NOMEM;
    for (i = 0; i < n; i++) positions += tfs[at + i];
  }
  return GPUIR_OK;
}

/* Encodes one term's list and appends it to the batch. docs strictly increase and are < ndocs,
 * tfs >= 1, df >= 1; positions[] has tfs[i] of them for each posting, or is NULL. Returns 0, NOMEM or LIMIT. */
static int gpuir__encode_list(gpuir__encoder *e, gpuir__batch *batch, const void *term, size_t term_len,
                              const uint32_t *docs, const uint32_t *tfs, uint32_t df,
                              const uint32_t *positions) {
  uint8_t len = (uint8_t)term_len;
  gpuir__record record;
  int status = GPUIR_OK;
  memset(&record, 0, sizeof record);
  record.df = df;
  if (df == 1) {
    record.docs = docs[0];
    record.freqs = tfs[0];
  } else {
    uint32_t i, *values;
    e->values.len = 0;
    values = (uint32_t *)(void *)gpuir__buf_room(&e->a, &e->values, (size_t)df * 4);
    if (!values) return GPUIR_E_NOMEM;
    for (i = 0; i < df; i++) values[i] = tfs[i] - 1;
    status = df > GPUIR__SHORT_MAX ? gpuir__encode_long(e, batch, &record, docs, tfs, values, df)
                                   : gpuir__encode_short(e, batch, &record, docs, values, df);
  }
  if (!status && positions) {
    record.positions = batch->positions.len;
    status = gpuir__encode_positions(e, batch, tfs, df, positions);
    record.positions_len = batch->positions.len - record.positions;
  }
  if (status) return status;
  batch->nterms++;
  batch->postings += df;
  if (gpuir__buf_put(&e->a, &batch->terms, term, term_len) ||
      gpuir__buf_put(&e->a, &batch->term_lens, &len, 1) ||
      gpuir__buf_put(&e->a, &batch->records, &record, sizeof record))
    return GPUIR_E_NOMEM;
  return GPUIR_OK;
}

/* ============================================================================
 * [11-analysis]  text analysis: from text to terms
 *
 * A token is made, folded, held against the stop words, stemmed and emitted, in this order.
 *
 * ascii    Tokens are maximal runs of ASCII letters, ASCII digits and bytes from 0x80 on, so
 *          that the words of other scripts stay whole; only ASCII letters are folded. The
 *          underscore separates, as all other ASCII does, and so does the typography of ordinary
 *          text in UTF-8: spaces (U+00A0, U+3000), dashes, quotes, the ellipsis and the rest of
 *          U+2000 to U+205F but for what joins letters or turns their direction, and U+00AB, U+00BB.
 * unicode  Tokens are maximal runs of letters (L*), numbers (N*) and the marks (M*) and default
 *          ignorable format characters that follow them, brought into NFKC_Casefold form. Where
 *          folding yields something else (U+00BD, one half, holds a fraction slash), the token is split
 *          there. Invalid UTF-8 separates. Pure ASCII gives the same tokens as `ascii`.
 *          Chinese and Japanese are cut without a dictionary: each Han character is a token, and
 *          so is each run of Hiragana and each run of Katakana; a prolonged sound mark goes with
 *          the run before it. Other scripts without spaces (Thai, Khmer) stay uncut.
 *          Which characters are letters, and how they fold, is up to utf8proc's Unicode version.
 * custom   The caller's function makes the tokens; folding is its business.
 *
 * With the stemmers porter and english an English possessive is removed first, as Lucene does
 * it: an apostrophe (', U+2019 or U+FF07) and an s at the end of a word. Stop words go through
 * the same tokenizer and folding; a word that it splits ("don't") stops each of its parts.
 * Tokens over GPUIR_MAX_TERM bytes, measured when they are folded, are dropped and counted.
 *
 * Uses      [01-base], [02-vectors].
 * Start at  gpuir__analyze; gpuir__pool for the analyzers that an open index keeps.
 * Tests     tests/unit/11_analysis.c
 * ==========================================================================*/

#ifdef GPUIR_WITH_UTF8PROC
#include <utf8proc.h>
#endif
#ifdef GPUIR_WITH_STEMMER
#include <libstemmer.h>
#endif

enum {
  GPUIR__ASCII = 0,
  GPUIR__UNICODE = 1,
  GPUIR__CUSTOM = 2,

  GPUIR__NAME_MAX = 64,     /* bytes of a tokenizer's or stemmer's name */
  GPUIR__SPEC_MAX = 192,    /* bytes that hold any specification and its NUL */
  GPUIR__SCAN_BLOCK = 2048, /* bytes of text that are classified at a time; a multiple of 64 */
  GPUIR__STOP_PROBES = 64,  /* the longest chain of the stop table */
  GPUIR__STOP_SEEDS = 8,    /* that are tried to keep it so */
  GPUIR__STEM_CACHED = 23,  /* longer words and stems are not remembered */
  GPUIR__STEM_CACHE_BITS = 13,
  GPUIR__PLACE_REACH = 128 /* bytes: see gpuir__custom_place */
};

/* A set of words: open addressing, at most a quarter full. */
typedef struct gpuir__stop_slot {
  uint32_t at; /* 1 + where its length byte and its bytes lie in `words`; 0: empty */
  uint32_t tag;
} gpuir__stop_slot;

typedef struct gpuir__stops {
  gpuir__buf words;
  gpuir__stop_slot *slots;
  size_t nslots; /* a power of two, or 0 */
  size_t n;
  size_t longest;
} gpuir__stops;

typedef struct gpuir__stem_entry {
  uint8_t word_len; /* 0: empty */
  char word[GPUIR__STEM_CACHED];
  uint8_t stem_len;
  char stem[GPUIR__STEM_CACHED];
} gpuir__stem_entry;

typedef struct gpuir__analyzer {
  gpuir_allocator a;
  int kind;
  int possessive; /* remove 's */
  int filtered;   /* tokens need more than folding */
  gpuir_tokenize_fn tokenize;
  void *tokenize_user;
  gpuir__stops stops;
  uint64_t seed; /* of the hash of words */
#ifdef GPUIR_WITH_STEMMER
  struct sb_stemmer *stemmer;
  gpuir__stem_entry *cache; /* direct-mapped; made when it begins to pay */
  unsigned stemmed;         /* words stemmed without a cache */
#endif
#ifdef GPUIR_WITH_UTF8PROC
  uint16_t simple[0x800]; /* class << 13 | folded character (0: not a simple one); 0: not looked up yet */
#endif
  /* the analysis in progress */
  gpuir_token_fn emit;
  void *sink;
  uint64_t dropped;
  int status;      /* the first answer of emit that was not 0 */
  size_t word_end; /* where the last word ended in the text */
  /* Where in the text the token stands that is emitted: bytes [at, end), before it was folded and stemmed. Of a
   * caller's tokenizer they are known with `places` only. */
  size_t at, end, matched; /* matched: bytes of the token that was found there */
  int places;
  const char *text;
  size_t text_len, search,
      reach; /* bytes that may be looked through for places: of all tokens; of the next one */
} gpuir__analyzer;

/* The bytes of ascii tokens, folded; 0 for those that separate. */
GPUIR__UNUSED static const uint8_t gpuir__fold_ascii[256] = {
    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
    '0',  '1',  '2',  '3',  '4',  '5',  '6',  '7',  '8',  '9',  0,    0,    0,    0,    0,    0,
    0,    'a',  'b',  'c',  'd',  'e',  'f',  'g',  'h',  'i',  'j',  'k',  'l',  'm',  'n',  'o',
    'p',  'q',  'r',  's',  't',  'u',  'v',  'w',  'x',  'y',  'z',  0,    0,    0,    0,    0,
    0,    'a',  'b',  'c',  'd',  'e',  'f',  'g',  'h',  'i',  'j',  'k',  'l',  'm',  'n',  'o',
    'p',  'q',  'r',  's',  't',  'u',  'v',  'w',  'x',  'y',  'z',  0,    0,    0,    0,    0,
    0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x8b, 0x8c, 0x8d, 0x8e, 0x8f,
    0x90, 0x91, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0x9b, 0x9c, 0x9d, 0x9e, 0x9f,
    0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf,
    0xb0, 0xb1, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xbb, 0xbc, 0xbd, 0xbe, 0xbf,
    0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xcb, 0xcc, 0xcd, 0xce, 0xcf,
    0xd0, 0xd1, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xdb, 0xdc, 0xdd, 0xde, 0xdf,
    0xe0, 0xe1, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xeb, 0xec, 0xed, 0xee, 0xef,
    0xf0, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff};

/* Returns 1 for white space: what parts words in queries and stop lists. */
static inline int gpuir__is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Decodes one character of p[0..n), n >= 1. Returns its bytes, or 0 for anything that is not
 * UTF-8 (overlong forms, surrogates and what is beyond U+10FFFF included). */
static inline size_t gpuir__utf8_get(const uint8_t *p, size_t n, uint32_t *c) {
  uint32_t b = p[0];
  if (b < 0x80) {
    *c = b;
    return 1;
  }
  if (b < 0xe0) {
    if (b < 0xc2 || n < 2 || (p[1] & 0xc0) != 0x80) return 0;
    *c = (b & 0x1fu) << 6 | (p[1] & 0x3fu);
    return 2;
  }
  if (b < 0xf0) {
    if (n < 3 || (p[1] & 0xc0) != 0x80 || (p[2] & 0xc0) != 0x80) return 0;
    *c = (b & 0xfu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
    return *c < 0x800 || (*c >= 0xd800 && *c < 0xe000) ? 0 : 3;
  }
  if (b > 0xf4 || n < 4 || (p[1] & 0xc0) != 0x80 || (p[2] & 0xc0) != 0x80 || (p[3] & 0xc0) != 0x80) return 0;
  *c = (b & 7u) << 18 | (p[1] & 0x3fu) << 12 | (p[2] & 0x3fu) << 6 | (p[3] & 0x3fu);
  return *c < 0x10000 || *c > 0x10ffff ? 0 : 4;
}

/* Returns how many bytes the apostrophe has that ends at p[n), or 0. */
static inline size_t gpuir__apostrophe_before(const char *p, size_t n) {
  if (n >= 1 && p[n - 1] == '\'') return 1;
  if (n >= 3 && (!memcmp(p + n - 3, "\xe2\x80\x99", 3) || !memcmp(p + n - 3, "\xef\xbc\x87", 3))) return 3;
  return 0;
}

/* ---- stop words ---- */

/* Lucene's classic English list. */
static const char gpuir__stop_english[] =
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these "
    "they "
    "this to was will with";

static inline uint64_t gpuir__word_hash(const gpuir__analyzer *an, const char *word, size_t len) {
  return XXH3_64bits_withSeed(word, len, an->seed);
}

static inline int gpuir__stops_have(const gpuir__stops *s, const char *word, size_t len, uint64_t hash) {
  size_t i;
  if (len > s->longest) return 0;
  for (i = (size_t)hash & (s->nslots - 1); s->slots[i].at; i = (i + 1) & (s->nslots - 1)) {
    const uint8_t *w = s->words.data + (s->slots[i].at - 1);
    if (s->slots[i].tag == (uint32_t)(hash >> 32) && *w == len && !memcmp(w + 1, word, len)) return 1;
  }
  return 0;
}

/* Makes the table anew, with nslots slots. A list may be contrived so that its words collide; then
 * other seeds are tried, eight in all, and at last it is refused: no list makes searching slow. */
static int gpuir__stops_rehash(gpuir__analyzer *an, size_t nslots) {
  gpuir__stops *s = &an->stops;
  gpuir__stop_slot *slots;
  if (nslots > SIZE_MAX / sizeof *slots) return GPUIR_E_NOMEM;
  slots = (gpuir__stop_slot *)gpuir__alloc(&an->a, nslots * sizeof *slots);
  if (!slots) return GPUIR_E_NOMEM;
  gpuir__free(&an->a, s->slots, s->nslots * sizeof *slots);
  s->slots = slots;
  s->nslots = nslots;
  for (; an->seed < GPUIR__STOP_SEEDS; an->seed++) {
    size_t at = 0;
    memset(slots, 0, nslots * sizeof *slots);
    while (at < s->words.len) {
      const uint8_t *w = s->words.data + at;
      uint64_t hash = gpuir__word_hash(an, (const char *)w + 1, *w);
      size_t i = (size_t)hash & (nslots - 1), probes = 0;
      while (slots[i].at && ++probes < GPUIR__STOP_PROBES) i = (i + 1) & (nslots - 1);
      if (slots[i].at) break;
      slots[i].at = (uint32_t)(at + 1);
      slots[i].tag = (uint32_t)(hash >> 32);
      at += 1u + *w;
    }
    if (at >= s->words.len) return GPUIR_OK;
  }
  return GPUIR_E_LIMIT;
}

/* Adds a word to the stop words: a gpuir_token_fn whose sink is the analyzer itself. */
static int gpuir__stops_add(void *analyzer, const char *word, size_t len) {
  gpuir__analyzer *an = (gpuir__analyzer *)analyzer;
  gpuir__stops *s = &an->stops;
  uint64_t hash = gpuir__word_hash(an, word, len);
  uint8_t *to;
  size_t i, probes = 0;
  if (s->nslots && gpuir__stops_have(s, word, len, hash)) return GPUIR_OK;
  if (s->words.len > UINT32_MAX / 2) return GPUIR_E_LIMIT;
  to = gpuir__buf_room(&an->a, &s->words, 1 + len);
  if (!to) return GPUIR_E_NOMEM;
  to[0] = (uint8_t)len;
  memcpy(to + 1, word, len);
  if (s->longest < len) s->longest = len;
  s->words.len += 1 + len;
  s->n++;
  if (s->n * 4 > s->nslots) return gpuir__stops_rehash(an, s->nslots ? s->nslots * 2 : 256);
  i = (size_t)hash & (s->nslots - 1);
  while (s->slots[i].at && ++probes < GPUIR__STOP_PROBES) i = (i + 1) & (s->nslots - 1);
  if (s->slots[i].at) {
    an->seed++;
    return gpuir__stops_rehash(an, s->nslots);
  }
  s->slots[i].at = (uint32_t)(s->words.len - len);
  s->slots[i].tag = (uint32_t)(hash >> 32);
  return GPUIR_OK;
}

/* ---- from a folded token to the term ---- */

#ifdef GPUIR_WITH_STEMMER
static int gpuir__is_utf8(const char *text, size_t len) {
  const uint8_t *p = (const uint8_t *)text;
  size_t i = 0, n;
  uint32_t c;
  for (; i < len; i += n)
    if (!(n = gpuir__utf8_get(p + i, len - i, &c))) return 0;
  return 1;
}

/* Stems and emits a word. A word that is not UTF-8 is its own stem: the stemmers expect UTF-8. */
static int gpuir__stem_token(gpuir__analyzer *an, const char *word, size_t len, uint64_t hash) {
  gpuir__stem_entry *e = NULL;
  const sb_symbol *stem;
  size_t stem_len;
  if (len <= GPUIR__STEM_CACHED) {
    if (an->cache) {
      e = an->cache + (hash >> 7 & ((1u << GPUIR__STEM_CACHE_BITS) - 1));
      if (e->word_len == len && !memcmp(e->word, word, len)) return an->emit(an->sink, e->stem, e->stem_len);
    } else if (++an->stemmed == 256) { /* not for a query; without it all works, but slower */
      an->cache = (gpuir__stem_entry *)gpuir__alloc_zero(&an->a, sizeof *e << GPUIR__STEM_CACHE_BITS);
      if (!an->cache) an->stemmed = 0;
    }
  }
  if (!gpuir__is_utf8(word, len)) return an->emit(an->sink, word, len);
  stem = sb_stemmer_stem(an->stemmer, (const sb_symbol *)word, (int)len);
  if (!stem) return GPUIR_E_NOMEM;
  stem_len = (size_t)sb_stemmer_length(an->stemmer);
  if (!stem_len) { /* of "s" the stemmer `porter` leaves nothing */
    stem = (const sb_symbol *)word;
    stem_len = len;
  }
  if (stem_len > GPUIR_MAX_TERM) {
    an->dropped++;
    return GPUIR_OK;
  }
  if (e && stem_len <= GPUIR__STEM_CACHED) {
    e->word_len = (uint8_t)len;
    memcpy(e->word, word, len);
    e->stem_len = (uint8_t)stem_len;
    memcpy(e->stem, stem, stem_len);
  }
  return an->emit(an->sink, (const char *)stem, stem_len);
}
#endif

static int gpuir__filter_token(gpuir__analyzer *an, const char *token, size_t len) {
  uint64_t hash;
  if (an->possessive && len > 2 && (token[len - 1] == 's' || token[len - 1] == 'S')) {
    size_t n = gpuir__apostrophe_before(token, len - 1);
    if (n && n + 1 < len) len -= n + 1;
  }
  hash = gpuir__word_hash(an, token, len);
  if (an->stops.nslots && gpuir__stops_have(&an->stops, token, len, hash)) return GPUIR_OK;
#ifdef GPUIR_WITH_STEMMER
  if (an->stemmer) return gpuir__stem_token(an, token, len, hash);
#endif
  return an->emit(an->sink, token, len);
}

/* Takes a folded token of 1 to 255 bytes: drops a stop word, stems or emits another. */
static inline int gpuir__put_token(gpuir__analyzer *an, const char *token, size_t len) {
  return an->filtered ? gpuir__filter_token(an, token, len) : an->emit(an->sink, token, len);
}

static inline int gpuir__same_letter(char x, char y) {
  const uint8_t a = (uint8_t)x, b = (uint8_t)y;
  return a == b || ((a ^ b) == 0x20 && (uint8_t)((a | 0x20) - 'a') < 26);
}

/* Finds where a token of a caller's tokenizer stands: where it points to, if that is in the text; otherwise where its
 * bytes come next, ASCII letters alike in both cases, not before the token before it; otherwise where that one stands.
 * A token that goes on in a longer word of ASCII letters and digits takes all of it. The next 128 bytes are looked
 * through, twice as many after each token that was not found, and in all not more than analysis would cost. */
static void gpuir__custom_place(gpuir__analyzer *an, const char *token, size_t len) {
  const uintptr_t from = (uintptr_t)an->text, given = (uintptr_t)token;
  size_t i = an->at, n = 0, left = (size_t)gpuir__min64(an->reach, an->search);
  if (given >= from && given - from <= an->text_len && len <= an->text_len - (given - from)) {
    an->at = given - from;
    an->end = an->at + len;
    return;
  }
  for (; n < len && len <= an->text_len && i <= an->text_len - len && left; i++, left--) {
    an->search--;
    if (i == an->at && len == an->matched) continue; /* the same word again, most likely */
    for (n = 0; n < len && gpuir__same_letter(token[n], an->text[i + n]); n++) {}
  }
  if (n < len) {
    an->reach = (size_t)gpuir__min64(an->reach * 2, an->text_len);
    return;
  }
  an->reach = GPUIR__PLACE_REACH;
  an->matched = len;
  an->at = i - 1;
  an->end = an->at + len;
  while (an->end < an->text_len && gpuir__fold_ascii[(uint8_t)an->text[an->end]] &&
         (uint8_t)an->text[an->end] < 0x80)
    an->end++;
}

/* Takes a token of a caller's tokenizer: a gpuir_token_fn whose sink is the analyzer. */
static int gpuir__custom_token(void *analyzer, const char *token, size_t len) {
  gpuir__analyzer *an = (gpuir__analyzer *)analyzer;
  if (an->status || !len) return an->status;
  if (an->places) gpuir__custom_place(an, token, len);
  if (len > GPUIR_MAX_TERM)
    an->dropped++;
  else
    an->status = gpuir__put_token(an, token, len);
  return an->status;
}

/* Says whether the word text[start, ...), which is an "s", is what is left of a possessive. */
static inline int gpuir__is_possessive(const gpuir__analyzer *an, const char *text, size_t start) {
  size_t n;
  if (!an->possessive || !an->word_end) return 0;
  n = gpuir__apostrophe_before(text, start);
  return n && an->word_end == start - n;
}

/* ---- unicode ------------------------------------------------------------------- */

#ifdef GPUIR_WITH_UTF8PROC
/* Classes of characters; a token is a run of one class. 1 to 7, for gpuir__analyzer.simple. */
enum {
  GPUIR__SEPARATOR = 1,
  GPUIR__LETTER = 2, /* and numbers */
  GPUIR__HAN = 3,    /* a token each */
  GPUIR__HIRAGANA = 4,
  GPUIR__KATAKANA = 5,
  GPUIR__PROLONGED = 6, /* continues kana, else begins Katakana */
  GPUIR__EXTEND = 7     /* continues any token, begins none */
};
#define GPUIR__FOLDING \
  (UTF8PROC_COMPAT | UTF8PROC_CASEFOLD | UTF8PROC_IGNORE | UTF8PROC_STABLE | UTF8PROC_COMPOSE)

static int gpuir__char_class(uint32_t c) {
  const utf8proc_property_t *p;
  if (c < 0x80) return gpuir__fold_ascii[c] ? GPUIR__LETTER : GPUIR__SEPARATOR;
  /* by range and not by category, so that ideographs newer than utf8proc are words, too */
  if ((c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0xf900 && c <= 0xfaff) ||
      (c >= 0x20000 && c <= 0x3fffd) || c == 0x3005 || c == 0x3007 || (c >= 0x3021 && c <= 0x3029) ||
      (c >= 0x3038 && c <= 0x303b))
    return GPUIR__HAN;
  if (c == 0x30fc || c == 0xff70) return GPUIR__PROLONGED;
  p = utf8proc_get_property((utf8proc_int32_t)c);
  switch (p->category) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: break;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME: return GPUIR__EXTEND;
    case UTF8PROC_CATEGORY_CF: /* soft hyphen, joiners; the zero width space is for separating */
      return p->ignorable && c != 0x200b ? GPUIR__EXTEND : GPUIR__SEPARATOR;
    default: return GPUIR__SEPARATOR;
  }
  if ((c >= 0x3041 && c <= 0x309f) || (c >= 0x1b001 && c <= 0x1b11f) || (c >= 0x1b150 && c <= 0x1b152))
    return GPUIR__HIRAGANA;
  if ((c >= 0x30a0 && c <= 0x30ff) || (c >= 0x31f0 && c <= 0x31ff) || (c >= 0xff66 && c <= 0xff9f) ||
      (c >= 0x1aff0 && c <= 0x1b000) || (c >= 0x1b120 && c <= 0x1b122) || (c >= 0x1b164 && c <= 0x1b167))
    return GPUIR__KATAKANA;
  return GPUIR__LETTER;
}

/* Returns the class of a character, and in *folded the one character that it folds to when that does
 * not depend on its neighbours, provided that they are such, too; otherwise 0. */
static inline int gpuir__char_simple(gpuir__analyzer *an, uint32_t c, uint32_t *folded) {
  if (c < 0x80) {
    *folded = gpuir__fold_ascii[c];
    return *folded ? GPUIR__LETTER : GPUIR__SEPARATOR;
  }
  if (c < 0x800) {
    uint32_t v = an->simple[c];
    if (GPUIR__UNLIKELY(!v)) {
      utf8proc_int32_t to[8];
      int boundary = 0, class_ = gpuir__char_class(c);
      utf8proc_ssize_t n = 0;
      if (class_ == GPUIR__LETTER)
        n = utf8proc_decompose_char((utf8proc_int32_t)c, to, 8, (utf8proc_option_t)GPUIR__FOLDING, &boundary);
      if (n >= 1 && n <= 8) n = utf8proc_normalize_utf32(to, n, (utf8proc_option_t)GPUIR__FOLDING);
      v = (uint32_t)class_ << 13;
      /* one letter that neither moves nor was made a part of the one before */
      if (n == 1 && to[0] < 0x2000 && gpuir__char_class((uint32_t)to[0]) == GPUIR__LETTER &&
          !utf8proc_get_property(to[0])->combining_class)
        v |= (uint32_t)to[0];
      an->simple[c] = (uint16_t)v;
    }
    *folded = v & 0x1fff;
    return (int)(v >> 13);
  }
  *folded = c;
  if (c >= 0x4e00 && c <= 0x9fff) return GPUIR__HAN;
  if (c >= 0xac00 && c <= 0xd7a3) return GPUIR__LETTER; /* Hangul syllables; jamo after them are not simple */
  if (c >= 0x3041 && c <= 0x3096) return GPUIR__HIRAGANA;
  if (c >= 0x30a1 && c <= 0x30fa) return GPUIR__KATAKANA;
  if (c == 0x30fc) return GPUIR__PROLONGED;
  *folded = 0;
  return gpuir__char_class(c);
}

/* Returns the class of the run of class `run` (0: none) that goes on or begins with a character of
 * class `next`; *begins tells which. GPUIR__SEPARATOR: there is none any more. */
static inline int gpuir__run_class(int run, int next, int *begins) {
  *begins = 0;
  if (next == GPUIR__EXTEND) return run ? run : GPUIR__SEPARATOR;
  if (next == GPUIR__PROLONGED) {
    if (run == GPUIR__HIRAGANA || run == GPUIR__KATAKANA) return run;
    next = GPUIR__KATAKANA;
  }
  *begins = next != GPUIR__SEPARATOR && (next != run || next == GPUIR__HAN);
  return next;
}

/* A token that is made of UTF-8 characters one by one; len over 255: too long. */
typedef struct gpuir__utf8_word {
  size_t len;
  uint8_t bytes[GPUIR_MAX_TERM + 4];
} gpuir__utf8_word;

static inline void gpuir__utf8_word_put(gpuir__utf8_word *w, uint32_t c) {
  uint8_t *to = w->bytes + w->len;
  if (w->len > GPUIR_MAX_TERM) return;
  if (c < 0x80) {
    to[0] = (uint8_t)c;
    w->len += 1;
  } else if (c < 0x800) {
    to[0] = (uint8_t)(0xc0 | c >> 6);
    to[1] = (uint8_t)(0x80 | (c & 0x3f));
    w->len += 2;
  } else if (c < 0x10000) {
    to[0] = (uint8_t)(0xe0 | c >> 12);
    to[1] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
    to[2] = (uint8_t)(0x80 | (c & 0x3f));
    w->len += 3;
  } else {
    to[0] = (uint8_t)(0xf0 | c >> 18);
    to[1] = (uint8_t)(0x80 | (c >> 12 & 0x3f));
    to[2] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
    to[3] = (uint8_t)(0x80 | (c & 0x3f));
    w->len += 4;
  }
}

static int gpuir__utf8_word_end(gpuir__analyzer *an, gpuir__utf8_word *w) {
  size_t len = w->len;
  w->len = 0;
  if (len > GPUIR_MAX_TERM)
    an->dropped++;
  else if (len)
    return gpuir__put_token(an, (const char *)w->bytes, len);
  return GPUIR_OK;
}

/* Folds a word (valid UTF-8) with utf8proc, and splits it again where that has made separators. */
static int gpuir__fold_word(gpuir__analyzer *an, const char *text, size_t start, size_t end) {
  utf8proc_int32_t chars[512];
  utf8proc_ssize_t i, n = -1;
  gpuir__utf8_word w;
  int run = 0, status;
  /* No token of 255 bytes comes from more than 383 decomposed characters, and a word of more than
   * 4096 bytes is junk of ignorable characters at best. */
  if (end - start <= 4096)
    n = utf8proc_decompose((const utf8proc_uint8_t *)text + start, (utf8proc_ssize_t)(end - start), chars,
                           512, (utf8proc_option_t)GPUIR__FOLDING);
  if (n >= 0 && n <= 512) n = utf8proc_normalize_utf32(chars, n, (utf8proc_option_t)GPUIR__FOLDING);
  if (n < 0 || n > 512) {
    an->dropped++;
    return GPUIR_OK;
  }
  if (n == 1 && chars[0] == 's' && gpuir__is_possessive(an, text, start)) return GPUIR_OK;
  w.len = 0;
  for (i = 0; i < n; i++) {
    int begins;
    run = gpuir__run_class(run, gpuir__char_class((uint32_t)chars[i]), &begins);
    if (begins || run == GPUIR__SEPARATOR) {
      status = gpuir__utf8_word_end(an, &w);
      if (status) return status;
    }
    if (run == GPUIR__SEPARATOR)
      run = 0;
    else
      gpuir__utf8_word_put(&w, (uint32_t)chars[i]);
  }
  return gpuir__utf8_word_end(an, &w);
}

/* Emits the tokens of text[i, end), which holds no ASCII but letters and digits. */
static int gpuir__scan_unicode(gpuir__analyzer *an, const char *text, size_t i, size_t end) {
  const uint8_t *p = (const uint8_t *)text;
  gpuir__utf8_word w; /* the run, folded, while it is made of simple characters */
  size_t start = i, n;
  int run = 0, simple = 1, status = GPUIR_OK;
  w.len = 0;
  for (;; i += n) {
    uint32_t c = 0, folded = 0;
    int begins = 0, before = run;
    n = 1;
    if (i < end) {
      size_t got = gpuir__utf8_get(p + i, end - i, &c);
      int class_ = got ? gpuir__char_simple(an, c, &folded) : GPUIR__SEPARATOR;
      if (got) n = got;
      run = gpuir__run_class(run, class_, &begins);
    } else {
      run = GPUIR__SEPARATOR;
    }
    if (begins || run == GPUIR__SEPARATOR) {
      if (before) {
        an->at = start;
        an->end = i;
        if (!simple)
          status = gpuir__fold_word(an, text, start, i);
        else if (w.len != 1 || w.bytes[0] != 's' || !gpuir__is_possessive(an, text, start))
          status = gpuir__utf8_word_end(an, &w);
        if (status) return status;
        an->word_end = i;
      }
      if (i >= end) return GPUIR_OK;
      if (run == GPUIR__SEPARATOR) run = 0;
      start = i;
      simple = 1;
      w.len = 0;
    }
    if (folded)
      gpuir__utf8_word_put(&w, folded);
    else
      simple = 0;
  }
}
#endif /* GPUIR_WITH_UTF8PROC */

/* ---- ascii, and the ASCII words of unicode --------------------------------------- */

/* Folds 64 bytes of text; bit i of the result: byte i belongs to a word. Bytes of `folded` that do
 * not are undefined. *high becomes non-zero if a byte is not ASCII. */
static inline uint64_t gpuir__classify64(const char *text, uint8_t *folded, int *high) {
  uint64_t bits = 0;
  int any = 0;
  unsigned i;
#if GPUIR__X86
  /* SSE2, which every x86-64 has. Signed compares: x - 'a' + 128 - 256 < 26 - 128 is 'a' <= x < 'a' + 26. */
  const __m128i case_bit = _mm_set1_epi8(0x20);
  for (i = 0; i < 4; i++) {
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(text + 16 * i));
    __m128i alpha = _mm_cmplt_epi8(_mm_add_epi8(_mm_or_si128(v, case_bit), _mm_set1_epi8(0x80 - 'a')),
                                   _mm_set1_epi8(26 - 128));
    __m128i digit = _mm_cmplt_epi8(_mm_add_epi8(v, _mm_set1_epi8(0x80 - '0')), _mm_set1_epi8(10 - 128));
    _mm_storeu_si128((__m128i *)(void *)(folded + 16 * i), _mm_or_si128(v, _mm_and_si128(alpha, case_bit)));
    bits |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(alpha, digit), v)) << 16 * i;
    any |= _mm_movemask_epi8(v);
  }
#else
  for (i = 0; i < 64; i++) {
    uint8_t c = gpuir__fold_ascii[(unsigned char)text[i]];
    folded[i] = c;
    bits |= (uint64_t)(c != 0) << i;
    any |= c & 0x80;
  }
#endif
  *high = any;
  return bits;
}

static int gpuir__has_high(const char *text, size_t len) {
  uint64_t any = 0;
  for (; len >= 8; text += 8, len -= 8) any |= gpuir__load64(text);
  for (; len; text++, len--) any |= (uint64_t)(unsigned char)*text;
  return (any & 0x8080808080808080u) != 0;
}

/* Returns how many bytes the typographic separator has that text[0..n), n >= 1, begins with; 0: there is none. */
static inline size_t gpuir__typography(const char *text, size_t n) {
  const uint8_t *p = (const uint8_t *)text;
  if (p[0] == 0xc2) return n > 1 && (p[1] == 0xa0 || p[1] == 0xab || p[1] == 0xbb) ? 2 : 0;
  if (n < 3 || (p[0] != 0xe2 && p[0] != 0xe3) || (p[2] & 0xc0) != 0x80) return 0;
  if (p[0] == 0xe3) return p[1] == 0x80 && p[2] == 0x80 ? 3 : 0;
  if (p[1] == 0x81) return p[2] <= 0x9f ? 3 : 0; /* U+2040 to U+205F */
  return p[1] == 0x80 && (p[2] <= 0x8b || (p[2] >= 0x90 && p[2] <= 0xa9) || p[2] >= 0xaf) ? 3 : 0;
}

/* Emits the token [start, end) of a run that is not ASCII. */
static int gpuir__ascii_word(gpuir__analyzer *an, const char *text, size_t start, size_t end) {
  char word[GPUIR_MAX_TERM];
  const size_t len = end - start;
  size_t i;
  int status = GPUIR_OK;
  an->at = start;
  an->end = end;
  if (len > GPUIR_MAX_TERM) {
    an->dropped++;
  } else {
    for (i = 0; i < len; i++) word[i] = (char)gpuir__fold_ascii[(uint8_t)text[start + i]];
    if (len != 1 || word[0] != 's' || !gpuir__is_possessive(an, text, start))
      status = gpuir__put_token(an, word, len);
  }
  an->word_end = end;
  return status;
}

/* Parts the run text[start, end), which is not ASCII, at its typography. */
static int gpuir__scan_typography(gpuir__analyzer *an, const char *text, size_t start, size_t end) {
  size_t i = start, n;
  int status = GPUIR_OK;
  while (i < end && !status) {
    n = gpuir__typography(text + i, end - i);
    if (n && start < i) status = gpuir__ascii_word(an, text, start, i);
    i += n ? n : 1;
    if (n) start = i;
  }
  return !status && start < end ? gpuir__ascii_word(an, text, start, end) : status;
}

/* Emits one run [start, end) of word bytes; `folded` are its bytes, if there are at most 255. `high` is 0
 * when they are ASCII. */
static inline int gpuir__scan_run(gpuir__analyzer *an, const char *text, size_t start, size_t end,
                                  const uint8_t *folded, int high) {
  size_t len = end - start;
  int status = GPUIR_OK;
  if (high && gpuir__has_high(text + start, len)) {
#ifdef GPUIR_WITH_UTF8PROC
    if (an->kind == GPUIR__UNICODE) return gpuir__scan_unicode(an, text, start, end);
#endif
    return gpuir__scan_typography(an, text, start, end);
  }
  an->at = start;
  an->end = end;
  if (GPUIR__UNLIKELY(len > GPUIR_MAX_TERM))
    an->dropped++;
  else if (len != 1 || *folded != 's' || !gpuir__is_possessive(an, text, start))
    status = gpuir__put_token(an, (const char *)folded, len);
  an->word_end = end;
  return status;
}

/* Emits the tokens of a text, which is folded block by block into `room`, in front of which there is space for the
 * start of a token that goes on from the block before. Tokens begin and end where the word bits change. */
static int gpuir__scan(gpuir__analyzer *an, const char *text, size_t len) {
  uint8_t room[256 + GPUIR__SCAN_BLOCK];
  size_t base, start = SIZE_MAX; /* of the token in progress */
  uint64_t before = 0;           /* the word bit of the last byte seen */
  int status, high, carried = 0; /* not ASCII: of this chunk; of the token in progress, before it */
  an->word_end = 0;
  for (base = 0; base < len; base += GPUIR__SCAN_BLOCK) {
    size_t n = (size_t)gpuir__min64(len - base, GPUIR__SCAN_BLOCK), at;
    for (at = 0; at < n; at += 64) {
      uint64_t bits, edges;
      if (n - at >= 64) {
        bits = gpuir__classify64(text + base + at, room + 256 + at, &high);
      } else {
        char rest[64];
        memset(rest, 0, sizeof rest);
        memcpy(rest, text + base + at, n - at);
        bits = gpuir__classify64(rest, room + 256 + at, &high);
      }
      edges = bits ^ (bits << 1 | before);
      before = bits >> 63;
      while (edges) {
        size_t end;
        if (start == SIZE_MAX) {
          start = base + at + gpuir__ctz64(edges);
          edges &= edges - 1;
          if (!edges) break;
        }
        end = base + at + gpuir__ctz64(edges);
        edges &= edges - 1;
        status = gpuir__scan_run(an, text, start, end, room + (end - start > 255 ? 0 : 256 + start - base),
                                 high | carried);
        if (status) return status;
        start = SIZE_MAX;
        carried = 0;
      }
      if (start != SIZE_MAX) carried |= high;
    }
    if (start != SIZE_MAX && base + n - start <= 255) {
      size_t k = base + n - start; /* the end of the block, or of the text */
      memmove(room + 256 - k, room + 256 + n - k, k);
    }
  }
  if (start == SIZE_MAX) return GPUIR_OK;
  return gpuir__scan_run(an, text, start, len, room + (len - start > 255 ? 0 : 256 - (len - start)), carried);
}

/* Emits the tokens of a text. dropped (may be NULL) is increased for each token over 255 bytes.
 * Returns 0, or the first other answer of emit or of the caller's tokenizer, or NOMEM. */
static int gpuir__analyze(gpuir__analyzer *an, const char *text, size_t len, gpuir_token_fn emit, void *sink,
                          uint64_t *dropped) {
  int status;
  an->emit = emit;
  an->sink = sink;
  an->dropped = 0;
  an->status = GPUIR_OK;
  an->at = an->end = an->matched = 0;
  an->text = text;
  an->text_len = len;
  an->search = len < SIZE_MAX / 64 ? len * 32 + 4096 : len;
  an->reach = GPUIR__PLACE_REACH;
  if (an->kind == GPUIR__CUSTOM) {
    status = an->tokenize(an->tokenize_user, text, len, gpuir__custom_token, an);
    if (an->status) status = an->status; /* even if the tokenizer has lost it */
  } else {
    status = gpuir__scan(an, text, len);
  }
  if (dropped) *dropped += an->dropped;
  return status;
}

/* ---- specifications ---- */

/* Says whether a name is 1 to 64 bytes without white space or control characters, so that specifications are
 * one line and messages can quote it. */
static int gpuir__name_ok(const char *name, size_t len) {
  size_t i;
  if (!len || len > GPUIR__NAME_MAX) return 0;
  for (i = 0; i < len; i++)
    if ((unsigned char)name[i] <= ' ' || name[i] == 0x7f) return 0;
  return 1;
}

static int gpuir__has_words(const char *words) {
  while (gpuir__is_space(*words)) words++;
  return *words != 0;
}

/* Writes the specification that is stored in the index, GPUIR__SPEC_MAX bytes at most with its NUL:
 *   ("ascii" | "unicode" | "custom:" NAME) [" stem=" NAME] [" stop=" ("english" | "custom")]
 * Errors: ARGUMENT. */
static int gpuir__analyzer_spec(const gpuir_analyzer_desc *desc, char *spec, size_t cap, gpuir_error *err) {
  const char *name = desc && desc->analyzer ? desc->analyzer : "ascii";
  const char *stem = desc ? desc->stem : NULL, *stop = desc ? desc->stop : NULL;
  int builtin = !strcmp(name, "ascii") || !strcmp(name, "unicode");
  int custom = desc && desc->tokenize;
  int words = desc && desc->stop_words && gpuir__has_words(desc->stop_words);
  int n;
  if (cap) spec[0] = 0;
  if (custom && !desc->analyzer)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "a tokenizer needs a name: set `analyzer`");
  if (!gpuir__name_ok(name, strlen(name)))
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0,
                       "the analyzer's name must be 1 to %d bytes without white space", (int)GPUIR__NAME_MAX);
  if (custom && builtin)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "a tokenizer may not be called \"%s\", as a built-in one is",
                       name);
  if (!custom && !builtin)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "unknown analyzer \"%s\" (there are ascii and unicode)",
                       name);
  if (stem && !gpuir__name_ok(stem, strlen(stem)))
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0,
                       "the stemmer's name must be 1 to %d bytes without white space", (int)GPUIR__NAME_MAX);
  if (stop && desc->stop_words)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "stop and stop_words exclude each other");
  if (stop && strcmp(stop, "english"))
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "unknown stop list \"%.64s\" (there is english)", stop);
  n = snprintf(spec, cap, "%s%s%s%s%s", custom ? "custom:" : "", name, stem ? " stem=" : "", stem ? stem : "",
               stop    ? " stop=english"
               : words ? " stop=custom"
                       : "");
  if (n < 0 || (size_t)n >= cap)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "analyzer specification too long");
  return GPUIR_OK;
}

static void gpuir__analyzer_destroy(gpuir__analyzer *an) {
  gpuir_allocator a;
  if (!an) return;
  a = an->a;
#ifdef GPUIR_WITH_STEMMER
  sb_stemmer_delete(an->stemmer);
  gpuir__free(&a, an->cache, sizeof *an->cache << GPUIR__STEM_CACHE_BITS);
#endif
  gpuir__buf_free(&a, &an->stops.words);
  gpuir__free(&a, an->stops.slots, an->stops.nslots * sizeof *an->stops.slots);
  gpuir__free(&a, an, sizeof *an);
}

/* Makes the set of stop words from words parted by white space, each through the tokenizer. */
static int gpuir__analyzer_set_stops(gpuir__analyzer *an, const char *words, gpuir_error *err) {
  int status = GPUIR_OK;
  if (!words) words = "";
  an->filtered = an->possessive;
  while (*words && !status) {
    size_t n = 0;
    while (gpuir__is_space(*words)) words++;
    while (words[n] && !gpuir__is_space(words[n])) n++;
    if (n) status = gpuir__analyze(an, words, n, gpuir__stops_add, an, NULL);
    words += n;
  }
  if (status == GPUIR_E_NOMEM) return gpuir__fail_nomem(err);
  if (status == GPUIR_E_LIMIT)
    return gpuir__fail(err, status, 0, "the list of stop words is too long, or contrived");
  if (status) return gpuir__fail(err, status, 0, "the tokenizer fails on the stop words");
  return GPUIR_OK;
}

/* What a specification says: "NAME" or "custom:NAME", then options " stem=NAME" and " stop=NAME". */
typedef struct gpuir__spec {
  int kind;
  char stem[GPUIR__NAME_MAX + 1], stop[GPUIR__NAME_MAX + 1]; /* "": none */
} gpuir__spec;

/* Reads the analyzer's name, before the options. *end is what follows it. */
static int gpuir__spec_name(const char *p, int has_tokenizer, int *kind, const char **end, gpuir_error *err) {
  size_t n = strcspn(p, " ");
  char name[GPUIR__NAME_MAX + 1];
  *end = p + n;
  *kind = -1;
  if (n == 5 && !memcmp(p, "ascii", n)) *kind = GPUIR__ASCII;
  if (n == 7 && !memcmp(p, "unicode", n)) *kind = GPUIR__UNICODE;
  if (n >= 7 && !memcmp(p, "custom:", 7)) {
    *kind = GPUIR__CUSTOM;
    p += 7;
    n -= 7;
  }
  if (!gpuir__name_ok(p, n)) return gpuir__fail(err, GPUIR_E_FORMAT, 0, "malformed analyzer specification");
  memcpy(name, p, n);
  name[n] = 0;
  if (*kind < 0) return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "this build has no analyzer \"%s\"", name);
  if (*kind == GPUIR__CUSTOM && !has_tokenizer)
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "the tokenizer \"%s\" must be given", name);
#ifndef GPUIR_WITH_UTF8PROC
  if (*kind == GPUIR__UNICODE)
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0,
                       "this build has no unicode analyzer (define GPUIR_WITH_UTF8PROC and link -lutf8proc)");
#endif
  return GPUIR_OK;
}

/* Reads a specification. FORMAT for a malformed one; UNSUPPORTED, in words, if this build or caller lacks something. */
static int gpuir__spec_parse(const char *text, int has_tokenizer, gpuir__spec *spec, gpuir_error *err) {
  const char *p;
  size_t n;
  int status = gpuir__spec_name(text, has_tokenizer, &spec->kind, &p, err);
  if (status) return status;
  spec->stem[0] = spec->stop[0] = 0;
  for (; *p; p += n) {
    char key[GPUIR__NAME_MAX + 1], *value;
    size_t name_len;
    p++; /* the space */
    n = strcspn(p, " ");
    name_len = strcspn(p, "= ");
    if (name_len >= n || !gpuir__name_ok(p, name_len) || !gpuir__name_ok(p + name_len + 1, n - name_len - 1))
      return gpuir__fail(err, GPUIR_E_FORMAT, 0, "malformed analyzer specification");
    memcpy(key, p, name_len);
    key[name_len] = 0;
    if (!strcmp(key, "stem"))
      value = spec->stem;
    else if (!strcmp(key, "stop"))
      value = spec->stop;
    else
      return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "this build's analyzers have no option \"%s\"", key);
    if (*value) return gpuir__fail(err, GPUIR_E_FORMAT, 0, "malformed analyzer specification");
    memcpy(value, p + name_len + 1, n - name_len - 1);
    value[n - name_len - 1] = 0;
  }
  if (*spec->stop && strcmp(spec->stop, "english") && strcmp(spec->stop, "custom"))
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "this build has no stop list \"%s\"", spec->stop);
#ifndef GPUIR_WITH_STEMMER
  if (*spec->stem)
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0,
                       "this build has no stemmer \"%s\" (define GPUIR_WITH_STEMMER and link -lstemmer)",
                       spec->stem);
#endif
  return GPUIR_OK;
}

/* Makes an analyzer from a specification and the custom stop words ("" if none). UNSUPPORTED, in words, if this build
 * or caller lacks something; FORMAT for a malformed specification; NOMEM; LIMIT for stop words that
 * fit no table; or what the tokenizer returned for the stop words. */
static int gpuir__analyzer_create(const gpuir_allocator *allocator, const char *text, const char *stop_words,
                                  gpuir_tokenize_fn tokenize, void *tokenize_user, gpuir__analyzer **analyzer,
                                  gpuir_error *err) {
  gpuir_allocator a = gpuir__allocator(allocator);
  gpuir__analyzer *an;
  gpuir__spec spec;
  const char *stem = spec.stem;
  int status = gpuir__spec_parse(text, tokenize != NULL, &spec, err);
  *analyzer = NULL;
  if (status) return status;
  an = (gpuir__analyzer *)gpuir__alloc_zero(&a, sizeof *an);
  if (!an) return gpuir__fail_nomem(err);
  an->a = a;
  an->kind = spec.kind;
  an->tokenize = tokenize;
  an->tokenize_user = tokenize_user;
  an->possessive =
      !strcmp(stem, "porter") || !strcmp(stem, "english") || !strcmp(stem, "eng") || !strcmp(stem, "en");
  if (*spec.stop)
    status =
        gpuir__analyzer_set_stops(an, !strcmp(spec.stop, "custom") ? stop_words : gpuir__stop_english, err);
#ifdef GPUIR_WITH_STEMMER
  if (!status && *stem) {
    an->stemmer = sb_stemmer_new(stem, NULL);
    if (!an->stemmer) {
      const char **known = sb_stemmer_list();
      while (*known && strcmp(*known, stem)) known++;
      status = *known ? gpuir__fail_nomem(err)
                      : gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "libstemmer has no stemmer \"%s\"", stem);
    }
  }
#endif
  if (status) {
    gpuir__analyzer_destroy(an);
    return status;
  }
  an->filtered = an->possessive || an->stops.nslots || *stem;
  *analyzer = an;
  return GPUIR_OK;
}

/* Says whether terms are stems. */
static int gpuir__analyzer_stems(const gpuir__analyzer *an) {
#ifdef GPUIR_WITH_STEMMER
  return an->stemmer != NULL;
#else
  (void)an;
  return 0;
#endif
}

/* ---- a pool of analyzers ---- */

/* Analyzers of one specification that are idle: they are costly to make, and each serves one thread at a time. */
#define GPUIR__POOL 16
typedef struct gpuir__pool {
  gpuir_allocator a;
  uint64_t refs;                 /* owners, counted atomically */
  const char *spec, *stop_words; /* copies, behind the struct */
  size_t size;                   /* of both together */
  gpuir_tokenize_fn tokenize;
  void *tokenize_user;
  pthread_mutex_t mutex; /* guards what follows */
  unsigned n;
  gpuir__analyzer *idle[GPUIR__POOL];
} gpuir__pool;

/* Leaves the pool; NULL is allowed. The last owner releases it with its idle analyzers: all that were taken must have
 * been given back. */
static void gpuir__pool_close(gpuir__pool *pool) {
  gpuir_allocator a;
  if (!pool || __atomic_sub_fetch(&pool->refs, 1, __ATOMIC_ACQ_REL)) return;
  a = pool->a;
  while (pool->n) gpuir__analyzer_destroy(pool->idle[--pool->n]);
  (void)pthread_mutex_destroy(&pool->mutex);
  gpuir__free(&a, pool, pool->size);
}

/* Adds an owner to the pool. */
static gpuir__pool *gpuir__pool_share(gpuir__pool *pool) {
  (void)__atomic_add_fetch(&pool->refs, 1, __ATOMIC_RELAXED);
  return pool;
}

/* Makes an empty pool with one owner. `spec` and `stop_words` are copied. */
static int gpuir__pool_open(const gpuir_allocator *a, const char *spec, const char *stop_words,
                            gpuir_tokenize_fn tokenize, void *tokenize_user, gpuir__pool **out,
                            gpuir_error *err) {
  const size_t nspec = strlen(spec) + 1, nstop = strlen(stop_words) + 1,
               size = sizeof(gpuir__pool) + nspec + nstop;
  gpuir__pool *pool = (gpuir__pool *)gpuir__alloc_zero(a, size);
  if (!pool) return gpuir__fail_nomem(err);
  if (pthread_mutex_init(&pool->mutex, NULL)) {
    gpuir__free(a, pool, size);
    return gpuir__fail_nomem(err);
  }
  pool->a = *a;
  pool->refs = 1;
  pool->size = size;
  pool->spec = (const char *)memcpy(pool + 1, spec, nspec);
  pool->stop_words = (const char *)memcpy((char *)(pool + 1) + nspec, stop_words, nstop);
  pool->tokenize = tokenize;
  pool->tokenize_user = tokenize_user;
  *out = pool;
  return GPUIR_OK;
}

/* Takes an idle analyzer, or makes one. */
static int gpuir__pool_take(gpuir__pool *pool, gpuir__analyzer **analyzer, gpuir_error *err) {
  *analyzer = NULL;
  (void)pthread_mutex_lock(&pool->mutex);
  if (pool->n) *analyzer = pool->idle[--pool->n];
  (void)pthread_mutex_unlock(&pool->mutex);
  if (*analyzer) return GPUIR_OK;
  return gpuir__analyzer_create(&pool->a, pool->spec, pool->stop_words, pool->tokenize, pool->tokenize_user,
                                analyzer, err);
}

/* Gives an analyzer back; one too many is destroyed. */
static void gpuir__pool_give(gpuir__pool *pool, gpuir__analyzer *analyzer) {
  (void)pthread_mutex_lock(&pool->mutex);
  if (pool->n < GPUIR__POOL) {
    pool->idle[pool->n++] = analyzer;
    analyzer = NULL;
  }
  (void)pthread_mutex_unlock(&pool->mutex);
  gpuir__analyzer_destroy(analyzer);
}

/* ============================================================================
 * [11b-dictionary]  terms and their records in blocks; the search tree over the blocks
 *
 * The sorted terms are cut into blocks of GPUIR__DICT_BLOCK. A block holds their records and, front-coded, their bytes:
 *
 *   head (1)  several (2)  second (2)  widths (4 or 6)  bases  codecs  columns  lengths  firsts  first term  rests
 *
 *   head         bytes before the lengths
 *   several      a bit a term: it has more than one posting
 *   second       a bit a term: of one posting, that its tf is not 1; of several, that the list is long
 *   widths       bits of the columns' numbers, in their order: none of docIDs, 6 of tf, 3 of df, 5 and 5 of a stream's
 *                bytes, 6 of a long list's df; then bytes of the bases: 2 bits of docIDs', 2 of frequencies'; 1 bit:
 *                codecs are mixed; 2 zeros. With positions also 6 and 6 bits of the last two columns, 3 of the base's
 *                bytes, and a zero
 *   bases        where the first short list's docIDs and frequencies begin; the number of the first long list (a
 *                byte, if there is one); where the first term's positions begin: all relative to the block's page
 *   codecs       none if no term has several postings; one byte for all that do, or mixed, one for each: the codec of
 *                docIDs in the low half, that of frequencies in the high half
 *   columns      numbers, side by side as packed ones are, the last byte filled with zeros: the docID of each single
 *                posting, the tf - 2 of each that is not 1; of each short list df - 2, bytes of docIDs - 1 and bytes of
 *                frequencies - 1; of each long list df - 128; with positions the bytes that those of each list take
 *                that is not long, and then of each that is long
 *   lengths      a byte of the first term: its length; of each further one: in the low half how many bytes it shares
 *                with the term before, in the high half how many follow the first byte that is its own; 15 stands for
 *                the next byte before its rest (for both halves, for the shared ones first)
 *   firsts       of each further term the first byte that is its own
 *   rests        of each further term the bytes behind that one
 *
 * A docID takes as many bits as the last document's, every other column as many as its greatest number. Short lists
 * follow one another in term order, so that the bytes of a list's streams tell where the next one begins; long lists
 * are numbered in that order. A page is GPUIR__DICT_PAGE blocks: where they begin, and the bases.
 *
 * A block is found in a tree whose nodes are 16 numbers: the first says how many bytes all terms of the node's range
 * have in common (0 in the first and the last node of a level, whose ranges are open), the others are the 8 bytes
 * behind those of the first terms of its children, but of its first child, in big-endian order, padded with zeros;
 * absent children have the greatest number. Children of the lowest nodes are blocks; levels stand one behind the
 * other, the root first. Where a child's number is that of the term that is searched, the first terms themselves
 * decide. One block needs no tree. (Front coding: Witten, Moffat and Bell, "Managing Gigabytes", section 4.1.)
 *
 * Uses      [02-vectors], [09-postings] (the record).
 * Start at  gpuir__dict_find (from bytes to the number of a term), gpuir__dict_record, gpuir__dict_encode.
 * Tests     tests/unit/11b_dictionary.c
 * ==========================================================================*/

#define GPUIR__DICT_BLOCK 16u         /* terms of a block */
#define GPUIR__DICT_PAGE 16u          /* blocks of a page: at most 65385 bytes before the last one */
#define GPUIR__DICT_FAN 16u           /* children of a node, and its numbers */
#define GPUIR__DICT_LEVELS 7u         /* of the tree at most: 2^28 blocks */
#define GPUIR__DICT_POSITIONS_BITS 48 /* of the bytes that a list's positions take */
/* The most bytes that stand before the lengths: of 16 single postings, whose columns are 32, 32 and 48 bits wide. */
#define GPUIR__DICT_HEAD (1 + 2 + 2 + 6 + 3 + 3 + 7 + GPUIR__DICT_BLOCK * (4 + 4 + 6))
/* The most bytes of a block. What is shared takes an extra length, and more than 15 bytes less of a term. */
#define GPUIR__DICT_MOST (GPUIR__DICT_HEAD + GPUIR__DICT_BLOCK * (1 + 1 + GPUIR_MAX_TERM))

/* Where the dictionary's next block begins, and what its terms have next: what the blocks of a page count from. */
typedef struct gpuir__dict_page {
  uint64_t start;       /* bytes of blocks before */
  uint64_t docs, freqs; /* bytes of short lists before */
  uint64_t longs;       /* long lists before */
  uint64_t positions;   /* bytes of positions before */
} gpuir__dict_page;

/* What all blocks of a dictionary have in common. */
typedef struct gpuir__dict_form {
  unsigned docid_bits;
  int positions; /* lists have positions */
} gpuir__dict_form;

/* A dictionary: its sections, and what follows from the number of terms. */
typedef struct gpuir__dict {
  const uint8_t *bytes; /* the blocks */
  const gpuir__dict_page *pages;
  const uint16_t *starts; /* [block] relative to its page's */
  const uint64_t *keys;   /* the tree */
  uint64_t size;          /* of the blocks, in bytes */
  uint64_t terms;
  gpuir__dict_form form;
  int simd; /* level at which terms are searched */
  unsigned levels;
  uint64_t level[GPUIR__DICT_LEVELS + 1]; /* nodes of each level, the root's first; behind them, blocks */
} gpuir__dict;

/* Returns how many blocks `terms` terms take. */
static inline uint64_t gpuir__dict_blocks(uint64_t terms) {
  return (terms + GPUIR__DICT_BLOCK - 1) / GPUIR__DICT_BLOCK;
}

/* Returns how many nodes the tree has. */
static inline uint64_t gpuir__dict_nodes(uint64_t terms) {
  uint64_t n = gpuir__dict_blocks(terms), sum = 0;
  while (n > 1) sum += n = (n + GPUIR__DICT_FAN - 1) / GPUIR__DICT_FAN;
  return sum;
}

/* Returns the form of an index's dictionary. */
static inline gpuir__dict_form gpuir__dict_form_of(uint64_t documents, int positions) {
  gpuir__dict_form form;
  form.docid_bits = documents ? gpuir__width32((uint32_t)(documents - 1)) : 0;
  form.positions = positions;
  return form;
}

/* Fills in what follows from the number of terms. */
static void gpuir__dict_shape(gpuir__dict *d, uint64_t terms) {
  uint64_t n = gpuir__dict_blocks(terms);
  unsigned i;
  d->terms = terms;
  for (d->levels = 0; n > 1; d->levels++) n = (n + GPUIR__DICT_FAN - 1) / GPUIR__DICT_FAN;
  n = gpuir__dict_blocks(terms);
  for (i = d->levels + 1; i-- > 0; n = (n + GPUIR__DICT_FAN - 1) / GPUIR__DICT_FAN) d->level[i] = n;
}

/* ---- a block, opened ---- */

/* The columns. GPUIR__COL_BITS: numbers whose widths the header has. */
enum {
  GPUIR__COL_DOCID,
  GPUIR__COL_TF,
  GPUIR__COL_DF,
  GPUIR__COL_DOCS,
  GPUIR__COL_FREQS,
  GPUIR__COL_LONG,
  GPUIR__COL_POSITIONS,
  GPUIR__COL_LONG_POSITIONS,
  GPUIR__COLUMNS
};

typedef struct gpuir__dict_block {
  unsigned n;             /* terms */
  const uint8_t *start;   /* the block's bytes */
  const uint8_t *lengths; /* [n] */
  const uint8_t *firsts;  /* [n] the first byte of term i that is its own, i > 0 */
  const uint8_t *text;    /* the first term, and rests */
  size_t limit;           /* bytes from text to the section's end */
  const gpuir__dict_page *page;
} gpuir__dict_block;

/* The records of a block, opened. */
typedef struct gpuir__dict_records {
  uint32_t several, second; /* a bit a term */
  uint32_t mixed;           /* not 0: a codec byte for each list */
  uint32_t width[GPUIR__COLUMNS];
  uint32_t column[GPUIR__COLUMNS + 1]; /* the bit of columns at which each begins, and the end */
  const uint8_t *codecs, *columns;
  gpuir__dict_page base;
} gpuir__dict_records;

/* Opens a block (there are so many). Returns 0 if it does not lie in its section. */
static inline int gpuir__dict_open(const gpuir__dict *d, uint64_t block, gpuir__dict_block *b) {
  const gpuir__dict_page *page = &d->pages[block / GPUIR__DICT_PAGE];
  const uint32_t at = d->starts[block];
  uint32_t head;
  uint64_t left;
  if (page->start > d->size || at >= d->size - page->start) return 0;
  left = d->size - page->start - at;
  b->n = (unsigned)gpuir__min64(d->terms - block * GPUIR__DICT_BLOCK, GPUIR__DICT_BLOCK);
  b->page = page;
  b->start = d->bytes + page->start + at;
  __builtin_prefetch(b->start + 64); /* a block is 150 bytes or so */
  __builtin_prefetch(b->start + 128);
  head = b->start[0];
  b->lengths = b->start + head;
  head += b->n;
  b->firsts = b->start + head - 1;
  head += b->n - 1;
  b->text = b->start + head;
  if (head > left) return 0;
  b->limit = (size_t)(left - head);
  return b->lengths[0] <= b->limit;
}

/* Counts the ones in each of four 16-bit masks, which stay in their place. */
static inline uint64_t gpuir__dict_counts(uint64_t x) {
  x -= x >> 1 & 0x5555555555555555u;
  x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
  x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
  return (x + (x >> 8)) & 0x00ff00ff00ff00ffu;
}

/* How many of some terms are of a kind. */
typedef struct gpuir__dict_kinds {
  uint32_t ones, tfs, shorts, longs; /* one posting; one whose tf is not 1; short lists; long ones */
} gpuir__dict_kinds;

/* Counts the terms of a mask by their kinds. */
static inline gpuir__dict_kinds gpuir__dict_count(const gpuir__dict_records *r, uint32_t of) {
  const uint64_t n = gpuir__dict_counts(
      (uint64_t)(of & ~r->several) | (uint64_t)(of & ~r->several & r->second) << 16 |
      (uint64_t)(of & r->several & ~r->second) << 32 | (uint64_t)(of & r->several & r->second) << 48);
  gpuir__dict_kinds k;
  k.ones = n & 255;
  k.tfs = n >> 16 & 255;
  k.shorts = n >> 32 & 255;
  k.longs = (uint32_t)(n >> 48);
  return k;
}

/* Takes the next number of w bits out of a word. */
static inline uint32_t gpuir__dict_take(uint64_t *word, unsigned w) {
  const uint32_t v = (uint32_t)*word & gpuir__low_bits(w);
  *word >>= w;
  return v;
}

/* Takes the next number of up to 7 bytes. */
static inline uint64_t gpuir__dict_base(const uint8_t **p, uint32_t bytes) {
  const uint64_t v = gpuir__load64(*p) & gpuir__low_bits64(8 * bytes);
  *p += bytes;
  return v;
}

/* Fills in where the columns begin. */
static inline void gpuir__dict_layout(gpuir__dict_records *r, const gpuir__dict_kinds *n) {
  r->column[0] = 0;
  r->column[1] = n->ones * r->width[0];
  r->column[2] = r->column[1] + n->tfs * r->width[1];
  r->column[3] = r->column[2] + n->shorts * r->width[2];
  r->column[4] = r->column[3] + n->shorts * r->width[3];
  r->column[5] = r->column[4] + n->shorts * r->width[4];
  r->column[6] = r->column[5] + n->longs * r->width[5];
  r->column[7] = r->column[6] + (n->ones + n->shorts) * r->width[6];
  r->column[8] = r->column[7] + n->longs * r->width[7];
}

/* Opens the records of an open block. Returns 0 if they end behind its head, or have widths that are none. */
static inline int gpuir__dict_open_records(const gpuir__dict *d, const gpuir__dict_block *b,
                                           gpuir__dict_records *r) {
  const uint8_t *p = b->start + 1;
  uint64_t word = gpuir__load64(p);
  uint32_t i, docs, freqs, positions;
  gpuir__dict_kinds n;
  r->several = (uint32_t)word & gpuir__low_bits(b->n);
  r->second = (uint32_t)word >> 16 & gpuir__low_bits(b->n);
  word >>= 32;
  p += 8;
  r->width[GPUIR__COL_DOCID] = d->form.docid_bits;
  r->width[GPUIR__COL_TF] = gpuir__dict_take(&word, 6);
  r->width[GPUIR__COL_DF] = gpuir__dict_take(&word, 3);
  r->width[GPUIR__COL_DOCS] = gpuir__dict_take(&word, 5);
  r->width[GPUIR__COL_FREQS] = gpuir__dict_take(&word, 5);
  r->width[GPUIR__COL_LONG] = gpuir__dict_take(&word, 6);
  docs = gpuir__dict_take(&word, 2);
  freqs = gpuir__dict_take(&word, 2);
  r->mixed = word & 1;
  word = d->form.positions ? gpuir__load32(p) : 0;
  p += d->form.positions ? 2 : 0;
  r->width[GPUIR__COL_POSITIONS] = gpuir__dict_take(&word, 6);
  r->width[GPUIR__COL_LONG_POSITIONS] = gpuir__dict_take(&word, 6);
  positions = gpuir__dict_take(&word, 3);
  n = gpuir__dict_count(r, gpuir__low_bits(b->n));
  gpuir__dict_layout(r, &n);
  r->base.docs = b->page->docs + gpuir__dict_base(&p, docs);
  r->base.freqs = b->page->freqs + gpuir__dict_base(&p, freqs);
  r->base.longs = b->page->longs + gpuir__dict_base(&p, n.longs != 0);
  r->base.positions = b->page->positions + gpuir__dict_base(&p, positions);
  i = n.shorts + n.longs;
  r->codecs = p;
  r->columns = p + (r->mixed ? i : i != 0);
  return r->columns + (r->column[GPUIR__COLUMNS] + 7) / 8 <= b->lengths && r->width[GPUIR__COL_TF] <= 32 &&
         r->width[GPUIR__COL_LONG] <= 32 && r->width[GPUIR__COL_DOCS] <= 16 &&
         r->width[GPUIR__COL_FREQS] <= 16 && r->width[GPUIR__COL_POSITIONS] <= GPUIR__DICT_POSITIONS_BITS &&
         r->width[GPUIR__COL_LONG_POSITIONS] <= GPUIR__DICT_POSITIONS_BITS;
}

/* Returns number i of a column. */
static inline uint64_t gpuir__dict_number(const gpuir__dict_records *of, unsigned column, uint32_t i) {
  const uint32_t bit = of->column[column] + i * of->width[column];
  return gpuir__load64(of->columns + bit / 8) >> bit % 8 & gpuir__low_bits64(of->width[column]);
}

/* Returns the sum of the first n numbers of a column. */
static inline uint64_t gpuir__dict_sum(const gpuir__dict_records *of, unsigned column, uint32_t n) {
  uint64_t sum = 0;
  uint32_t i;
  for (i = 0; i < n; i++) sum += gpuir__dict_number(of, column, i);
  return sum;
}

/* Fills in the record of the block's term with this bit, which has several postings; n: the terms before it. */
static inline void gpuir__dict_pick_list(const gpuir__dict_records *of, uint32_t bit,
                                         const gpuir__dict_kinds *n, gpuir__record *r) {
  const uint8_t codecs = of->codecs[of->mixed ? n->shorts + n->longs : 0];
  r->codec = codecs & 15;
  r->freq_codec = codecs >> 4;
  if (of->second & bit) {
    const uint64_t df = gpuir__dict_number(of, GPUIR__COL_LONG, n->longs) + GPUIR__SHORT_MAX + 1;
    r->df = df <= UINT32_MAX ? (uint32_t)df : 0;
    r->docs = of->base.longs + n->longs;
  } else {
    r->df = (uint32_t)gpuir__dict_number(of, GPUIR__COL_DF, n->shorts) + 2;
    if (r->df > GPUIR__SHORT_MAX) r->df = 0;
    r->docs = of->base.docs + gpuir__dict_sum(of, GPUIR__COL_DOCS, n->shorts) + n->shorts;
    r->freqs = of->base.freqs + gpuir__dict_sum(of, GPUIR__COL_FREQS, n->shorts) + n->shorts;
    r->docs_len = (uint32_t)gpuir__dict_number(of, GPUIR__COL_DOCS, n->shorts) + 1;
    r->freqs_len = (uint32_t)gpuir__dict_number(of, GPUIR__COL_FREQS, n->shorts) + 1;
  }
}

/* Fills *r with the record of term i of the block; df is 0 where the file is damaged. */
static inline void gpuir__dict_pick(const gpuir__dict *d, const gpuir__dict_records *of, unsigned i,
                                    gpuir__record *r) {
  const uint32_t bit = 1u << i;
  const gpuir__dict_kinds n = gpuir__dict_count(of, bit - 1);
  memset(r, 0, sizeof *r);
  if (of->several & bit) {
    gpuir__dict_pick_list(of, bit, &n, r);
  } else {
    r->df = 1;
    r->docs = gpuir__dict_number(of, GPUIR__COL_DOCID, n.ones);
    r->freqs = of->second & bit ? gpuir__dict_number(of, GPUIR__COL_TF, n.tfs) + 2 : 1;
  }
  if (!d->form.positions) return;
  r->positions = of->base.positions + gpuir__dict_sum(of, GPUIR__COL_POSITIONS, n.ones + n.shorts) +
                 gpuir__dict_sum(of, GPUIR__COL_LONG_POSITIONS, n.longs);
  r->positions_len = of->several & of->second & bit
                         ? gpuir__dict_number(of, GPUIR__COL_LONG_POSITIONS, n.longs)
                         : gpuir__dict_number(of, GPUIR__COL_POSITIONS, n.ones + n.shorts);
}

/* Fills *r with the record of term i of an open block; df is 0 where the file is damaged. */
static void gpuir__dict_record(const gpuir__dict *d, const gpuir__dict_block *b, unsigned i,
                               gpuir__record *r) {
  gpuir__dict_records of;
  if (gpuir__dict_open_records(d, b, &of))
    gpuir__dict_pick(d, &of, i, r);
  else
    memset(r, 0, sizeof *r);
}

/* ---- a block's terms ---- */

/* Returns how many bytes two strings have in common at their start, at most `most`. Reads up to 7 bytes behind. */
static inline size_t gpuir__common(const uint8_t *a, const uint8_t *b, size_t most) {
  size_t i;
  for (i = 0; i < most; i += 8) {
    const uint64_t x = gpuir__load64(a + i) ^ gpuir__load64(b + i);
    if (x) {
      i += gpuir__ctz64(x) / 8;
      break;
    }
  }
  return i < most ? i : most;
}

/* Compares as memcmp does; of a string and its prefix, the prefix is less. */
static int gpuir__compare_bytes(const void *a, size_t an, const void *b, size_t bn) {
  int c = memcmp(a, b, an < bn ? an : bn);
  return c ? c : an < bn ? -1 : an > bn;
}

/* A further term of a block, where its bytes are. */
typedef struct gpuir__dict_step {
  size_t shared; /* bytes of the term before */
  size_t at;     /* in the text: of the bytes behind the first one that is its own */
  size_t rest;   /* how many those are; of the first term, all its bytes */
} gpuir__dict_step;

/* Begins at a block's first term. */
static inline gpuir__dict_step gpuir__dict_first(const gpuir__dict_block *b) {
  gpuir__dict_step s = {0, 0, 0};
  s.rest = b->lengths[0];
  return s;
}

/* Goes to term i > 0 from the one before; 0 if its bytes lie outside the section. */
static inline int gpuir__dict_next(const gpuir__dict_block *b, unsigned i, gpuir__dict_step *s) {
  const unsigned x = b->lengths[i];
  s->at += s->rest;
  s->shared = x & 15;
  s->rest = x >> 4;
  if (GPUIR__UNLIKELY(s->shared == 15 || s->rest == 15)) {
    if (b->limit - s->at < (size_t)(s->shared == 15) + (s->rest == 15)) return 0;
    if (s->shared == 15) s->shared = b->text[s->at++];
    if (s->rest == 15) s->rest = b->text[s->at++];
  }
  return s->rest <= b->limit - s->at;
}

/* Makes term[0..len), the term before, the one at a step, term i > 0; returns its length, or 0 if it has none. */
static inline size_t gpuir__dict_spell(const gpuir__dict_block *b, unsigned i, const gpuir__dict_step *s,
                                       uint8_t term[GPUIR_MAX_TERM + 1], size_t len) {
  uint8_t *p = term + s->shared;
  if (s->shared > len || s->rest >= GPUIR_MAX_TERM - s->shared || s->shared >= GPUIR_MAX_TERM) return 0;
  *p++ = b->firsts[i];
  if (s->rest <= 8 && s->shared + 8 < GPUIR_MAX_TERM)
    gpuir__store64(p, gpuir__load64(b->text + s->at));
  else
    memcpy(p, b->text + s->at, s->rest);
  return s->shared + 1 + s->rest;
}

/* Copies term i of the block, and a NUL behind it, to term[]; returns its length, or 0 where the file is damaged. */
static size_t gpuir__dict_term(const gpuir__dict_block *b, unsigned i, uint8_t term[GPUIR_MAX_TERM + 1]) {
  gpuir__dict_step s = gpuir__dict_first(b);
  size_t len = s.rest;
  unsigned k;
  memcpy(term, b->text, len);
  for (k = 1; k <= i && len; k++)
    len = gpuir__dict_next(b, k, &s) ? gpuir__dict_spell(b, k, &s, term, len) : 0;
  term[len] = 0;
  return len;
}

/* A string that is searched, q[0..n), on its way through a block. Eight zeros stand behind it. */
typedef struct gpuir__dict_seeker {
  const uint8_t *q;
  size_t n;
  size_t same; /* bytes that it has in common with the term before, which is less */
  int found;   /* the term at which the search ended is q */
} gpuir__dict_seeker;

/* Goes by a term that has `same` bytes in common with q, and then `rest` others at p. Returns 1 if it is not less than
 * q, where the search ends. */
static inline int gpuir__dict_ends(gpuir__dict_seeker *x, const uint8_t *p, size_t rest) {
  const size_t left = x->n - x->same;
  const size_t k = gpuir__common(x->q + x->same, p, left < rest ? left : rest);
  x->found = k == rest && k == left;
  if (k == left || (k < rest && x->q[x->same + k] < p[k])) return 1;
  x->same += k;
  return 0;
}

/* Returns the first of the block's terms that is not less than q, or their number if all are. A term that shares more
 * bytes with the one before than that one has in common with q is as much less than q; one that shares less is
 * greater. */
static unsigned gpuir__dict_scan(const gpuir__dict_block *b, gpuir__dict_seeker *x) {
  gpuir__dict_step s = gpuir__dict_first(b);
  unsigned i;
  if (gpuir__dict_ends(x, b->text, s.rest)) return 0;
  for (i = 1; i < b->n; i++) {
    if (!gpuir__dict_next(b, i, &s)) break;
    if (s.shared > x->same || (s.shared == x->same && b->firsts[i] < x->q[x->same])) continue;
    if (s.shared < x->same || b->firsts[i] > x->q[x->same]) break;
    x->same++;
    if (gpuir__dict_ends(x, b->text + s.at, s.rest)) break;
  }
  return i;
}

#if GPUIR__X86
/* The steps to a block's terms, side by side. */
typedef struct gpuir__dict_steps {
  uint16_t at[GPUIR__DICT_BLOCK]; /* relative to where the first term ends */
  uint8_t shared[GPUIR__DICT_BLOCK], rest[GPUIR__DICT_BLOCK];
} gpuir__dict_steps;

/* Fills in the steps one by one; returns how many terms have one. */
static unsigned gpuir__dict_walk(const gpuir__dict_block *b, gpuir__dict_steps *steps) {
  gpuir__dict_step s = gpuir__dict_first(b);
  unsigned i;
  for (i = 1; i < b->n && gpuir__dict_next(b, i, &s); i++) {
    steps->at[i] = (uint16_t)(s.at - b->lengths[0]);
    steps->shared[i] = (uint8_t)s.shared;
    steps->rest[i] = (uint8_t)s.rest;
  }
  return i;
}

/* Fills in the steps; returns how many terms have one. Where all lengths are below 15, places are their sums. */
GPUIR__AVX2 static inline unsigned gpuir__dict_steps_avx2(const gpuir__dict_block *b,
                                                          gpuir__dict_steps *steps) {
  const __m128i low = _mm_set1_epi8(15), lengths = _mm_loadu_si128((const __m128i *)(const void *)b->lengths);
  const __m128i shared = _mm_and_si128(lengths, low), rest = _mm_and_si128(_mm_srli_epi16(lengths, 4), low);
  const uint32_t further = gpuir__low_bits(b->n) & ~1u;
  __m128i at = _mm_andnot_si128(_mm_cvtsi32_si128(255), rest);
  if (((uint32_t)_mm_movemask_epi8(_mm_or_si128(_mm_cmpeq_epi8(shared, low), _mm_cmpeq_epi8(rest, low))) &
       further) ||
      b->limit < 255 + 15 * 14)
    return gpuir__dict_walk(b, steps);
  at = _mm_add_epi8(_mm_slli_si128(at, 1), _mm_slli_si128(at, 2));
  at = _mm_add_epi8(at, _mm_slli_si128(at, 2));
  at = _mm_add_epi8(at, _mm_slli_si128(at, 4));
  at = _mm_add_epi8(at, _mm_slli_si128(at, 8));
  _mm256_storeu_si256((__m256i *)(void *)steps->at, _mm256_cvtepu8_epi16(at));
  _mm_storeu_si128((__m128i *)(void *)steps->shared, shared);
  _mm_storeu_si128((__m128i *)(void *)steps->rest, rest);
  return b->n;
}

/* Does what gpuir__dict_scan does, with all terms of the block compared at once. */
GPUIR__AVX2 static inline unsigned gpuir__dict_scan_avx2(const gpuir__dict_block *b, gpuir__dict_seeker *x) {
  const __m128i firsts = _mm_loadu_si128((const __m128i *)(const void *)b->firsts);
  const uint8_t *text = b->text + b->lengths[0];
  gpuir__dict_steps steps;
  const unsigned n = gpuir__dict_steps_avx2(b, &steps);
  const __m128i shared = _mm_loadu_si128((const __m128i *)(const void *)steps.shared);
  uint32_t left = gpuir__low_bits(n) & ~1u;
  if (gpuir__dict_ends(x, b->text, b->lengths[0])) return 0;
  for (;;) {
    const __m128i same = _mm_set1_epi8((char)x->same), q = _mm_set1_epi8((char)x->q[x->same]);
    const __m128i equal = _mm_cmpeq_epi8(shared, same);
    const __m128i least = _mm_and_si128(equal, _mm_cmpeq_epi8(_mm_max_epu8(firsts, q), firsts));
    const __m128i less = _mm_andnot_si128(equal, _mm_cmpeq_epi8(_mm_max_epu8(shared, same), same));
    const uint32_t stop = left & (uint32_t)_mm_movemask_epi8(_mm_or_si128(least, less));
    unsigned i;
    if (!stop) return n;
    i = gpuir__ctz32(stop);
    if (steps.shared[i] < x->same || b->firsts[i] > x->q[x->same]) return i;
    x->same++;
    if (gpuir__dict_ends(x, text + steps.at[i], steps.rest[i])) return i;
    left &= ~(uint32_t)0 << i << 1;
  }
}
#endif

/* ---- the search tree ---- */

/* Returns the first term of a block (there are so many); *len is 0 where the file is damaged. */
static const uint8_t *gpuir__dict_head(const gpuir__dict *d, uint64_t block, size_t *len) {
  gpuir__dict_block b;
  *len = 0;
  if (!gpuir__dict_open(d, block, &b)) return d->bytes;
  *len = b.lengths[0];
  return b.text;
}

/* Returns the number of the block that child i of a node begins with; `depth` is the node's level. */
static inline uint64_t gpuir__dict_child(const gpuir__dict *d, unsigned depth, uint64_t node, uint64_t i) {
  return (node * GPUIR__DICT_FAN + i) << 4 * (d->levels - 1 - depth);
}

/* Of a node's children whose numbers are that of q, of which the first is `from`, returns the last one that begins with
 * a term that is not greater than q; from - 1 if there is none. */
static unsigned gpuir__dict_tie(const gpuir__dict *d, unsigned depth, uint64_t node, unsigned from,
                                const uint64_t *keys, const gpuir__dict_seeker *x) {
  unsigned to = from + 1;
  while (to < GPUIR__DICT_FAN && keys[to] == keys[from]) to++;
  from--; /* the answer is in [from, to) */
  while (to - from > 1) {
    const unsigned mid = from + (to - from) / 2;
    const uint64_t block = gpuir__dict_child(d, depth, node, mid);
    size_t len = 0;
    const uint8_t *head = block < d->level[d->levels] ? gpuir__dict_head(d, block, &len) : NULL;
    if (head && gpuir__compare_bytes(head, len, x->q, x->n) <= 0)
      from = mid;
    else
      to = mid;
  }
  return from;
}

/* Counts those of a node's numbers that are less than `window`. */
typedef unsigned (*gpuir__dict_less)(const uint64_t *keys, uint64_t window);

GPUIR__INLINE unsigned gpuir__dict_less_scalar(const uint64_t *keys, uint64_t window) {
  unsigned n = 0, i;
  for (i = 1; i < GPUIR__DICT_FAN; i++) n += keys[i] < window;
  return n;
}

/* Returns the last block whose first term is not greater than q, or the first block. */
GPUIR__INLINE uint64_t gpuir__dict_search(const gpuir__dict *d, const gpuir__dict_seeker *x,
                                          gpuir__dict_less less) {
  const uint64_t *level = d->keys;
  uint64_t node = 0;
  unsigned depth;
  for (depth = 0; depth < d->levels; depth++) {
    const uint64_t *keys = level + node * GPUIR__DICT_FAN;
    const size_t skip = keys[0] & 255;
    const uint64_t window = __builtin_bswap64(gpuir__load64(x->q + (skip < x->n ? skip : x->n)));
    unsigned child;
    if (depth + 1 == d->levels) { /* its children are a page of blocks */
      __builtin_prefetch(&d->pages[node]);
      __builtin_prefetch(&d->starts[node * GPUIR__DICT_PAGE]);
    }
    child = less(keys, window);
    if (child + 1 < GPUIR__DICT_FAN && keys[child + 1] == window)
      child = gpuir__dict_tie(d, depth, node, child + 1, keys, x);
    level += d->level[depth] * GPUIR__DICT_FAN;
    node = gpuir__min64(node * GPUIR__DICT_FAN + child, d->level[depth + 1] - 1);
  }
  return node;
}

/* Returns the number of the first term that is not less than q, or the number of terms. */
static uint64_t gpuir__dict_seek_scalar(const gpuir__dict *d, gpuir__dict_seeker *x) {
  const uint64_t block = gpuir__dict_search(d, x, gpuir__dict_less_scalar);
  gpuir__dict_block b;
  return block * GPUIR__DICT_BLOCK + (gpuir__dict_open(d, block, &b) ? gpuir__dict_scan(&b, x) : 0);
}

#if GPUIR__X86
/* Returns a bit for each of four numbers that is less, both with the highest bit turned over. */
GPUIR__AVX2 GPUIR__INLINE unsigned gpuir__dict_less_4(const uint64_t *keys, __m256i window) {
  const __m256i x = _mm256_xor_si256(gpuir__avx2_load(keys), _mm256_set1_epi64x(INT64_MIN));
  return (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(window, x)));
}

GPUIR__AVX2 GPUIR__INLINE unsigned gpuir__dict_less_avx2(const uint64_t *keys, uint64_t window) {
  const __m256i w = _mm256_set1_epi64x((int64_t)(window ^ (uint64_t)1 << 63));
  const unsigned less = gpuir__dict_less_4(keys, w) | gpuir__dict_less_4(keys + 4, w) << 4 |
                        gpuir__dict_less_4(keys + 8, w) << 8 | gpuir__dict_less_4(keys + 12, w) << 12;
  return gpuir__popcount64(less >> 1);
}

GPUIR__AVX2 static uint64_t gpuir__dict_seek_avx2(const gpuir__dict *d, gpuir__dict_seeker *x) {
  const uint64_t block = gpuir__dict_search(d, x, gpuir__dict_less_avx2);
  gpuir__dict_block b;
  return block * GPUIR__DICT_BLOCK + (gpuir__dict_open(d, block, &b) ? gpuir__dict_scan_avx2(&b, x) : 0);
}
#endif

/* Returns the number of the first term that is not less than term[0..len), or the number of terms. *found: it is that
 * term. */
static uint64_t gpuir__dict_find(const gpuir__dict *d, const void *term, size_t len, int *found) {
  uint8_t q[GPUIR_MAX_TERM + 1 +
            8]; /* a byte more than any term has: a longer one is as great as its beginning */
  gpuir__dict_seeker x = {NULL, 0, 0, 0};
  uint64_t at;
  *found = 0;
  if (!d->terms) return 0;
  x.q = q;
  x.n = len < GPUIR_MAX_TERM + 1 ? len : GPUIR_MAX_TERM + 1;
  if (x.n) memcpy(q, term, x.n);
  memset(q + x.n, 0, 8);
#if GPUIR__X86
  if (d->simd >= GPUIR_SIMD_AVX2)
    at = gpuir__dict_seek_avx2(d, &x);
  else
#endif
    at = gpuir__dict_seek_scalar(d, &x);
  *found = x.found;
  return at;
}

/* Returns the 8 bytes of a term from byte `skip` on as a number whose order is theirs. Reads 8 bytes behind it. */
static inline uint64_t gpuir__dict_window(const uint8_t *term, size_t len, size_t skip) {
  const size_t left = len > skip ? len - skip : 0;
  uint64_t v;
  if (!left) return 0;
  v = __builtin_bswap64(gpuir__load64(term + skip));
  return left < 8 ? v >> (64 - 8 * left) << (64 - 8 * left) : v;
}

/* Makes a node of the tree out of the blocks' first terms. */
static void gpuir__dict_node(const gpuir__dict *d, unsigned depth, uint64_t node,
                             uint64_t keys[GPUIR__DICT_FAN]) {
  const uint64_t blocks = d->level[d->levels];
  size_t skip = 0, len, next_len;
  unsigned i;
  if (node && node + 1 < d->level[depth]) {
    const uint8_t *first = gpuir__dict_head(d, gpuir__dict_child(d, depth, node, 0), &len);
    const uint8_t *next = gpuir__dict_head(d, gpuir__dict_child(d, depth, node + 1, 0), &next_len);
    skip = gpuir__common(first, next, len < next_len ? len : next_len);
  }
  keys[0] = skip;
  for (i = 1; i < GPUIR__DICT_FAN; i++) {
    const uint64_t block = gpuir__dict_child(d, depth, node, i);
    const uint8_t *head = block < blocks ? gpuir__dict_head(d, block, &len) : NULL;
    keys[i] = head ? gpuir__dict_window(head, len, skip) : UINT64_MAX;
  }
}

/* ---- encoding ---- */

/* The terms of a block to be: n of them, one behind the other. */
typedef struct gpuir__dict_terms {
  unsigned n;
  size_t fill; /* bytes of text */
  gpuir__record record[GPUIR__DICT_BLOCK];
  uint8_t len[GPUIR__DICT_BLOCK];
  uint8_t text[GPUIR__DICT_BLOCK * GPUIR_MAX_TERM + 8];
} gpuir__dict_terms;

/* Adds a term to less than a block of them. */
static inline void gpuir__dict_add(gpuir__dict_terms *t, const void *term, size_t len,
                                   const gpuir__record *r) {
  memcpy(t->text + t->fill, term, len);
  t->fill += len;
  t->len[t->n] = (uint8_t)len;
  t->record[t->n++] = *r;
}

/* The numbers of a block's columns. */
typedef struct gpuir__dict_numbers {
  uint32_t several, second, mixed;
  uint32_t lists; /* terms with several postings; each one's codecs */
  uint8_t codecs[GPUIR__DICT_BLOCK];
  uint32_t count[GPUIR__COLUMNS];
  uint64_t all[GPUIR__COLUMNS]; /* their bits together */
  uint64_t value[GPUIR__COLUMNS][GPUIR__DICT_BLOCK];
} gpuir__dict_numbers;

static inline void gpuir__dict_column(gpuir__dict_numbers *x, unsigned column, uint64_t value) {
  x->value[column][x->count[column]++] = value;
  x->all[column] |= value;
}

/* Adds a term with several postings to the columns. */
static inline void gpuir__dict_divide_list(gpuir__dict_numbers *x, const gpuir__record *r) {
  x->codecs[x->lists++] = (uint8_t)(r->codec | r->freq_codec << 4);
  x->mixed |= x->codecs[x->lists - 1] != x->codecs[0];
  if (r->df > GPUIR__SHORT_MAX) {
    gpuir__dict_column(x, GPUIR__COL_LONG, r->df - GPUIR__SHORT_MAX - 1);
    return;
  }
  gpuir__dict_column(x, GPUIR__COL_DF, r->df - 2);
  gpuir__dict_column(x, GPUIR__COL_DOCS, r->docs_len - 1);
  gpuir__dict_column(x, GPUIR__COL_FREQS, r->freqs_len - 1);
}

/* Parts records into columns. */
static void gpuir__dict_divide(const gpuir__dict_terms *t, const gpuir__dict_form *form,
                               gpuir__dict_numbers *x) {
  unsigned i;
  memset(x, 0, sizeof *x);
  for (i = 0; i < t->n; i++) {
    const gpuir__record *r = &t->record[i];
    const int is_long = r->df > GPUIR__SHORT_MAX;
    x->several |= (uint32_t)(r->df > 1) << i;
    x->second |= (uint32_t)(r->df > 1 ? is_long : r->freqs > 1) << i;
    if (r->df > 1) {
      gpuir__dict_divide_list(x, r);
    } else {
      gpuir__dict_column(x, GPUIR__COL_DOCID, r->docs);
      if (r->freqs > 1) gpuir__dict_column(x, GPUIR__COL_TF, r->freqs - 2);
    }
    if (form->positions)
      gpuir__dict_column(x, is_long ? GPUIR__COL_LONG_POSITIONS : GPUIR__COL_POSITIONS, r->positions_len);
  }
}

/* Puts a number of w < 64 bits where zeros are. */
static inline void gpuir__dict_put(uint8_t *p, uint32_t *bit, uint64_t value, unsigned w) {
  gpuir__store64(p + *bit / 8, gpuir__load64(p + *bit / 8) | value << *bit % 8);
  *bit += w;
}

/* Puts the columns at p, where zeros are; returns their end. */
static uint8_t *gpuir__dict_put_columns(const gpuir__dict_numbers *x, const gpuir__dict_form *form,
                                        uint8_t *p) {
  uint32_t bit = 0, i;
  unsigned c;
  for (c = 0; c < GPUIR__COLUMNS; c++) {
    const unsigned w = c == GPUIR__COL_DOCID ? form->docid_bits : gpuir__width64(x->all[c]);
    for (i = 0; i < x->count[c]; i++) gpuir__dict_put(p, &bit, x->value[c][i], w);
  }
  return p + (bit + 7) / 8;
}

/* Puts the lengths and the terms at p; returns their end. */
static uint8_t *gpuir__dict_put_terms(const gpuir__dict_terms *t, uint8_t *p) {
  uint8_t *lengths = p, *firsts = p + t->n - 1;
  const uint8_t *text = t->text + t->len[0];
  unsigned i;
  *lengths = t->len[0];
  p += 2 * t->n - 1;
  memcpy(p, t->text, t->len[0]);
  p += t->len[0];
  for (i = 1; i < t->n; i++) {
    const size_t before = t->len[i - 1], len = t->len[i];
    const size_t shared = gpuir__common(text - before, text, (before < len ? before : len) - (before >= len));
    const size_t rest = len - shared - 1;
    firsts[i] = text[shared];
    lengths[i] = (uint8_t)((shared < 15 ? shared : 15) | (rest < 15 ? rest : 15) << 4);
    if (shared >= 15) *p++ = (uint8_t)shared;
    if (rest >= 15) *p++ = (uint8_t)rest;
    memcpy(p, text + shared + 1, rest);
    p += rest;
    text += len;
  }
  return p;
}

/* Puts a base and returns how many bytes it takes. */
static inline uint32_t gpuir__dict_put_base(uint8_t **p, uint64_t base) {
  const uint32_t bytes = (gpuir__width64(base) + 7) / 8;
  gpuir__store64(*p, base);
  *p += bytes;
  return bytes;
}

/* Puts what stands before the columns, and returns its end, where zeros are. */
static uint8_t *gpuir__dict_put_head(const gpuir__dict_numbers *x, const gpuir__dict_form *form,
                                     const gpuir__dict_page *page, const gpuir__dict_page *now,
                                     uint8_t *out) {
  uint8_t *p = out + 9 + (form->positions ? 2 : 0);
  uint32_t bit = 8, bytes, i;
  gpuir__dict_put(out, &bit, x->several, 16);
  gpuir__dict_put(out, &bit, x->second, 16);
  gpuir__dict_put(out, &bit, gpuir__width64(x->all[GPUIR__COL_TF]), 6);
  gpuir__dict_put(out, &bit, gpuir__width64(x->all[GPUIR__COL_DF]), 3);
  gpuir__dict_put(out, &bit, gpuir__width64(x->all[GPUIR__COL_DOCS]), 5);
  gpuir__dict_put(out, &bit, gpuir__width64(x->all[GPUIR__COL_FREQS]), 5);
  gpuir__dict_put(out, &bit, gpuir__width64(x->all[GPUIR__COL_LONG]), 6);
  gpuir__dict_put(out, &bit, gpuir__dict_put_base(&p, now->docs - page->docs), 2);
  gpuir__dict_put(out, &bit, gpuir__dict_put_base(&p, now->freqs - page->freqs), 2);
  gpuir__dict_put(out, &bit, x->mixed, 3);
  if (x->count[GPUIR__COL_LONG]) *p++ = (uint8_t)(now->longs - page->longs);
  if (form->positions) {
    bytes = gpuir__dict_put_base(&p, now->positions - page->positions);
    gpuir__store32(out + 9, gpuir__load32(out + 9) | gpuir__width64(x->all[GPUIR__COL_POSITIONS]) |
                                gpuir__width64(x->all[GPUIR__COL_LONG_POSITIONS]) << 6 | bytes << 12);
  }
  for (i = 0; i < (x->mixed ? x->lists : x->lists != 0); i++) *p++ = x->codecs[i];
  return p;
}

/* Encodes a block, which begins at *now, of a page; *now becomes the place of the next one. Of records, only what the
 * block keeps is heeded. Returns the bytes that it takes. Writes 8 bytes more. */
static size_t gpuir__dict_encode(const gpuir__dict_terms *t, const gpuir__dict_form *form,
                                 const gpuir__dict_page *page, gpuir__dict_page *now,
                                 uint8_t out[GPUIR__DICT_MOST + 8]) {
  gpuir__dict_numbers x;
  uint8_t *p;
  uint32_t i;
  gpuir__dict_divide(t, form, &x);
  memset(out, 0, GPUIR__DICT_HEAD + 8);
  p = gpuir__dict_put_columns(&x, form, gpuir__dict_put_head(&x, form, page, now, out));
  out[0] = (uint8_t)(p - out);
  p = gpuir__dict_put_terms(t, p);
  for (i = 0; i < x.count[GPUIR__COL_DOCS]; i++) {
    now->docs += x.value[GPUIR__COL_DOCS][i] + 1;
    now->freqs += x.value[GPUIR__COL_FREQS][i] + 1;
  }
  for (i = 0; i < x.count[GPUIR__COL_POSITIONS]; i++) now->positions += x.value[GPUIR__COL_POSITIONS][i];
  for (i = 0; i < x.count[GPUIR__COL_LONG_POSITIONS]; i++)
    now->positions += x.value[GPUIR__COL_LONG_POSITIONS][i];
  now->longs += x.count[GPUIR__COL_LONG];
  now->start += (uint64_t)(p - out);
  return (size_t)(p - out);
}

/* ============================================================================
 * [12-writer]  index file: layout and writer
 *
 *   header (64 bytes) | section table (32 bytes each) | sections
 *
 * Each section starts 64-byte aligned and is followed by at least 64 bytes of zeros, so that
 * decoders may read past its end. The header holds a checksum of the table, the table one of each
 * section. A reader skips sections that it does not know, unless they are marked as required.
 *
 * Uses      [01-base], [10-encoder] (its batches).
 * Start at  gpuir__writer_create, gpuir__writer_put_batch, gpuir__writer_finish.
 * Tests     tests/unit/12_writer.c
 * ==========================================================================*/

#define GPUIR__FORMAT 2u
#define GPUIR__ALIGN 64u
#define GPUIR__MAX_SECTIONS 256u
#define GPUIR__MAX_DOCUMENTS 0xfffffffeu /* docIDs stay below GPUIR_END */
#define GPUIR__REQUIRED 1u               /* section flag */
#define GPUIR__ORDER_MAX 63u             /* bytes of an order's name */
#define GPUIR__JOINED_MAX 256u           /* bytes of a name that begins as its source's path ends */

typedef struct gpuir__header {
  uint8_t magic[8];
  uint32_t format, sections;
  uint64_t file_size;
  uint64_t table_hash; /* XXH3 of the section table */
  uint64_t zero[3];
  uint64_t hash; /* XXH3 of the 56 bytes above */
} gpuir__header;

/* What the manifest of a live index begins with: see [25-folder]. */
static const uint8_t gpuir__manifest_magic[8] = {'G', 'P', 'U', 'I', 'R', 'L', 0x0a, 0x1a};

static const uint8_t gpuir__magic[8] = {'G', 'P', 'U', 'I', 'R', 0x0d, 0x0a, 0x1a};

typedef struct gpuir__section {
  uint32_t id, flags;
  uint64_t offset, length;
  uint64_t hash; /* XXH3 of its bytes */
} gpuir__section;

/* The sections, a row each, in the order of the file. From this table are made the ids GPUIR__S_*, the writer's spools
 * GPUIR__W_* and its plan of the file, the reader's pointers, the sums of gpuir_index_get_info, and the offsets that
 * gpuir_verify follows. The columns of a row are
 *
 *     id        the number in the file, never used again for another section
 *     name      of GPUIR__S_<name> and GPUIR__W_<name>
 *     presence  GPUIR__P_<presence>: when the writer writes it, and whether a reader must know it
 *     batch     the buffer of gpuir__batch that the writer appends as it is; 0: the writer makes the bytes
 *     item      the type of an item
 *     items     GPUIR__N_<items>: how many items there must be
 *     group     GPUIR__G_<group>: the sum of gpuir_index_info that its bytes belong to
 *     field     the member of gpuir__segment that points to its items; 0: it is found by its id
 *
 * and the sections hold
 *
 *     STAT, META                  gpuir__stat; text, lines of key=value
 *     TERMS                       the blocks of the dictionary: terms, sorted, and their records; see [11b-dictionary]
 *     TERM_PAGES, TERM_STARTS     where its pages begin; where each block does, relative to its page
 *     TERM_KEYS                   the nodes of its search tree
 *     LONGS                       a gpuir__long a long list
 *     LAST                        a block's last docID
 *     DOCS_OFF, DOCS_WIDTH        where a block's docIDs start in the list, in the codec's unit; their width
 *     FREQS_OFF, FREQS_WIDTH      the same of its frequencies
 *     BOUNDS                      GPUIR__BLOCK_PAIRS pairs a block
 *     SEEDS                       GPUIR__SEEDS items a list of over GPUIR__WHOLE postings
 *     DOCIDS, FREQS               the streams of docIDs and of frequencies, the long lists first
 *     LENGTHS                     a document's length in tokens
 *     NAMES, NAME_START           the documents' names, or what is behind their stems; where each starts, and the end
 *     ORIGINS                     where a document comes from: rows of columns, see gpuir__origin
 *     SOURCES, SOURCE_START       the sources' paths; where each starts, and the end
 *     TEXT, TEXT_START            the documents' text; where each starts, and the end
 *     STEMS                       an item a source, see gpuir__join_name; absent if all are 0
 *     POSITIONS, POS_OFF          the lists' positions; where each block's begin, in units of 4 bytes from the list's
 *     HASHES                      a document's gpuir_doc.hash
 *
 * Sections of starts have numbers of as many whole bytes as the length of the section that they divide, at least 1.
 *
 * A section is added by a row at the end, and by code of the writer that puts its bytes in its spool. Its presence is
 * HINT or a new one, so that indexes without it can be read. */
/* clang-format off */
#define GPUIR__SECTIONS(ROW, FROM, AT) \
  ROW( 1, STAT,         ALWAYS,  0,                 gpuir__stat,   ONE,         NONE,       0) \
  ROW( 2, META,         ALWAYS,  0,                 char,          ANY,         NONE,       0) \
  ROW( 3, TERMS,        ALWAYS,  0,                 uint8_t,       ANY,         DICTIONARY, AT(terms.bytes)) \
  ROW( 4, TERM_PAGES,   ALWAYS,  0,                 gpuir__dict_page, TERM_PAGES, DICTIONARY, AT(terms.pages)) \
  ROW( 5, TERM_STARTS,  ALWAYS,  0,                 uint16_t,      TERM_BLOCKS, DICTIONARY, AT(terms.starts)) \
  ROW( 6, TERM_KEYS,    ALWAYS,  0,                 uint64_t,      TERM_KEYS,   DICTIONARY, AT(terms.keys)) \
  ROW( 8, LONGS,        ALWAYS,  0,                 gpuir__long,   LONGS,       DIRECTORY,  AT(lists.longs)) \
  ROW( 9, LAST,         ALWAYS,  FROM(last),        uint32_t,      BLOCKS,      DIRECTORY,  AT(lists.last)) \
  ROW(10, DOCS_OFF,     ALWAYS,  FROM(docs_off),    uint32_t,      BLOCKS,      DIRECTORY,  AT(lists.docs_off)) \
  ROW(11, DOCS_WIDTH,   ALWAYS,  FROM(docs_width),  uint8_t,       BLOCKS,      DIRECTORY,  AT(lists.docs_width)) \
  ROW(12, FREQS_OFF,    ALWAYS,  FROM(freqs_off),   uint32_t,      BLOCKS,      DIRECTORY,  AT(lists.freqs_off)) \
  ROW(13, FREQS_WIDTH,  ALWAYS,  FROM(freqs_width), uint8_t,       BLOCKS,      DIRECTORY,  AT(lists.freqs_width)) \
  ROW(14, BOUNDS,       ALWAYS,  FROM(bounds),      uint32_t,      BLOCKS,      DIRECTORY,  AT(lists.bounds)) \
  ROW(15, SEEDS,        HINT,    FROM(seeds),       uint32_t,      ANY,         DIRECTORY,  AT(lists.seeds)) \
  ROW(16, DOCIDS,       ALWAYS,  FROM(docs_long),   uint8_t,       ANY,         DOCIDS,     AT(lists.docids)) \
  ROW(17, FREQS,        ALWAYS,  FROM(freqs_long),  uint8_t,       ANY,         FREQS,      AT(lists.freqs)) \
  ROW(18, LENGTHS,      ALWAYS,  0,                 uint32_t,      DOCUMENTS,   DOCUMENTS,  AT(lengths)) \
  ROW(19, NAMES,        ALWAYS,  0,                 char,          ANY,         DOCUMENTS,  0) \
  ROW(20, NAME_START,   ALWAYS,  0,                 uint8_t,       DOC_ENDS,    DOCUMENTS,  0) \
  ROW(21, ORIGINS,      ORIGINS, 0,                 uint8_t,       ANY,         DOCUMENTS,  0) \
  ROW(22, SOURCES,      ORIGINS, 0,                 char,          ANY,         DOCUMENTS,  0) \
  ROW(23, SOURCE_START, ORIGINS, 0,                 uint8_t,       SOURCE_ENDS, DOCUMENTS,  0) \
  ROW(24, TEXT,         TEXT,    0,                 char,          ANY,         TEXT,       0) \
  ROW(25, TEXT_START,   TEXT,    0,                 uint8_t,       DOC_ENDS,    TEXT,       0) \
  ROW(26, STEMS,        STEMS,   0,                 uint32_t,      ANY,         DOCUMENTS,  0) \
  ROW(27, POSITIONS,    POSITIONS, FROM(positions), uint8_t,       ANY,         POSITIONS,  AT(lists.positions)) \
  ROW(28, POS_OFF,      POSITIONS, FROM(positions_off), uint32_t,  BLOCKS,      POSITIONS,  AT(lists.positions_off)) \
  ROW(29, HASHES,       HASHES,  0,                 uint64_t,      DOCUMENTS,   DOCUMENTS,  0)
/* clang-format on */

#define GPUIR__SECTION_ID(id, name, presence, batch, item, items, group, field) GPUIR__S_##name = (id),
enum {
  GPUIR__SECTIONS(GPUIR__SECTION_ID, , ) /* and behind the greatest: */
  GPUIR__S_COUNT
};

/* When a section is written. The reader refuses an index that lacks one that is written always. */
enum {
  GPUIR__P_ALWAYS,    /* required */
  GPUIR__P_HINT,      /* written always; a reader can do without it */
  GPUIR__P_ORIGINS,   /* when a document has a source; a reader can do without it */
  GPUIR__P_HASHES,    /* when a document's hash is known; a reader can do without it */
  GPUIR__P_TEXT,      /* when texts are stored, which the meta section says too; required */
  GPUIR__P_STEMS,     /* when a name is joined to a stem; required, as names are wrong without it */
  GPUIR__P_POSITIONS, /* when positions were asked for; required */
  GPUIR__P_COUNT
};

/* How many items a section has. */
enum {
  GPUIR__N_ANY,        /* any number */
  GPUIR__N_ONE,        /* 1 */
  GPUIR__N_TERM_PAGES, /* one a page of the dictionary, a block of it; GPUIR__DICT_FAN a node of its tree */
  GPUIR__N_TERM_BLOCKS,
  GPUIR__N_TERM_KEYS,
  GPUIR__N_LONGS,  /* one a list of over GPUIR__SHORT_MAX postings */
  GPUIR__N_BLOCKS, /* one a block of such a list */
  GPUIR__N_DOCUMENTS,
  GPUIR__N_DOC_ENDS,   /* offsets into the section of the row before: one a document, and the end */
  GPUIR__N_SOURCE_ENDS /* the same, one a source */
};

/* The sums of sections' bytes in gpuir_index_info. */
enum {
  GPUIR__G_NONE,
  GPUIR__G_DICTIONARY,
  GPUIR__G_DIRECTORY,
  GPUIR__G_DOCIDS,
  GPUIR__G_FREQS,
  GPUIR__G_DOCUMENTS,
  GPUIR__G_TEXT,
  GPUIR__G_POSITIONS,
  GPUIR__G_COUNT
};

typedef struct gpuir__stat {
  uint64_t documents, terms, postings, tokens;
  uint64_t longs, blocks;
  uint64_t inline_postings;
  uint64_t docs_short, freqs_short; /* where the short lists start in the stream sections */
  float k1, b;
  uint64_t zero;
} gpuir__stat;

/* The columns of a row of the origins. The section begins with 8 bytes, the width of each column in bytes and zeros; a
 * row a document follows. */
enum {
  GPUIR__O_SOURCE, /* index + 1; 0: none */
  GPUIR__O_LINE,   /* first_line */
  GPUIR__O_LINES,  /* last_line - first_line */
  GPUIR__O_OFFSET,
  GPUIR__O_BYTES,
  GPUIR__O_COUNT
};
#define GPUIR__ORIGINS_HEAD 8u

typedef struct gpuir__origin {
  uint64_t of[GPUIR__O_COUNT];
} gpuir__origin;

/* Returns the bytes that numbers of at most `most` take. */
static inline unsigned gpuir__number_width(uint64_t most) { return (gpuir__width64(most) + 7) / 8; }

/* Returns the bytes that a number takes which divides a section of this length. */
static inline unsigned gpuir__start_width(uint64_t length) {
  return length ? gpuir__number_width(length) : 1;
}

/* Loads a number of `width` <= 8 bytes; 8 are read. */
static inline uint64_t gpuir__load_number(const uint8_t *p, unsigned width) {
  return gpuir__load64(p) & (width < 8 ? gpuir__low_bits64(8 * width) : UINT64_MAX);
}

/* The lists' streams, and the directory of the long ones. */
typedef struct gpuir__index_lists {
  const gpuir__long *longs;
  const uint32_t *last, *docs_off, *freqs_off;
  const uint8_t *docs_width, *freqs_width;
  const uint32_t *bounds;
  const uint32_t *seeds; /* NULL: absent */
  uint64_t nseeds;       /* lists that have seeds */
  const uint8_t *docids, *freqs;
  const uint8_t *positions; /* NULL: absent */
  const uint32_t *positions_off;
} gpuir__index_lists;

/* What the meta section says; "" where it says nothing. */
typedef struct gpuir__index_meta {
  char *text; /* NUL-terminated strings, pointed to below */
  size_t text_size;
  const char *analyzer_spec, *analyzer_revision, *stop_words, *fields, *codec, *freq_codec, *tool,
      *description, *order, *store, *positions;
} gpuir__index_meta;

/* How queries become terms. */
typedef struct gpuir__index_analysis {
  gpuir_tokenize_fn tokenize;
  void *tokenize_user;
  gpuir__pool *pool; /* of analyzers */
} gpuir__index_analysis;

/* How many of a term's postings are of deleted documents. */
typedef struct gpuir__log_count {
  uint32_t id;      /* of the term, plus 1; 0: a free entry */
  uint32_t n;       /* of the log's first n documents */
  uint32_t deleted; /* postings */
} gpuir__log_count;

/* Documents deleted from a segment, in order of deletion. It only grows, and what is in it never moves: each snapshot
 * has the first so many of it, see gpuir__deleted. */
#define GPUIR__LOG_CHUNKS 26u
typedef struct gpuir__log {
  pthread_mutex_t mutex; /* guards all but what chunks point to */
  uint32_t n;
  uint32_t *chunk[GPUIR__LOG_CHUNKS]; /* [i] 64 << i docIDs, or NULL */
  gpuir__log_count *counts; /* [mask + 1] by term; one that comes takes another's place. NULL: n is 0 */
  uint32_t mask;
  uint64_t decoded; /* blocks, to count postings; the tests look at it */
} gpuir__log;

/* One mapped file; docIDs count from 0 in it. */
typedef struct gpuir__segment {
  gpuir_allocator a;
  uint64_t refs;      /* snapshots that have it, counted atomically */
  int simd;           /* resolved level */
  const uint8_t *map; /* the file's bytes */
  uint64_t size;
  int mapped;    /* 0: the caller's memory */
  char path[84]; /* its end, for messages */
  const gpuir__section *table;
  uint32_t nsections;
  const gpuir__section *section[GPUIR__S_COUNT]; /* NULL: absent */
  gpuir__stat stat;
  gpuir__dict terms;
  gpuir__index_lists lists;
  const uint32_t *lengths; /* [docID] */
  gpuir__index_meta meta;
  uint64_t number; /* in a live index's folder; 0: a file by itself */
  gpuir__log log;
} gpuir__segment;

/* The documents deleted from a segment, as snapshots share them. */
typedef struct gpuir__deleted {
  gpuir_allocator a;
  uint64_t refs;   /* snapshots that have them, counted atomically */
  uint32_t n;      /* the first n of the segment's log, n > 0 */
  uint64_t tokens; /* their lengths */
  uint64_t words;
  uint64_t bits[1]; /* [words] a bit a document */
} gpuir__deleted;

/* A segment as a snapshot has it. */
typedef struct gpuir__leaf {
  gpuir__segment *seg;
  gpuir__deleted *deleted; /* NULL: none */
  uint32_t base;           /* the snapshot's number of its first document */
} gpuir__leaf;

typedef struct gpuir__saturation gpuir__saturation; /* see [13b-snapshot] */

/* An immutable snapshot: segments, whose documents follow one another, and what they come to together. */
struct gpuir_index {
  uint32_t layout; /* gpuir__index_layout(), the first member in every version */
  gpuir_allocator a;
  int simd; /* resolved level */
  char path[84];
  gpuir__leaf *leaves; /* [nleaves] at least one */
  size_t nleaves;
  gpuir__leaf only;             /* leaves[0] of a snapshot of one segment */
  gpuir_index *alone;           /* [nleaves] each segment as an index of its own; NULL: this is one */
  uint64_t documents, tokens;   /* live ones */
  uint64_t docids;              /* the least number that no document has had */
  uint64_t generation, content; /* of a live index's manifest; 0: not of one */
  double average_length;
  gpuir__norm norm;              /* of the stored k1 and b */
  gpuir__saturation *saturation; /* of the same, see gpuir__index_saturation; NULL until it is needed */
  gpuir__index_analysis analysis;
};

/* The CUDA backend has a copy of the implementation and reads structures that the program's copy made. Their first
 * member is a number of the version and of the structures' shape, by which it refuses another header's. */
#define GPUIR__LAYOUT(size, place, other)                                                    \
  (((GPUIR_VERSION_NUMBER * 8191u + (uint32_t)(size)) * 8191u + (uint32_t)(place)) * 8191u + \
   (uint32_t)(other))

static inline uint32_t gpuir__index_layout(void) {
  return GPUIR__LAYOUT(sizeof(gpuir_index) + sizeof(gpuir__segment), offsetof(gpuir__segment, lengths),
                       sizeof(gpuir__list));
}

/* A row of GPUIR__SECTIONS. */
typedef struct gpuir__section_row {
  uint32_t id, presence, items, group;
  size_t item_size;
  size_t batch; /* 1 + the buffer's offset in gpuir__batch, or 0 */
  size_t field; /* the member's offset in gpuir__segment, or 0 */
} gpuir__section_row;

#define GPUIR__SECTION_FROM(buffer) (1 + offsetof(gpuir__batch, buffer))
#define GPUIR__SECTION_AT(field) offsetof(gpuir__segment, field)
#define GPUIR__SECTION_ROW(id, name, presence, batch, item, items, group, field) \
  {id, GPUIR__P_##presence, GPUIR__N_##items, GPUIR__G_##group, sizeof(item), batch, field},
static const gpuir__section_row gpuir__section_rows[] = {
    GPUIR__SECTIONS(GPUIR__SECTION_ROW, GPUIR__SECTION_FROM, GPUIR__SECTION_AT)};
#define GPUIR__SECTION_ROWS ((unsigned)(sizeof gpuir__section_rows / sizeof gpuir__section_rows[0]))

/* ---- the writer ---- */

#define GPUIR__TMP_SOURCES 999u /* number of the temporary file that the table of sources may be */

/* The spools, a temporary file each: one of each section, numbered by its row, with these exceptions. That of
 * TERM_KEYS stays empty: the tree is made in place. The streams' sections have two: the short lists go behind all long
 * ones. */
#define GPUIR__SECTION_SPOOL(id, name, presence, batch, item, items, group, field) GPUIR__W_##name,
enum {
  GPUIR__SECTIONS(GPUIR__SECTION_SPOOL, , ) /* and of short lists: */
  GPUIR__W_DOCIDS_SHORT,
  GPUIR__W_FREQS_SHORT,
  GPUIR__W_COUNT
};

/* The dictionary as far as it is written. */
typedef struct gpuir__writer_terms {
  gpuir__dict_terms block; /* terms that wait until they are a block */
  uint64_t blocks;
  gpuir__dict_form form;
  gpuir__dict_page page, now; /* of the last block; of the next one */
} gpuir__writer_terms;

/* The source of the last document that had one. */
typedef struct gpuir__recent {
  gpuir__buf path;
  uint32_t number, stem; /* from 1; 0: none */
} gpuir__recent;

/* Bytes on their way to the file, so that small sections go there together. */
#define GPUIR__AHEAD ((size_t)1 << 18)
typedef struct gpuir__ahead {
  uint8_t *buf; /* GPUIR__AHEAD bytes */
  uint64_t at;  /* where its first byte goes */
  size_t fill;
} gpuir__ahead;

typedef struct gpuir__writer {
  gpuir_allocator a;
  char *path, *tmp, *folder; /* PATH, or the target of the link that it is; PATH.tmp; the folder of both */
  size_t path_size, tmp_size, folder_size;
  int fd;      /* of PATH.tmp, locked */
  mode_t mode; /* of a new index: 0666 without the umask's bits */
  int shared;  /* other users may write the folder, and so replace the index */
  int hostile; /* all users may make files in it */
  int placed; /* `fd` is of the new file PATH itself, whose owner publishes it; PATH.tmp only names temporary files */
  gpuir__spool spool[GPUIR__W_COUNT];
  gpuir__stat stat;
  gpuir__writer_terms terms;
  uint64_t nlengths, nsources;
  int has[GPUIR__P_COUNT]; /* whether sections of this presence are written */
  gpuir__recent recent;
  gpuir__origin origins; /* of each column, all ones of its numbers */
  gpuir__area table;     /* gpuir__source_slot, by hash */
  uint64_t slots, most;  /* of the table: a power of two, or 0; bytes that are not mapped */
  void *lengths_map;
  gpuir__ahead ahead;
} gpuir__writer;

/* A source that is stored: a path, and where in it names begin. */
typedef struct gpuir__source_slot {
  uint64_t start; /* in the paths */
  uint32_t len, stem;
  uint32_t number; /* from 1; 0: a free slot */
  uint32_t hash;
} gpuir__source_slot;

/* Slots that a look-up reads from the hash on. A source that finds none of them free is stored, but not found again. */
#define GPUIR__SOURCE_PROBES 256u

/* Tells the writer what it cannot derive from documents and lists. */
typedef struct gpuir__meta {
  const char *analyzer, *stop_words, *codec, *freq_codec, *description, *order;
  float k1, b;
  int store, positions; /* documents carry their text; lists their positions */
} gpuir__meta;

static void gpuir__writer_destroy(gpuir__writer *w) {
  gpuir_allocator a;
  unsigned i;
  if (!w) return;
  a = w->a;
  if (w->lengths_map) (void)munmap(w->lengths_map, (size_t)w->nlengths * 4);
  for (i = 0; i < GPUIR__W_COUNT; i++) gpuir__spool_close(&w->spool[i]);
  if (w->fd >= 0) { /* finish closes it; so this build failed */
    if (!w->placed && gpuir__is_file(w->fd, w->tmp) == 1) (void)unlink(w->tmp);
    (void)close(w->fd);
  }
  gpuir__buf_free(&a, &w->recent.path);
  gpuir__area_free(&a, &w->table);
  gpuir__free(&a, w->path, w->path_size);
  gpuir__free(&a, w->tmp, w->tmp_size);
  gpuir__free(&a, w->folder, w->folder_size);
  gpuir__free(&a, w, sizeof *w);
}

/* Locks the open file PATH.tmp. 0, BUSY if a build holds the lock, IO. */
static int gpuir__writer_flock(const gpuir__writer *w, int fd, gpuir_error *err) {
  if (!flock(fd, LOCK_EX | LOCK_NB)) return GPUIR_OK;
  if (errno != EWOULDBLOCK) return gpuir__fail_errno(err, w->tmp, "cannot lock");
  return gpuir__fail(err, GPUIR_E_BUSY, 0, "%s: another process is building this index",
                     gpuir__tail(w->path));
}

/* Removes the file PATH.tmp unless a build holds its lock. 0 also if the name has gone meanwhile. */
static int gpuir__writer_remove_unlocked(const gpuir__writer *w, gpuir_error *err) {
  const int fd = open(w->tmp, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  int status, same;
  if (fd < 0)
    return errno == ENOENT || errno == ELOOP ? GPUIR_OK : gpuir__fail_errno(err, w->tmp, "cannot open");
  status = gpuir__writer_flock(w, fd, err);
  same = status ? 0 : gpuir__is_file(fd, w->tmp);
  if (same < 0 || (same && unlink(w->tmp) && errno != ENOENT))
    status = gpuir__fail_errno(err, w->tmp, "cannot remove");
  (void)close(fd);
  return status;
}

/* Removes what stands under PATH.tmp: what a killed build left, or what somebody else put there. Neither is written
 * to, no link is followed, and the file of another user is left alone, as a build of that user may be running. */
static int gpuir__writer_remove_leftover(const gpuir__writer *w, gpuir_error *err) {
  struct stat st;
  if (lstat(w->tmp, &st)) return errno == ENOENT ? GPUIR_OK : gpuir__fail_errno(err, w->tmp, "cannot stat");
  if (!S_ISREG(st.st_mode)) { /* a link, a pipe ... */
    if (unlink(w->tmp) && errno != ENOENT) return gpuir__fail_errno(err, w->tmp, "cannot remove");
    return GPUIR_OK;
  }
  if (st.st_uid != geteuid())
    return gpuir__fail(err, GPUIR_E_IO, 0, "%s: belongs to another user; remove it if no build is running",
                       gpuir__tail(w->tmp));
  return gpuir__writer_remove_unlocked(w, err);
}

/* Makes and locks PATH.tmp. Another build may take the name between the two, so both are tried a few times. */
static int gpuir__writer_lock(gpuir__writer *w, gpuir_error *err) {
  unsigned tries;
  for (tries = 0; tries < GPUIR__TRIES; tries++) {
    int status = GPUIR_OK, same;
    w->fd = open(w->tmp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (w->fd < 0) {
      if (errno != EEXIST) return gpuir__fail_errno(err, w->tmp, "cannot create");
      status = gpuir__writer_remove_leftover(w, err);
      if (status) return status;
      continue;
    }
    status = gpuir__writer_flock(w, w->fd, err);
    same = status ? 0 : gpuir__is_file(w->fd, w->tmp);
    if (same < 0) status = gpuir__fail_errno(err, w->tmp, "cannot stat");
    if (same == 1 || status == GPUIR_E_IO) return status; /* gpuir__writer_destroy removes the new file */
    (void)close(w->fd);
    w->fd = -1;
    if (status) return status;
  }
  return gpuir__fail(err, GPUIR_E_BUSY, 0, "%s: another process keeps taking this name", gpuir__tail(w->tmp));
}

/* Fails if w->folder is that of a live index, whose files nobody else may replace. */
static int gpuir__writer_check_folder(const gpuir__writer *w, gpuir_error *err) {
  uint8_t magic[sizeof gpuir__manifest_magic];
  size_t size;
  char *name = gpuir__concat(&w->a, w->folder, strlen(w->folder), "/manifest", 9, &size);
  int fd, status = GPUIR_OK;
  if (!name) return gpuir__fail_nomem(err);
  fd = open(name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd >= 0 && !gpuir__pread_all(fd, magic, sizeof magic, 0) &&
      !memcmp(magic, gpuir__manifest_magic, sizeof magic))
    status =
        gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "%s: lies in the folder of a live index", gpuir__tail(w->path));
  if (fd >= 0) (void)close(fd);
  gpuir__free(&w->a, name, size);
  return status;
}

/* Refuses a device and a pipe, whose place renaming would take, and a folder, for which it fails after all the work. */
static int gpuir__writer_check_path(const char *path, gpuir_error *err) {
  struct stat st;
  if (stat(path, &st) || S_ISREG(st.st_mode)) return GPUIR_OK;
  return gpuir__fail(err, GPUIR_E_IO, 0, "%s: %s", gpuir__tail(path),
                     S_ISDIR(st.st_mode) ? "a folder, not a file" : "not a regular file");
}

/* Makes w->path the name of what a link at PATH leads to, so that the link stays when its target is replaced. The
 * links of other users are not followed: they would choose the file that this process replaces. */
static int gpuir__writer_follow(gpuir__writer *w, gpuir_error *err) {
  char target[4096], *path;
  unsigned hops;
  for (hops = 0; hops < 40; hops++) { /* as many as Linux follows */
    const char *slash = strrchr(w->path, '/');
    struct stat st;
    ssize_t n;
    size_t size;
    if (lstat(w->path, &st) || !S_ISLNK(st.st_mode))
      return GPUIR_OK; /* what is wrong shows when it is opened */
    if (st.st_uid != geteuid() && st.st_uid != 0)
      return gpuir__fail(err, GPUIR_E_IO, 0, "%s: a link that another user made is not followed",
                         gpuir__tail(w->path));
    n = readlink(w->path, target, sizeof target);
    if (n < 0) return gpuir__fail_errno(err, w->path, "cannot read the link");
    if ((size_t)n == sizeof target)
      return gpuir__fail(err, GPUIR_E_IO, 0, "%s: a link that is too long", gpuir__tail(w->path));
    path = gpuir__concat(&w->a, w->path, slash && target[0] != '/' ? (size_t)(slash - w->path) + 1 : 0,
                         target, (size_t)n, &size);
    if (!path) return gpuir__fail_nomem(err);
    gpuir__free(&w->a, w->path, w->path_size);
    w->path = path;
    w->path_size = size;
  }
  return gpuir__fail(err, GPUIR_E_IO, 0, "%s: too many links", gpuir__tail(w->path));
}

/* Derives the names PATH.tmp and that of the folder, and looks who may write there: all users, or a group that is not
 * the process's own. In a folder with the sticky bit nobody replaces the files of others. */
static int gpuir__writer_name(gpuir__writer *w, const char *path, gpuir_error *err) {
  const char *slash;
  struct stat st;
  int status;
  w->path = gpuir__concat(&w->a, path, strlen(path), "", 0, &w->path_size);
  if (!w->path) return gpuir__fail_nomem(err);
  status = gpuir__writer_follow(w, err);
  if (status) return status;
  slash = strrchr(w->path, '/');
  w->tmp = gpuir__concat(&w->a, w->path, strlen(w->path), ".tmp", 4, &w->tmp_size);
  w->folder = slash ? gpuir__concat(&w->a, w->path, (size_t)(slash - w->path) + 1, "", 0, &w->folder_size)
                    : gpuir__concat(&w->a, ".", 1, "", 0, &w->folder_size);
  if (!w->tmp || !w->folder) return gpuir__fail_nomem(err);
  if (!stat(w->folder, &st)) {
    w->hostile = (st.st_mode & S_IWOTH) != 0;
    w->shared = (w->hostile || (st.st_mode & S_IWGRP && st.st_gid != getegid())) && !(st.st_mode & 01000);
  }
  status = gpuir__writer_check_path(w->path, err);
  return status ? status : gpuir__writer_check_folder(w, err);
}

/* Notes the mode that the folder and the umask give a new file, and hides PATH.tmp from others where an index that
 * they may not read is being replaced. */
static int gpuir__writer_hide(gpuir__writer *w, gpuir_error *err) {
  struct stat st;
  if (fstat(w->fd, &st)) return gpuir__fail_errno(err, w->tmp, "cannot stat");
  w->mode = st.st_mode & 0777;
  if (!stat(w->path, &st) && fchmod(w->fd, 0600))
    return gpuir__fail_errno(err, w->tmp, "cannot change the mode");
  return GPUIR_OK;
}

/* Gives PATH.tmp the mode of the index that it replaces, and its owner and group where the system allows it. Where the
 * group does not go with the file, the group gets what all users get. In a folder where all users may make files, the
 * index that another user put there is no example: it does not give the file away, nor let anybody do more. */
static int gpuir__writer_keep_mode(gpuir__writer *w, gpuir_error *err) {
  struct stat old, now;
  mode_t mode = w->mode;
  if (!stat(w->path, &old)) {
    mode = old.st_mode & 0777;
    if (w->hostile && old.st_uid != geteuid()) {
      mode &= w->mode;
    } else {
      if (fchown(w->fd, old.st_uid, old.st_gid) && fchown(w->fd, (uid_t)-1, old.st_gid)) errno = 0;
      if (fstat(w->fd, &now)) return gpuir__fail_errno(err, w->tmp, "cannot stat");
      if (now.st_gid != old.st_gid) mode = (mode & 0707) | (mode & 07) << 3;
    }
  }
  return fchmod(w->fd, mode) ? gpuir__fail_errno(err, w->tmp, "cannot change the mode") : GPUIR_OK;
}

/* Takes PATH, which is open as fd. */
static int gpuir__writer_place(gpuir__writer *w, const char *path, int fd, gpuir_error *err) {
  w->fd = fd;
  w->placed = 1;
  w->path = gpuir__concat(&w->a, path, strlen(path), "", 0, &w->path_size);
  w->tmp = gpuir__concat(&w->a, path, strlen(path), ".tmp", 4, &w->tmp_size);
  return w->path && w->tmp ? GPUIR_OK : gpuir__fail_nomem(err);
}

/* Locks PATH.tmp and opens the temporary files. `memory` bounds the buffers, in bytes. fd: -1, or that of PATH, a new
 * file in a folder that the caller has locked; it is closed in any case. */
static int gpuir__writer_create(const gpuir_allocator *a, const char *path, uint64_t memory, int fd,
                                gpuir__writer **writer, gpuir_error *err) {
  gpuir__writer *w = (gpuir__writer *)gpuir__alloc_zero(a, sizeof *w);
  uint64_t each = gpuir__min64(gpuir__max64(memory / (GPUIR__W_COUNT + 1), 4096), 1u << 18);
  unsigned i;
  int status;
  *writer = NULL;
  if (!w) {
    if (fd >= 0) (void)close(fd);
    return gpuir__fail_nomem(err);
  }
  w->a = *a;
  w->fd = -1;
  w->most = each;
  w->has[GPUIR__P_ALWAYS] = w->has[GPUIR__P_HINT] = 1;
  for (i = 0; i < GPUIR__W_COUNT; i++) w->spool[i].fd = -1;
  status = fd < 0 ? gpuir__writer_name(w, path, err) : gpuir__writer_place(w, path, fd, err);
  if (!status && fd < 0) status = gpuir__writer_lock(w, err);
  if (!status && fd < 0) status = gpuir__writer_hide(w, err);
  for (i = 0; !status && i < GPUIR__W_COUNT; i++) gpuir__spool_open(a, &w->spool[i], w->tmp, i, (size_t)each);
  if (status)
    gpuir__writer_destroy(w);
  else
    *writer = w;
  return status;
}

static int gpuir__writer_put64(gpuir__writer *w, unsigned spool, uint64_t v, gpuir_error *err) {
  return gpuir__spool_put(&w->spool[spool], &v, sizeof v, err);
}

/* Returns 1 + the byte of the source's path, the first of a component, at which the document's name begins; 0: none. */
static uint32_t gpuir__name_stem(const gpuir_doc_desc *doc) {
  size_t n = doc->source_len, i;
  if (!doc->name_len || doc->name_len > GPUIR__JOINED_MAX || n >= UINT32_MAX) return 0;
  for (i = n > doc->name_len ? n - doc->name_len : 0; i < n; i++)
    if ((!i || doc->source[i - 1] == '/') && !memcmp(doc->source + i, doc->name, n - i))
      return (uint32_t)i + 1;
  return 0;
}

/* Puts a source into the first free slot from its hash on, if there is one. */
static void gpuir__source_put(gpuir__source_slot *slots, uint64_t nslots, const gpuir__source_slot *source) {
  unsigned probe;
  for (probe = 0; probe < GPUIR__SOURCE_PROBES; probe++) {
    gpuir__source_slot *slot = &slots[(source->hash + probe) & (nslots - 1)];
    if (slot->number) continue;
    *slot = *source;
    return;
  }
}

/* Makes the table of sources twice as large. */
static int gpuir__writer_grow_table(gpuir__writer *w, gpuir_error *err) {
  const gpuir__source_slot *old = (const gpuir__source_slot *)(const void *)w->table.data;
  uint64_t n = w->slots ? 2 * w->slots : 1024, i;
  gpuir__area area = {NULL, 0, 0};
  int status = gpuir__area_need(&w->a, &area, n * sizeof *old, w->most, w->tmp, GPUIR__TMP_SOURCES, err);
  if (status) return status;
  memset(area.data, 0, (size_t)n * sizeof *old);
  for (i = 0; i < w->slots; i++)
    if (old[i].number) gpuir__source_put((gpuir__source_slot *)(void *)area.data, n, &old[i]);
  gpuir__area_free(&w->a, &w->table);
  w->table = area;
  w->slots = n;
  return GPUIR_OK;
}

/* Looks a source up; *number becomes its number, or 0 if it is not stored yet. */
static int gpuir__writer_find_source(const gpuir__writer *w, const char *path,
                                     const gpuir__source_slot *source, uint32_t *number, gpuir_error *err) {
  const gpuir__source_slot *slots = (const gpuir__source_slot *)(const void *)w->table.data;
  unsigned probe;
  *number = 0;
  for (probe = 0; w->slots && probe < GPUIR__SOURCE_PROBES; probe++) {
    const gpuir__source_slot *slot = &slots[(source->hash + probe) & (w->slots - 1)];
    int same, status;
    if (!slot->number) break;
    if (slot->hash != source->hash || slot->len != source->len || slot->stem != source->stem) continue;
    status = gpuir__spool_has(&w->spool[GPUIR__W_SOURCES], path, source->len, slot->start, &same, err);
    if (status) return status;
    if (!same) continue;
    *number = slot->number;
    break;
  }
  return GPUIR_OK;
}

/* Stores a source under the next number. */
static int gpuir__writer_add_source(gpuir__writer *w, const char *path, gpuir__source_slot *source,
                                    gpuir_error *err) {
  int status = GPUIR_OK;
  if (w->nsources == GPUIR__MAX_DOCUMENTS) return gpuir__fail(err, GPUIR_E_LIMIT, 0, "too many source files");
  if (w->nsources >= w->slots - w->slots / 3) status = gpuir__writer_grow_table(w, err);
  source->start = w->spool[GPUIR__W_SOURCES].len;
  source->number = (uint32_t)++w->nsources;
  if (!status) status = gpuir__writer_put64(w, GPUIR__W_SOURCE_START, source->start, err);
  if (!status) status = gpuir__spool_put(&w->spool[GPUIR__W_SOURCES], path, source->len, err);
  if (!status) status = gpuir__spool_put(&w->spool[GPUIR__W_STEMS], &source->stem, 4, err);
  if (status) return status;
  gpuir__source_put((gpuir__source_slot *)(void *)w->table.data, w->slots, source);
  if (source->stem) w->has[GPUIR__P_STEMS] = 1;
  return GPUIR_OK;
}

/* Makes the document's source, with this stem, the last one. */
static int gpuir__writer_source(gpuir__writer *w, const gpuir_doc_desc *doc, uint32_t stem,
                                gpuir_error *err) {
  gpuir__source_slot source;
  uint32_t number;
  int status;
  if (w->recent.number && w->recent.stem == stem && w->recent.path.len == doc->source_len &&
      !memcmp(w->recent.path.data, doc->source, doc->source_len))
    return GPUIR_OK;
  if (doc->source_len >= UINT32_MAX)
    return gpuir__fail(err, GPUIR_E_LIMIT, 0, "a source's path of 4 GiB or more");
  memset(&source, 0, sizeof source);
  source.len = (uint32_t)doc->source_len;
  source.stem = stem;
  source.hash = (uint32_t)XXH3_64bits(doc->source, doc->source_len) + stem;
  status = gpuir__writer_find_source(w, doc->source, &source, &number, err);
  if (!status && !number) {
    status = gpuir__writer_add_source(w, doc->source, &source, err);
    number = source.number;
  }
  if (status) return status;
  w->recent.path.len = 0;
  w->recent.number = number;
  w->recent.stem = stem;
  return gpuir__buf_put(&w->a, &w->recent.path, doc->source, doc->source_len) ? gpuir__fail_nomem(err)
                                                                              : GPUIR_OK;
}

/* Appends the document's name without the bytes that its stem holds. */
static int gpuir__writer_put_name(gpuir__writer *w, const gpuir_doc_desc *doc, uint32_t stem,
                                  gpuir_error *err) {
  size_t skip = stem ? doc->source_len - (stem - 1) : 0;
  int status = gpuir__writer_put64(w, GPUIR__W_NAME_START, w->spool[GPUIR__W_NAMES].len, err);
  if (status || doc->name_len == skip) return status;
  return gpuir__spool_put(&w->spool[GPUIR__W_NAMES], doc->name + skip, doc->name_len - skip, err);
}

/* Appends where the document comes from. */
static int gpuir__writer_put_origin(gpuir__writer *w, const gpuir_doc_desc *doc, uint32_t stem,
                                    gpuir_error *err) {
  gpuir__origin origin;
  unsigned i;
  memset(&origin, 0, sizeof origin);
  if (doc->source_len) {
    int status = gpuir__writer_source(w, doc, stem, err);
    if (status) return status;
    origin.of[GPUIR__O_SOURCE] = w->recent.number;
    origin.of[GPUIR__O_LINE] = doc->first_line;
    origin.of[GPUIR__O_LINES] = (uint32_t)(doc->last_line - doc->first_line);
    origin.of[GPUIR__O_OFFSET] = doc->source_offset;
    origin.of[GPUIR__O_BYTES] = doc->source_bytes;
    for (i = 0; i < GPUIR__O_COUNT; i++) w->origins.of[i] |= origin.of[i];
    w->has[GPUIR__P_ORIGINS] = 1;
  }
  return gpuir__spool_put(&w->spool[GPUIR__W_ORIGINS], &origin, sizeof origin, err);
}

/* Appends the document's hash: that of its text, if that is what stands in the source. */
static int gpuir__writer_put_hash(gpuir__writer *w, const gpuir_doc_desc *doc, const char *text,
                                  size_t text_len, gpuir_error *err) {
  const int is_text =
      !doc->source_len || !(doc->source_offset || doc->source_bytes) || doc->source_bytes == text_len;
  const uint64_t hash = is_text && text_len ? XXH3_64bits(text, text_len) : doc->hash;
  if (hash) w->has[GPUIR__P_HASHES] = 1;
  return gpuir__writer_put64(w, GPUIR__W_HASHES, hash, err);
}

/* Appends the next document. Its text is stored if the index has texts; NULL stands for "". */
static int gpuir__writer_put_doc(gpuir__writer *w, const gpuir_doc_desc *doc, const char *text,
                                 size_t text_len, gpuir_error *err) {
  uint32_t stem = gpuir__name_stem(doc);
  int status;
  if (w->stat.documents >= GPUIR__MAX_DOCUMENTS)
    return gpuir__fail(err, GPUIR_E_LIMIT, 0, "%s: more than 2^32-2 documents", gpuir__tail(w->path));
  w->stat.documents++;
  status = gpuir__writer_put_name(w, doc, stem, err);
  if (!status) status = gpuir__writer_put_origin(w, doc, stem, err);
  if (!status) status = gpuir__writer_put_hash(w, doc, text, text ? text_len : 0, err);
  if (status || !w->has[GPUIR__P_TEXT]) return status;
  status = gpuir__writer_put64(w, GPUIR__W_TEXT_START, w->spool[GPUIR__W_TEXT].len, err);
  return status || !text ? status : gpuir__spool_put(&w->spool[GPUIR__W_TEXT], text, text_len, err);
}

/* Appends lengths of documents in docID order, any number at a time. */
static int gpuir__writer_put_lengths(gpuir__writer *w, const uint32_t *lengths, size_t n, gpuir_error *err) {
  size_t i;
  for (i = 0; i < n; i++) w->stat.tokens += lengths[i];
  w->nlengths += n;
  return gpuir__spool_put(&w->spool[GPUIR__W_LENGTHS], lengths, n * 4, err);
}

/* Maps all lengths, after the last one was put. They are valid until the writer is destroyed. */
static int gpuir__writer_lengths(gpuir__writer *w, const uint32_t **lengths, uint64_t *ndocs,
                                 uint64_t *tokens, gpuir_error *err) {
  static const uint32_t none[1] = {0};
  const gpuir__spool *spool = &w->spool[GPUIR__W_LENGTHS];
  int status = gpuir__spool_flush(&w->spool[GPUIR__W_LENGTHS], err);
  if (status) return status;
  if (w->nlengths != w->stat.documents)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "%s: a document without a length", gpuir__tail(w->path));
  if (w->nlengths > SIZE_MAX / 4) return gpuir__fail_nomem(err);
  if (spool->fd >= 0 && w->nlengths && !w->lengths_map) {
    void *map = mmap(NULL, (size_t)w->nlengths * 4, PROT_READ, MAP_SHARED, spool->fd, 0);
    if (map == MAP_FAILED) return gpuir__fail_errno(err, w->tmp, "cannot map the lengths");
    w->lengths_map = map;
  }
  *lengths = w->lengths_map ? (const uint32_t *)w->lengths_map
             : w->nlengths  ? (const uint32_t *)(const void *)spool->buf
                            : none;
  *ndocs = w->stat.documents;
  *tokens = w->stat.tokens;
  return GPUIR_OK;
}

/* Writes the terms that wait as a block. */
static int gpuir__writer_put_block(gpuir__writer *w, gpuir_error *err) {
  gpuir__writer_terms *t = &w->terms;
  uint8_t out[GPUIR__DICT_MOST + 8];
  uint16_t start;
  size_t n;
  int status = GPUIR_OK;
  if (t->blocks++ % GPUIR__DICT_PAGE == 0) {
    t->page = t->now;
    status = gpuir__spool_put(&w->spool[GPUIR__W_TERM_PAGES], &t->page, sizeof t->page, err);
  }
  start = (uint16_t)(t->now.start - t->page.start);
  n = gpuir__dict_encode(&t->block, &t->form, &t->page, &t->now, out);
  t->block.n = 0;
  t->block.fill = 0;
  if (!status) status = gpuir__spool_put(&w->spool[GPUIR__W_TERM_STARTS], &start, sizeof start, err);
  return status ? status : gpuir__spool_put(&w->spool[GPUIR__W_TERMS], out, n, err);
}

/* Appends a batch's terms and records. */
static int gpuir__writer_put_terms(gpuir__writer *w, const gpuir__batch *batch, gpuir_error *err) {
  const uint8_t *term = batch->terms.data;
  uint64_t i;
  int status = GPUIR_OK;
  w->terms.form = gpuir__dict_form_of(w->stat.documents, w->has[GPUIR__P_POSITIONS]);
  for (i = 0; i < batch->nterms && !status; i++) {
    const size_t len = batch->term_lens.data[i];
    gpuir__record r;
    memcpy(&r, batch->records.data + i * sizeof r, sizeof r);
    w->stat.inline_postings += r.df == 1;
    if (r.positions_len >> GPUIR__DICT_POSITIONS_BITS)
      return gpuir__fail(err, GPUIR_E_LIMIT, 0, "%s: a term's positions take 256 TiB or more",
                         gpuir__tail(w->path));
    gpuir__dict_add(&w->terms.block, term, len, &r);
    if (w->terms.block.n == GPUIR__DICT_BLOCK) status = gpuir__writer_put_block(w, err);
    term += len;
  }
  return status;
}

/* Appends extents, whose offsets in the batch become offsets in the file. */
static int gpuir__writer_put_extents(gpuir__writer *w, const gpuir__batch *batch, gpuir_error *err) {
  uint64_t nlongs = batch->longs.len / sizeof(gpuir__long), i;
  int status = GPUIR_OK;
  for (i = 0; i < nlongs && !status; i++) {
    gpuir__long x;
    memcpy(&x, batch->longs.data + i * sizeof x, sizeof x);
    x.docs += w->spool[GPUIR__W_DOCIDS].len;
    x.freqs += w->spool[GPUIR__W_FREQS].len;
    x.first_block += (uint32_t)w->stat.blocks;
    if (x.seeds) x.seeds += (uint32_t)(w->spool[GPUIR__W_SEEDS].len / (4 * GPUIR__SEEDS));
    status = gpuir__spool_put(&w->spool[GPUIR__W_LONGS], &x, sizeof x, err);
  }
  return status;
}

/* Appends the buffers of a batch that go to the file as they are. */
static int gpuir__writer_put_buffers(gpuir__writer *w, const gpuir__batch *batch, gpuir_error *err) {
  unsigned i;
  int status = GPUIR_OK;
  for (i = 0; i < GPUIR__SECTION_ROWS && !status; i++) {
    const size_t at = gpuir__section_rows[i].batch;
    const gpuir__buf *buf = (const gpuir__buf *)(const void *)((const uint8_t *)batch + (at ? at - 1 : 0));
    if (at) status = gpuir__spool_put(&w->spool[i], buf->data, buf->len, err);
  }
  if (!status)
    status = gpuir__spool_put(&w->spool[GPUIR__W_DOCIDS_SHORT], batch->docs_short.data, batch->docs_short.len,
                              err);
  if (!status)
    status = gpuir__spool_put(&w->spool[GPUIR__W_FREQS_SHORT], batch->freqs_short.data,
                              batch->freqs_short.len, err);
  return status;
}

/* Appends encoded lists; batches come in ascending order of terms. */
static int gpuir__writer_put_batch(gpuir__writer *w, const gpuir__batch *batch, gpuir_error *err) {
  int status;
  if (w->stat.terms + batch->nterms >= UINT32_MAX)
    return gpuir__fail(err, GPUIR_E_LIMIT, 0, "%s: more than 2^32-2 terms", gpuir__tail(w->path));
  if (w->stat.blocks + batch->last.len / 4 > UINT32_MAX)
    return gpuir__fail(err, GPUIR_E_LIMIT, 0, "%s: more than 2^32-1 blocks of postings",
                       gpuir__tail(w->path));
  status = gpuir__writer_put_terms(w, batch, err);
  if (!status) status = gpuir__writer_put_extents(w, batch, err);
  if (!status) status = gpuir__writer_put_buffers(w, batch, err);
  w->stat.terms += batch->nterms;
  w->stat.postings += batch->postings;
  w->stat.longs += batch->longs.len / sizeof(gpuir__long);
  w->stat.blocks += batch->last.len / 4;
  return status;
}

/* Appends a line key=value of the meta section; line breaks in the value become blanks. */
static int gpuir__meta_put(const gpuir_allocator *a, gpuir__buf *out, const char *key, const char *value) {
  size_t n = strlen(value), i;
  uint8_t *p;
  if (gpuir__buf_put(a, out, key, strlen(key)) || gpuir__buf_put(a, out, "=", 1)) return GPUIR_E_NOMEM;
  p = gpuir__buf_room(a, out, n + 1);
  if (!p) return GPUIR_E_NOMEM;
  for (i = 0; i < n; i++) p[i] = value[i] == '\n' || value[i] == '\r' ? (uint8_t)' ' : (uint8_t)value[i];
  p[n] = '\n';
  out->len += n + 1;
  return GPUIR_OK;
}

#define GPUIR__ANALYZER_REVISION "1" /* of [11-analysis]: another one makes other terms of the same text */
#define GPUIR__FIELDS "text:1"       /* the fields of a document and their weights: all that there is */

/* Writes the text of the meta section. What an index does not have is not named. */
static int gpuir__meta_text(const gpuir_allocator *a, const gpuir__meta *meta, gpuir__buf *out) {
  char tool[32];
  (void)snprintf(tool, sizeof tool, "gpuir %s", gpuir_version());
  if (gpuir__meta_put(a, out, "analyzer", meta->analyzer) ||
      gpuir__meta_put(a, out, "analyzer_revision", GPUIR__ANALYZER_REVISION) ||
      gpuir__meta_put(a, out, "stop_words", meta->stop_words) ||
      gpuir__meta_put(a, out, "fields", GPUIR__FIELDS) || gpuir__meta_put(a, out, "codec", meta->codec) ||
      gpuir__meta_put(a, out, "freq_codec", meta->freq_codec) || gpuir__meta_put(a, out, "tool", tool) ||
      gpuir__meta_put(a, out, "description", meta->description) ||
      (*meta->order && gpuir__meta_put(a, out, "order", meta->order)) ||
      (meta->store && gpuir__meta_put(a, out, "store", "1")) ||
      (meta->positions && gpuir__meta_put(a, out, "positions", "1")))
    return GPUIR_E_NOMEM;
  return GPUIR_OK;
}

/* Returns the spool of the short lists that a section ends with, or NULL. */
static gpuir__spool *gpuir__writer_short_lists(gpuir__writer *w, uint32_t id) {
  if (id == GPUIR__S_DOCIDS) return &w->spool[GPUIR__W_DOCIDS_SHORT];
  return id == GPUIR__S_FREQS ? &w->spool[GPUIR__W_FREQS_SHORT] : NULL;
}

/* Returns the number of columns of a spool of numbers, and fills their widths in the file in bytes; 0: its bytes go to
 * the file as they are. */
static unsigned gpuir__writer_columns(const gpuir__writer *w, unsigned row, uint8_t width[GPUIR__O_COUNT]) {
  const gpuir__section_row *r = &gpuir__section_rows[row];
  unsigned i;
  memset(width, 0, GPUIR__O_COUNT);
  if (r->items == GPUIR__N_DOC_ENDS || r->items == GPUIR__N_SOURCE_ENDS) {
    width[0] = (uint8_t)gpuir__start_width(w->spool[row - 1].len);
    return 1;
  }
  if (r->id != GPUIR__S_ORIGINS) return 0;
  for (i = 0; i < GPUIR__O_COUNT; i++) width[i] = (uint8_t)gpuir__number_width(w->origins.of[i]);
  return GPUIR__O_COUNT;
}

/* Returns the bytes of a section. */
static uint64_t gpuir__writer_length(gpuir__writer *w, unsigned row) {
  const uint32_t id = gpuir__section_rows[row].id;
  const gpuir__spool *more = gpuir__writer_short_lists(w, id);
  uint8_t width[GPUIR__O_COUNT];
  const unsigned columns = gpuir__writer_columns(w, row, width);
  unsigned i, bytes = 0; /* of a row */
  if (id == GPUIR__S_TERM_KEYS) return gpuir__dict_nodes(w->stat.terms) * sizeof(uint64_t) * GPUIR__DICT_FAN;
  if (!columns) return w->spool[row].len + (more ? more->len : 0);
  for (i = 0; i < columns; i++) bytes += width[i];
  return (id == GPUIR__S_ORIGINS ? GPUIR__ORIGINS_HEAD : 0) + w->spool[row].len / (8 * columns) * bytes;
}

/* Lists the sections that the file has, in its order: rows[i] is the number of the i-th one's row and spool. Returns
 * how many there are. *size becomes that of the file. */
static unsigned gpuir__writer_plan(gpuir__writer *w, gpuir__section table[GPUIR__S_COUNT],
                                   unsigned rows[GPUIR__S_COUNT], uint64_t *size) {
  unsigned n = 0, i;
  uint64_t at;
  for (i = 0; i < GPUIR__SECTION_ROWS; i++)
    if (w->has[gpuir__section_rows[i].presence]) rows[n++] = i;
  at = sizeof(gpuir__header) + n * sizeof *table;
  for (i = 0; i < n; i++) {
    const gpuir__section_row *row = &gpuir__section_rows[rows[i]];
    const int required = row->presence == GPUIR__P_ALWAYS || row->presence >= GPUIR__P_TEXT;
    at = (at + GPUIR__ALIGN - 1) & ~(uint64_t)(GPUIR__ALIGN - 1);
    table[i].id = row->id;
    table[i].flags = required ? GPUIR__REQUIRED : 0;
    table[i].offset = at;
    table[i].length = gpuir__writer_length(w, rows[i]);
    at += table[i].length + GPUIR__ALIGN;
  }
  *size = at;
  return n;
}

/* Writes the bytes that are on their way. */
static int gpuir__writer_flush(gpuir__writer *w, gpuir_error *err) {
  gpuir__ahead *x = &w->ahead;
  if (x->fill && gpuir__pwrite_all(w->fd, x->buf, x->fill, x->at))
    return gpuir__fail_errno(err, w->tmp, "cannot write");
  x->fill = 0;
  return GPUIR_OK;
}

/* Writes n bytes at `offset`, sooner or later. What lies between two sections is zeros. */
static int gpuir__writer_put(gpuir__writer *w, const void *bytes, size_t n, uint64_t offset,
                             gpuir_error *err) {
  gpuir__ahead *x = &w->ahead;
  size_t gap;
  if (x->fill && (offset < x->at + x->fill || offset + n > x->at + GPUIR__AHEAD)) {
    int status = gpuir__writer_flush(w, err);
    if (status) return status;
  }
  if (n >= GPUIR__AHEAD)
    return gpuir__pwrite_all(w->fd, bytes, n, offset) ? gpuir__fail_errno(err, w->tmp, "cannot write")
                                                      : GPUIR_OK;
  if (!x->fill) x->at = offset;
  gap = (size_t)(offset - x->at) - x->fill;
  memset(x->buf + x->fill, 0, gap);
  memcpy(x->buf + x->fill + gap, bytes, n);
  x->fill += gap + n;
  return GPUIR_OK;
}

/* Where the next bytes of a section go, and the checksum of those before. */
typedef struct gpuir__sink {
  uint64_t offset; /* in PATH.tmp */
  XXH3_state_t *hash;
} gpuir__sink;

static int gpuir__writer_out(gpuir__writer *w, gpuir__sink *to, const void *bytes, size_t n,
                             gpuir_error *err) {
  int status = gpuir__writer_put(w, bytes, n, to->offset, err);
  (void)XXH3_64bits_update(to->hash, bytes, n);
  to->offset += n;
  return status;
}

/* Packs n bytes of rows of 64-bit numbers in place; returns the bytes that they then take. */
static size_t gpuir__pack_rows(uint8_t *rows, size_t n, unsigned columns, const uint8_t *width) {
  uint8_t *to = rows;
  size_t i;
  unsigned column = 0;
  for (i = 0; i < n; i += 8) {
    const uint64_t v = gpuir__load64(rows + i);
    memcpy(to, &v, width[column]);
    to += width[column];
    column = column + 1 < columns ? column + 1 : 0;
  }
  return (size_t)(to - rows);
}

/* Copies a spool of bytes, or of rows of `columns` numbers that are to be packed. */
static int gpuir__writer_copy(gpuir__writer *w, gpuir__spool *s, unsigned columns, const uint8_t *width,
                              gpuir__sink *to, uint8_t *buf, size_t cap, gpuir_error *err) {
  const size_t most = columns ? cap - cap % (8 * columns) : cap;
  uint64_t at;
  int status = GPUIR_OK;
  for (at = 0; at < s->len && !status; at += most) {
    size_t n = (size_t)gpuir__min64(most, s->len - at);
    status = gpuir__spool_get(s, buf, n, at, err);
    if (status) break;
    if (columns) n = gpuir__pack_rows(buf, n, columns, width);
    status = gpuir__writer_out(w, to, buf, n, err);
  }
  return status;
}

/* Makes the dictionary's tree in place, in a mapping of PATH.tmp (whose blocks are allocated and which has the rest of
 * the dictionary). `table` is the entry of the section of the tree, behind those of the other three. */
static int gpuir__writer_tree(gpuir__writer *w, gpuir__section *table, gpuir_error *err) {
  const uint64_t from = table[-3].offset & ~(uint64_t)65535, end = table->offset + table->length;
  const gpuir__section *terms = table - 3, *pages = table - 2, *starts = table - 1;
  gpuir__dict d;
  uint64_t *keys, node;
  uint8_t *map;
  unsigned depth;
  int status = gpuir__writer_flush(w, err);
  if (status) return status;
  table->hash = XXH3_64bits(NULL, 0);
  gpuir__dict_shape(&d, w->stat.terms);
  if (!d.levels) return GPUIR_OK;
  map = (uint8_t *)mmap(NULL, (size_t)(end - from), PROT_READ | PROT_WRITE, MAP_SHARED, w->fd, (off_t)from);
  if (map == (uint8_t *)MAP_FAILED) return gpuir__fail_errno(err, w->tmp, "cannot map the dictionary");
  d.bytes = map + (terms->offset - from);
  d.size = terms->length;
  d.pages = (const gpuir__dict_page *)(const void *)(map + (pages->offset - from));
  d.starts = (const uint16_t *)(const void *)(map + (starts->offset - from));
  d.keys = keys = (uint64_t *)(void *)(map + (table->offset - from));
  for (depth = 0; depth < d.levels; depth++)
    for (node = 0; node < d.level[depth]; node++, keys += GPUIR__DICT_FAN)
      gpuir__dict_node(&d, depth, node, keys);
  table->hash = XXH3_64bits(d.keys, (size_t)table->length);
  (void)munmap(map, (size_t)(end - from));
  return GPUIR_OK;
}

/* Writes the section whose row and spool is number `row`, and notes its checksum. */
static int gpuir__writer_section(gpuir__writer *w, unsigned row, gpuir__section *entry, uint8_t *buf,
                                 size_t cap, gpuir_error *err) {
  gpuir__spool *more = gpuir__writer_short_lists(w, entry->id);
  gpuir__sink to = {entry->offset, NULL};
  uint8_t width[GPUIR__ORIGINS_HEAD] = {0};
  const unsigned columns = gpuir__writer_columns(w, row, width);
  int status = GPUIR_OK;
  if (entry->id == GPUIR__S_TERM_KEYS) return gpuir__writer_tree(w, entry, err);
  to.hash = XXH3_createState();
  if (!to.hash) return gpuir__fail_nomem(err);
  (void)XXH3_64bits_reset(to.hash);
  if (entry->id == GPUIR__S_ORIGINS) status = gpuir__writer_out(w, &to, width, sizeof width, err);
  if (!status) status = gpuir__writer_copy(w, &w->spool[row], columns, width, &to, buf, cap, err);
  if (!status && more) status = gpuir__writer_copy(w, more, 0, NULL, &to, buf, cap, err);
  entry->hash = XXH3_64bits_digest(to.hash);
  (void)XXH3_freeState(to.hash);
  return status;
}

/* Puts the finished PATH.tmp in PATH's place, so that it survives a loss of power. */
static int gpuir__writer_publish(gpuir__writer *w, gpuir_error *err) {
  int same, status = w->placed ? GPUIR_OK : gpuir__writer_keep_mode(w, err);
  if (status) return status;
  if (w->placed) {
    status = close(w->fd) && errno != EINTR ? gpuir__fail_errno(err, w->path, "cannot close") : GPUIR_OK;
    w->fd = -1;
    return status;
  }
  if (fsync(w->fd)) return gpuir__fail_errno(err, w->tmp, "cannot sync");
  same = gpuir__is_file(w->fd, w->tmp);
  if (same < 0) return gpuir__fail_errno(err, w->tmp, "cannot stat");
  if (!same)
    return gpuir__fail(err, GPUIR_E_BUSY, 0, "%s: another process took this name", gpuir__tail(w->tmp));
  if (rename(w->tmp, w->path)) return gpuir__fail_errno(err, w->path, "cannot rename the finished index");
  (void)close(w->fd);
  w->fd = -1;
  if (!gpuir__sync_folder(w->folder)) return GPUIR_OK;
  return gpuir__fail_errno(err, w->path, "the new index is in place, but may not survive a power loss");
}

/* Completes what is derived from all documents and terms. `text` is that of the meta section. */
static int gpuir__writer_close_lists(gpuir__writer *w, const gpuir__meta *meta, const gpuir__buf *text,
                                     gpuir_error *err) {
  int status = w->terms.block.n ? gpuir__writer_put_block(w, err) : GPUIR_OK;
  if (!status) status = gpuir__writer_put64(w, GPUIR__W_NAME_START, w->spool[GPUIR__W_NAMES].len, err);
  if (!status) status = gpuir__writer_put64(w, GPUIR__W_SOURCE_START, w->spool[GPUIR__W_SOURCES].len, err);
  if (!status) status = gpuir__writer_put64(w, GPUIR__W_TEXT_START, w->spool[GPUIR__W_TEXT].len, err);
  w->stat.docs_short = w->spool[GPUIR__W_DOCIDS].len;
  w->stat.freqs_short = w->spool[GPUIR__W_FREQS].len;
  w->stat.k1 = meta->k1;
  w->stat.b = meta->b;
  if (!status) status = gpuir__spool_put(&w->spool[GPUIR__W_STAT], &w->stat, sizeof w->stat, err);
  return status ? status : gpuir__spool_put(&w->spool[GPUIR__W_META], text->data, text->len, err);
}

/* Lays the sections out, writes them, and puts the file in its place. */
static int gpuir__writer_finish(gpuir__writer *w, const gpuir__meta *meta, uint64_t *file_bytes,
                                gpuir_error *err) {
  enum { CAP = 1 << 18 };
  gpuir__section table[GPUIR__S_COUNT];
  unsigned rows[GPUIR__S_COUNT], n = 0, i;
  gpuir__header header;
  gpuir__buf text = {NULL, 0, 0};
  uint8_t *buf = (uint8_t *)gpuir__alloc(&w->a, CAP);
  uint64_t at = 0;
  int status;
  w->ahead.buf = (uint8_t *)gpuir__alloc(&w->a, GPUIR__AHEAD);
  status = buf && w->ahead.buf && !gpuir__meta_text(&w->a, meta, &text) ? GPUIR_OK : gpuir__fail_nomem(err);
  if (!status) status = gpuir__writer_close_lists(w, meta, &text, err);
  if (!status) n = gpuir__writer_plan(w, table, rows, &at);
  if (!status && gpuir__allocate(w->fd, at))
    status = gpuir__fail_errno(err, w->tmp, "cannot allocate the index file");
  for (i = 0; i < n && !status; i++) status = gpuir__writer_section(w, rows[i], &table[i], buf, CAP, err);
  if (!status) {
    memset(&header, 0, sizeof header);
    memcpy(header.magic, gpuir__magic, sizeof header.magic);
    header.format = GPUIR__FORMAT;
    header.sections = n;
    header.file_size = at;
    header.table_hash = XXH3_64bits(table, n * sizeof table[0]);
    header.hash = XXH3_64bits(&header, offsetof(gpuir__header, hash));
    status = gpuir__writer_put(w, &header, sizeof header, 0, err);
    if (!status) status = gpuir__writer_put(w, table, n * sizeof table[0], sizeof header, err);
    if (!status) status = gpuir__writer_flush(w, err);
  }
  if (!status) status = gpuir__writer_publish(w, err);
  *file_bytes = at;
  gpuir__free(&w->a, buf, CAP);
  gpuir__free(&w->a, w->ahead.buf, GPUIR__AHEAD);
  gpuir__buf_free(&w->a, &text);
  return status;
}

/* ============================================================================
 * [13-reader]  index file: open, look-ups, verify
 *
 * An index file is a segment here; [13b-snapshot] makes an index of one or more. Nothing here trusts an offset of the
 * file: what open does not check is checked where it is used.
 *
 * Uses      [08-codings], [09-postings], [11-analysis], the layout in [12-writer].
 * Start at  gpuir__segment_open, gpuir__list_open (a term's postings), gpuir__segment_verify.
 * Tests     tests/unit/13_reader.c
 * ==========================================================================*/

/* ---- open ---- */

/* Returns the average length of documents; 0 without any. */
static double gpuir__mean(uint64_t tokens, uint64_t documents) {
  return documents ? (double)tokens / (double)documents : 0.0;
}

/* Leaves the segment; NULL is allowed. The last owner unmaps it. */
static void gpuir__segment_close(gpuir__segment *ix) {
  gpuir_allocator a;
  unsigned i;
  if (!ix || __atomic_sub_fetch(&ix->refs, 1, __ATOMIC_ACQ_REL)) return;
  a = ix->a;
  for (i = 0; i < GPUIR__LOG_CHUNKS; i++) gpuir__free(&a, ix->log.chunk[i], ((size_t)64 << i) * 4);
  gpuir__free(&a, ix->log.counts, ((size_t)ix->log.mask + 1) * sizeof *ix->log.counts);
  (void)pthread_mutex_destroy(&ix->log.mutex);
  if (ix->mapped) (void)munmap((void *)(uintptr_t)ix->map, (size_t)ix->size);
  gpuir__free(&a, ix->meta.text, ix->meta.text_size);
  gpuir__free(&a, ix, sizeof *ix);
}

/* Adds an owner to the segment. */
static gpuir__segment *gpuir__segment_share(gpuir__segment *ix) {
  (void)__atomic_add_fetch(&ix->refs, 1, __ATOMIC_RELAXED);
  return ix;
}

static int gpuir__bad(const gpuir__segment *ix, gpuir_error *err, uint64_t offset, const char *cause) {
  return gpuir__fail(err, GPUIR_E_FORMAT, offset, "%s: %s", ix->path, cause);
}

/* Checks the header and collects the known sections. */
static int gpuir__open_table(gpuir__segment *ix, gpuir_error *err) {
  gpuir__header h;
  uint32_t i;
  if (ix->size < sizeof h) return gpuir__bad(ix, err, 0, "not a gpuir index: shorter than a header");
  memcpy(&h, ix->map, sizeof h);
  if (memcmp(h.magic, gpuir__magic, sizeof h.magic))
    return gpuir__bad(ix, err, 0, "not a gpuir index: no magic number");
  if (h.format != GPUIR__FORMAT)
    return gpuir__fail(
        err, GPUIR_E_VERSION, 8, "%s: index format %u, this build reads %u: %s", ix->path, (unsigned)h.format,
        GPUIR__FORMAT,
        h.format < GPUIR__FORMAT ? "build it again: gpuir index INPUT -o FILE" : "it needs a newer gpuir");
  if (h.hash != XXH3_64bits(ix->map, offsetof(gpuir__header, hash)))
    return gpuir__bad(ix, err, 0, "damaged header");
  if (h.file_size != ix->size)
    return gpuir__fail(err, GPUIR_E_FORMAT, ix->size, "%s: truncated or extended: %llu bytes instead of %llu",
                       ix->path, (unsigned long long)ix->size, (unsigned long long)h.file_size);
  if (h.sections > GPUIR__MAX_SECTIONS || sizeof h + h.sections * sizeof(gpuir__section) > ix->size)
    return gpuir__bad(ix, err, 12, "section table does not fit");
  ix->table = (const gpuir__section *)(const void *)(ix->map + sizeof h);
  ix->nsections = h.sections;
  if (h.table_hash != XXH3_64bits(ix->table, h.sections * sizeof(gpuir__section)))
    return gpuir__bad(ix, err, sizeof h, "damaged section table");
  for (i = 0; i < h.sections; i++) {
    const gpuir__section *s = &ix->table[i];
    uint64_t where = sizeof h + i * sizeof *s;
    if (s->offset % GPUIR__ALIGN || s->offset > ix->size || s->length > ix->size - s->offset ||
        ix->size - s->offset - s->length < GPUIR__ALIGN)
      return gpuir__bad(ix, err, where, "a section lies outside the file");
    if (s->id < GPUIR__S_COUNT && s->id) {
      if (ix->section[s->id]) return gpuir__bad(ix, err, where, "a section stands twice");
      ix->section[s->id] = s;
    } else if (s->flags & GPUIR__REQUIRED) {
      return gpuir__fail(err, GPUIR_E_VERSION, where, "%s: unknown required section %u", ix->path,
                         (unsigned)s->id);
    }
  }
  return GPUIR_OK;
}

/* Returns the number of items that a section must have, or the number that fit in it where that is free. */
static uint64_t gpuir__section_items(const gpuir__segment *ix, const gpuir__section_row *row) {
  const gpuir__stat *stat = &ix->stat;
  switch (row->items) {
    case GPUIR__N_ONE: return 1;
    case GPUIR__N_TERM_PAGES:
      return (gpuir__dict_blocks(stat->terms) + GPUIR__DICT_PAGE - 1) / GPUIR__DICT_PAGE;
    case GPUIR__N_TERM_BLOCKS: return gpuir__dict_blocks(stat->terms);
    case GPUIR__N_TERM_KEYS: return gpuir__dict_nodes(stat->terms) * GPUIR__DICT_FAN;
    case GPUIR__N_LONGS: return stat->longs;
    case GPUIR__N_BLOCKS: return stat->blocks;
    case GPUIR__N_DOCUMENTS: return stat->documents;
    case GPUIR__N_DOC_ENDS: return stat->documents + 1;
    default: return ix->section[row->id]->length / row->item_size;
  }
}

/* Returns the number of items of a section of starts, which divides the section `bytes`. */
static uint64_t gpuir__starts_count(const gpuir__section *bytes, const gpuir__section *starts) {
  return starts->length / gpuir__start_width(bytes->length);
}

/* Says whether a section that is there has as many items as it must have. */
static int gpuir__section_fits(const gpuir__segment *ix, const gpuir__section_row *row) {
  const uint64_t items = gpuir__section_items(ix, row);
  const gpuir__section *starts = ix->section[row->id];
  if (row->items == GPUIR__N_ANY) return 1;
  if (row->items == GPUIR__N_DOC_ENDS || row->items == GPUIR__N_SOURCE_ENDS) {
    const gpuir__section *bytes = ix->section[row[-1].id];
    return bytes && starts->length % gpuir__start_width(bytes->length) == 0 &&
           (row->items == GPUIR__N_SOURCE_ENDS ? starts->length > 0
                                               : gpuir__starts_count(bytes, starts) == items);
  }
  return items <= ix->size && starts->length == items * row->item_size;
}

/* Returns the bytes of a row of the origins; 0 if the widths do not fit. */
static unsigned gpuir__origins_row(const gpuir__segment *ix) {
  const uint8_t *width = ix->map + ix->section[GPUIR__S_ORIGINS]->offset;
  unsigned i, bytes = 0;
  for (i = 0; i < GPUIR__O_COUNT; i++) {
    if (width[i] > 8) return 0;
    bytes += width[i];
  }
  return bytes;
}

/* Says whether the section of origins has a row for each document, and those that it needs are there. */
static int gpuir__origins_fit(const gpuir__segment *ix) {
  const gpuir__section *const *s = ix->section;
  uint64_t rows;
  if (!s[GPUIR__S_SOURCES] || !s[GPUIR__S_SOURCE_START] || s[GPUIR__S_ORIGINS]->length < GPUIR__ORIGINS_HEAD)
    return 0;
  rows = s[GPUIR__S_ORIGINS]->length - GPUIR__ORIGINS_HEAD;
  return gpuir__origins_row(ix) && rows == ix->stat.documents * gpuir__origins_row(ix);
}

/* Reads the statistics, and checks that they are possible and that no section is missing. */
static int gpuir__open_stat(gpuir__segment *ix, gpuir_error *err) {
  const gpuir__section *s = ix->section[GPUIR__S_STAT];
  unsigned i;
  if (!s || s->length != sizeof ix->stat) return gpuir__bad(ix, err, 0, "no statistics section");
  memcpy(&ix->stat, ix->map + s->offset, sizeof ix->stat);
  for (i = 0; i < GPUIR__SECTION_ROWS; i++) {
    const gpuir__section_row *row = &gpuir__section_rows[i];
    if (row->presence == GPUIR__P_ALWAYS && !ix->section[row->id])
      return gpuir__fail(err, GPUIR_E_FORMAT, 0, "%s: section %u is missing", ix->path, (unsigned)row->id);
  }
  if (ix->stat.documents > GPUIR__MAX_DOCUMENTS || ix->stat.terms >= UINT32_MAX)
    return gpuir__bad(ix, err, 0, "counts out of range");
  if (!(ix->stat.k1 >= 0 && ix->stat.k1 <= 1000) || !(ix->stat.b >= 0 && ix->stat.b <= 1))
    return gpuir__bad(ix, err, 0, "k1 or b out of range");
  gpuir__dict_shape(&ix->terms, ix->stat.terms);
  ix->terms.simd = ix->simd;
  ix->terms.size = ix->section[GPUIR__S_TERMS]->length;
  return GPUIR_OK;
}

/* Makes the fields point to their sections. One that does not fit the counts is an error, or absent if a reader can do
 * without it. */
static int gpuir__open_fields(gpuir__segment *ix, gpuir_error *err) {
  unsigned i;
  for (i = 0; i < GPUIR__SECTION_ROWS; i++) {
    const gpuir__section_row *row = &gpuir__section_rows[i];
    const void *items;
    if (!ix->section[row->id]) continue;
    if (!gpuir__section_fits(ix, row)) {
      if (row->presence == GPUIR__P_ALWAYS || row->presence >= GPUIR__P_TEXT)
        return gpuir__bad(ix, err, 0, "a section's length does not fit the counts");
      ix->section[row->id] = NULL;
      continue;
    }
    items = ix->map + ix->section[row->id]->offset;
    if (row->field) memcpy((uint8_t *)ix + row->field, &items, sizeof items);
  }
  return GPUIR_OK;
}

/* Checks what sections say of each other. */
static int gpuir__open_relations(gpuir__segment *ix, gpuir_error *err) {
  const gpuir__section **s = ix->section;
  if (ix->stat.docs_short > s[GPUIR__S_DOCIDS]->length || ix->stat.freqs_short > s[GPUIR__S_FREQS]->length)
    return gpuir__bad(ix, err, 0, "short lists lie outside their section");
  if (s[GPUIR__S_SEEDS]) ix->lists.nseeds = s[GPUIR__S_SEEDS]->length / (4 * GPUIR__SEEDS);
  ix->terms.form = gpuir__dict_form_of(ix->stat.documents, ix->lists.positions != NULL);
  if (s[GPUIR__S_ORIGINS] && !gpuir__origins_fit(ix))
    s[GPUIR__S_ORIGINS] = NULL; /* optional, and only whole */
  if (s[GPUIR__S_STEMS] &&
      (!s[GPUIR__S_ORIGINS] || s[GPUIR__S_STEMS]->length / 4 + 1 !=
                                   gpuir__starts_count(s[GPUIR__S_SOURCES], s[GPUIR__S_SOURCE_START])))
    return gpuir__bad(ix, err, 0, "stems of names do not fit the sources");
  if (!s[GPUIR__S_TEXT] != !s[GPUIR__S_TEXT_START])
    return gpuir__bad(ix, err, 0, "texts without their starts, or starts without texts");
  if (!s[GPUIR__S_POSITIONS] != !s[GPUIR__S_POS_OFF])
    return gpuir__bad(ix, err, 0, "positions without their offsets, or offsets without positions");
  return GPUIR_OK;
}

/* Checks the sections and fills the index with what they hold. */
static int gpuir__open_arrays(gpuir__segment *ix, gpuir_error *err) {
  int status = gpuir__open_stat(ix, err);
  if (!status) status = gpuir__open_fields(ix, err);
  if (!status) status = gpuir__open_relations(ix, err);
  return status;
}

/* The keys of the meta section. */
static const struct {
  const char *key;
  size_t field; /* of gpuir__index_meta */
} gpuir__meta_keys[] = {
    {"analyzer", offsetof(gpuir__index_meta, analyzer_spec)},
    {"analyzer_revision", offsetof(gpuir__index_meta, analyzer_revision)},
    {"stop_words", offsetof(gpuir__index_meta, stop_words)},
    {"fields", offsetof(gpuir__index_meta, fields)},
    {"codec", offsetof(gpuir__index_meta, codec)},
    {"freq_codec", offsetof(gpuir__index_meta, freq_codec)},
    {"tool", offsetof(gpuir__index_meta, tool)},
    {"description", offsetof(gpuir__index_meta, description)},
    {"order", offsetof(gpuir__index_meta, order)},
    {"store", offsetof(gpuir__index_meta, store)},
    {"positions", offsetof(gpuir__index_meta, positions)},
};
#define GPUIR__META_KEYS (sizeof gpuir__meta_keys / sizeof gpuir__meta_keys[0])

/* Copies the meta section and cuts it into strings; unknown keys are passed over. */
static int gpuir__open_meta(gpuir__segment *ix, gpuir_error *err) {
  const gpuir__section *s = ix->section[GPUIR__S_META];
  const char *none = "";
  char *line, *end;
  size_t i;
  for (i = 0; i < GPUIR__META_KEYS; i++)
    memcpy((uint8_t *)&ix->meta + gpuir__meta_keys[i].field, &none, sizeof none);
  ix->meta.text_size = (size_t)s->length + 1;
  ix->meta.text = (char *)gpuir__alloc(&ix->a, ix->meta.text_size);
  if (!ix->meta.text) return gpuir__fail_nomem(err);
  memcpy(ix->meta.text, ix->map + s->offset, (size_t)s->length);
  ix->meta.text[s->length] = 0;
  for (line = ix->meta.text; (end = strchr(line, '\n')) != NULL; line = end + 1) {
    char *value = strchr(line, '=');
    *end = 0;
    if (!value) continue;
    *value++ = 0;
    for (i = 0; i < GPUIR__META_KEYS; i++)
      if (!strcmp(line, gpuir__meta_keys[i].key))
        memcpy((uint8_t *)&ix->meta + gpuir__meta_keys[i].field, &value, sizeof value);
  }
  if (strlen(ix->meta.order) > GPUIR__ORDER_MAX) ix->meta.order = "";
  return GPUIR_OK;
}

/* Checks that this build makes the same terms of a query as the builder made of the documents, and that texts and
 * positions are there if and only if the meta section says so. */
static int gpuir__open_settings(const gpuir__segment *ix, gpuir_error *err) {
  const gpuir__index_meta *meta = &ix->meta;
  const int texts = ix->section[GPUIR__S_TEXT] != NULL, positions = ix->section[GPUIR__S_POSITIONS] != NULL;
  if (strcmp(meta->analyzer_revision, GPUIR__ANALYZER_REVISION))
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0,
                       "%s: revision %.8s of analyzer \"%.20s\"; this build has %s", ix->path,
                       *meta->analyzer_revision ? meta->analyzer_revision : "none", meta->analyzer_spec,
                       GPUIR__ANALYZER_REVISION);
  if (strcmp(meta->fields, GPUIR__FIELDS))
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "%s: fields \"%.30s\"; this build has \"%s\"", ix->path,
                       meta->fields, GPUIR__FIELDS);
  if ((strcmp(meta->store, "1") == 0) != texts)
    return gpuir__bad(ix, err, 0, "texts and meta section do not agree");
  if ((strcmp(meta->positions, "1") == 0) != positions)
    return gpuir__bad(ix, err, 0, "positions and meta section do not agree");
  return GPUIR_OK;
}

/* Maps the file at `path`, which if relative starts at the open folder. */
static int gpuir__open_map(gpuir__segment *ix, int folder, const char *path, gpuir_error *err) {
  struct stat st;
  void *map;
  int fd =
      openat(folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* a pipe must not make it wait */
  if (fd < 0) return gpuir__fail_errno(err, path, "cannot open");
  if (fstat(fd, &st)) {
    int status = gpuir__fail_errno(err, path, "cannot stat");
    (void)close(fd);
    return status;
  }
  if (!S_ISREG(st.st_mode)) {
    (void)close(fd);
    return gpuir__fail(err, GPUIR_E_FORMAT, 0, "%s: not a regular file", ix->path);
  }
  if (st.st_size == 0) {
    (void)close(fd);
    return gpuir__bad(ix, err, 0, "not a gpuir index: the file is empty");
  }
  if ((uint64_t)st.st_size > SIZE_MAX / 2) {
    (void)close(fd);
    return gpuir__fail(err, GPUIR_E_LIMIT, 0, "%s: larger than this machine's address space", ix->path);
  }
  ix->size = (uint64_t)st.st_size;
  map = mmap(NULL, (size_t)ix->size, PROT_READ, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED) {
    int status = gpuir__fail_errno(err, path, "cannot map");
    (void)close(fd);
    return status;
  }
  (void)close(fd);
  ix->map = (const uint8_t *)map;
  ix->mapped = 1;
  return GPUIR_OK;
}

/* Takes an index in the caller's memory. */
static int gpuir__open_memory(gpuir__segment *ix, const void *data, size_t size, gpuir_error *err) {
  if ((uintptr_t)data % 8)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "%s: an index in memory must be aligned to 8 bytes",
                       ix->path);
  ix->map = (const uint8_t *)data;
  ix->size = size;
  return GPUIR_OK;
}

/* Fills a segment that gpuir__segment_open has allocated; the caller closes it after a failure. */
static int gpuir__segment_fill(gpuir__segment *ix, int folder, const char *path, const gpuir_open_desc *desc,
                               gpuir_error *err) {
  int status = desc && desc->data ? gpuir__open_memory(ix, desc->data, desc->size, err)
                                  : gpuir__open_map(ix, folder, path, err);
  if (!status) status = gpuir__open_table(ix, err);
  if (!status) status = gpuir__open_arrays(ix, err);
  if (!status) status = gpuir__open_meta(ix, err);
  if (!status) status = gpuir__open_settings(ix, err);
  if (!status) status = gpuir__coding_check(ix->meta.codec, 1, ix->path, err);
  if (!status) status = gpuir__coding_check(ix->meta.freq_codec, 0, ix->path, err);
  return status;
}

/* Opens the file at `path`, which if relative starts at the open folder (AT_FDCWD: the current one), or the index in
 * memory that `desc` names, with one owner. */
static int gpuir__segment_open(const gpuir_allocator *a, int folder, const char *path,
                               const gpuir_open_desc *desc, gpuir__segment **segment, gpuir_error *err) {
  gpuir__segment *ix = (gpuir__segment *)gpuir__alloc_zero(a, sizeof *ix);
  int status;
  *segment = NULL;
  if (!ix || pthread_mutex_init(&ix->log.mutex, NULL)) {
    gpuir__free(a, ix, sizeof *ix);
    return gpuir__fail_nomem(err);
  }
  ix->a = *a;
  ix->refs = 1;
  ix->simd = gpuir__simd_level(desc ? desc->simd : GPUIR_SIMD_AUTO);
  (void)snprintf(ix->path, sizeof ix->path, "%.*s", (int)sizeof ix->path - 1, gpuir__tail(path));
  status = gpuir__segment_fill(ix, folder, path, desc, err);
  if (status)
    gpuir__segment_close(ix);
  else
    *segment = ix;
  return status;
}

/* ---- look-ups: nothing here trusts an offset of the file ---- */

/* Fills *r with the record of term `id` (< terms); df is 0 where the file is damaged. */
static void gpuir__record_get(const gpuir__segment *ix, uint64_t id, gpuir__record *r) {
  gpuir__dict_block b;
  if (gpuir__dict_open(&ix->terms, id / GPUIR__DICT_BLOCK, &b))
    gpuir__dict_record(&ix->terms, &b, id % GPUIR__DICT_BLOCK, r);
  else
    memset(r, 0, sizeof *r);
}

/* Copies the bytes of term `id` (< terms) and a NUL behind them to term[], and returns how many they are: 0 where the
 * file is damaged. */
static size_t gpuir__term_get(const gpuir__segment *ix, uint64_t id, uint8_t term[GPUIR_MAX_TERM + 1]) {
  gpuir__dict_block b;
  if (gpuir__dict_open(&ix->terms, id / GPUIR__DICT_BLOCK, &b))
    return gpuir__dict_term(&b, id % GPUIR__DICT_BLOCK, term);
  term[0] = 0;
  return 0;
}

/* All terms in order, with their records: what reads every term goes by it. */
typedef struct gpuir__walk {
  const gpuir__segment *ix;
  gpuir__dict_block block; /* of the current term; n is 0 where it is damaged */
  gpuir__dict_records records;
  gpuir__dict_step step;
  uint64_t id, next; /* of the current term and of the one behind it */
  gpuir__record record;
  size_t len;
  uint8_t term[GPUIR_MAX_TERM + 1]; /* as gpuir__term_get has it */
} gpuir__walk;

/* Begins before the first term. */
static void gpuir__walk_start(gpuir__walk *w, const gpuir__segment *ix) {
  w->ix = ix;
  w->next = 0;
}

/* Opens the block that begins with the current term, and takes that term out of it. */
static void gpuir__walk_open(gpuir__walk *w) {
  const gpuir__dict *d = &w->ix->terms;
  w->len = 0;
  if (gpuir__dict_open(d, w->id / GPUIR__DICT_BLOCK, &w->block) &&
      gpuir__dict_open_records(d, &w->block, &w->records)) {
    w->step = gpuir__dict_first(&w->block);
    w->len = w->step.rest;
    memcpy(w->term, w->block.text, w->len);
  } else {
    w->block.n = 0;
    memset(&w->record, 0, sizeof w->record);
  }
}

/* Goes to the next term; 0 behind the last one. */
static int gpuir__walk_next(gpuir__walk *w) {
  const unsigned i = w->next % GPUIR__DICT_BLOCK;
  w->id = w->next;
  if (w->id >= w->ix->stat.terms) return 0;
  w->next++;
  if (!i) gpuir__walk_open(w);
  if (w->block.n) {
    gpuir__dict_pick(&w->ix->terms, &w->records, i, &w->record);
    if (i && w->len)
      w->len = gpuir__dict_next(&w->block, i, &w->step)
                   ? gpuir__dict_spell(&w->block, i, &w->step, w->term, w->len)
                   : 0;
  }
  w->term[w->len] = 0;
  return 1;
}

/* Returns the least term id whose term is >= term[0..len). */
static uint64_t gpuir__term_lower_bound(const gpuir__segment *ix, const char *term, size_t len) {
  int found;
  return gpuir__dict_find(&ix->terms, term, len, &found);
}

/* Finds a term by its bytes. 0 or NOT_FOUND. */
static int gpuir__term_find(const gpuir__segment *ix, const char *term, size_t len, uint64_t *id) {
  uint64_t at;
  int found;
  if (!len || len > GPUIR_MAX_TERM) return GPUIR_E_NOT_FOUND;
  at = gpuir__dict_find(&ix->terms, term, len, &found);
  if (!found) return GPUIR_E_NOT_FOUND;
  *id = at;
  return GPUIR_OK;
}

static void gpuir__list_close(const gpuir_allocator *a, gpuir__list *l) {
  gpuir__free(a, l->memory, l->memory_size);
  l->memory = NULL;
}

/* Opens the streams' codecs, with scratch if they need any. */
static int gpuir__list_open_codecs(const gpuir_allocator *a, gpuir__list *l) {
  const gpuir__codec *d = l->docs.codec, *f = l->freqs.codec;
  size_t nd = d->scratch_size ? (d->scratch_size(&l->docs) + 63) & ~(size_t)63 : 0;
  size_t nf = f->scratch_size ? f->scratch_size(&l->freqs) : 0;
  int status = GPUIR_OK;
  if (nd + nf) {
    l->memory_size = nd + nf;
    l->memory = gpuir__alloc(a, l->memory_size);
    if (!l->memory) return GPUIR_E_NOMEM;
    l->docs.scratch = l->memory;
    l->freqs.scratch = (uint8_t *)l->memory + nd;
  }
  if (d->open) status = d->open(&l->docs);
  if (!status && f->open) status = f->open(&l->freqs);
  if (status) gpuir__list_close(a, l);
  return status;
}

/* Fills a long list with its extent, directory and streams. */
static int gpuir__list_open_long(const gpuir__segment *ix, const gpuir__record *r, gpuir__list *l) {
  const gpuir__long *x;
  uint64_t docids = ix->section[GPUIR__S_DOCIDS]->length, freqs = ix->section[GPUIR__S_FREQS]->length;
  if (r->docs >= ix->stat.longs) return GPUIR_E_FORMAT;
  x = &ix->lists.longs[r->docs];
  if (x->docs > docids || x->docs_len > docids - x->docs || x->freqs > freqs ||
      x->freqs_len > freqs - x->freqs || x->first_block > ix->stat.blocks ||
      l->nblocks > ix->stat.blocks - x->first_block)
    return GPUIR_E_FORMAT;
  l->extent = x;
  l->last = ix->lists.last + x->first_block;
  l->bounds = ix->lists.bounds + x->first_block;
  if (x->seeds && x->seeds <= ix->lists.nseeds)
    l->seeds = ix->lists.seeds + (uint64_t)(x->seeds - 1) * GPUIR__SEEDS;
  l->docs.bytes = ix->lists.docids + x->docs;
  l->docs.len = x->docs_len;
  l->docs.offset = ix->lists.docs_off + x->first_block;
  l->docs.width = ix->lists.docs_width + x->first_block;
  l->docs.last = l->last;
  l->freqs.bytes = ix->lists.freqs + x->freqs;
  l->freqs.len = x->freqs_len;
  l->freqs.offset = ix->lists.freqs_off + x->first_block;
  l->freqs.width = ix->lists.freqs_width + x->first_block;
  if (l->positions) l->positions_off = ix->lists.positions_off + x->first_block;
  return GPUIR_OK;
}

/* Finds the postings that a record stands for; their codecs are not open. 0, FORMAT, UNSUPPORTED. */
static int gpuir__list_of(const gpuir__segment *ix, const gpuir__record *r, gpuir__list *l) {
  int status = GPUIR_OK;
  memset(l, 0, sizeof *l);
  l->df = r->df;
  l->nblocks = r->df ? (r->df - 1) / GPUIR__BLOCK + 1 : 0;
  if (!r->df || r->df > ix->stat.documents) return GPUIR_E_FORMAT;
  if (ix->lists.positions) {
    const uint64_t most = ix->section[GPUIR__S_POSITIONS]->length;
    if (r->positions > most || r->positions_len > most - r->positions) return GPUIR_E_FORMAT;
    l->positions = ix->lists.positions + r->positions;
    l->positions_len = r->positions_len;
  }
  if (r->df == 1) {
    l->one_docid = (uint32_t)gpuir__min64(r->docs, ix->stat.documents - 1);
    l->one_tf = (uint32_t)gpuir__max64(1, gpuir__min64(r->freqs, UINT32_MAX));
    return GPUIR_OK;
  }
  l->docs.codec = gpuir__codec_by_id(r->codec, 1);
  l->freqs.codec = gpuir__codec_by_id(r->freq_codec, 0);
  if (!l->docs.codec || !l->freqs.codec) return GPUIR_E_UNSUPPORTED;
  l->docs.n = l->freqs.n = r->df;
  l->docs.limit = (uint32_t)(ix->stat.documents - 1);
  l->freqs.limit = UINT32_MAX;
  l->docs.kernels = l->freqs.kernels = gpuir__codec_kernels_at(ix->simd);
  if (r->df > GPUIR__SHORT_MAX) {
    status = gpuir__list_open_long(ix, r, l);
  } else {
    uint64_t docids = ix->section[GPUIR__S_DOCIDS]->length - ix->stat.docs_short;
    uint64_t freqs = ix->section[GPUIR__S_FREQS]->length - ix->stat.freqs_short;
    if (r->docs > docids || r->docs_len > docids - r->docs || r->freqs > freqs ||
        r->freqs_len > freqs - r->freqs)
      return GPUIR_E_FORMAT;
    l->docs.bytes = ix->lists.docids + ix->stat.docs_short + r->docs;
    l->docs.len = r->docs_len;
    l->freqs.bytes = ix->lists.freqs + ix->stat.freqs_short + r->freqs;
    l->freqs.len = r->freqs_len;
  }
  return status;
}

/* Opens the list of term `id` (< terms) likewise. */
static int gpuir__list_find(const gpuir__segment *ix, uint64_t id, gpuir__list *l) {
  gpuir__record r;
  gpuir__record_get(ix, id, &r);
  return gpuir__list_of(ix, &r, l);
}

/* Opens the postings of term `id` (< terms). Scratch comes from `a`. 0, FORMAT, UNSUPPORTED, NOMEM. */
static int gpuir__list_open(const gpuir__segment *ix, const gpuir_allocator *a, uint64_t id, gpuir__list *l) {
  int status = gpuir__list_find(ix, id, l);
  return status || l->df == 1 ? status : gpuir__list_open_codecs(a, l);
}

/* Returns words for the status with which gpuir__list_open has failed for term `id` (< terms). */
static const char *gpuir__list_why(const gpuir__segment *ix, uint64_t id, int status) {
  gpuir__record r;
  const char *words = NULL;
  if (status == GPUIR_E_UNSUPPORTED) {
    gpuir__record_get(ix, id, &r);
    words = gpuir__codec_left_out(NULL, 0, r.codec, 1);
    if (!words) words = gpuir__codec_left_out(NULL, 0, r.freq_codec, 0);
  }
  return words ? words : gpuir_strerror(status);
}

/* Returns the bytes [starts[i], starts[i + 1]) of a section; *len is 0 where the offsets make no sense. */
static const char *gpuir__slice(const gpuir__segment *ix, uint32_t bytes_id, uint32_t starts_id, uint64_t i,
                                size_t *len) {
  const gpuir__section *bytes = ix->section[bytes_id], *starts = ix->section[starts_id];
  const unsigned width = gpuir__start_width(bytes->length);
  const uint8_t *s = ix->map + starts->offset;
  uint64_t start, end;
  *len = 0;
  if (i + 1 >= gpuir__starts_count(bytes, starts)) return "";
  start = gpuir__load_number(s + i * width, width);
  end = gpuir__load_number(s + (i + 1) * width, width);
  if (start > end || end > bytes->length) return "";
  *len = (size_t)(end - start);
  return (const char *)ix->map + bytes->offset + start;
}

/* Puts the end of the source's path before the name that the names section has. The section of stems says, of each
 * source, where in its path (in bytes, plus 1) that end begins; 0: its documents' names are whole. */
static int gpuir__join_name(const gpuir__segment *ix, uint32_t source, gpuir_doc *doc) {
  uint32_t stem = gpuir__load32(ix->map + ix->section[GPUIR__S_STEMS]->offset + (uint64_t)source * 4);
  size_t n;
  if (!stem) return GPUIR_OK;
  if (stem > doc->source_len) return GPUIR_E_FORMAT;
  n = doc->source_len - (stem - 1);
  if (doc->name_len) { /* otherwise that end is the name, in one piece */
    if (doc->name_len > GPUIR__JOINED_MAX || n > GPUIR__JOINED_MAX - doc->name_len) return GPUIR_E_FORMAT;
    doc->name_piece[1] = doc->name_piece[0];
    doc->name_piece_len[1] = doc->name_piece_len[0];
  }
  doc->name_piece[0] = doc->source + (stem - 1);
  doc->name_piece_len[0] = n;
  doc->name_len += n;
  return GPUIR_OK;
}

GPUIR_API size_t gpuir_doc_name(const gpuir_doc *doc, char *buf, size_t cap) {
  size_t at = 0, i;
  if (!doc) return 0;
  for (i = 0; buf && cap && i < 2; i++) {
    size_t n = doc->name_piece_len[i] < cap - 1 - at ? doc->name_piece_len[i] : cap - 1 - at;
    if (n) memcpy(buf + at, doc->name_piece[i], n);
    at += n;
  }
  if (buf && cap) buf[at] = 0;
  return doc->name_len;
}

/* Fills in where a document comes from. 0 or FORMAT. */
static int gpuir__segment_origin(const gpuir__segment *ix, uint32_t docid, gpuir_doc *doc) {
  const gpuir__section *const *s = ix->section;
  const uint8_t *width = ix->map + s[GPUIR__S_ORIGINS]->offset, *p = width + GPUIR__ORIGINS_HEAD;
  gpuir__origin o;
  uint64_t source;
  unsigned i;
  p += (uint64_t)docid * gpuir__origins_row(ix);
  for (i = 0; i < GPUIR__O_COUNT; p += width[i++]) o.of[i] = gpuir__load_number(p, width[i]);
  source = o.of[GPUIR__O_SOURCE];
  if (!source) return GPUIR_OK;
  if (source >= gpuir__starts_count(s[GPUIR__S_SOURCES], s[GPUIR__S_SOURCE_START])) return GPUIR_E_FORMAT;
  doc->source = gpuir__slice(ix, GPUIR__S_SOURCES, GPUIR__S_SOURCE_START, source - 1, &doc->source_len);
  doc->first_line = (uint32_t)o.of[GPUIR__O_LINE];
  doc->last_line = doc->first_line + (uint32_t)o.of[GPUIR__O_LINES];
  doc->source_offset = o.of[GPUIR__O_OFFSET];
  doc->source_bytes = o.of[GPUIR__O_BYTES];
  if (doc->source_bytes > UINT64_MAX - doc->source_offset) return GPUIR_E_FORMAT;
  return s[GPUIR__S_STEMS] ? gpuir__join_name(ix, (uint32_t)(source - 1), doc) : GPUIR_OK;
}

/* Describes the segment's document `docid`. 0, NOT_FOUND, FORMAT. */
static int gpuir__segment_doc(const gpuir__segment *ix, uint32_t docid, gpuir_doc *doc) {
  memset(doc, 0, sizeof *doc);
  doc->name_piece[0] = doc->name_piece[1] = doc->source = "";
  if (docid >= ix->stat.documents) return GPUIR_E_NOT_FOUND;
  doc->name_piece[0] = gpuir__slice(ix, GPUIR__S_NAMES, GPUIR__S_NAME_START, docid, &doc->name_len);
  doc->name_piece_len[0] = doc->name_len;
  doc->length = ix->lengths[docid];
  if (ix->section[GPUIR__S_ORIGINS] && gpuir__segment_origin(ix, docid, doc)) return GPUIR_E_FORMAT;
  if (ix->section[GPUIR__S_HASHES])
    doc->hash = gpuir__load64(ix->map + ix->section[GPUIR__S_HASHES]->offset + (uint64_t)docid * 8);
  if (ix->section[GPUIR__S_TEXT])
    doc->text = gpuir__slice(ix, GPUIR__S_TEXT, GPUIR__S_TEXT_START, docid, &doc->text_len);
  return GPUIR_OK;
}

/* Adds the bytes of the sections up by their groups. */
static void gpuir__section_sums(const gpuir__segment *ix, uint64_t sums[GPUIR__G_COUNT]) {
  unsigned i;
  memset(sums, 0, GPUIR__G_COUNT * sizeof *sums);
  for (i = 0; i < GPUIR__SECTION_ROWS; i++) {
    const gpuir__section *s = ix->section[gpuir__section_rows[i].id];
    if (s) sums[gpuir__section_rows[i].group] += s->length;
  }
}

/* Returns the sum of a list's frequencies. */
static uint64_t gpuir__list_cf(const gpuir__list *l) {
  uint32_t values[GPUIR__BLOCK_ROOM], block, i, n;
  uint64_t cf = 0;
  for (block = 0; block < l->nblocks; block++) {
    gpuir__list_freqs(l, block, values);
    n = gpuir__list_block_len(l, block);
    for (i = 0; i < n; i++) cf += (uint64_t)values[i] + 1;
  }
  return cf;
}

/* Whether the bytes of a list's positions can hold so many. A number that a damaged file states, and that somebody
 * makes room for, is held against this first. */
static int gpuir__list_holds(const gpuir__list *l, uint64_t cf) {
  return !l->positions || cf <= l->positions_len * (uint64_t)GPUIR__CHUNK;
}

/* Describes term `id`. 0, NOT_FOUND, FORMAT, NOMEM, UNSUPPORTED. */
static int gpuir__segment_term(const gpuir__segment *ix, uint64_t id, gpuir_term_info *info) {
  gpuir__list l;
  int status;
  if (id >= ix->stat.terms) return GPUIR_E_NOT_FOUND;
  status = gpuir__list_open(ix, &ix->a, id, &l);
  if (status) return status;
  info->id = id;
  info->term_len = gpuir__term_get(ix, id, (uint8_t *)info->term);
  info->df = l.df;
  info->idf = gpuir__idf(ix->stat.documents, l.df);
  info->blocks = l.nblocks;
  info->cf = l.extent ? l.extent->cf : gpuir__list_cf(&l);
  info->codec = l.df == 1 ? "inline" : l.docs.codec->name;
  info->freq_codec = l.df == 1 ? "inline" : l.freqs.codec->name;
  info->docids_bytes = l.docs.len;
  info->freqs_bytes = l.freqs.len;
  info->positions_bytes = l.positions_len;
  if (l.extent)
    info->directory_bytes =
        sizeof *l.extent + (uint64_t)l.nblocks * (4 * 4 + 2 + (l.positions_off ? 4u : 0u));
  status = gpuir__list_holds(&l, info->cf) ? GPUIR_OK : GPUIR_E_FORMAT;
  gpuir__list_close(&ix->a, &l);
  return status;
}

/* Decodes term `id`'s list to docids[0..df) and tfs[0..df), of which one may be NULL. 0, or as gpuir__segment_term. */
static int gpuir__segment_postings(const gpuir__segment *ix, uint64_t id, uint32_t *docids, uint32_t *tfs) {
  uint32_t docs[GPUIR__BLOCK_ROOM], freqs[GPUIR__BLOCK_ROOM], block, i, n, at = 0;
  uint64_t next = 0; /* the least docID that may follow */
  gpuir__list l;
  int status;
  if (id >= ix->stat.terms) return GPUIR_E_NOT_FOUND;
  status = gpuir__list_open(ix, &ix->a, id, &l);
  if (status) return status;
  for (block = 0; block < l.nblocks && !status; block++) {
    n = gpuir__list_docs(&l, block, docs);
    for (i = 0; i < n; i++) {
      if (docs[i] < next || docs[i] >= ix->stat.documents) status = GPUIR_E_FORMAT;
      next = (uint64_t)docs[i] + 1;
    }
    if (docids) memcpy(docids + at, docs, (size_t)n * 4);
    if (tfs) gpuir__list_freqs(&l, block, freqs);
    for (i = 0; tfs && i < n; i++) {
      if (freqs[i] == UINT32_MAX) status = GPUIR_E_FORMAT;
      tfs[at + i] = freqs[i] + 1;
    }
    at += n;
  }
  gpuir__list_close(&ix->a, &l);
  return status;
}

/* Decodes the positions of block `block` behind at[0..left); returns how many they are, or 0 if they are more, fewer
 * than the frequencies say, do not ascend, or lie behind their documents' ends. */
static uint64_t gpuir__block_positions(const gpuir__segment *ix, const gpuir__list *l, uint32_t block,
                                       uint32_t *at, uint64_t left) {
  uint32_t docs[GPUIR__BLOCK_ROOM], freqs[GPUIR__BLOCK_ROOM];
  const uint32_t n = gpuir__list_docs(l, block, docs);
  uint64_t gap = 0;
  gpuir__positions p;
  uint32_t i;
  gpuir__list_freqs(l, block, freqs);
  gpuir__positions_open(&p, l, block, freqs, n);
  for (i = 0; i < n; i++) {
    uint32_t before = 0, x;
    gpuir__occurrences w;
    const uint64_t end = gap + 1 + freqs[i];
    if (end > left || docs[i] >= ix->stat.documents) return 0;
    while (!gpuir__positions_seek(&p, gap)) {}
    gpuir__occurrences_open(&w, &p, gap, freqs[i], UINT32_MAX);
    while ((x = gpuir__occurrences_next(&w)) != GPUIR_END) {
      if (x >= ix->lengths[docs[i]] || (before && x < before)) return 0;
      before = x + 1;
      at[gap++] = x;
    }
    if (gap != end) return 0;
  }
  return gap;
}

/* Decodes a term's positions: see gpuir_term_positions. */
static int gpuir__segment_positions(const gpuir__segment *ix, uint64_t id, uint32_t *positions, uint64_t n) {
  gpuir__list l;
  uint64_t at = 0, got;
  uint32_t block;
  int status;
  if (id >= ix->stat.terms) return GPUIR_E_NOT_FOUND;
  if (!ix->lists.positions) return GPUIR_E_UNSUPPORTED;
  status = gpuir__list_open(ix, &ix->a, id, &l);
  if (status) return status;
  if (n != gpuir__list_cf(&l)) status = GPUIR_E_ARGUMENT;
  for (block = 0; block < l.nblocks && !status; block++) {
    got = gpuir__block_positions(ix, &l, block, positions + at, n - at);
    if (!got) status = GPUIR_E_FORMAT;
    at += got;
  }
  gpuir__list_close(&ix->a, &l);
  return status;
}

/* A negative array length if a table of codecs outgrows what is promised. */
typedef char gpuir__codecs_fit[GPUIR__DOCID_CODECS <= GPUIR_MAX_CODECS ? 1 : -1];

/* Adds the lists to those of their codecs, in the order of the table of docIDs' or of frequencies' codecs. 0, FORMAT,
 * UNSUPPORTED. */
static int gpuir__segment_codecs(const gpuir__segment *ix, int docids,
                                 gpuir_codec_info all[GPUIR_MAX_CODECS]) {
  const gpuir__codec *table = docids ? gpuir__docid_codecs : gpuir__freq_codecs;
  gpuir__walk w;
  for (gpuir__walk_start(&w, ix); gpuir__walk_next(&w);) {
    const gpuir__record *r = &w.record;
    const gpuir__codec *c;
    gpuir_codec_info *x;
    if (r->df == 1) continue;
    c = gpuir__codec_by_id(docids ? r->codec : r->freq_codec, docids);
    if (!c) return GPUIR_E_UNSUPPORTED;
    x = &all[c - table];
    x->lists++;
    x->postings += r->df;
    if (r->df <= GPUIR__SHORT_MAX) {
      x->bytes += docids ? r->docs_len : r->freqs_len;
    } else {
      if (r->docs >= ix->stat.longs) return GPUIR_E_FORMAT;
      x->bytes += docids ? ix->lists.longs[r->docs].docs_len : ix->lists.longs[r->docs].freqs_len;
    }
  }
  return GPUIR_OK;
}

/* ---- verify ---- */

/* The end of a part of the docID and the frequency streams so far, in bytes from the part's start. */
typedef struct gpuir__stream_ends {
  uint64_t docs, freqs;
} gpuir__stream_ends;

/* The lists of the terms so far, as the directory has them. */
typedef struct gpuir__directory {
  uint64_t postings, inline_postings, longs, blocks;
  uint64_t positions; /* bytes */
  gpuir__stream_ends of_long, of_short;
} gpuir__directory;

/* Returns where in the file the block of term `id` (< terms) begins. */
static uint64_t gpuir__term_offset(const gpuir__segment *ix, uint64_t id) {
  const uint64_t block = id / GPUIR__DICT_BLOCK;
  return ix->section[GPUIR__S_TERMS]->offset + ix->terms.pages[block / GPUIR__DICT_PAGE].start +
         ix->terms.starts[block];
}

/* Fails with the cause, the term and the place of its block. */
static int gpuir__verify_term(const gpuir__segment *ix, gpuir_error *err, uint64_t id, const char *cause) {
  uint8_t t[GPUIR_MAX_TERM + 1];
  size_t n = gpuir__term_get(ix, id, t);
  return gpuir__fail(err, GPUIR_E_FORMAT, gpuir__term_offset(ix, id), "%s: term %llu \"%.*s\": %s", ix->path,
                     (unsigned long long)id, (int)(n < 32 ? n : 32), (const char *)t, cause);
}

/* Adds a stream pair to those before it; 0 if it begins before their end. */
static int gpuir__directory_append(gpuir__stream_ends *ends, uint64_t docs, uint64_t docs_len, uint64_t freqs,
                                   uint64_t freqs_len) {
  if (docs < ends->docs || freqs < ends->freqs || docs_len > UINT64_MAX - docs ||
      freqs_len > UINT64_MAX - freqs)
    return 0;
  ends->docs = docs + docs_len;
  ends->freqs = freqs + freqs_len;
  return 1;
}

/* Adds the next term's list. Returns what is wrong with it, or NULL. A long list is the next one of its section, and
 * every list has blocks and bytes that no other list has: the writer lays them out so, and the work is bounded by the
 * file's size, however many terms would name one list. */
static const char *gpuir__directory_add(gpuir__directory *d, const gpuir__segment *ix,
                                        const gpuir__record *r) {
  const gpuir__long *x;
  d->postings += r->df;
  if (r->positions != d->positions || r->positions_len > ix->size)
    return "its positions are not the next ones";
  d->positions += r->positions_len;
  if (r->df <= 1) {
    d->inline_postings += r->df;
    return r->df ? NULL : "it has no postings";
  }
  if (r->df <= GPUIR__SHORT_MAX)
    return gpuir__directory_append(&d->of_short, r->docs, r->docs_len, r->freqs, r->freqs_len)
               ? NULL
               : "its list has another one's bytes";
  if (r->docs != d->longs || r->docs >= ix->stat.longs) return "its list is not the next one";
  x = &ix->lists.longs[r->docs];
  if (x->first_block != d->blocks) return "its blocks are not the next ones";
  d->longs++;
  d->blocks += (r->df - 1) / GPUIR__BLOCK + 1;
  if (d->blocks > ix->stat.blocks) return "its blocks are not there";
  return gpuir__directory_append(&d->of_long, x->docs, x->docs_len, x->freqs, x->freqs_len)
             ? NULL
             : "its list has another one's bytes";
}

/* Checks that the lists of all terms are as many as the index states. */
static int gpuir__directory_end(const gpuir__directory *d, const gpuir__segment *ix, gpuir_error *err) {
  const gpuir__section *positions = ix->section[GPUIR__S_POSITIONS];
  if (d->positions != (positions ? positions->length : 0))
    return gpuir__bad(ix, err, positions ? positions->offset : 0, "positions do not fill their section");
  if (d->postings == ix->stat.postings && d->inline_postings == ix->stat.inline_postings &&
      d->longs == ix->stat.longs && d->blocks == ix->stat.blocks)
    return GPUIR_OK;
  return gpuir__bad(ix, err, 0, "counts do not sum up");
}

/* Holds the directory of the lists against itself: see gpuir_verify_directory. */
static int gpuir__segment_verify_directory(const gpuir__segment *ix, gpuir_error *err) {
  gpuir__directory d;
  gpuir__walk w;
  memset(&d, 0, sizeof d);
  for (gpuir__walk_start(&w, ix); gpuir__walk_next(&w);) {
    const char *cause = gpuir__directory_add(&d, ix, &w.record);
    if (cause) return gpuir__verify_term(ix, err, w.id, cause);
  }
  return gpuir__directory_end(&d, ix, err);
}

typedef struct gpuir__verifier {
  const gpuir__segment *ix;
  gpuir__norm norm; /* of the stored k1 and b, and of all documents of the segment: those of its seeds */
  gpuir_error *err;
  float weight; /* of the list, if it has seeds */
  gpuir__top top;
  gpuir__directory directory;
} gpuir__verifier;

/* Returns 1 if one of n pairs bounds the contribution of a posting with this tf and document length. */
static int gpuir__dominated(const gpuir__pair *pairs, unsigned n, uint32_t tf, uint32_t length) {
  uint32_t t = gpuir__code_up(tf), d = gpuir__code_down(length);
  unsigned i;
  for (i = 0; i < n; i++)
    if (t <= (pairs[i] & 255u) && d >= (uint32_t)(pairs[i] >> 8)) return 1;
  return 0;
}

/* Checks a block's positions: that they ascend within their documents, and take the bytes behind those of the block
 * before, at *at of the list. Returns what is wrong, or NULL. */
static const char *gpuir__verify_positions(const gpuir__verifier *v, const gpuir__list *l, uint32_t block,
                                           const uint32_t *docs, const uint32_t *freqs, uint32_t n,
                                           uint64_t *at) {
  gpuir__positions p;
  uint64_t gap = 0, size;
  uint32_t i;
  if (l->positions_off && (uint64_t)l->positions_off[block] * GPUIR__CHUNK_UNIT != *at)
    return "a block's positions are not the next ones";
  gpuir__positions_open(&p, l, block, freqs, n);
  for (i = 0; i < n; i++) gap += (uint64_t)freqs[i] + 1;
  size = gpuir__positions_size(&p, gap);
  if (!size) return "positions are missing";
  *at += size;
  if (l->positions_off) *at = (*at + GPUIR__CHUNK_UNIT - 1) & ~(uint64_t)(GPUIR__CHUNK_UNIT - 1);
  gpuir__positions_open(&p, l, block, freqs, n);
  for (i = 0, gap = 0; i < n; i++) {
    uint32_t next = 0, x;
    gpuir__occurrences w;
    gpuir__occurrences_open(&w, &p, gap, freqs[i], UINT32_MAX);
    gap += (uint64_t)freqs[i] + 1;
    while (!gpuir__positions_seek(&p, gap)) {}
    while ((x = gpuir__occurrences_next(&w)) != GPUIR_END) {
      if (x < next) return "positions do not ascend";
      if (x >= v->ix->lengths[docs[i]]) return "a position is behind its document's end";
      next = x + 1;
    }
  }
  return NULL;
}

/* Checks a block of a list against the directory, the bounds and the lengths. Returns what is wrong, or NULL. */
static const char *gpuir__verify_block(gpuir__verifier *v, const gpuir__list *l, uint32_t block, uint64_t *cf,
                                       uint64_t *positions) {
  uint32_t docs[GPUIR__BLOCK_ROOM], freqs[GPUIR__BLOCK_ROOM], n, i;
  gpuir__pair pairs[GPUIR__BLOCK_PAIRS];
  n = gpuir__list_docs(l, block, docs);
  gpuir__list_freqs(l, block, freqs);
  if (l->bounds) memcpy(pairs, &l->bounds[block], sizeof pairs);
  for (i = 0; i < n; i++) {
    uint32_t length, tf = freqs[i] + 1;
    if (docs[i] >= v->ix->stat.documents || !tf) return "a posting is out of range";
    if (i ? docs[i] <= docs[i - 1] : block && docs[i] <= l->last[block - 1]) return "docIDs do not ascend";
    length = v->ix->lengths[docs[i]];
    if (gpuir__list_tf(l, block * GPUIR__BLOCK + i) != tf) return "frequencies disagree";
    if (l->df > 1 && l->docs.codec->get && l->docs.codec->get(&l->docs, block * GPUIR__BLOCK + i) != docs[i])
      return "docIDs disagree";
    *cf += tf;
    if (!l->extent) continue;
    if (!gpuir__dominated(pairs, GPUIR__BLOCK_PAIRS, tf, length)) return "a block's bounds are too low";
    if (!gpuir__dominated(l->extent->pairs, GPUIR__LIST_PAIRS, tf, length))
      return "the list's bounds are too low";
    if (!l->seeds) continue;
    gpuir__top_add(&v->top, gpuir__contribution(v->weight, tf, gpuir__norm_of(v->norm.a, v->norm.b, length)));
  }
  if (l->last && docs[n - 1] != l->last[block]) return "a block's last docID differs from the directory";
  return l->positions ? gpuir__verify_positions(v, l, block, docs, freqs, n, positions) : NULL;
}

/* Checks a list block by block. Returns what is wrong, or NULL. */
static const char *gpuir__verify_list(gpuir__verifier *v, const gpuir__list *l) {
  uint64_t cf = 0, positions = 0;
  uint32_t block;
  v->top.n = v->top.floor = 0;
  if (l->seeds) v->weight = gpuir__weight(gpuir__idf(v->ix->stat.documents, l->df), v->ix->stat.k1);
  for (block = 0; block < l->nblocks; block++) {
    const char *cause = gpuir__verify_block(v, l, block, &cf, &positions);
    if (cause) return cause;
  }
  if (l->positions && positions != l->positions_len) return "positions do not fill their bytes";
  if (!l->extent) return NULL;
  if (cf != l->extent->cf) return "the collection frequency is wrong";
  if (l->seeds) {
    uint32_t s;
    gpuir__top_sort(&v->top);
    for (s = 0; s < GPUIR__SEEDS; s++)
      if (l->df < gpuir__seed_ranks[s] || l->seeds[s] > v->top.values[gpuir__seed_ranks[s] - 1])
        return "a seed is too high";
  }
  return NULL;
}

/* Checks that the blocks are those that the writer makes of their terms and records. The docIDs' width, the shared
 * bytes, the bases and the bits that nothing needs are right then, too. */
static int gpuir__verify_blocks(const gpuir__verifier *v) {
  const gpuir__dict *d = &v->ix->terms;
  gpuir__dict_page page, now;
  gpuir__dict_terms *t = (gpuir__dict_terms *)gpuir__alloc_zero(&v->ix->a, sizeof *t);
  uint8_t out[GPUIR__DICT_MOST + 8];
  gpuir__walk w;
  int good = 1;
  if (!t) return gpuir__fail_nomem(v->err);
  memset(&page, 0, sizeof page);
  now = page;
  for (gpuir__walk_start(&w, v->ix); good && gpuir__walk_next(&w);) {
    const uint64_t block = w.id / GPUIR__DICT_BLOCK, start = now.start;
    gpuir__dict_add(t, w.term, w.len, &w.record);
    good = w.len && w.record.df;
    if (!good || (t->n < GPUIR__DICT_BLOCK && w.next < d->terms)) continue;
    if (block % GPUIR__DICT_PAGE == 0) page = now;
    good = !memcmp(&page, &d->pages[block / GPUIR__DICT_PAGE], sizeof page) &&
           d->starts[block] == start - page.start;
    if (good) {
      const size_t n = gpuir__dict_encode(t, &d->form, &page, &now, out);
      good = now.start <= d->size && !memcmp(out, d->bytes + start, n);
    }
    t->n = 0;
    t->fill = 0;
  }
  gpuir__free(&v->ix->a, t, sizeof *t);
  if (!good) return gpuir__verify_term(v->ix, v->err, w.id, "its block is not as it is written");
  if (now.start != d->size)
    return gpuir__bad(v->ix, v->err, 0, "the dictionary's blocks do not fill their section");
  return GPUIR_OK;
}

/* Checks that the search tree has the blocks' first terms. */
static int gpuir__verify_tree(const gpuir__verifier *v) {
  const gpuir__dict *d = &v->ix->terms;
  const uint64_t *keys = d->keys;
  uint64_t node, want[GPUIR__DICT_FAN];
  unsigned depth;
  for (depth = 0; depth < d->levels; depth++)
    for (node = 0; node < d->level[depth]; node++, keys += GPUIR__DICT_FAN) {
      gpuir__dict_node(d, depth, node, want);
      if (memcmp(want, keys, sizeof want))
        return gpuir__bad(v->ix, v->err,
                          v->ix->section[GPUIR__S_TERM_KEYS]->offset + (uint64_t)(keys - d->keys) * 8,
                          "the search tree does not have the terms");
    }
  return GPUIR_OK;
}

/* Checks the terms' order, records and lists. */
static int gpuir__verify_terms(gpuir__verifier *v) {
  const gpuir__segment *ix = v->ix;
  uint8_t before[GPUIR_MAX_TERM];
  size_t before_len = 0;
  gpuir__walk w;
  for (gpuir__walk_start(&w, ix); gpuir__walk_next(&w);) {
    const uint64_t id = w.id;
    const size_t n = w.len;
    gpuir__list l;
    const char *cause;
    int status;
    if (!n) return gpuir__verify_term(ix, v->err, id, "bad bounds of its bytes");
    if (id && gpuir__compare_bytes(before, before_len, w.term, n) >= 0)
      return gpuir__verify_term(ix, v->err, id, "terms are not sorted");
    memcpy(before, w.term, n);
    before_len = n;
    cause = gpuir__directory_add(&v->directory, ix, &w.record);
    if (cause) return gpuir__verify_term(ix, v->err, id, cause);
    status = gpuir__list_open(ix, &ix->a, id, &l);
    if (status == GPUIR_E_NOMEM) return gpuir__fail_nomem(v->err);
    if (status == GPUIR_E_UNSUPPORTED && gpuir__list_why(ix, id, status) != gpuir_strerror(status))
      return gpuir__fail(v->err, status, 0, "%s: %s", ix->path, gpuir__list_why(ix, id, status));
    if (status == GPUIR_E_UNSUPPORTED) return gpuir__verify_term(ix, v->err, id, "unknown codec");
    if (status) return gpuir__verify_term(ix, v->err, id, "bad record");
    cause = gpuir__verify_list(v, &l);
    gpuir__list_close(&ix->a, &l);
    if (cause) return gpuir__verify_term(ix, v->err, id, cause);
  }
  return GPUIR_OK;
}

/* Checks that a section's offsets into the one of the row before ascend and end with it. */
static int gpuir__verify_starts(const gpuir__segment *ix, unsigned row, gpuir_error *err) {
  const gpuir__section *bytes = ix->section[gpuir__section_rows[row - 1].id];
  const gpuir__section *starts = ix->section[gpuir__section_rows[row].id];
  uint64_t before = 0, i;
  unsigned width;
  if (!bytes || !starts) return GPUIR_OK;
  width = gpuir__start_width(bytes->length);
  for (i = 0; i < gpuir__starts_count(bytes, starts); i++) {
    uint64_t at = gpuir__load_number(ix->map + starts->offset + i * width, width);
    if (at < before || at > bytes->length)
      return gpuir__bad(ix, err, starts->offset + i * width, "offsets do not ascend");
    before = at;
  }
  return before == bytes->length ? GPUIR_OK
                                 : gpuir__bad(ix, err, starts->offset, "offsets do not cover their section");
}

/* Checks all sections of offsets. */
static int gpuir__verify_all_starts(const gpuir__segment *ix, gpuir_error *err) {
  unsigned row;
  int status = GPUIR_OK;
  for (row = 1; row < GPUIR__SECTION_ROWS && !status; row++) {
    const uint32_t items = gpuir__section_rows[row].items;
    if (items == GPUIR__N_DOC_ENDS || items == GPUIR__N_SOURCE_ENDS)
      status = gpuir__verify_starts(ix, row, err);
  }
  return status;
}

/* Checks that documents have sources that are there, names that their stems fit, and the texts that their hashes are
 * of. */
static int gpuir__verify_documents(const gpuir__segment *ix, gpuir_error *err) {
  const gpuir__section *origins = ix->section[GPUIR__S_ORIGINS], *texts = ix->section[GPUIR__S_TEXT];
  uint64_t i;
  gpuir_doc doc;
  for (i = 0; (origins || texts) && i < ix->stat.documents; i++) {
    if (gpuir__segment_doc(ix, (uint32_t)i, &doc))
      return gpuir__bad(ix, err, origins->offset + GPUIR__ORIGINS_HEAD + i * gpuir__origins_row(ix),
                        "a document's source is none, or does not fit its name or the place in it");
    if (!doc.text_len || !doc.hash || XXH3_64bits(doc.text, doc.text_len) == doc.hash) continue;
    if (doc.source_bytes == doc.text_len || !(doc.source_offset || doc.source_bytes))
      return gpuir__bad(ix, err, ix->section[GPUIR__S_HASHES]->offset + i * 8,
                        "a document's hash is not that of its text");
  }
  return GPUIR_OK;
}

/* Reads the whole segment: see gpuir_verify. */
static int gpuir__segment_verify(const gpuir__segment *ix, gpuir_error *err) {
  gpuir__verifier *v;
  uint64_t tokens = 0, i, at, end;
  int status = GPUIR_OK;
  for (i = 0; i < ix->nsections; i++) {
    const gpuir__section *s = &ix->table[i];
    if (XXH3_64bits(ix->map + s->offset, (size_t)s->length) != s->hash)
      return gpuir__fail(err, GPUIR_E_CHECKSUM, s->offset, "%s: checksum of section %u is wrong", ix->path,
                         (unsigned)s->id);
    end = (s->offset + s->length + 2 * GPUIR__ALIGN - 1) & ~(uint64_t)(GPUIR__ALIGN - 1);
    for (at = s->offset + s->length; at < end && at < ix->size; at++)
      if (ix->map[at]) return gpuir__bad(ix, err, at, "the padding behind a section is not zero");
  }
  v = (gpuir__verifier *)gpuir__alloc_zero(&ix->a, sizeof *v);
  if (!v) return gpuir__fail_nomem(err);
  v->ix = ix;
  v->norm = gpuir__norm_make(ix->stat.k1, ix->stat.b, gpuir__mean(ix->stat.tokens, ix->stat.documents));
  v->err = err;
  for (i = 0; i < ix->stat.documents; i++) tokens += ix->lengths[i];
  if (tokens != ix->stat.tokens)
    status = gpuir__bad(ix, err, 0, "lengths do not sum to the number of tokens");
  if (!status) status = gpuir__verify_all_starts(ix, err);
  if (!status) status = gpuir__verify_documents(ix, err);
  if (!status) status = gpuir__verify_terms(v);
  if (!status) status = gpuir__verify_blocks(v);
  if (!status) status = gpuir__verify_tree(v);
  if (!status) status = gpuir__directory_end(&v->directory, ix, err);
  gpuir__free(&ix->a, v, sizeof *v);
  return status;
}

/* ============================================================================
 * [13b-snapshot]  segments as one index
 *
 * An open index is a snapshot: one segment or more, whose documents are numbered one after another, and what they come
 * to together: documents, tokens, their average length, and from it the norm. Segment by segment stands in its leaf.
 * Terms have numbers in their segments only, so functions that take such numbers need a snapshot of one segment.
 *
 * Uses      [09-postings] (norms), [11-analysis] (its pool), [13-reader].
 * Start at  gpuir__index_make, gpuir__leaf_df, gpuir__leaf_of, gpuir__only.
 * Tests     tests/unit/13b_snapshot.c
 * ==========================================================================*/

/* ---- saturations ---- */

/* tf / (tf + K) for each bound pair under one (k1, b). W times an entry differs from the
 * contribution of the pair by less than what gpuir__slacken adds. */
struct gpuir__saturation {
  float of[65536];  /* [bound pair] */
  gpuir__norm norm; /* of which (k1, b) */
  int valid;        /* 0: not filled yet */
};

/* Fills the table for one (k1, b), unless it is that one's already. */
static void gpuir__saturation_prepare(gpuir__saturation *t, gpuir__norm norm) {
  uint32_t tf, len;
  if (t->valid && t->norm.a >= norm.a && t->norm.a <= norm.a && t->norm.b >= norm.b && t->norm.b <= norm.b)
    return;
  for (len = 0; len < 256; len++) {
    float k = gpuir__norm_of(norm.a, norm.b, gpuir__code_value(len));
    t->of[len << 8] = 0; /* tf code 0: no pair */
    for (tf = 1; tf < 256; tf++) {
      float f = (float)(tf < 255 ? gpuir__code_value(tf) : GPUIR__CAP);
      t->of[len << 8 | tf] = f / (f + k);
    }
  }
  t->norm = norm;
  t->valid = 1;
}

/* Returns the table of the index's own k1 and b, made when it is first asked for; NULL if there is no memory for it.
 * Thread-safe: of several that are made at once, one stays. */
static const gpuir__saturation *gpuir__index_saturation(gpuir_index *ix) {
  gpuir__saturation *table = __atomic_load_n(&ix->saturation, __ATOMIC_ACQUIRE), *other = NULL;
  if (table) return table;
  table = (gpuir__saturation *)gpuir__alloc(&ix->a, sizeof *table);
  if (!table) return NULL;
  table->valid = 0;
  gpuir__saturation_prepare(table, ix->norm);
  if (__atomic_compare_exchange_n(&ix->saturation, &other, table, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return table;
  gpuir__free(&ix->a, table, sizeof *table);
  return other;
}

/* ---- deleted documents ---- */

/* Finds the log's chunk that has its document number `at`, and *at there. */
static unsigned gpuir__log_place(uint32_t *at) {
  const uint64_t x = (uint64_t)*at + 64;
  const unsigned chunk = 57u - (unsigned)__builtin_clzll(x); /* x in [64 << chunk, 128 << chunk) */
  *at = (uint32_t)(x - ((uint64_t)64 << chunk));
  return chunk;
}

/* Returns document number `at` (< n) of the log. */
static uint32_t gpuir__log_get(const gpuir__log *log, uint32_t at) {
  const unsigned chunk = gpuir__log_place(&at);
  return log->chunk[chunk][at];
}

/* Appends docids[0..n), which were not deleted before; the mutex is held. 0 or NOMEM: then the log is as before. */
static int gpuir__log_append(gpuir__segment *seg, const uint32_t *docids, size_t n) {
  gpuir__log *log = &seg->log;
  size_t i;
  if (n && !log->counts) {
    uint32_t slots = 64;
    while (slots < 4096 && slots < seg->stat.terms) slots *= 2;
    log->counts = (gpuir__log_count *)gpuir__alloc_zero(&seg->a, slots * sizeof *log->counts);
    if (!log->counts) return GPUIR_E_NOMEM;
    log->mask = slots - 1;
  }
  for (i = 0; i < n; i++) {
    uint32_t at = log->n + (uint32_t)i;
    const unsigned chunk = gpuir__log_place(&at);
    if (!log->chunk[chunk]) log->chunk[chunk] = (uint32_t *)gpuir__alloc(&seg->a, ((size_t)64 << chunk) * 4);
    if (!log->chunk[chunk]) return GPUIR_E_NOMEM;
    log->chunk[chunk][at] = docids[i];
  }
  log->n += (uint32_t)n;
  return GPUIR_OK;
}

/* Makes docids[0..n) the first n documents of the segment's log. 0; NOMEM; FORMAT if they are not: the log has others
 * there, as that of another writer's attempt can have, and the segment has to be opened anew. */
static int gpuir__log_extend(gpuir__segment *seg, const uint32_t *docids, uint32_t n) {
  gpuir__log *log = &seg->log;
  uint32_t i = 0, same;
  int status = GPUIR_OK;
  (void)pthread_mutex_lock(&log->mutex);
  same = gpuir__min32(n, log->n);
  while (i < same && gpuir__log_get(log, i) == docids[i]) i++;
  if (i < same)
    status = GPUIR_E_FORMAT;
  else if (n > same)
    status = gpuir__log_append(seg, docids + same, n - same);
  (void)pthread_mutex_unlock(&log->mutex);
  return status;
}

static inline int gpuir__deleted_has(const gpuir__deleted *d, uint32_t docid) {
  return (int)(d->bits[docid / 64] >> docid % 64 & 1);
}

/* Leaves the set; NULL is allowed. */
static void gpuir__deleted_close(gpuir__deleted *d) {
  gpuir_allocator a;
  if (!d || __atomic_sub_fetch(&d->refs, 1, __ATOMIC_ACQ_REL)) return;
  a = d->a;
  gpuir__free(&a, d, sizeof *d + (size_t)d->words * 8);
}

/* Makes the set of the first n documents of a segment's log, or becomes an owner of `before`, one of the same segment's
 * sets or NULL, if it is the same. *set is NULL for none. 0 or NOMEM; FORMAT if one is no document, or stands twice. */
static int gpuir__deleted_make(gpuir__segment *seg, uint32_t n, gpuir__deleted *before,
                               gpuir__deleted **set) {
  const uint64_t words = seg->stat.documents / 64 + 1;
  gpuir__deleted *d;
  uint32_t i;
  *set = NULL;
  if (!n) return GPUIR_OK;
  if (before && before->n == n) {
    (void)__atomic_add_fetch(&before->refs, 1, __ATOMIC_RELAXED);
    *set = before;
    return GPUIR_OK;
  }
  d = (gpuir__deleted *)gpuir__alloc_zero(&seg->a, sizeof *d + (size_t)words * 8);
  if (!d) return GPUIR_E_NOMEM;
  if (before && before->n < n) memcpy(d, before, sizeof *d + (size_t)words * 8);
  d->a = seg->a;
  d->refs = 1;
  d->words = words;
  for (i = d->n; i < n; i++) {
    const uint32_t docid = gpuir__log_get(&seg->log, i);
    if (docid >= seg->stat.documents || gpuir__deleted_has(d, docid)) {
      gpuir__deleted_close(d);
      return GPUIR_E_FORMAT;
    }
    d->bits[docid / 64] |= (uint64_t)1 << docid % 64;
    d->tokens += seg->lengths[docid];
  }
  d->n = n;
  *set = d;
  return GPUIR_OK;
}

/* Counts the list's postings that are of documents of a set. */
static uint32_t gpuir__deleted_count(const gpuir__deleted *d, const gpuir__list *l) {
  uint32_t docs[GPUIR__BLOCK_ROOM], block, i, n, count = 0;
  for (block = 0; block < l->nblocks; block++) {
    n = gpuir__list_docs(l, block, docs);
    for (i = 0; i < n; i++) count += (uint32_t)gpuir__deleted_has(d, docs[i]);
  }
  return count;
}

#ifndef GPUIR__LOG_SORTED
#define GPUIR__LOG_SORTED 256u /* documents that are looked up together */
#endif

static int gpuir__compare_asc32(const void *a, const void *b) {
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

/* Counts those of the documents from number `from` up to `to` of the log that the list has, under a cursor on it. */
static uint32_t gpuir__log_find(const gpuir__log *log, gpuir__cursor *c, uint32_t from, uint32_t to) {
  uint32_t docids[GPUIR__LOG_SORTED], count = 0, i, n;
  for (; from < to; from += n) {
    n = gpuir__min32(to - from, GPUIR__LOG_SORTED);
    for (i = 0; i < n; i++) docids[i] = gpuir__log_get(log, from + i);
    qsort(docids, n, sizeof docids[0], gpuir__compare_asc32);
    gpuir__cursor_reset(c);
    for (i = 0; i < n; i++) count += gpuir__cursor_seek(c, docids[i]) == docids[i];
  }
  return count;
}

/* A look-up of a deleted document takes as long as this many postings of a list that is read. Measured. */
#ifndef GPUIR__LOG_LOOKUP
#define GPUIR__LOG_LOOKUP 32u
#endif

/* Counts the postings of term `id` that are of the leaf's deleted documents, from what is known of fewer or of more
 * deletions; *decoded: the blocks that were read for it. 0, or why the list cannot be opened. */
static int gpuir__leaf_recount(const gpuir__leaf *leaf, uint64_t id, const gpuir__log_count *known,
                               uint32_t *count, uint64_t *decoded) {
  const gpuir__deleted *d = leaf->deleted;
  const uint32_t from = gpuir__min32(known->n, d->n), to = gpuir__max32(known->n, d->n);
  gpuir__cursor c;
  int status = gpuir__list_open(leaf->seg, &leaf->seg->a, id, &c.list);
  if (status) return status;
  if ((uint64_t)(to - from) * GPUIR__LOG_LOOKUP < c.list.df) {
    uint32_t found;
    c.decoded = 0;
    found = gpuir__log_find(&leaf->seg->log, &c, from, to);
    *decoded = c.decoded;
    *count = known->n < d->n ? known->deleted + found : known->deleted - gpuir__min32(found, known->deleted);
  } else {
    *decoded = c.list.nblocks;
    *count = gpuir__deleted_count(d, &c.list);
  }
  gpuir__list_close(&leaf->seg->a, &c.list);
  return GPUIR_OK;
}

/* Counts the live documents of a leaf that hold term `id`. What it learns of deleted ones the segment keeps, for this
 * snapshot and for others. 0, FORMAT, NOMEM, UNSUPPORTED. Thread-safe. */
static int gpuir__leaf_df(const gpuir__leaf *leaf, uint64_t id, uint32_t *df) {
  gpuir__log *log = &leaf->seg->log;
  gpuir__log_count *slot, known = {0, 0, 0};
  gpuir__record r;
  uint32_t count;
  uint64_t decoded;
  int status;
  gpuir__record_get(leaf->seg, id, &r);
  *df = (uint32_t)gpuir__min64(r.df, leaf->seg->stat.documents);
  if (!leaf->deleted || !*df) return GPUIR_OK;
  slot = &log->counts[(uint32_t)(id * 0x9e3779b1u) >> 16 & log->mask];
  (void)pthread_mutex_lock(&log->mutex);
  if (slot->id == (uint32_t)id + 1) known = *slot;
  (void)pthread_mutex_unlock(&log->mutex);
  if (known.id && known.n == leaf->deleted->n) {
    count = known.deleted;
  } else {
    status = gpuir__leaf_recount(leaf, id, &known, &count, &decoded);
    if (status) return status;
    (void)pthread_mutex_lock(&log->mutex);
    slot->id = (uint32_t)id + 1;
    slot->n = leaf->deleted->n;
    slot->deleted = count;
    log->decoded += decoded;
    (void)pthread_mutex_unlock(&log->mutex);
  }
  *df -= gpuir__min32(count, *df);
  return GPUIR_OK;
}

/* Sums the frequencies of term `id` in a leaf's live documents up. 0, FORMAT, NOMEM, UNSUPPORTED. */
static int gpuir__leaf_cf(const gpuir__leaf *leaf, uint64_t id, uint64_t *cf) {
  uint32_t docs[GPUIR__BLOCK_ROOM], freqs[GPUIR__BLOCK_ROOM], block, i, n;
  gpuir__list l;
  int status = gpuir__list_open(leaf->seg, &leaf->seg->a, id, &l);
  *cf = 0;
  if (status) return status;
  if (!leaf->deleted) *cf = l.extent ? l.extent->cf : gpuir__list_cf(&l);
  for (block = 0; leaf->deleted && block < l.nblocks; block++) {
    n = gpuir__list_docs(&l, block, docs);
    gpuir__list_freqs(&l, block, freqs);
    for (i = 0; i < n; i++)
      if (!gpuir__deleted_has(leaf->deleted, docs[i])) *cf += (uint64_t)freqs[i] + 1;
  }
  gpuir__list_close(&leaf->seg->a, &l);
  return GPUIR_OK;
}

/* ---- open and close ---- */

/* Leaves a leaf's segment and set. */
static void gpuir__leaf_close(gpuir__leaf *leaf) {
  gpuir__deleted_close(leaf->deleted);
  gpuir__segment_close(leaf->seg);
}

GPUIR_API void gpuir_close(gpuir_index *ix) {
  gpuir_allocator a;
  size_t i;
  if (!ix) return;
  a = ix->a;
  for (i = 0; i < ix->nleaves; i++) {
    if (ix->alone) gpuir__free(&a, ix->alone[i].saturation, sizeof(gpuir__saturation));
    gpuir__leaf_close(&ix->leaves[i]);
  }
  gpuir__pool_close(ix->analysis.pool);
  gpuir__free(&a, ix->saturation, sizeof(gpuir__saturation));
  gpuir__free(&a, ix->alone, ix->nleaves * sizeof *ix->alone);
  if (ix->leaves != &ix->only) gpuir__free(&a, ix->leaves, ix->nleaves * sizeof *ix->leaves);
  gpuir__free(&a, ix, sizeof *ix);
}

/* Sums the leaves up. */
static void gpuir__index_sum(gpuir_index *ix) {
  const gpuir__stat *first = &ix->leaves[0].seg->stat;
  size_t i;
  ix->documents = ix->tokens = ix->docids = 0;
  for (i = 0; i < ix->nleaves; i++) {
    gpuir__leaf *leaf = &ix->leaves[i];
    leaf->base = (uint32_t)ix->docids;
    ix->docids += leaf->seg->stat.documents;
    ix->documents += leaf->seg->stat.documents;
    ix->tokens += leaf->seg->stat.tokens;
    if (!leaf->deleted) continue;
    ix->documents -= leaf->deleted->n;
    ix->tokens -=
        gpuir__min64(leaf->deleted->tokens, ix->tokens); /* in a damaged file lengths may add up to more */
  }
  ix->average_length = gpuir__mean(ix->tokens, ix->documents);
  ix->norm = gpuir__norm_make(first->k1, first->b, ix->average_length);
}

/* Makes an index of one segment of `from` without its deletions; `from` keeps the segment. */
static void gpuir__index_alone(gpuir_index *ix, const gpuir_index *from, size_t i) {
  *ix = *from;
  ix->leaves = &ix->only;
  ix->nleaves = 1;
  ix->alone = NULL;
  ix->saturation = NULL;
  ix->only.seg = from->leaves[i].seg;
  ix->only.deleted = NULL;
  (void)snprintf(ix->path, sizeof ix->path, "%s", ix->only.seg->path);
  gpuir__index_sum(ix);
}

/* Fails unless all segments were built alike, so that one query means the same in each. */
static int gpuir__index_alike(const gpuir_index *ix, gpuir_error *err) {
  const gpuir__segment *first = ix->leaves[0].seg;
  size_t i;
  for (i = 1; i < ix->nleaves; i++) {
    const gpuir__segment *seg = ix->leaves[i].seg;
    if (strcmp(seg->meta.analyzer_spec, first->meta.analyzer_spec) != 0 ||
        strcmp(seg->meta.stop_words, first->meta.stop_words) != 0 ||
        strcmp(seg->meta.analyzer_revision, first->meta.analyzer_revision) != 0 ||
        strcmp(seg->meta.store, first->meta.store) != 0 || !seg->lists.positions != !first->lists.positions ||
        strcmp(seg->meta.codec, first->meta.codec) != 0 ||
        strcmp(seg->meta.freq_codec, first->meta.freq_codec) != 0 || seg->stat.k1 < first->stat.k1 ||
        seg->stat.k1 > first->stat.k1 || seg->stat.b < first->stat.b || seg->stat.b > first->stat.b)
      return gpuir__fail(err, GPUIR_E_FORMAT, 0, "%s: its settings are not those of %s", seg->path,
                         first->path);
  }
  return GPUIR_OK;
}

/* Checks the leaves and sums them up. */
static int gpuir__index_join(gpuir_index *ix, gpuir_error *err) {
  uint64_t docids = 0;
  size_t i;
  int status = gpuir__index_alike(ix, err);
  if (status) return status;
  for (i = 0; i < ix->nleaves; i++) docids += ix->leaves[i].seg->stat.documents;
  if (docids > GPUIR__MAX_DOCUMENTS)
    return gpuir__fail(err, GPUIR_E_LIMIT, 0,
                       "%s: more than 2^32-2 documents, deleted ones included: merge it", ix->path);
  gpuir__index_sum(ix);
  if (ix->nleaves == 1 && !ix->leaves[0].deleted) return GPUIR_OK;
  ix->alone = (gpuir_index *)gpuir__alloc_zero(&ix->a, ix->nleaves * sizeof *ix->alone);
  if (!ix->alone) return gpuir__fail_nomem(err);
  for (i = 0; i < ix->nleaves; i++) gpuir__index_alone(&ix->alone[i], ix, i);
  return GPUIR_OK;
}

/* Makes an index of n >= 1 segments in this order, with what is deleted from each, and becomes an owner of them in
 * place of the caller, also when it fails. `pool`: that of an index with the same settings, to be shared; NULL: a new
 * one. */
static int gpuir__index_make(const gpuir_allocator *a, const char *path, const gpuir_open_desc *desc,
                             const gpuir__leaf *from, size_t n, gpuir__pool *pool, gpuir_index **index,
                             gpuir_error *err) {
  gpuir_index *ix = (gpuir_index *)gpuir__alloc_zero(a, sizeof *ix);
  gpuir__leaf *leaves = ix && n > 1 ? (gpuir__leaf *)gpuir__alloc_zero(a, n * sizeof *leaves) : NULL;
  size_t i;
  int status;
  *index = NULL;
  if (!ix || (n > 1 && !leaves)) {
    for (i = 0; i < n; i++) {
      gpuir__leaf leaf = from[i];
      gpuir__leaf_close(&leaf);
    }
    gpuir__free(a, ix, sizeof *ix);
    return gpuir__fail_nomem(err);
  }
  ix->layout = gpuir__index_layout();
  ix->a = *a;
  ix->simd = from[0].seg->simd;
  ix->analysis.tokenize = desc ? desc->tokenize : NULL;
  ix->analysis.tokenize_user = desc ? desc->tokenize_user : NULL;
  (void)snprintf(ix->path, sizeof ix->path, "%.*s", (int)sizeof ix->path - 1, gpuir__tail(path));
  ix->leaves = n > 1 ? leaves : &ix->only;
  ix->nleaves = n;
  memcpy(ix->leaves, from, n * sizeof *from);
  if (pool) ix->analysis.pool = gpuir__pool_share(pool);
  status = gpuir__index_join(ix, err);
  if (!status && !pool)
    status = gpuir__pool_open(a, from[0].seg->meta.analyzer_spec, from[0].seg->meta.stop_words,
                              ix->analysis.tokenize, ix->analysis.tokenize_user, &ix->analysis.pool, err);
  if (status)
    gpuir_close(ix);
  else
    *index = ix;
  return status;
}

/* ---- leaves ---- */

/* Returns the leaf that has document `docid` (< docids). */
static const gpuir__leaf *gpuir__leaf_of(const gpuir_index *ix, uint32_t docid) {
  size_t lo = 0, hi = ix->nleaves;
  while (hi - lo > 1) {
    size_t mid = lo + (hi - lo) / 2;
    if (ix->leaves[mid].base <= docid)
      lo = mid;
    else
      hi = mid;
  }
  return &ix->leaves[lo];
}

/* Returns the segment of a snapshot that has just one, and deletes nothing from it: in that a term's number is its id.
 * NULL otherwise. */
static const gpuir__segment *gpuir__only(const gpuir_index *ix) {
  return ix->nleaves == 1 && !ix->leaves[0].deleted ? ix->leaves[0].seg : NULL;
}

/* Says why a function that needs one segment does not go on. */
static int gpuir__fail_unmerged(const gpuir_index *ix, gpuir_error *err) {
  return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0,
                     "%s: an index of several segments, or with deletions: merge it first", ix->path);
}

GPUIR_API const gpuir_index *gpuir_index_segment(const gpuir_index *ix, size_t i, uint32_t *base) {
  if (!ix || i >= ix->nleaves) return NULL;
  if (base) *base = ix->leaves[i].base;
  return ix->alone ? &ix->alone[i] : ix;
}

/* ---- documents and statistics ---- */

GPUIR_API int gpuir_doc_get(const gpuir_index *ix, uint32_t docid, gpuir_doc *doc) {
  const gpuir__leaf *leaf;
  if (!ix || !doc) return GPUIR_E_ARGUMENT;
  leaf = gpuir__leaf_of(ix, docid);
  docid -= leaf->base;
  memset(doc, 0, sizeof *doc);
  if (leaf->deleted && docid < leaf->seg->stat.documents && gpuir__deleted_has(leaf->deleted, docid))
    return GPUIR_E_NOT_FOUND;
  return gpuir__segment_doc(leaf->seg, docid, doc);
}

/* Adds what a segment holds. */
static void gpuir__info_add(gpuir_index_info *info, const gpuir__segment *seg) {
  uint64_t sums[GPUIR__G_COUNT];
  gpuir__section_sums(seg, sums);
  info->terms += seg->stat.terms;
  info->postings += seg->stat.postings;
  info->file_bytes += seg->size;
  info->docids_bytes += sums[GPUIR__G_DOCIDS];
  info->freqs_bytes += sums[GPUIR__G_FREQS];
  info->directory_bytes += sums[GPUIR__G_DIRECTORY];
  info->inline_postings += seg->stat.inline_postings;
  info->dictionary_bytes += sums[GPUIR__G_DICTIONARY];
  info->documents_bytes += sums[GPUIR__G_DOCUMENTS];
  info->text_bytes += sums[GPUIR__G_TEXT];
  info->positions_bytes += sums[GPUIR__G_POSITIONS];
}

GPUIR_API int gpuir_index_get_info(const gpuir_index *ix, gpuir_index_info *info) {
  const gpuir__segment *first;
  uint64_t bytes;
  size_t i;
  if (!ix || !info) return GPUIR_E_ARGUMENT;
  memset(info, 0, sizeof *info);
  for (i = 0; i < ix->nleaves; i++) gpuir__info_add(info, ix->leaves[i].seg);
  first = ix->leaves[0].seg;
  info->documents = ix->documents;
  info->docids = ix->docids;
  info->segments = ix->nleaves;
  info->tokens = ix->tokens;
  info->generation = ix->generation;
  info->content = ix->content;
  info->average_length = ix->average_length;
  info->k1 = first->stat.k1;
  info->b = first->stat.b;
  bytes = info->docids_bytes + info->freqs_bytes + info->directory_bytes + 8 * info->inline_postings;
  info->bits_per_posting = info->postings ? 8.0 * (double)bytes / (double)info->postings : 0.0;
  info->analyzer = first->meta.analyzer_spec;
  info->codec = first->meta.codec;
  info->freq_codec = first->meta.freq_codec;
  info->description = first->meta.description;
  info->order = *first->meta.order ? first->meta.order : "unknown";
  info->tool = first->meta.tool;
  info->has_text = first->section[GPUIR__S_TEXT] != NULL;
  info->has_positions = first->lists.positions != NULL;
  return GPUIR_OK;
}

/* ---- terms ---- */

GPUIR_API uint64_t gpuir_term_lower_bound(const gpuir_index *ix, const char *term, size_t len) {
  const gpuir__segment *seg = ix ? gpuir__only(ix) : NULL;
  if (!term) term = "", len = 0;
  return seg ? gpuir__term_lower_bound(seg, term, len) : 0;
}

GPUIR_API int gpuir_term_find(const gpuir_index *ix, const char *term, size_t len, uint64_t *id) {
  if (!ix || !id || (!term && len)) return GPUIR_E_ARGUMENT;
  return gpuir__only(ix) ? gpuir__term_find(gpuir__only(ix), term, len, id) : GPUIR_E_UNSUPPORTED;
}

GPUIR_API int gpuir_term_get_info(const gpuir_index *ix, uint64_t id, gpuir_term_info *info) {
  if (!ix || !info) return GPUIR_E_ARGUMENT;
  memset(info, 0, sizeof *info);
  return gpuir__only(ix) ? gpuir__segment_term(gpuir__only(ix), id, info) : GPUIR_E_UNSUPPORTED;
}

GPUIR_API int gpuir_term_postings(const gpuir_index *ix, uint64_t id, uint32_t *docids, uint32_t *tfs) {
  if (!ix) return GPUIR_E_ARGUMENT;
  return gpuir__only(ix) ? gpuir__segment_postings(gpuir__only(ix), id, docids, tfs) : GPUIR_E_UNSUPPORTED;
}

GPUIR_API int gpuir_term_positions(const gpuir_index *ix, uint64_t id, uint32_t *positions, uint64_t n) {
  if (!ix || !positions) return GPUIR_E_ARGUMENT;
  return gpuir__only(ix) ? gpuir__segment_positions(gpuir__only(ix), id, positions, n) : GPUIR_E_UNSUPPORTED;
}

GPUIR_API int gpuir_term_count(const gpuir_index *ix, const char *term, size_t len, uint32_t *df,
                               uint64_t *cf) {
  uint64_t sum_df = 0, sum_cf = 0, id, leaf_cf;
  size_t i;
  if (df) *df = 0;
  if (cf) *cf = 0;
  if (!ix || (!term && len)) return GPUIR_E_ARGUMENT;
  for (i = 0; i < ix->nleaves; i++) {
    const gpuir__leaf *leaf = &ix->leaves[i];
    uint32_t leaf_df;
    int status;
    if (gpuir__term_find(leaf->seg, term, len, &id)) continue;
    status = gpuir__leaf_df(leaf, id, &leaf_df);
    if (!status && leaf_df && cf) {
      status = gpuir__leaf_cf(leaf, id, &leaf_cf);
      sum_cf += leaf_cf;
    }
    if (status) return status;
    sum_df += leaf_df;
  }
  if (df) *df = (uint32_t)gpuir__min64(sum_df, ix->documents);
  if (cf) *cf = sum_cf;
  return sum_df ? GPUIR_OK : GPUIR_E_NOT_FOUND;
}

GPUIR_API int gpuir_codec_get_info(const gpuir_index *ix, int docids,
                                   gpuir_codec_info infos[GPUIR_MAX_CODECS], size_t *n) {
  const gpuir__codec *table = docids ? gpuir__docid_codecs : gpuir__freq_codecs;
  const size_t ncodecs = docids ? GPUIR__DOCID_CODECS : GPUIR__FREQ_CODECS;
  gpuir_codec_info all[GPUIR_MAX_CODECS];
  size_t i;
  if (!ix || !infos || !n) return GPUIR_E_ARGUMENT;
  *n = 0;
  memset(all, 0, sizeof all);
  for (i = 0; i < ix->nleaves; i++) {
    int status = gpuir__segment_codecs(ix->leaves[i].seg, docids, all);
    if (status) return status;
  }
  for (i = 0; i < ncodecs; i++) {
    if (!all[i].lists) continue;
    all[i].codec = table[i].name;
    infos[(*n)++] = all[i];
  }
  return GPUIR_OK;
}

GPUIR_API int gpuir_analyze(const gpuir_index *ix, const char *text, size_t len, gpuir_token_fn emit,
                            void *sink, gpuir_error *err) {
  gpuir__analyzer *analyzer;
  int status;
  if (!ix || (!text && len) || !emit)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_analyze: NULL argument");
  status = gpuir__pool_take(ix->analysis.pool, &analyzer, err);
  if (status) return status;
  status = gpuir__analyze(analyzer, text, len, emit, sink, NULL);
  gpuir__pool_give(ix->analysis.pool, analyzer);
  return status ? gpuir__fail(err, status, 0, "%s", gpuir_strerror(status)) : GPUIR_OK;
}

/* ---- verify ---- */

GPUIR_API int gpuir_verify_directory(const gpuir_index *ix, gpuir_error *err) {
  size_t i;
  int status = GPUIR_OK;
  if (!ix) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_verify_directory: index is NULL");
  for (i = 0; i < ix->nleaves && !status; i++)
    status = gpuir__segment_verify_directory(ix->leaves[i].seg, err);
  return status;
}

GPUIR_API int gpuir_verify(const gpuir_index *ix, gpuir_error *err) {
  size_t i;
  int status = GPUIR_OK;
  if (!ix) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_verify: index is NULL");
  for (i = 0; i < ix->nleaves && !status; i++) status = gpuir__segment_verify(ix->leaves[i].seg, err);
  return status;
}

/* ============================================================================
 * [14-inversion]  builder: from documents to sorted runs of postings
 *
 * The adding thread hands documents to the writer and copies their text into packets. Workers
 * analyse packets, each into a table of its own: a hash table of terms whose postings grow as
 * chains of slices in an arena (as in Lucene; the growth of slices after Büttcher and Clarke).
 * A full table is sorted and spilled as a run. At the end [15-merge] merges the runs.
 *
 * Uses      [01-base], [11-analysis].
 * Start at  gpuir__worker_packet, gpuir__worker_count, gpuir__worker_spill, gpuir__run_next,
 *           gpuir__item_merge.
 * Tests     tests/unit/14_inversion.c
 * ==========================================================================*/

/* ---- memory: what is held, and temporary files in place of it ---- */

/* Numbers of temporary files, PATH.tmp.N: of runs and of long lists by worker, and of units. */
#define GPUIR__MOST_WORKERS 256u
#define GPUIR__TMP_RUNS (GPUIR__TMP_SOURCES + 1)
#define GPUIR__TMP_LISTS (GPUIR__TMP_RUNS + GPUIR__MOST_WORKERS)
#define GPUIR__TMP_UNITS (GPUIR__TMP_LISTS + GPUIR__MOST_WORKERS)

/* An allocator that counts what the build holds. */
typedef struct gpuir__counter {
  gpuir_allocator base;
  gpuir__atomic64 now, peak;
} gpuir__counter;

static void *gpuir__counter_resize(void *user, void *ptr, size_t old_size, size_t new_size) {
  gpuir__counter *c = (gpuir__counter *)user;
  void *p;
  if (new_size > old_size) {
    uint64_t now = __atomic_add_fetch(&c->now, new_size - old_size, __ATOMIC_RELAXED);
    uint64_t peak = __atomic_load_n(&c->peak, __ATOMIC_RELAXED);
    while (now > peak &&
           !__atomic_compare_exchange_n(&c->peak, &peak, now, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
  }
  p = c->base.resize(c->base.user, ptr, old_size, new_size);
  if (new_size > old_size) {
    if (!p) (void)__atomic_sub_fetch(&c->now, new_size - old_size, __ATOMIC_RELAXED);
  } else if (p || !new_size) {
    (void)__atomic_sub_fetch(&c->now, old_size - new_size, __ATOMIC_RELAXED);
  }
  return p;
}

/* Bounds the memory that several threads hold: one enters while all within hold `most` bytes together at most. A
 * single holder may hold more. */
typedef struct gpuir__gate {
  pthread_mutex_t mutex;
  pthread_cond_t left;
  uint64_t used, most;
  int made;
} gpuir__gate;

static int gpuir__gate_init(gpuir__gate *g, uint64_t most, gpuir_error *err) {
  g->used = 0;
  g->most = most;
  if (!pthread_mutex_init(&g->mutex, NULL)) {
    g->made = !pthread_cond_init(&g->left, NULL);
    if (g->made) return GPUIR_OK;
    (void)pthread_mutex_destroy(&g->mutex);
  }
  return gpuir__fail(err, GPUIR_E_NOMEM, 0, "cannot create a lock");
}

static void gpuir__gate_free(gpuir__gate *g) {
  if (!g->made) return;
  (void)pthread_cond_destroy(&g->left);
  (void)pthread_mutex_destroy(&g->mutex);
  g->made = 0;
}

static void gpuir__gate_enter(gpuir__gate *g, uint64_t bytes) {
  (void)pthread_mutex_lock(&g->mutex);
  while (g->used && g->used + bytes > g->most) (void)pthread_cond_wait(&g->left, &g->mutex);
  g->used += bytes;
  (void)pthread_mutex_unlock(&g->mutex);
}

static void gpuir__gate_leave(gpuir__gate *g, uint64_t bytes) {
  (void)pthread_mutex_lock(&g->mutex);
  g->used -= bytes;
  (void)pthread_cond_broadcast(&g->left);
  (void)pthread_mutex_unlock(&g->mutex);
}

/* ---- a queue of numbered tasks between the adding thread and the workers ---- */

/* Task s lives in slot s % size of the owner's ring. The adding thread pushes tasks and waits for
 * them in order; workers take them in order and finish them in any. */
typedef struct gpuir__queue {
  pthread_mutex_t mutex;
  pthread_cond_t work, ready;
  uint64_t pushed, taken;
  unsigned size;
  uint8_t *done;
  int closed;  /* no more tasks will come */
  int aborted; /* leave the tasks that are not yet taken */
} gpuir__queue;

static int gpuir__queue_init(const gpuir_allocator *a, gpuir__queue *q, unsigned size, gpuir_error *err) {
  int status;
  q->size = size;
  q->done = (uint8_t *)gpuir__alloc_zero(a, size);
  if (!q->done) return gpuir__fail_nomem(err);
  status = pthread_mutex_init(&q->mutex, NULL);
  if (!status) {
    status = pthread_cond_init(&q->work, NULL);
    if (!status) {
      status = pthread_cond_init(&q->ready, NULL);
      if (!status) return GPUIR_OK;
      (void)pthread_cond_destroy(&q->work);
    }
    (void)pthread_mutex_destroy(&q->mutex);
  }
  gpuir__free(a, q->done, size);
  q->done = NULL;
  return gpuir__fail(err, GPUIR_E_NOMEM, 0, "cannot create a lock");
}

static void gpuir__queue_free(const gpuir_allocator *a, gpuir__queue *q) {
  if (!q->done) return;
  (void)pthread_cond_destroy(&q->ready);
  (void)pthread_cond_destroy(&q->work);
  (void)pthread_mutex_destroy(&q->mutex);
  gpuir__free(a, q->done, q->size);
  q->done = NULL;
}

/* Empties the queue for another kind of task; no thread may run. */
static void gpuir__queue_reset(gpuir__queue *q) {
  q->pushed = q->taken = 0;
  q->closed = q->aborted = 0;
}

static void gpuir__queue_push(gpuir__queue *q) {
  (void)pthread_mutex_lock(&q->mutex);
  q->done[q->pushed % q->size] = 0;
  q->pushed++;
  (void)pthread_cond_signal(&q->work);
  (void)pthread_mutex_unlock(&q->mutex);
}

/* Counts a task that the adding thread did itself. No thread may run; those that are started later do not take it. */
static void gpuir__queue_skip(gpuir__queue *q) {
  q->pushed++;
  q->taken++;
}

/* Waits for the next task and returns its slot, or -1 when there will be none. */
static int gpuir__queue_take(gpuir__queue *q) {
  int slot = -1;
  (void)pthread_mutex_lock(&q->mutex);
  while (q->taken == q->pushed && !q->closed && !q->aborted) (void)pthread_cond_wait(&q->work, &q->mutex);
  if (!q->aborted && q->taken < q->pushed) slot = (int)(q->taken++ % q->size);
  (void)pthread_mutex_unlock(&q->mutex);
  return slot;
}

static void gpuir__queue_done(gpuir__queue *q, int slot) {
  (void)pthread_mutex_lock(&q->mutex);
  q->done[slot] = 1;
  (void)pthread_cond_signal(&q->ready);
  (void)pthread_mutex_unlock(&q->mutex);
}

static void gpuir__queue_wait(gpuir__queue *q, unsigned slot) {
  (void)pthread_mutex_lock(&q->mutex);
  while (!q->done[slot]) (void)pthread_cond_wait(&q->ready, &q->mutex);
  (void)pthread_mutex_unlock(&q->mutex);
}

static void gpuir__queue_close(gpuir__queue *q, int abort) {
  (void)pthread_mutex_lock(&q->mutex);
  q->closed = 1;
  q->aborted |= abort;
  (void)pthread_cond_broadcast(&q->work);
  (void)pthread_mutex_unlock(&q->mutex);
}

/* ---- a worker and its table of terms ---- */

/* A term in the arena. The last document's posting is held back, as its tf may still grow; those
 * before it are in the slices, each as (gap << 1 | tf == 1) and, if that bit is 0, tf, in variable bytes. With
 * positions nothing is held back: an occurrence in a further document is (position << 1 | 1) and the gap, one in the
 * same document (position less the one before, less one) << 1. */
typedef struct gpuir__term {
  uint32_t doc, gap;
  uint32_t tf;             /* with positions the last position, plus 1 */
  uint32_t df;             /* postings in the slices */
  uint32_t head, pos, end; /* first slice; where the next byte goes; where the current slice's bytes end */
  uint8_t level;           /* of the next slice */
  uint8_t len;
  uint8_t text[2]; /* len bytes, and zeros up to 8 */
} gpuir__term;

#define GPUIR__TERM_HEAD ((uint32_t)offsetof(gpuir__term, text))
#define GPUIR__SLICE_LEVELS 12u
/* Bytes of postings in a slice; 4 more link to the next one. */
static inline uint32_t gpuir__slice_bytes(uint32_t level) {
  static const uint16_t bytes[GPUIR__SLICE_LEVELS] = {8, 12, 20, 36, 60, 100, 164, 268, 436, 708, 1148, 1852};
  return bytes[level];
}

/* What one token needs of the arena at most: a term of 255 bytes, or two slices. */
#define GPUIR__TOKEN_ROOM 8192u
#define GPUIR__ARENA_MAX 0xffff0000u
#define GPUIR__POSTING_MAX 10u /* bytes: 33 bits and 32 bits in sevens, of an occurrence as well */

/* A run's place in its worker's spool. */
typedef struct gpuir__extent {
  uint64_t start, end;
} gpuir__extent;

/* A token on its way into the table. Looking one up costs three cache misses in a large table, so
 * tokens wait in a ring while what they need is fetched. */
typedef struct gpuir__token {
  uint64_t ends[2]; /* its first 8 bytes, zeros behind the end, and its last 8, if it has so many */
  uint64_t hash;
  uint32_t doc, tf;
  uint32_t position, len;
} gpuir__token;

#define GPUIR__RING 16u

/* The terms of the documents since the last spill. */
typedef struct gpuir__table {
  uint64_t *slots; /* term << 32 | low half of the hash, 0: empty; at most half are taken */
  size_t nslots, nterms;
  uint8_t *arena;
  uint64_t used, cap; /* bytes of the arena */
  uint64_t share;     /* bytes of arena and slots together, at most */
  uint64_t seed;      /* of the hash */
} gpuir__table;

/* What a worker needs when it encodes lists. */
typedef struct gpuir__encoding {
  gpuir__encoder encoder;
  int made;        /* the encoder is */
  gpuir__area raw; /* the docIDs and the frequencies of one list */
  void *heads;     /* of gpuir__chain, one a worker */
} gpuir__encoding;

typedef struct gpuir__worker {
  gpuir_builder *builder;
  const gpuir_allocator *a;
  const char *tmp; /* names of temporary files begin with it */
  unsigned number;
  pthread_t thread;
  int status; /* the first failure; err says more when its code is not 0 */
  gpuir_error err;
  gpuir__analyzer *analyzer;
  int positions; /* are kept */
  uint32_t doc;
  uint64_t length, dropped; /* tokens of this document; tokens of all documents that were left out */
  uint64_t lost;            /* documents that had no others */
  gpuir__token ring[GPUIR__RING];
  uint8_t ring_text[GPUIR__RING][GPUIR_MAX_TERM + 1]; /* of tokens over 16 bytes */
  unsigned ring_in, ring_out;
  gpuir__table table;
  gpuir__spool spool;
  size_t spool_cap;
  gpuir__buf runs; /* gpuir__extent */
  uint64_t postings;
  gpuir__encoding encoding;
} gpuir__worker;

static inline gpuir__term *gpuir__worker_term(const gpuir__worker *w, uint64_t ref) {
  return (gpuir__term *)(void *)(w->table.arena + ref);
}

static inline uint8_t *gpuir__term_text(gpuir__term *t) { return (uint8_t *)t + GPUIR__TERM_HEAD; }

static inline uint8_t *gpuir__put_posting(uint8_t *p, uint32_t gap, uint32_t tf) {
  p = gpuir__vbyte_put(p, (uint64_t)gap << 1 | (tf == 1));
  return tf == 1 ? p : gpuir__vbyte_put(p, tf);
}

/* Appends n <= GPUIR__POSTING_MAX bytes to a term's slices, byte by byte, with a further slice where one ends. */
static void gpuir__term_put(gpuir__worker *w, gpuir__term *t, const uint8_t *bytes, size_t n) {
  size_t i;
  for (i = 0; i < n; i++) {
    if (t->pos == t->end) {
      uint32_t to = (uint32_t)w->table.used, room = gpuir__slice_bytes(t->level);
      w->table.used += room + 4;
      if (t->head)
        gpuir__store32(w->table.arena + t->end, to);
      else
        t->head = to;
      t->pos = to;
      t->end = to + room;
      if (t->level + 1u < GPUIR__SLICE_LEVELS) t->level++;
    }
    w->table.arena[t->pos++] = bytes[i];
  }
}

/* Moves the posting that a term holds back into its slices. */
static inline void gpuir__term_flush(gpuir__worker *w, gpuir__term *t) {
  t->df++;
  if (GPUIR__LIKELY(t->end - t->pos >= GPUIR__POSTING_MAX)) {
    t->pos = (uint32_t)(gpuir__put_posting(w->table.arena + t->pos, t->gap, t->tf) - w->table.arena);
  } else {
    uint8_t bytes[GPUIR__POSTING_MAX];
    gpuir__term_put(w, t, bytes, (size_t)(gpuir__put_posting(bytes, t->gap, t->tf) - bytes));
  }
}

static inline uint8_t *gpuir__put_occurrence(uint8_t *p, int further, uint32_t position, uint32_t gap) {
  p = gpuir__vbyte_put(p, (uint64_t)position << 1 | (further != 0));
  return further ? gpuir__vbyte_put(p, gap) : p;
}

/* Appends an occurrence to a term. It stands out of line, so that counting without positions pays nothing for it. */
GPUIR__NOINLINE void gpuir__term_occurs(gpuir__worker *w, gpuir__term *t, const gpuir__token *k) {
  const int further = !t->df || t->doc != k->doc; /* a document of its own */
  const uint32_t gap = t->df ? k->doc - t->doc : k->doc;
  const uint32_t value = further ? k->position : k->position - t->tf;
  t->df += (uint32_t)further;
  t->doc = k->doc;
  t->tf = k->position + 1;
  if (GPUIR__LIKELY(t->end - t->pos >= GPUIR__POSTING_MAX)) {
    t->pos = (uint32_t)(gpuir__put_occurrence(w->table.arena + t->pos, further, value, gap) - w->table.arena);
  } else {
    uint8_t bytes[GPUIR__POSTING_MAX];
    gpuir__term_put(w, t, bytes, (size_t)(gpuir__put_occurrence(bytes, further, value, gap) - bytes));
  }
}

static int gpuir__term_compare(const gpuir__worker *w, uint64_t x, uint64_t y) {
  gpuir__term *a = gpuir__worker_term(w, x), *b = gpuir__worker_term(w, y);
  int c = memcmp(gpuir__term_text(a), gpuir__term_text(b), a->len < b->len ? a->len : b->len);
  return c ? c : (int)a->len - (int)b->len;
}

/* Says which of two pairs comes first: (first 8 bytes of the term as a big-endian number, term). */
static inline int gpuir__pair_less(const gpuir__worker *w, const uint64_t *x, const uint64_t *y) {
  return x[0] != y[0] ? x[0] < y[0] : gpuir__term_compare(w, x[1], y[1]) < 0;
}

static inline void gpuir__pair_swap(uint64_t *x, uint64_t *y) {
  uint64_t prefix = x[0], term = x[1];
  x[0] = y[0];
  x[1] = y[1];
  y[0] = prefix;
  y[1] = term;
}

static void gpuir__pairs_sift(const gpuir__worker *w, uint64_t *p, size_t i, size_t n) {
  for (;;) {
    size_t child = 2 * i + 1;
    if (child >= n) return;
    if (child + 1 < n && gpuir__pair_less(w, p + 2 * child, p + 2 * child + 2)) child++;
    if (!gpuir__pair_less(w, p + 2 * i, p + 2 * child)) return;
    gpuir__pair_swap(p + 2 * i, p + 2 * child);
    i = child;
  }
}

/* Sorts n pairs in place by introsort: quicksort, and heapsort for input that makes it quadratic. */
static void gpuir__pairs_sort(const gpuir__worker *w, uint64_t *p, size_t n, unsigned depth) {
  size_t i, j;
  while (n > 16) {
    uint64_t pivot[2], *mid = p + 2 * (n / 2), *last = p + 2 * (n - 1);
    if (depth-- == 0) {
      for (i = n / 2; i-- > 0;) gpuir__pairs_sift(w, p, i, n);
      for (i = n; --i > 0;) {
        gpuir__pair_swap(p, p + 2 * i);
        gpuir__pairs_sift(w, p, 0, i);
      }
      return;
    }
    if (gpuir__pair_less(w, mid, p)) gpuir__pair_swap(mid, p);
    if (gpuir__pair_less(w, last, mid)) {
      gpuir__pair_swap(last, mid);
      if (gpuir__pair_less(w, mid, p)) gpuir__pair_swap(mid, p);
    }
    pivot[0] = mid[0];
    pivot[1] = mid[1];
    i = 0;
    j = n - 1;
    for (;;) { /* the ends stop both scans */
      while (gpuir__pair_less(w, p + 2 * i, pivot)) i++;
      while (gpuir__pair_less(w, pivot, p + 2 * j)) j--;
      if (i >= j) break;
      gpuir__pair_swap(p + 2 * i++, p + 2 * j--);
    }
    if (i == j)
      j++; /* both stopped at the pivot's place: it is in order */
    else
      j = i;
    /* [0, i) <= pivot <= [j, n); recurse into the smaller side */
    if (i < n - j) {
      gpuir__pairs_sort(w, p, i, depth);
      p += 2 * j;
      n -= j;
    } else {
      gpuir__pairs_sort(w, p + 2 * j, n - j, depth);
      n = i;
    }
  }
  for (i = 1; i < n; i++) {
    uint64_t pair[2];
    pair[0] = p[2 * i];
    pair[1] = p[2 * i + 1];
    for (j = i; j > 0 && gpuir__pair_less(w, pair, p + 2 * (j - 1)); j--) {
      p[2 * j] = p[2 * j - 2];
      p[2 * j + 1] = p[2 * j - 1];
    }
    p[2 * j] = pair[0];
    p[2 * j + 1] = pair[1];
  }
}

/* Returns the first 8 bytes, zeros behind the end, as a number that compares as they do. */
static inline uint64_t gpuir__prefix_of(const uint8_t *text, size_t len) {
  uint64_t v = 0;
  memcpy(&v, text, len < 8 ? len : 8);
  return __builtin_bswap64(v);
}

/* Writes one term of a run: bytes shared with the term before, further bytes, postings, bytes of postings. With
 * positions no posting is held back. */
static int gpuir__worker_spill_term(gpuir__worker *w, gpuir__term *t, gpuir__term *before) {
  uint8_t head[2 + GPUIR_MAX_TERM + 32], tail[GPUIR__POSTING_MAX], *p = head;
  uint8_t *text = gpuir__term_text(t);
  size_t tail_len = w->positions ? 0 : (size_t)(gpuir__put_posting(tail, t->gap, t->tf) - tail), shared = 0;
  uint64_t bytes = tail_len;
  uint32_t slice, level = 0, room;
  int status;
  if (before) {
    size_t most = before->len < t->len ? before->len : t->len;
    const uint8_t *other = gpuir__term_text(before);
    while (shared < most && text[shared] == other[shared]) shared++;
  }
  *p++ = (uint8_t)shared;
  *p++ = (uint8_t)(t->len - shared);
  memcpy(p, text + shared, t->len - shared);
  p += t->len - shared;
  for (slice = t->head; slice; slice = gpuir__load32(w->table.arena + slice + room)) {
    room = gpuir__slice_bytes(level);
    if (level + 1u < GPUIR__SLICE_LEVELS) level++;
    if (slice + room == t->end) {
      bytes += t->pos - slice;
      break;
    }
    bytes += room;
  }
  p = gpuir__vbyte_put(p, (uint64_t)t->df + !w->positions);
  p = gpuir__vbyte_put(p, bytes);
  status = gpuir__spool_put(&w->spool, head, (size_t)(p - head), &w->err);
  level = 0;
  for (slice = t->head; slice && !status; slice = gpuir__load32(w->table.arena + slice + room)) {
    room = gpuir__slice_bytes(level);
    if (level + 1u < GPUIR__SLICE_LEVELS) level++;
    if (slice + room == t->end) {
      status = gpuir__spool_put(&w->spool, w->table.arena + slice, t->pos - slice, &w->err);
      break;
    }
    status = gpuir__spool_put(&w->spool, w->table.arena + slice, room, &w->err);
  }
  w->postings += (uint64_t)t->df + !w->positions;
  return status ? status : gpuir__spool_put(&w->spool, tail, tail_len, &w->err);
}

/* Sorts the table, appends it to the spool as a run and empties it. */
static int gpuir__worker_spill(gpuir__worker *w) {
  gpuir__extent run;
  size_t i, n = 0;
  int status;
  if (!w->table.nterms) return GPUIR_OK;
  if (!w->spool.path) gpuir__spool_open(w->a, &w->spool, w->tmp, GPUIR__TMP_RUNS + w->number, w->spool_cap);
  /* The pairs take the slots' place: terms to the front, then spread from the last to the first. */
  for (i = 0; i < w->table.nslots; i++)
    if (w->table.slots[i]) w->table.slots[n++] = w->table.slots[i] >> 32;
  for (i = n; i-- > 0;) {
    uint64_t ref = w->table.slots[i];
    gpuir__term *t = gpuir__worker_term(w, ref);
    w->table.slots[2 * i] = __builtin_bswap64(gpuir__load64(gpuir__term_text(t))); /* padded with zeros */
    w->table.slots[2 * i + 1] = ref;
  }
  gpuir__pairs_sort(w, w->table.slots, n, 2 * gpuir__width64(n));
  run.start = w->spool.len;
  for (i = 0; i < n; i++) {
    gpuir__term *before = i ? gpuir__worker_term(w, w->table.slots[2 * i - 1]) : NULL;
    status = gpuir__worker_spill_term(w, gpuir__worker_term(w, w->table.slots[2 * i + 1]), before);
    if (status) return status;
  }
  run.end = w->spool.len;
  memset(w->table.slots, 0, w->table.nslots * 8);
  w->table.nterms = 0;
  w->table.used = 8;
  return gpuir__buf_put(w->a, &w->runs, &run, sizeof run);
}

/* Makes room in the arena for one token: by growing it, or by a spill. Keeps a table's doubling in reserve. */
static int gpuir__worker_make_room(gpuir__worker *w) {
  uint64_t most = w->table.share > 24 * w->table.nslots ? w->table.share - 24 * w->table.nslots : 0,
           want = w->table.cap * 2;
  if (!w->table.slots) {
    w->table.nslots = 4096;
    w->table.slots = (uint64_t *)gpuir__alloc_zero(w->a, w->table.nslots * 8);
    if (!w->table.slots) return GPUIR_E_NOMEM;
  }
  if (!w->table.arena) {
    w->table.arena = (uint8_t *)gpuir__alloc(w->a, 16 * GPUIR__TOKEN_ROOM);
    if (!w->table.arena) return GPUIR_E_NOMEM;
    w->table.cap = 16 * GPUIR__TOKEN_ROOM;
    w->table.used = 8; /* 0 means nothing */
    return GPUIR_OK;
  }
  if (most > GPUIR__ARENA_MAX) most = GPUIR__ARENA_MAX;
  if (want > most) want = most;
  if (want >= w->table.used + GPUIR__TOKEN_ROOM) {
    void *p = w->a->resize(w->a->user, w->table.arena, (size_t)w->table.cap, (size_t)want);
    if (!p) return GPUIR_E_NOMEM;
    w->table.arena = (uint8_t *)p;
    w->table.cap = want;
    return GPUIR_OK;
  }
  return gpuir__worker_spill(w);
}

/* Doubles the slots, or spills where the share does not allow it. */
static int gpuir__worker_rehash(gpuir__worker *w) {
  size_t n = w->table.nslots * 2, i;
  uint64_t *slots, reserve = 24 * (uint64_t)n; /* for these and their next doubling */
  uint64_t need = w->table.used + w->table.used / 8 + GPUIR__TOKEN_ROOM;
  if (reserve + need > w->table.share) return gpuir__worker_spill(w);
  if (reserve + w->table.cap > w->table.share) { /* the arena took more than it needs */
    void *p =
        w->a->resize(w->a->user, w->table.arena, (size_t)w->table.cap, (size_t)(w->table.share - reserve));
    if (!p) return GPUIR_E_NOMEM;
    w->table.arena = (uint8_t *)p;
    w->table.cap = w->table.share - reserve;
  }
  slots = (uint64_t *)gpuir__alloc_zero(w->a, n * 8);
  if (!slots) return GPUIR_E_NOMEM;
  for (i = 0; i < w->table.nslots; i++) {
    size_t at = (size_t)(w->table.slots[i] & (n - 1));
    if (!w->table.slots[i]) continue;
    while (slots[at]) at = (at + 1) & (n - 1);
    slots[at] = w->table.slots[i];
  }
  gpuir__free(w->a, w->table.slots, w->table.nslots * 8);
  w->table.slots = slots;
  w->table.nslots = n;
  return GPUIR_OK;
}

static void gpuir__worker_free_table(gpuir__worker *w) {
  gpuir__free(w->a, w->table.slots, w->table.nslots * 8);
  gpuir__free(w->a, w->table.arena, (size_t)w->table.cap);
  w->table.slots = NULL;
  w->table.arena = NULL;
  w->table.nslots = w->table.nterms = 0;
  w->table.used = w->table.cap = 0;
}

static int gpuir__worker_fail(gpuir__worker *w, int status) {
  if (!w->status) w->status = status;
  return w->status;
}

/* Says whether a token is one of a term. */
static inline int gpuir__token_of(const gpuir__token *k, const uint8_t *token, gpuir__term *t) {
  const uint8_t *text = gpuir__term_text(t);
  if (t->len != k->len || gpuir__load64(text) != k->ends[0]) return 0;
  return k->len <= 8 || (gpuir__load64(text + k->len - 8) == k->ends[1] &&
                         (k->len <= 16 || !memcmp(text + 8, token + 8, k->len - 16)));
}

/* Takes in a token whose term is new. */
GPUIR__NOINLINE int gpuir__worker_insert(gpuir__worker *w, const gpuir__token *k, const uint8_t *token) {
  const size_t len = k->len;
  gpuir__term *t;
  uint8_t *text;
  size_t at;
  if (GPUIR__UNLIKELY(2 * (w->table.nterms + 1) > w->table.nslots)) {
    int status = gpuir__worker_rehash(w);
    if (status) return gpuir__worker_fail(w, status);
  }
  at = (size_t)(k->hash & (w->table.nslots - 1));
  while (w->table.slots[at]) at = (at + 1) & (w->table.nslots - 1);
  w->table.nterms++;
  w->table.slots[at] = w->table.used << 32 | (uint32_t)k->hash;
  t = gpuir__worker_term(w, w->table.used);
  w->table.used += (GPUIR__TERM_HEAD + (len < 8 ? 8 : len) + 3) & ~(uint64_t)3;
  t->doc = t->gap = k->doc;
  t->tf = k->tf;
  t->df = t->head = t->pos = t->end = 0;
  t->level = 0;
  t->len = (uint8_t)len;
  text = gpuir__term_text(t);
  gpuir__store64(text, k->ends[0]);
  if (len > 16)
    memcpy(text + 8, token + 8, len - 8);
  else if (len > 8)
    gpuir__store64(text + len - 8, k->ends[1]);
  if (w->positions) gpuir__term_occurs(w, t, k);
  return GPUIR_OK;
}

/* Counts a token of a term that has been seen before, without positions. */
static inline void gpuir__term_again(gpuir__worker *w, gpuir__term *t, const gpuir__token *k) {
  if (t->doc == k->doc) {
    t->tf += k->tf;
    return;
  }
  gpuir__term_flush(w, t);
  t->gap = k->doc - t->doc;
  t->doc = k->doc;
  t->tf = k->tf;
}

/* Counts the oldest token of the ring. */
static int gpuir__worker_count(gpuir__worker *w) {
  const unsigned i = w->ring_out++ % GPUIR__RING;
  const gpuir__token *k = &w->ring[i];
  const uint64_t *slots;
  uint64_t slot;
  size_t at, mask;
  if (GPUIR__UNLIKELY(w->table.used + GPUIR__TOKEN_ROOM > w->table.cap)) {
    int status = gpuir__worker_make_room(w);
    if (status) return gpuir__worker_fail(w, status);
  }
  slots = w->table.slots;
  mask = w->table.nslots - 1;
  for (at = (size_t)k->hash & mask; (slot = slots[at]) != 0; at = (at + 1) & mask) {
    gpuir__term *t = gpuir__worker_term(w, slot >> 32);
    if ((uint32_t)slot != (uint32_t)k->hash || !gpuir__token_of(k, w->ring_text[i], t)) continue;
    if (w->positions)
      gpuir__term_occurs(w, t, k);
    else
      gpuir__term_again(w, t, k);
    return GPUIR_OK;
  }
  return gpuir__worker_insert(w, k, w->ring_text[i]);
}

/* Counts all tokens of the ring. */
static int gpuir__worker_drain(gpuir__worker *w) {
  while (w->ring_out != w->ring_in && !w->status) (void)gpuir__worker_count(w);
  return w->status;
}

/* Fills in the ends of a token and its hash. The ends and the length are all of a token of up to 16 bytes, and hashing
 * two numbers takes no branch on the length. */
static inline void gpuir__token_hash(gpuir__token *k, const char *token, size_t len, uint64_t seed) {
  if (len >= 8) {
    k->ends[0] = gpuir__load64(token);
    k->ends[1] = gpuir__load64(token + len - 8);
  } else if (len >= 4) {
    k->ends[0] = gpuir__load32(token) | (uint64_t)gpuir__load32(token + len - 4) << (8 * (len - 4));
    k->ends[1] = 0;
  } else {
    k->ends[0] = (uint8_t)token[0] | (uint64_t)(uint8_t)token[len >> 1] << (8 * (len >> 1)) |
                 (uint64_t)(uint8_t)token[len - 1] << (8 * (len - 1));
    k->ends[1] = 0;
  }
  k->hash = GPUIR__LIKELY(len <= 16) ? XXH3_64bits_withSeed(k->ends, sizeof k->ends, seed + len)
                                     : XXH3_64bits_withSeed(token, len, seed);
}

/* Takes a token of the current document, which occurs tf times. The table must exist. */
static int gpuir__worker_token(gpuir__worker *w, const char *token, size_t len, uint32_t tf) {
  gpuir__token *k = &w->ring[w->ring_in % GPUIR__RING];
  uint64_t slot;
  if (GPUIR__UNLIKELY(len - 1 >= GPUIR_MAX_TERM)) return GPUIR_OK;
  if (GPUIR__UNLIKELY(w->status)) return w->status; /* a tokenizer that goes on after an error */
  k->position = (uint32_t)w->length;
  w->length += tf;
  if (GPUIR__UNLIKELY(w->length > UINT32_MAX)) return gpuir__worker_fail(w, GPUIR_E_LIMIT);
  gpuir__token_hash(k, token, len, w->table.seed);
  if (GPUIR__UNLIKELY(len > 16)) memcpy(w->ring_text[w->ring_in % GPUIR__RING], token, len);
  k->doc = w->doc;
  k->tf = tf;
  k->len = (uint32_t)len;
  __builtin_prefetch(&w->table.slots[k->hash & (w->table.nslots - 1)]);
  w->ring_in++;
  slot = w->table.slots[w->ring[(w->ring_in - GPUIR__RING / 2) % GPUIR__RING].hash & (w->table.nslots - 1)];
  __builtin_prefetch(w->table.arena + (slot >> 32));
  return w->ring_in - w->ring_out == GPUIR__RING ? gpuir__worker_count(w) : GPUIR_OK;
}

static int gpuir__worker_emit(void *sink, const char *token, size_t len) {
  return gpuir__worker_token((gpuir__worker *)sink, token, len, 1);
}

/* Documents on their way to a worker. */
typedef struct gpuir__packet {
  gpuir__buf text;      /* of all documents, one behind the other */
  gpuir__buf sizes;     /* a uint64_t a document: bytes of text, GPUIR__COUNTED if they are counted terms */
  gpuir__buf lengths;   /* a uint32_t a document, filled by the worker */
  const char *external; /* the caller's text in place of `text`, for one huge document */
  uint64_t docs, first;
} gpuir__packet;

#define GPUIR__COUNTED ((uint64_t)1 << 63) /* each term: length (1 byte), bytes, tf (4 bytes) */

/* Inverts a packet's documents and notes their lengths. */
static int gpuir__worker_packet(gpuir__worker *w, gpuir__packet *packet) {
  const char *text = packet->external ? packet->external : (const char *)packet->text.data;
  uint64_t i, size, before;
  if (!w->table.arena) {
    int status = gpuir__worker_make_room(w);
    if (status) return gpuir__worker_fail(w, status);
  }
  for (i = 0; i < packet->docs; i++) {
    uint32_t length;
    int status = GPUIR_OK;
    memcpy(&size, packet->sizes.data + 8 * i, 8);
    w->doc = (uint32_t)(packet->first + i);
    w->length = 0;
    before = w->dropped;
    if (size & GPUIR__COUNTED) {
      const char *end = text + (size & ~GPUIR__COUNTED);
      while (text < end && !status) {
        size_t len = (uint8_t)*text;
        status = gpuir__worker_token(w, text + 1, len, gpuir__load32(text + 1 + len));
        text += len + 5;
      }
    } else {
      if (size) status = gpuir__analyze(w->analyzer, text, (size_t)size, gpuir__worker_emit, w, &w->dropped);
      if (!packet->external) text += size;
    }
    if (!w->status && status) { /* not by gpuir__worker_token: a tokenizer's own answer is no code of ours */
      if (status == GPUIR_E_NOMEM) {
        w->status = status;
      } else {
        w->status = GPUIR_E_CANCELLED;
        (void)gpuir__fail(&w->err, w->status, 0, "document %lu: the tokenizer answered %d",
                          (unsigned long)w->doc, status);
      }
    }
    if (w->status) {
      if (w->status == GPUIR_E_LIMIT && !w->err.code)
        (void)gpuir__fail(&w->err, w->status, 0, "document %lu has more than %lu tokens",
                          (unsigned long)w->doc, (unsigned long)UINT32_MAX);
      return w->status;
    }
    w->lost += !w->length && w->dropped > before;
    length = (uint32_t)w->length;
    memcpy(packet->lengths.data + 4 * i, &length, 4);
  }
  return gpuir__worker_drain(w);
}

/* ---- reading a run back ---- */

/* A run that is being read, a term at a time. */
typedef struct gpuir__run {
  uint64_t prefix;  /* of term, see gpuir__prefix_of */
  uint64_t at, end; /* in the spool: what is not yet in buf */
  uint8_t *buf;
  size_t pos, fill, cap;
  const gpuir__spool *spool;
  uint32_t worker;
  uint32_t term_len;
  uint64_t df, bytes; /* postings of the term, and their bytes, which come next */
  uint8_t term[GPUIR_MAX_TERM + 1];
} gpuir__run;

#define GPUIR__RUN_HEAD (2u + GPUIR_MAX_TERM + 20u) /* bytes before a term's postings at most */

/* Moves what is left of the buffer to its front and fills it up from the spool. */
static int gpuir__run_fill(gpuir__run *r, gpuir_error *err) {
  size_t n;
  int status;
  memmove(r->buf, r->buf + r->pos, r->fill - r->pos);
  r->fill -= r->pos;
  r->pos = 0;
  n = (size_t)gpuir__min64(r->cap - r->fill, r->end - r->at);
  status = gpuir__spool_get(r->spool, r->buf + r->fill, n, r->at, err);
  if (status) return status;
  r->fill += n;
  r->at += n;
  return GPUIR_OK;
}

/* Reads the next term's head. *more becomes 0 at the end of the run. */
static int gpuir__run_next(gpuir__run *r, int *more, gpuir_error *err) {
  const uint8_t *p;
  size_t shared, rest;
  if (r->fill - r->pos < GPUIR__RUN_HEAD && r->at < r->end) {
    int status = gpuir__run_fill(r, err);
    if (status) return status;
  }
  *more = r->fill > r->pos;
  if (!*more) return GPUIR_OK;
  p = r->buf + r->pos;
  shared = *p++;
  rest = *p++;
  if (shared > r->term_len || shared + rest > GPUIR_MAX_TERM || !rest)
    return gpuir__fail(err, GPUIR_E_IO, 0, "%s: a temporary file was damaged", gpuir__tail(r->spool->path));
  memcpy(r->term + shared, p, rest);
  p += rest;
  r->term_len = (uint32_t)(shared + rest);
  r->prefix = gpuir__prefix_of(r->term, r->term_len);
  r->df = gpuir__vbyte_get(&p);
  r->bytes = gpuir__vbyte_get(&p);
  r->pos = (size_t)(p - r->buf);
  if (r->pos > r->fill || r->bytes > r->fill - r->pos + (r->end - r->at))
    return gpuir__fail(err, GPUIR_E_IO, 0, "%s: a temporary file was damaged", gpuir__tail(r->spool->path));
  return GPUIR_OK;
}

/* Copies the term's postings. */
static int gpuir__run_copy(gpuir__run *r, uint8_t *to, gpuir_error *err) {
  uint64_t n = r->bytes;
  while (n) {
    size_t have = (size_t)gpuir__min64(n, r->fill - r->pos);
    memcpy(to, r->buf + r->pos, have);
    to += have;
    r->pos += have;
    n -= have;
    if (n >= r->cap) {
      int status = gpuir__spool_get(r->spool, to, (size_t)n, r->at, err);
      if (status) return status;
      r->at += n;
      n = 0;
    } else if (n) {
      int status = gpuir__run_fill(r, err);
      if (status) return status;
    }
  }
  return GPUIR_OK;
}

/* Compares the terms of two runs by bytes. */
static int gpuir__run_compare(const gpuir__run *x, const gpuir__run *y) {
  int c;
  if (x->prefix != y->prefix) return x->prefix < y->prefix ? -1 : 1;
  c = memcmp(x->term, y->term, x->term_len < y->term_len ? x->term_len : y->term_len);
  return c ? c : (int)x->term_len - (int)y->term_len;
}

/* ---- one term's postings from several runs ---- */

/* The postings of a term from one run, as they stand there, in a buffer with those of other runs and terms. */
typedef struct gpuir__part {
  uint64_t at, len; /* in the buffer */
  uint32_t worker;
} gpuir__part;

/* The parts that one worker made of a term, which follow one another in docID order. */
typedef struct gpuir__chain {
  const uint8_t *p, *end;
  const gpuir__part *part, *last; /* the current part, and behind the chain's last */
  uint32_t doc;
  uint32_t tf; /* with positions the posting's first position; gpuir__chain_positions reads the others */
} gpuir__chain;

/* Reads the next posting of the current part. */
static inline void gpuir__chain_read(gpuir__chain *c, int positions) {
  uint64_t v = gpuir__vbyte_get(&c->p);
  if (positions) {
    c->tf = (uint32_t)(v >> 1);
    c->doc += (uint32_t)gpuir__vbyte_get(&c->p);
  } else {
    c->doc += (uint32_t)(v >> 1);
    c->tf = v & 1 ? 1 : (uint32_t)gpuir__vbyte_get(&c->p);
  }
}

/* Moves on to the next posting; 0 at the end. */
static inline int gpuir__chain_next(gpuir__chain *c, const uint8_t *bytes, int positions) {
  if (GPUIR__UNLIKELY(c->p >= c->end)) {
    if (c->part == c->last) return 0;
    c->p = bytes + c->part->at;
    c->end = c->p + c->part->len;
    c->part++;
    c->doc = 0;
  }
  gpuir__chain_read(c, positions);
  return 1;
}

/* Writes the positions of the current posting; returns its frequency. */
static inline uint32_t gpuir__chain_positions(gpuir__chain *c, uint32_t *positions) {
  uint32_t n = 0;
  positions[n++] = c->tf;
  while (c->p < c->end) {
    const uint8_t *p = c->p;
    const uint64_t v = gpuir__vbyte_get(&p);
    if (v & 1) break;
    c->p = p;
    positions[n] = positions[n - 1] + 1 + (uint32_t)(v >> 1);
    n++;
  }
  return n;
}

/* Merges an item's parts by docID; returns the number of postings. Every position takes a byte at least, which bounds
 * positions[]; NULL: the parts have none. */
static inline uint64_t gpuir__item_merge(gpuir__chain *chains, const gpuir__part *parts, uint32_t nparts,
                                         const uint8_t *bytes, uint32_t *docs, uint32_t *tfs,
                                         uint32_t *positions) {
  uint64_t n = 0;
  uint32_t live = 0, i = 0, tf;
  while (i < nparts) {
    gpuir__chain *c = &chains[live];
    c->p = c->end = bytes;
    c->part = parts + i;
    while (i < nparts && parts[i].worker == c->part->worker) i++;
    c->last = parts + i;
    live += (uint32_t)gpuir__chain_next(c, bytes, positions != NULL);
  }
  while (live) {
    gpuir__chain *c = chains;
    uint32_t limit = UINT32_MAX; /* the least docID of the other chains */
    int more;
    for (i = 1; i < live; i++) {
      if (chains[i].doc < c->doc) {
        limit = c->doc;
        c = &chains[i];
      } else if (chains[i].doc < limit) {
        limit = chains[i].doc;
      }
    }
    do { /* workers take many documents in a row */
      tf = positions ? gpuir__chain_positions(c, positions) : c->tf;
      if (positions) positions += tf;
      if (GPUIR__UNLIKELY(n && docs[n - 1] == c->doc)) {
        tfs[n - 1] += tf;
      } else {
        docs[n] = c->doc;
        tfs[n++] = tf;
      }
      more = gpuir__chain_next(c, bytes, positions != NULL);
    } while (more && c->doc < limit);
    if (!more) *c = chains[--live];
  }
  return n;
}

/* ============================================================================
 * [15-merge]  builder: documents are added, and runs merged
 *
 * The adding thread merges the runs' terms and gathers their postings in units, still compressed;
 * workers turn units into encoded lists, and the adding thread appends these in order of terms.
 *
 * Nothing that is written depends on which worker saw what: documents are numbered as they are
 * added, a term's postings are merged by docID, and terms by bytes.
 *
 * Uses      [10-encoder], [12-writer], [14-inversion].
 * Start at  gpuir_builder_add_text, gpuir__builder_merge.
 * Tests     tests/unit/15_merge.c
 * ==========================================================================*/

/* ---- units of the merge: from runs' postings to encoded lists ---- */

/* Some terms with the postings of each from one or more runs, as they stand there. */
typedef struct gpuir__unit {
  gpuir__area bytes;
  uint64_t used;
  gpuir__buf terms; /* bytes of terms */
  gpuir__buf items; /* gpuir__item */
  gpuir__buf parts; /* gpuir__part */
  uint64_t nterms, postings;
  gpuir__batch out;
} gpuir__unit;

typedef struct gpuir__item {
  uint64_t df;    /* sum over the parts, which may share a document if a spill cut it */
  uint64_t bytes; /* of the parts, so that with positions no more than these can be in them; 0 without */
  uint32_t parts, term_len;
} gpuir__item;

/* Returns the bytes that an item's postings and positions take when they are decoded. */
static uint64_t gpuir__item_size(const gpuir__item *item) { return item->df * 8 + item->bytes * 4; }

/* Merges and encodes one list. */
static int gpuir__worker_list(gpuir__worker *w, gpuir__unit *unit, const gpuir__item *item,
                              const gpuir__part *parts, const uint8_t *term, uint64_t most) {
  uint32_t *docs, *tfs, *positions;
  uint64_t n;
  int status = gpuir__area_need(w->a, &w->encoding.raw, gpuir__item_size(item), most, w->tmp,
                                GPUIR__TMP_LISTS + w->number, &w->err);
  if (status) return status;
  docs = (uint32_t *)(void *)w->encoding.raw.data;
  tfs = docs + item->df;
  positions = w->positions ? tfs + item->df : NULL;
  n = positions ? gpuir__item_merge((gpuir__chain *)w->encoding.heads, parts, item->parts, unit->bytes.data,
                                    docs, tfs, positions)
                : gpuir__item_merge((gpuir__chain *)w->encoding.heads, parts, item->parts, unit->bytes.data,
                                    docs, tfs, NULL); /* made for each, since the inner loop asks */
  status = gpuir__encode_list(&w->encoding.encoder, &unit->out, term, item->term_len, docs, tfs, (uint32_t)n,
                              positions);
  if (status && status != GPUIR_E_NOMEM)
    (void)gpuir__fail(&w->err, status, 0, "cannot encode the postings of '%.*s': %s",
                      item->term_len < 60 ? (int)item->term_len : 60, (const char *)term,
                      gpuir_strerror(status));
  return status;
}

/* Encodes a unit's lists into its batch. A list takes memory while it is decoded: 8 bytes a posting and 4 a position
 * here, and what the encoder needs. One of more than `light` bytes goes through the gate and leaves nothing behind. */
static int gpuir__worker_unit(gpuir__worker *w, gpuir__unit *unit, uint64_t light, gpuir__gate *gate) {
  const gpuir__part *parts = (const gpuir__part *)(void *)unit->parts.data;
  const uint8_t *term = unit->terms.data;
  uint64_t i, size;
  const uint64_t need = gpuir__encoder_need(&w->encoding.encoder);
  int status = GPUIR_OK;
  gpuir__batch_clear(&unit->out);
  for (i = 0; i < unit->nterms && !status; i++) {
    gpuir__item item;
    memcpy(&item, unit->items.data + i * sizeof item, sizeof item);
    size = item.df * need + item.bytes * 4;
    if (size <= light) {
      status = gpuir__worker_list(w, unit, &item, parts, term, light);
    } else {
      gpuir__gate_enter(gate, size);
      status = gpuir__worker_list(w, unit, &item, parts, term, gate->most);
      gpuir__area_free(w->a, &w->encoding.raw);
      gpuir__encoder_shrink(&w->encoding.encoder);
      gpuir__gate_leave(gate, size);
    }
    parts += item.parts;
    term += item.term_len;
  }
  return status ? gpuir__worker_fail(w, status) : GPUIR_OK;
}

/* ---- the builder ---- */

/* What an index is made from is settled by the first thing added. */
enum { GPUIR__EMPTY, GPUIR__FROM_TEXT, GPUIR__FROM_DOCS, GPUIR__FROM_LISTS };

/* What gpuir_builder_create was asked for. */
typedef struct gpuir__builder_settings {
  char *stop_words, *description;
  size_t stop_size, description_size;
  char spec[256]; /* of the analyzer */
  gpuir_tokenize_fn tokenize;
  void *tokenize_user;
  gpuir__pool *pool; /* analyzers come from it and go back; NULL: they are made */
  gpuir__coding codec, freq_codec;
  char codec_spec[48], freq_codec_spec[48]; /* as the user spelt them */
  char order[GPUIR__ORDER_MAX + 1];
  float k1, b;
  int store_text, positions, simd;
  int (*progress)(void *user, const gpuir_progress *progress);
  void *progress_user;
  uint64_t memory; /* bytes */
  uint64_t seed;   /* of the hash tables; the index does not depend on it */
} gpuir__builder_settings;

typedef struct gpuir__builder_threads {
  gpuir__worker *workers;
  unsigned nworkers, nthreads; /* threads that run now; 0: the adding thread works itself */
  int failure;                 /* atomic; the first error, and then nothing but destroy is allowed */
  gpuir_error error;
} gpuir__builder_threads;

/* The ring of packets, and later that of units. */
typedef struct gpuir__builder_tasks {
  gpuir__queue queue;
  unsigned n;         /* slots of the ring */
  size_t size;        /* bytes of a packet or unit, unless one document or list is larger */
  uint64_t in_flight; /* bytes of text, or of postings, that were pushed and not yet retired */
  uint64_t in_flight_most;
  uint64_t retired; /* packets or units */
} gpuir__builder_tasks;

/* Of documents that are inverted. */
typedef struct gpuir__builder_add {
  gpuir__packet *packets;
  gpuir__packet *open; /* that is being filled, or NULL */
  gpuir__buf seen;     /* hash table that finds a term given twice */
} gpuir__builder_add;

/* Of lists, merged or given. */
typedef struct gpuir__builder_merging {
  gpuir__unit *units;
  gpuir__unit *unit;    /* that is being filled with given lists, or NULL */
  gpuir__buf last_term; /* of the last list that was given */
  uint64_t light;       /* bytes of a decoded list, see gpuir__worker_unit */
  gpuir__gate gate;
  uint64_t terms, postings; /* that are in the writer */
} gpuir__builder_merging;

/* What the progress callback is told, and what it was told last. */
typedef struct gpuir__builder_told {
  gpuir_progress done;
  uint64_t documents, bytes;
} gpuir__builder_told;

struct gpuir_builder {
  gpuir__counter counter;
  gpuir_allocator a; /* counts into `counter` */
  gpuir__builder_settings set;
  gpuir__writer *writer;
  int phase;   /* GPUIR__EMPTY to GPUIR__FROM_LISTS */
  int written; /* gpuir_builder_write was called */
  gpuir__builder_threads threads;
  gpuir__builder_tasks tasks;
  gpuir__builder_add add;
  gpuir__builder_merging merge;
  gpuir__builder_told told;
};

/* Records the first failure; the mutex guards the error, the flag is read without it. */
static int gpuir__builder_fail(gpuir_builder *b, int status, const gpuir_error *err) {
  (void)pthread_mutex_lock(&b->tasks.queue.mutex);
  if (!b->threads.failure) {
    if (err && err->code == status)
      b->threads.error = *err;
    else
      (void)gpuir__fail(&b->threads.error, status, 0, "%s", gpuir_strerror(status));
    __atomic_store_n(&b->threads.failure, status, __ATOMIC_RELEASE);
  }
  (void)pthread_mutex_unlock(&b->tasks.queue.mutex);
  return status;
}

static int gpuir__builder_failed(gpuir_builder *b, gpuir_error *err) {
  int status = __atomic_load_n(&b->threads.failure, __ATOMIC_ACQUIRE);
  if (status && err) {
    (void)pthread_mutex_lock(&b->tasks.queue.mutex);
    *err = b->threads.error;
    (void)pthread_mutex_unlock(&b->tasks.queue.mutex);
  }
  return status;
}

static void gpuir__builder_run_packet(gpuir_builder *b, gpuir__worker *w, gpuir__packet *packet) {
  int status;
  if (__atomic_load_n(&b->threads.failure, __ATOMIC_ACQUIRE)) return;
  status = gpuir__worker_packet(w, packet);
  if (status) (void)gpuir__builder_fail(b, status, &w->err);
}

/* Spills the last run and frees the table. */
static void gpuir__builder_finish_worker(gpuir_builder *b, gpuir__worker *w) {
  if (!__atomic_load_n(&b->threads.failure, __ATOMIC_ACQUIRE)) {
    int status = gpuir__worker_spill(w);
    if (!status) status = gpuir__spool_end(&w->spool, &w->err);
    if (status) (void)gpuir__builder_fail(b, status, &w->err);
  }
  gpuir__worker_free_table(w);
}

/* Runs as a thread that inverts packets. */
static void *gpuir__builder_invert_main(void *arg) {
  gpuir__worker *w = (gpuir__worker *)arg;
  gpuir_builder *b = w->builder;
  int slot;
  while ((slot = gpuir__queue_take(&b->tasks.queue)) >= 0) {
    gpuir__builder_run_packet(b, w, &b->add.packets[slot]);
    gpuir__queue_done(&b->tasks.queue, slot);
  }
  gpuir__builder_finish_worker(b, w);
  return NULL;
}

static void gpuir__builder_run_unit(gpuir_builder *b, gpuir__worker *w, gpuir__unit *unit) {
  int status;
  if (__atomic_load_n(&b->threads.failure, __ATOMIC_ACQUIRE)) return;
  status = gpuir__worker_unit(w, unit, b->merge.light, &b->merge.gate);
  if (status) (void)gpuir__builder_fail(b, status, &w->err);
}

/* Runs as a thread that encodes units. */
static void *gpuir__builder_encode_main(void *arg) {
  gpuir__worker *w = (gpuir__worker *)arg;
  gpuir_builder *b = w->builder;
  int slot;
  while ((slot = gpuir__queue_take(&b->tasks.queue)) >= 0) {
    gpuir__builder_run_unit(b, w, &b->merge.units[slot]);
    gpuir__queue_done(&b->tasks.queue, slot);
  }
  return NULL;
}

/* Starts a thread a worker. Where the system refuses some, the others do the work; without any, the
 * adding thread does. Signals go to the caller's own threads. */
static void gpuir__builder_start(gpuir_builder *b, void *(*entry)(void *)) {
  sigset_t all, old;
  int masked;
  (void)sigfillset(&all);
  masked = !pthread_sigmask(SIG_SETMASK, &all, &old);
  while (b->threads.nthreads < b->threads.nworkers &&
         !pthread_create(&b->threads.workers[b->threads.nthreads].thread, NULL, entry,
                         &b->threads.workers[b->threads.nthreads]))
    b->threads.nthreads++;
  if (masked) (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* Waits for the threads to end; `abort` leaves the tasks that none has taken. */
static void gpuir__builder_join(gpuir_builder *b, int abort) {
  unsigned i;
  if (!b->threads.nthreads) return;
  gpuir__queue_close(&b->tasks.queue, abort);
  for (i = 0; i < b->threads.nthreads; i++) (void)pthread_join(b->threads.workers[i].thread, NULL);
  b->threads.nthreads = 0;
}

/* ---- packets ---- */

/* Takes the oldest packet back when a worker is done with it, and hands its lengths to the writer. */
static int gpuir__builder_retire_packet(gpuir_builder *b, gpuir_error *err) {
  unsigned slot = (unsigned)(b->tasks.retired % b->tasks.n);
  gpuir__packet *p = &b->add.packets[slot];
  int status;
  if (b->threads.nthreads) gpuir__queue_wait(&b->tasks.queue, slot);
  b->tasks.retired++;
  b->tasks.in_flight -= p->text.len;
  status = gpuir__builder_failed(b, err);
  if (!status)
    status =
        gpuir__writer_put_lengths(b->writer, (const uint32_t *)(void *)p->lengths.data, (size_t)p->docs, err);
  p->text.len = p->sizes.len = p->lengths.len = 0;
  p->docs = 0;
  p->external = NULL;
  if (p->text.cap > 2 * b->tasks.size) gpuir__buf_free(&b->a, &p->text);
  return status;
}

/* Sends the open packet to the workers. `last`: there is no need to start threads for it. */
static int gpuir__builder_seal(gpuir_builder *b, int last, gpuir_error *err) {
  gpuir__packet *p = b->add.open;
  if (!p) return GPUIR_OK;
  b->add.open = NULL;
  b->tasks.in_flight += p->text.len;
  if (b->threads.nworkers > 1 && !last && !b->threads.nthreads)
    gpuir__builder_start(b, gpuir__builder_invert_main);
  if (b->threads.nthreads) {
    gpuir__queue_push(&b->tasks.queue);
    return GPUIR_OK;
  }
  gpuir__queue_skip(&b->tasks.queue);
  gpuir__builder_run_packet(b, &b->threads.workers[0], p);
  return gpuir__builder_retire_packet(b, err);
}

/* Makes `open` a packet that has room for one more document of n bytes. */
static int gpuir__builder_packet(gpuir_builder *b, size_t n, gpuir_error *err) {
  gpuir__packet *p = b->add.open;
  int status;
  if (p && p->text.len + 12 * p->docs + n > b->tasks.size) {
    status = gpuir__builder_seal(b, 0, err);
    if (status) return status;
    p = NULL;
  }
  if (!p) {
    while (b->tasks.queue.pushed - b->tasks.retired == b->tasks.n ||
           (b->tasks.in_flight + n > b->tasks.in_flight_most && b->tasks.queue.pushed > b->tasks.retired)) {
      status = gpuir__builder_retire_packet(b, err);
      if (status) return status;
    }
    p = &b->add.packets[b->tasks.queue.pushed % b->tasks.n];
    p->first = b->told.done.documents;
    if (b->threads.nworkers > 1 && n < b->tasks.size && !gpuir__buf_room(&b->a, &p->text, b->tasks.size))
      return gpuir__fail_nomem(err);
    b->add.open = p;
  }
  if ((n && !gpuir__buf_room(&b->a, &p->text, n)) || !gpuir__buf_room(&b->a, &p->sizes, 8) ||
      !gpuir__buf_room(&b->a, &p->lengths, 4))
    return gpuir__fail_nomem(err);
  return GPUIR_OK;
}

/* ---- adding ---- */

static int gpuir__builder_ready(gpuir_builder *b, gpuir_error *err) {
  if (!b) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "no builder given");
  if (__atomic_load_n(&b->threads.failure, __ATOMIC_ACQUIRE)) return gpuir__builder_failed(b, err);
  if (b->written) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "the index has been written");
  return GPUIR_OK;
}

/* Releases a worker's analyzer, if it has one. */
static void gpuir__builder_release_analyzer(gpuir_builder *b, gpuir__worker *w) {
  if (b->set.pool && w->analyzer)
    gpuir__pool_give(b->set.pool, w->analyzer);
  else
    gpuir__analyzer_destroy(w->analyzer);
  w->analyzer = NULL;
}

/* Creates the analyzers, one a worker, that do not exist yet; once. */
static int gpuir__builder_analyzers(gpuir_builder *b, gpuir_error *err) {
  unsigned i;
  int status = GPUIR_OK;
  for (i = 0; i < b->threads.nworkers && !status; i++)
    if (b->set.pool)
      status = gpuir__pool_take(b->set.pool, &b->threads.workers[i].analyzer, err);
    else if (!b->threads.workers[i].analyzer)
      status = gpuir__analyzer_create(&b->a, b->set.spec, b->set.stop_words, b->set.tokenize,
                                      b->set.tokenize_user, &b->threads.workers[i].analyzer, err);
  return status;
}

/* Prepares the builder for a document to invert. */
static int gpuir__builder_ready_text(gpuir_builder *b, gpuir_error *err) {
  int status = gpuir__builder_ready(b, err);
  if (status) return status;
  if (b->phase > GPUIR__FROM_TEXT)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0,
                       "this index is being made from postings, not from documents");
  if (b->phase == GPUIR__EMPTY) status = gpuir__builder_analyzers(b, err);
  if (!status) b->phase = GPUIR__FROM_TEXT;
  return status;
}

static int gpuir__builder_tell(gpuir_builder *b, gpuir_error *err) {
  if (b->set.progress && b->set.progress(b->set.progress_user, &b->told.done))
    return gpuir__fail(err, GPUIR_E_CANCELLED, 0, "cancelled by the progress callback");
  return GPUIR_OK;
}

/* Calls for progress after 16 MiB of text or 65,536 documents since the last call. */
static int gpuir__builder_tell_added(gpuir_builder *b, gpuir_error *err) {
  if (b->told.done.bytes - b->told.bytes < (1u << 24) &&
      b->told.done.documents - b->told.documents < (1u << 16))
    return GPUIR_OK;
  b->told.bytes = b->told.done.bytes;
  b->told.documents = b->told.done.documents;
  return gpuir__builder_tell(b, err);
}

/* Appends a document to the open packet, which holds its bytes or refers to the caller's. */
static int gpuir__builder_document(gpuir_builder *b, const gpuir_doc_desc *doc, const char *text,
                                   size_t text_len, size_t size, int counted, gpuir_error *err) {
  gpuir__packet *p = b->add.open;
  gpuir_doc_desc none;
  uint64_t entry = (uint64_t)size | (counted ? GPUIR__COUNTED : 0);
  const uint32_t zero = 0;
  int status;
  memset(&none, 0, sizeof none);
  status = gpuir__writer_put_doc(b->writer, doc ? doc : &none, text, text_len, err);
  if (status) return status;
  if (!p->external) p->text.len += size;
  memcpy(p->sizes.data + p->sizes.len, &entry, 8);
  memcpy(p->lengths.data + p->lengths.len, &zero, 4);
  p->sizes.len += 8;
  p->lengths.len += 4;
  p->docs++;
  b->told.done.documents++;
  b->told.done.bytes += text_len;
  if (p->external || b->threads.nworkers == 1) { /* the text is the caller's: be done with it now */
    status = gpuir__builder_seal(b, 0, err);
    while (!status && b->tasks.queue.pushed > b->tasks.retired) status = gpuir__builder_retire_packet(b, err);
    if (status) return status;
  }
  return gpuir__builder_tell_added(b, err);
}

static int gpuir__builder_check_doc(const gpuir_doc_desc *doc, gpuir_error *err) {
  if (doc && ((!doc->name && doc->name_len) || (!doc->source && doc->source_len)))
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0,
                       "a document's name or source is NULL, but its length is not 0");
  if (doc && doc->source_bytes > UINT64_MAX - doc->source_offset)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "a document's place in its source ends behind 2^64 - 1");
  return GPUIR_OK;
}

/* Ends a public function: after an error other than ARGUMENT the builder stays failed. */
static int gpuir__builder_end(gpuir_builder *b, int status, gpuir_error *err, const gpuir_error *local) {
  if (!status) return GPUIR_OK;
  if (err) *err = *local;
  if (status != GPUIR_E_ARGUMENT) (void)gpuir__builder_fail(b, status, local);
  return status;
}

GPUIR_API int gpuir_builder_add_text(gpuir_builder *builder, const gpuir_doc_desc *doc, const char *text,
                                     size_t len, gpuir_error *err) {
  gpuir_builder *b = builder;
  gpuir_error local;
  int in_place, status = gpuir__builder_ready_text(b, err);
  if (status) return status;
  status = gpuir__builder_check_doc(doc, err);
  if (status) return status;
  if (!text && len) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "the text is NULL, but its length is not 0");
  memset(&local, 0, sizeof local);
  in_place = b->threads.nworkers == 1 || len > b->tasks.in_flight_most / 2;
  if (in_place && b->add.open) status = gpuir__builder_seal(b, 0, &local);
  if (!status) status = gpuir__builder_packet(b, in_place ? 0 : len, &local);
  if (!status) {
    if (in_place)
      b->add.open->external = text ? text : "";
    else if (len)
      memcpy(b->add.open->text.data + b->add.open->text.len, text, len);
    status = gpuir__builder_document(b, doc, text ? text : "", len, len, 0, &local);
    if (status && b->add.open) b->add.open->external = NULL;
  }
  return gpuir__builder_end(b, status, err, &local);
}

/* Checks a document's terms; *bytes becomes what a packet needs for them. */
static int gpuir__builder_check_terms(gpuir_builder *b, const gpuir_term_freq *terms, size_t n, size_t *bytes,
                                      gpuir_error *err) {
  size_t i, nslots = 16, total = 0;
  uint64_t sum = 0, *slots;
  if (!terms && n)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "the terms are NULL, but their number is not 0");
  if (n >= UINT32_MAX) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "a document of more than 2^32 - 2 terms");
  if (n > SIZE_MAX / 64) return gpuir__fail_nomem(err); /* the slots below take up to 32 bytes a term */
  for (i = 0; i < n; i++) {
    if (!terms[i].term || !terms[i].len)
      return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "term %lu of the document is empty", (unsigned long)i);
    if (terms[i].len > GPUIR_MAX_TERM)
      return gpuir__fail(err, GPUIR_E_ARGUMENT, 0,
                         "term %lu of the document has %lu bytes; at most %d are allowed", (unsigned long)i,
                         (unsigned long)terms[i].len, GPUIR_MAX_TERM);
    if (!terms[i].tf)
      return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "term %lu of the document has tf 0", (unsigned long)i);
    sum += terms[i].tf;
    if (sum > UINT32_MAX)
      return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "the document's tf add up to more than %lu",
                         (unsigned long)UINT32_MAX);
    total += terms[i].len + 5;
  }
  while (nslots < 2 * n) nslots *= 2;
  b->add.seen.len = 0;
  slots = (uint64_t *)(void *)gpuir__buf_room(&b->a, &b->add.seen, nslots * 8);
  if (!slots) return gpuir__fail_nomem(err);
  memset(slots, 0, nslots * 8);
  for (i = 0; i < n; i++) {
    uint64_t hash = XXH3_64bits_withSeed(terms[i].term, terms[i].len, b->set.seed);
    size_t at = (size_t)(hash & (nslots - 1));
    for (; slots[at]; at = (at + 1) & (nslots - 1)) {
      const gpuir_term_freq *other = &terms[(slots[at] >> 32) - 1];
      if ((uint32_t)slots[at] == (uint32_t)hash && other->len == terms[i].len &&
          !memcmp(other->term, terms[i].term, terms[i].len))
        return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "terms %lu and %lu of the document are the same",
                           (unsigned long)((slots[at] >> 32) - 1), (unsigned long)i);
    }
    slots[at] = (uint64_t)(i + 1) << 32 | (uint32_t)hash;
  }
  if (b->add.seen.cap > b->tasks.size) gpuir__buf_free(&b->a, &b->add.seen);
  *bytes = total;
  return GPUIR_OK;
}

GPUIR_API int gpuir_builder_add_terms(gpuir_builder *builder, const gpuir_doc_desc *doc,
                                      const gpuir_term_freq *terms, size_t n, gpuir_error *err) {
  gpuir_builder *b = builder;
  gpuir_error local;
  size_t bytes = 0, i;
  int status;
  if (b && b->set.positions)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "counted terms have no positions, which this index keeps");
  status = gpuir__builder_ready_text(b, err);
  if (status) return status;
  status = gpuir__builder_check_doc(doc, err);
  if (status) return status;
  memset(&local, 0, sizeof local);
  status = gpuir__builder_check_terms(b, terms, n, &bytes, &local);
  if (!status) status = gpuir__builder_packet(b, bytes, &local);
  if (!status) {
    uint8_t *p = b->add.open->text.data + b->add.open->text.len;
    for (i = 0; i < n; i++) {
      *p++ = (uint8_t)terms[i].len;
      memcpy(p, terms[i].term, terms[i].len);
      gpuir__store32(p + terms[i].len, terms[i].tf);
      p += terms[i].len + 4;
    }
    status = gpuir__builder_document(b, doc, NULL, 0, bytes, 1, &local);
  }
  return gpuir__builder_end(b, status, err, &local);
}

/* ---- merging ---- */

/* Takes the oldest unit back when it is encoded, and appends it. */
static int gpuir__builder_retire_unit(gpuir_builder *b, gpuir_error *err) {
  unsigned slot = (unsigned)(b->tasks.retired % b->tasks.n);
  gpuir__unit *unit = &b->merge.units[slot];
  int status;
  if (b->threads.nthreads) gpuir__queue_wait(&b->tasks.queue, slot);
  b->tasks.retired++;
  b->tasks.in_flight -= unit->used;
  status = gpuir__builder_failed(b, err);
  if (!status) status = gpuir__writer_put_batch(b->writer, &unit->out, err);
  if (status) return status;
  b->merge.terms += unit->out.nterms;
  b->merge.postings += unit->out.postings;
  b->told.done.terms_done = b->merge.terms;
  b->told.done.postings_done += unit->postings;
  if (unit->used > 2 * b->tasks.size) { /* a huge list's */
    gpuir__area_free(&b->a, &unit->bytes);
    gpuir__batch_free(&b->a, &unit->out);
  }
  unit->used = unit->nterms = unit->postings = 0;
  unit->terms.len = unit->items.len = unit->parts.len = 0;
  return gpuir__builder_tell(b, err);
}

/* Sends the unit to the workers, or encodes it here if none runs. */
static int gpuir__builder_push_unit(gpuir_builder *b, gpuir__unit **unit, gpuir_error *err) {
  gpuir__unit *u = *unit;
  if (!u || !u->nterms) return GPUIR_OK;
  *unit = NULL;
  b->tasks.in_flight += u->used;
  if (b->threads.nthreads) {
    gpuir__queue_push(&b->tasks.queue);
    return GPUIR_OK;
  }
  gpuir__queue_skip(&b->tasks.queue);
  gpuir__builder_run_unit(b, &b->threads.workers[0], u);
  return gpuir__builder_retire_unit(b, err);
}

/* Makes room for `bytes` bytes of postings in the unit, or in the next one when it is full. */
static int gpuir__builder_unit_room(gpuir_builder *b, gpuir__unit **unit, uint64_t bytes, gpuir_error *err) {
  gpuir__unit *u = *unit;
  int status;
  if (u && u->used + u->items.len + u->parts.len + bytes > b->tasks.size) {
    status = gpuir__builder_push_unit(b, unit, err);
    if (status) return status;
    u = NULL;
  }
  if (u) return GPUIR_OK;
  while (b->tasks.queue.pushed - b->tasks.retired == b->tasks.n ||
         (b->tasks.in_flight + bytes > b->tasks.in_flight_most && b->tasks.queue.pushed > b->tasks.retired)) {
    status = gpuir__builder_retire_unit(b, err);
    if (status) return status;
  }
  u = *unit = &b->merge.units[b->tasks.queue.pushed % b->tasks.n];
  /* gpuir__vbyte_get may read a little beyond damaged bytes */
  return gpuir__area_need(&b->a, &u->bytes, gpuir__max64(b->tasks.size, bytes) + 64, b->tasks.in_flight_most,
                          b->writer->tmp, GPUIR__TMP_UNITS, err);
}

/* Adds a term that stands in runs[0..n) to the unit, or to the next one when it is full. */
static int gpuir__builder_gather(gpuir_builder *b, gpuir__unit **unit, gpuir__run *const *runs, size_t n,
                                 gpuir_error *err) {
  const gpuir_allocator *a = &b->a;
  gpuir__unit *u;
  gpuir__item item;
  uint64_t bytes = 0;
  size_t i;
  int status;
  item.df = 0;
  item.parts = (uint32_t)n;
  item.term_len = runs[0]->term_len;
  for (i = 0; i < n; i++) {
    bytes += runs[i]->bytes;
    item.df += runs[i]->df;
  }
  item.bytes = b->set.positions ? bytes : 0;
  status = gpuir__builder_unit_room(b, unit, bytes, err);
  if (status) return status;
  u = *unit;
  if (gpuir__buf_put(a, &u->terms, runs[0]->term, runs[0]->term_len) ||
      gpuir__buf_put(a, &u->items, &item, sizeof item))
    return gpuir__fail_nomem(err);
  for (i = 0; i < n; i++) {
    gpuir__part part;
    memset(&part, 0, sizeof part);
    part.at = u->used;
    part.len = runs[i]->bytes;
    part.worker = runs[i]->worker;
    if (gpuir__buf_put(a, &u->parts, &part, sizeof part)) return gpuir__fail_nomem(err);
    status = gpuir__run_copy(runs[i], u->bytes.data + u->used, err);
    if (status) return status;
    u->used += part.len;
  }
  u->nterms++;
  u->postings += item.df;
  return GPUIR_OK;
}

/* Restores the heap's order below i; equal terms are ordered by run, which is by worker and then docID. */
static void gpuir__heap_sift(gpuir__run **heap, size_t i, size_t n) {
  gpuir__run *run = heap[i];
  for (;;) {
    size_t child = 2 * i + 1;
    int c;
    if (child >= n) break;
    if (child + 1 < n) {
      c = gpuir__run_compare(heap[child + 1], heap[child]);
      if (c < 0 || (c == 0 && heap[child + 1] < heap[child])) child++;
    }
    c = gpuir__run_compare(run, heap[child]);
    if (c < 0 || (c == 0 && run < heap[child])) break;
    heap[i] = heap[child];
    i = child;
  }
  heap[i] = run;
}

/* Merges the opened runs of heap[0..n); `same` has room for n. */
static int gpuir__builder_merge_runs(gpuir_builder *b, gpuir__run **heap, gpuir__run **same, size_t n,
                                     gpuir_error *err) {
  gpuir__unit *unit = NULL;
  size_t i;
  int status = GPUIR_OK;
  for (i = n / 2; i-- > 0;) gpuir__heap_sift(heap, i, n);
  while (n) {
    size_t nsame = 0;
    do {
      same[nsame++] = heap[0];
      heap[0] = heap[--n];
      if (n) gpuir__heap_sift(heap, 0, n);
    } while (n && gpuir__run_compare(heap[0], same[0]) == 0);
    status = gpuir__builder_gather(b, &unit, same, nsame, err);
    for (i = 0; i < nsame && !status; i++) {
      int more;
      size_t at = n;
      status = gpuir__run_next(same[i], &more, err);
      if (status || !more) continue;
      n++;
      while (at > 0) { /* sift up */
        size_t parent = (at - 1) / 2;
        int c = gpuir__run_compare(same[i], heap[parent]);
        if (c > 0 || (c == 0 && same[i] > heap[parent])) break;
        heap[at] = heap[parent];
        at = parent;
      }
      heap[at] = same[i];
    }
    if (status) return status;
  }
  status = gpuir__builder_push_unit(b, &unit, err);
  while (!status && b->tasks.retired < b->tasks.queue.pushed) status = gpuir__builder_retire_unit(b, err);
  return status;
}

/* Reads the runs through buffers of memory / nruns bytes each and merges them. */
static int gpuir__builder_merge(gpuir_builder *b, uint64_t nruns, uint64_t memory, gpuir_error *err) {
  const gpuir_allocator *a = &b->a;
  size_t n = (size_t)nruns, cap = (size_t)gpuir__max64(8192, gpuir__min64(memory / nruns, 1u << 20)), i = 0,
         live = 0;
  gpuir__run *runs = (gpuir__run *)gpuir__alloc_zero(a, n * sizeof *runs);
  gpuir__run **heap = (gpuir__run **)gpuir__alloc(a, 2 * n * sizeof *heap);
  unsigned w;
  int status = GPUIR_OK;
  if (!runs || !heap) status = gpuir__fail_nomem(err);
  for (w = 0; w < b->threads.nworkers && !status; w++) {
    gpuir__worker *worker = &b->threads.workers[w];
    size_t at, count = worker->runs.len / sizeof(gpuir__extent);
    for (at = 0; at < count && !status; at++) {
      gpuir__run *r = &runs[i++];
      gpuir__extent extent;
      int more = 0;
      memcpy(&extent, worker->runs.data + at * sizeof extent, sizeof extent);
      r->at = extent.start;
      r->end = extent.end;
      r->worker = w;
      r->spool = &worker->spool;
      r->cap = (size_t)gpuir__max64(8192, gpuir__min64(cap, extent.end - extent.start));
      r->buf = (uint8_t *)gpuir__alloc(a, r->cap + 64);
      status = r->buf ? gpuir__run_next(r, &more, err) : gpuir__fail_nomem(err);
      if (more) heap[live++] = r;
    }
  }
  if (!status) status = gpuir__builder_merge_runs(b, heap, heap + n, live, err);
  if (runs)
    for (i = 0; i < n; i++) gpuir__free(a, runs[i].buf, runs[i].cap + 64);
  gpuir__free(a, heap, 2 * n * sizeof *heap);
  gpuir__free(a, runs, n * sizeof *runs);
  return status;
}

/* Frees the packets, or the units. No thread may run. */
static void gpuir__builder_free_tasks(gpuir_builder *b) {
  unsigned i;
  if (b->add.packets) {
    for (i = 0; i < b->tasks.n; i++) {
      gpuir__buf_free(&b->a, &b->add.packets[i].text);
      gpuir__buf_free(&b->a, &b->add.packets[i].sizes);
      gpuir__buf_free(&b->a, &b->add.packets[i].lengths);
    }
    gpuir__free(&b->a, b->add.packets, b->tasks.n * sizeof *b->add.packets);
    b->add.packets = NULL;
  }
  if (b->merge.units) {
    for (i = 0; i < b->tasks.n; i++) {
      gpuir__area_free(&b->a, &b->merge.units[i].bytes);
      gpuir__buf_free(&b->a, &b->merge.units[i].terms);
      gpuir__buf_free(&b->a, &b->merge.units[i].items);
      gpuir__buf_free(&b->a, &b->merge.units[i].parts);
      gpuir__batch_free(&b->a, &b->merge.units[i].out);
    }
    gpuir__free(&b->a, b->merge.units, b->tasks.n * sizeof *b->merge.units);
    b->merge.units = NULL;
  }
}

/* Makes encoders and units, when every document's length is known. */
static int gpuir__builder_open_lists(gpuir_builder *b, gpuir_error *err) {
  const uint32_t *lengths = NULL;
  uint64_t ndocs = 0, tokens = 0;
  unsigned i;
  int status = gpuir__writer_lengths(b->writer, &lengths, &ndocs, &tokens, err);
  if (status) return status;
  for (i = 0; i < b->threads.nworkers; i++) {
    gpuir__worker *w = &b->threads.workers[i];
    status = gpuir__encoder_create(&w->encoding.encoder, &b->a, b->set.codec, b->set.freq_codec, lengths,
                                   ndocs, tokens, b->set.k1, b->set.b, b->set.simd);
    if (status) return gpuir__fail(err, status, 0, "%s", gpuir_strerror(status));
    w->encoding.made = 1;
    w->encoding.heads = gpuir__alloc(&b->a, b->threads.nworkers * sizeof(gpuir__chain));
    if (!w->encoding.heads) return gpuir__fail_nomem(err);
    b->told.done.postings_total += w->postings;
  }
  gpuir__builder_free_tasks(b);
  /* An eighth of the memory each for the runs' buffers, for light and for heavy lists, for units on their way
   * (as gathered, and as encoded), and at most for the writer. */
  b->tasks.in_flight = b->tasks.retired = 0;
  b->tasks.in_flight_most = b->set.memory / 16;
  b->tasks.size = (size_t)gpuir__max64(16384, gpuir__min64(b->tasks.in_flight_most / b->tasks.n, 1u << 20));
  b->merge.light = b->set.memory / 8 / b->threads.nworkers;
  b->merge.units = (gpuir__unit *)gpuir__alloc_zero(&b->a, b->tasks.n * sizeof *b->merge.units);
  if (!b->merge.units) return gpuir__fail_nomem(err);
  gpuir__queue_reset(&b->tasks.queue);
  return GPUIR_OK;
}

/* Merges the runs into lists of the writer. */
static int gpuir__builder_lists(gpuir_builder *b, uint64_t nruns, gpuir_error *err) {
  int status = gpuir__builder_open_lists(b, err);
  if (status) return status;
  if (b->threads.nworkers > 1 && b->told.done.postings_total > 100000)
    gpuir__builder_start(b, gpuir__builder_encode_main);
  status = gpuir__builder_merge(b, nruns, b->set.memory / 8, err);
  gpuir__builder_join(b, status != 0);
  return status;
}

/* ============================================================================
 * [15b-builder]  builder: an index from postings; writing, making and unmaking
 *
 * Uses      [13-reader] (an index that is copied), [15-merge].
 * Start at  gpuir_builder_create, gpuir_builder_write, gpuir_builder_add_list.
 * Tests     tests/unit/15b_builder.c
 * ==========================================================================*/

/* ---- an index from postings ---- */

static int gpuir__builder_put_doc(gpuir_builder *b, const gpuir_doc_desc *doc, uint32_t length,
                                  const char *text, size_t len, gpuir_error *err) {
  gpuir_doc_desc none;
  int status;
  memset(&none, 0, sizeof none);
  status = gpuir__writer_put_doc(b->writer, doc ? doc : &none, text, len, err);
  if (!status) status = gpuir__writer_put_lengths(b->writer, &length, 1, err);
  if (status) return status;
  b->told.done.documents++;
  b->told.done.bytes += len;
  return gpuir__builder_tell_added(b, err);
}

GPUIR_API int gpuir_builder_add_doc(gpuir_builder *builder, const gpuir_doc_desc *doc, uint32_t length,
                                    const char *text, size_t len, gpuir_error *err) {
  gpuir_builder *b = builder;
  gpuir_error local;
  int status = gpuir__builder_ready(b, err);
  if (status) return status;
  if (b->phase != GPUIR__EMPTY && b->phase != GPUIR__FROM_DOCS)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "%s",
                       b->phase == GPUIR__FROM_LISTS ? "a document behind the first list"
                                                     : "this index is being made from documents' text");
  status = gpuir__builder_check_doc(doc, err);
  if (status) return status;
  b->phase = GPUIR__FROM_DOCS;
  memset(&local, 0, sizeof local);
  status = gpuir__builder_put_doc(b, doc, length, text, text ? len : 0, &local);
  return gpuir__builder_end(b, status, err, &local);
}

/* A list as it is given to the builder. */
typedef struct gpuir__given {
  const char *term;
  size_t len;
  const uint32_t *docids, *tfs,
      *positions; /* positions: NULL, or tfs[i] of posting i, one posting behind the other */
  uint32_t df;
} gpuir__given;

/* Writes posting i as runs have it; its positions begin at `positions`, which may be NULL. */
static uint8_t *gpuir__given_put(const gpuir__given *g, uint32_t i, const uint32_t *positions, uint8_t *p) {
  const uint32_t gap = g->docids[i] - (i ? g->docids[i - 1] : 0);
  uint32_t j;
  if (!positions) return gpuir__put_posting(p, gap, g->tfs[i]);
  p = gpuir__put_occurrence(p, 1, positions[0], gap);
  for (j = 1; j < g->tfs[i]; j++) p = gpuir__put_occurrence(p, 0, positions[j] - positions[j - 1] - 1, 0);
  return p;
}

/* Bytes of a posting that gpuir__given_put writes. */
static uint64_t gpuir__given_size(const gpuir__given *g, uint32_t i, const uint32_t *positions) {
  uint8_t bytes[GPUIR__POSTING_MAX];
  const uint32_t gap = g->docids[i] - (i ? g->docids[i - 1] : 0);
  uint64_t size;
  uint32_t j;
  if (!positions) return (uint64_t)(gpuir__put_posting(bytes, gap, g->tfs[i]) - bytes);
  size = (uint64_t)(gpuir__put_occurrence(bytes, 1, positions[0], gap) - bytes);
  for (j = 1; j < g->tfs[i]; j++)
    size += (uint64_t)(gpuir__put_occurrence(bytes, 0, positions[j] - positions[j - 1] - 1, 0) - bytes);
  return size;
}

/* Returns what is wrong with posting i, or NULL. */
static const char *gpuir__given_wrong(const gpuir__given *g, uint32_t i, const uint32_t *positions,
                                      uint64_t ndocs) {
  uint32_t j;
  if (g->docids[i] >= ndocs) return "names no document";
  if (i && g->docids[i] <= g->docids[i - 1]) return "does not ascend";
  if (!g->tfs[i]) return "has tf 0";
  for (j = 1; positions && j < g->tfs[i]; j++)
    if (positions[j] <= positions[j - 1]) return "has positions that do not ascend";
  return NULL;
}

/* Bytes of a list as runs have it, or 0 when it is not a list of this index (*err says why). */
static uint64_t gpuir__list_bytes(const gpuir__given *g, uint64_t ndocs, gpuir_error *err) {
  const uint32_t *positions = g->positions;
  uint64_t bytes = 0;
  uint32_t i;
  for (i = 0; i < g->df; i++) {
    const char *wrong = gpuir__given_wrong(g, i, positions, ndocs);
    if (wrong) {
      (void)gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "posting %lu of the list, docID %lu, %s", (unsigned long)i,
                        (unsigned long)g->docids[i], wrong);
      return 0;
    }
    bytes += gpuir__given_size(g, i, positions);
    if (positions) positions += g->tfs[i];
  }
  return bytes;
}

/* Checks that no position lies behind its document's last token. */
static int gpuir__list_in_lengths(const gpuir__given *g, const uint32_t *lengths, gpuir_error *err) {
  const uint32_t *positions = g->positions;
  uint32_t i;
  for (i = 0; positions && i < g->df; i++) {
    positions += g->tfs[i];
    if (positions[-1] >= lengths[g->docids[i]])
      return gpuir__fail(err, GPUIR_E_ARGUMENT, 0,
                         "posting %lu of the list, docID %lu, has a position behind the document's end",
                         (unsigned long)i, (unsigned long)g->docids[i]);
  }
  return GPUIR_OK;
}

/* Appends a list of so many bytes to the open unit. */
static int gpuir__builder_put_list(gpuir_builder *b, const gpuir__given *g, uint64_t bytes,
                                   gpuir_error *err) {
  gpuir__unit *u = b->merge.unit;
  gpuir__item item;
  gpuir__part part;
  const uint32_t *positions = g->positions;
  uint8_t *p;
  uint32_t i;
  int status;
  if (u && b->threads.nworkers > 1 && !b->tasks.queue.pushed && !b->threads.nthreads &&
      u->used + u->items.len + u->parts.len + bytes > b->tasks.size / 2)
    gpuir__builder_start(b, gpuir__builder_encode_main); /* before the first unit that is full leaves */
  status = gpuir__builder_unit_room(b, &b->merge.unit, bytes, err);
  if (status) return status;
  u = b->merge.unit;
  memset(&item, 0, sizeof item);
  memset(&part, 0, sizeof part);
  item.df = g->df;
  item.bytes = positions ? bytes : 0;
  item.parts = 1;
  item.term_len = (uint32_t)g->len;
  part.at = u->used;
  part.len = bytes;
  if (gpuir__buf_put(&b->a, &u->terms, g->term, g->len) ||
      gpuir__buf_put(&b->a, &u->items, &item, sizeof item) ||
      gpuir__buf_put(&b->a, &u->parts, &part, sizeof part))
    return gpuir__fail_nomem(err);
  b->merge.last_term.len = 0;
  if (gpuir__buf_put(&b->a, &b->merge.last_term, g->term, g->len)) return gpuir__fail_nomem(err);
  p = u->bytes.data + u->used;
  for (i = 0; i < g->df; i++) {
    p = gpuir__given_put(g, i, positions, p);
    if (positions) positions += g->tfs[i];
  }
  u->used += bytes;
  u->nterms++;
  u->postings += g->df;
  return GPUIR_OK;
}

GPUIR_API int gpuir_builder_add_list(gpuir_builder *builder, const char *term, size_t len,
                                     const uint32_t *docids, const uint32_t *tfs, const uint32_t *positions,
                                     uint32_t df, gpuir_error *err) {
  gpuir_builder *b = builder;
  const gpuir__given given = {term, len, docids, tfs, positions, df};
  gpuir_error local;
  uint64_t bytes;
  int status = gpuir__builder_ready(b, err);
  if (status) return status;
  if (b->phase != GPUIR__FROM_DOCS && b->phase != GPUIR__FROM_LISTS)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "a list before gpuir_builder_add_doc added a document");
  if (!term || !len || len > GPUIR_MAX_TERM)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "a term has 1 to %d bytes, this one %lu", GPUIR_MAX_TERM,
                       (unsigned long)(term ? len : 0));
  if (!docids || !tfs || !df) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "a list without postings");
  if (!positions != !b->set.positions)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0,
                       positions ? "positions for an index that keeps none" : "a list without its positions");
  if (b->merge.last_term.len &&
      gpuir__compare_bytes(b->merge.last_term.data, b->merge.last_term.len, term, len) >= 0)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "the term '%.*s' does not come behind the one before it",
                       len < 60 ? (int)len : 60, term);
  bytes = gpuir__list_bytes(&given, b->told.done.documents, err);
  if (!bytes) return GPUIR_E_ARGUMENT;
  memset(&local, 0, sizeof local);
  if (b->phase == GPUIR__FROM_DOCS) status = gpuir__builder_open_lists(b, &local);
  b->phase = GPUIR__FROM_LISTS;
  if (!status)
    status = gpuir__list_in_lengths(&given, b->threads.workers[0].encoding.encoder.lengths, &local);
  if (!status) status = gpuir__builder_put_list(b, &given, bytes, &local);
  return gpuir__builder_end(b, status, err, &local);
}

/* Encodes the last unit and appends all lists that are still on their way. */
static int gpuir__builder_close_lists(gpuir_builder *b, gpuir_error *err) {
  int status = gpuir__builder_push_unit(b, &b->merge.unit, err);
  while (!status && b->tasks.retired < b->tasks.queue.pushed) status = gpuir__builder_retire_unit(b, err);
  gpuir__builder_join(b, status != 0);
  gpuir__buf_free(&b->a, &b->merge.last_term);
  return status;
}

/* ---- writing ---- */

/* Inverts the last packets and merges all runs. */
static int gpuir__builder_invert(gpuir_builder *b, gpuir_build_report *r, gpuir_error *err) {
  unsigned i;
  int status = gpuir__builder_seal(b, 1, err);
  if (status) return status;
  if (b->threads.nthreads) gpuir__queue_close(&b->tasks.queue, 0); /* the workers' last runs, side by side */
  while (b->tasks.retired < b->tasks.queue.pushed) {
    status = gpuir__builder_retire_packet(b, err);
    if (status) return status;
  }
  if (b->threads.nthreads)
    gpuir__builder_join(b, 0);
  else
    gpuir__builder_finish_worker(b, &b->threads.workers[0]);
  status = gpuir__builder_failed(b, err);
  if (status) return status;
  gpuir__builder_free_tasks(b);
  gpuir__buf_free(&b->a, &b->add.seen);
  for (i = 0; i < b->threads.nworkers; i++) {
    gpuir__builder_release_analyzer(b, &b->threads.workers[i]);
    r->runs += b->threads.workers[i].runs.len / sizeof(gpuir__extent);
    r->dropped_tokens += b->threads.workers[i].dropped;
    r->lost_documents += b->threads.workers[i].lost;
  }
  return r->runs ? gpuir__builder_lists(b, r->runs, err) : GPUIR_OK;
}

/* Completes the lists and writes the file. */
static int gpuir__builder_write_all(gpuir_builder *b, gpuir_build_report *report, gpuir_error *err) {
  gpuir__meta meta;
  gpuir_build_report r;
  const uint32_t *lengths = NULL;
  uint64_t ndocs = 0;
  int status;
  memset(&r, 0, sizeof r);
  memset(&meta, 0, sizeof meta);
  if (b->phase <= GPUIR__FROM_TEXT)
    status = gpuir__builder_invert(b, &r, err);
  else
    status = gpuir__builder_close_lists(b, err);
  if (status) return status;
  gpuir__builder_free_tasks(b);
  status = gpuir__writer_lengths(b->writer, &lengths, &ndocs, &r.tokens, err);
  if (status) return status;
  meta.analyzer = b->set.spec;
  meta.stop_words = b->set.stop_words;
  meta.codec = b->set.codec_spec;
  meta.freq_codec = b->set.freq_codec_spec;
  meta.description = b->set.description;
  meta.order = b->set.order;
  meta.k1 = b->set.k1;
  meta.b = b->set.b;
  meta.store = b->set.store_text;
  meta.positions = b->set.positions;
  status = gpuir__writer_finish(b->writer, &meta, &r.file_bytes, err);
  if (status) return status;
  r.documents = ndocs;
  r.terms = b->merge.terms;
  r.postings = b->merge.postings;
  r.text_bytes = b->told.done.bytes;
  r.peak_memory = b->counter.peak;
  r.shared_folder = b->writer->shared;
  if (report) *report = r;
  return GPUIR_OK;
}

GPUIR_API int gpuir_builder_write(gpuir_builder *builder, gpuir_build_report *report, gpuir_error *err) {
  gpuir_builder *b = builder;
  gpuir_error local;
  int status = gpuir__builder_ready(b, err);
  if (status) return status;
  memset(&local, 0, sizeof local);
  status = gpuir__builder_write_all(b, report, &local);
  b->written = 1;
  if (!status) return GPUIR_OK;
  gpuir__builder_join(b, 1);
  if (err) *err = local;
  return gpuir__builder_fail(b, status, &local);
}

/* ---- making and unmaking ---- */

GPUIR_API void gpuir_builder_destroy(gpuir_builder *builder) {
  gpuir_builder *b = builder;
  gpuir_allocator base;
  unsigned i;
  if (!b) return;
  gpuir__builder_join(b, 1);
  gpuir__writer_destroy(b->writer);
  gpuir__builder_free_tasks(b);
  for (i = 0; b->threads.workers && i < b->threads.nworkers; i++) {
    gpuir__worker *w = &b->threads.workers[i];
    gpuir__builder_release_analyzer(b, w);
    gpuir__worker_free_table(w);
    gpuir__spool_close(&w->spool);
    gpuir__buf_free(&b->a, &w->runs);
    gpuir__area_free(&b->a, &w->encoding.raw);
    if (w->encoding.made) gpuir__encoder_destroy(&w->encoding.encoder);
    gpuir__free(&b->a, w->encoding.heads, b->threads.nworkers * sizeof(gpuir__chain));
  }
  gpuir__free(&b->a, b->threads.workers, b->threads.nworkers * sizeof *b->threads.workers);
  gpuir__buf_free(&b->a, &b->add.seen);
  gpuir__buf_free(&b->a, &b->merge.last_term);
  gpuir__queue_free(&b->a, &b->tasks.queue);
  gpuir__gate_free(&b->merge.gate);
  gpuir__free(&b->a, b->set.stop_words, b->set.stop_size);
  gpuir__free(&b->a, b->set.description, b->set.description_size);
  base = b->counter.base;
  gpuir__free(&base, b, sizeof *b);
}

/* Makes white space between stop words one blank each. */
static void gpuir__builder_squeeze(char *text) {
  const char *in = text;
  char *out = text;
  for (; *in; in++) {
    if (!gpuir__is_space(*in))
      *out++ = *in;
    else if (out > text && out[-1] != ' ')
      *out++ = ' ';
  }
  if (out > text && out[-1] == ' ') out--;
  *out = 0;
}

/* Removes temporary files of killed builds: such a file has a name from its open to its unlink. */
static int gpuir__builder_sweep(gpuir_builder *b, gpuir_error *err) {
  size_t n = b->writer->tmp_size + 16;
  char *name = (char *)gpuir__alloc(&b->a, n);
  unsigned i;
  if (!name) return gpuir__fail_nomem(err);
  for (i = 0; i <= GPUIR__TMP_UNITS; i++) {
    if (i == GPUIR__W_COUNT) i = GPUIR__TMP_SOURCES;
    (void)snprintf(name, n, "%s.%u", b->writer->tmp, i);
    (void)unlink(name);
  }
  gpuir__free(&b->a, name, n);
  return GPUIR_OK;
}

static unsigned gpuir__processors(void) {
#ifdef _SC_NPROCESSORS_ONLN
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n > 0 && n < 65536 ? (unsigned)n : 1;
#else
  return 1;
#endif
}

/* Returns a number that nobody who chose the texts could know: terms cannot be chosen so that they collide, which would
 * make building take time with the square of their number. */
static uint64_t gpuir__builder_seed(const gpuir_builder *b) {
  const uint64_t from[] = {gpuir__now(), (uint64_t)(uintptr_t)b, (uint64_t)(uintptr_t)&from,
                           (uint64_t)getpid()};
  return XXH3_64bits(from, sizeof from);
}

/* Shares the memory out and makes workers, rings and the writer, to which fd goes: see gpuir__writer_create. */
static int gpuir__builder_set_up(gpuir_builder *b, const gpuir_builder_desc *desc, int *fd,
                                 gpuir_error *err) {
  const int placed = *fd >= 0;
  uint64_t share, writer_memory;
  unsigned i, threads = desc->threads ? desc->threads : gpuir__processors();
  const gpuir__segment *like = desc->like ? desc->like->leaves[0].seg : NULL;
  const char *stop_words = like ? like->meta.stop_words : desc->analyzer.stop_words;
  const char *description = desc->description || !like ? desc->description : like->meta.description;
  int status = GPUIR_OK;
  if (!like)
    status = gpuir__analyzer_spec(&desc->analyzer, b->set.spec, sizeof b->set.spec, err);
  else if (strlen(like->meta.analyzer_spec) >= sizeof b->set.spec)
    status = gpuir__fail(err, GPUIR_E_LIMIT, 0, "the analyzer's specification is too long");
  else
    memcpy(b->set.spec, like->meta.analyzer_spec, strlen(like->meta.analyzer_spec) + 1);
  if (status) return status;
  b->set.seed = gpuir__builder_seed(b);
  b->set.memory = gpuir__max64(desc->memory ? desc->memory : (uint64_t)512 << 20, 1u << 20);
  /* At most a thread for each 16 MiB: small tables make many runs, and each thread costs malloc some memory
   * that nobody counts. The index does not depend on it. */
  b->threads.nworkers = (unsigned)gpuir__min64(
      threads, gpuir__min64(GPUIR__MOST_WORKERS, gpuir__max64(2, b->set.memory >> 24)));
  if (!stop_words) stop_words = "";
  if (!description) description = "";
  b->set.stop_words = gpuir__concat(&b->a, stop_words, strlen(stop_words), "", 0, &b->set.stop_size);
  b->set.description =
      gpuir__concat(&b->a, description, strlen(description), "", 0, &b->set.description_size);
  b->threads.workers =
      (gpuir__worker *)gpuir__alloc_zero(&b->a, b->threads.nworkers * sizeof *b->threads.workers);
  if (!b->set.stop_words || !b->set.description || !b->threads.workers) return gpuir__fail_nomem(err);
  gpuir__builder_squeeze(b->set.stop_words);
  /* An eighth of the memory for text on its way, up to as much for the writer, a sixteenth in reserve. */
  writer_memory = gpuir__min64(b->set.memory / 8, 8u << 20);
  share = (b->set.memory - b->set.memory / 8 - b->set.memory / 16 - writer_memory) / b->threads.nworkers;
  for (i = 0; i < b->threads.nworkers; i++) b->threads.workers[i].spool.fd = -1;
  for (i = 0; i < b->threads.nworkers; i++) {
    gpuir__worker *w = &b->threads.workers[i];
    w->builder = b;
    w->a = &b->a;
    w->number = i;
    w->positions = b->set.positions;
    w->spool_cap = (size_t)gpuir__max64(16384, gpuir__min64(share / 32, 1u << 20));
    w->table.seed = b->set.seed;
    w->table.share = gpuir__max64(share - gpuir__min64(share / 2, w->spool_cap), 256u << 10);
  }
  if (!like) status = gpuir__builder_analyzers(b, err); /* an analyzer that is lacking shows at once */
  if (status) return status;
  b->tasks.n = b->threads.nworkers == 1 ? 1 : 2 * b->threads.nworkers + 2;
  b->tasks.in_flight_most = b->set.memory / 8;
  b->tasks.size = (size_t)gpuir__max64(8192, gpuir__min64(b->tasks.in_flight_most / b->tasks.n, 2u << 20));
  b->add.packets = (gpuir__packet *)gpuir__alloc_zero(&b->a, b->tasks.n * sizeof *b->add.packets);
  if (!b->add.packets) return gpuir__fail_nomem(err);
  status = gpuir__queue_init(&b->a, &b->tasks.queue, b->tasks.n, err);
  if (!status) status = gpuir__gate_init(&b->merge.gate, b->set.memory / 8, err);
  if (status) return status;
  status = gpuir__writer_create(&b->a, desc->path, writer_memory, *fd, &b->writer, err);
  *fd = -1;
  if (status) return status;
  b->writer->has[GPUIR__P_TEXT] = b->set.store_text != 0;
  for (i = 0; i < b->threads.nworkers; i++) b->threads.workers[i].tmp = b->writer->tmp;
  b->writer->has[GPUIR__P_POSITIONS] = b->set.positions;
  return placed ? GPUIR_OK : gpuir__builder_sweep(b, err);
}

/* Makes a builder as gpuir_builder_create does. *fd: -1, or that of the new file desc->path in a folder that the caller
 * has locked, and becomes -1 when the builder has taken it; pool: where analyzers come from, or NULL. */
static int gpuir__builder_make(const gpuir_builder_desc *desc, int *fd, gpuir__pool *pool,
                               gpuir_builder **builder, gpuir_error *err) {
  gpuir_allocator base;
  gpuir_builder *b;
  gpuir__coding codec, freq_codec;
  const gpuir__segment *like = desc && desc->like ? desc->like->leaves[0].seg : NULL;
  const char *docs_name, *freqs_name, *order;
  int status;
  if (!builder) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "no place for the builder given");
  *builder = NULL;
  if (!desc || !desc->path || !*desc->path)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "no path for the index given");
  if (desc->custom_bm25 && !(desc->k1 >= 0 && desc->k1 <= 1000))
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "k1 must lie in [0, 1000]");
  if (desc->custom_bm25 && !(desc->b >= 0 && desc->b <= 1))
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "b must lie in [0, 1]");
  order = desc->order ? desc->order : like ? like->meta.order : "";
  if (strlen(order) > GPUIR__ORDER_MAX)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "the order's name has more than %u bytes", GPUIR__ORDER_MAX);
  docs_name = desc->codec || !like ? desc->codec : like->meta.codec;
  freqs_name = desc->freq_codec || !like ? desc->freq_codec : like->meta.freq_codec;
  status = gpuir__coding_parse(docs_name, 1, &codec, err);
  if (!status) status = gpuir__coding_parse(freqs_name, 0, &freq_codec, err);
  if (status) return status;
  base = gpuir__allocator(desc->allocator);
  b = (gpuir_builder *)gpuir__alloc_zero(&base, sizeof *b);
  if (!b) return gpuir__fail_nomem(err);
  b->counter.base = base;
  b->counter.now = b->counter.peak = sizeof *b;
  b->a.resize = gpuir__counter_resize;
  b->a.user = &b->counter;
  b->set.codec = codec;
  b->set.freq_codec = freq_codec;
  (void)snprintf(b->set.codec_spec, sizeof b->set.codec_spec, "%s",
                 docs_name ? docs_name : codec.codec->name);
  (void)snprintf(b->set.freq_codec_spec, sizeof b->set.freq_codec_spec, "%s",
                 freqs_name ? freqs_name : freq_codec.codec->name);
  memcpy(b->set.order, order, strlen(order));
  b->set.k1 = desc->custom_bm25 ? desc->k1 : like ? like->stat.k1 : 0.9f;
  b->set.b = desc->custom_bm25 ? desc->b : like ? like->stat.b : 0.4f;
  b->set.tokenize = desc->like ? desc->like->analysis.tokenize : desc->analyzer.tokenize;
  b->set.tokenize_user = desc->like ? desc->like->analysis.tokenize_user : desc->analyzer.tokenize_user;
  b->set.pool = pool;
  b->set.store_text = desc->store_text;
  b->set.positions = desc->positions != 0;
  b->set.simd = desc->simd;
  b->set.progress = desc->progress;
  b->set.progress_user = desc->progress_user;
  status = gpuir__builder_set_up(b, desc, fd, err);
  if (status) {
    gpuir_builder_destroy(b);
    return status;
  }
  *builder = b;
  return GPUIR_OK;
}

GPUIR_API int gpuir_builder_create(const gpuir_builder_desc *desc, gpuir_builder **builder,
                                   gpuir_error *err) {
  int fd = -1;
  return gpuir__builder_make(desc, &fd, NULL, builder, err);
}

/* ============================================================================
 * [16-query]  query: from text to weighted terms
 *
 * A query's text is words, phrases and prefixes, each of which becomes one term or more. What is scored as one is
 * called a term here, also a phrase, or all terms that a prefix stands for.
 *
 * Uses      [09-postings] (weights), [11-analysis], [13b-snapshot].
 * Start at  gpuir_query_parse.
 * Tests     tests/unit/16_query.c
 * ==========================================================================*/

#define GPUIR__NO_TERM UINT32_MAX
#ifndef GPUIR__PREFIX_TERMS
#define GPUIR__PREFIX_TERMS 1024u /* that a prefix may stand for */
#endif
#ifndef GPUIR__PREFIX_POSTINGS
#define GPUIR__PREFIX_POSTINGS (1u << 24) /* that they may have together */
#endif

enum { GPUIR__WORD, GPUIR__PHRASE, GPUIR__PREFIX };

/* What is weighed and scored as one: a word's term, a phrase, or all terms that a prefix stands for. Also a term of a
 * phrase, which has no weight of its own. */
typedef struct gpuir__query_term {
  uint32_t q;
  uint32_t
      df; /* 0: no live document holds the term, which is then unknown; a phrase's or prefix's: see its look-up */
  int negated;
  float idf, weight;
  uint8_t kind;            /* GPUIR__WORD ... */
  uint8_t len;             /* of the text: a term's, or a prefix without its '*' */
  uint16_t tokens, first;  /* of a phrase: its tokens, and where they begin among those of all phrases */
  uint16_t members;        /* of a prefix: the terms that it stands for */
  uint32_t name, name_len; /* of a phrase or prefix: how it is written, in gpuir_query.names */
  char text[GPUIR_MAX_TERM];
} gpuir__query_term;

/* What a query has numbers of in each leaf: its terms; the members of its phrases; where its prefixes end. */
enum {
  GPUIR__ID_TERMS = 0,
  GPUIR__ID_MEMBERS = GPUIR_MAX_TERMS,
  GPUIR__ID_ENDS = 2 * GPUIR_MAX_TERMS,
  GPUIR__IDS = 3 * GPUIR_MAX_TERMS
};

/* What only queries with phrases have. */
typedef struct gpuir__query_phrases {
  unsigned nmembers, ntokens; /* distinct terms of phrases; tokens of all phrases */
  gpuir__query_term members[GPUIR_MAX_TERMS];
  uint8_t tokens[(GPUIR_MAX_TERMS + 1) * GPUIR_MAX_TERMS]; /* each phrase's tokens: numbers of members */
} gpuir__query_phrases;

struct gpuir_query {
  const gpuir_index *ix;
  gpuir_allocator a;
  int mode, no_operators;
  float k1, b;
  int stored_bm25; /* k1 and b are the index's */
  gpuir__norm norm;
  unsigned n, npositive, nunknown; /* terms; positive ones come first; unknown positive ones */
  unsigned nphrases, nprefixes;    /* of the terms */
  unsigned distinct;               /* terms, those of phrases included */
  gpuir__query_phrases *phrases;   /* NULL: none */
  size_t size;                     /* of this and the ids behind it */
  uint32_t *ids;                   /* [leaf * GPUIR__IDS + number], see gpuir__query_id */
  gpuir__buf names;                /* see gpuir__query_term.name */
  gpuir__query_term terms[GPUIR_MAX_TERMS];
};

/* Returns the number that a term of the query has in a leaf; GPUIR__NO_TERM where it is not in it, or unknown. Of a
 * prefix it is the first term's. */
static inline uint32_t gpuir__query_id(const gpuir_query *q, size_t leaf, unsigned term) {
  return q->ids[leaf * GPUIR__IDS + GPUIR__ID_TERMS + term];
}
/* Returns that of a member of the query's phrases, and the number behind a prefix's last term in a leaf. */
static inline uint32_t gpuir__query_member_id(const gpuir_query *q, size_t leaf, unsigned member) {
  return q->ids[leaf * GPUIR__IDS + GPUIR__ID_MEMBERS + member];
}
static inline uint32_t gpuir__query_end(const gpuir_query *q, size_t leaf, unsigned term) {
  return q->ids[leaf * GPUIR__IDS + GPUIR__ID_ENDS + term];
}

/* ---- from text to terms ---- */

/* Where the tokens of one word, prefix or phrase go. */
typedef struct gpuir__word {
  gpuir_query *query;
  gpuir__analyzer *analyzer;
  int negated;
  unsigned tokens;  /* so far */
  uint64_t dropped; /* by the analyzer, when the last token came */
  uint8_t len;      /* of a prefix the last token, of a phrase the first, which wait for the next one */
  char text[GPUIR_MAX_TERM];
} gpuir__word;

static int gpuir__token_is(const gpuir__query_term *t, const char *token, size_t len) {
  return t->len == len && !memcmp(t->text, token, len);
}

/* Counts a distinct term, unless it is among the first `nterms` words or the first `nmembers` members of phrases. TERMS
 * where there are too many. */
static int gpuir__query_distinct(gpuir_query *q, unsigned nterms, unsigned nmembers, const char *token,
                                 size_t len) {
  unsigned i;
  for (i = 0; i < nterms; i++)
    if (q->terms[i].kind == GPUIR__WORD && gpuir__token_is(&q->terms[i], token, len)) return GPUIR_OK;
  for (i = 0; i < nmembers; i++)
    if (gpuir__token_is(&q->phrases->members[i], token, len)) return GPUIR_OK;
  return ++q->distinct > GPUIR_MAX_TERMS ? GPUIR_E_TERMS : GPUIR_OK;
}

static void gpuir__query_term_make(gpuir__query_term *t, int kind, int negated, const char *token,
                                   size_t len) {
  memset(t, 0, sizeof *t);
  t->q = 1;
  t->kind = (uint8_t)kind;
  t->negated = negated;
  t->len = (uint8_t)len;
  memcpy(t->text, token, len);
}

/* Adds a word's term or a prefix, or counts one that is there once more. */
static int gpuir__query_add(gpuir_query *q, int kind, int negated, const char *token, size_t len) {
  unsigned i;
  for (i = 0; i < q->n; i++) {
    gpuir__query_term *t = &q->terms[i];
    if (t->kind == kind && t->negated == negated && gpuir__token_is(t, token, len)) {
      if (t->q < UINT32_MAX) t->q++;
      return GPUIR_OK;
    }
  }
  if (q->n == GPUIR_MAX_TERMS) return GPUIR_E_TERMS;
  gpuir__query_term_make(&q->terms[q->n++], kind, negated, token, len);
  q->nprefixes += kind == GPUIR__PREFIX;
  return gpuir__query_distinct(q, 0, q->phrases && kind == GPUIR__WORD ? q->phrases->nmembers : 0, token,
                               len);
}

/* Takes a token of a word. */
static int gpuir__word_token(void *sink, const char *token, size_t len) {
  const gpuir__word *word = (const gpuir__word *)sink;
  return gpuir__query_add(word->query, GPUIR__WORD, word->negated, token, len);
}

/* Adds the waiting token of a word that ends in a prefix: not the last one, and so an ordinary token. */
static int gpuir__prefix_flush(gpuir__word *word) {
  const gpuir__analyzer *an = word->analyzer;
  const size_t len = word->len;
  word->len = 0;
  if (!len || (an->stops.nslots &&
               gpuir__stops_have(&an->stops, word->text, len, gpuir__word_hash(an, word->text, len))))
    return GPUIR_OK;
  return gpuir__word_token(word, word->text, len);
}

/* Takes a token of a word that ends in a prefix, neither stopped nor stemmed. */
static int gpuir__prefix_token(void *sink, const char *token, size_t len) {
  gpuir__word *word = (gpuir__word *)sink;
  const int status = gpuir__prefix_flush(word);
  word->dropped = word->analyzer->dropped;
  word->len = (uint8_t)len;
  memcpy(word->text, token, len);
  return status;
}

/* Adds a word whose last token is a prefix. */
static int gpuir__query_prefix(gpuir__word *word, const char *text, size_t len) {
  gpuir__analyzer *an = word->analyzer;
  const int filtered = an->filtered;
  int status;
  an->filtered = 0;
  status = gpuir__analyze(an, text, len, gpuir__prefix_token, word, NULL);
  an->filtered = filtered;
  if (status || !word->len) return status;
  if (word->dropped < an->dropped) return gpuir__prefix_flush(word); /* the last one was too long */
  return gpuir__query_add(word->query, GPUIR__PREFIX, word->negated, word->text, word->len);
}

/* Adds a member of phrases, or finds it; *member becomes its number. */
static int gpuir__query_member(gpuir_query *q, const char *token, size_t len, uint8_t *member) {
  gpuir__query_phrases *p = q->phrases;
  unsigned i;
  for (i = 0; i < p->nmembers && !gpuir__token_is(&p->members[i], token, len); i++) {}
  *member = (uint8_t)i;
  if (i < p->nmembers) return GPUIR_OK;
  if (i == GPUIR_MAX_TERMS) return GPUIR_E_TERMS;
  gpuir__query_term_make(&p->members[p->nmembers++], GPUIR__WORD, 0, token, len);
  return gpuir__query_distinct(q, q->n, 0, token, len);
}

/* Makes room for phrases. */
static int gpuir__query_phrases_make(gpuir_query *q) {
  if (q->phrases) return GPUIR_OK;
  q->phrases = (gpuir__query_phrases *)gpuir__alloc(&q->a, sizeof *q->phrases);
  if (!q->phrases) return GPUIR_E_NOMEM;
  q->phrases->nmembers = q->phrases->ntokens = 0;
  return GPUIR_OK;
}

/* Takes a token of a phrase. The first waits: alone, it is a word. */
static int gpuir__phrase_token(void *sink, const char *token, size_t len) {
  gpuir__word *word = (gpuir__word *)sink;
  gpuir_query *q = word->query;
  uint8_t *tokens;
  int status;
  if (!word->tokens++) {
    word->len = (uint8_t)len;
    memcpy(word->text, token, len);
    return GPUIR_OK;
  }
  if (word->tokens > GPUIR_MAX_TERMS) return GPUIR_E_TERMS;
  status = gpuir__query_phrases_make(q);
  if (status) return status;
  tokens = q->phrases->tokens + q->phrases->ntokens;
  if (word->tokens == 2) status = gpuir__query_member(q, word->text, word->len, &tokens[0]);
  return status ? status : gpuir__query_member(q, token, len, &tokens[word->tokens - 1]);
}

/* Adds the phrase whose tokens stand behind those of the others, or counts one that is there once more. */
static int gpuir__query_phrase(gpuir__word *word) {
  gpuir_query *q = word->query;
  gpuir__query_phrases *p = q->phrases;
  gpuir__query_term *t;
  unsigned i;
  if (word->tokens == 1) return gpuir__word_token(word, word->text, word->len);
  if (!word->tokens) return GPUIR_OK;
  for (i = 0; i < q->n; i++) {
    t = &q->terms[i];
    if (t->kind == GPUIR__PHRASE && t->negated == word->negated && t->tokens == word->tokens &&
        !memcmp(p->tokens + t->first, p->tokens + p->ntokens, word->tokens)) {
      if (t->q < UINT32_MAX) t->q++;
      return GPUIR_OK;
    }
  }
  if (q->n == GPUIR_MAX_TERMS) return GPUIR_E_TERMS;
  t = &q->terms[q->n++];
  gpuir__query_term_make(t, GPUIR__PHRASE, word->negated, "", 0);
  t->tokens = (uint16_t)word->tokens;
  t->first = (uint16_t)p->ntokens;
  p->ntokens += word->tokens;
  q->nphrases++;
  return GPUIR_OK;
}

/* Says whether a '*' behind this byte makes a prefix: an ASCII letter or digit, or a part of another character. */
static inline int gpuir__is_letter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80);
}

/* Says why the words could not become terms. */
static int gpuir__query_words_fail(int status, gpuir_error *err) {
  if (status == GPUIR_E_TERMS)
    return gpuir__fail(err, status, 0, "more than %d distinct terms in the query, or tokens in a phrase",
                       GPUIR_MAX_TERMS);
  return status ? gpuir__fail(err, status, 0, "%s", gpuir_strerror(status)) : GPUIR_OK;
}

/* Adds the phrase that the text between two quotes is. */
static int gpuir__query_quoted(gpuir__word *word, const char *text, size_t len, gpuir_error *err) {
  int status = gpuir__analyze(word->analyzer, text, len, gpuir__phrase_token, word, NULL);
  if (!status && word->tokens > 1 && !word->query->ix->leaves[0].seg->lists.positions)
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "%s: built without positions: no phrase can be found",
                       word->query->ix->path);
  return gpuir__query_words_fail(status ? status : gpuir__query_phrase(word), err);
}

/* Adds a word, or a prefix. */
static int gpuir__query_word(gpuir__word *word, const char *text, size_t len, gpuir_error *err) {
  const gpuir_query *q = word->query;
  if (q->no_operators || len < 2 || text[len - 1] != '*' || !gpuir__is_letter(text[len - 2]))
    return gpuir__query_words_fail(gpuir__analyze(word->analyzer, text, len, gpuir__word_token, word, NULL),
                                   err);
  if (gpuir__analyzer_stems(word->analyzer))
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "%s: its terms are stems: no prefix can be found",
                       q->ix->path);
  return gpuir__query_words_fail(gpuir__query_prefix(word, text, len - 1), err);
}

/* Cuts the text into words and phrases, and these into terms. */
static int gpuir__query_words(gpuir_query *q, gpuir__analyzer *analyzer, const char *text, size_t len,
                              gpuir_error *err) {
  size_t i = 0;
  int status = GPUIR_OK;
  while (!status) {
    const char *end;
    gpuir__word word;
    while (i < len && gpuir__is_space(text[i])) i++;
    if (i == len) break;
    memset(&word, 0, offsetof(gpuir__word, text));
    word.query = q;
    word.analyzer = analyzer;
    word.negated = !q->no_operators && text[i] == '-';
    i += (size_t)word.negated;
    if (!q->no_operators && i < len && text[i] == '"') {
      end = (const char *)memchr(text + i + 1, '"', len - i - 1);
      if (!end)
        return gpuir__fail(err, GPUIR_E_QUERY, i, "the quote at byte %lu of the query is not closed",
                           (unsigned long)i);
      status = gpuir__query_quoted(&word, text + i + 1, (size_t)(end - text) - i - 1, err);
      i = (size_t)(end - text) + 1;
    } else {
      size_t start = i;
      while (i < len && !gpuir__is_space(text[i])) i++;
      status = gpuir__query_word(&word, text + start, i - start, err);
    }
  }
  return status;
}

/* ---- from terms to numbers and weights ---- */

/* Puts the positive terms first: a stable partition. */
static void gpuir__query_part(gpuir_query *q) {
  unsigned i, j;
  for (i = 0; i < q->n; i++) {
    gpuir__query_term t = q->terms[i];
    if (t.negated) continue;
    for (j = i; j > q->npositive; j--) q->terms[j] = q->terms[j - 1];
    q->terms[q->npositive++] = t;
  }
}

/* Counts the live documents of leaf number `leaf` that hold term `id`. */
static int gpuir__query_df(const gpuir_index *ix, size_t leaf, uint64_t id, const gpuir__query_term *t,
                           uint32_t *df, gpuir_error *err) {
  const gpuir__segment *seg = ix->leaves[leaf].seg;
  const int status = gpuir__leaf_df(&ix->leaves[leaf], id, df);
  if (!status) return GPUIR_OK;
  return gpuir__fail(err, status, 0, "%s: cannot count the documents of \"%.*s\": %s", seg->path,
                     t->len < 32 ? (int)t->len : 32, t->text, gpuir__list_why(seg, id, status));
}

/* Looks a term up in each segment, and sums its live documents up. One that no live document holds is unknown: it has
 * no number anywhere. `number` is where its numbers go. */
static int gpuir__query_look_up(gpuir_query *q, gpuir__query_term *t, unsigned number, gpuir_error *err) {
  const gpuir_index *ix = q->ix;
  uint64_t df = 0, id;
  size_t i;
  int status;
  for (i = 0; i < ix->nleaves; i++) {
    uint32_t *found = &q->ids[i * GPUIR__IDS + number], held;
    *found = GPUIR__NO_TERM;
    if (gpuir__term_find(ix->leaves[i].seg, t->text, t->len, &id)) continue;
    status = gpuir__query_df(ix, i, id, t, &held, err);
    if (status) return status;
    if (held) *found = (uint32_t)id;
    df += held;
  }
  t->df = (uint32_t)gpuir__min64(df, ix->documents);
  return GPUIR_OK;
}

/* Sums up what a phrase's tokens weigh; its df becomes the least of its terms', which no more documents can have. */
static void gpuir__query_phrase_look_up(const gpuir_query *q, gpuir__query_term *t) {
  double idf = 0;
  unsigned i;
  t->df = UINT32_MAX;
  for (i = 0; i < t->tokens; i++) {
    const gpuir__query_term *member = &q->phrases->members[q->phrases->tokens[t->first + i]];
    t->df = gpuir__min32(t->df, member->df);
    idf += (double)member->idf;
  }
  t->idf = (float)idf;
}

/* Finds the numbers [*first, *end) of a segment's terms that begin with a prefix. */
static void gpuir__prefix_range(const gpuir__segment *seg, const gpuir__query_term *t, uint32_t *first,
                                uint32_t *end) {
  char behind[GPUIR_MAX_TERM];
  size_t n = t->len;
  memcpy(behind, t->text, n);
  while (n && (uint8_t)behind[n - 1] == 255) n--;
  if (n) behind[n - 1] = (char)((uint8_t)behind[n - 1] + 1);
  *first = (uint32_t)gpuir__term_lower_bound(seg, t->text, t->len);
  *end = (uint32_t)(n ? gpuir__term_lower_bound(seg, behind, n) : seg->stat.terms);
}

/* A prefix's terms in one segment on the way. */
typedef struct gpuir__prefix_leaf {
  uint32_t at, end;
  size_t len;
  uint8_t term[GPUIR_MAX_TERM + 1]; /* number `at` */
} gpuir__prefix_leaf;

/* Finds the next term of a prefix, the least of all segments', and counts the live documents that hold it; *more
 * becomes 0 if there is none. Segments' terms come in the same order. */
static int gpuir__prefix_next(const gpuir_index *ix, const gpuir__query_term *t, gpuir__prefix_leaf *leaves,
                              uint64_t *df, int *more, gpuir_error *err) {
  const gpuir__prefix_leaf *least = NULL;
  gpuir__prefix_leaf found;
  uint32_t held;
  size_t i;
  int status = GPUIR_OK;
  *df = 0;
  for (i = 0; i < ix->nleaves; i++) {
    gpuir__prefix_leaf *l = &leaves[i];
    if (l->at < l->end && (!least || gpuir__compare_bytes(l->term, l->len, least->term, least->len) < 0))
      least = l;
  }
  *more = least != NULL;
  if (!least) return GPUIR_OK;
  found = *least;
  for (i = 0; i < ix->nleaves && !status; i++) {
    gpuir__prefix_leaf *l = &leaves[i];
    if (l->at >= l->end || gpuir__compare_bytes(l->term, l->len, found.term, found.len) != 0) continue;
    status = gpuir__query_df(ix, i, l->at, t, &held, err);
    *df += held;
    if (++l->at < l->end) l->len = gpuir__term_get(ix->leaves[i].seg, l->at, l->term);
  }
  return status;
}

/* Counts the terms of live documents that a prefix stands for; its df becomes the greatest of theirs. LIMIT where they,
 * or their postings, are too many. */
static int gpuir__prefix_count(const gpuir_index *ix, gpuir__query_term *t, gpuir__prefix_leaf *leaves,
                               gpuir_error *err) {
  uint64_t postings = 0, df, greatest = 0;
  int more = 1;
  while (more) {
    const int status = gpuir__prefix_next(ix, t, leaves, &df, &more, err);
    if (status) return status;
    if (!df) continue;
    postings += df;
    greatest = gpuir__max64(greatest, df);
    if (++t->members > GPUIR__PREFIX_TERMS)
      return gpuir__fail(err, GPUIR_E_LIMIT, 0, "\"%.*s*\" stands for more than %u terms",
                         t->len < 64 ? t->len : 64, t->text, GPUIR__PREFIX_TERMS);
    if (postings > GPUIR__PREFIX_POSTINGS)
      return gpuir__fail(err, GPUIR_E_LIMIT, 0, "\"%.*s*\" stands for terms of more than 2^24 postings",
                         t->len < 64 ? t->len : 64, t->text);
  }
  t->df = (uint32_t)gpuir__min64(greatest, ix->documents);
  return GPUIR_OK;
}

/* Looks a prefix up in each segment. */
static int gpuir__query_prefix_look_up(gpuir_query *q, unsigned term, gpuir_error *err) {
  const gpuir_index *ix = q->ix;
  gpuir__query_term *t = &q->terms[term];
  const size_t size = ix->nleaves * sizeof(gpuir__prefix_leaf);
  gpuir__prefix_leaf *leaves = (gpuir__prefix_leaf *)gpuir__alloc(&q->a, size);
  size_t i;
  int status;
  if (!leaves) return gpuir__fail_nomem(err);
  for (i = 0; i < ix->nleaves; i++) {
    gpuir__prefix_leaf *l = &leaves[i];
    uint32_t *ids = q->ids + i * GPUIR__IDS;
    gpuir__prefix_range(ix->leaves[i].seg, t, &l->at, &l->end);
    ids[GPUIR__ID_TERMS + term] = l->at < l->end ? l->at : GPUIR__NO_TERM;
    ids[GPUIR__ID_ENDS + term] = l->end;
    if (l->at < l->end) l->len = gpuir__term_get(ix->leaves[i].seg, l->at, l->term);
  }
  status = gpuir__prefix_count(ix, t, leaves, err);
  gpuir__free(&q->a, leaves, size);
  t->idf = gpuir__idf(ix->documents, t->df);
  return status;
}

/* Looks all terms up. */
static int gpuir__query_look_all_up(gpuir_query *q, gpuir_error *err) {
  unsigned i;
  int status = GPUIR_OK;
  for (i = 0; q->phrases && i < q->phrases->nmembers && !status; i++) {
    gpuir__query_term *t = &q->phrases->members[i];
    status = gpuir__query_look_up(q, t, GPUIR__ID_MEMBERS + i, err);
    t->idf = gpuir__idf(q->ix->documents, t->df);
  }
  for (i = 0; i < q->n && !status; i++) {
    gpuir__query_term *t = &q->terms[i];
    if (t->kind == GPUIR__PREFIX) {
      status = gpuir__query_prefix_look_up(q, i, err);
    } else if (t->kind == GPUIR__PHRASE) {
      gpuir__query_phrase_look_up(q, t);
    } else {
      status = gpuir__query_look_up(q, t, GPUIR__ID_TERMS + i, err);
      t->idf = gpuir__idf(q->ix->documents, t->df);
    }
  }
  return status;
}

/* Writes how phrases and prefixes are written: "a phrase", prefi*. */
static int gpuir__query_name(gpuir_query *q) {
  unsigned i, j;
  int status = GPUIR_OK;
  for (i = 0; i < q->n && !status; i++) {
    gpuir__query_term *t = &q->terms[i];
    t->name = (uint32_t)q->names.len;
    if (t->kind == GPUIR__PREFIX) {
      status = gpuir__buf_put(&q->a, &q->names, t->text, t->len) || gpuir__buf_put(&q->a, &q->names, "*", 1);
    } else if (t->kind == GPUIR__PHRASE) {
      for (j = 0; j < t->tokens && !status; j++) {
        const gpuir__query_term *member = &q->phrases->members[q->phrases->tokens[t->first + j]];
        status = gpuir__buf_put(&q->a, &q->names, j ? " " : "\"", 1) ||
                 gpuir__buf_put(&q->a, &q->names, member->text, member->len);
      }
      status = status || gpuir__buf_put(&q->a, &q->names, "\"", 1);
    }
    t->name_len = (uint32_t)(q->names.len - t->name);
  }
  return status;
}

/* Returns how a term is written, and its length. */
static const char *gpuir__query_term_name(const gpuir_query *q, const gpuir__query_term *t, size_t *len) {
  *len = t->kind == GPUIR__WORD ? t->len : t->name_len;
  return t->kind == GPUIR__WORD ? t->text : (const char *)q->names.data + t->name;
}

/* Looks the terms up and weighs them. */
static int gpuir__query_resolve(gpuir_query *q, gpuir_error *err) {
  uint64_t sum = 0;
  unsigned i;
  int status;
  gpuir__query_part(q);
  if (!q->npositive) return gpuir__fail(err, GPUIR_E_QUERY, 0, "the query has no positive term");
  if (gpuir__query_name(q)) return gpuir__fail_nomem(err);
  status = gpuir__query_look_all_up(q, err);
  for (i = 0; i < q->n && !status; i++) {
    gpuir__query_term *t = &q->terms[i];
    uint64_t w;
    size_t len;
    const char *name = gpuir__query_term_name(q, t, &len);
    if (!t->df) {
      q->nunknown += !t->negated;
      t->idf = 0;
      continue;
    }
    if (t->negated) continue;
    t->weight = gpuir__weight(t->idf, q->k1);
    if (!(t->weight < 2147483648.0f))
      return gpuir__fail(err, GPUIR_E_RANGE, 0, "the weight of \"%.*s\" exceeds a score's range: lower k1",
                         len < 64 ? (int)len : 64, name);
    w = (uint64_t)ceilf(t->weight);
    sum += (uint64_t)t->q * (w + (w >> 21) + 2);
    if (sum >> 32)
      return gpuir__fail(err, GPUIR_E_RANGE, 0,
                         "the sum of weights exceeds a score's range: lower k1 or repeat less");
  }
  return status;
}

GPUIR_API void gpuir_query_destroy(gpuir_query *query) {
  if (query) {
    gpuir_allocator a = query->a;
    gpuir__buf_free(&a, &query->names);
    gpuir__free(&a, query->phrases, sizeof *query->phrases);
    gpuir__free(&a, query, query->size);
  }
}

static int gpuir__query_describe(gpuir_query *q, const gpuir_query_desc *desc, gpuir_error *err) {
  const gpuir__stat *stored = &q->ix->leaves[0].seg->stat;
  q->k1 = stored->k1;
  q->b = stored->b;
  if (desc) {
    if (desc->mode < GPUIR_AND || desc->mode > GPUIR_ANDOR)
      return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "unknown query mode %d", desc->mode);
    q->mode = desc->mode;
    q->no_operators = desc->no_operators;
    if (desc->custom_bm25) {
      q->k1 = desc->k1;
      q->b = desc->b;
    }
  }
  if (!(q->k1 >= 0 && q->k1 <= 1000)) return gpuir__fail(err, GPUIR_E_RANGE, 0, "k1 lies outside [0, 1000]");
  if (!(q->b >= 0 && q->b <= 1)) return gpuir__fail(err, GPUIR_E_RANGE, 0, "b lies outside [0, 1]");
  q->stored_bm25 = q->k1 <= stored->k1 && q->k1 >= stored->k1 && q->b <= stored->b && q->b >= stored->b;
  q->norm = gpuir__norm_make(q->k1, q->b, q->ix->average_length);
  return GPUIR_OK;
}

GPUIR_API int gpuir_query_parse(const gpuir_index *ix, const gpuir_query_desc *desc, const char *text,
                                size_t len, gpuir_query **query, gpuir_error *err) {
  gpuir__analyzer *analyzer;
  gpuir_query *q;
  size_t size;
  int status;
  if (query) *query = NULL;
  if (!ix || !query || (!text && len))
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_query_parse: NULL argument");
  status = gpuir__pool_take(ix->analysis.pool, &analyzer, err);
  if (status) return status;
  size = sizeof *q + ix->nleaves * GPUIR__IDS * sizeof *q->ids;
  q = (gpuir_query *)gpuir__alloc(&ix->a, size);
  if (q) {
    memset(q, 0, offsetof(gpuir_query, terms));
    q->ix = ix;
    q->a = ix->a;
    q->size = size;
    q->ids = (uint32_t *)(void *)(q + 1);
    status = gpuir__query_describe(q, desc, err);
    if (!status) status = gpuir__query_words(q, analyzer, text, len, err);
    if (!status) status = gpuir__query_resolve(q, err);
  } else {
    status = gpuir__fail_nomem(err);
  }
  gpuir__pool_give(ix->analysis.pool, analyzer);
  if (status)
    gpuir_query_destroy(q);
  else
    *query = q;
  return status;
}

/* ============================================================================
 * [17-topk]  bounds at query time; the best k
 *
 * Two things that every evaluator needs: what a block or a list can contribute at most, from its stored
 * (tf, length) pairs under the query's k1 and b; and the heap of the best k hits, whose worst entry is the
 * threshold that a document has to exceed.
 *
 * Uses      [09-postings].
 * Start at  gpuir__bound, gpuir__topk_push, gpuir__topk_threshold.
 * Tests     tests/unit/17_topk.c
 * ==========================================================================*/

/* ---- bounds of a block at query time ---- */

/* Bounds the contribution, q included, of any posting of a term whose saturation is at most s. */
static inline uint32_t gpuir__bound(float weight, float s, uint32_t q) {
  return q * gpuir__slacken(gpuir__round_even(weight * s));
}

/* Returns the greater saturation of a block's two bound pairs. */
static inline float gpuir__block_saturation(const gpuir__saturation *t, uint32_t pairs) {
  float a = t->of[pairs & 0xffff], b = t->of[pairs >> 16];
  return a > b ? a : b;
}

/* Returns the greatest saturation of a list's bound pairs; 1 for a list that has none. */
static float gpuir__list_saturation(const gpuir__saturation *t, const gpuir__list *l) {
  float best = 0;
  unsigned i;
  if (!l->extent) return 1; /* c never exceeds W by more than a rounding */
  for (i = 0; i < GPUIR__LIST_PAIRS; i++)
    if (t->of[l->extent->pairs[i]] > best) best = t->of[l->extent->pairs[i]];
  return best;
}

/* ---- the best k, as a min-heap of keys (score << 32 | ~docID) ---- */

typedef struct gpuir__topk {
  uint64_t *heap;         /* n keys, the least one first */
  size_t n, k, cap;       /* keys now, wanted, allocated */
  uint64_t threshold_key; /* only keys above it are taken */
} gpuir__topk;

/* Returns the key of a hit: greater keys are better hits. */
GPUIR_HD static inline uint64_t gpuir__key(uint32_t score, uint32_t docid) {
  return (uint64_t)score << 32 | (uint32_t)~docid;
}

/* Starts a search for the best k (>= 1) hits whose score is at least `threshold`. 0 or NOMEM. */
static int gpuir__topk_start(const gpuir_allocator *a, gpuir__topk *t, size_t k, uint32_t threshold) {
  if (k > t->cap) {
    void *p = k > SIZE_MAX / 8 ? NULL : a->resize(a->user, t->heap, t->cap * 8, k * 8);
    if (!p) return GPUIR_E_NOMEM;
    t->heap = (uint64_t *)p;
    t->cap = k;
  }
  t->n = 0;
  t->k = k;
  t->threshold_key = threshold ? ((uint64_t)threshold << 32) - 1 : 0;
  return GPUIR_OK;
}

/* Returns the least score with which a document may still enter; at least 1, since all scores are. */
static inline uint32_t gpuir__topk_threshold(const gpuir__topk *t) {
  uint64_t threshold = (t->threshold_key + 1) >> 32;
  return threshold ? (uint32_t)threshold : 1;
}

/* Sifts heap[at] down to its place among n keys. */
static void gpuir__heap_down(uint64_t *heap, size_t n, size_t at) {
  uint64_t key = heap[at];
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= n) break;
    if (child + 1 < n && heap[child + 1] < heap[child]) child++;
    if (heap[child] >= key) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = key;
}

/* Offers a key: the best k that were offered stay. */
static void gpuir__topk_push(gpuir__topk *t, uint64_t key) {
  size_t i;
  if (key <= t->threshold_key) return;
  if (t->n < t->k) {
    for (i = t->n++; i && t->heap[(i - 1) / 2] > key; i = (i - 1) / 2) t->heap[i] = t->heap[(i - 1) / 2];
    t->heap[i] = key;
  } else {
    t->heap[0] = key;
    gpuir__heap_down(t->heap, t->n, 0);
  }
  if (t->n == t->k && t->heap[0] > t->threshold_key) t->threshold_key = t->heap[0];
}

/* Moves the worst entry to hits[n - 1], where n is the number of entries left. */
static void gpuir__topk_pop(gpuir__topk *t, gpuir_hit *hits) {
  uint64_t key = t->heap[0];
  hits[--t->n].score = (uint32_t)(key >> 32);
  hits[t->n].docid = ~(uint32_t)key;
  t->heap[0] = t->heap[t->n];
  gpuir__heap_down(t->heap, t->n ? t->n : 1, 0);
}

/* ============================================================================
 * [18-lookup]  candidates are looked up in a list, with vectors
 *
 * AND takes lists from short to long ("small versus small"), each filtering the candidates that the ones before
 * left over; OR looks its candidates up in the lists of non-essential terms. Both do it here: the block directory is
 * searched first (the "B*" of Ding et al., section 8.1), then the one block that is decoded.
 *
 *     lists of like length     a register of candidates meets a register of docIDs, all pairs at once
 *     longer lists             each candidate is looked up in its decoded block by two comparisons
 *     much longer lists        a block with one candidate is searched without decoding it (the codec's find)
 *
 * Uses      [02-vectors], [09-postings].
 * Start at  gpuir__lookup_of_level (the table at the end), gpuir__pass, gpuir__operand.
 * Tests     tests/unit/18_lookup.c
 * ==========================================================================*/

/* ---- candidates and operands ---- */

/* Candidates on their way through an operand. They are strictly increasing. docs, from, where and spare have room for
 * 16 items more. For a list, UINT32_MAX follows the candidates 16 times. */
typedef struct gpuir__pass {
  const uint32_t *candidates; /* m docIDs */
  uint32_t m;
  uint32_t *docs;  /* out: the candidates that were found; another array than the candidates' */
  uint32_t *from;  /* out: their indices among the candidates; NULL: not wanted */
  uint32_t *where; /* out, with from: their indices in the operand */
  uint32_t *spare; /* m items for the method's use */
} gpuir__pass;

typedef struct gpuir__lookup_kernels gpuir__lookup_kernels;

/* What candidates are looked up in: a list, or, in the laboratory, also an array. */
typedef struct gpuir__operand {
  gpuir__cursor *cursor; /* a list, and its decoded block; NULL: an array */
  uint32_t n;            /* postings */
  uint32_t at;           /* index to go on from: docIDs before it are below all candidates to come */
  uint32_t expected;     /* candidates in all at most; 0: far fewer than the shortest operand has */
  const gpuir__lookup_kernels *kernels; /* of the SIMD level, from gpuir__lookup_of_level */
#ifndef GPUIR_NO_LAB
  const uint32_t *docs;             /* an array of n docIDs; NULL: a list */
  struct gpuir__prepared *prepared; /* see [19-methods]; NULL: nothing was prepared */
#endif
} gpuir__operand;

/* Looks up the candidates of a pass in the operand's list, from o->at on, and moves o->at; returns the number of
 * candidates that the list holds. It may be called again with greater candidates. */
typedef uint32_t (*gpuir__lookup_kernel)(gpuir__operand *o, const gpuir__pass *p);

enum { GPUIR__LOOKUP_SCALAR, GPUIR__LOOKUP_AVX2, GPUIR__LOOKUP_AVX512, GPUIR__LOOKUP_VP2INTERSECT };

struct gpuir__lookup_kernels {
  gpuir__lookup_kernel list;
  unsigned level; /* GPUIR__LOOKUP_ */
};

/* Writes the 16 UINT32_MAX that follow candidates. */
static inline void gpuir__pad(uint32_t *to) { memset(to, 0xff, 16 * sizeof *to); }

/* Writes candidate i, which is x, as match number `found`: the next match overwrites it unless `hit`. `at` is the index
 * of x in the operand. Returns the number of matches. */
GPUIR__INLINE uint32_t gpuir__pass_put(const gpuir__pass *p, int indices, uint32_t found, uint32_t i,
                                       uint32_t x, uint32_t at, int hit) {
  p->docs[found] = x;
  if (indices) {
    p->from[found] = i;
    p->where[found] = at;
  }
  return found + (hit != 0);
}

/* ---- registers against registers ----
 *
 * Lists of like length: a register of candidates is compared with each docID of a register's worth of the operand, and
 * the one of the two that ends first moves on; nothing is mispredicted but the end, and where a search begins because
 * one side is more than a register behind. (Block-wise all-pairs comparison: Schlegel, Willhalm & Lehner, "Fast
 * sorted-set intersection using SIMD instructions", ADMS 2011; Lemire, Boytsov & Kurz, "SIMD compression and the
 * intersection of sorted integers", SPE 2016.) */

/* From so many candidates in a block on, registers are compared with registers; fewer candidates are looked up one by
 * one. Measured. */
#define GPUIR__MANY 32u

/* In a list so many times longer than the shortest one, hardly a block has more than one candidate, and that candidate
 * is looked for without decoding the block. In shorter lists the processor would mispredict which blocks these are.
 * Measured. */
#define GPUIR__SPARSE 4096u

/* One merge of candidates (the left side) with docIDs (the right side). Both are strictly increasing; docIDs of a
 * damaged list may not be. */
typedef struct gpuir__merge {
  const gpuir__pass *pass; /* the left side, and where matches are written */
  const uint32_t *docs;    /* the right side */
  uint32_t n;              /* docIDs of the right side */
  uint32_t base;           /* index of docs[0] in the operand */
  uint32_t left,
      right;  /* in: the indices to begin at; out: one of the sides has nothing left from there on */
  int padded; /* UINT32_MAX follows both sides 16 times, as it does in lists */
} gpuir__merge;

#if GPUIR__X86

/* Merges, writes matches from number `found` on and returns the number of matches. */
typedef uint32_t (*gpuir__merge_kernel)(gpuir__merge *m, uint32_t found);

/* Compares a register's worth of candidates at a, the first of them candidate i, with as many docIDs at b, the first of
 * them index `at` of the operand, each with each; writes those found as matches from number `found` on, and returns the
 * number of matches. */
typedef uint32_t (*gpuir__match_registers)(int indices, const gpuir__pass *p, const uint32_t *a, uint32_t i,
                                           const uint32_t *b, uint32_t at, uint32_t found);

/* One of the two sides of a merge: items [first, n), register by register. */
typedef struct gpuir__side {
  const uint32_t *items; /* item number `first` */
  const uint32_t *next;  /* the register's worth that is next */
  const uint32_t *end; /* every register's worth that ends here at most may be read, and the one behind it */
  uint32_t first, n;
  uint32_t copy[48]; /* the last items, see gpuir__side_tail */
} gpuir__side;

/* Returns the number of the item that is next. */
GPUIR__INLINE uint32_t gpuir__side_index(const gpuir__side *s) {
  return s->first + (uint32_t)(s->next - s->items);
}

/* Begins a side at item number `first`. padded: UINT32_MAX follows the items 16 times. */
GPUIR__INLINE void gpuir__side_open(gpuir__side *s, const uint32_t *items, uint32_t first, uint32_t n,
                                    uint32_t width, int padded) {
  s->items = s->next = items + first;
  s->end = padded ? items + n : n - first < width ? s->next : items + (n - width);
  s->first = first;
  s->n = n;
}

/* Goes on in a copy of the last items, which are fewer than two registers' worths. The last item fills the copy up to a
 * whole register and one more, so that it may be found more than once, and nothing else is. Returns the number of
 * registers to be read. */
static uint32_t gpuir__side_tail(gpuir__side *s, uint32_t width) {
  const uint32_t index = gpuir__side_index(s);
  uint32_t have, whole, t;
  if (index >= s->n) return 0;
  have = s->n - index;
  whole = (have + width - 1) / width;
  for (t = 0; t < 3 * width; t++) s->copy[t] = s->next[have - 1];
  memcpy(s->copy, s->next, have * sizeof *s->copy);
  s->items = s->next = s->copy;
  s->end = s->copy + whole * width;
  s->first = index;
  return whole;
}

/* Returns for how many steps the side lasts, if each takes a register. */
GPUIR__INLINE uint32_t gpuir__side_steps(gpuir__side *s, uint32_t width) {
  return s->end - s->next >= (ptrdiff_t)width ? (uint32_t)(s->end - s->next) / width
                                              : gpuir__side_tail(s, width);
}

/* Skips registers' worths that end below x, up to `end`, by doubling and then halving steps; returns the next one. */
static inline const uint32_t *gpuir__skip_registers_below(const uint32_t *next, const uint32_t *end,
                                                          ptrdiff_t width, uint32_t x) {
  ptrdiff_t step = width;
  while (end - next >= step && next[step - 1] < x) {
    next += step;
    step *= 2;
  }
  while (step > width) {
    step /= 2;
    if (end - next >= step && next[step - 1] < x) next += step;
  }
  return next;
}

/* Advances the side whose register's worth ends at the smaller docID, or both if they end alike. The two begin at *a
 * and *b and end with *x and *y; the ones behind them end with next_x and next_y. Which side it is cannot be predicted,
 * so the compiler must not make jumps of it. */
static inline void gpuir__advance_smaller(const uint32_t **a, uint32_t *x, uint32_t next_x,
                                          const uint32_t **b, uint32_t *y, uint32_t next_y, uint32_t width) {
  const uint32_t *next_a = *a + width, *next_b = *b + width;
  __asm__(
      "cmpl %[y], %[x]\n\tcmovbel %[next_x], %[x]\n\tcmovbeq %[next_a], %[a]\n\t"
      "cmovael %[next_y], %[y]\n\tcmovaeq %[next_b], %[b]"
      : [a] "+&r"(*a), [x] "+&r"(*x), [b] "+&r"(*b), [y] "+&r"(*y)
      : [next_a] "r"(next_a), [next_x] "r"(next_x), [next_b] "r"(next_b), [next_y] "r"(next_y)
      : "cc");
}

/* Merges by registers of `width` items. The ends of the next registers' worths are loaded before it is known which is
 * needed, so that no step waits for a load; they also tell when one side is so far behind that it is worth a search. */
GPUIR__INLINE uint32_t gpuir__merge_by(gpuir__match_registers match, uint32_t width, int indices, int padded,
                                       gpuir__merge *m, uint32_t found) {
  const gpuir__pass pass = *m->pass; /* a copy, as the compiler would take any store for one to *m->pass */
  const uint32_t before = found;
  gpuir__side left, right;
  uint32_t steps;
  gpuir__side_open(&left, pass.candidates, m->left, pass.m, width, padded);
  gpuir__side_open(&right, m->docs, m->right, m->n, width, padded);
  while ((steps = gpuir__side_steps(&left, width)) > 0 &&
         (steps = gpuir__min32(steps, gpuir__side_steps(&right, width))) > 0) {
    const uint32_t *a = left.next, *b = right.next;
    const uint32_t i = gpuir__side_index(&left), j = m->base + gpuir__side_index(&right);
    uint32_t x = a[width - 1], y = b[width - 1];
    do {
      const uint32_t next_x = a[2 * width - 1], next_y = b[2 * width - 1];
      if (GPUIR__UNLIKELY(next_x < *b)) {
        a = gpuir__skip_registers_below(a + 2 * width, left.end, width, *b);
        break;
      }
      if (GPUIR__UNLIKELY(next_y < *a)) {
        b = gpuir__skip_registers_below(b + 2 * width, right.end, width, *a);
        break;
      }
      found =
          match(indices, &pass, a, i + (uint32_t)(a - left.next), b, j + (uint32_t)(b - right.next), found);
      if (padded) found = gpuir__min32(found, pass.m); /* a damaged list may have a docID twice */
      gpuir__advance_smaller(&a, &x, next_x, &b, &y, next_y, width);
    } while (padded ? a + width <= left.end && b + width <= right.end : --steps);
    left.next = a;
    right.next = b;
  }
  while (found > before + 1 && pass.docs[found - 1] == pass.docs[found - 2]) found--;
  m->left = gpuir__min32(gpuir__side_index(&left), pass.m);
  m->right = gpuir__min32(gpuir__side_index(&right), m->n);
  return found;
}

/* Merges by registers, with all that is constant in a step known to the compiler: four loops, one of which is run. */
GPUIR__INLINE uint32_t gpuir__merge_any(gpuir__match_registers match, uint32_t width, gpuir__merge *m,
                                        uint32_t found) {
  if (m->pass->from)
    return m->padded ? gpuir__merge_by(match, width, 1, 1, m, found)
                     : gpuir__merge_by(match, width, 1, 0, m, found);
  return m->padded ? gpuir__merge_by(match, width, 0, 1, m, found)
                   : gpuir__merge_by(match, width, 0, 0, m, found);
}

/* ---- registers of 8 ---- */

/* Writes the items of x whose bits are set in `mask` to `to`, one after the other; what follows up to to[7] is
 * garbage. */
GPUIR__AVX2 GPUIR__INLINE void gpuir__compress_avx2(uint32_t *to, uint32_t mask, __m256i x) {
  /* lanes[mask] has the numbers of the set bits, a byte each: lane t's stands before those of the lanes above it. */
#define GPUIR__LANE0(above) (above), (above) << 8
#define GPUIR__LANE1(above) GPUIR__LANE0(above), GPUIR__LANE0((above) << 8 | 1)
#define GPUIR__LANE2(above) GPUIR__LANE1(above), GPUIR__LANE1((above) << 8 | 2)
#define GPUIR__LANE3(above) GPUIR__LANE2(above), GPUIR__LANE2((above) << 8 | 3)
#define GPUIR__LANE4(above) GPUIR__LANE3(above), GPUIR__LANE3((above) << 8 | 4)
#define GPUIR__LANE5(above) GPUIR__LANE4(above), GPUIR__LANE4((above) << 8 | 5)
#define GPUIR__LANE6(above) GPUIR__LANE5(above), GPUIR__LANE5((above) << 8 | 6)
  static const uint64_t lanes[256] = {GPUIR__LANE6((uint64_t)0), GPUIR__LANE6((uint64_t)7)};
#undef GPUIR__LANE0
#undef GPUIR__LANE1
#undef GPUIR__LANE2
#undef GPUIR__LANE3
#undef GPUIR__LANE4
#undef GPUIR__LANE5
#undef GPUIR__LANE6
  const __m256i order = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)&lanes[mask]));
  _mm256_storeu_si256((__m256i *)(void *)to, _mm256_permutevar8x32_epi32(x, order));
}

/* Returns a bit for each of the 8 docIDs at a: set if it is among the 8 at b. Each half of b is rotated against both
 * halves of a. */
GPUIR__AVX2 GPUIR__INLINE uint32_t gpuir__among_avx2(const uint32_t *a, const uint32_t *b) {
  const __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)a);
  const __m256i lo = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)b));
  const __m256i hi = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(b + 4)));
  __m256i same = _mm256_cmpeq_epi32(x, lo), also = _mm256_cmpeq_epi32(x, hi);
#define GPUIR__ROUND(turn)                                                               \
  same = _mm256_or_si256(same, _mm256_cmpeq_epi32(x, _mm256_shuffle_epi32(lo, (turn)))); \
  also = _mm256_or_si256(also, _mm256_cmpeq_epi32(x, _mm256_shuffle_epi32(hi, (turn))));
  GPUIR__ROUND(0x39)
  GPUIR__ROUND(0x4e)
  GPUIR__ROUND(0x93)
#undef GPUIR__ROUND
  return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_or_si256(same, also)));
}

/* See gpuir__match_registers. */
GPUIR__AVX2 GPUIR__INLINE uint32_t gpuir__match_avx2(int indices, const gpuir__pass *p, const uint32_t *a,
                                                     uint32_t i, const uint32_t *b, uint32_t at,
                                                     uint32_t found) {
  const uint32_t hit = gpuir__among_avx2(a, b);
  gpuir__compress_avx2(p->docs + found, hit, _mm256_loadu_si256((const __m256i *)(const void *)a));
  if (indices && hit) { /* `other` may have the bit of a last item more than once, above all other bits */
    const __m256i iota = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    uint32_t other = gpuir__among_avx2(b, a);
    gpuir__compress_avx2(p->from + found, hit, _mm256_add_epi32(iota, _mm256_set1_epi32((int)i)));
    gpuir__compress_avx2(p->where + found, other, _mm256_add_epi32(iota, _mm256_set1_epi32((int)at)));
  }
  return found + (uint32_t)__builtin_popcount(hit);
}

/* Merges by registers of 8. A function of its own, since registers of 16 without VP2INTERSECT use it as well: 16 times
 * 16 comparisons would take longer. */
GPUIR__AVX2 __attribute__((noinline)) static uint32_t gpuir__merge_avx2(gpuir__merge *m, uint32_t found) {
  return gpuir__merge_any(gpuir__match_avx2, 8, m, found);
}

/* Loads the last docIDs of the eight registers' worths, each of `width`, that begin at docs, by loads that have each of
 * them in its lane already. */
#define GPUIR__TOP(t, width) \
  _mm256_loadu_si256((const __m256i *)(const void *)(docs + ((t) + 1) * (width)-1 - (t)))
#define GPUIR__TOPS(width)                                                                            \
  _mm256_blend_epi32(                                                                                 \
      _mm256_blend_epi32(_mm256_blend_epi32(GPUIR__TOP(0, width), GPUIR__TOP(1, width), 2),           \
                         _mm256_blend_epi32(GPUIR__TOP(2, width), GPUIR__TOP(3, width), 8), 0xc),     \
      _mm256_blend_epi32(_mm256_blend_epi32(GPUIR__TOP(4, width), GPUIR__TOP(5, width), 0x20),        \
                         _mm256_blend_epi32(GPUIR__TOP(6, width), GPUIR__TOP(7, width), 0x80), 0xc0), \
      0xf0)
GPUIR__AVX2 GPUIR__INLINE __m256i gpuir__tops_8(const uint32_t *docs) { return GPUIR__TOPS(8); }
GPUIR__AVX2 GPUIR__INLINE __m256i gpuir__tops_16(const uint32_t *docs) { return GPUIR__TOPS(16); }
#undef GPUIR__TOPS
#undef GPUIR__TOP

/* ---- candidates looked up in a decoded block ---- */

/* A decoded block of a list, and the pass whose candidates are looked up in it. */
typedef struct gpuir__spot {
  const gpuir__pass *pass;
  const uint32_t *docs; /* GPUIR__BLOCK docIDs, filled up with UINT32_MAX */
  uint32_t base;        /* index of docs[0] in the list */
  uint32_t last;        /* the block's last docID, as the directory has it */
} gpuir__spot;

/* Looks up the candidates from *next on that are at most the block's last docID; moves *next behind them and returns
 * the number of matches. A comparison with the last docIDs of the block's registers' worths tells in which of them a
 * candidate would be, another one whether it is there; no branch has anything to predict. */
typedef uint32_t (*gpuir__spot_kernel)(int indices, const gpuir__spot *s, uint32_t *next, uint32_t found);

GPUIR__AVX2 GPUIR__INLINE uint32_t gpuir__spot_avx2(int indices, const gpuir__spot *s, uint32_t *next,
                                                    uint32_t found) {
  const gpuir__pass pass = *s->pass;
  const uint32_t *docs = s->docs;
  const uint32_t base = s->base, last = s->last;
  const __m256i lo = gpuir__tops_8(docs), hi = gpuir__tops_8(docs + 64);
  uint32_t i = *next;
  for (; i < pass.m; i++) {
    const uint32_t x = pass.candidates[i];
    const __m256i v = _mm256_set1_epi32((int)x);
    uint32_t pos, hit;
    __m256i ends;
    if (x > last) break;
    ends = _mm256_packs_epi32(_mm256_cmpeq_epi32(_mm256_max_epu32(lo, v), lo), /* not below x */
                              _mm256_cmpeq_epi32(_mm256_max_epu32(hi, v), hi));
    pos = 8 * (16 - (uint32_t)__builtin_popcount((uint32_t)_mm256_movemask_epi8(ends)) / 2);
    hit = (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(
        _mm256_cmpeq_epi32(_mm256_loadu_si256((const __m256i *)(const void *)(docs + pos)), v)));
    found = gpuir__pass_put(&pass, indices, found, i, x, base + pos + gpuir__ctz32(hit | 0x100u), hit != 0);
  }
  *next = i;
  return found;
}

/* Returns 1 if x is in a decoded block. For one candidate alone that is less work than a look-up. */
GPUIR__AVX2 GPUIR__INLINE int gpuir__holds_avx2(const uint32_t *docs, uint32_t x) {
  const __m256i v = _mm256_set1_epi32((int)x);
  __m256i same[4], any;
  unsigned t;
  for (t = 0; t < 4; t++) same[t] = _mm256_setzero_si256();
  for (t = 0; t < GPUIR__BLOCK / 8; t++)
    same[t % 4] = _mm256_or_si256(
        same[t % 4],
        _mm256_cmpeq_epi32(_mm256_loadu_si256((const __m256i *)(const void *)(docs + 8 * t)), v));
  any = _mm256_or_si256(_mm256_or_si256(same[0], same[1]), _mm256_or_si256(same[2], same[3]));
  return !_mm256_testz_si256(any, any);
}

/* The steps of gpuir__lookup_by, which differ from level to level. */
typedef struct gpuir__lookup_steps {
  uint32_t (*find_block)(const gpuir__list *l, uint32_t from, uint32_t x); /* see gpuir__list_find_block */
  gpuir__merge_kernel merge;
  uint32_t (*behind)(const gpuir__pass *p, uint32_t i,
                     uint32_t last); /* the first candidate >= i above `last` */
  gpuir__spot_kernel spot;
  int (*holds)(const uint32_t *docs, uint32_t x); /* see gpuir__holds_avx2 */
} gpuir__lookup_steps;

/* Looks for candidate *next, which is alone in its block, without decoding the block; returns 0 if the block has to be
 * decoded. */
GPUIR__INLINE int gpuir__lookup_undecoded(int indices, const gpuir__pass *p, gpuir__cursor *c, uint32_t block,
                                          uint32_t *next, uint32_t *found) {
  const uint32_t x = p->candidates[*next], at = gpuir__cursor_find(c, block, x);
  if (at == GPUIR__UNTOLD) return 0;
  *found = gpuir__pass_put(p, indices, *found, *next, x, block * GPUIR__BLOCK + at, at != GPUIR__ABSENT);
  ++*next;
  return 1;
}

/* Looks up the candidates from *next on that are in the cursor's decoded block, by what suits their number; returns the
 * number of matches. */
GPUIR__INLINE uint32_t gpuir__lookup_block(const gpuir__lookup_steps *steps, int indices, gpuir__cursor *c,
                                           const gpuir__spot *s, uint32_t *next, uint32_t found) {
  const gpuir__pass *p = s->pass;
  if (p->m - *next >= GPUIR__MANY && p->candidates[*next + GPUIR__MANY - 1] <= s->last) {
    gpuir__merge m;
    m.pass = p;
    m.docs = c->docs;
    m.n = c->n;
    m.base = s->base;
    m.left = *next;
    m.right = 0;
    m.padded = 1;
    found = steps->merge(&m, found);
    *next = steps->behind(p, m.left, s->last); /* a register of candidates may be left that is done in part */
  } else if (!indices && p->candidates[*next + 1] > s->last) {
    const uint32_t x = p->candidates[*next];
    found = gpuir__pass_put(p, 0, found, *next, x, 0, steps->holds(c->docs, x));
    ++*next;
  } else {
    found = steps->spot(indices, s, next, found);
  }
  return found;
}

/* Looks up candidates in a list, block by block. */
GPUIR__INLINE uint32_t gpuir__lookup_by(const gpuir__lookup_steps *steps, int indices, gpuir__operand *o,
                                        const gpuir__pass *p) {
  gpuir__cursor *c = o->cursor;
  const gpuir__list *l = &c->list;
  const int sparse = o->expected && o->n / GPUIR__SPARSE >= o->expected;
  uint32_t block = o->at / GPUIR__BLOCK, i = 0, found = 0;
  gpuir__spot s;
  s.pass = p;
  s.docs = c->docs;
  while (i < p->m) {
    const uint32_t before = i;
    block = steps->find_block(l, block, p->candidates[i]);
    if (block >= l->nblocks) break;
    s.last = l->last ? l->last[block] : UINT32_MAX - 1;
    if (sparse && p->candidates[i + 1] > s.last && gpuir__lookup_undecoded(indices, p, c, block, &i, &found))
      continue;
    gpuir__cursor_load(c, block);
    s.base = block * GPUIR__BLOCK;
    found = gpuir__lookup_block(steps, indices, c, &s, &i, found);
    if (i == before) i++; /* only in a damaged file */
    found = gpuir__min32(found, i);
  }
  o->at = gpuir__min32(block, l->nblocks) * GPUIR__BLOCK;
  return found;
}

static uint32_t gpuir__behind_avx2(const gpuir__pass *p, uint32_t i, uint32_t last) {
  while (i < p->m && p->candidates[i] <= last) i++;
  return i;
}

static const gpuir__lookup_steps gpuir__steps_avx2 = {
    gpuir__list_find_block, gpuir__merge_avx2, gpuir__behind_avx2, gpuir__spot_avx2, gpuir__holds_avx2};

GPUIR__AVX2 static uint32_t gpuir__lookup_avx2(gpuir__operand *o, const gpuir__pass *p) {
  return p->from ? gpuir__lookup_by(&gpuir__steps_avx2, 1, o, p)
                 : gpuir__lookup_by(&gpuir__steps_avx2, 0, o, p);
}

/* ---- registers of 16 ---- */

#if (defined(__clang__) && __clang_major__ >= 9) || (!defined(__clang__) && __GNUC__ >= 10)
#define GPUIR__VP2INTERSECT 1 /* the assembler knows the instruction */
#else
#define GPUIR__VP2INTERSECT 0
#endif

/* Returns a bit for each of the 16 docIDs at a, set if it is among the 16 at b, and in *other the same of those at b:
 * by VP2INTERSECT, which few processors have. Written so that neither the compiler nor the rest of the file has to be
 * told of the instruction. */
GPUIR__AVX512 GPUIR__INLINE uint32_t gpuir__among_avx512(const uint32_t *a, const uint32_t *b,
                                                         uint32_t *other) {
  uint32_t hit = 0, back = 0;
#if GPUIR__VP2INTERSECT
  __asm__("vp2intersectd %3, %2, %%k2\n\tkmovw %%k2, %0\n\tkmovw %%k3, %1"
          : "=r"(hit), "=r"(back)
          : "v"(_mm512_loadu_si512(a)), "v"(_mm512_loadu_si512(b))
          : "k2", "k3");
#else
  (void)a; /* never called */
  (void)b;
#endif
  *other = back;
  return hit;
}

/* Writes the items of x whose bits are set in `mask` to `to`, one after the other; what follows up to to[15] is
 * zero. */
GPUIR__AVX512 GPUIR__INLINE void gpuir__compress_avx512(uint32_t *to, uint32_t mask, __m512i x) {
  _mm512_storeu_si512(to, _mm512_maskz_compress_epi32((__mmask16)mask, x));
}

/* See gpuir__match_registers. */
GPUIR__AVX512 GPUIR__INLINE uint32_t gpuir__match_avx512(int indices, const gpuir__pass *p, const uint32_t *a,
                                                         uint32_t i, const uint32_t *b, uint32_t at,
                                                         uint32_t found) {
  uint32_t other, hit = gpuir__among_avx512(a, b, &other);
  gpuir__compress_avx512(p->docs + found, hit, _mm512_loadu_si512(a));
  if (indices) {
    const __m512i iota = gpuir__avx512_iota();
    gpuir__compress_avx512(p->from + found, hit, _mm512_add_epi32(iota, _mm512_set1_epi32((int)i)));
    gpuir__compress_avx512(p->where + found, other, _mm512_add_epi32(iota, _mm512_set1_epi32((int)at)));
  }
  return found + (uint32_t)__builtin_popcount(hit);
}

/* Merges by registers of 16. */
GPUIR__AVX512 __attribute__((noinline)) static uint32_t gpuir__merge_avx512(gpuir__merge *m, uint32_t found) {
  return gpuir__merge_any(gpuir__match_avx512, 16, m, found);
}

/* Finds the first block >= from whose last docID is >= x, or nblocks, by counting the blocks among the next 16 that end
 * below x. */
GPUIR__AVX512 GPUIR__INLINE uint32_t gpuir__find_block_avx512(const gpuir__list *l, uint32_t from,
                                                              uint32_t x) {
  uint32_t have, below;
  if (!l->last || from >= l->nblocks) return from;
  have = gpuir__min32(l->nblocks - from, 16);
  below = gpuir__mask_bits(_mm512_mask_cmplt_epu32_mask(
      (__mmask16)((1u << have) - 1), _mm512_maskz_loadu_epi32((__mmask16)((1u << have) - 1), l->last + from),
      _mm512_set1_epi32((int)x)));
  below = (uint32_t)__builtin_popcount(below);
  return below < 16 ? from + below : gpuir__list_find_block(l, from + 15, x);
}

/* See gpuir__spot_kernel. */
GPUIR__AVX512 GPUIR__INLINE uint32_t gpuir__spot_avx512(int indices, const gpuir__spot *s, uint32_t *next,
                                                        uint32_t found) {
  const gpuir__pass pass = *s->pass;
  const uint32_t *docs = s->docs;
  const uint32_t base = s->base, last = s->last;
  const __m256i tops = gpuir__tops_16(docs);
  uint32_t i = *next;
  for (; i < pass.m; i++) {
    uint32_t x = pass.candidates[i], pos, hit;
    if (x > last) break;
    pos = 16 * (uint32_t)__builtin_popcount(
                   gpuir__mask_bits(_mm256_cmplt_epu32_mask(tops, _mm256_set1_epi32((int)x))));
    hit =
        gpuir__mask_bits(_mm512_cmpeq_epi32_mask(_mm512_loadu_si512(docs + pos), _mm512_set1_epi32((int)x)));
    found = gpuir__pass_put(&pass, indices, found, i, x, base + pos + gpuir__ctz32(hit | 0x10000u), hit != 0);
  }
  *next = i;
  return found;
}

GPUIR__AVX512 GPUIR__INLINE uint32_t gpuir__behind_avx512(const gpuir__pass *p, uint32_t i, uint32_t last) {
  if (i >= p->m) return i;
  return i + (uint32_t)__builtin_popcount(gpuir__mask_bits(_mm512_cmple_epu32_mask(
                 _mm512_loadu_si512(p->candidates + i), _mm512_set1_epi32((int)last))));
}

static const gpuir__lookup_steps gpuir__steps_avx512 = {
    gpuir__find_block_avx512, gpuir__merge_avx2, gpuir__behind_avx512, gpuir__spot_avx512, gpuir__holds_avx2};
static const gpuir__lookup_steps gpuir__steps_vp2intersect = {gpuir__find_block_avx512, gpuir__merge_avx512,
                                                              gpuir__behind_avx512, gpuir__spot_avx512,
                                                              gpuir__holds_avx2};

GPUIR__AVX512 static uint32_t gpuir__lookup_avx512(gpuir__operand *o, const gpuir__pass *p) {
  return p->from ? gpuir__lookup_by(&gpuir__steps_avx512, 1, o, p)
                 : gpuir__lookup_by(&gpuir__steps_avx512, 0, o, p);
}

GPUIR__AVX512 static uint32_t gpuir__lookup_vp2intersect(gpuir__operand *o, const gpuir__pass *p) {
  return p->from ? gpuir__lookup_by(&gpuir__steps_vp2intersect, 1, o, p)
                 : gpuir__lookup_by(&gpuir__steps_vp2intersect, 0, o, p);
}

#endif

/* ---- without vectors; the table ---- */

#define GPUIR__NEAR \
  8u /* from so many candidates in a block on, the next docID is searched for step by step */

/* Looks up candidates in a list, block by block, without vectors. */
GPUIR__INLINE uint32_t gpuir__lookup_plain(int indices, gpuir__operand *o, const gpuir__pass *p) {
  gpuir__cursor *c = o->cursor;
  const gpuir__list *l = &c->list;
  uint32_t block = o->at / GPUIR__BLOCK, i = 0, found = 0;
  while (i < p->m) {
    uint32_t last, before = i, pos = 0;
    int near;
    block = gpuir__list_find_block(l, block, p->candidates[i]);
    if (block >= l->nblocks) break;
    gpuir__cursor_load(c, block);
    last = l->last ? l->last[block] : UINT32_MAX - 1;
    near = p->m - i >= GPUIR__NEAR && p->candidates[i + GPUIR__NEAR - 1] <= last;
    for (; i < p->m && p->candidates[i] <= last; i++) {
      uint32_t x = p->candidates[i];
      if (near)
        while (c->docs[pos] < x) pos++; /* ends at the UINT32_MAX behind the block */
      else
        pos = gpuir__lower_bound(c->docs, pos, c->n, x);
      found = gpuir__pass_put(p, indices, found, i, x, block * GPUIR__BLOCK + pos, c->docs[pos] == x);
    }
    if (i == before) i++; /* only in a damaged file */
  }
  o->at = gpuir__min32(block, l->nblocks) * GPUIR__BLOCK;
  return found;
}

static uint32_t gpuir__lookup_scalar(gpuir__operand *o, const gpuir__pass *p) {
  return p->from ? gpuir__lookup_plain(1, o, p) : gpuir__lookup_plain(0, o, p);
}

/* The kernels of each SIMD level, by GPUIR__LOOKUP_. */
static const gpuir__lookup_kernels gpuir__lookup_of_level[4] = {
    {gpuir__lookup_scalar, GPUIR__LOOKUP_SCALAR},
#if GPUIR__X86
    {gpuir__lookup_avx2, GPUIR__LOOKUP_AVX2},
    {gpuir__lookup_avx512, GPUIR__LOOKUP_AVX512},
    {gpuir__lookup_vp2intersect, GPUIR__LOOKUP_VP2INTERSECT},
#endif
};

/* Chooses the kernels for a resolved GPUIR_SIMD_ level on this processor. */
static const gpuir__lookup_kernels *gpuir__lookup_choose(int simd) {
#if GPUIR__X86 && GPUIR__VP2INTERSECT
  if (simd == GPUIR_SIMD_AVX512 && __builtin_cpu_supports("avx512vp2intersect"))
    return &gpuir__lookup_of_level[GPUIR__LOOKUP_VP2INTERSECT];
#endif
  return &gpuir__lookup_of_level[simd - GPUIR_SIMD_SCALAR];
}

/* Makes an operand of a list under a cursor, or, with NULL, of an array whose docs and n the caller fills in. */
static void gpuir__operand_init(gpuir__operand *o, gpuir__cursor *c, const gpuir__lookup_kernels *kernels) {
  memset(o, 0, sizeof *o);
  o->cursor = c;
  o->n = c ? c->list.df : 0;
  o->kernels = kernels;
}

/* Looks up the candidates of a pass in the operand's list; returns the number of candidates that the list holds. */
static inline uint32_t gpuir__lookup(gpuir__operand *o, const gpuir__pass *p) {
  return o->kernels->list(o, p);
}

#ifndef GPUIR_NO_LAB

/* ============================================================================
 * [19-methods]  lab: intersection methods of the literature, and the table of all methods
 *
 * A method filters candidates through one operand, an array or a compressed list; a searcher that names one uses
 * it for AND and counting instead of [18-lookup]. Some methods prepare something of an operand first: a table of
 * buckets, a regression line, the levels of a skip list. tools/lab/isect.h runs one prepared intersection.
 *
 * Uses      [09-postings], [18-lookup]; lr the lines of [07-lab-lines], algorithm1 its codec lrc ([08-codings]).
 * Start at  gpuir__methods (the table, at the end), gpuir__method, gpuir__operand_prepare.
 * Tests     tests/unit/19_methods.c
 * ==========================================================================*/

#define GPUIR__SKIP_LOG 3u /* a skip list's level has each 8th docID of the one below */
#define GPUIR__SKIP_LEVELS 11u

/* A regression line turned round, which tells where in a list to look for x (Ao et al. 2011, section 4.3). */
typedef struct gpuir__lr {
  uint32_t inverse;    /* indices a docID, times 2^32 */
  int64_t left, right; /* the safe range is [q - left, q + right], where q = x * inverse >> 32 */
} gpuir__lr;

/* What a method made of one operand before the search. */
typedef struct gpuir__prepared {
  uint64_t param;                            /* the method's */
  int (*stopped)(void *user);                /* not 0: preparing ends with this status; NULL: never */
  void *user;                                /* of stopped */
  gpuir__buf aux;                            /* owns the arrays below */
  unsigned shift;                            /* right shift of a docID to its bucket or segment */
  uint32_t buckets;                          /* or segments */
  const uint32_t *first;                     /* [buckets + 1] index of a bucket's first docID */
  const gpuir__lr *lines;                    /* one line, or one a segment */
  const uint32_t *level[GPUIR__SKIP_LEVELS]; /* of a skip list; [0] is the array or the directory itself */
  uint32_t level_n[GPUIR__SKIP_LEVELS];      /* items of each level */
  const uint32_t *heads;                     /* [block] last docID */
  gpuir__buf copy;                           /* owns the bytes of `coded`, if they are not the list's own */
  gpuir__stream coded;                       /* the docIDs in a codec with get() */
} gpuir__prepared;

/* What of a list a method prepares from. */
enum { GPUIR__NEEDS_NOTHING, GPUIR__NEEDS_DIRECTORY, GPUIR__NEEDS_DOCIDS };

typedef struct gpuir__method {
  const char *name, *title, *paper; /* the paper and its section; "": none */
  uint64_t param;
  int needs; /* GPUIR__NEEDS_ of a list: with NOTHING, lists are not prepared, only arrays */
  /* Prepares an operand whose docIDs are docs[0..n). NULL: nothing to prepare. 0, NOMEM, LIMIT, or what stopped()
   * says. */
  int (*prepare)(const gpuir_allocator *a, gpuir__operand *o, const uint32_t *docs);
  /* Both return the number of candidates that the operand holds, and may be called again with greater candidates. */
  uint32_t (*array)(gpuir__operand *o, const gpuir__pass *p);
  uint32_t (*list)(gpuir__operand *o, const gpuir__pass *p);
  /* Instead of them: all operands at once, the first one an array. where[i], unless where is NULL, gets the
   * indices in operand i. */
  uint32_t (*all)(gpuir__operand *const *o, unsigned k, uint32_t *docs, uint32_t *const *where);
} gpuir__method;

/* Asks after each 16,384 steps of preparing whether to stop: 0, or the status to end with. */
static inline int gpuir__prepare_stopped(const gpuir__prepared *made, uint32_t step) {
  return step % 16384 == 16383 && made->stopped ? made->stopped(made->user) : GPUIR_OK;
}

/* ---- arithmetic that kernels share ---- */

/* Predicts the index of x, up to a constant. `left` and `right` are the extremes of (prediction - index) over the
 * list by this very function, so that the index of any docID of the list lies in its safe range whatever was rounded
 * on the way: no error of the line needs to be bounded. The line's start is part of the two. */
GPUIR_HD static inline int64_t gpuir__lr_predict(const gpuir__lr *r, uint32_t x) {
  return (int64_t)((uint64_t)x * r->inverse >> 32);
}

/* Computes the safe range of x as [*lo, *hi) within [0, n), which may be empty: a list that holds x holds it there. */
GPUIR_HD static inline void gpuir__lr_range(const gpuir__lr *r, uint32_t x, uint32_t n, uint32_t *lo,
                                            uint32_t *hi) {
  int64_t q = gpuir__lr_predict(r, x), from = q - r->left, to = q + r->right + 1;
  *lo = from < 0 ? 0 : from > (int64_t)n ? n : (uint32_t)from;
  *hi = to < (int64_t)*lo ? *lo : to > (int64_t)n ? n : (uint32_t)to;
}

/* Returns into how many segments Parallel Merge Find with `levels` of recursion divides m elements at each level: the
 * (levels + 1)-th root, so that the last segments have as many elements as there are segments at a level (Ding et al.
 * 2009, section 7.2, which gives no number). */
GPUIR_HD static inline uint32_t gpuir__pmf_fan(uint32_t m, unsigned levels) {
  uint32_t fan = 1;
  for (;;) {
    uint64_t power = 1;
    unsigned i;
    for (i = 0; i <= levels && power < m; i++) power *= fan;
    if (power >= m) return fan;
    fan++;
  }
}

/* Returns the index of the first element of segment s, when m elements are divided into `fan` segments. */
GPUIR_HD static inline uint32_t gpuir__pmf_splitter(uint32_t m, uint32_t fan, uint32_t s) {
  return (uint32_t)((uint64_t)m * s / fan);
}

/* Finds where diagonal d of the grid a x b meets the merge path: *i + *j = d, and all of a[0..i) and b[0..j) come
 * before the rest (Griffin, section 3.1.2). Equal docIDs are not separated: b's then counts as before, and *i + *j =
 * d + 1. */
GPUIR_HD static inline void gpuir__mergepath_split(const uint32_t *a, uint32_t m, const uint32_t *b,
                                                   uint32_t n, uint64_t d, uint32_t *i, uint32_t *j) {
  uint32_t lo = d > n ? (uint32_t)(d - n) : 0, hi = d < m ? (uint32_t)d : m;
  while (lo < hi) {
    uint32_t mid = lo + (hi - lo) / 2;
    if (a[mid] <= b[d - 1 - mid])
      lo = mid + 1;
    else
      hi = mid;
  }
  *i = lo;
  *j = (uint32_t)(d - lo);
  if (*i && *j < n && a[*i - 1] == b[*j]) ++*j;
}

/* ---- element by element: gallop, binary, interpolation, skip, svs, lr, hs ---- */

enum {
  GPUIR__FIND_BINARY,
  GPUIR__FIND_GALLOP,
  GPUIR__FIND_INTERPOLATION,
  GPUIR__FIND_SKIP,
  GPUIR__FIND_SVS,
  GPUIR__FIND_LR,
  GPUIR__FIND_LOCAL,
  GPUIR__FIND_HS
};

/* Finds the lower bound of x in a[lo, hi) by doubling steps from lo (Bentley & Yao 1976). */
static inline uint32_t gpuir__gallop(const uint32_t *a, uint32_t lo, uint32_t hi, uint32_t x) {
  uint32_t step = 1;
  if (lo >= hi || a[lo] >= x) return lo;
  while (hi - lo > step && a[lo + step] < x) { /* a[lo] < x */
    lo += step;
    step *= 2;
  }
  return gpuir__lower_bound(a, lo + 1, hi - lo > step ? lo + step : hi, x);
}

/* Finds the lower bound of x in a[lo, hi) by interpolation (Perl, Itai & Avni 1978), which Ao et al. 2011, section 4.3,
 * call IS. After 32 steps, more than a list takes that suits it, the rest is searched by halves, so that no list takes
 * longer than O(log n). */
GPUIR_HD static inline uint32_t gpuir__interpolate(const uint32_t *a, uint32_t lo, uint32_t hi, uint32_t x) {
  unsigned steps;
  for (steps = 0; steps < 32 && lo < hi; steps++) {
    uint32_t least = a[lo], most = a[hi - 1], mid;
    if (x <= least) return lo;
    if (x > most) return hi;
    if (most <= least) break; /* only in a damaged file */
    mid = lo + (uint32_t)((uint64_t)(x - least) * (hi - 1 - lo) / (most - least));
    if (a[mid] == x) return mid;
    if (a[mid] < x)
      lo = mid + 1;
    else
      hi = mid;
  }
  return gpuir__lower_bound(a, lo, hi, x);
}

/* Finds the lower bound of x at or behind index `at`, up the levels of a skip list and down again (Pugh 1990, with
 * levels at even distances; the CPU baseline of Ao et al. 2011). */
static inline uint32_t gpuir__skip(const gpuir__prepared *made, uint32_t at, uint32_t x) {
  unsigned up = 0;
  while (up + 1 < GPUIR__SKIP_LEVELS && at >> GPUIR__SKIP_LOG < made->level_n[up + 1] &&
         made->level[up + 1][at >> GPUIR__SKIP_LOG] < x) {
    at = (at >> GPUIR__SKIP_LOG) + 1;
    up++;
  }
  for (;;) { /* all docIDs before `at` on this level are below x */
    while (at < made->level_n[up] && made->level[up][at] < x) at++;
    if (!up) return at;
    at <<= GPUIR__SKIP_LOG;
    up--;
  }
}

/* Finds the lower bound of x in a[lo, hi), skipping groups of 128 by their last docID: SvS with blocks (Ding et al.
 * 2009, section 8.1). */
static inline uint32_t gpuir__svs(const uint32_t *a, uint32_t lo, uint32_t hi, uint32_t x) {
  uint32_t end, step = GPUIR__BLOCK;
  while (hi - lo > step && a[lo + step - 1] < x) {
    lo += step;
    step *= 2;
  }
  end = hi - lo > step ? lo + step : hi; /* the answer is in [lo, end] */
  while (end - lo > GPUIR__BLOCK) {
    uint32_t half = (end - lo) / GPUIR__BLOCK / 2 * GPUIR__BLOCK;
    if (!half) half = GPUIR__BLOCK;
    if (a[lo + half - 1] < x)
      lo += half;
    else
      end = lo + half;
  }
  return gpuir__lower_bound(a, lo, end, x);
}

/* Finds the lower bound of x in a[lo, hi), by the search that the method makes within a range. */
GPUIR__INLINE uint32_t gpuir__find(int how, const uint32_t *a, uint32_t lo, uint32_t hi, uint32_t x) {
  if (how == GPUIR__FIND_GALLOP) return gpuir__gallop(a, lo, hi, x);
  if (how == GPUIR__FIND_INTERPOLATION) return gpuir__interpolate(a, lo, hi, x);
  return gpuir__lower_bound(a, lo, hi, x);
}

/* Computes where in the operand x can be: indices [*lo, *hi). */
GPUIR__INLINE void gpuir__contract(int how, const gpuir__operand *o, uint32_t x, uint32_t *lo, uint32_t *hi) {
  *lo = 0;
  *hi = o->n;
  if (how == GPUIR__FIND_GALLOP || how == GPUIR__FIND_SKIP || how == GPUIR__FIND_SVS) {
    *lo = o->at;
  } else if (how == GPUIR__FIND_LR) {
    gpuir__lr_range(o->prepared->lines, x, o->n, lo, hi);
  } else if (how == GPUIR__FIND_LOCAL || how == GPUIR__FIND_HS) {
    const gpuir__prepared *made = o->prepared;
    uint32_t h = gpuir__hs_bucket(x, made->shift);
    if (h >= made->buckets) {
      *hi = 0;
    } else if (how == GPUIR__FIND_HS) {
      *lo = made->first[h];
      *hi = made->first[h + 1];
    } else {
      gpuir__lr_range(&made->lines[h], x, o->n, lo, hi);
    }
  }
}

/* Looks for the candidates in an array, one by one. */
GPUIR__INLINE uint32_t gpuir__each_array(int how, int indices, gpuir__operand *o, const gpuir__pass *p) {
  uint32_t i, found = 0, at = o->at;
  const uint32_t *docs = o->docs, n = o->n;
  for (i = 0; i < p->m; i++) {
    uint32_t x = p->candidates[i], lo, hi, pos;
    gpuir__contract(how, o, x, &lo, &hi);
    if (how == GPUIR__FIND_GALLOP || how == GPUIR__FIND_SKIP || how == GPUIR__FIND_SVS) lo = at;
    if (how == GPUIR__FIND_SKIP)
      pos = gpuir__skip(o->prepared, lo, x);
    else if (how == GPUIR__FIND_SVS)
      pos = gpuir__svs(docs, lo, hi, x);
    else
      pos = gpuir__find(how, docs, lo, hi, x);
    at = pos;
    if (pos >= n) {
      if (how == GPUIR__FIND_LR || how == GPUIR__FIND_LOCAL || how == GPUIR__FIND_HS) continue;
      break; /* all that follow are greater, too */
    }
    found = gpuir__pass_put(p, indices, found, i, x, pos, docs[pos] == x);
  }
  o->at = at;
  return found;
}

/* Finds the block of a list that may hold x, among those that have the indices [lo, hi); nblocks if there is none. */
GPUIR__INLINE uint32_t gpuir__find_list_block(int how, const gpuir__operand *o, uint32_t lo, uint32_t hi,
                                              uint32_t x) {
  const gpuir__list *l = &o->cursor->list;
  uint32_t from = lo / GPUIR__BLOCK, to = hi ? (hi - 1) / GPUIR__BLOCK + 1 : 0, block;
  if (lo >= hi) return l->nblocks;
  if (!l->last) return 0;
  if (how == GPUIR__FIND_SKIP)
    block = gpuir__skip(o->prepared, from, x);
  else if (how == GPUIR__FIND_SVS)
    block = gpuir__list_find_block(l, from, x);
  else
    block = gpuir__find(how, l->last, from, to, x);
  return block < to ? block : l->nblocks;
}

/* Looks for the candidates in a list, one by one. */
GPUIR__INLINE uint32_t gpuir__each_list(int how, int indices, gpuir__operand *o, const gpuir__pass *p) {
  gpuir__cursor *c = o->cursor;
  uint32_t i, found = 0;
  for (i = 0; i < p->m; i++) {
    uint32_t x = p->candidates[i], lo, hi, pos, from, block;
    gpuir__contract(how, o, x, &lo, &hi);
    block = gpuir__find_list_block(how, o, lo, hi, x);
    if (block >= c->list.nblocks) {
      if (how == GPUIR__FIND_LR || how == GPUIR__FIND_LOCAL || how == GPUIR__FIND_HS) continue;
      o->at = o->n;
      break;
    }
    gpuir__cursor_load(c, block);
    from = block * GPUIR__BLOCK;
    lo = lo > from ? lo - from : 0;
    hi = gpuir__min32(hi - from, c->n);
    pos = gpuir__find(how, c->docs, lo, hi, x);
    o->at = from + pos;
    found = gpuir__pass_put(p, indices, found, i, x, from + pos, pos < c->n && c->docs[pos] == x);
  }
  return found;
}

#define GPUIR__EACH(name, how)                                                          \
  static uint32_t gpuir__##name##_array(gpuir__operand *o, const gpuir__pass *p) {      \
    return p->from ? gpuir__each_array(how, 1, o, p) : gpuir__each_array(how, 0, o, p); \
  }                                                                                     \
  static uint32_t gpuir__##name##_list(gpuir__operand *o, const gpuir__pass *p) {       \
    return p->from ? gpuir__each_list(how, 1, o, p) : gpuir__each_list(how, 0, o, p);   \
  }
GPUIR__EACH(gallop, GPUIR__FIND_GALLOP)
GPUIR__EACH(binary, GPUIR__FIND_BINARY)
GPUIR__EACH(interpolation, GPUIR__FIND_INTERPOLATION)
GPUIR__EACH(skip, GPUIR__FIND_SKIP)
GPUIR__EACH(svs, GPUIR__FIND_SVS)
GPUIR__EACH(lr, GPUIR__FIND_LR)
GPUIR__EACH(local, GPUIR__FIND_LOCAL)
GPUIR__EACH(hs, GPUIR__FIND_HS)
#undef GPUIR__EACH

/* Makes room for n items of 4 bytes behind what `aux` has, at a multiple of 8 bytes; the caller fills all of it. */
static uint32_t *gpuir__aux_room(const gpuir_allocator *a, gpuir__operand *o, uint64_t n) {
  uint8_t *to;
  n = (n + 2) & ~(uint64_t)1; /* never 0 */
  if (n > SIZE_MAX / 8 || (to = gpuir__buf_room(a, &o->prepared->aux, (size_t)n * 4)) == NULL) return NULL;
  o->prepared->aux.len += (size_t)n * 4;
  return (uint32_t *)(void *)to;
}

/* Builds the levels of a skip list over the docIDs of an array, or over a list's directory. */
static int gpuir__skip_prepare(const gpuir_allocator *a, gpuir__operand *o, const uint32_t *docs) {
  uint32_t n = o->cursor ? (o->cursor->list.last ? o->cursor->list.nblocks : 0) : o->n, i, total = 0, *to;
  gpuir__prepared *made = o->prepared;
  unsigned up;
  int status = GPUIR_OK;
  made->level[0] = o->cursor ? o->cursor->list.last : docs;
  made->level_n[0] = n;
  for (up = 1; up < GPUIR__SKIP_LEVELS; up++)
    total += made->level_n[up] = made->level_n[up - 1] >> GPUIR__SKIP_LOG;
  to = gpuir__aux_room(a, o, total);
  if (!to) return GPUIR_E_NOMEM;
  for (up = 1; up < GPUIR__SKIP_LEVELS && !status; up++) {
    const uint32_t *below = made->level[up - 1];
    made->level[up] = to;
    for (i = 0; i < made->level_n[up] && !(status = gpuir__prepare_stopped(made, i)); i++)
      *to++ = below[((i + 1) << GPUIR__SKIP_LOG) - 1];
  }
  return status;
}

/* Fits a line through docs[0..n) and turns it round; docs[0] has index `first`. */
static int gpuir__lr_make(const gpuir__prepared *made, const uint32_t *docs, uint32_t n, uint32_t first,
                          gpuir__lr *r) {
  gpuir__line l = gpuir__line_fit(docs, n);
  uint32_t i;
  uint64_t inverse = l.slope ? ((uint64_t)1 << (32 + l.shift)) / l.slope : 0;
  int status = GPUIR_OK;
  r->inverse = inverse < UINT32_MAX ? (uint32_t)inverse : UINT32_MAX;
  r->left = n ? INT64_MIN : 0;
  r->right = n ? INT64_MIN : -1; /* of no docIDs: nothing */
  for (i = 0; i < n && !(status = gpuir__prepare_stopped(made, first + i)); i++) {
    int64_t d = gpuir__lr_predict(r, docs[i]) - ((int64_t)first + i);
    if (d > r->left) r->left = d;
    if (-d > r->right) r->right = -d;
  }
  return status;
}

/* Prepares one line with its safe range for the whole operand. */
static int gpuir__lr_prepare(const gpuir_allocator *a, gpuir__operand *o, const uint32_t *docs) {
  gpuir__lr *line = (gpuir__lr *)(void *)gpuir__aux_room(a, o, sizeof *line / 4);
  if (!line) return GPUIR_E_NOMEM;
  o->prepared->lines = line;
  return gpuir__lr_make(o->prepared, docs, o->n, 0, line);
}

/* Tabulates the index of the first docID of each bucket, as the codec hslrc does. */
static int gpuir__hs_table(const gpuir_allocator *a, gpuir__operand *o, const uint32_t *docs) {
  gpuir__prepared *made = o->prepared;
  uint32_t last = o->n ? docs[o->n - 1] : 0, h, i = 0, *first;
  int status = GPUIR_OK;
  made->buckets = o->n ? gpuir__hs_bucket(last, made->shift) + 1 : 0;
  first = gpuir__aux_room(a, o, (uint64_t)made->buckets + 1);
  if (!first) return GPUIR_E_NOMEM;
  for (h = 0; h <= made->buckets && !(status = gpuir__prepare_stopped(made, h)); h++) {
    for (; i < o->n && gpuir__hs_bucket(docs[i], made->shift) < h; i++)
      if ((status = gpuir__prepare_stopped(made, i)) != 0) return status;
    first[h] = h < made->buckets ? i : o->n;
  }
  made->first = first;
  return status;
}

/* Prepares hash buckets of `param` docIDs on average. */
static int gpuir__hs_prepare(const gpuir_allocator *a, gpuir__operand *o, const uint32_t *docs) {
  o->prepared->shift = gpuir__hs_shift(o->n ? docs[o->n - 1] : 0, o->n, (uint32_t)o->prepared->param);
  return gpuir__hs_table(a, o, docs);
}

#define GPUIR__LOCAL_MEAN 256u /* docIDs a segment of the local regression, on average */

/* Prepares a line with a safe range for each segment of docIDs; the segments are cut as hash buckets are. */
static int gpuir__local_prepare(const gpuir_allocator *a, gpuir__operand *o, const uint32_t *docs) {
  gpuir__prepared *made = o->prepared;
  uint32_t last = o->n ? docs[o->n - 1] : 0, h, i = 0;
  gpuir__lr *line;
  int status = GPUIR_OK;
  made->shift = gpuir__hs_shift(last, o->n, GPUIR__LOCAL_MEAN);
  made->buckets = o->n ? gpuir__hs_bucket(last, made->shift) + 1 : 0;
  line = (gpuir__lr *)(void *)gpuir__aux_room(a, o, (uint64_t)made->buckets * (sizeof *line / 4));
  if (!line) return GPUIR_E_NOMEM;
  made->lines = line;
  for (h = 0; h < made->buckets && !status; h++) {
    uint32_t from = i;
    while (i < o->n && gpuir__hs_bucket(docs[i], made->shift) == h) i++;
    status = gpuir__prepare_stopped(made, h);
    if (!status) status = gpuir__lr_make(made, docs + from, i - from, from, &line[h]);
  }
  return status;
}

/* ---- merge ---- */

/* Merges item by item up to candidate `to`; see gpuir__merge and gpuir__merge_kernel. */
GPUIR__INLINE uint32_t gpuir__merge_items(int indices, gpuir__merge *m, uint32_t to, uint32_t found) {
  uint32_t i = m->left, j = m->right;
  const uint32_t *docs = m->docs, n = m->n, base = m->base;
  const gpuir__pass pass = *m->pass;
  while (i < to && j < n) {
    uint32_t x = pass.candidates[i], y = docs[j];
    found = gpuir__pass_put(&pass, indices, found, i, x, base + j, x == y);
    i += x <= y;
    j += y <= x;
  }
  m->left = i;
  m->right = j;
  return found;
}

static uint32_t gpuir__merge_to(gpuir__merge *m, uint32_t to, uint32_t found) {
  return m->pass->from ? gpuir__merge_items(1, m, to, found) : gpuir__merge_items(0, m, to, found);
}

/* Makes a merge of all candidates with docs[0..n), of which docs[0] has index `base` in the operand. */
static gpuir__merge gpuir__merge_of(const gpuir__pass *p, const uint32_t *docs, uint32_t n, uint32_t base) {
  gpuir__merge m;
  m.pass = p;
  m.docs = docs;
  m.n = n;
  m.base = base;
  m.left = m.right = 0;
  m.padded = 0;
  return m;
}

static uint32_t gpuir__merge_array(gpuir__operand *o, const gpuir__pass *p) {
  gpuir__merge m = gpuir__merge_of(p, o->docs, o->n, 0);
  uint32_t found;
  m.right = o->at;
  found = gpuir__merge_to(&m, p->m, 0);
  o->at = m.right;
  return found;
}

/* Decodes block after block; a merge skips nothing. */
static uint32_t gpuir__merge_list(gpuir__operand *o, const gpuir__pass *p) {
  gpuir__cursor *c = o->cursor;
  uint32_t i = 0, found = 0;
  while (i < p->m && o->at < o->n) {
    uint32_t block = o->at / GPUIR__BLOCK, base = block * GPUIR__BLOCK;
    gpuir__merge m;
    gpuir__cursor_load(c, block);
    m = gpuir__merge_of(p, c->docs, c->n, base);
    m.left = i;
    m.right = o->at - base;
    found = gpuir__merge_to(&m, p->m, found);
    i = m.left;
    o->at = base + m.right;
  }
  return found;
}

/* ---- Parallel Merge Find (Ding et al. 2009, sections 7.1 and 7.2) ---- */

/* Finds the lower bound pos[i] of each a[i] in b[lo, hi): directly, or, with `levels` of recursion, by finding those of
 * the splitters of a first and going on in each segment between two splitters. */
static void gpuir__pmf_find(const uint32_t *a, uint32_t m, const uint32_t *b, uint32_t lo, uint32_t hi,
                            unsigned levels, uint32_t *pos) {
  uint32_t fan, s, i, from = 0, at = lo;
  if (!levels || m < 2) {
    for (i = 0; i < m; i++) pos[i] = gpuir__lower_bound(b, lo, hi, a[i]);
    return;
  }
  fan = gpuir__pmf_fan(m, levels);
  for (s = 1; s <= fan; s++) {
    uint32_t to = gpuir__pmf_splitter(m, fan, s);
    uint32_t end = s < fan ? gpuir__lower_bound(b, lo, hi, a[to]) : hi;
    if (to > from) gpuir__pmf_find(a + from, to - from, b, at, end < at ? at : end, levels - 1, pos + from);
    from = to;
    at = end;
  }
}

static uint32_t gpuir__pmf_array(gpuir__operand *o, const gpuir__pass *p) {
  uint32_t i, found = 0;
  gpuir__pmf_find(p->candidates, p->m, o->docs, 0, o->n, (unsigned)o->prepared->param, p->spare);
  for (i = 0; i < p->m; i++) {
    uint32_t x = p->candidates[i], at = p->spare[i];
    if (at == o->n) break;
    found = gpuir__pass_put(p, p->from != NULL, found, i, x, at, o->docs[at] == x);
  }
  return found;
}

/* Finds the block of each candidate by Merge Find in the directory (section 8.1), and the candidate in its block by
 * binary search. */
static uint32_t gpuir__pmf_list(gpuir__operand *o, const gpuir__pass *p) {
  gpuir__cursor *c = o->cursor;
  const uint32_t *last = c->list.last;
  uint32_t i, found = 0;
  if (last)
    gpuir__pmf_find(p->candidates, p->m, last, 0, c->list.nblocks, (unsigned)o->prepared->param, p->spare);
  else
    memset(p->spare, 0, (size_t)p->m * 4);
  for (i = 0; i < p->m; i++) {
    uint32_t x = p->candidates[i], block = p->spare[i], at;
    if (block >= c->list.nblocks) break;
    gpuir__cursor_load(c, block);
    at = gpuir__lower_bound(c->docs, 0, c->n, x);
    found = gpuir__pass_put(p, p->from != NULL, found, i, x, block * GPUIR__BLOCK + at,
                            at < c->n && c->docs[at] == x);
  }
  return found;
}

/* ---- MergePath (Griffin, section 3.1.2) ---- */

#define GPUIR__PATH 1024u /* docIDs of both lists in a partition, by default */

/* Merges candidates from m->left up to `to` with all of the right side: both are cut where `parts` diagonals cross the
 * merge path, and merged part by part. */
static uint32_t gpuir__mergepath(gpuir__merge *m, uint32_t to, uint64_t parts, uint32_t found) {
  const uint32_t from = m->left;
  const uint64_t total = (uint64_t)(to - from) + m->n;
  gpuir__merge part = *m;
  uint64_t t;
  if (!parts) parts = total / GPUIR__PATH + 1;
  for (t = 1; t <= parts; t++) {
    uint32_t i, j;
    gpuir__mergepath_split(m->pass->candidates + from, to - from, m->docs, m->n,
                           total / parts * t + total % parts * t / parts, &i, &j);
    part.n = j;
    found = gpuir__merge_to(&part, from + i, found);
    part.left = from + i;
    part.right = j;
  }
  return found;
}

static uint32_t gpuir__mergepath_array(gpuir__operand *o, const gpuir__pass *p) {
  gpuir__merge m = gpuir__merge_of(p, o->docs, o->n, 0);
  return gpuir__mergepath(&m, p->m, o->prepared->param, 0);
}

/* Finds the blocks that may hold candidates by binary search over the skip pointers, and intersects each with its
 * candidates. */
static uint32_t gpuir__mergepath_list(gpuir__operand *o, const gpuir__pass *p) {
  gpuir__cursor *c = o->cursor;
  const uint32_t *last = c->list.last;
  uint32_t i = 0, found = 0;
  while (i < p->m) {
    uint32_t block = last ? gpuir__lower_bound(last, 0, c->list.nblocks, p->candidates[i]) : 0, end = p->m;
    gpuir__merge m;
    if (block >= c->list.nblocks) break;
    gpuir__cursor_load(c, block);
    if (last) end = gpuir__lower_bound(p->candidates, i, p->m, last[block] + 1);
    if (end == i) end++; /* only in a damaged file */
    m = gpuir__merge_of(p, c->docs, c->n, block * GPUIR__BLOCK);
    m.left = i;
    found = gpuir__mergepath(&m, end, o->prepared->param, found);
    i = end;
  }
  return found;
}

/* ---- Small Adaptive (Demaine, Lopez-Ortiz & Munro 2001, as modified by Tatikonda et al. 2011, section 3.1) ---- */

/* Moves to the operand's first docID >= x by galloping and returns it; GPUIR_END behind the last one. */
static uint32_t gpuir__operand_seek(gpuir__operand *o, uint32_t x) {
  gpuir__cursor *c = o->cursor;
  uint32_t from = o->at / GPUIR__BLOCK, block, pos;
  if (!c) {
    o->at = gpuir__gallop(o->docs, o->at, o->n, x);
    return o->at < o->n ? o->docs[o->at] : GPUIR_END;
  }
  block = o->at < o->n ? gpuir__list_find_block(&c->list, from, x) : c->list.nblocks;
  if (block >= c->list.nblocks) {
    o->at = o->n;
    return GPUIR_END;
  }
  gpuir__cursor_load(c, block);
  pos = gpuir__gallop(c->docs, block == from ? o->at % GPUIR__BLOCK : 0, c->n, x);
  o->at =
      pos < c->n ? block * GPUIR__BLOCK + pos : o->n; /* the latter in the last block, or a damaged file */
  return pos < c->n && c->docs[pos] >= x ? c->docs[pos] : GPUIR_END;
}

/* Intersects all operands at once: an eliminator x is looked for in one operand after the other. Where it is not found,
 * the next docID there takes its place; found in all of them, it is a match, and the next docID of the first operand
 * takes its place. */
static uint32_t gpuir__adaptive(gpuir__operand *const *o, unsigned k, uint32_t *docs,
                                uint32_t *const *where) {
  uint32_t found = 0, x;
  unsigned i = 0, have = 1, t; /* operand i is next; `have` in a row have x */
  if (o[0]->at >= o[0]->n) return 0;
  x = o[0]->docs[o[0]->at];
  for (;;) {
    uint32_t doc;
    if (have == k) {
      docs[found] = x;
      for (t = 0; where && t < k; t++) where[t][found] = o[t]->at;
      found++;
      if (++o[0]->at >= o[0]->n) return found;
      x = o[0]->docs[o[0]->at];
      have = 1;
      i = 0;
      continue;
    }
    i = i + 1 == k ? 0 : i + 1;
    doc = gpuir__operand_seek(o[i], x);
    if (doc == GPUIR_END) return found;
    have = doc == x ? have + 1 : 1;
    x = doc;
  }
}

/* ---- Algorithm 1 (Ao et al. 2011, section 5.3) ---- */

/* Prepares the safe range, the headers (H(t) of the paper: here the last docID of each block, which lists have in their
 * directory), and a form of the docIDs in which each can be decoded alone: the list itself if its codec has get(), or
 * else a copy in lrc. A search cannot be stopped while the copy is encoded. */
static int gpuir__algorithm1_prepare(const gpuir_allocator *a, gpuir__operand *o, const uint32_t *docs) {
  const gpuir__list *l = o->cursor ? &o->cursor->list : NULL;
  const gpuir__codec *codec = gpuir__codec_by_name("lrc", 1);
  const int is_long = o->n > GPUIR__SHORT_MAX;
  gpuir__prepared *made = o->prepared;
  gpuir__stream *coded = &made->coded;
  uint32_t nblocks = o->n ? (o->n - 1) / GPUIR__BLOCK + 1 : 0, i, *offset, *heads;
  gpuir__lr *line =
      (gpuir__lr *)(void *)gpuir__aux_room(a, o, sizeof *line / 4 + 2 * (uint64_t)nblocks + nblocks / 4 + 1);
  gpuir__target to = {a, &o->prepared->copy, NULL, NULL, 0}; /* segments of 256, no exceptions */
  uint8_t *width;
  int status;
  if (!line) return GPUIR_E_NOMEM;
  offset = (uint32_t *)(void *)(line + 1);
  heads = offset + nblocks;
  width = (uint8_t *)(heads + nblocks);
  for (i = 0; i < nblocks; i++) heads[i] = docs[gpuir__min32((i + 1) * GPUIR__BLOCK, o->n) - 1];
  made->lines = line;
  made->heads = heads;
  status = gpuir__lr_make(made, docs, o->n, 0, line);
  if (status) return status;
  if (l && l->df > 1 && l->docs.codec->get) {
    *coded = l->docs;
    return GPUIR_OK;
  }
  memset(coded, 0, sizeof *coded);
  coded->codec = codec;
  coded->kernels = gpuir__codec_kernels_at(GPUIR_SIMD_SCALAR);
  coded->n = o->n;
  coded->limit = UINT32_MAX - 1;
  if (is_long) {
    coded->offset = to.offset = offset;
    coded->width = to.width = width;
    coded->last = heads;
  }
  if (o->n) status = codec->encode(codec, docs, o->n, &to);
  if (!status && !gpuir__buf_room(a, &made->copy, GPUIR__STREAM_PAD)) status = GPUIR_E_NOMEM;
  if (status) return status;
  memset(made->copy.data + made->copy.len, 0, GPUIR__STREAM_PAD);
  coded->bytes = made->copy.data;
  coded->len = made->copy.len;
  return GPUIR_OK;
}

/* Does lines 4 to 7 of the paper's Algorithm 1 for each candidate x, looking for the first docID >= x. */
static uint32_t gpuir__algorithm1_list(gpuir__operand *o, const gpuir__pass *p) {
  const gpuir__prepared *made = o->prepared;
  const gpuir__stream *coded = &made->coded;
  const uint32_t nblocks = o->n ? (o->n - 1) / GPUIR__BLOCK + 1 : 0;
  uint32_t i, found = 0;
  for (i = 0; i < p->m; i++) {
    uint32_t x = p->candidates[i], lo, hi, block, end;
    gpuir__lr_range(made->lines, x, o->n, &lo, &hi);
    if (lo >= hi) continue;
    block = gpuir__lower_bound(made->heads, lo / GPUIR__BLOCK, (hi - 1) / GPUIR__BLOCK + 1, x);
    if (block >= nblocks) break;
    lo = gpuir__max32(lo, block * GPUIR__BLOCK);
    end = gpuir__min32(hi, block * GPUIR__BLOCK + gpuir__block_count(o->n, block));
    while (lo < end) {
      uint32_t mid = lo + (end - lo) / 2;
      if (coded->codec->get(coded, mid) < x)
        lo = mid + 1;
      else
        end = mid;
    }
    found =
        gpuir__pass_put(p, p->from != NULL, found, i, x, lo, lo < hi && coded->codec->get(coded, lo) == x);
  }
  return found;
}

static uint32_t gpuir__algorithm1_array(gpuir__operand *o, const gpuir__pass *p) {
  return gpuir__algorithm1_list(o, p);
}

/* ---- simd on arrays: as in [18-lookup], or, in a much longer array, a probe a candidate ----
 *
 * Longer arrays have hash segments (Ao et al. 2011, section 4.4) so short that one or two registers mostly take a whole
 * one: a probe is a look-up and a comparison, and those of many candidates overlap. */

#define GPUIR__PROBE_MEAN 8u /* docIDs a segment at most, on average */

/* Prepares segments for arrays so long that probes are faster: from these ratios on, measured with random docIDs. */
static int gpuir__simd_prepare(const gpuir_allocator *a, gpuir__operand *o, const uint32_t *docs) {
  static const uint32_t probe_ratio[4] = {3, 5, 5, 8}; /* by GPUIR__LOOKUP_ level */
  gpuir__prepared *made = o->prepared;
  uint64_t span;
  if (o->n < 64 || o->n / probe_ratio[o->kernels->level] < o->expected) return GPUIR_OK;
  if (o->kernels->level == GPUIR__LOOKUP_SCALAR) {
    made->param = 16;
    return gpuir__hs_prepare(a, o, docs);
  }
  span = (uint64_t)docs[o->n - 1] + 1;
  for (made->shift = 0; made->shift < 31 && (uint64_t)o->n << (made->shift + 1) <= span * GPUIR__PROBE_MEAN;)
    made->shift++;
  return gpuir__hs_table(a, o, docs);
}

static uint32_t gpuir__simd_array_scalar(gpuir__operand *o, const gpuir__pass *p) {
  return o->prepared->first ? gpuir__hs_array(o, p) : gpuir__merge_array(o, p);
}

#if GPUIR__X86

/* Finds 16 indices in [lo, hi), a segment with more docIDs than that, which have x if the segment has; returns the
 * first of them. */
static inline uint32_t gpuir__crowd(const uint32_t *a, uint32_t lo, uint32_t hi, uint32_t x) {
  uint32_t len = hi - lo;
  while (len > 16) {
    uint32_t half = len / 2;
    lo = a[lo + half - 1] < x ? lo + half : lo;
    len -= half;
  }
  return lo;
}

/* Looks up each candidate by a probe of its segment; o->n >= 16. */
GPUIR__AVX2 GPUIR__INLINE uint32_t gpuir__probe_avx2(int indices, const gpuir__operand *o,
                                                     const gpuir__pass *p) {
  const gpuir__pass pass = *p;
  const gpuir__prepared *made = o->prepared;
  const uint32_t *docs = o->docs, *first = made->first, buckets = made->buckets, n = o->n;
  const unsigned shift = made->shift;
  uint32_t i, found = 0;
  for (i = 0; i < pass.m; i++) {
    uint32_t x = pass.candidates[i], h = gpuir__hs_bucket(x, shift), at, end, hit;
    const __m256i v = _mm256_set1_epi32((int)x);
    __m256i lo, hi;
    if (h >= buckets) break;
    at = first[h];
    end = first[h + 1];
    if (GPUIR__UNLIKELY(end - at > 16)) at = gpuir__crowd(docs, at, end, x);
    at = gpuir__min32(at, n - 16);
    lo = _mm256_cmpeq_epi32(_mm256_loadu_si256((const __m256i *)(const void *)(docs + at)), v);
    hi = _mm256_cmpeq_epi32(_mm256_loadu_si256((const __m256i *)(const void *)(docs + at + 8)), v);
    hit = (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(indices ? lo : _mm256_or_si256(lo, hi)));
    if (indices) hit |= (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(hi)) << 8;
    found = gpuir__pass_put(&pass, indices, found, i, x, at + gpuir__ctz32(hit | 0x10000u), hit != 0);
  }
  return found;
}

/* Begins where the last pass ended: o->at. */
static uint32_t gpuir__merge_whole(gpuir__merge_kernel merge, gpuir__operand *o, const gpuir__pass *p) {
  gpuir__merge m = gpuir__merge_of(p, o->docs, o->n, 0);
  uint32_t found;
  m.right = o->at;
  found = merge(&m, 0);
  o->at = m.right;
  return found;
}

GPUIR__AVX2 static uint32_t gpuir__simd_array_avx2(gpuir__operand *o, const gpuir__pass *p) {
  if (o->prepared->first) return p->from ? gpuir__probe_avx2(1, o, p) : gpuir__probe_avx2(0, o, p);
  return gpuir__merge_whole(gpuir__merge_avx2, o, p);
}

GPUIR__AVX512 static uint32_t gpuir__simd_array_vp2intersect(gpuir__operand *o, const gpuir__pass *p) {
  return o->prepared->first ? gpuir__simd_array_avx2(o, p) : gpuir__merge_whole(gpuir__merge_avx512, o, p);
}

#endif

static uint32_t gpuir__simd_array(gpuir__operand *o, const gpuir__pass *p) {
  static const gpuir__lookup_kernel of_level[4] = { /* by GPUIR__LOOKUP_ */
                                                    gpuir__simd_array_scalar,
#if GPUIR__X86
                                                    gpuir__simd_array_avx2,
                                                    gpuir__simd_array_avx2,
                                                    gpuir__simd_array_vp2intersect,
#endif
  };
  return of_level[o->kernels->level](o, p);
}

static uint32_t gpuir__simd_list(gpuir__operand *o, const gpuir__pass *p) { return gpuir__lookup(o, p); }

/* ---- the table ---- */

/* A method that prepares nothing, one that prepares arrays and what it needs of lists, and one that takes all operands
 * at once. `functions` is the middle of their names: gpuir__skip_prepare, gpuir__skip_array, gpuir__skip_list. */
#define GPUIR__SEARCHES(name, title, paper, param, functions)                          \
  {                                                                                    \
    name, title, paper, param, GPUIR__NEEDS_NOTHING, NULL, gpuir__##functions##_array, \
        gpuir__##functions##_list, NULL                                                \
  }
#define GPUIR__PREPARES(name, title, paper, param, needs, functions)                            \
  {                                                                                             \
    name, title, paper, param, needs, gpuir__##functions##_prepare, gpuir__##functions##_array, \
        gpuir__##functions##_list, NULL                                                         \
  }
#define GPUIR__TAKES_ALL(name, title, paper, function) \
  { name, title, paper, 0, GPUIR__NEEDS_NOTHING, NULL, NULL, NULL, function }

static const gpuir__method gpuir__methods[] = {
    GPUIR__SEARCHES("merge", "merge", "", 0, merge),
    GPUIR__SEARCHES("gallop", "galloping search", "", 0, gallop),
    GPUIR__SEARCHES("binary", "binary search", "Ao 2011, 4.2", 0, binary),
    GPUIR__SEARCHES("interpolation", "interpolation search", "Ao 2011, 4.3", 0, interpolation),
    GPUIR__PREPARES("skip", "skip list", "Ao 2011, 4.2", 0, GPUIR__NEEDS_DIRECTORY, skip),
    GPUIR__SEARCHES("svs", "SvS with block skipping", "Ding 2009, 8.1", 0, svs),
    GPUIR__TAKES_ALL("adaptive", "Small Adaptive", "Tatikonda 2011, 3.1", gpuir__adaptive),
    GPUIR__SEARCHES("pmf0", "Parallel Merge Find, direct", "Ding 2009, 7", 0, pmf),
    GPUIR__SEARCHES("pmf1", "Parallel Merge Find, 1 level of recursion", "Ding 2009, 7", 1, pmf),
    GPUIR__SEARCHES("pmf2", "Parallel Merge Find, 2 levels of recursion", "Ding 2009, 7", 2, pmf),
    GPUIR__SEARCHES("pmf3", "Parallel Merge Find, 3 levels of recursion", "Ding 2009, 7", 3, pmf),
    GPUIR__SEARCHES("pmf4", "Parallel Merge Find, 4 levels of recursion", "Ding 2009, 7", 4, pmf),
    GPUIR__PREPARES("lr-global", "linear regression, global safe range", "Ao 2011, 4.3", 0,
                    GPUIR__NEEDS_DOCIDS, lr),
    GPUIR__PREPARES("lr-local", "linear regression, local safe ranges", "Ao 2011, 4.3", 0,
                    GPUIR__NEEDS_DOCIDS, local),
    GPUIR__PREPARES("hs16", "hash segmentation, buckets of 16", "Ao 2011, 4.4", 16, GPUIR__NEEDS_DOCIDS, hs),
    GPUIR__PREPARES("hs32", "hash segmentation, buckets of 32", "Ao 2011, 4.4", 32, GPUIR__NEEDS_DOCIDS, hs),
    GPUIR__PREPARES("hs64", "hash segmentation, buckets of 64", "Ao 2011, 4.4", 64, GPUIR__NEEDS_DOCIDS, hs),
    GPUIR__PREPARES("hs128", "hash segmentation, buckets of 128", "Ao 2011, 4.4", 128, GPUIR__NEEDS_DOCIDS,
                    hs),
    GPUIR__PREPARES("hs256", "hash segmentation, buckets of 256", "Ao 2011, 4.4", 256, GPUIR__NEEDS_DOCIDS,
                    hs),
    GPUIR__PREPARES("algorithm1", "binary search in lists coded by linear regression", "Ao 2011, 5.3", 0,
                    GPUIR__NEEDS_DOCIDS, algorithm1),
    GPUIR__SEARCHES("mergepath", "MergePath", "Griffin 2018, 3.1.2", 0, mergepath),
    GPUIR__PREPARES("simd", "vectors: all pairs of registers, or probes", "", 0, GPUIR__NEEDS_NOTHING, simd),
};
#undef GPUIR__SEARCHES
#undef GPUIR__PREPARES
#undef GPUIR__TAKES_ALL

#define GPUIR__METHODS (sizeof gpuir__methods / sizeof gpuir__methods[0])

/* Returns the i-th method; NULL behind the last one. */
GPUIR__UNUSED static const gpuir__method *gpuir__method_at(size_t i) {
  return i < GPUIR__METHODS ? &gpuir__methods[i] : NULL;
}

/* Returns the method of a name; NULL if there is none. */
static const gpuir__method *gpuir__method_by_name(const char *name) {
  size_t i;
  for (i = 0; i < GPUIR__METHODS; i++)
    if (!strcmp(gpuir__methods[i].name, name)) return &gpuir__methods[i];
  return NULL;
}

/* ---- preparing an operand ---- */

/* Decodes all docIDs of a list. 0, or what stopped() says. */
static int gpuir__prepare_decode(const gpuir__prepared *made, const gpuir__list *l, uint32_t *docs) {
  uint32_t block;
  int status = GPUIR_OK;
  for (block = 0; block < l->nblocks && !status; block++) {
    (void)gpuir__list_docs(l, block, docs + (size_t)block * GPUIR__BLOCK);
    if (block % 64 == 63 && made->stopped) status = made->stopped(made->user);
  }
  return status;
}

/* Prepares one operand in *made, which is zeros but for stopped() and its user, for a method. All docIDs of a list are
 * decoded for that, and forgotten. 0, NOMEM, LIMIT, or what stopped() says; gpuir__prepared_free is due in any case. */
static int gpuir__operand_prepare(const gpuir_allocator *a, const gpuir__method *m, gpuir__operand *o,
                                  gpuir__prepared *made) {
  size_t size = ((size_t)o->n + GPUIR__BLOCK_ROOM) * 4;
  uint32_t *docs;
  int status;
  o->prepared = made;
  made->param = m->param;
  if (!m->prepare || (o->cursor && m->needs == GPUIR__NEEDS_NOTHING)) return GPUIR_OK;
  if (!o->cursor || m->needs == GPUIR__NEEDS_DIRECTORY) return m->prepare(a, o, o->docs);
  docs = (uint32_t *)gpuir__alloc(a, size);
  if (!docs) return GPUIR_E_NOMEM;
  status = gpuir__prepare_decode(made, &o->cursor->list, docs);
  if (!status) status = m->prepare(a, o, docs);
  gpuir__free(a, docs, size);
  return status;
}

static void gpuir__prepared_free(const gpuir_allocator *a, gpuir__prepared *made) {
  gpuir__buf_free(a, &made->aux);
  gpuir__buf_free(a, &made->copy);
}

#endif /* GPUIR_NO_LAB */

/* ============================================================================
 * [20-engine]  the evaluators' common state: kernels, tiles of accumulators, cursors, deadlines
 *
 * An evaluator fills the engine's top-k with the best documents of a query. What each of them works on:
 *
 *     [21-and]         decoded blocks of the shortest list (the driver), looked up in the other lists
 *     [22-or]          docID tiles, whose bounds come from the block directories; blocks are decoded as needed
 *     [23-exhaustive]  docID tiles and cursors: every posting, no bound; the reference that the others must equal
 *     count of OR      windows of bits and cursors, in [23-exhaustive]
 *
 * Uses      [13-reader], [16-query], [17-topk], [18-lookup]; [19-methods] if a method was asked for.
 * Start at  gpuir__engine, gpuir__engine_open; gpuir__search_of_level (kernels); gpuir__tile.
 * Tests     tests/unit/20_engine.c
 * ==========================================================================*/

/* ---- filters of candidates ---- */

#if GPUIR__X86
GPUIR__AVX512 static uint32_t gpuir__keep_avx512(uint32_t *docs, uint32_t *sums, uint32_t n,
                                                 uint32_t threshold) {
  const __m512i limit = _mm512_set1_epi32((int)threshold);
  uint32_t i, kept = 0;
  for (i = 0; i < n; i += 16) {
    __mmask16 live = (__mmask16)(n - i >= 16 ? 0xffff : (1u << (n - i)) - 1);
    __m512i d = _mm512_loadu_si512(docs + i), s = _mm512_loadu_si512(sums + i);
    uint32_t over = gpuir__mask_bits(_mm512_mask_cmpge_epu32_mask(live, s, limit));
    gpuir__compress_avx512(docs + kept, over, d);
    gpuir__compress_avx512(sums + kept, over, s);
    kept += (uint32_t)__builtin_popcount(over);
  }
  return kept;
}

GPUIR__AVX512 static uint32_t gpuir__frequent_avx512(const uint32_t *docs, const uint32_t *freqs, uint32_t n,
                                                     uint32_t threshold, uint32_t *to, uint32_t *to_freqs) {
  const __m512i limit = _mm512_set1_epi32((int)threshold);
  uint32_t i, kept = 0;
  for (i = 0; i < n; i += 16) {
    __mmask16 live = (__mmask16)(n - i >= 16 ? 0xffff : (1u << (n - i)) - 1);
    __m512i d = _mm512_maskz_loadu_epi32(live, docs + i), f = _mm512_maskz_loadu_epi32(live, freqs + i);
    uint32_t over = gpuir__mask_bits(_mm512_mask_cmpge_epu32_mask(live, f, limit));
    gpuir__compress_avx512(to + kept, over, d);
    gpuir__compress_avx512(to_freqs + kept, over, f);
    kept += (uint32_t)__builtin_popcount(over);
  }
  return kept;
}
#endif

static uint32_t gpuir__keep_scalar(uint32_t *docs, uint32_t *sums, uint32_t n, uint32_t threshold) {
  uint32_t i, kept = 0;
  for (i = 0; i < n; i++) {
    uint32_t sum = sums[i];
    docs[kept] = docs[i];
    sums[kept] = sum;
    kept += sum >= threshold;
  }
  return kept;
}

static uint32_t gpuir__frequent_scalar(const uint32_t *docs, const uint32_t *freqs, uint32_t n,
                                       uint32_t threshold, uint32_t *to, uint32_t *to_freqs) {
  uint32_t i, kept = 0;
  for (i = 0; i < n; i++) {
    to[kept] = docs[i];
    to_freqs[kept] = freqs[i];
    kept += freqs[i] >= threshold;
  }
  return kept;
}

/* Computes the least frequency, less one, with which a posting can contribute `threshold` (q included) in a document
 * not shorter than any of the block: c >= x asks for W tf / (tf + K) >= x but for roundings, so for tf >= x K / (W -
 * x). */
static uint32_t gpuir__least_frequency(const gpuir__scorer *s, uint32_t pairs, uint32_t threshold) {
  uint32_t code = pairs >> 16 ? pairs >> 24 : pairs >> 8 & 255; /* the last pair has the shortest length */
  double k = (double)gpuir__norm_of(s->norm.a, s->norm.b, gpuir__code_value(code)), w = (double)s->weight;
  double x = ((double)threshold / s->q - 1) * (1 - 1e-6), tf;
  if (!(x > 0)) return 0;
  if (!(w > x)) return UINT32_MAX;
  tf = x * k / (w - x) * (1 - 1e-6);
  return tf < (double)GPUIR__CAP ? (uint32_t)ceil(tf) - (tf > 0) : GPUIR__CAP - 1;
}

/* ---- tiles: accumulators for a range of documents ---- */

/* A tile has 2^GPUIR__TILE_SHIFT documents, or more in an index so large that there would be over GPUIR__MAX_TILES. */
#ifndef GPUIR__TILE_SHIFT
#define GPUIR__TILE_SHIFT 13u
#endif
#ifndef GPUIR__MAX_TILES
#define GPUIR__MAX_TILES 65536u
#endif
/* Documents of a tile that share a flag in touched[]: their accumulators are one vector. */
#define GPUIR__TOUCH 16u

/* The accumulators of a tile's documents, and the candidates that were collected from them. Arrays of candidates have
 * room for the tile's documents, a block and a vector. */
typedef struct gpuir__tile {
  uint32_t shift;   /* the tile has 2^shift documents */
  uint32_t *scores; /* [document of the tile] its accumulator: what was added up so far; 0 between tiles */
  uint8_t *touched; /* [GPUIR__TOUCH documents] 1 if one of their accumulators may not be 0 */
  uint32_t *candidates; /* docIDs */
  uint32_t *sums;       /* [candidate] its score as far as it is known */
  uint32_t *found;      /* of one look-up: the candidates found */
  uint32_t *from;       /* [found] its index among the candidates */
  uint32_t *where;      /* [found] its index in the list */
  uint32_t *freqs;      /* [found or candidate] its frequency, less one */
  uint32_t *values;     /* [found] its contribution */
} gpuir__tile;

/* Return a tile's first and last docID. */
static inline uint32_t gpuir__tile_low(const gpuir__tile *t, uint32_t tile) { return tile << t->shift; }
static inline uint32_t gpuir__tile_high(const gpuir__tile *t, uint32_t tile) {
  return gpuir__tile_low(t, tile) + ((1u << t->shift) - 1);
}

/* Adds the contributions of n postings to their documents' accumulators. */
static void gpuir__tile_add(gpuir__tile *t, const uint32_t *docs, const uint32_t *values, uint32_t n) {
  uint32_t *scores = t->scores, mask = (1u << t->shift) - 1, i;
  uint8_t *touched = t->touched;
  for (i = 0; i < n; i++) {
    uint32_t at = docs[i] & mask;
    scores[at] += values[i];
    touched[at / GPUIR__TOUCH] = 1;
  }
}

static uint32_t gpuir__collect_scalar(gpuir__tile *t, uint32_t low, uint32_t threshold) {
  uint32_t groups = (1u << t->shift) / GPUIR__TOUCH, group, i, n = 0;
  for (group = 0; group < groups; group++) {
    uint32_t first = group * GPUIR__TOUCH;
    if (!t->touched[group]) continue;
    for (i = first; i < first + GPUIR__TOUCH; i++) {
      t->candidates[n] = low + i;
      t->sums[n] = t->scores[i];
      n += t->scores[i] >= threshold;
      t->scores[i] = 0;
    }
    t->touched[group] = 0;
  }
  return n;
}

/* Returns 1 if one of 64 accumulators reaches the threshold. */
typedef int (*gpuir__reach)(const uint32_t *scores, uint32_t threshold);

GPUIR__INLINE int gpuir__reach_scalar(const uint32_t *scores, uint32_t threshold) {
  uint32_t reached = 0, i;
  for (i = 0; i < 64; i++) reached |= scores[i] >= threshold;
  return reached != 0;
}

/* Collects from a tile with hardly an accumulator that is 0: touched[] is neither read nor cleared. */
GPUIR__INLINE uint32_t gpuir__collect_dense_by(gpuir__reach reach, gpuir__tile *t, uint32_t low,
                                               uint32_t threshold) {
  uint32_t *scores = t->scores, size = 1u << t->shift, at, i, n = 0;
  for (at = 0; at < size; at += 64) {
    if (GPUIR__UNLIKELY(reach(scores + at, threshold)))
      for (i = at; i < at + 64; i++) {
        t->candidates[n] = low + i;
        t->sums[n] = scores[i];
        n += scores[i] >= threshold;
      }
  }
  memset(scores, 0, size * sizeof *scores);
  return n;
}

static uint32_t gpuir__collect_dense_scalar(gpuir__tile *t, uint32_t low, uint32_t threshold) {
  return gpuir__collect_dense_by(gpuir__reach_scalar, t, low, threshold);
}

#if GPUIR__X86
GPUIR__AVX512 static uint32_t gpuir__collect_avx512(gpuir__tile *t, uint32_t low, uint32_t threshold) {
  const __m512i limit = _mm512_set1_epi32((int)threshold), iota = gpuir__avx512_iota(),
                zero = _mm512_setzero_si512();
  uint32_t groups = (1u << t->shift) / GPUIR__TOUCH, group, n = 0;
  for (group = 0; group < groups; group += 64) {
    __m512i flags = _mm512_loadu_si512(t->touched + group);
    uint64_t touched = _mm512_test_epi8_mask(flags, flags);
    _mm512_storeu_si512(t->touched + group, zero);
    for (; touched; touched &= touched - 1) {
      uint32_t at = (group + gpuir__ctz64(touched)) * GPUIR__TOUCH, over;
      __m512i v = _mm512_loadu_si512(t->scores + at);
      over = gpuir__mask_bits(_mm512_cmpge_epu32_mask(v, limit));
      gpuir__compress_avx512(t->candidates + n, over,
                             _mm512_add_epi32(iota, _mm512_set1_epi32((int)(low + at))));
      gpuir__compress_avx512(t->sums + n, over, v);
      _mm512_storeu_si512(t->scores + at, zero);
      n += (uint32_t)__builtin_popcount(over);
    }
  }
  return n;
}

GPUIR__AVX2 GPUIR__INLINE int gpuir__reach_avx2(const uint32_t *scores, uint32_t threshold) {
  const __m256i *v = (const __m256i *)(const void *)scores, limit = _mm256_set1_epi32((int)threshold);
  __m256i most = _mm256_loadu_si256(v);
  unsigned i;
  for (i = 1; i < 8; i++) most = _mm256_max_epu32(most, _mm256_loadu_si256(v + i));
  return _mm256_movemask_epi8(_mm256_cmpeq_epi32(_mm256_max_epu32(most, limit), most)) != 0;
}

GPUIR__AVX2 static uint32_t gpuir__collect_dense_avx2(gpuir__tile *t, uint32_t low, uint32_t threshold) {
  return gpuir__collect_dense_by(gpuir__reach_avx2, t, low, threshold);
}
#endif

/* ---- the evaluators' kernels ---- */

typedef struct gpuir__search_kernels {
  /* Keeps those of n candidates whose sums reach the threshold; returns their number. */
  uint32_t (*keep)(uint32_t *docs, uint32_t *sums, uint32_t n, uint32_t threshold);
  /* Copies the postings whose frequency, less one, reaches the threshold; returns their number. */
  uint32_t (*frequent)(const uint32_t *docs, const uint32_t *freqs, uint32_t n, uint32_t threshold,
                       uint32_t *to, uint32_t *to_freqs);
  /* Moves the documents whose accumulators reach the threshold from the tile that begins at docID `low` to candidates[]
   * and sums[], and clears all accumulators; returns the number of candidates. */
  uint32_t (*collect)(gpuir__tile *t, uint32_t low, uint32_t threshold);
  uint32_t (*collect_dense)(gpuir__tile *t, uint32_t low,
                            uint32_t threshold); /* the same without touched[] */
} gpuir__search_kernels;

/* By SIMD level less GPUIR_SIMD_SCALAR. Where a level has no kernel of its own, vectors gained nothing. */
static const gpuir__search_kernels gpuir__search_of_level[3] = {
    {gpuir__keep_scalar, gpuir__frequent_scalar, gpuir__collect_scalar, gpuir__collect_dense_scalar},
#if GPUIR__X86
    {gpuir__keep_scalar, gpuir__frequent_scalar, gpuir__collect_scalar, gpuir__collect_dense_avx2},
    {gpuir__keep_avx512, gpuir__frequent_avx512, gpuir__collect_avx512, gpuir__collect_dense_avx2},
#endif
};

/* ---- the engine ---- */

/* Blocks that are decoded between two looks at the deadline: at 1 to 5 us for a block whose documents' lengths are not
 * in the cache, less than a millisecond. */
#define GPUIR__LOOK_BLOCKS 64u

/* What an engine needs of some queries only. */
typedef struct gpuir__engine_rare {
  gpuir__saturation *saturation; /* of other k1 and b than the index's; NULL: none was needed */
  gpuir__buf *made;        /* [term of the query] memory of a list made of others; NULL: none was needed */
  gpuir__buf sums, places; /* scratch memory, see [21b-phrases] */
  uint32_t chunks;         /* of positions, since the last look at the deadline */
  unsigned cursor_of[GPUIR_MAX_TERMS]; /* [term of the query] its cursor; GPUIR__NO_TERM: none in this leaf */
} gpuir__engine_rare;

/* What ends a search, beside the searcher's timeout. A flag that is not 0 stops it; NULL: there is none. */
typedef struct gpuir__limits {
  const int *cancel;       /* the searcher's */
  const int *query_cancel; /* the query's, in a batch */
  uint64_t query_deadline; /* the query's, in a batch, as gpuir__now tells time, in ns; 0: none */
} gpuir__limits;

/* What one thread needs to evaluate queries: scratch memory, which grows, and what stops it. */
typedef struct gpuir__engine {
  gpuir_allocator a;
  gpuir_index *ix;
  gpuir__leaf leaf; /* a copy of the one that is evaluated */
  int evaluator;    /* GPUIR_EVAL_ */
#ifndef GPUIR_NO_LAB
  const gpuir__method *intersection; /* NULL: the engine's own, [18-lookup] */
  gpuir__prepared *prepared;         /* one a cursor, if a method is asked for */
#endif
  const gpuir__search_kernels *kernels; /* of the index's SIMD level */
  const gpuir__lookup_kernels *lookups;
  gpuir__score_kernel score;
  uint64_t timeout_ns; /* of each search from its start; 0: none */
  uint64_t deadline;   /* of the running search, as gpuir__now tells time, in ns; 0: none */
  gpuir__limits limits;
  uint32_t worked; /* blocks decoded since the last look at the deadline */
  int stopped;     /* the status that ends the running search; 0: it goes on */
  gpuir_searcher_info info;
  gpuir_error error;
  const gpuir__saturation *saturation; /* of the query's k1 and b */
  gpuir__engine_rare rare;
  gpuir__cursor *cursors;   /* ncursors of the query's known terms, positive ones first */
  gpuir__operand *operands; /* one a cursor, for look-ups */
  unsigned ncursors, cap;   /* opened; allocated */
  gpuir__topk top;
  gpuir__buf scratch; /* arrays of one search, carved by gpuir__carve */
  size_t carved;      /* bytes of scratch in use */
} gpuir__engine;

/* Closes the lists of the last query. */
static void gpuir__engine_reset(gpuir__engine *e) {
  unsigned i;
  for (i = 0; i < e->ncursors; i++) {
    e->info.blocks_decoded += e->cursors[i].decoded;
    gpuir__list_close(&e->a, &e->cursors[i].list);
#ifndef GPUIR_NO_LAB
    if (e->prepared) gpuir__prepared_free(&e->a, &e->prepared[i]);
#endif
  }
  e->ncursors = 0;
}

static void gpuir__engine_free_cursors(gpuir__engine *e) {
  gpuir__engine_reset(e);
  gpuir__free(&e->a, e->cursors, e->cap * sizeof *e->cursors);
  gpuir__free(&e->a, e->operands, e->cap * sizeof *e->operands);
  e->cursors = NULL;
  e->operands = NULL;
#ifndef GPUIR_NO_LAB
  gpuir__free(&e->a, e->prepared, e->cap * sizeof *e->prepared);
  e->prepared = NULL;
#endif
  e->cap = 0;
}

static void gpuir__engine_free(gpuir__engine *e) {
  unsigned i;
  gpuir__engine_free_cursors(e);
  gpuir__free(&e->a, e->rare.saturation, sizeof *e->rare.saturation);
  for (i = 0; e->rare.made && i < GPUIR_MAX_TERMS; i++) gpuir__buf_free(&e->a, &e->rare.made[i]);
  gpuir__free(&e->a, e->rare.made, GPUIR_MAX_TERMS * sizeof *e->rare.made);
  gpuir__buf_free(&e->a, &e->rare.sums);
  gpuir__buf_free(&e->a, &e->rare.places);
  if (e->top.heap) (void)e->a.resize(e->a.user, e->top.heap, e->top.cap * 8, 0);
  gpuir__buf_free(&e->a, &e->scratch);
}

/* Fills the engine's error; returns its code. */
static int gpuir__engine_fail(gpuir__engine *e, int code, const char *what) {
  return gpuir__fail(&e->error, code, 0, "%s", what);
}

/* Looks whether the search has to stop: 0, DEADLINE or CANCELLED. */
static int gpuir__engine_look(gpuir__engine *e) {
  if ((e->limits.cancel && __atomic_load_n(e->limits.cancel, __ATOMIC_RELAXED)) ||
      (e->limits.query_cancel && __atomic_load_n(e->limits.query_cancel, __ATOMIC_RELAXED)))
    e->stopped = gpuir__engine_fail(e, GPUIR_E_CANCELLED, "the search was cancelled");
  else if (e->deadline && gpuir__now() > e->deadline)
    e->stopped = gpuir__engine_fail(e, GPUIR_E_DEADLINE, "the search exceeded its time limit");
  return e->stopped;
}

/* Counts decoded blocks and looks after each GPUIR__LOOK_BLOCKS of them whether the search has to stop. */
static inline int gpuir__engine_worked(gpuir__engine *e, uint64_t blocks) {
  if (GPUIR__LIKELY(e->worked + blocks < GPUIR__LOOK_BLOCKS)) {
    e->worked += (uint32_t)blocks;
    return e->stopped;
  }
  e->worked = 0;
  return gpuir__engine_look(e);
}

/* Looks up candidates as gpuir__lookup does, and counts the blocks that were decoded for it. */
static uint32_t gpuir__engine_lookup(gpuir__engine *e, gpuir__operand *o, const gpuir__pass *p) {
  const uint64_t before = o->cursor->decoded;
  const uint32_t found = gpuir__lookup(o, p);
  (void)gpuir__engine_worked(e, o->cursor->decoded - before);
  return found;
}

/* Takes n items of 4 bytes from the scratch memory, which must have been reserved. */
static uint32_t *gpuir__carve(gpuir__engine *e, size_t n) {
  uint32_t *p = (uint32_t *)(void *)(e->scratch.data + e->carved);
  e->carved += ((n + 15) & ~(size_t)15) * 4; /* whole cache lines */
  return p;
}

/* Makes room for `arrays` arrays of n items in all. Earlier carvings are gone. */
static int gpuir__reserve(gpuir__engine *e, size_t n, size_t arrays) {
  e->carved = 0;
  e->scratch.len = 0;
  if (n > SIZE_MAX / 8 || !gpuir__buf_room(&e->a, &e->scratch, (n + 16 * arrays) * 4))
    return gpuir__engine_fail(e, GPUIR_E_NOMEM, "out of memory");
  return GPUIR_OK;
}

/* Makes room for the cursors of a query of n terms. */
static int gpuir__engine_grow(gpuir__engine *e, unsigned n) {
  int complete;
  gpuir__engine_free_cursors(e);
  e->cap = n;
  e->cursors = (gpuir__cursor *)gpuir__alloc(&e->a, n * sizeof *e->cursors);
  e->operands = (gpuir__operand *)gpuir__alloc(&e->a, n * sizeof *e->operands);
  complete = e->cursors && e->operands;
#ifndef GPUIR_NO_LAB
  if (e->intersection) {
    e->prepared = (gpuir__prepared *)gpuir__alloc_zero(&e->a, n * sizeof *e->prepared);
    complete = complete && e->prepared;
  }
#endif
  if (complete) return GPUIR_OK;
  gpuir__engine_free_cursors(e);
  return gpuir__engine_fail(e, GPUIR_E_NOMEM, "out of memory");
}

/* Opens the list of a term, `id` in the engine's leaf, behind the cursors that are open; gpuir__engine_add is due. */
static int gpuir__engine_open_list(gpuir__engine *e, const gpuir__query_term *t, uint32_t id) {
  const int status = gpuir__list_open(e->leaf.seg, &e->a, id, &e->cursors[e->ncursors].list);
  if (!status) return GPUIR_OK;
  return gpuir__fail(&e->error, status, 0, "%s: cannot open the list of \"%.*s\": %s", e->leaf.seg->path,
                     t->len < 32 ? (int)t->len : 32, t->text, gpuir__list_why(e->leaf.seg, id, status));
}

/* Makes a cursor and an operand of the list that stands behind the open cursors, with the weight of a term. */
static void gpuir__engine_add(gpuir__engine *e, const gpuir_query *q, const gpuir__query_term *t) {
  gpuir__cursor *c = &e->cursors[e->ncursors];
  gpuir__operand_init(&e->operands[e->ncursors], c, e->lookups);
#ifndef GPUIR_NO_LAB
  if (e->prepared) memset(&e->prepared[e->ncursors], 0, sizeof *e->prepared);
#endif
  e->ncursors++;
  e->info.blocks_total += c->list.nblocks;
  c->scorer.lengths = e->leaf.seg->lengths;
  c->scorer.norm = q->norm;
  c->scorer.weight = t->weight;
  c->scorer.q = t->q;
  c->scorer.score = e->score;
  c->bound = t->negated ? 0 : gpuir__bound(t->weight, gpuir__list_saturation(e->saturation, &c->list), t->q);
  gpuir__cursor_reset(c);
}

/* Chooses the table of saturations: the index's, or one of the query's own k1 and b. 0 or NOMEM. */
static int gpuir__engine_saturate(gpuir__engine *e, const gpuir_query *q) {
  if (q->stored_bm25) {
    e->saturation = gpuir__index_saturation(e->ix);
  } else {
    gpuir__saturation **own = &e->rare.saturation;
    if (!*own) {
      *own = (gpuir__saturation *)gpuir__alloc(&e->a, sizeof **own);
      if (*own) (*own)->valid = 0;
    }
    e->saturation = *own;
    if (*own) gpuir__saturation_prepare(*own, q->norm);
  }
  return e->saturation ? GPUIR_OK : gpuir__engine_fail(e, GPUIR_E_NOMEM, "out of memory");
}

/* Turns to a leaf with room for n cursors, of which none is open. 0 or NOMEM. */
static int gpuir__engine_turn(gpuir__engine *e, const gpuir_query *q, size_t leaf, unsigned n) {
  int status;
  gpuir__engine_reset(e);
  e->leaf = e->ix->leaves[leaf];
  status = e->cap < n ? gpuir__engine_grow(e, n) : GPUIR_OK;
  return status ? status : gpuir__engine_saturate(e, q);
}

/* Opens a cursor on each word of the query that a leaf has, positive ones first (in the query's order); *npositive is
 * their number. For queries without phrases and prefixes: see gpuir__terms_open. */
static int gpuir__engine_open(gpuir__engine *e, const gpuir_query *q, size_t leaf, unsigned *npositive) {
  unsigned i;
  int status = gpuir__engine_turn(e, q, leaf, q->n);
  *npositive = 0;
  for (i = 0; i < q->n && !status; i++) {
    const uint32_t id = gpuir__query_id(q, leaf, i);
    e->rare.cursor_of[i] = id == GPUIR__NO_TERM ? GPUIR__NO_TERM : e->ncursors;
    if (id == GPUIR__NO_TERM) continue;
    status = gpuir__engine_open_list(e, &q->terms[i], id);
    if (status) break;
    gpuir__engine_add(e, q, &q->terms[i]);
    *npositive += !q->terms[i].negated;
  }
  return status;
}

/* Returns a score that at least k documents reach by this term alone, as far as the index has it stored; else 0. It is
 * stored for the idf and the lengths of one segment alone. */
static uint32_t gpuir__stored_seed(const gpuir__cursor *c, const gpuir_query *q, size_t k) {
  unsigned s = 0;
  if (!q->stored_bm25 || !c->list.seeds || !gpuir__only(q->ix)) return 0;
  while (s < GPUIR__SEEDS && gpuir__seed_ranks[s] < k) s++;
  return s < GPUIR__SEEDS ? c->scorer.q * c->list.seeds[s] : 0;
}

/* Bounds the contribution of a block's postings. */
static inline uint32_t gpuir__block_bound(const gpuir__engine *e, const gpuir__cursor *c, uint32_t block) {
  float s = gpuir__block_saturation(e->saturation, c->list.bounds[block]);
  return gpuir__bound(c->scorer.weight, s, c->scorer.q);
}

/* Writes the indices of the candidates that a negated list does not hold to kept[0..p->m); returns their number. */
static uint32_t gpuir__engine_absent(gpuir__engine *e, gpuir__operand *o, const gpuir__pass *p,
                                     uint32_t *kept) {
  const uint32_t found = gpuir__engine_lookup(e, o, p);
  uint32_t i, j = 0, n = 0;
  for (i = 0; i < p->m; i++) {
    if (j < found && p->from[j] == i)
      j++;
    else
      kept[n++] = i;
  }
  return n;
}

/* ---- what an engine does with a tile ---- */

/* Reserves `more` items in that many further arrays, and lays out those of a tile of 2^shift documents. */
static int gpuir__tile_reserve(gpuir__engine *e, gpuir__tile *t, uint32_t shift, size_t more, size_t arrays) {
  const size_t size = (size_t)1 << shift;
  const size_t room = size + GPUIR__BLOCK_ROOM + 16; /* whole blocks and vectors may be written at the end */
  int status = gpuir__reserve(e, size + size / 64 + 7 * room + more, 9 + arrays);
  if (status) return status;
  t->shift = shift;
  t->scores = gpuir__carve(e, size);
  t->touched = (uint8_t *)(void *)gpuir__carve(e, size / 64);
  t->candidates = gpuir__carve(e, room);
  t->sums = gpuir__carve(e, room);
  t->from = gpuir__carve(e, room);
  t->where = gpuir__carve(e, room);
  t->found = gpuir__carve(e, room);
  t->freqs = gpuir__carve(e, room);
  t->values = gpuir__carve(e, room);
  memset(t->scores, 0, size * 4);
  memset(t->touched, 0, (size / GPUIR__TOUCH + 63) & ~(size_t)63); /* vectors read whole cache lines */
  return GPUIR_OK;
}

/* Makes the pass that looks n candidates up in a list, from block `from` on. */
static gpuir__pass gpuir__tile_pass(gpuir__tile *t, gpuir__operand *list, uint32_t from, uint32_t n) {
  gpuir__pass p;
  gpuir__pad(t->candidates + n);
  p.candidates = t->candidates;
  p.m = n;
  p.docs = t->found;
  p.from = t->from;
  p.where = t->where;
  p.spare = t->values;
  list->at = from * GPUIR__BLOCK;
  return p;
}

/* Drops those of n candidates of a tile that negated lists hold, the cursors from npositive on; returns how many
 * stay. */
static uint32_t gpuir__tile_exclude(gpuir__engine *e, gpuir__tile *t, unsigned npositive, uint32_t tile,
                                    uint32_t n) {
  uint32_t i, *kept = t->freqs;
  unsigned j;
  for (j = npositive; j < e->ncursors && n; j++) {
    gpuir__operand *list = &e->operands[j];
    const uint32_t from = gpuir__list_find_block(&list->cursor->list, 0, gpuir__tile_low(t, tile));
    const gpuir__pass p = gpuir__tile_pass(t, list, from, n);
    n = gpuir__engine_absent(e, list, &p, kept);
    for (i = 0; i < n; i++) {
      t->candidates[i] = t->candidates[kept[i]];
      t->sums[i] = t->sums[kept[i]];
    }
  }
  return n;
}

/* Offers those of n candidates that are not deleted to the top-k. In a damaged file some may lie behind the last
 * document. */
static void gpuir__tile_offer(gpuir__engine *e, const gpuir__tile *t, uint32_t n) {
  const uint64_t documents = e->leaf.seg->stat.documents;
  const gpuir__deleted *deleted = e->leaf.deleted;
  const uint32_t base = e->leaf.base;
  uint32_t i;
  for (i = 0; i < n; i++)
    if (t->candidates[i] < documents && !(deleted && gpuir__deleted_has(deleted, t->candidates[i])))
      gpuir__topk_push(&e->top, gpuir__key(t->sums[i], t->candidates[i] + base));
}

/* ============================================================================
 * [21-and]  AND: small versus small with block skipping
 *
 * The blocks of the shortest list, the driver, are filtered through the others from short to long (small versus
 * small with block skipping: Ding et al., WWW 2009, section 8.1). Once k hits are there, a driver block is looked
 * up in the others only if its bound and those of their blocks that overlap it reach the threshold (block-max
 * AND: Ding & Suel, SIGIR 2011, section 4), and of its documents only those with the frequency that this takes.
 *
 * It works on decoded blocks and indices in lists, not posting by posting: a match's frequency is fetched, and its
 * length looked up, only while its score may still reach the threshold.
 *
 * Uses      [18-lookup], [19-methods] (another method that was asked for), [20-engine].
 * Start at  gpuir__eval_and, the last function: from there upwards.
 * Tests     tests/unit/21_and.c
 * ==========================================================================*/

static int gpuir__compare_df(const gpuir__cursor *a, const gpuir__cursor *b) {
  return a->list.df < b->list.df ? -1 : a->list.df > b->list.df;
}

/* Orders the cursor numbers of the positive terms by ascending df. */
static void gpuir__order_by_df(const gpuir__engine *e, unsigned npositive, unsigned *order) {
  unsigned i, j;
  for (i = 0; i < npositive; i++) {
    for (j = i; j && gpuir__compare_df(&e->cursors[i], &e->cursors[order[j - 1]]) < 0; j--)
      order[j] = order[j - 1];
    order[j] = i;
  }
}

/* At most so many blocks of another list are looked at to bound what it adds within a driver block. Measured. */
#ifndef GPUIR__OVERLAP
#define GPUIR__OVERLAP 16u
#endif

/* One driver block on its way through the other lists. Lists are numbered from short to long, the driver is 0. All
 * arrays of postings have GPUIR__BLOCK_ROOM items. */
typedef struct gpuir__and {
  unsigned order[GPUIR_MAX_TERMS]; /* [list] cursor number */
  unsigned npositive;
  uint32_t bound_after[GPUIR_MAX_TERMS]; /* [list] what all lists behind it can add together, at most */
  uint32_t overlap[GPUIR_MAX_TERMS];     /* [list] its first block that may overlap the driver block */
  uint32_t block;                        /* of the driver */
  const uint32_t *docs;                  /* the candidates, later the matches */
  uint32_t *chosen;                      /* candidates that are not all documents of the block */
  uint32_t *chosen_freqs;                /* [chosen] frequency, less one */
  int is_chosen;                         /* the candidates are those of chosen[] */
  uint32_t *where
      [GPUIR_MAX_TERMS]; /* [list][match] index in the list, in the driver among the candidates; NULL: only
                                     * counted */
  uint32_t *from, *spare, *other[2]; /* of the passes: see gpuir__pass; docs alternates between the two */
} gpuir__and;

#ifndef GPUIR_NO_LAB
static int gpuir__and_look(void *engine) { return gpuir__engine_look((gpuir__engine *)engine); }

/* Prepares each list but the driver for the method that was asked for. */
static int gpuir__and_prepare_method(gpuir__engine *e, const gpuir__and *x) {
  unsigned i;
  int status = GPUIR_OK;
  for (i = 1; i < x->npositive && e->intersection && !status; i++) {
    gpuir__prepared *made = &e->prepared[x->order[i]];
    made->stopped = gpuir__and_look;
    made->user = e;
    status = gpuir__operand_prepare(&e->a, e->intersection, &e->operands[x->order[i]], made);
    if (status && !e->stopped) status = gpuir__engine_fail(e, status, "out of memory");
    if (!status) status = gpuir__engine_look(e);
  }
  return status;
}
#endif

/* Lays out the arrays, orders the lists and sums their bounds. indices: frequencies will be wanted. */
static int gpuir__and_prepare(gpuir__engine *e, gpuir__and *x, unsigned npositive, int indices) {
  int status = gpuir__reserve(e, ((size_t)npositive + 6) * GPUIR__BLOCK_ROOM, (size_t)npositive + 6);
  unsigned i;
  if (status) return status;
  memset(x, 0, sizeof *x);
  x->npositive = npositive;
  gpuir__order_by_df(e, npositive, x->order);
  x->from = gpuir__carve(e, GPUIR__BLOCK_ROOM);
  x->spare = gpuir__carve(e, GPUIR__BLOCK_ROOM);
  x->other[0] = gpuir__carve(e, GPUIR__BLOCK_ROOM);
  x->other[1] = gpuir__carve(e, GPUIR__BLOCK_ROOM);
  x->chosen = gpuir__carve(e, GPUIR__BLOCK_ROOM);
  x->chosen_freqs = gpuir__carve(e, GPUIR__BLOCK_ROOM);
  for (i = 0; i < npositive; i++) {
    gpuir__operand *o = &e->operands[x->order[i]];
    if (indices) x->where[i] = gpuir__carve(e, GPUIR__BLOCK_ROOM);
    o->at = 0;
    o->expected = i == 1 ? e->operands[x->order[0]].n : 0;
  }
  for (i = npositive; i-- > 1;) x->bound_after[i - 1] = x->bound_after[i] + e->cursors[x->order[i]].bound;
#ifndef GPUIR_NO_LAB
  status = gpuir__and_prepare_method(e, x);
#endif
  return status ? status : gpuir__engine_look(e);
}

/* Makes the matches those n whose indices are kept[0..n). */
static void gpuir__and_keep(gpuir__and *x, const uint32_t *kept, uint32_t n) {
  uint32_t *docs = x->docs == x->other[0] ? x->other[1] : x->other[0], j;
  unsigned t;
  for (j = 0; j < n; j++) docs[j] = x->docs[kept[j]];
  gpuir__pad(docs + n);
  for (t = 0; x->where[0] && t < x->npositive; t++)
    for (j = 0; j < n; j++) x->where[t][j] = x->where[t][kept[j]];
  x->docs = docs;
}

/* Drops those of n matches that are deleted; returns how many stay. */
static uint32_t gpuir__and_live(gpuir__and *x, const gpuir__deleted *deleted, uint32_t n) {
  uint32_t kept[GPUIR__BLOCK_ROOM], live = 0, j;
  for (j = 0; j < n; j++) {
    kept[live] = j;
    live += !gpuir__deleted_has(deleted, x->docs[j]);
  }
  if (live < n) gpuir__and_keep(x, kept, live);
  return live;
}

/* Drops those of n matches that negated lists hold; returns how many stay. */
static uint32_t gpuir__and_exclude(gpuir__engine *e, gpuir__and *x, uint32_t n) {
  uint32_t kept[GPUIR__BLOCK_ROOM], held[GPUIR__BLOCK_ROOM], where[GPUIR__BLOCK_ROOM];
  gpuir__pass p;
  unsigned i;
  p.docs = held;
  p.from = x->from;
  p.where = where;
  p.spare = x->spare;
  for (i = x->npositive; i < e->ncursors && n; i++) {
    p.candidates = x->docs;
    p.m = n;
    n = gpuir__engine_absent(e, &e->operands[i], &p, kept);
    gpuir__and_keep(x, kept, n);
  }
  return n;
}

/* Bounds what a list adds to any document from lo to hi, by its blocks there, which are sought from *at on; *at becomes
 * the first of them. */
static uint32_t gpuir__range_bound(const gpuir__engine *e, const gpuir__cursor *c, uint32_t lo, uint32_t hi,
                                   uint32_t *at) {
  const gpuir__list *l = &c->list;
  uint32_t block, bound = 0;
  *at = gpuir__list_find_block(l, *at, lo);
  for (block = *at; block < l->nblocks; block++) {
    if (block - *at == GPUIR__OVERLAP) return c->bound;
    bound = gpuir__max32(bound, gpuir__block_bound(e, c, block));
    if (l->last[block] >= hi) break;
  }
  return bound;
}

/* Bounds what the other lists together add to any document of the driver block. */
static uint32_t gpuir__and_others_bound(const gpuir__engine *e, gpuir__and *x, uint32_t block) {
  const gpuir__list *driver = &e->cursors[x->order[0]].list;
  uint32_t lo = block ? driver->last[block - 1] + 1 : 0, sum = 0;
  unsigned i;
  for (i = 1; i < x->npositive; i++) {
    const gpuir__cursor *c = &e->cursors[x->order[i]];
    if (c->list.bounds && c->list.nblocks / GPUIR__OVERLAP <= driver->nblocks)
      sum += gpuir__range_bound(e, c, lo, driver->last[block], &x->overlap[i]);
    else
      sum += c->bound;
  }
  return sum;
}

/* Decodes a driver block and returns how many candidates it has: all its documents, or, with a threshold above 0, those
 * with the frequency that contributing as much takes. */
static uint32_t gpuir__and_candidates(gpuir__engine *e, gpuir__and *x, uint32_t block, uint32_t threshold) {
  gpuir__cursor *driver = &e->cursors[x->order[0]];
  uint32_t n;
  gpuir__cursor_load(driver, block);
  x->block = block;
  x->docs = driver->docs;
  x->is_chosen = threshold > 0;
  if (!threshold) return driver->n;
  gpuir__cursor_freqs(driver);
  n = e->kernels->frequent(driver->docs, driver->values, driver->n,
                           gpuir__least_frequency(&driver->scorer, driver->list.bounds[block], threshold),
                           x->chosen, x->chosen_freqs);
  gpuir__pad(x->chosen + n);
  x->docs = x->chosen;
  return n;
}

#ifndef GPUIR_NO_LAB
/* Finds the matches among n candidates by a method that takes all lists at once. */
static uint32_t gpuir__and_match_all(gpuir__engine *e, gpuir__and *x, uint32_t n) {
  gpuir__operand *o[GPUIR_MAX_TERMS], first;
  unsigned i;
  gpuir__operand_init(&first, NULL, e->lookups);
  first.docs = x->docs;
  first.n = n;
  o[0] = &first;
  for (i = 1; i < x->npositive; i++) o[i] = &e->operands[x->order[i]];
  n = e->intersection->all(o, x->npositive, x->other[0], x->where[0] ? x->where : NULL);
  (void)gpuir__engine_worked(e, GPUIR__LOOK_BLOCKS); /* each block of any list may have been decoded */
  gpuir__pad(x->other[0] + n);
  x->docs = x->other[0];
  return n;
}
#endif

/* Filters the candidates of a pass through one list, by vectors or by the method that was asked for. */
static uint32_t gpuir__and_filter(gpuir__engine *e, gpuir__operand *o, const gpuir__pass *p) {
#ifndef GPUIR_NO_LAB
  if (e->intersection) {
    const uint64_t before = o->cursor->decoded;
    const uint32_t found = e->intersection->list(o, p);
    (void)gpuir__engine_worked(e, o->cursor->decoded - before);
    return found;
  }
#endif
  return gpuir__engine_lookup(e, o, p);
}

/* Finds the matches among n candidates, list by list; returns their number. */
static uint32_t gpuir__and_match_each(gpuir__engine *e, gpuir__and *x, uint32_t n) {
  gpuir__pass p;
  unsigned i, t;
  uint32_t j;
  p.from = x->where[0] ? x->from : NULL;
  p.spare = x->spare;
  for (i = 1; i < x->npositive && n; i++) {
    p.candidates = x->docs;
    p.m = n;
    p.docs = x->other[i % 2];
    p.where = x->where[i];
    n = gpuir__and_filter(e, &e->operands[x->order[i]], &p);
    if (e->stopped) return 0;
    gpuir__pad(p.docs + n);
    for (t = 0; p.from && t < i; t++)
      for (j = 0; j < n; j++) x->where[t][j] = x->where[t][p.from[j]];
    x->docs = p.docs;
  }
  return n;
}

/* Finds the matches among n candidates: live documents that every list holds and no negated one does. */
static uint32_t gpuir__and_match(gpuir__engine *e, gpuir__and *x, uint32_t n) {
  uint32_t j;
  for (j = 0; x->where[0] && j < n; j++) x->where[0][j] = j;
#ifndef GPUIR_NO_LAB
  if (x->npositive > 1 && e->intersection && e->intersection->all)
    n = gpuir__and_match_all(e, x, n);
  else
#endif
    n = gpuir__and_match_each(e, x, n);
  if (n && x->npositive < e->ncursors) n = gpuir__and_exclude(e, x, n);
  return n && e->leaf.deleted ? gpuir__and_live(x, e->leaf.deleted, n) : n;
}

/* Fetches the frequencies, less one, of n of the matches in list i. */
static void gpuir__and_freqs(const gpuir__engine *e, const gpuir__and *x, unsigned i, const uint32_t *matches,
                             uint32_t n, uint32_t *freqs) {
  uint32_t at[GPUIR__BLOCK_ROOM], base = i ? 0 : x->block * GPUIR__BLOCK, j;
  if (!i && x->is_chosen) {
    for (j = 0; j < n; j++) freqs[j] = x->chosen_freqs[x->where[0][matches[j]]];
    return;
  }
  for (j = 0; j < n; j++) at[j] = base + x->where[i][matches[j]];
  gpuir__list_freqs_at(&e->cursors[x->order[i]].list, at, n, freqs);
}

/* Scores n matches of a driver block, list by list, and offers them to the top-k. A match that cannot enter even with
 * all that the lists to come may add is dropped before its frequencies there are fetched. */
static void gpuir__and_score(gpuir__engine *e, const gpuir__and *x, uint32_t n) {
  uint32_t docs[GPUIR__BLOCK_ROOM], matches[GPUIR__BLOCK_ROOM], freqs[GPUIR__BLOCK_ROOM];
  uint32_t sums[GPUIR__BLOCK_ROOM], values[GPUIR__BLOCK_ROOM];
  uint32_t threshold = gpuir__topk_threshold(&e->top), kept, j;
  unsigned i;
  gpuir__prefetch_lengths(e->leaf.seg->lengths, x->docs, n);
  for (j = 0; j < n; j++) {
    matches[j] = j;
    docs[j] = x->docs[j];
    sums[j] = 0;
  }
  for (i = 0; i < x->npositive && n; i++) {
    const gpuir__scorer *scorer = &e->cursors[x->order[i]].scorer;
    gpuir__and_freqs(e, x, i, matches, n, freqs);
    scorer->score(scorer, docs, freqs, n, values);
    e->info.postings_scored += n;
    for (j = kept = 0; j < n; j++) {
      uint32_t sum = sums[j] + values[j];
      if (sum + x->bound_after[i] < threshold) continue;
      sums[kept] = sum;
      matches[kept] = matches[j];
      docs[kept++] = docs[j];
    }
    n = kept;
  }
  for (j = 0; j < n; j++) gpuir__topk_push(&e->top, gpuir__key(sums[j], docs[j] + e->leaf.base));
}

/* Returns 1 if a driver block may hold a document of the top-k; *driver_threshold: what such a document's posting there
 * contributes at least. */
static int gpuir__and_is_wanted(const gpuir__engine *e, gpuir__and *x, uint32_t block,
                                uint32_t *driver_threshold) {
  const gpuir__cursor *driver = &e->cursors[x->order[0]];
  uint32_t threshold = gpuir__topk_threshold(&e->top), bound, others;
  *driver_threshold = 0;
  if (!driver->list.bounds) return 1;
  bound = gpuir__block_bound(e, driver, block);
  if (bound + x->bound_after[0] < threshold) return 0;
  others = gpuir__and_others_bound(e, x, block);
  if (threshold > others) *driver_threshold = threshold - others;
  return bound >= *driver_threshold;
}

/* Evaluates AND; with `count`, only counts its matches. A driver block whose bound, with all that the overlapping
 * blocks of the other lists can add, does not reach the threshold is skipped, and so are its postings that are not
 * frequent enough. */
static int gpuir__eval_and(gpuir__engine *e, unsigned npositive, uint64_t *count) {
  gpuir__and x;
  uint32_t block, nblocks, threshold = 0, n;
  int status = gpuir__and_prepare(e, &x, npositive, count == NULL);
  if (status) return status;
  nblocks = e->cursors[x.order[0]].list.nblocks;
  for (block = 0; block < nblocks; block++) {
    if (gpuir__engine_worked(e, 1)) return e->stopped;
    if (!count && !gpuir__and_is_wanted(e, &x, block, &threshold)) continue;
    n = gpuir__and_candidates(e, &x, block, threshold);
    n = n ? gpuir__and_match(e, &x, n) : 0;
    if (e->stopped) return e->stopped;
    if (count)
      *count += n;
    else if (n)
      gpuir__and_score(e, &x, n);
  }
  return GPUIR_OK;
}

/* ============================================================================
 * [21b-phrases]  phrases and prefixes
 *
 * A phrase has no list. Where every posting is wanted, one is made: the documents that hold all its terms are found by
 * [21-and], their positions compared, and what is left is a list like any other, with bounds, so that every evaluator
 * takes it. A prefix's list is made by adding up its terms'. Where all terms of a query are required, phrases are not
 * made into lists: gpuir__eval_phrases checks the positions of documents that hold all lists, and only of those that
 * may still enter the top-k.
 *
 * A document's score for a phrase is bounded by what any member of the phrase would contribute with the phrase's
 * weight, since the phrase is at most as frequent there as each of its terms; of these bounds the least is taken.
 *
 * Uses      [09b-positions], [20-engine], [21-and].
 * Start at  gpuir__terms_open, gpuir__eval_phrases, gpuir__phrase_frequency.
 * Tests     tests/unit/21b_phrases.c
 * ==========================================================================*/

/* ---- lists that are made ---- */

static void gpuir__raw_decode(const gpuir__stream *s, uint32_t block, uint32_t prev, uint32_t *out) {
  (void)prev;
  memcpy(out, s->bytes + (size_t)block * GPUIR__BLOCK * 4, (size_t)gpuir__block_count(s->n, block) * 4);
}

static uint32_t gpuir__raw_get(const gpuir__stream *s, uint32_t i) {
  return gpuir__load32(s->bytes + (size_t)i * 4);
}

/* The "codecs" of made lists: numbers as they are. No file has them. */
static const gpuir__codec gpuir__raw_docids = {
    "raw", 0, 1, 4, GPUIR__P_NONE, 0, 0, NULL, NULL, NULL, gpuir__raw_decode, gpuir__raw_get, NULL};
static const gpuir__codec gpuir__raw_freqs = {
    "raw", 0, 0, 4, GPUIR__P_NONE, 0, 0, NULL, NULL, NULL, gpuir__raw_decode, gpuir__raw_get, NULL};

/* A list in the making: docIDs ascend. */
typedef struct gpuir__made {
  gpuir__long *extent;
  uint32_t *docs, *freqs; /* [posting] frequencies less one */
  uint32_t *last;         /* [block] */
  gpuir__pair *bounds;    /* [block] GPUIR__BLOCK_PAIRS */
  uint32_t n;
} gpuir__made;

/* Makes room for a list of at most `most` postings for a term of the query. What is not used of it is not touched. */
static int gpuir__made_open(gpuir__engine *e, unsigned term, uint64_t most, gpuir__made *m) {
  const uint64_t blocks = most / GPUIR__BLOCK + 1, size = sizeof *m->extent + (2 * most + 2 * blocks) * 4;
  uint8_t *at;
  if (!e->rare.made)
    e->rare.made = (gpuir__buf *)gpuir__alloc_zero(&e->a, GPUIR_MAX_TERMS * sizeof *e->rare.made);
  at = e->rare.made && size < SIZE_MAX / 4 ? gpuir__buf_room(&e->a, &e->rare.made[term], (size_t)size) : NULL;
  if (!at) return gpuir__engine_fail(e, GPUIR_E_NOMEM, "out of memory");
  m->extent = (gpuir__long *)(void *)at;
  m->docs = (uint32_t *)(void *)(at + sizeof *m->extent);
  m->freqs = m->docs + most;
  m->last = m->freqs + most;
  m->bounds = (gpuir__pair *)(void *)(m->last + blocks);
  m->n = 0;
  return GPUIR_OK;
}

/* Takes the impacts of a list's postings, which bound them as those of a stored list do. 0, or why the search has to
 * stop. */
static int gpuir__made_bound(gpuir__engine *e, gpuir__made *m) {
  const uint32_t *lengths = e->leaf.seg->lengths;
  gpuir__front block, list;
  uint32_t i;
  gpuir__front_reset(&block);
  gpuir__front_reset(&list);
  for (i = 0; i < m->n; i++) {
    gpuir__front_add(&block, gpuir__code_up(gpuir__min32(m->freqs[i], GPUIR__CAP) + 1),
                     gpuir__code_down(lengths[m->docs[i]]));
    if (i % GPUIR__BLOCK != GPUIR__BLOCK - 1 && i + 1 < m->n) continue;
    m->last[i / GPUIR__BLOCK] = m->docs[i];
    gpuir__front_take(&block, &list, m->bounds + (size_t)(i / GPUIR__BLOCK) * GPUIR__BLOCK_PAIRS,
                      GPUIR__BLOCK_PAIRS);
    if (gpuir__engine_worked(e, 1)) return e->stopped;
  }
  gpuir__front_take(&list, NULL, m->extent->pairs, GPUIR__LIST_PAIRS);
  return GPUIR_OK;
}

/* Opens the made list, of one posting or more. */
static int gpuir__made_close(gpuir__engine *e, gpuir__made *m, gpuir__list *l) {
  const int status = gpuir__made_bound(e, m);
  memset(l, 0, sizeof *l);
  l->df = l->docs.n = l->freqs.n = m->n;
  l->nblocks = (m->n - 1) / GPUIR__BLOCK + 1;
  l->one_docid = m->docs[0];
  l->one_tf = gpuir__min32(m->freqs[0], UINT32_MAX - 1) + 1;
  l->last = l->docs.last = m->last;
  l->bounds = (const uint32_t *)(const void *)m->bounds;
  l->extent = m->extent;
  l->docs.codec = &gpuir__raw_docids;
  l->freqs.codec = &gpuir__raw_freqs;
  l->docs.bytes = (const uint8_t *)m->docs;
  l->freqs.bytes = (const uint8_t *)m->freqs;
  l->docs.len = l->freqs.len = (uint64_t)m->n * 4;
  l->docs.limit = (uint32_t)(e->leaf.seg->stat.documents - 1);
  l->freqs.limit = UINT32_MAX;
  l->docs.kernels = l->freqs.kernels = gpuir__codec_kernels_at(e->leaf.seg->simd);
  return status;
}

/* ---- prefixes: the frequencies of many lists are added up ---- */

/* Documents that are added up at a time. Their sums are 4 bytes each, which caches hold. */
#ifndef GPUIR__UNION_SHIFT
#define GPUIR__UNION_SHIFT 20u
#endif

/* The sums of a window of documents, and a bit for each that has one. Both are zeros between windows. */
typedef struct gpuir__union {
  uint32_t *sums;
  uint64_t *bits;
  uint32_t size, low; /* documents of a window; the current one's first */
  uint64_t postings;  /* of all lists */
} gpuir__union;

static int gpuir__union_open(gpuir__engine *e, gpuir__union *u) {
  const uint64_t documents = e->leaf.seg->stat.documents, most = (uint64_t)1 << GPUIR__UNION_SHIFT;
  gpuir__buf *buf = &e->rare.sums;
  size_t need;
  u->size = (uint32_t)((gpuir__min64(documents, most) + 63) & ~(uint64_t)63);
  u->postings = 0;
  need = (size_t)u->size * 4 + u->size / 8;
  if (buf->cap < need) {
    gpuir__buf_free(&e->a, buf);
    if (!gpuir__buf_room(&e->a, buf, need)) return gpuir__engine_fail(e, GPUIR_E_NOMEM, "out of memory");
    memset(buf->data, 0, buf->cap);
  }
  u->sums = (uint32_t *)(void *)buf->data;
  u->bits = (uint64_t *)(void *)(buf->data + (size_t)u->size * 4);
  return GPUIR_OK;
}

/* Adds a list's frequencies in the window. 0, or why the search has to stop. */
static int gpuir__union_add(gpuir__engine *e, gpuir__union *u, const gpuir__list *l) {
  uint32_t docs[GPUIR__BLOCK_ROOM], freqs[GPUIR__BLOCK_ROOM], block, i, n;
  for (block = gpuir__list_find_block(l, 0, u->low); block < l->nblocks; block++) {
    if (gpuir__engine_worked(e, 1)) return e->stopped;
    n = gpuir__list_docs(l, block, docs);
    gpuir__list_freqs(l, block, freqs);
    e->info.blocks_decoded++;
    for (i = 0; i < n; i++) {
      const uint32_t d = docs[i] - u->low;
      if (d >= u->size) continue;
      u->sums[d] = gpuir__min32(u->sums[d] + gpuir__min32(freqs[i], GPUIR__CAP - 1) + 1, GPUIR__CAP);
      u->bits[d >> 6] |= (uint64_t)1 << (d & 63);
    }
    if (n && docs[n - 1] >= u->low && docs[n - 1] - u->low >= u->size) break;
  }
  return GPUIR_OK;
}

/* Adds up the window that begins at document `low` of the lists [id, end). */
static int gpuir__union_window(gpuir__engine *e, gpuir__union *u, const gpuir__query_term *t, uint32_t id,
                               uint32_t end, uint32_t low) {
  int status = GPUIR_OK;
  u->low = low;
  for (; id < end && !status; id++) {
    gpuir__list l;
    status = gpuir__list_open(e->leaf.seg, &e->a, id, &l);
    if (status)
      return gpuir__fail(&e->error, status, 0, "%s: cannot open a list of \"%.*s*\": %s", e->leaf.seg->path,
                         t->len < 32 ? (int)t->len : 32, t->text, gpuir__list_why(e->leaf.seg, id, status));
    if (!low) {
      u->postings += l.df;
      e->info.blocks_total += l.nblocks;
    }
    status = gpuir__union_add(e, u, &l);
    gpuir__list_close(&e->a, &l);
  }
  return status;
}

/* Moves the window's documents to the list. */
static void gpuir__union_take(gpuir__union *u, gpuir__made *m) {
  uint32_t w;
  for (w = 0; w < u->size / 64; w++) {
    uint64_t left = u->bits[w];
    for (; left; left &= left - 1) {
      const uint32_t d = w * 64 + gpuir__ctz64(left);
      m->docs[m->n] = u->low + d;
      m->freqs[m->n++] = u->sums[d] - 1;
      u->sums[d] = 0;
    }
    u->bits[w] = 0;
  }
}

/* Makes the list of a prefix whose terms have the numbers [id, end) in the engine's leaf. */
static int gpuir__prefix_make(gpuir__engine *e, const gpuir_query *q, unsigned term, uint32_t id,
                              uint32_t end, gpuir__made *m) {
  const uint64_t documents = e->leaf.seg->stat.documents;
  uint64_t low;
  gpuir__union u;
  int status = gpuir__union_open(e, &u);
  for (low = 0; low < documents && !status; low += u.size) {
    status = gpuir__union_window(e, &u, &q->terms[term], id, end, (uint32_t)low);
    if (!status && !low) status = gpuir__made_open(e, term, gpuir__min64(u.postings, documents), m);
    if (!status) gpuir__union_take(&u, m);
  }
  if (status) gpuir__buf_free(&e->a, &e->rare.sums); /* it is not zeros any more */
  return status;
}

/* ---- phrases: the positions of one document ---- */

/* Chunks of a block that is indexed, at most: on the average 64 positions a posting. */
#ifndef GPUIR__QUICK_CHUNKS
#define GPUIR__QUICK_CHUNKS 256u
#endif
/* Positions that are laid out side by side, at most. */
#ifndef GPUIR__QUICK_KEYS
#define GPUIR__QUICK_KEYS 8192u
#endif

/* The block of a list in which postings' positions are looked for. Most blocks are small, and indexed when they are
 * opened; others are walked from front to back. Chunks [from, to) of an indexed block are summed up. */
typedef struct gpuir__place {
  uint32_t freqs[GPUIR__BLOCK_ROOM];    /* less one */
  uint32_t lasts[GPUIR__BLOCK_ROOM];    /* [posting] number of its last gap */
  uint32_t starts[GPUIR__QUICK_CHUNKS]; /* [chunk] bytes before it */
  const uint8_t *bytes;                 /* of the first chunk */
  int indexed;
  uint32_t from, to;
  gpuir__positions positions;
  uint64_t gap;                                          /* number of the first gap of: */
  uint32_t posting;                                      /* index in the block */
  uint32_t block;                                        /* GPUIR__NO_TERM: none */
  uint32_t sums[GPUIR__QUICK_CHUNKS * GPUIR__CHUNK + 8]; /* [gap] */
} gpuir__place;

/* One token of a phrase on its way through a document. */
typedef struct gpuir__token_walk {
  gpuir__occurrences o;
  uint32_t position; /* the current one; GPUIR_END behind the last */
  uint32_t offset;   /* of the token in the phrase */
  uint32_t freq;     /* less one */
} gpuir__token_walk;

/* Counts a chunk of gaps, or as many widths, and looks after some whether the search has to stop. */
static inline int gpuir__engine_chunk(gpuir__engine *e) {
  if (GPUIR__LIKELY(++e->rare.chunks < GPUIR__SKIP_CHUNKS / GPUIR__CHUNK)) return GPUIR_OK;
  e->rare.chunks = 0;
  return gpuir__engine_look(e);
}

/* Indexes a block of n postings, if it is small and its bytes are there. */
static int gpuir__place_index(gpuir__place *p, int simd, uint32_t n) {
  const uint32_t chunks = (uint32_t)gpuir__min64(p->positions.chunks, GPUIR__QUICK_CHUNKS + 1);
  uint32_t at = 0, wide = 0, rest, i;
  if (!chunks || chunks > GPUIR__QUICK_CHUNKS) return 0;
  memcpy(p->lasts, p->freqs, n * sizeof p->lasts[0]);
  gpuir__codec_kernels_at(simd)->sum_gaps(p->lasts, n, UINT32_MAX, UINT32_MAX);
  for (i = 0; i < chunks; i++) {
    p->starts[i] = at;
    at += p->positions.widths[i] * GPUIR__CHUNK_UNIT;
    wide |= p->positions.widths[i] > 32;
  }
  rest = (p->lasts[n - 1] + 1) % GPUIR__CHUNK;
  if (rest) at = p->starts[chunks - 1] + (uint32_t)gpuir__packed_size(rest, p->positions.widths[chunks - 1]);
  p->bytes = p->positions.bytes;
  p->from = p->to = 0;
  return !wide && at <= (size_t)(p->positions.end - p->bytes);
}

/* Goes to the block of posting number `at` of a list. 0, or why the search has to stop. */
static inline int gpuir__place_load(gpuir__engine *e, gpuir__place *p, const gpuir__list *l, uint32_t at) {
  const uint32_t block = at / GPUIR__BLOCK, n = gpuir__list_block_len(l, block);
  if (p->block == block) return GPUIR_OK;
  gpuir__list_freqs(l, block, p->freqs);
  gpuir__positions_open(&p->positions, l, block, p->freqs, n);
  p->block = block;
  p->posting = 0;
  p->gap = 0;
  p->indexed = gpuir__place_index(p, e->leaf.seg->simd, n);
  return gpuir__engine_worked(e, 1) ? e->stopped : GPUIR_OK;
}

/* Begins to walk the positions of posting number `at` of a list, in a document of `length` tokens. 0, or why the search
 * has to stop. */
static int gpuir__place_find(gpuir__engine *e, gpuir__place *p, const gpuir__list *l, uint32_t at,
                             uint32_t length, gpuir__token_walk *t) {
  const uint32_t posting = at % GPUIR__BLOCK;
  if (p->block == at / GPUIR__BLOCK && p->posting > posting) p->block = GPUIR__NO_TERM;
  if (gpuir__place_load(e, p, l, at)) return e->stopped;
  for (; p->posting < posting; p->posting++) p->gap += (uint64_t)p->freqs[p->posting] + 1;
  while (GPUIR__UNLIKELY(!gpuir__positions_seek(&p->positions, p->gap)))
    if (gpuir__engine_look(e)) return e->stopped;
  gpuir__occurrences_open(&t->o, &p->positions, p->gap, p->freqs[posting], length);
  t->freq = p->freqs[posting];
  t->position = gpuir__occurrences_next(&t->o);
  return GPUIR_OK;
}

/* Moves a token to its first position >= `to`; returns it. Stops at GPUIR_END when the search has to. */
static inline uint32_t gpuir__token_seek(gpuir__engine *e, gpuir__token_walk *t, uint64_t to) {
  while (t->position < to && t->position != GPUIR_END) {
    if (GPUIR__UNLIKELY(!t->o.here) && gpuir__engine_chunk(e)) return t->position = GPUIR_END;
    t->position = gpuir__occurrences_next(&t->o);
  }
  return t->position;
}

/* Counts where the n >= 2 tokens stand one behind the other. The first of them leads: the others follow to where its
 * position would want them. */
static uint32_t gpuir__tokens_meet(gpuir__engine *e, gpuir__token_walk *t, unsigned n) {
  uint32_t met = 0;
  unsigned j = 0;
  uint64_t begin = 0; /* the least place of the phrase that may be one */
  for (;;) {
    const uint32_t first = gpuir__token_seek(e, &t[0], begin + t[0].offset);
    if (first == GPUIR_END) return met;
    begin = first - t[0].offset;
    for (j = 1; j < n; j++) {
      const uint32_t at = gpuir__token_seek(e, &t[j], begin + t[j].offset);
      if (at == GPUIR_END) return met;
      if (at == begin + t[j].offset) continue;
      begin = at - t[j].offset;
      break;
    }
    if (j < n) continue;
    met++;
    begin++;
  }
}

/* A term of a query all of whose terms are required: a phrase, or a list of its own. */
typedef struct gpuir__clause {
  const gpuir__query_term *term;
  gpuir__scorer scorer;
  uint32_t bound;                 /* the most it can contribute */
  unsigned n;                     /* tokens of a phrase; 1: a list */
  uint8_t list[GPUIR_MAX_TERMS];  /* [token] number of its list */
  uint8_t order[GPUIR_MAX_TERMS]; /* of a phrase, its tokens, those of the shortest list first */
} gpuir__clause;

/* The positions of a phrase's tokens in the matches of a driver block, as keys: matches follow one another as if they
 * were one document, and a key is the place where the phrase would end. */
typedef struct gpuir__phrase_room {
  uint32_t starts[GPUIR__BLOCK_ROOM + 1]; /* [match] its first key, and behind the last one */
  uint32_t some[GPUIR__BLOCK_ROOM];       /* matches that are still in question */
  uint32_t keys[3][GPUIR__QUICK_KEYS +
                   16]; /* the places that are left, a token's, and those of both; UINT32_MAX behind */
} gpuir__phrase_room;

/* All lists must hold a document, and each phrase must stand in it. Lists have the numbers of their cursors. */
typedef struct gpuir__phrases {
  gpuir__engine *e;
  gpuir__and and_;
  unsigned nlists, nclauses, nphrases; /* phrases are the last clauses */
  gpuir__place *places;                /* [list] */
  gpuir__phrase_room *room;
  unsigned rank[GPUIR_MAX_TERMS];     /* [list] its number from short to long: see gpuir__and */
  float whole[GPUIR_MAX_TERMS];       /* [list] the saturation that bounds it */
  float here[GPUIR_MAX_TERMS];        /* [list] the same within the documents of the driver block */
  uint32_t chosen[GPUIR__BLOCK_ROOM]; /* [candidate] index in the driver block */
  gpuir__clause clauses[GPUIR_MAX_TERMS];
} gpuir__phrases;

/* Returns the index in a list of a match of the driver block. */
static inline uint32_t gpuir__phrases_at(const gpuir__phrases *p, unsigned list, uint32_t match) {
  const gpuir__and *x = &p->and_;
  const unsigned i = p->rank[list];
  return i ? x->where[i][match] : x->block * GPUIR__BLOCK + p->chosen[x->where[0][match]];
}

/* ---- phrases: the positions of a driver block's matches ---- */

/* Sums up the chunks of an indexed block that hold gaps [gap, end). */
static inline void gpuir__place_sum(gpuir__place *p, uint32_t gap, uint32_t end, gpuir__chunk_sums sum) {
  const uint32_t first = gap / GPUIR__CHUNK, last = (end - 1) / GPUIR__CHUNK;
  if (GPUIR__LIKELY(first >= p->from && last < p->to)) return;
  if (first < p->from || first > p->to) p->from = p->to = first;
  for (; p->to <= last; p->to++) {
    const uint32_t prev = p->to > p->from ? p->sums[p->to * GPUIR__CHUNK - 1] : UINT32_MAX;
    sum(p->bytes + p->starts[p->to], p->positions.widths[p->to], prev, p->sums + p->to * GPUIR__CHUNK);
  }
}

/* Writes x + plus of n numbers x, none less than `low` or greater than `high`; up to 7 more are written. */
typedef void (*gpuir__lay)(const uint32_t *x, uint32_t n, uint32_t plus, uint32_t low, uint32_t high,
                           uint32_t *to);

GPUIR__INLINE void gpuir__lay_scalar(const uint32_t *x, uint32_t n, uint32_t plus, uint32_t low,
                                     uint32_t high, uint32_t *to) {
  uint32_t i;
  for (i = 0; i < n; i++) to[i] = gpuir__min32(gpuir__max32(x[i] + plus, low), high);
}

#if GPUIR__X86
GPUIR__AVX2 GPUIR__INLINE void gpuir__lay_avx2(const uint32_t *x, uint32_t n, uint32_t plus, uint32_t low,
                                               uint32_t high, uint32_t *to) {
  const __m256i add = _mm256_set1_epi32((int)plus), least = _mm256_set1_epi32((int)low),
                most = _mm256_set1_epi32((int)high);
  uint32_t i = 0;
  do {
    const __m256i v = _mm256_max_epu32(_mm256_add_epi32(gpuir__avx2_load(x + i), add), least);
    gpuir__avx2_store(to + i, _mm256_min_epu32(v, most));
  } while ((i += 8) < n);
}
#endif

/* Lays out a token's keys in some[0..n) of the matches index[]. Returns how many, or UINT32_MAX if there are too many,
 * a block is not indexed, or the search has to stop. Keys of a damaged file may be any of their match's. */
GPUIR__INLINE uint32_t gpuir__token_lay(gpuir__phrases *p, const gpuir__clause *c, unsigned token,
                                        const uint32_t *index, uint32_t n, uint32_t *keys,
                                        gpuir__chunk_sums sum, gpuir__lay lay) {
  const gpuir__phrase_room *r = p->room;
  const unsigned list = c->list[token];
  gpuir__place *place = &p->places[list];
  const uint32_t plus = c->n - 1 - token;
  uint32_t i, used = 0;
  for (i = 0; i < n; i++) {
    const uint32_t j = r->some[i], at = gpuir__phrases_at(p, list, index[j]), posting = at % GPUIR__BLOCK;
    const uint32_t low = r->starts[j] + plus, high = r->starts[j + 1] - c->n + plus;
    uint32_t gap, end;
    if (gpuir__place_load(p->e, place, &p->e->cursors[list].list, at)) return UINT32_MAX;
    if (GPUIR__UNLIKELY(!place->indexed)) return UINT32_MAX;
    gap = posting ? place->lasts[posting - 1] + 1 : 0;
    end = place->lasts[posting] + 1;
    if (GPUIR__UNLIKELY(end - gap > GPUIR__QUICK_KEYS - used)) return UINT32_MAX;
    gpuir__place_sum(place, gap, end, sum);
    lay(place->sums + gap, end - gap,
        low - (gap == place->from * GPUIR__CHUNK ? 0 : place->sums[gap - 1] + 1), low, high, keys + used);
    used += end - gap;
  }
  return used;
}

static uint32_t gpuir__token_lay_scalar(gpuir__phrases *p, const gpuir__clause *c, unsigned token,
                                        const uint32_t *index, uint32_t n, uint32_t *keys) {
  return gpuir__token_lay(p, c, token, index, n, keys, gpuir__chunk_sums_scalar, gpuir__lay_scalar);
}

#if GPUIR__X86
GPUIR__AVX2 static uint32_t gpuir__token_lay_avx2(gpuir__phrases *p, const gpuir__clause *c, unsigned token,
                                                  const uint32_t *index, uint32_t n, uint32_t *keys) {
  return gpuir__token_lay(p, c, token, index, n, keys, gpuir__chunk_sums_avx2, gpuir__lay_avx2);
}
#endif

/* Writes to both[] those of a[0..n) that b[0..m) has, both ascending; returns how many. Moves without branches: which
 * of the two is less cannot be foretold. */
static uint32_t gpuir__keys_meet(const uint32_t *a, uint32_t n, const uint32_t *b, uint32_t m,
                                 uint32_t *both) {
  uint32_t i = 0, j = 0, met = 0;
  while (i < n && j < m) {
    const uint32_t x = a[i], y = b[j];
    both[met] = x;
    met += x == y;
    i += x <= y;
    j += y <= x;
  }
  return met;
}

#if GPUIR__X86
/* The same by registers. UINT32_MAX stands 16 times behind a and b. */
static uint32_t gpuir__keys_meet_avx2(const uint32_t *a, uint32_t n, const uint32_t *b, uint32_t m,
                                      uint32_t *both) {
  gpuir__pass pass;
  gpuir__merge merge = {NULL, NULL, 0, 0, 0, 0, 1};
  memset(&pass, 0, sizeof pass);
  pass.candidates = a;
  pass.m = n;
  pass.docs = both;
  merge.pass = &pass;
  merge.docs = b;
  merge.n = m;
  return gpuir__merge_avx2(&merge, 0);
}
#endif

/* What phrases do at a SIMD level: see gpuir__token_lay and gpuir__keys_meet. */
typedef struct gpuir__phrase_kernels {
  uint32_t (*lay)(gpuir__phrases *p, const gpuir__clause *c, unsigned token, const uint32_t *index,
                  uint32_t n, uint32_t *keys);
  uint32_t (*meet)(const uint32_t *a, uint32_t n, const uint32_t *b, uint32_t m, uint32_t *both);
} gpuir__phrase_kernels;

static const gpuir__phrase_kernels gpuir__phrase_of_level[] = {
    {gpuir__token_lay_scalar, gpuir__keys_meet},
#if GPUIR__X86
    {gpuir__token_lay_avx2, gpuir__keys_meet_avx2},
    {gpuir__token_lay_avx2, gpuir__keys_meet_avx2},
#endif
};

/* Lists in some[] the matches that have one of n keys; returns how many. */
static uint32_t gpuir__keys_matches(gpuir__phrase_room *r, const uint32_t *keys, uint32_t n) {
  uint32_t i, j = 0, some = 0;
  for (i = 0; i < n; i++) {
    if (keys[i] < r->starts[j]) continue; /* one more of the match before */
    while (keys[i] >= r->starts[j + 1]) j++;
    r->some[some++] = j++;
  }
  return some;
}

/* Numbers the keys of n matches, docs[]; returns 0 if they are too many. */
static int gpuir__phrase_number(const gpuir__phrases *p, const gpuir__clause *c, const uint32_t *docs,
                                uint32_t n) {
  const uint32_t *lengths = p->e->leaf.seg->lengths;
  uint64_t start = 0;
  uint32_t j;
  for (j = 0; j < n; j++) {
    p->room->starts[j] = (uint32_t)start;
    p->room->some[j] = j;
    start += (uint64_t)gpuir__max32(lengths[docs[j]], 1) + c->n - 1;
  }
  p->room->starts[n] = (uint32_t)start;
  return start <= INT32_MAX;
}

/* Fills tfs[] with how often a phrase stands in each of n matches, token by token, the rarest first: only matches that
 * are left are looked at further. Returns 0, with nothing filled, where gpuir__token_lay cannot lay them out. */
static int gpuir__phrase_quick(gpuir__phrases *p, const gpuir__clause *c, const uint32_t *index,
                               const uint32_t *docs, uint32_t n, uint32_t *tfs) {
  gpuir__phrase_room *r = p->room;
  const gpuir__phrase_kernels *kernels = &gpuir__phrase_of_level[p->e->leaf.seg->simd - GPUIR_SIMD_SCALAR];
  uint32_t *left = r->keys[0], *other = r->keys[1], *both = r->keys[2], found = 0, some = n, i, j = 0;
  unsigned t;
  if (!gpuir__phrase_number(p, c, docs, n)) return 0;
  for (t = 0; t < c->n && (!t || found); t++) {
    uint32_t *to = t ? other : left;
    const uint32_t m = kernels->lay(p, c, c->order[t], index, some, to);
    if (m == UINT32_MAX || gpuir__engine_worked(p->e, 1)) return 0;
    gpuir__pad(to + m);
    found = t ? kernels->meet(left, found, other, m, both) : m;
    if (!t) continue;
    to = left;
    left = both;
    both = to;
    gpuir__pad(left + found);
    if (t + 1 < c->n) some = gpuir__keys_matches(r, left, found);
  }
  memset(tfs, 0, n * sizeof *tfs);
  for (i = 0; i < found; i++) {
    while (left[i] >= r->starts[j + 1]) j++;
    tfs[j]++;
  }
  return 1;
}

/* Returns how often a phrase stands in a match, whatever its blocks are like. Rare tokens come first. 0 also when the
 * search has to stop. */
static uint32_t gpuir__phrase_walk(gpuir__phrases *p, const gpuir__clause *c, uint32_t match,
                                   uint32_t length) {
  gpuir__token_walk tokens[GPUIR_MAX_TERMS], t;
  unsigned i, j;
  for (i = 0; i < c->n; i++) {
    const unsigned list = c->list[i];
    if (gpuir__place_find(p->e, &p->places[list], &p->e->cursors[list].list,
                          gpuir__phrases_at(p, list, match), length, &t))
      return 0;
    t.offset = i;
    for (j = i; j && tokens[j - 1].freq > t.freq; j--) tokens[j] = tokens[j - 1];
    tokens[j] = t;
  }
  i = gpuir__tokens_meet(p->e, tokens, c->n);
  return p->e->stopped ? 0 : i;
}

/* Fills tfs[] with how often a phrase stands in each of n matches. What cannot be laid out at once is halved, and a
 * single match walked. */
static void gpuir__phrase_frequencies(gpuir__phrases *p, const gpuir__clause *c, const uint32_t *index,
                                      const uint32_t *docs, uint32_t n, uint32_t *tfs) {
  uint32_t j, step = n;
  for (j = 0; j < n && !p->e->stopped; j += step) {
    step = gpuir__min32(step, n - j);
    while (!p->e->stopped && !gpuir__phrase_quick(p, c, index + j, docs + j, step, tfs + j)) {
      if (step > 1) {
        step = (step + 1) / 2;
        continue;
      }
      tfs[j] = gpuir__phrase_walk(p, c, index[j], p->e->leaf.seg->lengths[docs[j]]);
      break;
    }
  }
  if (p->e->stopped) memset(tfs, 0, n * sizeof *tfs);
}

/* Bounds what a clause adds by the saturations of lists. */
static uint32_t gpuir__clause_bound(const gpuir__clause *c, const float *saturation) {
  float least = saturation[c->list[0]];
  unsigned i;
  for (i = 1; i < c->n; i++)
    if (saturation[c->list[i]] < least) least = saturation[c->list[i]];
  return gpuir__bound(c->scorer.weight, least, c->scorer.q);
}

/* Bounds the saturations of a list in any document from lo to hi, by its blocks there, which are sought from *at on. */
static float gpuir__range_saturation(const gpuir__phrases *p, unsigned list, uint32_t lo, uint32_t hi,
                                     uint32_t *at) {
  const gpuir__list *l = &p->e->cursors[list].list;
  uint32_t block;
  float most = 0;
  *at = gpuir__list_find_block(l, *at, lo);
  for (block = *at; block < l->nblocks; block++) {
    const float s = gpuir__block_saturation(p->e->saturation, l->bounds[block]);
    if (block - *at == GPUIR__OVERLAP) return p->whole[list];
    if (s > most) most = s;
    if (l->last[block] >= hi) break;
  }
  return most;
}

/* Bounds the saturations of all lists in the driver block's documents. */
static void gpuir__phrases_look(gpuir__phrases *p, uint32_t block) {
  gpuir__and *x = &p->and_;
  const gpuir__list *driver = &p->e->cursors[x->order[0]].list;
  const uint32_t lo = block ? driver->last[block - 1] + 1 : 0, hi = driver->last[block];
  unsigned i;
  p->here[x->order[0]] = gpuir__block_saturation(p->e->saturation, driver->bounds[block]);
  for (i = 1; i < p->nlists; i++) {
    const unsigned list = x->order[i];
    const gpuir__list *l = &p->e->cursors[list].list;
    p->here[list] = l->bounds && l->nblocks / GPUIR__OVERLAP <= driver->nblocks
                        ? gpuir__range_saturation(p, list, lo, hi, &x->overlap[i])
                        : p->whole[list];
  }
}

/* Returns 0 if no document of a driver block can enter the top-k, otherwise 1. *least: the frequency, less one, that
 * the driver's posting must have. */
static int gpuir__phrases_is_wanted(gpuir__phrases *p, uint32_t block, uint32_t *least) {
  const unsigned driver = p->and_.order[0];
  const gpuir__list *l = &p->e->cursors[driver].list;
  const uint32_t threshold = gpuir__topk_threshold(&p->e->top);
  uint32_t sum = 0, bound;
  unsigned i, j;
  *least = 0;
  if (!l->bounds || threshold <= 1) return 1;
  gpuir__phrases_look(p, block);
  for (i = 0; i < p->nclauses; i++) sum += gpuir__clause_bound(&p->clauses[i], p->here);
  if (sum < threshold) return 0;
  for (i = 0; i < p->nclauses; i++) {
    const gpuir__clause *c = &p->clauses[i];
    for (j = 0; j < c->n && c->list[j] != driver; j++) {}
    if (j == c->n) continue;
    bound = sum - gpuir__clause_bound(c, p->here); /* what all others add */
    if (threshold > bound)
      *least = gpuir__max32(*least, gpuir__least_frequency(&c->scorer, l->bounds[block], threshold - bound));
  }
  return 1;
}

/* Takes the documents of a driver block whose frequency reaches `least` as candidates; returns their number. */
static uint32_t gpuir__phrases_candidates(gpuir__phrases *p, uint32_t block, uint32_t least) {
  gpuir__and *x = &p->and_;
  gpuir__cursor *driver = &p->e->cursors[x->order[0]];
  uint32_t i, n = 0;
  gpuir__cursor_load(driver, block);
  x->block = block;
  x->docs = driver->docs;
  if (!least) {
    for (i = 0; i < driver->n; i++) p->chosen[i] = i;
    return driver->n;
  }
  gpuir__cursor_freqs(driver);
  for (i = 0; i < driver->n; i++) {
    x->chosen[n] = driver->docs[i];
    p->chosen[n] = i;
    n += driver->values[i] >= least;
  }
  gpuir__pad(x->chosen + n);
  x->docs = x->chosen;
  return n;
}

/* Fetches the frequencies, less one, of n matches: a list's, or the least of a phrase's terms. */
static void gpuir__clause_freqs(const gpuir__phrases *p, const gpuir__clause *c, const uint32_t *matches,
                                uint32_t n, uint32_t *freqs) {
  uint32_t at[GPUIR__BLOCK_ROOM], other[GPUIR__BLOCK_ROOM], j;
  unsigned i, before;
  for (i = 0; i < c->n; i++) {
    for (before = 0; before < i && c->list[before] != c->list[i]; before++) {}
    if (before < i) continue; /* the term stands in the phrase more than once */
    for (j = 0; j < n; j++) at[j] = gpuir__phrases_at(p, c->list[i], matches[j]);
    gpuir__list_freqs_at(&p->e->cursors[c->list[i]].list, at, n, i ? other : freqs);
    for (j = 0; i && j < n; j++) freqs[j] = gpuir__min32(freqs[j], other[j]);
  }
}

/* The matches of a driver block while they are scored. */
typedef struct gpuir__matches {
  uint32_t n;
  uint32_t docs[GPUIR__BLOCK_ROOM], index[GPUIR__BLOCK_ROOM]; /* index: among the matches of gpuir__and */
  uint32_t sums[GPUIR__BLOCK_ROOM], freqs[GPUIR__BLOCK_ROOM], values[GPUIR__BLOCK_ROOM];
} gpuir__matches;

/* Keeps match j as number `to`. */
static inline void gpuir__matches_keep(gpuir__matches *m, uint32_t to, uint32_t j) {
  m->docs[to] = m->docs[j];
  m->index[to] = m->index[j];
  m->sums[to] = m->sums[j];
  m->freqs[to] = m->freqs[j];
}

/* Drops the matches in which a phrase does not stand, and puts its frequencies, less one, in place of the bounds that
 * freqs[] has. A match that could not enter with these, given what the other clauses can add, is not looked at. */
static void gpuir__matches_check(gpuir__phrases *p, const gpuir__clause *c, gpuir__matches *m,
                                 uint32_t others, uint32_t threshold) {
  uint32_t tfs[GPUIR__BLOCK_ROOM], j, kept = 0;
  for (j = 0; j < m->n; j++) {
    const uint32_t bound = m->values[j] + (m->values[j] >> 21) + 2 * c->scorer.q;
    if (m->sums[j] + bound + others >= threshold) gpuir__matches_keep(m, kept++, j);
  }
  m->n = kept;
  gpuir__phrase_frequencies(p, c, m->index, m->docs, m->n, tfs);
  for (j = kept = 0; j < m->n; j++) {
    if (!tfs[j]) continue;
    gpuir__matches_keep(m, kept, j);
    m->freqs[kept++] = tfs[j] - 1;
  }
  m->n = p->e->stopped ? 0 : kept;
}

/* Scores n matches of a driver block, clause by clause, and offers them to the top-k. */
static void gpuir__phrases_score(gpuir__phrases *p, uint32_t n) {
  gpuir__engine *e = p->e;
  const uint32_t threshold = gpuir__topk_threshold(&e->top);
  uint32_t others = 0, j, kept;
  gpuir__matches m;
  unsigned i;
  gpuir__prefetch_lengths(e->leaf.seg->lengths, p->and_.docs, n);
  for (m.n = 0; m.n < n; m.n++) {
    m.index[m.n] = m.n;
    m.docs[m.n] = p->and_.docs[m.n];
    m.sums[m.n] = 0;
  }
  for (i = 0; i < p->nclauses; i++) others += p->clauses[i].bound;
  for (i = 0; i < p->nclauses && m.n; i++) {
    const gpuir__clause *c = &p->clauses[i];
    others -= c->bound;
    gpuir__clause_freqs(p, c, m.index, m.n, m.freqs);
    c->scorer.score(&c->scorer, m.docs, m.freqs, m.n, m.values);
    if (c->n > 1) {
      gpuir__matches_check(p, c, &m, others, threshold);
      c->scorer.score(&c->scorer, m.docs, m.freqs, m.n, m.values);
    }
    e->info.postings_scored += m.n;
    for (j = kept = 0; j < m.n; j++) {
      if (m.sums[j] + m.values[j] + others < threshold) continue;
      m.sums[j] += m.values[j];
      gpuir__matches_keep(&m, kept++, j);
    }
    m.n = kept;
  }
  for (j = 0; j < m.n; j++) gpuir__topk_push(&e->top, gpuir__key(m.sums[j], m.docs[j] + e->leaf.base));
}

/* Counts those of n matches in which each phrase stands. */
static uint64_t gpuir__phrases_count(gpuir__phrases *p, uint32_t n) {
  uint32_t index[GPUIR__BLOCK_ROOM], docs[GPUIR__BLOCK_ROOM], tfs[GPUIR__BLOCK_ROOM], j, kept;
  unsigned i;
  for (j = 0; j < n; j++) {
    index[j] = j;
    docs[j] = p->and_.docs[j];
  }
  for (i = p->nclauses - p->nphrases; i < p->nclauses && n; i++) {
    gpuir__phrase_frequencies(p, &p->clauses[i], index, docs, n, tfs);
    for (j = kept = 0; j < n; j++) {
      index[kept] = index[j];
      docs[kept] = docs[j];
      kept += tfs[j] > 0;
    }
    n = kept;
  }
  return p->e->stopped ? 0 : n;
}

/* ---- phrases: evaluation ---- */

/* Sorts the tokens of a clause by their lists' lengths. */
static void gpuir__clause_order(const gpuir__phrases *p, gpuir__clause *c) {
  unsigned i, j;
  for (i = 0; i < c->n; i++) {
    for (j = i; j && p->rank[c->list[c->order[j - 1]]] > p->rank[c->list[i]]; j--)
      c->order[j] = c->order[j - 1];
    c->order[j] = (uint8_t)i;
  }
}

/* Prepares lists and places; the clauses are there, and their lists' cursors are the first. */
static int gpuir__phrases_prepare(gpuir__phrases *p) {
  gpuir__engine *e = p->e;
  unsigned i;
  int status = gpuir__and_prepare(e, &p->and_, p->nlists, 1);
  if (status) return status;
  e->rare.places.len = 0;
  p->places = (gpuir__place *)(void *)gpuir__buf_room(&e->a, &e->rare.places,
                                                      sizeof *p->room + p->nlists * sizeof *p->places);
  if (!p->places) return gpuir__engine_fail(e, GPUIR_E_NOMEM, "out of memory");
  p->room = (gpuir__phrase_room *)(void *)(p->places + p->nlists); /* behind: it is aligned to 4 bytes only */
  for (i = 0; i < p->nlists; i++) {
    p->places[i].block = GPUIR__NO_TERM;
    p->rank[p->and_.order[i]] = i;
    p->whole[i] = gpuir__list_saturation(e->saturation, &e->cursors[i].list);
  }
  for (i = 0; i < p->nclauses; i++) {
    p->clauses[i].bound = gpuir__clause_bound(&p->clauses[i], p->whole);
    gpuir__clause_order(p, &p->clauses[i]);
  }
  return GPUIR_OK;
}

/* Makes a clause of a term whose list, or a phrase of which a token's list, has number `list`. */
static void gpuir__clause_make(gpuir__phrases *p, const gpuir_query *q, const gpuir__query_term *t,
                               unsigned list) {
  gpuir__clause *c = &p->clauses[p->nclauses++];
  c->term = t;
  c->n = 1;
  c->list[0] = (uint8_t)list;
  c->scorer.lengths = p->e->leaf.seg->lengths;
  c->scorer.norm = q->norm;
  c->scorer.weight = t->weight;
  c->scorer.q = t->q;
  c->scorer.score = p->e->score;
}

/* Makes a clause of a phrase, and opens the lists of those of its terms that member_list[] does not have yet. *missing
 * becomes 1 if the leaf lacks one. */
static int gpuir__clause_phrase(gpuir__phrases *p, const gpuir_query *q, size_t leaf,
                                const gpuir__query_term *t, uint8_t *member_list, int *missing) {
  gpuir__engine *e = p->e;
  unsigned i;
  gpuir__clause_make(p, q, t, 0);
  p->nphrases++;
  for (i = 0; i < t->tokens; i++) {
    const unsigned member = q->phrases->tokens[t->first + i];
    const uint32_t id = gpuir__query_member_id(q, leaf, member);
    int status;
    if (id == GPUIR__NO_TERM) {
      *missing = 1;
      return GPUIR_OK;
    }
    if (member_list[member] == UINT8_MAX) {
      status = gpuir__engine_open_list(e, &q->phrases->members[member], id);
      if (status) return status;
      member_list[member] = (uint8_t)e->ncursors;
      gpuir__engine_add(e, q, &q->phrases->members[member]);
      p->nlists++;
    }
    p->clauses[p->nclauses - 1].list[i] = member_list[member];
  }
  p->clauses[p->nclauses - 1].n = t->tokens;
  return GPUIR_OK;
}

/* Moves what a phrase's matches in a block are to a list. */
static void gpuir__phrase_take(gpuir__phrases *p, uint32_t n, gpuir__made *m) {
  uint32_t index[GPUIR__BLOCK_ROOM], tfs[GPUIR__BLOCK_ROOM], j;
  for (j = 0; j < n; j++) index[j] = j;
  gpuir__phrase_frequencies(p, p->clauses, index, p->and_.docs, n, tfs);
  for (j = 0; j < n; j++) {
    m->docs[m->n] = p->and_.docs[j];
    m->freqs[m->n] = tfs[j] - 1;
    m->n += tfs[j] > 0;
  }
}

/* Makes a phrase's list, of cursors that begin at e->cursors[0]. */
static int gpuir__phrase_make_alone(gpuir__engine *e, const gpuir_query *q, size_t leaf, unsigned term,
                                    gpuir__made *m) {
  uint8_t member_list[GPUIR_MAX_TERMS];
  gpuir__phrases p;
  uint32_t block, n;
  int status, missing = 0;
  memset(member_list, UINT8_MAX, sizeof member_list);
  p.e = e;
  p.nlists = p.nclauses = p.nphrases = 0;
  status = gpuir__clause_phrase(&p, q, leaf, &q->terms[term], member_list, &missing);
  m->n = 0;
  if (status || missing) return status;
  status = gpuir__phrases_prepare(&p);
  if (!status) status = gpuir__made_open(e, term, e->cursors[p.and_.order[0]].list.df, m);
  for (block = 0; !status && block < e->cursors[p.and_.order[0]].list.nblocks; block++) {
    if (gpuir__engine_worked(e, 1)) return e->stopped;
    n = gpuir__and_match(e, &p.and_, gpuir__phrases_candidates(&p, block, 0));
    if (!e->stopped) gpuir__phrase_take(&p, n, m);
    status = e->stopped;
  }
  return status;
}

/* Makes a phrase's list. Its terms' cursors are opened behind room for those of the query's terms, and closed. */
static int gpuir__phrase_make(gpuir__engine *e, const gpuir_query *q, size_t leaf, unsigned term,
                              gpuir__made *m) {
  const unsigned ncursors = e->ncursors, aside = q->n + q->phrases->nmembers;
  int status;
  e->cursors += aside;
  e->operands += aside;
#ifndef GPUIR_NO_LAB
  if (e->prepared) e->prepared += aside;
#endif
  e->ncursors = 0;
  status = gpuir__phrase_make_alone(e, q, leaf, term, m);
  gpuir__engine_reset(e);
  e->cursors -= aside;
  e->operands -= aside;
#ifndef GPUIR_NO_LAB
  if (e->prepared) e->prepared -= aside;
#endif
  e->ncursors = ncursors;
  return status;
}

/* Opens the list of a term, which may have to be made, behind the cursors that are open; without one in the leaf it
 * opens none. */
static int gpuir__term_open(gpuir__engine *e, const gpuir_query *q, size_t leaf, unsigned term) {
  const gpuir__query_term *t = &q->terms[term];
  const uint32_t id = t->kind == GPUIR__PHRASE ? 0 : gpuir__query_id(q, leaf, term);
  gpuir__made m;
  int status;
  e->rare.cursor_of[term] = GPUIR__NO_TERM;
  if (!t->df || id == GPUIR__NO_TERM) return GPUIR_OK;
  if (t->kind == GPUIR__WORD || (t->kind == GPUIR__PREFIX && gpuir__query_end(q, leaf, term) == id + 1)) {
    status = gpuir__engine_open_list(e, t, id);
  } else {
    status = t->kind == GPUIR__PHRASE
                 ? gpuir__phrase_make(e, q, leaf, term, &m)
                 : gpuir__prefix_make(e, q, term, id, gpuir__query_end(q, leaf, term), &m);
    if (!status && !m.n) return GPUIR_OK;
    if (!status) status = gpuir__made_close(e, &m, &e->cursors[e->ncursors].list);
  }
  if (status) return status;
  e->rare.cursor_of[term] = e->ncursors;
  gpuir__engine_add(e, q, t);
  return GPUIR_OK;
}

/* Turns to a leaf with room for the cursors of a query with phrases. */
static int gpuir__phrases_turn(gpuir__engine *e, const gpuir_query *q, size_t leaf) {
  return gpuir__engine_turn(e, q, leaf, q->n + (q->phrases ? 2 * q->phrases->nmembers : 0));
}

/* Turns to a leaf: opens a cursor on each term of the query that it has, positive ones first (in the query's order);
 * *npositive is their number. */
static int gpuir__terms_open(gpuir__engine *e, const gpuir_query *q, size_t leaf, unsigned *npositive) {
  unsigned i;
  int status;
  if (!q->nphrases && !q->nprefixes) return gpuir__engine_open(e, q, leaf, npositive);
  status = gpuir__phrases_turn(e, q, leaf);
  *npositive = 0;
  for (i = 0; i < q->n && !status; i++) {
    const unsigned before = e->ncursors;
    status = gpuir__term_open(e, q, leaf, i);
    *npositive += e->ncursors > before && !q->terms[i].negated;
  }
  return status;
}

/* Lets phrases use the list of a word that is one of their terms: there are never more lists than distinct terms. */
static void gpuir__phrases_share(const gpuir_query *q, size_t leaf, unsigned term, unsigned list,
                                 uint8_t *member_list) {
  unsigned i;
  for (i = 0; i < q->phrases->nmembers; i++)
    if (gpuir__query_member_id(q, leaf, i) == gpuir__query_id(q, leaf, term)) member_list[i] = (uint8_t)list;
}

/* Opens the lists of a query all of whose terms are required, phrases' terms among them, and those that exclude.
 * *missing becomes 1 if the leaf lacks one. */
static int gpuir__phrases_open(gpuir__phrases *p, gpuir__engine *e, const gpuir_query *q, size_t leaf,
                               int *missing) {
  uint8_t member_list[GPUIR_MAX_TERMS];
  unsigned i;
  int status = gpuir__phrases_turn(e, q, leaf);
  memset(member_list, UINT8_MAX, sizeof member_list);
  p->e = e;
  p->nlists = p->nclauses = p->nphrases = 0;
  for (i = 0; i < q->npositive && !status && !*missing; i++) {
    if (q->terms[i].kind == GPUIR__PHRASE) continue;
    status = gpuir__term_open(e, q, leaf, i);
    *missing = e->ncursors == p->nlists;
    if (q->terms[i].kind == GPUIR__WORD) gpuir__phrases_share(q, leaf, i, p->nlists, member_list);
    gpuir__clause_make(p, q, &q->terms[i], p->nlists++);
  }
  for (i = 0; i < q->npositive && !status && !*missing; i++)
    if (q->terms[i].kind == GPUIR__PHRASE)
      status = gpuir__clause_phrase(p, q, leaf, &q->terms[i], member_list, missing);
  for (i = q->npositive; i < q->n && !status && !*missing; i++) status = gpuir__term_open(e, q, leaf, i);
  return status;
}

/* Returns 1 if a query in a mode is one for gpuir__eval_phrases: it has phrases, and all of its terms are required. */
static int gpuir__phrases_are_required(const gpuir__engine *e, const gpuir_query *q, int mode) {
  unsigned i;
  if (!q->nphrases || e->evaluator == GPUIR_EVAL_EXHAUSTIVE || (mode == GPUIR_OR && q->npositive > 1))
    return 0;
  for (i = 0; i < q->npositive; i++)
    if (q->terms[i].kind == GPUIR__PHRASE) return 1;
  return 0;
}

/* Evaluates a query with phrases all of whose terms are required, in one leaf; with `count`, only counts matches. */
static int gpuir__eval_phrases(gpuir__engine *e, const gpuir_query *q, size_t leaf, uint64_t *count) {
  gpuir__phrases p;
  uint32_t block, least = 0, n;
  int missing = 0, status = gpuir__phrases_open(&p, e, q, leaf, &missing);
  if (status || missing) return status;
  status = gpuir__phrases_prepare(&p);
  for (block = 0; !status && block < e->cursors[p.and_.order[0]].list.nblocks; block++) {
    if (gpuir__engine_worked(e, 1)) return e->stopped;
    if (!count && !gpuir__phrases_is_wanted(&p, block, &least)) continue;
    n = gpuir__phrases_candidates(&p, block, least);
    n = n ? gpuir__and_match(e, &p.and_, n) : 0;
    if (e->stopped) return e->stopped;
    if (count)
      *count += n ? gpuir__phrases_count(&p, n) : 0;
    else if (n)
      gpuir__phrases_score(&p, n);
    status = e->stopped;
  }
  return status;
}

/* ============================================================================
 * [22-or]  OR, pruned: MaxScore over docID tiles with block bounds
 *
 * The blocks' bounds become bounds of fixed docID tiles in one pass a list; a tile is scored only if the sum of its
 * bounds reaches the threshold. A few tiles with the greatest sums go first and raise the threshold, which may
 * start from the terms' stored k-th contributions. In a tile, terms whose bounds together stay below the threshold
 * are not essential: their lists are only probed for the candidates of the essential ones. A single essential term
 * gives its postings as candidates; several add up in the tile's accumulators. (MaxScore: Turtle & Flood 1995;
 * block bounds: Ding & Suel, SIGIR 2011; docID windows and partition by window: Lucene 10's MaxScoreBulkScorer;
 * tiles in order of bounds: Mallia et al., "Faster learned sparse retrieval with block-max pruning", SIGIR 2024.)
 *
 * It works on blocks: a block is decoded when a tile wants it, and its postings are added or filtered together.
 *
 * Uses      [18-lookup], [20-engine].
 * Start at  gpuir__eval_or, the last function: from there upwards; gpuir__or_tile scores one tile.
 * Tests     tests/unit/22_or.c
 * ==========================================================================*/

/* Tiles that are scored in order of their bounds, to raise the threshold, before all others. */
#ifndef GPUIR__FIRST_TILES
#define GPUIR__FIRST_TILES 8u
#endif

/* Lists of up to so many postings are decoded and scored up front. */
#ifndef GPUIR__UP_FRONT
#define GPUIR__UP_FRONT GPUIR__WHOLE
#endif

/* One positive term. */
typedef struct gpuir__or_term {
  gpuir__cursor *cursor;
  gpuir__operand *operand; /* of the cursor */
  uint32_t *bound;         /* [tile] what the term can contribute there at most; 0: nothing */
  uint32_t *first;         /* [tile] the first block, up front the first posting, that may lie in it */
  uint32_t *docs;          /* up front: docIDs, and 16 times UINT32_MAX behind them; otherwise NULL */
  uint32_t *values;        /* up front: [posting] contribution; otherwise NULL */
} gpuir__or_term;

typedef struct gpuir__or {
  gpuir__engine *e;
  gpuir__tile tile;
  gpuir__or_term terms[GPUIR_MAX_TERMS];
  unsigned n;        /* terms */
  uint32_t tiles;    /* in the index */
  uint32_t up_front; /* postings of a list that is decoded up front, at most */
  uint32_t *bound;   /* [tile] the sum of its terms' bounds; 0: nothing there, or done */
} gpuir__or;

/* ---- bounds of tiles ---- */

/* Decodes and scores a list up front; its contributions bound its tiles exactly. */
static void gpuir__or_decode_up_front(gpuir__or *o, gpuir__or_term *t) {
  gpuir__cursor *c = t->cursor;
  uint32_t block, i, n = 0;
  for (block = 0; block < c->list.nblocks; block++) {
    gpuir__cursor_load(c, block);
    gpuir__cursor_score(c);
    memcpy(t->docs + n, c->docs, c->n * 4);
    memcpy(t->values + n, c->values, c->n * 4);
    n += c->n;
  }
  o->e->info.postings_scored += n;
  for (i = 0; i < 16; i++) t->docs[n + i] = UINT32_MAX;
  for (i = n; i-- > 0;) { /* backwards, so that first[] ends at the first posting */
    uint32_t tile = t->docs[i] >> o->tile.shift;
    t->bound[tile] = gpuir__max32(t->bound[tile], t->values[i]);
    t->first[tile] = i;
  }
}

/* Bounds each tile by the blocks that reach into it. Whatever a damaged directory says, a step goes to the next
 * block or the next tile. 0, or why the search has to stop. */
static int gpuir__or_bound_blocks(gpuir__or *o, gpuir__or_term *t) {
  const gpuir__cursor *c = t->cursor;
  const gpuir__list *l = &c->list;
  const gpuir__saturation *table = o->e->saturation;
  uint32_t block = 0, tile;
  for (tile = 0; tile < o->tiles; tile++) {
    uint32_t high = gpuir__tile_high(&o->tile, tile);
    float most = 0;
    t->first[tile] = block;
    if (block >= l->nblocks) continue;
    for (; block < l->nblocks; block++) {
      float s = gpuir__block_saturation(table, l->bounds[block]);
      most = s > most ? s : most;
      if (l->last[block] >= high) break;
      if (block % 65536 == 65535 && gpuir__engine_look(o->e)) return o->e->stopped;
    }
    t->bound[tile] = gpuir__bound(c->scorer.weight, most, c->scorer.q);
    block += block < l->nblocks && l->last[block] == high; /* otherwise the next tile may have some of it */
  }
  return GPUIR_OK;
}

/* Returns the k-th greatest contribution to a live document of a list decoded up front, or 0, by the heap that the
 * search will use: it is empty. */
static uint32_t gpuir__or_kth(gpuir__engine *e, const gpuir__or_term *t, size_t k) {
  const gpuir__deleted *deleted = e->leaf.deleted;
  gpuir__topk *top = &e->top;
  uint32_t i, df = t->cursor->list.df;
  if (k > df || gpuir__topk_start(&e->a, top, k, 0)) return 0;
  for (i = 0; i < df; i++)
    if (!deleted || !gpuir__deleted_has(deleted, t->docs[i]))
      gpuir__topk_push(top, gpuir__key(t->values[i], i));
  return top->n == k ? (uint32_t)(top->heap[0] >> 32) : 0;
}

/* Returns a score that at least k documents reach: some term's k-th greatest contribution. 0 if there are negated
 * terms, which may exclude these documents. */
static uint32_t gpuir__or_seed(const gpuir__or *o, const gpuir_query *q, size_t k) {
  uint32_t best = 0;
  unsigned i;
  if (o->e->ncursors > o->n) return 0;
  for (i = 0; i < o->n; i++) {
    const gpuir__or_term *t = &o->terms[i];
    best = gpuir__max32(best, t->docs ? gpuir__or_kth(o->e, t, k) : gpuir__stored_seed(t->cursor, q, k));
  }
  return best;
}

/* Returns the tiles with the greatest bounds, in descending order, and their number. */
static unsigned gpuir__or_first_tiles(const gpuir__or *o, uint32_t *best) {
  unsigned n = 0, j;
  uint32_t t;
  for (t = 0; t < o->tiles; t++) {
    uint32_t v = o->bound[t];
    if (!v || (n == GPUIR__FIRST_TILES && v <= o->bound[best[n - 1]])) continue;
    j = n < GPUIR__FIRST_TILES ? n++ : n - 1;
    for (; j && o->bound[best[j - 1]] < v; j--) best[j] = best[j - 1];
    best[j] = t;
  }
  return n;
}

/* ---- the postings of a term in a tile ---- */

/* Returns the block behind the last one that may reach into a tile. */
static inline uint32_t gpuir__or_block_end(const gpuir__or *o, const gpuir__or_term *t, uint32_t tile) {
  uint32_t n = t->cursor->list.nblocks;
  return tile + 1 < o->tiles ? gpuir__min32(t->first[tile + 1] + 1, n) : n;
}

/* Returns the end of the decoded block's postings in a tile, and in *from their beginning. */
static inline uint32_t gpuir__or_range(const gpuir__or *o, const gpuir__cursor *c, uint32_t tile,
                                       uint32_t *from) {
  uint32_t low = gpuir__tile_low(&o->tile, tile), high = gpuir__tile_high(&o->tile, tile);
  *from = c->docs[0] >= low ? 0 : gpuir__lower_bound(c->docs, 0, c->n, low);
  return c->docs[c->n - 1] <= high ? c->n : gpuir__lower_bound(c->docs, *from, c->n, high + 1);
}

/* Counts the postings in a tile of a list decoded up front, from first[tile] on. */
static inline uint32_t gpuir__or_count_up_front(const gpuir__or *o, const gpuir__or_term *t, uint32_t tile) {
  uint32_t from = t->first[tile], i = from, df = t->cursor->list.df;
  while (i < df && t->docs[i] >> o->tile.shift == tile) i++;
  return i - from;
}

/* Scores n postings of a list, docIDs docs[] and frequencies in the tile's freqs[]. */
static void gpuir__or_score(gpuir__or *o, const gpuir__cursor *c, const uint32_t *docs, uint32_t n,
                            uint32_t *values) {
  gpuir__prefetch_lengths(o->e->leaf.seg->lengths, docs, n);
  c->scorer.score(&c->scorer, docs, o->tile.freqs, n, values);
  o->e->info.postings_scored += n;
}

/* Adds the contributions of a list's blocks within a tile, but for blocks that cannot reach the threshold even
 * with all that the other terms can add, `others_bound`. */
static void gpuir__or_add_blocks(gpuir__or *o, gpuir__or_term *t, uint32_t tile, uint32_t others_bound,
                                 uint32_t threshold) {
  gpuir__cursor *c = t->cursor;
  uint32_t end = gpuir__or_block_end(o, t, tile), block, i, to;
  for (block = t->first[tile]; block < end; block++) {
    if (gpuir__block_bound(o->e, c, block) + others_bound < threshold) continue;
    if (gpuir__engine_worked(o->e, 1)) return;
    gpuir__cursor_load(c, block);
    if (c->kind != GPUIR__VALUES_SCORES) {
      gpuir__prefetch_lengths(o->e->leaf.seg->lengths, c->docs, c->n);
      gpuir__cursor_score(c);
      o->e->info.postings_scored += c->n;
    }
    to = gpuir__or_range(o, c, tile, &i);
    gpuir__tile_add(&o->tile, c->docs + i, c->values + i, to - i);
  }
}

/* ---- a tile's candidates ---- */

/* Collects the candidates of a tile whose single essential term was decoded up front. */
static uint32_t gpuir__or_single_up_front(gpuir__or *o, const gpuir__or_term *t, uint32_t tile,
                                          uint32_t threshold) {
  gpuir__tile *s = &o->tile;
  uint32_t n = gpuir__min32(gpuir__or_count_up_front(o, t, tile), 1u << s->shift);
  memcpy(s->candidates, t->docs + t->first[tile], n * 4);
  memcpy(s->sums, t->values + t->first[tile], n * 4);
  return o->e->kernels->keep(s->candidates, s->sums, n, threshold);
}

/* Collects the candidates of a tile with a single essential term: those of its postings that contribute `threshold`.
 * Postings not frequent enough for the shortest document are dropped without a look at the documents' lengths. */
static uint32_t gpuir__or_single_blocks(gpuir__or *o, gpuir__or_term *t, uint32_t tile, uint32_t threshold) {
  gpuir__tile *s = &o->tile;
  gpuir__cursor *c = t->cursor;
  uint32_t end = gpuir__or_block_end(o, t, tile), size = 1u << s->shift, n = 0, block, from, to;
  for (block = t->first[tile]; block < end && n <= size; block++) { /* more only in a damaged file */
    if (gpuir__block_bound(o->e, c, block) < threshold) continue;
    if (gpuir__engine_worked(o->e, 1)) return 0;
    gpuir__cursor_load(c, block);
    gpuir__cursor_freqs(c);
    to = gpuir__or_range(o, c, tile, &from);
    n += o->e->kernels->frequent(c->docs + from, c->values + from, to - from,
                                 gpuir__least_frequency(&c->scorer, c->list.bounds[block], threshold),
                                 s->candidates + n, s->freqs + n);
  }
  gpuir__or_score(o, c, s->candidates, n, s->sums);
  return o->e->kernels->keep(s->candidates, s->sums, n, threshold);
}

/* Adds what a list decoded up front contributes to n candidates. */
static void gpuir__or_probe_up_front(gpuir__or *o, const gpuir__or_term *t, uint32_t tile, uint32_t n) {
  uint32_t at = t->first[tile], i;
  for (i = 0; i < n; i++) {
    uint32_t doc = o->tile.candidates[i];
    while (t->docs[at] < doc) at++;
    if (t->docs[at] == doc) o->tile.sums[i] += t->values[at];
  }
}

/* Adds what a list of blocks contributes to n candidates. */
static void gpuir__or_probe_blocks(gpuir__or *o, gpuir__or_term *t, uint32_t tile, uint32_t n) {
  gpuir__tile *s = &o->tile;
  const gpuir__pass p = gpuir__tile_pass(s, t->operand, t->first[tile], n);
  uint32_t found = gpuir__engine_lookup(o->e, t->operand, &p), i;
  gpuir__list_freqs_at(&t->cursor->list, s->where, found, s->freqs);
  gpuir__or_score(o, t->cursor, s->found, found, s->values);
  for (i = 0; i < found; i++) s->sums[s->from[i]] += s->values[i];
}

/* The terms of one tile, by bound a posting: cheap bounds on long lists first. */
typedef struct gpuir__or_order {
  unsigned term[GPUIR_MAX_TERMS]; /* term numbers */
  unsigned n;                     /* terms with postings in the tile */
  unsigned essential;    /* the first essential one; those before it together cannot reach the threshold, */
  uint32_t others_bound; /* only this */
} gpuir__or_order;

/* Orders the terms that may contribute to a tile, and divides them into non-essential and essential ones. */
static void gpuir__or_order_terms(const gpuir__or *o, uint32_t tile, uint32_t threshold, gpuir__or_order *x) {
  unsigned i, j;
  x->n = 0;
  for (i = 0; i < o->n; i++) {
    uint64_t bound = o->terms[i].bound[tile], df = o->terms[i].cursor->list.df;
    if (!bound) continue;
    for (j = x->n++; j; j--) {
      const gpuir__or_term *other = &o->terms[x->term[j - 1]];
      if (bound * other->cursor->list.df >= other->bound[tile] * df) break;
      x->term[j] = x->term[j - 1];
    }
    x->term[j] = i;
  }
  x->others_bound = 0;
  for (i = 0; i < x->n && x->others_bound + o->terms[x->term[i]].bound[tile] < threshold; i++)
    x->others_bound += o->terms[x->term[i]].bound[tile];
  x->essential = i;
}

/* Collects the candidates of a tile: documents to which the essential terms contribute so much that the others may make
 * up the threshold. */
static uint32_t gpuir__or_candidates(gpuir__or *o, const gpuir__or_order *x, uint32_t tile,
                                     uint32_t threshold) {
  gpuir__or_term *t = &o->terms[x->term[x->essential]];
  unsigned i;
  if (x->n - x->essential == 1)
    return t->docs ? gpuir__or_single_up_front(o, t, tile, threshold - x->others_bound)
                   : gpuir__or_single_blocks(o, t, tile, threshold - x->others_bound);
  for (i = x->essential; i < x->n; i++) {
    t = &o->terms[x->term[i]];
    if (t->docs)
      gpuir__tile_add(&o->tile, t->docs + t->first[tile], t->values + t->first[tile],
                      gpuir__or_count_up_front(o, t, tile));
    else
      gpuir__or_add_blocks(o, t, tile, o->bound[tile] - t->bound[tile], threshold);
  }
  return o->e->kernels->collect(&o->tile, gpuir__tile_low(&o->tile, tile), threshold - x->others_bound);
}

/* ---- evaluation ---- */

/* Scores one tile, unless its bounds do not reach the threshold. 0, or why the search has to stop. */
static int gpuir__or_tile(gpuir__or *o, uint32_t tile) {
  uint32_t threshold = gpuir__topk_threshold(&o->e->top), n;
  gpuir__or_order x;
  if (o->bound[tile] < threshold) return GPUIR_OK;
  gpuir__or_order_terms(o, tile, threshold, &x);
  n = gpuir__or_candidates(o, &x, tile, threshold);
  while (x.essential-- > 0 && n) {
    gpuir__or_term *t = &o->terms[x.term[x.essential]];
    if (t->docs)
      gpuir__or_probe_up_front(o, t, tile, n);
    else
      gpuir__or_probe_blocks(o, t, tile, n);
    x.others_bound -= t->bound[tile];
    n = o->e->kernels->keep(o->tile.candidates, o->tile.sums, n, threshold - x.others_bound);
  }
  gpuir__tile_offer(o->e, &o->tile, gpuir__tile_exclude(o->e, &o->tile, o->n, tile, n));
  o->bound[tile] = 0;
  o->e->info.tiles_scored++;
  return gpuir__engine_look(o->e);
}

/* Makes a term of cursor i, and bounds its tiles. 0, or why the search has to stop. */
static int gpuir__or_term_open(gpuir__or *o, unsigned i) {
  gpuir__engine *e = o->e;
  gpuir__or_term *term = &o->terms[i];
  uint32_t df = e->cursors[i].list.df, t;
  term->cursor = &e->cursors[i];
  term->operand = &e->operands[i];
  term->bound = gpuir__carve(e, o->tiles);
  term->first = gpuir__carve(e, o->tiles);
  term->docs = term->values = NULL;
  memset(term->bound, 0, o->tiles * 4);
  if (df <= o->up_front) {
    term->docs = gpuir__carve(e, df + 16);
    term->values = gpuir__carve(e, df + 16);
    gpuir__or_decode_up_front(o, term);
  } else if (gpuir__or_bound_blocks(o, term)) {
    return e->stopped;
  }
  for (t = 0; t < o->tiles; t++) o->bound[t] += term->bound[t];
  return gpuir__engine_look(e);
}

/* Lays out the scratch arrays and bounds the tiles; each positive cursor becomes a term. */
static int gpuir__or_prepare(gpuir__or *o, gpuir__engine *e, unsigned npositive) {
  const uint64_t documents = e->leaf.seg->stat.documents;
  uint32_t shift = GPUIR__TILE_SHIFT;
  size_t up_front = 0;
  unsigned i;
  int status;
  while ((documents - 1) >> shift >= GPUIR__MAX_TILES) shift++;
  o->e = e;
  o->n = npositive;
  o->tiles = (uint32_t)((documents - 1) >> shift) + 1;
  /* Lists of several segments are parts of one: of each as much is decoded up front as would be of the whole. */
  o->up_front = gpuir__max32((uint32_t)(documents * GPUIR__UP_FRONT / e->ix->docids), GPUIR__SHORT_MAX);
  for (i = 0; i < npositive; i++)
    if (e->cursors[i].list.df <= o->up_front) up_front += 2 * (size_t)e->cursors[i].list.df + 64;
  status = gpuir__tile_reserve(e, &o->tile, shift, o->tiles * (2 * (size_t)npositive + 1) + up_front,
                               4 * (size_t)npositive + 1);
  if (status) return status;
  o->bound = gpuir__carve(e, o->tiles);
  memset(o->bound, 0, o->tiles * 4);
  for (i = 0; i < npositive && !status; i++) status = gpuir__or_term_open(o, i);
  return status;
}

/* Evaluates OR over at least two positive terms. */
static int gpuir__eval_or(gpuir__engine *e, const gpuir_query *q, unsigned npositive, size_t k) {
  uint32_t best[GPUIR__FIRST_TILES], t;
  unsigned i, n;
  gpuir__or o;
  int status = gpuir__or_prepare(&o, e, npositive);
  if (status) return status;
  if (!e->top
           .n) { /* the first segment with a hit: afterwards the heap has the threshold, and is no scratch */
    const uint32_t seed = gpuir__or_seed(&o, q, k);
    status = gpuir__topk_start(&e->a, &e->top, k, seed);
    if (status) return gpuir__engine_fail(e, status, "out of memory");
  }
  e->info.tiles_total += o.tiles;
  n = gpuir__or_first_tiles(&o, best);
  for (i = 0; i < n && !status; i++) status = gpuir__or_tile(&o, best[i]);
  for (t = 0; t < o.tiles && !status; t++) status = gpuir__or_tile(&o, t);
  return status;
}

/* ============================================================================
 * [23-exhaustive]  the reference: every posting, no bound; and the count of OR
 *
 * The exhaustive evaluator adds up every posting of every list in docID tiles: list by list, what the postings
 * contribute is added to the accumulators of the tile's documents, of which those that reach the threshold are
 * collected. No bound is looked at and nothing is looked up, so that it shares no pruning with [21-and] and [22-or],
 * which must return the same hits. OR is counted in windows of bits, one a document.
 *
 * Both work on cursors, block by block.
 *
 * Uses      [20-engine].
 * Start at  gpuir__eval_exhaustive, gpuir__count_or: each the last of its functions.
 * Tests     tests/unit/23_exhaustive.c
 * ==========================================================================*/

typedef struct gpuir__exhaustive {
  gpuir__engine *e;
  gpuir__tile tile;
  unsigned n;                     /* lists */
  uint32_t next[GPUIR_MAX_TERMS]; /* [list] its next docID, or GPUIR_END */
  uint8_t *matched;               /* AND: [document of the tile] how many lists hold it; otherwise NULL */
  int dense; /* OR of so many postings that each line of lengths is prefetched, and each accumulator is looked at */
} gpuir__exhaustive;

/* A query is dense if it has a posting in so many documents: as many as there are lengths in a cache line. */
#define GPUIR__DENSE 16u

/* Keeps, for AND, those of n candidates, which any list holds, that every list holds. */
static uint32_t gpuir__exhaustive_join(gpuir__exhaustive *x, uint32_t n) {
  uint32_t *candidates = x->tile.candidates, *sums = x->tile.sums, mask = (1u << x->tile.shift) - 1, kept = 0,
           i;
  for (i = 0; i < n; i++) {
    uint32_t doc = candidates[i], at = doc & mask;
    candidates[kept] = doc;
    sums[kept] = sums[i];
    kept += x->matched[at] == x->n;
    x->matched[at] = 0;
  }
  return kept;
}

/* Adds the contributions of n postings to their documents' accumulators. */
static void gpuir__exhaustive_add(gpuir__exhaustive *x, const uint32_t *docs, const uint32_t *values,
                                  uint32_t n) {
  uint32_t *scores = x->tile.scores, mask = (1u << x->tile.shift) - 1, i;
  if (x->dense)
    for (i = 0; i < n; i++) scores[docs[i] & mask] += values[i];
  else
    gpuir__tile_add(&x->tile, docs, values, n);
  for (i = 0; x->matched && i < n; i++) x->matched[docs[i] & mask]++;
}

/* Decodes and scores a block; returns its first docID. */
static uint32_t gpuir__exhaustive_block(gpuir__exhaustive *x, gpuir__cursor *c, uint32_t block) {
  gpuir__engine *e = x->e;
  gpuir__cursor_load(c, block);
  if (!x->dense) gpuir__prefetch_lengths(e->leaf.seg->lengths, c->docs, c->n);
  gpuir__cursor_score(c);
  e->info.postings_scored += c->n;
  c->pos = 0;
  return c->docs[0];
}

/* Adds what a list contributes to the documents up to `high`; returns its next docID, or GPUIR_END behind the last one
 * and when the search has to stop. */
static uint32_t gpuir__exhaustive_list(gpuir__exhaustive *x, gpuir__cursor *c, uint32_t high) {
  for (;;) {
    uint32_t to = c->docs[c->n - 1] <= high ? c->n : gpuir__lower_bound(c->docs, c->pos, c->n, high + 1);
    gpuir__exhaustive_add(x, c->docs + c->pos, c->values + c->pos, to - c->pos);
    c->pos = to;
    if (to < c->n) return c->docs[to];
    if (c->block + 1 >= c->list.nblocks || gpuir__engine_worked(x->e, 1)) return GPUIR_END;
    if (gpuir__exhaustive_block(x, c, c->block + 1) > high) return c->docs[0];
  }
}

/* Prefetches the i-th of n parts of the lengths that the tile behind docID `high` needs, so that they arrive while this
 * tile is worked on. */
static void gpuir__exhaustive_prefetch(const gpuir__exhaustive *x, uint32_t high, unsigned i, unsigned n) {
  const gpuir__segment *seg = x->e->leaf.seg;
  uint64_t size = (uint64_t)1 << x->tile.shift, low = (uint64_t)high + 1;
  uint64_t at = low + size * i / n, end = low + size * (i + 1) / n;
  for (; at < end && at < seg->stat.documents; at += GPUIR__DENSE) __builtin_prefetch(seg->lengths + at);
}

/* Scores one tile. 0, or why the search has to stop. */
static int gpuir__exhaustive_tile(gpuir__exhaustive *x, uint32_t tile) {
  gpuir__engine *e = x->e;
  gpuir__tile *t = &x->tile;
  uint32_t low = gpuir__tile_low(t, tile), high = gpuir__tile_high(t, tile), n;
  uint32_t threshold = x->matched ? 1 : gpuir__topk_threshold(&e->top);
  unsigned i;
  for (i = 0; i < x->n; i++) {
    if (x->dense) gpuir__exhaustive_prefetch(x, high, i, x->n);
    if (x->next[i] <= high) x->next[i] = gpuir__exhaustive_list(x, &e->cursors[i], high);
    if (e->stopped) return e->stopped;
  }
  n = x->dense ? e->kernels->collect_dense(t, low, threshold) : e->kernels->collect(t, low, threshold);
  if (x->matched) n = gpuir__exhaustive_join(x, n);
  gpuir__tile_offer(e, t, gpuir__tile_exclude(e, t, x->n, tile, n));
  return gpuir__engine_look(e);
}

/* Lays out the tile's arrays and decodes the lists' first blocks. */
static int gpuir__exhaustive_prepare(gpuir__exhaustive *x, gpuir__engine *e, unsigned npositive, int all) {
  const size_t size = (size_t)1 << GPUIR__TILE_SHIFT;
  uint64_t postings = 0;
  unsigned i;
  int status = gpuir__tile_reserve(e, &x->tile, GPUIR__TILE_SHIFT, size / 4, 1);
  if (status) return status;
  x->e = e;
  x->n = npositive;
  x->matched = all ? (uint8_t *)(void *)gpuir__carve(e, size / 4) : NULL;
  if (x->matched) memset(x->matched, 0, size);
  for (i = 0; i < npositive; i++) postings += e->cursors[i].list.df;
  x->dense = !all && postings >= e->leaf.seg->stat.documents / GPUIR__DENSE;
  for (i = 0; i < npositive; i++) x->next[i] = gpuir__exhaustive_block(x, &e->cursors[i], 0);
  return GPUIR_OK;
}

/* Evaluates AND (`all`) or OR by scoring every posting. */
static int gpuir__eval_exhaustive(gpuir__engine *e, unsigned npositive, int all) {
  gpuir__exhaustive x;
  uint32_t from = 0;
  int status = gpuir__exhaustive_prepare(&x, e, npositive, all);
  while (!status) {
    uint32_t next = GPUIR_END;
    unsigned i;
    for (i = 0; i < npositive; i++) next = gpuir__min32(next, x.next[i]);
    if (next == GPUIR_END || next >> x.tile.shift < from) break; /* the latter in a damaged file */
    from = next >> x.tile.shift;
    status = gpuir__exhaustive_tile(&x, from++);
  }
  return status;
}

/* ---- counting OR: a bit for each document of a window, set by positive lists, cleared by negated ones ---- */

#ifndef GPUIR__WINDOW
#define GPUIR__WINDOW 65536u /* documents */
#endif

/* Sets or clears the bits of a list's documents below `end`, from the cursor on. 0, or why the search has to stop. */
static int gpuir__count_list(gpuir__engine *e, gpuir__cursor *c, uint64_t end, int positive, uint64_t *bits) {
  while (c->pos < c->n && c->docs[c->pos] < end) {
    uint32_t d = c->docs[c->pos] & (GPUIR__WINDOW - 1);
    if (positive)
      bits[d >> 6] |= (uint64_t)1 << (d & 63);
    else
      bits[d >> 6] &= ~((uint64_t)1 << (d & 63));
    (void)gpuir__cursor_step(c);
    if (!c->pos && gpuir__engine_worked(e, 1)) return e->stopped; /* another block */
  }
  return GPUIR_OK;
}

/* Counts the live documents that any positive list holds and no negated one. */
static int gpuir__count_or(gpuir__engine *e, unsigned npositive, uint64_t *count) {
  const gpuir__deleted *deleted = e->leaf.deleted;
  uint64_t documents = e->leaf.seg->stat.documents, low, *bits;
  unsigned i, w;
  int status = gpuir__reserve(e, GPUIR__WINDOW / 32, 1);
  if (status) return status;
  bits = (uint64_t *)(void *)gpuir__carve(e, GPUIR__WINDOW / 32);
  for (i = 0; i < e->ncursors; i++) (void)gpuir__cursor_seek(&e->cursors[i], 0);
  for (low = 0; low < documents; low += GPUIR__WINDOW) {
    if ((status = gpuir__engine_look(e)) != 0) return status;
    memset(bits, 0, GPUIR__WINDOW / 8);
    for (i = 0; i < e->ncursors && !status; i++)
      status = gpuir__count_list(e, &e->cursors[i], low + GPUIR__WINDOW, i < npositive, bits);
    if (status) return status;
    for (w = 0; deleted && w < GPUIR__WINDOW / 64 && low / 64 + w < deleted->words; w++)
      bits[w] &= ~deleted->bits[low / 64 + w];
    for (w = 0; w < GPUIR__WINDOW / 64; w++) *count += (uint64_t)__builtin_popcountll(bits[w]);
  }
  return GPUIR_OK;
}

/* ============================================================================
 * [24-execution]  modes, searchers, batches over threads, explanations, public cursors, backends
 *
 * The public functions that search: which evaluator serves which mode, a batch's queries shared out to threads, or
 * handed to a backend such as gpuir_cuda.cu; explanations of one document's score; the cursor that users step.
 *
 * Uses      all parts above.
 * Start at  gpuir_search, gpuir_search_batch; gpuir__engine_mode (which evaluator serves which mode).
 * Tests     tests/unit/24_execution.c
 * ==========================================================================*/

/* ---- modes ---- */

/* Empties the top-k into hits, best first. */
static int gpuir__engine_hits(gpuir__engine *e, gpuir_hit *hits, size_t *n) {
  *n = e->top.n;
  while (e->top.n) {
    gpuir__topk_pop(&e->top, hits);
    if (e->top.n % 4096 == 4095) {
      int status = gpuir__engine_look(e);
      if (status) return status;
    }
  }
  return GPUIR_OK;
}

/* Offers what one leaf has to the top-k. */
static int gpuir__engine_leaf(gpuir__engine *e, const gpuir_query *q, size_t leaf, int mode, size_t k) {
  unsigned npositive;
  int status;
  if (gpuir__phrases_are_required(e, q, mode)) return gpuir__eval_phrases(e, q, leaf, NULL);
  status = gpuir__terms_open(e, q, leaf, &npositive);
  if (status || !npositive || (mode == GPUIR_AND && npositive < q->npositive)) return status;
  if (e->evaluator == GPUIR_EVAL_EXHAUSTIVE) return gpuir__eval_exhaustive(e, npositive, mode == GPUIR_AND);
  if (e->ncursors == 1 && !e->top.n)
    (void)gpuir__topk_start(&e->a, &e->top, k, gpuir__stored_seed(&e->cursors[0], q, k));
  if (mode == GPUIR_AND || npositive == 1) return gpuir__eval_and(e, npositive, NULL);
  return gpuir__eval_or(e, q, npositive, k);
}

/* Ranks one query in mode AND or OR: all leaves share one top-k, and so its threshold. */
static int gpuir__engine_mode(gpuir__engine *e, const gpuir_query *q, int mode, size_t k, gpuir_hit *hits,
                              size_t *n) {
  size_t leaf;
  int status;
  *n = 0;
  if (q->nunknown == q->npositive || (mode == GPUIR_AND && q->nunknown)) return GPUIR_OK;
  status = gpuir__topk_start(&e->a, &e->top, k, 0);
  if (status) return gpuir__engine_fail(e, status, "out of memory");
  for (leaf = 0; leaf < e->ix->nleaves && !status; leaf++) status = gpuir__engine_leaf(e, q, leaf, mode, k);
  if (!status) status = gpuir__engine_hits(e, hits, n);
  return status;
}

/* Starts the clock of a search. A timeout so long that its end does not fit into 64 bits never ends. */
static void gpuir__engine_start(gpuir__engine *e) {
  const uint64_t now = gpuir__now();
  e->deadline = e->timeout_ns ? now + gpuir__min64(e->timeout_ns, UINT64_MAX - now) : 0;
  if (e->limits.query_deadline && (!e->deadline || e->limits.query_deadline < e->deadline))
    e->deadline = e->limits.query_deadline;
  e->worked = 0;
  e->stopped = GPUIR_OK;
  e->error.code = GPUIR_OK;
  e->error.msg[0] = 0;
  e->info.queries++;
}

/* Answers one query on the CPU. */
static int gpuir__engine_search(gpuir__engine *e, const gpuir_query *q, gpuir_hit *hits, size_t k,
                                size_t *n) {
  int status;
  *n = 0;
  gpuir__engine_start(e);
  if (k > e->ix->documents) k = (size_t)e->ix->documents;
  if (!k) return GPUIR_OK;
  status = gpuir__engine_look(e);
  if (status) return status;
  status = gpuir__engine_mode(e, q, q->mode == GPUIR_OR ? GPUIR_OR : GPUIR_AND, k, hits, n);
  if (!status && q->mode == GPUIR_ANDOR && *n < k) status = gpuir__engine_mode(e, q, GPUIR_OR, k, hits, n);
  if (status) *n = 0;
  gpuir__engine_reset(e);
  return status;
}

/* Counts a leaf's documents that match one query. */
static int gpuir__engine_count_leaf(gpuir__engine *e, const gpuir_query *q, size_t leaf, uint64_t *matches) {
  unsigned npositive;
  int status;
  if (gpuir__phrases_are_required(e, q, q->mode == GPUIR_OR ? GPUIR_OR : GPUIR_AND))
    return gpuir__eval_phrases(e, q, leaf, matches);
  status = gpuir__terms_open(e, q, leaf, &npositive);
  if (status || !npositive || (q->mode != GPUIR_OR && npositive < q->npositive)) return status;
  if (q->mode != GPUIR_OR || npositive == 1) return gpuir__eval_and(e, npositive, matches);
  return gpuir__count_or(e, npositive, matches);
}

/* Counts the documents that match one query. */
static int gpuir__engine_count(gpuir__engine *e, const gpuir_query *q, uint64_t *matches) {
  size_t leaf;
  int status = GPUIR_OK;
  *matches = 0;
  gpuir__engine_start(e);
  if (q->mode != GPUIR_OR && q->nunknown) return GPUIR_OK;
  for (leaf = 0; leaf < e->ix->nleaves && !status; leaf++)
    status = gpuir__engine_count_leaf(e, q, leaf, matches);
  if (status) *matches = 0;
  gpuir__engine_reset(e);
  return status;
}

/* A batch from begin to finish. */
struct gpuir_batch {
  gpuir_searcher *searcher; /* NULL: not in flight */
  gpuir_batch_desc desc;    /* with a backend its statuses are the caller's or, without those, `own` */
  void *running;            /* the backend's */
  int asked;                /* 1: the backend has it */
  int told;                 /* 1: the caller asks for statuses */
  gpuir_error error;        /* the backend's */
  gpuir__buf own;           /* int: a status a query */
};

#define GPUIR__IN_FLIGHT 2 /* batches of a searcher at most */

struct gpuir_searcher {
  uint32_t layout; /* gpuir__searcher_layout(), the first member in every version */
  gpuir_index *ix;
  gpuir__engine engine;   /* serves single searches */
  gpuir__engine *workers; /* threads - 1 more for batches */
  unsigned nworkers;
  gpuir_backend backend;
  int has_backend, fallback;
  gpuir_batch batches[GPUIR__IN_FLIGHT];
};

/* As gpuir__index_layout; a backend reads queries too. */
static inline uint32_t gpuir__searcher_layout(void) {
  return GPUIR__LAYOUT(sizeof(gpuir_searcher), sizeof(gpuir_query), sizeof(gpuir__query_term));
}

#ifdef GPUIR_NO_LAB
GPUIR_API const char *gpuir_intersection_name(size_t i) { return i ? NULL : "simd"; }
#else
GPUIR_API const char *gpuir_intersection_name(size_t i) {
  return i < GPUIR__METHODS ? gpuir__methods[i].name : NULL;
}
#endif

/* Returns 1 if there is an intersection method of this name. */
static int gpuir__intersection_exists(const char *name) {
  size_t i = 0;
  while (gpuir_intersection_name(i) && strcmp(gpuir_intersection_name(i), name) != 0) i++;
  return gpuir_intersection_name(i) != NULL;
}

/* Makes the engine of one thread, and chooses its kernels. */
static void gpuir__engine_init(gpuir__engine *e, const gpuir_allocator *a, gpuir_index *ix,
                               const gpuir_searcher_desc *desc) {
  const int level = ix->simd - GPUIR_SIMD_SCALAR;
  memset(e, 0, sizeof *e);
  e->a = *a;
  e->ix = ix;
  e->kernels = &gpuir__search_of_level[level];
  e->lookups = gpuir__lookup_choose(ix->simd);
  e->score = gpuir__score_of_level[level];
  if (!desc) return;
  e->evaluator = desc->evaluator;
#ifndef GPUIR_NO_LAB
  e->intersection = desc->intersection ? gpuir__method_by_name(desc->intersection) : NULL;
#endif
  e->timeout_ns = desc->timeout_ns;
  e->limits.cancel = desc->cancel;
}

/* Returns the status for an intersection method that this build lacks: UNSUPPORTED if GPUIR_NO_LAB leaves it out,
 * ARGUMENT if it is unknown. */
static int gpuir__no_method(const char *name, gpuir_error *err) {
#ifdef GPUIR_NO_LAB
  static const char *const left_out[] = {
      "merge", "gallop", "binary", "interpolation", "skip",  "svs",        "adaptive",
      "pmf0",  "pmf1",   "pmf2",   "pmf3",          "pmf4",  "lr-global",  "lr-local",
      "hs16",  "hs32",   "hs64",   "hs128",         "hs256", "algorithm1", "mergepath"};
  size_t i;
  for (i = 0; i < sizeof left_out / sizeof left_out[0]; i++)
    if (!strcmp(name, left_out[i]))
      return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "GPUIR_NO_LAB left out the intersection method %s",
                         name);
#endif
  return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "no intersection method is called '%.64s'", name);
}

GPUIR_API int gpuir_searcher_create(gpuir_index *ix, const gpuir_searcher_desc *desc,
                                    gpuir_searcher **searcher, gpuir_error *err) {
  gpuir_allocator a;
  gpuir_searcher *s;
  unsigned i, n;
  if (searcher) *searcher = NULL;
  if (!ix || !searcher) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_searcher_create: NULL argument");
  if (desc && (desc->evaluator < GPUIR_EVAL_AUTO || desc->evaluator > GPUIR_EVAL_EXHAUSTIVE))
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "unknown evaluator %d", desc->evaluator);
  if (desc && desc->threads > 4096)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "%u threads: at most 4096 serve a searcher", desc->threads);
  if (desc && desc->intersection && !gpuir__intersection_exists(desc->intersection))
    return gpuir__no_method(desc->intersection, err);
  a = desc && desc->allocator ? gpuir__allocator(desc->allocator) : ix->a;
  s = (gpuir_searcher *)gpuir__alloc_zero(&a, sizeof *s);
  if (!s) return gpuir__fail_nomem(err);
  n = desc && desc->threads > 1 ? desc->threads - 1 : 0;
  s->layout = gpuir__searcher_layout();
  s->ix = ix;
  gpuir__engine_init(&s->engine, &a, ix, desc);
  if (n) {
    s->workers = (gpuir__engine *)gpuir__alloc(&a, n * sizeof *s->workers);
    if (!s->workers) {
      gpuir__free(&a, s, sizeof *s);
      return gpuir__fail_nomem(err);
    }
    for (i = 0; i < n; i++) gpuir__engine_init(&s->workers[i], &a, ix, desc);
    s->nworkers = n;
  }
  *searcher = s;
  return GPUIR_OK;
}

GPUIR_API void gpuir_searcher_destroy(gpuir_searcher *s) {
  gpuir_allocator a;
  unsigned i;
  if (!s) return;
  a = s->engine.a;
  for (i = 0; i < GPUIR__IN_FLIGHT; i++) {
    gpuir_batch *b = &s->batches[i];
    if (b->searcher && b->asked) (void)s->backend.finish(s->backend.context, b->running, NULL);
    gpuir__buf_free(&a, &b->own);
  }
  if (s->has_backend && s->backend.close) s->backend.close(s->backend.context);
  gpuir__engine_free(&s->engine);
  for (i = 0; i < s->nworkers; i++) gpuir__engine_free(&s->workers[i]);
  gpuir__free(&a, s->workers, s->nworkers * sizeof *s->workers);
  gpuir__free(&a, s, sizeof *s);
}

GPUIR_API int gpuir_searcher_move(gpuir_searcher *s, gpuir_index *ix) {
  const int level = ix ? ix->simd - GPUIR_SIMD_SCALAR : 0;
  unsigned i;
  if (!s || !ix) return GPUIR_E_ARGUMENT;
  if (ix != s->ix && gpuir_searcher_set_backend(s, NULL, 0)) return GPUIR_E_ARGUMENT;
  s->ix = ix;
  for (i = 0; i <= s->nworkers; i++) {
    gpuir__engine *e = i ? &s->workers[i - 1] : &s->engine;
    gpuir__engine_reset(e);
    e->ix = ix;
    e->kernels = &gpuir__search_of_level[level];
    e->lookups = gpuir__lookup_choose(ix->simd);
    e->score = gpuir__score_of_level[level];
  }
  return GPUIR_OK;
}

GPUIR_API void gpuir_searcher_set_timeout(gpuir_searcher *s, uint64_t timeout_ns) {
  unsigned i;
  if (!s) return;
  s->engine.timeout_ns = timeout_ns;
  for (i = 0; i < s->nworkers; i++) s->workers[i].timeout_ns = timeout_ns;
}

GPUIR_API void gpuir_searcher_error(const gpuir_searcher *s, gpuir_error *err) {
  if (s && err) *err = s->engine.error;
}

GPUIR_API void gpuir_searcher_get_info(const gpuir_searcher *s, gpuir_searcher_info *info) {
  unsigned i;
  if (!s || !info) return;
  *info = s->engine.info;
  for (i = 0; i < s->nworkers; i++) {
    const gpuir_searcher_info *w = &s->workers[i].info;
    info->queries += w->queries;
    info->postings_scored += w->postings_scored;
    info->blocks_decoded += w->blocks_decoded;
    info->blocks_total += w->blocks_total;
    info->tiles_scored += w->tiles_scored;
    info->tiles_total += w->tiles_total;
  }
}

/* ---- batches ---- */

GPUIR_API const char *gpuir_backend_name(const gpuir_searcher *s) {
  return s && s->has_backend ? s->backend.name : "cpu";
}

#define GPUIR__PENDING 1 /* the status of a query that the CPU is yet to answer */

/* A batch, whose queries are taken by whichever thread is free. */
typedef struct gpuir__job {
  const gpuir_batch_desc *desc;
  int *statuses;        /* of the pending queries each gets its own; NULL: all are pending, until one fails */
  gpuir__atomic64 next; /* the query that nobody has taken */
  gpuir__atomic64 first; /* the first query that failed; UINT64_MAX: none */
} gpuir__job;

/* One thread of a batch. */
typedef struct gpuir__hand {
  gpuir__engine *engine;
  gpuir__job *job;
  uint64_t failed; /* the first query that failed here, if status is not 0 */
  int status;
  gpuir_error error;
} gpuir__hand;

/* Answers query i of a batch. */
static int gpuir__work_on(gpuir__engine *e, const gpuir_batch_desc *desc, uint64_t i) {
  size_t n;
  int status;
  e->limits.query_deadline = desc->deadlines ? desc->deadlines[i] : 0;
  e->limits.query_cancel = desc->cancels ? desc->cancels[i] : NULL;
  status = gpuir__engine_search(e, desc->queries[i], desc->hits + i * desc->k, desc->k, &n);
  e->limits.query_deadline = 0;
  e->limits.query_cancel = NULL;
  desc->counts[i] = (uint32_t)n;
  return status;
}

/* Answers queries of a batch until none is left or, without statuses, one fails. */
static void *gpuir__work(void *argument) {
  gpuir__hand *hand = (gpuir__hand *)argument;
  gpuir__job *job = hand->job;
  for (;;) {
    uint64_t i = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED);
    int status;
    if (i >= job->desc->nq || i > __atomic_load_n(&job->first, __ATOMIC_RELAXED)) return NULL;
    if (job->statuses && job->statuses[i] != GPUIR__PENDING) continue;
    status = gpuir__work_on(hand->engine, job->desc, i);
    if (job->statuses) job->statuses[i] = status;
    if (status && !hand->status) {
      hand->failed = i;
      hand->status = status;
      hand->error = hand->engine->error;
      if (job->statuses) continue;
      __atomic_store_n(&job->first, i, __ATOMIC_RELAXED); /* a hint: later queries need not be tried */
      return NULL;
    }
  }
}

/* Answers the pending queries of a batch by all threads; the error is the first failed one's. */
static int gpuir__batch_cpu(gpuir_searcher *s, const gpuir_batch_desc *desc, int *statuses) {
  gpuir__job job;
  gpuir__hand mine, *hands = NULL;
  pthread_t *threads = NULL;
  unsigned n = s->nworkers < desc->nq ? s->nworkers : (unsigned)desc->nq, started = 0, i;
  const gpuir_allocator *a = &s->engine.a;
  job.desc = desc;
  job.statuses = statuses;
  job.next = 0;
  job.first = UINT64_MAX;
  memset(&mine, 0, sizeof mine);
  mine.engine = &s->engine;
  mine.job = &job;
  if (n) {
    hands = (gpuir__hand *)gpuir__alloc_zero(a, n * sizeof *hands);
    threads = (pthread_t *)gpuir__alloc(a, n * sizeof *threads);
    for (; hands && threads && started < n; started++) { /* without a thread the others do its work */
      hands[started].engine = &s->workers[started];
      hands[started].job = &job;
      if (pthread_create(&threads[started], NULL, gpuir__work, &hands[started])) break;
    }
  }
  (void)gpuir__work(&mine);
  for (i = 0; i < started; i++) {
    (void)pthread_join(threads[i], NULL);
    if (hands[i].status && (!mine.status || hands[i].failed < mine.failed)) mine = hands[i];
  }
  s->engine.error = mine.error;
  gpuir__free(a, hands, n * sizeof *hands);
  gpuir__free(a, threads, n * sizeof *threads);
  return mine.status;
}

/* Returns the end of a batch's time, 0 if it has none. */
static uint64_t gpuir__batch_deadline(uint64_t timeout_ns, size_t nq) {
  const uint64_t now = gpuir__now();
  if (!timeout_ns || timeout_ns > UINT64_MAX / nq) return 0;
  return now + gpuir__min64(timeout_ns * nq, UINT64_MAX - now);
}

/* Returns whether the CPU is to answer what the backend did not. */
static int gpuir__falls_back(const gpuir_searcher *s, int status) {
  return s->fallback && status != GPUIR_E_CANCELLED && status != GPUIR_E_DEADLINE && status != GPUIR_E_BUSY;
}

/* Hands a batch to the backend. If that fails, and the CPU is not to answer instead, returns its status. */
static int gpuir__batch_ask(gpuir_searcher *s, gpuir_batch *b) {
  const size_t nq = b->desc.nq;
  int status;
  if (!b->told) {
    b->own.len = 0;
    b->desc.statuses = (int *)(void *)gpuir__buf_room(&s->engine.a, &b->own, nq * sizeof(int));
    if (!b->desc.statuses) return gpuir__engine_fail(&s->engine, GPUIR_E_NOMEM, "out of memory");
  }
  memset(b->desc.statuses, 0, nq * sizeof(int));
  status = s->backend.begin(s->backend.context, &b->desc, gpuir__batch_deadline(s->engine.timeout_ns, nq),
                            s->engine.limits.cancel, &b->running, &b->error);
  b->asked = !status;
  if (!status) return GPUIR_OK;
  if (gpuir__falls_back(s, status)) {
    s->engine.info.backend_failures += nq;
    return GPUIR_OK;
  }
  s->engine.error = b->error;
  if (b->error.code != status)
    (void)gpuir__fail(&s->engine.error, status, 0, "backend %s: %s", s->backend.name, gpuir_strerror(status));
  return status;
}

/* Takes a batch back from the backend; returns how many queries it leaves to the CPU, which become pending. */
static size_t gpuir__batch_take(gpuir_searcher *s, gpuir_batch *b) {
  const gpuir_batch_desc *desc = &b->desc;
  const int status = s->backend.finish(s->backend.context, b->running, &b->error);
  size_t i, failed = 0, left = 0;
  for (i = 0; status && i < desc->nq; i++) failed += desc->statuses[i] != 0;
  for (i = 0; status && i < desc->nq; i++) {
    if (!failed) desc->statuses[i] = status; /* it does not say whose it is */
    if (!desc->statuses[i]) continue;
    desc->counts[i] = 0;
    if (!gpuir__falls_back(s, desc->statuses[i])) continue;
    desc->statuses[i] = GPUIR__PENDING;
    left++;
  }
  s->engine.info.queries += desc->nq - left;
  s->engine.info.backend_failures += left;
  return left;
}

/* Chooses the words for a batch's status: the CPU's, or else those of the backend, even if the CPU made its failure
 * good. */
static void gpuir__batch_words(gpuir_searcher *s, const gpuir_batch *b, int status) {
  gpuir_error *err = &s->engine.error;
  if ((!status || err->code != status) && b->error.code) *err = b->error;
  if (status && err->code != status)
    (void)gpuir__fail(err, status, 0, "%s: %s", gpuir_backend_name(s), gpuir_strerror(status));
}

/* Ends a batch that is in flight. */
static int gpuir__batch_finish(gpuir_batch *b) {
  gpuir_searcher *s = b->searcher;
  const gpuir_batch_desc *desc = &b->desc;
  size_t left = desc->nq, i;
  int status = GPUIR_OK;
  b->searcher = NULL;
  if (b->asked) {
    left = gpuir__batch_take(s, b);
  } else if (desc->statuses) {
    for (i = 0; i < desc->nq; i++) desc->statuses[i] = GPUIR__PENDING;
  }
  memset(&s->engine.error, 0, sizeof s->engine.error);
  if (left) status = gpuir__batch_cpu(s, desc, desc->statuses);
  for (i = 0; desc->statuses && i < desc->nq && !desc->statuses[i]; i++) {}
  if (desc->statuses) status = i < desc->nq ? desc->statuses[i] : GPUIR_OK;
  gpuir__batch_words(s, b, status);
  for (i = 0; status && !b->told && i < desc->nq; i++) desc->counts[i] = 0;
  return status;
}

/* Checks and copies what a batch asks for. */
static int gpuir__batch_copy(const gpuir_searcher *s, const gpuir_batch_desc *from, gpuir_batch_desc *to) {
  size_t i;
  *to = *from;
  if (to->nq && (!to->queries || !to->counts || (to->k && !to->hits))) return GPUIR_E_ARGUMENT;
  if (to->nq == 1 && to->k > s->ix->documents) to->k = (size_t)s->ix->documents;
  if (to->nq > SIZE_MAX / sizeof *to->queries || (to->nq > 1 && to->k > SIZE_MAX / sizeof *to->hits / to->nq))
    return GPUIR_E_ARGUMENT;
  for (i = 0; i < to->nq; i++) {
    if (!to->queries[i] || to->queries[i]->ix != s->ix) return GPUIR_E_ARGUMENT;
    to->counts[i] = 0;
  }
  return GPUIR_OK;
}

GPUIR_API int gpuir_search_begin(gpuir_searcher *s, const gpuir_batch_desc *desc, gpuir_batch **batch) {
  gpuir_batch *b;
  int status;
  if (batch) *batch = NULL;
  if (!s || !desc || !batch) return GPUIR_E_ARGUMENT;
  for (b = s->batches; b < s->batches + GPUIR__IN_FLIGHT && b->searcher; b++) {}
  if (b == s->batches + GPUIR__IN_FLIGHT)
    return gpuir__engine_fail(&s->engine, GPUIR_E_BUSY, "two batches of this searcher are in flight");
  status = gpuir__batch_copy(s, desc, &b->desc);
  if (status) return status;
  b->asked = 0;
  b->told = desc->statuses != NULL;
  memset(&b->error, 0, sizeof b->error);
  if (s->has_backend && desc->nq) status = gpuir__batch_ask(s, b);
  if (status) return status;
  b->searcher = s;
  *batch = b;
  return GPUIR_OK;
}

GPUIR_API int gpuir_search_poll(gpuir_batch *b) {
  if (!b || !b->searcher) return GPUIR_E_ARGUMENT;
  return !b->asked || b->searcher->backend.poll(b->searcher->backend.context, b->running) != 0;
}

GPUIR_API int gpuir_search_finish(gpuir_batch *b) {
  return b && b->searcher ? gpuir__batch_finish(b) : GPUIR_E_ARGUMENT;
}

GPUIR_API int gpuir_search_batch(gpuir_searcher *s, const gpuir_query *const *queries, size_t nq, size_t k,
                                 gpuir_hit *hits, uint32_t *counts) {
  gpuir_batch_desc desc;
  gpuir_batch *b;
  int status;
  memset(&desc, 0, sizeof desc);
  desc.queries = queries;
  desc.nq = nq;
  desc.k = k;
  desc.hits = hits;
  desc.counts = counts;
  status = gpuir_search_begin(s, &desc, &b);
  return status ? status : gpuir__batch_finish(b);
}

GPUIR_API int gpuir_search(gpuir_searcher *s, const gpuir_query *query, gpuir_hit *hits, size_t k,
                           size_t *n) {
  uint32_t count = 0;
  int status;
  if (n) *n = 0;
  if (!s || !query || !n || (k && !hits) || query->ix != s->ix) return GPUIR_E_ARGUMENT;
  if (!s->has_backend) return gpuir__engine_search(&s->engine, query, hits, k, n);
  status = gpuir_search_batch(s, &query, 1, k, hits, &count);
  *n = count;
  return status;
}

GPUIR_API int gpuir_count(gpuir_searcher *s, const gpuir_query *query, uint64_t *matches) {
  if (matches) *matches = 0;
  if (!s || !query || !matches || query->ix != s->ix) return GPUIR_E_ARGUMENT;
  return gpuir__engine_count(&s->engine, query, matches);
}

/* ---- explanations ---- */

/* Writes how AND will be evaluated over at least two lists. */
static void gpuir__explain_and(const gpuir__engine *e, const gpuir_query *q, const unsigned *order,
                               unsigned npositive, char *plan, size_t cap) {
  const uint32_t least = e->cursors[order[0]].list.df, most = e->cursors[order[npositive - 1]].list.df;
  const uint32_t ratio =
      e->cursors[order[1]].list.df / least; /* of the first intersection, the costliest one */
  const char *how = ratio <= GPUIR__BLOCK / GPUIR__MANY ? "blocks meet register by register"
                    : ratio < GPUIR__BLOCK              ? "candidates are looked up in most blocks"
                                                        : "most blocks are skipped";
  const char *method = "simd";
#ifndef GPUIR_NO_LAB
  if (e->intersection) {
    method = e->intersection->name;
    how = "as asked for";
  }
#endif
  (void)snprintf(plan, cap,
                 "%s, driven by the shortest list (df %u of up to %u, first ratio %u): %s, %s (%s)",
                 q->mode == GPUIR_AND ? "AND" : "AND, then OR if fewer than k match", (unsigned)least,
                 (unsigned)most, (unsigned)ratio, method, how, gpuir_simd_name(e->ix->simd));
}

/* Writes how a query will be evaluated. */
static void gpuir__explain_plan(const gpuir__engine *e, const gpuir_query *q, unsigned npositive, char *plan,
                                size_t cap) {
  unsigned order[GPUIR_MAX_TERMS];
  const char *simd = gpuir_simd_name(e->ix->simd);
  if (!npositive || (q->mode == GPUIR_AND && npositive < q->npositive)) {
    (void)snprintf(plan, cap, "nothing to do: %s",
                   q->nunknown == q->npositive           ? "no known term"
                   : q->mode == GPUIR_AND && q->nunknown ? "AND with a term that no document holds"
                                                         : "the document's segment lacks a term");
    return;
  }
  gpuir__order_by_df(e, npositive, order);
  if (e->evaluator == GPUIR_EVAL_EXHAUSTIVE)
    (void)snprintf(plan, cap, "exhaustive: every posting, in docID tiles");
  else if (npositive == 1)
    (void)snprintf(plan, cap, "one list of %u blocks, those below the threshold passed over (%s)",
                   (unsigned)e->cursors[order[0]].list.nblocks, simd);
  else if (q->mode == GPUIR_OR)
    (void)snprintf(plan, cap,
                   "OR by MaxScore over docID tiles, bounds from blocks, %u lists of df %u to %u (%s)",
                   npositive, (unsigned)e->cursors[order[0]].list.df,
                   (unsigned)e->cursors[order[npositive - 1]].list.df, simd);
  else
    gpuir__explain_and(e, q, order, npositive, plan, cap);
}

/* Explains what each term adds to document `docid`, whose leaf is open; returns 1 if the document matches. */
static int gpuir__explain_terms(gpuir__engine *e, const gpuir_query *q, uint32_t docid,
                                gpuir_explanation *x) {
  unsigned i, matched = 0, excluded = 0;
  x->nterms = q->n;
  for (i = 0; i < q->n; i++) {
    const gpuir__query_term *t = &q->terms[i];
    gpuir_explain_term *o = &x->terms[i];
    const unsigned c = e->rare.cursor_of[i];
    gpuir__cursor *cursor;
    o->term = gpuir__query_term_name(q, t, &o->term_len);
    o->q = t->q;
    o->negated = t->negated;
    o->tokens = t->kind == GPUIR__PHRASE ? t->tokens : 1;
    o->members = t->members;
    o->df = t->kind == GPUIR__PHRASE ? 0 : t->df;
    o->idf = t->idf;
    o->weight = t->weight;
    o->norm = gpuir__norm_of(q->norm.a, q->norm.b, x->length);
    if (c == GPUIR__NO_TERM) continue;
    cursor = &e->cursors[c];
    if (gpuir__cursor_seek(cursor, docid) != docid) continue;
    o->tf = gpuir__list_tf(&cursor->list, cursor->block * GPUIR__BLOCK + cursor->pos);
    if (t->negated) {
      excluded++;
    } else {
      o->contribution = gpuir__contribution(t->weight, o->tf, o->norm);
      x->score += t->q * o->contribution;
      matched++;
    }
  }
  return !excluded && (q->mode == GPUIR_OR ? matched > 0 : matched == q->npositive);
}

GPUIR_API int gpuir_explain(gpuir_searcher *s, const gpuir_query *q, uint32_t docid, gpuir_explanation *x) {
  const gpuir__leaf *leaf;
  gpuir__engine *e;
  unsigned npositive;
  int status;
  if (!s || !q || !x || q->ix != s->ix) return GPUIR_E_ARGUMENT;
  memset(x, 0, sizeof *x);
  if (docid >= s->ix->docids) return GPUIR_E_NOT_FOUND;
  leaf = gpuir__leaf_of(s->ix, docid);
  if (leaf->deleted && gpuir__deleted_has(leaf->deleted, docid - leaf->base)) return GPUIR_E_NOT_FOUND;
  e = &s->engine;
  gpuir__engine_start(e);
  status = gpuir__terms_open(e, q, (size_t)(leaf - s->ix->leaves), &npositive);
  if (status) return status;
  gpuir__explain_plan(e, q, npositive, x->plan, sizeof x->plan);
  x->length = leaf->seg->lengths[docid - leaf->base];
  x->k1 = q->k1;
  x->b = q->b;
  x->average_length = s->ix->average_length;
  x->matches = gpuir__explain_terms(e, q, docid - leaf->base, x);
  if (!x->matches) x->score = 0;
  gpuir__engine_reset(e);
  return GPUIR_OK;
}

/* ---- public cursors ---- */

struct gpuir_cursor {
  gpuir_allocator a;
  const uint32_t *lengths; /* of all documents */
  gpuir__cursor c;
};

GPUIR_API int gpuir_cursor_open(const gpuir_index *ix, uint64_t term_id, gpuir_cursor **cursor,
                                gpuir_error *err) {
  const gpuir__segment *seg;
  gpuir_cursor *p;
  int status;
  if (cursor) *cursor = NULL;
  if (!ix || !cursor) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cursor_open: NULL argument");
  seg = gpuir__only(ix);
  if (!seg) return gpuir__fail_unmerged(ix, err);
  if (term_id >= seg->stat.terms) return gpuir__fail(err, GPUIR_E_NOT_FOUND, 0, "%s: no such term", ix->path);
  p = (gpuir_cursor *)gpuir__alloc_zero(&ix->a, sizeof *p);
  if (!p) return gpuir__fail_nomem(err);
  p->a = ix->a;
  p->lengths = seg->lengths;
  gpuir__cursor_reset(&p->c);
  status = gpuir__list_open(seg, &ix->a, term_id, &p->c.list);
  if (status) {
    gpuir__free(&ix->a, p, sizeof *p);
    return gpuir__fail(err, status, 0, "%s: cannot open a list: %s", ix->path,
                       gpuir__list_why(seg, term_id, status));
  }
  (void)gpuir__cursor_seek(&p->c, 0);
  *cursor = p;
  return GPUIR_OK;
}

GPUIR_API void gpuir_cursor_close(gpuir_cursor *cursor) {
  if (cursor) {
    gpuir_allocator a = cursor->a;
    gpuir__list_close(&a, &cursor->c.list);
    gpuir__free(&a, cursor, sizeof *cursor);
  }
}

GPUIR_API uint32_t gpuir_cursor_docid(const gpuir_cursor *cursor) {
  return cursor && cursor->c.pos < cursor->c.n ? cursor->c.docs[cursor->c.pos] : GPUIR_END;
}

GPUIR_API uint32_t gpuir_cursor_next(gpuir_cursor *cursor) {
  return cursor ? gpuir__cursor_step(&cursor->c) : GPUIR_END;
}

GPUIR_API uint32_t gpuir_cursor_next_geq(gpuir_cursor *cursor, uint32_t docid) {
  uint32_t here = gpuir_cursor_docid(cursor);
  return here == GPUIR_END || here >= docid ? here : gpuir__cursor_seek(&cursor->c, docid);
}

GPUIR_API uint32_t gpuir_cursor_tf(gpuir_cursor *cursor) {
  const gpuir__cursor *c = cursor ? &cursor->c : NULL;
  return c && c->pos < c->n ? gpuir__list_tf(&c->list, c->block * GPUIR__BLOCK + c->pos) : 0;
}

GPUIR_API int gpuir_cursor_positions(gpuir_cursor *cursor, uint32_t *positions, uint32_t cap, uint32_t *n) {
  gpuir__cursor *c = cursor ? &cursor->c : NULL;
  gpuir__positions block;
  gpuir__occurrences walk;
  uint32_t i;
  if (n) *n = 0;
  if (!c || !n || (!positions && cap)) return GPUIR_E_ARGUMENT;
  if (!c->list.positions) return GPUIR_E_UNSUPPORTED;
  if (c->pos >= c->n) return GPUIR_E_NOT_FOUND;
  gpuir__cursor_freqs(c);
  gpuir__positions_open(&block, &c->list, c->block, c->values, c->n);
  gpuir__positions_find(&block, c->values, c->pos, cursor->lengths[c->docs[c->pos]], &walk);
  cap = gpuir__min32(cap, gpuir_cursor_tf(cursor));
  for (i = 0; i < cap; i++) {
    positions[i] = gpuir__occurrences_next(&walk);
    if (positions[i] == GPUIR_END || (i && positions[i] <= positions[i - 1])) return GPUIR_E_FORMAT;
  }
  *n = i;
  return GPUIR_OK;
}

/* ---- backends ---- */

GPUIR_API int gpuir_searcher_set_backend(gpuir_searcher *s, const gpuir_backend *backend, int fallback) {
  unsigned i;
  if (!s) return GPUIR_E_ARGUMENT;
  if (backend && backend->version != GPUIR_BACKEND_VERSION) return GPUIR_E_VERSION;
  if (backend && (!backend->begin || !backend->poll || !backend->finish || !backend->name))
    return GPUIR_E_ARGUMENT;
  for (i = 0; i < GPUIR__IN_FLIGHT; i++)
    if (s->batches[i].searcher) return gpuir__engine_fail(&s->engine, GPUIR_E_BUSY, "a batch is in flight");
  if (s->has_backend && s->backend.close) s->backend.close(s->backend.context);
  s->has_backend = backend != NULL;
  s->fallback = fallback;
  if (backend) s->backend = *backend;
  return GPUIR_OK;
}

/* ============================================================================
 * [25-folder]  live indexes: the folder; opening
 *
 * The folder of a live index has
 *
 *     manifest       what the last commit left, replaced as a whole
 *     NNNNNN.gpuir   the segments: index files; no number is used twice
 *     lock           locked by the writer
 *
 * and the manifest
 *
 *     head           gpuir__manifest_head
 *     entries        a gpuir__entry a segment, in the order of documents
 *     logs           each segment's deleted docIDs in order of deletion, in variable bytes
 *     checksum       XXH3 of all above
 *
 * A reader takes no lock: if a segment of the manifest has gone, or is another one, the writer has replaced the
 * manifest meanwhile.
 *
 * Uses      [03-codecs] (variable bytes), [13b-snapshot].
 * Start at  gpuir__manifest_parse, gpuir__folder_open, gpuir_open.
 * Tests     tests/unit/25_folder.c
 * ==========================================================================*/

#define GPUIR__MANIFEST_FORMAT 1u
#define GPUIR__MOST_NUMBER 999999999999999999u /* of a segment: 18 digits */

typedef struct gpuir__manifest_head {
  uint8_t magic[8];
  uint32_t format, segments;
  uint64_t generation; /* commits */
  uint64_t content;    /* commits that changed the documents */
  uint64_t next;       /* the least number that no segment has had */
} gpuir__manifest_head;

typedef struct gpuir__entry {
  uint64_t number;
  uint64_t hash; /* of the segment's header, which has checksums of all the file */
  uint32_t documents, deleted;
} gpuir__entry;

typedef struct gpuir__manifest {
  gpuir__manifest_head head;
  gpuir__buf entries; /* gpuir__entry */
  gpuir__buf docids;  /* uint32_t, the deleted ones of all segments */
} gpuir__manifest;

static void gpuir__manifest_free(const gpuir_allocator *a, gpuir__manifest *m) {
  gpuir__buf_free(a, &m->entries);
  gpuir__buf_free(a, &m->docids);
}

/* Returns the i-th entry (< segments). */
static gpuir__entry gpuir__manifest_entry(const gpuir__manifest *m, size_t i) {
  gpuir__entry e;
  memcpy(&e, m->entries.data + i * sizeof e, sizeof e);
  return e;
}

/* Reads a number of at most 32 bits in sevens; 0 if there is none in *p up to end. */
static int gpuir__manifest_number(const uint8_t **p, const uint8_t *end, uint32_t *value) {
  uint64_t v = 0;
  unsigned shift;
  for (shift = 0; shift < 35 && *p < end; shift += 7) {
    const uint8_t byte = *(*p)++;
    v |= (uint64_t)(byte & 127) << shift;
    if (byte & 128) continue;
    *value = (uint32_t)v;
    return v <= UINT32_MAX;
  }
  return 0;
}

/* Appends a number in sevens. */
static int gpuir__manifest_put(const gpuir_allocator *a, gpuir__buf *out, uint32_t value) {
  uint8_t bytes[5];
  return gpuir__buf_put(a, out, bytes, (size_t)(gpuir__vbyte_put(bytes, value) - bytes));
}

static int gpuir__manifest_bad(gpuir_error *err, uint64_t offset, const char *path, const char *cause) {
  return gpuir__fail(err, GPUIR_E_FORMAT, offset, "%s/manifest: %s", gpuir__tail(path), cause);
}

static int gpuir__compare_numbers(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

/* Checks that no number is there twice: a small file could have one segment opened very often. */
static int gpuir__manifest_numbers(const gpuir_allocator *a, const gpuir__manifest *m, const char *path,
                                   gpuir_error *err) {
  const size_t n = m->head.segments;
  uint64_t *numbers = (uint64_t *)gpuir__alloc(a, n * sizeof *numbers);
  size_t i;
  int twice = 0;
  if (!numbers) return gpuir__fail_nomem(err);
  for (i = 0; i < n; i++) numbers[i] = gpuir__manifest_entry(m, i).number;
  qsort(numbers, n, sizeof *numbers, gpuir__compare_numbers);
  for (i = 1; i < n; i++) twice |= numbers[i] == numbers[i - 1];
  gpuir__free(a, numbers, n * sizeof *numbers);
  return twice ? gpuir__manifest_bad(err, 0, path, "a segment stands there twice") : GPUIR_OK;
}

/* Reads the logs from p up to end, as long as the entries say. */
static int gpuir__manifest_logs(const gpuir_allocator *a, gpuir__manifest *m, const char *path,
                                const uint8_t *p, const uint8_t *end, gpuir_error *err) {
  size_t i;
  uint32_t j, docid;
  for (i = 0; i < m->head.segments; i++) {
    const gpuir__entry e = gpuir__manifest_entry(m, i);
    if (e.documents > GPUIR__MAX_DOCUMENTS || e.deleted > e.documents || !e.number ||
        e.number >= m->head.next)
      return gpuir__manifest_bad(err, 0, path, "a segment's numbers are out of range");
    for (j = 0; j < e.deleted; j++) {
      if (!gpuir__manifest_number(&p, end, &docid) || docid >= e.documents)
        return gpuir__manifest_bad(err, 0, path, "a deleted document is out of range");
      if (gpuir__buf_put(a, &m->docids, &docid, sizeof docid)) return gpuir__fail_nomem(err);
    }
  }
  return p == end ? GPUIR_OK : gpuir__manifest_bad(err, 0, path, "bytes behind the last log");
}

/* Reads a manifest from bytes[0..n) into *m, which is empty; `path` is the folder's, for messages. 0, FORMAT, VERSION,
 * NOMEM. */
static int gpuir__manifest_parse(const gpuir_allocator *a, gpuir__manifest *m, const char *path,
                                 const uint8_t *bytes, size_t n, gpuir_error *err) {
  const size_t head = sizeof m->head;
  int status;
  if (n < head + 8) return gpuir__manifest_bad(err, 0, path, "shorter than a manifest");
  memcpy(&m->head, bytes, head);
  if (memcmp(m->head.magic, gpuir__manifest_magic, sizeof m->head.magic))
    return gpuir__manifest_bad(err, 0, path, "not a manifest: no magic number");
  if (m->head.format != GPUIR__MANIFEST_FORMAT)
    return gpuir__fail(err, GPUIR_E_VERSION, 8, "%s/manifest: format %u, this build reads %u",
                       gpuir__tail(path), (unsigned)m->head.format, GPUIR__MANIFEST_FORMAT);
  if (gpuir__load64(bytes + n - 8) != XXH3_64bits(bytes, n - 8))
    return gpuir__manifest_bad(err, n - 8, path, "its checksum is wrong");
  if (!m->head.segments || m->head.segments > (n - head - 8) / sizeof(gpuir__entry))
    return gpuir__manifest_bad(err, 12, path, "its segments do not fit");
  if (m->head.next > GPUIR__MOST_NUMBER)
    return gpuir__manifest_bad(err, 32, path, "there is no number left for a segment");
  if (gpuir__buf_put(a, &m->entries, bytes + head, m->head.segments * sizeof(gpuir__entry)))
    return gpuir__fail_nomem(err);
  status = gpuir__manifest_numbers(a, m, path, err);
  if (status) return status;
  return gpuir__manifest_logs(a, m, path, bytes + head + m->entries.len, bytes + n - 8, err);
}

/* Reads the open file. */
static int gpuir__manifest_load(const gpuir_allocator *a, gpuir__manifest *m, const char *path, int fd,
                                gpuir_error *err) {
  struct stat st;
  uint8_t *bytes;
  size_t n;
  int status;
  if (fstat(fd, &st)) return gpuir__fail_errno(err, path, "cannot stat the manifest");
  if (!S_ISREG(st.st_mode)) return gpuir__manifest_bad(err, 0, path, "not a regular file");
  if ((uint64_t)st.st_size > SIZE_MAX / 16) return gpuir__fail_nomem(err);
  n = (size_t)st.st_size;
  bytes = (uint8_t *)gpuir__alloc(a, n);
  if (!bytes) return gpuir__fail_nomem(err);
  if (gpuir__pread_all(fd, bytes, n, 0))
    status = gpuir__fail_errno(err, path, "cannot read the manifest");
  else
    status = gpuir__manifest_parse(a, m, path, bytes, n, err);
  gpuir__free(a, bytes, n);
  return status;
}

/* Reads the manifest of an open folder into *m, which is emptied first. *found: 0 if there is none, which is no
 * error. */
static int gpuir__manifest_read(const gpuir_allocator *a, gpuir__manifest *m, int folder, const char *path,
                                int *found, gpuir_error *err) {
  const int fd = openat(folder, "manifest", O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  int status;
  m->entries.len = m->docids.len = 0;
  *found = fd >= 0;
  if (fd < 0) return errno == ENOENT ? GPUIR_OK : gpuir__fail_errno(err, path, "cannot open the manifest");
  status = gpuir__manifest_load(a, m, path, fd, err);
  (void)close(fd);
  return status;
}

/* Writes the name of a segment. */
static void gpuir__segment_name(char name[32], uint64_t number) {
  (void)snprintf(name, 32, "%06llu.gpuir", (unsigned long long)number);
}

/* Returns the checksum of the segment's header. */
static uint64_t gpuir__segment_hash(const gpuir__segment *seg) {
  return gpuir__load64(seg->map + offsetof(gpuir__header, hash));
}

/* ---- opening ---- */

/* A folder that is being opened. */
typedef struct gpuir__opening {
  const gpuir_allocator *a;
  int folder;
  const char *path;
  const gpuir_open_desc *desc;
  gpuir__manifest manifest;
  gpuir__leaf *leaves; /* [manifest.head.segments] */
  size_t n;            /* of them that are open */
  int gone;            /* a segment has gone, or is another one */
} gpuir__opening;

#define GPUIR__OPENING_TRIES 100u /* of a reader, each of which needs a commit meanwhile to fail */

static void gpuir__opening_clear(gpuir__opening *o) {
  while (o->n) gpuir__leaf_close(&o->leaves[--o->n]);
  gpuir__free(o->a, o->leaves, o->manifest.head.segments * sizeof *o->leaves);
  o->leaves = NULL;
}

/* Takes an entry's segment and set over from the index that shares, if it has it. 1: taken; 0: not; NOMEM. */
static int gpuir__opening_share(gpuir__opening *o, const gpuir__entry *e, const uint32_t *log,
                                gpuir__leaf *leaf) {
  const gpuir_index *share = o->desc ? o->desc->share : NULL;
  size_t i;
  for (i = 0; share && i < share->nleaves; i++) {
    const gpuir__leaf *old = &share->leaves[i];
    int status;
    if (old->seg->number != e->number || gpuir__segment_hash(old->seg) != e->hash ||
        old->seg->simd != gpuir__simd_level(o->desc->simd))
      continue;
    status = gpuir__log_extend(old->seg, log, e->deleted);
    if (!status) status = gpuir__deleted_make(old->seg, e->deleted, old->deleted, &leaf->deleted);
    if (status) return status == GPUIR_E_NOMEM ? status : 0;
    leaf->seg = gpuir__segment_share(old->seg);
    return 1;
  }
  return 0;
}

/* Opens an entry's segment. o->gone becomes 1 if it is not there. */
static int gpuir__opening_segment(gpuir__opening *o, const gpuir__entry *e, const uint32_t *log,
                                  gpuir__leaf *leaf, gpuir_error *err) {
  char name[32];
  int status = gpuir__opening_share(o, e, log, leaf);
  if (status) return status == 1 ? GPUIR_OK : gpuir__fail_nomem(err);
  gpuir__segment_name(name, e->number);
  if (faccessat(o->folder, name, F_OK, 0)) {
    o->gone = errno == ENOENT;
    return gpuir__fail_errno(err, name, "cannot open a segment");
  }
  status = gpuir__segment_open(o->a, o->folder, name, o->desc, &leaf->seg, err);
  if (status) {
    o->gone = status == GPUIR_E_FORMAT || faccessat(o->folder, name, F_OK, 0);
    return status;
  }
  leaf->seg->number = e->number;
  if (gpuir__segment_hash(leaf->seg) != e->hash || leaf->seg->stat.documents != e->documents) {
    o->gone = 1;
    status = gpuir__fail(err, GPUIR_E_FORMAT, 0, "%s: not the file that the manifest names", name);
  }
  if (!status && gpuir__log_extend(leaf->seg, log, e->deleted)) status = gpuir__fail_nomem(err);
  if (!status) {
    status = gpuir__deleted_make(leaf->seg, e->deleted, NULL, &leaf->deleted);
    if (status) (void)gpuir__manifest_bad(err, 0, o->path, gpuir_strerror(status));
  }
  if (status) gpuir__leaf_close(leaf);
  return status;
}

/* Opens the segments of the manifest. */
static int gpuir__opening_segments(gpuir__opening *o, gpuir_error *err) {
  const uint32_t *log = (const uint32_t *)(const void *)o->manifest.docids.data, none = 0;
  const size_t n = o->manifest.head.segments;
  int status = GPUIR_OK;
  if (!log) log = &none; /* nothing is deleted: it is not read */
  o->leaves = (gpuir__leaf *)gpuir__alloc_zero(o->a, n * sizeof *o->leaves);
  if (!o->leaves) return gpuir__fail_nomem(err);
  while (o->n < n && !status) {
    const gpuir__entry e = gpuir__manifest_entry(&o->manifest, o->n);
    status = gpuir__opening_segment(o, &e, log, &o->leaves[o->n], err);
    if (status) break;
    log += e.deleted;
    o->n++;
  }
  return status;
}

/* Reads manifest and segments until they fit each other. Each further try means that the writer has committed; if it
 * has not, the index is damaged. *found: 0 if there is no manifest. */
static int gpuir__opening_read(gpuir__opening *o, int *found, gpuir_error *err) {
  uint64_t before = UINT64_MAX;
  unsigned tries;
  for (tries = 0; tries < GPUIR__OPENING_TRIES; tries++) {
    int status = gpuir__manifest_read(o->a, &o->manifest, o->folder, o->path, found, err);
    if (status || !*found) return status;
    o->gone = 0;
    status = gpuir__opening_segments(o, err);
    if (!status) return GPUIR_OK;
    gpuir__opening_clear(o);
    if (!o->gone) return status;
    if (o->manifest.head.generation == before)
      return gpuir__fail(err, status == GPUIR_E_VERSION ? status : GPUIR_E_FORMAT, 0,
                         "%s: a file that the manifest names is damaged, another one, or not there",
                         gpuir__tail(o->path));
    before = o->manifest.head.generation;
  }
  return gpuir__fail(err, GPUIR_E_BUSY, 0, "%s: its writer keeps replacing what is being opened",
                     gpuir__tail(o->path));
}

/* Says whether a pool of analyzers is what the desc and a segment ask for. */
static int gpuir__pool_fits(const gpuir__pool *pool, const gpuir_open_desc *desc, const gpuir__segment *seg) {
  return !strcmp(pool->spec, seg->meta.analyzer_spec) && !strcmp(pool->stop_words, seg->meta.stop_words) &&
         pool->tokenize == desc->tokenize && pool->tokenize_user == desc->tokenize_user;
}

/* Opens the last commit in an open folder. */
static int gpuir__folder_open(const gpuir_allocator *a, int folder, const char *path,
                              const gpuir_open_desc *desc, gpuir_index **index, gpuir_error *err) {
  gpuir__opening o;
  gpuir__pool *pool;
  int found, status;
  memset(&o, 0, sizeof o);
  o.a = a;
  o.folder = folder;
  o.path = path;
  o.desc = desc;
  *index = NULL;
  status = gpuir__opening_read(&o, &found, err);
  if (!status && !found)
    status = gpuir__fail(err, GPUIR_E_FORMAT, 0, "%s: a folder without a manifest: not a live index",
                         gpuir__tail(path));
  if (!status) {
    pool = desc && desc->share ? desc->share->analysis.pool : NULL;
    if (pool && !gpuir__pool_fits(pool, desc, o.leaves[0].seg)) pool = NULL;
    status = gpuir__index_make(a, path, desc, o.leaves, o.n, pool, index, err);
    o.n = 0; /* the index has them */
  }
  if (!status) {
    (*index)->generation = o.manifest.head.generation;
    (*index)->content = o.manifest.head.content;
  }
  gpuir__opening_clear(&o);
  gpuir__manifest_free(a, &o.manifest);
  return status;
}

GPUIR_API int gpuir_open(const char *path, const gpuir_open_desc *desc, gpuir_index **index,
                         gpuir_error *err) {
  gpuir_allocator a = gpuir__allocator(desc ? desc->allocator : NULL);
  gpuir__leaf leaf = {NULL, NULL, 0};
  struct stat st;
  int status;
  if (index) *index = NULL;
  if (!index || (!path && !(desc && desc->data)))
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_open: path or index is NULL");
  if (!path) path = "index in memory";
  if (!(desc && desc->data) && !stat(path, &st) && S_ISDIR(st.st_mode)) {
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return gpuir__fail_errno(err, path, "cannot open");
    status = gpuir__folder_open(&a, folder, path, desc, index, err);
    (void)close(folder);
    return status;
  }
  status = gpuir__segment_open(&a, AT_FDCWD, path, desc, &leaf.seg, err);
  return status ? status : gpuir__index_make(&a, path, desc, &leaf, 1, NULL, index, err);
}

/* ============================================================================
 * [26-live]  live indexes: adding, deleting, committing
 *
 * What is added goes to a builder, the batch. Refresh makes a segment of it, adds what is to be deleted to the logs of
 * the segments, and returns a snapshot; commit syncs the segments and writes a manifest.
 *
 * One thread uses the handle, and a second one may merge: the mutex guards the list of segments, and is not held while
 * a segment is written or merged.
 *
 * Uses      [13b-snapshot], [15b-builder], [25-folder].
 * Start at  gpuir_live_refresh, gpuir_live_commit, gpuir_live_open.
 * Tests     tests/unit/26_live.c
 * ==========================================================================*/

/* Finds documents by name or by source: chains of documents whose keys have the same slot. */
typedef struct gpuir__keys {
  uint32_t *head; /* [slots] a document, plus 1; 0: none */
  uint32_t *next; /* [cap] the same */
  uint64_t slots; /* a power of two; 0: nothing was looked up yet */
  uint64_t n;     /* documents in the chains */
  uint64_t cap;
} gpuir__keys;

/* A segment in the writer's list. */
typedef struct gpuir__piece {
  gpuir__segment *seg;
  gpuir__deleted *deleted; /* what snapshots of now delete from it, or NULL */
  gpuir__buf pending;      /* uint32_t: what the next refresh deletes */
  uint64_t *doomed;        /* a bit a document of both; NULL: none was deleted */
  gpuir__keys keys[2];     /* [GPUIR_BY_] */
  int synced;              /* its bytes are on disk */
  int committed;           /* the last manifest names it, or may */
} gpuir__piece;

/* The documents of the batch, which are not in a segment yet. */
typedef struct gpuir__live_batch {
  gpuir_builder *builder; /* NULL: nothing was added */
  uint64_t number;
  uint64_t n;         /* documents */
  gpuir__buf starts;  /* uint64_t a document: where its keys begin */
  gpuir__buf bytes;   /* of each document: the name's length (8 bytes), the source's, the name, the source */
  gpuir__buf pending; /* uint32_t */
  gpuir__buf doomed;  /* a byte a document */
  gpuir__keys keys[2];
} gpuir__live_batch;

struct gpuir_live {
  gpuir_allocator a;
  pthread_mutex_t mutex; /* guards what follows up to `merging`; the batch is the caller's thread's alone */
  gpuir__piece *pieces;
  size_t n, cap;
  uint64_t generation, content, next;
  gpuir__buf garbage;     /* uint64_t: segments that the manifest names, and the next one will not */
  int changed, documents; /* since the last commit: the list; its live documents */
  int status;             /* not 0: only gpuir_live_close is left */
  gpuir_error error;
  int merging;
  int folder, lock;
  char *path; /* absolute */
  size_t path_size;
  gpuir_open_desc open;
  uint64_t memory;
  unsigned threads;
  gpuir_index *like;   /* a segment of this index, whose settings all others get */
  struct stat example; /* of the manifest that was there, for modes of new files; st_mode 0: there was none */
  gpuir__live_batch batch;
};

/* ---- keys ---- */

static void gpuir__keys_free(const gpuir_allocator *a, gpuir__keys *k) {
  gpuir__free(a, k->head, (size_t)k->slots * 4);
  gpuir__free(a, k->next, (size_t)k->cap * 4);
  memset(k, 0, sizeof *k);
}

/* Puts document number k->n, whose key this is, in front of its chain. There must be room. */
static void gpuir__keys_put(gpuir__keys *k, const char *bytes, size_t len) {
  uint32_t *head = &k->head[XXH3_64bits(bytes, len) & (k->slots - 1)];
  k->next[k->n] = *head;
  *head = (uint32_t)++k->n;
}

/* Makes the table anew for n documents; its chains are empty. */
static int gpuir__keys_make(const gpuir_allocator *a, gpuir__keys *k, uint64_t n) {
  uint64_t slots = 16;
  while (slots < n) slots *= 2;
  gpuir__keys_free(a, k);
  k->head = (uint32_t *)gpuir__alloc_zero(a, (size_t)slots * 4);
  k->next = (uint32_t *)gpuir__alloc(a, (size_t)slots * 4);
  k->slots = k->cap = slots;
  if (k->head && k->next) return GPUIR_OK;
  gpuir__keys_free(a, k);
  return GPUIR_E_NOMEM;
}

/* Returns a document's key, which is joined in `room` if it is stored in two pieces. */
static const char *gpuir__doc_key(const gpuir_doc *doc, int by, char room[GPUIR__JOINED_MAX + 1],
                                  size_t *len) {
  *len = by == GPUIR_BY_NAME ? doc->name_len : doc->source_len;
  if (by == GPUIR_BY_SOURCE) return doc->source;
  if (!doc->name_piece_len[1]) return doc->name_piece[0];
  (void)gpuir_doc_name(doc, room, GPUIR__JOINED_MAX + 1);
  return room;
}

/* Puts all documents of a segment into a table. 0, NOMEM, FORMAT. */
static int gpuir__keys_of_segment(const gpuir_allocator *a, gpuir__keys *k, const gpuir__segment *seg,
                                  int by) {
  char room[GPUIR__JOINED_MAX + 1];
  const char *key;
  gpuir_doc doc;
  uint64_t i;
  size_t len;
  int status = gpuir__keys_make(a, k, seg->stat.documents);
  for (i = 0; i < seg->stat.documents && !status; i++) {
    status = gpuir__segment_doc(seg, (uint32_t)i, &doc);
    if (status) break;
    key = gpuir__doc_key(&doc, by, room, &len);
    gpuir__keys_put(k, key, len);
  }
  if (status) gpuir__keys_free(a, k);
  return status;
}

/* Returns the key of the batch's document i. */
static const char *gpuir__batch_key(const gpuir__live_batch *b, uint64_t i, int by, size_t *len) {
  const uint8_t *p = b->bytes.data + gpuir__load64(b->starts.data + 8 * i);
  const uint64_t name = gpuir__load64(p), source = gpuir__load64(p + 8);
  *len = (size_t)(by == GPUIR_BY_NAME ? name : source);
  return (const char *)p + 16 + (by == GPUIR_BY_NAME ? 0 : name);
}

/* Puts the batch's documents that are not in its table there. 0 or NOMEM. */
static int gpuir__keys_of_batch(const gpuir_allocator *a, gpuir__live_batch *b, int by) {
  gpuir__keys *k = &b->keys[by];
  size_t len;
  if (b->n > k->cap && gpuir__keys_make(a, k, 2 * b->n)) return GPUIR_E_NOMEM;
  while (k->n < b->n) {
    const char *key = gpuir__batch_key(b, k->n, by, &len);
    gpuir__keys_put(k, key, len);
  }
  return GPUIR_OK;
}

/* ---- pieces ---- */

static int gpuir__bit(const uint64_t *bits, uint32_t i) { return (int)(bits[i / 64] >> i % 64 & 1); }

static void gpuir__piece_free(const gpuir_allocator *a, gpuir__piece *p) {
  gpuir__free(a, p->doomed, (size_t)(p->seg->stat.documents / 64 + 1) * 8);
  gpuir__keys_free(a, &p->keys[0]);
  gpuir__keys_free(a, &p->keys[1]);
  gpuir__buf_free(a, &p->pending);
  gpuir__deleted_close(p->deleted);
  gpuir__segment_close(p->seg);
}

/* Counts the documents of a piece that snapshots of now have. */
static uint64_t gpuir__piece_live(const gpuir__piece *p) {
  return p->seg->stat.documents - (p->deleted ? p->deleted->n : 0);
}

/* Makes the bits of documents that are or will be deleted. */
static int gpuir__piece_bits(const gpuir_allocator *a, gpuir__piece *p) {
  const size_t size = (size_t)(p->seg->stat.documents / 64 + 1) * 8;
  if (p->doomed) return GPUIR_OK;
  p->doomed = (uint64_t *)gpuir__alloc_zero(a, size);
  if (!p->doomed) return GPUIR_E_NOMEM;
  if (p->deleted) memcpy(p->doomed, p->deleted->bits, size);
  return GPUIR_OK;
}

/* Notes that a document is to be deleted, unless it is. 0 or NOMEM. */
static int gpuir__piece_doom(const gpuir_allocator *a, gpuir__piece *p, uint32_t docid, uint64_t *n) {
  if (gpuir__piece_bits(a, p)) return GPUIR_E_NOMEM;
  if (gpuir__bit(p->doomed, docid)) return GPUIR_OK;
  if (gpuir__buf_put(a, &p->pending, &docid, sizeof docid)) return GPUIR_E_NOMEM;
  p->doomed[docid / 64] |= (uint64_t)1 << docid % 64;
  ++*n;
  return GPUIR_OK;
}

/* Dooms a piece's documents with this key, and takes them out of their chain. */
static int gpuir__piece_delete(const gpuir_allocator *a, gpuir__piece *p, int by, const char *bytes,
                               size_t len, uint64_t *n) {
  gpuir__keys *k = &p->keys[by];
  char room[GPUIR__JOINED_MAX + 1];
  uint32_t *link;
  gpuir_doc doc;
  size_t key_len;
  int status = k->slots ? GPUIR_OK : gpuir__keys_of_segment(a, k, p->seg, by);
  if (status) return status;
  link = &k->head[XXH3_64bits(bytes, len) & (k->slots - 1)];
  while (*link && !status) {
    const uint32_t docid = *link - 1;
    const char *key;
    status = gpuir__segment_doc(p->seg, docid, &doc);
    if (status) break;
    key = gpuir__doc_key(&doc, by, room, &key_len);
    if (key_len == len && !memcmp(key, bytes, len)) {
      status = gpuir__piece_doom(a, p, docid, n);
      *link = k->next[docid];
    } else {
      link = &k->next[docid];
    }
  }
  return status;
}

/* Deletes from the batch's documents likewise. */
static int gpuir__batch_delete(const gpuir_allocator *a, gpuir__live_batch *b, int by, const char *bytes,
                               size_t len, uint64_t *n) {
  gpuir__keys *k = &b->keys[by];
  uint32_t *link;
  size_t key_len;
  if (!b->n) return GPUIR_OK;
  if (gpuir__keys_of_batch(a, b, by)) return GPUIR_E_NOMEM;
  link = &k->head[XXH3_64bits(bytes, len) & (k->slots - 1)];
  while (*link) {
    const uint32_t docid = *link - 1;
    const char *key = gpuir__batch_key(b, docid, by, &key_len);
    if (key_len != len || memcmp(key, bytes, len) != 0) {
      link = &k->next[docid];
      continue;
    }
    if (!b->doomed.data[docid]) {
      if (gpuir__buf_put(a, &b->pending, &docid, sizeof docid)) return GPUIR_E_NOMEM;
      b->doomed.data[docid] = 1;
      ++*n;
    }
    *link = k->next[docid];
  }
  return GPUIR_OK;
}

/* ---- the handle ---- */

/* Says why the handle can only be closed, if that is so. */
static int gpuir__live_ready(gpuir_live *l, gpuir_error *err) {
  if (!l) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "no live index given");
  if (l->status && err) *err = l->error;
  return l->status;
}

/* Ends the handle's use after a failure, which *err tells. */
static int gpuir__live_fail(gpuir_live *l, int status, const gpuir_error *local, gpuir_error *err) {
  if (!status) return GPUIR_OK;
  (void)pthread_mutex_lock(&l->mutex); /* a merge looks at it */
  l->status = status;
  if (local->code == status)
    l->error = *local;
  else
    (void)gpuir__fail(&l->error, status, 0, "%s: %s", gpuir__tail(l->path), gpuir_strerror(status));
  (void)pthread_mutex_unlock(&l->mutex);
  if (err) *err = l->error;
  return status;
}

/* Writes the path of a segment, which is absolute, to a new string; `suffix`: "", or ".tmp", with which the names of
 * its temporary files begin. */
static char *gpuir__live_path(const gpuir_live *l, uint64_t number, const char *suffix, size_t *size) {
  char name[40];
  name[0] = '/';
  gpuir__segment_name(name + 1, number);
  memcpy(name + strlen(name), suffix, strlen(suffix) + 1);
  return gpuir__concat(&l->a, l->path, strlen(l->path), name, strlen(name), size);
}

/* Gives a new file the mode of the manifest that was there when the index was opened, and its owner and group where the
 * system allows that: who could not read the index is not to read what is added. Where the group does not go with the
 * file, the group gets what all users get. */
static int gpuir__live_keep_mode(const gpuir_live *l, int fd, const char *name, gpuir_error *err) {
  const struct stat *old = &l->example;
  mode_t mode = old->st_mode & 0777;
  struct stat now;
  if (!old->st_mode) return GPUIR_OK;
  if (fchown(fd, old->st_uid, old->st_gid) && fchown(fd, (uid_t)-1, old->st_gid)) errno = 0;
  if (fstat(fd, &now)) return gpuir__fail_errno(err, name, "cannot stat");
  if (now.st_gid != old->st_gid) mode = (mode & 0707) | (mode & 07) << 3;
  return fchmod(fd, mode) ? gpuir__fail_errno(err, name, "cannot change the mode") : GPUIR_OK;
}

/* Notes the manifest's mode. In a folder where all users may make files, that of another user is no example. */
static int gpuir__live_example(gpuir_live *l, gpuir_error *err) {
  struct stat folder;
  if (fstat(l->folder, &folder) || fstatat(l->folder, "manifest", &l->example, 0))
    return gpuir__fail_errno(err, l->path, "cannot stat");
  if (folder.st_mode & S_IWOTH && l->example.st_uid != geteuid()) l->example.st_mode = 0;
  return GPUIR_OK;
}

/* Makes a builder of segment `number`, whose settings are `settings` or, if that is NULL, those of the index. */
static int gpuir__live_builder(const gpuir_live *l, uint64_t number, const gpuir_builder_desc *settings,
                               gpuir_builder **builder, gpuir_error *err) {
  gpuir_builder_desc desc;
  char name[32], *path;
  size_t size;
  int fd, status;
  memset(&desc, 0, sizeof desc);
  if (settings) {
    desc = *settings;
  } else {
    const gpuir__segment *like = l->like->leaves[0].seg;
    desc.like = l->like;
    desc.store_text = like->section[GPUIR__S_TEXT] != NULL;
    desc.positions = like->lists.positions != NULL;
    desc.simd = l->open.simd;
  }
  desc.allocator = &l->a;
  desc.memory = l->memory;
  desc.threads = l->threads;
  gpuir__segment_name(name, number);
  fd = openat(l->folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (fd < 0) return gpuir__fail_errno(err, name, "cannot create");
  path = gpuir__live_path(l, number, "", &size);
  desc.path = path;
  status = gpuir__live_keep_mode(l, fd, name, err);
  if (!status)
    status = path ? gpuir__builder_make(&desc, &fd, l->like ? l->like->analysis.pool : NULL, builder, err)
                  : gpuir__fail_nomem(err);
  if (fd >= 0) (void)close(fd);
  if (status) (void)unlinkat(l->folder, name, 0);
  gpuir__free(&l->a, path, size);
  return status;
}

/* Writes a builder's segment and opens it; destroys the builder. */
static int gpuir__live_write(const gpuir_live *l, gpuir_builder *b, uint64_t number, gpuir__segment **seg,
                             gpuir_error *err) {
  char name[32];
  int status = gpuir_builder_write(b, NULL, err);
  gpuir_builder_destroy(b);
  gpuir__segment_name(name, number);
  *seg = NULL;
  if (!status) status = gpuir__segment_open(&l->a, l->folder, name, &l->open, seg, err);
  if (status)
    (void)unlinkat(l->folder, name, 0);
  else
    (*seg)->number = number;
  return status;
}

/* Makes room for one more piece. */
static int gpuir__live_room(gpuir_live *l) {
  const size_t cap = l->cap ? 2 * l->cap : 16;
  void *p;
  if (l->n < l->cap) return GPUIR_OK;
  p = l->a.resize(l->a.user, l->pieces, l->cap * sizeof *l->pieces, cap * sizeof *l->pieces);
  if (!p) return GPUIR_E_NOMEM;
  l->pieces = (gpuir__piece *)p;
  l->cap = cap;
  return GPUIR_OK;
}

/* Takes a piece out of the list. Its file goes with the next commit, or at once if no manifest names it. 0 or NOMEM:
 * then it stays. */
static int gpuir__live_drop(gpuir_live *l, size_t i) {
  gpuir__piece *p = &l->pieces[i];
  char name[32];
  if (p->committed) {
    if (gpuir__buf_put(&l->a, &l->garbage, &p->seg->number, 8)) return GPUIR_E_NOMEM;
  } else {
    gpuir__segment_name(name, p->seg->number);
    (void)unlinkat(l->folder, name, 0);
  }
  gpuir__piece_free(&l->a, p);
  memmove(p, p + 1, (l->n - i - 1) * sizeof *p);
  l->n--;
  l->changed = 1;
  return GPUIR_OK;
}

/* ---- adding and deleting ---- */

static void gpuir__live_batch_clear(const gpuir_allocator *a, gpuir__live_batch *b) {
  gpuir__keys_free(a, &b->keys[0]);
  gpuir__keys_free(a, &b->keys[1]);
  gpuir__buf_free(a, &b->starts);
  gpuir__buf_free(a, &b->bytes);
  gpuir__buf_free(a, &b->pending);
  gpuir__buf_free(a, &b->doomed);
  b->n = 0;
}

/* Keeps a document's name and source, by which it may be deleted before it is in a segment. 0 or NOMEM. */
static int gpuir__batch_note(const gpuir_allocator *a, gpuir__live_batch *b, const gpuir_doc_desc *doc) {
  const uint64_t lens[2] = {doc ? doc->name_len : 0, doc ? doc->source_len : 0};
  const uint64_t start = b->bytes.len;
  const uint8_t live = 0;
  if (gpuir__buf_put(a, &b->starts, &start, 8) || gpuir__buf_put(a, &b->bytes, lens, 16) ||
      (lens[0] && gpuir__buf_put(a, &b->bytes, doc->name, doc->name_len)) ||
      (lens[1] && gpuir__buf_put(a, &b->bytes, doc->source, doc->source_len)) ||
      gpuir__buf_put(a, &b->doomed, &live, 1))
    return GPUIR_E_NOMEM;
  b->n++;
  return GPUIR_OK;
}

/* Returns a new number for a segment. */
static uint64_t gpuir__live_number(gpuir_live *l) {
  uint64_t number;
  (void)pthread_mutex_lock(&l->mutex);
  number = l->next++;
  (void)pthread_mutex_unlock(&l->mutex);
  return number;
}

GPUIR_API int gpuir_live_add(gpuir_live *l, const gpuir_doc_desc *doc, const char *text, size_t len,
                             gpuir_error *err) {
  gpuir_error local;
  int status = gpuir__live_ready(l, err);
  if (status) return status;
  memset(&local, 0, sizeof local);
  if (!l->batch.builder) {
    l->batch.number = gpuir__live_number(l);
    status = gpuir__live_builder(l, l->batch.number, NULL, &l->batch.builder, &local);
  }
  if (!status) status = gpuir_builder_add_text(l->batch.builder, doc, text, len, &local);
  if (status == GPUIR_E_ARGUMENT) {
    if (err) *err = local;
    return status;
  }
  if (!status && gpuir__batch_note(&l->a, &l->batch, doc)) status = gpuir__fail_nomem(&local);
  return gpuir__live_fail(l, status, &local, err);
}

GPUIR_API int gpuir_live_delete(gpuir_live *l, int by, const char *bytes, size_t len, uint64_t *n,
                                gpuir_error *err) {
  uint64_t count = 0;
  gpuir_error local;
  size_t i;
  int status = gpuir__live_ready(l, err);
  if (n) *n = 0;
  if (status) return status;
  if ((by != GPUIR_BY_NAME && by != GPUIR_BY_SOURCE) || !bytes || !len)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0,
                       "gpuir_live_delete: by a name or a source, which has a byte");
  memset(&local, 0, sizeof local);
  (void)pthread_mutex_lock(&l->mutex);
  for (i = 0; i < l->n && !status; i++)
    status = gpuir__piece_delete(&l->a, &l->pieces[i], by, bytes, len, &count);
  (void)pthread_mutex_unlock(&l->mutex);
  if (!status) status = gpuir__batch_delete(&l->a, &l->batch, by, bytes, len, &count);
  if (n) *n = count;
  return gpuir__live_fail(l, status, &local, err);
}

/* ---- refresh ---- */

/* Makes what is pending part of a piece's log. 0 or NOMEM. */
static int gpuir__piece_apply(const gpuir_allocator *a, gpuir__piece *p) {
  const uint32_t *docids = (const uint32_t *)(const void *)p->pending.data;
  gpuir__deleted *set;
  uint32_t n;
  int status;
  if (!p->pending.len) return GPUIR_OK;
  (void)pthread_mutex_lock(&p->seg->log.mutex);
  n = p->deleted ? p->deleted->n : 0;
  status = gpuir__log_append(p->seg, docids, p->pending.len / 4);
  n += (uint32_t)(p->pending.len / 4);
  (void)pthread_mutex_unlock(&p->seg->log.mutex);
  if (!status) status = gpuir__deleted_make(p->seg, n, p->deleted, &set);
  if (status) return status;
  gpuir__deleted_close(p->deleted);
  p->deleted = set;
  gpuir__buf_free(a, &p->pending);
  return GPUIR_OK;
}

/* Makes a piece of the batch's segment, which goes to the end of the list. */
static int gpuir__live_take_batch(gpuir_live *l, gpuir_error *err) {
  gpuir__live_batch *b = &l->batch;
  gpuir__piece piece;
  uint64_t n = 0;
  size_t i;
  int status;
  memset(&piece, 0, sizeof piece);
  status = gpuir__live_write(l, b->builder, b->number, &piece.seg, err);
  b->builder = NULL;
  if (status) return status;
  for (i = 0; i < b->pending.len / 4 && !status; i++)
    status = gpuir__piece_doom(&l->a, &piece, gpuir__load32(b->pending.data + 4 * i), &n);
  (void)pthread_mutex_lock(&l->mutex);
  if (!status) status = gpuir__live_room(l);
  if (!status) l->pieces[l->n++] = piece;
  l->changed = l->documents = 1;
  (void)pthread_mutex_unlock(&l->mutex);
  gpuir__live_batch_clear(&l->a, b);
  if (!status) return GPUIR_OK;
  gpuir__piece_free(&l->a, &piece);
  return gpuir__fail_nomem(err);
}

/* Takes the pieces of which no document is left out of the list, but for the last one. */
static int gpuir__live_drop_dead(gpuir_live *l) {
  size_t i = 0;
  int status = GPUIR_OK;
  while (i < l->n && l->n > 1 && !status)
    if (gpuir__piece_live(&l->pieces[i]))
      i++;
    else
      status = gpuir__live_drop(l, i);
  return status;
}

/* Makes what was added and deleted part of the list. */
static int gpuir__live_flush(gpuir_live *l, gpuir_error *err) {
  uint64_t documents = 0;
  size_t i;
  int status = GPUIR_OK;
  if (l->batch.builder) status = gpuir__live_take_batch(l, err);
  if (status) return status;
  (void)pthread_mutex_lock(&l->mutex);
  for (i = 0; i < l->n && !status; i++) {
    if (l->pieces[i].pending.len) l->changed = l->documents = 1;
    status = gpuir__piece_apply(&l->a, &l->pieces[i]);
  }
  if (!status) status = gpuir__live_drop_dead(l);
  if (status) (void)gpuir__fail(err, status, 0, "%s: %s", gpuir__tail(l->path), gpuir_strerror(status));
  for (i = 0; i < l->n; i++) documents += l->pieces[i].seg->stat.documents;
  if (!status && documents > GPUIR__MAX_DOCUMENTS)
    status =
        gpuir__fail(err, GPUIR_E_LIMIT, 0, "%s: more than 2^32-2 documents, deleted ones included: merge it",
                    gpuir__tail(l->path));
  (void)pthread_mutex_unlock(&l->mutex);
  return status;
}

/* Makes a snapshot of the list. */
static int gpuir__live_snapshot(gpuir_live *l, gpuir_index **index, gpuir_error *err) {
  gpuir__leaf *leaves;
  size_t n, i;
  int status;
  (void)pthread_mutex_lock(&l->mutex);
  n = l->n;
  leaves = (gpuir__leaf *)gpuir__alloc_zero(&l->a, n * sizeof *leaves);
  for (i = 0; leaves && i < n; i++) {
    gpuir__deleted *set = l->pieces[i].deleted;
    leaves[i].seg = gpuir__segment_share(l->pieces[i].seg);
    if (set) (void)__atomic_add_fetch(&set->refs, 1, __ATOMIC_RELAXED);
    leaves[i].deleted = set;
  }
  (void)pthread_mutex_unlock(&l->mutex);
  if (!leaves) return gpuir__fail_nomem(err);
  status = gpuir__index_make(&l->a, l->path, &l->open, leaves, n, l->like->analysis.pool, index, err);
  gpuir__free(&l->a, leaves, n * sizeof *leaves);
  if (status) return status;
  (*index)->generation = l->generation;
  (*index)->content = l->content;
  return GPUIR_OK;
}

GPUIR_API int gpuir_live_refresh(gpuir_live *l, gpuir_index **index, gpuir_error *err) {
  gpuir_error local;
  int status;
  if (index) *index = NULL;
  status = gpuir__live_ready(l, err);
  if (status) return status;
  if (!index)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_live_refresh: no place for the index given");
  memset(&local, 0, sizeof local);
  status = gpuir__live_flush(l, &local);
  if (!status) status = gpuir__live_snapshot(l, index, &local);
  return gpuir__live_fail(l, status, &local, err);
}

/* ---- commit ---- */

/* Syncs the files of pieces that were not synced, then their names. */
static int gpuir__live_sync(gpuir_live *l, gpuir_error *err) {
  size_t i;
  int any = 0;
  for (i = 0; i < l->n; i++) {
    gpuir__piece *p = &l->pieces[i];
    char name[32];
    int fd, failed;
    if (p->synced) continue;
    gpuir__segment_name(name, p->seg->number);
    fd = openat(l->folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return gpuir__fail_errno(err, name, "cannot open");
    failed = fsync(fd) ? errno : 0;
    (void)close(fd);
    errno = failed;
    if (failed) return gpuir__fail_errno(err, name, "cannot sync");
    p->synced = any = 1;
  }
  if (any && fsync(l->folder) && errno != EINVAL) return gpuir__fail_errno(err, l->path, "cannot sync");
  return GPUIR_OK;
}

/* Appends the manifest's bytes. */
static int gpuir__live_manifest(const gpuir_live *l, gpuir__buf *out) {
  gpuir__manifest_head head;
  uint64_t hash;
  uint32_t j;
  size_t i;
  int status;
  memcpy(head.magic, gpuir__manifest_magic, sizeof head.magic);
  head.format = GPUIR__MANIFEST_FORMAT;
  head.segments = (uint32_t)l->n;
  head.generation = l->generation + 1;
  head.content = l->content + (l->documents != 0);
  head.next = l->next;
  status = gpuir__buf_put(&l->a, out, &head, sizeof head);
  for (i = 0; i < l->n && !status; i++) {
    const gpuir__piece *p = &l->pieces[i];
    gpuir__entry e;
    e.number = p->seg->number;
    e.hash = gpuir__segment_hash(p->seg);
    e.documents = (uint32_t)p->seg->stat.documents;
    e.deleted = p->deleted ? p->deleted->n : 0;
    status = gpuir__buf_put(&l->a, out, &e, sizeof e);
  }
  for (i = 0; i < l->n; i++)
    for (j = 0; l->pieces[i].deleted && j < l->pieces[i].deleted->n && !status; j++)
      status = gpuir__manifest_put(&l->a, out, gpuir__log_get(&l->pieces[i].seg->log, j));
  if (status) return status;
  hash = XXH3_64bits(out->data, out->len);
  return gpuir__buf_put(&l->a, out, &hash, 8);
}

/* Writes the manifest and puts it in place of the old one. */
static int gpuir__live_publish(const gpuir_live *l, const gpuir__buf *bytes, gpuir_error *err) {
  int fd, failed;
  if (unlinkat(l->folder, "manifest.tmp", 0) && errno != ENOENT)
    return gpuir__fail_errno(err, l->path, "cannot remove manifest.tmp");
  fd = openat(l->folder, "manifest.tmp", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (fd < 0) return gpuir__fail_errno(err, l->path, "cannot create manifest.tmp");
  failed = gpuir__live_keep_mode(l, fd, "manifest.tmp", err) ? errno : 0;
  if (!failed && (gpuir__pwrite_all(fd, bytes->data, bytes->len, 0) || fsync(fd))) failed = errno;
  if (close(fd) && errno != EINTR && !failed) failed = errno;
  if (!failed && renameat(l->folder, "manifest.tmp", l->folder, "manifest")) failed = errno;
  if (failed) (void)unlinkat(l->folder, "manifest.tmp", 0);
  if (!failed && fsync(l->folder) && errno != EINVAL) failed = errno;
  errno = failed;
  return failed ? gpuir__fail_errno(err, l->path, "cannot write the manifest") : GPUIR_OK;
}

/* Removes the files that the manifest has ceased to name. */
static void gpuir__live_collect(gpuir_live *l) {
  char name[32];
  size_t i;
  for (i = 0; i < l->garbage.len; i += 8) {
    gpuir__segment_name(name, gpuir__load64(l->garbage.data + i));
    (void)unlinkat(l->folder, name, 0);
  }
  l->garbage.len = 0;
}

/* Commits the list, if it has changed; the mutex is held. */
static int gpuir__live_commit_list(gpuir_live *l, gpuir_error *err) {
  gpuir__buf bytes = {NULL, 0, 0};
  size_t i;
  int status;
  if (!l->changed) return GPUIR_OK;
  status = gpuir__live_sync(l, err);
  if (!status && gpuir__live_manifest(l, &bytes)) status = gpuir__fail_nomem(err);
  if (!status) { /* also if that fails: the manifest may be in its place, and nothing that it names may be removed */
    for (i = 0; i < l->n; i++) l->pieces[i].committed = 1;
    status = gpuir__live_publish(l, &bytes, err);
  }
  gpuir__buf_free(&l->a, &bytes);
  if (status) return status;
  l->generation++;
  l->content += l->documents != 0;
  l->changed = l->documents = 0;
  gpuir__live_collect(l);
  return GPUIR_OK;
}

GPUIR_API int gpuir_live_commit(gpuir_live *l, gpuir_error *err) {
  gpuir_error local;
  int status = gpuir__live_ready(l, err);
  if (status) return status;
  memset(&local, 0, sizeof local);
  status = gpuir__live_flush(l, &local);
  if (!status) {
    (void)pthread_mutex_lock(&l->mutex);
    status = gpuir__live_commit_list(l, &local);
    (void)pthread_mutex_unlock(&l->mutex);
  }
  return gpuir__live_fail(l, status, &local, err);
}

/* ---- opening and closing ---- */

GPUIR_API void gpuir_live_close(gpuir_live *l) {
  gpuir_allocator a;
  char name[32];
  size_t i;
  if (!l) return;
  a = l->a;
  if (l->batch.builder) {
    gpuir_builder_destroy(l->batch.builder);
    gpuir__segment_name(name, l->batch.number);
    (void)unlinkat(l->folder, name, 0);
  }
  gpuir__live_batch_clear(&a, &l->batch);
  for (i = 0; i < l->n; i++) {
    gpuir__segment_name(name, l->pieces[i].seg->number);
    if (!l->pieces[i].committed && !l->status) (void)unlinkat(l->folder, name, 0);
    gpuir__piece_free(&a, &l->pieces[i]);
  }
  gpuir__free(&a, l->pieces, l->cap * sizeof *l->pieces);
  gpuir__buf_free(&a, &l->garbage);
  gpuir_close(l->like);
  gpuir__free(&a, l->path, l->path_size);
  if (l->lock >= 0) (void)close(l->lock);
  if (l->folder >= 0) (void)close(l->folder);
  (void)pthread_mutex_destroy(&l->mutex);
  gpuir__free(&a, l, sizeof *l);
}

/* Returns the number of a segment, or of one of its temporary files, whose name this is; 0 for any other name. */
static uint64_t gpuir__segment_number(const char *name) {
  uint64_t number = 0;
  size_t n = 0;
  for (; name[n] >= '0' && name[n] <= '9' && n < 19; n++) number = 10 * number + (uint64_t)(name[n] - '0');
  if (n < 6 || strncmp(name + n, ".gpuir", 6) != 0) return 0;
  name += n + 6;
  if (!*name) return number;
  if (strncmp(name, ".tmp.", 5) != 0 || !name[5] || strspn(name + 5, "0123456789") != strlen(name + 5))
    return 0;
  return number;
}

/* Says whether the list has segment `number`, and `name` is its own, not that of a temporary file. */
static int gpuir__live_names(const gpuir_live *l, uint64_t number, const char *name) {
  char own[32];
  size_t i;
  gpuir__segment_name(own, number);
  for (i = 0; i < l->n; i++)
    if (l->pieces[i].seg->number == number) return !strcmp(own, name);
  return 0;
}

/* Counts the files that are named like a live index's, but for those that the list has, and removes them if
 * `remove`. */
static int gpuir__live_strays(const gpuir_live *l, int remove, unsigned *n, gpuir_error *err) {
  const int fd = openat(l->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *dir = fd < 0 ? NULL : fdopendir(fd);
  const struct dirent *entry;
  *n = 0;
  if (!dir) {
    const int status = gpuir__fail_errno(err, l->path, "cannot list");
    if (fd >= 0) (void)close(fd);
    return status;
  }
  while ((entry = readdir(dir)) != NULL) {
    const uint64_t number = gpuir__segment_number(entry->d_name);
    if ((!number || gpuir__live_names(l, number, entry->d_name)) &&
        strcmp(entry->d_name, "manifest.tmp") != 0)
      continue;
    ++*n;
    if (remove) (void)unlinkat(l->folder, entry->d_name, 0);
  }
  (void)closedir(dir);
  return GPUIR_OK;
}

/* Opens the folder, or makes it. */
static int gpuir__live_folder(gpuir_live *l, const char *path, int create, gpuir_error *err) {
  char here[4096];
  l->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (l->folder < 0 && errno == ENOENT && create) {
    if (mkdir(path, 0777) && errno != EEXIST) return gpuir__fail_errno(err, path, "cannot make the folder");
    l->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }
  if (l->folder < 0) return gpuir__fail_errno(err, path, "cannot open");
  here[0] = 0;
  if (path[0] != '/') {
    if (!getcwd(here, sizeof here - 1)) return gpuir__fail_errno(err, path, "cannot name the current folder");
    memcpy(here + strlen(here), "/", 2);
  }
  l->path = gpuir__concat(&l->a, here, strlen(here), path, strlen(path), &l->path_size);
  return l->path ? GPUIR_OK : gpuir__fail_nomem(err);
}

/* Takes the writer's lock. */
static int gpuir__live_lock(gpuir_live *l, gpuir_error *err) {
  if (faccessat(l->folder, "lock", F_OK, 0) && faccessat(l->folder, "manifest", F_OK, 0)) {
    unsigned strays; /* which would be removed as what a killed writer left */
    const int status = gpuir__live_strays(l, 0, &strays, err);
    if (status) return status;
    if (strays)
      return gpuir__fail(err, GPUIR_E_ARGUMENT, 0,
                         "%s: no live index, but it has files that are named like those of one",
                         gpuir__tail(l->path));
  }
  l->lock = openat(l->folder, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (l->lock < 0) return gpuir__fail_errno(err, l->path, "cannot open its lock");
  if (!flock(l->lock, LOCK_EX | LOCK_NB)) return GPUIR_OK;
  if (errno != EWOULDBLOCK) return gpuir__fail_errno(err, l->path, "cannot lock");
  return gpuir__fail(err, GPUIR_E_BUSY, 0, "%s: another writer has this live index", gpuir__tail(l->path));
}

/* Makes the list of an index's segments, which the manifest names. */
static int gpuir__live_list(gpuir_live *l, const gpuir_index *ix, gpuir_error *err) {
  gpuir__leaf first = {NULL, NULL, 0};
  size_t i;
  for (i = 0; i < ix->nleaves; i++) {
    gpuir__piece *p;
    if (gpuir__live_room(l)) return gpuir__fail_nomem(err);
    p = &l->pieces[l->n++];
    memset(p, 0, sizeof *p);
    p->seg = gpuir__segment_share(ix->leaves[i].seg);
    p->deleted = ix->leaves[i].deleted;
    if (p->deleted) (void)__atomic_add_fetch(&p->deleted->refs, 1, __ATOMIC_RELAXED);
    p->synced = p->committed = 1;
  }
  l->generation = ix->generation;
  l->content = ix->content;
  first.seg = gpuir__segment_share(l->pieces[0].seg);
  return gpuir__index_make(&l->a, l->path, &l->open, &first, 1, ix->analysis.pool, &l->like, err);
}

/* Makes the folder's own name survive a loss of power, and the lock in it, which tells it from a folder of other files.
 */
static int gpuir__live_sync_folders(const gpuir_live *l, gpuir_error *err) {
  const int around = openat(l->folder, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int failed = 0;
  if (around < 0 && errno != EACCES)
    return gpuir__fail_errno(err, l->path, "cannot open the folder around it");
  if (fsync(l->folder) && errno != EINVAL) failed = errno;
  if (!failed && around >= 0 && fsync(around) && errno != EINVAL) failed = errno;
  if (around >= 0) (void)close(around);
  errno = failed;
  return failed ? gpuir__fail_errno(err, l->path, "cannot sync the new folder") : GPUIR_OK;
}

/* Makes an index without documents, which has the settings, and commits it. */
static int gpuir__live_found(gpuir_live *l, const gpuir_builder_desc *settings, gpuir_error *err) {
  gpuir__leaf leaf = {NULL, NULL, 0};
  gpuir_builder *b;
  gpuir_index *ix;
  unsigned strays;
  int status = gpuir__live_strays(l, 1, &strays, err); /* of a process that was killed in here */
  if (!status) status = gpuir__live_sync_folders(l, err);
  if (status) return status;
  l->next = 1;
  status = gpuir__live_builder(l, l->next, settings, &b, err);
  if (!status) status = gpuir__live_write(l, b, l->next, &leaf.seg, err);
  if (!status) status = gpuir__index_make(&l->a, l->path, &l->open, &leaf, 1, NULL, &ix, err);
  if (status) return status;
  l->next++;
  status = gpuir__live_list(l, ix, err);
  gpuir_close(ix);
  if (status) return status;
  l->pieces[0].synced = l->pieces[0].committed = 0;
  l->changed = 1;
  return gpuir__live_commit_list(l, err);
}

/* Reads the last commit, or makes the first one. */
static int gpuir__live_read(gpuir_live *l, const gpuir_live_desc *desc, gpuir_error *err) {
  gpuir__manifest m;
  gpuir_index *ix = NULL;
  unsigned strays;
  int found, status;
  memset(&m, 0, sizeof m);
  status = gpuir__manifest_read(&l->a, &m, l->folder, l->path, &found, err);
  l->next = m.head.next;
  gpuir__manifest_free(&l->a, &m);
  if (status) return status;
  if (!found && !desc->create)
    return gpuir__fail(err, GPUIR_E_FORMAT, 0, "%s: a folder without a manifest: not a live index",
                       gpuir__tail(l->path));
  if (!found) return gpuir__live_found(l, &desc->settings, err);
  status = gpuir__live_example(l, err);
  if (status) return status;
  status = gpuir__folder_open(&l->a, l->folder, l->path, &l->open, &ix, err);
  if (!status) status = gpuir__live_list(l, ix, err);
  gpuir_close(ix);
  return status ? status : gpuir__live_strays(l, 1, &strays, err);
}

GPUIR_API int gpuir_live_open(const gpuir_live_desc *desc, gpuir_live **live, gpuir_error *err) {
  gpuir_allocator a;
  gpuir_live *l;
  int status;
  if (live) *live = NULL;
  if (!desc || !live || !desc->settings.path || !*desc->settings.path)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_live_open: no path, or no place for the handle");
  if (desc->settings.order)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "a live index has the order in which documents are added");
  a = gpuir__allocator(desc->settings.allocator);
  l = (gpuir_live *)gpuir__alloc_zero(&a, sizeof *l);
  if (!l || pthread_mutex_init(&l->mutex, NULL)) {
    gpuir__free(&a, l, sizeof *l);
    return gpuir__fail_nomem(err);
  }
  l->a = a;
  l->folder = l->lock = -1;
  l->memory = desc->settings.memory ? desc->settings.memory : (uint64_t)64 << 20;
  l->threads = desc->settings.threads ? desc->settings.threads : 1;
  l->open.simd = desc->settings.simd;
  l->open.tokenize =
      desc->settings.like ? desc->settings.like->analysis.tokenize : desc->settings.analyzer.tokenize;
  l->open.tokenize_user = desc->settings.like ? desc->settings.like->analysis.tokenize_user
                                              : desc->settings.analyzer.tokenize_user;
  status = gpuir__live_folder(l, desc->settings.path, desc->create, err);
  if (!status) status = gpuir__live_lock(l, err);
  if (!status) status = gpuir__live_read(l, desc, err);
  if (!status)
    *live = l;
  else
    gpuir_live_close(l);
  return status;
}

/* ============================================================================
 * [27-live-merge]  live indexes: merging
 *
 * Segments that follow one another become one: the builder that makes an index from postings gets their live documents
 * and, term by term, the postings of those. So the file has the bytes of an index that is built of these documents at
 * once. Which segments: sizes are a binary counter's, so that of N documents there are about log2(N) segments, and a
 * document is copied as often.
 *
 * The list is locked at the beginning and at the end only. What is deleted meanwhile is deleted from the result then.
 *
 * Uses      [13b-snapshot], [15b-builder], [26-live].
 * Start at  gpuir_live_merge, gpuir__live_choose, gpuir__fusion_swap.
 * Tests     tests/unit/27_live_merge.c
 * ==========================================================================*/

/* A segment that is merged, as it was when the merge began. */
typedef struct gpuir__source {
  gpuir__leaf leaf; /* base: of its documents in the result */
  uint32_t n;       /* deleted ones of its log, which leave it */
  uint32_t *rank;   /* [word of the set] live documents before it; NULL: none is deleted */
  gpuir__walk walk; /* over its terms */
  int more;         /* there is a term */
} gpuir__source;

typedef struct gpuir__fusion {
  gpuir_live *l;
  gpuir__source *sources;
  size_t n;
  uint64_t number, documents; /* of the result */
  char *path;                 /* of the result; temporary files begin with it */
  size_t path_size;
  gpuir__area postings, positions; /* of one list */
  gpuir_builder *builder;
} gpuir__fusion;

/* Returns what number a live document of a source has in the result. */
static uint32_t gpuir__source_docid(const gpuir__source *s, uint32_t docid) {
  const gpuir__deleted *d = s->leaf.deleted;
  uint64_t below;
  if (!d) return s->leaf.base + docid;
  below = ~d->bits[docid / 64] & (((uint64_t)1 << docid % 64) - 1);
  return s->leaf.base + s->rank[docid / 64] + (uint32_t)__builtin_popcountll(below);
}

static int gpuir__source_has(const gpuir__source *s, uint32_t docid) {
  return !s->leaf.deleted || !gpuir__deleted_has(s->leaf.deleted, docid);
}

/* Counts the live documents before each word of a source's set, and numbers the documents from `base` on; *base becomes
 * what follows. 0 or NOMEM. */
static int gpuir__source_rank(const gpuir_allocator *a, gpuir__source *s, uint64_t *base) {
  const gpuir__deleted *d = s->leaf.deleted;
  uint32_t before = 0;
  uint64_t i;
  s->leaf.base = (uint32_t)*base;
  *base += s->leaf.seg->stat.documents - (d ? d->n : 0);
  if (!d) return GPUIR_OK;
  s->rank = (uint32_t *)gpuir__alloc(a, (size_t)d->words * 4);
  if (!s->rank) return GPUIR_E_NOMEM;
  for (i = 0; i < d->words; i++) {
    s->rank[i] = before;
    before += 64 - (uint32_t)__builtin_popcountll(d->bits[i]);
  }
  return GPUIR_OK;
}

/* Hands the live documents of a source to the builder. */
static int gpuir__fusion_documents(gpuir__fusion *f, const gpuir__source *s, gpuir_error *err) {
  const gpuir__segment *seg = s->leaf.seg;
  char room[GPUIR__JOINED_MAX + 1];
  gpuir_doc_desc desc;
  gpuir_doc doc;
  uint64_t i;
  int status = GPUIR_OK;
  for (i = 0; i < seg->stat.documents && !status; i++) {
    if (!gpuir__source_has(s, (uint32_t)i)) continue;
    status = gpuir__segment_doc(seg, (uint32_t)i, &doc);
    if (status) return gpuir__bad(seg, err, 0, "a document's source is none, or does not fit its name");
    memset(&desc, 0, sizeof desc);
    desc.name = gpuir__doc_key(&doc, GPUIR_BY_NAME, room, &desc.name_len);
    desc.source = doc.source;
    desc.source_len = doc.source_len;
    desc.first_line = doc.first_line;
    desc.last_line = doc.last_line;
    desc.source_offset = doc.source_offset;
    desc.source_bytes = doc.source_bytes;
    desc.hash = doc.hash;
    status = gpuir_builder_add_doc(f->builder, &desc, doc.length, doc.text, doc.text_len, err);
  }
  return status;
}

/* Finds the least term that a source stands at, and sums its postings up. Returns its first source, or NULL behind the
 * last term. */
static const gpuir__source *gpuir__fusion_least(const gpuir__fusion *f, uint64_t *df) {
  const gpuir__source *least = NULL;
  size_t i;
  *df = 0;
  for (i = 0; i < f->n; i++) {
    const gpuir__source *s = &f->sources[i];
    int c;
    if (!s->more) continue;
    c = least ? gpuir__compare_bytes(s->walk.term, s->walk.len, least->walk.term, least->walk.len) : -1;
    if (c > 0) continue;
    *df = c ? s->walk.record.df : *df + s->walk.record.df;
    if (c) least = s;
  }
  return least;
}

/* The postings of the term that is being merged. */
typedef struct gpuir__merged {
  uint32_t *docids, *tfs, *positions; /* positions: NULL for an index without them */
  uint64_t occurrences;
  uint32_t n;
} gpuir__merged;

/* Appends a source's live postings of its term. */
static int gpuir__source_postings(const gpuir__source *s, gpuir__list *l, gpuir__merged *m) {
  uint32_t docs[GPUIR__BLOCK_ROOM], freqs[GPUIR__BLOCK_ROOM], block, i, n;
  for (block = 0; block < l->nblocks; block++) {
    n = gpuir__list_docs(l, block, docs);
    gpuir__list_freqs(l, block, freqs);
    for (i = 0; i < n; i++) {
      if (docs[i] >= s->leaf.seg->stat.documents || freqs[i] == UINT32_MAX) return GPUIR_E_FORMAT;
      if (!gpuir__source_has(s, docs[i])) continue;
      m->docids[m->n] = gpuir__source_docid(s, docs[i]);
      m->tfs[m->n++] = freqs[i] + 1;
    }
  }
  return GPUIR_OK;
}

/* Appends the positions of a source's live postings: all are decoded, then those of deleted documents closed up. */
static int gpuir__source_positions(const gpuir__source *s, const gpuir__list *l, uint64_t cf,
                                   gpuir__merged *m) {
  uint32_t docs[GPUIR__BLOCK_ROOM], freqs[GPUIR__BLOCK_ROOM], block, i, n;
  uint32_t *from = m->positions + m->occurrences;
  int status = gpuir__segment_positions(s->leaf.seg, s->walk.id, from, cf);
  for (block = 0; block < l->nblocks && !status; block++) {
    n = gpuir__list_docs(l, block, docs);
    gpuir__list_freqs(l, block, freqs);
    for (i = 0; i < n; i++) {
      const uint32_t tf = freqs[i] + 1;
      if (gpuir__source_has(s, docs[i])) {
        memmove(m->positions + m->occurrences, from, (size_t)tf * 4);
        m->occurrences += tf;
      }
      from += tf;
    }
  }
  return status;
}

/* Appends a source's list of its term. */
static int gpuir__source_list(const gpuir__fusion *f, gpuir__source *s, gpuir__merged *m) {
  gpuir__list l;
  int status = gpuir__list_open(s->leaf.seg, &f->l->a, s->walk.id, &l);
  if (status) return status;
  status = gpuir__source_postings(s, &l, m);
  if (!status && m->positions) status = gpuir__source_positions(s, &l, gpuir__list_cf(&l), m);
  gpuir__list_close(&f->l->a, &l);
  return status;
}

/* Sums the occurrences of a term up over the sources that stand at it. */
static int gpuir__fusion_occurrences(const gpuir__fusion *f, const uint8_t *term, size_t len, uint64_t *cf) {
  size_t i;
  *cf = 0;
  for (i = 0; i < f->n; i++) {
    const gpuir__source *s = &f->sources[i];
    gpuir__list l;
    uint64_t own;
    int status;
    if (!s->more || gpuir__compare_bytes(s->walk.term, s->walk.len, term, len) != 0) continue;
    status = gpuir__list_open(s->leaf.seg, &f->l->a, s->walk.id, &l);
    if (status) return status;
    own = gpuir__list_cf(&l);
    if (!gpuir__list_holds(&l, own)) status = GPUIR_E_FORMAT;
    *cf += own;
    gpuir__list_close(&f->l->a, &l);
    if (status) return status;
  }
  return GPUIR_OK;
}

/* Merges the list of the least term, whose first source is `least`, and moves its sources on. */
static int gpuir__fusion_list(gpuir__fusion *f, const gpuir__source *least, uint64_t df, gpuir_error *err) {
  const int positions = least->leaf.seg->lists.positions != NULL;
  const size_t len = least->walk.len;
  uint8_t term[GPUIR_MAX_TERM + 1];
  gpuir__merged m = {NULL, NULL, NULL, 0, 0};
  uint64_t cf = 0;
  size_t i;
  int status = GPUIR_OK;
  memcpy(term, least->walk.term, len);
  if (positions) status = gpuir__fusion_occurrences(f, term, len, &cf);
  if (!status)
    status =
        gpuir__area_need(&f->l->a, &f->postings, df * 8, f->l->memory / 4, f->path, GPUIR__TMP_LISTS, err);
  if (!status && positions)
    status =
        gpuir__area_need(&f->l->a, &f->positions, cf * 4, f->l->memory / 4, f->path, GPUIR__TMP_UNITS, err);
  if (status) return status;
  m.docids = (uint32_t *)(void *)f->postings.data;
  m.tfs = m.docids + df;
  m.positions = positions ? (uint32_t *)(void *)f->positions.data : NULL;
  for (i = 0; i < f->n && !status; i++) {
    gpuir__source *s = &f->sources[i];
    if (!s->more || gpuir__compare_bytes(s->walk.term, s->walk.len, term, len) != 0) continue;
    status = gpuir__source_list(f, s, &m);
    s->more = gpuir__walk_next(&s->walk);
  }
  if (status)
    return gpuir__fail(err, status, 0, "%s: cannot merge the list of \"%.*s\": %s", gpuir__tail(f->l->path),
                       len < 32 ? (int)len : 32, (const char *)term, gpuir_strerror(status));
  if (!m.n) return GPUIR_OK;
  status =
      gpuir_builder_add_list(f->builder, (const char *)term, len, m.docids, m.tfs, m.positions, m.n, err);
  return status == GPUIR_E_ARGUMENT
             ? gpuir__fail(err, GPUIR_E_FORMAT, 0, "%s: a list to be merged is damaged",
                           gpuir__tail(f->l->path))
             : status;
}

/* Writes the result. */
static int gpuir__fusion_write(gpuir__fusion *f, gpuir__segment **result, gpuir_error *err) {
  const gpuir__source *least;
  gpuir_builder *b;
  uint64_t df;
  size_t i;
  int status = gpuir__live_builder(f->l, f->number, NULL, &f->builder, err);
  if (status) return status;
  for (i = 0; i < f->n && !status; i++) status = gpuir__fusion_documents(f, &f->sources[i], err);
  for (i = 0; i < f->n; i++) {
    gpuir__walk_start(&f->sources[i].walk, f->sources[i].leaf.seg);
    f->sources[i].more = gpuir__walk_next(&f->sources[i].walk);
  }
  while (!status && f->documents && (least = gpuir__fusion_least(f, &df)) != NULL)
    status = gpuir__fusion_list(f, least, df, err);
  b = f->builder;
  f->builder = NULL;
  if (!status) return gpuir__live_write(f->l, b, f->number, result, err);
  gpuir_builder_destroy(b);
  return status;
}

static void gpuir__fusion_free(gpuir__fusion *f) {
  const gpuir_allocator *a = &f->l->a;
  size_t i;
  for (i = 0; f->sources && i < f->n; i++) {
    gpuir__source *s = &f->sources[i];
    if (s->rank) gpuir__free(a, s->rank, (size_t)s->leaf.deleted->words * 4);
    gpuir__leaf_close(&s->leaf);
  }
  gpuir__free(a, f->sources, f->n * sizeof *f->sources);
  gpuir__area_free(a, &f->postings);
  gpuir__area_free(a, &f->positions);
  gpuir__free(a, f->path, f->path_size);
}

/* Chooses the pieces from *from up to *to that are worth merging: the youngest ones, as long as together they have half
 * as many documents as the next older one; or one of which over a quarter is deleted. 0 if there are none. */
static int gpuir__live_choose(const gpuir_live *l, int all, size_t *from, size_t *to) {
  uint64_t sum;
  size_t i = l->n - 1;
  *from = 0;
  *to = l->n;
  if (all) return l->n > 1 || l->pieces[0].deleted;
  sum = gpuir__piece_live(&l->pieces[i]);
  for (; i && 2 * sum >= gpuir__piece_live(&l->pieces[i - 1]); i--)
    sum += gpuir__piece_live(&l->pieces[i - 1]);
  *from = i;
  if (l->n - i > 1) return 1;
  for (i = l->n; i-- > 0;) {
    const gpuir__piece *p = &l->pieces[i];
    *from = i;
    *to = i + 1;
    if (p->deleted && (uint64_t)p->deleted->n * 4 > p->seg->stat.documents) return 1;
  }
  return 0;
}

/* Begins a merge: takes what it needs of the chosen pieces. *begun: 0 if there are none. */
static int gpuir__fusion_begin(gpuir__fusion *f, int all, int *begun, gpuir_error *err) {
  gpuir_live *l = f->l;
  size_t from, to, i;
  int status = GPUIR_OK;
  (void)pthread_mutex_lock(&l->mutex);
  if (l->status) {
    if (err) *err = l->error;
    status = l->status;
  } else if (l->merging) {
    status = gpuir__fail(err, GPUIR_E_BUSY, 0, "%s: another merge is running", gpuir__tail(l->path));
  }
  *begun = !status && gpuir__live_choose(l, all, &from, &to);
  if (*begun) {
    f->n = to - from;
    f->sources = (gpuir__source *)gpuir__alloc_zero(&l->a, f->n * sizeof *f->sources);
    if (!f->sources) status = gpuir__fail_nomem(err);
    for (i = 0; i < f->n && !status; i++) {
      const gpuir__piece *p = &l->pieces[from + i];
      gpuir__source *s = &f->sources[i];
      s->leaf.seg = gpuir__segment_share(p->seg);
      s->leaf.deleted = p->deleted;
      if (p->deleted) (void)__atomic_add_fetch(&p->deleted->refs, 1, __ATOMIC_RELAXED);
      s->n = p->deleted ? p->deleted->n : 0;
    }
    f->number = l->next++;
    l->merging = !status;
  }
  (void)pthread_mutex_unlock(&l->mutex);
  return status;
}

/* Numbers the documents, and writes the result. */
static int gpuir__fusion_run(gpuir__fusion *f, gpuir__segment **result, gpuir_error *err) {
  size_t i;
  f->path = gpuir__live_path(f->l, f->number, ".tmp", &f->path_size);
  if (!f->path) return gpuir__fail_nomem(err);
  for (i = 0; i < f->n; i++) {
    const int status = gpuir__segment_verify_directory(f->sources[i].leaf.seg, err);
    if (status) return status;
    if (gpuir__source_rank(&f->l->a, &f->sources[i], &f->documents)) return gpuir__fail_nomem(err);
  }
  return gpuir__fusion_write(f, result, err);
}

/* Finds a source's piece in the list; l->n if it is not there any more. */
static size_t gpuir__fusion_find(const gpuir__fusion *f, const gpuir__source *s) {
  const gpuir_live *l = f->l;
  size_t i = 0;
  while (i < l->n && l->pieces[i].seg != s->leaf.seg) i++;
  return i;
}

/* Deletes from the result what was deleted from the sources since the merge began, and dooms in it what is pending
 * there. */
static int gpuir__fusion_deletions(const gpuir__fusion *f, gpuir__piece *piece) {
  const gpuir_allocator *a = &f->l->a;
  uint64_t n = 0;
  uint32_t i;
  size_t k;
  int status = GPUIR_OK;
  for (k = 0; k < f->n && !status; k++) {
    const gpuir__source *s = &f->sources[k];
    for (i = s->n; i < s->leaf.seg->log.n && !status; i++)
      status = gpuir__piece_doom(a, piece, gpuir__source_docid(s, gpuir__log_get(&s->leaf.seg->log, i)), &n);
  }
  if (!status) status = gpuir__piece_apply(a, piece);
  for (k = 0; k < f->n && !status; k++) {
    const gpuir__source *s = &f->sources[k];
    const size_t at = gpuir__fusion_find(f, s);
    const gpuir__buf *pending = at < f->l->n ? &f->l->pieces[at].pending : NULL;
    for (i = 0; pending && i < pending->len / 4 && !status; i++)
      status = gpuir__piece_doom(a, piece, gpuir__source_docid(s, gpuir__load32(pending->data + 4 * i)), &n);
  }
  return status;
}

/* Puts the result in place of those of its sources that are left; of none, if no document of theirs is. The mutex is
 * held. 0 or NOMEM: then the list is as it was. */
static int gpuir__fusion_swap(gpuir__fusion *f, gpuir__piece *piece, int *placed) {
  gpuir_live *l = f->l;
  size_t k, at = l->n, left = 0;
  int status = gpuir__fusion_deletions(f, piece);
  *placed = 0;
  for (k = 0; k < f->n; k++) {
    const size_t i = gpuir__fusion_find(f, &f->sources[k]);
    if (i == l->n) continue;
    if (!left++) at = i;
  }
  if (status || !left) return status;
  /* room for all numbers first, so that nothing can fail half way */
  if (!gpuir__buf_room(&l->a, &l->garbage, 8 * left)) return GPUIR_E_NOMEM;
  while (left-- > 1) (void)gpuir__live_drop(l, at + 1);
  {
    gpuir__piece old = l->pieces[at];
    l->pieces[at] = *piece;
    status = gpuir__live_room(l); /* the old one goes to the end, and from there */
    if (status) {
      l->pieces[at] = old;
      return status;
    }
    l->pieces[l->n++] = old;
    (void)gpuir__live_drop(l, l->n - 1);
  }
  *placed = 1;
  (void)gpuir__live_drop_dead(l); /* without memory the dead ones stay till the next time */
  return GPUIR_OK;
}

/* Ends a merge that has a result, or has failed. */
static int gpuir__fusion_end(gpuir__fusion *f, gpuir__segment *result, int status, int *more,
                             gpuir_error *err) {
  gpuir_live *l = f->l;
  gpuir__piece piece;
  size_t from, to;
  char name[32];
  int placed = 0;
  memset(&piece, 0, sizeof piece);
  piece.seg = result;
  (void)pthread_mutex_lock(&l->mutex);
  if (!status && l->status) { /* the handle has failed meanwhile */
    status = l->status;
    if (err) *err = l->error;
  }
  if (!status && gpuir__fusion_swap(f, &piece, &placed)) status = gpuir__fail_nomem(err);
  l->merging = 0;
  *more = !status && gpuir__live_choose(l, 0, &from, &to);
  (void)pthread_mutex_unlock(&l->mutex);
  if (placed) return status;
  gpuir__segment_name(name, f->number);
  (void)unlinkat(l->folder, name, 0);
  if (result) gpuir__piece_free(&l->a, &piece);
  return status;
}

GPUIR_API int gpuir_live_merge(gpuir_live *l, int all, int *more, gpuir_error *err) {
  gpuir__segment *result = NULL;
  gpuir__fusion f;
  int begun, another = 0, status;
  if (more) *more = 0;
  if (!l) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "no live index given");
  memset(&f, 0, sizeof f);
  f.l = l;
  status = gpuir__fusion_begin(&f, all, &begun, err);
  if (!begun) return status;
  if (!status) {
    status = gpuir__fusion_run(&f, &result, err);
    status = gpuir__fusion_end(&f, result, status, &another, err);
  }
  gpuir__fusion_free(&f);
  if (more) *more = another;
  return status;
}

/* ============================================================================
 * [28-passages]  the places of a text that answer a query
 *
 * The text is analysed once. What the query names is found by comparing each token with the few terms of its slot in a
 * table; phrases by Baeza-Yates and Gonnet's Shift-And (Communications of the ACM 35(10), 1992) over the numbers of
 * their tokens. Each occurrence is a mention. The text is cut into fragments, which are lines or, of long lines,
 * sentences or words, but never within the first mention of a term in a fragment; only fragments with mentions are
 * kept. A window is a run of fragments. Its value is
 *
 *   (sum over the terms that no passage shows yet of weight * (1, 5/4 or 6/4 for one, two or more mentions))
 *     * CLOSE / (CLOSE + bytes between its first fragment and its last one)
 *
 * The most valuable window becomes a passage, the earliest and shortest of equal ones; it grows to its paragraph; and
 * so on, until all terms of the text are shown or the budget is spent. All of this is in integers: the same everywhere.
 *
 * Uses      [11-analysis], [13-reader], [16-query].
 * Start at  gpuir_passages.
 * Tests     tests/unit/28_passages.c
 * ==========================================================================*/

#define GPUIR__FRAGMENT 400u     /* bytes: longer lines are cut */
#define GPUIR__WINDOW_LINES 16u  /* lines that a window has at most */
#define GPUIR__CLOSE 1024u       /* bytes apart at which a window is worth half */
#define GPUIR__SLICE (64u << 10) /* bytes of text between looks at the clock */
#define GPUIR__NO_NEEDLE 255u

/* Tells when the call has to end. */
typedef struct gpuir__watch {
  uint64_t deadline; /* 0: none */
  const int *cancel;
  uint32_t steps;
  gpuir_error *err;
} gpuir__watch;

static int gpuir__watch_look(const gpuir__watch *w) {
  if (w->cancel && __atomic_load_n(w->cancel, __ATOMIC_RELAXED))
    return gpuir__fail(w->err, GPUIR_E_CANCELLED, 0, "the search for passages was cancelled");
  if (w->deadline && gpuir__now() > w->deadline)
    return gpuir__fail(w->err, GPUIR_E_DEADLINE, 0, "the search for passages exceeded its time limit");
  return GPUIR_OK;
}

static inline int gpuir__watch_step(gpuir__watch *w) {
  return GPUIR__LIKELY(++w->steps & 1023) ? GPUIR_OK : gpuir__watch_look(w);
}

/* ---- mentions: where in the text the query's terms stand ---- */

/* An occurrence of a term: bytes [at, end). */
typedef struct gpuir__mention {
  uint32_t at, end, term;
} gpuir__mention;

/* A word of the query, a member of its phrases, or both. */
typedef struct gpuir__needle {
  const char *text;
  uint8_t len, next; /* next: the number of the next needle in the slot; 0: none */
  uint8_t term, member;
} gpuir__needle;

typedef struct gpuir__finder {
  const gpuir_query *q;
  gpuir__analyzer *an;
  gpuir_allocator a;
  gpuir__watch watch;
  uint32_t base;       /* where in the text the analysed slice begins */
  uint32_t seen;       /* tokens so far */
  int unsorted;        /* a mention begins before the one that was found before it */
  gpuir__buf mentions; /* gpuir__mention */
  gpuir__buf states;   /* of each phrase: bit j says that its tokens 0 to j are the last j + 1 seen */
  uint64_t
      *follow; /* [phrase * nmembers + member] the tokens of the phrase that are this member, a bit each */
  unsigned nphrases, nprefixes, nneedles;
  int live;                                       /* some state is not 0 */
  uint8_t slots[256];                             /* numbers of needles */
  uint32_t ring[GPUIR_MAX_TERMS];                 /* where the last tokens begin */
  gpuir__needle needles[2 * GPUIR_MAX_TERMS + 1]; /* from number 1 on */
} gpuir__finder;

static inline unsigned gpuir__needle_slot(const char *token, size_t len) {
  return ((uint8_t)token[0] * 5u + (uint8_t)token[len - 1] * 19u + (unsigned)len) & 255u;
}

static void gpuir__needle_add(gpuir__finder *f, const gpuir__query_term *t, unsigned term, unsigned member) {
  const unsigned slot = gpuir__needle_slot(t->text, t->len);
  gpuir__needle *x = &f->needles[++f->nneedles];
  x->text = t->text;
  x->len = t->len;
  x->term = (uint8_t)term;
  x->member = (uint8_t)member;
  x->next = f->slots[slot];
  f->slots[slot] = (uint8_t)f->nneedles;
}

/* Makes room for the states of the query's phrases, and tells which tokens each has where. */
static int gpuir__finder_phrases(gpuir__finder *f) {
  const gpuir__query_phrases *p = f->q->phrases;
  const size_t n = f->nphrases, size = (n + n * p->nmembers) * sizeof(uint64_t);
  unsigned i, j, phrase = 0;
  uint64_t *states = (uint64_t *)(void *)gpuir__buf_room(&f->a, &f->states, size);
  if (!states) return gpuir__fail_nomem(f->watch.err);
  memset(states, 0, size);
  f->follow = states + n;
  for (i = 0; i < f->q->npositive; i++) {
    const gpuir__query_term *t = &f->q->terms[i];
    if (t->kind != GPUIR__PHRASE) continue;
    for (j = 0; j < t->tokens; j++)
      f->follow[phrase * p->nmembers + p->tokens[t->first + j]] |= (uint64_t)1 << j;
    phrase++;
  }
  for (i = 0; i < p->nmembers; i++) gpuir__needle_add(f, &p->members[i], GPUIR__NO_NEEDLE, i);
  return GPUIR_OK;
}

/* Puts what the query's positive terms name into the table. */
static int gpuir__finder_open(gpuir__finder *f) {
  unsigned i;
  for (i = 0; i < f->q->npositive; i++) {
    const gpuir__query_term *t = &f->q->terms[i];
    f->nphrases += t->kind == GPUIR__PHRASE;
    f->nprefixes += t->kind == GPUIR__PREFIX;
    if (t->kind == GPUIR__WORD) gpuir__needle_add(f, t, i, GPUIR__NO_NEEDLE);
  }
  return f->nphrases ? gpuir__finder_phrases(f) : GPUIR_OK;
}

static int gpuir__mention_put(gpuir__finder *f, uint32_t at, uint32_t end, uint32_t term) {
  gpuir__mention *to = (gpuir__mention *)(void *)gpuir__buf_room(&f->a, &f->mentions, sizeof *to);
  if (!to) return gpuir__fail_nomem(f->watch.err);
  if (f->mentions.len && to[-1].at > at) f->unsorted = 1;
  to->at = at;
  to->end = end;
  to->term = term;
  f->mentions.len += sizeof *to;
  return GPUIR_OK;
}

/* Moves all phrases on by one token: a member of phrases, or none. */
static int gpuir__phrases_step(gpuir__finder *f, unsigned member, uint32_t end) {
  uint64_t *states = (uint64_t *)(void *)f->states.data;
  unsigned i, phrase = 0;
  int status = GPUIR_OK;
  if (member == GPUIR__NO_NEEDLE) {
    if (f->live) memset(states, 0, f->nphrases * sizeof *states);
    f->live = 0;
    return GPUIR_OK;
  }
  f->live = 1;
  for (i = 0; i < f->q->npositive && !status; i++) {
    const gpuir__query_term *t = &f->q->terms[i];
    if (t->kind != GPUIR__PHRASE) continue;
    states[phrase] = (states[phrase] << 1 | 1) & f->follow[phrase * f->q->phrases->nmembers + member];
    if (states[phrase] >> (t->tokens - 1) & 1)
      status = gpuir__mention_put(f, f->ring[(f->seen - t->tokens) % GPUIR_MAX_TERMS], end, i);
    phrase++;
  }
  return status;
}

/* Finds the query's prefixes that a token begins with. */
static int gpuir__prefixes_step(gpuir__finder *f, const char *token, size_t len, uint32_t at, uint32_t end) {
  unsigned i;
  int status = GPUIR_OK;
  for (i = 0; i < f->q->npositive && !status; i++) {
    const gpuir__query_term *t = &f->q->terms[i];
    if (t->kind == GPUIR__PREFIX && t->len <= len && t->text[0] == token[0] &&
        !memcmp(t->text, token, t->len))
      status = gpuir__mention_put(f, at, end, i);
  }
  return status;
}

/* Takes the text's next token: a gpuir_token_fn. */
static int gpuir__finder_token(void *finder, const char *token, size_t len) {
  gpuir__finder *f = (gpuir__finder *)finder;
  const uint32_t at = f->base + (uint32_t)f->an->at, end = f->base + (uint32_t)f->an->end;
  unsigned member = GPUIR__NO_NEEDLE, i;
  int status = gpuir__watch_step(&f->watch);
  f->ring[f->seen++ % GPUIR_MAX_TERMS] = at;
  for (i = f->slots[gpuir__needle_slot(token, len)]; i && !status; i = f->needles[i].next) {
    const gpuir__needle *x = &f->needles[i];
    if (x->len != len || memcmp(x->text, token, len) != 0) continue;
    if (x->member != GPUIR__NO_NEEDLE) member = x->member;
    if (x->term != GPUIR__NO_NEEDLE) status = gpuir__mention_put(f, at, end, x->term);
  }
  if (f->nprefixes && !status) status = gpuir__prefixes_step(f, token, len, at, end);
  if (f->nphrases && !status) status = gpuir__phrases_step(f, member, end);
  return status;
}

static int gpuir__mention_compare(const void *x, const void *y) {
  const gpuir__mention *a = (const gpuir__mention *)x, *b = (const gpuir__mention *)y;
  if (a->at != b->at) return a->at < b->at ? -1 : 1;
  if (a->end != b->end) return a->end < b->end ? -1 : 1;
  return a->term < b->term ? -1 : a->term > b->term;
}

/* Returns how many bytes are analysed before the clock is looked at. A blank ends them, at which no token goes on. */
static size_t gpuir__text_slice(const char *text, size_t len) {
  size_t n = GPUIR__SLICE;
  if (len <= n) return len;
  while (n < len && !gpuir__is_space(text[n])) n++;
  return n;
}

/* Finds all mentions of the text, in order. A caller's tokenizer gets the text as a whole. */
static int gpuir__finder_run(gpuir__finder *f, const char *text, size_t len) {
  size_t at, n;
  int status = gpuir__finder_open(f);
  f->an->places = 1;
  for (at = 0; at < len && !status; at += n) {
    n = f->an->kind == GPUIR__CUSTOM ? len : gpuir__text_slice(text + at, len - at);
    f->base = (uint32_t)at;
    status = gpuir__watch_look(&f->watch);
    if (status) break;
    status = gpuir__analyze(f->an, text + at, n, gpuir__finder_token, f, NULL);
    if (status && f->watch.err && !f->watch.err->code)
      (void)gpuir__fail(f->watch.err, status, 0, "the text cannot be analysed: %s", gpuir_strerror(status));
  }
  f->an->places = 0;
  if (!status && f->unsorted)
    qsort(f->mentions.data, f->mentions.len / sizeof(gpuir__mention), sizeof(gpuir__mention),
          gpuir__mention_compare);
  return status;
}

/* ---- fragments: where the text may be cut ---- */

/* A part of the text that holds mentions. */
typedef struct gpuir__fragment {
  uint32_t at, end; /* the line's end belongs to it */
  uint32_t line;    /* number of the line in which it begins, from 0 */
  uint32_t mention; /* number of its first mention */
  uint64_t terms;   /* of its mentions, a bit each; 0: a passage has it */
} gpuir__fragment;

/* Walks over the text from fragment to fragment. */
typedef struct gpuir__cutter {
  const char *text;
  size_t len;
  size_t at, end; /* the current fragment */
  size_t line_end;
  uint32_t line;
} gpuir__cutter;

/* Says whether a sentence ends with the blank, or with the ideographic mark, that text[0..n) ends with. */
static int gpuir__ends_sentence(const char *text, size_t n) {
  if (n >= 3 && (!memcmp(text + n - 3, "\xe3\x80\x82", 3) || !memcmp(text + n - 3, "\xef\xbc\x81", 3) ||
                 !memcmp(text + n - 3, "\xef\xbc\x9f", 3)))
    return 1;
  if (n < 3 || !gpuir__is_space(text[n - 1])) return 0;
  n -= text[n - 2] == '"' || text[n - 2] == '\'' || text[n - 2] == ')';
  return text[n - 2] == '.' || text[n - 2] == '!' || text[n - 2] == '?';
}

/* Returns the last place in text[low..high] that does not stand within a character; `high` in a text without any. */
static size_t gpuir__character(const char *text, size_t low, size_t high) {
  size_t i = high;
  while (i > low && high - i < 4 && ((uint8_t)text[i] & 0xc0) == 0x80) i--;
  return ((uint8_t)text[i] & 0xc0) == 0x80 ? high : i;
}

/* Returns where the fragment ends that begins at `at` in a line that ends at `end`: behind the line, a sentence, a word
 * or a character. */
static size_t gpuir__cut(const char *text, size_t at, size_t end) {
  const size_t high = at + GPUIR__FRAGMENT, low = at + GPUIR__FRAGMENT / 4;
  size_t i, blank = 0;
  if (end - at <= GPUIR__FRAGMENT) return end;
  for (i = high; i > low; i--) {
    if (gpuir__ends_sentence(text + at, i - at)) return i;
    if (!blank && gpuir__is_space(text[i - 1])) blank = i;
  }
  return blank ? blank : gpuir__character(text, low, high);
}

/* Goes to the fragment that holds byte `to` of the text, which does not lie before the current one. */
static void gpuir__cutter_seek(gpuir__cutter *c, size_t to) {
  while (to >= c->end) {
    c->at = c->end;
    while (to >= c->line_end) {
      const char *nl = (const char *)memchr(c->text + c->line_end, '\n', c->len - c->line_end);
      c->at = c->line_end;
      c->line_end = nl ? (size_t)(nl - c->text) + 1 : c->len;
      c->line++;
    }
    c->end = gpuir__cut(c->text, c->at, c->line_end);
  }
}

/* Cuts the text into fragments: gpuir__fragment, those with mentions. */
static int gpuir__fragments_make(gpuir__finder *f, const char *text, size_t len, gpuir__buf *out) {
  const gpuir__mention *mentions = (const gpuir__mention *)(const void *)f->mentions.data;
  const size_t n = f->mentions.len / sizeof *mentions;
  gpuir__fragment *p = NULL;
  gpuir__cutter c = {NULL, 0, 0, 0, 0, UINT32_MAX};
  size_t i;
  c.text = text;
  c.len = len;
  for (i = 0; i < n; i++) {
    if (!p || mentions[i].at >= p->end) {
      const int status = gpuir__watch_step(&f->watch);
      if (status) return status;
      p = (gpuir__fragment *)(void *)gpuir__buf_room(&f->a, out, sizeof *p);
      if (!p) return gpuir__fail_nomem(f->watch.err);
      out->len += sizeof *p;
      gpuir__cutter_seek(&c, mentions[i].at);
      p->at = (uint32_t)c.at;
      p->end = (uint32_t)c.end;
      p->line = c.line;
      p->mention = (uint32_t)i;
      p->terms = 0;
    }
    if (mentions[i].end > p->end && !(p->terms >> mentions[i].term & 1)) {
      gpuir__cutter_seek(&c, mentions[i].end - 1); /* a phrase goes on in other fragments: they become one */
      p->end = (uint32_t)c.end;
    }
    p->terms |= (uint64_t)1 << mentions[i].term;
  }
  return GPUIR_OK;
}

/* ---- windows: which fragments are best ---- */

/* Pieces [first, last], and bytes [at, end) of the text, which hold them once the window has grown. */
typedef struct gpuir__window {
  size_t first, last, at, end;
  uint64_t value;
} gpuir__window;

typedef struct gpuir__chooser {
  const char *text;
  size_t len;
  const gpuir_passages_desc *desc;
  size_t most;          /* bytes of a passage of several fragments */
  size_t bytes, tokens; /* what is left of the budgets */
  size_t left;          /* bytes that the next passage may have */
  uint64_t shown;       /* terms, a bit each */
  uint32_t weights[GPUIR_MAX_TERMS];
  const gpuir__mention *mentions;
  size_t nmentions;
  gpuir__fragment *fragments;
  size_t nfragments;
  gpuir__watch *watch;
  gpuir_passage_room *room;
} gpuir__chooser;

/* Returns the number behind a fragment's last mention. */
static inline size_t gpuir__fragment_mentions_end(const gpuir__chooser *c, size_t fragment) {
  return fragment + 1 < c->nfragments ? c->fragments[fragment + 1].mention : c->nmentions;
}

/* Compares the windows that begin with fragment `first` with the best one so far. */
static void gpuir__windows_from(const gpuir__chooser *c, size_t first, gpuir__window *best) {
  const gpuir__fragment *from = &c->fragments[first], *p;
  const size_t most = gpuir__min64(c->most, c->left);
  uint8_t counts[GPUIR_MAX_TERMS];
  uint64_t sum = 0, value;
  size_t last, s;
  memset(counts, 0, sizeof counts);
  for (last = first; last < c->nfragments; last++) {
    p = &c->fragments[last];
    if (!p->terms) return; /* a passage has it */
    if (last > first && (p->end - from->at > most || p->line - from->line >= GPUIR__WINDOW_LINES)) return;
    for (s = p->mention; s < gpuir__fragment_mentions_end(c, last); s++) {
      const uint32_t t = c->mentions[s].term;
      if (c->shown >> t & 1 || counts[t] == 3) continue;
      sum += (uint64_t)c->weights[t] * (counts[t]++ ? 1 : 4);
    }
    value = sum * GPUIR__CLOSE / (GPUIR__CLOSE + (last > first ? p->at - from->end : 0));
    if (value <= best->value) continue;
    best->first = first;
    best->last = last;
    best->value = value;
  }
}

/* Finds the best window; its value is 0 if there is none. */
static int gpuir__window_choose(const gpuir__chooser *c, gpuir__window *best) {
  size_t i;
  memset(best, 0, sizeof *best);
  for (i = 0; i < c->nfragments; i++) {
    const int status = gpuir__watch_step(c->watch);
    if (status) return status;
    if (c->fragments[i].terms & ~c->shown) gpuir__windows_from(c, i, best);
  }
  if (!best->value) return GPUIR_OK;
  best->at = c->fragments[best->first].at;
  best->end = c->fragments[best->last].end;
  return GPUIR_OK;
}

/* Cuts the one fragment of a window to what is left of the budget, around its dearest mention that is not shown yet.
 * Returns 0 if that does not fit. */
static int gpuir__window_shorten(const gpuir__chooser *c, gpuir__window *w) {
  const gpuir__mention *dearest = NULL;
  size_t s, i;
  for (s = c->fragments[w->first].mention; s < gpuir__fragment_mentions_end(c, w->first); s++) {
    const gpuir__mention *mention = &c->mentions[s];
    if (c->shown >> mention->term & 1 || mention->end - mention->at > c->left) continue;
    if (!dearest || c->weights[mention->term] > c->weights[dearest->term]) dearest = mention;
  }
  if (!dearest) return 0;
  if (dearest->end - w->at > c->left) w->at = dearest->at;
  if (w->end - w->at <= c->left) return 1;
  w->end = gpuir__character(c->text, dearest->end, w->at + c->left);
  for (i = w->end; i > dearest->end && !gpuir__is_space(c->text[i]); i--) {}
  if (i > dearest->end) w->end = i;
  return 1;
}

/* Says whether [at, end) has nothing but blanks. */
static int gpuir__is_blank(const char *text, size_t at, size_t end) {
  while (at < end && gpuir__is_space(text[at])) at++;
  return at == end;
}

/* Takes the line before the window, if the window may have `most` bytes then and does not come below `low`, where the
 * passage before it ends. */
static int gpuir__window_back(const gpuir__chooser *c, gpuir__window *w, size_t low, size_t most) {
  size_t at = w->at, first = w->first;
  if (at <= low || c->text[at - 1] != '\n') return 0;
  for (at--; at > low && c->text[at - 1] != '\n' && w->at - at <= GPUIR__FRAGMENT; at--) {}
  if ((at && c->text[at - 1] != '\n') || w->at - at > GPUIR__FRAGMENT) return 0;
  if (w->end - at > most || (!c->desc->context && gpuir__is_blank(c->text, at, w->at))) return 0;
  while (first && c->fragments[first - 1].at >= at) first--;
  if (first && c->fragments[first - 1].end > at)
    return 0; /* a phrase goes on there: it is shown whole or not at all */
  w->first = first;
  w->at = at;
  return 1;
}

/* Takes in the line behind the window likewise, up to `high`, where the next passage begins. */
static int gpuir__window_forth(const gpuir__chooser *c, gpuir__window *w, size_t high, size_t most) {
  size_t end = w->end, last = w->last, reach;
  const char *nl;
  if (end >= high || c->text[end - 1] != '\n') return 0;
  reach = (size_t)gpuir__min64(high - end, GPUIR__FRAGMENT);
  nl = (const char *)memchr(c->text + end, '\n', reach);
  if (!nl && (end + reach < c->len || high < c->len)) return 0;
  end = nl ? (size_t)(nl - c->text) + 1 : c->len;
  if (end - w->at > most || (!c->desc->context && gpuir__is_blank(c->text, w->end, end))) return 0;
  while (last + 1 < c->nfragments && c->fragments[last + 1].end <= end) last++;
  if (last + 1 < c->nfragments && c->fragments[last + 1].at < end) return 0;
  w->last = last;
  w->end = end;
  return 1;
}

/* Takes lines before and behind the window in turn: its paragraph, or the context that was asked for. */
static void gpuir__window_grow(const gpuir__chooser *c, gpuir__window *w) {
  const uint32_t lines = c->desc->context == GPUIR_NO_CONTEXT ? 0
                         : c->desc->context                   ? c->desc->context
                                                              : UINT32_MAX;
  const size_t most = c->desc->context ? c->left : (size_t)gpuir__min64(c->most, c->left);
  size_t i, low = 0, high = c->len;
  uint32_t taken;
  int back = 1, forth = 1;
  for (i = 0; i < c->room->n; i++) {
    const gpuir_passage *p = &c->room->passages[i];
    if (p->offset < w->at)
      low = (size_t)gpuir__max64(low, p->offset + p->bytes);
    else
      high = (size_t)gpuir__min64(high, p->offset);
  }
  for (taken = 0; taken < lines && (back || forth); taken++) {
    back = back && gpuir__window_back(c, w, low, most);
    forth = forth && gpuir__window_forth(c, w, high, most);
  }
}

static uint32_t gpuir__count_lines(const char *text, size_t at, size_t end) {
  uint32_t n = 0;
  const char *p = text + at, *to = text + end;
  while (p < to && (p = (const char *)memchr(p, '\n', (size_t)(to - p))) != NULL) n++, p++;
  return n;
}

/* Marks the mentions of a passage, and takes their terms as shown. */
static void gpuir__passage_mark(gpuir__chooser *c, const gpuir__window *w, gpuir_passage *p) {
  gpuir_passage_room *room = c->room;
  size_t s;
  p->first_mark = room->nmarks;
  for (s = c->fragments[w->first].mention; s < gpuir__fragment_mentions_end(c, w->last); s++) {
    const gpuir__mention *mention = &c->mentions[s];
    if (mention->at < p->offset || mention->end > p->offset + p->bytes) continue;
    p->terms |= (uint64_t)1 << mention->term;
    if (room->nmarks == room->marks_cap || mention->at == mention->end) continue;
    room->marks[room->nmarks].offset = mention->at;
    room->marks[room->nmarks].bytes = mention->end - mention->at;
    room->marks[room->nmarks++].term = mention->term;
  }
  p->marks = room->nmarks - p->first_mark;
}

/* Writes the passage that a window is, and takes its fragments away. */
static void gpuir__passage_put(gpuir__chooser *c, const gpuir__window *w) {
  const gpuir__fragment *from = &c->fragments[w->first];
  gpuir_passage *p = &c->room->passages[c->room->n];
  size_t i, end = w->end;
  while (end > w->at && gpuir__is_space(c->text[end - 1])) end--;
  memset(p, 0, sizeof *p);
  p->offset = w->at;
  p->bytes = end - w->at;
  p->first_line = c->desc->first_line + from->line;
  if (w->at < from->at)
    p->first_line -= gpuir__count_lines(c->text, w->at, from->at);
  else
    p->first_line += gpuir__count_lines(c->text, from->at, w->at);
  p->last_line = p->first_line + gpuir__count_lines(c->text, w->at, end);
  p->score = (uint32_t)gpuir__min64(w->value / 4, UINT32_MAX);
  gpuir__passage_mark(c, w, p);
  c->shown |= p->terms;
  for (i = w->first; i <= w->last; i++) {
    if (!p->bytes)
      c->shown |= c->fragments[i].terms; /* of blanks, which a caller's tokenizer took for words */
    c->fragments[i].terms = 0;
  }
  c->room->n += p->bytes != 0;
  c->bytes -= p->bytes;
  c->tokens -= gpuir__min64(c->tokens, (p->bytes + GPUIR_TOKEN_BYTES - 1) / GPUIR_TOKEN_BYTES);
}

/* Chooses passages until all terms are shown, the room is full or the budget spent. */
static int gpuir__passages_choose(gpuir__chooser *c) {
  while (c->room->n < c->room->cap) {
    gpuir__window w;
    int status;
    c->left = c->tokens > SIZE_MAX / GPUIR_TOKEN_BYTES ? SIZE_MAX : c->tokens * GPUIR_TOKEN_BYTES;
    c->left = (size_t)gpuir__min64(c->left, c->bytes);
    status = c->left ? gpuir__window_choose(c, &w) : GPUIR_OK;
    if (status) return status;
    if (!c->left || !w.value) break;
    if (w.end - w.at <= c->left)
      gpuir__window_grow(c, &w);
    else if (!gpuir__window_shorten(c, &w))
      break;
    gpuir__passage_put(c, &w);
  }
  return GPUIR_OK;
}

/* Weighs the terms, finds them, and chooses; *d has its defaults filled in. */
static int gpuir__passages_run(gpuir__finder *f, const gpuir_passages_desc *d, const char *text, size_t len,
                               gpuir_passage_room *room) {
  gpuir__buf fragments = {NULL, 0, 0};
  gpuir__chooser c;
  unsigned i;
  int status = gpuir__finder_run(f, text, len);
  if (!status) status = gpuir__fragments_make(f, text, len, &fragments);
  memset(&c, 0, sizeof c);
  c.text = text;
  c.len = len;
  c.desc = d;
  c.most = d->most;
  c.bytes = d->bytes;
  c.tokens = d->tokens;
  for (i = 0; i < f->q->npositive; i++) {
    const gpuir__query_term *t = &f->q->terms[i];
    c.weights[i] = gpuir__max32((uint32_t)(t->idf * 65536.0f), 1);
    c.weights[i] = (uint32_t)gpuir__min64((uint64_t)c.weights[i] * t->q, (uint64_t)1 << 26);
  }
  c.mentions = (const gpuir__mention *)(const void *)f->mentions.data;
  c.nmentions = f->mentions.len / sizeof *c.mentions;
  c.fragments = (gpuir__fragment *)(void *)fragments.data;
  c.nfragments = fragments.len / sizeof *c.fragments;
  c.watch = &f->watch;
  c.room = room;
  if (!status) status = gpuir__passages_choose(&c);
  gpuir__buf_free(&f->a, &fragments);
  return status;
}

GPUIR_API int gpuir_passages(const gpuir_query *q, const gpuir_passages_desc *desc, const char *text,
                             size_t len, gpuir_passage_room *room, gpuir_error *err) {
  gpuir_passages_desc d;
  gpuir__finder f;
  int status;
  if (room) room->n = room->nmarks = 0;
  if (!q || !room || (!text && len) || (!room->passages && room->cap) || (!room->marks && room->marks_cap))
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_passages: NULL argument");
  if (len >= UINT32_MAX) return gpuir__fail(err, GPUIR_E_LIMIT, 0, "passages of a text of 4 GiB or more");
  memset(&d, 0, sizeof d);
  if (desc) d = *desc;
  if (!d.bytes) d.bytes = SIZE_MAX;
  if (!d.tokens) d.tokens = SIZE_MAX;
  if (!d.most) d.most = GPUIR_PASSAGE_BYTES;
  if (!d.first_line) d.first_line = 1;
  memset(&f, 0, sizeof f);
  f.q = q;
  f.a = q->a;
  f.watch.cancel = d.cancel;
  f.watch.err = err;
  if (d.timeout_ns) f.watch.deadline = gpuir__now() + gpuir__min64(d.timeout_ns, UINT64_MAX / 2);
  if (err) memset(err, 0, sizeof *err);
  status = gpuir__pool_take(q->ix->analysis.pool, &f.an, err);
  if (status) return status;
  status = gpuir__passages_run(&f, &d, text, len, room);
  gpuir__pool_give(q->ix->analysis.pool, f.an);
  gpuir__buf_free(&f.a, &f.mentions);
  gpuir__buf_free(&f.a, &f.states);
  if (status) room->n = room->nmarks = 0;
  return status;
}

GPUIR_API int gpuir_doc_passages(const gpuir_query *q, const gpuir_passages_desc *desc, uint32_t docid,
                                 gpuir_passage_room *room, gpuir_error *err) {
  gpuir_passages_desc d;
  gpuir_doc doc;
  int status;
  if (room) room->n = room->nmarks = 0;
  if (!q || !room) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_doc_passages: NULL argument");
  status = gpuir_doc_get(q->ix, docid, &doc);
  if (status)
    return gpuir__fail(err, status, 0, "document %lu: %s", (unsigned long)docid, gpuir_strerror(status));
  if (!doc.text)
    return gpuir__fail(err, GPUIR_E_NOT_FOUND, 0, "the text of document %lu is not stored",
                       (unsigned long)docid);
  memset(&d, 0, sizeof d);
  if (desc) d = *desc;
  if (!d.first_line) d.first_line = doc.first_line;
  return gpuir_passages(q, &d, doc.text, doc.text_len, room, err);
}

/* ============================================================================
 * [29-near]  terms that are written nearly as a word
 *
 * The distance is that of optimal string alignment: how many characters are inserted, left out or replaced, or swapped
 * with their neighbour. Terms that begin with the word's first character stand together, and are walked in order; a row
 * of the table of distances is one character of such a term, and where all of a row is too large, terms that share the
 * characters so far are passed over. Where the first character differs, the few spellings are looked up.
 *
 * Uses      [11-analysis], [11b-dictionary], [13b-snapshot], [16-query].
 * Start at  gpuir_terms_near.
 * Tests     tests/unit/29_near.c
 * ==========================================================================*/

#define GPUIR__NEAR_LONG 6u /* characters of a word that may have two errors */

typedef struct gpuir__near {
  const gpuir_index *ix;
  uint32_t word[GPUIR_MAX_TERM];     /* its characters; a byte that is not UTF-8 is one of its own */
  uint8_t bytes[GPUIR_MAX_TERM + 1]; /* and its bytes, `first` of which are the first character */
  size_t n, len, first;
  unsigned limit;
  gpuir_near_term *found;
  size_t cap, nfound;
  uint8_t rows[3][GPUIR_MAX_TERM + 2]; /* row i % 3 */
} gpuir__near;

/* Reads a character of p[0..n), n >= 1; returns its bytes. */
static inline size_t gpuir__near_char(const uint8_t *p, size_t n, uint32_t *c) {
  const size_t k = gpuir__utf8_get(p, n, c);
  if (k) return k;
  *c = 0x110000u + p[0];
  return 1;
}

/* Compares two terms that were found: the nearer, the more frequent and the lesser comes first. */
static int gpuir__near_compare(const gpuir_near_term *a, const gpuir_near_term *b) {
  if (a->distance != b->distance) return a->distance < b->distance ? -1 : 1;
  if (a->df != b->df) return a->df > b->df ? -1 : 1;
  return gpuir__compare_bytes(a->term, a->len, b->term, b->len);
}

/* Keeps a term, if it is live and among the best. */
static int gpuir__near_put(gpuir__near *x, const uint8_t *term, size_t len, unsigned distance) {
  gpuir_near_term t;
  size_t i;
  int status;
  for (i = 0; i < x->nfound; i++)
    if (x->found[i].len == len && !memcmp(x->found[i].term, term, len))
      return GPUIR_OK; /* of another segment */
  memset(&t, 0, sizeof t);
  memcpy(t.term, term, len);
  t.len = len;
  t.distance = distance;
  status = gpuir_term_count(x->ix, t.term, len, &t.df, NULL);
  if (status) return status == GPUIR_E_NOT_FOUND ? GPUIR_OK : status;
  for (i = x->nfound; i && gpuir__near_compare(&t, &x->found[i - 1]) < 0; i--)
    if (i < x->cap) x->found[i] = x->found[i - 1];
  if (i < x->cap) x->found[i] = t;
  if (x->nfound < x->cap) x->nfound++;
  return GPUIR_OK;
}

/* Fills row i, for character c of a term, `before` being the one before it. Returns the least of the row. */
static unsigned gpuir__near_row(gpuir__near *x, size_t i, uint32_t c, uint32_t before) {
  const uint8_t *up = x->rows[(i - 1) % 3], *upper = x->rows[(i + 1) % 3];
  uint8_t *row = x->rows[i % 3];
  const size_t from = i > x->limit ? i - x->limit : 1, to = (size_t)gpuir__min64(x->n, i + x->limit);
  unsigned least = 255;
  size_t j;
  row[from - 1] = (uint8_t)(from == 1 ? gpuir__min64(i, 254) : 254);
  if (from == 1) least = row[0];
  for (j = from; j <= to; j++) {
    unsigned d = up[j - 1] + (x->word[j - 1] != c);
    if (up[j] + 1u < d) d = up[j] + 1u;
    if (row[j - 1] + 1u < d) d = row[j - 1] + 1u;
    if (i > 1 && j > 1 && x->word[j - 1] == before && x->word[j - 2] == c && upper[j - 2] + 1u < d)
      d = upper[j - 2] + 1u;
    row[j] = (uint8_t)(d < 254 ? d : 254);
    if (d < least) least = d;
  }
  if (to < x->n) row[to + 1] = 254;
  return least;
}

/* Returns how far a term is from the word, or 255 if that is too far. *dead becomes the bytes after which it is clear
 * that every term which begins with them is too far; 256 if there are none. */
static unsigned gpuir__near_distance(gpuir__near *x, const uint8_t *term, size_t len, size_t *dead) {
  uint32_t c = 0, before = 0;
  size_t at = 0, i = 0, j;
  *dead = 256;
  for (j = 0; j <= x->n; j++) x->rows[0][j] = (uint8_t)gpuir__min64(j, 254);
  while (at < len) {
    at += gpuir__near_char(term + at, len - at, &c);
    if (++i > x->n + x->limit || gpuir__near_row(x, i, c, before) > x->limit) {
      *dead = at;
      return 255;
    }
    before = c;
  }
  if (i + x->limit < x->n || x->rows[i % 3][x->n] > x->limit) return 255;
  return x->rows[i % 3][x->n];
}

/* Walks the terms [id, end) of a segment, which begin as the word does. */
static int gpuir__near_walk(gpuir__near *x, const gpuir__segment *seg, uint64_t id, uint64_t end) {
  uint8_t term[GPUIR_MAX_TERM + 1];
  gpuir__dict_block b;
  gpuir__dict_step s = {0, 0, 0};
  size_t len = 0, dead = 256;
  int status = GPUIR_OK;
  uint64_t block;
  for (block = id / GPUIR__DICT_BLOCK; block * GPUIR__DICT_BLOCK < end && !status; block++) {
    unsigned i;
    if (!gpuir__dict_open(&seg->terms, block, &b)) return GPUIR_E_FORMAT;
    for (i = 0; i < b.n && block * GPUIR__DICT_BLOCK + i < end && !status; i++) {
      unsigned distance;
      if (!i) {
        s = gpuir__dict_first(&b);
        len = s.rest;
        memcpy(term, b.text, len);
        dead = 256;
      } else {
        len = gpuir__dict_next(&b, i, &s) ? gpuir__dict_spell(&b, i, &s, term, len) : 0;
      }
      if (!len) return GPUIR_E_FORMAT;
      if (i && s.shared >= dead) continue;
      dead = 256;
      if (block * GPUIR__DICT_BLOCK + i < id) continue;
      distance = gpuir__near_distance(x, term, len, &dead);
      if (distance && distance <= x->limit) status = gpuir__near_put(x, term, len, distance);
    }
  }
  return status;
}

/* Looks up the terms one error away whose first character is another one. */
static int gpuir__near_first(gpuir__near *x) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
  uint8_t term[GPUIR_MAX_TERM + 1];
  uint32_t c;
  size_t second, i;
  int status = GPUIR_OK;
  for (i = 0; letters[i] && !status; i++) {
    if (x->first == 1 && x->bytes[0] == (uint8_t)letters[i]) continue;
    term[0] = (uint8_t)letters[i];
    memcpy(term + 1, x->bytes + x->first, x->len - x->first);
    status = gpuir__near_put(x, term, x->len - x->first + 1, 1);
    if (status || x->len == GPUIR_MAX_TERM) continue;
    memcpy(term + 1, x->bytes, x->len);
    status = gpuir__near_put(x, term, x->len + 1, 1);
  }
  if (status) return status;
  second = gpuir__near_char(x->bytes + x->first, x->len - x->first, &c);
  if (second == x->first && !memcmp(x->bytes, x->bytes + x->first, second))
    return GPUIR_OK; /* not another one */
  memcpy(term, x->bytes + x->first, second);
  memcpy(term + second, x->bytes, x->first);
  memcpy(term + second + x->first, x->bytes + x->first + second, x->len - x->first - second);
  status = gpuir__near_put(x, term, x->len, 1);
  return status ? status : gpuir__near_put(x, x->bytes + x->first, x->len - x->first, 1);
}

GPUIR_API int gpuir_terms_near(const gpuir_index *ix, const char *term, size_t len, gpuir_near_term *found,
                               size_t cap, size_t *n) {
  gpuir__near x;
  gpuir__query_term first;
  size_t at, i;
  int status;
  if (n) *n = 0;
  if (!ix || !n || (!term && len) || (!found && cap)) return GPUIR_E_ARGUMENT;
  if (!len || len > GPUIR_MAX_TERM || !cap) return GPUIR_OK;
  memset(&x, 0, sizeof x);
  x.ix = ix;
  x.found = found;
  x.cap = cap;
  x.len = len;
  memcpy(x.bytes, term, len);
  for (at = 0; at < len; x.n++) {
    at += gpuir__near_char(x.bytes + at, len - at, &x.word[x.n]);
    if (!x.n) x.first = at;
  }
  if (x.n < 2) return GPUIR_OK;
  x.limit = x.n < GPUIR__NEAR_LONG ? 1 : 2;
  status = gpuir__near_first(&x);
  gpuir__query_term_make(&first, GPUIR__PREFIX, 0, term, x.first);
  for (i = 0; i < ix->nleaves && !status; i++) {
    uint32_t from, to;
    gpuir__prefix_range(ix->leaves[i].seg, &first, &from, &to);
    status = gpuir__near_walk(&x, ix->leaves[i].seg, from, to);
  }
  if (!status) *n = x.nfound;
  return status;
}

GPUIR_API int gpuir_query_unknown(const gpuir_query *q, size_t i, const char **term, size_t *len) {
  unsigned t, m;
  if (!q || !term || !len) return GPUIR_E_ARGUMENT;
  for (t = 0; t < q->npositive; t++) {
    if (q->terms[t].df || q->terms[t].kind == GPUIR__PHRASE || i--) continue;
    *term = gpuir__query_term_name(q, &q->terms[t], len);
    return GPUIR_OK;
  }
  for (m = 0; q->phrases && m < q->phrases->nmembers; m++) {
    if (q->phrases->members[m].df || i--) continue;
    *term = q->phrases->members[m].text;
    *len = q->phrases->members[m].len;
    return GPUIR_OK;
  }
  return GPUIR_E_NOT_FOUND;
}

#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#pragma GCC diagnostic pop
#endif
#endif /* GPUIR_IMPLEMENTATION */

/*
 * LICENCE
 *
 * MIT License. Copyright (c) 2026 the gpuir authors.
 *
 * Permission is hereby granted, free of charge, to any person obtaining a copy of this
 * software and associated documentation files (the "Software"), to deal in the Software
 * without restriction, including without limitation the rights to use, copy, modify, merge,
 * publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to
 * whom the Software is furnished to do so, subject to the following conditions:
 *
 * The above copyright notice and this permission notice shall be included in all copies or
 * substantial portions of the Software.
 *
 * THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING
 * BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND
 * NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM,
 * DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
 * OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
 */
