// SPDX-License-Identifier: GPL-2.0-only
/*
 * Maps and unmaps one device. map, unmap and everything that works through maps.conf come here. A
 * disk that was mapped is found by its link in ctl/devices, never by guessing a number. If the
 * driver refuses, the message has the driver's own words (ctl/last_error). Nothing here changes a
 * file.
 */
#include <blkid.h>
#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tools/host/host.h"
#include "tools/host/mapping.h"
#include "tools/out/say.h"

#define MAPPING_RETRIES	20	/* tenths of a second */
#define MAPPING_UNMAP	"ibnbd/unmap_device"

/* ---- driver ---- */

int mapping_modprobe(const char *const argv[])
{
	FILE *f = sysfs_dry_run_stderr ? stderr : stdout;

	for (int i = 0; sysfs_dry_run && argv[i]; i++)
		fprintf(f, "%s%s", argv[i], argv[i + 1] ? " " : "\n");
	return sysfs_dry_run ? 0 : sysfs_wait(sysfs_spawn(argv, NULL, false));
}

/*
 * What modinfo says of the module that modprobe would load now. Allocated; NULL: it says nothing.
 * False: there is no such module.
 */
static bool mapping_modinfo(const char *module, char **version, char **source)
{
	char *program __free(free) = sysfs_root("/sbin/modinfo"), *line __free(free) = NULL;
	size_t size = 0;
	int out;
	pid_t pid = sysfs_spawn((const char *const[]){ program, module, NULL }, &out, false);
	FILE *f __free(say_fclose) = fdopen(out, "r");

	while (f && getline(&line, &size, f) > 0) {
		if (!*version)
			sscanf(line, "version: %m[^\n]", version);
		if (!*source)
			sscanf(line, "srcversion: %m[^\n]", source);
	}
	return !sysfs_wait(pid);
}

char *mapping_upgraded(const char *module)
{
	char *dir __free(free) = sysfs_path("module/%s", module),
	     *runs __free(free) = sysfs_attr(dir, "version"),
	     *source __free(free) = sysfs_attr(dir, "srcversion"),
	     *installed __free(free) = NULL, *installed_source __free(free) = NULL;

	if (!runs || !mapping_modinfo(module, &installed, &installed_source))
		return NULL;
	if (installed && strcmp(runs, installed))
		return say_fmt("driver %s %s runs, %s is installed", module, runs, installed);
	return source && installed_source && strcmp(source, installed_source) ?
		       say_fmt("driver %s %s runs, another build of it is installed", module, runs) :
		       NULL;
}

int mapping_driver(bool load)
{
	char *ctl __free(free) = sysfs_path(STATE_CLIENT);
	bool there = sysfs_exists(ctl);

	if (!there && load && !sysfs_redirected()) {
		say_more("modprobe ibnbd-client");
		MODPROBE("-q", "ibnbd-client");
		there = sysfs_exists(ctl);
	}
	if (there || sysfs_dry_run)
		return SAY_DONE;
	say_error(SAY_DRIVER, "the driver ibnbd-client is not loaded (there is no %s)", ctl);
	return say_hint(geteuid() ? "sudo modprobe ibnbd-client" :
				    "modprobe ibnbd-client; if that fails: ibnbd doctor");
}

char *mapping_last_error(void)
{
	char *ctl __free(free) = sysfs_path(STATE_CLIENT);

	return sysfs_attr(ctl, "last_error");
}

/*
 * Does the driver take orders of this process? They need CAP_SYS_ADMIN of the first user namespace,
 * which root of a container may lack.
 */
static bool mapping_capable(void)
{
	char *proc __free(free) = sysfs_root("/proc/self"),
	     *status __free(free) = sysfs_attr(proc, "status"),
	     *ids __free(free) = sysfs_attr(proc, "uid_map"),
	     *caps = status ? strstr(status, "CapEff:") : NULL;
	unsigned long long has;
	unsigned int first, to, nr;
	bool capable = true;

	if (caps && sscanf(caps, "CapEff: %llx", &has) == 1)
		capable = has >> CAP_SYS_ADMIN & 1;
	if (ids && sscanf(ids, "%u %u %u", &first, &to, &nr) == 3)
		capable &= !to && nr == UINT32_MAX;
	return capable;
}

