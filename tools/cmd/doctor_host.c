// SPDX-License-Identifier: GPL-2.0-only
/* doctor: are the modules built and loaded, does an RDMA device work, do the servers answer? */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <ibtrs/version.h>
#include "tools/cmd/doctor.h"
#include "tools/host/host.h"
#include "tools/host/mapping.h"

#define DOCTOR_CONNECT_MS	1000

/* ---- modules ---- */

static char *host_text(const char *name, const char *more)
{
	char *path __free(free) = sysfs_root("%s%s", name, more);

	return sysfs_text(path);
}

static char *host_release(void)
{
	char *text = host_text("/proc/sys/kernel/osrelease", "");
	struct utsname u;

	if (!text && !uname(&u))
		text = say_dup(u.release);
	return text ? text : say_dup("?");
}

static bool host_has(const char *release, const char *file)
{
	char *path __free(free) = sysfs_root("/lib/modules/%s%s", release, file);

	return sysfs_exists(path);
}

static bool host_id_is(const char *text, const char *word)
{
	static const char *const keys[] = { "\nID=", "\nID_LIKE=" };
	bool yes = false;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		const char *at = strstr(text, keys[i]);

		if (at)
			yes |= memmem(at + 1, strcspn(at + 1, "\n"), word, strlen(word)) != NULL;
	}
	return yes;
}

/* The flavour of a kernel is in its release, and in the name of the package. Allocated. */
static char *host_rpm_headers(const char *release)
{
	size_t plus = strcspn(release, "+");
	const char *flavour = release[plus] ? release + plus + 1 : "";

	if (strstr(release, "uek."))
		return say_fmt("dnf install kernel-uek%s-devel-%.*s", flavour, (int)plus, release);
	if (strstr(release, ".elrepo."))
		return say_fmt("dnf --enablerepo=elrepo-kernel install kernel-ml-devel-%s, or kernel-lt-devel-%s",
			       release, release);
	if (!*flavour && strstr(release, ".rt"))
		flavour = "rt";
	return say_fmt("dnf install kernel-%s%sdevel-%.*s", flavour, *flavour ? "-" : "", (int)plus,
		       release);
}

/* The command that installs the headers of this kernel on this distribution. Allocated. */
static char *host_install(const char *release)
{
	char *file __free(free) = host_text("/etc/os-release", ""),
	     *text __free(free) = say_fmt("\n%s", file ? file : "");
	const char *last = strrchr(release, '-');

	if (host_id_is(text, "debian") || host_id_is(text, "ubuntu"))
		return say_fmt("apt install %s-headers-%s",
			       last && !strcmp(last, "-pve") ? "proxmox" : "linux", release);
	if (host_id_is(text, "suse"))
		return say_fmt("zypper install kernel-%s-devel", last ? last + 1 : "default");
	if (host_id_is(text, "fedora") || host_id_is(text, "rhel"))
		return host_rpm_headers(release);
	return say_fmt("install the headers of kernel %s", release);
}

/* The newest kernel of this host, if that is newer than the running one. Allocated, or NULL. */
static char *host_newer(const char *release)
{
	char *dir __free(free) = sysfs_root("/lib/modules"),
	     **names __free(sysfs_list_free) = sysfs_list(dir, NULL), *newest = NULL;

	for (size_t i = 0; names[i]; i++) {
		if (strverscmp(names[i], newest ? newest : release) <= 0 ||
		    !host_has(names[i], "/modules.dep"))
			continue;
		free(newest);
		newest = say_dup(names[i]);
	}
	return newest;
}

/* DKMS cannot build: after an update the archive may not have the headers of what still runs. */
static void host_no_headers(struct doctor *d, const char *release)
{
	char *newer __free(free) = host_newer(release),
	     *install __free(free) = host_install(release);
	bool gone = newer && !host_has(release, "/modules.dep");

	doctor_find(d, "headers", DOCTOR_ERROR,
		    gone  ? say_fmt("reboot into the new one, %s", newer) :
		    newer ? say_fmt("%s; if that is not to be had any more, reboot into the new one, %s",
				    install, newer) :
			    say_dup(install),
		    gone ? "kernel %s runs, and an update has removed its files: there is nothing to build the modules with" :
			   "no headers of kernel %s, so DKMS cannot build the modules",
		    release);
}

