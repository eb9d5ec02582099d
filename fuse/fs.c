/* fs.c - the threads beside libfuse's workers, and the text of README and .stats. */
#include "fs.h"

#include "backend.h"
#include "guard.h"

#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* ---- reloading ----------------------------------------------------------------------------------------- */

/* Loads the index anew and makes it the current one. A broken one is refused, and the old one stays. */
static void reload(fs *f) {
  generation *g, *old;
  char msg[sizeof f->last_refused];
  uint64_t id;
  pthread_mutex_lock(&f->lock);
  id = generation_id(f->now) + 1;
  pthread_mutex_unlock(&f->lock);
  if (generation_open(&f->config.open, id, &g, msg, sizeof msg) != 0) {
    pthread_mutex_lock(&f->lock);
    f->count.refused++;
    memcpy(f->last_refused, msg, sizeof msg);
    pthread_mutex_unlock(&f->lock);
    complain("not reloaded, the index in use stays: %s", msg);
    return;
  }
  pthread_mutex_lock(&f->lock);
  old = f->now;
  f->now = g;
  f->count.reloads++;
  f->last_refused[0] = 0;
  cache_keep_generation(&f->cache, id);
  pthread_cond_signal(&f->to_notify);
  pthread_mutex_unlock(&f->lock);
  if (f->config.foreground) complain("reloaded %s", f->config.index);
  generation_unref(old);
}

static void *reloader_main(void *arg) {
  fs *f = arg;
  file_sign seen, tried, sign;
  seen = tried = *generation_file(f->now);
  pthread_mutex_lock(&f->lock);
  while (!f->quitting) {
    struct timespec until;
    int asked, found;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += RELOAD_INTERVAL_NS;
    if (until.tv_nsec >= 1000000000L) {
      until.tv_nsec -= 1000000000L;
      until.tv_sec++;
    }
    if (!f->reload_asked) pthread_cond_timedwait(&f->to_reload, &f->lock, &until);
    if (f->quitting) break;
    asked = f->reload_asked;
    f->reload_asked = 0;
    f->reloader_busy = 1;
    pthread_mutex_unlock(&f->lock);
    /* A file that is gone is not a change: the loaded index goes on, until there is another. */
    found = generation_sign(f->config.index, &sign) == 0;
    if (asked || (found && !file_sign_equal(&sign, &seen) && !file_sign_equal(&sign, &tried))) {
      if (found) tried = sign;
      reload(f);
      seen = *generation_file(f->now); /* only this thread changes it */
    }
    pthread_mutex_lock(&f->lock);
    f->reloader_busy = 0;
  }
  pthread_mutex_unlock(&f->lock);
  return NULL;
}

/* ---- telling the kernel -------------------------------------------------------------------------------- */

/* Dropping a name waits for its folder's lock, and busy processes leave it to this thread only now and then.
 * Dropping a folder as a whole needs the lock of the root alone, which nobody else wants. The kernel finds
 * the folders, and what is still good in them, again at the next look-up. */
static void drop_folders(fs *f) {
  static const char *const folders[] = {"query", "hits", "doc", "term"};
  size_t i;
  for (i = 0; i < sizeof folders / sizeof *folders; i++)
    fuse_lowlevel_notify_inval_entry(f->session, FUSE_ROOT_ID, folders[i], strlen(folders[i]));
}

static void *notifier_main(void *arg) {
  fs *f = arg;
  pthread_mutex_lock(&f->lock);
  while (!f->notifier_stop) {
    char name[NAME_LIMIT + 1];
    uint64_t parent;
    size_t len;
    if (cache_many_waiting(&f->cache)) {
      cache_none_waiting(&f->cache);
      f->count.dropped_folders++;
      pthread_mutex_unlock(&f->lock);
      drop_folders(f);
      pthread_mutex_lock(&f->lock);
      continue;
    }
    if (!cache_next_waiting(&f->cache, &parent, name, &len)) {
      pthread_cond_wait(&f->to_notify, &f->lock);
      continue;
    }
    f->count.invalidated++;
    pthread_mutex_unlock(&f->lock);
    /* Waits while the kernel looks something up in that folder. "Not known" is as good as success. */
    fuse_lowlevel_notify_inval_entry(f->session, parent, name, len);
    pthread_mutex_lock(&f->lock);
  }
  pthread_mutex_unlock(&f->lock);
  return NULL;
}

static void notifier_end(fs *f) {
  if (f->notifier_joined) return;
  pthread_mutex_lock(&f->lock);
  f->notifier_stop = 1;
  pthread_cond_signal(&f->to_notify);
  pthread_mutex_unlock(&f->lock);
  pthread_join(f->notifier, NULL);
  f->notifier_joined = 1;
}

