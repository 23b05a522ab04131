// SPDX-License-Identifier: GPL-2.0-only
/*
 * The backing object of one open: found by the name that the client asks for, and a block device or
 * a file from here on.
 *
 * Called by: export.c. Opening and closing sleep as long as the disk wants, under no lock.
 *
 * The walk through the file system (docs/design.md decision 13, E-29): logic/export.c has checked
 * the text of the name before, and what is opened is the struct path that is found, not its name
 * again.
 *
 * Below an ordinary search path no symlink is followed on the way, and the walk cannot leave the
 * search path. Only the last component may be a symlink, since that is how an administrator exports
 * a disk. The symlink must belong to root, so that a user who may merely create files there cannot
 * export the server's disks. It may lead anywhere. If its text is relative, its directory and those
 * above it, up to the search path, must belong to root, too. With the search paths `/` and `/dev`
 * the whole machine is exported anyway and symlinks are followed everywhere.
 *
 * Runs in a kernel worker, which on newer kernels has no root directory of its own: hence
 * scoped_with_init_fs().
 */
#include <linux/cred.h>
#include <linux/mount.h>
#include <linux/namei.h>
#include "ibnbd/logic/export.h"
#include "ibnbd/logic/identity.h"
#include "ibnbd/server/backing.h"
#include "ibnbd/server/params.h"
#include "ibnbd/server/session.h"

/* ---- the walk ------------------------------------------------------------ */

/* Look up root, dir and tail as one path. */
static int lookup_joined(const struct ibnbd_export_path *p, const char *tail, struct path *path)
{
	char *full __free(kfree) = kasprintf(GFP_KERNEL, "%s/%s%s%s", p->root, p->dir,
					     *p->dir ? "/" : "", tail);

	return full ? kern_path(full, LOOKUP_FOLLOW, path) : -ENOMEM;
}

/* The text of a symlink. Links without a text (/proc/PID/fd) are refused. */
static char *lookup_readlink(const struct path *path, const char **why)
{
	struct inode *inode = d_inode(path->dentry);
	DEFINE_DELAYED_CALL(done);
	const char *text;
	char *copy;

	if (!uid_eq(inode->i_uid, GLOBAL_ROOT_UID)) {
		*why = "the symbolic link does not belong to root; make it anew as root";
		return ERR_PTR(-EACCES);
	}
	if (inode->i_op->readlink) {
		*why = "this kind of symbolic link cannot be exported";
		return ERR_PTR(-EACCES);
	}
	text = vfs_get_link(path->dentry, &done);
	if (IS_ERR(text))
		return ERR_CAST(text);
	copy = kstrdup(text, GFP_KERNEL);
	do_delayed_call(&done);
	return copy ? copy : ERR_PTR(-ENOMEM);
}

static bool lookup_is_roots(const struct dentry *dir)
{
	const struct inode *inode = d_inode(dir);

	return uid_eq(inode->i_uid, GLOBAL_ROOT_UID) && !(inode->i_mode & 0022);
}

/* Go to the directory above, over mounts. Returns false if there is none. */
static bool lookup_up(struct path *at)
{
	struct dentry *parent;

	if (at->dentry == at->mnt->mnt_root)
		return follow_up(at);
	if (IS_ROOT(at->dentry))
		return false;		/* it was moved out of its mount */
	parent = dget_parent(at->dentry);
	dput(at->dentry);
	at->dentry = parent;
	return true;
}

/*
 * A relative symlink means different things in different directories. A user who can change its
 * directory could have moved the symlink there, and one who can change a directory above could put
 * another directory in the place of this one. So do all of them, from @dir up to @root, belong to
 * root, and can only root change them?
 */
static bool lookup_way_is_roots(const struct path *root, const struct path *dir)
{
	struct path at = *dir;
	bool ok;

	path_get(&at);
	ok = lookup_is_roots(at.dentry);
	while (ok && !path_equal(&at, root))
		ok = lookup_up(&at) && lookup_is_roots(at.dentry);
	path_put(&at);
	return ok;
}

static int lookup_symlink(const struct ibnbd_export_path *p, const struct path *root,
			  const struct path *dir, struct path *path, const char **why)
{
	char *text = lookup_readlink(path, why);
	int err;

	path_put(path);
	if (IS_ERR(text))
		return PTR_ERR(text);
	if (text[0] != '/' && !lookup_way_is_roots(root, dir)) {
		kfree(text);
		return ibnbd_refuse(
			-EACCES, why,
			"the symbolic link is relative, in a directory that others than root can change; make it absolute");
	}
	err = text[0] == '/' ? kern_path(text, LOOKUP_FOLLOW, path) : lookup_joined(p, text, path);
	kfree(text);
	if (err == -ENOENT)
		*why = "the symbolic link of the export leads nowhere";
	return err;
}

