/* open.c - opens files and folders for reading, so that what is looked at is what is read. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64
#endif
#include "open.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Closes a descriptor that is not what was asked for. Returns `error`. */
static int give_up(int *fd, int error) {
  if (*fd >= 0) (void)close(*fd);
  *fd = -1;
  return error;
}

int open_named(const char *path, int *fd, struct stat *st) {
  *fd = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
  return *fd < 0 || fstat(*fd, st) ? give_up(fd, errno) : 0;
}

int open_entry(int parent, const char *name, int follow, const open_listed *listed, int *fd, struct stat *st) {
  const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW);
  do *fd = openat(parent, name, flags);
  while (*fd < 0 && errno == EINTR);
  if (*fd < 0 || fstat(*fd, st)) return give_up(fd, errno);
  if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode)) return give_up(fd, EINVAL);
  if (listed && (st->st_dev != listed->device || st->st_ino != listed->inode)) return give_up(fd, ESTALE);
  return 0;
}
