/* trust.c - whether the settings in the folder of a live index are the caller's own.
 *
 * A table of files may say that hidden files are read and links followed. Whoever may write it could so choose what
 * another user's `gpuir update` reads, stores, and shows. So it counts only where nobody else may write.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* getpwent */
#endif
#include "cli.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/xattr.h>
#endif

/* Returns whether a group has a member besides the caller and root; one that is not known may have. */
static int is_shared(gid_t gid) {
  const struct group *g = getgrgid(gid);
  const struct passwd *p = getpwuid(geteuid());
  char own[256];
  int shared = !g || !p || strlen(p->pw_name) >= sizeof own;
  if (shared) return 1;
  memcpy(own, p->pw_name, strlen(p->pw_name) + 1);
  for (char **member = g->gr_mem; *member; member++) shared |= strcmp(*member, own) && strcmp(*member, "root");
  setpwent();
  while (!shared && (p = getpwent()) != NULL) shared = p->pw_gid == gid && p->pw_uid && p->pw_uid != geteuid();
  endpwent();
  return shared;
}

/* Returns whether others than the caller and root may write what is open. Where there is an access control list, the
 * group's bits stand for all whom it names. */
static int others_write(int fd) {
  struct stat st;
  if (fstat(fd, &st) || (st.st_uid != geteuid() && st.st_uid) || st.st_mode & S_IWOTH) return 1;
  if (!(st.st_mode & S_IWGRP)) return 0;
#ifdef __linux__
  if (fgetxattr(fd, "system.posix_acl_access", NULL, 0) > 0) return 1;
#endif
  return is_shared(st.st_gid);
}

int cli_trusted(const char *folder) {
  static const char *const names[] = {".", "manifest", "update"};
  const int at = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int trusted = at >= 0;
  for (size_t i = 0; i < sizeof names / sizeof *names && trusted; i++) {
    const int fd = openat(at, names[i], O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    trusted = fd >= 0 && !others_write(fd);
    if (fd >= 0) (void)close(fd);
  }
  if (at >= 0) (void)close(at);
  return trusted;
}
