
#ifndef GPUIR_NO_FOLDER
/* ========
 * [api-folder]  reading files and folders
 *
 * A folder's files are read in byte order of their paths, so that the same tree always gives the same documents. What
 * is opened is what was listed: entries are opened in their open folder, links are not followed unless asked for, and
 * nobody is waited for. Indexes, live ones too, are left out, and so is what .gitignore files say (gitignore(5); that
 * of a folder holds for what lies below it). At most 64 folders are open at a time, whatever the depth; paths have less
 * than PATH_MAX bytes.
 *
 *     gpuir_walk_desc how = {0};
 *     gpuir_builder_add_folder(builder, "notes", &how, &err);
 * ======*/

struct stat; /* sys/stat.h has it */

/* A file or folder that the walk has come to, and opened for reading. All lives until the callback returns. */
typedef struct gpuir_walk_entry {
  const char *path; /* the path that was given and, behind it, the names below, parted by '/'; "." and a '/' at the end
                       are left out of it */
  int fd; /* at the first byte; the walk closes it */
  int is_folder;
  int is_named; /* the path that was given: perhaps a FIFO or a device, too */
  int is_mount; /* a folder on another device than the folder that it lies in */
  const struct stat *st; /* of fd */
} gpuir_walk_entry;

/* Why something is left out. */
enum {
  GPUIR_SKIPPED_HIDDEN = 1, /* its name begins with a dot */
  GPUIR_SKIPPED_IGNORED, /* by a .gitignore */
  GPUIR_SKIPPED_LINK, /* a symbolic link */
  GPUIR_SKIPPED_CIRCLE, /* a link to a folder above it */
  GPUIR_SKIPPED_SPECIAL, /* a FIFO, socket or device */
  GPUIR_SKIPPED_INDEX, /* an index, or another file that gpuir wrote */
  GPUIR_SKIPPED_BINARY, /* by gpuir_builder_add_: a NUL byte among its first 8 KiB */
  GPUIR_SKIPPED_UNREADABLE /* `error` is an errno value: ESTALE if it was replaced again and again */
};

enum { GPUIR_WALK_TAKE = 0, GPUIR_WALK_LEAVE = 1 };

/* How to walk. Zeroed: as `gpuir index` does it. */
typedef struct gpuir_walk_desc {
  int hidden; /* read what begins with a dot, too */
  int follow; /* follow symbolic links */
  int no_ignore; /* read no .gitignore */
  int folders_only; /* open no files */
  /* Called with each file and folder. GPUIR_WALK_TAKE enters the folder; of a file, gpuir_builder_add_ make a document.
   * GPUIR_WALK_LEAVE goes on behind it: it is not wanted, or the callback has dealt with it. A negative value ends the
   * walk, which returns it. NULL: all are taken. */
  int (*open)(void *user, const gpuir_walk_entry *entry);
  /* Told of what is left out. NULL: nobody is. */
  void (*skipped)(void *user, const char *path, int why, int error);
  void *user; /* of both */
} gpuir_walk_desc;

/* Walks over a file, or a folder and all below it. Errors: NOT_FOUND if nothing has the path; IO if it cannot be read,
 * where anything below it is left to `skipped`; ARGUMENT for a live index; NOMEM; what `open` returned. Threads: any
 * number of walks at a time; each takes up to 1 MB of the stack for the deepest of paths. */
GPUIR_API int gpuir_walk(const char *path, const gpuir_walk_desc *desc, gpuir_error *err);

/* Opens a name for reading in a folder that is open (AT_FDCWD: the current one), as the walk does it; *st describes
 * what was opened. Waits for nobody. Returns 0, or an errno value, and then *fd is -1: ELOOP for a link that is not to
 * be followed, EINVAL for what is neither a regular file nor a folder, what openat(2) says. */
GPUIR_API int gpuir_walk_open(int folder, const char *name, int follow, int *fd, struct stat *st);

/* Adds the text files of a folder, each as a document: its name is its path as the walk has it, its source its absolute
 * path. desc, which may be NULL, may leave out files, or add documents of them by itself. Errors: as gpuir_walk and
 * gpuir_builder_add_text; LIMIT for a file of over 1 GiB. After an error the documents so far stay added. */
GPUIR_API int gpuir_builder_add_folder(gpuir_builder *builder, const char *path, const gpuir_walk_desc *desc,
    gpuir_error *err);

/* The same of one text file. ARGUMENT for a folder, and for a file with a NUL byte among its first 8 KiB. */
GPUIR_API int gpuir_builder_add_file(gpuir_builder *builder, const char *path, gpuir_error *err);
#endif