static bool host_built(const char *release)
{
	static const char *const dirs[] = { "updates/dkms", "updates", "extra", "extra/ibnbd",
					    "updates/ibnbd/client", "weak-updates" };
	/* If the module is in another directory, the list of depmod has it. */
	char *path __free(free) = sysfs_root("/lib/modules/%s/modules.dep", release),
	     *text __free(free) = sysfs_text(path);
	bool yes = text && strstr(text, "ibnbd-client.ko");

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		char *dir __free(free) = sysfs_root("/lib/modules/%s/%s", release, dirs[i]),
		     **names __free(sysfs_list_free) = sysfs_list(dir, NULL);

		for (size_t j = 0; names[j]; j++)
			yes |= !strncmp(names[j], "ibnbd-client.ko", strlen("ibnbd-client.ko"));
	}
	return yes;
}

/* Of our source: an RPM appends its release. Allocated; NULL: the source is not installed. */
static char *host_dkms_version(void)
{
	static const char first[] = "ibnbd-" IBNBD_VERSION;
	char *dir __free(free) = sysfs_root("/usr/src"),
	     **names __free(sysfs_list_free) = sysfs_list(dir, NULL), *version = NULL;
	size_t i, len = sizeof(first) - 1;

	for (i = 0; names[i]; i++) {
		if (strncmp(names[i], first, len) || (names[i][len] && names[i][len] != '-'))
			continue;
		free(version);
		version = say_dup(names[i] + strlen("ibnbd-"));
	}
	return version;
}

/* The value of NAME="..." in a script. Allocated, or NULL. */
static char *host_value(const char *script, const char *name)
{
	char *word __free(free) = say_fmt("%s=\"", name), *at = strstr(script, word), *value = NULL;

	if (at)
		value = say_fmt("%.*s", (int)strcspn(at + strlen(word), "\""), at + strlen(word));
	return value;
}

/* The first of these words that the kernel was configured without. Allocated, or NULL. */
static char *host_config_lacks(const char *release, const char *words)
{
	char *dir __free(free) = say_fmt("/lib/modules/%s/build/.config", release),
	     *config __free(free) = host_text(dir, "");
	char *list __free(free) = say_dup(words), *word, *save = NULL, *lacks = NULL;

	if (!config)
		config = host_text("/boot/config-", release);
	for (word = config ? strtok_r(list, " ", &save) : NULL; word && !lacks;
	     word = strtok_r(NULL, " ", &save)) {
		char *yes __free(free) = say_fmt("\n%s=y", word),
		     *module __free(free) = say_fmt("\n%s=m", word);

		if (!strstr(config, yes) && !strstr(config, module))
			lacks = say_dup(word);
	}
	return lacks;
}

/* Does dkms.conf, where DKMS itself reads the limits, exclude this kernel? */
static bool host_left_out(struct doctor *d, const char *release, const char *conf)
{
	char *min __free(free) = host_value(conf, "BUILD_EXCLUSIVE_KERNEL_MIN"),
	     *max __free(free) = host_value(conf, "BUILD_EXCLUSIVE_KERNEL_MAX");
	char *config __free(free) = host_value(conf, "BUILD_EXCLUSIVE_CONFIG"),
	     *lacks __free(free) = config ? host_config_lacks(release, config) : NULL;
	char *version __free(free) = say_fmt("%.*s", (int)strspn(release, "0123456789."), release);
	char *untested __free(free) = sysfs_root("/etc/ibnbd/allow-untested-kernels");
	size_t before = d->nr;

	if (min && strverscmp(version, min) < 0)
		doctor_find(d, "kernel", DOCTOR_ERROR, say_dup("boot a newer kernel"),
			    "ibnbd is not built for kernel %s: it needs %s or newer", release, min);
	else if (max && strverscmp(version, max) > 0 && !sysfs_exists(untested))
		doctor_find(d, "kernel", DOCTOR_ERROR,
			    say_fmt("a newer ibnbd, or at your own risk: touch /etc/ibnbd/allow-untested-kernels; dkms autoinstall -k %s",
				    release),
			    "ibnbd is not built for kernel %s: it was tested with kernels up to %.*s",
			    release,
			    (int)strcspn(max, ".") + 1 +
				    (int)strspn(max + strcspn(max, ".") + 1, "0123456789"),
			    max);
	else if (lacks)
		doctor_find(d, "kernel", DOCTOR_ERROR, say_dup("boot a kernel that has it"),
			    "ibnbd is not built for kernel %s: that was configured without %s",
			    release, lacks);
	return d->nr != before;
}

