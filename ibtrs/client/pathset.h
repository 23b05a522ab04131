/* SPDX-License-Identifier: GPL-2.0-only */
/* The paths that are up, as an immutable array under RCU, replaced whole (decision 5). */
#ifndef IBTRS_CLIENT_PATHSET_H
#define IBTRS_CLIENT_PATHSET_H

#include <linux/rcupdate.h>
#include <linux/types.h>

struct ibtrs_clt;
struct ibtrs_clt_path;

/**
 * struct ibtrs_clt_pathset
 * @gen: session generation; it grows whenever the first path comes up after none was up. The server
 *	may then be a new one
 */
struct ibtrs_clt_pathset {
	struct rcu_head rcu;
	u32 n;
	u32 gen;
	struct ibtrs_clt_path *path[];
};

int ibtrs_clt_pathset_init(struct ibtrs_clt *clt);	/* after an error call _free(), too */
void ibtrs_clt_pathset_free(struct ibtrs_clt *clt);
/*
 * Both under clt->lock. Return: how many paths are up now, or -ENOMEM (add only). A removed path
 * may still be in use for a grace period.
 */
int ibtrs_clt_pathset_add(struct ibtrs_clt *clt, struct ibtrs_clt_path *path);
int ibtrs_clt_pathset_del(struct ibtrs_clt *clt, struct ibtrs_clt_path *path);
/*
 * The path for the next request, which will use its connection @cid; NULL when all paths were
 * tried. RCU read side.
 */
struct ibtrs_clt_path *ibtrs_clt_pathset_pick(struct ibtrs_clt *clt,
					      const struct ibtrs_clt_pathset *set, u32 cid,
					      u64 tried[2]);

#endif
