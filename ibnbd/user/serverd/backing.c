// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files, block devices and disks of NBD servers (nbd.c): opened by a worker, described to clients
 * as the kernel's server does (ibnbd/server/blockio.c, ibnbd/server/fileio.c).
 *
 * A transfer that fits the alignment is direct. Any other one goes through the page cache, by a
 * descriptor of its own.
 */
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "ibnbd/user/serverd/serverd.h"

#define BACKING_MAX_RANGE	(U32_MAX >> IBNBD_SECTOR_SHIFT)

static int backing_refuse(struct serverd_find *f, int err, const char *why)
{
	f->why = why;
	return err;
}

/* ---- sysfs ------------------------------------------------------------------ */

int serverd_sysfs_text(const char *dir, const char *attr, char *buf, size_t size)
{
	char path[160];
	ssize_t n;
	size_t at;
	int fd;

	buf[0] = 0;
	if (!*dir)
		return -ENOENT;
	snprintf(path, sizeof(path), "%s/%s", dir, attr);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	at = n < 0 ? (size_t)errno : 0;
	close(fd);
	if (n < 0)
		return -(int)at;
	while (n && strchr(" \t\r\n\v\f", buf[n - 1]))
		n--;
	buf[n] = 0;
	at = strspn(buf, " \t\r\n\v\f");
	memmove(buf, buf + at, (size_t)n - at + 1);
	return (int)strlen(buf);
}

u64 serverd_sysfs_number(const char *dir, const char *attr)
{
	char text[32];

	return serverd_sysfs_text(dir, attr, text, sizeof(text)) > 0 ? strtoull(text, NULL, 10) : 0;
}

/* The kernel's own number of a device, which is in its records. */
static u32 backing_dev(dev_t dev)
{
	return (u32)(major(dev) << 20 | minor(dev));
}

/* The directory of the whole disk that @dev is, or is a part of. */
static void backing_sysfs(struct serverd_backing *b, dev_t dev)
{
	unsigned int ma, mi;
	char text[32];

	snprintf(b->sysfs, sizeof(b->sysfs), "/sys/dev/block/%u:%u", major(dev), minor(dev));
	if (!access(b->sysfs, F_OK)) {
		if (serverd_sysfs_text(b->sysfs, "partition", text, sizeof(text)) > 0)
			strcat(b->sysfs, "/..");
	} else {
		b->sysfs[0] = 0;
	}
	b->disk_dev = backing_dev(dev);
	if (serverd_sysfs_text(b->sysfs, "dev", text, sizeof(text)) > 0 &&
	    sscanf(text, "%u:%u", &ma, &mi) == 2)
		b->disk_dev = backing_dev(makedev(ma, mi));
}

bool serverd_backing_volatile(const struct serverd_backing *b)
{
	char text[32];

	if (b->kind == SERVERD_NBD)
		return serverd_nbd_can(b->nbd, SERVERD_NBD_FLUSH);
	if (b->kind == SERVERD_FILE)
		return true;		/* the page cache, and the disk below */
	/* In doubt it has one: clients then send flushes, which do no harm. */
	return serverd_sysfs_text(b->sysfs, "queue/write_cache", text, sizeof(text)) <= 0 ||
	       !strcmp(text, "write back");
}

/* ---- opening ------------------------------------------------------------------ */

/* @fd is of O_PATH. */
static int backing_reopen(int fd, int flags)
{
	char path[32];
	int n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = open(path, flags | O_CLOEXEC);
	return n < 0 ? -errno : n;
}

/* Of direct I/O on this descriptor, in bytes; 0: it is not known, or makes no sense. */
static u32 backing_dio_align(int fd, u32 guess)
{
#ifdef STATX_DIOALIGN
	struct statx st;

	if (!statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &st) && st.stx_mask & STATX_DIOALIGN) {
		guess = st.stx_dio_offset_align;
		if (st.stx_dio_mem_align > 4096)
			guess = 0;
	}
#endif
	return guess <= 4096 && !(guess & (guess - 1)) ? guess : 0;
}

