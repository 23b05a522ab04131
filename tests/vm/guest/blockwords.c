// SPDX-License-Identifier: GPL-2.0-only
/*
 * blockwords DEV: asks a disk what a block device can be asked, one ioctl or one
 * request at a time, and prints a line "question answer" for each. The answer is
 * a value, "ok", a number of bytes or the name of an errno. Writes all over DEV,
 * and must be the only one that has it open.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/blkpg.h>
#include <linux/blkzoned.h>
#include <linux/cdrom.h>
#include <linux/fs.h>
#include <linux/hdreg.h>
#include <linux/pr.h>
#include <scsi/sg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define GET_IDLUN 0x5382	/* SCSI_IOCTL_GET_IDLUN, which no header for programs has */
#ifndef BLKGETDISKSEQ
#define BLKGETDISKSEQ _IOR(0x12, 128, __u64)
#endif

static const char *dev;
static uint64_t size;
static int block;	/* bytes of a logical one */
static char *buf;	/* 64 KiB, and a page more */

static const char *word(long rc)
{
	static char text[32];

	if (rc >= 0) {
		snprintf(text, sizeof(text), "%ld", rc);
		return text;
	}
	return strerrorname_np(errno) ?: "?";
}

static void say(const char *question, long rc)
{
	printf("%s %s\n", question, rc ? word(rc) : "ok");
}

static void moved(const char *question, long bytes)
{
	printf("%s %s\n", question, word(bytes));
}

static int opened(int flags)
{
	int fd = open(dev, flags | O_CLOEXEC);

	if (fd < 0) {
		printf("cannot open %s with %#x: %s\n", dev, flags, word(-1));
		exit(1);
	}
	return fd;
}

#define NUMBER(question, request, type) number(question, fd, request, sizeof(type))

static void number(const char *question, int fd, unsigned long request, size_t len)
{
	union { unsigned short s; int i; long l; } v = { .l = 0 };

	if (ioctl(fd, request, &v))
		printf("%s %s\n", question, word(-1));
	else if (len == sizeof(v.s))
		printf("%s %u\n", question, v.s);
	else if (len == sizeof(v.i))
		printf("%s %d\n", question, v.i);
	else
		printf("%s %ld\n", question, v.l);
}

static void values(int fd)
{
	struct hd_geometry geo = {};
	uint64_t seq = 0;
	int n = 256;

	NUMBER("BLKGETSIZE64", BLKGETSIZE64, uint64_t);
	NUMBER("BLKGETSIZE", BLKGETSIZE, long);
	NUMBER("BLKSSZGET", BLKSSZGET, int);
	NUMBER("BLKPBSZGET", BLKPBSZGET, int);
	NUMBER("BLKIOMIN", BLKIOMIN, int);
	NUMBER("BLKIOOPT", BLKIOOPT, int);
	NUMBER("BLKALIGNOFF", BLKALIGNOFF, int);
	NUMBER("BLKROGET", BLKROGET, int);
	NUMBER("BLKROTATIONAL", BLKROTATIONAL, short);
	NUMBER("BLKDISCARDZEROES", BLKDISCARDZEROES, int);
	NUMBER("BLKSECTGET", BLKSECTGET, short);
	say("BLKRASET", ioctl(fd, BLKRASET, 512L));
	NUMBER("BLKRAGET", BLKRAGET, long);
	say("BLKFRASET", ioctl(fd, BLKFRASET, 256L));
	NUMBER("BLKFRAGET", BLKFRAGET, long);
	n = 4096;
	say("BLKBSZSET-4096", ioctl(fd, BLKBSZSET, &n));
	NUMBER("BLKBSZGET", BLKBSZGET, int);
	n = 256;
	say("BLKBSZSET-256", ioctl(fd, BLKBSZSET, &n));
	n = 1536;
	say("BLKBSZSET-1536", ioctl(fd, BLKBSZSET, &n));
	if (ioctl(fd, BLKGETDISKSEQ, &seq))
		say("BLKGETDISKSEQ", -1);
	else
		printf("BLKGETDISKSEQ %s\n", seq ? "some" : "0");
	if (ioctl(fd, HDIO_GETGEO, &geo))
		say("HDIO_GETGEO", -1);
	else
		printf("HDIO_GETGEO heads=%d sectors=%d cylinders=%d start=%ld\n", geo.heads,
		       geo.sectors, geo.cylinders, geo.start);
}

