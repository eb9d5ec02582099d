
/* ========
 * [api-lab]  the laboratory: to compare methods
 *
 * For researchers, and not promised to stay as it is. Codecs of the literature are named in gpuir_builder_desc.
 * tools/lab/gpuir_lab.h has the papers' methods on the GPU.
 * ======*/

/* Returns the name of the i-th way of intersecting lists, for gpuir_searcher_desc.intersection, such as "merge" or
 * "simd", the engine's own; NULL behind the last one. All give the same hits. With GPUIR_NO_LAB there is "simd" alone. */
GPUIR_API const char *gpuir_intersection_name(size_t i);

#define GPUIR_MAX_CODECS 16 /* of docIDs or of frequencies */

typedef struct gpuir_codec_info {
  const char *codec;
  uint64_t lists, postings; /* of two postings or more that are kept in it */
  uint64_t bytes; /* of their streams */
} gpuir_codec_info;

/* Which codecs the lists are kept in, their docIDs or, if docids is 0, their frequencies: writes the *n <=
 * GPUIR_MAX_CODECS that occur. Reads every term's record. Errors: ARGUMENT, FORMAT, UNSUPPORTED (always so with
 * GPUIR_NO_LAB). */
GPUIR_API int gpuir_codec_get_info(const gpuir_index *index, int docids, gpuir_codec_info infos[GPUIR_MAX_CODECS],
    size_t *n);

#ifdef __cplusplus
}
#endif
#endif /* GPUIR_H */
