// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sessions: opening and closing them, and what the user may ask.
 *
 * Called by the user. dirs.c has the list of all sessions, paths.c a session's list of paths,
 * and link.c what paths mean for it.
 *
 * A closing session removes all its paths. No path can be added or claimed then, so the list is
 * walked without the lock.
 */
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/uuid.h>
#include <linux/wait_bit.h>
#include "ibtrs/client/paths.h"
#include "ibtrs/client/session.h"
#include "ibtrs/logic/mpath.h"

#define SESSION_HB_MS		1000
#define SESSION_HB_MISSES	3

static unsigned int max_conns;
module_param(max_conns, uint, 0444);
MODULE_PARM_DESC(max_conns,
		 "upper bound on interrupt driven connections per path (0: one for each CPU that is online when the session is opened)");

static bool acked_writes;
module_param(acked_writes, bool, 0444);
MODULE_PARM_DESC(acked_writes,
		 "a write ends when the server's adapter has acknowledged it, too");

/*
 * Number the CPUs that are online. What there is one of for each CPU is sized by them; CPUs that
 * come online later share it with the others. No table is needed where the numbers are the CPUs'
 * own.
 */
static int session_number_cpus(struct ibtrs_clt *clt)
{
	u16 *number __free(kfree) = kcalloc(nr_cpu_ids, sizeof(*number), GFP_KERNEL);
	u32 cpu, n = 0, later = 0;
	bool own = true;

	if (!number)
		return -ENOMEM;
	for_each_possible_cpu(cpu) {
		number[cpu] = U16_MAX;
		if (!cpu_online(cpu))
			continue;
		own &= cpu == n;
		number[cpu] = n++;
	}
	clt->nr_cpus = n ?: 1;
	for_each_possible_cpu(cpu)
		if (number[cpu] == U16_MAX)
			number[cpu] = later++ % clt->nr_cpus;
	if (!own)
		clt->cpu_number = no_free_ptr(number);
	return 0;
}

#ifdef IBTRS_TESTS
void ibtrs_clt_news_fault(struct ibtrs_clt *clt)
{
	ibtrs_fault_wait(IBTRS_FAULT_CLT_NEWS, clt->name, "");
}
EXPORT_SYMBOL_GPL(ibtrs_clt_news_fault);
#endif

void *ibtrs_clt_hdr(struct ibtrs_clt *clt, u32 slot)
{
	return clt->slots.reqs[slot].hdr;
}
EXPORT_SYMBOL_GPL(ibtrs_clt_hdr);

void ibtrs_clt_query(struct ibtrs_clt *clt, struct ibtrs_clt_attrs *attrs)
{
	*attrs = (struct ibtrs_clt_attrs){
		.nr_slots	= clt->slots.nr_user,
		.max_io_size	= clt->max_io_size,
		.max_segments	= clt->max_segments,
		.nr_irq_conns	= clt->nr_irq_conns,
		.nr_poll_conns	= clt->opts.nr_poll_queues,
		.numa_node	= clt->slots.node,
		.auth		= clt->opts.auth,
	};
}
EXPORT_SYMBOL_GPL(ibtrs_clt_query);

int ibtrs_clt_poll(struct ibtrs_clt *clt, unsigned int index)
{
	struct ibtrs_clt_pathset *set;
	struct ibtrs_clt_conn *conn;
	int n = 0;
	u32 i;

	guard(rcu)();
	set = rcu_dereference(clt->up);
	/* Pairs with the shrinking in place in pathset.c. */
	for (i = 0; i < smp_load_acquire(&set->n); i++) {
		conn = &READ_ONCE(set->path[i])->conns[1 + clt->nr_irq_conns + index];
		n += ibtrs_clt_conn_poll(conn);
	}
	return n;
}
EXPORT_SYMBOL_GPL(ibtrs_clt_poll);

/* No path is left, nor anything in sysfs. */
static void session_free(struct ibtrs_clt *clt)
{
	if (clt->drain_wq)
		destroy_workqueue(clt->drain_wq);
	if (clt->wq)
		destroy_workqueue(clt->wq);
	ibtrs_clt_pathset_free(clt);
	ibtrs_clt_slots_free(&clt->slots);
	kfree(clt->cpu_number);
	kfree(clt);
}

static bool session_match_all(struct ibtrs_clt_io *io, void *arg)
{
	return true;
}

void ibtrs_clt_close(struct ibtrs_clt *clt)
{
	struct ibtrs_clt_path *path, *tmp;

	ibtrs_clt_dirs_session_unlist(clt);
	mutex_lock(&clt->lock);
	clt->closing = true;
	clt->opened = false;
	list_for_each_entry(path, &clt->paths, entry) {
		/* From here on path_work() ignores CONNECT: the path stays closed. */
		WRITE_ONCE(path->stage, IBTRS_CLT_PATH_LEAVING);
		ibtrs_clt_path_post(path, IBTRS_PATH_EV_CLOSE, -ECONNABORTED, "session closed");
	}
	mutex_unlock(&clt->lock);
	ibtrs_clt_dirs_session_shut(clt);
	/* Only this task uses the list now: no path can be added or claimed any more. */
	list_for_each_entry_safe(path, tmp, &clt->paths, entry) {
		list_del_init(&path->entry);
		ibtrs_clt_path_destroy(path);
	}
	wait_var_event(&clt->removing, !atomic_read_acquire(&clt->removing));
	ibtrs_clt_dirs_session_del(clt);
	/* No path is left, so this work ends the requests that it finds in ibtrs' own slots. */
	flush_work(&clt->again);
	ibtrs_clt_abort(clt, session_match_all, NULL, -ECONNABORTED);
	session_free(clt);
}
EXPORT_SYMBOL_GPL(ibtrs_clt_close);

