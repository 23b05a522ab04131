// SPDX-License-Identifier: GPL-2.0-only
/*
 * Operations that need a real kernel: a write to sysfs, and the number of a device. This is a file
 * of its own, so that the tests can link another one.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tools/host/sysfs.h"

int sysfs_store(const char *path, const char *text)
{
	size_t len = strlen(text);
	/* (files of ibnbd-serverd are FIFOs: ENXIO if it has died, at once) */
	int fd __free(say_close) = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK), err = 0;
	size_t done = 0;
	ssize_t n;

	if (fd < 0)
		return errno;
	do {
		n = write(fd, text + done, len - done);
		if (n < 0)
			err = errno;
		else if (!n && len)
			err = EIO;
		else
			done += (size_t)n;
	} while (!err && done < len);
	return err;
}

int sysfs_barred(const char *path)
{
	int fd __free(say_close) = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? errno : 0;
}

bool sysfs_node(const char *path, dev_t *dev)
{
	struct stat st;

	if (stat(path, &st) || !S_ISBLK(st.st_mode))
		return false;
	*dev = st.st_rdev;
	return true;
}
