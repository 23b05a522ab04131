// SPDX-License-Identifier: GPL-2.0-only
/* The one place where the command writes to sysfs; by itself so that the tests can link another one. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "tools/sysfs.h"

int sysfs_store(const char *path, const char *text)
{
	size_t len = strlen(text);
	int fd = open(path, O_WRONLY | O_CLOEXEC), err = 0;
	ssize_t n;

	if (fd < 0)
		return errno;
	n = write(fd, text, len);
	if (n < 0)
		err = errno;
	else if ((size_t)n != len)
		err = EIO;
	close(fd);
	return err;
}
