/* fs.h - the mounted file system: its state, its FUSE operations and its threads.
 *
 * Threads: the workers of libfuse run the operations; `signals` waits for SIGHUP, SIGINT and SIGTERM;
 * `reloader` looks at the index; `notifier` tells the kernel of names that no longer hold. Telling it
 * inside an operation could deadlock: the kernel locks a folder during a look-up, and to drop a name.
 *
 * Locks: fs.lock guards everything in `fs` that changes. The engine and each generation have their own, which are taken
 * after it, never one in another. Pools have theirs, which are taken last.
 *
 * Of a live index, the links in hits/ and the names in doc/ say their generation. Generations that were replaced
 * therefore stay for a while: the newest of them, and each for KEEP_SECONDS.
 */
#ifndef GPUIRFS_FS_H
#define GPUIRFS_FS_H

#include "cache.h"
#include "engine.h"

#include "../tools/common/filters.h"
#include "../tools/common/text_cache.h"

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>
#include <pthread.h>

#define RELOAD_INTERVAL_NS 250000000L /* between two looks at the index */
#define LIVE_INTERVAL_NS 1000000000L /* between two loads of a live index: each invalidates what the kernel knows */
#define KEEP_SECONDS 10 /* for which a generation stays after it was replaced */
#define KEEP_MOST 16 /* generations at most, whatever signals ask for */
#define LEAVE_SECONDS 3 /* for which SIGTERM waits for requests to end */
#define FILTER_FAILURE_SECONDS 10u /* after which a filter that failed is run again: its cause may be gone */
#define ENTRY_TIMEOUT 1.0 /* after which the kernel asks again what a name is */
#define FIXED_TIMEOUT 86400.0 /* for what never changes */

typedef struct fs_config {
  char *index; /* absolute; links in it are followed anew at each look */
  char *mountpoint; /* absolute, without links */
  char *source_base; /* where relative source paths start, if that was said; or NULL */
  uint32_t k, max_k;
  int mode, backend;
  int sentences; /* the mode where sentences come in: pass/, grep/, files/ and query/<q>.paths */
  size_t cache_bytes, result_bytes;
  int nosource; /* documents are what the index holds, or nothing */
  text_filters filters; /* that the user who mounted has allowed to run */
  int shared; /* other users may enter */
  int foreground;
  engine_desc engine;
  uint64_t timeout_ns; /* of a search, or of reading a part of a source; 0: none */
  generation_desc open;
} fs_config;

typedef struct fs_counters {
  uint64_t lookups, searches, memo_hits, errors, interrupted, fallbacks;
  uint64_t changed; /* look-ups of documents whose source is no longer what was indexed */
  uint64_t expired; /* look-ups of documents of a generation that is no longer kept */
  uint64_t reloads, refused, invalidated, dropped_folders;
} fs_counters;

/* A generation that was replaced, and when, in nanoseconds of CLOCK_MONOTONIC. */
typedef struct fs_older {
  generation *gen;
  uint64_t replaced;
} fs_older;

#define WHY_SIZE 200

/* What was said last to one user of a name. */
typedef struct fs_words {
  int used;
  uid_t uid;
  char name[NAME_LIMIT + 1], why[WHY_SIZE];
} fs_words;

enum { SAID_ERROR, SAID_NOTE, SAID_KINDS };
enum { SAID_USERS = 16 }; /* users to whom it is known what was said */

typedef struct fs {
  fs_config config;
  struct fuse_session *session;
  struct timespec started;
  uid_t uid;
  gid_t gid;
  dev_t device; /* of the mount */
  char *readme, *agents, version[64];
  size_t readme_size, agents_size, version_size;

  pthread_mutex_t lock;
  engine *engine;
  generation *now;
  fs_older older[KEEP_MOST]; /* [nolder] in the order of generations */
  unsigned nolder;
  cache cache;
  text_cache *texts; /* of decoded sources; it has a lock of its own */
  ticket *running; /* searches and reads, so that shutting down can call them off */
  int quitting;
  fs_counters count;
  uint64_t handles; /* open files */
  char last_fallback[160], last_refused[400];
  fs_words said[SAID_KINDS][SAID_USERS];
  unsigned next_user[SAID_KINDS]; /* the place that the next new user gets */

  pthread_t main_thread, signals, reloader, notifier;
  pthread_cond_t to_notify, to_reload;
  int reload_asked, reloader_busy;
  int notifier_stop, notifier_joined;
  int loop_left; /* the main thread is out of libfuse's loop */
} fs;

extern const struct fuse_lowlevel_ops fs_operations; /* their userdata is the fs */

/* Texts of the files /README and /AGENTS.md, malloc'ed. */
char *fs_readme(const fs_config *config);
char *fs_agents(const fs_config *config);
/* Text of /.stats for a user. Takes the lock. */
void fs_stats(fs *f, uid_t uid, buf *b);

/* Returns the generation that has a number, without a reference, or NULL. Called with the lock. */
generation *fs_generation(fs *f, uint64_t id);
/* Remembers why a name could not be looked up (SAID_ERROR), or what its answer does not show (SAID_NOTE). Called with
 * the lock. */
void fs_said(fs *f, int kind, uid_t uid, const char *name, size_t len, const char *why);

int fs_threads_start(fs *f);
/* After the loop: ends what is left. 0 when nothing works on the index any more, so that it may be closed. */
int fs_threads_stop(fs *f);

#endif
