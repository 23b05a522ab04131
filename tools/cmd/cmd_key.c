// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keys: generate, list, load, remove.
 *
 * A name has one key, or two while the key is being changed: NAME and NAME.next in /etc/ibnbd/keys,
 * and the same two in the kernel. `key load` makes the kernel hold what the directory holds: it
 * also drops a loaded key whose file is gone. A change of a key ends with a rename, mv NAME.next
 * NAME, and a `key load`.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tools/cmd/cmd.h"
#include "tools/conf/file.h"
#include "tools/conf/key_file.h"
#include "tools/host/keyring.h"
#include "tools/host/mapping.h"
#include "tools/host/sysfs.h"
#include "tools/out/json.h"
#include "tools/out/say.h"

static int key_bad_name(const char *name)
{
	if (ibtrs_key_name_ok(name, strlen(name)))
		return SAY_DONE;
	return say_error(SAY_USAGE,
			 "a key cannot be called \"%s\": 1 to 63 letters, digits, '_' and '-'", name);
}

/* Names of the keys in the directory, then names that only the kernel has. All is allocated. */
static char **key_all_names(void)
{
	char **all = key_names(), **ring __free(sysfs_list_free) = keyring_names();
	size_t nr, i, k;

	for (nr = 0; all[nr]; nr++)
		;
	for (k = 0; ring[k]; k++) {
		for (i = 0; i < nr && strcmp(all[i], ring[k]); i++)
			;
		if (i < nr)
			continue;
		all = say_grow(all, (nr + 2) * sizeof(*all));
		all[nr++] = say_dup(ring[k]);
		all[nr] = NULL;
	}
	return all;
}

/* ---- generate ---- */

static int key_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), err = 0;
	size_t len = strlen(text);

	if (fd < 0)
		return errno;
	if (write(fd, text, len) != (ssize_t)len || fsync(fd))
		err = errno ? errno : EIO;
	close(fd);
	if (err)
		unlink(path);
	return err;
}

static int key_generate(const char *path)
{
	char text[IBTRS_KEY_TEXT_LEN], *dir __free(free) = sysfs_root(KEY_FILE_DIR),
	     *above __free(free) = file_dir_of(dir);
	u8 key[IBTRS_KEY_LEN];
	int err = 0;

	key_guard();
	if ((mkdir(above, 0755) && errno != EEXIST) || (mkdir(dir, 0700) && errno != EEXIST))
		err = errno;
	if (!err && getrandom(key, sizeof(key), 0) != sizeof(key))
		err = EIO;
	if (!err) {
		ibtrs_key_text(key, text);
		err = key_write(path, text);
	}
	explicit_bzero(key, sizeof(key));
	explicit_bzero(text, sizeof(text));
	return err;
}

int cmd_key_generate_run(struct cmd_args *a)
{
	bool next = ARG(a, next);
	const char *name = a->words[0];
	char *path __free(free) = key_path(name, next);
	int rc = key_bad_name(name), err;

	if (rc)
		return rc;
	if (sysfs_dry_run) {
		printf("write %s\n", path);
		return SAY_DONE;
	}
	err = key_generate(path);
	if (!err)
		say_print("%s", path);
	if (!err || (err == EEXIST && ARG(a, idempotent)))
		return SAY_DONE;
	if (err != EEXIST)
		return say_errno(err, "cannot write %s", path);
	say_error(SAY_ALREADY, "%s is there already", path);
	return say_hint(next ? "mv it to %s on all hosts that have it, then ibnbd key load" :
			       "ibnbd key generate --next %s makes the one that follows it", name);
}

/* ---- load ---- */

static int key_ring(bool modprobe)
{
	if (keyring_there() || sysfs_dry_run)
		return SAY_DONE;
	if (modprobe && !sysfs_redirected())
		MODPROBE("-q", "ibtrs-core");
	if (keyring_there())
		return SAY_DONE;
	say_error(SAY_DRIVER, "there is no keyring " IBTRS_KEYRING ": the driver ibtrs-core is not loaded, or is an older one");
	return say_hint("modprobe ibtrs-core, as root");
}

