/* gpuir_cuda.cu - the CUDA backend of gpuir.h
 *
 * Answers batches of ranked queries on an NVIDIA GPU with the same bits as the CPU. Compile it with nvcc
 * against the same gpuir.h and link the object from C:
 *
 *     nvcc -O3 -arch=sm_90 \
 *          -Xcompiler -fno-exceptions,-fno-rtti,-fno-threadsafe-statics -c gpuir_cuda.cu -o gpuir_cuda.o
 *     cc main.o gpuir_cuda.o -lcudart_static -ldl -lrt -lpthread -lm
 *
 * The declarations stand in [api-cuda] of gpuir.h. The kernels of the literature stand apart, in
 * tools/lab/gpuir_lab.cu, which includes this file.
 *
 * CONTENTS
 *   Search for a tag in brackets to get there. Each part uses only parts above it; within a part, what is called
 *   stands above what calls it, so read a part from its entry points, which stand last. All parts are tested by
 *   tests/gpu/test_cuda.c, part 4 also by tests/gpu/test_lab.c, parts 15 to 15d also by tests/gpu/test_team.c.
 *
 *     [cuda-01-shared]      what host and kernels share               gc_term gc_job gc_view gc_launch_view
 *     [cuda-02-primitives]  scans, owner search, selection, sort      gc_scan gc_block_scan gc_select
 *     [cuda-03-bp128]       a block by a warp; one value; its score   gc_decode_docs gc_freq gc_contribution
 *     [cuda-04-codecs]      blocks of other codecs; recoding          gc_decode gc_recode
 *     [cuda-05-expand]      expanded lists and guides                 gc_expand
 *     [cuda-06-slices]     long lists cut at tiles of documents      gc_cut_lists
 *     [cuda-07-or]          OR: docID tiles in shared memory          gc_tiles gc_order gc_or
 *     [cuda-08-sums]       OR without pruning: slices are added up   gc_places gc_sum_tiles
 *     [cuda-09-and]         AND; OR by MaxScore                       gc_and_decoding gc_max_plan gc_max
 *     [cuda-10-phrases]    phrases: where in documents terms stand   gc_phrase_all gc_phrase_tfs
 *     [cuda-11-topk]        hits out of candidates                    gc_final gc_and_guided
 *     [cuda-12-alone]      one query alone, in one kernel            gc_alone
 *     [cuda-13-prompt]     an AND alone with a short driver          gc_prompt
 *     [cuda-14-memory]      host: device memory, sending bytes        gc_malloc gc_pipe_put
 *     [cuda-15-recoder]     host: recoding lists                      gc_recode_all gc_recoder_measure
 *     [cuda-16-cache]       host: lists of an index that is too big   gc_cache_hold_all gc_cache_open
 *     [cuda-17-open]        host: the index on the device             gc_open
 *     [cuda-18-plan]        host: queries become a launch             gc_plan_query gc_stage_plan
 *     [cuda-19-launch]      host: launches, some at a time, to hits   gc_begin gc_finish gc_attach
 *     [cuda-20-partition]   host: several devices, each with a part   gt_open gt_make_part
 *     [cuda-21-members]    host: a member's tasks and its thread     gt_take_queries gt_member_main
 *     [cuda-22-merge]      host: rounds of a batch, merged hits      gt_begin gt_advance gt_merge_query
 *     [cuda-23-live]       host: snapshots of several segments       gl_open
 *     [cuda-24-api]         the C interface                           gpuir_cuda_open gpuir_cuda_attach
 *
 * [cuda-glossary]  WORDS beside those of [glossary] in gpuir.h. In the code a block is 128 postings; CUDA's blocks are
 * called "blocks of threads", its shared memory "shared memory".
 *     batch        the queries of one call, as a program gives them: gc_batch, from begin to finish
 *     launch       some queries of a batch that the device answers together, by kernels in turn: gc_launch
 *     launch slot  a stream and the memory of one launch (gc_slot); a searcher has up to 3, so launches overlap
 *     plan         the arrays that the kernels of a launch read, as the host makes them: gc_plan
 *     job          one evaluation of a query, as AND or as OR
 *     packet       a unit of work that one thread takes: up to 64 queries to plan, or terms to put into a part
 *     planner      what plans queries: a launch slot's own, or those of the planner pool, which plan packets ahead
 *     plan args    a small plan that is a kernel's parameter, so that it needs no transfer
 *     enqueue      to put a kernel into a launch slot's stream
 *     done flag    host memory that a small launch's last kernel sets: read at once, so that no call to CUDA has to
 *     floor        a job's threshold as a key: score << 32 | ~docID; only greater keys are of interest
 *     need         the least score above the floor
 *     offer        to append a document's key to its job's buffer of candidates
 *     ticket       a group of driver blocks, which a warp draws from a counter
 *     turn, round  driver blocks that come before others, so that the floor they raise spares some of these
 *     opening      the blocks of a long driver that come first; a floor is guessed from what they find
 *     sample       blocks of a job's shortest lists, scored before all else for a floor
 *     guides       marks and peaks of a long list. A mark is a bit: may the list hold this document? A peak is the
 *                  greatest contribution within a span of documents, in 4 bits
 *     expanded     a list that lies decoded on the device: docIDs in 16 bits, contributions under the stored k1 and b
 *     slice, strip a list's postings within a tile, in strips of 128, for OR without pruning; lists without are sparse
 *     resident     on the device: a cached list, or a segment. A launch holds its lists, so that none is evicted
 *     transfer     how missing lists reach the device: pinned memory, or the locked file, and a stream
 *     team, member several devices that answer as one; each is a member, and has all documents or a part of them
 *     task         what a member is asked for: some queries of a batch, in one call of its searcher
 *
 * WHERE THE INDEX LIES. The sections of the index are uploaded as they lie in the file. If a list is in another codec
 * than bp128, all lists are sent as they are and become bp128 on the device ([cuda-04-codecs]): the same bytes that the
 * builder would have made. So no other kernel knows of codecs. When the device is opened, three more structures are
 * made of the long lists, as far as the memory bound allows, in this order:
 *   guides: 1.4 to 2.8 bytes of marks per posting, and peaks whose spans are as short as the bound allows: 2 to 4 bytes
 *     a posting where there is enough. AND skips most postings by marks, MaxScore by peaks;
 *   expanded lists: 6.1 bytes per posting more. Adding a posting takes a third of the instructions then;
 *   slices: 6 to 8 bytes per posting of the lists that are cut. They hold the same postings once more, cut at tiles of
 *     16,384 documents and dealt out over the banks of shared memory.
 * An index that does not fit stays in its file, and lists are transferred when they are needed ([cuda-16-cache]).
 * Everything on the device counts against the bound, the memory of attached searchers too.
 *
 * WHAT OF gpuir.h IS HERE. Kernels, planning and walks through an index call functions of gpuir.h that are compiled
 * here once more, without SIMD. Whatever is large is called in the program's copy, by gpuir_index.calls: what opens
 * segments and lists, the builder that makes parts, the searchers of a team's members.
 *
 * WHY THE BITS ARE THE CPU'S. A contribution is one multiplication, one addition, one division and one rounding in
 * binary32, each rounded as IEEE 754 says; scores are integer sums, which have no order.
 */
#define GPUIR_STATIC
#define GPUIR_NO_SIMD
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"

#include <cuda_runtime.h>
#include <sys/statvfs.h>