static void orders(int fd)
{
	struct blk_zone_report *zones = calloc(1, sizeof(*zones) + 4 * sizeof(struct blk_zone));
	struct pr_registration reg = { .new_key = 1 };
	struct blkpg_partition part = { .start = 1 << 20, .length = 1 << 20, .pno = 3 };
	struct blkpg_ioctl_arg pg = { .op = BLKPG_ADD_PARTITION, .datalen = sizeof(part),
				      .data = &part };
	struct sg_io_hdr sg = { .interface_id = 'S' };
	unsigned int n = 0;
	char id[512];
	int other;

	say("BLKFLSBUF", ioctl(fd, BLKFLSBUF));
	say("BLKRRPART", ioctl(fd, BLKRRPART));
	other = opened(O_RDONLY);
	say("BLKRRPART-opened-twice", ioctl(fd, BLKRRPART));
	close(other);
	say("BLKPG-add", ioctl(fd, BLKPG, &pg));
	say("BLKPG-add-again", ioctl(fd, BLKPG, &pg));
	pg.op = BLKPG_RESIZE_PARTITION;
	part.length = 2 << 20;
	say("BLKPG-resize", ioctl(fd, BLKPG, &pg));
	pg.op = BLKPG_DEL_PARTITION;
	say("BLKPG-delete", ioctl(fd, BLKPG, &pg));
	part.start = (long long)size;
	pg.op = BLKPG_ADD_PARTITION;
	say("BLKPG-beyond", ioctl(fd, BLKPG, &pg));
	zones->nr_zones = 4;
	say("BLKREPORTZONE", ioctl(fd, BLKREPORTZONE, zones));
	NUMBER("BLKGETZONESZ", BLKGETZONESZ, int);
	NUMBER("BLKGETNRZONES", BLKGETNRZONES, int);
	say("CDROM_GET_CAPABILITY", ioctl(fd, CDROM_GET_CAPABILITY, 0));
	say("CDROM_DRIVE_STATUS", ioctl(fd, CDROM_DRIVE_STATUS, 0));
	say("SG_GET_VERSION_NUM", ioctl(fd, SG_GET_VERSION_NUM, &n));
	say("SG_IO", ioctl(fd, SG_IO, &sg));
	say("SCSI_IOCTL_GET_IDLUN", ioctl(fd, GET_IDLUN, id));
	say("HDIO_GET_IDENTITY", ioctl(fd, HDIO_GET_IDENTITY, id));
	say("IOC_PR_REGISTER", ioctl(fd, IOC_PR_REGISTER, &reg));
	say("unknown-ioctl", ioctl(fd, _IO(0x12, 254)));
	free(zones);
}

static long range(int fd, unsigned long request, uint64_t start, uint64_t len)
{
	uint64_t r[2] = { start, len };

	return ioctl(fd, request, r);
}

static void ranges(int fd, const char *name, unsigned long request)
{
	static const struct {
		const char *what;
		int from_end;		/* start counts from there */
		long long start, len;	/* in logical blocks, when small */
		int bytes;		/* more to both */
	} ask[] = {
		{ "one-block", 0, 8, 1, 0 },
		{ "some", 0, 16, 64, 0 },
		{ "nothing", 0, 8, 0, 0 },
		{ "odd-start", 0, 8, 8, 1 },
		{ "last", 1, -1, 1, 0 },
		{ "across-the-end", 1, -1, 2, 0 },
		{ "behind-the-end", 1, 0, 1, 0 },
	};
	char question[64];
	size_t i;

	for (i = 0; i < sizeof(ask) / sizeof(*ask); i++) {
		snprintf(question, sizeof(question), "%s-%s", name, ask[i].what);
		say(question, range(fd, request,
				    (ask[i].from_end ? size : 0) +
					    (uint64_t)(ask[i].start * block + ask[i].bytes),
				    (uint64_t)(ask[i].len * block)));
	}
	snprintf(question, sizeof(question), "%s-odd-length", name);
	say(question, range(fd, request, 0, (uint64_t)block + 1));
	snprintf(question, sizeof(question), "%s-overflow", name);
	say(question, range(fd, request, (uint64_t)block, -(uint64_t)block));
}

