// SPDX-License-Identifier: GPL-2.0-only
/*
 * A kernel for the tests of tools/: linked with --wrap, it hands each write to kernel.py, at the
 * socket that IBNBD_FAKE names, and is told the errno. Without IBNBD_FAKE the file is written. The
 * drivers wait killably: a signal that is caught has to wait, too. A device node is a file with
 * "MAJOR:MINOR" in it. What key N is, in hex, is in keys/N below IBNBD_ROOT; if there is a
 * keys/N-revoked, it is revoked; and keys/taken, if that is there, gets a line for each keyring
 * that the command asks for, and keys/wiped one for each explicit_bzero(), with the number of
 * bytes, and a "!" if the process could leave a core. The keys of the driver's keyring, whatever
 * its number, are the files of keyring/ below IBNBD_ROOT. The lines of ifaddrs below IBNBD_ROOT,
 * INTERFACE ADDRESS (of a /24), are this host's addresses if it is there; those of hosts, NAME
 * ADDRESS, what names resolve to.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <keyutils.h>
#include <limits.h>
#include <net/if.h>
#include <netdb.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

int __real_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list);
int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list);
int __real_getifaddrs(struct ifaddrs **list);
int __wrap_getifaddrs(struct ifaddrs **list);
int __real_sysfs_store(const char *path, const char *text);
int __wrap_sysfs_barred(const char *path);
int __wrap_sysfs_store(const char *path, const char *text);
bool __wrap_sysfs_node(const char *path, dev_t *dev);
key_serial_t __wrap_add_key(const char *type, const char *name, const void *key, size_t len,
			    key_serial_t ring);
long __wrap_keyctl_link(key_serial_t key, key_serial_t ring);
long __wrap_keyctl_unlink(key_serial_t key, key_serial_t ring);
int __wrap_keyctl_read_alloc(key_serial_t ring, void **list);
int __wrap_keyctl_describe_alloc(key_serial_t key, char **is);
long __wrap_keyctl_read(key_serial_t key, char *buf, size_t len);
void __real_explicit_bzero(void *at, size_t len);
void __wrap_explicit_bzero(void *at, size_t len);

/* All files have the errno of the file "barred" in sysfs, if it is there. */
int __wrap_sysfs_barred(const char *path)
{
	const char *sys = getenv("IBNBD_SYSFS");
	char barred[PATH_MAX];
	int err = 0;
	FILE *f;

	snprintf(barred, sizeof(barred), "%s/barred", sys ? sys : "/nowhere");
	f = fopen(barred, "r");
	if (f && fscanf(f, "%d", &err) != 1)
		err = EIO;
	if (f)
		fclose(f);
	return err ? err : access(path, W_OK) ? errno : 0;
}

int __wrap_sysfs_store(const char *path, const char *text)
{
	const char *kernel = getenv("IBNBD_FAKE"), *sys = getenv("IBNBD_SYSFS");
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	unsigned char err;
	sigset_t caught, before;
	int fd, status;

	if (!kernel)
		return __real_sysfs_store(path, text);
	status = __wrap_sysfs_barred(path);
	if (status && status != ENOENT)
		return status;
	snprintf(at.sun_path, sizeof(at.sun_path), "%s", kernel);
	sigfillset(&caught);
	sigdelset(&caught, SIGTERM);
	sigdelset(&caught, SIGINT);
	pthread_sigmask(SIG_BLOCK, &caught, &before);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(fd, (struct sockaddr *)&at, sizeof(at)) ||
	    dprintf(fd, "%s%c%s%c%s%c", sys, 0, path, 0, text, 0) < 0 || read(fd, &err, 1) != 1)
		err = EIO;
	close(fd);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

bool __wrap_sysfs_node(const char *path, dev_t *dev)
{
	FILE *f = fopen(path, "r");
	unsigned int major, minor;
	bool node = f && fscanf(f, "%u:%u", &major, &minor) == 2;

	if (f)
		fclose(f);
	if (node)
		*dev = makedev(major, minor);
	return node;
}

int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list)
{
	const char *root = getenv("IBNBD_ROOT");
	char path[PATH_MAX], host[64], text[64];
	struct addrinfo **end = list;
	FILE *f;

	snprintf(path, sizeof(path), "%s/hosts", root ? root : "/nowhere");
	*list = NULL;
	f = fopen(path, "r");
	while (f && fscanf(f, "%63s %63s", host, text) == 2)
		if (!strcmp(host, name) && !__real_getaddrinfo(text, service, hints, end))
			while (*end)
				end = &(*end)->ai_next;
	if (f)
		fclose(f);
	return *list ? 0 : __real_getaddrinfo(name, service, hints, list);
}

