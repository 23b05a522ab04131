/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keys as files: /etc/ibnbd/keys/NAME, and NAME.next for the key that is to follow. A file has one
 * line (ibtrs/key.h).
 */
#ifndef TOOLS_KEY_FILE_H
#define TOOLS_KEY_FILE_H

#include <ibtrs/key.h>

#define KEY_FILE_DIR	"/etc/ibnbd/keys"
#define KEY_FILE_NEXT	".next"

/*
 * Call this before a key comes into the memory of this process: from then on it leaves no core
 * behind, and nobody else can trace it. The holder of a key wipes it after use.
 */
void key_guard(void);
/* The path of the file of @name's present key, or of its next one. Allocated. */
char *key_path(const char *name, bool next);
/*
 * Read a key. 0; ENOENT: there is no file; EINVAL: the file is not used, and the reason was
 * printed. The caller must wipe @key.
 */
int key_read(const char *name, bool next, u8 *key);
/* The same, but the reason is returned in words: allocated, or NULL. */
int key_look(const char *name, bool next, u8 *key, char **said, char **hint);
/*
 * Check that the directory can be read. No directory is fine. 0, or errno and @why, which is
 * allocated.
 */
int key_dir_check(char **why);
/*
 * Names of keys in the directory, each once, whether it has a present key, a next key, or both.
 * Free with sysfs_list_free().
 */
char **key_names(void);

#endif