static void direct(void)
{
	int fd = opened(O_RDWR | O_DIRECT), half = block / 2;
	struct iovec v[2] = { { buf, (size_t)block }, { buf + 8192 + block, (size_t)block } };

	moved("direct-write", pwrite(fd, buf, 4096, 0));
	moved("direct-read", pread(fd, buf, 4096, 0));
	moved("direct-odd-offset", pwrite(fd, buf, 4096, half));
	moved("direct-odd-length", pwrite(fd, buf, 4096 + (size_t)half, 0));
	moved("direct-odd-memory", pwrite(fd, buf + 1, 4096, 0));
	moved("direct-memory-of-4", pwrite(fd, buf + 4, 4096, 0));
	moved("direct-memory-of-512", pwrite(fd, buf + 512, 4096, 0));
	moved("direct-vector", pwritev(fd, v, 2, 0));
	moved("direct-nothing", pwrite(fd, buf, 0, 0));
	moved("direct-read-at-end", pread(fd, buf, 4096, (off_t)size));
	moved("direct-read-across-end", pread(fd, buf, 8192, (off_t)size - 4096));
	moved("direct-read-far", pread(fd, buf, 4096, (off_t)size + (1L << 40)));
	moved("direct-write-at-end", pwrite(fd, buf, 4096, (off_t)size));
	moved("direct-write-across-end", pwrite(fd, buf, 8192, (off_t)size - 4096));
	moved("direct-write-far", pwrite(fd, buf, 4096, (off_t)size + (1L << 40)));
	moved("direct-negative", pread(fd, buf, 4096, -4096));
	moved("dsync-write", pwritev2(fd, v, 1, 0, RWF_DSYNC));
	moved("hipri-read", preadv2(fd, v, 1, 0, RWF_HIPRI));
	moved("nowait-read", preadv2(fd, v, 1, 0, RWF_NOWAIT));
	close(fd);
}

static void buffered(void)
{
	int fd = opened(O_RDWR);
	char *map;

	moved("write", pwrite(fd, buf, 1, 1));
	moved("read", pread(fd, buf, 1, 1));
	moved("read-at-end", pread(fd, buf, 1, (off_t)size));
	moved("read-across-end", pread(fd, buf, 2, (off_t)size - 1));
	moved("write-at-end", pwrite(fd, buf, 1, (off_t)size));
	moved("write-across-end", pwrite(fd, buf, 2, (off_t)size - 1));
	printf("SEEK_END %s\n", lseek(fd, 0, SEEK_END) == (off_t)size ? "size" : "another");
	say("fsync", fsync(fd));
	say("fdatasync", fdatasync(fd));
	say("sync_file_range",
	    sync_file_range(fd, 0, 4096, SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER));
	say("ftruncate", ftruncate(fd, 4096));
	say("fallocate", fallocate(fd, 0, 0, 65536));
	say("fallocate-zero", fallocate(fd, FALLOC_FL_ZERO_RANGE, 0, 65536));
	say("fallocate-punch", fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 65536));
	say("fallocate-punch-odd",
	    fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 1, 65536));
	say("fallocate-punch-behind",
	    fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)size, 65536));
	say("fallocate-zero-across",
	    fallocate(fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, (off_t)size - 4096, 65536));
	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	say("mmap", map == MAP_FAILED ? -1 : 0);
	if (map != MAP_FAILED) {
		map[0] = 'x';
		say("msync", msync(map, 4096, MS_SYNC));
		munmap(map, 4096);
	}
	close(fd);
}