/* One block of memory, since the real freeifaddrs() frees it. */
int __wrap_getifaddrs(struct ifaddrs **list)
{
	struct fake_address {
		struct ifaddrs a;
		struct sockaddr_in addr, mask;
		char name[IF_NAMESIZE];
	} *all;
	const char *root = getenv("IBNBD_ROOT");
	char path[PATH_MAX], text[64];
	int i = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/ifaddrs", root ? root : "/nowhere");
	f = fopen(path, "r");
	if (!f)
		return __real_getifaddrs(list);
	all = calloc(8, sizeof(*all));
	for (; i < 8 && fscanf(f, "%15s %63s", all[i].name, text) == 2; i++) {
		all[i].addr.sin_family = all[i].mask.sin_family = AF_INET;
		inet_pton(AF_INET, text, &all[i].addr.sin_addr);
		all[i].mask.sin_addr.s_addr = htonl(0xffffff00);
		all[i].a = (struct ifaddrs){ .ifa_name = all[i].name, .ifa_flags = IFF_UP,
					     .ifa_addr = (struct sockaddr *)&all[i].addr,
					     .ifa_netmask = (struct sockaddr *)&all[i].mask };
		if (i)
			all[i - 1].a.ifa_next = &all[i].a;
	}
	fclose(f);
	*list = &all->a;
	return 0;
}

static FILE *keys_open(const char *name, const char *mode)
{
	const char *root = getenv("IBNBD_ROOT");
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/keys/%s", root ? root : "/nowhere", name);
	return fopen(path, mode);
}

static void keyring_path(char path[PATH_MAX], const char *name)
{
	const char *root = getenv("IBNBD_ROOT");

	snprintf(path, PATH_MAX, "%s/keyring/%s", root ? root : "/nowhere", name);
}

/* Its next key, and the number of that; NULL: there is no more. */
static const char *keyring_next(DIR *ring, key_serial_t *key)
{
	struct dirent *d;

	while (ring && (d = readdir(ring)))
		if (d->d_name[0] != '.') {
			*key = (key_serial_t)(d->d_ino & INT_MAX / 2) + INT_MAX / 2;
			return d->d_name;
		}
	return NULL;
}

static DIR *keyring_open(void)
{
	char path[PATH_MAX];

	keyring_path(path, "");
	return opendir(path);
}

/* @path: of the key of this number, if the keyring has it. */
static bool keyring_find(key_serial_t key, char path[PATH_MAX])
{
	DIR *ring = keyring_open();
	const char *name;
	key_serial_t is;

	while ((name = keyring_next(ring, &is)) && is != key)
		;
	if (name)
		keyring_path(path, name);
	if (ring)
		closedir(ring);
	return name;
}

/* The key that is in no keyring yet. */
static struct {
	char name[256], key[64];
	size_t len;
} fresh;

key_serial_t __wrap_add_key(const char *type, const char *name, const void *key, size_t len,
			    key_serial_t ring)
{
	if (strcmp(type, "logon") || ring != KEY_SPEC_PROCESS_KEYRING || len > sizeof(fresh.key)) {
		errno = EINVAL;
		return -1;
	}
	snprintf(fresh.name, sizeof(fresh.name), "%s", name);
	memcpy(fresh.key, key, len);
	fresh.len = len;
	return 1;
}

long __wrap_keyctl_link(key_serial_t key, key_serial_t ring)
{
	char path[PATH_MAX];
	int fd;

	keyring_path(path, fresh.name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, fresh.key, fresh.len) != (ssize_t)fresh.len)
		return -1;
	return close(fd);
}

long __wrap_keyctl_unlink(key_serial_t key, key_serial_t ring)
{
	char path[PATH_MAX];

	if (ring == KEY_SPEC_PROCESS_KEYRING)
		return 0;
	if (!keyring_find(key, path)) {
		errno = ENOKEY;
		return -1;
	}
	return unlink(path);
}

int __wrap_keyctl_read_alloc(key_serial_t ring, void **list)
{
	key_serial_t *keys = calloc(64, sizeof(*keys));
	DIR *dir = keyring_open();
	int n = 0;

	while (n < 64 && keyring_next(dir, &keys[n]))
		n++;
	if (dir)
		closedir(dir);
	*list = keys;
	return n * (int)sizeof(*keys);
}

int __wrap_keyctl_describe_alloc(key_serial_t key, char **is)
{
	char name[16], path[PATH_MAX];
	size_t size = 0;
	ssize_t len;
	FILE *f;

	snprintf(name, sizeof(name), "%x", (unsigned int)key);
	f = keys_open(name, "r");
	if (!f && keyring_find(key, path))
		return asprintf(is, "logon;0;0;3f010000;%s", strrchr(path, '/') + 1);
	if (!f) {
		errno = ENOKEY;
		return -1;
	}
	*is = NULL;
	len = getdelim(is, &size, 0, f);	/* newlines are a part of it */
	fclose(f);
	if (len < 0)
		free(*is);
	return (int)len;
}

long __wrap_keyctl_read(key_serial_t key, char *buf, size_t len)
{
	char name[32];
	FILE *f;

	snprintf(name, sizeof(name), "%x-revoked", (unsigned int)key);
	f = keys_open(name, "r");
	if (f) {
		fclose(f);
		errno = EKEYREVOKED;
		return -1;
	}
	f = keys_open("taken", "r+");
	if (f) {
		fseek(f, 0, SEEK_END);
		fprintf(f, "%x\n", (unsigned int)key);
		fclose(f);
	}
	return 0;
}

void __wrap_explicit_bzero(void *at, size_t len)
{
	FILE *f = keys_open("wiped", "r+");

	if (f) {
		fseek(f, 0, SEEK_END);
		fprintf(f, "%zu%s\n", len, prctl(PR_GET_DUMPABLE) ? "!" : "");
		fclose(f);
	}
	__real_explicit_bzero(at, len);
}