/* Take a key out of the kernel. ENOKEY is no error: it was not there. *@gone: it was. */
static int key_drop(const char *name, bool next, bool *gone)
{
	int err = keyring_remove(name, next);

	*gone = !err;
	if (!err || err == ENOKEY)
		return SAY_DONE;
	return say_error(say_exit_of(err),
			 "cannot take key %s%s out of the kernel: %s; it still counts", name,
			 next ? KEY_FILE_NEXT : "", strerror(err));
}

/* SAY_NOTHING: there is no file of that name. */
static int key_load_one(const char *name, bool next)
{
	u8 key[IBTRS_KEY_LEN];
	int err = key_read(name, next, key), rc;
	bool gone;

	if (err == ENOENT) {
		/* The file was renamed or deleted. */
		rc = key_drop(name, next, &gone);
		if (gone && !sysfs_dry_run)
			say_print("%s%s has no file any more: dropped", name,
				  next ? KEY_FILE_NEXT : "");
		return rc ? rc : SAY_NOTHING;
	}
	if (err)
		return SAY_FAILED;
	err = keyring_add(name, next, key);
	explicit_bzero(key, sizeof(key));
	rc = say_errno(err, "cannot load key %s%s", name, next ? KEY_FILE_NEXT : "");
	if (err == EPERM)
		say_hint("as root of the host: adding a key takes CAP_SYS_ADMIN");
	return rc;
}

/* Load the present key and the next one. SAY_NOTHING: neither has a file. */
static int key_load(const char *name)
{
	int first = key_load_one(name, false), next = key_load_one(name, true);

	if (first && first != SAY_NOTHING)
		return first;
	return next == SAY_NOTHING ? first : next;
}

static int key_load_all(char **names)
{
	int rc = SAY_DONE, r;

	/* A bad key does not keep the other keys from being loaded. */
	for (; *names; names++) {
		r = key_load(*names);
		rc = rc || r == SAY_NOTHING ? rc : r;
	}
	return rc;
}

static int key_load_words(struct cmd_args *a)
{
	int rc = SAY_DONE, r;

	for (size_t i = 0; !rc && i < a->nr_words; i++)
		rc = key_bad_name(a->words[i]);
	if (rc)
		return rc;
	for (size_t i = 0; i < a->nr_words; i++) {
		r = key_load(a->words[i]);
		if (r == SAY_NOTHING) {
			say_error(r, "there is no key %s in " KEY_FILE_DIR, a->words[i]);
			say_hint("ibnbd key generate %s, or copy it from the other host",
				 a->words[i]);
		}
		rc = rc ? rc : r;
	}
	return rc;
}

/* If the directory cannot be read, its keys are unknown, not gone: drop none. */
static int key_dir(void)
{
	char *why __free(free) = NULL;
	int err = key_dir_check(&why);

	if (!err)
		return SAY_DONE;
	say_error(say_exit_of(err), "cannot read " KEY_FILE_DIR ": %s; the loaded keys stay", why);
	if (err == EACCES && geteuid())
		return say_hint("sudo ibnbd key load");
	return say_hint("make it a directory that belongs to root alone, then ibnbd key load");
}

int cmd_key_load_all(bool modprobe)
{
	int rc = key_dir();
	char **names __free(sysfs_list_free) = NULL;

	if (rc)
		return rc;
	names = key_all_names();
	/* A host without keys needs no driver for them. */
	if (names[0])
		rc = key_ring(modprobe);
	return rc ? rc : key_load_all(names);
}

int cmd_key_load_run(struct cmd_args *a)
{
	int rc;

	if (!a->nr_words)
		return cmd_key_load_all(!ARG(a, no_modprobe));
	rc = key_dir();
	rc = rc ? rc : key_ring(!ARG(a, no_modprobe));
	return rc ? rc : key_load_words(a);
}

