/* watch.c - gpuir watch: a live index follows folders while they change.
 *
 * Events of inotify say no more than that something has changed: each update looks at all files, as gpuir update does.
 * It begins when there was no event for a tenth of a second, or a second after the first one. Where folders came, went
 * or were renamed, or events were lost, all folders are watched anew before it; so what happens before a folder is
 * watched is seen by the update, and what happens later is an event.
 *
 * A thread merges meanwhile what the updates have committed. The index is open, and locked, until it is done.
 */
#define _GNU_SOURCE /* ppoll */
#include "cli.h"

#include "../common/source.h"

#include <errno.h>
#include <string.h>

#ifdef __linux__

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#define QUIET 100000000u /* nanoseconds without an event before an update */
#define MOST 1000000000u /* nanoseconds from an event to the update, when they do not cease; and between tries */
#define EVENTS \
  (IN_CLOSE_WRITE | IN_MODIFY | IN_ATTRIB | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | \
      IN_MOVE_SELF)

typedef struct merging {
  pthread_t thread;
  int running;
  int done[2]; /* a pipe that gets a byte when the thread ends */
  int stop; /* read atomically: no further step */
  int status;
  gpuir_error err;
} merging;

typedef struct watching {
  cli_update update;
  merging merge;
  int fd; /* of inotify */
  int last; /* the greatest watch so far: watches are numbered upwards */
  uint64_t folders; /* that are watched */
  int hidden, follow, no_ignore; /* as the index reads folders */
  int is_file; /* the operand is no folder, or not there */
  int lacking; /* the walk ran out of descriptors or memory */
  dev_t dev; /* of the index's own folder */
  ino_t ino;
  uint64_t first, newest; /* when events came that no update has answered; 0: none did */
  int again; /* folders are to be watched anew */
} watching;

/* ---- folders ---- */

/* Says that folders cannot be watched for want of something. Returns a status that ends the walk. */
static int cannot_watch(const char *path, int error) {
  if (error == ENOSPC)
    cli_error("%s: more folders than may be watched; sysctl fs.inotify.max_user_watches says how many", path);
  else cli_error("%s: cannot be watched: %s", path, strerror(error));
  return GPUIR_E_CANCELLED;
}

/* Watches an open folder, unless it is the index's own, a mount of gpuirfs, or has been come to by another way. */
static int on_folder(void *user, const gpuir_walk_entry *e) {
  watching *w = (watching *)user;
  char path[64];
  if (cli_signal) return GPUIR_E_CANCELLED;
  if (e->is_folder) w->is_file = 0;
  if (!e->is_folder || (e->st->st_dev == w->dev && e->st->st_ino == w->ino)) return GPUIR_WALK_LEAVE;
  if (e->is_mount && source_is_gpuirfs(e->fd)) return GPUIR_WALK_LEAVE;
  (void)snprintf(path, sizeof path, "/proc/self/fd/%d/.", e->fd);
  const int watch = inotify_add_watch(w->fd, path, EVENTS);
  if (watch < 0 && (errno == ENOSPC || errno == ENOMEM)) return cannot_watch(e->path, errno);
  if (watch <= w->last) return GPUIR_WALK_LEAVE;
  w->last = watch;
  w->folders++;
  return GPUIR_WALK_TAKE;
}

/* Notes that the walk lacks something, so that folders would be left out in silence. What may not be opened is left to
 * the update, which says so. */
static void on_left_out(void *user, const char *path, int why, int error) {
  watching *w = (watching *)user;
  if (why != GPUIR_SKIPPED_UNREADABLE || w->lacking || (error != EMFILE && error != ENFILE && error != ENOMEM)) return;
  w->lacking = 1;
  (void)cannot_watch(path, error);
}

/* Watches the folder of a file, which may come and go. */
static int watch_file(const watching *w, const char *operand) {
  const char *slash = strrchr(operand, '/');
  char *folder = slash ? cli_copy(operand, (size_t)(slash - operand) + 1) : cli_copy(".", 1);
  int code = CLI_OK;
  if (inotify_add_watch(w->fd, folder, EVENTS) < 0) {
    cli_error("%s: %s", folder, strerror(errno));
    code = CLI_FAIL;
  }
  free(folder);
  return code;
}

