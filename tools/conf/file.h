/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads a file that people write: all of it or nothing, with its length, and with the reason if it
 * must not be used. server.conf, policy.conf, maps.conf, maps.conf.d, keys, fstab and crypttab are
 * read here and nowhere else.
 */
#ifndef TOOLS_FILE_H
#define TOOLS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include "tools/out/say.h"

/* Bytes. A longer file is refused, never cut: its beginning alone may mean something else. */
#define FILE_MAX	(16u << 20)

enum file_state {
	FILE_ABSENT,	/* nothing of that name */
	FILE_THERE,
	FILE_REFUSED,	/* there is something, and it is not used */
};

enum file_whose {
	FILE_OURS,	/* decides what root does: owner and rights are judged */
	FILE_SECRET,	/* the same, and no other user may read it: a key */
	FILE_HOSTS,	/* other programs use it whatever its rights: fstab, crypttab */
};

/**
 * struct file_text - what a file holds
 * @state: see above
 * @text: @len bytes, then a NUL that does not count; a file that is refused for its rights has it
 *	too, so that its mistakes can be told; NULL if the file could not be read
 * @why: FILE_REFUSED: the reason in words, to follow the name of the file
 * @hint: what to do about it, or NULL
 */
struct file_text {
	enum file_state state;
	char *text;
	size_t len;
	char *why;
	char *hint;
};

/**
 * file_read() - read the whole of @path
 * @named: the user named this very file, so a pipe (`--file /dev/stdin`) is accepted too
 *
 * Never waits for what a FIFO or a device might say. A link to /dev/null is an empty file. Free the
 * result with file_free(), which wipes the text: it may be a key.
 */
struct file_text file_read(const char *path, enum file_whose whose, bool named);
void file_free(struct file_text f);
DEFINE_FREE(file_free, struct file_text)

/*
 * Write the whole file or nothing: a temporary file beside it, fsync, rename. A link stays, and the
 * file that it leads to is replaced. Its mode stays, 0644 for a new one. 0 or errno.
 */
int file_replace(const char *path, const char *text, size_t len);
char *file_dir_of(const char *path);	/* of a file; allocated */
void file_mkdirs(const char *path);	/* those that lead to it, as far as that can be done */
/*
 * Lock an open file, for the process; or a directory (@dir), for all who share @fd. 0 or errno;
 * EAGAIN: another one has had it for @seconds.
 */
int file_lock(int fd, bool dir, int seconds);
/* Remove @path, or rename it to @as if that is not NULL. 0 or errno. */
int file_remove(const char *path, const char *as);

/*
 * Can another user put a file or directory in the place of @path? NULL = only root and the caller
 * can; else that user in words, allocated, as is @hint.
 */
char *file_distrust(const char *path, char **hint);

#endif
