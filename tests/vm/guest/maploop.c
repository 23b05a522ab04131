// SPDX-License-Identifier: GPL-2.0-only
/*
 * maploop SESSIONS REQUESTS PATIENCE_MS WORDS: that many sessions, lie1 .., each of which maps a
 * disk again and again, reads and writes it, and unmaps it by force; every fourth mapping with the
 * key db-1. It ends when /tmp/stop exists. WORDS are further words of a map request.
 *
 * A shell would do, if it had not to start some thirty programs for each mapping: a kernel with
 * checkers spends more on these than on the drivers.
 *
 * A round of I/O is REQUESTS reads of 16 KiB and as many writes of 4 KiB, until one fails.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CTL	"/sys/class/ibnbd-client/ctl"
#define STOP	"/tmp/stop"
#define ROOM	16384
#define LOOK_MS	20

static char buf[ROOM] __attribute__((aligned(4096)));

static void pause_ms(int ms)
{
	const struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	nanosleep(&t, NULL);
}

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	ssize_t got;

	if (fd < 0)
		return -1;
	got = write(fd, text, strlen(text));
	close(fd);
	return got < 0 ? -1 : 0;
}

/* Requests one after the other, from the beginning of the disk again at its end. */
static void round_of(int fd, int n, size_t len, ssize_t (*io)(int, off_t, size_t))
{
	off_t at = 0;
	ssize_t got;

	for (; n; n--, at += got) {
		got = io(fd, at, len);
		if (got <= 0 && at)
			got = io(fd, at = 0, len);
		if (got <= 0)
			return;
	}
}

static ssize_t read_at(int fd, off_t at, size_t len)
{
	return pread(fd, buf, len, at);
}

static ssize_t write_at(int fd, off_t at, size_t len)
{
	return pwrite(fd, buf, len, at);
}

static void use(const char *dev, int requests)
{
	int fd = open(dev, O_RDWR | O_DIRECT);

	if (fd < 0)
		fd = open(dev, O_RDONLY | O_DIRECT);
	if (fd < 0)
		_exit(1);
	round_of(fd, requests, ROOM, read_at);
	round_of(fd, requests, 4096, write_at);
	_exit(0);
}

/* What is never answered waits for io_timeout=, or for unmap force. */
static void use_and_unmap(const char *disk, int requests, int patience)
{
	char path[320];
	pid_t pid;
	int ms;

	snprintf(path, sizeof(path), "/dev/%s", disk);
	pid = fork();
	if (!pid)
		use(path, requests);
	for (ms = 0; pid > 0 && ms < patience && !waitpid(pid, NULL, WNOHANG); ms += LOOK_MS)
		pause_ms(LOOK_MS);
	snprintf(path, sizeof(path), "/sys/block/%s/ibnbd/unmap_device", disk);
	put(path, "force");
	if (pid > 0 && ms >= patience) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	snprintf(path, sizeof(path), "/sys/block/%s", disk);
	for (ms = 0; ms < 30000 && !access(path, F_OK); ms += LOOK_MS)
		pause_ms(LOOK_MS);
}

static void loop(int session, int requests, int patience, const char *words)
{
	char line[512], link[128], target[256];
	const char *name;
	ssize_t len;
	int n;

	for (n = 0; access(STOP, F_OK); n++) {
		snprintf(line, sizeof(line), "sessname=lie%d device_path=d%d %s%s",
			 session, n, words, n % 4 ? "" : " auth=db-1");
		if (put(CTL "/map_device", line)) {
			pause_ms(LOOK_MS);
			continue;
		}
		snprintf(link, sizeof(link), CTL "/devices/d%d@lie%d", n, session);
		len = readlink(link, target, sizeof(target) - 1);
		if (len < 0)
			continue;	/* it is away again */
		target[len] = 0;
		name = strrchr(target, '/');
		use_and_unmap(name ? name + 1 : target, requests, patience);
	}
}

int main(int argc, char **argv)
{
	int i;

	if (argc != 5)
		return 2;
	for (i = 1; i <= atoi(argv[1]); i++)
		if (!fork()) {
			loop(i, atoi(argv[2]), atoi(argv[3]), argv[4]);
			return 0;
		}
	while (wait(NULL) > 0)
		;
	return 0;
}