/*
 * Why a write to @name in @dir cannot have reached the driver, if it failed with @err; NULL: it
 * can. What the driver said last is about an earlier write then.
 */
struct mapping_bar {
	const char *why, *hint;
};

static const struct mapping_bar *mapping_barred(const char *dir, const char *name, int err)
{
	char *file __free(free) = say_fmt("%s/%s", dir, name);
	static const struct mapping_bar
		read_only = { "/sys is mounted read-only here",
			      "in a container: run it on the host, or make the container privileged" },
		user = { "only root may do that", "the same with sudo" },
		guarded = { "SELinux, AppArmor or a container keeps this process from writing to /sys",
			    "run it on the host, or make the container privileged" },
		lacks = { "the driver wants CAP_SYS_ADMIN of the host, which this process lacks",
			  "in a container: run it on the host, or make the container privileged" },
		gone = { "the driver does not have it any more", "ibnbd list" };

	if (err == EPERM)
		return mapping_capable() ? NULL : &lacks;
	if (sysfs_barred(file) != err)
		return NULL;
	if (err == EACCES)
		return geteuid() ? &user : &guarded;
	return err == EROFS ? &read_only : err == ENOENT || err == ENODEV ? &gone : NULL;
}

char *mapping_reason(const char *dir, const char *name, int err)
{
	const struct mapping_bar *bar = mapping_barred(dir, name, err);
	char *said = bar ? say_dup(bar->why) : mapping_last_error();

	return said ? said : say_dup(strerror(err));
}

int mapping_refused(const char *dir, const char *name, int err, const char *why, const char *hint,
		    const char *fmt, ...)
{
	const struct mapping_bar *bar = mapping_barred(dir, name, err);
	char *what __free(free) = NULL, *said __free(free) = mapping_reason(dir, name, err);
	va_list ap;

	va_start(ap, fmt);
	what = say_vfmt(fmt, ap);
	va_end(ap);
	say_error(say_exit_of(err), "%s: %s", what, bar || !why ? said : why);
	if (bar || hint)
		say_hint("%s", bar ? bar->hint : hint);
	return say_exit_of(err);
}

const char mapping_hint_name[] = "another session name here, or unmap on the host that has it";

const char *mapping_hint(const char *dir, const char *name, int err)
{
	const struct mapping_bar *bar = dir ? mapping_barred(dir, name, err) : NULL;

	if (bar)
		return bar->hint;
	switch (err) {
	case EEXIST:
		return "ibnbd list";
	case ENXIO:
		return "give the server's address: ibnbd map DEVICE SESSION ADDRESS";
	case ENOENT:
		return "on the server: ibnbd server exports; the name counts from its search path on";
	case EPERM:
		return "another client writes to it (on the server: ibnbd server list): map it with ro, or with migration";
	case EBUSY:
		return "does the server use the disk itself? ibnbd doctor there says for what; map it with ro, or end that";
	case ENOMEDIUM:
		return "put a medium in, or give the device its size, on the server";
	case EACCES:
		return "the server does not let this host in, or exports nothing: see its server.conf, and ibnbd server check there";
	case EROFS:
		return "it is read-only on the server: map it with ro";
	case ETIMEDOUT:
	case EHOSTUNREACH:
	case ENETUNREACH:
	case ECONNREFUSED:
	case ECONNRESET:
	case EADDRNOTAVAIL:
		return "is the server up, does it listen, is the RDMA link up? ibnbd doctor looks here; ibnbd server list there";
	case EPROTO:
		return "both sides may be of versions that do not fit: ibnbd dump on both";
	default:
		return NULL;
	}
}

/* ---- map ---- */

struct mapping_host {
	struct ibtrs_addr_pair *pair;
	size_t nr;
};

/* The addresses of each host, and in @turns how many the one with the most has. */
static int mapping_hosts(const struct ibnbd_map *map, char *const *host, size_t nr_hosts,
			 struct mapping_host *of, size_t *turns, char **why)
{
	*turns = 1;
	for (size_t i = 0; i < nr_hosts; i++) {
		if (host_resolve(host[i], &of[i].pair, &of[i].nr, why))
			return SAY_UNREACHABLE;
		if (map->nr_paths + i == IBNBD_MAP_PATHS) {
			*why = say_fmt("more than %d paths", IBNBD_MAP_PATHS);
			return SAY_USAGE;
		}
		if (of[i].nr > *turns)
			*turns = of[i].nr;
	}
	return SAY_DONE;
}

