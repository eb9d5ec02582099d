/* open.h - opens files and folders for reading, so that what is looked at is what is read.
 *
 * Whoever owns a folder can put a link, a FIFO or another file under a name at any moment. A check of a path says
 * nothing about what the path leads to afterwards. So a name is opened once, in the open folder that it was listed in;
 * the descriptor is looked at, and read.
 */
#ifndef GPUIR_OPEN_H
#define GPUIR_OPEN_H

#include <sys/stat.h>
#include <sys/types.h>

/* Opens what the user named: links are followed, and a FIFO is waited for. *st describes what was opened. Returns 0, or
 * an errno value, and then *fd is -1. */
int open_named(const char *path, int *fd, struct stat *st);

/* What a name stood for when its folder was listed. */
typedef struct open_listed {
  dev_t device;
  ino_t inode;
} open_listed;

/* Opens the regular file or folder `name` of the open folder `parent`, and waits for nobody. A link is followed only
 * with `follow`. `listed`, if not NULL, is what was seen under this name before: device and inode must be the same.
 * *st describes what was opened. Returns 0, or an errno value, and then *fd is -1: ELOOP for a link that is not
 * followed; EINVAL for what is neither a regular file nor a folder; ESTALE for another file than was listed; what
 * open(2) says. */
int open_entry(int parent, const char *name, int follow, const open_listed *listed, int *fd, struct stat *st);

#endif
