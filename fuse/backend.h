/* backend.h - the seam where a GPU backend joins gpuirfs.
 *
 * A build without one calls backend_present and backend_absent alone; everything else of gpuirfs is the same in both.
 * Opened after the daemon has detached, once for each loaded index.
 */
#ifndef GPUIRFS_BACKEND_H
#define GPUIRFS_BACKEND_H

#include "common.h"

typedef struct backend backend;

/* Returns whether this build has a backend at all. */
int backend_present(void);
/* Says why there is none, where there is none. */
const char *backend_absent(void);
/* Names the devices for backend_open: "0:1" or "all"; `partition`: each holds a part of the documents. NULL: the first
 * one. -1 if the text is neither. */
int backend_devices(const char *names, int partition);
int backend_open(gpuir_index *index, backend **out, gpuir_error *err);
/* Lets the backend answer this searcher. */
int backend_attach(backend *b, gpuir_searcher *searcher, gpuir_error *err);
/* After its searchers are gone. */
void backend_close(backend *b);

#endif