static void host_not_built(struct doctor *d, const char *release)
{
	char *version __free(free) = host_dkms_version(),
	     *path __free(free) = say_fmt("/usr/src/ibnbd-%s/dkms.conf", version ? version : "?");
	char *conf __free(free) = host_text(path, "");

	if (conf && host_left_out(d, release, conf))
		;
	else if (!host_has(release, "/build"))
		host_no_headers(d, release);
	else if (!conf)
		doctor_find(d, "built", DOCTOR_ERROR, say_dup("install the package ibnbd-dkms"),
			    "the modules are not built for kernel %s, and DKMS does not have their source",
			    release);
	else
		doctor_find(d, "built", DOCTOR_ERROR,
			    say_fmt("dkms autoinstall -k %s; its log: /var/lib/dkms/ibnbd/%s/build/make.log",
				    release, version),
			    "the modules are not built for kernel %s", release);
}

/* The last line of the kernel's log about a module of ours that has @words in it. */
static char *host_kmsg(const char *words)
{
	char *core = mapping_kmsg_find("ibtrs", words);

	return core ? core : mapping_kmsg_find("ibnbd", words);
}

/* The symbol at the end of such a line begins with one of these. */
static bool host_symbol_is(const char *line, const char *a, const char *b)
{
	const char *symbol = strstr(line, "of symbol ");

	symbol = symbol ? symbol + strlen("of symbol ") : "";
	return !strncmp(symbol, a, strlen(a)) || !strncmp(symbol, b, strlen(b));
}

/* The command that builds the modules anew for this kernel. Allocated. */
static char *host_rebuild(const char *release)
{
	char *dkms __free(free) = host_dkms_version();
	const char *version = dkms ? dkms : IBNBD_VERSION;

	return say_fmt("dkms build --force ibnbd/%s -k %s && dkms install --force ibnbd/%s -k %s",
		       version, release, version, release);
}

static bool host_misfit(struct doctor *d, const char *rebuild)
{
	char *line __free(free) = host_kmsg("disagrees about version of symbol");
	bool ours = line && host_symbol_is(line, "ibtrs_", "ibnbd_"),
	     rdma = line && host_symbol_is(line, "ib_", "rdma_");

	if (!line)
		line = host_kmsg("version magic");
	if (line)
		doctor_find(d, rdma ? "rdma-stack" : "built", DOCTOR_ERROR,
			    say_dup(ours ? "modprobe -r ibnbd_client ibnbd_server ibtrs_core; modprobe ibnbd-client" :
					   rebuild),
			    "the modules were built for another %s: %s",
			    rdma ? "RDMA stack than the one that runs" :
			    ours ? "ibtrs_core than the one that is loaded" :
				   "kernel than the one that runs",
			    line);
	return line;
}

static void host_not_loaded(struct doctor *d, const char *release)
{
	char *line __free(free) = secure_refusal(),
	     *off __free(free) = host_text("/proc/sys/kernel/modules_disabled", ""),
	     *rebuild __free(free) = host_rebuild(release);
	const char *hint = NULL, *why = secure_only(&hint);
	bool never = off && !strcmp(off, "1");

	if ((secure_boot() && line) || !host_misfit(d, rebuild))
		if (!secure_finds(d, line, rebuild) && (why || line))
			doctor_find(d, "signature", line ? DOCTOR_ERROR : DOCTOR_WARNING,
				    say_dup(why ? hint :
						  "sign the modules with a key that the kernel has"),
				    "the kernel %s%s%s", why ? why : "has refused a module",
				    line ? ": " : "", line ? line : "");
	doctor_find(d, "loaded", d->client ? DOCTOR_ERROR : DOCTOR_WARNING,
		    never ? say_dup("reboot, and load it before kernel.modules_disabled is set: /etc/modules-load.d") :
			    say_fmt("%smodprobe ibnbd-client", line || why ? "that first, then: " : ""),
		    "the driver ibnbd-client is not loaded%s",
		    never ? ", and the kernel takes no more modules (kernel.modules_disabled)" : "");
}

