/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reading a file that people write: all of it or nothing, with its length, and with the reason when
 * it is not to be used. server.conf, maps.conf, maps.conf.d, fstab and crypttab are read here and
 * nowhere else.
 */
#ifndef TOOLS_FILE_H
#define TOOLS_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes. A longer file is refused, never cut: its beginning alone may mean something else. */
#define FILE_MAX	(16u << 20)

enum file_state {
	FILE_ABSENT,	/* nothing of that name */
	FILE_THERE,
	FILE_REFUSED,	/* there is something, and it is not used */
};

enum file_whose {
	FILE_OURS,	/* says what root does: owner and rights are judged */
	FILE_SECRET,	/* the same, and nobody else may read it: a key */
	FILE_HOSTS,	/* other programs use it whatever its rights: fstab, crypttab */
};

/**
 * struct file_text - what a file holds
 * @state: see above
 * @text: @len bytes, then a NUL that does not count; also of a file that is refused for its rights,
 *	so that its mistakes can be told; NULL when it could not be read
 * @why: FILE_REFUSED: the reason in words, behind the name of the file
 * @mend: what to do about it, or NULL
 */
struct file_text {
	enum file_state state;
	char *text;
	size_t len;
	char *why;
	char *mend;
};

/**
 * file_read() - read the whole of @path
 * @named: somebody named this very file: a pipe of the caller's (`--file /dev/stdin`) is good, too
 *
 * Never waits for what a FIFO or a device might say. A link to /dev/null is an empty file. Free the
 * result with file_free().
 */
void file_read(const char *path, enum file_whose whose, bool named, struct file_text *out);
void file_free(struct file_text *f);

/*
 * Who can put another directory or file in the place of @path, directory or file? NULL = root
 * alone, else in words; @mend is allocated.
 */
char *file_distrust(const char *path, char **mend);

#endif
