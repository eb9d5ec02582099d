/* folder.h - removes a folder with all that is in it */
#ifndef FOLDER_H
#define FOLDER_H

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Removes an entry of an open folder, and what is in it; links are not followed. Returns 0, also where there is none.
 */
static inline int folder_remove_at(int in, const char *name) {
  const int fd = unlinkat(in, name, 0) ? openat(in, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW) : -1;
  DIR *dir = fd < 0 ? NULL : fdopendir(fd);
  struct dirent *entry;
  if (!dir && fd >= 0) (void)close(fd);
  if (!dir) return faccessat(in, name, F_OK, 0) ? 0 : -1;
  while ((entry = readdir(dir)) != NULL)
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) (void)folder_remove_at(fd, entry->d_name);
  (void)closedir(dir);
  return unlinkat(in, name, AT_REMOVEDIR);
}

/* Removes a folder with all that is in it. Returns 0, also where there is none. */
static inline int folder_remove(const char *path) { return folder_remove_at(AT_FDCWD, path); }

#endif