static int session_open_paths(struct ibtrs_clt *clt, const struct ibtrs_addr_pair *paths,
			      unsigned int nr)
{
	struct ibtrs_clt_path *path;
	int err = 0, first = 0;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		path = ibtrs_clt_paths_start(clt, &paths[i], true);
		if (IS_ERR(path))
			return PTR_ERR(path);
	}
	/*
	 * Only the first path may create the session on the server (protocol 2.2), so it connects
	 * first. If it fails, the next one takes its place.
	 */
	list_for_each_entry(path, &clt->paths, entry) {
		if (!ibtrs_clt_is_up(clt)) {
			path->may_create = true;
			ibtrs_clt_path_kick(path);
			err = ibtrs_clt_path_wait_first(path);
			first = first ?: err;
			if (err == -EINTR)
				return err;
		} else {
			ibtrs_clt_path_kick(path);
		}
	}
	if (!ibtrs_clt_is_up(clt))
		return first ?: -ENOTCONN;
	list_for_each_entry(path, &clt->paths, entry) {
		err = ibtrs_clt_path_wait_first(path);
		if (err == -EINTR)
			return err;
		if (err)
			pr_warn("ibtrs %s: %s: not up yet (%d), trying on\n", clt->name, path->name,
				err);
	}
	guard(mutex)(&clt->lock);
	list_for_each_entry(path, &clt->paths, entry)
		WRITE_ONCE(path->stage, IBTRS_CLT_PATH_MEMBER);
	return 0;
}

struct ibtrs_clt *ibtrs_clt_create(const char *name, const struct ibtrs_clt_opts *opts,
				   const struct ibtrs_clt_ops *ops, void *priv)
{
	struct ibtrs_clt *clt;
	const char *why;
	int err;

	err = ibtrs_msg_name_check(name, strlen(name), &why);
	if (err)
		return ERR_PTR(err);
	clt = kzalloc(sizeof(*clt), GFP_KERNEL);
	if (!clt)
		return ERR_PTR(-ENOMEM);
	strscpy(clt->name, name, sizeof(clt->name));
	generate_random_uuid(clt->uuid);
	clt->opts = *opts;
	clt->opts.dest_port = clt->opts.dest_port ?: IBTRS_DEFAULT_PORT;
	clt->opts.hb_interval_ms = clt->opts.hb_interval_ms ?: SESSION_HB_MS;
	clt->opts.hb_misses = clt->opts.hb_misses ?: SESSION_HB_MISSES;
	clt->backoff = ibtrs_backoff_default;
	if (clt->opts.reconnect_delay_ms)
		clt->backoff.first_ms = clt->opts.reconnect_delay_ms;
	if (clt->opts.reconnect_max_ms)
		clt->backoff.max_ms = clt->opts.reconnect_max_ms;
	clt->policy = opts->policy;
	clt->ops = ops;
	clt->priv = priv;
	clt->acked = acked_writes;
	mutex_init(&clt->lock);
	INIT_WORK(&clt->want.work, ibtrs_clt_link_retry_work);
	INIT_WORK(&clt->again, ibtrs_clt_req_again_work);
	spin_lock_init(&clt->turn.lock);
	INIT_LIST_HEAD(&clt->paths);
	spin_lock_init(&clt->slots.lock);
	init_waitqueue_head(&clt->slots.wait);
	clt->wq = alloc_workqueue("ibtrs-clt-%s", WQ_UNBOUND | WQ_MEM_RECLAIM, 0, name);
	clt->drain_wq = alloc_workqueue("ibtrs-drain-%s", WQ_UNBOUND | WQ_MEM_RECLAIM, 0, name);
	err = clt->wq && clt->drain_wq ? ibtrs_clt_pathset_init(clt) : -ENOMEM;
	err = err ?: session_number_cpus(clt);
	clt->nr_irq_conns = min3(max_conns ?: U32_MAX, clt->nr_cpus, IBTRS_MAX_CONS / 2u);
	err = err ?: ibtrs_clt_dirs_session_add(clt);
	if (err) {
		session_free(clt);
		return ERR_PTR(err);
	}
	return clt;
}
EXPORT_SYMBOL_GPL(ibtrs_clt_create);

int ibtrs_clt_connect(struct ibtrs_clt *clt, const struct ibtrs_addr_pair *paths, unsigned int nr)
{
	int err;

	if (!nr)
		return -EINVAL;
	err = session_open_paths(clt, paths, nr);
	if (err)
		return err;
	guard(mutex)(&clt->lock);
	if (!ibtrs_clt_is_up(clt))
		return -ECONNRESET;
	/* From here on the user gets link events; the return value tells what it has missed. */
	clt->opened = true;
	return 0;
}
EXPORT_SYMBOL_GPL(ibtrs_clt_connect);

void ibtrs_clt_why(struct ibtrs_clt *clt, char *buf, size_t size)
{
	struct ibtrs_clt_path *path;

	BUILD_BUG_ON(IBTRS_CLT_WHY_LEN < IBTRS_PATH_STR_MAX + IBTRS_CLT_REASON_LEN);
	*buf = 0;
	guard(mutex)(&clt->lock);
	/* A closing session walks the list without the lock. */
	if (clt->closing)
		return;
	list_for_each_entry(path, &clt->paths, entry) {
		if (ibtrs_clt_path_state(path) != IBTRS_PATH_UP)
			ibtrs_clt_path_why(path, buf, size);
		if (*buf)
			return;
	}
}
EXPORT_SYMBOL_GPL(ibtrs_clt_why);