/* Watches what an operand names: a folder with those in it, as the update walks over them; or the folder of a file. */
static int watch_operand(watching *w, const char *operand) {
  gpuir_walk_desc how;
  gpuir_error err;
  memset(&how, 0, sizeof how);
  how.hidden = w->hidden;
  how.follow = w->follow;
  how.no_ignore = w->no_ignore;
  how.folders_only = 1;
  how.open = on_folder;
  how.skipped = on_left_out;
  how.user = w;
  w->lacking = 0;
  w->is_file = 1;
  const int status = gpuir_walk(operand, &how, &err);
  if (cli_signal) return CLI_OK;
  if (w->lacking || status == GPUIR_E_CANCELLED) return CLI_FAIL;
  if (status == GPUIR_E_NOMEM) return cli_fail(operand, status, &err);
  return w->is_file ? watch_file(w, operand) : CLI_OK;
}

/* Watches all folders anew. */
static int watch_all(watching *w) {
  int code = CLI_OK;
  if (w->fd >= 0) (void)close(w->fd);
  w->last = 0;
  w->folders = 0;
  w->again = 0;
  w->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (w->fd < 0) {
    cli_error("inotify: %s", strerror(errno));
    return CLI_FAIL;
  }
  for (int i = 0; i < w->update.noperands && !code; i++) code = watch_operand(w, w->update.operands[i]);
  return code;
}

/* ---- events ---- */

/* Notes that something has changed. */
static void note_change(watching *w) {
  w->newest = cli_nanoseconds();
  if (!w->first) w->first = w->newest;
}

/* Takes all events that are there. */
static void take_events(watching *w) {
  union {
    struct inotify_event first;
    char bytes[1 << 16];
  } room;
  ssize_t n;
  while ((n = read(w->fd, room.bytes, sizeof room.bytes)) > 0) {
    for (ssize_t at = 0; at < n;) {
      struct inotify_event e;
      const char *name = room.bytes + at + sizeof e;
      memcpy(&e, room.bytes + at, sizeof e);
      at += (ssize_t)(sizeof e + e.len);
      if (e.mask & IN_IGNORED) continue;
      if (e.len && !strcmp(name, ".gitignore")) w->again = 1; /* it may let folders in */
      if (e.mask & (IN_Q_OVERFLOW | IN_DELETE_SELF | IN_MOVE_SELF)) w->again = 1;
      if (e.mask & IN_ISDIR && e.mask & (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB)) w->again = 1;
    }
    note_change(w);
  }
}

/* ---- merging ---- */

/* Merges step by step, as a thread. */
static void *merge_steps(void *watch) {
  watching *w = (watching *)watch;
  merging *m = &w->merge;
  int more = 1;
  while (more && !m->status && !__atomic_load_n(&m->stop, __ATOMIC_RELAXED))
    m->status = gpuir_live_merge(w->update.live.live, 0, &more, &m->err);
  while (write(m->done[1], "", 1) < 0 && errno == EINTR) continue;
  return NULL;
}

/* Begins to merge, unless that goes on already. */
static int begin_merge(watching *w) {
  merging *m = &w->merge;
  sigset_t all, before;
  if (m->running) return CLI_OK;
  m->status = GPUIR_OK;
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the thread that waits for them */
  const int error = pthread_create(&m->thread, NULL, merge_steps, w);
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (error) {
    cli_error("cannot start a thread: %s", strerror(error));
    return CLI_FAIL;
  }
  m->running = 1;
  return CLI_OK;
}

/* Waits for the merge, commits what it did, and closes the index. */
static int end_merge(watching *w) {
  merging *m = &w->merge;
  cli_live *l = &w->update.live;
  int code = CLI_OK;
  char byte;
  if (m->running) {
    (void)pthread_join(m->thread, NULL);
    while (read(m->done[0], &byte, 1) < 0 && errno == EINTR) continue;
    code = m->status ? cli_fail(l->path, m->status, &m->err) : cli_live_commit(l);
  }
  m->running = 0;
  gpuir_live_close(l->live);
  l->live = NULL;
  return code;
}

/* ---- following ---- */

