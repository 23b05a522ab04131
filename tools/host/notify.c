// SPDX-License-Identifier: GPL-2.0-only
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "tools/host/notify.h"

static struct sockaddr_un notify_to = { .sun_family = AF_UNIX };
static socklen_t notify_to_len;
static int notify_fd = -1;

void notify_open(void)
{
	const char *path = getenv("NOTIFY_SOCKET");
	size_t len = path ? strlen(path) : 0;

	if (!path || (path[0] != '/' && path[0] != '@') || len >= sizeof(notify_to.sun_path))
		return;
	memcpy(notify_to.sun_path, path, len);
	if (path[0] == '@')
		notify_to.sun_path[0] = 0;
	notify_to_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

bool notify_on(void)
{
	return notify_fd >= 0;
}

void notify_systemd(const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (notify_fd >= 0 && sendto(notify_fd, text, strlen(text), MSG_NOSIGNAL,
				     (struct sockaddr *)&notify_to, notify_to_len) < 0)
		return;		/* systemd does not listen: no error of ours */
}
