// SPDX-License-Identifier: GPL-2.0-only
/*
 * What clients have open, for `ibnbd server list` and `ibnbd doctor`: below the directory that
 * systemd makes for the service, RUNTIME_DIRECTORY, in the form of ctl/devices of the kernel's
 * server (docs/sysfs.md), as far as those commands read it. Each change replaces the whole tree at
 * once: `devices` is a link to the newest one.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "ibnbd/logic/text.h"
#include "ibnbd/user/serverd/serverd.h"

#define STATUS_NAME	200	/* bytes of a name, before #2; of a longer one the end is kept */

/* For each user to read, whatever the umask of the service. */
static void status_put(int dir, const char *name, const char *fmt, ...)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	va_list ap;

	if (fd < 0)
		return;
	va_start(ap, fmt);
	vdprintf(fd, fmt, ap);
	va_end(ap);
	fchmod(fd, 0644);
	close(fd);
}

/* A new directory; if there is one of that name, NAME#2 and so on. Return: it, or -1. */
static int status_dir(int at, const char *name)
{
	char try[STATUS_NAME + 16];
	size_t len = strlen(name);
	unsigned int i;
	int err = -1;

	if (len > STATUS_NAME)
		name += len - STATUS_NAME;
	snprintf(try, sizeof(try), "%s", name);
	for (i = 2; i < 1000; i++) {
		err = mkdirat(at, try, 0755);
		if (!err || errno != EEXIST)
			break;
		snprintf(try, sizeof(try), "%s#%u", name, i);
	}
	if (err)
		return -1;
	fchmodat(at, try, 0755, 0);
	return openat(at, try, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void status_remove(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!dir) {
		unlinkat(at, name, 0);
		return;
	}
	while ((e = readdir(dir)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			status_remove(dirfd(dir), e->d_name);
	closedir(dir);
	unlinkat(at, name, AT_REMOVEDIR);
}

/* ---- what is there ------------------------------------------------------------- */

static void status_name(const struct serverd_export *e, const struct serverd_open *o, char *name,
			size_t size)
{
	char at[64], to[IBNBD_EXPORT_PATH_MAX];
	const char *text = o->name;
	ssize_t n = -1;

	if (e->kind == SERVERD_DISK) {
		snprintf(at, sizeof(at), "/sys/dev/block/%u:%u", e->dev >> 20, e->dev & 0xfffff);
		n = readlink(at, to, sizeof(to) - 1);
	} else if (e->kind == SERVERD_FILE) {
		snprintf(at, sizeof(at), "/proc/self/fd/%d", o->b.fd);
		n = readlink(at, to, sizeof(to) - 1);
	}
	if (n > 0) {
		to[n] = 0;
		text = e->kind == SERVERD_DISK ? strrchr(to, '/') + 1 : to;
	}
	ibnbd_linkname(text, '#', name, size);
}

static void status_identity(int dir, const struct serverd_export *e, const struct serverd_open *o)
{
	char hex[2 * IBNBD_ID_LEN + 1];
	unsigned int i;

	for (i = 0; i < IBNBD_ID_LEN; i++)
		snprintf(hex + 2 * i, 3, "%02x", e->identity.id[i]);
	if (o->b.id_unknown)
		status_put(dir, "identity", "none (cannot be read: %d)\n", o->b.id_unknown);
	else if (e->identity.kind == IBNBD_ID_NONE)
		status_put(dir, "identity", "none\n");
	else
		status_put(dir, "identity", "%s:%s\n", ibnbd_identity_word(e->identity.kind), hex);
}

static void status_open(int sessions, const struct serverd_open *o)
{
	int dir = status_dir(sessions, o->session->name);

	if (dir < 0)
		return;
	status_put(dir, "mapping_path", "%s\n", o->name);
	status_put(dir, "access_mode", "%s\n", ibnbd_access_word(o->access));
	status_put(dir, "read_only", "%d\n", !ibnbd_access_writes(o->access));
	status_put(dir, "device_id", "%u\n", o->id);
	close(dir);
}

static void status_export(int devices, const struct serverd_export *e)
{
	const struct serverd_open *o = e->opens;
	char name[IBNBD_LINKNAME_MAX], link[IBNBD_LINKNAME_MAX + 32];
	int dir, sessions;

	if (!o)
		return;
	status_name(e, o, name, sizeof(name));
	dir = status_dir(devices, name);
	if (dir < 0)
		return;
	if (e->kind == SERVERD_DISK) {
		snprintf(link, sizeof(link), "/sys/class/block/%s", name);
		if (symlinkat(link, dir, "block_dev"))
			serverd_log("%s: cannot say which block device it is: %s", name,
				    strerror(errno));
	}
	status_put(dir, "size", "%llu\n", (unsigned long long)e->nsectors);
	status_put(dir, "claimed", "%d\n", e->claims > 0);
	status_identity(dir, e, o);
	sessions = status_dir(dir, "sessions");
	for (; o && sessions >= 0; o = o->of_export)
		if (o->state == SERVERD_OPEN_LIVE)
			status_open(sessions, o);
	if (sessions >= 0)
		close(sessions);
	close(dir);
}

/* All of it that may change, as a text. Allocated, or NULL. */
static char *status_text(const struct serverd *d)
{
	const struct serverd_export *e;
	const struct serverd_open *o;
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	for (e = d->exports; e; e = e->next) {
		fprintf(f, "%p %llu %u\n", (const void *)e, (unsigned long long)e->nsectors,
			e->claims);
		for (o = e->opens; o; o = o->of_export)
			fprintf(f, "%p %u %d\n", (const void *)o, o->id, o->state);
	}
	fclose(f);
	return text;
}

static void status_publish(struct serverd *d)
{
	char tree[32], old[32];
	const struct serverd_export *e;
	int dir;

	snprintf(old, sizeof(old), ".devices.%u", d->status.nr);
	snprintf(tree, sizeof(tree), ".devices.%u", ++d->status.nr);
	status_remove(d->status.dir, tree);
	dir = status_dir(d->status.dir, tree);
	if (dir < 0)
		return;
	for (e = d->exports; e; e = e->next)
		status_export(dir, e);
	close(dir);
	unlinkat(d->status.dir, ".devices", 0);
	if (symlinkat(tree, d->status.dir, ".devices") ||
	    renameat(d->status.dir, ".devices", d->status.dir, "devices"))
		serverd_log("cannot say what clients have open: %s", strerror(errno));
	status_remove(d->status.dir, old);
}

void serverd_status_start(struct serverd *d)
{
	const char *path = getenv("RUNTIME_DIRECTORY");

	d->status.dir = path && *path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (path && *path && d->status.dir < 0)
		serverd_log("cannot say in %s what clients have open: %s", path, strerror(errno));
}

void serverd_status_look(struct serverd *d)
{
	char *text;

	if (d->status.dir < 0)
		return;
	text = status_text(d);
	if (text && d->status.said && !strcmp(text, d->status.said)) {
		free(text);
		return;
	}
	free(d->status.said);
	d->status.said = text;
	status_publish(d);
}

void serverd_status_stop(struct serverd *d)
{
	char tree[32];

	if (d->status.dir < 0)
		return;
	snprintf(tree, sizeof(tree), ".devices.%u", d->status.nr);
	unlinkat(d->status.dir, "devices", 0);
	status_remove(d->status.dir, tree);
	close(d->status.dir);
	free(d->status.said);
}
