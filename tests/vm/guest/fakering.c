// SPDX-License-Identifier: GPL-2.0-only
/*
 * fakering: what a user can do to be taken for the driver's keyring .ibnbd. Makes a keyring of its
 * own, and keys whose names have a line of /proc/keys in them that says that this one is it. Waits
 * for SIGTERM, then prints how many keys have come.
 */
#include <linux/keyctl.h>
#include <signal.h>
#include <stdio.h>
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

int main(void)
{
	long ring = add("keyring", "x;.ibnbd", NULL, 0), n;
	char name[200];
	sigset_t set;
	int sig;

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
