// SPDX-License-Identifier: GPL-2.0-only
/*
 * iopulse DEV [THREADS [SLOW_MS [MODE [THINK_US]]]]: a steady pulse of 4 KiB O_DIRECT I/O, one at a
 * time per thread, to see when a device pauses, fails and comes back. MODE is r, w or rw.
 *
 * Prints, stamped with seconds since boot:
 *   HB done=.. (+..) errs=.. (+..)    each second
 *   SLOW read|write MS                an I/O that took longer than SLOW_MS
 *   ERR .., OK ..                     the first error of a run, and its end
 *   END done=.. errs=.. longest_ms=.. on SIGTERM or SIGINT; exit status 1 if there were errors
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BLOCK 4096
#define SPREAD 2048	/* blocks touched: 8 MiB */

static int fd, slow_ms = 200, think_us;
static const char *mode = "rw";
static atomic_int stop;
static atomic_long done, errs, longest_us;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void note_longest(long us)
{
	long old = atomic_load(&longest_us);

	while (us > old && !atomic_compare_exchange_weak(&longest_us, &old, us))
		;
}

static void *pulse(void *arg)
{
	long id = (long)arg, n, run = 0;
	double first = 0;
	void *buf;

	if (posix_memalign(&buf, BLOCK, BLOCK))
		exit(2);
	memset(buf, id, BLOCK);
	for (n = 0; !stop; n++) {
		off_t where = (n * 7919 + id * 104729) % SPREAD * (off_t)BLOCK;
		int write = strchr(mode, 'w') && (!strchr(mode, 'r') || (n & 1));
		double t = now(), ms;
		ssize_t got = write ? pwrite(fd, buf, BLOCK, where) : pread(fd, buf, BLOCK, where);
		int err = errno;

		ms = (now() - t) * 1e3;
		note_longest(ms * 1e3);
		if (got != BLOCK) {
			atomic_fetch_add(&errs, 1);
			if (!run++) {
				first = t;
				printf("%.2f thread %ld ERR %s: %s after %.0f ms\n", now(), id,
				       write ? "write" : "read",
				       got < 0 ? strerror(err) : "short", ms);
			}
			usleep(10000);
			continue;
		}
		if (run)
			printf("%.2f thread %ld OK after %ld errors in %.2f s\n", now(), id, run,
			       now() - first);
		run = 0;
		if (ms > slow_ms)
			printf("%.2f thread %ld SLOW %s %.0f ms\n", now(), id,
			       write ? "write" : "read", ms);
		atomic_fetch_add(&done, 1);
		if (think_us)
			usleep(think_us);
	}
	return NULL;
}

static void end(int sig)
{
	stop = 1;
}

int main(int argc, char **argv)
{
	long threads = argc > 2 ? atol(argv[2]) : 1, i, d0 = 0, e0 = 0;
	pthread_t t;

	if (argc < 2 || threads < 1)
		return fprintf(stderr,
			       "usage: iopulse DEV [THREADS [SLOW_MS [MODE [THINK_US]]]]\n"), 2;
	if (argc > 3)
		slow_ms = atoi(argv[3]);
	if (argc > 4)
		mode = argv[4];
	if (argc > 5)
		think_us = atoi(argv[5]);
	fd = open(argv[1], (strchr(mode, 'w') ? O_RDWR : O_RDONLY) | O_DIRECT);
	if (fd < 0)
		return perror(argv[1]), 2;
	signal(SIGTERM, end);
	signal(SIGINT, end);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 0; i < threads; i++)
		if (pthread_create(&t, NULL, pulse, (void *)i))
			return perror("pthread_create"), 2;
	while (!stop) {
		long d, e;

		sleep(1);
		d = done;
		e = errs;
		printf("%.2f HB done=%ld (+%ld) errs=%ld (+%ld)\n", now(), d, d - d0, e, e - e0);
		d0 = d;
		e0 = e;
	}
	/* A thread may hang in the kernel: it is given a second and not joined. */
	sleep(1);
	printf("%.2f END done=%ld errs=%ld longest_ms=%ld\n", now(), (long)done, (long)errs,
	       longest_us / 1000);
	fflush(stdout);
	_exit(errs ? 1 : 0);
}
