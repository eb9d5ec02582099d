/* stamp.c - the one function of gpuir-mpi that uses private parts of the library: it compiles these for itself, with
 * all functions static, and reads an index that the rest of the command has opened.
 */
#define GPUIR_IMPLEMENTATION
#define GPUIR_STATIC
#include "gpuir.h"

#include "mpi.h"
#include "stamp.h"

int mpi_stamp(const gpuir_index *index, const char *path, const gpuir_shard_info *place, const uint32_t *dfs,
    gpuir_error *err) {
  return stamp_write(index, path, place, dfs, err);
}
