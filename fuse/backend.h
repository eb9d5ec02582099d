/* backend.h - the seam where a GPU backend joins gpuirfs.
 *
 * A build without one answers GPUIR_E_UNSUPPORTED from backend_open; everything else of gpuirfs is the
 * same in both. Opened after the daemon has detached, once for each loaded index; its searchers share it.
 */
#ifndef GPUIRFS_BACKEND_H
#define GPUIRFS_BACKEND_H

#include "common.h"

typedef struct backend backend;

/* Whether this build has a backend at all. */
int backend_present(void);
int backend_open(gpuir_index *index, backend **out, gpuir_error *err);
/* Lets the backend answer this searcher, with the CPU standing in when it fails. */
int backend_attach(backend *b, gpuir_searcher *searcher, gpuir_error *err);
/* After its searchers are gone. */
void backend_close(backend *b);

#endif
