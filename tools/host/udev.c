// SPDX-License-Identifier: GPL-2.0-only
/*
 * udev's helper for 60-ibnbd.rules. None of its calls waits for a disk: udev kills a helper that
 * takes too long, drops its record of the disk, and forgets which links lead there.
 *
 * `ibnbd-udev --probe KERNEL-NAME` has blkid read a disk or partition, for a limited time, and
 * prints what it finds. It fails if the disk does not answer in time.
 *
 * `ibnbd-udev --forget KERNEL-NAME` removes the links that lead to this node, and what udev notes
 * of them: they are those of a disk that had the name and the number before, or of this one, and
 * then udev makes them again at the end of the event.
 *
 * `ibnbd-udev KERNEL-NAME` does that, too, when udev has no record of the device. Then it prints
 * properties of a disk. It reads sysfs and maps.conf, and always succeeds: a disk without the
 * properties is better than no disk.
 *
 *	IBNBD_NAME=		below /dev/ibnbd/by-name: the name that the driver shows,
 *				else the name in maps.conf for this device of this
 *				session, unless the driver shows that name for a disk
 *	IBNBD_SESSION= IBNBD_DEVICE_LINK=	below /dev/ibnbd/by-session
 *	IBNBD_PATH=		below /dev/disk/by-path
 *	IBNBD_ID=		hash of the identity, for /dev/disk/by-id
 *	IBNBD_LINK= IBNBD_SCHEDULER= IBNBD_READAHEAD=	as maps.conf says
 */
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tools/host/links.h"
#include "tools/conf/maps_conf.h"
#include "tools/out/say.h"
#include "tools/host/sysfs.h"

#define UDEV_TIME	180	/* seconds that udev gives to an event, unless it is told otherwise */
#define UDEV_FIRST	5	/* at most for the first probe: links wait for it */
#define UDEV_LATER	20	/* and for the one after it */

/* ---- links without an owner ---- */

static const char *udev_kname;

/* Remove the link if it leads to our node. */
static void udev_unlink(const char *link)
{
	char *to __free(free) = sysfs_link(link), *dir __free(free) = NULL;

	if (to && !strcmp(to, udev_kname) && !unlink(link)) {
		dir = say_fmt("%.*s", (int)(strrchr(link, '/') - link), link);
		rmdir(dir);	/* if it is empty now, as udev does */
	}
}

static int udev_visit(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	if (type == FTW_SL)
		udev_unlink(path);
	return 0;
}

/* udev writes '/' as \x2f, and a backslash as \x5c, in the directory of a link. */
static void udev_unlink_noted(const char *name)
{
	char *link __free(free) = sysfs_root("/dev/%s", name), *p;

	for (p = link + strlen(sysfs_prefix()); (p = strchr(p, '\\')); p++)
		if (!strncmp(p, "\\x2f", 4) || !strncmp(p, "\\x5c", 4)) {
			*p = p[2] == '2' ? '/' : '\\';
			memmove(p + 1, p + 4, strlen(p + 4) + 1);
		}
	udev_unlink(link);
}