static int backing_open_file(struct serverd_find *f, int path)
{
	struct serverd_backing *b = &f->b;
	int flags = f->writes ? O_RDWR : O_RDONLY;
	struct stat st;

	if (f->claims) {
		/* A lease says whether it is open for writing, by us or others. */
		b->page_fd = backing_reopen(path, O_RDONLY);
		if (b->page_fd >= 0 && fcntl(b->page_fd, F_SETLEASE, F_RDLCK))
			b->used_here = errno == EAGAIN;
		else if (b->page_fd >= 0)
			fcntl(b->page_fd, F_SETLEASE, F_UNLCK);
		if (b->page_fd >= 0)
			close(b->page_fd);
	}
	b->page_fd = backing_reopen(path, flags);
	if (b->page_fd < 0)
		return b->page_fd;
	if (fstat(b->page_fd, &st))
		return -errno;
	b->fd = backing_reopen(path, flags | O_DIRECT);
	if (b->fd >= 0)
		b->align = backing_dio_align(b->fd, st.st_blksize > 4096 ? 4096 :
								   (u32)st.st_blksize);
	if (!b->align) {
		if (b->fd >= 0)
			close(b->fd);
		b->fd = b->page_fd;
	} else if (b->align < IBNBD_SECTOR_SIZE) {
		b->align = IBNBD_SECTOR_SIZE;
	}
	b->block = f->file_block;
	b->dev = backing_dev(st.st_dev);
	b->ino = st.st_ino;
	backing_sysfs(b, st.st_dev);
	if (st.st_size && !serverd_backing_nsectors(b))
		return backing_refuse(f, -EINVAL,
				      "the file is smaller than one block; see truncate -s");
	return 0;
}

static int backing_open_disk(struct serverd_find *f, int path)
{
	struct serverd_backing *b = &f->b;
	int block = 0, ro = 0;
	char text[32];
	struct stat st;

	b->fd = backing_reopen(path, (f->writes ? O_RDWR : O_RDONLY) | O_DIRECT);
	if (b->fd < 0)
		return b->fd;
	if (fstat(b->fd, &st) || ioctl(b->fd, BLKSSZGET, &block))
		return -errno;
	b->dev = backing_dev(st.st_rdev);
	backing_sysfs(b, st.st_rdev);
	b->block = b->align = (u32)block;
	if (f->writes && !ioctl(b->fd, BLKROGET, &ro) && ro)
		return backing_refuse(f, -EACCES,
				      "the device is read-only; map it with access_mode=ro");
	if (serverd_sysfs_text(b->sysfs, "queue/zoned", text, sizeof(text)) > 0 &&
	    strcmp(text, "none"))
		return backing_refuse(f, -EOPNOTSUPP, "zoned devices cannot be exported");
	if (!ibnbd_msg_block_size_ok(b->block, SERVERD_BLOCK_MAX))
		return backing_refuse(f, -EINVAL, "its logical block size is above 32768");
	b->stable = serverd_sysfs_number(b->sysfs, "queue/stable_writes");
	if (serverd_sysfs_text(b->sysfs, "integrity/format", text, sizeof(text)) > 0 &&
	    strcmp(text, "none"))
		b->stable = true;
	if (f->claims) {
		b->claim_fd = backing_reopen(path, O_RDONLY | O_EXCL);
		b->used_here = b->claim_fd == -EBUSY;
	}
	return 0;
}

static int backing_open_path(struct serverd_find *f, int path)
{
	struct stat st;

	if (fstat(path, &st))
		return -errno;
	if (S_ISSOCK(st.st_mode)) {
		f->b.kind = SERVERD_NBD;
		return serverd_nbd_open(f, path);
	}
	f->b.kind = S_ISBLK(st.st_mode) ? SERVERD_DISK : SERVERD_FILE;
	if (f->b.kind == SERVERD_DISK && f->io_mode == SERVERD_IO_FILE)
		return backing_refuse(f, -EACCES,
				      "only regular files are exported; see io_mode of server.conf");
	if (f->b.kind == SERVERD_FILE && f->io_mode == SERVERD_IO_BLOCK)
		return backing_refuse(f, -EACCES,
				      "only block devices are exported; see io_mode of server.conf");
	return f->b.kind == SERVERD_DISK ? backing_open_disk(f, path) : backing_open_file(f, path);
}