/* ---- signals ------------------------------------------------------------------------------------------- */

static void quit_searches(fs *f) {
  ticket *t;
  pthread_mutex_lock(&f->lock);
  f->quitting = 1;
  for (t = f->running; t; t = t->next) ticket_cancel(t);
  pthread_cond_signal(&f->to_reload);
  pthread_mutex_unlock(&f->lock);
}

static void wake(int sig) { (void)sig; }

static int has_left(fs *f) {
  int left;
  pthread_mutex_lock(&f->lock);
  left = f->loop_left;
  pthread_mutex_unlock(&f->lock);
  return left;
}

/* Ends a process whose workers do not come back: one may wait for a file system that does not answer, such as
 * one on the net. The mount is taken away first. Closing the device lets go of all who wait for an answer, also
 * while the kernel cannot end that worker yet. */
static void leave_stuck(fs *f) {
  complain("a request does not end: leaving without it");
  fuse_session_unmount(f->session); /* closes the device too */
  _exit(1);
}

static void *signals_main(void *arg) {
  fs *f = arg;
  const struct timespec moment = {0, 5000000};
  struct timespec begun, now;
  sigset_t set;
  int sig;
  sigemptyset(&set);
  sigaddset(&set, SIGHUP);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  for (;;) {
    if (sigwait(&set, &sig) != 0 || has_left(f)) return NULL;
    if (sig != SIGHUP) break;
    pthread_mutex_lock(&f->lock);
    f->reload_asked = 1;
    pthread_cond_signal(&f->to_reload);
    pthread_mutex_unlock(&f->lock);
  }
  quit_searches(f);
  /* While the workers still answer: the notifier may be waiting for a look-up of theirs. */
  notifier_end(f);
  fuse_session_exit(f->session);
  /* The loop waits on a semaphore, which only a signal wakes; again, in case it was not waiting yet. */
  clock_gettime(CLOCK_MONOTONIC, &begun);
  while (!has_left(f)) {
    pthread_kill(f->main_thread, SIGUSR1);
    nanosleep(&moment, NULL);
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec - begun.tv_sec > LEAVE_SECONDS) leave_stuck(f);
  }
  return NULL;
}

int fs_threads_start(fs *f) {
  struct sigaction act;
  pthread_condattr_t attr;
  memset(&act, 0, sizeof act);
  sigemptyset(&act.sa_mask);
  act.sa_handler = wake; /* without SA_RESTART, so that it does wake */
  if (sigaction(SIGUSR1, &act, NULL) != 0) return errno;
  act.sa_handler = SIG_IGN;
  if (sigaction(SIGPIPE, &act, NULL) != 0) return errno;
  f->main_thread = pthread_self();
  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_cond_init(&f->to_reload, &attr);
  pthread_condattr_destroy(&attr);
  pthread_cond_init(&f->to_notify, NULL);
  if (pthread_create(&f->notifier, NULL, notifier_main, f) != 0) return EAGAIN;
  if (pthread_create(&f->reloader, NULL, reloader_main, f) != 0) return EAGAIN;
  if (pthread_create(&f->signals, NULL, signals_main, f) != 0) return EAGAIN;
  return 0;
}

int fs_threads_stop(fs *f) {
  int busy;
  quit_searches(f);
  pthread_mutex_lock(&f->lock);
  f->loop_left = 1;
  busy = f->reloader_busy;
  pthread_mutex_unlock(&f->lock);
  pthread_kill(f->signals, SIGTERM);
  pthread_join(f->signals, NULL);
  notifier_end(f);
  /* Checking a large index cannot be called off; the end of the process ends it. */
  if (busy) return EBUSY;
  pthread_join(f->reloader, NULL);
  pthread_cond_destroy(&f->to_notify);
  pthread_cond_destroy(&f->to_reload);
  return 0;
}

/* ---- texts --------------------------------------------------------------------------------------------- */