static void mapping_take(struct ibnbd_map *map, const struct mapping_host *of, size_t nr_hosts,
			 size_t turn)
{
	for (size_t i = 0; i < nr_hosts; i++)
		map->path[map->nr_paths++] = of[i].pair[turn % of[i].nr];
	map->given |= (uint32_t)(nr_hosts > 0) << IBNBD_OPT_path;
}

static void mapping_hosts_free(struct mapping_host *of)
{
	for (size_t i = 0; i < IBNBD_MAP_PATHS; i++)
		free(of[i].pair);
}

int mapping_resolve(struct ibnbd_map *map, char *const *host, size_t nr_hosts, char **why)
{
	struct mapping_host of[IBNBD_MAP_PATHS] = { 0 };
	size_t turns;
	int rc = mapping_hosts(map, host, nr_hosts, of, &turns, why);

	if (!rc)
		mapping_take(map, of, nr_hosts, 0);
	mapping_hosts_free(of);
	return rc;
}

/* The driver does not know that `path=A,B` may have been meant as two paths. */
static char *mapping_why(const struct ibnbd_map *map, const char *ctl, int err)
{
	char *said = mapping_reason(ctl, "map_device", err), *source __free(free) = NULL;
	size_t i;

	for (i = 0; i < map->nr_paths && !source && !mapping_barred(ctl, "map_device", err); i++)
		source = host_wrong_source(&map->path[i]);
	if (source)
		say_append(&said, "; %s", source);
	return said;
}

static int mapping_ask(const struct ibnbd_map *map, char **kname, int *err, char **why)
{
	char line[IBNBD_MAP_LINE_MAX + 1], *ctl __free(free) = sysfs_path(STATE_CLIENT),
	     *session __free(free) = sysfs_path("class/ibtrs-client/%s", map->sessname);
	int64_t begin = sysfs_now();

	if (!map->nr_paths && !sysfs_exists(session) && !sysfs_dry_run) {
		*err = ENXIO;
		*why = say_fmt("there is no session %s, and no path to open it with",
			       map->sessname);
		return SAY_USAGE;
	}
	mapopt_format(map, line, sizeof(line));
	*err = sysfs_write(ctl, "map_device", line);
	if (*err) {
		*why = mapping_why(map, ctl, *err);
		return say_exit_of(*err);
	}
	if (sysfs_dry_run)
		return SAY_DONE;
	*kname = maps_kname(map->sessname, map->device_path);
	if (!*kname) {
		*why = say_dup("the driver took it, but the device is not there any more");
		return SAY_FAILED;
	}
	settle_made(*kname, begin);
	return SAY_DONE;
}

/* Warn if the session just opened with these paths has only one port. */
static void mapping_shared(const struct ibnbd_map *map)
{
	char *hint __free(free) = NULL,
	     *why __free(free) = host_shared(map->path, map->nr_paths, &hint);

	if (why) {
		say_warn("session %s: %s", map->sessname, why);
		say_hint("%s", hint);
	}
}

int mapping_map(const struct ibnbd_map *asked, char *const *host, size_t nr_hosts, char **kname,
		int *err, char **why)
{
	struct mapping_host of[IBNBD_MAP_PATHS] = { 0 };
	struct ibnbd_map map = *asked;
	size_t turns, turn;
	int rc;

	*kname = NULL;
	*why = NULL;
	*err = 0;
	rc = mapping_hosts(&map, host, nr_hosts, of, &turns, why);
	for (turn = 0; turn < turns && (!turn ? !rc : rc == SAY_UNREACHABLE); turn++) {
		if (turn)
			say_more("%s; the next address is tried", *why);
		free(*why);
		*why = NULL;
		map = *asked;
		mapping_take(&map, of, nr_hosts, turn);
		rc = mapping_ask(&map, kname, err, why);
	}
	if (!rc)
		mapping_shared(&map);
	mapping_hosts_free(of);
	return rc;
}

/* ---- unmap ---- */

#define MAPPING_STEP	10000	/* µs */

static bool mapping_is_going(const struct state_dev *d)
{
	char *state __free(free) = sysfs_attr(d->dir, "ibnbd/state");

	return !state || !strcmp(state, "unmapped");
}

