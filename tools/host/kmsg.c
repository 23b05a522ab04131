// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages of the kernel: uevents, and its log, /dev/kmsg. A record of the log is
 * `priority,number,time,flags;text`; further lines of a record begin with a blank. The kernel
 * writes control characters, backslashes and all that is not ASCII as \xNN.
 */
#include <fcntl.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tools/out/escape.h"
#include "tools/host/mapping.h"
#include "tools/out/say.h"

#define KMSG_MAX	(64u << 20)	/* beyond the largest log_buf_len */

int mapping_uevents(void)
{
	struct sockaddr_nl addr = { .nl_family = AF_NETLINK, .nl_groups = 1 };
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
			NETLINK_KOBJECT_UEVENT);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static char *kmsg_read(void)
{
	char *path __free(free) = sysfs_root("/dev/kmsg"), *text;
	int fd __free(say_close) = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	size_t len;

	sysfs_read(fd, KMSG_MAX, &text, &len);	/* (its end is EAGAIN) */
	return text;
}

/* The text of the next record, of its first line; NULL: there is none. */
static const char *kmsg_next(char **rest)
{
	char *line, *text = NULL;

	while (!text && (line = strsep(rest, "\n")))
		text = *line != ' ' ? strchr(line, ';') : NULL;
	return text ? text + 1 : NULL;
}

void mapping_kmsg(FILE *f, size_t nr)
{
	char *all __free(free) = kmsg_read(), *rest = all;
	const char **last __free(free) = say_alloc((nr + 1) * sizeof(*last)), *text;
	size_t n = 0, i;

	while ((text = kmsg_next(&rest)))
		if (strstr(text, "ibnbd") || strstr(text, "ibtrs"))
			last[n++ % nr] = text;
	for (i = n > nr ? n - nr : 0; i < n; i++) {
		char *undone __free(free) = escape_undo(last[i % nr]),
		     *shown __free(free) = escape_text(ESCAPE_LINE, undone);

		fprintf(f, "  kernel: %s\n", shown);
	}
}

char *mapping_kmsg_find(const char *first, const char *second)
{
	char *all __free(free) = kmsg_read(), *rest = all, *found = NULL;
	const char *text;

	while ((text = kmsg_next(&rest))) {
		char *undone __free(free) = escape_undo(text);

		if (strstr(undone, first) && (!second || strstr(undone, second))) {
			free(found);
			found = say_dup(undone);
		}
	}
	return found;
}
