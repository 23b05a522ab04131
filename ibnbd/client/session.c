// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sessions of the block client: one transport session and one tag set for all its disks.
 *
 * A session lives as long as it has users (mappings). Its name is on the list from the first
 * attempt to open it until it is closed completely. A mapping that needs a session which is being
 * opened or closed waits for that, killable.
 *
 * The tag set: a private queue is its first user and stays until the end, so that the set is
 * "shared" already when the first disk is added, and still when only one disk is left (L2).
 * STACKING: a CPU may go offline while requests are held (L13).
 *
 * Locking: the list, names, states and users are under ibnbd_clt_lock of names.c. Only the task
 * that opens or closes a session changes the rest.
 *
 * Failure: a session that cannot be opened leaves nothing behind, and its name is free again. The
 * cleanup may take as long as an RDMA device takes to return its work requests. So a work cleans
 * up, and the task that wanted the session waits for a limited time only.
 */
#include <linux/delay.h>
#include <linux/slab.h>
#include "ibnbd/client/link.h"
#include "ibnbd/client/session.h"
#include "ibnbd/client/unflushed.h"
#include "ibnbd/logic/errword.h"

#define SESSION_RQ_TIMEOUT	(5 * HZ)	/* L1: only to look at io_timeout= */
#define SESSION_SET_POLL_MS	10
#define SESSION_SET_WARN	1000		/* polls */

static LIST_HEAD(sessions);		/* under ibnbd_clt_lock */

/* ---- the tag set ---- */

/* After an error, session_stop() frees s->ops. */
static int session_alloc_set(struct ibnbd_clt_session *s)
{
	struct blk_mq_tag_set *set = &s->set;
	u32 poll = s->attrs.nr_poll_conns;
	struct request_queue *queue;
	int err;

	set->ops = &ibnbd_clt_queue_ops;
	set->driver_data = s;
	set->nr_hw_queues = min_t(u32, s->attrs.nr_irq_conns, nr_cpu_ids) + poll;
	set->nr_maps = poll ? HCTX_MAX_TYPES : 1;
	set->queue_depth = min_t(u32, s->attrs.nr_slots, BLK_MQ_MAX_DEPTH);
	set->cmd_size = sizeof(struct ibnbd_clt_op *);
	set->numa_node = s->attrs.numa_node;
	set->timeout = SESSION_RQ_TIMEOUT;
	set->flags = BLK_MQ_F_SHOULD_MERGE | BLK_MQ_F_TAG_HCTX_SHARED | BLK_MQ_F_STACKING |
		     BLK_MQ_F_NO_SCHED_BY_DEFAULT;
	err = ibnbd_clt_queue_alloc_ops(s);
	if (err)
		return err;
	err = blk_mq_alloc_tag_set(set);
	if (err)
		return err;
	/* The block layer may have reduced nr_hw_queues (kdump). */
	s->nr_irq = set->nr_hw_queues - (set->nr_maps > HCTX_TYPE_POLL ? poll : 0);
	queue = cx_alloc_queue(set);
	if (IS_ERR(queue)) {
		blk_mq_free_tag_set(set);
		return PTR_ERR(queue);
	}
	s->queue = queue;
	return 0;
}

static void session_free_set(struct ibnbd_clt_session *s)
{
	unsigned int waited;

	cx_free_queue(s->queue);
	for (waited = 1; !cx_set_unused(&s->set); waited++) {
		msleep(SESSION_SET_POLL_MS);
		if (!(waited % SESSION_SET_WARN))
			pr_warn("%s: a disk that could not be added is still in use\n", s->name);
	}
	blk_mq_free_tag_set(&s->set);
}

/* ---- opening and closing ---- */

