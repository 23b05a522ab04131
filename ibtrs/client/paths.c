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
#include <linux/wait_bit.h>
#include "ibtrs/client/paths.h"
#include "ibtrs/client/session.h"

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

	guard(mutex)(&clt->lock);
	/* A path that breaks takes this lock, and I/O may wait for that path. */
	guard(noio)();
	clt->last_error[0] = 0;
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
	return path;
}

int ibtrs_clt_paths_claim(struct ibtrs_clt_path *path, enum ibtrs_clt_path_stage stage)
{
	struct ibtrs_clt *clt = path->clt;

	guard(mutex)(&clt->lock);
	if (path->stage == IBTRS_CLT_PATH_LEAVING)
		return -ENODEV;
	if (path->stage != stage)
		return -EBUSY;
	/* As soon as a path is missing from the list, a closing session waits for its remover. */
	atomic_inc(&clt->removing);
	WRITE_ONCE(path->stage, IBTRS_CLT_PATH_LEAVING);
	list_del_init(&path->entry);
	clt->nr_paths--;
	clt->loose |= path->loose;
	return 0;
}

static void paths_remove_work(struct work_struct *work)
{
	struct ibtrs_clt_path *path = container_of(work, struct ibtrs_clt_path, remove);
	atomic_t *removing = &path->clt->removing;

	ibtrs_clt_path_destroy(path);
	/* wake_up_var() uses only the address: the session may be freed already. */
	if (atomic_dec_and_test(removing))
		wake_up_var(removing);
}

void ibtrs_clt_paths_remove(struct ibtrs_clt_path *path)
{
	if (ibtrs_clt_path_close(path, true)) {
		INIT_WORK(&path->remove, paths_remove_work);
		queue_work(system_long_wq, &path->remove);
	} else {
		paths_remove_work(&path->remove);
	}
}

int ibtrs_clt_paths_add(struct ibtrs_clt *clt, const struct ibtrs_addr_pair *addr)
{
	struct ibtrs_clt_path *path;
	int err;

	path = ibtrs_clt_paths_start(clt, addr, false);
	if (IS_ERR(path))
		return PTR_ERR(path);
	ibtrs_clt_path_kick(path);
	err = ibtrs_clt_path_wait_first(path);
	scoped_guard(mutex, &clt->lock) {
		if (err)
			ibtrs_clt_path_why(path, clt->last_error, sizeof(clt->last_error));
		else if (path->stage == IBTRS_CLT_PATH_STARTING)
			WRITE_ONCE(path->stage, IBTRS_CLT_PATH_MEMBER);
	}
	if (err && !ibtrs_clt_paths_claim(path, IBTRS_CLT_PATH_STARTING))
		ibtrs_clt_paths_remove(path);
	return err;
}
