
/* ========
 * [api-cuda]  the GPU
 * ======*/

/* The CUDA backend is compiled from gpuir_cuda.cu and linked with the program; this header only
 * declares it and knows no CUDA type. (The GPU methods of the literature have a header of their own, gpuir_lab.h.) */
typedef struct gpuir_cuda gpuir_cuda;

#define GPUIR_MAX_DEVICES 64 /* that answer together */

typedef struct gpuir_cuda_desc {
  int device; /* CUDA ordinal */
  /* Bound in bytes; 0: what the index needs, at most 90 % of what is free. If it is too little for the index, lists are
   * cached, and the index's file is locked in memory, if it takes less than half of that and the system can. */
  uint64_t memory;
  size_t batch; /* queries a launch at most; 0: chosen by the backend */
  /* Postings a launch: it takes no further query once all lists of its queries hold that many; 0: no bound. (The
   * computational threshold of Ao et al., PVLDB 4(8), 2011, section 4.1, counts the shortest lists only.) */
  uint64_t threshold;
  /* Several devices in place of `device`, by ordinal, each with a thread in every searcher that is attached; one of
   * them may be named twice. Each holds the whole index and has a share of a batch's queries; what one that is slower
   * or fails leaves is taken by the others. Or, with `partition`, each holds the documents of a range, for which
   * `memory` is then its bound, and all answer every query; to open it, each writes its part of the index to a file in
   * `folder` (NULL: /dev/shm or /tmp), which it removes when it has read it. The hits are the same. A part has no
   * substitute: once its device has failed, all queries do, or are the CPU's. */
  const int *devices; /* [ndevices] */
  size_t ndevices;
  int partition;
  const char *folder;
  /* Of a snapshot with several segments or with deletions: an open one of before, NULL: none. What it has on the device
   * of segments that are still there is taken over, so that only new ones are uploaded; it may be closed then. */
  const gpuir_cuda *share;
} gpuir_cuda_desc;

typedef struct gpuir_cuda_info {
  char device[64]; /* its name */
  int driver_version, runtime_version, compute_capability; /* e.g. 13000, 13000, 90 */
  uint64_t device_memory, used_memory; /* bytes */
  uint64_t resident_bytes, index_bytes; /* of the index on the device; of what it could hold */
  uint64_t lists_hit, lists_missed; /* list look-ups served from device memory, and transferred first */
  uint64_t bytes_sent; /* of the latter, as they lie on the device */
  uint64_t queries, batches;
  /* What a caller's thread spent on batches of more than 16 queries, planning, sending, waiting, handing out hits. */
  uint64_t plan_ns, send_ns, wait_ns, deliver_ns;
  uint32_t devices, lost; /* of several: how many; how many failed, counted in each searcher. Bytes are sums */
} gpuir_cuda_info;

/* Uploads an index, or as much of it as the bound allows; shared by threads. A snapshot of several segments, or with
 * deletions, must fit as a whole and takes one device, with a thread for each segment (64 at most) in every searcher.
 * The device answers phrases where the index has positions, which fit too, and all terms of the query are required,
 * and counts them; other queries with phrases, and prefixes, it leaves to the CPU (BACKEND). Lists in other codecs
 * than bp128 become bp128 on the device, each time they are transferred, and take as much of its memory. Errors:
 * ARGUMENT, NOMEM (device or host memory), BACKEND (no device, driver too old, a CUDA error, in words), FORMAT (a
 * damaged list), UNSUPPORTED (a codec that the library does not know, 2^32 - 1 blocks, a snapshot on several devices),
 * VERSION (gpuir_cuda.cu was compiled with another gpuir.h than the program), IO (of the file of a part). */
int gpuir_cuda_open(const gpuir_index *index, const gpuir_cuda_desc *desc, gpuir_cuda **cuda, gpuir_error *err);
/* Its attached searchers must be gone or have another backend. */
void gpuir_cuda_close(gpuir_cuda *cuda);
/* Gives a searcher of the same index a stream and staging memory on the device: it then answers by CUDA. With
 * `fallback` the CPU answers what the device cannot. A searcher of several threads starts the others with the first
 * batch that is large enough for all to plan; devices share them. Errors: ARGUMENT, NOMEM, BACKEND, VERSION (see
 * gpuir_cuda_open). */
int gpuir_cuda_attach(gpuir_searcher *searcher, gpuir_cuda *cuda, int fallback, gpuir_error *err);
/* Thread-safe. */
void gpuir_cuda_get_info(const gpuir_cuda *cuda, gpuir_cuda_info *info);
/* What a device is, without an index: its name, versions, capability and memory. Errors: ARGUMENT, BACKEND. */
int gpuir_cuda_device(int device, gpuir_cuda_info *info, gpuir_error *err);
