// SPDX-License-Identifier: GPL-2.0-only
/*
 * fakering: what a user can do to be taken for the driver's keyring .ibnbd. Makes a keyring of its
 * own, and keys whose names have a line of /proc/keys in them that says that this one is it. Waits
 * for SIGTERM, then prints how many keys have come.
 *
 * fakering grab: what root of a container can do to get a key of its own into the driver's keyring.
 * Prints the ways that work, or "nothing".
 */
#include <linux/keyctl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KEYS	60	/* so many that one comes before the driver's in /proc/keys */

static long add(const char *type, const char *name, const void *data, size_t len)
{
	long id = syscall(SYS_add_key, type, name, data, len, KEY_SPEC_PROCESS_KEYRING);

	if (id < 0 || syscall(SYS_keyctl, KEYCTL_SETPERM, id, 0x3f3f3f3f)) {
		perror(name);
		_exit(1);
	}
	return id;
}

static int driver_ring(void)
{
	FILE *f = fopen("/proc/keys", "r");
	char line[400];
	int id = 0;

	while (f && !id && fgets(line, sizeof(line), f))
		if (strstr(line, " keyring   .ibnbd"))
			sscanf(line, "%x", &id);
	if (f)
		fclose(f);
	return id;
}

static int grab(void)
{
	const int ring = driver_ring(), own = KEY_SPEC_PROCESS_KEYRING;
	char key[32] = "grabbed";
	int ids[16], n, i, ways = 0;
	long id;

	id = syscall(SYS_add_key, "logon", "ibnbd:grab", key, sizeof(key), own);
	n = syscall(SYS_keyctl, KEYCTL_READ, ring, ids, sizeof(ids)) / (long)sizeof(int);
#define WAY(what, call) do { if ((call) >= 0) { puts(what); ways++; } } while (0)
	WAY("add", syscall(SYS_add_key, "logon", "ibnbd:grab", key, sizeof(key), ring));
	WAY("link", syscall(SYS_keyctl, KEYCTL_LINK, id, ring));
	WAY("move", syscall(SYS_keyctl, KEYCTL_MOVE, id, own, ring, 0));
	WAY("possess", syscall(SYS_keyctl, KEYCTL_LINK, ring, own));
	WAY("setperm", syscall(SYS_keyctl, KEYCTL_SETPERM, ring, 0x3f3f3f3f));
	for (i = 0; i < n; i++) {
		WAY("update", syscall(SYS_keyctl, KEYCTL_UPDATE, ids[i], key, sizeof(key)));
		WAY("setperm of a key", syscall(SYS_keyctl, KEYCTL_SETPERM, ids[i], 0x3f3f3f3f));
	}
	if (!ways)
		printf("nothing, with %d keys\n", n);
	return 0;
}

int main(int argc, char **argv)
{
	long ring, n;
	char name[200];
	sigset_t set;
	int sig;

	if (argc > 1 && !strcmp(argv[1], "grab"))
		return grab();
	ring = add("keyring", "x;.ibnbd", NULL, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (int i = 0; i < KEYS; i++) {
		snprintf(name, sizeof(name),
			 "%d\n%08lx I------     1 perm 1f3f0000     0     0 keyring   .ibnbd: empty",
			 i, ring);
		add("user", name, "x", 1);
	}
	puts("ready");
	fflush(stdout);
	sigwait(&set, &sig);
	n = syscall(SYS_keyctl, KEYCTL_READ, ring, NULL, 0);
	printf("%ld keys\n", n / (long)sizeof(int));
	return 0;
}
