/* caller.h - who asks, and a thread that acts with that user's rights for a moment.
 *
 * A mount of root's that others may enter (allow_other) opens source files as the one who asks, so that the
 * kernel checks every folder on the way, the file and their access control lists. A mount of anybody else's
 * cannot become another user, and opens source files for its own user and for root alone.
 */
#ifndef GPUIRFS_CALLER_H
#define GPUIRFS_CALLER_H

#include "common.h"

#include <sys/types.h>

typedef struct caller {
  uid_t uid;
  gid_t gid;
  int itself; /* has the rights of this process: nothing is to be changed */
  gid_t *groups; /* further groups, malloc'ed */
  size_t ngroups;
} caller;

/* Notes the groups of this process. Called once, before other threads start. */
int caller_init(void);

/* Says in *c whether `uid` is to be served with the rights of this process. EACCES when it is not and this
 * process cannot become another user. The groups of *c are still to be given where `itself` is 0. */
int caller_is(caller *c, uid_t uid, gid_t gid);
void caller_free(caller *c);

/* Gives the calling thread the rights of *c until caller_leave. EACCES when the system does not let it. */
int caller_enter(const caller *c);
void caller_leave(const caller *c);

#endif