void serverd_backing_open(struct serverd_find *f)
{
	int path;

	f->why = "";
	f->b = (struct serverd_backing){
		.fd = -1, .page_fd = -1, .claim_fd = -1, .writes = f->writes,
	};
	path = serverd_lookup(f);
	f->err = path < 0 ? path : 0;
	if (f->err)
		return;
	f->err = backing_open_path(f, path);
	close(path);
	if (f->err) {
		serverd_backing_close(&f->b);
		return;
	}
	f->b.has_volatile = serverd_backing_volatile(&f->b);
	if (f->b.kind != SERVERD_NBD)
		serverd_identity(&f->b);
}

void serverd_backing_close(struct serverd_backing *b)
{
	if (b->page_fd >= 0)
		close(b->page_fd);
	if (b->fd >= 0 && b->fd != b->page_fd)
		close(b->fd);
	if (b->claim_fd >= 0)
		close(b->claim_fd);
	b->fd = b->page_fd = b->claim_fd = -1;
	if (b->nbd)
		serverd_nbd_close(b->nbd);
	b->nbd = NULL;
}

int serverd_backing_flush(const struct serverd_backing *b)
{
	if (b->nbd)
		return serverd_nbd_flush(b->nbd);
	return fdatasync(b->fd) ? -errno : 0;
}

u64 serverd_backing_nsectors(const struct serverd_backing *b)
{
	u64 size = 0;
	struct stat st;

	if (b->nbd)
		return (serverd_nbd_size(b->nbd) & ~(u64)(b->block - 1)) >> IBNBD_SECTOR_SHIFT;
	if (b->kind == SERVERD_DISK)
		return ioctl(b->fd, BLKGETSIZE64, &size) ?
			       0 : (size & ~(u64)(b->block - 1)) >> IBNBD_SECTOR_SHIFT;
	if (fstat(b->fd, &st))
		return 0;
	return ((u64)st.st_size & ~(u64)(b->block - 1)) >> IBNBD_SECTOR_SHIFT;
}

/* ---- what a client is told ------------------------------------------------------ */

static u32 backing_range(u64 bytes, u32 block)
{
	u64 sectors = bytes >> IBNBD_SECTOR_SHIFT;

	if (sectors > BACKING_MAX_RANGE)
		sectors = BACKING_MAX_RANGE;
	return (u32)sectors & ~((block >> IBNBD_SECTOR_SHIFT) - 1);
}

static void backing_describe_file(const struct serverd_backing *b, bool no_punch,
				  struct ibnbd_open_rsp *rsp)
{
	u32 physical = b->block > b->align ? b->block : b->align;
	struct statvfs fs;

	if (!fstatvfs(b->fd, &fs)) {
		u32 size = fs.f_bsize > SERVERD_BLOCK_MAX ? SERVERD_BLOCK_MAX : (u32)fs.f_bsize;

		if (size > physical && !(size & (size - 1)))
			physical = size;
		if (fs.f_flag & ST_RDONLY)
			rsp->identity.flags |= IBNBD_ID_F_READ_ONLY;
	}
	rsp->physical_block_size = physical;
	rsp->max_hw_sectors = BACKING_MAX_RANGE;
	rsp->max_segments = U16_MAX;
	rsp->writeback = true;
	rsp->fua = true;
	rsp->identity.io_min = physical;
	if (!no_punch) {
		rsp->max_discard_sectors = backing_range(U32_MAX, b->block);
		rsp->max_write_zeroes_sectors = rsp->max_discard_sectors;
		rsp->discard_granularity = physical;
	}
}

static void backing_describe_disk(const struct serverd_backing *b, bool copies,
				  struct ibnbd_open_rsp *rsp)
{
	u32 physical = 0, granularity, misfit;
	int ro = 0;

