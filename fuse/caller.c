/* caller.c - the rights of one thread. */
#include "caller.h"

#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef SYS_setgroups32
#define SETGROUPS SYS_setgroups32
#else
#define SETGROUPS SYS_setgroups
#endif

static gid_t *own_groups;
static size_t n_own_groups;

int caller_init(void) {
  int n = getgroups(0, NULL);
  if (n < 0) return errno;
  own_groups = malloc(((size_t)n + 1) * sizeof *own_groups);
  if (!own_groups) return ENOMEM;
  n = getgroups(n, own_groups);
  if (n < 0) return errno;
  n_own_groups = (size_t)n;
  return 0;
}

int caller_is(caller *c, uid_t uid, gid_t gid) {
  uid_t own = geteuid();
  memset(c, 0, sizeof *c);
  c->uid = uid;
  c->gid = gid;
  c->itself = uid == own || uid == 0;
  return c->itself || own == 0 ? 0 : EACCES;
}

void caller_free(caller *c) {
  free(c->groups);
  c->groups = NULL;
}

/* The C library's setgroups changes every thread; the system call changes this one. */
static long thread_groups(size_t n, const gid_t *groups) { return syscall(SETGROUPS, n, groups); }

void caller_leave(const caller *c) {
  if (c->itself) return;
  setfsuid(geteuid());
  setfsgid(getegid());
  /* A thread that cannot become itself again would open the next file with the wrong rights. */
  if ((uid_t)setfsuid((uid_t)-1) != geteuid() || (gid_t)setfsgid((gid_t)-1) != getegid() ||
      thread_groups(n_own_groups, own_groups) != 0)
    abort();
}

int caller_enter(const caller *c) {
  if (c->itself) return 0;
  if (thread_groups(c->ngroups, c->groups) != 0) return EACCES;
  setfsgid(c->gid);
  setfsuid(c->uid); /* with it go the capabilities that pass over permissions */
  if ((uid_t)setfsuid((uid_t)-1) == c->uid && (gid_t)setfsgid((gid_t)-1) == c->gid) return 0;
  caller_leave(c);
  return EACCES;
}