/* ---- remove ---- */

static int key_remove_one(const char *name, bool next, bool *any)
{
	char *path __free(free) = key_path(name, next);
	bool gone;
	int err = 0, rc = key_drop(name, next, &gone);

	*any |= gone;
	/* A key that the kernel keeps keeps its file, too: the next `key remove` tries both. */
	if (!rc && sysfs_exists(path)) {
		*any = true;
		if (sysfs_dry_run)
			printf("rm %s\n", path);
		else if (unlink(path))
			err = errno;
	}
	return rc ? rc : say_errno(err, "cannot remove %s", path);
}

int cmd_key_remove_run(struct cmd_args *a)
{
	int rc = SAY_DONE, r;

	for (size_t i = 0; i < a->nr_words; i++) {
		bool any = false;

		r = key_bad_name(a->words[i]);
		if (!r && !ARG(a, next))
			r = key_remove_one(a->words[i], false, &any);
		if (!r)
			r = key_remove_one(a->words[i], true, &any);
		if (!r && !any && !ARG(a, idempotent))
			r = say_error(SAY_NOTHING, "there is no key %s%s", a->words[i],
				      ARG(a, next) ? KEY_FILE_NEXT : "");
		rc = rc ? rc : r;
	}
	return rc;
}

/* ---- list ---- */

struct key_there {
	bool file[2], loaded[2];	/* the present one, the next */
	char *wrong[2];			/* why the file is not used; NULL: it is */
};

static void key_look_for(const char *name, struct key_there *k)
{
	u8 key[IBTRS_KEY_LEN];

	for (int next = 0; next < 2; next++) {
		char *hint __free(free) = NULL;

		k->file[next] = key_look(name, next, key, &k->wrong[next], &hint) != ENOENT;
		k->loaded[next] = keyring_has(name, next);
	}
	explicit_bzero(key, sizeof(key));
}

static void key_list_text(const char *name, const struct key_there *k, bool heading)
{
	static const char *const words[2][2] = { { "-", "next" }, { "yes", "yes, next" } };
	char *file __free(free) = say_fmt("%s%s%s", k->wrong[0] ? "bad" : k->file[0] ? "yes" : "",
			     k->file[0] && k->file[1] ? ", " : "",
			     k->wrong[1] ? "bad next" : k->file[1] ? "next" : "");

	if (heading)
		say_print("%-24s %-14s %s", "KEY", "FILE", "LOADED");
	say_print("%-24s %-14s %s", name, *file ? file : "-",
		  words[k->loaded[0]][k->loaded[1]]);
	for (int next = 0; next < 2; next++)
		if (k->wrong[next])
			say_warn("%s", k->wrong[next]);
}

static void key_list_json(struct json *j, const char *name, const struct key_there *k)
{
	json_object(j, NULL);
	json_text(j, "name", name);
	json_bool(j, "file", k->file[0]);
	json_bool(j, "next_file", k->file[1]);
	json_text(j, "file_error", k->wrong[0]);
	json_text(j, "next_file_error", k->wrong[1]);
	json_bool(j, "loaded", k->loaded[0]);
	json_bool(j, "next_loaded", k->loaded[1]);
	json_end(j);
}

int cmd_key_list_run(struct cmd_args *a)
{
	bool heading = !ARG(a, noheadings), as_json = ARG(a, json);
	char **names __free(sysfs_list_free) = key_all_names();
	struct key_there k;
	struct json j;

	if (as_json)
		json_list(&j, "keys");
	for (size_t i = 0; names[i]; i++) {
		key_look_for(names[i], &k);
		if (as_json)
			key_list_json(&j, names[i], &k);
		else
			key_list_text(names[i], &k, heading);
		heading = false;
		free(k.wrong[0]);
		free(k.wrong[1]);
	}
	if (as_json)
		json_close(&j);
	return SAY_DONE;
}