/* A host that only exports does not need the client's driver. */
void doctor_modules(struct doctor *d)
{
	bool client = d->s->client || d->client || !d->s->server,
	     loaded = client ? d->s->client : d->s->server;
	const char *name = client ? "ibnbd-client" : "ibnbd-server";
	char *release __free(free) = host_release(),
	     *dir __free(free) = sysfs_path(client ? "module/ibnbd_client" : "module/ibnbd_server");
	char *version __free(free) = sysfs_attr(dir, "version"),
	     *upgraded __free(free) = mapping_upgraded(client ? "ibnbd_client" : "ibnbd_server");

	if (upgraded) {
		doctor_find(d, "version", DOCTOR_WARNING,
			    say_dup("the next boot loads it; to switch before, unmap all, then: modprobe -r ibnbd_client ibnbd_server ibtrs_core; modprobe ibnbd-client, or systemctl restart ibnbd-server"),
			    "%s", upgraded);
	} else if (loaded && version && strcmp(version, IBNBD_VERSION)) {
		doctor_find(d, "version", DOCTOR_WARNING,
			    say_dup("reboot, or unmap all and load the driver again"),
			    "the loaded driver is %s, this command %s", version, IBNBD_VERSION);
	} else if (loaded) {
		doctor_find(d, "loaded", DOCTOR_OK, NULL, "driver %s %s is loaded", name,
			    version ? version : "");
	} else if (host_built(release)) {
		doctor_find(d, "built", DOCTOR_OK, NULL, "the modules are built for kernel %s",
			    release);
		host_not_loaded(d, release);
	} else {
		host_not_built(d, release);
	}
}

/* ---- RDMA devices ---- */

static void host_port(struct doctor *d, const char *dev, const char *ports, const char *port,
		      bool *active)
{
	char *dir __free(free) = say_fmt("%s/%s", ports, port),
	     *state __free(free) = sysfs_attr(dir, "state"),
	     *layer __free(free) = sysfs_attr(dir, "link_layer");
	bool up = state && strstr(state, "ACTIVE");

	*active |= up;
	if (up)
		doctor_find(d, "rdma", DOCTOR_OK, NULL, "%s port %s is active (%s)", dev, port,
			    layer ? layer : "?");
	else
		doctor_find(d, "rdma", DOCTOR_WARNING,
			    say_dup(layer && !strcmp(layer, "InfiniBand") ?
					    "cable, and a subnet manager on this fabric" :
					    "ip link set INTERFACE up; cable"),
			    "%s port %s is not active: %s", dev, port, state ? state : "?");
}

void doctor_rdma(struct doctor *d)
{
	char *class __free(free) = sysfs_path("class/infiniband");
	char **devs __free(sysfs_list_free) = sysfs_list(class, NULL);
	bool active = false;

	for (size_t i = 0; devs[i]; i++) {
		char *path __free(free) = say_fmt("%s/%s/ports", class, devs[i]);
		char **ports __free(sysfs_list_free) = sysfs_list(path, NULL);

		for (size_t j = 0; ports[j]; j++)
			host_port(d, devs[i], path, ports[j], &active);
	}
	if (!devs[0])
		doctor_find(d, "rdma", DOCTOR_ERROR,
			    say_dup("load its driver, or make one of a network card: rdma link add rxe0 type rxe netdev INTERFACE"),
			    "there is no RDMA device");
	else if (!active)
		doctor_find(d, "rdma", DOCTOR_ERROR, say_dup("rdma link"),
			    "no port of an RDMA device is active");
}

/* ---- servers ---- */

/*
 * Does a machine answer at this address? 0 = it does, even if it refuses the connection; else
 * errno. RDMA has its own connections, so a TCP connection shows only that the machine is there.
 */
