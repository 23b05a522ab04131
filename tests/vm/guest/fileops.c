// SPDX-License-Identifier: GPL-2.0-only
/*
 * fileops FILE SECONDS SEED [KIB]: one file under every way to change it, compared with a copy in
 * memory.
 *
 * Random ranges are written, read, mapped and written, mapped and read, cut off, grown, punched,
 * zeroed and allocated; between these the file is synced, its pages are dropped so that the next
 * read comes from the disk, and it is closed and opened again. After each step its size, and with
 * each read its content, must be those of the copy. What a file system cannot do (fallocate's
 * modes) is left out. A difference ends the program with status 1, the range and the last steps.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define STEPS	24
#define RANGE	(192 << 10)		/* longest range of one step */

static const char *path;
static int fd;
static size_t size, most;		/* of the file, now and at most */
static unsigned char *copy, *buf;
static char steps[STEPS][80];
static unsigned long nr;
static unsigned int seed;

static void step(const char *what, size_t from, size_t len)
{
	snprintf(steps[nr % STEPS], sizeof(steps[0]), "%lu %s %zu+%zu", nr, what, from, len);
	nr++;
}

static void die(const char *format, ...)
{
	va_list args;
	unsigned long i;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\nseed %u, the last steps:\n", seed);
	for (i = nr > STEPS ? nr - STEPS : 0; i < nr; i++)
		printf("\t%s\n", steps[i % STEPS]);
	exit(1);
}

static size_t up_to(size_t n)	/* 0..n-1; half of the time a multiple of 512 */
{
	size_t r = n ? (((size_t)random() << 16) ^ (size_t)random()) % n : 0;

	return random() & 1 ? r : r & ~(size_t)511;
}

static void compare(const unsigned char *got, size_t from, size_t len, const char *how)
{
	size_t i;

	if (!memcmp(got, copy + from, len))
		return;
	for (i = 0; got[i] == copy[from + i]; i++)
		;
	die("%s: byte %zu of %s is %02x, should be %02x", how, from + i, path, got[i],
	    copy[from + i]);
}

static void fill(size_t len)
{
	size_t i;
	unsigned char c = (unsigned char)random();

	for (i = 0; i < len; i++)
		buf[i] = (unsigned char)(c + i * 31 + (i >> 8));
}

/* between the old end and the new one there are zeroes: the copy has them */
static void grown(size_t end)
{
	if (end > size)
		size = end;
}

static void do_write(size_t from, size_t len)
{
	fill(len);
	if (pwrite(fd, buf, len, (off_t)from) != (ssize_t)len)
		die("write %zu+%zu: %s", from, len, strerror(errno));
	memcpy(copy + from, buf, len);
	grown(from + len);
}

static void do_read(size_t from, size_t len)
{
	if (pread(fd, buf, len, (off_t)from) != (ssize_t)len)
		die("read %zu+%zu: %s", from, len, strerror(errno));
	compare(buf, from, len, "read");
}

static void mapped(size_t from, size_t len, int write)
{
	size_t page = from & ~(size_t)4095;
	unsigned char *p = mmap(NULL, from + len - page, PROT_READ | (write ? PROT_WRITE : 0),
				MAP_SHARED, fd, (off_t)page);

	if (p == MAP_FAILED)
		die("mmap %zu+%zu: %s", from, len, strerror(errno));
	if (write) {
		fill(len);
		memcpy(p + (from - page), buf, len);
		memcpy(copy + from, buf, len);
	} else {
		compare(p + (from - page), from, len, "mapped");
	}
	if (munmap(p, from + len - page))
		die("munmap: %s", strerror(errno));
}

static void do_truncate(size_t to)
{
	if (ftruncate(fd, (off_t)to))
		die("truncate to %zu: %s", to, strerror(errno));
	if (to < size)
		memset(copy + to, 0, size - to);
	size = to;
}

static void allocate(int mode, size_t from, size_t len)
{
	if (!len)
		return;
	if (fallocate(fd, mode, (off_t)from, (off_t)len)) {
		if (errno != EOPNOTSUPP)
			die("fallocate mode %d %zu+%zu: %s", mode, from, len, strerror(errno));
		return;
	}
	if (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
		memset(copy + from, 0, len);
	if (!(mode & FALLOC_FL_KEEP_SIZE))
		grown(from + len);
}

static void reopen(void)
{
	if (fd >= 0 && close(fd))
		die("close: %s", strerror(errno));
	fd = open(path, O_RDWR | O_CREAT, 0600);
	if (fd < 0)
		die("open: %s", strerror(errno));
}

static void drop(void)			/* what is clean leaves the page cache */
{
	if (fdatasync(fd))
		die("fdatasync: %s", strerror(errno));
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

static void one(void)
{
	size_t len = 1 + up_to(RANGE), any = up_to(most - len), in = up_to(size),
		inlen = len < size - in ? len : size - in;
	struct stat st;

	switch (random() % 16) {
	case 0 ... 3:	step("write", any, len); do_write(any, len); break;
	case 4 ... 6:	step("read", in, inlen); do_read(in, inlen); break;
	case 7 ... 8:	if (inlen) { step("map and write", in, inlen); mapped(in, inlen, 1); }
			break;
	case 9:		if (inlen) { step("map and read", in, inlen); mapped(in, inlen, 0); } break;
	case 10:	step("truncate", any, 0); do_truncate(any); break;
	case 11:	step("punch", any, len);
			allocate(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, any, len); break;
	case 12:	step("zero", any, len); allocate(FALLOC_FL_ZERO_RANGE, any, len); break;
	case 13:	step("allocate", any, len); allocate(0, any, len); break;
	case 14:	step("sync and drop", 0, 0); drop(); break;
	default:	step("reopen", 0, 0); reopen(); break;
	}
	if (fstat(fd, &st) || (size_t)st.st_size != size)
		die("the file has %lld bytes, should have %zu", (long long)st.st_size, size);
}

int main(int argc, char **argv)
{
	time_t end;

	if (argc < 4)
		return 2;
	path = argv[1];
	end = time(NULL) + atol(argv[2]);
	seed = (unsigned int)strtoul(argv[3], NULL, 0);
	most = (argc > 4 ? strtoul(argv[4], NULL, 0) : 4096) << 10;
	if (most <= 2 * RANGE)
		return 2;
	srandom(seed);
	copy = calloc(1, most);
	buf = malloc(most);
	if (!copy || !buf)
		return 2;
	fd = -1;
	unlink(path);
	reopen();
	while (time(NULL) < end)
		one();
	step("the whole file, from the disk", 0, size);
	drop();
	do_read(0, size);
	printf("%lu steps, seed %u: as it should be\n", nr, seed);
	return 0;
}
