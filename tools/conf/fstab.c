// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which lines of fstab and crypttab use our disks. The source of a line is followed to its device:
 * a tag through udev's links, and a device through device mapper and md to the disks below it. So a
 * mapped disk is found by whatever leads to it. A disk that is not mapped is found only by our
 * names and by uuid= of maps.conf. Then the lines that need what those mount are found, and those
 * that need these: a bind mount, an overlay, a swap file, an image, a key, a mount point below.
 */
#include <blkid.h>
#include <libmount.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include "tools/conf/file.h"
#include "tools/conf/fstab.h"
#include "tools/out/say.h"
#include "tools/host/sysfs.h"

#define FSTAB_DEPTH	8

/* The path of udev's link for a tag. A path is returned as it is. Allocated. */
static char *fstab_path(const char *source)
{
	static const char *const tags[][2] = {
		{ "UUID=", "uuid" },	       { "LABEL=", "label" }, { "PARTUUID=", "partuuid" },
		{ "PARTLABEL=", "partlabel" }, { "ID=", "id" },
	};
	char safe[1024];
	size_t i, len;

	for (i = 0; i < ARRAY_SIZE(tags); i++) {
		len = strlen(tags[i][0]);
		if (strncmp(source, tags[i][0], len))
			continue;
		if (blkid_encode_string(source + len, safe, sizeof(safe)))
			return NULL;
		return say_fmt("/dev/disk/by-%s/%s", tags[i][1], safe);
	}
	return *source == '/' ? say_dup(source) : NULL;
}

/* The kernel's name of the block device at @path, allocated, or NULL. */
static char *fstab_kname(const char *path)
{
	char *file __free(free) = sysfs_root("%s", path), *real __free(free) = realpath(file, NULL),
	     *link __free(free) = NULL, *name = NULL;
	struct stat st;

	if (real && !stat(real, &st) && S_ISBLK(st.st_mode)) {
		link = sysfs_path("dev/block/%u:%u", major(st.st_rdev), minor(st.st_rdev));
		name = sysfs_link(link);
	} else if (real && sysfs_redirected()) {
		name = say_dup(strrchr(real, '/') + 1);
	}
	return name;
}

static bool fstab_upon_ours(const char *kname, int depth)
{
	char *dir __free(free) = sysfs_path("class/block/%s", kname),
	     *slaves __free(free) = say_fmt("%s/slaves", dir),
	     *part __free(free) = say_fmt("%s/partition", dir);
	char **names __free(sysfs_list_free) = sysfs_list(slaves, NULL), *real __free(free) = NULL;
	bool ours = !strncmp(kname, "ibnbd", 5);

	for (size_t i = 0; !ours && depth && names[i]; i++)
		ours = fstab_upon_ours(names[i], depth - 1);
	real = !ours && depth && sysfs_exists(part) ? realpath(dir, NULL) : NULL;
	if (real) {		/* a partition, of md for example: its disk is above */
		*strrchr(real, '/') = 0;
		ours = fstab_upon_ours(strrchr(real, '/') + 1, depth - 1);
	}
	return ours;
}

/* Does the text stand in quotes, single or double? */
static bool fstab_quoted(const char *s)
{
	size_t len = strlen(s);

	return len > 1 && (*s == '"' || *s == '\'') && s[len - 1] == *s;
}

/* The value of a tag, "" of a path. */
static const char *fstab_value(const char *source)
{
	const char *eq = *source == '/' ? NULL : strchr(source, '=');

	return eq ? eq + 1 : "";
}

/* The source without quotes around a value, as mount and systemd read it. Allocated. */
static char *fstab_unquoted(const char *source)
{
	const char *v = fstab_value(source);

	return fstab_quoted(v) ? say_fmt("%.*s%.*s", (int)(v - source), source, (int)strlen(v) - 2,
					 v + 1) :
				 say_dup(source);
}

/* Remove doubled slashes and `.` from a path, as mount and systemd ignore them. In place. */
static void fstab_plain_path(char *path)
{
	char *to = path;
	const char *s = path;

	if (*path != '/')
		return;
	while (*s) {
		if (s[0] == '/' && s[1] == '/')
			s++;
		else if (s[0] == '/' && s[1] == '.' && (s[2] == '/' || !s[2]))
			s += 2;
		else
			*to++ = *s++;
	}
	*to = 0;
}

