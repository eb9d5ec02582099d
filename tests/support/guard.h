/* guard.h - maps files into heap blocks of their exact size; include before gpuir.h
 *
 * A sanitizer sees every access beyond the end of a heap block, but none beyond the end of a
 * mapped file. With this header the library's read-only mappings are copies on the heap. */
#ifndef GUARD_H
#define GUARD_H

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

static void *guard_block[64];

static void *guard_mmap(void *at, size_t len, int protection, int flags, int fd, off_t offset) {
  unsigned i;
  void *p = NULL;
  size_t done = 0;
  for (i = 0; i < 64 && guard_block[i]; i++) continue;
  if (i == 64 || protection != PROT_READ || fd < 0) return mmap(at, len, protection, flags, fd, offset);
  if (posix_memalign(&p, 64, len)) return MAP_FAILED;
  while (done < len) {
    ssize_t n = pread(fd, (char *)p + done, len - done, offset + (off_t)done);
    if (n <= 0) {
      free(p);
      return MAP_FAILED;
    }
    done += (size_t)n;
  }
  guard_block[i] = p;
  return p;
}

static int guard_munmap(void *p, size_t len) {
  unsigned i;
  for (i = 0; i < 64; i++) {
    if (guard_block[i] != p || !p) continue;
    guard_block[i] = NULL;
    free(p);
    return 0;
  }
  return munmap(p, len);
}

#define mmap guard_mmap
#define munmap guard_munmap

#endif