/* Brings the index up to date. Another writer is waited for. */
static int follow(watching *w) {
  int code = w->again ? watch_all(w) : CLI_OK;
  w->first = 0;
  if (!code) code = cli_update_run(&w->update);
  if (!code) code = begin_merge(w);
  if (code && w->update.emptied && !w->merge.running) {
    gpuir_live_close(w->update.live.live);
    w->update.live.live = NULL;
  }
  w->again |= w->update.emptied; /* what is mounted there is another folder */
  if (code && (w->update.live.status == GPUIR_E_BUSY || w->update.emptied)) {
    note_change(w);
    w->newest += MOST - QUIET;
    code = CLI_OK;
  }
  return code;
}

/* How long to wait for events: as long as it takes, or until the update is due. */
static uint64_t time_left(const watching *w) {
  const uint64_t now = cli_nanoseconds();
  uint64_t due = w->newest + QUIET;
  if (due > w->first + MOST) due = w->first + MOST;
  return due > now ? due - now : 0;
}

/* Follows until a signal comes, which is let in only where it is waited for, and during an update. */
static int watch(watching *w) {
  sigset_t stop, before;
  int code = CLI_OK;
  (void)sigemptyset(&stop);
  (void)sigaddset(&stop, SIGINT);
  (void)sigaddset(&stop, SIGTERM);
  (void)sigaddset(&stop, SIGHUP);
  while (!code && !cli_signal) {
    struct pollfd events[2] = {{w->fd, POLLIN, 0}, {w->merge.done[0], POLLIN, 0}};
    (void)sigprocmask(SIG_BLOCK, &stop, &before);
    if (!cli_signal) {
      const uint64_t left = w->first ? time_left(w) : 0;
      const struct timespec wait = {(time_t)(left / 1000000000u), (long)(left % 1000000000u)};
      (void)ppoll(events, 2, w->first ? &wait : NULL, &before);
    }
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    if (events[1].revents) code = end_merge(w);
    take_events(w);
    if (!code && w->first && !time_left(w) && !cli_signal) code = follow(w);
  }
  return cli_signal ? CLI_OK : code;
}

/* ---- the command ---- */

/* Learns which folders the index reads, and which is its own. */
static int learn_folders(watching *w) {
  const char *path = w->update.live.path;
  cli_files files;
  struct stat st;
  if (!cli_is_live(path)) {
    cli_error("%s: not a live index, which 'gpuir index --live' makes", path);
    return CLI_FAIL;
  }
  int code = stat(path, &st) ? CLI_FAIL : cli_files_read(&files, path);
  if (code) return code;
  code = cli_update_settings(&w->update, &files);
  w->hidden = files.hidden;
  w->follow = files.follow;
  w->no_ignore = files.no_ignore;
  w->dev = st.st_dev;
  w->ino = st.st_ino;
  cli_files_free(&files);
  return code;
}

int cli_watch(int argc, char **argv) {
  watching w;
  cli_args a;
  char folders[CLI_COUNTED];
  memset(&w, 0, sizeof w);
  w.fd = -1;
  int code = cli_update_options("watch", argc, argv, &a, &w.update);
  if (code) {
    filters_free(&w.update.filters);
    cli_args_free(&a);
    return code - 1;
  }
  cli_catch_signals();
  w.update.live.patient = w.update.keep = 1;
  w.merge.done[0] = w.merge.done[1] = -1;
  code = learn_folders(&w);
  if (!code && pipe(w.merge.done)) code = (cli_error("pipe: %s", strerror(errno)), CLI_FAIL);
  if (!code) code = cli_input_check("watch", a.operands, a.noperands);
  if (!code) code = watch_all(&w);
  if (!code) code = follow(&w);
  if (!code && !cli_signal && !w.update.live.quiet)
    cli_error("%s: watching %s", w.update.live.path, cli_counted(w.folders, "folder", "folders", folders));
  if (!code) code = watch(&w);
  __atomic_store_n(&w.merge.stop, 1, __ATOMIC_RELAXED);
  if (end_merge(&w)) code = CLI_FAIL;
  for (int i = 0; i < 2; i++)
    if (w.merge.done[i] >= 0) (void)close(w.merge.done[i]);
  if (w.fd >= 0) (void)close(w.fd);
  filters_free(&w.update.filters);
  cli_args_free(&a);
  return cli_signal ? CLI_OK : code;
}

#else

int cli_watch(int argc, char **argv) {
  (void)argc, (void)argv;
  cli_error("this system has no inotify: run 'gpuir update' now and then");
  return CLI_FAIL;
}

#endif