static void one(const char *question, int flags)
{
	int fd = open(dev, flags | O_CLOEXEC);

	say(question, fd < 0 ? -1 : 0);
	if (fd >= 0)
		close(fd);
}

static void opens(void)
{
	int excl = opened(O_RDWR | O_EXCL);

	one("open-exclusive-twice", O_RDONLY | O_EXCL);
	one("open-beside-exclusive", O_RDWR);
	close(excl);
	one("open-exclusive-again", O_RDONLY | O_EXCL);
	one("open-nonblock", O_RDWR | O_NONBLOCK);
	one("open-write-only", O_WRONLY);
	one("open-append", O_WRONLY | O_APPEND);
	one("open-truncate", O_WRONLY | O_TRUNC);
	one("open-create", O_RDWR | O_CREAT);
	one("open-directory", O_RDONLY | O_DIRECTORY);
}

/* Any disk opens for writing, and fails the write. */
static void read_only(const char *name)
{
	char question[64];
	int fd;
#define RO(what) (snprintf(question, sizeof(question), "%s-%s", name, what), question)

	one(RO("open"), O_RDWR);
	one(RO("open-write-only"), O_WRONLY);
	one(RO("open-exclusive"), O_RDWR | O_EXCL);
	fd = open(dev, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	moved(RO("write"), pwrite(fd, buf, 4096, 0));
	moved(RO("read"), pread(fd, buf, 4096, 0));
	say(RO("fsync"), fsync(fd));
	say(RO("BLKDISCARD"), range(fd, BLKDISCARD, 0, 4096));
	say(RO("BLKZEROOUT"), range(fd, BLKZEROOUT, 0, 4096));
	say(RO("BLKSECDISCARD"), range(fd, BLKSECDISCARD, 0, 4096));
	say(RO("BLKFLSBUF"), ioctl(fd, BLKFLSBUF));
	say(RO("punch"), fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
	say(RO("mmap"),
	    mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0);
	close(fd);
	fd = open(dev, O_RDWR | O_DIRECT | O_CLOEXEC);
	moved(RO("direct-write"), pwrite(fd, buf, 4096, 0));
	close(fd);
	NUMBER(RO("BLKROGET"), BLKROGET, int);
}

static void set_read_only(int on)
{
	int fd = opened(O_RDONLY);

	say(on ? "BLKROSET-1" : "BLKROSET-0", ioctl(fd, BLKROSET, &on));
	close(fd);
}

int main(int argc, char **argv)
{
	int fd, ro = 0;

	if (argc < 2)
		return 2;
	dev = argv[1];
	buf = aligned_alloc(4096, 65536 + 4096);
	memset(buf, 'b', 65536 + 4096);
	setvbuf(stdout, NULL, _IOLBF, 0);
	fd = opened(O_RDONLY);
	if (ioctl(fd, BLKGETSIZE64, &size) || ioctl(fd, BLKSSZGET, &block) ||
	    ioctl(fd, BLKROGET, &ro))
		return 1;
	if (ro) {
		close(fd);
		read_only("ro");
		set_read_only(0);
		read_only("ro-set-rw");
		return 0;
	}
	values(fd);
	orders(fd);
	say("BLKDISCARD-opened-for-reading", range(fd, BLKDISCARD, 0, 4096));
	close(fd);
	fd = opened(O_RDWR);
	ranges(fd, "BLKDISCARD", BLKDISCARD);
	ranges(fd, "BLKZEROOUT", BLKZEROOUT);
	ranges(fd, "BLKSECDISCARD", BLKSECDISCARD);
	close(fd);
	direct();
	buffered();
	opens();
	set_read_only(1);
	read_only("set-ro");
	set_read_only(0);
	fd = opened(O_RDWR | O_DIRECT);
	moved("set-rw-direct-write", pwrite(fd, buf, 4096, 0));
	close(fd);
	return 0;
}