#define FSTAB_UUIDS	"/dev/disk/by-uuid/"

static bool fstab_ours(const struct maps *m, const char *source)
{
	char *path __free(free) = NULL, *kname __free(free) = NULL;

	if (!strncmp(source, "/dev/ibnbd", 10) || !strncmp(source, "/dev/disk/by-id/ibnbd-", 22) ||
	    !strncmp(source, "/dev/disk/by-path/ibnbd-", 24))
		return true;
	for (size_t i = 0; i < m->nr; i++) {
		const char *uuid = m->entries[i].text[MAPS_uuid];

		if (uuid && ((!strncmp(source, "UUID=", 5) && !strcasecmp(source + 5, uuid)) ||
			     (!strncmp(source, FSTAB_UUIDS, strlen(FSTAB_UUIDS)) &&
			      !strcasecmp(source + strlen(FSTAB_UUIDS), uuid))))
			return true;
	}
	path = fstab_path(source);
	kname = path ? fstab_kname(path) : NULL;
	return kname && fstab_upon_ours(kname, FSTAB_DEPTH);
}

/* Lines of both files: first those that use our disks, then the others. */
struct fstab {
	const struct maps *m;
	struct maps *said;
	struct fstab_use *uses;
	size_t nr, nr_ours;
};

/* Line @i is one more that uses our disks. */
static void fstab_take(struct fstab *t, size_t i)
{
	struct fstab_use use = t->uses[i];

	memmove(&t->uses[t->nr_ours + 1], &t->uses[t->nr_ours], (i - t->nr_ours) * sizeof(use));
	t->uses[t->nr_ours++] = use;
}

/* ---- what is on what is on a disk ---- */

/* Options whose value is a path, or several with a colon between them. */
static const char *const fstab_paths[] = {
	"lowerdir=", "lowerdir+=", "upperdir=", "workdir=", "datadir+=", "x-systemd.requires-mounts-for=",
	"x-systemd.wants-mounts-for=", "logdev=", "rtdev=", "journal_path=", "device=", "header=",
	"br:", "dirs=", "loop=",
};

/* The path without links, as far as it exists now: what lies on a mount may not. Allocated. */
static char *fstab_real(const char *path)
{
	char *file __free(free) = sysfs_root("%s", path), *whole = NULL;
	size_t len = strlen(file), skip = strlen(sysfs_prefix());

	while (!whole && len > skip) {
		char *real __free(free) = NULL;

		file[len] = 0;
		real = realpath(file, NULL);
		if (real && !strncmp(real, sysfs_prefix(), skip))
			whole = say_fmt("%s%s", real + skip, path + (len - skip));
		while (--len > skip && path[len - skip] != '/')
			;
	}
	return whole ? whole : say_dup(path);
}

/*
 * The mount point, or mapping, of @uses that this path needs, allocated. NULL: none. The root file
 * system is there before all else.
 */
static char *fstab_on(const struct fstab *t, const char *path)
{
	const struct fstab_use *u;
	char *real __free(free) = fstab_real(path), *found = NULL;

	for (u = t->uses; u < t->uses + t->nr_ours && !found; u++) {
		char *at __free(free) = strchr(u->target, '/') ?
						say_dup(u->target) :
						say_fmt("/dev/mapper/%s", u->target);

		if (*at == '/' && at[strspn(at, "/")] &&
		    (sysfs_below(path, at) || sysfs_below(real, at)))
			found = say_dup(u->target);
	}
	return found;
}

/*
 * What a path in @text, a list with colons, depends on, allocated: a mount of ours, or one of our
 * disks itself. A key of crypttab is PATH:DEVICE.
 */
static char *fstab_list(const struct fstab *t, const char *text)
{
	char *list __free(free) = say_dup(text), *path, *save = NULL, *hash, *via = NULL;

	for (path = strtok_r(list, ":", &save); path && !via; path = strtok_r(NULL, ":", &save)) {
		hash = strchr(path, '#');	/* bindfs#/a */
		if (*path != '/' && hash)
			path = hash + 1;
		fstab_plain_path(path);
		if (fstab_ours(t->m, path))
			via = say_dup(path);
		else if (*path == '/')
			via = fstab_on(t, path);
	}
	return via;
}

