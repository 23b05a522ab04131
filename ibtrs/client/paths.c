// SPDX-License-Identifier: GPL-2.0-only
/*
 * The list of a session's paths: adding and removing paths.
 *
 * Called by: session.c (open, close), sysfs (add_path, remove_path).
 *
 * A path is removed by the task that claims it, under clt->lock. A closing session claims all paths
 * that are left. A path cannot be claimed while open or add_path waits for its first attempt. A
 * claimed path never connects again.
 *
 * Failure: if a task is killed while its path closes, a work removes the path, and a closing
 * session waits for that work.
 */
#include <linux/sched/mm.h>
#include "ibtrs/client/paths.h"
#include "ibtrs/client/session.h"

static struct workqueue_struct *remove_wq;

static struct ibtrs_clt_path *paths_find(struct ibtrs_clt *clt, const struct ibtrs_addr_pair *addr)
{
	struct ibtrs_clt_path *path;

	list_for_each_entry(path, &clt->paths, entry)
		if (ibtrs_addr_equal(&path->addr.src, &addr->src) &&
		    ibtrs_addr_equal(&path->addr.dst, &addr->dst))
			return path;
	return NULL;
}

struct ibtrs_clt_path *ibtrs_clt_paths_start(struct ibtrs_clt *clt,
					     const struct ibtrs_addr_pair *addr, bool opening)
{
	struct ibtrs_clt_path *path;
	unsigned int noio;

	mutex_lock(&clt->lock);
	/* A path that breaks takes this lock, and I/O may wait for that path. */
	noio = memalloc_noio_save();
	if (clt->closing)
		path = ERR_PTR(-ENODEV);
	else if (!opening && !clt->opened)
		path = ERR_PTR(-EBUSY);
	else if (paths_find(clt, addr))
		path = ERR_PTR(-EEXIST);
	else if (clt->nr_paths >= IBTRS_MAX_PATHS)
		path = ERR_PTR(-ENOSPC);
	else
		path = ibtrs_clt_path_create(clt, addr);
	if (!IS_ERR(path)) {
		path->may_create = list_empty(&clt->paths);
		list_add_tail(&path->entry, &clt->paths);
		clt->nr_paths++;
	}
	memalloc_noio_restore(noio);
	mutex_unlock(&clt->lock);
	return path;
}

/* clt->lock is held. */
static void paths_take_off(struct ibtrs_clt_path *path)
{
	struct ibtrs_clt *clt = path->clt;

	WRITE_ONCE(path->stage, IBTRS_CLT_PATH_LEAVING);
	list_del_init(&path->entry);
	clt->nr_paths--;
	clt->loose |= path->loose;
}

/*
 * The first attempt has ended, so @path may be claimed now. Return: true: the path stays, or a
 * closing session removes it; it may be freed when this returns. False: the caller must remove it.
 */
static bool paths_started(struct ibtrs_clt_path *path, bool keep)
{
	struct ibtrs_clt *clt = path->clt;

	mutex_lock(&clt->lock);
	/* A closing session removes the path itself. */
	keep = keep || clt->closing;
	if (!keep)
		paths_take_off(path);
	else if (path->stage == IBTRS_CLT_PATH_STARTING)
		WRITE_ONCE(path->stage, IBTRS_CLT_PATH_MEMBER);
	mutex_unlock(&clt->lock);
	return keep;
}

int ibtrs_clt_paths_claim(struct ibtrs_clt_path *path)
{
	struct ibtrs_clt *clt = path->clt;
	int err = 0;

	mutex_lock(&clt->lock);
	if (path->stage == IBTRS_CLT_PATH_LEAVING)
		err = -ENODEV;
	else if (path->stage == IBTRS_CLT_PATH_STARTING)
		err = -EBUSY;
	else
		paths_take_off(path);
	mutex_unlock(&clt->lock);
	return err;
}

void ibtrs_clt_paths_destroy(struct ibtrs_clt_path *path)
{
	ibtrs_clt_path_close(path, false);
	ibtrs_clt_path_destroy(path);
}

static void paths_remove_work(struct work_struct *work)
{
	struct ibtrs_clt_path *path = container_of(work, struct ibtrs_clt_path, remove);
	struct ibtrs_clt *clt = path->clt;

	ibtrs_clt_paths_destroy(path);
	ibtrs_clt_dirs_removed(clt);
}

void ibtrs_clt_paths_remove(struct ibtrs_clt_path *path)
{
	struct ibtrs_clt *clt = path->clt;

	if (ibtrs_clt_path_close(path, true)) {
		INIT_WORK(&path->remove, paths_remove_work);
		queue_work(remove_wq, &path->remove);
		return;
	}
	ibtrs_clt_paths_destroy(path);
	ibtrs_clt_dirs_removed(clt);
}

/* Keep the reason for the writer of add_path: the path will be freed. @path NULL: no reason. */
static void paths_note_error(struct ibtrs_clt *clt, struct ibtrs_clt_path *path)
{
	char reason[IBTRS_CLT_REASON_LEN] = "";

	if (path)
		ibtrs_clt_path_reason(path, reason, sizeof(reason));
	guard(mutex)(&clt->lock);
	scnprintf(clt->last_error, sizeof(clt->last_error), "%s%s%s", path ? path->name : "",
		  path ? ": " : "", reason);
}

int ibtrs_clt_paths_add(struct ibtrs_clt *clt, const struct ibtrs_addr_pair *addr)
{
	struct ibtrs_clt_path *path;
	int err;

	paths_note_error(clt, NULL);
	path = ibtrs_clt_paths_start(clt, addr, false);
	if (IS_ERR(path))
		return PTR_ERR(path);
	ibtrs_clt_path_kick(path);
	err = ibtrs_clt_path_wait_first(path);
	if (err)
		paths_note_error(clt, path);
	ibtrs_clt_dirs_removing(clt);
	if (paths_started(path, !err))
		ibtrs_clt_dirs_removed(clt);
	else
		ibtrs_clt_paths_remove(path);
	return err;
}

int ibtrs_clt_paths_init(void)
{
	remove_wq = alloc_workqueue("ibtrs-clt-remove", WQ_UNBOUND, 0);
	return remove_wq ? 0 : -ENOMEM;
}

void ibtrs_clt_paths_exit(void)
{
	destroy_workqueue(remove_wq);
}
