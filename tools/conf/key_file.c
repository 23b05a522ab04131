// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keys in files. file.c judges who owns the file and who can read it, ibtrs/logic/keytext.c its
 * content. Error messages name the file, and never show its content.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include "tools/conf/file.h"
#include "tools/conf/key_file.h"
#include "tools/host/sysfs.h"
#include "tools/out/say.h"

char *key_path(const char *name, bool next)
{
	char *dir __free(free) = sysfs_root(KEY_FILE_DIR);

	return say_fmt("%s/%s%s", dir, name, next ? KEY_FILE_NEXT : "");
}

void key_guard(void)
{
	const struct rlimit none = { 0 };

	/* core_pattern may name a program, which is run whatever the limit is */
	prctl(PR_SET_DUMPABLE, 0);
	setrlimit(RLIMIT_CORE, &none);
}

int key_look(const char *name, bool next, u8 *key, char **said, char **hint)
{
	char *path __free(free) = key_path(name, next);
	struct file_text f __free(file_free) = { 0 };
	const char *why;

	key_guard();
	*said = *hint = NULL;
	f = file_read(path, FILE_SECRET, false);
	if (f.state == FILE_ABSENT)
		return ENOENT;
	why = f.state == FILE_REFUSED ? f.why : ibtrs_key_parse(f.text, f.len, key);
	if (!why)
		return 0;
	*said = say_fmt("%s: %s", path, why);
	*hint = f.hint ? say_dup(f.hint) : NULL;
	return EINVAL;
}

int key_read(const char *name, bool next, u8 *key)
{
	char *said __free(free) = NULL, *hint __free(free) = NULL;
	int err = key_look(name, next, key, &said, &hint);

	if (said)
		say_error(0, "%s", said);
	if (hint)
		say_hint("%s", hint);
	return err;
}

/*
 * @path does not exist. Is the reason a link that leads nowhere, at @path or at a directory on the
 * way to it? Allocated; NULL = no.
 */
static char *key_dir_dangling(const char *path)
{
	char *part __free(free) = say_dup(path), *slash, *why = NULL;
	struct stat st;

	while (!why && *part && lstat(part, &st)) {
		slash = strrchr(part, '/');
		*(slash ? slash : part) = 0;
	}
	if (*part && S_ISLNK(st.st_mode) && stat(part, &st))
		why = say_fmt("the link %s leads nowhere", part);
	return why;
}

int key_dir_check(char **why)
{
	char *path __free(free) = sysfs_root(KEY_FILE_DIR);
	DIR *dir = opendir(path);
	int err = dir ? 0 : errno;

	*why = NULL;
	if (dir)
		closedir(dir);
	if (err == ENOENT)
		*why = key_dir_dangling(path);
	else if (err)
		*why = say_dup(strerror(err));
	return *why ? err : 0;
}

char **key_names(void)
{
	char *dir __free(free) = sysfs_root(KEY_FILE_DIR), **names = sysfs_list(dir, NULL), *dot,
	     *of;
	size_t from, to = 0, i;

	for (from = 0; names[from]; from++) {
		of = names[from];
		dot = strrchr(of, '.');
		if (dot && !strcmp(dot, KEY_FILE_NEXT))
			*dot = 0;
		for (i = 0; i < to && strcmp(names[i], of); i++)
			;
		if (i == to && ibtrs_key_name_ok(of, strlen(of)))
			names[to++] = of;
		else
			free(of);
	}
	names[to] = NULL;
	return names;
}