static char *fstab_needs(const struct fstab *t, const struct fstab_use *u)
{
	char *options __free(free) = say_dup(u->options), *word, *rest = options,
	     *parent __free(free) = say_dup(u->target), *slash = strrchr(parent, '/'),
	     *via = fstab_list(t, u->source);

	if (!via && u->key)
		via = fstab_list(t, u->key);
	while (!via && (word = strsep(&rest, ",")))
		for (size_t i = 0; i < ARRAY_SIZE(fstab_paths) && !via; i++)
			if (!strncmp(word, fstab_paths[i], strlen(fstab_paths[i])))
				via = fstab_list(t, word + strlen(fstab_paths[i]));
	if (!via && slash > parent) {
		*slash = 0;
		via = fstab_on(t, parent);
	}
	return via;
}

/* Add what needs the mounts in @uses, then what needs that, until there is no more. */
static void fstab_follow(struct fstab *t)
{
	size_t before;

	do {
		before = t->nr_ours;
		for (size_t i = before; i < t->nr; i++) {
			t->uses[i].via = fstab_needs(t, &t->uses[i]);
			if (t->uses[i].via)
				fstab_take(t, i);
		}
	} while (before < t->nr_ours);
}

/* ---- the lines ---- */

/* Note the line, and whether it uses one of our disks by itself; and warn of wrong quotes. */
static void fstab_line(struct fstab *t, size_t file, const char *source, const char *target,
		       const char *options, const char *key)
{
	const struct maps_at at = { file, SIZE_MAX, 0 };
	const char *value = fstab_value(source);
	bool whole = fstab_quoted(source);
	char *inner __free(free) = say_fmt("%.*s", (int)strlen(source) - 2 * whole, source + whole),
	     *plain = fstab_unquoted(inner);

	fstab_plain_path(plain);
	t->uses = say_grow(t->uses, (t->nr + 2) * sizeof(*t->uses));
	t->uses[t->nr] = (struct fstab_use){
		.file = say_dup(t->said->files[file].path), .source = plain,
		.target = say_dup(target), .options = say_dup(options ? options : ""),
		.key = key ? say_dup(key) : NULL,
		.netdev = !mnt_optstr_get_option(options, "_netdev", NULL, NULL),
	};
	if ((*value == '"' || *value == '\'') && !fstab_quoted(value))
		maps_warn(
			t->said, at,
			say_fmt("%s: the quote in %s is not closed by the same, and nothing has such a name",
				target, source),
			say_dup("TAG=\"value\", or without quotes"));
	t->nr++;
	if (!fstab_ours(t->m, plain))
		return;
	if (whole)
		maps_warn(
			t->said, at,
			say_fmt("%s: the quotes around %s are read as part of it, and nothing has such a name",
				target, source),
			say_fmt("without quotes: %s", plain));
	fstab_take(t, t->nr - 1);
}

static void fstab_unseen(struct maps *said, size_t file, size_t off, size_t len)
{
	const char *text = said->files[file].text, *name;
	size_t i, n;
	char *msg;
	u32 code;

	for (i = off; i < off + len; i++) {
		if (text[i] == '\r' ? i + 1 == off + len :
				      !ibnbd_unseen(text + i, off + len - i, &code, &name))
			continue;
		msg = maps_odd(text + i, off + len - i, &n);
		maps_warn(said, (struct maps_at){ file, i, n }, msg,
			  say_dup("blanks and tabs separate words; this is read as a part of one"));
		return;
	}
}

/*
 * Add one more file to @said and warn of what is odd about its lines. The host's own programs read
 * the file too: as lines of text. Returns its lines, of which those that have a NUL are blank; NULL
 * = there are none. Allocated.
 */
