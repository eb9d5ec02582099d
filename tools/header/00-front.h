/* gpuir.h - ranked text search in one C header                     version 0.2.0
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
 *   system, gcc or clang, xxHash (xxhash.h, header only), and -lm -pthread.
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
 *     [api-look]       program code by names     [api-columns]    values, filters
 *     [api-folder]     files and folders
 *     [api-cursor]     the postings of a term  [api-cuda]       the GPU
 *     [api-pool]       many queries at once
 *     [api-experimental]  what may change in any version, behind GPUIR_EXPERIMENTAL: [api-shards] parts of a
 *                      collection, [api-policies] of pools, [api-backends], [api-lab] to compare methods
 *
 *   The implementation is a ladder: each part uses only parts above it; its words are explained
 *   under [glossary]. The test of [NN-name] is tests/unit/NN_name.c, with _ for -. "lab" parts are
 *   left out by GPUIR_NO_LAB.
 *
 *     [16-base]         status, allocator, buffers, files              gpuir__fail gpuir__spool_put
 *     [17-vectors]      bits, packed numbers, gaps                     gpuir__load64 gpuir__sum_gaps_scalar
 *     [18-codecs]       the seam of codecs; vbyte                      gpuir__codec gpuir__vbyte_encode
 *     [19-bp128]        the default codec                              gpuir__bp128_encode
 *     [20-lab-unary]    lab: ef, qs, rice                              gpuir__ef_encode gpuir__qs_encode
 *     [21-lab-pfor]     lab: pfd, pfd-list, parapfor                   gpuir__pfd_encode gpuir__para_encode
 *     [22-lab-lines]    lab: lrc, lrcseg, seglrc, hslrc                gpuir__lrc_encode gpuir__hslrc_encode
 *     [23-codings]      the tables of codecs; how users spell them     gpuir__coding_parse
 *     [24-postings]     scores, bounds, records, list views, cursor    gpuir__contribution gpuir__cursor_seek
 *     [25-positions]    where in its documents a term stands           gpuir__positions_encode gpuir__occurrences_next
 *     [26-dense]        bits, ranks and peaks of frequent terms        gpuir__dense_fill gpuir__dense_rank
 *     [27-bounds]       what a block or a list can contribute          gpuir__bound gpuir__saturation_prepare
 *     [28-encoder]      from postings to streams and directory         gpuir__encode_list
 *     [29-fold]         letters without their marks, by a table        gpuir__fold_of
 *     [30-analysis]     to tokens: ascii, basic, unicode, custom       gpuir__scan gpuir__custom_token
 *     [31-text]         from text to tokens: the analyzer `text`       gpuir__text_scan gpuir__text_add
 *     [32-dictionary]   terms and records, front-coded in blocks       gpuir__dict_find gpuir__dict_encode
 *     [33-analyzers]    analyzers made and kept                        gpuir__analyze gpuir__analyzers_take
 *     [34-fields]       fields: how they are declared; values from text gpuir_field_parse gpuir__value_compare
 *     [35-keys]         the values of keys and paths, in pages         gpuir__key_put gpuir__key_below
 *     [36-documents]    names of documents; their texts, packed        gpuir__path_of gpuir__text_pack
 *     [37-layout]       index file: layout; segments and indexes       gpuir__section_rows gpuir__segment
 *     [38-notes]        columns: values noted, sorted, packed          gpuir__notes_put gpuir__notes_finish
 *     [39-writer]       index file: writer                             gpuir__writer_finish
 *     [40-columns]      columns: opening, values of documents          gpuir__columns_open gpuir__column_value
 *     [41-reader]       index file: open, look-ups                     gpuir__segment_open gpuir__list_open
 *     [42-snapshot]     segments, less deleted documents, as one index gpuir__index_make gpuir__leaf_df
 *     [43-verify]       reads all of an index                          gpuir_verify gpuir__segment_verify
 *     [44-inversion]    builder: documents to sorted runs              gpuir__worker_packet gpuir__worker_spill
 *     [45-merge]        builder: adding documents; runs to lists       gpuir_builder_add_text gpuir__builder_merge
 *     [46-builder]      builder: lists that are given; the index       gpuir_builder_create gpuir_builder_write
 *     [47-walk]         files and folders, read safely                 gpuir_walk gpuir_builder_add_folder
 *     [48-near]         terms that are written nearly as a word        gpuir_terms_near gpuir__near_walk
 *     [49-where]        where: from text to predicates                 gpuir__where_make
 *     [50-sieve]        where: which documents of a segment pass       gpuir__sieve_open gpuir__sieve_get
 *     [51-query]        words to weighted terms                        gpuir__query_words gpuir_query_weigh
 *     [52-parse]        near terms in place of unknown words           gpuir_query_parse gpuir__query_spell
 *     [53-topk]         the best k hits                                gpuir__topk_push
 *     [54-lookup]       candidates looked up in a list                 gpuir__lookup
 *     [55-methods]      lab: intersection methods; their table         gpuir__methods
 *     [56-engine]       kernels, tiles, cursors, deadlines             gpuir__engine_open
 *     [57-share]        one search that several threads evaluate       gpuir__engine_part gpuir__share_open
 *     [58-and]          AND                                            gpuir__and_blocks
 *     [59-words]        AND of dense lists, by words of bits           gpuir__eval_and
 *     [60-phrases]      phrases and prefixes                           gpuir__terms_open gpuir__eval_phrases
 *     [61-or]           OR, pruned                                     gpuir__eval_or
 *     [62-exhaustive]   lab: the reference, no bounds; OR counted      gpuir__eval_exhaustive gpuir__count_windows
 *     [63-execution]    searchers, batches, explain, backends          gpuir_search gpuir_search_batch
 *     [64-folder]       live indexes: the folder, opening              gpuir__manifest_parse gpuir_open
 *     [65-live]         live indexes: adding, deleting, committing     gpuir_live_refresh gpuir_live_commit
 *     [66-live-merge]   live indexes: merging                          gpuir_live_merge gpuir__live_choose
 *     [67-passages]     the places of a text that answer a query       gpuir_passages gpuir__windows_from
 *     [68-look]         a second look at hits, and words of theirs: gpuir_look gpuir_expand
 *     [69-queues]       costs of queries, lanes, eventcounts, inboxes  gpuir__lane_pop gpuir__eventcount_notify
 *     [70-tasks]        a pool and its tasks                           gpuir_pool_complete
 *     [71-crew]         threads that answer: inter and auto            gpuir__crew_choose gpuir__crew_thread
 *     [72-device]       the thread that drives a device                gpuir__device_work
 *     [73-pool]         pools: make one, submit, wait                  gpuir_pool_create gpuir_pool_submit
 *     [74-facets]       what matches have in fields, counted           gpuir_facets_count
 *
 * [api-configuration]  CONFIGURATION MACROS
 *   Define them before including the header; [I] matters only in the file that
 *   defines GPUIR_IMPLEMENTATION, [A] must be the same in all files.
 *     GPUIR_IMPLEMENTATION   [I] compile the implementation here
 *     GPUIR_STATIC           [A] make every function static (one-file programs)
 *     GPUIR_API              [A] linkage of public functions, extern by default
 *     GPUIR_WITH_UTF8PROC    [I] the analyzers `unicode` and `text`, by utf8proc
 *     GPUIR_WITH_STEMMER     [I] stemming, by libstemmer (Snowball)
 *     GPUIR_EXPERIMENTAL     declare what may change in any version, see [api-experimental]
 *     GPUIR_NO_SIMD          [I] leave the AVX2 and AVX-512 code out
 *     GPUIR_NO_LAB           [I] leave out the codecs and intersection methods of the
 *                            literature, the exhaustive evaluator and the counts of
 *                            codecs: the engine's own, vbyte, bp128 and simd, stay
 *     GPUIR_NO_NEAR          [I] leave out near terms: what is written nearly as a word
 *     GPUIR_NO_TEXT          [I] leave out the analyzer `text`, but not `unicode`
 *     GPUIR_NO_RANK          [I] leave out the second look: ranking program code by names,
 *                                stop words and the expansion of queries
 *     GPUIR_NO_FOLD          [I] leave out the analyzer `basic` with its table of letters of
 *                            2.7 KB; then NULL means `ascii`, which tells accents apart
 *     GPUIR_NO_FOLDER        [A] leave out the reading of files and folders
 *     GPUIR_NO_COLUMNS       [I] leave out fields: an index that has some is opened and searched without
 *                            them, but not written; what asks for them, or for `all`, is UNSUPPORTED
 *     GPUIR_NO_STORE         [I] leave out stored texts: an index that has some is opened and searched
 *                            without them, but not written; gpuir_doc_text is UNSUPPORTED
 *     GPUIR_NO_CUDA          [I] no index goes to gpuir_cuda.cu: of a one-file program
 *                            that only searches, compilers then leave the builder out
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
 *                one thread at a time. Functions that differ say so. Only a pool has
 *                threads that outlive a call: see [api-pool]; and a searcher
 *                that a device answers, if it was made for several.
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
 *                folded word and, on a stemmed index, for the word's stem. It scores as
 *                one term: tf the sum, df the greatest of its members'. More than 2^24
 *                postings of one, or 2^26 of all prefixes of a query, are LIMIT.
 *   Where        A where text decides which documents may be hits and nothing else: N, df,
 *                lengths, idf and scores are those of the whole index. Hits are the best k of
 *                the matches that pass. See [api-columns].
 *   Values       come back as given, repeated ones once. An index without fields has the bytes
 *                that it would have if there were none.
 *   It does NOT do words of one field alone, order by a field, facets or network access.
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
 *                process and its forked children, and nobody has to remove its file: a writer
 *                whose lock or manifest is replaced commits no more. Local file systems only.
 *   Threads      One thread uses a gpuir_live; gpuir_live_merge may run in one more. The
 *                library starts no thread that outlives a call.
 *   Deleted text stays in the files until they are merged.
 */
#ifndef GPUIR_H
#define GPUIR_H

/* A strict dialect, such as -std=c99, hides POSIX. In any other the libraries' defaults stand: a feature macro would
 * take names from the rest of the file, such as usleep and MAP_ANONYMOUS. One that the file has set stands, too. */
#if defined(GPUIR_IMPLEMENTATION) && defined(__STRICT_ANSI__) && !defined(_POSIX_C_SOURCE) && \
    !defined(_XOPEN_SOURCE) && !defined(_DEFAULT_SOURCE) && !defined(_GNU_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif

#include <stddef.h>
#include <stdint.h>

#ifdef __FAST_MATH__
#error "gpuir.h: scores must be exact; compile without -ffast-math"
#endif

#define GPUIR_VERSION_MAJOR 0
#define GPUIR_VERSION_MINOR 2
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
