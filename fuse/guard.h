/* guard.h - an index file that is cut short while it is mapped does not end the daemon.
 *
 * Reading a mapped byte that the file no longer has raises SIGBUS. A thread that reads the index says so, and
 * which generation it reads. When the signal comes, that generation is marked as broken, the page is replaced
 * by zeros, which the library takes as it takes any damaged file, and the search is called off. Whoever has
 * read the index asks afterwards whether the generation is broken, and then throws the answer away.
 */
#ifndef GPUIRFS_GUARD_H
#define GPUIRFS_GUARD_H

/* Handles SIGBUS in the whole process: outside of guarded reading it ends the process, as before. 0 or errno. */
int guard_install(void);

/* From here to guard_leave the calling thread reads a mapped index; *broken becomes 1 when it could not. */
void guard_enter(int *broken);
/* Makes *cancel 1 too, so that a search does not go on over pages of zeros. NULL: nothing is to be called off. */
void guard_cancels(int *cancel);
void guard_leave(void);

#endif