	ioctl(b->fd, BLKPBSZGET, &physical);
	rsp->physical_block_size = physical > b->block ? physical : b->block;
	rsp->max_hw_sectors = (u32)serverd_sysfs_number(b->sysfs, "queue/max_hw_sectors_kb") * 2;
	rsp->max_segments = (u16)serverd_sysfs_number(b->sysfs, "queue/max_segments");
	rsp->max_write_zeroes_sectors =
		backing_range(serverd_sysfs_number(b->sysfs, "queue/write_zeroes_max_bytes"),
			      b->block);
	rsp->writeback = serverd_backing_volatile(b);
	rsp->fua = serverd_sysfs_number(b->sysfs, "queue/fua");
	ioctl(b->fd, BLKIOMIN, &rsp->identity.io_min);
	ioctl(b->fd, BLKIOOPT, &rsp->identity.io_opt);
	if (!ioctl(b->fd, BLKROGET, &ro) && ro)
		rsp->identity.flags |= IBNBD_ID_F_READ_ONLY;
	if (b->stable && !copies)
		rsp->identity.flags |= IBNBD_ID_F_STABLE_PAGES;
	rsp->max_discard_sectors =
		backing_range(serverd_sysfs_number(b->sysfs, "queue/discard_max_bytes"), b->block);
	if (!rsp->max_discard_sectors)
		return;
	granularity = (u32)serverd_sysfs_number(b->sysfs, "queue/discard_granularity");
	misfit = granularity % b->block;
	granularity += misfit ? b->block - misfit : 0;
	rsp->discard_granularity = granularity > b->block ? granularity : b->block;
	rsp->discard_alignment = (u32)serverd_sysfs_number(b->sysfs, "discard_alignment");
}

static void backing_describe_nbd(const struct serverd_backing *b, struct ibnbd_open_rsp *rsp)
{
	u32 preferred = serverd_nbd_preferred(b->nbd);

	rsp->physical_block_size = b->block;
	if (preferred > b->block && ibnbd_msg_block_size_ok(preferred, SERVERD_BLOCK_MAX))
		rsp->physical_block_size = (u16)preferred;
	rsp->max_hw_sectors = BACKING_MAX_RANGE;
	rsp->max_segments = U16_MAX;
	rsp->writeback = serverd_backing_volatile(b);
	rsp->fua = serverd_nbd_can(b->nbd, SERVERD_NBD_FUA);
	if (serverd_nbd_can(b->nbd, SERVERD_NBD_READ_ONLY))
		rsp->identity.flags |= IBNBD_ID_F_READ_ONLY;
	if (serverd_nbd_can(b->nbd, SERVERD_NBD_ROTATIONAL))
		rsp->identity.flags |= IBNBD_ID_F_ROTATIONAL;
	if (serverd_nbd_can(b->nbd, SERVERD_NBD_ZERO))
		rsp->max_write_zeroes_sectors = backing_range(U32_MAX, b->block);
	if (!serverd_nbd_can(b->nbd, SERVERD_NBD_TRIM))
		return;
	rsp->max_discard_sectors = backing_range(U32_MAX, b->block);
	rsp->discard_granularity = rsp->physical_block_size;
}

/* Secure erase is not offered: the disk's own secure erase has no asynchronous call. */
void serverd_backing_describe(const struct serverd_backing *b, bool no_punch, bool copies,
			      struct ibnbd_open_rsp *rsp)
{
	memset(rsp, 0, sizeof(*rsp));
	rsp->nsectors = serverd_backing_nsectors(b);
	rsp->logical_block_size = b->block;
	if (serverd_sysfs_number(b->sysfs, "queue/rotational"))
		rsp->identity.flags |= IBNBD_ID_F_ROTATIONAL;
	if (b->nbd)
		backing_describe_nbd(b, rsp);
	else if (b->kind == SERVERD_DISK)
		backing_describe_disk(b, copies, rsp);
	else
		backing_describe_file(b, no_punch, rsp);
}
