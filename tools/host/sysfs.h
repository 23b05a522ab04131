/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reading and writing sysfs. IBNBD_SYSFS is another root in place of /sys. IBNBD_ROOT is another
 * root for everything else that is read (/etc, /proc, /lib). Both are for a copied tree, and for
 * the tests.
 */
#ifndef TOOLS_SYSFS_H
#define TOOLS_SYSFS_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "tools/out/say.h"

#define SYSFS_UNKNOWN	INT64_MIN	/* a number that could not be read */

extern bool sysfs_dry_run;	/* writes are printed, not done */
extern bool sysfs_dry_run_stderr;	/* stdout is for JSON */

/* @fmt below /sys. Allocated. */
char *sysfs_path(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* @fmt below IBNBD_ROOT. Allocated. */
char *sysfs_root(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
const char *sysfs_prefix(void);		/* IBNBD_ROOT, or "" */
bool sysfs_redirected(void);

bool sysfs_exists(const char *path);
/*
 * Read to the end of a file, or until there is more than @max. Returns 0 or errno, in any case with
 * what was read and a NUL behind it, allocated. Nothing of it stays behind elsewhere in the memory.
 */
int sysfs_read(int fd, size_t max, char **text, size_t *len);
/*
 * The whole text without the newline at its end, allocated; NULL with errno if it cannot be read. A
 * file that is too long (EFBIG) or has a NUL in it (EILSEQ) is no text.
 */
char *sysfs_text(const char *path);
/* The attribute @name of directory @dir: text ("" counts as none), or NULL. */
char *sysfs_attr(const char *dir, const char *name);
int64_t sysfs_attr_num(const char *dir, const char *name);
/* Is @path the same as @dir, or below it? Neither is looked at. */
bool sysfs_below(const char *path, const char *dir);
/* Last component of the path that the link points to, allocated, or NULL. */
char *sysfs_link(const char *path);

/*
 * Names in a directory, sorted as people count (ibnbd2 before ibnbd10), without those beginning
 * with '.'. NULL-terminated; a directory that is not there is empty.
 */
char **sysfs_list(const char *path, size_t *nr);
/* Of the files NAME.conf of a directory the NAMEs, without those that begin with a dot. */
char **sysfs_list_conf(const char *path, size_t *nr);
int sysfs_is_conf(const struct dirent *d);	/* is it one of them? */
char **sysfs_list_all(const char *path);	/* what begins with a dot, too */
void sysfs_list_free(char **names);
DEFINE_FREE(sysfs_list_free, char **)

/* The clock of everybody who waits for the kernel or udev: monotonic, µs. */
int64_t sysfs_now(void);

/*
 * Write @text to the attribute, as an order of the user. Honours --dry-run, and prints the order
 * with -v. Returns 0 or errno (positive), without an error message.
 */
int sysfs_write(const char *dir, const char *name, const char *text);
/*
 * Write the whole text. One write(2) takes at most a page, so there are as many as it needs. 0 or
 * errno. The tests link a replacement for this function and the next two.
 */
int sysfs_store(const char *path, const char *text);
/* The errno with which the file cannot be opened for writing; 0: it can. */
int sysfs_barred(const char *path);
/* Is it a block device, and which? */
bool sysfs_node(const char *path, dev_t *dev);

/*
 * Start the program argv[0], which is looked for in /sbin first. With @out its input is /dev/null,
 * *@out is where its output can be read, and its errors are there, too, if @errors, else /dev/null.
 * -1: it was not started.
 */
pid_t sysfs_spawn(const char *const argv[], int *out, bool errors);
/* Its status as of waitpid(2), -1: it is not known. */
int sysfs_wait(pid_t pid);
/* Both, of these words. */
#define SYSFS_RUN(...) \
	sysfs_wait(sysfs_spawn((const char *const[]){ __VA_ARGS__, NULL }, NULL, false))

#endif