/* @id: the device as udev's files call it */
static void udev_forget(const char *id)
{
	static const char *const trees[] = { "/dev/ibnbd", "/dev/disk" };
	char *links __free(free) = sysfs_root("/run/udev/links"),
	     **names __free(sysfs_list_free) = sysfs_list_all(links);

	for (size_t i = 0; names[i]; i++) {
		char *dir __free(free) = say_fmt("%s/%s", links, names[i]),
		     *noted __free(free) = say_fmt("%s/%s", dir, id);

		if (!unlink(noted)) {
			rmdir(dir);	/* (newer udevs keep a lock in there) */
			udev_unlink_noted(names[i]);
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(trees); i++) {
		char *tree __free(free) = sysfs_root("%s", trees[i]);

		nftw(tree, udev_visit, 16, FTW_PHYS);
	}
}

static bool udev_recorded(const char *id)
{
	char *record __free(free) = sysfs_root("/run/udev/data/%s", id);

	return sysfs_exists(record);
}

/* ---- the probe ---- */

/* The shorter of @seconds and the time of udev that the file has, which may have NULs in it. */
static int64_t udev_shorter(const char *path, int64_t seconds)
{
	static const char key[] = "event_timeout";
	char text[8192], *full __free(free) = sysfs_root("%s", path), *at;
	int fd __free(say_close) = open(full, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1), i;
	int64_t is;

	for (i = 0; i < n; i++)
		if (!text[i] || text[i] == '-')
			text[i] = text[i] ? '_' : ' ';
	text[n > 0 ? n : 0] = 0;
	for (at = text; (at = strstr(at, key));) {
		char *word __free(free) = NULL;

		at += sizeof(key);	/* and = or a blank */
		if (at > text + n)
			break;
		at += strspn(at, "\"'");
		word = say_fmt("%.*s", (int)strcspn(at, " \t\n\"'#"), at);
		if (maps_span(word, &is) && is > 0 && is < seconds)
			seconds = is;
	}
	return seconds;
}

/* For how many seconds udev waits for us: our parent is its worker. */
static int64_t udev_patience(void)
{
	int64_t seconds = udev_shorter("/proc/cmdline", UDEV_TIME);
	int pid = getppid(), parent;

	seconds = udev_shorter("/usr/lib/udev/udev.conf", seconds);
	seconds = udev_shorter("/etc/udev/udev.conf", seconds);
	seconds = udev_shorter("/run/udev/udev.conf", seconds);
	for (; pid > 1; pid = parent) {
		char *path __free(free) = say_fmt("/proc/%d/cmdline", pid),
		     *stat __free(free) = say_fmt("/proc/%d", pid),
		     *text __free(free) = sysfs_attr(stat, "stat"),
		     *end = text ? strrchr(text, ')') : NULL;

		seconds = udev_shorter(path, seconds);
		if (!end || sscanf(end, ") %*c %d", &parent) != 1)
			parent = 0;
	}
	return seconds;
}

/*
 * blkid's exit status is 0, 2: it has found nothing, or 8: contradictions. One that has no answer
 * in time is neither waited for nor killed: udev's worker has the disk open, too, and the last one
 * to close it waits for the read. So that is blkid, which ends with its read.
 */
static int udev_probe(const char *kname)
{
	int64_t patience = udev_patience() / 3, most = getenv("IBNBD_LATE") ? UDEV_LATER : UDEV_FIRST,
		end = sysfs_now() + 1000000 * (patience < most ? patience ? patience : 1 : most),
		left;
	char *node __free(free) = sysfs_root("/dev/%s", kname), text[16384];
	const char *const argv[] = { "blkid", "-p", "-o", "udev", node, NULL };
	int out, status = 0;
	size_t len = 0;
	ssize_t n = 1;
	pid_t pid, got = 0;

	/* (udev waits until its ends of our output are closed) */
	pid = sysfs_spawn(argv, &out, false);
	while (pid > 0 && (left = end - sysfs_now()) > 0 && !got) {
		struct pollfd ready = { .fd = out, .events = POLLIN };

		if (n <= 0) {
			got = waitpid(pid, &status, WNOHANG);
			if (!got)
				poll(NULL, 0, 1);
		} else if (poll(&ready, 1, (int)(left / 1000)) == 1) {
			n = read(out, text + len, sizeof(text) - len);
			len += n > 0 ? (size_t)n : 0;
		}
	}
	if (pid < 0 || got != pid || !WIFEXITED(status) ||
	    (WEXITSTATUS(status) && WEXITSTATUS(status) != 2 && WEXITSTATUS(status) != 8))
		return 1;
	return fwrite(text, 1, len, stdout) != len;
}

/* ---- names ---- */

static void udev_print(const char *key, const char *value)
{
	if (value && *value)
		printf("%s=%s\n", key, value);
}

/* Both parts of the link in by-session, or none. */
static void udev_print_session(const char *session, const char *device)
{
	char *s __free(free) = links_session(session), *d __free(free) = links_device(device),
	     *path __free(free) = links_by_path(session, device);

	if (s && d) {
		udev_print("IBNBD_SESSION", s);
		udev_print("IBNBD_DEVICE_LINK", d);
	}
	udev_print("IBNBD_PATH", path);
}

/*
 * Does a disk have @name from the driver? With one link for two disks, a mount by the link could
 * get either of them.
 */
static bool udev_taken(const char *name)
{
	char *block __free(free) = sysfs_path("block"),
	     **names __free(sysfs_list_free) = sysfs_list(block, NULL);
	bool taken = false;

	for (size_t i = 0; names[i] && !taken; i++) {
		char *own __free(free) = say_fmt("%s/%s/ibnbd", block, names[i]),
		     *has __free(free) = sysfs_attr(own, "name");

		taken = has && !strcmp(has, name);
	}
	return taken;
}

static void udev_conf(const char *session, const char *device, bool named)
{
	struct maps *m __free(maps_free) = maps_load(NULL);
	struct maps_entry *e = maps_find_device(m, session, device);
	char *link __free(free) = e ? links_by_name(e->name) : NULL;

	if (e && !named && !udev_taken(e->name))
		udev_print("IBNBD_NAME", link);
	if (e) {
		udev_print("IBNBD_LINK", e->text[MAPS_link]);
		udev_print("IBNBD_SCHEDULER", e->text[MAPS_scheduler]);
		udev_print("IBNBD_READAHEAD", e->text[MAPS_readahead]);
	}
}

static void udev_names(const char *kname)
{
	char *own __free(free) = sysfs_path("block/%s/ibnbd", kname),
	     *session __free(free) = sysfs_attr(own, "session"),
	     *device __free(free) = sysfs_attr(own, "mapping_path"),
	     *name __free(free) = sysfs_attr(own, "name"),
	     *identity __free(free) = sysfs_attr(own, "identity"), *hash,
	     *link __free(free) = name ? links_by_name(name) : NULL;

	udev_print("IBNBD_NAME", link);
	if (session && device) {
		udev_print_session(session, device);
		udev_conf(session, device, name);
	}
	/* "kind hash" */
	hash = identity ? strchr(identity, ' ') : NULL;
	if (hash && strspn(hash + 1, "0123456789abcdefABCDEF") == strlen(hash + 1))
		udev_print("IBNBD_ID", hash + 1);
}

int main(int argc, char **argv)
{
	bool probe = argc > 2 && !strcmp(argv[1], "--probe"),
	     forget = argc > 2 && !strcmp(argv[1], "--forget");
	const char *major = getenv("MAJOR"), *minor = getenv("MINOR");
	/* the device of the event, as udev's files call it; NULL: udev has not called us */
	char *id __free(free) = major && minor ? say_fmt("b%s:%s", major, minor) : NULL;

	udev_kname = argc < 2 ? "/" : argv[probe || forget ? 2 : 1];
	if (!strchr(udev_kname, '/')) {
		if (probe)
			return udev_probe(udev_kname);
		if (id && (forget || !udev_recorded(id)))
			udev_forget(id);
		if (!forget)
			udev_names(udev_kname);
	}
	return 0;
}
