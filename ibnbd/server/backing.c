// SPDX-License-Identifier: GPL-2.0-only
/*
 * The backing object of one open: found by lookup.c, and a block device or a file from here on.
 *
 * Called by: export.c. Opening and closing sleep as long as the disk wants, under no lock.
 */
#include "ibnbd/server/backing.h"
#include "ibnbd/server/blockio.h"
#include "ibnbd/server/fileio.h"
#include "ibnbd/server/identity.h"
#include "ibnbd/server/lookup.h"
#include "ibnbd/server/params.h"
#include "ibnbd/server/session.h"

static int backing_open_path(struct ibnbd_srv_open *open, const struct path *path, const char **why)
{
	struct inode *inode = d_backing_inode(path->dentry);
	enum ibnbd_srv_io_mode mode = ibnbd_srv_io_mode();

	if (S_ISBLK(inode->i_mode)) {
		if (mode != IBNBD_SRV_IO_FILE)
			return ibnbd_srv_blockio_open(open, inode->i_rdev, why);
		*why = "only regular files are exported; see the parameter io_mode";
	} else {
		if (mode != IBNBD_SRV_IO_BLOCK)
			return ibnbd_srv_fileio_open(open, path, why);
		*why = "only block devices are exported; see the parameter io_mode";
	}
	return -EACCES;
}

int ibnbd_srv_backing_open(struct ibnbd_srv_open *open, const char **why)
{
	char *search __free(kfree) = ibnbd_srv_search_path();
	struct path path;
	int err;

	if (!search)
		return -ENOMEM;
	err = ibnbd_srv_lookup(search, open->session->name, open->name, &path, why);
	if (err)
		return err;
	err = backing_open_path(open, &path, why);
	path_put(&path);
	return err;
}

void ibnbd_srv_backing_close(struct ibnbd_srv_open *open)
{
	if (open->bdev)
		ibnbd_srv_blockio_close(open);
	else
		ibnbd_srv_fileio_close(open);
}

u64 ibnbd_srv_backing_nsectors(struct ibnbd_srv_open *open)
{
	return open->bdev ? ibnbd_srv_blockio_nsectors(open) : ibnbd_srv_fileio_nsectors(open);
}

/* May it pass, so that the client had better ask again than take the disk for another one? */
static bool backing_is_passing(int err)
{
	return err == -ENOMEM || err == -EINTR || err == -EAGAIN || err == -EBUSY;
}

int ibnbd_srv_backing_identity(struct ibnbd_srv_open *open, struct ibnbd_identity *id,
			       struct ibnbd_identity *cache_id, const char **why)
{
	int err = 0;

	*id = (struct ibnbd_identity){};
	if (open->bdev)
		err = ibnbd_srv_identity_bdev(open->bdev, id);
	else
		ibnbd_srv_identity_file(open->file, id);
	open->id_unknown = err;
	*cache_id = *id;
	if (id->kind == IBNBD_ID_NONE && !backing_is_passing(err))
		err = ibnbd_srv_identity_instance(open->bdev, open->file, cache_id);
	if (backing_is_passing(err)) {
		*why = "the server cannot tell at the moment which disk this is; its log says why";
		return err;
	}
	if (open->id_unknown)
		pr_warn_ratelimited("%s: exported without an identity: it cannot be read (%d)\n",
				    open->name, open->id_unknown);
	return 0;
}

void ibnbd_srv_backing_describe(struct ibnbd_srv_open *open, struct ibnbd_open_rsp *rsp)
{
	memset(rsp, 0, sizeof(*rsp));
	if (open->bdev)
		ibnbd_srv_blockio_describe(open, rsp);
	else
		ibnbd_srv_fileio_describe(open, rsp);
	if (!(READ_ONCE(open->session->features) & IBNBD_FEAT_ZEROES) &&
	    !ibnbd_srv_zeroes_for_all())
		rsp->max_write_zeroes_sectors = 0;
}
