// SPDX-License-Identifier: GPL-2.0-only
/*
 * md arrays in sysfs, and mdadm as a program with a deadline: a member whose path is lost meanwhile
 * may keep it for ever.
 */
#include <libmount.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tools/host/md.h"
#include "tools/host/sysfs.h"
#include "tools/out/say.h"

#define MD_SECONDS	60
#define MD_SAID		65536

char *md_attr(const char *md, const char *name)
{
	char *dir __free(free) = sysfs_path("block/%s/md", md);

	return sysfs_attr(dir, name);
}

char *md_over(const char *kname)
{
	char *dir __free(free) = sysfs_path("block/%s/holders", kname),
	     **names __free(sysfs_list_free) = sysfs_list(dir, NULL), *md = NULL;

	for (size_t i = 0; names[i] && !md; i++) {
		char *level __free(free) = md_attr(names[i], "level");

		/* an array that is not started has no level yet */
		if (!strncmp(names[i], "md", 2) && (!level || !strcmp(level, "raid1")))
			md = say_dup(names[i]);
	}
	return md;
}

bool md_runs(const char *md)
{
	char *state __free(free) = md_attr(md, "array_state");

	return state && strcmp(state, "inactive") && strcmp(state, "clear");
}

/* Is @word in its state, as in "in_sync,failfast"? That is written as mount options are. */
static bool md_has(const char *md, const char *kname, const char *word)
{
	char *file __free(free) = say_fmt("dev-%s/state", kname),
	     *state __free(free) = md_attr(md, file);

	return state && !mnt_optstr_get_option(state, word, NULL, NULL);
}

enum mirror_md md_member(const char *md, const char *kname)
{
	char *path __free(free) = sysfs_path("block/%s/md/dev-%s", md, kname);

	return !sysfs_exists(path)	    ? MIRROR_NONE :
	       md_has(md, kname, "faulty")  ? MIRROR_FAULTY :
	       md_has(md, kname, "in_sync") ? MIRROR_IN_SYNC :
					      MIRROR_REBUILDING;
}

bool md_failfast(const char *md, const char *kname)
{
	return md_has(md, kname, "failfast");
}

int md_progress(const char *md)
{
	char *text __free(free) = md_attr(md, "sync_completed");
	unsigned long long done, all;
	int percent = -1;

	if (text && sscanf(text, "%llu / %llu", &done, &all) == 2 && all)
		percent = (int)(done * 100 / all);
	return percent;
}

int md_readd(const char *md, const char *kname)
{
	char *dir __free(free) = sysfs_path("block/%s/md/dev-%s", md, kname);

	return sysfs_write(dir, "state", "re-add");
}

/* ---- mdadm ---- */

static void md_tell(const char *const words[])
{
	char *line __free(free) = NULL;

	for (size_t i = 0; words[i]; i++) {
		char *word __free(free) = say_word(words[i]);

		say_append(&line, "%s%s", i ? " " : "", word);
	}
	if (sysfs_dry_run)
		fprintf(sysfs_dry_run_stderr ? stderr : stdout, "%s\n", line);
	else
		say_more("%s", line);
}

/*
 * Reads until the program has ended, or @end, and kills it then. One that waits for a disk in the
 * kernel cannot be killed, and is not waited for.
 */
static int md_wait(pid_t pid, int out, char *said, int64_t end)
{
	struct pollfd p = { .fd = out, .events = POLLIN };
	int status = -1, tries;
	size_t len = 0;
	ssize_t n = 1;

	while (n > 0 && sysfs_now() < end)
		if (poll(&p, 1, 1000) > 0) {
			n = read(out, said + len, MD_SAID - 1 - len);
			len += n > 0 ? (size_t)n : 0;
		}
	close(out);
	if (!n) {
		status = sysfs_wait(pid);
		return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	}
	kill(pid, SIGKILL);
	for (tries = 0; tries < 100 && !waitpid(pid, &status, WNOHANG); tries++)
		usleep(10000);
	snprintf(said + len, MD_SAID - len, "no end after %d seconds", MD_SECONDS);
	return -1;
}

int md_run(char **said, const char *const words[])
{
	char *text;
	int out, rc;
	pid_t pid;

	*said = NULL;
	md_tell(words);
	if (sysfs_dry_run)
		return 0;
	text = say_alloc(MD_SAID);
	pid = sysfs_spawn(words, &out, true);
	rc = pid < 0 ? -1 : md_wait(pid, out, text, sysfs_now() + MD_SECONDS * 1000000LL);
	if (rc == 127 && !*text)
		strcpy(text, "there is no mdadm");
	for (size_t i = strlen(text); i && text[i - 1] == '\n'; i--)
		text[i - 1] = 0;
	*said = text;
	return rc;
}

/* The word behind "   KEY : " in the output of mdadm --examine. */
static const char *md_field(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at && !strncmp(at + strlen(key), " : ", 3) ? at + strlen(key) + 3 : NULL;
}

int md_examine(const char *path, struct md_super *super)
{
	const bool dry = sysfs_dry_run;
	const char *uuid, *role, *array;
	unsigned int slot;
	char *said __free(free) = NULL;
	int rc;

	*super = (struct md_super){ 0 };
	sysfs_dry_run = false;		/* it reads */
	rc = MD_RUN(&said, "--examine", path);
	sysfs_dry_run = dry;
	uuid = rc < 0 ? NULL : md_field(said, "Array UUID");
	role = uuid ? md_field(said, "Device Role") : NULL;
	array = uuid ? md_field(said, "Array State") : NULL;
	if (uuid)
		snprintf(super->uuid, sizeof(super->uuid), "%.*s", (int)strcspn(uuid, " \n"), uuid);
	super->active = role && array && sscanf(role, "Active device %u", &slot) == 1 &&
			slot < strspn(array, "A.R") && array[slot] == 'A' &&
			!strstr(said, "Recovery Offset");
	return rc < 0 || rc == 127 ? -1 : 0;
}