static int host_answers(const struct ibtrs_addr *a, int port)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	bool v4 = a->kind == IBTRS_ADDR_IP4;
	struct pollfd p = { .events = POLLOUT };
	socklen_t len = sizeof(int);
	int err = 0;

	memcpy(v4 ? (void *)&four.sin_addr : (void *)&six.sin6_addr, a->raw, v4 ? 4 : 16);
	p.fd = socket(v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (p.fd < 0)
		return errno;
	if (connect(p.fd, v4 ? (void *)&four : (void *)&six, v4 ? sizeof(four) : sizeof(six)) &&
	    errno != EINPROGRESS)
		err = errno;
	else if (poll(&p, 1, DOCTOR_CONNECT_MS) != 1)
		err = ETIMEDOUT;
	else
		getsockopt(p.fd, SOL_SOCKET, SO_ERROR, &err, &len);
	close(p.fd);
	return err == ECONNREFUSED ? 0 : err;
}

/* The error of the driver's last attempt. */
static void host_last_error(struct doctor *d)
{
	char *last __free(free) = mapping_last_error();

	if (!last)
		return;
	if (strstr(last, "the server says") || strstr(last, "the server refuses"))
		doctor_find(d, "refused", DOCTOR_ERROR,
			    say_dup(strstr(last, "the session name is") ?
					    "map with another session name here, or unmap on the host that has it" :
					    "on the server: ibnbd server check; its log"),
			    "the server refused the last mapping: %s", last);
	else if (strcasestr(last, "refused") || strcasestr(last, "rejected") ||
		 strstr(last, "(-111)"))
		doctor_find(d, "port", DOCTOR_ERROR,
			    say_dup("on the server: systemctl status ibnbd-server; is the port the same (port_nr there, dest_port here)?"),
			    "the last mapping failed, a server answers but does not listen: %s",
			    last);
	else
		doctor_find(d, "last-error", DOCTOR_WARNING, NULL,
			    "the last refusal of the driver: %s", last);
}

/* A name may have several addresses; it is enough if one of them answers. */
static void host_server(struct doctor *d, const struct maps_entry *e,
			const struct ibtrs_addr_pair *p, size_t nr)
{
	char text[IBTRS_ADDR_STR_MAX];
	int err = 0;

	for (size_t i = 0; i < nr && (!i || err); i++) {
		const struct ibtrs_addr *a = &p[i].dst;

		if (a->kind != IBTRS_ADDR_IP4 && (a->kind != IBTRS_ADDR_IP6 || a->scope[0]))
			return;
		err = host_answers(a, e->map.dest_port);
		ibtrs_addr_format(a, text, sizeof(text));
	}
	if (err)
		doctor_find(d, "server", DOCTOR_ERROR,
			    say_dup(err == ENETUNREACH ?
					    "this host has no route to it: ip route" :
					    "is it up? ping it; firewall?"),
			    "%s: the server %s does not answer: %s", e->name, text, strerror(err));
	else
		doctor_find(d, "server", DOCTOR_OK, NULL, "%s: there is a machine at %s", e->name,
			    text);
}

static void host_named_server(struct doctor *d, const struct maps_entry *e, const char *host)
{
	struct ibtrs_addr_pair *pairs __free(free) = NULL;
	char *why __free(free) = NULL;
	size_t nr;

	if (host_resolve(host, &pairs, &nr, &why))
		doctor_find(d, "server", DOCTOR_ERROR,
			    say_dup("a mistake in path=? else DNS, or a line in /etc/hosts"),
			    "%s: %s", e->name, why);
	else
		host_server(d, e, pairs, nr);
}

void doctor_servers(struct doctor *d)
{
	host_last_error(d);
	for (size_t i = 0; i < d->m->nr; i++) {
		const struct maps_entry *e = &d->m->entries[i];

		if (e->bad || state_dev_of(d->s, e->map.sessname, e->map.device_path))
			continue;
		for (size_t j = 0; j < e->map.nr_paths; j++) {
			char *why __free(free) = host_wrong_source(&e->map.path[j]);

			if (why)
				doctor_find(d, "source", DOCTOR_ERROR,
					    say_dup("is its interface up? path=SOURCE,DESTINATION is one path, two paths are two path="),
					    "%s: %s", e->name, why);
			host_server(d, e, &e->map.path[j], 1);
		}
		for (size_t j = 0; j < e->nr_hosts; j++)
			host_named_server(d, e, e->host[j]);
	}
}