void fs_stats(fs *f, buf *b) {
  gpuir_index_info info;
  fs_counters count;
  cache c;
  generation *g;
  uint64_t handles;
  char fallback[sizeof f->last_fallback], refused[sizeof f->last_refused];
  pthread_mutex_lock(&f->lock);
  g = generation_ref(f->now);
  count = f->count;
  c = f->cache;
  handles = f->handles;
  memcpy(fallback, f->last_fallback, sizeof fallback);
  memcpy(refused, f->last_refused, sizeof refused);
  pthread_mutex_unlock(&f->lock);
  memset(&info, 0, sizeof info);
  guard_enter(generation_broken_flag(g));
  gpuir_index_get_info(generation_index(g), &info);
  guard_leave();
  buf_puts(b, "index\t");
  format_tsv_name(b, f->config.index, strlen(f->config.index));
  buf_printf(b, "\nbackend\t%s\n", backend_present() && f->config.backend != BACKEND_CPU ? "gpu" : "cpu");
#define LINE(name, value) buf_printf(b, name "\t%llu\n", (unsigned long long)(value))
  LINE("generation", generation_id(g));
  LINE("broken", generation_is_broken(g));
  LINE("documents", info.documents);
  LINE("terms", info.terms);
  LINE("postings", info.postings);
  LINE("file_bytes", info.file_bytes);
  LINE("lookups", count.lookups);
  LINE("searches", count.searches);
  LINE("memo_hits", count.memo_hits);
  LINE("errors", count.errors);
  LINE("changed_sources", count.changed);
  LINE("interrupted", count.interrupted);
  LINE("gpu_fallbacks", count.fallbacks);
  LINE("reloads", count.reloads);
  LINE("refused", count.refused);
  LINE("cache_limit", c.limit);
  LINE("cache_bytes", c.listed_cost);
  LINE("leaving_bytes", c.leaving_cost);
  LINE("nodes", c.nodes);
  LINE("results", c.results);
  LINE("evicted", c.evicted);
  LINE("invalidated", count.invalidated);
  LINE("dropped_folders", count.dropped_folders);
  LINE("open_files", handles);
#undef LINE
  /* The last two only when there is something to say. */
  if (fallback[0]) {
    buf_puts(b, "gpu_fallback_reason\t");
    format_tsv_name(b, fallback, strlen(fallback));
    buf_puts(b, "\n");
  }
  if (refused[0]) {
    buf_puts(b, "refused_reason\t");
    format_tsv_name(b, refused, strlen(refused));
    buf_puts(b, "\n");
  }
  generation_unref(g);
}

char *fs_readme(const fs_config *config) {
  static const char *const modes[] = {"and", "or", "andor"};
  buf b;
  memset(&b, 0, sizeof b);
  b.max = 65536;
  buf_puts(
      &b,
      "This folder answers ranked text queries. Naming a file runs its query; listing a folder runs none.\n"
      "\n"
      "  cat query/gpu+cuda              docIDs of the best documents, best first\n"
      "  cat query/gpu+-opencl.tsv       rank, docID, score and name; without 'opencl'\n"
      "  cat query/@or/@k=100/gpu+cuda   any of the words, the best 100\n"
      "  ls -l hits/gpu+cuda             the same as links to the documents\n"
      "  head -n 5 hits/gpu+cuda/000001* the best document\n"
      "  cat doc/0                       document 0, or a link to its file\n"
      "  cat term/gpu                    in how many documents a term occurs, and how it is stored\n"
      "\n"
      "query/<q>         one docID a line; an empty file when nothing matches\n"
      "query/<q>.tsv     rank, docID, score, name; \\t \\n \\r \\\\ \\xhh stand for special characters\n"
      "query/<q>.json    an array of objects with the same four\n"
      "hits/<q>/         links 000001-<name> to doc/<docID>\n"
      "doc/<docID>       the stored text, a link to the source file, or its part of it\n"
      "term/<t>          statistics of a term\n"
      ".stats .version   counters of the mount, and its version\n"
      "\n"
      "<q> is one file name of at most 255 bytes. `+` parts words, `-` before a word excludes it,\n"
      "%XX stands for any byte (Python: urllib.parse.quote_plus). `-`, `@` and the suffix are read\n"
      "before %XX, so %2D, %40 and %2E are the plain characters. Names that begin with `.` are\n"
      "never queries.\n"
      "\n"
      "Options are folders in query/ and hits/, in any order, each at most once:\n"
      "  @and @or @andor   all words; any word; all, or any where too few documents have all\n"
      "  @k=N              at most N documents, best first\n"
      "  @cpu @gpu         who computes; the answer is the same\n");
  buf_printf(&b, "Without them: @%s/@k=%lu. The largest N is %lu.\n\n", modes[config->mode],
             (unsigned long)config->k, (unsigned long)config->max_k);
  buf_puts(
      &b,
      "Errors: EINVAL for a malformed name or a query without a word to look for, E2BIG for more than\n"
      "64 words, ENAMETOOLONG for a name over 255 bytes, EROFS for writing, ENODATA for a document whose\n"
      "text is neither in the index nor on disk, EACCES for one whose source you may not read, EIO when\n"
      "the index file was cut short. When it is replaced, new results show within two seconds; open files\n"
      "keep what they had.\n");
  buf_put(&b, "", 1); /* the final NUL */
  return b.error ? NULL : b.data;
}