/*
 * The driver's write returns when the disk is gone. Killing the process that writes does not stop
 * the removal. So a child writes. The child is killed after @wait seconds, but not before the
 * removal has begun. Return: 0, an errno, or ETIMEDOUT: the driver has accepted the removal, and it
 * is not over yet.
 */
static int mapping_order(const struct state_dev *d, const char *word, int wait)
{
	pid_t pid = sysfs_dry_run ? -1 : fork(), got;
	long tries = wait * 100L;
	int status = 0;

	if (pid < 0)
		return sysfs_write(d->dir, MAPPING_UNMAP, word);
	if (!pid)
		_exit(sysfs_write(d->dir, MAPPING_UNMAP, word));
	while (!(got = waitpid(pid, &status, WNOHANG)) && (tries-- > 0 || !mapping_is_going(d)))
		usleep(MAPPING_STEP);
	if (!got) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		if (!WIFEXITED(status))
			return ETIMEDOUT;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

/* With @wait = 0 nothing is waited for: no error. */
static int mapping_still_there(const struct state_dev *d, int wait)
{
	if (!wait)
		return SAY_DONE;
	say_error(SAY_UNREACHABLE, "%s: still there after %d seconds", d->path, wait);
	return say_hint("it is open, or its I/O does not end: ibnbd show %s", d->kname);
}

/* Another process unmaps the device: wait until it is gone. */
static int mapping_wait_gone(const struct state_dev *d, int wait)
{
	char *own __free(free) = say_fmt("%s/ibnbd", d->dir);
	long tries = wait * 100L;
	bool there;

	while ((there = sysfs_exists(own)) && tries-- > 0)
		usleep(MAPPING_STEP);
	return there ? mapping_still_there(d, wait) : SAY_DONE;
}

void mapping_tell_users(const struct state_dev *d)
{
	char **users __free(sysfs_list_free) = mapping_users(d);

	for (size_t i = 0; users[i]; i++)
		say_hint("%s", users[i]);
	if (!users[0])
		say_hint("fuser -v %s", d->path);
}

static int mapping_take_away(const struct state_dev *d, bool force, int wait)
{
	int err, tries = MAPPING_RETRIES;

	/*
	 * udev opens each new or just closed disk for a moment, so try again when busy; but not if
	 * something is built upon the disk, which stays.
	 */
	while ((err = mapping_order(d, force ? "force" : "normal", wait)) == EBUSY && tries-- > 0 &&
	       !mapping_built_upon(d))
		usleep(100000);
	if (!err)
		return SAY_DONE;
	if (err == ETIMEDOUT)
		return mapping_still_there(d, wait);
	if (err == EALREADY || err == ENOENT || err == ENODEV)
		return mapping_wait_gone(d, wait);
	if (err == EBUSY) {
		say_error(SAY_BUSY, "cannot unmap %s%s%s: it is in use", d->path,
			  d->name ? " " : "", d->name ? d->name : "");
		mapping_tell_users(d);
		return SAY_BUSY;
	}
	return mapping_refused(d->dir, MAPPING_UNMAP, err, NULL, NULL, "cannot unmap %s", d->path);
}

int mapping_unmap(const struct state_dev *d, bool force, int wait)
{
	struct settle *udev = settle_look(d->kname);
	int rc = mapping_take_away(d, force, wait);

	settle_gone(udev, !rc && wait);
	return rc;
}

char *mapping_wrong_uuid(const struct state_dev *d, const char *want)
{
	char *path __free(free) = sysfs_root("%s", d->path);
	blkid_probe probe = blkid_new_probe_from_filename(path);
	const char *found = NULL, *table = NULL;
	char *why = NULL;

	if (!probe)
		return say_fmt("it cannot be read");
	blkid_probe_enable_partitions(probe, 1);
	if (blkid_do_safeprobe(probe) < 0) {
		why = say_fmt("it cannot be read, or holds signs of several file systems");
	} else {
		blkid_probe_lookup_value(probe, "UUID", &found, NULL);
		blkid_probe_lookup_value(probe, "PTUUID", &table, NULL);
		if (!(found && !strcasecmp(found, want)) && !(table && !strcasecmp(table, want)))
			why = found || table ? say_fmt("its UUID is %s, maps.conf says %s",
						       found ? found : table, want) :
					       say_fmt("it has no UUID, maps.conf says %s", want);
	}
	blkid_free_probe(probe);
	return why;
}
