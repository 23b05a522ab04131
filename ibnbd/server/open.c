// SPDX-License-Identifier: GPL-2.0-only
/*
 * An open, one session's hold on an export: how it is made, killed and freed, and what its client
 * is told. session.c does what follows when its last I/O has ended. And the list of exports, by
 * which all opens are found, with its lock. The memory of an open is freed a grace period after the
 * last reference to its kobject was put, since I/O looks at opens under RCU.
 *
 * Lock: the export lock serializes the attaching, detaching and describing of opens, and the making
 * and removing of sysfs directories. Removing a directory waits for running writes to its files, so
 * the store functions of these files may only try the lock. I/O does not take the lock, and nobody
 * opens, flushes or closes a disk under it: a disk that hangs must not hold up the others.
 */
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <ibtrs/admin.h>
#include "ibnbd/server/session.h"
#include "ibnbd/server/sysfs.h"

DEFINE_MUTEX(ibnbd_srv_export_lock);
LIST_HEAD(ibnbd_srv_export_list);

#define OPEN_UNCLAIMED	(20 * HZ)

/*
 * Called from a sysfs file of the export: a task that removes the directory may hold the lock and
 * wait for us, so the lock is only tried.
 */
int ibnbd_srv_export_trylock(void)
{
	return mutex_trylock(&ibnbd_srv_export_lock) ? 0 : restart_syscall();
}

static void open_free_rcu(struct rcu_head *rcu)
{
	struct ibnbd_srv_open *open = container_of(rcu, struct ibnbd_srv_open, rcu);

	percpu_ref_exit(&open->ref);
	kfree(open);
}

static void open_kobj_release(struct kobject *kobj)
{
	struct ibnbd_srv_open *open = container_of(kobj, struct ibnbd_srv_open, kobj);

	ibnbd_srv_session_put(open->session);
	call_rcu(&open->rcu, open_free_rcu);
	ibnbd_srv_dirs_released();
}

static const_ktype struct kobj_type open_ktype = {
	.release	= open_kobj_release,
	.sysfs_ops	= &ibtrs_admin_sysfs_ops,
	.default_groups	= ibnbd_srv_sysfs_open_groups,
};

static void open_drained(struct percpu_ref *ref)
{
	struct ibnbd_srv_open *open = container_of(ref, struct ibnbd_srv_open, ref);

	queue_work(open->export->wq, &open->release_work);
}

/* An open that @s asks for; NULL without memory. */
struct ibnbd_srv_open *ibnbd_srv_open_new(struct ibnbd_srv_session *s, const char *name,
					  enum ibnbd_access access)
{
	struct ibnbd_srv_open *open __free(kfree) = kzalloc(sizeof(*open), GFP_KERNEL);

	if (!open || percpu_ref_init(&open->ref, open_drained, 0, GFP_KERNEL))
		return NULL;
	strscpy(open->name, name, sizeof(open->name));
	open->access = access;
	open->session = s;
	ibnbd_srv_session_get(s);
	INIT_LIST_HEAD(&open->link);
	INIT_LIST_HEAD(&open->claim_link);
	init_completion(&open->drained);
	INIT_WORK(&open->claim_work, ibnbd_srv_facts_claim_work);
	INIT_WORK(&open->release_work, ibnbd_srv_session_release_work);
	ibnbd_srv_dirs_made();
	kobject_init(&open->kobj, &open_ktype);
	return_ptr(open);
}

/**
 * ibnbd_srv_open_kill() - let no new I/O in; the release work runs when the last I/O has ended
 * @open: under its session's lock
 *
 * Return: false: the open was not live.
 */
bool ibnbd_srv_open_kill(struct ibnbd_srv_open *open)
{
	lockdep_assert_held(&open->session->lock);
	if (open->state != IBNBD_SRV_OPEN_LIVE)
		return false;
	open->state = IBNBD_SRV_OPEN_CLOSING;
	percpu_ref_kill(&open->ref);
	return true;
}

/* Close a mapping without a CLOSE of its client. @open may be NULL. Under the session's lock. */
void ibnbd_srv_open_lose(struct ibnbd_srv_open *open, const char *why)
{
	if (!open || !ibnbd_srv_open_kill(open))
		return;
	pr_warn_ratelimited("session %s: %s is closed: %s\n", open->session->label, open->name,
			    why);
	open->lost = true;
}

/**
 * ibnbd_srv_open_tell() - send the client of an open an event (protocol 8.3)
 * @open: with its id
 * @kind: IBNBD_EVENT_...
 *
 * Does nothing if the client is gone: a session may outlive it (session.c). Any context.
 */
void ibnbd_srv_open_tell(const struct ibnbd_srv_open *open, u32 kind)
{
	struct ibtrs_srv_session *ibtrs;

	guard(rcu)();
	ibtrs = rcu_dereference(open->session->ibtrs);
	if (ibtrs)
		ibtrs_srv_session_event(ibtrs, kind, open->id);
}

/* Has the client of @open a path that is up? Any context. */
bool ibnbd_srv_open_connected(const struct ibnbd_srv_open *open)
{
	struct ibtrs_srv_session *ibtrs;

	guard(rcu)();
	ibtrs = rcu_dereference(open->session->ibtrs);
	return ibtrs && ibtrs_srv_session_connected(ibtrs);
}

/*
 * Close an open that its client has not come for. The client lost patience with its OPEN, sent
 * another one and was told to wait, or had lost the path when the disk was open. A client that
 * still wants the disk sends OPEN every two seconds, and would have got the open by now. Under the
 * export lock.
 */
void ibnbd_srv_open_unclaimed(struct ibnbd_srv_open *open)
{
	struct ibnbd_srv_session *s = open->session;

	if (!READ_ONCE(open->unclaimed))
		return;
	guard(spinlock)(&s->lock);
	if (open->unclaimed && time_after(jiffies, open->unclaimed + OPEN_UNCLAIMED)) {
		WRITE_ONCE(open->unclaimed, 0);
		ibnbd_srv_open_lose(open,
				    "its client has asked for it, and not come for the answer");
	}
}