static int session_connect(struct ibnbd_clt_session *s, const struct ibnbd_map *m)
{
#define SESSION_OPT(field) .field = m->field,
	struct ibtrs_clt_opts opts = { IBNBD_SESSION_NUMBERS(SESSION_OPT) };
#undef SESSION_OPT
	char why[IBTRS_CLT_WHY_LEN] = "";
	struct ibtrs_clt *clt;
	int err;

	strscpy(opts.auth, m->auth, sizeof(opts.auth));
	if (m->nr_poll_queues < 0)
		opts.nr_poll_queues = num_online_cpus();
	if (opts.nr_poll_queues > num_possible_cpus())
		return ibnbd_clt_refuse(-EINVAL, "nr_poll_queues=%d: this host has %u CPUs",
					    m->nr_poll_queues, num_possible_cpus());
	clt = ibtrs_clt_create(s->name, &opts, &ibnbd_clt_link_ops, s);
	if (IS_ERR(clt))
		return ibnbd_clt_refuse(
			PTR_ERR(clt), "cannot open session %s (%ld)%s", s->name, PTR_ERR(clt),
			PTR_ERR(clt) == -EEXIST ?
				": another user of ibtrs on this host has one of that name" :
				"");
	s->clt = clt;
	err = ibtrs_clt_connect(clt, m->path, m->nr_paths);
	if (err) {
		ibtrs_clt_why(clt, why, sizeof(why));
		return ibnbd_clt_refuse(err, "cannot connect session %s (%d): %s%s%s", s->name, err,
					ibnbd_errword_connect(err), why[0] ? ": " : "", why);
	}
	ibtrs_clt_query(s->clt, &s->attrs);
	return 0;
}

/* After an error, session_stop() frees what was allocated. */
static int session_start(struct ibnbd_clt_session *s, const struct ibnbd_map *m)
{
	const char *why = NULL;
	int err;

	s->wq = alloc_ordered_workqueue("ibnbd-clt-%s", WQ_MEM_RECLAIM, s->name);
	if (!s->wq)
		return -ENOMEM;
	err = session_connect(s, m);
	if (err)
		return err;
	err = session_alloc_set(s);
	if (err)
		return ibnbd_clt_refuse(err, "session %s: no memory for its queues", s->name);
	/* Link 1 is the one that ibtrs_clt_connect() returned with. */
	err = ibnbd_clt_link_ask(s, 1, &why);
	if (err)
		return ibnbd_clt_refuse(
			err, "session %s: the server does not speak our block protocol (%d%s%s)",
			s->name, err, why ? ": " : "", why ?: "");
	ibnbd_clt_link_listen(s);
	pr_info("%s: connected, %u slots, %u bytes per request, protocol %u, features %#llx\n",
		s->name, s->attrs.nr_slots, s->attrs.max_io_size, s->version, s->features);
	return 0;
}

static void session_stop(struct ibnbd_clt_session *s)
{
	ibnbd_clt_link_unlisten(s);
	if (s->queue)
		session_free_set(s);
	if (s->clt)
		ibtrs_clt_close(s->clt);
	cancel_work_sync(&s->late_work);
	ibnbd_clt_kept_pool_free(s->pool);
	kvfree(s->ops);
	if (s->wq)
		destroy_workqueue(s->wq);
}

static struct ibnbd_clt_session *session_find(const char *name)
{
	struct ibnbd_clt_session *s;

	list_for_each_entry(s, &sessions, entry)
		if (!strcmp(s->name, name))
			return s;
	return NULL;
}

/* docs/sysfs.md: polled queues cannot be added to a session. */
static int session_fits(const struct ibnbd_clt_session *s, const struct ibnbd_map *m)
{
	if (m->nr_poll_queues)
		return ibnbd_clt_refuse(
			-EINVAL, "session %s exists: nr_poll_queues= needs a session of its own",
			s->name);
	if (s->attrs.nr_poll_conns)
		return ibnbd_clt_refuse(
			-EINVAL, "session %s has polled queues and is taken by its one mapping",
			s->name);
	/* A mapping that names a key expects that the server has proved this key. */
	if (ibnbd_map_given(m, IBNBD_OPT_auth) && strcmp(s->attrs.auth, m->auth))
		return ibnbd_clt_refuse(
			-EINVAL, "session %s exists, and authenticates with %s%s: auth=%s needs another session",
			s->name, s->attrs.auth[0] ? "key " : "no key", s->attrs.auth, m->auth);
	return 0;
}

