/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keys as files: /etc/ibnbd/keys/NAME, and NAME.next for the one that is to follow. One line,
 * "ibnbd-key:1:" and base64 of the key and its CRC-32, so that a key that was copied by hand is
 * noticed before it is tried.
 */
#ifndef TOOLS_KEY_FILE_H
#define TOOLS_KEY_FILE_H

#include <ibtrs/key.h>

#define KEY_FILE_DIR	"/etc/ibnbd/keys"
#define KEY_FILE_NEXT	".next"
#define KEY_TEXT_LEN	62	/* with newline and NUL */

/* The line, with its newline. */
void key_text(const u8 *key, char *text);
/* What a file says. NULL: @key is good; or why not. */
const char *key_parse(const char *text, size_t len, u8 *key);
/* Of the present key of @name, or of the next. Allocated. */
char *key_path(const char *name, bool next);
/*
 * Read it. 0; ENOENT: there is none; EINVAL: it is not used, and was said. @key is to be wiped.
 */
int key_read(const char *name, bool next, u8 *key);
/* The same, but what is wrong comes back in words: allocated, or NULL. */
int key_look(const char *name, bool next, u8 *key, char **said, char **mend);
/* Can the directory be read, or is there none? 0, or errno and @why, which is allocated. */
int key_dir_check(char **why);
/*
 * Names in the directory, each once, behind which there is a key or the next one; free with
 * sysfs_list_free().
 */
char **key_names(void);

#endif