static char *fstab_lines(struct maps *said, const char *name, size_t *file, size_t *len)
{
	char *path __free(free) = sysfs_root("%s", name), *text = NULL, *line, *end, *nl;
	const struct maps_file *m;
	struct file_text f __free(file_free) = file_read(path, FILE_HOSTS, false);

	*file = said->nr_files;
	*len = 0;
	if (f.state == FILE_ABSENT)
		return NULL;
	maps_add_file(said, path, f.text ? f.text : "", f.len);
	maps_refuse_as(said, *file, &f);
	m = &said->files[*file];
	*len = m->len - m->begin;
	if (*len)
		text = memcpy(say_alloc(*len + 1), m->text + m->begin, *len);
	end = text + *len;
	for (line = text; line < end; line = nl + 1) {
		size_t off = m->begin + (size_t)(line - text);

		nl = memchr(line, '\n', (size_t)(end - line));
		nl = nl ? nl : end;
		if (maps_nul(said, *file, off, (size_t)(nl - line)))
			memset(line, ' ', (size_t)(nl - line));
		else if (*line != '#')
			fstab_unseen(said, *file, off, (size_t)(nl - line));
	}
	return text;
}

static void fstab_mounts(struct fstab *t)
{
	size_t file, len;
	char *lines __free(free) = fstab_lines(t->said, "/etc/fstab", &file, &len);
	FILE *text __free(say_fclose) = lines ? fmemopen(lines, len, "r") : NULL;
	struct libmnt_table *table = mnt_new_table();
	struct libmnt_iter *iter = mnt_new_iter(MNT_ITER_FORWARD);
	struct libmnt_fs *fs;

	if (table && text)
		mnt_table_parse_stream(table, text, t->said->files[file].path);
	while (table && text && iter && !mnt_table_next_fs(table, iter, &fs)) {
		/* (of a tag, too, as it stands in the file) */
		const char *source = mnt_fs_get_source(fs), *target = mnt_fs_get_target(fs);

		if (source)
			fstab_line(t, file, source, target ? target : "none",
				   mnt_fs_get_options(fs), NULL);
	}
	mnt_free_iter(iter);
	mnt_unref_table(table);
}

static void fstab_crypt(struct fstab *t)
{
	size_t file, len;
	char *lines __free(free) = fstab_lines(t->said, "/etc/crypttab", &file, &len), *line,
	     *rest = lines;

	while ((line = strsep(&rest, "\n"))) {
		char *save = NULL, *name, *source, *options, *key;

		name = strtok_r(line, " \t\r", &save);
		source = name ? strtok_r(NULL, " \t\r", &save) : NULL;
		if (source && *name != '#') {
			key = strtok_r(NULL, " \t\r", &save);
			options = strtok_r(NULL, " \t\r", &save);
			fstab_line(t, file, source, name, options, key);
		}
	}
}

static void fstab_free_use(struct fstab_use *u)
{
	free(u->file);
	free(u->source);
	free(u->target);
	free(u->via);
	free(u->options);
	free(u->key);
}

struct fstab_use *fstab_uses(const struct maps *m, struct maps *said)
{
	struct fstab t = { .m = m, .said = said, .uses = say_alloc(sizeof(*t.uses)) };

	fstab_mounts(&t);
	fstab_crypt(&t);
	fstab_follow(&t);
	while (t.nr > t.nr_ours)
		fstab_free_use(&t.uses[--t.nr]);
	t.uses[t.nr] = (struct fstab_use){ 0 };
	return t.uses;
}

void fstab_free(struct fstab_use *uses)
{
	struct fstab_use *u;

	for (u = uses; u->file; u++)
		fstab_free_use(u);
	free(uses);
}

void fstab_check(struct maps *m)
{
	struct fstab_use *uses = fstab_uses(m, m), *u;

	for (u = uses; u->file; u++) {
		struct maps_at at = { .off = SIZE_MAX };

		if (u->netdev)
			continue;
		while (strcmp(m->files[at.file].path, u->file))
			at.file++;
		maps_warn(
			m, at,
			say_fmt("%s (%s)%s%s%s has no _netdev: the boot would wait for a disk that needs the network first",
				u->target, u->source, u->via ? " needs " : "",
				u->via ? u->via : "", u->via ? " and" : ""),
			say_dup("add _netdev to its options"));
	}
	fstab_free(uses);
	maps_sort(m);
}