static int lookup_dir(const struct ibnbd_export_path *p, const struct path *root, struct path *dir,
		      const char **why)
{
	int err;

	if (!*p->dir) {
		*dir = *root;
		path_get(dir);
		return 0;
	}
	err = vfs_path_lookup(root->dentry, root->mnt, p->dir,
			      LOOKUP_DIRECTORY | LOOKUP_FOLLOW | LOOKUP_NO_SYMLINKS |
			      LOOKUP_BENEATH, dir);
	if (err == -ELOOP)
		*why = "a directory of the name is a symbolic link; only the last part may be one";
	return err;
}

static int lookup_beneath(const struct ibnbd_export_path *p, struct path *path, const char **why)
{
	struct path root, dir;
	int err;

	err = kern_path(p->root, LOOKUP_FOLLOW | LOOKUP_DIRECTORY, &root);
	if (err)
		return ibnbd_refuse(err, why, "the directory of dev_search_path does not exist");
	err = lookup_dir(p, &root, &dir, why);
	if (err)
		goto put_root;
	err = vfs_path_lookup(dir.dentry, dir.mnt, p->last, 0, path);
	if (!err && d_is_symlink(path->dentry))
		err = lookup_symlink(p, &root, &dir, path, why);
	path_put(&dir);
put_root:
	path_put(&root);
	return err;
}

/* S_ISBLK on a file system that may carry devices, or S_ISREG that is fit to be a disk. */
static int lookup_check(const struct path *path, const char **why)
{
	struct inode *inode = d_backing_inode(path->dentry);

	if (S_ISREG(inode->i_mode))
		return IS_SWAPFILE(inode) ?
			       ibnbd_refuse(-EBUSY, why, "the file is in use as swap") :
			       0;
	if (!S_ISBLK(inode->i_mode))
		return ibnbd_refuse(-ENOTBLK, why, "neither a block device nor a regular file");
	if (path->mnt->mnt_flags & MNT_NODEV || path->mnt->mnt_sb->s_iflags & SB_I_NODEV)
		return ibnbd_refuse(-EACCES, why, "its file system is mounted with nodev");
	return 0;
}

/*
 * Sets *@path to a block device node or a regular file; path_put() it. @search: dev_search_path,
 * checked; @session: for %SESSNAME%. 0, or an errno; *@why is not set if that says enough. Sleeps
 * for as long as the file system does.
 */
static int lookup_find(const char *search, const char *session, const char *name,
		       struct path *path, const char **why)
{
	char *buf __free(kfree) = kmalloc(IBNBD_EXPORT_PATH_MAX, GFP_KERNEL);
	struct ibnbd_export_path p;
	int err;

	if (!buf)
		return -ENOMEM;
	err = ibnbd_export_resolve(search, session, name, buf, IBNBD_EXPORT_PATH_MAX, &p, why);
	if (err)
		return err;
	scoped_with_init_fs() {
		if (p.follow)
			err = lookup_joined(&p, p.last, path);
		else
			err = lookup_beneath(&p, path, why);
	}
	if (err)
		return err;
	err = lookup_check(path, why);
	if (err)
		path_put(path);
	return err;
}

/* ---- the object ---------------------------------------------------------- */

static int backing_open_path(struct ibnbd_srv_open *open, const struct path *path, const char **why)
{
	struct inode *inode = d_backing_inode(path->dentry);
	int mode = READ_ONCE(ibnbd_srv_io_mode);

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
	err = lookup_find(search, open->session->name, open->name, &path, why);
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

/* The key of an object without an identity in the records of writers. */
static void backing_number(const struct ibnbd_srv_open *open, struct ibnbd_identity *id)
{
	const struct inode *inode = open->bdev ? NULL : file_inode(open->file);

	ibnbd_identity_number(inode ? inode->i_ino : 0, inode ? inode->i_generation : 0,
			      inode ? inode->i_sb->s_dev : open->bdev->bd_dev, id);
}

int ibnbd_srv_backing_identity(const struct ibnbd_srv_open *open, struct ibnbd_srv_export *e,
			       const char **why)
{
	int err = 0;

	if (open->bdev)
		err = ibnbd_srv_identity_bdev(open->bdev, &e->identity);
	else
		ibnbd_srv_identity_file(open->file, &e->identity);
	e->id_unknown = err;
	e->writer_id = e->identity;
	e->cache_id = e->identity;
	if (e->identity.kind == IBNBD_ID_NONE)
		backing_number(open, &e->writer_id);
	if (e->identity.kind == IBNBD_ID_NONE && !backing_is_passing(err))
		err = ibnbd_srv_identity_instance(open->bdev, open->file, &e->cache_id);
	if (backing_is_passing(err)) {
		*why = "the server cannot tell at the moment which disk this is; its log says why";
		return err;
	}
	if (e->id_unknown)
		pr_warn_ratelimited("%s: exported without an identity: it cannot be read (%d)\n",
				    open->name, e->id_unknown);
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
	    !READ_ONCE(ibnbd_srv_write_zeroes))
		rsp->max_write_zeroes_sectors = 0;
}
