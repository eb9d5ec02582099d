/* guard.c - the handler of SIGBUS. */
#include "guard.h"

#include "common.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

/* Of each thread. Before libfuse's workers run, none is set. */
static __thread int *guard_broken, *guard_cancel;
static uintptr_t page_size;

static void on_bus_error(int sig, siginfo_t *info, void *context) {
  const int saved = errno;
  void *page = (void *)((uintptr_t)info->si_addr & ~(page_size - 1));
  (void)context;
  if (guard_broken && info->si_code == BUS_ADRERR) {
    /* First the mark: another thread may read the zeros as soon as they are there. */
    __atomic_store_n(guard_broken, 1, __ATOMIC_SEQ_CST);
    if (guard_cancel) __atomic_store_n(guard_cancel, 1, __ATOMIC_SEQ_CST);
    if (mmap(page, page_size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED) {
      errno = saved;
      return;
    }
  }
  signal(sig, SIG_DFL); /* the access is tried again, and ends the process */
  errno = saved;
}

int guard_install(void) {
  struct sigaction act;
  memset(&act, 0, sizeof act);
  page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
  sigemptyset(&act.sa_mask);
  act.sa_flags = SA_SIGINFO;
  act.sa_sigaction = on_bus_error;
  return sigaction(SIGBUS, &act, NULL) == 0 ? 0 : errno;
}

void guard_enter(int *broken) {
  guard_cancel = NULL;
  guard_broken = broken;
}

void guard_cancels(int *cancel) { guard_cancel = cancel; }

void guard_leave(void) {
  guard_broken = NULL;
  guard_cancel = NULL;
}
