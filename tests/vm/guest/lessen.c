// SPDX-License-Identifier: GPL-2.0-only
/*
 * lessen user|admin COMMAND..: runs it as user 1000, or as root without CAP_SYS_ADMIN, as in a
 * container.
 */
#include <grp.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define USER	1000

static int drop_admin(void)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2];
	unsigned int bit = 1u << CAP_SYS_ADMIN;

	if (prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0) || syscall(SYS_capget, &h, d))
		return -1;
	d[0].effective &= ~bit;
	d[0].permitted &= ~bit;
	d[0].inheritable &= ~bit;
	return (int)syscall(SYS_capset, &h, d);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	if (!strcmp(argv[1], "user") ?
	    setgroups(0, NULL) || setgid(USER) || setuid(USER) : drop_admin()) {
		perror("lessen");
		return 2;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 127;
}
