// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whose disk a line means: what stands there is followed to its device, a tag through udev's links, and that through device mapper and md to
 * the disks below. So a disk that is mapped is known by whatever leads to it; one that is not, by names of ours and by uuid= of maps.conf.
 */
#include <blkid.h>
#include <libmount.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include "tools/fstab.h"
#include "tools/say.h"
#include "tools/sysfs.h"

#define FSTAB_DEPTH	8

static bool fstab_has(const char *options, const char *word)
{
	size_t len = strlen(word);
	const char *p;

	for (p = options; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
		if (!strncmp(p, word, len) && (!p[len] || p[len] == ','))
			return true;
	return false;
}

/* Where udev links what a tag names. Allocated; a path comes back as it is. */
static char *fstab_path(const char *source)
{
	static const char *const tags[][2] = {
		{ "UUID=", "uuid" }, { "LABEL=", "label" }, { "PARTUUID=", "partuuid" }, { "PARTLABEL=", "partlabel" }, { "ID=", "id" },
	};
	char value[256], safe[1024];
	size_t i, len;

	for (i = 0; i < ARRAY_SIZE(tags); i++) {
		len = strlen(tags[i][0]);
		if (strncmp(source, tags[i][0], len))
			continue;
		source += len + strspn(source + len, "\"");
		snprintf(value, sizeof(value), "%.*s", (int)strcspn(source, "\""), source);
		if (blkid_encode_string(value, safe, sizeof(safe)))
			return NULL;
		return say_fmt("/dev/disk/by-%s/%s", tags[i][1], safe);
	}
	return *source == '/' ? say_dup(source) : NULL;
}

/* The kernel's name of the block device there, or NULL. Allocated. */
static char *fstab_kname(const char *path)
{
	char *file = sysfs_root(path), *real = realpath(file, NULL), *link, *name = NULL;
	struct stat st;

	if (real && !stat(real, &st) && S_ISBLK(st.st_mode)) {
		link = sysfs_path("dev/block/%u:%u", major(st.st_rdev), minor(st.st_rdev));
		name = sysfs_link(link);
		free(link);
	} else if (real && sysfs_redirected()) {
		name = say_dup(strrchr(real, '/') + 1);
	}
	free(real);
	free(file);
	return name;
}

static bool fstab_upon_ours(const char *kname, int depth)
{
	char *dir = sysfs_path("class/block/%s", kname), *slaves = say_fmt("%s/slaves", dir), *part = say_fmt("%s/partition", dir);
	char **names = sysfs_list(slaves, NULL), *real;
	bool ours = !strncmp(kname, "ibnbd", 5);
	size_t i;

	for (i = 0; !ours && depth && names[i]; i++)
		ours = fstab_upon_ours(names[i], depth - 1);
	real = !ours && depth && sysfs_exists(part) ? realpath(dir, NULL) : NULL;
	if (real) {		/* of md, say: its disk is the directory above */
		*strrchr(real, '/') = 0;
		ours = fstab_upon_ours(strrchr(real, '/') + 1, depth - 1);
	}
	free(real);
	sysfs_list_free(names);
	free(part);
	free(slaves);
	free(dir);
	return ours;
}

static bool fstab_ours(const struct maps *m, const char *source)
{
	char *path, *kname;
	bool ours;
	size_t i;

	if (!strncmp(source, "/dev/ibnbd", 10) || !strncmp(source, "/dev/disk/by-id/ibnbd-", 22) ||
	    !strncmp(source, "/dev/disk/by-path/ibnbd-", 24))
		return true;
	for (i = 0; i < m->nr; i++) {
		const char *uuid = m->entries[i].text[MAPS_uuid];

		if (uuid && !strncmp(source, "UUID=", 5) && !strcmp(source + 5, uuid))
			return true;
	}
	path = fstab_path(source);
	kname = path ? fstab_kname(path) : NULL;
	ours = kname && fstab_upon_ours(kname, FSTAB_DEPTH);
	free(path);
	free(kname);
	return ours;
}

static void fstab_add(struct fstab_use **uses, size_t *nr, const char *file, const char *source, const char *target, const char *options)
{
	*uses = say_grow(*uses, (*nr + 2) * sizeof(**uses));
	(*uses)[(*nr)++] = (struct fstab_use){
		.file = say_dup(file), .source = say_dup(source), .target = say_dup(target),
		.netdev = options && fstab_has(options, "_netdev"), .nofail = options && fstab_has(options, "nofail"),
	};
	(*uses)[*nr] = (struct fstab_use){ 0 };
}

static void fstab_mounts(const struct maps *m, struct fstab_use **uses, size_t *nr)
{
	char *path = sysfs_root("/etc/fstab");
	struct libmnt_table *table = sysfs_exists(path) ? mnt_new_table_from_file(path) : NULL;
	struct libmnt_iter *iter = mnt_new_iter(MNT_ITER_FORWARD);
	struct libmnt_fs *fs;

	while (table && iter && !mnt_table_next_fs(table, iter, &fs)) {
		const char *source = mnt_fs_get_source(fs), *target = mnt_fs_get_target(fs), *tag, *value;
		char *full = NULL;

		if (!source && !mnt_fs_get_tag(fs, &tag, &value))
			source = full = say_fmt("%s=%s", tag, value);
		if (source && fstab_ours(m, source))
			fstab_add(uses, nr, path, source, target ? target : "none", mnt_fs_get_options(fs));
		free(full);
	}
	mnt_free_iter(iter);
	mnt_unref_table(table);
	free(path);
}

static void fstab_crypt(const struct maps *m, struct fstab_use **uses, size_t *nr)
{
	char *path = sysfs_root("/etc/crypttab"), *text = sysfs_text(path), *line, *save = NULL;

	for (line = text ? strtok_r(text, "\n", &save) : NULL; line; line = strtok_r(NULL, "\n", &save)) {
		char *inner = NULL, *name = strtok_r(line, " \t", &inner), *source = strtok_r(NULL, " \t", &inner), *options;

		if (!name || !source || *name == '#')
			continue;
		strtok_r(NULL, " \t", &inner);
		options = strtok_r(NULL, " \t", &inner);
		if (fstab_ours(m, source))
			fstab_add(uses, nr, path, source, name, options);
	}
	free(text);
	free(path);
}

struct fstab_use *fstab_uses(const struct maps *m)
{
	struct fstab_use *uses = say_alloc(sizeof(*uses));
	size_t nr = 0;

	fstab_mounts(m, &uses, &nr);
	fstab_crypt(m, &uses, &nr);
	return uses;
}

void fstab_free(struct fstab_use *uses)
{
	struct fstab_use *u;

	for (u = uses; u->file; u++) {
		free(u->file);
		free(u->source);
		free(u->target);
	}
	free(uses);
}

void fstab_check(struct maps *m)
{
	struct fstab_use *uses = fstab_uses(m), *u;

	for (u = uses; u->file; u++) {
		struct maps_at at = { .off = SIZE_MAX };

		if (u->netdev)
			continue;
		for (at.file = 0; at.file < m->nr_files && strcmp(m->files[at.file].path, u->file);)
			at.file++;
		if (at.file == m->nr_files)
			maps_parse(m, u->file, "", 0);
		maps_warn(m, at, say_fmt("%s (%s) has no _netdev: the boot would wait for a disk that needs the network first", u->target, u->source),
			  say_dup("add _netdev to its options"));
	}
	fstab_free(uses);
}