/* Off the list: the name is free. */
static void session_forget(struct ibnbd_clt_session *s)
{
	scoped_guard(mutex, &ibnbd_clt_lock)
		list_del(&s->entry);
	ibnbd_clt_names_next_turn();
	ibnbd_clt_link_forget_unclosed(s);
	kfree(s);
}

static void session_stop_work(struct work_struct *work)
{
	struct ibnbd_clt_session *s = container_of(work, struct ibnbd_clt_session, stop_work);

	session_stop(s);
	session_forget(s);
}

static struct ibnbd_clt_session *session_create(const char *name)
{
	struct ibnbd_clt_session *s = kzalloc(sizeof(*s), GFP_KERNEL);

	if (!s)
		return NULL;
	strscpy(s->name, name, sizeof(s->name));
	ibnbd_clt_link_init(s);
	INIT_WORK(&s->late_work, ibnbd_clt_queue_late);
	INIT_WORK(&s->stop_work, session_stop_work);
	s->users = 1;
	s->state = IBNBD_CLT_SESSION_OPENING;
	list_add_tail(&s->entry, &sessions);
	return s;
}

static bool session_is_closing(const char *name)
{
	struct ibnbd_clt_session *s = session_find(name);

	return s && s->state == IBNBD_CLT_SESSION_CLOSING;
}

/* A session that is ready, a new one to start, or an ERR_PTR; -EAGAIN: wait for *@turn. */
static struct ibnbd_clt_session *session_claim(const struct ibnbd_map *m, unsigned int *turn)
{
	struct ibnbd_clt_session *s;
	int err;

	guard(mutex)(&ibnbd_clt_lock);
	s = session_find(m->sessname);
	if (!s) {
		if (!m->nr_paths)
			return ERR_PTR(ibnbd_clt_refuse(
				-ENXIO, "session %s does not exist yet: say path= to open it",
				m->sessname));
		return session_create(m->sessname) ?: ERR_PTR(-ENOMEM);
	}
	if (s->state != IBNBD_CLT_SESSION_READY) {
		*turn = ibnbd_clt_names_turn();
		return ERR_PTR(-EAGAIN);
	}
	err = session_fits(s, m);
	if (err)
		return ERR_PTR(err);
	s->users++;
	return s;
}

struct ibnbd_clt_session *ibnbd_clt_session_get(const struct ibnbd_map *m)
{
	struct ibnbd_clt_session *s;
	unsigned int turn;
	int err;

	while (IS_ERR(s = session_claim(m, &turn))) {
		if (PTR_ERR(s) != -EAGAIN)
			return s;
		err = ibnbd_clt_names_wait(turn);
		if (err)
			return ERR_PTR(err);
	}
	/* Nobody else changes the state of a session that is new, or that has a user. */
	if (s->state == IBNBD_CLT_SESSION_READY)
		return s;
	err = session_start(s, m);
	scoped_guard(mutex, &ibnbd_clt_lock)
		s->state = err ? IBNBD_CLT_SESSION_CLOSING : IBNBD_CLT_SESSION_READY;
	ibnbd_clt_names_next_turn();
	if (!err)
		return s;
	queue_work(ibnbd_clt_remove_wq, &s->stop_work);
	ibnbd_clt_names_wait_gone(session_is_closing, m->sessname);
	return ERR_PTR(err);
}

void ibnbd_clt_session_put(struct ibnbd_clt_session *s)
{
	scoped_guard(mutex, &ibnbd_clt_lock) {
		if (--s->users)
			return;
		s->state = IBNBD_CLT_SESSION_CLOSING;
	}
	session_stop(s);
	pr_info("%s: closed\n", s->name);
	session_forget(s);
}
